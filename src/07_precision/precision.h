#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [7] PRECISION -- observers, quantisation parameters, an exact choice of schemes
//
//     data --observers--> ranges --> scale, zero point, noise              (how to store a tensor)
//     graph + profiles + limit --tl_plan_precision--> a scheme per node    (which precision where)
//     plan --tl_apply_precision--> graph with conversion nodes, formats    (what runs; input of [6])
//
//          f32          i8    i8          A tensor is converted once for each format that its
//     x --[conv]--+--c--[a]--[b]--+       readers want (c), however many readers there are. So
//                 |               |       the price of a scheme depends on the schemes of the
//                 +-------[add]---c       neighbours, and one choice covers the whole graph.
//                          f32
//
// A scheme says how a node computes and in which format it stores its outputs. Losses are noise
// powers, or any other quantity that adds up over nodes (percents of accuracy do not). The choice
// minimises time or bytes within a limit of the summed loss, or the loss within a limit of the
// cost. With it come a certified distance from the optimum, the cost of each node's second best
// scheme, and on request the Pareto front of loss and cost. A limit of the caller is never
// exceeded: where no choice meets it, the error names the nearest limit that can be met.
//
// References: Jacob et al., Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference, 2018, arXiv:1712.05877, section 2. Migacz, 8-bit Inference with
// TensorRT, GTC 2017. Micikevicius et al., Mixed Precision Training, 2018, arXiv:1710.03740.
// Dechter, Bucket Elimination, 1999. Handler, Zang, A dual algorithm for the constrained
// shortest path problem, 1980.
// ============================================================================

// -- formats and schemes --

// id, name, bytes of an element, what it holds
#define TL_FORMATS(X) \
    X(TL_FORMAT_F32,  "f32",  4, "IEEE binary32")                                        \
    X(TL_FORMAT_F16,  "f16",  2, "IEEE binary16: 11 binary digits, up to 65504")         \
    X(TL_FORMAT_BF16, "bf16", 2, "the upper half of an f32: its range, 8 binary digits") \
    X(TL_FORMAT_I16,  "i16",  2, "integers of a quantisation, symmetric")                \
    X(TL_FORMAT_I8,   "i8",   1, "integers of a quantisation")

// id, name, format of its tensors, bits of a weight, rule
#define TL_SCHEMES(X) \
    X(TL_SCHEME_F32,        "f32",        TL_FORMAT_F32,  32, "as it is")                                      \
    X(TL_SCHEME_F16,        "f16",        TL_FORMAT_F16,  16, "stored in 16 bits, sums in f32")                \
    X(TL_SCHEME_BF16,       "bf16",       TL_FORMAT_BF16, 16, "stored in 16 bits, sums in f32")                \
    X(TL_SCHEME_I16,        "i16",        TL_FORMAT_I16,  16, "tensors and weights in 16 bits, a scale each")  \
    X(TL_SCHEME_I8,         "i8",         TL_FORMAT_I8,   8, "tensors and weights in 8 bits, a scale each")    \
    X(TL_SCHEME_I8_CHANNEL, "i8-channel", TL_FORMAT_I8,   8, "as i8, weights with a scale a channel")          \
    X(TL_SCHEME_W8A16,      "w8a16",      TL_FORMAT_I16,  8, "tensors in 16 bits, weights as i8-channel's")    \
    X(TL_SCHEME_DYNAMIC,    "dynamic",    TL_FORMAT_F32,  8, "weights in 8 bits, inputs quantised anew")       \
    X(TL_SCHEME_FAKE,       "fake",       TL_FORMAT_F32,  32, \
      "quantised to 8 bits and back: i8's loss, no gain")                                                  \
    X(TL_SCHEME_W4A8,       "w4a8",       TL_FORMAT_I8,   4, \
      "tensors in 8 bits, weights in 4, a factor for each 32 of a channel")

// w4a8: of channel n and its term k a weight is scale[n] factor[n][k / 32] q[n][k], with q = -7 .. 7 in 4 bits
// and factor = 0 .. 127. A sum is bias[n] + the sum over groups of factor[n][g] x (that of (x - zero point) q
// over the group), in 32 bits, which hold 8192 products, and is requantised as one of i8-channel. Constants:
// weights, biases, multipliers, shifts, factors. A channel begins at a whole byte; of each 8 terms byte j, of
// four, has term j in its low half and term j + 4 in the high one; of terms behind these the earlier is low.

typedef enum tl_format { TL_FORMATS(TLI_ENUM4) TL_FORMAT_COUNT } tl_format;

#ifndef TL_NO_PRECISION
typedef enum tl_scheme { TL_SCHEMES(TLI_ENUM5) TL_SCHEME_COUNT } tl_scheme;

// Find the bytes of a tensor in a format, from its bytes in f32: 4 of these are one element, a last partial
// element counts as one. f32 and unknown formats return f32_bytes. Scales are not counted.
TLDEF uint64_t tl_find_format_bytes(tl_format format, uint64_t f32_bytes);

#ifndef TL_NO_PLANNERS
// Find the format of the outputs of a node in this scheme; TL_FORMAT_COUNT for an unknown scheme.
TLDEF tl_format tl_find_scheme_format(tl_scheme scheme);

// Name a format, or a scheme.
TLDEF const char *tl_name_format(tl_format format);     // "bf16"; "?" out of range
TLDEF const char *tl_name_scheme(tl_scheme scheme);     // "w8a16"
#ifndef TL_NO_TEXT
// Parse exactly what the tl_name_ function returns: 1 and the value, or 0.
TLDEF int tl_parse_format(const char *text, tl_format *format);  // 1 and the value; 0 and f32 for unknown text
TLDEF int tl_parse_scheme(const char *text, tl_scheme *scheme);
#endif
#endif

#endif  // TL_NO_PRECISION

// -- quantisation: an integer for a number --
//
//     q = clamp(round(x / scale) + zero_point, low, high)        x' = (q - zero_point) scale
//
// Zero is exact under every rule: 0 -> zero_point -> 0. Tools differ in whether a symmetric scale divides
// by 127.5 or by 127, which is the commonest reason why two tools disagree; so each rule has a name.
//
// References: Jacob et al., 2018, sections 2.1 and 2.2. ONNX, QuantizeLinear-21,
// DynamicQuantizeLinear-11. PyTorch 2, torch.ao.quantization.observer. TensorFlow Lite 8-bit
// quantization specification.

// id, name, scale. The range is first extended to contain 0; a = the larger magnitude of its two ends
#define TL_RANGE_RULES(X) \
    X(TL_RANGE_AFFINE, "affine", "(most - least) / (high - low); the zero point puts least on low")       \
    X(TL_RANGE_HALF,   "half",   "a / ((high - low) / 2), zero point 0: 127.5 steps for 8 bits, as PyTorch") \
    X(TL_RANGE_NARROW, "narrow", "a / high on -high .. high, zero point 0: as TensorFlow Lite's weights") \
    X(TL_RANGE_WIDE,   "wide",   "a / high on low .. high, zero point 0: as TensorRT")

// id, name, which integer a number half way between two of them rounds to
#define TL_ROUNDINGS(X) \
    X(TL_ROUNDING_EVEN, "even", "to the even one")            \
    X(TL_ROUNDING_AWAY, "away", "to the one farther from zero")

typedef enum tl_range_rule { TL_RANGE_RULES(TLI_ENUM) TL_RANGE_COUNT } tl_range_rule;
typedef enum tl_rounding   { TL_ROUNDINGS(TLI_ENUM) TL_ROUNDING_COUNT } tl_rounding;

