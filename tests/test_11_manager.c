// [11] MANAGER: the store, its budget, policies and evictions; the seed's defects B1 to B22; the golden traces.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/record_support.h"

// -- a backend between: it fails on demand, and holds the budget itself --

enum { F_ADD, F_FREE, F_CLAIM, F_RELEASE, F_COPY, F_COMPRESS, F_EXPAND, F_ORDER, F_SUBMIT, F_MAP, F_UNMAP, F_COUNT };

typedef struct shim {
    tl_backend inner;
    uint64_t budget[TL_TIER_COUNT];
    long calls[F_COUNT];
    int  fail_function;  // -1 = none
    long fail_at;        // index of the call that fails
    int  fails_on;       // 1 = and all later ones
    tl_result code;
    int  failed;         // calls that failed so far
    long lost_at;        // the device is lost from that call on, counted over all functions; 0 = never
    long all_calls, waits;
    int  host_unfinished;  // 1 = when it was lost, work on the host tier was under way
    uint64_t account;    // of the claim under way; 0 = none
    uint64_t limits[TL_TIER_COUNT];  // of the account opened last
    int  lingers;        // time spent in claim, so that threads meet there
    int  inside, broken;  // threads inside now; times that there were two, or that a budget was exceeded
} shim;

static int shim_fails(shim *s, int function) {
    long index = s->calls[function]++;
    int fails;
    if (s->lost_at && ++s->all_calls >= s->lost_at && function != F_FREE && function != F_RELEASE && function != F_UNMAP) {
        s->code = TL_ERROR_DEVICE_LOST;
        s->failed++;
        return 1;
    }
    fails = function == s->fail_function && (index == s->fail_at || (s->fails_on && index > s->fail_at));
    s->failed += fails;
    return fails;
}

static tl_result shim_add(void *self, tl_tier tier, uint64_t bytes, uint64_t *block) {
    shim *s = (shim *)self;
    *block = 0;
    return shim_fails(s, F_ADD) ? s->code : s->inner.add_block(s->inner.self, tier, bytes, block);
}
static tl_result shim_free(void *self, uint64_t block) {
    shim *s = (shim *)self;
    return shim_fails(s, F_FREE) ? s->code : s->inner.free_block(s->inner.self, block);
}
static tl_result shim_claim(void *self, tl_range range) {
    shim *s = (shim *)self;
    tl_backend_counters c;
    tl_result result;
    int tier, linger;
    if (shim_fails(s, F_CLAIM)) return s->code;
    if (__atomic_fetch_add(&s->inside, 1, __ATOMIC_RELAXED)) __atomic_fetch_add(&s->broken, 1, __ATOMIC_RELAXED);
    result = s->account ? s->inner.claim_on(s->inner.self, s->account, range) : s->inner.claim(s->inner.self, range);
    s->account = 0;
    s->inner.counters(s->inner.self, &c);
    for (tier = 0; tier < TL_TIER_COUNT; tier++)  // at every instant
        if (c.live_bytes[tier] > s->budget[tier]) __atomic_fetch_add(&s->broken, 1, __ATOMIC_RELAXED);
    for (linger = s->lingers; linger; linger--) (void)__atomic_load_n(&s->inside, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&s->inside, 1, __ATOMIC_RELAXED);
    return result;
}
static tl_result shim_release(void *self, tl_range range) {
    shim *s = (shim *)self;
    return shim_fails(s, F_RELEASE) ? s->code : s->inner.release(s->inner.self, range);
}
static tl_result shim_open(void *self, const uint64_t limit_bytes[TL_TIER_COUNT], uint64_t *account) {
    shim *s = (shim *)self;
    memcpy(s->limits, limit_bytes, sizeof s->limits);
    return s->inner.open_account(s->inner.self, limit_bytes, account);
}
static tl_result shim_close(void *self, uint64_t account) {
    shim *s = (shim *)self;
    return s->inner.close_account(s->inner.self, account);
}
static tl_result shim_claim_on(void *self, uint64_t account, tl_range range) {
    shim *s = (shim *)self;
    s->account = account;
    return shim_claim(self, range);
}
static tl_result shim_release_on(void *self, uint64_t account, tl_range range) {
    shim *s = (shim *)self;
    return shim_fails(s, F_RELEASE) ? s->code : s->inner.release_on(s->inner.self, account, range);
}
static tl_result shim_measure(void *self, uint64_t account, int32_t resets, tl_account_counters *counters) {
    shim *s = (shim *)self;
    return s->inner.measure_account(s->inner.self, account, resets, counters);
}
static tl_result shim_copy(void *self, tl_range to, tl_range from) {
    shim *s = (shim *)self;
    return shim_fails(s, F_COPY) ? s->code : s->inner.copy(s->inner.self, to, from);
}
static tl_result shim_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    shim *s = (shim *)self;
    return shim_fails(s, F_COMPRESS) ? s->code : s->inner.compress(s->inner.self, codec, to, from);
}
static tl_result shim_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    shim *s = (shim *)self;
    return shim_fails(s, F_EXPAND) ? s->code : s->inner.expand(s->inner.self, codec, to, from);
}
static tl_result shim_fill(void *self, tl_range to, uint32_t word) {
    shim *s = (shim *)self;
    return s->inner.fill(s->inner.self, to, word);
}
static tl_result shim_order(void *self, const tl_access *accesses, int32_t count) {
    shim *s = (shim *)self;
    return shim_fails(s, F_ORDER) ? s->code : s->inner.order(s->inner.self, accesses, count);
}
static tl_result shim_submit(void *self, tl_ticket *ticket) {
    shim *s = (shim *)self;
    return shim_fails(s, F_SUBMIT) ? s->code : s->inner.submit(s->inner.self, ticket);
}
static tl_result shim_poll(void *self, tl_ticket ticket) {
    shim *s = (shim *)self;
    s->waits++;
    return s->inner.poll(s->inner.self, ticket);
}
static tl_result shim_wait(void *self, tl_ticket ticket) {
    shim *s = (shim *)self;
    s->waits++;
    return s->inner.wait(s->inner.self, ticket);
}
static tl_result shim_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    shim *s = (shim *)self;
    int in_host_tier = ((tli_cpu *)s->inner.self)->blocks[(range.block & 0xFFFFFFFFu) - 1].tier == TL_TIER_HOST;
    *host = NULL;
    if (shim_fails(s, F_MAP) && (!s->lost_at || !in_host_tier || mode != TL_MAP_READ || s->host_unfinished)) return s->code;
    return s->inner.map(s->inner.self, range, mode, host);
}
static tl_result shim_unmap(void *self, tl_range range, tl_map_mode mode, void *host) {
    shim *s = (shim *)self;
    return shim_fails(s, F_UNMAP) ? s->code : s->inner.unmap(s->inner.self, range, mode, host);
}
static tl_result shim_check(void *self) { shim *s = (shim *)self; return s->inner.check(s->inner.self); }
static uint64_t shim_now(void *self) { shim *s = (shim *)self; return s->inner.now_ns(s->inner.self); }
static void shim_limits(void *self, tl_backend_limits *limits) { shim *s = (shim *)self; s->inner.limits(s->inner.self, limits); }
static void shim_counters(void *self, tl_backend_counters *counters) {
    shim *s = (shim *)self;
    s->inner.counters(s->inner.self, counters);
}
static void shim_reset(void *self) { shim *s = (shim *)self; s->inner.reset_peaks(s->inner.self); }

static tl_backend shim_over(shim *s) {
    tl_backend b;
    memset(&b, 0, sizeof b);
    b.self = s; b.add_block = shim_add; b.free_block = shim_free; b.claim = shim_claim; b.release = shim_release;
    b.copy = shim_copy; b.compress = shim_compress; b.expand = shim_expand; b.fill = shim_fill; b.order = shim_order;
    b.submit = shim_submit; b.poll = shim_poll; b.wait = shim_wait; b.map = shim_map; b.unmap = shim_unmap;
    b.check = shim_check; b.now_ns = shim_now; b.limits = shim_limits; b.counters = shim_counters; b.reset_peaks = shim_reset;
    b.open_account = shim_open; b.close_account = shim_close; b.claim_on = shim_claim_on; b.release_on = shim_release_on;
    b.measure_account = shim_measure;
    return b;
}

// -- fixture --

enum { CHECKED = 1, DEFERRED = 2 };

typedef struct fixture {
    failing_alloc alloc;
    tl_env env;
    shim s;
    tl_backend b;
    tl_manager_desc desc;
    tl_manager *m;
} fixture;

static void begin(fixture *f) {
    memset(f, 0, sizeof *f);
    f->env = failing_env(&f->alloc, -1);
    f->s.fail_function = -1;
    f->s.code = TL_ERROR_BACKEND;
}

static void open_manager(fixture *f, int variant) {
    tl_cpu_backend_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.checked = (variant & CHECKED) != 0;
    desc.deferred = (variant & DEFERRED) != 0;
    desc.seed = 99;
    assert_int_equal(tl_init_cpu_backend(&f->env, &desc, &f->s.inner), TL_OK);
    f->s.budget[TL_TIER_DEVICE] = f->desc.device_budget_bytes ? f->desc.device_budget_bytes : TL_UNLIMITED;
    f->s.budget[TL_TIER_HOST] = f->desc.host_budget_bytes;
    f->b = shim_over(&f->s);
    assert_int_equal(tl_init_manager(&f->env, &f->b, &f->desc, &f->m), TL_OK);
}

static tl_backend_counters counters_of(fixture *f) {
    tl_backend_counters c;
    f->s.inner.counters(f->s.inner.self, &c);
    return c;
}

static tl_checkpoint_statistics statistics_of(fixture *f) {
    tl_checkpoint_statistics s;
    tl_measure_manager(f->m, &s);
    return s;
}

// Usage is that of the backend, always.
static void check_usage(fixture *f) {
    tl_backend_counters c = counters_of(f);
    tl_checkpoint_statistics s = statistics_of(f);
    assert_true(tl_find_memory_usage(f->m) == c.live_bytes[TL_TIER_DEVICE]);
    assert_true(s.total_memory_bytes == c.live_bytes[TL_TIER_DEVICE]);
    assert_true(s.host_memory_bytes == c.live_bytes[TL_TIER_HOST]);
    assert_true(s.total_checkpoints == tl_find_checkpoint_count(f->m));
    assert_true(s.in_memory_checkpoints <= s.total_checkpoints);
    assert_true(s.evictions == s.dropped + s.spills + s.compressions);
    assert_int_equal(f->s.broken, 0);
}

static void close_manager(fixture *f) {
    tl_backend_counters c;
    f->s.fail_function = -1;
    assert_int_equal(f->s.broken, 0);
    tl_free_manager(f->m);
    c = counters_of(f);
    assert_int_equal(c.live_bytes[TL_TIER_DEVICE], 0);
    assert_int_equal(c.live_bytes[TL_TIER_HOST], 0);
    assert_int_equal(c.block_count[TL_TIER_DEVICE], 0);
    assert_int_equal(c.block_count[TL_TIER_HOST], 0);
    assert_int_equal(f->s.inner.check(f->s.inner.self), TL_OK);
    assert_int_equal(tl_free_cpu_backend(&f->env, &f->s.inner), TL_OK);
    assert_int_equal(f->alloc.live, 0);
}

static tl_checkpoint_key key_of(uint64_t step, int node) {
    tl_checkpoint_key key;
    key.step = step; key.micro_batch = 0; key.node = node; key.output = 0;
    return key;
}

// f32 numbers that every codec brings back: integers, each block of 32 led by 127.
static void content(float *x, uint64_t bytes, uint64_t seed) {
    uint64_t i;
    for (i = 0; i < bytes / 4; i++) x[i] = i % 32 ? (float)((int)(tl_mix_u64(seed, i) % 255) - 127) : 127.0f;
}

static tl_result save_with(fixture *f, tl_checkpoint_key key, uint64_t bytes, uint64_t cost, uint64_t seed, int keep) {
    static float x[1 << 16];
    tl_save_desc desc;
    memset(&desc, 0, sizeof desc);
    content(x, bytes, seed);
    desc.key = key; desc.data = x; desc.bytes = bytes; desc.cost = cost; desc.keep = keep;
    return tl_save_checkpoint(&f->env, f->m, &desc);
}

static tl_result save(fixture *f, int node, uint64_t bytes) { return save_with(f, key_of(0, node), bytes, 1, (uint64_t)node, 0); }

static void assert_content(const void *data, uint64_t bytes, uint64_t seed) {
    static float x[1 << 16];
    content(x, bytes, seed);
    assert_memory_equal(data, x, (size_t)bytes);
}

static tl_result take(fixture *f, int node, uint64_t bytes) {
    static float x[1 << 16];
    tl_result result = tl_take_checkpoint(&f->env, f->m, key_of(0, node), x, bytes);
    if (!result) assert_content(x, bytes, (uint64_t)node);
    return result;
}

static int has(fixture *f, int node) { return tl_has_checkpoint(f->m, key_of(0, node)); }

// -- the basic calls --

static void save_copies_take_returns_and_removes(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < 4; variant++) {
        fixture f;
        float x[25], y[25];
        tl_save_desc desc;
        int i;
        begin(&f);
        open_manager(&f, variant);
        for (i = 0; i < 25; i++) x[i] = 7.0f + (float)i;
        memset(&desc, 0, sizeof desc);
        desc.key = key_of(3, 5); desc.data = x; desc.bytes = 100; desc.cost = 9;
        assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);
        memset(x, 0, sizeof x);
        assert_int_equal(tl_find_memory_usage(f.m), 100);
        assert_true(tl_has_checkpoint(f.m, key_of(3, 5)));
        assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(3, 5), y, 99), TL_ERROR_INVALID_ARG);
        assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(3, 5), y, 100), TL_OK);
        for (i = 0; i < 25; i++) assert_true(y[i] == 7.0f + (float)i);
        assert_int_equal(tl_find_memory_usage(f.m), 0);
        assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(3, 5), y, 100), TL_ERROR_NOT_FOUND);
        assert_non_null(strstr(f.env.error.text, "tl_take_checkpoint: key"));
        check_usage(&f);
        close_manager(&f);
    }
}

