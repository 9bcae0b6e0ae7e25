// The Vulkan backend on machines that this one is not: memory that must be flushed, budgets that drop, heaps
// that lie, few and small allocations, other memory types. All faked by the shim, which enforces what it fakes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "vk_faults.h"

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

#define MOST_BLOCKS 64

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
        open_backend(&w);
        assert_int_equal(add_range(&w, TL_TIER_DEVICE, told[i] + 1, &range), TL_ERROR_NO_MEMORY);
        count = take_all(&w, TL_TIER_DEVICE, MIB / 2, ranges);
        assert_true((uint64_t)count >= told[i] / MIB);
        free_all(&w, ranges, count);
        close_machine(&w, "heap");
    }
    printf("group 2: %d small heaps\n", (int)(sizeof told / sizeof *told));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flush_and_invalidate_is_there_and_rounded),
        cmocka_unit_test(a_budget_that_drops_is_told_at_once),
        cmocka_unit_test(without_budgets_heaps_are_counted_apart),
        cmocka_unit_test(a_heap_that_is_smaller_than_told_is_used_up_and_no_more),
        cmocka_unit_test(nothing_larger_than_its_heap_is_asked_for),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_memory", tests, NULL, NULL);
}
