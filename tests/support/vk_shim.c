// See vk_shim.h. One mutex guards all state; it is held during calls of the driver, but not while waiting.
//
// CONTENTS   functions, state, objects, limits, ownership, submits, then the wrappers by subject, entry points
#include "vk_shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ============================================================================
// Functions: one line for each that is wrapped
// ============================================================================

// PLAIN: cannot fail. FAILS: can be made to fail. DIES: the same, and always fails on a lost device.
#define VKSHIM_FUNCTIONS(X) \
    X(EnumerateInstanceVersion,                PLAIN) \
    X(CreateInstance,                          FAILS) \
    X(DestroyInstance,                         PLAIN) \
    X(EnumeratePhysicalDevices,                FAILS) \
    X(EnumerateDeviceExtensionProperties,      FAILS) \
    X(GetPhysicalDeviceProperties,             PLAIN) \
    X(GetPhysicalDeviceProperties2,            PLAIN) \
    X(GetPhysicalDeviceProperties2KHR,         PLAIN) \
    X(GetPhysicalDeviceFeatures2,              PLAIN) \
    X(GetPhysicalDeviceFeatures2KHR,           PLAIN) \
    X(GetPhysicalDeviceMemoryProperties,       PLAIN) \
    X(GetPhysicalDeviceMemoryProperties2,      PLAIN) \
    X(GetPhysicalDeviceMemoryProperties2KHR,   PLAIN) \
    X(GetPhysicalDeviceQueueFamilyProperties,  PLAIN) \
    X(GetPhysicalDeviceQueueFamilyProperties2, PLAIN) \
    X(GetPhysicalDeviceQueueFamilyProperties2KHR, PLAIN) \
    X(CreateDevice,                            FAILS) \
    X(DestroyDevice,                           PLAIN) \
    X(GetDeviceProcAddr,                       PLAIN) \
    X(GetDeviceQueue,                          PLAIN) \
    X(AllocateMemory,                          FAILS) \
    X(FreeMemory,                              PLAIN) \
    X(MapMemory,                               FAILS) \
    X(UnmapMemory,                             PLAIN) \
    X(FlushMappedMemoryRanges,                 FAILS) \
    X(InvalidateMappedMemoryRanges,            FAILS) \
    X(CreateBuffer,                            FAILS) \
    X(DestroyBuffer,                           PLAIN) \
    X(GetBufferMemoryRequirements,             PLAIN) \
    X(BindBufferMemory,                        FAILS) \
    X(CreateShaderModule,                      FAILS) \
    X(DestroyShaderModule,                     PLAIN) \
    X(CreateComputePipelines,                  FAILS) \
    X(DestroyPipeline,                         PLAIN) \
    X(CreateDescriptorSetLayout,               FAILS) \
    X(DestroyDescriptorSetLayout,              PLAIN) \
    X(CreatePipelineLayout,                    FAILS) \
    X(DestroyPipelineLayout,                   PLAIN) \
    X(CreateDescriptorPool,                    FAILS) \
    X(ResetDescriptorPool,                     FAILS) \
    X(DestroyDescriptorPool,                   PLAIN) \
    X(AllocateDescriptorSets,                  FAILS) \
    X(FreeDescriptorSets,                      FAILS) \
    X(UpdateDescriptorSets,                    PLAIN) \
    X(CreateCommandPool,                       FAILS) \
    X(ResetCommandPool,                        FAILS) \
    X(DestroyCommandPool,                      PLAIN) \
    X(AllocateCommandBuffers,                  FAILS) \
    X(FreeCommandBuffers,                      PLAIN) \
    X(BeginCommandBuffer,                      FAILS) \
    X(EndCommandBuffer,                        FAILS) \
    X(ResetCommandBuffer,                      FAILS) \
    X(CmdPipelineBarrier,                      PLAIN) \
    X(CmdCopyBuffer,                           PLAIN) \
    X(CmdFillBuffer,                           PLAIN) \
    X(CmdUpdateBuffer,                         PLAIN) \
    X(CmdBindPipeline,                         PLAIN) \
    X(CmdBindDescriptorSets,                   PLAIN) \
    X(CmdPushConstants,                        PLAIN) \
    X(CmdDispatch,                             PLAIN) \
    X(CmdResetQueryPool,                       PLAIN) \
    X(CmdWriteTimestamp,                       PLAIN) \
    X(QueueSubmit,                             DIES)  \
    X(QueueWaitIdle,                           DIES)  \
    X(DeviceWaitIdle,                          DIES)  \
    X(CreateFence,                             FAILS) \
    X(DestroyFence,                            PLAIN) \
    X(ResetFences,                             FAILS) \
    X(GetFenceStatus,                          DIES)  \
    X(WaitForFences,                           DIES)  \
    X(CreateSemaphore,                         FAILS) \
    X(DestroySemaphore,                        PLAIN) \
    X(GetSemaphoreCounterValue,                DIES)  \
    X(GetSemaphoreCounterValueKHR,             DIES)  \
    X(WaitSemaphores,                          DIES)  \
    X(WaitSemaphoresKHR,                       DIES)  \
    X(SignalSemaphore,                         FAILS) \
    X(SignalSemaphoreKHR,                      FAILS) \
    X(CreateQueryPool,                         FAILS) \
    X(DestroyQueryPool,                        PLAIN) \
    X(GetQueryPoolResults,                     DIES)

#define VKSHIM_ID(name, kind) VKSHIM_##name,
typedef enum vkshim_function { VKSHIM_FUNCTIONS(VKSHIM_ID) VKSHIM_FUNCTION_COUNT } vkshim_function;
typedef enum vkshim_fallibility { VKSHIM_PLAIN, VKSHIM_FAILS, VKSHIM_DIES } vkshim_fallibility;

// Entry points of Vulkan versions after 1.0, wrapped or not.
typedef struct vkshim_later {
    const char *name;
    uint32_t version;
} vkshim_later;
static const vkshim_later vkshim_later_names[] = {
    {"vkEnumerateInstanceVersion", VK_API_VERSION_1_1},
    {"vkGetPhysicalDeviceProperties2", VK_API_VERSION_1_1},
    {"vkGetPhysicalDeviceFeatures2", VK_API_VERSION_1_1},
    {"vkGetPhysicalDeviceMemoryProperties2", VK_API_VERSION_1_1},
    {"vkGetPhysicalDeviceQueueFamilyProperties2", VK_API_VERSION_1_1},
    {"vkEnumeratePhysicalDeviceGroups", VK_API_VERSION_1_1},
    {"vkGetDescriptorSetLayoutSupport", VK_API_VERSION_1_1},
    {"vkGetImageMemoryRequirements2", VK_API_VERSION_1_1},
    {"vkTrimCommandPool", VK_API_VERSION_1_1},
    {"vkResetQueryPool", VK_API_VERSION_1_2},
    {"vkGetSemaphoreCounterValue", VK_API_VERSION_1_2},
    {"vkWaitSemaphores", VK_API_VERSION_1_2},
    {"vkSignalSemaphore", VK_API_VERSION_1_2},
    {"vkGetBufferDeviceAddress", VK_API_VERSION_1_2},
    {"vkGetDeviceBufferMemoryRequirements", VK_API_VERSION_1_3},
};

// Always missing, because they would bypass the checks: each has an older form that is wrapped.
static const char *const vkshim_refused[] = {
    "vkGetDeviceQueue2",
    "vkBindBufferMemory2",
    "vkBindBufferMemory2KHR",
    "vkGetBufferMemoryRequirements2",
    "vkGetBufferMemoryRequirements2KHR",
    "vkGetDeviceBufferMemoryRequirements",
    "vkGetDeviceBufferMemoryRequirementsKHR",
    "vkQueueSubmit2",
    "vkQueueSubmit2KHR",
    "vkQueueBindSparse",
    "vkCmdPipelineBarrier2",
    "vkCmdPipelineBarrier2KHR",
    "vkCmdCopyBuffer2",
    "vkCmdCopyBuffer2KHR",
    "vkCmdWriteTimestamp2",
    "vkCmdWriteTimestamp2KHR",
    "vkCmdPushDescriptorSetKHR",
    "vkMapMemory2KHR",
    "vkUpdateDescriptorSetWithTemplate",
    "vkUpdateDescriptorSetWithTemplateKHR",
    "vkUnmapMemory2KHR",
};

// ============================================================================
// State
// ============================================================================

#define VKSHIM_KEY(handle)         ((uint64_t)(handle))  // of a handle that is an integer on 32 bits
#define VKSHIM_POINTER_KEY(handle) ((uint64_t)(uintptr_t)(handle))   // of a dispatchable handle
#define VKSHIM_COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum {
    VKSHIM_BUCKETS = 4096,
    VKSHIM_QUEUES = 8,
    VKSHIM_TEXTS = 16,
    VKSHIM_BOUND_SETS = 8,
    VKSHIM_PAGE = 4096
};
enum { VKSHIM_POISON = 0xDB };  // fills handles of failed calls and shadow pages that were not invalidated

// What a command does with a range, as queue families see it; TOUCH: the object is in use, nothing else. SHADE_READ: a shader that
// declares that it does not write there.
typedef enum vkshim_use {
    VKSHIM_TOUCH, VKSHIM_READ, VKSHIM_WRITE, VKSHIM_SHADE, VKSHIM_SHADE_READ, VKSHIM_RELEASE, VKSHIM_ACQUIRE
} vkshim_use;

typedef struct vkshim_event {   // of a command buffer, in order
    vkshim_use use;
    uint64_t   key;             // of the buffer, or of another object in use
    uint64_t   begin, end;
    uint32_t   from, to;        // families of RELEASE and ACQUIRE
} vkshim_event;

typedef enum vkshim_owning { VKSHIM_FREE, VKSHIM_OWNED, VKSHIM_RELEASED } vkshim_owning;

typedef struct vkshim_segment { // bytes of a buffer with the same history
    uint64_t begin, end;
    vkshim_owning owning;
    uint32_t family, to;        // owner; the family it was released to
    uint64_t release_begin, release_end;
    uint32_t queue;             // queue of the last use
    uint64_t serial;            // number of the submit to that queue
    // of a buffer of all families: the last write, and the last read on each queue
    uint32_t writer;
    uint64_t written, read[VKSHIM_QUEUES];  // numbers of the submits; 0 = none
} vkshim_segment;

typedef struct vkshim_slot {    // a buffer in a descriptor set
    uint32_t binding, element;
    uint64_t buffer, begin, end;
} vkshim_slot;

typedef enum vkshim_commands_state {
    VKSHIM_INITIAL, VKSHIM_RECORDING, VKSHIM_EXECUTABLE, VKSHIM_SPENT, VKSHIM_INVALID
} vkshim_commands_state;

typedef struct vkshim_object {
    struct vkshim_object *next; // in its bucket
    vkshim_kind kind;
    uint64_t key, parent;       // parent: device, or pool
    int32_t  has_callbacks;
    // memory and buffers
    uint64_t bytes, memory, memory_offset, mapped_begin, mapped_end;
    uint32_t type;
    int32_t  is_mapped, is_concurrent;
    VkBufferUsageFlags usage;
    unsigned char *shadow_block, *shadow, *real_bytes;
    vkshim_segment *segments;
    uint32_t segment_count, segment_room;
    // shaders, layouts, sets
    uint32_t *words;
    size_t    word_count;
    uint32_t  storage_count;
    uint32_t  read_only;        // of shaders and pipelines, and of command buffers the one bound: bit b = binding b
    uint64_t  shape;            // of layouts: hash of what they were made of
    vkshim_slot *slots;
    uint32_t  slot_count, slot_room;
    // command pools and buffers; the family is also that of a queue
    uint32_t family;
    vkshim_commands_state state;
    VkCommandBufferUsageFlags once;
    vkshim_event *events;
    uint32_t event_count, event_room;
    uint64_t bound_sets[VKSHIM_BOUND_SETS];
    // fences, semaphores
    int32_t  is_signalled, is_in_flight;
    int32_t  is_timeline;       // a timeline semaphore; of a device: the feature is enabled
    int32_t  is_waited;
    uint64_t sent_value, waited_value;
    // queues and semaphores. clock: for each queue, the submits that happened before (a vector clock)
    VkQueue  real_queue;
    uint32_t index;
    uint64_t serial;
    uint64_t clock[VKSHIM_QUEUES];
    // devices
    VkDevice device;
    uint32_t version;           // of a device or an instance: the version it may use
} vkshim_object;

typedef struct vkshim_kept {    // a pipeline of keeps_pipelines
    struct vkshim_kept *next;
    VkDevice device;
    VkPipeline pipeline;
    uint64_t shape;
    int32_t  is_used;
} vkshim_kept;

typedef struct vkshim_submit {  // one VkSubmitInfo, until the host has seen it finished
    struct vkshim_submit *next;
    vkshim_object *queue;
    uint64_t serial;
    uint64_t clock[VKSHIM_QUEUES];
    uint32_t polls_left;
    int32_t  is_sent, is_visited, has_timeline;
    uint32_t wait_count, command_count, signal_count;
    VkSemaphore *waits, *signals;
    uint64_t *wait_values, *signal_values;
    VkPipelineStageFlags *stages;
    VkCommandBuffer *commands;
    VkFence fence;
} vkshim_submit;

#define VKSHIM_REAL(name, kind) PFN_vk##name name;
static struct {
    struct { VKSHIM_FUNCTIONS(VKSHIM_REAL) PFN_vkGetInstanceProcAddr GetInstanceProcAddr; } real;
    vkshim_config config;
    vkshim_object *buckets[VKSHIM_BUCKETS];
    uint64_t live[VKSHIM_KIND_COUNT];
    uint64_t heap_used[VK_MAX_MEMORY_HEAPS];
    uint64_t calls[VKSHIM_FUNCTION_COUNT], calls_now[VKSHIM_FUNCTION_COUNT], fallible_now;
    uint64_t submits_now, waits_now, polls_now;
    vkshim_counts counts;
    char texts[VKSHIM_TEXTS][sizeof ((vkshim_counts *)0)->violation_text];
    VkPhysicalDeviceProperties real_properties;
    VkPhysicalDeviceProperties properties;          // of the latest device, as the shim reports them
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t instance_version;                      // requested by the program
    uint32_t queue_count;
    uint64_t seen[VKSHIM_QUEUES];  // for each queue: the submits that the host has seen finished
    vkshim_submit *submits;                         // in order
    VkResult submit_result;
    int32_t  is_lost;
    vkshim_kept *kept;
} vkshim;

static pthread_mutex_t vkshim_mutex = PTHREAD_MUTEX_INITIALIZER;  // guards all above
// Guards the driver's queue; taken after vkshim_mutex.
static pthread_mutex_t vkshim_driver_mutex = PTHREAD_MUTEX_INITIALIZER;

// Guards the list of queues in use: a second user is noticed while the first is inside.
static pthread_mutex_t vkshim_guard_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { VkQueue queue; VkDevice device; uint32_t users; } vkshim_guards[VKSHIM_QUEUES];
static uint32_t vkshim_guard_yields;

static const char *const vkshim_function_names[] = {
#define VKSHIM_NAME(name, kind) "vk" #name,
    VKSHIM_FUNCTIONS(VKSHIM_NAME)
};
static const vkshim_fallibility vkshim_fallibilities[] = {
#define VKSHIM_FALLIBILITY(name, kind) VKSHIM_##kind,
    VKSHIM_FUNCTIONS(VKSHIM_FALLIBILITY)
};

static void vkshim_violate(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(vkshim.counts.violation_text, sizeof vkshim.counts.violation_text, format, arguments);
    va_end(arguments);
    if (vkshim.counts.violation_count < VKSHIM_TEXTS)
        memcpy(vkshim.texts[vkshim.counts.violation_count], vkshim.counts.violation_text,
               sizeof vkshim.texts[0]);
    vkshim.counts.violation_count++;
}

static void *vkshim_alloc(size_t bytes) {
    void *ptr = calloc(1, bytes ? bytes : 1);
    if (!ptr) { fputs("vk_shim: out of memory\n", stderr); abort(); }
    return ptr;
}

static void *vkshim_duplicate(const void *from, size_t bytes) {
    void *ptr = bytes ? vkshim_alloc(bytes) : NULL;  // layers warn about pointers to empty lists
    if (bytes && from) memcpy(ptr, from, bytes);
    return ptr;
}

// Room for one more element; the old block is replaced.
static void *vkshim_grow(void *block, uint32_t count, uint32_t *room, size_t element_bytes) {
    if (count < *room) return block;
    *room = *room ? *room * 2 : 8;
    block = realloc(block, *room * element_bytes);
    if (!block) { fputs("vk_shim: out of memory\n", stderr); abort(); }
    return block;
}

static int vkshim_in_window(uint64_t number, uint64_t at, uint64_t count) {
    return at && number >= at && number - at < (count ? count : 1);
}

static void vkshim_die(void);
static void vkshim_finish(void);

// Count a call, with the mutex held. Not VK_SUCCESS = the call has to fail with this.
static VkResult vkshim_count_call(vkshim_function function) {
    const vkshim_config *config = &vkshim.config;
    uint64_t number = ++vkshim.calls_now[function];
    int fails;
    VkResult result = config->fail_with ? config->fail_with : VK_ERROR_OUT_OF_HOST_MEMORY;
    vkshim.calls[function]++;
    if (vkshim_fallibilities[function] == VKSHIM_PLAIN) return VK_SUCCESS;
    vkshim.fallible_now++;
    if (vkshim.is_lost && vkshim_fallibilities[function] == VKSHIM_DIES)
        return VK_ERROR_DEVICE_LOST;
    fails = vkshim_in_window(vkshim.fallible_now, config->fail_any_at, config->fail_count);
    if (config->fail_call && !strcmp(config->fail_call, vkshim_function_names[function]))
        fails |= vkshim_in_window(number, config->fail_at, config->fail_count);
    if (!fails) return VK_SUCCESS;
    vkshim.counts.injected_count++;
    vkshim.counts.injected_call = vkshim_function_names[function];
    if (result == VK_ERROR_DEVICE_LOST) vkshim_die();
    return result;
}

static VkResult vkshim_enter(vkshim_function function) {
    pthread_mutex_lock(&vkshim_mutex);
    return vkshim_count_call(function);
}

static VkResult vkshim_leave(VkResult result) {
    pthread_mutex_unlock(&vkshim_mutex);
    return result;
}

