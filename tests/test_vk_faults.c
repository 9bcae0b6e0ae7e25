// The Vulkan backend while Vulkan fails: out of memory at every call, a device that is lost at every
// call, entry points that are not there, two threads at one queue. All through the fault shim.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_faults.h"

// ============================================================================
// Work that uses every function of the backend. It stops at the first error and gives back what it took.
// ============================================================================

#define FLOATS 1500
#define BYTES ((uint64_t)FLOATS * 4)

typedef tl_result (*scenario_fn)(world *w);

static float number_of(uint64_t seed, int i) {
    return (float)((int64_t)(tl_mix_u64(seed, (uint64_t)i) % 2001) - 1000);
}

static void fill_numbers(float *numbers, int count, uint64_t seed) {
    int i;
    for (i = 0; i < count; i++) numbers[i] = number_of(seed, i);
}

// A float range with these numbers; what fails is given back.
static tl_result add_numbers(world *w, tl_tier tier, uint64_t seed, tl_range *range) {
    float numbers[FLOATS];
    tl_result result = add_range(w, tier, BYTES, range);
    fill_numbers(numbers, FLOATS, seed);
    return result ? result : write_range(w, *range, numbers);
}

// TL_ERROR_CORRUPT where a range is not that.
static tl_result expect_numbers(world *w, tl_range range, const float *numbers) {
    float read[FLOATS];
    tl_result result = read_range(w, range, read);
    return result ? result : memcmp(read, numbers, (size_t)range.bytes) ? TL_ERROR_CORRUPT : TL_OK;
}

enum { A, B, SUM, SPILLED, BACK, SMALL, LARGE, EXTREMES, CHECKSUM, RANGES };

static tl_result move_and_convert(world *w, tl_range *r) {
    const tl_backend *b = &w->backend;
    tl_result result = b->copy(b->self, r[SPILLED], r[A]);
    if (!result) result = b->copy(b->self, r[BACK], r[SPILLED]);
    if (!result) result = b->compress(b->self, TL_CODEC_Q8, r[SMALL], r[A]);
    if (!result) result = b->expand(b->self, TL_CODEC_Q8, r[LARGE], r[SMALL]);
    if (!result) result = b->fill(b->self, r[SUM], 0);
    if (!result) result = tl_vk_record_add(b, r[SUM], r[A]);
    if (!result) result = tl_vk_record_add(b, r[SUM], r[B]);
    if (!result) result = tl_vk_record_min_max(b, r[EXTREMES], r[A]);
    if (!result) result = tl_vk_record_checksum(b, r[CHECKSUM], r[A]);
    return result;
}

static tl_result run_own_kernel(world *w, tl_range *r) {
    const tl_backend *b = &w->backend;
    tl_vk_kernel_desc desc = {0};
    tl_vk_kernel *kernel;
    tl_access accesses[2];
    tl_range bound[2];
    uint32_t push[3] = {FLOATS, 0, 0}, size = 64;
    tl_ticket ticket;
    tl_result result;
    desc.words = tli_vk_words_of(TLI_VK_SHADER_ADD).words;
    desc.word_count = tli_vk_words_of(TLI_VK_SHADER_ADD).count;
    desc.buffer_count = 2;
    desc.push_bytes = 12;
    desc.constants = &size;
    desc.constant_count = 1;
    result = tl_vk_init_kernel(b, &desc, &kernel);
    if (result) return result;
    accesses[0].range = bound[0] = r[SUM];
    accesses[0].writes = 1;
    accesses[1].range = bound[1] = r[A];
    accesses[1].writes = 0;
    result = tl_vk_record_time(b, 0);
    if (!result) result = b->order(b->self, accesses, 2);
    if (!result) result = tl_vk_record_kernel(b, kernel, bound, push, (FLOATS + 63) / 64, 1, 1);
    if (!result) result = tl_vk_record_time(b, 1);
    if (!result) result = b->submit(b->self, &ticket);
    // The kernel may go once its work has passed; what is not submitted is waited for too.
    finish(w);
    tl_vk_free_kernel(b, kernel);
    return result;
}

static tl_result expect_results(world *w, tl_range *r) {
    float numbers[FLOATS], sums[FLOATS], expanded[FLOATS];
    unsigned char packed[BYTES];
    uint32_t sum[2], read_sum[2];
    tl_vk_extremes extremes;
    float least = 0, largest = 0, low, high;
    tl_result result;
    int i;
    fill_numbers(numbers, FLOATS, 1);
    low = high = numbers[0];
    for (i = 0; i < FLOATS; i++) {
        sums[i] = numbers[i] + number_of(2, i) + numbers[i];
        if (numbers[i] < low) low = numbers[i];
        if (numbers[i] > high) high = numbers[i];
    }
    tl_compress_bytes(TL_CODEC_Q8, packed, numbers, BYTES);
    tl_expand_bytes(TL_CODEC_Q8, expanded, packed, BYTES);
    result = expect_numbers(w, r[SUM], sums);
    if (!result) result = expect_numbers(w, r[BACK], numbers);
    if (!result) result = expect_numbers(w, r[SPILLED], numbers);
    if (!result) result = expect_numbers(w, r[LARGE], expanded);
    if (!result) result = read_range(w, r[CHECKSUM], read_sum);
    if (!result) result = read_range(w, r[EXTREMES], &extremes);
    if (result) return result;
    tl_vk_checksum_bytes(numbers, BYTES, sum);
    if (memcmp(sum, read_sum, sizeof sum)) return TL_ERROR_CORRUPT;
    if (!tl_vk_read_extremes(&extremes, &least, &largest)) return TL_ERROR_CORRUPT;
    return least == low && largest == high ? TL_OK : TL_ERROR_CORRUPT;
}

// Time, house keeping, and a block that needs a chunk of its own and a staging buffer of its own.
static tl_result run_errands(world *w) {
    const tl_backend *b = &w->backend;
    uint64_t times[2], moved;
    tl_vk_copy_path path;
    tl_ticket ticket;
    tl_range large = {0};
    tl_result result = tl_vk_read_times(b, 0, 2, times);
    if (!result && times[0] > times[1]) result = TL_ERROR_CORRUPT;
    if (!result) result = tl_vk_compact(b, UINT64_MAX, &moved);
    if (!result) result = tl_vk_measure_copies(b, &path);
    if (!result) result = add_range(w, TL_TIER_DEVICE, LARGE_BYTES, &large);
    if (!result) result = fill_and_expect(w, large, 0x01020304);
    free_range(w, &large);
    if (!result) result = b->submit(b->self, &ticket);
    if (!result) result = b->poll(b->self, ticket) == TL_NOT_READY ? TL_OK : b->poll(b->self, ticket);
    if (!result) result = b->wait(b->self, ticket);
    if (!result) result = b->check(b->self);
    return result ? result : tl_vk_drop_unused(b, 0);
}

static tl_result use_backend(world *w) {
    tl_range r[RANGES];
    tl_result result;
    int i;
    memset(r, 0, sizeof r);
    result = add_numbers(w, TL_TIER_DEVICE, 1, &r[A]);
    if (!result) result = add_numbers(w, TL_TIER_DEVICE, 2, &r[B]);
    if (!result) result = add_range(w, TL_TIER_DEVICE, BYTES, &r[SUM]);
    if (!result) result = add_range(w, TL_TIER_HOST, BYTES, &r[SPILLED]);
    if (!result) result = add_range(w, TL_TIER_DEVICE, BYTES, &r[BACK]);
    if (!result) result = add_range(w, TL_TIER_DEVICE, tl_find_codec_bytes(TL_CODEC_Q8, BYTES), &r[SMALL]);
    if (!result) result = add_range(w, TL_TIER_DEVICE, BYTES, &r[LARGE]);
    if (!result) result = add_range(w, TL_TIER_DEVICE, 16, &r[EXTREMES]);
    if (!result) result = add_range(w, TL_TIER_DEVICE, 8, &r[CHECKSUM]);
    if (!result) result = move_and_convert(w, r);
    if (!result) result = run_own_kernel(w, r);
    if (!result) result = expect_results(w, r);
    if (!result) result = run_errands(w);
    for (i = 0; i < RANGES; i++) free_range(w, &r[i]);
    return result;
}

