// See vk_clock.h. State is that of one device and one thread.
#include "vk_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VKCLOCK_FUNCTIONS(X) \
    X(GetDeviceProcAddr) X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceQueueFamilyProperties) X(CreateDevice) \
    X(GetDeviceQueue) X(AllocateMemory) X(BindBufferMemory) X(BeginCommandBuffer) X(CmdDispatch) X(CmdCopyBuffer) X(CmdFillBuffer) \
    X(CmdPipelineBarrier) X(CmdPushConstants) X(CmdWriteTimestamp) X(QueueSubmit) X(DeviceWaitIdle) X(WaitSemaphores) \
    X(GetSemaphoreCounterValue) X(GetQueryPoolResults)

enum { VKCLOCK_QUEUES = 8, VKCLOCK_INTERVALS = 8192, VKCLOCK_PUSH = 32 };

typedef enum vkclock_kind { VKCLOCK_KERNEL, VKCLOCK_COPY, VKCLOCK_FILL, VKCLOCK_BARRIER, VKCLOCK_TIME } vkclock_kind;

typedef struct vkclock_command {
    vkclock_kind kind;
    uint64_t ns, bytes;         // KERNEL: what it takes; COPY, FILL
    int32_t  direction;         // COPY: 0 from the device tier to the host's, 1 to it, 2 inside the device
    uint64_t pool;              // TIME
    uint32_t query;
} vkclock_command;

typedef struct vkclock_list {   // of a command buffer
    uint64_t key;
    vkclock_command *commands;
    uint32_t count, room, push[VKCLOCK_PUSH];
    struct vkclock_list *next;
} vkclock_list;

typedef struct vkclock_signal { uint64_t semaphore, value, ns; int32_t queue; } vkclock_signal;
typedef struct vkclock_pair { uint64_t key, value; } vkclock_pair;
typedef struct vkclock_time { uint64_t pool, query, ns; } vkclock_time;

#define VKCLOCK_REAL(name) PFN_vk##name name;
static struct {
    struct { VKCLOCK_FUNCTIONS(VKCLOCK_REAL) } real;
    vkclock_config config;
    vkclock_counts counts;
    VkPhysicalDevice physical;
    struct { VkQueue queue; VkQueueFlags flags; uint64_t end; } queues[VKCLOCK_QUEUES];
    int32_t  queue_count;
    struct { uint64_t begin, end; } busy[VKCLOCK_INTERVALS];    // the part that computes, in order of time
    uint32_t busy_count;
    vkclock_list *lists;
    vkclock_signal *signals;
    uint32_t signal_count, signal_room;
    vkclock_pair *memories, *buffers;   // to 1 = of the device
    uint32_t memory_count, memory_room, buffer_count, buffer_room;
    vkclock_time *times;
    uint32_t time_count, time_room;
} vkclock;

static void *vkclock_grow(void *items, uint32_t count, uint32_t *room, size_t size) {
    void *grown = items;
    if (count == *room) {
        *room = *room ? 2 * *room : 64;
        grown = realloc(items, *room * size);
        if (!grown) { fputs("vk_clock: out of memory\n", stderr); abort(); }
    }
    return grown;
}

// -- the device --

// The first time from `ready` on at which the part that computes is free for so long; it is taken.
static uint64_t vkclock_reserve(uint64_t ready, uint64_t ns) {
    uint32_t i, at;
    for (i = vkclock.busy_count; i > 0 && vkclock.busy[i - 1].end > ready; i--) {}
    for (at = i; at < vkclock.busy_count && vkclock.busy[at].begin < ready + ns; at++)
        if (vkclock.busy[at].end > ready) ready = vkclock.busy[at].end;
    vkclock.counts.compute_ns += ns;
    if (at && vkclock.busy[at - 1].end == ready) {
        vkclock.busy[at - 1].end += ns;
        return ready;
    }
    if (vkclock.busy_count == VKCLOCK_INTERVALS) {      // what is long past plays no part
        memmove(vkclock.busy, vkclock.busy + VKCLOCK_INTERVALS / 2, VKCLOCK_INTERVALS / 2 * sizeof *vkclock.busy);
        vkclock.busy_count /= 2;
        at -= VKCLOCK_INTERVALS / 2;
    }
    memmove(&vkclock.busy[at + 1], &vkclock.busy[at], (vkclock.busy_count - at) * sizeof *vkclock.busy);
    vkclock.busy[at].begin = ready;
    vkclock.busy[at].end = ready + ns;
    vkclock.busy_count++;
    return ready;
}

