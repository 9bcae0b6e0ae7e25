// [4] LAYOUT, banks: small ones against exhaustive search, large ones against the rules that people write, bad input.
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

enum { MOST = 8, BANKS = 3 };

static tl_bank_desc desc_of(const tl_layout_buffer *buffers, const uint64_t *moved, int32_t count, const tl_bank *banks, int32_t bank_count) {
    tl_bank_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.buffers = buffers;
    desc.moved_bytes = moved;
    desc.buffer_count = count;
    desc.banks = banks;
    desc.bank_count = bank_count;
    return desc;
}

static tl_bank bank_of(uint64_t capacity, uint64_t price) {
    tl_bank bank = { 0, 0, 0 };
    bank.capacity_bytes = capacity;
    bank.price = price;
    return bank;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t alignment_in(const tl_bank_desc *desc, int32_t i, int32_t bank) {
    return larger(larger(desc->buffers[i].alignment, desc->banks[bank].alignment), 1);
}

static uint64_t moved_of(const tl_bank_desc *desc, int32_t i) { return desc->moved_bytes ? desc->moved_bytes[i] : desc->buffers[i].bytes; }

static int may_live(const tl_bank_desc *desc, int32_t i, int32_t bank) {
    return !desc->allowed || !desc->allowed[i] || (desc->allowed[i] >> bank & 1);
}

// Whether two buffers of one bank at these offsets keep the rules.
static int pair_is_valid(const tl_layout_buffer *buffers, int32_t a, uint64_t at, int32_t b, uint64_t bt) {
    const tl_layout_buffer *x = &buffers[a], *y = &buffers[b];
    if (x->first_step > y->last_step || y->first_step > x->last_step || !x->bytes || !y->bytes) return 1;
    if (at >= bt + y->bytes || bt >= at + x->bytes) return 1;
    return at == bt && (lies_over(buffers, a, b) || lies_over(buffers, b, a));
}

// What every plan must hold, checked pair by pair.
static void check_plan(const tl_bank_desc *desc, const tl_bank_plan *plan) {
    uint64_t heights[32] = { 0 }, cost = 0;
    int32_t a, b;
    assert_true(plan->buffer_count == desc->buffer_count && plan->bank_count == desc->bank_count);
    for (a = 0; a < desc->buffer_count; a++) {
        const tl_layout_buffer *x = &desc->buffers[a];
        int32_t bank = plan->banks[a];
        assert_true(bank >= 0 && bank < desc->bank_count && may_live(desc, a, bank));
        cost += moved_of(desc, a) * desc->banks[bank].price;
        if (!x->bytes) { assert_true(plan->offsets[a] == 0); continue; }
        if (plan->offsets[a] % alignment_in(desc, a, bank)) fail_msg("buffer %d: offset %llu", (int)a, (ull)plan->offsets[a]);
        if (x->is_pinned) assert_true(plan->offsets[a] == x->pinned_offset);
        heights[bank] = larger(heights[bank], plan->offsets[a] + x->bytes);
        for (b = 0; b < a; b++)
            if (plan->banks[b] == bank && !pair_is_valid(desc->buffers, a, plan->offsets[a], b, plan->offsets[b]))
                fail_msg("buffers %d and %d overlap in bank %d", (int)a, (int)b, (int)bank);
    }
    for (a = 0; a < desc->bank_count; a++) {
        assert_true(heights[a] == plan->heights[a]);
        assert_true(!desc->banks[a].capacity_bytes || heights[a] <= desc->banks[a].capacity_bytes);
    }
    assert_true(cost == plan->cost && plan->bound_cost <= cost);
    assert_int_equal(plan->proven, plan->bound_cost == cost);
}

// -- exhaustive: every bank for every buffer, and in each bank every offset that a rule lets a buffer rest on --

typedef struct brute {
    const tl_bank_desc *desc;
    uint8_t  known[BANKS][1 << MOST];   // of a set of buffers in a bank: 0 = not known, 1 = fits, 2 = does not
    int32_t  bank;
    uint64_t offsets[MOST];
    uint32_t placed;
} brute;

static int brute_place(brute *b, uint32_t left);

static int brute_try(brute *b, int32_t i, uint64_t offset, uint32_t left) {
    const tl_layout_buffer *buffers = b->desc->buffers;
    uint64_t capacity = b->desc->banks[b->bank].capacity_bytes;
    int32_t k;
    int fits;
    if (offset % alignment_in(b->desc, i, b->bank) || (capacity && offset + buffers[i].bytes > capacity)) return 0;
    for (k = 0; k < b->desc->buffer_count; k++)
        if (b->placed >> k & 1 && !pair_is_valid(buffers, i, offset, k, b->offsets[k])) return 0;
    b->offsets[i] = offset;
    b->placed |= 1u << i;
    fits = brute_place(b, left & ~(1u << i));
    b->placed &= ~(1u << i);
    return fits;
}

// Buffers that are pinned first; the others at 0, at the end of another, or where one of their pair begins.
static int brute_place(brute *b, uint32_t left) {
    const tl_layout_buffer *buffers = b->desc->buffers;
    int32_t i, k;
    if (!left) return 1;
    for (i = 0; i < b->desc->buffer_count; i++)
        if (left >> i & 1 && buffers[i].is_pinned) return brute_try(b, i, buffers[i].pinned_offset, left);
    for (i = 0; i < b->desc->buffer_count; i++) {
        uint64_t a = alignment_in(b->desc, i, b->bank);
        if (!(left >> i & 1)) continue;
        if (brute_try(b, i, 0, left)) return 1;
        for (k = 0; k < b->desc->buffer_count; k++) {
            if (!(b->placed >> k & 1)) continue;
            if (brute_try(b, i, (b->offsets[k] + buffers[k].bytes + a - 1) / a * a, left)) return 1;
            if ((lies_over(buffers, i, k) || lies_over(buffers, k, i)) && brute_try(b, i, b->offsets[k], left)) return 1;
        }
    }
    return 0;
}

static int brute_fits(brute *b, int32_t bank, uint32_t set) {
    int32_t i;
    if (b->known[bank][set]) return b->known[bank][set] == 1;
    for (i = 0; i < b->desc->buffer_count; i++)
        if (set >> i & 1 && !b->desc->buffers[i].bytes) return brute_fits(b, bank, set & ~(1u << i));
    b->bank = bank;
    b->placed = 0;
    b->known[bank][set] = brute_place(b, set) ? 1 : 2;
    return b->known[bank][set] == 1;
}

// The least cost; UINT64_MAX = nothing fits.
static uint64_t brute_cost(const tl_bank_desc *desc) {
    static brute b;
    uint32_t choice, choices = 1;
    uint64_t best = UINT64_MAX;
    int32_t i;
    memset(&b, 0, sizeof b);
    b.desc = desc;
    for (i = 0; i < desc->buffer_count; i++) choices *= (uint32_t)desc->bank_count;
    for (choice = 0; choice < choices; choice++) {
        uint32_t sets[BANKS] = { 0, 0, 0 }, rest = choice;
        uint64_t cost = 0;
        int fits = 1;
        for (i = 0; i < desc->buffer_count; i++, rest /= (uint32_t)desc->bank_count) {
            int32_t bank = (int32_t)(rest % (uint32_t)desc->bank_count);
            sets[bank] |= 1u << i;
            fits &= may_live(desc, i, bank);
            cost += moved_of(desc, i) * desc->banks[bank].price;
        }
        for (i = 0; i < desc->bank_count && fits && cost < best; i++) fits = brute_fits(&b, i, sets[i]);
        if (fits && cost < best) best = cost;
    }
    return best;
}

static uint64_t most_live(const tl_layout_buffer *buffers, int32_t count) {
    uint64_t most = 0, sum;
    int32_t i, k;
    for (i = 0; i < count; i++) {
        for (k = 0, sum = 0; k < count; k++)
            if (buffers[k].first_step <= buffers[i].first_step && buffers[k].last_step >= buffers[i].first_step) sum += buffers[k].bytes;
        most = larger(most, sum);
    }
    return most;
}

// Random banks, dearer ones larger; with `tight` none is without a limit.
static void random_banks(tl_random *random, tl_bank *banks, int32_t count, uint64_t live, int tight, int extras) {
    int32_t k;
    for (k = 0; k < count; k++) {
        banks[k] = bank_of(1 + tl_next_random_below(random, live + live / 2 + 2), (uint64_t)random_count(random, 0, 4 * k + 2));
        if (k == count - 1 && !tight) banks[k].capacity_bytes = 0;
        if (extras && random_chance(random, 30)) banks[k].alignment = (uint64_t)1 << random_count(random, 0, 3);
    }
}

// Whether buffers of different bytes may lie over each other: a box of both wastes some.
static int is_uneven(const tl_layout_buffer *buffers, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++) if (buffers[i].in_place && buffers[i].bytes != buffers[buffers[i].over].bytes) return 1;
    return 0;
}

