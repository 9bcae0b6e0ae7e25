// The fault shim itself: each fake shows, each rule catches a planted mistake and passes a correct program,
// each failure comes at its call only. Raw Vulkan through vkshim_get_instance_proc.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "support/vk_shim.c"

// -- help --

#define FUNCTIONS(X) \
    X(DestroyInstance) \
    X(EnumeratePhysicalDevices) X(EnumerateDeviceExtensionProperties) \
    X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) \
    X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceMemoryProperties2) \
    X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceQueueFamilyProperties) X(CreateDevice) \
    X(GetDeviceProcAddr) X(DestroyDevice) X(GetDeviceQueue) X(AllocateMemory) X(FreeMemory) \
    X(MapMemory) X(UnmapMemory) X(FlushMappedMemoryRanges) X(InvalidateMappedMemoryRanges) \
    X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory) \
    X(CreateShaderModule) X(DestroyShaderModule) X(CreateComputePipelines) X(DestroyPipeline) \
    X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) X(CreatePipelineLayout) \
    X(DestroyPipelineLayout) X(CreateDescriptorPool) X(DestroyDescriptorPool) \
    X(AllocateDescriptorSets) X(UpdateDescriptorSets) X(CreateCommandPool) X(DestroyCommandPool) \
    X(AllocateCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdPipelineBarrier) \
    X(CmdCopyBuffer) X(CmdFillBuffer) X(CmdBindPipeline) X(CmdBindDescriptorSets) \
    X(CmdPushConstants) X(CmdDispatch) X(CmdResetQueryPool) X(CmdWriteTimestamp) X(QueueSubmit) \
    X(QueueWaitIdle) X(DeviceWaitIdle) X(CreateFence) X(DestroyFence) X(ResetFences) \
    X(GetFenceStatus) X(WaitForFences) X(CreateSemaphore) X(DestroySemaphore) \
    X(GetSemaphoreCounterValue) X(WaitSemaphores) X(SignalSemaphore) X(CreateQueryPool) \
    X(DestroyQueryPool) X(GetQueryPoolResults)

#define MEMBER(name) PFN_vk##name name;
static struct { FUNCTIONS(MEMBER) } vk;

typedef struct gpu {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue, transfer;
    VkCommandPool pools[2];      // one for each family
    int              shares;     // 1 = buffers are of both families
} gpu;

typedef struct piece {           // a buffer with memory of its own
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint32_t *words;             // where the host sees it
} piece;

enum { WORDS = 256, BYTES = WORDS * 4 };

static vkshim_counts report(void) {
    vkshim_counts counts;
    vkshim_report(&counts);
    return counts;
}

static void assert_violations(uint64_t count) {
    vkshim_counts counts = report();
    if (counts.violation_count != count)
        print_error("%llu violations, the last: %s\n", (unsigned long long)counts.violation_count,
                    counts.violation_text);
    assert_int_equal(counts.violation_count, count);
}

// One more violation, with this in its text.
static uint64_t violations_seen;
static void assert_caught(const char *text) {
    vkshim_counts counts = report();
    assert_violations(++violations_seen);
    if (!strstr(counts.violation_text, text))
        fail_msg("'%s' is not in '%s'", text, counts.violation_text);
}

static VkResult make_instance(uint32_t version, VkInstance *instance) {
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)vkshim_get_instance_proc(NULL, "vkCreateInstance");
    VkApplicationInfo application;
    VkInstanceCreateInfo info;
    memset(&application, 0, sizeof application);
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = version;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    *instance = NULL;
    return create ? create(&info, NULL, instance) : VK_ERROR_INCOMPATIBLE_DRIVER;
}

static void load(VkInstance instance) {
#define LOAD(name) vk.name = (PFN_vk##name)vkshim_get_instance_proc(instance, "vk" #name);
    FUNCTIONS(LOAD)
}

static VkResult make_device(gpu *g, uint32_t families, int enables_timeline,
                            const char *extension) {
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkDeviceQueueCreateInfo queues[2];
    VkDeviceCreateInfo info;
    float priority = 1.0f;
    uint32_t i;
    memset(queues, 0, sizeof queues);
    for (i = 0; i < families; i++) {
        queues[i].sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
        queues[i].queueFamilyIndex = i;
        queues[i].queueCount = 1;
        queues[i].pQueuePriorities = &priority;
    }
    memset(&timeline, 0, sizeof timeline);
    timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    timeline.timelineSemaphore = VK_TRUE;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = enables_timeline ? &timeline : NULL;
    info.queueCreateInfoCount = families;
    info.pQueueCreateInfos = queues;
    info.enabledExtensionCount = extension != NULL;
    info.ppEnabledExtensionNames = &extension;
    return vk.CreateDevice(g->physical, &info, NULL, &g->device);
}

static VkResult make_pool(const gpu *g, uint32_t family, VkCommandPool *pool) {
    VkCommandPoolCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    info.queueFamilyIndex = family;
    return vk.CreateCommandPool(g->device, &info, NULL, pool);
}

// Some drivers can be loaded thirty times only in a process: an instance keeps them loaded.
static void keep_drivers(void) {
    static VkInstance kept;
    if (!kept) make_instance(VK_API_VERSION_1_0, &kept);
}

// An instance and its first device. 0 = there is no driver: said, and with STRICT=1 a failure.
static int open_instance(gpu *g, const vkshim_config *config, uint32_t version, const char *test) {
    const char *strict = getenv("STRICT");
    uint32_t one = 1;
    memset(g, 0, sizeof *g);
    violations_seen = 0;
    keep_drivers();
    vkshim_reset(NULL);
    if (make_instance(VK_API_VERSION_1_0, &g->instance) == VK_SUCCESS) {
        load(g->instance);
        vk.EnumeratePhysicalDevices(g->instance, &one, &g->physical);
        vk.DestroyInstance(g->instance, NULL);
    }
    vkshim_reset(config);
    if (!g->physical) {
        printf("SKIPPED %s: no Vulkan driver\n", test);
        if (strict && !strcmp(strict, "1")) fail_msg("%s", "no Vulkan driver");
        return 0;
    }
    assert_int_equal(make_instance(version, &g->instance), VK_SUCCESS);
    load(g->instance);
    one = 1;
    assert_true(vk.EnumeratePhysicalDevices(g->instance, &one, &g->physical) >= 0);
    return 1;
}

static int open_gpu(gpu *g, const vkshim_config *config, const char *test) {
    uint32_t families = config && config->transfer_family ? 2 : 1, i;
    if (!open_instance(g, config, VK_API_VERSION_1_2, test)) return 0;
    assert_int_equal(make_device(g, families, !config || !config->hides_timeline, NULL),
                     VK_SUCCESS);
    vk.GetDeviceQueue(g->device, 0, 0, &g->queue);
    if (families == 2) vk.GetDeviceQueue(g->device, 1, 0, &g->transfer);
    for (i = 0; i < families; i++) assert_int_equal(make_pool(g, i, &g->pools[i]), VK_SUCCESS);
    return 1;
}

static void close_gpu(gpu *g) {
    vkshim_counts counts;
    uint32_t i;
    for (i = 0; i < 2; i++) if (g->pools[i]) vk.DestroyCommandPool(g->device, g->pools[i], NULL);
    vk.DestroyDevice(g->device, NULL);
    vk.DestroyInstance(g->instance, NULL);
    counts = report();
    assert_int_equal(counts.leak_count, 0);
    assert_int_equal(counts.mapped_count, 0);
    assert_int_equal(counts.memory_bytes, 0);
    assert_violations(violations_seen);
}

static VkResult allocate(const gpu *g, uint32_t type, uint64_t bytes, VkDeviceMemory *memory) {
    VkMemoryAllocateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = bytes;
    info.memoryTypeIndex = type;
    return vk.AllocateMemory(g->device, &info, NULL, memory);
}

