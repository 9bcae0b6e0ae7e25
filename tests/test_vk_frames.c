// [3] FRAMES of tl_vk_backend.h: what a backend without a queue records into frames that the test submits,
// retires or drops, as an engine does. On the machine as it is, and on one whose device memory the host
// cannot reach, so that reads are asked for in one frame and there after it.
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

#define SLOTS 8

typedef struct frames {
    vkt v;
    failing_alloc alloc;
    tl_env env;
    tl_backend b;
    VkCommandPool   pools[SLOTS];
    VkCommandBuffer commands[SLOTS];
    VkFence         fences[SLOTS];
    tl_ticket open;            // of the frame that is open
} frames;

// 0: the machine as it is. 1: device memory that the host does not see.
#define MACHINES 2

static void open_frames(frames *f, int machine, int32_t batch_count) {
    vkt_desc device = {0};
    tl_vk_backend_desc desc = {0};
    vkshim_config config;
    int i;
    memset(f, 0, sizeof *f);
    vkshim_default(&config, machine ? VKSHIM_MACHINE_DISCRETE : VKSHIM_MACHINE_REAL);
    vkshim_reset(&config);
    device.get_instance_proc = vkshim_get_instance_proc;
    vkt_open(&device, &f->v);
    f->env = failing_env(&f->alloc, -1);
    desc.device = f->v.device;
    desc.device.queue = VK_NULL_HANDLE;
    desc.batch_count = batch_count;
    desc.chunk_bytes = 1 << 20;
    desc.staging_bytes = 1 << 20;
    desc.time_count = 4;
    if (tl_vk_init_backend(&f->env, &desc, &f->b)) fail_msg("%s", f->env.error.text);
    for (i = 0; i < SLOTS; i++) {
        VkCommandPoolCreateInfo pool;
        VkCommandBufferAllocateInfo buffers;
        VkFenceCreateInfo fence;
        memset(&pool, 0, sizeof pool);
        memset(&buffers, 0, sizeof buffers);
        memset(&fence, 0, sizeof fence);
        pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
        pool.queueFamilyIndex = f->v.device.queue_family;
        vkt_ok(f->v.vk.CreateCommandPool(f->v.device.device, &pool, NULL, &f->pools[i]), "vkCreateCommandPool");
        buffers.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
        buffers.commandPool = f->pools[i];
        buffers.commandBufferCount = 1;
        vkt_ok(f->v.vk.AllocateCommandBuffers(f->v.device.device, &buffers, &f->commands[i]),
               "vkAllocateCommandBuffers");
        fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
        vkt_ok(f->v.vk.CreateFence(f->v.device.device, &fence, NULL, &f->fences[i]), "vkCreateFence");
    }
}

static void close_frames(frames *f) {
    vkshim_counts counts;
    int i;
    for (i = 0; i < SLOTS; i++) {
        f->v.vk.DestroyFence(f->v.device.device, f->fences[i], NULL);
        f->v.vk.DestroyCommandPool(f->v.device.device, f->pools[i], NULL);
    }
    tl_vk_free_backend(&f->env, &f->b);
    vkt_close(&f->v);
    vkshim_report(&counts);
    if (counts.violation_count) fail_msg("%s", counts.violation_text);
    assert_int_equal(vkt_messages(&f->v), 0);
    assert_int_equal(f->alloc.live, 0);
}

static tl_vk_counters measure(const frames *f) {
    tl_vk_counters counters;
    tl_vk_measure(&f->b, &counters);
    return counters;
}

// -- an engine's frames --

static int slot_of(tl_ticket frame) { return (int)(frame.value % SLOTS); }

static tl_result try_start(frames *f) {
    VkCommandBufferBeginInfo begin;
    tl_ticket frame;
    tl_result result;
    int slot = (int)((f->open.value + 1) % SLOTS);
    memset(&begin, 0, sizeof begin);
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    vkt_ok(f->v.vk.ResetCommandPool(f->v.device.device, f->pools[slot], 0), "vkResetCommandPool");
    vkt_ok(f->v.vk.BeginCommandBuffer(f->commands[slot], &begin), "vkBeginCommandBuffer");
    result = tl_vk_start_frame(&f->b, f->commands[slot], &frame);
    if (result) return result;
    f->open = frame;
    assert_int_equal(slot_of(frame), slot);
    return TL_OK;
}

static void start(frames *f) {
    if (try_start(f)) fail_msg("%s", f->env.error.text);
}

static tl_ticket end(frames *f) {
    if (tl_vk_end_frame(&f->b)) fail_msg("%s", f->env.error.text);
    vkt_ok(f->v.vk.EndCommandBuffer(f->commands[slot_of(f->open)]), "vkEndCommandBuffer");
    return f->open;
}

static void send(frames *f, tl_ticket frame) {
    vkt_submit(&f->v, f->commands[slot_of(frame)], f->fences[slot_of(frame)]);
}

