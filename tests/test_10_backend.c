// [10] BACKEND: blocks, ranges and tickets of the CPU backend in all its variants; codecs bit for bit.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/account_checks.h"

// What the alignment of 64 takes of an allocation that is aligned as a pointer.
#define SLACK (64 - sizeof(void *))

// -- help --

enum { CHECKED = 1, DEFERRED = 2, POOL = 4, VARIANTS = 8 };

static unsigned char pool_bytes[1 << 20];

typedef struct fixture {
    tl_env env;
    failing_alloc alloc;
    tl_cpu_backend_desc desc;
    tl_backend b;
} fixture;

static void open_backend(fixture *f, int variant, uint64_t seed) {
    memset(f, 0, sizeof *f);
    f->env = failing_env(&f->alloc, -1);
    f->desc.checked = (variant & CHECKED) != 0;
    f->desc.deferred = (variant & DEFERRED) != 0;
    if (variant & POOL) { f->desc.memory = pool_bytes; f->desc.memory_bytes = sizeof pool_bytes; }
    f->desc.seed = seed;
    assert_int_equal(tl_init_cpu_backend(&f->env, &f->desc, &f->b), TL_OK);
}

static void close_backend(fixture *f) {
    assert_int_equal(tl_free_cpu_backend(&f->env, &f->b), TL_OK);
    assert_int_equal(f->alloc.live, 0);
    assert_null(f->b.self);
}

static tl_range range_of(uint64_t block, uint64_t offset, uint64_t bytes) {
    tl_range range;
    range.block = block; range.offset = offset; range.bytes = bytes;
    return range;
}

static uint64_t new_block(fixture *f, tl_tier tier, uint64_t bytes) {
    uint64_t block = 0;
    assert_int_equal(f->b.add_block(f->b.self, tier, bytes, &block), TL_OK);
    assert_true(block != 0);
    return block;
}

static tl_ticket submit(fixture *f) {
    tl_ticket ticket;
    assert_int_equal(f->b.submit(f->b.self, &ticket), TL_OK);
    return ticket;
}

static tl_result order_one(fixture *f, tl_range range, int writes) {
    tl_access access;
    access.range = range; access.writes = writes;
    return f->b.order(f->b.self, &access, 1);
}

static void write_range(fixture *f, tl_range range, const void *bytes) {
    void *host;
    assert_int_equal(order_one(f, range, 1), TL_OK);
    assert_int_equal(f->b.map(f->b.self, range, TL_MAP_WRITE, &host), TL_OK);
    memcpy(host, bytes, (size_t)range.bytes);
    assert_int_equal(f->b.unmap(f->b.self, range, TL_MAP_WRITE, host), TL_OK);
}

static void read_range(fixture *f, tl_range range, void *bytes) {
    void *host;
    assert_int_equal(order_one(f, range, 0), TL_OK);
    assert_int_equal(f->b.map(f->b.self, range, TL_MAP_READ, &host), TL_OK);
    memcpy(bytes, host, (size_t)range.bytes);
    assert_int_equal(f->b.unmap(f->b.self, range, TL_MAP_READ, host), TL_OK);
}

static tl_backend_counters counters_of(fixture *f) {
    tl_backend_counters counters;
    f->b.counters(f->b.self, &counters);
    return counters;
}

// -- blocks and handles --

static void a_block_holds_what_is_written(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f;
        uint64_t block;
        unsigned char in[300], out[300];
        int i;
        open_backend(&f, variant, 1);
        block = new_block(&f, TL_TIER_DEVICE, 1000);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 128, 300)), TL_OK);
        for (i = 0; i < 300; i++) in[i] = (unsigned char)(i * 7);
        write_range(&f, range_of(block, 128, 300), in);
        read_range(&f, range_of(block, 128, 300), out);
        assert_memory_equal(in, out, 300);
        assert_int_equal(f.b.check(f.b.self), TL_OK);
        assert_int_equal(f.b.release(f.b.self, range_of(block, 128, 300)), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
        close_backend(&f);
    }
}

static void stale_foreign_and_made_up_handles_are_refused(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f, other;
        uint64_t block, again, foreign;
        void *host;
        open_backend(&f, variant, 1);
        open_backend(&other, variant & ~POOL, 1);
        block = new_block(&f, TL_TIER_DEVICE, 64);
        foreign = new_block(&other, TL_TIER_DEVICE, 64);
        assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, block), TL_ERROR_STALE);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 8)), TL_ERROR_STALE);
        again = new_block(&f, TL_TIER_DEVICE, 64);
        assert_true(again != block);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 8)), TL_ERROR_STALE);
        assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 8)), TL_ERROR_STALE);
        assert_int_equal(f.b.map(f.b.self, range_of(block, 0, 8), TL_MAP_READ, &host), TL_ERROR_STALE);
        assert_null(host);
        assert_int_equal(f.b.unmap(f.b.self, range_of(block, 0, 8), TL_MAP_READ, pool_bytes), TL_ERROR_STALE);
        assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 8), 0), TL_ERROR_STALE);
        assert_int_equal(order_one(&f, range_of(block, 0, 8), 0), TL_ERROR_STALE);
        assert_int_equal(f.b.claim(f.b.self, range_of(foreign, 0, 8)), TL_ERROR_STALE);
        assert_int_equal(f.b.claim(f.b.self, range_of(0, 0, 8)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.claim(f.b.self, range_of(again + 1, 0, 8)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.claim(f.b.self, range_of(UINT64_MAX, 0, 8)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.free_block(f.b.self, 0), TL_ERROR_INVALID_ARG);
        close_backend(&f);
        close_backend(&other);
    }
}

static void zero_bytes_are_legal_everywhere(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f;
        tl_range none = range_of(0, 0, 0);
        uint64_t block;
        void *host = &f;
        open_backend(&f, variant, 1);
        assert_int_equal(f.b.claim(f.b.self, none), TL_OK);
        assert_int_equal(f.b.copy(f.b.self, none, none), TL_OK);
        assert_int_equal(f.b.compress(f.b.self, TL_CODEC_Q8, none, none), TL_OK);
        assert_int_equal(f.b.expand(f.b.self, TL_CODEC_F16, none, none), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, none, 5), TL_OK);
        assert_int_equal(order_one(&f, none, 1), TL_OK);
        assert_int_equal(f.b.map(f.b.self, none, TL_MAP_CHANGE, &host), TL_OK);
        assert_null(host);
        assert_int_equal(f.b.unmap(f.b.self, none, TL_MAP_CHANGE, host), TL_OK);
        assert_int_equal(f.b.release(f.b.self, none), TL_OK);
        block = new_block(&f, TL_TIER_HOST, 0);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 0)), TL_OK);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 1)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
        assert_int_equal(counters_of(&f).claim_count[TL_TIER_HOST], 0);
        close_backend(&f);
    }
}

static void ranges_stay_in_their_block_and_on_the_alignment(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f;
        uint64_t block, other;
        open_backend(&f, variant, 1);
        block = new_block(&f, TL_TIER_DEVICE, 256);
        other = new_block(&f, TL_TIER_DEVICE, 256);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 257)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 193)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, UINT64_MAX - 63, 64)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, UINT64_MAX)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 32, 8)), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(f.env.error.text, "claim: range: offset"));
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 192)), TL_OK);
        assert_int_equal(f.b.claim(f.b.self, range_of(other, 0, 256)), TL_OK);
        assert_int_equal(f.b.copy(f.b.self, range_of(block, 64, 64), range_of(other, 0, 128)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.copy(f.b.self, range_of(block, 64, 128), range_of(block, 128, 128)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.copy(f.b.self, range_of(block, 64, 64), range_of(block, 128, 64)), TL_OK);
        assert_int_equal(f.b.compress(f.b.self, TL_CODEC_F16, range_of(block, 64, 64), range_of(other, 0, 128)), TL_OK);
        assert_int_equal(f.b.compress(f.b.self, TL_CODEC_F16, range_of(block, 64, 65), range_of(other, 0, 128)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.compress(f.b.self, TL_CODEC_NONE, range_of(block, 64, 64), range_of(other, 0, 64)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.expand(f.b.self, TL_CODEC_COUNT, range_of(block, 64, 64), range_of(other, 0, 64)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.expand(f.b.self, TL_CODEC_BF16, range_of(block, 64, 128), range_of(other, 0, 64)), TL_OK);
        assert_int_equal(f.b.add_block(f.b.self, TL_TIER_COUNT, 8, &other), TL_ERROR_INVALID_ARG);
        assert_true(other == 0);
        assert_int_equal(f.b.add_block(f.b.self, TL_TIER_DEVICE, UINT64_MAX, &other), TL_ERROR_NO_MEMORY);
        assert_int_equal(f.b.add_block(f.b.self, TL_TIER_HOST, UINT64_MAX - 200, &other), TL_ERROR_NO_MEMORY);
        close_backend(&f);
    }
}

static void a_block_with_claims_cannot_be_freed(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f;
        uint64_t block;
        tl_ticket none = {0}, never = {99};
        open_backend(&f, variant, 1);
        block = new_block(&f, TL_TIER_DEVICE, 256);
        assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 8)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 8)), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, block), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 16)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 8)), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
        assert_int_equal(f.b.poll(f.b.self, never), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.wait(f.b.self, never), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.poll(f.b.self, none), TL_OK);
        assert_int_equal(f.b.wait(f.b.self, none), TL_OK);
        close_backend(&f);
    }
}

