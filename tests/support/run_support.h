// What the tests of [12] RUN stand on: a backend that counts, asserts, fails or cheats on demand around the
// CPU backend, and kernels for any graph whose every byte depends on every byte that they may read.
// Include after cmocka and the implementation.
#ifndef TESTS_RUN_SUPPORT_H
#define TESTS_RUN_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- the spy --

typedef enum spy_function {
    SPY_ADD_BLOCK, SPY_FREE_BLOCK, SPY_CLAIM, SPY_RELEASE, SPY_COPY, SPY_COMPRESS, SPY_EXPAND, SPY_FILL,
    SPY_ORDER, SPY_SUBMIT, SPY_POLL, SPY_WAIT, SPY_MAP, SPY_UNMAP, SPY_CHECK, SPY_SHORTEN, SPY_COUNT
} spy_function;

typedef enum spy_lie { LIE_NOT, LIE_PEAK, LIE_HOST_PEAK, LIE_ARENA, LIE_LIVE, LIE_HOST_LIVE, LIE_COUNT } spy_lie;

typedef struct spy {
    tl_backend inner;
    uint64_t account;        // of the claim or release under way; 0 = none
    uint64_t limits[TL_TIER_COUNT];  // of the account opened last
    long     calls[SPY_COUNT];
    long     clock_calls;
    int      fail_function;  // that fails once, at its call number fail_at from 0; -1 = none
    long     fail_at;
    long     fail_count;     // calls that fail from there on; 0 = 1
    long     lost_at;        // the device is lost from that call on, counted over all functions; -1 = never
    long     all_calls;
    int      skips[SPY_COUNT];  // 1 = the function does nothing and says that all is well
    int      lie;            // a spy_lie of counters, told from the next check on
    int      lies;
    uint32_t no_codecs;      // taken out of the limits
    int      is_remote;      // 1 = the limits say that the host cannot reach the memory
    uint64_t limit;          // of live device bytes; 0 = none
    int      went_over;
    tl_access touched[256];  // by claims, copies, conversions, fills; cleared by whoever looks
    int      touched_count;
    tl_range released[64];   // the same
    int      released_count;
    uint64_t binding;        // the largest range that a kernel can be given, by the limits; 0 = any
} spy;

static tl_result spy_enter(spy *s, spy_function function) {
    long call = s->calls[function]++, index = s->all_calls++;
    if (s->lost_at >= 0 && index >= s->lost_at && function != SPY_FREE_BLOCK && function != SPY_RELEASE &&
        function != SPY_UNMAP)
        return TL_ERROR_DEVICE_LOST;
    if (s->fail_function == (int)function && call >= s->fail_at && call <= s->fail_at + s->fail_count - (s->fail_count > 0))
        return function == SPY_ADD_BLOCK ? TL_ERROR_NO_MEMORY : TL_ERROR_BACKEND;
    return TL_OK;
}

static void spy_note(spy *s, tl_range range, int writes) {
    tl_access *access = &s->touched[s->touched_count];
    if (s->touched_count == 256) return;
    access->range = range;
    access->writes = writes;
    s->touched_count++;
}

static tl_result spy_add_block(void *self, tl_tier tier, uint64_t bytes, uint64_t *block) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_ADD_BLOCK);
    *block = 0;
    return result ? result : s->inner.add_block(s->inner.self, tier, bytes, block);
}

static tl_result spy_free_block(void *self, uint64_t block) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_FREE_BLOCK);
    return result ? result : s->inner.free_block(s->inner.self, block);
}

static tl_result spy_claim(void *self, tl_range range) {
    spy *s = (spy *)self;
    tl_backend_counters counters;
    tl_result result = spy_enter(s, SPY_CLAIM);
    if (!result && s->account) result = s->inner.claim_on(s->inner.self, s->account, range);
    else if (!result) result = s->inner.claim(s->inner.self, range);
    s->account = 0;
    if (result) return result;
    spy_note(s, range, 1);
    s->inner.counters(s->inner.self, &counters);
    s->went_over |= s->limit && counters.live_bytes[TL_TIER_DEVICE] > s->limit;
    return TL_OK;
}

