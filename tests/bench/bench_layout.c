// Heights of layouts over their bounds, and times: the library, TFLM's greedy by size, ggml's best fit in order of first use.
//
//     bench_layout [WORK]     elementary steps of the library; 0 or nothing: 40 million
//
// The rows are MiniMalloc's public instances (../shared/layout, or TL_SHARED), asked for at a capacity of 1048576, then made ones:
// training steps, and 100 000 and a million buffers, nested and hostile. The two rules are written from their descriptions: greedy
// by size takes the largest buffer first and gives it the lowest gap that is free over its lifetime; best fit walks the
// steps, gives a buffer the smallest free block that holds it, and joins blocks where one is freed. Both are
// quadratic, so rows above 10 000 buffers are the library's alone.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/counting_alloc.h"
#include "timing.h"

enum { QUADRATIC = 10000 };

typedef struct instance { tl_layout_buffer *buffers; int32_t count; uint64_t capacity; } instance;

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "bench_layout: %s\n", what);
    exit(1);
}

// -- the two rules --

static const instance *sorted_of;

static int larger_first(const void *x, const void *y) {
    const tl_layout_buffer *a = &sorted_of->buffers[*(const int32_t *)x], *b = &sorted_of->buffers[*(const int32_t *)y];
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return *(const int32_t *)x < *(const int32_t *)y ? -1 : 1;
}

static int earlier_first(const void *x, const void *y) {
    const tl_layout_buffer *a = &sorted_of->buffers[*(const int32_t *)x], *b = &sorted_of->buffers[*(const int32_t *)y];
    if (a->first_step != b->first_step) return a->first_step < b->first_step ? -1 : 1;
    return *(const int32_t *)x < *(const int32_t *)y ? -1 : 1;
}

static int32_t *order_of(const instance *in, int (*compare)(const void *, const void *)) {
    int32_t *order = (int32_t *)malloc((size_t)in->count * sizeof *order), i;
    must(order != NULL, "no memory");
    for (i = 0; i < in->count; i++) order[i] = i;
    sorted_of = in;
    qsort(order, (size_t)in->count, sizeof *order, compare);
    return order;
}

// Placed buffers stand in `placed` by offset; the first gap between those that are live with the new one takes it.
static uint64_t greedy_by_size(const instance *in) {
    int32_t *order = order_of(in, larger_first), *placed = order_of(in, larger_first), i, k, at;
    uint64_t *offsets = (uint64_t *)calloc((size_t)in->count, sizeof *offsets), height = 0;
    must(offsets != NULL, "no memory");
    for (i = 0; i < in->count; i++) {
        const tl_layout_buffer *b = &in->buffers[order[i]], *other;
        uint64_t offset = 0;
        for (k = 0; k < i; k++) {
            other = &in->buffers[placed[k]];
            if (other->first_step > b->last_step || b->first_step > other->last_step) continue;
            if (offsets[placed[k]] >= offset + b->bytes) break;
            if (offsets[placed[k]] + other->bytes > offset) offset = offsets[placed[k]] + other->bytes;
        }
        for (at = i; at && offsets[placed[at - 1]] > offset; at--) placed[at] = placed[at - 1];
        placed[at] = order[i];
        offsets[order[i]] = offset;
        if (offset + b->bytes > height) height = offset + b->bytes;
    }
    free(offsets);
    free(placed);
    free(order);
    return height;
}

typedef struct block { uint64_t first, end; } block;

// Give bytes back: blocks stand by their first byte, and join those that they touch.
static void give(block *blocks, int32_t *count, uint64_t first, uint64_t end) {
    int32_t at = 0;
    while (at < *count && blocks[at].first < first) at++;
    memmove(blocks + at + 1, blocks + at, (size_t)(*count - at) * sizeof *blocks);
    blocks[at].first = first;
    blocks[at].end = end;
    ++*count;
    if (at + 1 < *count && blocks[at + 1].first == end) {
        blocks[at].end = blocks[at + 1].end;
        memmove(blocks + at + 1, blocks + at + 2, (size_t)(--*count - at - 1) * sizeof *blocks);
    }
    if (at && blocks[at - 1].end == first) {
        blocks[at - 1].end = blocks[at].end;
        memmove(blocks + at, blocks + at + 1, (size_t)(--*count - at) * sizeof *blocks);
    }
}

// The smallest block that holds the bytes; the last one has no end.
static uint64_t take(block *blocks, int32_t *count, uint64_t bytes) {
    int32_t k, best = *count - 1;
    uint64_t offset;
    for (k = 0; k < *count; k++) {
        uint64_t size = blocks[k].end - blocks[k].first;
        if (size >= bytes && size < blocks[best].end - blocks[best].first) best = k;
    }
    offset = blocks[best].first;
    blocks[best].first += bytes;
    if (blocks[best].first == blocks[best].end)
        memmove(blocks + best, blocks + best + 1, (size_t)(--*count - best) * sizeof *blocks);
    return offset;
}

