// tl_vk_backend.h on its own queue: limits, sizes, tails, wrong handles, work in flight, codecs, fragmentation,
// runs whose submits and waits are counted, buffers of the caller, times, kernels.
//
// SOAK=1 compresses all 2^32 f32, and does ten times as many operations.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_support.h"
#include "support/support.h"
#include "support/vk_net.h"
#include "support/vk_shim.c"

#define CANARY 0xC5

typedef struct fixture {
    vkt v;
    failing_alloc alloc;
    tl_env env;
    tl_backend b;
    uint64_t alignment;
    tl_random random;
    int watches;               // 1 = the shim's rules were held to
} fixture;

static tl_vk_counters measure(const fixture *f) {
    tl_vk_counters counters;
    tl_vk_measure(&f->b, &counters);
    return counters;
}

static vkshim_counts shim_counts(void) {
    vkshim_counts counts;
    vkshim_report(&counts);
    return counts;
}

// A device behind the shim, without a backend yet.
static void open_device(fixture *f, const vkshim_config *config, const vkt_desc *given) {
    vkt_desc device = {0};
    memset(f, 0, sizeof *f);
    vkshim_reset(config);
    if (given) device = *given;
    device.get_instance_proc = vkshim_get_instance_proc;
    vkt_open(&device, &f->v);
    f->env = failing_env(&f->alloc, -1);
    f->random.state = 1;
    f->watches = 1;
}

static tl_result try_backend(fixture *f, const tl_vk_backend_desc *given) {
    tl_vk_backend_desc desc = {0};
    tl_backend_limits limits;
    tl_result result;
    if (given) desc = *given;
    desc.device = f->v.device;
    result = tl_vk_init_backend(&f->env, &desc, &f->b);
    if (result) return result;
    f->b.limits(f->b.self, &limits);
    f->alignment = limits.alignment_bytes;
    return TL_OK;
}

static void open_fixture(fixture *f, const vkshim_config *config, const vkt_desc *device,
                         const tl_vk_backend_desc *desc) {
    open_device(f, config, device);
    if (try_backend(f, desc)) fail_msg("%s", f->env.error.text);
}

static void close_fixture(fixture *f) {
    vkshim_counts counts;
    tl_vk_free_backend(&f->env, &f->b);
    vkt_close(&f->v);
    counts = shim_counts();
    if (f->watches && counts.violation_count) fail_msg("%s", counts.violation_text);
    assert_int_equal(vkt_messages(&f->v), 0);
    assert_int_equal(f->alloc.live, 0);
}

static void expect_error(fixture *f, tl_result result, tl_result code, const char *text) {
    if (result != code) fail_msg("%s where %s was expected", tl_name_result(result), text);
    if (strcmp(f->env.error.text, text)) fail_msg("\"%s\" where \"%s\" was expected", f->env.error.text, text);
}

static tl_range add_tier(fixture *f, tl_tier tier, uint64_t bytes) {
    tl_range range = {0};
    if (f->b.add_block(f->b.self, tier, bytes, &range.block)) fail_msg("%s", f->env.error.text);
    range.bytes = bytes;
    assert_int_equal(f->b.claim(f->b.self, range), TL_OK);
    return range;
}

static tl_range add(fixture *f, uint64_t bytes) { return add_tier(f, TL_TIER_DEVICE, bytes); }

static void forget(fixture *f, tl_range range) {
    assert_int_equal(f->b.release(f->b.self, range), TL_OK);
    assert_int_equal(f->b.free_block(f->b.self, range.block), TL_OK);
}

static tl_range part_of(tl_range range, uint64_t offset, uint64_t bytes) {
    range.offset += offset;
    range.bytes = bytes;
    return range;
}

static void write_range(fixture *f, tl_range range, const void *bytes) {
    void *host;
    if (f->b.map(f->b.self, range, TL_MAP_WRITE, &host)) fail_msg("%s", f->env.error.text);
    if (range.bytes) memcpy(host, bytes, (size_t)range.bytes);
    assert_int_equal(f->b.unmap(f->b.self, range, TL_MAP_WRITE, host), TL_OK);
}

static void read_range(fixture *f, tl_range range, void *bytes) {
    void *host;
    if (f->b.map(f->b.self, range, TL_MAP_READ, &host)) fail_msg("%s", f->env.error.text);
    if (range.bytes) memcpy(bytes, host, (size_t)range.bytes);
    assert_int_equal(f->b.unmap(f->b.self, range, TL_MAP_READ, host), TL_OK);
}

static uint64_t align_up(const fixture *f, uint64_t bytes) {
    return (bytes + f->alignment - 1) / f->alignment * f->alignment;
}

// -- every operation at one size --

typedef enum range_op {
    OP_COPY, OP_FILL, OP_TO_F16, OP_FROM_F16, OP_TO_BF16, OP_FROM_BF16, OP_TO_Q8, OP_FROM_Q8, OP_ADD, OP_MIN_MAX,
    OP_CHECKSUM, OP_COUNT
} range_op;

static tl_codec codec_of(range_op op) { return (tl_codec)(TL_CODEC_F16 + (op - OP_TO_F16) / 2); }
static int op_packs(range_op op) { return op == OP_TO_F16 || op == OP_TO_BF16 || op == OP_TO_Q8; }
static int op_expands(range_op op) { return op == OP_FROM_F16 || op == OP_FROM_BF16 || op == OP_FROM_Q8; }
static int op_needs_words(range_op op) { return op >= OP_ADD; }

static uint64_t to_bytes_of(range_op op, uint64_t bytes) {
    if (op_packs(op)) return tl_find_codec_bytes(codec_of(op), bytes);
    return op == OP_MIN_MAX ? sizeof(tl_vk_extremes) : op == OP_CHECKSUM ? 8 : bytes;
}

static uint64_t from_bytes_of(range_op op, uint64_t bytes) {
    return op_expands(op) ? tl_find_codec_bytes(codec_of(op), bytes) : bytes;
}

static void expect_extremes(tl_vk_extremes *e, const unsigned char *plain, uint64_t bytes) {
    uint64_t i;
    e->least_key = UINT32_MAX;
    e->largest_key = e->finite_count = e->other_count = 0;
    for (i = 0; i + 4 <= bytes; i += 4) {
        uint32_t bits, key;
        memcpy(&bits, plain + i, 4);
        key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        if ((bits & 0x7F800000u) == 0x7F800000u) { e->other_count++; continue; }
        e->finite_count++;
        if (key < e->least_key) e->least_key = key;
        if (key > e->largest_key) e->largest_key = key;
    }
}

static void fill_expected(unsigned char *to, uint64_t bytes, uint32_t word) {
    uint64_t i;
    for (i = 0; i < bytes; i++) to[i] = ((const unsigned char *)&word)[i % 4];
}

#define FILL_WORD 0x87654321u

// `to` holds what stands there before, and what is expected afterwards.
static void expect_op(range_op op, unsigned char *to, const unsigned char *from, uint64_t bytes) {
    uint32_t sum[2];
    tl_vk_extremes extremes;
    uint64_t i;
    if (op == OP_COPY) memcpy(to, from, (size_t)bytes);
    else if (op == OP_FILL) fill_expected(to, bytes, FILL_WORD);
    else if (op_packs(op)) tl_compress_bytes(codec_of(op), to, from, bytes);
    else if (op_expands(op)) tl_expand_bytes(codec_of(op), to, from, bytes);
    else if (op == OP_MIN_MAX) { expect_extremes(&extremes, from, bytes); memcpy(to, &extremes, sizeof extremes); }
    else if (op == OP_CHECKSUM) { tl_vk_checksum_bytes(from, (size_t)bytes, sum); memcpy(to, sum, sizeof sum); }
    else for (i = 0; i + 4 <= bytes; i += 4) {
        float a, b;
        memcpy(&a, to + i, 4);
        memcpy(&b, from + i, 4);
        a += b;
        memcpy(to + i, &a, 4);
    }
}

static tl_result do_op(fixture *f, range_op op, tl_range to, tl_range from) {
    if (op == OP_COPY) return f->b.copy(f->b.self, to, from);
    if (op == OP_FILL) return f->b.fill(f->b.self, to, FILL_WORD);
    if (op_packs(op)) return f->b.compress(f->b.self, codec_of(op), to, from);
    if (op_expands(op)) return f->b.expand(f->b.self, codec_of(op), to, from);
    if (op == OP_ADD) return tl_vk_record_add(&f->b, to, from);
    if (op == OP_MIN_MAX) return tl_vk_record_min_max(&f->b, to, from);
    return tl_vk_record_checksum(&f->b, to, from);
}

// Bits of any kind; small numbers where they are added, so that the sum has one right answer.
static void make_source(fixture *f, range_op op, unsigned char *from, uint64_t bytes) {
    uint64_t i;
    for (i = 0; i < bytes; i++) {
        if (op == OP_ADD && i % 4 == 0 && i + 4 <= bytes) {
            float value = (float)(tl_next_random(&f->random) % 4096) / 64 - 32;
            memcpy(from + i, &value, 4);
        }
        if (op != OP_ADD || i >= bytes / 4 * 4) from[i] = (unsigned char)tl_next_random(&f->random);
    }
}

// One operation on so many bytes of f32: the right bytes, and canaries on both sides.
static void try_op(fixture *f, range_op op, uint64_t bytes) {
    uint64_t to_bytes = to_bytes_of(op, bytes), from_bytes = from_bytes_of(op, bytes), i;
    uint64_t tail = f->alignment + align_up(f, to_bytes), whole = tail + f->alignment;
    unsigned char *expected = (unsigned char *)malloc((size_t)whole), *got = (unsigned char *)malloc((size_t)whole);
    unsigned char *plain = (unsigned char *)malloc((size_t)bytes + 1), *packed = (unsigned char *)malloc((size_t)from_bytes + 1);
    tl_range block = add(f, whole), source = add(f, from_bytes ? from_bytes : 1);
    assert_true(expected && got && plain && packed);
    memset(expected, CANARY, (size_t)whole);
    make_source(f, op, plain, bytes);
    if (op_expands(op)) tl_compress_bytes(codec_of(op), packed, plain, bytes);
    else memcpy(packed, plain, (size_t)bytes);
    if (op == OP_ADD) make_source(f, op, expected + f->alignment, bytes);
    write_range(f, part_of(source, 0, from_bytes), packed);
    write_range(f, block, expected);
    expect_op(op, expected + f->alignment, packed, bytes);
    if (do_op(f, op, part_of(block, f->alignment, to_bytes), part_of(source, 0, from_bytes)))
        fail_msg("op %d, %d bytes: %s", (int)op, (int)bytes, f->env.error.text);
    read_range(f, block, got);
    for (i = 0; i < whole; i++) {
        int nobody = i >= f->alignment + to_bytes && i < tail;
        if (got[i] == expected[i] || nobody) continue;
        fail_msg("op %d, %d bytes: byte %d is %02x, not %02x%s", (int)op, (int)bytes, (int)(i - f->alignment), got[i],
                 expected[i], i < f->alignment ? ", before" : i >= tail ? ", behind" : "");
    }
    forget(f, block);
    forget(f, source);
    free(expected);
    free(got);
    free(plain);
    free(packed);
}

static int try_all(fixture *f, uint64_t bytes) {
    int op, cases = 0;
    for (op = 0; op < OP_COUNT; op++) {
        if (op_needs_words((range_op)op) && bytes % 4) continue;
        try_op(f, (range_op)op, bytes);
        cases++;
    }
    return cases;
}

// -- group 6: maxStorageBufferRange, sizes above 4 GiB --

static void a_descriptor_never_reaches_beyond_the_limit(void **state) {
    static const uint32_t limits[] = { 16384, 20000, 65536, 100004, 131072 };
    int cases = 0, path, kernels = 0;
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("a_descriptor_never_reaches_beyond_the_limit")) skip();
    for (path = 0; path < TL_VK_COPY_PATH_COUNT; path++)
    for (i = 0; i < sizeof limits / sizeof *limits; i++) {
        vkshim_config config;
        tl_vk_backend_desc desc = {0};
        tl_vk_kernel_desc kernel_desc = {0};
        tl_vk_kernel *kernel;
        tl_range ranges[2];
        fixture f;
        uint32_t n = limits[i], push = 0;
        int64_t sizes[9];
        int k;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.storage_range = n;
        desc.copy_path = (tl_vk_copy_path)path;
        open_fixture(&f, &config, NULL, &desc);
        sizes[0] = n; sizes[1] = n - 4; sizes[2] = n + 4; sizes[3] = n + 1; sizes[4] = 2 * n; sizes[5] = 2 * n - 4;
        sizes[6] = 2 * n + 4; sizes[7] = 3 * n + 7; sizes[8] = n - 1;
        for (k = 0; k < 9; k++) cases += try_all(&f, (uint64_t)sizes[k]);
        kernel_desc.words = vk_layer_forward_words;
        kernel_desc.word_count = sizeof vk_layer_forward_words / 4;
        kernel_desc.buffer_count = 2;
        kernel_desc.push_bytes = 4;
        assert_int_equal(tl_vk_init_kernel(&f.b, &kernel_desc, &kernel), TL_OK);
        ranges[0] = add(&f, n + 4);
        ranges[1] = add(&f, n + 4);
        for (k = -4; k <= 4; k += 4) {
            tl_result result;
            ranges[0].bytes = ranges[1].bytes = (uint64_t)((int64_t)n + k);
            result = tl_vk_record_kernel(&f.b, kernel, ranges, &push, 1, 1, 1);
            if (k <= 0) assert_int_equal(result, TL_OK);
            else expect_error(&f, result, TL_ERROR_UNSUPPORTED,
                              "tl_vk_record_kernel: ranges: longer than the device can bind");
            kernels++;
        }
        {
            tl_ticket ticket;
            assert_int_equal(f.b.submit(f.b.self, &ticket), TL_OK);
            assert_int_equal(f.b.wait(f.b.self, ticket), TL_OK);
        }
        tl_vk_free_kernel(&f.b, kernel);
        forget(&f, ranges[0]);
        forget(&f, ranges[1]);
        close_fixture(&f);
    }
    {
        vkshim_config config;
        fixture f;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.storage_range = 1024;
        open_device(&f, &config, NULL);
        expect_error(&f, try_backend(&f, NULL), TL_ERROR_UNSUPPORTED,
                     "tl_vk_init_backend: maxStorageBufferRange: too small for any block");
        close_fixture(&f);
    }
    printf("6: %d operations around 5 limits, %d kernels\n", cases, kernels);
}

