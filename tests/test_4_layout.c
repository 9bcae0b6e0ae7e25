// [4] LAYOUT: small layouts against exhaustive search, large ones against the rules, the public hard instances, bad input.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/random_buffers.h"
#include "support/counting_alloc.h"

typedef unsigned long long ull;

enum { MOST = 8 };

static tl_layout_desc desc_of(const tl_layout_buffer *buffers, int32_t count, uint64_t work_limit) {
    tl_layout_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.buffers = buffers;
    desc.buffer_count = count;
    desc.work_limit = work_limit;
    return desc;
}

static int live_together(const tl_layout_buffer *a, const tl_layout_buffer *b) {
    return a->first_step <= b->last_step && b->first_step <= a->last_step;
}

// What a buffer takes at a step; from == end: nothing.
static void taken_at(const tl_layout_buffer *b, int64_t step, uint64_t *from, uint64_t *end) {
    int32_t k;
    *from = 0;
    *end = step < b->first_step || step > b->last_step ? 0 : b->bytes;
    for (k = 0; k < b->gap_count; k++) {
        if (step < b->gaps[k].first_step || step > b->gaps[k].last_step) continue;
        *from = b->gaps[k].first_byte;
        *end = *from + b->gaps[k].bytes;
    }
}

// Buffers with gaps, step by step.
static int share_bytes_at_steps(const tl_layout_buffer *a, uint64_t at, const tl_layout_buffer *b, uint64_t bt) {
    int64_t step = a->first_step > b->first_step ? a->first_step : b->first_step;
    for (; step <= a->last_step && step <= b->last_step; step++) {
        uint64_t a_from, a_end, b_from, b_end;
        taken_at(a, step, &a_from, &a_end);
        taken_at(b, step, &b_from, &b_end);
        if (a_from < a_end && b_from < b_end && at + a_from < bt + b_end && bt + b_from < at + a_end) return 1;
    }
    return 0;
}

static int takes_bytes(const tl_layout_buffer *b) {
    int64_t step;
    uint64_t from, end;
    if (!b->gap_count) return b->bytes > 0;
    for (step = b->first_step; step <= b->last_step; step++) {
        taken_at(b, step, &from, &end);
        if (from < end) return 1;
    }
    return 0;
}

static int share_bytes(const tl_layout_buffer *a, uint64_t at, const tl_layout_buffer *b, uint64_t bt) {
    return a->bytes && b->bytes && at < bt + b->bytes && bt < at + a->bytes;
}

// Whether two buffers at these offsets keep the rules.
static int pair_is_valid(const tl_layout_buffer *buffers, int32_t a, uint64_t at, int32_t b, uint64_t bt) {
    if (!live_together(&buffers[a], &buffers[b]) || !share_bytes(&buffers[a], at, &buffers[b], bt)) return 1;
    if (buffers[a].gap_count || buffers[b].gap_count)
        return !share_bytes_at_steps(&buffers[a], at, &buffers[b], bt);
    return at == bt && (lies_over(buffers, a, b) || lies_over(buffers, b, a));
}

static int is_split(uint64_t offset, uint64_t bytes, uint64_t block) {
    return block && bytes && offset / block != (offset + bytes - 1) / block;
}

// What every layout must hold, checked pair by pair.
static void check_layout(const tl_layout_desc *desc, const tl_layout_plan *plan) {
    uint64_t height = 0;
    int32_t a, b;
    assert_int_equal(plan->buffer_count, desc->buffer_count);
    for (a = 0; a < desc->buffer_count; a++) {
        const tl_layout_buffer *x = &desc->buffers[a];
        if (!takes_bytes(x)) { assert_true(plan->offsets[a] == (x->is_pinned ? x->pinned_offset : 0)); continue; }
        if (plan->offsets[a] % alignment_of(x)) fail_msg("buffer %d: offset %llu", (int)a, (ull)plan->offsets[a]);
        if (x->is_pinned) assert_true(plan->offsets[a] == x->pinned_offset);
        if (is_split(plan->offsets[a], x->bytes, desc->block_bytes)) fail_msg("buffer %d lies in two blocks", (int)a);
        if (plan->offsets[a] + x->bytes > height) height = plan->offsets[a] + x->bytes;
        for (b = 0; b < a; b++)
            if (takes_bytes(&desc->buffers[b]) && !pair_is_valid(desc->buffers, a, plan->offsets[a], b, plan->offsets[b]))
                fail_msg("buffers %d and %d overlap", (int)a, (int)b);
    }
    assert_true(height == plan->height_bytes && plan->bound_bytes <= height);
    assert_int_equal(plan->proven, plan->bound_bytes == plan->height_bytes);
}

// -- exhaustive: all orders, each buffer at every offset that a rule lets it rest on --

typedef struct brute {
    const tl_layout_buffer *buffers;
    int32_t count;
    uint64_t offsets[MOST], best, block;
    uint8_t placed[MOST];
} brute;

static void brute_place(brute *b, uint64_t height);

static void brute_try(brute *b, int32_t i, uint64_t offset, uint64_t height) {
    uint64_t end = offset + b->buffers[i].bytes;
    int32_t k;
    if (end >= b->best || is_split(offset, b->buffers[i].bytes, b->block)) return;
    for (k = 0; k < b->count; k++)
        if (b->placed[k] && takes_bytes(&b->buffers[k]) && !pair_is_valid(b->buffers, i, offset, k, b->offsets[k])) return;
    b->placed[i] = 1;
    b->offsets[i] = offset;
    brute_place(b, end > height ? end : height);
    b->placed[i] = 0;
}

// The lowest place from an offset on: of the buffer itself, and of each with which it may have to share one.
static void brute_try_from(brute *b, int32_t i, uint64_t offset, uint64_t height) {
    int32_t k;
    for (k = 0; k < b->count; k++) {
        uint64_t a = alignment_of(&b->buffers[k]), at = (offset + a - 1) / a * a;
        if (k != i && !b->buffers[i].in_place && !b->buffers[k].in_place) continue;
        if (is_split(at, b->buffers[k].bytes, b->block)) at += b->block - at % b->block;
        if (at % alignment_of(&b->buffers[i]) == 0) brute_try(b, i, at, height);
    }
}

