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