static void find_shows_the_five_fields_of_the_seed_and_more(void **state) {
    fixture f;
    tl_checkpoint_info info;
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    assert_int_equal(save(&f, 1, 40), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 2), 80, 17, 2, 0), TL_OK);
    assert_int_equal(tl_find_checkpoint(&f.env, f.m, key_of(0, 2), &info), TL_OK);
    assert_int_equal(info.key.node, 2);
    assert_int_equal(info.timestamp, 2);
    assert_int_equal(info.last_use, 2);
    assert_int_equal(info.bytes, 80);
    assert_int_equal(info.held_bytes, 80);
    assert_int_equal(info.cost, 17);
    assert_int_equal(info.in_memory, 1);
    assert_int_equal(info.tier, TL_TIER_DEVICE);
    assert_int_equal(info.codec, TL_CODEC_NONE);
    assert_int_equal(tl_find_checkpoint(&f.env, f.m, key_of(0, 3), &info), TL_ERROR_NOT_FOUND);
    assert_int_equal(info.bytes, 0);
    close_manager(&f);
}

static void ranges_are_saved_and_taken_by_ticket(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < 4; variant++) {
        fixture f;
        uint64_t block;
        tl_range source, target;
        tl_save_desc desc;
        tl_ticket ticket;
        tl_access access;
        void *host;
        begin(&f);
        open_manager(&f, variant);
        assert_int_equal(f.b.add_block(f.b.self, TL_TIER_DEVICE, 512, &block), TL_OK);
        source.block = target.block = block;
        source.offset = 0; target.offset = 256;
        source.bytes = target.bytes = 200;
        assert_int_equal(f.b.claim(f.b.self, source), TL_OK);
        assert_int_equal(f.b.claim(f.b.self, target), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, source, 0x40e00000u), TL_OK);
        memset(&desc, 0, sizeof desc);
        desc.key = key_of(0, 4); desc.source = source;
        assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, source, 0), TL_OK);  // after the copy, whenever that runs
        assert_int_equal(tl_find_memory_usage(f.m), 200);
        assert_int_equal(tl_take_checkpoint_range(&f.env, f.m, key_of(0, 4), source, &ticket), TL_OK);
        assert_int_equal(tl_find_memory_usage(f.m), 0);
        desc.key.node = 5;
        assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);
        assert_int_equal(tl_take_checkpoint_range(&f.env, f.m, key_of(0, 5), target, &ticket), TL_OK);
        assert_true(ticket.value > 0);
        assert_int_equal(f.b.wait(f.b.self, ticket), TL_OK);
        access.range = target; access.writes = 0;
        assert_int_equal(f.b.order(f.b.self, &access, 1), TL_OK);
        assert_int_equal(f.b.map(f.b.self, target, TL_MAP_READ, &host), TL_OK);
        assert_true(((float *)host)[0] == 7.0f && ((float *)host)[49] == 7.0f);
        assert_int_equal(f.b.unmap(f.b.self, target, TL_MAP_READ, host), TL_OK);
        desc.key.node = 6;
        assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);  // read into the host while the copy is pending
        {
            float out[50];
            assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(0, 6), out, 200), TL_OK);
            assert_true(out[0] == 7.0f && out[49] == 7.0f);
        }
        desc.key.node = 7;
        assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);  // dropped while its copy is pending
        assert_int_equal(tl_drop_checkpoint(&f.env, f.m, key_of(0, 7)), TL_OK);
        assert_int_equal(f.b.submit(f.b.self, &ticket), TL_OK);
        assert_int_equal(f.b.release(f.b.self, source), TL_OK);
        assert_int_equal(f.b.release(f.b.self, target), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
        close_manager(&f);
    }
}

static void zero_byte_checkpoints_are_held_like_others(void **state) {
    fixture f;
    tl_save_desc desc;
    const void *data;
    uint64_t bytes = 1;
    tl_ticket ticket;
    tl_range none = {0, 0, 0};
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 8;
    open_manager(&f, CHECKED);
    memset(&desc, 0, sizeof desc);
    desc.key = key_of(0, 1);
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, desc.key, &data, &bytes), TL_OK);
    assert_null(data);
    assert_int_equal(bytes, 0);
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, desc.key), TL_OK);
    assert_int_equal(tl_take_checkpoint(&f.env, f.m, desc.key, NULL, 0), TL_OK);
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);
    assert_int_equal(tl_take_checkpoint_range(&f.env, f.m, desc.key, none, &ticket), TL_OK);
    assert_int_equal(tl_find_checkpoint_count(f.m), 0);
    close_manager(&f);
}

static void a_desc_that_breaks_a_rule_is_refused(void **state) {
    fixture f;
    tl_manager_desc desc;
    tl_save_desc bad;
    tl_manager *m = NULL;
    float x[2] = {0, 0};
    int kind;
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    memset(&desc, 0, sizeof desc);
    for (kind = 0; kind <= TL_POLICY_COUNT; kind++) {
        memset(&desc, 0, sizeof desc);
        desc.policy.kind = (tl_policy_kind)kind;
        if (kind == TL_POLICY_KEEP_ALL || kind == TL_POLICY_SELECTIVE || kind == TL_POLICY_NONE) continue;
        assert_int_equal(tl_init_manager(&f.env, &f.b, &desc, &m), TL_ERROR_INVALID_ARG);
        assert_string_equal(f.env.error.text, kind == TL_POLICY_EVERY_N ? "tl_init_manager: every-n: interval: must be > 0"
                            : "tl_init_manager: policy: must be keep-all, every-n, selective or none");
        assert_null(m);
    }
    memset(&desc, 0, sizeof desc);
    desc.eviction = TL_EVICTION_COUNT;
    assert_int_equal(tl_init_manager(&f.env, &f.b, &desc, &m), TL_ERROR_INVALID_ARG);
    desc.eviction = TL_EVICTION_CALLER;
    assert_int_equal(tl_init_manager(&f.env, &f.b, &desc, &m), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(f.env.error.text, "tl_init_manager: evict: "));
    desc.eviction = TL_EVICTION_OLDEST;
    desc.codec = TL_CODEC_COUNT;
    assert_int_equal(tl_init_manager(&f.env, &f.b, &desc, &m), TL_ERROR_INVALID_ARG);
    desc.codec = TL_CODEC_NONE;
    desc.checkpoint_capacity = -1;
    assert_int_equal(tl_init_manager(&f.env, &f.b, &desc, &m), TL_ERROR_INVALID_ARG);
    tl_free_manager(NULL);
    memset(&bad, 0, sizeof bad);
    bad.data = x; bad.bytes = 8;
    bad.key.node = -1;
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &bad), TL_ERROR_INVALID_ARG);
    bad.key.node = 0;
    bad.key.output = -2;
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &bad), TL_ERROR_INVALID_ARG);
    bad.key.output = TL_SAVED;
    bad.key.micro_batch = -1;
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &bad), TL_ERROR_INVALID_ARG);
    bad.key.micro_batch = 0;
    bad.source.bytes = 8;
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &bad), TL_ERROR_INVALID_ARG);
    bad.data = NULL;
    bad.source.bytes = 0;
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &bad), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_find_checkpoint_count(f.m), 0);
    close_manager(&f);
}

static void a_codec_the_backend_lacks_is_unsupported(void **state) {
    fixture f;
    tl_manager *m;
    tl_cpu_backend_desc desc;
    (void)state;
    begin(&f);
    memset(&desc, 0, sizeof desc);
    assert_int_equal(tl_init_cpu_backend(&f.env, &desc, &f.s.inner), TL_OK);
    f.b = f.s.inner;
    f.desc.codec = TL_CODEC_Q8;
    assert_int_equal(tl_init_manager(&f.env, &f.b, &f.desc, &m), TL_OK);
    tl_free_manager(m);
    f.b = shim_over(&f.s);
    {
        tl_backend_limits limits;
        tl_backend none;
        shim_limits(&f.s, &limits);
        assert_true(limits.codecs & 1u << TL_CODEC_Q8);
        memset(&none, 0, sizeof none);
        assert_int_equal(tl_init_manager(&f.env, &none, &f.desc, &m), TL_ERROR_INVALID_ARG);
        none.limits = NULL;
        none = f.b;
        none.limits = NULL;  // a backend that says nothing can convert nothing
        assert_int_equal(tl_init_manager(&f.env, &none, &f.desc, &m), TL_ERROR_UNSUPPORTED);
    }
    tl_free_cpu_backend(&f.env, &f.s.inner);
}

static void names_parse_back(void **state) {
    int i;
    tl_eviction eviction;
    (void)state;
    for (i = 0; i < TL_EVICTION_COUNT; i++) {
        assert_true(tl_parse_eviction(tl_name_eviction((tl_eviction)i), &eviction));
        assert_int_equal(eviction, i);
    }
    assert_string_equal(tl_name_eviction(TL_EVICTION_COUNT), "?");
    assert_false(tl_parse_eviction("least", &eviction));
}

// -- the comparator --

static tli_victim victim_of(uint64_t timestamp, uint64_t last_use, uint64_t bytes, uint64_t cost) {
    tli_victim v;
    v.timestamp = timestamp; v.last_use = last_use; v.bytes = bytes; v.cost = cost;
    return v;
}

static void the_order_of_eviction_is_exact(void **state) {
    tl_random random = {1};
    tli_victim a = victim_of(1, 5, 100, 10), b = victim_of(2, 3, 200, 10);
    int i;
    (void)state;
    assert_true(tli_evict_before(TL_EVICTION_OLDEST, &a, &b, 9) && !tli_evict_before(TL_EVICTION_OLDEST, &b, &a, 9));
    assert_true(tli_evict_before(TL_EVICTION_RECENT, &b, &a, 9) && !tli_evict_before(TL_EVICTION_RECENT, &a, &b, 9));
    assert_true(tli_evict_before(TL_EVICTION_LARGEST, &b, &a, 9) && !tli_evict_before(TL_EVICTION_LARGEST, &a, &b, 9));
    assert_true(tli_evict_before(TL_EVICTION_COST, &b, &a, 9) && !tli_evict_before(TL_EVICTION_COST, &a, &b, 9));
    for (i = 0; i < 100000; i++) {  // small numbers: the products fit 64 bits
        uint64_t now = 1000, left, right;
        a = victim_of(1, tl_next_random_below(&random, 1001), 1 + tl_next_random_below(&random, 1 << 20), tl_next_random_below(&random, 1 << 20));
        b = victim_of(2, tl_next_random_below(&random, 1001), 1 + tl_next_random_below(&random, 1 << 20), tl_next_random_below(&random, 1 << 20));
        left = a.cost * b.bytes * (now - b.last_use + 1);
        right = b.cost * a.bytes * (now - a.last_use + 1);
        assert_int_equal(tli_evict_before(TL_EVICTION_COST, &a, &b, now), left <= right);
        assert_int_equal(tli_evict_before(TL_EVICTION_COST, &b, &a, now), right < left);
    }
    for (i = 0; i < 100000; i++) {  // wide numbers: a factor moved from one place to another changes nothing
        uint64_t x = tl_next_random(&random), y = tl_next_random(&random), p[3], q[3], r[3];
        int shift = (int)tl_next_random_below(&random, 64);
        tli_mul_wide(x, y, (uint64_t)1 << shift, p);
        tli_mul_wide((uint64_t)1 << shift, x, y, q);
        tli_mul_wide(y, (uint64_t)1 << shift, x, r);
        assert_memory_equal(p, q, sizeof p);
        assert_memory_equal(p, r, sizeof p);
    }
    {
        uint64_t p[3];
        tli_mul_wide(UINT64_MAX, UINT64_MAX, UINT64_MAX, p);  // 2^192 - 3 2^128 + 3 2^64 - 1
        assert_true(p[0] == UINT64_MAX && p[1] == 2 && p[2] == UINT64_MAX - 2);
        tli_mul_wide(UINT64_C(0x123456789abcdef1), UINT64_C(0xfedcba9876543211), 3, p);
        assert_true(p[0] == UINT64_C(0x123456789abcdef1) * UINT64_C(0xfedcba9876543211) * 3);
    }
    a = victim_of(1, 0, UINT64_MAX, UINT64_MAX);
    b = victim_of(2, 0, UINT64_MAX, UINT64_MAX - 1);
    assert_true(tli_evict_before(TL_EVICTION_COST, &b, &a, UINT64_MAX - 1));
    assert_false(tli_evict_before(TL_EVICTION_COST, &a, &b, UINT64_MAX - 1));
}

// -- evictions --

static void exact_fit_is_held_and_one_byte_less_evicts(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 800;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    assert_int_equal(save(&f, 0, 400), TL_OK);
    assert_int_equal(save(&f, 1, 400), TL_OK);
    assert_true(has(&f, 0) && has(&f, 1));
    close_manager(&f);
    begin(&f);
    f.desc.device_budget_bytes = 799;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    assert_int_equal(save(&f, 0, 400), TL_OK);
    assert_int_equal(save(&f, 1, 400), TL_OK);
    assert_true(!has(&f, 0) && has(&f, 1));
    assert_int_equal(statistics_of(&f).dropped, 1);
    assert_int_equal(save(&f, 2, 800), TL_ERROR_OVER_BUDGET);
    assert_non_null(strstr(f.env.error.text, "800 bytes do not fit, 400 of 799"));
    assert_true(has(&f, 1));  // a refusal costs nothing
    assert_int_equal(statistics_of(&f).refused, 1);
    assert_int_equal(save(&f, 2, 796), TL_OK);
    assert_true(!has(&f, 1));
    check_usage(&f);
    close_manager(&f);
}

static int32_t pick_last(const tl_checkpoint_info *candidates, int32_t count, void *user) {
    ++*(int *)user;
    assert_true(candidates[count - 1].in_memory);
    return count - 1;
}

static int32_t pick_none(const tl_checkpoint_info *candidates, int32_t count, void *user) {
    (void)candidates; (void)user;
    return count;  // out of range is a refusal too
}