typedef struct tl_quantization {
    float       scale;       // > 0, finite
    int32_t     zero_point;  // low .. high
    int32_t     low, high;   // least and largest integer, of at most 16 bits: -32768 <= low < high <= 65535
    tl_rounding rounding;    // 0 = to even
} tl_quantization;

// A positive real number as integers: real = multiplier 2^(exponent - 31).
typedef struct tl_multiplier {
    int32_t multiplier;  // 2^30 .. 2^31 - 1; 0 = the number is 0
    int32_t exponent;    // > 0 = the number is 1 or more
} tl_multiplier;

// Convert a sum of products to an integer of the target: shift left where the exponent is > 0 (saturating
// at 32 bits), rounding doubling high product, rounding shift right, add the zero point, clamp. It rounds
// twice: the result is within 1 of sum x real rounded once. Only integers: the same on every machine.
// Source:  Jacob et al., 2018, section 2.2; MultiplyByQuantizedMultiplier of TensorFlow Lite.
TLDEF int32_t tl_requantize(int32_t sum, tl_multiplier multiplier, const tl_quantization *to);

#ifndef TL_NO_PRECISION
// Find scale and zero point for a range of values.
//
//   rule           0 = affine
//   least, most    finite, least <= most; a range that does not contain 0 is extended to it
//   low, high      bounds of the integers: -32768 <= low < high <= 65535, at most 16 bits. narrow uses
//                  -high .. high of them (low <= -high), wide needs low <= 0 < high; half has the zero point
//                  (low + high + 1) / 2 where low >= 0, as PyTorch for unsigned integers
//   quantization   overwritten; rounds to even
//
// Computed in f32 with one rounding per operation. Scales of affine and half are at least 2^-23, as in
// PyTorch; those of narrow and wide at least 2^-126, or 2^-23 where both ends are 0.
//
// Errors:  TL_ERROR_INVALID_ARG; TL_ERROR_OVERFLOW: most - least does not fit f32. *quantization is all
//          zero then.
TLDEF tl_result tl_find_quantization(tl_env *env, tl_range_rule rule, float least, float most,
                                     int32_t low, int32_t high, tl_quantization *quantization);

// Convert numbers to integers, and integers back to numbers.
//
//   quantizations   [channel_count] element i belongs to channel (i / inner_count) % channel_count;
//                   channel_count 1 = one quantisation for all elements
//   format          i8, bounds within -128 .. 127 or 0 .. 255; i16, within -32768 .. 32767 or 0 .. 65535
//   from, to        [count] one is f32, the other int8_t or int16_t in the machine's byte order, unsigned
//                   where low >= 0. They do not overlap; NULL with count 0
//
// NaN becomes the zero point, infinities become the bounds. A result of tl_dequantize that overflows f32
// becomes the largest f32 of its sign, so results are always finite.
//
// Errors:  TL_ERROR_INVALID_ARG: an invalid quantisation, or bounds that the format cannot hold; nothing is
//          written then.
// Cost:    O(count + channel_count).
TLDEF tl_result tl_quantize(tl_env *env, const tl_quantization *quantizations, int32_t channel_count,
                            uint64_t inner_count, tl_format format, const float *from, void *to,
                            uint64_t count);
TLDEF tl_result tl_dequantize(tl_env *env, const tl_quantization *quantizations, int32_t channel_count,
                              uint64_t inner_count, tl_format format, const void *from, float *to,
                              uint64_t count);

// Quantise data over its own range, as ONNX DynamicQuantizeLinear: affine on 0 .. 255, without the lower
// limit of 2^-23 on the scale; data that is all zero has the scale 2^-23.
//
// Errors:  TL_ERROR_INVALID_ARG: no data, or a value that is not finite; TL_ERROR_OVERFLOW as above.
//          Nothing is written to `to` then, *quantization is all zero.
TLDEF tl_result tl_quantize_dynamic(tl_env *env, const float *from, uint8_t *to, uint64_t count,
                                    tl_quantization *quantization);

// Find the multiplier that converts sums of products of integers with scales a and b to integers of
// scale c: a b / c, rounded once, half away from zero. A number below 2^-32 (exponent < -31) takes every sum of
// 32 bits to 0 and becomes multiplier 0, exponent 0, as in TensorFlow Lite.
//
// Errors:  TL_ERROR_INVALID_ARG: a scale that is not finite and > 0; *multiplier is all zero then.
TLDEF tl_result tl_find_multiplier(tl_env *env, float a, float b, float c, tl_multiplier *multiplier);

#ifndef TL_NO_PLANNERS
// Name a rule.
TLDEF const char *tl_name_range_rule(tl_range_rule rule);  // "narrow"; "?" out of range
#endif

// -- guards for 16-bit floats --

// A factor on the loss that keeps small gradients above 2^-24, the least f16: it doubles after growth_interval
// steps without overflow, and halves at an overflow, whose step is skipped. A field that is 0, negative or not
// finite means its default.
//
// Source:  Micikevicius et al., 2018, section 3.2; the numbers are those of torch.amp.GradScaler.
typedef struct tl_loss_scaler {
    float    scale;            // 0 = 65536, filled in by the first tl_next_loss_scale; within least .. most
    float    least, most;      // 0 = 1, 2^24; most is at least `least`
    uint32_t growth_interval;  // steps without overflow after which the scale doubles; 0 = 2000
    uint32_t clean_count;      // steps since the last change
    uint64_t skipped_count;    // steps that were skipped for an overflow
} tl_loss_scaler;

// Return a copy with defaults filled in; NULL = all defaults. The counts are copied.
TLDEF tl_loss_scaler tl_default_loss_scaler(const tl_loss_scaler *scaler);

// Update the scale after a backward pass. 1 = apply the step (its gradients carry the scale from before
// this call), 0 = skip it.
TLDEF int tl_next_loss_scale(tl_loss_scaler *scaler, int overflowed);

// Look for an overflow.
TLDEF int tl_has_overflow(const float *data, uint64_t count);  // 1 = data holds an infinity or NaN

#ifndef TL_NO_PLANNERS
// -- observers: measured ranges and noise of tensors --
//
//     batches --tl_observe_data--> counts --tl_measure_observer--> range --tl_find_quantization--> scale
//
//     |         # #                      The bins of a histogram have equal width, a power of two. A value
//     |       # # # #                    beyond the last bin makes pairs of bins join until it fits. So
//     |     # # # # # #           #      counts do not depend on the order of the data, and two merged
//     +--|-------------|----------|->    observers equal, bit for bit, one observer of all the data.
//      least   range  most     outlier
//
// The memory of an observer is fixed per channel, whatever the amount of data. A wide range loses by
// rounding, a narrow one by clipping: min-max clips nothing; mse takes, of the ranges that it tries, the one
// with the least sum of both on the data. Entropy looks at the share of values, not at their size: under heavy
// tails (Student's t with 3 degrees of freedom, of 8 bits) it clips few but large values, and they alone lose
// several times as much as all the rounding of min-max. Take it where a tool that is compared with does.
//
// References: Migacz, 8-bit Inference with TensorRT, GTC 2017 (entropy; P with the tail, Q without). Here
// each level is made of whole bins, zeros are left out because they are exact, and the threshold is the
// upper edge of the last bin. Tools differ in all three, so their thresholds differ. Banner et al., Post
// training 4-bit quantization of convolutional networks, 2019, arXiv:1810.05723 (optimal clip, closed form).

