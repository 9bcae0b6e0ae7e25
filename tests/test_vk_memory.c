// The Vulkan backend on machines that this one is not: memory that must be flushed, budgets that drop, heaps
// that lie, few and small allocations, other memory types. All faked by the shim, which enforces what it fakes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_faults.h"

#define MIB ((uint64_t)1 << 20)

// ============================================================================
// Random work on ranges that are mirrored in plain memory
// ============================================================================

#define RANGES 20
#define MOST_BYTES 6000

// A range and what must stand in it.
typedef struct mirror { tl_range range; unsigned char bytes[MOST_BYTES]; } mirror;

typedef struct play {
    world     w;
    tl_random random;
    uint64_t  alignment;
    mirror    mirrors[RANGES];
    long      operations, maps;
} play;

static uint64_t pick(play *p, uint64_t below) { return tl_next_random_below(&p->random, below); }

static tl_range part_of(tl_range range, uint64_t offset, uint64_t bytes) {
    range.offset += offset;
    range.bytes = bytes;
    return range;
}

// A part from an aligned offset on; it ends where the range ends or at the alignment.
static tl_range pick_part(play *p, const mirror *m) {
    uint64_t offset = pick(p, m->range.bytes / p->alignment + 1) * p->alignment;
    uint64_t bytes = pick(p, (m->range.bytes - offset) / p->alignment + 1) * p->alignment;
    return part_of(m->range, offset, pick(p, 2) ? m->range.bytes - offset : bytes);
}

static void *map(play *p, tl_range range, tl_map_mode mode) {
    void *host;
    expect_ok(&p->w, p->w.backend.map(p->w.backend.self, range, mode, &host), "map");
    p->maps++;
    return host;
}

static void unmap(play *p, tl_range range, tl_map_mode mode, void *host) {
    expect_ok(&p->w, p->w.backend.unmap(p->w.backend.self, range, mode, host), "unmap");
}

static void touch(play *p, mirror *m, tl_map_mode mode) {
    tl_range part = pick_part(p, m);
    unsigned char *host = (unsigned char *)map(p, part, mode), *bytes = m->bytes + part.offset;
    uint64_t i;
    if (mode != TL_MAP_WRITE && part.bytes) assert_memory_equal(host, bytes, (size_t)part.bytes);
    for (i = 0; i < part.bytes && mode != TL_MAP_READ; i++)
        if (mode == TL_MAP_WRITE || pick(p, 3) == 0) host[i] = bytes[i] = (unsigned char)tl_next_random(&p->random);
    unmap(p, part, mode, host);
}

static void add_mirror(play *p, mirror *m, tl_tier tier, uint64_t bytes) {
    uint64_t i;
    void *host;
    expect_ok(&p->w, add_range(&p->w, tier, bytes, &m->range), "add_range");
    for (i = 0; i < bytes; i++) m->bytes[i] = (unsigned char)tl_next_random(&p->random);
    host = map(p, m->range, TL_MAP_WRITE);
    memcpy(host, m->bytes, (size_t)bytes);
    unmap(p, m->range, TL_MAP_WRITE, host);
}

static void add_any(play *p, mirror *m) {
    add_mirror(p, m, pick(p, 2) ? TL_TIER_DEVICE : TL_TIER_HOST, 1 + pick(p, MOST_BYTES));
}

static void copy_any(play *p, mirror *to, const mirror *from) {
    const tl_backend *b = &p->w.backend;
    uint64_t least = to->range.bytes < from->range.bytes ? to->range.bytes : from->range.bytes;
    uint64_t offset = pick(p, least / p->alignment + 1) * p->alignment;
    uint64_t bytes = pick(p, (least - offset) / p->alignment + 1) * p->alignment;
    if (to == from) return;
    if (least == to->range.bytes && pick(p, 2)) bytes = least - offset;
    expect_ok(&p->w, b->copy(b->self, part_of(to->range, offset, bytes), part_of(from->range, offset, bytes)), "copy");
    memcpy(to->bytes + offset, from->bytes + offset, (size_t)bytes);
}

static void fill_any(play *p, mirror *to) {
    const tl_backend *b = &p->w.backend;
    uint32_t word = (uint32_t)tl_next_random(&p->random);
    uint64_t i;
    expect_ok(&p->w, b->fill(b->self, to->range, word), "fill");
    for (i = 0; i < to->range.bytes; i++) to->bytes[i] = ((const unsigned char *)&word)[i % 4];
}