// Lose the device at the submit, wait or poll that the config names.
static VkResult vkshim_lose_at(uint64_t *number, uint64_t at) {
    ++*number;
    if (at && *number >= at) vkshim_die();
    return vkshim.is_lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

// ============================================================================
// Objects
// ============================================================================

static uint32_t vkshim_bucket(vkshim_kind kind, uint64_t key) {
    return (uint32_t)(((key ^ ((uint64_t)kind << 58)) * UINT64_C(0x9E3779B97F4A7C15)) >> 52) %
           VKSHIM_BUCKETS;
}

static vkshim_object *vkshim_find(vkshim_kind kind, uint64_t key) {
    vkshim_object *o = vkshim.buckets[vkshim_bucket(kind, key)];
    while (o && (o->key != key || o->kind != kind)) o = o->next;
    return o;
}

// The object, or a violation that names the function.
static vkshim_object *vkshim_need(vkshim_function function, vkshim_kind kind, uint64_t key) {
    vkshim_object *o = vkshim_find(kind, key);
    if (!o)
        vkshim_violate("%s: no such handle among the %s", vkshim_function_names[function],
                       vkshim_name_kind(kind));
    return o;
}

static vkshim_object *vkshim_track(vkshim_kind kind, uint64_t key, uint64_t parent,
                                   int has_callbacks) {
    uint32_t bucket = vkshim_bucket(kind, key);
    vkshim_object *o = (vkshim_object *)vkshim_alloc(sizeof *o);
    o->kind = kind;
    o->key = key;
    o->parent = parent;
    o->has_callbacks = has_callbacks;
    o->next = vkshim.buckets[bucket];
    vkshim.buckets[bucket] = o;
    vkshim.live[kind]++;
    return o;
}

static void vkshim_forget(vkshim_object *o) {
    vkshim_object **at = &vkshim.buckets[vkshim_bucket(o->kind, o->key)];
    while (*at != o) at = &(*at)->next;
    *at = o->next;
    vkshim.live[o->kind]--;
    free(o->shadow_block);
    free(o->segments);
    free(o->words);
    free(o->slots);
    free(o->events);
    free(o);
}

static void vkshim_forget_children(vkshim_kind kind, uint64_t parent) {
    vkshim_object *o, *next;
    uint32_t i;
    for (i = 0; i < VKSHIM_BUCKETS; i++)
        for (o = vkshim.buckets[i]; o; o = next) {
            next = o->next;
            if (o->kind == kind && o->parent == parent) vkshim_forget(o);
        }
}

static vkshim_event *vkshim_add_event(vkshim_object *commands, vkshim_use use, uint64_t key) {
    vkshim_event *e;
    commands->events = (vkshim_event *)vkshim_grow(commands->events, commands->event_count,
                                                   &commands->event_room, sizeof *commands->events);
    e = &commands->events[commands->event_count++];
    memset(e, 0, sizeof *e);
    e->use = use;
    e->key = key;
    return e;
}

static int vkshim_submit_uses(const vkshim_submit *s, uint64_t key) {
    uint32_t i, j;
    if (VKSHIM_KEY(s->fence) == key) return 1;
    for (i = 0; i < s->wait_count; i++) if (VKSHIM_KEY(s->waits[i]) == key) return 1;
    for (i = 0; i < s->signal_count; i++) if (VKSHIM_KEY(s->signals[i]) == key) return 1;
    for (i = 0; i < s->command_count; i++) {
        const vkshim_object *c = vkshim_find(VKSHIM_COMMANDS, VKSHIM_POINTER_KEY(s->commands[i]));
        if (VKSHIM_POINTER_KEY(s->commands[i]) == key) return 1;
        for (j = 0; c && j < c->event_count; j++) {
            const vkshim_object *b =
                c->events[j].key == key ? NULL : vkshim_find(VKSHIM_BUFFER, c->events[j].key);
            if (c->events[j].key == key || (b && b->memory == key)) return 1;
        }
    }
    return 0;
}

static int vkshim_in_use(uint64_t key) {
    const vkshim_submit *s;
    for (s = vkshim.submits; s; s = s->next) if (vkshim_submit_uses(s, key)) return 1;
    return 0;
}

// A violation if unfinished work uses the object, as far as the host knows; then finish that work first.
static void vkshim_need_idle(vkshim_function function, vkshim_kind kind, uint64_t key) {
    if (!vkshim_in_use(key)) return;
    vkshim_violate("%s: one of the %s is used by work that the host has not seen finished",
                   vkshim_function_names[function], vkshim_name_kind(kind));
    vkshim_finish();
}

// What every vkDestroy checks: 1 = go on and destroy it.
static int vkshim_start_destroy(vkshim_function function, vkshim_kind kind, uint64_t key,
                                const void *callbacks) {
    vkshim_object *o;
    if (!key) return 1;
    o = vkshim_need(function, kind, key);
    if (!o) return 0;
    if (o->has_callbacks != (callbacks != NULL))
        vkshim_violate("%s: pAllocator: given to only one of create and destroy",
                       vkshim_function_names[function]);
    vkshim_need_idle(function, kind, key);
    return 1;
}

static void vkshim_end_destroy(vkshim_kind kind, uint64_t key) {
    vkshim_object *o = key ? vkshim_find(kind, key) : NULL;
    if (o) vkshim_forget(o);
}

static const void *vkshim_find_next(const void *chain, VkStructureType type) {
    const VkBaseInStructure *s = (const VkBaseInStructure *)chain;
    while (s && s->sType != type) s = s->pNext;
    return s;
}

static int vkshim_is_listed(const char *name, const char *const *names, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) if (!strcmp(names[i], name)) return 1;
    return 0;
}

// ============================================================================
// Limits and memory as the shim reports them
// ============================================================================

static uint32_t vkshim_least_u32(uint32_t fake, uint32_t real) { return fake ? fake : real; }

static void vkshim_fake_properties(VkPhysicalDeviceProperties *p) {
    const vkshim_config *c = &vkshim.config;
    VkPhysicalDeviceLimits *l = &p->limits;
    uint32_t i;
    if (c->api_version) p->apiVersion = c->api_version;
    if (c->device_type) p->deviceType = c->device_type;
    if (c->storage_offset_alignment)
        l->minStorageBufferOffsetAlignment = c->storage_offset_alignment;
    if (c->non_coherent_atom) l->nonCoherentAtomSize = c->non_coherent_atom;
    l->maxStorageBufferRange = vkshim_least_u32(c->storage_range, l->maxStorageBufferRange);
    l->maxMemoryAllocationCount =
        vkshim_least_u32(c->allocation_count, l->maxMemoryAllocationCount);
    l->maxComputeWorkGroupInvocations =
        vkshim_least_u32(c->workgroup_invocations, l->maxComputeWorkGroupInvocations);
    for (i = 0; i < 3; i++) {
        l->maxComputeWorkGroupSize[i] =
            vkshim_least_u32(c->workgroup_size[i], l->maxComputeWorkGroupSize[i]);
        l->maxComputeWorkGroupCount[i] =
            vkshim_least_u32(c->workgroup_count[i], l->maxComputeWorkGroupCount[i]);
    }
    l->maxPerStageDescriptorStorageBuffers =
        vkshim_least_u32(c->stage_storage_buffers, l->maxPerStageDescriptorStorageBuffers);
    l->maxPushConstantsSize = vkshim_least_u32(c->push_constant_bytes, l->maxPushConstantsSize);
    if (c->timestamp_period > 0) l->timestampPeriod = c->timestamp_period;
    if (c->no_timestamps) l->timestampComputeAndGraphics = VK_FALSE;
}

static void vkshim_fake_memory(VkPhysicalDeviceMemoryProperties *m) {
    const vkshim_config *c = &vkshim.config;
    if (!c->type_count) return;
    m->memoryTypeCount = c->type_count;
    memcpy(m->memoryTypes, c->types, sizeof m->memoryTypes);
    m->memoryHeapCount = c->heap_count;
    memcpy(m->memoryHeaps, c->heaps, sizeof m->memoryHeaps);
}

static void vkshim_fake_family(VkQueueFamilyProperties *p, uint32_t family) {
    const vkshim_config *c = &vkshim.config;
    if (c->family_count) p->queueCount = c->families[family].queue_count ? c->families[family].queue_count : 1;
    if (c->family_count && c->families[family].flags) p->queueFlags = c->families[family].flags;
    if (!family && c->family_flags) p->queueFlags = c->family_flags;
    if (c->timestamp_bits) p->timestampValidBits = c->timestamp_bits;
    if (c->no_timestamps) p->timestampValidBits = 0;
}

// Keep the properties that the latest device reports, to enforce its limits.
static void vkshim_learn_limits(VkPhysicalDevice physical) {
    vkshim.real.GetPhysicalDeviceProperties(physical, &vkshim.real_properties);
    vkshim.properties = vkshim.real_properties;
    vkshim_fake_properties(&vkshim.properties);
    vkshim.real.GetPhysicalDeviceMemoryProperties(physical, &vkshim.memory);
    vkshim_fake_memory(&vkshim.memory);
}

// The version that both the program and the device support.
static uint32_t vkshim_version(uint32_t device_version) {
    return device_version < vkshim.instance_version ? device_version : vkshim.instance_version;
}

static void vkshim_need_version(vkshim_function function, uint32_t has, uint32_t needs) {
    if (has < needs)
        vkshim_violate("%s: needs Vulkan 1.%u, instance and device have 1.%u",
                       vkshim_function_names[function], VK_API_VERSION_MINOR(needs),
                       VK_API_VERSION_MINOR(has));
}

// The driver's memory type that backs all faked types.
static uint32_t vkshim_real_type(VkPhysicalDevice physical) {
    VkMemoryPropertyFlags needed =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties m;
    uint32_t i;
    vkshim.real.GetPhysicalDeviceMemoryProperties(physical, &m);
    for (i = 0; i < m.memoryTypeCount; i++)
        if ((m.memoryTypes[i].propertyFlags & needed) == needed) return i;
    return 0;
}

// ============================================================================
// Ownership: who may use which bytes of a buffer
// ============================================================================

// Split the segment that contains `at`, so that one begins there.
static void vkshim_split(vkshim_object *buffer, uint64_t at) {
    uint32_t i;
    for (i = 0; i < buffer->segment_count; i++)
        if (buffer->segments[i].begin < at && at < buffer->segments[i].end) {
            buffer->segments =
                (vkshim_segment *)vkshim_grow(buffer->segments, buffer->segment_count,
                                              &buffer->segment_room, sizeof *buffer->segments);
            memmove(&buffer->segments[i + 1], &buffer->segments[i],
                    (buffer->segment_count - i) * sizeof *buffer->segments);
            buffer->segment_count++;
            buffer->segments[i].end = at;
            buffer->segments[i + 1].begin = at;
            return;
        }
}

// The text of the rule that this use breaks; NULL = none.
static const char *vkshim_check_use(const vkshim_segment *g, const vkshim_event *e,
                                    const vkshim_submit *s) {
    uint32_t family = s->queue->family;
    int is_ordered =
        g->owning == VKSHIM_FREE || g->queue == s->queue->index || s->clock[g->queue] >= g->serial;
    int is_foreign =
        g->owning != VKSHIM_FREE && (g->owning == VKSHIM_RELEASED || g->family != family);
    switch (e->use) {
    case VKSHIM_TOUCH: return NULL;
    case VKSHIM_READ:
        if (is_foreign) return "read without an acquire";
        break;
    case VKSHIM_WRITE:
        if (is_foreign && vkshim.config.strict_ownership) return "written without an acquire";
        break;
    case VKSHIM_SHADE:
    case VKSHIM_SHADE_READ:
        if (g->owning == VKSHIM_RELEASED)
            return "used by a shader after the release, without an acquire";
        if (is_foreign && vkshim.config.strict_ownership)
            return "used by a shader without an acquire";
        break;
    case VKSHIM_RELEASE:
        if (is_foreign) return "released by a family that does not own it";
        break;
    case VKSHIM_ACQUIRE:
        if (g->owning != VKSHIM_RELEASED) return "acquired without a release";
        if (g->family != e->from || g->to != e->to)
            return "acquired with other families than it was released with";
        if (g->release_begin != e->begin || g->release_end != e->end)
            return "acquired with another range than it was released with";
        break;
    }
    return is_ordered ? NULL : "used on two queues without a semaphore between";
}

// The same for a buffer of all families.
static const char *vkshim_check_shared_use(const vkshim_segment *g, const vkshim_event *e,
                                           const vkshim_submit *s) {
    uint32_t own = s->queue->index, i;
    int writes = e->use == VKSHIM_WRITE || e->use == VKSHIM_SHADE;
    if (e->use == VKSHIM_RELEASE || e->use == VKSHIM_ACQUIRE) return "handed over, though all families own it";
    if (g->written && g->writer != own && s->clock[g->writer] < g->written)
        return "used while another queue may write it";
    for (i = 0; i < VKSHIM_QUEUES && writes; i++)
        if (i != own && s->clock[i] < g->read[i]) return "written while another queue may read it";
    return NULL;
}

static void vkshim_note_shared_use(vkshim_segment *g, const vkshim_event *e, const vkshim_submit *s) {
    uint32_t own = s->queue->index;
    if (e->use == VKSHIM_WRITE || e->use == VKSHIM_SHADE) {
        g->writer = own;
        g->written = s->serial;
    } else {
        g->read[own] = s->serial;
    }
}

static void vkshim_apply_event(const vkshim_event *e, const vkshim_submit *s) {
    vkshim_object *buffer = vkshim_find(VKSHIM_BUFFER, e->key);
    uint32_t i;
    if (!buffer || e->use == VKSHIM_TOUCH) return;
    vkshim_split(buffer, e->begin);
    vkshim_split(buffer, e->end);
    for (i = 0; i < buffer->segment_count; i++) {
        vkshim_segment *g = &buffer->segments[i];
        const char *rule;
        if (g->begin < e->begin || g->end > e->end) continue;
        rule = buffer->is_concurrent ? vkshim_check_shared_use(g, e, s) : vkshim_check_use(g, e, s);
        if (rule)
            vkshim_violate("vkQueueSubmit: family %u: bytes %llu to %llu of a buffer %s",
                           s->queue->family, (unsigned long long)g->begin,
                           (unsigned long long)g->end, rule);
        if (buffer->is_concurrent) { vkshim_note_shared_use(g, e, s); continue; }
        g->owning = e->use == VKSHIM_RELEASE ? VKSHIM_RELEASED : VKSHIM_OWNED;
        g->family = s->queue->family;
        g->to = e->to;
        g->release_begin = e->begin;
        g->release_end = e->end;
        g->queue = s->queue->index;
        g->serial = s->serial;
    }
}

// ============================================================================
// Submits: delayed, sent to the driver, seen finished by the host
// ============================================================================

static void vkshim_merge_clock(uint64_t *clock, const uint64_t *other) {
    uint32_t i;
    for (i = 0; i < VKSHIM_QUEUES; i++) if (clock[i] < other[i]) clock[i] = other[i];
}

static void vkshim_free_submit(vkshim_submit *s) {
    free(s->waits);
    free(s->signals);
    free(s->wait_values);
    free(s->signal_values);
    free(s->stages);
    free(s->commands);
    free(s);
}

// Remove the submits that the host has seen finished and signal their fences.
static void vkshim_sweep(int drops_all) {
    vkshim_submit **at = &vkshim.submits;
    while (*at) {
        vkshim_submit *s = *at;
        vkshim_object *fence = s->fence ? vkshim_find(VKSHIM_FENCE, VKSHIM_KEY(s->fence)) : NULL;
        if (!drops_all && (!s->is_sent || s->serial > vkshim.seen[s->queue->index])) {
            at = &s->next;
            continue;
        }
        if (fence) { fence->is_in_flight = 0; fence->is_signalled = 1; }
        *at = s->next;
        vkshim_free_submit(s);
    }
}

static const uint64_t *vkshim_signalled_value(const vkshim_submit *s, VkSemaphore semaphore) {
    uint32_t i;
    for (i = 0; i < s->signal_count; i++)
        if (s->signals[i] == semaphore) return &s->signal_values[i];
    return NULL;
}

// The host has seen this value: all work that happened before it is finished for the host.
static void vkshim_see_value(VkSemaphore semaphore, uint64_t value) {
    const vkshim_submit *s;
    for (s = vkshim.submits; s; s = s->next) {
        const uint64_t *signalled = s->is_sent ? vkshim_signalled_value(s, semaphore) : NULL;
        if (signalled && *signalled <= value) vkshim_merge_clock(vkshim.seen, s->clock);
    }
    vkshim_sweep(0);
}

static void vkshim_see_fence(VkFence fence) {
    const vkshim_submit *s;
    vkshim_object *o = vkshim_find(VKSHIM_FENCE, VKSHIM_KEY(fence));
    for (s = vkshim.submits; s; s = s->next)
        if (s->is_sent && s->fence == fence) vkshim_merge_clock(vkshim.seen, s->clock);
    vkshim_sweep(0);
    if (o) o->is_signalled = 1;
}

static VkResult vkshim_submit_really(const vkshim_submit *s) {
    VkTimelineSemaphoreSubmitInfo timeline;
    VkSubmitInfo info;
    VkResult result;
    memset(&timeline, 0, sizeof timeline);
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.waitSemaphoreValueCount = s->wait_count;
    timeline.pWaitSemaphoreValues = s->wait_values;
    timeline.signalSemaphoreValueCount = s->signal_count;
    timeline.pSignalSemaphoreValues = s->signal_values;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = s->has_timeline ? &timeline : NULL;
    info.waitSemaphoreCount = s->wait_count;
    info.pWaitSemaphores = s->wait_count ? s->waits : NULL;  // best practices warn about an empty list
    info.pWaitDstStageMask = s->stages;
    info.commandBufferCount = s->command_count;
    info.pCommandBuffers = s->commands;
    info.signalSemaphoreCount = s->signal_count;
    info.pSignalSemaphores = s->signal_count ? s->signals : NULL;
    pthread_mutex_lock(&vkshim_driver_mutex);
    result = vkshim.real.QueueSubmit(s->queue->real_queue, 1, &info, s->fence);
    pthread_mutex_unlock(&vkshim_driver_mutex);
    return result;
}

static int vkshim_send(vkshim_submit *s);

// Send the submits that signal the semaphore up to this value. 0 = no submit does so far.
static int vkshim_supply(const vkshim_submit *waiter, VkSemaphore semaphore, uint64_t value) {
    const vkshim_object *o = vkshim_find(VKSHIM_SEMAPHORE, VKSHIM_KEY(semaphore));
    vkshim_submit *s;
    for (s = vkshim.submits; o && s; s = s->next) {
        if (o->is_timeline ? o->sent_value >= value : o->is_signalled) return 1;
        if (s != waiter && !s->is_sent && vkshim_signalled_value(s, semaphore)) vkshim_send(s);
    }
    return !o || (o->is_timeline ? o->sent_value >= value : o->is_signalled);
}

// Merge the clock of a signal into that of the wait: all before the signal happened before the wait.
static void vkshim_order_after(vkshim_submit *s, VkSemaphore semaphore, uint64_t value) {
    const vkshim_object *o = vkshim_find(VKSHIM_SEMAPHORE, VKSHIM_KEY(semaphore));
    const vkshim_submit *e, *best = NULL;
    uint64_t best_value = 0;
    for (e = vkshim.submits; o && e; e = e->next) {
        const uint64_t *signalled =
            e->is_sent && e != s ? vkshim_signalled_value(e, semaphore) : NULL;
        if (!signalled) continue;
        if (!o->is_timeline || *signalled <= value) vkshim_merge_clock(s->clock, e->clock);
        if (!o->is_timeline || (*signalled >= value && (!best || *signalled < best_value))) {
            best = e;
            best_value = *signalled;
        }
    }
    if (o) vkshim_merge_clock(s->clock, best ? best->clock : o->clock);
}

static void vkshim_note_sent(vkshim_submit *s) {
    uint32_t i, j;
    for (i = 0; i < s->wait_count; i++) {
        vkshim_object *o = vkshim_find(VKSHIM_SEMAPHORE, VKSHIM_KEY(s->waits[i]));
        vkshim_order_after(s, s->waits[i], s->wait_values[i]);
        if (o && !o->is_timeline) o->is_signalled = 0;
    }
    vkshim_merge_clock(s->clock, s->queue->clock);
    s->clock[s->queue->index] = s->serial;
    memcpy(s->queue->clock, s->clock, sizeof s->clock);
    for (i = 0; i < s->signal_count; i++) {
        vkshim_object *o = vkshim_find(VKSHIM_SEMAPHORE, VKSHIM_KEY(s->signals[i]));
        if (!o) continue;
        o->is_signalled = 1;
        if (o->sent_value < s->signal_values[i]) o->sent_value = s->signal_values[i];
        vkshim_merge_clock(o->clock, s->clock);
    }
    if (!vkshim.config.family_count) return;
    for (i = 0; i < s->command_count; i++) {
        const vkshim_object *c = vkshim_find(VKSHIM_COMMANDS, VKSHIM_POINTER_KEY(s->commands[i]));
        for (j = 0; c && j < c->event_count; j++) vkshim_apply_event(&c->events[j], s);
    }
}

// Send a submit to the driver, after those that it waits for. 0 = a semaphore of it has no signal yet.
static int vkshim_send(vkshim_submit *s) {
    vkshim_submit *e;
    uint32_t i;
    int is_ready = 1;
    if (s->is_sent) return 1;
    if (s->is_visited) return 0;
    s->is_visited = 1;
    for (e = vkshim.submits; e && e != s && is_ready; e = e->next)
        if (e->queue == s->queue && !e->is_sent) is_ready = vkshim_send(e);
    for (i = 0; i < s->wait_count && is_ready; i++)
        is_ready = vkshim_supply(s, s->waits[i], s->wait_values[i]);
    s->is_visited = 0;
    if (!is_ready) return 0;
    s->is_sent = 1;
    vkshim.submit_result = vkshim_submit_really(s);
    vkshim_note_sent(s);
    return 1;
}

