// The Vulkan backend against the CPU backend: the same calls, the same bytes, without a message of
// the validation layer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_support.h"
#include "support/vk_shim.c"
#include "support/account_checks.h"

// A Vulkan backend and the CPU backend side by side.
typedef struct pair {
    vkt v;
    tl_env env;
    tl_backend vk, cpu;
} pair;

static void open_pair(pair *p, const vkt_desc *device, const tl_vk_backend_desc *given) {
    tl_vk_backend_desc desc = {0};
    tl_cpu_backend_desc cpu = {0};
    tl_backend_limits limits;
    memset(p, 0, sizeof *p);
    vkt_open(device, &p->v);
    if (given) desc = *given;
    desc.device = p->v.device;
    if (tl_vk_init_backend(&p->env, &desc, &p->vk)) fail_msg("%s", p->env.error.text);
    p->vk.limits(p->vk.self, &limits);
    cpu.alignment_bytes = limits.alignment_bytes;
    assert_int_equal(tl_init_cpu_backend(&p->env, &cpu, &p->cpu), TL_OK);
}

static void close_pair(pair *p) {
    tl_vk_free_backend(&p->env, &p->vk);
    tl_free_cpu_backend(&p->env, &p->cpu);
    vkt_close(&p->v);
    assert_int_equal(vkt_messages(&p->v), 0);
}

static void write_range(pair *p, const tl_backend *backend, tl_range range, const void *bytes) {
    void *host;
    if (backend->map(backend->self, range, TL_MAP_WRITE, &host)) fail_msg("map: %s", p->env.error.text);
    if (range.bytes) memcpy(host, bytes, (size_t)range.bytes);
    if (backend->unmap(backend->self, range, TL_MAP_WRITE, host)) fail_msg("unmap: %s", p->env.error.text);
}

static void read_range(pair *p, const tl_backend *backend, tl_range range, void *bytes) {
    void *host;
    if (backend->map(backend->self, range, TL_MAP_READ, &host)) fail_msg("map: %s", p->env.error.text);
    if (range.bytes) memcpy(bytes, host, (size_t)range.bytes);
    assert_int_equal(backend->unmap(backend->self, range, TL_MAP_READ, host), TL_OK);
}

#define RANGES 24
#define MOST_BYTES 5000

// One range in both backends.
typedef struct twin { tl_range vk, cpu; } twin;

static void add_twin_of(pair *p, tl_random *random, tl_tier tier, uint64_t size, twin *t) {
    unsigned char bytes[MOST_BYTES];
    uint64_t i;
    for (i = 0; i < size; i++) bytes[i] = (unsigned char)tl_next_random(random);
    memset(t, 0, sizeof *t);
    assert_int_equal(p->vk.add_block(p->vk.self, tier, size, &t->vk.block), TL_OK);
    assert_int_equal(p->cpu.add_block(p->cpu.self, tier, size, &t->cpu.block), TL_OK);
    t->vk.bytes = t->cpu.bytes = size;
    assert_int_equal(p->vk.claim(p->vk.self, t->vk), TL_OK);
    assert_int_equal(p->cpu.claim(p->cpu.self, t->cpu), TL_OK);
    write_range(p, &p->vk, t->vk, bytes);
    write_range(p, &p->cpu, t->cpu, bytes);
}

static void add_twin(pair *p, tl_random *random, twin *t) {
    tl_tier tier = tl_next_random_below(random, 4) ? TL_TIER_DEVICE : TL_TIER_HOST;
    add_twin_of(p, random, tier, 1 + tl_next_random_below(random, MOST_BYTES), t);
}

static void free_twin(pair *p, twin *t) {
    assert_int_equal(p->vk.release(p->vk.self, t->vk), TL_OK);
    assert_int_equal(p->cpu.release(p->cpu.self, t->cpu), TL_OK);
    assert_int_equal(p->vk.free_block(p->vk.self, t->vk.block), TL_OK);
    assert_int_equal(p->cpu.free_block(p->cpu.self, t->cpu.block), TL_OK);
}

static void compare_twin(pair *p, const twin *t) {
    unsigned char vk[MOST_BYTES], cpu[MOST_BYTES];
    read_range(p, &p->vk, t->vk, vk);
    read_range(p, &p->cpu, t->cpu, cpu);
    if (memcmp(vk, cpu, (size_t)t->vk.bytes)) fail_msg("%d bytes differ", (int)t->vk.bytes);
}

// A part that both ranges have, from an aligned offset.
static tl_range part_of(tl_range range, uint64_t offset, uint64_t bytes) {
    range.offset += offset;
    range.bytes = bytes;
    return range;
}