static void each_eviction_picks_its_own_victim(void **state) {
    static const int expected[TL_EVICTION_COUNT] = {2, 0, 1, 3, 3};
    int eviction, called = 0, i;
    (void)state;
    for (eviction = 0; eviction < TL_EVICTION_COUNT; eviction++) {
        fixture f;
        const void *data;
        uint64_t bytes;
        begin(&f);
        f.desc.device_budget_bytes = 1000;
        f.desc.eviction = (tl_eviction)eviction;
        if (eviction == TL_EVICTION_CALLER) { f.desc.evict = pick_last; f.desc.user = &called; }
        open_manager(&f, 0);
        assert_int_equal(save_with(&f, key_of(0, 0), 200, 100, 0, 0), TL_OK);   // oldest
        assert_int_equal(save_with(&f, key_of(0, 1), 200, 100, 1, 0), TL_OK);   // least recently used
        assert_int_equal(save_with(&f, key_of(0, 2), 200, 1, 2, 0), TL_OK);     // cheapest
        assert_int_equal(save_with(&f, key_of(0, 3), 400, 200, 3, 0), TL_OK);   // largest
        assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes), TL_OK);
        assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 0)), TL_OK);
        assert_int_equal(save_with(&f, key_of(0, 4), 200, 100, 4, 0), TL_OK);
        for (i = 0; i < 4; i++) assert_int_equal(has(&f, i), i != expected[eviction]);
        check_usage(&f);
        close_manager(&f);
    }
    assert_int_equal(called, 1);
}

static void the_caller_may_refuse_to_evict(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 100;
    f.desc.eviction = TL_EVICTION_CALLER;
    f.desc.evict = pick_none;
    open_manager(&f, 0);
    assert_int_equal(save(&f, 0, 60), TL_OK);
    assert_int_equal(save(&f, 1, 60), TL_ERROR_OVER_BUDGET);
    assert_true(has(&f, 0));
    close_manager(&f);
}

// The victim against a search over everything held: exact where age or use decides, within a class
// where size or cost per byte does.
static void victims_are_the_best_or_of_the_best_class(void **state) {
    int eviction;
    (void)state;
    for (eviction = 0; eviction < TL_EVICTION_CALLER; eviction++) {
        fixture f;
        tl_random random = {(uint64_t)eviction};
        int node = 0, i, checked = 0;
        begin(&f);
        f.desc.device_budget_bytes = 20000;
        f.desc.eviction = (tl_eviction)eviction;
        open_manager(&f, 0);
        while (checked < (is_slow() ? 300 : 1500)) {
            tli_victim held[3000], best, gone;
            int ids[3000], count = 0, lost = 0;
            uint64_t bytes = 4 * (1 + tl_next_random_below(&random, 200)), now;
            const void *data;
            if (node && !tl_next_random_below(&random, 3)) {
                int at = (int)tl_next_random_below(&random, (uint64_t)node);
                if (has(&f, at)) {
                    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, at), &data, &bytes), TL_OK);
                    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, at)), TL_OK);
                }
                continue;
            }
            for (i = node > 2900 ? node - 2900 : 0; i < node; i++) {
                tl_checkpoint_info info;
                if (tl_find_checkpoint(NULL, f.m, key_of(0, i), &info)) continue;
                held[count] = victim_of(info.timestamp, info.last_use, info.held_bytes, info.cost);
                ids[count++] = i;
            }
            now = f.m->clock;
            assert_int_equal(save_with(&f, key_of(0, node), bytes, tl_next_random_below(&random, 5000), (uint64_t)node, 0), TL_OK);
            node++;
            memset(&gone, 0, sizeof gone);
            memset(&best, 0, sizeof best);
            for (i = 0; i < count; i++) {
                if (!i || tli_evict_before((tl_eviction)eviction, &held[i], &best, now)) best = held[i];
                if (!has(&f, ids[i])) { gone = held[i]; lost++; }
            }
            if (lost != 1) continue;  // one victim: it can be compared
            checked++;
            if (eviction == TL_EVICTION_OLDEST) assert_true(gone.timestamp == best.timestamp);
            if (eviction == TL_EVICTION_RECENT) assert_true(gone.last_use == best.last_use);
            if (eviction == TL_EVICTION_LARGEST) assert_true(gone.bytes * 5 > best.bytes * 4);
            if (eviction == TL_EVICTION_COST) {
                double a = (double)gone.cost / ((double)gone.bytes * (double)(now - gone.last_use + 1));
                double b = (double)best.cost / ((double)best.bytes * (double)(now - best.last_use + 1));
                assert_true(a <= b * 2.0);
            }
        }
        close_manager(&f);
    }
}

static void cost_is_exact_among_equal_costs_per_byte(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 300;
    open_manager(&f, 0);
    assert_int_equal(save_with(&f, key_of(0, 0), 100, 50, 0, 0), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 1), 100, 50, 1, 0), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 2), 100, 50, 2, 0), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 3), 100, 50, 3, 0), TL_OK);
    assert_true(!has(&f, 0) && has(&f, 1));
    close_manager(&f);
}

static void evicted_checkpoints_are_compressed_then_spilled_then_dropped(void **state) {
    int codec, variant;
    (void)state;
    for (codec = TL_CODEC_F16; codec < TL_CODEC_COUNT; codec++)
        for (variant = 0; variant < 4; variant++) {
            fixture f;
            tl_checkpoint_info info;
            tl_checkpoint_statistics s;
            uint64_t packed = tl_find_codec_bytes((tl_codec)codec, 1024);
            begin(&f);
            f.desc.device_budget_bytes = 2048 + 1024;
            f.desc.host_budget_bytes = packed;
            f.desc.eviction = TL_EVICTION_OLDEST;
            f.desc.codec = (tl_codec)codec;
            open_manager(&f, variant);
            assert_int_equal(save(&f, 0, 1024), TL_OK);
            assert_int_equal(save(&f, 1, 1024), TL_OK);
            assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 2000), TL_OK);
            assert_int_equal(tl_find_checkpoint(&f.env, f.m, key_of(0, 0), &info), TL_OK);
            assert_int_equal(info.codec, codec);
            assert_int_equal(info.held_bytes, packed);
            assert_int_equal(info.bytes, 1024);
            assert_int_equal(info.tier, TL_TIER_HOST);
            check_usage(&f);
            assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 3000), TL_OK);
            s = statistics_of(&f);
            assert_int_equal(s.compressions, 2);
            assert_int_equal(s.spills, 1);
            assert_int_equal(s.dropped, 1);
            assert_true(has(&f, 0) && !has(&f, 1));
            assert_int_equal(s.host_memory_bytes, packed);
            assert_int_equal(s.in_memory_checkpoints, 0);
            {
                const void *data;
                uint64_t bytes;
                assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes), TL_OK);
                assert_int_equal(bytes, 1024);
                assert_content(data, bytes, 0);
                assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 0)), TL_OK);
                assert_int_equal(statistics_of(&f).fetches, 1);
                assert_int_equal(tl_find_memory_usage(f.m), 1024);
                assert_int_equal(statistics_of(&f).host_memory_bytes, 0);
            }
            assert_int_equal(take(&f, 0, 1024), TL_OK);
            assert_int_equal(tl_find_memory_usage(f.m), 0);
            close_manager(&f);
        }
}

static void packed_checkpoints_are_taken_without_room_to_expand(void **state) {
    int range;
    (void)state;
    for (range = 0; range < 2; range++) {
        fixture f;
        begin(&f);
        f.desc.device_budget_bytes = 1024 + 512;
        f.desc.codec = TL_CODEC_BF16;
        open_manager(&f, DEFERRED | CHECKED);
        assert_int_equal(save(&f, 0, 1024), TL_OK);
        assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 1024), TL_OK);
        assert_int_equal(tl_find_memory_usage(f.m), 512);
        assert_int_equal(save(&f, 1, 1024), TL_OK);
        if (!range) {
            assert_int_equal(take(&f, 0, 1024), TL_OK);
        } else {
            uint64_t block;
            tl_range to;
            tl_ticket ticket;
            void *host;
            f.s.budget[TL_TIER_DEVICE] += 1024;  // the caller's own range
            assert_int_equal(f.b.add_block(f.b.self, TL_TIER_DEVICE, 1024, &block), TL_OK);
            to.block = block; to.offset = 0; to.bytes = 1024;
            assert_int_equal(f.b.claim(f.b.self, to), TL_OK);
            assert_int_equal(tl_take_checkpoint_range(&f.env, f.m, key_of(0, 0), to, &ticket), TL_OK);
            assert_int_equal(f.b.wait(f.b.self, ticket), TL_OK);
            assert_int_equal(f.b.map(f.b.self, to, TL_MAP_READ, &host), TL_OK);
            assert_content(host, 1024, 0);
            assert_int_equal(f.b.unmap(f.b.self, to, TL_MAP_READ, host), TL_OK);
            assert_int_equal(f.b.release(f.b.self, to), TL_OK);
            assert_int_equal(f.b.free_block(f.b.self, block), TL_OK);
        }
        assert_int_equal(take(&f, 1, 1024), TL_OK);
        close_manager(&f);
    }
}

static void lossless_checkpoints_are_never_compressed(void **state) {
    fixture f;
    tl_save_desc desc;
    float x[64];
    tl_checkpoint_info info;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 1024;
    f.desc.host_budget_bytes = TL_UNLIMITED;
    f.desc.codec = TL_CODEC_Q8;
    open_manager(&f, 0);
    content(x, 256, 1);
    memset(&desc, 0, sizeof desc);
    desc.key = key_of(0, 1); desc.data = x; desc.bytes = 256; desc.lossless = 1;
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);
    assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 1024), TL_OK);
    assert_int_equal(tl_find_checkpoint(&f.env, f.m, desc.key, &info), TL_OK);
    assert_int_equal(info.codec, TL_CODEC_NONE);
    assert_int_equal(info.in_memory, 0);
    assert_int_equal(info.tier, TL_TIER_HOST);
    assert_int_equal(take(&f, 1, 256), TL_OK);
    close_manager(&f);
}

static void kept_checkpoints_are_moved_but_never_dropped(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 300;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    assert_int_equal(save_with(&f, key_of(0, 0), 100, 1, 0, 1), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 1), 100, 1, 1, 1), TL_OK);
    assert_int_equal(save(&f, 2, 100), TL_OK);
    assert_int_equal(save(&f, 3, 100), TL_OK);  // drops 2, the only one that may go
    assert_true(has(&f, 0) && has(&f, 1) && !has(&f, 2) && has(&f, 3));
    assert_int_equal(save(&f, 4, 200), TL_ERROR_OVER_BUDGET);
    assert_true(has(&f, 3));
    close_manager(&f);
    begin(&f);
    f.desc.device_budget_bytes = 300;
    f.desc.host_budget_bytes = 100;
    open_manager(&f, 0);
    assert_int_equal(save_with(&f, key_of(0, 0), 100, 1, 0, 1), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 1), 100, 1, 1, 1), TL_OK);
    assert_int_equal(save(&f, 4, 200), TL_OK);  // one of them is spilled
    assert_int_equal(statistics_of(&f).spills, 1);
    assert_int_equal(save(&f, 5, 300), TL_ERROR_OVER_BUDGET);  // the other has no room
    assert_int_equal(take(&f, 0, 100), TL_OK);
    assert_int_equal(take(&f, 1, 100), TL_OK);
    assert_int_equal(take(&f, 4, 200), TL_OK);
    close_manager(&f);
}

static void borrowed_checkpoints_are_not_evicted_replaced_or_removed(void **state) {
    fixture f;
    const void *data, *again;
    uint64_t bytes;
    float x[25];
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 200;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, CHECKED | DEFERRED);
    assert_int_equal(save(&f, 0, 100), TL_OK);
    assert_int_equal(save(&f, 1, 100), TL_OK);
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes), TL_OK);
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &again, &bytes), TL_OK);
    assert_ptr_equal(data, again);
    assert_int_equal(save(&f, 2, 100), TL_OK);
    assert_true(has(&f, 0) && !has(&f, 1));
    assert_int_equal(save(&f, 3, 101), TL_ERROR_OVER_BUDGET);
    assert_int_equal(save(&f, 0, 100), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(0, 0), x, 100), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_drop_checkpoint(&f.env, f.m, key_of(0, 0)), TL_ERROR_INVALID_ARG);
    assert_content(data, 100, 0);
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 0)), TL_OK);
    assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 101), TL_ERROR_OVER_BUDGET);  // still borrowed once
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 0)), TL_OK);
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 0)), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 9)), TL_ERROR_NOT_FOUND);
    assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 200), TL_OK);
    assert_int_equal(tl_find_checkpoint_count(f.m), 0);
    close_manager(&f);
}

static void writing_to_a_borrowed_checkpoint_is_found(void **state) {
    fixture f;
    union { const void *in; float *out; } data;
    uint64_t bytes;
    (void)state;
    begin(&f);
    open_manager(&f, CHECKED);
    assert_int_equal(save(&f, 0, 100), TL_OK);
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data.in, &bytes), TL_OK);
    data.out[3] += 1;
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 0)), TL_ERROR_CORRUPT);
    assert_int_equal(take(&f, 0, 100), TL_OK);  // the borrow is over, the bytes are the old ones
    close_manager(&f);
}

static void evict_frees_the_bytes_asked_for_and_no_more_than_needed(void **state) {
    fixture f;
    int i;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 1000;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    for (i = 0; i < 10; i++) assert_int_equal(save(&f, i, 100), TL_OK);
    assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 0), TL_OK);
    assert_int_equal(tl_find_checkpoint_count(f.m), 10);
    assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 250), TL_OK);
    assert_int_equal(tl_find_checkpoint_count(f.m), 7);
    assert_true(!has(&f, 2) && has(&f, 3));
    assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 1001), TL_ERROR_OVER_BUDGET);
    assert_int_equal(tl_find_checkpoint_count(f.m), 7);
    assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 1000), TL_OK);
    assert_int_equal(tl_find_memory_usage(f.m), 0);
    close_manager(&f);
}