// The first type of memory that the host sees.
static uint32_t find_mapped_type(const gpu *g) {
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t type = 0;
    vk.GetPhysicalDeviceMemoryProperties(g->physical, &memory);
    while (type + 1 < memory.memoryTypeCount &&
           !(memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) type++;
    return type;
}

static VkResult make_buffer(const gpu *g, uint64_t bytes, VkBuffer *buffer) {
    static const uint32_t families[2] = { 0, 1 };
    VkBufferCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT
        | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    if (g->shares) {
        info.sharingMode = VK_SHARING_MODE_CONCURRENT;
        info.queueFamilyIndexCount = 2;
        info.pQueueFamilyIndices = families;
    }
    return vk.CreateBuffer(g->device, &info, NULL, buffer);
}

// A buffer of so many bytes with memory of that type, mapped where the host may.
static piece make_piece(const gpu *g, uint32_t type, uint64_t bytes) {
    VkPhysicalDeviceMemoryProperties memory;
    VkMemoryRequirements needs;
    piece p;
    void *at = NULL;
    vk.GetPhysicalDeviceMemoryProperties(g->physical, &memory);
    assert_int_equal(make_buffer(g, bytes, &p.buffer), VK_SUCCESS);
    vk.GetBufferMemoryRequirements(g->device, p.buffer, &needs);
    assert_true(needs.memoryTypeBits & (1u << type));
    assert_int_equal(allocate(g, type, needs.size, &p.memory), VK_SUCCESS);
    assert_int_equal(vk.BindBufferMemory(g->device, p.buffer, p.memory, 0), VK_SUCCESS);
    if (memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
        assert_int_equal(vk.MapMemory(g->device, p.memory, 0, VK_WHOLE_SIZE, 0, &at), VK_SUCCESS);
    p.words = (uint32_t *)at;
    return p;
}

static void free_piece(const gpu *g, piece *p) {
    if (p->words) vk.UnmapMemory(g->device, p->memory);
    vk.DestroyBuffer(g->device, p->buffer, NULL);
    vk.FreeMemory(g->device, p->memory, NULL);
}

static VkResult start(const gpu *g, uint32_t family, VkCommandBuffer *commands) {
    VkCommandBufferAllocateInfo info;
    VkCommandBufferBeginInfo begin;
    VkResult result;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = g->pools[family];
    info.commandBufferCount = 1;
    result = vk.AllocateCommandBuffers(g->device, &info, commands);
    if (result) return result;
    memset(&begin, 0, sizeof begin);
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    return vk.BeginCommandBuffer(*commands, &begin);
}

static VkCommandBuffer start_commands(const gpu *g, uint32_t family) {
    VkCommandBuffer commands;
    assert_int_equal(start(g, family, &commands), VK_SUCCESS);
    return commands;
}

static void barrier(VkCommandBuffer commands, VkBuffer buffer, uint64_t offset, uint64_t size,
                    uint32_t from, uint32_t to) {
    VkBufferMemoryBarrier b;
    memset(&b, 0, sizeof b);
    b.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER;
    b.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    b.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
    b.srcQueueFamilyIndex = from;
    b.dstQueueFamilyIndex = to;
    b.buffer = buffer;
    b.offset = offset;
    b.size = size;
    vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                          0, 0, NULL, 1, &b, 0, NULL);
}

static void copy(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint64_t bytes) {
    VkBufferCopy region;
    memset(&region, 0, sizeof region);
    region.size = bytes;
    vk.CmdCopyBuffer(commands, from, to, 1, &region);
}

static VkResult submit(VkQueue queue, VkCommandBuffer commands, VkSemaphore wait,
                       VkSemaphore signal, VkFence fence) {
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkSubmitInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = commands != NULL;
    info.pCommandBuffers = &commands;
    info.waitSemaphoreCount = wait != VK_NULL_HANDLE;
    info.pWaitSemaphores = &wait;
    info.pWaitDstStageMask = &stage;
    info.signalSemaphoreCount = signal != VK_NULL_HANDLE;
    info.pSignalSemaphores = &signal;
    return vk.QueueSubmit(queue, 1, &info, fence);
}

static void end_and_submit(VkQueue queue, VkCommandBuffer commands, VkSemaphore wait,
                           VkSemaphore signal, VkFence fence) {
    assert_int_equal(vk.EndCommandBuffer(commands), VK_SUCCESS);
    assert_int_equal(submit(queue, commands, wait, signal, fence), VK_SUCCESS);
}

static VkFence make_fence(const gpu *g) {
    VkFenceCreateInfo info;
    VkFence fence;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    assert_int_equal(vk.CreateFence(g->device, &info, NULL, &fence), VK_SUCCESS);
    return fence;
}

static VkResult make_semaphore(const gpu *g, int is_timeline, VkSemaphore *semaphore) {
    VkSemaphoreTypeCreateInfo type;
    VkSemaphoreCreateInfo info;
    memset(&type, 0, sizeof type);
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    info.pNext = is_timeline ? &type : NULL;
    return vk.CreateSemaphore(g->device, &info, NULL, semaphore);
}

static void submit_value(VkQueue queue, VkCommandBuffer commands, VkSemaphore semaphore,
                         uint64_t wait, uint64_t signal) {
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkTimelineSemaphoreSubmitInfo timeline;
    VkSubmitInfo info;
    memset(&timeline, 0, sizeof timeline);
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.waitSemaphoreValueCount = wait != 0;
    timeline.pWaitSemaphoreValues = &wait;
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &signal;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &timeline;
    info.waitSemaphoreCount = wait != 0;
    info.pWaitSemaphores = &semaphore;
    info.pWaitDstStageMask = &stage;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &semaphore;
    assert_int_equal(vk.QueueSubmit(queue, 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
}

// Wait for the fence, as the host sees work finished.
static void see(const gpu *g, VkFence fence) {
    assert_int_equal(vk.WaitForFences(g->device, 1, &fence, VK_TRUE, UINT64_MAX), VK_SUCCESS);
    assert_int_equal(vk.ResetFences(g->device, 1, &fence), VK_SUCCESS);
}

static VkMappedMemoryRange range_of(const piece *p, uint64_t offset, uint64_t size) {
    VkMappedMemoryRange range;
    memset(&range, 0, sizeof range);
    range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
    range.memory = p->memory;
    range.offset = offset;
    range.size = size;
    return range;
}

static void flush(const gpu *g, const piece *p, uint64_t offset, uint64_t size) {
    VkMappedMemoryRange range = range_of(p, offset, size);
    assert_int_equal(vk.FlushMappedMemoryRanges(g->device, 1, &range), VK_SUCCESS);
}

static void invalidate(const gpu *g, const piece *p, uint64_t offset, uint64_t size) {
    VkMappedMemoryRange range = range_of(p, offset, size);
    assert_int_equal(vk.InvalidateMappedMemoryRanges(g->device, 1, &range), VK_SUCCESS);
}

// Copy on the queue and wait for it.
static void copy_now(const gpu *g, const piece *from, const piece *to, VkFence fence) {
    VkCommandBuffer commands = start_commands(g, 0);
    copy(commands, from->buffer, to->buffer, BYTES);
    end_and_submit(g->queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, fence);
    see(g, fence);
}

// -- a compute program: every kind of object, every call that can fail --

// local_size_x_id = 0; to[i] = from[i] + 1 for i below the push constant.
static const uint32_t add_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x0000002f, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0006000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000000b, 0x00060010, 0x00000004,
    0x00000011, 0x00000001, 0x00000001, 0x00000001, 0x00040047, 0x0000000b, 0x0000000b, 0x0000001c,
    0x00050048, 0x00000011, 0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x00000011, 0x00000002,
    0x00040047, 0x0000001d, 0x00000006, 0x00000004, 0x00040048, 0x0000001e, 0x00000000, 0x00000019,
    0x00050048, 0x0000001e, 0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x0000001e, 0x00000003,
    0x00040047, 0x00000020, 0x00000022, 0x00000000, 0x00040047, 0x00000020, 0x00000021, 0x00000001,
    0x00040047, 0x00000022, 0x00000006, 0x00000004, 0x00040048, 0x00000023, 0x00000000, 0x00000018,
    0x00050048, 0x00000023, 0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x00000023, 0x00000003,
    0x00040047, 0x00000025, 0x00000022, 0x00000000, 0x00040047, 0x00000025, 0x00000021, 0x00000000,
    0x00040047, 0x0000002d, 0x00000001, 0x00000000, 0x00040047, 0x0000002e, 0x0000000b, 0x00000019,
    0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002, 0x00040015, 0x00000006, 0x00000020,
    0x00000000, 0x00040020, 0x00000007, 0x00000007, 0x00000006, 0x00040017, 0x00000009, 0x00000006,
    0x00000003, 0x00040020, 0x0000000a, 0x00000001, 0x00000009, 0x0004003b, 0x0000000a, 0x0000000b,
    0x00000001, 0x0004002b, 0x00000006, 0x0000000c, 0x00000000, 0x00040020, 0x0000000d, 0x00000001,
    0x00000006, 0x0003001e, 0x00000011, 0x00000006, 0x00040020, 0x00000012, 0x00000009, 0x00000011,
    0x0004003b, 0x00000012, 0x00000013, 0x00000009, 0x00040015, 0x00000014, 0x00000020, 0x00000001,
    0x0004002b, 0x00000014, 0x00000015, 0x00000000, 0x00040020, 0x00000016, 0x00000009, 0x00000006,
    0x00020014, 0x00000019, 0x0003001d, 0x0000001d, 0x00000006, 0x0003001e, 0x0000001e, 0x0000001d,
    0x00040020, 0x0000001f, 0x00000002, 0x0000001e, 0x0004003b, 0x0000001f, 0x00000020, 0x00000002,
    0x0003001d, 0x00000022, 0x00000006, 0x0003001e, 0x00000023, 0x00000022, 0x00040020, 0x00000024,
    0x00000002, 0x00000023, 0x0004003b, 0x00000024, 0x00000025, 0x00000002, 0x00040020, 0x00000027,
    0x00000002, 0x00000006, 0x0004002b, 0x00000006, 0x0000002a, 0x00000001, 0x00040032, 0x00000006,
    0x0000002d, 0x00000001, 0x00060033, 0x00000009, 0x0000002e, 0x0000002d, 0x0000002a, 0x0000002a,
    0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x0004003b,
    0x00000007, 0x00000008, 0x00000007, 0x00050041, 0x0000000d, 0x0000000e, 0x0000000b, 0x0000000c,
    0x0004003d, 0x00000006, 0x0000000f, 0x0000000e, 0x0003003e, 0x00000008, 0x0000000f, 0x0004003d,
    0x00000006, 0x00000010, 0x00000008, 0x00050041, 0x00000016, 0x00000017, 0x00000013, 0x00000015,
    0x0004003d, 0x00000006, 0x00000018, 0x00000017, 0x000500b0, 0x00000019, 0x0000001a, 0x00000010,
    0x00000018, 0x000300f7, 0x0000001c, 0x00000000, 0x000400fa, 0x0000001a, 0x0000001b, 0x0000001c,
    0x000200f8, 0x0000001b, 0x0004003d, 0x00000006, 0x00000021, 0x00000008, 0x0004003d, 0x00000006,
    0x00000026, 0x00000008, 0x00060041, 0x00000027, 0x00000028, 0x00000025, 0x00000015, 0x00000026,
    0x0004003d, 0x00000006, 0x00000029, 0x00000028, 0x00050080, 0x00000006, 0x0000002b, 0x00000029,
    0x0000002a, 0x00060041, 0x00000027, 0x0000002c, 0x00000020, 0x00000015, 0x00000021, 0x0003003e,
    0x0000002c, 0x0000002b, 0x000200f9, 0x0000001c, 0x000200f8, 0x0000001c, 0x000100fd, 0x00010038,
};

// local_size_x = 16, local_size_y = 9.
static const uint32_t plain_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x0000001a, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0006000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000000f, 0x00060010, 0x00000004,
    0x00000011, 0x00000010, 0x00000009, 0x00000001, 0x00040047, 0x00000007, 0x00000006, 0x00000004,
    0x00050048, 0x00000008, 0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x00000008, 0x00000003,
    0x00040047, 0x0000000a, 0x00000022, 0x00000000, 0x00040047, 0x0000000a, 0x00000021, 0x00000000,
    0x00040047, 0x0000000f, 0x0000000b, 0x0000001c, 0x00040047, 0x00000019, 0x0000000b, 0x00000019,
    0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002, 0x00040015, 0x00000006, 0x00000020,
    0x00000000, 0x0003001d, 0x00000007, 0x00000006, 0x0003001e, 0x00000008, 0x00000007, 0x00040020,
    0x00000009, 0x00000002, 0x00000008, 0x0004003b, 0x00000009, 0x0000000a, 0x00000002, 0x00040015,
    0x0000000b, 0x00000020, 0x00000001, 0x0004002b, 0x0000000b, 0x0000000c, 0x00000000, 0x00040017,
    0x0000000d, 0x00000006, 0x00000003, 0x00040020, 0x0000000e, 0x00000001, 0x0000000d, 0x0004003b,
    0x0000000e, 0x0000000f, 0x00000001, 0x0004002b, 0x00000006, 0x00000010, 0x00000000, 0x00040020,
    0x00000011, 0x00000001, 0x00000006, 0x0004002b, 0x00000006, 0x00000014, 0x00000001, 0x00040020,
    0x00000015, 0x00000002, 0x00000006, 0x0004002b, 0x00000006, 0x00000017, 0x00000010, 0x0004002b,
    0x00000006, 0x00000018, 0x00000009, 0x0006002c, 0x0000000d, 0x00000019, 0x00000017, 0x00000018,
    0x00000014, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005,
    0x00050041, 0x00000011, 0x00000012, 0x0000000f, 0x00000010, 0x0004003d, 0x00000006, 0x00000013,
    0x00000012, 0x00060041, 0x00000015, 0x00000016, 0x0000000a, 0x0000000c, 0x00000013, 0x0003003e,
    0x00000016, 0x00000014, 0x000100fd, 0x00010038,
};

typedef struct program {
    VkShaderModule shader;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool;
    VkDescriptorSet set;
} program;

static VkResult make_layouts(const gpu *g, program *p) {
    VkDescriptorSetLayoutBinding bindings[2];
    VkDescriptorSetLayoutCreateInfo set;
    VkPushConstantRange push;
    VkPipelineLayoutCreateInfo info;
    VkResult result;
    uint32_t i;
    memset(bindings, 0, sizeof bindings);
    for (i = 0; i < 2; i++) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    memset(&set, 0, sizeof set);
    set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set.bindingCount = 2;
    set.pBindings = bindings;
    result = vk.CreateDescriptorSetLayout(g->device, &set, NULL, &p->set_layout);
    if (result) { p->set_layout = VK_NULL_HANDLE; return result; }
    push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    push.offset = 0;
    push.size = 4;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.setLayoutCount = 1;
    info.pSetLayouts = &p->set_layout;
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &push;
    result = vk.CreatePipelineLayout(g->device, &info, NULL, &p->layout);
    if (result) p->layout = VK_NULL_HANDLE;
    return result;
}

static VkResult make_pipeline(const gpu *g, program *p, uint32_t workgroup) {
    VkSpecializationMapEntry entry;
    VkSpecializationInfo special;
    VkShaderModuleCreateInfo module;
    VkComputePipelineCreateInfo info;
    VkResult result;
    memset(&module, 0, sizeof module);
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = workgroup ? sizeof add_words : sizeof plain_words;
    module.pCode = workgroup ? add_words : plain_words;
    result = vk.CreateShaderModule(g->device, &module, NULL, &p->shader);
    if (result) { p->shader = VK_NULL_HANDLE; return result; }
    entry.constantID = 0;
    entry.offset = 0;
    entry.size = 4;
    special.mapEntryCount = 1;
    special.pMapEntries = &entry;
    special.dataSize = 4;
    special.pData = &workgroup;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = p->shader;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = workgroup ? &special : NULL;
    info.layout = p->layout;
    return vk.CreateComputePipelines(g->device, VK_NULL_HANDLE, 1, &info, NULL, &p->pipeline);
}

static VkResult make_set(const gpu *g, program *p) {
    VkDescriptorPoolSize size;
    VkDescriptorPoolCreateInfo pool;
    VkDescriptorSetAllocateInfo info;
    VkResult result;
    size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    size.descriptorCount = 2;
    memset(&pool, 0, sizeof pool);
    pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool.maxSets = 1;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    result = vk.CreateDescriptorPool(g->device, &pool, NULL, &p->pool);
    if (result) { p->pool = VK_NULL_HANDLE; return result; }
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = p->pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &p->set_layout;
    return vk.AllocateDescriptorSets(g->device, &info, &p->set);
}

static VkResult make_program(const gpu *g, program *p, uint32_t workgroup) {
    VkResult result;
    memset(p, 0, sizeof *p);
    result = make_layouts(g, p);
    if (!result) result = make_pipeline(g, p, workgroup);
    return result ? result : make_set(g, p);
}

static void free_program(const gpu *g, program *p) {
    vk.DestroyDescriptorPool(g->device, p->pool, NULL);
    vk.DestroyPipeline(g->device, p->pipeline, NULL);
    vk.DestroyShaderModule(g->device, p->shader, NULL);
    vk.DestroyPipelineLayout(g->device, p->layout, NULL);
    vk.DestroyDescriptorSetLayout(g->device, p->set_layout, NULL);
}

static void describe(const gpu *g, const program *p, uint32_t binding, VkBuffer buffer,
                     uint64_t offset, uint64_t size) {
    VkDescriptorBufferInfo info;
    VkWriteDescriptorSet write;
    info.buffer = buffer;
    info.offset = offset;
    info.range = size;
    memset(&write, 0, sizeof write);
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = p->set;
    write.dstBinding = binding;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &info;
    vk.UpdateDescriptorSets(g->device, 1, &write, 0, NULL);
}

static void dispatch(VkCommandBuffer commands, const program *p, uint32_t groups) {
    const uint32_t count = WORDS;
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &p->set, 0,
                             NULL);
    vk.CmdPushConstants(commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &count);
    vk.CmdDispatch(commands, groups, 1, 1);
}

