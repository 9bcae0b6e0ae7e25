// What benches measure time with.
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

static inline double read_clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline double wall_ns(void) { return read_clock_ns(CLOCK_MONOTONIC); }
static inline double processor_ns(void) { return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }  // of all threads
static inline double processor_ms(void) { return processor_ns() / 1e6; }

static inline int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts them.
static inline double median(double *times, int count) {
    qsort(times, (size_t)count, sizeof *times, by_value);
    return times[count / 2];
}

#endif