// Where what buffer i takes at a step lies on what buffer k does.
static void brute_try_windows(brute *b, int32_t i, int32_t k, uint64_t height) {
    uint64_t last = UINT64_MAX;
    int64_t step;
    for (step = b->buffers[i].first_step; step <= b->buffers[i].last_step; step++) {
        uint64_t from, end, of_k, rest;
        taken_at(&b->buffers[i], step, &from, &end);
        taken_at(&b->buffers[k], step, &rest, &of_k);
        if (from >= end || rest >= of_k || b->offsets[k] + of_k < from) continue;
        of_k = b->offsets[k] + of_k - from;
        if (of_k != last) brute_try_from(b, i, of_k, height);
        last = of_k;
    }
}

// A lowest layout has each buffer at 0, at the end of another, rounded up, or where the one that it lies over begins; and
// of those that lie over each other one of them. With blocks it may have one where the next block begins.
static void brute_place(brute *b, uint64_t height) {
    int32_t i, k, left = 0;
    for (i = 0; i < b->count; i++) {
        uint64_t a = alignment_of(&b->buffers[i]);
        if (b->placed[i]) continue;
        left = 1;
        if (!takes_bytes(&b->buffers[i])) { b->placed[i] = 1; brute_place(b, height); b->placed[i] = 0; return; }
        if (b->buffers[i].is_pinned) { brute_try(b, i, b->buffers[i].pinned_offset, height); continue; }
        brute_try(b, i, 0, height);
        for (k = 0; k < b->count; k++) {
            if (!b->placed[k]) continue;
            if (b->buffers[i].gap_count || b->buffers[k].gap_count) brute_try_windows(b, i, k, height);
            brute_try_from(b, i, b->offsets[k] + b->buffers[k].bytes, height);
            if ((lies_over(b->buffers, i, k) || lies_over(b->buffers, k, i)) && b->offsets[k] % a == 0)
                brute_try(b, i, b->offsets[k], height);
        }
    }
    if (!left) b->best = height;
}

static uint64_t brute_height(const tl_layout_desc *desc) {
    brute b;
    memset(&b, 0, sizeof b);
    b.buffers = desc->buffers;
    b.count = desc->buffer_count;
    b.block = desc->block_bytes;
    b.best = UINT64_MAX;
    brute_place(&b, 0);
    return b.best;
}

// The same by trying every offset below the best height for each buffer.
static void brute_try_all(brute *b, int32_t i, uint64_t height) {
    const tl_layout_buffer *x = &b->buffers[i];
    uint64_t offset, step = alignment_of(x);
    int32_t k, fits;
    if (i == b->count) { b->best = height; return; }
    if (!takes_bytes(x)) { brute_try_all(b, i + 1, height); return; }
    for (offset = x->is_pinned ? x->pinned_offset : 0; offset + x->bytes < b->best; offset += step) {
        for (k = 0, fits = !is_split(offset, x->bytes, b->block); k < i && fits; k++)
            if (takes_bytes(&b->buffers[k])) fits = pair_is_valid(b->buffers, i, offset, k, b->offsets[k]);
        b->offsets[i] = offset;
        if (fits) brute_try_all(b, i + 1, offset + x->bytes > height ? offset + x->bytes : height);
        if (x->is_pinned) break;
    }
}

static uint64_t brute_height_of_all_offsets(const tl_layout_desc *desc, uint64_t most) {
    brute b;
    memset(&b, 0, sizeof b);
    b.buffers = desc->buffers;
    b.count = desc->buffer_count;
    b.block = desc->block_bytes;
    b.best = most;
    brute_try_all(&b, 0, 0);
    return b.best;
}

// Some gaps of a buffer: of all of its bytes, and where windows are asked for, of some.
static int32_t random_gaps(tl_random *random, const tl_layout_buffer *b, tl_layout_gap *gaps, int windows) {
    int64_t at = b->first_step + random_count(random, 0, 1);
    int32_t count = 0;
    while (at <= b->last_step && count < 3) {
        tl_layout_gap *gap = &gaps[count++];
        memset(gap, 0, sizeof *gap);
        gap->first_step = at;
        gap->last_step = at + random_count(random, 0, 1);
        if (gap->last_step > b->last_step) gap->last_step = b->last_step;
        if (windows && random_chance(random, 50)) {
            gap->first_byte = tl_next_random_below(random, b->bytes);
            gap->bytes = tl_next_random_below(random, b->bytes - gap->first_byte + 1);
        }
        at = gap->last_step + random_count(random, 1, 3);
    }
    return count;
}

// Give some of the buffers gaps that lie over none and under none.
static void add_gaps(tl_random *random, tl_layout_buffer *buffers, int32_t count, tl_layout_gap (*gaps)[3], int windows) {
    int32_t i, k, busy;
    for (i = 0; i < count; i++) {
        for (k = 0, busy = buffers[i].in_place; k < count; k++) busy |= lies_over(buffers, k, i);
        if (busy || !buffers[i].bytes || !random_chance(random, 60)) continue;
        buffers[i].gaps = gaps[i];
        buffers[i].gap_count = random_gaps(random, &buffers[i], gaps[i], windows);
    }
}

// Whether the search tries every layout. It does not where buffers of different bytes may lie over each other, as a box of
// both wastes some, or where gaps leave some bytes.
static int tries_all(const tl_layout_buffer *buffers, int32_t count) {
    int32_t i, k;
    for (i = 0; i < count; i++) {
        if (buffers[i].in_place && buffers[i].bytes != buffers[buffers[i].over].bytes) return 0;
        for (k = 0; k < buffers[i].gap_count; k++) if (buffers[i].gaps[k].bytes) return 0;
    }
    return 1;
}

