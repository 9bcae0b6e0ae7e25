// What programs on the Vulkan backend meet: calls that fail once and are tried again, commands of their own in a
// command buffer that cannot be ended, allocators and pipeline caches of theirs, what lives on when all is freed,
// counters of time that begin again. All through the fault shim.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_faults.h"

#define FLOATS 700
#define BYTES ((uint64_t)FLOATS * 4)
#define SAVES 8

static void expect_wrong(world *w, tl_result result, tl_result code, const char *text) {
    if (result != code) fail_msg("%s, not %s: %s", tl_name_result(result), tl_name_result(code), w->env.error.text);
    if (!strstr(w->env.error.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, w->env.error.text);
}

static void fill_numbers(float *numbers, uint64_t seed) {
    int i;
    for (i = 0; i < FLOATS; i++) numbers[i] = (float)(tl_mix_u64(seed, (uint64_t)i) % 2001) - 1000.0f;
}

static void fail_call(world *w, const char *name, uint64_t at, uint64_t count, VkResult with) {
    vkshim_config config = w->config;
    config.fail_call = name;
    config.fail_at = at;
    config.fail_count = count;
    config.fail_with = with;
    vkshim_change(&config);
}

// -- calls that fail once --

static void open_machine(world *w, int machine) {
    static const struct { vkshim_machine memory; int disable_timeline, transfer; } machines[] = {
        { VKSHIM_MACHINE_DISCRETE, 0, 0 }, { VKSHIM_MACHINE_NON_COHERENT, 1, 0 }, { VKSHIM_MACHINE_DISCRETE, 0, 1 },
    };
    vkshim_config config;
    vkt_desc device = {0};
    vkshim_default(&config, machines[machine].memory);
    config.transfer_family = config.strict_ownership = machines[machine].transfer;
    device.disable_timeline = machines[machine].disable_timeline;
    device.enable_transfer = machines[machine].transfer;
    device.disable_validation = machines[machine].transfer;     // the layer knows of one family alone
    open_device(w, &config, &device);
}

static tl_manager *add_manager(world *w) {
    tl_manager_desc desc = {0};
    tl_manager *manager;
    desc.device_budget_bytes = 3 * BYTES + 2048;
    desc.host_budget_bytes = TL_UNLIMITED;
    desc.codec = TL_CODEC_F16;
    expect_ok(w, tl_init_manager(&w->env, &w->backend, &desc, &manager), "init_manager");
    return manager;
}

static tl_result save(world *w, tl_manager *manager, int node) {
    float numbers[FLOATS];
    tl_save_desc desc = {0};
    fill_numbers(numbers, (uint64_t)node);
    desc.key.node = node;
    desc.data = numbers;
    desc.bytes = BYTES;
    desc.keep = 1;
    desc.cost = 1;
    desc.lossless = node % 2 == 0;
    return tl_save_checkpoint(&w->env, manager, &desc);
}

static tl_result take(world *w, tl_manager *manager, int node) {
    float numbers[FLOATS], read[FLOATS];
    tl_checkpoint_key key = {0};
    tl_result result;
    key.node = node;
    fill_numbers(numbers, (uint64_t)node);
    result = tl_take_checkpoint(&w->env, manager, key, read, BYTES);
    if (!result) assert_memory_equal(read, numbers, BYTES);
    return result;
}

// Sum r[1] into r[0] by a kernel of the caller, with a time before it.
static tl_result add_once(world *w, const tl_vk_kernel *kernel, const tl_range *r) {
    const tl_backend *b = &w->backend;
    uint32_t push[3] = { FLOATS, 0, 0 };
    tl_access accesses[2];
    tl_result result = tl_vk_record_time(b, 0);
    accesses[0].range = r[0];
    accesses[0].writes = 1;
    accesses[1].range = r[1];
    accesses[1].writes = 0;
    if (!result) result = b->order(b->self, accesses, 2);
    return result ? result : tl_vk_record_kernel(b, kernel, r, push, (FLOATS + 63) / 64, 1, 1);
}

static tl_vk_kernel *add_kernel(world *w) {
    static const uint32_t size = 64;
    tl_vk_kernel_desc desc = {0};
    tl_vk_kernel *kernel;
    desc.words = tli_vk_words_of(TLI_VK_SHADER_ADD).words;
    desc.word_count = tli_vk_words_of(TLI_VK_SHADER_ADD).count;
    desc.buffer_count = 2;
    desc.push_bytes = 12;
    desc.constants = &size;
    desc.constant_count = 1;
    expect_ok(w, tl_vk_init_kernel(&w->backend, &desc, &kernel), "init_kernel");
    return kernel;
}

#define TRY(call, what) do { \
        tl_result tried; \
        int tries = 0; \
        while ((tried = (call)) == TL_ERROR_NO_MEMORY && ++tries < 8) {} \
        if (tried) fail_msg("%s: %s: %s", what, tl_name_result(tried), w->env.error.text); \
    } while (0)

// Saves, a kernel of the caller that counts its calls, takes; what fails is tried again. All of it is right.
static void work_and_try_again(world *w, const char *what) {
    tl_manager *manager = add_manager(w);
    tl_vk_kernel *kernel = add_kernel(w);
    float ones[FLOATS], sums[FLOATS];
    tl_range r[2];
    uint64_t ns;
    int i, added = 0;
    for (i = 0; i < FLOATS; i++) ones[i] = 1;
    for (i = 0; i < 2; i++) expect_ok(w, add_range(w, TL_TIER_DEVICE, BYTES, &r[i]), "add");
    for (i = 0; i < 2; i++) TRY(write_range(w, r[i], ones), what);
    for (i = 0; i < SAVES; i++) {
        tl_result result = add_once(w, kernel, r);
        added += result == TL_OK;       // one that failed was not recorded
        TRY(save(w, manager, i), what);
    }
    TRY(read_range(w, r[0], sums), what);
    for (i = 0; i < FLOATS; i++)
        if (sums[i] != (float)(1 + added)) fail_msg("%s: %g after %d sums", what, (double)sums[i], added);
    TRY(tl_vk_read_times(&w->backend, 0, 1, &ns), what);
    for (i = 0; i < SAVES; i++) TRY(take(w, manager, i), what);
    tl_free_manager(manager);
    finish(w);
    tl_vk_free_kernel(&w->backend, kernel);
    for (i = 0; i < 2; i++) free_range(w, &r[i]);
}