// At the limit of the machine itself: 128 MiB on lavapipe.
static void the_limit_of_the_machine_is_kept(void **state) {
    vkt_desc device = {0};
    tl_vk_backend_desc desc = {0};
    tl_range from, to, packed;
    uint64_t limit, i;
    int64_t k;
    int cases = 0;
    fixture f;
    uint32_t *words;
    (void)state;
    if (!vkt_has_vulkan("the_limit_of_the_machine_is_kept")) skip();
    desc.copy_path = TL_VK_COPY_PATH_SHADER;
    open_fixture(&f, NULL, &device, &desc);
    limit = f.v.properties.limits.maxStorageBufferRange;
    if (limit > (UINT64_C(256) << 20)) {
        printf("SKIPPED the_limit_of_the_machine_is_kept: maxStorageBufferRange is %llu\n", (unsigned long long)limit);
        close_fixture(&f);
        skip();
    }
    limit = limit / 4 * 4;
    from = add(&f, limit + 4);
    to = add(&f, limit + 4);
    packed = add(&f, limit / 2 + 4);
    words = (uint32_t *)malloc((size_t)limit + 4);
    assert_non_null(words);
    for (i = 0; i <= limit / 4; i++) words[i] = 0x3F800000u + (uint32_t)i * 5;
    write_range(&f, from, words);
    for (k = is_slow() ? 4 : -4; k <= 4; k += 4) {
        uint64_t bytes = (uint64_t)((int64_t)limit + k), packed_bytes = tl_find_codec_bytes(TL_CODEC_BF16, bytes);
        tl_range source = part_of(from, 0, bytes), target = part_of(to, 0, bytes), small = part_of(packed, 0, packed_bytes);
        void *host;
        uint16_t *halves;
        assert_int_equal(f.b.fill(f.b.self, to, 0xC5C5C5C5u), TL_OK);
        assert_int_equal(f.b.copy(f.b.self, target, source), TL_OK);
        assert_int_equal(f.b.map(f.b.self, to, TL_MAP_READ, &host), TL_OK);
        assert_memory_equal(host, words, (size_t)bytes);
        if (k < 4) assert_int_equal(((unsigned char *)host)[align_up(&f, bytes)], CANARY);
        assert_int_equal(f.b.unmap(f.b.self, to, TL_MAP_READ, host), TL_OK);
        assert_int_equal(f.b.compress(f.b.self, TL_CODEC_BF16, small, source), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, target, 0), TL_OK);
        assert_int_equal(f.b.expand(f.b.self, TL_CODEC_BF16, target, small), TL_OK);
        halves = (uint16_t *)malloc((size_t)packed_bytes);
        assert_non_null(halves);
        tl_compress_bytes(TL_CODEC_BF16, halves, words, bytes);
        assert_int_equal(f.b.map(f.b.self, small, TL_MAP_READ, &host), TL_OK);
        assert_memory_equal(host, halves, (size_t)packed_bytes);
        assert_int_equal(f.b.unmap(f.b.self, small, TL_MAP_READ, host), TL_OK);
        assert_int_equal(f.b.map(f.b.self, target, TL_MAP_READ, &host), TL_OK);
        for (i = 0; i < bytes / 4; i++)
            if (((uint32_t *)host)[i] != (uint32_t)halves[i] << 16) fail_msg("word %d of %d", (int)i, (int)(bytes / 4));
        assert_int_equal(f.b.unmap(f.b.self, target, TL_MAP_READ, host), TL_OK);
        free(halves);
        cases += 4;
    }
    free(words);
    forget(&f, from);
    forget(&f, to);
    forget(&f, packed);
    close_fixture(&f);
    printf("6: %d operations at %d MiB\n", cases, (int)(limit >> 20));
}

// -- group 7: workgroups --

static void workgroups_of_any_size_do_the_same(void **state) {
    static const uint32_t sizes[] = { 1, 2, 32, 64, 128, 256 };
    int cases = 0;
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("workgroups_of_any_size_do_the_same")) skip();
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tl_vk_backend_desc desc = {0};
        fixture f;
        desc.workgroup_size = sizes[i];
        desc.copy_path = TL_VK_COPY_PATH_SHADER;
        open_fixture(&f, NULL, NULL, &desc);
        cases += try_all(&f, 68);
        cases += try_all(&f, 65536 + 12);
        if (sizes[i] == 1) {
            cases += try_all(&f, 4 * 65535);      // the last that fits one row of groups
            cases += try_all(&f, 4 * 65536);
            cases += try_all(&f, 4 * 65535 * 2 + 1);
            cases += try_all(&f, 4 * 65535 * 3 + 4);
        }
        close_fixture(&f);
    }
    printf("7: %d operations in 6 workgroup sizes\n", cases);
}

static void workgroups_keep_to_the_device(void **state) {
    static const struct { uint32_t limit, asked; tl_result result; } cases[] = {
        { 128, 0, TL_OK }, { 128, 128, TL_OK }, { 128, 256, TL_ERROR_UNSUPPORTED }, { 256, 256, TL_OK },
        { 256, 512, TL_ERROR_UNSUPPORTED }, { 256, 3, TL_ERROR_INVALID_ARG }, { 256, 2048, TL_ERROR_INVALID_ARG }
    };
    size_t i;
    int shape;
    (void)state;
    if (!vkt_has_vulkan("workgroups_keep_to_the_device")) skip();
    for (shape = 0; shape < 2; shape++)
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        vkshim_config config;
        tl_vk_backend_desc desc = {0};
        fixture f;
        tl_result result;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        if (shape) config.workgroup_size[0] = cases[i].limit;
        else config.workgroup_invocations = cases[i].limit;
        desc.workgroup_size = cases[i].asked;
        open_device(&f, &config, NULL);
        result = try_backend(&f, &desc);
        assert_int_equal(result, cases[i].result);
        if (result == TL_ERROR_UNSUPPORTED)
            assert_string_equal(f.env.error.text,
                                "tl_vk_init_backend: workgroup_size: more than the device takes");
        if (!result) try_all(&f, 1000);
        close_fixture(&f);
    }
    printf("7: 14 limits of workgroups\n");
}

static void many_groups_are_spread_over_two_directions(void **state) {
    static const uint32_t counts[] = { 1, 3, 7, 100 };
    int cases = 0;
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("many_groups_are_spread_over_two_directions")) skip();
    for (i = 0; i < sizeof counts / sizeof *counts; i++) {
        vkshim_config config;
        tl_vk_backend_desc desc = {0};
        tl_vk_kernel_desc kernel_desc = {0};
        tl_vk_kernel *kernel;
        tl_range ranges[2];
        uint32_t push = 0;
        fixture f;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.workgroup_count[0] = counts[i];
        config.workgroup_count[1] = 5000;
        config.workgroup_count[2] = 2;
        desc.copy_path = TL_VK_COPY_PATH_SHADER;
        open_fixture(&f, &config, NULL, &desc);
        cases += try_all(&f, 256 * counts[i]);
        cases += try_all(&f, 256 * counts[i] + 4);
        cases += try_all(&f, 100003);
        cases += try_all(&f, 66560);
        kernel_desc.words = vk_layer_forward_words;
        kernel_desc.word_count = sizeof vk_layer_forward_words / 4;
        kernel_desc.buffer_count = 2;
        kernel_desc.push_bytes = 4;
        assert_int_equal(tl_vk_init_kernel(&f.b, &kernel_desc, &kernel), TL_OK);
        ranges[0] = add(&f, 256);
        ranges[1] = add(&f, 256);
        assert_int_equal(tl_vk_record_kernel(&f.b, kernel, ranges, &push, counts[i], 5000, 2), TL_OK);
        assert_int_equal(tl_vk_record_kernel(&f.b, kernel, ranges, &push, counts[i] + 1, 1, 1), TL_ERROR_UNSUPPORTED);
        assert_int_equal(tl_vk_record_kernel(&f.b, kernel, ranges, &push, 1, 5001, 1), TL_ERROR_UNSUPPORTED);
        expect_error(&f, tl_vk_record_kernel(&f.b, kernel, ranges, &push, 1, 1, 3), TL_ERROR_UNSUPPORTED,
                     "tl_vk_record_kernel: groups: more than the device takes");
        assert_int_equal(tl_vk_record_kernel(&f.b, kernel, ranges, &push, 0, 9999, 1), TL_ERROR_UNSUPPORTED);
        assert_int_equal(tl_vk_record_kernel(&f.b, kernel, ranges, &push, 0, 1, 1), TL_OK);
        assert_int_equal(measure(&f).kernel_count, 1);
        forget(&f, ranges[0]);
        forget(&f, ranges[1]);
        {
            tl_ticket ticket;
            assert_int_equal(f.b.submit(f.b.self, &ticket), TL_OK);
            assert_int_equal(f.b.wait(f.b.self, ticket), TL_OK);
        }
        tl_vk_free_kernel(&f.b, kernel);
        close_fixture(&f);
    }
    printf("7: %d operations under 4 limits of groups\n", cases);
}

// -- group 8: small and odd sizes --

static void sizes_and_tails_leave_their_neighbours_alone(void **state) {
    static const vkshim_machine machines[] = { VKSHIM_MACHINE_REAL, VKSHIM_MACHINE_DISCRETE, VKSHIM_MACHINE_NON_COHERENT };
    static const uint64_t sizes[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 67,
        68, 124, 125, 127, 128, 129, 131, 132, 255, 256, 257, 508, 509, 1000, 1023, 1025, 4095, 4097, 65535, 65536,
        65537, 65541, 65599, 65600, 65604, 66559 };
    int path, cases = 0;
    size_t m, i;
    (void)state;
    if (!vkt_has_vulkan("sizes_and_tails_leave_their_neighbours_alone")) skip();
    for (m = 0; m < sizeof machines / sizeof *machines; m++)
    for (path = 0; path < TL_VK_COPY_PATH_COUNT; path++) {
        vkshim_config config;
        tl_vk_backend_desc desc = {0};
        fixture f;
        vkshim_default(&config, machines[m]);
        if (path) config.storage_offset_alignment = 256;
        if (path) desc.submit_bytes = 1;  // the least there is: much is split
        desc.copy_path = (tl_vk_copy_path)path;
        open_fixture(&f, &config, NULL, &desc);
        assert_int_equal(f.alignment % (path ? 256 : 16), 0);
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) cases += try_all(&f, sizes[i]);
        close_fixture(&f);
    }
    printf("8: %d operations on %d sizes\n", cases, (int)(sizeof sizes / sizeof *sizes));
}

// -- group 6: copies above 4 GiB, recorded and not carried out --

#define WIDE_PLACES 4096

// Buffers are told to be as long as was asked and are short; commands that touch them are noted instead.
typedef struct wide {
    PFN_vkGetDeviceProcAddr get_device;
    PFN_vkCreateBuffer create_buffer;
    VkBufferCopy regions[WIDE_PLACES];       // of copies; of fills with srcOffset = dstOffset
    VkDescriptorBufferInfo bound[WIDE_PLACES];  // in the order of updates: to, from
    int region_count, bound_count, dispatch_count;
} wide;

static wide wide_device;

static VKAPI_ATTR VkResult VKAPI_CALL wide_create_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                                         const VkAllocationCallbacks *callbacks, VkBuffer *buffer) {
    VkBufferCreateInfo narrow = *info;
    if (narrow.size > 1 << 20) narrow.size = 1 << 20;
    return wide_device.create_buffer(device, &narrow, callbacks, buffer);
}

static VKAPI_ATTR void VKAPI_CALL wide_copy(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint32_t count,
                                            const VkBufferCopy *regions) {
    uint32_t i;
    (void)commands; (void)from; (void)to;
    for (i = 0; i < count && wide_device.region_count < WIDE_PLACES; i++)
        wide_device.regions[wide_device.region_count++] = regions[i];
}

static VKAPI_ATTR void VKAPI_CALL wide_fill(VkCommandBuffer commands, VkBuffer to, VkDeviceSize offset,
                                            VkDeviceSize size, uint32_t word) {
    VkBufferCopy region;
    (void)word;
    region.srcOffset = region.dstOffset = offset;
    region.size = size;
    wide_copy(commands, to, to, 1, &region);
}

static VKAPI_ATTR void VKAPI_CALL wide_update(VkDevice device, uint32_t count, const VkWriteDescriptorSet *writes,
                                              uint32_t copy_count, const VkCopyDescriptorSet *copies) {
    uint32_t i;
    (void)device; (void)copy_count; (void)copies;
    for (i = 0; i < count && wide_device.bound_count < WIDE_PLACES; i++)
        wide_device.bound[wide_device.bound_count++] = writes[i].pBufferInfo[0];
}

