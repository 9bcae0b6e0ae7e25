/* tl_vk_backend.h - v0.6.0 - the buffers of tl_strategy.h on Vulkan compute
   Joined from the parts in src/vk by `make header`: edit those, this file is overwritten.
   Depends on tl_strategy.h and <vulkan/vulkan_core.h>. MIT or public domain: see the end.

   Implements [10] BACKEND of tl_strategy.h on a VkDevice that you own: tensors are kept, spilled,
   compressed and recomputed in Vulkan memory, on your queue or in your command buffers. The
   checkpoint manager and the executor run on it as they do on the CPU backend.

   SYNOPSIS
       #define TL_STRATEGY_IMPLEMENTATION      // in exactly one .c or .cpp file
       #define TL_VK_BACKEND_IMPLEMENTATION
       #include "tl_vk_backend.h"

       tl_vk_backend_desc desc = {0};
       desc.device.get_instance_proc = vkGetInstanceProcAddr;   // volk's, SDL's, dlsym's
       desc.device.instance = ...;  desc.device.physical = ...;  desc.device.device = ...;
       desc.device.queue = ...;     desc.device.queue_family = ...;
       if (tl_vk_init_backend(&env, &desc, &backend)) puts(env.error.text);
       run_desc.backend = &backend;                              // all else is as on the CPU

   CONTENTS          (every name below is a banner: search for "[2]")
       [1] DEVICE        borrow the engine's device, or make one
       [2] MEMORY        blocks in large buffers, allocators of others, staging
       [3] FRAMES        recording into command buffers of the caller
       [4] KERNELS       compute shaders on ranges, timestamps
       [5] SHADERS       copy, fill and convert on the device

   OPTIONS           (define before the include; none is needed)
       TL_VK_BACKEND_IMPLEMENTATION   in one file, the one with TL_STRATEGY_IMPLEMENTATION or another
       TL_VK_LINKED                   get_instance_proc = 0 in a tl_vk_device_desc means the linked
                                      vkGetInstanceProcAddr
       TL_VK_OPEN_LOADER              the same means that of the system's loader, found with dlopen
                                      or LoadLibrary
       VK_NO_PROTOTYPES               is defined here unless <vulkan/vulkan.h> was included before:
                                      include that or volk.h first if you need the prototypes

   RULES
       Those of tl_strategy.h. No global symbol beginning with vk is defined or needed. One backend
       is used by one thread at a time; several backends may share a device, and a queue where
       lock_queue and unlock_queue are given. Vulkan 1.0 is enough, and SPIR-V 1.0 without 8 or
       16-bit types; timeline semaphores and VK_EXT_memory_budget are used where they were enabled.

       All work runs on one queue in the order in which it was enqueued. A freed range can therefore
       be reused at once: a barrier orders the new work after the old. The host waits for the device
       only where it is asked to (wait, times), for mapped ranges, for staging or memory that work
       still uses, and while batch_count submits are under way. With a transfer queue, copies between
       the tiers are submitted to it at once; later work on their ranges waits for them on the device.
*/
#ifndef TL_VK_BACKEND_H

#include "tl_strategy.h"

#ifdef TL_ONLY_TABLES
#error "tl_vk_backend.h: TL_ONLY_TABLES runs in memory of the host"
#endif

#ifndef VULKAN_CORE_H_
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>
#endif

#ifndef TL_EXPERIMENTAL  // functions whose form may still change
#define TL_EXPERIMENTAL TLDEF
#endif
#endif  // TL_VK_BACKEND_H

#ifndef TL_VK_BACKEND_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [1] DEVICE -- borrow the engine's device, or make one
//
//     engine:      instance, device, queue  --borrowed-->  tl_vk_backend_desc.device
//     standalone:  tl_vk_init_device        --made for you-->  the same struct
//
// Vulkan cannot be asked which extensions and features a device was created with, so its owner
// declares them in this struct. The backend uses nothing that is not declared.
// ============================================================================

// A device and what its owner enabled. Everything in it must outlive the backends made from it.
typedef struct tl_vk_device {
    PFN_vkGetInstanceProcAddr get_instance_proc;  // not 0; tl_vk_init_device sets the one that it used
    VkInstance         instance;         // that the device was made from
    VkPhysicalDevice   physical;         // likewise
    VkDevice           device;
    uint32_t           api_version;      // that instance and device were created for; 0 = Vulkan 1.0
    const char *const *extensions;       // [extension_count] enabled on the device
    uint32_t           extension_count;
    int32_t            timeline_enabled; // 1 = the feature timelineSemaphore is enabled; 0 = use fences
    VkQueue            queue;            // of a family with compute; VK_NULL_HANDLE = record mode, see [3]
    uint32_t           queue_family;     // of the queue, or in record mode of the caller's command buffers
    VkQueue            transfer_queue;   // for copies between the tiers, needs timelines and a queue;
                                         // VK_NULL_HANDLE = the queue
    VkQueue            upload_queue;     // for those of them that go to the device tier, where it copies both
                                         // ways at once; VK_NULL_HANDLE = transfer_queue
    uint32_t           transfer_family;  // of transfer_queue and upload_queue
    void             (*lock_queue)(void *user);    // before every use of a queue; both or neither
    void             (*unlock_queue)(void *user);  // after it
    void              *lock_user;        // passed to both
    const VkAllocationCallbacks *callbacks;        // for every vkCreate and vkAllocateMemory; 0 = none
    void              *owned;            // set by tl_vk_init_device, 0 elsewhere
} tl_vk_device;

typedef struct tl_vk_device_desc {
    PFN_vkGetInstanceProcAddr get_instance_proc;  // 0 = see TL_VK_LINKED and TL_VK_OPEN_LOADER
    int32_t  number;             // 1 = the first that tl_vk_read_devices lists; 0 = the first discrete or
                                 // integrated GPU that computes, else the first device that does
    uint32_t api_version;        // 0 = Vulkan 1.1, or what the loader and the device have if that is less
    int32_t  validates;          // 1 = enable VK_LAYER_KHRONOS_validation, TL_ERROR_NOT_FOUND without it
    PFN_vkDebugUtilsMessengerCallbackEXT message;  // gets warnings and errors of layers and drivers, by
                                 // VK_EXT_debug_utils; 0 = they go where the settings of the layer say
    void    *message_user;
    int32_t  enable_transfer;    // 1 = also queues of the first family that transfers and does nothing else,
                                 // not video either: two where it has two, else one, or none
} tl_vk_device_desc;

// One device of the machine.
typedef struct tl_vk_device_info {
    char     name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];  // as the driver says it
    VkPhysicalDeviceType type;   // VK_PHYSICAL_DEVICE_TYPE_CPU: a driver that computes on the host
    uint32_t api_version, driver_version;  // as the driver says them
    int32_t  has_compute;        // 0 = no queue family computes: tl_vk_init_device refuses the device
    uint64_t device_bytes;       // of its largest device-local heap
} tl_vk_device_info;

// List the devices of the machine.
//
//   infos   [capacity] filled from the start; may be NULL where capacity is 0
//   count   number of devices, which may be larger than the capacity
//
// Errors:  TL_ERROR_NOT_FOUND: no loader, no driver, no validation layer; TL_ERROR_UNSUPPORTED: an entry point
//          is missing; TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND. *count is 0 then.
TLDEF tl_result tl_vk_read_devices(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device_info *infos,
                                   int32_t capacity, int32_t *count);

// Make an instance, a device and a compute queue, for programs that have none.
//
//   device   overwritten; release with tl_vk_free_device, after all backends made from it
//
// Errors:  TL_ERROR_NOT_FOUND: no loader, no driver, no such device, no validation layer; TL_ERROR_UNSUPPORTED:
//          the device has no queue that computes, or an entry point is missing; TL_ERROR_NO_MEMORY,
//          TL_ERROR_BACKEND. *device is all zero then.
TLDEF tl_result tl_vk_init_device(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device *device);

// Free a device that tl_vk_init_device made. Any other, and NULL, is left as it is.
//
// Errors:  TL_ERROR_INVALID_ARG: backends made from it are still there, the text tells how many; nothing is
//          freed.
// Threads: one at a time with the making and freeing of backends from it.
TLDEF tl_result tl_vk_free_device(tl_env *env, tl_vk_device *device);

#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

#ifndef TL_VK_BACKEND_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [2] MEMORY -- blocks in large buffers, allocators of others, staging
//
//     chunk  |##block##|####block####|......|##|.....|    one VkBuffer, one VkDeviceMemory
//     range       |--|                                    {block, offset, bytes}
//     arena  |################ block ################|    the same, of one block alone
//
// add_arena, which a run calls for each block of its arenas, allocates memory of exactly the block's bytes,
// rounded up as VkMemoryRequirements say; it is freed with the block, once the work on it has finished.
// add_block, for many small blocks, takes a piece of a chunk. A chunk is allocated when no chunk of the tier
// has room; its size is halved while the driver reports that it is out of memory; an empty chunk is kept. So
// the steady state allocates nothing. The device tier is device-local memory, but not such that the host sees
// where there is other, as that is often a small window; what does not fit is refused, unless allow_host_memory
// is set. The host tier consists of chunks in host memory, cached where the device offers that. Ranges that the
// host cannot address are mapped through staging.
// ============================================================================

// An allocator of the caller, such as VMA. It allocates the memory of whole chunks.
typedef struct tl_vk_memory_hooks {
    // Allocate memory for a buffer with these requirements: set *memory, *offset and *type_index. Size and
    // alignment are multiples of nonCoherentAtomSize, as whole atoms are flushed. Where `required` has
    // HOST_VISIBLE, map it and set *mapped to the address of that offset; it stays mapped until release, which
    // gets the *cookie. The device tier requires that where its memory is host-visible, as on unified memory;
    // where *mapped is left NULL, its ranges are mapped through staging.
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

#define TLI_VK_ENUM(id, name, help) id,  // undefined at the end of the public half
typedef enum tl_vk_copy_path { TL_VK_COPY_PATHS(TLI_VK_ENUM) TL_VK_COPY_PATH_COUNT } tl_vk_copy_path;

typedef struct tl_vk_backend_desc {
    tl_vk_device device;         // copied; what it points to must outlive the backend
    uint64_t capacity_bytes[TL_TIER_COUNT];  // most bytes claimed at a time, and of a run with its
                                 // base_bytes; 0 = TL_UNLIMITED
    uint64_t chunk_bytes;        // 0 = an eighth of the heap, within 4 and 64 MiB
    uint64_t staging_bytes;      // 0 = 4 MiB. With a queue a larger range goes through it in pieces, by way of
                                 // memory of the env; in record mode it gets a buffer of its own. Both are kept
    uint64_t submit_bytes;       // bytes of work after which the backend submits by itself; 0 = 256 MiB
    int32_t  batch_count;        // submits or frames in flight, at most 64; 0 = 4 frames, or with a queue as
                                 // many submits as a step makes, up to 256, so that the host waits for none
    uint32_t workgroup_size;     // of the shaders in [5]; 0 = 64; a power of two up to 1024
    uint32_t time_count;         // timestamp slots for tl_vk_record_time
    tl_vk_copy_path copy_path;   // device to device; 0 = command; tl_vk_measure_copies finds the better one
    tl_vk_memory_hooks hooks;    // 0 = vkAllocateMemory
    uint64_t (*now_ns)(void *user);  // clock of the host, for profiling; 0 = none, every time is 0
    void    *user;
    int32_t  allow_host_memory;  // 1 = where device-local memory is used up, the device tier goes on in other
                                 // memory that the device can access: tl_vk_counters.outside_bytes
    int32_t  exceed_budget;      // 1 = an arena may exceed what VK_EXT_memory_budget, or without it four fifths
                                 // of the heap, leaves: the driver decides, and may page
    VkPipelineCache pipeline_cache;  // of the device, for every pipeline; outlives the backend, and several may
                                 // share it. A shader of the library is compiled by the first operation that
                                 // needs it; VK_NULL_HANDLE = each backend compiles them anew
} tl_vk_backend_desc;

// Make the Vulkan backend: with a queue it submits by itself, without one it records into the
// caller's frames.
//
//   env       must outlive the backend; texts of its errors go there
//   backend   overwritten; release with tl_vk_free_backend
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_UNSUPPORTED: an entry point is missing or a limit is too
//          small, and the text names it; TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND, TL_ERROR_DEVICE_LOST.
//          *backend is all zero then.
// Threads: one thread at a time.
TLDEF tl_result tl_vk_init_backend(tl_env *env, const tl_vk_backend_desc *desc, tl_backend *backend);

// Wait for the device and free everything, blocks and claims included. Legal after the device was lost.
//
// Errors:  TL_ERROR_INVALID_ARG: there are runs, managers, kernels or mapped ranges of it, or in record mode
//          frames that were neither retired nor dropped; the text tells how many; nothing is freed.
TLDEF tl_result tl_vk_free_backend(tl_env *env, tl_backend *backend);

// A buffer of the caller that becomes a block, so that its bytes can be saved, restored and used by kernels.
typedef struct tl_vk_buffer_desc {
    VkBuffer buffer;             // with the usages STORAGE_BUFFER, TRANSFER_SRC and TRANSFER_DST
    VkBufferUsageFlags usage;    // it was created with these
    uint64_t offset, bytes;      // the part that becomes the block; the offset aligned as limits say, the bytes
                                 // a multiple of 4, not 0
    VkPipelineStageFlags stages; // of the caller's own commands on it, in the same queue; 0 = none.
    VkAccessFlags access;        // Barriers before and after the backend's work on it include these
} tl_vk_buffer_desc;

// Add a buffer of the caller as a block of the device tier. free_block removes the block; the caller
// destroys the buffer, after the work on it has finished. The bytes between the end of a range and the
// next multiple of four may be overwritten.
//
// A buffer may be added several times, in parts that may overlap: work on the same bytes is ordered whichever
// block it goes through, and the stages of all of them hold for the buffer until its last block is freed and
// the work on it has finished. Different buffers over the same memory are not recognised.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY; *block is 0 then.
TLDEF tl_result tl_vk_add_buffer(const tl_backend *backend, const tl_vk_buffer_desc *desc, uint64_t *block);

// Find the buffer, offset and length of a range, for descriptors and commands of the caller. They are
// valid until the next tl_vk_compact.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_STALE; *info is all zero then, as for an empty range.
TLDEF tl_result tl_vk_find_buffer(const tl_backend *backend, tl_range range, VkDescriptorBufferInfo *info);

// Find the command buffer that is recording, so that the caller can record into it; NULL on error.
// Enqueued work is recorded before. Call `order` first, for the ranges that the commands will access.
//
// Errors:  TL_NOT_READY: record mode, no frame is open; those of a submit. If vkEndCommandBuffer fails
//          later, the backend records its own commands again, but not the caller's: what was to be written
//          from here on is then lost, as in a frame that is dropped.
TLDEF tl_result tl_vk_find_commands(const tl_backend *backend, VkCommandBuffer *commands);

// Order all earlier work on these ranges before the commands that the caller records next, which
// run in these stages with these accesses: tl_backend.order for other stages than compute.
TLDEF tl_result tl_vk_order(const tl_backend *backend, const tl_access *accesses, int32_t access_count,
                            VkPipelineStageFlags stages, VkAccessFlags access);

// Free empty chunks, but keep up to keep_bytes of them, and those on which work is under way.
//
// Errors:  those of the backend, where it asks the device what has finished.
TL_EXPERIMENTAL tl_result tl_vk_drop_unused(const tl_backend *backend, uint64_t keep_bytes);

// Move at most most_bytes of blocks from the emptiest chunk into others, so that it can be freed.
// The copies are enqueued; handles stay valid. No range may be mapped. If the frame with the copies is
// dropped, the bytes of the moved blocks are lost.
//
//   moved_bytes   0 = nothing could be moved
//
// Errors:  TL_ERROR_INVALID_ARG: a range is mapped; those of a copy. *moved_bytes is what was moved before.
TL_EXPERIMENTAL tl_result tl_vk_compact(const tl_backend *backend, uint64_t most_bytes, uint64_t *moved_bytes);

// Time both copy paths on the device and use the faster one for copies and fills of 64 KiB and more
// inside the device tier. Waits for the device.
//
//   path   the one that is used now
//
// Errors:  TL_ERROR_UNSUPPORTED: record mode, or a queue without timestamps; and those of the backend. The path
//          is the one before then.
TL_EXPERIMENTAL tl_result tl_vk_measure_copies(const tl_backend *backend, tl_vk_copy_path *path);

// What the backend did since init and what it holds now.
typedef struct tl_vk_counters {
    uint64_t memory_count;       // calls of vkAllocateMemory, or of the hook
    uint64_t memory_bytes;       // of VkDeviceMemory held now: arenas, chunks and staging
    uint64_t chunk_count;        // chunks alive, arenas and staging included
    uint64_t largest_free_bytes; // largest free piece in the chunks of the device tier
    uint64_t host_alloc_count;   // times that tables, kernels and heaps of chunks took memory from the env
    uint64_t submit_count;       // calls of vkQueueSubmit
    uint64_t host_wait_count;    // waits for the device that blocked
    uint64_t frame_count;        // frames opened
    uint64_t barrier_count;      // calls of vkCmdPipelineBarrier
    uint64_t copy_count, fill_count, dispatch_count;  // commands that the backend recorded for itself
    uint64_t kernel_count;       // calls of tl_vk_record_kernel
    uint64_t staged_bytes;       // moved through staging
    uint64_t recorded_bytes;     // enqueued or recorded for the open submit or frame
    uint64_t arena_bytes;        // of memory_bytes: of arenas
    uint64_t staging_bytes;      // of memory_bytes: of staging
    uint64_t outside_bytes;      // of memory_bytes: of the device tier, in memory that is not device-local
    uint64_t heap_bytes[VK_MAX_MEMORY_HEAPS];  // memory_bytes by the heaps of the device
} tl_vk_counters;

// Read the counters.
TLDEF void tl_vk_measure(const tl_backend *backend, tl_vk_counters *counters);

// Name a path.
TL_EXPERIMENTAL const char *tl_vk_name_copy_path(tl_vk_copy_path path);  // "command"; "?" out of range

#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

#ifndef TL_VK_BACKEND_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [3] FRAMES -- recording into command buffers of the caller
//
//     start_frame(commands) ... copies, kernels ... end_frame      the caller submits
//          |                                                            |
//          +--> ticket of the frame                 its fence: retire_frame(ticket)
//                                                   thrown away: drop_frame(ticket)
//
// For engines that submit by themselves. The backend submits nothing and waits for nothing. Frames allocate
// while its lists, descriptor pools and staging grow, and nothing after that. Work that is enqueued while no
// frame is open is recorded into the next one. The caller submits frames to one queue, in the order in which
// they were started. The commands of a dropped frame never run, so the bytes that they would have written are
// lost: reading them, or ordering them for a kernel, is TL_ERROR_STALE until they are filled, copied to, mapped
// for writing, or claimed again. A pass of a run that meets lost bytes ends with that error and starts again.
// ============================================================================

// Open a frame: enqueued work is recorded into this command buffer, which must be recording, outside
// of a render pass.
//
//   frame   names the frame when it is retired or dropped; also the ticket of all work in it
//
// Errors:  TL_ERROR_INVALID_ARG: a frame is open, or the backend has a queue; TL_NOT_READY: batch_count
//          frames are in flight; TL_ERROR_DEVICE_LOST.
TLDEF tl_result tl_vk_start_frame(const tl_backend *backend, VkCommandBuffer commands, tl_ticket *frame);

// Record what is still enqueued, and close the frame.
//
// Errors:  TL_ERROR_INVALID_ARG: no frame is open; TL_ERROR_DEVICE_LOST; what kept the work from being
//          recorded, and the frame stays open then.
TLDEF tl_result tl_vk_end_frame(const tl_backend *backend);

// Tell that the fences of this frame and of all before it have signalled.
//
// Errors:  TL_ERROR_INVALID_ARG: the frame was never ended.
TLDEF tl_result tl_vk_retire_frame(const tl_backend *backend, tl_ticket frame);

// Tell that this frame will not be submitted. It must be the latest that was not dropped; it may be open.
//
// Errors:  TL_ERROR_INVALID_ARG: it is another one, or was retired.
TLDEF tl_result tl_vk_drop_frame(const tl_backend *backend, tl_ticket frame);

// Tell that the device was lost: every later call returns TL_ERROR_DEVICE_LOST.
TLDEF void tl_vk_lose_device(const tl_backend *backend);

#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

#ifndef TL_VK_BACKEND_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [4] KERNELS -- compute shaders on ranges, timestamps
//
//     tl_vk_init_kernel(words, 3 buffers, 16 bytes of push constants)  once
//     tl_vk_record_kernel(kernel, ranges, push, groups)                in a tl_kernel_fn
//
// A thin layer for kernels of your own: pipeline, descriptor sets and push constants. [12] RUN calls
// `order` on the ranges of a kernel before it calls the kernel; outside of a run the caller does.
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
//   kernel   overwritten; release with tl_vk_free_kernel after its work has finished, before the backend,
//            which refuses to be freed until then
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_UNSUPPORTED: more buffers or push constants than the device binds;
//          TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND, TL_ERROR_DEVICE_LOST. *kernel is NULL then.
TLDEF tl_result tl_vk_init_kernel(const tl_backend *backend, const tl_vk_kernel_desc *desc,
                                  tl_vk_kernel **kernel);
TLDEF void      tl_vk_free_kernel(const tl_backend *backend, tl_vk_kernel *kernel);  // accepts NULL

// Record one dispatch.
//
//   ranges   [buffer_count] bound in this order; for an empty one a placeholder of four bytes is bound.
//            Lengths are rounded up to a multiple of four
//   push     [push_bytes]
//
// Errors:  TL_NOT_READY: record mode, no frame is open; TL_ERROR_UNSUPPORTED: a range is longer than the
//          device can bind, or there are more groups than it takes; TL_ERROR_INVALID_ARG,
//          TL_ERROR_STALE, TL_ERROR_NO_MEMORY, TL_ERROR_DEVICE_LOST.
TLDEF tl_result tl_vk_record_kernel(const tl_backend *backend, const tl_vk_kernel *kernel,
                                    const tl_range *ranges, const void *push, uint32_t groups_x,
                                    uint32_t groups_y, uint32_t groups_z);

// Write the device's time into a slot when all earlier work has finished. tl_vk_read_times waits until
// it is written (record mode: TL_NOT_READY before the frame was retired) and converts to nanoseconds since an
// unknown start. Where the device's counter, of at most 48 bits, begins again from 0, times go on: a difference
// is right if less than seven eighths of its range lie between a time and the one that was read before.
//
// Errors:  TL_ERROR_UNSUPPORTED: the queue has no timestamps; TL_ERROR_INVALID_ARG: slot not below
//          time_count, or never written; and those of the backend.
TLDEF tl_result tl_vk_record_time(const tl_backend *backend, uint32_t slot);
TLDEF tl_result tl_vk_read_times(const tl_backend *backend, uint32_t first, uint32_t count, uint64_t *ns);

#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

#ifndef TL_VK_BACKEND_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [5] SHADERS -- copy, fill and convert on the device
//
//     f32 |  |  |  |  |  -->  f16 |  |  |      the codecs of tl_compress_bytes, bit for bit
//
// The SPIR-V of shaders/*.comp, written by `make shaders`. All but `add` use 32-bit integers only: they
// need no 8 or 16-bit types, and no result depends on how a driver rounds floats.
// ============================================================================

// Enqueue to[] += from[] on f32: equal bytes, a multiple of four, no overlap.
//
// Errors:  as tl_backend.copy.
TL_EXPERIMENTAL tl_result tl_vk_record_add(const tl_backend *backend, tl_range to, tl_range from);

// The result of min_max. A key is an f32 as an integer of the same order; tl_vk_read_extremes converts it.
typedef struct tl_vk_extremes {
    uint32_t least_key, largest_key;    // of the finite values; UINT32_MAX and 0 where there is none
    uint32_t finite_count, other_count; // other: NaN and infinities
} tl_vk_extremes;

// Enqueue the search for the extremes of the f32 in `from`; `to` takes tl_vk_extremes, 16 bytes. Observers
// of [7] without a histogram need no more (tl_vk_observe_extremes).
//
// Errors:  as tl_backend.copy.
TL_EXPERIMENTAL tl_result tl_vk_record_min_max(const tl_backend *backend, tl_range to, tl_range from);

// Convert the keys into numbers. Returns 1, or 0 where no value was finite.
TL_EXPERIMENTAL int tl_vk_read_extremes(const tl_vk_extremes *extremes, float *least, float *largest);

// Enqueue the same search for each channel: element i belongs to channel (i / inner_count) % channel_count,
// as for tl_quantize and for an observer.
//
//   to       an array of tl_vk_extremes, 16 bytes a channel
//
// Errors:  as tl_backend.copy; TL_ERROR_INVALID_ARG: a count of 0; TL_ERROR_UNSUPPORTED: more than
//          2^30 elements in channel_count x inner_count, more channels than the device binds;
//          TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND: the first call creates the shader; TL_NOT_READY: frames
//          that were not retired use the staging.
// Cost:    16 bytes of staging a channel. One pass over the data, for any inner_count.
TL_EXPERIMENTAL tl_result tl_vk_record_min_max_channels(const tl_backend *backend, tl_range to,
                                                        tl_range from, int32_t channel_count,
                                                        uint64_t inner_count);

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// Add the extremes of one batch to an observer. Its ranges are then those that tl_observe_data finds, bit
// for bit. Kinds of observers that need more than extremes are refused.
//
//   extremes   [channel_count], of the first channels of the observer; one without finite values is skipped
//
// Errors:  TL_ERROR_INVALID_ARG: a value was not finite; and those of tl_observe_extremes. The observer is
//          unchanged then; but with TL_ERROR_OVERFLOW the channels after the one at fault have been updated.
TL_EXPERIMENTAL tl_result tl_vk_observe_extremes(tl_env *env, tl_observer *observer,
                                                 const tl_vk_extremes *extremes, int32_t channel_count);
#endif

#ifndef TL_NO_PRECISION
// Enqueue the conversion of f32 to integers of a quantisation, and back: tl_quantize and
// tl_dequantize, bit for bit.
//
//   to, from        f32: 4 bytes an element; integers: 1 (i8) or 2 (i16). The last 32-bit word of the
//                   integers is written whole
//   quantizations   [channel_count] read during the call only; channels as above
//
// Errors:  those of tl_quantize and tl_dequantize, under their names; of tl_backend.copy; and of
//          tl_vk_record_min_max_channels.
// Cost:    20 bytes of staging a channel; three integer divisions an element to quantise, none back.
TL_EXPERIMENTAL tl_result tl_vk_record_quantize(const tl_backend *backend, tl_range to, tl_range from,
                                                const tl_quantization *quantizations,
                                                int32_t channel_count, uint64_t inner_count,
                                                tl_format format);
TL_EXPERIMENTAL tl_result tl_vk_record_dequantize(const tl_backend *backend, tl_range to, tl_range from,
                                                  const tl_quantization *quantizations,
                                                  int32_t channel_count, uint64_t inner_count,
                                                  tl_format format);
#endif

// Enqueue the checksum of `from`, a multiple of four bytes, into the 8 bytes of `to`; tl_vk_checksum_bytes
// computes it on the host. The sum does not depend on the order in which words are read.
//
// Errors:  as tl_backend.copy.
TL_EXPERIMENTAL tl_result tl_vk_record_checksum(const tl_backend *backend, tl_range to, tl_range from);
TL_EXPERIMENTAL void tl_vk_checksum_bytes(const void *bytes, size_t count, uint32_t sum[2]);

#undef TLI_VK_ENUM
#define TL_VK_BACKEND_H
#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// What all parts of the implementation need. Private names begin with tli_vk_ (vk: Vulkan); in functions
// `b` points to the state of a backend, tli_vk in [2].

#include <string.h>
#ifdef TL_STRATEGY_STATIC
#define TLI_VK_IMPL static inline
#else
#define TLI_VK_IMPL
#endif
#define TLI_VK_NAME(id, name, help) name,  // undefined in the last part

#ifdef TL_VK_OPEN_LOADER
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#endif
#endif
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [1] DEVICE (implementation)
// ============================================================================

// Loads the entry points that the backend uses, explains VkResults, and makes an instance, a device and
// its queues for programs that have none.

#define TLI_VK_FAMILIES 32  // queue families that are considered

// The entry points that every backend needs. The lists make the table of functions and what loads it; those
// that some backends do without stand in the table alone.
#define TLI_VK_INSTANCE_CALLS(X) \
    X(vkGetDeviceProcAddr) X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceMemoryProperties) \
    X(vkGetPhysicalDeviceQueueFamilyProperties)
#define TLI_VK_DEVICE_CALLS(X) \
    X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory) X(vkUnmapMemory) X(vkFlushMappedMemoryRanges) \
    X(vkInvalidateMappedMemoryRanges) X(vkCreateBuffer) X(vkDestroyBuffer) \
    X(vkGetBufferMemoryRequirements) X(vkBindBufferMemory) X(vkCreateCommandPool) \
    X(vkDestroyCommandPool) X(vkResetCommandPool) X(vkAllocateCommandBuffers) \
    X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkCmdPipelineBarrier) X(vkCmdCopyBuffer) \
    X(vkCmdFillBuffer) X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets) X(vkCmdPushConstants) \
    X(vkCmdDispatch) X(vkCmdWriteTimestamp) X(vkCmdResetQueryPool) X(vkCreateShaderModule) \
    X(vkDestroyShaderModule) X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout) \
    X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout) X(vkCreateComputePipelines) \
    X(vkDestroyPipeline) X(vkCreateDescriptorPool) X(vkDestroyDescriptorPool) \
    X(vkResetDescriptorPool) X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets) X(vkQueueSubmit) \
    X(vkCreateFence) X(vkDestroyFence) X(vkResetFences) X(vkGetFenceStatus) X(vkWaitForFences) \
    X(vkCreateSemaphore) X(vkDestroySemaphore) X(vkCreateQueryPool) X(vkDestroyQueryPool) \
    X(vkGetQueryPoolResults)

#define TLI_VK_MEMBER(name) PFN_##name name;
typedef struct tli_vk_calls {
    TLI_VK_INSTANCE_CALLS(TLI_VK_MEMBER)
    TLI_VK_DEVICE_CALLS(TLI_VK_MEMBER)
    PFN_vkGetPhysicalDeviceProperties2 vkGetPhysicalDeviceProperties2;              // NULL if missing
    PFN_vkGetPhysicalDeviceMemoryProperties2 vkGetPhysicalDeviceMemoryProperties2;  // NULL if missing
    PFN_vkGetSemaphoreCounterValue vkGetSemaphoreCounterValue;                      // NULL without timelines
    PFN_vkWaitSemaphores vkWaitSemaphores;                                          // NULL without timelines
} tli_vk_calls;
#undef TLI_VK_MEMBER

#define TLI_VK_RESULTS(X) \
    X(VK_NOT_READY, "not ready") X(VK_TIMEOUT, "timeout") X(VK_INCOMPLETE, "incomplete") \
    X(VK_ERROR_OUT_OF_HOST_MEMORY, "out of host memory") \
    X(VK_ERROR_OUT_OF_DEVICE_MEMORY, "out of device memory") \
    X(VK_ERROR_INITIALIZATION_FAILED, "initialization failed") X(VK_ERROR_DEVICE_LOST, "device lost") \
    X(VK_ERROR_MEMORY_MAP_FAILED, "memory map failed") X(VK_ERROR_LAYER_NOT_PRESENT, "layer not present") \
    X(VK_ERROR_EXTENSION_NOT_PRESENT, "extension not present") \
    X(VK_ERROR_FEATURE_NOT_PRESENT, "feature not present") \
    X(VK_ERROR_INCOMPATIBLE_DRIVER, "incompatible driver") \
    X(VK_ERROR_TOO_MANY_OBJECTS, "too many objects") X(VK_ERROR_FRAGMENTED_POOL, "fragmented pool") \
    X(VK_ERROR_OUT_OF_POOL_MEMORY, "out of pool memory")

static const char *tli_vk_explain(VkResult result) {
#define TLI_VK_EXPLAIN(id, text) if (result == id) return text;
    TLI_VK_RESULTS(TLI_VK_EXPLAIN)
#undef TLI_VK_EXPLAIN
    return "failed";
}

static tl_result tli_vk_translate(VkResult result) {
    switch ((int)result) {  // values of extensions are not in the enum
    case VK_SUCCESS: return TL_OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_OUT_OF_POOL_MEMORY: return TL_ERROR_NO_MEMORY;
    case VK_ERROR_DEVICE_LOST: return TL_ERROR_DEVICE_LOST;
    default: return TL_ERROR_BACKEND;
    }
}

// Record an error text of several parts. One that is too long is cut.
static tl_result tli_vk_fail_parts(tl_env *env, tl_result code, const char *function, const char *const *parts,
                                   size_t count) {
    char text[192];
    size_t length = 0, i;
    for (i = 0; i < count; i++) {
        size_t part = strlen(parts[i]);
        if (part > sizeof text - 1 - length) part = sizeof text - 1 - length;
        memcpy(text + length, parts[i], part);
        length += part;
    }
    text[length] = 0;
    return tl_record_error(env, code, function, text);
}

// Write a number to the end of 24 characters, and return where it begins.
static const char *tli_vk_print_u64(uint64_t number, char digits[24]) {
    char *digit = &digits[23];
    *digit = 0;
    do *--digit = (char)('0' + number % 10); while ((number /= 10) != 0);
    return digit;
}

// Record an error text such as "tl_vk_init_device: vkCreateDevice: out of host memory".
static tl_result tli_vk_fail_call(tl_env *env, const char *function, const char *call, VkResult result) {
    const char *parts[3];
    parts[0] = call;
    parts[1] = ": ";
    parts[2] = tli_vk_explain(result);
    return tli_vk_fail_parts(env, tli_vk_translate(result), function, parts, 3);
}

// Store a function of the loader in a pointer to a function of another type: compilers warn of the cast.
static void tli_vk_set_call(void *member, PFN_vkVoidFunction function) {
    memcpy(member, &function, sizeof function);
}

typedef struct tli_vk_entry { const char *name; size_t offset; } tli_vk_entry;

#define TLI_VK_ENTRY(name) { #name, offsetof(tli_vk_calls, name) },
static const tli_vk_entry tli_vk_instance_entries[] = { TLI_VK_INSTANCE_CALLS(TLI_VK_ENTRY) };
static const tli_vk_entry tli_vk_device_entries[] = { TLI_VK_DEVICE_CALLS(TLI_VK_ENTRY) };
#undef TLI_VK_ENTRY
#undef TLI_VK_INSTANCE_CALLS
#undef TLI_VK_DEVICE_CALLS

static tl_result tli_vk_fail_entry(tl_env *env, const char *function, const char *entry) {
    char text[96] = "entry point missing: ";
    size_t at = strlen(text), length = strlen(entry);
    if (length > sizeof text - 1 - at) length = sizeof text - 1 - at;
    memcpy(text + at, entry, length);
    text[at + length] = 0;
    (void)tl_record_error(env, TL_ERROR_UNSUPPORTED, function, text);
    return TL_ERROR_UNSUPPORTED;
}

// "<what>: still in use (<users>: <count>): free those first"
static tl_result tli_vk_fail_users(tl_env *env, const char *function, const char *what, int32_t count,
                                   const char *users) {
    const char *parts[6];
    char digits[24];
    parts[0] = what;
    parts[1] = ": still in use (";
    parts[2] = users;
    parts[3] = ": ";
    parts[4] = tli_vk_print_u64((uint64_t)count, digits);
    parts[5] = "): free those first";
    return tli_vk_fail_parts(env, TL_ERROR_INVALID_ARG, function, parts, 6);
}

static int tli_vk_has_extension(const tl_vk_device *device, const char *name) {
    uint32_t i;
    for (i = 0; i < device->extension_count; i++)
        if (strcmp(device->extensions[i], name) == 0) return 1;
    return 0;
}

static int tli_vk_is_at_least(const tl_vk_device *device, uint32_t version) {
    return device->api_version >= version;
}

static tl_result tli_vk_load(tl_env *env, const tl_vk_device *device, tli_vk_calls *calls) {
    const char *function = "tl_vk_init_backend";
    PFN_vkGetInstanceProcAddr get = device->get_instance_proc;
    int timelines_in_core = tli_vk_is_at_least(device, VK_API_VERSION_1_2);
    const char *counter = timelines_in_core ? "vkGetSemaphoreCounterValue" : "vkGetSemaphoreCounterValueKHR";
    const char *wait = timelines_in_core ? "vkWaitSemaphores" : "vkWaitSemaphoresKHR";
    size_t i;
    for (i = 0; i < sizeof tli_vk_instance_entries / sizeof *tli_vk_instance_entries; i++) {
        const tli_vk_entry *entry = &tli_vk_instance_entries[i];
        PFN_vkVoidFunction found = (get)(device->instance, entry->name);
        if (!found) return tli_vk_fail_entry(env, function, entry->name);
        tli_vk_set_call((char *)calls + entry->offset, found);
    }
    for (i = 0; i < sizeof tli_vk_device_entries / sizeof *tli_vk_device_entries; i++) {
        const tli_vk_entry *entry = &tli_vk_device_entries[i];
        PFN_vkVoidFunction found = (calls->vkGetDeviceProcAddr)(device->device, entry->name);
        if (!found) return tli_vk_fail_entry(env, function, entry->name);
        tli_vk_set_call((char *)calls + entry->offset, found);
    }
    if (tli_vk_is_at_least(device, VK_API_VERSION_1_1)) {
        tli_vk_set_call(&calls->vkGetPhysicalDeviceProperties2,
                        (get)(device->instance, "vkGetPhysicalDeviceProperties2"));
        tli_vk_set_call(&calls->vkGetPhysicalDeviceMemoryProperties2,
                        (get)(device->instance, "vkGetPhysicalDeviceMemoryProperties2"));
    }
    if (!device->timeline_enabled) return TL_OK;
    tli_vk_set_call(&calls->vkGetSemaphoreCounterValue, (calls->vkGetDeviceProcAddr)(device->device, counter));
    tli_vk_set_call(&calls->vkWaitSemaphores, (calls->vkGetDeviceProcAddr)(device->device, wait));
    if (!calls->vkGetSemaphoreCounterValue) return tli_vk_fail_entry(env, function, counter);
    return calls->vkWaitSemaphores ? TL_OK : tli_vk_fail_entry(env, function, wait);
}

// -- the standalone device --

typedef struct tli_vk_owned {
    void *library;  // the loader, if it was opened here
    VkDebugUtilsMessengerEXT messenger;
    PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger;
    PFN_vkDestroyDevice destroy_device;
    PFN_vkDestroyInstance destroy_instance;
    const char *extensions[4];
    int32_t backend_count;  // made from the device and not freed
} tli_vk_owned;

static void tli_vk_close_loader(void *library) {
#if defined(TL_VK_OPEN_LOADER) && defined(_WIN32)
    if (library) FreeLibrary((HMODULE)library);
#elif defined(TL_VK_OPEN_LOADER)
    if (library) dlclose(library);
#else
    (void)library;
#endif
}

// vkGetInstanceProcAddr: as given, or what 0 means in this build; NULL where there is no loader.
static PFN_vkGetInstanceProcAddr tli_vk_find_loader(PFN_vkGetInstanceProcAddr given, void **library) {
    *library = NULL;
    if (given) return given;
#if defined(TL_VK_LINKED)
    return vkGetInstanceProcAddr;
#elif defined(TL_VK_OPEN_LOADER)
    {
        PFN_vkGetInstanceProcAddr get = NULL;
#ifdef _WIN32
        FARPROC symbol;
        HMODULE module = LoadLibraryA("vulkan-1.dll");
        *library = (void *)module;
        symbol = module ? GetProcAddress(module, "vkGetInstanceProcAddr") : NULL;
#else
        void *symbol;
        *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!*library) *library = dlopen("libvulkan.dylib", RTLD_NOW | RTLD_LOCAL);
        symbol = *library ? dlsym(*library, "vkGetInstanceProcAddr") : NULL;
#endif
        memcpy(&get, &symbol, sizeof get);
        return get;
    }
#else
    return NULL;
#endif
}

// The functions and objects that are needed until there is a device.
typedef struct tli_vk_loader {
    tl_env *env;
    const char *function;
    const tl_vk_device_desc *desc;
    void *library;
    PFN_vkGetInstanceProcAddr get;
    VkInstance instance;
    uint32_t api_version;
    PFN_vkDestroyInstance destroy;
    PFN_vkEnumeratePhysicalDevices enumerate;
    PFN_vkGetPhysicalDeviceProperties properties;
    PFN_vkGetPhysicalDeviceFeatures features;
    PFN_vkGetPhysicalDeviceMemoryProperties memory;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
    PFN_vkEnumerateDeviceExtensionProperties device_extensions;
    PFN_vkCreateDevice create_device;
    PFN_vkDebugUtilsMessengerCallbackEXT message;
    VkPhysicalDevice *devices;
    uint32_t device_count;
} tli_vk_loader;

static void tli_vk_close_instance(tli_vk_loader *loader) {
    if (loader->instance && loader->destroy) (loader->destroy)(loader->instance, NULL);
    tli_vk_close_loader(loader->library);
    tl_free_memory(loader->env, loader->devices);
    loader->instance = VK_NULL_HANDLE;
    loader->library = NULL;
    loader->devices = NULL;
}

static tl_result tli_vk_loader_fail(tli_vk_loader *loader, tl_result code, const char *why) {
    return tl_record_error(loader->env, code, loader->function, why);
}

static void tli_vk_fill_messenger(const tl_vk_device_desc *desc, VkDebugUtilsMessengerCreateInfoEXT *info) {
    memset(info, 0, sizeof *info);
    info->sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    info->messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                            VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    info->messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                        VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    info->pfnUserCallback = desc->message;
    info->pUserData = desc->message_user;
}

static tl_result tli_vk_create_instance(tli_vk_loader *loader) {
    const char *layer = "VK_LAYER_KHRONOS_validation", *debug = "VK_EXT_debug_utils";
    const tl_vk_device_desc *desc = loader->desc;
    PFN_vkCreateInstance create;
    PFN_vkEnumerateInstanceVersion version;
    VkApplicationInfo application;
    VkInstanceCreateInfo info;
    VkDebugUtilsMessengerCreateInfoEXT messenger;
    uint32_t highest = VK_API_VERSION_1_0;
    VkResult result;
    tli_vk_set_call(&create, (loader->get)(VK_NULL_HANDLE, "vkCreateInstance"));
    tli_vk_set_call(&version, (loader->get)(VK_NULL_HANDLE, "vkEnumerateInstanceVersion"));
    if (!create) return tli_vk_fail_entry(loader->env, loader->function, "vkCreateInstance");
    if (version && (version)(&highest) != VK_SUCCESS) highest = VK_API_VERSION_1_0;
    loader->api_version = desc->api_version ? desc->api_version : VK_API_VERSION_1_1;
    if (loader->api_version > highest) loader->api_version = highest;
    memset(&application, 0, sizeof application);
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.pEngineName = "tl_strategy";
    application.engineVersion = (uint32_t)TL_VERSION;
    application.apiVersion = loader->api_version;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    if (desc->validates) {
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = &layer;
    }
    if (desc->message) {
        tli_vk_fill_messenger(desc, &messenger);
        info.pNext = &messenger;
        info.enabledExtensionCount = 1;
        info.ppEnabledExtensionNames = &debug;
    }
    result = (create)(&info, NULL, &loader->instance);
    if (result == VK_ERROR_LAYER_NOT_PRESENT)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND,
                                  "validates: VK_LAYER_KHRONOS_validation is not installed");
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND, "no Vulkan driver is installed");
    return result ? tli_vk_fail_call(loader->env, loader->function, "vkCreateInstance", result) : TL_OK;
}

static tl_result tli_vk_load_instance(tli_vk_loader *loader) {
    VkInstance instance = loader->instance;
    tli_vk_set_call(&loader->destroy, (loader->get)(instance, "vkDestroyInstance"));
    tli_vk_set_call(&loader->enumerate, (loader->get)(instance, "vkEnumeratePhysicalDevices"));
    tli_vk_set_call(&loader->properties, (loader->get)(instance, "vkGetPhysicalDeviceProperties"));
    tli_vk_set_call(&loader->features, (loader->get)(instance, "vkGetPhysicalDeviceFeatures"));
    tli_vk_set_call(&loader->memory, (loader->get)(instance, "vkGetPhysicalDeviceMemoryProperties"));
    tli_vk_set_call(&loader->families, (loader->get)(instance, "vkGetPhysicalDeviceQueueFamilyProperties"));
    tli_vk_set_call(&loader->device_extensions,
                    (loader->get)(instance, "vkEnumerateDeviceExtensionProperties"));
    tli_vk_set_call(&loader->create_device, (loader->get)(instance, "vkCreateDevice"));
    if (!loader->destroy || !loader->enumerate || !loader->properties || !loader->features ||
        !loader->memory || !loader->families || !loader->device_extensions || !loader->create_device)
        return tli_vk_fail_entry(loader->env, loader->function, "of the instance");
    return TL_OK;
}

static tl_result tli_vk_open_instance(tli_vk_loader *loader) {
    VkResult result;
    tl_result code;
    loader->get = tli_vk_find_loader(loader->desc->get_instance_proc, &loader->library);
    if (!loader->get)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND, "get_instance_proc: no Vulkan loader");
    code = tli_vk_create_instance(loader);
    if (!code) code = tli_vk_load_instance(loader);
    if (code) return code;
    result = (loader->enumerate)(loader->instance, &loader->device_count, NULL);
    if (!result && loader->device_count) {
        loader->devices = (VkPhysicalDevice *)tl_add_memory(
            loader->env, loader->device_count * sizeof(VkPhysicalDevice));
        if (!loader->devices) return tli_vk_loader_fail(loader, TL_ERROR_NO_MEMORY, "list of devices");
        result = (loader->enumerate)(loader->instance, &loader->device_count, loader->devices);
    }
    if (result && result != VK_INCOMPLETE)
        return tli_vk_fail_call(loader->env, loader->function, "vkEnumeratePhysicalDevices", result);
    return TL_OK;
}

// Flags of queues that do more than transfers. Copies of the queues for video, which transfer as well, are slow
// and do not run beside kernels (measured on an NVIDIA H200).
#define TLI_VK_MORE_THAN_TRANSFERS (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT | 0x20u | 0x40u | 0x100u)

// Find the first queue family that computes, and the first for transfers only, with the number of its queues;
// -1 where there is none.
static void tli_vk_find_families(tli_vk_loader *loader, VkPhysicalDevice physical, int32_t *compute,
                                 int32_t *transfer, uint32_t *transfer_count) {
    VkQueueFamilyProperties families[TLI_VK_FAMILIES];
    uint32_t count = 0, i;
    (loader->families)(physical, &count, NULL);
    if (count > TLI_VK_FAMILIES) count = TLI_VK_FAMILIES;
    (loader->families)(physical, &count, families);
    *compute = *transfer = -1;
    *transfer_count = 0;
    for (i = 0; i < count; i++) {
        VkQueueFlags flags = families[i].queueFlags;
        if (!families[i].queueCount) continue;
        if (flags & VK_QUEUE_COMPUTE_BIT && *compute < 0) *compute = (int32_t)i;
        if (!(flags & VK_QUEUE_TRANSFER_BIT) || flags & TLI_VK_MORE_THAN_TRANSFERS || *transfer >= 0) continue;
        *transfer = (int32_t)i;
        *transfer_count = families[i].queueCount;
    }
}

static void tli_vk_describe_device(tli_vk_loader *loader, VkPhysicalDevice physical,
                                   tl_vk_device_info *info) {
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    int32_t compute, transfer;
    uint32_t transfer_count, i;
    (loader->properties)(physical, &properties);
    (loader->memory)(physical, &memory);
    tli_vk_find_families(loader, physical, &compute, &transfer, &transfer_count);
    memset(info, 0, sizeof *info);
    memcpy(info->name, properties.deviceName, sizeof info->name);
    info->name[sizeof info->name - 1] = 0;
    info->type = properties.deviceType;
    info->api_version = properties.apiVersion;
    info->driver_version = properties.driverVersion;
    info->has_compute = compute >= 0;
    for (i = 0; i < memory.memoryHeapCount; i++)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
            memory.memoryHeaps[i].size > info->device_bytes)
            info->device_bytes = memory.memoryHeaps[i].size;
}

TLI_VK_IMPL tl_result tl_vk_read_devices(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device_info *infos,
                                      int32_t capacity, int32_t *count) {
    tli_vk_loader loader;
    tl_result result;
    uint32_t i;
    memset(&loader, 0, sizeof loader);
    loader.env = env;
    loader.desc = desc;
    loader.function = "tl_vk_read_devices";
    *count = 0;
    result = tli_vk_open_instance(&loader);
    for (i = 0; !result && i < loader.device_count; i++) {
        if ((int32_t)i < capacity) tli_vk_describe_device(&loader, loader.devices[i], &infos[i]);
        ++*count;
    }
    tli_vk_close_instance(&loader);
    return result;
}

// Pick the device with the number given; for 0 the first GPU that computes, else the first device that does.
static tl_result tli_vk_pick_device(tli_vk_loader *loader, VkPhysicalDevice *picked, tl_vk_device_info *info) {
    int32_t number = loader->desc->number;
    uint32_t i, best = loader->device_count;
    if (!loader->device_count)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND, "no Vulkan device");
    if (number < 0 || (uint32_t)number > loader->device_count)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND, "number: there are fewer devices");
    for (i = 0; i < loader->device_count && !number; i++) {
        tli_vk_describe_device(loader, loader->devices[i], info);
        if (!info->has_compute) continue;
        if (best == loader->device_count) best = i;
        if (info->type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU &&
            info->type != VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) continue;
        best = i;
        break;
    }
    if (number) best = (uint32_t)number - 1;
    if (best == loader->device_count) best = 0;
    tli_vk_describe_device(loader, loader->devices[best], info);
    if (!info->has_compute)
        return tli_vk_loader_fail(loader, TL_ERROR_UNSUPPORTED, "the device has no queue that computes");
    *picked = loader->devices[best];
    return TL_OK;
}

static int tli_vk_device_has(tli_vk_loader *loader, VkPhysicalDevice physical, const char *name) {
    VkExtensionProperties *list;
    uint32_t count = 0, i;
    int found = 0;
    if ((loader->device_extensions)(physical, NULL, &count, NULL) || !count) return 0;
    list = (VkExtensionProperties *)tl_add_memory(loader->env, count * sizeof *list);
    if (!list) return 0;
    if ((loader->device_extensions)(physical, NULL, &count, list) == VK_SUCCESS)
        for (i = 0; i < count && !found; i++) found = strcmp(list[i].extensionName, name) == 0;
    tl_free_memory(loader->env, list);
    return found;
}

// Whether timeline semaphores can be enabled. Only a device with the extension may be asked for the feature.
static int tli_vk_can_timeline(tli_vk_loader *loader, VkPhysicalDevice physical) {
    PFN_vkGetPhysicalDeviceFeatures2 get;
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    if (loader->api_version < VK_API_VERSION_1_1) return 0;
    if (!tli_vk_device_has(loader, physical, "VK_KHR_timeline_semaphore")) return 0;
    tli_vk_set_call(&get, (loader->get)(loader->instance, "vkGetPhysicalDeviceFeatures2"));
    if (!get) return 0;
    memset(&features, 0, sizeof features);
    memset(&timeline, 0, sizeof timeline);
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    features.pNext = &timeline;
    (get)(physical, &features);
    return timeline.timelineSemaphore != 0;
}

static tl_result tli_vk_create_device(tli_vk_loader *loader, VkPhysicalDevice physical, tli_vk_owned *owned,
                                      tl_vk_device *device) {
    static const float priorities[2] = { 1.0f, 1.0f };
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceFeatures features;
    VkDeviceQueueCreateInfo queues[2];
    VkDeviceCreateInfo info;
    PFN_vkGetDeviceProcAddr get_device_proc;
    PFN_vkGetDeviceQueue get_queue;
    int32_t compute, transfer;
    uint32_t transfer_count;
    VkResult result;
    (loader->features)(physical, &features);  // validation warns where features were never queried
    tli_vk_find_families(loader, physical, &compute, &transfer, &transfer_count);
    if (!loader->desc->enable_transfer) transfer = -1;
    memset(queues, 0, sizeof queues);
    memset(&info, 0, sizeof info);
    memset(&timeline, 0, sizeof timeline);
    queues[0].sType = queues[1].sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues[0].queueFamilyIndex = (uint32_t)compute;
    queues[1].queueFamilyIndex = (uint32_t)transfer;
    queues[0].queueCount = 1;
    queues[1].queueCount = transfer_count < 2 ? 1 : 2;
    queues[0].pQueuePriorities = queues[1].pQueuePriorities = priorities;
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.queueCreateInfoCount = transfer >= 0 ? 2 : 1;
    info.pQueueCreateInfos = queues;
    if (tli_vk_can_timeline(loader, physical)) {
        timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
        timeline.timelineSemaphore = VK_TRUE;
        info.pNext = &timeline;
        owned->extensions[info.enabledExtensionCount++] = "VK_KHR_timeline_semaphore";
    }
    if (loader->api_version >= VK_API_VERSION_1_1 &&
        tli_vk_device_has(loader, physical, "VK_EXT_memory_budget"))
        owned->extensions[info.enabledExtensionCount++] = "VK_EXT_memory_budget";
    info.ppEnabledExtensionNames = owned->extensions;
    // Load what destroys a device before one is made: one that stayed while its library is closed would crash
    // in threads of the driver.
    tli_vk_set_call(&owned->destroy_device, (loader->get)(loader->instance, "vkDestroyDevice"));
    tli_vk_set_call(&get_device_proc, (loader->get)(loader->instance, "vkGetDeviceProcAddr"));
    if (!owned->destroy_device || !get_device_proc)
        return tli_vk_fail_entry(loader->env, loader->function, "vkGetDeviceProcAddr");
    result = (loader->create_device)(physical, &info, NULL, &device->device);
    if (result) return tli_vk_fail_call(loader->env, loader->function, "vkCreateDevice", result);
    tli_vk_set_call(&get_queue, (get_device_proc)(device->device, "vkGetDeviceQueue"));
    if (!get_queue) return tli_vk_fail_entry(loader->env, loader->function, "vkGetDeviceQueue");
    (get_queue)(device->device, (uint32_t)compute, 0, &device->queue);
    device->queue_family = (uint32_t)compute;
    if (transfer >= 0) {
        (get_queue)(device->device, (uint32_t)transfer, 0, &device->transfer_queue);
        if (transfer_count > 1) (get_queue)(device->device, (uint32_t)transfer, 1, &device->upload_queue);
        device->transfer_family = (uint32_t)transfer;
    }
    device->timeline_enabled = timeline.timelineSemaphore != 0;
    device->extensions = owned->extensions;
    device->extension_count = info.enabledExtensionCount;
    return TL_OK;
}

static tl_result tli_vk_add_messenger(tli_vk_loader *loader, tli_vk_owned *owned) {
    VkDebugUtilsMessengerCreateInfoEXT info;
    PFN_vkCreateDebugUtilsMessengerEXT create;
    VkResult result;
    if (!loader->desc->message) return TL_OK;
    tli_vk_set_call(&create, (loader->get)(loader->instance, "vkCreateDebugUtilsMessengerEXT"));
    tli_vk_set_call(&owned->destroy_messenger,
                    (loader->get)(loader->instance, "vkDestroyDebugUtilsMessengerEXT"));
    if (!create || !owned->destroy_messenger)
        return tli_vk_fail_entry(loader->env, loader->function, "vkCreateDebugUtilsMessengerEXT");
    tli_vk_fill_messenger(loader->desc, &info);
    result = (create)(loader->instance, &info, NULL, &owned->messenger);
    return result ? tli_vk_fail_call(loader->env, loader->function, "vkCreateDebugUtilsMessengerEXT", result)
                  : TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_init_device(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device *device) {
    tli_vk_loader loader;
    tl_vk_device_info info;
    tli_vk_owned *owned;
    tl_result result;
    memset(&loader, 0, sizeof loader);
    memset(&info, 0, sizeof info);
    memset(device, 0, sizeof *device);
    loader.env = env;
    loader.desc = desc;
    loader.function = "tl_vk_init_device";
    owned = (tli_vk_owned *)tl_add_memory(env, sizeof *owned);
    if (!owned) return tli_vk_loader_fail(&loader, TL_ERROR_NO_MEMORY, "no memory");
    result = tli_vk_open_instance(&loader);
    owned->library = loader.library;
    owned->destroy_instance = loader.destroy;
    device->owned = owned;
    device->get_instance_proc = loader.get;
    device->instance = loader.instance;
    loader.library = NULL;  // *device owns both from here on
    loader.instance = VK_NULL_HANDLE;
    if (!result) {
        loader.instance = device->instance;
        result = tli_vk_add_messenger(&loader, owned);
        if (!result) result = tli_vk_pick_device(&loader, &device->physical, &info);
        if (!result) {
            device->api_version = loader.api_version < info.api_version ? loader.api_version
                                                                        : info.api_version;
            result = tli_vk_create_device(&loader, device->physical, owned, device);
        }
        loader.instance = VK_NULL_HANDLE;
    }
    tli_vk_close_instance(&loader);
    if (result) (void)tl_vk_free_device(env, device);
    return result;
}

TLI_VK_IMPL tl_result tl_vk_free_device(tl_env *env, tl_vk_device *device) {
    tli_vk_owned *owned = device ? (tli_vk_owned *)device->owned : NULL;
    if (!owned) return TL_OK;
    if (owned->backend_count)
        return tli_vk_fail_users(env, "tl_vk_free_device", "device", owned->backend_count, "backends");
    if (device->device && owned->destroy_device) (owned->destroy_device)(device->device, NULL);
    if (owned->messenger) (owned->destroy_messenger)(device->instance, owned->messenger, NULL);
    if (device->instance && owned->destroy_instance) (owned->destroy_instance)(device->instance, NULL);
    tli_vk_close_loader(owned->library);
    tl_free_memory(env, owned);
    memset(device, 0, sizeof *device);
    return TL_OK;
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [2] MEMORY (implementation)
// ============================================================================

// The state of a backend, its chunks and blocks, and its batches. The words of this section:
//
//     chunk     a VkBuffer with its memory; blocks are pieces of it, an arena is all of it
//     place     bytes of a chunk: where a range lies
//     batch     a command buffer: a submit to the own queue, or a frame of the caller
//     serial    the number of a batch; batches finish in this order, and `passed` is the last that did
//     op        work that was enqueued and is not recorded yet
//     noted     of a command: kept until its batch was submitted, so that it can be recorded again
//     touch     an access that was recorded since the last barrier
//     promise   an access that `order` announced; the caller records it later
//     lost      bytes whose last write was in a batch that never ran
//     link      a queue for copies between the tiers
//     transfer  such a copy
//     away      bytes of a transfer that the queue has not waited for

#define TLI_VK_TOUCH_CAPACITY 128  // places in a set, and promises that are remembered
#define TLI_VK_OP_CAPACITY 128     // enqueued work that is not recorded yet
#define TLI_VK_REGION_CAPACITY 32  // copies in one command
#define TLI_VK_CHUNK_NONE (-1)
#define TLI_VK_SETS 64             // descriptor sets in a pool
#define TLI_VK_SET_BUFFERS 256     // descriptors in a pool
#define TLI_VK_KEPT_SETS 256       // most that a kernel keeps
#define TLI_VK_KEPT_WAYS 4         // entries of that table in which a set may stand
#define TLI_VK_BINDINGS 16         // most buffers of one kernel
#define TLI_VK_WRITES 1024         // places that a batch notes before its list grows
#define TLI_VK_SHADER_COPY_BYTES 65536  // smaller copies are always vkCmdCopyBuffer
#define TLI_VK_MOST_BATCHES 256    // to which the ring of batches grows
#define TLI_VK_TRANSFERS 16        // entries of the ring of transfers at first,
#define TLI_VK_MOST_TRANSFERS 1024 // and at most
#define TLI_VK_SENT_AT_ONCE 16     // most transfers in one call of vkQueueSubmit
#define TLI_VK_OWN_TIMES 2         // timestamp slots of the backend, after the caller's
#define TLI_VK_NOTED 2048          // words of noted commands in a batch before its list grows
#define TLI_VK_OPEN 1              // tli_vk.open: the command buffer is recording
#define TLI_VK_ENDED 2             // it is complete, but its submit failed: it will be tried again
#define TLI_VK_BROKEN 3            // its end failed: what it held is recorded again before it is submitted

// Bytes of the buffer of a chunk.
typedef struct tli_vk_place {
    int32_t  chunk;
    uint64_t at, bytes;
} tli_vk_place;

// A set of places.
typedef struct tli_vk_index {
    tli_vk_place places[TLI_VK_TOUCH_CAPACITY];  // [count] disjoint, in order
    int32_t count;
} tli_vk_index;

typedef struct tli_vk_accesses { tli_vk_index reads, writes; } tli_vk_accesses;

// An access that `order` announced for the commands that the caller records next.
typedef struct tli_vk_promise { tli_vk_place place; int32_t writes; uint64_t handle; } tli_vk_promise;

typedef enum tli_vk_chunk_kind {
    TLI_VK_CHUNK_SHARED,           // blocks are pieces of it
    TLI_VK_CHUNK_ARENA,            // one block is all of it, and it is freed with it
    TLI_VK_CHUNK_STAGING
} tli_vk_chunk_kind;

// A VkBuffer and its memory. Blocks are pieces of it. A buffer of the caller is one chunk, however often and in
// whatever parts it is added: accesses through different blocks of it then meet as those through one block do.
typedef struct tli_vk_chunk {
    VkBuffer       buffer;
    VkDeviceMemory memory;
    VkDeviceSize   memory_offset;
    void          *cookie;         // of the allocator's hook
    char          *mapped;         // NULL = not mapped
    tl_heap       *heap;           // of the pieces; NULL = no block is a piece of it
    uint64_t       bytes;
    uint64_t       memory_bytes;   // asked for in vkAllocateMemory
    uint64_t       last_use;       // serial of the latest work on it
    uint64_t       seen;           // imported: serial of the latest batch with a barrier for the caller's use
    VkMemoryPropertyFlags flags;
    VkPipelineStageFlags stages;   // imported: of the caller
    VkAccessFlags  access;
    int32_t        block_count;    // of staging: 1 = in use
    uint8_t        tier, alive, imported;
    uint8_t        kind;           // tli_vk_chunk_kind
    uint8_t        memory_heap;    // index of the heap that its memory is from
} tli_vk_chunk;

typedef struct tli_vk_block {
    uint64_t at;                   // in its chunk
    uint64_t bytes, reserved_bytes;
    uint64_t claimed_bytes, claim_count;
    uint64_t last_write, last_use; // serials of the latest work on it
    uint64_t writes;               // number of operations that wrote to it
    uint64_t account;              // that claimed first; 0 = none yet
    int32_t  chunk, piece;
    int32_t  map_count;
    uint32_t generation;           // upper half of its handle
    int32_t  next_free;            // slot + 1
    uint8_t  tier, alive;
} tli_vk_block;

// A queue for copies between the tiers.
typedef struct tli_vk_link {
    VkQueue     queue;
    VkSemaphore timeline;
    uint64_t    made, sent, passed;// values of the timeline: of the latest transfer, of the latest that was
                                   // handed over, of the latest that is known to have finished
} tli_vk_link;

// A copy between the tiers.
typedef struct tli_vk_transfer {
    VkCommandPool   pool;
    VkCommandBuffer commands;
    int32_t  link;
    uint64_t value;                // of the timeline of its link
    uint64_t after;                // serial of the batch that it waits for; 0 = none
    uint64_t other_value;          // of the other link's timeline that it waits for; 0 = none
    uint64_t serial;               // of the batch that it counts to
} tli_vk_transfer;

// A place that a transfer reads or writes.
typedef struct tli_vk_away {
    tli_vk_place place;
    uint64_t value;                // of the transfer
    int32_t  link, writes;
} tli_vk_away;

// The built-in shaders: src/vk/words has the words of each.
#define TLI_VK_SHADERS(X) \
    X(TLI_VK_SHADER_COPY,             copy)             /* to[] = from[], 4 x uvec4 an invocation */ \
    X(TLI_VK_SHADER_COPY_UINT,        copy_uint)        /* the same, a word an invocation: any length */ \
    X(TLI_VK_SHADER_FILL,             fill)             /* to[] = word */ \
    X(TLI_VK_SHADER_TO_F16,           to_f16)           /* f32 -> f16 */ \
    X(TLI_VK_SHADER_FROM_F16,         from_f16)         /* f16 -> f32 */ \
    X(TLI_VK_SHADER_TO_BF16,          to_bf16)          /* f32 -> bf16 */ \
    X(TLI_VK_SHADER_FROM_BF16,        from_bf16)        /* bf16 -> f32 */ \
    X(TLI_VK_SHADER_TO_Q8,            to_q8)            /* f32 -> blocks of 32 with a scale */ \
    X(TLI_VK_SHADER_FROM_Q8,          from_q8)          /* blocks of 32 with a scale -> f32 */ \
    X(TLI_VK_SHADER_MIN_MAX,          min_max)          /* extremes, and how many are finite */ \
    X(TLI_VK_SHADER_ADD,              add)              /* to[] += from[], f32 */ \
    X(TLI_VK_SHADER_CHECKSUM,         checksum)         /* sum of mixed words: equal where the bytes are */ \
    X(TLI_VK_SHADER_QUANTIZE,         quantize)         /* f32 -> integers of 8 or 16 bits */ \
    X(TLI_VK_SHADER_DEQUANTIZE,       dequantize)       /* integers of 8 or 16 bits -> f32 */ \
    X(TLI_VK_SHADER_MIN_MAX_CHANNELS, min_max_channels) /* min_max of each channel */

#define TLI_VK_SHADER_ID(id, name) id,
typedef enum tli_vk_shader { TLI_VK_SHADERS(TLI_VK_SHADER_ID) TLI_VK_SHADER_COUNT } tli_vk_shader;
#undef TLI_VK_SHADER_ID

typedef enum tli_vk_op_kind { TLI_VK_OP_COPY, TLI_VK_OP_FILL, TLI_VK_OP_SHADER } tli_vk_op_kind;

typedef struct tli_vk_op {
    tli_vk_op_kind kind;
    tli_vk_shader   shader;
    tli_vk_place   to, from;       // lengths as the caller gave them, not rounded up
    uint32_t       word;           // fill: the value; checksum: index of the first word; integers: bytes of one
    uint32_t       channel_count, inner_count;  // 0 = the shader knows no channels
    uint64_t       first;          // index in the whole operation of the first f32 element of these places
    tli_vk_place   quantizations;  // parameters of the channels; bytes 0 = none
} tli_vk_op;

// A pool of descriptor sets for one batch at a time; it is reset with the batch.
typedef struct tli_vk_sets {
    VkDescriptorPool pool;
    uint32_t sets_left, buffers_left;
} tli_vk_sets;

typedef enum tli_vk_command_kind {
    TLI_VK_COMMAND_BARRIER,
    TLI_VK_COMMAND_TIME,
    TLI_VK_COMMAND_COPY,
    TLI_VK_COMMAND_FILL,
    TLI_VK_COMMAND_DISPATCH
} tli_vk_command_kind;

// A command that the backend records for itself, as it is noted; `data` of that many bytes follows it.
typedef struct tli_vk_command {
    tli_vk_command_kind kind;
    uint32_t count;                // regions of a copy; slot of a time
    uint64_t data_bytes;           // regions, push constants
    VkBuffer to, from;
    VkDeviceSize at, bytes;        // fill
    const tl_vk_kernel *kernel;
    VkDescriptorSet set;
    VkPipelineStageFlags stages[2];// before and after a barrier
    VkAccessFlags access[2];
    uint32_t groups[3];
    uint32_t word;                 // fill
} tli_vk_command;

// One command buffer: a submit to the own queue, or a frame of the caller.
typedef struct tli_vk_batch {
    VkCommandPool   pool;
    VkCommandBuffer commands;
    VkFence         fence;         // where there is no timeline
    uint64_t        waits_for[2];  // values of the links' timelines that it waits for; 0 = none
    uint64_t        serial;        // 0 = unused
    uint64_t        dropped;       // serial of the latest frame in this entry that was dropped
    tli_vk_sets    *sets;
    int32_t         set_count, set_capacity, set_at;
    tli_vk_place   *writes;        // [write_count] places it writes: lost if it never runs
    int32_t         write_count, write_capacity;
    uint64_t       *noted;         // [noted_count] words: commands and their data; with a queue only
    int32_t         noted_count, noted_capacity;
    int32_t         has_others;    // 1 = also commands that are not noted: the caller's own
    int32_t         known_count, known_writes;  // noted words and writes before those
} tli_vk_batch;

// A piece of the staging, or a chunk of its own where that is too small. Slots become free in any order.
typedef struct tli_vk_slot {
    uint64_t serial;               // free once this batch has passed; UINT64_MAX = mapped, or a read is pending
    int32_t  chunk;
    int32_t  piece;                // 0 = a chunk of its own, which is kept for the next such slot
    int32_t  next_free;            // slot + 1
    int32_t  is_used;
} tli_vk_slot;

// A mapped range; or in record mode a read that no map has fetched yet.
typedef struct tli_vk_mapping {
    tl_range     range;
    tli_vk_place place;            // of the range
    tli_vk_place staged;           // chunk TLI_VK_CHUNK_NONE = mapped in place
    void        *host;
    uint64_t     serial;           // of the copy into staging
    uint64_t     writes;           // writes of the block when that copy was enqueued; UINT64_MAX = outdated
    int32_t      slot;             // of staging
    int32_t      is_pending;       // 1 = such a read
    int32_t      is_bounced;       // 1 = host is memory of the env, moved through staging in pieces
    uint64_t     asked;            // pending: serial when it was asked for last
    tl_map_mode  mode;
} tli_vk_mapping;

// A descriptor set that is kept, for the places that were bound by it last.
typedef struct tli_vk_kept_set {
    VkDescriptorSet set;           // VK_NULL_HANDLE = not made yet
    uint64_t hash;                 // of the places
    uint64_t last_use;             // serial of a batch: the set is not written before it has passed
    uint64_t destroyed_count;      // chunks destroyed before it was written: its buffers are those of today
} tli_vk_kept_set;

// The sets that a kernel keeps, a table by hash.
typedef struct tli_vk_kept {
    VkDescriptorPool pool;
    tli_vk_kept_set *sets;         // [TLI_VK_KEPT_SETS]; NULL = none was needed yet, or there is no memory
    tli_vk_place    *places;       // [TLI_VK_KEPT_SETS * buffer_count]
} tli_vk_kept;

struct tl_vk_kernel {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    int32_t  buffer_count;
    uint32_t push_bytes;
    tli_vk_kept *kept;
};

// What a run or a manager holds.
typedef struct tli_vk_account {
    tl_account_counters counters;
    uint64_t limit_bytes[TL_TIER_COUNT];
    uint32_t generation;              // upper half of its handle
    int32_t  next_free;               // next unused slot + 1; 0 = none
    int32_t  is_open;
} tli_vk_account;

typedef struct tli_vk {
    tl_env *env;
    tl_env quiet;                     // env without a log, for what may fail inside a call that succeeds
    tl_vk_backend_desc desc;          // defaults filled in
    tli_vk_calls vk;
    VkDevice device;
    const VkAllocationCallbacks *callbacks;
    VkPhysicalDeviceLimits device_limits;
    VkPhysicalDeviceMemoryProperties memory;
    uint64_t most_allocation_bytes;
    uint64_t granularity, overhead;   // of the memory of a buffer
    uint64_t alignment, range_bytes;  // range_bytes: most of one descriptor; longer operations are split
    uint32_t time_bits;
    int32_t  records, has_budget, lost;
    int32_t  grows;                   // 1 = the ring of batches becomes larger where it is full

    tl_backend_counters counters;
    tl_vk_counters calls;
    tli_vk_chunk *chunks;
    int32_t chunk_count, chunk_capacity;
    uint64_t destroyed_count;         // chunks destroyed so far
    int32_t freed_arena_count;        // arenas whose block was freed and whose memory was not yet
    tli_vk_block *blocks;
    int32_t block_count, block_capacity, free_block;  // slot + 1
    tli_vk_account *accounts;
    int32_t account_count, account_capacity, free_account, open_account_count;  // free_account: slot + 1

    tli_vk_batch *batches;            // [batch_count] ring by serial
    uint64_t serial;                  // of the batch that takes work now, or will
    uint64_t computed;                // all batches up to this serial have finished
    uint64_t passed;                  // and the transfers that count to them
    int32_t  open;                    // TLI_VK_OPEN, TLI_VK_ENDED or TLI_VK_BROKEN; 0 = it was not begun yet
    int32_t  has_work;                // 1 = something was enqueued or recorded since the last submit
    VkSemaphore timeline;
    tli_vk_link links[2];             // [link_count] from the device tier, to it; or one for both
    int32_t  link_count;
    tli_vk_transfer *transfers;       // [transfer_capacity] ring by number
    int32_t  transfer_capacity;
    uint64_t transfer_made, transfer_sent, transfer_done;  // numbers of the latest ones
    int32_t  owes_batch;              // 1 = transfers count to the open batch: it is submitted, though empty
    tli_vk_away *away;                // [away_count] places that the queue has not waited for
    int32_t  away_count, away_capacity;

    tli_vk_op ops[TLI_VK_OP_CAPACITY];
    int32_t op_count;
    tli_vk_accesses touches;          // since the last barrier
    tli_vk_accesses group;            // of operations that share the next one
    int32_t all_touched;              // 1 = touches are incomplete: the next access needs a barrier
    tli_vk_promise promises[TLI_VK_TOUCH_CAPACITY];  // ring of the latest that `order` announced
    uint64_t promise_count, early_count;  // early: how many of the latest came before a frame was open
    uint64_t kept_count;              // promises whose commands the caller has recorded
    VkPipelineStageFlags foreign_stages;  // of the caller's own commands, for the next barrier
    VkAccessFlags foreign_access;

    int32_t  staging;                 // chunk
    uint64_t staging_size;
    tl_heap *staging_heap;            // of the slots in it
    tli_vk_slot *all_slots;           // [slot_end]
    int32_t  slot_count, slot_end, slot_capacity, free_slot;  // slot_count: in use; free_slot: slot + 1
    void    *bounce;                  // memory of the env for a map larger than the staging, kept for the next
    uint64_t bounce_bytes;
    int32_t  bounce_is_used;
    tli_vk_mapping *mappings;
    int32_t  mapping_count, mapping_capacity;
    tli_vk_place *lost_places;        // written by frames that were dropped
    int32_t  lost_count, lost_capacity;

    tl_vk_kernel *shaders[TLI_VK_SHADER_COUNT];
    int32_t kernel_count;             // alive, shaders of [5] included
    tli_vk_place placeholder;         // four bytes behind the staging, bound where a range is empty
    VkQueryPool times;
    uint64_t *time_serials;           // [time_count + TLI_VK_OWN_TIMES] batch of each slot; 0 = none
    uint64_t *time_numbers;           // [time_count + TLI_VK_OWN_TIMES] how many times were written before it
    uint64_t time_count;              // times written so far
    uint64_t read_number, read_ticks; // of the time that was read last; ticks 0 = none yet
} tli_vk;

static tli_vk *tli_vk_self(const tl_backend *backend) { return (tli_vk *)backend->self; }

static tl_result tli_vk_fail(tli_vk *b, tl_result code, const char *function, const char *why) {
    return tl_record_error(b->env, code, function, why);
}

// Record that a call of Vulkan failed. A lost device stays lost.
static tl_result tli_vk_fail_result(tli_vk *b, const char *function, const char *call, VkResult result) {
    if (result == VK_ERROR_DEVICE_LOST) b->lost = 1;
    return tli_vk_fail_call(b->env, function, call, result);
}

static tl_result tli_vk_fail_lost(tli_vk *b, const char *function) {
    return tli_vk_fail(b, TL_ERROR_DEVICE_LOST, function, "the device was lost");
}

static uint64_t tli_vk_align(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

static uint64_t tli_vk_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Make room for one more element, doubling the capacity; 0 = no memory.
static int tli_vk_grow(tli_vk *b, void *array, int32_t *capacity, int32_t count, size_t size) {
    void *old, *grown;
    int32_t larger = *capacity ? *capacity * 2 : 16;
    if (count < *capacity) return 1;
    if (*capacity > INT32_MAX / 4) return 0;
    grown = tl_add_memory(b->env, (size_t)larger * size);
    if (!grown) return 0;
    b->calls.host_alloc_count++;
    memcpy(&old, array, sizeof old);  // array points to a pointer whose type is not known here
    if (count) memcpy(grown, old, (size_t)count * size);
    tl_free_memory(b->env, old);
    memcpy(array, &grown, sizeof grown);
    *capacity = larger;
    return 1;
}

// -- chunks --

static VkMappedMemoryRange tli_vk_mapped_range(const tli_vk *b, const tli_vk_chunk *chunk, uint64_t at,
                                               uint64_t bytes) {
    uint64_t atom = b->device_limits.nonCoherentAtomSize, from = chunk->memory_offset + at;
    uint64_t end = tli_vk_align(from + bytes, atom);
    VkMappedMemoryRange range;
    memset(&range, 0, sizeof range);
    range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
    range.memory = chunk->memory;
    range.offset = from / atom * atom;
    range.size = end - range.offset;
    return range;  // inside the memory, whose size is a multiple of the atom
}

// Make what the host wrote visible to the device; the next function does the reverse.
static VkResult tli_vk_flush_host(tli_vk *b, const tli_vk_place *place) {
    const tli_vk_chunk *chunk = &b->chunks[place->chunk];
    VkMappedMemoryRange range = tli_vk_mapped_range(b, chunk, place->at, place->bytes);
    if (chunk->flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) return VK_SUCCESS;
    return (b->vk.vkFlushMappedMemoryRanges)(b->device, 1, &range);
}

static VkResult tli_vk_invalidate_host(tli_vk *b, const tli_vk_place *place) {
    const tli_vk_chunk *chunk = &b->chunks[place->chunk];
    VkMappedMemoryRange range = tli_vk_mapped_range(b, chunk, place->at, place->bytes);
    if (chunk->flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) return VK_SUCCESS;
    return (b->vk.vkInvalidateMappedMemoryRanges)(b->device, 1, &range);
}

// Rate how well a memory type serves a tier; 0 = not at all. Host-visible device-local memory rates lower,
// as it is a small window on many machines. Cached host memory rates higher, as the host reads it many
// times faster.
static int32_t tli_vk_rate_type(const tli_vk *b, tl_tier tier, uint32_t index) {
    VkMemoryPropertyFlags flags = b->memory.memoryTypes[index].propertyFlags;
    int visible = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
    int local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
    int cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
    int coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
    if (flags & (VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT)) return 0;
    if (tier == TL_TIER_DEVICE) return 1 + 8 * local + 4 * !visible + 2 * cached + coherent;
    return visible ? 1 + 8 * cached + 4 * !local + coherent : 0;
}

// Whether types of device-local memory are among the allowed ones.
static int tli_vk_has_local(const tli_vk *b, uint32_t allowed) {
    uint32_t i;
    for (i = 0; i < b->memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) && tli_vk_rate_type(b, TL_TIER_DEVICE, i) &&
            (b->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            return 1;
    return 0;
}

// Whether the device tier may only be device-local.
static int tli_vk_needs_local(const tli_vk *b, tl_tier tier, uint32_t allowed) {
    return tier == TL_TIER_DEVICE && !b->desc.allow_host_memory && tli_vk_has_local(b, allowed);
}

// Whether a type is host-visible device-local memory while the tier has a type of its own kind: then it
// is not used even as a last resort.
static int tli_vk_is_window(const tli_vk *b, tl_tier tier, uint32_t allowed, uint32_t index) {
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, both = local | visible;
    uint32_t i;
    if ((b->memory.memoryTypes[index].propertyFlags & both) != both) return 0;
    for (i = 0; i < b->memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) && tli_vk_rate_type(b, tier, i) &&
            (b->memory.memoryTypes[i].propertyFlags & both) == (tier == TL_TIER_DEVICE ? local : visible))
            return 1;
    return 0;
}

// The type to try after `last` (-1 = first): the best allowed one with a lower rating, or with the same
// rating and a higher index. -1 = none is left.
static int32_t tli_vk_next_type(const tli_vk *b, tl_tier tier, uint32_t allowed, int32_t last) {
    int32_t best = -1, best_rate = 0, limit = last < 0 ? INT32_MAX : tli_vk_rate_type(b, tier, (uint32_t)last);
    int needs_local = tli_vk_needs_local(b, tier, allowed);
    uint32_t i;
    for (i = 0; i < b->memory.memoryTypeCount; i++) {
        int32_t rate = tli_vk_rate_type(b, tier, i);
        if (!(allowed >> i & 1) || !rate || rate <= best_rate) continue;
        if (needs_local && !(b->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            continue;
        if (tli_vk_is_window(b, tier, allowed, i)) continue;
        if (rate > limit || (rate == limit && (int32_t)i <= last)) continue;
        best = (int32_t)i;
        best_rate = rate;
    }
    return best;
}

// Add the memory of a chunk to the counters, or take it from them.
static void tli_vk_count_memory(tli_vk *b, const tli_vk_chunk *chunk, int sign) {
    uint64_t bytes = sign > 0 ? chunk->memory_bytes : 0 - chunk->memory_bytes;  // sums wrap back
    b->calls.memory_bytes += bytes;
    b->calls.heap_bytes[chunk->memory_heap] += bytes;
    b->calls.chunk_count += sign > 0 ? 1 : UINT64_MAX;
    if (chunk->kind == TLI_VK_CHUNK_ARENA) b->calls.arena_bytes += bytes;
    if (chunk->kind == TLI_VK_CHUNK_STAGING) b->calls.staging_bytes += bytes;
    if (chunk->tier == TL_TIER_DEVICE && !(chunk->flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
        b->calls.outside_bytes += bytes;
}

// Forget the transfers of a chunk that is destroyed: the next chunk with its number is another.
static void tli_vk_forget_away(tli_vk *b, const tli_vk_chunk *chunk) {
    int32_t i;
    for (i = b->away_count - 1; i >= 0; i--)
        if (b->chunks[b->away[i].place.chunk].buffer == chunk->buffer) b->away[i] = b->away[--b->away_count];
}

static void tli_vk_destroy_chunk(tli_vk *b, tli_vk_chunk *chunk) {
    tli_vk_forget_away(b, chunk);
    b->destroyed_count++;
    if (!chunk->imported) {
        if (chunk->buffer) (b->vk.vkDestroyBuffer)(b->device, chunk->buffer, b->callbacks);
        if (chunk->memory && b->desc.hooks.release) {
            (b->desc.hooks.release)(b->desc.hooks.user, chunk->cookie);
        } else if (chunk->memory) {
            if (chunk->mapped) (b->vk.vkUnmapMemory)(b->device, chunk->memory);
            (b->vk.vkFreeMemory)(b->device, chunk->memory, b->callbacks);
        }
        if (chunk->memory) tli_vk_count_memory(b, chunk, -1);
        tl_free_heap(chunk->heap);
    }
    memset(chunk, 0, sizeof *chunk);
}

// Ask the allocator of the caller once.
static VkResult tli_vk_ask_hook(tli_vk *b, tl_tier tier, const VkMemoryRequirements *needs,
                                VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred,
                                tli_vk_chunk *chunk) {
    void *mapped = NULL;
    uint32_t type = 0;
    VkResult result = (b->desc.hooks.allocate)(b->desc.hooks.user, needs, required, preferred, &chunk->memory,
                                             &chunk->memory_offset, &type, &mapped, &chunk->cookie);
    if (result) {
        chunk->memory = VK_NULL_HANDLE;
        return result;
    }
    chunk->mapped = (char *)mapped;
    chunk->memory_bytes = needs->size;
    chunk->flags = b->memory.memoryTypes[type % VK_MAX_MEMORY_TYPES].propertyFlags;
    chunk->memory_heap = (uint8_t)b->memory.memoryTypes[type % VK_MAX_MEMORY_TYPES].heapIndex;
    return tier == TL_TIER_HOST && !mapped ? VK_ERROR_MEMORY_MAP_FAILED : VK_SUCCESS;
}

// Allocate by the caller's allocator. For the device tier it is asked for memory like that of the best type;
// where that is used up, like that of the next one. Size and alignment are rounded up to nonCoherentAtomSize,
// so that whole atoms can be flushed.
static VkResult tli_vk_allocate_hooked(tli_vk *b, tl_tier tier, const VkMemoryRequirements *requirements,
                                       tli_vk_chunk *chunk) {
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    VkMemoryPropertyFlags asked = ~(VkMemoryPropertyFlags)0;
    VkMemoryRequirements needs = *requirements;
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    int32_t type = -1;
    if (needs.alignment < b->device_limits.nonCoherentAtomSize)
        needs.alignment = b->device_limits.nonCoherentAtomSize;
    needs.size = tli_vk_align(needs.size, b->device_limits.nonCoherentAtomSize);
    if (tier == TL_TIER_HOST)
        return tli_vk_ask_hook(b, tier, &needs, visible, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, chunk);
    while (result == VK_ERROR_OUT_OF_DEVICE_MEMORY &&
           (type = tli_vk_next_type(b, tier, needs.memoryTypeBits, type)) >= 0) {
        VkMemoryPropertyFlags required = b->memory.memoryTypes[type].propertyFlags & (local | visible);
        if (required == asked) continue;  // of the same kind as the type before it
        asked = required;
        result = tli_vk_ask_hook(b, tier, &needs, required, local, chunk);
    }
    return result;
}

static VkResult tli_vk_allocate_typed(tli_vk *b, tl_tier tier, const VkMemoryRequirements *needs,
                                      tli_vk_chunk *chunk) {
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    VkMemoryAllocateInfo info;
    int32_t type = -1;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = tli_vk_align(needs->size, b->device_limits.nonCoherentAtomSize);
    while ((type = tli_vk_next_type(b, tier, needs->memoryTypeBits, type)) >= 0) {
        void *mapped = NULL;
        info.memoryTypeIndex = (uint32_t)type;
        result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
        if (info.allocationSize > b->memory.memoryHeaps[b->memory.memoryTypes[type].heapIndex].size) continue;
        result = (b->vk.vkAllocateMemory)(b->device, &info, b->callbacks, &chunk->memory);
        if (result) {
            chunk->memory = VK_NULL_HANDLE;
            if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY) continue;  // try another heap
            return result;
        }
        chunk->memory_bytes = info.allocationSize;
        chunk->flags = b->memory.memoryTypes[type].propertyFlags;
        chunk->memory_heap = (uint8_t)b->memory.memoryTypes[type].heapIndex;
        if (!(chunk->flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) return VK_SUCCESS;
        result = (b->vk.vkMapMemory)(b->device, chunk->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
        chunk->mapped = (char *)mapped;
        if (result && tier == TL_TIER_DEVICE) result = VK_SUCCESS;  // it is mapped through staging instead
        return result;
    }
    return result;
}

// Create a buffer of this length, without memory. With links of another family it belongs to both: handing it
// over and back would make kernels wait that only read what is copied.
static VkResult tli_vk_create_buffer(tli_vk *b, uint64_t bytes, VkBuffer *buffer, VkMemoryRequirements *needs) {
    const uint32_t families[2] = { b->desc.device.queue_family, b->desc.device.transfer_family };
    VkBufferCreateInfo info;
    VkResult result;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    if (b->link_count && families[0] != families[1]) {
        info.sharingMode = VK_SHARING_MODE_CONCURRENT;
        info.queueFamilyIndexCount = 2;
        info.pQueueFamilyIndices = families;
    }
    result = (b->vk.vkCreateBuffer)(b->device, &info, b->callbacks, buffer);
    if (result) *buffer = VK_NULL_HANDLE;
    else (b->vk.vkGetBufferMemoryRequirements)(b->device, *buffer, needs);
    return result;
}

// Create a buffer of this length with memory of its own.
static VkResult tli_vk_create_chunk(tli_vk *b, tl_tier tier, tli_vk_chunk_kind kind, uint64_t bytes,
                                    tli_vk_chunk *chunk) {
    VkMemoryRequirements needs;
    VkResult result;
    memset(chunk, 0, sizeof *chunk);
    result = tli_vk_create_buffer(b, bytes, &chunk->buffer, &needs);
    if (result) return result;
    b->calls.memory_count++;
    result = b->desc.hooks.allocate ? tli_vk_allocate_hooked(b, tier, &needs, chunk)
                                    : tli_vk_allocate_typed(b, tier, &needs, chunk);
    chunk->bytes = bytes;
    chunk->tier = (uint8_t)tier;
    chunk->kind = (uint8_t)kind;
    if (chunk->memory) tli_vk_count_memory(b, chunk, 1);
    if (!result)
        result = (b->vk.vkBindBufferMemory)(b->device, chunk->buffer, chunk->memory, chunk->memory_offset);
    if (result) tli_vk_destroy_chunk(b, chunk);
    return result;
}

static int tli_vk_is_empty(const tli_vk_chunk *chunk) {
    return chunk->alive && !chunk->imported && !chunk->block_count;
}

// Free the memory of arenas whose blocks were freed, once no work uses it.
static void tli_vk_drop_arenas(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->chunk_count && b->freed_arena_count; i++) {
        tli_vk_chunk *chunk = &b->chunks[i];
        if (!tli_vk_is_empty(chunk) || chunk->kind != TLI_VK_CHUNK_ARENA) continue;
        if (chunk->last_use > b->passed && !b->lost) continue;
        tli_vk_destroy_chunk(b, chunk);
        b->freed_arena_count--;
    }
}

// Free empty chunks that no work uses, but keep the first ones up to keep_bytes. Returns how many were freed.
static int tli_vk_drop_chunks(tli_vk *b, uint64_t keep_bytes) {
    uint64_t kept = 0;
    int32_t i, dropped = b->freed_arena_count;
    tli_vk_drop_arenas(b);
    dropped -= b->freed_arena_count;
    for (i = 0; i < b->chunk_count; i++) {
        tli_vk_chunk *chunk = &b->chunks[i];
        if (!tli_vk_is_empty(chunk) || chunk->kind == TLI_VK_CHUNK_ARENA) continue;
        if (kept + chunk->bytes <= keep_bytes) { kept += chunk->bytes; continue; }
        if (chunk->last_use > b->passed && !b->lost) continue;
        tli_vk_destroy_chunk(b, chunk);
        dropped++;
    }
    return dropped;
}

// The index of an unused entry in the table of chunks; TLI_VK_CHUNK_NONE where there is no memory for one.
static int32_t tli_vk_add_record(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->chunk_count; i++) {
        const tli_vk_chunk *chunk = &b->chunks[i];
        if (!chunk->alive || (chunk->imported && !chunk->block_count && chunk->last_use <= b->passed)) return i;
    }
    if (!tli_vk_grow(b, &b->chunks, &b->chunk_capacity, b->chunk_count, sizeof *b->chunks))
        return TLI_VK_CHUNK_NONE;
    memset(&b->chunks[b->chunk_count], 0, sizeof *b->chunks);
    return b->chunk_count++;
}

static tl_result tli_vk_reach(tli_vk *b, uint64_t serial, const char *function);
static tl_result tli_vk_look(tli_vk *b, const char *function);

// Wait for the work that keeps empty chunks alive and free them. Returns how many were freed.
static int tli_vk_drop_busy_chunks(tli_vk *b, const char *function) {
    int32_t i, busy = 0;
    for (i = 0; i < b->chunk_count; i++)
        busy |= tli_vk_is_empty(&b->chunks[i]);
    if (!busy || b->records) return 0;
    if (tli_vk_reach(b, b->serial, function) || tli_vk_reach(b, b->serial - 1, function)) return 0;
    return tli_vk_drop_chunks(b, 0);
}

// Record that no single allocation may be of so many bytes.
static tl_result tli_vk_fail_largest(tli_vk *b, uint64_t bytes, const char *function) {
    const char *parts[3];
    char digits[2][24];
    parts[0] = tli_vk_print_u64(bytes, digits[0]);
    parts[1] = " bytes: more than the device allocates at once, maxMemoryAllocationSize: ";
    parts[2] = tli_vk_print_u64(b->most_allocation_bytes, digits[1]);
    return tli_vk_fail_parts(b->env, TL_ERROR_NO_MEMORY, function, parts, 3);
}

// Record that there is no memory for so many bytes.
static tl_result tli_vk_fail_memory(tli_vk *b, tl_tier tier, uint64_t bytes, VkResult result,
                                    const char *function) {
    int is_local = result == VK_ERROR_OUT_OF_DEVICE_MEMORY && tli_vk_needs_local(b, tier, ~(uint32_t)0);
    const char *parts[3];
    char digits[24];
    parts[0] = tli_vk_print_u64(bytes, digits);
    parts[1] = " bytes: memory for a chunk: ";
    parts[2] = is_local ? "device-local memory is used up, and allow_host_memory is not set"
                        : tli_vk_explain(result);
    return tli_vk_fail_parts(b->env, tli_vk_translate(result), function, parts, 3);
}

// Add a chunk: for sharing one of the usual size, which is halved while the driver is out of memory, but not
// below `bytes`.
static tl_result tli_vk_add_chunk(tli_vk *b, tl_tier tier, tli_vk_chunk_kind kind, uint64_t bytes,
                                  const char *function, int32_t *index) {
    uint64_t usual = kind == TLI_VK_CHUNK_SHARED ? b->desc.chunk_bytes : 0;
    uint64_t size = bytes > usual ? bytes : usual;
    tli_vk_chunk chunk;
    VkResult result;
    int32_t at;
    *index = TLI_VK_CHUNK_NONE;
    if (bytes > b->most_allocation_bytes || bytes > SIZE_MAX / 4)
        return tli_vk_fail_largest(b, bytes, function);
    size = tli_vk_least(size, b->most_allocation_bytes / b->alignment * b->alignment);
    if (size < bytes) size = bytes;
    at = tli_vk_add_record(b);
    if (at == TLI_VK_CHUNK_NONE)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the table of chunks");
    for (;;) {
        result = tli_vk_create_chunk(b, tier, kind, size, &chunk);
        if (tli_vk_translate(result) != TL_ERROR_NO_MEMORY) break;
        if (tli_vk_drop_chunks(b, 0)) continue;
        if (size == bytes) {
            if (tli_vk_drop_busy_chunks(b, function)) continue;
            break;
        }
        size = tli_vk_align(size / 2 > bytes ? size / 2 : bytes, b->alignment);
    }
    if (result && b->lost) return tli_vk_fail_lost(b, function);
    if (result == VK_ERROR_DEVICE_LOST) b->lost = 1;
    if (result) return tli_vk_fail_memory(b, tier, bytes, result, function);
    if (kind == TLI_VK_CHUNK_SHARED &&
        tl_init_heap(&b->quiet, (size_t)size, (size_t)b->alignment, &chunk.heap)) {
        tli_vk_destroy_chunk(b, &chunk);
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the heap of a chunk");
    }
    b->calls.host_alloc_count += kind == TLI_VK_CHUNK_SHARED;
    chunk.alive = 1;
    b->chunks[at] = chunk;
    *index = at;
    return TL_OK;
}

// -- blocks --

static int tli_vk_is_block(const tli_vk *b, uint64_t handle) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    return (handle & 0xFFFFFFFFu) && slot < (uint64_t)b->block_count && b->blocks[slot].alive &&
           b->blocks[slot].generation == handle >> 32;
}

static tli_vk_block *tli_vk_find_block(tli_vk *b, uint64_t handle, const char *function, tl_result *result) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    tli_vk_block *block;
    if (!(handle & 0xFFFFFFFFu) || slot >= (uint64_t)b->block_count) {
        *result = tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "block: not a handle of this backend");
        return NULL;
    }
    block = &b->blocks[slot];
    if (!tli_vk_is_block(b, handle)) {
        *result = tli_vk_fail(b, TL_ERROR_STALE, function,
                              "block: the handle is of a freed block or of another backend");
        return NULL;
    }
    return block;
}

// Check a range that is not empty and return its block; NULL and *result on error.
static tli_vk_block *tli_vk_find_range(tli_vk *b, const tl_range *range, const char *function,
                                       tl_result *result) {
    tli_vk_block *block = tli_vk_find_block(b, range->block, function, result);
    if (!block) return NULL;
    if (range->bytes > block->bytes || range->offset > block->bytes - range->bytes) {
        *result = tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "range: reaches beyond its block");
        return NULL;
    }
    if (range->offset % b->alignment) {
        *result = tli_vk_fail(b, TL_ERROR_INVALID_ARG, function,
                              "range: offset: not a multiple of the alignment");
        return NULL;
    }
    return block;
}

static tli_vk_place tli_vk_place_of(const tli_vk_block *block, const tl_range *range) {
    tli_vk_place place;
    place.chunk = block->chunk;
    place.at = block->at + range->offset;
    place.bytes = range->bytes;
    return place;
}

static tli_vk_place tli_vk_whole_place(const tli_vk_block *block) {
    tli_vk_place place;
    place.chunk = block->chunk;
    place.at = block->at;
    place.bytes = block->reserved_bytes;
    return place;
}

// Have at least one entry in the list of free blocks; 0 where there is no memory.
static int tli_vk_add_slot(tli_vk *b) {
    tli_vk_block *block;
    if (b->free_block) return 1;
    if (!tli_vk_grow(b, &b->blocks, &b->block_capacity, b->block_count, sizeof *b->blocks)) return 0;
    block = &b->blocks[b->block_count];
    memset(block, 0, sizeof *block);
    // Differs from backend to backend, so that handles of another one are refused.
    block->generation = (uint32_t)tl_mix_u64((uint64_t)(uintptr_t)b, (uint64_t)b->block_count);
    b->free_block = ++b->block_count;
    return 1;
}

static uint64_t tli_vk_take_slot(tli_vk *b, tli_vk_block **block) {
    int32_t slot = b->free_block - 1;
    *block = &b->blocks[slot];
    b->free_block = (*block)->next_free;
    (*block)->alive = 1;
    (*block)->claimed_bytes = (*block)->claim_count = (*block)->account = 0;
    (*block)->map_count = 0;
    return (uint64_t)(*block)->generation << 32 | (uint64_t)(slot + 1);
}

// Take a piece of a chunk of the tier; add a chunk where none has room.
//
//   except   a chunk that is being emptied: it gives no piece, and no chunk is added; or TLI_VK_CHUNK_NONE
static tl_result tli_vk_find_piece(tli_vk *b, tl_tier tier, uint64_t bytes, const char *function,
                                   int32_t except, int32_t *index, size_t *at, int32_t *piece) {
    tl_result result;
    int32_t i;
    for (i = 0; i < b->chunk_count; i++) {
        tli_vk_chunk *chunk = &b->chunks[i];
        if (!chunk->alive || !chunk->heap || chunk->tier != (uint8_t)tier || i == except ||
            chunk->bytes < bytes)
            continue;
        if (except != TLI_VK_CHUNK_NONE && !chunk->block_count) continue;  // empty: to be freed as well
        if (tl_add_block(chunk->heap, (size_t)bytes, at, piece) == TL_OK) {
            *index = i;
            return TL_OK;
        }
    }
    if (except != TLI_VK_CHUNK_NONE) return TL_ERROR_NO_MEMORY;
    result = tli_vk_add_chunk(b, tier, TLI_VK_CHUNK_SHARED, bytes, function, index);
    if (result) return result;
    if (tl_add_block(b->chunks[*index].heap, (size_t)bytes, at, piece) == TL_OK) return TL_OK;
    return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the heap of a chunk");
}

// Check what is asked for, and have a slot for the block.
static tl_result tli_vk_start_block(tli_vk *b, tl_tier tier, uint64_t bytes, const char *function) {
    if (b->lost) return tli_vk_fail_lost(b, function);
    if ((uint64_t)tier >= TL_TIER_COUNT) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "tier: unknown");
    if (bytes > UINT64_MAX / 4)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "bytes: more than there are");
    return tli_vk_add_slot(b) ? TL_OK
         : tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the table of blocks");
}

// Make the block of a piece of a chunk.
//
//   reserved   what is taken for it
static uint64_t tli_vk_end_block(tli_vk *b, int32_t chunk, size_t at, int32_t piece, uint64_t bytes,
                                 uint64_t reserved) {
    tli_vk_block *block;
    uint64_t handle = tli_vk_take_slot(b, &block);
    block->tier = b->chunks[chunk].tier;
    block->bytes = bytes;
    block->reserved_bytes = reserved;
    block->chunk = chunk;
    block->piece = piece;
    block->at = at;
    // Work on the block that had this piece before may not have finished.
    block->last_write = block->last_use = b->chunks[chunk].last_use;
    b->chunks[chunk].block_count++;
    b->counters.added_count++;
    b->counters.block_count[block->tier]++;
    b->counters.reserved_bytes[block->tier] += reserved;
    return handle;
}

static tl_result tli_vk_add_block(void *self, tl_tier tier, uint64_t bytes, uint64_t *handle) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = tli_vk_start_block(b, tier, bytes, "add_block");
    uint64_t reserved;
    int32_t chunk, piece;
    size_t at;
    *handle = 0;
    if (result) return result;
    reserved = tli_vk_align(bytes ? bytes : 1, b->alignment);
    result = tli_vk_find_piece(b, tier, reserved, "add_block", TLI_VK_CHUNK_NONE, &chunk, &at, &piece);
    if (!result) *handle = tli_vk_end_block(b, chunk, at, piece, bytes, reserved);
    return result;
}

// The memory heap that is tried first for the chunks of a tier.
static uint32_t tli_vk_heap_of(const tli_vk *b, tl_tier tier) {
    int32_t type = tli_vk_next_type(b, tier, ~(uint32_t)0, -1);
    return type < 0 ? 0 : b->memory.memoryTypes[type].heapIndex;
}

// The bytes that a heap can still give: by VK_EXT_memory_budget where it is enabled, else four fifths of the
// heap less the chunks of the backend.
static uint64_t tli_vk_heap_budget(const tli_vk *b, uint32_t heap) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    VkPhysicalDeviceMemoryProperties2 properties;
    uint64_t whole = b->memory.memoryHeaps[heap].size / 5 * 4, used = 0;
    int32_t i;
    for (i = 0; i < b->chunk_count; i++)
        if (b->chunks[i].alive && !b->chunks[i].imported && b->chunks[i].memory_heap == heap)
            used += b->chunks[i].memory_bytes;
    if (b->has_budget) {
        memset(&budget, 0, sizeof budget);
        memset(&properties, 0, sizeof properties);
        budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
        properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
        properties.pNext = &budget;
        (b->vk.vkGetPhysicalDeviceMemoryProperties2)(b->desc.device.physical, &properties);
        whole = budget.heapBudget[heap];
        used = budget.heapUsage[heap];
    }
    return whole > used ? whole - used : 0;
}

// Make room in the budget of the heap by giving back what is not used; refuse what is still beyond it.
static tl_result tli_vk_check_arena(tli_vk *b, tl_tier tier, uint64_t bytes, const char *function) {
    uint32_t heap = tli_vk_heap_of(b, tier);
    const char *parts[4];
    char digits[2][24];
    if (b->desc.exceed_budget || bytes <= tli_vk_heap_budget(b, heap)) return TL_OK;
    (void)tli_vk_drop_chunks(b, 0);
    if (bytes > tli_vk_heap_budget(b, heap)) (void)tli_vk_drop_busy_chunks(b, function);
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (bytes <= tli_vk_heap_budget(b, heap)) return TL_OK;
    parts[0] = tli_vk_print_u64(bytes, digits[0]);
    parts[1] = " bytes: the budget of the heap leaves ";
    parts[2] = tli_vk_print_u64(tli_vk_heap_budget(b, heap), digits[1]);
    parts[3] = ", and exceed_budget is not set";
    return tli_vk_fail_parts(b->env, TL_ERROR_NO_MEMORY, function, parts, 4);
}

static tl_result tli_vk_add_arena(void *self, tl_tier tier, int32_t bank, uint64_t bytes, uint64_t *handle) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = tli_vk_start_block(b, tier, bytes, "add_arena");
    uint64_t reserved;
    int32_t chunk;
    *handle = 0;
    if (!result && bank)
        result = tli_vk_fail(b, TL_ERROR_INVALID_ARG, "add_arena", "bank: there is bank 0 alone");
    if (result) return result;
    reserved = tli_vk_align(bytes ? bytes : 1, b->granularity);
    if (b->freed_arena_count) (void)tli_vk_drop_busy_chunks(b, "add_arena");  // both may not fit together
    result = tli_vk_check_arena(b, tier, reserved + b->overhead, "add_arena");
    if (!result) result = tli_vk_add_chunk(b, tier, TLI_VK_CHUNK_ARENA, reserved, "add_arena", &chunk);
    if (!result) *handle = tli_vk_end_block(b, chunk, 0, -1, bytes, b->chunks[chunk].memory_bytes);
    return result;
}

// The open account of a handle, or NULL.
static tli_vk_account *tli_vk_open_account_of(tli_vk *b, uint64_t handle) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    tli_vk_account *account = slot < (uint64_t)b->account_count ? &b->accounts[slot] : NULL;
    return account && account->is_open && account->generation == handle >> 32 ? account : NULL;
}

// The first to claim a range of a block is the one who took its bytes.
static void tli_vk_take_block(tli_vk_account *account, uint64_t handle, tli_vk_block *block) {
    tl_account_counters *counters = &account->counters;
    if (block->account) return;
    block->account = handle;
    counters->taken_bytes[block->tier] += block->reserved_bytes;
    counters->bank_taken_bytes[0] = counters->taken_bytes[TL_TIER_DEVICE];
    if (counters->taken_bytes[block->tier] > counters->peak_taken_bytes[block->tier])
        counters->peak_taken_bytes[block->tier] = counters->taken_bytes[block->tier];
}

// The bytes of a block are given back; the counters follow.
static void tli_vk_untake_block(tli_vk *b, const tli_vk_block *block) {
    tli_vk_account *account = block->account ? tli_vk_open_account_of(b, block->account) : NULL;
    if (account) account->counters.taken_bytes[block->tier] -= block->reserved_bytes;
    if (account) account->counters.bank_taken_bytes[0] = account->counters.taken_bytes[TL_TIER_DEVICE];
    b->counters.reserved_bytes[block->tier] -= block->reserved_bytes;
}

// Give the memory of a slot back.
static void tli_vk_free_slot(tli_vk *b, tli_vk_slot *slot) {
    if (slot->piece) tl_free_block(b->staging_heap, slot->piece);
    else b->chunks[slot->chunk].block_count = 0;
    slot->is_used = 0;
    b->slot_count--;
    slot->next_free = b->free_slot;
    b->free_slot = (int32_t)(slot - b->all_slots) + 1;
}

// A slot is free as soon as this batch has finished.
static void tli_vk_give_staging(tli_vk *b, int32_t number, uint64_t serial) {
    tli_vk_slot *slot = &b->all_slots[number];
    slot->serial = serial;
    if (serial <= b->passed) tli_vk_free_slot(b, slot);
}

// Cancel a read that is pending: its slot is free once the copy into it, if it runs at all, has finished.
static void tli_vk_cancel_read(tli_vk *b, int32_t mapping, uint64_t serial) {
    tli_vk_give_staging(b, b->mappings[mapping].slot, serial);
    b->mappings[mapping] = b->mappings[--b->mapping_count];
}

// Cancel the reads of a block that are pending.
static void tli_vk_drop_reads(tli_vk *b, uint64_t handle) {
    int32_t i;
    for (i = b->mapping_count - 1; i >= 0; i--)
        if (b->mappings[i].is_pending && b->mappings[i].range.block == handle)
            tli_vk_cancel_read(b, i, b->mappings[i].serial);
}

// The block of an arena was freed: so is its memory, if the work on it has finished, else when that is noticed.
static void tli_vk_free_arena(tli_vk *b) {
    tl_env *env = b->env;
    b->freed_arena_count++;
    b->env = &b->quiet;
    (void)tli_vk_look(b, "free_block");
    b->env = env;
    tli_vk_drop_arenas(b);
}

static tl_result tli_vk_free_block(void *self, uint64_t handle) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_block *block = tli_vk_find_block(b, handle, "free_block", &result);
    tli_vk_chunk *chunk;
    if (!block) return result;
    if (block->claim_count)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "free_block", "block: a range in it is still claimed");
    if (block->map_count)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "free_block", "block: a range in it is mapped");
    chunk = &b->chunks[block->chunk];
    b->counters.block_count[block->tier]--;
    tli_vk_untake_block(b, block);
    chunk->block_count--;
    tli_vk_drop_reads(b, handle);
    if (chunk->heap) tl_free_block(chunk->heap, block->piece);  // a barrier orders the next user after it
    block->alive = 0;
    block->generation++;
    block->next_free = b->free_block;
    b->free_block = (int32_t)(block - b->blocks) + 1;
    if (!chunk->imported && chunk->kind == TLI_VK_CHUNK_ARENA) tli_vk_free_arena(b);
    return TL_OK;
}

// -- buffers of the caller --

// The chunk of a buffer; TLI_VK_CHUNK_NONE where it has none. A chunk whose blocks were all freed counts, as
// work on it may not have finished.
static int32_t tli_vk_find_chunk(const tli_vk *b, VkBuffer buffer) {
    int32_t i;
    for (i = 0; i < b->chunk_count; i++)
        if (b->chunks[i].alive && b->chunks[i].buffer == buffer) return i;
    return TLI_VK_CHUNK_NONE;
}

static const char *tli_vk_explain_buffer(const tli_vk *b, const tl_vk_buffer_desc *desc) {
    const VkBufferUsageFlags needed = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    int32_t at = tli_vk_find_chunk(b, desc->buffer);
    if (!desc->buffer) return "buffer: missing";
    if (at != TLI_VK_CHUNK_NONE && !b->chunks[at].imported) return "buffer: is one of the backend itself";
    if ((desc->usage & needed) != needed) return "usage: needs STORAGE_BUFFER, TRANSFER_SRC and TRANSFER_DST";
    if (!desc->bytes || desc->bytes % 4 || desc->bytes > UINT64_MAX / 4)
        return "bytes: must be a multiple of 4, not 0";
    if (desc->offset % b->alignment) return "offset: not a multiple of the alignment";
    return desc->offset > UINT64_MAX / 4 ? "offset: beyond any buffer" : NULL;
}

// Have a chunk for a buffer of the caller: the one it has, or a new one; TLI_VK_CHUNK_NONE where there is no
// memory for it. The stages of all its blocks are waited for.
static int32_t tli_vk_import_chunk(tli_vk *b, const tl_vk_buffer_desc *desc) {
    int32_t at = tli_vk_find_chunk(b, desc->buffer);
    tli_vk_chunk *chunk;
    if (at == TLI_VK_CHUNK_NONE) {
        at = tli_vk_add_record(b);
        if (at == TLI_VK_CHUNK_NONE) return at;
        b->chunks[at].block_count = 0;
    }
    chunk = &b->chunks[at];
    if (!chunk->block_count && chunk->last_use <= b->passed) memset(chunk, 0, sizeof *chunk);
    chunk->buffer = desc->buffer;
    if (chunk->bytes < desc->offset + desc->bytes) chunk->bytes = desc->offset + desc->bytes;
    chunk->stages |= desc->stages;
    chunk->access |= desc->access;
    chunk->seen = 0;
    chunk->tier = TL_TIER_DEVICE;
    chunk->alive = chunk->imported = 1;
    chunk->block_count++;
    return at;
}

TLI_VK_IMPL tl_result tl_vk_add_buffer(const tl_backend *backend, const tl_vk_buffer_desc *desc,
                                       uint64_t *handle) {
    const char *function = "tl_vk_add_buffer", *why;
    tli_vk *b = tli_vk_self(backend);
    tli_vk_block *block;
    int32_t at;
    *handle = 0;
    if (b->lost) return tli_vk_fail_lost(b, function);
    why = tli_vk_explain_buffer(b, desc);
    if (why) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, why);
    at = tli_vk_add_slot(b) ? tli_vk_import_chunk(b, desc) : TLI_VK_CHUNK_NONE;
    if (at == TLI_VK_CHUNK_NONE)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the tables");
    *handle = tli_vk_take_slot(b, &block);
    block->tier = TL_TIER_DEVICE;
    block->bytes = block->reserved_bytes = desc->bytes;
    block->chunk = at;
    block->piece = -1;
    block->at = desc->offset;
    block->last_write = block->last_use = 0;
    b->counters.added_count++;
    b->counters.block_count[TL_TIER_DEVICE]++;
    b->counters.reserved_bytes[TL_TIER_DEVICE] += desc->bytes;
    return TL_OK;
}

// -- lost places: what dropped frames would have written --

static int tli_vk_meet(const tli_vk_place *a, const tli_vk_place *b) {
    return a->chunk == b->chunk && a->bytes && b->bytes && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

static int tli_vk_is_lost(const tli_vk *b, const tli_vk_place *place) {
    int32_t i;
    for (i = 0; i < b->lost_count; i++)
        if (tli_vk_meet(&b->lost_places[i], place)) return 1;
    return 0;
}

static int tli_vk_add_lost(tli_vk *b, tli_vk_place place) {
    if (b->chunks[place.chunk].kind == TLI_VK_CHUNK_STAGING) return 1;
    if (!tli_vk_grow(b, &b->lost_places, &b->lost_capacity, b->lost_count, sizeof *b->lost_places)) return 0;
    b->lost_places[b->lost_count++] = place;
    return 1;
}

static tl_result tli_vk_fail_stale(tli_vk *b, const char *function, const char *what) {
    const char *parts[2];
    parts[0] = what;
    parts[1] = b->records ? ": was written by a frame that was dropped"
                          : ": was written behind commands of the caller that did not run";
    return tli_vk_fail_parts(b->env, TL_ERROR_STALE, function, parts, 2);
}

// These bytes are written again: they are no longer lost.
static void tli_vk_forget_lost(tli_vk *b, const tli_vk_place *place) {
    int32_t i;
    for (i = b->lost_count - 1; i >= 0; i--) {
        tli_vk_place *lost = &b->lost_places[i], rest;
        uint64_t end = lost->at + lost->bytes, place_end = place->at + place->bytes;
        if (!tli_vk_meet(lost, place)) continue;
        rest = *lost;
        if (lost->at < place->at && end > place_end) {  // in two; without memory all stays lost
            rest.at = place_end;
            rest.bytes = end - place_end;
            if (!tli_vk_add_lost(b, rest)) continue;
            b->lost_places[i].bytes = place->at - b->lost_places[i].at;
        } else if (lost->at < place->at) {
            lost->bytes = place->at - lost->at;
        } else if (end > place_end) {
            lost->at = place_end;
            lost->bytes = end - place_end;
        } else {
            *lost = b->lost_places[--b->lost_count];
        }
    }
}

// -- claims --

static tl_result tli_vk_claim(void *self, tl_range range) {
    tli_vk *b = (tli_vk *)self;
    tl_backend_counters *counters = &b->counters;
    tl_result result = TL_OK;
    tli_vk_block *block;
    tli_vk_place place;
    uint64_t end;
    if (b->lost) return tli_vk_fail_lost(b, "claim");
    if (!range.bytes) return TL_OK;
    block = tli_vk_find_range(b, &range, "claim", &result);
    if (!block) return result;
    if (range.bytes > b->desc.capacity_bytes[block->tier] - counters->live_bytes[block->tier])
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "claim", "range: bytes: the tier's capacity is used up");
    place = tli_vk_place_of(block, &range);
    if (b->lost_count) tli_vk_forget_lost(b, &place);
    block->claim_count++;
    block->claimed_bytes += range.bytes;
    counters->claim_count[block->tier]++;
    counters->live_bytes[block->tier] += range.bytes;
    if (counters->live_bytes[block->tier] > counters->peak_bytes[block->tier])
        counters->peak_bytes[block->tier] = counters->live_bytes[block->tier];
    end = tli_vk_align(range.offset + range.bytes, b->alignment);
    if (block->tier == TL_TIER_DEVICE && end > counters->arena_bytes) counters->arena_bytes = end;
    return TL_OK;
}

static tl_result tli_vk_release(void *self, tl_range range) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_block *block;
    if (!range.bytes) return TL_OK;
    block = tli_vk_find_range(b, &range, "release", &result);
    if (!block) return result;
    if (!block->claim_count || block->claimed_bytes < range.bytes)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "release", "range: was not claimed");
    block->claim_count--;
    block->claimed_bytes -= range.bytes;
    b->counters.claim_count[block->tier]--;
    b->counters.live_bytes[block->tier] -= range.bytes;
    return TL_OK;
}

// -- accounts --

static tli_vk_account *tli_vk_find_account(tli_vk *b, uint64_t handle, const char *function,
                                           tl_result *result) {
    tli_vk_account *account = tli_vk_open_account_of(b, handle);
    if (!account)
        *result = tli_vk_fail(b, TL_ERROR_STALE, function, "account: was closed, or is of another backend");
    return account;
}

static tl_result tli_vk_open_account(void *self, const uint64_t limit_bytes[TL_TIER_COUNT],
                                     uint64_t *handle) {
    tli_vk *b = (tli_vk *)self;
    int32_t slot = b->free_account - 1, tier;
    tli_vk_account *account;
    *handle = 0;
    if (b->lost) return tli_vk_fail_lost(b, "open_account");
    if (slot < 0) {
        if (!tli_vk_grow(b, &b->accounts, &b->account_capacity, b->account_count, sizeof *b->accounts))
            return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "open_account", "no memory for the table of accounts");
        slot = b->account_count++;
        memset(&b->accounts[slot], 0, sizeof *b->accounts);
        b->accounts[slot].generation = (uint32_t)tl_mix_u64((uint64_t)(uintptr_t)b, (uint64_t)slot);
    }
    account = &b->accounts[slot];
    b->free_account = account->next_free;
    memset(&account->counters, 0, sizeof account->counters);
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        account->limit_bytes[tier] = limit_bytes[tier] ? limit_bytes[tier] : TL_UNLIMITED;
    account->is_open = 1;
    b->open_account_count++;
    *handle = (uint64_t)account->generation << 32 | (uint64_t)(slot + 1);
    return TL_OK;
}

static tl_result tli_vk_close_account(void *self, uint64_t handle) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = tli_vk_find_account(b, handle, "close_account", &result);
    if (!account) return result;
    account->is_open = 0;
    account->generation++;
    account->next_free = b->free_account;
    b->free_account = (int32_t)(account - b->accounts) + 1;
    b->open_account_count--;
    return TL_OK;
}

static tl_result tli_vk_claim_on(void *self, uint64_t handle, tl_range range) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = tli_vk_find_account(b, handle, "claim_on", &result);
    tl_account_counters *counters;
    tli_vk_block *block;
    uint64_t end;
    if (!account || !range.bytes) return result;
    block = tli_vk_find_range(b, &range, "claim_on", &result);
    if (!block) return result;
    counters = &account->counters;
    if (range.bytes > account->limit_bytes[block->tier] - counters->live_bytes[block->tier])
        return tli_vk_fail(b, TL_ERROR_OVER_BUDGET, "claim_on", "range: bytes: beyond the account's limit");
    result = tli_vk_claim(self, range);
    if (result) return result;
    tli_vk_take_block(account, handle, block);
    counters->claim_count[block->tier]++;
    counters->live_bytes[block->tier] += range.bytes;
    if (counters->live_bytes[block->tier] > counters->peak_bytes[block->tier])
        counters->peak_bytes[block->tier] = counters->live_bytes[block->tier];
    end = tli_vk_align(range.offset + range.bytes, b->alignment);
    if (block->tier == TL_TIER_DEVICE && end > counters->arena_bytes) counters->arena_bytes = end;
    return TL_OK;
}

static tl_result tli_vk_release_on(void *self, uint64_t handle, tl_range range) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = tli_vk_find_account(b, handle, "release_on", &result);
    tli_vk_block *block;
    if (!account || !range.bytes) return result;
    block = tli_vk_find_range(b, &range, "release_on", &result);
    if (!block) return result;
    if (!account->counters.claim_count[block->tier] || account->counters.live_bytes[block->tier] < range.bytes)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "release_on", "range: was not claimed on this account");
    result = tli_vk_release(self, range);
    if (result) return result;
    account->counters.claim_count[block->tier]--;
    account->counters.live_bytes[block->tier] -= range.bytes;
    return TL_OK;
}

static tl_result tli_vk_shorten(void *self, uint64_t handle, tl_range range, uint64_t bytes) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = handle ? tli_vk_find_account(b, handle, "shorten", &result) : NULL;
    tli_vk_block *block = result ? NULL : tli_vk_find_range(b, &range, "shorten", &result);
    uint64_t less = range.bytes - bytes;
    if (!block) return result;
    if (!bytes || bytes > range.bytes)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "shorten",
                           "bytes: must be > 0 and not above those of the range");
    if (!block->claim_count || block->claimed_bytes < range.bytes ||
        (account && account->counters.live_bytes[block->tier] < range.bytes))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "shorten", "range: was not claimed");
    block->claimed_bytes -= less;
    b->counters.live_bytes[block->tier] -= less;
    if (account) account->counters.live_bytes[block->tier] -= less;
    return TL_OK;
}

static tl_result tli_vk_measure_account(void *self, uint64_t handle, int32_t resets,
                                        tl_account_counters *counters) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = tli_vk_find_account(b, handle, "measure_account", &result);
    int tier;
    memset(counters, 0, sizeof *counters);
    if (!account) return result;
    for (tier = 0; tier < TL_TIER_COUNT && resets; tier++) {
        account->counters.peak_bytes[tier] = account->counters.live_bytes[tier];
        account->counters.peak_taken_bytes[tier] = account->counters.taken_bytes[tier];
    }
    if (resets) account->counters.arena_bytes = 0;
    *counters = account->counters;
    return TL_OK;
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION
#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// Sets of places: disjoint, in the order of chunks and bytes, those that touch as one. A look takes a binary
// search, and work that goes through memory in order is added at the end.

// Whether a place ends before another begins, with a gap between them of more than `gap` - 1 bytes.
static int tli_vk_is_before(const tli_vk_place *a, const tli_vk_place *b, uint64_t gap) {
    return a->chunk != b->chunk ? a->chunk < b->chunk : a->at + a->bytes + gap <= b->at;
}

// How many places of a set end before a place begins.
static int32_t tli_vk_count_before(const tli_vk_index *index, const tli_vk_place *place, uint64_t gap) {
    int32_t from = 0, to = index->count;
    if (to && tli_vk_is_before(&index->places[to - 1], place, gap)) return to;
    while (from < to) {
        int32_t middle = from + (to - from) / 2;
        if (tli_vk_is_before(&index->places[middle], place, gap)) from = middle + 1;
        else to = middle;
    }
    return from;
}

static int tli_vk_index_meets(const tli_vk_index *index, const tli_vk_place *place) {
    int32_t i = tli_vk_count_before(index, place, 0);
    return i < index->count && tli_vk_meet(&index->places[i], place);
}

// Add the bytes of a place. 0 = the set is full.
static int tli_vk_index_add(tli_vk_index *index, const tli_vk_place *place) {
    tli_vk_place all = *place, *at;
    int32_t first, end;
    if (!place->bytes) return 1;
    first = end = tli_vk_count_before(index, place, 1);
    while (end < index->count && !tli_vk_is_before(place, &index->places[end], 1)) {
        const tli_vk_place *old = &index->places[end++];
        uint64_t last = old->at + old->bytes > all.at + all.bytes ? old->at + old->bytes : all.at + all.bytes;
        if (old->at < all.at) all.at = old->at;
        all.bytes = last - all.at;
    }
    if (end == first && index->count == TLI_VK_TOUCH_CAPACITY) return 0;
    at = index->places + first;
    memmove(at + 1, index->places + end, (size_t)(index->count - end) * sizeof *at);
    *at = all;
    index->count += first + 1 - end;
    return 1;
}

static void tli_vk_copy_index(const tli_vk_index *from, tli_vk_index *to) {
    memcpy(to->places, from->places, (size_t)from->count * sizeof *from->places);
    to->count = from->count;
}

// -- accesses: what is read and what is written --

static void tli_vk_forget_accesses(tli_vk_accesses *accesses) {
    accesses->reads.count = accesses->writes.count = 0;
}

// Whether an access must come after those: one of both writes the same bytes.
static int tli_vk_follows_accesses(const tli_vk_accesses *accesses, const tli_vk_place *place, int writes) {
    return tli_vk_index_meets(&accesses->writes, place) ||
           (writes && tli_vk_index_meets(&accesses->reads, place));
}

static int tli_vk_add_access(tli_vk_accesses *accesses, const tli_vk_place *place, int writes) {
    return tli_vk_index_add(writes ? &accesses->writes : &accesses->reads, place);
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION
#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// Copies between the tiers on queues of their own. A link is such a queue: one for both directions, or one for
// each.
//
//     queue    [batch 7][batch 8]------------[batch 9: reads the copy]
//                               \            /
//     link                       [transfer 3]        waits for batch 8; batch 9 waits for it, on the device
//
// Each transfer has a command buffer, and a value of the link's timeline, of its own. Those with no commands
// between them are handed over by one call. A transfer counts to the batch that is open then: that has passed
// when both have finished. The buffers belong to both queue families at once.

// -- links --

static tli_vk_transfer *tli_vk_transfer_of(const tli_vk *b, uint64_t number) {
    return &b->transfers[number % (uint64_t)b->transfer_capacity];
}

static void tli_vk_lock(tli_vk *b) {
    if (b->desc.device.lock_queue) (b->desc.device.lock_queue)(b->desc.device.lock_user);
}

static void tli_vk_unlock(tli_vk *b) {
    if (b->desc.device.unlock_queue) (b->desc.device.unlock_queue)(b->desc.device.lock_user);
}

static tl_result tli_vk_start_commands(tli_vk *b, VkCommandPool pool, VkCommandBuffer commands,
                                       const char *function) {
    VkCommandBufferBeginInfo info;
    VkResult result = (b->vk.vkResetCommandPool)(b->device, pool, 0);
    if (result) return tli_vk_fail_result(b, function, "vkResetCommandPool", result);
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    result = (b->vk.vkBeginCommandBuffer)(commands, &info);
    return result ? tli_vk_fail_result(b, function, "vkBeginCommandBuffer", result) : TL_OK;
}

static tl_result tli_vk_make_commands(tli_vk *b, uint32_t family, VkCommandPool *pool,
                                      VkCommandBuffer *buffer, const char *function) {
    VkCommandPoolCreateInfo info;
    VkCommandBufferAllocateInfo commands;
    VkResult result;
    memset(&info, 0, sizeof info);
    memset(&commands, 0, sizeof commands);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    info.queueFamilyIndex = family;
    result = (b->vk.vkCreateCommandPool)(b->device, &info, b->callbacks, pool);
    if (result) *pool = VK_NULL_HANDLE;  // a call that fails may leave anything there
    if (result) return tli_vk_fail_result(b, function, "vkCreateCommandPool", result);
    commands.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    commands.commandPool = *pool;
    commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    commands.commandBufferCount = 1;
    result = (b->vk.vkAllocateCommandBuffers)(b->device, &commands, buffer);
    return result ? tli_vk_fail_result(b, function, "vkAllocateCommandBuffers", result) : TL_OK;
}

// Note what the timelines of the links say. Transfers are done in the order in which they were made.
static VkResult tli_vk_look_at_links(tli_vk *b) {
    VkResult result = VK_SUCCESS;
    int32_t i;
    for (i = 0; i < b->link_count && !result; i++) {
        uint64_t value = 0;
        result = (b->vk.vkGetSemaphoreCounterValue)(b->device, b->links[i].timeline, &value);
        if (!result && value > b->links[i].sent) return VK_ERROR_DEVICE_LOST;  // what drivers then say
        if (!result) b->links[i].passed = value;
    }
    while (!result && b->transfer_done < b->transfer_sent) {
        const tli_vk_transfer *next = tli_vk_transfer_of(b, b->transfer_done + 1);
        if (b->links[next->link].passed < next->value) break;
        b->transfer_done++;
    }
    return result;
}

// The last batch of which the transfers have finished, too, if batches up to `serial` have.
static uint64_t tli_vk_untransferred(const tli_vk *b, uint64_t serial) {
    uint64_t first;
    if (b->transfer_done == b->transfer_made) return serial;
    first = tli_vk_transfer_of(b, b->transfer_done + 1)->serial;
    return serial < first ? serial : first - 1;
}

// The value of a link's timeline when the transfers of the batches up to `serial` have finished.
static uint64_t tli_vk_value_at(const tli_vk *b, int32_t link, uint64_t serial) {
    uint64_t value = b->links[link].passed, number;
    for (number = b->transfer_done + 1; number <= b->transfer_sent; number++) {
        const tli_vk_transfer *transfer = tli_vk_transfer_of(b, number);
        if (transfer->serial <= serial && transfer->link == link && transfer->value > value)
            value = transfer->value;
    }
    return value;
}

// Wait on the host until the oldest transfer has finished.
static tl_result tli_vk_wait_for_oldest(tli_vk *b, const char *function) {
    const tli_vk_transfer *oldest = tli_vk_transfer_of(b, b->transfer_done + 1);
    VkSemaphoreWaitInfo info;
    VkResult result;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    info.semaphoreCount = 1;
    info.pSemaphores = &b->links[oldest->link].timeline;
    info.pValues = &oldest->value;
    b->calls.host_wait_count++;
    result = (b->vk.vkWaitSemaphores)(b->device, &info, UINT64_MAX);
    if (!result) result = tli_vk_look_at_links(b);
    return result ? tli_vk_fail_result(b, function, "wait for a copy", result) : TL_OK;
}

// Make the ring of transfers, all of which are under way, larger. 0 = no memory, or it is as large as it gets.
static int tli_vk_grow_ring(tli_vk *b) {
    int32_t was = b->transfer_capacity, larger = was ? 2 * was : TLI_VK_TRANSFERS;
    tli_vk_transfer *old = b->transfers;
    uint64_t number;
    if (larger > TLI_VK_MOST_TRANSFERS) return 0;
    b->transfers = (tli_vk_transfer *)tl_add_memory(b->env, (size_t)larger * sizeof *b->transfers);
    if (!b->transfers) { b->transfers = old; return 0; }
    b->calls.host_alloc_count++;
    b->transfer_capacity = larger;
    for (number = b->transfer_done + 1; number <= b->transfer_made; number++)
        *tli_vk_transfer_of(b, number) = old[number % (uint64_t)was];
    tl_free_memory(b->env, old);
    return 1;
}

// What vkQueueSubmit is told of one transfer.
typedef struct tli_vk_sending {
    VkTimelineSemaphoreSubmitInfo timeline;
    VkSemaphore waits[2];
    uint64_t    values[2];
} tli_vk_sending;

static VkSubmitInfo tli_vk_describe_transfer(tli_vk *b, const tli_vk_transfer *t, tli_vk_sending *s) {
    static const VkPipelineStageFlags stages[2] = {
        VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT
    };
    VkSubmitInfo info;
    uint32_t count = 0;
    memset(&info, 0, sizeof info);
    memset(s, 0, sizeof *s);
    if (t->after) {
        s->waits[count] = b->timeline;
        s->values[count++] = t->after;
    }
    if (t->other_value) {
        s->waits[count] = b->links[1 - t->link].timeline;
        s->values[count++] = t->other_value;
    }
    s->timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    s->timeline.waitSemaphoreValueCount = info.waitSemaphoreCount = count;
    s->timeline.signalSemaphoreValueCount = info.signalSemaphoreCount = 1;
    s->timeline.pSignalSemaphoreValues = &t->value;
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &s->timeline;
    if (count) s->timeline.pWaitSemaphoreValues = s->values;
    if (count) info.pWaitSemaphores = s->waits;
    if (count) info.pWaitDstStageMask = stages;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &t->commands;
    info.pSignalSemaphores = &b->links[t->link].timeline;
    return info;
}

// Hand over the transfers that wait for that, with one call for each run of them on one link. What fails is
// tried again later.
static tl_result tli_vk_send_transfers(tli_vk *b, const char *function) {
    VkSubmitInfo infos[TLI_VK_SENT_AT_ONCE];
    tli_vk_sending sendings[TLI_VK_SENT_AT_ONCE];
    while (b->transfer_sent < b->transfer_made) {
        const tli_vk_transfer *t = tli_vk_transfer_of(b, b->transfer_sent + 1);
        int32_t link = t->link;
        uint32_t count = 0;
        VkResult result;
        while (count < TLI_VK_SENT_AT_ONCE && b->transfer_sent + count < b->transfer_made) {
            t = tli_vk_transfer_of(b, b->transfer_sent + count + 1);
            if (t->link != link) break;
            infos[count] = tli_vk_describe_transfer(b, t, &sendings[count]);
            count++;
        }
        tli_vk_lock(b);
        result = (b->vk.vkQueueSubmit)(b->links[link].queue, count, infos, VK_NULL_HANDLE);
        tli_vk_unlock(b);
        if (result) return tli_vk_fail_result(b, function, "vkQueueSubmit", result);
        b->calls.submit_count++;
        b->transfer_sent += count;
        b->links[link].sent = tli_vk_transfer_of(b, b->transfer_sent)->value;
    }
    return TL_OK;
}

static int tli_vk_is_ring_full(const tli_vk *b) {
    return b->transfer_made - b->transfer_done == (uint64_t)b->transfer_capacity;
}

// Have room in the ring for one more transfer: it grows, or the oldest one is waited for.
static tl_result tli_vk_reserve_transfer(tli_vk *b, const char *function) {
    VkResult looked;
    tl_result result;
    if (!tli_vk_is_ring_full(b)) return TL_OK;
    looked = tli_vk_look_at_links(b);
    if (looked) return tli_vk_fail_result(b, function, "status of the device", looked);
    if (!tli_vk_is_ring_full(b) || tli_vk_grow_ring(b)) return TL_OK;
    if (!b->transfer_capacity)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the copies between the tiers");
    result = tli_vk_send_transfers(b, function);
    return result ? result : tli_vk_wait_for_oldest(b, function);
}

// Have an entry of the ring with a command buffer, for the transfer with the next number.
static tl_result tli_vk_take_transfer(tli_vk *b, const char *function, tli_vk_transfer **taken) {
    tl_result result = tli_vk_reserve_transfer(b, function);
    tli_vk_transfer *t;
    if (result) return result;
    t = tli_vk_transfer_of(b, b->transfer_made + 1);
    *taken = t;
    if (t->commands) return TL_OK;
    result = tli_vk_make_commands(b, b->desc.device.transfer_family, &t->pool, &t->commands, function);
    if (!result) return TL_OK;
    if (t->pool) (b->vk.vkDestroyCommandPool)(b->device, t->pool, b->callbacks);
    memset(t, 0, sizeof *t);
    return result;
}

static void tli_vk_free_links(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->transfer_capacity; i++)
        if (b->transfers[i].pool) (b->vk.vkDestroyCommandPool)(b->device, b->transfers[i].pool, b->callbacks);
    for (i = 0; i < b->link_count; i++)
        if (b->links[i].timeline) (b->vk.vkDestroySemaphore)(b->device, b->links[i].timeline, b->callbacks);
    tl_free_memory(b->env, b->transfers);
    tl_free_memory(b->env, b->away);
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// Batches: opened, submitted, looked at, waited for. With a queue of its own the backend notes each command
// that it records: vkEndCommandBuffer may fail and leave the command buffer invalid, then all is recorded
// again.

// -- batches --

static tli_vk_batch *tli_vk_batch_of(tli_vk *b, uint64_t serial) {
    return &b->batches[serial % (uint64_t)b->desc.batch_count];
}

// Free the staging slots whose batch has passed.
static void tli_vk_free_slots(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->slot_end && b->slot_count; i++)
        if (b->all_slots[i].is_used && b->all_slots[i].serial <= b->passed)
            tli_vk_free_slot(b, &b->all_slots[i]);
}

// Note that the batches up to this serial have finished on the queue, and the dropped ones behind them; those
// whose transfers have finished as well have passed.
static void tli_vk_pass(tli_vk *b, uint64_t serial) {
    if (serial > b->computed) b->computed = serial;
    while (b->computed + 1 < b->serial && tli_vk_batch_of(b, b->computed + 1)->dropped == b->computed + 1)
        b->computed++;
    serial = tli_vk_untransferred(b, b->computed);
    if (serial <= b->passed) return;
    b->passed = serial;
    tli_vk_drop_arenas(b);
    tli_vk_free_slots(b);
}

// Ask the device which batches have finished. Never blocks.
static tl_result tli_vk_look(tli_vk *b, const char *function) {
    uint64_t serial = b->computed;
    VkResult result = VK_SUCCESS;
    if (b->records || b->lost) return TL_OK;
    if (b->timeline) {
        result = (b->vk.vkGetSemaphoreCounterValue)(b->device, b->timeline, &serial);
        if (!result && serial >= b->serial + 1) {  // no such batch: drivers return this for a lost device
            result = VK_ERROR_DEVICE_LOST;
            serial = b->computed;
        }
        if (!result) result = tli_vk_look_at_links(b);
    } else {
        while (serial + 1 < b->serial && !result) {
            result = (b->vk.vkGetFenceStatus)(b->device, tli_vk_batch_of(b, serial + 1)->fence);
            if (!result) serial++;
        }
        if (result == VK_NOT_READY) result = VK_SUCCESS;
    }
    if (result) return tli_vk_fail_result(b, function, "status of the device", result);
    tli_vk_pass(b, serial);
    return TL_OK;
}

// Block until a submitted batch has finished on the queue, and with_transfers those that count to it.
static tl_result tli_vk_wait_batch(tli_vk *b, uint64_t serial, int with_transfers, const char *function) {
    VkSemaphoreWaitInfo info;
    VkSemaphore timelines[3];
    uint64_t values[3];
    VkResult result = VK_SUCCESS;
    int32_t i;
    if (serial <= (with_transfers ? b->passed : b->computed)) return TL_OK;
    b->calls.host_wait_count++;
    if (b->timeline) {
        memset(&info, 0, sizeof info);
        timelines[0] = b->timeline;
        values[0] = serial;
        info.semaphoreCount = 1;
        for (i = 0; i < b->link_count && with_transfers; i++) {
            timelines[info.semaphoreCount] = b->links[i].timeline;
            values[info.semaphoreCount++] = tli_vk_value_at(b, i, serial);
        }
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
        info.pSemaphores = timelines;
        info.pValues = values;
        result = (b->vk.vkWaitSemaphores)(b->device, &info, UINT64_MAX);
        if (!result) result = tli_vk_look_at_links(b);
    } else {
        result = (b->vk.vkWaitForFences)(b->device, 1, &tli_vk_batch_of(b, serial)->fence, VK_TRUE, UINT64_MAX);
    }
    if (result) return tli_vk_fail_result(b, function, "wait for the device", result);
    tli_vk_pass(b, serial);
    return TL_OK;
}

static tl_result tli_vk_reset_batch(tli_vk *b, tli_vk_batch *batch, const char *function) {
    VkResult result;
    int32_t i;
    for (i = 0; i < batch->set_count && i <= batch->set_at; i++) {
        result = (b->vk.vkResetDescriptorPool)(b->device, batch->sets[i].pool, 0);
        if (result) return tli_vk_fail_result(b, function, "vkResetDescriptorPool", result);
        batch->sets[i].sets_left = TLI_VK_SETS;
        batch->sets[i].buffers_left = TLI_VK_SET_BUFFERS;
    }
    batch->set_at = 0;
    batch->write_count = batch->noted_count = 0;
    batch->has_others = 0;
    batch->waits_for[0] = batch->waits_for[1] = 0;
    return TL_OK;
}

// -- commands, noted so that they can be recorded again --

// From here on the batch holds commands that are not noted.
static void tli_vk_note_others(tli_vk_batch *batch) {
    if (batch->has_others) return;
    batch->has_others = 1;
    batch->known_count = batch->noted_count;
    batch->known_writes = batch->write_count;
}

// Have room to note a command with so many bytes of data; 0 = no memory.
static int tli_vk_reserve_note(tli_vk *b, tli_vk_batch *batch, uint64_t data_bytes) {
    int32_t words = (int32_t)((sizeof(tli_vk_command) + data_bytes + 7) / 8);
    while (batch->noted_capacity - batch->noted_count < words)
        if (!tli_vk_grow(b, &batch->noted, &batch->noted_capacity, batch->noted_capacity, sizeof *batch->noted))
            return 0;
    return 1;
}

static int32_t tli_vk_words_of_command(const tli_vk_command *command) {
    return (int32_t)((sizeof *command + command->data_bytes + 7) / 8);
}

// Note a command. Without memory for that it counts as one of the caller's, which matters only if the command
// buffer cannot be ended.
static void tli_vk_note_command(tli_vk *b, tli_vk_batch *batch, const tli_vk_command *command,
                                const void *data) {
    uint64_t *noted;
    if (!tli_vk_reserve_note(b, batch, command->data_bytes)) {
        tli_vk_note_others(batch);
        return;
    }
    noted = batch->noted + batch->noted_count;
    memcpy(noted, command, sizeof *command);
    if (command->data_bytes) memcpy(noted + sizeof *command / 8, data, (size_t)command->data_bytes);
    batch->noted_count += tli_vk_words_of_command(command);
}

static void tli_vk_issue_barrier(tli_vk *b, VkCommandBuffer commands, const tli_vk_command *c) {
    VkMemoryBarrier barrier;
    memset(&barrier, 0, sizeof barrier);
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = c->access[0];
    barrier.dstAccessMask = c->access[1];
    (b->vk.vkCmdPipelineBarrier)(commands, c->stages[0], c->stages[1], 0, 1, &barrier, 0, NULL, 0, NULL);
}

static void tli_vk_issue_dispatch(tli_vk *b, VkCommandBuffer commands, const tli_vk_command *c,
                                  const void *push) {
    const tl_vk_kernel *kernel = c->kernel;
    if (kernel->buffer_count)
        (b->vk.vkCmdBindDescriptorSets)(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, 1, &c->set,
                                      0, NULL);
    (b->vk.vkCmdBindPipeline)(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
    if (kernel->push_bytes)
        (b->vk.vkCmdPushConstants)(commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->push_bytes,
                                 push);
    (b->vk.vkCmdDispatch)(commands, c->groups[0], c->groups[1], c->groups[2]);
}

static void tli_vk_issue_command(tli_vk *b, VkCommandBuffer commands, const tli_vk_command *c,
                                 const void *data) {
    switch (c->kind) {
    case TLI_VK_COMMAND_BARRIER: tli_vk_issue_barrier(b, commands, c); break;
    case TLI_VK_COMMAND_TIME:
        (b->vk.vkCmdResetQueryPool)(commands, b->times, c->count, 1);
        (b->vk.vkCmdWriteTimestamp)(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->times, c->count);
        break;
    case TLI_VK_COMMAND_COPY:
        (b->vk.vkCmdCopyBuffer)(commands, c->from, c->to, c->count, (const VkBufferCopy *)data);
        break;
    case TLI_VK_COMMAND_FILL: (b->vk.vkCmdFillBuffer)(commands, c->to, c->at, c->bytes, c->word); break;
    case TLI_VK_COMMAND_DISPATCH: tli_vk_issue_dispatch(b, commands, c, data); break;
    }
}

// Record a command into the open batch.
static void tli_vk_record_command(tli_vk *b, const tli_vk_command *command, const void *data) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    if (!b->records) tli_vk_note_command(b, batch, command, data);
    tli_vk_issue_command(b, batch->commands, command, data);
}

// The end of the batch failed. What it noted will be recorded again. Of what stands behind commands of others
// only barriers and times: the places that the rest was to write are lost.
static void tli_vk_break_batch(tli_vk *b, tli_vk_batch *batch) {
    int32_t at, kept = batch->known_count, i;
    b->open = TLI_VK_BROKEN;
    if (!batch->has_others) return;
    for (at = kept; at < batch->noted_count;) {
        tli_vk_command command;
        int32_t words;
        memcpy(&command, batch->noted + at, sizeof command);
        words = tli_vk_words_of_command(&command);
        if (command.kind <= TLI_VK_COMMAND_TIME) {
            memmove(batch->noted + kept, batch->noted + at, (size_t)words * 8);
            kept += words;
        }
        at += words;
    }
    batch->noted_count = kept;
    batch->has_others = 0;
    for (i = batch->known_writes; i < batch->write_count; i++)
        if (!tli_vk_add_lost(b, batch->writes[i])) b->lost = 1;  // what is lost is not known any more
}

// End the command buffer of the open batch.
static tl_result tli_vk_end_commands(tli_vk *b, const char *function) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    VkResult result = (b->vk.vkEndCommandBuffer)(batch->commands);
    const char *call = batch->has_others ? "what the caller recorded did not run: vkEndCommandBuffer"
                                         : "vkEndCommandBuffer";
    if (!result) {
        b->open = TLI_VK_ENDED;
        return TL_OK;
    }
    tli_vk_break_batch(b, batch);
    return tli_vk_fail_result(b, function, call, result);
}

// Record what a broken batch holds again.
static tl_result tli_vk_mend_batch(tli_vk *b, const char *function) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    tl_result result = tli_vk_start_commands(b, batch->pool, batch->commands, function);
    int32_t at = 0;
    while (!result && at < batch->noted_count) {
        const uint64_t *noted = batch->noted + at;
        tli_vk_command command;
        memcpy(&command, noted, sizeof command);
        tli_vk_issue_command(b, batch->commands, &command, noted + sizeof command / 8);
        at += tli_vk_words_of_command(&command);
    }
    return result ? result : tli_vk_end_commands(b, function);
}

// -- submits --

// Submit the command buffer of the open batch. It waits for what it reads from links, and signals its serial.
static VkResult tli_vk_submit_batch(tli_vk *b, const tli_vk_batch *batch) {
    static const VkPipelineStageFlags stages[2] = {
        VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
        VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
    };
    VkTimelineSemaphoreSubmitInfo timeline;
    VkSemaphore waits[2];
    uint64_t values[2];
    VkSubmitInfo info;
    VkResult result;
    int32_t i;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &batch->commands;
    for (i = 0; i < b->link_count; i++) {
        if (!batch->waits_for[i]) continue;
        waits[info.waitSemaphoreCount] = b->links[i].timeline;
        values[info.waitSemaphoreCount++] = batch->waits_for[i];
    }
    if (b->timeline) {
        memset(&timeline, 0, sizeof timeline);
        timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
        timeline.waitSemaphoreValueCount = info.waitSemaphoreCount;
        if (info.waitSemaphoreCount) timeline.pWaitSemaphoreValues = values;
        timeline.signalSemaphoreValueCount = info.signalSemaphoreCount = 1;
        timeline.pSignalSemaphoreValues = &b->serial;
        info.pNext = &timeline;
        info.pSignalSemaphores = &b->timeline;
        if (info.waitSemaphoreCount) info.pWaitSemaphores = waits;
        if (info.waitSemaphoreCount) info.pWaitDstStageMask = stages;
    }
    tli_vk_lock(b);
    result = (b->vk.vkQueueSubmit)(b->desc.device.queue, 1, &info, batch->fence);
    tli_vk_unlock(b);
    if (!result) b->calls.submit_count++;
    return result;
}

// Submit the completed batch, after the transfers that it may wait for. What fails is tried again later.
static tl_result tli_vk_hand_over(tli_vk *b, const char *function) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    tl_result code = b->open == TLI_VK_BROKEN ? tli_vk_mend_batch(b, function) : TL_OK;
    VkResult result = VK_SUCCESS;
    if (!code) code = tli_vk_send_transfers(b, function);
    if (code) return code;
    if (!b->timeline) result = (b->vk.vkResetFences)(b->device, 1, &batch->fence);
    if (result) return tli_vk_fail_result(b, function, "vkResetFences", result);
    result = tli_vk_submit_batch(b, batch);
    if (result) return tli_vk_fail_result(b, function, "vkQueueSubmit", result);
    b->serial++;
    b->open = 0;
    b->owes_batch = 0;
    b->has_work = b->op_count > 0;
    b->calls.recorded_bytes = 0;
    return TL_OK;
}

static tl_result tli_vk_make_batch(tli_vk *b, tli_vk_batch *batch, const char *function) {
    VkFenceCreateInfo fence;
    VkResult result;
    tl_result code;
    batch->writes = (tli_vk_place *)tl_add_memory(b->env, TLI_VK_WRITES * sizeof *batch->writes);
    if (!batch->writes) return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the batches");
    batch->write_capacity = TLI_VK_WRITES;
    if (b->records) return TL_OK;
    batch->noted = (uint64_t *)tl_add_memory(b->env, TLI_VK_NOTED * sizeof *batch->noted);
    if (!batch->noted) return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the batches");
    batch->noted_capacity = TLI_VK_NOTED;
    code = tli_vk_make_commands(b, b->desc.device.queue_family, &batch->pool, &batch->commands, function);
    if (code || b->timeline) return code;
    memset(&fence, 0, sizeof fence);
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    result = (b->vk.vkCreateFence)(b->device, &fence, b->callbacks, &batch->fence);
    if (result) batch->fence = VK_NULL_HANDLE;
    return result ? tli_vk_fail_result(b, function, "vkCreateFence", result) : TL_OK;
}

static void tli_vk_free_batch(tli_vk *b, tli_vk_batch *batch) {
    int32_t i;
    for (i = 0; i < batch->set_count; i++)
        (b->vk.vkDestroyDescriptorPool)(b->device, batch->sets[i].pool, b->callbacks);
    if (batch->fence) (b->vk.vkDestroyFence)(b->device, batch->fence, b->callbacks);
    if (batch->pool) (b->vk.vkDestroyCommandPool)(b->device, batch->pool, b->callbacks);
    tl_free_memory(b->env, batch->sets);
    tl_free_memory(b->env, batch->writes);
    tl_free_memory(b->env, batch->noted);
}

// Make the ring of batches, all of which are under way, twice as large. Where that fails it stays as it is.
static void tli_vk_grow_batches(tli_vk *b) {
    int32_t was = b->desc.batch_count, larger = 2 * was, i;
    tl_env *env = b->env;
    tli_vk_batch *batches;
    tl_result result = TL_OK;
    uint64_t serial;
    if (!b->grows || larger > TLI_VK_MOST_BATCHES) return;
    b->env = &b->quiet;     // to wait instead is no error
    batches = (tli_vk_batch *)tl_add_memory(b->env, (size_t)larger * sizeof *batches);
    if (batches) {
        for (serial = b->serial - (uint64_t)was; serial < b->serial; serial++)
            batches[serial % (uint64_t)larger] = *tli_vk_batch_of(b, serial);
        for (i = 0; i < larger && !result; i++)
            if (!batches[i].serial) result = tli_vk_make_batch(b, &batches[i], "");
        for (i = 0; i < larger && result; i++)
            if (!batches[i].serial) tli_vk_free_batch(b, &batches[i]);
    }
    if (batches && !result) {
        tl_free_memory(b->env, b->batches);
        b->batches = batches;
        b->desc.batch_count = larger;
        b->calls.host_alloc_count++;
    } else {
        tl_free_memory(b->env, batches);
    }
    b->env = env;
}

// Have a command buffer that is recording. In record mode only the caller can open one.
static tl_result tli_vk_open(tli_vk *b, const char *function) {
    tli_vk_batch *batch;
    tl_result code;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (b->open >= TLI_VK_ENDED && (code = tli_vk_hand_over(b, function)) != TL_OK) return code;
    if (b->open) return TL_OK;
    if (b->records) return tli_vk_fail(b, TL_NOT_READY, function, "no frame is open");
    if ((code = tli_vk_send_transfers(b, function)) != TL_OK) return code;
    batch = tli_vk_batch_of(b, b->serial);
    if (batch->serial > b->computed && (code = tli_vk_look(b, function)) != TL_OK) return code;
    if (batch->serial > b->computed) tli_vk_grow_batches(b);
    batch = tli_vk_batch_of(b, b->serial);
    if (batch->serial > b->computed && (code = tli_vk_wait_batch(b, batch->serial, 0, function)) != TL_OK)
        return code;
    if ((code = tli_vk_reset_batch(b, batch, function)) != TL_OK) return code;
    code = tli_vk_start_commands(b, batch->pool, batch->commands, function);
    if (code) return code;
    batch->serial = b->serial;
    b->open = TLI_VK_OPEN;
    return TL_OK;
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// Recording: enqueued operations become commands. Accesses are noted as touches; a barrier is recorded only
// where the next access conflicts with a touch, and operations that are independent share one barrier.
// Works on the batch that is open.

// -- barriers --

static void tli_vk_note_foreign(tli_vk *b, tli_vk_chunk *chunk) {
    chunk->seen = b->serial;
    b->foreign_stages |= chunk->stages;
    b->foreign_access |= chunk->access;
}

// Whether this access needs a barrier, given the accesses recorded since the last one.
static int tli_vk_must_follow(tli_vk *b, const tli_vk_place *place, int writes) {
    tli_vk_chunk *chunk = &b->chunks[place->chunk];
    if (chunk->imported && chunk->stages && chunk->seen != b->serial) {
        tli_vk_note_foreign(b, chunk);
        return 1;
    }
    if (b->all_touched) return 1;
    return tli_vk_follows_accesses(&b->touches, place, writes);
}

static void tli_vk_record_barrier(tli_vk *b, VkPipelineStageFlags stages, VkAccessFlags access) {
    const VkPipelineStageFlags own = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    tli_vk_command barrier;
    memset(&barrier, 0, sizeof barrier);
    barrier.kind = TLI_VK_COMMAND_BARRIER;
    barrier.stages[0] = own | b->foreign_stages;
    barrier.stages[1] = own | stages;
    barrier.access[0] = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | b->foreign_access;
    barrier.access[1] = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                        VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | access;
    tli_vk_record_command(b, &barrier, NULL);
    b->calls.barrier_count++;
    tli_vk_forget_accesses(&b->touches);
    b->all_touched = 0;
    b->foreign_stages = 0;
    b->foreign_access = 0;
}

// Note that a batch writes a place, in case it never runs.
static int tli_vk_note_write(tli_vk *b, tli_vk_batch *batch, const tli_vk_place *place) {
    int32_t since = batch->has_others ? batch->known_writes : 0;
    tli_vk_place *last = batch->write_count > since ? &batch->writes[batch->write_count - 1] : NULL;
    if (last && last->chunk == place->chunk && last->at + last->bytes == place->at) {
        last->bytes += place->bytes;
        return 1;
    }
    if (!tli_vk_grow(b, &batch->writes, &batch->write_capacity, batch->write_count, sizeof *batch->writes))
        return 0;
    batch->writes[batch->write_count++] = *place;
    return 1;
}

// Note an access until the next barrier.
static tl_result tli_vk_touch_place(tli_vk *b, const tli_vk_place *place, int writes, const char *function) {
    if (writes && !tli_vk_note_write(b, tli_vk_batch_of(b, b->serial), place))
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the record of writes");
    if (!b->all_touched && !tli_vk_add_access(&b->touches, place, writes)) b->all_touched = 1;
    return TL_OK;
}

// -- sets that are kept: passes bind the same places again --

static void tli_vk_free_kept(tli_vk *b, tli_vk_kept *kept) {
    if (kept->pool) (b->vk.vkDestroyDescriptorPool)(b->device, kept->pool, b->callbacks);
    tl_free_memory(b->env, kept->sets);
    tl_free_memory(b->env, kept->places);
    memset(kept, 0, sizeof *kept);
}

// Make the table and the pool of a kernel. 0 = it goes without.
static int tli_vk_make_kept(tli_vk *b, const tl_vk_kernel *kernel) {
    tli_vk_kept *kept = kernel->kept;
    VkDescriptorPoolSize size;
    VkDescriptorPoolCreateInfo info;
    if (kept->sets) return 1;
    memset(&info, 0, sizeof info);
    size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    size.descriptorCount = TLI_VK_KEPT_SETS * (uint32_t)kernel->buffer_count;
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = TLI_VK_KEPT_SETS;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    kept->sets = (tli_vk_kept_set *)tl_add_memory(b->env, TLI_VK_KEPT_SETS * sizeof *kept->sets);
    kept->places = (tli_vk_place *)tl_add_memory(b->env, size.descriptorCount * sizeof *kept->places);
    if (kept->sets && kept->places &&
        !(b->vk.vkCreateDescriptorPool)(b->device, &info, b->callbacks, &kept->pool)) {
        b->calls.host_alloc_count += 2;
        return 1;
    }
    kept->pool = VK_NULL_HANDLE;
    tli_vk_free_kept(b, kept);
    return 0;
}

static uint64_t tli_vk_hash_places(const tli_vk_place *places, int32_t count) {
    uint64_t hash = 0;
    int32_t i;
    for (i = 0; i < count; i++) {
        hash = tl_mix_u64(hash, (uint64_t)places[i].chunk);
        hash = tl_mix_u64(hash, places[i].at);
        hash = tl_mix_u64(hash, places[i].bytes);
    }
    return hash;
}

static int tli_vk_same_places(const tli_vk_place *a, const tli_vk_place *b, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++)
        if (a[i].chunk != b[i].chunk || a[i].at != b[i].at || a[i].bytes != b[i].bytes) return 0;
    return 1;
}

// A kept set for the places; *is_bound: 1 = it binds them. One that does not may be written now. 0 = none.
static VkDescriptorSet tli_vk_find_kept(tli_vk *b, const tl_vk_kernel *kernel, const tli_vk_place *places,
                                        int *is_bound) {
    uint64_t hash = tli_vk_hash_places(places, kernel->buffer_count);
    tli_vk_kept *kept = kernel->kept;
    int32_t way, index, chosen = -1;
    VkDescriptorSetAllocateInfo info;
    tli_vk_kept_set *found;
    *is_bound = 0;
    if (!tli_vk_make_kept(b, kernel)) return VK_NULL_HANDLE;
    for (way = 0; way < TLI_VK_KEPT_WAYS && !*is_bound; way++) {
        index = (int32_t)((hash + (uint64_t)way) % TLI_VK_KEPT_SETS);
        found = &kept->sets[index];
        if (found->set && found->hash == hash && found->destroyed_count == b->destroyed_count &&
            tli_vk_same_places(kept->places + (size_t)index * (size_t)kernel->buffer_count, places,
                               kernel->buffer_count)) {
            *is_bound = 1;
            chosen = index;
        } else if (chosen < 0 && (!found->set || found->last_use <= b->passed)) {
            chosen = index;
        }
    }
    if (chosen < 0) return VK_NULL_HANDLE;
    found = &kept->sets[chosen];
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = kept->pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &kernel->set_layout;
    if (!found->set && (b->vk.vkAllocateDescriptorSets)(b->device, &info, &found->set)) {
        found->set = VK_NULL_HANDLE;
        return VK_NULL_HANDLE;
    }
    found->hash = hash;
    found->last_use = b->serial;
    found->destroyed_count = b->destroyed_count;
    memcpy(kept->places + (size_t)chosen * (size_t)kernel->buffer_count, places,
           (size_t)kernel->buffer_count * sizeof *places);
    return found->set;
}

// -- recording --

static tl_result tli_vk_add_sets(tli_vk *b, tli_vk_batch *batch, const char *function) {
    VkDescriptorPoolSize size;
    VkDescriptorPoolCreateInfo info;
    tli_vk_sets sets;
    VkResult result;
    if (!tli_vk_grow(b, &batch->sets, &batch->set_capacity, batch->set_count, sizeof *batch->sets))
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the table of descriptor pools");
    memset(&sets, 0, sizeof sets);
    memset(&info, 0, sizeof info);
    size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    size.descriptorCount = TLI_VK_SET_BUFFERS;
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = TLI_VK_SETS;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    result = (b->vk.vkCreateDescriptorPool)(b->device, &info, b->callbacks, &sets.pool);
    if (result) return tli_vk_fail_result(b, function, "vkCreateDescriptorPool", result);
    sets.sets_left = TLI_VK_SETS;
    sets.buffers_left = TLI_VK_SET_BUFFERS;
    batch->sets[batch->set_count++] = sets;
    return TL_OK;
}

static tl_result tli_vk_take_set(tli_vk *b, const tl_vk_kernel *kernel, const char *function,
                                 VkDescriptorSet *set) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    VkDescriptorSetAllocateInfo info;
    tli_vk_sets *sets;
    VkResult result;
    if (batch->set_at < batch->set_count) {
        sets = &batch->sets[batch->set_at];
        if (!sets->sets_left || sets->buffers_left < (uint32_t)kernel->buffer_count) batch->set_at++;
    }
    if (batch->set_at == batch->set_count) {
        tl_result code = tli_vk_add_sets(b, batch, function);
        if (code) return code;
    }
    sets = &batch->sets[batch->set_at];
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = sets->pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &kernel->set_layout;
    result = (b->vk.vkAllocateDescriptorSets)(b->device, &info, set);
    if (result) return tli_vk_fail_result(b, function, "vkAllocateDescriptorSets", result);
    sets->sets_left--;
    sets->buffers_left -= (uint32_t)kernel->buffer_count;
    return TL_OK;
}

static void tli_vk_write_set(tli_vk *b, const tl_vk_kernel *kernel, const tli_vk_place *places,
                             VkDescriptorSet set) {
    VkDescriptorBufferInfo buffers[TLI_VK_BINDINGS];
    VkWriteDescriptorSet writes[TLI_VK_BINDINGS];
    int32_t i;
    memset(writes, 0, sizeof writes);
    for (i = 0; i < kernel->buffer_count; i++) {
        buffers[i].buffer = b->chunks[places[i].chunk].buffer;
        buffers[i].offset = places[i].at;
        buffers[i].range = tli_vk_align(places[i].bytes, 4);
        writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        writes[i].dstSet = set;
        writes[i].dstBinding = (uint32_t)i;
        writes[i].descriptorCount = 1;
        writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        writes[i].pBufferInfo = &buffers[i];
    }
    (b->vk.vkUpdateDescriptorSets)(b->device, (uint32_t)kernel->buffer_count, writes, 0, NULL);
}

// A set that binds the places: a kept one, or one of the batch.
static tl_result tli_vk_bind_places(tli_vk *b, const tl_vk_kernel *kernel, const tli_vk_place *places,
                                    const char *function, VkDescriptorSet *set) {
    int is_bound = 0;
    tl_result result = TL_OK;
    *set = VK_NULL_HANDLE;
    if (!kernel->buffer_count) return TL_OK;
    *set = tli_vk_find_kept(b, kernel, places, &is_bound);
    if (!*set) result = tli_vk_take_set(b, kernel, function, set);
    if (!result && !is_bound) tli_vk_write_set(b, kernel, places, *set);
    return result;
}

// Bind places and dispatch. Barriers are the business of the caller of this function.
static tl_result tli_vk_dispatch(tli_vk *b, const tl_vk_kernel *kernel, const tli_vk_place *places,
                                 const void *push, const uint32_t groups[3], const char *function) {
    tli_vk_command command;
    VkDescriptorSet set = VK_NULL_HANDLE;
    tl_result result = tli_vk_open(b, function);
    if (!result) result = tli_vk_bind_places(b, kernel, places, function, &set);
    if (result) return result;
    memset(&command, 0, sizeof command);
    command.kind = TLI_VK_COMMAND_DISPATCH;
    command.kernel = kernel;
    command.set = set;
    memcpy(command.groups, groups, sizeof command.groups);
    command.data_bytes = kernel->push_bytes;
    tli_vk_record_command(b, &command, push);
    b->has_work = 1;
    return TL_OK;
}

// The invocations that the shader of an operation needs for `bytes` bytes of its f32 operand.
static uint64_t tli_vk_invocations(const tli_vk_op *op, uint64_t bytes) {
    uint64_t words = (bytes + 3) / 4;
    switch (op->shader) {
    case TLI_VK_SHADER_COPY: return (words / 4 + 3) / 4;
    case TLI_VK_SHADER_TO_F16:
    case TLI_VK_SHADER_FROM_F16:
    case TLI_VK_SHADER_TO_BF16:
    case TLI_VK_SHADER_FROM_BF16: return (words + 1) / 2;
    case TLI_VK_SHADER_TO_Q8: return (words + 31) / 32;
    case TLI_VK_SHADER_QUANTIZE:
    case TLI_VK_SHADER_DEQUANTIZE: return (words * op->word + 3) / 4;
    case TLI_VK_SHADER_COPY_UINT:
    case TLI_VK_SHADER_FILL:
    case TLI_VK_SHADER_FROM_Q8:
    case TLI_VK_SHADER_MIN_MAX:
    case TLI_VK_SHADER_ADD:
    case TLI_VK_SHADER_CHECKSUM:
    case TLI_VK_SHADER_MIN_MAX_CHANNELS:
    case TLI_VK_SHADER_COUNT: break;
    }
    return words;
}

// The bytes of the other operand that belong to `bytes` bytes of the f32 operand.
static uint64_t tli_vk_other_bytes(const tli_vk_op *op, uint64_t bytes) {
    switch (op->shader) {
    case TLI_VK_SHADER_TO_F16:
    case TLI_VK_SHADER_FROM_F16: return tl_find_codec_bytes(TL_CODEC_F16, bytes);
    case TLI_VK_SHADER_TO_BF16:
    case TLI_VK_SHADER_FROM_BF16: return tl_find_codec_bytes(TL_CODEC_BF16, bytes);
    case TLI_VK_SHADER_TO_Q8:
    case TLI_VK_SHADER_FROM_Q8: return tl_find_codec_bytes(TL_CODEC_Q8, bytes);
    case TLI_VK_SHADER_QUANTIZE:
    case TLI_VK_SHADER_DEQUANTIZE: return bytes / 4 * op->word;
    case TLI_VK_SHADER_COPY:
    case TLI_VK_SHADER_COPY_UINT:
    case TLI_VK_SHADER_FILL:
    case TLI_VK_SHADER_MIN_MAX:
    case TLI_VK_SHADER_ADD:
    case TLI_VK_SHADER_CHECKSUM:
    case TLI_VK_SHADER_MIN_MAX_CHANNELS:
    case TLI_VK_SHADER_COUNT: break;
    }
    return bytes;
}

static int tli_vk_expands(tli_vk_shader shader) {
    return shader == TLI_VK_SHADER_FROM_F16 || shader == TLI_VK_SHADER_FROM_BF16 ||
           shader == TLI_VK_SHADER_FROM_Q8 || shader == TLI_VK_SHADER_DEQUANTIZE;
}

static int tli_vk_quantizes(tli_vk_shader shader) {
    return shader == TLI_VK_SHADER_QUANTIZE || shader == TLI_VK_SHADER_DEQUANTIZE;
}

static int tli_vk_knows_channels(tli_vk_shader shader) {
    return tli_vk_quantizes(shader) || shader == TLI_VK_SHADER_MIN_MAX_CHANNELS;
}

static int tli_vk_reduces(tli_vk_shader shader) {
    return shader == TLI_VK_SHADER_MIN_MAX || shader == TLI_VK_SHADER_CHECKSUM ||
           shader == TLI_VK_SHADER_MIN_MAX_CHANNELS;
}

// How many slices min_max_channels makes of each channel. A slice is the task of one group, or of one
// invocation where inner_count is less than a group has invocations. There should be about as many tasks as
// min_max has groups or invocations, and each should read several elements.
static uint32_t tli_vk_find_slices(const tli_vk *b, const tli_vk_op *op, uint32_t count) {
    uint64_t size = b->desc.workgroup_size, tasks = (count + 8 * size - 1) / (8 * size);
    uint64_t of_period = op->channel_count;
    if (op->inner_count < size) {
        tasks *= size;
        of_period *= op->inner_count;
    }
    return tasks < of_period ? 1 : (uint32_t)(tasks / of_period);
}

// Record one dispatch of a built-in shader whose operands fit a descriptor each.
static tl_result tli_vk_record_piece(tli_vk *b, const tli_vk_op *op, uint64_t bytes, const char *function) {
    uint64_t groups = (tli_vk_invocations(op, bytes) + b->desc.workgroup_size - 1) / b->desc.workgroup_size;
    uint64_t across;
    uint32_t push[6], size[3];
    tli_vk_place places[3];
    tl_result result;
    places[0] = op->to;
    places[1] = op->from;
    places[2] = op->quantizations;
    // Each group of a reduction ends in atomics: take fewer groups and several words an invocation.
    if (tli_vk_reduces(op->shader)) groups = tli_vk_least((groups + 7) / 8, 4096);
    across = tli_vk_least(groups, b->device_limits.maxComputeWorkGroupCount[0]);
    push[0] = (uint32_t)((bytes + 3) / 4);
    if (op->shader == TLI_VK_SHADER_COPY) push[0] = (uint32_t)(bytes / 16);
    push[1] = op->word;
    push[2] = (uint32_t)(bytes % 4);
    if (op->shader == TLI_VK_SHADER_MIN_MAX_CHANNELS) push[1] = tli_vk_find_slices(b, op, push[0]);
    push[3] = op->channel_count;
    push[4] = op->inner_count;
    push[5] = 0;
    if (op->channel_count) push[5] = (uint32_t)(op->first % ((uint64_t)op->channel_count * op->inner_count));
    size[0] = (uint32_t)across;
    size[1] = (uint32_t)((groups + across - 1) / across);
    size[2] = 1;
    if (size[1] > b->device_limits.maxComputeWorkGroupCount[1])
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "range: needs more groups than the device takes");
    result = tli_vk_dispatch(b, b->shaders[op->shader], places, push, size, function);
    if (!result) b->calls.dispatch_count++;
    return result;
}

// The part of an operation that begins at `done` and has `bytes` bytes, both of its f32 operand. A reduction
// keeps its target; a checksum needs the index of its first word.
static tli_vk_op tli_vk_part_of(const tli_vk_op *op, uint64_t done, uint64_t bytes) {
    int converts = op->kind == TLI_VK_OP_SHADER, expands = converts && tli_vk_expands(op->shader);
    uint64_t other_done = converts ? tli_vk_other_bytes(op, done) : done;
    uint64_t other_bytes = converts ? tli_vk_other_bytes(op, bytes) : bytes;
    tli_vk_op part = *op;
    part.from.at += expands ? other_done : done;
    part.from.bytes = expands ? other_bytes : bytes;
    part.first += done / 4;
    if (converts && op->shader == TLI_VK_SHADER_CHECKSUM) part.word += (uint32_t)(done / 4);
    if (converts && tli_vk_reduces(op->shader)) return part;
    part.to.at += expands ? done : other_done;
    part.to.bytes = expands ? bytes : other_bytes;
    return part;
}

// The bytes of the f32 operand of a whole operation.
static uint64_t tli_vk_whole_bytes(const tli_vk_op *op) {
    int shades = op->kind == TLI_VK_OP_SHADER;
    int fills = op->kind == TLI_VK_OP_FILL || (shades && op->shader == TLI_VK_SHADER_FILL);
    return fills || (shades && tli_vk_expands(op->shader)) ? op->to.bytes : op->from.bytes;
}

// Record a shader over whole places, in parts that fit a descriptor. On error *op is the part that is not
// recorded yet, because a sum must not be added twice.
static tl_result tli_vk_record_shader(tli_vk *b, tli_vk_op *op, const char *function) {
    const tli_vk_op all = *op;
    uint64_t whole = tli_vk_whole_bytes(op), done, bytes;
    tl_result result;
    for (done = 0; done < whole; done += bytes) {
        tli_vk_op part;
        bytes = tli_vk_least(whole - done, b->range_bytes);
        part = tli_vk_part_of(&all, done, bytes);
        result = tli_vk_record_piece(b, &part, bytes, function);
        if (result) return result;
        *op = tli_vk_part_of(&all, done + bytes, whole - done - bytes);
    }
    return TL_OK;
}

// Whether a copy or fill is done by a shader: large ones inside the device tier, where copy_path says so.
static int tli_vk_goes_by_shader(const tli_vk *b, const tli_vk_op *op) {
    return op->kind != TLI_VK_OP_SHADER && b->desc.copy_path == TL_VK_COPY_PATH_SHADER &&
           op->to.bytes >= TLI_VK_SHADER_COPY_BYTES && b->chunks[op->to.chunk].tier == TL_TIER_DEVICE &&
           (op->kind == TLI_VK_OP_FILL || b->chunks[op->from.chunk].tier == TL_TIER_DEVICE);
}

// Copy or fill by shader. A copy moves 64 bytes an invocation up to the last aligned offset, then single words.
static tl_result tli_vk_record_move(tli_vk *b, const tli_vk_op *op, const char *function) {
    uint64_t bulk = op->to.bytes / b->alignment * b->alignment;
    tli_vk_op part = *op;
    tl_result result;
    part.kind = TLI_VK_OP_SHADER;
    part.shader = TLI_VK_SHADER_FILL;
    if (op->kind == TLI_VK_OP_FILL) return tli_vk_record_shader(b, &part, function);
    part.shader = TLI_VK_SHADER_COPY;
    part.to.bytes = part.from.bytes = bulk;
    result = tli_vk_record_shader(b, &part, function);
    part.shader = TLI_VK_SHADER_COPY_UINT;
    part.to.at = op->to.at + bulk;
    part.from.at = op->from.at + bulk;
    part.to.bytes = part.from.bytes = op->to.bytes - bulk;
    return result ? result : tli_vk_record_shader(b, &part, function);
}

// Record the copies at the start of ops[count] that have both buffers in common, as one command; *taken = how
// many.
static void tli_vk_record_copies(tli_vk *b, const tli_vk_op *ops, int32_t count, int32_t *taken) {
    VkBufferCopy regions[TLI_VK_REGION_CAPACITY];
    tli_vk_command command;
    int32_t n = 0;
    while (n < count && n < TLI_VK_REGION_CAPACITY && ops[n].kind == TLI_VK_OP_COPY &&
           ops[n].to.chunk == ops[0].to.chunk && ops[n].from.chunk == ops[0].from.chunk &&
           !tli_vk_goes_by_shader(b, &ops[n])) {
        regions[n].srcOffset = ops[n].from.at;
        regions[n].dstOffset = ops[n].to.at;
        regions[n].size = ops[n].to.bytes;
        n++;
    }
    memset(&command, 0, sizeof command);
    command.kind = TLI_VK_COMMAND_COPY;
    command.from = b->chunks[ops[0].from.chunk].buffer;
    command.to = b->chunks[ops[0].to.chunk].buffer;
    command.count = (uint32_t)n;
    command.data_bytes = (uint64_t)n * sizeof *regions;
    tli_vk_record_command(b, &command, regions);
    b->calls.copy_count++;
    *taken = n;
}

static void tli_vk_record_fill(tli_vk *b, const tli_vk_op *op) {
    tli_vk_command command;
    memset(&command, 0, sizeof command);
    command.kind = TLI_VK_COMMAND_FILL;
    command.to = b->chunks[op->to.chunk].buffer;
    command.at = op->to.at;
    command.bytes = tli_vk_align(op->to.bytes, 4);
    command.word = op->word;
    tli_vk_record_command(b, &command, NULL);
    b->calls.fill_count++;
}

// Record the first of `count` independent operations, or several by one command; *taken = how many.
static tl_result tli_vk_record_ops(tli_vk *b, tli_vk_op *ops, int32_t count, const char *function,
                                   int32_t *taken) {
    tl_result result = TL_OK;
    *taken = 1;
    if (tli_vk_goes_by_shader(b, ops)) {
        result = tli_vk_record_move(b, ops, function);
    } else if (ops->kind == TLI_VK_OP_COPY) {
        tli_vk_record_copies(b, ops, count, taken);
    } else if (ops->kind == TLI_VK_OP_FILL) {
        tli_vk_record_fill(b, ops);
    } else {
        result = tli_vk_record_shader(b, ops, function);
    }
    if (!result) b->has_work = 1;
    return result;
}

static int tli_vk_op_must_follow(tli_vk *b, const tli_vk_op *op) {
    int follows = tli_vk_must_follow(b, &op->to, 1);
    if (op->kind != TLI_VK_OP_FILL && tli_vk_must_follow(b, &op->from, 0)) follows = 1;
    return follows;
}

// The end of the operations from `at` on that are independent of each other and so share one barrier.
static int32_t tli_vk_group_end(tli_vk *b, int32_t at) {
    int32_t end;
    tli_vk_forget_accesses(&b->group);
    for (end = at; end < b->op_count; end++) {
        const tli_vk_op *op = &b->ops[end];
        int reads = op->kind != TLI_VK_OP_FILL;
        if (tli_vk_follows_accesses(&b->group, &op->to, 1)) break;
        if (reads && tli_vk_follows_accesses(&b->group, &op->from, 0)) break;
        (void)tli_vk_add_access(&b->group, &op->to, 1);     // there is room for all operations
        if (reads) (void)tli_vk_add_access(&b->group, &op->from, 0);
    }
    return end;
}

// Note the accesses of b->ops[from .. end), which are those of the group.
static tl_result tli_vk_touch_group(tli_vk *b, int32_t from, int32_t end, const char *function) {
    int is_first = !b->touches.reads.count && !b->touches.writes.count && !b->all_touched;
    int32_t i;
    for (i = from; i < end; i++) {
        const tli_vk_op *op = &b->ops[i];
        if (!tli_vk_note_write(b, tli_vk_batch_of(b, b->serial), &op->to))
            return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the record of writes");
        if (is_first || b->all_touched) continue;
        if (!tli_vk_add_access(&b->touches, &op->to, 1) ||
            (op->kind != TLI_VK_OP_FILL && !tli_vk_add_access(&b->touches, &op->from, 0))) b->all_touched = 1;
    }
    if (!is_first) return TL_OK;
    tli_vk_copy_index(&b->group.reads, &b->touches.reads);
    tli_vk_copy_index(&b->group.writes, &b->touches.writes);
    return TL_OK;
}

static void tli_vk_remove_ops(tli_vk *b, int32_t count) {
    int32_t i;
    b->op_count -= count;
    for (i = 0; i < b->op_count; i++) b->ops[i] = b->ops[i + count];
}

// Record all enqueued operations: one group of independent ones after the other, each behind a barrier where
// it needs one. On error those that are not recorded stay enqueued.
static tl_result tli_vk_flush(tli_vk *b, const char *function) {
    int32_t done = 0;
    tl_result result = b->op_count ? tli_vk_open(b, function) : TL_OK;
    while (!result && done < b->op_count) {
        int32_t end = tli_vk_group_end(b, done), i, follows = 0, taken;
        for (i = done; i < end; i++) follows |= tli_vk_op_must_follow(b, &b->ops[i]);
        if (follows) tli_vk_record_barrier(b, 0, 0);
        result = tli_vk_touch_group(b, done, end, function);
        // A move that fails half way is later recorded again from its start, which copies the same bytes.
        while (!result && done < end) {
            result = tli_vk_record_ops(b, &b->ops[done], end - done, function, &taken);
            if (!result) done += taken;
        }
    }
    tli_vk_remove_ops(b, done);
    return result;
}

// Record what is enqueued, then a barrier: the host, and the caller through imported buffers, will see it.
static tl_result tli_vk_complete(tli_vk *b, const char *function) {
    VkPipelineStageFlags stages = VK_PIPELINE_STAGE_HOST_BIT;
    VkAccessFlags access = VK_ACCESS_HOST_READ_BIT;
    tl_result result = tli_vk_flush(b, function);
    int32_t i;
    if (result || !b->open) return result;
    for (i = 0; i < b->chunk_count; i++) {
        const tli_vk_chunk *chunk = &b->chunks[i];
        if (!chunk->alive || !chunk->imported || chunk->last_use != b->serial) continue;
        stages |= chunk->stages;
        access |= chunk->access;
    }
    tli_vk_record_barrier(b, stages, access);
    return TL_OK;
}

static tl_result tli_vk_submit_work(tli_vk *b, const char *function) {
    tl_result result;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (b->open >= TLI_VK_ENDED) {
        result = tli_vk_hand_over(b, function);
        if (result) return result;
    }
    if (!b->has_work) return TL_OK;
    if (b->owes_batch && (result = tli_vk_open(b, function)) != TL_OK) return result;
    result = tli_vk_complete(b, function);
    if (result || !b->open) return result;
    result = tli_vk_end_commands(b, function);
    if (result) return result;
    return tli_vk_hand_over(b, function);
}

// Wait until the batches up to a serial have finished; submit the open one if it is among them.
static tl_result tli_vk_reach(tli_vk *b, uint64_t serial, const char *function) {
    tl_result result;
    if (serial <= b->passed) return TL_OK;
    if ((result = tli_vk_look(b, function)) != TL_OK || serial <= b->passed) return result;
    if (b->records) return tli_vk_fail(b, TL_NOT_READY, function, "the frame was not retired yet");
    if (serial == b->serial) result = tli_vk_submit_work(b, function);
    if (!result && serial == b->serial) return TL_OK;  // there was no work
    return result ? result : tli_vk_wait_batch(b, serial, 1, function);
}

// -- enqueueing --

// A block of a caller's buffer was written: reads that are pending through its other blocks are outdated.
static void tli_vk_outdate_reads(tli_vk *b, const tli_vk_block *block) {
    const tli_vk_place whole = tli_vk_whole_place(block);
    int32_t i;
    for (i = 0; i < b->mapping_count; i++)
        if (b->mappings[i].is_pending && tli_vk_meet(&b->mappings[i].place, &whole))
            b->mappings[i].writes = UINT64_MAX;
}

static void tli_vk_note_use(tli_vk *b, uint64_t handle, int writes) {  // handle 0 = staging, or nothing
    tli_vk_block *block;
    if (!handle) return;
    block = &b->blocks[(handle & 0xFFFFFFFFu) - 1];
    block->last_use = b->chunks[block->chunk].last_use = b->serial;
    if (!writes) return;
    block->last_write = b->serial;
    block->writes++;
    if (b->chunks[block->chunk].imported) tli_vk_outdate_reads(b, block);
}

// -- copies between the tiers --

static int tli_vk_is_transfer(const tli_vk *b, const tli_vk_op *op) {
    return b->link_count && op->kind == TLI_VK_OP_COPY && !b->chunks[op->to.chunk].imported &&
           !b->chunks[op->from.chunk].imported &&
           b->chunks[op->to.chunk].tier != b->chunks[op->from.chunk].tier;
}

// Values of the links' timelines that must be reached; 0 = none.
typedef struct tli_vk_needs { uint64_t values[2]; } tli_vk_needs;

// Add what an access of a place must wait for: transfers that write there, and where it writes itself all.
// Reads that have finished are forgotten on the way; what was written becomes visible only by a wait.
static void tli_vk_find_needs(tli_vk *b, const tli_vk_place *place, int writes, tli_vk_needs *needs) {
    int32_t i;
    for (i = b->away_count - 1; i >= 0; i--) {
        const tli_vk_away *away = &b->away[i];
        if (!away->writes && away->value <= b->links[away->link].passed) b->away[i] = b->away[--b->away_count];
        else if ((writes || away->writes) && away->value > needs->values[away->link] &&
                 tli_vk_meet(&away->place, place))
            needs->values[away->link] = away->value;
    }
}

// Note a place of a transfer. There is room for it. Who waits for one that writes waits for those that it
// followed.
static void tli_vk_add_away(tli_vk *b, const tli_vk_place *place, const tli_vk_transfer *transfer, int writes) {
    tli_vk_away *away;
    int32_t i;
    for (i = b->away_count - 1; i >= 0 && writes; i--) {
        const tli_vk_place *old = &b->away[i].place;
        uint64_t end = place->at + place->bytes;
        if (old->chunk == place->chunk && old->at >= place->at && old->at + old->bytes <= end)
            b->away[i] = b->away[--b->away_count];
    }
    away = &b->away[b->away_count++];
    away->place = *place;
    away->value = transfer->value;
    away->link = transfer->link;
    away->writes = writes;
}

// Record the commands of a transfer. follows: 1 = behind those before it on the same link.
static tl_result tli_vk_record_transfer(tli_vk *b, const tli_vk_transfer *transfer, const tli_vk_op *op,
                                        int follows, const char *function) {
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier barrier;
    VkBufferCopy region;
    VkResult result;
    tl_result code = tli_vk_start_commands(b, transfer->pool, transfer->commands, function);
    if (code) return code;
    memset(&barrier, 0, sizeof barrier);
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    if (follows)
        (b->vk.vkCmdPipelineBarrier)(transfer->commands, stage, stage, 0, 1, &barrier, 0, NULL, 0, NULL);
    region.srcOffset = op->from.at;
    region.dstOffset = op->to.at;
    region.size = op->to.bytes;
    (b->vk.vkCmdCopyBuffer)(transfer->commands, b->chunks[op->from.chunk].buffer,
                          b->chunks[op->to.chunk].buffer, 1, &region);
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    (b->vk.vkCmdPipelineBarrier)(transfer->commands, stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL,
                               0, NULL);
    b->calls.barrier_count += follows ? 2 : 1;
    result = (b->vk.vkEndCommandBuffer)(transfer->commands);
    return result ? tli_vk_fail_result(b, function, "vkEndCommandBuffer", result) : TL_OK;
}

// Copy between the tiers on a link, after all work that was enqueued so far. That is submitted, so that the
// copy can begin; the copy itself is handed over before the next commands are recorded.
static tl_result tli_vk_transfer_by_link(tli_vk *b, const tli_vk_op *op, uint64_t to, uint64_t from,
                                         const char *function) {
    int32_t link = b->link_count > 1 && b->chunks[op->to.chunk].tier == TL_TIER_DEVICE, i;
    tli_vk_needs needs = { { 0, 0 } };
    tli_vk_transfer *transfer = NULL;
    tl_result result = b->open || b->op_count ? tli_vk_submit_work(b, function) : TL_OK;
    if (!result) result = tli_vk_take_transfer(b, function, &transfer);
    for (i = 0; i < 2 && !result; i++)
        if (!tli_vk_grow(b, &b->away, &b->away_capacity, b->away_count + i, sizeof *b->away))
            result = tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the copy");
    if (result) return result;
    transfer->link = link;
    transfer->value = b->links[link].made + 1;
    transfer->after = b->serial - 1;
    tli_vk_find_needs(b, &op->to, 1, &needs);
    tli_vk_find_needs(b, &op->from, 0, &needs);
    transfer->other_value = needs.values[1 - link];
    transfer->serial = b->serial;
    result = tli_vk_record_transfer(b, transfer, op, needs.values[link] != 0, function);
    if (result) return result;
    b->links[link].made++;
    b->transfer_made++;
    b->calls.copy_count++;
    tli_vk_add_away(b, &op->to, transfer, 1);
    tli_vk_add_away(b, &op->from, transfer, 0);
    b->has_work = b->owes_batch = 1;
    if (b->lost_count) tli_vk_forget_lost(b, &op->to);
    b->chunks[op->to.chunk].last_use = b->chunks[op->from.chunk].last_use = b->serial;
    tli_vk_note_use(b, to, 1);
    tli_vk_note_use(b, from, 0);
    return TL_OK;
}

// Let the batch that takes the next commands wait for the links, on the device. Work recorded so far is
// submitted first, so that it does not wait.
static tl_result tli_vk_wait_for_links(tli_vk *b, const tli_vk_needs *needs, const char *function) {
    const uint64_t *waits = b->open == TLI_VK_OPEN ? tli_vk_batch_of(b, b->serial)->waits_for : NULL;
    uint64_t *waits_for;
    tl_result result = TL_OK;
    int32_t i;
    if (waits && waits[0] >= needs->values[0] && waits[1] >= needs->values[1]) return TL_OK;
    if (!needs->values[0] && !needs->values[1]) return TL_OK;
    if (b->open || b->op_count) result = tli_vk_submit_work(b, function);
    if (!result) result = tli_vk_open(b, function);
    if (result) return result;
    b->has_work = 1;
    waits_for = tli_vk_batch_of(b, b->serial)->waits_for;
    for (i = 0; i < 2; i++) waits_for[i] = needs->values[i];
    for (i = b->away_count - 1; i >= 0; i--)    // all work of the queue follows those from here on
        if (b->away[i].value <= waits_for[b->away[i].link]) b->away[i] = b->away[--b->away_count];
    return TL_OK;
}

// -- built-in shaders, each made by the first operation that needs it --

typedef struct tli_vk_words { const uint32_t *words; size_t count; } tli_vk_words;

static tli_vk_words tli_vk_words_of(int shader);  // [5]

static tl_result tli_vk_make_shader(tli_vk *b, tli_vk_shader shader) {
    tl_vk_kernel_desc desc;
    tl_backend backend;
    if (b->shaders[shader]) return TL_OK;
    memset(&backend, 0, sizeof backend);
    memset(&desc, 0, sizeof desc);
    backend.self = b;
    desc.words = tli_vk_words_of((int)shader).words;
    desc.word_count = tli_vk_words_of((int)shader).count;
    desc.buffer_count = shader == TLI_VK_SHADER_FILL ? 1 : tli_vk_quantizes(shader) ? 3 : 2;
    desc.push_bytes = tli_vk_knows_channels(shader) ? 24 : 12;
    desc.constants = &b->desc.workgroup_size;
    desc.constant_count = 1;
    return tl_vk_init_kernel(&backend, &desc, &b->shaders[shader]);
}

// Have the shaders by which an operation will be recorded.
static tl_result tli_vk_make_shaders_of(tli_vk *b, const tli_vk_op *op) {
    tl_result result;
    if (op->kind == TLI_VK_OP_SHADER) return tli_vk_make_shader(b, op->shader);
    if (!tli_vk_goes_by_shader(b, op)) return TL_OK;
    if (op->kind == TLI_VK_OP_FILL) return tli_vk_make_shader(b, TLI_VK_SHADER_FILL);
    result = tli_vk_make_shader(b, TLI_VK_SHADER_COPY);
    return result ? result : tli_vk_make_shader(b, TLI_VK_SHADER_COPY_UINT);
}

// Enqueue an operation; to and from are handles of the blocks, 0 = staging.
static tl_result tli_vk_enqueue(tli_vk *b, const tli_vk_op *op, uint64_t to, uint64_t from,
                                const char *function) {
    uint64_t bytes = op->kind == TLI_VK_OP_FILL ? op->to.bytes : op->from.bytes;
    tli_vk_needs needs = { { 0, 0 } };
    tl_result result;
    if (op->kind != TLI_VK_OP_FILL && b->lost_count && tli_vk_is_lost(b, &op->from))
        return tli_vk_fail_stale(b, function, "range");
    if ((result = tli_vk_make_shaders_of(b, op)) != TL_OK) return result;
    if (b->open >= TLI_VK_ENDED && (result = tli_vk_hand_over(b, function)) != TL_OK) return result;
    if (to && from && tli_vk_is_transfer(b, op)) return tli_vk_transfer_by_link(b, op, to, from, function);
    if (b->away_count) tli_vk_find_needs(b, &op->to, 1, &needs);
    if (b->away_count && op->kind != TLI_VK_OP_FILL) tli_vk_find_needs(b, &op->from, 0, &needs);
    result = tli_vk_wait_for_links(b, &needs, function);
    if (result) return result;
    if (!b->records && b->calls.recorded_bytes && b->calls.recorded_bytes + bytes > b->desc.submit_bytes &&
        (result = tli_vk_submit_work(b, function)) != TL_OK)
        return result;
    if (b->op_count == TLI_VK_OP_CAPACITY && (result = tli_vk_flush(b, function)) != TL_OK) return result;
    b->ops[b->op_count++] = *op;
    b->has_work = 1;
    b->calls.recorded_bytes += bytes;
    if (b->lost_count) tli_vk_forget_lost(b, &op->to);
    b->chunks[op->to.chunk].last_use = b->serial;
    if (op->kind != TLI_VK_OP_FILL) b->chunks[op->from.chunk].last_use = b->serial;
    tli_vk_note_use(b, to, 1);
    tli_vk_note_use(b, from, 0);
    return TL_OK;
}

// Enqueue a move. With a queue of its own the backend cuts it into pieces of submit_bytes, so that no submit
// runs for seconds.
static tl_result tli_vk_enqueue_move(tli_vk *b, const tli_vk_op *op, uint64_t to, uint64_t from,
                                     const char *function) {
    uint64_t whole = tli_vk_whole_bytes(op), piece = b->records ? UINT64_MAX : b->desc.submit_bytes, done;
    tl_result result = TL_OK;
    if (whole <= piece) return tli_vk_enqueue(b, op, to, from, function);
    for (done = 0; done < whole && !result; done += piece) {
        tli_vk_op part = tli_vk_part_of(op, done, tli_vk_least(piece, whole - done));
        result = tli_vk_enqueue(b, &part, to, from, function);
    }
    return result;
}

static int tli_vk_overlap(const tl_range *a, const tl_range *b) {
    return a->bytes && b->bytes && a->block == b->block && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

// Check the ranges of a copy, conversion, sum or reduction and enqueue it.
//
//   op         all but its places is set
//   expected   bytes that `to` must have
static tl_result tli_vk_move_by(tli_vk *b, tli_vk_op *op, const tl_range *to, const tl_range *from,
                                uint64_t expected, const char *function) {
    tl_result result = TL_OK;
    tli_vk_block *target, *source;
    if (to->bytes != expected)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: bytes: do not fit those of from");
    if (!from->bytes) return TL_OK;
    target = tli_vk_find_range(b, to, function, &result);
    source = target ? tli_vk_find_range(b, from, function, &result) : NULL;
    if (!source) return result;
    op->to = tli_vk_place_of(target, to);
    op->from = tli_vk_place_of(source, from);
    if (tli_vk_overlap(to, from) || tli_vk_meet(&op->to, &op->from))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: overlaps from");
    return tli_vk_enqueue_move(b, op, to->block, from->block, function);
}

static tl_result tli_vk_move(tli_vk *b, tli_vk_op_kind kind, tli_vk_shader shader, const tl_range *to,
                             const tl_range *from, uint64_t expected, const char *function) {
    tli_vk_op op;
    memset(&op, 0, sizeof op);
    op.kind = kind;
    op.shader = shader;
    return tli_vk_move_by(b, &op, to, from, expected, function);
}

static tl_result tli_vk_copy(void *self, tl_range to, tl_range from) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = b->lost ? tli_vk_fail_lost(b, "copy") : TL_OK;
    if (!result) result = tli_vk_move(b, TLI_VK_OP_COPY, TLI_VK_SHADER_COPY, &to, &from, from.bytes, "copy");
    if (result) return result;
    b->counters.copy_count++;
    b->counters.copied_bytes += from.bytes;
    return TL_OK;
}

static tl_result tli_vk_convert(tli_vk *b, tl_codec codec, tli_vk_shader first, int expands, tl_range to,
                                tl_range from, const char *function) {
    uint64_t plain = expands ? to.bytes : from.bytes, packed = tl_find_codec_bytes(codec, plain);
    tli_vk_shader shader;
    tl_result result;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if ((int)codec <= TL_CODEC_NONE || (int)codec >= TL_CODEC_COUNT)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "codec: none or unknown");
    if (expands && from.bytes != packed)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: bytes: do not fit those of from");
    shader = (tli_vk_shader)((int)first + 2 * ((int)codec - (int)TL_CODEC_F16));
    result = tli_vk_move(b, TLI_VK_OP_SHADER, shader, &to, &from, expands ? to.bytes : packed, function);
    if (result) return result;
    b->counters.convert_count++;
    b->counters.copied_bytes += from.bytes;
    return TL_OK;
}

static tl_result tli_vk_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    return tli_vk_convert((tli_vk *)self, codec, TLI_VK_SHADER_TO_F16, 0, to, from, "compress");
}

static tl_result tli_vk_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    return tli_vk_convert((tli_vk *)self, codec, TLI_VK_SHADER_FROM_F16, 1, to, from, "expand");
}

static tl_result tli_vk_fill(void *self, tl_range to, uint32_t word) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_block *block;
    tli_vk_op op;
    if (b->lost) return tli_vk_fail_lost(b, "fill");
    if (!to.bytes) {
        b->counters.fill_count++;
        return TL_OK;
    }
    block = tli_vk_find_range(b, &to, "fill", &result);
    if (!block) return result;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_FILL;
    op.to = tli_vk_place_of(block, &to);
    op.word = word;
    result = tli_vk_enqueue(b, &op, to.block, 0, "fill");
    if (!result) b->counters.fill_count++;
    return result;
}

// Check the ranges of a kernel and wait for their transfers, on the device; *bytes = their sum.
static tl_result tli_vk_check_accesses(tli_vk *b, const tl_access *accesses, int32_t count,
                                       const char *function, uint64_t *bytes) {
    tli_vk_needs needs = { { 0, 0 } };
    tl_result result = TL_OK;
    int32_t i;
    *bytes = 0;
    for (i = 0; i < count; i++) {
        tli_vk_block *block;
        tli_vk_place place;
        if (!accesses[i].range.bytes) continue;
        block = tli_vk_find_range(b, &accesses[i].range, function, &result);
        if (!block) return result;
        place = tli_vk_place_of(block, &accesses[i].range);
        if (b->lost_count && tli_vk_is_lost(b, &place))
            return tli_vk_fail_stale(b, function, "range");
        *bytes += accesses[i].range.bytes;
        if (b->away_count) tli_vk_find_needs(b, &place, accesses[i].writes, &needs);
    }
    return tli_vk_wait_for_links(b, &needs, function);
}

static void tli_vk_promise_access(tli_vk *b, const tl_access *access) {
    tli_vk_promise *promise = &b->promises[b->promise_count++ % TLI_VK_TOUCH_CAPACITY];
    promise->handle = access->range.block;
    promise->place = tli_vk_place_of(&b->blocks[(promise->handle & 0xFFFFFFFFu) - 1], &access->range);
    promise->writes = access->writes;
}

// Touch again what was announced and is not recorded yet: a barrier removes all touches, but the commands of
// the caller come after it.
static tl_result tli_vk_touch_open_promises(tli_vk *b, const char *function) {
    uint64_t open = tli_vk_least(b->promise_count - b->kept_count, TLI_VK_TOUCH_CAPACITY), i;
    tl_result result = TL_OK;
    for (i = b->promise_count - open; i < b->promise_count && !result; i++) {
        const tli_vk_promise *promise = &b->promises[i % TLI_VK_TOUCH_CAPACITY];
        result = tli_vk_touch_place(b, &promise->place, promise->writes, function);
    }
    return result;
}

// Order, in the frame that is now open, the accesses that were announced before it was.
static tl_result tli_vk_order_early(tli_vk *b, const char *function) {
    uint64_t count = tli_vk_least(b->early_count, TLI_VK_TOUCH_CAPACITY), i;
    tl_result result = count ? tli_vk_flush(b, function) : TL_OK;
    if (result || !count) return result;
    tli_vk_record_barrier(b, 0, 0);
    for (i = b->promise_count - count; i < b->promise_count && !result; i++) {
        const tli_vk_promise *promise = &b->promises[i % TLI_VK_TOUCH_CAPACITY];
        if (!tli_vk_is_block(b, promise->handle)) continue;  // freed since
        result = tli_vk_touch_place(b, &promise->place, promise->writes, function);
        tli_vk_note_use(b, promise->handle, promise->writes);
    }
    if (!result) b->early_count = 0;
    return result;
}

// Touch a place that a kernel accesses now. It was touched when it was announced, but a barrier for other work
// may have come since.
static tl_result tli_vk_touch_promised(tli_vk *b, const tli_vk_place *place, uint64_t handle,
                                       const char *function) {
    uint64_t oldest = b->promise_count - tli_vk_least(b->promise_count, TLI_VK_TOUCH_CAPACITY), i;
    int writes = 1;  // not announced: it may write
    for (i = b->promise_count; i > oldest; i--) {
        const tli_vk_promise *promise = &b->promises[(i - 1) % TLI_VK_TOUCH_CAPACITY];
        if (!tli_vk_meet(&promise->place, place)) continue;
        writes = promise->writes;
        break;
    }
    tli_vk_note_use(b, handle, writes);
    return tli_vk_touch_place(b, place, writes, function);
}

static tl_result tli_vk_order_stages(tli_vk *b, const tl_access *accesses, int32_t count,
                                     VkPipelineStageFlags stages, VkAccessFlags access, const char *function) {
    uint64_t bytes;
    int32_t i, follows = stages != 0;
    tl_result result;
    if (b->lost) return tli_vk_fail_lost(b, function);
    result = tli_vk_check_accesses(b, accesses, count, function, &bytes);
    if (result) return result;
    for (i = 0; i < count; i++) {
        if (!accesses[i].range.bytes) continue;
        tli_vk_promise_access(b, &accesses[i]);
        b->early_count += b->records && !b->open;
    }
    if (b->records && !b->open) return TL_OK;  // nothing is recorded before the next frame opens
    if (!b->records && b->calls.recorded_bytes && b->calls.recorded_bytes + bytes > b->desc.submit_bytes)
        result = tli_vk_submit_work(b, function);
    if (!result) result = tli_vk_open(b, function);
    if (!result) result = tli_vk_flush(b, function);
    if (result) return result;
    for (i = 0; i < count; i++) {
        tli_vk_place place;
        if (!accesses[i].range.bytes) continue;
        place = tli_vk_place_of(&b->blocks[(accesses[i].range.block & 0xFFFFFFFFu) - 1], &accesses[i].range);
        follows |= tli_vk_must_follow(b, &place, accesses[i].writes);
    }
    if (follows) tli_vk_record_barrier(b, stages, access);
    b->foreign_stages |= stages;  // the next barrier waits for what the caller records now
    b->foreign_access |= access;
    for (i = 0; i < count && !result; i++) {
        tli_vk_place place;
        if (!accesses[i].range.bytes) continue;
        place = tli_vk_place_of(&b->blocks[(accesses[i].range.block & 0xFFFFFFFFu) - 1], &accesses[i].range);
        result = tli_vk_touch_place(b, &place, accesses[i].writes, function);
        tli_vk_note_use(b, accesses[i].range.block, accesses[i].writes);
    }
    b->calls.recorded_bytes += bytes;
    b->has_work = 1;
    return result;
}

static tl_result tli_vk_order(void *self, const tl_access *accesses, int32_t access_count) {
    return tli_vk_order_stages((tli_vk *)self, accesses, access_count, 0, 0, "order");
}

TLI_VK_IMPL tl_result tl_vk_order(const tl_backend *backend, const tl_access *accesses, int32_t access_count,
                                  VkPipelineStageFlags stages, VkAccessFlags access) {
    return tli_vk_order_stages(tli_vk_self(backend), accesses, access_count, stages, access, "tl_vk_order");
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// What the host sees: tickets, mapped ranges and the staging behind them, limits, counters; compaction; and
// making and freeing a backend.

// -- tickets --

static tl_result tli_vk_submit(void *self, tl_ticket *ticket) {
    tli_vk *b = (tli_vk *)self;
    tl_result result;
    ticket->value = 0;
    if (b->lost) return tli_vk_fail_lost(b, "submit");
    b->counters.submit_count++;
    if (b->records) {  // the work is in the frame that is open, or will be in the next
        ticket->value = b->has_work || b->open ? b->serial : b->serial - 1;
        return TL_OK;
    }
    result = tli_vk_submit_work(b, "submit");
    if (!result) ticket->value = b->serial - 1;
    return result;
}

static tl_result tli_vk_poll(void *self, tl_ticket ticket) {
    tli_vk *b = (tli_vk *)self;
    tl_result result;
    b->counters.poll_count++;
    if (ticket.value > b->serial || (!b->records && ticket.value == b->serial))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "poll", "ticket: was never submitted");
    if (b->lost) return tli_vk_fail_lost(b, "poll");
    if (ticket.value <= b->passed) return TL_OK;
    result = tli_vk_look(b, "poll");
    return result ? result : ticket.value <= b->passed ? TL_OK : TL_NOT_READY;
}

static tl_result tli_vk_wait(void *self, tl_ticket ticket) {
    tli_vk *b = (tli_vk *)self;
    b->counters.wait_count++;
    if (ticket.value > b->serial || (!b->records && ticket.value == b->serial))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "wait", "ticket: was never submitted");
    if (b->lost) return tli_vk_fail_lost(b, "wait");
    return tli_vk_reach(b, ticket.value, "wait");
}

// -- staging: for ranges that the host cannot address, or may not write yet --

// Cancel a read whose bytes lie ready and that nobody fetched in the last batch_count frames; 0 = none.
static int tli_vk_drop_stale_read(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->mapping_count; i++) {
        const tli_vk_mapping *m = &b->mappings[i];
        if (!m->is_pending || m->serial > b->passed) continue;
        if (b->serial <= m->asked + (uint64_t)b->desc.batch_count) continue;
        tli_vk_cancel_read(b, i, 0);
        return 1;
    }
    return 0;
}

// Free a slot. TL_NOT_READY: all are used by frames that were not retired, or by reads not fetched yet.
static tl_result tli_vk_make_room(tli_vk *b, const char *function) {
    uint64_t serial = UINT64_MAX;
    tl_result result;
    int32_t i, reads = 0;
    if (tli_vk_drop_stale_read(b)) return TL_OK;
    for (i = 0; i < b->slot_end; i++)
        if (b->all_slots[i].is_used && b->all_slots[i].piece)
            serial = tli_vk_least(serial, b->all_slots[i].serial);
    for (i = 0; i < b->mapping_count; i++) reads += b->mappings[i].is_pending;
    if (serial == UINT64_MAX && !reads)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "staging: is full of ranges that are mapped");
    result = serial == UINT64_MAX ? TL_OK : tli_vk_reach(b, serial, function);
    if (result || serial <= b->passed) return result;
    if (b->records || serial == UINT64_MAX) return tli_vk_fail(b, TL_NOT_READY, function, "staging: is in use");
    for (i = 0; i < b->slot_end; i++)   // nothing was left to submit: the work of these was never enqueued
        if (b->all_slots[i].is_used && b->all_slots[i].serial == serial) tli_vk_free_slot(b, &b->all_slots[i]);
    return TL_OK;
}

// Have a chunk for a slot that the staging is too small for: one that is kept, or a new one in the place of
// those that are kept and too small.
static tl_result tli_vk_find_large(tli_vk *b, uint64_t bytes, const char *function, int32_t *index) {
    int32_t i;
    for (i = 0; i < b->chunk_count; i++) {
        tli_vk_chunk *chunk = &b->chunks[i];
        if (!tli_vk_is_empty(chunk) || chunk->kind != TLI_VK_CHUNK_STAGING) continue;
        *index = i;
        if (chunk->bytes >= bytes) return TL_OK;
        tli_vk_destroy_chunk(b, chunk);
    }
    return tli_vk_add_chunk(b, TL_TIER_HOST, TLI_VK_CHUNK_STAGING, bytes, function, index);
}

// Find the memory of a slot.
static tl_result tli_vk_place_slot(tli_vk *b, uint64_t needed, const char *function, tli_vk_slot *slot,
                                   size_t *at) {
    tl_result result = TL_OK;
    *at = 0;
    slot->piece = 0;
    slot->chunk = b->staging;
    if (needed > b->staging_size) {
        result = tli_vk_find_large(b, needed, function, &slot->chunk);
        if (!result) b->chunks[slot->chunk].block_count = 1;
        return result;
    }
    while (!result && tl_add_block(b->staging_heap, (size_t)needed, at, &slot->piece))
        result = tli_vk_make_room(b, function);
    return result;
}

// Take a piece of host-visible memory for a range; tli_vk_give_staging says when it is free again.
static tl_result tli_vk_take_staging(tli_vk *b, uint64_t bytes, const char *function, tli_vk_place *place,
                                     int32_t *number) {
    tli_vk_slot slot;
    tl_result result;
    size_t at;
    memset(&slot, 0, sizeof slot);
    result = tli_vk_place_slot(b, tli_vk_align(bytes, b->alignment), function, &slot, &at);
    if (result) return result;
    slot.serial = UINT64_MAX;
    slot.is_used = 1;
    if (!b->free_slot && tli_vk_grow(b, &b->all_slots, &b->slot_capacity, b->slot_end, sizeof *b->all_slots)) {
        memset(&b->all_slots[b->slot_end], 0, sizeof *b->all_slots);
        b->free_slot = ++b->slot_end;
    }
    if (!b->free_slot) {
        if (slot.piece) tl_free_block(b->staging_heap, slot.piece);
        else b->chunks[slot.chunk].block_count = 0;
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the table of staging");
    }
    place->chunk = slot.chunk;
    place->at = at;
    place->bytes = bytes;
    if (b->lost_count) tli_vk_forget_lost(b, place);  // a dropped frame may have been to write it
    *number = b->free_slot - 1;
    b->free_slot = b->all_slots[*number].next_free;
    b->all_slots[*number] = slot;
    b->slot_count++;
    b->calls.staged_bytes += bytes;
    return TL_OK;
}

// Enqueue a copy between a range and its staging.
static tl_result tli_vk_stage(tli_vk *b, const tli_vk_mapping *m, int to_range, const char *function) {
    tli_vk_op op;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_COPY;
    op.to = to_range ? m->place : m->staged;
    op.from = to_range ? m->staged : m->place;
    return tli_vk_enqueue(b, &op, to_range ? m->range.block : 0, to_range ? 0 : m->range.block, function);
}

static void *tli_vk_address(const tli_vk *b, const tli_vk_place *place) {
    return b->chunks[place->chunk].mapped + place->at;
}

// -- mapping --

static int32_t tli_vk_find_mapping(const tli_vk *b, const tl_range *range, const void *host, int pending) {
    int32_t i;
    for (i = 0; i < b->mapping_count; i++) {
        const tli_vk_mapping *m = &b->mappings[i];
        if (m->is_pending == pending && (pending || m->host == host) && m->range.block == range->block &&
            m->range.offset == range->offset && m->range.bytes == range->bytes)
            return i;
    }
    return -1;
}

static void tli_vk_remove_mapping(tli_vk *b, int32_t i) { b->mappings[i] = b->mappings[--b->mapping_count]; }

// -- ranges larger than the staging, with a queue: memory of the env, moved through the staging in pieces --

static void *tli_vk_take_bounce(tli_vk *b, uint64_t bytes) {
    int is_kept = !b->bounce_is_used;
    void *bounce;
    if (bytes > SIZE_MAX / 4) return NULL;
    if (is_kept && b->bounce_bytes < bytes) {
        tl_free_memory(b->env, b->bounce);
        b->bounce = NULL;
        b->bounce_bytes = 0;
    }
    bounce = is_kept && b->bounce ? b->bounce : tl_add_memory(b->env, (size_t)bytes);
    if (!bounce || !is_kept) return bounce;
    if (!b->bounce) b->bounce_bytes = bytes;
    b->bounce = bounce;
    b->bounce_is_used = 1;
    return bounce;
}

static void tli_vk_give_bounce(tli_vk *b, void *bounce) {
    if (bounce == b->bounce) b->bounce_is_used = 0;
    else tl_free_memory(b->env, bounce);
}

// Move one piece between a range and memory of the host. Reading waits for it.
static tl_result tli_vk_move_piece(tli_vk *b, tli_vk_mapping *piece, int to_range, const char *function) {
    uint64_t serial;
    VkResult moved = VK_SUCCESS;
    tl_result result = tli_vk_take_staging(b, piece->place.bytes, function, &piece->staged, &piece->slot);
    if (result) return result;
    if (to_range) {
        memcpy(tli_vk_address(b, &piece->staged), piece->host, (size_t)piece->place.bytes);
        moved = tli_vk_flush_host(b, &piece->staged);
    }
    if (!moved) result = tli_vk_stage(b, piece, to_range, function);
    serial = b->serial;
    if (!moved && !result && !to_range) result = tli_vk_reach(b, serial, function);
    if (!moved && !result && !to_range) {
        moved = tli_vk_invalidate_host(b, &piece->staged);
        if (!moved) memcpy(piece->host, tli_vk_address(b, &piece->staged), (size_t)piece->place.bytes);
    }
    tli_vk_give_staging(b, piece->slot, moved ? 0 : serial);
    return moved ? tli_vk_fail_result(b, function, "memory of the staging", moved) : result;
}

static tl_result tli_vk_move_pieces(tli_vk *b, const tli_vk_mapping *m, int to_range, const char *function) {
    uint64_t most = b->staging_size / 2 / b->alignment * b->alignment, done = 0;
    tl_result result = TL_OK;
    if (!most) most = b->staging_size;
    while (done < m->range.bytes && !result) {
        tli_vk_mapping piece = *m;
        piece.place.at += done;
        piece.place.bytes = tli_vk_least(m->range.bytes - done, most);
        piece.host = (char *)m->host + done;
        result = tli_vk_move_piece(b, &piece, to_range, function);
        done += piece.place.bytes;
    }
    return result;
}

static tl_result tli_vk_map_bounced(tli_vk *b, tli_vk_mapping *m) {
    tl_result result = TL_OK;
    m->host = tli_vk_take_bounce(b, m->range.bytes);
    m->is_bounced = 1;
    m->staged.chunk = b->staging;
    if (!m->host)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "map", "range: no memory of the host for its bytes");
    if (m->mode != TL_MAP_WRITE) result = tli_vk_move_pieces(b, m, 0, "map");
    if (result) tli_vk_give_bounce(b, m->host);
    return result;
}

// Record mode: enqueue a read and return TL_NOT_READY until the frame that does it was retired; then return
// TL_OK, and mappings[*index] holds the bytes.
static tl_result tli_vk_read_later(tli_vk *b, const tli_vk_mapping *wanted, uint64_t writes, int32_t *index) {
    int32_t i = tli_vk_find_mapping(b, &wanted->range, NULL, 1);
    tli_vk_mapping m = *wanted;
    tl_result result;
    if (i >= 0 && b->mappings[i].writes != writes) {  // the bytes were written since
        tli_vk_cancel_read(b, i, b->mappings[i].serial);
        i = -1;
    }
    if (i >= 0) {
        b->mappings[i].asked = b->serial;
        if (b->mappings[i].serial > b->passed)
            return tli_vk_fail(b, TL_NOT_READY, "map", "the frame that reads the range was not retired yet");
        b->mappings[i].mode = wanted->mode;
        *index = i;
        return TL_OK;
    }
    result = tli_vk_take_staging(b, m.range.bytes, "map", &m.staged, &m.slot);
    if (result) return result;
    result = tli_vk_stage(b, &m, 0, "map");
    if (result) {
        tli_vk_give_staging(b, m.slot, 0);
        return result;
    }
    m.is_pending = 1;
    m.serial = m.asked = b->serial;
    m.writes = writes;
    b->mappings[b->mapping_count++] = m;
    return tli_vk_fail(b, TL_NOT_READY, "map", "the range is read by the frame that is open, or the next");
}

// With a queue: copy a range into staging and wait for the copy.
static tl_result tli_vk_read_now(tli_vk *b, tli_vk_mapping *m) {
    uint64_t serial;
    tl_result result = tli_vk_take_staging(b, m->range.bytes, "map", &m->staged, &m->slot);
    if (result) return result;
    result = tli_vk_stage(b, m, 0, "map");
    serial = b->serial;
    if (!result) result = tli_vk_reach(b, serial, "map");
    if (result) tli_vk_give_staging(b, m->slot, serial);
    return result;
}

// Map a range in place. TL_NOT_READY, without an error text: it is in use, so the write goes through staging.
static tl_result tli_vk_map_direct(tli_vk *b, const tli_vk_block *block, tli_vk_mapping *m) {
    uint64_t serial = m->mode == TL_MAP_READ ? block->last_write : block->last_use;
    VkResult result;
    tl_result code = TL_OK;
    if (serial > b->passed) code = b->lost ? tli_vk_fail_lost(b, "map") : tli_vk_look(b, "map");
    if (code) return code;
    if (serial > b->passed) {
        if (m->mode == TL_MAP_WRITE) return TL_NOT_READY;
        code = tli_vk_reach(b, serial, "map");
        if (code) return code;
    }
    m->staged.chunk = TLI_VK_CHUNK_NONE;
    m->host = tli_vk_address(b, &m->place);
    if (m->mode == TL_MAP_WRITE) return TL_OK;
    result = tli_vk_invalidate_host(b, &m->place);
    return result ? tli_vk_fail_result(b, "map", "vkInvalidateMappedMemoryRanges", result) : TL_OK;
}

static tl_result tli_vk_map_staged(tli_vk *b, const tli_vk_block *block, tli_vk_mapping *m, int32_t *ready) {
    VkResult invalidated;
    tl_result result;
    *ready = -1;
    if (m->range.bytes > b->staging_size && !b->records) return tli_vk_map_bounced(b, m);
    if (m->mode == TL_MAP_WRITE) result = tli_vk_take_staging(b, m->range.bytes, "map", &m->staged, &m->slot);
    else if (b->records) result = tli_vk_read_later(b, m, block->writes, ready);
    else result = tli_vk_read_now(b, m);
    if (result) return result;
    if (*ready >= 0) *m = b->mappings[*ready];
    m->host = tli_vk_address(b, &m->staged);
    if (m->mode == TL_MAP_WRITE) return TL_OK;
    invalidated = tli_vk_invalidate_host(b, &m->staged);
    if (!invalidated) return TL_OK;
    if (*ready < 0) tli_vk_give_staging(b, m->slot, b->serial);
    return tli_vk_fail_result(b, "map", "vkInvalidateMappedMemoryRanges", invalidated);
}

static tl_result tli_vk_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    int32_t ready = -1;
    tli_vk_block *block;
    tli_vk_mapping m;
    *host = NULL;
    b->counters.map_count++;
    if (!range.bytes) return b->lost ? tli_vk_fail_lost(b, "map") : TL_OK;
    block = tli_vk_find_range(b, &range, "map", &result);
    if (!block) return result;
    if (b->lost && (mode != TL_MAP_READ || block->tier != TL_TIER_HOST)) return tli_vk_fail_lost(b, "map");
    if (!tli_vk_grow(b, &b->mappings, &b->mapping_capacity, b->mapping_count, sizeof *b->mappings))
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "map", "no memory for the table of mappings");
    memset(&m, 0, sizeof m);
    m.range = range;
    m.mode = mode;
    m.place = tli_vk_place_of(block, &range);
    if (mode != TL_MAP_WRITE && b->lost_count && tli_vk_is_lost(b, &m.place))
        return tli_vk_fail_stale(b, "map", "range");
    result = b->chunks[block->chunk].mapped ? tli_vk_map_direct(b, block, &m) : TL_NOT_READY;
    if (result == TL_NOT_READY && (mode == TL_MAP_WRITE || !b->chunks[block->chunk].mapped))
        result = tli_vk_map_staged(b, block, &m, &ready);
    if (result) return result;
    m.is_pending = 0;
    if (ready >= 0) b->mappings[ready] = m;
    else b->mappings[b->mapping_count++] = m;
    block->map_count++;
    *host = m.host;
    return TL_OK;
}

// Make what the host wrote part of the range: flush it, or enqueue the copy from staging.
static tl_result tli_vk_unmap_written(tli_vk *b, tli_vk_mapping *m) {
    int staged = m->staged.chunk != TLI_VK_CHUNK_NONE;
    VkResult flushed;
    tl_result result;
    if (m->is_bounced) return tli_vk_move_pieces(b, m, 1, "unmap");
    flushed = tli_vk_flush_host(b, staged ? &m->staged : &m->place);
    if (flushed) return tli_vk_fail_result(b, "unmap", "vkFlushMappedMemoryRanges", flushed);
    if (!staged) {
        if (b->lost_count) tli_vk_forget_lost(b, &m->place);
        return TL_OK;
    }
    result = tli_vk_stage(b, m, 1, "unmap");
    if (!result) tli_vk_give_staging(b, m->slot, b->serial);
    return result;
}

static tl_result tli_vk_unmap(void *self, tl_range range, tl_map_mode mode, void *host) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_block *block;
    tli_vk_mapping *m;
    int32_t i;
    if (!range.bytes) return TL_OK;
    block = tli_vk_find_range(b, &range, "unmap", &result);
    if (!block) return result;
    i = tli_vk_find_mapping(b, &range, host, !host);
    if (!host) {
        if (i >= 0) tli_vk_cancel_read(b, i, b->mappings[i].serial);
        return TL_OK;
    }
    if (i < 0)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "unmap", "host: is not what map gave for this range");
    m = &b->mappings[i];
    if (mode != m->mode)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "unmap", "mode: not that of the map");
    if (mode != TL_MAP_READ) result = b->lost ? tli_vk_fail_lost(b, "unmap") : tli_vk_unmap_written(b, m);
    if (m->is_bounced) tli_vk_give_bounce(b, m->host);
    else if (m->staged.chunk != TLI_VK_CHUNK_NONE && (mode == TL_MAP_READ || result))
        tli_vk_give_staging(b, m->slot, 0);
    tli_vk_remove_mapping(b, i);  // on error, too: callers do not unmap a second time
    block->map_count--;
    return result;
}

// -- measuring --

static tl_result tli_vk_check(void *self) {
    tli_vk *b = (tli_vk *)self;
    return b->lost ? tli_vk_fail_lost(b, "check") : TL_OK;
}

static uint64_t tli_vk_now_ns(void *self) {
    const tli_vk *b = (const tli_vk *)self;
    return b->desc.now_ns ? (b->desc.now_ns)(b->desc.user) : 0;
}

// The bytes of a chunk that the tier can take without asking the driver, or after a wait.
static uint64_t tli_vk_free_bytes(const tli_vk *b, const tli_vk_chunk *chunk, tl_tier tier) {
    size_t in_chunk = 0, largest = 0;
    if (!chunk->alive || chunk->imported || chunk->tier != (uint8_t)tier) return 0;
    if (chunk->kind == TLI_VK_CHUNK_ARENA) return chunk->block_count || b->records ? 0 : chunk->memory_bytes;
    if (chunk->heap) tl_measure_heap(chunk->heap, &in_chunk, &largest);
    return in_chunk;
}

static void tli_vk_limits(void *self, tl_backend_limits *limits) {
    const tli_vk *b = (const tli_vk *)self;
    int32_t i;
    int tier;
    memset(limits, 0, sizeof *limits);
    limits->alignment_bytes = b->alignment;
    limits->granularity_bytes = b->granularity;
    limits->range_bytes = limits->block_bytes = b->most_allocation_bytes;
    limits->binding_bytes = b->device_limits.maxStorageBufferRange;
    limits->tiers_share_memory = tli_vk_heap_of(b, TL_TIER_DEVICE) == tli_vk_heap_of(b, TL_TIER_HOST);
    limits->codecs = 1u << TL_CODEC_F16 | 1u << TL_CODEC_BF16 | 1u << TL_CODEC_Q8;
    limits->in_order = 1;
    limits->env = b->env;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        uint32_t heap = tli_vk_heap_of(b, (tl_tier)tier);
        uint64_t live = b->counters.live_bytes[tier], left = b->desc.capacity_bytes[tier] - live;
        uint64_t free_bytes = tli_vk_heap_budget(b, heap), piece, largest;
        for (i = 0; i < b->chunk_count; i++) free_bytes += tli_vk_free_bytes(b, &b->chunks[i], (tl_tier)tier);
        if (b->desc.exceed_budget) free_bytes = b->memory.memoryHeaps[heap].size;
        limits->block_overhead_bytes[tier] = b->overhead;
        piece = b->memory.memoryHeaps[heap].size;
        largest = b->desc.capacity_bytes[tier];
        limits->capacity_bytes[tier] = tli_vk_least(piece, largest);
        limits->budget_bytes[tier] = tli_vk_least(free_bytes, left);
    }
}

static void tli_vk_counters(void *self, tl_backend_counters *counters) {
    *counters = ((const tli_vk *)self)->counters;
}

static void tli_vk_reset_peaks(void *self) {
    tl_backend_counters *counters = &((tli_vk *)self)->counters;
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) counters->peak_bytes[tier] = counters->live_bytes[tier];
    counters->arena_bytes = 0;
}

TLI_VK_IMPL void tl_vk_measure(const tl_backend *backend, tl_vk_counters *counters) {
    const tli_vk *b = tli_vk_self(backend);
    int32_t i;
    *counters = b->calls;
    counters->largest_free_bytes = 0;
    for (i = 0; i < b->chunk_count; i++) {
        size_t free_bytes = 0, largest = 0;
        if (!b->chunks[i].alive || !b->chunks[i].heap || b->chunks[i].tier != TL_TIER_DEVICE) continue;
        tl_measure_heap(b->chunks[i].heap, &free_bytes, &largest);
        if (largest > counters->largest_free_bytes) counters->largest_free_bytes = largest;
    }
}

// -- for the caller's own commands --

TLI_VK_IMPL tl_result tl_vk_find_buffer(const tl_backend *backend, tl_range range,
                                        VkDescriptorBufferInfo *info) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result = TL_OK;
    const tli_vk_block *block;
    memset(info, 0, sizeof *info);
    if (!range.bytes) return TL_OK;
    block = tli_vk_find_range(b, &range, "tl_vk_find_buffer", &result);
    if (!block) return result;
    info->buffer = b->chunks[block->chunk].buffer;
    info->offset = block->at + range.offset;
    info->range = tli_vk_align(range.bytes, 4);
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_find_commands(const tl_backend *backend, VkCommandBuffer *commands) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result;
    *commands = VK_NULL_HANDLE;
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_find_commands");
    result = tli_vk_open(b, "tl_vk_find_commands");
    if (!result) result = tli_vk_order_early(b, "tl_vk_find_commands");
    if (!result) result = tli_vk_flush(b, "tl_vk_find_commands");
    if (result) return result;
    // Before the touches: the writes that were announced are those of the caller's commands.
    tli_vk_note_others(tli_vk_batch_of(b, b->serial));
    result = tli_vk_touch_open_promises(b, "tl_vk_find_commands");
    if (result) return result;
    b->kept_count = b->promise_count;
    b->has_work = 1;
    *commands = tli_vk_batch_of(b, b->serial)->commands;
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_drop_unused(const tl_backend *backend, uint64_t keep_bytes) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tli_vk_look(b, "tl_vk_drop_unused");
    if (!result) (void)tli_vk_drop_chunks(b, keep_bytes);
    return result;
}

// -- compaction --

static uint64_t tli_vk_used_bytes(const tli_vk_chunk *chunk) {
    size_t free_bytes = 0, largest = 0;
    tl_measure_heap(chunk->heap, &free_bytes, &largest);
    return chunk->bytes - free_bytes;
}

// The chunk with the fewest bytes in use; TLI_VK_CHUNK_NONE where no other chunk could take its blocks.
static int32_t tli_vk_emptiest_chunk(const tli_vk *b) {
    int32_t best = TLI_VK_CHUNK_NONE, candidates = 0, i;
    uint64_t least = UINT64_MAX;
    for (i = 0; i < b->chunk_count; i++) {
        const tli_vk_chunk *chunk = &b->chunks[i];
        if (!chunk->alive || !chunk->heap || chunk->tier != TL_TIER_DEVICE || !chunk->block_count) continue;
        candidates++;
        if (tli_vk_used_bytes(chunk) >= least) continue;
        least = tli_vk_used_bytes(chunk);
        best = i;
    }
    return candidates > 1 ? best : TLI_VK_CHUNK_NONE;
}

// Move a block to a piece of another chunk; *moved is 0, with TL_OK, where no other has room.
static tl_result tli_vk_move_block(tli_vk *b, uint64_t handle, tli_vk_block *block, int *moved) {
    tli_vk_chunk *old = &b->chunks[block->chunk];
    int32_t chunk, piece;
    size_t at;
    tli_vk_op op;
    tl_result result = tli_vk_find_piece(b, TL_TIER_DEVICE, block->reserved_bytes, "tl_vk_compact",
                                         block->chunk, &chunk, &at, &piece);
    *moved = !result;
    if (result == TL_ERROR_NO_MEMORY) return TL_OK;
    if (result) return result;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_COPY;
    op.from = tli_vk_whole_place(block);
    op.to = op.from;
    op.to.chunk = chunk;
    op.to.at = at;
    result = tli_vk_enqueue(b, &op, handle, 0, "tl_vk_compact");
    if (result) {
        tl_free_block(b->chunks[chunk].heap, piece);
        return result;
    }
    old->last_use = b->serial;
    tl_free_block(old->heap, block->piece);
    old->block_count--;
    b->chunks[chunk].block_count++;
    b->chunks[chunk].last_use = b->serial;
    block->chunk = chunk;
    block->piece = piece;
    block->at = at;
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_compact(const tl_backend *backend, uint64_t most_bytes, uint64_t *moved_bytes) {
    tli_vk *b = tli_vk_self(backend);
    int32_t from, i;
    *moved_bytes = 0;
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_compact");
    for (i = 0; i < b->mapping_count; i++)
        if (!b->mappings[i].is_pending)
            return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_compact", "backend: a range is mapped");
    from = tli_vk_emptiest_chunk(b);
    for (i = 0; i < b->block_count && from != TLI_VK_CHUNK_NONE; i++) {
        tli_vk_block *block = &b->blocks[i];
        const tli_vk_place whole = tli_vk_whole_place(block);
        tl_result result;
        int moved;
        if (b->lost_count && tli_vk_is_lost(b, &whole)) continue;
        if (!block->alive || block->chunk != from || block->reserved_bytes > most_bytes - *moved_bytes)
            continue;
        result = tli_vk_move_block(b, (uint64_t)block->generation << 32 | (uint64_t)(i + 1), block, &moved);
        if (result) return result;
        if (moved) *moved_bytes += block->reserved_bytes;  // otherwise a smaller block may fit
    }
    return TL_OK;
}

// -- init and free --

static void tli_vk_fill_backend(tl_backend *backend, tli_vk *b) {
    backend->self = b;
    backend->add_block = tli_vk_add_block;
    backend->free_block = tli_vk_free_block;
    backend->claim = tli_vk_claim;
    backend->release = tli_vk_release;
    backend->copy = tli_vk_copy;
    backend->compress = tli_vk_compress;
    backend->expand = tli_vk_expand;
    backend->fill = tli_vk_fill;
    backend->order = tli_vk_order;
    backend->submit = tli_vk_submit;
    backend->poll = tli_vk_poll;
    backend->wait = tli_vk_wait;
    backend->map = tli_vk_map;
    backend->unmap = tli_vk_unmap;
    backend->check = tli_vk_check;
    backend->now_ns = tli_vk_now_ns;
    backend->limits = tli_vk_limits;
    backend->counters = tli_vk_counters;
    backend->reset_peaks = tli_vk_reset_peaks;
    backend->open_account = tli_vk_open_account;
    backend->close_account = tli_vk_close_account;
    backend->claim_on = tli_vk_claim_on;
    backend->release_on = tli_vk_release_on;
    backend->measure_account = tli_vk_measure_account;
    backend->add_arena = tli_vk_add_arena;
    backend->shorten = tli_vk_shorten;
}

static const char *tli_vk_explain_desc(const tl_vk_backend_desc *desc) {
    const tl_vk_device *device = &desc->device;
    if (!device->get_instance_proc) return "device: get_instance_proc: missing";
    if (!device->instance || !device->physical || !device->device)
        return "device: instance, physical and device: all three are needed";
    if (!device->lock_queue != !device->unlock_queue)
        return "device: lock_queue, unlock_queue: set both or neither";
    if (device->transfer_queue && (!device->queue || !device->timeline_enabled))
        return "device: transfer_queue: needs timeline_enabled and a queue";
    if (device->upload_queue && (!device->transfer_queue || device->transfer_queue == device->queue))
        return "device: upload_queue: needs a transfer_queue beside the queue";
    if (device->upload_queue && device->upload_queue == device->queue)
        return "device: upload_queue: must be another than the queue";
    if (!desc->hooks.allocate != !desc->hooks.release) return "hooks: set both or neither";
    if (desc->batch_count < 0 || desc->batch_count > 64) return "batch_count: must be 0 to 64";
    if (desc->workgroup_size > 1024 || (desc->workgroup_size & (desc->workgroup_size - 1)))
        return "workgroup_size: must be a power of two up to 1024";
    if ((uint32_t)desc->copy_path >= TL_VK_COPY_PATH_COUNT) return "copy_path: unknown";
    return NULL;
}

// Read the properties of the device and set the limits of the backend by them.
static tl_result tli_vk_read_device(tli_vk *b) {
    const char *function = "tl_vk_init_backend";
    const tl_vk_device *device = &b->desc.device;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceProperties2 more;
    VkPhysicalDeviceMaintenance3Properties largest;
    VkQueueFamilyProperties families[TLI_VK_FAMILIES];
    uint32_t family_count = 0;
    const VkPhysicalDeviceLimits *limits = &b->device_limits;
    uint64_t unit;
    (b->vk.vkGetPhysicalDeviceProperties)(device->physical, &properties);
    (b->vk.vkGetPhysicalDeviceMemoryProperties)(device->physical, &b->memory);
    (b->vk.vkGetPhysicalDeviceQueueFamilyProperties)(device->physical, &family_count, NULL);
    if (family_count > TLI_VK_FAMILIES) family_count = TLI_VK_FAMILIES;
    (b->vk.vkGetPhysicalDeviceQueueFamilyProperties)(device->physical, &family_count, families);
    b->device_limits = properties.limits;
    if (device->queue_family >= family_count ||
        !(families[device->queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function,
                           "device: queue_family: no such family that computes");
    if (b->link_count && (device->transfer_family >= family_count ||
        !(families[device->transfer_family].queueFlags &
          (VK_QUEUE_TRANSFER_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT))))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function,
                           "device: transfer_family: no such family that transfers");
    b->time_bits = families[device->queue_family].timestampValidBits;
    b->alignment = 16;
    if (limits->minStorageBufferOffsetAlignment > b->alignment)
        b->alignment = limits->minStorageBufferOffsetAlignment;
    if (limits->nonCoherentAtomSize > b->alignment) b->alignment = limits->nonCoherentAtomSize;
    unit = 128 * b->alignment;  // so that f16 and q8 of a multiple of it are aligned, too
    b->range_bytes = limits->maxStorageBufferRange / unit * unit;
    if (!b->range_bytes)
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "maxStorageBufferRange: too small for any block");
    if (b->desc.workgroup_size > limits->maxComputeWorkGroupInvocations ||
        b->desc.workgroup_size > limits->maxComputeWorkGroupSize[0])
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "workgroup_size: more than the device takes");
    b->desc.submit_bytes = b->desc.submit_bytes < unit ? unit : b->desc.submit_bytes / unit * unit;
    b->most_allocation_bytes = UINT64_MAX / 4;
    if (b->vk.vkGetPhysicalDeviceProperties2 && tli_vk_is_at_least(device, VK_API_VERSION_1_1) &&
        properties.apiVersion >= VK_API_VERSION_1_1) {
        memset(&more, 0, sizeof more);
        memset(&largest, 0, sizeof largest);
        more.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
        largest.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
        more.pNext = &largest;
        (b->vk.vkGetPhysicalDeviceProperties2)(device->physical, &more);
        if (largest.maxMemoryAllocationSize) b->most_allocation_bytes = largest.maxMemoryAllocationSize;
    }
    b->has_budget = tli_vk_has_extension(device, "VK_EXT_memory_budget") &&
                    b->vk.vkGetPhysicalDeviceMemoryProperties2 != NULL;
    return TL_OK;
}

// Learn what the memory of a buffer takes beside its bytes. The alignment that the driver tells is that of
// every buffer with these usages; the overhead is measured on buffers of several lengths.
static tl_result tli_vk_read_overhead(tli_vk *b) {
    static const uint64_t units[] = { 1, 3, 4097 };
    VkMemoryRequirements needs;
    VkBuffer buffer;
    VkResult result;
    size_t i;
    b->granularity = b->alignment;
    for (i = 0; i < sizeof units / sizeof *units; i++) {
        uint64_t bytes = units[i] * b->granularity;
        result = tli_vk_create_buffer(b, bytes, &buffer, &needs);
        if (result) return tli_vk_fail_result(b, "tl_vk_init_backend", "vkCreateBuffer", result);
        (b->vk.vkDestroyBuffer)(b->device, buffer, b->callbacks);
        if (needs.alignment > b->granularity) b->granularity = needs.alignment;
        bytes = tli_vk_align(bytes, b->granularity);
        needs.size = tli_vk_align(needs.size, b->granularity);
        if (needs.size > bytes && needs.size - bytes > b->overhead) b->overhead = needs.size - bytes;
    }
    return TL_OK;
}

static void tli_vk_fill_defaults(tl_vk_backend_desc *desc) {
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        if (!desc->capacity_bytes[tier]) desc->capacity_bytes[tier] = TL_UNLIMITED;
    if (!desc->staging_bytes) desc->staging_bytes = (uint64_t)4 << 20;
    if (!desc->submit_bytes) desc->submit_bytes = (uint64_t)256 << 20;
    if (!desc->batch_count) desc->batch_count = desc->device.transfer_queue ? 16 : 4;
    if (!desc->workgroup_size) desc->workgroup_size = 64;
}

static void tli_vk_fill_chunk_bytes(tli_vk *b) {
    uint64_t eighth = b->memory.memoryHeaps[tli_vk_heap_of(b, TL_TIER_DEVICE)].size / 8;
    uint64_t least = (uint64_t)4 << 20, most = (uint64_t)64 << 20;
    if (!b->desc.chunk_bytes) b->desc.chunk_bytes = eighth < least ? least : tli_vk_least(eighth, most);
    b->desc.chunk_bytes = tli_vk_align(b->desc.chunk_bytes, b->alignment);
    b->desc.staging_bytes = tli_vk_align(b->desc.staging_bytes, b->alignment);
}

// The timelines of the queue and of the links.
static tl_result tli_vk_make_timelines(tli_vk *b) {
    VkSemaphoreTypeCreateInfo type;
    VkSemaphoreCreateInfo info;
    VkResult result;
    int32_t i;
    if (b->records || !b->desc.device.timeline_enabled) return TL_OK;
    memset(&type, 0, sizeof type);
    memset(&info, 0, sizeof info);
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    info.pNext = &type;
    result = (b->vk.vkCreateSemaphore)(b->device, &info, b->callbacks, &b->timeline);
    if (result) b->timeline = VK_NULL_HANDLE;
    for (i = 0; i < b->link_count && !result; i++) {
        result = (b->vk.vkCreateSemaphore)(b->device, &info, b->callbacks, &b->links[i].timeline);
        if (result) b->links[i].timeline = VK_NULL_HANDLE;
    }
    return result ? tli_vk_fail_result(b, "tl_vk_init_backend", "vkCreateSemaphore", result) : TL_OK;
}

static tl_result tli_vk_make_times(tli_vk *b) {
    VkQueryPoolCreateInfo info;
    VkResult result;
    uint32_t count = b->desc.time_count;
    if (!b->time_bits) return TL_OK;
    if (count > UINT32_MAX - TLI_VK_OWN_TIMES)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_init_backend", "time_count: too many");
    b->time_serials =
        (uint64_t *)tl_add_memory(b->env, ((size_t)count + TLI_VK_OWN_TIMES) * 2 * sizeof *b->time_serials);
    b->time_numbers = b->time_serials ? b->time_serials + count + TLI_VK_OWN_TIMES : NULL;
    if (!b->time_serials)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "tl_vk_init_backend", "no memory for the times");
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = count + TLI_VK_OWN_TIMES;
    result = (b->vk.vkCreateQueryPool)(b->device, &info, b->callbacks, &b->times);
    if (result) b->times = VK_NULL_HANDLE;
    return result ? tli_vk_fail_result(b, "tl_vk_init_backend", "vkCreateQueryPool", result) : TL_OK;
}

static tl_result tli_vk_make_objects(tli_vk *b) {
    const char *function = "tl_vk_init_backend";
    tl_result result = tli_vk_make_timelines(b);
    int32_t i;
    b->batches = (tli_vk_batch *)tl_add_memory(b->env, (size_t)b->desc.batch_count * sizeof *b->batches);
    if (!b->batches) return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the batches");
    for (i = 0; i < b->desc.batch_count && !result; i++)    // now, so that recording does not allocate
        result = tli_vk_make_batch(b, &b->batches[i], function);
    if (!result) result = tli_vk_make_times(b);
    b->staging_size = b->desc.staging_bytes;
    if (!result)
        result = tli_vk_add_chunk(b, TL_TIER_HOST, TLI_VK_CHUNK_STAGING, b->staging_size + b->alignment,
                                  function, &b->staging);
    if (!result) b->chunks[b->staging].block_count = 1;
    if (!result && tl_init_heap(&b->quiet, (size_t)b->staging_size, (size_t)b->alignment, &b->staging_heap))
        result = tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the heap of the staging");
    b->placeholder.chunk = b->staging;
    b->placeholder.at = b->staging_size;
    b->placeholder.bytes = 4;
    return result;
}

// The queues for copies between the tiers, where they are others than the queue.
static void tli_vk_name_links(tli_vk *b) {
    const tl_vk_device *device = &b->desc.device;
    if (!device->transfer_queue || device->transfer_queue == device->queue) return;
    b->links[b->link_count++].queue = device->transfer_queue;
    if (device->upload_queue && device->upload_queue != device->transfer_queue)
        b->links[b->link_count++].queue = device->upload_queue;
}

TLI_VK_IMPL tl_result tl_vk_init_backend(tl_env *env, const tl_vk_backend_desc *desc, tl_backend *backend) {
    const char *why = tli_vk_explain_desc(desc);
    tl_result result;
    tli_vk *b;
    memset(backend, 0, sizeof *backend);
    if (why) return tl_record_error(env, TL_ERROR_INVALID_ARG, "tl_vk_init_backend", why);
    b = (tli_vk *)tl_add_memory(env, sizeof *b);
    if (!b) return tl_record_error(env, TL_ERROR_NO_MEMORY, "tl_vk_init_backend", "no memory");
    b->env = env;
    if (env) b->quiet = *env;
    b->quiet.log = NULL;
    b->desc = *desc;
    if (!b->desc.device.api_version) b->desc.device.api_version = VK_API_VERSION_1_0;
    tli_vk_name_links(b);
    b->device = desc->device.device;
    b->callbacks = desc->device.callbacks;
    b->records = desc->device.queue == VK_NULL_HANDLE;
    b->serial = 1;
    b->all_touched = 1;
    b->staging = TLI_VK_CHUNK_NONE;
    b->grows = !b->records && !desc->batch_count;
    tli_vk_fill_defaults(&b->desc);
    result = tli_vk_load(env, &b->desc.device, &b->vk);
    if (result) {  // nothing was made, and no function can be called
        tl_free_memory(env, b);
        return result;
    }
    tli_vk_fill_backend(backend, b);
    if (b->desc.device.owned) ((tli_vk_owned *)b->desc.device.owned)->backend_count++;
    result = tli_vk_read_device(b);
    if (!result) {
        tli_vk_fill_chunk_bytes(b);
        result = tli_vk_read_overhead(b);
    }
    if (!result) result = tli_vk_make_objects(b);
    if (result) {
        tl_error error;
        memset(&error, 0, sizeof error);
        if (env) error = env->error;
        (void)tl_vk_free_backend(env, backend);
        if (env) env->error = error;
    }
    return result;
}

// Refuse to free what runs, managers or pointers of the caller still need. The device may still read what
// frames under way use, unless it was lost.
static tl_result tli_vk_check_unused(tli_vk *b, tl_env *env) {
    const char *function = "tl_vk_free_backend", *what = "backend";
    int32_t kernels = b->kernel_count, mapped = 0, frames = 0, i;
    uint64_t serial;
    for (i = 0; i < TLI_VK_SHADER_COUNT; i++) kernels -= b->shaders[i] != NULL;
    for (i = 0; i < b->mapping_count; i++) mapped += !b->mappings[i].is_pending;
    for (serial = b->passed + 1; b->records && b->batches && serial <= b->serial; serial++)
        frames += tli_vk_batch_of(b, serial)->serial == serial;
    if (b->open_account_count)
        return tli_vk_fail_users(env, function, what, b->open_account_count, "runs and managers");
    if (kernels) return tli_vk_fail_users(env, function, what, kernels, "kernels");
    if (mapped) return tli_vk_fail_users(env, function, what, mapped, "mapped ranges");
    if (frames && !b->lost)
        return tli_vk_fail_users(env, function, what, frames, "frames neither retired nor dropped");
    return TL_OK;
}

// Wait for what was submitted, and for the transfers that count to the batch that was not.
static tl_result tli_vk_wait_for_all(tli_vk *b, const char *function) {
    tl_result result = tli_vk_wait_batch(b, b->serial - 1, 1, function);
    while (!result && b->transfer_done < b->transfer_sent) result = tli_vk_wait_for_oldest(b, function);
    return result;
}

TLI_VK_IMPL tl_result tl_vk_free_backend(tl_env *env, tl_backend *backend) {
    tl_result result;
    tli_vk *b;
    int32_t i;
    if (!backend || !backend->self) return TL_OK;
    b = tli_vk_self(backend);
    result = tli_vk_check_unused(b, env);
    if (result) return result;
    if (b->desc.device.owned) ((tli_vk_owned *)b->desc.device.owned)->backend_count--;
    b->env = &b->quiet;  // nothing below is an error of this call
    for (i = 0; i < 64 && !b->records && !b->lost; i++)  // a wait that fails for want of memory may work again
        if (tli_vk_wait_for_all(b, "tl_vk_free_backend") == TL_OK) break;
    for (i = 0; i < TLI_VK_SHADER_COUNT; i++) tl_vk_free_kernel(backend, b->shaders[i]);
    for (i = 0; i < b->chunk_count; i++)
        if (b->chunks[i].alive) tli_vk_destroy_chunk(b, &b->chunks[i]);
    tl_free_memory(env, b->bounce);
    tl_free_heap(b->staging_heap);
    for (i = 0; b->batches && i < b->desc.batch_count; i++) tli_vk_free_batch(b, &b->batches[i]);
    if (b->timeline) (b->vk.vkDestroySemaphore)(b->device, b->timeline, b->callbacks);
    tli_vk_free_links(b);
    if (b->times) (b->vk.vkDestroyQueryPool)(b->device, b->times, b->callbacks);
    tl_free_memory(env, b->time_serials);
    tl_free_memory(env, b->batches);
    tl_free_memory(env, b->chunks);
    tl_free_memory(env, b->blocks);
    tl_free_memory(env, b->accounts);
    tl_free_memory(env, b->all_slots);
    tl_free_memory(env, b->mappings);
    tl_free_memory(env, b->lost_places);
    tl_free_memory(env, b);
    memset(backend, 0, sizeof *backend);
    return TL_OK;
}

static const char *const tli_vk_copy_path_names[] = { TL_VK_COPY_PATHS(TLI_VK_NAME) };

TLI_VK_IMPL const char *tl_vk_name_copy_path(tl_vk_copy_path path) {
    return (unsigned)path < TL_VK_COPY_PATH_COUNT ? tli_vk_copy_path_names[path] : "?";
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [3] FRAMES (implementation)
// ============================================================================

// A frame is a batch of [2] whose command buffer is the caller's. When a frame is dropped, the bytes that it
// would have written are lost, and so are those that enqueued work would have computed from them.

TLI_VK_IMPL tl_result tl_vk_start_frame(const tl_backend *backend, VkCommandBuffer commands, tl_ticket *frame) {
    const char *function = "tl_vk_start_frame";
    tli_vk *b = tli_vk_self(backend);
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    tl_result result;
    frame->value = 0;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (!b->records)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "backend: it has a queue and submits by itself");
    if (b->open) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "backend: a frame is open");
    if (!commands) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "commands: missing");
    if (batch->serial > b->passed)
        return tli_vk_fail(b, TL_NOT_READY, function, "batch_count: so many frames were not retired yet");
    result = tli_vk_reset_batch(b, batch, function);
    if (result) return result;
    batch->commands = commands;
    batch->serial = b->serial;
    b->open = TLI_VK_OPEN;
    b->calls.frame_count++;
    frame->value = b->serial;
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_end_frame(const tl_backend *backend) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result;
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_end_frame");
    if (!b->records || !b->open)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_end_frame", "backend: no frame is open");
    result = tli_vk_complete(b, "tl_vk_end_frame");
    if (result) return result;
    b->serial++;
    b->open = 0;
    b->has_work = 0;
    b->calls.recorded_bytes = 0;
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_retire_frame(const tl_backend *backend, tl_ticket frame) {
    tli_vk *b = tli_vk_self(backend);
    if (!b->records || !frame.value || frame.value >= b->serial)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_retire_frame", "frame: was never ended");
    tli_vk_pass(b, frame.value);
    return TL_OK;
}

// Give up a frame that never runs: the places that it writes are lost.
static void tli_vk_lose_batch(tli_vk *b, tli_vk_batch *batch) {
    uint64_t slot;
    int32_t i;
    for (slot = 0; b->time_serials && slot < (uint64_t)b->desc.time_count + TLI_VK_OWN_TIMES; slot++)
        if (b->time_serials[slot] == batch->serial) b->time_serials[slot] = 0;  // it is never written
    for (i = 0; i < batch->write_count; i++)
        if (!tli_vk_add_lost(b, batch->writes[i])) b->lost = 1;  // what is lost is not known any more
    batch->write_count = 0;
    batch->serial = 0;
    b->open = 0;
    b->has_work = b->op_count > 0;
    tli_vk_forget_accesses(&b->touches);
    b->all_touched = 1;
    b->calls.recorded_bytes = 0;
}

// Cancel a pending read whose copy never runs.
static void tli_vk_drop_read(tli_vk *b, const tli_vk_place *staged, uint64_t serial) {
    int32_t i;
    for (i = b->mapping_count - 1; i >= 0; i--) {
        if (!b->mappings[i].is_pending || !tli_vk_meet(&b->mappings[i].staged, staged)) continue;
        tli_vk_cancel_read(b, i, serial);
    }
}

// Discard the enqueued work that reads lost bytes, or all of it; what it would have written is lost, too.
static void tli_vk_lose_ops(tli_vk *b, int all, uint64_t serial) {
    int32_t kept = 0, i;
    for (i = 0; i < b->op_count; i++) {
        const tli_vk_op op = b->ops[i];
        int changes = op.kind == TLI_VK_OP_SHADER &&
                      (tli_vk_reduces(op.shader) || op.shader == TLI_VK_SHADER_ADD);
        if (all || (op.kind != TLI_VK_OP_FILL && tli_vk_is_lost(b, &op.from)) ||
            (changes && tli_vk_is_lost(b, &op.to))) {
            if (!tli_vk_add_lost(b, op.to)) b->lost = 1;
            tli_vk_drop_read(b, &op.to, serial);
        } else {
            tli_vk_forget_lost(b, &op.to);
            b->ops[kept++] = op;
        }
    }
    b->op_count = kept;
}

TLI_VK_IMPL tl_result tl_vk_drop_frame(const tl_backend *backend, tl_ticket frame) {
    const char *function = "tl_vk_drop_frame";
    tli_vk *b = tli_vk_self(backend);
    uint64_t latest = b->open ? b->serial : b->serial - 1;
    tli_vk_batch *batch = tli_vk_batch_of(b, frame.value);
    int32_t i, was_open;
    while (latest > b->passed && tli_vk_batch_of(b, latest)->dropped == latest) latest--;
    if (!b->records || !frame.value || frame.value > latest || frame.value <= b->passed)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "frame: is not under way");
    if (frame.value != latest || batch->serial != frame.value)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "frame: is not the latest one");
    was_open = b->open;
    b->serial += was_open != 0;
    batch->dropped = frame.value;
    tli_vk_lose_batch(b, batch);
    tli_vk_lose_ops(b, was_open, frame.value);
    b->has_work = b->op_count > 0;
    for (i = b->mapping_count - 1; i >= 0; i--) {
        if (!b->mappings[i].is_pending || b->mappings[i].serial != frame.value) continue;
        tli_vk_cancel_read(b, i, frame.value);
    }
    if (b->passed + 1 == frame.value) tli_vk_pass(b, frame.value);
    return TL_OK;
}

TLI_VK_IMPL void tl_vk_lose_device(const tl_backend *backend) { tli_vk_self(backend)->lost = 1; }
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [4] KERNELS (implementation)
// ============================================================================

// Pipelines of the caller and of [5], their dispatch, and timestamps. `order` announces the ranges of a kernel;
// recording the kernel notes them as touches of the open batch.

static const char *tli_vk_explain_kernel(const tl_vk_kernel_desc *desc) {
    if (!desc->words || desc->word_count < 5 || desc->words[0] != 0x07230203u) return "words: not SPIR-V";
    if (desc->word_count > SIZE_MAX / 8) return "word_count: too many";
    if (desc->buffer_count < 0 || desc->buffer_count > TLI_VK_BINDINGS) return "buffer_count: must be 0 to 16";
    if (desc->push_bytes % 4 || desc->push_bytes > 128) return "push_bytes: must be a multiple of 4 up to 128";
    if (desc->constant_count > 16) return "constant_count: must be 0 to 16";
    if (desc->constant_count && !desc->constants) return "constants: missing";
    return NULL;
}

static VkResult tli_vk_make_layouts(tli_vk *b, const tl_vk_kernel_desc *desc, tl_vk_kernel *kernel) {
    VkDescriptorSetLayoutBinding bindings[TLI_VK_BINDINGS];
    VkDescriptorSetLayoutCreateInfo set;
    VkPushConstantRange push;
    VkPipelineLayoutCreateInfo layout;
    VkResult result;
    int32_t i;
    memset(bindings, 0, sizeof bindings);
    memset(&set, 0, sizeof set);
    memset(&push, 0, sizeof push);
    memset(&layout, 0, sizeof layout);
    for (i = 0; i < desc->buffer_count; i++) {
        bindings[i].binding = (uint32_t)i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set.bindingCount = (uint32_t)desc->buffer_count;
    set.pBindings = bindings;
    result = (b->vk.vkCreateDescriptorSetLayout)(b->device, &set, b->callbacks, &kernel->set_layout);
    if (result) kernel->set_layout = VK_NULL_HANDLE;
    if (result) return result;
    push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    push.size = desc->push_bytes;
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &kernel->set_layout;
    layout.pushConstantRangeCount = desc->push_bytes != 0;
    layout.pPushConstantRanges = &push;
    result = (b->vk.vkCreatePipelineLayout)(b->device, &layout, b->callbacks, &kernel->layout);
    if (result) kernel->layout = VK_NULL_HANDLE;
    return result;
}

static VkResult tli_vk_make_pipeline(tli_vk *b, const tl_vk_kernel_desc *desc, tl_vk_kernel *kernel) {
    VkSpecializationMapEntry entries[16];
    VkSpecializationInfo special;
    VkShaderModuleCreateInfo module;
    VkComputePipelineCreateInfo pipeline;
    VkShaderModule shader = VK_NULL_HANDLE;
    VkResult result;
    uint32_t i;
    memset(&module, 0, sizeof module);
    memset(&pipeline, 0, sizeof pipeline);
    memset(&special, 0, sizeof special);
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = desc->word_count * 4;
    module.pCode = desc->words;
    result = (b->vk.vkCreateShaderModule)(b->device, &module, b->callbacks, &shader);
    if (result) return result;
    for (i = 0; i < desc->constant_count; i++) {
        entries[i].constantID = i;
        entries[i].offset = i * 4;
        entries[i].size = 4;
    }
    special.mapEntryCount = desc->constant_count;
    special.pMapEntries = entries;
    special.dataSize = desc->constant_count * 4;
    special.pData = desc->constants;
    pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = shader;
    pipeline.stage.pName = "main";
    pipeline.stage.pSpecializationInfo = desc->constant_count ? &special : NULL;
    pipeline.layout = kernel->layout;
    result = (b->vk.vkCreateComputePipelines)(b->device, b->desc.pipeline_cache, 1, &pipeline, b->callbacks,
                                            &kernel->pipeline);
    if (result) kernel->pipeline = VK_NULL_HANDLE;
    (b->vk.vkDestroyShaderModule)(b->device, shader, b->callbacks);
    return result;
}

typedef struct tli_vk_kernel_memory { tl_vk_kernel kernel; tli_vk_kept kept; } tli_vk_kernel_memory;

TLI_VK_IMPL tl_result tl_vk_init_kernel(const tl_backend *backend, const tl_vk_kernel_desc *desc,
                                        tl_vk_kernel **out) {
    const char *function = "tl_vk_init_kernel", *why = tli_vk_explain_kernel(desc), *call = "kernel layouts";
    tli_vk *b = tli_vk_self(backend);
    tli_vk_kernel_memory *both;
    tl_vk_kernel *kernel;
    VkResult result;
    *out = NULL;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (why) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, why);
    if ((uint32_t)desc->buffer_count > b->device_limits.maxPerStageDescriptorStorageBuffers ||
        desc->push_bytes > b->device_limits.maxPushConstantsSize)
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function,
                           "buffer_count, push_bytes: more than the device binds");
    both = (tli_vk_kernel_memory *)tl_add_memory(b->env, sizeof *both);
    if (!both) return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory");
    kernel = &both->kernel;
    kernel->kept = &both->kept;
    b->calls.host_alloc_count++;
    b->kernel_count++;
    kernel->buffer_count = desc->buffer_count;
    kernel->push_bytes = desc->push_bytes;
    result = tli_vk_make_layouts(b, desc, kernel);
    if (!result) {
        call = "pipeline";
        result = tli_vk_make_pipeline(b, desc, kernel);
    }
    if (result) {
        tl_vk_free_kernel(backend, kernel);
        return tli_vk_fail_result(b, function, call, result);
    }
    *out = kernel;
    return TL_OK;
}

TLI_VK_IMPL void tl_vk_free_kernel(const tl_backend *backend, tl_vk_kernel *kernel) {
    tli_vk *b = tli_vk_self(backend);
    if (!kernel) return;
    tli_vk_free_kept(b, kernel->kept);
    if (kernel->pipeline) (b->vk.vkDestroyPipeline)(b->device, kernel->pipeline, b->callbacks);
    if (kernel->layout) (b->vk.vkDestroyPipelineLayout)(b->device, kernel->layout, b->callbacks);
    if (kernel->set_layout) (b->vk.vkDestroyDescriptorSetLayout)(b->device, kernel->set_layout, b->callbacks);
    b->kernel_count--;
    tl_free_memory(b->env, kernel);
}

TLI_VK_IMPL tl_result tl_vk_record_kernel(const tl_backend *backend, const tl_vk_kernel *kernel,
                                          const tl_range *ranges, const void *push, uint32_t groups_x,
                                          uint32_t groups_y, uint32_t groups_z) {
    const char *function = "tl_vk_record_kernel";
    tli_vk *b = tli_vk_self(backend);
    const uint32_t *most = b->device_limits.maxComputeWorkGroupCount;
    tli_vk_place places[TLI_VK_BINDINGS];
    uint32_t groups[3];
    tl_result result = TL_OK;
    int32_t i;
    memset(places, 0, sizeof places);
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (groups_x > most[0] || groups_y > most[1] || groups_z > most[2])
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "groups: more than the device takes");
    for (i = 0; i < kernel->buffer_count; i++) {
        const tli_vk_block *block;
        places[i] = b->placeholder;
        if (!ranges[i].bytes) continue;
        block = tli_vk_find_range(b, &ranges[i], function, &result);
        if (!block) return result;
        places[i] = tli_vk_place_of(block, &ranges[i]);
        if (ranges[i].bytes > b->device_limits.maxStorageBufferRange)
            return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "ranges: longer than the device can bind");
    }
    if (!groups_x || !groups_y || !groups_z) return TL_OK;
    groups[0] = groups_x;
    groups[1] = groups_y;
    groups[2] = groups_z;
    result = tli_vk_open(b, function);
    if (!result) result = tli_vk_order_early(b, function);
    for (i = 0; i < kernel->buffer_count && !result; i++)
        if (ranges[i].bytes) result = tli_vk_touch_promised(b, &places[i], ranges[i].block, function);
    if (!result) result = tli_vk_dispatch(b, kernel, places, push, groups, function);
    if (result) return result;
    b->kept_count = b->promise_count;
    b->calls.kernel_count++;
    return TL_OK;
}

// -- timestamps --

static tl_result tli_vk_write_time(tli_vk *b, uint32_t slot, const char *function) {
    tli_vk_command command;
    tl_result result;
    if (!b->times) return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "the queue has no timestamps");
    result = tli_vk_open(b, function);
    if (!result) result = tli_vk_flush(b, function);
    if (result) return result;
    memset(&command, 0, sizeof command);
    command.kind = TLI_VK_COMMAND_TIME;
    command.count = slot;
    tli_vk_record_command(b, &command, NULL);
    b->time_serials[slot] = b->serial;
    b->time_numbers[slot] = b->time_count++;
    b->has_work = 1;
    return TL_OK;
}

// Count ticks on where the counter of the device begins again: relative to the time that was read last, a later
// one lies up to seven eighths of the range after it, or slightly before it, as times may overtake each other.
static uint64_t tli_vk_extend_ticks(tli_vk *b, uint32_t slot, uint64_t ticks) {
    uint64_t range = (uint64_t)1 << (b->time_bits & 63), back, apart;
    if (b->time_bits > 48) return b->time_bits < 64 ? ticks & (range - 1) : ticks;  // 49 bits of 1 ns: 6 days
    ticks &= range - 1;
    if (!b->read_ticks) b->read_ticks = range + ticks;  // so that those before it are above 0
    apart = (ticks - b->read_ticks) & (range - 1);
    back = b->time_numbers[slot] < b->read_number ? range / 8 * 7 : range / 8;
    ticks = b->read_ticks + apart;
    if (apart >= range - back && ticks > range) ticks -= range;
    b->read_number = b->time_numbers[slot];
    b->read_ticks = ticks;
    return ticks;
}

static tl_result tli_vk_read_time(tli_vk *b, uint32_t slot, const char *function, uint64_t *ns) {
    uint64_t ticks = 0;
    VkResult got;
    tl_result result;
    if (!b->times) return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "the queue has no timestamps");
    if (!b->time_serials[slot])
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "slot: was never written");
    result = tli_vk_reach(b, b->time_serials[slot], function);
    if (result) return result;
    got = (b->vk.vkGetQueryPoolResults)(b->device, b->times, slot, 1, sizeof ticks, &ticks, sizeof ticks,
                                      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (got) return tli_vk_fail_result(b, function, "vkGetQueryPoolResults", got);
    ticks = tli_vk_extend_ticks(b, slot, ticks);
    *ns = (uint64_t)((double)ticks * (double)b->device_limits.timestampPeriod);
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_record_time(const tl_backend *backend, uint32_t slot) {
    tli_vk *b = tli_vk_self(backend);
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_record_time");
    if (slot >= b->desc.time_count)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_record_time", "slot: not below time_count");
    return tli_vk_write_time(b, slot, "tl_vk_record_time");
}

TLI_VK_IMPL tl_result tl_vk_read_times(const tl_backend *backend, uint32_t first, uint32_t count,
                                       uint64_t *ns) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result = TL_OK;
    uint32_t i;
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_read_times");
    if (first > b->desc.time_count || count > b->desc.time_count - first)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_read_times", "slot: not below time_count");
    for (i = 0; i < count && !result; i++)
        result = tli_vk_read_time(b, first + i, "tl_vk_read_times", &ns[i]);
    for (i = 0; i < count && result; i++) ns[i] = 0;
    return result;
}

// Time one copy by one path; *least = the shortest time so far.
static tl_result tli_vk_time_copy(tli_vk *b, tl_vk_copy_path path, tl_range to, tl_range from,
                                  uint64_t *least) {
    const char *function = "tl_vk_measure_copies";
    uint64_t start, end;
    tl_result result = tli_vk_write_time(b, b->desc.time_count, function);
    b->desc.copy_path = path;
    if (!result) result = tli_vk_move(b, TLI_VK_OP_COPY, TLI_VK_SHADER_COPY, &to, &from, from.bytes, function);
    if (!result) result = tli_vk_write_time(b, b->desc.time_count + 1, function);
    if (!result) result = tli_vk_read_time(b, b->desc.time_count, function, &start);
    if (!result) result = tli_vk_read_time(b, b->desc.time_count + 1, function, &end);
    if (!result && end - start < *least) *least = end - start;
    return result;
}

TLI_VK_IMPL tl_result tl_vk_measure_copies(const tl_backend *backend, tl_vk_copy_path *path) {
    const char *function = "tl_vk_measure_copies";
    tli_vk *b = tli_vk_self(backend);
    const tl_vk_copy_path before = b->desc.copy_path;
    uint64_t bytes = tli_vk_least((uint64_t)16 << 20, b->desc.chunk_bytes / 2), least[TL_VK_COPY_PATH_COUNT];
    tl_range ranges[2];
    tl_result result;
    int i, kind;
    memset(ranges, 0, sizeof ranges);
    *path = before;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (b->records) return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "backend: it has no queue");
    ranges[0].bytes = ranges[1].bytes = bytes / b->alignment * b->alignment;
    result = tli_vk_add_block(b, TL_TIER_DEVICE, ranges[0].bytes, &ranges[0].block);
    if (!result) result = tli_vk_add_block(b, TL_TIER_DEVICE, ranges[1].bytes, &ranges[1].block);
    for (kind = 0; kind < TL_VK_COPY_PATH_COUNT; kind++) least[kind] = UINT64_MAX;
    for (i = 0; i < 5 && !result; i++)
        for (kind = 0; kind < TL_VK_COPY_PATH_COUNT && !result; kind++)
            result = tli_vk_time_copy(b, (tl_vk_copy_path)kind, ranges[0], ranges[1], &least[kind]);
    for (i = 0; i < 2; i++)
        if (ranges[i].block) (void)tli_vk_free_block(b, ranges[i].block);
    b->desc.copy_path = before;
    if (result) return result;
    b->desc.copy_path = least[TL_VK_COPY_PATH_SHADER] < least[TL_VK_COPY_PATH_COMMAND] ? TL_VK_COPY_PATH_SHADER
                                                                                     : TL_VK_COPY_PATH_COMMAND;
    *path = b->desc.copy_path;
    return TL_OK;
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [5] SHADERS (implementation)
// ============================================================================

// Each of the next parts holds the SPIR-V words of one shader: `make shaders` compiles shaders/*.comp and
// writes these parts.
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_add_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x0000005c, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000000e, 0x00000013, 0x00000022,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000000e,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000013, 0x0000000b, 0x00000018, 0x00040047, 0x0000001e,
    0x00000001, 0x00000000, 0x00040047, 0x0000001f, 0x0000000b, 0x00000019, 0x00040047, 0x00000022,
    0x0000000b, 0x0000001b, 0x00050048, 0x0000002c, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x0000002c, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000002c, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x0000002c, 0x00000002, 0x00040047, 0x00000039, 0x00000006, 0x00000004,
    0x00050048, 0x0000003a, 0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x0000003a, 0x00000003,
    0x00040047, 0x0000003c, 0x00000022, 0x00000000, 0x00040047, 0x0000003c, 0x00000021, 0x00000000,
    0x00040047, 0x0000003e, 0x00000006, 0x00000004, 0x00040048, 0x0000003f, 0x00000000, 0x00000018,
    0x00050048, 0x0000003f, 0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x0000003f, 0x00000003,
    0x00040047, 0x00000041, 0x00000022, 0x00000000, 0x00040047, 0x00000041, 0x00000021, 0x00000001,
    0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002, 0x00040015, 0x00000006, 0x00000020,
    0x00000000, 0x00040017, 0x0000000c, 0x00000006, 0x00000003, 0x00040020, 0x0000000d, 0x00000001,
    0x0000000c, 0x0004003b, 0x0000000d, 0x0000000e, 0x00000001, 0x0004002b, 0x00000006, 0x0000000f,
    0x00000001, 0x00040020, 0x00000010, 0x00000001, 0x00000006, 0x0004003b, 0x0000000d, 0x00000013,
    0x00000001, 0x0004002b, 0x00000006, 0x00000014, 0x00000000, 0x00040032, 0x00000006, 0x0000001e,
    0x00000040, 0x00060033, 0x0000000c, 0x0000001f, 0x0000001e, 0x0000000f, 0x0000000f, 0x0004003b,
    0x0000000d, 0x00000022, 0x00000001, 0x0005001e, 0x0000002c, 0x00000006, 0x00000006, 0x00000006,
    0x00040020, 0x0000002d, 0x00000009, 0x0000002c, 0x0004003b, 0x0000002d, 0x0000002e, 0x00000009,
    0x00040015, 0x0000002f, 0x00000020, 0x00000001, 0x0004002b, 0x0000002f, 0x00000030, 0x00000000,
    0x00040020, 0x00000031, 0x00000009, 0x00000006, 0x00020014, 0x00000034, 0x00030016, 0x00000038,
    0x00000020, 0x0003001d, 0x00000039, 0x00000038, 0x0003001e, 0x0000003a, 0x00000039, 0x00040020,
    0x0000003b, 0x00000002, 0x0000003a, 0x0004003b, 0x0000003b, 0x0000003c, 0x00000002, 0x0003001d,
    0x0000003e, 0x00000038, 0x0003001e, 0x0000003f, 0x0000003e, 0x00040020, 0x00000040, 0x00000002,
    0x0000003f, 0x0004003b, 0x00000040, 0x00000041, 0x00000002, 0x00040020, 0x00000043, 0x00000002,
    0x00000038, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005,
    0x00050041, 0x00000010, 0x00000054, 0x0000000e, 0x0000000f, 0x0004003d, 0x00000006, 0x00000055,
    0x00000054, 0x00050041, 0x00000010, 0x00000056, 0x00000013, 0x00000014, 0x0004003d, 0x00000006,
    0x00000057, 0x00000056, 0x00050084, 0x00000006, 0x00000058, 0x00000055, 0x00000057, 0x00050041,
    0x00000010, 0x00000059, 0x0000000e, 0x00000014, 0x0004003d, 0x00000006, 0x0000005a, 0x00000059,
    0x00050080, 0x00000006, 0x0000005b, 0x00000058, 0x0000005a, 0x00050051, 0x00000006, 0x0000004d,
    0x0000001f, 0x00000000, 0x00050084, 0x00000006, 0x0000004e, 0x0000005b, 0x0000004d, 0x00050041,
    0x00000010, 0x0000004f, 0x00000022, 0x00000014, 0x0004003d, 0x00000006, 0x00000050, 0x0000004f,
    0x00050080, 0x00000006, 0x00000051, 0x0000004e, 0x00000050, 0x00050041, 0x00000031, 0x00000032,
    0x0000002e, 0x00000030, 0x0004003d, 0x00000006, 0x00000033, 0x00000032, 0x000500b0, 0x00000034,
    0x00000035, 0x00000051, 0x00000033, 0x000300f7, 0x00000037, 0x00000000, 0x000400fa, 0x00000035,
    0x00000036, 0x00000037, 0x000200f8, 0x00000036, 0x00060041, 0x00000043, 0x00000044, 0x00000041,
    0x00000030, 0x00000051, 0x0004003d, 0x00000038, 0x00000045, 0x00000044, 0x00060041, 0x00000043,
    0x00000046, 0x0000003c, 0x00000030, 0x00000051, 0x0004003d, 0x00000038, 0x00000047, 0x00000046,
    0x00050081, 0x00000038, 0x00000048, 0x00000047, 0x00000045, 0x0003003e, 0x00000046, 0x00000048,
    0x000200f9, 0x00000037, 0x000200f8, 0x00000037, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_checksum_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x000000fd, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00000018, 0x0000001d, 0x0000002c,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000018,
    0x0000000b, 0x0000001a, 0x00040047, 0x0000001d, 0x0000000b, 0x00000018, 0x00040047, 0x00000028,
    0x00000001, 0x00000000, 0x00040047, 0x00000029, 0x0000000b, 0x00000019, 0x00040047, 0x0000002c,
    0x0000000b, 0x0000001b, 0x00050048, 0x0000007d, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x0000007d, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000007d, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x0000007d, 0x00000002, 0x00040047, 0x00000084, 0x00000006, 0x00000004,
    0x00040048, 0x00000085, 0x00000000, 0x00000018, 0x00050048, 0x00000085, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000085, 0x00000003, 0x00040047, 0x00000087, 0x00000022, 0x00000000,
    0x00040047, 0x00000087, 0x00000021, 0x00000001, 0x00040047, 0x000000b3, 0x00000006, 0x00000004,
    0x00050048, 0x000000b4, 0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x000000b4, 0x00000003,
    0x00040047, 0x000000b6, 0x00000022, 0x00000000, 0x00040047, 0x000000b6, 0x00000021, 0x00000000,
    0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002, 0x00040015, 0x00000006, 0x00000020,
    0x00000000, 0x00040017, 0x00000016, 0x00000006, 0x00000003, 0x00040020, 0x00000017, 0x00000001,
    0x00000016, 0x0004003b, 0x00000017, 0x00000018, 0x00000001, 0x0004002b, 0x00000006, 0x00000019,
    0x00000001, 0x00040020, 0x0000001a, 0x00000001, 0x00000006, 0x0004003b, 0x00000017, 0x0000001d,
    0x00000001, 0x0004002b, 0x00000006, 0x0000001e, 0x00000000, 0x00040032, 0x00000006, 0x00000028,
    0x00000040, 0x00060033, 0x00000016, 0x00000029, 0x00000028, 0x00000019, 0x00000019, 0x0004003b,
    0x00000017, 0x0000002c, 0x00000001, 0x00040015, 0x0000003d, 0x00000020, 0x00000001, 0x0004002b,
    0x0000003d, 0x0000003e, 0x00000010, 0x0004002b, 0x00000006, 0x00000041, 0x85ebca6b, 0x0004002b,
    0x0000003d, 0x00000045, 0x0000000d, 0x0004002b, 0x00000006, 0x00000048, 0xc2b2ae35, 0x0004002b,
    0x00000006, 0x00000054, 0x7feb352d, 0x0004002b, 0x0000003d, 0x00000058, 0x0000000f, 0x0004002b,
    0x00000006, 0x0000005b, 0x846ca68b, 0x00020014, 0x00000065, 0x0004002b, 0x00000006, 0x00000069,
    0x00000002, 0x0004001c, 0x0000006a, 0x00000006, 0x00000069, 0x00040020, 0x0000006b, 0x00000004,
    0x0000006a, 0x0004003b, 0x0000006b, 0x0000006c, 0x00000004, 0x0004002b, 0x0000003d, 0x0000006d,
    0x00000000, 0x0004002b, 0x0000003d, 0x0000006e, 0x00000001, 0x00040020, 0x0000006f, 0x00000004,
    0x00000006, 0x0004002b, 0x00000006, 0x00000072, 0x00000108, 0x0005001e, 0x0000007d, 0x00000006,
    0x00000006, 0x00000006, 0x00040020, 0x0000007e, 0x00000009, 0x0000007d, 0x0004003b, 0x0000007e,
    0x0000007f, 0x00000009, 0x00040020, 0x00000080, 0x00000009, 0x00000006, 0x0003001d, 0x00000084,
    0x00000006, 0x0003001e, 0x00000085, 0x00000084, 0x00040020, 0x00000086, 0x00000002, 0x00000085,
    0x0004003b, 0x00000086, 0x00000087, 0x00000002, 0x00040020, 0x00000089, 0x00000002, 0x00000006,
    0x0004002b, 0x00000006, 0x00000090, 0x9e3779b9, 0x0004002b, 0x00000006, 0x0000009e, 0x7f4a7c15,
    0x0004001c, 0x000000b3, 0x00000006, 0x00000069, 0x0003001e, 0x000000b4, 0x000000b3, 0x00040020,
    0x000000b5, 0x00000002, 0x000000b4, 0x0004003b, 0x000000b5, 0x000000b6, 0x00000002, 0x00050036,
    0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x00050041, 0x0000001a,
    0x00000063, 0x0000002c, 0x0000001e, 0x0004003d, 0x00000006, 0x00000064, 0x00000063, 0x000500aa,
    0x00000065, 0x00000066, 0x00000064, 0x0000001e, 0x000300f7, 0x00000068, 0x00000000, 0x000400fa,
    0x00000066, 0x00000067, 0x00000068, 0x000200f8, 0x00000067, 0x00050041, 0x0000006f, 0x00000070,
    0x0000006c, 0x0000006e, 0x0003003e, 0x00000070, 0x0000001e, 0x00050041, 0x0000006f, 0x00000071,
    0x0000006c, 0x0000006d, 0x0003003e, 0x00000071, 0x0000001e, 0x000200f9, 0x00000068, 0x000200f8,
    0x00000068, 0x000400e0, 0x00000069, 0x00000069, 0x00000072, 0x00050041, 0x0000001a, 0x000000c9,
    0x00000018, 0x00000019, 0x0004003d, 0x00000006, 0x000000ca, 0x000000c9, 0x00050041, 0x0000001a,
    0x000000cb, 0x0000001d, 0x0000001e, 0x0004003d, 0x00000006, 0x000000cc, 0x000000cb, 0x00050084,
    0x00000006, 0x000000cd, 0x000000ca, 0x000000cc, 0x00050041, 0x0000001a, 0x000000ce, 0x00000018,
    0x0000001e, 0x0004003d, 0x00000006, 0x000000cf, 0x000000ce, 0x00050080, 0x00000006, 0x000000d0,
    0x000000cd, 0x000000cf, 0x00050051, 0x00000006, 0x000000c2, 0x00000029, 0x00000000, 0x00050084,
    0x00000006, 0x000000c3, 0x000000d0, 0x000000c2, 0x00050080, 0x00000006, 0x000000c6, 0x000000c3,
    0x00000064, 0x000200f9, 0x00000077, 0x000200f8, 0x00000077, 0x000700f5, 0x00000006, 0x000000fc,
    0x0000001e, 0x00000068, 0x000000a4, 0x00000078, 0x000700f5, 0x00000006, 0x000000fb, 0x0000001e,
    0x00000068, 0x00000096, 0x00000078, 0x000700f5, 0x00000006, 0x000000fa, 0x000000c6, 0x00000068,
    0x000000a7, 0x00000078, 0x00050041, 0x00000080, 0x00000081, 0x0000007f, 0x0000006d, 0x0004003d,
    0x00000006, 0x00000082, 0x00000081, 0x000500b0, 0x00000065, 0x00000083, 0x000000fa, 0x00000082,
    0x000400f6, 0x00000079, 0x00000078, 0x00000000, 0x000400fa, 0x00000083, 0x00000078, 0x00000079,
    0x000200f8, 0x00000078, 0x00060041, 0x00000089, 0x0000008a, 0x00000087, 0x0000006d, 0x000000fa,
    0x0004003d, 0x00000006, 0x0000008b, 0x0000008a, 0x00050041, 0x00000080, 0x0000008c, 0x0000007f,
    0x0000006e, 0x0004003d, 0x00000006, 0x0000008d, 0x0000008c, 0x00050080, 0x00000006, 0x0000008f,
    0x0000008d, 0x000000fa, 0x00050084, 0x00000006, 0x00000091, 0x0000008f, 0x00000090, 0x00050080,
    0x00000006, 0x00000092, 0x0000008b, 0x00000091, 0x000500c2, 0x00000006, 0x000000d5, 0x00000092,
    0x0000003e, 0x000500c6, 0x00000006, 0x000000d6, 0x00000092, 0x000000d5, 0x00050084, 0x00000006,
    0x000000d7, 0x000000d6, 0x00000041, 0x000500c2, 0x00000006, 0x000000da, 0x000000d7, 0x00000045,
    0x000500c6, 0x00000006, 0x000000db, 0x000000d7, 0x000000da, 0x00050084, 0x00000006, 0x000000dc,
    0x000000db, 0x00000048, 0x000500c2, 0x00000006, 0x000000df, 0x000000dc, 0x0000003e, 0x000500c6,
    0x00000006, 0x000000e0, 0x000000dc, 0x000000df, 0x00050080, 0x00000006, 0x00000096, 0x000000fb,
    0x000000e0, 0x0004003d, 0x00000006, 0x00000099, 0x0000008a, 0x00050084, 0x00000006, 0x0000009f,
    0x0000008f, 0x0000009e, 0x00050080, 0x00000006, 0x000000a0, 0x00000099, 0x0000009f, 0x000500c2,
    0x00000006, 0x000000e5, 0x000000a0, 0x0000003e, 0x000500c6, 0x00000006, 0x000000e6, 0x000000a0,
    0x000000e5, 0x00050084, 0x00000006, 0x000000e7, 0x000000e6, 0x00000054, 0x000500c2, 0x00000006,
    0x000000ea, 0x000000e7, 0x00000058, 0x000500c6, 0x00000006, 0x000000eb, 0x000000e7, 0x000000ea,
    0x00050084, 0x00000006, 0x000000ec, 0x000000eb, 0x0000005b, 0x000500c2, 0x00000006, 0x000000ef,
    0x000000ec, 0x0000003e, 0x000500c6, 0x00000006, 0x000000f0, 0x000000ec, 0x000000ef, 0x00050080,
    0x00000006, 0x000000a4, 0x000000fc, 0x000000f0, 0x00050041, 0x0000001a, 0x000000f5, 0x0000001d,
    0x00000019, 0x0004003d, 0x00000006, 0x000000f6, 0x000000f5, 0x00050084, 0x00000006, 0x000000f7,
    0x000000cc, 0x000000f6, 0x00050084, 0x00000006, 0x000000f9, 0x000000f7, 0x000000c2, 0x00050080,
    0x00000006, 0x000000a7, 0x000000fa, 0x000000f9, 0x000200f9, 0x00000077, 0x000200f8, 0x00000079,
    0x00050041, 0x0000006f, 0x000000a8, 0x0000006c, 0x0000006d, 0x000700ea, 0x00000006, 0x000000aa,
    0x000000a8, 0x00000019, 0x0000001e, 0x000000fb, 0x00050041, 0x0000006f, 0x000000ab, 0x0000006c,
    0x0000006e, 0x000700ea, 0x00000006, 0x000000ad, 0x000000ab, 0x00000019, 0x0000001e, 0x000000fc,
    0x000400e0, 0x00000069, 0x00000069, 0x00000072, 0x000300f7, 0x000000b2, 0x00000000, 0x000400fa,
    0x00000066, 0x000000b1, 0x000000b2, 0x000200f8, 0x000000b1, 0x00060041, 0x00000089, 0x000000b7,
    0x000000b6, 0x0000006d, 0x0000006d, 0x0004003d, 0x00000006, 0x000000b9, 0x000000a8, 0x000700ea,
    0x00000006, 0x000000ba, 0x000000b7, 0x00000019, 0x0000001e, 0x000000b9, 0x00060041, 0x00000089,
    0x000000bb, 0x000000b6, 0x0000006d, 0x0000006e, 0x0004003d, 0x00000006, 0x000000bd, 0x000000ab,
    0x000700ea, 0x00000006, 0x000000be, 0x000000bb, 0x00000019, 0x0000001e, 0x000000bd, 0x000200f9,
    0x000000b2, 0x000200f8, 0x000000b2, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_copy_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x000000a5, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000000c, 0x00000011, 0x00000021,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000000c,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000011, 0x0000000b, 0x00000018, 0x00040047, 0x0000001d,
    0x00000001, 0x00000000, 0x00040047, 0x0000001e, 0x0000000b, 0x00000019, 0x00040047, 0x00000021,
    0x0000000b, 0x0000001b, 0x00050048, 0x00000045, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x00000045, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x00000045, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x00000045, 0x00000002, 0x00040047, 0x00000053, 0x00000006, 0x00000010,
    0x00040048, 0x00000054, 0x00000000, 0x00000018, 0x00050048, 0x00000054, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000054, 0x00000003, 0x00040047, 0x00000056, 0x00000022, 0x00000000,
    0x00040047, 0x00000056, 0x00000021, 0x00000001, 0x00040047, 0x0000006d, 0x00000006, 0x00000010,
    0x00040048, 0x0000006e, 0x00000000, 0x00000019, 0x00050048, 0x0000006e, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000006e, 0x00000003, 0x00040047, 0x00000070, 0x00000022, 0x00000000,
    0x00040047, 0x00000070, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x0000000a, 0x00000006,
    0x00000003, 0x00040020, 0x0000000b, 0x00000001, 0x0000000a, 0x0004003b, 0x0000000b, 0x0000000c,
    0x00000001, 0x0004002b, 0x00000006, 0x0000000d, 0x00000001, 0x00040020, 0x0000000e, 0x00000001,
    0x00000006, 0x0004003b, 0x0000000b, 0x00000011, 0x00000001, 0x0004002b, 0x00000006, 0x00000012,
    0x00000000, 0x00040032, 0x00000006, 0x0000001d, 0x00000040, 0x00060033, 0x0000000a, 0x0000001e,
    0x0000001d, 0x0000000d, 0x0000000d, 0x0004003b, 0x0000000b, 0x00000021, 0x00000001, 0x0004002b,
    0x00000006, 0x00000026, 0x00000004, 0x0004002b, 0x00000006, 0x0000002b, 0x00000008, 0x00020014,
    0x0000002d, 0x0004002b, 0x00000006, 0x00000033, 0x00000020, 0x0004002b, 0x00000006, 0x00000040,
    0x00000003, 0x0005001e, 0x00000045, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x00000046,
    0x00000009, 0x00000045, 0x0004003b, 0x00000046, 0x00000047, 0x00000009, 0x00040015, 0x00000048,
    0x00000020, 0x00000001, 0x0004002b, 0x00000048, 0x00000049, 0x00000000, 0x00040020, 0x0000004a,
    0x00000009, 0x00000006, 0x00040017, 0x00000050, 0x00000006, 0x00000004, 0x0003001d, 0x00000053,
    0x00000050, 0x0003001e, 0x00000054, 0x00000053, 0x00040020, 0x00000055, 0x00000002, 0x00000054,
    0x0004003b, 0x00000055, 0x00000056, 0x00000002, 0x00040020, 0x00000058, 0x00000002, 0x00000050,
    0x0004002b, 0x00000006, 0x00000063, 0x00000002, 0x0003001d, 0x0000006d, 0x00000050, 0x0003001e,
    0x0000006e, 0x0000006d, 0x00040020, 0x0000006f, 0x00000002, 0x0000006e, 0x0004003b, 0x0000006f,
    0x00000070, 0x00000002, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8,
    0x00000005, 0x00050051, 0x00000006, 0x0000001f, 0x0000001e, 0x00000000, 0x00050041, 0x0000000e,
    0x00000022, 0x00000021, 0x00000012, 0x0004003d, 0x00000006, 0x00000023, 0x00000022, 0x00050041,
    0x0000000e, 0x00000098, 0x0000000c, 0x0000000d, 0x0004003d, 0x00000006, 0x00000099, 0x00000098,
    0x00050041, 0x0000000e, 0x0000009a, 0x00000011, 0x00000012, 0x0004003d, 0x00000006, 0x0000009b,
    0x0000009a, 0x00050084, 0x00000006, 0x0000009c, 0x00000099, 0x0000009b, 0x00050041, 0x0000000e,
    0x0000009d, 0x0000000c, 0x00000012, 0x0004003d, 0x00000006, 0x0000009e, 0x0000009d, 0x00050080,
    0x00000006, 0x0000009f, 0x0000009c, 0x0000009e, 0x00050084, 0x00000006, 0x00000027, 0x0000009f,
    0x00000026, 0x00050084, 0x00000006, 0x00000029, 0x00000027, 0x0000001f, 0x00050089, 0x00000006,
    0x0000002c, 0x0000001f, 0x0000002b, 0x000500aa, 0x0000002d, 0x0000002e, 0x0000002c, 0x00000012,
    0x000300f7, 0x00000030, 0x00000000, 0x000400fa, 0x0000002e, 0x0000002f, 0x0000003a, 0x000200f8,
    0x0000002f, 0x00050086, 0x00000006, 0x00000032, 0x00000023, 0x0000002b, 0x00050084, 0x00000006,
    0x00000034, 0x00000032, 0x00000033, 0x00050089, 0x00000006, 0x00000036, 0x00000023, 0x0000002b,
    0x00050080, 0x00000006, 0x00000037, 0x00000034, 0x00000036, 0x00050080, 0x00000006, 0x00000039,
    0x00000029, 0x00000037, 0x000200f9, 0x00000030, 0x000200f8, 0x0000003a, 0x00050080, 0x00000006,
    0x0000003d, 0x00000029, 0x00000023, 0x000200f9, 0x00000030, 0x000200f8, 0x00000030, 0x000700f5,
    0x00000006, 0x000000a0, 0x00000039, 0x0000002f, 0x0000003d, 0x0000003a, 0x000600a9, 0x00000006,
    0x000000a4, 0x0000002e, 0x0000002b, 0x0000001f, 0x00050084, 0x00000006, 0x00000042, 0x00000040,
    0x000000a4, 0x00050080, 0x00000006, 0x00000043, 0x000000a0, 0x00000042, 0x00050041, 0x0000004a,
    0x0000004b, 0x00000047, 0x00000049, 0x0004003d, 0x00000006, 0x0000004c, 0x0000004b, 0x000500b0,
    0x0000002d, 0x0000004d, 0x00000043, 0x0000004c, 0x000300f7, 0x0000004f, 0x00000000, 0x000400fa,
    0x0000004d, 0x0000004e, 0x00000082, 0x000200f8, 0x0000004e, 0x00060041, 0x00000058, 0x00000059,
    0x00000056, 0x00000049, 0x000000a0, 0x0004003d, 0x00000050, 0x0000005a, 0x00000059, 0x00050080,
    0x00000006, 0x0000005e, 0x000000a0, 0x000000a4, 0x00060041, 0x00000058, 0x0000005f, 0x00000056,
    0x00000049, 0x0000005e, 0x0004003d, 0x00000050, 0x00000060, 0x0000005f, 0x00050084, 0x00000006,
    0x00000065, 0x00000063, 0x000000a4, 0x00050080, 0x00000006, 0x00000066, 0x000000a0, 0x00000065,
    0x00060041, 0x00000058, 0x00000067, 0x00000056, 0x00000049, 0x00000066, 0x0004003d, 0x00000050,
    0x00000068, 0x00000067, 0x00060041, 0x00000058, 0x0000006b, 0x00000056, 0x00000049, 0x00000043,
    0x0004003d, 0x00000050, 0x0000006c, 0x0000006b, 0x00060041, 0x00000058, 0x00000073, 0x00000070,
    0x00000049, 0x000000a0, 0x0003003e, 0x00000073, 0x0000005a, 0x00060041, 0x00000058, 0x00000078,
    0x00000070, 0x00000049, 0x0000005e, 0x0003003e, 0x00000078, 0x00000060, 0x00060041, 0x00000058,
    0x0000007e, 0x00000070, 0x00000049, 0x00000066, 0x0003003e, 0x0000007e, 0x00000068, 0x00060041,
    0x00000058, 0x00000081, 0x00000070, 0x00000049, 0x00000043, 0x0003003e, 0x00000081, 0x0000006c,
    0x000200f9, 0x0000004f, 0x000200f8, 0x00000082, 0x000200f9, 0x00000085, 0x000200f8, 0x00000085,
    0x000700f5, 0x00000006, 0x000000a2, 0x000000a0, 0x00000082, 0x00000095, 0x00000086, 0x000500b0,
    0x0000002d, 0x0000008d, 0x000000a2, 0x0000004c, 0x000400f6, 0x00000087, 0x00000086, 0x00000000,
    0x000400fa, 0x0000008d, 0x00000086, 0x00000087, 0x000200f8, 0x00000086, 0x00060041, 0x00000058,
    0x00000090, 0x00000056, 0x00000049, 0x000000a2, 0x0004003d, 0x00000050, 0x00000091, 0x00000090,
    0x00060041, 0x00000058, 0x00000092, 0x00000070, 0x00000049, 0x000000a2, 0x0003003e, 0x00000092,
    0x00000091, 0x00050080, 0x00000006, 0x00000095, 0x000000a2, 0x000000a4, 0x000200f9, 0x00000085,
    0x000200f8, 0x00000087, 0x000200f9, 0x0000004f, 0x000200f8, 0x0000004f, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_copy_uint_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x00000058, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000000e, 0x00000013, 0x00000022,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000000e,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000013, 0x0000000b, 0x00000018, 0x00040047, 0x0000001e,
    0x00000001, 0x00000000, 0x00040047, 0x0000001f, 0x0000000b, 0x00000019, 0x00040047, 0x00000022,
    0x0000000b, 0x0000001b, 0x00050048, 0x0000002c, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x0000002c, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000002c, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x0000002c, 0x00000002, 0x00040047, 0x00000038, 0x00000006, 0x00000004,
    0x00040048, 0x00000039, 0x00000000, 0x00000019, 0x00050048, 0x00000039, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000039, 0x00000003, 0x00040047, 0x0000003b, 0x00000022, 0x00000000,
    0x00040047, 0x0000003b, 0x00000021, 0x00000000, 0x00040047, 0x0000003d, 0x00000006, 0x00000004,
    0x00040048, 0x0000003e, 0x00000000, 0x00000018, 0x00050048, 0x0000003e, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000003e, 0x00000003, 0x00040047, 0x00000040, 0x00000022, 0x00000000,
    0x00040047, 0x00000040, 0x00000021, 0x00000001, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x0000000c, 0x00000006,
    0x00000003, 0x00040020, 0x0000000d, 0x00000001, 0x0000000c, 0x0004003b, 0x0000000d, 0x0000000e,
    0x00000001, 0x0004002b, 0x00000006, 0x0000000f, 0x00000001, 0x00040020, 0x00000010, 0x00000001,
    0x00000006, 0x0004003b, 0x0000000d, 0x00000013, 0x00000001, 0x0004002b, 0x00000006, 0x00000014,
    0x00000000, 0x00040032, 0x00000006, 0x0000001e, 0x00000040, 0x00060033, 0x0000000c, 0x0000001f,
    0x0000001e, 0x0000000f, 0x0000000f, 0x0004003b, 0x0000000d, 0x00000022, 0x00000001, 0x0005001e,
    0x0000002c, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x0000002d, 0x00000009, 0x0000002c,
    0x0004003b, 0x0000002d, 0x0000002e, 0x00000009, 0x00040015, 0x0000002f, 0x00000020, 0x00000001,
    0x0004002b, 0x0000002f, 0x00000030, 0x00000000, 0x00040020, 0x00000031, 0x00000009, 0x00000006,
    0x00020014, 0x00000034, 0x0003001d, 0x00000038, 0x00000006, 0x0003001e, 0x00000039, 0x00000038,
    0x00040020, 0x0000003a, 0x00000002, 0x00000039, 0x0004003b, 0x0000003a, 0x0000003b, 0x00000002,
    0x0003001d, 0x0000003d, 0x00000006, 0x0003001e, 0x0000003e, 0x0000003d, 0x00040020, 0x0000003f,
    0x00000002, 0x0000003e, 0x0004003b, 0x0000003f, 0x00000040, 0x00000002, 0x00040020, 0x00000042,
    0x00000002, 0x00000006, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8,
    0x00000005, 0x00050041, 0x00000010, 0x00000050, 0x0000000e, 0x0000000f, 0x0004003d, 0x00000006,
    0x00000051, 0x00000050, 0x00050041, 0x00000010, 0x00000052, 0x00000013, 0x00000014, 0x0004003d,
    0x00000006, 0x00000053, 0x00000052, 0x00050084, 0x00000006, 0x00000054, 0x00000051, 0x00000053,
    0x00050041, 0x00000010, 0x00000055, 0x0000000e, 0x00000014, 0x0004003d, 0x00000006, 0x00000056,
    0x00000055, 0x00050080, 0x00000006, 0x00000057, 0x00000054, 0x00000056, 0x00050051, 0x00000006,
    0x00000049, 0x0000001f, 0x00000000, 0x00050084, 0x00000006, 0x0000004a, 0x00000057, 0x00000049,
    0x00050041, 0x00000010, 0x0000004b, 0x00000022, 0x00000014, 0x0004003d, 0x00000006, 0x0000004c,
    0x0000004b, 0x00050080, 0x00000006, 0x0000004d, 0x0000004a, 0x0000004c, 0x00050041, 0x00000031,
    0x00000032, 0x0000002e, 0x00000030, 0x0004003d, 0x00000006, 0x00000033, 0x00000032, 0x000500b0,
    0x00000034, 0x00000035, 0x0000004d, 0x00000033, 0x000300f7, 0x00000037, 0x00000000, 0x000400fa,
    0x00000035, 0x00000036, 0x00000037, 0x000200f8, 0x00000036, 0x00060041, 0x00000042, 0x00000043,
    0x00000040, 0x00000030, 0x0000004d, 0x0004003d, 0x00000006, 0x00000044, 0x00000043, 0x00060041,
    0x00000042, 0x00000045, 0x0000003b, 0x00000030, 0x0000004d, 0x0003003e, 0x00000045, 0x00000044,
    0x000200f9, 0x00000037, 0x000200f8, 0x00000037, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_dequantize_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x000002c3, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000002e, 0x00000033, 0x00000042,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000002e,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000033, 0x0000000b, 0x00000018, 0x00040047, 0x0000003e,
    0x00000001, 0x00000000, 0x00040047, 0x0000003f, 0x0000000b, 0x00000019, 0x00040047, 0x00000042,
    0x0000000b, 0x0000001b, 0x00050048, 0x000000c0, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x000000c0, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x000000c0, 0x00000002, 0x00000023,
    0x00000008, 0x00050048, 0x000000c0, 0x00000003, 0x00000023, 0x0000000c, 0x00050048, 0x000000c0,
    0x00000004, 0x00000023, 0x00000010, 0x00040047, 0x000000c1, 0x00000006, 0x00000014, 0x00040048,
    0x000000c2, 0x00000000, 0x00000018, 0x00050048, 0x000000c2, 0x00000000, 0x00000023, 0x00000000,
    0x00030047, 0x000000c2, 0x00000003, 0x00040047, 0x000000c4, 0x00000022, 0x00000000, 0x00040047,
    0x000000c4, 0x00000021, 0x00000002, 0x00050048, 0x000000c6, 0x00000000, 0x00000023, 0x00000000,
    0x00050048, 0x000000c6, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x000000c6, 0x00000002,
    0x00000023, 0x00000008, 0x00050048, 0x000000c6, 0x00000003, 0x00000023, 0x0000000c, 0x00050048,
    0x000000c6, 0x00000004, 0x00000023, 0x00000010, 0x00050048, 0x000000c6, 0x00000005, 0x00000023,
    0x00000014, 0x00030047, 0x000000c6, 0x00000002, 0x00040047, 0x00000148, 0x00000006, 0x00000004,
    0x00040048, 0x00000149, 0x00000000, 0x00000018, 0x00050048, 0x00000149, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000149, 0x00000003, 0x00040047, 0x0000014b, 0x00000022, 0x00000000,
    0x00040047, 0x0000014b, 0x00000021, 0x00000001, 0x00040047, 0x0000017d, 0x00000006, 0x00000004,
    0x00040048, 0x0000017e, 0x00000000, 0x00000019, 0x00050048, 0x0000017e, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000017e, 0x00000003, 0x00040047, 0x00000180, 0x00000022, 0x00000000,
    0x00040047, 0x00000180, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040015, 0x0000000d, 0x00000020,
    0x00000001, 0x00020014, 0x0000000f, 0x00040017, 0x0000002c, 0x00000006, 0x00000003, 0x00040020,
    0x0000002d, 0x00000001, 0x0000002c, 0x0004003b, 0x0000002d, 0x0000002e, 0x00000001, 0x0004002b,
    0x00000006, 0x0000002f, 0x00000001, 0x00040020, 0x00000030, 0x00000001, 0x00000006, 0x0004003b,
    0x0000002d, 0x00000033, 0x00000001, 0x0004002b, 0x00000006, 0x00000034, 0x00000000, 0x00040032,
    0x00000006, 0x0000003e, 0x00000040, 0x00060033, 0x0000002c, 0x0000003f, 0x0000003e, 0x0000002f,
    0x0000002f, 0x0004003b, 0x0000002d, 0x00000042, 0x00000001, 0x0004002b, 0x0000000d, 0x00000049,
    0x0000001f, 0x0004002b, 0x0000000d, 0x0000005a, 0x00000001, 0x0004002b, 0x0000000d, 0x00000079,
    0x00000017, 0x0004002b, 0x00000006, 0x0000007b, 0x000000ff, 0x0004002b, 0x0000000d, 0x0000007e,
    0x00000096, 0x0004002b, 0x00000006, 0x00000081, 0x007fffff, 0x0004002b, 0x0000000d, 0x00000084,
    0xffffff6a, 0x0004002b, 0x00000006, 0x00000088, 0x00800000, 0x0004002b, 0x0000000d, 0x00000094,
    0xffffff6b, 0x0004002b, 0x0000000d, 0x000000ab, 0x000000fe, 0x0004002b, 0x00000006, 0x000000af,
    0x7f7fffff, 0x0007001e, 0x000000c0, 0x00000006, 0x0000000d, 0x0000000d, 0x0000000d, 0x00000006,
    0x0003001d, 0x000000c1, 0x000000c0, 0x0003001e, 0x000000c2, 0x000000c1, 0x00040020, 0x000000c3,
    0x00000002, 0x000000c2, 0x0004003b, 0x000000c3, 0x000000c4, 0x00000002, 0x0004002b, 0x0000000d,
    0x000000c5, 0x00000000, 0x0008001e, 0x000000c6, 0x00000006, 0x00000006, 0x00000006, 0x00000006,
    0x00000006, 0x00000006, 0x00040020, 0x000000c7, 0x00000009, 0x000000c6, 0x0004003b, 0x000000c7,
    0x000000c8, 0x00000009, 0x0004002b, 0x0000000d, 0x000000c9, 0x00000005, 0x00040020, 0x000000ca,
    0x00000009, 0x00000006, 0x0004002b, 0x0000000d, 0x000000cf, 0x00000004, 0x0004002b, 0x0000000d,
    0x000000d3, 0x00000003, 0x00040020, 0x000000d7, 0x00000002, 0x000000c0, 0x0004002b, 0x00000006,
    0x000000f6, 0x80000000, 0x0004002b, 0x00000006, 0x00000101, 0x00000002, 0x0004001e, 0x00000109,
    0x00000006, 0x00000006, 0x0004002b, 0x00000006, 0x00000133, 0x00000004, 0x0004002b, 0x00000006,
    0x0000013c, 0x00000008, 0x0003001d, 0x00000148, 0x00000006, 0x0003001e, 0x00000149, 0x00000148,
    0x00040020, 0x0000014a, 0x00000002, 0x00000149, 0x0004003b, 0x0000014a, 0x0000014b, 0x00000002,
    0x00040020, 0x0000014f, 0x00000002, 0x00000006, 0x0003001d, 0x0000017d, 0x00000006, 0x0003001e,
    0x0000017e, 0x0000017d, 0x00040020, 0x0000017f, 0x00000002, 0x0000017e, 0x0004003b, 0x0000017f,
    0x00000180, 0x00000002, 0x0004002b, 0x0000000d, 0x000002ba, 0xffffff54, 0x00040020, 0x000002be,
    0x00000002, 0x0000000d, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8,
    0x00000005, 0x000300f7, 0x0000018c, 0x00000000, 0x000300fb, 0x00000034, 0x0000018d, 0x000200f8,
    0x0000018d, 0x00050041, 0x000000ca, 0x00000134, 0x000000c8, 0x0000005a, 0x0004003d, 0x00000006,
    0x00000135, 0x00000134, 0x00050086, 0x00000006, 0x00000136, 0x00000133, 0x00000135, 0x00050041,
    0x00000030, 0x000001af, 0x0000002e, 0x0000002f, 0x0004003d, 0x00000006, 0x000001b0, 0x000001af,
    0x00050041, 0x00000030, 0x000001b1, 0x00000033, 0x00000034, 0x0004003d, 0x00000006, 0x000001b2,
    0x000001b1, 0x00050084, 0x00000006, 0x000001b3, 0x000001b0, 0x000001b2, 0x00050041, 0x00000030,
    0x000001b4, 0x0000002e, 0x00000034, 0x0004003d, 0x00000006, 0x000001b5, 0x000001b4, 0x00050080,
    0x00000006, 0x000001b6, 0x000001b3, 0x000001b5, 0x00050051, 0x00000006, 0x000001a8, 0x0000003f,
    0x00000000, 0x00050084, 0x00000006, 0x000001a9, 0x000001b6, 0x000001a8, 0x00050041, 0x00000030,
    0x000001aa, 0x00000042, 0x00000034, 0x0004003d, 0x00000006, 0x000001ab, 0x000001aa, 0x00050080,
    0x00000006, 0x000001ac, 0x000001a9, 0x000001ab, 0x00050084, 0x00000006, 0x0000013a, 0x00000136,
    0x000001ac, 0x00050084, 0x00000006, 0x0000013f, 0x0000013c, 0x00000135, 0x00050041, 0x000000ca,
    0x00000141, 0x000000c8, 0x000000c5, 0x0004003d, 0x00000006, 0x00000142, 0x00000141, 0x000500ae,
    0x0000000f, 0x00000143, 0x0000013a, 0x00000142, 0x000300f7, 0x00000145, 0x00000000, 0x000400fa,
    0x00000143, 0x00000144, 0x00000145, 0x000200f8, 0x00000144, 0x000200f9, 0x0000018c, 0x000200f8,
    0x00000145, 0x00050086, 0x00000006, 0x0000014e, 0x0000013a, 0x00000136, 0x00060041, 0x0000014f,
    0x00000150, 0x0000014b, 0x000000c5, 0x0000014e, 0x0004003d, 0x00000006, 0x00000151, 0x00000150,
    0x000200f9, 0x00000153, 0x000200f8, 0x00000153, 0x000700f5, 0x00000006, 0x000002a6, 0x00000034,
    0x00000145, 0x0000018b, 0x00000156, 0x00050082, 0x00000006, 0x0000015d, 0x00000142, 0x0000013a,
    0x0007000c, 0x00000006, 0x0000015e, 0x00000001, 0x00000026, 0x00000136, 0x0000015d, 0x000500b0,
    0x0000000f, 0x0000015f, 0x000002a6, 0x0000015e, 0x000400f6, 0x00000155, 0x00000156, 0x00000000,
    0x000400fa, 0x0000015f, 0x00000154, 0x00000155, 0x000200f8, 0x00000154, 0x00050080, 0x00000006,
    0x00000163, 0x0000013a, 0x000002a6, 0x00050041, 0x000000ca, 0x000001ba, 0x000000c8, 0x000000c9,
    0x0004003d, 0x00000006, 0x000001bb, 0x000001ba, 0x00050080, 0x00000006, 0x000001bd, 0x000001bb,
    0x00000163, 0x00050041, 0x000000ca, 0x000001be, 0x000000c8, 0x000000cf, 0x0004003d, 0x00000006,
    0x000001bf, 0x000001be, 0x00050086, 0x00000006, 0x000001c0, 0x000001bd, 0x000001bf, 0x00050041,
    0x000000ca, 0x000001c1, 0x000000c8, 0x000000d3, 0x0004003d, 0x00000006, 0x000001c2, 0x000001c1,
    0x00050089, 0x00000006, 0x000001c3, 0x000001c0, 0x000001c2, 0x00060041, 0x000000d7, 0x000001c4,
    0x000000c4, 0x000000c5, 0x000001c3, 0x00050041, 0x0000014f, 0x000002bc, 0x000001c4, 0x00000034,
    0x0004003d, 0x00000006, 0x000002bd, 0x000002bc, 0x00050041, 0x000002be, 0x000002bf, 0x000001c4,
    0x0000002f, 0x0004003d, 0x0000000d, 0x000002c0, 0x000002bf, 0x00050041, 0x000002be, 0x000002c1,
    0x000001c4, 0x00000101, 0x0004003d, 0x0000000d, 0x000002c2, 0x000002c1, 0x00050084, 0x00000006,
    0x00000169, 0x0000013f, 0x000002a6, 0x0004007c, 0x0000000d, 0x0000016a, 0x00000169, 0x0004007c,
    0x0000000d, 0x0000016d, 0x00000151, 0x0004007c, 0x0000000d, 0x00000170, 0x0000013f, 0x000600ca,
    0x0000000d, 0x00000171, 0x0000016d, 0x0000016a, 0x00000170, 0x000500af, 0x0000000f, 0x00000174,
    0x000002c2, 0x000000c5, 0x000300f7, 0x00000176, 0x00000000, 0x000400fa, 0x00000174, 0x00000175,
    0x00000176, 0x000200f8, 0x00000175, 0x000600cb, 0x00000006, 0x0000017b, 0x00000151, 0x0000016a,
    0x00000170, 0x0004007c, 0x0000000d, 0x0000017c, 0x0000017b, 0x000200f9, 0x00000176, 0x000200f8,
    0x00000176, 0x000700f5, 0x0000000d, 0x000002a8, 0x00000171, 0x00000154, 0x0000017c, 0x00000175,
    0x000300f7, 0x00000218, 0x00000000, 0x000300fb, 0x00000034, 0x000001e2, 0x000200f8, 0x000001e2,
    0x00050082, 0x0000000d, 0x000001e6, 0x000002a8, 0x000002c0, 0x000500aa, 0x0000000f, 0x000001e8,
    0x000001e6, 0x000000c5, 0x000300f7, 0x000001ea, 0x00000000, 0x000400fa, 0x000001e8, 0x000001e9,
    0x000001ea, 0x000200f8, 0x000001e9, 0x000200f9, 0x00000218, 0x000200f8, 0x000001ea, 0x000500b1,
    0x0000000f, 0x000001ec, 0x000001e6, 0x000000c5, 0x000600a9, 0x00000006, 0x000001ed, 0x000001ec,
    0x000000f6, 0x00000034, 0x000300f7, 0x00000237, 0x00000000, 0x000300fb, 0x00000034, 0x00000220,
    0x000200f8, 0x00000220, 0x000500c2, 0x00000006, 0x00000222, 0x000002bd, 0x00000079, 0x000500c7,
    0x00000006, 0x00000223, 0x00000222, 0x0000007b, 0x0004007c, 0x0000000d, 0x00000224, 0x00000223,
    0x00050082, 0x0000000d, 0x00000225, 0x00000224, 0x0000007e, 0x000500c7, 0x00000006, 0x00000227,
    0x000002bd, 0x00000081, 0x000500ad, 0x0000000f, 0x00000229, 0x00000225, 0x00000084, 0x000300f7,
    0x0000022e, 0x00000000, 0x000400fa, 0x00000229, 0x0000022a, 0x0000022e, 0x000200f8, 0x0000022a,
    0x000500c5, 0x00000006, 0x0000022c, 0x00000227, 0x00000088, 0x000200f9, 0x00000237, 0x000200f8,
    0x0000022e, 0x0006000c, 0x0000000d, 0x00000230, 0x00000001, 0x0000004b, 0x00000227, 0x00050082,
    0x0000000d, 0x00000231, 0x00000079, 0x00000230, 0x000500c4, 0x00000006, 0x00000234, 0x00000227,
    0x00000231, 0x00050080, 0x0000000d, 0x00000236, 0x00000230, 0x000002ba, 0x000200f9, 0x00000237,
    0x000200f8, 0x00000237, 0x000700f5, 0x00000006, 0x000002aa, 0x0000022c, 0x0000022a, 0x00000234,
    0x0000022e, 0x000700f5, 0x0000000d, 0x000002a9, 0x00000225, 0x0000022a, 0x00000236, 0x0000022e,
    0x00050082, 0x0000000d, 0x000001f2, 0x000002a9, 0x0000005a, 0x00050084, 0x00000006, 0x000001f4,
    0x00000101, 0x000002aa, 0x0006000c, 0x0000000d, 0x000001f6, 0x00000001, 0x00000005, 0x000001e6,
    0x0004007c, 0x00000006, 0x000001f7, 0x000001f6, 0x00050097, 0x00000109, 0x000001f8, 0x000001f4,
    0x000001f7, 0x00050051, 0x00000006, 0x000001f9, 0x000001f8, 0x00000000, 0x00050051, 0x00000006,
    0x000001fa, 0x000001f8, 0x00000001, 0x0006000c, 0x0000000d, 0x000001fc, 0x00000001, 0x0000004b,
    0x000001fa, 0x00050080, 0x0000000d, 0x000001fd, 0x000001fc, 0x0000005a, 0x000500c4, 0x00000006,
    0x00000200, 0x0000002f, 0x000001fd, 0x00050082, 0x00000006, 0x00000201, 0x00000200, 0x0000002f,
    0x000500c7, 0x00000006, 0x00000202, 0x000001f9, 0x00000201, 0x000500ab, 0x0000000f, 0x00000203,
    0x00000202, 0x00000034, 0x000500ab, 0x0000000f, 0x00000205, 0x000001fd, 0x000000c5, 0x000300f7,
    0x0000020f, 0x00000000, 0x000400fa, 0x00000205, 0x00000206, 0x0000020f, 0x000200f8, 0x00000206,
    0x00050082, 0x0000000d, 0x00000209, 0x00000049, 0x000001fc, 0x000500c4, 0x00000006, 0x0000020a,
    0x000001fa, 0x00000209, 0x000500c2, 0x00000006, 0x0000020d, 0x000001f9, 0x000001fd, 0x000500c5,
    0x00000006, 0x0000020e, 0x0000020a, 0x0000020d, 0x000200f9, 0x0000020f, 0x000200f8, 0x0000020f,
    0x000700f5, 0x00000006, 0x000002ab, 0x000001f9, 0x00000237, 0x0000020e, 0x00000206, 0x00050080,
    0x0000000d, 0x00000213, 0x000001f2, 0x000001fd, 0x000300f7, 0x00000260, 0x00000000, 0x000300fb,
    0x00000034, 0x00000242, 0x000200f8, 0x00000242, 0x0006000c, 0x0000000d, 0x00000244, 0x00000001,
    0x0000004b, 0x000002ab, 0x00050082, 0x0000000d, 0x00000245, 0x00000244, 0x00000079, 0x00050080,
    0x0000000d, 0x00000248, 0x00000213, 0x00000245, 0x00050080, 0x0000000d, 0x00000249, 0x00000248,
    0x0000007e, 0x000500b1, 0x0000000f, 0x0000024b, 0x00000249, 0x0000005a, 0x000300f7, 0x00000251,
    0x00000000, 0x000400fa, 0x0000024b, 0x0000024c, 0x00000251, 0x000200f8, 0x0000024c, 0x00050082,
    0x0000000d, 0x0000024e, 0x00000094, 0x00000248, 0x00050080, 0x0000000d, 0x00000250, 0x00000245,
    0x0000024e, 0x000200f9, 0x00000251, 0x000200f8, 0x00000251, 0x000700f5, 0x0000000d, 0x000002ad,
    0x00000245, 0x00000242, 0x00000250, 0x0000024c, 0x000600a9, 0x0000000d, 0x000002bb, 0x0000024b,
    0x0000005a, 0x00000249, 0x000500ad, 0x0000000f, 0x00000253, 0x000002bb, 0x000000ab, 0x000300f7,
    0x00000255, 0x00000000, 0x000400fa, 0x00000253, 0x00000254, 0x00000255, 0x000200f8, 0x00000254,
    0x000200f9, 0x00000260, 0x000200f8, 0x00000255, 0x00050082, 0x0000000d, 0x00000257, 0x000002bb,
    0x0000005a, 0x0004007c, 0x00000006, 0x00000258, 0x00000257, 0x000500c4, 0x00000006, 0x00000259,
    0x00000258, 0x00000079, 0x000300f7, 0x00000291, 0x00000000, 0x000300fb, 0x00000034, 0x00000269,
    0x000200f8, 0x00000269, 0x000500ad, 0x0000000f, 0x0000026b, 0x000002ad, 0x00000049, 0x000300f7,
    0x0000026d, 0x00000000, 0x000400fa, 0x0000026b, 0x0000026c, 0x0000026d, 0x000200f8, 0x0000026c,
    0x000200f9, 0x00000291, 0x000200f8, 0x0000026d, 0x000500c2, 0x00000006, 0x00000270, 0x000002ab,
    0x000002ad, 0x000500c4, 0x00000006, 0x00000273, 0x0000002f, 0x000002ad, 0x00050082, 0x00000006,
    0x00000274, 0x00000273, 0x0000002f, 0x000500c7, 0x00000006, 0x00000275, 0x000002ab, 0x00000274,
    0x00050082, 0x0000000d, 0x00000277, 0x000002ad, 0x0000005a, 0x000500c4, 0x00000006, 0x00000278,
    0x0000002f, 0x00000277, 0x000500ac, 0x0000000f, 0x0000027c, 0x00000275, 0x00000278, 0x000400a8,
    0x0000000f, 0x0000027d, 0x0000027c, 0x000300f7, 0x0000028d, 0x00000000, 0x000400fa, 0x0000027d,
    0x0000027e, 0x0000028d, 0x000200f8, 0x0000027e, 0x000500aa, 0x0000000f, 0x00000281, 0x00000275,
    0x00000278, 0x000300f7, 0x0000028b, 0x00000000, 0x000400fa, 0x00000281, 0x00000282, 0x0000028b,
    0x000200f8, 0x00000282, 0x000400a8, 0x0000000f, 0x00000284, 0x00000203, 0x000300f7, 0x00000289,
    0x00000000, 0x000400fa, 0x00000284, 0x00000285, 0x00000289, 0x000200f8, 0x00000285, 0x000500c7,
    0x00000006, 0x00000287, 0x00000270, 0x0000002f, 0x000500ab, 0x0000000f, 0x00000288, 0x00000287,
    0x00000034, 0x000200f9, 0x00000289, 0x000200f8, 0x00000289, 0x000700f5, 0x0000000f, 0x0000028a,
    0x00000203, 0x00000282, 0x00000288, 0x00000285, 0x000200f9, 0x0000028b, 0x000200f8, 0x0000028b,
    0x000700f5, 0x0000000f, 0x0000028c, 0x00000281, 0x0000027e, 0x0000028a, 0x00000289, 0x000200f9,
    0x0000028d, 0x000200f8, 0x0000028d, 0x000700f5, 0x0000000f, 0x0000028e, 0x0000027c, 0x0000026d,
    0x0000028c, 0x0000028b, 0x000600a9, 0x00000006, 0x0000028f, 0x0000028e, 0x0000002f, 0x00000034,
    0x00050080, 0x00000006, 0x00000290, 0x00000270, 0x0000028f, 0x000200f9, 0x00000291, 0x000200f8,
    0x00000291, 0x000700f5, 0x00000006, 0x000002ae, 0x00000034, 0x0000026c, 0x00000290, 0x0000028d,
    0x00050080, 0x00000006, 0x0000025e, 0x00000259, 0x000002ae, 0x0007000c, 0x00000006, 0x0000025f,
    0x00000001, 0x00000026, 0x0000025e, 0x000000af, 0x000200f9, 0x00000260, 0x000200f8, 0x00000260,
    0x000700f5, 0x00000006, 0x000002af, 0x000000af, 0x00000254, 0x0000025f, 0x00000291, 0x000500c5,
    0x00000006, 0x00000217, 0x000001ed, 0x000002af, 0x000200f9, 0x00000218, 0x000200f8, 0x00000218,
    0x000700f5, 0x00000006, 0x000002b0, 0x00000034, 0x000001e9, 0x00000217, 0x00000260, 0x00060041,
    0x0000014f, 0x00000189, 0x00000180, 0x000000c5, 0x00000163, 0x0003003e, 0x00000189, 0x000002b0,
    0x000200f9, 0x00000156, 0x000200f8, 0x00000156, 0x00050080, 0x00000006, 0x0000018b, 0x000002a6,
    0x0000005a, 0x000200f9, 0x00000153, 0x000200f8, 0x00000155, 0x000200f9, 0x0000018c, 0x000200f8,
    0x0000018c, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_fill_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x00000054, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000000e, 0x00000013, 0x00000022,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000000e,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000013, 0x0000000b, 0x00000018, 0x00040047, 0x0000001e,
    0x00000001, 0x00000000, 0x00040047, 0x0000001f, 0x0000000b, 0x00000019, 0x00040047, 0x00000022,
    0x0000000b, 0x0000001b, 0x00050048, 0x0000002c, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x0000002c, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000002c, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x0000002c, 0x00000002, 0x00040047, 0x00000038, 0x00000006, 0x00000004,
    0x00040048, 0x00000039, 0x00000000, 0x00000019, 0x00050048, 0x00000039, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000039, 0x00000003, 0x00040047, 0x0000003b, 0x00000022, 0x00000000,
    0x00040047, 0x0000003b, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x0000000c, 0x00000006,
    0x00000003, 0x00040020, 0x0000000d, 0x00000001, 0x0000000c, 0x0004003b, 0x0000000d, 0x0000000e,
    0x00000001, 0x0004002b, 0x00000006, 0x0000000f, 0x00000001, 0x00040020, 0x00000010, 0x00000001,
    0x00000006, 0x0004003b, 0x0000000d, 0x00000013, 0x00000001, 0x0004002b, 0x00000006, 0x00000014,
    0x00000000, 0x00040032, 0x00000006, 0x0000001e, 0x00000040, 0x00060033, 0x0000000c, 0x0000001f,
    0x0000001e, 0x0000000f, 0x0000000f, 0x0004003b, 0x0000000d, 0x00000022, 0x00000001, 0x0005001e,
    0x0000002c, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x0000002d, 0x00000009, 0x0000002c,
    0x0004003b, 0x0000002d, 0x0000002e, 0x00000009, 0x00040015, 0x0000002f, 0x00000020, 0x00000001,
    0x0004002b, 0x0000002f, 0x00000030, 0x00000000, 0x00040020, 0x00000031, 0x00000009, 0x00000006,
    0x00020014, 0x00000034, 0x0003001d, 0x00000038, 0x00000006, 0x0003001e, 0x00000039, 0x00000038,
    0x00040020, 0x0000003a, 0x00000002, 0x00000039, 0x0004003b, 0x0000003a, 0x0000003b, 0x00000002,
    0x0004002b, 0x0000002f, 0x0000003d, 0x00000001, 0x00040020, 0x00000040, 0x00000002, 0x00000006,
    0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x00050041,
    0x00000010, 0x0000004c, 0x0000000e, 0x0000000f, 0x0004003d, 0x00000006, 0x0000004d, 0x0000004c,
    0x00050041, 0x00000010, 0x0000004e, 0x00000013, 0x00000014, 0x0004003d, 0x00000006, 0x0000004f,
    0x0000004e, 0x00050084, 0x00000006, 0x00000050, 0x0000004d, 0x0000004f, 0x00050041, 0x00000010,
    0x00000051, 0x0000000e, 0x00000014, 0x0004003d, 0x00000006, 0x00000052, 0x00000051, 0x00050080,
    0x00000006, 0x00000053, 0x00000050, 0x00000052, 0x00050051, 0x00000006, 0x00000045, 0x0000001f,
    0x00000000, 0x00050084, 0x00000006, 0x00000046, 0x00000053, 0x00000045, 0x00050041, 0x00000010,
    0x00000047, 0x00000022, 0x00000014, 0x0004003d, 0x00000006, 0x00000048, 0x00000047, 0x00050080,
    0x00000006, 0x00000049, 0x00000046, 0x00000048, 0x00050041, 0x00000031, 0x00000032, 0x0000002e,
    0x00000030, 0x0004003d, 0x00000006, 0x00000033, 0x00000032, 0x000500b0, 0x00000034, 0x00000035,
    0x00000049, 0x00000033, 0x000300f7, 0x00000037, 0x00000000, 0x000400fa, 0x00000035, 0x00000036,
    0x00000037, 0x000200f8, 0x00000036, 0x00050041, 0x00000031, 0x0000003e, 0x0000002e, 0x0000003d,
    0x0004003d, 0x00000006, 0x0000003f, 0x0000003e, 0x00060041, 0x00000040, 0x00000041, 0x0000003b,
    0x00000030, 0x00000049, 0x0003003e, 0x00000041, 0x0000003f, 0x000200f9, 0x00000037, 0x000200f8,
    0x00000037, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_from_bf16_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x000000b0, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00000013, 0x00000018, 0x00000027,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000013,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000018, 0x0000000b, 0x00000018, 0x00040047, 0x00000023,
    0x00000001, 0x00000000, 0x00040047, 0x00000024, 0x0000000b, 0x00000019, 0x00040047, 0x00000027,
    0x0000000b, 0x0000001b, 0x00050048, 0x00000048, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x00000048, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x00000048, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x00000048, 0x00000002, 0x00040047, 0x00000054, 0x00000006, 0x00000004,
    0x00040048, 0x00000055, 0x00000000, 0x00000018, 0x00050048, 0x00000055, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000055, 0x00000003, 0x00040047, 0x00000057, 0x00000022, 0x00000000,
    0x00040047, 0x00000057, 0x00000021, 0x00000001, 0x00040047, 0x0000005d, 0x00000006, 0x00000004,
    0x00040048, 0x0000005e, 0x00000000, 0x00000019, 0x00050048, 0x0000005e, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000005e, 0x00000003, 0x00040047, 0x00000060, 0x00000022, 0x00000000,
    0x00040047, 0x00000060, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x00000011, 0x00000006,
    0x00000003, 0x00040020, 0x00000012, 0x00000001, 0x00000011, 0x0004003b, 0x00000012, 0x00000013,
    0x00000001, 0x0004002b, 0x00000006, 0x00000014, 0x00000001, 0x00040020, 0x00000015, 0x00000001,
    0x00000006, 0x0004003b, 0x00000012, 0x00000018, 0x00000001, 0x0004002b, 0x00000006, 0x00000019,
    0x00000000, 0x00040032, 0x00000006, 0x00000023, 0x00000040, 0x00060033, 0x00000011, 0x00000024,
    0x00000023, 0x00000014, 0x00000014, 0x0004003b, 0x00000012, 0x00000027, 0x00000001, 0x00040015,
    0x0000002f, 0x00000020, 0x00000001, 0x0004002b, 0x0000002f, 0x00000030, 0x00000010, 0x0004002b,
    0x00000006, 0x00000033, 0x7fffffff, 0x0004002b, 0x00000006, 0x00000035, 0x7f800000, 0x00020014,
    0x00000036, 0x0004002b, 0x00000006, 0x0000003c, 0x00400000, 0x0004002b, 0x00000006, 0x00000044,
    0x00000002, 0x0005001e, 0x00000048, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x00000049,
    0x00000009, 0x00000048, 0x0004003b, 0x00000049, 0x0000004a, 0x00000009, 0x0004002b, 0x0000002f,
    0x0000004b, 0x00000000, 0x00040020, 0x0000004c, 0x00000009, 0x00000006, 0x0003001d, 0x00000054,
    0x00000006, 0x0003001e, 0x00000055, 0x00000054, 0x00040020, 0x00000056, 0x00000002, 0x00000055,
    0x0004003b, 0x00000056, 0x00000057, 0x00000002, 0x00040020, 0x0000005a, 0x00000002, 0x00000006,
    0x0003001d, 0x0000005d, 0x00000006, 0x0003001e, 0x0000005e, 0x0000005d, 0x00040020, 0x0000005f,
    0x00000002, 0x0000005e, 0x0004003b, 0x0000005f, 0x00000060, 0x00000002, 0x0004002b, 0x00000006,
    0x00000063, 0x0000ffff, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8,
    0x00000005, 0x000300f7, 0x00000076, 0x00000000, 0x000300fb, 0x00000019, 0x00000077, 0x000200f8,
    0x00000077, 0x00050041, 0x00000015, 0x00000086, 0x00000013, 0x00000014, 0x0004003d, 0x00000006,
    0x00000087, 0x00000086, 0x00050041, 0x00000015, 0x00000088, 0x00000018, 0x00000019, 0x0004003d,
    0x00000006, 0x00000089, 0x00000088, 0x00050084, 0x00000006, 0x0000008a, 0x00000087, 0x00000089,
    0x00050041, 0x00000015, 0x0000008b, 0x00000013, 0x00000019, 0x0004003d, 0x00000006, 0x0000008c,
    0x0000008b, 0x00050080, 0x00000006, 0x0000008d, 0x0000008a, 0x0000008c, 0x00050051, 0x00000006,
    0x0000007f, 0x00000024, 0x00000000, 0x00050084, 0x00000006, 0x00000080, 0x0000008d, 0x0000007f,
    0x00050041, 0x00000015, 0x00000081, 0x00000027, 0x00000019, 0x0004003d, 0x00000006, 0x00000082,
    0x00000081, 0x00050080, 0x00000006, 0x00000083, 0x00000080, 0x00000082, 0x00050084, 0x00000006,
    0x00000046, 0x00000044, 0x00000083, 0x00050041, 0x0000004c, 0x0000004d, 0x0000004a, 0x0000004b,
    0x0004003d, 0x00000006, 0x0000004e, 0x0000004d, 0x000500ae, 0x00000036, 0x0000004f, 0x00000046,
    0x0000004e, 0x000300f7, 0x00000051, 0x00000000, 0x000400fa, 0x0000004f, 0x00000050, 0x00000051,
    0x000200f8, 0x00000050, 0x000200f9, 0x00000076, 0x000200f8, 0x00000051, 0x00050086, 0x00000006,
    0x00000059, 0x00000046, 0x00000044, 0x00060041, 0x0000005a, 0x0000005b, 0x00000057, 0x0000004b,
    0x00000059, 0x0004003d, 0x00000006, 0x0000005c, 0x0000005b, 0x000500c7, 0x00000006, 0x00000064,
    0x0000005c, 0x00000063, 0x000500c4, 0x00000006, 0x00000093, 0x00000064, 0x00000030, 0x000500c7,
    0x00000006, 0x00000095, 0x00000093, 0x00000033, 0x000500ac, 0x00000036, 0x00000096, 0x00000095,
    0x00000035, 0x000300f7, 0x0000009c, 0x00000000, 0x000400fa, 0x00000096, 0x00000097, 0x0000009a,
    0x000200f8, 0x00000097, 0x000500c5, 0x00000006, 0x00000099, 0x00000093, 0x0000003c, 0x000200f9,
    0x0000009c, 0x000200f8, 0x0000009a, 0x000200f9, 0x0000009c, 0x000200f8, 0x0000009c, 0x000700f5,
    0x00000006, 0x000000ae, 0x00000099, 0x00000097, 0x00000093, 0x0000009a, 0x00060041, 0x0000005a,
    0x00000067, 0x00000060, 0x0000004b, 0x00000046, 0x0003003e, 0x00000067, 0x000000ae, 0x00050080,
    0x00000006, 0x00000069, 0x00000046, 0x00000014, 0x000500b0, 0x00000036, 0x0000006c, 0x00000069,
    0x0000004e, 0x000300f7, 0x0000006e, 0x00000000, 0x000400fa, 0x0000006c, 0x0000006d, 0x0000006e,
    0x000200f8, 0x0000006d, 0x000500c2, 0x00000006, 0x00000072, 0x0000005c, 0x00000030, 0x000500c4,
    0x00000006, 0x000000a3, 0x00000072, 0x00000030, 0x000500c7, 0x00000006, 0x000000a5, 0x000000a3,
    0x00000033, 0x000500ac, 0x00000036, 0x000000a6, 0x000000a5, 0x00000035, 0x000300f7, 0x000000ac,
    0x00000000, 0x000400fa, 0x000000a6, 0x000000a7, 0x000000aa, 0x000200f8, 0x000000a7, 0x000500c5,
    0x00000006, 0x000000a9, 0x000000a3, 0x0000003c, 0x000200f9, 0x000000ac, 0x000200f8, 0x000000aa,
    0x000200f9, 0x000000ac, 0x000200f8, 0x000000ac, 0x000700f5, 0x00000006, 0x000000af, 0x000000a9,
    0x000000a7, 0x000000a3, 0x000000aa, 0x00060041, 0x0000005a, 0x00000075, 0x00000060, 0x0000004b,
    0x00000069, 0x0003003e, 0x00000075, 0x000000af, 0x000200f9, 0x0000006e, 0x000200f8, 0x0000006e,
    0x000200f9, 0x00000076, 0x000200f8, 0x00000076, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_from_f16_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x0000015a, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00000013, 0x00000018, 0x00000027,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000013,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000018, 0x0000000b, 0x00000018, 0x00040047, 0x00000023,
    0x00000001, 0x00000000, 0x00040047, 0x00000024, 0x0000000b, 0x00000019, 0x00040047, 0x00000027,
    0x0000000b, 0x0000001b, 0x00050048, 0x00000082, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x00000082, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x00000082, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x00000082, 0x00000002, 0x00040047, 0x0000008e, 0x00000006, 0x00000004,
    0x00040048, 0x0000008f, 0x00000000, 0x00000018, 0x00050048, 0x0000008f, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000008f, 0x00000003, 0x00040047, 0x00000091, 0x00000022, 0x00000000,
    0x00040047, 0x00000091, 0x00000021, 0x00000001, 0x00040047, 0x00000097, 0x00000006, 0x00000004,
    0x00040048, 0x00000098, 0x00000000, 0x00000019, 0x00050048, 0x00000098, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000098, 0x00000003, 0x00040047, 0x0000009a, 0x00000022, 0x00000000,
    0x00040047, 0x0000009a, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x00000011, 0x00000006,
    0x00000003, 0x00040020, 0x00000012, 0x00000001, 0x00000011, 0x0004003b, 0x00000012, 0x00000013,
    0x00000001, 0x0004002b, 0x00000006, 0x00000014, 0x00000001, 0x00040020, 0x00000015, 0x00000001,
    0x00000006, 0x0004003b, 0x00000012, 0x00000018, 0x00000001, 0x0004002b, 0x00000006, 0x00000019,
    0x00000000, 0x00040032, 0x00000006, 0x00000023, 0x00000040, 0x00060033, 0x00000011, 0x00000024,
    0x00000023, 0x00000014, 0x00000014, 0x0004003b, 0x00000012, 0x00000027, 0x00000001, 0x0004002b,
    0x00000006, 0x0000002f, 0x00008000, 0x00040015, 0x00000031, 0x00000020, 0x00000001, 0x0004002b,
    0x00000031, 0x00000032, 0x00000010, 0x0004002b, 0x00000031, 0x00000036, 0x0000000a, 0x0004002b,
    0x00000006, 0x00000038, 0x0000001f, 0x0004002b, 0x00000006, 0x0000003c, 0x000003ff, 0x00020014,
    0x0000003f, 0x0004002b, 0x00000006, 0x00000044, 0x7f800000, 0x0004002b, 0x00000006, 0x0000004b,
    0x00400000, 0x0004002b, 0x00000031, 0x0000004d, 0x0000000d, 0x0004002b, 0x00000006, 0x0000005a,
    0x00000070, 0x0004002b, 0x00000031, 0x0000005c, 0x00000017, 0x0004002b, 0x00000006, 0x0000007e,
    0x00000002, 0x0005001e, 0x00000082, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x00000083,
    0x00000009, 0x00000082, 0x0004003b, 0x00000083, 0x00000084, 0x00000009, 0x0004002b, 0x00000031,
    0x00000085, 0x00000000, 0x00040020, 0x00000086, 0x00000009, 0x00000006, 0x0003001d, 0x0000008e,
    0x00000006, 0x0003001e, 0x0000008f, 0x0000008e, 0x00040020, 0x00000090, 0x00000002, 0x0000008f,
    0x0004003b, 0x00000090, 0x00000091, 0x00000002, 0x00040020, 0x00000094, 0x00000002, 0x00000006,
    0x0003001d, 0x00000097, 0x00000006, 0x0003001e, 0x00000098, 0x00000097, 0x00040020, 0x00000099,
    0x00000002, 0x00000098, 0x0004003b, 0x00000099, 0x0000009a, 0x00000002, 0x0004002b, 0x00000006,
    0x0000009d, 0x0000ffff, 0x0004002b, 0x00000031, 0x00000159, 0x00000067, 0x00050036, 0x00000002,
    0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x000300f7, 0x000000b0, 0x00000000,
    0x000300fb, 0x00000019, 0x000000b1, 0x000200f8, 0x000000b1, 0x00050041, 0x00000015, 0x000000c5,
    0x00000013, 0x00000014, 0x0004003d, 0x00000006, 0x000000c6, 0x000000c5, 0x00050041, 0x00000015,
    0x000000c7, 0x00000018, 0x00000019, 0x0004003d, 0x00000006, 0x000000c8, 0x000000c7, 0x00050084,
    0x00000006, 0x000000c9, 0x000000c6, 0x000000c8, 0x00050041, 0x00000015, 0x000000ca, 0x00000013,
    0x00000019, 0x0004003d, 0x00000006, 0x000000cb, 0x000000ca, 0x00050080, 0x00000006, 0x000000cc,
    0x000000c9, 0x000000cb, 0x00050051, 0x00000006, 0x000000be, 0x00000024, 0x00000000, 0x00050084,
    0x00000006, 0x000000bf, 0x000000cc, 0x000000be, 0x00050041, 0x00000015, 0x000000c0, 0x00000027,
    0x00000019, 0x0004003d, 0x00000006, 0x000000c1, 0x000000c0, 0x00050080, 0x00000006, 0x000000c2,
    0x000000bf, 0x000000c1, 0x00050084, 0x00000006, 0x00000080, 0x0000007e, 0x000000c2, 0x00050041,
    0x00000086, 0x00000087, 0x00000084, 0x00000085, 0x0004003d, 0x00000006, 0x00000088, 0x00000087,
    0x000500ae, 0x0000003f, 0x00000089, 0x00000080, 0x00000088, 0x000300f7, 0x0000008b, 0x00000000,
    0x000400fa, 0x00000089, 0x0000008a, 0x0000008b, 0x000200f8, 0x0000008a, 0x000200f9, 0x000000b0,
    0x000200f8, 0x0000008b, 0x00050086, 0x00000006, 0x00000093, 0x00000080, 0x0000007e, 0x00060041,
    0x00000094, 0x00000095, 0x00000091, 0x00000085, 0x00000093, 0x0004003d, 0x00000006, 0x00000096,
    0x00000095, 0x000500c7, 0x00000006, 0x0000009e, 0x00000096, 0x0000009d, 0x000300f7, 0x0000010f,
    0x00000000, 0x000300fb, 0x00000019, 0x000000d6, 0x000200f8, 0x000000d6, 0x000500c7, 0x00000006,
    0x000000d8, 0x0000009e, 0x0000002f, 0x000500c4, 0x00000006, 0x000000d9, 0x000000d8, 0x00000032,
    0x000500c2, 0x00000006, 0x000000db, 0x0000009e, 0x00000036, 0x000500c7, 0x00000006, 0x000000dc,
    0x000000db, 0x00000038, 0x000500c7, 0x00000006, 0x000000de, 0x0000009e, 0x0000003c, 0x000500aa,
    0x0000003f, 0x000000e0, 0x000000dc, 0x00000038, 0x000300f7, 0x000000ee, 0x00000000, 0x000400fa,
    0x000000e0, 0x000000e1, 0x000000ee, 0x000200f8, 0x000000e1, 0x000500c5, 0x00000006, 0x000000e3,
    0x000000d9, 0x00000044, 0x000500ab, 0x0000003f, 0x000000e5, 0x000000de, 0x00000019, 0x000300f7,
    0x000000eb, 0x00000000, 0x000400fa, 0x000000e5, 0x000000e6, 0x000000ea, 0x000200f8, 0x000000e6,
    0x000500c4, 0x00000006, 0x000000e8, 0x000000de, 0x0000004d, 0x000500c5, 0x00000006, 0x000000e9,
    0x0000004b, 0x000000e8, 0x000200f9, 0x000000eb, 0x000200f8, 0x000000ea, 0x000200f9, 0x000000eb,
    0x000200f8, 0x000000eb, 0x000700f5, 0x00000006, 0x00000155, 0x000000e9, 0x000000e6, 0x00000019,
    0x000000ea, 0x000500c5, 0x00000006, 0x000000ed, 0x000000e3, 0x00000155, 0x000200f9, 0x0000010f,
    0x000200f8, 0x000000ee, 0x000500ab, 0x0000003f, 0x000000f0, 0x000000dc, 0x00000019, 0x000300f7,
    0x000000fa, 0x00000000, 0x000400fa, 0x000000f0, 0x000000f1, 0x000000fa, 0x000200f8, 0x000000f1,
    0x00050080, 0x00000006, 0x000000f4, 0x000000dc, 0x0000005a, 0x000500c4, 0x00000006, 0x000000f5,
    0x000000f4, 0x0000005c, 0x000500c5, 0x00000006, 0x000000f6, 0x000000d9, 0x000000f5, 0x000500c4,
    0x00000006, 0x000000f8, 0x000000de, 0x0000004d, 0x000500c5, 0x00000006, 0x000000f9, 0x000000f6,
    0x000000f8, 0x000200f9, 0x0000010f, 0x000200f8, 0x000000fa, 0x000500aa, 0x0000003f, 0x000000fc,
    0x000000de, 0x00000019, 0x000300f7, 0x000000ff, 0x00000000, 0x000400fa, 0x000000fc, 0x000000fd,
    0x000000ff, 0x000200f8, 0x000000fd, 0x000200f9, 0x0000010f, 0x000200f8, 0x000000ff, 0x0006000c,
    0x00000031, 0x00000101, 0x00000001, 0x0000004b, 0x000000de, 0x00050082, 0x00000031, 0x00000102,
    0x00000036, 0x00000101, 0x00050080, 0x00000031, 0x00000105, 0x00000101, 0x00000159, 0x0004007c,
    0x00000006, 0x00000106, 0x00000105, 0x000500c4, 0x00000006, 0x00000107, 0x00000106, 0x0000005c,
    0x000500c5, 0x00000006, 0x00000108, 0x000000d9, 0x00000107, 0x000500c4, 0x00000006, 0x0000010b,
    0x000000de, 0x00000102, 0x000500c7, 0x00000006, 0x0000010c, 0x0000010b, 0x0000003c, 0x000500c4,
    0x00000006, 0x0000010d, 0x0000010c, 0x0000004d, 0x000500c5, 0x00000006, 0x0000010e, 0x00000108,
    0x0000010d, 0x000200f9, 0x0000010f, 0x000200f8, 0x0000010f, 0x000b00f5, 0x00000006, 0x00000156,
    0x000000ed, 0x000000eb, 0x000000f9, 0x000000f1, 0x000000d9, 0x000000fd, 0x0000010e, 0x000000ff,
    0x00060041, 0x00000094, 0x000000a1, 0x0000009a, 0x00000085, 0x00000080, 0x0003003e, 0x000000a1,
    0x00000156, 0x00050080, 0x00000006, 0x000000a3, 0x00000080, 0x00000014, 0x000500b0, 0x0000003f,
    0x000000a6, 0x000000a3, 0x00000088, 0x000300f7, 0x000000a8, 0x00000000, 0x000400fa, 0x000000a6,
    0x000000a7, 0x000000a8, 0x000200f8, 0x000000a7, 0x000500c2, 0x00000006, 0x000000ac, 0x00000096,
    0x00000032, 0x000300f7, 0x00000153, 0x00000000, 0x000300fb, 0x00000019, 0x0000011a, 0x000200f8,
    0x0000011a, 0x000500c7, 0x00000006, 0x0000011c, 0x000000ac, 0x0000002f, 0x000500c4, 0x00000006,
    0x0000011d, 0x0000011c, 0x00000032, 0x000500c2, 0x00000006, 0x0000011f, 0x000000ac, 0x00000036,
    0x000500c7, 0x00000006, 0x00000120, 0x0000011f, 0x00000038, 0x000500c7, 0x00000006, 0x00000122,
    0x000000ac, 0x0000003c, 0x000500aa, 0x0000003f, 0x00000124, 0x00000120, 0x00000038, 0x000300f7,
    0x00000132, 0x00000000, 0x000400fa, 0x00000124, 0x00000125, 0x00000132, 0x000200f8, 0x00000125,
    0x000500c5, 0x00000006, 0x00000127, 0x0000011d, 0x00000044, 0x000500ab, 0x0000003f, 0x00000129,
    0x00000122, 0x00000019, 0x000300f7, 0x0000012f, 0x00000000, 0x000400fa, 0x00000129, 0x0000012a,
    0x0000012e, 0x000200f8, 0x0000012a, 0x000500c4, 0x00000006, 0x0000012c, 0x00000122, 0x0000004d,
    0x000500c5, 0x00000006, 0x0000012d, 0x0000004b, 0x0000012c, 0x000200f9, 0x0000012f, 0x000200f8,
    0x0000012e, 0x000200f9, 0x0000012f, 0x000200f8, 0x0000012f, 0x000700f5, 0x00000006, 0x00000157,
    0x0000012d, 0x0000012a, 0x00000019, 0x0000012e, 0x000500c5, 0x00000006, 0x00000131, 0x00000127,
    0x00000157, 0x000200f9, 0x00000153, 0x000200f8, 0x00000132, 0x000500ab, 0x0000003f, 0x00000134,
    0x00000120, 0x00000019, 0x000300f7, 0x0000013e, 0x00000000, 0x000400fa, 0x00000134, 0x00000135,
    0x0000013e, 0x000200f8, 0x00000135, 0x00050080, 0x00000006, 0x00000138, 0x00000120, 0x0000005a,
    0x000500c4, 0x00000006, 0x00000139, 0x00000138, 0x0000005c, 0x000500c5, 0x00000006, 0x0000013a,
    0x0000011d, 0x00000139, 0x000500c4, 0x00000006, 0x0000013c, 0x00000122, 0x0000004d, 0x000500c5,
    0x00000006, 0x0000013d, 0x0000013a, 0x0000013c, 0x000200f9, 0x00000153, 0x000200f8, 0x0000013e,
    0x000500aa, 0x0000003f, 0x00000140, 0x00000122, 0x00000019, 0x000300f7, 0x00000143, 0x00000000,
    0x000400fa, 0x00000140, 0x00000141, 0x00000143, 0x000200f8, 0x00000141, 0x000200f9, 0x00000153,
    0x000200f8, 0x00000143, 0x0006000c, 0x00000031, 0x00000145, 0x00000001, 0x0000004b, 0x00000122,
    0x00050082, 0x00000031, 0x00000146, 0x00000036, 0x00000145, 0x00050080, 0x00000031, 0x00000149,
    0x00000145, 0x00000159, 0x0004007c, 0x00000006, 0x0000014a, 0x00000149, 0x000500c4, 0x00000006,
    0x0000014b, 0x0000014a, 0x0000005c, 0x000500c5, 0x00000006, 0x0000014c, 0x0000011d, 0x0000014b,
    0x000500c4, 0x00000006, 0x0000014f, 0x00000122, 0x00000146, 0x000500c7, 0x00000006, 0x00000150,
    0x0000014f, 0x0000003c, 0x000500c4, 0x00000006, 0x00000151, 0x00000150, 0x0000004d, 0x000500c5,
    0x00000006, 0x00000152, 0x0000014c, 0x00000151, 0x000200f9, 0x00000153, 0x000200f8, 0x00000153,
    0x000b00f5, 0x00000006, 0x00000158, 0x00000131, 0x0000012f, 0x0000013d, 0x00000135, 0x0000011d,
    0x00000141, 0x00000152, 0x00000143, 0x00060041, 0x00000094, 0x000000af, 0x0000009a, 0x00000085,
    0x000000a3, 0x0003003e, 0x000000af, 0x00000158, 0x000200f9, 0x000000a8, 0x000200f8, 0x000000a8,
    0x000200f9, 0x000000b0, 0x000200f8, 0x000000b0, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_from_q8_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x00000218, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00000028, 0x0000002d, 0x0000003c,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000028,
    0x0000000b, 0x0000001a, 0x00040047, 0x0000002d, 0x0000000b, 0x00000018, 0x00040047, 0x00000038,
    0x00000001, 0x00000000, 0x00040047, 0x00000039, 0x0000000b, 0x00000019, 0x00040047, 0x0000003c,
    0x0000000b, 0x0000001b, 0x00050048, 0x000000fc, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x000000fc, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x000000fc, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x000000fc, 0x00000002, 0x00040047, 0x0000010e, 0x00000006, 0x00000004,
    0x00040048, 0x0000010f, 0x00000000, 0x00000018, 0x00050048, 0x0000010f, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000010f, 0x00000003, 0x00040047, 0x00000111, 0x00000022, 0x00000000,
    0x00040047, 0x00000111, 0x00000021, 0x00000001, 0x00040047, 0x0000011c, 0x00000006, 0x00000004,
    0x00040048, 0x0000011d, 0x00000000, 0x00000019, 0x00050048, 0x0000011d, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000011d, 0x00000003, 0x00040047, 0x0000011f, 0x00000022, 0x00000000,
    0x00040047, 0x0000011f, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040015, 0x0000000d, 0x00000020,
    0x00000001, 0x00020014, 0x0000000f, 0x00040017, 0x00000026, 0x00000006, 0x00000003, 0x00040020,
    0x00000027, 0x00000001, 0x00000026, 0x0004003b, 0x00000027, 0x00000028, 0x00000001, 0x0004002b,
    0x00000006, 0x00000029, 0x00000001, 0x00040020, 0x0000002a, 0x00000001, 0x00000006, 0x0004003b,
    0x00000027, 0x0000002d, 0x00000001, 0x0004002b, 0x00000006, 0x0000002e, 0x00000000, 0x00040032,
    0x00000006, 0x00000038, 0x00000040, 0x00060033, 0x00000026, 0x00000039, 0x00000038, 0x00000029,
    0x00000029, 0x0004003b, 0x00000027, 0x0000003c, 0x00000001, 0x0004002b, 0x0000000d, 0x00000043,
    0x0000001f, 0x0004002b, 0x0000000d, 0x00000054, 0x00000001, 0x0004002b, 0x0000000d, 0x00000073,
    0x00000017, 0x0004002b, 0x00000006, 0x00000075, 0x000000ff, 0x0004002b, 0x0000000d, 0x00000078,
    0x00000096, 0x0004002b, 0x00000006, 0x0000007b, 0x007fffff, 0x0004002b, 0x0000000d, 0x0000007e,
    0xffffff6a, 0x0004002b, 0x00000006, 0x00000082, 0x00800000, 0x0004002b, 0x0000000d, 0x0000008e,
    0xffffff6b, 0x0004002b, 0x0000000d, 0x000000a5, 0x000000fe, 0x0004002b, 0x00000006, 0x000000a9,
    0x7f7fffff, 0x0004002b, 0x00000006, 0x000000bc, 0x00000080, 0x0004002b, 0x00000006, 0x000000c3,
    0x00000100, 0x0004002b, 0x00000006, 0x000000cb, 0x80000000, 0x0004002b, 0x00000006, 0x000000d1,
    0x7fc00000, 0x0004002b, 0x00000006, 0x000000d9, 0x7fffffff, 0x0004002b, 0x00000006, 0x000000eb,
    0x00000002, 0x0005001e, 0x000000fc, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x000000fd,
    0x00000009, 0x000000fc, 0x0004003b, 0x000000fd, 0x000000fe, 0x00000009, 0x0004002b, 0x0000000d,
    0x000000ff, 0x00000000, 0x00040020, 0x00000100, 0x00000009, 0x00000006, 0x0004002b, 0x00000006,
    0x00000108, 0x00000009, 0x0004002b, 0x00000006, 0x0000010a, 0x00000020, 0x0003001d, 0x0000010e,
    0x00000006, 0x0003001e, 0x0000010f, 0x0000010e, 0x00040020, 0x00000110, 0x00000002, 0x0000010f,
    0x0004003b, 0x00000110, 0x00000111, 0x00000002, 0x0004002b, 0x00000006, 0x00000116, 0x00000004,
    0x00040020, 0x00000119, 0x00000002, 0x00000006, 0x0003001d, 0x0000011c, 0x00000006, 0x0003001e,
    0x0000011d, 0x0000011c, 0x00040020, 0x0000011e, 0x00000002, 0x0000011d, 0x0004003b, 0x0000011e,
    0x0000011f, 0x00000002, 0x0004002b, 0x00000006, 0x00000122, 0x00000008, 0x0004002b, 0x0000000d,
    0x00000216, 0xffffff54, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8,
    0x00000005, 0x000300f7, 0x0000012f, 0x00000000, 0x000300fb, 0x0000002e, 0x00000130, 0x000200f8,
    0x00000130, 0x00050041, 0x0000002a, 0x00000151, 0x00000028, 0x00000029, 0x0004003d, 0x00000006,
    0x00000152, 0x00000151, 0x00050041, 0x0000002a, 0x00000153, 0x0000002d, 0x0000002e, 0x0004003d,
    0x00000006, 0x00000154, 0x00000153, 0x00050084, 0x00000006, 0x00000155, 0x00000152, 0x00000154,
    0x00050041, 0x0000002a, 0x00000156, 0x00000028, 0x0000002e, 0x0004003d, 0x00000006, 0x00000157,
    0x00000156, 0x00050080, 0x00000006, 0x00000158, 0x00000155, 0x00000157, 0x00050051, 0x00000006,
    0x0000014a, 0x00000039, 0x00000000, 0x00050084, 0x00000006, 0x0000014b, 0x00000158, 0x0000014a,
    0x00050041, 0x0000002a, 0x0000014c, 0x0000003c, 0x0000002e, 0x0004003d, 0x00000006, 0x0000014d,
    0x0000014c, 0x00050080, 0x00000006, 0x0000014e, 0x0000014b, 0x0000014d, 0x00050041, 0x00000100,
    0x00000101, 0x000000fe, 0x000000ff, 0x0004003d, 0x00000006, 0x00000102, 0x00000101, 0x000500ae,
    0x0000000f, 0x00000103, 0x0000014e, 0x00000102, 0x000300f7, 0x00000105, 0x00000000, 0x000400fa,
    0x00000103, 0x00000104, 0x00000105, 0x000200f8, 0x00000104, 0x000200f9, 0x0000012f, 0x000200f8,
    0x00000105, 0x00050086, 0x00000006, 0x0000010b, 0x0000014e, 0x0000010a, 0x00050084, 0x00000006,
    0x0000010c, 0x00000108, 0x0000010b, 0x00050080, 0x00000006, 0x00000113, 0x0000010c, 0x00000029,
    0x00050089, 0x00000006, 0x00000115, 0x0000014e, 0x0000010a, 0x00050086, 0x00000006, 0x00000117,
    0x00000115, 0x00000116, 0x00050080, 0x00000006, 0x00000118, 0x00000113, 0x00000117, 0x00060041,
    0x00000119, 0x0000011a, 0x00000111, 0x000000ff, 0x00000118, 0x0004003d, 0x00000006, 0x0000011b,
    0x0000011a, 0x00050089, 0x00000006, 0x00000124, 0x0000014e, 0x00000116, 0x00050084, 0x00000006,
    0x00000125, 0x00000122, 0x00000124, 0x000500c2, 0x00000006, 0x00000126, 0x0000011b, 0x00000125,
    0x000500c7, 0x00000006, 0x00000127, 0x00000126, 0x00000075, 0x00060041, 0x00000119, 0x0000012b,
    0x00000111, 0x000000ff, 0x0000010c, 0x0004003d, 0x00000006, 0x0000012c, 0x0000012b, 0x000300f7,
    0x00000192, 0x00000000, 0x000300fb, 0x0000002e, 0x00000168, 0x000200f8, 0x00000168, 0x000500ae,
    0x0000000f, 0x0000016a, 0x00000127, 0x000000bc, 0x000300f7, 0x00000171, 0x00000000, 0x000400fa,
    0x0000016a, 0x0000016c, 0x0000016f, 0x000200f8, 0x0000016f, 0x000200f9, 0x00000171, 0x000200f8,
    0x0000016c, 0x00050082, 0x00000006, 0x0000016e, 0x000000c3, 0x00000127, 0x000200f9, 0x00000171,
    0x000200f8, 0x00000171, 0x000700f5, 0x00000006, 0x0000020d, 0x0000016e, 0x0000016c, 0x00000127,
    0x0000016f, 0x000600a9, 0x00000006, 0x00000174, 0x0000016a, 0x000000cb, 0x0000002e, 0x000500aa,
    0x0000000f, 0x00000176, 0x00000127, 0x000000bc, 0x000300f7, 0x00000178, 0x00000000, 0x000400fa,
    0x00000176, 0x00000177, 0x00000178, 0x000200f8, 0x00000177, 0x000200f9, 0x00000192, 0x000200f8,
    0x00000178, 0x000500aa, 0x0000000f, 0x0000017a, 0x0000020d, 0x0000002e, 0x000400a8, 0x0000000f,
    0x0000017b, 0x0000017a, 0x000300f7, 0x00000180, 0x00000000, 0x000400fa, 0x0000017b, 0x0000017c,
    0x00000180, 0x000200f8, 0x0000017c, 0x000500c7, 0x00000006, 0x0000017e, 0x0000012c, 0x000000d9,
    0x000500aa, 0x0000000f, 0x0000017f, 0x0000017e, 0x0000002e, 0x000200f9, 0x00000180, 0x000200f8,
    0x00000180, 0x000700f5, 0x0000000f, 0x00000181, 0x0000017a, 0x00000178, 0x0000017f, 0x0000017c,
    0x000300f7, 0x00000184, 0x00000000, 0x000400fa, 0x00000181, 0x00000182, 0x00000184, 0x000200f8,
    0x00000182, 0x000200f9, 0x00000192, 0x000200f8, 0x00000184, 0x000500c7, 0x00000006, 0x00000186,
    0x0000012c, 0x000000d9, 0x000300f7, 0x000001b1, 0x00000000, 0x000300fb, 0x0000002e, 0x0000019a,
    0x000200f8, 0x0000019a, 0x000500c2, 0x00000006, 0x0000019c, 0x00000186, 0x00000073, 0x000500c7,
    0x00000006, 0x0000019d, 0x0000019c, 0x00000075, 0x0004007c, 0x0000000d, 0x0000019e, 0x0000019d,
    0x00050082, 0x0000000d, 0x0000019f, 0x0000019e, 0x00000078, 0x000500c7, 0x00000006, 0x000001a1,
    0x00000186, 0x0000007b, 0x000500ad, 0x0000000f, 0x000001a3, 0x0000019f, 0x0000007e, 0x000300f7,
    0x000001a8, 0x00000000, 0x000400fa, 0x000001a3, 0x000001a4, 0x000001a8, 0x000200f8, 0x000001a4,
    0x000500c5, 0x00000006, 0x000001a6, 0x000001a1, 0x00000082, 0x000200f9, 0x000001b1, 0x000200f8,
    0x000001a8, 0x0006000c, 0x0000000d, 0x000001aa, 0x00000001, 0x0000004b, 0x000001a1, 0x00050082,
    0x0000000d, 0x000001ab, 0x00000073, 0x000001aa, 0x000500c4, 0x00000006, 0x000001ae, 0x000001a1,
    0x000001ab, 0x00050080, 0x0000000d, 0x000001b0, 0x000001aa, 0x00000216, 0x000200f9, 0x000001b1,
    0x000200f8, 0x000001b1, 0x000700f5, 0x00000006, 0x0000020f, 0x000001a6, 0x000001a4, 0x000001ae,
    0x000001a8, 0x000700f5, 0x0000000d, 0x0000020e, 0x0000019f, 0x000001a4, 0x000001b0, 0x000001a8,
    0x00050084, 0x00000006, 0x0000018b, 0x0000020f, 0x000000eb, 0x00050084, 0x00000006, 0x0000018d,
    0x0000018b, 0x0000020d, 0x00050082, 0x0000000d, 0x0000018f, 0x0000020e, 0x00000054, 0x000300f7,
    0x000001da, 0x00000000, 0x000300fb, 0x0000002e, 0x000001bc, 0x000200f8, 0x000001bc, 0x0006000c,
    0x0000000d, 0x000001be, 0x00000001, 0x0000004b, 0x0000018d, 0x00050082, 0x0000000d, 0x000001bf,
    0x000001be, 0x00000073, 0x00050080, 0x0000000d, 0x000001c2, 0x0000018f, 0x000001bf, 0x00050080,
    0x0000000d, 0x000001c3, 0x000001c2, 0x00000078, 0x000500b1, 0x0000000f, 0x000001c5, 0x000001c3,
    0x00000054, 0x000300f7, 0x000001cb, 0x00000000, 0x000400fa, 0x000001c5, 0x000001c6, 0x000001cb,
    0x000200f8, 0x000001c6, 0x00050082, 0x0000000d, 0x000001c8, 0x0000008e, 0x000001c2, 0x00050080,
    0x0000000d, 0x000001ca, 0x000001bf, 0x000001c8, 0x000200f9, 0x000001cb, 0x000200f8, 0x000001cb,
    0x000700f5, 0x0000000d, 0x00000211, 0x000001bf, 0x000001bc, 0x000001ca, 0x000001c6, 0x000600a9,
    0x0000000d, 0x00000217, 0x000001c5, 0x00000054, 0x000001c3, 0x000500ad, 0x0000000f, 0x000001cd,
    0x00000217, 0x000000a5, 0x000300f7, 0x000001cf, 0x00000000, 0x000400fa, 0x000001cd, 0x000001ce,
    0x000001cf, 0x000200f8, 0x000001ce, 0x000200f9, 0x000001da, 0x000200f8, 0x000001cf, 0x00050082,
    0x0000000d, 0x000001d1, 0x00000217, 0x00000054, 0x0004007c, 0x00000006, 0x000001d2, 0x000001d1,
    0x000500c4, 0x00000006, 0x000001d3, 0x000001d2, 0x00000073, 0x000300f7, 0x0000020b, 0x00000000,
    0x000300fb, 0x0000002e, 0x000001e3, 0x000200f8, 0x000001e3, 0x000500ad, 0x0000000f, 0x000001e5,
    0x00000211, 0x00000043, 0x000300f7, 0x000001e7, 0x00000000, 0x000400fa, 0x000001e5, 0x000001e6,
    0x000001e7, 0x000200f8, 0x000001e6, 0x000200f9, 0x0000020b, 0x000200f8, 0x000001e7, 0x000500c2,
    0x00000006, 0x000001ea, 0x0000018d, 0x00000211, 0x000500c4, 0x00000006, 0x000001ed, 0x00000029,
    0x00000211, 0x00050082, 0x00000006, 0x000001ee, 0x000001ed, 0x00000029, 0x000500c7, 0x00000006,
    0x000001ef, 0x0000018d, 0x000001ee, 0x00050082, 0x0000000d, 0x000001f1, 0x00000211, 0x00000054,
    0x000500c4, 0x00000006, 0x000001f2, 0x00000029, 0x000001f1, 0x000500ac, 0x0000000f, 0x000001f6,
    0x000001ef, 0x000001f2, 0x000400a8, 0x0000000f, 0x000001f7, 0x000001f6, 0x000300f7, 0x00000207,
    0x00000000, 0x000400fa, 0x000001f7, 0x000001f8, 0x00000207, 0x000200f8, 0x000001f8, 0x000500aa,
    0x0000000f, 0x000001fb, 0x000001ef, 0x000001f2, 0x000300f7, 0x00000205, 0x00000000, 0x000400fa,
    0x000001fb, 0x000001fc, 0x00000205, 0x000200f8, 0x000001fc, 0x000500c7, 0x00000006, 0x00000201,
    0x000001ea, 0x00000029, 0x000500ab, 0x0000000f, 0x00000202, 0x00000201, 0x0000002e, 0x000200f9,
    0x00000205, 0x000200f8, 0x00000205, 0x000700f5, 0x0000000f, 0x00000206, 0x000001fb, 0x000001f8,
    0x00000202, 0x000001fc, 0x000200f9, 0x00000207, 0x000200f8, 0x00000207, 0x000700f5, 0x0000000f,
    0x00000208, 0x000001f6, 0x000001e7, 0x00000206, 0x00000205, 0x000600a9, 0x00000006, 0x00000209,
    0x00000208, 0x00000029, 0x0000002e, 0x00050080, 0x00000006, 0x0000020a, 0x000001ea, 0x00000209,
    0x000200f9, 0x0000020b, 0x000200f8, 0x0000020b, 0x000700f5, 0x00000006, 0x00000212, 0x0000002e,
    0x000001e6, 0x0000020a, 0x00000207, 0x00050080, 0x00000006, 0x000001d8, 0x000001d3, 0x00000212,
    0x0007000c, 0x00000006, 0x000001d9, 0x00000001, 0x00000026, 0x000001d8, 0x000000a9, 0x000200f9,
    0x000001da, 0x000200f8, 0x000001da, 0x000700f5, 0x00000006, 0x00000213, 0x000000a9, 0x000001ce,
    0x000001d9, 0x0000020b, 0x000500c5, 0x00000006, 0x00000191, 0x00000174, 0x00000213, 0x000200f9,
    0x00000192, 0x000200f8, 0x00000192, 0x000900f5, 0x00000006, 0x00000214, 0x000000d1, 0x00000177,
    0x00000174, 0x00000182, 0x00000191, 0x000001da, 0x00060041, 0x00000119, 0x0000012e, 0x0000011f,
    0x000000ff, 0x0000014e, 0x0003003e, 0x0000012e, 0x00000214, 0x000200f9, 0x0000012f, 0x000200f8,
    0x0000012f, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_min_max_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x000000c2, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00000010, 0x00000015, 0x00000024,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000010,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000015, 0x0000000b, 0x00000018, 0x00040047, 0x00000020,
    0x00000001, 0x00000000, 0x00040047, 0x00000021, 0x0000000b, 0x00000019, 0x00040047, 0x00000024,
    0x0000000b, 0x0000001b, 0x00050048, 0x0000004e, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x0000004e, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000004e, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x0000004e, 0x00000002, 0x00040047, 0x00000058, 0x00000006, 0x00000004,
    0x00040048, 0x00000059, 0x00000000, 0x00000018, 0x00050048, 0x00000059, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000059, 0x00000003, 0x00040047, 0x0000005b, 0x00000022, 0x00000000,
    0x00040047, 0x0000005b, 0x00000021, 0x00000001, 0x00050048, 0x0000008c, 0x00000000, 0x00000023,
    0x00000000, 0x00050048, 0x0000008c, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000008c,
    0x00000002, 0x00000023, 0x00000008, 0x00050048, 0x0000008c, 0x00000003, 0x00000023, 0x0000000c,
    0x00030047, 0x0000008c, 0x00000003, 0x00040047, 0x0000008e, 0x00000022, 0x00000000, 0x00040047,
    0x0000008e, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002,
    0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x0000000e, 0x00000006, 0x00000003,
    0x00040020, 0x0000000f, 0x00000001, 0x0000000e, 0x0004003b, 0x0000000f, 0x00000010, 0x00000001,
    0x0004002b, 0x00000006, 0x00000011, 0x00000001, 0x00040020, 0x00000012, 0x00000001, 0x00000006,
    0x0004003b, 0x0000000f, 0x00000015, 0x00000001, 0x0004002b, 0x00000006, 0x00000016, 0x00000000,
    0x00040032, 0x00000006, 0x00000020, 0x00000040, 0x00060033, 0x0000000e, 0x00000021, 0x00000020,
    0x00000011, 0x00000011, 0x0004003b, 0x0000000f, 0x00000024, 0x00000001, 0x00020014, 0x00000035,
    0x00040020, 0x00000039, 0x00000004, 0x00000006, 0x0004003b, 0x00000039, 0x0000003a, 0x00000004,
    0x0004002b, 0x00000006, 0x0000003b, 0xffffffff, 0x0004003b, 0x00000039, 0x0000003c, 0x00000004,
    0x0004003b, 0x00000039, 0x0000003d, 0x00000004, 0x0004003b, 0x00000039, 0x0000003e, 0x00000004,
    0x0004002b, 0x00000006, 0x0000003f, 0x00000002, 0x0004002b, 0x00000006, 0x00000040, 0x00000108,
    0x0005001e, 0x0000004e, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x0000004f, 0x00000009,
    0x0000004e, 0x0004003b, 0x0000004f, 0x00000050, 0x00000009, 0x00040015, 0x00000051, 0x00000020,
    0x00000001, 0x0004002b, 0x00000051, 0x00000052, 0x00000000, 0x00040020, 0x00000053, 0x00000009,
    0x00000006, 0x0003001d, 0x00000058, 0x00000006, 0x0003001e, 0x00000059, 0x00000058, 0x00040020,
    0x0000005a, 0x00000002, 0x00000059, 0x0004003b, 0x0000005a, 0x0000005b, 0x00000002, 0x00040020,
    0x0000005d, 0x00000002, 0x00000006, 0x0004002b, 0x00000051, 0x00000063, 0x0000001f, 0x0004002b,
    0x00000006, 0x00000066, 0x80000000, 0x0004002b, 0x00000006, 0x0000006a, 0x7fffffff, 0x0004002b,
    0x00000006, 0x0000006c, 0x7f800000, 0x0004002b, 0x00000051, 0x00000077, 0x00000001, 0x0006001e,
    0x0000008c, 0x00000006, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x0000008d, 0x00000002,
    0x0000008c, 0x0004003b, 0x0000008d, 0x0000008e, 0x00000002, 0x0004002b, 0x00000051, 0x00000095,
    0x00000002, 0x0004002b, 0x00000051, 0x00000099, 0x00000003, 0x00050036, 0x00000002, 0x00000004,
    0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x00050041, 0x00000012, 0x00000033, 0x00000024,
    0x00000016, 0x0004003d, 0x00000006, 0x00000034, 0x00000033, 0x000500aa, 0x00000035, 0x00000036,
    0x00000034, 0x00000016, 0x000300f7, 0x00000038, 0x00000000, 0x000400fa, 0x00000036, 0x00000037,
    0x00000038, 0x000200f8, 0x00000037, 0x0003003e, 0x0000003a, 0x0000003b, 0x0003003e, 0x0000003e,
    0x00000016, 0x0003003e, 0x0000003d, 0x00000016, 0x0003003e, 0x0000003c, 0x00000016, 0x000200f9,
    0x00000038, 0x000200f8, 0x00000038, 0x000400e0, 0x0000003f, 0x0000003f, 0x00000040, 0x00050041,
    0x00000012, 0x000000a7, 0x00000010, 0x00000011, 0x0004003d, 0x00000006, 0x000000a8, 0x000000a7,
    0x00050041, 0x00000012, 0x000000a9, 0x00000015, 0x00000016, 0x0004003d, 0x00000006, 0x000000aa,
    0x000000a9, 0x00050084, 0x00000006, 0x000000ab, 0x000000a8, 0x000000aa, 0x00050041, 0x00000012,
    0x000000ac, 0x00000010, 0x00000016, 0x0004003d, 0x00000006, 0x000000ad, 0x000000ac, 0x00050080,
    0x00000006, 0x000000ae, 0x000000ab, 0x000000ad, 0x00050051, 0x00000006, 0x000000a0, 0x00000021,
    0x00000000, 0x00050084, 0x00000006, 0x000000a1, 0x000000ae, 0x000000a0, 0x00050080, 0x00000006,
    0x000000a4, 0x000000a1, 0x00000034, 0x000200f9, 0x00000048, 0x000200f8, 0x00000048, 0x000700f5,
    0x00000006, 0x000000bc, 0x00000016, 0x00000038, 0x000000c1, 0x0000004b, 0x000700f5, 0x00000006,
    0x000000bb, 0x00000016, 0x00000038, 0x000000c0, 0x0000004b, 0x000700f5, 0x00000006, 0x000000ba,
    0x00000016, 0x00000038, 0x000000bf, 0x0000004b, 0x000700f5, 0x00000006, 0x000000b9, 0x0000003b,
    0x00000038, 0x000000be, 0x0000004b, 0x000700f5, 0x00000006, 0x000000b8, 0x000000a4, 0x00000038,
    0x0000007e, 0x0000004b, 0x00050041, 0x00000053, 0x00000054, 0x00000050, 0x00000052, 0x0004003d,
    0x00000006, 0x00000055, 0x00000054, 0x000500b0, 0x00000035, 0x00000056, 0x000000b8, 0x00000055,
    0x000400f6, 0x0000004a, 0x0000004b, 0x00000000, 0x000400fa, 0x00000056, 0x00000049, 0x0000004a,
    0x000200f8, 0x00000049, 0x00060041, 0x0000005d, 0x0000005e, 0x0000005b, 0x00000052, 0x000000b8,
    0x0004003d, 0x00000006, 0x0000005f, 0x0000005e, 0x000500c2, 0x00000006, 0x00000064, 0x0000005f,
    0x00000063, 0x000500ab, 0x00000035, 0x00000065, 0x00000064, 0x00000016, 0x000600a9, 0x00000006,
    0x00000067, 0x00000065, 0x0000003b, 0x00000066, 0x000500c6, 0x00000006, 0x00000068, 0x0000005f,
    0x00000067, 0x000500c7, 0x00000006, 0x0000006b, 0x0000005f, 0x0000006a, 0x000500b0, 0x00000035,
    0x0000006d, 0x0000006b, 0x0000006c, 0x000300f7, 0x0000006f, 0x00000000, 0x000400fa, 0x0000006d,
    0x0000006e, 0x00000079, 0x000200f8, 0x0000006e, 0x0007000c, 0x00000006, 0x00000072, 0x00000001,
    0x00000026, 0x000000b9, 0x00000068, 0x0007000c, 0x00000006, 0x00000075, 0x00000001, 0x00000029,
    0x000000ba, 0x00000068, 0x00050080, 0x00000006, 0x00000078, 0x000000bb, 0x00000077, 0x000200f9,
    0x0000006f, 0x000200f8, 0x00000079, 0x00050080, 0x00000006, 0x0000007b, 0x000000bc, 0x00000077,
    0x000200f9, 0x0000006f, 0x000200f8, 0x0000006f, 0x000700f5, 0x00000006, 0x000000c1, 0x000000bc,
    0x0000006e, 0x0000007b, 0x00000079, 0x000700f5, 0x00000006, 0x000000c0, 0x00000078, 0x0000006e,
    0x000000bb, 0x00000079, 0x000700f5, 0x00000006, 0x000000bf, 0x00000075, 0x0000006e, 0x000000ba,
    0x00000079, 0x000700f5, 0x00000006, 0x000000be, 0x00000072, 0x0000006e, 0x000000b9, 0x00000079,
    0x000200f9, 0x0000004b, 0x000200f8, 0x0000004b, 0x00050041, 0x00000012, 0x000000b3, 0x00000015,
    0x00000011, 0x0004003d, 0x00000006, 0x000000b4, 0x000000b3, 0x00050084, 0x00000006, 0x000000b5,
    0x000000aa, 0x000000b4, 0x00050084, 0x00000006, 0x000000b7, 0x000000b5, 0x000000a0, 0x00050080,
    0x00000006, 0x0000007e, 0x000000b8, 0x000000b7, 0x000200f9, 0x00000048, 0x000200f8, 0x0000004a,
    0x000700ed, 0x00000006, 0x00000080, 0x0000003a, 0x00000011, 0x00000016, 0x000000b9, 0x000700ef,
    0x00000006, 0x00000082, 0x0000003c, 0x00000011, 0x00000016, 0x000000ba, 0x000700ea, 0x00000006,
    0x00000084, 0x0000003d, 0x00000011, 0x00000016, 0x000000bb, 0x000700ea, 0x00000006, 0x00000086,
    0x0000003e, 0x00000011, 0x00000016, 0x000000bc, 0x000400e0, 0x0000003f, 0x0000003f, 0x00000040,
    0x000300f7, 0x0000008b, 0x00000000, 0x000400fa, 0x00000036, 0x0000008a, 0x0000008b, 0x000200f8,
    0x0000008a, 0x00050041, 0x0000005d, 0x0000008f, 0x0000008e, 0x00000052, 0x0004003d, 0x00000006,
    0x00000090, 0x0000003a, 0x000700ed, 0x00000006, 0x00000091, 0x0000008f, 0x00000011, 0x00000016,
    0x00000090, 0x00050041, 0x0000005d, 0x00000092, 0x0000008e, 0x00000077, 0x0004003d, 0x00000006,
    0x00000093, 0x0000003c, 0x000700ef, 0x00000006, 0x00000094, 0x00000092, 0x00000011, 0x00000016,
    0x00000093, 0x00050041, 0x0000005d, 0x00000096, 0x0000008e, 0x00000095, 0x0004003d, 0x00000006,
    0x00000097, 0x0000003d, 0x000700ea, 0x00000006, 0x00000098, 0x00000096, 0x00000011, 0x00000016,
    0x00000097, 0x00050041, 0x0000005d, 0x0000009a, 0x0000008e, 0x00000099, 0x0004003d, 0x00000006,
    0x0000009b, 0x0000003e, 0x000700ea, 0x00000006, 0x0000009c, 0x0000009a, 0x00000011, 0x00000016,
    0x0000009b, 0x000200f9, 0x0000008b, 0x000200f8, 0x0000008b, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_min_max_channels_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x00000347, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00000025, 0x0000002a, 0x00000039,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000025,
    0x0000000b, 0x0000001a, 0x00040047, 0x0000002a, 0x0000000b, 0x00000018, 0x00040047, 0x00000035,
    0x00000001, 0x00000000, 0x00040047, 0x00000036, 0x0000000b, 0x00000019, 0x00040047, 0x00000039,
    0x0000000b, 0x0000001b, 0x00050048, 0x00000049, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x00000049, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x00000049, 0x00000002, 0x00000023,
    0x00000008, 0x00050048, 0x00000049, 0x00000003, 0x00000023, 0x0000000c, 0x00050048, 0x00000049,
    0x00000004, 0x00000023, 0x00000010, 0x00050048, 0x00000049, 0x00000005, 0x00000023, 0x00000014,
    0x00030047, 0x00000049, 0x00000002, 0x00040047, 0x0000005b, 0x00000006, 0x00000004, 0x00040048,
    0x0000005c, 0x00000000, 0x00000018, 0x00050048, 0x0000005c, 0x00000000, 0x00000023, 0x00000000,
    0x00030047, 0x0000005c, 0x00000003, 0x00040047, 0x0000005e, 0x00000022, 0x00000000, 0x00040047,
    0x0000005e, 0x00000021, 0x00000001, 0x00050048, 0x0000008b, 0x00000000, 0x00000023, 0x00000000,
    0x00050048, 0x0000008b, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000008b, 0x00000002,
    0x00000023, 0x00000008, 0x00050048, 0x0000008b, 0x00000003, 0x00000023, 0x0000000c, 0x00040047,
    0x0000008c, 0x00000006, 0x00000010, 0x00050048, 0x0000008d, 0x00000000, 0x00000023, 0x00000000,
    0x00030047, 0x0000008d, 0x00000003, 0x00040047, 0x0000008f, 0x00000022, 0x00000000, 0x00040047,
    0x0000008f, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002,
    0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x0006001e, 0x0000000f, 0x00000006, 0x00000006,
    0x00000006, 0x00000006, 0x00040017, 0x00000023, 0x00000006, 0x00000003, 0x00040020, 0x00000024,
    0x00000001, 0x00000023, 0x0004003b, 0x00000024, 0x00000025, 0x00000001, 0x0004002b, 0x00000006,
    0x00000026, 0x00000001, 0x00040020, 0x00000027, 0x00000001, 0x00000006, 0x0004003b, 0x00000024,
    0x0000002a, 0x00000001, 0x0004002b, 0x00000006, 0x0000002b, 0x00000000, 0x00040032, 0x00000006,
    0x00000035, 0x00000040, 0x00060033, 0x00000023, 0x00000036, 0x00000035, 0x00000026, 0x00000026,
    0x0004003b, 0x00000024, 0x00000039, 0x00000001, 0x0008001e, 0x00000049, 0x00000006, 0x00000006,
    0x00000006, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x0000004a, 0x00000009, 0x00000049,
    0x0004003b, 0x0000004a, 0x0000004b, 0x00000009, 0x00040015, 0x0000004c, 0x00000020, 0x00000001,
    0x0004002b, 0x0000004c, 0x0000004d, 0x00000005, 0x00040020, 0x0000004e, 0x00000009, 0x00000006,
    0x0004002b, 0x0000004c, 0x00000052, 0x00000000, 0x00020014, 0x00000055, 0x0003001d, 0x0000005b,
    0x00000006, 0x0003001e, 0x0000005c, 0x0000005b, 0x00040020, 0x0000005d, 0x00000002, 0x0000005c,
    0x0004003b, 0x0000005d, 0x0000005e, 0x00000002, 0x00040020, 0x00000063, 0x00000002, 0x00000006,
    0x0004002b, 0x0000004c, 0x00000069, 0x0000001f, 0x0004002b, 0x00000006, 0x0000006c, 0xffffffff,
    0x0004002b, 0x00000006, 0x0000006d, 0x80000000, 0x0004002b, 0x00000006, 0x00000071, 0x7fffffff,
    0x0004002b, 0x00000006, 0x00000073, 0x7f800000, 0x0004002b, 0x0000004c, 0x0000007c, 0x00000001,
    0x0004002b, 0x0000004c, 0x00000082, 0x00000002, 0x0004002b, 0x0000004c, 0x00000087, 0x00000003,
    0x0006001e, 0x0000008b, 0x00000006, 0x00000006, 0x00000006, 0x00000006, 0x0003001d, 0x0000008c,
    0x0000008b, 0x0003001e, 0x0000008d, 0x0000008c, 0x00040020, 0x0000008e, 0x00000002, 0x0000008d,
    0x0004003b, 0x0000008e, 0x0000008f, 0x00000002, 0x0007002c, 0x0000000f, 0x000000c6, 0x0000006c,
    0x0000002b, 0x0000002b, 0x0000002b, 0x00040020, 0x000000cb, 0x00000004, 0x0000000f, 0x0004003b,
    0x000000cb, 0x000000cc, 0x00000004, 0x0004002b, 0x00000006, 0x000000cd, 0x00000002, 0x0004002b,
    0x00000006, 0x000000ce, 0x00000108, 0x0004002b, 0x0000004c, 0x000000dc, 0x00000004, 0x00040020,
    0x000000fc, 0x00000004, 0x00000006, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003,
    0x000200f8, 0x00000005, 0x00050041, 0x0000004e, 0x00000151, 0x0000004b, 0x00000087, 0x0004003d,
    0x00000006, 0x00000152, 0x00000151, 0x00050041, 0x0000004e, 0x00000153, 0x0000004b, 0x000000dc,
    0x0004003d, 0x00000006, 0x00000154, 0x00000153, 0x00050084, 0x00000006, 0x00000155, 0x00000152,
    0x00000154, 0x00050041, 0x0000004e, 0x00000157, 0x0000004b, 0x0000004d, 0x0004003d, 0x00000006,
    0x00000158, 0x00000157, 0x00050041, 0x0000004e, 0x00000159, 0x0000004b, 0x00000052, 0x0004003d,
    0x00000006, 0x0000015a, 0x00000159, 0x00050080, 0x00000006, 0x0000015b, 0x00000158, 0x0000015a,
    0x00050080, 0x00000006, 0x0000015d, 0x0000015b, 0x00000155, 0x00050082, 0x00000006, 0x0000015e,
    0x0000015d, 0x00000026, 0x00050086, 0x00000006, 0x00000160, 0x0000015e, 0x00000155, 0x00050051,
    0x00000006, 0x00000163, 0x00000036, 0x00000000, 0x000500ae, 0x00000055, 0x00000164, 0x00000154,
    0x00000163, 0x000300f7, 0x00000166, 0x00000000, 0x000400fa, 0x00000164, 0x00000165, 0x0000016c,
    0x000200f8, 0x00000165, 0x00050041, 0x00000027, 0x00000184, 0x0000002a, 0x0000002b, 0x0004003d,
    0x00000006, 0x00000185, 0x00000184, 0x00050041, 0x00000027, 0x00000186, 0x0000002a, 0x00000026,
    0x0004003d, 0x00000006, 0x00000187, 0x00000186, 0x00050084, 0x00000006, 0x00000188, 0x00000185,
    0x00000187, 0x00050041, 0x00000027, 0x00000189, 0x00000039, 0x0000002b, 0x0004003d, 0x00000006,
    0x0000018a, 0x00000189, 0x00050041, 0x00000027, 0x000001e9, 0x00000025, 0x00000026, 0x0004003d,
    0x00000006, 0x000001ea, 0x000001e9, 0x00050084, 0x00000006, 0x000001ed, 0x000001ea, 0x00000185,
    0x00050041, 0x00000027, 0x000001ee, 0x00000025, 0x0000002b, 0x0004003d, 0x00000006, 0x000001ef,
    0x000001ee, 0x00050080, 0x00000006, 0x000001f0, 0x000001ed, 0x000001ef, 0x000200f9, 0x0000018c,
    0x000200f8, 0x0000018c, 0x000700f5, 0x00000006, 0x00000332, 0x000001f0, 0x00000165, 0x000001e5,
    0x000001e2, 0x00050041, 0x0000004e, 0x00000191, 0x0000004b, 0x0000007c, 0x0004003d, 0x00000006,
    0x00000192, 0x00000191, 0x00050084, 0x00000006, 0x00000193, 0x00000152, 0x00000192, 0x000500b0,
    0x00000055, 0x00000194, 0x00000332, 0x00000193, 0x000400f6, 0x000001e6, 0x000001e2, 0x00000000,
    0x000400fa, 0x00000194, 0x00000195, 0x000001e6, 0x000200f8, 0x00000195, 0x00050086, 0x00000006,
    0x00000199, 0x00000332, 0x00000192, 0x00050089, 0x00000006, 0x0000019d, 0x00000332, 0x00000192,
    0x000500aa, 0x00000055, 0x0000019f, 0x0000018a, 0x0000002b, 0x000300f7, 0x000001a1, 0x00000000,
    0x000400fa, 0x0000019f, 0x000001a0, 0x000001a1, 0x000200f8, 0x000001a0, 0x0003003e, 0x000000cc,
    0x000000c6, 0x000200f9, 0x000001a1, 0x000200f8, 0x000001a1, 0x000400e0, 0x000000cd, 0x000000cd,
    0x000000ce, 0x00050084, 0x00000006, 0x000001a4, 0x0000019d, 0x00000163, 0x00050080, 0x00000006,
    0x000001a6, 0x000001a4, 0x0000018a, 0x000200f9, 0x000001a7, 0x000200f8, 0x000001a7, 0x000700f5,
    0x00000006, 0x0000033a, 0x0000002b, 0x000001a1, 0x0000033f, 0x000001c3, 0x000700f5, 0x00000006,
    0x00000338, 0x0000002b, 0x000001a1, 0x00000341, 0x000001c3, 0x000700f5, 0x00000006, 0x00000336,
    0x0000002b, 0x000001a1, 0x00000343, 0x000001c3, 0x000700f5, 0x00000006, 0x00000334, 0x0000006c,
    0x000001a1, 0x00000345, 0x000001c3, 0x000700f5, 0x00000006, 0x00000333, 0x000001a6, 0x000001a1,
    0x000001c9, 0x000001c3, 0x00050084, 0x00000006, 0x000001ad, 0x00000160, 0x00000154, 0x000500b0,
    0x00000055, 0x000001ae, 0x00000333, 0x000001ad, 0x000400f6, 0x000001ca, 0x000001c3, 0x00000000,
    0x000400fa, 0x000001ae, 0x000001af, 0x000001ca, 0x000200f8, 0x000001af, 0x00050086, 0x00000006,
    0x000001b3, 0x00000333, 0x00000154, 0x00050084, 0x00000006, 0x000001b5, 0x000001b3, 0x00000155,
    0x00050084, 0x00000006, 0x000001b9, 0x00000199, 0x00000154, 0x00050080, 0x00000006, 0x000001ba,
    0x000001b5, 0x000001b9, 0x00050089, 0x00000006, 0x000001be, 0x00000333, 0x00000154, 0x00050080,
    0x00000006, 0x000001bf, 0x000001ba, 0x000001be, 0x000300f7, 0x00000221, 0x00000000, 0x000300fb,
    0x0000002b, 0x000001f5, 0x000200f8, 0x000001f5, 0x00050082, 0x00000006, 0x000001f9, 0x000001bf,
    0x00000158, 0x000500ae, 0x00000055, 0x000001fc, 0x000001f9, 0x0000015a, 0x000300f7, 0x000001fe,
    0x00000000, 0x000400fa, 0x000001fc, 0x000001fd, 0x000001fe, 0x000200f8, 0x000001fd, 0x000200f9,
    0x00000221, 0x000200f8, 0x000001fe, 0x00060041, 0x00000063, 0x00000203, 0x0000005e, 0x00000052,
    0x000001f9, 0x0004003d, 0x00000006, 0x00000204, 0x00000203, 0x000500c2, 0x00000006, 0x00000207,
    0x00000204, 0x00000069, 0x000500ab, 0x00000055, 0x00000208, 0x00000207, 0x0000002b, 0x000600a9,
    0x00000006, 0x00000209, 0x00000208, 0x0000006c, 0x0000006d, 0x000500c6, 0x00000006, 0x0000020a,
    0x00000204, 0x00000209, 0x000500c7, 0x00000006, 0x0000020c, 0x00000204, 0x00000071, 0x000500b0,
    0x00000055, 0x0000020d, 0x0000020c, 0x00000073, 0x000300f7, 0x00000220, 0x00000000, 0x000400fa,
    0x0000020d, 0x0000020e, 0x0000021c, 0x000200f8, 0x0000020e, 0x0007000c, 0x00000006, 0x00000212,
    0x00000001, 0x00000026, 0x00000334, 0x0000020a, 0x0007000c, 0x00000006, 0x00000217, 0x00000001,
    0x00000029, 0x00000336, 0x0000020a, 0x00050080, 0x00000006, 0x0000021b, 0x00000338, 0x0000007c,
    0x000200f9, 0x00000220, 0x000200f8, 0x0000021c, 0x00050080, 0x00000006, 0x0000021f, 0x0000033a,
    0x0000007c, 0x000200f9, 0x00000220, 0x000200f8, 0x00000220, 0x000700f5, 0x00000006, 0x00000346,
    0x00000212, 0x0000020e, 0x00000334, 0x0000021c, 0x000700f5, 0x00000006, 0x00000344, 0x00000217,
    0x0000020e, 0x00000336, 0x0000021c, 0x000700f5, 0x00000006, 0x00000342, 0x0000021b, 0x0000020e,
    0x00000338, 0x0000021c, 0x000700f5, 0x00000006, 0x00000340, 0x0000033a, 0x0000020e, 0x0000021f,
    0x0000021c, 0x000200f9, 0x00000221, 0x000200f8, 0x00000221, 0x000700f5, 0x00000006, 0x00000345,
    0x00000334, 0x000001fd, 0x00000346, 0x00000220, 0x000700f5, 0x00000006, 0x00000343, 0x00000336,
    0x000001fd, 0x00000344, 0x00000220, 0x000700f5, 0x00000006, 0x00000341, 0x00000338, 0x000001fd,
    0x00000342, 0x00000220, 0x000700f5, 0x00000006, 0x0000033f, 0x0000033a, 0x000001fd, 0x00000340,
    0x00000220, 0x000200f9, 0x000001c3, 0x000200f8, 0x000001c3, 0x00050084, 0x00000006, 0x000001c7,
    0x00000192, 0x00000163, 0x00050080, 0x00000006, 0x000001c9, 0x00000333, 0x000001c7, 0x000200f9,
    0x000001a7, 0x000200f8, 0x000001ca, 0x00050041, 0x000000fc, 0x000001cb, 0x000000cc, 0x00000052,
    0x000700ed, 0x00000006, 0x000001ce, 0x000001cb, 0x00000026, 0x0000002b, 0x00000334, 0x00050041,
    0x000000fc, 0x000001cf, 0x000000cc, 0x0000007c, 0x000700ef, 0x00000006, 0x000001d2, 0x000001cf,
    0x00000026, 0x0000002b, 0x00000336, 0x00050041, 0x000000fc, 0x000001d3, 0x000000cc, 0x00000082,
    0x000700ea, 0x00000006, 0x000001d6, 0x000001d3, 0x00000026, 0x0000002b, 0x00000338, 0x00050041,
    0x000000fc, 0x000001d7, 0x000000cc, 0x00000087, 0x000700ea, 0x00000006, 0x000001da, 0x000001d7,
    0x00000026, 0x0000002b, 0x0000033a, 0x000400e0, 0x000000cd, 0x000000cd, 0x000000ce, 0x000300f7,
    0x000001e1, 0x00000000, 0x000400fa, 0x0000019f, 0x000001dd, 0x000001e1, 0x000200f8, 0x000001dd,
    0x0004003d, 0x0000000f, 0x000001df, 0x000000cc, 0x00050051, 0x00000006, 0x0000031d, 0x000001df,
    0x00000000, 0x00050051, 0x00000006, 0x0000031e, 0x000001df, 0x00000001, 0x00050051, 0x00000006,
    0x0000031f, 0x000001df, 0x00000002, 0x00050051, 0x00000006, 0x00000320, 0x000001df, 0x00000003,
    0x00070041, 0x00000063, 0x00000224, 0x0000008f, 0x00000052, 0x00000199, 0x00000052, 0x000700ed,
    0x00000006, 0x00000227, 0x00000224, 0x00000026, 0x0000002b, 0x0000031d, 0x00070041, 0x00000063,
    0x00000229, 0x0000008f, 0x00000052, 0x00000199, 0x0000007c, 0x000700ef, 0x00000006, 0x0000022c,
    0x00000229, 0x00000026, 0x0000002b, 0x0000031e, 0x00070041, 0x00000063, 0x0000022e, 0x0000008f,
    0x00000052, 0x00000199, 0x00000082, 0x000700ea, 0x00000006, 0x00000231, 0x0000022e, 0x00000026,
    0x0000002b, 0x0000031f, 0x00070041, 0x00000063, 0x00000233, 0x0000008f, 0x00000052, 0x00000199,
    0x00000087, 0x000700ea, 0x00000006, 0x00000236, 0x00000233, 0x00000026, 0x0000002b, 0x00000320,
    0x000200f9, 0x000001e1, 0x000200f8, 0x000001e1, 0x000400e0, 0x000000cd, 0x000000cd, 0x000000ce,
    0x000200f9, 0x000001e2, 0x000200f8, 0x000001e2, 0x00050080, 0x00000006, 0x000001e5, 0x00000332,
    0x00000188, 0x000200f9, 0x0000018c, 0x000200f8, 0x000001e6, 0x000200f9, 0x00000166, 0x000200f8,
    0x0000016c, 0x00050041, 0x00000027, 0x00000279, 0x00000025, 0x00000026, 0x0004003d, 0x00000006,
    0x0000027a, 0x00000279, 0x00050041, 0x00000027, 0x0000027b, 0x0000002a, 0x0000002b, 0x0004003d,
    0x00000006, 0x0000027c, 0x0000027b, 0x00050084, 0x00000006, 0x0000027d, 0x0000027a, 0x0000027c,
    0x00050041, 0x00000027, 0x0000027e, 0x00000025, 0x0000002b, 0x0004003d, 0x00000006, 0x0000027f,
    0x0000027e, 0x00050080, 0x00000006, 0x00000280, 0x0000027d, 0x0000027f, 0x00050084, 0x00000006,
    0x00000273, 0x00000280, 0x00000163, 0x00050041, 0x00000027, 0x00000274, 0x00000039, 0x0000002b,
    0x0004003d, 0x00000006, 0x00000275, 0x00000274, 0x00050080, 0x00000006, 0x00000276, 0x00000273,
    0x00000275, 0x000200f9, 0x00000241, 0x000200f8, 0x00000241, 0x000700f5, 0x00000006, 0x00000321,
    0x00000276, 0x0000016c, 0x0000026d, 0x0000026a, 0x00050041, 0x0000004e, 0x00000245, 0x0000004b,
    0x0000007c, 0x0004003d, 0x00000006, 0x00000246, 0x00000245, 0x00050084, 0x00000006, 0x00000247,
    0x00000155, 0x00000246, 0x000500b0, 0x00000055, 0x00000248, 0x00000321, 0x00000247, 0x000400f6,
    0x0000026e, 0x0000026a, 0x00000000, 0x000400fa, 0x00000248, 0x00000249, 0x0000026e, 0x000200f8,
    0x00000249, 0x00050089, 0x00000006, 0x0000024c, 0x00000321, 0x00000155, 0x00050086, 0x00000006,
    0x0000024f, 0x00000321, 0x00000155, 0x000200f9, 0x00000250, 0x000200f8, 0x00000250, 0x000700f5,
    0x00000006, 0x00000326, 0x0000006c, 0x00000249, 0x0000032e, 0x0000025e, 0x000700f5, 0x00000006,
    0x00000325, 0x0000002b, 0x00000249, 0x0000032c, 0x0000025e, 0x000700f5, 0x00000006, 0x00000324,
    0x0000002b, 0x00000249, 0x0000032a, 0x0000025e, 0x000700f5, 0x00000006, 0x00000323, 0x0000002b,
    0x00000249, 0x00000328, 0x0000025e, 0x000700f5, 0x00000006, 0x00000322, 0x0000024f, 0x00000249,
    0x00000262, 0x0000025e, 0x000500b0, 0x00000055, 0x00000254, 0x00000322, 0x00000160, 0x000400f6,
    0x00000263, 0x0000025e, 0x00000000, 0x000400fa, 0x00000254, 0x00000255, 0x00000263, 0x000200f8,
    0x00000255, 0x00050084, 0x00000006, 0x00000258, 0x00000322, 0x00000155, 0x00050080, 0x00000006,
    0x0000025a, 0x00000258, 0x0000024c, 0x000300f7, 0x000002b1, 0x00000000, 0x000300fb, 0x0000002b,
    0x00000285, 0x000200f8, 0x00000285, 0x00050082, 0x00000006, 0x00000289, 0x0000025a, 0x00000158,
    0x000500ae, 0x00000055, 0x0000028c, 0x00000289, 0x0000015a, 0x000300f7, 0x0000028e, 0x00000000,
    0x000400fa, 0x0000028c, 0x0000028d, 0x0000028e, 0x000200f8, 0x0000028d, 0x000200f9, 0x000002b1,
    0x000200f8, 0x0000028e, 0x00060041, 0x00000063, 0x00000293, 0x0000005e, 0x00000052, 0x00000289,
    0x0004003d, 0x00000006, 0x00000294, 0x00000293, 0x000500c2, 0x00000006, 0x00000297, 0x00000294,
    0x00000069, 0x000500ab, 0x00000055, 0x00000298, 0x00000297, 0x0000002b, 0x000600a9, 0x00000006,
    0x00000299, 0x00000298, 0x0000006c, 0x0000006d, 0x000500c6, 0x00000006, 0x0000029a, 0x00000294,
    0x00000299, 0x000500c7, 0x00000006, 0x0000029c, 0x00000294, 0x00000071, 0x000500b0, 0x00000055,
    0x0000029d, 0x0000029c, 0x00000073, 0x000300f7, 0x000002b0, 0x00000000, 0x000400fa, 0x0000029d,
    0x0000029e, 0x000002ac, 0x000200f8, 0x0000029e, 0x0007000c, 0x00000006, 0x000002a2, 0x00000001,
    0x00000026, 0x00000326, 0x0000029a, 0x0007000c, 0x00000006, 0x000002a7, 0x00000001, 0x00000029,
    0x00000325, 0x0000029a, 0x00050080, 0x00000006, 0x000002ab, 0x00000324, 0x0000007c, 0x000200f9,
    0x000002b0, 0x000200f8, 0x000002ac, 0x00050080, 0x00000006, 0x000002af, 0x00000323, 0x0000007c,
    0x000200f9, 0x000002b0, 0x000200f8, 0x000002b0, 0x000700f5, 0x00000006, 0x0000032f, 0x000002a2,
    0x0000029e, 0x00000326, 0x000002ac, 0x000700f5, 0x00000006, 0x0000032d, 0x000002a7, 0x0000029e,
    0x00000325, 0x000002ac, 0x000700f5, 0x00000006, 0x0000032b, 0x000002ab, 0x0000029e, 0x00000324,
    0x000002ac, 0x000700f5, 0x00000006, 0x00000329, 0x00000323, 0x0000029e, 0x000002af, 0x000002ac,
    0x000200f9, 0x000002b1, 0x000200f8, 0x000002b1, 0x000700f5, 0x00000006, 0x0000032e, 0x00000326,
    0x0000028d, 0x0000032f, 0x000002b0, 0x000700f5, 0x00000006, 0x0000032c, 0x00000325, 0x0000028d,
    0x0000032d, 0x000002b0, 0x000700f5, 0x00000006, 0x0000032a, 0x00000324, 0x0000028d, 0x0000032b,
    0x000002b0, 0x000700f5, 0x00000006, 0x00000328, 0x00000323, 0x0000028d, 0x00000329, 0x000002b0,
    0x000200f9, 0x0000025e, 0x000200f8, 0x0000025e, 0x00050080, 0x00000006, 0x00000262, 0x00000322,
    0x00000246, 0x000200f9, 0x00000250, 0x000200f8, 0x00000263, 0x00050086, 0x00000006, 0x00000267,
    0x0000024c, 0x00000154, 0x00070041, 0x00000063, 0x000002b4, 0x0000008f, 0x00000052, 0x00000267,
    0x00000052, 0x000700ed, 0x00000006, 0x000002b7, 0x000002b4, 0x00000026, 0x0000002b, 0x00000326,
    0x00070041, 0x00000063, 0x000002b9, 0x0000008f, 0x00000052, 0x00000267, 0x0000007c, 0x000700ef,
    0x00000006, 0x000002bc, 0x000002b9, 0x00000026, 0x0000002b, 0x00000325, 0x00070041, 0x00000063,
    0x000002be, 0x0000008f, 0x00000052, 0x00000267, 0x00000082, 0x000700ea, 0x00000006, 0x000002c1,
    0x000002be, 0x00000026, 0x0000002b, 0x00000324, 0x00070041, 0x00000063, 0x000002c3, 0x0000008f,
    0x00000052, 0x00000267, 0x00000087, 0x000700ea, 0x00000006, 0x000002c6, 0x000002c3, 0x00000026,
    0x0000002b, 0x00000323, 0x000200f9, 0x0000026a, 0x000200f8, 0x0000026a, 0x00050041, 0x00000027,
    0x000002cb, 0x0000002a, 0x00000026, 0x0004003d, 0x00000006, 0x000002cc, 0x000002cb, 0x00050084,
    0x00000006, 0x000002cd, 0x0000027c, 0x000002cc, 0x00050084, 0x00000006, 0x000002cf, 0x000002cd,
    0x00000163, 0x00050080, 0x00000006, 0x0000026d, 0x00000321, 0x000002cf, 0x000200f9, 0x00000241,
    0x000200f8, 0x0000026e, 0x000200f9, 0x00000166, 0x000200f8, 0x00000166, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_quantize_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x00000367, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000002f, 0x00000034, 0x00000043,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000002f,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000034, 0x0000000b, 0x00000018, 0x00040047, 0x0000003f,
    0x00000001, 0x00000000, 0x00040047, 0x00000040, 0x0000000b, 0x00000019, 0x00040047, 0x00000043,
    0x0000000b, 0x0000001b, 0x00050048, 0x0000009a, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x0000009a, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000009a, 0x00000002, 0x00000023,
    0x00000008, 0x00050048, 0x0000009a, 0x00000003, 0x00000023, 0x0000000c, 0x00050048, 0x0000009a,
    0x00000004, 0x00000023, 0x00000010, 0x00040047, 0x0000009b, 0x00000006, 0x00000014, 0x00040048,
    0x0000009c, 0x00000000, 0x00000018, 0x00050048, 0x0000009c, 0x00000000, 0x00000023, 0x00000000,
    0x00030047, 0x0000009c, 0x00000003, 0x00040047, 0x0000009e, 0x00000022, 0x00000000, 0x00040047,
    0x0000009e, 0x00000021, 0x00000002, 0x00050048, 0x000000a0, 0x00000000, 0x00000023, 0x00000000,
    0x00050048, 0x000000a0, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x000000a0, 0x00000002,
    0x00000023, 0x00000008, 0x00050048, 0x000000a0, 0x00000003, 0x00000023, 0x0000000c, 0x00050048,
    0x000000a0, 0x00000004, 0x00000023, 0x00000010, 0x00050048, 0x000000a0, 0x00000005, 0x00000023,
    0x00000014, 0x00030047, 0x000000a0, 0x00000002, 0x00040047, 0x0000017b, 0x00000006, 0x00000004,
    0x00040048, 0x0000017c, 0x00000000, 0x00000018, 0x00050048, 0x0000017c, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000017c, 0x00000003, 0x00040047, 0x0000017e, 0x00000022, 0x00000000,
    0x00040047, 0x0000017e, 0x00000021, 0x00000001, 0x00040047, 0x0000019b, 0x00000006, 0x00000004,
    0x00040048, 0x0000019c, 0x00000000, 0x00000019, 0x00050048, 0x0000019c, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000019c, 0x00000003, 0x00040047, 0x0000019e, 0x00000022, 0x00000000,
    0x00040047, 0x0000019e, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040015, 0x0000000d, 0x00000020,
    0x00000001, 0x00020014, 0x0000000f, 0x00040017, 0x0000002d, 0x00000006, 0x00000003, 0x00040020,
    0x0000002e, 0x00000001, 0x0000002d, 0x0004003b, 0x0000002e, 0x0000002f, 0x00000001, 0x0004002b,
    0x00000006, 0x00000030, 0x00000001, 0x00040020, 0x00000031, 0x00000001, 0x00000006, 0x0004003b,
    0x0000002e, 0x00000034, 0x00000001, 0x0004002b, 0x00000006, 0x00000035, 0x00000000, 0x00040032,
    0x00000006, 0x0000003f, 0x00000040, 0x00060033, 0x0000002d, 0x00000040, 0x0000003f, 0x00000030,
    0x00000030, 0x0004003b, 0x0000002e, 0x00000043, 0x00000001, 0x0004002b, 0x0000000d, 0x0000004a,
    0x0000001f, 0x0004002b, 0x0000000d, 0x0000005b, 0x00000001, 0x0004002b, 0x0000000d, 0x0000007a,
    0x00000017, 0x0004002b, 0x00000006, 0x0000007c, 0x000000ff, 0x0004002b, 0x0000000d, 0x0000007f,
    0x00000096, 0x0004002b, 0x00000006, 0x00000082, 0x007fffff, 0x0004002b, 0x0000000d, 0x00000085,
    0xffffff6a, 0x0004002b, 0x00000006, 0x00000089, 0x00800000, 0x0007001e, 0x0000009a, 0x00000006,
    0x0000000d, 0x0000000d, 0x0000000d, 0x00000006, 0x0003001d, 0x0000009b, 0x0000009a, 0x0003001e,
    0x0000009c, 0x0000009b, 0x00040020, 0x0000009d, 0x00000002, 0x0000009c, 0x0004003b, 0x0000009d,
    0x0000009e, 0x00000002, 0x0004002b, 0x0000000d, 0x0000009f, 0x00000000, 0x0008001e, 0x000000a0,
    0x00000006, 0x00000006, 0x00000006, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x000000a1,
    0x00000009, 0x000000a0, 0x0004003b, 0x000000a1, 0x000000a2, 0x00000009, 0x0004002b, 0x0000000d,
    0x000000a3, 0x00000005, 0x00040020, 0x000000a4, 0x00000009, 0x00000006, 0x0004002b, 0x0000000d,
    0x000000a9, 0x00000004, 0x0004002b, 0x0000000d, 0x000000ad, 0x00000003, 0x00040020, 0x000000b1,
    0x00000002, 0x0000009a, 0x0004002b, 0x00000006, 0x000000c4, 0x7f800000, 0x0004002b, 0x00000006,
    0x000000c8, 0x00040000, 0x0004002b, 0x0000000d, 0x000000e3, 0x00000011, 0x0004002b, 0x0000000d,
    0x000000e9, 0xfffffffe, 0x0004002b, 0x00000006, 0x000000fb, 0x00000008, 0x0004002b, 0x0000000d,
    0x00000115, 0x00000016, 0x0004002b, 0x00000006, 0x0000012a, 0x7fffffff, 0x0004002b, 0x00000006,
    0x00000158, 0x00000004, 0x0003001d, 0x0000017b, 0x00000006, 0x0003001e, 0x0000017c, 0x0000017b,
    0x00040020, 0x0000017d, 0x00000002, 0x0000017c, 0x0004003b, 0x0000017d, 0x0000017e, 0x00000002,
    0x00040020, 0x00000188, 0x00000002, 0x00000006, 0x0003001d, 0x0000019b, 0x00000006, 0x0003001e,
    0x0000019c, 0x0000019b, 0x00040020, 0x0000019d, 0x00000002, 0x0000019c, 0x0004003b, 0x0000019d,
    0x0000019e, 0x00000002, 0x0004002b, 0x0000000d, 0x00000366, 0xffffff54, 0x00050036, 0x00000002,
    0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x000300f7, 0x000001a4, 0x00000000,
    0x000300fb, 0x00000035, 0x000001a5, 0x000200f8, 0x000001a5, 0x00050041, 0x000000a4, 0x00000159,
    0x000000a2, 0x0000005b, 0x0004003d, 0x00000006, 0x0000015a, 0x00000159, 0x00050086, 0x00000006,
    0x0000015b, 0x00000158, 0x0000015a, 0x00050041, 0x00000031, 0x000001c6, 0x0000002f, 0x00000030,
    0x0004003d, 0x00000006, 0x000001c7, 0x000001c6, 0x00050041, 0x00000031, 0x000001c8, 0x00000034,
    0x00000035, 0x0004003d, 0x00000006, 0x000001c9, 0x000001c8, 0x00050084, 0x00000006, 0x000001ca,
    0x000001c7, 0x000001c9, 0x00050041, 0x00000031, 0x000001cb, 0x0000002f, 0x00000035, 0x0004003d,
    0x00000006, 0x000001cc, 0x000001cb, 0x00050080, 0x00000006, 0x000001cd, 0x000001ca, 0x000001cc,
    0x00050051, 0x00000006, 0x000001bf, 0x00000040, 0x00000000, 0x00050084, 0x00000006, 0x000001c0,
    0x000001cd, 0x000001bf, 0x00050041, 0x00000031, 0x000001c1, 0x00000043, 0x00000035, 0x0004003d,
    0x00000006, 0x000001c2, 0x000001c1, 0x00050080, 0x00000006, 0x000001c3, 0x000001c0, 0x000001c2,
    0x00050084, 0x00000006, 0x0000015f, 0x0000015b, 0x000001c3, 0x00050084, 0x00000006, 0x00000163,
    0x000000fb, 0x0000015a, 0x00050041, 0x000000a4, 0x00000166, 0x000000a2, 0x0000009f, 0x0004003d,
    0x00000006, 0x00000167, 0x00000166, 0x000500ae, 0x0000000f, 0x00000168, 0x0000015f, 0x00000167,
    0x000300f7, 0x0000016a, 0x00000000, 0x000400fa, 0x00000168, 0x00000169, 0x0000016a, 0x000200f8,
    0x00000169, 0x000200f9, 0x000001a4, 0x000200f8, 0x0000016a, 0x000200f9, 0x0000016d, 0x000200f8,
    0x0000016d, 0x000700f5, 0x00000006, 0x0000032f, 0x00000035, 0x0000016a, 0x00000198, 0x00000170,
    0x000700f5, 0x00000006, 0x0000032e, 0x00000035, 0x0000016a, 0x0000019a, 0x00000170, 0x00050082,
    0x00000006, 0x00000177, 0x00000167, 0x0000015f, 0x0007000c, 0x00000006, 0x00000178, 0x00000001,
    0x00000026, 0x0000015b, 0x00000177, 0x000500b0, 0x0000000f, 0x00000179, 0x0000032e, 0x00000178,
    0x000400f6, 0x0000016f, 0x00000170, 0x00000000, 0x000400fa, 0x00000179, 0x0000016e, 0x0000016f,
    0x000200f8, 0x0000016e, 0x00050080, 0x00000006, 0x00000181, 0x0000015f, 0x0000032e, 0x00050041,
    0x000000a4, 0x000001d1, 0x000000a2, 0x000000a3, 0x0004003d, 0x00000006, 0x000001d2, 0x000001d1,
    0x00050080, 0x00000006, 0x000001d4, 0x000001d2, 0x00000181, 0x00050041, 0x000000a4, 0x000001d5,
    0x000000a2, 0x000000a9, 0x0004003d, 0x00000006, 0x000001d6, 0x000001d5, 0x00050086, 0x00000006,
    0x000001d7, 0x000001d4, 0x000001d6, 0x00050041, 0x000000a4, 0x000001d8, 0x000000a2, 0x000000ad,
    0x0004003d, 0x00000006, 0x000001d9, 0x000001d8, 0x00050089, 0x00000006, 0x000001da, 0x000001d7,
    0x000001d9, 0x00060041, 0x000000b1, 0x000001db, 0x0000009e, 0x0000009f, 0x000001da, 0x0004003d,
    0x0000009a, 0x000001dc, 0x000001db, 0x00050051, 0x00000006, 0x000001dd, 0x000001dc, 0x00000000,
    0x00050051, 0x0000000d, 0x000001df, 0x000001dc, 0x00000001, 0x00050051, 0x0000000d, 0x000001e1,
    0x000001dc, 0x00000002, 0x00050051, 0x0000000d, 0x000001e3, 0x000001dc, 0x00000003, 0x00050051,
    0x00000006, 0x000001e5, 0x000001dc, 0x00000004, 0x00060041, 0x00000188, 0x00000189, 0x0000017e,
    0x0000009f, 0x00000181, 0x0004003d, 0x00000006, 0x0000018a, 0x00000189, 0x000300f7, 0x00000218,
    0x00000000, 0x000300fb, 0x00000035, 0x000001f2, 0x000200f8, 0x000001f2, 0x000500c7, 0x00000006,
    0x000001f4, 0x0000018a, 0x0000012a, 0x000500aa, 0x0000000f, 0x000001f6, 0x000001f4, 0x00000035,
    0x000500ac, 0x0000000f, 0x000001f8, 0x000001f4, 0x000000c4, 0x000500a6, 0x0000000f, 0x000001f9,
    0x000001f6, 0x000001f8, 0x000300f7, 0x000001fd, 0x00000000, 0x000400fa, 0x000001f9, 0x000001fa,
    0x000001fd, 0x000200f8, 0x000001fa, 0x000200f9, 0x00000218, 0x000200f8, 0x000001fd, 0x000500ab,
    0x0000000f, 0x00000200, 0x000001e5, 0x00000035, 0x000300f7, 0x00000277, 0x00000000, 0x000300fb,
    0x00000035, 0x0000022f, 0x000200f8, 0x0000022f, 0x000500aa, 0x0000000f, 0x00000231, 0x000001f4,
    0x000000c4, 0x000300f7, 0x00000233, 0x00000000, 0x000400fa, 0x00000231, 0x00000232, 0x00000233,
    0x000200f8, 0x00000232, 0x000200f9, 0x00000277, 0x000200f8, 0x00000233, 0x000300f7, 0x00000296,
    0x00000000, 0x000300fb, 0x00000035, 0x0000027f, 0x000200f8, 0x0000027f, 0x000500c2, 0x00000006,
    0x00000281, 0x000001f4, 0x0000007a, 0x000500c7, 0x00000006, 0x00000282, 0x00000281, 0x0000007c,
    0x0004007c, 0x0000000d, 0x00000283, 0x00000282, 0x00050082, 0x0000000d, 0x00000284, 0x00000283,
    0x0000007f, 0x000500c7, 0x00000006, 0x00000286, 0x000001f4, 0x00000082, 0x000500ad, 0x0000000f,
    0x00000288, 0x00000284, 0x00000085, 0x000300f7, 0x0000028d, 0x00000000, 0x000400fa, 0x00000288,
    0x00000289, 0x0000028d, 0x000200f8, 0x00000289, 0x000500c5, 0x00000006, 0x0000028b, 0x00000286,
    0x00000089, 0x000200f9, 0x00000296, 0x000200f8, 0x0000028d, 0x0006000c, 0x0000000d, 0x0000028f,
    0x00000001, 0x0000004b, 0x00000286, 0x00050082, 0x0000000d, 0x00000290, 0x0000007a, 0x0000028f,
    0x000500c4, 0x00000006, 0x00000293, 0x00000286, 0x00000290, 0x00050080, 0x0000000d, 0x00000295,
    0x0000028f, 0x00000366, 0x000200f9, 0x00000296, 0x000200f8, 0x00000296, 0x000700f5, 0x00000006,
    0x00000331, 0x0000028b, 0x00000289, 0x00000293, 0x0000028d, 0x000700f5, 0x0000000d, 0x00000330,
    0x00000284, 0x00000289, 0x00000295, 0x0000028d, 0x000300f7, 0x000002b5, 0x00000000, 0x000300fb,
    0x00000035, 0x0000029e, 0x000200f8, 0x0000029e, 0x000500c2, 0x00000006, 0x000002a0, 0x000001dd,
    0x0000007a, 0x000500c7, 0x00000006, 0x000002a1, 0x000002a0, 0x0000007c, 0x0004007c, 0x0000000d,
    0x000002a2, 0x000002a1, 0x00050082, 0x0000000d, 0x000002a3, 0x000002a2, 0x0000007f, 0x000500c7,
    0x00000006, 0x000002a5, 0x000001dd, 0x00000082, 0x000500ad, 0x0000000f, 0x000002a7, 0x000002a3,
    0x00000085, 0x000300f7, 0x000002ac, 0x00000000, 0x000400fa, 0x000002a7, 0x000002a8, 0x000002ac,
    0x000200f8, 0x000002a8, 0x000500c5, 0x00000006, 0x000002aa, 0x000002a5, 0x00000089, 0x000200f9,
    0x000002b5, 0x000200f8, 0x000002ac, 0x0006000c, 0x0000000d, 0x000002ae, 0x00000001, 0x0000004b,
    0x000002a5, 0x00050082, 0x0000000d, 0x000002af, 0x0000007a, 0x000002ae, 0x000500c4, 0x00000006,
    0x000002b2, 0x000002a5, 0x000002af, 0x00050080, 0x0000000d, 0x000002b4, 0x000002ae, 0x00000366,
    0x000200f9, 0x000002b5, 0x000200f8, 0x000002b5, 0x000700f5, 0x00000006, 0x00000333, 0x000002aa,
    0x000002a8, 0x000002b2, 0x000002ac, 0x000700f5, 0x0000000d, 0x00000332, 0x000002a3, 0x000002a8,
    0x000002b4, 0x000002ac, 0x00050082, 0x0000000d, 0x0000023b, 0x00000330, 0x00000332, 0x000500b0,
    0x0000000f, 0x0000023e, 0x00000331, 0x00000333, 0x000300f7, 0x00000244, 0x00000000, 0x000400fa,
    0x0000023e, 0x0000023f, 0x00000244, 0x000200f8, 0x0000023f, 0x000500c4, 0x00000006, 0x00000241,
    0x00000331, 0x00000030, 0x00050082, 0x0000000d, 0x00000243, 0x0000023b, 0x0000005b, 0x000200f9,
    0x00000244, 0x000200f8, 0x00000244, 0x000700f5, 0x00000006, 0x00000337, 0x00000331, 0x000002b5,
    0x00000241, 0x0000023f, 0x000700f5, 0x0000000d, 0x00000336, 0x0000023b, 0x000002b5, 0x00000243,
    0x0000023f, 0x000500ad, 0x0000000f, 0x00000246, 0x00000336, 0x000000e3, 0x000300f7, 0x00000248,
    0x00000000, 0x000400fa, 0x00000246, 0x00000247, 0x00000248, 0x000200f8, 0x00000247, 0x000200f9,
    0x00000277, 0x000200f8, 0x00000248, 0x000500b1, 0x0000000f, 0x0000024a, 0x00000336, 0x000000e9,
    0x000300f7, 0x0000024c, 0x00000000, 0x000400fa, 0x0000024a, 0x0000024b, 0x0000024c, 0x000200f8,
    0x0000024b, 0x000200f9, 0x00000277, 0x000200f8, 0x0000024c, 0x00050082, 0x00000006, 0x0000024f,
    0x00000337, 0x00000333, 0x000200f9, 0x00000250, 0x000200f8, 0x00000250, 0x000700f5, 0x00000006,
    0x0000033a, 0x00000030, 0x0000024c, 0x0000025c, 0x00000254, 0x000700f5, 0x00000006, 0x00000339,
    0x0000024f, 0x0000024c, 0x0000025f, 0x00000254, 0x000700f5, 0x0000000d, 0x00000338, 0x0000009f,
    0x0000024c, 0x00000262, 0x00000254, 0x000500b1, 0x0000000f, 0x00000253, 0x00000338, 0x000000ad,
    0x000400f6, 0x00000263, 0x00000254, 0x00000000, 0x000400fa, 0x00000253, 0x00000254, 0x00000263,
    0x000200f8, 0x00000254, 0x000500c4, 0x00000006, 0x00000256, 0x00000339, 0x000000fb, 0x000500c4,
    0x00000006, 0x00000258, 0x0000033a, 0x000000fb, 0x00050086, 0x00000006, 0x0000025b, 0x00000256,
    0x00000333, 0x000500c5, 0x00000006, 0x0000025c, 0x00000258, 0x0000025b, 0x00050089, 0x00000006,
    0x0000025f, 0x00000256, 0x00000333, 0x00050080, 0x0000000d, 0x00000262, 0x00000338, 0x0000005b,
    0x000200f9, 0x00000250, 0x000200f8, 0x00000263, 0x000500ab, 0x0000000f, 0x00000265, 0x00000339,
    0x00000035, 0x000500c2, 0x00000006, 0x000002c5, 0x0000033a, 0x0000005b, 0x000500c7, 0x00000006,
    0x000002ca, 0x0000033a, 0x00000030, 0x000500ac, 0x0000000f, 0x000002d1, 0x000002ca, 0x00000030,
    0x000400a8, 0x0000000f, 0x000002d2, 0x000002d1, 0x000300f7, 0x000002e2, 0x00000000, 0x000400fa,
    0x000002d2, 0x000002d3, 0x000002e2, 0x000200f8, 0x000002d3, 0x000500aa, 0x0000000f, 0x000002d6,
    0x000002ca, 0x00000030, 0x000300f7, 0x000002e0, 0x00000000, 0x000400fa, 0x000002d6, 0x000002d7,
    0x000002e0, 0x000200f8, 0x000002d7, 0x000400a8, 0x0000000f, 0x000002d9, 0x00000265, 0x000300f7,
    0x000002de, 0x00000000, 0x000400fa, 0x000002d9, 0x000002da, 0x000002de, 0x000200f8, 0x000002da,
    0x000500c7, 0x00000006, 0x000002dc, 0x000002c5, 0x00000030, 0x000500ab, 0x0000000f, 0x000002dd,
    0x000002dc, 0x00000035, 0x000200f9, 0x000002de, 0x000200f8, 0x000002de, 0x000700f5, 0x0000000f,
    0x000002df, 0x00000265, 0x000002d7, 0x000002dd, 0x000002da, 0x000200f9, 0x000002e0, 0x000200f8,
    0x000002e0, 0x000700f5, 0x0000000f, 0x000002e1, 0x000002d6, 0x000002d3, 0x000002df, 0x000002de,
    0x000200f9, 0x000002e2, 0x000200f8, 0x000002e2, 0x000700f5, 0x0000000f, 0x000002e3, 0x000002d1,
    0x00000263, 0x000002e1, 0x000002e0, 0x000600a9, 0x00000006, 0x000002e4, 0x000002e3, 0x00000030,
    0x00000035, 0x00050080, 0x00000006, 0x000002e5, 0x000002c5, 0x000002e4, 0x000300f7, 0x00000272,
    0x00000000, 0x000400fa, 0x00000200, 0x00000269, 0x00000272, 0x000200f8, 0x00000269, 0x00050082,
    0x0000000d, 0x0000026c, 0x00000115, 0x00000336, 0x000500c4, 0x00000006, 0x0000026d, 0x00000030,
    0x0000026c, 0x00050080, 0x00000006, 0x0000026e, 0x000002e5, 0x0000026d, 0x00050082, 0x0000000d,
    0x00000270, 0x0000007a, 0x00000336, 0x000500c2, 0x00000006, 0x00000271, 0x0000026e, 0x00000270,
    0x000200f9, 0x00000277, 0x000200f8, 0x00000272, 0x00050082, 0x0000000d, 0x00000274, 0x0000007a,
    0x00000336, 0x000300f7, 0x00000317, 0x00000000, 0x000300fb, 0x00000035, 0x000002ef, 0x000200f8,
    0x000002ef, 0x000500ad, 0x0000000f, 0x000002f1, 0x00000274, 0x0000004a, 0x000300f7, 0x000002f3,
    0x00000000, 0x000400fa, 0x000002f1, 0x000002f2, 0x000002f3, 0x000200f8, 0x000002f2, 0x000200f9,
    0x00000317, 0x000200f8, 0x000002f3, 0x000500c2, 0x00000006, 0x000002f6, 0x000002e5, 0x00000274,
    0x000500c4, 0x00000006, 0x000002f9, 0x00000030, 0x00000274, 0x00050082, 0x00000006, 0x000002fa,
    0x000002f9, 0x00000030, 0x000500c7, 0x00000006, 0x000002fb, 0x000002e5, 0x000002fa, 0x00050082,
    0x0000000d, 0x000002fd, 0x00000115, 0x00000336, 0x000500c4, 0x00000006, 0x000002fe, 0x00000030,
    0x000002fd, 0x000500ac, 0x0000000f, 0x00000302, 0x000002fb, 0x000002fe, 0x000400a8, 0x0000000f,
    0x00000303, 0x00000302, 0x000300f7, 0x00000313, 0x00000000, 0x000400fa, 0x00000303, 0x00000304,
    0x00000313, 0x000200f8, 0x00000304, 0x000500aa, 0x0000000f, 0x00000307, 0x000002fb, 0x000002fe,
    0x000300f7, 0x00000311, 0x00000000, 0x000400fa, 0x00000307, 0x00000308, 0x00000311, 0x000200f8,
    0x00000308, 0x000500c7, 0x00000006, 0x0000030d, 0x000002f6, 0x00000030, 0x000500ab, 0x0000000f,
    0x0000030e, 0x0000030d, 0x00000035, 0x000200f9, 0x00000311, 0x000200f8, 0x00000311, 0x000700f5,
    0x0000000f, 0x00000312, 0x00000307, 0x00000304, 0x0000030e, 0x00000308, 0x000200f9, 0x00000313,
    0x000200f8, 0x00000313, 0x000700f5, 0x0000000f, 0x00000314, 0x00000302, 0x000002f3, 0x00000312,
    0x00000311, 0x000600a9, 0x00000006, 0x00000315, 0x00000314, 0x00000030, 0x00000035, 0x00050080,
    0x00000006, 0x00000316, 0x000002f6, 0x00000315, 0x000200f9, 0x00000317, 0x000200f8, 0x00000317,
    0x000700f5, 0x00000006, 0x00000341, 0x00000035, 0x000002f2, 0x00000316, 0x00000313, 0x000200f9,
    0x00000277, 0x000200f8, 0x00000277, 0x000d00f5, 0x00000006, 0x00000342, 0x000000c8, 0x00000232,
    0x000000c8, 0x00000247, 0x00000035, 0x0000024b, 0x00000271, 0x00000269, 0x00000341, 0x00000317,
    0x0004007c, 0x0000000d, 0x00000205, 0x00000342, 0x000500c2, 0x00000006, 0x00000209, 0x0000018a,
    0x0000004a, 0x000500ab, 0x0000000f, 0x0000020a, 0x00000209, 0x00000035, 0x000300f7, 0x00000210,
    0x00000000, 0x000400fa, 0x0000020a, 0x0000020b, 0x0000020e, 0x000200f8, 0x0000020e, 0x000200f9,
    0x00000210, 0x000200f8, 0x0000020b, 0x0004007e, 0x0000000d, 0x0000020d, 0x00000205, 0x000200f9,
    0x00000210, 0x000200f8, 0x00000210, 0x000700f5, 0x0000000d, 0x00000343, 0x0000020d, 0x0000020b,
    0x00000205, 0x0000020e, 0x00050080, 0x0000000d, 0x00000212, 0x000001df, 0x00000343, 0x0008000c,
    0x0000000d, 0x00000217, 0x00000001, 0x0000002d, 0x00000212, 0x000001e1, 0x000001e3, 0x000200f9,
    0x00000218, 0x000200f8, 0x00000218, 0x000700f5, 0x0000000d, 0x00000344, 0x000001df, 0x000001fa,
    0x00000217, 0x00000210, 0x0004007c, 0x00000006, 0x0000018d, 0x00000344, 0x000500c4, 0x00000006,
    0x00000190, 0x00000030, 0x00000163, 0x00050082, 0x00000006, 0x00000191, 0x00000190, 0x00000030,
    0x000500c7, 0x00000006, 0x00000192, 0x0000018d, 0x00000191, 0x00050084, 0x00000006, 0x00000195,
    0x00000163, 0x0000032e, 0x000500c4, 0x00000006, 0x00000196, 0x00000192, 0x00000195, 0x000500c5,
    0x00000006, 0x00000198, 0x0000032f, 0x00000196, 0x000200f9, 0x00000170, 0x000200f8, 0x00000170,
    0x00050080, 0x00000006, 0x0000019a, 0x0000032e, 0x0000005b, 0x000200f9, 0x0000016d, 0x000200f8,
    0x0000016f, 0x00050086, 0x00000006, 0x000001a1, 0x0000015f, 0x0000015b, 0x00060041, 0x00000188,
    0x000001a3, 0x0000019e, 0x0000009f, 0x000001a1, 0x0003003e, 0x000001a3, 0x0000032f, 0x000200f9,
    0x000001a4, 0x000200f8, 0x000001a4, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_to_bf16_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x0000012a, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00000016, 0x0000001b, 0x0000002a,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000016,
    0x0000000b, 0x0000001a, 0x00040047, 0x0000001b, 0x0000000b, 0x00000018, 0x00040047, 0x00000026,
    0x00000001, 0x00000000, 0x00040047, 0x00000027, 0x0000000b, 0x00000019, 0x00040047, 0x0000002a,
    0x0000000b, 0x0000001b, 0x00040047, 0x00000031, 0x00000006, 0x00000004, 0x00040048, 0x00000032,
    0x00000000, 0x00000018, 0x00050048, 0x00000032, 0x00000000, 0x00000023, 0x00000000, 0x00030047,
    0x00000032, 0x00000003, 0x00040047, 0x00000034, 0x00000022, 0x00000000, 0x00040047, 0x00000034,
    0x00000021, 0x00000001, 0x00050048, 0x0000003e, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x0000003e, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000003e, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x0000003e, 0x00000002, 0x00040047, 0x00000095, 0x00000006, 0x00000004,
    0x00040048, 0x00000096, 0x00000000, 0x00000019, 0x00050048, 0x00000096, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000096, 0x00000003, 0x00040047, 0x00000098, 0x00000022, 0x00000000,
    0x00040047, 0x00000098, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x00000014, 0x00000006,
    0x00000003, 0x00040020, 0x00000015, 0x00000001, 0x00000014, 0x0004003b, 0x00000015, 0x00000016,
    0x00000001, 0x0004002b, 0x00000006, 0x00000017, 0x00000001, 0x00040020, 0x00000018, 0x00000001,
    0x00000006, 0x0004003b, 0x00000015, 0x0000001b, 0x00000001, 0x0004002b, 0x00000006, 0x0000001c,
    0x00000000, 0x00040032, 0x00000006, 0x00000026, 0x00000040, 0x00060033, 0x00000014, 0x00000027,
    0x00000026, 0x00000017, 0x00000017, 0x0004003b, 0x00000015, 0x0000002a, 0x00000001, 0x0003001d,
    0x00000031, 0x00000006, 0x0003001e, 0x00000032, 0x00000031, 0x00040020, 0x00000033, 0x00000002,
    0x00000032, 0x0004003b, 0x00000033, 0x00000034, 0x00000002, 0x00040015, 0x00000035, 0x00000020,
    0x00000001, 0x0004002b, 0x00000035, 0x00000036, 0x00000000, 0x00040020, 0x00000038, 0x00000002,
    0x00000006, 0x00020014, 0x0000003b, 0x0005001e, 0x0000003e, 0x00000006, 0x00000006, 0x00000006,
    0x00040020, 0x0000003f, 0x00000009, 0x0000003e, 0x0004003b, 0x0000003f, 0x00000040, 0x00000009,
    0x00040020, 0x00000041, 0x00000009, 0x00000006, 0x0004002b, 0x00000035, 0x00000047, 0x00000002,
    0x0004002b, 0x00000006, 0x00000050, 0x00000008, 0x0004002b, 0x00000006, 0x0000005d, 0x7fffffff,
    0x0004002b, 0x00000006, 0x0000005f, 0x7f800000, 0x0004002b, 0x00000035, 0x00000064, 0x00000010,
    0x0004002b, 0x00000006, 0x00000066, 0x00000040, 0x0004002b, 0x00000006, 0x0000006a, 0x00007fff,
    0x0004002b, 0x00000006, 0x00000074, 0x00000002, 0x0003001d, 0x00000095, 0x00000006, 0x0003001e,
    0x00000096, 0x00000095, 0x00040020, 0x00000097, 0x00000002, 0x00000096, 0x0004003b, 0x00000097,
    0x00000098, 0x00000002, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8,
    0x00000005, 0x000300f7, 0x000000a0, 0x00000000, 0x000300fb, 0x0000001c, 0x000000a1, 0x000200f8,
    0x000000a1, 0x00050041, 0x00000018, 0x000000b5, 0x00000016, 0x00000017, 0x0004003d, 0x00000006,
    0x000000b6, 0x000000b5, 0x00050041, 0x00000018, 0x000000b7, 0x0000001b, 0x0000001c, 0x0004003d,
    0x00000006, 0x000000b8, 0x000000b7, 0x00050084, 0x00000006, 0x000000b9, 0x000000b6, 0x000000b8,
    0x00050041, 0x00000018, 0x000000ba, 0x00000016, 0x0000001c, 0x0004003d, 0x00000006, 0x000000bb,
    0x000000ba, 0x00050080, 0x00000006, 0x000000bc, 0x000000b9, 0x000000bb, 0x00050051, 0x00000006,
    0x000000ae, 0x00000027, 0x00000000, 0x00050084, 0x00000006, 0x000000af, 0x000000bc, 0x000000ae,
    0x00050041, 0x00000018, 0x000000b0, 0x0000002a, 0x0000001c, 0x0004003d, 0x00000006, 0x000000b1,
    0x000000b0, 0x00050080, 0x00000006, 0x000000b2, 0x000000af, 0x000000b1, 0x00050084, 0x00000006,
    0x00000076, 0x00000074, 0x000000b2, 0x00050041, 0x00000041, 0x00000078, 0x00000040, 0x00000036,
    0x0004003d, 0x00000006, 0x00000079, 0x00000078, 0x000500ae, 0x0000003b, 0x0000007a, 0x00000076,
    0x00000079, 0x000300f7, 0x0000007c, 0x00000000, 0x000400fa, 0x0000007a, 0x0000007b, 0x0000007c,
    0x000200f8, 0x0000007b, 0x000200f9, 0x000000a0, 0x000200f8, 0x0000007c, 0x00060041, 0x00000038,
    0x000000c2, 0x00000034, 0x00000036, 0x00000076, 0x0004003d, 0x00000006, 0x000000c3, 0x000000c2,
    0x00050080, 0x00000006, 0x000000c5, 0x00000076, 0x00000017, 0x000500aa, 0x0000003b, 0x000000c8,
    0x000000c5, 0x00000079, 0x000300f7, 0x000000cd, 0x00000000, 0x000400fa, 0x000000c8, 0x000000c9,
    0x000000cd, 0x000200f8, 0x000000c9, 0x00050041, 0x00000041, 0x000000ca, 0x00000040, 0x00000047,
    0x0004003d, 0x00000006, 0x000000cb, 0x000000ca, 0x000500ab, 0x0000003b, 0x000000cc, 0x000000cb,
    0x0000001c, 0x000200f9, 0x000000cd, 0x000200f8, 0x000000cd, 0x000700f5, 0x0000003b, 0x000000ce,
    0x000000c8, 0x0000007c, 0x000000cc, 0x000000c9, 0x000300f7, 0x000000d9, 0x00000000, 0x000400fa,
    0x000000ce, 0x000000cf, 0x000000d7, 0x000200f8, 0x000000cf, 0x00050041, 0x00000041, 0x000000d1,
    0x00000040, 0x00000047, 0x0004003d, 0x00000006, 0x000000d2, 0x000000d1, 0x00050084, 0x00000006,
    0x000000d3, 0x00000050, 0x000000d2, 0x000500c4, 0x00000006, 0x000000d4, 0x00000017, 0x000000d3,
    0x00050082, 0x00000006, 0x000000d5, 0x000000d4, 0x00000017, 0x000500c7, 0x00000006, 0x000000d6,
    0x000000c3, 0x000000d5, 0x000200f9, 0x000000d9, 0x000200f8, 0x000000d7, 0x000200f9, 0x000000d9,
    0x000200f8, 0x000000d9, 0x000700f5, 0x00000006, 0x00000125, 0x000000d6, 0x000000cf, 0x000000c3,
    0x000000d7, 0x000300f7, 0x000000ef, 0x00000000, 0x000300fb, 0x0000001c, 0x000000df, 0x000200f8,
    0x000000df, 0x000500c7, 0x00000006, 0x000000e1, 0x00000125, 0x0000005d, 0x000500ac, 0x0000003b,
    0x000000e2, 0x000000e1, 0x0000005f, 0x000300f7, 0x000000e7, 0x00000000, 0x000400fa, 0x000000e2,
    0x000000e3, 0x000000e7, 0x000200f8, 0x000000e3, 0x000500c2, 0x00000006, 0x000000e5, 0x00000125,
    0x00000064, 0x000500c5, 0x00000006, 0x000000e6, 0x000000e5, 0x00000066, 0x000200f9, 0x000000ef,
    0x000200f8, 0x000000e7, 0x00050080, 0x00000006, 0x000000e9, 0x00000125, 0x0000006a, 0x000500c2,
    0x00000006, 0x000000eb, 0x00000125, 0x00000064, 0x000500c7, 0x00000006, 0x000000ec, 0x000000eb,
    0x00000017, 0x00050080, 0x00000006, 0x000000ed, 0x000000e9, 0x000000ec, 0x000500c2, 0x00000006,
    0x000000ee, 0x000000ed, 0x00000064, 0x000200f9, 0x000000ef, 0x000200f8, 0x000000ef, 0x000700f5,
    0x00000006, 0x00000126, 0x000000e6, 0x000000e3, 0x000000ee, 0x000000e7, 0x000500b0, 0x0000003b,
    0x00000089, 0x000000c5, 0x00000079, 0x000300f7, 0x0000008c, 0x00000000, 0x000400fa, 0x00000089,
    0x0000008b, 0x00000093, 0x000200f8, 0x0000008b, 0x00060041, 0x00000038, 0x000000f6, 0x00000034,
    0x00000036, 0x000000c5, 0x0004003d, 0x00000006, 0x000000f7, 0x000000f6, 0x00050080, 0x00000006,
    0x000000f9, 0x00000076, 0x00000074, 0x000500aa, 0x0000003b, 0x000000fc, 0x000000f9, 0x00000079,
    0x000300f7, 0x00000101, 0x00000000, 0x000400fa, 0x000000fc, 0x000000fd, 0x00000101, 0x000200f8,
    0x000000fd, 0x00050041, 0x00000041, 0x000000fe, 0x00000040, 0x00000047, 0x0004003d, 0x00000006,
    0x000000ff, 0x000000fe, 0x000500ab, 0x0000003b, 0x00000100, 0x000000ff, 0x0000001c, 0x000200f9,
    0x00000101, 0x000200f8, 0x00000101, 0x000700f5, 0x0000003b, 0x00000102, 0x000000fc, 0x0000008b,
    0x00000100, 0x000000fd, 0x000300f7, 0x0000010d, 0x00000000, 0x000400fa, 0x00000102, 0x00000103,
    0x0000010b, 0x000200f8, 0x00000103, 0x00050041, 0x00000041, 0x00000105, 0x00000040, 0x00000047,
    0x0004003d, 0x00000006, 0x00000106, 0x00000105, 0x00050084, 0x00000006, 0x00000107, 0x00000050,
    0x00000106, 0x000500c4, 0x00000006, 0x00000108, 0x00000017, 0x00000107, 0x00050082, 0x00000006,
    0x00000109, 0x00000108, 0x00000017, 0x000500c7, 0x00000006, 0x0000010a, 0x000000f7, 0x00000109,
    0x000200f9, 0x0000010d, 0x000200f8, 0x0000010b, 0x000200f9, 0x0000010d, 0x000200f8, 0x0000010d,
    0x000700f5, 0x00000006, 0x00000127, 0x0000010a, 0x00000103, 0x000000f7, 0x0000010b, 0x000300f7,
    0x00000123, 0x00000000, 0x000300fb, 0x0000001c, 0x00000113, 0x000200f8, 0x00000113, 0x000500c7,
    0x00000006, 0x00000115, 0x00000127, 0x0000005d, 0x000500ac, 0x0000003b, 0x00000116, 0x00000115,
    0x0000005f, 0x000300f7, 0x0000011b, 0x00000000, 0x000400fa, 0x00000116, 0x00000117, 0x0000011b,
    0x000200f8, 0x00000117, 0x000500c2, 0x00000006, 0x00000119, 0x00000127, 0x00000064, 0x000500c5,
    0x00000006, 0x0000011a, 0x00000119, 0x00000066, 0x000200f9, 0x00000123, 0x000200f8, 0x0000011b,
    0x00050080, 0x00000006, 0x0000011d, 0x00000127, 0x0000006a, 0x000500c2, 0x00000006, 0x0000011f,
    0x00000127, 0x00000064, 0x000500c7, 0x00000006, 0x00000120, 0x0000011f, 0x00000017, 0x00050080,
    0x00000006, 0x00000121, 0x0000011d, 0x00000120, 0x000500c2, 0x00000006, 0x00000122, 0x00000121,
    0x00000064, 0x000200f9, 0x00000123, 0x000200f8, 0x00000123, 0x000700f5, 0x00000006, 0x00000128,
    0x0000011a, 0x00000117, 0x00000122, 0x0000011b, 0x000200f9, 0x0000008c, 0x000200f8, 0x00000093,
    0x000200f9, 0x0000008c, 0x000200f8, 0x0000008c, 0x000700f5, 0x00000006, 0x00000129, 0x00000128,
    0x00000123, 0x0000001c, 0x00000093, 0x00050086, 0x00000006, 0x0000009a, 0x00000076, 0x00000074,
    0x000500c4, 0x00000006, 0x0000009c, 0x00000129, 0x00000064, 0x000500c5, 0x00000006, 0x0000009e,
    0x0000009c, 0x00000126, 0x00060041, 0x00000038, 0x0000009f, 0x00000098, 0x00000036, 0x0000009a,
    0x0003003e, 0x0000009f, 0x0000009e, 0x000200f9, 0x000000a0, 0x000200f8, 0x000000a0, 0x000100fd,
    0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_to_f16_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x00000291, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00000020, 0x00000025, 0x00000034,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000020,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000025, 0x0000000b, 0x00000018, 0x00040047, 0x00000030,
    0x00000001, 0x00000000, 0x00040047, 0x00000031, 0x0000000b, 0x00000019, 0x00040047, 0x00000034,
    0x0000000b, 0x0000001b, 0x00040047, 0x0000003b, 0x00000006, 0x00000004, 0x00040048, 0x0000003c,
    0x00000000, 0x00000018, 0x00050048, 0x0000003c, 0x00000000, 0x00000023, 0x00000000, 0x00030047,
    0x0000003c, 0x00000003, 0x00040047, 0x0000003e, 0x00000022, 0x00000000, 0x00040047, 0x0000003e,
    0x00000021, 0x00000001, 0x00050048, 0x00000046, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x00000046, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x00000046, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x00000046, 0x00000002, 0x00040047, 0x000000f6, 0x00000006, 0x00000004,
    0x00040048, 0x000000f7, 0x00000000, 0x00000019, 0x00050048, 0x000000f7, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x000000f7, 0x00000003, 0x00040047, 0x000000f9, 0x00000022, 0x00000000,
    0x00040047, 0x000000f9, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040015, 0x00000011, 0x00000020,
    0x00000001, 0x00020014, 0x00000013, 0x00040017, 0x0000001e, 0x00000006, 0x00000003, 0x00040020,
    0x0000001f, 0x00000001, 0x0000001e, 0x0004003b, 0x0000001f, 0x00000020, 0x00000001, 0x0004002b,
    0x00000006, 0x00000021, 0x00000001, 0x00040020, 0x00000022, 0x00000001, 0x00000006, 0x0004003b,
    0x0000001f, 0x00000025, 0x00000001, 0x0004002b, 0x00000006, 0x00000026, 0x00000000, 0x00040032,
    0x00000006, 0x00000030, 0x00000040, 0x00060033, 0x0000001e, 0x00000031, 0x00000030, 0x00000021,
    0x00000021, 0x0004003b, 0x0000001f, 0x00000034, 0x00000001, 0x0003001d, 0x0000003b, 0x00000006,
    0x0003001e, 0x0000003c, 0x0000003b, 0x00040020, 0x0000003d, 0x00000002, 0x0000003c, 0x0004003b,
    0x0000003d, 0x0000003e, 0x00000002, 0x0004002b, 0x00000011, 0x0000003f, 0x00000000, 0x00040020,
    0x00000041, 0x00000002, 0x00000006, 0x0005001e, 0x00000046, 0x00000006, 0x00000006, 0x00000006,
    0x00040020, 0x00000047, 0x00000009, 0x00000046, 0x0004003b, 0x00000047, 0x00000048, 0x00000009,
    0x00040020, 0x00000049, 0x00000009, 0x00000006, 0x0004002b, 0x00000011, 0x0000004f, 0x00000002,
    0x0004002b, 0x00000006, 0x00000058, 0x00000008, 0x0004002b, 0x00000011, 0x00000065, 0x0000001f,
    0x0004002b, 0x00000011, 0x00000095, 0x00000010, 0x0004002b, 0x00000006, 0x00000097, 0x00008000,
    0x0004002b, 0x00000006, 0x0000009b, 0x7fffffff, 0x0004002b, 0x00000006, 0x0000009e, 0x7f800000,
    0x0004002b, 0x00000006, 0x000000a3, 0x00007e00, 0x0004002b, 0x00000011, 0x000000a5, 0x0000000d,
    0x0004002b, 0x00000006, 0x000000a7, 0x000003ff, 0x0004002b, 0x00000006, 0x000000ac, 0x477ff000,
    0x0004002b, 0x00000006, 0x000000b0, 0x00007c00, 0x0004002b, 0x00000006, 0x000000b3, 0x38800000,
    0x0004002b, 0x00000006, 0x000000b8, 0x38000000, 0x0004002b, 0x00000006, 0x000000c1, 0x007fffff,
    0x0004002b, 0x00000006, 0x000000c3, 0x00800000, 0x0004002b, 0x00000011, 0x000000c5, 0x0000007e,
    0x0004002b, 0x00000011, 0x000000c7, 0x00000017, 0x0004002b, 0x00000006, 0x000000d5, 0x00000002,
    0x0003001d, 0x000000f6, 0x00000006, 0x0003001e, 0x000000f7, 0x000000f6, 0x00040020, 0x000000f8,
    0x00000002, 0x000000f7, 0x0004003b, 0x000000f8, 0x000000f9, 0x00000002, 0x0004002b, 0x00000006,
    0x0000028c, 0x00001fff, 0x0004002b, 0x00000006, 0x0000028e, 0x00001000, 0x0004002b, 0x00000011,
    0x00000290, 0x0000007d, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8,
    0x00000005, 0x000300f7, 0x00000101, 0x00000000, 0x000300fb, 0x00000026, 0x00000102, 0x000200f8,
    0x00000102, 0x00050041, 0x00000022, 0x00000114, 0x00000020, 0x00000021, 0x0004003d, 0x00000006,
    0x00000115, 0x00000114, 0x00050041, 0x00000022, 0x00000116, 0x00000025, 0x00000026, 0x0004003d,
    0x00000006, 0x00000117, 0x00000116, 0x00050084, 0x00000006, 0x00000118, 0x00000115, 0x00000117,
    0x00050041, 0x00000022, 0x00000119, 0x00000020, 0x00000026, 0x0004003d, 0x00000006, 0x0000011a,
    0x00000119, 0x00050080, 0x00000006, 0x0000011b, 0x00000118, 0x0000011a, 0x00050051, 0x00000006,
    0x0000010d, 0x00000031, 0x00000000, 0x00050084, 0x00000006, 0x0000010e, 0x0000011b, 0x0000010d,
    0x00050041, 0x00000022, 0x0000010f, 0x00000034, 0x00000026, 0x0004003d, 0x00000006, 0x00000110,
    0x0000010f, 0x00050080, 0x00000006, 0x00000111, 0x0000010e, 0x00000110, 0x00050084, 0x00000006,
    0x000000d7, 0x000000d5, 0x00000111, 0x00050041, 0x00000049, 0x000000d9, 0x00000048, 0x0000003f,
    0x0004003d, 0x00000006, 0x000000da, 0x000000d9, 0x000500ae, 0x00000013, 0x000000db, 0x000000d7,
    0x000000da, 0x000300f7, 0x000000dd, 0x00000000, 0x000400fa, 0x000000db, 0x000000dc, 0x000000dd,
    0x000200f8, 0x000000dc, 0x000200f9, 0x00000101, 0x000200f8, 0x000000dd, 0x00060041, 0x00000041,
    0x00000121, 0x0000003e, 0x0000003f, 0x000000d7, 0x0004003d, 0x00000006, 0x00000122, 0x00000121,
    0x00050080, 0x00000006, 0x00000124, 0x000000d7, 0x00000021, 0x000500aa, 0x00000013, 0x00000127,
    0x00000124, 0x000000da, 0x000300f7, 0x0000012c, 0x00000000, 0x000400fa, 0x00000127, 0x00000128,
    0x0000012c, 0x000200f8, 0x00000128, 0x00050041, 0x00000049, 0x00000129, 0x00000048, 0x0000004f,
    0x0004003d, 0x00000006, 0x0000012a, 0x00000129, 0x000500ab, 0x00000013, 0x0000012b, 0x0000012a,
    0x00000026, 0x000200f9, 0x0000012c, 0x000200f8, 0x0000012c, 0x000700f5, 0x00000013, 0x0000012d,
    0x00000127, 0x000000dd, 0x0000012b, 0x00000128, 0x000300f7, 0x00000138, 0x00000000, 0x000400fa,
    0x0000012d, 0x0000012e, 0x00000136, 0x000200f8, 0x00000136, 0x000200f9, 0x00000138, 0x000200f8,
    0x0000012e, 0x00050041, 0x00000049, 0x00000130, 0x00000048, 0x0000004f, 0x0004003d, 0x00000006,
    0x00000131, 0x00000130, 0x00050084, 0x00000006, 0x00000132, 0x00000058, 0x00000131, 0x000500c4,
    0x00000006, 0x00000133, 0x00000021, 0x00000132, 0x00050082, 0x00000006, 0x00000134, 0x00000133,
    0x00000021, 0x000500c7, 0x00000006, 0x00000135, 0x00000122, 0x00000134, 0x000200f9, 0x00000138,
    0x000200f8, 0x00000138, 0x000700f5, 0x00000006, 0x0000027e, 0x00000135, 0x0000012e, 0x00000122,
    0x00000136, 0x000500c2, 0x00000006, 0x00000146, 0x0000027e, 0x00000095, 0x000500c7, 0x00000006,
    0x00000147, 0x00000146, 0x00000097, 0x000500c7, 0x00000006, 0x00000149, 0x0000027e, 0x0000009b,
    0x000500ac, 0x00000013, 0x0000014b, 0x00000149, 0x0000009e, 0x000300f7, 0x00000167, 0x00000000,
    0x000400fa, 0x0000014b, 0x0000014c, 0x00000151, 0x000200f8, 0x00000151, 0x000500ae, 0x00000013,
    0x00000153, 0x00000149, 0x000000ac, 0x000300f7, 0x00000166, 0x00000000, 0x000400fa, 0x00000153,
    0x00000154, 0x00000155, 0x000200f8, 0x00000155, 0x000500ae, 0x00000013, 0x00000157, 0x00000149,
    0x000000b3, 0x000300f7, 0x00000165, 0x00000000, 0x000400fa, 0x00000157, 0x00000158, 0x0000015c,
    0x000200f8, 0x0000015c, 0x000500c7, 0x00000006, 0x0000015e, 0x00000149, 0x000000c1, 0x000500c5,
    0x00000006, 0x0000015f, 0x0000015e, 0x000000c3, 0x000500c2, 0x00000006, 0x00000161, 0x00000149,
    0x000000c7, 0x0004007c, 0x00000011, 0x00000162, 0x00000161, 0x00050082, 0x00000011, 0x00000163,
    0x000000c5, 0x00000162, 0x000300f7, 0x000001cb, 0x00000000, 0x000300fb, 0x00000026, 0x000001a3,
    0x000200f8, 0x000001a3, 0x000500ad, 0x00000013, 0x000001a5, 0x00000163, 0x00000065, 0x000300f7,
    0x000001a7, 0x00000000, 0x000400fa, 0x000001a5, 0x000001a6, 0x000001a7, 0x000200f8, 0x000001a6,
    0x000200f9, 0x000001cb, 0x000200f8, 0x000001a7, 0x000500c2, 0x00000006, 0x000001aa, 0x0000015f,
    0x00000163, 0x000500c4, 0x00000006, 0x000001ad, 0x00000021, 0x00000163, 0x00050082, 0x00000006,
    0x000001ae, 0x000001ad, 0x00000021, 0x000500c7, 0x00000006, 0x000001af, 0x0000015f, 0x000001ae,
    0x00050082, 0x00000011, 0x000001b1, 0x00000290, 0x00000162, 0x000500c4, 0x00000006, 0x000001b2,
    0x00000021, 0x000001b1, 0x000500ac, 0x00000013, 0x000001b6, 0x000001af, 0x000001b2, 0x000400a8,
    0x00000013, 0x000001b7, 0x000001b6, 0x000300f7, 0x000001c7, 0x00000000, 0x000400fa, 0x000001b7,
    0x000001b8, 0x000001c7, 0x000200f8, 0x000001b8, 0x000500aa, 0x00000013, 0x000001bb, 0x000001af,
    0x000001b2, 0x000300f7, 0x000001c5, 0x00000000, 0x000400fa, 0x000001bb, 0x000001bc, 0x000001c5,
    0x000200f8, 0x000001bc, 0x000500c7, 0x00000006, 0x000001c1, 0x000001aa, 0x00000021, 0x000500ab,
    0x00000013, 0x000001c2, 0x000001c1, 0x00000026, 0x000200f9, 0x000001c5, 0x000200f8, 0x000001c5,
    0x000700f5, 0x00000013, 0x000001c6, 0x000001bb, 0x000001b8, 0x000001c2, 0x000001bc, 0x000200f9,
    0x000001c7, 0x000200f8, 0x000001c7, 0x000700f5, 0x00000013, 0x000001c8, 0x000001b6, 0x000001a7,
    0x000001c6, 0x000001c5, 0x000600a9, 0x00000006, 0x000001c9, 0x000001c8, 0x00000021, 0x00000026,
    0x00050080, 0x00000006, 0x000001ca, 0x000001aa, 0x000001c9, 0x000200f9, 0x000001cb, 0x000200f8,
    0x000001cb, 0x000700f5, 0x00000006, 0x0000027f, 0x00000026, 0x000001a6, 0x000001ca, 0x000001c7,
    0x000200f9, 0x00000165, 0x000200f8, 0x00000158, 0x00050082, 0x00000006, 0x0000015a, 0x00000149,
    0x000000b8, 0x000500c2, 0x00000006, 0x00000179, 0x0000015a, 0x000000a5, 0x000500c7, 0x00000006,
    0x0000017e, 0x0000015a, 0x0000028c, 0x000500ac, 0x00000013, 0x00000185, 0x0000017e, 0x0000028e,
    0x000400a8, 0x00000013, 0x00000186, 0x00000185, 0x000300f7, 0x00000196, 0x00000000, 0x000400fa,
    0x00000186, 0x00000187, 0x00000196, 0x000200f8, 0x00000187, 0x000500aa, 0x00000013, 0x0000018a,
    0x0000017e, 0x0000028e, 0x000300f7, 0x00000194, 0x00000000, 0x000400fa, 0x0000018a, 0x0000018b,
    0x00000194, 0x000200f8, 0x0000018b, 0x000500c7, 0x00000006, 0x00000190, 0x00000179, 0x00000021,
    0x000500ab, 0x00000013, 0x00000191, 0x00000190, 0x00000026, 0x000200f9, 0x00000194, 0x000200f8,
    0x00000194, 0x000700f5, 0x00000013, 0x00000195, 0x0000018a, 0x00000187, 0x00000191, 0x0000018b,
    0x000200f9, 0x00000196, 0x000200f8, 0x00000196, 0x000700f5, 0x00000013, 0x00000197, 0x00000185,
    0x00000158, 0x00000195, 0x00000194, 0x000600a9, 0x00000006, 0x00000198, 0x00000197, 0x00000021,
    0x00000026, 0x00050080, 0x00000006, 0x00000199, 0x00000179, 0x00000198, 0x000200f9, 0x00000165,
    0x000200f8, 0x00000165, 0x000700f5, 0x00000006, 0x00000283, 0x00000199, 0x00000196, 0x0000027f,
    0x000001cb, 0x000200f9, 0x00000166, 0x000200f8, 0x00000154, 0x000200f9, 0x00000166, 0x000200f8,
    0x00000166, 0x000700f5, 0x00000006, 0x00000282, 0x000000b0, 0x00000154, 0x00000283, 0x00000165,
    0x000200f9, 0x00000167, 0x000200f8, 0x0000014c, 0x000500c2, 0x00000006, 0x0000014e, 0x00000149,
    0x000000a5, 0x000500c7, 0x00000006, 0x0000014f, 0x0000014e, 0x000000a7, 0x000500c5, 0x00000006,
    0x00000150, 0x000000a3, 0x0000014f, 0x000200f9, 0x00000167, 0x000200f8, 0x00000167, 0x000700f5,
    0x00000006, 0x00000281, 0x00000150, 0x0000014c, 0x00000282, 0x00000166, 0x000500c5, 0x00000006,
    0x0000016a, 0x00000147, 0x00000281, 0x000500b0, 0x00000013, 0x000000ea, 0x00000124, 0x000000da,
    0x000300f7, 0x000000ed, 0x00000000, 0x000400fa, 0x000000ea, 0x000000ec, 0x000000f4, 0x000200f8,
    0x000000f4, 0x000200f9, 0x000000ed, 0x000200f8, 0x000000ec, 0x00060041, 0x00000041, 0x000001d2,
    0x0000003e, 0x0000003f, 0x00000124, 0x0004003d, 0x00000006, 0x000001d3, 0x000001d2, 0x00050080,
    0x00000006, 0x000001d5, 0x000000d7, 0x000000d5, 0x000500aa, 0x00000013, 0x000001d8, 0x000001d5,
    0x000000da, 0x000300f7, 0x000001dd, 0x00000000, 0x000400fa, 0x000001d8, 0x000001d9, 0x000001dd,
    0x000200f8, 0x000001d9, 0x00050041, 0x00000049, 0x000001da, 0x00000048, 0x0000004f, 0x0004003d,
    0x00000006, 0x000001db, 0x000001da, 0x000500ab, 0x00000013, 0x000001dc, 0x000001db, 0x00000026,
    0x000200f9, 0x000001dd, 0x000200f8, 0x000001dd, 0x000700f5, 0x00000013, 0x000001de, 0x000001d8,
    0x000000ec, 0x000001dc, 0x000001d9, 0x000300f7, 0x000001e9, 0x00000000, 0x000400fa, 0x000001de,
    0x000001df, 0x000001e7, 0x000200f8, 0x000001e7, 0x000200f9, 0x000001e9, 0x000200f8, 0x000001df,
    0x00050041, 0x00000049, 0x000001e1, 0x00000048, 0x0000004f, 0x0004003d, 0x00000006, 0x000001e2,
    0x000001e1, 0x00050084, 0x00000006, 0x000001e3, 0x00000058, 0x000001e2, 0x000500c4, 0x00000006,
    0x000001e4, 0x00000021, 0x000001e3, 0x00050082, 0x00000006, 0x000001e5, 0x000001e4, 0x00000021,
    0x000500c7, 0x00000006, 0x000001e6, 0x000001d3, 0x000001e5, 0x000200f9, 0x000001e9, 0x000200f8,
    0x000001e9, 0x000700f5, 0x00000006, 0x00000284, 0x000001e6, 0x000001df, 0x000001d3, 0x000001e7,
    0x000500c2, 0x00000006, 0x000001f7, 0x00000284, 0x00000095, 0x000500c7, 0x00000006, 0x000001f8,
    0x000001f7, 0x00000097, 0x000500c7, 0x00000006, 0x000001fa, 0x00000284, 0x0000009b, 0x000500ac,
    0x00000013, 0x000001fc, 0x000001fa, 0x0000009e, 0x000300f7, 0x00000218, 0x00000000, 0x000400fa,
    0x000001fc, 0x000001fd, 0x00000202, 0x000200f8, 0x00000202, 0x000500ae, 0x00000013, 0x00000204,
    0x000001fa, 0x000000ac, 0x000300f7, 0x00000217, 0x00000000, 0x000400fa, 0x00000204, 0x00000205,
    0x00000206, 0x000200f8, 0x00000206, 0x000500ae, 0x00000013, 0x00000208, 0x000001fa, 0x000000b3,
    0x000300f7, 0x00000216, 0x00000000, 0x000400fa, 0x00000208, 0x00000209, 0x0000020d, 0x000200f8,
    0x0000020d, 0x000500c7, 0x00000006, 0x0000020f, 0x000001fa, 0x000000c1, 0x000500c5, 0x00000006,
    0x00000210, 0x0000020f, 0x000000c3, 0x000500c2, 0x00000006, 0x00000212, 0x000001fa, 0x000000c7,
    0x0004007c, 0x00000011, 0x00000213, 0x00000212, 0x00050082, 0x00000011, 0x00000214, 0x000000c5,
    0x00000213, 0x000300f7, 0x0000027c, 0x00000000, 0x000300fb, 0x00000026, 0x00000254, 0x000200f8,
    0x00000254, 0x000500ad, 0x00000013, 0x00000256, 0x00000214, 0x00000065, 0x000300f7, 0x00000258,
    0x00000000, 0x000400fa, 0x00000256, 0x00000257, 0x00000258, 0x000200f8, 0x00000257, 0x000200f9,
    0x0000027c, 0x000200f8, 0x00000258, 0x000500c2, 0x00000006, 0x0000025b, 0x00000210, 0x00000214,
    0x000500c4, 0x00000006, 0x0000025e, 0x00000021, 0x00000214, 0x00050082, 0x00000006, 0x0000025f,
    0x0000025e, 0x00000021, 0x000500c7, 0x00000006, 0x00000260, 0x00000210, 0x0000025f, 0x00050082,
    0x00000011, 0x00000262, 0x00000290, 0x00000213, 0x000500c4, 0x00000006, 0x00000263, 0x00000021,
    0x00000262, 0x000500ac, 0x00000013, 0x00000267, 0x00000260, 0x00000263, 0x000400a8, 0x00000013,
    0x00000268, 0x00000267, 0x000300f7, 0x00000278, 0x00000000, 0x000400fa, 0x00000268, 0x00000269,
    0x00000278, 0x000200f8, 0x00000269, 0x000500aa, 0x00000013, 0x0000026c, 0x00000260, 0x00000263,
    0x000300f7, 0x00000276, 0x00000000, 0x000400fa, 0x0000026c, 0x0000026d, 0x00000276, 0x000200f8,
    0x0000026d, 0x000500c7, 0x00000006, 0x00000272, 0x0000025b, 0x00000021, 0x000500ab, 0x00000013,
    0x00000273, 0x00000272, 0x00000026, 0x000200f9, 0x00000276, 0x000200f8, 0x00000276, 0x000700f5,
    0x00000013, 0x00000277, 0x0000026c, 0x00000269, 0x00000273, 0x0000026d, 0x000200f9, 0x00000278,
    0x000200f8, 0x00000278, 0x000700f5, 0x00000013, 0x00000279, 0x00000267, 0x00000258, 0x00000277,
    0x00000276, 0x000600a9, 0x00000006, 0x0000027a, 0x00000279, 0x00000021, 0x00000026, 0x00050080,
    0x00000006, 0x0000027b, 0x0000025b, 0x0000027a, 0x000200f9, 0x0000027c, 0x000200f8, 0x0000027c,
    0x000700f5, 0x00000006, 0x00000285, 0x00000026, 0x00000257, 0x0000027b, 0x00000278, 0x000200f9,
    0x00000216, 0x000200f8, 0x00000209, 0x00050082, 0x00000006, 0x0000020b, 0x000001fa, 0x000000b8,
    0x000500c2, 0x00000006, 0x0000022a, 0x0000020b, 0x000000a5, 0x000500c7, 0x00000006, 0x0000022f,
    0x0000020b, 0x0000028c, 0x000500ac, 0x00000013, 0x00000236, 0x0000022f, 0x0000028e, 0x000400a8,
    0x00000013, 0x00000237, 0x00000236, 0x000300f7, 0x00000247, 0x00000000, 0x000400fa, 0x00000237,
    0x00000238, 0x00000247, 0x000200f8, 0x00000238, 0x000500aa, 0x00000013, 0x0000023b, 0x0000022f,
    0x0000028e, 0x000300f7, 0x00000245, 0x00000000, 0x000400fa, 0x0000023b, 0x0000023c, 0x00000245,
    0x000200f8, 0x0000023c, 0x000500c7, 0x00000006, 0x00000241, 0x0000022a, 0x00000021, 0x000500ab,
    0x00000013, 0x00000242, 0x00000241, 0x00000026, 0x000200f9, 0x00000245, 0x000200f8, 0x00000245,
    0x000700f5, 0x00000013, 0x00000246, 0x0000023b, 0x00000238, 0x00000242, 0x0000023c, 0x000200f9,
    0x00000247, 0x000200f8, 0x00000247, 0x000700f5, 0x00000013, 0x00000248, 0x00000236, 0x00000209,
    0x00000246, 0x00000245, 0x000600a9, 0x00000006, 0x00000249, 0x00000248, 0x00000021, 0x00000026,
    0x00050080, 0x00000006, 0x0000024a, 0x0000022a, 0x00000249, 0x000200f9, 0x00000216, 0x000200f8,
    0x00000216, 0x000700f5, 0x00000006, 0x00000289, 0x0000024a, 0x00000247, 0x00000285, 0x0000027c,
    0x000200f9, 0x00000217, 0x000200f8, 0x00000205, 0x000200f9, 0x00000217, 0x000200f8, 0x00000217,
    0x000700f5, 0x00000006, 0x00000288, 0x000000b0, 0x00000205, 0x00000289, 0x00000216, 0x000200f9,
    0x00000218, 0x000200f8, 0x000001fd, 0x000500c2, 0x00000006, 0x000001ff, 0x000001fa, 0x000000a5,
    0x000500c7, 0x00000006, 0x00000200, 0x000001ff, 0x000000a7, 0x000500c5, 0x00000006, 0x00000201,
    0x000000a3, 0x00000200, 0x000200f9, 0x00000218, 0x000200f8, 0x00000218, 0x000700f5, 0x00000006,
    0x00000287, 0x00000201, 0x000001fd, 0x00000288, 0x00000217, 0x000500c5, 0x00000006, 0x0000021b,
    0x000001f8, 0x00000287, 0x000200f9, 0x000000ed, 0x000200f8, 0x000000ed, 0x000700f5, 0x00000006,
    0x0000028a, 0x0000021b, 0x00000218, 0x00000026, 0x000000f4, 0x00050086, 0x00000006, 0x000000fb,
    0x000000d7, 0x000000d5, 0x000500c4, 0x00000006, 0x000000fd, 0x0000028a, 0x00000095, 0x000500c5,
    0x00000006, 0x000000ff, 0x000000fd, 0x0000016a, 0x00060041, 0x00000041, 0x00000100, 0x000000f9,
    0x0000003f, 0x000000fb, 0x0003003e, 0x00000100, 0x000000ff, 0x000200f9, 0x00000101, 0x000200f8,
    0x00000101, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
static const uint32_t tli_vk_to_q8_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x00000414, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000002f, 0x00000034, 0x00000043,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000002f,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000034, 0x0000000b, 0x00000018, 0x00040047, 0x0000003f,
    0x00000001, 0x00000000, 0x00040047, 0x00000040, 0x0000000b, 0x00000019, 0x00040047, 0x00000043,
    0x0000000b, 0x0000001b, 0x00040047, 0x0000004a, 0x00000006, 0x00000004, 0x00040048, 0x0000004b,
    0x00000000, 0x00000018, 0x00050048, 0x0000004b, 0x00000000, 0x00000023, 0x00000000, 0x00030047,
    0x0000004b, 0x00000003, 0x00040047, 0x0000004d, 0x00000022, 0x00000000, 0x00040047, 0x0000004d,
    0x00000021, 0x00000001, 0x00050048, 0x00000055, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x00000055, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x00000055, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x00000055, 0x00000002, 0x00040047, 0x0000019a, 0x00000006, 0x00000004,
    0x00040048, 0x0000019b, 0x00000000, 0x00000019, 0x00050048, 0x0000019b, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000019b, 0x00000003, 0x00040047, 0x0000019d, 0x00000022, 0x00000000,
    0x00040047, 0x0000019d, 0x00000021, 0x00000000, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040015, 0x00000011, 0x00000020,
    0x00000001, 0x00020014, 0x00000013, 0x00040017, 0x0000002d, 0x00000006, 0x00000003, 0x00040020,
    0x0000002e, 0x00000001, 0x0000002d, 0x0004003b, 0x0000002e, 0x0000002f, 0x00000001, 0x0004002b,
    0x00000006, 0x00000030, 0x00000001, 0x00040020, 0x00000031, 0x00000001, 0x00000006, 0x0004003b,
    0x0000002e, 0x00000034, 0x00000001, 0x0004002b, 0x00000006, 0x00000035, 0x00000000, 0x00040032,
    0x00000006, 0x0000003f, 0x00000040, 0x00060033, 0x0000002d, 0x00000040, 0x0000003f, 0x00000030,
    0x00000030, 0x0004003b, 0x0000002e, 0x00000043, 0x00000001, 0x0003001d, 0x0000004a, 0x00000006,
    0x0003001e, 0x0000004b, 0x0000004a, 0x00040020, 0x0000004c, 0x00000002, 0x0000004b, 0x0004003b,
    0x0000004c, 0x0000004d, 0x00000002, 0x0004002b, 0x00000011, 0x0000004e, 0x00000000, 0x00040020,
    0x00000050, 0x00000002, 0x00000006, 0x0005001e, 0x00000055, 0x00000006, 0x00000006, 0x00000006,
    0x00040020, 0x00000056, 0x00000009, 0x00000055, 0x0004003b, 0x00000056, 0x00000057, 0x00000009,
    0x00040020, 0x00000058, 0x00000009, 0x00000006, 0x0004002b, 0x00000011, 0x0000005e, 0x00000002,
    0x0004002b, 0x00000006, 0x00000067, 0x00000008, 0x0004002b, 0x00000011, 0x00000074, 0x0000001f,
    0x0004002b, 0x00000011, 0x00000085, 0x00000001, 0x0004002b, 0x00000011, 0x000000a4, 0x00000017,
    0x0004002b, 0x00000006, 0x000000a6, 0x000000ff, 0x0004002b, 0x00000011, 0x000000a9, 0x00000096,
    0x0004002b, 0x00000006, 0x000000ac, 0x007fffff, 0x0004002b, 0x00000011, 0x000000af, 0xffffff6a,
    0x0004002b, 0x00000006, 0x000000b3, 0x00800000, 0x0004002b, 0x00000011, 0x000000bf, 0xffffff6b,
    0x0004002b, 0x00000011, 0x000000d6, 0x000000fe, 0x0004002b, 0x00000006, 0x000000da, 0x7f7fffff,
    0x0004002b, 0x00000011, 0x000000f9, 0x00000007, 0x0004002b, 0x00000006, 0x000000fb, 0x0000007f,
    0x0004002b, 0x00000006, 0x00000101, 0x00000004, 0x0004002b, 0x00000011, 0x00000109, 0x00000009,
    0x0004002b, 0x00000006, 0x00000116, 0x7fffffff, 0x0004002b, 0x00000006, 0x00000119, 0x7f800000,
    0x0004002b, 0x00000006, 0x0000011d, 0x00000080, 0x0004002b, 0x00000006, 0x00000147, 0x00000002,
    0x0004002b, 0x00000006, 0x0000016d, 0x00000020, 0x0004002b, 0x00000006, 0x0000017f, 0x00000009,
    0x0003001d, 0x0000019a, 0x00000006, 0x0003001e, 0x0000019b, 0x0000019a, 0x00040020, 0x0000019c,
    0x00000002, 0x0000019b, 0x0004003b, 0x0000019c, 0x0000019d, 0x00000002, 0x0004002b, 0x00000011,
    0x00000412, 0xffffff54, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8,
    0x00000005, 0x000300f7, 0x000001d1, 0x00000000, 0x000300fb, 0x00000035, 0x000001d2, 0x000200f8,
    0x000001d2, 0x00050041, 0x00000031, 0x000001f9, 0x0000002f, 0x00000030, 0x0004003d, 0x00000006,
    0x000001fa, 0x000001f9, 0x00050041, 0x00000031, 0x000001fb, 0x00000034, 0x00000035, 0x0004003d,
    0x00000006, 0x000001fc, 0x000001fb, 0x00050084, 0x00000006, 0x000001fd, 0x000001fa, 0x000001fc,
    0x00050041, 0x00000031, 0x000001fe, 0x0000002f, 0x00000035, 0x0004003d, 0x00000006, 0x000001ff,
    0x000001fe, 0x00050080, 0x00000006, 0x00000200, 0x000001fd, 0x000001ff, 0x00050051, 0x00000006,
    0x000001f2, 0x00000040, 0x00000000, 0x00050084, 0x00000006, 0x000001f3, 0x00000200, 0x000001f2,
    0x00050041, 0x00000031, 0x000001f4, 0x00000043, 0x00000035, 0x0004003d, 0x00000006, 0x000001f5,
    0x000001f4, 0x00050080, 0x00000006, 0x000001f6, 0x000001f3, 0x000001f5, 0x00050084, 0x00000006,
    0x0000016f, 0x0000016d, 0x000001f6, 0x00050041, 0x00000058, 0x00000171, 0x00000057, 0x0000004e,
    0x0004003d, 0x00000006, 0x00000172, 0x00000171, 0x000500ae, 0x00000013, 0x00000173, 0x0000016f,
    0x00000172, 0x000300f7, 0x00000175, 0x00000000, 0x000400fa, 0x00000173, 0x00000174, 0x00000175,
    0x000200f8, 0x00000174, 0x000200f9, 0x000001d1, 0x000200f8, 0x00000175, 0x00050080, 0x00000006,
    0x0000017b, 0x0000016f, 0x0000016d, 0x0007000c, 0x00000006, 0x0000017c, 0x00000001, 0x00000026,
    0x00000172, 0x0000017b, 0x00050084, 0x00000006, 0x00000181, 0x0000017f, 0x000001f6, 0x000200f9,
    0x00000184, 0x000200f8, 0x00000184, 0x000700f5, 0x00000006, 0x000003a5, 0x00000035, 0x00000175,
    0x000003f0, 0x00000187, 0x000700f5, 0x00000006, 0x000003a3, 0x0000016f, 0x00000175, 0x00000199,
    0x00000187, 0x000500b0, 0x00000013, 0x0000018b, 0x000003a3, 0x0000017c, 0x000400f6, 0x00000186,
    0x00000187, 0x00000000, 0x000400fa, 0x0000018b, 0x00000185, 0x00000186, 0x000200f8, 0x00000185,
    0x00060041, 0x00000050, 0x00000206, 0x0000004d, 0x0000004e, 0x000003a3, 0x0004003d, 0x00000006,
    0x00000207, 0x00000206, 0x00050080, 0x00000006, 0x00000209, 0x000003a3, 0x00000030, 0x000500aa,
    0x00000013, 0x0000020c, 0x00000209, 0x00000172, 0x000300f7, 0x00000211, 0x00000000, 0x000400fa,
    0x0000020c, 0x0000020d, 0x00000211, 0x000200f8, 0x0000020d, 0x00050041, 0x00000058, 0x0000020e,
    0x00000057, 0x0000005e, 0x0004003d, 0x00000006, 0x0000020f, 0x0000020e, 0x000500ab, 0x00000013,
    0x00000210, 0x0000020f, 0x00000035, 0x000200f9, 0x00000211, 0x000200f8, 0x00000211, 0x000700f5,
    0x00000013, 0x00000212, 0x0000020c, 0x00000185, 0x00000210, 0x0000020d, 0x000300f7, 0x0000021d,
    0x00000000, 0x000400fa, 0x00000212, 0x00000213, 0x0000021b, 0x000200f8, 0x00000213, 0x00050041,
    0x00000058, 0x00000215, 0x00000057, 0x0000005e, 0x0004003d, 0x00000006, 0x00000216, 0x00000215,
    0x00050084, 0x00000006, 0x00000217, 0x00000067, 0x00000216, 0x000500c4, 0x00000006, 0x00000218,
    0x00000030, 0x00000217, 0x00050082, 0x00000006, 0x00000219, 0x00000218, 0x00000030, 0x000500c7,
    0x00000006, 0x0000021a, 0x00000207, 0x00000219, 0x000200f9, 0x0000021d, 0x000200f8, 0x0000021b,
    0x000200f9, 0x0000021d, 0x000200f8, 0x0000021d, 0x000700f5, 0x00000006, 0x000003e7, 0x0000021a,
    0x00000213, 0x00000207, 0x0000021b, 0x000500c7, 0x00000006, 0x00000190, 0x000003e7, 0x00000116,
    0x000500b0, 0x00000013, 0x00000192, 0x00000190, 0x00000119, 0x000300f7, 0x00000194, 0x00000000,
    0x000400fa, 0x00000192, 0x00000193, 0x00000194, 0x000200f8, 0x00000193, 0x0007000c, 0x00000006,
    0x00000197, 0x00000001, 0x00000029, 0x000003a5, 0x00000190, 0x000200f9, 0x00000194, 0x000200f8,
    0x00000194, 0x000700f5, 0x00000006, 0x000003f0, 0x000003a5, 0x0000021d, 0x00000197, 0x00000193,
    0x000200f9, 0x00000187, 0x000200f8, 0x00000187, 0x00050080, 0x00000006, 0x00000199, 0x000003a3,
    0x00000085, 0x000200f9, 0x00000184, 0x000200f8, 0x00000186, 0x00050080, 0x00000006, 0x0000019f,
    0x00000181, 0x00000085, 0x000300f7, 0x00000246, 0x00000000, 0x000300fb, 0x00000035, 0x0000022c,
    0x000200f8, 0x0000022c, 0x000500aa, 0x00000013, 0x0000022e, 0x000003a5, 0x00000035, 0x000300f7,
    0x00000230, 0x00000000, 0x000400fa, 0x0000022e, 0x0000022f, 0x00000230, 0x000200f8, 0x0000022f,
    0x000200f9, 0x00000246, 0x000200f8, 0x00000230, 0x000300f7, 0x00000265, 0x00000000, 0x000300fb,
    0x00000035, 0x0000024e, 0x000200f8, 0x0000024e, 0x000500c2, 0x00000006, 0x00000250, 0x000003a5,
    0x000000a4, 0x000500c7, 0x00000006, 0x00000251, 0x00000250, 0x000000a6, 0x0004007c, 0x00000011,
    0x00000252, 0x00000251, 0x00050082, 0x00000011, 0x00000253, 0x00000252, 0x000000a9, 0x000500c7,
    0x00000006, 0x00000255, 0x000003a5, 0x000000ac, 0x000500ad, 0x00000013, 0x00000257, 0x00000253,
    0x000000af, 0x000300f7, 0x0000025c, 0x00000000, 0x000400fa, 0x00000257, 0x00000258, 0x0000025c,
    0x000200f8, 0x00000258, 0x000500c5, 0x00000006, 0x0000025a, 0x00000255, 0x000000b3, 0x000200f9,
    0x00000265, 0x000200f8, 0x0000025c, 0x0006000c, 0x00000011, 0x0000025e, 0x00000001, 0x0000004b,
    0x00000255, 0x00050082, 0x00000011, 0x0000025f, 0x000000a4, 0x0000025e, 0x000500c4, 0x00000006,
    0x00000262, 0x00000255, 0x0000025f, 0x00050080, 0x00000011, 0x00000264, 0x0000025e, 0x00000412,
    0x000200f9, 0x00000265, 0x000200f8, 0x00000265, 0x000700f5, 0x00000006, 0x000003a7, 0x0000025a,
    0x00000258, 0x00000262, 0x0000025c, 0x000700f5, 0x00000011, 0x000003a6, 0x00000253, 0x00000258,
    0x00000264, 0x0000025c, 0x000500c4, 0x00000006, 0x00000235, 0x000003a7, 0x000000f9, 0x00050086,
    0x00000006, 0x00000236, 0x00000235, 0x000000fb, 0x00050089, 0x00000006, 0x00000239, 0x00000235,
    0x000000fb, 0x00050084, 0x00000006, 0x0000023a, 0x00000239, 0x00000101, 0x00050084, 0x00000006,
    0x0000023c, 0x00000236, 0x00000101, 0x00050086, 0x00000006, 0x0000023e, 0x0000023a, 0x000000fb,
    0x00050080, 0x00000006, 0x0000023f, 0x0000023c, 0x0000023e, 0x00050082, 0x00000011, 0x00000241,
    0x000003a6, 0x00000109, 0x00050089, 0x00000006, 0x00000243, 0x0000023a, 0x000000fb, 0x000500ab,
    0x00000013, 0x00000244, 0x00000243, 0x00000035, 0x000300f7, 0x0000028e, 0x00000000, 0x000300fb,
    0x00000035, 0x00000270, 0x000200f8, 0x00000270, 0x0006000c, 0x00000011, 0x00000272, 0x00000001,
    0x0000004b, 0x0000023f, 0x00050082, 0x00000011, 0x00000273, 0x00000272, 0x000000a4, 0x00050080,
    0x00000011, 0x00000276, 0x00000241, 0x00000273, 0x00050080, 0x00000011, 0x00000277, 0x00000276,
    0x000000a9, 0x000500b1, 0x00000013, 0x00000279, 0x00000277, 0x00000085, 0x000300f7, 0x0000027f,
    0x00000000, 0x000400fa, 0x00000279, 0x0000027a, 0x0000027f, 0x000200f8, 0x0000027a, 0x00050082,
    0x00000011, 0x0000027c, 0x000000bf, 0x00000276, 0x00050080, 0x00000011, 0x0000027e, 0x00000273,
    0x0000027c, 0x000200f9, 0x0000027f, 0x000200f8, 0x0000027f, 0x000700f5, 0x00000011, 0x000003a9,
    0x00000273, 0x00000270, 0x0000027e, 0x0000027a, 0x000600a9, 0x00000011, 0x00000413, 0x00000279,
    0x00000085, 0x00000277, 0x000500ad, 0x00000013, 0x00000281, 0x00000413, 0x000000d6, 0x000300f7,
    0x00000283, 0x00000000, 0x000400fa, 0x00000281, 0x00000282, 0x00000283, 0x000200f8, 0x00000282,
    0x000200f9, 0x0000028e, 0x000200f8, 0x00000283, 0x00050082, 0x00000011, 0x00000285, 0x00000413,
    0x00000085, 0x0004007c, 0x00000006, 0x00000286, 0x00000285, 0x000500c4, 0x00000006, 0x00000287,
    0x00000286, 0x000000a4, 0x000300f7, 0x000002bf, 0x00000000, 0x000300fb, 0x00000035, 0x00000297,
    0x000200f8, 0x00000297, 0x000500ad, 0x00000013, 0x00000299, 0x000003a9, 0x00000074, 0x000300f7,
    0x0000029b, 0x00000000, 0x000400fa, 0x00000299, 0x0000029a, 0x0000029b, 0x000200f8, 0x0000029a,
    0x000200f9, 0x000002bf, 0x000200f8, 0x0000029b, 0x000500c2, 0x00000006, 0x0000029e, 0x0000023f,
    0x000003a9, 0x000500c4, 0x00000006, 0x000002a1, 0x00000030, 0x000003a9, 0x00050082, 0x00000006,
    0x000002a2, 0x000002a1, 0x00000030, 0x000500c7, 0x00000006, 0x000002a3, 0x0000023f, 0x000002a2,
    0x00050082, 0x00000011, 0x000002a5, 0x000003a9, 0x00000085, 0x000500c4, 0x00000006, 0x000002a6,
    0x00000030, 0x000002a5, 0x000500ac, 0x00000013, 0x000002aa, 0x000002a3, 0x000002a6, 0x000400a8,
    0x00000013, 0x000002ab, 0x000002aa, 0x000300f7, 0x000002bb, 0x00000000, 0x000400fa, 0x000002ab,
    0x000002ac, 0x000002bb, 0x000200f8, 0x000002ac, 0x000500aa, 0x00000013, 0x000002af, 0x000002a3,
    0x000002a6, 0x000300f7, 0x000002b9, 0x00000000, 0x000400fa, 0x000002af, 0x000002b0, 0x000002b9,
    0x000200f8, 0x000002b0, 0x000400a8, 0x00000013, 0x000002b2, 0x00000244, 0x000300f7, 0x000002b7,
    0x00000000, 0x000400fa, 0x000002b2, 0x000002b3, 0x000002b7, 0x000200f8, 0x000002b3, 0x000500c7,
    0x00000006, 0x000002b5, 0x0000029e, 0x00000030, 0x000500ab, 0x00000013, 0x000002b6, 0x000002b5,
    0x00000035, 0x000200f9, 0x000002b7, 0x000200f8, 0x000002b7, 0x000700f5, 0x00000013, 0x000002b8,
    0x00000244, 0x000002b0, 0x000002b6, 0x000002b3, 0x000200f9, 0x000002b9, 0x000200f8, 0x000002b9,
    0x000700f5, 0x00000013, 0x000002ba, 0x000002af, 0x000002ac, 0x000002b8, 0x000002b7, 0x000200f9,
    0x000002bb, 0x000200f8, 0x000002bb, 0x000700f5, 0x00000013, 0x000002bc, 0x000002aa, 0x0000029b,
    0x000002ba, 0x000002b9, 0x000600a9, 0x00000006, 0x000002bd, 0x000002bc, 0x00000030, 0x00000035,
    0x00050080, 0x00000006, 0x000002be, 0x0000029e, 0x000002bd, 0x000200f9, 0x000002bf, 0x000200f8,
    0x000002bf, 0x000700f5, 0x00000006, 0x000003aa, 0x00000035, 0x0000029a, 0x000002be, 0x000002bb,
    0x00050080, 0x00000006, 0x0000028c, 0x00000287, 0x000003aa, 0x0007000c, 0x00000006, 0x0000028d,
    0x00000001, 0x00000026, 0x0000028c, 0x000000da, 0x000200f9, 0x0000028e, 0x000200f8, 0x0000028e,
    0x000700f5, 0x00000006, 0x000003ab, 0x000000da, 0x00000282, 0x0000028d, 0x000002bf, 0x000200f9,
    0x00000246, 0x000200f8, 0x00000246, 0x000700f5, 0x00000006, 0x000003ac, 0x00000035, 0x0000022f,
    0x000003ab, 0x0000028e, 0x00060041, 0x00000050, 0x000001a3, 0x0000019d, 0x0000004e, 0x00000181,
    0x0003003e, 0x000001a3, 0x000003ac, 0x000200f9, 0x000001a6, 0x000200f8, 0x000001a6, 0x000700f5,
    0x00000006, 0x000003b1, 0x0000019f, 0x00000246, 0x000001cc, 0x000001a9, 0x000700f5, 0x00000006,
    0x000003ad, 0x0000016f, 0x00000246, 0x000001d0, 0x000001a9, 0x000500b0, 0x00000013, 0x000001ad,
    0x000003ad, 0x0000017c, 0x000400f6, 0x000001a8, 0x000001a9, 0x00000000, 0x000400fa, 0x000001ad,
    0x000001a7, 0x000001a8, 0x000200f8, 0x000001a7, 0x000200f9, 0x000001b0, 0x000200f8, 0x000001b0,
    0x000700f5, 0x00000006, 0x000003ba, 0x00000035, 0x000001a7, 0x000001c8, 0x000001b3, 0x000700f5,
    0x00000006, 0x000003ae, 0x00000035, 0x000001a7, 0x000001ca, 0x000001b3, 0x00050082, 0x00000006,
    0x000001b8, 0x0000017c, 0x000003ad, 0x0007000c, 0x00000006, 0x000001b9, 0x00000001, 0x00000026,
    0x00000101, 0x000001b8, 0x000500b0, 0x00000013, 0x000001ba, 0x000003ae, 0x000001b9, 0x000400f6,
    0x000001b2, 0x000001b3, 0x00000000, 0x000400fa, 0x000001ba, 0x000001b1, 0x000001b2, 0x000200f8,
    0x000001b1, 0x00050080, 0x00000006, 0x000001bd, 0x000003ad, 0x000003ae, 0x00060041, 0x00000050,
    0x000002c6, 0x0000004d, 0x0000004e, 0x000001bd, 0x0004003d, 0x00000006, 0x000002c7, 0x000002c6,
    0x00050080, 0x00000006, 0x000002c9, 0x000001bd, 0x00000030, 0x000500aa, 0x00000013, 0x000002cc,
    0x000002c9, 0x00000172, 0x000300f7, 0x000002d1, 0x00000000, 0x000400fa, 0x000002cc, 0x000002cd,
    0x000002d1, 0x000200f8, 0x000002cd, 0x00050041, 0x00000058, 0x000002ce, 0x00000057, 0x0000005e,
    0x0004003d, 0x00000006, 0x000002cf, 0x000002ce, 0x000500ab, 0x00000013, 0x000002d0, 0x000002cf,
    0x00000035, 0x000200f9, 0x000002d1, 0x000200f8, 0x000002d1, 0x000700f5, 0x00000013, 0x000002d2,
    0x000002cc, 0x000001b1, 0x000002d0, 0x000002cd, 0x000300f7, 0x000002dd, 0x00000000, 0x000400fa,
    0x000002d2, 0x000002d3, 0x000002db, 0x000200f8, 0x000002d3, 0x00050041, 0x00000058, 0x000002d5,
    0x00000057, 0x0000005e, 0x0004003d, 0x00000006, 0x000002d6, 0x000002d5, 0x00050084, 0x00000006,
    0x000002d7, 0x00000067, 0x000002d6, 0x000500c4, 0x00000006, 0x000002d8, 0x00000030, 0x000002d7,
    0x00050082, 0x00000006, 0x000002d9, 0x000002d8, 0x00000030, 0x000500c7, 0x00000006, 0x000002da,
    0x000002c7, 0x000002d9, 0x000200f9, 0x000002dd, 0x000200f8, 0x000002db, 0x000200f9, 0x000002dd,
    0x000200f8, 0x000002dd, 0x000700f5, 0x00000006, 0x000003bb, 0x000002da, 0x000002d3, 0x000002c7,
    0x000002db, 0x000300f7, 0x00000332, 0x00000000, 0x000300fb, 0x00000035, 0x000002f2, 0x000200f8,
    0x000002f2, 0x000500c7, 0x00000006, 0x000002f4, 0x000003bb, 0x00000116, 0x000500ac, 0x00000013,
    0x000002f6, 0x000002f4, 0x00000119, 0x000300f7, 0x000002f8, 0x00000000, 0x000400fa, 0x000002f6,
    0x000002f7, 0x000002f8, 0x000200f8, 0x000002f7, 0x000200f9, 0x00000332, 0x000200f8, 0x000002f8,
    0x000500aa, 0x00000013, 0x000002fa, 0x000002f4, 0x00000119, 0x000300f7, 0x00000326, 0x00000000,
    0x000400fa, 0x000002fa, 0x000002fb, 0x000002fc, 0x000200f8, 0x000002fb, 0x000200f9, 0x00000326,
    0x000200f8, 0x000002fc, 0x000500aa, 0x00000013, 0x000002fe, 0x000002f4, 0x00000035, 0x000500a6,
    0x00000013, 0x00000301, 0x000002fe, 0x0000022e, 0x000300f7, 0x00000325, 0x00000000, 0x000400fa,
    0x00000301, 0x00000302, 0x00000303, 0x000200f8, 0x00000302, 0x000200f9, 0x00000332, 0x000200f8,
    0x00000303, 0x000300f7, 0x00000351, 0x00000000, 0x000300fb, 0x00000035, 0x0000033a, 0x000200f8,
    0x0000033a, 0x000500c2, 0x00000006, 0x0000033c, 0x000003a5, 0x000000a4, 0x000500c7, 0x00000006,
    0x0000033d, 0x0000033c, 0x000000a6, 0x0004007c, 0x00000011, 0x0000033e, 0x0000033d, 0x00050082,
    0x00000011, 0x0000033f, 0x0000033e, 0x000000a9, 0x000500c7, 0x00000006, 0x00000341, 0x000003a5,
    0x000000ac, 0x000500ad, 0x00000013, 0x00000343, 0x0000033f, 0x000000af, 0x000300f7, 0x00000348,
    0x00000000, 0x000400fa, 0x00000343, 0x00000344, 0x00000348, 0x000200f8, 0x00000344, 0x000500c5,
    0x00000006, 0x00000346, 0x00000341, 0x000000b3, 0x000200f9, 0x00000351, 0x000200f8, 0x00000348,
    0x0006000c, 0x00000011, 0x0000034a, 0x00000001, 0x0000004b, 0x00000341, 0x00050082, 0x00000011,
    0x0000034b, 0x000000a4, 0x0000034a, 0x000500c4, 0x00000006, 0x0000034e, 0x00000341, 0x0000034b,
    0x00050080, 0x00000011, 0x00000350, 0x0000034a, 0x00000412, 0x000200f9, 0x00000351, 0x000200f8,
    0x00000351, 0x000700f5, 0x00000006, 0x000003c9, 0x00000346, 0x00000344, 0x0000034e, 0x00000348,
    0x000700f5, 0x00000011, 0x000003c8, 0x0000033f, 0x00000344, 0x00000350, 0x00000348, 0x000300f7,
    0x00000370, 0x00000000, 0x000300fb, 0x00000035, 0x00000359, 0x000200f8, 0x00000359, 0x000500c2,
    0x00000006, 0x0000035b, 0x000002f4, 0x000000a4, 0x000500c7, 0x00000006, 0x0000035c, 0x0000035b,
    0x000000a6, 0x0004007c, 0x00000011, 0x0000035d, 0x0000035c, 0x00050082, 0x00000011, 0x0000035e,
    0x0000035d, 0x000000a9, 0x000500c7, 0x00000006, 0x00000360, 0x000002f4, 0x000000ac, 0x000500ad,
    0x00000013, 0x00000362, 0x0000035e, 0x000000af, 0x000300f7, 0x00000367, 0x00000000, 0x000400fa,
    0x00000362, 0x00000363, 0x00000367, 0x000200f8, 0x00000363, 0x000500c5, 0x00000006, 0x00000365,
    0x00000360, 0x000000b3, 0x000200f9, 0x00000370, 0x000200f8, 0x00000367, 0x0006000c, 0x00000011,
    0x00000369, 0x00000001, 0x0000004b, 0x00000360, 0x00050082, 0x00000011, 0x0000036a, 0x000000a4,
    0x00000369, 0x000500c4, 0x00000006, 0x0000036d, 0x00000360, 0x0000036a, 0x00050080, 0x00000011,
    0x0000036f, 0x00000369, 0x00000412, 0x000200f9, 0x00000370, 0x000200f8, 0x00000370, 0x000700f5,
    0x00000006, 0x000003cb, 0x00000365, 0x00000363, 0x0000036d, 0x00000367, 0x000700f5, 0x00000011,
    0x000003ca, 0x0000035e, 0x00000363, 0x0000036f, 0x00000367, 0x00050082, 0x00000011, 0x0000030b,
    0x000003c8, 0x000003ca, 0x00050084, 0x00000006, 0x0000030d, 0x000003cb, 0x000000fb, 0x00050086,
    0x00000006, 0x0000030f, 0x0000030d, 0x000003c9, 0x00050089, 0x00000006, 0x00000313, 0x0000030d,
    0x000003c9, 0x00050084, 0x00000006, 0x00000314, 0x00000313, 0x00000147, 0x00050084, 0x00000006,
    0x00000316, 0x0000030f, 0x00000147, 0x000500ae, 0x00000013, 0x00000319, 0x00000314, 0x000003c9,
    0x000600a9, 0x00000006, 0x0000031a, 0x00000319, 0x00000030, 0x00000035, 0x00050080, 0x00000006,
    0x0000031b, 0x00000316, 0x0000031a, 0x00050080, 0x00000011, 0x0000031d, 0x0000030b, 0x00000085,
    0x000500ab, 0x00000013, 0x00000320, 0x00000314, 0x000003c9, 0x000500ab, 0x00000013, 0x00000322,
    0x00000314, 0x00000035, 0x000500a7, 0x00000013, 0x00000323, 0x00000320, 0x00000322, 0x000300f7,
    0x000003a1, 0x00000000, 0x000300fb, 0x00000035, 0x00000379, 0x000200f8, 0x00000379, 0x000500ad,
    0x00000013, 0x0000037b, 0x0000031d, 0x00000074, 0x000300f7, 0x0000037d, 0x00000000, 0x000400fa,
    0x0000037b, 0x0000037c, 0x0000037d, 0x000200f8, 0x0000037c, 0x000200f9, 0x000003a1, 0x000200f8,
    0x0000037d, 0x000500c2, 0x00000006, 0x00000380, 0x0000031b, 0x0000031d, 0x000500c4, 0x00000006,
    0x00000383, 0x00000030, 0x0000031d, 0x00050082, 0x00000006, 0x00000384, 0x00000383, 0x00000030,
    0x000500c7, 0x00000006, 0x00000385, 0x0000031b, 0x00000384, 0x000500c4, 0x00000006, 0x00000388,
    0x00000030, 0x0000030b, 0x000500ac, 0x00000013, 0x0000038c, 0x00000385, 0x00000388, 0x000400a8,
    0x00000013, 0x0000038d, 0x0000038c, 0x000300f7, 0x0000039d, 0x00000000, 0x000400fa, 0x0000038d,
    0x0000038e, 0x0000039d, 0x000200f8, 0x0000038e, 0x000500aa, 0x00000013, 0x00000391, 0x00000385,
    0x00000388, 0x000300f7, 0x0000039b, 0x00000000, 0x000400fa, 0x00000391, 0x00000392, 0x0000039b,
    0x000200f8, 0x00000392, 0x000400a8, 0x00000013, 0x00000394, 0x00000323, 0x000300f7, 0x00000399,
    0x00000000, 0x000400fa, 0x00000394, 0x00000395, 0x00000399, 0x000200f8, 0x00000395, 0x000500c7,
    0x00000006, 0x00000397, 0x00000380, 0x00000030, 0x000500ab, 0x00000013, 0x00000398, 0x00000397,
    0x00000035, 0x000200f9, 0x00000399, 0x000200f8, 0x00000399, 0x000700f5, 0x00000013, 0x0000039a,
    0x00000323, 0x00000392, 0x00000398, 0x00000395, 0x000200f9, 0x0000039b, 0x000200f8, 0x0000039b,
    0x000700f5, 0x00000013, 0x0000039c, 0x00000391, 0x0000038e, 0x0000039a, 0x00000399, 0x000200f9,
    0x0000039d, 0x000200f8, 0x0000039d, 0x000700f5, 0x00000013, 0x0000039e, 0x0000038c, 0x0000037d,
    0x0000039c, 0x0000039b, 0x000600a9, 0x00000006, 0x0000039f, 0x0000039e, 0x00000030, 0x00000035,
    0x00050080, 0x00000006, 0x000003a0, 0x00000380, 0x0000039f, 0x000200f9, 0x000003a1, 0x000200f8,
    0x000003a1, 0x000700f5, 0x00000006, 0x000003cd, 0x00000035, 0x0000037c, 0x000003a0, 0x0000039d,
    0x000200f9, 0x00000325, 0x000200f8, 0x00000325, 0x000200f9, 0x00000326, 0x000200f8, 0x00000326,
    0x000700f5, 0x00000006, 0x000003ce, 0x000000fb, 0x000002fb, 0x000003cd, 0x00000325, 0x000500c2,
    0x00000006, 0x00000328, 0x000003bb, 0x00000074, 0x000500ab, 0x00000013, 0x00000329, 0x00000328,
    0x00000035, 0x000300f7, 0x0000032f, 0x00000000, 0x000400fa, 0x00000329, 0x0000032a, 0x0000032d,
    0x000200f8, 0x0000032a, 0x00050082, 0x00000006, 0x0000032c, 0x00000035, 0x000003ce, 0x000200f9,
    0x0000032f, 0x000200f8, 0x0000032d, 0x000200f9, 0x0000032f, 0x000200f8, 0x0000032f, 0x000700f5,
    0x00000006, 0x000003cf, 0x0000032c, 0x0000032a, 0x000003ce, 0x0000032d, 0x000500c7, 0x00000006,
    0x00000331, 0x000003cf, 0x000000a6, 0x000200f9, 0x00000332, 0x000200f8, 0x00000332, 0x000900f5,
    0x00000006, 0x000003d0, 0x0000011d, 0x000002f7, 0x00000035, 0x00000302, 0x00000331, 0x0000032f,
    0x00050084, 0x00000006, 0x000001c5, 0x00000067, 0x000003ae, 0x000500c4, 0x00000006, 0x000001c6,
    0x000003d0, 0x000001c5, 0x000500c5, 0x00000006, 0x000001c8, 0x000003ba, 0x000001c6, 0x000200f9,
    0x000001b3, 0x000200f8, 0x000001b3, 0x00050080, 0x00000006, 0x000001ca, 0x000003ae, 0x00000085,
    0x000200f9, 0x000001b0, 0x000200f8, 0x000001b2, 0x00050080, 0x00000006, 0x000001cc, 0x000003b1,
    0x00000085, 0x00060041, 0x00000050, 0x000001ce, 0x0000019d, 0x0000004e, 0x000003b1, 0x0003003e,
    0x000001ce, 0x000003ba, 0x000200f9, 0x000001a9, 0x000200f8, 0x000001a9, 0x00050080, 0x00000006,
    0x000001d0, 0x000003ad, 0x00000101, 0x000200f9, 0x000001a6, 0x000200f8, 0x000001a8, 0x000200f9,
    0x000001d1, 0x000200f8, 0x000001d1, 0x000100fd, 0x00010038,
};
#endif  // TL_VK_BACKEND_IMPLEMENTATION

#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// The built-in shaders as operations on ranges: sums, extremes, conversions to integers, checksums. Each checks
// its ranges and enqueues an operation of [2]; parameters longer than push constants are written to staging.

// -- the table of words --

static tli_vk_words tli_vk_words_of(int shader) {
#define TLI_VK_WORDS(id, name) { tli_vk_##name##_words, sizeof tli_vk_##name##_words / 4 },
    static const tli_vk_words words[] = { TLI_VK_SHADERS(TLI_VK_WORDS) };
#undef TLI_VK_WORDS
    return words[shader];
}

static tl_result tli_vk_set_words(tli_vk *b, const tl_range *range, uint64_t from, uint64_t bytes,
                                  uint32_t word, const char *function) {
    tl_result result = TL_OK;
    const tli_vk_block *block = tli_vk_find_range(b, range, function, &result);
    tli_vk_op op;
    if (!block) return result;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_FILL;
    op.to = tli_vk_place_of(block, range);
    op.to.at += from;
    op.to.bytes = bytes;
    op.word = word;
    return tli_vk_enqueue(b, &op, range->block, 0, function);
}

static tl_result tli_vk_check_words(tli_vk *b, const tl_range *to, const tl_range *from, uint64_t to_bytes,
                                    const char *function) {
    const tli_vk_block *target, *source;
    tl_result result = TL_OK;
    tli_vk_place place, written;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (from->bytes % 4)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "from: bytes: must be a multiple of 4");
    if (to->bytes != to_bytes)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: bytes: not what the result takes");
    if (tli_vk_overlap(to, from)) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: overlaps from");
    if (!from->bytes) return TL_OK;
    target = tli_vk_find_range(b, to, function, &result);
    source = target ? tli_vk_find_range(b, from, function, &result) : NULL;
    if (!source) return result;
    place = tli_vk_place_of(source, from);
    written = tli_vk_place_of(target, to);
    if (tli_vk_meet(&written, &place))  // two blocks of one buffer of the caller
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: overlaps from");
    if (b->lost_count && tli_vk_is_lost(b, &place))
        return tli_vk_fail_stale(b, function, "range");
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_record_add(const tl_backend *backend, tl_range to, tl_range from) {
    const char *function = "tl_vk_record_add";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tli_vk_check_words(b, &to, &from, from.bytes, function);
    const tli_vk_block *block;
    tli_vk_place place;
    if (result || !from.bytes) return result;
    block = tli_vk_find_range(b, &to, function, &result);
    if (!block) return result;
    place = tli_vk_place_of(block, &to);
    if (b->lost_count && tli_vk_is_lost(b, &place))
        return tli_vk_fail_stale(b, function, "to");
    return tli_vk_move(b, TLI_VK_OP_SHADER, TLI_VK_SHADER_ADD, &to, &from, from.bytes, function);
}

static tl_result tli_vk_min_max(tli_vk *b, const tl_range *to, const tl_range *from, const char *function) {
    tl_result result = tli_vk_check_words(b, to, from, sizeof(tl_vk_extremes), function);
    if (!result) result = tli_vk_set_words(b, to, 0, 4, UINT32_MAX, function);
    if (!result) result = tli_vk_set_words(b, to, 4, sizeof(tl_vk_extremes) - 4, 0, function);
    if (result || !from->bytes) return result;
    return tli_vk_move(b, TLI_VK_OP_SHADER, TLI_VK_SHADER_MIN_MAX, to, from, to->bytes, function);
}

TLI_VK_IMPL tl_result tl_vk_record_min_max(const tl_backend *backend, tl_range to, tl_range from) {
    return tli_vk_min_max(tli_vk_self(backend), &to, &from, "tl_vk_record_min_max");
}

static float tli_vk_float_of_key(uint32_t key) {
    uint32_t bits = key & 0x80000000u ? key ^ 0x80000000u : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TLI_VK_IMPL int tl_vk_read_extremes(const tl_vk_extremes *extremes, float *least, float *largest) {
    *least = *largest = 0;
    if (!extremes->finite_count) return 0;
    *least = tli_vk_float_of_key(extremes->least_key);
    *largest = tli_vk_float_of_key(extremes->largest_key);
    return 1;
}

// -- channels --

#define TLI_VK_QUANTIZATION_BYTES 20  // of one quantisation, as shaders read it; tl_vk_extremes is smaller

// The shaders index with 32 bits: the elements of a piece and of the periods of channels that it cuts.
static tl_result tli_vk_check_channels(tli_vk *b, int32_t channel_count, uint64_t inner_count,
                                       const char *function) {
    const uint64_t most = (uint64_t)1 << 30;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (channel_count < 1) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "channel_count: must be > 0");
    if (!inner_count) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "inner_count: must be > 0");
    if ((uint32_t)channel_count > b->device_limits.maxStorageBufferRange / TLI_VK_QUANTIZATION_BYTES)
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "channel_count: more than the device binds");
    if (channel_count > 1 && inner_count > most / (uint64_t)channel_count)
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function,
                           "inner_count: more than 2^30 elements in all channels");
    return TL_OK;
}

static tli_vk_op tli_vk_channels_op(tli_vk_shader shader, int32_t channel_count, uint64_t inner_count) {
    tli_vk_op op;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_SHADER;
    op.shader = shader;
    op.channel_count = (uint32_t)channel_count;
    op.inner_count = channel_count > 1 ? (uint32_t)inner_count : 1;  // no effect with one channel
    return op;
}

// Take staging for words that the host writes and a shader reads; then tli_vk_flush_words, tli_vk_end_words.
static tl_result tli_vk_start_words(tli_vk *b, uint64_t bytes, const char *function, tli_vk_place *place,
                                    int32_t *slot, uint32_t **words) {
    tl_result result = tli_vk_take_staging(b, bytes, function, place, slot);
    *words = result ? NULL : (uint32_t *)tli_vk_address(b, place);
    return result;
}

static tl_result tli_vk_flush_words(tli_vk *b, const tli_vk_place *place, const char *function) {
    VkResult result = tli_vk_flush_host(b, place);
    return result ? tli_vk_fail_result(b, function, "vkFlushMappedMemoryRanges", result) : TL_OK;
}

// Free the staging of the words when the work that was enqueued so far has finished.
static void tli_vk_end_words(tli_vk *b, int32_t slot) {
    tli_vk_give_staging(b, slot, b->has_work ? b->serial : b->serial - 1);
}

// Set the extremes of each channel to those of no element.
static tl_result tli_vk_clear_extremes(tli_vk *b, const tl_range *to, int32_t channel_count,
                                       const char *function) {
    tl_result result = TL_OK;
    const tli_vk_block *block = tli_vk_find_range(b, to, function, &result);
    tli_vk_op op;
    uint32_t *words;
    int32_t slot;
    int32_t i;
    if (!block) return result;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_COPY;
    result = tli_vk_start_words(b, to->bytes, function, &op.from, &slot, &words);
    if (result) return result;
    memset(words, 0, (size_t)to->bytes);
    for (i = 0; i < channel_count; i++) words[4 * i] = UINT32_MAX;
    op.to = tli_vk_place_of(block, to);
    result = tli_vk_flush_words(b, &op.from, function);
    if (!result) result = tli_vk_enqueue(b, &op, to->block, 0, function);
    tli_vk_end_words(b, slot);
    return result;
}

TLI_VK_IMPL tl_result tl_vk_record_min_max_channels(const tl_backend *backend, tl_range to, tl_range from,
                                                    int32_t channel_count, uint64_t inner_count) {
    const char *function = "tl_vk_record_min_max_channels";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tli_vk_check_channels(b, channel_count, inner_count, function);
    uint64_t expected = (uint64_t)channel_count * sizeof(tl_vk_extremes);
    tli_vk_op op = tli_vk_channels_op(TLI_VK_SHADER_MIN_MAX_CHANNELS, channel_count, inner_count);
    if (result) return result;
    if (channel_count == 1) return tli_vk_min_max(b, &to, &from, function);
    result = tli_vk_check_words(b, &to, &from, expected, function);
    if (!result) result = tli_vk_clear_extremes(b, &to, channel_count, function);
    if (result || !from.bytes) return result;
    return tli_vk_move_by(b, &op, &to, &from, to.bytes, function);
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
TLI_VK_IMPL tl_result tl_vk_observe_extremes(tl_env *env, tl_observer *observer,
                                             const tl_vk_extremes *extremes, int32_t channel_count) {
    const char *function = "tl_vk_observe_extremes";
    tl_result result = TL_OK;
    int32_t i;
    if (channel_count < 1)
        return tl_record_error(env, TL_ERROR_INVALID_ARG, function, "channel_count: must be > 0");
    for (i = 0; i < channel_count; i++)
        if (extremes[i].other_count)
            return tl_record_error(env, TL_ERROR_INVALID_ARG, function,
                                   "extremes: of values that are not finite");
    for (i = channel_count - 1; i >= 0 && !result; i--) {  // a channel it lacks fails before any is changed
        float least, largest;
        if (!tl_vk_read_extremes(&extremes[i], &least, &largest)) continue;
        result = tl_observe_extremes(observer, i, least, largest, extremes[i].finite_count);
    }
    return result;
}
#endif

#ifndef TL_NO_PRECISION
// -- quantisation --

// Check the lengths of both operands. All other rules are those of tl_quantize or tl_dequantize: `result` is
// what it said of no elements.
static tl_result tli_vk_check_integers(tli_vk *b, tl_result result, const tl_range *plain,
                                       const tl_range *integers, int32_t channel_count, uint64_t inner_count,
                                       tl_format format, const char *function) {
    if (!result) result = tli_vk_check_channels(b, channel_count, inner_count, function);
    if (result) return result;
    if (plain->bytes % 4 || integers->bytes != plain->bytes / 4 * (format == TL_FORMAT_I8 ? 1 : 2))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: bytes: do not fit those of from");
    return TL_OK;
}

static void tli_vk_write_quantizations(uint32_t *words, const tl_quantization *quantizations, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++) {
        const tl_quantization *q = &quantizations[i];
        memcpy(words, &q->scale, 4);
        memcpy(words + 1, &q->zero_point, 4);
        memcpy(words + 2, &q->low, 4);
        memcpy(words + 3, &q->high, 4);
        words[4] = q->rounding == TL_ROUNDING_AWAY;
        words += TLI_VK_QUANTIZATION_BYTES / 4;
    }
}

static tl_result tli_vk_record_integers(tli_vk *b, tli_vk_op *op, const tl_range *to, const tl_range *from,
                                        const tl_quantization *quantizations, const char *function) {
    uint32_t *words;
    int32_t slot;
    tl_result result;
    if (!from->bytes) return TL_OK;
    result = tli_vk_start_words(b, (uint64_t)op->channel_count * TLI_VK_QUANTIZATION_BYTES, function,
                                &op->quantizations, &slot, &words);
    if (result) return result;
    tli_vk_write_quantizations(words, quantizations, (int32_t)op->channel_count);
    result = tli_vk_flush_words(b, &op->quantizations, function);
    if (!result) result = tli_vk_move_by(b, op, to, from, to->bytes, function);
    tli_vk_end_words(b, slot);
    return result;
}

TLI_VK_IMPL tl_result tl_vk_record_quantize(const tl_backend *backend, tl_range to, tl_range from,
                                            const tl_quantization *quantizations, int32_t channel_count,
                                            uint64_t inner_count, tl_format format) {
    const char *function = "tl_vk_record_quantize";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tl_quantize(b->env, quantizations, channel_count, inner_count, format, NULL, NULL, 0);
    tli_vk_op op = tli_vk_channels_op(TLI_VK_SHADER_QUANTIZE, channel_count, inner_count);
    op.word = format == TL_FORMAT_I8 ? 1 : 2;
    result = tli_vk_check_integers(b, result, &from, &to, channel_count, inner_count, format, function);
    return result ? result : tli_vk_record_integers(b, &op, &to, &from, quantizations, function);
}

TLI_VK_IMPL tl_result tl_vk_record_dequantize(const tl_backend *backend, tl_range to, tl_range from,
                                              const tl_quantization *quantizations, int32_t channel_count,
                                              uint64_t inner_count, tl_format format) {
    const char *function = "tl_vk_record_dequantize";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tl_dequantize(b->env, quantizations, channel_count, inner_count, format, NULL, NULL, 0);
    tli_vk_op op = tli_vk_channels_op(TLI_VK_SHADER_DEQUANTIZE, channel_count, inner_count);
    op.word = format == TL_FORMAT_I8 ? 1 : 2;
    result = tli_vk_check_integers(b, result, &to, &from, channel_count, inner_count, format, function);
    return result ? result : tli_vk_record_integers(b, &op, &to, &from, quantizations, function);
}
#endif

// -- checksums --

TLI_VK_IMPL tl_result tl_vk_record_checksum(const tl_backend *backend, tl_range to, tl_range from) {
    const char *function = "tl_vk_record_checksum";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tli_vk_check_words(b, &to, &from, 8, function);
    if (!result) result = tli_vk_set_words(b, &to, 0, 8, 0, function);
    if (result || !from.bytes) return result;
    return tli_vk_move(b, TLI_VK_OP_SHADER, TLI_VK_SHADER_CHECKSUM, &to, &from, to.bytes, function);
}

// Appleby, MurmurHash3, 2011, fmix32; Wellons, Prospecting for hash functions, 2018, lowbias32.
static uint32_t tli_vk_mix(uint32_t x, int which) {
    x = (x ^ x >> 16) * (which ? 0x7FEB352Du : 0x85EBCA6Bu);
    x = which ? (x ^ x >> 15) * 0x846CA68Bu : (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

TLI_VK_IMPL void tl_vk_checksum_bytes(const void *bytes, size_t count, uint32_t sum[2]) {
    size_t i;
    sum[0] = sum[1] = 0;
    for (i = 0; i < count / 4; i++) {
        uint32_t word;
        memcpy(&word, (const char *)bytes + 4 * i, 4);
        sum[0] += tli_vk_mix(word + (uint32_t)i * 0x9E3779B9u, 0);
        sum[1] += tli_vk_mix(word + (uint32_t)i * 0x7F4A7C15u, 1);
    }
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION
#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)
#undef TLI_VK_NAME
#undef TLI_VK_IMPL
#define TL_VK_BACKEND_IMPLEMENTATION_DONE
#endif

/*
   This software is available under two licenses; choose whichever you prefer.

   ALTERNATIVE A - MIT License
   Copyright (c) 2026 The tl_strategy.h authors
   Permission is hereby granted, free of charge, to any person obtaining a copy of this software
   and associated documentation files (the "Software"), to deal in the Software without
   restriction, including without limitation the rights to use, copy, modify, merge, publish,
   distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
   Software is furnished to do so, subject to the following conditions: The above copyright notice
   and this permission notice shall be included in all copies or substantial portions of the
   Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,
   INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR
   PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
   ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
   ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
   SOFTWARE.

   ALTERNATIVE B - Public Domain (www.unlicense.org)
   This is free and unencumbered software released into the public domain. Anyone is free to copy,
   modify, publish, use, compile, sell, or distribute this software, either in source code form or
   as a compiled binary, for any purpose, commercial or non-commercial, and by any means. In
   jurisdictions that recognize copyright laws, the author or authors of this software dedicate
   any and all copyright interest in the software to the public domain. We make this dedication
   for the benefit of the public at large and to the detriment of our heirs and successors. We
   intend this dedication to be an overt act of relinquishment in perpetuity of all present and
   future rights to this software under copyright law. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT
   WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
   MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
   AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
   TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
   DEALINGS IN THE SOFTWARE.
*/