static void peek_without_room_to_bring_back_is_refused_and_loses_nothing(void **state) {
    fixture f;
    const void *data;
    uint64_t bytes;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 200;
    f.desc.host_budget_bytes = 1000;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    assert_int_equal(save(&f, 0, 200), TL_OK);
    assert_int_equal(save(&f, 1, 200), TL_OK);  // spills 0
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 1), &data, &bytes), TL_OK);
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes), TL_ERROR_OVER_BUDGET);
    assert_null(data);
    assert_int_equal(bytes, 0);
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 1)), TL_OK);
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes), TL_OK);  // spills 1
    assert_content(data, 200, 0);
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 0)), TL_OK);
    assert_int_equal(take(&f, 1, 200), TL_OK);
    assert_int_equal(take(&f, 0, 200), TL_OK);
    assert_int_equal(statistics_of(&f).spills, 2);
    assert_int_equal(statistics_of(&f).fetches, 1);
    close_manager(&f);
}

// -- replacing --

static void replacing_is_atomic(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 300;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    assert_int_equal(save(&f, 0, 100), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 0), 200, 1, 0, 0), TL_OK);  // fits beside the old one
    assert_int_equal(tl_find_memory_usage(f.m), 200);
    assert_int_equal(save_with(&f, key_of(0, 0), 104, 1, 0, 0), TL_ERROR_OVER_BUDGET);  // does not
    assert_int_equal(take(&f, 0, 200), TL_OK);
    assert_int_equal(save(&f, 0, 300), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 0), 300, 1, 55, 0), TL_OK);  // same size: rewritten in place
    {
        float x[75];
        assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(0, 0), x, 300), TL_OK);
        assert_content(x, 300, 55);
    }
    assert_int_equal(save(&f, 0, 300), TL_OK);
    f.s.fail_function = F_MAP; f.s.fail_at = f.s.calls[F_MAP];
    assert_int_equal(save_with(&f, key_of(0, 0), 300, 1, 55, 0), TL_ERROR_BACKEND);  // not begun: the old one stands
    assert_int_equal(take(&f, 0, 300), TL_OK);
    assert_int_equal(save(&f, 0, 300), TL_OK);
    f.s.fail_function = F_UNMAP; f.s.fail_at = f.s.calls[F_UNMAP];
    assert_int_equal(save_with(&f, key_of(0, 0), 300, 1, 55, 0), TL_ERROR_BACKEND);  // half done: never mistaken for whole
    assert_int_equal(take(&f, 0, 300), TL_ERROR_NOT_FOUND);
    check_usage(&f);
    close_manager(&f);
}

static void a_save_that_the_policy_passes_over_removes_the_old_one(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    f.desc.policy = tl_policy_selective(100);
    open_manager(&f, 0);
    assert_int_equal(save_with(&f, key_of(0, 0), 100, 100, 0, 0), TL_OK);
    assert_true(has(&f, 0));
    assert_int_equal(save_with(&f, key_of(0, 0), 100, 99, 1, 0), TL_OK);
    assert_false(has(&f, 0));  // else it would be taken for the new one
    assert_int_equal(statistics_of(&f).skipped, 1);
    close_manager(&f);
}

static void another_step_is_stale(void **state) {
    fixture f;
    float x[25];
    const void *data;
    uint64_t bytes;
    tl_checkpoint_info info;
    tl_ticket ticket;
    tl_range none = {0, 0, 0};
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    assert_int_equal(save_with(&f, key_of(5, 0), 100, 1, 0, 0), TL_OK);
    assert_int_equal(save_with(&f, key_of(4, 0), 100, 1, 1, 0), TL_ERROR_STALE);
    assert_non_null(strstr(f.env.error.text, "is 4, held is that of step 5"));
    assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(6, 0), x, 100), TL_ERROR_STALE);
    assert_non_null(strstr(f.env.error.text, "is 6, held is that of step 5"));
    assert_int_equal(tl_take_checkpoint_range(&f.env, f.m, key_of(6, 0), none, &ticket), TL_ERROR_STALE);
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(4, 0), &data, &bytes), TL_ERROR_STALE);
    assert_int_equal(tl_find_checkpoint(&f.env, f.m, key_of(4, 0), &info), TL_ERROR_STALE);
    assert_int_equal(tl_drop_checkpoint(&f.env, f.m, key_of(4, 0)), TL_ERROR_STALE);
    assert_false(tl_has_checkpoint(f.m, key_of(6, 0)));
    assert_int_equal(save_with(&f, key_of(6, 0), 48, 1, 7, 0), TL_OK);  // a later step replaces
    assert_int_equal(tl_find_checkpoint_count(f.m), 1);
    assert_int_equal(tl_find_memory_usage(f.m), 48);
    assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(6, 0), x, 48), TL_OK);
    assert_content(x, 48, 7);
    assert_int_equal(statistics_of(&f).misses, 3);
    assert_int_equal(statistics_of(&f).hits, 1);
    close_manager(&f);
}

// -- policies --

static void policies_keep_what_they_say(void **state) {
    int n, node;
    (void)state;
    for (n = 1; n < 6; n++) {
        fixture f;
        begin(&f);
        f.desc.policy = tl_policy_every_n((uint64_t)n);
        open_manager(&f, 0);
        for (node = 0; node < 20; node++) assert_int_equal(save(&f, node, 16), TL_OK);
        for (node = 0; node < 20; node++) assert_int_equal(has(&f, node), node % n == 0);
        close_manager(&f);
    }
    for (n = 0; n < 3; n++) {
        static const uint64_t costs[3] = {99, 100, UINT64_MAX};
        fixture f;
        int i;
        begin(&f);
        f.desc.policy = n == 0 ? tl_policy_keep_all() : n == 1 ? tl_policy_none() : tl_policy_selective(100);
        open_manager(&f, 0);
        for (i = 0; i < 3; i++) {
            assert_int_equal(save_with(&f, key_of(0, i), 16, costs[i], 0, 0), TL_OK);
            assert_int_equal(has(&f, i), n == 0 || (n == 2 && costs[i] >= 100));
        }
        assert_int_equal(save_with(&f, key_of(0, 9), 16, 0, 0, 1), TL_OK);
        assert_true(has(&f, 9));  // kept whatever the policy
        close_manager(&f);
    }
}

// -- the defects of the seed, by their numbers --

static void defect_B1_eviction_returns_with_a_budget_one_byte_too_small(void **state) {
    fixture f;
    int i;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 399;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    for (i = 0; i < 50; i++) assert_int_equal(save(&f, i, 200), TL_OK);
    assert_int_equal(statistics_of(&f).evictions, 49);
    close_manager(&f);
}

typedef struct counted_lock { int held, deepest, taken; } counted_lock;

static void lock_once(void *user) {
    counted_lock *lock = (counted_lock *)user;
    if (++lock->held > lock->deepest) lock->deepest = lock->held;
    lock->taken++;
}
static void unlock_once(void *user) { ((counted_lock *)user)->held--; }

static void defect_B2_the_one_lock_is_taken_once_per_call(void **state) {
    fixture f;
    counted_lock lock = {0, 0, 0};
    tl_checkpoint_statistics s;
    const void *data;
    uint64_t bytes;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 300;
    f.desc.host_budget_bytes = 300;
    f.desc.codec = TL_CODEC_F16;
    f.desc.lock.lock = lock_once;
    f.desc.lock.unlock = unlock_once;
    f.desc.lock.user = &lock;
    open_manager(&f, 0);
    assert_int_equal(save(&f, 0, 200), TL_OK);
    assert_int_equal(save(&f, 1, 200), TL_OK);
    assert_int_equal(save(&f, 2, 400), TL_ERROR_OVER_BUDGET);
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes), TL_OK);
    assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, 0)), TL_OK);
    assert_int_equal(take(&f, 0, 200), TL_OK);
    assert_int_equal(take(&f, 7, 200), TL_ERROR_NOT_FOUND);
    assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 300), TL_OK);
    assert_int_equal(tl_reset_manager(&f.env, f.m), TL_OK);
    tl_measure_manager(f.m, &s);
    assert_int_equal(lock.deepest, 1);
    assert_int_equal(lock.held, 0);
    assert_true(lock.taken >= 10);
    close_manager(&f);
    begin(&f);
    open_manager(&f, 0);
    f.desc.lock.lock = lock_once;
    {
        tl_manager *m;
        assert_int_equal(tl_init_manager(&f.env, &f.b, &f.desc, &m), TL_ERROR_INVALID_ARG);  // both or neither
    }
    close_manager(&f);
}

static void defect_B3_usage_is_zero_after_everything_was_taken(void **state) {
    int round, i;
    fixture f;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 1000;
    open_manager(&f, 0);
    for (round = 0; round < 100; round++) {
        for (i = 0; i < 10; i++) assert_int_equal(save(&f, i, 100), TL_OK);
        for (i = 9; i >= 0; i--) assert_int_equal(take(&f, i, 100), TL_OK);
        assert_int_equal(tl_find_memory_usage(f.m), 0);
    }
    assert_int_equal(statistics_of(&f).evictions, 0);
    close_manager(&f);
}

static void defect_B4_the_content_is_the_one_saved(void **state) {
    fixture f;
    float x[100], y[100];
    tl_save_desc desc;
    int i;
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    for (i = 0; i < 100; i++) x[i] = 7.0f;
    memset(&desc, 0, sizeof desc);
    desc.data = x; desc.bytes = 400;
    assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);
    assert_int_equal(tl_take_checkpoint(&f.env, f.m, desc.key, y, 400), TL_OK);
    assert_true(y[0] == 7.0f && y[99] == 7.0f);
    close_manager(&f);
}

static void defect_B6_saving_again_counts_once(void **state) {
    fixture f;
    int i;
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    for (i = 0; i < 3; i++) {
        assert_int_equal(save(&f, 5, 400), TL_OK);
        assert_int_equal(tl_find_memory_usage(f.m), 400);
        assert_int_equal(tl_find_checkpoint_count(f.m), 1);
    }
    assert_int_equal(tl_drop_checkpoint(&f.env, f.m, key_of(0, 5)), TL_OK);
    assert_int_equal(tl_find_memory_usage(f.m), 0);
    assert_int_equal(tl_drop_checkpoint(&f.env, f.m, key_of(0, 5)), TL_ERROR_NOT_FOUND);
    close_manager(&f);
}

static void defect_B7_eviction_goes_on_until_it_fits_or_refuses(void **state) {
    fixture f;
    int i;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 1000;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    for (i = 0; i < 10; i++) assert_int_equal(save(&f, i, 100), TL_OK);
    assert_int_equal(save(&f, 20, 900), TL_OK);
    assert_int_equal(tl_find_memory_usage(f.m), 1000);
    assert_int_equal(statistics_of(&f).dropped, 9);
    assert_int_equal(save(&f, 21, 1001), TL_ERROR_OVER_BUDGET);
    assert_int_equal(tl_find_memory_usage(f.m), 1000);
    close_manager(&f);
}

static void defect_B9_sizes_that_overflow_are_refused(void **state) {
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2, (uint64_t)1 << 62};
    size_t i;
    int limited;
    (void)state;
    for (limited = 0; limited < 2; limited++)
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            fixture f;
            tl_save_desc desc;
            float x = 0;
            tl_result result;
            begin(&f);
            if (limited) { f.desc.device_budget_bytes = 1000; f.desc.host_budget_bytes = TL_UNLIMITED; f.desc.codec = TL_CODEC_F16; }
            open_manager(&f, 0);
            assert_int_equal(save(&f, 3, 100), TL_OK);
            memset(&desc, 0, sizeof desc);
            desc.data = &x; desc.bytes = sizes[i];
            result = tl_save_checkpoint(&f.env, f.m, &desc);
            assert_int_equal(result, limited ? TL_ERROR_OVER_BUDGET : TL_ERROR_NO_MEMORY);
            assert_int_equal(take(&f, 3, 100), TL_OK);
            close_manager(&f);
        }
}

static void defect_B10_cheap_checkpoints_go_first(void **state) {
    fixture f;
    int i;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 1000;
    open_manager(&f, 0);
    for (i = 0; i < 10; i++) assert_int_equal(save_with(&f, key_of(0, i), 100, i == 4 ? 1 : 1000, (uint64_t)i, 0), TL_OK);
    assert_int_equal(save(&f, 10, 100), TL_OK);
    for (i = 0; i < 10; i++) assert_int_equal(has(&f, i), i != 4);
    close_manager(&f);
}

static void defect_B11_inputs_are_held_under_every_policy(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    f.desc.policy = tl_policy_none();
    f.desc.device_budget_bytes = 100;
    open_manager(&f, 0);
    assert_int_equal(save_with(&f, key_of(0, 0), 100, 0, 0, 1), TL_OK);
    assert_int_equal(save(&f, 1, 100), TL_OK);
    assert_true(has(&f, 0) && !has(&f, 1));
    assert_int_equal(save_with(&f, key_of(0, 2), 100, 0, 0, 1), TL_ERROR_OVER_BUDGET);
    assert_int_equal(take(&f, 0, 100), TL_OK);
    close_manager(&f);
}

static void defect_B12_every_zeroth_is_an_error(void **state) {
    fixture f;
    tl_manager *m;
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    f.desc.policy = tl_policy_every_n(0);
    assert_int_equal(tl_init_manager(&f.env, &f.b, &f.desc, &m), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(f.env.error.text, "every-n: interval: must be > 0"));
    close_manager(&f);
}

static void defect_B13_the_threshold_itself_is_kept(void **state) {
    tl_policy policy = tl_policy_selective(100);
    (void)state;
    assert_false(tli_wants_checkpoint(&policy, 0, 99));
    assert_true(tli_wants_checkpoint(&policy, 0, 100));
    assert_true(tli_wants_checkpoint(&policy, 0, 101));
}