static int vkclock_is_link(VkQueueFlags flags) {
    return !(flags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT | 0x20u | 0x40u));
}

// The end of a command that may begin at this time.
static uint64_t vkclock_run(const vkclock_command *c, VkQueueFlags flags, uint64_t ready) {
    const vkclock_config *config = &vkclock.config;
    uint64_t ns = c->ns;
    int is_link = vkclock_is_link(flags);
    if (c->kind == VKCLOCK_TIME) {
        vkclock.times = (vkclock_time *)vkclock_grow(vkclock.times, vkclock.time_count, &vkclock.time_room, sizeof *vkclock.times);
        vkclock.times[vkclock.time_count].pool = c->pool;
        vkclock.times[vkclock.time_count].query = c->query;
        vkclock.times[vkclock.time_count++].ns = ready;
        return ready;
    }
    if (c->kind == VKCLOCK_BARRIER) return is_link ? ready : ready + config->kernel_latency_ns;
    if (c->kind == VKCLOCK_COPY || c->kind == VKCLOCK_FILL) {
        double rate = c->direction < 2 ? config->link_bytes_per_ns[c->direction] : config->device_bytes_per_ns;
        ns = (uint64_t)((double)c->bytes / rate) + (is_link ? config->copy_latency_ns : config->other_copy_latency_ns);
        if (c->direction < 2) vkclock.counts.copy_ns[c->direction] += ns;
        if (is_link) return ready + ns;
    }
    return vkclock_reserve(ready, ns) + ns;
}

// -- maps --

static uint64_t vkclock_find(const vkclock_pair *pairs, uint32_t count, uint64_t key) {
    while (count--) if (pairs[count].key == key) return pairs[count].value;
    return 0;
}

static vkclock_list *vkclock_list_of(VkCommandBuffer commands) {
    vkclock_list *l = vkclock.lists;
    uint64_t key = (uint64_t)(uintptr_t)commands;
    while (l && l->key != key) l = l->next;
    if (l) return l;
    l = (vkclock_list *)calloc(1, sizeof *l);
    if (!l) { fputs("vk_clock: out of memory\n", stderr); abort(); }
    l->key = key;
    l->next = vkclock.lists;
    vkclock.lists = l;
    return l;
}

static vkclock_command *vkclock_add(VkCommandBuffer commands, vkclock_kind kind) {
    vkclock_list *l = vkclock_list_of(commands);
    l->commands = (vkclock_command *)vkclock_grow(l->commands, l->count, &l->room, sizeof *l->commands);
    memset(&l->commands[l->count], 0, sizeof *l->commands);
    l->commands[l->count].kind = kind;
    vkclock.counts.now_ns += vkclock.config.record_ns;
    return &l->commands[l->count++];
}

// When the semaphore has the value; *queue = which signals it. UINT64_MAX = nothing that was submitted does.
static uint64_t vkclock_signalled(uint64_t semaphore, uint64_t value, int32_t *queue) {
    uint64_t ns = UINT64_MAX;
    uint32_t i;
    *queue = -1;
    if (!value) return 0;
    for (i = vkclock.signal_count; i > 0; i--) {
        const vkclock_signal *s = &vkclock.signals[i - 1];
        if (s->semaphore != semaphore || s->value < value || s->ns >= ns) continue;
        ns = s->ns;
        *queue = s->queue;
        if (s->value == value) break;
    }
    return ns;
}

// -- wrappers --

static VKAPI_ATTR VkResult VKAPI_CALL vkclock_CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                           const VkAllocationCallbacks *callbacks, VkDevice *device) {
    vkclock.physical = physical;
    return vkclock.real.CreateDevice(physical, info, callbacks, device);
}