typedef struct tally { int proven, infeasible, dearer, missed, refused; } tally;

static void compare_with_brute(const tl_bank_desc *desc, int i, tally *t) {
    tl_env env = silent_env();
    tl_bank_plan plan;
    tl_result result = tl_plan_banks(&env, desc, &plan);
    uint64_t best = brute_cost(desc);
    int uneven = is_uneven(desc->buffers, desc->buffer_count);
    if (result) {
        assert_true(is_zero(&plan, sizeof plan));
        if (result == TL_ERROR_INVALID_ARG) t->refused++;
        else if (result != TL_ERROR_INFEASIBLE) fail_msg("%d: %s", i, env.error.text);
        t->infeasible += best == UINT64_MAX;
        t->missed += best != UINT64_MAX;
        if (best != UINT64_MAX && (!uneven || !strstr(env.error.text, "no plan was found"))) fail_msg("%d: %s, but %llu", i, env.error.text, (ull)best);
        return;
    }
    check_plan(desc, &plan);
    if (plan.cost < best || plan.bound_cost > best || (plan.cost > best && !uneven))
        fail_msg("%d: cost %llu, bound %llu, best %llu", i, (ull)plan.cost, (ull)plan.bound_cost, (ull)best);
    t->proven += plan.proven;
    t->dearer += plan.cost > best;
    tl_free_bank_plan(&env, &plan);
}