static VKAPI_ATTR void VKAPI_CALL wide_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    (void)commands; (void)x; (void)y; (void)z;
    wide_device.dispatch_count++;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL wide_get_device(VkDevice device, const char *name) {
    PFN_vkVoidFunction real = wide_device.get_device(device, name);
    if (!strcmp(name, "vkCreateBuffer")) {
        wide_device.create_buffer = (PFN_vkCreateBuffer)real;
        return (PFN_vkVoidFunction)wide_create_buffer;
    }
    if (!strcmp(name, "vkCmdCopyBuffer")) return (PFN_vkVoidFunction)wide_copy;
    if (!strcmp(name, "vkCmdFillBuffer")) return (PFN_vkVoidFunction)wide_fill;
    if (!strcmp(name, "vkUpdateDescriptorSets")) return (PFN_vkVoidFunction)wide_update;
    if (!strcmp(name, "vkCmdDispatch")) return (PFN_vkVoidFunction)wide_dispatch;
    return real;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL wide_get(VkInstance instance, const char *name) {
    PFN_vkVoidFunction real = vkt_loader()(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr")) return real;
    wide_device.get_device = (PFN_vkGetDeviceProcAddr)real;
    return (PFN_vkVoidFunction)wide_get_device;
}

// The noted regions are this range, piece by piece.
static void expect_regions(uint64_t to, uint64_t from, uint64_t bytes) {
    uint64_t done = 0;
    int i;
    for (i = 0; i < wide_device.region_count; i++) {
        const VkBufferCopy *r = &wide_device.regions[i];
        if (r->srcOffset != from + done || r->dstOffset != to + done) fail_msg("region %d starts elsewhere", i);
        done += r->size;
    }
    assert_true(done == bytes);
}

// The noted bindings are these ranges, piece by piece; none is longer than the limit.
static void expect_bound(uint64_t to, uint64_t to_bytes, uint64_t from, uint64_t from_bytes, uint64_t limit) {
    uint64_t to_done = 0, from_done = 0;
    int i;
    for (i = 0; i + 1 < wide_device.bound_count; i += 2) {
        const VkDescriptorBufferInfo *t = &wide_device.bound[i], *s = &wide_device.bound[i + 1];
        if (t->offset != to + to_done || s->offset != from + from_done) fail_msg("binding %d starts elsewhere", i);
        assert_true(t->range <= limit && s->range <= limit);
        to_done += t->range;
        from_done += s->range;
    }
    assert_true(to_done == (to_bytes + 3) / 4 * 4 && from_done == (from_bytes + 3) / 4 * 4);
}

static void wide_flush(fixture *f) {
    tl_ticket ticket;
    assert_int_equal(f->b.submit(f->b.self, &ticket), TL_OK);
}

static void wide_forget(void) { wide_device.region_count = wide_device.bound_count = wide_device.dispatch_count = 0; }

static void sizes_above_4_gib_are_whole(void **state) {
    static const uint64_t sizes[] = { (UINT64_C(1) << 32) - 4, UINT64_C(1) << 32, (UINT64_C(5) << 30) + 12,
                                      (UINT64_C(33) << 30) + 68 };
    int path, cases = 0;
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("sizes_above_4_gib_are_whole")) skip();
    if (sizeof(size_t) < 8) skip();
    for (path = 0; path < TL_VK_COPY_PATH_COUNT; path++)
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        vkt_desc device = {0};
        tl_vk_backend_desc desc = {0};
        const uint64_t at = UINT64_C(4352) << 20, bytes = sizes[i];  // every range starts above 4 GiB
        uint64_t packed = tl_find_codec_bytes(TL_CODEC_Q8, bytes), limit;
        VkDescriptorBufferInfo to_info, from_info;
        tl_range to, from;
        fixture f;
        memset(&f, 0, sizeof f);
        memset(&wide_device, 0, sizeof wide_device);
        device.disable_timeline = device.disable_budget = 1;
        vkt_open(&device, &f.v);
        f.env = failing_env(&f.alloc, -1);
        limit = f.v.properties.limits.maxStorageBufferRange;
        desc.device = f.v.device;
        desc.device.get_instance_proc = wide_get;
        desc.device.api_version = VK_API_VERSION_1_0;  // nobody tells a largest allocation then
        desc.copy_path = (tl_vk_copy_path)path;
        desc.submit_bytes = path ? UINT64_C(1) << 50 : 0;
        if (tl_vk_init_backend(&f.env, &desc, &f.b)) fail_msg("%s", f.env.error.text);
        to = part_of(add(&f, at + bytes), at, bytes);
        from = part_of(add(&f, at + bytes), at, bytes);
        assert_int_equal(tl_vk_find_buffer(&f.b, to, &to_info), TL_OK);
        assert_int_equal(tl_vk_find_buffer(&f.b, from, &from_info), TL_OK);
        assert_true(to_info.range == bytes && to_info.offset >= at);
        assert_int_equal(f.b.copy(f.b.self, to, from), TL_OK);
        wide_flush(&f);
        if (path) expect_bound(to_info.offset, bytes, from_info.offset, bytes, limit);
        else expect_regions(to_info.offset, from_info.offset, bytes);
        wide_forget();
        assert_int_equal(f.b.fill(f.b.self, to, 3), TL_OK);
        wide_flush(&f);
        if (!path) expect_regions(to_info.offset, to_info.offset, bytes);
        wide_forget();
        assert_int_equal(f.b.compress(f.b.self, TL_CODEC_Q8, part_of(to, 0, packed), from), TL_OK);
        wide_flush(&f);
        expect_bound(to_info.offset, packed, from_info.offset, bytes, limit);
        wide_forget();
        assert_int_equal(f.b.expand(f.b.self, TL_CODEC_Q8, to, part_of(from, 0, packed)), TL_OK);
        wide_flush(&f);
        expect_bound(to_info.offset, bytes, from_info.offset, packed, limit);
        wide_forget();
        assert_int_equal(tl_vk_record_add(&f.b, to, from), TL_OK);
        wide_flush(&f);
        expect_bound(to_info.offset, bytes, from_info.offset, bytes, limit);
        cases += 5;
        tl_vk_free_backend(&f.env, &f.b);
        vkt_close(&f.v);
        assert_int_equal(vkt_messages(&f.v), 0);
        assert_int_equal(f.alloc.live, 0);
    }
    printf("6: %d operations of up to 33 GiB recorded\n", cases);
}

// -- group 9: wrong handles and ranges --

static int error_cases;

static void refuse(fixture *f, tl_result result, tl_result code, const char *text) {
    expect_error(f, result, code, text);
    error_cases++;
}

#define BAD TL_ERROR_INVALID_ARG
#define OLD TL_ERROR_STALE

static void refuse_ranges(fixture *f, tl_range a, tl_range b, tl_range gone) {
    tl_backend *v = &f->b;
    tl_range beyond = part_of(a, f->alignment, a.bytes), odd = part_of(a, 4, 4), none = part_of(a, 0, 8);
    tl_access access;
    VkDescriptorBufferInfo info;
    none.block = UINT64_C(0xFFFFFFFF00FFFFFF);
    access.writes = 0;
    refuse(f, v->copy(v->self, a, a), BAD, "copy: to: overlaps from");
    refuse(f, v->copy(v->self, part_of(a, 0, 2 * f->alignment), part_of(a, f->alignment, 2 * f->alignment)), BAD,
           "copy: to: overlaps from");
    refuse(f, v->copy(v->self, part_of(a, f->alignment, f->alignment + 1), part_of(a, 0, f->alignment + 1)), BAD,
           "copy: to: overlaps from");
    refuse(f, v->copy(v->self, a, part_of(b, 0, 8)), BAD, "copy: to: bytes: do not fit those of from");
    refuse(f, v->copy(v->self, a, gone), OLD, "copy: block: the handle is of a freed block or of another backend");
    refuse(f, v->copy(v->self, gone, a), OLD, "copy: block: the handle is of a freed block or of another backend");
    refuse(f, v->copy(v->self, none, part_of(b, 0, 8)), BAD, "copy: block: not a handle of this backend");
    refuse(f, v->copy(v->self, beyond, b), BAD, "copy: range: reaches beyond its block");
    refuse(f, v->copy(v->self, odd, part_of(b, 0, 4)), BAD, "copy: range: offset: not a multiple of the alignment");
    refuse(f, v->fill(v->self, gone, 0), OLD, "fill: block: the handle is of a freed block or of another backend");
    refuse(f, v->fill(v->self, beyond, 0), BAD, "fill: range: reaches beyond its block");
    refuse(f, v->fill(v->self, odd, 0), BAD, "fill: range: offset: not a multiple of the alignment");
    access.range = gone;
    refuse(f, v->order(v->self, &access, 1), OLD, "order: block: the handle is of a freed block or of another backend");
    access.range = beyond;
    refuse(f, v->order(v->self, &access, 1), BAD, "order: range: reaches beyond its block");
    refuse(f, tl_vk_find_buffer(v, gone, &info), OLD,
           "tl_vk_find_buffer: block: the handle is of a freed block or of another backend");
    assert_true(info.buffer == VK_NULL_HANDLE && info.range == 0);
    refuse(f, tl_vk_find_buffer(v, odd, &info), BAD, "tl_vk_find_buffer: range: offset: not a multiple of the alignment");
}

static void refuse_conversions(fixture *f, tl_range a, tl_range b, tl_range gone) {
    tl_backend *v = &f->b;
    tl_range half = part_of(b, 0, a.bytes / 2), shifted = part_of(a, a.bytes / 2, a.bytes / 2);
    refuse(f, v->compress(v->self, TL_CODEC_NONE, b, a), BAD, "compress: codec: none or unknown");
    refuse(f, v->compress(v->self, TL_CODEC_COUNT, b, a), BAD, "compress: codec: none or unknown");
    refuse(f, v->compress(v->self, TL_CODEC_F16, b, a), BAD, "compress: to: bytes: do not fit those of from");
    refuse(f, v->compress(v->self, TL_CODEC_F16, shifted, a), BAD, "compress: to: overlaps from");
    refuse(f, v->compress(v->self, TL_CODEC_BF16, half, gone), OLD,
           "compress: block: the handle is of a freed block or of another backend");
    refuse(f, v->expand(v->self, TL_CODEC_NONE, a, b), BAD, "expand: codec: none or unknown");
    refuse(f, v->expand(v->self, TL_CODEC_Q8, a, half), BAD, "expand: to: bytes: do not fit those of from");
    refuse(f, v->expand(v->self, TL_CODEC_F16, a, shifted), BAD, "expand: to: overlaps from");
    refuse(f, v->expand(v->self, TL_CODEC_F16, gone, half), OLD,
           "expand: block: the handle is of a freed block or of another backend");
    refuse(f, tl_vk_record_add(v, a, a), BAD, "tl_vk_record_add: to: overlaps from");
    refuse(f, tl_vk_record_add(v, a, half), BAD, "tl_vk_record_add: to: bytes: not what the result takes");
    refuse(f, tl_vk_record_add(v, part_of(a, 0, 6), part_of(b, 0, 6)), BAD,
           "tl_vk_record_add: from: bytes: must be a multiple of 4");
    refuse(f, tl_vk_record_add(v, gone, a), OLD,
           "tl_vk_record_add: block: the handle is of a freed block or of another backend");
    refuse(f, tl_vk_record_add(v, a, gone), OLD,
           "tl_vk_record_add: block: the handle is of a freed block or of another backend");
    refuse(f, tl_vk_record_min_max(v, part_of(b, 0, 16), gone), OLD,
           "tl_vk_record_min_max: block: the handle is of a freed block or of another backend");
    refuse(f, tl_vk_record_min_max(v, part_of(b, 0, 16), part_of(a, 4, 8)), BAD,
           "tl_vk_record_min_max: range: offset: not a multiple of the alignment");
    refuse(f, tl_vk_record_min_max(v, part_of(b, 0, 8), a), BAD,
           "tl_vk_record_min_max: to: bytes: not what the result takes");
    refuse(f, tl_vk_record_min_max(v, part_of(a, 0, 16), a), BAD, "tl_vk_record_min_max: to: overlaps from");
    refuse(f, tl_vk_record_checksum(v, part_of(b, 0, 8), gone), OLD,
           "tl_vk_record_checksum: block: the handle is of a freed block or of another backend");
    refuse(f, tl_vk_record_checksum(v, part_of(gone, 0, 8), a), OLD,
           "tl_vk_record_checksum: block: the handle is of a freed block or of another backend");
    refuse(f, tl_vk_record_checksum(v, part_of(b, 0, 8), part_of(a, 0, 7)), BAD,
           "tl_vk_record_checksum: from: bytes: must be a multiple of 4");
}

