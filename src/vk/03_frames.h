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