static void small_banks_cost_what_exhaustive_search_says(void **state) {
    tl_random random = { 14 };
    int i, count = scaled(4000);
    tally t = { 0, 0, 0, 0, 0 };
    (void)state;
    for (i = 0; i < count; i++) {
        static tl_layout_buffer buffers[MOST];
        static uint64_t moved[MOST];
        static uint32_t allowed[MOST];
        tl_bank banks[BANKS];
        int32_t bank_count = i % 3 ? 2 : 3, n = random_count(&random, 1, bank_count == 3 ? 6 : MOST), k;
        tl_bank_desc desc = desc_of(buffers, moved, n, banks, bank_count);
        random_buffers(&random, buffers, moved, n, 6, i % 2);
        random_banks(&random, banks, bank_count, most_live(buffers, n), random_chance(&random, 40), i % 2);
        for (k = 0; k < n; k++) allowed[k] = random_chance(&random, 20) ? 1u << random_count(&random, 0, bank_count - 1) : 0;
        if (i % 4 > 1) desc.allowed = allowed;
        desc.work_limit = 2000000;      // far more than all but few need
        compare_with_brute(&desc, i, &t);
    }
    print_message("%d instances: %d proven, %d infeasible (%d of these refused), %d dearer, %d missed\n", count, t.proven, t.infeasible,
                  t.refused, t.dearer, t.missed);
    assert_true((t.dearer + t.missed) * 500 < count && (t.proven + t.infeasible) * 100 > 98 * count && t.infeasible * 20 > count);
}

// -- larger ones, against the rules that people write --

// The lowest gap of a bank for a buffer, beside those before it in the order. A pair lies apart. UINT64_MAX = none.
static uint64_t lowest_gap(const tl_bank_desc *desc, int32_t i, int32_t bank, const int32_t *order, int32_t before, const int32_t *banks,
                           const uint64_t *offsets, uint64_t *keys, int32_t *items, int32_t *sorted) {
    const tl_layout_buffer *b = &desc->buffers[i];
    uint64_t offset = 0, a = alignment_in(desc, i, bank), capacity = desc->banks[bank].capacity_bytes;
    int32_t j, count = 0;
    if (!may_live(desc, i, bank)) return UINT64_MAX;
    for (j = 0; j < before; j++) {
        const tl_layout_buffer *x = &desc->buffers[order[j]];
        if (banks[order[j]] != bank || x->first_step > b->last_step || x->last_step < b->first_step) continue;
        items[count] = order[j];
        keys[count++] = offsets[order[j]];
    }
    tli_sort_numbers(sorted, count, keys);
    for (j = 0; j < count; j++) {
        uint64_t first = keys[sorted[j]], end = first + desc->buffers[items[sorted[j]]].bytes;
        if (first < offset + b->bytes && end > offset) offset = (end + a - 1) / a * a;
    }
    return capacity && offset + b->bytes > capacity ? UINT64_MAX : offset;
}

// First fit by price: each buffer, as `order` lists them, at the lowest gap of the cheapest bank that has one.
static uint64_t first_fit(const tl_bank_desc *desc, const int32_t *order) {
    size_t n = (size_t)desc->buffer_count;
    int32_t *banks = (int32_t *)malloc(3 * n * sizeof *banks), at, k;
    uint64_t *offsets = (uint64_t *)malloc(2 * n * sizeof *offsets), cost = 0;
    assert_true(banks && offsets);
    for (at = 0; at < desc->buffer_count; at++) {
        int32_t i = order[at];
        uint64_t offset = UINT64_MAX;
        for (k = 0; k < desc->bank_count && offset == UINT64_MAX; k++) {       // the banks of these tests rise in price
            offset = lowest_gap(desc, i, k, order, at, banks, offsets, offsets + n, banks + n, banks + 2 * n);
            if (offset == UINT64_MAX) continue;
            banks[i] = k;
            offsets[i] = offset;
            cost += moved_of(desc, i) * desc->banks[k].price;
        }
        assert_true(offset != UINT64_MAX);
    }
    free(banks);
    free(offsets);
    return cost;
}