static VKAPI_ATTR void VKAPI_CALL vkclock_GetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue *queue) {
    VkQueueFamilyProperties families[16];
    uint32_t count = 16;
    int32_t i;
    vkclock.real.GetDeviceQueue(device, family, index, queue);
    for (i = 0; i < vkclock.queue_count; i++) if (vkclock.queues[i].queue == *queue) return;
    if (i == VKCLOCK_QUEUES) { fputs("vk_clock: more queues than it follows\n", stderr); abort(); }
    vkclock.real.GetPhysicalDeviceQueueFamilyProperties(vkclock.physical, &count, families);
    vkclock.queues[i].queue = *queue;
    vkclock.queues[i].flags = families[family].queueFlags;
    vkclock.queues[i].end = 0;
    vkclock.queue_count++;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkclock_AllocateMemory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                             const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory) {
    VkPhysicalDeviceMemoryProperties properties;
    VkResult result = vkclock.real.AllocateMemory(device, info, callbacks, memory);
    if (result) return result;
    vkclock.real.GetPhysicalDeviceMemoryProperties(vkclock.physical, &properties);
    vkclock.memories = (vkclock_pair *)vkclock_grow(vkclock.memories, vkclock.memory_count, &vkclock.memory_room, sizeof *vkclock.memories);
    vkclock.memories[vkclock.memory_count].key = (uint64_t)*memory;
    vkclock.memories[vkclock.memory_count++].value =
        (properties.memoryTypes[info->memoryTypeIndex].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkclock_BindBufferMemory(VkDevice device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize at) {
    vkclock.buffers = (vkclock_pair *)vkclock_grow(vkclock.buffers, vkclock.buffer_count, &vkclock.buffer_room, sizeof *vkclock.buffers);
    vkclock.buffers[vkclock.buffer_count].key = (uint64_t)buffer;
    vkclock.buffers[vkclock.buffer_count++].value = vkclock_find(vkclock.memories, vkclock.memory_count, (uint64_t)memory);
    return vkclock.real.BindBufferMemory(device, buffer, memory, at);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkclock_BeginCommandBuffer(VkCommandBuffer commands, const VkCommandBufferBeginInfo *info) {
    vkclock_list_of(commands)->count = 0;
    return vkclock.real.BeginCommandBuffer(commands, info);
}

static VKAPI_ATTR void VKAPI_CALL vkclock_CmdDispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    uint32_t groups[3];
    vkclock_command *c = vkclock_add(commands, VKCLOCK_KERNEL);
    groups[0] = x; groups[1] = y; groups[2] = z;
    c->ns = (vkclock.config.kernel_ns)(vkclock_list_of(commands)->push, groups);
    vkclock.real.CmdDispatch(commands, x, y, z);
}

static VKAPI_ATTR void VKAPI_CALL vkclock_CmdCopyBuffer(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint32_t count,
                                                        const VkBufferCopy *regions) {
    vkclock_command *c = vkclock_add(commands, VKCLOCK_COPY);
    uint64_t device_from = vkclock_find(vkclock.buffers, vkclock.buffer_count, (uint64_t)from);
    uint64_t device_to = vkclock_find(vkclock.buffers, vkclock.buffer_count, (uint64_t)to);
    uint32_t i;
    c->direction = device_from == device_to ? 2 : device_to ? 1 : 0;
    for (i = 0; i < count; i++) c->bytes += regions[i].size;
    vkclock.real.CmdCopyBuffer(commands, from, to, count, regions);
}

static VKAPI_ATTR void VKAPI_CALL vkclock_CmdFillBuffer(VkCommandBuffer commands, VkBuffer to, VkDeviceSize at, VkDeviceSize size,
                                                        uint32_t word) {
    vkclock_command *c = vkclock_add(commands, VKCLOCK_FILL);
    c->bytes = size == VK_WHOLE_SIZE ? 0 : size;
    c->direction = 2;
    vkclock.real.CmdFillBuffer(commands, to, at, size, word);
}

static VKAPI_ATTR void VKAPI_CALL vkclock_CmdPipelineBarrier(
    VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t memory_count,
    const VkMemoryBarrier *memories, uint32_t buffer_count, const VkBufferMemoryBarrier *buffers, uint32_t image_count,
    const VkImageMemoryBarrier *images) {
    (void)vkclock_add(commands, VKCLOCK_BARRIER);
    vkclock.real.CmdPipelineBarrier(commands, from, to, flags, memory_count, memories, buffer_count, buffers, image_count, images);
}

static VKAPI_ATTR void VKAPI_CALL vkclock_CmdPushConstants(VkCommandBuffer commands, VkPipelineLayout layout, VkShaderStageFlags stages,
                                                           uint32_t at, uint32_t bytes, const void *data) {
    vkclock_list *l = vkclock_list_of(commands);
    if (at + bytes <= sizeof l->push) memcpy((char *)l->push + at, data, bytes);
    vkclock.real.CmdPushConstants(commands, layout, stages, at, bytes, data);
}

static VKAPI_ATTR void VKAPI_CALL vkclock_CmdWriteTimestamp(VkCommandBuffer commands, VkPipelineStageFlagBits stage, VkQueryPool pool,
                                                            uint32_t query) {
    vkclock_command *c = vkclock_add(commands, VKCLOCK_TIME);
    c->pool = (uint64_t)pool;
    c->query = query;
    vkclock.real.CmdWriteTimestamp(commands, stage, pool, query);
}

static void vkclock_submit(int32_t q, const VkSubmitInfo *info) {
    const VkTimelineSemaphoreSubmitInfo *timeline = (const VkTimelineSemaphoreSubmitInfo *)info->pNext;
    uint64_t at = vkclock.counts.now_ns + vkclock.config.begin_ns, begin;
    uint32_t i, k;
    if (vkclock.queues[q].end > at) at = vkclock.queues[q].end;
    if (info->waitSemaphoreCount && vkclock.queues[q].end + vkclock.config.gap_ns > at) at = vkclock.queues[q].end + vkclock.config.gap_ns;
    for (i = 0; i < info->waitSemaphoreCount; i++) {
        int32_t from;
        uint64_t ns = vkclock_signalled((uint64_t)info->pWaitSemaphores[i], timeline->pWaitSemaphoreValues[i], &from);
        if (ns == UINT64_MAX) { fputs("vk_clock: a submit waits for what was not submitted\n", stderr); abort(); }
        if (from >= 0 && from != q) ns += vkclock.config.signal_ns;
        if (ns > at) at = ns;
    }
    begin = at;
    for (i = 0; i < info->commandBufferCount; i++) {
        const vkclock_list *l = vkclock_list_of(info->pCommandBuffers[i]);
        for (k = 0; k < l->count; k++) at = vkclock_run(&l->commands[k], vkclock.queues[q].flags, at);
    }
    if (!vkclock_is_link(vkclock.queues[q].flags) && at - begin > vkclock.counts.longest_ns) vkclock.counts.longest_ns = at - begin;
    vkclock.queues[q].end = at;
    if (at > vkclock.counts.end_ns) vkclock.counts.end_ns = at;
    for (i = 0; i < info->signalSemaphoreCount; i++) {
        vkclock_signal *s;
        vkclock.signals = (vkclock_signal *)vkclock_grow(vkclock.signals, vkclock.signal_count, &vkclock.signal_room, sizeof *vkclock.signals);
        s = &vkclock.signals[vkclock.signal_count++];
        s->semaphore = (uint64_t)info->pSignalSemaphores[i];
        s->value = timeline->pSignalSemaphoreValues[i];
        s->ns = at;
        s->queue = q;
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL vkclock_QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
    VkResult result = vkclock.real.QueueSubmit(queue, count, infos, fence);
    int32_t q = 0;
    uint32_t i;
    if (result) return result;
    while (q < vkclock.queue_count && vkclock.queues[q].queue != queue) q++;
    vkclock.counts.submit_count++;
    vkclock.counts.now_ns += vkclock.config.submit_ns;
    for (i = 0; i < count && q < vkclock.queue_count; i++) vkclock_submit(q, &infos[i]);
    return result;
}

static void vkclock_wait_until(uint64_t ns) {
    if (ns == UINT64_MAX || ns <= vkclock.counts.now_ns) return;
    vkclock.counts.wait_count++;
    vkclock.counts.now_ns = ns;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkclock_DeviceWaitIdle(VkDevice device) {
    VkResult result = vkclock.real.DeviceWaitIdle(device);
    vkclock_wait_until(vkclock.counts.end_ns);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkclock_WaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
    VkResult result = vkclock.real.WaitSemaphores(device, info, timeout);
    uint64_t latest = 0;
    uint32_t i;
    for (i = 0; !result && i < info->semaphoreCount; i++) {
        int32_t queue;
        uint64_t ns = vkclock_signalled((uint64_t)info->pSemaphores[i], info->pValues[i], &queue);
        if (ns != UINT64_MAX && ns > latest) latest = ns;
    }
    vkclock_wait_until(latest);
    return result;
}

// What the semaphore would say now. The driver, which may be behind, is waited for.
static VKAPI_ATTR VkResult VKAPI_CALL vkclock_GetSemaphoreCounterValue(VkDevice device, VkSemaphore semaphore, uint64_t *value) {
    VkSemaphoreWaitInfo info;
    VkResult result = vkclock.real.GetSemaphoreCounterValue(device, semaphore, value);
    uint64_t most = 0;
    uint32_t i;
    vkclock.counts.now_ns += vkclock.config.poll_ns;
    if (result) return result;
    for (i = 0; i < vkclock.signal_count; i++)
        if (vkclock.signals[i].semaphore == (uint64_t)semaphore && vkclock.signals[i].ns <= vkclock.counts.now_ns &&
            vkclock.signals[i].value > most) most = vkclock.signals[i].value;
    if (most > *value) {
        memset(&info, 0, sizeof info);
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
        info.semaphoreCount = 1;
        info.pSemaphores = &semaphore;
        info.pValues = &most;
        result = vkclock.real.WaitSemaphores(device, &info, UINT64_MAX);
    }
    *value = most;
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkclock_GetQueryPoolResults(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count,
                                                                  size_t bytes, void *data, VkDeviceSize stride, VkQueryResultFlags flags) {
    VkResult result = vkclock.real.GetQueryPoolResults(device, pool, first, count, bytes, data, stride, flags);
    uint32_t i, k;
    if (result || !(flags & VK_QUERY_RESULT_64_BIT)) return result;
    for (i = 0; i < count; i++)
        for (k = vkclock.time_count; k > 0; k--) {
            if (vkclock.times[k - 1].pool != (uint64_t)pool || vkclock.times[k - 1].query != first + i) continue;
            memcpy((char *)data + i * stride, &vkclock.times[k - 1].ns, 8);
            break;
        }
    return result;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkclock_GetDeviceProcAddr(VkDevice device, const char *name);
static VKAPI_ATTR void VKAPI_CALL vkclock_GetPhysicalDeviceMemoryProperties(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties *m) {
    vkclock.real.GetPhysicalDeviceMemoryProperties(physical, m);
}
static VKAPI_ATTR void VKAPI_CALL vkclock_GetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice physical, uint32_t *count,
                                                                                 VkQueueFamilyProperties *families) {
    vkclock.real.GetPhysicalDeviceQueueFamilyProperties(physical, count, families);
}

// The wrapper of a function, whose real one is noted; NULL = it is not wrapped.
static PFN_vkVoidFunction vkclock_wrap(const char *name, PFN_vkVoidFunction real) {
    if (!real) return NULL;
#define VKCLOCK_WRAP(function) \
    if (!strcmp(name, "vk" #function)) { vkclock.real.function = (PFN_vk##function)real; return (PFN_vkVoidFunction)vkclock_##function; }
    VKCLOCK_FUNCTIONS(VKCLOCK_WRAP)
#undef VKCLOCK_WRAP
    if (!strcmp(name, "vkWaitSemaphoresKHR")) return vkclock_wrap("vkWaitSemaphores", real);
    if (!strcmp(name, "vkGetSemaphoreCounterValueKHR")) return vkclock_wrap("vkGetSemaphoreCounterValue", real);
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkclock_GetDeviceProcAddr(VkDevice device, const char *name) {
    PFN_vkVoidFunction real = vkclock.real.GetDeviceProcAddr(device, name), wrapped = vkclock_wrap(name, real);
    return wrapped ? wrapped : real;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkclock_get_instance_proc(VkInstance instance, const char *name) {
    PFN_vkVoidFunction real = vkshim_get_instance_proc(instance, name), wrapped = vkclock_wrap(name, real);
    return wrapped ? wrapped : real;
}

static uint64_t vkclock_no_time(const uint32_t *push, const uint32_t groups[3]) { (void)push; (void)groups; return 0; }

void vkclock_default(vkclock_config *config) {
    memset(config, 0, sizeof *config);
    config->link_bytes_per_ns[0] = 51.2;
    config->link_bytes_per_ns[1] = 49.3;
    config->device_bytes_per_ns = 2000;
    config->copy_latency_ns = 10000;
    config->other_copy_latency_ns = 10000;
    config->kernel_latency_ns = 2000;
    config->begin_ns = 10000;
    config->signal_ns = 45000;
    config->gap_ns = 45000;
    config->record_ns = 300;
    config->submit_ns = 20000;
    config->poll_ns = 500;
    config->kernel_ns = vkclock_no_time;
}

void vkclock_reset(const vkclock_config *config) {
    vkclock_list *l = vkclock.lists, *next;
    for (; l; l = next) { next = l->next; free(l->commands); free(l); }
    free(vkclock.signals);
    free(vkclock.memories);
    free(vkclock.buffers);
    free(vkclock.times);
    memset(&vkclock, 0, sizeof vkclock);
    vkclock.config = *config;
}

void vkclock_report(vkclock_counts *counts) { *counts = vkclock.counts; }

uint64_t vkclock_now_ns(void *user) {
    (void)user;
    return vkclock.counts.now_ns;
}