static void defect_B14_and_B21_statistics_agree_with_what_is_held(void **state) {
    fixture f;
    tl_checkpoint_statistics s;
    int i;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 800;
    f.desc.host_budget_bytes = 100;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, 0);
    for (i = 0; i < 10; i++) assert_int_equal(save(&f, i, 100), TL_OK);
    s = statistics_of(&f);
    assert_int_equal(s.total_checkpoints, 9);
    assert_int_equal(s.in_memory_checkpoints, 8);
    assert_int_equal(s.total_memory_bytes, 800);
    assert_int_equal(s.memory_budget_bytes, 800);
    assert_int_equal(s.host_memory_bytes, 100);
    assert_int_equal(s.host_budget_bytes, 100);
    assert_int_equal(s.peak_bytes, 800);
    assert_true(s.memory_utilization == 1.0);
    assert_int_equal(s.saved, 10);
    assert_int_equal(s.spills, 1);
    assert_int_equal(s.dropped, 1);
    assert_int_equal(s.evictions, 2);
    assert_int_equal(take(&f, 0, 100), TL_OK);
    assert_int_equal(take(&f, 1, 100), TL_ERROR_NOT_FOUND);
    s = statistics_of(&f);
    assert_int_equal(s.hits, 1);
    assert_int_equal(s.misses, 1);
    assert_int_equal(s.host_memory_bytes, 0);
    assert_int_equal(s.total_checkpoints, 8);
    assert_int_equal(tl_reset_manager(&f.env, f.m), TL_OK);
    s = statistics_of(&f);
    assert_int_equal(s.total_checkpoints + s.saved + s.hits + s.evictions + s.total_memory_bytes + s.peak_bytes, 0);
    close_manager(&f);
}

static void defect_B15_no_budget_has_no_utilization(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    assert_true(statistics_of(&f).memory_utilization == 0.0);
    assert_int_equal(save(&f, 0, 100), TL_OK);
    assert_true(statistics_of(&f).memory_utilization == 0.0);
    assert_true(statistics_of(&f).memory_budget_bytes == TL_UNLIMITED);
    close_manager(&f);
}

static void defect_B16_every_failure_has_a_code_and_a_sentence(void **state) {
    int function;
    (void)state;
    for (function = 0; function < F_COUNT; function++) {
        fixture f;
        tl_result result;
        begin(&f);
        f.desc.device_budget_bytes = 100;
        f.desc.host_budget_bytes = 1000;
        open_manager(&f, 0);
        assert_int_equal(save(&f, 0, 100), TL_OK);
        f.s.fail_function = function;
        f.s.fail_at = f.s.calls[function];
        f.s.code = TL_ERROR_DEVICE_LOST;
        f.env.error.text[0] = 0;
        result = save(&f, 1, 100);
        if (f.s.failed && function != F_FREE) {
            assert_int_equal(result, TL_ERROR_DEVICE_LOST);
            assert_non_null(strstr(f.env.error.text, "tl_save_checkpoint: backend: "));
        }
        close_manager(&f);
    }
}

static void defect_B17_a_checkpoint_of_an_earlier_step_is_never_used(void **state) {
    fixture f;
    float x[25];
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    assert_int_equal(save_with(&f, key_of(1, 0), 100, 1, 0, 0), TL_OK);
    assert_int_equal(tl_take_checkpoint(&f.env, f.m, key_of(2, 0), x, 100), TL_ERROR_STALE);
    close_manager(&f);
}

static void defect_B18_outputs_saved_bytes_and_micro_batches_have_keys_of_their_own(void **state) {
    fixture f;
    int mb, node, output;
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    for (mb = 0; mb < 3; mb++)
        for (node = 0; node < 3; node++)
            for (output = TL_SAVED; output < 3; output++) {
                tl_checkpoint_key key = key_of(0, node);
                key.micro_batch = mb; key.output = output;
                assert_int_equal(save_with(&f, key, 32, 1, (uint64_t)(mb * 100 + node * 10 + output + 1), 0), TL_OK);
            }
    assert_int_equal(tl_find_checkpoint_count(f.m), 36);
    for (mb = 0; mb < 3; mb++)
        for (node = 0; node < 3; node++)
            for (output = TL_SAVED; output < 3; output++) {
                tl_checkpoint_key key = key_of(0, node);
                float x[8];
                key.micro_batch = mb; key.output = output;
                assert_int_equal(tl_take_checkpoint(&f.env, f.m, key, x, 32), TL_OK);
                assert_content(x, 32, (uint64_t)(mb * 100 + node * 10 + output + 1));
            }
    close_manager(&f);
}

static void defect_B19_peek_borrows_without_a_copy(void **state) {
    fixture f;
    const void *data;
    uint64_t bytes;
    long count;
    (void)state;
    begin(&f);
    open_manager(&f, 0);
    assert_int_equal(save(&f, 0, 4096), TL_OK);
    count = f.alloc.count;
    assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes), TL_OK);
    assert_int_equal(tl_find_memory_usage(f.m), 4096);
    assert_int_equal(f.alloc.count, count);
    assert_int_equal(counters_of(&f).copy_count, 0);
    assert_int_equal(tl_reset_manager(&f.env, f.m), TL_OK);  // borrowed or not
    assert_int_equal(tl_find_checkpoint_count(f.m), 0);
    close_manager(&f);
}

static void defect_B20_the_host_tier_is_real(void **state) {
    fixture f;
    int i;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 200;
    f.desc.host_budget_bytes = 300;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, CHECKED | DEFERRED);
    for (i = 0; i < 6; i++) assert_int_equal(save(&f, i, 100), TL_OK);
    assert_true(has(&f, 0) && has(&f, 1) && has(&f, 2) && !has(&f, 3) && has(&f, 4) && has(&f, 5));
    assert_int_equal(counters_of(&f).live_bytes[TL_TIER_HOST], 300);
    for (i = 0; i < 6; i++) assert_int_equal(take(&f, i, 100), i == 3 ? TL_ERROR_NOT_FOUND : TL_OK);
    close_manager(&f);
}

// -- backends and allocators that fail --

// Save, evict, peek, take, drop, with one kind of call failing once or for good. Whatever happens:
// what is held reads back right, what is missing was dropped by an eviction, usage is exact.
static void run_failing(int function, long at, int on, int codec, uint64_t host_budget, int *failed, long *lost_without_drop) {
    fixture f;
    int node, i;
    uint64_t missing = 0;
    float x[64];
    int saved[24] = {0};
    begin(&f);
    f.desc.device_budget_bytes = 5 * 256;
    f.desc.host_budget_bytes = host_budget;
    f.desc.codec = (tl_codec)codec;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, at % 2 ? CHECKED | DEFERRED : 0);
    f.s.fail_function = function; f.s.fail_at = at; f.s.fails_on = on;
    for (node = 0; node < 12; node++) {
        const void *data;
        uint64_t bytes;
        tl_result result = save(&f, node, 256);
        saved[node] = result == TL_OK;
        if (result) assert_true(f.env.error.text[0] != 0);
        if (node % 3 == 2 && !tl_peek_checkpoint(&f.env, f.m, key_of(0, node / 2), &data, &bytes)) {
            assert_content(data, 256, (uint64_t)(node / 2));
            while (tl_release_checkpoint(&f.env, f.m, key_of(0, node / 2))) {
                if (!f.s.fails_on) continue;
                f.s.fail_function = -1;
            }
        }
        if (node == 7 && saved[7]) (void)save_with(&f, key_of(0, 7), 256, 1, 7, 0);
        if (node % 4 == 3) {
            tl_ticket ticket;
            result = tl_submit_checkpoints(&f.env, f.m, &ticket);
            if (result) assert_non_null(strstr(f.env.error.text, "tl_submit_checkpoints: backend: submit: "));
            if (result) assert_int_equal(ticket.value, 0);
        }
        check_usage(&f);
    }
    *failed = f.s.failed;
    for (node = 0; node < 12; node++) {
        tl_result result;
        int tries = 0;
        do {
            result = tl_take_checkpoint(&f.env, f.m, key_of(0, node), x, 256);
            if (result && result != TL_ERROR_NOT_FOUND) { assert_true(has(&f, node)); f.s.fail_function = -1; }
        } while (result && result != TL_ERROR_NOT_FOUND && ++tries < 4);
        if (!result) { assert_content(x, 256, (uint64_t)node); assert_true(saved[node]); }
        else { assert_int_equal(result, TL_ERROR_NOT_FOUND); missing += saved[node] != 0; }
        check_usage(&f);
    }
    if (host_budget == TL_UNLIMITED) assert_int_equal(statistics_of(&f).dropped, 0);  // then nothing is ever lost
    *lost_without_drop = (long)missing - (long)statistics_of(&f).dropped;
    for (i = 0; i < 12; i++) assert_false(has(&f, i));
    close_manager(&f);
}

static void no_failure_of_the_backend_loses_anything(void **state) {
    static const uint64_t hosts[] = {0, 512, TL_UNLIMITED};
    int function, on, codec, host, runs = 0;
    (void)state;
    for (function = 0; function < F_COUNT; function++)
        for (on = 0; on < 2; on++)
            for (codec = 0; codec < 3; codec += 2)
                for (host = 0; host < 3; host++) {
                    long at;
                    for (at = 0; at < 400; at++) {
                        int failed;
                        long lost;
                        run_failing(function, at, on, codec, hosts[host], &failed, &lost);
                        runs++;
                        if (lost > 0) fail_msg("function %d, call %ld, on %d, codec %d, host %d: %ld lost", function, at, on, codec, host, lost);
                        if (!failed) break;
                    }
                }
    assert_true(runs > 1000);
}

// -- a device that is lost, a queue that is in order, a backend that only records --

// After the loss at any call: what stands in the host tier is read, packed or not; nothing else is, and
// nothing that was held is forgotten or leaks.
static void run_lost(int codec, int checked, long at, int *lost, long *from_host, long *packed) {
    fixture f;
    int node;
    begin(&f);
    f.desc.device_budget_bytes = 3 * 256 + 128;
    f.desc.host_budget_bytes = TL_UNLIMITED;
    f.desc.codec = (tl_codec)codec;
    f.desc.eviction = TL_EVICTION_OLDEST;
    open_manager(&f, checked);
    f.s.lost_at = at;
    for (node = 0; node < 10; node++) {
        const void *data;
        uint64_t bytes;
        tl_result result = save(&f, node, 256);
        if (result) assert_int_equal(result, TL_ERROR_DEVICE_LOST);
        if (node % 3 == 2 && !tl_peek_checkpoint(&f.env, f.m, key_of(0, node / 2), &data, &bytes)) {
            assert_content(data, 256, (uint64_t)(node / 2));
            assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, node / 2)), TL_OK);
        }
        if (node == 6 && has(&f, 1)) assert_true(take(&f, 1, 256) == TL_OK || f.s.failed);
        check_usage(&f);
    }
    *lost = f.s.failed;
    for (node = 0; node < 10 && *lost; node++) {
        tl_checkpoint_info info, after;
        const void *data, *again;
        uint64_t bytes;
        if (tl_find_checkpoint(&f.env, f.m, key_of(0, node), &info)) continue;
        if (info.tier == TL_TIER_DEVICE) {
            assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, node), &data, &bytes), TL_ERROR_DEVICE_LOST);
            assert_int_equal(take(&f, node, 256), TL_ERROR_DEVICE_LOST);
            assert_true(has(&f, node));
            continue;
        }
        ++*from_host;
        *packed += info.codec != TL_CODEC_NONE;
        f.s.host_unfinished = 1;  // what is not whole is not read
        assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, node), &data, &bytes), TL_ERROR_DEVICE_LOST);
        assert_int_equal(take(&f, node, 256), TL_ERROR_DEVICE_LOST);
        f.s.host_unfinished = 0;
        assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, node), &data, &bytes), TL_OK);
        assert_int_equal(bytes, 256);
        assert_content(data, 256, (uint64_t)node);
        assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, node), &again, &bytes), TL_OK);
        assert_ptr_equal(again, data);
        assert_int_equal(tl_find_checkpoint(&f.env, f.m, key_of(0, node), &after), TL_OK);
        assert_true(after.tier == TL_TIER_HOST && after.held_bytes == info.held_bytes && after.codec == info.codec);
        assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, node)), TL_OK);
        if (node % 2) continue;  // freed while borrowed
        assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, node)), TL_OK);
        assert_int_equal(take(&f, node, 256), TL_OK);
        assert_false(has(&f, node));
        check_usage(&f);
    }
    close_manager(&f);
}

static void after_a_lost_device_the_host_tier_is_read(void **state) {
    int codec, checked;
    (void)state;
    for (codec = TL_CODEC_NONE; codec <= TL_CODEC_BF16; codec += TL_CODEC_BF16 - TL_CODEC_NONE)
        for (checked = 0; checked <= CHECKED; checked++) {
            long at, from_host = 0, packed = 0;
            int lost = 1;
            for (at = 1; lost; at++) run_lost(codec, checked, at, &lost, &from_host, &packed);
            assert_true(at > 60);
            assert_true(from_host > 100);
            assert_true(codec == TL_CODEC_NONE ? packed == 0 : packed > 50);
        }
}

// Memory for what was packed in the host tier may be missing.
static void a_packed_checkpoint_of_a_lost_device_needs_memory(void **state) {
    long failures = 0, at;
    (void)state;
    for (at = 0; at < 3; at++) {
        fixture f;
        const void *data;
        uint64_t bytes;
        tl_result result;
        begin(&f);
        f.desc.device_budget_bytes = 256;
        f.desc.host_budget_bytes = 4096;
        f.desc.codec = TL_CODEC_BF16;
        open_manager(&f, 0);
        assert_int_equal(save(&f, 0, 160), TL_OK);
        assert_int_equal(tl_evict_checkpoints(&f.env, f.m, 176), TL_OK);
        assert_int_equal(save(&f, 1, 256), TL_OK);  // the packed one has to go to the host
        f.s.lost_at = 1;
        f.alloc.fail_at = f.alloc.count + at;
        f.alloc.fails_once = 1;
        result = tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes);
        failures += result != TL_OK;
        if (result) {
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_null(data);
            assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, 0), &data, &bytes), TL_OK);
        }
        assert_content(data, 160, 0);
        close_manager(&f);
    }
    assert_int_equal(failures, 1);
}

