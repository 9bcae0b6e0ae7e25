// tl_plan_remat at default work against each named policy and against the best of all, on random graphs of 40 to 5000 nodes.
//
//     bench_best [LARGEST [WORK]]      graphs of at most so many nodes (5000); steps of work (0 = the default)
//
// Budgets lie between the least that the planner finds and keep-all. Costs are multiples of the cheapest of the row: above 1.0000
// under "default" something that the library knows was lost. Times are processor times.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/planner_graphs.h"
#include "timing.h"

typedef struct totals { int rows, lost, refused; double ms, policy_ms, gaps; uint64_t work; } totals;

static void must(tl_result result, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_best: %s: %s\n", what, tl_name_result(result));
    exit(1);
}

// The cost, 0 = no plan.
static uint64_t cost_of_policy(const tl_graph *graph, tl_policy_kind policy, uint64_t budget) {
    tl_policy_desc desc;
    tl_plan plan;
    uint64_t cost = 0;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.policy.kind = policy;
    desc.budget_bytes = budget;
    if (tl_plan_policy(NULL, &desc, &plan)) return 0;
    cost = plan.cost;
    tl_free_plan(NULL, &plan);
    return cost;
}

static void print_cost(uint64_t cost, uint64_t best) {
    if (cost) printf(" %11.4f", (double)cost / (double)best);
    else printf(" %11s", "-");
}

static void one_budget(const tl_graph *graph, int percent, uint64_t budget, uint64_t work, totals *t) {
    uint64_t costs[TL_POLICY_CHAIN + 1], best = UINT64_MAX, cost;
    double start = processor_ms(), ms, policy_ms;
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    int k;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.work_limit = work;
    result = tl_plan_remat(NULL, &desc, &plan, &report);
    if (result != TL_ERROR_INFEASIBLE) must(result, "plan");
    ms = processor_ms() - start;
    start = processor_ms();
    for (k = 0; k <= TL_POLICY_CHAIN; k++) {
        costs[k] = cost_of_policy(graph, (tl_policy_kind)k, budget);
        if (costs[k] && costs[k] < best) best = costs[k];
    }
    policy_ms = processor_ms() - start;
    cost = result ? 0 : plan.cost;
    if (cost && cost < best) best = cost;
    printf(" %4d%%", percent);
    print_cost(cost, best);
    for (k = 0; k <= TL_POLICY_CHAIN; k++) print_cost(costs[k], best);
    printf(" %8.2f%% %9.1f %9.1f %9.1f\n", 100 * report.gap_ratio, (double)report.work / 1e6, ms, policy_ms);
    fflush(stdout);
    t->rows++;
    t->lost += cost > best;
    t->refused += !cost;
    t->ms += ms;
    t->policy_ms += policy_ms;
    t->work += report.work;
    if (cost) t->gaps += report.gap_ratio;
    tl_free_plan(NULL, &plan);
}

// The least budget that the planner finds.
static uint64_t least_of(const tl_graph *graph, uint64_t work) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = 1;
    desc.work_limit = work;
    tl_plan_remat(NULL, &desc, &plan, &report);
    tl_free_plan(NULL, &plan);
    return report.least_budget_bytes;
}

static void one_graph(planner_shape shape, int32_t nodes, uint64_t work, totals *t) {
    static const int percents[] = { 0, 10, 40 };
    tl_random random;
    tl_graph graph;
    tl_plan all;
    uint64_t least, span;
    size_t k;
    random.state = (uint64_t)nodes * 100 + (uint64_t)shape;
    must(planner_graph(NULL, &random, shape, nodes, &graph), "graph");
    must(tl_plan_keep_all(NULL, &graph, 0, &all), "keep all");
    least = least_of(&graph, work);
    span = all.peak_bytes > least ? all.peak_bytes - least : 0;
    tl_free_plan(NULL, &all);
    for (k = 0; k < sizeof percents / sizeof percents[0]; k++) {
        printf("%-14s %6d", planner_shape_names[shape], (int)graph.node_count);
        one_budget(&graph, percents[k], least + span / 100 * (uint64_t)percents[k], work, t);
    }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    static const int32_t sizes[] = { 40, 100, 250, 600, 1500, 5000 };
    int32_t largest = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : PLANNER_MOST;
    uint64_t work = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    totals t;
    size_t k;
    int shape;
    memset(&t, 0, sizeof t);
    printf("cost as a multiple of the cheapest of the row; - has no plan. budget: of the way from the least found to keep-all\n\n");
    printf("%-14s %6s %5s %11s", "shape", "nodes", "", "default");
    for (shape = 0; shape <= TL_POLICY_CHAIN; shape++) printf(" %11s", tl_name_policy((tl_policy_kind)shape));
    printf(" %9s %9s %9s %9s\n", "gap", "M steps", "ms", "policies");
    for (k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (shape = 0; shape < PLANNER_WILD && sizes[k] <= largest; shape++) one_graph((planner_shape)shape, sizes[k], work, &t);
    printf("\n%d rows; %d dearer than the best of all, %d without a plan; gap %.2f %% on average, %.0f million steps, %.1f s, "
           "policies %.1f s\n", t.rows, t.lost, t.refused, 100 * t.gaps / (t.rows > t.refused ? t.rows - t.refused : 1),
           (double)t.work / 1e6, t.ms / 1000, t.policy_ms / 1000);
    return 0;
}