static void convert_any(play *p, const mirror *from) {
    const tl_backend *b = &p->w.backend;
    tl_codec codec = (tl_codec)(1 + pick(p, TL_CODEC_COUNT - 1));
    mirror *small = (mirror *)malloc(2 * sizeof *small), *back = small + 1;
    assert_non_null(small);
    add_mirror(p, small, TL_TIER_DEVICE, tl_find_codec_bytes(codec, from->range.bytes));
    add_mirror(p, back, TL_TIER_DEVICE, from->range.bytes);
    expect_ok(&p->w, b->compress(b->self, codec, small->range, from->range), "compress");
    expect_ok(&p->w, b->expand(b->self, codec, back->range, small->range), "expand");
    tl_compress_bytes(codec, small->bytes, from->bytes, from->range.bytes);
    tl_expand_bytes(codec, back->bytes, small->bytes, from->range.bytes);
    touch(p, small, TL_MAP_READ);
    touch(p, back, TL_MAP_READ);
    free_range(&p->w, &small->range);
    free_range(&p->w, &back->range);
    free(small);
}

static void play_step(play *p) {
    mirror *to = &p->mirrors[pick(p, RANGES)], *from = &p->mirrors[pick(p, RANGES)];
    tl_ticket ticket;
    p->operations++;
    switch (pick(p, 12)) {
    case 0: case 1: case 2: copy_any(p, to, from); break;
    case 3: fill_any(p, to); break;
    case 4: convert_any(p, from); break;
    case 5: free_range(&p->w, &to->range); add_any(p, to); break;
    case 6: expect_ok(&p->w, p->w.backend.submit(p->w.backend.self, &ticket), "submit"); break;
    case 7: case 8: touch(p, to, TL_MAP_WRITE); break;
    case 9: case 10: touch(p, to, TL_MAP_CHANGE); break;
    default: touch(p, to, TL_MAP_READ);
    }
}

// Random work on the machine of p->w; then every byte is compared, and nothing is left.
static void play_steps(play *p, uint64_t seed, int steps) {
    tl_backend_limits limits;
    int i;
    open_backend(&p->w);
    p->w.backend.limits(p->w.backend.self, &limits);
    p->alignment = limits.alignment_bytes;
    p->random.state = seed;
    for (i = 0; i < RANGES; i++) add_any(p, &p->mirrors[i]);
    for (i = 0; i < steps; i++) play_step(p);
    for (i = 0; i < RANGES; i++) {
        mirror *m = &p->mirrors[i];
        void *host = map(p, m->range, TL_MAP_READ);
        assert_memory_equal(host, m->bytes, (size_t)m->range.bytes);
        unmap(p, m->range, TL_MAP_READ, host);
        free_range(&p->w, &m->range);
    }
    expect_idle(&p->w, "random work");
    close_backend(&p->w, "random work");
}

// The same on a machine of its own; delays = 1: submits are kept back until they are waited for.
static void play_machine(play *p, const vkshim_config *config, int fences, int delays, uint64_t seed, int steps) {
    vkshim_config copy = *config;
    vkt_desc device = {0};
    memset(p, 0, sizeof *p);
    copy.delay_polls = delays ? 3 : 0;
    device.disable_timeline = fences;
    open_device(&p->w, &copy, &device);
    play_steps(p, seed, steps);
    close_device(&p->w);
}

// ============================================================================
// Group 4: memory that is not coherent
// ============================================================================

static void every_flush_and_invalidate_is_there_and_rounded(void **state) {
    static const vkshim_machine machines[] = { VKSHIM_MACHINE_NON_COHERENT, VKSHIM_MACHINE_DISCRETE };
    static const uint32_t atoms[] = { 1, 64, 256 };
    play *p = (play *)malloc(sizeof *p);
    uint64_t flushes = 0, invalidates = 0;
    long operations = 0, maps = 0;
    int m, a, fences;
    (void)state;
    if (!vkt_has_vulkan("every_flush_and_invalidate_is_there_and_rounded")) { free(p); skip(); }
    assert_non_null(p);
    for (m = 0; m < 2; m++)
        for (a = 0; a < 3; a++)
            for (fences = 0; fences < 2; fences++) {
                vkshim_config config;
                vkshim_default(&config, machines[m]);
                config.non_coherent_atom = atoms[a];
                play_machine(p, &config, fences, a == 2, (uint64_t)(m * 6 + a * 2 + fences), 300);
                operations += p->operations;
                maps += p->maps;
                flushes += vkshim_calls("vkFlushMappedMemoryRanges");
                invalidates += vkshim_calls("vkInvalidateMappedMemoryRanges");
            }
    assert_true(flushes > 1000 && invalidates > 1000);
    printf("group 4: 12 machines, %ld operations, %ld maps, %d flushes, %d invalidates\n", operations, maps,
           (int)flushes, (int)invalidates);
    free(p);
}

