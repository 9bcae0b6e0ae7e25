/* tl_vk_backend.h - v0.1.0 - the buffers of tl_strategy.h on Vulkan compute
   Depends on tl_strategy.h and <vulkan/vulkan_core.h>. MIT or public domain: see the end.

   Implements [10] BACKEND of tl_strategy.h inside a VkDevice that you own: tensors are kept,
   spilled, compressed and made again in your Vulkan memory, on your queue or in your command
   buffers. The checkpoint manager and the executor run on it as they do on the CPU backend.

   SYNOPSIS
       #define TL_STRATEGY_IMPLEMENTATION      // in exactly one .c or .cpp file
       #define TL_VK_BACKEND_IMPLEMENTATION
       #include "tl_vk_backend.h"

       tl_vk_backend_desc desc = {0};
       desc.device.get_instance_proc = vkGetInstanceProcAddr;   // volk's, SDL's, dlsym's
       desc.device.instance = ...;  desc.device.physical = ...;  desc.device.device = ...;
       desc.device.queue = ...;     desc.device.queue_family = ...;
       if (tl_vk_init_backend(&env, &desc, &backend)) puts(env.error.text);
       run_desc.backend = &backend;                              // from here on as on the CPU

   CONTENTS          (every name below is a banner: search for "[2]")
       [1] DEVICE        borrow the engine's device, or make one
       [2] MEMORY        blocks in large buffers, allocators of others, staging
       [3] FRAMES        recording into command buffers of the caller
       [4] KERNELS       compute shaders on ranges, timestamps
       [5] SHADERS       copy, fill and convert on the device

   OPTIONS           (define before the include; none is needed)
       TL_VK_BACKEND_IMPLEMENTATION   in one file, after or with TL_STRATEGY_IMPLEMENTATION anywhere
       TL_VK_LINKED                   get_instance_proc = 0 means the linked vkGetInstanceProcAddr
       TL_VK_OPEN_LOADER              get_instance_proc = 0 means that of the system's loader, found
                                      with dlopen or LoadLibrary by tl_vk_init_device
       VK_NO_PROTOTYPES               is defined here unless <vulkan/vulkan.h> came first: include
                                      that or volk.h before this header if you want them

   RULES
       Those of tl_strategy.h. No global symbol beginning with vk is defined or needed. One backend
       is used by one thread at a time; several backends may share a device, and a queue where
       lock_queue and unlock_queue are given. Vulkan 1.0 is enough, and SPIR-V 1.0 without 8 or
       16-bit types; timeline semaphores and VK_EXT_memory_budget are used where they were enabled.

       All work goes to one queue in the order it was enqueued, so a range that is freed is given
       to its next user at once, behind a barrier; only what the host reads or writes, and memory
       given back to Vulkan, waits for the device. With a transfer queue, copies between the tiers
       go there, and what depends on them waits for a ticket.
*/
#ifndef TL_VK_BACKEND_H
#define TL_VK_BACKEND_H

#include "tl_strategy.h"

#ifndef VULKAN_CORE_H_
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [1] DEVICE -- borrow the engine's device, or make one
//
//     engine:      instance, device, queue  --borrowed-->  tl_vk_backend_desc.device
//     standalone:  tl_vk_init_device        --made for you-->  the same struct
//
// The owner of a device knows what was enabled on it and Vulkan cannot be asked, so the
// struct says it. Nothing that is not declared here is used.
// ============================================================================

// A device and what its owner enabled. Everything in it must outlive the backends made from it.
typedef struct tl_vk_device {
    PFN_vkGetInstanceProcAddr get_instance_proc;  // 0 = see TL_VK_LINKED and TL_VK_OPEN_LOADER
    VkInstance         instance;
    VkPhysicalDevice   physical;
    VkDevice           device;
    uint32_t           api_version;      // that instance and device were created for; 0 = Vulkan 1.0
    const char *const *extensions;       // [extension_count] enabled on the device
    uint32_t           extension_count;
    int32_t            timeline_enabled; // 1 = the feature timelineSemaphore is; 0 = fences are used
    VkQueue            queue;            // with compute; VK_NULL_HANDLE = record mode, see [3] FRAMES
    uint32_t           queue_family;     // of the queue; in record mode of the caller's command buffers
    VkQueue            transfer_queue;   // for copies between the tiers; VK_NULL_HANDLE = the queue
    uint32_t           transfer_family;
    void             (*lock_queue)(void *user);    // around every use of a queue; both or neither
    void             (*unlock_queue)(void *user);
    void              *lock_user;
    const VkAllocationCallbacks *callbacks;        // for every vkCreate and vkAllocateMemory; 0 = none
    void              *owned;            // set by tl_vk_init_device, 0 elsewhere
} tl_vk_device;

