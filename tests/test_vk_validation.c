// The validation of vk_support.h is on: each kind of check sees a fault that is planted here, and a
// program without one gets no message. A layer that is missing, switched off or configured away
// makes these tests fail, and so says that the silence of the other Vulkan tests is worth nothing.
#undef TL_STRATEGY_STATIC  // of the other header the declarations are enough
#define TL_STRATEGY_IMPLEMENTATION
#include "support/vk_support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define REQUIRE_VALIDATION(test) do {                                                      \
        if (!vkt_has_vulkan(test)) skip();                                                 \
        if (!vkt_has_layer(vkt_loader())) { printf("SKIPPED " test ": no " VKT_LAYER "\n"); skip(); } \
    } while (0)

static void open_device(vkt *v) {
    vkt_desc desc;
    memset(&desc, 0, sizeof desc);
    vkt_open(&desc, v);
    assert_true(v->has_validation);
}

// Close, and check that what was planted was seen, and nothing else.
static void close_after_fault(vkt *v) {
    vkt_close(v);
    assert_true(vkt_expected(v) > 0);
    assert_int_equal(vkt_messages(v), 0);
}

static void transfer_barrier(vkt *v) {
    VkMemoryBarrier barrier;
    memset(&barrier, 0, sizeof barrier);
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    v->vk.CmdPipelineBarrier(v->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                             1, &barrier, 0, NULL, 0, NULL);
}

static void fill_then_copy(vkt *v, int has_barrier) {
    VkBufferCopy region;
    vkt_buffer buffer;
    vkt_make_buffer(v, 8192, &buffer);
    memset(buffer.mapped, 0, 8192);
    region.srcOffset = 0;
    region.dstOffset = 4096;
    region.size = 4096;
    vkt_begin(v);
    v->vk.CmdFillBuffer(v->commands, buffer.buffer, 0, 4096, 0x01020304u);
    if (has_barrier) transfer_barrier(v);
    v->vk.CmdCopyBuffer(v->commands, buffer.buffer, buffer.buffer, 1, &region);
    vkt_submit_wait(v);
    if (has_barrier) assert_memory_equal(buffer.mapped, buffer.mapped + 4096, 4096);
    if (has_barrier) assert_int_equal(buffer.mapped[8191], 1);
    vkt_free_buffer(v, &buffer);
}

static void a_program_without_faults_gets_no_message(void **state) {
    vkt v;
    (void)state;
    REQUIRE_VALIDATION("a_program_without_faults_gets_no_message");
    open_device(&v);
    fill_then_copy(&v, 1);
    vkt_close(&v);
    assert_int_equal(vkt_messages(&v), 0);
}

static void every_version_opens_without_a_message(void **state) {
    static const uint32_t versions[] = {
        VK_API_VERSION_1_0, VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3
    };
    size_t i;
    int option;
    (void)state;
    REQUIRE_VALIDATION("every_version_opens_without_a_message");
    for (i = 0; i < sizeof versions / sizeof *versions; i++)
        for (option = 0; option < 2; option++) {
            vkt_desc desc;
            vkt v;
            memset(&desc, 0, sizeof desc);
            desc.api_version = versions[i];
            desc.disable_timeline = desc.disable_budget = desc.enable_transfer = option;
            vkt_open(&desc, &v);
            assert_true(v.device.api_version <= versions[i]);
            if (option || versions[i] == VK_API_VERSION_1_0) assert_int_equal(v.device.timeline_enabled, 0);
            fill_then_copy(&v, 1);
            vkt_close(&v);
            assert_int_equal(vkt_messages(&v), 0);
        }
}

static void a_missing_barrier_is_seen(void **state) {
    vkt v;
    (void)state;
    REQUIRE_VALIDATION("a_missing_barrier_is_seen");
    open_device(&v);
    vkt_expect(&v, "SYNC-HAZARD-READ");
    fill_then_copy(&v, 0);
    close_after_fault(&v);
}

// Two submits to one queue may overlap: each is right by itself.
static void a_hazard_between_two_submits_is_seen(void **state) {
    VkCommandBufferAllocateInfo info;
    VkCommandBuffer both[2];
    vkt_buffer buffer;
    vkt v;
    int i;
    (void)state;
    REQUIRE_VALIDATION("a_hazard_between_two_submits_is_seen");
    open_device(&v);
    vkt_make_buffer(&v, 4096, &buffer);
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = v.pool;
    info.commandBufferCount = 2;
    vkt_ok(v.vk.AllocateCommandBuffers(v.device.device, &info, both), "vkAllocateCommandBuffers");
    vkt_expect(&v, "SYNC-HAZARD-WRITE");
    for (i = 0; i < 2; i++) {
        VkCommandBufferBeginInfo begin;
        memset(&begin, 0, sizeof begin);
        begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
        begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
        vkt_ok(v.vk.BeginCommandBuffer(both[i], &begin), "vkBeginCommandBuffer");
        v.vk.CmdFillBuffer(both[i], buffer.buffer, 0, 4096, (uint32_t)i);
        vkt_ok(v.vk.EndCommandBuffer(both[i]), "vkEndCommandBuffer");
    }
    assert_int_equal(vkt_expected(&v), 0);
    for (i = 0; i < 2; i++) vkt_submit(&v, both[i], VK_NULL_HANDLE);
    assert_true(vkt_expected(&v) > 0);
    vkt_ok(v.vk.QueueWaitIdle(v.queue), "vkQueueWaitIdle");
    v.vk.FreeCommandBuffers(v.device.device, v.pool, 2, both);
    vkt_free_buffer(&v, &buffer);
    close_after_fault(&v);
}

