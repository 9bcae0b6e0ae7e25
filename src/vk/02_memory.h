#ifndef TL_VK_BACKEND_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [2] MEMORY -- blocks in large buffers, allocators of others, staging
//
//     chunk  |##block##|####block####|......|##|.....|    one VkBuffer, one VkDeviceMemory
//     range       |--|                                    {block, offset, bytes}
//
// add_block takes a piece of a chunk; a chunk is made when none has room, halved where the
// driver is out of memory, and kept for later when it is empty. So in steady state nothing is
// allocated. Where the device's own memory is full, the device tier goes on in other memory that the
// device reads; device memory that the host reaches through a window is left alone. The host tier
// is made of the same chunks in host memory, cached where the device offers that. What the host cannot
// reach is mapped through a staging ring.
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
    int32_t  batch_count;        // submits (frames) under way at once, at most 64; 0 = 4, with a transfer
                                 // queue 16
    uint32_t workgroup_size;     // of the shaders in [5]; 0 = 64; a power of two up to 1024
    uint32_t time_count;         // slots for tl_vk_record_time
    tl_vk_copy_path copy_path;   // device to device; 0 = command; tl_vk_measure_copies finds the better one
    tl_vk_memory_hooks hooks;    // 0 = vkAllocateMemory
    uint64_t (*now_ns)(void *user);  // clock of the host, for profiling; 0 = none, every time is 0
    void    *user;
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
//
// Errors:  TL_ERROR_INVALID_ARG: runs or managers still use it, the text tells how many; nothing is freed.
TLDEF tl_result tl_vk_free_backend(tl_env *env, tl_backend *backend);

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
// four may be overwritten.
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
// The copies are enqueued; handles stay valid. Nothing may be mapped. In a frame that is dropped, what was
// moved is lost.
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

#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