typedef struct tl_vk_device_desc {
    PFN_vkGetInstanceProcAddr get_instance_proc;  // as in tl_vk_device
    int32_t  number;             // 1 = the first that tl_vk_read_devices lists; 0 = the first GPU, else
                                 // the first of any kind
    uint32_t api_version;        // 0 = Vulkan 1.1, or what the loader and the device have if that is less
    int32_t  validates;          // 1 = with VK_LAYER_KHRONOS_validation, or TL_ERROR_NOT_FOUND
    PFN_vkDebugUtilsMessengerCallbackEXT message;  // its messages; 0 = those of the layer's settings
    void    *message_user;
    int32_t  enable_transfer;    // 1 = a transfer queue of a family of its own, where there is one
} tl_vk_device_desc;

// One device of the machine.
typedef struct tl_vk_device_info {
    char     name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    VkPhysicalDeviceType type;   // VK_PHYSICAL_DEVICE_TYPE_CPU: a driver that computes on the host
    uint32_t api_version, driver_version;
    uint64_t device_bytes;       // of its largest device-local heap
    int32_t  has_compute;        // 0 = no queue that computes: tl_vk_init_device refuses it
} tl_vk_device_info;

// List the devices of the machine.
//
//   infos   [capacity] filled from the start; may be NULL where capacity is 0
//   count   how many there are, also beyond the capacity
//
// Errors:  TL_ERROR_NOT_FOUND: no loader, or no driver; TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND.
TLDEF tl_result tl_vk_read_devices(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device_info *infos,
                                   int32_t capacity, int32_t *count);

// Make an instance, a device and a compute queue, for programs that have none.
//
//   device   overwritten; release with tl_vk_free_device, after all backends made from it
//
// Errors:  TL_ERROR_NOT_FOUND: no loader, no such device, no validation layer; TL_ERROR_UNSUPPORTED:
//          the device has no queue that computes; TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND.
TLDEF tl_result tl_vk_init_device(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device *device);
TLDEF void      tl_vk_free_device(tl_env *env, tl_vk_device *device);

// ============================================================================
// [2] MEMORY -- blocks in large buffers, allocators of others, staging
//
//     chunk  |##block##|####block####|......|##|.....|    one VkBuffer, one VkDeviceMemory
//     range       |--|                                    {block, offset, bytes}
//
// add_block takes a piece of a chunk; a chunk is made when none has room, halved where the
// driver is out of memory, and kept for later when it is empty. So in steady state nothing is
// allocated. The host tier is made of the same chunks in host memory, cached where the device
// offers that. What the host cannot reach is mapped through a staging ring.
// ============================================================================

// An allocator of the caller, such as VMA. It serves memory for whole chunks.
typedef struct tl_vk_memory_hooks {
    // Fill memory and offset for a buffer with these requirements; mapped where required has
    // HOST_VISIBLE: the address of that offset, mapped for good. cookie comes back in release.
    VkResult (*allocate)(void *user, const VkMemoryRequirements *requirements,
                         VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred,
                         VkDeviceMemory *memory, VkDeviceSize *offset, uint32_t *type_index,
                         void **mapped, void **cookie);
    void     (*release)(void *user, void *cookie);
    void      *user;
} tl_vk_memory_hooks;

#define TL_VK_COPY_PATHS(X) \
    X(TL_VK_COPY_PATH_COMMAND, "command", "vkCmdCopyBuffer")               \
    X(TL_VK_COPY_PATH_SHADER,  "shader",  "a compute shader, 64 bytes an invocation")

#define TLI_VK_ENUM(id, name, help) id,  // undefined again at the end of this half
typedef enum tl_vk_copy_path { TL_VK_COPY_PATHS(TLI_VK_ENUM) TL_VK_COPY_PATH_COUNT } tl_vk_copy_path;