// Submits that the device has not begun: the ring of batches grows, the host waits for none of them, and all of it is right.
static void many_submits_are_under_way_without_a_wait(void **state) {
    enum { SUBMITS = 100 };
    tl_vk_counters counters;
    vkshim_config config;
    vkt_desc device = {0};
    float numbers[FLOATS], sums[FLOATS];
    tl_vk_kernel *kernel;
    tl_range r[2];
    tl_ticket ticket;
    world w;
    int i, timeline;
    (void)state;
    if (!vkt_has_vulkan("many_submits_are_under_way_without_a_wait")) skip();
    for (timeline = 0; timeline < 2; timeline++) {
        uint64_t waits;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        device.disable_timeline = !timeline;
        open_device(&w, &config, &device);
        open_backend(&w);
        kernel = add_kernel(&w);
        fill_numbers(numbers, 1);
        for (i = 0; i < 2; i++) expect_ok(&w, add_range(&w, TL_TIER_DEVICE, BYTES, &r[i]), "add");
        for (i = 0; i < 2; i++) expect_ok(&w, write_range(&w, r[i], numbers), "write");
        finish(&w);
        config.delay_polls = 1000000;
        vkshim_change(&config);
        tl_vk_measure(&w.backend, &counters);
        waits = counters.host_wait_count;
        for (i = 0; i < SUBMITS; i++) {
            expect_ok(&w, add_once(&w, kernel, r), "add");
            expect_ok(&w, w.backend.submit(w.backend.self, &ticket), "submit");
        }
        tl_vk_measure(&w.backend, &counters);
        assert_int_equal(counters.host_wait_count, waits);
        expect_ok(&w, w.backend.wait(w.backend.self, ticket), "wait");
        expect_ok(&w, read_range(&w, r[0], sums), "read");
        for (i = 0; i < FLOATS; i++) assert_true(sums[i] == (1 + SUBMITS) * numbers[i]);
        tl_vk_free_kernel(&w.backend, kernel);
        for (i = 0; i < 2; i++) free_range(&w, &r[i]);
        close_backend(&w, "many submits");
        close_device(&w);
    }
}

static void whatever_fails_once_or_thrice_is_right_when_tried_again(void **state) {
    const char *name;
    char what[96];
    uint32_t i;
    uint64_t at, count;
    int machine, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("whatever_fails_once_or_thrice_is_right_when_tried_again")) skip();
    for (machine = 0; machine < 3; machine++) {
        world w;
        open_machine(&w, machine);
        open_backend(&w);
        for (i = 0; (name = vkshim_fallible(i)) != NULL; i++) {
            if (strstr(name, "Create") || strstr(name, "AllocateMemory")) continue;  // groups 1 and 16 of the faults
            for (at = 1, count = 1; ; at += 1 + at / 4 * (uint64_t)thinned(), count = 4 - count) {
                uint64_t before = injected();
                snprintf(what, sizeof what, "machine %d: %s #%d, %d times", machine, name, (int)at, (int)count);
                fail_call(&w, name, at, count, VK_ERROR_OUT_OF_HOST_MEMORY);
                work_and_try_again(&w, what);
                calm(&w);
                expect_idle(&w, what);
                if (injected() == before) break;
                cases++;
            }
        }
        close_backend(&w, "tried again");
        close_device(&w);
    }
    printf("tried again: %d failures on 3 machines\n", cases);
    assert_true(cases > 60);
}

// -- commands of the caller in a command buffer that cannot be ended --

static void fill_by_caller(world *w, tl_range range, uint32_t word) {
    const tl_backend *b = &w->backend;
    VkDescriptorBufferInfo info;
    VkCommandBuffer commands;
    tl_access access;
    access.range = range;
    access.writes = 1;
    expect_ok(w, tl_vk_find_buffer(b, range, &info), "find_buffer");
    expect_ok(w, tl_vk_order(b, &access, 1, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT), "order");
    expect_ok(w, tl_vk_find_commands(b, &commands), "find_commands");
    w->v.vk.CmdFillBuffer(commands, info.buffer, info.offset, info.range, word);
}