static uint64_t least_first_fit(const tl_bank_desc *desc) {
    int32_t n = desc->buffer_count, i;
    int32_t *order = (int32_t *)malloc((size_t)n * sizeof *order);
    uint64_t *keys = (uint64_t *)malloc((size_t)n * sizeof *keys), best = UINT64_MAX, cost;
    int kind;
    assert_true(order && keys);
    for (kind = 0; kind < 3; kind++) {
        for (i = 0; i < n; i++) keys[i] = UINT64_MAX - (kind == 0 ? 0 : kind == 1 ? desc->buffers[i].bytes : moved_of(desc, i));
        tli_sort_numbers(order, n, keys);
        cost = first_fit(desc, order);
        if (cost < best) best = cost;
    }
    free(order);
    free(keys);
    return best;
}

// As in training: what is made early is freed late, and between them there are buffers of a few steps.
static void nested_buffers(tl_random *random, tl_layout_buffer *buffers, uint64_t *moved, int32_t count) {
    int32_t i;
    memset(buffers, 0, (size_t)count * sizeof *buffers);
    for (i = 0; i < count; i++) {
        buffers[i].bytes = 64 * (uint64_t)random_count(random, 1, 64);
        buffers[i].first_step = i / 2;
        buffers[i].last_step = i % 2 ? count - i / 2 : i / 2 + random_count(random, 0, 6);
        if (random_chance(random, 20)) buffers[i].alignment = 256;
        moved[i] = buffers[i].bytes * (uint64_t)random_count(random, 1, 8);
    }
}

static void three_memories(tl_bank *banks, const tl_layout_buffer *buffers, int32_t count, int32_t percent) {
    uint64_t live = most_live(buffers, count);
    banks[0] = bank_of(live * (uint64_t)percent / 400 + 1, 1);
    banks[1] = bank_of(live * (uint64_t)percent / 100 + 1, 3);
    banks[2] = bank_of(0, 20);
}

static void larger_plans_keep_the_rules_and_beat_first_fit(void **state) {
    static const int32_t counts[] = { 50, 200, 1000, 5000 };
    tl_random random = { 15 };
    size_t c;
    int kind, percent;
    (void)state;
    for (c = 0; c < sizeof counts / sizeof counts[0]; c++) for (kind = 0; kind < 3; kind++) for (percent = 20; percent <= 60; percent += 40) {
        int32_t n = counts[c];
        if (!is_soaked() && n > 200 && (percent == 20 || kind != 2)) continue;
        if ((is_slow() && (n > 50 || kind != 2)) || (is_thinned() && (n > 1000 || (n == 200 && percent == 20 && kind != 2)))) continue;
        tl_layout_buffer *buffers = (tl_layout_buffer *)malloc((size_t)n * sizeof *buffers);
        uint64_t *moved = (uint64_t *)malloc((size_t)n * sizeof *moved), rule;
        tl_bank banks[3];
        tl_bank_desc desc = desc_of(buffers, moved, n, banks, 3);
        tl_bank_plan plan, again;
        assert_true(buffers && moved);
        if (kind == 2) nested_buffers(&random, buffers, moved, n);
        else random_buffers(&random, buffers, moved, n, kind ? n / 4 + 2 : n / 20 + 2, 0);
        three_memories(banks, buffers, n, percent);
        assert_int_equal(tl_plan_banks(NULL, &desc, &plan), TL_OK);
        check_plan(&desc, &plan);
        rule = least_first_fit(&desc);
        print_message("%5d buffers, kind %d, %d %%: %.3f of first fit, bound %.3f of the cost\n", (int)n, kind, percent,
                      (double)plan.cost / (double)rule, (double)plan.bound_cost / (double)plan.cost);
        if (plan.cost > rule) fail_msg("cost %llu, first fit %llu", (ull)plan.cost, (ull)rule);
        if (n <= (is_slow() ? 0 : is_thinned() ? 50 : 200)) {
            assert_int_equal(tl_plan_banks(NULL, &desc, &again), TL_OK);
            assert_true(again.work == plan.work && !memcmp(again.offsets, plan.offsets, (size_t)n * sizeof *plan.offsets) &&
                        !memcmp(again.banks, plan.banks, (size_t)n * sizeof *plan.banks));
            tl_free_bank_plan(NULL, &again);
        }
        tl_free_bank_plan(NULL, &plan);
        free(buffers);
        free(moved);
    }
}