// id, name, which range it finds
#define TL_OBSERVERS(X) \
    X(TL_OBSERVER_MSE,            "mse",            "with the least squared error")                        \
    X(TL_OBSERVER_MIN_MAX,        "min-max",        "least and largest value")                             \
    X(TL_OBSERVER_MOVING_AVERAGE, "moving-average", "of the least and the largest of each batch")          \
    X(TL_OBSERVER_PERCENTILE,     "percentile",     "a share of all magnitudes lies within, nearest rank") \
    X(TL_OBSERVER_ENTROPY,        "entropy",        "that loses the least information (Kullback-Leibler)")

typedef enum tl_observer_kind { TL_OBSERVERS(TLI_ENUM) TL_OBSERVER_COUNT } tl_observer_kind;

typedef struct tl_observer_desc {
    tl_observer_kind kind;     // 0 = mse
    int32_t  channel_count;    // ranges to find; 0 = 1
    uint64_t inner_count;      // elements of one channel side by side; 0 = 1
    double   rate;             // moving-average: weight of a new batch; 0 = 0.01; (0, 1]
    double   percentile_ratio; // percentile: share of magnitudes within the range; 0 = 0.999; (0, 1]
    int32_t  high;             // mse, entropy: largest integer of the quantisation; 0 = 127; 1 .. 32767
    tl_range_rule rule;        // mse: rule of the quantisation; 0 = affine, on -high-1 .. high
    int32_t  bin_count;        // bins for each sign, a power of two, 128 .. 8192; 0 = 2048, no histogram for
                               // min-max and moving-average. 16 bytes a bin, for both signs together
} tl_observer_desc;

typedef struct tl_observer tl_observer;

// What an observer measured in one channel. All 0 where nothing was observed.
typedef struct tl_observation {
    float    least, most;              // of all values
    float    range_least, range_most;  // the range that the kind chose, for tl_find_quantization
    uint64_t count, zero_count;        // values; zeros of tl_observe_data (tl_observe_extremes counts none)
    double   square_sum;               // sum of squares, correctly rounded; of tl_observe_data
    double   clipped_ratio;            // share of values outside the range, by whole bins; 0 = no histogram
} tl_observation;

// Error of a quantisation on data.
typedef struct tl_noise {
    double   error_sum;      // of squared errors, each times its weight where weights are given
    double   signal_sum;     // of squared values, weighted alike
    double   mse;            // error_sum / count
    double   sqnr_db;        // 10 log10(signal / error); 0 without error (is_exact) or without signal
    double   clipped_ratio;  // share of values that would round to an integer beyond the bounds
    uint64_t count;
    int32_t  is_exact;       // 1 = every value with a weight > 0 is represented exactly
} tl_noise;

// Make an observer, or release it.
//
//   env        must outlive the observer: the functions below write their error texts to it
//   observer   NULL after an error
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY.
// Cost:    one allocation: 240 bytes per channel and, with a histogram, 16 bytes per bin (2048: 32 KiB).
// Threads: one observer is used by one thread at a time, one env by one thread. To observe in several
//          threads, give each an observer and merge them.
TLDEF tl_result tl_init_observer(tl_env *env, const tl_observer_desc *desc, tl_observer **observer);
TLDEF void      tl_free_observer(tl_observer *observer);   // accepts NULL

// Add one batch. Element i belongs to channel (i / inner_count) % channel_count.
//
// Errors:  TL_ERROR_INVALID_ARG: a value that is not finite; TL_ERROR_OVERFLOW: more than 2^48 values
//          in a channel. The observer is unchanged then.
// Cost:    O(count + channel_count).
TLDEF tl_result tl_observe_data(tl_observer *observer, const float *data, uint64_t count);

// Add one batch whose extremes a device has found (tl_vk_read_extremes). Only for min-max and moving-average
// without a histogram.
//
// Errors:  TL_ERROR_INVALID_ARG: numbers that are not finite or not in order, no such channel, count 0;
//          TL_ERROR_UNSUPPORTED: another kind; TL_ERROR_OVERFLOW as above. The observer is unchanged then.
TLDEF tl_result tl_observe_extremes(tl_observer *observer, int32_t channel, float least, float most,
                                    uint64_t count);

// Add the data of another observer of the same desc. The result equals one observer of all the data, except
// for moving averages, which depend on the order: they become the mean of both, weighted by batch counts.
//
// Errors:  TL_ERROR_INVALID_ARG: another desc; TL_ERROR_OVERFLOW as above. The observer is unchanged then.
TLDEF tl_result tl_merge_observer(tl_observer *observer, const tl_observer *other);

// Measure a channel: its range by the kind of the observer, counts and signal power.
//
// percentile: the upper edge of the bin that holds the rank; zeros count. mse: tries ranges in steps of
// 1/200 of the observed range, at edges of bins, with values spread evenly over their bins; under affine both
// ends shrink by the same share first, then each end alone. entropy: tries all edges of bins from the
// (high + 1)-th on; it needs many values, because a few values lie in bins of their own, where every threshold
// is as good. Of equal ranges the widest is taken, and none exceeds the observed extremes. Integers decide,
// so the range is the same on every machine.
//
// Errors:  TL_ERROR_INVALID_ARG: no such channel. *observation is all zero then.
// Cost:    O(bins) for percentile, O(200 bins) for mse (affine: 600), O(bins^2) for entropy.
TLDEF tl_result tl_measure_observer(const tl_observer *observer, int32_t channel,
                                    tl_observation *observation);

// Find the quantisation for the range of a channel: tl_measure_observer, then tl_find_quantization.
//
// Errors:  those of the two calls; TL_ERROR_NOT_FOUND: the channel has no data.
TLDEF tl_result tl_find_observed_quantization(const tl_observer *observer, int32_t channel,
                                              tl_range_rule rule, int32_t low, int32_t high,
                                              tl_quantization *quantization);

// Estimate the noise of a quantisation on the data of a channel, with values spread evenly over their bins.
// signal_sum is exact. For observers with a histogram.
//
// Errors:  TL_ERROR_INVALID_ARG; TL_ERROR_UNSUPPORTED: no histogram; TL_ERROR_NOT_FOUND: the channel has
//          no data. *noise is all zero then.
// Cost:    O(bins).
TLDEF tl_result tl_estimate_noise(const tl_observer *observer, int32_t channel,
                                  const tl_quantization *quantization, tl_noise *noise);

// Tell whether f16 can hold the data of every channel. 1 = magnitudes x margin stay within 65504, and at most
// lost_ratio of the values that are not 0 are below the least f16, 2^-24. 0 where nothing was observed.
// Values below 2^-24 are counted by tl_observe_data only.
//
//   margin       >= 1; 0 = 1. Any other value returns 0
//   lost_ratio   0 .. 1
TL_EXPERIMENTAL int tl_is_f16_safe(const tl_observer *observer, double margin, double lost_ratio);

// Measure the range of data in memory without a histogram: percentile by exact rank, mse by the true error of
// 200 ranges (in f32: largest x (k / 200)). The other kinds as an observer of one channel and one batch.
//
//   desc   channel_count and inner_count must be 0 or 1
//
// Errors:  TL_ERROR_INVALID_ARG: no data, or a value that is not finite; TL_ERROR_NO_MEMORY (entropy).
//          Both are 0 then.
// Cost:    O(count); mse O(200 count), affine 600.
TLDEF tl_result tl_measure_range(tl_env *env, const tl_observer_desc *desc, const float *data,
                                 uint64_t count, float *least, float *most);

