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
// For engines. Nothing is submitted, waited for or allocated; work that is enqueued while no
// frame is open goes into the next one. Frames are submitted in the order in which they were
// started, to one queue. What was recorded into a dropped frame never happened: what it wrote is
// lost, and reading it, or ordering it for a kernel, is TL_ERROR_STALE until it is filled, copied to,
// mapped to be written, or claimed anew; a pass of a run that was under way is given up with that
// error, and begins again.
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

// This frame, the latest one that was not dropped, is not going to be submitted. It may still be open.
TLDEF tl_result tl_vk_drop_frame(const tl_backend *backend, tl_ticket frame);

// The device was lost, as the caller found out: every later call says so.
TLDEF void tl_vk_lose_device(const tl_backend *backend);

#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