// What stood before the caller's commands is right; what stood behind them is stale, never wrong, until it is written.
static void what_the_caller_recorded_is_told_to_be_lost(void **state) {
    int machine, twice;
    (void)state;
    if (!vkt_has_vulkan("what_the_caller_recorded_is_told_to_be_lost")) skip();
    for (machine = 0; machine < 3; machine++)
        for (twice = 0; twice < 2; twice++) {
            const tl_backend *b;
            float numbers[3][FLOATS], read[FLOATS];
            tl_range r[3] = {{0}}, spilled = {0};
            tl_ticket ticket;
            uint64_t copies;
            world w;
            int i;
            open_machine(&w, machine);
            open_backend(&w);
            b = &w.backend;
            for (i = 0; i < 3; i++) {
                expect_ok(&w, add_range(&w, TL_TIER_DEVICE, BYTES, &r[i]), "add");
                fill_numbers(numbers[i], (uint64_t)i);
                if (i < 2) expect_ok(&w, write_range(&w, r[i], numbers[i]), "write");
            }
            expect_ok(&w, add_range(&w, TL_TIER_HOST, BYTES, &spilled), "add");
            expect_ok(&w, b->fill(b->self, r[1], 3), "fill");
            fill_by_caller(&w, r[1], 5);
            expect_ok(&w, b->copy(b->self, r[2], r[1]), "copy");
            fail_call(&w, "vkEndCommandBuffer", 1, twice ? 2 : 1, VK_ERROR_OUT_OF_HOST_MEMORY);
            expect_wrong(&w, b->submit(b->self, &ticket), TL_ERROR_NO_MEMORY,
                         "submit: what the caller recorded did not run: vkEndCommandBuffer: out of host memory");
            if (twice) expect_wrong(&w, b->submit(b->self, &ticket), TL_ERROR_NO_MEMORY, "submit: vkEndCommandBuffer");
            copies = vkshim_calls("vkCmdCopyBuffer");
            expect_ok(&w, b->submit(b->self, &ticket), "submit");
            // Where writes are direct, the one copy stood behind the caller's commands.
            if (machine == 1) assert_int_equal(vkshim_calls("vkCmdCopyBuffer"), copies);
            expect_ok(&w, read_range(&w, r[0], read), "what stood before");
            assert_memory_equal(read, numbers[0], BYTES);
            for (i = 1; i < 3; i++)
                expect_wrong(&w, read_range(&w, r[i], read), TL_ERROR_STALE,
                             "map: range: was written behind commands of the caller that did not run");
            expect_wrong(&w, b->copy(b->self, spilled, r[2]), TL_ERROR_STALE, "copy: range: was written behind");
            expect_wrong(&w, tl_vk_record_add(b, r[2], r[0]), TL_ERROR_STALE, "to: was written behind");
            expect_ok(&w, fill_and_expect(&w, r[1], 7), "written again");
            fill_by_caller(&w, r[1], 6);
            expect_ok(&w, b->copy(b->self, spilled, r[0]), "copy");
            expect_ok(&w, b->copy(b->self, r[2], spilled), "copy");
            expect_ok(&w, read_range(&w, r[2], read), "copied");
            assert_memory_equal(read, numbers[0], BYTES);
            finish(&w);
            for (i = 0; i < 3; i++) free_range(&w, &r[i]);
            free_range(&w, &spilled);
            expect_idle(&w, "lost");
            close_backend(&w, "lost");
            close_device(&w);
        }
}

// The next bytes of the same block, which were written behind them, are lost all the same.
static void bytes_beside_what_was_recorded_again_are_lost(void **state) {
    const tl_backend *b;
    enum { HALF = 256 };
    float read[HALF / 4];
    tl_range low = {0}, high;
    tl_ticket ticket;
    VkCommandBuffer commands;
    world w;
    (void)state;
    if (!vkt_has_vulkan("bytes_beside_what_was_recorded_again_are_lost")) skip();
    open_machine(&w, 0);
    open_backend(&w);
    b = &w.backend;
    expect_ok(&w, b->add_block(b->self, TL_TIER_DEVICE, 2 * HALF, &low.block), "add_block");
    low.bytes = HALF;
    high = low;
    high.offset = HALF;
    expect_ok(&w, b->claim(b->self, low), "claim");
    expect_ok(&w, b->claim(b->self, high), "claim");
    expect_ok(&w, b->fill(b->self, low, 0), "fill");
    expect_ok(&w, tl_vk_find_commands(b, &commands), "find_commands");
    expect_ok(&w, b->fill(b->self, high, 0), "fill");
    fail_call(&w, "vkEndCommandBuffer", 1, 1, VK_ERROR_OUT_OF_HOST_MEMORY);
    assert_int_equal(b->submit(b->self, &ticket), TL_ERROR_NO_MEMORY);
    expect_ok(&w, b->submit(b->self, &ticket), "submit");
    expect_ok(&w, read_range(&w, low, read), "what stood before");
    expect_wrong(&w, read_range(&w, high, read), TL_ERROR_STALE, "map: range: was written behind commands of the caller");
    finish(&w);
    expect_ok(&w, b->release(b->self, high), "release");
    expect_ok(&w, b->release(b->self, low), "release");
    expect_ok(&w, b->free_block(b->self, low.block), "free_block");
    close_backend(&w, "beside");
    close_device(&w);
}

// A batch of many commands outgrows the list in which they are noted. Without memory for it all goes on; only if then the
// command buffer cannot be ended as well, something is stale.
static void commands_that_could_not_be_noted_are_stale_at_worst(void **state) {
    int at, stale = 0, right = 0;
    (void)state;
    if (!vkt_has_vulkan("commands_that_could_not_be_noted_are_stale_at_worst")) skip();
    for (at = -1; at < 4; at++) {
        const tl_backend *b;
        float numbers[FLOATS], read[FLOATS];
        tl_vk_kernel *kernel;
        tl_range r[2] = {{0}};
        tl_ticket ticket;
        tl_result result;
        world w;
        int i, added = 0;
        open_machine(&w, 0);
        open_backend(&w);
        b = &w.backend;
        kernel = add_kernel(&w);
        for (i = 0; i < FLOATS; i++) numbers[i] = 1;
        for (i = 0; i < 2; i++) expect_ok(&w, add_range(&w, TL_TIER_DEVICE, BYTES, &r[i]), "add");
        for (i = 0; i < 2; i++) expect_ok(&w, write_range(&w, r[i], numbers), "write");
        finish(&w);
        w.alloc.count = 0;
        w.alloc.fails_once = 0;
        w.alloc.fail_at = at;
        for (i = 0; i < 400; i++) added += add_once(&w, kernel, r) == TL_OK;
        w.alloc.fail_at = -1;
        fail_call(&w, "vkEndCommandBuffer", 1, 1, VK_ERROR_OUT_OF_HOST_MEMORY);
        assert_int_equal(b->submit(b->self, &ticket), TL_ERROR_NO_MEMORY);
        result = read_range(&w, r[0], read);
        if (result == TL_ERROR_STALE) stale++;
        else expect_ok(&w, result, "read");
        for (i = 0; i < FLOATS && !result; i++) assert_true(read[i] == (float)(1 + added));
        right += !result;
        expect_ok(&w, read_range(&w, r[1], read), "read");
        finish(&w);
        tl_vk_free_kernel(b, kernel);
        for (i = 0; i < 2; i++) free_range(&w, &r[i]);
        close_backend(&w, "not noted");
        close_device(&w);
    }
    assert_true(stale && right);
}

// -- a lost device, in the words of a manager --