// Measure the noise of a quantisation, or of a format (f32, f16, bf16; a value that overflows it becomes its
// largest number and counts as clipped), on data in memory. Sums in f64, in the order of the data.
//
//   weights   [count] factors of the squared errors: >= 0, finite, not all 0. With squared gradients as weights
//             error_sum estimates the change of the loss to second order. 0 = all 1
//
// Errors:  TL_ERROR_INVALID_ARG: no data, a value or weight that is not finite. *noise is all zero then.
// Cost:    O(count).
TLDEF tl_result tl_measure_noise(tl_env *env, const tl_quantization *quantization, const float *data,
                                 const float *weights, uint64_t count, tl_noise *noise);
TLDEF tl_result tl_measure_format_noise(tl_env *env, tl_format format, const float *data,
                                        const float *weights, uint64_t count, tl_noise *noise);

// Name a kind of observer.
TLDEF const char *tl_name_observer(tl_observer_kind kind);  // "entropy"; "?" out of range
#ifndef TL_NO_TEXT
// Parse exactly what the tl_name_ function returns: 1 and the value, or 0.
TLDEF int tl_parse_observer(const char *text, tl_observer_kind *kind);
#endif

// -- profiles: what a scheme costs and loses, as data --

// The loss and speed-up of each scheme for the nodes of one op. A row may be limited to a device and a range
// of sizes. Rows of the caller, ideally measured, replace the library's table.
typedef struct tl_precision_profile {
    const char *op;               // case does not matter; "*" = nodes that no other row fits
    const char *device;           // tl_device.name; 0 = any device
    uint64_t least_elements, most_elements;  // of output 0, f32 elements; most_elements 0 = no limit
    uint32_t schemes;             // bits 1 << tl_scheme that the op can have; f32 is always possible
    double   loss[TL_SCHEME_COUNT];     // of one call: noise / signal power, or in the limit's unit; >= 0
    double   speedup[TL_SCHEME_COUNT];  // time in f32 / time in the scheme; > 0
    tl_scheme recommended;        // preferred among choices of equal value
    int32_t  sensitive;           // 1 = only schemes of 16 bits and more, unless allow_sensitive
    const char *measured_on;      // the machine that the speed-ups were measured on; 0 = they are assumed
} tl_precision_profile;

// Return the library's own rows, a const table: the ops that [3] makes, and "*". Losses are derived from word
// lengths, as the implementation explains row by row; every speed-up is 1, because no figure holds on all
// machines. To replace them, measure losses with tl_measure_sensitivity or tl_estimate_sensitivity, and times
// with tl_measure_profiles.
TLDEF const tl_precision_profile *tl_find_default_profiles(int32_t *count);

// Find the row of a node: the first whose op, device and elements fit. For an op "add+relu" without a row of
// its own, each part needs a row; the first sensitive one is returned, else that of the first part. Otherwise
// "*".
//
//   device   may be NULL: rows that name a device do not fit then
//
// Returns NULL where there is none, and for graph inputs.
// Cost:    O(rows x length of the op).
TLDEF const tl_precision_profile *tl_find_profile(const tl_precision_profile *profiles, int32_t profile_count,
                                                  const tl_graph *graph, int32_t node, const tl_device *device);

// Check every rule of a table: ops named, schemes known; losses finite and >= 0 and speed-ups finite and > 0
// for all possible schemes, 0 and 1 for f32 where it is listed; a recommended scheme that is possible, bounds
// in order, and no row that is never used because a row above it always fits first.
//
// Errors:  TL_ERROR_INVALID_ARG names the row.
// Cost:    O(rows squared).
TLDEF tl_result tl_check_profiles(tl_env *env, const tl_precision_profile *profiles, int32_t profile_count);

// -- where speeds come from --

// id, name, where the time of a node in a scheme comes from; behind exact from the least trusted on
#define TL_SPEED_SOURCES(X) \
    X(TL_SPEED_EXACT,       "exact",    "the node is in f32: 1 by definition")                            \
    X(TL_SPEED_ASSUMED,     "assumed",  "a table that names no machine; that of the library says 1 x")    \
    X(TL_SPEED_FROM_DEVICE, "device",   "tl_device: its arithmetic in the scheme / in f32, for products") \
    X(TL_SPEED_GIVEN,       "given",    "costs of the caller that name no machine")                       \
    X(TL_SPEED_MEASURED,    "measured", "a table, or costs, that name the machine they were measured on")

typedef enum tl_speed_source { TL_SPEED_SOURCES(TLI_ENUM) TL_SPEED_SOURCE_COUNT } tl_speed_source;

// What is known of the times behind a choice. What is proven is proven for these times.
typedef struct tl_speeds {
    int32_t  counts[TL_SPEED_SOURCE_COUNT];  // nodes by the least trusted source among their possible schemes;
                                       // exact = only f32 is possible; graph inputs are left out
    tl_speed_source conversions;       // device = by its rates; assumed = 1 an element
    char     measured_on[64];          // the machine, cut after 63 bytes; "" = none; of several "A and others"
} tl_speeds;

// Name a source of speeds.
TLDEF const char *tl_name_speed_source(tl_speed_source source);  // "assumed"; "?" out of range

// -- precision plan --

// id, name, meaning
#define TL_CRITERIA(X) \
    X(TL_CRITERION_PERFORMANCE, "performance", "the least time within loss_limit")                       \
    X(TL_CRITERION_BALANCED,    "balanced",    "the knee of the front, both axes scaled to 1")           \
    X(TL_CRITERION_ACCURACY,    "accuracy",    "the least loss at which the speed-up is least_speedup")  \
    X(TL_CRITERION_CUSTOM,      "custom",      "the least time within both limits")

// id, name, what is minimised
#define TL_PRECISION_OBJECTIVES(X) \
    X(TL_OBJECTIVE_TIME,  "time",  "of the calls and the conversions")                       \
    X(TL_OBJECTIVE_BYTES, "bytes", "of weights and of the tensors handed on, copies in other formats too")

// id, name, where a node's loss comes from
#define TL_LOSS_SOURCES(X) \
    X(TL_LOSS_FROM_PROFILE,  "profile",  "the table")                                  \
    X(TL_LOSS_FROM_DATA,     "data",     "noise of observed or given data")            \
    X(TL_LOSS_FROM_MEASURED, "measured", "the caller evaluated the op in the scheme")

#define TL_FORBIDDEN UINT64_MAX  // as a cost: not measured, this scheme is not possible

typedef enum tl_criterion { TL_CRITERIA(TLI_ENUM) TL_CRITERION_COUNT } tl_criterion;
typedef enum tl_precision_objective {
    TL_PRECISION_OBJECTIVES(TLI_ENUM) TL_OBJECTIVE_COUNT
} tl_precision_objective;
typedef enum tl_loss_source { TL_LOSS_SOURCES(TLI_ENUM) TL_LOSS_SOURCE_COUNT } tl_loss_source;

typedef struct tl_precision_plan tl_precision_plan;