static void refuse_blocks(fixture *f, tl_range a, tl_range gone) {
    tl_backend *v = &f->b;
    tl_ticket never;
    uint64_t block = 7;
    tl_backend_limits limits;
    char largest[160];
    void *host, *other;
    never.value = 1000;
    v->limits(v->self, &limits);
    snprintf(largest, sizeof largest, "add_block: %llu bytes: more than the device allocates at once, "
             "maxMemoryAllocationSize: %llu", 1ULL << 50, (unsigned long long)limits.block_bytes);
    refuse(f, v->free_block(v->self, gone.block), OLD,
           "free_block: block: the handle is of a freed block or of another backend");
    refuse(f, v->free_block(v->self, 0), BAD, "free_block: block: not a handle of this backend");
    refuse(f, v->free_block(v->self, a.block), BAD, "free_block: block: a range in it is still claimed");
    refuse(f, v->claim(v->self, gone), OLD, "claim: block: the handle is of a freed block or of another backend");
    refuse(f, v->claim(v->self, part_of(a, 0, a.bytes + 1)), BAD, "claim: range: reaches beyond its block");
    refuse(f, v->release(v->self, gone), OLD, "release: block: the handle is of a freed block or of another backend");
    refuse(f, v->add_block(v->self, TL_TIER_COUNT, 8, &block), BAD, "add_block: tier: unknown");
    assert_int_equal(block, 0);
    refuse(f, v->add_block(v->self, TL_TIER_DEVICE, UINT64_MAX, &block), TL_ERROR_NO_MEMORY,
           "add_block: bytes: more than there are");
    refuse(f, v->add_block(v->self, TL_TIER_DEVICE, UINT64_C(1) << 50, &block), TL_ERROR_NO_MEMORY,
           largest);
    refuse(f, v->map(v->self, gone, TL_MAP_READ, &host), OLD,
           "map: block: the handle is of a freed block or of another backend");
    assert_null(host);
    refuse(f, v->map(v->self, part_of(a, 0, a.bytes + 1), TL_MAP_WRITE, &host), BAD, "map: range: reaches beyond its block");
    assert_int_equal(v->map(v->self, a, TL_MAP_READ, &host), TL_OK);
    other = (char *)host + 1;
    refuse(f, v->unmap(v->self, a, TL_MAP_READ, other), BAD, "unmap: host: is not what map gave for this range");
    refuse(f, v->unmap(v->self, part_of(a, 0, 8), TL_MAP_READ, host), BAD,
           "unmap: host: is not what map gave for this range");
    refuse(f, v->unmap(v->self, a, TL_MAP_WRITE, host), BAD, "unmap: mode: not that of the map");
    assert_int_equal(v->unmap(v->self, a, TL_MAP_READ, host), TL_OK);
    refuse(f, v->unmap(v->self, a, TL_MAP_READ, host), BAD, "unmap: host: is not what map gave for this range");
    refuse(f, v->poll(v->self, never), BAD, "poll: ticket: was never submitted");
    refuse(f, v->wait(v->self, never), BAD, "wait: ticket: was never submitted");
}

// A block that is mapped is not freed, though nothing in it is claimed.
static void refuse_mapped(fixture *f) {
    tl_range c = add(f, 64);
    uint64_t moved = 1;
    void *host;
    assert_int_equal(f->b.map(f->b.self, c, TL_MAP_WRITE, &host), TL_OK);
    assert_int_equal(f->b.release(f->b.self, c), TL_OK);
    refuse(f, f->b.release(f->b.self, c), BAD, "release: range: was not claimed");
    refuse(f, f->b.free_block(f->b.self, c.block), BAD, "free_block: block: a range in it is mapped");
    refuse(f, tl_vk_compact(&f->b, UINT64_MAX, &moved), BAD, "tl_vk_compact: backend: a range is mapped");
    assert_int_equal(moved, 0);
    memset(host, 0, 64);
    assert_int_equal(f->b.unmap(f->b.self, c, TL_MAP_WRITE, host), TL_OK);
    assert_int_equal(f->b.free_block(f->b.self, c.block), TL_OK);
}

static void what_is_refused_changes_nothing(void **state) {
    int machine;
    (void)state;
    if (!vkt_has_vulkan("what_is_refused_changes_nothing")) skip();
    for (machine = 0; machine < 2; machine++) {
        unsigned char before[2][1024], after[1024];
        tl_vk_backend_desc desc = {0};
        tl_backend_counters old, now;
        vkshim_config config;
        fixture f;
        tl_backend other;
        tl_range a, b, gone, foreign = {0};
        int i;
        vkshim_default(&config, machine ? VKSHIM_MACHINE_DISCRETE : VKSHIM_MACHINE_REAL);
        open_fixture(&f, &config, NULL, NULL);
        a = add(&f, 1024);
        b = add(&f, 1024);
        gone = add(&f, 1024);
        forget(&f, gone);
        for (i = 0; i < 1024; i++) {
            before[0][i] = (unsigned char)tl_next_random(&f.random);
            before[1][i] = (unsigned char)tl_next_random(&f.random);
        }
        write_range(&f, a, before[0]);
        write_range(&f, b, before[1]);
        f.b.counters(f.b.self, &old);
        refuse_ranges(&f, a, b, gone);
        refuse_conversions(&f, a, b, gone);
        refuse_blocks(&f, a, gone);
        refuse_mapped(&f);
        desc.device = f.v.device;
        assert_int_equal(tl_vk_init_backend(&f.env, &desc, &other), TL_OK);
        for (i = 0; i < 9; i++) assert_int_equal(other.add_block(other.self, TL_TIER_DEVICE, 1024, &foreign.block), TL_OK);
        foreign.bytes = 1024;
        refuse(&f, f.b.copy(f.b.self, a, foreign), BAD, "copy: block: not a handle of this backend");
        refuse(&f, f.b.free_block(f.b.self, foreign.block), BAD, "free_block: block: not a handle of this backend");
        foreign.block = foreign.block >> 32 << 32 | 1;  // as if it were in a slot that is here, too
        refuse(&f, f.b.fill(f.b.self, foreign, 0), OLD,
               "fill: block: the handle is of a freed block or of another backend");
        refuse(&f, other.copy(other.self, a, b), OLD,
               "copy: block: the handle is of a freed block or of another backend");
        tl_vk_free_backend(&f.env, &other);
        f.b.counters(f.b.self, &now);
        assert_int_equal(now.live_bytes[0], old.live_bytes[0]);
        assert_int_equal(now.block_count[0], old.block_count[0]);
        assert_int_equal(now.reserved_bytes[0], old.reserved_bytes[0]);
        assert_int_equal(now.copy_count, old.copy_count);
        assert_int_equal(now.convert_count, old.convert_count);
        assert_int_equal(now.fill_count, old.fill_count);
        read_range(&f, a, after);
        assert_memory_equal(after, before[0], 1024);
        read_range(&f, b, after);
        assert_memory_equal(after, before[1], 1024);
        forget(&f, a);
        forget(&f, b);
        close_fixture(&f);
    }
    printf("9: %d calls refused\n", error_cases);
}

// -- group 10: free, evict, write and read while work is in flight --

#define LIVE 12
#define LIVE_BYTES 3000

typedef struct live {
    tl_range range;
    unsigned char model[LIVE_BYTES];
} live;

// A new block, possibly where another one was: its bytes come from the host, from a fill or from a copy.
static void add_live(fixture *f, live *l, const live *other) {
    tl_tier tier = tl_next_random_below(&f->random, 3) ? TL_TIER_DEVICE : TL_TIER_HOST;
    uint64_t bytes = 1 + tl_next_random_below(&f->random, LIVE_BYTES), i;
    uint32_t word = (uint32_t)tl_next_random(&f->random);
    int how = (int)tl_next_random_below(&f->random, 3);
    if (how == 2 && other) bytes = other->range.bytes;
    l->range = add_tier(f, tier, bytes);
    if (how == 2 && other) {
        assert_int_equal(f->b.copy(f->b.self, l->range, other->range), TL_OK);
        memcpy(l->model, other->model, (size_t)bytes);
    } else if (how == 1) {
        assert_int_equal(f->b.fill(f->b.self, l->range, word), TL_OK);
        fill_expected(l->model, bytes, word);
    } else {
        for (i = 0; i < bytes; i++) l->model[i] = (unsigned char)tl_next_random(&f->random);
        write_range(f, l->range, l->model);
    }
}

static void check_live(fixture *f, const live *l, const char *when, int step) {
    unsigned char bytes[LIVE_BYTES];
    uint64_t i;
    read_range(f, l->range, bytes);
    for (i = 0; i < l->range.bytes; i++)
        if (bytes[i] != l->model[i]) fail_msg("%s, step %d: byte %d of %d differs", when, step, (int)i, (int)l->range.bytes);
}

static void copy_live(fixture *f, live *to, const live *from) {
    uint64_t least = to->range.bytes < from->range.bytes ? to->range.bytes : from->range.bytes;
    uint64_t offset = tl_next_random_below(&f->random, least / f->alignment + 1) * f->alignment, bytes = least - offset;
    if (least != to->range.bytes) bytes = bytes / f->alignment * f->alignment;
    assert_int_equal(f->b.copy(f->b.self, part_of(to->range, offset, bytes), part_of(from->range, offset, bytes)), TL_OK);
    memcpy(to->model + offset, from->model + offset, (size_t)bytes);
}

static void change_live(fixture *f, live *l) {
    void *host;
    uint64_t at = tl_next_random_below(&f->random, l->range.bytes);
    if (f->b.map(f->b.self, l->range, TL_MAP_CHANGE, &host)) fail_msg("%s", f->env.error.text);
    assert_memory_equal(host, l->model, (size_t)l->range.bytes);
    ((unsigned char *)host)[at] ^= 0x5A;
    l->model[at] ^= 0x5A;
    assert_int_equal(f->b.unmap(f->b.self, l->range, TL_MAP_CHANGE, host), TL_OK);
}

// Returns how many blocks were freed while submits were under way.
static int run_live(fixture *f, int steps) {
    static live lives[LIVE];
    int in_flight = 0, step, i;
    tl_ticket ticket = {0};
    for (i = 0; i < LIVE; i++) add_live(f, &lives[i], i ? &lives[i - 1] : NULL);
    for (step = 0; step < steps; step++) {
        int to = (int)tl_next_random_below(&f->random, LIVE), from = (int)tl_next_random_below(&f->random, LIVE);
        uint32_t word = (uint32_t)tl_next_random(&f->random);
        switch (tl_next_random_below(&f->random, 12)) {
        case 0: case 1: case 2:
            if (to != from) copy_live(f, &lives[to], &lives[from]);
            break;
        case 3:
            assert_int_equal(f->b.fill(f->b.self, lives[to].range, word), TL_OK);
            fill_expected(lives[to].model, lives[to].range.bytes, word);
            break;
        case 4: case 5: case 6:
            in_flight += shim_counts().pending_count > 0;
            forget(f, lives[to].range);
            add_live(f, &lives[to], to != from ? &lives[from] : NULL);
            break;
        case 7:
            memset(lives[to].model, (int)(word & 255), (size_t)lives[to].range.bytes);
            write_range(f, lives[to].range, lives[to].model);
            break;
        case 8:
            if (word % 4 == 0) change_live(f, &lives[to]);
            else if (word % 4 == 1) check_live(f, &lives[to], "on the way", step);
            break;
        case 9: case 10:
            assert_int_equal(f->b.submit(f->b.self, &ticket), TL_OK);
            break;
        default:
            if (f->b.poll(f->b.self, ticket) > TL_NOT_READY) fail_msg("%s", f->env.error.text);
        }
    }
    for (i = 0; i < LIVE; i++) check_live(f, &lives[i], "at the end", i);
    for (i = 0; i < LIVE; i++) forget(f, lives[i].range);
    return in_flight;
}

static void bytes_are_right_whatever_is_in_flight(void **state) {
    static const vkshim_machine machines[] = { VKSHIM_MACHINE_REAL, VKSHIM_MACHINE_DISCRETE, VKSHIM_MACHINE_SMALL_BAR,
                                               VKSHIM_MACHINE_UNCACHED, VKSHIM_MACHINE_NON_COHERENT };
    int cases = 0, fences, in_flight = 0, freed = 0;
    size_t m;
    (void)state;
    if (!vkt_has_vulkan("bytes_are_right_whatever_is_in_flight")) skip();
    for (m = 0; m < sizeof machines / sizeof *machines; m++)
    for (fences = 0; fences < 2; fences++) {
        vkshim_config config;
        vkt_desc device = {0};
        tl_vk_backend_desc desc = {0};
        fixture f;
        vkshim_default(&config, machines[m]);
        config.delay_polls = 3 + (uint32_t)m;
        device.disable_timeline = fences;
        desc.chunk_bytes = 1 << 20;
        desc.staging_bytes = m % 2 ? 16384 : 0;
        desc.copy_path = (tl_vk_copy_path)fences;
        open_device(&f, &config, &device);
        vkt_expect(&f.v, "BestPractices-vk");  // a ring as small as this one is bad practice
        if (try_backend(&f, &desc)) fail_msg("%s", f.env.error.text);
        vkt_expect(&f.v, NULL);
        f.random.state = 100 + m;
        freed = run_live(&f, 500);
        assert_true(freed > 10);
        in_flight += freed;
        cases += 500;
        close_fixture(&f);
    }
    printf("10: %d steps, %d blocks freed in flight\n", cases, in_flight);
}

static tl_ticket submit(fixture *f) {
    tl_ticket ticket;
    if (f->b.submit(f->b.self, &ticket)) fail_msg("%s", f->env.error.text);
    return ticket;
}

static void expect_words(fixture *f, tl_range range, uint32_t word) {
    uint32_t words[1024];
    uint64_t i;
    read_range(f, range, words);
    for (i = 0; i < range.bytes / 4; i++)
        if (words[i] != word) fail_msg("word %d is %08x, not %08x", (int)i, words[i], word);
}

