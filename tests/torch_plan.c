// Read a graph file and plan it inside a share of its keep-all peak, for torch_check.py.
//
//     torch_plan FILE.tlg PERCENT
//
// Prints "# nodes <n> keep_all <bytes> budget <bytes> peak <bytes> cost <cost> base <cost> bound <cost>", then
// the schedule; or one sentence on the error stream, with status 1.
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include <stdio.h>
#include <stdlib.h>

static int fail(const tl_env *env) {
    fprintf(stderr, "%s\n", env->error.text);
    return 1;
}

int main(int argc, char **argv) {
    static tl_env env;
    static tl_remat_desc desc;
    tl_graph graph;
    tl_plan plan;
    tl_remat_report report;
    uint64_t keep_all;
    size_t length;
    char *text;
    if (argc != 3) return fprintf(stderr, "torch_plan FILE.tlg PERCENT\n"), 1;
    if (tl_read_graph(&env, argv[1], &graph) || tl_check_graph(&env, &graph)) return fail(&env);
    if (tl_plan_keep_all(&env, &graph, 0, &plan)) return fail(&env);
    keep_all = plan.peak_bytes;
    tl_free_plan(&env, &plan);
    desc.graph = &graph;
    desc.live = 1;
    desc.budget_bytes = keep_all / 100 * strtoull(argv[2], NULL, 10);
    if (tl_plan_remat(&env, &desc, &plan, &report)) return fail(&env);
    printf("# nodes %d keep_all %llu budget %llu peak %llu", (int)graph.node_count,
           (unsigned long long)keep_all, (unsigned long long)desc.budget_bytes,
           (unsigned long long)plan.peak_bytes);
    printf(" cost %llu base %llu bound %llu\n", (unsigned long long)plan.cost,
           (unsigned long long)plan.base_cost, (unsigned long long)report.bound_cost);
    length = tl_print_schedule(&plan, NULL, 0);
    text = (char *)malloc(length + 1);
    if (!text) return 1;
    tl_print_schedule(&plan, text, length + 1);
    printf("%s", text);
    free(text);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
    return 0;
}