// Buffers, by kind: 0 = plain ones, 1 = alignments, pins and in place, 2 = and gaps, 3 = that leave some bytes.
static void check_small_layouts(uint64_t seed, int count, int32_t most, int has_blocks) {
    tl_random random = { seed };
    int i, proven = 0, pins = 0, best_count = 0, all = 0, spent = 0;
    for (i = 0; i < count; i++) {
        static tl_layout_buffer buffers[MOST];
        static tl_layout_gap gaps[MOST][3];
        int32_t n = random_count(&random, 1, i % 100 ? 5 : most);
        tl_layout_desc desc = desc_of(buffers, n, 0);
        tl_layout_plan plan;
        tl_env env = silent_env();
        uint64_t best;
        tl_result result;
        desc.work_limit = 5000000;      // far more than all but one in a thousand need
        random_buffers(&random, buffers, NULL, n, 6, i % 4 > 0);
        if (i % 4 > 1) add_gaps(&random, buffers, n, gaps, i % 4 > 2);
        if (has_blocks) desc.block_bytes = random_block(&random, buffers, n);
        result = tl_plan_layout(&env, &desc, &plan);
        best = brute_height(&desc);
        if (has_blocks && best < 40) {
            assert_true(brute_height_of_all_offsets(&desc, best + 1) == best);
            all++;
        }
        if (result) {       // pins that overlap, or would if buffers over each other took the bytes of the largest
            if (result != TL_ERROR_INVALID_ARG || (best != UINT64_MAX && tries_all(buffers, n))) fail_msg("%d: %s, but %llu", i, env.error.text, (ull)best);
            assert_true(!plan.offsets && !plan.height_bytes);
            pins++;
            continue;
        }
        check_layout(&desc, &plan);
        if (plan.height_bytes < best || plan.bound_bytes > best || (plan.height_bytes > best && tries_all(buffers, n)))
            fail_msg("%d: height %llu, bound %llu, best %llu", i, (ull)plan.height_bytes, (ull)plan.bound_bytes, (ull)best);
        proven += plan.proven;
        best_count += plan.height_bytes == best;
        if (plan.work >= desc.work_limit) print_message("%d: all work is spent on %d buffers\n", i, (int)n);
        spent += plan.work >= desc.work_limit;
        tl_free_layout_plan(&env, &plan);
    }
    print_message("%d of %d proven, %d the best, %d with pins that overlap\n", proven, count - pins, best_count, pins);
    assert_int_equal(spent, 0);     // capacities that cannot be kept are refuted once, and never asked for again
    assert_true(!has_blocks || all * 4 > count);
    assert_true(is_thinned() || (proven * 100 > 90 * (count - pins) && best_count * 100 > 98 * (count - pins)));
}

static void small_layouts_are_as_low_as_exhaustive_search_says(void **state) {
    (void)state;
    check_small_layouts(4, scaled(16000), MOST - 1, 0);
    if (is_soaked()) check_small_layouts(5, scaled(5000), MOST, 0);
}

static void small_layouts_in_blocks_are_as_low_as_exhaustive_search_says(void **state) {
    (void)state;
    check_small_layouts(6, scaled(8000), MOST - 2, 1);
    if (is_soaked()) check_small_layouts(7, scaled(2500), MOST - 1, 1);
}

// -- larger layouts of which the least height is known --

// Cut a rectangle of steps and bytes into so many, at random: the pieces fill it, so no layout is lower than it.
static void cut_rectangle(tl_random *random, tl_layout_buffer *buffers, int32_t count, int32_t steps, uint64_t height) {
    int32_t made = 1, tries;
    memset(buffers, 0, (size_t)count * sizeof *buffers);
    buffers[0].bytes = height;
    buffers[0].last_step = steps - 1;
    for (tries = 0; made < count && tries < 100 * count; tries++) {
        tl_layout_buffer *b = &buffers[tl_next_random_below(random, (uint64_t)made)], *other = &buffers[made];
        int64_t length = b->last_step - b->first_step;
        *other = *b;
        if (random_chance(random, 50) && length > 0) {
            b->last_step = b->first_step + (int64_t)tl_next_random_below(random, (uint64_t)length);
            other->first_step = b->last_step + 1;
        } else if (b->bytes > 1) {
            other->bytes = 1 + tl_next_random_below(random, b->bytes - 1);
            b->bytes -= other->bytes;
        } else {
            continue;
        }
        made++;
    }
    assert_int_equal(made, count);
}

// The search proves no bound that a layout undercuts, at sizes that exhaustive search does not reach.
static void a_filled_rectangle_is_never_ruled_out(void **state) {
    tl_random random = { 7 };
    int i, found = 0, count = scaled(600);
    (void)state;
    for (i = 0; i < count; i++) {
        static tl_layout_buffer buffers[200];
        int32_t n = random_count(&random, 5, i % 10 ? 40 : 200), k;
        uint64_t height = 40 + tl_next_random_below(&random, 1000);
        tl_layout_desc desc = desc_of(buffers, n, 3000000);
        tl_layout_plan plan;
        cut_rectangle(&random, buffers, n, 10 + n, height);
        for (k = 0; k < n && i % 3 == 2; k++)           // some pieces are smaller than their place
            if (random_chance(&random, 20) && buffers[k].bytes > 1) buffers[k].bytes--;
        assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
        check_layout(&desc, &plan);
        if (plan.bound_bytes > height) fail_msg("%d: bound %llu, but %llu fits", i, (ull)plan.bound_bytes, (ull)height);
        found += plan.height_bytes <= height;
        tl_free_layout_plan(NULL, &plan);
    }
    print_message("%d of %d rectangles filled\n", found, count);
    assert_true(found * 4 > 3 * count);
}

// As in training: what is made early is freed late, and between them there are buffers of a few steps.
static void nested_buffers(tl_random *random, tl_layout_buffer *buffers, int32_t count) {
    int32_t i;
    memset(buffers, 0, (size_t)count * sizeof *buffers);
    for (i = 0; i < count; i++) {
        buffers[i].bytes = 64 * (uint64_t)random_count(random, 1, 64);
        buffers[i].first_step = i / 2;
        buffers[i].last_step = i % 2 ? count - i / 2 : i / 2 + random_count(random, 0, 6);
        if (random_chance(random, 20)) buffers[i].alignment = 256;
    }
}