static void vkshim_send_all(const vkshim_object *queue) {
    vkshim_submit *s;
    for (s = vkshim.submits; s; s = s->next) if (!queue || s->queue == queue) vkshim_send(s);
}

// Wait, with the mutex held, until the driver has finished all it was sent. The host has not seen that.
static void vkshim_settle(void) {
    uint32_t i;
    const vkshim_object *o;
    pthread_mutex_lock(&vkshim_driver_mutex);
    for (i = 0; i < VKSHIM_BUCKETS; i++)
        for (o = vkshim.buckets[i]; o; o = o->next)
            if (o->kind == VKSHIM_DEVICE) vkshim.real.DeviceWaitIdle(o->device);
    pthread_mutex_unlock(&vkshim_driver_mutex);
}

static void vkshim_finish(void) {
    vkshim_send_all(NULL);
    vkshim_settle();
}

// Lose the device: delayed submits never run, and all objects may be destroyed.
static void vkshim_die(void) {
    if (vkshim.is_lost) return;
    vkshim.is_lost = 1;
    vkshim_settle();
    vkshim_sweep(1);
}

static vkshim_submit *vkshim_unsent_fence(VkFence fence) {
    vkshim_submit *s = vkshim.submits;
    while (s && (s->is_sent || s->fence != fence)) s = s->next;
    return s;
}

static vkshim_submit *vkshim_unsent_signal(VkSemaphore semaphore) {
    vkshim_submit *s = vkshim.submits;
    while (s && (s->is_sent || !vkshim_signalled_value(s, semaphore))) s = s->next;
    return s;
}

// Count a poll of a submit that may be delayed; after delay_polls of them it is sent.
static void vkshim_poll(vkshim_submit *s) {
    if (!s) return;
    if (s->polls_left) s->polls_left--;
    else if (vkshim_send(s)) vkshim_settle();
}

// ============================================================================
// Instance and physical device
// ============================================================================

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_EnumerateInstanceVersion(uint32_t *version) {
    VkResult result = vkshim_enter(VKSHIM_EnumerateInstanceVersion);
    if (!result) result = vkshim.real.EnumerateInstanceVersion(version);
    if (!result && vkshim.config.instance_version) *version = vkshim.config.instance_version;
    return vkshim_leave(result);
}