// -- memory --

static void every_machine_shows_its_memory_and_gives_it(void **state) {
    static const uint32_t types[VKSHIM_MACHINE_COUNT] = {0, 3, 4, 2, 1, 1};
    int machine;
    (void)state;
    for (machine = 1; machine < VKSHIM_MACHINE_COUNT; machine++) {
        VkPhysicalDeviceMemoryProperties memory;
        vkshim_config config;
        gpu g;
        uint32_t i;
        vkshim_default(&config, (vkshim_machine)machine);
        if (!open_gpu(&g, &config, "every_machine_shows_its_memory_and_gives_it")) return;
        vk.GetPhysicalDeviceMemoryProperties(g.physical, &memory);
        assert_int_equal(memory.memoryTypeCount, types[machine]);
        assert_int_equal(memory.memoryHeapCount, config.heap_count);
        for (i = 0; i < memory.memoryTypeCount; i++) {
            piece p = make_piece(&g, i, BYTES);
            int is_visible =
                (config.types[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
            assert_int_equal(memory.memoryTypes[i].propertyFlags, config.types[i].propertyFlags);
            assert_int_equal(p.words != NULL, is_visible);
            assert_true(report().memory_bytes >= BYTES);
            free_piece(&g, &p);
        }
        close_gpu(&g);
    }
}

static void memory_that_the_host_cannot_see_is_not_mapped(void **state) {
    vkshim_config config;
    VkDeviceMemory memory;
    void *at;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    if (!open_gpu(&g, &config, "memory_that_the_host_cannot_see_is_not_mapped")) return;
    assert_int_equal(allocate(&g, 0, 4096, &memory), VK_SUCCESS);
    assert_int_equal(vk.MapMemory(g.device, memory, 0, VK_WHOLE_SIZE, 0, &at),
                     VK_ERROR_MEMORY_MAP_FAILED);
    assert_caught("not HOST_VISIBLE");
    vk.FreeMemory(g.device, memory, NULL);
    close_gpu(&g);
}

static void a_heap_holds_exactly_its_bytes(void **state) {
    vkshim_config config;
    VkDeviceMemory a, b;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.real_heap_bytes[0] = 1 << 20;  // it says 4 GiB
    config.heaps[1].size = 1 << 20;
    if (!open_gpu(&g, &config, "a_heap_holds_exactly_its_bytes")) return;
    assert_int_equal(allocate(&g, 0, 1 << 19, &a), VK_SUCCESS);
    assert_int_equal(allocate(&g, 0, (1 << 19) + 1, &b), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(allocate(&g, 0, 1 << 19, &b), VK_SUCCESS);
    assert_int_equal(report().memory_bytes, 1 << 20);
    vk.FreeMemory(g.device, a, NULL);
    vk.FreeMemory(g.device, b, NULL);
    assert_int_equal(allocate(&g, 0, 1 << 20, &a), VK_SUCCESS);
    vk.FreeMemory(g.device, a, NULL);
    assert_violations(0);
    assert_int_equal(allocate(&g, 1, (1 << 20) + 1, &a), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    assert_caught("its heap has 1048576 bytes");
    assert_int_equal(allocate(&g, 7, 4096, &a), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    assert_caught("memoryTypeIndex 7 of 3");
    close_gpu(&g);
}

static void allocations_are_limited_in_number_and_size(void **state) {
    vkshim_config config;
    VkDeviceMemory memory[3];
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.allocation_count = 2;
    config.allocation_bytes = 1 << 20;
    if (!open_gpu(&g, &config, "allocations_are_limited_in_number_and_size")) return;
    assert_int_equal(allocate(&g, 0, (1 << 20) + 1, &memory[0]), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(allocate(&g, 0, 1 << 20, &memory[0]), VK_SUCCESS);
    assert_int_equal(allocate(&g, 0, 4096, &memory[1]), VK_SUCCESS);
    assert_int_equal(allocate(&g, 0, 4096, &memory[2]), VK_ERROR_TOO_MANY_OBJECTS);
    vk.FreeMemory(g.device, memory[0], NULL);
    assert_int_equal(allocate(&g, 0, 4096, &memory[2]), VK_SUCCESS);
    vk.FreeMemory(g.device, memory[1], NULL);
    vk.FreeMemory(g.device, memory[2], NULL);
    close_gpu(&g);
}

static int has_extension(const gpu *g, const char *name) {
    VkExtensionProperties list[512];
    uint32_t count = 512, i;
    assert_int_equal(vk.EnumerateDeviceExtensionProperties(g->physical, NULL, &count, list),
                     VK_SUCCESS);
    for (i = 0; i < count; i++) if (!strcmp(list[i].extensionName, name)) return 1;
    return 0;
}

static void a_budget_is_told_and_can_change(void **state) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    VkPhysicalDeviceMemoryProperties2 memory;
    VkDeviceMemory a;
    vkshim_config config;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.fakes_budget = 1;
    config.budget_bytes[0] = 1 << 20;
    if (!open_instance(&g, &config, VK_API_VERSION_1_2, "a_budget_is_told_and_can_change")) return;
    assert_true(has_extension(&g, "VK_EXT_memory_budget"));
    assert_int_equal(make_device(&g, 1, 0, "VK_EXT_memory_budget"), VK_SUCCESS);
    assert_int_equal(allocate(&g, 0, 1 << 19, &a), VK_SUCCESS);
    memset(&budget, 0, sizeof budget);
    budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
    memset(&memory, 0, sizeof memory);
    memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
    memory.pNext = &budget;
    vk.GetPhysicalDeviceMemoryProperties2(g.physical, &memory);
    assert_int_equal(memory.memoryProperties.memoryTypeCount, 3);
    assert_int_equal(budget.heapBudget[0], 1 << 20);
    assert_int_equal(budget.heapUsage[0], 1 << 19);
    assert_true(budget.heapBudget[1] == config.heaps[1].size);
    assert_int_equal(budget.heapBudget[2], 0);
    vkshim_set_budget(0, 1 << 18);
    vk.GetPhysicalDeviceMemoryProperties2(g.physical, &memory);
    assert_int_equal(budget.heapBudget[0], 1 << 18);
    assert_int_equal(report().over_budget_count, 0);
    vk.FreeMemory(g.device, a, NULL);
    assert_int_equal(allocate(&g, 0, (1 << 18) + 1, &a), VK_SUCCESS);
    assert_int_equal(report().over_budget_count, 1);
    vk.FreeMemory(g.device, a, NULL);
    close_gpu(&g);
}

static void extensions_and_features_can_be_hidden(void **state) {
    static const char *const hidden[] = {"VK_EXT_external_memory_host"};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceFeatures2 features;
    VkSemaphore semaphore;
    vkshim_config config;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.hidden_extensions = hidden;
    config.hidden_count = 1;
    config.hides_timeline = 1;
    if (!open_instance(&g, &config, VK_API_VERSION_1_2, "extensions_and_features_can_be_hidden"))
        return;
    assert_false(has_extension(&g, hidden[0]));
    assert_int_equal(make_device(&g, 1, 0, hidden[0]), VK_ERROR_EXTENSION_NOT_PRESENT);
    assert_int_equal(make_device(&g, 1, 1, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
    assert_int_equal(make_device(&g, 1, 0, NULL), VK_SUCCESS);
    memset(&timeline, 0, sizeof timeline);
    timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    timeline.timelineSemaphore = VK_TRUE;
    memset(&features, 0, sizeof features);
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &timeline;
    vk.GetPhysicalDeviceFeatures2(g.physical, &features);
    assert_int_equal(timeline.timelineSemaphore, VK_FALSE);
    assert_int_equal(make_semaphore(&g, 1, &semaphore), VK_SUCCESS);
    assert_caught("timelineSemaphore is not enabled");
    vk.DestroySemaphore(g.device, semaphore, NULL);
    close_gpu(&g);
}

static void what_is_not_flushed_is_not_seen_by_the_device(void **state) {
    vkshim_config config;
    VkFence fence;
    piece from, to;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_NON_COHERENT);
    if (!open_gpu(&g, &config, "what_is_not_flushed_is_not_seen_by_the_device")) return;
    fence = make_fence(&g);
    from = make_piece(&g, find_mapped_type(&g), BYTES);
    to = make_piece(&g, find_mapped_type(&g), BYTES);
    memset(from.words, 1, BYTES);
    flush(&g, &from, 0, VK_WHOLE_SIZE);
    memset(from.words, 2, BYTES);                      // of these, the first 256 bytes are flushed
    flush(&g, &from, 0, 256);
    copy_now(&g, &from, &to, fence);
    invalidate(&g, &to, 0, VK_WHOLE_SIZE);
    assert_int_equal(to.words[0], 0x02020202);
    assert_int_equal(to.words[63], 0x02020202);
    assert_int_equal(to.words[64], 0x01010101);
    assert_int_equal(to.words[WORDS - 1], 0x01010101);
    assert_violations(0);
    free_piece(&g, &from);
    free_piece(&g, &to);
    vk.DestroyFence(g.device, fence, NULL);
    close_gpu(&g);
}

static void what_is_not_invalidated_is_stale(void **state) {
    vkshim_config config;
    VkFence fence;
    piece from, to;
    void *again;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_NON_COHERENT);
    if (!open_gpu(&g, &config, "what_is_not_invalidated_is_stale")) return;
    fence = make_fence(&g);
    from = make_piece(&g, find_mapped_type(&g), BYTES);
    to = make_piece(&g, find_mapped_type(&g), BYTES);
    memset(from.words, 1, BYTES);
    flush(&g, &from, 0, VK_WHOLE_SIZE);
    copy_now(&g, &from, &to, fence);
    assert_int_equal(to.words[0], 0xDBDBDBDB);
    invalidate(&g, &to, 256, 256);
    assert_int_equal(to.words[63], 0xDBDBDBDB);
    assert_int_equal(to.words[64], 0x01010101);
    assert_int_equal(to.words[128], 0xDBDBDBDB);
    to.words[0] = 7;  // its own writes the host sees, also after a new map
    vk.UnmapMemory(g.device, to.memory);
    assert_int_equal(vk.MapMemory(g.device, to.memory, 0, VK_WHOLE_SIZE, 0, &again), VK_SUCCESS);
    assert_int_equal(((const uint32_t *)again)[0], 7);
    invalidate(&g, &to, 0, VK_WHOLE_SIZE);
    assert_int_equal(((const uint32_t *)again)[0], 0x01010101);
    free_piece(&g, &from);
    free_piece(&g, &to);
    vk.DestroyFence(g.device, fence, NULL);
    close_gpu(&g);
}

static void ranges_are_rounded_to_the_atom_and_inside_the_mapping(void **state) {
    vkshim_config config;
    VkDeviceMemory memory;
    piece p;
    void *at;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_NON_COHERENT);
    if (!open_gpu(&g, &config, "ranges_are_rounded_to_the_atom_and_inside_the_mapping")) return;
    assert_int_equal(allocate(&g, 0, 1000, &memory), VK_SUCCESS);
    p.memory = memory;
    assert_int_equal(vk.MapMemory(g.device, memory, 256, 512, 0, &at), VK_SUCCESS);
    flush(&g, &p, 256, 512);
    invalidate(&g, &p, 512, VK_WHOLE_SIZE);
    assert_violations(0);
    flush(&g, &p, 320, 192);
    assert_caught("offset 320, size 192: not rounded");
    invalidate(&g, &p, 256, 64);
    assert_caught("vkInvalidateMappedMemoryRanges: offset 256, size 64: not rounded");
    flush(&g, &p, 512, 488);
    assert_caught("outside what is mapped");
    assert_int_equal(vk.MapMemory(g.device, memory, 0, VK_WHOLE_SIZE, 0, &at),
                     VK_ERROR_MEMORY_MAP_FAILED);
    assert_caught("mapped already");
    vk.UnmapMemory(g.device, memory);
    flush(&g, &p, 256, 512);
    assert_caught("is not mapped");
    assert_int_equal(vk.MapMemory(g.device, memory, 0, VK_WHOLE_SIZE, 0, &at), VK_SUCCESS);
    flush(&g, &p, 768, 232);                            // up to the end: legal
    assert_violations(violations_seen);
    vk.FreeMemory(g.device, memory, NULL);
    close_gpu(&g);
}

static void buffers_are_bound_as_they_need(void **state) {
    VkMemoryRequirements needs;
    VkDeviceMemory memory, wrong;
    VkBuffer buffer;
    vkshim_config config;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.buffer_alignment = 1024;
    config.buffer_type_bits = 2;
    if (!open_gpu(&g, &config, "buffers_are_bound_as_they_need")) return;
    assert_int_equal(make_buffer(&g, BYTES, &buffer), VK_SUCCESS);
    vk.GetBufferMemoryRequirements(g.device, buffer, &needs);
    assert_int_equal(needs.alignment, 1024);
    assert_int_equal(needs.memoryTypeBits, 2);
    assert_int_equal(allocate(&g, 1, 8 * BYTES, &memory), VK_SUCCESS);
    assert_int_equal(allocate(&g, 0, 8 * BYTES, &wrong), VK_SUCCESS);
    assert_int_equal(vk.BindBufferMemory(g.device, buffer, memory, 8 * BYTES), VK_SUCCESS);
    assert_caught("ends before the buffer");
    vk.DestroyBuffer(g.device, buffer, NULL);
    assert_int_equal(make_buffer(&g, BYTES, &buffer), VK_SUCCESS);
    assert_int_equal(vk.BindBufferMemory(g.device, buffer, memory, 512), VK_SUCCESS);
    assert_caught("not a multiple of the alignment");
    vk.DestroyBuffer(g.device, buffer, NULL);
    assert_int_equal(make_buffer(&g, BYTES, &buffer), VK_SUCCESS);
    assert_int_equal(vk.BindBufferMemory(g.device, buffer, wrong, 0), VK_SUCCESS);
    assert_caught("of a type that it may not have");
    vk.DestroyBuffer(g.device, buffer, NULL);
    assert_int_equal(make_buffer(&g, BYTES, &buffer), VK_SUCCESS);
    assert_int_equal(vk.BindBufferMemory(g.device, buffer, memory, 1024), VK_SUCCESS);
    assert_violations(violations_seen);
    vk.DestroyBuffer(g.device, buffer, NULL);
    vk.FreeMemory(g.device, memory, NULL);
    vk.FreeMemory(g.device, wrong, NULL);
    close_gpu(&g);
}

// -- limits --

static void limits_are_told(void **state) {
    VkPhysicalDeviceMaintenance3Properties maintenance;
    VkPhysicalDeviceProperties2 properties;
    const VkPhysicalDeviceLimits *limits = &properties.properties.limits;
    VkQueueFamilyProperties families[3];
    uint32_t count = 3;
    vkshim_config config;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.storage_offset_alignment = 256;
    config.non_coherent_atom = 128;
    config.storage_range = 1 << 20;
    config.allocation_count = 4096;
    config.allocation_bytes = 1 << 24;
    config.workgroup_invocations = 128;
    config.workgroup_size[1] = 64;
    config.workgroup_count[2] = 7;
    config.stage_storage_buffers = 4;
    config.push_constant_bytes = 32;
    config.timestamp_bits = 36;
    config.transfer_family = 1;
    if (!open_gpu(&g, &config, "limits_are_told")) return;
    memset(&maintenance, 0, sizeof maintenance);
    maintenance.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    memset(&properties, 0, sizeof properties);
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &maintenance;
    vk.GetPhysicalDeviceProperties2(g.physical, &properties);
    assert_int_equal(maintenance.maxMemoryAllocationSize, 1 << 24);
    assert_int_equal(properties.properties.deviceType, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    assert_int_equal(limits->minStorageBufferOffsetAlignment, 256);
    assert_int_equal(limits->nonCoherentAtomSize, 128);
    assert_int_equal(limits->maxStorageBufferRange, 1 << 20);
    assert_int_equal(limits->maxMemoryAllocationCount, 4096);
    assert_int_equal(limits->maxComputeWorkGroupInvocations, 128);
    assert_int_equal(limits->maxComputeWorkGroupSize[1], 64);
    assert_int_equal(limits->maxComputeWorkGroupCount[2], 7);
    assert_int_equal(limits->maxPerStageDescriptorStorageBuffers, 4);
    assert_int_equal(limits->maxPushConstantsSize, 32);
    vk.GetPhysicalDeviceQueueFamilyProperties(g.physical, &count, families);
    assert_int_equal(count, 2);
    assert_true(families[0].queueFlags & VK_QUEUE_COMPUTE_BIT);
    assert_int_equal(families[1].queueFlags, VK_QUEUE_TRANSFER_BIT);
    assert_int_equal(families[0].timestampValidBits, 36);
    assert_ptr_not_equal(g.queue, g.transfer);
    close_gpu(&g);
}

static void descriptors_keep_to_the_limits(void **state) {
    vkshim_config config;
    program p;
    piece b;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.storage_offset_alignment = 256;
    config.storage_range = 512;
    if (!open_gpu(&g, &config, "descriptors_keep_to_the_limits")) return;
    assert_int_equal(make_program(&g, &p, 64), VK_SUCCESS);
    b = make_piece(&g, find_mapped_type(&g), BYTES);
    describe(&g, &p, 0, b.buffer, 512, 512);
    describe(&g, &p, 0, b.buffer, 512, VK_WHOLE_SIZE);
    assert_violations(0);
    describe(&g, &p, 0, b.buffer, 64, 64);
    assert_caught("offset 64: not a multiple of 256");
    describe(&g, &p, 0, b.buffer, 0, 516);
    assert_caught("range 516: above maxStorageBufferRange 512");
    describe(&g, &p, 0, b.buffer, 256, VK_WHOLE_SIZE);
    assert_caught("range 768: above");
    free_piece(&g, &b);
    free_program(&g, &p);
    close_gpu(&g);
}

static void pipelines_and_dispatches_keep_to_the_limits(void **state) {
    VkCommandBuffer commands;
    vkshim_config config;
    program p;
    piece a, b;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.workgroup_invocations = 128;
    config.workgroup_count[0] = 8;
    config.workgroup_size[0] = 128;
    if (!open_gpu(&g, &config, "pipelines_and_dispatches_keep_to_the_limits")) return;
    assert_int_equal(make_program(&g, &p, 0), VK_SUCCESS);  // 16 x 9 of its own
    assert_caught("16 x 9 x 1, the limit is 128 invocations");
    free_program(&g, &p);
    assert_int_equal(make_program(&g, &p, 129), VK_SUCCESS);
    free_program(&g, &p);
    violations_seen++;
    assert_caught("129 x 1 x 1, the limit is 128 invocations");
    assert_int_equal(make_program(&g, &p, 128), VK_SUCCESS);
    a = make_piece(&g, find_mapped_type(&g), BYTES);
    b = make_piece(&g, find_mapped_type(&g), BYTES);
    describe(&g, &p, 0, a.buffer, 0, BYTES);
    describe(&g, &p, 1, b.buffer, 0, BYTES);
    commands = start_commands(&g, 0);
    dispatch(commands, &p, 8);
    assert_violations(violations_seen);
    dispatch(commands, &p, 9);
    assert_caught("9 x 1 x 1 groups, the limit is 8 x");
    free_piece(&g, &a);
    free_piece(&g, &b);
    free_program(&g, &p);
    close_gpu(&g);
}

static void layouts_keep_to_the_limits(void **state) {
    vkshim_config config;
    program p;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.stage_storage_buffers = 1;
    if (!open_gpu(&g, &config, "layouts_keep_to_the_limits")) return;
    memset(&p, 0, sizeof p);
    assert_int_equal(make_layouts(&g, &p), VK_SUCCESS);
    assert_caught("2 storage buffers, the limit is 1");
    free_program(&g, &p);
    config.stage_storage_buffers = 2;
    config.push_constant_bytes = 2;
    vkshim_change(&config);
    assert_int_equal(make_layouts(&g, &p), VK_SUCCESS);
    assert_caught("up to byte 4, the limit is 2");
    free_program(&g, &p);
    config.push_constant_bytes = 4;
    vkshim_change(&config);
    assert_int_equal(make_layouts(&g, &p), VK_SUCCESS);
    free_program(&g, &p);
    close_gpu(&g);
}

static void timestamps_have_their_bits_and_wrap(void **state) {
    VkQueryPoolCreateInfo info;
    VkCommandBuffer commands;
    VkQueryPool pool;
    VkFence fence;
    uint64_t times[2];
    vkshim_config config;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.timestamp_bits = 20;
    if (!open_gpu(&g, &config, "timestamps_have_their_bits_and_wrap")) return;
    fence = make_fence(&g);
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = 2;
    assert_int_equal(vk.CreateQueryPool(g.device, &info, NULL, &pool), VK_SUCCESS);
    commands = start_commands(&g, 0);
    vk.CmdResetQueryPool(commands, pool, 0, 2);
    vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 0);
    vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 1);
    end_and_submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, fence);
    see(&g, fence);
    assert_int_equal(vk.GetQueryPoolResults(g.device, pool, 0, 2, sizeof times, times, 8,
                                            VK_QUERY_RESULT_64_BIT),
                     VK_SUCCESS);
    assert_true(times[0] < (1 << 20) && times[1] < (1 << 20));
    config.timestamp_add = (1 << 20) - times[0];  // so that the first one is just where they wrap
    vkshim_change(&config);
    vk.GetQueryPoolResults(g.device, pool, 0, 2, sizeof times, times, 8, VK_QUERY_RESULT_64_BIT);
    assert_int_equal(times[0], 0);
    config.no_timestamps = 1;
    vkshim_change(&config);
    commands = start_commands(&g, 0);
    vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 0);
    assert_caught("no timestamps");
    vk.DestroyQueryPool(g.device, pool, NULL);
    vk.DestroyFence(g.device, fence, NULL);
    close_gpu(&g);
}

// -- versions --

static void entry_points_can_be_missing(void **state) {
    static const char *const missing[] = {"vkCmdFillBuffer"};
    vkshim_config config;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.missing = missing;
    config.missing_count = 1;
    if (!open_gpu(&g, &config, "entry_points_can_be_missing")) return;
    assert_null(vkshim_get_instance_proc(g.instance, "vkCmdFillBuffer"));
    assert_null(vk.GetDeviceProcAddr(g.device, "vkCmdFillBuffer"));
    assert_null(vk.GetDeviceProcAddr(g.device, "vkQueueSubmit2"));
    assert_null(vkshim_get_instance_proc(NULL, "vkCreateDevice"));
    assert_non_null(vk.GetDeviceProcAddr(g.device, "vkCmdCopyBuffer"));
    assert_non_null(vk.GetDeviceProcAddr(g.device, "vkCreateEvent"));  // not wrapped: the driver's
    close_gpu(&g);
}

static void a_1_0_device_has_nothing_newer(void **state) {
    VkPhysicalDeviceMemoryProperties2 memory;
    VkPhysicalDeviceProperties properties;
    vkshim_config config;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.api_version = VK_API_VERSION_1_0;
    config.hides_timeline = 1;
    if (!open_gpu(&g, &config, "a_1_0_device_has_nothing_newer")) return;
    vk.GetPhysicalDeviceProperties(g.physical, &properties);
    assert_int_equal(properties.apiVersion, VK_API_VERSION_1_0);
    assert_null(vk.GetDeviceProcAddr(g.device, "vkWaitSemaphores"));
    assert_null(vk.GetDeviceProcAddr(g.device, "vkTrimCommandPool"));
    memset(&memory, 0, sizeof memory);
    memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
    vk.GetPhysicalDeviceMemoryProperties2(g.physical, &memory);
    assert_caught("needs Vulkan 1.1, instance and device have 1.0");
    close_gpu(&g);
}

static void a_1_0_loader_refuses_a_newer_instance(void **state) {
    VkInstance instance;
    vkshim_config config;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.instance_version = VK_API_VERSION_1_0;
    if (!open_instance(&g, &config, VK_API_VERSION_1_0, "a_1_0_loader_refuses_a_newer_instance"))
        return;
    assert_null(vkshim_get_instance_proc(NULL, "vkEnumerateInstanceVersion"));
    assert_null(vkshim_get_instance_proc(g.instance, "vkGetPhysicalDeviceProperties2"));
    assert_int_equal(make_instance(VK_API_VERSION_1_1, &instance), VK_ERROR_INCOMPATIBLE_DRIVER);
    assert_null(instance);
    vk.DestroyInstance(g.instance, NULL);
    assert_violations(0);
}

// -- queues and ownership --

// Fill on the transfer family, read on family 0, with these parts left out or wrong.
enum { NO_RELEASE = 1, NO_ACQUIRE = 2, NO_SEMAPHORE = 4, OTHER_RANGE = 8, WRITES_ONLY = 16 };

static void move_between_families(const gpu *g, const piece *a, const piece *b, int mistakes) {
    VkCommandBuffer first = start_commands(g, 1), second = start_commands(g, 0);
    VkSemaphore semaphore, given;
    assert_int_equal(make_semaphore(g, 0, &semaphore), VK_SUCCESS);
    given = mistakes & NO_SEMAPHORE ? VK_NULL_HANDLE : semaphore;
    vk.CmdFillBuffer(first, a->buffer, 0, BYTES, 0x05050505);
    if (!(mistakes & NO_RELEASE)) barrier(first, a->buffer, 0, BYTES, 1, 0);
    if (!(mistakes & NO_ACQUIRE))
        barrier(second, a->buffer, 0, mistakes & OTHER_RANGE ? 512 : BYTES, 1, 0);
    if (mistakes & WRITES_ONLY) vk.CmdFillBuffer(second, a->buffer, 0, BYTES, 6);
    else copy(second, a->buffer, b->buffer, mistakes & OTHER_RANGE ? 512 : BYTES);
    end_and_submit(g->transfer, first, VK_NULL_HANDLE, given, VK_NULL_HANDLE);
    end_and_submit(g->queue, second, given, VK_NULL_HANDLE, VK_NULL_HANDLE);
    assert_int_equal(vk.DeviceWaitIdle(g->device), VK_SUCCESS);
    vk.DestroySemaphore(g->device, semaphore, NULL);
}

static void a_range_changes_families_by_release_semaphore_and_acquire(void **state) {
    static const struct { int mistakes; const char *text; } cases[] = {
        {0, NULL},
        {NO_ACQUIRE, "read without an acquire"},
        {NO_RELEASE, "acquired without a release"},
        {NO_RELEASE | NO_ACQUIRE, "read without an acquire"},
        {NO_SEMAPHORE, "without a semaphore between"},
        {OTHER_RANGE, "with another range"},
        {NO_RELEASE | NO_ACQUIRE | WRITES_ONLY, NULL},  // the old bytes are not read: legal
        {NO_RELEASE | NO_ACQUIRE | WRITES_ONLY | NO_SEMAPHORE, "without a semaphore between"},
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        vkshim_config config;
        piece a, b;
        gpu g;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.transfer_family = 1;
        if (!open_gpu(&g, &config, "a_range_changes_families_by_release_semaphore_and_acquire"))
            return;
        a = make_piece(&g, find_mapped_type(&g), BYTES);
        b = make_piece(&g, find_mapped_type(&g), BYTES);
        move_between_families(&g, &a, &b, cases[i].mistakes);
        if (!cases[i].text) {
            assert_violations(0);
            if (!(cases[i].mistakes & WRITES_ONLY))
                assert_int_equal(b.words[WORDS - 1], 0x05050505);
        } else assert_non_null(strstr(vkshim_violation(0), cases[i].text));
        violations_seen = report().violation_count;
        free_piece(&g, &a);
        free_piece(&g, &b);
        close_gpu(&g);
    }
}

static void strict_ownership_covers_writes(void **state) {
    vkshim_config config;
    piece a, b;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.transfer_family = config.strict_ownership = 1;
    if (!open_gpu(&g, &config, "strict_ownership_covers_writes")) return;
    a = make_piece(&g, find_mapped_type(&g), BYTES);
    b = make_piece(&g, find_mapped_type(&g), BYTES);
    move_between_families(&g, &a, &b, NO_RELEASE | NO_ACQUIRE | WRITES_ONLY);
    assert_caught("written without an acquire");
    free_piece(&g, &a);
    free_piece(&g, &b);
    close_gpu(&g);
}

// Copy from one piece to another.
static VkCommandBuffer copy_commands(const gpu *g, uint32_t family, const piece *from, const piece *to) {
    const VkBufferCopy region = { 0, 0, BYTES };
    VkCommandBuffer commands = start_commands(g, family);
    vk.CmdCopyBuffer(commands, from->buffer, to->buffer, 1, &region);
    assert_int_equal(vk.EndCommandBuffer(commands), VK_SUCCESS);
    return commands;
}

static void what_both_families_own_is_ordered_by_semaphores(void **state) {
    vkshim_config config;
    VkSemaphore semaphore;
    piece p[3];
    gpu g;
    int i;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.transfer_family = 1;
    if (!open_gpu(&g, &config, "what_both_families_own_is_ordered_by_semaphores")) return;
    g.shares = 1;
    for (i = 0; i < 3; i++) p[i] = make_piece(&g, find_mapped_type(&g), BYTES);
    assert_int_equal(make_semaphore(&g, 1, &semaphore), VK_SUCCESS);
    submit_value(g.queue, copy_commands(&g, 0, &p[0], &p[1]), semaphore, 0, 1);
    submit_value(g.transfer, copy_commands(&g, 1, &p[0], &p[2]), semaphore, 0, 2);  // both read p[0]
    assert_violations(violations_seen);
    submit_value(g.transfer, copy_commands(&g, 1, &p[1], &p[2]), semaphore, 0, 3);
    assert_caught("used while another queue may write it");
    submit_value(g.queue, copy_commands(&g, 0, &p[1], &p[0]), semaphore, 0, 4);
    assert_caught("written while another queue may read it");
    submit_value(g.transfer, copy_commands(&g, 1, &p[0], &p[1]), semaphore, 4, 5);
    submit_value(g.queue, copy_commands(&g, 0, &p[1], &p[2]), semaphore, 5, 6);
    assert_violations(violations_seen);
    assert_int_equal(vk.DeviceWaitIdle(g.device), VK_SUCCESS);
    for (i = 0; i < 3; i++) free_piece(&g, &p[i]);
    vk.DestroySemaphore(g.device, semaphore, NULL);
    close_gpu(&g);
}

static void the_transfer_family_does_transfers_only(void **state) {
    VkCommandBuffer commands;
    vkshim_config config;
    program p;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.transfer_family = 1;
    if (!open_gpu(&g, &config, "the_transfer_family_does_transfers_only")) return;
    assert_int_equal(make_program(&g, &p, 64), VK_SUCCESS);
    commands = start_commands(&g, 1);
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.pipeline);
    assert_caught("vkCmdBindPipeline: family 1 does transfers only");
    vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                          VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 0, NULL);
    assert_caught("stages 0x800");
    end_and_submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, VK_NULL_HANDLE);
    assert_caught("recorded for family 1, the queue is of 0");
    assert_int_equal(vk.QueueWaitIdle(g.queue), VK_SUCCESS);
    free_program(&g, &p);
    close_gpu(&g);
}