// ============================================================================
// Group 2: budgets and heaps
// ============================================================================

static tl_backend_limits limits_of(const world *w) {
    tl_backend_limits limits;
    w->backend.limits(w->backend.self, &limits);
    return limits;
}

static void open_machine(world *w, const vkshim_config *config) {
    vkt_desc device = {0};
    open_device(w, config, &device);
    open_backend(w);
}

static void close_machine(world *w, const char *what) {
    expect_idle(w, what);
    close_backend(w, what);
    close_device(w);
}

static void a_budget_that_drops_is_told_at_once(void **state) {
    static const uint64_t budgets[] = { 64 * MIB, 5 * MIB, MIB / 2, 0, 3 * MIB, 64 * MIB };
    world w;
    vkshim_config config;
    tl_range held, range;
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("a_budget_that_drops_is_told_at_once")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.fakes_budget = 1;
    open_machine(&w, &config);
    expect_ok(&w, add_range(&w, TL_TIER_DEVICE, MIB / 4, &held), "add_range");
    expect_ok(&w, add_range(&w, TL_TIER_DEVICE, MIB / 4, &range), "add_range");  // half of a chunk is free now
    for (i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        uint64_t left = budgets[i] > MIB ? budgets[i] - MIB : 0;
        vkshim_set_budget(0, budgets[i] ? budgets[i] : 1);
        assert_int_equal(limits_of(&w).budget_bytes[TL_TIER_DEVICE], left + MIB / 2);
        expect_ok(&w, fill_and_expect(&w, held, (uint32_t)i), "what is held goes on");
        free_range(&w, &range);
        assert_int_equal(limits_of(&w).budget_bytes[TL_TIER_DEVICE], left + MIB / 2 + MIB / 4);
        expect_ok(&w, add_range(&w, TL_TIER_DEVICE, MIB / 4, &range), "room inside a chunk needs no budget");
    }
    free_range(&w, &range);
    free_range(&w, &held);
    close_machine(&w, "budget");
    printf("group 2: %d budgets\n", (int)(sizeof budgets / sizeof *budgets));
}

// Without the extension: four fifths of the heap, less what was taken from that heap.
static void without_budgets_heaps_are_counted_apart(void **state) {
    vkshim_machine machines[] = { VKSHIM_MACHINE_DISCRETE, VKSHIM_MACHINE_SINGLE };
    int i;
    (void)state;
    if (!vkt_has_vulkan("without_budgets_heaps_are_counted_apart")) skip();
    for (i = 0; i < 2; i++) {
        world w;
        vkshim_config config;
        tl_range device, host;
        uint64_t whole, device_before, host_before;
        vkshim_default(&config, machines[i]);
        open_machine(&w, &config);
        whole = config.heaps[0].size / 5 * 4;
        device_before = limits_of(&w).budget_bytes[TL_TIER_DEVICE];
        host_before = limits_of(&w).budget_bytes[TL_TIER_HOST];
        if (machines[i] == VKSHIM_MACHINE_DISCRETE) assert_int_equal(device_before, whole);
        else assert_true(device_before < whole && device_before > whole - MIB);  // staging is in it
        expect_ok(&w, add_range(&w, TL_TIER_HOST, MIB / 4, &host), "add_range");
        assert_int_equal(limits_of(&w).budget_bytes[TL_TIER_HOST], host_before - MIB / 4);
        // In one heap a whole chunk is gone from the other tier.
        assert_int_equal(limits_of(&w).budget_bytes[TL_TIER_DEVICE],
                         machines[i] == VKSHIM_MACHINE_SINGLE ? device_before - MIB : device_before);
        device_before = limits_of(&w).budget_bytes[TL_TIER_DEVICE];
        expect_ok(&w, add_range(&w, TL_TIER_DEVICE, MIB / 4, &device), "add_range");
        assert_int_equal(limits_of(&w).budget_bytes[TL_TIER_DEVICE], device_before - MIB / 4);
        free_range(&w, &device);
        free_range(&w, &host);
        close_machine(&w, "no budget");
    }
    printf("group 2: without the extension, 2 machines\n");
}