// Load the functions of an instance; they serve all its devices.
static void vkshim_load(VkInstance instance) {
#define VKSHIM_LOAD(name, kind) \
    vkshim.real.name = (PFN_vk##name)vkshim.real.GetInstanceProcAddr(instance, "vk" #name);
    VKSHIM_FUNCTIONS(VKSHIM_LOAD)
#undef VKSHIM_LOAD
    vkshim.real.EnumerateInstanceVersion =  // queried without an instance, as newer loaders require
        (PFN_vkEnumerateInstanceVersion)vkshim.real.GetInstanceProcAddr(NULL, "vkEnumerateInstanceVersion");
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_CreateInstance(const VkInstanceCreateInfo *info,
                                                            const VkAllocationCallbacks *callbacks,
                                                            VkInstance *instance) {
    VkResult result = vkshim_enter(VKSHIM_CreateInstance);
    PFN_vkCreateInstance create;
    uint32_t version = info->pApplicationInfo ? info->pApplicationInfo->apiVersion : 0;
    uint32_t most = vkshim.config.instance_version;
    if (!version) version = VK_API_VERSION_1_0;
    if (!result && most && most < VK_API_VERSION_1_1 && version >= VK_API_VERSION_1_1)
        result = VK_ERROR_INCOMPATIBLE_DRIVER;
    if (!result) {
        create = (PFN_vkCreateInstance)vkshim.real.GetInstanceProcAddr(NULL, "vkCreateInstance");
        result = create(info, callbacks, instance);
    }
    if (!result) {
        vkshim_load(*instance);
        vkshim.instance_version = most && most < version ? most : version;
        vkshim_track(VKSHIM_INSTANCE, VKSHIM_POINTER_KEY(*instance), 0, callbacks != NULL);
    } else memset(instance, 0, sizeof *instance);
    return vkshim_leave(result);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_DestroyInstance(VkInstance instance,
                                                         const VkAllocationCallbacks *callbacks) {
    uint64_t key = VKSHIM_POINTER_KEY(instance);
    vkshim_enter(VKSHIM_DestroyInstance);
    if (vkshim_start_destroy(VKSHIM_DestroyInstance, VKSHIM_INSTANCE, key, callbacks)) {
        if (vkshim.live[VKSHIM_DEVICE] && vkshim.live[VKSHIM_INSTANCE] == 1)
            vkshim_violate("vkDestroyInstance: a device is alive");
        if (instance) vkshim.real.DestroyInstance(instance, callbacks);
        vkshim_end_destroy(VKSHIM_INSTANCE, key);
    }
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_EnumeratePhysicalDevices(VkInstance instance,
                                                                      uint32_t *count,
                                                                      VkPhysicalDevice *devices) {
    VkResult result = vkshim_enter(VKSHIM_EnumeratePhysicalDevices);
    if (!result) result = vkshim.real.EnumeratePhysicalDevices(instance, count, devices);
    return vkshim_leave(result);
}

// The budgets of a real device say nothing of faked heaps.
static int vkshim_hides_extension(const char *name) {
    const vkshim_config *config = &vkshim.config;
    if (config->heap_count && !config->fakes_budget && !strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) return 1;
    return vkshim_is_listed(name, vkshim.config.hidden_extensions, vkshim.config.hidden_count);
}

// All extensions of the device as the shim reports them; free() the list.
static VkResult vkshim_list_extensions(VkPhysicalDevice physical, uint32_t *count,
                                       VkExtensionProperties **list) {
    uint32_t i, all = 0, has_budget = 0;
    VkResult result = vkshim.real.EnumerateDeviceExtensionProperties(physical, NULL, &all, NULL);
    VkExtensionProperties *names = (VkExtensionProperties *)vkshim_alloc((all + 1) * sizeof *names);
    if (!result)
        result = vkshim.real.EnumerateDeviceExtensionProperties(physical, NULL, &all, names);
    for (i = 0, *count = 0; !result && i < all; i++) {
        if (vkshim_hides_extension(names[i].extensionName)) continue;
        has_budget |= !strcmp(names[i].extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
        names[(*count)++] = names[i];
    }
    if (vkshim.config.fakes_budget && !has_budget) {
        memset(&names[*count], 0, sizeof *names);
        strcpy(names[*count].extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
        names[(*count)++].specVersion = VK_EXT_MEMORY_BUDGET_SPEC_VERSION;
    }
    *list = names;
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL
vkshim_EnumerateDeviceExtensionProperties(VkPhysicalDevice physical, const char *layer,
                                          uint32_t *count, VkExtensionProperties *properties) {
    VkResult result = vkshim_enter(VKSHIM_EnumerateDeviceExtensionProperties);
    VkExtensionProperties *list = NULL;
    uint32_t all = 0, copied;
    if (!result && layer) {
        result = vkshim.real.EnumerateDeviceExtensionProperties(physical, layer, count, properties);
        return vkshim_leave(result);
    }
    if (!result) result = vkshim_list_extensions(physical, &all, &list);
    if (!result) {
        copied = properties && *count < all ? *count : all;
        if (properties) memcpy(properties, list, copied * sizeof *list);
        if (copied < all) result = VK_INCOMPLETE;
        *count = copied;
    }
    free(list);
    return vkshim_leave(result);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceProperties(
    VkPhysicalDevice physical, VkPhysicalDeviceProperties *properties) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceProperties);
    vkshim.real.GetPhysicalDeviceProperties(physical, properties);
    vkshim_fake_properties(properties);
    vkshim_leave(VK_SUCCESS);
}

// A violation if vkGetPhysicalDevice*2 is used on an instance or a device below version 1.1.
static void vkshim_need_physical_version(vkshim_function function, VkPhysicalDevice physical) {
    VkPhysicalDeviceProperties p;
    vkshim.real.GetPhysicalDeviceProperties(physical, &p);
    vkshim_fake_properties(&p);
    vkshim_need_version(function, vkshim_version(p.apiVersion), VK_API_VERSION_1_1);
}

static void vkshim_properties2(PFN_vkGetPhysicalDeviceProperties2 real, VkPhysicalDevice physical,
                               VkPhysicalDeviceProperties2 *properties) {
    uint64_t bytes = vkshim.config.allocation_bytes;
    VkPhysicalDeviceMaintenance3Properties *maintenance =
        (VkPhysicalDeviceMaintenance3Properties *)vkshim_find_next(
            properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
    VkPhysicalDeviceVulkan11Properties *core =
        (VkPhysicalDeviceVulkan11Properties *)vkshim_find_next(
            properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    real(physical, properties);
    vkshim_fake_properties(&properties->properties);
    if (bytes && maintenance) maintenance->maxMemoryAllocationSize = bytes;
    if (bytes && core) core->maxMemoryAllocationSize = bytes;
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceProperties2(
    VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *properties) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceProperties2);
    vkshim_need_physical_version(VKSHIM_GetPhysicalDeviceProperties2, physical);
    vkshim_properties2(vkshim.real.GetPhysicalDeviceProperties2, physical, properties);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceProperties2KHR(
    VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *properties) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceProperties2KHR);
    vkshim_properties2(vkshim.real.GetPhysicalDeviceProperties2KHR, physical, properties);
    vkshim_leave(VK_SUCCESS);
}

static void vkshim_features2(PFN_vkGetPhysicalDeviceFeatures2 real, VkPhysicalDevice physical,
                             VkPhysicalDeviceFeatures2 *features) {
    VkPhysicalDeviceTimelineSemaphoreFeatures *timeline =
        (VkPhysicalDeviceTimelineSemaphoreFeatures *)vkshim_find_next(
            features->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
    VkPhysicalDeviceVulkan12Features *core = (VkPhysicalDeviceVulkan12Features *)vkshim_find_next(
        features->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    real(physical, features);
    if (vkshim.config.hides_timeline && timeline) timeline->timelineSemaphore = VK_FALSE;
    if (vkshim.config.hides_timeline && core) core->timelineSemaphore = VK_FALSE;
}

static VKAPI_ATTR void VKAPI_CALL
vkshim_GetPhysicalDeviceFeatures2(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *features) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceFeatures2);
    vkshim_need_physical_version(VKSHIM_GetPhysicalDeviceFeatures2, physical);
    vkshim_features2(vkshim.real.GetPhysicalDeviceFeatures2, physical, features);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceFeatures2KHR(
    VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *features) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceFeatures2KHR);
    vkshim_features2(vkshim.real.GetPhysicalDeviceFeatures2KHR, physical, features);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceMemoryProperties(
        VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties *properties) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceMemoryProperties);
    vkshim.real.GetPhysicalDeviceMemoryProperties(physical, properties);
    vkshim_fake_memory(properties);
    vkshim_leave(VK_SUCCESS);
}

static uint64_t vkshim_budget(const VkPhysicalDeviceMemoryProperties *memory, uint32_t heap) {
    return vkshim.config.budget_bytes[heap] ? vkshim.config.budget_bytes[heap]
                                            : memory->memoryHeaps[heap].size;
}

static void vkshim_memory2(PFN_vkGetPhysicalDeviceMemoryProperties2 real, VkPhysicalDevice physical,
                           VkPhysicalDeviceMemoryProperties2 *properties) {
    uint32_t i;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget =
        (VkPhysicalDeviceMemoryBudgetPropertiesEXT *)vkshim_find_next(
            properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
    real(physical, properties);
    vkshim_fake_memory(&properties->memoryProperties);
    for (i = 0; budget && vkshim.config.fakes_budget && i < VK_MAX_MEMORY_HEAPS; i++) {
        int is_there = i < properties->memoryProperties.memoryHeapCount;
        budget->heapBudget[i] = is_there ? vkshim_budget(&properties->memoryProperties, i) : 0;
        budget->heapUsage[i] = is_there ? vkshim.heap_used[i] : 0;
    }
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceMemoryProperties2(
        VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *properties) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceMemoryProperties2);
    vkshim_need_physical_version(VKSHIM_GetPhysicalDeviceMemoryProperties2, physical);
    vkshim_memory2(vkshim.real.GetPhysicalDeviceMemoryProperties2, physical, properties);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceMemoryProperties2KHR(
        VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *properties) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceMemoryProperties2KHR);
    vkshim_memory2(vkshim.real.GetPhysicalDeviceMemoryProperties2KHR, physical, properties);
    vkshim_leave(VK_SUCCESS);
}

// Faked families have the other properties of the driver's first one.
static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceQueueFamilyProperties(
        VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties *families) {
    VkQueueFamilyProperties first;
    uint32_t i, one = 1;
    vkshim_enter(VKSHIM_GetPhysicalDeviceQueueFamilyProperties);
    if (!vkshim.config.family_count) {
        vkshim.real.GetPhysicalDeviceQueueFamilyProperties(physical, count, families);
    } else {
        vkshim.real.GetPhysicalDeviceQueueFamilyProperties(physical, &one, &first);
        if (!families || *count > vkshim.config.family_count) *count = vkshim.config.family_count;
        for (i = 0; families && i < *count; i++) families[i] = first;
    }
    for (i = 0; families && i < *count; i++)
        vkshim_fake_family(&families[i], vkshim.config.family_count ? i : 0);
    vkshim_leave(VK_SUCCESS);
}

static void vkshim_families2(PFN_vkGetPhysicalDeviceQueueFamilyProperties2 real,
                             VkPhysicalDevice physical, uint32_t *count,
                             VkQueueFamilyProperties2 *families) {
    uint32_t i, one = 1;
    if (!vkshim.config.family_count) {
        real(physical, count, families);
    } else {
        if (!families || *count > vkshim.config.family_count) *count = vkshim.config.family_count;
        if (families && *count) real(physical, &one, families);
        for (i = 1; families && i < *count; i++)
            families[i].queueFamilyProperties = families[0].queueFamilyProperties;
    }
    for (i = 0; families && i < *count; i++)
        vkshim_fake_family(&families[i].queueFamilyProperties, vkshim.config.family_count ? i : 0);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceQueueFamilyProperties2(
        VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties2 *families) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceQueueFamilyProperties2);
    vkshim_need_physical_version(VKSHIM_GetPhysicalDeviceQueueFamilyProperties2, physical);
    vkshim_families2(vkshim.real.GetPhysicalDeviceQueueFamilyProperties2, physical, count,
                     families);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetPhysicalDeviceQueueFamilyProperties2KHR(
        VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties2 *families) {
    vkshim_enter(VKSHIM_GetPhysicalDeviceQueueFamilyProperties2KHR);
    vkshim_families2(vkshim.real.GetPhysicalDeviceQueueFamilyProperties2KHR, physical, count,
                     families);
    vkshim_leave(VK_SUCCESS);
}

// ============================================================================
// Device and queues
// ============================================================================

static int vkshim_enables_timeline(const VkDeviceCreateInfo *info) {
    const VkPhysicalDeviceTimelineSemaphoreFeatures *timeline =
        (const VkPhysicalDeviceTimelineSemaphoreFeatures *)vkshim_find_next(
            info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
    const VkPhysicalDeviceVulkan12Features *core =
        (const VkPhysicalDeviceVulkan12Features *)vkshim_find_next(
            info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    return (timeline && timeline->timelineSemaphore) || (core && core->timelineSemaphore);
}

// The extensions to pass on: without those that only the shim fakes. A hidden one is refused.
static VkResult vkshim_real_extensions(VkPhysicalDevice physical, VkDeviceCreateInfo *info,
                                       const char **names) {
    VkExtensionProperties *list = NULL;
    uint32_t i, j, count = 0, kept = 0;
    VkResult result = vkshim.real.EnumerateDeviceExtensionProperties(physical, NULL, &count, NULL);
    list = (VkExtensionProperties *)vkshim_alloc((count + 1) * sizeof *list);
    if (!result)
        result = vkshim.real.EnumerateDeviceExtensionProperties(physical, NULL, &count, list);
    for (i = 0; !result && i < info->enabledExtensionCount; i++) {
        const char *name = info->ppEnabledExtensionNames[i];
        int is_fake =
            vkshim.config.fakes_budget && !strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
        if (vkshim_hides_extension(name)) result = VK_ERROR_EXTENSION_NOT_PRESENT;
        for (j = 0; j < count && strcmp(list[j].extensionName, name); j++) {}
        if (j < count || !is_fake) names[kept++] = name;
    }
    info->enabledExtensionCount = kept;
    info->ppEnabledExtensionNames = names;
    free(list);
    return result;
}

static uint32_t vkshim_queues_of(uint32_t family) {
    return vkshim.config.families[family].queue_count ? vkshim.config.families[family].queue_count : 1;
}

static VkResult vkshim_create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                     const VkAllocationCallbacks *callbacks, VkDevice *device) {
    VkDeviceCreateInfo real = *info;
    VkDeviceQueueCreateInfo queue;
    float priority = 1.0f;
    uint32_t i, families = 0;
    vkshim_object *o;
    const char **names =
        (const char **)vkshim_alloc((info->enabledExtensionCount + 1) * sizeof *names);
    VkResult result = vkshim_real_extensions(physical, &real, names);
    if (!result && vkshim.config.hides_timeline && vkshim_enables_timeline(info))
        result = VK_ERROR_FEATURE_NOT_PRESENT;
    for (i = 0; i < info->queueCreateInfoCount; i++) {
        const VkDeviceQueueCreateInfo *q = &info->pQueueCreateInfos[i];
        if (vkshim.config.family_count && (q->queueFamilyIndex >= vkshim.config.family_count ||
            q->queueCount > vkshim_queues_of(q->queueFamilyIndex)))
            vkshim_violate("vkCreateDevice: pQueueCreateInfos: there are fewer families, or queues of one");
        if (families & (1u << (q->queueFamilyIndex & 31)))
            vkshim_violate("vkCreateDevice: pQueueCreateInfos: a family is listed twice");
        families |= 1u << (q->queueFamilyIndex & 31);
    }
    if (vkshim.config.family_count) {
        memset(&queue, 0, sizeof queue);
        queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
        queue.queueCount = 1;
        queue.pQueuePriorities = &priority;
        real.queueCreateInfoCount = 1;
        real.pQueueCreateInfos = &queue;
    }
    if (!result) result = vkshim.real.CreateDevice(physical, &real, callbacks, device);
    free(names);
    if (result) return result;
    vkshim_learn_limits(physical);
    o = vkshim_track(VKSHIM_DEVICE, VKSHIM_POINTER_KEY(*device), 0, callbacks != NULL);
    o->device = *device;
    o->family = families;
    o->is_timeline = vkshim_enables_timeline(info);
    o->version = vkshim_version(vkshim.properties.apiVersion);
    o->type = vkshim_real_type(physical);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_CreateDevice(VkPhysicalDevice physical,
                                                          const VkDeviceCreateInfo *info,
                                                          const VkAllocationCallbacks *callbacks,
                                                          VkDevice *device) {
    VkResult result = vkshim_enter(VKSHIM_CreateDevice);
    if (!result) result = vkshim_create_device(physical, info, callbacks, device);
    if (result) memset(device, 0, sizeof *device);
    return vkshim_leave(result);
}

// Destroy the pipelines that were kept.
static void vkshim_drop_kept(VkDevice device) {
    vkshim_kept **at = &vkshim.kept;
    while (*at) {
        vkshim_kept *kept = *at;
        if (kept->device != device) { at = &kept->next; continue; }
        *at = kept->next;
        vkshim.real.DestroyPipeline(device, kept->pipeline, NULL);
        free(kept);
    }
}

static void vkshim_report_leaks(VkDevice device) {
    uint64_t counts[VKSHIM_KIND_COUNT];
    const vkshim_object *o;
    uint32_t i;
    memset(counts, 0, sizeof counts);
    for (i = 0; i < VKSHIM_BUCKETS; i++)
        for (o = vkshim.buckets[i]; o; o = o->next)
            if (o->parent == VKSHIM_POINTER_KEY(device) && o->kind != VKSHIM_QUEUE)
                counts[o->kind]++;
    for (i = 0; i < VKSHIM_KIND_COUNT; i++)
        if (counts[i])
            vkshim_violate("vkDestroyDevice: %llu %s are alive", (unsigned long long)counts[i],
                           vkshim_name_kind((vkshim_kind)i));
}

static VKAPI_ATTR void VKAPI_CALL vkshim_DestroyDevice(VkDevice device,
                                                       const VkAllocationCallbacks *callbacks) {
    uint64_t key = VKSHIM_POINTER_KEY(device);
    uint32_t i;
    vkshim_enter(VKSHIM_DestroyDevice);
    if (device && vkshim_start_destroy(VKSHIM_DestroyDevice, VKSHIM_DEVICE, key, callbacks)) {
        const vkshim_submit *s;
        for (s = vkshim.submits; s && s->queue->parent != key; s = s->next) {}
        if (s) {
            vkshim_violate("vkDestroyDevice: the host has not seen all work finished");
            vkshim_finish();
            vkshim_sweep(1);
        }
        vkshim_report_leaks(device);
        pthread_mutex_lock(&vkshim_guard_mutex);
        for (i = 0; i < VKSHIM_QUEUES; i++)
            if (vkshim_guards[i].device == device)
                memset(&vkshim_guards[i], 0, sizeof vkshim_guards[i]);
        pthread_mutex_unlock(&vkshim_guard_mutex);
        vkshim_forget_children(VKSHIM_QUEUE, key);
        vkshim_drop_kept(device);
        vkshim.real.DestroyDevice(device, callbacks);
        vkshim_end_destroy(VKSHIM_DEVICE, key);
    }
    vkshim_leave(VK_SUCCESS);
}

static vkshim_object *vkshim_find_queue(VkDevice device, uint32_t family, uint32_t index) {
    uint32_t i;
    for (i = 0; i < VKSHIM_QUEUES; i++) {
        vkshim_object *o = vkshim_guards[i].device == device
            ? vkshim_find(VKSHIM_QUEUE, VKSHIM_POINTER_KEY(vkshim_guards[i].queue)) : NULL;
        if (o && o->family == family && o->storage_count == index) return o;
    }
    return NULL;
}

// The queues of faked families, but the first, are handles that only the shim understands.
static vkshim_object *vkshim_make_queue(VkDevice device, uint32_t family, uint32_t index) {
    uint32_t i = 0;
    VkQueue real, handle;
    vkshim_object *o;
    while (i < VKSHIM_QUEUES && vkshim_guards[i].queue) i++;
    if (i == VKSHIM_QUEUES) { fputs("vk_shim: more queues than it follows\n", stderr); abort(); }
    vkshim.real.GetDeviceQueue(device, vkshim.config.family_count ? 0 : family,
                               vkshim.config.family_count ? 0 : index, &real);
    handle = vkshim.config.family_count && (family || index) ? (VkQueue)(void *)&vkshim_guards[i] : real;
    vkshim_guards[i].queue = handle;
    vkshim_guards[i].device = device;
    vkshim_guards[i].users = 0;
    o = vkshim_track(VKSHIM_QUEUE, VKSHIM_POINTER_KEY(handle), VKSHIM_POINTER_KEY(device), 0);
    o->family = family;
    o->storage_count = index;
    o->index = i;
    o->real_queue = real;
    vkshim.seen[i] = 0;
    return o;
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetDeviceQueue(VkDevice device, uint32_t family,
                                                        uint32_t index, VkQueue *queue) {
    const vkshim_object *d, *o;
    vkshim_enter(VKSHIM_GetDeviceQueue);
    d = vkshim_need(VKSHIM_GetDeviceQueue, VKSHIM_DEVICE, VKSHIM_POINTER_KEY(device));
    *queue = NULL;
    if (d && !(d->family & (1u << (family & 31))))
        vkshim_violate("vkGetDeviceQueue: family %u was not asked for at vkCreateDevice", family);
    else if (d) {
        pthread_mutex_lock(&vkshim_guard_mutex);
        o = vkshim_find_queue(device, family, index);
        if (!o) o = vkshim_make_queue(device, family, index);
        *queue = (VkQueue)(uintptr_t)o->key;
        pthread_mutex_unlock(&vkshim_guard_mutex);
    }
    vkshim_leave(VK_SUCCESS);
}

// Whether more than one thread uses the queue now. The guard must be held.
static int vkshim_is_shared(VkQueue queue, VkDevice device) {
    uint32_t i;
    for (i = 0; i < VKSHIM_QUEUES; i++)
        if (vkshim_guards[i].queue && vkshim_guards[i].users > 1
            && (vkshim_guards[i].queue == queue || vkshim_guards[i].device == device)) return 1;
    return 0;
}

// Mark a queue, or all queues of a device, as in use, then take the mutex. Another user at the same time is
// a violation; with queue_yields each user stays longer, so that overlaps are noticed.
static VkResult vkshim_enter_queue(vkshim_function function, VkQueue queue, VkDevice device) {
    uint32_t i;
    int is_shared;
    VkResult result;
    pthread_mutex_lock(&vkshim_guard_mutex);
    for (i = 0; i < VKSHIM_QUEUES; i++)
        if (vkshim_guards[i].queue == queue || vkshim_guards[i].device == device)
            vkshim_guards[i].users += vkshim_guards[i].queue != NULL;
    is_shared = vkshim_is_shared(queue, device);
    for (i = 0; i < vkshim_guard_yields && !is_shared; i++) {
        pthread_mutex_unlock(&vkshim_guard_mutex);
        sched_yield();
        pthread_mutex_lock(&vkshim_guard_mutex);
        is_shared = vkshim_is_shared(queue, device);
    }
    pthread_mutex_unlock(&vkshim_guard_mutex);
    result = vkshim_enter(function);
    if (is_shared)
        vkshim_violate("%s: another thread uses the queue now", vkshim_function_names[function]);
    return result;
}

static VkResult vkshim_leave_queue(VkQueue queue, VkDevice device, VkResult result) {
    uint32_t i;
    pthread_mutex_lock(&vkshim_guard_mutex);
    for (i = 0; i < VKSHIM_QUEUES; i++)
        if (vkshim_guards[i].queue &&
            (vkshim_guards[i].queue == queue || vkshim_guards[i].device == device))
            vkshim_guards[i].users--;
    pthread_mutex_unlock(&vkshim_guard_mutex);
    return vkshim_leave(result);
}

// ============================================================================
// Memory
// ============================================================================

static int vkshim_memory_is(const vkshim_object *memory, VkMemoryPropertyFlags flags) {
    return (vkshim.memory.memoryTypes[memory->type].propertyFlags & flags) == flags;
}

static VkResult vkshim_check_allocation(const VkMemoryAllocateInfo *info) {
    const vkshim_config *c = &vkshim.config;
    uint32_t heap;
    uint64_t told, there;
    if (info->memoryTypeIndex >= vkshim.memory.memoryTypeCount || !info->allocationSize) {
        vkshim_violate(
            "vkAllocateMemory: memoryTypeIndex %u of %u, allocationSize %llu: no such memory",
            info->memoryTypeIndex, vkshim.memory.memoryTypeCount,
            (unsigned long long)info->allocationSize);
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    heap = vkshim.memory.memoryTypes[info->memoryTypeIndex].heapIndex;
    told = vkshim.memory.memoryHeaps[heap].size;
    there = c->real_heap_bytes[heap] ? c->real_heap_bytes[heap] : told;
    if (info->allocationSize > told) {
        vkshim_violate("vkAllocateMemory: allocationSize %llu: its heap has %llu bytes",
                       (unsigned long long)info->allocationSize, (unsigned long long)told);
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (vkshim.live[VKSHIM_MEMORY] >= vkshim.properties.limits.maxMemoryAllocationCount)
        return VK_ERROR_TOO_MANY_OBJECTS;
    if (c->allocation_bytes && info->allocationSize > c->allocation_bytes)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (vkshim.heap_used[heap] > there || info->allocationSize > there - vkshim.heap_used[heap])
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_AllocateMemory(VkDevice device,
                                                            const VkMemoryAllocateInfo *info,
                                                            const VkAllocationCallbacks *callbacks,
                                                            VkDeviceMemory *memory) {
    VkResult result = vkshim_enter(VKSHIM_AllocateMemory);
    const vkshim_object *d =
        vkshim_need(VKSHIM_AllocateMemory, VKSHIM_DEVICE, VKSHIM_POINTER_KEY(device));
    VkMemoryAllocateInfo real = *info;
    vkshim_object *o;
    uint32_t heap;
    if (!d) return vkshim_leave(VK_ERROR_OUT_OF_DEVICE_MEMORY);
    if (!result) result = vkshim_check_allocation(info);
    if (vkshim.config.type_count) real.memoryTypeIndex = d->type;
    if (!result) result = vkshim.real.AllocateMemory(device, &real, callbacks, memory);
    if (!result) {
        o = vkshim_track(VKSHIM_MEMORY, VKSHIM_KEY(*memory), VKSHIM_POINTER_KEY(device),
                         callbacks != NULL);
        o->bytes = info->allocationSize;
        o->type = info->memoryTypeIndex;
        heap = vkshim.memory.memoryTypes[o->type].heapIndex;
        vkshim.heap_used[heap] += o->bytes;
        vkshim.counts.memory_bytes += o->bytes;
        if (vkshim.heap_used[heap] > vkshim_budget(&vkshim.memory, heap))
            vkshim.counts.over_budget_count++;
    } else memset(memory, VKSHIM_POISON, sizeof *memory);
    return vkshim_leave(result);
}

static void vkshim_note_unmapped(vkshim_object *memory) {
    if (memory->is_mapped) vkshim.counts.mapped_count--;
    memory->is_mapped = 0;
}

static VKAPI_ATTR void VKAPI_CALL vkshim_FreeMemory(VkDevice device, VkDeviceMemory memory,
                                                    const VkAllocationCallbacks *callbacks) {
    vkshim_object *o;
    vkshim_enter(VKSHIM_FreeMemory);
    if (memory &&
        vkshim_start_destroy(VKSHIM_FreeMemory, VKSHIM_MEMORY, VKSHIM_KEY(memory), callbacks)) {
        o = vkshim_find(VKSHIM_MEMORY, VKSHIM_KEY(memory));
        vkshim_note_unmapped(o);
        vkshim.heap_used[vkshim.memory.memoryTypes[o->type].heapIndex] -= o->bytes;
        vkshim.counts.memory_bytes -= o->bytes;
        vkshim.real.FreeMemory(device, memory, callbacks);
        vkshim_forget(o);
    }
    vkshim_leave(VK_SUCCESS);
}

// Non-coherent memory: the host maps a copy, which only flushes and invalidates synchronise with the memory.
// The copy lives as long as the memory, so after another map the host reads again what it wrote.
static VkResult vkshim_map_shadow(VkDevice device, VkDeviceMemory memory, vkshim_object *o) {
    void *real;
    VkResult result;
    if (o->shadow) return VK_SUCCESS;
    result = vkshim.real.MapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &real);
    if (result) return result;
    o->real_bytes = (unsigned char *)real;
    o->shadow_block = (unsigned char *)vkshim_alloc((size_t)o->bytes + VKSHIM_PAGE);
    o->shadow = o->shadow_block + (VKSHIM_PAGE - (uintptr_t)o->shadow_block % VKSHIM_PAGE);
    memset(o->shadow, VKSHIM_POISON, (size_t)o->bytes);
    return VK_SUCCESS;
}

static VkResult vkshim_map(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                           VkDeviceSize size, VkMemoryMapFlags flags, void **data) {
    vkshim_object *o = vkshim_need(VKSHIM_MapMemory, VKSHIM_MEMORY, VKSHIM_KEY(memory));
    VkResult result = VK_SUCCESS;
    if (!o) return VK_ERROR_MEMORY_MAP_FAILED;
    if (!vkshim_memory_is(o, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) {
        vkshim_violate("vkMapMemory: memory: type %u is not HOST_VISIBLE", o->type);
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    if (o->is_mapped || offset >= o->bytes ||
        (size != VK_WHOLE_SIZE && (!size || size > o->bytes - offset))) {
        vkshim_violate("vkMapMemory: offset, size: outside the memory, or it is mapped already");
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    if (vkshim_memory_is(o, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) {
        result = vkshim.real.MapMemory(device, memory, offset, size, flags, data);
    } else {
        result = vkshim_map_shadow(device, memory, o);
        if (!result) *data = o->shadow + offset;
    }
    if (result) return result;
    o->is_mapped = 1;
    o->mapped_begin = offset;
    o->mapped_end = size == VK_WHOLE_SIZE ? o->bytes : offset + size;
    vkshim.counts.mapped_count++;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_MapMemory(VkDevice device, VkDeviceMemory memory,
                                                       VkDeviceSize offset, VkDeviceSize size,
                                                       VkMemoryMapFlags flags, void **data) {
    VkResult result = vkshim_enter(VKSHIM_MapMemory);
    if (!result) result = vkshim_map(device, memory, offset, size, flags, data);
    if (result) *data = NULL;
    return vkshim_leave(result);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_UnmapMemory(VkDevice device, VkDeviceMemory memory) {
    vkshim_object *o;
    vkshim_enter(VKSHIM_UnmapMemory);
    o = vkshim_need(VKSHIM_UnmapMemory, VKSHIM_MEMORY, VKSHIM_KEY(memory));
    if (o && !o->is_mapped) vkshim_violate("vkUnmapMemory: memory: is not mapped");
    else if (o) {
        if (!o->shadow) vkshim.real.UnmapMemory(device, memory);
        vkshim_note_unmapped(o);
    }
    vkshim_leave(VK_SUCCESS);
}

// Check the rules of a mapped range and return its length; 0 = the range is empty or broken.
static uint64_t vkshim_check_range(vkshim_function function, const VkMappedMemoryRange *range,
                                   vkshim_object **memory) {
    uint64_t atom = vkshim.properties.limits.nonCoherentAtomSize, end;
    const char *name = vkshim_function_names[function];
    vkshim_object *o = *memory = vkshim_need(function, VKSHIM_MEMORY, VKSHIM_KEY(range->memory));
    if (!o) return 0;
    if (!o->is_mapped) {
        vkshim_violate("%s: memory: is not mapped", name);
        return 0;
    }
    end = range->size == VK_WHOLE_SIZE ? o->mapped_end : range->offset + range->size;
    if (range->offset < o->mapped_begin || end > o->mapped_end || end < range->offset) {
        vkshim_violate("%s: offset %llu, size %llu: outside what is mapped", name,
                       (unsigned long long)range->offset, (unsigned long long)range->size);
        return 0;
    }
    if (range->offset % atom || (end % atom && end != o->bytes))
        vkshim_violate("%s: offset %llu, size %llu: not rounded to nonCoherentAtomSize %llu", name,
                       (unsigned long long)range->offset, (unsigned long long)range->size,
                       (unsigned long long)atom);
    return end - range->offset;
}

static VkResult vkshim_move_ranges(vkshim_function function, VkDevice device, uint32_t count,
                                   const VkMappedMemoryRange *ranges) {
    int flushes = function == VKSHIM_FlushMappedMemoryRanges;
    VkResult result = VK_SUCCESS;
    uint32_t i;
    for (i = 0; i < count && !result; i++) {
        vkshim_object *o;
        VkMappedMemoryRange all;
        uint64_t bytes = vkshim_check_range(function, &ranges[i], &o);
        if (!bytes || !o->shadow) continue;
        memset(&all, 0, sizeof all);
        all.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
        all.memory = ranges[i].memory;
        all.size = VK_WHOLE_SIZE;
        if (flushes) {
            memcpy(o->real_bytes + ranges[i].offset, o->shadow + ranges[i].offset, (size_t)bytes);
            result = vkshim.real.FlushMappedMemoryRanges(device, 1, &all);
        } else {
            result = vkshim.real.InvalidateMappedMemoryRanges(device, 1, &all);
            memcpy(o->shadow + ranges[i].offset, o->real_bytes + ranges[i].offset, (size_t)bytes);
        }
    }
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL
vkshim_FlushMappedMemoryRanges(VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges) {
    VkResult result = vkshim_enter(VKSHIM_FlushMappedMemoryRanges);
    if (!result) result = vkshim_move_ranges(VKSHIM_FlushMappedMemoryRanges, device, count, ranges);
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_InvalidateMappedMemoryRanges(
    VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges) {
    VkResult result = vkshim_enter(VKSHIM_InvalidateMappedMemoryRanges);
    if (!result)
        result = vkshim_move_ranges(VKSHIM_InvalidateMappedMemoryRanges, device, count, ranges);
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_CreateBuffer(VkDevice device,
                                                          const VkBufferCreateInfo *info,
                                                          const VkAllocationCallbacks *callbacks,
                                                          VkBuffer *buffer) {
    VkResult result = vkshim_enter(VKSHIM_CreateBuffer);
    VkBufferCreateInfo real = *info;
    vkshim_object *o;
    if (vkshim.config.family_count) {
        real.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
        real.queueFamilyIndexCount = 0;
    }
    if (!result) result = vkshim.real.CreateBuffer(device, &real, callbacks, buffer);
    if (!result) {
        o = vkshim_track(VKSHIM_BUFFER, VKSHIM_KEY(*buffer), VKSHIM_POINTER_KEY(device),
                         callbacks != NULL);
        o->bytes = info->size;
        o->usage = info->usage;
        o->is_concurrent = info->sharingMode == VK_SHARING_MODE_CONCURRENT;
        o->segments = (vkshim_segment *)vkshim_grow(NULL, 0, &o->segment_room, sizeof *o->segments);
        memset(o->segments, 0, sizeof *o->segments);
        o->segments[0].end = info->size;
        o->segment_count = 1;
    } else memset(buffer, VKSHIM_POISON, sizeof *buffer);
    return vkshim_leave(result);
}

// The memory requirements of a buffer as the shim reports them, with faked types.
static void vkshim_requirements(VkDevice device, VkBuffer buffer,
                                VkMemoryRequirements *requirements) {
    const vkshim_config *c = &vkshim.config;
    uint32_t count = vkshim.memory.memoryTypeCount;
    vkshim.real.GetBufferMemoryRequirements(device, buffer, requirements);
    if (c->type_count) requirements->memoryTypeBits = count < 32 ? (1u << count) - 1 : UINT32_MAX;
    if (c->buffer_type_bits) requirements->memoryTypeBits &= c->buffer_type_bits;
    if (requirements->alignment < c->buffer_alignment)
        requirements->alignment = c->buffer_alignment;
}

static VKAPI_ATTR void VKAPI_CALL vkshim_GetBufferMemoryRequirements(
    VkDevice device, VkBuffer buffer, VkMemoryRequirements *requirements) {
    vkshim_enter(VKSHIM_GetBufferMemoryRequirements);
    vkshim_requirements(device, buffer, requirements);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_BindBufferMemory(VkDevice device, VkBuffer buffer,
                                                              VkDeviceMemory memory,
                                                              VkDeviceSize offset) {
    VkResult result = vkshim_enter(VKSHIM_BindBufferMemory);
    vkshim_object *b = vkshim_need(VKSHIM_BindBufferMemory, VKSHIM_BUFFER, VKSHIM_KEY(buffer));
    const vkshim_object *m =
        vkshim_need(VKSHIM_BindBufferMemory, VKSHIM_MEMORY, VKSHIM_KEY(memory));
    VkMemoryRequirements needs;
    if (result || !b || !m) return vkshim_leave(result ? result : VK_ERROR_OUT_OF_DEVICE_MEMORY);
    vkshim_requirements(device, buffer, &needs);
    if (b->memory) vkshim_violate("vkBindBufferMemory: buffer: has memory already");
    if (!(needs.memoryTypeBits & (1u << m->type)))
        vkshim_violate("vkBindBufferMemory: memory: of a type that it may not have");
    if (offset % needs.alignment)
        vkshim_violate("vkBindBufferMemory: memoryOffset: not a multiple of the alignment");
    if (offset >= m->bytes || needs.size > m->bytes - offset)
        vkshim_violate("vkBindBufferMemory: memoryOffset: the memory ends before the buffer");
    else result = vkshim.real.BindBufferMemory(device, buffer, memory, offset);
    if (!result) {
        b->memory = VKSHIM_KEY(memory);
        b->memory_offset = offset;
    }
    return vkshim_leave(result);
}

// ============================================================================
// Shaders, pipelines, descriptors
// ============================================================================

// vkDestroyX for what needs no more than the common checks.
#define VKSHIM_DESTROY(Name, KIND) \
    static VKAPI_ATTR void VKAPI_CALL vkshim_Destroy##Name( \
        VkDevice device, Vk##Name handle, const VkAllocationCallbacks *callbacks) { \
        vkshim_enter(VKSHIM_Destroy##Name); \
        if (vkshim_start_destroy(VKSHIM_Destroy##Name, KIND, VKSHIM_KEY(handle), callbacks)) { \
            vkshim.real.Destroy##Name(device, handle, callbacks); \
            vkshim_end_destroy(KIND, VKSHIM_KEY(handle)); \
        } \
        vkshim_leave(VK_SUCCESS); \
    }

// vkCreateX likewise; NOTE(object, info) stores what later checks need.
#define VKSHIM_CREATE(Name, KIND, NOTE) \
    static VKAPI_ATTR VkResult VKAPI_CALL vkshim_Create##Name( \
        VkDevice device, const Vk##Name##CreateInfo *info, const VkAllocationCallbacks *callbacks, \
        Vk##Name *handle) { \
        VkResult result = vkshim_enter(VKSHIM_Create##Name); \
        if (!result) result = vkshim.real.Create##Name(device, info, callbacks, handle); \
        if (!result) \
            NOTE(vkshim_track(KIND, VKSHIM_KEY(*handle), VKSHIM_POINTER_KEY(device), \
                              callbacks != NULL), \
                 info); \
        else memset(handle, VKSHIM_POISON, sizeof *handle); \
        return vkshim_leave(result); \
    }

// The next instruction of a kind in a shader, from the word *at on; NULL = there is none.
static const uint32_t *vkshim_next_instruction(const vkshim_object *shader, uint32_t op, size_t *at) {
    while (*at < shader->word_count) {
        const uint32_t *w = &shader->words[*at];
        if (!(w[0] >> 16)) return NULL;
        *at += w[0] >> 16;
        if ((w[0] & 0xFFFFu) == op) return w;
    }
    return NULL;
}

// Whether an id, or a member of the structure that it is, is declared as not written (SPIR-V: OpDecorate 71, OpMemberDecorate 72,
// NonWritable 24).
static int vkshim_is_not_written(const vkshim_object *shader, uint32_t id) {
    const uint32_t *w;
    size_t at = 5;
    while ((w = vkshim_next_instruction(shader, 71, &at)) != NULL) if (w[1] == id && w[2] == 24) return 1;
    at = 5;
    while ((w = vkshim_next_instruction(shader, 72, &at)) != NULL) if (w[1] == id && w[3] == 24) return 1;
    return 0;
}

// The bindings that a shader does not write: by its variables (59), whose types are pointers (32) to structures.
static uint32_t vkshim_read_only_bindings(const vkshim_object *shader) {
    const uint32_t *w, *v, *p;
    size_t at = 5, from;
    uint32_t bindings = 0;
    while ((w = vkshim_next_instruction(shader, 71, &at)) != NULL) {
        if (w[2] != 33 || w[3] > 31) continue;  // Binding
        from = 5;
        while ((v = vkshim_next_instruction(shader, 59, &from)) != NULL && v[2] != w[1]) {}
        from = 5;
        while (v && (p = vkshim_next_instruction(shader, 32, &from)) != NULL && p[1] != v[1]) {}
        if (v && (vkshim_is_not_written(shader, v[2]) || (p && vkshim_is_not_written(shader, p[3])))) bindings |= 1u << w[3];
    }
    return bindings;
}

static void vkshim_note_shader(vkshim_object *o, const VkShaderModuleCreateInfo *info) {
    o->word_count = info->codeSize / 4;
    o->words = (uint32_t *)vkshim_duplicate(info->pCode, info->codeSize);
    o->read_only = vkshim_read_only_bindings(o);
}

static int vkshim_is_storage(VkDescriptorType type) {
    return type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER ||
           type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;
}

static uint64_t vkshim_mix(uint64_t hash, const void *bytes, size_t count) {  // FNV-1a
    const unsigned char *p = (const unsigned char *)bytes;
    while (count--) hash = (hash ^ *p++) * 0x100000001B3u;
    return hash;
}

static void vkshim_note_set_layout(vkshim_object *o, const VkDescriptorSetLayoutCreateInfo *info) {
    uint32_t i;
    o->shape = 0xCBF29CE484222325u;
    for (i = 0; i < info->bindingCount; i++) {
        const VkDescriptorSetLayoutBinding *binding = &info->pBindings[i];
        o->shape = vkshim_mix(o->shape, &binding->binding, sizeof binding->binding);
        o->shape = vkshim_mix(o->shape, &binding->descriptorType, sizeof binding->descriptorType);
        o->shape = vkshim_mix(o->shape, &binding->descriptorCount, sizeof binding->descriptorCount);
        o->shape = vkshim_mix(o->shape, &binding->stageFlags, sizeof binding->stageFlags);
    }
    for (i = 0; i < info->bindingCount; i++)
        if (vkshim_is_storage(info->pBindings[i].descriptorType)
            && (info->pBindings[i].stageFlags & VK_SHADER_STAGE_COMPUTE_BIT))
            o->storage_count += info->pBindings[i].descriptorCount;
}

static void vkshim_note_pipeline_layout(vkshim_object *o, const VkPipelineLayoutCreateInfo *info) {
    const VkPhysicalDeviceLimits *limits = &vkshim.properties.limits;
    uint32_t i;
    o->shape = vkshim_mix(0xCBF29CE484222325u, info->pPushConstantRanges,
                          info->pushConstantRangeCount * sizeof *info->pPushConstantRanges);
    for (i = 0; i < info->setLayoutCount; i++) {
        const vkshim_object *set = vkshim_need(VKSHIM_CreatePipelineLayout, VKSHIM_SET_LAYOUT,
                                               VKSHIM_KEY(info->pSetLayouts[i]));
        if (set) o->storage_count += set->storage_count;
        if (set) o->shape = vkshim_mix(o->shape, &set->shape, sizeof set->shape);
    }
    if (o->storage_count > limits->maxPerStageDescriptorStorageBuffers)
        vkshim_violate("vkCreatePipelineLayout: pSetLayouts: %u storage buffers, the limit is %u",
                       o->storage_count, limits->maxPerStageDescriptorStorageBuffers);
    for (i = 0; i < info->pushConstantRangeCount; i++) {
        const VkPushConstantRange *range = &info->pPushConstantRanges[i];
        if (range->size > limits->maxPushConstantsSize ||
            range->offset > limits->maxPushConstantsSize - range->size)
            vkshim_violate(
                "vkCreatePipelineLayout: pPushConstantRanges: up to byte %u, the limit is %u",
                range->offset + range->size, limits->maxPushConstantsSize);
    }
}

static void vkshim_note_nothing(vkshim_object *o, const void *info) { (void)o; (void)info; }

VKSHIM_CREATE(ShaderModule, VKSHIM_SHADER, vkshim_note_shader)
VKSHIM_DESTROY(ShaderModule, VKSHIM_SHADER)
VKSHIM_CREATE(DescriptorSetLayout, VKSHIM_SET_LAYOUT, vkshim_note_set_layout)
VKSHIM_DESTROY(DescriptorSetLayout, VKSHIM_SET_LAYOUT)
VKSHIM_CREATE(PipelineLayout, VKSHIM_PIPELINE_LAYOUT, vkshim_note_pipeline_layout)
VKSHIM_DESTROY(PipelineLayout, VKSHIM_PIPELINE_LAYOUT)

// 1 = the pipeline was kept, and stays.
static int vkshim_keep_pipeline(VkPipeline pipeline) {
    vkshim_kept *kept = vkshim.kept;
    while (kept && kept->pipeline != pipeline) kept = kept->next;
    if (kept) kept->is_used = 0;
    return kept != NULL;
}

static VKAPI_ATTR void VKAPI_CALL vkshim_DestroyPipeline(VkDevice device, VkPipeline pipeline,
                                                         const VkAllocationCallbacks *callbacks) {
    vkshim_enter(VKSHIM_DestroyPipeline);
    if (vkshim_start_destroy(VKSHIM_DestroyPipeline, VKSHIM_PIPELINE, VKSHIM_KEY(pipeline), callbacks)) {
        if (!vkshim_keep_pipeline(pipeline)) vkshim.real.DestroyPipeline(device, pipeline, callbacks);
        vkshim_end_destroy(VKSHIM_PIPELINE, VKSHIM_KEY(pipeline));
    }
    vkshim_leave(VK_SUCCESS);
}

VKSHIM_CREATE(DescriptorPool, VKSHIM_DESCRIPTOR_POOL, vkshim_note_nothing)
VKSHIM_DESTROY(Buffer, VKSHIM_BUFFER)

// An instruction of SPIR-V: the next with this opcode and words [at] = a and [at + 1] = b, or NULL. at 0 = any.
static const uint32_t *vkshim_find_words(const vkshim_object *shader, uint32_t opcode, uint32_t at,
                                         uint32_t a, int matches_b, uint32_t b) {
    size_t i = 5;
    while (i < shader->word_count) {
        const uint32_t *w = shader->words + i;
        uint32_t count = w[0] >> 16;
        if (!count || count > shader->word_count - i) return NULL;
        if ((w[0] & 0xFFFF) == opcode && (!at || (count > at && w[at] == a))
            && (!matches_b || (count > at + 1 && w[at + 1] == b))) return w;
        i += count;
    }
    return NULL;
}

enum {  // of the SPIR-V specification
    VKSHIM_OP_EXECUTION_MODE = 16,
    VKSHIM_OP_CONSTANT = 43,
    VKSHIM_OP_COMPOSITE = 44,
    VKSHIM_OP_SPEC_CONSTANT = 50,
    VKSHIM_OP_SPEC_COMPOSITE = 51,
    VKSHIM_OP_DECORATE = 71,
    VKSHIM_OP_EXECUTION_MODE_ID = 331,
    VKSHIM_MODE_LOCAL_SIZE = 17,
    VKSHIM_MODE_LOCAL_SIZE_ID = 38,
    VKSHIM_DECORATION_SPEC_ID = 1,
    VKSHIM_DECORATION_BUILT_IN = 11,
    VKSHIM_BUILT_IN_WORKGROUP_SIZE = 25
};

// The value of a 32-bit constant after specialisation.
static uint32_t vkshim_constant(const vkshim_object *shader, uint32_t id,
                                const VkSpecializationInfo *special) {
    const uint32_t *plain = vkshim_find_words(shader, VKSHIM_OP_CONSTANT, 2, id, 0, 0);
    const uint32_t *w = vkshim_find_words(shader, VKSHIM_OP_SPEC_CONSTANT, 2, id, 0, 0);
    const uint32_t *decoration =
        vkshim_find_words(shader, VKSHIM_OP_DECORATE, 1, id, 1, VKSHIM_DECORATION_SPEC_ID);
    uint32_t i, value;
    if (plain) return plain[3];
    if (!w) return 0;
    value = w[3];
    for (i = 0; decoration && special && i < special->mapEntryCount; i++)
        if (special->pMapEntries[i].constantID == decoration[3])
            memcpy(&value, (const char *)special->pData + special->pMapEntries[i].offset,
                   sizeof value);
    return value;
}

static void vkshim_workgroup_size(const vkshim_object *shader, const VkSpecializationInfo *special,
                                  uint32_t size[3]) {
    const uint32_t *w = NULL, *composite = NULL;
    size_t i = 5;
    uint32_t k;
    size[0] = size[1] = size[2] = 0;
    while (i < shader->word_count && !composite &&
           shader->words[i] >> 16) {  // which id is WorkgroupSize
        const uint32_t *d = shader->words + i;
        if ((d[0] & 0xFFFF) == VKSHIM_OP_DECORATE && d[0] >> 16 > 3 &&
            d[2] == VKSHIM_DECORATION_BUILT_IN && d[3] == VKSHIM_BUILT_IN_WORKGROUP_SIZE) {
            composite = vkshim_find_words(shader, VKSHIM_OP_SPEC_COMPOSITE, 2, d[1], 0, 0);
            if (!composite)
                composite = vkshim_find_words(shader, VKSHIM_OP_COMPOSITE, 2, d[1], 0, 0);
        }
        i += d[0] >> 16;
    }
    if (!composite)
        composite = vkshim_find_words(shader, VKSHIM_OP_EXECUTION_MODE_ID, 2,
                                      VKSHIM_MODE_LOCAL_SIZE_ID, 0, 0);
    if (!composite)
        w = vkshim_find_words(shader, VKSHIM_OP_EXECUTION_MODE, 2, VKSHIM_MODE_LOCAL_SIZE, 0, 0);
    for (k = 0; k < 3; k++) {
        if (composite) size[k] = vkshim_constant(shader, composite[3 + k], special);
        else if (w) size[k] = w[3 + k];
    }
}

static void vkshim_check_pipeline(const VkComputePipelineCreateInfo *info) {
    const VkPhysicalDeviceLimits *limits = &vkshim.properties.limits;
    const vkshim_object *shader =
        vkshim_need(VKSHIM_CreateComputePipelines, VKSHIM_SHADER, VKSHIM_KEY(info->stage.module));
    uint32_t size[3], k;
    vkshim_need(VKSHIM_CreateComputePipelines, VKSHIM_PIPELINE_LAYOUT, VKSHIM_KEY(info->layout));
    if (!shader) return;
    vkshim_workgroup_size(shader, info->stage.pSpecializationInfo, size);
    for (k = 0; k < 3; k++)
        if (size[k] > limits->maxComputeWorkGroupSize[k])
            vkshim_violate(
                "vkCreateComputePipelines: workgroup size %u in dimension %u, the limit is %u",
                size[k], k, limits->maxComputeWorkGroupSize[k]);
    if ((uint64_t)size[0] * size[1] * size[2] > limits->maxComputeWorkGroupInvocations)
        vkshim_violate(
            "vkCreateComputePipelines: workgroup of %u x %u x %u, the limit is %u invocations",
            size[0], size[1], size[2], limits->maxComputeWorkGroupInvocations);
}

static uint64_t vkshim_pipeline_shape(const VkComputePipelineCreateInfo *info) {
    const vkshim_object *shader = vkshim_find(VKSHIM_SHADER, VKSHIM_KEY(info->stage.module));
    const vkshim_object *layout = vkshim_find(VKSHIM_PIPELINE_LAYOUT, VKSHIM_KEY(info->layout));
    const VkSpecializationInfo *special = info->stage.pSpecializationInfo;
    uint64_t shape = 0xCBF29CE484222325u;
    if (shader) shape = vkshim_mix(shape, shader->words, shader->word_count * 4);
    if (layout) shape = vkshim_mix(shape, &layout->shape, sizeof layout->shape);
    if (special) shape = vkshim_mix(shape, special->pData, special->dataSize);
    return vkshim_mix(shape, info->stage.pName, strlen(info->stage.pName));
}

// Make one pipeline, or find one that was kept; with callbacks none is.
static VkResult vkshim_make_pipeline(VkDevice device, VkPipelineCache cache, const VkComputePipelineCreateInfo *info,
                                     const VkAllocationCallbacks *callbacks, VkPipeline *pipeline) {
    uint64_t shape = vkshim_pipeline_shape(info);
    int keeps = vkshim.config.keeps_pipelines && !callbacks;
    vkshim_kept *kept = keeps ? vkshim.kept : NULL;
    VkResult result;
    while (kept && (kept->is_used || kept->device != device || kept->shape != shape)) kept = kept->next;
    if (kept) {
        kept->is_used = 1;
        *pipeline = kept->pipeline;
        return VK_SUCCESS;
    }
    result = vkshim.real.CreateComputePipelines(device, cache, 1, info, callbacks, pipeline);
    kept = keeps && !result ? (vkshim_kept *)calloc(1, sizeof *kept) : NULL;
    if (!kept) return result;
    kept->next = vkshim.kept;
    kept->device = device;
    kept->pipeline = *pipeline;
    kept->shape = shape;
    kept->is_used = 1;
    vkshim.kept = kept;
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL
vkshim_CreateComputePipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                              const VkComputePipelineCreateInfo *infos,
                              const VkAllocationCallbacks *callbacks, VkPipeline *pipelines) {
    VkResult result = vkshim_enter(VKSHIM_CreateComputePipelines);
    uint32_t i;
    for (i = 0; !result && i < count; i++) vkshim_check_pipeline(&infos[i]);
    memset(pipelines, 0, count * sizeof *pipelines);
    for (i = 0; !result && i < count; i++)
        result = vkshim_make_pipeline(device, cache, &infos[i], callbacks, &pipelines[i]);
    for (i = 0; i < count; i++) {
        const vkshim_object *shader = vkshim_find(VKSHIM_SHADER, VKSHIM_KEY(infos[i].stage.module));
        if (!pipelines[i]) continue;
        vkshim_track(VKSHIM_PIPELINE, VKSHIM_KEY(pipelines[i]), VKSHIM_POINTER_KEY(device), callbacks != NULL)
            ->read_only = shader ? shader->read_only : 0;
    }
    return vkshim_leave(result);
}

static void vkshim_need_idle_children(vkshim_function function, vkshim_kind kind, uint64_t parent) {
    const vkshim_object *o;
    uint32_t i;
    for (i = 0; i < VKSHIM_BUCKETS; i++)
        for (o = vkshim.buckets[i]; o; o = o->next)
            if (o->kind == kind && o->parent == parent) vkshim_need_idle(function, kind, o->key);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_DestroyDescriptorPool(
    VkDevice device, VkDescriptorPool pool, const VkAllocationCallbacks *callbacks) {
    uint64_t key = VKSHIM_KEY(pool);
    vkshim_enter(VKSHIM_DestroyDescriptorPool);
    if (vkshim_start_destroy(VKSHIM_DestroyDescriptorPool, VKSHIM_DESCRIPTOR_POOL, key,
                             callbacks)) {
        vkshim_need_idle_children(VKSHIM_DestroyDescriptorPool, VKSHIM_DESCRIPTOR_SET, key);
        if (key) vkshim_forget_children(VKSHIM_DESCRIPTOR_SET, key);
        vkshim.real.DestroyDescriptorPool(device, pool, callbacks);
        vkshim_end_destroy(VKSHIM_DESCRIPTOR_POOL, key);
    }
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_ResetDescriptorPool(VkDevice device,
                                                                 VkDescriptorPool pool,
                                                                 VkDescriptorPoolResetFlags flags) {
    VkResult result = vkshim_enter(VKSHIM_ResetDescriptorPool);
    if (!result &&
        vkshim_need(VKSHIM_ResetDescriptorPool, VKSHIM_DESCRIPTOR_POOL, VKSHIM_KEY(pool))) {
        vkshim_need_idle_children(VKSHIM_ResetDescriptorPool, VKSHIM_DESCRIPTOR_SET,
                                  VKSHIM_KEY(pool));
        vkshim_forget_children(VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(pool));
        result = vkshim.real.ResetDescriptorPool(device, pool, flags);
    }
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_AllocateDescriptorSets(
    VkDevice device, const VkDescriptorSetAllocateInfo *info, VkDescriptorSet *sets) {
    VkResult result = vkshim_enter(VKSHIM_AllocateDescriptorSets);
    uint32_t i;
    if (!result) result = vkshim.real.AllocateDescriptorSets(device, info, sets);
    for (i = 0; i < info->descriptorSetCount; i++) {
        if (result) sets[i] = VK_NULL_HANDLE;
        else
            vkshim_track(VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(sets[i]),
                         VKSHIM_KEY(info->descriptorPool), 0);
    }
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_FreeDescriptorSets(VkDevice device,
                                                                VkDescriptorPool pool,
                                                                uint32_t count,
                                                                const VkDescriptorSet *sets) {
    VkResult result = vkshim_enter(VKSHIM_FreeDescriptorSets);
    uint32_t i;
    for (i = 0; !result && i < count; i++) {
        if (!sets[i] ||
            !vkshim_need(VKSHIM_FreeDescriptorSets, VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(sets[i])))
            continue;
        vkshim_need_idle(VKSHIM_FreeDescriptorSets, VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(sets[i]));
        vkshim_end_destroy(VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(sets[i]));
        result = vkshim.real.FreeDescriptorSets(device, pool, 1, &sets[i]);
    }
    return vkshim_leave(result);
}

static vkshim_slot *vkshim_find_slot(vkshim_object *set, uint32_t binding, uint32_t element) {
    vkshim_slot *slot;
    uint32_t i;
    for (i = 0; i < set->slot_count; i++)
        if (set->slots[i].binding == binding && set->slots[i].element == element)
            return &set->slots[i];
    set->slots = (vkshim_slot *)vkshim_grow(set->slots, set->slot_count, &set->slot_room,
                                            sizeof *set->slots);
    slot = &set->slots[set->slot_count++];
    memset(slot, 0, sizeof *slot);
    slot->binding = binding;
    slot->element = element;
    return slot;
}

static void vkshim_check_descriptor(const VkDescriptorBufferInfo *info, const vkshim_object *buffer,
                                    uint64_t bytes) {
    const VkPhysicalDeviceLimits *limits = &vkshim.properties.limits;
    if (info->offset % limits->minStorageBufferOffsetAlignment)
        vkshim_violate("vkUpdateDescriptorSets: offset %llu: not a multiple of %llu",
                       (unsigned long long)info->offset,
                       (unsigned long long)limits->minStorageBufferOffsetAlignment);
    if (bytes > limits->maxStorageBufferRange)
        vkshim_violate("vkUpdateDescriptorSets: range %llu: above maxStorageBufferRange %u",
                       (unsigned long long)bytes, limits->maxStorageBufferRange);
    if (info->offset >= buffer->bytes || !bytes || bytes > buffer->bytes - info->offset)
        vkshim_violate("vkUpdateDescriptorSets: offset %llu, range %llu: outside the buffer",
                       (unsigned long long)info->offset, (unsigned long long)info->range);
    if (!(buffer->usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT))
        vkshim_violate("vkUpdateDescriptorSets: buffer: made without STORAGE_BUFFER");
}

static void vkshim_write_descriptors(const VkWriteDescriptorSet *write) {
    vkshim_object *set =
        vkshim_need(VKSHIM_UpdateDescriptorSets, VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(write->dstSet));
    uint32_t i;
    if (!set) return;
    vkshim_need_idle(VKSHIM_UpdateDescriptorSets, VKSHIM_DESCRIPTOR_SET, set->key);
    for (i = 0; vkshim_is_storage(write->descriptorType) && i < write->descriptorCount; i++) {
        const VkDescriptorBufferInfo *info = &write->pBufferInfo[i];
        const vkshim_object *b =
            vkshim_need(VKSHIM_UpdateDescriptorSets, VKSHIM_BUFFER, VKSHIM_KEY(info->buffer));
        vkshim_slot *slot = vkshim_find_slot(set, write->dstBinding, write->dstArrayElement + i);
        int is_dynamic = write->descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;
        uint64_t bytes;
        if (!b) continue;
        bytes = info->range == VK_WHOLE_SIZE ? b->bytes - info->offset : info->range;
        vkshim_check_descriptor(info, b, bytes);
        slot->buffer = b->key;
        slot->begin = is_dynamic ? 0 : info->offset;
        slot->end = is_dynamic ? b->bytes : info->offset + bytes;
    }
}

static VKAPI_ATTR void VKAPI_CALL vkshim_UpdateDescriptorSets(VkDevice device, uint32_t write_count,
                                                              const VkWriteDescriptorSet *writes,
                                                              uint32_t copy_count,
                                                              const VkCopyDescriptorSet *copies) {
    uint32_t i, k;
    vkshim_enter(VKSHIM_UpdateDescriptorSets);
    for (i = 0; i < write_count; i++) vkshim_write_descriptors(&writes[i]);
    for (i = 0; i < copy_count; i++) {
        const VkCopyDescriptorSet *c = &copies[i];
        vkshim_object *from =
            vkshim_need(VKSHIM_UpdateDescriptorSets, VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(c->srcSet));
        vkshim_object *to =
            vkshim_need(VKSHIM_UpdateDescriptorSets, VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(c->dstSet));
        for (k = 0; from && to && k < c->descriptorCount; k++) {
            vkshim_slot slot = *vkshim_find_slot(from, c->srcBinding, c->srcArrayElement + k);
            slot.binding = c->dstBinding;
            slot.element = c->dstArrayElement + k;
            *vkshim_find_slot(to, slot.binding, slot.element) = slot;
        }
    }
    vkshim.real.UpdateDescriptorSets(device, write_count, writes, copy_count, copies);
    vkshim_leave(VK_SUCCESS);
}

// ============================================================================
// Command buffers
// ============================================================================

static VKAPI_ATTR VkResult VKAPI_CALL
vkshim_CreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo *info,
                         const VkAllocationCallbacks *callbacks, VkCommandPool *pool) {
    VkResult result = vkshim_enter(VKSHIM_CreateCommandPool);
    VkCommandPoolCreateInfo real = *info;
    if (vkshim.config.family_count) {
        if (info->queueFamilyIndex >= vkshim.config.family_count)
            vkshim_violate("vkCreateCommandPool: queueFamilyIndex: there is no such family");
        real.queueFamilyIndex = 0;
    }
    if (!result) result = vkshim.real.CreateCommandPool(device, &real, callbacks, pool);
    if (!result)
        vkshim_track(VKSHIM_COMMAND_POOL, VKSHIM_KEY(*pool), VKSHIM_POINTER_KEY(device),
                     callbacks != NULL)
            ->family = info->queueFamilyIndex;
    else memset(pool, VKSHIM_POISON, sizeof *pool);
    return vkshim_leave(result);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_DestroyCommandPool(
    VkDevice device, VkCommandPool pool, const VkAllocationCallbacks *callbacks) {
    uint64_t key = VKSHIM_KEY(pool);
    vkshim_enter(VKSHIM_DestroyCommandPool);
    if (vkshim_start_destroy(VKSHIM_DestroyCommandPool, VKSHIM_COMMAND_POOL, key, callbacks)) {
        vkshim_need_idle_children(VKSHIM_DestroyCommandPool, VKSHIM_COMMANDS, key);
        if (key) vkshim_forget_children(VKSHIM_COMMANDS, key);
        vkshim.real.DestroyCommandPool(device, pool, callbacks);
        vkshim_end_destroy(VKSHIM_COMMAND_POOL, key);
    }
    vkshim_leave(VK_SUCCESS);
}

static void vkshim_start_commands(vkshim_object *commands, vkshim_commands_state state) {
    commands->state = state;
    commands->event_count = 0;
    memset(commands->bound_sets, 0, sizeof commands->bound_sets);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_ResetCommandPool(VkDevice device, VkCommandPool pool,
                                                              VkCommandPoolResetFlags flags) {
    VkResult result = vkshim_enter(VKSHIM_ResetCommandPool);
    uint32_t i;
    vkshim_object *o;
    if (!result && vkshim_need(VKSHIM_ResetCommandPool, VKSHIM_COMMAND_POOL, VKSHIM_KEY(pool))) {
        vkshim_need_idle_children(VKSHIM_ResetCommandPool, VKSHIM_COMMANDS, VKSHIM_KEY(pool));
        for (i = 0; i < VKSHIM_BUCKETS; i++)
            for (o = vkshim.buckets[i]; o; o = o->next)
                if (o->kind == VKSHIM_COMMANDS && o->parent == VKSHIM_KEY(pool))
                    vkshim_start_commands(o, VKSHIM_INITIAL);
        result = vkshim.real.ResetCommandPool(device, pool, flags);
    }
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_AllocateCommandBuffers(
    VkDevice device, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *commands) {
    VkResult result = vkshim_enter(VKSHIM_AllocateCommandBuffers);
    const vkshim_object *pool = vkshim_need(VKSHIM_AllocateCommandBuffers, VKSHIM_COMMAND_POOL,
                                            VKSHIM_KEY(info->commandPool));
    uint32_t i;
    if (!result && !pool) result = VK_ERROR_OUT_OF_HOST_MEMORY;
    if (!result) result = vkshim.real.AllocateCommandBuffers(device, info, commands);
    for (i = 0; i < info->commandBufferCount; i++) {
        if (result) commands[i] = NULL;
        else
            vkshim_track(VKSHIM_COMMANDS, VKSHIM_POINTER_KEY(commands[i]), pool->key, 0)->family =
                pool->family;
    }
    return vkshim_leave(result);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_FreeCommandBuffers(VkDevice device, VkCommandPool pool,
                                                            uint32_t count,
                                                            const VkCommandBuffer *commands) {
    uint32_t i;
    vkshim_enter(VKSHIM_FreeCommandBuffers);
    for (i = 0; i < count; i++) {
        uint64_t key = VKSHIM_POINTER_KEY(commands[i]);
        if (!key || !vkshim_need(VKSHIM_FreeCommandBuffers, VKSHIM_COMMANDS, key)) continue;
        vkshim_need_idle(VKSHIM_FreeCommandBuffers, VKSHIM_COMMANDS, key);
        vkshim.real.FreeCommandBuffers(device, pool, 1, &commands[i]);
        vkshim_end_destroy(VKSHIM_COMMANDS, key);
    }
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR VkResult VKAPI_CALL
vkshim_BeginCommandBuffer(VkCommandBuffer commands, const VkCommandBufferBeginInfo *info) {
    VkResult result = vkshim_enter(VKSHIM_BeginCommandBuffer);
    vkshim_object *o =
        vkshim_need(VKSHIM_BeginCommandBuffer, VKSHIM_COMMANDS, VKSHIM_POINTER_KEY(commands));
    if (!result && o) {
        vkshim_need_idle(VKSHIM_BeginCommandBuffer, VKSHIM_COMMANDS, o->key);
        if (o->state == VKSHIM_RECORDING)
            vkshim_violate("vkBeginCommandBuffer: commandBuffer: records already");
        result = vkshim.real.BeginCommandBuffer(commands, info);
        if (!result) vkshim_start_commands(o, VKSHIM_RECORDING);
        o->once = info->flags;
    }
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_EndCommandBuffer(VkCommandBuffer commands) {
    VkResult result = vkshim_enter(VKSHIM_EndCommandBuffer), real;
    vkshim_object *o =
        vkshim_need(VKSHIM_EndCommandBuffer, VKSHIM_COMMANDS, VKSHIM_POINTER_KEY(commands));
    if (!o) return vkshim_leave(VK_ERROR_OUT_OF_HOST_MEMORY);
    if (o->state != VKSHIM_RECORDING)
        vkshim_violate("vkEndCommandBuffer: commandBuffer: does not record");
    real = vkshim.real.EndCommandBuffer(
        commands);  // even if the call is to fail, so that it can be reset
    if (!result) result = real;
    o->state = result ? VKSHIM_INVALID : VKSHIM_EXECUTABLE;
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_ResetCommandBuffer(VkCommandBuffer commands,
                                                                VkCommandBufferResetFlags flags) {
    VkResult result = vkshim_enter(VKSHIM_ResetCommandBuffer);
    vkshim_object *o =
        vkshim_need(VKSHIM_ResetCommandBuffer, VKSHIM_COMMANDS, VKSHIM_POINTER_KEY(commands));
    if (!result && o) {
        vkshim_need_idle(VKSHIM_ResetCommandBuffer, VKSHIM_COMMANDS, o->key);
        result = vkshim.real.ResetCommandBuffer(commands, flags);
        if (!result) vkshim_start_commands(o, VKSHIM_INITIAL);
    }
    return vkshim_leave(result);
}

// The command buffer of a command; a violation if it is not recording.
static vkshim_object *vkshim_start_command(vkshim_function function, VkCommandBuffer commands) {
    vkshim_object *o;
    vkshim_enter(function);
    o = vkshim_need(function, VKSHIM_COMMANDS, VKSHIM_POINTER_KEY(commands));
    if (o && o->state != VKSHIM_RECORDING)
        vkshim_violate("%s: commandBuffer: does not record", vkshim_function_names[function]);
    return o;
}

static int vkshim_is_transfer_family(uint32_t family) {
    return family && family < vkshim.config.family_count &&
           !(vkshim.config.families[family].flags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT));
}

static int vkshim_is_transfer_only(const vkshim_object *commands) {
    return vkshim_is_transfer_family(commands->family);
}

static void vkshim_need_compute(vkshim_function function, const vkshim_object *commands) {
    if (commands && vkshim_is_transfer_only(commands))
        vkshim_violate("%s: family %u does transfers only", vkshim_function_names[function], commands->family);
}

static void vkshim_need_stages(vkshim_function function, uint32_t family, VkPipelineStageFlags stages) {
    const VkPipelineStageFlags all =
        VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT |
        VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT | VK_PIPELINE_STAGE_HOST_BIT |
        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    if (vkshim_is_transfer_family(family) && (stages & ~all))
        vkshim_violate("%s: stages 0x%x: family %u does transfers only",
                       vkshim_function_names[function], stages & ~all, family);
}

static uint64_t vkshim_buffer_end(uint64_t key, uint64_t offset, uint64_t size) {
    const vkshim_object *b = vkshim_find(VKSHIM_BUFFER, key);
    return size != VK_WHOLE_SIZE ? offset + size : b ? b->bytes : offset;
}

static void vkshim_add_range(vkshim_function function, vkshim_object *commands, vkshim_use use,
                             VkBuffer buffer, uint64_t offset, uint64_t size) {
    const vkshim_object *b = vkshim_need(function, VKSHIM_BUFFER, VKSHIM_KEY(buffer));
    vkshim_event *e;
    if (!b || !commands) return;
    e = vkshim_add_event(commands, use, b->key);
    e->begin = offset;
    e->end = vkshim_buffer_end(b->key, offset, size);
    if (e->begin > b->bytes || e->end > b->bytes || e->end < e->begin)
        vkshim_violate("%s: offset %llu: the buffer ends before the range",
                       vkshim_function_names[function], (unsigned long long)offset);
}

// A barrier to pass on: without queue families, which only the shim has.
static void vkshim_note_barrier(vkshim_object *commands, VkBufferMemoryBarrier *barrier) {
    uint32_t from = barrier->srcQueueFamilyIndex, to = barrier->dstQueueFamilyIndex;
    vkshim_use use = VKSHIM_TOUCH;
    int moves = vkshim.config.family_count && from != to;
    if (moves && (from >= vkshim.config.family_count || to >= vkshim.config.family_count))
        vkshim_violate("vkCmdPipelineBarrier: families %u, %u: there are %u", from, to, vkshim.config.family_count);
    if (moves && commands && commands->family != from && commands->family != to)
        vkshim_violate("vkCmdPipelineBarrier: families %u, %u: recorded for family %u", from, to,
                       commands->family);
    if (moves && commands) use = commands->family == from ? VKSHIM_RELEASE : VKSHIM_ACQUIRE;
    vkshim_add_range(VKSHIM_CmdPipelineBarrier, commands, use, barrier->buffer, barrier->offset,
                     barrier->size);
    if (moves && commands && commands->event_count) {
        commands->events[commands->event_count - 1].from = from;
        commands->events[commands->event_count - 1].to = to;
    }
    if (vkshim.config.family_count)
        barrier->srcQueueFamilyIndex = barrier->dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdPipelineBarrier(
    VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
    VkDependencyFlags flags, uint32_t memory_count, const VkMemoryBarrier *memory,
    uint32_t buffer_count, const VkBufferMemoryBarrier *buffers, uint32_t image_count,
    const VkImageMemoryBarrier *images) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdPipelineBarrier, commands);
    VkBufferMemoryBarrier *real =
        (VkBufferMemoryBarrier *)vkshim_duplicate(buffers, buffer_count * sizeof *buffers);
    uint32_t i;
    if (o) vkshim_need_stages(VKSHIM_CmdPipelineBarrier, o->family, from | to);
    for (i = 0; i < buffer_count; i++) vkshim_note_barrier(o, &real[i]);
    vkshim.real.CmdPipelineBarrier(commands, from, to, flags, memory_count, memory, buffer_count,
                                   real, image_count, images);
    free(real);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdCopyBuffer(VkCommandBuffer commands, VkBuffer from,
                                                       VkBuffer to, uint32_t count,
                                                       const VkBufferCopy *regions) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdCopyBuffer, commands);
    uint32_t i;
    for (i = 0; i < count; i++) {
        vkshim_add_range(VKSHIM_CmdCopyBuffer, o, VKSHIM_READ, from, regions[i].srcOffset,
                         regions[i].size);
        vkshim_add_range(VKSHIM_CmdCopyBuffer, o, VKSHIM_WRITE, to, regions[i].dstOffset,
                         regions[i].size);
    }
    vkshim.real.CmdCopyBuffer(commands, from, to, count, regions);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdFillBuffer(VkCommandBuffer commands, VkBuffer to,
                                                       VkDeviceSize offset, VkDeviceSize size,
                                                       uint32_t word) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdFillBuffer, commands);
    vkshim_add_range(VKSHIM_CmdFillBuffer, o, VKSHIM_WRITE, to, offset, size);
    if (offset % 4 || (size != VK_WHOLE_SIZE && size % 4))
        vkshim_violate("vkCmdFillBuffer: offset %llu, size %llu: not multiples of 4",
                       (unsigned long long)offset, (unsigned long long)size);
    if (o && vkshim_is_transfer_only(o) &&
        vkshim_version(vkshim.properties.apiVersion) < VK_API_VERSION_1_1)
        vkshim_violate("vkCmdFillBuffer: Vulkan 1.0 fills on graphics and compute queues only");
    vkshim.real.CmdFillBuffer(commands, to, offset, size, word);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdUpdateBuffer(VkCommandBuffer commands, VkBuffer to,
                                                         VkDeviceSize offset, VkDeviceSize size,
                                                         const void *data) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdUpdateBuffer, commands);
    vkshim_add_range(VKSHIM_CmdUpdateBuffer, o, VKSHIM_WRITE, to, offset, size);
    vkshim.real.CmdUpdateBuffer(commands, to, offset, size, data);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdBindPipeline(VkCommandBuffer commands,
                                                         VkPipelineBindPoint point,
                                                         VkPipeline pipeline) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdBindPipeline, commands);
    const vkshim_object *bound;
    vkshim_need_compute(VKSHIM_CmdBindPipeline, o);
    bound = o ? vkshim_need(VKSHIM_CmdBindPipeline, VKSHIM_PIPELINE, VKSHIM_KEY(pipeline)) : NULL;
    if (bound) {
        vkshim_add_event(o, VKSHIM_TOUCH, VKSHIM_KEY(pipeline));
        o->read_only = bound->read_only;
    }
    vkshim.real.CmdBindPipeline(commands, point, pipeline);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdBindDescriptorSets(
    VkCommandBuffer commands, VkPipelineBindPoint point, VkPipelineLayout layout, uint32_t first,
    uint32_t count, const VkDescriptorSet *sets, uint32_t offset_count, const uint32_t *offsets) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdBindDescriptorSets, commands);
    uint64_t alignment = vkshim.properties.limits.minStorageBufferOffsetAlignment;
    uint32_t i;
    vkshim_need_compute(VKSHIM_CmdBindDescriptorSets, o);
    for (i = 0; i < offset_count; i++)
        if (offsets[i] % alignment)
            vkshim_violate("vkCmdBindDescriptorSets: dynamic offset %u: not a multiple of %llu",
                           offsets[i], (unsigned long long)alignment);
    for (i = 0; o && i < count; i++) {
        if (!vkshim_need(VKSHIM_CmdBindDescriptorSets, VKSHIM_DESCRIPTOR_SET, VKSHIM_KEY(sets[i])))
            continue;
        vkshim_add_event(o, VKSHIM_TOUCH, VKSHIM_KEY(sets[i]));
        if (first + i < VKSHIM_BOUND_SETS) o->bound_sets[first + i] = VKSHIM_KEY(sets[i]);
    }
    vkshim.real.CmdBindDescriptorSets(commands, point, layout, first, count, sets, offset_count,
                                      offsets);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdPushConstants(VkCommandBuffer commands,
                                                          VkPipelineLayout layout,
                                                          VkShaderStageFlags stages,
                                                          uint32_t offset, uint32_t size,
                                                          const void *values) {
    uint32_t limit = vkshim_start_command(VKSHIM_CmdPushConstants, commands)
        ? vkshim.properties.limits.maxPushConstantsSize : 0;
    if (size > limit || offset > limit - size)
        vkshim_violate("vkCmdPushConstants: up to byte %u, the limit is %u", offset + size, limit);
    vkshim.real.CmdPushConstants(commands, layout, stages, offset, size, values);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdDispatch(VkCommandBuffer commands, uint32_t x,
                                                     uint32_t y, uint32_t z) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdDispatch, commands);
    const uint32_t *limit = vkshim.properties.limits.maxComputeWorkGroupCount;
    uint32_t i, j;
    vkshim_need_compute(VKSHIM_CmdDispatch, o);
    if (x > limit[0] || y > limit[1] || z > limit[2])
        vkshim_violate("vkCmdDispatch: %u x %u x %u groups, the limit is %u x %u x %u", x, y, z,
                       limit[0], limit[1], limit[2]);
    for (i = 0; o && i < VKSHIM_BOUND_SETS; i++) {
        const vkshim_object *set = vkshim_find(VKSHIM_DESCRIPTOR_SET, o->bound_sets[i]);
        for (j = 0; set && j < set->slot_count; j++) {
            int reads = set->slots[j].binding < 32 && o->read_only >> set->slots[j].binding & 1;
            vkshim_event *e = vkshim_add_event(o, reads ? VKSHIM_SHADE_READ : VKSHIM_SHADE, set->slots[j].buffer);
            e->begin = set->slots[j].begin;
            e->end = set->slots[j].end;
        }
    }
    // drivers of devices crash in commands that do not record
    if (o && o->state == VKSHIM_RECORDING) vkshim.real.CmdDispatch(commands, x, y, z);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdResetQueryPool(VkCommandBuffer commands,
                                                           VkQueryPool pool, uint32_t first,
                                                           uint32_t count) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdResetQueryPool, commands);
    vkshim_need_compute(VKSHIM_CmdResetQueryPool, o);
    if (o) vkshim_add_event(o, VKSHIM_TOUCH, VKSHIM_KEY(pool));
    vkshim.real.CmdResetQueryPool(commands, pool, first, count);
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_CmdWriteTimestamp(VkCommandBuffer commands,
                                                           VkPipelineStageFlagBits stage,
                                                           VkQueryPool pool, uint32_t query) {
    vkshim_object *o = vkshim_start_command(VKSHIM_CmdWriteTimestamp, commands);
    if (vkshim.config.no_timestamps)
        vkshim_violate("vkCmdWriteTimestamp: the family has no timestamps");
    if (o) vkshim_add_event(o, VKSHIM_TOUCH, VKSHIM_KEY(pool));
    if (o) vkshim_need_stages(VKSHIM_CmdWriteTimestamp, o->family, stage);
    vkshim.real.CmdWriteTimestamp(commands, stage, pool, query);
    vkshim_leave(VK_SUCCESS);
}

// ============================================================================
// Submits, fences, semaphores, queries
// ============================================================================

static void vkshim_check_commands(const VkSubmitInfo *info, const vkshim_object *queue) {
    uint32_t i;
    for (i = 0; i < info->commandBufferCount; i++) {
        uint64_t key = VKSHIM_POINTER_KEY(info->pCommandBuffers[i]);
        vkshim_object *c = vkshim_need(VKSHIM_QueueSubmit, VKSHIM_COMMANDS, key);
        if (!c) continue;
        if (c->state != VKSHIM_EXECUTABLE)
            vkshim_violate("vkQueueSubmit: pCommandBuffers[%u]: %s", i,
                           c->state == VKSHIM_SPENT ? "was for one submit"
                                                    : "was not recorded to its end");
        if (c->family != queue->family)
            vkshim_violate(
                "vkQueueSubmit: pCommandBuffers[%u]: recorded for family %u, the queue is of %u", i,
                c->family, queue->family);
        if (!(c->once & VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT))
            vkshim_need_idle(VKSHIM_QueueSubmit, VKSHIM_COMMANDS, key);
        if (c->once & VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT) c->state = VKSHIM_SPENT;
    }
    for (i = 0; i < info->waitSemaphoreCount; i++) {
        vkshim_need(VKSHIM_QueueSubmit, VKSHIM_SEMAPHORE, VKSHIM_KEY(info->pWaitSemaphores[i]));
        vkshim_need_stages(VKSHIM_QueueSubmit, queue->family, info->pWaitDstStageMask[i]);
    }
    for (i = 0; i < info->signalSemaphoreCount; i++)
        vkshim_need(VKSHIM_QueueSubmit, VKSHIM_SEMAPHORE, VKSHIM_KEY(info->pSignalSemaphores[i]));
}

// Values of timeline semaphores as a list of their own: 0 for the others.
static uint64_t *vkshim_copy_values(uint32_t count, const uint64_t *values, uint32_t value_count) {
    uint64_t *copy = (uint64_t *)vkshim_alloc(count * sizeof *copy);
    if (values && value_count >= count) memcpy(copy, values, count * sizeof *copy);
    return copy;
}

static void vkshim_queue_submit(vkshim_object *queue, const VkSubmitInfo *info, VkFence fence) {
    const VkTimelineSemaphoreSubmitInfo *timeline =
        (const VkTimelineSemaphoreSubmitInfo *)vkshim_find_next(
            info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    vkshim_submit *s = (vkshim_submit *)vkshim_alloc(sizeof *s), **at = &vkshim.submits;
    s->queue = queue;
    s->serial = ++queue->serial;
    s->polls_left = vkshim.config.delay_polls;
    s->has_timeline = timeline != NULL;
    s->fence = fence;
    s->wait_count = info->waitSemaphoreCount;
    s->waits =
        (VkSemaphore *)vkshim_duplicate(info->pWaitSemaphores, s->wait_count * sizeof *s->waits);
    s->stages = (VkPipelineStageFlags *)vkshim_duplicate(info->pWaitDstStageMask,
                                                         s->wait_count * sizeof *s->stages);
    s->wait_values =
        vkshim_copy_values(s->wait_count, timeline ? timeline->pWaitSemaphoreValues : NULL,
                           timeline ? timeline->waitSemaphoreValueCount : 0);
    s->command_count = info->commandBufferCount;
    s->commands = (VkCommandBuffer *)vkshim_duplicate(info->pCommandBuffers,
                                                      s->command_count * sizeof *s->commands);
    s->signal_count = info->signalSemaphoreCount;
    s->signals = (VkSemaphore *)vkshim_duplicate(info->pSignalSemaphores,
                                                 s->signal_count * sizeof *s->signals);
    s->signal_values =
        vkshim_copy_values(s->signal_count, timeline ? timeline->pSignalSemaphoreValues : NULL,
                           timeline ? timeline->signalSemaphoreValueCount : 0);
    memcpy(s->clock, vkshim.seen, sizeof s->clock);
    while (*at) at = &(*at)->next;
    *at = s;
}

static void vkshim_check_fence(VkFence fence) {
    vkshim_object *o =
        fence ? vkshim_need(VKSHIM_QueueSubmit, VKSHIM_FENCE, VKSHIM_KEY(fence)) : NULL;
    if (!o) return;
    if (o->is_in_flight || o->is_signalled)
        vkshim_violate("vkQueueSubmit: fence: is %s",
                       o->is_in_flight ? "in use by another submit" : "signalled");
    o->is_in_flight = 1;
}

// Whether another thread waits for a signal of this submit: then the submit is not delayed.
static int vkshim_is_awaited(const vkshim_submit *s) {
    const vkshim_object *o = s->fence ? vkshim_find(VKSHIM_FENCE, VKSHIM_KEY(s->fence)) : NULL;
    uint32_t i;
    if (o && o->is_waited) return 1;
    for (i = 0; i < s->signal_count; i++) {
        o = vkshim_find(VKSHIM_SEMAPHORE, VKSHIM_KEY(s->signals[i]));
        if (o && o->is_waited && s->signal_values[i] <= o->waited_value) return 1;
    }
    return 0;
}

static void vkshim_pump(void) {
    vkshim_submit *s;
    for (s = vkshim.submits; s; s = s->next)
        if (!vkshim.config.delay_polls || vkshim_is_awaited(s)) vkshim_send(s);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_QueueSubmit(VkQueue queue, uint32_t count,
                                                         const VkSubmitInfo *infos, VkFence fence) {
    VkResult result = vkshim_enter_queue(VKSHIM_QueueSubmit, queue, NULL);
    vkshim_object *q = vkshim_need(VKSHIM_QueueSubmit, VKSHIM_QUEUE, VKSHIM_POINTER_KEY(queue));
    VkSubmitInfo none;
    uint32_t i;
    vkshim.counts.submit_count++;
    if (!result) result = vkshim_lose_at(&vkshim.submits_now, vkshim.config.lose_at_submit);
    if (!result && q) {
        for (i = 0; i < count; i++) vkshim_check_commands(&infos[i], q);
        vkshim_check_fence(fence);
        memset(&none, 0, sizeof none);
        for (i = 0; i < count; i++)
            vkshim_queue_submit(q, &infos[i], i + 1 == count ? fence : VK_NULL_HANDLE);
        if (!count) vkshim_queue_submit(q, &none, fence);
        vkshim.submit_result = VK_SUCCESS;
        vkshim_pump();
        result = vkshim.submit_result;
    }
    return vkshim_leave_queue(queue, NULL, result);
}

// Wait for all submits that were sent to these queues. Releases the mutex, which the caller holds, meanwhile.
static VkResult vkshim_wait_idle(const vkshim_object *queue, VkDevice device) {
    uint64_t seen[VKSHIM_QUEUES];
    VkQueue real = queue ? queue->real_queue : NULL;
    VkResult result;
    const vkshim_submit *s;
    int blocks = 0;
    uint32_t i;
    memset(seen, 0, sizeof seen);
    vkshim_send_all(queue);
    for (s = vkshim.submits; s; s = s->next) {
        if (queue ? s->queue != queue : s->queue->parent != VKSHIM_POINTER_KEY(device)) continue;
        blocks = 1;
        if (!s->is_sent) vkshim_violate("vk*WaitIdle: a submit waits for what nothing signals");
        else vkshim_merge_clock(seen, s->clock);
    }
    vkshim.counts.host_wait_count += (uint64_t)blocks;
    pthread_mutex_unlock(&vkshim_mutex);
    pthread_mutex_lock(&vkshim_driver_mutex);
    result = real ? vkshim.real.QueueWaitIdle(real) : vkshim.real.DeviceWaitIdle(device);
    pthread_mutex_unlock(&vkshim_driver_mutex);
    pthread_mutex_lock(&vkshim_mutex);
    if (result) return result;
    for (i = 0; i < VKSHIM_QUEUES; i++) if (vkshim.seen[i] < seen[i]) vkshim.seen[i] = seen[i];
    vkshim_sweep(0);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_QueueWaitIdle(VkQueue queue) {
    VkResult result = vkshim_enter_queue(VKSHIM_QueueWaitIdle, queue, NULL);
    const vkshim_object *q =
        vkshim_need(VKSHIM_QueueWaitIdle, VKSHIM_QUEUE, VKSHIM_POINTER_KEY(queue));
    if (!result) result = vkshim_lose_at(&vkshim.waits_now, vkshim.config.lose_at_wait);
    if (!result && q) result = vkshim_wait_idle(q, NULL);
    return vkshim_leave_queue(queue, NULL, result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_DeviceWaitIdle(VkDevice device) {
    VkResult result = vkshim_enter_queue(VKSHIM_DeviceWaitIdle, NULL, device);
    if (!result) result = vkshim_lose_at(&vkshim.waits_now, vkshim.config.lose_at_wait);
    if (!result) result = vkshim_wait_idle(NULL, device);
    return vkshim_leave_queue(NULL, device, result);
}

static void vkshim_note_fence(vkshim_object *o, const VkFenceCreateInfo *info) {
    o->is_signalled = (info->flags & VK_FENCE_CREATE_SIGNALED_BIT) != 0;
}

static void vkshim_note_semaphore(vkshim_object *o, const VkSemaphoreCreateInfo *info) {
    const VkSemaphoreTypeCreateInfo *type = (const VkSemaphoreTypeCreateInfo *)vkshim_find_next(
        info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    const vkshim_object *device = vkshim_find(VKSHIM_DEVICE, o->parent);
    o->is_timeline = type && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
    if (o->is_timeline) o->sent_value = type->initialValue;
    if (o->is_timeline && device && !device->is_timeline)
        vkshim_violate(
            "vkCreateSemaphore: pNext: the feature timelineSemaphore is not enabled on the device");
}

VKSHIM_CREATE(Fence, VKSHIM_FENCE, vkshim_note_fence)
VKSHIM_DESTROY(Fence, VKSHIM_FENCE)
VKSHIM_CREATE(Semaphore, VKSHIM_SEMAPHORE, vkshim_note_semaphore)

// Mesa 22.3 emulates timelines where the system has none. Its thread of a queue lets go of the points that a submit waited
// for after it signalled the submit's end, so that who destroys a semaphore then, as is his right, has it write into freed
// memory. Each queue works its submits off one behind the other: behind one more of them nothing of that kind is left.
static void vkshim_destroy_semaphore(VkDevice device, VkSemaphore semaphore, const VkAllocationCallbacks *callbacks) {
    pthread_mutex_lock(&vkshim_driver_mutex);
    vkshim.real.DeviceWaitIdle(device);
    pthread_mutex_unlock(&vkshim_driver_mutex);
    vkshim.real.DestroySemaphore(device, semaphore, callbacks);
}

static VKAPI_ATTR void VKAPI_CALL vkshim_DestroySemaphore(VkDevice device, VkSemaphore semaphore,
                                                          const VkAllocationCallbacks *callbacks) {
    vkshim_enter(VKSHIM_DestroySemaphore);
    if (vkshim_start_destroy(VKSHIM_DestroySemaphore, VKSHIM_SEMAPHORE, VKSHIM_KEY(semaphore), callbacks)) {
        vkshim_destroy_semaphore(device, semaphore, callbacks);
        vkshim_end_destroy(VKSHIM_SEMAPHORE, VKSHIM_KEY(semaphore));
    }
    vkshim_leave(VK_SUCCESS);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_ResetFences(VkDevice device, uint32_t count,
                                                         const VkFence *fences) {
    VkResult result = vkshim_enter(VKSHIM_ResetFences);
    uint32_t i;
    for (i = 0; !result && i < count; i++) {
        vkshim_object *o = vkshim_need(VKSHIM_ResetFences, VKSHIM_FENCE, VKSHIM_KEY(fences[i]));
        if (!o) continue;
        if (o->is_in_flight) {
            vkshim_need_idle(VKSHIM_ResetFences, VKSHIM_FENCE, o->key);
            vkshim_see_fence(fences[i]);
        }
        o->is_in_flight = o->is_signalled = 0;
        result = vkshim.real.ResetFences(device, 1, &fences[i]);
    }
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_GetFenceStatus(VkDevice device, VkFence fence) {
    VkResult result = vkshim_enter(VKSHIM_GetFenceStatus);
    if (!result) result = vkshim_lose_at(&vkshim.polls_now, vkshim.config.lose_at_poll);
    if (!result && vkshim_need(VKSHIM_GetFenceStatus, VKSHIM_FENCE, VKSHIM_KEY(fence))) {
        vkshim_poll(vkshim_unsent_fence(fence));
        result = vkshim.real.GetFenceStatus(device, fence);
        if (result == VK_SUCCESS) vkshim_see_fence(fence);
    }
    return vkshim_leave(result);
}

// A thread may wait for a signal that another thread submits later: is_waited tells that thread.
static void vkshim_mark_fences(uint32_t count, const VkFence *fences, int change) {
    uint32_t i;
    for (i = 0; i < count; i++) {
        vkshim_object *o = vkshim_find(VKSHIM_FENCE, VKSHIM_KEY(fences[i]));
        if (o) o->is_waited += change;
    }
}

// Send the delayed submits that are waited for: all, or the first where any is enough. Returns whether any was.
static int vkshim_send_fences(uint32_t count, const VkFence *fences, VkBool32 waits_all) {
    int sends = 0;
    uint32_t i;
    for (i = 0; i < count && (waits_all || !sends); i++) {
        vkshim_submit *s = vkshim_unsent_fence(fences[i]);
        if (s && vkshim_send(s)) sends = 1;
    }
    return sends;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_WaitForFences(VkDevice device, uint32_t count,
                                                           const VkFence *fences,
                                                           VkBool32 waits_all, uint64_t timeout) {
    VkResult result = vkshim_enter(VKSHIM_WaitForFences);
    int blocks = 0;
    uint32_t i;
    if (!result && timeout) result = vkshim_lose_at(&vkshim.waits_now, vkshim.config.lose_at_wait);
    if (!result && !timeout) result = vkshim_lose_at(&vkshim.polls_now, vkshim.config.lose_at_poll);
    for (i = 0; !result && i < count; i++) {
        if (!vkshim_need(VKSHIM_WaitForFences, VKSHIM_FENCE, VKSHIM_KEY(fences[i])))
            result = VK_ERROR_DEVICE_LOST;
        else if (!timeout) vkshim_poll(vkshim_unsent_fence(fences[i]));
    }
    if (result) return vkshim_leave(result);
    result = waits_all || !timeout ? VK_TIMEOUT
                                   : vkshim.real.WaitForFences(device, count, fences, waits_all, 0);
    if (result == VK_TIMEOUT && timeout) blocks = vkshim_send_fences(count, fences, waits_all);
    if (result == VK_TIMEOUT)
        result = vkshim.real.WaitForFences(device, count, fences, waits_all, 0);
    if (timeout && (blocks || result == VK_TIMEOUT)) vkshim.counts.host_wait_count++;
    if (timeout && result == VK_TIMEOUT) {
        vkshim_mark_fences(count, fences, 1);
        pthread_mutex_unlock(&vkshim_mutex);
        result = vkshim.real.WaitForFences(device, count, fences, waits_all, timeout);
        pthread_mutex_lock(&vkshim_mutex);
        vkshim_mark_fences(count, fences, -1);
    }
    for (i = 0; !result && i < count; i++)
        if (waits_all || vkshim.real.GetFenceStatus(device, fences[i]) == VK_SUCCESS)
            vkshim_see_fence(fences[i]);
    return vkshim_leave(result);
}

static VkResult vkshim_read_value(vkshim_function function, PFN_vkGetSemaphoreCounterValue real,
                                  VkDevice device, VkSemaphore semaphore, uint64_t *value) {
    VkResult result = vkshim_lose_at(&vkshim.polls_now, vkshim.config.lose_at_poll);
    const vkshim_object *o = vkshim_need(function, VKSHIM_SEMAPHORE, VKSHIM_KEY(semaphore));
    if (result || !o) return result ? result : VK_ERROR_DEVICE_LOST;
    vkshim_poll(vkshim_unsent_signal(semaphore));
    result = real(device, semaphore, value);
    if (result == VK_SUCCESS) vkshim_see_value(semaphore, *value);
    return result;
}

// A violation if a function of version 1.2 is used on an older device without the extension.
static void vkshim_need_device_version(vkshim_function function, VkDevice device,
                                       uint32_t version) {
    const vkshim_object *d = vkshim_need(function, VKSHIM_DEVICE, VKSHIM_POINTER_KEY(device));
    if (d) vkshim_need_version(function, d->version, version);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_GetSemaphoreCounterValue(VkDevice device,
                                                                      VkSemaphore semaphore,
                                                                      uint64_t *value) {
    VkResult result = vkshim_enter(VKSHIM_GetSemaphoreCounterValue);
    vkshim_need_device_version(VKSHIM_GetSemaphoreCounterValue, device, VK_API_VERSION_1_2);
    if (!result)
        result = vkshim_read_value(VKSHIM_GetSemaphoreCounterValue,
                                   vkshim.real.GetSemaphoreCounterValue, device, semaphore, value);
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_GetSemaphoreCounterValueKHR(VkDevice device,
                                                                         VkSemaphore semaphore,
                                                                         uint64_t *value) {
    VkResult result = vkshim_enter(VKSHIM_GetSemaphoreCounterValueKHR);
    if (!result)
        result =
            vkshim_read_value(VKSHIM_GetSemaphoreCounterValueKHR,
                              vkshim.real.GetSemaphoreCounterValueKHR, device, semaphore, value);
    return vkshim_leave(result);
}

static void vkshim_mark_values(const VkSemaphoreWaitInfo *info, int change) {
    uint32_t i;
    for (i = 0; i < info->semaphoreCount; i++) {
        vkshim_object *o = vkshim_find(VKSHIM_SEMAPHORE, VKSHIM_KEY(info->pSemaphores[i]));
        if (!o) continue;
        o->is_waited += change;
        if (o->waited_value < info->pValues[i] || !o->is_waited)
            o->waited_value = o->is_waited ? info->pValues[i] : 0;
    }
}

static int vkshim_send_values(const VkSemaphoreWaitInfo *info) {
    int sends = 0;
    uint32_t i;
    for (i = 0; i < info->semaphoreCount; i++) {
        const vkshim_object *o = vkshim_find(VKSHIM_SEMAPHORE, VKSHIM_KEY(info->pSemaphores[i]));
        if (!o || o->sent_value >= info->pValues[i]) continue;
        sends |= vkshim_supply(NULL, info->pSemaphores[i], info->pValues[i]);
        if (sends && (info->flags & VK_SEMAPHORE_WAIT_ANY_BIT)) break;
    }
    return sends;
}

static void vkshim_see_values(const VkSemaphoreWaitInfo *info,
                              PFN_vkGetSemaphoreCounterValue counter, VkDevice device) {
    uint32_t i;
    for (i = 0; i < info->semaphoreCount; i++) {
        uint64_t value = 0;
        if (counter && counter(device, info->pSemaphores[i], &value) == VK_SUCCESS &&
            value >= info->pValues[i])
            vkshim_see_value(info->pSemaphores[i], info->pValues[i]);
    }
}

static VkResult vkshim_wait_values(vkshim_function function, PFN_vkWaitSemaphores real,
                                   PFN_vkGetSemaphoreCounterValue counter, VkDevice device,
                                   const VkSemaphoreWaitInfo *info, uint64_t timeout) {
    VkResult result = timeout ? vkshim_lose_at(&vkshim.waits_now, vkshim.config.lose_at_wait)
                              : vkshim_lose_at(&vkshim.polls_now, vkshim.config.lose_at_poll);
    int blocks = 0;
    uint32_t i;
    for (i = 0; !result && i < info->semaphoreCount; i++) {
        if (!vkshim_need(function, VKSHIM_SEMAPHORE, VKSHIM_KEY(info->pSemaphores[i])))
            result = VK_ERROR_DEVICE_LOST;
        else if (!timeout) vkshim_poll(vkshim_unsent_signal(info->pSemaphores[i]));
    }
    if (result) return result;
    result = real(device, info, 0);
    if (timeout && result == VK_TIMEOUT) {
        blocks = 1;
        if (vkshim_send_values(info)) result = real(device, info, 0);
    }
    vkshim.counts.host_wait_count += (uint64_t)blocks;
    if (timeout && result == VK_TIMEOUT) {
        vkshim_mark_values(info, 1);
        pthread_mutex_unlock(&vkshim_mutex);
        result = real(device, info, timeout);
        pthread_mutex_lock(&vkshim_mutex);
        vkshim_mark_values(info, -1);
    }
    if (result == VK_SUCCESS) vkshim_see_values(info, counter, device);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_WaitSemaphores(VkDevice device,
                                                            const VkSemaphoreWaitInfo *info,
                                                            uint64_t timeout) {
    VkResult result = vkshim_enter(VKSHIM_WaitSemaphores);
    vkshim_need_device_version(VKSHIM_WaitSemaphores, device, VK_API_VERSION_1_2);
    if (!result)
        result = vkshim_wait_values(VKSHIM_WaitSemaphores, vkshim.real.WaitSemaphores,
                                    vkshim.real.GetSemaphoreCounterValue, device, info, timeout);
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_WaitSemaphoresKHR(VkDevice device,
                                                               const VkSemaphoreWaitInfo *info,
                                                               uint64_t timeout) {
    VkResult result = vkshim_enter(VKSHIM_WaitSemaphoresKHR);
    if (!result)
        result = vkshim_wait_values(VKSHIM_WaitSemaphoresKHR, vkshim.real.WaitSemaphoresKHR,
                                    vkshim.real.GetSemaphoreCounterValueKHR, device, info, timeout);
    return vkshim_leave(result);
}

static VkResult vkshim_signal(vkshim_function function, PFN_vkSignalSemaphore real, VkDevice device,
                              const VkSemaphoreSignalInfo *info) {
    vkshim_object *o = vkshim_need(function, VKSHIM_SEMAPHORE, VKSHIM_KEY(info->semaphore));
    VkResult result = real(device, info);
    if (result || !o) return result;
    o->sent_value = info->value;
    vkshim_merge_clock(o->clock, vkshim.seen);
    vkshim_pump();
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_SignalSemaphore(VkDevice device,
                                                             const VkSemaphoreSignalInfo *info) {
    VkResult result = vkshim_enter(VKSHIM_SignalSemaphore);
    vkshim_need_device_version(VKSHIM_SignalSemaphore, device, VK_API_VERSION_1_2);
    if (!result)
        result = vkshim_signal(VKSHIM_SignalSemaphore, vkshim.real.SignalSemaphore, device, info);
    return vkshim_leave(result);
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_SignalSemaphoreKHR(VkDevice device,
                                                                const VkSemaphoreSignalInfo *info) {
    VkResult result = vkshim_enter(VKSHIM_SignalSemaphoreKHR);
    if (!result)
        result =
            vkshim_signal(VKSHIM_SignalSemaphoreKHR, vkshim.real.SignalSemaphoreKHR, device, info);
    return vkshim_leave(result);
}

static void vkshim_note_queries(vkshim_object *o, const VkQueryPoolCreateInfo *info) {
    o->type = (uint32_t)info->queryType;
}

VKSHIM_CREATE(QueryPool, VKSHIM_QUERY_POOL, vkshim_note_queries)
VKSHIM_DESTROY(QueryPool, VKSHIM_QUERY_POOL)

// Reduce timestamps to the bits that the faked family has.
static void vkshim_cut_times(uint32_t count, void *data, VkDeviceSize stride,
                             VkQueryResultFlags flags, int are_all) {
    uint32_t bits = vkshim.config.timestamp_bits, i;
    uint64_t mask = bits && bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    size_t width = flags & VK_QUERY_RESULT_64_BIT ? 8 : 4;
    for (i = 0; i < count; i++) {
        char *at = (char *)data + i * stride;
        uint64_t value = 0, available = (uint64_t)are_all;
        uint32_t narrow;
        if (flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) memcpy(&available, at + width, width);
        if (!available) continue;
        memcpy(&value, at, width);
        value = (value + vkshim.config.timestamp_add) & mask;
        narrow = (uint32_t)value;
        if (width == 8) memcpy(at, &value, width);
        else memcpy(at, &narrow, width);
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL vkshim_GetQueryPoolResults(VkDevice device, VkQueryPool pool,
                                                                 uint32_t first, uint32_t count,
                                                                 size_t size, void *data,
                                                                 VkDeviceSize stride,
                                                                 VkQueryResultFlags flags) {
    VkResult result = vkshim_enter(VKSHIM_GetQueryPoolResults);
    const vkshim_object *o =
        vkshim_need(VKSHIM_GetQueryPoolResults, VKSHIM_QUERY_POOL, VKSHIM_KEY(pool));
    if (result || !o) return vkshim_leave(result ? result : VK_ERROR_DEVICE_LOST);
    if (flags & VK_QUERY_RESULT_WAIT_BIT) vkshim_send_all(NULL);
    result = vkshim.real.GetQueryPoolResults(device, pool, first, count, size, data, stride, flags);
    if (result >= 0 && o->type == (uint32_t)VK_QUERY_TYPE_TIMESTAMP)
        vkshim_cut_times(count, data, stride, flags, result == VK_SUCCESS);
    return vkshim_leave(result);
}

// ============================================================================
// Entry points
// ============================================================================

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkshim_GetDeviceProcAddr(VkDevice device,
                                                                         const char *name);

static const PFN_vkVoidFunction vkshim_wrappers[] = {
#define VKSHIM_WRAPPER(name, kind) (PFN_vkVoidFunction)vkshim_##name,
    VKSHIM_FUNCTIONS(VKSHIM_WRAPPER)
};

static PFN_vkVoidFunction vkshim_wrap(const char *name, PFN_vkVoidFunction real) {
    size_t i;
    if (!real) return NULL;
    for (i = 0; i < VKSHIM_FUNCTION_COUNT; i++)
        if (!strcmp(vkshim_function_names[i], name)) return vkshim_wrappers[i];
    return real;
}

static int vkshim_is_missing(const char *name, uint32_t version) {
    size_t i;
    if (vkshim_is_listed(name, vkshim_refused, VKSHIM_COUNT_OF(vkshim_refused))) return 1;
    if (vkshim_is_listed(name, vkshim.config.missing, vkshim.config.missing_count)) return 1;
    for (i = 0; i < VKSHIM_COUNT_OF(vkshim_later_names); i++)
        if (!strcmp(vkshim_later_names[i].name, name))
            return vkshim_later_names[i].version > version;
    return 0;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkshim_GetDeviceProcAddr(VkDevice device,
                                                                         const char *name) {
    const vkshim_object *d;
    PFN_vkVoidFunction found = NULL;
    vkshim_enter(VKSHIM_GetDeviceProcAddr);
    d = vkshim_need(VKSHIM_GetDeviceProcAddr, VKSHIM_DEVICE, VKSHIM_POINTER_KEY(device));
    if (d && !vkshim_is_missing(name, d->version))
        found = vkshim_wrap(name, vkshim.real.GetDeviceProcAddr(device, name));
    vkshim_leave(VK_SUCCESS);
    return found;
}

// The loader's vkGetInstanceProcAddr; NULL where the machine has none.
static PFN_vkGetInstanceProcAddr vkshim_open(void) {
    void *library;
    PFN_vkGetInstanceProcAddr get = NULL;
    void *symbol;
    if (vkshim.real.GetInstanceProcAddr) return vkshim.real.GetInstanceProcAddr;
    library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
    if (symbol) memcpy(&get, &symbol, sizeof get);
    vkshim.real.GetInstanceProcAddr = get;
    if (get) vkshim.real.EnumerateInstanceVersion =
        (PFN_vkEnumerateInstanceVersion)get(NULL, "vkEnumerateInstanceVersion");
    return get;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkshim_get_instance_proc(VkInstance instance,
                                                                  const char *name) {
    PFN_vkGetInstanceProcAddr get;
    PFN_vkVoidFunction found = NULL;
    pthread_mutex_lock(&vkshim_mutex);
    get = vkshim_open();
    if (get &&
        !vkshim_is_missing(name, vkshim.config.instance_version ? vkshim.config.instance_version
                                                                : UINT32_MAX))
        found = !strcmp(name, "vkGetInstanceProcAddr")
                    ? (PFN_vkVoidFunction)vkshim_get_instance_proc
                    : vkshim_wrap(name, get(instance, name));
    pthread_mutex_unlock(&vkshim_mutex);
    return found;
}

// ============================================================================
// What tests call
// ============================================================================

static uint32_t vkshim_add_heap(vkshim_config *config, uint64_t bytes, int is_device) {
    VkMemoryHeap *heap = &config->heaps[config->heap_count];
    heap->size = bytes;
    heap->flags = is_device ? VK_MEMORY_HEAP_DEVICE_LOCAL_BIT : 0;
    return config->heap_count++;
}

static void vkshim_add_type(vkshim_config *config, uint32_t heap, VkMemoryPropertyFlags flags) {
    VkMemoryType *type = &config->types[config->type_count++];
    type->heapIndex = heap;
    type->propertyFlags = flags;
}

void vkshim_default(vkshim_config *config, vkshim_machine machine) {
    const VkMemoryPropertyFlags device = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    const VkMemoryPropertyFlags coherent = visible | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags cached = visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    const uint64_t gib = UINT64_C(1) << 30;
    uint32_t heap, host;
    memset(config, 0, sizeof *config);
    switch (machine) {
    case VKSHIM_MACHINE_REAL: case VKSHIM_MACHINE_COUNT: return;
    case VKSHIM_MACHINE_DISCRETE: case VKSHIM_MACHINE_SMALL_BAR: case VKSHIM_MACHINE_UNCACHED:
        config->device_type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
        heap = vkshim_add_heap(config, 4 * gib, 1);
        host = vkshim_add_heap(config, 8 * gib, 0);
        vkshim_add_type(config, heap, device);
        vkshim_add_type(config, host, coherent);
        if (machine != VKSHIM_MACHINE_UNCACHED) vkshim_add_type(config, host, cached);
        if (machine == VKSHIM_MACHINE_SMALL_BAR)
            vkshim_add_type(config, vkshim_add_heap(config, gib / 4, 1), device | coherent);
        return;
    case VKSHIM_MACHINE_SINGLE: case VKSHIM_MACHINE_NON_COHERENT:
        config->device_type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
        heap = vkshim_add_heap(config, 2 * gib, 1);
        vkshim_add_type(config, heap,
                        device | cached | (machine == VKSHIM_MACHINE_SINGLE ? coherent : 0));
        if (machine == VKSHIM_MACHINE_NON_COHERENT) config->non_coherent_atom = 256;
        return;
    }
}

static void vkshim_set_config(const vkshim_config *config) {
    if (config) vkshim.config = *config;
    else memset(&vkshim.config, 0, sizeof vkshim.config);
    if (vkshim.config.transfer_family && !vkshim.config.family_count) {
        vkshim.config.family_count = 2;
        vkshim.config.families[1].flags = VK_QUEUE_TRANSFER_BIT;
    }
    memset(vkshim.calls_now, 0, sizeof vkshim.calls_now);
    vkshim.fallible_now = vkshim.submits_now = vkshim.waits_now = vkshim.polls_now = 0;
    pthread_mutex_lock(&vkshim_guard_mutex);
    vkshim_guard_yields = vkshim.config.queue_yields;
    pthread_mutex_unlock(&vkshim_guard_mutex);
}

void vkshim_add_engines(vkshim_config *config) {
    static const vkshim_family families[] = {
        { 0, 1 }, { VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT, 2 }, { VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 1 },
        { VK_QUEUE_TRANSFER_BIT | 0x20, 1 }, { VK_QUEUE_TRANSFER_BIT | 0x40, 1 },
    };
    config->family_count = VKSHIM_COUNT_OF(families);
    memcpy(config->families, families, sizeof families);
}

void vkshim_reset(const vkshim_config *config) {
    uint32_t i;
    pthread_mutex_lock(&vkshim_mutex);
    vkshim_sweep(1);
    for (i = 0; i < VKSHIM_BUCKETS; i++) while (vkshim.buckets[i]) vkshim_forget(vkshim.buckets[i]);
    memset(vkshim.live, 0, sizeof vkshim.live);
    memset(vkshim.heap_used, 0, sizeof vkshim.heap_used);
    memset(vkshim.calls, 0, sizeof vkshim.calls);
    memset(&vkshim.counts, 0, sizeof vkshim.counts);
    memset(vkshim.texts, 0, sizeof vkshim.texts);
    memset(vkshim.seen, 0, sizeof vkshim.seen);
    vkshim.is_lost = 0;
    vkshim_set_config(config);
    pthread_mutex_lock(&vkshim_guard_mutex);
    memset(vkshim_guards, 0, sizeof vkshim_guards);
    pthread_mutex_unlock(&vkshim_guard_mutex);
    pthread_mutex_unlock(&vkshim_mutex);
}

void vkshim_change(const vkshim_config *config) {
    pthread_mutex_lock(&vkshim_mutex);
    vkshim_set_config(config);
    vkshim.properties = vkshim.real_properties;
    vkshim_fake_properties(&vkshim.properties);
    if (!vkshim.config.delay_polls) vkshim_pump();
    pthread_mutex_unlock(&vkshim_mutex);
}

void vkshim_set_budget(uint32_t heap, uint64_t bytes) {
    pthread_mutex_lock(&vkshim_mutex);
    if (heap < VK_MAX_MEMORY_HEAPS) vkshim.config.budget_bytes[heap] = bytes;
    pthread_mutex_unlock(&vkshim_mutex);
}

void vkshim_lose_device(void) {
    pthread_mutex_lock(&vkshim_mutex);
    vkshim_die();
    pthread_mutex_unlock(&vkshim_mutex);
}

void vkshim_recover_device(void) {
    pthread_mutex_lock(&vkshim_mutex);
    vkshim.is_lost = 0;
    pthread_mutex_unlock(&vkshim_mutex);
}

void vkshim_complete_all(void) {
    pthread_mutex_lock(&vkshim_mutex);
    vkshim_finish();
    pthread_mutex_unlock(&vkshim_mutex);
}

void vkshim_report(vkshim_counts *counts) {
    const vkshim_submit *s;
    uint32_t i;
    pthread_mutex_lock(&vkshim_mutex);
    *counts = vkshim.counts;
    memcpy(counts->live, vkshim.live, sizeof counts->live);
    for (i = VKSHIM_MEMORY; i < VKSHIM_KIND_COUNT; i++) counts->leak_count += vkshim.live[i];
    for (s = vkshim.submits; s; s = s->next) {
        counts->unseen_count++;
        if (!s->is_sent) counts->pending_count++;
    }
    counts->fallible_count = vkshim.fallible_now;
    pthread_mutex_unlock(&vkshim_mutex);
}

uint64_t vkshim_calls(const char *name) {
    uint64_t calls = UINT64_MAX;
    size_t i;
    pthread_mutex_lock(&vkshim_mutex);
    for (i = 0; i < VKSHIM_FUNCTION_COUNT; i++)
        if (!strcmp(vkshim_function_names[i], name)) calls = vkshim.calls[i];
    pthread_mutex_unlock(&vkshim_mutex);
    return calls;
}

const char *vkshim_violation(uint32_t index) {
    const char *text = NULL;
    pthread_mutex_lock(&vkshim_mutex);
    if (index < VKSHIM_TEXTS && index < vkshim.counts.violation_count) text = vkshim.texts[index];
    pthread_mutex_unlock(&vkshim_mutex);
    return text;
}

const char *vkshim_name_kind(vkshim_kind kind) {
#define VKSHIM_TEXT(id, name) name,
    static const char *const names[] = { VKSHIM_KINDS(VKSHIM_TEXT) };
    return (unsigned)kind < VKSHIM_KIND_COUNT ? names[kind] : "?";
}

const char *vkshim_fallible(uint32_t index) {
    size_t i;
    for (i = 0; i < VKSHIM_FUNCTION_COUNT; i++)
        if (vkshim_fallibilities[i] != VKSHIM_PLAIN && !index--) return vkshim_function_names[i];
    return NULL;
}