typedef struct tl_vk_backend_desc {
    tl_vk_device device;         // copied; what it points to must outlive the backend
    uint64_t capacity_bytes[TL_TIER_COUNT];  // of claimed ranges; 0 = TL_UNLIMITED
    uint64_t chunk_bytes;        // 0 = an eighth of the heap, within 4 and 64 MiB
    uint64_t staging_bytes;      // of the staging ring; 0 = 4 MiB. A larger range gets a buffer of its own
    uint64_t submit_bytes;       // bytes moved before a submit is made unasked; 0 = 256 MiB
    int32_t  batch_count;        // submits (frames) under way at once; 0 = 4, at most 64
    uint32_t workgroup_size;     // of the shaders in [5]; 0 = 64; a power of two up to 1024
    uint32_t time_count;         // slots for tl_vk_record_time
    tl_vk_copy_path copy_path;   // device to device; 0 = command; tl_vk_measure_copies finds the better one
    tl_vk_memory_hooks hooks;    // 0 = vkAllocateMemory
} tl_vk_backend_desc;

// Make the Vulkan backend: with a queue it submits by itself, without one it records into the
// caller's frames.
//
//   env       must outlive it, and gets the sentence where one of its functions fails
//   backend   overwritten; release with tl_vk_free_backend
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_UNSUPPORTED: an entry point is missing or a limit is too
//          small, the text names it; TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND, TL_ERROR_DEVICE_LOST.
//          *backend is all zero then.
// Threads: one thread at a time.
TLDEF tl_result tl_vk_init_backend(tl_env *env, const tl_vk_backend_desc *desc, tl_backend *backend);

// Wait for the device (record mode: every frame must have been retired or dropped) and free
// everything. Legal after the device was lost.
TLDEF void tl_vk_free_backend(tl_env *env, tl_backend *backend);

// A buffer of the caller as a block, so that its bytes are saved, restored and read by kernels.
typedef struct tl_vk_buffer_desc {
    VkBuffer buffer;             // with the usages STORAGE_BUFFER, TRANSFER_SRC and TRANSFER_DST
    VkBufferUsageFlags usage;    // that it was created with
    uint64_t offset, bytes;      // the part that becomes the block; the offset aligned as limits say
    VkPipelineStageFlags stages; // where the caller uses it outside the backend, in the same queue;
    VkAccessFlags access;        // 0 = nowhere. Barriers before and after work on it include these
} tl_vk_buffer_desc;

// Add a buffer of the caller as a block of the device tier. free_block forgets it; the caller frees
// it, once the work on it has passed. The bytes between the end of a range and the next multiple of
// four may be overwritten. The host cannot map it.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY; *block is 0 then.
TLDEF tl_result tl_vk_add_buffer(const tl_backend *backend, const tl_vk_buffer_desc *desc, uint64_t *block);

// Where a range is, for descriptors and commands of the caller: until the next tl_vk_compact.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_STALE; *info is all zero then, as for an empty range.
TLDEF tl_result tl_vk_find_buffer(const tl_backend *backend, tl_range range, VkDescriptorBufferInfo *info);

// The command buffer that takes commands now, for the caller's own; NULL where it records (no
// frame is open). Call after `order`: what was enqueued stands in it before what the caller records.
//
// Errors:  TL_NOT_READY: record mode, no frame is open; those of a submit.
TLDEF tl_result tl_vk_find_commands(const tl_backend *backend, VkCommandBuffer *commands);

// Put all work on these ranges before what the caller records next with these stages and accesses:
// tl_backend.order for other stages than compute.
TLDEF tl_result tl_vk_order(const tl_backend *backend, const tl_access *accesses, int32_t access_count,
                            VkPipelineStageFlags stages, VkAccessFlags access);

// Give empty chunks back to Vulkan, until at most so many bytes of them are kept.
TLDEF tl_result tl_vk_drop_unused(const tl_backend *backend, uint64_t keep_bytes);

// Move blocks out of the emptiest chunk into others, at most so many bytes, so that it can be dropped.
// The copies are enqueued; handles stay valid. Nothing may be mapped.
//
//   moved_bytes   0 = there is nothing left to gain
TLDEF tl_result tl_vk_compact(const tl_backend *backend, uint64_t most_bytes, uint64_t *moved_bytes);

// Time both copy paths on the device and take the faster one for copies of 64 KiB and more. Waits.
//
// Errors:  TL_ERROR_UNSUPPORTED: record mode; and those of the backend.
TLDEF tl_result tl_vk_measure_copies(const tl_backend *backend, tl_vk_copy_path *path);