static void a_wait_may_be_submitted_before_its_signal(void **state) {
    VkCommandBuffer first, second;
    VkSemaphore semaphore;
    uint64_t value = 0;
    vkshim_config config;
    piece a;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.transfer_family = 1;
    if (!open_gpu(&g, &config, "a_wait_may_be_submitted_before_its_signal")) return;
    a = make_piece(&g, find_mapped_type(&g), BYTES);
    assert_int_equal(make_semaphore(&g, 1, &semaphore), VK_SUCCESS);
    first = start_commands(&g, 1);
    vk.CmdFillBuffer(first, a.buffer, 0, BYTES, 1);
    assert_int_equal(vk.EndCommandBuffer(first), VK_SUCCESS);
    second = start_commands(&g, 0);
    vk.CmdFillBuffer(second, a.buffer, 0, BYTES, 2);
    assert_int_equal(vk.EndCommandBuffer(second), VK_SUCCESS);
    submit_value(g.queue, second, semaphore, 1, 2);
    assert_int_equal(report().pending_count, 1);
    submit_value(g.transfer, first, semaphore, 0, 1);
    assert_int_equal(report().pending_count, 0);
    assert_int_equal(vk.DeviceWaitIdle(g.device), VK_SUCCESS);
    assert_int_equal(vk.GetSemaphoreCounterValue(g.device, semaphore, &value), VK_SUCCESS);
    assert_int_equal(value, 2);
    assert_int_equal(a.words[0], 2);
    free_piece(&g, &a);
    vk.DestroySemaphore(g.device, semaphore, NULL);
    close_gpu(&g);
}