static void cost_hardly_ever_rises_with_the_capacity(void **state) {
    tl_random random = { 16 };
    int i, step, rises = 0, steps = 0, count = scaled(30);
    (void)state;
    for (i = 0; i < count; i++) {
        static tl_layout_buffer buffers[60];
        static uint64_t moved[60];
        tl_bank banks[3];
        int32_t n = i % 3 ? random_count(&random, 4, 12) : 60;
        tl_bank_desc desc = desc_of(buffers, moved, n, banks, 3);
        uint64_t before = UINT64_MAX, live;
        random_buffers(&random, buffers, moved, n, n / 3 + 1, i % 2);
        for (step = 0; step < n; step++) buffers[step].is_pinned = 0;
        live = most_live(buffers, n);
        three_memories(banks, buffers, n, 20);
        desc.work_limit = 5000000;
        for (step = 1; step <= 8; step++) {
            tl_bank_plan plan;
            banks[0].capacity_bytes = live * (uint64_t)step / 16 + 1;
            assert_int_equal(tl_plan_banks(NULL, &desc, &plan), TL_OK);
            steps++;
            rises += plan.cost > before;
            if (plan.cost > before && n <= 8) fail_msg("%d: %llu after %llu", i, (ull)plan.cost, (ull)before);
            before = plan.cost;
            tl_free_bank_plan(NULL, &plan);
        }
    }
    print_message("%d of %d costs rose\n", rises, steps);
    assert_true(rises * 50 <= steps);
}

static void hundred_thousand_buffers_take_little(void **state) {
    const int32_t count = is_slow() ? 20000 : 100000;
    tl_layout_buffer *buffers = (tl_layout_buffer *)malloc((size_t)count * sizeof *buffers);
    uint64_t *moved = (uint64_t *)malloc((size_t)count * sizeof *moved);
    tl_random random = { 6 };
    int kind;
    (void)state;
    assert_true(buffers && moved);
    for (kind = 0; kind < (is_slow() ? 1 : 2); kind++) {
        counting_alloc counter = { 0, 0 };
        tl_env env = counting_env(&counter);
        tl_bank banks[3];
        tl_bank_desc desc = desc_of(buffers, moved, count, banks, 3);
        tl_bank_plan plan;
        int32_t i;
        random_buffers(&random, buffers, moved, count, count, 0);
        for (i = 0; i < count && kind; i++) { buffers[i].first_step = i; buffers[i].last_step = count + i; }    // all at once
        banks[0] = bank_of(20, 1);
        banks[1] = bank_of(kind ? 100000 : 30, 4);
        banks[2] = bank_of(0, 9);
        desc.work_limit = 2000 * (uint64_t)count;
        assert_int_equal(tl_plan_banks(&env, &desc, &plan), TL_OK);
        print_message("%.0f bytes a buffer, work %.0f M\n", (double)counter.peak / count, (double)plan.work / 1e6);
        if (counter.peak > (260 + 2 * 100) * (uint64_t)count) fail_msg("%.0f bytes a buffer", (double)counter.peak / count);
        assert_true(plan.work < 2 * desc.work_limit && plan.heights[0] <= 20 && plan.heights[1] <= banks[1].capacity_bytes);
        tl_free_bank_plan(&env, &plan);
        assert_int_equal(counter.live, 0);
    }
    free(buffers);
    free(moved);
}

// -- rules, by hand --

static tl_layout_buffer buffer_of(uint64_t bytes, int64_t first, int64_t last) {
    tl_layout_buffer b;
    memset(&b, 0, sizeof b);
    b.bytes = bytes;
    b.first_step = first;
    b.last_step = last;
    return b;
}

