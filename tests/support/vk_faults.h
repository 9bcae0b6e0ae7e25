// Shared by the tests of the Vulkan backend on faked machines: a device behind the fault shim with a
// backend on it, an env that counts and fails, ranges that are written and read. Include after cmocka
// and the two implementation macros.
#ifndef TESTS_VK_FAULTS_H
#define TESTS_VK_FAULTS_H

#include "vk_support.h"
#include "vk_shim.c"
#include "support.h"

// For -fsanitize=thread: drivers and layers were not compiled with it, so ignore what they do among themselves.
#if defined __has_feature
#if __has_feature(thread_sanitizer)
#define VK_FAULTS_FINDS_RACES
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define VK_FAULTS_FINDS_RACES
#endif
#ifdef VK_FAULTS_FINDS_RACES
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race:libvulkan_lvp\nrace:libVkLayer_khronos_validation\nrace:libLLVM\n"
           "deadlock:libVkLayer_khronos_validation\n";
}
#endif

#define LARGE_BYTES ((uint64_t)3 << 20)

typedef struct world {
    vkt v;
    tl_env env;
    failing_alloc alloc;
    tl_backend backend;
    tl_vk_backend_desc desc;
    vkshim_config config;      // the machine, without failures
    vkshim_counts before;      // the objects that exist without the backend
} world;

// A device on this machine, without a backend.
static void open_device(world *w, const vkshim_config *config, const vkt_desc *device) {
    vkt_desc desc = *device;
    memset(w, 0, sizeof *w);
    w->config = *config;
    w->config.keeps_pipelines = 1;
    vkshim_reset(&w->config);
    desc.get_instance_proc = vkshim_get_instance_proc;
    vkt_open(&desc, &w->v);
    vkt_expect(&w->v, "-small-");  // chunks are small here so that tests need many: best practices advise larger
    w->env = failing_env(&w->alloc, -1);
    w->desc.device = w->v.device;
    w->desc.chunk_bytes = 1 << 20;
    w->desc.staging_bytes = 1 << 16;
    w->desc.time_count = 2;
    vkshim_report(&w->before);
}

static void open_backend(world *w) {
    if (tl_vk_init_backend(&w->env, &w->desc, &w->backend)) fail_msg("%s", w->env.error.text);
}

// No failures from here on.
static void calm(world *w) {
    w->alloc.fail_at = -1;
    vkshim_change(&w->config);
}

static void expect_ok(world *w, tl_result result, const char *what) {
    vkshim_counts now;
    vkshim_report(&now);
    if (result)
        fail_msg("%s: %s: %s (failed last: %s)", what, tl_name_result(result), w->env.error.text,
                 now.injected_call ? now.injected_call : "nothing");
}

// Check that all objects and all memory are freed and that no rule of the shim was broken.
static void expect_nothing_left(const world *w, const char *what) {
    vkshim_counts now;
    int kind;
    vkshim_report(&now);
    if (now.violation_count) fail_msg("%s: %s", what, vkshim_violation(0));
    for (kind = 0; kind < VKSHIM_KIND_COUNT; kind++)
        if (now.live[kind] != w->before.live[kind])
            fail_msg("%s: %d %s live, not %d", what, (int)now.live[kind], vkshim_name_kind((vkshim_kind)kind),
                     (int)w->before.live[kind]);
    if (now.mapped_count) fail_msg("%s: memory is still mapped", what);
    if (w->alloc.live) fail_msg("%s: %d allocations of the env live", what, (int)w->alloc.live);
}

// Check that no block and no claim is left and that no rule was broken so far.
static inline void expect_idle(const world *w, const char *what) {
    tl_backend_counters counters;
    vkshim_counts now;
    int tier;
    w->backend.counters(w->backend.self, &counters);
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        if (counters.block_count[tier] || counters.claim_count[tier] || counters.live_bytes[tier])
            fail_msg("%s: %d blocks and %d claims left in tier %s", what, (int)counters.block_count[tier],
                     (int)counters.claim_count[tier], tier == TL_TIER_HOST ? "host" : "device");
    vkshim_report(&now);
    if (now.violation_count) fail_msg("%s: %s", what, vkshim_violation(0));
}

static void close_backend(world *w, const char *what) {
    calm(w);
    tl_vk_free_backend(&w->env, &w->backend);
    expect_nothing_left(w, what);
}

static void close_device(world *w) {
    vkshim_counts now;
    vkt_close(&w->v);
    vkshim_report(&now);
    if (now.violation_count) fail_msg("%s", vkshim_violation(0));
    if (vkt_messages(&w->v)) fail_msg("validation: %s", w->v.last);
}

// -- ranges --