static uint64_t best_fit_in_order(const instance *in) {
    int32_t *order = order_of(in, earlier_first), *live = order_of(in, earlier_first), live_count = 0, count = 1, i, k;
    uint64_t *offsets = (uint64_t *)calloc((size_t)in->count, sizeof *offsets), height = 0;
    block *blocks = (block *)calloc((size_t)in->count + 2, sizeof *blocks);
    must(offsets && blocks, "no memory");
    blocks[0].end = UINT64_MAX;
    for (i = 0; i < in->count; i++) {
        const tl_layout_buffer *b = &in->buffers[order[i]];
        for (k = 0; k < live_count;) {
            const tl_layout_buffer *old = &in->buffers[live[k]];
            if (old->last_step >= b->first_step) { k++; continue; }
            give(blocks, &count, offsets[live[k]], offsets[live[k]] + old->bytes);
            live[k] = live[--live_count];
        }
        offsets[order[i]] = take(blocks, &count, b->bytes);
        live[live_count++] = order[i];
        if (offsets[order[i]] + b->bytes > height) height = offsets[order[i]] + b->bytes;
    }
    free(blocks);
    free(offsets);
    free(live);
    free(order);
    return height;
}

// -- rows --

static void show_rule(const instance *in, uint64_t (*rule)(const instance *), uint64_t bound) {
    double start = processor_ms();
    uint64_t height;
    if (in->count > QUADRATIC) { printf("  %8s %9s", "-", "-"); return; }
    height = rule(in);
    printf("  %8.4f %9.1f", (double)height / (double)bound, processor_ms() - start);
}

static void show(const char *name, const instance *in, uint64_t work) {
    counting_alloc counter = { 0, 0 };
    tl_env env = counting_env(&counter);
    tl_layout_desc desc;
    tl_layout_plan plan;
    double start = processor_ms(), ms;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.buffers = in->buffers;
    desc.buffer_count = in->count;
    desc.capacity_bytes = in->capacity;
    desc.work_limit = work;
    result = tl_plan_layout(&env, &desc, &plan);
    must(!result || result == TL_ERROR_INFEASIBLE, env.error.text);
    ms = processor_ms() - start;
    printf("%-10s %8d  %8.4f %9.1f %-6s %7.0f", name, (int)in->count, (double)plan.height_bytes / (double)plan.bound_bytes, ms,
           plan.proven ? "proven" : result ? "above" : "", (double)counter.peak / in->count);
    show_rule(in, greedy_by_size, plan.bound_bytes);
    show_rule(in, best_fit_in_order, plan.bound_bytes);
    printf("\n");
    fflush(stdout);
    tl_free_layout_plan(&env, &plan);
}

static int read_instance(const char *path, instance *in) {
    FILE *file = fopen(path, "r");
    unsigned long long id, lower, upper, bytes;
    char line[256];
    in->count = 0;
    if (!file) return 0;
    must(fgets(line, sizeof line, file) != NULL, path);
    while (in->count < 1000 && fgets(line, sizeof line, file)) {
        tl_layout_buffer *b = &in->buffers[in->count++];
        must(sscanf(line, "%llu,%llu,%llu,%llu", &id, &lower, &upper, &bytes) == 4, path);
        memset(b, 0, sizeof *b);
        b->bytes = bytes;
        b->first_step = (int64_t)lower;
        b->last_step = (int64_t)upper - 1;
    }
    fclose(file);
    return 1;
}

// 0 = a training step: kept until the way back, and short ones; 1 = all live at one time; 2 = random.
static void make_instance(instance *in, int32_t count, int kind) {
    tl_random random = { 1 };
    int32_t i;
    in->count = count;
    in->capacity = 0;
    for (i = 0; i < count; i++) {
        tl_layout_buffer *b = &in->buffers[i];
        memset(b, 0, sizeof *b);
        b->bytes = 64 * (1 + tl_next_random_below(&random, 4096));
        b->first_step = kind == 2 ? (int64_t)tl_next_random_below(&random, (uint64_t)count) : i;
        b->last_step = kind == 1 ? count + i : kind == 2 ? b->first_step + (int64_t)tl_next_random_below(&random, 50)
                       : i < count / 2 && i % 2 ? count - i : i + (int64_t)tl_next_random_below(&random, 5);
    }
}

int main(int argc, char **argv) {
    static const char *const kinds[] = { "training", "all live", "random" };
    static const int32_t counts[] = { 1000, 100000, 1000000 };
    uint64_t work = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    const char *shared = getenv("TL_SHARED");
    instance in;
    char path[600];
    size_t c;
    int kind, letter;
    in.buffers = (tl_layout_buffer *)malloc((size_t)counts[2] * sizeof *in.buffers);
    must(in.buffers != NULL, "no memory");
    if (!work) work = 40000000;
    printf("height / bound and ms of processor time; %.0f million steps; bytes of memory a buffer\n", (double)work / 1e6);
    printf("%-10s %8s  %8s %9s %-6s %7s  %8s %9s  %8s %9s\n", "", "buffers", "library", "ms", "", "bytes", "greedy", "ms", "best fit", "ms");
    for (letter = 'A'; letter <= 'K'; letter++) {
        char name[2] = { (char)letter, 0 };
        snprintf(path, sizeof path, "%s/layout/%c.1048576.csv", shared ? shared : "../shared", letter);
        if (!read_instance(path, &in)) { printf("SKIPPED %s: it is not there\n", path); continue; }
        in.capacity = 1048576;
        show(name, &in, work);
    }
    for (c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (kind = 0; kind < 3; kind++) {
            make_instance(&in, counts[c], kind);
            show(kinds[kind], &in, work);
        }
    free(in.buffers);
    return 0;
}
