// How fast schemes are chosen, and how far from the best they can be at most: chains, series-parallel graphs and random ones,
// in the nine schemes and five formats that there are, with losses over six decades.
//
//     bench_choice
//
// Each row is so many random graphs at three limits. Times are processor times, so that a busy machine counts for little.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/brute_choice.h"
#include "timing.h"

enum { GRAPHS = 7, LIMITS = 3, CALLS = GRAPHS * LIMITS };

static const double limits[LIMITS] = { 0.1, 0.3, 0.7 };

static void must(tl_result result, const tl_env *env) {
    if (!result) return;
    fprintf(stderr, "bench_choice: %s\n", env->error.text);
    exit(1);
}

// The limit of the cost is what the least cost within the loss limit is, and a fiftieth more.
static void measure(const char *name, choice_shape shape, int nodes, int least_loss, uint64_t work_limit) {
    double times[CALLS], gaps[CALLS];
    int count = 0, proven = 0, seed, k;
    for (seed = 1; seed <= GRAPHS; seed++)
        for (k = 0; k < LIMITS; k++) {
            tli_choice_plan plan;
            tl_env env;
            large_choice c;
            double begin;
            memset(&env, 0, sizeof env);
            lc_init(&c, shape, nodes, (uint64_t)seed, limits[k]);
            if (least_loss) {
                must(tli_plan_choice(&env, &c.desc, &plan), &env);
                c.desc.cost_limit = plan.cost + plan.cost / 50;
                c.desc.least_loss = 1;
                tli_free_choice_plan(&env, &plan);
            }
            c.desc.work_limit = work_limit;
            begin = processor_ms();
            must(tli_plan_choice(&env, &c.desc, &plan), &env);
            times[count] = processor_ms() - begin;
            gaps[count++] = 100 * plan.gap_ratio;
            proven += plan.proven;
            tli_free_choice_plan(&env, &plan);
            lc_free(&c);
        }
    qsort(times, (size_t)count, sizeof *times, by_value);
    qsort(gaps, (size_t)count, sizeof *gaps, by_value);
    printf("%-16s %6d %-6s %9.1f %9.1f %10.5f %10.5f %6d/%d\n", name, nodes, least_loss ? "loss" : "cost", times[count / 2],
           times[count - 1], gaps[count / 2], gaps[count - 1], proven, count);
}

static void measure_front(const char *name, choice_shape shape, int nodes) {
    double times[GRAPHS], gaps[GRAPHS];
    int points = 0, seed, i;
    for (seed = 1; seed <= GRAPHS; seed++) {
        tli_choice_front front;
        tl_env env;
        large_choice c;
        double begin;
        memset(&env, 0, sizeof env);
        lc_init(&c, shape, nodes, (uint64_t)seed, limits[1]);
        begin = processor_ms();
        must(tli_plan_choice_front(&env, &c.desc, 0, &front), &env);
        times[seed - 1] = processor_ms() - begin;
        gaps[seed - 1] = 0;
        for (i = 0; i < front.point_count; i++) {
            const tli_front_point *p = &front.points[i];
            double gap = 100 * ((double)p->cost / (double)p->bound_cost - 1);
            if (gap > gaps[seed - 1]) gaps[seed - 1] = gap;
        }
        points += front.point_count;
        tli_free_choice_front(&env, &front);
        lc_free(&c);
    }
    qsort(times, GRAPHS, sizeof *times, by_value);
    qsort(gaps, GRAPHS, sizeof *gaps, by_value);
    printf("%-16s %6d %-6d %9.1f %9.1f %10.5f %10.5f\n", name, nodes, points / GRAPHS, times[GRAPHS / 2], times[GRAPHS - 1],
           gaps[GRAPHS / 2], gaps[GRAPHS - 1]);
}

int main(void) {
    printf("one choice        nodes least   ms median   worst  gap %% median  worst     proven\n");
    measure("chain", CHOICE_CHAIN, 200, 0, 0);
    measure("chain", CHOICE_CHAIN, 200, 1, 0);
    measure("chain", CHOICE_CHAIN, 1000, 0, 0);
    measure("chain, work 15M", CHOICE_CHAIN, 1000, 0, 15000000);
    measure("series-parallel", CHOICE_SERIES_PARALLEL, 50, 0, 0);
    measure("series-parallel", CHOICE_SERIES_PARALLEL, 200, 0, 0);
    measure("series-parallel", CHOICE_SERIES_PARALLEL, 200, 1, 0);
    measure("series-parallel", CHOICE_SERIES_PARALLEL, 1000, 0, 0);
    measure("random", CHOICE_RANDOM, 50, 0, 0);
    measure("random", CHOICE_RANDOM, 200, 0, 0);
    measure("random", CHOICE_RANDOM, 200, 1, 0);
    measure("random", CHOICE_RANDOM, 1000, 0, 0);
    printf("\na front           nodes points  ms median   worst  gap %% median  worst (of its points)\n");
    measure_front("chain", CHOICE_CHAIN, 200);
    measure_front("series-parallel", CHOICE_SERIES_PARALLEL, 200);
    measure_front("random", CHOICE_RANDOM, 200);
    return 0;
}