static void retire(frames *f, tl_ticket frame) {
    VkFence fence = f->fences[slot_of(frame)];
    vkt_ok(f->v.vk.WaitForFences(f->v.device.device, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    vkt_ok(f->v.vk.ResetFences(f->v.device.device, 1, &fence), "vkResetFences");
    assert_int_equal(tl_vk_retire_frame(&f->b, frame), TL_OK);
}

static void finish(frames *f) {
    tl_ticket frame = end(f);
    send(f, frame);
    retire(f, frame);
}

// Whatever is enqueued happens.
static void run_frame(frames *f) {
    start(f);
    finish(f);
}

// Throw the frame away that is open, as it is or ended.
static void drop(frames *f, int ends) {
    if (ends) end(f);
    assert_int_equal(tl_vk_drop_frame(&f->b, f->open), TL_OK);
}

// -- blocks --

static tl_range add_tier(frames *f, tl_tier tier, uint64_t bytes) {
    tl_range range = {0};
    if (f->b.add_block(f->b.self, tier, bytes, &range.block)) fail_msg("%s", f->env.error.text);
    range.bytes = bytes;
    assert_int_equal(f->b.claim(f->b.self, range), TL_OK);
    return range;
}

static tl_range add(frames *f, uint64_t bytes) { return add_tier(f, TL_TIER_DEVICE, bytes); }

static void forget(frames *f, tl_range range) {
    assert_int_equal(f->b.release(f->b.self, range), TL_OK);
    assert_int_equal(f->b.free_block(f->b.self, range.block), TL_OK);
}

static void write_bytes(frames *f, tl_range range, const void *bytes) {
    void *host;
    if (f->b.map(f->b.self, range, TL_MAP_WRITE, &host)) fail_msg("%s", f->env.error.text);
    memcpy(host, bytes, (size_t)range.bytes);
    assert_int_equal(f->b.unmap(f->b.self, range, TL_MAP_WRITE, host), TL_OK);
}

static void write_floats(frames *f, tl_range range, float first) {
    float values[1024];
    uint64_t i;
    assert_true(range.bytes <= sizeof values);
    for (i = 0; i < range.bytes / 4; i++) values[i] = first + (float)i / 64;
    write_bytes(f, range, values);
}

static tl_result try_read(frames *f, tl_range range, void *bytes) {
    void *host;
    tl_result result = f->b.map(f->b.self, range, TL_MAP_READ, &host);
    if (result) return result;
    memcpy(bytes, host, (size_t)range.bytes);
    assert_int_equal(f->b.unmap(f->b.self, range, TL_MAP_READ, host), TL_OK);
    return TL_OK;
}

// Read, through a frame where that is needed. No frame is open.
static tl_result read_bytes(frames *f, tl_range range, void *bytes) {
    tl_result result = try_read(f, range, bytes);
    if (result != TL_NOT_READY) return result;
    run_frame(f);
    return try_read(f, range, bytes);
}

static void expect_floats(frames *f, tl_range range, float first) {
    float values[1024];
    uint64_t i;
    if (read_bytes(f, range, values)) fail_msg("%s", f->env.error.text);
    for (i = 0; i < range.bytes / 4; i++)
        if (values[i] != first + (float)i / 64) fail_msg("value %d is %g", (int)i, (double)values[i]);
}

static void expect_error(frames *f, tl_result result, tl_result code, const char *text) {
    if (result != code) fail_msg("%s where %s was expected", tl_name_result(result), tl_name_result(code));
    if (strcmp(f->env.error.text, text)) fail_msg("\"%s\"", f->env.error.text);
}

static const char *const stale_map = "map: range: was written by a frame that was dropped";
static const char *const stale_copy = "copy: range: was written by a frame that was dropped";

// -- kernels --

typedef struct layers { tl_vk_kernel *forward, *backward; } layers;

static tl_vk_kernel *make_kernel(frames *f, const uint32_t *words, size_t bytes, int32_t buffer_count) {
    tl_vk_kernel_desc desc = {0};
    tl_vk_kernel *kernel;
    desc.words = words;
    desc.word_count = bytes / 4;
    desc.buffer_count = buffer_count;
    desc.push_bytes = 4;
    if (tl_vk_init_kernel(&f->b, &desc, &kernel)) fail_msg("%s", f->env.error.text);
    return kernel;
}

static void make_layers(frames *f, layers *l) {
    l->forward = make_kernel(f, vk_layer_forward_words, sizeof vk_layer_forward_words, 2);
    l->backward = make_kernel(f, vk_layer_backward_words, sizeof vk_layer_backward_words, 4);
}

static void free_layers(frames *f, layers *l) {
    tl_vk_free_kernel(&f->b, l->forward);
    tl_vk_free_kernel(&f->b, l->backward);
}

static tl_access access_of(tl_range range, int32_t writes) {
    tl_access access;
    access.range = range;
    access.writes = writes;
    return access;
}

static tl_result record_forward(frames *f, const layers *l, tl_range to, tl_range from) {
    tl_range ranges[2];
    uint32_t count = (uint32_t)(to.bytes / 4);
    ranges[0] = to;
    ranges[1] = from;
    return tl_vk_record_kernel(&f->b, l->forward, ranges, &count, (count + 63) / 64, 1, 1);
}

static tl_result order_forward(frames *f, tl_range to, tl_range from) {
    tl_access accesses[2];
    accesses[0] = access_of(to, 1);
    accesses[1] = access_of(from, 0);
    return f->b.order(f->b.self, accesses, 2);
}

static float forward_of(float x) { return x * (1.0f - 0.25f * x); }

static void expect_forward(frames *f, tl_range range, float first) {
    float values[1024];
    uint64_t i;
    if (read_bytes(f, range, values)) fail_msg("%s", f->env.error.text);
    for (i = 0; i < range.bytes / 4; i++)
        if (values[i] != forward_of(first + (float)i / 64)) fail_msg("value %d is %g", (int)i, (double)values[i]);
}

// -- group 12 --

static void frames_record_and_never_submit(void **state) {
    int machine;
    (void)state;
    if (!vkt_has_vulkan("frames_record_and_never_submit")) skip();
    for (machine = 0; machine < MACHINES; machine++) {
        frames f;
        tl_range a, b, host;
        tl_ticket ticket, frame;
        tl_vk_counters before, after;
        uint64_t allocations;
        float values[64];
        int i;
        open_frames(&f, machine, 2);
        a = add(&f, 256);
        b = add(&f, 256);
        host = add_tier(&f, TL_TIER_HOST, 256);
        write_floats(&f, a, 1);
        run_frame(&f);
        before = measure(&f);
        allocations = vkshim_calls("vkAllocateMemory");
        for (i = 0; i < 20; i++) {
            // No frame is open: the next one takes it.
            write_floats(&f, a, (float)i);
            assert_int_equal(f.b.copy(f.b.self, b, a), TL_OK);
            assert_int_equal(f.b.copy(f.b.self, host, b), TL_OK);
            assert_int_equal(f.b.submit(f.b.self, &ticket), TL_OK);
            assert_int_equal(f.b.poll(f.b.self, ticket), TL_NOT_READY);
            start(&f);
            assert_int_equal(ticket.value, f.open.value);
            assert_int_equal(f.b.wait(f.b.self, ticket), TL_NOT_READY);
            expect_error(&f, try_read(&f, host, values), TL_NOT_READY, "map: the frame was not retired yet");
            frame = end(&f);
            assert_int_equal(f.b.poll(f.b.self, ticket), TL_NOT_READY);
            send(&f, frame);
            assert_int_equal(f.b.poll(f.b.self, ticket), TL_NOT_READY);
            assert_int_equal(try_read(&f, host, values), TL_NOT_READY);
            retire(&f, frame);
            assert_int_equal(f.b.poll(f.b.self, ticket), TL_OK);
            assert_int_equal(f.b.wait(f.b.self, ticket), TL_OK);
            expect_floats(&f, host, (float)i);
            assert_int_equal(try_read(&f, host, values), TL_OK);
        }
        after = measure(&f);
        assert_int_equal(after.submit_count, 0);
        assert_int_equal(after.host_wait_count, 0);
        assert_int_equal(after.memory_count, before.memory_count);
        assert_int_equal(vkshim_calls("vkAllocateMemory"), allocations);
        assert_int_equal(after.frame_count - before.frame_count, 20);
        forget(&f, a);
        forget(&f, b);
        forget(&f, host);
        close_frames(&f);
    }
    printf("12: 40 frames submitted by their owner\n");
}

// A frame that copies `count` ranges, each onto a target of its own.
static tl_vk_counters count_copies(frames *f, const tl_range *to, const tl_range *from, int count) {
    tl_vk_counters before = measure(f), after;
    int i;
    start(f);
    for (i = 0; i < count; i++) assert_int_equal(f->b.copy(f->b.self, to[i], from[i]), TL_OK);
    finish(f);
    after = measure(f);
    after.barrier_count -= before.barrier_count;
    after.copy_count -= before.copy_count;
    return after;
}

// Counted while nothing else is to be moved: where writes and reads go through frames, these are over.
static void count_barriers(int machine) {
    frames f;
    tl_range to[64], from[64];
    tl_vk_counters before, counted;
    uint64_t calls;
    int i;
    open_frames(&f, machine, 2);
    for (i = 0; i < 64; i++) {
        from[i] = add(&f, 1000);
        to[i] = add(&f, 1000);
        write_floats(&f, from[i], (float)i);
    }
    before = measure(&f);
    run_frame(&f);
    counted = measure(&f);                       // at the end; after writes of the host, where they are copies in it
    assert_int_equal(counted.barrier_count - before.barrier_count, counted.copy_count == before.copy_count ? 1 : 2);
    calls = vkshim_calls("vkCmdPipelineBarrier");
    counted = count_copies(&f, to, from, 64);
    assert_int_equal(counted.barrier_count, 1);  // after them: the last frame ended with one, too
    assert_int_equal(counted.copy_count, 2);     // commands of 32 regions
    assert_int_equal(vkshim_calls("vkCmdPipelineBarrier") - calls, counted.barrier_count);
    for (i = 0; i < 64; i++) expect_floats(&f, to[i], (float)i);
    counted = count_copies(&f, to, from, 64);
    assert_int_equal(counted.barrier_count, 1);
    counted = count_copies(&f, to + 1, to, 4);   // each reads what the last one wrote
    assert_int_equal(counted.barrier_count, 4);
    expect_floats(&f, to[4], 0);
    start(&f);                                   // after other work in the frame: one before, one after
    assert_int_equal(f.b.copy(f.b.self, to[0], from[1]), TL_OK);
    assert_int_equal(f.b.order(f.b.self, NULL, 0), TL_OK);
    counted = measure(&f);
    calls = counted.barrier_count;
    for (i = 0; i < 64; i++) assert_int_equal(f.b.copy(f.b.self, to[i], from[i]), TL_OK);
    finish(&f);
    assert_int_equal(measure(&f).barrier_count - calls, 2);
    for (i = 0; i < 64; i++) expect_floats(&f, to[i], (float)i);
    for (i = 0; i < 64; i++) {
        forget(&f, from[i]);
        forget(&f, to[i]);
    }
    close_frames(&f);
}

static void independent_copies_share_a_barrier(void **state) {
    (void)state;
    if (!vkt_has_vulkan("independent_copies_share_a_barrier")) skip();
    count_barriers(0);
    count_barriers(1);
    printf("12: barriers of 8 frames counted\n");
}

static void so_many_frames_are_under_way(void **state) {
    int32_t count;
    (void)state;
    if (!vkt_has_vulkan("so_many_frames_are_under_way")) skip();
    for (count = 1; count <= 4; count++) {
        frames f;
        tl_range a;
        tl_ticket none = {0}, tickets[4];
        int32_t i;
        open_frames(&f, 0, count);
        a = add(&f, 64);
        for (i = 0; i < count; i++) {
            start(&f);
            expect_error(&f, tl_vk_start_frame(&f.b, f.commands[7], &none), TL_ERROR_INVALID_ARG,
                         "tl_vk_start_frame: backend: a frame is open");
            assert_int_equal(tl_vk_retire_frame(&f.b, f.open), TL_ERROR_INVALID_ARG);
            assert_int_equal(f.b.fill(f.b.self, a, (uint32_t)i), TL_OK);
            tickets[i] = end(&f);
            assert_int_equal(tl_vk_end_frame(&f.b), TL_ERROR_INVALID_ARG);
            send(&f, tickets[i]);
        }
        expect_error(&f, tl_vk_start_frame(&f.b, f.commands[7], &none), TL_NOT_READY,
                     "tl_vk_start_frame: batch_count: so many frames were not retired yet");
        assert_int_equal(none.value, 0);
        for (i = 0; i < count; i++)
            vkt_ok(f.v.vk.WaitForFences(f.v.device.device, 1, &f.fences[slot_of(tickets[i])], VK_TRUE, UINT64_MAX),
                   "vkWaitForFences");
        assert_int_equal(tl_vk_retire_frame(&f.b, tickets[count - 1]), TL_OK);  // and all before it
        for (i = 0; i < count; i++) assert_int_equal(f.b.poll(f.b.self, tickets[i]), TL_OK);
        for (i = 0; i < count; i++)
            vkt_ok(f.v.vk.ResetFences(f.v.device.device, 1, &f.fences[slot_of(tickets[i])]), "vkResetFences");
        run_frame(&f);
        forget(&f, a);
        close_frames(&f);
    }
    printf("12: 1 to 4 frames under way\n");
}

// -- dropped frames --

// Every way to write a range of 256 bytes.
typedef enum write_kind {
    WRITE_COPY, WRITE_FILL, WRITE_COMPRESS, WRITE_EXPAND, WRITE_ADD, WRITE_KERNEL, WRITE_HOST, WRITE_KINDS
} write_kind;

// `packed` holds 64 f16, `wide` 128 f32.
static tl_result write_range(frames *f, const layers *l, write_kind kind, tl_range to, tl_range from,
                             tl_range packed, tl_range wide) {
    void *host;
    tl_result result;
    switch (kind) {
    case WRITE_COPY: return f->b.copy(f->b.self, to, from);
    case WRITE_FILL: return f->b.fill(f->b.self, to, 7);
    case WRITE_COMPRESS: return f->b.compress(f->b.self, TL_CODEC_F16, to, wide);
    case WRITE_EXPAND: return f->b.expand(f->b.self, TL_CODEC_F16, to, packed);
    case WRITE_ADD: return tl_vk_record_add(&f->b, to, from);
    case WRITE_KERNEL:
        result = order_forward(f, to, from);
        return result ? result : record_forward(f, l, to, from);
    case WRITE_HOST:
        result = f->b.map(f->b.self, to, TL_MAP_WRITE, &host);
        if (result) return result;
        memset(host, 1, (size_t)to.bytes);
        return f->b.unmap(f->b.self, to, TL_MAP_WRITE, host);
    case WRITE_KINDS: break;
    }
    return TL_ERROR_INVALID_ARG;
}

static void expect_stale(frames *f, tl_range lost, tl_range other) {
    tl_access access = access_of(lost, 0);
    char bytes[256];
    expect_error(f, try_read(f, lost, bytes), TL_ERROR_STALE, stale_map);
    expect_error(f, f->b.copy(f->b.self, other, lost), TL_ERROR_STALE, stale_copy);
    expect_error(f, f->b.order(f->b.self, &access, 1), TL_ERROR_STALE,
                 "order: range: was written by a frame that was dropped");
    assert_int_equal(tl_vk_record_add(&f->b, lost, other), TL_ERROR_STALE);
    assert_int_equal(tl_vk_record_add(&f->b, other, lost), TL_ERROR_STALE);
}

static void a_dropped_frame_never_happened(void **state) {
    int machine, ends, kind, again, cases = 0;
    (void)state;
    if (!vkt_has_vulkan("a_dropped_frame_never_happened")) skip();
    for (machine = 0; machine < MACHINES; machine++) {
        frames f;
        layers l;
        tl_range a, t, packed, wide, other;
        open_frames(&f, machine, 2);
        make_layers(&f, &l);
        a = add(&f, 256);
        t = add(&f, 256);
        packed = add(&f, 128);
        wide = add(&f, 512);
        other = add(&f, 256);
        write_floats(&f, a, 1);
        write_floats(&f, packed, 2);
        write_floats(&f, wide, 3);
        write_floats(&f, other, 4);
        run_frame(&f);
        for (ends = 0; ends < 2; ends++)
        for (kind = 0; kind < WRITE_KINDS; kind++)
        for (again = 0; again < WRITE_KINDS; again++) {
            tl_result result;
            write_floats(&f, t, 5);
            run_frame(&f);
            start(&f);
            if (kind == WRITE_HOST)  // in use, so that it is staged
                assert_int_equal(f.b.copy(f.b.self, other, t), TL_OK);
            assert_int_equal(write_range(&f, &l, (write_kind)kind, t, a, packed, wide), TL_OK);
            drop(&f, ends);
            expect_stale(&f, t, other);
            if (kind == WRITE_HOST) write_floats(&f, other, 4);
            run_frame(&f);
            expect_stale(&f, t, other);
            expect_floats(&f, a, 1);
            expect_floats(&f, other, 4);
            start(&f);
            result = write_range(&f, &l, (write_kind)again, t, a, packed, wide);
            if (again == WRITE_ADD || again == WRITE_KERNEL) {  // a kernel may read what it writes
                assert_int_equal(result, TL_ERROR_STALE);
                assert_int_equal(f.b.fill(f.b.self, t, 0), TL_OK);
                result = write_range(&f, &l, (write_kind)again, t, a, packed, wide);
            }
            assert_int_equal(result, TL_OK);
            finish(&f);
            if (again == WRITE_COPY) expect_floats(&f, t, 1);
            else if (again == WRITE_KERNEL) expect_forward(&f, t, 1);
            else {
                char bytes[256];
                assert_int_equal(read_bytes(&f, t, bytes), TL_OK);
            }
            cases++;
        }
        forget(&f, a);
        forget(&f, t);
        forget(&f, packed);
        forget(&f, wide);
        forget(&f, other);
        free_layers(&f, &l);
        close_frames(&f);
    }
    printf("12: %d dropped frames, %d ways to write\n", cases, WRITE_KINDS);
}

static tl_range part_of(tl_range range, uint64_t offset, uint64_t bytes) {
    range.offset += offset;
    range.bytes = bytes;
    return range;
}

static void lose_and_write_again(int machine, int rounds) {
    enum { PARTS = 16, PART = 256 };
    tl_random random = {0};
    int round;
    frames f;
    tl_range t, a;
    random.state = 3;
    open_frames(&f, machine, 2);
    t = add(&f, PARTS * PART);
    a = add(&f, PARTS * PART);
    write_floats(&f, a, 0);
    write_floats(&f, t, 100);
    run_frame(&f);
    for (round = 0; round < rounds; round++) {
        int lost[PARTS] = {0}, i, k;
        for (k = 0; k < 4; k++) {  // writes of random parts, dropped or not
            int from = (int)tl_next_random_below(&random, PARTS), drops = (int)tl_next_random_below(&random, 2);
            int count = 1 + (int)tl_next_random_below(&random, (uint64_t)(PARTS - from));
            start(&f);
            assert_int_equal(f.b.copy(f.b.self, part_of(t, (uint64_t)from * PART, (uint64_t)count * PART),
                                      part_of(a, (uint64_t)from * PART, (uint64_t)count * PART)), TL_OK);
            if (drops) drop(&f, k & 1);
            else finish(&f);
            for (i = from; i < from + count; i++) lost[i] = drops;
        }
        for (i = 0; i < PARTS; i++) {
            float values[PART / 4];
            tl_result result = read_bytes(&f, part_of(t, (uint64_t)i * PART, PART), values);
            if (result != (lost[i] ? TL_ERROR_STALE : TL_OK))
                fail_msg("round %d, part %d: %s, lost %d", round, i, tl_name_result(result), lost[i]);
        }
        write_floats(&f, t, 100);
        run_frame(&f);
        expect_floats(&f, t, 100);
    }
    forget(&f, t);
    forget(&f, a);
    close_frames(&f);
}

static void what_is_written_again_is_no_longer_lost(void **state) {
    (void)state;
    if (!vkt_has_vulkan("what_is_written_again_is_no_longer_lost")) skip();
    lose_and_write_again(0, 40);
    lose_and_write_again(1, 40);
    printf("12: 80 rounds of parts lost and written again\n");
}

static void frames_are_dropped_newest_first(void **state) {
    int machine, ends;
    (void)state;
    if (!vkt_has_vulkan("frames_are_dropped_newest_first")) skip();
    for (machine = 0; machine < MACHINES; machine++)
    for (ends = 0; ends < 2; ends++) {
        frames f;
        tl_range a, b, c;
        tl_ticket first, second, third;
        open_frames(&f, machine, 3);
        a = add(&f, 64);
        b = add(&f, 64);
        c = add(&f, 64);
        write_floats(&f, a, 1);
        write_floats(&f, b, 2);
        write_floats(&f, c, 3);
        run_frame(&f);
        start(&f);
        assert_int_equal(f.b.copy(f.b.self, a, c), TL_OK);
        first = end(&f);
        start(&f);
        assert_int_equal(f.b.copy(f.b.self, b, a), TL_OK);
        second = end(&f);
        start(&f);
        third = f.open;
        assert_int_equal(f.b.copy(f.b.self, c, a), TL_OK);
        expect_error(&f, tl_vk_drop_frame(&f.b, first), TL_ERROR_INVALID_ARG,
                     "tl_vk_drop_frame: frame: is not the latest one");
        drop(&f, ends);
        assert_int_equal(tl_vk_drop_frame(&f.b, third), TL_ERROR_INVALID_ARG);
        if (tl_vk_drop_frame(&f.b, second)) fail_msg("%s", f.env.error.text);
        send(&f, first);
        retire(&f, first);
        expect_floats(&f, a, 3);
        expect_stale(&f, b, a);
        expect_stale(&f, c, a);
        assert_int_equal(f.b.poll(f.b.self, third), TL_OK);
        write_floats(&f, b, 2);
        write_floats(&f, c, 3);
        run_frame(&f);
        expect_floats(&f, b, 2);
        expect_floats(&f, c, 3);
        forget(&f, a);
        forget(&f, b);
        forget(&f, c);
        close_frames(&f);
    }
    printf("12: 4 times three frames, the last two dropped\n");
}

// A frame is dropped while work that reads what it wrote waits for the next one.
static void what_follows_a_dropped_frame_is_lost_with_it(void **state) {
    int machine, kind;
    (void)state;
    if (!vkt_has_vulkan("what_follows_a_dropped_frame_is_lost_with_it")) skip();
    for (machine = 0; machine < MACHINES; machine++)
    for (kind = 0; kind < 3; kind++) {
        frames f;
        tl_range a, b, c, d;
        tl_ticket first;
        char bytes[64];
        open_frames(&f, machine, 3);
        a = add(&f, 64);
        b = add(&f, 64);
        c = add(&f, 64);
        d = add(&f, 64);
        write_floats(&f, a, 1);
        write_floats(&f, b, 2);
        write_floats(&f, c, 3);
        write_floats(&f, d, 4);
        run_frame(&f);
        start(&f);
        assert_int_equal(f.b.copy(f.b.self, a, c), TL_OK);
        first = end(&f);
        if (kind == 0) assert_int_equal(f.b.copy(f.b.self, b, a), TL_OK);
        if (kind == 1) assert_int_equal(tl_vk_record_add(&f.b, b, a), TL_OK);
        if (kind == 2) assert_int_equal(try_read(&f, a, bytes), TL_NOT_READY);
        if (kind < 2) {
            assert_int_equal(f.b.copy(f.b.self, c, b), TL_OK);   // and what reads that
            assert_int_equal(f.b.copy(f.b.self, d, c), TL_OK);
            assert_int_equal(f.b.fill(f.b.self, c, 0), TL_OK);   // written again from nothing lost
        }
        assert_int_equal(tl_vk_drop_frame(&f.b, first), TL_OK);
        run_frame(&f);
        expect_stale(&f, a, c);
        if (kind < 2) {
            expect_stale(&f, b, c);
            expect_stale(&f, d, c);
            assert_int_equal(read_bytes(&f, c, bytes), TL_OK);
            assert_int_equal(bytes[0], 0);
        } else {
            expect_floats(&f, b, 2);
        }
        forget(&f, a);
        forget(&f, b);
        forget(&f, c);
        forget(&f, d);
        close_frames(&f);
    }
    printf("12: 6 frames dropped with work enqueued behind them\n");
}

// -- reads that take a frame --

static void an_order_whose_block_is_freed_before_the_frame_is_silent(void **state) {
    frames f;
    tl_access accesses[2];
    VkCommandBuffer commands;
    long lines;
    (void)state;
    if (!vkt_has_vulkan("an_order_whose_block_is_freed_before_the_frame_is_silent")) skip();
    open_frames(&f, 0, 2);
    memset(accesses, 0, sizeof accesses);
    accesses[0].range = add(&f, 64);
    accesses[1].range = add(&f, 64);
    assert_int_equal(f.b.order(f.b.self, accesses, 2), TL_OK);
    forget(&f, accesses[0].range);
    f.env = logging_env(&lines);
    start(&f);
    assert_int_equal(tl_vk_find_commands(&f.b, &commands), TL_OK);
    finish(&f);
    assert_true(is_silent(&f.env, lines));
    forget(&f, accesses[1].range);
    f.env = failing_env(&f.alloc, -1);
    close_frames(&f);
}

// Record mode: a read through one block of a caller's buffer, a write through another, a frame that is dropped.
static void blocks_of_one_buffer_share_reads_and_losses(void **state) {
    frames f;
    vkt_buffer buffer;
    tl_vk_buffer_desc desc = {0};
    tl_range a = {0}, b = {0}, apart = {0};
    uint32_t words[16];
    (void)state;
    if (!vkt_has_vulkan("blocks_of_one_buffer_share_reads_and_losses")) skip();
    open_frames(&f, 1, 3);
    vkt_make_buffer(&f.v, 8192, &buffer);
    desc.buffer = buffer.buffer;
    desc.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    desc.bytes = 4096;
    a.bytes = b.bytes = apart.bytes = 64;
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &a.block), TL_OK);
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &b.block), TL_OK);
    desc.offset = 4096;
    assert_int_equal(tl_vk_add_buffer(&f.b, &desc, &apart.block), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, a), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, b), TL_OK);
    assert_int_equal(f.b.claim(f.b.self, apart), TL_OK);
    assert_int_equal(f.b.fill(f.b.self, a, 1), TL_OK);
    assert_int_equal(try_read(&f, a, words), TL_NOT_READY);
    assert_int_equal(f.b.fill(f.b.self, apart, 9), TL_OK);  // elsewhere in the buffer: the read stands
    run_frame(&f);
    assert_int_equal(try_read(&f, a, words), TL_OK);
    assert_int_equal(words[0], 1);
    assert_int_equal(try_read(&f, a, words), TL_NOT_READY);
    assert_int_equal(f.b.fill(f.b.self, b, 2), TL_OK);      // the bytes that the read has asked for are old
    run_frame(&f);
    assert_int_equal(try_read(&f, a, words), TL_NOT_READY);
    run_frame(&f);
    assert_int_equal(try_read(&f, a, words), TL_OK);
    assert_int_equal(words[0], 2);
    start(&f);
    assert_int_equal(f.b.fill(f.b.self, b, 3), TL_OK);
    drop(&f, 1);
    assert_int_equal(try_read(&f, a, words), TL_ERROR_STALE);
    assert_int_equal(f.b.fill(f.b.self, a, 4), TL_OK);
    assert_int_equal(try_read(&f, b, words), TL_NOT_READY);
    run_frame(&f);
    assert_int_equal(try_read(&f, b, words), TL_OK);
    assert_int_equal(words[0], 4);
    forget(&f, a);
    forget(&f, b);
    forget(&f, apart);
    vkt_ok(f.v.vk.DeviceWaitIdle(f.v.device.device), "vkDeviceWaitIdle");
    vkt_free_buffer(&f.v, &buffer);
    close_frames(&f);
}

