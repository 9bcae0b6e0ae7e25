// Whether copies between the tiers vanish behind kernels, as plans say they do.
//
//     bench_vk_overlap [--model]
//
// On the first GPU there is, or with --model (the default where there is none) on the modelled one of support/vk_clock.h, whose times
// are the same in every run. Tables: the pattern of a plan by Vulkan alone and by the backend, with the same kernels, copies and
// dependencies; then steps of two networks by plans with copies, measured and as predicted, over the time of keeping everything.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#define TL_VK_OPEN_LOADER
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"
#include "../support/vk_shim.c"
#include "../support/vk_clock.c"
#include "timing.h"
#include "vk_busy.h"

typedef unsigned long long ull;

#define MARK 0xB0511E57u        // of the pushes of busy kernels

enum { STEPS = 48, BEHIND = 3, FLOATS = 1 << 22, MODEL_FLOATS = 64, LOOP_NS = 200, SHRINK = 64, PASSES = 4 };

static int is_model;
static uint64_t plan_work;              // of tl_plan_remat; 0 = the default
static double loop_ns = LOOP_NS;        // of the busy kernel
static uint32_t floats = MODEL_FLOATS;
static uint64_t shrink = SHRINK;        // bytes of the model are fewer, and its links as much slower
static tl_env env;

static void must(tl_result result, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_vk_overlap: %s: %s: %s\n", what, tl_name_result(result), env.error.text);
    exit(1);
}

static void must_vk(VkResult result, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_vk_overlap: %s: %d\n", what, (int)result);
    exit(1);
}

static uint64_t now_ns(void *user) { return is_model ? vkclock_now_ns(user) : (uint64_t)wall_ns(); }

// -- the device --

static uint64_t model_kernel_ns(const uint32_t *push, const uint32_t groups[3]) {
    return push[2] == MARK ? (uint64_t)push[1] * LOOP_NS : (uint64_t)groups[0] * groups[1] * groups[2] * SHRINK / 2;
}

static void reset_model(int engines) {
    vkshim_config shim;
    vkclock_config clock;
    vkshim_default(&shim, VKSHIM_MACHINE_DISCRETE);
    vkshim_add_engines(&shim);
    shim.families[1].queue_count = (uint32_t)engines;
    shim.timestamp_period = 1;
    vkshim_reset(&shim);
    vkclock_default(&clock);
    clock.link_bytes_per_ns[0] /= (double)shrink;
    clock.link_bytes_per_ns[1] /= (double)shrink;
    clock.device_bytes_per_ns /= (double)shrink;
    clock.kernel_ns = model_kernel_ns;
    vkclock_reset(&clock);
}

typedef enum way { ONE_QUEUE, ONE_LINK, TWO_LINKS, WAY_COUNT } way;
static const char *const way_names[] = { "one queue", "transfer queue", "two of them" };

static void open_device(way how, tl_vk_device *device) {
    tl_vk_device_desc desc;
    memset(&desc, 0, sizeof desc);
    if (is_model) reset_model(how == TWO_LINKS ? 2 : 1);
    if (is_model) desc.get_instance_proc = vkclock_get_instance_proc;
    desc.enable_transfer = how != ONE_QUEUE;
    must(tl_vk_init_device(&env, &desc, device), "a device");
    if (how == ONE_LINK) device->upload_queue = VK_NULL_HANDLE;
}

// -- a backend, and busy kernels on it --

typedef struct bed {
    tl_vk_device  device;
    tl_backend    backend;
    tl_vk_kernel *kernel;
    tl_range      busy;         // of the floats that kernels work on
} bed;

static tl_range add_range(const tl_backend *b, tl_tier tier, uint64_t bytes) {
    tl_range range;
    memset(&range, 0, sizeof range);
    range.bytes = bytes;
    must((b->add_block)(b->self, tier, bytes, &range.block), "a block");
    must((b->claim)(b->self, range), "a claim");
    return range;
}

