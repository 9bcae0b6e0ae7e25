// What another seed of the search changes: random graphs of the shapes that users plan, each planned by six seeds. A plan is near
// when it costs at most 0.1 % more than the cheapest of the six; a gap is open where it is not proven.
//
//     bench_seeds [GRAPHS [FIRST [STRIDE]]]      400 graphs from number 0 on, each STRIDE-th (1)
//
// For each shape: graphs; those with an open gap; of these, the share where a seed changes the steps; plans, the share that is near,
// the mean and the worst excess over the cheapest in percent; processor milliseconds a plan.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/planner_graphs.h"
#include "timing.h"

typedef unsigned long long ull;

enum { SEEDS = 6, FEWEST = 20, MOST = 400 };

typedef struct tally { long graphs, open, changed, plans, near; double excess, worst, ms; } tally;

static void must(tl_result result, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_seeds: %s: %s\n", what, tl_name_result(result));
    exit(1);
}

static uint64_t least_of(const tl_graph *graph, tl_remat_desc desc) {
    tl_remat_report report;
    tl_plan plan;
    (void)graph;
    desc.budget_bytes = 1;
    (void)tl_plan_remat(NULL, &desc, &plan, &report);
    tl_free_plan(NULL, &plan);
    return report.least_budget_bytes;
}

static void one_graph(int index, tally *tallies) {
    tl_random random;
    tl_graph graph;
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plans[SEEDS];
    tally *t = &tallies[index % PLANNER_SHAPE_COUNT];
    uint64_t least, cheapest = UINT64_MAX, dearest = 0;
    int32_t size, k, is_open = 0, is_changed = 0;
    memset(&desc, 0, sizeof desc);
    random.state = UINT64_C(510007) + (uint64_t)index;
    size = random_count(&random, FEWEST, random_chance(&random, 70) ? 120 : MOST);
    must(planner_graph(NULL, &random, (planner_shape)(index % PLANNER_SHAPE_COUNT), size, &graph), "a graph");
    must(tl_plan_keep_all(NULL, &graph, 0, &plans[0]), "keep all");
    desc.graph = &graph;
    desc.live = 1;
    least = least_of(&graph, desc);
    desc.budget_bytes = least + (plans[0].peak_bytes - least) / 100 * (uint64_t)random_count(&random, 2, 60);
    tl_free_plan(NULL, &plans[0]);
    for (k = 0; k < SEEDS; k++) {
        double start = processor_ms();
        desc.seed = (uint64_t)k;
        must(tl_plan_remat(NULL, &desc, &plans[k], &report), "a plan");
        t->ms += processor_ms() - start;
        is_open |= !report.proven;
        is_changed |= plans[k].step_count != plans[0].step_count ||
                      memcmp(plans[k].steps, plans[0].steps, (size_t)plans[0].step_count * sizeof *plans[0].steps);
        if (plans[k].cost < cheapest) cheapest = plans[k].cost;
        if (plans[k].cost > dearest) dearest = plans[k].cost;
    }
    for (k = 0; k < SEEDS; k++) {
        double excess = 100 * ((double)plans[k].cost - (double)cheapest) / (double)cheapest;
        t->plans++;
        t->near += excess <= 0.1;
        t->excess += excess;
        if (excess > t->worst) t->worst = excess;
        if (getenv("EACH")) printf(" %llu", (ull)plans[k].cost);
        tl_free_plan(NULL, &plans[k]);
    }
    if (getenv("EACH"))
        printf("   graph %d, %s, %d nodes, budget %llu: bound %llu, spread %.3f %%\n", index,
               planner_shape_names[index % PLANNER_SHAPE_COUNT], (int)graph.node_count, (ull)desc.budget_bytes,
               (ull)report.bound_cost, 100 * ((double)dearest - (double)cheapest) / (double)cheapest);
    t->graphs++;
    t->open += is_open;
    t->changed += is_open && is_changed;
    tl_free_graph(NULL, &graph);
}

static void print_row(const char *name, const tally *t) {
    printf("%-14s %7ld %6ld %8.1f %7ld %7.1f %8.3f %8.3f %8.0f\n", name, t->graphs, t->open,
           t->open ? 100.0 * (double)t->changed / (double)t->open : 0, t->plans,
           t->plans ? 100.0 * (double)t->near / (double)t->plans : 0, t->plans ? t->excess / (double)t->plans : 0, t->worst,
           t->plans ? t->ms / (double)t->plans : 0);
}

int main(int argc, char **argv) {
    static tally tallies[PLANNER_SHAPE_COUNT + 1];
    tally *all = &tallies[PLANNER_SHAPE_COUNT];
    int count = argc > 1 ? atoi(argv[1]) : 400, first = argc > 2 ? atoi(argv[2]) : 0, stride = argc > 3 ? atoi(argv[3]) : 1;
    int index, k;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (index = first; index < count; index += stride) one_graph(index, tallies);
    printf("%-14s %7s %6s %8s %7s %7s %8s %8s %8s\n", "shape", "graphs", "open", "changed%", "plans", "near%", "mean%", "worst%", "ms");
    for (k = 0; k < PLANNER_SHAPE_COUNT; k++) {
        const tally *t = &tallies[k];
        all->graphs += t->graphs; all->open += t->open; all->changed += t->changed; all->plans += t->plans; all->near += t->near;
        all->excess += t->excess; all->ms += t->ms;
        if (t->worst > all->worst) all->worst = t->worst;
        print_row(planner_shape_names[k], t);
    }
    print_row("all", all);
    return 0;
}