// Nothing is submitted or waited for but at the caller's word, whatever is saved, evicted, fetched or read.
static void the_manager_submits_only_when_it_is_told(void **state) {
    int variant;
    (void)state;
    for (variant = 0; variant < 4; variant++) {
        fixture f;
        tl_ticket ticket, again;
        int node;
        begin(&f);
        f.desc.device_budget_bytes = 3 * 256 + 128;
        f.desc.host_budget_bytes = TL_UNLIMITED;
        f.desc.codec = TL_CODEC_BF16;
        f.desc.eviction = TL_EVICTION_OLDEST;
        open_manager(&f, variant);
        assert_int_equal(tl_submit_checkpoints(&f.env, f.m, &ticket), TL_OK);
        assert_int_equal(ticket.value, 0);
        for (node = 0; node < 12; node++) {
            const void *data;
            uint64_t bytes;
            assert_int_equal(save(&f, node, 256), TL_OK);
            assert_int_equal(tl_peek_checkpoint(&f.env, f.m, key_of(0, node / 2), &data, &bytes), TL_OK);
            assert_content(data, 256, (uint64_t)(node / 2));
            assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(0, node / 2)), TL_OK);
        }
        assert_true(statistics_of(&f).spills > 3);
        assert_true(statistics_of(&f).compressions > 1);
        assert_true(statistics_of(&f).fetches > 1);
        assert_int_equal(f.s.calls[F_SUBMIT], 0);
        assert_int_equal(tl_submit_checkpoints(&f.env, f.m, &ticket), TL_OK);
        assert_true(ticket.value > 0);
        assert_int_equal(tl_submit_checkpoints(&f.env, f.m, &again), TL_OK);
        assert_int_equal(again.value, ticket.value);
        assert_int_equal(f.s.calls[F_SUBMIT], 1);
        for (node = 0; node < 12; node++) assert_int_equal(take(&f, node, 256), TL_OK);
        assert_int_equal(f.s.calls[F_SUBMIT], 1);
        assert_int_equal(f.s.waits, 0);
        close_manager(&f);
    }
}

// The host gets nothing before the frames are done that it depends on; until then all stays held.
static void a_recording_backend_serves_the_manager(void **state) {
    static float x[64], out[64];
    tl_env env;
    tl_cpu_backend_desc backend_desc;
    tl_manager_desc desc;
    tl_backend cpu, b;
    tl_manager *m;
    tl_backend_counters counters;
    recorder r;
    uint64_t block;
    tl_range source;
    tl_ticket ticket;
    tl_save_desc save_desc;
    int node;
    void *host;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&backend_desc, 0, sizeof backend_desc);
    memset(&desc, 0, sizeof desc);
    memset(&save_desc, 0, sizeof save_desc);
    desc.device_budget_bytes = 3 * 256;
    desc.host_budget_bytes = TL_UNLIMITED;
    desc.eviction = TL_EVICTION_OLDEST;
    assert_int_equal(tl_init_cpu_backend(&env, &backend_desc, &cpu), TL_OK);
    b = record_open(&r, &cpu);
    assert_int_equal(tl_init_manager(&env, &b, &desc, &m), TL_OK);
    assert_int_equal(b.add_block(b.self, TL_TIER_DEVICE, 256, &block), TL_OK);
    source.block = block; source.offset = 0; source.bytes = 256;
    assert_int_equal(b.claim(b.self, source), TL_OK);
    for (node = 0; node < 8; node++) {
        content(x, 256, (uint64_t)node);
        assert_int_equal(b.map(b.self, source, TL_MAP_WRITE, &host), TL_OK);
        memcpy(host, x, 256);
        assert_int_equal(b.unmap(b.self, source, TL_MAP_WRITE, host), TL_OK);
        record_start(&r);
        save_desc.key = key_of(0, node);
        save_desc.source = source;
        assert_int_equal(tl_save_checkpoint(&env, m, &save_desc), TL_OK);
        record_end(&r);
        assert_int_equal(b.map(b.self, source, TL_MAP_WRITE, &host), TL_NOT_READY);
        record_retire(&r, r.frame - 1);
    }
    for (node = 0; node < 8; node++) {
        const void *data;
        uint64_t bytes;
        tl_result result = tl_peek_checkpoint(&env, m, key_of(0, node), &data, &bytes);
        if (result) {
            assert_int_equal(result, TL_NOT_READY);
            assert_string_equal(env.error.text, "tl_peek_checkpoint: backend: map: work behind a ticket is still under way");
            assert_int_equal(tl_peek_checkpoint(&env, m, key_of(0, node), &data, &bytes), TL_NOT_READY);
            assert_int_equal(tl_take_checkpoint(&env, m, key_of(0, node), out, 256), TL_NOT_READY);
            assert_true(tl_has_checkpoint(m, key_of(0, node)));
            assert_int_equal(tl_find_checkpoint_count(m), 8 - node);
            record_finish(&r);
            assert_int_equal(tl_peek_checkpoint(&env, m, key_of(0, node), &data, &bytes), TL_OK);
        }
        assert_content(data, 256, (uint64_t)node);
        assert_int_equal(tl_release_checkpoint(&env, m, key_of(0, node)), TL_OK);
        assert_int_equal(tl_take_checkpoint(&env, m, key_of(0, node), out, 256), TL_OK);
        assert_content(out, 256, (uint64_t)node);
    }
    assert_int_equal(tl_save_checkpoint(&env, m, &save_desc), TL_OK);
    assert_int_equal(tl_take_checkpoint_range(&env, m, key_of(0, 7), source, NULL), TL_OK);
    assert_int_equal(r.submits, 0);
    assert_int_equal(tl_save_checkpoint(&env, m, &save_desc), TL_OK);
    assert_int_equal(tl_take_checkpoint_range(&env, m, key_of(0, 7), source, &ticket), TL_OK);
    assert_int_equal(ticket.value, r.frame);
    assert_int_equal(r.submits, 1);
    assert_int_equal(r.waits + r.polls, 0);
    assert_true(r.not_ready > 8);
    tl_free_manager(m);
    assert_int_equal(b.release(b.self, source), TL_OK);
    assert_int_equal(b.free_block(b.self, block), TL_OK);
    record_close(&r);
    cpu.counters(cpu.self, &counters);
    assert_int_equal(counters.block_count[TL_TIER_DEVICE] + counters.block_count[TL_TIER_HOST], 0);
    tl_free_cpu_backend(&env, &cpu);
}

static tl_result use_manager(tl_env *env, tl_eviction eviction, int checked, int32_t capacity) {
    tl_cpu_backend_desc backend_desc;
    tl_manager_desc desc;
    tl_backend b;
    tl_manager *m = NULL;
    tl_result result, worst = TL_OK;
    int called = 0, node;
    float x[16], y[16];
    memset(&backend_desc, 0, sizeof backend_desc);
    memset(&desc, 0, sizeof desc);
    backend_desc.checked = checked;
    result = tl_init_cpu_backend(env, &backend_desc, &b);
    if (result) return result;
    desc.device_budget_bytes = 64 * 12;
    desc.host_budget_bytes = TL_UNLIMITED;
    desc.eviction = eviction;
    desc.checkpoint_capacity = capacity;
    if (eviction == TL_EVICTION_CALLER) { desc.evict = pick_last; desc.user = &called; }
    worst = tl_init_manager(env, &b, &desc, &m);
    if (worst) assert_null(m);
    for (node = 0; m && node < 20; node++) {
        tl_save_desc save_desc;
        memset(&save_desc, 0, sizeof save_desc);
        content(x, 64, (uint64_t)node);
        save_desc.key = key_of(0, node); save_desc.data = x; save_desc.bytes = 64;
        result = tl_save_checkpoint(env, m, &save_desc);
        if (!result) continue;
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
        assert_false(tl_has_checkpoint(m, key_of(0, node)));
        worst = result;
    }
    for (node = 0; m && node < 20; node++) {
        if (!tl_has_checkpoint(m, key_of(0, node))) continue;
        result = tl_take_checkpoint(env, m, key_of(0, node), y, 64);
        if (result) { assert_int_equal(result, TL_ERROR_NO_MEMORY); assert_true(tl_has_checkpoint(m, key_of(0, node))); worst = result; continue; }
        assert_content(y, 64, (uint64_t)node);
    }
    if (m) {
        tl_checkpoint_statistics s;
        tl_measure_manager(m, &s);
        assert_int_equal(s.dropped, 0);  // the host has room: nothing is ever dropped, whatever fails
    }
    tl_free_manager(m);
    tl_free_cpu_backend(env, &b);
    return worst;
}

static void every_failed_allocation_is_told_and_loses_nothing(void **state) {
    int eviction, once, checked;
    (void)state;
    for (eviction = 0; eviction < TL_EVICTION_COUNT; eviction++)
        for (once = 0; once < 2; once++)
            for (checked = 0; checked < 2; checked++) {
                long at;
                for (at = 0; ; at++) {
                    failing_alloc alloc = {0};
                    tl_env env;
                    tl_result result;
                    alloc.fails_once = once;
                    env = failing_env(&alloc, at);
                    result = use_manager(&env, (tl_eviction)eviction, checked, at % 2 ? 20 : 0);
                    assert_int_equal(alloc.live, 0);
                    if (alloc.count <= at) { assert_int_equal(result, TL_OK); break; }
                    assert_int_equal(result, TL_ERROR_NO_MEMORY);
                }
            }
}

static void capacity_made_at_init_means_no_allocation_later(void **state) {
    static unsigned char memory[1 << 16];
    failing_alloc alloc = {0};
    tl_env env = failing_env(&alloc, -1);
    tl_cpu_backend_desc backend_desc;
    tl_manager_desc desc;
    tl_backend b;
    tl_manager *m;
    int round, node, called = 0;
    long count = 0;
    (void)state;
    memset(&backend_desc, 0, sizeof backend_desc);
    memset(&desc, 0, sizeof desc);
    backend_desc.memory = memory; backend_desc.memory_bytes = sizeof memory;
    desc.checkpoint_capacity = 100;
    desc.eviction = TL_EVICTION_CALLER;
    desc.evict = pick_last;
    desc.user = &called;
    assert_int_equal(tl_init_cpu_backend(&env, &backend_desc, &b), TL_OK);
    assert_int_equal(tl_init_manager(&env, &b, &desc, &m), TL_OK);
    for (round = 0; round < 3; round++) {
        float x[16];
        for (node = 0; node < 100; node++) {
            tl_save_desc save_desc;
            memset(&save_desc, 0, sizeof save_desc);
            content(x, 64, (uint64_t)node);
            save_desc.key = key_of(0, node); save_desc.data = x; save_desc.bytes = 64;
            assert_int_equal(tl_save_checkpoint(&env, m, &save_desc), TL_OK);
        }
        if (!round) count = alloc.count;  // the backend's table of blocks has grown by now
        assert_int_equal(alloc.count, count);
        for (node = 0; node < 100; node++) assert_int_equal(tl_take_checkpoint(&env, m, key_of(0, node), x, 64), TL_OK);
    }
    tl_free_manager(m);
    tl_free_cpu_backend(&env, &b);
    assert_int_equal(alloc.live, 0);
}

#ifndef TL_NO_ACCOUNTS
static void the_account_of_a_manager_is_limited_and_holds_its_backend(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 700;
    f.desc.host_budget_bytes = 300;
    open_manager(&f, CHECKED);
    assert_int_equal(f.s.limits[TL_TIER_DEVICE], 700);
    assert_int_equal(f.s.limits[TL_TIER_HOST], 300);
    assert_int_equal(tl_free_cpu_backend(&f.env, &f.s.inner), TL_ERROR_INVALID_ARG);
    assert_string_equal(f.env.error.text,
                        "tl_free_cpu_backend: backend: still in use (runs and managers: 1): free those first");
    close_manager(&f);
}
#endif

static void an_exit_is_the_first_that_is_allowed_and_fits(void **state) {
    tli_exits x;
    (void)state;
    memset(&x, 0, sizeof x);
    x.codec = TL_CODEC_F16;
    x.bytes = x.held_bytes = 8;
    x.may_spill = x.may_drop = 1;
    x.device_room = 4;
    x.host_room = 8;
    assert_int_equal(tli_choose_exit(&x), TLI_EXIT_COMPRESS);
    x.device_room = 3;  // both copies must fit
    assert_int_equal(tli_choose_exit(&x), TLI_EXIT_SPILL);
    x.host_room = 7;
    assert_int_equal(tli_choose_exit(&x), TLI_EXIT_DROP);
    x.may_drop = 0;
    assert_int_equal(tli_choose_exit(&x), TLI_EXIT_NONE);
    x.host_room = 8;
    x.may_spill = 0;
    assert_int_equal(tli_choose_exit(&x), TLI_EXIT_NONE);
    x.device_room = 100;
    x.codec = TL_CODEC_NONE;
    assert_int_equal(tli_choose_exit(&x), TLI_EXIT_NONE);
    x.codec = TL_CODEC_F16;
    x.bytes = 2;  // takes as many bytes as f16
    assert_int_equal(tli_choose_exit(&x), TLI_EXIT_NONE);
    assert_int_equal(tli_room(5, 3), 2);
    assert_int_equal(tli_room(5, 5), 0);
    assert_int_equal(tli_room(5, 9), 0);
}