static void fill_writes_words_and_cuts_the_tail(void **state) {
    static const uint32_t word = 0x11223344u;
    unsigned char expected[7];
    int variant;
    (void)state;
    memcpy(expected, &word, 4);
    memcpy(expected + 4, &word, 3);
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f;
        uint64_t block;
        unsigned char out[64];
        open_backend(&f, variant, 1);
        block = new_block(&f, TL_TIER_DEVICE, 64);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 64)), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 64), 0x55555555u), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 7), word), TL_OK);
        read_range(&f, range_of(block, 0, 64), out);
        assert_memory_equal(out, expected, 7);
        assert_int_equal(out[7], 0x55);
        assert_int_equal(out[63], 0x55);
        close_backend(&f);
    }
}

// -- counters, capacity, limits --

static void counters_are_exact(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f;
        uint64_t block, host;
        tl_backend_counters c;
        open_backend(&f, variant, 1);
        block = new_block(&f, TL_TIER_DEVICE, 1000);
        host = new_block(&f, TL_TIER_HOST, 500);
        c = counters_of(&f);
        assert_int_equal(c.added_count, 2);
        assert_int_equal(c.block_count[TL_TIER_DEVICE], 1);
        assert_int_equal(c.live_bytes[TL_TIER_DEVICE], 0);
        assert_int_equal(c.reserved_bytes[TL_TIER_DEVICE], (variant & POOL ? 0 : SLACK) + (variant & CHECKED ? 1024 + 128 : 1024));
        assert_int_equal(c.reserved_bytes[TL_TIER_HOST], SLACK + (variant & CHECKED ? 512 + 128 : 512));
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 101)), TL_OK);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 192, 200)), TL_OK);
        assert_int_equal(f.b.claim(f.b.self, range_of(host, 448, 50)), TL_OK);
        assert_int_equal(f.b.release(f.b.self, range_of(block, 192, 200)), TL_OK);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 128, 99)), TL_OK);
        c = counters_of(&f);
        assert_int_equal(c.live_bytes[TL_TIER_DEVICE], 200);
        assert_int_equal(c.peak_bytes[TL_TIER_DEVICE], 301);
        assert_int_equal(c.live_bytes[TL_TIER_HOST], 50);
        assert_int_equal(c.claim_count[TL_TIER_DEVICE], 2);
        assert_int_equal(c.arena_bytes, 448);  // 192 + 200 = 392, aligned; host blocks do not count
        f.b.reset_peaks(f.b.self);
        c = counters_of(&f);
        assert_int_equal(c.peak_bytes[TL_TIER_DEVICE], 200);
        assert_int_equal(c.arena_bytes, 0);
        assert_int_equal(f.b.copy(f.b.self, range_of(host, 448, 50), range_of(block, 0, 50)), TL_OK);
        assert_int_equal(f.b.compress(f.b.self, TL_CODEC_F16, range_of(block, 128, 50), range_of(block, 0, 99)), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 50), 1), TL_OK);
        assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
        assert_int_equal(f.b.poll(f.b.self, submit(&f)), TL_OK);
        c = counters_of(&f);
        assert_int_equal(c.copy_count, 1);
        assert_int_equal(c.convert_count, 1);
        assert_int_equal(c.fill_count, 1);
        assert_int_equal(c.copied_bytes, 149);
        assert_int_equal(c.submit_count, 2);
        assert_int_equal(c.wait_count, 1);
        assert_int_equal(c.poll_count, 1);
        assert_int_equal(f.b.release(f.b.self, range_of(host, 448, 50)), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, host), TL_OK);
        c = counters_of(&f);
        assert_int_equal(c.block_count[TL_TIER_HOST], 0);
        assert_int_equal(c.reserved_bytes[TL_TIER_HOST], 0);
        close_backend(&f);
    }
}

static void capacity_holds_exactly_its_bytes(void **state) {
    fixture f;
    tl_backend_limits limits;
    uint64_t block;
    (void)state;
    memset(&f, 0, sizeof f);
    f.env = failing_env(&f.alloc, -1);
    f.desc.capacity_bytes[TL_TIER_DEVICE] = 1000;
    assert_int_equal(tl_init_cpu_backend(&f.env, &f.desc, &f.b), TL_OK);
    block = new_block(&f, TL_TIER_DEVICE, 4096);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 1001)), TL_ERROR_NO_MEMORY);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 600)), TL_OK);
    f.b.limits(f.b.self, &limits);
    assert_int_equal(limits.capacity_bytes[TL_TIER_DEVICE], 1000);
    assert_int_equal(limits.budget_bytes[TL_TIER_DEVICE], 400);
    assert_true(limits.budget_bytes[TL_TIER_HOST] == TL_UNLIMITED);
    assert_int_equal(limits.alignment_bytes, 64);
    assert_int_equal(limits.host_visible, 1);
    assert_true(limits.codecs >> TL_CODEC_Q8 & 1u);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 640, 401)), TL_ERROR_NO_MEMORY);
    assert_int_equal(counters_of(&f).live_bytes[TL_TIER_DEVICE], 600);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 640, 400)), TL_OK);
    close_backend(&f);
}

static void the_callers_block_fits_exactly(void **state) {
    static union { uint64_t align; unsigned char bytes[1024 + 63]; } memory;
    fixture f;
    uint64_t block, second;
    tl_backend_limits limits;
    (void)state;
    memset(&f, 0, sizeof f);
    f.env = failing_env(&f.alloc, -1);
    f.desc.memory = memory.bytes;
    f.desc.memory_bytes = sizeof memory.bytes;
    assert_int_equal(tl_init_cpu_backend(&f.env, &f.desc, &f.b), TL_OK);
    f.b.limits(f.b.self, &limits);
    assert_int_equal(limits.capacity_bytes[TL_TIER_DEVICE], 1024);
    assert_int_equal(f.b.add_block(f.b.self, TL_TIER_DEVICE, 1025, &block), TL_ERROR_NO_MEMORY);
    block = new_block(&f, TL_TIER_DEVICE, 1024);
    f.b.limits(f.b.self, &limits);
    assert_int_equal(limits.budget_bytes[TL_TIER_DEVICE], 0);
    assert_int_equal(f.b.add_block(f.b.self, TL_TIER_DEVICE, 1, &second), TL_ERROR_NO_MEMORY);
    assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
    block = new_block(&f, TL_TIER_DEVICE, 512);
    second = new_block(&f, TL_TIER_DEVICE, 512);
    assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
    assert_int_equal(f.b.add_block(f.b.self, TL_TIER_DEVICE, 513, &block), TL_ERROR_NO_MEMORY);
    assert_int_equal(f.b.free_block(f.b.self, second), TL_OK);
    (void)new_block(&f, TL_TIER_DEVICE, 1000);
    close_backend(&f);
}

static void a_desc_that_breaks_a_rule_is_refused(void **state) {
    tl_env env;
    tl_cpu_backend_desc desc;
    tl_backend b;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.alignment_bytes = 48;
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &b), TL_ERROR_INVALID_ARG);
    assert_null(b.self);
    assert_null(b.add_block);
    desc.alignment_bytes = 0;
    desc.memory_bytes = 64;
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &b), TL_ERROR_INVALID_ARG);
    desc.memory = pool_bytes + 1;
    desc.memory_bytes = 64;
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &b), TL_ERROR_INVALID_ARG);
    desc.memory_bytes = UINT64_MAX;
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &b), TL_ERROR_INVALID_ARG);
    tl_free_cpu_backend(&env, &b);
    tl_free_cpu_backend(&env, NULL);
    assert_int_equal(tl_init_cpu_backend(NULL, (desc.memory_bytes = 4096, &desc), &b), TL_OK);
    tl_free_cpu_backend(NULL, &b);
}

static uint64_t fake_now(void *user) { return *(uint64_t *)user; }

static void the_clock_is_the_callers(void **state) {
    tl_cpu_backend_desc desc;
    tl_backend b;
    uint64_t time = 42, before;
    int i;
    (void)state;
    memset(&desc, 0, sizeof desc);
    assert_int_equal(tl_init_cpu_backend(NULL, &desc, &b), TL_OK);    // that of the system
    before = b.now_ns(b.self);
    assert_true(before > 0);
    for (i = 0; i < 100; i++) {
        uint64_t now = b.now_ns(b.self);
        assert_true(now >= before && now - before < UINT64_C(3600000000000));
        before = now;
    }
    tl_free_cpu_backend(NULL, &b);
    desc.now_ns = fake_now;
    desc.user = &time;
    assert_int_equal(tl_init_cpu_backend(NULL, &desc, &b), TL_OK);
    assert_int_equal(b.now_ns(b.self), 42);
    tl_free_cpu_backend(NULL, &b);
}

// -- placement --

typedef struct held_block { uint64_t block, bytes; unsigned char mark; } held_block;