// ============================================================================
// A manager that spills and compresses
// ============================================================================

#define CHECKPOINTS 8

static tl_checkpoint_key key_of(int node) {
    tl_checkpoint_key key = {0};
    key.node = node;
    return key;
}

static tl_result save_checkpoints(world *w, tl_manager *manager) {
    float numbers[FLOATS];
    tl_result result = TL_OK;
    int i;
    for (i = 0; i < CHECKPOINTS && !result; i++) {
        tl_save_desc save = {0};
        fill_numbers(numbers, FLOATS, (uint64_t)i);
        save.key = key_of(i);
        save.data = numbers;
        save.bytes = BYTES;
        save.cost = 1;
        save.keep = 1;
        save.lossless = i % 2 == 0;
        result = tl_save_checkpoint(&w->env, manager, &save);
    }
    return result;
}

// f16 holds these numbers exactly, so what was compressed comes back as it was.
static tl_result take_checkpoints(world *w, tl_manager *manager) {
    float numbers[FLOATS], read[FLOATS];
    const void *peeked;
    uint64_t bytes;
    tl_result result = TL_OK;
    int i;
    for (i = 0; i < CHECKPOINTS && !result; i++) {
        fill_numbers(numbers, FLOATS, (uint64_t)i);
        if (i % 4 == 0) {
            result = tl_peek_checkpoint(&w->env, manager, key_of(i), &peeked, &bytes);
            if (!result && (bytes != BYTES || memcmp(peeked, numbers, BYTES))) result = TL_ERROR_CORRUPT;
            if (!result) result = tl_release_checkpoint(&w->env, manager, key_of(i));
        }
        if (!result) result = tl_take_checkpoint(&w->env, manager, key_of(i), read, BYTES);
        if (!result && memcmp(read, numbers, BYTES)) result = TL_ERROR_CORRUPT;
    }
    return result;
}

// Whatever is still held, though a save or a take failed, has its bytes.
static void expect_held(world *w, tl_manager *manager) {
    float numbers[FLOATS], read[FLOATS];
    int i;
    calm(w);
    for (i = 0; i < CHECKPOINTS; i++) {
        if (!tl_has_checkpoint(manager, key_of(i))) continue;
        fill_numbers(numbers, FLOATS, (uint64_t)i);
        (void)tl_release_checkpoint(&w->env, manager, key_of(i));
        if (tl_take_checkpoint(&w->env, manager, key_of(i), read, BYTES))
            fail_msg("checkpoint %d: %s", i, w->env.error.text);
        assert_memory_equal(read, numbers, BYTES);
    }
}

static tl_result use_manager(world *w) {
    tl_manager_desc desc = {0};
    tl_manager *manager;
    tl_result result;
    desc.device_budget_bytes = 4 * BYTES + BYTES / 2 + 2048;
    desc.host_budget_bytes = TL_UNLIMITED;
    desc.codec = TL_CODEC_F16;
    result = tl_init_manager(&w->env, &w->backend, &desc, &manager);
    if (result) return result;
    result = save_checkpoints(w, manager);
    if (!result) {
        tl_checkpoint_statistics statistics;
        tl_measure_manager(manager, &statistics);
        if (!statistics.spills || !statistics.compressions)
            fail_msg("the manager: %d spills, %d compressions", (int)statistics.spills,
                     (int)statistics.compressions);
        result = take_checkpoints(w, manager);
    }
    if (result && result != TL_ERROR_DEVICE_LOST) expect_held(w, manager);
    tl_free_manager(manager);
    return result;
}

// ============================================================================
// A training step whose activations are spilled and made again
// ============================================================================

#define LAYERS 7

typedef struct training {
    world   *w;
    tl_range weights[LAYERS], gradients[LAYERS];
} training;

// out = in + weight
static tl_result layer_forward(const tl_kernel_call *call, void *user) {
    training *t = (training *)user;
    const tl_backend *b = &t->w->backend;
    tl_result result = b->copy(b->self, call->outputs[0].range, call->inputs[0].range);
    return result ? result : tl_vk_record_add(b, call->outputs[0].range, t->weights[call->node - 1]);
}

// Gradients that depend on the activation, so that a wrong one shows.
static tl_result layer_backward(const tl_kernel_call *call, void *user) {
    training *t = (training *)user;
    const tl_backend *b = &t->w->backend;
    tl_range gradient = t->gradients[call->node - 1];
    tl_result result = tl_vk_record_add(b, gradient, call->output_grads[0].range);
    if (!result) result = tl_vk_record_add(b, gradient, call->inputs[0].range);
    if (!result && call->input_grads[0].range.bytes) {
        result = tl_vk_record_add(b, call->input_grads[0].range, call->output_grads[0].range);
        if (!result) result = tl_vk_record_add(b, call->input_grads[0].range, call->inputs[0].range);
    }
    return result;
}

// What the gradients must be; they are sums of small whole numbers, so exact.
static tl_result expect_gradients(world *w, training *t) {
    float activations[LAYERS + 1][FLOATS], gradient[FLOATS], expected[FLOATS];
    tl_result result = TL_OK;
    int i, l;
    fill_numbers(activations[0], FLOATS, 99);
    for (l = 0; l < LAYERS; l++)
        for (i = 0; i < FLOATS; i++) activations[l + 1][i] = activations[l][i] + number_of((uint64_t)l, i);
    for (i = 0; i < FLOATS; i++) gradient[i] = 1.0f;
    for (l = LAYERS - 1; l >= 0 && !result; l--) {
        for (i = 0; i < FLOATS; i++) expected[i] = gradient[i] + activations[l][i];
        result = expect_numbers(w, t->gradients[l], expected);
        for (i = 0; i < FLOATS; i++) gradient[i] += activations[l][i];
    }
    return result;
}

static tl_result run_training(world *w, training *t, tl_run *run) {
    const tl_backend *b = &w->backend;
    float numbers[FLOATS];
    tl_tensor input = {0};
    tl_run_report report;
    tl_result result;
    int l;
    fill_numbers(numbers, FLOATS, 99);
    result = tl_write_tensor(run, input, numbers, BYTES);
    for (l = 0; l < LAYERS && !result; l++) result = b->fill(b->self, t->gradients[l], 0);
    if (!result) result = tl_run_plan(run);
    if (result) return result;
    tl_measure_run(run, &report);
    if (!report.spill_count || !report.fetch_count) fail_msg("%s", "the training step spilled nothing");
    return expect_gradients(w, t);
}

static tl_result init_training(world *w, training *t, tl_run **run) {
    tl_layer layers[LAYERS];
    tl_run_desc desc = {0};
    int l;
    memset(layers, 0, sizeof layers);
    for (l = 0; l < LAYERS; l++) {
        layers[l].forward = layer_forward;
        layers[l].backward = layer_backward;
        layers[l].user = t;
        layers[l].output_bytes = BYTES;
    }
    desc.backend = &w->backend;
    desc.budget_bytes = 6 * (BYTES + 256);
    desc.host_budget_bytes = TL_UNLIMITED;
    return tl_init_layer_run(&w->env, &desc, layers, LAYERS, BYTES, run);
}

static tl_result use_run(world *w) {
    training t;
    tl_run *run = NULL;
    tl_result result = TL_OK;
    int l;
    memset(&t, 0, sizeof t);
    t.w = w;
    for (l = 0; l < LAYERS && !result; l++) {
        result = add_numbers(w, TL_TIER_DEVICE, (uint64_t)l, &t.weights[l]);
        if (!result) result = add_range(w, TL_TIER_DEVICE, BYTES, &t.gradients[l]);
    }
    if (!result) result = init_training(w, &t, &run);
    if (!result) result = run_training(w, &t, run);
    if (result && run && result != TL_ERROR_DEVICE_LOST) {  // once there is memory again
        calm(w);
        expect_ok(w, run_training(w, &t, run), "a training step, again");
    }
    tl_free_run(run);
    for (l = 0; l < LAYERS; l++) {
        free_range(w, &t.weights[l]);
        free_range(w, &t.gradients[l]);
    }
    return result;
}