static void a_misaligned_descriptor_is_seen(void **state) {
    VkDescriptorBufferInfo part;
    vkt_kernel kernel;
    vkt_buffer buffer;
    vkt v;
    (void)state;
    REQUIRE_VALIDATION("a_misaligned_descriptor_is_seen");
    open_device(&v);
    vkt_make_buffer(&v, 4096, &buffer);
    memset(&kernel, 0, sizeof kernel);
    kernel.buffer_count = 1;
    vkt_make_layouts(&v, &kernel);
    vkt_make_set(&v, &kernel);
    part.buffer = buffer.buffer;
    part.offset = 0;
    part.range = 256;
    vkt_bind(&v, &kernel, &part);
    assert_int_equal(vkt_messages(&v), 0);
    vkt_expect(&v, "VUID-VkWriteDescriptorSet-descriptorType-00328");
    part.offset = 1;
    vkt_bind(&v, &kernel, &part);
    vkt_free_kernel(&v, &kernel);
    vkt_free_buffer(&v, &buffer);
    close_after_fault(&v);
}

// Memory for the objects that are leaked on purpose: never reused, so that a leak detector finds nothing.
static union { char bytes[16384]; long double aligned; } leaked;
static size_t leaked_bytes;

static void *VKAPI_PTR take_leaked(void *user, size_t bytes, size_t alignment, VkSystemAllocationScope scope) {
    size_t at = (leaked_bytes + alignment - 1) / alignment * alignment;
    (void)user;
    (void)scope;
    if (at + bytes > sizeof leaked.bytes) return NULL;
    leaked_bytes = at + bytes;
    return leaked.bytes + at;
}

static void *VKAPI_PTR refuse_to_grow(void *user, void *old, size_t bytes, size_t alignment,
                                      VkSystemAllocationScope scope) {
    (void)old;
    return old ? NULL : take_leaked(user, bytes, alignment, scope);
}

static void VKAPI_PTR keep_leaked(void *user, void *memory) {
    (void)user;
    (void)memory;
}

static void leak_buffer(vkt *v) {
    VkAllocationCallbacks callbacks;
    VkBufferCreateInfo info;
    VkBuffer buffer;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.pfnAllocation = take_leaked;
    callbacks.pfnReallocation = refuse_to_grow;
    callbacks.pfnFree = keep_leaked;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = 4096;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    vkt_ok(v->vk.CreateBuffer(v->device.device, &info, &callbacks, &buffer), "vkCreateBuffer");
}

static void a_leak_is_seen_when_the_device_goes(void **state) {
    vkt v;
    (void)state;
    REQUIRE_VALIDATION("a_leak_is_seen_when_the_device_goes");
    open_device(&v);
    vkt_expect(&v, "VUID-vkDestroyDevice-device-");
    leak_buffer(&v);
    assert_int_equal(vkt_expected(&v), 0);
    close_after_fault(&v);
}

static void a_bad_practice_is_seen(void **state) {
    VkMemoryAllocateInfo info;
    VkDeviceMemory memory;
    vkt v;
    (void)state;
    REQUIRE_VALIDATION("a_bad_practice_is_seen");
    open_device(&v);
    vkt_expect(&v, "BestPractices-vkAllocateMemory-small-allocation");
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = 4096;
    vkt_ok(v.vk.AllocateMemory(v.device.device, &info, NULL, &memory), "vkAllocateMemory");
    v.vk.FreeMemory(v.device.device, memory, NULL);
    close_after_fault(&v);
}

static void a_fault_that_nobody_expects_is_counted(void **state) {
    vkt v;
    (void)state;
    REQUIRE_VALIDATION("a_fault_that_nobody_expects_is_counted");
    open_device(&v);
    vkt_expect(&v, "SYNC-HAZARD");
    leak_buffer(&v);
    vkt_close(&v);
    assert_int_equal(vkt_expected(&v), 0);
    assert_true(vkt_messages(&v) > 0);
    assert_non_null(strstr(v.last, "VUID-vkDestroyDevice-device-"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_faults_gets_no_message),
        cmocka_unit_test(every_version_opens_without_a_message),
        cmocka_unit_test(a_missing_barrier_is_seen),
        cmocka_unit_test(a_hazard_between_two_submits_is_seen),
        cmocka_unit_test(a_misaligned_descriptor_is_seen),
        cmocka_unit_test(a_leak_is_seen_when_the_device_goes),
        cmocka_unit_test(a_bad_practice_is_seen),
        cmocka_unit_test(a_fault_that_nobody_expects_is_counted),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