static void open_bed(way how, uint32_t time_count, bed *x) {
    tl_vk_backend_desc desc;
    tl_vk_kernel_desc kernel;
    memset(x, 0, sizeof *x);
    memset(&desc, 0, sizeof desc);
    memset(&kernel, 0, sizeof kernel);
    open_device(how, &x->device);
    desc.device = x->device;
    desc.now_ns = now_ns;
    desc.time_count = time_count;
    must(tl_vk_init_backend(&env, &desc, &x->backend), "a backend");
    kernel.words = bench_busy_words;
    kernel.word_count = sizeof bench_busy_words / 4;
    kernel.buffer_count = 1;
    kernel.push_bytes = 12;
    must(tl_vk_init_kernel(&x->backend, &kernel, &x->kernel), "a kernel");
    x->busy = add_range(&x->backend, TL_TIER_DEVICE, (uint64_t)floats * 4);
    must((x->backend.fill)(x->backend.self, x->busy, 0), "zeros");
}

static void free_range(const tl_backend *b, tl_range range) {
    must((b->release)(b->self, range), "a release");
    must((b->free_block)(b->self, range.block), "a block");
}

static void close_bed(bed *x) {
    free_range(&x->backend, x->busy);
    tl_vk_free_kernel(&x->backend, x->kernel);
    must(tl_vk_free_backend(&env, &x->backend), "a backend");
    must(tl_vk_free_device(&env, &x->device), "a device");
}

// Record a kernel of so many nanoseconds.
static tl_result be_busy(const bed *x, uint64_t ns) {
    uint32_t push[3];
    tl_access access;
    tl_result result;
    access.range = x->busy;
    access.writes = 1;
    push[0] = floats;
    push[1] = (uint32_t)((double)ns / loop_ns);
    push[2] = MARK;
    result = (x->backend.order)(x->backend.self, &access, 1);
    return result ? result : tl_vk_record_kernel(&x->backend, x->kernel, &x->busy, push, (floats + 63) / 64, 1, 1);
}

static void finish(const bed *x) {
    tl_ticket ticket;
    must((x->backend.submit)(x->backend.self, &ticket), "a submit");
    must((x->backend.wait)(x->backend.self, ticket), "a wait");
}

// -- the pattern of a plan: kernels, each beside a copy, which a kernel a few steps later waits for --

// By the backend: in the first half of the steps a piece is copied to the host, in the second half another one back.
static double run_pattern(const bed *x, uint64_t ns, const tl_range *device, const tl_range *host) {
    const tl_backend *b = &x->backend;
    double start;
    int i;
    finish(x);
    start = (double)now_ns(NULL);
    for (i = 0; i < STEPS; i++) {
        tl_access access;
        int piece = i % (STEPS / 2);
        must(be_busy(x, ns), "a kernel");
        if (i >= BEHIND) {              // what the copy of three steps before wrote, or read, is used
            access.range = device[(i - BEHIND) % (STEPS / 2)];
            access.writes = 1;
            must((b->order)(b->self, &access, 1), "an order");
        }
        if (i < STEPS / 2) must((b->copy)(b->self, host[piece], device[piece]), "a copy");
        else must((b->copy)(b->self, device[piece], host[piece]), "a copy");
    }
    finish(x);
    return (double)now_ns(NULL) - start;
}

// By Vulkan alone: the same kernels, copies and dependencies, with buffers that both families own and timelines.
typedef struct bare {
    tl_vk_device device;
    VkQueue      queues[2];
    uint32_t     families[2];
    VkCommandPool pools[2];
    VkSemaphore  timelines[2];
    uint64_t     values[2];
    VkBuffer     busy, sides[2];        // sides: of the device, of the host
    VkDeviceMemory memories[3];
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkShaderModule module;
    VkPipeline pipeline;
    VkDescriptorPool sets;
    VkDescriptorSet set;
    VkCommandBuffer commands[4 * STEPS];
    int          command_count;
} bare;

#define BARE_FUNCTIONS(X) \
    X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(AllocateMemory) X(FreeMemory) X(BindBufferMemory) \
    X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(FreeCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) \
    X(CmdPipelineBarrier) X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch) X(CmdCopyBuffer) \
    X(QueueSubmit) X(DeviceWaitIdle) X(CreateSemaphore) X(DestroySemaphore) X(CreateShaderModule) X(DestroyShaderModule) \
    X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) X(CreatePipelineLayout) X(DestroyPipelineLayout) \
    X(CreateComputePipelines) X(DestroyPipeline) X(CreateDescriptorPool) X(DestroyDescriptorPool) X(AllocateDescriptorSets) \
    X(UpdateDescriptorSets) X(GetPhysicalDeviceMemoryProperties) X(CmdFillBuffer)