#define MOST_BLOCKS 128

// Take blocks until there is no memory; how many. All of them work.
static int take_all(world *w, tl_tier tier, uint64_t bytes, tl_range *ranges) {
    tl_result result = TL_OK;
    int count = 0, i;
    while (count < MOST_BLOCKS && !(result = add_range(w, tier, bytes, &ranges[count]))) count++;
    assert_int_equal(result, TL_ERROR_NO_MEMORY);
    assert_true(w->env.error.text[0]);
    for (i = 0; i < count; i++) expect_ok(w, fill_and_expect(w, ranges[i], (uint32_t)i), "fill");
    return count;
}

static void free_all(world *w, tl_range *ranges, int count) {
    int i;
    for (i = 0; i < count; i++) free_range(w, &ranges[i]);
}

static void a_heap_that_is_smaller_than_told_is_used_up_and_no_more(void **state) {
    static const uint64_t there[] = { 3 * MIB, 5 * MIB / 2, 9 * MIB };
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("a_heap_that_is_smaller_than_told_is_used_up_and_no_more")) skip();
    for (i = 0; i < sizeof there / sizeof *there; i++) {
        world w;
        vkshim_config config;
        vkt_desc device = {0};
        tl_range ranges[MOST_BLOCKS];
        int first, tier;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        config.real_heap_bytes[0] = there[i];  // of gigabytes that are told
        config.real_heap_bytes[1] = there[i];
        open_device(&w, &config, &device);
        w.desc.chunk_bytes = 4 * MIB;          // more than there is: halved until it fits
        w.desc.staging_bytes = MIB / 2;
        open_backend(&w);
        for (tier = TL_TIER_DEVICE; tier <= TL_TIER_HOST; tier++) {
            first = take_all(&w, (tl_tier)tier, MIB / 2, ranges);
            assert_true((uint64_t)first >= there[i] / MIB);
            free_all(&w, ranges, first);
            assert_int_equal(take_all(&w, (tl_tier)tier, MIB / 2, ranges), first);
            free_all(&w, ranges, first);
            assert_int_equal(tl_vk_drop_unused(&w.backend, 0), TL_OK);
        }
        close_machine(&w, "heap");
    }
    printf("group 2: %d heaps smaller than told, 2 tiers\n", (int)(sizeof there / sizeof *there));
}

// Nobody may ask for more than a heap is told to have, whether or not it has it.
static void nothing_larger_than_its_heap_is_asked_for(void **state) {
    static const uint64_t told[] = { MIB, 3 * MIB, 17 * MIB };
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("nothing_larger_than_its_heap_is_asked_for")) skip();
    for (i = 0; i < sizeof told / sizeof *told; i++) {
        world w;
        vkshim_config config;
        vkt_desc device = {0};
        tl_range ranges[MOST_BLOCKS], range;
        int count;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        config.heaps[0].size = config.heaps[1].size = told[i];
        open_device(&w, &config, &device);
        w.desc.chunk_bytes = 0;
        w.desc.staging_bytes = MIB / 2;
        open_backend(&w);
        assert_int_equal(add_range(&w, TL_TIER_DEVICE, told[i] + 1, &range), TL_ERROR_NO_MEMORY);
        count = take_all(&w, TL_TIER_DEVICE, MIB / 2, ranges);
        assert_true((uint64_t)count >= told[i] / MIB);
        free_all(&w, ranges, count);
        close_machine(&w, "heap");
    }
    printf("group 2: %d small heaps\n", (int)(sizeof told / sizeof *told));
}

// ============================================================================
// Group 5: alignment 256, 8 allocations, 16 MiB each
// ============================================================================