static void full_memory_of_the_backend_evicts_too(void **state) {
    static unsigned char memory[64 * 10 + 63];
    failing_alloc alloc = {0};
    tl_env env = failing_env(&alloc, -1);
    tl_cpu_backend_desc backend_desc;
    tl_manager_desc desc;
    tl_backend b;
    tl_manager *m;
    int node;
    (void)state;
    memset(&backend_desc, 0, sizeof backend_desc);
    memset(&desc, 0, sizeof desc);
    backend_desc.memory = memory; backend_desc.memory_bytes = sizeof memory;
    desc.eviction = TL_EVICTION_OLDEST;  // no budget of its own: the backend's capacity binds
    assert_int_equal(tl_init_cpu_backend(&env, &backend_desc, &b), TL_OK);
    assert_int_equal(tl_init_manager(&env, &b, &desc, &m), TL_OK);
    for (node = 0; node < 100; node++) {
        float x[16];
        tl_save_desc save_desc;
        memset(&save_desc, 0, sizeof save_desc);
        content(x, 60, (uint64_t)node);
        save_desc.key = key_of(0, node); save_desc.data = x; save_desc.bytes = 60;
        assert_int_equal(tl_save_checkpoint(&env, m, &save_desc), TL_OK);
        assert_true(tl_find_checkpoint_count(m) <= 10);
    }
    assert_true(tl_has_checkpoint(m, key_of(0, 99)) && tl_has_checkpoint(m, key_of(0, 91)));
    tl_free_manager(m);
    tl_free_cpu_backend(&env, &b);
    assert_int_equal(alloc.live, 0);
}

static void a_kept_checkpoint_is_not_dropped_where_it_cannot_be_compressed(void **state) {
    static unsigned char memory[64 * 10 + 63];
    fixture f;
    tl_cpu_backend_desc desc;
    int node;
    (void)state;
    begin(&f);
    memset(&desc, 0, sizeof desc);
    desc.memory = memory; desc.memory_bytes = sizeof memory;
    assert_int_equal(tl_init_cpu_backend(&f.env, &desc, &f.s.inner), TL_OK);
    f.s.budget[TL_TIER_DEVICE] = TL_UNLIMITED;
    f.b = shim_over(&f.s);
    f.desc.codec = TL_CODEC_F16;
    assert_int_equal(tl_init_manager(&f.env, &f.b, &f.desc, &f.m), TL_OK);
    assert_int_equal(save_with(&f, key_of(0, 0), 256, 1, 0, 1), TL_OK);
    for (node = 1; node < 7; node++) assert_int_equal(save(&f, node, 4), TL_OK);  // 64 bytes each: nothing is left
    assert_int_equal(save(&f, 9, 400), TL_ERROR_OVER_BUDGET);  // the budget has room for a packed copy, the memory none
    for (node = 1; node < 7; node++) assert_int_equal(take(&f, node, 4), TL_OK);
    assert_int_equal(take(&f, 0, 256), TL_OK);
    close_manager(&f);
}

// -- many operations --

static void a_million_cycles_take_constant_memory(void **state) {
    fixture f;
    long live = 0, count = 0, i;
    float x[8], y[8];
    tl_save_desc desc;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 32 * 64;
    f.desc.host_budget_bytes = 32 * 8;
    open_manager(&f, 0);
    memset(&desc, 0, sizeof desc);
    content(x, 32, 1);
    desc.data = x; desc.bytes = 32;
    for (i = 0; i < 1000000; i++) {
        desc.key = key_of((uint64_t)i / 100, (int)(i % 100));
        assert_int_equal(tl_save_checkpoint(&f.env, f.m, &desc), TL_OK);
        if (i % 3) {
            tl_checkpoint_key key = key_of((uint64_t)(i - 1) / 100, (int)((i - 1) % 100));
            tl_result result = tl_take_checkpoint(&f.env, f.m, key, y, 32);
            if (result) assert_int_equal(result, TL_ERROR_NOT_FOUND);
        }
        if (i == 1000) { live = f.alloc.live; count = (long)counters_of(&f).block_count[TL_TIER_DEVICE]; }
    }
    assert_true(live >= 8 && count >= 1);
    assert_true(f.alloc.live <= live + 80 && f.alloc.live >= 8);  // blocks of what is held: at most 72
    assert_true(counters_of(&f).block_count[TL_TIER_DEVICE] <= 64);
    assert_true(f.m->entry_capacity <= 256 && f.m->cell_count <= 512);
    assert_int_equal(tl_reset_manager(&f.env, f.m), TL_OK);
    assert_int_equal(tl_find_memory_usage(f.m), 0);
    close_manager(&f);
}

enum { MODEL_KEYS = 40 };
typedef struct model_entry { int held, keep, borrows; uint64_t bytes, seed, step; const void *data; } model_entry;

// A random program against a table of what was saved. Whatever is missing was dropped.
static void random_operations(uint64_t seed, tl_eviction eviction, int variant) {
    fixture f;
    model_entry model[MODEL_KEYS];
    tl_random random;
    int i, called = 0;
    uint64_t missing = 0, step = 0;
    static float x[1 << 12];
    memset(model, 0, sizeof model);
    random.state = seed;
    begin(&f);
    f.desc.device_budget_bytes = 4000 + tl_next_random_below(&random, 4000);
    f.desc.host_budget_bytes = tl_next_random_below(&random, 3) * 2000;
    f.desc.codec = (tl_codec)tl_next_random_below(&random, TL_CODEC_COUNT);
    f.desc.eviction = eviction;
    if (eviction == TL_EVICTION_CALLER) { f.desc.evict = pick_last; f.desc.user = &called; }
    open_manager(&f, variant);
    for (i = 0; i < 400; i++) {
        int node = (int)tl_next_random_below(&random, MODEL_KEYS);
        model_entry *e = &model[node];
        uint64_t action = tl_next_random_below(&random, 10);
        tl_result result;
        if (e->held && !tl_has_checkpoint(f.m, key_of(e->step, node))) {
            assert_false(e->keep);
            assert_int_equal(e->borrows, 0);
            e->held = 0;
            missing++;
        }
        if (action < 5) {
            uint64_t bytes = 128 * tl_next_random_below(&random, 10), content_seed = tl_next_random(&random);
            int keep = tl_next_random_below(&random, 12) == 0;
            result = save_with(&f, key_of(step, node), bytes, tl_next_random_below(&random, 1000), content_seed, keep);
            if (e->borrows) assert_int_equal(result, TL_ERROR_INVALID_ARG);
            else if (result) assert_int_equal(result, TL_ERROR_OVER_BUDGET);
            else { e->held = 1; e->keep = keep; e->bytes = bytes; e->seed = content_seed; e->step = step; }
            if (!e->held) assert_false(tl_has_checkpoint(f.m, key_of(step, node)));
        } else if (action < 7) {
            result = tl_take_checkpoint(&f.env, f.m, key_of(e->step, node), x, e->bytes);
            if (!e->held) { assert_int_equal(result, TL_ERROR_NOT_FOUND); continue; }
            if (e->borrows) { assert_int_equal(result, TL_ERROR_INVALID_ARG); continue; }
            assert_int_equal(result, TL_OK);
            assert_content(x, e->bytes, e->seed);
            e->held = 0;
        } else if (action == 7) {
            uint64_t bytes;
            result = tl_peek_checkpoint(&f.env, f.m, key_of(e->step, node), &e->data, &bytes);
            if (!e->held) { assert_int_equal(result, TL_ERROR_NOT_FOUND); continue; }
            if (result) { assert_int_equal(result, TL_ERROR_OVER_BUDGET); continue; }
            e->borrows++;
            assert_int_equal(bytes, e->bytes);
            if (bytes) assert_content(e->data, bytes, e->seed);
        } else if (action == 8) {
            if (e->borrows) {
                assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(e->step, node)), TL_OK);
                e->borrows--;
            } else if (e->held && !e->keep) {
                assert_int_equal(tl_drop_checkpoint(&f.env, f.m, key_of(e->step, node)), TL_OK);
                e->held = 0;
            }
        } else if (tl_next_random_below(&random, 4) == 0) {
            step++;
        } else {
            (void)tl_evict_checkpoints(&f.env, f.m, tl_next_random_below(&random, 3000));
        }
        check_usage(&f);
        assert_true(tl_find_memory_usage(f.m) <= f.desc.device_budget_bytes);
    }
    for (i = 0; i < MODEL_KEYS; i++) {
        model_entry *e = &model[i];
        tl_result result;
        if (!e->held) continue;
        if (!tl_has_checkpoint(f.m, key_of(e->step, i))) { missing++; continue; }
        while (e->borrows--) assert_int_equal(tl_release_checkpoint(&f.env, f.m, key_of(e->step, i)), TL_OK);
        result = tl_take_checkpoint(&f.env, f.m, key_of(e->step, i), x, e->bytes);
        assert_int_equal(result, TL_OK);
        assert_content(x, e->bytes, e->seed);
    }
    assert_int_equal(missing, statistics_of(&f).dropped);
    assert_int_equal(tl_find_memory_usage(f.m), 0);
    assert_int_equal(f.m->droppable_bytes, 0);
    assert_int_equal(tl_find_checkpoint_count(f.m), 0);
    close_manager(&f);
}

static void random_operations_agree_with_a_simple_model(void **state) {
    uint64_t seed;
    (void)state;
    for (seed = 0; seed < (uint64_t)scaled(600); seed++)
        random_operations(seed, (tl_eviction)(seed % TL_EVICTION_COUNT), seed % 4 == 0 ? 0 : CHECKED | DEFERRED);
}

// -- threads --

enum { ROUNDS = 200 };
typedef struct worker { fixture *f; int id; int failures; } worker;

static pthread_mutex_t start = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *user) {
    worker *w = (worker *)user;
    tl_env env;
    int round, i;
    memset(&env, 0, sizeof env);
    pthread_mutex_lock(&start);  // all at once
    pthread_mutex_unlock(&start);
    for (round = 0; round < ROUNDS; round++) {
        float x[16], y[16];
        for (i = 0; i < 12; i++) {
            tl_save_desc desc;
            memset(&desc, 0, sizeof desc);
            desc.key = key_of((uint64_t)round, i);
            desc.key.micro_batch = w->id;
            content(x, 64, (uint64_t)(round * 1000 + w->id * 50 + i));
            desc.data = x; desc.bytes = 64; desc.cost = (uint64_t)i;
            if (tl_save_checkpoint(&env, w->f->m, &desc)) w->failures++;
        }
        for (i = 11; i >= 0; i--) {
            tl_checkpoint_key key = key_of((uint64_t)round, i);
            tl_result result;
            const void *data;
            uint64_t bytes;
            key.micro_batch = w->id;
            content(x, 64, (uint64_t)(round * 1000 + w->id * 50 + i));
            if (i % 4 == 0 && !tl_peek_checkpoint(&env, w->f->m, key, &data, &bytes)) {
                if (bytes != 64 || memcmp(data, x, 64)) w->failures++;
                if (tl_release_checkpoint(&env, w->f->m, key)) w->failures++;
            }
            result = tl_take_checkpoint(&env, w->f->m, key, y, 64);
            if (result && result != TL_ERROR_NOT_FOUND) w->failures++;
            if (!result && memcmp(x, y, 64)) w->failures++;
            if (tl_find_memory_usage(w->f->m) > 64 * 40) w->failures++;
        }
    }
    return NULL;
}