#define BARE_MEMBER(name) PFN_vk##name name;
static struct { BARE_FUNCTIONS(BARE_MEMBER) } vk;

static void make_buffer(bare *x, int index, uint64_t bytes, VkMemoryPropertyFlags flags, VkBuffer *buffer) {
    VkPhysicalDeviceMemoryProperties memory;
    VkBufferCreateInfo info;
    VkMemoryRequirements needs;
    VkMemoryAllocateInfo allocate;
    memset(&info, 0, sizeof info);
    memset(&allocate, 0, sizeof allocate);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    if (x->families[0] != x->families[1]) {
        info.sharingMode = VK_SHARING_MODE_CONCURRENT;
        info.queueFamilyIndexCount = 2;
        info.pQueueFamilyIndices = x->families;
    }
    must_vk(vk.CreateBuffer(x->device.device, &info, NULL, buffer), "vkCreateBuffer");
    vk.GetBufferMemoryRequirements(x->device.device, *buffer, &needs);
    vk.GetPhysicalDeviceMemoryProperties(x->device.physical, &memory);
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.allocationSize = needs.size;
    while (!(needs.memoryTypeBits >> allocate.memoryTypeIndex & 1) ||
           (memory.memoryTypes[allocate.memoryTypeIndex].propertyFlags & flags) != flags) allocate.memoryTypeIndex++;
    must_vk(vk.AllocateMemory(x->device.device, &allocate, NULL, &x->memories[index]), "vkAllocateMemory");
    must_vk(vk.BindBufferMemory(x->device.device, *buffer, x->memories[index], 0), "vkBindBufferMemory");
}

static void make_pipeline(bare *x) {
    VkDescriptorSetLayoutBinding binding;
    VkDescriptorSetLayoutCreateInfo set_layout;
    VkPushConstantRange push;
    VkPipelineLayoutCreateInfo layout;
    VkShaderModuleCreateInfo module;
    VkComputePipelineCreateInfo pipeline;
    VkDescriptorPoolSize size;
    VkDescriptorPoolCreateInfo pool;
    VkDescriptorSetAllocateInfo allocate;
    VkDescriptorBufferInfo part;
    VkWriteDescriptorSet write;
    memset(&binding, 0, sizeof binding); memset(&set_layout, 0, sizeof set_layout); memset(&push, 0, sizeof push);
    memset(&layout, 0, sizeof layout); memset(&module, 0, sizeof module); memset(&pipeline, 0, sizeof pipeline);
    memset(&pool, 0, sizeof pool); memset(&allocate, 0, sizeof allocate); memset(&write, 0, sizeof write);
    binding.descriptorType = size.type = write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    binding.descriptorCount = size.descriptorCount = write.descriptorCount = 1;
    binding.stageFlags = push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    set_layout.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set_layout.bindingCount = 1;
    set_layout.pBindings = &binding;
    must_vk(vk.CreateDescriptorSetLayout(x->device.device, &set_layout, NULL, &x->set_layout), "vkCreateDescriptorSetLayout");
    push.size = 12;
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.setLayoutCount = layout.pushConstantRangeCount = 1;
    layout.pSetLayouts = &x->set_layout;
    layout.pPushConstantRanges = &push;
    must_vk(vk.CreatePipelineLayout(x->device.device, &layout, NULL, &x->layout), "vkCreatePipelineLayout");
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = sizeof bench_busy_words;
    module.pCode = bench_busy_words;
    must_vk(vk.CreateShaderModule(x->device.device, &module, NULL, &x->module), "vkCreateShaderModule");
    pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = x->module;
    pipeline.stage.pName = "main";
    pipeline.layout = x->layout;
    must_vk(vk.CreateComputePipelines(x->device.device, VK_NULL_HANDLE, 1, &pipeline, NULL, &x->pipeline), "vkCreateComputePipelines");
    pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool.maxSets = pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    must_vk(vk.CreateDescriptorPool(x->device.device, &pool, NULL, &x->sets), "vkCreateDescriptorPool");
    allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    allocate.descriptorPool = x->sets;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &x->set_layout;
    must_vk(vk.AllocateDescriptorSets(x->device.device, &allocate, &x->set), "vkAllocateDescriptorSets");
    part.buffer = x->busy;
    part.offset = 0;
    part.range = VK_WHOLE_SIZE;
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = x->set;
    write.pBufferInfo = &part;
    vk.UpdateDescriptorSets(x->device.device, 1, &write, 0, NULL);
}

