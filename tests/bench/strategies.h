// How well costs predict the order of strategies: rows that were predicted and measured, their ranks, and the pairs in the wrong
// order. Include after the implementation.
#ifndef BENCH_STRATEGIES_H
#define BENCH_STRATEGIES_H

#include <math.h>
#include <stdio.h>

#include "timing.h"

enum { MOST_STRATEGIES = 16, MOST_TURNS = 400, NOISE_PERCENT = 3 };

typedef struct strategy_row {
    const char   *name;
    double        predicted_ns;               // of a step: what was compiled, by measured costs
    double        ns[MOST_TURNS];             // measured, turn by turn
    tl_run_report report;                     // of the last step
    int32_t       parts, conversions;

    // filled in by judge_order
    double        predicted, measured;        // as ratios to the first row; measured: median of the ratios within a turn
    double        halves[2];                  // the same of the even and of the odd turns
    int           predicted_rank, measured_rank;  // from 1; of equal ones the same
} strategy_row;

typedef struct strategy_pairs {
    int    count, wrong, tied;                // in the other order, or equal, by the prediction
} strategy_pairs;

typedef struct strategy_order {
    strategy_pairs all, clear;                // clear: those whose measured times differ by more than the noise
    double worst_error, mean_error;           // of the predicted ratio, relative
    int    worst_row;
    double noise;                             // most by which the two halves of the turns differ
} strategy_order;

// What a run does in a step.
static inline void note_run(strategy_row *row, const tl_run *run) {
    const tl_compiled_plan *compiled = tl_find_compiled_plan(run);
    tl_measure_run(run, &row->report);
    row->parts = compiled ? compiled->choice.part_count : 1;
    row->conversions = compiled ? compiled->choice.conversion_count : 0;
}

// The cost of a step: of the compiled plan, or of the plan, where the strategy leaves nothing else open.
static inline double find_predicted_ns(const tl_run *run) {
    const tl_compiled_plan *compiled = tl_find_compiled_plan(run);
    tl_plan plan;
    tl_find_run_plan(run, &plan);
    return (double)(compiled ? compiled->choice.cost : plan.cost);
}

static inline double find_ratio(const strategy_row *row, const strategy_row *first, int start, int stride, int turns) {
    double ratios[MOST_TURNS];
    int turn, count = 0;
    for (turn = start; turn < turns; turn += stride) ratios[count++] = row->ns[turn] / first->ns[turn];
    return median(ratios, count);
}

static inline void count_pair(const strategy_row *a, const strategy_row *b, strategy_pairs *pairs) {
    pairs->count++;
    pairs->tied += a->predicted == b->predicted;
    pairs->wrong += (a->predicted - b->predicted) * (a->measured - b->measured) < 0;
}

static inline strategy_order judge_order(strategy_row *rows, int count, int turns) {
    strategy_order order = { 0 };
    int i, k;
    for (i = 0; i < count; i++) {
        strategy_row *row = &rows[i];
        double error, noise;
        row->predicted = row->predicted_ns / rows[0].predicted_ns;
        row->measured = find_ratio(row, rows, 0, 1, turns);
        for (k = 0; k < 2; k++) row->halves[k] = find_ratio(row, rows, k, 2, turns);
        error = fabs(row->predicted / row->measured - 1);
        noise = fabs(row->halves[0] / row->halves[1] - 1);
        order.mean_error += i ? error / (count - 1) : 0;
        if (noise > order.noise) order.noise = noise;
        if (error > order.worst_error) { order.worst_error = error; order.worst_row = i; }
    }
    for (i = 0; i < count; i++) {
        rows[i].predicted_rank = rows[i].measured_rank = 1;
        for (k = 0; k < count; k++) {
            rows[i].predicted_rank += rows[k].predicted < rows[i].predicted;
            rows[i].measured_rank += rows[k].measured < rows[i].measured;
            if (k <= i) continue;
            count_pair(&rows[i], &rows[k], &order.all);
            if (fabs(rows[i].measured / rows[k].measured - 1) * 100 > NOISE_PERCENT)
                count_pair(&rows[i], &rows[k], &order.clear);
        }
    }
    return order;
}

static inline void print_order(const char *what, strategy_row *rows, int count, int turns) {
    strategy_order order = judge_order(rows, count, turns);
    int i;
    printf("\n%-26s %9s %6s %6s %7s %6s %9s %8s %7s %5s %5s\n", what, "bytes", "again", "fused", "convert", "parts", "predicted",
           "measured", "error", "rank", "rank");
    for (i = 0; i < count; i++) {
        const strategy_row *row = &rows[i];
        printf("%-26s %9llu %6d %6d %7d %6d %9.3f %8.3f %+6.1f%% %5d %5d\n", row->name,
               (unsigned long long)row->report.taken_bytes, (int)row->report.recompute_count, (int)row->report.fused_count,
               (int)row->conversions, (int)row->parts, row->predicted, row->measured,
               100 * (row->predicted / row->measured - 1), row->predicted_rank, row->measured_rank);
    }
    printf("%d turns, processor time; a step of %s: predicted %.3f ms, measured %.3f ms; halves of the turns differ by %.1f %%\n",
           turns, rows[0].name, rows[0].predicted_ns * 1e-6, median(rows[0].ns, turns) * 1e-6, 100 * order.noise);
    printf("pairs predicted in the wrong order: %d of %d, as equal %d; of those more than %d %% apart %d of %d, as equal %d\n",
           order.all.wrong, order.all.count, order.all.tied, NOISE_PERCENT, order.clear.wrong, order.clear.count, order.clear.tied);
    printf("error %.1f %% on average, %.1f %% at most (%s)\n", 100 * order.mean_error, 100 * order.worst_error,
           rows[order.worst_row].name);
    fflush(stdout);
}

#endif