static void a_manager_says_that_the_device_was_lost(void **state) {
    int machine;
    (void)state;
    if (!vkt_has_vulkan("a_manager_says_that_the_device_was_lost")) skip();
    for (machine = 0; machine < 2; machine++) {
        tl_manager *manager;
        tl_manager_desc desc = {0};
        uint64_t bytes;
        const void *data;
        tl_checkpoint_key key = {0};
        world w;
        open_machine(&w, machine);
        open_backend(&w);
        desc.device_budget_bytes = 64 * BYTES;
        expect_ok(&w, tl_init_manager(&w.env, &w.backend, &desc, &manager), "init_manager");
        expect_ok(&w, save(&w, manager, 0), "save");
        expect_ok(&w, save(&w, manager, 2), "save");
        vkshim_lose_device();
        tl_vk_lose_device(&w.backend);
        expect_wrong(&w, save(&w, manager, 1), TL_ERROR_DEVICE_LOST, "the device was lost");
        expect_wrong(&w, take(&w, manager, 0), TL_ERROR_DEVICE_LOST, "the device was lost");
        key.node = 2;
        expect_wrong(&w, tl_peek_checkpoint(&w.env, manager, key, &data, &bytes), TL_ERROR_DEVICE_LOST, "the device was lost");
        tl_free_manager(manager);
        close_backend(&w, "lost");
        close_device(&w);
    }
}

// -- what lives on --

static void a_backend_is_not_freed_under_what_lives_on(void **state) {
    const char *with_kernels = "tl_vk_free_backend: backend: still in use (kernels: 2): free those first";
    const char *with_ranges = "tl_vk_free_backend: backend: still in use (mapped ranges: 1): free those first";
    int machine, lose;
    (void)state;
    if (!vkt_has_vulkan("a_backend_is_not_freed_under_what_lives_on")) skip();
    for (machine = 0; machine < 2; machine++)
        for (lose = 0; lose < 2; lose++) {
            tl_vk_kernel *kernels[2];
            tl_range range;
            world w;
            void *host;
            int i;
            open_machine(&w, machine);
            open_backend(&w);
            for (i = 0; i < 2; i++) kernels[i] = add_kernel(&w);
            expect_ok(&w, add_range(&w, TL_TIER_DEVICE, BYTES, &range), "add");
            expect_ok(&w, w.backend.map(w.backend.self, range, TL_MAP_READ, &host), "map");
            if (lose) vkshim_lose_device();
            if (lose) tl_vk_lose_device(&w.backend);
            expect_wrong(&w, tl_vk_free_backend(&w.env, &w.backend), TL_ERROR_INVALID_ARG, with_kernels);
            for (i = 0; i < 2; i++) tl_vk_free_kernel(&w.backend, kernels[i]);
            expect_wrong(&w, tl_vk_free_backend(&w.env, &w.backend), TL_ERROR_INVALID_ARG, with_ranges);
            expect_ok(&w, w.backend.unmap(w.backend.self, range, TL_MAP_READ, host), "unmap");
            expect_ok(&w, tl_vk_free_backend(&w.env, &w.backend), "with a block and a claim");
            assert_null(w.backend.self);
            close_backend(&w, "lives on");      // again, which does nothing
            close_device(&w);
        }
}

static void frames_under_way_keep_their_backend(void **state) {
    const char *text = "backend: still in use (frames neither retired nor dropped: 2): free those first";
    int lose;
    (void)state;
    if (!vkt_has_vulkan("frames_under_way_keep_their_backend")) skip();
    for (lose = 0; lose < 2; lose++) {
        VkCommandBuffer commands;
        tl_ticket frames[2];
        tl_range range;
        world w;
        open_machine(&w, 0);
        w.desc.device.queue = VK_NULL_HANDLE;
        open_backend(&w);
        expect_ok(&w, add_range(&w, TL_TIER_DEVICE, BYTES, &range), "add");
        commands = vkt_begin(&w.v);
        expect_ok(&w, tl_vk_start_frame(&w.backend, commands, &frames[0]), "start");
        expect_ok(&w, w.backend.fill(w.backend.self, range, 1), "fill");
        expect_ok(&w, tl_vk_end_frame(&w.backend), "end");
        expect_ok(&w, tl_vk_start_frame(&w.backend, commands, &frames[1]), "start");
        if (lose) tl_vk_lose_device(&w.backend);
        if (!lose) {
            expect_wrong(&w, tl_vk_free_backend(&w.env, &w.backend), TL_ERROR_INVALID_ARG, text);
            expect_ok(&w, tl_vk_drop_frame(&w.backend, frames[1]), "drop");
            expect_wrong(&w, tl_vk_free_backend(&w.env, &w.backend), TL_ERROR_INVALID_ARG, "nor dropped: 1)");
        }
        vkt_submit_wait(&w.v);
        if (!lose) expect_ok(&w, tl_vk_retire_frame(&w.backend, frames[0]), "retire");
        expect_ok(&w, tl_vk_free_backend(&w.env, &w.backend), "free");
        close_backend(&w, "frames");
        close_device(&w);
    }
}

// -- allocators of the caller --

typedef struct owner {
    world   *w;
    uint64_t offset;                 // where the buffer is wished to lie
    int      maps_always, calls, visible_calls, live;
    uint32_t refused_type;           // + 1: as if this type had no memory left
    VkMemoryPropertyFlags asked[16];
} owner;