static void open_bare(bare *x, uint64_t bytes) {
    PFN_vkGetDeviceProcAddr get;
    int i;
    memset(x, 0, sizeof *x);
    open_device(ONE_LINK, &x->device);
    get = (PFN_vkGetDeviceProcAddr)x->device.get_instance_proc(x->device.instance, "vkGetDeviceProcAddr");
#define BARE_LOAD(name) \
    vk.name = (PFN_vk##name)get(x->device.device, "vk" #name); \
    if (!vk.name) vk.name = (PFN_vk##name)x->device.get_instance_proc(x->device.instance, "vk" #name);
    BARE_FUNCTIONS(BARE_LOAD)
    x->queues[0] = x->device.queue;
    x->families[0] = x->device.queue_family;
    x->queues[1] = x->device.transfer_queue ? x->device.transfer_queue : x->device.queue;
    x->families[1] = x->device.transfer_queue ? x->device.transfer_family : x->device.queue_family;
    for (i = 0; i < 2; i++) {
        VkCommandPoolCreateInfo pool;
        VkSemaphoreTypeCreateInfo type;
        VkSemaphoreCreateInfo semaphore;
        memset(&pool, 0, sizeof pool); memset(&type, 0, sizeof type); memset(&semaphore, 0, sizeof semaphore);
        pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
        pool.queueFamilyIndex = x->families[i];
        must_vk(vk.CreateCommandPool(x->device.device, &pool, NULL, &x->pools[i]), "vkCreateCommandPool");
        type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
        type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
        semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
        semaphore.pNext = &type;
        must_vk(vk.CreateSemaphore(x->device.device, &semaphore, NULL, &x->timelines[i]), "vkCreateSemaphore");
    }
    make_buffer(x, 0, (uint64_t)floats * 4, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, &x->busy);
    make_buffer(x, 1, bytes, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, &x->sides[0]);
    make_buffer(x, 2, bytes, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, &x->sides[1]);
    make_pipeline(x);
}

static void close_bare(bare *x) {
    VkDevice device = x->device.device;
    int i;
    vk.DestroyPipeline(device, x->pipeline, NULL);
    vk.DestroyShaderModule(device, x->module, NULL);
    vk.DestroyPipelineLayout(device, x->layout, NULL);
    vk.DestroyDescriptorPool(device, x->sets, NULL);
    vk.DestroyDescriptorSetLayout(device, x->set_layout, NULL);
    vk.DestroyBuffer(device, x->busy, NULL);
    for (i = 0; i < 2; i++) vk.DestroyBuffer(device, x->sides[i], NULL);
    for (i = 0; i < 3; i++) vk.FreeMemory(device, x->memories[i], NULL);
    for (i = 0; i < 2; i++) vk.DestroyCommandPool(device, x->pools[i], NULL);
    for (i = 0; i < 2; i++) vk.DestroySemaphore(device, x->timelines[i], NULL);
    must(tl_vk_free_device(&env, &x->device), "a device");
}

static VkCommandBuffer begin_bare(bare *x, int queue) {
    VkCommandBufferAllocateInfo info;
    VkCommandBufferBeginInfo begin;
    VkCommandBuffer *commands = &x->commands[x->command_count++];
    memset(&info, 0, sizeof info);
    memset(&begin, 0, sizeof begin);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = x->pools[queue];
    info.commandBufferCount = 1;
    must_vk(vk.AllocateCommandBuffers(x->device.device, &info, commands), "vkAllocateCommandBuffers");
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    must_vk(vk.BeginCommandBuffer(*commands, &begin), "vkBeginCommandBuffer");
    return *commands;
}

static void dispatch_bare(const bare *x, VkCommandBuffer commands, uint64_t ns) {
    VkMemoryBarrier barrier;
    uint32_t push[3];
    memset(&barrier, 0, sizeof barrier);
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    push[0] = floats;
    push[1] = (uint32_t)((double)ns / loop_ns);
    push[2] = MARK;
    vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, x->pipeline);
    vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, x->layout, 0, 1, &x->set, 0, NULL);
    vk.CmdPushConstants(commands, x->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 12, push);
    vk.CmdDispatch(commands, (floats + 63) / 64, 1, 1);
}