static const struct { const char *name; scenario_fn run; } scenarios[] = {
    { "backend", use_backend }, { "manager", use_manager }, { "run", use_run },
};
#define SCENARIOS (int)(sizeof scenarios / sizeof *scenarios)

// ============================================================================
// Group 1: out of memory at every call
// ============================================================================

static void init_survives_every_failure(void **state) {
    int v, kind;
    long at, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("init_survives_every_failure")) skip();
    for (v = 0; v < VARIANTS; v++) {
        world w;
        open_variant(&w, &variants[v]);
        for (kind = 0; kind < FAULT_KINDS; kind++) {
            for (at = 1; ; at += thinned()) {
                uint64_t before = injected();
                tl_result result;
                plan_fault(&w, (fault_kind)kind, at);
                result = tl_vk_init_backend(&w.env, &w.desc, &w.backend);
                if (!fault_happened(&w, (fault_kind)kind, at, before)) break;
                cases++;
                if (!result) tl_vk_free_backend(&w.env, &w.backend);
                else assert_true(result == TL_ERROR_NO_MEMORY && w.env.error.text[0]);
                assert_null(w.backend.self);
                expect_nothing_left(&w, variants[v].name);
            }
            close_backend(&w, variants[v].name);
        }
        close_device(&w);
    }
    printf("group 1: init: %ld call sites, %d backends\n", cases, VARIANTS);
}

// What must not change while the faults rain: a range in either tier.
typedef struct held { tl_range device, host; float numbers[FLOATS]; } held;

static void hold(world *w, held *h) {
    expect_ok(w, add_numbers(w, TL_TIER_DEVICE, 7, &h->device), "held");
    expect_ok(w, add_numbers(w, TL_TIER_HOST, 7, &h->host), "held");
    fill_numbers(h->numbers, FLOATS, 7);
    finish(w);
}

static void expect_held_ranges(world *w, const held *h, const char *what) {
    tl_backend_counters counters;
    const tli_vk *b = (const tli_vk *)w->backend.self;
    vkshim_counts now;
    int tier;
    expect_ok(w, expect_numbers(w, h->device, h->numbers), what);
    expect_ok(w, expect_numbers(w, h->host, h->numbers), what);
    if (b->mapping_count || b->slot_count)
        fail_msg("%s: %d mappings and %d pieces of staging left", what, b->mapping_count, b->slot_count);
    w->backend.counters(w->backend.self, &counters);
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        if (counters.block_count[tier] != 1 || counters.claim_count[tier] != 1)
            fail_msg("%s: %d blocks and %d claims in tier %s", what, (int)counters.block_count[tier],
                     (int)counters.claim_count[tier], tier == TL_TIER_HOST ? "host" : "device");
    vkshim_report(&now);
    if (now.violation_count) fail_msg("%s: %s", what, vkshim_violation(0));
}

#define WALK 25  // calls on one backend: what the layer remembers of submits makes long lists slow

// One scenario under one kind of fault, at each of its calls in turn from *from on; 0 = behind the last.
static long walk_faults(world *w, const held *h, scenario_fn scenario, fault_kind kind, const char *what, long *from) {
    long at, cases = 0;
    char text[96];
    expect_ok(w, scenario(w), what);
    for (at = *from; cases < WALK; at += thinned()) {
        uint64_t before = injected();
        tl_result result;
        snprintf(text, sizeof text, "%s, fault %d at call %ld", what, (int)kind, at);
        plan_fault(w, kind, at);
        result = scenario(w);
        calm(w);
        *from = 0;
        if (injected() == before && (kind != FAULT_ENV || w->alloc.count < at)) break;
        cases++;
        *from = at + thinned();
        if (result && result != TL_ERROR_NO_MEMORY && result != TL_ERROR_KERNEL)
            fail_msg("%s: %s: %s", text, tl_name_result(result), w->env.error.text);
        expect_ok(w, scenario(w), text);
        expect_held_ranges(w, h, text);
    }
    expect_ok(w, scenario(w), what);
    return cases;
}

// A backend under at most WALK faults from *at on; *at = 0 behind the last.
static long walk_on(int v, int s, fault_kind kind, long *at) {
    world w;
    held h;
    long cases;
    open_variant(&w, &variants[v]);
    w.desc.staging_bytes = 1 << 20;     // LARGE_BYTES go through it in a few pieces
    open_backend(&w);
    hold(&w, &h);
    cases = walk_faults(&w, &h, scenarios[s].run, kind, scenarios[s].name, at);
    free_range(&w, &h.device);
    free_range(&w, &h.host);
    expect_idle(&w, scenarios[s].name);
    close_backend(&w, scenarios[s].name);
    close_device(&w);
    return cases;
}

static void work_survives_every_failure(void **state) {
    int v, s, kind;
    (void)state;
    if (!vkt_has_vulkan("work_survives_every_failure")) skip();
    for (s = 0; s < SCENARIOS; s++) {
        long cases = 0, at;
        for (v = 0; v < VARIANTS; v++)
            for (kind = 0; kind < FAULT_KINDS; kind++)
                for (at = 1; at;) cases += walk_on(v, s, (fault_kind)kind, &at);
        printf("group 1: %s: %ld call sites, %d backends\n", scenarios[s].name, cases, VARIANTS);
    }
}

// A command buffer that cannot be ended is recorded again: results and times come with the next call.
static void a_command_buffer_that_cannot_be_ended_is_recorded_again(void **state) {
    int v;
    (void)state;
    if (!vkt_has_vulkan("a_command_buffer_that_cannot_be_ended_is_recorded_again")) skip();
    for (v = 0; v < VARIANTS; v++) {
        world w;
        held h;
        vkshim_config config;
        const tl_backend *b = &w.backend;
        tl_ticket ticket;
        uint64_t ns;
        float read[FLOATS];
        uint32_t fives[FLOATS], i;
        for (i = 0; i < FLOATS; i++) fives[i] = 5;
        open_variant(&w, &variants[v]);
        open_backend(&w);
        hold(&w, &h);
        config = w.config;
        config.fail_call = "vkEndCommandBuffer";
        config.fail_at = 1;
        vkshim_change(&config);
        expect_ok(&w, b->fill(b->self, h.device, 5), "fill");
        expect_ok(&w, tl_vk_record_time(b, 0), "record_time");
        assert_int_equal(b->submit(b->self, &ticket), TL_ERROR_NO_MEMORY);
        expect_ok(&w, read_range(&w, h.device, read), "read");
        assert_memory_equal(read, fives, sizeof fives);
        expect_ok(&w, tl_vk_read_times(b, 0, 1, &ns), "read_times");
        expect_ok(&w, fill_and_expect(&w, h.device, 6), "written again");
        expect_ok(&w, tl_vk_record_time(b, 0), "record_time");
        expect_ok(&w, tl_vk_read_times(b, 0, 1, &ns), "read_times");
        expect_ok(&w, use_backend(&w), "backend");
        free_range(&w, &h.device);
        free_range(&w, &h.host);
        expect_idle(&w, variants[v].name);
        close_backend(&w, variants[v].name);
        close_device(&w);
    }
    printf("group 1: vkEndCommandBuffer, %d backends\n", VARIANTS);
}