// The device has not begun, and nobody waits for it, until bytes are read.
static void freed_memory_is_given_on_at_once(void **state) {
    int machine, how, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("freed_memory_is_given_on_at_once")) skip();
    for (machine = 0; machine < 2; machine++)
    for (how = 0; how < 3; how++) {
        vkshim_config config;
        VkDescriptorBufferInfo old, now;
        fixture f;
        tl_range a, b, c, d, host;
        uint64_t waits;
        uint32_t words[256];
        tl_ticket ticket;
        vkshim_default(&config, machine ? VKSHIM_MACHINE_DISCRETE : VKSHIM_MACHINE_REAL);
        config.delay_polls = 1000000;
        open_fixture(&f, &config, NULL, NULL);
        a = add(&f, 1024);
        b = add(&f, 1024);
        d = add(&f, 1024);
        host = add_tier(&f, TL_TIER_HOST, 1024);
        assert_int_equal(f.b.fill(f.b.self, d, 9), TL_OK);
        assert_int_equal(f.b.fill(f.b.self, a, 1), TL_OK);
        assert_int_equal(f.b.copy(f.b.self, host, a), TL_OK);   // a spill
        submit(&f);
        waits = measure(&f).host_wait_count;
        assert_int_equal(f.b.copy(f.b.self, b, host), TL_OK);   // restored before the spill retired
        assert_int_equal(tl_vk_find_buffer(&f.b, a, &old), TL_OK);
        forget(&f, a);
        c = add(&f, 1024);
        assert_int_equal(tl_vk_find_buffer(&f.b, c, &now), TL_OK);
        assert_true(old.buffer == now.buffer && old.offset == now.offset);
        memset(words, 0, sizeof words);
        if (how == 0) assert_int_equal(f.b.fill(f.b.self, c, 0), TL_OK);
        else if (how == 1) write_range(&f, c, words);
        else assert_int_equal(f.b.copy(f.b.self, c, d), TL_OK);
        ticket = submit(&f);
        forget(&f, host);
        forget(&f, d);
        assert_int_equal(f.b.poll(f.b.self, ticket), TL_NOT_READY);
        assert_int_equal(shim_counts().pending_count, 2);
        assert_int_equal(measure(&f).host_wait_count, waits);
        expect_words(&f, c, how == 2 ? 9 : 0);
        assert_int_equal(measure(&f).host_wait_count, waits + 1);
        expect_words(&f, b, 1);
        forget(&f, b);
        forget(&f, c);
        close_fixture(&f);
        cases++;
    }
    printf("10: %d blocks given on in flight\n", cases);
}

static void checkpoints_are_evicted_and_restored_in_flight(void **state) {
    int machine, round, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("checkpoints_are_evicted_and_restored_in_flight")) skip();
    for (machine = 0; machine < 2; machine++) {
        vkshim_config config;
        tl_manager_desc desc = {0};
        tl_manager *manager;
        fixture f;
        tl_range a, b;
        vkshim_default(&config, machine ? VKSHIM_MACHINE_DISCRETE : VKSHIM_MACHINE_REAL);
        config.delay_polls = 50;
        open_fixture(&f, &config, NULL, NULL);
        desc.device_budget_bytes = 3 * 1024;
        desc.host_budget_bytes = TL_UNLIMITED;
        if (tl_init_manager(&f.env, &f.b, &desc, &manager)) fail_msg("%s", f.env.error.text);
        a = add(&f, 1024);
        b = add(&f, 1024);
        for (round = 0; round < 30; round++) {
            uint32_t word = (uint32_t)round * 77 + 1;
            tl_save_desc save;
            tl_checkpoint_statistics statistics;
            tl_ticket ticket;
            int32_t i;
            memset(&save, 0, sizeof save);
            for (i = 0; i < 6; i++) {  // three of them are spilled
                assert_int_equal(f.b.fill(f.b.self, a, word + (uint32_t)i), TL_OK);
                save.key.node = i;
                save.source = a;
                if (tl_save_checkpoint(&f.env, manager, &save)) fail_msg("%s", f.env.error.text);
            }
            tl_measure_manager(manager, &statistics);
            assert_true(statistics.spills > 0);
            for (i = 5; i >= 0; i--) {
                save.key.node = i;
                if (tl_take_checkpoint_range(&f.env, manager, save.key, b, &ticket)) fail_msg("%s", f.env.error.text);
                if ((round + i) % 4 == 0) expect_words(&f, b, word + (uint32_t)i);
                assert_int_equal(f.b.fill(f.b.self, a, 0), TL_OK);
                cases++;
            }
            assert_int_equal(tl_find_checkpoint_count(manager), 0);
        }
        tl_free_manager(manager);
        forget(&f, a);
        forget(&f, b);
        close_fixture(&f);
    }
    printf("10: %d checkpoints saved and taken in flight\n", cases);
}

// -- group 16: codecs --

#define CODEC_WORDS (1 << 20)

// Compress these words and expand what that gives, by the backend and by the host: the same bits.
static void compare_codec(fixture *f, tl_codec codec, const uint32_t *words, uint64_t count) {
    static uint32_t packed[CODEC_WORDS], plain[CODEC_WORDS];
    uint64_t bytes = 4 * count, packed_bytes = tl_find_codec_bytes(codec, bytes), i;
    tl_range from = add(f, bytes), small = add(f, packed_bytes), back = add(f, bytes);
    void *host;
    write_range(f, from, words);
    assert_int_equal(f->b.compress(f->b.self, codec, small, from), TL_OK);
    assert_int_equal(f->b.expand(f->b.self, codec, back, small), TL_OK);
    tl_compress_bytes(codec, packed, words, bytes);
    tl_expand_bytes(codec, plain, packed, bytes);
    assert_int_equal(f->b.map(f->b.self, small, TL_MAP_READ, &host), TL_OK);
    for (i = 0; i < packed_bytes; i++)
        if (((unsigned char *)host)[i] != ((unsigned char *)packed)[i])
            fail_msg("%s: byte %d of the compressed differs", tl_name_codec(codec), (int)i);
    assert_int_equal(f->b.unmap(f->b.self, small, TL_MAP_READ, host), TL_OK);
    assert_int_equal(f->b.map(f->b.self, back, TL_MAP_READ, &host), TL_OK);
    for (i = 0; i < count; i++)
        if (((uint32_t *)host)[i] != plain[i])
            fail_msg("%s: %08x comes back as %08x, not %08x", tl_name_codec(codec), words[i], ((uint32_t *)host)[i], plain[i]);
    assert_int_equal(f->b.unmap(f->b.self, back, TL_MAP_READ, host), TL_OK);
    forget(f, from);
    forget(f, small);
    forget(f, back);
}