// Obeys to the letter: the first type that has what is required, not a byte more than size and alignment say, mapped where
// that is required.
static VkResult allocate(void *user, const VkMemoryRequirements *needs, VkMemoryPropertyFlags required,
                         VkMemoryPropertyFlags preferred, VkDeviceMemory *memory, VkDeviceSize *offset,
                         uint32_t *type_index, void **mapped, void **cookie) {
    owner *o = (owner *)user;
    const vkt *v = &o->w->v;
    VkMemoryAllocateInfo info;
    VkPhysicalDeviceMemoryProperties memories;
    VkResult result;
    (void)preferred;
    v->vk.GetPhysicalDeviceMemoryProperties(v->device.physical, &memories);
    o->asked[o->calls++ % 16] = required;
    o->visible_calls += (required & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    while (!(needs->memoryTypeBits >> info.memoryTypeIndex & 1) ||
           (memories.memoryTypes[info.memoryTypeIndex].propertyFlags & required) != required)
        if (++info.memoryTypeIndex == memories.memoryTypeCount) return VK_ERROR_FEATURE_NOT_PRESENT;
    if (o->refused_type == info.memoryTypeIndex + 1) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    *offset = (o->offset + needs->alignment - 1) / needs->alignment * needs->alignment;
    info.allocationSize = *offset + needs->size;
    result = v->vk.AllocateMemory(v->device.device, &info, NULL, memory);
    if (result) return result;
    if (required & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT || o->maps_always) {
        result = v->vk.MapMemory(v->device.device, *memory, 0, VK_WHOLE_SIZE, 0, mapped);
        *mapped = (char *)*mapped + *offset;
    }
    *type_index = info.memoryTypeIndex;
    *cookie = (void *)(uintptr_t)*memory;
    o->live++;
    return result;
}

static void release(void *user, void *cookie) {
    owner *o = (owner *)user;
    o->w->v.vk.FreeMemory(o->w->v.device.device, (VkDeviceMemory)(uintptr_t)cookie, NULL);
    o->live--;
}

static void open_owned(world *w, owner *o, const vkshim_config *config) {
    vkt_desc device = {0};
    memset(o, 0, sizeof *o);
    o->w = w;
    open_device(w, config, &device);
    w->desc.hooks.allocate = allocate;
    w->desc.hooks.release = release;
    w->desc.hooks.user = o;
}

static void close_owned(world *w, const owner *o) {
    close_backend(w, "owned");
    assert_int_equal(o->live, 0);
    close_device(w);
}

// Where the memory of the device tier is host-visible anyway, as it is for the built-in allocator, it is mapped, so that
// nothing is staged; where it is not, a window to it is not asked for.
static void an_allocator_is_asked_to_map_as_the_built_in_one_maps(void **state) {
    static const vkshim_machine machines[] = { VKSHIM_MACHINE_DISCRETE, VKSHIM_MACHINE_SMALL_BAR, VKSHIM_MACHINE_UNCACHED,
                                               VKSHIM_MACHINE_SINGLE, VKSHIM_MACHINE_NON_COHERENT };
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("an_allocator_is_asked_to_map_as_the_built_in_one_maps")) skip();
    for (i = 0; i < sizeof machines / sizeof *machines; i++) {
        uint64_t staged[2];
        int by_hook, arena, unified = machines[i] == VKSHIM_MACHINE_SINGLE || machines[i] == VKSHIM_MACHINE_NON_COHERENT;
        for (by_hook = 0; by_hook < 2; by_hook++) {
            float numbers[FLOATS], read[FLOATS];
            vkshim_config config;
            tl_vk_counters counters;
            owner o;
            world w;
            vkshim_default(&config, machines[i]);
            open_owned(&w, &o, &config);
            if (!by_hook) memset(&w.desc.hooks, 0, sizeof w.desc.hooks);
            open_backend(&w);
            fill_numbers(numbers, 3);
            for (arena = 0; arena < 2; arena++) {
                const tl_backend *b = &w.backend;
                tl_range range = {0};
                range.bytes = BYTES;
                expect_ok(&w, arena ? b->add_arena(b->self, TL_TIER_DEVICE, 0, BYTES, &range.block)
                                    : b->add_block(b->self, TL_TIER_DEVICE, BYTES, &range.block), "add");
                expect_ok(&w, b->claim(b->self, range), "claim");
                expect_ok(&w, write_range(&w, range, numbers), "write");
                expect_ok(&w, read_range(&w, range, read), "read");
                assert_memory_equal(read, numbers, BYTES);
                finish(&w);
                free_range(&w, &range);
            }
            tl_vk_measure(&w.backend, &counters);
            staged[by_hook] = counters.staged_bytes;
            if (by_hook) assert_int_equal(o.visible_calls, unified ? o.calls : 1);  // 1: the staging
            close_owned(&w, &o);
        }
        assert_int_equal(staged[1], staged[0]);
        assert_int_equal(staged[1] == 0, unified);
    }
}