static void reads_are_asked_for_and_fetched_later(void **state) {
    frames f;
    tl_range a, b;
    float values[16];
    uint64_t staged;
    void *host;
    int i;
    (void)state;
    if (!vkt_has_vulkan("reads_are_asked_for_and_fetched_later")) skip();
    open_frames(&f, 1, 3);
    a = add(&f, 64);
    b = add(&f, 64);
    write_floats(&f, a, 1);
    write_floats(&f, b, 2);
    expect_error(&f, try_read(&f, a, values), TL_NOT_READY, "map: the range is read by the frame that is open, or the next");
    expect_error(&f, try_read(&f, a, values), TL_NOT_READY, "map: the frame that reads the range was not retired yet");
    run_frame(&f);
    staged = measure(&f).staged_bytes;
    assert_int_equal(try_read(&f, a, values), TL_OK);
    assert_true(values[0] == 1);
    assert_int_equal(measure(&f).staged_bytes, staged);          // read once
    assert_int_equal(try_read(&f, a, values), TL_NOT_READY);     // the next read asks again
    assert_int_equal(f.b.copy(f.b.self, a, b), TL_OK);           // and what it asked for is old by then
    run_frame(&f);
    assert_int_equal(try_read(&f, a, values), TL_NOT_READY);
    run_frame(&f);
    assert_int_equal(try_read(&f, a, values), TL_OK);
    assert_true(values[0] == 2);
    // A change: read in one frame, written by another.
    assert_int_equal(f.b.map(f.b.self, a, TL_MAP_CHANGE, &host), TL_NOT_READY);
    run_frame(&f);
    assert_int_equal(f.b.map(f.b.self, a, TL_MAP_CHANGE, &host), TL_OK);
    ((float *)host)[1] += 1;
    assert_int_equal(f.b.unmap(f.b.self, a, TL_MAP_CHANGE, host), TL_OK);
    assert_int_equal(read_bytes(&f, a, values), TL_OK);
    assert_true(values[0] == 2 && values[1] == 3 + 1.0f / 64);
    // A dropped frame did not read.
    assert_int_equal(try_read(&f, b, values), TL_NOT_READY);
    start(&f);
    drop(&f, 1);
    assert_int_equal(try_read(&f, b, values), TL_NOT_READY);
    start(&f);
    drop(&f, 0);
    expect_floats(&f, b, 2);
    // Nor is the staging lost that it would have read into: it serves others.
    for (i = 0; i < 40; i++) {
        tl_range large = add(&f, 100000);
        if (f.b.map(f.b.self, large, TL_MAP_WRITE, &host)) fail_msg("%s", f.env.error.text);
        memset(host, i, 100000);
        if (f.b.unmap(f.b.self, large, TL_MAP_WRITE, host)) fail_msg("write %d: %s", i, f.env.error.text);
        run_frame(&f);
        forget(&f, large);
    }
    // Reads that nobody fetches hold nothing up once their blocks are gone.
    for (i = 0; i < 200; i++) {
        tl_range large = add(&f, 100000);
        char bytes[16];
        assert_int_equal(f.b.fill(f.b.self, large, (uint32_t)i), TL_OK);
        if (try_read(&f, large, bytes) != TL_NOT_READY) fail_msg("read %d: %s", i, f.env.error.text);
        if (i & 1) run_frame(&f);
        forget(&f, large);
        run_frame(&f);
    }
    expect_floats(&f, b, 2);
    forget(&f, a);
    forget(&f, b);
    close_frames(&f);
    printf("12: 206 reads asked for\n");
}