// Rectangles in time and bytes, cut into buffers, one after the other under a buffer that lives throughout, so that all are one
// part: the search goes on beyond any number of buffers, as far as the work goes.
static void the_search_has_no_end_at_a_number_of_buffers(void **state) {
    static const int32_t counts[] = { 2000, 2100, 4096, 6000 };
    static tl_layout_buffer buffers[8000];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof counts / sizeof *counts; i++) {
        tl_random random = { 12 };
        int32_t n, k, step = 0, width = 24;
        tl_layout_desc desc;
        tl_layout_plan plan;
        for (n = 1; n + 40 < counts[i]; n += 30, step += width) {
            cut_rectangle(&random, buffers + n, 30, width, 1000);
            for (k = n; k < n + 30; k++) { buffers[k].first_step += step; buffers[k].last_step += step; }
        }
        memset(&buffers[0], 0, sizeof buffers[0]);
        buffers[0].bytes = 1;
        buffers[0].last_step = step - 1;
        desc = desc_of(buffers, n, 100000000);
        assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
        check_layout(&desc, &plan);
        print_message("%d buffers: %llu of 1001 bytes, work %llu\n", (int)n, (ull)plan.height_bytes, (ull)plan.work);
        assert_true(plan.height_bytes <= 1010);
        tl_free_layout_plan(NULL, &plan);
    }
}

// Where more meet than the search lists, the work is not spent on trying it again.
static void a_part_in_which_too_many_meet_is_tried_once(void **state) {
    enum { COUNT = 4000 };
    static tl_layout_buffer buffers[COUNT];
    tl_random random = { 21 };
    tl_layout_desc desc = desc_of(buffers, COUNT, 1000000000);
    tl_layout_plan plan;
    int i;
    (void)state;
    if (is_slow()) return;
    memset(buffers, 0, sizeof buffers);
    for (i = 0; i < COUNT; i++) {
        buffers[i].first_step = (int32_t)tl_next_random_below(&random, COUNT);
        buffers[i].last_step = buffers[i].first_step + (int32_t)tl_next_random_below(&random, COUNT);
        buffers[i].bytes = 1 + tl_next_random_below(&random, 1000);
    }
    assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
    check_layout(&desc, &plan);
    assert_true(!plan.proven);          // there would be something to search for
    if (plan.work > 500000000) fail_msg("work %llu", (ull)plan.work);     // 182932325
    tl_free_layout_plan(NULL, &plan);
}

static void larger_layouts_keep_the_rules(void **state) {
    static const int32_t counts[] = { 1, 17, 200, 1500 };
    static const uint64_t limits[] = { 1, 100000, 20000000 };
    tl_random random = { 5 };
    size_t c, k, kind;
    (void)state;
    for (c = 0; c < (is_slow() ? 3 : sizeof counts / sizeof counts[0]); c++) for (kind = 0; kind < 5; kind++) {
        tl_layout_buffer *buffers = (tl_layout_buffer *)malloc((size_t)counts[c] * sizeof *buffers);
        uint64_t before = UINT64_MAX, block;
        assert_non_null(buffers);
        if (kind == 2 || kind == 4) nested_buffers(&random, buffers, counts[c]);
        else random_buffers(&random, buffers, NULL, counts[c], counts[c] / 4 + 2, 0);
        if (kind == 1) buffers[counts[c] / 2].is_pinned = 1;
        block = kind > 2 ? random_block(&random, buffers, counts[c]) : 0;
        for (k = 0; k < (is_slow() ? 2 : sizeof limits / sizeof limits[0]); k++) {
            tl_layout_desc desc = desc_of(buffers, counts[c], limits[k]);
            tl_layout_plan plan, again;
            desc.block_bytes = block;
            assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
            check_layout(&desc, &plan);
            assert_true(plan.height_bytes <= before);
            before = plan.height_bytes;
            assert_int_equal(tl_plan_layout(NULL, &desc, &again), TL_OK);
            assert_true(again.work == plan.work && !memcmp(again.offsets, plan.offsets, (size_t)counts[c] * sizeof *plan.offsets));
            tl_free_layout_plan(NULL, &again);
            tl_free_layout_plan(NULL, &plan);
        }
        free(buffers);
    }
}

// Gaps make more layouts possible, so they never make one higher.
static void gaps_never_raise_a_layout(void **state) {
    enum { COUNT = 120 };
    static const uint64_t limits[] = { 1, 60000, 1000000 };
    static tl_layout_buffer buffers[COUNT], plain[COUNT];
    static tl_layout_gap gaps[COUNT][3];
    tl_random random = { 13 };
    int i, lower = 0, count = scaled(400);
    (void)state;
    for (i = 0; i < count; i++) {
        int32_t n = random_count(&random, 5, COUNT), k;
        tl_layout_desc desc = desc_of(buffers, n, limits[i % 3]), without = desc_of(plain, n, limits[i % 3]);
        tl_layout_plan plan, plain_plan;
        memset(gaps, 0, sizeof gaps);
        random_buffers(&random, buffers, NULL, n, 4 + n / random_count(&random, 2, 10), i % 4 == 3);
        for (k = 0; k < n; k++) buffers[k].is_pinned = 0;
        if (i % 5 == 4) desc.block_bytes = without.block_bytes = random_block(&random, buffers, n);
        add_gaps(&random, buffers, n, gaps, i % 2);
        memcpy(plain, buffers, sizeof plain);
        for (k = 0; k < n; k++) plain[k].gap_count = 0;
        assert_int_equal(tl_plan_layout(NULL, &without, &plain_plan), TL_OK);
        assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
        check_layout(&desc, &plan);
        if (plan.height_bytes > plain_plan.height_bytes)
            fail_msg("%d: %llu with gaps, %llu without", i, (ull)plan.height_bytes, (ull)plain_plan.height_bytes);
        lower += plan.height_bytes < plain_plan.height_bytes;
        tl_free_layout_plan(NULL, &plan);
        tl_free_layout_plan(NULL, &plain_plan);
    }
    print_message("%d of %d layouts are lower with gaps\n", lower, count);
    assert_true(lower * 2 > count);
}