typedef struct worker {
    const gpu *g;
    VkQueue queue;
    VkCommandPool pool;
    pthread_mutex_t *lock;   // around the queue; NULL = none
    int rounds, failures;
} worker;

static void *work(void *user) {
    worker *w = (worker *)user;
    int i;
    for (i = 0; i < w->rounds; i++) {
        VkDeviceMemory memory;
        gpu mine = *w->g;
        VkFence fence = make_fence(&mine);
        w->failures += allocate(&mine, 0, 4096, &memory) != VK_SUCCESS;
        if (w->lock) pthread_mutex_lock(w->lock);
        w->failures += submit(w->queue, NULL, VK_NULL_HANDLE, VK_NULL_HANDLE, fence) != VK_SUCCESS;
        if (w->lock) pthread_mutex_unlock(w->lock);
        w->failures += vk.WaitForFences(mine.device, 1, &fence, VK_TRUE, UINT64_MAX) != VK_SUCCESS;
        vk.FreeMemory(mine.device, memory, NULL);
        vk.DestroyFence(mine.device, fence, NULL);
    }
    return NULL;
}

static void two_threads(const gpu *g, VkQueue second, pthread_mutex_t *lock) {
    pthread_t threads[2];
    worker workers[2];
    int i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < 2; i++) {
        workers[i].g = g;
        workers[i].queue = i ? second : g->queue;
        workers[i].lock = lock;
        workers[i].rounds = 20;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
    }
}