// A wait that fails is not the end of it: nothing that the device uses is destroyed.
static void freeing_waits_though_a_wait_fails(void **state) {
    int v;
    (void)state;
    if (!vkt_has_vulkan("freeing_waits_though_a_wait_fails")) skip();
    for (v = 0; v < VARIANTS; v++) {
        world w;
        held h;
        vkshim_config config;
        tl_ticket ticket;
        open_variant(&w, &variants[v]);
        open_backend(&w);
        hold(&w, &h);
        config = w.config;
        config.delay_polls = 1000;
        config.fail_call = w.v.device.timeline_enabled ? "vkWaitSemaphoresKHR" : "vkWaitForFences";
        config.fail_at = 1;
        config.fail_count = 3;
        vkshim_change(&config);
        expect_ok(&w, w.backend.fill(w.backend.self, h.device, 5), "fill");
        expect_ok(&w, w.backend.submit(w.backend.self, &ticket), "submit");
        tl_vk_free_backend(&w.env, &w.backend);
        calm(&w);
        expect_nothing_left(&w, variants[v].name);
        close_device(&w);
    }
    printf("group 1: a wait that fails when all is freed, %d backends\n", VARIANTS);
}

// ============================================================================
// Group 3: the device is lost at every call that can say so
// ============================================================================

typedef enum loss { LOSS_SUBMIT, LOSS_WAIT, LOSS_POLL, LOSS_QUERY, LOSS_COUNT } loss;

static void plan_loss(world *w, loss at_what, uint64_t at) {
    vkshim_config config = w->config;
    config.lose_at_submit = at_what == LOSS_SUBMIT ? at : 0;
    config.lose_at_wait = at_what == LOSS_WAIT ? at : 0;
    config.lose_at_poll = at_what == LOSS_POLL ? at : 0;
    if (at_what == LOSS_QUERY) {
        config.fail_call = "vkGetQueryPoolResults";
        config.fail_at = at;
        config.fail_with = VK_ERROR_DEVICE_LOST;
    }
    vkshim_change(&config);
}

// Every function that could use the device says that it is gone.
static void expect_sticky(world *w, const held *h) {
    const tl_backend *b = &w->backend;
    const tl_result lost = TL_ERROR_DEVICE_LOST;
    tl_access access;
    tl_ticket ticket = {0};
    tl_vk_copy_path path;
    tl_vk_kernel_desc kernel_desc = {0};
    tl_vk_kernel *kernel;
    tl_range empty = {0};
    VkCommandBuffer commands;
    uint64_t block, bytes, times[2];
    void *host;
    access.range = h->device;
    access.writes = 1;
    assert_int_equal(b->add_block(b->self, TL_TIER_DEVICE, 64, &block), lost);
    assert_int_equal(b->add_block(b->self, TL_TIER_HOST, 64, &block), lost);
    assert_int_equal(b->claim(b->self, h->device), lost);
    assert_int_equal(b->copy(b->self, h->device, h->host), lost);
    assert_int_equal(b->compress(b->self, TL_CODEC_F16, h->device, h->host), lost);
    assert_int_equal(b->expand(b->self, TL_CODEC_F16, h->device, h->host), lost);
    assert_int_equal(b->fill(b->self, h->device, 1), lost);
    assert_int_equal(b->order(b->self, &access, 1), lost);
    assert_int_equal(b->submit(b->self, &ticket), lost);
    assert_int_equal(b->poll(b->self, ticket), lost);
    assert_int_equal(b->wait(b->self, ticket), lost);
    assert_int_equal(b->check(b->self), lost);
    assert_int_equal(b->map(b->self, h->device, TL_MAP_READ, &host), lost);
    assert_int_equal(b->map(b->self, h->host, TL_MAP_WRITE, &host), lost);
    assert_int_equal(b->map(b->self, h->host, TL_MAP_CHANGE, &host), lost);
    assert_int_equal(b->map(b->self, empty, TL_MAP_WRITE, &host), lost);
    assert_int_equal(tl_vk_find_commands(b, &commands), lost);
    assert_int_equal(tl_vk_order(b, &access, 1, VK_PIPELINE_STAGE_TRANSFER_BIT, 0), lost);
    assert_int_equal(tl_vk_compact(b, 1, &bytes), lost);
    assert_int_equal(tl_vk_measure_copies(b, &path), lost);
    assert_int_equal(tl_vk_init_kernel(b, &kernel_desc, &kernel), lost);
    assert_int_equal(tl_vk_record_time(b, 0), lost);
    assert_int_equal(tl_vk_read_times(b, 0, 1, times), lost);
    assert_int_equal(tl_vk_record_add(b, h->device, h->host), lost);
    assert_int_equal(tl_vk_record_min_max(b, h->device, h->host), lost);
    assert_int_equal(tl_vk_record_checksum(b, h->device, h->host), lost);
}

// What stays legal works: reading the host tier, counting, giving back.
static void expect_legal(world *w, held *h) {
    const tl_backend *b = &w->backend;
    tl_backend_limits limits;
    tl_backend_counters counters;
    float read[FLOATS];
    expect_ok(w, read_range(w, h->host, read), "the host tier of a lost device");
    assert_memory_equal(read, h->numbers, BYTES);
    b->limits(b->self, &limits);
    b->counters(b->self, &counters);
    b->reset_peaks(b->self);
    assert_int_equal(b->now_ns(b->self), 0);
    assert_int_equal(counters.block_count[TL_TIER_HOST], 1);
    free_range(w, &h->device);
    free_range(w, &h->host);
}

// 1 = the scenario came to that call, and the device was lost there.
static int lose_device_once(world *w, int scenario, loss at_what, uint64_t at) {
    const char *what = scenarios[scenario].name;
    held h;
    tl_result result;
    int is_lost;
    open_backend(w);
    hold(w, &h);
    plan_loss(w, at_what, at);
    result = scenarios[scenario].run(w);
    is_lost = vkshim.is_lost;
    if (is_lost) {
        if (result != TL_ERROR_DEVICE_LOST && result != TL_ERROR_KERNEL && result != TL_OK)
            fail_msg("%s, loss %d at %d: %s: %s", what, (int)at_what, (int)at, tl_name_result(result),
                     w->env.error.text);
        if (result == TL_OK) finish(w);  // it was lost behind the last call: the next says so
        expect_sticky(w, &h);
        expect_sticky(w, &h);
        expect_legal(w, &h);
        expect_idle(w, what);
    } else {
        expect_ok(w, result, what);
        free_range(w, &h.device);
        free_range(w, &h.host);
    }
    close_backend(w, what);
    vkshim_recover_device();
    return is_lost;
}

static void a_lost_device_is_lost_for_ever(void **state) {
    int v, s, at_what;
    (void)state;
    if (!vkt_has_vulkan("a_lost_device_is_lost_for_ever")) skip();
    for (at_what = 0; at_what < LOSS_COUNT; at_what++) {
        static const char *const names[] = { "submit", "wait", "poll", "query" };
        long cases = 0;
        uint64_t at;
        for (v = 0; v < VARIANTS; v++) {
            world w;
            open_variant(&w, &variants[v]);
            for (s = 0; s < SCENARIOS; s++)
                for (at = 1; lose_device_once(&w, s, (loss)at_what, at); at += (uint64_t)thinned()) cases++;
            close_device(&w);
        }
        printf("group 3: lost at %s: %ld calls, %d backends\n", names[at_what], cases, VARIANTS);
    }
}

// What was mapped when the device went can be unmapped, so that its blocks can be freed.
static void mappings_end_on_a_lost_device(void **state) {
    int v, mode;
    (void)state;
    if (!vkt_has_vulkan("mappings_end_on_a_lost_device")) skip();
    for (v = 0; v < VARIANTS; v++) {
        for (mode = 0; mode < TL_MAP_MODE_COUNT; mode++) {
            world w;
            held h;
            const tl_backend *b = &w.backend;
            void *device, *host;
            open_variant(&w, &variants[v]);
            open_backend(&w);
            hold(&w, &h);
            expect_ok(&w, b->map(b->self, h.device, (tl_map_mode)mode, &device), "map");
            expect_ok(&w, b->map(b->self, h.host, (tl_map_mode)mode, &host), "map");
            vkshim_lose_device();
            tl_vk_lose_device(b);
            (void)b->unmap(b->self, h.device, (tl_map_mode)mode, device);
            (void)b->unmap(b->self, h.host, (tl_map_mode)mode, host);
            if (mode == TL_MAP_READ) expect_legal(&w, &h);
            free_range(&w, &h.device);
            free_range(&w, &h.host);
            expect_idle(&w, variants[v].name);
            close_backend(&w, variants[v].name);
            close_device(&w);
        }
    }
    printf("group 3: unmapped after the loss: %d modes, %d backends\n", (int)TL_MAP_MODE_COUNT, VARIANTS);
}