typedef struct tl_precision_desc {
    const tl_graph  *graph;            // not NULL; bytes and costs are those of f32
    const tl_device *device;           // 0 = a conversion costs 1 per element, see tl_plan_precision
    tl_criterion     criterion;        // 0 = performance
    double           loss_limit;       // performance, custom: >= 0; 0 = lossless, infinity = no limit
    double           least_speedup;    // accuracy, custom: base_cost / cost; 0 = 1
    tl_precision_objective objective;  // 0 = time
    int32_t          training;         // 1 = backward costs count, and only f32, f16, bf16 are allowed
    uint32_t         schemes;          // bits 1 << tl_scheme that may be chosen; 0 = all but fake and w4a8,
                                       // for which few targets have kernels (training: f32, f16, bf16)
    const uint32_t  *node_schemes;     // [node_count] further limits, per node; NULL, or 0 for a node = none
    int32_t          allow_sensitive;  // 1 = sensitive ops may have fewer than 16 bits
    int32_t          allow_unknown;    // 1 = ops without a row may leave f32, by the "*" row
    int32_t          any_result;       // 1 = results (keep) may have any format; 0 = converted back to f32
    const tl_precision_profile *profiles;  // [profile_count] 0 = tl_find_default_profiles
    int32_t          profile_count;
    const double    *losses;           // [node_count x TL_SCHEME_COUNT] replace the profiles'; NaN = not
                                       // measured; that of f32 counts as 0
    const uint64_t  *costs;            // [node_count x TL_SCHEME_COUNT] replace fwd (+ bwd) / speed-up;
                                       // TL_FORBIDDEN = not measured; not read where bytes are minimised
    double           performance_weight, accuracy_weight;  // balanced: >= 0; both 0 = 0.5 each
    double           priorities[TL_SCHEME_COUNT];  // among choices of equal value the larger is preferred
    uint64_t         work_limit;       // of each choice, in elementary steps; 0 = 200 million
    // Called with each choice to measure the loss of the whole plan, in the unit of the limit; runners-up
    // are not filled in yet. If the loss exceeds the limit the choice is repeated, round_limit times in all.
    tl_result      (*evaluate)(const tl_precision_plan *plan, double *loss, void *user);
    void            *user;
    int32_t          round_limit;      // 0 = 8
    tl_loss_source   loss_source;      // where `losses` come from; 0 = measured
    const char      *measured_on;      // the machine that `costs` were measured on; 0 = they are given
    int32_t          allow_f16;        // training: 1 = f16 everywhere: your word that its range holds tensors
                                       // and gradients; 0 = only where f16_nodes says so, else bf16
    const uint8_t   *f16_nodes;        // [node_count] training: 1 = observed: tl_is_f16_safe of what the node
                                       // hands on and of its gradients; 0 = of none
    const uint32_t  *input_schemes;    // [node_count] of graph inputs: bits of f32, f16, bf16, i16 and i8 that
                                       // the caller may be asked to write it in, at no loss; NULL, or 0 for an
                                       // input = f32 alone
} tl_precision_desc;

typedef struct tl_precision_node {
    tl_scheme scheme;
    tl_format format;                  // of its outputs
    tl_loss_source source;             // where its loss comes from
    double    loss, speedup;           // of the scheme; time of its calls in f32 / time in the scheme
    double    confidence;              // 0 .. 1, see tl_plan_precision
    tl_scheme runner_up;               // its scheme in the best choice that gives it another scheme;
                                       // TL_SCHEME_COUNT = there is none
    int32_t   runner_up_proven;        // 1 = that choice is proven to be the best with another scheme here
    uint64_t  runner_up_cost;          // cost of the whole graph in that choice
    double    runner_up_loss;          // loss of the whole graph in that choice
    int32_t   conversion_count;        // of its outputs, to other formats
    uint64_t  conversion_cost;         // of these
    tl_speed_source speed_source;      // where the speed-up comes from
} tl_precision_node;

struct tl_precision_plan {
    const tl_precision_node *nodes;    // [node_count]
    int32_t  node_count;
    tl_criterion criterion;
    double   loss;                     // predicted: the sum over nodes
    double   loss_limit;               // of the last choice, tightened after evaluate; infinity = none
    double   measured_loss;            // by evaluate; NaN without evaluate
    int32_t  round_count;              // choices made
    uint64_t cost, base_cost;          // of the objective, conversions included; of everything in f32
    uint64_t conversion_cost;          // of all conversions, a part of cost
    int32_t  conversion_count;         // of tensors, to other formats
    uint64_t bound_cost;               // lower bound of the cost within this loss limit (accuracy: this loss)
    double   bound_loss;               // accuracy: lower bound of the loss at this speed; else 0
    int32_t  proven;                   // 1 = optimal: value and bound are equal
    double   gap_ratio, speedup;       // (value - bound) / bound, 0 = proven; base_cost / cost
    uint64_t bytes, base_bytes;        // weights, tensors and converted copies, for any objective; all in f32
    int32_t  scheme_counts[TL_SCHEME_COUNT];  // nodes in each scheme, without graph inputs
    void    *memory;                   // released by tl_free_precision_plan
    tl_precision_objective objective;
    tl_speeds speeds;                  // where the times come from
};

// Fill in the defaults.
TLDEF tl_precision_desc tl_default_precision(const tl_precision_desc *desc);  // NULL = all defaults

// Choose a scheme for every node.
//
//   plan   overwritten; release with tl_free_precision_plan
//
// Time: a node costs fwd / speed-up, in training (fwd + bwd) / speed-up, rounded up. The speed-up is that of
// the profile. Under the library's table everything is as fast as in f32, but for ops of products in f16 and
// bf16: flops_per_second of the device in this format / that in f32, where both are known. A tensor of E
// elements is converted once for each other format that its readers want. A conversion costs E (bytes of one
// format + bytes of the other) / bytes_per_second of the device, in ns, rounded up (between f32 and f16 or bf16
// 4 E / codec_bytes_per_second, if that is known); without a device that has these rates it costs E, like
// an elementwise call in FLOP. In training a conversion costs twice that if the tensor has a gradient,
// which is converted back; this is an upper bound where only readers without a gradient want the format.
// Bytes: weights and tensors in their formats, and their converted copies; graph inputs count as f32, unless
// input_schemes lets them have another format.
//
// Losses know noise and no range: gradients below 2^-24 vanish in f16, and tensors above 65504 overflow. So in
// training f16 needs evidence (allow_f16, f16_nodes); bf16 has the range of f32.
//
// Losses add up over nodes. The choice works on integers: losses in units of loss_limit / 2^40, rounded up,
// so that a limit is never exceeded; without a limit in units of the power of two that brings the sum of
// the largest losses into 2^51 .. 2^52.
//
// Among choices of equal cost (accuracy: equal loss) the one of least loss (cost) is taken, as far as
// 50 million steps go. Then single nodes change, as long as costs and conversions do not grow and limits
// are kept, in this order of preference: the recommended scheme of the row, larger priorities, less loss.
// Where priorities differ, the preferences count over the whole graph: of equal choices within the limits
// (accuracy: of equal loss and cost) the one of fewest conversions is taken, of these the one with most nodes
// in their recommended scheme, then with most in a scheme of the largest priority, of the next, and so on, of
// these the one of least loss, as far as 60 bits and twice 50 million steps go.
// Balanced takes the point of the front with the least sum of weight x (value - least) / (most - least),
// and among equal ones the point that satisfies most of these preferences.
//
// The runner-up of a node is found by choosing once more without the node's scheme (balanced: within the
// plan's loss). In graphs of more than 256 nodes, and for nodes that remain when these choices have taken
// 50 million steps, only this node changes, and the runner-up is not proven.
//
// Confidence is 1 for a measured loss, 3/4 for one from data, 1/2 for one from the table, times (1 + m) / 2.
// m is the additional cost (accuracy: loss) of the runner-up over the cost of the node in f32 (its loss in
// the runner-up's scheme), at most 1; m is 1 where the node has no other scheme.
//
// With evaluate, a plan whose measured loss exceeds loss_limit is made again for the limit times
// loss_limit / measured, reduced by a sixteenth at least; the last try is the choice of least loss. For
// accuracy and balanced, and where loss_limit is infinite, evaluate runs once.
//
// Errors:  TL_ERROR_INVALID_ARG, those of tl_check_graph and tl_check_device; TL_ERROR_INFEASIBLE names the
//          limit that cannot be met and the
//          nearest that can, the node that has no scheme, or the measured loss; TL_ERROR_KERNEL:
//          evaluate failed, or its loss is NaN; TL_ERROR_OVERFLOW: costs do not fit 60 bits;
//          TL_ERROR_NO_MEMORY. *plan is all zero then.
// Cost:    work_limit for each round, and 50 million steps for runners-up. Graphs of small treewidth (chains,
//          residual networks) are solved exactly: 1000 nodes in some hundredths of a second. A graph whose
//          tree decomposition exceeds work_limit / 64 cells (4 million at most), as of densely connected
//          networks, is searched: mostly proven up to 200 nodes, otherwise within a thousandth in cost and
//          some hundredths in loss. Memory: at most 48 bytes per cell, and lists of at most 300 MiB.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_precision(tl_env *env, const tl_precision_desc *desc, tl_precision_plan *plan);
TLDEF void      tl_free_precision_plan(tl_env *env, tl_precision_plan *plan);  // accepts zeroed ones

