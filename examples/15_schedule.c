// 15_schedule.c -- a schedule of your own, checked and explained
//
// You learn: a schedule is text, one step a line; the simulator says what it takes and costs, or which
// step breaks which rule, whoever made it. It prints each step with the bytes that are live during it.
// Without arguments it does so for a small net and a schedule that drops one activation and compresses
// another; with GRAPH.tlg SCHEDULE for yours, and a third word shows the steps of one kind or codec alone
// (F, B, D, f16). Read next: tl_plan.c, which makes such schedules (--schedule FILE).
//
// check:
//
//     mkdir -p build && cc -o build/15_schedule examples/15_schedule.c && build/15_schedule
#include <stdio.h>
#include <string.h>
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

static tl_env env;  // malloc, silent
static char text[1 << 20];

static const char net[] = "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=4096 needs=none in=-\n"
    "node 1 conv conv2d fwd=90 bwd=180 out=4096 needs=in in=0\n"
    "node 2 act relu fwd=1 bwd=1 out=4096 needs=out in=1\n"
    "node 3 dense linear fwd=60 bwd=120 out=1024 needs=in in=2\n"
    "node 4 loss loss fwd=1 bwd=1 out=4 needs=in in=3\n";
static const char schedule[] = "F 1\nF 2\nD 1\nF 3\nC 2 f16\nF 4\nB 4\nD 4\nD 3\nX 2\nB 3\nB 2\nD 2\nB 1\n";

static size_t read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    int bad = !file || ferror(file) || length == sizeof text;
    if (file) fclose(file);
    if (bad) fprintf(stderr, "%s: cannot be read, or has 1 MiB or more\n", path);
    return bad ? 0 : length;
}

static const char *wanted;  // a kind of step or a codec; 0 = all steps

static int is_wanted(const tl_step *step) {
    tl_step_kind kind;
    tl_codec codec;
    if (!wanted) return 1;
    if (tl_parse_step(wanted, &kind)) return step->kind == kind;
    return tl_parse_codec(wanted, &codec) && step->kind == TL_STEP_COMPRESS && step->codec == codec;
}

static void show(const tl_graph *graph, const tl_plan *plan, const uint64_t *live) {
    int i;
    printf("step  what                  live bytes  rule\n");
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        if (!is_wanted(step)) continue;
        printf("%4d  %-2s %-12s %-5s %11.0f  %s\n", i, tl_name_step((tl_step_kind)step->kind),
               tl_name_node(graph, step->node), step->codec ? tl_name_codec((tl_codec)step->codec) : "",
               (double)live[i], tl_explain_step((tl_step_kind)step->kind));
    }
}

static int check(const tl_graph *graph, const char *steps, size_t length) {
    static uint64_t live[1 << 16];
    tl_simulate_desc desc = { 0 };
    tl_plan plan;
    tl_report report;
    int bad = tl_parse_schedule(&env, steps, length, &plan);
    desc.graph = graph; desc.plan = &plan; desc.live_bytes = live;
    if (!bad && plan.step_count > 1 << 16) bad = fprintf(stderr, "more than 65536 steps\n");
    else if (bad || tl_simulate_plan(&env, &desc, &report)) bad = fprintf(stderr, "%s\n", env.error.text);
    else {
        show(graph, &plan, live);
        printf("\npeak %.0f bytes in step %d; cost %.0f, of these %.0f for %d forwards that run again\n",
               (double)report.peak_bytes, (int)report.peak_step, (double)report.cost,
               (double)(report.cost - report.base_cost), (int)report.recompute_count);
    }
    tl_free_plan(&env, &plan);
    return bad;
}

int main(int argc, char **argv) {
    tl_graph graph = { 0 };
    size_t length = sizeof schedule - 1;
    int bad;
    if (argc == 2 || argc > 4)
        return printf("usage: %s [GRAPH.tlg SCHEDULE [KIND]]\n", argv[0]), strcmp(argv[1], "--help") != 0;
    if (argc == 4) wanted = argv[3];
    bad = argc == 1 ? tl_parse_graph(&env, net, sizeof net - 1, &graph) : tl_read_graph(&env, argv[1], &graph);
    if (bad) return fprintf(stderr, "%s\n", env.error.text), 1;
    if (argc > 2) bad = !(length = read_file(argv[2]));
    bad = bad || check(&graph, argc == 1 ? schedule : text, length);
    tl_free_graph(&env, &graph);
    return bad != 0;
}