// ============================================================================
// Group 14: two threads, two backends, one queue
// ============================================================================

typedef struct worker { world *w; int rounds; tl_result result; pthread_t thread; } worker;

static void *work(void *argument) {
    worker *me = (worker *)argument;
    int i;
    for (i = 0; i < me->rounds && !me->result; i++) me->result = scenarios[i % SCENARIOS].run(me->w);
    return NULL;
}

static void lock_queue(void *user) { pthread_mutex_lock((pthread_mutex_t *)user); }
static void unlock_queue(void *user) { pthread_mutex_unlock((pthread_mutex_t *)user); }

// Two backends at work at once; how often the shim saw both in the queue.
static uint64_t run_two_threads(int v, int locks, int rounds) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    world *w = (world *)calloc(2, sizeof *w);
    worker workers[2];
    vkshim_config config;
    vkshim_counts now;
    vkt_desc device = {0};
    int i;
    assert_non_null(w);
    memset(workers, 0, sizeof workers);
    vkshim_default(&config, variants[v].machine);
    config.queue_yields = 20;
    device.disable_timeline = variants[v].disable_timeline;
    device.disable_validation = !locks;  // the layer sees the missing lock as well
    open_device(&w[0], &config, &device);
    if (locks) {
        w[0].desc.device.lock_queue = lock_queue;
        w[0].desc.device.unlock_queue = unlock_queue;
        w[0].desc.device.lock_user = &mutex;
    }
    w[1].desc = w[0].desc;
    w[1].config = w[0].config;
    w[1].env = failing_env(&w[1].alloc, -1);
    for (i = 0; i < 2; i++) {
        open_backend(&w[i]);
        workers[i].w = &w[i];
        workers[i].rounds = rounds;
    }
    for (i = 0; i < 2; i++) assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (i = 0; i < 2; i++) pthread_join(workers[i].thread, NULL);
    for (i = 0; i < 2; i++) expect_ok(&w[i], workers[i].result, "a thread");
    vkshim_report(&now);
    for (i = 0; i < 2; i++) tl_vk_free_backend(&w[i].env, &w[i].backend);
    if (locks) expect_nothing_left(&w[0], "two threads");
    assert_int_equal(w[1].alloc.live, 0);
    if (locks) close_device(&w[0]);
    else vkt_close(&w[0].v);
    free(w);
    return now.violation_count;
}

static void two_threads_share_a_queue_under_its_lock(void **state) {
    uint64_t seen;
    int v, rounds = (is_slow() ? 1 : 4) * SCENARIOS;
    (void)state;
    if (!vkt_has_vulkan("two_threads_share_a_queue_under_its_lock")) skip();
    for (v = 0; v < VARIANTS; v++) {
        assert_int_equal(run_two_threads(v, 1, rounds), 0);
        seen = run_two_threads(v, 0, rounds);
        assert_true(seen > 0);  // else the test above proves nothing
        printf("group 14: %s: 2 threads, %d rounds each; without the lock %d collisions\n", variants[v].name,
               rounds, (int)seen);
    }
}

// ============================================================================
// Group 15: entry points that are missing, versions, features that are not enabled
// ============================================================================

static int is_optional(const char *name) {
    static const char *const names[] = { "vkGetPhysicalDeviceProperties2", "vkGetPhysicalDeviceMemoryProperties2" };
    return vkshim_is_listed(name, names, sizeof names / sizeof *names);
}

// 1 = the backend needs it and says so; 0 = it does without.
static int hide_function(world *w, const char *name) {
    vkshim_config config = w->config;
    tl_result result;
    config.missing = &name;
    config.missing_count = 1;
    vkshim_change(&config);
    result = tl_vk_init_backend(&w->env, &w->desc, &w->backend);
    if (result) {
        assert_int_equal(result, TL_ERROR_UNSUPPORTED);
        if (!strstr(w->env.error.text, name) || is_optional(name)) fail_msg("%s: %s", name, w->env.error.text);
        assert_null(w->backend.self);
        expect_nothing_left(w, name);
        return 1;
    }
    expect_ok(w, use_backend(w), name);
    expect_idle(w, name);
    close_backend(w, name);
    return 0;
}

static void a_missing_entry_point_is_named(void **state) {
    static const uint32_t versions[] = { VK_API_VERSION_1_1, VK_API_VERSION_1_2 };
    int expected = (int)(sizeof tli_vk_instance_entries / sizeof *tli_vk_instance_entries +
                         sizeof tli_vk_device_entries / sizeof *tli_vk_device_entries);
    int i, k, timeline;
    (void)state;
    if (!vkt_has_vulkan("a_missing_entry_point_is_named")) skip();
    for (i = is_slow(); i < 2; i++) {
        for (timeline = is_slow(); timeline < 2; timeline++) {
            world w;
            vkshim_config config;
            vkt_desc device = {0};
            int needed = 0, optional = 0;
            vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
            config.fakes_budget = 1;
            device.api_version = versions[i];
            device.disable_timeline = !timeline;
            open_device(&w, &config, &device);
            assert_int_equal(w.v.device.timeline_enabled, timeline);
            for (k = 0; k < VKSHIM_FUNCTION_COUNT; k++) {
                if (hide_function(&w, vkshim_function_names[k])) needed++;
                else optional++;
            }
            close_device(&w);
            assert_int_equal(needed, expected + 2 * timeline);
            printf("group 15: Vulkan 1.%d, timeline %d: %d entry points needed, %d not\n",
                   (int)VK_API_VERSION_MINOR(versions[i]), timeline, needed, optional);
        }
    }
}

// How often these are called; a device of version 1.0 has none of them.
static uint64_t calls_of_later_versions(void) {
    static const char *const names[] = {
        "vkGetPhysicalDeviceProperties2", "vkGetPhysicalDeviceMemoryProperties2", "vkCreateSemaphore",
        "vkGetSemaphoreCounterValue", "vkGetSemaphoreCounterValueKHR", "vkWaitSemaphores", "vkWaitSemaphoresKHR"
    };
    uint64_t calls = 0;
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) calls += vkshim_calls(names[i]);
    return calls;
}

static void run_scenarios(world *w, const char *what) {
    int s;
    open_backend(w);
    for (s = 0; s < SCENARIOS; s++) expect_ok(w, scenarios[s].run(w), what);
    expect_idle(w, what);
    close_backend(w, what);
}

static void vulkan_1_0_is_enough(void **state) {
    int machine, old_loader, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("vulkan_1_0_is_enough")) skip();
    for (machine = 0; machine < VKSHIM_MACHINE_COUNT; machine++) {
        for (old_loader = 0; old_loader < 2; old_loader++) {
            world w;
            vkshim_config config;
            vkt_desc device = {0};
            uint64_t before;
            vkshim_default(&config, (vkshim_machine)machine);
            config.api_version = VK_API_VERSION_1_0;
            config.instance_version = old_loader ? VK_API_VERSION_1_0 : 0;
            config.fakes_budget = 1;
            open_device(&w, &config, &device);
            assert_int_equal(w.v.device.api_version, VK_API_VERSION_1_0);
            before = calls_of_later_versions();
            run_scenarios(&w, "Vulkan 1.0");
            assert_int_equal(calls_of_later_versions(), before);
            w.desc.device.api_version = 0;  // says the same
            run_scenarios(&w, "Vulkan 1.0");
            close_device(&w);
            cases++;
        }
    }
    printf("group 15: Vulkan 1.0: %d machines\n", cases);
}