static void ordered_before_the_frame_holds_in_it(void **state) {
    int machine;
    (void)state;
    if (!vkt_has_vulkan("ordered_before_the_frame_holds_in_it")) skip();
    for (machine = 0; machine < MACHINES; machine++) {
        frames f;
        layers l;
        tl_range x, y, z;
        open_frames(&f, machine, 2);
        make_layers(&f, &l);
        x = add(&f, 4096);
        y = add(&f, 4096);
        z = add(&f, 4096);
        write_floats(&f, x, -3);
        write_floats(&f, y, 50);
        run_frame(&f);
        assert_int_equal(record_forward(&f, &l, z, y), TL_NOT_READY);
        assert_int_equal(f.b.copy(f.b.self, y, x), TL_OK);
        assert_int_equal(order_forward(&f, z, y), TL_OK);
        start(&f);
        assert_int_equal(record_forward(&f, &l, z, y), TL_OK);
        finish(&f);
        expect_forward(&f, z, -3);
        assert_int_equal(order_forward(&f, z, x), TL_OK);
        start(&f);
        assert_int_equal(record_forward(&f, &l, z, x), TL_OK);
        drop(&f, 1);
        expect_stale(&f, z, y);
        forget(&f, x);
        forget(&f, y);
        forget(&f, z);
        free_layers(&f, &l);
        close_frames(&f);
    }
    printf("12: 4 orders before their frame\n");
}