// What is device-local is used up: with allow_host_memory the same allocator is asked for other memory, to be mapped.
static void an_allocator_is_asked_for_the_next_kind_of_memory(void **state) {
    int allow;
    (void)state;
    if (!vkt_has_vulkan("an_allocator_is_asked_for_the_next_kind_of_memory")) skip();
    for (allow = 0; allow < 2; allow++) {
        const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
        tl_range range = {0};
        vkshim_config config;
        tl_vk_counters counters;
        tl_result result;
        owner o;
        world w;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        open_owned(&w, &o, &config);
        w.desc.allow_host_memory = allow;
        open_backend(&w);
        o.calls = 0;
        for (o.refused_type = 1; config.types[o.refused_type - 1].propertyFlags != local;) o.refused_type++;
        result = add_range(&w, TL_TIER_DEVICE, BYTES, &range);
        assert_int_equal(o.asked[0], local);
        if (!allow) expect_wrong(&w, result, TL_ERROR_NO_MEMORY, "device-local memory is used up");
        if (allow) {
            expect_ok(&w, result, "other memory");
            assert_int_equal(o.asked[o.calls - 1], VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
            expect_ok(&w, fill_and_expect(&w, range, 5), "other memory");
            tl_vk_measure(&w.backend, &counters);
            assert_int_equal(counters.staged_bytes, 0);
            assert_true(counters.outside_bytes > 0);
        }
        finish(&w);
        free_range(&w, &range);
        close_owned(&w, &o);
    }
}

static void flush_at(world *w, uint64_t offset, int maps_always) {
    owner *o = (owner *)w->desc.hooks.user;
    const tl_backend *b = &w->backend;
    char bytes[1000], read[1000];
    tl_range ranges[3] = {{0}};
    int k;
    o->offset = offset;
    o->maps_always = maps_always;
    open_backend(w);
    memset(bytes, 7, sizeof bytes);
    for (k = 0; k < 3; k++) {
        ranges[k].bytes = sizeof bytes;
        expect_ok(w, k < 2 ? b->add_arena(b->self, (tl_tier)k, 0, sizeof bytes, &ranges[k].block)
                           : b->add_block(b->self, TL_TIER_DEVICE, sizeof bytes, &ranges[k].block), "add");
        expect_ok(w, b->claim(b->self, ranges[k]), "claim");
        expect_ok(w, write_range(w, ranges[k], bytes), "write");
        expect_ok(w, read_range(w, ranges[k], read), "read");
        assert_memory_equal(read, bytes, sizeof bytes);
    }
    for (k = 0; k < 3; k++) free_range(w, &ranges[k]);
    expect_idle(w, "flushed");
    close_backend(w, "flushed");
    assert_int_equal(o->live, 0);
}

// Flushes stay inside of what was allocated, at any offset that the requirements allow, for any atom.
static void flushes_stay_inside_of_what_an_allocator_gave(void **state) {
    static const uint32_t atoms[] = { 16, 64, 128, 256 };
    uint64_t offset;
    size_t i;
    int always;
    (void)state;
    if (!vkt_has_vulkan("flushes_stay_inside_of_what_an_allocator_gave")) skip();
    for (i = 0; i < sizeof atoms / sizeof *atoms; i++) {
        vkshim_config config;
        owner o;
        world w;
        vkshim_default(&config, VKSHIM_MACHINE_NON_COHERENT);
        config.non_coherent_atom = atoms[i];
        open_owned(&w, &o, &config);
        for (offset = 0; offset <= 448; offset += 64)
            for (always = 0; always < 2; always++) flush_at(&w, offset, always);
        close_device(&w);
    }
}

// -- a pipeline cache of the caller --

static PFN_vkGetDeviceProcAddr next_device_proc;
static PFN_vkCreateComputePipelines next_pipelines;
static PFN_vkUpdateDescriptorSets next_update;
static int sets_written;
static VkPipelineCache cache_seen;
static int pipelines_made;

static VKAPI_ATTR VkResult VKAPI_CALL see_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                    const VkComputePipelineCreateInfo *infos,
                                                    const VkAllocationCallbacks *callbacks, VkPipeline *pipelines) {
    if (pipelines_made++ && cache != cache_seen) fail_msg("%s", "pipelines of several caches");
    cache_seen = cache;
    return next_pipelines(device, cache, count, infos, callbacks, pipelines);
}