static void a_timeline_that_is_not_enabled_is_not_used(void **state) {
    static const uint32_t versions[] = { VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3 };
    int i, enabled;
    (void)state;
    if (!vkt_has_vulkan("a_timeline_that_is_not_enabled_is_not_used")) skip();
    for (i = 0; i < 3; i++) {
        for (enabled = 0; enabled < 2; enabled++) {
            world w;
            vkshim_config config;
            vkt_desc device = {0};
            uint64_t semaphores, fences;
            vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
            device.api_version = versions[i];
            device.disable_timeline = !enabled;
            device.disable_validation = versions[i] >= VK_API_VERSION_1_3;  // warns of SPIR-V 1.0's workgroup size
            open_device(&w, &config, &device);
            assert_int_equal(vkt_has_timeline(&w.v), 1);
            semaphores = vkshim_calls("vkCreateSemaphore");
            fences = vkshim_calls("vkCreateFence");
            run_scenarios(&w, "timeline");
            assert_int_equal(vkshim_calls("vkCreateSemaphore") - semaphores, enabled ? 1 : 0);
            assert_int_equal(vkshim_calls("vkCreateFence") - fences, enabled ? 0 : 4);
            close_device(&w);
        }
    }
    printf("group 15: timeline enabled or not: 3 versions\n");
}

// ============================================================================
// Group 16: what is wrong is refused with a sentence
// ============================================================================