static tl_result spy_release(void *self, tl_range range) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_RELEASE);
    uint64_t account = s->account;
    s->account = 0;
    if (s->released_count < 64) s->released[s->released_count++] = range;
    if (result) return result;
    return account ? s->inner.release_on(s->inner.self, account, range) : s->inner.release(s->inner.self, range);
}

static tl_result spy_open_account(void *self, const uint64_t limit_bytes[TL_TIER_COUNT], uint64_t *account) {
    spy *s = (spy *)self;
    memcpy(s->limits, limit_bytes, sizeof s->limits);
    return s->inner.open_account(s->inner.self, limit_bytes, account);
}

static tl_result spy_close_account(void *self, uint64_t account) {
    spy *s = (spy *)self;
    return s->inner.close_account(s->inner.self, account);
}

static tl_result spy_claim_on(void *self, uint64_t account, tl_range range) {
    spy *s = (spy *)self;
    s->account = account;
    return spy_claim(self, range);
}

static tl_result spy_release_on(void *self, uint64_t account, tl_range range) {
    spy *s = (spy *)self;
    s->account = account;
    return spy_release(self, range);
}

static tl_result spy_measure_account(void *self, uint64_t account, int32_t resets, tl_account_counters *counters) {
    spy *s = (spy *)self;
    tl_result result = s->inner.measure_account(s->inner.self, account, resets, counters);
    counters->peak_bytes[TL_TIER_DEVICE] += s->lies == LIE_PEAK;
    counters->peak_bytes[TL_TIER_HOST] += s->lies == LIE_HOST_PEAK;
    counters->arena_bytes += s->lies == LIE_ARENA ? 4096 : 0;
    counters->live_bytes[TL_TIER_DEVICE] += s->lies == LIE_LIVE;
    counters->live_bytes[TL_TIER_HOST] += s->lies == LIE_HOST_LIVE;
    return result;
}

static tl_result spy_shorten(void *self, uint64_t account, tl_range range, uint64_t bytes) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_SHORTEN);
    return result ? result : s->inner.shorten(s->inner.self, account, range, bytes);
}

static tl_result spy_copy(void *self, tl_range to, tl_range from) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_COPY);
    spy_note(s, to, 1);
    spy_note(s, from, 0);
    return result ? result : s->inner.copy(s->inner.self, to, from);
}

static tl_result spy_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_COMPRESS);
    spy_note(s, to, 1);
    spy_note(s, from, 0);
    return result ? result : s->inner.compress(s->inner.self, codec, to, from);
}

static tl_result spy_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_EXPAND);
    spy_note(s, to, 1);
    spy_note(s, from, 0);
    return result ? result : s->inner.expand(s->inner.self, codec, to, from);
}

static tl_result spy_fill(void *self, tl_range to, uint32_t word) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_FILL);
    spy_note(s, to, 1);
    return result ? result : s->inner.fill(s->inner.self, to, word);
}

static tl_result spy_order(void *self, const tl_access *accesses, int32_t access_count) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_ORDER);
    return result || s->skips[SPY_ORDER] ? result : s->inner.order(s->inner.self, accesses, access_count);
}

static tl_result spy_submit(void *self, tl_ticket *ticket) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_SUBMIT);
    return result ? result : s->inner.submit(s->inner.self, ticket);
}

static tl_result spy_poll(void *self, tl_ticket ticket) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_POLL);
    return result ? result : s->inner.poll(s->inner.self, ticket);
}

static tl_result spy_wait(void *self, tl_ticket ticket) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_WAIT);
    return result || s->skips[SPY_WAIT] ? result : s->inner.wait(s->inner.self, ticket);
}

static tl_result spy_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_MAP);
    *host = NULL;
    return result ? result : s->inner.map(s->inner.self, range, mode, host);
}

// A failing unmap: the pointer is dead all the same.
static tl_result spy_unmap(void *self, tl_range range, tl_map_mode mode, void *host) {
    spy *s = (spy *)self;
    tl_result failed = spy_enter(s, SPY_UNMAP), result = s->inner.unmap(s->inner.self, range, mode, host);
    return failed ? failed : result;
}