// Copy a part that ends at the alignment or where the target ends: what lies behind belongs to nobody.
static void copy_twins(pair *p, tl_random *random, const twin *to, const twin *from, uint64_t alignment) {
    uint64_t least = to->vk.bytes < from->vk.bytes ? to->vk.bytes : from->vk.bytes;
    uint64_t offset = tl_next_random_below(random, least / alignment + 1) * alignment;
    uint64_t bytes = tl_next_random_below(random, (least - offset) / alignment + 1) * alignment;
    if (least == to->vk.bytes && tl_next_random_below(random, 2)) bytes = least - offset;
    assert_int_equal(p->vk.copy(p->vk.self, part_of(to->vk, offset, bytes), part_of(from->vk, offset, bytes)),
                     p->cpu.copy(p->cpu.self, part_of(to->cpu, offset, bytes), part_of(from->cpu, offset, bytes)));
}

// Compress into a range made for it, and expand into another.
static void convert_twin(pair *p, tl_random *random, const twin *from) {
    tl_codec codec = (tl_codec)(1 + tl_next_random_below(random, TL_CODEC_COUNT - 1));
    uint64_t plain = 1 + tl_next_random_below(random, from->vk.bytes), packed = tl_find_codec_bytes(codec, plain);
    twin small, back;
    add_twin_of(p, random, TL_TIER_DEVICE, packed, &small);
    add_twin_of(p, random, TL_TIER_DEVICE, plain, &back);
    assert_int_equal(p->vk.compress(p->vk.self, codec, small.vk, part_of(from->vk, 0, plain)), TL_OK);
    assert_int_equal(p->cpu.compress(p->cpu.self, codec, small.cpu, part_of(from->cpu, 0, plain)), TL_OK);
    assert_int_equal(p->vk.expand(p->vk.self, codec, back.vk, small.vk), TL_OK);
    assert_int_equal(p->cpu.expand(p->cpu.self, codec, back.cpu, small.cpu), TL_OK);
    compare_twin(p, &small);
    compare_twin(p, &back);
    free_twin(p, &small);
    free_twin(p, &back);
}

// Random work on random ranges, many of them at once, submitted now and then; then all bytes.
static void run_random(pair *p, uint64_t seed, int steps) {
    twin twins[RANGES];
    tl_random random = {0};
    tl_backend_limits limits;
    int i, step;
    random.state = seed;
    p->vk.limits(p->vk.self, &limits);
    for (i = 0; i < RANGES; i++) add_twin(p, &random, &twins[i]);
    for (step = 0; step < steps; step++) {
        int to = (int)tl_next_random_below(&random, RANGES), from = (int)tl_next_random_below(&random, RANGES);
        uint32_t word = (uint32_t)tl_next_random(&random);
        tl_ticket ticket;
        switch (tl_next_random_below(&random, 8)) {
        case 0: case 1: case 2:
            if (to != from) copy_twins(p, &random, &twins[to], &twins[from], limits.alignment_bytes);
            break;
        case 3: case 4:
            convert_twin(p, &random, &twins[from]);
            break;
        case 5:
            assert_int_equal(p->vk.fill(p->vk.self, twins[to].vk, word), TL_OK);
            assert_int_equal(p->cpu.fill(p->cpu.self, twins[to].cpu, word), TL_OK);
            break;
        case 6:
            free_twin(p, &twins[to]);
            add_twin(p, &random, &twins[to]);
            break;
        default:
            if (word & 1) assert_int_equal(p->vk.submit(p->vk.self, &ticket), TL_OK);
            else compare_twin(p, &twins[to]);
        }
    }
    for (i = 0; i < RANGES; i++) compare_twin(p, &twins[i]);
    for (i = 0; i < RANGES; i++) free_twin(p, &twins[i]);
}

static void random_work_gives_the_bytes_of_the_cpu(void **state) {
    vkt_desc device = {0};
    uint64_t seed;
    (void)state;
    if (!vkt_has_vulkan("random_work_gives_the_bytes_of_the_cpu")) skip();
    for (seed = 1; seed <= 6; seed++) {
        tl_vk_backend_desc desc = {0};
        pair p;
        device.disable_timeline = seed % 2 == 0;
        desc.copy_path = seed % 3 ? TL_VK_COPY_PATH_COMMAND : TL_VK_COPY_PATH_SHADER;
        desc.submit_bytes = seed == 5 ? 16384 : 0;
        open_pair(&p, &device, &desc);
        run_random(&p, seed, 300);
        close_pair(&p);
    }
}

