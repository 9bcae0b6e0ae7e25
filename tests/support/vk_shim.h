// A shim between a program and the Vulkan loader: it fakes machines, enforces their rules and makes calls fail.
//
//     program  --vkshim_get_instance_proc-->  shim  -->  libvulkan.so.1  -->  driver
//
// Pass vkshim_get_instance_proc wherever a vkGetInstanceProcAddr is expected. Driver and loader are not
// changed; what the config does not fake is passed on. A broken rule is a violation: it is counted, its text
// is kept, and the call continues in a way that does no harm.
//
//     vkshim_config config;
//     vkshim_counts counts;
//     vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);   // fill in what to fake
//     vkshim_reset(&config);
//     ... run the program through vkshim_get_instance_proc ...
//     vkshim_report(&counts);                             // counts.violation_count, counts.live[VKSHIM_BUFFER]
//
// Rules that need no config: objects in use by work that the host has not seen finished are not destroyed,
// reset or recorded again; a queue is used by one thread at a time; what is destroyed exists and was created
// with callbacks if it is destroyed with some; all objects of a device are destroyed before it. Secondary
// command buffers, images and what they use are passed on unchecked. Entry points that would bypass the
// checks are missing: see vkshim_refused in vk_shim.c.
#ifndef TESTS_VK_SHIM_H
#define TESTS_VK_SHIM_H

#include <stdint.h>

#ifndef VULKAN_CORE_H_
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define VKSHIM_KINDS(X) \
    X(VKSHIM_INSTANCE,        "instances")              \
    X(VKSHIM_DEVICE,          "devices")                \
    X(VKSHIM_QUEUE,           "queues")                 \
    X(VKSHIM_MEMORY,          "memory objects")         \
    X(VKSHIM_BUFFER,          "buffers")                \
    X(VKSHIM_SHADER,          "shader modules")         \
    X(VKSHIM_PIPELINE,        "pipelines")              \
    X(VKSHIM_SET_LAYOUT,      "descriptor set layouts") \
    X(VKSHIM_PIPELINE_LAYOUT, "pipeline layouts")       \
    X(VKSHIM_DESCRIPTOR_POOL, "descriptor pools")       \
    X(VKSHIM_DESCRIPTOR_SET,  "descriptor sets")        \
    X(VKSHIM_COMMAND_POOL,    "command pools")          \
    X(VKSHIM_COMMANDS,        "command buffers")        \
    X(VKSHIM_FENCE,           "fences")                 \
    X(VKSHIM_SEMAPHORE,       "semaphores")             \
    X(VKSHIM_QUERY_POOL,      "query pools")

#define VKSHIM_ENUM(id, name) id,
typedef enum vkshim_kind { VKSHIM_KINDS(VKSHIM_ENUM) VKSHIM_KIND_COUNT } vkshim_kind;
#undef VKSHIM_ENUM

enum { VKSHIM_FAMILIES = 6 };

// A faked family of queues. All are served by the driver's first queue, in the order of submits.
typedef struct vkshim_family {
    VkQueueFlags flags;                    // 0 = those of the driver's first family
    uint32_t     queue_count;              // 0 = 1
} vkshim_family;

// What to fake. All zero: the real machine, with the rules checked.
typedef struct vkshim_config {
    // memory: faked types, all backed by the driver's host-visible coherent type; type_count 0 = the real ones
    uint32_t     type_count, heap_count;
    VkMemoryType types[VK_MAX_MEMORY_TYPES];
    VkMemoryHeap heaps[VK_MAX_MEMORY_HEAPS];            // as reported; a larger allocation is a violation
    uint64_t     real_heap_bytes[VK_MAX_MEMORY_HEAPS];  // bytes that can be allocated; 0 = as reported
    uint32_t     buffer_type_bits;     // memory types allowed for buffers; 0 = all
    uint64_t     buffer_alignment;     // least alignment in vkGetBufferMemoryRequirements
    int32_t      fakes_budget;         // 1 = VK_EXT_memory_budget is there
    uint64_t     budget_bytes[VK_MAX_MEMORY_HEAPS];     // 0 = the heap; vkshim_set_budget changes it

    // limits: reported and enforced; 0 = the real ones
    uint32_t storage_offset_alignment;     // minStorageBufferOffsetAlignment
    uint32_t non_coherent_atom;            // nonCoherentAtomSize
    uint32_t storage_range;                // maxStorageBufferRange
    uint32_t allocation_count;             // maxMemoryAllocationCount: VK_ERROR_TOO_MANY_OBJECTS above
    uint64_t allocation_bytes;             // maxMemoryAllocationSize: VK_ERROR_OUT_OF_DEVICE_MEMORY above
    uint32_t workgroup_invocations;        // maxComputeWorkGroupInvocations
    uint32_t workgroup_size[3];            // maxComputeWorkGroupSize
    uint32_t workgroup_count[3];           // maxComputeWorkGroupCount
    uint32_t stage_storage_buffers;        // maxPerStageDescriptorStorageBuffers
    uint32_t push_constant_bytes;          // maxPushConstantsSize
    uint32_t timestamp_bits;               // timestampValidBits: results have no more bits than these
    int32_t  no_timestamps;                // 1 = timestampValidBits is 0
    uint64_t timestamp_add;                // added to timestamps before they are cut, so that they wrap
    float    timestamp_period;

    // versions and features
    uint32_t instance_version;             // of the loader; VK_API_VERSION_1_0: no vkEnumerateInstanceVersion
    uint32_t api_version;                  // of the device
    VkPhysicalDeviceType device_type;
    int32_t  hides_timeline;               // 1 = the device lacks the feature timelineSemaphore
    const char *const *missing;            // [missing_count] entry points that are not found
    uint32_t missing_count;
    const char *const *hidden_extensions;  // [hidden_count] extensions that the device does not list
    uint32_t hidden_count;

    // queues: a range used on another family needs a release, a semaphore and an acquire; in a buffer that all
    // families own, a semaphore between uses of which one writes
    VkQueueFlags family_flags;             // of family 0; 0 = the real ones
    int32_t  transfer_family;              // 1 = family 1 has one queue, for transfers only: short for families
    uint32_t family_count;                 // 0 = the real families, or those of transfer_family
    vkshim_family families[VKSHIM_FAMILIES];
    int32_t  strict_ownership;             // 1 = also for ranges whose old bytes are not read
    uint32_t queue_yields;                 // yields of each queue call, so that overlapping use is noticed

    // 1 = a pipeline that was destroyed stays in the driver, for the next with the same words, constants and
    // layout on that device. Drivers that ignore VkPipelineCache then compile once for many backends
    int32_t  keeps_pipelines;

    // failures: counted from vkshim_reset or vkshim_change; call 1 is the first, 0 = never
    const char *fail_call;                 // "vkAllocateMemory"
    uint64_t fail_at;                      // call of fail_call that fails
    uint64_t fail_any_at;                  // call of any function with a VkResult that fails
    uint64_t fail_count;                   // how many calls in a row; 0 = 1
    VkResult fail_with;                    // 0 = VK_ERROR_OUT_OF_HOST_MEMORY; DEVICE_LOST lasts
    uint64_t lose_at_submit;               // the device is lost at this vkQueueSubmit;
    uint64_t lose_at_wait;                 // at this wait with a timeout above 0;
    uint64_t lose_at_poll;                 // at this poll of a fence or a semaphore's value
    uint32_t delay_polls;                  // submits are delayed until they were polled this often, or until
                                           // a wait for them or vkshim_complete_all
} vkshim_config;