static VKAPI_ATTR void VKAPI_CALL see_updates(VkDevice device, uint32_t count, const VkWriteDescriptorSet *writes, uint32_t copy_count,
                                              const VkCopyDescriptorSet *copies) {
    sets_written++;
    next_update(device, count, writes, copy_count, copies);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL see_device_proc(VkDevice device, const char *name) {
    PFN_vkVoidFunction found = next_device_proc(device, name);
    if (!strcmp(name, "vkCreateComputePipelines")) {
        next_pipelines = (PFN_vkCreateComputePipelines)found;
        return (PFN_vkVoidFunction)see_pipelines;
    }
    if (!strcmp(name, "vkUpdateDescriptorSets")) {
        next_update = (PFN_vkUpdateDescriptorSets)found;
        return (PFN_vkVoidFunction)see_updates;
    }
    return found;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL see_instance_proc(VkInstance instance, const char *name) {
    PFN_vkVoidFunction found = vkshim_get_instance_proc(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr")) return found;
    next_device_proc = (PFN_vkGetDeviceProcAddr)found;
    return (PFN_vkVoidFunction)see_device_proc;
}

static tl_range claim_range(world *w, uint64_t bytes) {
    tl_range range;
    memset(&range, 0, sizeof range);
    range.bytes = bytes;
    assert_int_equal(w->backend.add_block(w->backend.self, TL_TIER_DEVICE, bytes, &range.block), TL_OK);
    assert_int_equal(w->backend.claim(w->backend.self, range), TL_OK);
    return range;
}

static void give_range(world *w, tl_range range) {
    assert_int_equal(w->backend.release(w->backend.self, range), TL_OK);
    assert_int_equal(w->backend.free_block(w->backend.self, range.block), TL_OK);
}

// And each is made when it is needed first: the caller's by its init, one of the library by its first operation.
static void every_pipeline_uses_the_cache_of_the_caller(void **state) {
    int with, k;
    (void)state;
    if (!vkt_has_vulkan("every_pipeline_uses_the_cache_of_the_caller")) skip();
    for (with = 0; with < 2; with++) {
        PFN_vkCreatePipelineCache create;
        PFN_vkDestroyPipelineCache destroy;
        VkPipelineCacheCreateInfo info;
        VkPipelineCache cache = VK_NULL_HANDLE;
        tl_vk_kernel *kernel;
        tl_range plain, packed;
        tl_ticket ticket;
        world w;
        open_machine(&w, 0);
        memset(&info, 0, sizeof info);
        info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
        create = (PFN_vkCreatePipelineCache)w.v.vk.GetDeviceProcAddr(w.v.device.device, "vkCreatePipelineCache");
        destroy = (PFN_vkDestroyPipelineCache)w.v.vk.GetDeviceProcAddr(w.v.device.device, "vkDestroyPipelineCache");
        if (with) assert_int_equal(create(w.v.device.device, &info, NULL, &cache), VK_SUCCESS);
        w.desc.device.get_instance_proc = see_instance_proc;
        w.desc.pipeline_cache = cache;
        pipelines_made = 0;
        open_backend(&w);
        assert_int_equal(pipelines_made, 0);
        kernel = add_kernel(&w);
        assert_int_equal(pipelines_made, 1);
        plain = claim_range(&w, 64);
        packed = claim_range(&w, 32);
        assert_int_equal(w.backend.fill(w.backend.self, plain, 0), TL_OK);
        for (k = 0; k < 2; k++)
            assert_int_equal(w.backend.compress(w.backend.self, TL_CODEC_F16, packed, plain), TL_OK);
        assert_int_equal(pipelines_made, 2);
        assert_true(cache_seen == cache);
        assert_int_equal(w.backend.submit(w.backend.self, &ticket), TL_OK);
        assert_int_equal(w.backend.wait(w.backend.self, ticket), TL_OK);
        give_range(&w, packed);
        give_range(&w, plain);
        tl_vk_free_kernel(&w.backend, kernel);
        close_backend(&w, "cached");
        if (with) destroy(w.v.device.device, cache, NULL);
        close_device(&w);
    }
}

// -- sets of places --

enum { PLACE_CHUNKS = 3, PLACE_BYTES = 600 };

// Against a map of bytes. A set holds as few places as its bytes are runs, so it is full only where these are too many.
static void a_set_of_places_is_a_set_of_bytes(void **state) {
    static tli_vk_index index;
    static uint8_t bytes[PLACE_CHUNKS][PLACE_BYTES + 1];
    tl_random random = { 31 };
    long round, full = 0, met = 0;
    (void)state;
    for (round = 0; round < scaled(2000); round++) {
        uint64_t most = 1 + tl_next_random_below(&random, 20);
        int step;
        memset(bytes, 0, sizeof bytes);
        index.count = 0;
        for (step = 0; step < 400; step++) {
            tli_vk_place place;
            int32_t runs = 0, c;
            int meets = 0, k, added;
            place.chunk = (int32_t)tl_next_random_below(&random, PLACE_CHUNKS);
            place.bytes = tl_next_random_below(&random, most + 1);
            place.at = step % 3 ? tl_next_random_below(&random, PLACE_BYTES - place.bytes) : (uint64_t)step * 4 % (PLACE_BYTES - place.bytes);
            for (k = 0; k < (int)place.bytes; k++) meets |= bytes[place.chunk][place.at + (uint64_t)k];
            assert_int_equal(tli_vk_index_meets(&index, &place), meets);
            met += meets;
            added = tli_vk_index_add(&index, &place);
            full += !added;
            if (!added) break;
            memset(&bytes[place.chunk][place.at], 1, (size_t)place.bytes);
            for (c = 0; c < PLACE_CHUNKS; c++)
                for (k = 0; k < PLACE_BYTES; k++) runs += bytes[c][k] && !bytes[c][k + 1];
            assert_int_equal(index.count, runs);
        }
    }
    printf("%ld rounds, %ld places met others, %ld sets were full\n", round, met, full);
    assert_true(met > round && (full || is_thinned()));
}

// -- descriptor sets that are kept --

enum { SUM_BYTES = 64, SUM_STRIDE = 256, SUMS = 300, SUMS_AGAIN = 40 };

static tl_range sum_range(tl_range whole, int i) {
    whole.offset = (uint64_t)i * SUM_STRIDE;
    whole.bytes = SUM_BYTES;
    return whole;
}

static tl_range claim_arena(world *w) {
    tl_range range;
    memset(&range, 0, sizeof range);
    range.bytes = SUMS * SUM_STRIDE;
    expect_ok(w, w->backend.add_arena(w->backend.self, TL_TIER_DEVICE, 0, range.bytes, &range.block), "add_arena");
    expect_ok(w, w->backend.claim(w->backend.self, range), "claim");
    return range;
}

// to[i] += from[i] by the kernel, for the first `count` ranges, as one batch.
static void add_ranges(world *w, const tl_vk_kernel *kernel, tl_range to, tl_range from, int count) {
    const uint32_t push[3] = { SUM_BYTES / 4, 0, 0 };
    tl_ticket ticket;
    int i;
    for (i = 0; i < count; i++) {
        tl_range ranges[2];
        tl_access accesses[2];
        ranges[0] = accesses[0].range = sum_range(to, i);
        ranges[1] = accesses[1].range = sum_range(from, i);
        accesses[0].writes = 1;
        accesses[1].writes = 0;
        expect_ok(w, w->backend.order(w->backend.self, accesses, 2), "order");
        expect_ok(w, tl_vk_record_kernel(&w->backend, kernel, ranges, push, 1, 1, 1), "record_kernel");
    }
    expect_ok(w, w->backend.submit(w->backend.self, &ticket), "submit");
    expect_ok(w, w->backend.wait(w->backend.self, ticket), "wait");
}

static void expect_sum(world *w, tl_range to, int i, float expected) {
    tl_range range = sum_range(to, i);
    void *host;
    int k;
    expect_ok(w, w->backend.map(w->backend.self, range, TL_MAP_READ, &host), "map");
    for (k = 0; k < SUM_BYTES / 4; k++)
        if (((const float *)host)[k] < expected || ((const float *)host)[k] > expected)
            fail_msg("range %d: %g, not %g", i, (double)((const float *)host)[k], (double)expected);
    expect_ok(w, w->backend.unmap(w->backend.self, range, TL_MAP_READ, host), "unmap");
}

// A pass that binds what the pass before bound writes no descriptor, unless a buffer was destroyed since. More sets than a kernel
// keeps come from the batch.
static void sets_are_kept_for_the_next_pass(void **state) {
    world w;
    tl_vk_kernel *kernel;
    tl_range to, from;
    int i, written;
    (void)state;
    if (!vkt_has_vulkan("sets_are_kept_for_the_next_pass")) skip();
    open_machine(&w, 0);
    w.desc.device.get_instance_proc = see_instance_proc;
    pipelines_made = 0;
    open_backend(&w);
    kernel = add_kernel(&w);
    to = claim_arena(&w);
    from = claim_arena(&w);
    expect_ok(&w, w.backend.fill(w.backend.self, to, 0), "fill");
    expect_ok(&w, w.backend.fill(w.backend.self, from, 0x3F800000u), "fill");
    sets_written = 0;
    add_ranges(&w, kernel, to, from, SUMS);
    assert_int_equal(sets_written, SUMS);
    add_ranges(&w, kernel, to, from, SUMS_AGAIN);
    assert_int_equal(sets_written, SUMS);
    add_ranges(&w, kernel, to, from, SUMS);
    written = sets_written - SUMS;
    assert_true(written >= SUMS - TLI_VK_KEPT_SETS && written < SUMS - TLI_VK_KEPT_SETS / 2);
    for (i = 0; i < SUMS; i++) expect_sum(&w, to, i, i < SUMS_AGAIN ? 3.0f : 2.0f);
    give_range(&w, to);
    expect_ok(&w, tl_vk_drop_unused(&w.backend, 0), "drop_unused");
    to = claim_arena(&w);
    expect_ok(&w, w.backend.fill(w.backend.self, to, 0), "fill");
    sets_written = 0;
    add_ranges(&w, kernel, to, from, 1);
    assert_int_equal(sets_written, 1);
    expect_sum(&w, to, 0, 1.0f);
    give_range(&w, to);
    give_range(&w, from);
    tl_vk_free_kernel(&w.backend, kernel);
    close_backend(&w, "kept sets");
    close_device(&w);
}

// -- counters of time that begin again --

// The ticks of a slot, as the driver counts them.
static uint64_t read_raw(world *w, uint32_t slot) {
    const tli_vk *b = (const tli_vk *)w->backend.self;
    uint64_t ticks = 0;
    assert_int_equal(vkshim.real.GetQueryPoolResults(w->v.device.device, b->times, slot, 1, sizeof ticks, &ticks, sizeof ticks,
                                                     VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT), VK_SUCCESS);
    return ticks;
}

// Shift the counter by so much.
static void shift_ticks(world *w, uint64_t add) {
    w->config.timestamp_add = add;
    vkshim_change(&w->config);
}

static void expect_difference(uint64_t ticks, const uint64_t *ns, const char *what) {
    double expected = (double)ticks * 52.0833, came = (double)ns[1] - (double)ns[0];
    if (ns[1] < ns[0] || came - expected > 2 + expected * 1e-6 || expected - came > 2 + expected * 1e-6)
        fail_msg("%s: %g ns, not %g", what, came, expected);
}

static void times_go_on_where_the_counter_begins_again(void **state) {
    static const uint32_t bits[] = { 36, 40, 47, 48, 53, 60, 64 };
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("times_go_on_where_the_counter_begins_again")) skip();
    for (i = 0; i < sizeof bits / sizeof *bits; i++) {
        const uint64_t range = bits[i] < 64 ? (uint64_t)1 << bits[i] : 0;   // 2^64 wraps to 0
        uint64_t raw[2], ns[2];
        tl_range block = {0};
        vkshim_config config;
        vkt_desc device = {0};
        char what[64];
        world w;
        int round, order;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        config.timestamp_bits = bits[i];
        config.timestamp_period = 52.0833f;
        open_device(&w, &config, &device);
        open_backend(&w);
        expect_ok(&w, add_range(&w, TL_TIER_DEVICE, 1 << 16, &block), "add");
        for (round = 0; round < 12; round++) {
            expect_ok(&w, tl_vk_record_time(&w.backend, 0), "record");
            expect_ok(&w, w.backend.fill(w.backend.self, block, 1), "fill");
            expect_ok(&w, tl_vk_record_time(&w.backend, 1), "record");
            finish(&w);
            raw[0] = read_raw(&w, 0);
            raw[1] = read_raw(&w, 1);
            for (order = 0; order < 3; order++) {   // both at once; the later one first; again
                snprintf(what, sizeof what, "%d bits, round %d, order %d", (int)bits[i], round, order);
                if (bits[i] <= 48) shift_ticks(&w, range - 1 - (raw[0] & (range - 1)) - (uint64_t)(round % 2));
                if (order == 1) expect_ok(&w, tl_vk_read_times(&w.backend, 1, 1, &ns[1]), "read");
                expect_ok(&w, tl_vk_read_times(&w.backend, 0, order == 1 ? 1 : 2, ns), "read");
                expect_difference(raw[1] - raw[0], ns, what);
            }
        }
        // The later one first, and three eighths of the range after the other.
        if (bits[i] <= 48) {
            shift_ticks(&w, range / 8 - raw[1]);
            expect_ok(&w, tl_vk_read_times(&w.backend, 1, 1, &ns[1]), "read");
            shift_ticks(&w, range / 8 - range / 8 * 3 - raw[0]);
            expect_ok(&w, tl_vk_read_times(&w.backend, 0, 1, &ns[0]), "read");
            expect_difference(range / 8 * 3, ns, "three eighths before");
        }
        // A counter that goes on by three eighths of its range between two times goes round nine times.
        for (round = 0; round < 24 && bits[i] <= 47; round++) {
            expect_ok(&w, tl_vk_record_time(&w.backend, 0), "record");
            finish(&w);
            shift_ticks(&w, (uint64_t)round * (range / 8 * 3) - read_raw(&w, 0));
            expect_ok(&w, tl_vk_read_times(&w.backend, 0, 1, &ns[1]), "read");
            if (round) expect_difference(range / 8 * 3, ns, "three eighths");
            ns[0] = ns[1];
        }
        free_range(&w, &block);
        close_backend(&w, "times");
        close_device(&w);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_submits_are_under_way_without_a_wait),
        cmocka_unit_test(whatever_fails_once_or_thrice_is_right_when_tried_again),
        cmocka_unit_test(what_the_caller_recorded_is_told_to_be_lost),
        cmocka_unit_test(bytes_beside_what_was_recorded_again_are_lost),
        cmocka_unit_test(commands_that_could_not_be_noted_are_stale_at_worst),
        cmocka_unit_test(a_manager_says_that_the_device_was_lost),
        cmocka_unit_test(a_backend_is_not_freed_under_what_lives_on),
        cmocka_unit_test(frames_under_way_keep_their_backend),
        cmocka_unit_test(an_allocator_is_asked_to_map_as_the_built_in_one_maps),
        cmocka_unit_test(an_allocator_is_asked_for_the_next_kind_of_memory),
        cmocka_unit_test(flushes_stay_inside_of_what_an_allocator_gave),
        cmocka_unit_test(every_pipeline_uses_the_cache_of_the_caller),
        cmocka_unit_test(a_set_of_places_is_a_set_of_bytes),
        cmocka_unit_test(sets_are_kept_for_the_next_pass),
        cmocka_unit_test(times_go_on_where_the_counter_begins_again),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_users", tests, NULL, NULL);
}
