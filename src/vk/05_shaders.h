#ifndef TL_VK_BACKEND_H
#ifdef __cplusplus
extern "C" {
#endif

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
    X(TL_VK_SHADER_CHECKSUM,  "checksum",  "sum of mixed words: equal where the bytes are")        \
    X(TL_VK_SHADER_QUANTIZE,  "quantize",  "f32 -> integers of 8 or 16 bits, a scale for each channel") \
    X(TL_VK_SHADER_DEQUANTIZE, "dequantize", "integers of 8 or 16 bits -> f32")                   \
    X(TL_VK_SHADER_MIN_MAX_CHANNELS, "min_max_channels", "min_max of each channel")

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

// Enqueue the extremes of each channel: element i belongs to channel (i / inner_count) % channel_count,
// as for tl_quantize and for an observer.
//
//   to       16 bytes a channel: tl_vk_extremes, one behind the other
//
// Errors:  as tl_backend.copy; TL_ERROR_INVALID_ARG: a count of 0; TL_ERROR_UNSUPPORTED: more than
//          2^30 elements in channel_count x inner_count, more channels than the device binds;
//          TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND: the shader, made by the first call; TL_NOT_READY: staging.
// Cost:    16 bytes of staging a channel. A pass over the data, whichever way channels lie in it.
TLDEF tl_result tl_vk_record_min_max_channels(const tl_backend *backend, tl_range to, tl_range from,
                                              int32_t channel_count, uint64_t inner_count);

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// Give an observer what min_max or min_max_channels found in one batch: the ranges are those that
// tl_observe_data finds, bit for bit. Kinds that need more than extremes are refused.
//
//   extremes   [channel_count], of the first channels of the observer; one that saw nothing is passed over
//
// Errors:  TL_ERROR_INVALID_ARG: a value was not finite; and those of tl_observe_extremes. Nothing of
//          the batch is taken then, but what stands above a channel with TL_ERROR_OVERFLOW.
TLDEF tl_result tl_vk_observe_extremes(tl_env *env, tl_observer *observer, const tl_vk_extremes *extremes,
                                       int32_t channel_count);
#endif

#ifndef TL_NO_PRECISION
// Enqueue the conversion of f32 to integers of a quantisation, and back: tl_quantize and
// tl_dequantize, bit for bit.
//
//   to, from        elements x 4 bytes on the side of f32, x 1 (i8) or 2 (i16) on the other. The last
//                   word of integers is written whole
//   quantizations   [channel_count] read during the call only; which element belongs to which: above
//
// Errors:  those of tl_quantize and tl_dequantize, which say them; of tl_backend.copy; and of
//          tl_vk_record_min_max_channels.
// Cost:    20 bytes of staging a channel; three divisions of integers an element there, none back.
TLDEF tl_result tl_vk_record_quantize(const tl_backend *backend, tl_range to, tl_range from,
                                      const tl_quantization *quantizations, int32_t channel_count,
                                      uint64_t inner_count, tl_format format);
TLDEF tl_result tl_vk_record_dequantize(const tl_backend *backend, tl_range to, tl_range from,
                                        const tl_quantization *quantizations, int32_t channel_count,
                                        uint64_t inner_count, tl_format format);
#endif

// Enqueue the checksum of a range, a multiple of four bytes, into another of 8 bytes; and the same on
// the host. The sum does not depend on the order in which words are read.
//
// Errors:  as tl_backend.copy.
TLDEF tl_result tl_vk_record_checksum(const tl_backend *backend, tl_range to, tl_range from);
TLDEF void      tl_vk_checksum_bytes(const void *bytes, size_t count, uint32_t sum[2]);

TLDEF const char *tl_vk_name_shader(tl_vk_shader shader);  // "to_f16"; "?" out of range

#undef TLI_VK_ENUM
#define TL_VK_BACKEND_H
#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