// A chain that is recomputed within few bytes: stages first..end-1 go backward, with the gradient behind them at hand. The output
// of a stage inside is kept until those behind it are through, then those before it go backward the same way.
typedef struct nest {
    tl_layout_buffer *buffers;
    int32_t   count, gradient;      // gradient: the buffer of the present one
    int64_t   step;
    tl_random random;
    uint64_t  bytes[2000];          // of the output of each stage
} nest;

static int32_t begin_buffer(nest *n, uint64_t bytes) {
    tl_layout_buffer *b = &n->buffers[n->count];
    memset(b, 0, sizeof *b);
    b->bytes = bytes;
    b->first_step = b->last_step = n->step;
    return n->count++;
}

static void go_backward(nest *n, int32_t first, int32_t end) {
    int32_t middle, kept, k;
    if (end - first == 1) {
        int32_t gradient = begin_buffer(n, n->bytes[first]);
        n->buffers[n->gradient].last_step = n->step++;
        n->gradient = gradient;
        return;
    }
    middle = first + 1 + (int32_t)tl_next_random_below(&n->random, (uint64_t)(end - first - 1));
    for (k = first + 1, kept = -1; k <= middle; k++) {
        int32_t output = begin_buffer(n, n->bytes[k]);
        if (kept >= 0) n->buffers[kept].last_step = n->step;
        kept = output;
        n->step++;
    }
    go_backward(n, middle, end);
    n->buffers[kept].last_step = n->step - 1;
    go_backward(n, first, middle);
}

// These recomputed stages take no more than what is live, also where they are too many for the search, and little work.
static void nested_lifetimes_are_stacked(void **state) {
    static const int32_t counts[] = { 50, 300, 1000 };
    nest n;
    uint64_t seed;
    size_t c;
    int32_t i;
    (void)state;
    n.buffers = (tl_layout_buffer *)malloc(10000 * sizeof *n.buffers);
    assert_non_null(n.buffers);
    for (c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (seed = 1; seed <= 3; seed++) {
            tl_layout_desc desc;
            tl_layout_plan plan;
            n.count = 0;
            n.step = 0;
            n.random.state = seed;
            for (i = 0; i < counts[c]; i++) n.bytes[i] = 100000 + tl_next_random_below(&n.random, 900001);
            n.gradient = begin_buffer(&n, 512000);
            go_backward(&n, 0, counts[c]);
            n.buffers[n.gradient].last_step = n.step;
            desc = desc_of(n.buffers, n.count, 0);
            assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
            if (!plan.proven)
                fail_msg("%d stages, seed %d: %llu bytes, %llu live", (int)counts[c], (int)seed, (ull)plan.height_bytes,
                         (ull)plan.bound_bytes);
            if (n.count > 2048) assert_true(plan.work < 300 * (uint64_t)n.count);
            check_layout(&desc, &plan);
            tl_free_layout_plan(NULL, &plan);
        }
    free(n.buffers);
}

// A buffer that takes no bytes is where it is pinned, and the height is that of the others.
static void a_pin_of_no_bytes_stays(void **state) {
    static tl_layout_buffer buffers[3];
    tl_layout_desc desc = desc_of(buffers, 3, 0);
    tl_layout_plan plan;
    int k;
    (void)state;
    for (k = 0; k < 2; k++) {
        memset(buffers, 0, sizeof buffers);
        buffers[0].is_pinned = buffers[1].is_pinned = 1;
        buffers[0].pinned_offset = k ? 200 : 32;
        buffers[1].bytes = 64;
        buffers[1].pinned_offset = 32;
        buffers[2].bytes = k ? 16 : 0;
        assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
        assert_true(plan.offsets[0] == buffers[0].pinned_offset && plan.offsets[1] == 32 && plan.offsets[2] == 0);
        assert_true(plan.height_bytes == 96 && plan.bound_bytes == 96);
        tl_free_layout_plan(NULL, &plan);
    }
}

// More pairs of buffers meet than the search lists, and the pin leaves a gap that no bytes fill.
static void what_cannot_be_searched_is_answered(void **state) {
    static tl_layout_buffer buffers[2047];
    tl_layout_desc desc = desc_of(buffers, 2047, is_slow() ? 1000000 : 0);
    tl_layout_plan plan;
    int32_t i;
    (void)state;
    memset(buffers, 0, sizeof buffers);
    for (i = 0; i < 2047; i++) {
        buffers[i].bytes = 2;
        buffers[i].last_step = 1;
    }
    buffers[0].is_pinned = 1;
    buffers[0].pinned_offset = 1;
    assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
    assert_true(plan.height_bytes == 4095 && plan.bound_bytes == 4094 && !plan.proven);
    tl_free_layout_plan(NULL, &plan);
}

static void hundred_thousand_buffers_take_little(void **state) {
    enum { COUNT = 100000 };
    tl_layout_buffer *buffers = (tl_layout_buffer *)malloc(COUNT * sizeof *buffers);
    tl_random random = { 6 };
    int kind;
    (void)state;
    assert_non_null(buffers);
    for (kind = 0; kind < 2; kind++) {
        counting_alloc counter = { 0, 0 };
        tl_env env = counting_env(&counter);
        tl_layout_desc desc = desc_of(buffers, COUNT, 50000000);
        tl_layout_plan plan;
        int32_t i;
        random_buffers(&random, buffers, NULL, COUNT, COUNT, 0);
        for (i = 0; i < COUNT && kind; i++) { buffers[i].first_step = i; buffers[i].last_step = COUNT + i; }    // all at once
        assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_OK);
        if (counter.peak > 100 * (uint64_t)COUNT) fail_msg("%.0f bytes a buffer", (double)counter.peak / COUNT);
        assert_true(plan.work < 2 * desc.work_limit && (kind || plan.height_bytes <= plan.bound_bytes * 2));
        tl_free_layout_plan(&env, &plan);
        assert_int_equal(counter.live, 0);
    }
    free(buffers);
}

// -- the public hard instances --

static int32_t read_csv(const char *text, tl_layout_buffer *buffers, int32_t most) {
    int32_t count = 0;
    for (text = strchr(text, '\n'); text && text[1] && count < most; text = strchr(text + 1, '\n')) {
        unsigned long long id, lower, upper, bytes;
        if (sscanf(text + 1, "%llu,%llu,%llu,%llu", &id, &lower, &upper, &bytes) != 4) break;
        memset(&buffers[count], 0, sizeof buffers[count]);
        buffers[count].bytes = bytes;
        buffers[count].first_step = (int64_t)lower;
        buffers[count++].last_step = (int64_t)upper - 1;
    }
    return count;
}