static void a_fragmentation_storm_keeps_every_byte(void **state) {
    static held_block held[600];
    int variant;
    (void)state;
    for (variant = POOL; variant <= (POOL | CHECKED); variant++) {
        fixture f;
        tl_random random = {7};
        tl_backend_limits limits;
        long round, refused = 0;
        int count = 0, i;
        uint64_t block;
        open_backend(&f, variant, 1);
        for (round = 0; round < 40000; round++) {
            int grow = tl_next_random_below(&random, 100) < (round / 5000 % 2 ? 45u : 55u);
            if (grow && count < 600) {
                uint64_t bytes = 1 + tl_next_random_below(&random, 1 + tl_next_random_below(&random, 20000));
                void *host;
                if (f.b.add_block(f.b.self, TL_TIER_DEVICE, bytes, &block)) { refused++; continue; }
                held[count].block = block;
                held[count].bytes = bytes;
                held[count].mark = (unsigned char)round;
                assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, bytes)), TL_OK);
                assert_int_equal(f.b.map(f.b.self, range_of(block, 0, bytes), TL_MAP_CHANGE, &host), TL_OK);
                memset(host, (int)held[count].mark, (size_t)bytes);
                assert_int_equal(f.b.unmap(f.b.self, range_of(block, 0, bytes), TL_MAP_CHANGE, host), TL_OK);
                count++;
            } else if (count) {
                int at = (int)tl_next_random_below(&random, (uint64_t)count);
                tl_range whole = range_of(held[at].block, 0, held[at].bytes);
                uint64_t k;
                void *host;
                assert_int_equal(f.b.map(f.b.self, whole, TL_MAP_READ, &host), TL_OK);
                for (k = 0; k < whole.bytes; k++)
                    if (((unsigned char *)host)[k] != held[at].mark) fail_msg("byte %lu of a block changed", (unsigned long)k);
                assert_int_equal(f.b.unmap(f.b.self, whole, TL_MAP_READ, host), TL_OK);
                assert_int_equal(f.b.release(f.b.self, whole), TL_OK);
                assert_int_equal(f.b.free_block(f.b.self, held[at].block), TL_OK);
                held[at] = held[--count];
            }
        }
        assert_true(refused > 100);  // the memory was full at times
        for (i = 0; i < count; i++) {
            assert_int_equal(f.b.release(f.b.self, range_of(held[i].block, 0, held[i].bytes)), TL_OK);
            assert_int_equal(f.b.free_block(f.b.self, held[i].block), TL_OK);
        }
        f.b.limits(f.b.self, &limits);  // all free pieces were joined: one block of everything fits
        assert_int_equal(limits.budget_bytes[TL_TIER_DEVICE], limits.capacity_bytes[TL_TIER_DEVICE]);
        block = new_block(&f, TL_TIER_DEVICE, limits.capacity_bytes[TL_TIER_DEVICE] - (variant & CHECKED ? 128 : 0));
        assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
        close_backend(&f);
    }
}

static void blocks_of_the_callers_memory_never_overlap_and_stay_inside(void **state) {
    fixture f;
    tl_random random = {3};
    uint64_t blocks[200];
    char *starts[200];
    uint64_t sizes[200];
    int i, j;
    (void)state;
    open_backend(&f, POOL, 1);
    for (i = 0; i < 200; i++) {
        void *host;
        sizes[i] = 1 + tl_next_random_below(&random, 4000);
        blocks[i] = new_block(&f, TL_TIER_DEVICE, sizes[i]);
        assert_int_equal(f.b.claim(f.b.self, range_of(blocks[i], 0, sizes[i])), TL_OK);
        assert_int_equal(f.b.map(f.b.self, range_of(blocks[i], 0, sizes[i]), TL_MAP_READ, &host), TL_OK);
        starts[i] = (char *)host;
        assert_int_equal((uintptr_t)host % 64, 0);
        assert_true((unsigned char *)host >= pool_bytes && (unsigned char *)host + sizes[i] <= pool_bytes + sizeof pool_bytes);
        for (j = 0; j < i; j++) assert_true(starts[j] + sizes[j] <= starts[i] || starts[i] + sizes[i] <= starts[j]);
    }
    close_backend(&f);
}

// -- heaps --

enum { HEAP_UNITS = 256, HEAP_PIECES = 64 };

// Longest run of free bytes of the map.
static size_t largest_gap(const unsigned char *taken, size_t count, size_t *free_units) {
    size_t i, run = 0, largest = 0;
    *free_units = 0;
    for (i = 0; i < count; i++) {
        run = taken[i] ? 0 : run + 1;
        *free_units += !taken[i];
        if (run > largest) largest = run;
    }
    return largest;
}

// Every piece lies where the map says it is free; what is reported is what the map counts.
static void pieces_of_a_heap_agree_with_a_map_of_its_bytes(void **state) {
    static const size_t alignments[] = { 0, 1, 16, 256 };
    int which, round;
    (void)state;
    for (which = 0; which < 4; which++) {
        size_t unit = alignments[which] ? alignments[which] : 1, offsets[HEAP_PIECES], units[HEAP_PIECES];
        int32_t ids[HEAP_PIECES];
        unsigned char taken[HEAP_UNITS];
        tl_random random = {(uint64_t)which};
        tl_heap *heap;
        memset(ids, 0, sizeof ids);
        memset(taken, 0, sizeof taken);
        assert_int_equal(tl_init_heap(NULL, HEAP_UNITS * unit + unit - 1, alignments[which], &heap), TL_OK);
        for (round = 0; round < 20000; round++) {
            int at = (int)tl_next_random_below(&random, HEAP_PIECES);
            size_t bytes = 1 + (size_t)tl_next_random_below(&random, (round / 1000 % 2 ? 8 : 80) * unit), whole, largest;
            size_t free_units, reported, reported_largest;
            if (ids[at]) {
                memset(taken + offsets[at] / unit, 0, units[at]);
                tl_free_block(heap, ids[at]);
            }
            whole = (bytes + unit - 1) / unit;
            largest = largest_gap(taken, HEAP_UNITS, &free_units);
            tl_measure_heap(heap, &reported, &reported_largest);
            assert_int_equal(reported, free_units * unit);
            assert_int_equal(reported_largest, largest * unit);
            assert_int_equal(tl_add_block(heap, bytes, &offsets[at], &ids[at]),
                             whole <= largest ? TL_OK : TL_ERROR_NO_MEMORY);
            if (whole > largest) {
                assert_int_equal(ids[at], 0);
                assert_int_equal(offsets[at], 0);
                continue;
            }
            assert_true(ids[at] > 0);
            units[at] = whole;
            assert_int_equal(offsets[at] % unit, 0);
            assert_true(offsets[at] / unit + whole <= HEAP_UNITS);
            assert_null(memchr(taken + offsets[at] / unit, 1, whole));
            memset(taken + offsets[at] / unit, 1, whole);
        }
        for (round = 0; round < HEAP_PIECES; round++) tl_free_block(heap, ids[round]);
        tl_measure_heap(heap, NULL, &offsets[0]);
        assert_int_equal(offsets[0], HEAP_UNITS * unit);  // all were joined again
        tl_free_heap(heap);
    }
}

static void a_heap_refuses_what_has_no_place(void **state) {
    static const char *const texts[] = {
        "tl_init_heap: alignment: not a power of two", "tl_init_heap: bytes: fewer than one aligned piece",
    };
    size_t offset = 7, free_bytes, largest;
    int32_t piece = 7, first;
    tl_heap *heap;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(tl_init_heap(&env, 64, 3, &heap), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, texts[0]);
    assert_null(heap);
    assert_int_equal(tl_init_heap(&env, 15, 16, &heap), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, texts[1]);
    assert_int_equal(tl_init_heap(&env, 0, 0, &heap), TL_ERROR_INVALID_ARG);
    assert_null(heap);
    tl_free_heap(NULL);
    assert_int_equal(tl_init_heap(&env, 64, 16, &heap), TL_OK);
    assert_int_equal(tl_add_block(heap, 0, &offset, &piece), TL_ERROR_INVALID_ARG);
    assert_int_equal(offset + (size_t)piece, 0);
    assert_int_equal(tl_add_block(heap, 65, &offset, &piece), TL_ERROR_NO_MEMORY);
    assert_string_equal(env.error.text, "tl_add_block: bytes: no place for so many");
    assert_int_equal(tl_add_block(heap, SIZE_MAX, &offset, &piece), TL_ERROR_NO_MEMORY);
    assert_int_equal(tl_add_block(heap, 49, &offset, &first), TL_OK);
    assert_int_equal(tl_add_block(heap, 1, &offset, &piece), TL_ERROR_NO_MEMORY);
    tl_measure_heap(heap, &free_bytes, &largest);
    assert_int_equal(free_bytes + largest, 0);
    tl_free_block(heap, 0);                       // none of these is a piece
    tl_free_block(heap, -1);
    tl_free_block(heap, first + 1);
    tl_free_block(heap, INT32_MAX);
    tl_free_block(heap, first);
    tl_free_block(heap, first);                   // no longer
    tl_measure_heap(heap, &free_bytes, &largest);
    assert_int_equal(free_bytes, 64);
    assert_int_equal(largest, 64);
    tl_free_heap(heap);
}

// A record that was joined with its neighbour stands for no piece, though its id is in the table.
static void an_id_of_a_joined_place_is_passed_over(void **state) {
    size_t offset, free_bytes;
    int32_t a, b, c;
    tl_heap *heap;
    (void)state;
    assert_int_equal(tl_init_heap(NULL, 96, 32, &heap), TL_OK);
    assert_int_equal(tl_add_block(heap, 32, &offset, &a), TL_OK);
    assert_int_equal(tl_add_block(heap, 32, &offset, &b), TL_OK);
    assert_int_equal(tl_add_block(heap, 32, &offset, &c), TL_OK);
    tl_free_block(heap, a);
    tl_free_block(heap, b);  // joined with a
    tl_free_block(heap, b);
    tl_free_block(heap, a);
    tl_measure_heap(heap, &free_bytes, NULL);
    assert_int_equal(free_bytes, 64);
    assert_int_equal(tl_add_block(heap, 64, &offset, &a), TL_OK);
    assert_int_equal(offset, 0);
    tl_free_heap(heap);
}

static void a_heap_survives_every_allocation_failing(void **state) {
    long at;
    (void)state;
    for (at = 0; ; at++) {
        failing_alloc f;
        tl_env env;
        tl_heap *heap;
        size_t offset, free_bytes, expected = 4096;
        int32_t ids[64], i;
        tl_result result;
        memset(&f, 0, sizeof f);
        env = failing_env(&f, at);
        f.fails_once = 1;
        result = tl_init_heap(&env, 4096, 16, &heap);
        if (result) {
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_null(heap);
        }
        for (i = 0; heap && i < 64; i++) {
            result = tl_add_block(heap, 16, &offset, &ids[i]);
            if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
            else expected -= 16;
            tl_measure_heap(heap, &free_bytes, NULL);
            assert_int_equal(free_bytes, expected);
        }
        for (i = 0; heap && i < 64; i++) tl_free_block(heap, ids[i]);
        if (heap) tl_measure_heap(heap, NULL, &free_bytes);
        if (heap) assert_int_equal(free_bytes, 4096);
        tl_free_heap(heap);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 4);
}