static void expect_wrong(world *w, tl_result result, tl_result code, const char *text) {
    if (result != code) fail_msg("%s, not %s: %s", tl_name_result(result), tl_name_result(code), text);
    if (!strstr(w->env.error.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, w->env.error.text);
}

static void expect_wrong_desc(world *w, const tl_vk_backend_desc *desc, const char *text) {
    tl_backend backend;
    expect_wrong(w, tl_vk_init_backend(&w->env, desc, &backend), TL_ERROR_INVALID_ARG, text);
    assert_null(backend.self);
    expect_nothing_left(w, text);
}

static VkResult never_allocate(void *user, const VkMemoryRequirements *needs, VkMemoryPropertyFlags required,
                               VkMemoryPropertyFlags preferred, VkDeviceMemory *memory, VkDeviceSize *offset,
                               uint32_t *type_index, void **mapped, void **cookie) {
    (void)user; (void)needs; (void)required; (void)preferred; (void)memory; (void)offset; (void)type_index; (void)mapped; (void)cookie;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void ignore_lock(void *user) { (void)user; }

static void a_wrong_description_is_named(void **state) {
    static const char *const three = "device: instance, physical and device: all three are needed";
    tl_vk_backend_desc d;
    vkshim_config config;
    vkt_desc device = {0};
    tl_backend backend;
    world w;
    (void)state;
    if (!vkt_has_vulkan("a_wrong_description_is_named")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.transfer_family = 1;
    device.enable_transfer = 1;
    device.disable_validation = 1;  // the layer knows of one family alone
    open_device(&w, &config, &device);
    d = w.desc; d.device.get_instance_proc = NULL;
    expect_wrong_desc(&w, &d, "device: get_instance_proc: missing");
    d = w.desc; d.device.instance = VK_NULL_HANDLE;
    expect_wrong_desc(&w, &d, three);
    d = w.desc; d.device.physical = VK_NULL_HANDLE;
    expect_wrong_desc(&w, &d, three);
    d = w.desc; d.device.device = VK_NULL_HANDLE;
    expect_wrong_desc(&w, &d, three);
    d = w.desc; d.device.lock_queue = ignore_lock;
    expect_wrong_desc(&w, &d, "device: lock_queue, unlock_queue: set both or neither");
    d = w.desc; d.device.transfer_queue = d.device.queue; d.device.queue = VK_NULL_HANDLE;
    expect_wrong_desc(&w, &d, "device: transfer_queue: needs timeline_enabled and a queue");
    d = w.desc; d.device.transfer_queue = d.device.queue; d.device.timeline_enabled = 0;
    expect_wrong_desc(&w, &d, "device: transfer_queue: needs timeline_enabled and a queue");
    d = w.desc; d.device.upload_queue = d.device.transfer_queue; d.device.transfer_queue = VK_NULL_HANDLE;
    expect_wrong_desc(&w, &d, "device: upload_queue: needs a transfer_queue beside the queue");
    d = w.desc; d.device.upload_queue = d.device.queue;
    expect_wrong_desc(&w, &d, "device: upload_queue: must be another than the queue");
    d = w.desc; d.device.transfer_family = 77;
    expect_wrong_desc(&w, &d, "device: transfer_family: no such family that transfers");
    d = w.desc; d.hooks.allocate = never_allocate;
    expect_wrong_desc(&w, &d, "hooks: set both or neither");
    d = w.desc; d.batch_count = -1;
    expect_wrong_desc(&w, &d, "batch_count: must be 0 to 64");
    d.batch_count = 65;
    expect_wrong_desc(&w, &d, "batch_count: must be 0 to 64");
    d = w.desc; d.copy_path = (tl_vk_copy_path)-1;
    expect_wrong_desc(&w, &d, "copy_path: unknown");
    d.copy_path = TL_VK_COPY_PATH_COUNT;
    expect_wrong_desc(&w, &d, "copy_path: unknown");
    d = w.desc; d.device.queue_family = 99;
    expect_wrong_desc(&w, &d, "device: queue_family: no such family that computes");
    d.device.queue_family = 1;      // copies alone
    expect_wrong_desc(&w, &d, "device: queue_family: no such family that computes");
    d = w.desc; d.time_count = UINT32_MAX;
    expect_wrong_desc(&w, &d, "time_count: too many");
    assert_int_equal(tl_vk_init_backend(NULL, &d, &backend), TL_ERROR_INVALID_ARG);     // the same without an env
    assert_int_equal(tl_vk_init_backend(NULL, &w.desc, &backend), TL_OK);
    assert_int_equal(tl_vk_free_backend(NULL, &backend), TL_OK);
    assert_int_equal(tl_vk_free_backend(NULL, NULL), TL_OK);
    assert_string_equal(tl_vk_name_copy_path(TL_VK_COPY_PATH_COUNT), "?");
    close_device(&w);
}

// Frames are for a backend without a queue; tickets, times and groups are those that there are.
static void a_queue_takes_no_frames_and_knows_its_tickets(void **state) {
    int v;
    (void)state;
    if (!vkt_has_vulkan("a_queue_takes_no_frames_and_knows_its_tickets")) skip();
    for (v = 0; v < VARIANTS; v++) {
        const tl_backend *b;
        vkshim_config config;
        tl_ticket ticket, next;
        uint64_t ns;
        world w;
        held h;
        open_variant(&w, &variants[v]);
        open_backend(&w);
        b = &w.backend;
        hold(&w, &h);
        expect_wrong(&w, tl_vk_start_frame(b, VK_NULL_HANDLE, &ticket), TL_ERROR_INVALID_ARG,
                     "backend: it has a queue and submits by itself");
        expect_wrong(&w, tl_vk_end_frame(b), TL_ERROR_INVALID_ARG, "backend: no frame is open");
        expect_ok(&w, b->submit(b->self, &next), "submit");
        expect_wrong(&w, tl_vk_retire_frame(b, next), TL_ERROR_INVALID_ARG, "frame: was never ended");
        expect_wrong(&w, tl_vk_drop_frame(b, next), TL_ERROR_INVALID_ARG, "frame: is not under way");
        next.value++;
        expect_wrong(&w, b->poll(b->self, next), TL_ERROR_INVALID_ARG, "ticket: was never submitted");
        expect_wrong(&w, b->wait(b->self, next), TL_ERROR_INVALID_ARG, "ticket: was never submitted");
        expect_wrong(&w, tl_vk_read_times(b, w.desc.time_count + 1, 0, &ns), TL_ERROR_INVALID_ARG, "slot: not below time_count");
        config = w.config;              // a poll that cannot ask
        config.delay_polls = 1000;
        config.fail_call = w.v.device.timeline_enabled ? "vkGetSemaphoreCounterValueKHR" : "vkGetFenceStatus";
        config.fail_at = 1;
        vkshim_change(&config);
        expect_ok(&w, b->fill(b->self, h.device, 5), "fill");
        expect_ok(&w, b->submit(b->self, &ticket), "submit");
        assert_int_equal(b->poll(b->self, ticket), TL_ERROR_NO_MEMORY);
        calm(&w);
        expect_ok(&w, b->wait(b->self, ticket), "wait");
        free_range(&w, &h.device);
        free_range(&w, &h.host);
        tl_vk_lose_device(b);
        assert_int_equal(tl_vk_start_frame(b, VK_NULL_HANDLE, &ticket), TL_ERROR_DEVICE_LOST);
        assert_int_equal(tl_vk_end_frame(b), TL_ERROR_DEVICE_LOST);
        close_backend(&w, variants[v].name);
        close_device(&w);
    }
}

// Ranges of no bytes, beyond a capacity, of no account; shortened as far as they were claimed.
static void claims_that_cannot_be_are_refused(void **state) {
    const uint64_t limits[TL_TIER_COUNT] = { 0, 0 };
    const tl_backend *b;
    vkt_desc device = {0};
    vkshim_config config;
    uint64_t account, block, other;
    tl_vk_buffer_desc buffer = {0};
    tl_range range = {0}, none = {0}, wrong;
    void *host;
    world w;
    (void)state;
    if (!vkt_has_vulkan("claims_that_cannot_be_are_refused")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    open_device(&w, &config, &device);
    w.desc.capacity_bytes[TL_TIER_DEVICE] = 4096;
    open_backend(&w);
    b = &w.backend;
    expect_ok(&w, b->open_account(b->self, limits, &account), "open_account");
    expect_ok(&w, b->claim(b->self, none), "no bytes");
    expect_ok(&w, b->release(b->self, none), "no bytes");
    expect_ok(&w, b->unmap(b->self, none, TL_MAP_READ, NULL), "no bytes");
    expect_ok(&w, b->claim_on(b->self, account, none), "no bytes");
    expect_ok(&w, b->release_on(b->self, account, none), "no bytes");
    expect_ok(&w, b->add_block(b->self, TL_TIER_DEVICE, 0, &block), "no bytes");
    expect_ok(&w, b->free_block(b->self, block), "no bytes");
    expect_ok(&w, b->add_arena(b->self, TL_TIER_DEVICE, 0, 0, &block), "no bytes");
    expect_ok(&w, b->free_block(b->self, block), "no bytes");
    expect_wrong(&w, b->add_arena(b->self, TL_TIER_DEVICE, 1, 64, &block), TL_ERROR_INVALID_ARG, "bank: there is bank 0 alone");
    expect_wrong(&w, b->add_arena(b->self, TL_TIER_COUNT, 0, 64, &block), TL_ERROR_INVALID_ARG, "tier");
    wrong = none;
    wrong.block = 12345;
    wrong.bytes = 4;
    expect_wrong(&w, b->claim_on(b->self, account, wrong), TL_ERROR_INVALID_ARG, "block: not a handle of this backend");
    expect_wrong(&w, b->release_on(b->self, account, wrong), TL_ERROR_INVALID_ARG, "block: not a handle of this backend");
    expect_wrong(&w, b->shorten(b->self, account, wrong, 4), TL_ERROR_INVALID_ARG, "block: not a handle of this backend");
    wrong.block = (uint64_t)7 << 32;
    expect_wrong(&w, b->claim(b->self, wrong), TL_ERROR_INVALID_ARG, "block: not a handle of this backend");
    expect_ok(&w, b->add_block(b->self, TL_TIER_DEVICE, 4096, &range.block), "add_block");
    range.bytes = 256;
    expect_wrong(&w, b->shorten(b->self, 0, range, 128), TL_ERROR_INVALID_ARG, "range: was not claimed");
    expect_ok(&w, b->claim_on(b->self, account, range), "claim_on");
    expect_wrong(&w, b->shorten(b->self, account, range, 0), TL_ERROR_INVALID_ARG, "bytes: must be > 0");
    expect_wrong(&w, b->shorten(b->self, account, range, 257), TL_ERROR_INVALID_ARG, "bytes: must be > 0");
    wrong = range;
    wrong.bytes = 512;
    expect_wrong(&w, b->shorten(b->self, account, wrong, 256), TL_ERROR_INVALID_ARG, "range: was not claimed");
    expect_wrong(&w, b->release(b->self, wrong), TL_ERROR_INVALID_ARG, "range: was not claimed");
    expect_ok(&w, b->open_account(b->self, limits, &other), "open_account");
    expect_wrong(&w, b->shorten(b->self, other, range, 128), TL_ERROR_INVALID_ARG, "range: was not claimed");
    expect_ok(&w, b->close_account(b->self, other), "close_account");
    assert_int_equal(b->shorten(b->self, other, range, 128), TL_ERROR_STALE);
    expect_ok(&w, b->shorten(b->self, account, range, 128), "shorten");
    range.bytes = 128;
    wrong.offset = 256;
    wrong.bytes = 4096 - 256;
    expect_ok(&w, b->claim(b->self, wrong), "the rest");        // what was given back is free
    expect_ok(&w, b->shorten(b->self, 0, wrong, 4096 - 512), "shorten");
    wrong.bytes = 4096 - 512;
    expect_wrong(&w, b->claim(b->self, wrong), TL_ERROR_NO_MEMORY, "the tier's capacity is used up");
    assert_int_equal(b->claim_on(b->self, account, wrong), TL_ERROR_NO_MEMORY);
    assert_int_equal(b->map(b->self, none, TL_MAP_READ, &host), TL_OK);
    expect_ok(&w, b->release(b->self, wrong), "release");
    expect_ok(&w, b->release_on(b->self, account, range), "release_on");
    expect_ok(&w, b->free_block(b->self, range.block), "free_block");
    expect_ok(&w, b->close_account(b->self, account), "close_account");
    buffer.bytes = UINT64_MAX - 3;
    buffer.buffer = (VkBuffer)(uintptr_t)8;
    buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    expect_wrong(&w, tl_vk_add_buffer(b, &buffer, &block), TL_ERROR_INVALID_ARG, "bytes: must be a multiple of 4, not 0");
    tl_vk_lose_device(b);
    buffer.bytes = 64;
    assert_int_equal(b->open_account(b->self, limits, &account), TL_ERROR_DEVICE_LOST);
    assert_int_equal(tl_vk_add_buffer(b, &buffer, &block), TL_ERROR_DEVICE_LOST);
    close_backend(&w, "claims");
    close_device(&w);
}

// Staging that mapped ranges have filled is no place to wait for; what is mapped keeps the backend alive.
static void staging_full_of_mapped_ranges_is_told(void **state) {
    const tl_backend *b;
    tl_range ranges[3] = {{0}}, large = {0};
    void *host[4];
    world w;
    int i;
    (void)state;
    if (!vkt_has_vulkan("staging_full_of_mapped_ranges_is_told")) skip();
    open_variant(&w, &variants[0]);
    open_backend(&w);
    b = &w.backend;
    for (i = 0; i < 3; i++) expect_ok(&w, add_range(&w, TL_TIER_DEVICE, w.desc.staging_bytes / 2, &ranges[i]), "add");
    expect_ok(&w, add_range(&w, TL_TIER_DEVICE, w.desc.staging_bytes * 2, &large), "add");
    for (i = 0; i < 2; i++) expect_ok(&w, b->map(b->self, ranges[i], TL_MAP_WRITE, &host[i]), "map");
    expect_wrong(&w, b->map(b->self, ranges[2], TL_MAP_WRITE, &host[2]), TL_ERROR_NO_MEMORY, "staging: is full of ranges that are mapped");
    expect_wrong(&w, b->map(b->self, ranges[2], TL_MAP_READ, &host[2]), TL_ERROR_NO_MEMORY, "staging: is full of ranges that are mapped");
    expect_wrong(&w, b->map(b->self, large, TL_MAP_READ, &host[3]), TL_ERROR_NO_MEMORY, "staging: is full of ranges that are mapped");
    expect_ok(&w, b->map(b->self, large, TL_MAP_WRITE, &host[3]), "map");    // memory of the env
    calm(&w);
    expect_wrong(&w, tl_vk_free_backend(&w.env, &w.backend), TL_ERROR_INVALID_ARG,
                 "backend: still in use (mapped ranges: 3): free those first");
    for (i = 0; i < 2; i++) expect_ok(&w, b->unmap(b->self, ranges[i], TL_MAP_WRITE, host[i]), "unmap");
    expect_ok(&w, b->unmap(b->self, large, TL_MAP_WRITE, host[3]), "unmap");
    assert_int_equal(tl_vk_free_backend(&w.env, &w.backend), TL_OK);
    expect_nothing_left(&w, "mapped");
    close_device(&w);
}

// Tables that cannot grow.
static void tables_that_cannot_grow_are_told(void **state) {
    const uint64_t limits[TL_TIER_COUNT] = { 0, 0 };
    int v;
    (void)state;
    if (!vkt_has_vulkan("tables_that_cannot_grow_are_told")) skip();
    for (v = 0; v < VARIANTS; v++) {
        uint64_t blocks[64], accounts[64];
        void *hosts[64];
        tl_range range;
        int i, blocks_count = 0, account_count = 0, map_count = 0;
        const tl_backend *b;
        tl_result result = TL_OK;
        world w;
        open_variant(&w, &variants[v]);
        open_backend(&w);
        b = &w.backend;
        expect_ok(&w, add_range(&w, TL_TIER_HOST, 256, &range), "add");
        w.alloc.count = 0;
        w.alloc.fail_at = 0;
        while (!result && blocks_count < 64) {
            result = b->add_block(b->self, TL_TIER_HOST, 16, &blocks[blocks_count]);
            blocks_count += !result;
        }
        expect_wrong(&w, result, TL_ERROR_NO_MEMORY, "no memory for");
        for (result = TL_OK; !result && account_count < 64; account_count += !result)
            result = b->open_account(b->self, limits, &accounts[account_count]);
        expect_wrong(&w, result, TL_ERROR_NO_MEMORY, "no memory for the table of accounts");
        for (result = TL_OK; !result && map_count < 64; map_count += !result)
            result = b->map(b->self, range, TL_MAP_READ, &hosts[map_count]);
        expect_wrong(&w, result, TL_ERROR_NO_MEMORY, "no memory for the table of mappings");
        calm(&w);
        for (i = 0; i < map_count; i++) expect_ok(&w, b->unmap(b->self, range, TL_MAP_READ, hosts[i]), "unmap");
        for (i = 0; i < account_count; i++) expect_ok(&w, b->close_account(b->self, accounts[i]), "close");
        for (i = 0; i < blocks_count; i++) expect_ok(&w, b->free_block(b->self, blocks[i]), "free");
        free_range(&w, &range);
        expect_idle(&w, variants[v].name);
        close_backend(&w, variants[v].name);
        close_device(&w);
    }
}

// The next chunk with the number of one that is freed was never with the transfer queue.
static void what_the_transfer_queue_owned_goes_with_its_chunk(void **state) {
    vkshim_config config;
    vkt_desc device = {0};
    const tl_backend *b;
    world w;
    int round;
    (void)state;
    if (!vkt_has_vulkan("what_the_transfer_queue_owned_goes_with_its_chunk")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.transfer_family = 1;
    config.strict_ownership = 1;
    device.enable_transfer = 1;
    device.disable_validation = 1;
    open_device(&w, &config, &device);
    open_backend(&w);
    b = &w.backend;
    for (round = 0; round < 3; round++) {
        tl_range ranges[2] = {{0}};
        int tier;
        for (tier = 0; tier < 2; tier++) {
            expect_ok(&w, b->add_arena(b->self, (tl_tier)tier, 0, 4096, &ranges[tier].block), "add_arena");
            ranges[tier].bytes = 4096;
            expect_ok(&w, b->claim(b->self, ranges[tier]), "claim");
            expect_ok(&w, fill_and_expect(&w, ranges[tier], (uint32_t)(10 * round + tier)), "fill");
        }
        expect_ok(&w, b->copy(b->self, ranges[round % 2], ranges[1 - round % 2]), "copy");
        finish(&w);
        for (tier = 0; tier < 2; tier++) free_range(&w, &ranges[tier]);
        expect_idle(&w, "a round");
    }
    close_backend(&w, "arenas");
    close_device(&w);
}

// With two transfer queues of another family: each function fails at its first call, while the backend is made and while it works.
static void each_function_fails_beside_transfer_queues(void **state) {
    vkshim_config config;
    vkt_desc device = {0};
    const char *name;
    uint64_t at;
    uint32_t i;
    world w;
    held h;
    int s, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("each_function_fails_beside_transfer_queues")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    vkshim_add_engines(&config);
    config.strict_ownership = 1;
    device.enable_transfer = 1;
    device.disable_validation = 1;
    open_device(&w, &config, &device);
    assert_true(w.v.device.transfer_queue && w.v.device.upload_queue);
    w.desc.staging_bytes = 1 << 20;
    for (i = 0; (name = vkshim_fallible(i)) != NULL; i++) {
        for (at = 1; at <= 3; at++) {
            uint64_t before = injected();
            config = w.config;
            config.fail_call = name;
            config.fail_at = at;
            vkshim_change(&config);
            if (!tl_vk_init_backend(&w.env, &w.desc, &w.backend)) tl_vk_free_backend(&w.env, &w.backend);
            else assert_int_equal(w.env.error.code, TL_ERROR_NO_MEMORY);
            calm(&w);
            expect_nothing_left(&w, name);
            if (injected() == before) break;
            cases++;
        }
    }
    open_backend(&w);
    hold(&w, &h);
    for (i = 0; (name = vkshim_fallible(i)) != NULL; i++)
        for (s = 0; s < SCENARIOS; s += 2)
            for (at = 1; at <= 3; at++) {
                uint64_t before = injected();
                tl_result result;
                config = w.config;
                config.fail_call = name;
                config.fail_at = at;
                vkshim_change(&config);
                result = scenarios[s].run(&w);
                calm(&w);
                if (result && result != TL_ERROR_NO_MEMORY && result != TL_ERROR_KERNEL)
                    fail_msg("%s, %s at call %d: %s: %s", scenarios[s].name, name, (int)at, tl_name_result(result), w.env.error.text);
                if (injected() == before) break;
                cases++;
                if (at == 1) expect_ok(&w, scenarios[s].run(&w), name);
                expect_held_ranges(&w, &h, name);
            }
    free_range(&w, &h.device);
    free_range(&w, &h.host);
    expect_idle(&w, "beside a transfer queue");
    close_backend(&w, "beside a transfer queue");
    close_device(&w);
    printf("group 16: beside a transfer queue: %d failures\n", cases);
    assert_true(cases > 20);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_survives_every_failure),
        cmocka_unit_test(work_survives_every_failure),
        cmocka_unit_test(a_command_buffer_that_cannot_be_ended_is_recorded_again),
        cmocka_unit_test(freeing_waits_though_a_wait_fails),
        cmocka_unit_test(a_lost_device_is_lost_for_ever),
        cmocka_unit_test(mappings_end_on_a_lost_device),
        cmocka_unit_test(two_threads_share_a_queue_under_its_lock),
        cmocka_unit_test(a_missing_entry_point_is_named),
        cmocka_unit_test(vulkan_1_0_is_enough),
        cmocka_unit_test(a_timeline_that_is_not_enabled_is_not_used),
        cmocka_unit_test(a_wrong_description_is_named),
        cmocka_unit_test(a_queue_takes_no_frames_and_knows_its_tickets),
        cmocka_unit_test(claims_that_cannot_be_are_refused),
        cmocka_unit_test(staging_full_of_mapped_ranges_is_told),
        cmocka_unit_test(tables_that_cannot_grow_are_told),
        cmocka_unit_test(what_the_transfer_queue_owned_goes_with_its_chunk),
        cmocka_unit_test(each_function_fails_beside_transfer_queues),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_faults", tests, NULL, NULL);
}