static void a_queue_is_used_by_one_thread_at_a_time(void **state) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    vkshim_config config;
    gpu g;
    int i;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.transfer_family = 1;
    config.queue_yields = 20;
    if (!open_gpu(&g, &config, "a_queue_is_used_by_one_thread_at_a_time")) return;
    two_threads(&g, g.queue, &lock);
    two_threads(&g, g.transfer, NULL);   // two queues need no lock
    assert_violations(0);
    config.queue_yields = 1000;
    vkshim_change(&config);
    for (i = 0; i < 1000 && !violations_seen; i++) {    // on a busy machine they may miss each other for a while
        two_threads(&g, g.queue, NULL);
        violations_seen = report().violation_count;
    }
    assert_true(violations_seen > 0);
    assert_non_null(strstr(report().violation_text, "another thread uses the queue"));
    close_gpu(&g);
}

// -- failures --

// Make all, run it, read the result. Frees what it made; the first result that is not VK_SUCCESS.
static VkResult run_all(const gpu *borrowed) {
    gpu g = *borrowed;
    piece pieces[2];
    program p;
    VkFenceCreateInfo fence_info;
    VkFence fence = VK_NULL_HANDLE;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    VkCommandBuffer commands = NULL;
    VkResult result;
    uint64_t value;
    int i;
    void *at;
    memset(pieces, 0, sizeof pieces);
    memset(g.pools, 0, sizeof g.pools);
    result = make_program(&g, &p, 64);
    for (i = 0; i < 2 && !result; i++) {
        result = make_buffer(&g, BYTES, &pieces[i].buffer);
        if (result) { pieces[i].buffer = VK_NULL_HANDLE; break; }
        result = allocate(&g, find_mapped_type(&g), BYTES, &pieces[i].memory);
        if (result) { pieces[i].memory = VK_NULL_HANDLE; break; }
        result = vk.BindBufferMemory(g.device, pieces[i].buffer, pieces[i].memory, 0);
        if (!result) result = vk.MapMemory(g.device, pieces[i].memory, 0, VK_WHOLE_SIZE, 0, &at);
        if (!result) pieces[i].words = (uint32_t *)at;
        if (!result) describe(&g, &p, (uint32_t)i, pieces[i].buffer, 0, BYTES);
    }
    memset(&fence_info, 0, sizeof fence_info);
    fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    if (!result && (result = vk.CreateFence(g.device, &fence_info, NULL, &fence)))
        fence = VK_NULL_HANDLE;
    if (!result && (result = make_semaphore(&g, 1, &semaphore))) semaphore = VK_NULL_HANDLE;
    if (!result && (result = make_pool(&g, 0, &g.pools[0]))) g.pools[0] = VK_NULL_HANDLE;
    if (!result) memset(pieces[0].words, 1, BYTES);
    if (!result) {
        VkMappedMemoryRange r = range_of(&pieces[0], 0, VK_WHOLE_SIZE);
        result = vk.FlushMappedMemoryRanges(g.device, 1, &r);
    }
    if (!result) result = start(&g, 0, &commands);
    if (!result) { dispatch(commands, &p, 4); result = vk.EndCommandBuffer(commands); }
    if (!result) result = submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, fence);
    if (!result) {
        result = vk.WaitForFences(g.device, 1, &fence, VK_TRUE, UINT64_MAX);
        if (result) vkshim_complete_all();
        if (result && vk.DeviceWaitIdle(g.device) < 0) assert_true(result == VK_ERROR_DEVICE_LOST);
    }
    if (!result) result = vk.GetFenceStatus(g.device, fence);
    if (!result) result = vk.ResetFences(g.device, 1, &fence);
    if (!result) result = vk.GetSemaphoreCounterValue(g.device, semaphore, &value);
    if (!result) {
        VkMappedMemoryRange r = range_of(&pieces[1], 0, VK_WHOLE_SIZE);
        result = vk.InvalidateMappedMemoryRanges(g.device, 1, &r);
    }
    if (!result) assert_int_equal(pieces[1].words[WORDS - 1], 0x01010102);
    if (g.pools[0]) vk.DestroyCommandPool(g.device, g.pools[0], NULL);
    vk.DestroySemaphore(g.device, semaphore, NULL);
    vk.DestroyFence(g.device, fence, NULL);
    for (i = 0; i < 2; i++) free_piece(&g, &pieces[i]);
    free_program(&g, &p);
    return result;
}

