// What places cost: for each model and budget of the reference data, and alignments of 1, 64 and 256 bytes, the arena of the
// plan against the largest sum of live bytes, each rounded up, and its cost against the plan whose live bytes alone fit.
//
//     bench_arena [--work N] [ALIGNMENT ...]    one line for each plan whose arena or cost is larger, then totals; 1, 64 and 256
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "timing.h"

typedef unsigned long long ull;

typedef struct totals {
    int    plans, equal, refused, upper;  // upper: at 30 % of keep-all and more
    double worst_arena, costs, worst_cost, worst_upper, ms;
} totals;

// The largest sum of bytes, rounded up, that live in one step.
static uint64_t live_peak(const tl_graph *rounded, const tl_plan *plan) {
    tl_simulate_desc desc;
    tl_report report;
    memset(&desc, 0, sizeof desc);
    desc.graph = rounded;
    desc.plan = plan;
    if (tl_simulate_plan(NULL, &desc, &report)) exit(1);
    return report.peak_bytes;
}

static void one_budget(const char *name, const tl_graph *graph, const tl_graph *rounded, uint64_t budget, uint64_t all,
                       uint64_t alignment, uint64_t work, totals *t) {
    tl_remat_desc desc;
    tl_plan placed, live;
    tl_result result, other;
    double start, arena, cost;
    memset(&desc, 0, sizeof desc);
    desc.budget_bytes = budget;
    desc.work_limit = work;
    desc.graph = rounded;
    desc.live = 1;
    other = tl_plan_remat(NULL, &desc, &live, NULL);
    desc.graph = graph;
    desc.live = 0;
    desc.alignment_bytes = alignment;
    start = processor_ms();
    result = tl_plan_remat(NULL, &desc, &placed, NULL);
    t->ms += processor_ms() - start;
    t->refused += result && !other;
    if (result && !other)
        printf("%-18s %12llu (%3.0f %%) align %4llu: refused, live bytes fit\n", name, (ull)budget,
               100.0 * (double)budget / (double)all, (ull)alignment);
    if (!result && !other) {
        uint64_t peak = live_peak(rounded, &placed);
        arena = (double)placed.arena_bytes / (double)peak;
        cost = (double)placed.cost / (double)live.cost;
        if (placed.arena_bytes != peak || placed.cost != live.cost)
            printf("%-18s %12llu (%3.0f %%) align %4llu: arena / live %.6f, cost / live's cost %.6f\n", name, (ull)budget,
                   100.0 * (double)budget / (double)all, (ull)alignment, arena, cost);
        fflush(stdout);
        t->plans++;
        t->equal += placed.arena_bytes == peak;
        t->costs += cost;
        if (arena > t->worst_arena) t->worst_arena = arena;
        if (cost > t->worst_cost) t->worst_cost = cost;
        if ((double)budget < 0.3 * (double)all) { }
        else if (++t->upper && cost > t->worst_upper) t->worst_upper = cost;
    }
    tl_free_plan(NULL, &live);
    tl_free_plan(NULL, &placed);
}

// Rows of one model stand together, those of one budget, too.
static void one_alignment(FILE *csv, const char *root, uint64_t alignment, uint64_t work) {
    char line[4096], name[128], last[128] = "", path[512];
    ull budget, before = 0;
    uint64_t all = 0;
    tli_arena_plan a;
    tl_remat_desc desc;
    tl_graph graph;
    totals t;
    memset(&t, 0, sizeof t);
    memset(&a, 0, sizeof a);
    memset(&desc, 0, sizeof desc);
    tl_init_graph(&graph);
    rewind(csv);
    while (fgets(line, sizeof line, csv)) {
        tl_plan plan;
        if (sscanf(line, "%127[^,],%llu,", name, &budget) != 2 || (!strcmp(name, last) && budget == before)) continue;
        before = budget;
        if (strcmp(name, last)) {
            free(a.nodes);
            free(a.outputs);
            memset(&a, 0, sizeof a);
            tl_free_graph(NULL, &graph);
            snprintf(last, sizeof last, "%s", name);
            snprintf(path, sizeof path, "%s/models/%s.tlg", root, name);
            if (tl_read_graph(NULL, path, &graph)) { fprintf(stderr, "bench_arena: %s cannot be read\n", path); exit(1); }
            desc.graph = &graph;
            a.given = &graph;
            a.alignment = alignment;
            if (!tli_arena_round(&a) || tl_plan_keep_all(NULL, &a.graph, 0, &plan)) exit(1);
            all = plan.peak_bytes;
            tl_free_plan(NULL, &plan);
        }
        one_budget(name, &graph, &a.graph, budget, all, alignment, work, &t);
    }
    free(a.nodes);
    free(a.outputs);
    tl_free_graph(NULL, &graph);
    printf("align %llu: %d plans, %d refused that live bytes fit; %d arenas are the live peak, at most %.6f times it; cost / live's "
           "cost %.6f on average, at most %.6f, at most %.6f in %d of 30 %% and more; %.1f s\n", (ull)alignment, t.plans,
           t.refused, t.equal, t.worst_arena, t.plans ? t.costs / t.plans : 0, t.worst_cost, t.worst_upper, t.upper, t.ms / 1000);
}

int main(int argc, char **argv) {
    static const uint64_t alignments[] = { 1, 64, 256 };
    const char *root = getenv("TL_SHARED") ? getenv("TL_SHARED") : "../shared";
    uint64_t work = 0;
    char path[512];
    FILE *csv;
    size_t i;
    int k = 1;
    if (argc > 2 && !strcmp(argv[1], "--work")) { work = strtoull(argv[2], NULL, 10); k = 3; }
    snprintf(path, sizeof path, "%s/remat_reference.csv", root);
    csv = fopen(path, "r");
    if (!csv) { fprintf(stderr, "SKIPPED: no reference data\n"); return 0; }
    for (i = 0; k == argc && i < sizeof alignments / sizeof alignments[0]; i++) one_alignment(csv, root, alignments[i], work);
    for (; k < argc; k++) one_alignment(csv, root, strtoull(argv[k], NULL, 10), work);
    fclose(csv);
    return 0;
}