static inline tl_result add_range(world *w, tl_tier tier, uint64_t bytes, tl_range *range) {
    const tl_backend *b = &w->backend;
    tl_range added = {0};
    tl_result result = b->add_block(b->self, tier, bytes, &added.block);
    memset(range, 0, sizeof *range);
    if (result) return result;
    added.bytes = bytes;
    result = b->claim(b->self, added);
    if (result) assert_int_equal(b->free_block(b->self, added.block), TL_OK);
    else *range = added;
    return result;
}

// May be called always, also after the device was lost.
static inline void free_range(world *w, tl_range *range) {
    const tl_backend *b = &w->backend;
    if (!range->block) return;
    expect_ok(w, b->release(b->self, *range), "release");
    expect_ok(w, b->free_block(b->self, range->block), "free_block");
    memset(range, 0, sizeof *range);
}

static inline tl_result write_range(world *w, tl_range range, const void *bytes) {
    const tl_backend *b = &w->backend;
    void *host;
    tl_result result = b->map(b->self, range, TL_MAP_WRITE, &host);
    if (result) return result;
    memcpy(host, bytes, (size_t)range.bytes);
    return b->unmap(b->self, range, TL_MAP_WRITE, host);
}

static inline tl_result read_range(world *w, tl_range range, void *bytes) {
    const tl_backend *b = &w->backend;
    void *host;
    tl_result result = b->map(b->self, range, TL_MAP_READ, &host);
    if (result) return result;
    memcpy(bytes, host, (size_t)range.bytes);
    return b->unmap(b->self, range, TL_MAP_READ, host);
}

// Fill a range of whole words and read it back: TL_ERROR_CORRUPT where a word is another.
static inline tl_result fill_and_expect(world *w, tl_range range, uint32_t word) {
    const tl_backend *b = &w->backend;
    uint64_t i, wrong = 0;
    void *host;
    tl_result result = b->fill(b->self, range, word);
    if (!result) result = b->map(b->self, range, TL_MAP_READ, &host);
    if (result) return result;
    for (i = 0; i < range.bytes / 4; i++) wrong += ((const uint32_t *)host)[i] != word;
    result = b->unmap(b->self, range, TL_MAP_READ, host);
    return wrong ? TL_ERROR_CORRUPT : result;
}

// Submit and wait until all work has finished, repeating calls that fail once.
static inline void finish(world *w) {
    const tl_backend *b = &w->backend;
    tl_ticket ticket = {0};
    int tries;
    for (tries = 0; tries < 4; tries++)
        if (b->submit(b->self, &ticket) == TL_OK && b->wait(b->self, ticket) == TL_OK) return;
}

// -- failures --

// Two kinds of machine, one with timeline semaphores and one with fences.
typedef struct variant { const char *name; vkshim_machine machine; int disable_timeline; } variant;

static const variant variants[] = {
    { "staged, timeline", VKSHIM_MACHINE_DISCRETE, 0 },
    { "mapped, fences", VKSHIM_MACHINE_NON_COHERENT, 1 },
};
#define VARIANTS (int)(sizeof variants / sizeof *variants)

static inline void open_variant(world *w, const variant *kind) {
    vkshim_config config;
    vkt_desc device = {0};
    vkshim_default(&config, kind->machine);
    device.disable_timeline = kind->disable_timeline;
    open_device(w, &config, &device);
}

// What fails, at call number `at` from now on: one call of Vulkan with this result; one allocation of the env;
// or every vkAllocateMemory from that number on.
typedef enum fault_kind { FAULT_HOST, FAULT_DEVICE, FAULT_ENV, FAULT_LASTING, FAULT_KINDS } fault_kind;

static inline void plan_fault(world *w, fault_kind kind, long at) {
    vkshim_config config = w->config;
    if (kind == FAULT_HOST || kind == FAULT_DEVICE) config.fail_any_at = (uint64_t)at;
    if (kind == FAULT_LASTING) {
        config.fail_call = "vkAllocateMemory";
        config.fail_at = (uint64_t)at;
        config.fail_count = UINT64_MAX;
    }
    config.fail_with = kind == FAULT_HOST ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_ERROR_OUT_OF_DEVICE_MEMORY;
    vkshim_change(&config);
    w->alloc.count = 0;
    w->alloc.fails_once = 1;
    w->alloc.fail_at = kind == FAULT_ENV ? at - 1 : -1;
}

static inline int fault_happened(const world *w, fault_kind kind, long at, uint64_t injected_before) {
    vkshim_counts now;
    vkshim_report(&now);
    return kind == FAULT_ENV ? w->alloc.count >= at : now.injected_count > injected_before;
}

static inline uint64_t injected(void) {
    vkshim_counts now;
    vkshim_report(&now);
    return now.injected_count;
}

#endif
