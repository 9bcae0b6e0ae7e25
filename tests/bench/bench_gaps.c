// The certified gap of tl_plan_remat over the whole range of budgets: 95, 90 .. 5 % of the keep-all peak and the least budget
// found, as CSV, so that two versions can be compared line by line.
//
//     bench_gaps [--work N] [MODEL.tlg ...]    without models: examples/residual.tlg and those of the reference data
//
// percent 0 is the least budget. result: planned, infeasible (least and floor are bytes then). Times are processor times.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "timing.h"

typedef unsigned long long ull;

typedef struct totals { int rows, upper, above, floors, distant; double ms, gaps, worst_upper, worst_floor; } totals;

static void must(tl_result result, const char *path) {
    if (!result) return;
    fprintf(stderr, "bench_gaps: %s: %s\n", path, tl_name_result(result));
    exit(1);
}

// Returns the least budget that a refusal names.
static uint64_t one_budget(const char *name, const tl_graph *graph, int percent, uint64_t budget, uint64_t work, totals *t) {
    double start = processor_ms(), ms;
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.work_limit = work;
    result = tl_plan_remat(NULL, &desc, &plan, &report);
    if (result != TL_ERROR_INFEASIBLE) must(result, name);
    ms = processor_ms() - start;
    printf("%s,%d,%d,%llu,%s,%llu,%llu,%llu,%.6f,%.6f,%d,%llu,%.1f,%llu,%llu\n", name, (int)graph->node_count, percent, (ull)budget,
           result ? "infeasible" : "planned", (ull)report.cost, (ull)plan.base_cost, (ull)report.bound_cost,
           plan.base_cost ? (double)report.cost / (double)plan.base_cost : 0.0, 100 * report.gap_ratio, (int)report.proven,
           (ull)report.work, ms, (ull)report.least_budget_bytes, (ull)report.bound_budget_bytes);
    fflush(stdout);
    t->ms += ms;
    if (!result) {
        t->rows++;
        t->gaps += report.gap_ratio;
        if (percent >= 30) {
            t->upper++;
            t->above += report.gap_ratio > 0.003;
            if (report.gap_ratio > t->worst_upper) t->worst_upper = report.gap_ratio;
        }
        if (!percent) {
            t->floors++;
            t->distant += report.gap_ratio > 0.02;
            if (report.gap_ratio > t->worst_floor) t->worst_floor = report.gap_ratio;
        }
    }
    tl_free_plan(NULL, &plan);
    return report.least_budget_bytes;
}

static uint64_t part_of(uint64_t bytes, uint64_t percent) { return bytes / 100 * percent + bytes % 100 * percent / 100; }

static void one_model(const char *path, uint64_t work, totals *t) {
    const char *slash = strrchr(path, '/');
    char name[128], *dot;
    tl_graph graph;
    tl_plan all;
    uint64_t least = 0;
    int percent;
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    dot = strstr(name, ".tlg");
    if (dot) *dot = 0;
    must(tl_read_graph(NULL, path, &graph), path);
    must(tl_plan_keep_all(NULL, &graph, 0, &all), path);
    for (percent = 95; percent > 0 && !least; percent -= 5)
        least = one_budget(name, &graph, percent, part_of(all.peak_bytes, (uint64_t)percent), work, t);
    if (!least) least = one_budget(name, &graph, -1, 1, work, t);
    if (least) one_budget(name, &graph, 0, least, work, t);
    tl_free_plan(NULL, &all);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    static const char *const names[] = { "mlp8", "vgg16", "vgg16_rl", "encoder2", "resnet18", "unet", "mobilenet_v2",
                                         "mobilenet_v2_rl", "gpt2_small", "gpt2_small_rl", "unit50", "unit100", "unit1000" };
    const char *root = getenv("TL_SHARED");
    uint64_t work = 0;
    totals t;
    int k = 1;
    memset(&t, 0, sizeof t);
    if (argc > 2 && !strcmp(argv[1], "--work")) { work = strtoull(argv[2], NULL, 10); k = 3; }
    printf("model,nodes,percent,budget_bytes,result,cost,base_cost,bound_cost,ratio,gap_percent,proven,work,ms,least_budget_bytes,"
           "bound_budget_bytes\n");
    if (k == argc) {
        size_t i;
        one_model("examples/residual.tlg", work, &t);
        for (i = 0; i < sizeof names / sizeof names[0]; i++) {
            char path[512];
            FILE *file;
            snprintf(path, sizeof path, "%s/models/%s.tlg", root ? root : "../shared", names[i]);
            file = fopen(path, "r");
            if (!file) { fprintf(stderr, "SKIPPED %s: no reference data\n", names[i]); continue; }
            fclose(file);
            one_model(path, work, &t);
        }
    }
    for (; k < argc; k++) one_model(argv[k], work, &t);
    fprintf(stderr, "%d plans, gap %.3f %% on average; at 30 %% and more %d of %d above 0.3 %%, at most %.3f %%; at the least budget "
            "%d of %d above 2 %%, at most %.3f %%; %.1f s\n", t.rows, 100 * t.gaps / (t.rows ? t.rows : 1), t.above, t.upper,
            100 * t.worst_upper, t.distant, t.floors, 100 * t.worst_floor, t.ms / 1000);
    return 0;
}