static void every_call_fails_when_it_is_told_to(void **state) {
    vkshim_config config;
    uint64_t at, count;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_NON_COHERENT);
    if (!open_gpu(&g, &config, "every_call_fails_when_it_is_told_to")) return;
    vkshim_change(&config);
    assert_int_equal(run_all(&g), VK_SUCCESS);
    count = report().fallible_count;
    assert_true(count > 20);
    for (at = 1; at <= count; at++) {
        config.fail_any_at = at;
        vkshim_change(&config);
        assert_int_equal(run_all(&g), VK_ERROR_OUT_OF_HOST_MEMORY);
        assert_int_equal(report().injected_count, at);
        assert_int_equal(report().leak_count, 1);  // the pool of the gpu
        assert_violations(0);
    }
    config.fail_any_at = 0;
    vkshim_change(&config);
    assert_int_equal(run_all(&g), VK_SUCCESS);
    close_gpu(&g);
}

static void exactly_the_named_calls_fail(void **state) {
    VkDeviceMemory memory[6];
    vkshim_config config;
    int i;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.fail_call = "vkAllocateMemory";
    config.fail_at = 3;
    config.fail_count = 2;
    config.fail_with = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (!open_gpu(&g, &config, "exactly_the_named_calls_fail")) return;
    for (i = 0; i < 6; i++) {
        VkResult wanted = i == 2 || i == 3 ? VK_ERROR_OUT_OF_DEVICE_MEMORY : VK_SUCCESS;
        assert_int_equal(allocate(&g, 0, 4096, &memory[i]), wanted);
    }
    assert_int_equal(report().live[VKSHIM_MEMORY], 4);
    assert_int_equal(report().injected_count, 2);
    assert_int_equal(vkshim_calls("vkAllocateMemory"), 6);
    assert_true(vkshim_calls("vkCreateEvent") == UINT64_MAX);
    vk.FreeMemory(g.device, memory[2], NULL);  // what was never made is not freed
    assert_caught("vkFreeMemory: no such handle among the memory objects");
    for (i = 0; i < 6; i++) if (i != 2 && i != 3) vk.FreeMemory(g.device, memory[i], NULL);
    close_gpu(&g);
}

static void a_lost_device_stays_lost_and_can_be_freed(void **state) {
    int place;
    (void)state;
    for (place = 0; place < 4; place++) {
        VkCommandBuffer commands;
        VkFence fence;
        vkshim_config config;
        piece a;
        gpu g;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.delay_polls = 1;
        if (place == 0) config.lose_at_submit = 2;
        if (place == 1) config.lose_at_wait = 2;
        if (place == 2) config.lose_at_poll = 1;
        if (!open_gpu(&g, &config, "a_lost_device_stays_lost_and_can_be_freed")) return;
        a = make_piece(&g, find_mapped_type(&g), BYTES);
        memset(a.words, 9, BYTES);
        fence = make_fence(&g);
        assert_int_equal(submit(g.queue, NULL, VK_NULL_HANDLE, VK_NULL_HANDLE, fence), VK_SUCCESS);
        see(&g, fence);
        commands = start_commands(&g, 0);
        vk.CmdFillBuffer(commands, a.buffer, 0, BYTES, 1);
        assert_int_equal(vk.EndCommandBuffer(commands), VK_SUCCESS);
        assert_int_equal(submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, fence),
                         place ? VK_SUCCESS : VK_ERROR_DEVICE_LOST);
        if (place == 2) assert_int_equal(vk.GetFenceStatus(g.device, fence), VK_ERROR_DEVICE_LOST);
        if (place == 3) vkshim_lose_device();
        assert_int_equal(vk.WaitForFences(g.device, 1, &fence, VK_TRUE, UINT64_MAX),
                         VK_ERROR_DEVICE_LOST);
        assert_int_equal(vk.GetFenceStatus(g.device, fence), VK_ERROR_DEVICE_LOST);
        assert_int_equal(vk.DeviceWaitIdle(g.device), VK_ERROR_DEVICE_LOST);
        assert_int_equal(vk.QueueWaitIdle(g.queue), VK_ERROR_DEVICE_LOST);
        assert_int_equal(submit(g.queue, NULL, VK_NULL_HANDLE, VK_NULL_HANDLE, VK_NULL_HANDLE),
                         VK_ERROR_DEVICE_LOST);
        assert_int_equal(a.words[0], 0x09090909);  // kept back, so it never happened
        free_piece(&g, &a);
        vk.DestroyFence(g.device, fence, NULL);
        close_gpu(&g);
    }
}

// -- delayed completion --

static void work_is_done_only_when_it_is_waited_or_polled_for(void **state) {
    VkFence fence;
    vkshim_config config;
    piece a, b;
    int way, i;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.delay_polls = 3;
    if (!open_gpu(&g, &config, "work_is_done_only_when_it_is_waited_or_polled_for")) return;
    a = make_piece(&g, find_mapped_type(&g), BYTES);
    b = make_piece(&g, find_mapped_type(&g), BYTES);
    fence = make_fence(&g);
    for (way = 0; way < 4; way++) {
        uint64_t waits = report().host_wait_count;
        VkCommandBuffer commands = start_commands(&g, 0);
        memset(a.words, way + 1, BYTES);
        memset(b.words, 0, BYTES);
        copy(commands, a.buffer, b.buffer, BYTES);
        end_and_submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, fence);
        assert_int_equal(report().pending_count, 1);
        for (i = 0; i < 3; i++) {
            if (way == 3)
                assert_int_equal(vk.WaitForFences(g.device, 1, &fence, VK_TRUE, 0), VK_TIMEOUT);
            else assert_int_equal(vk.GetFenceStatus(g.device, fence), VK_NOT_READY);
        }
        assert_int_equal(b.words[0], 0);
        if (way == 0) assert_int_equal(vk.GetFenceStatus(g.device, fence), VK_SUCCESS);
        if (way == 1) vkshim_complete_all();
        if (way == 1) assert_int_equal(report().unseen_count, 1);
        if (way == 2) assert_int_equal(vk.QueueWaitIdle(g.queue), VK_SUCCESS);
        if (way == 3)
            assert_int_equal(vk.WaitForFences(g.device, 1, &fence, VK_TRUE, UINT64_MAX),
                             VK_SUCCESS);
        assert_int_equal(b.words[WORDS - 1], (way + 1) * 0x01010101);
        assert_int_equal(report().pending_count, 0);
        assert_int_equal(report().host_wait_count - waits, way >= 2);
        assert_int_equal(vk.GetFenceStatus(g.device, fence), VK_SUCCESS);
        assert_int_equal(report().unseen_count, 0);
        assert_int_equal(vk.ResetFences(g.device, 1, &fence), VK_SUCCESS);
    }
    free_piece(&g, &a);
    free_piece(&g, &b);
    vk.DestroyFence(g.device, fence, NULL);
    close_gpu(&g);
}

static void a_host_that_writes_too_early_spoils_the_copy(void **state) {
    VkCommandBuffer commands;
    VkFence fence;
    vkshim_config config;
    piece a, b;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.delay_polls = 1;
    if (!open_gpu(&g, &config, "a_host_that_writes_too_early_spoils_the_copy")) return;
    a = make_piece(&g, find_mapped_type(&g), BYTES);
    b = make_piece(&g, find_mapped_type(&g), BYTES);
    fence = make_fence(&g);
    memset(a.words, 1, BYTES);
    commands = start_commands(&g, 0);
    copy(commands, a.buffer, b.buffer, BYTES);
    end_and_submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, fence);
    memset(a.words, 2, BYTES);
    see(&g, fence);
    assert_int_equal(b.words[0], 0x02020202);
    free_piece(&g, &a);
    free_piece(&g, &b);
    vk.DestroyFence(g.device, fence, NULL);
    close_gpu(&g);
}

static void timeline_values_are_delayed_too(void **state) {
    VkSemaphoreWaitInfo wait;
    VkSemaphore semaphore;
    vkshim_config config;
    uint64_t value, i, target;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.delay_polls = 2;
    if (!open_gpu(&g, &config, "timeline_values_are_delayed_too")) return;
    assert_int_equal(make_semaphore(&g, 1, &semaphore), VK_SUCCESS);
    for (i = 1; i <= 4; i++) {
        VkCommandBuffer commands = start_commands(&g, 0);
        assert_int_equal(vk.EndCommandBuffer(commands), VK_SUCCESS);
        submit_value(g.queue, commands, semaphore, 0, i);
    }
    for (i = 0; i < 6; i++) {   // each value takes two looks in vain
        assert_int_equal(vk.GetSemaphoreCounterValue(g.device, semaphore, &value), VK_SUCCESS);
        assert_int_equal(value, (i + 1) / 3);
    }
    assert_int_equal(report().unseen_count, 2);
    target = 3;
    memset(&wait, 0, sizeof wait);
    wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    wait.semaphoreCount = 1;
    wait.pSemaphores = &semaphore;
    wait.pValues = &target;
    assert_int_equal(vk.WaitSemaphores(g.device, &wait, UINT64_MAX), VK_SUCCESS);
    assert_int_equal(report().pending_count, 1);
    assert_int_equal(report().host_wait_count, 1);
    assert_int_equal(vk.WaitSemaphores(g.device, &wait, UINT64_MAX), VK_SUCCESS);
    assert_int_equal(report().host_wait_count, 1);
    target = 4;
    assert_int_equal(vk.WaitSemaphores(g.device, &wait, 0), VK_TIMEOUT);
    assert_int_equal(vk.WaitSemaphores(g.device, &wait, 0), VK_TIMEOUT);
    assert_int_equal(vk.WaitSemaphores(g.device, &wait, 0), VK_SUCCESS);
    assert_int_equal(report().unseen_count, 0);
    vk.DestroySemaphore(g.device, semaphore, NULL);
    close_gpu(&g);
}

typedef struct waiter {
    VkDevice device;
    VkSemaphore semaphore;
    VkResult result;
} waiter;

static void *wait_for_one(void *user) {
    waiter *w = (waiter *)user;
    const uint64_t target = 1;
    VkSemaphoreWaitInfo wait;
    memset(&wait, 0, sizeof wait);
    wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    wait.semaphoreCount = 1;
    wait.pSemaphores = &w->semaphore;
    wait.pValues = &target;
    w->result = vk.WaitSemaphores(w->device, &wait, UINT64_MAX);
    return NULL;
}

static void a_thread_that_waits_gets_what_another_submits(void **state) {
    VkCommandBuffer commands;
    vkshim_config config;
    pthread_t thread;
    waiter w;
    gpu g;
    (void)state;
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.delay_polls = UINT32_MAX;
    if (!open_gpu(&g, &config, "a_thread_that_waits_gets_what_another_submits")) return;
    w.device = g.device;
    w.result = VK_NOT_READY;
    assert_int_equal(make_semaphore(&g, 1, &w.semaphore), VK_SUCCESS);
    commands = start_commands(&g, 0);
    assert_int_equal(vk.EndCommandBuffer(commands), VK_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &w), 0);
    while (!report().host_wait_count) sched_yield();
    submit_value(g.queue, commands, w.semaphore, 0, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(w.result, VK_SUCCESS);
    assert_int_equal(report().unseen_count, 0);
    vk.DestroySemaphore(g.device, w.semaphore, NULL);
    close_gpu(&g);
}