static void times_of_dropped_frames_were_never_written(void **state) {
    frames f;
    uint64_t ns[2];
    (void)state;
    if (!vkt_has_vulkan("times_of_dropped_frames_were_never_written")) skip();
    open_frames(&f, 0, 2);
    assert_int_equal(tl_vk_record_time(&f.b, 0), TL_NOT_READY);
    start(&f);
    assert_int_equal(tl_vk_record_time(&f.b, 0), TL_OK);
    assert_int_equal(tl_vk_record_time(&f.b, 1), TL_OK);
    assert_int_equal(tl_vk_read_times(&f.b, 0, 1, ns), TL_NOT_READY);
    finish(&f);
    assert_int_equal(tl_vk_read_times(&f.b, 0, 2, ns), TL_OK);
    assert_true(ns[0] > 0 && ns[1] >= ns[0]);
    start(&f);
    assert_int_equal(tl_vk_record_time(&f.b, 2), TL_OK);
    drop(&f, 1);
    run_frame(&f);
    expect_error(&f, tl_vk_read_times(&f.b, 2, 1, ns), TL_ERROR_INVALID_ARG,
                 "tl_vk_read_times: slot: was never written");
    assert_int_equal(ns[0], 0);
    close_frames(&f);
    printf("12: times of 2 frames\n");
}