// All 65536 compressed values to f32, and back to themselves; a NaN comes back quiet.
static void every_half_comes_back(void **state) {
    static uint16_t halves[65536], back[65536];
    static uint32_t wide[65536], expected[65536];
    fixture f;
    int codec, i;
    (void)state;
    if (!vkt_has_vulkan("every_half_comes_back")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    for (i = 0; i < 65536; i++) halves[i] = (uint16_t)i;
    for (codec = TL_CODEC_F16; codec <= TL_CODEC_BF16; codec++) {
        uint16_t infinity = codec == TL_CODEC_F16 ? 0x7C00 : 0x7F80, quiet = codec == TL_CODEC_F16 ? 0x0200 : 0x0040;
        tl_range small = add(&f, sizeof halves), plain = add(&f, sizeof wide), again = add(&f, sizeof halves);
        write_range(&f, small, halves);
        assert_int_equal(f.b.expand(f.b.self, (tl_codec)codec, plain, small), TL_OK);
        assert_int_equal(f.b.compress(f.b.self, (tl_codec)codec, again, plain), TL_OK);
        tl_expand_bytes((tl_codec)codec, expected, halves, sizeof wide);
        read_range(&f, plain, wide);
        read_range(&f, again, back);
        for (i = 0; i < 65536; i++) {
            int is_nan = (i & 0x7FFF) > infinity;
            if (wide[i] != expected[i]) fail_msg("%04x is %08x, not %08x", i, wide[i], expected[i]);
            if (back[i] != (is_nan ? i | quiet : i)) fail_msg("%04x comes back as %04x", i, back[i]);
        }
        forget(&f, small);
        forget(&f, plain);
        forget(&f, again);
    }
    close_fixture(&f);
    printf("16: 131072 halves there and back\n");
}

static void floats_are_rounded_as_on_the_host(void **state) {
    static const uint32_t lows[] = { 0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x2001, 0x3000, 0x5555, 0x7FFF, 0x8000,
                                     0x8001, 0xAAAA, 0xEFFF, 0xFFFF };
    static uint32_t words[CODEC_WORDS];
    uint64_t count = 0, first;
    fixture f;
    int codec;
    (void)state;
    if (!vkt_has_vulkan("floats_are_rounded_as_on_the_host")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    for (codec = TL_CODEC_F16; codec <= TL_CODEC_BF16; codec++) {
        for (first = 0; first < CODEC_WORDS; first++) words[first] = (uint32_t)(first / 16) << 16 | lows[first % 16];
        compare_codec(&f, (tl_codec)codec, words, CODEC_WORDS);
        count += CODEC_WORDS;
        for (first = 0; is_soaked() && first < UINT64_C(1) << 32; first += CODEC_WORDS) {
            uint32_t i;
            for (i = 0; i < CODEC_WORDS; i++) words[i] = (uint32_t)first + i;
            compare_codec(&f, (tl_codec)codec, words, CODEC_WORDS);
            count += CODEC_WORDS;
        }
    }
    close_fixture(&f);
    printf("16: %llu floats rounded\n", (unsigned long long)count);
}

// Blocks of 32 of one kind: zeros, one kind of special value among numbers, denormals, any bits.
static void make_block(fixture *f, uint32_t *words, int kind) {
    static const uint32_t specials[] = { 0x7FC00000u, 0xFFC00001u, 0x7F800001u, 0x7F800000u, 0xFF800000u, 0x80000000u,
                                         0x00000001u, 0x807FFFFFu, 0x00800000u, 0x7F7FFFFFu, 0xFF7FFFFFu };
    int i;
    for (i = 0; i < 32; i++) {
        uint32_t bits = (uint32_t)tl_next_random(&f->random);
        float value = ((float)(bits % 20001) - 10000) / 777;
        memcpy(&words[i], &value, 4);
        if (kind == 1) words[i] = bits & 0x80000000u;
        if (kind == 2) words[i] = bits & 0x807FFFFFu;
        if (kind == 3) words[i] = bits;
        if (kind >= 4 && bits % 5 == 0) words[i] = specials[(kind - 4) % 11];
        if (kind >= 15) words[i] = specials[kind - 15];
    }
}

static void eight_bits_keep_their_bound(void **state) {
    static uint32_t words[26 * 32 * 200];
    static unsigned char packed[sizeof words / 128 * 36];
    static float back[26 * 32 * 200];
    const int blocks = 26 * 200;
    float largest_error = 0;
    fixture f;
    tl_range from, small, plain;
    int i, k;
    (void)state;
    if (!vkt_has_vulkan("eight_bits_keep_their_bound")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    for (i = 0; i < blocks; i++) make_block(&f, words + 32 * i, i % 26);
    compare_codec(&f, TL_CODEC_Q8, words, (uint64_t)blocks * 32);
    compare_codec(&f, TL_CODEC_Q8, words, (uint64_t)blocks * 32 - 17);
    from = add(&f, sizeof words);
    small = add(&f, sizeof packed);
    plain = add(&f, sizeof back);
    write_range(&f, from, words);
    assert_int_equal(f.b.compress(f.b.self, TL_CODEC_Q8, small, from), TL_OK);
    assert_int_equal(f.b.expand(f.b.self, TL_CODEC_Q8, plain, small), TL_OK);
    read_range(&f, plain, back);
    for (i = 0; i < blocks; i += 26) {  // numbers: half a step off at most, zeros not at all
        float most = 0;
        for (k = 0; k < 32; k++) {
            float x;
            memcpy(&x, &words[32 * i + k], 4);
            if (x > most || -x > most) most = x > 0 ? x : -x;
        }
        for (k = 0; k < 32; k++) {
            float x, error;
            memcpy(&x, &words[32 * i + k], 4);
            error = (back[32 * i + k] - x) / (most / 127);
            if (error < 0) error = -error;
            if (error > largest_error) largest_error = error;
            assert_true(back[32 * (i + 1) + k] == 0);
        }
    }
    assert_true(largest_error <= 0.5001f && largest_error > 0.45f);
    forget(&f, from);
    forget(&f, small);
    forget(&f, plain);
    close_fixture(&f);
    printf("16: %d blocks of 8 bits, off by %.4f steps at most\n", blocks, (double)largest_error);
}

// -- group 17: fragmentation, steady state --

#define STORM 3000

static uint32_t storm_word(int i) { return 0x9E3779B9u * (uint32_t)(i + 1); }

static void compaction_changes_no_byte(void **state) {
    static tl_range blocks[STORM];
    int machine, drops, part, i, count = is_thinned() ? STORM / 3 : STORM;
    uint64_t moved_in_all = 0;
    (void)state;
    if (!vkt_has_vulkan("compaction_changes_no_byte")) skip();
    for (machine = 0; machine < 2; machine++)
    for (drops = 0; drops < 2; drops++)
    for (part = 2; part <= 8; part *= 4) {  // one block in so many stays
        vkshim_config config;
        tl_vk_backend_desc desc = {0};
        fixture f;
        uint64_t moved, kept = 0, before, after;
        int rounds;
        vkshim_default(&config, machine ? VKSHIM_MACHINE_DISCRETE : VKSHIM_MACHINE_REAL);
        config.delay_polls = drops ? 3 : 0;
        desc.chunk_bytes = 1 << 20;
        open_fixture(&f, &config, NULL, &desc);
        for (i = 0; i < count; i++) {
            blocks[i] = add(&f, 64 + 4 * tl_next_random_below(&f.random, 1000));
            assert_int_equal(f.b.fill(f.b.self, blocks[i], storm_word(i)), TL_OK);
        }
        for (i = 0; i < count; i++) {
            if (tl_next_random_below(&f.random, (uint64_t)part) == 0) { kept += blocks[i].bytes; continue; }
            forget(&f, blocks[i]);
            blocks[i].bytes = 0;
        }
        before = measure(&f).memory_bytes;
        for (rounds = 0; rounds < 200; rounds++) {
            assert_int_equal(tl_vk_compact(&f.b, drops ? 100000 : UINT64_MAX, &moved), TL_OK);
            if (!moved) break;
            moved_in_all += moved;
            if (!drops) continue;
            assert_true(moved <= 100000);
            assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
            assert_int_equal(tl_vk_drop_unused(&f.b, 0), TL_OK);
        }
        if (rounds == 200) fail_msg("compaction never ends (%s)", drops ? "dropping" : "keeping");
        assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
        assert_int_equal(tl_vk_drop_unused(&f.b, 0), TL_OK);
        after = measure(&f).memory_bytes;
        if (after > (UINT64_C(4) << 20) + kept + (2 << 20)) fail_msg("%d KiB of %d KiB for %d KiB", (int)(after >> 10),
                                                                    (int)(before >> 10), (int)(kept >> 10));
        assert_true(after < before);
        for (i = 0; i < count; i++) {
            if (!blocks[i].bytes) continue;
            expect_words(&f, part_of(blocks[i], 0, blocks[i].bytes), storm_word(i));
            forget(&f, blocks[i]);
        }
        assert_int_equal(tl_vk_drop_unused(&f.b, 0), TL_OK);
        assert_true(measure(&f).memory_bytes <= after);
        close_fixture(&f);
    }
    printf("17: 8 storms of %d blocks, %llu bytes moved\n", count, (unsigned long long)moved_in_all);
}

static void unused_chunks_are_kept_up_to_a_size(void **state) {
    tl_vk_backend_desc desc = {0};
    tl_range blocks[6];
    fixture f;
    uint64_t least;
    int i;
    (void)state;
    if (!vkt_has_vulkan("unused_chunks_are_kept_up_to_a_size")) skip();
    desc.chunk_bytes = 1 << 20;
    open_fixture(&f, NULL, NULL, &desc);
    least = measure(&f).memory_bytes;
    for (i = 0; i < 6; i++) blocks[i] = add(&f, 1 << 20);
    assert_int_equal(measure(&f).memory_bytes, least + (6 << 20));
    for (i = 0; i < 6; i++) forget(&f, blocks[i]);
    assert_int_equal(measure(&f).memory_bytes, least + (6 << 20));
    assert_int_equal(tl_vk_drop_unused(&f.b, 3 << 20), TL_OK);
    assert_int_equal(measure(&f).memory_bytes, least + (3 << 20));
    assert_int_equal(tl_vk_drop_unused(&f.b, 0), TL_OK);
    assert_int_equal(measure(&f).memory_bytes, least);
    close_fixture(&f);
    printf("17: 6 chunks dropped\n");
}

#define STEADY 200

static void nothing_grows_in_steady_state(void **state) {
    static tl_range blocks[STEADY];
    long total = scaled(100000), step, allocs = 0;
    tl_vk_counters before = {0}, after;
    uint64_t calls = 0;
    fixture f;
    int i;
    (void)state;
    if (!vkt_has_vulkan("nothing_grows_in_steady_state")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    for (i = 0; i < STEADY; i++) blocks[i] = add(&f, 4096);
    for (step = 0; step < total; step++) {
        int to = (int)tl_next_random_below(&f.random, STEADY), from = (int)tl_next_random_below(&f.random, STEADY);
        if (step == total / 4) {
            before = measure(&f);
            calls = vkshim_calls("vkAllocateMemory");
            allocs = f.alloc.count;
        }
        switch (tl_next_random_below(&f.random, 8)) {
        case 0: case 1: case 2:
            forget(&f, blocks[to]);
            blocks[to] = add(&f, 64 * (1 + tl_next_random_below(&f.random, 64)));
            break;
        case 3:
            assert_int_equal(f.b.fill(f.b.self, blocks[to], (uint32_t)step), TL_OK);
            break;
        case 4: {
            uint32_t word = (uint32_t)step;
            write_range(&f, part_of(blocks[to], 0, 4), &word);
            break;
        }
        default:
            if (to != from)
                assert_int_equal(f.b.copy(f.b.self, part_of(blocks[to], 0, 64), part_of(blocks[from], 0, 64)), TL_OK);
        }
        // The device does not lag behind: what waits for it is as much in any quarter.
        if (step % 64 == 0) assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
    }
    after = measure(&f);
    assert_int_equal(after.memory_count, before.memory_count);
    assert_int_equal(after.memory_bytes, before.memory_bytes);
    assert_int_equal(after.host_alloc_count, before.host_alloc_count);
    assert_int_equal(vkshim_calls("vkAllocateMemory"), calls);
    assert_int_equal(f.alloc.count, allocs);
    for (i = 0; i < STEADY; i++) forget(&f, blocks[i]);
    close_fixture(&f);
    printf("17: %ld operations\n", total);
}

// -- runs on a queue of their own --

static void read_sums(fixture *f, const net *n, float sums[NET_LAYERS][NET_COUNT]) {
    int32_t i;
    for (i = 0; i < NET_LAYERS; i++) read_range(f, n->sums[i], sums[i]);
}

// Passes that are counted: one submit each, no wait, no allocation.
static void run_counted(fixture *f, net *n, float expected[NET_LAYERS][NET_COUNT], int passes) {
    static float sums[NET_LAYERS][NET_COUNT];
    tl_run_report report;
    int i;
    for (i = 0; i < passes; i++) {
        tl_vk_counters before, after;
        vkshim_counts shim_before, shim_after;
        uint64_t calls;
        long allocs;
        if (net_write_input(n, 1)) fail_msg("%s", f->env.error.text);
        submit(f);
        before = measure(f);
        shim_before = shim_counts();
        calls = vkshim_calls("vkAllocateMemory");
        allocs = f->alloc.count;
        if (tl_run_plan(n->run)) fail_msg("%s", f->env.error.text);
        after = measure(f);
        shim_after = shim_counts();
        assert_int_equal(after.submit_count - before.submit_count, 1);
        assert_int_equal(shim_after.submit_count - shim_before.submit_count, 1);
        assert_int_equal(after.host_wait_count - before.host_wait_count, 0);
        assert_int_equal(shim_after.host_wait_count - shim_before.host_wait_count, 0);
        if (i >= 8) {  // every batch has been used
            assert_int_equal(after.memory_count - before.memory_count, 0);
            assert_int_equal(vkshim_calls("vkAllocateMemory") - calls, 0);
            assert_int_equal(f->alloc.count - allocs, 0);
            assert_int_equal(after.host_alloc_count - before.host_alloc_count, 0);
        }
        tl_measure_run(n->run, &report);
        assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
        assert_int_equal(report.planned_host_peak_bytes, report.measured_host_peak_bytes);
        assert_true(report.measured_peak_bytes > 0);
        read_sums(f, n, sums);
        assert_memory_equal(sums, expected, sizeof sums);
    }
}

static void a_pass_is_one_submit_and_no_wait(void **state) {
    static float expected[NET_LAYERS][NET_COUNT];
    int machine, fences, passes = 0;
    (void)state;
    if (!vkt_has_vulkan("a_pass_is_one_submit_and_no_wait")) skip();
    for (machine = 0; machine < 3; machine++)
    for (fences = 0; fences < 2; fences++) {
        vkshim_config config;
        vkt_desc device = {0};
        tl_run_report report;
        fixture f;
        net n;
        tl_plan plan;
        tl_run *online;
        vkshim_default(&config, machine == 2 ? VKSHIM_MACHINE_NON_COHERENT : machine ? VKSHIM_MACHINE_DISCRETE
                                                                                    : VKSHIM_MACHINE_REAL);
        device.disable_timeline = fences;
        open_fixture(&f, &config, &device, NULL);
        net_open(&n, &f.env, &f.b, &f.b);
        net_start(&n, 0, 0, NULL);             // keeps all
        if (net_write_input(&n, 1) || tl_run_plan(n.run)) fail_msg("%s", f.env.error.text);
        read_sums(&f, &n, expected);
        assert_true(expected[0][NET_COUNT - 1] != 0 && expected[NET_LAYERS - 1][0] != 0);
        net_stop(&n);
        net_start(&n, 9 * NET_BYTES, 3 * NET_BYTES, NULL);   // spills and recomputes
        run_counted(&f, &n, expected, 14);
        tl_measure_run(n.run, &report);
        assert_true(report.spill_count > 0 && report.fetch_count > 0 && report.recompute_count > 0);
        tl_find_run_plan(n.run, &plan);        // the same once more, as a plan
        online = n.run;
        net_start(&n, 0, 0, &plan);
        run_counted(&f, &n, expected, 14);
        tl_measure_run(n.run, &report);
        assert_true(report.spill_count > 0 && report.fetch_count > 0 && report.recompute_count > 0);
        net_stop(&n);
        tl_free_run(online);
        net_close(&n);
        close_fixture(&f);
        passes += 28;
    }
    printf("run: %d passes counted\n", passes);
}

// The backend without `order`: whatever the caller does next overtakes what was enqueued.
typedef struct careless { tl_backend inner; } careless;

static tl_result careless_order(void *self, const tl_access *accesses, int32_t count) {
    (void)self; (void)accesses; (void)count;
    return TL_OK;
}

static void an_order_that_is_missing_is_seen(void **state) {
    fixture f;
    tl_backend without;
    net n;
    (void)state;
    if (!vkt_has_vulkan("an_order_that_is_missing_is_seen")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    if (!f.v.has_validation) { close_fixture(&f); skip(); }
    without = f.b;
    without.order = careless_order;
    net_open(&n, &f.env, &without, &f.b);
    net_start(&n, 9 * NET_BYTES, 3 * NET_BYTES, NULL);
    vkt_expect(&f.v, "SYNC-HAZARD");
    if (net_write_input(&n, 1) || tl_run_plan(n.run)) fail_msg("%s", f.env.error.text);
    assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
    assert_true(vkt_expected(&f.v) > 0);
    printf("run: %d hazards where order is missing\n", vkt_expected(&f.v));
    vkt_expect(&f.v, NULL);
    net_stop(&n);
    net_close(&n);
    close_fixture(&f);
}

// -- buffers of the caller --

typedef struct caller_buffer { VkBuffer buffer; VkDeviceMemory memory; } caller_buffer;

static void make_caller_buffer(fixture *f, uint64_t bytes, VkBufferUsageFlags usage, caller_buffer *made) {
    VkBufferCreateInfo info;
    VkMemoryRequirements needs;
    VkMemoryAllocateInfo memory;
    memset(&info, 0, sizeof info);
    memset(&memory, 0, sizeof memory);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = usage;
    vkt_ok(f->v.vk.CreateBuffer(f->v.device.device, &info, NULL, &made->buffer), "vkCreateBuffer");
    f->v.vk.GetBufferMemoryRequirements(f->v.device.device, made->buffer, &needs);
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory.allocationSize = needs.size;
    memory.memoryTypeIndex = vkt_find_memory(&f->v, needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    vkt_ok(f->v.vk.AllocateMemory(f->v.device.device, &memory, NULL, &made->memory), "vkAllocateMemory");
    vkt_ok(f->v.vk.BindBufferMemory(f->v.device.device, made->buffer, made->memory, 0), "vkBindBufferMemory");
}

static void free_caller_buffer(fixture *f, caller_buffer *made) {
    f->v.vk.DestroyBuffer(f->v.device.device, made->buffer, NULL);
    f->v.vk.FreeMemory(f->v.device.device, made->memory, NULL);
}

#define CALLER_USAGE \
    (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
#define CALLER_BYTES (1 << 20)

static tl_vk_buffer_desc describe(const caller_buffer *made) {
    tl_vk_buffer_desc desc = {0};
    desc.buffer = made->buffer;
    desc.usage = CALLER_USAGE;
    desc.bytes = CALLER_BYTES;
    return desc;
}

static void refuse_buffers(fixture *f, const tl_vk_buffer_desc *good) {
    const char *usage = "tl_vk_add_buffer: usage: needs STORAGE_BUFFER, TRANSFER_SRC and TRANSFER_DST";
    const VkBufferUsageFlags bits[] = { VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT };
    tl_vk_buffer_desc bad = *good;
    uint64_t block = 1;
    int i;
    for (i = 0; i < 3; i++) {
        bad.usage = CALLER_USAGE & ~bits[i];
        expect_error(f, tl_vk_add_buffer(&f->b, &bad, &block), TL_ERROR_INVALID_ARG, usage);
        assert_int_equal(block, 0);
    }
    bad = *good;
    bad.buffer = VK_NULL_HANDLE;
    expect_error(f, tl_vk_add_buffer(&f->b, &bad, &block), TL_ERROR_INVALID_ARG, "tl_vk_add_buffer: buffer: missing");
    bad = *good;
    for (bad.bytes = 0; bad.bytes < 7; bad.bytes += 6)
        expect_error(f, tl_vk_add_buffer(&f->b, &bad, &block), TL_ERROR_INVALID_ARG,
                     "tl_vk_add_buffer: bytes: must be a multiple of 4, not 0");
    bad = *good;
    bad.offset = f->alignment / 2;
    expect_error(f, tl_vk_add_buffer(&f->b, &bad, &block), TL_ERROR_INVALID_ARG,
                 "tl_vk_add_buffer: offset: not a multiple of the alignment");
    bad.offset = UINT64_MAX / f->alignment * f->alignment;
    assert_int_equal(tl_vk_add_buffer(&f->b, &bad, &block), TL_ERROR_INVALID_ARG);
}

static void buffers_of_the_caller_become_blocks(void **state) {
    fixture f;
    caller_buffer buffer;
    tl_vk_buffer_desc desc;
    VkDescriptorBufferInfo info;
    tl_range whole = {0}, half = {0}, own;
    int machine;
    (void)state;
    if (!vkt_has_vulkan("buffers_of_the_caller_become_blocks")) skip();
    for (machine = 0; machine < 2; machine++) {
        vkshim_config config;
        vkshim_default(&config, machine ? VKSHIM_MACHINE_DISCRETE : VKSHIM_MACHINE_REAL);
        open_fixture(&f, &config, NULL, NULL);
        make_caller_buffer(&f, CALLER_BYTES, CALLER_USAGE, &buffer);
        desc = describe(&buffer);
        refuse_buffers(&f, &desc);
        assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &whole.block), TL_OK);
        whole.bytes = CALLER_BYTES;
        assert_int_equal(f.b.claim(f.b.self, whole), TL_OK);
        assert_int_equal(f.b.claim(f.b.self, part_of(whole, 0, whole.bytes + 4)), TL_ERROR_INVALID_ARG);
        own = add(&f, 4096);
        assert_int_equal(f.b.fill(f.b.self, whole, 5), TL_OK);
        assert_int_equal(f.b.copy(f.b.self, own, part_of(whole, CALLER_BYTES / 2, 4096)), TL_OK);
        expect_words(&f, own, 5);
        expect_words(&f, part_of(whole, CALLER_BYTES - 4096, 4096), 5);  // read through staging
        forget(&f, whole);
        assert_int_equal(f.b.free_block(f.b.self, whole.block), TL_ERROR_STALE);
        desc.offset = CALLER_BYTES / 2;
        desc.bytes = CALLER_BYTES / 2;
        assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &half.block), TL_OK);
        half.bytes = CALLER_BYTES / 2;
        assert_int_equal(f.b.claim(f.b.self, half), TL_OK);
        assert_int_equal(tl_vk_find_buffer(&f.b, part_of(half, f.alignment, 8), &info), TL_OK);
        assert_true(info.buffer == buffer.buffer && info.offset == CALLER_BYTES / 2 + f.alignment && info.range == 8);
        expect_words(&f, part_of(half, 0, 4096), 5);
        forget(&f, half);
        forget(&f, own);
        assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
        free_caller_buffer(&f, &buffer);
        close_fixture(&f);
    }
    printf("buffers: 2 machines, 16 refused\n");
}

static uint64_t count_barriers(const fixture *f) {
    tl_vk_counters counters;
    tl_vk_measure(&f->b, &counters);
    return counters.barrier_count;
}

// An engine gives the same VkBuffer several times: whole, in parts, and again while work on it is enqueued.
static void a_buffer_added_twice_is_one_resource(void **state) {
    fixture f;
    caller_buffer buffer;
    tl_vk_buffer_desc desc;
    tl_range a = {0}, b = {0}, c = {0}, half = {0}, own;
    uint64_t before;
    (void)state;
    if (!vkt_has_vulkan("a_buffer_added_twice_is_one_resource")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    make_caller_buffer(&f, CALLER_BYTES, CALLER_USAGE, &buffer);
    desc = describe(&buffer);
    a.bytes = b.bytes = c.bytes = CALLER_BYTES;
    half.bytes = CALLER_BYTES / 2;
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &a.block), TL_OK);
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &b.block), TL_OK);
    assert_true(a.block != b.block);
    desc.offset = desc.bytes = CALLER_BYTES / 2;
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &half.block), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, a), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, b), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, half), TL_OK);
    own = add(&f, CALLER_BYTES);
    assert_int_equal(f.b.fill(f.b.self, own, 1), TL_OK);
    submit(&f);
    before = count_barriers(&f);
    assert_int_equal(f.b.fill(f.b.self, a, 7), TL_OK);
    assert_int_equal(f.b.copy(f.b.self, own, b), TL_OK);  // read after write, through another block
    submit(&f);
    assert_int_equal(count_barriers(&f) - before, 2);     // one between the two, one at the end
    expect_words(&f, part_of(own, CALLER_BYTES - 4096, 4096), 7);
    assert_int_equal(f.b.fill(f.b.self, half, 8), TL_OK);  // a part: its offset in the buffer counts
    assert_int_equal(f.b.copy(f.b.self, part_of(own, 0, 4096), part_of(a, CALLER_BYTES / 2, 4096)), TL_OK);
    assert_int_equal(f.b.fill(f.b.self, part_of(b, CALLER_BYTES / 2, 4096), 9), TL_OK);  // write after read
    submit(&f);
    expect_words(&f, part_of(own, 0, 4096), 8);
    expect_words(&f, part_of(half, 0, 4096), 9);
    before = count_barriers(&f);
    assert_int_equal(f.b.fill(f.b.self, half, 3), TL_OK);  // apart: no barrier
    assert_int_equal(f.b.copy(f.b.self, part_of(own, 0, 4096), part_of(a, 0, 4096)), TL_OK);
    submit(&f);
    assert_int_equal(count_barriers(&f) - before, 1);
    assert_int_equal(f.b.fill(f.b.self, a, 10), TL_OK);
    forget(&f, a);
    forget(&f, b);
    forget(&f, half);
    desc = describe(&buffer);
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &c.block), TL_OK);  // its earlier blocks are gone, their work is not
    assert_int_equal(f.b.claim(f.b.self, c), TL_OK);
    assert_int_equal(f.b.copy(f.b.self, own, c), TL_OK);
    submit(&f);
    expect_words(&f, part_of(own, 0, 4096), 10);
    forget(&f, c);
    forget(&f, own);
    assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
    assert_int_equal(vkt_messages(&f.v), 0);
    free_caller_buffer(&f, &buffer);
    close_fixture(&f);
    printf("buffers: 3 blocks of one, added again under work\n");
}

