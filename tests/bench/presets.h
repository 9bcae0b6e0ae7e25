// The six presets, the rounds in which they take turns and the table of what each did, for benches that run them: each
// network on each device. Include after the implementation.
#ifndef BENCH_PRESETS_H
#define BENCH_PRESETS_H

#include <stdio.h>
#include <string.h>

#include "timing.h"

// Rows: the presets without a budget, then within one, and at last one that makes again what the budget asks for.
enum { PRESETS = 6, PRESET_ROWS = 2 * PRESETS + 1, ROUNDS = 40, WARM_ROUNDS = 3, BUDGET_PERCENT = 60 };

typedef struct preset_row {
    const char   *name;
    tl_strategy   strategy;
    uint64_t      budget;         // 0 = none
    uint64_t      least;          // > 0: does not fit, this is the least budget found
    tl_run_report report;         // of the last step
    float         loss;           // of the last step
    int32_t       kept_count;     // most nodes that a step did not run, because results were kept
    double        ns[ROUNDS], to_new[ROUNDS];
} preset_row;

// A network on a device.
typedef struct preset_bench {
    const char *program;          // for complaints
    preset_row  rows[PRESET_ROWS];
    void       *self;             // for the functions below
    double    (*clock_ns)(const void *self);
    void      (*step)(void *self, int k);           // of row k, with its report and loss
    uint64_t  (*digest)(void *self, int k);         // of the gradients of its last step; NULL = losses alone are compared
} preset_bench;

static inline uint64_t digest_floats(const float *floats, size_t count) {
    uint64_t sum = 0;
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &floats[i], sizeof bits);
        sum = tl_mix_u64(sum, bits);
    }
    return sum;
}

static inline void list_presets(preset_row rows[PRESET_ROWS], uint64_t keep_all_bytes) {
    static const char *const names[PRESETS] = { "new", "training", "inference", "memory_efficient", "high_throughput", "debug" };
    int k;
    memset(rows, 0, PRESET_ROWS * sizeof *rows);
    for (k = 0; k < PRESET_ROWS; k++) {
        rows[k].name = names[k % PRESETS];
        rows[k].budget = k < PRESETS ? 0 : keep_all_bytes / 100 * BUDGET_PERCENT;
    }
    for (k = 0; k < 2 * PRESETS; k += PRESETS) {
        rows[k].strategy = tl_strategy_new();
        rows[k + 1].strategy = tl_strategy_training();
        rows[k + 2].strategy = tl_strategy_inference();
        rows[k + 3].strategy = tl_strategy_memory_efficient();
        rows[k + 4].strategy = tl_strategy_high_throughput();
        rows[k + 5].strategy = tl_strategy_debug();
    }
    rows[2 * PRESETS].name = "training, again";
    rows[2 * PRESETS].strategy = tl_with_gradient(tl_strategy_training(), tl_gradient_checkpointed(0));
}

static inline int runs(const preset_row *row) { return !row->least; }

// Take what the run reports of a step.
static inline void note_step(preset_row *row, const tl_run *run) {
    tl_measure_run(run, &row->report);
    if (row->report.cached_count > row->kept_count) row->kept_count = row->report.cached_count;
}

// Of rows that train the gradients and the loss, of the others the loss, must be those of the first such row, to the bit.
static inline void compare_presets(const preset_bench *b) {
    uint64_t digests[2] = { 0, 0 };
    int first[2] = { -1, -1 }, k;
    for (k = 0; k < PRESET_ROWS; k++) {
        const preset_row *row = &b->rows[k];
        int trains = row->strategy.gradient.computes;
        uint64_t digest = trains && runs(row) && b->digest ? b->digest(b->self, k) : 0;
        if (!runs(row)) continue;
        if (first[trains] < 0) {
            first[trains] = k;
            digests[trains] = digest;
        }
        if (digest == digests[trains] && memcmp(&row->loss, &b->rows[first[trains]].loss, sizeof(float)) == 0) continue;
        fprintf(stderr, "%s: %s: not the loss or the gradients of the others\n", b->program, row->name);
        exit(1);
    }
}

// All rows take turns, a step each. Times are compared with those of the preset `new` without a budget, round by round.
static inline void run_presets(preset_bench *b) {
    int round, k;
    for (round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
        int at = round < WARM_ROUNDS ? 0 : round - WARM_ROUNDS;
        for (k = 0; k < PRESET_ROWS; k++) {
            int turn = (round + k * (1 + round % 12)) % PRESET_ROWS;  // strides prime to the 13 rows: who runs before whom changes
            double begin = b->clock_ns(b->self);
            if (!runs(&b->rows[turn])) continue;
            b->step(b->self, turn);
            b->rows[turn].ns[at] = b->clock_ns(b->self) - begin;
        }
        compare_presets(b);
        for (k = 0; k < PRESET_ROWS; k++) b->rows[k].to_new[at] = b->rows[k].ns[at] / b->rows[0].ns[at];
    }
}

