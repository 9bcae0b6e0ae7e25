// What planning a chain costs: real stages, random coprime sizes, equal layers; and how far from the optimum it can be.
//
//     bench_chain [MODEL.tlg ...]      besides the chains below, these models at half of their keep-all peak
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "timing.h"

static tl_graph random_chain(int32_t count, uint64_t seed) {
    uint64_t *arrays = (uint64_t *)malloc(3 * (size_t)count * sizeof *arrays);
    tl_random random;
    tl_chain_desc chain;
    tl_graph graph;
    int32_t i;
    if (!arrays) exit(1);
    random.state = seed;
    for (i = 0; i < count; i++) {
        arrays[i] = 100000 + tl_next_random_below(&random, 900001);
        arrays[count + i] = 1000 + tl_next_random_below(&random, 9001);
        arrays[2 * count + i] = 2 * arrays[count + i];
    }
    memset(&chain, 0, sizeof chain);
    chain.layer_count = count;
    chain.input_bytes = 500000;
    chain.output_bytes = arrays;
    chain.fwd_costs = arrays + count;
    chain.bwd_costs = arrays + 2 * count;
    if (tl_add_chain(NULL, &graph, &chain)) exit(1);
    free(arrays);
    return graph;
}

static void plan_at(const char *name, const tl_graph *graph, int percent) {
    tl_plan all, plan;
    tl_remat_report report;
    tl_chain_plan_desc desc;
    tl_env env;
    double start;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    if (tl_plan_keep_all(NULL, graph, 0, &all)) exit(1);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = all.peak_bytes / 100 * (uint64_t)percent + all.peak_bytes % 100 * (uint64_t)percent / 100;
    start = processor_ms();
    if (tl_plan_chain(&env, &desc, &plan, &report)) {
        printf("%-24s %5d %%   %s\n", name, percent, env.error.text);
    } else {
        start = processor_ms() - start;
        printf("%-24s %5d %% %9.1f ms   cost ratio %.5f   gap %.5f %s\n", name, percent, start,
               (double)plan.cost / (double)plan.base_cost, report.gap_ratio, report.proven ? "proven" : "");
        tl_free_plan(NULL, &plan);
    }
    tl_free_plan(NULL, &all);
}

static void plan_file(const char *path) {
    static char text[1 << 20];
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    FILE *file = fopen(path, "rb");
    size_t length;
    tl_env env;
    tl_graph graph;
    memset(&env, 0, sizeof env);
    if (!file) { fprintf(stderr, "%s: cannot be read\n", path); exit(1); }
    length = fread(text, 1, sizeof text, file);
    fclose(file);
    if (tl_parse_graph(&env, text, length, &graph)) { fprintf(stderr, "%s\n", env.error.text); exit(1); }
    plan_at(name, &graph, 50);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    static const int32_t counts[] = { 50, 100, 200, 500, 1000 };
    static const int percents[] = { 3, 5, 10, 20, 30, 50, 70, 90 };
    tl_chain_desc equal;
    tl_graph graph;
    size_t i, k;
    char name[64];
    printf("processor time of one plan; budget as a part of the keep-all peak\n");
    for (i = 1; i < (size_t)argc; i++) plan_file(argv[i]);
    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        graph = random_chain(counts[i], 1);
        snprintf(name, sizeof name, "random, %d stages", (int)counts[i]);
        for (k = 0; k < sizeof percents / sizeof percents[0]; k++) plan_at(name, &graph, percents[k]);
        tl_free_graph(NULL, &graph);
    }
    memset(&equal, 0, sizeof equal);
    equal.layer_count = 10000;
    equal.input_bytes = 1;
    if (tl_add_chain(NULL, &graph, &equal)) return 1;
    plan_at("equal, 10000 stages", &graph, 1);
    plan_at("equal, 10000 stages", &graph, 50);
    tl_free_graph(NULL, &graph);
    return 0;
}