typedef struct tl_precision_point {
    double   loss, speedup;            // sum over nodes; base_cost / cost
    uint64_t cost, bound_cost;         // lower bound of the cost within this loss
    uint64_t bytes;                    // as tl_precision_plan.bytes
    const uint8_t *schemes;            // [node_count] tl_scheme
} tl_precision_point;

typedef struct tl_precision_front {
    const tl_precision_point *points;  // [point_count] loss rises, cost falls
    int32_t  point_count;
    int32_t  complete;                 // 1 = the whole front, each point proven; 0 = a selection
    int32_t  knee;                     // the point that balanced takes, with the weights of the desc
    uint64_t base_cost, base_bytes;    // of everything in f32
    void    *memory;                   // released by tl_free_precision_front
    tl_speeds speeds;                  // where the times come from
} tl_precision_front;

// Find the Pareto front of loss and cost: the least cost for each loss. Criterion and limits are not read.
//
//   point_limit   most points to return, at least 2; 0 = 256
//   front         overwritten; release with tl_free_precision_front
//
// Errors:  as tl_plan_precision, without evaluate.
// Cost:    an eighth of work_limit for the complete front, then one pass over the cells per point; in a graph
//          that must be searched a sixteenth of work_limit per point, until all is spent.
TLDEF tl_result tl_plan_precision_front(tl_env *env, const tl_precision_desc *desc, int32_t point_limit,
                                        tl_precision_front *front);
TLDEF void      tl_free_precision_front(tl_env *env, tl_precision_front *front);  // accepts zeroed ones

// -- sensitivity: measured loss of each node in each scheme --

typedef struct tl_sensitivity_desc {
    const tl_graph *graph;             // not NULL
    uint32_t        schemes;           // bits 1 << tl_scheme to evaluate; 0 = all but f32, fake and w4a8
    const uint32_t *node_schemes;      // [node_count] further limits, per node; NULL, or 0 for a node = none
    // Evaluate the network with one node in a scheme and all others in f32: *loss = how much worse it is.
    tl_result     (*evaluate)(int32_t node, tl_scheme scheme, double *loss, void *user);  // not NULL
    void           *user;
    // Called after each evaluation with the loss that it gave (a negative loss as 0); returns 1 = stop.
    int           (*progress)(int32_t done, int32_t all, double loss, void *user);
} tl_sensitivity_desc;

// Measure the loss of every node in every scheme, one evaluation each; graph inputs are left out.
//
//   losses   [node_count x TL_SCHEME_COUNT] overwritten: for tl_precision_desc.losses. NaN where not
//            evaluated, 0 for f32. A negative loss is chance and counts as 0: no other node may use it up
//
// Errors:  those of tl_check_graph; TL_ERROR_INVALID_ARG; TL_ERROR_KERNEL: evaluate failed or returned a
//          loss that is not finite. *losses is all NaN after TL_ERROR_KERNEL, and unchanged after the others.
// Cost:    one call of evaluate for each node and scheme.
TL_EXPERIMENTAL tl_result tl_measure_sensitivity(tl_env *env, const tl_sensitivity_desc *desc, double *losses);

// -- sensitivity, estimated: losses of all nodes in all schemes from runs in f32 --

// What is known of a tensor, or of the weights of a node, after a run.
typedef struct tl_sample {
    const float *values;               // [count] 0 = these are no numbers, as tokens
    const float *gradients;            // [count] of the loss by the values; 0 = it does not depend on them
    uint64_t     count;
    int32_t      channel_count;        // weights: channels with a scale of their own; 0 = 1
    uint64_t     inner_count;          // elements of one channel side by side; 0 = 1
} tl_sample;

typedef struct tl_estimate_sensitivity_desc {
    const tl_graph *graph;             // not NULL
    uint32_t        schemes;           // bits 1 << tl_scheme to estimate; 0 = all but f32, fake and w4a8
    const uint32_t *node_schemes;      // [node_count] further limits, per node; NULL, or 0 for a node = none
    int32_t         batch_count;       // > 0
    uint64_t        row_count;         // > 0: rows of a batch, over which the loss is a mean
    // Run the network on a batch in f32, forward and backward. Called twice for each batch.
    tl_result     (*run)(int32_t batch, void *user);  // not NULL
    // Fill in a tensor, or the weights of a node, of the last run; the sample is zeroed before.
    tl_result     (*find_tensor)(int32_t tensor, tl_sample *sample, void *user);  // not NULL
    tl_result     (*find_weights)(int32_t node, tl_sample *sample, void *user);   // 0 = weights lose nothing
    void           *user;
    tl_observer_kind observer;         // of tensors in i8, affine; 0 = mse
} tl_estimate_sensitivity_desc;

// Estimate the loss of every node in every scheme: the cheap sibling of tl_measure_sensitivity.
//
//   losses         [node_count x TL_SCHEME_COUNT] overwritten: for tl_precision_desc.losses, source data.
//                  NaN where not estimated, 0 for f32
//   narrow, wide   [tensor_count] overwritten: the quantisations found, for tl_apply_desc; scale 0 = no
//                  numbers; NULL = not wanted
//
// Noise e changes the loss of a row by (g e)^2 / 2 to second order, g the gradient of this row's loss
// (empirical Fisher information). So the loss of a node in a scheme is row_count / 2 x the mean over batches of
// the sum of squared gradients x squared errors, over what the scheme stores in another way: inputs and outputs
// in its format, weights in theirs; dynamic quantises inputs and weights alone. Ranges of tensors in i8 are
// found by the observer in the first half of the runs, those in i16 are all that was seen; weights are
// symmetric, narrow; in w4a8 they are integers of -7 .. 7 times factors, of groups in the order in which the
// sample has the terms of a channel. Noise of tensors is taken as independent; the result is good to a factor,
// not to percents.
//
// Errors:  those of tl_check_graph; TL_ERROR_INVALID_ARG: also a sample of another count, or not finite;
//          TL_ERROR_KERNEL: a callback failed; TL_ERROR_NO_MEMORY. *losses is all NaN after the last two and a
//          bad sample, and the quantisations are 0; all are unchanged after the others.
// Cost:    2 batch_count runs; O(values x formats), an observer of 33 KiB for each tensor.
TL_EXPERIMENTAL tl_result tl_estimate_sensitivity(tl_env *env, const tl_estimate_sensitivity_desc *desc,
                                                  double *losses, tl_quantization *narrow,
                                                  tl_quantization *wide);

// -- times: measured speed-ups of each node in each scheme --
//
//     graph, kernels, a clock --tl_measure_profiles--> profiles, ns of each node, rates of conversions