// -- objects --

static void leaks_are_counted(void **state) {
    VkBuffer buffer;
    gpu g;
    (void)state;
    if (!open_gpu(&g, NULL, "leaks_are_counted")) return;
    assert_int_equal(make_buffer(&g, BYTES, &buffer), VK_SUCCESS);
    assert_int_equal(report().live[VKSHIM_BUFFER], 1);
    assert_int_equal(report().leak_count, 2);
    vk.DestroyCommandPool(g.device, g.pools[0], NULL);
    assert_int_equal(report().leak_count, 1);
    vk.DestroyDevice(g.device, NULL);
    assert_caught("1 buffers are alive");
    assert_int_equal(report().live[VKSHIM_BUFFER], 1);
    vk.DestroyInstance(g.instance, NULL);
}

static void what_is_in_use_is_not_destroyed(void **state) {
    VkCommandBuffer commands;
    VkCommandBufferBeginInfo begin;
    VkFence fence;
    piece a, b;
    gpu g;
    (void)state;
    if (!open_gpu(&g, NULL, "what_is_in_use_is_not_destroyed")) return;
    fence = make_fence(&g);
    memset(&begin, 0, sizeof begin);
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    commands = start_commands(&g, 0);
    a = make_piece(&g, find_mapped_type(&g), BYTES);
    b = make_piece(&g, find_mapped_type(&g), BYTES);
    copy(commands, a.buffer, b.buffer, BYTES);
    end_and_submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, fence);
    assert_int_equal(submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, VK_NULL_HANDLE),
                     VK_SUCCESS);
    assert_caught("vkQueueSubmit: one of the command buffers is used by work");
    vk.DestroyBuffer(g.device, a.buffer, NULL);
    assert_caught("vkDestroyBuffer: one of the buffers is used by work");
    vk.FreeMemory(g.device, b.memory, NULL);
    assert_caught("vkFreeMemory: one of the memory objects is used by work");
    assert_int_equal(vk.BeginCommandBuffer(commands, &begin), VK_SUCCESS);
    assert_caught("vkBeginCommandBuffer: one of the command buffers is used by work");
    assert_int_equal(vk.DeviceWaitIdle(g.device), VK_SUCCESS);
    vk.DestroyBuffer(g.device, b.buffer, NULL);
    vk.FreeMemory(g.device, a.memory, NULL);
    vk.DestroyFence(g.device, fence, NULL);
    close_gpu(&g);
}

static void the_host_has_seen_what_came_before_what_it_saw(void **state) {
    VkCommandBuffer commands;
    VkFence fence;
    piece a, b;
    gpu g;
    (void)state;
    if (!open_gpu(&g, NULL, "the_host_has_seen_what_came_before_what_it_saw")) return;
    fence = make_fence(&g);
    a = make_piece(&g, find_mapped_type(&g), BYTES);
    b = make_piece(&g, find_mapped_type(&g), BYTES);
    commands = start_commands(&g, 0);
    copy(commands, a.buffer, b.buffer, BYTES);
    end_and_submit(g.queue, commands, VK_NULL_HANDLE, VK_NULL_HANDLE, VK_NULL_HANDLE);
    assert_int_equal(submit(g.queue, NULL, VK_NULL_HANDLE, VK_NULL_HANDLE, fence), VK_SUCCESS);
    assert_int_equal(report().unseen_count, 2);
    see(&g, fence);
    assert_int_equal(report().unseen_count, 0);
    free_piece(&g, &a);
    free_piece(&g, &b);
    vk.DestroyFence(g.device, fence, NULL);
    close_gpu(&g);
}

static void fences_and_command_buffers_are_in_the_right_state(void **state) {
    VkCommandBuffer commands;
    VkFence fence;
    gpu g;
    (void)state;
    if (!open_gpu(&g, NULL, "fences_and_command_buffers_are_in_the_right_state")) return;
    fence = make_fence(&g);
    assert_int_equal(submit(g.queue, NULL, VK_NULL_HANDLE, VK_NULL_HANDLE, fence), VK_SUCCESS);
    assert_int_equal(vk.ResetFences(g.device, 1, &fence), VK_SUCCESS);
    assert_caught("vkResetFences: one of the fences is used by work");
    assert_int_equal(submit(g.queue, NULL, VK_NULL_HANDLE, VK_NULL_HANDLE, fence), VK_SUCCESS);
    assert_int_equal(vk.WaitForFences(g.device, 1, &fence, VK_TRUE, UINT64_MAX), VK_SUCCESS);
    assert_int_equal(vk.ResetFences(g.device, 1, &fence), VK_SUCCESS);
    assert_violations(violations_seen);
    commands = start_commands(&g, 0);
    assert_int_equal(vk.EndCommandBuffer(commands), VK_SUCCESS);
    vk.CmdDispatch(commands, 0, 0, 0);
    assert_caught("vkCmdDispatch: commandBuffer: does not record");
    vk.DestroyFence(g.device, fence, NULL);
    close_gpu(&g);
}

// An aligned block with what malloc gave and its size just before it.
typedef struct block_head {
    void *block;
    size_t bytes;
} block_head;

static void *VKAPI_CALL host_allocate(void *user, size_t bytes, size_t alignment,
                                      VkSystemAllocationScope scope) {
    char *block = (char *)malloc(bytes + alignment + sizeof(block_head)), *at;
    block_head head;
    (void)scope;
    ++*(int *)user;
    if (!block) return NULL;
    head.block = block;
    head.bytes = bytes;
    at = block + sizeof head;
    at += (alignment - (uintptr_t)at % alignment) % alignment;
    memcpy(at - sizeof head, &head, sizeof head);
    return at;
}

static void VKAPI_CALL host_free(void *user, void *ptr) {
    block_head head;
    (void)user;
    if (!ptr) return;
    memcpy(&head, (char *)ptr - sizeof head, sizeof head);
    free(head.block);
}

static void *VKAPI_CALL host_reallocate(void *user, void *from, size_t bytes, size_t alignment,
                                        VkSystemAllocationScope scope) {
    void *to = bytes ? host_allocate(user, bytes, alignment, scope) : NULL;
    block_head head;
    if (to && from) {
        memcpy(&head, (char *)from - sizeof head, sizeof head);
        memcpy(to, from, bytes < head.bytes ? bytes : head.bytes);
    }
    if (to || !bytes) host_free(user, from);
    return to;
}

static void callbacks_pass_through_and_are_given_to_both(void **state) {
    VkAllocationCallbacks callbacks;
    VkFenceCreateInfo info;
    VkFence fence;
    int count = 0;
    gpu g;
    (void)state;
    if (!open_gpu(&g, NULL, "callbacks_pass_through_and_are_given_to_both")) return;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.pUserData = &count;
    callbacks.pfnAllocation = host_allocate;
    callbacks.pfnReallocation = host_reallocate;
    callbacks.pfnFree = host_free;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    assert_int_equal(vk.CreateFence(g.device, &info, &callbacks, &fence), VK_SUCCESS);
    assert_true(count > 0);
    vk.DestroyFence(g.device, fence, &callbacks);
    assert_violations(0);
    assert_int_equal(vk.CreateFence(g.device, &info, &callbacks, &fence), VK_SUCCESS);
    // As if it had been made without.
    vkshim_find(VKSHIM_FENCE, VKSHIM_KEY(fence))->has_callbacks = 0;
    vk.DestroyFence(g.device, fence, &callbacks);
    assert_caught("given to only one of create and destroy");
    close_gpu(&g);
}

static void every_name_is_there(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < VKSHIM_KIND_COUNT; i++)
        assert_string_not_equal(vkshim_name_kind((vkshim_kind)i), "?");
    assert_string_equal(vkshim_name_kind(VKSHIM_KIND_COUNT), "?");
    for (i = 0; vkshim_fallible(i); i++) assert_int_equal(strncmp(vkshim_fallible(i), "vk", 2), 0);
    assert_true(i > 30);
}

#ifdef __SANITIZE_ADDRESS__
// Drivers leak a little with every instance, in modules that are unloaded by then: what the shim's programs
// leak is counted by the shim.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_machine_shows_its_memory_and_gives_it),
        cmocka_unit_test(memory_that_the_host_cannot_see_is_not_mapped),
        cmocka_unit_test(a_heap_holds_exactly_its_bytes),
        cmocka_unit_test(allocations_are_limited_in_number_and_size),
        cmocka_unit_test(a_budget_is_told_and_can_change),
        cmocka_unit_test(extensions_and_features_can_be_hidden),
        cmocka_unit_test(what_is_not_flushed_is_not_seen_by_the_device),
        cmocka_unit_test(what_is_not_invalidated_is_stale),
        cmocka_unit_test(ranges_are_rounded_to_the_atom_and_inside_the_mapping),
        cmocka_unit_test(buffers_are_bound_as_they_need),
        cmocka_unit_test(limits_are_told),
        cmocka_unit_test(descriptors_keep_to_the_limits),
        cmocka_unit_test(pipelines_and_dispatches_keep_to_the_limits),
        cmocka_unit_test(layouts_keep_to_the_limits),
        cmocka_unit_test(timestamps_have_their_bits_and_wrap),
        cmocka_unit_test(entry_points_can_be_missing),
        cmocka_unit_test(a_1_0_device_has_nothing_newer),
        cmocka_unit_test(a_1_0_loader_refuses_a_newer_instance),
        cmocka_unit_test(a_range_changes_families_by_release_semaphore_and_acquire),
        cmocka_unit_test(strict_ownership_covers_writes),
        cmocka_unit_test(what_both_families_own_is_ordered_by_semaphores),
        cmocka_unit_test(the_transfer_family_does_transfers_only),
        cmocka_unit_test(a_wait_may_be_submitted_before_its_signal),
        cmocka_unit_test(a_queue_is_used_by_one_thread_at_a_time),
        cmocka_unit_test(every_call_fails_when_it_is_told_to),
        cmocka_unit_test(exactly_the_named_calls_fail),
        cmocka_unit_test(a_lost_device_stays_lost_and_can_be_freed),
        cmocka_unit_test(work_is_done_only_when_it_is_waited_or_polled_for),
        cmocka_unit_test(a_host_that_writes_too_early_spoils_the_copy),
        cmocka_unit_test(timeline_values_are_delayed_too),
        cmocka_unit_test(a_thread_that_waits_gets_what_another_submits),
        cmocka_unit_test(leaks_are_counted),
        cmocka_unit_test(what_is_in_use_is_not_destroyed),
        cmocka_unit_test(the_host_has_seen_what_came_before_what_it_saw),
        cmocka_unit_test(fences_and_command_buffers_are_in_the_right_state),
        cmocka_unit_test(callbacks_pass_through_and_are_given_to_both),
        cmocka_unit_test(every_name_is_there),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
