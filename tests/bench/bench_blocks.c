// tl_plan_remat on graphs of equal blocks: the gap to the bound and the time at 30 and 10 % of the keep-all peak and at the
// least budget, for transformer-like and residual blocks of 12 and 4 nodes. What a solver of repeated blocks could win at most
// is the gap.
//
//     bench_blocks [LARGEST]       graphs of at most so many nodes (5000)
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "timing.h"

// One node of a block: costs and bytes; needs; inputs, counted back from the node (0 = none).
typedef struct block_node { unsigned fwd, bwd, out; const char *needs; int back[2]; } block_node;

// layernorm, qkv, qk, softmax, av, projection, sum, layernorm, two linear layers with gelu between them, sum
static const block_node transformer[] = {
    { 6, 12, 24, "in", { 1, 0 } },      { 29000, 58000, 72, "in", { 1, 0 } },  { 12900, 25800, 384, "in", { 1, 0 } },
    { 100, 100, 384, "out", { 1, 0 } }, { 12900, 25800, 24, "in", { 1, 3 } },  { 9700, 19400, 24, "in", { 1, 0 } },
    { 6, 6, 24, "none", { 1, 7 } },     { 6, 12, 24, "in", { 1, 0 } },         { 38700, 77400, 96, "in", { 1, 0 } },
    { 25, 25, 96, "in", { 1, 0 } },     { 38700, 77400, 24, "in", { 1, 0 } },  { 6, 6, 24, "none", { 1, 5 } }
};

// convolution, relu, convolution, sum
static const block_node residual[] = {
    { 9000, 18000, 40, "in", { 1, 0 } }, { 10, 10, 40, "out", { 1, 0 } },
    { 9000, 18000, 40, "in", { 1, 0 } }, { 10, 10, 40, "none", { 1, 4 } }
};

static void must(tl_result result, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_blocks: %s: %s\n", what, tl_name_result(result));
    exit(1);
}

static tl_graph blocks_graph(const block_node *block, int size, int count) {
    tl_graph graph;
    tl_node_desc desc;
    int b, i, k;
    tl_init_graph(&graph);
    for (b = -1; b < count; b++)
        for (i = b < 0 ? size - 1 : 0; i < size; i++) {
            tl_tensor inputs[2];
            uint64_t bytes = b < 0 ? 24000 : (uint64_t)block[i].out * 1000;
            memset(&desc, 0, sizeof desc);
            memset(inputs, 0, sizeof inputs);
            desc.op = b < 0 ? "input" : "op";
            desc.output_bytes = &bytes;
            desc.output_count = 1;
            for (k = 0; k < 2 && b >= 0; k++)
                if (block[i].back[k]) inputs[desc.input_count++].node = graph.node_count - block[i].back[k];
            desc.inputs = inputs;
            if (b >= 0) { desc.needs = block[i].needs; desc.fwd_cost = block[i].fwd; desc.bwd_cost = block[i].bwd; }
            must(tl_add_node(NULL, &graph, &desc, NULL), "tl_add_node");
        }
    return graph;
}

// Returns the least budget that a refusal names.
static uint64_t plan_at(const char *name, const tl_graph *graph, const char *budget_name, uint64_t budget) {
    double start = processor_ms();
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = budget;
    result = tl_plan_remat(NULL, &desc, &plan, &report);
    if (result != TL_ERROR_INFEASIBLE) must(result, name);
    printf("%-12s %5d nodes %6s ", name, (int)graph->node_count, budget_name);
    if (result) printf("infeasible, least %llu, floor %llu", (unsigned long long)report.least_budget_bytes,
                       (unsigned long long)report.bound_budget_bytes);
    else printf("cost ratio %.5f   gap %.5f%s", (double)plan.cost / (double)plan.base_cost, report.gap_ratio,
                report.proven ? " proven" : "");
    printf("   %.0f ms\n", processor_ms() - start);
    fflush(stdout);
    tl_free_plan(NULL, &plan);
    return report.least_budget_bytes;
}

static void plan_blocks(const char *name, const block_node *block, int size, int count) {
    tl_graph graph = blocks_graph(block, size, count);
    tl_plan all;
    uint64_t least;
    must(tl_plan_keep_all(NULL, &graph, 0, &all), name);
    (void)plan_at(name, &graph, "30 %", all.peak_bytes / 100 * 30);
    (void)plan_at(name, &graph, "10 %", all.peak_bytes / 100 * 10);
    least = plan_at(name, &graph, "none", 1);
    (void)plan_at(name, &graph, "least", least);
    tl_free_plan(NULL, &all);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    static const int nodes[] = { 500, 1500, 5000 };
    int largest = argc > 1 ? atoi(argv[1]) : 5000;
    size_t i;
    for (i = 0; i < sizeof nodes / sizeof nodes[0] && nodes[i] <= largest; i++) {
        plan_blocks("transformer", transformer, 12, nodes[i] / 12);
        plan_blocks("residual", residual, 4, nodes[i] / 4);
    }
    return 0;
}