// -- the manager --

static tl_checkpoint_key key_of(int32_t node) {
    tl_checkpoint_key key;
    memset(&key, 0, sizeof key);
    key.node = node;
    return key;
}

static tl_result save(frames *f, tl_manager *manager, int32_t node, tl_range source) {
    tl_save_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.key = key_of(node);
    desc.source = source;
    return tl_save_checkpoint(&f->env, manager, &desc);
}

static void checkpoints_of_a_dropped_frame_are_stale(void **state) {
    int machine, ends;
    (void)state;
    if (!vkt_has_vulkan("checkpoints_of_a_dropped_frame_are_stale")) skip();
    for (machine = 0; machine < MACHINES; machine++)
    for (ends = 0; ends < 2; ends++) {
        frames f;
        tl_manager_desc desc = {0};
        tl_manager *manager;
        tl_range a, b;
        tl_ticket ticket;
        int i;
        open_frames(&f, machine, 2);
        desc.host_budget_bytes = TL_UNLIMITED;
        assert_int_equal(tl_init_manager(&f.env, &f.b, &desc, &manager), TL_OK);
        a = add(&f, 256);
        b = add(&f, 256);
        for (i = 0; i < 4; i++) {  // 0 and 1 saved, 2 and 3 dropped
            if (i % 2 == 0) start(&f);
            write_floats(&f, a, (float)i);
            assert_int_equal(save(&f, manager, i, a), TL_OK);
            if (i == 1) finish(&f);
        }
        drop(&f, ends);
        assert_int_equal(tl_has_checkpoint(manager, key_of(0)), 1);
        assert_int_equal(tl_has_checkpoint(manager, key_of(3)), 1);
        start(&f);
        assert_int_equal(tl_take_checkpoint_range(&f.env, manager, key_of(2), b, &ticket), TL_ERROR_STALE);
        assert_int_equal(tl_take_checkpoint_range(&f.env, manager, key_of(0), b, &ticket), TL_OK);
        finish(&f);
        expect_floats(&f, b, 0);
        write_floats(&f, a, 9);
        assert_int_equal(save(&f, manager, 2, a), TL_OK);  // again
        assert_int_equal(tl_take_checkpoint_range(&f.env, manager, key_of(2), b, &ticket), TL_OK);
        run_frame(&f);
        expect_floats(&f, b, 9);
        assert_int_equal(tl_take_checkpoint_range(&f.env, manager, key_of(1), b, &ticket), TL_OK);
        run_frame(&f);
        expect_floats(&f, b, 1);
        assert_int_equal(tl_drop_checkpoint(&f.env, manager, key_of(3)), TL_OK);
        assert_int_equal(tl_find_checkpoint_count(manager), 0);
        tl_free_manager(manager);
        forget(&f, a);
        forget(&f, b);
        close_frames(&f);
    }
    printf("12: 4 managers, 8 checkpoints in dropped frames\n");
}