static void public_instances_reach_their_heights(void **state) {
    static const struct { char name; uint64_t capacity, height; int proven; } rows[] = {
        { 'A', 0, 1048576, 1 }, { 'B', 0, 1048576, 1 }, { 'C', 0, 1039360, 1 }, { 'D', 0, 1044480, 0 }, { 'E', 0, 1048576, 1 },
        { 'F', 0, 1048576, 1 }, { 'G', 0, 1048576, 1 }, { 'H', 0, 1048576, 1 }, { 'I', 0, 1048576, 1 }, { 'J', 0, 1036288, 0 },
        { 'K', 0, 1048576, 1 }
    };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof rows / sizeof rows[0]; k += is_slow() ? 4 : 1) {
        static tl_layout_buffer buffers[1000];
        char name[64];
        char *text;
        tl_layout_desc desc = desc_of(buffers, 0, 30000000);
        tl_layout_plan plan;
        snprintf(name, sizeof name, "layout/%c.1048576.csv", rows[k].name);
        text = read_reference("public_instances_reach_their_heights", name, NULL);
        if (!text) skip();
        desc.buffer_count = read_csv(text, buffers, 1000);
        desc.capacity_bytes = rows[k].capacity;
        assert_true(desc.buffer_count > 100);
        assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
        check_layout(&desc, &plan);
        if (plan.height_bytes > rows[k].height || plan.proven != rows[k].proven)
            fail_msg("%c: height %llu, bound %llu", rows[k].name, (ull)plan.height_bytes, (ull)plan.bound_bytes);
        tl_free_layout_plan(NULL, &plan);
        free(text);
    }
}

// -- capacity --

static void a_capacity_is_kept_or_refused(void **state) {
    static tl_layout_buffer buffers[3];
    tl_layout_desc desc = desc_of(buffers, 3, 0);
    tl_layout_plan plan;
    tl_env env = silent_env();
    (void)state;
    buffers[0].bytes = 8;
    buffers[1].bytes = 4;
    buffers[1].last_step = 2;
    buffers[2].bytes = 9;
    buffers[2].first_step = 1;
    buffers[2].last_step = 2;
    desc.capacity_bytes = 13;
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_OK);
    assert_true(plan.height_bytes == 13 && plan.proven);
    tl_free_layout_plan(&env, &plan);
    desc.capacity_bytes = 12;
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_ERROR_INFEASIBLE);
    assert_string_equal(env.error.text, "tl_plan_layout: capacity_bytes: no layout fits; one of 13 bytes was found, none takes less than 13");
    assert_true(plan.height_bytes == 13 && plan.bound_bytes == 13 && !plan.offsets);
    assert_true(env.error.values[0] == 13 && env.error.values[1] == 13);
}

static void no_layout_is_known_where_the_search_ends(void **state) {
    static tl_layout_buffer buffers[300];
    tl_layout_desc desc = desc_of(buffers, 300, 1);
    tl_layout_plan plan;
    tl_env env = silent_env();
    tl_random random = { 8 };
    int proven;
    (void)state;
    do {
        random_buffers(&random, buffers, NULL, 300, 40, 0);
        desc.capacity_bytes = 0;
        assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_OK);
        proven = plan.proven;
        desc.capacity_bytes = plan.bound_bytes;
        tl_free_layout_plan(&env, &plan);
    } while (proven);
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_ERROR_INFEASIBLE);
    assert_non_null(strstr(env.error.text, "capacity_bytes: no layout was found that fits; one of "));
}

// -- progress --

static int count_reports(const tl_layout_progress *now, void *user) {
    int *left = (int *)user;
    assert_true(now->work <= now->work_limit && now->bound_bytes <= now->height_bytes);
    return --*left <= 0;
}

static void progress_stops_with_the_lowest_so_far(void **state) {
    static tl_layout_buffer buffers[200];
    tl_random random = { 11 };
    tl_layout_desc desc = desc_of(buffers, 200, 100000000);
    tl_layout_plan plan;
    int left;
    (void)state;
    if (is_slow()) return;      // searches to their ends
    desc.progress = count_reports;
    desc.user = &left;
    do {    // until one is not proven before progress stops it
        left = 3;
        random_buffers(&random, buffers, NULL, 200, 40, 0);
        assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
        check_layout(&desc, &plan);
        assert_true(plan.work < 8000000 || plan.proven);
        tl_free_layout_plan(NULL, &plan);
    } while (left);
}

// -- bad input --