static void accounts_keep_the_rules_of_the_cpu(void **state) {
    const uint64_t none[TL_TIER_COUNT] = { 0, 0 };
    vkt_desc device = {0};
    pair p;
    uint64_t account;
    (void)state;
    if (!vkt_has_vulkan("accounts_keep_the_rules_of_the_cpu")) skip();
    open_pair(&p, &device, NULL);
    check_accounts(&p.cpu);
    check_accounts(&p.vk);
    assert_int_equal(p.vk.open_account(p.vk.self, none, &account), TL_OK);
    assert_int_equal(tl_vk_free_backend(&p.env, &p.vk), TL_ERROR_INVALID_ARG);
    assert_string_equal(p.env.error.text,
                        "tl_vk_free_backend: backend: still in use (runs and managers: 1): free those first");
    assert_int_equal(p.vk.close_account(p.vk.self, account), TL_OK);
    close_pair(&p);
    assert_int_equal(tl_vk_free_backend(&p.env, &p.vk), TL_OK);  // freed already
}

// A machine with queues that only transfer: what one queue writes and another uses must be ordered by a semaphore, and so must be
// what one reads and another writes. The shim holds these rules; this version of the validation layer sees one queue below the
// shim, and does not follow timelines between submits.
static void copies_between_tiers_are_ordered_by_semaphores(void **state) {
    const char *name = "copies_between_tiers_are_ordered_by_semaphores";
    vkt_desc device = {0};
    uint64_t seed;
    (void)state;
    if (!vkt_has_vulkan(name)) skip();
    for (seed = 1; seed <= 8; seed++) {
        vkshim_config config;
        vkshim_counts counts;
        tl_vk_backend_desc desc = {0};
        pair p;
        vkshim_default(&config, seed % 2 ? VKSHIM_MACHINE_DISCRETE : VKSHIM_MACHINE_REAL);
        config.transfer_family = 1;
        if (seed > 4) vkshim_add_engines(&config);
        config.strict_ownership = 1;
        config.delay_polls = seed % 4 > 1 ? 5 : 0;
        vkshim_reset(&config);
        device.get_instance_proc = vkshim_get_instance_proc;
        device.enable_transfer = 1;
        device.disable_validation = 1;
        open_pair(&p, &device, &desc);
        assert_true(p.v.device.transfer_queue != VK_NULL_HANDLE);
        assert_int_not_equal(p.v.device.transfer_family, p.v.device.queue_family);
        assert_int_equal(p.v.device.upload_queue != VK_NULL_HANDLE, seed > 4);
        run_random(&p, seed, 300);
        close_pair(&p);
        vkshim_report(&counts);
        if (counts.violation_count) fail_msg("%s", counts.violation_text);
    }
}

static tl_range add_range(pair *p, uint64_t bytes) {
    tl_range range;
    memset(&range, 0, sizeof range);
    range.bytes = bytes;
    assert_int_equal(p->vk.add_block(p->vk.self, TL_TIER_DEVICE, bytes, &range.block), TL_OK);
    assert_int_equal(p->vk.claim(p->vk.self, range), TL_OK);
    return range;
}

static void order_one(pair *p, tl_range range, int writes) {
    tl_access access;
    access.range = range;
    access.writes = writes;
    assert_int_equal(p->vk.order(p->vk.self, &access, 1), TL_OK);
}

// The barrier that the second `order` needs comes before the caller's commands, so the first one's
// range is still going to be written after it.
static void what_was_ordered_in_two_calls_is_remembered_over_the_barrier_between_them(void **state) {
    vkt_desc device = {0};
    VkCommandBuffer commands;
    VkDescriptorBufferInfo info;
    tl_range written, read, copy;
    uint32_t words[64];
    pair p;
    (void)state;
    if (!vkt_has_vulkan("what_was_ordered_in_two_calls_is_remembered_over_the_barrier_between_them")) skip();
    open_pair(&p, &device, NULL);
    written = add_range(&p, sizeof words);
    read = add_range(&p, sizeof words);
    copy = add_range(&p, sizeof words);
    order_one(&p, written, 1);
    assert_int_equal(p.vk.fill(p.vk.self, read, 1), TL_OK);
    order_one(&p, read, 0);
    assert_int_equal(tl_vk_find_commands(&p.vk, &commands), TL_OK);
    assert_int_equal(tl_vk_find_buffer(&p.vk, written, &info), TL_OK);
    p.v.vk.CmdFillBuffer(commands, info.buffer, info.offset, info.range, 77);
    assert_int_equal(p.vk.copy(p.vk.self, copy, written), TL_OK);
    read_range(&p, &p.vk, copy, words);
    assert_int_equal(words[63], 77);
    close_pair(&p);  // a hazard would be a message
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_work_gives_the_bytes_of_the_cpu),
        cmocka_unit_test(accounts_keep_the_rules_of_the_cpu),
        cmocka_unit_test(copies_between_tiers_are_ordered_by_semaphores),
        cmocka_unit_test(what_was_ordered_in_two_calls_is_remembered_over_the_barrier_between_them),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_backend", tests, NULL, NULL);
}