static void offsets_are_aligned_as_the_device_asks(void **state) {
    static const uint32_t alignments[] = { 64, 256 };
    play *p = (play *)malloc(sizeof *p);
    long operations = 0;
    int i, path;
    (void)state;
    if (!vkt_has_vulkan("offsets_are_aligned_as_the_device_asks")) { free(p); skip(); }
    assert_non_null(p);
    for (i = 0; i < 2; i++)
        for (path = 0; path < TL_VK_COPY_PATH_COUNT; path++) {
            vkshim_config config;
            vkt_desc device = {0};
            vkshim_default(&config, VKSHIM_MACHINE_SINGLE);
            config.storage_offset_alignment = alignments[i];
            config.non_coherent_atom = 1;
            config.buffer_alignment = 4096;
            memset(p, 0, sizeof *p);
            open_device(&p->w, &config, &device);
            p->w.desc.copy_path = (tl_vk_copy_path)path;
            play_steps(p, (uint64_t)i, 300);
            assert_int_equal(p->alignment, alignments[i]);
            close_device(&p->w);
            operations += p->operations;
        }
    printf("group 5: 2 alignments, 2 copy paths, %ld operations\n", operations);
    free(p);
}

static void eight_allocations_are_enough_and_not_exceeded(void **state) {
    int machine;
    (void)state;
    if (!vkt_has_vulkan("eight_allocations_are_enough_and_not_exceeded")) skip();
    for (machine = 0; machine < VKSHIM_MACHINE_COUNT; machine++) {
        world w;
        vkshim_config config;
        vkshim_counts now;
        tl_vk_counters counters;
        tl_range ranges[MOST_BLOCKS], range;
        void *host;
        int count;
        vkshim_default(&config, (vkshim_machine)machine);
        config.allocation_count = 8;
        open_machine(&w, &config);
        count = take_all(&w, TL_TIER_DEVICE, MIB / 16, ranges);
        assert_true(count >= 6 * 16);  // chunks of 1 MiB, one allocation for staging, one for a large map
        vkshim_report(&now);
        assert_true(now.live[VKSHIM_MEMORY] <= 8);
        assert_int_equal(add_range(&w, TL_TIER_HOST, MIB / 16, &range), TL_ERROR_NO_MEMORY);
        free_all(&w, ranges, count);
        // Empty chunks make room for another tier, and for a chunk of the usual size.
        expect_ok(&w, add_range(&w, TL_TIER_HOST, MIB / 16, &range), "add_range");
        tl_vk_measure(&w.backend, &counters);
        assert_true(counters.memory_bytes >= MIB);
        free_range(&w, &range);
        expect_ok(&w, add_range(&w, TL_TIER_HOST, 2 * MIB, &range), "add_range");
        expect_ok(&w, w.backend.map(w.backend.self, range, TL_MAP_READ, &host), "map");
        expect_ok(&w, w.backend.unmap(w.backend.self, range, TL_MAP_READ, host), "unmap");
        free_range(&w, &range);
        close_machine(&w, "eight allocations");
    }
    printf("group 5: 8 allocations, %d machines\n", (int)VKSHIM_MACHINE_COUNT);
}

// The limit is told from version 1.1 on; before, the driver refuses and the chunk is halved.
static void allocations_of_16_MiB_are_the_largest(void **state) {
    static const uint32_t versions[] = { VK_API_VERSION_1_0, VK_API_VERSION_1_1 };
    int i;
    (void)state;
    if (!vkt_has_vulkan("allocations_of_16_MiB_are_the_largest")) skip();
    for (i = 0; i < 2; i++) {
        world w;
        vkshim_config config;
        vkt_desc device = {0};
        tl_range ranges[4], range;
        int k;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        config.allocation_bytes = 16 * MIB;
        config.api_version = versions[i];
        open_device(&w, &config, &device);
        w.desc.chunk_bytes = 0;  // 64 MiB of these 4 GiB
        open_backend(&w);
        if (i) assert_int_equal(limits_of(&w).range_bytes, 16 * MIB);
        assert_int_equal(add_range(&w, TL_TIER_DEVICE, 16 * MIB + 1, &range), TL_ERROR_NO_MEMORY);
        for (k = 0; k < 4; k++) expect_ok(&w, add_range(&w, TL_TIER_DEVICE, 10 * MIB, &ranges[k]), "add_range");
        expect_ok(&w, add_range(&w, TL_TIER_HOST, 16 * MIB, &range), "the largest block");
        for (k = 0; k < 4; k++) expect_ok(&w, fill_and_expect(&w, ranges[k], (uint32_t)k), "fill");
        expect_ok(&w, fill_and_expect(&w, range, 77), "fill");
        free_all(&w, ranges, 4);
        free_range(&w, &range);
        close_machine(&w, "16 MiB");
    }
    printf("group 5: 16 MiB an allocation, 2 versions\n");
}