// -- a run --

typedef struct engine {
    frames f;
    net n;
    tl_random random;
    tl_ticket sent[SLOTS];
    int sent_count, drops, aborts, passes;
} engine;

static void retire_oldest(engine *e) {
    int i;
    retire(&e->f, e->sent[0]);
    for (i = 1; i < e->sent_count; i++) e->sent[i - 1] = e->sent[i];
    e->sent_count--;
}

// End the frame that is open: it is sent, or thrown away one time in `drop_every`.
static void end_engine_frame(engine *e, int drop_every) {
    if (drop_every && tl_next_random_below(&e->random, (uint64_t)drop_every) == 0) {
        drop(&e->f, (int)tl_next_random_below(&e->random, 2));
        e->drops++;
        return;
    }
    e->sent[e->sent_count++] = end(&e->f);
    send(&e->f, e->sent[e->sent_count - 1]);
    while (e->sent_count > 2 || (e->sent_count && tl_next_random_below(&e->random, 2))) retire_oldest(e);
}

// One pass over several frames; TL_ERROR_STALE where a frame was thrown away that it needed.
static tl_result run_pass(engine *e, int steps_a_frame, int drop_every) {
    tl_run_step step;
    int32_t done = 0;
    tl_result result;
    int count = 0;
    start(&e->f);
    result = net_write_input(&e->n, 1);
    if (!result) result = tl_start_pass(e->n.run, 0);
    while (!result && !done) {
        result = tl_next_step(e->n.run, &step, &done);
        if (!result && !done && step.is_compute) result = tl_run_step_kernel(e->n.run, &step);
        if (++count % steps_a_frame) continue;
        end_engine_frame(e, drop_every);
        start(&e->f);
    }
    end_engine_frame(e, drop_every);
    while (e->sent_count) retire_oldest(e);
    e->passes++;
    return result;
}

static tl_result read_sums(engine *e, float sums[NET_LAYERS][NET_COUNT]) {
    int32_t i;
    tl_result result = TL_OK;
    for (i = 0; i < NET_LAYERS && !result; i++) result = read_bytes(&e->f, e->n.sums[i], sums[i]);
    return result;
}

static void a_pass_of_dropped_frames_begins_again(void **state) {
    static float expected[NET_LAYERS][NET_COUNT], sums[NET_LAYERS][NET_COUNT];
    int machine, budgets, steps, drops = 0, aborts = 0, passes = 0;
    (void)state;
    if (!vkt_has_vulkan("a_pass_of_dropped_frames_begins_again")) skip();
    for (machine = 0; machine < MACHINES; machine++)
    for (budgets = 0; budgets < 3; budgets++) {
        static engine e;
        tl_run_report report;
        memset(&e, 0, sizeof e);
        e.random.state = 11;
        open_frames(&e.f, machine, 4);
        net_open(&e.n, &e.f.env, &e.f.b, &e.f.b);
        net_start(&e.n, budgets ? 9 * NET_BYTES : 0, budgets == 2 ? 3 * NET_BYTES : 0, NULL);
        if (run_pass(&e, 1000, 0)) fail_msg("%s", e.f.env.error.text);
        tl_measure_run(e.n.run, &report);
        assert_int_equal(report.recompute_count > 0, budgets > 0);
        assert_int_equal(report.spill_count > 0, budgets == 2);
        if (machine == 0 && budgets == 0) assert_int_equal(read_sums(&e, expected), TL_OK);
        for (steps = 1; steps < 60; steps += 1 + steps / 3) {
            int tries;
            for (tries = 0; tries < 200; tries++) {
                tl_result result = run_pass(&e, steps, 2 + 80 / steps);
                if (result != TL_OK && result != TL_ERROR_STALE) fail_msg("%s", e.f.env.error.text);
                e.aborts += result == TL_ERROR_STALE;
                if (!result) result = read_sums(&e, sums);
                if (!result) break;
                if (result != TL_ERROR_STALE) fail_msg("%s", e.f.env.error.text);
            }
            if (tries == 200)
                fail_msg("machine %d, budgets %d, steps %d: %s, %d passes, %d drops, %d aborts", machine, budgets, steps,
                         e.f.env.error.text, e.passes, e.drops, e.aborts);
            if (memcmp(sums, expected, sizeof sums)) fail_msg("machine %d, budgets %d: gradients differ", machine, budgets);
        }
        drops += e.drops;
        aborts += e.aborts;
        passes += e.passes;
        net_stop(&e.n);
        net_close(&e.n);
        assert_int_equal(measure(&e.f).host_wait_count, 0);
        assert_int_equal(measure(&e.f).submit_count, 0);
        close_frames(&e.f);
    }
    assert_true(drops > 20 && aborts > 10);
    printf("12: %d passes, %d frames dropped, %d passes given up\n", passes, drops, aborts);
}

// A slot of staging waits for no other: neither a read that nobody fetches nor many of them end all uploads.
static void reads_that_are_never_fetched_block_nothing(void **state) {
    frames f;
    tl_range reads[48], upload;
    uint64_t calls = 0, value = 0;
    void *host;
    int i, k;
    (void)state;
    if (!vkt_has_vulkan("reads_that_are_never_fetched_block_nothing")) skip();
    open_frames(&f, 1, 3);
    upload = add(&f, 65536);
    for (i = 0; i < 48; i++) {
        reads[i] = add(&f, 32768);  // of all of them half as much again as there is staging
        assert_int_equal(f.b.fill(f.b.self, reads[i], (uint32_t)i), TL_OK);
    }
    run_frame(&f);
    for (i = 0; i < 48; i++) {
        // One more read a frame is asked for; its room comes from a read that was left for longer than 3 frames.
        assert_int_equal(f.b.map(f.b.self, reads[i], TL_MAP_READ, &host), TL_NOT_READY);
        if (f.b.map(f.b.self, upload, TL_MAP_WRITE, &host)) fail_msg("upload %d: %s", i, f.env.error.text);
        memset(host, i, 65536);
        assert_int_equal(f.b.unmap(f.b.self, upload, TL_MAP_WRITE, host), TL_OK);
        run_frame(&f);
    }
    assert_int_equal(f.b.map(f.b.self, reads[47], TL_MAP_READ, &host), TL_OK);  // the latest is still there
    assert_int_equal(*(const uint32_t *)host, 47);
    assert_int_equal(f.b.unmap(f.b.self, reads[47], TL_MAP_READ, host), TL_OK);
    // Cancelled, their room is free at once: the whole staging can be had.
    for (i = 0; i < 48; i++) assert_int_equal(f.b.unmap(f.b.self, reads[i], TL_MAP_READ, NULL), TL_OK);
    assert_int_equal(f.b.unmap(f.b.self, reads[0], TL_MAP_READ, NULL), TL_OK);  // none is pending any more
    for (k = 0; k < 3; k++) {
        // As large as the staging; then larger: a buffer of its own, which is kept.
        tl_range large = add(&f, k ? 3u << 20 : 1u << 20);
        if (k == 2) calls = vkshim_calls("vkAllocateMemory");
        for (i = 0; i < 5; i++) {
            if (f.b.map(f.b.self, large, TL_MAP_WRITE, &host)) fail_msg("%d, %d: %s", k, i, f.env.error.text);
            memset(host, ++value & 127, (size_t)large.bytes);
            assert_int_equal(f.b.unmap(f.b.self, large, TL_MAP_WRITE, host), TL_OK);
            run_frame(&f);
        }
        assert_int_equal(f.b.release(f.b.self, large), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, large.block), TL_OK);
    }
    assert_int_equal(vkshim_calls("vkAllocateMemory"), calls);
    for (i = 0; i < 48; i++) {
        assert_int_equal(f.b.release(f.b.self, reads[i]), TL_OK);
        assert_int_equal(f.b.free_block(f.b.self, reads[i].block), TL_OK);
    }
    assert_int_equal(f.b.release(f.b.self, upload), TL_OK);
    assert_int_equal(f.b.free_block(f.b.self, upload.block), TL_OK);
    close_frames(&f);
}