static void two_blocks_of_a_buffer_overlap_where_their_bytes_do(void **state) {
    fixture f;
    caller_buffer buffer;
    tl_vk_buffer_desc desc;
    tl_range a = {0}, b = {0};
    (void)state;
    if (!vkt_has_vulkan("two_blocks_of_a_buffer_overlap_where_their_bytes_do")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    make_caller_buffer(&f, CALLER_BYTES, CALLER_USAGE, &buffer);
    desc = describe(&buffer);
    a.bytes = b.bytes = CALLER_BYTES;
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &a.block), TL_OK);
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &b.block), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, a), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, b), TL_OK);
    assert_int_equal(f.b.fill(f.b.self, a, 6), TL_OK);
    expect_error(&f, f.b.copy(f.b.self, part_of(b, 0, 4096), part_of(a, 2048, 4096)), TL_ERROR_INVALID_ARG,
                 "copy: to: overlaps from");
    expect_error(&f, tl_vk_record_add(&f.b, part_of(b, 0, 4096), part_of(a, 2048, 4096)), TL_ERROR_INVALID_ARG,
                 "tl_vk_record_add: to: overlaps from");
    expect_error(&f, tl_vk_record_min_max(&f.b, part_of(b, 0, 16), part_of(a, 0, 4096)), TL_ERROR_INVALID_ARG,
                 "tl_vk_record_min_max: to: overlaps from");
    expect_error(&f, tl_vk_record_checksum(&f.b, part_of(b, 0, 8), part_of(a, 0, 4096)), TL_ERROR_INVALID_ARG,
                 "tl_vk_record_checksum: to: overlaps from");
    expect_words(&f, part_of(a, 0, 4096), 6);  // refused before anything was enqueued
    assert_int_equal(f.b.copy(f.b.self, part_of(b, 4096, 4096), part_of(a, 0, 4096)), TL_OK);
    forget(&f, a);
    forget(&f, b);
    assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
    free_caller_buffer(&f, &buffer);
    close_fixture(&f);
}

static void buffers_of_the_backend_are_not_added(void **state) {
    fixture f;
    VkDescriptorBufferInfo info;
    tl_vk_buffer_desc desc = {0};
    tl_range own;
    uint64_t block = 1;
    (void)state;
    if (!vkt_has_vulkan("buffers_of_the_backend_are_not_added")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    own = add(&f, 4096);
    assert_int_equal(tl_vk_find_buffer(&f.b, own, &info), TL_OK);
    desc.buffer = info.buffer;
    desc.usage = CALLER_USAGE;
    desc.bytes = 4096;
    expect_error(&f, tl_vk_add_buffer(&f.b, &desc, &block), TL_ERROR_INVALID_ARG,
                 "tl_vk_add_buffer: buffer: is one of the backend itself");
    assert_int_equal(block, 0);
    forget(&f, own);
    close_fixture(&f);
}

// The caller fills its buffer in a submit of its own, the backend reads and writes it, the caller copies it.
static void stages_of_the_caller_are_waited_for(void **state) {
    int declares, i;
    (void)state;
    if (!vkt_has_vulkan("stages_of_the_caller_are_waited_for")) skip();
    for (declares = 0; declares < 2; declares++) {
        fixture f;
        caller_buffer buffer, copy;
        tl_vk_buffer_desc desc;
        tl_range block = {0}, own;
        VkBufferCopy region;
        open_fixture(&f, NULL, NULL, NULL);
        if (!f.v.has_validation) { close_fixture(&f); skip(); }
        make_caller_buffer(&f, CALLER_BYTES, CALLER_USAGE | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT, &buffer);
        make_caller_buffer(&f, CALLER_BYTES, CALLER_USAGE, &copy);
        desc = describe(&buffer);
        if (declares) {
            desc.stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
            desc.access = VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT;
        } else {
            vkt_expect(&f.v, "SYNC-HAZARD");
        }
        assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &block.block), TL_OK);
        block.bytes = CALLER_BYTES;
        assert_int_equal(f.b.claim(f.b.self, block), TL_OK);
        own = add(&f, 4096);
        assert_int_equal(f.b.fill(f.b.self, own, 1), TL_OK);
        submit(&f);
        memset(&region, 0, sizeof region);
        region.size = 4096;
        for (i = 0; i < 3; i++) {
            VkCommandBuffer commands = vkt_begin(&f.v);
            f.v.vk.CmdFillBuffer(commands, buffer.buffer, 0, 4096, (uint32_t)i + 50);
            vkt_ok(f.v.vk.EndCommandBuffer(commands), "vkEndCommandBuffer");
            vkt_submit(&f.v, commands, VK_NULL_HANDLE);
            assert_int_equal(f.b.copy(f.b.self, own, part_of(block, 0, 4096)), TL_OK);
            assert_int_equal(f.b.fill(f.b.self, part_of(block, 0, 4096), 7), TL_OK);
            submit(&f);
            vkt_ok(f.v.vk.DeviceWaitIdle(f.v.device.device), "vkDeviceWaitIdle");  // for the pool
            if (declares) expect_words(&f, own, (uint32_t)i + 50);
        }
        assert_int_equal(vkt_expected(&f.v) > 0, !declares);
        vkt_expect(&f.v, NULL);
        forget(&f, block);
        forget(&f, own);
        assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
        free_caller_buffer(&f, &buffer);
        free_caller_buffer(&f, &copy);
        close_fixture(&f);
    }
    printf("buffers: 3 rounds with stages, 3 without\n");
}