// Blocks that were freed while work on them is under way, or not even submitted, are waited for before there
// is no memory.
static void memory_of_freed_blocks_under_way_is_waited_for(void **state) {
    int fences, submits, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("memory_of_freed_blocks_under_way_is_waited_for")) skip();
    for (fences = 0; fences < 2; fences++)
        for (submits = 0; submits < 2; submits++) {
            world w;
            vkshim_config config;
            vkt_desc device = {0};
            tl_range ranges[3], range;
            tl_ticket ticket;
            int i;
            vkshim_default(&config, VKSHIM_MACHINE_SINGLE);
            config.real_heap_bytes[0] = 4 * MIB;
            config.delay_polls = 1000;
            device.disable_timeline = fences;
            open_device(&w, &config, &device);
            open_backend(&w);
            for (i = 0; i < 3; i++) {
                expect_ok(&w, add_range(&w, TL_TIER_DEVICE, MIB, &ranges[i]), "add_range");
                expect_ok(&w, w.backend.fill(w.backend.self, ranges[i], 1), "fill");
                if (submits) expect_ok(&w, w.backend.submit(w.backend.self, &ticket), "submit");
            }
            free_all(&w, ranges, 3);
            expect_ok(&w, add_range(&w, TL_TIER_DEVICE, 2 * MIB, &range), "memory that is free soon");
            free_range(&w, &range);
            close_machine(&w, "under way");
            cases++;
        }
    printf("group 5: freed under way: %d cases\n", cases);
}

// ============================================================================
// Group 11: which memory a tier is made of
// ============================================================================

// Bytes that live in a type of memory, as the shim counts them.
static uint64_t bytes_of_type(uint32_t type) {
    const vkshim_object *o;
    uint64_t bytes = 0;
    uint32_t i;
    for (i = 0; i < VKSHIM_BUCKETS; i++)
        for (o = vkshim.buckets[i]; o; o = o->next)
            if (o->kind == VKSHIM_MEMORY && o->type == type) bytes += o->bytes;
    return bytes;
}

// The types that a tier takes: of staging first, then of a block of each tier.
typedef struct choice { const char *name; vkshim_machine machine; uint32_t device_type, host_type; } choice;

static const choice choices[] = {
    { "no visible device memory", VKSHIM_MACHINE_DISCRETE, 0, 2 },
    { "small BAR", VKSHIM_MACHINE_SMALL_BAR, 0, 2 },
    { "no HOST_CACHED", VKSHIM_MACHINE_UNCACHED, 0, 1 },
    { "single type", VKSHIM_MACHINE_SINGLE, 0, 0 },
    { "single type, not coherent", VKSHIM_MACHINE_NON_COHERENT, 0, 0 },
};
#define CHOICES (int)(sizeof choices / sizeof *choices)

static void expect_types(world *w, const choice *c, uint32_t type_count) {
    static const tl_tier tiers[] = { TL_TIER_DEVICE, TL_TIER_HOST };
    int i;
    for (i = 0; i < 2; i++) {
        uint32_t type = tiers[i] == TL_TIER_DEVICE ? c->device_type : c->host_type, t;
        uint64_t before[VK_MAX_MEMORY_TYPES];
        tl_range range;
        for (t = 0; t < type_count; t++) before[t] = bytes_of_type(t);
        expect_ok(w, add_range(w, tiers[i], 3 * MIB, &range), c->name);
        for (t = 0; t < type_count; t++)
            if (t == type ? bytes_of_type(t) < before[t] + 3 * MIB : bytes_of_type(t) != before[t])
                fail_msg("%s: tier %s: memory of type %u, not %u", c->name, tiers[i] == TL_TIER_HOST ? "host" : "device", t, type);
        expect_ok(w, fill_and_expect(w, range, 5), c->name);
        free_range(w, &range);
        expect_ok(w, tl_vk_drop_unused(&w->backend, 0), c->name);
    }
}

