// An allocator that counts bytes: what a parser may take for a text. Include after the implementation.
#ifndef TESTS_COUNTING_ALLOC_H
#define TESTS_COUNTING_ALLOC_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The densest text of a graph is a list of outputs: two characters each, 8 bytes while the line is read and 24 in the graph,
// twice that where an array has just doubled, and its old half beside it.
#define ALLOWED_BYTES(length) (64 * (uint64_t)(length) + 16384)

typedef struct counting_alloc { uint64_t live, peak; } counting_alloc;

static inline void *counting_alloc_bytes(void *user, size_t bytes) {
    counting_alloc *counter = (counting_alloc *)user;
    uint64_t *block = (uint64_t *)malloc(16 + (bytes ? bytes : 1));
    if (!block) return NULL;
    block[0] = bytes;
    counter->live += bytes;
    if (counter->live > counter->peak) counter->peak = counter->live;
    return block + 2;
}

static inline void counting_release(void *user, void *ptr) {
    uint64_t *block = (uint64_t *)ptr - 2;
    ((counting_alloc *)user)->live -= block[0];
    free(block);
}

static inline tl_env counting_env(counting_alloc *counter) {
    tl_env env;
    memset(&env, 0, sizeof env);
    env.alloc = counting_alloc_bytes;
    env.release = counting_release;
    env.user = counter;
    return env;
}

#endif