typedef struct vkshim_counts {
    uint64_t live[VKSHIM_KIND_COUNT];
    uint64_t leak_count;          // live objects that are not an instance, a device or a queue
    uint64_t mapped_count;        // memory objects that are mapped now
    uint64_t memory_bytes;        // allocated now
    uint64_t over_budget_count;   // allocations that went above the budget of their heap
    uint64_t submit_count;        // vkQueueSubmit
    uint64_t pending_count;       // submits that the shim delays
    uint64_t unseen_count;        // submits that the host has not seen finished
    uint64_t host_wait_count;     // waits that blocked
    uint64_t fallible_count;      // calls that fail_any_at counts, since vkshim_reset or vkshim_change
    uint64_t injected_count;      // calls that the shim made fail
    const char *injected_call;    // the last of them; NULL = none
    uint64_t violation_count;
    char     violation_text[240]; // of the last one
} vkshim_counts;

// Common machines. UNCACHED has no HOST_CACHED type, NON_COHERENT one type of memory that needs flushes.
#define VKSHIM_MACHINES(X) \
    X(VKSHIM_MACHINE_REAL,         "as it is")                                                      \
    X(VKSHIM_MACHINE_DISCRETE,     "device only 4 GiB; host coherent uncached, cached non-coherent") \
    X(VKSHIM_MACHINE_SMALL_BAR,    "the same and 256 MiB of the device that the host sees")         \
    X(VKSHIM_MACHINE_UNCACHED,     "device only, host coherent uncached")                           \
    X(VKSHIM_MACHINE_SINGLE,       "one type: device, host, coherent, cached")                      \
    X(VKSHIM_MACHINE_NON_COHERENT, "one type: device, host, cached, not coherent; atom 256")

#define VKSHIM_ENUM(id, text) id,
typedef enum vkshim_machine { VKSHIM_MACHINES(VKSHIM_ENUM) VKSHIM_MACHINE_COUNT } vkshim_machine;
#undef VKSHIM_ENUM

// Fill a config with zeros and the memory of a machine.
void vkshim_default(vkshim_config *config, vkshim_machine machine);

// Fake the queue families of a discrete GPU: one for everything, one of two queues for transfers, one that computes, one each that
// decodes and encodes video, which transfer as well.
void vkshim_add_engines(vkshim_config *config);

// Forget all counts, failures and objects and use this config; NULL = all zero. No device may exist. The
// strings and lists of the config must stay valid while it is used.
void vkshim_reset(const vkshim_config *config);

// Change the config while a device exists: all but memory, queues and versions. Calls are counted anew for
// failures; the counts of vkshim_report continue.
void vkshim_change(const vkshim_config *config);

void vkshim_set_budget(uint32_t heap, uint64_t bytes);
void vkshim_lose_device(void);
void vkshim_recover_device(void);  // a device that was lost works again: for the next backend, not for those on it
void vkshim_complete_all(void);    // run the delayed submits; the host has not seen them finished yet
void vkshim_report(vkshim_counts *counts);
uint64_t vkshim_calls(const char *name);       // since vkshim_reset; UINT64_MAX = not a wrapped function
const char *vkshim_violation(uint32_t index);  // text of the first 16; NULL beyond
const char *vkshim_name_kind(vkshim_kind kind);

// A name of a function whose failure fail_any_at counts; NULL beyond the last.
const char *vkshim_fallible(uint32_t index);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkshim_get_instance_proc(VkInstance instance, const char *name);

#ifdef __cplusplus
}
#endif
#endif