static void each_tier_takes_the_best_type(void **state) {
    play *p = (play *)malloc(sizeof *p);
    long operations = 0;
    int i;
    (void)state;
    if (!vkt_has_vulkan("each_tier_takes_the_best_type")) { free(p); skip(); }
    assert_non_null(p);
    for (i = 0; i < CHOICES; i++) {
        vkshim_config config;
        vkt_desc device = {0};
        vkshim_default(&config, choices[i].machine);
        memset(p, 0, sizeof *p);
        open_device(&p->w, &config, &device);
        open_backend(&p->w);
        assert_true(bytes_of_type(choices[i].host_type) >= p->w.desc.staging_bytes);
        expect_types(&p->w, &choices[i], config.type_count);
        close_backend(&p->w, choices[i].name);
        play_steps(p, (uint64_t)i, 200);
        close_device(&p->w);
        operations += p->operations;
    }
    printf("group 11: %d machines, %ld operations\n", CHOICES, operations);
    free(p);
}

// The window through which the host sees device memory is for the engine: not even the last resort.
static void the_small_window_is_never_taken(void **state) {
    int tier, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("the_small_window_is_never_taken")) skip();
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        world w;
        vkshim_config config;
        vkt_desc device = {0};
        tl_range ranges[MOST_BLOCKS];
        int count;
        vkshim_default(&config, VKSHIM_MACHINE_SMALL_BAR);
        config.real_heap_bytes[0] = config.real_heap_bytes[1] = 4 * MIB;
        open_device(&w, &config, &device);
        w.desc.staging_bytes = MIB;
        open_backend(&w);
        count = take_all(&w, (tl_tier)tier, MIB / 2, ranges);
        assert_true(count >= 4);
        assert_int_equal(bytes_of_type(3), 0);
        free_all(&w, ranges, count);
        close_machine(&w, "small BAR");
        cases++;
    }
    printf("group 11: small BAR with full heaps: %d tiers\n", cases);
}

// Types that a buffer may not have, and types that are not for everyday use, are passed over.
static void types_that_are_not_allowed_are_passed_over(void **state) {
    uint32_t bits;
    int cases = 0;
    (void)state;
    if (!vkt_has_vulkan("types_that_are_not_allowed_are_passed_over")) skip();
    for (bits = 2; bits < 16; bits++) {
        world w;
        vkshim_config config;
        tl_range device, host;
        uint32_t t;
        if (!(bits & 6)) continue;  // nothing that the host sees but the window
        vkshim_default(&config, VKSHIM_MACHINE_SMALL_BAR);
        config.buffer_type_bits = bits;
        if (bits & 1) config.types[0].propertyFlags |= VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
        open_machine(&w, &config);
        expect_ok(&w, add_range(&w, TL_TIER_DEVICE, MIB / 2, &device), "device");
        expect_ok(&w, add_range(&w, TL_TIER_HOST, MIB / 2, &host), "host");
        expect_ok(&w, fill_and_expect(&w, device, 1), "device");
        expect_ok(&w, fill_and_expect(&w, host, 2), "host");
        for (t = 0; t < config.type_count; t++)
            if (!(bits >> t & 1) || t == 0) assert_int_equal(bytes_of_type(t), 0);
        free_range(&w, &device);
        free_range(&w, &host);
        close_machine(&w, "types");
        cases++;
    }
    printf("group 11: %d sets of allowed types\n", cases);
}

// ============================================================================
// What succeeds is silent
// ============================================================================

