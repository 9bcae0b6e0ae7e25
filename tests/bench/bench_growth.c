// How tl_plan_remat grows with the graph: 100 to 100 000 nodes, a chain, a star and layers, processor time, memory and counted work.
//
//     bench_growth [LARGEST]      nodes of the largest graph; 0 or nothing: 100 000
//
// Three questions at each size: a first plan (work_limit 1) at 70 % of what keeping everything takes, a whole call (the default
// work) at the same budget, and the refusal of a budget of 1 byte. Times are medians of processor time, of three calls where
// they are short. Powers are fitted from 1000 nodes on; 1 is linear.
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/counting_alloc.h"
#include "../support/shape_graph.h"
#include "timing.h"

enum { CALLS = 3, SIZES = 6, QUESTIONS = 3, FITTED_FROM = 2 };
#define ENOUGH_MS 1000.0     // no further call after so many

typedef struct answer { double ms, bytes, ns_per_step; tl_result result; double gap; } answer;

static void must(tl_result result, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_growth: %s: %s\n", what, tl_name_result(result));
    exit(1);
}

static answer ask(const tl_graph *graph, uint64_t budget, uint64_t work_limit) {
    double times[CALLS], start = processor_ms();
    tl_remat_report report;
    answer a;
    int count = 0;
    memset(&a, 0, sizeof a);
    while (count < CALLS && (!count || processor_ms() - start < ENOUGH_MS)) {
        counting_alloc counter = { 0, 0 };
        tl_env env = counting_env(&counter);
        tl_remat_desc desc;
        tl_plan plan;
        double begin = processor_ms();
        memset(&desc, 0, sizeof desc);
        desc.graph = graph;
        desc.live = 1;
        desc.budget_bytes = budget;
        desc.work_limit = work_limit;
        a.result = tl_plan_remat(&env, &desc, &plan, &report);
        times[count++] = processor_ms() - begin;
        if (a.result != TL_ERROR_INFEASIBLE) must(a.result, env.error.text);
        a.bytes = (double)counter.peak;
        tl_free_plan(&env, &plan);
    }
    a.ms = median(times, count);
    a.ns_per_step = report.work ? a.ms * 1e6 / (double)report.work : 0;
    a.gap = report.gap_ratio;
    return a;
}

// The slope of a line through the logarithms.
static double fit_power(const double *nodes, double value[][2 * QUESTIONS], int column, int sizes) {
    double n = sizes - FITTED_FROM, x = 0, y = 0, xx = 0, xy = 0;
    int k;
    for (k = FITTED_FROM; k < sizes; k++) {
        double a = log(nodes[k]), b = log(value[k][column]);
        x += a; y += b; xx += a * a; xy += a * b;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}

static void one_size(shape kind, int32_t nodes, double *value) {
    tl_random random = { 1 };
    tl_graph graph;
    tl_plan all;
    uint64_t budgets[QUESTIONS], works[QUESTIONS] = { 1, 0, 0 };
    int k;
    must(shape_graph(NULL, &random, kind, nodes, &graph), "graph");
    must(tl_plan_keep_all(NULL, &graph, 0, &all), "keep all");
    budgets[0] = budgets[1] = all.peak_bytes / 10 * 7;
    budgets[2] = 1;
    tl_free_plan(NULL, &all);
    printf("%-9s %7d", name_shape(kind), (int)nodes);
    for (k = 0; k < QUESTIONS; k++) {
        answer a = ask(&graph, budgets[k], works[k]);
        value[2 * k] = a.ms;
        value[2 * k + 1] = a.bytes;
        printf(" %9.1f %7.0f %6.2f", a.ms, a.bytes / nodes, a.ns_per_step);
        if (k == 1) printf(a.result ? "  refused" : " %7.3f%%", 100 * a.gap);
    }
    printf("\n");
    fflush(stdout);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    static const int32_t sizes[SIZES] = { 100, 500, 1000, 5000, 10000, 100000 };
    static const shape kinds[] = { SHAPE_CHAIN, SHAPE_STAR, SHAPE_LAYERED };
    long largest = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    size_t k;
    printf("%-9s %7s %9s %7s %6s %9s %7s %6s %8s %9s %7s %6s\n", "shape", "nodes", "first ms", "B/node", "ns", "whole ms", "B/node",
           "ns", "gap", "refuse ms", "B/node", "ns");
    printf("ns: processor time of one counted step\n");
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double nodes[SIZES], value[SIZES][2 * QUESTIONS];
        int count;
        for (count = 0; count < SIZES && (!largest || sizes[count] <= largest); count++) {
            nodes[count] = sizes[count];
            one_size(kinds[k], sizes[count], value[count]);
        }
        if (count < FITTED_FROM + 2) continue;
        printf("%-9s powers from 1000 nodes on: first plan %.2f, whole call %.2f, refusal %.2f; memory %.2f\n\n", name_shape(kinds[k]),
               fit_power(nodes, value, 0, count), fit_power(nodes, value, 2, count), fit_power(nodes, value, 4, count),
               fit_power(nodes, value, 3, count));
    }
    return 0;
}
