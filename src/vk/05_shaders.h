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