typedef struct tl_measure_profiles_desc {
    const tl_graph *graph;             // not NULL; its sizes are those that are measured
    const char     *name;              // not NULL: of the machine, for measured_on
    uint32_t        schemes;           // bits 1 << tl_scheme to measure; 0 = all but fake and w4a8; f32
                                       // always is
    const uint32_t *node_schemes;      // [node_count] those that a node has kernels for; NULL, or 0 = all
    // Make a node's inputs and weights ready in a scheme; not timed. 0 = there is nothing to make.
    tl_result     (*prepare)(int32_t node, tl_scheme scheme, void *user);
    // Run the kernels of a node in a scheme, so many times, and wait until they are done.
    tl_result     (*run)(int32_t node, tl_scheme scheme, int32_t count, void *user);  // not NULL
    // Convert a tensor from f32 to a format and back, so many times. 0 = conversions are not measured.
    tl_result     (*convert)(int32_t tensor, tl_format format, int32_t count, void *user);
    void           *user;
    uint64_t      (*now_ns)(void *clock);  // not NULL: a clock that never goes back, as that of tl_backend
    void           *clock;
    const double   *losses;            // [node_count x TL_SCHEME_COUNT] for the rows: the largest of a row's
                                       // nodes; NULL, or NaN = those of the library's table
    int32_t         sample_count;      // 0 = 15; at most 31
    uint64_t        least_ns;          // a sample repeats until it has taken so long; 0 = 100 us
    int           (*progress)(int32_t done, int32_t all, void *user);  // of nodes and tensors; 1 = stop here
} tl_measure_profiles_desc;

typedef struct tl_measured_profiles {
    const tl_precision_profile *profiles;  // [profile_count] for tl_precision_desc and tl_print_profiles
    int32_t         profile_count;
    const uint64_t *costs;             // [node_count x TL_SCHEME_COUNT] ns of a call, for the desc of a plan;
                                       // TL_FORBIDDEN = not measured
    tl_device       device;            // name; flops_per_second of f32, in units of the graph's cost;
                                       // bytes_per_second and codec_bytes_per_second of conversions; 0 = not
                                       // known, and in all other fields
    void           *memory;            // released by tl_free_measured_profiles
} tl_measured_profiles;

// Measure what each scheme gains on this machine.
//
//   measured   overwritten; release with tl_free_measured_profiles
//
// The schemes of a node take turns; the first turn warms up. Its time is the lower quartile of the samples:
// what else runs makes calls longer, never shorter. One row for each op and size of output 0: the time of its
// nodes in f32 / in the scheme, to four decimals, for sizes up to the middle between it and the next one.
// Schemes without a loss, given or of the library's table, are left out. The rows of that table follow for the
// ops that were not measured: their speed-ups stay assumed. Forward calls are timed; in training these
// speed-ups stand for both directions.
//
// Errors:  those of tl_check_graph; TL_ERROR_INVALID_ARG; TL_ERROR_KERNEL: a callback failed;
//          TL_ERROR_NO_MEMORY. *measured is all zero then.
// Cost:    sample_count + 1 turns of each node and scheme, each of least_ns or one call.
TL_EXPERIMENTAL tl_result tl_measure_profiles(tl_env *env, const tl_measure_profiles_desc *desc,
                                              tl_measured_profiles *measured);
// Free measured profiles. Accepts zeroed ones.
TL_EXPERIMENTAL void tl_free_measured_profiles(tl_env *env, tl_measured_profiles *measured);

// -- apply --
//
//     a --> b (result)          a --> a_i8 --> b --> b_f32 (result)     b in i8: two conversions
//
// The new graph has the conversions of a plan as nodes, and tensors with the bytes of their formats. The
// planners of [5] and [6] take it as any other graph, and tensors kept for backward are as narrow as the
// plan chose.

typedef struct tl_precision_graph {
    tl_graph       graph;
    const int32_t *nodes;              // [graph.node_count] old node; of a conversion, its tensor's producer
    const int32_t *new_nodes;          // [old node_count] node of this graph for each old node
    const uint8_t *formats;            // [graph.tensor_count] tl_format
    const uint8_t *schemes;            // [graph.node_count] tl_scheme; f32 for conversions
    const tl_quantization *quantizations;  // [graph.tensor_count] of i8 and i16 tensors; scale 0 = none known
    int32_t        conversion_count;   // nodes that convert
    void          *memory;             // released by tl_free_precision_graph, with the graph
} tl_precision_graph;

typedef struct tl_apply_desc {
    const tl_graph          *graph;    // not NULL; the graph of the plan, with bytes and costs of f32
    const tl_precision_plan *plan;     // not NULL; only scheme and speedup of its nodes are read
    const tl_device         *device;   // for the costs of conversions; 0 = each costs 1 per element
    const tl_quantization   *quantizations;  // [tensor_count of graph] of each tensor in i8; 0 = not known
    const tl_quantization   *wide_quantizations;  // [tensor_count of graph] of each tensor in i16; 0 = as above
    int32_t                  training;    // 1 = conversions have a backward; 0 = they have none
    int32_t                  any_result;  // 1 = results stay in the format of their node; 0 = converted to f32
    int32_t                  any_input;   // 1 = graph inputs may have other formats than f32, which the caller
                                          // writes (tl_precision_desc.input_schemes); 0 = they may not
} tl_apply_desc;

// Make the graph of a plan.
//
//   applied   overwritten; release with tl_free_precision_graph
//
// A tensor is converted once for each other format that its readers want, right before the first node that
// wants it. A result (keep) that is not f32 is converted after all nodes, and the conversion is the result.
// Running statistics (TL_STATE_STATISTIC) stay f32, because their readers change them.
// The nodes of the old graph keep their names, order, views, needs (of the converted inputs), batch, layer,
// unit and scratch, and may run in place as before. What changes:
//
//   outputs   elements in the format of the scheme; f32 as before
//   saved     converted in the same way, as if it held f32 elements
//   weights   32, 16, 8 or 4 bits each by the scheme; of param= scales of channels and factors of groups are
//             not counted, nor the master weights that a training may keep in f32
//   stored    the first constant in f32 as weights, those behind it as biases: i32 in integer schemes. Each
//             scale of weights is a constant, too: a multiplier and a shift, i32 each, of dynamic an f32. i8
//             and i16 have one, the others as many as the node has biases. w4a8 has factors behind these, i8,
//             one for each 32 weights of a channel, and each channel of weights begins at a whole byte
//   costs     divided by the speed-up and rounded; in training so that the sum fwd + bwd is rounded once
//
// A conversion has op "convert" and is named conv1_i8, or split.2_i8 for a node with several outputs. If the
// name is taken or too long, the number of the new node is appended: conv1_i8_17. Layer, unit and fixed are
// those of the tensor's producer; it needs nothing. It has a gradient if the producer has one and the
// gradient can reach the conversion: through a reader with a gradient, or because it converts a result that
// no node reads. It costs elements x (bytes from + bytes to) / bytes_per_second of the device, rounded up to
// ns; between f32 and f16 or bf16 the f32 bytes / codec_bytes_per_second, if known; backward the same.
//
// Errors:  TL_ERROR_INVALID_ARG: a plan of another graph, an unknown scheme, a graph input that is not f32
//          where any_input is 0, a speed-up that is not > 0, an invalid quantisation, a scheme with a scale
//          for each channel of a node whose constants have no biases, w4a8 of a node whose biases do not
//          divide its weights or with more than 8192 in a channel; TL_ERROR_OVERFLOW: a cost, or more bytes
//          than 64 bits hold; TL_ERROR_NO_MEMORY; those of tl_check_graph and tl_check_device. *applied is all
//          zero then.
// Cost:    O(nodes + inputs), and O(n log n) for n names.
// Threads: safe with one env per thread.
TLDEF tl_result tl_apply_precision(tl_env *env, const tl_apply_desc *desc, tl_precision_graph *applied);
TLDEF void      tl_free_precision_graph(tl_env *env, tl_precision_graph *applied);  // accepts zeroed ones