static void a_hundred_thousand_blocks_can_live(void **state) {
    enum { COUNT = 100000 };
    uint64_t *blocks = (uint64_t *)calloc(COUNT, sizeof *blocks);
    unsigned char *memory = (unsigned char *)malloc((size_t)COUNT * 64 + 64);
    fixture f;
    tl_random random = {5};
    int i, round;
    (void)state;
    assert_non_null(blocks);
    assert_non_null(memory);
    memset(&f, 0, sizeof f);
    f.env = failing_env(&f.alloc, -1);
    f.desc.memory = memory;
    f.desc.memory_bytes = (size_t)COUNT * 64 + 64;
    assert_int_equal(tl_init_cpu_backend(&f.env, &f.desc, &f.b), TL_OK);
    for (i = 0; i < COUNT; i++) blocks[i] = new_block(&f, TL_TIER_DEVICE, 1 + (uint64_t)i % 64);
    for (round = 0; round < 3 * COUNT; round++) {
        int at = (int)tl_next_random_below(&random, COUNT);
        assert_int_equal(f.b.free_block(f.b.self, blocks[at]), TL_OK);
        blocks[at] = new_block(&f, TL_TIER_DEVICE, 64);
    }
    for (i = 0; i < COUNT; i++) assert_int_equal(f.b.free_block(f.b.self, blocks[i]), TL_OK);
    assert_int_equal(counters_of(&f).reserved_bytes[TL_TIER_DEVICE], 0);
    (void)new_block(&f, TL_TIER_DEVICE, (uint64_t)COUNT * 64 - 64);
    close_backend(&f);
    free(memory);
    free(blocks);
}

static void the_callers_block_takes_no_bytes_from_the_env(void **state) {
    fixture f;
    uint64_t block;
    long count;
    int i;
    (void)state;
    open_backend(&f, POOL, 1);
    block = new_block(&f, TL_TIER_DEVICE, 1000);
    assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
    count = f.alloc.count;
    for (i = 0; i < 1000; i++) {
        block = new_block(&f, TL_TIER_DEVICE, 1000 + (uint64_t)i);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 1000)), TL_OK);
        assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 1000)), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
    }
    assert_int_equal(f.alloc.count, count);
    close_backend(&f);
}

// -- checked: poison, guards, mappings --

static void claimed_bytes_start_as_nan(void **state) {
    int variant;
    (void)state;
    for (variant = CHECKED; variant < VARIANTS; variant += 2) {
        fixture f;
        uint64_t block;
        unsigned char bytes[12];
        float value;
        int i;
        open_backend(&f, variant, 1);
        block = new_block(&f, TL_TIER_DEVICE, 12);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 12)), TL_OK);
        read_range(&f, range_of(block, 0, 12), bytes);
        for (i = 0; i < 12; i++) assert_int_equal(bytes[i], 255);
        memcpy(&value, bytes, 4);
        assert_true(value != value);
        close_backend(&f);
    }
}

static void overlapping_claims_are_corruption(void **state) {
    fixture f;
    uint64_t block;
    (void)state;
    open_backend(&f, CHECKED, 1);
    block = new_block(&f, TL_TIER_DEVICE, 1024);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 128, 128)), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 65)), TL_ERROR_CORRUPT);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 192, 8)), TL_ERROR_CORRUPT);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 1024)), TL_ERROR_CORRUPT);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 64)), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 256, 64)), TL_OK);
    assert_int_equal(f.b.release(f.b.self, range_of(block, 128, 64)), TL_ERROR_INVALID_ARG);
    assert_int_equal(f.b.fill(f.b.self, range_of(block, 64, 128), 0), TL_ERROR_INVALID_ARG);  // two claims
    assert_int_equal(f.b.fill(f.b.self, range_of(block, 192, 64), 0), TL_OK);                 // inside one
    assert_int_equal(f.b.fill(f.b.self, range_of(block, 320, 8), 0), TL_ERROR_INVALID_ARG);   // dead
    close_backend(&f);
}

// The one block of these tests starts at pool_bytes, aligned, plus one guard.
static unsigned char *pool_at(uint64_t offset) {
    return pool_bytes + ((64 - (uintptr_t)pool_bytes % 64) % 64 + 64) + (ptrdiff_t)(int64_t)offset;
}

static void a_stray_write_is_found(void **state) {
    static const int64_t places[] = {-1, -64, 99, 100, 192, 227, 300, 319, 320, 383};  // guards, padding, dead bytes
    size_t i;
    int deferred;
    (void)state;
    for (deferred = 0; deferred <= DEFERRED; deferred += DEFERRED)
        for (i = 0; i < sizeof places / sizeof *places; i++) {
            fixture f;
            uint64_t block;
            unsigned char *place = pool_at((uint64_t)places[i]), was;
            open_backend(&f, POOL | CHECKED | deferred, 1);
            block = new_block(&f, TL_TIER_DEVICE, 300);
            assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 99)), TL_OK);
            assert_int_equal(f.b.claim(f.b.self, range_of(block, 128, 64)), TL_OK);
            assert_int_equal(f.b.fill(f.b.self, range_of(block, 128, 64), 3), TL_OK);
            assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
            assert_int_equal(f.b.check(f.b.self), TL_OK);
            was = *place;
            *place ^= 1;
            assert_int_equal(f.b.check(f.b.self), TL_ERROR_CORRUPT);
            *place = was;
            assert_int_equal(f.b.check(f.b.self), TL_OK);
            assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 99)), TL_OK);
            assert_int_equal(f.b.release(f.b.self, range_of(block, 128, 64)), TL_OK);
            assert_int_equal(f.b.check(f.b.self), TL_OK);
            *place ^= 0x80;
            assert_int_equal(f.b.free_block(f.b.self, block), TL_ERROR_CORRUPT);
            assert_int_equal(f.b.free_block(f.b.self, block), TL_ERROR_STALE);  // it was freed all the same
            close_backend(&f);
        }
}

static void a_write_to_a_dead_range_is_found_when_it_is_claimed_again(void **state) {
    fixture f;
    uint64_t block;
    (void)state;
    open_backend(&f, POOL | CHECKED, 1);
    block = new_block(&f, TL_TIER_DEVICE, 256);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 64)), TL_OK);
    assert_int_equal(f.b.release(f.b.self, range_of(block, 64, 64)), TL_OK);
    *pool_at(100) = 17;
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 64)), TL_ERROR_CORRUPT);
    assert_int_equal(counters_of(&f).claim_count[TL_TIER_DEVICE], 0);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 64)), TL_OK);  // told once, then poisoned afresh
    close_backend(&f);
    open_backend(&f, POOL | CHECKED | DEFERRED, 1);
    block = new_block(&f, TL_TIER_DEVICE, 256);
    *pool_at(100) = 17;
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 64)), TL_OK);
    assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_ERROR_CORRUPT);  // deferred: found when the work runs
    assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
    close_backend(&f);
}

static void checked_mappings_are_copies_and_read_only_ones_are_verified(void **state) {
    int variant;
    (void)state;
    for (variant = CHECKED; variant < VARIANTS; variant += 2) {
        fixture f;
        uint64_t block;
        unsigned char *host, *second, out[32];
        void *other;
        tl_range range;
        open_backend(&f, variant, 1);
        block = new_block(&f, TL_TIER_DEVICE, 256);
        range = range_of(block, 64, 32);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 256)), TL_OK);
        assert_int_equal(f.b.map(f.b.self, range, TL_MAP_CHANGE, &other), TL_OK);
        host = (unsigned char *)other;
        assert_true(host < pool_bytes || host >= pool_bytes + sizeof pool_bytes);
        memset(host, 5, 32);
        assert_int_equal(f.b.map(f.b.self, range, TL_MAP_READ, &other), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.copy(f.b.self, range_of(block, 128, 32), range), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.fill(f.b.self, range, 0), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 256)), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.unmap(f.b.self, range, TL_MAP_CHANGE, pool_bytes), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.unmap(f.b.self, range_of(block, 64, 31), TL_MAP_CHANGE, host), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.unmap(f.b.self, range, TL_MAP_CHANGE, host), TL_OK);
        assert_int_equal(f.b.map(f.b.self, range, TL_MAP_READ, &other), TL_OK);
        second = (unsigned char *)other;
        assert_int_equal(f.b.map(f.b.self, range, TL_MAP_READ, &other), TL_OK);  // read twice: legal
        assert_int_equal(second[31], 5);
        second[31] = 6;
        assert_int_equal(f.b.unmap(f.b.self, range, TL_MAP_READ, second), TL_ERROR_CORRUPT);
        assert_int_equal(f.b.unmap(f.b.self, range, TL_MAP_READ, other), TL_OK);
        assert_int_equal(f.b.map(f.b.self, range, TL_MAP_READ, &other), TL_OK);
        assert_int_equal(f.b.unmap(f.b.self, range, TL_MAP_CHANGE, other), TL_ERROR_INVALID_ARG);
        read_range(&f, range, out);
        assert_int_equal(out[31], 5);
        assert_int_equal(f.b.map(f.b.self, range, TL_MAP_WRITE, &other), TL_OK);  // what was there is not shown
        assert_true(tli_is_poisoned((const char *)other, 32));
        memset(other, 7, 32);
        assert_int_equal(f.b.map(f.b.self, range, TL_MAP_WRITE, &other), TL_ERROR_INVALID_ARG);
        assert_null(other);
        assert_int_equal(f.b.map(f.b.self, range, TL_MAP_READ, &other), TL_ERROR_INVALID_ARG);
        close_backend(&f);
    }
}

