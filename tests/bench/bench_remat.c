// What recomputation costs: tl_plan_remat beside each named policy on public networks, and how its time and memory grow.
//
//     bench_remat [--plot FILE.svg]
//
// The networks are read from $TL_SHARED/models, else ../shared/models. With --plot the second table is written to FILE.svg.dat
// and a gnuplot script to FILE.svg.gp, which makes FILE.svg where gnuplot is installed.
// Times are processor times, so that a busy machine counts for little; medians of up to five calls, of fewer where one takes
// long.
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/support.h"
#include "../support/counting_alloc.h"
#include "../support/layered_graph.h"
#include "timing.h"

// -- measuring --

enum { CALLS = 5 };
#define ENOUGH_MS 100.0     // no further call after so many

static void must(tl_result result, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_remat: %s: %s\n", what, tl_name_result(result));
    exit(1);
}

typedef struct answer {
    tl_result       result;
    uint64_t        cost, base_cost, peak_bytes, memory_bytes;
    double          ms;
    tl_remat_report report;     // of tl_plan_remat
} answer;

// One call, as often as it is cheap: tl_plan_remat, or where there is a policy that.
static answer ask(const tl_remat_desc *remat, const tl_policy_desc *policy) {
    double times[CALLS], start = processor_ms();
    answer a;
    int count = 0;
    memset(&a, 0, sizeof a);
    while (count < CALLS && (!count || processor_ms() - start < ENOUGH_MS)) {
        counting_alloc counter = { 0, 0 };
        tl_env env = counting_env(&counter);
        tl_plan plan;
        double begin = processor_ms();
        a.result = policy ? tl_plan_policy(&env, policy, &plan) : tl_plan_remat(&env, remat, &plan, &a.report);
        times[count++] = processor_ms() - begin;
        if (a.result != TL_ERROR_INFEASIBLE) must(a.result, env.error.text);
        a.cost = plan.cost;
        a.base_cost = plan.base_cost;
        a.peak_bytes = plan.peak_bytes;
        a.memory_bytes = counter.peak;
        tl_free_plan(&env, &plan);
    }
    a.ms = median(times, count);
    return a;
}

static answer ask_remat(const tl_graph *graph, uint64_t budget, uint64_t work_limit) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.work_limit = work_limit;
    return ask(&desc, NULL);
}

static answer ask_policy(const tl_graph *graph, tl_policy_kind policy, uint64_t budget) {
    tl_policy_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.policy.kind = policy;
    desc.budget_bytes = budget;
    return ask(NULL, &desc);
}

static uint64_t keep_all_peak(const tl_graph *graph) {
    tl_plan all;
    uint64_t peak;
    must(tl_plan_keep_all(NULL, graph, 0, &all), "keep all");
    peak = all.peak_bytes;
    tl_free_plan(NULL, &all);
    return peak;
}

static double ratio(uint64_t a, uint64_t b) { return b ? (double)a / (double)b : 1.0; }

// -- the first table: public networks --

typedef struct sums {
    int    rows, proven, fits[TL_POLICY_CHAIN + 1];
    double gaps, largest_gap, ms, ratios[TL_POLICY_CHAIN + 1], policy_ms[TL_POLICY_CHAIN + 1];
} sums;

static void add_policies(const tl_graph *graph, uint64_t budget, const answer *remat, sums *s) {
    int k;
    for (k = 0; k <= TL_POLICY_CHAIN; k++) {
        answer a = ask_policy(graph, (tl_policy_kind)k, budget);
        s->policy_ms[k] += a.ms;
        if (a.result) {
            printf(" %11s", "-");
            continue;
        }
        printf(" %11.4f", ratio(a.cost, remat->cost));
        s->ratios[k] += log(ratio(a.cost, remat->cost));
        s->fits[k]++;
    }
}