static void an_error_names_the_buffer_and_the_rule(void **state) {
    static const struct { tl_layout_buffer first, second; uint64_t capacity; tl_result result; const char *text; } rows[] = {
        { { 4, 0, 3, 0, 0, 0, 0, 0, 0, NULL }, { 4, 2, 1, 0, 0, 0, 0, 0, 0, NULL }, 0, TL_ERROR_INVALID_ARG,
          "buffers[1]: first_step must be <= last_step" },
        { { 4, 0, 3, 0, 0, 0, 0, 0, 0, NULL }, { 4, 2, 3, 24, 0, 0, 0, 0, 0, NULL }, 0, TL_ERROR_INVALID_ARG,
          "buffers[1].alignment: must be a power of two" },
        { { 4, 0, 3, 8, 1, 0, 4, 0, 0, NULL }, { 4, 2, 3, 0, 0, 0, 0, 0, 0, NULL }, 0, TL_ERROR_INVALID_ARG,
          "buffers[0].pinned_offset: must be a multiple of the alignment" },
        { { 4, 0, 3, 0, 0, 0, 0, 0, 0, NULL }, { 4, 2, 3, 0, 1, 0, 8, 0, 0, NULL }, 11, TL_ERROR_INVALID_ARG,
          "buffers[1].pinned_offset: the buffer ends above the capacity" },
        { { 4, 0, 3, 0, 0, 0, 0, 0, 0, NULL }, { 4, 2, 3, 0, 1, 0, UINT64_MAX - 1, 0, 0, NULL }, 0, TL_ERROR_INVALID_ARG,
          "buffers[1].pinned_offset: the buffer ends above the capacity" },
        { { 4, 0, 3, 0, 1, 0, 5, 0, 0, NULL }, { 4, 2, 3, 0, 1, 0, 8, 0, 0, NULL }, 0, TL_ERROR_INVALID_ARG,
          "buffers: two that are live at one step are pinned to the same bytes" },
        { { 4, 0, 3, 0, 0, 0, 0, 0, 0, NULL }, { 4, 3, 3, 0, 0, 0, 0, 1, 2, NULL }, 0, TL_ERROR_INVALID_ARG,
          "buffers[1].over: must name another buffer" },
        { { 4, 0, 3, 0, 0, 0, 0, 0, 0, NULL }, { 4, 3, 3, 0, 0, 0, 0, 1, 1, NULL }, 0, TL_ERROR_INVALID_ARG,
          "buffers[1].over: must name another buffer" },
        { { 4, 0, 2, 0, 0, 0, 0, 0, 0, NULL }, { 4, 3, 3, 0, 0, 0, 0, 1, 0, NULL }, 0, TL_ERROR_INVALID_ARG,
          "buffers[1].over: must begin earlier and end at the first step of this one; neither may be empty" },
        { { 4, 0, 3, 0, 0, 0, 0, 0, 0, NULL }, { UINT64_MAX, 2, 3, 0, 0, 0, 0, 0, 0, NULL }, 0, TL_ERROR_OVERFLOW,
          "buffers[1].bytes: all buffers, aligned, must fit 61 bits" },
        { { 4, 0, 3, UINT64_C(1) << 62, 0, 0, 0, 0, 0, NULL }, { 4, 2, 3, 0, 0, 0, 0, 0, 0, NULL }, 0, TL_ERROR_OVERFLOW,
          "buffers[0].bytes: all buffers, aligned, must fit 61 bits" },
    };
    size_t k;
    tl_layout_buffer three[3];
    tl_layout_desc desc;
    tl_layout_plan plan;
    tl_env env = silent_env();
    (void)state;
    for (k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        tl_layout_buffer buffers[2];
        buffers[0] = rows[k].first;
        buffers[1] = rows[k].second;
        desc = desc_of(buffers, 2, 0);
        desc.capacity_bytes = rows[k].capacity;
        memset(&plan, 1, sizeof plan);
        assert_int_equal(tl_plan_layout(&env, &desc, &plan), rows[k].result);
        assert_string_equal(env.error.text + strlen("tl_plan_layout: "), rows[k].text);
        assert_true(is_zero(&plan, sizeof plan));
    }
    memset(three, 0, sizeof three);
    for (k = 0; k < 3; k++) { three[k].bytes = 4; three[k].first_step = k ? 1 : 0; three[k].last_step = 1; three[k].in_place = k > 0; }
    desc = desc_of(three, 3, 0);
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_layout: buffers[2].over: another buffer lies over that one, too");
    desc = desc_of(NULL, 1, 0);
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    desc = desc_of(NULL, -1, 0);
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    desc = desc_of(NULL, 0, 0);
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_OK);
    assert_true(plan.height_bytes == 0 && plan.proven);
    tl_free_layout_plan(&env, &plan);
}

// -- blocks --

// Three buffers of 5 that are live at once take a block of 8 each, whatever lies beside them.
static void large_buffers_take_a_block_each(void **state) {
    static tl_layout_buffer buffers[5];
    tl_layout_desc desc = desc_of(buffers, 5, 1);
    tl_layout_plan plan;
    int32_t i;
    (void)state;
    for (i = 0; i < 5; i++) {
        buffers[i].bytes = i < 3 ? 5 : 3;
        buffers[i].last_step = 4;
    }
    desc.block_bytes = 8;
    assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
    check_layout(&desc, &plan);
    assert_true(plan.height_bytes == 21 && plan.bound_bytes == 21 && plan.proven);
    tl_free_layout_plan(NULL, &plan);
    desc.block_bytes = UINT64_MAX;
    assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
    assert_true(plan.height_bytes == 21 && plan.proven);
    tl_free_layout_plan(NULL, &plan);
}

static void a_buffer_must_fit_a_block(void **state) {
    static const struct { tl_layout_buffer buffer; uint64_t block; tl_result result; const char *text; } rows[] = {
        { { 9, 2, 3, 0, 0, 0, 0, 0, 0, NULL }, 8, TL_ERROR_INFEASIBLE, "buffers[1].bytes: 9 are more than block_bytes" },
        { { 4, 2, 3, 16, 0, 0, 0, 0, 0, NULL }, 24, TL_ERROR_INVALID_ARG, "buffers[1].alignment: must divide block_bytes" },
        { { 4, 2, 3, 0, 1, 0, 5, 0, 0, NULL }, 8, TL_ERROR_INVALID_ARG,
          "buffers[1].pinned_offset: the buffer lies on both sides of a multiple of block_bytes" },
        { { 4, 2, 3, 0, 1, 0, 12, 0, 0, NULL }, 8, TL_OK, "" },
        { { 0, 2, 3, 16, 0, 0, 0, 0, 0, NULL }, 8, TL_OK, "" }
    };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        tl_layout_buffer buffers[2];
        tl_layout_desc desc = desc_of(buffers, 2, 0);
        tl_layout_plan plan;
        tl_env env = silent_env();
        memset(buffers, 0, sizeof buffers);
        buffers[0].bytes = 8;
        buffers[1] = rows[k].buffer;
        desc.block_bytes = rows[k].block;
        memset(&plan, 1, sizeof plan);
        assert_int_equal(tl_plan_layout(&env, &desc, &plan), rows[k].result);
        if (!rows[k].result) { check_layout(&desc, &plan); tl_free_layout_plan(&env, &plan); continue; }
        assert_string_equal(env.error.text + strlen("tl_plan_layout: "), rows[k].text);
        assert_true(is_zero(&plan, sizeof plan));
        if (k == 0) assert_true(env.error.values[0] == 1 && env.error.values[1] == 9);
    }
}

