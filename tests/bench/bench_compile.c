// How long tl_compile takes by default: graphs of 40, 200 and 1000 nodes, formats f32 and bf16, half of the bytes that keeping all
// takes, without a limit of the loss and with one that lets a tenth of all loss through. Losses are random, lognormal, seed
// fixed; bf16 is as fast as f32. Times are processor time.
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/shape_graph.h"
#include "timing.h"

enum { SIZES = 3, BUDGET_PERCENT = 50, LOSS_PERCENT = 10 };

static tl_env env;  // malloc, silent

static void must(tl_result result) {
    if (result) { fprintf(stderr, "bench_compile: %s\n", env.error.text); exit(1); }
}

// Losses of bf16, lognormal; returns their sum.
static double fill_losses(const tl_graph *graph, tl_random *random, double *losses) {
    double sum = 0;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        double *loss = losses + (size_t)id * TL_SCHEME_COUNT;
        double normal = 0;
        for (k = 0; k < 12; k++) normal += tl_next_random_ratio(random) - 0.5;
        for (k = 0; k < TL_SCHEME_COUNT; k++) loss[k] = NAN;
        loss[TL_SCHEME_F32] = 0;
        loss[TL_SCHEME_BF16] = exp(2 * normal);
        if (!graph->nodes[id].is_input) sum += loss[TL_SCHEME_BF16];
    }
    return sum;
}

// Compile, and print the time, the work, how many combinations were planned, and how far from the bound the best is.
static void compile(const tl_graph *graph, uint64_t budget, const double *losses, double loss_limit) {
    tl_strategy strategy = tl_with_gradient(tl_strategy_training(), tl_gradient_checkpointed(0));
    tl_precision_desc precision;
    tl_compile_desc desc;
    tl_compiled_plan compiled;
    tl_result result;
    double begin;
    memset(&precision, 0, sizeof precision);
    memset(&desc, 0, sizeof desc);
    strategy.precision = TL_PRECISION_MIXED;
    precision.schemes = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_BF16;
    precision.losses = losses;
    precision.loss_limit = loss_limit;
    precision.allow_sensitive = precision.allow_unknown = precision.any_result = 1;
    desc.graph = graph;
    desc.strategy = &strategy;
    desc.budget_bytes = budget;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    desc.precision = &precision;
    begin = processor_ms();
    result = tl_compile(&env, &desc, &compiled);
    begin = processor_ms() - begin;
    if (result != TL_ERROR_INFEASIBLE) must(result);
    printf(" %8.0f %8.0f %6d", begin, (double)compiled.work * 1e-6, (int)compiled.tried_count);
    if (result) printf("  refused");
    else printf(" %7.2f%%", 100 * compiled.gap_ratio);
    tl_free_compiled_plan(&env, &compiled);
}

static void one_size(shape kind, int32_t nodes) {
    tl_random random = { 1 };
    tl_graph graph;
    tl_plan all;
    double *losses = (double *)malloc((size_t)nodes * 2 * TL_SCHEME_COUNT * sizeof *losses), sum;
    must(shape_graph(&env, &random, kind, nodes, &graph));
    must(tl_plan_keep_all(&env, &graph, 0, &all));
    if (!losses || graph.node_count > 2 * nodes) exit(1);
    sum = fill_losses(&graph, &random, losses);
    printf("%-9s %6d", name_shape(kind), (int)graph.node_count);
    compile(&graph, all.peak_bytes / 100 * BUDGET_PERCENT, losses, (double)INFINITY);
    compile(&graph, all.peak_bytes / 100 * BUDGET_PERCENT, losses, sum * LOSS_PERCENT / 100);
    printf("\n");
    fflush(stdout);
    tl_free_plan(&env, &all);
    tl_free_graph(&env, &graph);
    free(losses);
}

int main(void) {
    static const int32_t sizes[SIZES] = { 40, 200, 1000 };
    static const shape kinds[] = { SHAPE_CHAIN, SHAPE_LAYERED };
    size_t kind, k;
    printf("%-9s %6s %33s %33s\n", "", "", "no limit of the loss", "a tenth of all loss");
    printf("%-9s %6s %8s %8s %6s %8s %8s %8s %6s %8s\n", "shape", "nodes", "ms", "Msteps", "tried", "gap", "ms", "Msteps", "tried",
           "gap");
    for (kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (k = 0; k < SIZES; k++) one_size(kinds[kind], sizes[k]);
    return 0;
}