// What the backend asked of Vulkan and of the env since init.
typedef struct tl_vk_counters {
    uint64_t memory_count;       // vkAllocateMemory, or calls of the hook
    uint64_t memory_bytes;       // held now, in chunks and staging
    uint64_t chunk_count;        // of these, chunks
    uint64_t largest_free_bytes; // piece of a chunk in the device tier
    uint64_t host_alloc_count;   // memory taken from the env
    uint64_t submit_count;       // vkQueueSubmit
    uint64_t host_wait_count;    // waits for the device that blocked
    uint64_t frame_count;        // frames opened
    uint64_t barrier_count;      // vkCmdPipelineBarrier
    uint64_t copy_count, fill_count, dispatch_count;  // commands; of the backend's own, see [4] for kernels
    uint64_t kernel_count;       // tl_vk_record_kernel
    uint64_t staged_bytes;       // moved through staging
    uint64_t recorded_bytes;     // moved by commands of the batch or frame that is open
} tl_vk_counters;

TLDEF void tl_vk_measure(const tl_backend *backend, tl_vk_counters *counters);

TLDEF const char *tl_vk_name_copy_path(tl_vk_copy_path path);  // "command"; "?" out of range

// ============================================================================
// [3] FRAMES -- recording into command buffers of the caller
//
//     start_frame(commands) ... copies, kernels ... end_frame      the caller submits
//          |                                                            |
//          +--> ticket of the frame                 its fence: retire_frame(ticket)
//                                                   thrown away: drop_frame(ticket)
//
// For engines. Nothing is submitted, waited for or allocated; work that is enqueued while no
// frame is open goes into the next one. Frames are submitted in the order in which they were
// started, to one queue. What was recorded into a dropped frame never happened: what it wrote is
// lost, and reading it is TL_ERROR_STALE until it is written again; a pass of a run that was
// under way is given up with that error, and begins again.
// ============================================================================

// Open a frame: what is enqueued goes into this command buffer, which is recording, outside of a
// render pass.
//
//   frame   what to retire or drop; also the ticket of everything in the frame
//
// Errors:  TL_ERROR_INVALID_ARG: a frame is open, or the backend has a queue; TL_NOT_READY: batch_count
//          frames are under way; TL_ERROR_DEVICE_LOST.
TLDEF tl_result tl_vk_start_frame(const tl_backend *backend, VkCommandBuffer commands, tl_ticket *frame);

// Record what is still enqueued, and close the frame.
TLDEF tl_result tl_vk_end_frame(const tl_backend *backend);

// The fence of this frame, and of all before it, has signalled.
TLDEF tl_result tl_vk_retire_frame(const tl_backend *backend, tl_ticket frame);

// This frame, the latest one started, is not going to be submitted. It may still be open.
TLDEF tl_result tl_vk_drop_frame(const tl_backend *backend, tl_ticket frame);

// The device was lost, as the caller found out: every later call says so.
TLDEF void tl_vk_lose_device(const tl_backend *backend);

// ============================================================================
// [4] KERNELS -- compute shaders on ranges, timestamps
//
//     tl_vk_init_kernel(words, 3 buffers, 16 bytes of push constants)  once
//     tl_vk_record_kernel(kernel, ranges, push, groups)                in a tl_kernel_fn
//
// A thin layer for kernels of your own: pipeline, descriptor sets and push constants. The
// executor [12] has called `order` on the ranges before it calls your kernel; call it yourself
// elsewhere.
// ============================================================================

typedef struct tl_vk_kernel tl_vk_kernel;

typedef struct tl_vk_kernel_desc {
    const uint32_t *words;        // [word_count] SPIR-V; the entry point is "main"
    size_t          word_count;
    int32_t         buffer_count; // storage buffers: set 0, bindings 0 .. buffer_count - 1; at most 16
    uint32_t        push_bytes;   // push constants; a multiple of 4, at most 128
    const uint32_t *constants;    // [constant_count] specialisation constants 0, 1, ...
    uint32_t        constant_count;  // at most 16
} tl_vk_kernel_desc;

// Make a kernel.
//
//   kernel   overwritten; release with tl_vk_free_kernel before the backend, once its work has passed
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_UNSUPPORTED: more buffers than the device binds;
//          TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND. *kernel is NULL then.
TLDEF tl_result tl_vk_init_kernel(const tl_backend *backend, const tl_vk_kernel_desc *desc,
                                  tl_vk_kernel **kernel);
TLDEF void      tl_vk_free_kernel(const tl_backend *backend, tl_vk_kernel *kernel);  // accepts NULL

// Record one dispatch.
//
//   ranges   [buffer_count] what is bound; an empty one binds four bytes of nobody. A length that is not a
//            multiple of four is rounded up
//   push     [push_bytes]
//
// Errors:  TL_NOT_READY: record mode, no frame is open; TL_ERROR_UNSUPPORTED: a range is longer than the
//          device can bind, or there are more groups than it takes; TL_ERROR_INVALID_ARG,
//          TL_ERROR_STALE, TL_ERROR_NO_MEMORY, TL_ERROR_DEVICE_LOST.
TLDEF tl_result tl_vk_record_kernel(const tl_backend *backend, const tl_vk_kernel *kernel, const tl_range *ranges,
                                    const void *push, uint32_t groups_x, uint32_t groups_y, uint32_t groups_z);