static void map_modes_that_do_not_exist_are_refused(void **state) {
    fixture f;
    void *host = pool_bytes;
    (void)state;
    open_backend(&f, 0, 1);
    assert_int_equal(f.b.map(f.b.self, range_of(0, 0, 0), TL_MAP_MODE_COUNT, &host), TL_ERROR_INVALID_ARG);
    assert_null(host);
    assert_string_equal(f.env.error.text, "map: mode: unknown");
    close_backend(&f);
}

static void only_a_backend_that_does_not_defer_is_in_order(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f;
        tl_backend_limits limits;
        open_backend(&f, variant, 1);
        f.b.limits(f.b.self, &limits);
        assert_int_equal(limits.in_order, !(variant & DEFERRED));
        close_backend(&f);
    }
}

// -- deferred --

static void deferred_work_is_not_done_before_it_is_asked_for(void **state) {
    int checked;
    (void)state;
    for (checked = 0; checked <= CHECKED; checked++) {
        fixture f;
        uint64_t block;
        unsigned char out[64];
        tl_ticket first, second;
        void *host;
        int polls = 0;
        tl_result result;
        open_backend(&f, DEFERRED | checked, 11);
        block = new_block(&f, TL_TIER_DEVICE, 256);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 64)), TL_OK);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 64, 64)), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 64), 0x01010101u), TL_OK);
        first = submit(&f);
        assert_int_equal(f.b.copy(f.b.self, range_of(block, 64, 64), range_of(block, 0, 64)), TL_OK);
        assert_int_equal(f.b.map(f.b.self, range_of(block, 64, 64), TL_MAP_READ, &host), TL_ERROR_BACKEND);
        assert_int_equal(f.b.map(f.b.self, range_of(block, 0, 64), TL_MAP_READ, &host), TL_ERROR_BACKEND);
        assert_int_equal(f.b.wait(f.b.self, first), TL_OK);
        assert_int_equal(f.b.map(f.b.self, range_of(block, 0, 64), TL_MAP_READ, &host), TL_OK);  // only read by the copy
        assert_int_equal(f.b.unmap(f.b.self, range_of(block, 0, 64), TL_MAP_READ, host), TL_OK);
        assert_int_equal(f.b.map(f.b.self, range_of(block, 0, 64), TL_MAP_CHANGE, &host), TL_ERROR_BACKEND);
        assert_int_equal(f.b.wait(f.b.self, first), TL_OK);  // the copy was not submitted: a wait does not run it
        assert_int_equal(f.b.map(f.b.self, range_of(block, 64, 64), TL_MAP_READ, &host), TL_ERROR_BACKEND);
        second = submit(&f);
        while ((result = f.b.poll(f.b.self, second)) == TL_NOT_READY) polls++;
        assert_int_equal(result, TL_OK);
        assert_true(polls < 100);
        read_range(&f, range_of(block, 64, 64), out);
        assert_int_equal(out[63], 1);
        assert_int_equal(f.b.fill(f.b.self, range_of(block, 64, 64), 0x02020202u), TL_OK);
        assert_int_equal(order_one(&f, range_of(block, 64, 64), 0), TL_OK);  // order runs what was not submitted
        assert_int_equal(f.b.map(f.b.self, range_of(block, 64, 64), TL_MAP_READ, &host), TL_OK);
        assert_int_equal(((unsigned char *)host)[0], 2);
        assert_int_equal(f.b.unmap(f.b.self, range_of(block, 64, 64), TL_MAP_READ, host), TL_OK);
        close_backend(&f);
    }
}

static void order_runs_only_what_it_must(void **state) {
    fixture f;
    uint64_t block;
    void *host;
    (void)state;
    open_backend(&f, DEFERRED, 1);
    block = new_block(&f, TL_TIER_DEVICE, 512);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 512)), TL_OK);
    assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 64), 0x01010101u), TL_OK);
    assert_int_equal(f.b.copy(f.b.self, range_of(block, 64, 64), range_of(block, 0, 64)), TL_OK);
    assert_int_equal(f.b.copy(f.b.self, range_of(block, 128, 64), range_of(block, 64, 64)), TL_OK);
    assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 64), 2), TL_OK);    // after the copies: not needed
    assert_int_equal(f.b.fill(f.b.self, range_of(block, 256, 64), 3), TL_OK);  // elsewhere: not needed
    assert_int_equal(order_one(&f, range_of(block, 128, 64), 0), TL_OK);
    assert_int_equal(f.b.map(f.b.self, range_of(block, 128, 64), TL_MAP_READ, &host), TL_OK);
    assert_int_equal(*(unsigned char *)host, 1);
    assert_int_equal(f.b.map(f.b.self, range_of(block, 0, 64), TL_MAP_READ, &host), TL_ERROR_BACKEND);
    assert_int_equal(f.b.map(f.b.self, range_of(block, 256, 64), TL_MAP_READ, &host), TL_ERROR_BACKEND);
    close_backend(&f);
}

// A block may go while work on it is enqueued, submitted or not: that work still finds its bytes.
static void a_block_is_freed_while_work_on_it_is_under_way(void **state) {
    int variant, submitted;
    (void)state;
    for (variant = DEFERRED; variant < VARIANTS; variant++)
        for (submitted = 0; submitted < 2; submitted++) {
            fixture f;
            uint64_t block, target;
            unsigned char out[64];
            tl_ticket late = {0};
            if (!(variant & DEFERRED)) continue;
            open_backend(&f, variant, 3);
            block = new_block(&f, TL_TIER_DEVICE, 64);
            target = new_block(&f, TL_TIER_DEVICE, 64);
            assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 64)), TL_OK);
            assert_int_equal(f.b.claim(f.b.self, range_of(target, 0, 64)), TL_OK);
            assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 64), 0x09090909u), TL_OK);
            assert_int_equal(f.b.copy(f.b.self, range_of(target, 0, 64), range_of(block, 0, 64)), TL_OK);
            assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 64)), TL_OK);
            if (submitted) late = submit(&f);
            assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
            assert_int_equal(f.b.free_block(f.b.self, block), TL_ERROR_STALE);
            assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 64)), TL_ERROR_STALE);
            assert_int_equal(counters_of(&f).block_count[TL_TIER_DEVICE], 1);
            (void)new_block(&f, TL_TIER_DEVICE, 64);  // takes another slot and other bytes: the copy still reads the old ones
            if (submitted) assert_int_equal(f.b.wait(f.b.self, late), TL_OK);
            read_range(&f, range_of(target, 0, 64), out);
            assert_int_equal(out[0], 9);
            assert_int_equal(out[63], 9);
            assert_int_equal(counters_of(&f).reserved_bytes[TL_TIER_DEVICE], 2 * ((variant & POOL ? 0 : SLACK) + (variant & CHECKED ? 3 : 1) * 64));
            close_backend(&f);
        }
}

// Where memory is finite, bytes that only unfinished work keeps are no reason to have none.
static void a_block_that_does_not_fit_waits_for_freed_ones(void **state) {
    fixture f;
    uint64_t block, target, next;
    unsigned char out[64];
    tl_backend_limits limits;
    (void)state;
    open_backend(&f, DEFERRED | CHECKED | POOL, 3);
    f.b.limits(f.b.self, &limits);
    target = new_block(&f, TL_TIER_HOST, 64);
    block = new_block(&f, TL_TIER_DEVICE, limits.capacity_bytes[TL_TIER_DEVICE] - 128);
    assert_int_equal(f.b.claim(f.b.self, range_of(target, 0, 64)), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 64)), TL_OK);
    assert_int_equal(f.b.fill(f.b.self, range_of(block, 0, 64), 0x09090909u), TL_OK);
    assert_int_equal(f.b.add_block(f.b.self, TL_TIER_DEVICE, 64, &next), TL_ERROR_NO_MEMORY);  // it is not freed
    assert_int_equal(f.b.copy(f.b.self, range_of(target, 0, 64), range_of(block, 0, 64)), TL_OK);
    assert_int_equal(f.b.release(f.b.self, range_of(block, 0, 64)), TL_OK);
    assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
    next = new_block(&f, TL_TIER_DEVICE, 64);
    block = new_block(&f, TL_TIER_DEVICE, 64);
    assert_true(block != next);
    assert_int_equal(counters_of(&f).block_count[TL_TIER_DEVICE], 2);
    read_range(&f, range_of(target, 0, 64), out);
    assert_int_equal(out[63], 9);
    close_backend(&f);
}


static void work_beyond_the_queue_is_done_not_lost(void **state) {
    fixture f;
    uint64_t block;
    uint32_t i, out[1];
    (void)state;
    open_backend(&f, DEFERRED | CHECKED, 3);
    block = new_block(&f, TL_TIER_DEVICE, 64 * 1000);
    for (i = 0; i < 1000; i++) {
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 64 * i, 4)), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, range_of(block, 64 * i, 4), i), TL_OK);
    }
    assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
    for (i = 0; i < 1000; i++) {
        read_range(&f, range_of(block, 64 * i, 4), out);
        assert_int_equal(out[0], i);
    }
    close_backend(&f);
}

// Random programs, run by a deferred backend and by an immediate one: whatever may be looked at is equal.
enum { SPANS = 12 };

