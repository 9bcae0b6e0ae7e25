// make fuzz-layout, or:
// clang -g -O1 -std=c99 -fsanitize=fuzzer,address,undefined tests/fuzz_layout.c && ./a.out tests/corpus/fuzz_layout
//
// Layouts of hostile buffers: lifetimes at both ends of time, sums beyond 61 bits, pins, alignments, gaps and buffers
// that lie over others, blocks. What is placed is checked pair by pair; what is refused leaves nothing and names a rule.
// 8 bytes choose the work, the capacity and the blocks, then 12 bytes make a buffer.
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 24, HEAD = 8, BYTES = 12, GAPS = 2 };

static void check(int ok) { if (!ok) abort(); }

// A small number, or one of the ends of 64 bits.
static uint64_t number_of(uint8_t byte) {
    if (byte < 240) return byte;
    return byte & 8 ? UINT64_MAX - (byte & 7) : (uint64_t)1 << (56 + (byte & 7));
}

static int64_t step_of(uint8_t byte) {
    if (byte < 240) return byte % 32;
    return byte & 8 ? INT64_MAX - (byte & 7) : INT64_MIN + (byte & 7);
}

static void read_gaps(const uint8_t *at, tl_layout_buffer *b, tl_layout_gap *gaps) {
    int32_t k;
    b->gaps = gaps;
    b->gap_count = at[9] % (GAPS + 1);
    for (k = 0; k < GAPS; k++) {
        gaps[k].first_step = b->first_step < 200 ? b->first_step + (at[10 + k] & 3) + 4 * k : b->first_step;
        gaps[k].last_step = gaps[k].first_step < 200 ? gaps[k].first_step + (at[10 + k] >> 2 & 3) : b->last_step;
        if (!(at[10 + k] & 128)) continue;
        gaps[k].first_byte = at[10 + k] >> 4 & 7;
        gaps[k].bytes = b->bytes > 9 && b->bytes < 240 ? b->bytes - 9 : 1;
    }
}

static void read_buffer(const uint8_t *at, tl_layout_buffer *b, tl_layout_gap *gaps) {
    b->bytes = number_of(at[0]);
    b->first_step = step_of(at[1]);
    b->last_step = at[2] < 240 && b->first_step < 200 ? b->first_step + at[2] % 16 : step_of(at[2]);
    b->alignment = at[3] < 128 ? 0 : at[3] < 250 ? (uint64_t)1 << (at[3] & 7) : number_of(at[4]);
    b->is_pinned = at[5] > 220;
    b->pinned_offset = number_of(at[6]);
    b->in_place = at[7] > 200;
    b->over = (int8_t)at[8];
    read_gaps(at, b, gaps);
}

// What a buffer takes in its k-th span: before, in and behind its gaps.
static int span_of(const tl_layout_buffer *b, int32_t k, tli_layout_span *span) {
    return b->bytes > 0 && tli_layout_find_span(b, k, span);
}

static int overlap(const tl_layout_buffer *a, uint64_t at, const tl_layout_buffer *b, uint64_t bt) {
    tli_layout_span x, y;
    int32_t i, k;
    for (i = 0; i < 2 * a->gap_count + 1; i++)
        for (k = 0; k < 2 * b->gap_count + 1; k++) {
            if (!span_of(a, i, &x) || !span_of(b, k, &y) || x.first > y.last || y.first > x.last) continue;
            if (at + x.from < bt + y.from + y.bytes && bt + y.from < at + x.from + x.bytes) return 1;
        }
    return 0;
}

static void check_layout(const tl_layout_desc *desc, const tl_layout_plan *plan) {
    const tl_layout_buffer *b = desc->buffers;
    uint64_t height = 0;
    int32_t i, k;
    for (i = 0; i < desc->buffer_count; i++) {
        uint64_t alignment = b[i].alignment ? b[i].alignment : 1;
        if (!tli_layout_takes(&b[i])) { check(plan->offsets[i] == (b[i].is_pinned ? b[i].pinned_offset : 0)); continue; }
        check(plan->offsets[i] % alignment == 0 && (!b[i].is_pinned || plan->offsets[i] == b[i].pinned_offset));
        check(!desc->block_bytes || plan->offsets[i] / desc->block_bytes == (plan->offsets[i] + b[i].bytes - 1) / desc->block_bytes);
        if (plan->offsets[i] + b[i].bytes > height) height = plan->offsets[i] + b[i].bytes;
        for (k = 0; k < i; k++) {
            int over = (b[i].in_place && b[i].over == k) || (b[k].in_place && b[k].over == i);
            if (!tli_layout_takes(&b[k]) || (over && plan->offsets[i] == plan->offsets[k])) continue;
            check(!overlap(&b[i], plan->offsets[i], &b[k], plan->offsets[k]));
        }
    }
    check(height == plan->height_bytes && plan->bound_bytes <= height);
    check(plan->proven == (plan->bound_bytes == height));
    check(!desc->capacity_bytes || height <= desc->capacity_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static tl_layout_buffer buffers[MOST];
    static tl_layout_gap gaps[MOST][GAPS];
    tl_layout_desc desc;
    tl_layout_plan plan;
    tl_result result;
    tl_env env;
    size_t at;
    if (size < HEAD) return 0;
    memset(buffers, 0, sizeof buffers);
    memset(gaps, 0, sizeof gaps);
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.buffers = buffers;
    desc.work_limit = data[0] < 128 ? 1 : 1000 * (uint64_t)data[0];
    desc.capacity_bytes = data[1] < 128 ? 0 : number_of(data[2]);
    desc.block_bytes = data[3] < 128 ? 0 : number_of(data[4]);
    for (at = HEAD; at + BYTES <= size && desc.buffer_count < MOST; at += BYTES, desc.buffer_count++)
        read_buffer(data + at, &buffers[desc.buffer_count], gaps[desc.buffer_count]);
    result = tl_plan_layout(&env, &desc, &plan);
    check(result == TL_OK || !strncmp(env.error.text, "tl_plan_layout: ", 16));
    check(result == TL_OK || !plan.offsets);
    if (!result) check_layout(&desc, &plan);
    if (result == TL_ERROR_INFEASIBLE && plan.height_bytes)
        check(plan.height_bytes > desc.capacity_bytes && plan.bound_bytes <= plan.height_bytes &&
              env.error.values[0] == plan.height_bytes && env.error.values[1] == plan.bound_bytes);
    else if (result) check(!plan.height_bytes && !plan.bound_bytes);
    tl_free_layout_plan(&env, &plan);
    return 0;
}