#ifndef TL_NO_TEXT
// Write what a node's kernel is called, one name a scheme, for tl_code_desc.kernels: its op and its scheme,
// "conv2d_i8_channel"; of a conversion both formats, "convert_f32_i8"; of an input or a state its op.
TLDEF size_t tl_print_kernel(const tl_precision_graph *applied, int32_t node, char *buf, size_t size);
#endif

// -- several limits --
//
// RAM, flash, loss and cost of an inference in one choice: any of them are limited, one is minimised.
//
//     48 KiB of RAM, 120 KiB of flash --tl_fit_precision--> schemes of least loss --tl_apply_precision--> graph
//
// The RAM is that of the arena which the graph of the choice takes when it is planned and placed, conversions
// and line buffers included, in place where nodes may: not a sum over tensors, of which most do not live at the
// same time.

// id, name, what a choice takes
#define TL_MEASURES(X) \
    X(TL_MEASURE_RAM,   "ram",   "bytes of the placed arena of a forward that keeps what is still read") \
    X(TL_MEASURE_FLASH, "flash", "bytes of weights and constants")                                       \
    X(TL_MEASURE_LOSS,  "loss",  "the losses of all nodes, added up")                                    \
    X(TL_MEASURE_COST,  "cost",  "of all calls and conversions")

typedef enum tl_measure { TL_MEASURES(TLI_ENUM) TL_MEASURE_COUNT } tl_measure;

typedef struct tl_fit_desc {
    // Graph, device, profiles, losses, costs and which schemes are allowed; loss_limit: 0 = lossless, infinity
    // = no limit. Of the rest all is 0: criterion, objective, least_speedup, training, priorities, evaluate
    tl_precision_desc precision;
    tl_measure minimized;          // 0 = ram; its own limit holds as well
    uint64_t   ram_bytes;          // most bytes of the arena; 0 = no limit
    uint64_t   flash_bytes;        // 0 = no limit
    uint64_t   cost_limit;         // in the unit of the costs; 0 = no limit
    uint64_t   alignment_bytes;    // of places in the arena, a power of two; 0 = 1
    int32_t    may_cut_rows;       // 1 = nodes with rows become regions with line buffers (tl_plan_rows)
    uint64_t   call_cost, rows_work_limit;  // of these, as tl_rows_desc.call_cost and work_limit
    const uint8_t *in_slots;       // [node_count] of these, as tl_rows_desc.in_slots
    int32_t    arena_limit;        // arenas that are placed at most; 0 = 4000
    int      (*progress)(int32_t arena_count, int32_t arena_limit, void *user);  // 1 = stop with the best one
    void      *user;               // passed to progress
} tl_fit_desc;

typedef struct tl_precision_fit {
    tl_precision_plan plan;        // the choice; without runners-up
    tl_measure minimized;
    uint64_t ram_bytes, flash_bytes, cost;   // that it takes
    double   loss;
    uint64_t bound;                // no choice within the limits takes less of what is minimised; of the loss 0
    double   bound_loss;           // of the loss, where that is minimised
    int32_t  proven;               // 1 = the bound is met; by the loss, to one part in 10^9
    double   gap_ratio;            // (value - bound) / bound; 0 = proven; the value itself where the bound is 0
    int32_t  arena_count;          // arenas that were placed in search of it
} tl_precision_fit;

// Choose a scheme for every node within limits of RAM, flash, loss and cost.
//
//   desc   its progress function is called after each arena that was placed
//   fit    overwritten; release with tl_free_precision_fit. Its plan goes to tl_apply_precision, with any_input
//          = 1 where input_schemes are given
//
// Limits of RAM leave out the schemes and conversions in whose calls more would live; for what is left the sums
// are minimised exactly, as by tl_plan_precision, which gives candidates and the bound. Candidates are improved
// by changes of one node, of runs of nodes and of two nodes, of each of which the arena is placed; at last all
// choices that are left are searched, which ends in small graphs. Line buffers are planned for each choice; of
// what they may hold the bound knows the narrowest formats alone.
//
// Errors:  those of tl_plan_precision; TL_ERROR_INFEASIBLE: no choice was found within all limits; the text
//          names the least of each within the others, tl_find_least_budget that of RAM; TL_ERROR_INVALID_ARG,
//          TL_ERROR_NO_MEMORY, and those of tl_plan_rows. *fit is all zero then.
// Cost:    arena_limit plans of the graph, and 4 million steps; a refusal five times that.
// Threads: safe with one env per thread.
TLDEF tl_result tl_fit_precision(tl_env *env, const tl_fit_desc *desc, tl_precision_fit *fit);
TLDEF void      tl_free_precision_fit(tl_env *env, tl_precision_fit *fit);  // accepts zeroed ones

// Name a measure.
TLDEF const char *tl_name_measure(tl_measure measure);  // "flash"; "?" out of range
#ifndef TL_NO_TEXT
// Parse exactly what tl_name_measure returns: 1 and the value, or 0.
TLDEF int tl_parse_measure(const char *text, tl_measure *measure);
#endif

// -- names and text --

// Name a criterion, or an objective.
TLDEF const char *tl_name_criterion(tl_criterion criterion);         // "balanced"; "?" out of range
TLDEF const char *tl_name_objective(tl_precision_objective objective);  // "bytes"
#ifndef TL_NO_TEXT
// Parse exactly what tl_name_objective returns: 1 and the value, or 0.
TLDEF int tl_parse_objective(const char *text, tl_precision_objective *objective);

// Write a table of profiles as text, one line per row, in the form that examples/tl_plan.c reads back exactly
// (--profiles): comments that explain it, "machine NAME .." before the rows that were measured on it, with the
// rates of a device of that name, and "profile OP ..". Spaces in names become "-".
//
//   device   NULL = no rates: flops_per_second in f32, bytes_per_second and codec_bytes_per_second are written
TLDEF size_t tl_print_profiles(const tl_precision_profile *profiles, int32_t profile_count,
                               const tl_device *device, char *buf, size_t size);

// Write where the times come from: "speeds: measured on NAME of 20, assumed of 3; conversions: ..".
TLDEF size_t tl_explain_speeds(const tl_speeds *speeds, char *buf, size_t size);

// Write a plan as a table for people, one line per node: scheme, loss, speed-up and where it comes from,
// runner-up and its additional cost, conversions; then the sums. Numbers are rounded to four digits.
TLDEF size_t tl_print_precision_plan(const tl_graph *graph, const tl_precision_plan *plan, char *buf,
                                     size_t size);

// Write a plan as JSON: one object with every field of the plan and, in "nodes", every field of its nodes with
// the names of node and op. Numbers are exact; unknown numbers are null.
TLDEF size_t tl_print_precision_json(const tl_graph *graph, const tl_precision_plan *plan, char *buf,
                                     size_t size);

// Write a sentence about one node: its scheme, where loss and speed-up come from, the runner-up and its price,
// and how often its outputs are converted.
TLDEF size_t tl_explain_precision_node(const tl_graph *graph, const tl_precision_plan *plan, int32_t node,
                                       char *buf, size_t size);
#endif
#endif

#else
// A run's desc holds a pointer to one, which must be 0.
typedef struct tl_loss_scaler tl_loss_scaler;
#endif  // TL_NO_PRECISION

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