static void defect_B8_eight_threads_share_a_manager_and_its_budget(void **state) {
    fixture f;
    pthread_t threads[8];
    worker workers[8];
    int i;
    (void)state;
    begin(&f);
    f.desc.device_budget_bytes = 64 * 40;
    f.desc.host_budget_bytes = 64 * 20;
    open_manager(&f, 0);
    f.s.lingers = 1000;
    pthread_mutex_lock(&start);
    for (i = 0; i < 8; i++) {
        workers[i].f = &f; workers[i].id = i; workers[i].failures = 0;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    pthread_mutex_unlock(&start);
    for (i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_int_equal(tl_find_memory_usage(f.m), 0);
    assert_int_equal(statistics_of(&f).saved, 8 * ROUNDS * 12);
    close_manager(&f);
}

// -- the golden traces of the seed --

typedef struct golden_row { char cells[10][96]; } golden_row;

static const char *read_row(const char *text, golden_row *row) {
    int cell = 0;
    size_t at = 0;
    memset(row, 0, sizeof *row);
    for (; *text && *text != '\n'; text++) {
        if (*text == ',') { cell++; at = 0; continue; }
        if (cell < 10 && at + 1 < sizeof row->cells[0] && *text != '\r') row->cells[cell][at++] = *text;
    }
    return *text ? text + 1 : text;
}

static long number_in(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

// Which defect a row shows where ours differs; NULL = it must agree.
static const char *defect_of(const golden_row *row, int index) {
    const char *trace = row->cells[0], *call = row->cells[1], *result = row->cells[2];
    if (!strcmp(trace, "policy_everyN_0")) return "B12 n = 0 is an error";
    if (!strcmp(result, "DEADLOCK")) return "B1 eviction returns";
    if (!strcmp(trace, "get_keeps_usage") && index > 0) return index == 1 ? "B4 content is kept" : "B3 usage falls";
    if (!strcmp(trace, "usage_counts_taken") && strstr(call, "get")) return "B4 content is kept";
    if (!strcmp(trace, "resave_leaks") && (index == 1 || index == 2 || strstr(call, "remove"))) return "B6 counted once";
    if (!strcmp(trace, "over_budget_empty")) return "B7 refused";
    if (!strcmp(trace, "zero_budget")) return "B15 0 of 0 is 0, and B7";
    if (!strncmp(trace, "backward_", 9)) return "B5 recomputation is [12]'s";
    if (!strcmp(trace, "cpu_store") && index >= 2 && strcmp(call, "clear")) return "B6 counted once";
    return NULL;
}

// Run one row; tells whether what we do is what the seed did.
static int run_row(fixture *f, const golden_row *row) {
    const char *call = row->cells[1];
    char result[96] = "ok";
    float x[128];
    uint64_t budget = strtoull(row->cells[8], NULL, 10);
    long layer = number_in(call, "layer="), len = number_in(call, "len=");
    tl_result r = TL_OK;
    double utilization;
    tl_checkpoint_statistics s;
    int i;
    if (!strcmp(row->cells[0], "cpu_store") && strcmp(call, "clear")) layer = strtol(strchr(call, '(') + 1, NULL, 10);
    for (i = 0; i < 128; i++) x[i] = 7.0f;
    if (!strncmp(call, "checkpoint(", 11) || !strncmp(call, "store(", 6)) {
        tl_save_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.key = key_of(0, (int)layer); desc.data = x; desc.bytes = (uint64_t)len * 4;
        desc.cost = (uint64_t)(number_in(call, "cost=") < 0 ? 0 : number_in(call, "cost="));
        r = tl_save_checkpoint(&f->env, f->m, &desc);
    } else if (!strncmp(call, "get(", 4)) {
        r = tl_take_checkpoint(&f->env, f->m, key_of(0, (int)layer), x, 400);
        snprintf(result, sizeof result, r ? "none" : "some(len=100;first=%.1f)", (double)x[0]);
        r = TL_OK;
    } else if (!strncmp(call, "retrieve(", 9)) {
        const void *data;
        uint64_t bytes;
        r = tl_peek_checkpoint(&f->env, f->m, key_of(0, (int)layer), &data, &bytes);
        if (!r) assert_int_equal(tl_release_checkpoint(&f->env, f->m, key_of(0, (int)layer)), TL_OK);
        strcpy(result, r ? "false" : "true");
    } else if (!strncmp(call, "remove(", 7)) {
        r = tl_drop_checkpoint(&f->env, f->m, key_of(0, (int)layer));
    } else if (!strcmp(call, "clear")) {
        r = tl_reset_manager(&f->env, f->m);
    } else if (strncmp(call, "new", 3) && strncmp(call, "forward(", 8)) {
        fail_msg("a call the test does not know: %s", call);
    }
    if (r) strcpy(result, tl_name_result(r));
    if (strcmp(result, row->cells[2]) || tl_find_memory_usage(f->m) != strtoull(row->cells[3], NULL, 10)) return 0;
    if (!row->cells[4][0]) return 1;
    s = statistics_of(f);
    utilization = strtod(row->cells[9], NULL);
    return s.total_checkpoints == strtoull(row->cells[4], NULL, 10) && s.total_checkpoints == strtoull(row->cells[5], NULL, 10)
        && s.in_memory_checkpoints == strtoull(row->cells[6], NULL, 10) && s.total_memory_bytes == strtoull(row->cells[7], NULL, 10)
        && s.memory_budget_bytes == budget && s.memory_utilization == utilization;
}

static void open_trace(fixture *f, const golden_row *row) {
    const char *trace = row->cells[0];
    begin(f);
    if (!strncmp(trace, "policy_select", 13)) f->desc.policy = tl_policy_selective(100);
    if (!strncmp(trace, "policy_everyN_", 14)) f->desc.policy = tl_policy_every_n(strtoull(trace + 14, NULL, 10));
    if (!strcmp(trace, "policy_none")) f->desc.policy = tl_policy_none();
    f->desc.eviction = TL_EVICTION_OLDEST;
    f->desc.device_budget_bytes = strtoull(row->cells[8], NULL, 10);
    if (!strcmp(trace, "policy_everyN_0")) {  // refused at init: the rest of the trace is run with n = 1
        tl_manager *m;
        tl_cpu_backend_desc desc;
        memset(&desc, 0, sizeof desc);
        assert_int_equal(tl_init_cpu_backend(&f->env, &desc, &f->s.inner), TL_OK);
        assert_int_equal(tl_init_manager(&f->env, &f->s.inner, &f->desc, &m), TL_ERROR_INVALID_ARG);
        tl_free_cpu_backend(&f->env, &f->s.inner);
        f->desc.policy.as.every_n.interval = 1;
    }
    open_manager(f, 0);
}

static void golden_traces_agree_or_show_a_named_defect(void **state) {
    size_t length;
    char *text = read_reference("golden_traces_agree_or_show_a_named_defect", "golden/golden_manager.csv", &length);
    const char *at = text;
    golden_row row;
    fixture f;
    char trace[96] = "";
    int agree = 0, shown = 0, index = 0, is_open = 0;
    (void)state;
    if (!text) skip();
    at = read_row(at, &row);
    while (*at) {
        const char *defect;
        at = read_row(at, &row);
        if (!row.cells[0][0]) continue;
        if (strcmp(trace, row.cells[0])) {
            if (is_open) close_manager(&f);
            open_trace(&f, &row);
            is_open = 1;
            index = 0;
            strcpy(trace, row.cells[0]);
        }
        defect = defect_of(&row, index++);
        if (run_row(&f, &row)) agree++;
        else if (defect) shown++;
        else fail_msg("golden row %s, %s: differs, and no defect explains it", row.cells[0], row.cells[1]);
    }
    if (is_open) close_manager(&f);
    free(text);
    printf("golden_manager.csv: %d rows: %d agree, %d are counter-examples of a named defect, 0 unexplained\n", agree + shown, agree, shown);
    assert_int_equal(agree + shown, 80);
    assert_true(agree >= 45);
}

// Sizes beyond 32 bits have their classes too.
static tl_save_desc save_of(int32_t node, const void *data, uint64_t bytes, int keep) {
    tl_save_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.key.node = node;
    desc.data = data;
    desc.bytes = bytes;
    desc.cost = 1000;
    desc.keep = keep;
    return desc;
}

// A device tier of 24 KiB in one block: memory runs out, entries are compressed, spilled, dropped, fetched.
static void use_manager_in_silence(int apart) {
    static float data[1024];
    static char memory[24 << 10];
    long lines, backend_lines;
    tl_env env = logging_env(&lines), other = logging_env(&backend_lines);
    tl_env *backend_env = apart ? &other : &env;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_manager_desc desc;
    tl_manager *m;
    tl_checkpoint_statistics statistics;
    int32_t i, round;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    cpu.memory = memory;
    cpu.memory_bytes = sizeof memory;
    assert_int_equal(tl_init_cpu_backend(backend_env, &cpu, &backend), TL_OK);
    desc.eviction = TL_EVICTION_OLDEST;
    desc.host_budget_bytes = 40 << 10;
    desc.codec = TL_CODEC_F16;
    assert_int_equal(tl_init_manager(&env, &backend, &desc, &m), TL_OK);
    for (round = 0; round < 3; round++) {
        for (i = 0; i < 40; i++) {
            tl_save_desc save = save_of(i, data, (uint64_t)(1024 + i % 7 * 512), 0);
            if (tl_save_checkpoint(&env, m, &save)) fail_msg("save %d: %s", (int)i, env.error.text);
        }
        for (i = 0; i < 40; i++) {
            tl_checkpoint_key key = save_of(i, NULL, 0, 0).key;
            const void *bytes;
            uint64_t count;
            if (!tl_has_checkpoint(m, key)) continue;
            if (tl_peek_checkpoint(&env, m, key, &bytes, &count)) fail_msg("peek %d: %s", (int)i, env.error.text);
            assert_int_equal(tl_release_checkpoint(&env, m, key), TL_OK);
        }
    }
    tl_measure_manager(m, &statistics);
    assert_true(statistics.compressions && statistics.spills && statistics.fetches && statistics.dropped);
    assert_int_equal(tl_reset_manager(&env, m), TL_OK);
    tl_free_manager(m);
    memset(&desc, 0, sizeof desc);
    desc.device_budget_bytes = 4096;  // a checkpoint as large as the budget is overwritten in place
    assert_int_equal(tl_init_manager(&env, &backend, &desc, &m), TL_OK);
    for (i = 0; i < 3; i++) {
        tl_save_desc save = save_of(0, data, 4096, 1);
        assert_int_equal(tl_save_checkpoint(&env, m, &save), TL_OK);
    }
    tl_free_manager(m);
    tl_free_cpu_backend(backend_env, &backend);
    if (!is_silent(&env, lines)) fail_msg("%ld lines, last: %s", lines, env.error.text);
    if (!is_silent(&other, backend_lines)) fail_msg("%ld lines, last: %s", backend_lines, other.error.text);
}

static void what_succeeds_is_silent(void **state) {
    (void)state;
    use_manager_in_silence(0);
    use_manager_in_silence(1);  // the backend has an env of its own
}

static void what_fails_in_the_end_is_logged(void **state) {
    static char data[4096], memory[8192];
    long lines;
    tl_env env = logging_env(&lines);
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_manager_desc desc;
    tl_manager *m;
    tl_save_desc save = save_of(0, data, sizeof data, 1);
    (void)state;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    cpu.memory = memory;
    cpu.memory_bytes = sizeof memory;
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    assert_int_equal(tl_init_manager(&env, &backend, &desc, &m), TL_OK);
    assert_int_equal(tl_save_checkpoint(&env, m, &save), TL_OK);
    assert_true(is_silent(&env, lines));
    save = save_of(1, memory, sizeof memory, 1);
    assert_int_equal(tl_save_checkpoint(&env, m, &save), TL_ERROR_OVER_BUDGET);
    assert_true(lines > 0);
    assert_non_null(strstr(env.error.text, "tl_save_checkpoint: "));
    assert_true(env.log == count_line);
    tl_free_manager(m);
    tl_free_cpu_backend(&env, &backend);
}

static void logarithms_are_exact_up_to_64_bits(void **state) {
    int32_t k;
    (void)state;
    for (k = 0; k < 64; k++) {
        assert_int_equal(tli_log2_u64((uint64_t)1 << k), k);
        assert_int_equal(tli_log2_u64((uint64_t)1 << k | ((uint64_t)1 << k) / 3), k);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_succeeds_is_silent),
        cmocka_unit_test(what_fails_in_the_end_is_logged),
        cmocka_unit_test(logarithms_are_exact_up_to_64_bits),
        cmocka_unit_test(save_copies_take_returns_and_removes),
        cmocka_unit_test(find_shows_the_five_fields_of_the_seed_and_more),
        cmocka_unit_test(ranges_are_saved_and_taken_by_ticket),
        cmocka_unit_test(zero_byte_checkpoints_are_held_like_others),
        cmocka_unit_test(a_desc_that_breaks_a_rule_is_refused),
        cmocka_unit_test(a_codec_the_backend_lacks_is_unsupported),
        cmocka_unit_test(names_parse_back),
        cmocka_unit_test(the_order_of_eviction_is_exact),
        cmocka_unit_test(exact_fit_is_held_and_one_byte_less_evicts),
        cmocka_unit_test(each_eviction_picks_its_own_victim),
        cmocka_unit_test(the_caller_may_refuse_to_evict),
        cmocka_unit_test(victims_are_the_best_or_of_the_best_class),
        cmocka_unit_test(cost_is_exact_among_equal_costs_per_byte),
        cmocka_unit_test(evicted_checkpoints_are_compressed_then_spilled_then_dropped),
        cmocka_unit_test(packed_checkpoints_are_taken_without_room_to_expand),
        cmocka_unit_test(lossless_checkpoints_are_never_compressed),
        cmocka_unit_test(kept_checkpoints_are_moved_but_never_dropped),
        cmocka_unit_test(borrowed_checkpoints_are_not_evicted_replaced_or_removed),
        cmocka_unit_test(writing_to_a_borrowed_checkpoint_is_found),
        cmocka_unit_test(evict_frees_the_bytes_asked_for_and_no_more_than_needed),
        cmocka_unit_test(peek_without_room_to_bring_back_is_refused_and_loses_nothing),
        cmocka_unit_test(replacing_is_atomic),
        cmocka_unit_test(a_save_that_the_policy_passes_over_removes_the_old_one),
        cmocka_unit_test(another_step_is_stale),
        cmocka_unit_test(policies_keep_what_they_say),
        cmocka_unit_test(defect_B1_eviction_returns_with_a_budget_one_byte_too_small),
        cmocka_unit_test(defect_B2_the_one_lock_is_taken_once_per_call),
        cmocka_unit_test(defect_B3_usage_is_zero_after_everything_was_taken),
        cmocka_unit_test(defect_B4_the_content_is_the_one_saved),
        cmocka_unit_test(defect_B6_saving_again_counts_once),
        cmocka_unit_test(defect_B7_eviction_goes_on_until_it_fits_or_refuses),
        cmocka_unit_test(defect_B8_eight_threads_share_a_manager_and_its_budget),
        cmocka_unit_test(defect_B9_sizes_that_overflow_are_refused),
        cmocka_unit_test(defect_B10_cheap_checkpoints_go_first),
        cmocka_unit_test(defect_B11_inputs_are_held_under_every_policy),
        cmocka_unit_test(defect_B12_every_zeroth_is_an_error),
        cmocka_unit_test(defect_B13_the_threshold_itself_is_kept),
        cmocka_unit_test(defect_B14_and_B21_statistics_agree_with_what_is_held),
        cmocka_unit_test(defect_B15_no_budget_has_no_utilization),
        cmocka_unit_test(defect_B16_every_failure_has_a_code_and_a_sentence),
        cmocka_unit_test(defect_B17_a_checkpoint_of_an_earlier_step_is_never_used),
        cmocka_unit_test(defect_B18_outputs_saved_bytes_and_micro_batches_have_keys_of_their_own),
        cmocka_unit_test(defect_B19_peek_borrows_without_a_copy),
        cmocka_unit_test(defect_B20_the_host_tier_is_real),
        cmocka_unit_test(no_failure_of_the_backend_loses_anything),
        cmocka_unit_test(after_a_lost_device_the_host_tier_is_read),
        cmocka_unit_test(a_packed_checkpoint_of_a_lost_device_needs_memory),
        cmocka_unit_test(the_manager_submits_only_when_it_is_told),
        cmocka_unit_test(a_recording_backend_serves_the_manager),
        cmocka_unit_test(every_failed_allocation_is_told_and_loses_nothing),
        cmocka_unit_test(capacity_made_at_init_means_no_allocation_later),
#ifndef TL_NO_ACCOUNTS
        cmocka_unit_test(the_account_of_a_manager_is_limited_and_holds_its_backend),
#endif
        cmocka_unit_test(an_exit_is_the_first_that_is_allowed_and_fits),
        cmocka_unit_test(full_memory_of_the_backend_evicts_too),
        cmocka_unit_test(a_kept_checkpoint_is_not_dropped_where_it_cannot_be_compressed),
        cmocka_unit_test(a_million_cycles_take_constant_memory),
        cmocka_unit_test(random_operations_agree_with_a_simple_model),
        cmocka_unit_test(golden_traces_agree_or_show_a_named_defect),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
