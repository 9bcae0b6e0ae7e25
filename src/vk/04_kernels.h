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