static void random_program(uint64_t seed, int variant) {
    fixture f[2];
    uint64_t blocks[2][3];
    tl_random random;
    tl_ticket tickets[2];
    int at, step, who;
    random.state = seed;
    open_backend(&f[0], 0, 0);
    open_backend(&f[1], DEFERRED | variant, seed);
    tickets[0].value = tickets[1].value = 0;
    for (who = 0; who < 2; who++)
        for (at = 0; at < 3; at++) {
            blocks[who][at] = new_block(&f[who], at == 2 ? TL_TIER_HOST : TL_TIER_DEVICE, 256 * 4);
            for (step = 0; step < 4; step++) {
                assert_int_equal(f[who].b.claim(f[who].b.self, range_of(blocks[who][at], 256 * (uint64_t)step, 256)), TL_OK);
                assert_int_equal(f[who].b.fill(f[who].b.self, range_of(blocks[who][at], 256 * (uint64_t)step, 256),
                                               0x3f800000u + (uint32_t)(at * 7 + step)), TL_OK);
            }
        }
    for (step = 0; step < 24; step++) {
        uint64_t to = tl_next_random_below(&random, SPANS), from = tl_next_random_below(&random, SPANS);
        uint64_t action = tl_next_random_below(&random, 9), half = 64 * tl_next_random_below(&random, 3);
        uint32_t word = (uint32_t)tl_next_random(&random);
        tl_codec codec = (tl_codec)(1 + tl_next_random_below(&random, 3));
        uint64_t packed = tl_find_codec_bytes(codec, 128);
        unsigned char seen[2][256], fresh[256];
        tl_result results[2] = {TL_OK, TL_OK};
        for (at = 0; at < 256; at++) fresh[at] = (unsigned char)tl_next_random(&random);
        for (who = 0; who < 2; who++) {
            tl_backend *b = &f[who].b;
            tl_range target = range_of(blocks[who][to / 4], to % 4 * 256, 256);
            tl_range source = range_of(blocks[who][from / 4], from % 4 * 256, 256);
            tl_range part = range_of(target.block, target.offset + half, 128);
            void *host;
            switch (action) {
            case 0: case 1:
                if (to != from) results[who] = b->copy(b->self, target, source);
                break;
            case 2: results[who] = b->fill(b->self, part, word); break;
            case 3:
                source.bytes = 128;
                if (to != from) results[who] = b->compress(b->self, codec, range_of(target.block, target.offset + half, packed), source);
                break;
            case 4:
                source.bytes = packed;
                if (to != from) results[who] = b->expand(b->self, codec, part, source);
                break;
            case 5: tickets[who] = submit(&f[who]); break;
            case 6: results[who] = b->poll(b->self, tickets[who]) == TL_NOT_READY ? TL_OK : TL_OK; break;
            case 7: results[who] = b->wait(b->self, tickets[who]); break;
            case 8:
                if (word & 1) { write_range(&f[who], part, fresh); memset(seen[who], 0, 256); }
                else read_range(&f[who], target, seen[who]);
                break;
            }
            assert_int_equal(results[who], TL_OK);
            // without an order a deferred range is either refused or right
            if (who && !b->map(b->self, part, TL_MAP_READ, &host)) {
                void *right;
                tl_range same = range_of(blocks[0][to / 4], part.offset, part.bytes);
                assert_int_equal(f[0].b.map(f[0].b.self, same, TL_MAP_READ, &right), TL_OK);
                if (memcmp(host, right, 128)) fail_msg("program %lu: step %d: a range that may be read is wrong", (unsigned long)seed, step);
                assert_int_equal(b->unmap(b->self, part, TL_MAP_READ, host), TL_OK);
            }
        }
        if (action == 8 && !(word & 1) && memcmp(seen[0], seen[1], 256))
            fail_msg("program %lu: step %d: an ordered range is wrong", (unsigned long)seed, step);
    }
    assert_int_equal(f[1].b.wait(f[1].b.self, submit(&f[1])), TL_OK);
    assert_int_equal(f[1].b.check(f[1].b.self), TL_OK);
    for (at = 0; at < SPANS; at++) {
        unsigned char seen[2][256];
        for (who = 0; who < 2; who++)
            read_range(&f[who], range_of(blocks[who][at / 4], (uint64_t)(at % 4) * 256, 256), seen[who]);
        if (memcmp(seen[0], seen[1], 256)) fail_msg("program %lu: range %d is wrong at the end", (unsigned long)seed, at);
    }
    close_backend(&f[0]);
    close_backend(&f[1]);
}

static void deferred_programs_end_like_sequential_ones(void **state) {
    uint64_t seed;
    (void)state;
    for (seed = 0; seed < 10000; seed++) random_program(seed, seed % 2 ? CHECKED : 0);
}

static void the_deferred_order_depends_on_the_seed_only(void **state) {
    int polls[3], run;
    (void)state;
    for (run = 0; run < 3; run++) {
        fixture f;
        uint64_t block;
        tl_ticket ticket;
        uint32_t i;
        open_backend(&f, DEFERRED, run == 2 ? 8 : 7);
        block = new_block(&f, TL_TIER_DEVICE, 64 * 100);
        assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 64 * 100)), TL_OK);
        for (i = 0; i < 100; i++) assert_int_equal(f.b.fill(f.b.self, range_of(block, 64 * i, 64), i), TL_OK);
        ticket = submit(&f);
        polls[run] = 0;
        while (f.b.poll(f.b.self, ticket) == TL_NOT_READY) polls[run]++;
        close_backend(&f);
    }
    assert_int_equal(polls[0], polls[1]);
    assert_true(polls[0] > 30);
    assert_true(polls[0] != polls[2]);
}

// -- allocations that fail --

static tl_result use_backend(tl_env *env, int variant) {
    tl_cpu_backend_desc desc;
    tl_backend b;
    tl_result result;
    uint64_t blocks[24];
    tl_ticket ticket = {0};
    void *host = NULL;
    int i, added = 0, claimed = 0;
    memset(&desc, 0, sizeof desc);
    desc.checked = (variant & CHECKED) != 0;
    desc.deferred = (variant & DEFERRED) != 0;
    if (variant & POOL) { desc.memory = pool_bytes; desc.memory_bytes = sizeof pool_bytes; }
    result = tl_init_cpu_backend(env, &desc, &b);
    if (result) { assert_null(b.self); return result; }
    for (i = 0; i < 24 && !result; i++) {
        result = b.add_block(b.self, i % 2 ? TL_TIER_HOST : TL_TIER_DEVICE, 100, &blocks[i]);
        if (result) { assert_true(blocks[i] == 0); break; }
        added++;
        result = b.claim(b.self, range_of(blocks[i], 0, 100));
        claimed += !result;
    }
    if (!result) result = b.map(b.self, range_of(blocks[0], 0, 100), TL_MAP_CHANGE, &host);
    if (!result) result = b.unmap(b.self, range_of(blocks[0], 0, 100), TL_MAP_CHANGE, host);
    if (!b.submit(b.self, &ticket)) assert_int_equal(b.wait(b.self, ticket), TL_OK);
    for (i = 0; i < claimed; i++) assert_int_equal(b.release(b.self, range_of(blocks[i], 0, 100)), TL_OK);
    for (i = 0; i < added; i++) assert_int_equal(b.free_block(b.self, blocks[i]), TL_OK);
    tl_free_cpu_backend(env, &b);
    return result;
}

static void every_failed_allocation_is_told_and_leaks_nothing(void **state) {
    int variant, once;
    long at;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++)
        for (once = 0; once < 2; once++)
            for (at = 0; ; at++) {
                failing_alloc alloc = {0};
                tl_env env;
                tl_result result;
                alloc.fails_once = once;
                env = failing_env(&alloc, at);
                result = use_backend(&env, variant);
                assert_int_equal(alloc.live, 0);
                if (alloc.count <= at) { assert_int_equal(result, TL_OK); break; }
                assert_int_equal(result, TL_ERROR_NO_MEMORY);
                assert_int_equal(env.error.code, TL_ERROR_NO_MEMORY);
            }
}

// -- codecs --

static uint32_t expand_half(tl_codec codec, uint16_t half) {
    uint32_t bits;
    tl_expand_bytes(codec, &bits, &half, 4);
    return bits;
}

static uint16_t compress_one(tl_codec codec, uint32_t bits) {
    uint16_t half;
    tl_compress_bytes(codec, &half, &bits, 4);
    return half;
}

static double value_of_f16(uint32_t half) {  // finite ones
    int exponent = (int)(half >> 10 & 31u);
    double mantissa = exponent ? 1024.0 + (half & 1023u) : (half & 1023u);
    double value = ldexp(mantissa, (exponent ? exponent : 1) - 25);
    return half & 0x8000u ? -value : value;
}

static void f16_decodes_all_its_values_and_encodes_them_back(void **state) {
    uint32_t half;
    (void)state;
    for (half = 0; half < 65536; half++) {
        uint32_t bits = expand_half(TL_CODEC_F16, (uint16_t)half);
        if ((half & 0x7C00u) == 0x7C00u) {
            if (half & 1023u) {  // NaN stays a quiet NaN of the same sign and payload
                assert_true((bits & 0x7FC00000u) == 0x7FC00000u && bits >> 31 == half >> 15);
                assert_int_equal(compress_one(TL_CODEC_F16, bits), half | 0x200u);
            } else {
                assert_int_equal(bits, half & 0x8000u ? 0xFF800000u : 0x7F800000u);
                assert_int_equal(compress_one(TL_CODEC_F16, bits), half);
            }
            continue;
        }
        if ((double)float_of_bits(bits) != value_of_f16(half) || bits >> 31 != half >> 15) fail_msg("f16 %04x decodes wrong", half);
        if (compress_one(TL_CODEC_F16, bits) != half) fail_msg("f16 %04x does not come back", half);
    }
}