static void a_run_in_frames_allocates_nothing(void **state) {
    engine *e = (engine *)calloc(1, sizeof *e);
    tl_vk_counters before = {0}, after;
    uint64_t allocations = 0;
    long allocs = 0;
    int i;
    (void)state;
    assert_non_null(e);
    if (!vkt_has_vulkan("a_run_in_frames_allocates_nothing")) { free(e); skip(); }
    open_frames(&e->f, 0, 4);
    net_open(&e->n, &e->f.env, &e->f.b, &e->f.b);
    net_start(&e->n, 9 * NET_BYTES, 3 * NET_BYTES, NULL);
    for (i = 0; i < 30; i++) {
        if (i == 10) {
            before = measure(&e->f);
            allocations = vkshim_calls("vkAllocateMemory");
            allocs = e->f.alloc.count;
        }
        if (run_pass(e, 1000, 0)) fail_msg("%s", e->f.env.error.text);
    }
    after = measure(&e->f);
    assert_int_equal(after.memory_count, before.memory_count);
    assert_int_equal(after.host_alloc_count, before.host_alloc_count);
    assert_int_equal(vkshim_calls("vkAllocateMemory"), allocations);
    assert_int_equal(e->f.alloc.count, allocs);
    net_stop(&e->n);
    net_close(&e->n);
    close_frames(&e->f);
    free(e);
    printf("12: 20 passes in frames without an allocation\n");
}

// Frames that are not there, are not open, or are over; and a device that is gone.
static void calls_out_of_turn_are_refused(void **state) {
    int machine;
    (void)state;
    if (!vkt_has_vulkan("calls_out_of_turn_are_refused")) skip();
    for (machine = 0; machine < MACHINES; machine++) {
        tl_ticket none = {0}, ticket, over, dropped;
        tl_range a, b, c;
        tl_vk_copy_path path;
        float values[64];
        frames f;
        open_frames(&f, machine, 4);
        expect_error(&f, tl_vk_start_frame(&f.b, VK_NULL_HANDLE, &ticket), TL_ERROR_INVALID_ARG, "tl_vk_start_frame: commands: missing");
        expect_error(&f, tl_vk_end_frame(&f.b), TL_ERROR_INVALID_ARG, "tl_vk_end_frame: backend: no frame is open");
        expect_error(&f, tl_vk_retire_frame(&f.b, none), TL_ERROR_INVALID_ARG, "tl_vk_retire_frame: frame: was never ended");
        expect_error(&f, tl_vk_drop_frame(&f.b, none), TL_ERROR_INVALID_ARG, "tl_vk_drop_frame: frame: is not under way");
        expect_error(&f, tl_vk_measure_copies(&f.b, &path), TL_ERROR_UNSUPPORTED, "tl_vk_measure_copies: backend: it has no queue");
        assert_int_equal(f.b.submit(f.b.self, &ticket), TL_OK);     // nothing is enqueued
        assert_int_equal(ticket.value, 0);
        a = add(&f, 256);
        b = add(&f, 256);
        c = add(&f, 256);
        write_floats(&f, a, 1);
        run_frame(&f);
        over = f.open;
        expect_error(&f, tl_vk_drop_frame(&f.b, over), TL_ERROR_INVALID_ARG, "tl_vk_drop_frame: frame: is not under way");
        start(&f);                                                  // one that is dropped is over, too
        assert_int_equal(f.b.submit(f.b.self, &ticket), TL_OK);
        assert_int_equal(ticket.value, f.open.value);
        assert_int_equal(f.b.copy(f.b.self, b, a), TL_OK);
        drop(&f, 1);
        dropped = f.open;
        expect_error(&f, tl_vk_drop_frame(&f.b, dropped), TL_ERROR_INVALID_ARG, "tl_vk_drop_frame: frame: is not under way");
        assert_int_equal(f.b.fill(f.b.self, b, 0), TL_OK);
        // A sum whose other half is lost is lost; a pending read of other bytes is not.
        start(&f);
        assert_int_equal(f.b.fill(f.b.self, c, 0), TL_OK);
        end(&f);
        if (machine) assert_int_equal(try_read(&f, a, values), TL_NOT_READY);
        assert_int_equal(tl_vk_record_add(&f.b, c, a), TL_OK);
        drop(&f, 0);
        expect_error(&f, try_read(&f, c, values), TL_ERROR_STALE, stale_map);
        expect_floats(&f, a, 1);
        run_frame(&f);
        forget(&f, a);
        forget(&f, b);
        forget(&f, c);
        tl_vk_lose_device(&f.b);
        assert_int_equal(tl_vk_start_frame(&f.b, f.commands[0], &ticket), TL_ERROR_DEVICE_LOST);
        assert_int_equal(tl_vk_end_frame(&f.b), TL_ERROR_DEVICE_LOST);
        close_frames(&f);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_record_and_never_submit),
        cmocka_unit_test(independent_copies_share_a_barrier),
        cmocka_unit_test(so_many_frames_are_under_way),
        cmocka_unit_test(a_dropped_frame_never_happened),
        cmocka_unit_test(what_is_written_again_is_no_longer_lost),
        cmocka_unit_test(frames_are_dropped_newest_first),
        cmocka_unit_test(what_follows_a_dropped_frame_is_lost_with_it),
        cmocka_unit_test(an_order_whose_block_is_freed_before_the_frame_is_silent),
        cmocka_unit_test(blocks_of_one_buffer_share_reads_and_losses),
        cmocka_unit_test(reads_are_asked_for_and_fetched_later),
        cmocka_unit_test(reads_that_are_never_fetched_block_nothing),
        cmocka_unit_test(ordered_before_the_frame_holds_in_it),
        cmocka_unit_test(times_of_dropped_frames_were_never_written),
        cmocka_unit_test(checkpoints_of_a_dropped_frame_are_stale),
        cmocka_unit_test(a_pass_of_dropped_frames_begins_again),
        cmocka_unit_test(calls_out_of_turn_are_refused),
        cmocka_unit_test(a_run_in_frames_allocates_nothing),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_frames", tests, NULL, NULL);
}