static void a_plan_puts_what_is_moved_most_into_the_cheapest_bank(void **state) {
    static tl_layout_buffer buffers[3];
    static const uint64_t moved[] = { 10, 100, 50 };
    static const uint32_t allowed[] = { 0, 0, 2 };
    static tl_bank banks[2];
    tl_bank_desc desc = desc_of(buffers, moved, 3, banks, 2);
    tl_bank_plan plan;
    int k;
    (void)state;
    for (k = 0; k < 3; k++) buffers[k] = buffer_of(8, 0, 5);
    banks[0] = bank_of(8, 1);
    banks[1] = bank_of(0, 10);
    assert_int_equal(tl_plan_banks(NULL, &desc, &plan), TL_OK);
    assert_true(plan.banks[0] == 1 && plan.banks[1] == 0 && plan.banks[2] == 1 && plan.cost == 700 && plan.proven);
    assert_true(plan.heights[0] == 8 && plan.heights[1] == 16);
    tl_free_bank_plan(NULL, &plan);
    banks[0].capacity_bytes = 16;
    desc.allowed = allowed;                      // the third may not
    assert_int_equal(tl_plan_banks(NULL, &desc, &plan), TL_OK);
    assert_true(!plan.banks[0] && !plan.banks[1] && plan.banks[2] == 1 && plan.cost == 610 && plan.proven);
    tl_free_bank_plan(NULL, &plan);
    desc.moved_bytes = NULL;                     // its bytes, once
    assert_int_equal(tl_plan_banks(NULL, &desc, &plan), TL_OK);
    assert_true(plan.cost == 8 + 8 + 80);
    tl_free_bank_plan(NULL, &plan);
    desc.buffer_count = 0;
    assert_int_equal(tl_plan_banks(NULL, &desc, &plan), TL_OK);
    assert_true(plan.cost == 0 && plan.proven && plan.bank_count == 2 && !plan.heights[0]);
    tl_free_bank_plan(NULL, &plan);
    assert_true(is_zero(&plan, sizeof plan));
}

// Two that are pinned to the same bytes live in two banks; one that lies over another needs no room of its own.
static void pins_and_pairs_decide_who_lives_together(void **state) {
    static tl_layout_buffer buffers[2];
    static const uint64_t moved[] = { 10, 11 };
    static tl_bank banks[2];
    tl_bank_desc desc = desc_of(buffers, moved, 2, banks, 2);
    tl_bank_plan plan;
    (void)state;
    buffers[0] = buffer_of(8, 0, 3);
    buffers[1] = buffer_of(8, 3, 5);
    banks[0] = bank_of(8, 1);
    banks[1] = bank_of(0, 10);
    buffers[1].in_place = 1;                     // over buffer 0
    assert_int_equal(tl_plan_banks(NULL, &desc, &plan), TL_OK);
    assert_true(!plan.banks[0] && !plan.banks[1] && plan.cost == 21);
    tl_free_bank_plan(NULL, &plan);
    buffers[1].in_place = 0;
    banks[0].capacity_bytes = 64;
    buffers[0].is_pinned = buffers[1].is_pinned = 1;
    assert_int_equal(tl_plan_banks(NULL, &desc, &plan), TL_OK);
    assert_true(plan.banks[0] == 1 && plan.banks[1] == 0 && plan.cost == 111 && plan.proven);
    tl_free_bank_plan(NULL, &plan);
}

// -- nothing fits --

static void the_capacity_that_an_error_names_does(void **state) {
    tl_random random = { 17 };
    int i, named = 0, count = scaled(600);
    (void)state;
    for (i = 0; i < count; i++) {
        static tl_layout_buffer buffers[30];
        static uint64_t moved[30];
        static uint32_t allowed[30];
        tl_bank banks[3];
        int32_t n = random_count(&random, 3, i % 20 ? 10 : 30), k;
        tl_bank_desc desc = desc_of(buffers, moved, n, banks, 3);
        tl_env env = silent_env();
        tl_bank_plan plan;
        random_buffers(&random, buffers, moved, n, 3, i % 2);
        for (k = 0; k < n; k++) { buffers[k].is_pinned = 0; allowed[k] = random_chance(&random, i % 60) ? 1u << random_count(&random, 0, 2) : 0; }
        for (k = 0; k < 3; k++) {
            banks[k] = bank_of(larger(most_live(buffers, n) * (uint64_t)random_count(&random, 2, 5) / 12, 30), (uint64_t)k + 1);
            banks[k].alignment = i % 2 ? 4 : 1;
        }
        desc.allowed = allowed;
        desc.work_limit = 3000000;
        if (tl_plan_banks(&env, &desc, &plan) == TL_ERROR_INFEASIBLE && strstr(env.error.text, "banks[")) {
            uint64_t bank = env.error.values[0], would_do = env.error.values[1];
            assert_true(bank < 3 && would_do > banks[bank].capacity_bytes && is_zero(&plan, sizeof plan));
            if (strstr(env.error.text, "in other banks, too")) continue;
            named++;
            banks[bank].capacity_bytes = would_do;
            if (tl_plan_banks(&env, &desc, &plan)) fail_msg("%d: %s", i, env.error.text);
            check_plan(&desc, &plan);
        }
        tl_free_bank_plan(&env, &plan);
    }
    print_message("%d of %d name a capacity\n", named, count);
    assert_true(named * 15 > count);
}