// Blocks in more chunks than there is memory for at once, a manager that evicts, compaction, frames of orders.
static void use_backend(tl_env *env, tl_backend *b) {
    static float data[16384];
    tl_range ranges[64];
    tl_manager_desc desc;
    tl_manager *m;
    tl_checkpoint_statistics statistics;
    uint64_t moved = 1;
    int i, round;
    memset(ranges, 0, sizeof ranges);
    for (i = 0; i < 64; i++) {
        ranges[i].bytes = i % 3 ? 300000 : 2000000;
        if (b->add_block(b->self, TL_TIER_DEVICE, ranges[i].bytes, &ranges[i].block)) fail_msg("%s", env->error.text);
        assert_int_equal(b->claim(b->self, ranges[i]), TL_OK);
        assert_int_equal(b->fill(b->self, ranges[i], 1), TL_OK);
    }
    for (i = 0; i < 64; i++) {
        if (i % 4 == 0) continue;
        assert_int_equal(b->release(b->self, ranges[i]), TL_OK);
        assert_int_equal(b->free_block(b->self, ranges[i].block), TL_OK);
    }
    for (i = 0; i < 8 && moved; i++) assert_int_equal(tl_vk_compact(b, UINT64_MAX, &moved), TL_OK);
    assert_int_equal(tl_vk_drop_unused(b, 0), TL_OK);
    memset(&desc, 0, sizeof desc);
    desc.device_budget_bytes = 300000;
    desc.host_budget_bytes = 600000;
    desc.eviction = TL_EVICTION_OLDEST;
    desc.codec = TL_CODEC_F16;
    assert_int_equal(tl_init_manager(env, b, &desc, &m), TL_OK);
    for (round = 0; round < 2; round++) {
        for (i = 0; i < 30; i++) {
            tl_save_desc save;
            memset(&save, 0, sizeof save);
            save.key.node = i;
            save.data = data;
            save.bytes = sizeof data;
            if (tl_save_checkpoint(env, m, &save)) fail_msg("%s", env->error.text);
        }
        for (i = 0; i < 30; i++) {
            tl_checkpoint_key key;
            memset(&key, 0, sizeof key);
            key.node = i;
            if (!tl_has_checkpoint(m, key)) continue;
            if (tl_take_checkpoint(env, m, key, data, sizeof data)) fail_msg("%s", env->error.text);
        }
    }
    tl_measure_manager(m, &statistics);
    assert_true(statistics.spills && statistics.compressions);
    tl_free_manager(m);
    for (i = 0; i < 64; i += 4) {
        assert_int_equal(b->release(b->self, ranges[i]), TL_OK);
        assert_int_equal(b->free_block(b->self, ranges[i].block), TL_OK);
    }
}

static uint64_t ticks(void *user) {
    static uint64_t now;
    (void)user;
    return now += 1000;
}

static void what_succeeds_is_silent(void **state) {
    const vkshim_machine machines[] = { VKSHIM_MACHINE_REAL, VKSHIM_MACHINE_DISCRETE, VKSHIM_MACHINE_NON_COHERENT };
    int i;
    (void)state;
    if (!vkt_has_vulkan("what_succeeds_is_silent")) skip();
    for (i = 0; i < 3; i++) {
        vkshim_config config;
        world w;
        long lines;
        tl_env env = logging_env(&lines);
        tl_measure_device_desc measure;
        tl_device measured;
        vkt_desc device = {0};
        vkshim_default(&config, machines[i]);
        if (machines[i] == VKSHIM_MACHINE_DISCRETE) config.real_heap_bytes[0] = 25 * MIB + MIB / 2;  // then other memory
        open_device(&w, &config, &device);
        w.desc.allow_host_memory = 1;
        w.desc.now_ns = ticks;
        assert_int_equal(tl_vk_init_backend(&env, &w.desc, &w.backend), TL_OK);
        use_backend(&env, &w.backend);
        memset(&measure, 0, sizeof measure);
        measure.sample_count = 1;
        measure.bytes = 3 * MIB;
        assert_int_equal(tl_measure_device(&env, &w.backend, &measure, &measured), TL_OK);
        tl_vk_free_backend(&env, &w.backend);
        if (!is_silent(&env, lines)) fail_msg("machine %d: %ld lines, last: %s", i, lines, env.error.text);
        close_device(&w);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_succeeds_is_silent),
        cmocka_unit_test(every_flush_and_invalidate_is_there_and_rounded),
        cmocka_unit_test(a_budget_that_drops_is_told_at_once),
        cmocka_unit_test(without_budgets_heaps_are_counted_apart),
        cmocka_unit_test(a_heap_that_is_smaller_than_told_is_used_up_and_no_more),
        cmocka_unit_test(nothing_larger_than_its_heap_is_asked_for),
        cmocka_unit_test(offsets_are_aligned_as_the_device_asks),
        cmocka_unit_test(eight_allocations_are_enough_and_not_exceeded),
        cmocka_unit_test(allocations_of_16_MiB_are_the_largest),
        cmocka_unit_test(memory_of_freed_blocks_under_way_is_waited_for),
        cmocka_unit_test(each_tier_takes_the_best_type),
        cmocka_unit_test(the_small_window_is_never_taken),
        cmocka_unit_test(types_that_are_not_allowed_are_passed_over),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_memory", tests, NULL, NULL);
}