// Write the device's time into a slot once everything before it is finished. tl_vk_read_times
// waits for what was submitted (record mode: TL_NOT_READY before the frame was retired) and converts
// to nanoseconds.
//
// Errors:  TL_ERROR_UNSUPPORTED: the queue has no timestamps; TL_ERROR_INVALID_ARG: slot not below
//          time_count, or never written; and those of the backend.
TLDEF tl_result tl_vk_record_time(const tl_backend *backend, uint32_t slot);
TLDEF tl_result tl_vk_read_times(const tl_backend *backend, uint32_t first, uint32_t count, uint64_t *ns);

// ============================================================================
// [5] SHADERS -- copy, fill and convert on the device
//
//     f32 |  |  |  |  |  -->  f16 |  |  |      the codecs of tl_compress_bytes, bit for bit
//
// shaders/*.comp as words, made by `make shaders`. They work on 32-bit integers only: no 8 or
// 16-bit types, no float rounding that a driver may choose.
// ============================================================================

#define TL_VK_SHADERS(X) \
    X(TL_VK_SHADER_COPY,      "copy",      "to[] = from[], 4 x uvec4 an invocation")              \
    X(TL_VK_SHADER_COPY_UINT, "copy_uint", "the same, a word an invocation: any length")           \
    X(TL_VK_SHADER_FILL,      "fill",      "to[] = word")                                         \
    X(TL_VK_SHADER_TO_F16,    "to_f16",    "f32 -> f16")                                          \
    X(TL_VK_SHADER_FROM_F16,  "from_f16",  "f16 -> f32")                                          \
    X(TL_VK_SHADER_TO_BF16,   "to_bf16",   "f32 -> bf16")                                         \
    X(TL_VK_SHADER_FROM_BF16, "from_bf16", "bf16 -> f32")                                         \
    X(TL_VK_SHADER_TO_Q8,     "to_q8",     "f32 -> blocks of 32 with a scale")                    \
    X(TL_VK_SHADER_FROM_Q8,   "from_q8",   "blocks of 32 with a scale -> f32")                    \
    X(TL_VK_SHADER_MIN_MAX,   "min_max",   "least and largest finite value, and how many are not finite") \
    X(TL_VK_SHADER_ADD,       "add",       "to[] += from[], f32: gradient accumulation")           \
    X(TL_VK_SHADER_CHECKSUM,  "checksum",  "sum of mixed words: equal where the bytes are")

typedef enum tl_vk_shader { TL_VK_SHADERS(TLI_VK_ENUM) TL_VK_SHADER_COUNT } tl_vk_shader;

// Enqueue to[] += from[] on f32: equal bytes, a multiple of four, no overlap.
//
// Errors:  as tl_backend.copy.
TLDEF tl_result tl_vk_record_add(const tl_backend *backend, tl_range to, tl_range from);

// What min_max writes. A key orders as its number does; tl_vk_read_extremes turns keys into numbers.
typedef struct tl_vk_extremes {
    uint32_t least_key, largest_key;    // of the finite values; UINT32_MAX and 0 where there is none
    uint32_t finite_count, other_count; // other: NaN and infinities
} tl_vk_extremes;

// Enqueue the extremes of the f32 in a range into another of 16 bytes: for observers.
//
// Errors:  as tl_backend.copy.
TLDEF tl_result tl_vk_record_min_max(const tl_backend *backend, tl_range to, tl_range from);

// Turn the keys into numbers: 1, or 0 where no value was finite.
TLDEF int tl_vk_read_extremes(const tl_vk_extremes *extremes, float *least, float *largest);

// Enqueue the checksum of a range, a multiple of four bytes, into another of 8 bytes; and the same on
// the host. The sum does not depend on the order in which words are read.
//
// Errors:  as tl_backend.copy.
TLDEF tl_result tl_vk_record_checksum(const tl_backend *backend, tl_range to, tl_range from);
TLDEF void      tl_vk_checksum_bytes(const void *bytes, size_t count, uint32_t sum[2]);

TLDEF const char *tl_vk_name_shader(tl_vk_shader shader);  // "to_f16"; "?" out of range

#undef TLI_VK_ENUM
#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H