// Copy bytes of one side to the other. direction 0: to the host.
static void copy_bare(const bare *x, VkCommandBuffer commands, int direction, uint64_t at, uint64_t bytes) {
    VkBufferCopy region;
    region.srcOffset = region.dstOffset = at;
    region.size = bytes;
    vk.CmdCopyBuffer(commands, x->sides[direction], x->sides[1 - direction], 1, &region);
}

// Submit, behind a value of the other queue's timeline.
static void submit_bare(bare *x, int queue, VkCommandBuffer commands, uint64_t behind) {
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkTimelineSemaphoreSubmitInfo timeline;
    VkSubmitInfo info;
    uint64_t value = ++x->values[queue];
    memset(&timeline, 0, sizeof timeline);
    memset(&info, 0, sizeof info);
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.waitSemaphoreValueCount = info.waitSemaphoreCount = behind != 0;
    timeline.pWaitSemaphoreValues = &behind;
    timeline.signalSemaphoreValueCount = info.signalSemaphoreCount = info.commandBufferCount = 1;
    timeline.pSignalSemaphoreValues = &value;
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &timeline;
    info.pWaitSemaphores = &x->timelines[1 - queue];
    info.pWaitDstStageMask = &stage;
    info.pCommandBuffers = &commands;
    info.pSignalSemaphores = &x->timelines[queue];
    must_vk(vk.EndCommandBuffer(commands), "vkEndCommandBuffer");
    must_vk(vk.QueueSubmit(x->queues[queue], 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
}

static double finish_bare(bare *x, double start) {
    double end;
    must_vk(vk.DeviceWaitIdle(x->device.device), "vkDeviceWaitIdle");
    end = (double)now_ns(NULL);
    x->command_count = 0;
    return (end - start) / 1e6;
}

typedef struct bare_times { double compute, copies, one_queue, free, planned; } bare_times;

static bare_times time_bare(bare *x, uint64_t ns, uint64_t bytes) {
    uint64_t piece = bytes / (STEPS / 2) / 4096 * 4096, done[STEPS];
    VkCommandBuffer commands;
    bare_times t;
    double start;
    int i;
    start = (double)now_ns(NULL);
    commands = begin_bare(x, 0);
    for (i = 0; i < STEPS; i++) dispatch_bare(x, commands, ns);
    submit_bare(x, 0, commands, 0);
    t.compute = finish_bare(x, start);
    start = (double)now_ns(NULL);
    commands = begin_bare(x, 1);
    copy_bare(x, commands, 0, 0, bytes);
    copy_bare(x, commands, 1, 0, bytes);
    submit_bare(x, 1, commands, 0);
    t.copies = finish_bare(x, start);
    start = (double)now_ns(NULL);
    commands = begin_bare(x, 0);
    for (i = 0; i < STEPS; i++) {
        dispatch_bare(x, commands, ns);
        copy_bare(x, commands, i >= STEPS / 2, (uint64_t)(i % (STEPS / 2)) * piece, piece);
    }
    submit_bare(x, 0, commands, 0);
    t.one_queue = finish_bare(x, start);
    start = (double)now_ns(NULL);
    commands = begin_bare(x, 0);
    for (i = 0; i < STEPS; i++) dispatch_bare(x, commands, ns);
    submit_bare(x, 0, commands, 0);
    commands = begin_bare(x, 1);
    copy_bare(x, commands, 0, 0, bytes);
    copy_bare(x, commands, 1, 0, bytes);
    submit_bare(x, 1, commands, 0);
    t.free = finish_bare(x, start);
    start = (double)now_ns(NULL);
    for (i = 0; i < STEPS; i++) {
        commands = begin_bare(x, 0);
        dispatch_bare(x, commands, ns);
        submit_bare(x, 0, commands, i >= BEHIND ? done[i - BEHIND] : 0);
        commands = begin_bare(x, 1);
        copy_bare(x, commands, i >= STEPS / 2, (uint64_t)(i % (STEPS / 2)) * piece, piece);
        submit_bare(x, 1, commands, x->values[0]);
        done[i] = x->values[1];
    }
    t.planned = finish_bare(x, start);
    return t;
}

// The pattern by the backend: the best of a few passes, in ms.
static double time_backend(uint64_t ns, uint64_t bytes, way how) {
    tl_range device[STEPS / 2], host[STEPS / 2];
    uint64_t piece = bytes / (STEPS / 2) / 4096 * 4096;
    double best = 0;
    bed x;
    int i;
    open_bed(how, 0, &x);
    for (i = 0; i < STEPS / 2; i++) {
        device[i] = add_range(&x.backend, TL_TIER_DEVICE, piece);
        host[i] = add_range(&x.backend, TL_TIER_HOST, piece);
    }
    for (i = 0; i < PASSES; i++) {
        double ms = run_pattern(&x, ns, device, host) / 1e6;
        if (!i || ms < best) best = ms;
    }
    for (i = 0; i < STEPS / 2; i++) {
        free_range(&x.backend, device[i]);
        free_range(&x.backend, host[i]);
    }
    close_bed(&x);
    return best;
}

// The pattern by Vulkan alone; the bytes of the model are fewer.
static bare_times time_pattern(uint64_t megabytes, uint64_t ns, uint64_t *bytes) {
    static bare x;
    bare_times t, again;
    *bytes = megabytes * 1000000 / shrink / 4096 * 4096;
    open_bare(&x, *bytes);
    (void)time_bare(&x, ns, *bytes);
    t = time_bare(&x, ns, *bytes);
    again = time_bare(&x, ns, *bytes);
    close_bare(&x);
    return again.planned < t.planned ? again : t;
}

// -- networks: plans with copies, predicted and measured --

typedef struct size { const char *name; uint64_t layers, width, context, batch; double flops_per_ns, bytes_per_ns; } size;

typedef struct net { tl_graph graph; const bed *x; } net;

static tl_tensor add_node(net *n, const char *op, const char *needs, const tl_tensor *inputs, int32_t count, uint64_t bytes, double ns) {
    tl_node_desc desc;
    tl_tensor out;
    memset(&desc, 0, sizeof desc);
    memset(&out, 0, sizeof out);
    bytes = (bytes / shrink + 255) / 256 * 256;
    desc.op = op;
    desc.needs = needs;
    desc.inputs = inputs;
    desc.input_count = count;
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fwd_cost = (uint64_t)ns;
    desc.bwd_cost = count ? 2 * (uint64_t)ns : 0;
    must(tl_add_node(&env, &n->graph, &desc, &out.node), "a node");
    return out;
}

// A transformer: norm, projections, attention, and a network of four times the width, with their residuals.
static void make_net(net *n, const size *s) {
    uint64_t rows = s->context * s->batch, unit = rows * s->width * 4, i;
    double matmul = 2.0 * (double)rows * (double)s->width * (double)s->width / s->flops_per_ns;
    double pass = 2.0 * (double)unit / s->bytes_per_ns;
    double attention = 4.0 * (double)rows * (double)s->context * (double)s->width / s->flops_per_ns;
    tl_tensor x, in[2];
    memset(n, 0, sizeof *n);
    x = add_node(n, "input", "none", NULL, 0, unit, 0);
    for (i = 0; i < s->layers; i++) {
        tl_tensor skip = x, y = add_node(n, "work", "in", &x, 1, unit, pass);
        y = add_node(n, "work", "in", &y, 1, 3 * unit, 3 * matmul);
        y = add_node(n, "work", "in", &y, 1, unit, attention);
        y = add_node(n, "work", "in", &y, 1, unit, matmul);
        in[0] = skip; in[1] = y;
        x = add_node(n, "work", "none", in, 2, unit, pass);
        skip = x;
        y = add_node(n, "work", "in", &x, 1, unit, pass);
        y = add_node(n, "work", "in", &y, 1, 4 * unit, 4 * matmul);
        y = add_node(n, "work", "in", &y, 1, 4 * unit, 4 * pass);
        y = add_node(n, "work", "in", &y, 1, unit, 4 * matmul);
        in[0] = skip; in[1] = y;
        x = add_node(n, "work", "none", in, 2, unit, pass);
    }
    (void)add_node(n, "work", "in", &x, 1, 4096, pass);
}

static tl_result run_node(const tl_kernel_call *call, void *user) {
    const net *n = (const net *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    return be_busy(n->x, call->kind == TL_STEP_BACKWARD ? node->bwd_cost : node->fwd_cost);
}

typedef struct measured { double ms; tl_vk_counters counters; double longest_ms, planned_longest_ms; } measured;

// The fastest of a few passes of a plan. device: NULL = a pass is one submit.
static measured run_plan(net *n, const tl_plan *plan, const tl_device *device, way how) {
    tl_kernel kernel;
    tl_run_desc desc;
    tl_run *run;
    tl_run_report report;
    measured m;
    bed x;
    int i;
    memset(&m, 0, sizeof m);
    memset(&kernel, 0, sizeof kernel);
    memset(&desc, 0, sizeof desc);
    open_bed(how, 0, &x);
    n->x = &x;
    kernel.op = "work";
    kernel.forward = kernel.backward = run_node;
    kernel.user = n;
    desc.graph = &n->graph;
    desc.backend = &x.backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.plan = plan;
    desc.device = device;
    must(tl_init_run(&env, &desc, &run), "a run");
    for (i = 0; i < PASSES; i++) {
        tl_vk_counters before, after;
        double start, ms;
        finish(&x);
        tl_vk_measure(&x.backend, &before);
        start = (double)now_ns(NULL);
        must(tl_run_plan(run), "a pass");
        finish(&x);
        ms = ((double)now_ns(NULL) - start) / 1e6;
        tl_vk_measure(&x.backend, &after);
        if (i && ms >= m.ms) continue;
        m.ms = ms;
        m.counters.submit_count = after.submit_count - before.submit_count;
        m.counters.host_wait_count = after.host_wait_count - before.host_wait_count;
    }
    if (is_model) {
        vkclock_counts counts;
        vkclock_report(&counts);
        m.longest_ms = (double)counts.longest_ns / 1e6;
    }
    tl_measure_run(run, &report);
    m.planned_longest_ms = (double)report.longest_submit_ns / 1e6;
    tl_free_run(run);
    close_bed(&x);
    return m;
}

// What the device is, as a program measures it.
static tl_device measure(way how) {
    tl_measure_device_desc desc;
    tl_device device;
    bed x;
    memset(&desc, 0, sizeof desc);
    desc.bytes = ((uint64_t)64 << 20) / shrink;
    open_bed(how, 0, &x);
    must(tl_measure_device(&env, &x.backend, &desc, &device), "the device");
    close_bed(&x);
    return device;
}

// A plan for a device, within so many percent of all bytes, with or without copies.
static void make_plan(const net *n, const tl_device *device, uint64_t all_bytes, int percent, int copies, tl_plan *plan) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = &n->graph;
    desc.device = device;
    desc.budget_bytes = all_bytes / 100 * (uint64_t)percent;
    desc.host_budget_bytes = copies ? TL_UNLIMITED : 0;
    desc.work_limit = plan_work;
    must(tl_plan_remat(&env, &desc, plan, NULL), "a plan");
}

static const size sizes[] = {
    { "8 layers of 256, context 128, batch 128", 8, 256, 128, 128, 6.6e3, 1500 },
    { "6 layers of 128, context 64, batch 64", 6, 128, 64, 64, 3.2e3, 900 },
};

#ifndef OVERLAP_WITHOUT_MAIN    // a test runs parts of this
// On a GPU: what a turn of the kernel's loop takes.
static void find_loop_ns(void) {
    bed x;
    double best = 0;
    int i;
    if (is_model) return;
    open_bed(ONE_QUEUE, 0, &x);
    for (i = 0; i < 8; i++) {
        double start, ns;
        loop_ns = 1;
        finish(&x);
        start = wall_ns();
        must(be_busy(&x, 20000), "a kernel");
        finish(&x);
        ns = (wall_ns() - start) / 20000;
        if (!i || ns < best) best = ns;
    }
    loop_ns = best;
    close_bed(&x);
}

static void pattern_row(uint64_t megabytes, uint64_t ns) {
    uint64_t bytes;
    bare_times t = time_pattern(megabytes, ns, &bytes);
    printf("%6llu MB %6.2f ms %8.1f %8.1f %8.1f %8.1f %8.1f | %8.1f %8.1f %8.1f\n", (ull)megabytes, (double)ns / 1e6, t.compute, t.copies,
           t.one_queue, t.free, t.planned, time_backend(ns, bytes, ONE_QUEUE), time_backend(ns, bytes, ONE_LINK),
           time_backend(ns, bytes, TWO_LINKS));
}

static void net_rows(const size *s) {
    static const int percents[] = { 60, 40, 25 };
    tl_device devices[WAY_COUNT];
    net n;
    tl_plan all, plan;
    measured base;
    int i, how, copies;
    make_net(&n, s);
    must(tl_plan_keep_all(&env, &n.graph, 0, &all), "keep all");
    for (how = 0; how < WAY_COUNT; how++) devices[how] = measure((way)how);
    base = run_plan(&n, &all, &devices[ONE_QUEUE], ONE_QUEUE);
    printf("\n%s: %llu bytes, keep all %.2f ms, of kernels %.2f\n", s->name, (ull)(all.peak_bytes * shrink), base.ms, (double)all.cost / 1e6);
    for (how = 0; how < WAY_COUNT; how++)
        printf("%-16s %.1f GB/s to the host, %.1f back, %.0f us a copy, channels %d, %.0f us a wait\n", way_names[how],
               (double)devices[how].link_bytes_per_second * (double)shrink * 1e-9,
               (double)devices[how].upload_bytes_per_second * (double)shrink * 1e-9, (double)devices[how].link_latency_ns * 1e-3,
               (int)devices[how].copy_channels, (double)devices[how].wait_latency_ns * 1e-3);
    printf("%-28s %10s %10s %8s %8s %8s   %s\n", "plan", "predicted", "measured", "ratio", "submits", "waits",
           "longest submit in ms: by the plan, measured");
    for (i = 0; i < 3; i++)
        for (copies = 0; copies < 2; copies++)
            for (how = 0; how < (copies ? WAY_COUNT : 1); how++) {
                measured m;
                char label[64];
                double predicted;
                make_plan(&n, &devices[how], all.peak_bytes, percents[i], copies, &plan);
                m = run_plan(&n, &plan, &devices[how], (way)how);
                predicted = (double)plan.cost / (double)all.cost;
                snprintf(label, sizeof label, "%d %%, %s", percents[i], copies ? way_names[how] : "recompute");
                printf("%-28s %10.3f %10.3f %8.3f %8llu %8llu   %8.2f %8.2f\n", label, predicted, m.ms / base.ms, m.ms / base.ms / predicted,
                       (ull)m.counters.submit_count, (ull)m.counters.host_wait_count,
                       m.planned_longest_ms, m.longest_ms);
                tl_free_plan(&env, &plan);
            }
    tl_free_plan(&env, &all);
    tl_free_graph(&env, &n.graph);
}

static int has_gpu(void) {
    tl_vk_device_desc desc;
    tl_vk_device_info infos[8];
    int32_t count = 0, i;
    memset(&desc, 0, sizeof desc);
    if (tl_vk_read_devices(&env, &desc, infos, 8, &count)) return 0;
    for (i = 0; i < count && i < 8; i++) if (infos[i].type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) return 1;
    return 0;
}

int main(int argc, char **argv) {
    size_t i;
    setvbuf(stdout, NULL, _IOLBF, 0);
    is_model = (argc > 1 && !strcmp(argv[1], "--model")) || !has_gpu();
    if (!is_model) { floats = FLOATS; shrink = 1; }
    find_loop_ns();
    printf("%s\n\n%d kernels and as many copies, half of them each way, in ms\n", is_model ? "the modelled device" : "the first GPU", STEPS);
    printf("%9s %9s %8s %8s %8s %8s %8s | %26s\n", "", "a step", "kernels", "copies", "1 queue", "free", "behind 3", "the backend, each way");
    pattern_row(1376, 2858333);
    pattern_row(134, 297917);
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) net_rows(&sizes[i]);
    return 0;
}
#endif