// In one batch: work of the backend, a dispatch of the caller whose counts stand in its buffer, work again.
static void ordered_stages_are_waited_for_again(void **state) {
    static const uint32_t one_group[3] = { 1, 1, 1 };
    VkDescriptorBufferInfo parts[2];
    VkCommandBuffer commands;
    PFN_vkCmdDispatchIndirect dispatch_indirect;
    fixture f;
    caller_buffer buffer;
    tl_vk_buffer_desc desc;
    tl_range block = {0}, counts, x, y;
    tl_access accesses[2];
    vkt_kernel kernel;
    uint32_t push = 64, i;
    float values[64];
    (void)state;
    if (!vkt_has_vulkan("ordered_stages_are_waited_for_again")) skip();
    open_fixture(&f, NULL, NULL, NULL);
    dispatch_indirect = (PFN_vkCmdDispatchIndirect)f.v.vk.GetDeviceProcAddr(f.v.device.device, "vkCmdDispatchIndirect");
    assert_non_null(dispatch_indirect);
    make_caller_buffer(&f, CALLER_BYTES, CALLER_USAGE | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT, &buffer);
    vkt_make_kernel(&f.v, vk_layer_forward_words, sizeof vk_layer_forward_words, 2, 4, 64, &kernel);
    desc = describe(&buffer);
    desc.stages = VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
    desc.access = VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &block.block), TL_OK);
    block.bytes = CALLER_BYTES;
    assert_int_equal(f.b.claim(f.b.self, block), TL_OK);
    counts = add(&f, 12);
    x = add(&f, 256);
    y = add(&f, 256);
    write_range(&f, counts, one_group);
    for (i = 0; i < 64; i++) values[i] = (float)i;
    write_range(&f, x, values);
    assert_int_equal(tl_vk_find_buffer(&f.b, y, &parts[0]), TL_OK);
    assert_int_equal(tl_vk_find_buffer(&f.b, x, &parts[1]), TL_OK);
    vkt_bind(&f.v, &kernel, parts);
    for (i = 0; i < 3; i++) {
        assert_int_equal(f.b.copy(f.b.self, part_of(block, 0, 12), counts), TL_OK);
        accesses[0].range = y;
        accesses[0].writes = 1;
        accesses[1].range = x;
        accesses[1].writes = 0;
        assert_int_equal(f.b.order(f.b.self, accesses, 2), TL_OK);
        accesses[0].range = part_of(block, 0, 12);
        accesses[0].writes = 0;
        assert_int_equal(tl_vk_order(&f.b, accesses, 1, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
                                     VK_ACCESS_INDIRECT_COMMAND_READ_BIT), TL_OK);
        // The next barrier waits for these stages, whichever they are.
        assert_true(((const tli_vk *)f.b.self)->foreign_stages & VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT);
        assert_int_equal(tl_vk_find_commands(&f.b, &commands), TL_OK);
        f.v.vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
        f.v.vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, 1, &kernel.set, 0, NULL);
        f.v.vk.CmdPushConstants(commands, kernel.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &push);
        dispatch_indirect(commands, buffer.buffer, 0);
        assert_int_equal(f.b.fill(f.b.self, part_of(block, 0, 12), 0), TL_OK);  // only once it was read
        submit(&f);
    }
    read_range(&f, y, values);
    for (i = 0; i < 64; i++) assert_true(values[i] == (float)i * (1 - 0.25f * (float)i));
    assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
    vkt_free_kernel(&f.v, &kernel);
    forget(&f, block);
    forget(&f, counts);
    forget(&f, x);
    forget(&f, y);
    free_caller_buffer(&f, &buffer);
    close_fixture(&f);
    printf("buffers: 3 dispatches whose counts the backend wrote\n");
}

// -- times --

static void times_grow_with_the_work(void **state) {
    volatile uint32_t too_many = UINT32_MAX;  // what compilers cannot see they do not warn of
    tl_vk_backend_desc desc = {0};
    uint64_t ns[4] = { 7, 7, 7, 7 };
    tl_range a;
    fixture f;
    int i;
    (void)state;
    if (!vkt_has_vulkan("times_grow_with_the_work")) skip();
    desc.time_count = 4;
    open_fixture(&f, NULL, NULL, &desc);
    a = add(&f, 4 << 20);
    expect_error(&f, tl_vk_read_times(&f.b, 0, 1, ns), TL_ERROR_INVALID_ARG, "tl_vk_read_times: slot: was never written");
    assert_int_equal(ns[0], 0);
    for (i = 0; i < 4; i++) {
        int k;
        assert_int_equal(tl_vk_record_time(&f.b, (uint32_t)i), TL_OK);
        for (k = 0; k < 3; k++) assert_int_equal(f.b.fill(f.b.self, a, (uint32_t)k), TL_OK);
        if (i == 2) submit(&f);
    }
    assert_int_equal(tl_vk_read_times(&f.b, 0, 4, ns), TL_OK);  // submits what it waits for
    assert_true(ns[0] < ns[1] && ns[1] < ns[2] && ns[2] < ns[3]);
    expect_error(&f, tl_vk_record_time(&f.b, 4), TL_ERROR_INVALID_ARG, "tl_vk_record_time: slot: not below time_count");
    expect_error(&f, tl_vk_read_times(&f.b, 3, 2, ns), TL_ERROR_INVALID_ARG, "tl_vk_read_times: slot: not below time_count");
    assert_int_equal(tl_vk_read_times(&f.b, 4, 0, ns), TL_OK);
    assert_int_equal(tl_vk_read_times(&f.b, 0, too_many, ns), TL_ERROR_INVALID_ARG);
    forget(&f, a);
    close_fixture(&f);
    {
        vkshim_config config;
        tl_vk_copy_path path = TL_VK_COPY_PATH_COUNT;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.no_timestamps = 1;
        open_fixture(&f, &config, NULL, &desc);
        expect_error(&f, tl_vk_record_time(&f.b, 0), TL_ERROR_UNSUPPORTED,
                     "tl_vk_record_time: the queue has no timestamps");
        assert_int_equal(tl_vk_read_times(&f.b, 0, 1, ns), TL_ERROR_UNSUPPORTED);
        assert_int_equal(tl_vk_measure_copies(&f.b, &path), TL_ERROR_UNSUPPORTED);
        assert_int_equal(path, TL_VK_COPY_PATH_COMMAND);
        close_fixture(&f);
    }
    printf("times: 4 slots, 8 refused\n");
}

static void copies_are_measured(void **state) {
    tl_vk_backend_desc desc = {0};
    tl_vk_copy_path path = TL_VK_COPY_PATH_COUNT;
    tl_backend_counters counters;
    fixture f;
    (void)state;
    if (!vkt_has_vulkan("copies_are_measured")) skip();
    desc.chunk_bytes = 8 << 20;
    open_fixture(&f, NULL, NULL, &desc);
    assert_int_equal(tl_vk_measure_copies(&f.b, &path), TL_OK);
    assert_true((unsigned)path < TL_VK_COPY_PATH_COUNT);
    f.b.counters(f.b.self, &counters);
    assert_int_equal(counters.block_count[TL_TIER_DEVICE], 0);
    assert_int_equal(counters.live_bytes[TL_TIER_DEVICE], 0);
    assert_true(measure(&f).dispatch_count > 0 && measure(&f).copy_count > 0);  // both were tried
    try_all(&f, 70000);
    close_fixture(&f);
    printf("copies: measured, %s is taken\n", tl_vk_name_copy_path(path));
}

// -- kernels --

static void kernels_are_checked(void **state) {
    static const struct { int32_t words, buffers; uint32_t push, constants; tl_result result; const char *text; } cases[] = {
        { 0, 2, 4, 0, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: words: not SPIR-V" },
        { 1, 2, 4, 0, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: words: not SPIR-V" },
        { 2, 2, 4, 0, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: words: not SPIR-V" },
        { 3, -1, 4, 0, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: buffer_count: must be 0 to 16" },
        { 3, 17, 4, 0, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: buffer_count: must be 0 to 16" },
        { 3, 2, 3, 0, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: push_bytes: must be a multiple of 4 up to 128" },
        { 3, 2, 132, 0, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: push_bytes: must be a multiple of 4 up to 128" },
        { 3, 2, 4, 17, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: constant_count: must be 0 to 16" },
        { 3, 2, 4, 1, TL_ERROR_INVALID_ARG, "tl_vk_init_kernel: constants: missing" },
        { 3, 5, 4, 0, TL_ERROR_UNSUPPORTED, "tl_vk_init_kernel: buffer_count, push_bytes: more than the device binds" },
        { 3, 2, 68, 0, TL_ERROR_UNSUPPORTED, "tl_vk_init_kernel: buffer_count, push_bytes: more than the device binds" },
        { 3, 4, 64, 0, TL_OK, "" }, { 3, 2, 4, 0, TL_OK, "" }
    };
    static const uint32_t other[8] = { 0x03022307u, 0x10000u, 0, 1, 0, 0, 0, 0 };
    vkshim_config config;
    tl_vk_kernel *kernel;
    tl_range ranges[4] = {{0}};
    tl_range a;
    uint32_t push[16] = {0};
    fixture f;
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("kernels_are_checked")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.stage_storage_buffers = 4;
    config.push_constant_bytes = 64;
    open_fixture(&f, &config, NULL, NULL);
    a = add(&f, 64);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_vk_kernel_desc desc = {0};
        tl_result result;
        kernel = (tl_vk_kernel *)&f;
        desc.words = cases[i].words == 0 ? NULL : cases[i].words == 2 ? other : vk_layer_forward_words;
        desc.word_count = cases[i].words == 1 ? 4 : cases[i].words == 2 ? 8 : sizeof vk_layer_forward_words / 4;
        desc.buffer_count = cases[i].buffers;
        desc.push_bytes = cases[i].push;
        desc.constant_count = cases[i].constants;
        result = tl_vk_init_kernel(&f.b, &desc, &kernel);
        if (cases[i].result) {
            expect_error(&f, result, cases[i].result, cases[i].text);
            assert_null(kernel);
            continue;
        }
        assert_int_equal(result, TL_OK);
        ranges[0] = a;
        ranges[1] = part_of(a, 0, 0);  // of nobody: the push constant keeps the kernel from reading it
        assert_int_equal(tl_vk_record_kernel(&f.b, kernel, ranges, push, 1, 1, 1), TL_OK);
        ranges[0].block += UINT64_C(1) << 32;
        assert_int_equal(tl_vk_record_kernel(&f.b, kernel, ranges, push, 1, 1, 1), TL_ERROR_STALE);
        ranges[0] = part_of(a, 4, 4);
        assert_int_equal(tl_vk_record_kernel(&f.b, kernel, ranges, push, 1, 1, 1), TL_ERROR_INVALID_ARG);
        assert_int_equal(f.b.wait(f.b.self, submit(&f)), TL_OK);
        tl_vk_free_kernel(&f.b, kernel);
    }
    tl_vk_free_kernel(&f.b, NULL);
    forget(&f, a);
    close_fixture(&f);
    printf("kernels: %d descriptions\n", (int)(sizeof cases / sizeof *cases));
}

// What was recorded of a sum before a call of Vulkan failed is not recorded again. Without a set that is kept, one of the batch
// does; without both, the submit fails.
static void a_sum_that_failed_half_way_is_added_once(void **state) {
    int op, at, both, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("a_sum_that_failed_half_way_is_added_once")) skip();
    for (op = OP_ADD; op < OP_COUNT; op++)
    for (at = 1; at <= 4; at++)
    for (both = 0; both < 2; both++) {
        static unsigned char from_bytes[40000], expected[40000], got[40000];
        const uint64_t bytes = sizeof from_bytes, to_bytes = to_bytes_of((range_op)op, bytes);
        vkshim_config config;
        tl_range to, from;
        tl_ticket ticket;
        fixture f;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.storage_range = 8192;
        open_fixture(&f, &config, NULL, NULL);
        to = add(&f, to_bytes);
        from = add(&f, bytes);
        make_source(&f, OP_ADD, from_bytes, bytes);
        make_source(&f, OP_ADD, expected, to_bytes);
        write_range(&f, from, from_bytes);
        write_range(&f, to, expected);
        expect_op((range_op)op, expected, from_bytes, bytes);
        config.fail_call = "vkAllocateDescriptorSets";
        config.fail_at = (uint64_t)at;
        config.fail_count = 1 + (uint64_t)both;
        config.fail_with = VK_ERROR_OUT_OF_POOL_MEMORY;
        assert_int_equal(do_op(&f, (range_op)op, to, from), TL_OK);
        vkshim_change(&config);
        assert_int_equal(f.b.submit(f.b.self, &ticket), both ? TL_ERROR_NO_MEMORY : TL_OK);
        assert_int_equal(f.b.submit(f.b.self, &ticket), TL_OK);
        read_range(&f, to, got);
        if (memcmp(got, expected, (size_t)to_bytes)) fail_msg("op %d, piece %d: the sum is another one", op, at);
        forget(&f, to);
        forget(&f, from);
        close_fixture(&f);
        cases++;
    }
    printf("kernels: %d reductions that failed half way\n", cases);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_never_reaches_beyond_the_limit),
        cmocka_unit_test(the_limit_of_the_machine_is_kept),
        cmocka_unit_test(workgroups_of_any_size_do_the_same),
        cmocka_unit_test(workgroups_keep_to_the_device),
        cmocka_unit_test(many_groups_are_spread_over_two_directions),
        cmocka_unit_test(sizes_and_tails_leave_their_neighbours_alone),
        cmocka_unit_test(sizes_above_4_gib_are_whole),
        cmocka_unit_test(what_is_refused_changes_nothing),
        cmocka_unit_test(bytes_are_right_whatever_is_in_flight),
        cmocka_unit_test(freed_memory_is_given_on_at_once),
        cmocka_unit_test(checkpoints_are_evicted_and_restored_in_flight),
        cmocka_unit_test(every_half_comes_back),
        cmocka_unit_test(floats_are_rounded_as_on_the_host),
        cmocka_unit_test(eight_bits_keep_their_bound),
        cmocka_unit_test(compaction_changes_no_byte),
        cmocka_unit_test(unused_chunks_are_kept_up_to_a_size),
        cmocka_unit_test(nothing_grows_in_steady_state),
        cmocka_unit_test(a_pass_is_one_submit_and_no_wait),
        cmocka_unit_test(an_order_that_is_missing_is_seen),
        cmocka_unit_test(buffers_of_the_caller_become_blocks),
        cmocka_unit_test(a_buffer_added_twice_is_one_resource),
        cmocka_unit_test(two_blocks_of_a_buffer_overlap_where_their_bytes_do),
        cmocka_unit_test(buffers_of_the_backend_are_not_added),
        cmocka_unit_test(stages_of_the_caller_are_waited_for),
        cmocka_unit_test(ordered_stages_are_waited_for_again),
        cmocka_unit_test(times_grow_with_the_work),
        cmocka_unit_test(copies_are_measured),
        cmocka_unit_test(kernels_are_checked),
        cmocka_unit_test(a_sum_that_failed_half_way_is_added_once),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_ranges", tests, NULL, NULL);
}