static inline void print_preset(preset_row *row) {
    const tl_run_report *r = &row->report;
    printf("%-17s %-7s %-12s", row->name, tl_name_mode(row->strategy.mode), tl_name_memory(row->strategy.memory));
    if (!runs(row)) {
        printf(" does not fit: takes a budget of %llu bytes\n", (unsigned long long)row->least);
        return;
    }
    printf(" %9llu %9llu %9llu %9.3f %7.3f %8.4f %6d %6d %6d %6d\n", (unsigned long long)r->measured_peak_bytes,
           (unsigned long long)r->measured_arena_bytes, (unsigned long long)r->taken_bytes, median(row->ns, ROUNDS) * 1e-6,
           median(row->to_new, ROUNDS), (double)row->loss, (int)r->backward_count, (int)r->fused_count, (int)r->recompute_count,
           (int)row->kept_count);
}

static inline int has_same_figures(const preset_row *a, const preset_row *b) {
    const tl_run_report *x = &a->report, *y = &b->report;
    return runs(a) && runs(b) && x->measured_peak_bytes == y->measured_peak_bytes &&
           x->measured_arena_bytes == y->measured_arena_bytes && x->taken_bytes == y->taken_bytes &&
           x->fused_count == y->fused_count && x->recompute_count == y->recompute_count &&
           a->kept_count == b->kept_count && x->forward_count == y->forward_count && x->backward_count == y->backward_count;
}

// Why two presets came to the same bytes and counts, field by field.
static inline void explain_same(const preset_row *a, const preset_row *b) {
    const tl_strategy *x = &a->strategy, *y = &b->strategy;
    printf("%s and %s%s: the same bytes and counts:", a->name, b->name, a->budget ? " within the budget" : "");
    if (x->mode != y->mode)
        printf(" modes %s and %s have nothing to decide;", tl_name_mode(x->mode), tl_name_mode(y->mode));
    if (x->memory != y->memory)
        printf(" memory %s and %s%s;", tl_name_memory(x->memory), tl_name_memory(y->memory),
               x->memory == TL_MEMORY_CACHED || y->memory == TL_MEMORY_CACHED
                   ? ": no result is unchanged from step to step, nothing is kept" : "");
    if (x->precision != y->precision)
        printf(" precision %s and %s: kernels compute f32 alone;", tl_name_precision(x->precision),
               tl_name_precision(y->precision));
    if (x->parallelism.kind != y->parallelism.kind)
        printf(" parallelism %s and %s: %d worker ran;", tl_name_parallelism(x->parallelism.kind),
               tl_name_parallelism(y->parallelism.kind), (int)a->report.worker_count);
    if (x->enable_fusion != y->enable_fusion) printf(" fusion on and off: no chain of nodes takes blocks;");
    if (x->enable_profiling != y->enable_profiling) printf(" profiling changes times alone;");
    printf("\n");
}

static inline void print_presets(preset_bench *b, const char *where, uint64_t keep_all_bytes) {
    preset_row *rows = b->rows;
    int k, other;
    printf("\n%s; keeping all of a training step takes %llu bytes; the budget is %d %% of them; loss after %d steps\n", where,
           (unsigned long long)keep_all_bytes, BUDGET_PERCENT, WARM_ROUNDS + ROUNDS);
    printf("\n%-17s %-7s %-12s %9s %9s %9s %9s %7s %8s %6s %6s %6s %6s\n", "preset", "mode", "memory", "peak", "arena", "taken",
           "ms", "to new", "loss", "backw.", "fused", "again", "kept");
    for (k = 0; k < PRESET_ROWS; k++) {
        if (k == PRESETS) printf("within %llu bytes\n", (unsigned long long)rows[k].budget);
        print_preset(&rows[k]);
    }
    for (k = 0; k < 2 * PRESETS; k++)
        for (other = k + 1; other < (k / PRESETS + 1) * PRESETS; other++)
            if (has_same_figures(&rows[k], &rows[other])) explain_same(&rows[k], &rows[other]);
    for (k = 0; k < PRESETS; k++)
        if (has_same_figures(&rows[k], &rows[k + PRESETS]))
            printf("%s: the same with the budget and without: it takes fewer bytes anyway\n", rows[k].name);
}

#endif