static void one_network(const char *name, const tl_graph *graph, sums *s) {
    static const uint64_t percents[] = { 90, 75, 60, 50, 40, 30 };
    uint64_t all = keep_all_peak(graph);
    size_t k;
    for (k = 0; k < sizeof percents / sizeof percents[0]; k++) {
        uint64_t budget = all / 100 * percents[k] + all % 100 * percents[k] / 100;
        answer remat = ask_remat(graph, budget, 0);
        printf("%-16s %3d%%", name, (int)percents[k]);
        if (remat.result) {
            printf(" no plan%s; the least found needs %.2f %% (%.0f ms)\n", remat.report.proven ? " at all" : "",
                   100 * ratio(remat.report.least_budget_bytes, all), remat.ms);
            return;
        }
        printf(" %8.4f %8.4f %6.2f%% %7.1f", ratio(remat.cost, remat.base_cost),
               ratio(remat.report.bound_cost, remat.base_cost), 100 * remat.report.gap_ratio, remat.ms);
        s->rows++;
        s->proven += remat.report.proven;
        s->gaps += remat.report.gap_ratio;
        s->ms += remat.ms;
        if (remat.report.gap_ratio > s->largest_gap) s->largest_gap = remat.report.gap_ratio;
        add_policies(graph, budget, &remat, s);
        printf("\n");
        fflush(stdout);
    }
}

static void print_sums(const sums *s) {
    int k;
    if (!s->rows) return;
    printf("\n%d rows, %d proven optimal; gap %.2f %% on average, %.2f %% at most; %.0f ms on average\n", s->rows, s->proven,
           100 * s->gaps / s->rows, 100 * s->largest_gap, s->ms / s->rows);
    for (k = 0; k <= TL_POLICY_CHAIN; k++) {
        printf("%-12s %8.2f ms on average, fits %2d of %d budgets", tl_name_policy((tl_policy_kind)k), s->policy_ms[k] / s->rows,
               s->fits[k], s->rows);
        if (s->fits[k]) printf(", costs %.4f times tl_plan_remat there (geometric mean)", exp(s->ratios[k] / s->fits[k]));
        printf("\n");
    }
}

static void public_networks(void) {
    static const char *const names[] = { "mlp8", "vgg16", "vgg16_rl", "encoder2", "resnet18", "unet", "mobilenet_v2",
                                         "mobilenet_v2_rl", "gpt2_small", "gpt2_small_rl", "unit100" };
    sums s;
    size_t k;
    memset(&s, 0, sizeof s);
    printf("public networks, budgets as parts of the keep-all peak. cost, bound: of forward and backward once.\n"
           "policies: cost as a multiple of tl_plan_remat's; - does not fit; below 1 it would be cheaper\n\n");
    printf("%-16s %4s %8s %8s %7s %7s", "network", "", "cost", "bound", "gap", "ms");
    for (k = 0; k <= TL_POLICY_CHAIN; k++) printf(" %11s", tl_name_policy((tl_policy_kind)k));
    printf("\n");
    for (k = 0; k < sizeof names / sizeof names[0]; k++) {
        char path[256], *text;
        size_t length = 0;
        tl_graph graph;
        snprintf(path, sizeof path, "models/%s.tlg", names[k]);
        text = read_reference("public networks", path, &length);
        if (!text) return;
        must(tl_parse_graph(NULL, text, length, &graph), path);
        free(text);
        one_network(names[k], &graph, &s);
        tl_free_graph(NULL, &graph);
    }
    print_sums(&s);
}

// -- the second table: growth --

// Columns: nodes; ms and bytes of a first plan; ms and bytes of a whole call; ms of all policies. Powers are fitted from 200
// nodes on, where the exact search takes no part.
enum { SIZES = 7, COLUMNS = 6, FITTED_FROM = 2 };
typedef struct growth { double value[SIZES][COLUMNS]; } growth;