static void bf16_decodes_all_its_values_and_encodes_them_back(void **state) {
    uint32_t half;
    (void)state;
    for (half = 0; half < 65536; half++) {
        uint32_t bits = expand_half(TL_CODEC_BF16, (uint16_t)half);
        int is_nan = (half & 0x7FFFu) > 0x7F80u;
        assert_int_equal(bits, (is_nan ? half | 0x40u : half) << 16);
        assert_int_equal(compress_one(TL_CODEC_BF16, bits), is_nan ? half | 0x40u : half);
    }
}

// Nearest of the representable values, ties to the even code: by search, in double.
static uint16_t slow_half(tl_codec codec, uint32_t bits) {
    uint32_t low = 0, high, sign = bits >> 16 & 0x8000u, top = codec == TL_CODEC_F16 ? 0x7C00u : 0x7F80u;
    double x = fabs((double)float_of_bits(bits)), below, above;
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(codec == TL_CODEC_F16 ? sign | 0x7E00u | (bits >> 13 & 0x3FFu) : (bits >> 16) | 0x40u);
    high = top;  // infinity stands for the next power of two
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        double value = codec == TL_CODEC_F16 ? value_of_f16(middle) : (double)float_of_bits(middle << 16);
        if (value <= x) low = middle;
        else high = middle;
    }
    if ((bits & 0x7FFFFFFFu) == 0x7F800000u) return (uint16_t)(sign | top);
    below = codec == TL_CODEC_F16 ? value_of_f16(low) : (double)float_of_bits(low << 16);
    above = high == top ? (codec == TL_CODEC_F16 ? 65536.0 : ldexp(1.0, 128))
                        : codec == TL_CODEC_F16 ? value_of_f16(high) : (double)float_of_bits(high << 16);
    if (x - below < above - x || (x - below == above - x && !(low & 1u))) return (uint16_t)(sign | low);
    return (uint16_t)(sign | high);
}

static void half_floats_round_to_nearest_even(void **state) {
    static const uint32_t specials[] = {
        0, 1, 0x80000000u, 0x007FFFFFu, 0x00800000u, 0x33000000u, 0x33000001u, 0x32FFFFFFu, 0x33800000u, 0x33C00000u,
        0x387FE000u, 0x387FF000u, 0x387FEFFFu, 0x387FFFFFu, 0x38800000u, 0x3F800FFFu, 0x3F801000u, 0x3F801001u,
        0x3F803000u, 0x477FEFFFu, 0x477FF000u, 0x477FE000u, 0x47800000u, 0x7F7FFFFFu, 0x7F7F7FFFu, 0x7F7F8000u,
        0x7F800000u, 0xFF800000u, 0x7F800001u, 0x7FC00000u, 0xFFFFFFFFu, 0x3F808000u, 0x3F818000u };
    int codec;
    (void)state;
    for (codec = TL_CODEC_F16; codec <= TL_CODEC_BF16; codec++) {
        tl_random random = {1};
        uint32_t i = 0, step = is_soaked() ? 1 : 6151;  // a prime: 698 000 values of all exponents
        for (i = 0; i < sizeof specials / sizeof *specials; i++)
            if (compress_one((tl_codec)codec, specials[i]) != slow_half((tl_codec)codec, specials[i]))
                fail_msg("%s of %08x is wrong", tl_name_codec((tl_codec)codec), specials[i]);
        for (i = 0; i < 200000; i++) {  // close to ties
            uint32_t bits = (uint32_t)tl_next_random(&random) & 0xFFFFF000u;
            bits += (uint32_t)tl_next_random_below(&random, 3) - 1;
            if (compress_one((tl_codec)codec, bits) != slow_half((tl_codec)codec, bits))
                fail_msg("%s of %08x is wrong", tl_name_codec((tl_codec)codec), bits);
        }
        i = 0;
        do {
            if (compress_one((tl_codec)codec, i) != slow_half((tl_codec)codec, i))
                fail_msg("%s of %08x is wrong", tl_name_codec((tl_codec)codec), i);
        } while (i <= UINT32_MAX - step && (i += step, 1));
    }
}

typedef struct q8_block { float scale; int8_t values[32]; } q8_block;

static q8_block pack_q8(const float *x) {
    unsigned char bytes[36];
    q8_block block;
    tl_compress_bytes(TL_CODEC_Q8, bytes, x, 128);
    memcpy(&block.scale, bytes, 4);
    memcpy(block.values, bytes + 4, 32);
    return block;
}

// Nearest of x 127 / largest: the candidates' distances compared in integers, exactly.
static int q8_is_nearest(float x, float largest, int value) {
    int ex, el, d;
    uint64_t mx = (uint64_t)ldexp(frexp(fabs((double)x), &ex), 24), ml = (uint64_t)ldexp(frexp((double)largest, &el), 24);
    uint64_t twice, size = (uint64_t)abs(value), half_up, half_down;
    if (x == 0) return value == 0;
    d = el - ex;
    if (d > 20) return value == 0;
    twice = 2 * 127 * mx;                       // 2 x 127 against (2 q - 1) largest and (2 q + 1) largest
    ml <<= d;
    half_up = (2 * size + 1) * ml;
    half_down = size ? (2 * size - 1) * ml : 0;
    if (twice > half_up || (twice == half_up && size % 2)) return 0;
    if (size && (twice < half_down || (twice == half_down && size % 2))) return 0;
    return value == 0 || (value > 0) == (x > 0);
}

static void q8_takes_the_nearest_value_and_scale(void **state) {
    tl_random random = {9};
    int round, i;
    (void)state;
    for (round = 0; round < 40000; round++) {
        float x[32], y[32], largest = 0;
        q8_block block;
        int spread = (int)tl_next_random_below(&random, 12);
        for (i = 0; i < 32; i++) {
            uint32_t bits = (uint32_t)tl_next_random(&random);
            uint32_t exponent = (uint32_t)((uint64_t)round * 250 / 40000);  // 0: denormals
            if (spread) exponent -= (uint32_t)tl_next_random_below(&random, (uint64_t)spread) % (exponent + 1);
            x[i] = float_of_bits((bits & 0x807FFFFFu) | exponent << 23);
            if (round % 7 == 0) x[i] = float_of_bits(bits_of_float(x[i]) & 0xFFF00000u);  // ties
            if (fabsf(x[i]) > largest) largest = fabsf(x[i]);
        }
        block = pack_q8(x);
        {   // scale is nearest: no neighbour is closer to largest / 127 (compared times 127, exact in double)
            double error = fabs((double)block.scale * 127.0 - (double)largest);
            double up = (double)float_of_bits(bits_of_float(block.scale) + 1), down = block.scale > 0 ? (double)float_of_bits(bits_of_float(block.scale) - 1) : 0;
            assert_true(error <= fabs(up * 127.0 - (double)largest) && error <= fabs(down * 127.0 - (double)largest));
        }
        {
            unsigned char bytes[36];
            memcpy(bytes, &block.scale, 4);
            memcpy(bytes + 4, block.values, 32);
            tl_expand_bytes(TL_CODEC_Q8, y, bytes, 128);
        }
        for (i = 0; i < 32; i++) {
            double bound = (double)block.scale * 0.5 * (1 + 1e-5);
            if (!q8_is_nearest(x[i], largest, block.values[i]))
                fail_msg("round %d: %a of %a became %d", round, (double)x[i], (double)largest, block.values[i]);
            volatile float product = (float)((double)block.scale * block.values[i]);  // volatile: 32 bits, on x87 too
            if (y[i] != product)
                fail_msg("round %d: %d x %a became %a", round, block.values[i], (double)block.scale, (double)y[i]);
            // Where the scale is a denormal its own error, up to 127 halves of the least one, comes on top.
            if (bits_of_float(block.scale) < 0x01000000u) bound += 128 * ldexp(1, -150);
            if (fabs((double)x[i] - (double)y[i]) > bound)
                fail_msg("round %d: %a comes back as %a, scale %a", round, (double)x[i], (double)y[i], (double)block.scale);
        }
    }
}

static void q8_defines_zeros_infinities_nans_and_extremes(void **state) {
    float x[32], y[32];
    unsigned char bytes[36];
    q8_block block;
    int i;
    (void)state;
    for (i = 0; i < 32; i++) x[i] = 0;
    x[5] = float_of_bits(0x80000000u);
    block = pack_q8(x);
    assert_int_equal(bits_of_float(block.scale), 0);
    for (i = 0; i < 32; i++) assert_int_equal(block.values[i], 0);
    x[0] = 2.0f; x[1] = float_of_bits(0x7F800000u); x[2] = float_of_bits(0xFF800000u); x[3] = float_of_bits(0xFFC00001u); x[4] = -2.0f;
    block = pack_q8(x);
    assert_true(block.scale == (float)(2.0f / 127.0f));
    assert_int_equal(block.values[0], 127);
    assert_int_equal(block.values[1], 127);
    assert_int_equal(block.values[2], -127);
    assert_int_equal(block.values[3], -128);
    assert_int_equal(block.values[4], -127);
    tl_compress_bytes(TL_CODEC_Q8, bytes, x, 128);
    tl_expand_bytes(TL_CODEC_Q8, y, bytes, 128);
    assert_true(y[0] == y[1] && y[2] == -y[1] && y[3] != y[3] && fabsf(y[0] - 2.0f) < 1e-6f);
    x[0] = x[4] = 0;  // nothing finite but zeros: infinities keep their code
    block = pack_q8(x);
    assert_int_equal(bits_of_float(block.scale), 0);
    assert_int_equal(block.values[1], 127);
    assert_int_equal(block.values[3], -128);
    x[0] = float_of_bits(0x7F7FFFFFu);  // the largest number does not become infinite
    x[1] = -x[0];
    tl_compress_bytes(TL_CODEC_Q8, bytes, x, 128);
    tl_expand_bytes(TL_CODEC_Q8, y, bytes, 128);
    assert_int_equal(bits_of_float(y[0]), 0x7F7FFFFFu);
    assert_int_equal(bits_of_float(y[1]), 0xFF7FFFFFu);
    for (i = 0; i < 32; i++) x[i] = float_of_bits(1);  // the least denormal: its scale is 0, its codes are 127
    block = pack_q8(x);
    assert_int_equal(bits_of_float(block.scale), 0);
    assert_int_equal(block.values[0], 127);
    x[0] = float_of_bits(64);
    block = pack_q8(x);
    assert_int_equal(bits_of_float(block.scale), 1);
    assert_int_equal(block.values[1], 2);
}

