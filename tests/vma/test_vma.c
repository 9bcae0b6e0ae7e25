// The backend's memory from the Vulkan Memory Allocator of an engine:  make test VMA=<path of a clone>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../support/vk_support.h"
#include "vma_hooks.h"

typedef struct fixture {
    vkt v;
    tl_env env;
    tl_vk_memory_hooks hooks;
    tl_backend backend;
} fixture;

static void open_fixture(fixture *f, uint64_t heap_bytes) {
    tl_vk_backend_desc desc = {0};
    vkt_desc device = {0};
    memset(f, 0, sizeof *f);
    vkt_open(&device, &f->v);
    assert_true(vma_open(&f->v.device, heap_bytes, &f->hooks));
    desc.device = f->v.device;
    desc.hooks = f->hooks;
    desc.chunk_bytes = 4 << 20;
    if (tl_vk_init_backend(&f->env, &desc, &f->backend)) fail_msg("%s", f->env.error.text);
}

// Whatever a test has left, the allocator gets all memory back, and the layer has nothing to say.
static void close_fixture(fixture *f) {
    tl_vk_free_backend(&f->env, &f->backend);
    assert_int_equal(vma_count(&f->hooks).allocations, 0);
    assert_int_equal(vma_count(&f->hooks).bytes, 0);
    vma_close(&f->hooks);
    vkt_close(&f->v);
    assert_int_equal(vkt_messages(&f->v), 0);
}

static tl_range add_range(fixture *f, tl_tier tier, uint64_t bytes) {
    tl_range range = {0, 0, 0};
    range.bytes = bytes;
    if (f->backend.add_block(f->backend.self, tier, bytes, &range.block)) fail_msg("%s", f->env.error.text);
    assert_int_equal(f->backend.claim(f->backend.self, range), TL_OK);
    return range;
}

static void free_range(fixture *f, tl_range range) {
    assert_int_equal(f->backend.release(f->backend.self, range), TL_OK);
    assert_int_equal(f->backend.free_block(f->backend.self, range.block), TL_OK);
}

static void write_range(fixture *f, tl_range range, const void *bytes) {
    void *host;
    if (f->backend.map(f->backend.self, range, TL_MAP_WRITE, &host)) fail_msg("%s", f->env.error.text);
    memcpy(host, bytes, (size_t)range.bytes);
    assert_int_equal(f->backend.unmap(f->backend.self, range, TL_MAP_WRITE, host), TL_OK);
}

static void expect_range(fixture *f, tl_range range, const void *bytes) {
    void *host;
    if (f->backend.map(f->backend.self, range, TL_MAP_READ, &host)) fail_msg("%s", f->env.error.text);
    assert_memory_equal(host, bytes, (size_t)range.bytes);
    assert_int_equal(f->backend.unmap(f->backend.self, range, TL_MAP_READ, host), TL_OK);
}

#define FLOATS 5003

// Between two tiers and two codecs and back, for each codec against the same conversion on the host.
static void convert(fixture *f, tl_codec codec, const float *values) {
    static unsigned char packed[4 * FLOATS];
    static float expanded[FLOATS];
    uint64_t packed_bytes = tl_find_codec_bytes(codec, sizeof expanded);
    tl_range host = add_range(f, TL_TIER_HOST, sizeof expanded);
    tl_range device = add_range(f, TL_TIER_DEVICE, sizeof expanded);
    tl_range small = add_range(f, TL_TIER_DEVICE, packed_bytes);
    tl_range spilled = add_range(f, TL_TIER_HOST, packed_bytes);
    tl_compress_bytes(codec, packed, values, sizeof expanded);
    tl_expand_bytes(codec, expanded, packed, sizeof expanded);
    write_range(f, host, values);
    assert_int_equal(f->backend.copy(f->backend.self, device, host), TL_OK);
    assert_int_equal(f->backend.compress(f->backend.self, codec, small, device), TL_OK);
    assert_int_equal(f->backend.copy(f->backend.self, spilled, small), TL_OK);
    assert_int_equal(f->backend.fill(f->backend.self, small, 0), TL_OK);
    assert_int_equal(f->backend.copy(f->backend.self, small, spilled), TL_OK);
    assert_int_equal(f->backend.expand(f->backend.self, codec, device, small), TL_OK);
    expect_range(f, spilled, packed);
    expect_range(f, device, expanded);
    free_range(f, host);
    free_range(f, device);
    free_range(f, small);
    free_range(f, spilled);
}

static void copies_and_conversions_run_in_memory_of_the_allocator(void **state) {
    static float values[FLOATS];
    tl_random random = {7};
    tl_vk_counters counters;
    fixture f;
    int i, codec;
    (void)state;
    if (!vkt_has_vulkan("copies_and_conversions_run_in_memory_of_the_allocator")) skip();
    for (i = 0; i < FLOATS; i++)
        values[i] = (float)((int32_t)tl_next_random_below(&random, 20000) - 10000) / 64.0f;
    open_fixture(&f, 0);
    for (codec = 1; codec < TL_CODEC_COUNT; codec++) convert(&f, (tl_codec)codec, values);
    tl_vk_measure(&f.backend, &counters);
    assert_true(counters.memory_count > 0);
    assert_int_equal(vma_count(&f.hooks).allocations, counters.memory_count);
    assert_int_equal(vma_count(&f.hooks).bytes, counters.memory_bytes);
    close_fixture(&f);
}

static void blocks_beyond_a_chunk_and_dropped_chunks_go_through_the_hooks(void **state) {
    fixture f;
    tl_range small, large;
    vma_counts before;
    (void)state;
    if (!vkt_has_vulkan("blocks_beyond_a_chunk_and_dropped_chunks_go_through_the_hooks")) skip();
    open_fixture(&f, 0);
    small = add_range(&f, TL_TIER_DEVICE, 1000);
    before = vma_count(&f.hooks);
    large = add_range(&f, TL_TIER_DEVICE, 24 << 20);
    assert_true(vma_count(&f.hooks).bytes >= before.bytes + (24 << 20));
    free_range(&f, large);
    assert_int_equal(tl_vk_drop_unused(&f.backend, 0), TL_OK);
    assert_int_equal(vma_count(&f.hooks).allocations, before.allocations);
    free_range(&f, small);
    close_fixture(&f);
}

// The allocator refuses what does not fit its heap; later the same size fits.
static void a_refusal_of_the_allocator_is_no_memory_and_no_loss(void **state) {
    tl_range range;
    uint64_t block = 1;
    fixture f;
    (void)state;
    if (!vkt_has_vulkan("a_refusal_of_the_allocator_is_no_memory_and_no_loss")) skip();
    open_fixture(&f, 48 << 20);
    range = add_range(&f, TL_TIER_DEVICE, 24 << 20);
    assert_int_equal(f.backend.add_block(f.backend.self, TL_TIER_DEVICE, 24 << 20, &block), TL_ERROR_NO_MEMORY);
    assert_int_equal(block, 0);
    free_range(&f, range);
    assert_int_equal(f.backend.fill(f.backend.self, add_range(&f, TL_TIER_DEVICE, 24 << 20), 5), TL_OK);
    close_fixture(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_conversions_run_in_memory_of_the_allocator),
        cmocka_unit_test(blocks_beyond_a_chunk_and_dropped_chunks_go_through_the_hooks),
        cmocka_unit_test(a_refusal_of_the_allocator_is_no_memory_and_no_loss),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vma", tests, NULL, NULL);
}