// The exponent of a power of the number of nodes: the slope of a line through the logarithms.
static double fit_exponent(const growth *g, int column) {
    double n = SIZES - FITTED_FROM, x = 0, y = 0, xx = 0, xy = 0;
    int k;
    for (k = FITTED_FROM; k < SIZES; k++) {
        double a = log(g->value[k][0]), b = log(g->value[k][column]);
        x += a; y += b; xx += a * a; xy += a * b;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}

static void one_size(int32_t nodes, double *value) {
    tl_random random = { 1 };
    tl_graph graph;
    uint64_t budget;
    answer first, whole;
    int k;
    must(layered_graph(NULL, &random, nodes, &graph), "layered graph");
    budget = keep_all_peak(&graph) / 2;
    first = ask_remat(&graph, budget, 1);
    whole = ask_remat(&graph, budget, 0);
    must(first.result, "first plan");
    must(whole.result, "plan");
    value[0] = nodes;
    value[1] = first.ms;
    value[2] = (double)first.memory_bytes;
    value[3] = whole.ms;
    value[4] = (double)whole.memory_bytes;
    printf("%6d %9.2f %9.2f %9.4f %9.1f %9.2f %9.4f %8.4f %6.2f%%", (int)nodes, first.ms, value[2] / 1048576,
           ratio(first.cost, first.base_cost), whole.ms, value[4] / 1048576, ratio(whole.cost, whole.base_cost),
           ratio(whole.report.bound_cost, whole.base_cost), 100 * whole.report.gap_ratio);
    value[5] = 0;
    for (k = 0; k <= TL_POLICY_CHAIN; k++) {
        answer a = ask_policy(&graph, (tl_policy_kind)k, budget);
        value[5] += a.ms;
        printf(" %11.2f", a.ms);
    }
    printf("\n");
    fflush(stdout);
    tl_free_graph(NULL, &graph);
}

static void print_growth(growth *g) {
    static const int32_t sizes[SIZES] = { 50, 100, 200, 500, 1000, 2000, 5000 };
    int k;
    printf("\nrandom layered graphs at half the keep-all peak. first: work_limit 1, whole: the default\n\n");
    printf("%6s %9s %9s %9s %9s %9s %9s %8s %7s", "nodes", "first ms", "MiB", "cost", "whole ms", "MiB", "cost", "bound", "gap");
    for (k = 0; k <= TL_POLICY_CHAIN; k++) printf(" %11s", tl_name_policy((tl_policy_kind)k));
    printf("   (ms)\n");
    for (k = 0; k < SIZES; k++) one_size(sizes[k], g->value[k]);
    printf("\nfitted powers of the number of nodes, from 200 on: first plan, time %.2f, memory %.2f; whole call, time %.2f, memory %.2f; "
           "all policies, time %.2f\n", fit_exponent(g, 1), fit_exponent(g, 2), fit_exponent(g, 3), fit_exponent(g, 4),
           fit_exponent(g, 5));
}

static FILE *open_beside(const char *path, const char *ending) {
    char name[1024];
    FILE *file;
    snprintf(name, sizeof name, "%s%s", path, ending);
    file = fopen(name, "w");
    if (!file) { perror(name); exit(1); }
    return file;
}

static void plot(const char *path, const growth *g) {
    char command[1100];
    FILE *file = open_beside(path, ".dat");
    int k, column;
    fprintf(file, "# nodes, first plan: ms, bytes; whole call: ms, bytes; policies: ms\n");
    for (k = 0; k < SIZES; k++, fprintf(file, "\n"))
        for (column = 0; column < COLUMNS; column++) fprintf(file, "%.3f ", g->value[k][column]);
    fclose(file);
    file = open_beside(path, ".gp");
    fprintf(file, "set terminal svg size 900,420 background 'white'\nset output '%s'\nset multiplot layout 1,2\n"
                  "set logscale xy\nset grid\nset key bottom right\nset xlabel 'nodes'\n"
                  "set ylabel 'milliseconds'\n"
                  "plot '%s.dat' using 1:2 with linespoints title 'first plan', '' using 1:4 with linespoints title 'whole call', "
                  "'' using 1:6 with linespoints title 'all policies'\n"
                  "set ylabel 'MiB'\n"
                  "plot '%s.dat' using 1:($3/1048576) with linespoints title 'first plan', "
                  "'' using 1:($5/1048576) with linespoints title 'whole call'\n", path, path, path);
    fclose(file);
    snprintf(command, sizeof command, "gnuplot '%s.gp'", path);
    if (system("command -v gnuplot >/dev/null 2>&1")) printf("SKIPPED plot: no gnuplot; its script is %s.gp\n", path);
    else if (system(command)) exit(1);
    else printf("%s\n", path);
}

int main(int argc, char **argv) {
    growth g;
    int plots = argc == 3 && !strcmp(argv[1], "--plot");
    if (argc > 1 && !plots) { fprintf(stderr, "bench_remat [--plot FILE.svg]\n"); return 2; }
    public_networks();
    print_growth(&g);
    if (plots) plot(argv[2], &g);
    return 0;
}
