// How much of a long walk is done: SOAK=n in the environment does n times as much, and tries all values where others are
// samples; SAMPLE=n, for slow builds, leaves about one n-th. From 25 on, which is for sanitizers and emulators, whole rows
// are left out, too; the build that counts lines walks these.
#ifndef TESTS_WALKS_H
#define TESTS_WALKS_H

#include <stdlib.h>

static inline int factor_in(const char *variable) {
    const char *text = getenv(variable);
    int n = text ? atoi(text) : 1;
    return n > 1 ? n : 1;
}
static inline int soaked(void) { return factor_in("SOAK"); }
static inline int thinned(void) { return factor_in("SAMPLE"); }
static inline int scaled(int count) {
    count *= soaked();
    return thinned() > 1 ? count / thinned() + 1 : count;
}
static inline int is_soaked(void) { return soaked() > 1; }
static inline int is_thinned(void) { return thinned() > 1; }
static inline int is_slow(void) { return thinned() >= 25; }

#endif
