// What several test files share: an allocator that fails on demand, reference data, files as text.
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walks.h"

// An allocator that counts, and fails from one allocation on (fails_once: that one only).
//
//     for (at = 0; ; at++) {
//         failing_alloc f = {0}; tl_env env = failing_env(&f, at);
//         tl_result r = tl_something(&env, ...);
//         assert_int_equal(f.live, 0);                 // after freeing what succeeded
//         if (f.count <= at) break;                    // the call needs no more allocations than that
//     }
typedef struct failing_alloc {
    long fail_at;     // index of the allocation that fails, from 0; -1 = none
    long count;       // allocations asked for
    long live;        // allocations not released
    int  fails_once;  // 1 = later allocations work again
} failing_alloc;

static inline void *failing_alloc_bytes(void *user, size_t bytes) {
    failing_alloc *f = (failing_alloc *)user;
    long index = f->count++;
    void *ptr;
    if (f->fail_at >= 0 && (index == f->fail_at || (index > f->fail_at && !f->fails_once))) return NULL;
    ptr = malloc(bytes ? bytes : 1);
    if (ptr) { memset(ptr, 0xA5, bytes ? bytes : 1); f->live++; }
    return ptr;
}

static inline void failing_release(void *user, void *ptr) {
    ((failing_alloc *)user)->live--;
    free(ptr);
}

static inline tl_env failing_env(failing_alloc *f, long fail_at) {
    tl_env env;
    memset(&env, 0, sizeof env);
    f->fail_at = fail_at;
    env.alloc = failing_alloc_bytes;
    env.release = failing_release;
    env.user = f;
    return env;
}

// An env that counts what it logs. It holds an error of an earlier call, which calls that succeed leave alone.
static inline void count_line(void *user, const char *text) {
    (void)text;
    ++*(long *)user;
}

static inline tl_env logging_env(long *lines) {
    tl_env env;
    memset(&env, 0, sizeof env);
    env.log = count_line;
    env.user = lines;
    env.error.code = TL_ERROR_STALE;
    strcpy(env.error.text, "of an earlier call");
    *lines = 0;
    return env;
}

static inline int is_silent(const tl_env *env, long lines) {
    return !lines && env->error.code == TL_ERROR_STALE && !strcmp(env->error.text, "of an earlier call");
}

// No callbacks.
static inline tl_env silent_env(void) {
    tl_env env;
    memset(&env, 0, sizeof env);
    return env;
}

static inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#ifndef TL_NO_PRECISION
static inline tl_quantization quantization_of(float scale, int32_t zero_point, int32_t low, int32_t high) {
    tl_quantization q;
    memset(&q, 0, sizeof q);
    q.scale = scale;
    q.zero_point = zero_point;
    q.low = low;
    q.high = high;
    return q;
}
#endif

// The arrays of a graph of one's own, to be written to.
#define NODES(graph)   ((tl_node *)(graph)->nodes)
#define INPUTS(graph)  ((tl_node_input *)(graph)->inputs)
#define OUTPUTS(graph) ((tl_node_output *)(graph)->outputs)
#define VIEWS(graph)   ((tl_view *)(graph)->views)
#define TEXT(graph)    ((char *)(graph)->text)

// A whole file as text ended by 0, or NULL; free() it.
static inline char *read_text(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long size;
    if (!file) return NULL;
    if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
        text = (char *)malloc((size_t)size + 1);
        if (text && fread(text, 1, (size_t)size, file) != (size_t)size) { free(text); text = NULL; }
        if (text) { text[size] = 0; if (length) *length = (size_t)size; }
    }
    fclose(file);
    return text;
}

// A file of the reference data, or NULL after a line that says so: the test then calls skip().
static inline char *read_reference(const char *test, const char *name, size_t *length) {
    const char *root = getenv("TL_SHARED");
    char path[1024];
    char *text;
    snprintf(path, sizeof path, "%s/%s", root ? root : "../shared", name);
    text = read_text(path, length);
    if (!text) printf("SKIPPED %s: no reference data (%s)\n", test, name);
    return text;
}

static inline int is_zero(const void *memory, size_t bytes) {
    const unsigned char *at = (const unsigned char *)memory;
    while (bytes && !at[bytes - 1]) bytes--;
    return !bytes;
}

#endif
