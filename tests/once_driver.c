// Small random graphs in which some nodes may run once only, with what the planner says of several budgets, for
// differential_once.py.
//
//     once_driver FIRST_SEED COUNT > cases.txt
//
// One case: a line "case <seed> <inference>", the graph as .tlg, and for each budget, after a line "budgets", one of
//     <budget> ok <cost> <peak> <proven> <bound of a search cut short>
//     <budget> infeasible <least budget> <bound budget> <proven> <bound budget of a search cut short>
// The budgets are parts of what keep-all takes; the first that nothing fits is followed by the least that was named, and
// by one byte less. A line "end" closes the case.
#define TL_STRATEGY_IMPLEMENTATION
#define TL_STRATEGY_STATIC
#include "../tl_strategy.h"
#include "support/random_graph.h"
#include <stdio.h>
#include <stdlib.h>

#define NODES 6
typedef unsigned long long ull;

static void check(int ok, const char *what, ull seed) {
    if (ok) return;
    fprintf(stderr, "once_driver: seed %llu: %s\n", seed, what);
    exit(1);
}

// What the planner says of a budget; the least budget where none fits, else 0.
static uint64_t ask(ull seed, const tl_graph *graph, int inference, uint64_t budget) {
    tl_env env;
    tl_remat_desc desc;
    tl_remat_report report, early;
    tl_simulate_desc replay;
    tl_report figures;
    tl_plan plan;
    tl_result result;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.inference = inference;
    desc.budget_bytes = budget ? budget : 1;
    desc.work_limit = 1 + seed * 37 % 3000;
    result = tl_plan_remat(&env, &desc, &plan, &early);
    check(result == TL_OK || result == TL_ERROR_INFEASIBLE, env.error.text, seed);
    tl_free_plan(&env, &plan);
    desc.work_limit = 0;
    result = tl_plan_remat(&env, &desc, &plan, &report);
    check(result == TL_OK || result == TL_ERROR_INFEASIBLE, env.error.text, seed);
    if (result) {
        printf("%llu infeasible %llu %llu %d %llu\n", (ull)desc.budget_bytes, (ull)report.least_budget_bytes,
               (ull)report.bound_budget_bytes, (int)report.proven, (ull)early.bound_budget_bytes);
        return report.least_budget_bytes;
    }
    memset(&replay, 0, sizeof replay);
    replay.graph = graph;
    replay.plan = &plan;
    check(!tl_simulate_plan(&env, &replay, &figures), env.error.text, seed);
    check(figures.cost == report.cost && figures.peak_bytes == plan.peak_bytes, "figures of the plan", seed);
    printf("%llu ok %llu %llu %d %llu\n", (ull)desc.budget_bytes, (ull)report.cost, (ull)plan.peak_bytes,
           (int)report.proven, (ull)early.bound_cost);
    tl_free_plan(&env, &plan);
    return 0;
}

static void run_case(ull seed) {
    static const uint64_t percents[] = { 100, 85, 70, 55, 40, 25 };
    tl_random random;
    tl_graph graph;
    tl_plan all;
    uint64_t least = 0;
    char *text;
    size_t length;
    int inference, k;
    random.state = seed;
    inference = random_chance(&random, 20);
    check(!random_effect_graph(NULL, &random, NODES, 40, &graph), "no graph", seed);
    check(!tl_plan_keep_all(NULL, &graph, inference, &all), "no plan", seed);
    length = tl_print_graph(&graph, NULL, 0);
    text = (char *)malloc(length + 1);
    check(text != NULL, "no memory", seed);
    tl_print_graph(&graph, text, length + 1);
    printf("case %llu %d\n%sbudgets\n", seed, inference, text);
    for (k = 0; k < 6 && !least; k++)
        least = ask(seed, &graph, inference, all.peak_bytes * percents[k] / 100);
    if (least) check(!ask(seed, &graph, inference, least), "the least budget is refused", seed);
    if (least > 1) (void)ask(seed, &graph, inference, least - 1);
    printf("end\n");
    free(text);
    tl_free_plan(NULL, &all);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    ull first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, i;
    for (i = 0; i < count; i++) run_case(first + i);
    return 0;
}