static void an_error_says_which_bank_and_when(void **state) {
    static const uint32_t allowed[] = { 1, 1, 2, 2 };
    static tl_layout_buffer buffers[4];
    static tl_bank banks[2];
    tl_bank_desc desc = desc_of(buffers, NULL, 3, banks, 2);
    tl_bank_plan plan;
    tl_env env = silent_env();
    int k;
    (void)state;
    for (k = 0; k < 3; k++) buffers[k] = buffer_of(8, k - 7, 5 - k);
    banks[0] = bank_of(8, 1);
    banks[1] = bank_of(12, 2);
    assert_int_equal(tl_plan_banks(&env, &desc, &plan), TL_ERROR_INFEASIBLE);
    assert_string_equal(env.error.text, "tl_plan_banks: banks[1].capacity_bytes: too few for any plan; 16 would do, for what is live at step -5");
    assert_true(env.error.values[0] == 1 && env.error.values[1] == 16);
    for (k = 0; k < 3; k++) buffers[k] = buffer_of(8, 0, 0);
    banks[1].capacity_bytes = 8;
    desc.allowed = allowed;                      // two in each bank: neither capacity alone would do
    desc.buffer_count = 4;
    buffers[3] = buffers[0];
    assert_int_equal(tl_plan_banks(&env, &desc, &plan), TL_ERROR_INFEASIBLE);
    assert_string_equal(env.error.text,
                        "tl_plan_banks: banks[1].capacity_bytes: too few, and in other banks, too; 16 would do, for what is live at step 0");
    buffers[2].bytes = 13;
    assert_int_equal(tl_plan_banks(&env, &desc, &plan), TL_ERROR_INFEASIBLE);
    assert_string_equal(env.error.text, "tl_plan_banks: buffers[2].bytes: a bank that it may live in must hold 13");
    assert_true(env.error.values[0] == 2 && env.error.values[1] == 13);
}

// -- bad input --