static tl_result spy_check(void *self) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_CHECK);
    s->lies = s->lie;
    return result ? result : s->inner.check(s->inner.self);
}

static uint64_t spy_now_ns(void *self) {
    spy *s = (spy *)self;
    return 1000 + 10 * (uint64_t)s->clock_calls++;
}

static void spy_limits(void *self, tl_backend_limits *limits) {
    spy *s = (spy *)self;
    s->inner.limits(s->inner.self, limits);
    limits->codecs &= ~s->no_codecs;
    if (s->is_remote) limits->host_visible = 0;
    if (s->binding) limits->binding_bytes = s->binding;
}

static void spy_counters(void *self, tl_backend_counters *counters) {
    spy *s = (spy *)self;
    s->inner.counters(s->inner.self, counters);
    counters->peak_bytes[TL_TIER_DEVICE] += s->lies == LIE_PEAK;
    counters->peak_bytes[TL_TIER_HOST] += s->lies == LIE_HOST_PEAK;
    counters->arena_bytes += s->lies == LIE_ARENA ? 4096 : 0;
    counters->live_bytes[TL_TIER_DEVICE] += s->lies == LIE_LIVE;
    counters->live_bytes[TL_TIER_HOST] += s->lies == LIE_HOST_LIVE;
}

static void spy_reset_peaks(void *self) {
    spy *s = (spy *)self;
    s->lies = LIE_NOT;
    s->inner.reset_peaks(s->inner.self);
}

#define BACKEND_CHECKED 1
#define BACKEND_DEFERRED 2
#define BACKEND_KINDS 4

// A CPU backend of one of the four kinds, behind the spy.
static tl_backend spy_open(tl_env *env, int kind, uint64_t seed, uint64_t alignment, spy *s) {
    tl_cpu_backend_desc desc;
    tl_backend backend;
    memset(s, 0, sizeof *s);
    memset(&backend, 0, sizeof backend);    // what it does not have is 0
    memset(&desc, 0, sizeof desc);
    desc.alignment_bytes = alignment;
    desc.checked = kind & BACKEND_CHECKED ? 1 : 0;
    desc.deferred = kind & BACKEND_DEFERRED ? 1 : 0;
    desc.seed = seed;
    if (tl_init_cpu_backend(env, &desc, &s->inner)) fail_msg("%s", env->error.text);
    s->fail_function = -1;
    s->lost_at = -1;
    backend.self = s;
    backend.add_block = spy_add_block;
    backend.free_block = spy_free_block;
    backend.claim = spy_claim;
    backend.release = spy_release;
    backend.copy = spy_copy;
    backend.compress = spy_compress;
    backend.expand = spy_expand;
    backend.fill = spy_fill;
    backend.order = spy_order;
    backend.submit = spy_submit;
    backend.poll = spy_poll;
    backend.wait = spy_wait;
    backend.map = spy_map;
    backend.unmap = spy_unmap;
    backend.check = spy_check;
    backend.now_ns = spy_now_ns;
    backend.limits = spy_limits;
    backend.counters = spy_counters;
    backend.reset_peaks = spy_reset_peaks;
    backend.open_account = spy_open_account;
    backend.close_account = spy_close_account;
    backend.claim_on = spy_claim_on;
    backend.release_on = spy_release_on;
    backend.measure_account = spy_measure_account;
    if (s->inner.shorten) backend.shorten = spy_shorten;
    return backend;
}

static tl_backend_counters spy_count(const spy *s) {
    tl_backend_counters counters;
    s->inner.counters(s->inner.self, &counters);
    return counters;
}

// Nothing is held any more; then the backend goes.
static void spy_close(tl_env *env, spy *s) {
    tl_backend_counters counters = spy_count(s);
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        assert_int_equal(counters.live_bytes[tier], 0);
        assert_int_equal(counters.claim_count[tier], 0);
        assert_int_equal(counters.block_count[tier], 0);
    }
    assert_int_equal(tl_free_cpu_backend(env, &s->inner), TL_OK);
}

#include "mixer.h"

#endif