static void gaps_must_lie_in_their_buffer(void **state) {
    static const struct { tl_layout_gap gaps[2]; int32_t count; const char *text; } rows[] = {
        { { { 0, 1, 0, 0 }, { 2, 2, 0, 0 } }, -1, "buffers[0].gap_count: must be >= 0, and gaps not NULL where it is > 0" },
        { { { 2, 1, 0, 0 }, { 2, 2, 0, 0 } }, 1, "buffers[0].gaps: must lie in the lifetime, none reversed, each behind "
                                               "the one before it" },
        { { { -1, 1, 0, 0 }, { 2, 2, 0, 0 } }, 1, "buffers[0].gaps: must lie in the lifetime, none reversed, each behind "
                                                "the one before it" },
        { { { 0, 1, 0, 0 }, { 1, 2, 0, 0 } }, 2, "buffers[0].gaps: must lie in the lifetime, none reversed, each behind "
                                               "the one before it" },
        { { { 0, 1, 0, 0 }, { 2, 5, 0, 0 } }, 2, "buffers[0].gaps: must lie in the lifetime, none reversed, each behind "
                                               "the one before it" },
        { { { 0, 1, 0, 4 }, { 2, 2, 1, 4 } }, 2, "buffers[0].gaps: what a gap leaves must be a part of the bytes" },
        { { { 0, 1, 0, 4 }, { 2, 2, UINT64_MAX, 1 } }, 2, "buffers[0].gaps: what a gap leaves must be a part of the bytes" },
    };
    static tl_layout_buffer buffers[2];
    tl_layout_desc desc = desc_of(buffers, 2, 0);
    tl_layout_plan plan;
    tl_env env = silent_env();
    size_t k;
    (void)state;
    memset(buffers, 0, sizeof buffers);
    buffers[0].bytes = buffers[1].bytes = 4;
    buffers[0].last_step = 4;
    buffers[1].first_step = 4;
    buffers[1].last_step = 5;
    for (k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        buffers[0].gaps = rows[k].gaps;
        buffers[0].gap_count = rows[k].count;
        assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text + strlen("tl_plan_layout: "), rows[k].text);
    }
    buffers[0].gaps = NULL;
    buffers[0].gap_count = 1;
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    buffers[0].gaps = rows[0].gaps;
    buffers[1].in_place = 1;
    assert_int_equal(tl_plan_layout(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_layout: buffers[1].over: neither buffer may have gaps");
}

// At the ends of time a gap has no step beside it.
static void a_buffer_that_is_all_gap_takes_no_place(void **state) {
    static const tl_layout_gap all = { INT64_MIN, INT64_MAX, 0, 0 }, window = { INT64_MIN, INT64_MAX, 3, 1 };
    static tl_layout_buffer buffers[2];
    tl_layout_desc desc = desc_of(buffers, 2, 0);
    tl_layout_plan plan;
    (void)state;
    memset(buffers, 0, sizeof buffers);
    buffers[0].bytes = buffers[1].bytes = 4;
    buffers[0].first_step = INT64_MIN;
    buffers[0].last_step = INT64_MAX;
    buffers[0].gaps = &all;
    buffers[0].gap_count = 1;
    assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
    assert_true(plan.offsets[0] == 0 && plan.offsets[1] == 0 && plan.height_bytes == 4 && plan.proven);
    tl_free_layout_plan(NULL, &plan);
    buffers[0].gaps = &window;      // its last byte can lie on the other buffer
    assert_int_equal(tl_plan_layout(NULL, &desc, &plan), TL_OK);
    assert_true(plan.height_bytes == 5 && plan.proven && plan.offsets[0] + 3 == plan.offsets[1] + 4);
    tl_free_layout_plan(NULL, &plan);
}

static void every_allocation_fails_in_turn(void **state) {
    static tl_layout_buffer buffers[60];
    static tl_layout_gap gaps[60][3];
    tl_random random = { 9 };
    uint64_t block;
    long at;
    (void)state;
    random_buffers(&random, buffers, NULL, 60, 10, 0);
    block = random_block(&random, buffers, 60);
    add_gaps(&random, buffers, 30, gaps, 1);
    for (at = 0;; at++) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, at);
        tl_layout_desc desc = desc_of(buffers, 60, 3000000);
        tl_layout_plan plan;
        tl_result result;
        desc.block_bytes = block;
        result = tl_plan_layout(&env, &desc, &plan);
        if (f.count > at) {
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_true(is_zero(&plan, sizeof plan));
        }
        tl_free_layout_plan(&env, &plan);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 10);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_layouts_are_as_low_as_exhaustive_search_says),
        cmocka_unit_test(small_layouts_in_blocks_are_as_low_as_exhaustive_search_says),
        cmocka_unit_test(a_filled_rectangle_is_never_ruled_out),
        cmocka_unit_test(the_search_has_no_end_at_a_number_of_buffers),
        cmocka_unit_test(a_part_in_which_too_many_meet_is_tried_once),
        cmocka_unit_test(larger_layouts_keep_the_rules),
        cmocka_unit_test(gaps_never_raise_a_layout),
        cmocka_unit_test(nested_lifetimes_are_stacked),
        cmocka_unit_test(a_pin_of_no_bytes_stays),
        cmocka_unit_test(what_cannot_be_searched_is_answered),
        cmocka_unit_test(hundred_thousand_buffers_take_little),
        cmocka_unit_test(public_instances_reach_their_heights),
        cmocka_unit_test(a_capacity_is_kept_or_refused),
        cmocka_unit_test(no_layout_is_known_where_the_search_ends),
        cmocka_unit_test(progress_stops_with_the_lowest_so_far),
        cmocka_unit_test(an_error_names_the_buffer_and_the_rule),
        cmocka_unit_test(large_buffers_take_a_block_each),
        cmocka_unit_test(a_buffer_must_fit_a_block),
        cmocka_unit_test(gaps_must_lie_in_their_buffer),
        cmocka_unit_test(a_buffer_that_is_all_gap_takes_no_place),
        cmocka_unit_test(every_allocation_fails_in_turn),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