static void an_error_names_the_field_and_the_rule(void **state) {
    static const struct {
        uint64_t bytes, alignment, pin, moved, capacity, bank_alignment, price;
        uint32_t allowed;
        int32_t bank_count;
        tl_result result;
        const char *text;
    } rows[] = {
        { 4, 0, 0, 4, 8, 0, 1, 0, 0, TL_ERROR_INVALID_ARG, "tl_plan_banks: bank_count: must be 1 to 32, and banks not NULL" },
        { 4, 0, 0, 4, 8, 0, 1, 0, 33, TL_ERROR_INVALID_ARG, "tl_plan_banks: bank_count: must be 1 to 32, and banks not NULL" },
        { 4, 0, 0, 4, 8, 0, 1, 0, -1, TL_ERROR_INVALID_ARG, "tl_plan_banks: bank_count: must be 1 to 32, and banks not NULL" },
        { 4, 0, 0, 4, 8, 3, 1, 0, 2, TL_ERROR_INVALID_ARG, "tl_plan_banks: banks[0].alignment: must be a power of two" },
        { 4, 0, 0, 4, 8, 0, 1, 5, 2, TL_ERROR_INVALID_ARG, "tl_plan_banks: allowed[1]: must name banks below bank_count" },
        { 4, 0, 6, 4, 8, 0, 1, 1, 2, TL_ERROR_INVALID_ARG,
          "tl_plan_banks: buffers[1].pinned_offset: none of its banks has that alignment and capacity" },
        { 4, 0, 1, 4, 0, 8, 1, 1, 2, TL_ERROR_INVALID_ARG,
          "tl_plan_banks: buffers[1].pinned_offset: none of its banks has that alignment and capacity" },
        { 4, 0, 1, 4, 8, 0, 1, 1, 2, TL_ERROR_INVALID_ARG,
          "tl_plan_banks: buffers: two that are live at one step are pinned to the same bytes" },
        { 4, 24, 0, 4, 8, 0, 1, 0, 2, TL_ERROR_INVALID_ARG, "tl_plan_banks: buffers[1].alignment: must be a power of two" },
        { UINT64_C(1) << 61, 0, 0, 4, 0, 0, 1, 0, 2, TL_ERROR_OVERFLOW, "tl_plan_banks: buffers[1].bytes: all buffers, aligned, must fit 61 bits" },
        { 4, 0, 0, 4, 0, UINT64_C(1) << 60, 1, 0, 2, TL_ERROR_OVERFLOW, "tl_plan_banks: buffers[0].bytes: all buffers, aligned, must fit 61 bits" },
        { 4, 0, 0, UINT64_C(1) << 50, 8, 0, 64, 0, 2, TL_ERROR_OVERFLOW,
          "tl_plan_banks: moved_bytes[1]: all buffers, each in its dearest bank, must cost less than 2^56" },
        { 4, 0, 0, UINT64_MAX, 8, 0, UINT64_MAX, 0, 2, TL_ERROR_OVERFLOW,
          "tl_plan_banks: moved_bytes[0]: all buffers, each in its dearest bank, must cost less than 2^56" },
    };
    tl_env env = silent_env();
    tl_bank_plan plan;
    tl_bank_desc desc;
    size_t k;
    (void)state;
    for (k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        tl_layout_buffer buffers[2];
        tl_bank banks[33];
        uint64_t moved[2] = { 4, 0 };
        uint32_t allowed[2] = { 0, 0 };
        memset(banks, 0, sizeof banks);
        buffers[0] = buffers[1] = buffer_of(rows[k].bytes, 0, 3);
        buffers[0].bytes = 4;
        buffers[1].alignment = rows[k].alignment;
        buffers[1].is_pinned = buffers[0].is_pinned = rows[k].pin > 0;
        buffers[1].pinned_offset = rows[k].pin;
        allowed[0] = rows[k].pin == 1 && rows[k].bank_alignment == 0;
        buffers[0].pinned_offset = rows[k].pin > 1 ? 0 : rows[k].pin;
        moved[1] = rows[k].moved;
        allowed[1] = rows[k].allowed;
        banks[0].capacity_bytes = rows[k].capacity;
        banks[0].alignment = rows[k].bank_alignment;
        banks[0].price = rows[k].price;
        desc = desc_of(buffers, moved, 2, banks, rows[k].bank_count);
        desc.allowed = allowed;
        memset(&plan, 1, sizeof plan);
        if (tl_plan_banks(&env, &desc, &plan) != rows[k].result) fail_msg("row %d: %s", (int)k, env.error.text);
        assert_string_equal(env.error.text, rows[k].text);
        assert_true(is_zero(&plan, sizeof plan));
    }
    desc.buffer_count = -1;
    assert_int_equal(tl_plan_banks(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
}

static void a_buffer_with_gaps_lives_in_no_bank(void **state) {
    static const tl_layout_gap gap = { 1, 1, 0, 0 };
    tl_env env = silent_env();
    tl_layout_buffer buffer = buffer_of(4, 0, 3);
    uint64_t moved = 4;
    tl_bank bank;
    tl_bank_desc desc;
    tl_bank_plan plan;
    (void)state;
    memset(&bank, 0, sizeof bank);
    desc = desc_of(&buffer, &moved, 1, &bank, 1);
    assert_int_equal(tl_plan_banks(&env, &desc, &plan), TL_OK);
    tl_free_bank_plan(&env, &plan);
    buffer.gaps = &gap;
    buffer.gap_count = 1;
    assert_int_equal(tl_plan_banks(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_banks: buffers[0].gaps: buffers in banks have none");
}

static void every_allocation_fails_in_turn(void **state) {
    static tl_layout_buffer buffers[40];
    static uint64_t moved[40];
    tl_random random = { 9 };
    long at;
    int tight;
    (void)state;
    random_buffers(&random, buffers, moved, 40, 10, 0);
    for (tight = 0; tight < 2; tight++) for (at = 0;; at = at < 60 ? at + 1 : at + at / 3) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, at);
        tl_bank banks[3];
        tl_bank_desc desc = desc_of(buffers, moved, 40, banks, 3);
        tl_bank_plan plan;
        tl_result result;
        three_memories(banks, buffers, 40, 20);
        if (tight) banks[2].capacity_bytes = banks[1].capacity_bytes;
        desc.work_limit = 500000;
        result = tl_plan_banks(&env, &desc, &plan);
        if (f.count > at) {
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_string_equal(env.error.text, "tl_plan_banks: no memory to choose banks");
        }
        if (result) assert_true(is_zero(&plan, sizeof plan));
        tl_free_bank_plan(&env, &plan);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 20);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_banks_cost_what_exhaustive_search_says),
        cmocka_unit_test(larger_plans_keep_the_rules_and_beat_first_fit),
        cmocka_unit_test(cost_hardly_ever_rises_with_the_capacity),
        cmocka_unit_test(hundred_thousand_buffers_take_little),
        cmocka_unit_test(a_plan_puts_what_is_moved_most_into_the_cheapest_bank),
        cmocka_unit_test(pins_and_pairs_decide_who_lives_together),
        cmocka_unit_test(the_capacity_that_an_error_names_does),
        cmocka_unit_test(an_error_says_which_bank_and_when),
        cmocka_unit_test(an_error_names_the_field_and_the_rule),
        cmocka_unit_test(a_buffer_with_gaps_lives_in_no_bank),
        cmocka_unit_test(every_allocation_fails_in_turn),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