static void tails_and_unaligned_pointers_convert(void **state) {
    unsigned char from[404], packed[404], back[404], guard[404];
    tl_random random = {2};
    int codec;
    uint64_t bytes, shift;
    (void)state;
    for (codec = TL_CODEC_NONE; codec < TL_CODEC_COUNT; codec++)
        for (bytes = 0; bytes < 300; bytes++)
            for (shift = 0; shift < 4; shift++) {
                uint64_t size = tl_find_codec_bytes((tl_codec)codec, bytes), i;
                float exact, got;
                for (i = 0; i < bytes; i += 4) {  // numbers between 0.5 and 2
                    uint32_t word = 0x3F000000u | (uint32_t)(tl_next_random(&random) & 0xFFFFFFu);
                    memcpy(from + shift + i, &word, 4);
                }
                memset(packed, 0xCC, sizeof packed);
                memset(back, 0xCC, sizeof back);
                memset(guard, 0xCC, sizeof guard);
                tl_compress_bytes((tl_codec)codec, packed + shift, from + shift, bytes);
                assert_memory_equal(packed + shift + size, guard, 16);
                tl_expand_bytes((tl_codec)codec, back + shift, packed + shift, bytes);
                assert_memory_equal(back + shift + bytes, guard, 16);
                if (codec == TL_CODEC_NONE) assert_memory_equal(back + shift, from + shift, bytes);
                for (i = 0; i + 4 <= bytes; i += 4) {
                    memcpy(&exact, from + shift + i, 4);
                    memcpy(&got, back + shift + i, 4);
                    assert_true(fabsf(exact - got) < 0.01f * 2);
                }
            }
    {   // a tail is taken as zero-padded
        unsigned char tail[4] = {0, 0, 0x80, 0x3F}, whole[4] = {0, 0, 0x80, 0}, a[2], b[2];
        tl_compress_bytes(TL_CODEC_BF16, a, tail, 3);
        tl_compress_bytes(TL_CODEC_BF16, b, whole, 4);
        assert_memory_equal(a, b, 2);
    }
}

static void accounts_are_counted_and_limited_apart_and_together(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        fixture f;
        open_backend(&f, variant, 3);
        check_accounts(&f.b);
        close_backend(&f);
    }
}

static void a_backend_with_open_accounts_is_not_freed(void **state) {
    const uint64_t none[TL_TIER_COUNT] = { 0, 0 };
    uint64_t accounts[2];
    tl_backend nobody;
    fixture f;
    (void)state;
    memset(&nobody, 0, sizeof nobody);
    open_backend(&f, CHECKED, 3);
    f.alloc.fail_at = f.alloc.count;
    assert_int_equal(f.b.open_account(f.b.self, none, &accounts[0]), TL_ERROR_NO_MEMORY);
    assert_int_equal(accounts[0], 0);
    f.alloc.fail_at = -1;
    assert_int_equal(f.b.open_account(f.b.self, none, &accounts[0]), TL_OK);
    assert_int_equal(f.b.open_account(f.b.self, none, &accounts[1]), TL_OK);
    assert_int_equal(tl_free_cpu_backend(&f.env, &f.b), TL_ERROR_INVALID_ARG);
    assert_string_equal(f.env.error.text,
                        "tl_free_cpu_backend: backend: still in use (runs and managers: 2): free those first");
    assert_int_equal(f.b.close_account(f.b.self, accounts[0]), TL_OK);
    assert_int_equal(tl_free_cpu_backend(&f.env, &f.b), TL_ERROR_INVALID_ARG);
    assert_int_equal(f.b.close_account(f.b.self, accounts[1]), TL_OK);
    close_backend(&f);
    assert_int_equal(tl_free_cpu_backend(&f.env, &f.b), TL_OK);  // freed already
    assert_int_equal(tl_free_cpu_backend(&f.env, &nobody), TL_OK);
    assert_int_equal(tl_free_cpu_backend(&f.env, NULL), TL_OK);
}

static void the_backend_converts_like_the_host(void **state) {
    int variant, codec;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++)
        for (codec = TL_CODEC_F16; codec < TL_CODEC_COUNT; codec++) {
            fixture f;
            uint64_t block, packed = tl_find_codec_bytes((tl_codec)codec, 999);
            unsigned char x[999], host[999], host_back[999], device[999], device_back[999];
            tl_random random = {4};
            int i;
            for (i = 0; i < 999; i++) x[i] = (unsigned char)tl_next_random(&random);
            open_backend(&f, variant, 2);
            block = new_block(&f, TL_TIER_DEVICE, 3072);
            assert_int_equal(f.b.claim(f.b.self, range_of(block, 0, 999)), TL_OK);
            assert_int_equal(f.b.claim(f.b.self, range_of(block, 1024, packed)), TL_OK);
            assert_int_equal(f.b.claim(f.b.self, range_of(block, 2048, 999)), TL_OK);
            write_range(&f, range_of(block, 0, 999), x);
            assert_int_equal(f.b.compress(f.b.self, (tl_codec)codec, range_of(block, 1024, packed), range_of(block, 0, 999)), TL_OK);
            assert_int_equal(f.b.expand(f.b.self, (tl_codec)codec, range_of(block, 2048, 999), range_of(block, 1024, packed)), TL_OK);
            read_range(&f, range_of(block, 1024, packed), device);
            read_range(&f, range_of(block, 2048, 999), device_back);
            tl_compress_bytes((tl_codec)codec, host, x, 999);
            tl_expand_bytes((tl_codec)codec, host_back, host, 999);
            assert_memory_equal(host, device, packed);
            assert_memory_equal(host_back, device_back, 999);
            close_backend(&f);
        }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_holds_what_is_written),
        cmocka_unit_test(stale_foreign_and_made_up_handles_are_refused),
        cmocka_unit_test(zero_bytes_are_legal_everywhere),
        cmocka_unit_test(ranges_stay_in_their_block_and_on_the_alignment),
        cmocka_unit_test(a_block_with_claims_cannot_be_freed),
        cmocka_unit_test(fill_writes_words_and_cuts_the_tail),
        cmocka_unit_test(counters_are_exact),
        cmocka_unit_test(capacity_holds_exactly_its_bytes),
        cmocka_unit_test(the_callers_block_fits_exactly),
        cmocka_unit_test(a_desc_that_breaks_a_rule_is_refused),
        cmocka_unit_test(the_clock_is_the_callers),
        cmocka_unit_test(a_fragmentation_storm_keeps_every_byte),
        cmocka_unit_test(blocks_of_the_callers_memory_never_overlap_and_stay_inside),
        cmocka_unit_test(pieces_of_a_heap_agree_with_a_map_of_its_bytes),
        cmocka_unit_test(a_heap_refuses_what_has_no_place),
        cmocka_unit_test(an_id_of_a_joined_place_is_passed_over),
        cmocka_unit_test(a_heap_survives_every_allocation_failing),
        cmocka_unit_test(a_hundred_thousand_blocks_can_live),
        cmocka_unit_test(the_callers_block_takes_no_bytes_from_the_env),
        cmocka_unit_test(claimed_bytes_start_as_nan),
        cmocka_unit_test(overlapping_claims_are_corruption),
        cmocka_unit_test(a_stray_write_is_found),
        cmocka_unit_test(a_write_to_a_dead_range_is_found_when_it_is_claimed_again),
        cmocka_unit_test(checked_mappings_are_copies_and_read_only_ones_are_verified),
        cmocka_unit_test(deferred_work_is_not_done_before_it_is_asked_for),
        cmocka_unit_test(order_runs_only_what_it_must),
        cmocka_unit_test(map_modes_that_do_not_exist_are_refused),
        cmocka_unit_test(only_a_backend_that_does_not_defer_is_in_order),
        cmocka_unit_test(a_block_is_freed_while_work_on_it_is_under_way),
        cmocka_unit_test(a_block_that_does_not_fit_waits_for_freed_ones),
        cmocka_unit_test(work_beyond_the_queue_is_done_not_lost),
        cmocka_unit_test(deferred_programs_end_like_sequential_ones),
        cmocka_unit_test(the_deferred_order_depends_on_the_seed_only),
        cmocka_unit_test(every_failed_allocation_is_told_and_leaks_nothing),
        cmocka_unit_test(f16_decodes_all_its_values_and_encodes_them_back),
        cmocka_unit_test(bf16_decodes_all_its_values_and_encodes_them_back),
        cmocka_unit_test(half_floats_round_to_nearest_even),
        cmocka_unit_test(q8_takes_the_nearest_value_and_scale),
        cmocka_unit_test(q8_defines_zeros_infinities_nans_and_extremes),
        cmocka_unit_test(tails_and_unaligned_pointers_convert),
        cmocka_unit_test(the_backend_converts_like_the_host),
        cmocka_unit_test(accounts_are_counted_and_limited_apart_and_together),
        cmocka_unit_test(a_backend_with_open_accounts_is_not_freed),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
