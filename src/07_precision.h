#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [7] PRECISION -- observers, quantisation parameters, an exact choice of schemes
//
//     data --observers--> ranges --> scale, zero point, noise          (how to store a tensor)
//     graph + profiles + limit --tl_plan_precision--> a scheme a node  (where to)
//     plan --tl_apply_precision--> graph with conversions, formats     (what runs, what [6] plans on)
//
//          f32          i8    i8          A tensor is converted once for each format that its
//     x --[conv]--+--c--[a]--[b]--+       readers want (c), however many there are. So the
//                 |               |       price of a scheme depends on the neighbours', and
//                 +-------[add]---c       the choice is made for the whole graph at once.
//                          f32
//
// A scheme says how a node computes and in which format it hands its tensors on. Losses are
// noise powers, or anything else that adds up; percents of accuracy do not. The choice
// minimises time or bytes under a limit of the summed loss, or the other way round; it says how far
// from the optimum it can be at most, what a node's second best scheme would have cost, and all
// the points between which there is a choice (the Pareto front). Limits of the caller are never
// exceeded: where nothing fits, the nearest that does is named.
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

// id, name, format of its tensors, bytes of a weight, rule
#define TL_SCHEMES(X) \
    X(TL_SCHEME_F32,        "f32",        TL_FORMAT_F32,  4, "as it is")                                     \
    X(TL_SCHEME_F16,        "f16",        TL_FORMAT_F16,  2, "stored in 16 bits, sums in f32")               \
    X(TL_SCHEME_BF16,       "bf16",       TL_FORMAT_BF16, 2, "stored in 16 bits, sums in f32")               \
    X(TL_SCHEME_I16,        "i16",        TL_FORMAT_I16,  2, "tensors and weights in 16 bits, a scale each") \
    X(TL_SCHEME_I8,         "i8",         TL_FORMAT_I8,   1, "tensors and weights in 8 bits, a scale each")  \
    X(TL_SCHEME_I8_CHANNEL, "i8-channel", TL_FORMAT_I8,   1, "as i8, weights with a scale a channel")        \
    X(TL_SCHEME_W8A16,      "w8a16",      TL_FORMAT_I16,  1, "tensors in 16 bits, weights as i8-channel's")   \
    X(TL_SCHEME_DYNAMIC,    "dynamic",    TL_FORMAT_F32,  1, "weights in 8 bits, inputs quantised anew")      \
    X(TL_SCHEME_FAKE,       "fake",       TL_FORMAT_F32,  4, "quantised to 8 bits and back: i8's loss, no gain")

typedef enum tl_format { TL_FORMATS(TLI_ENUM4) TL_FORMAT_COUNT } tl_format;

#ifndef TL_NO_PRECISION
typedef enum tl_scheme { TL_SCHEMES(TLI_ENUM5) TL_SCHEME_COUNT } tl_scheme;

// Bytes of a tensor that takes f32_bytes in f32: an element is 4 of them, a tail counts as one. f32 itself,
// and what is no format, leaves the bytes as they are. Scales are not counted.
TLDEF uint64_t tl_find_format_bytes(tl_format format, uint64_t f32_bytes);

#ifndef TL_NO_PLANNERS
// The same of the weights of a node.
TLDEF uint64_t tl_find_weight_bytes(tl_scheme scheme, uint64_t f32_bytes);

// What a node in this scheme hands its tensors on in; TL_FORMAT_COUNT for what is no scheme.
TLDEF tl_format tl_find_scheme_format(tl_scheme scheme);

TLDEF const char *tl_name_format(tl_format format);     // "bf16"; "?" out of range
TLDEF const char *tl_name_scheme(tl_scheme scheme);     // "w8a16"
TLDEF const char *tl_explain_scheme(tl_scheme scheme);  // "tensors in 16 bits, weights ..."
#ifndef TL_NO_TEXT
TLDEF int tl_parse_format(const char *text, tl_format *format);  // 1 and the value; 0 and f32: none of them
TLDEF int tl_parse_scheme(const char *text, tl_scheme *scheme);
#endif
#endif

// -- quantisation: an integer for a number --
//
//     q = clamp(round(x / scale) + zero_point, low, high)        x' = (q - zero_point) scale
//
// Zero is exact under every rule: 0 -> zero_point -> 0. Tools differ in what a symmetric scale divides
// by, 127.5 or 127, and that is the commonest reason why two of them disagree; so each rule has a name.
//
// References: Jacob et al., 2018, sections 2.1 and 2.2. ONNX, QuantizeLinear-21,
// DynamicQuantizeLinear-11. PyTorch 2, torch.ao.quantization.observer. TensorFlow Lite 8-bit
// quantization specification.

// id, name, scale from the least and the largest value, both drawn to 0; a = the larger magnitude
#define TL_RANGE_RULES(X) \
    X(TL_RANGE_AFFINE, "affine", "(most - least) / (high - low); the zero point puts least on low")       \
    X(TL_RANGE_HALF,   "half",   "a / ((high - low) / 2), zero point 0: 127.5 steps for 8 bits, as PyTorch") \
    X(TL_RANGE_NARROW, "narrow", "a / high on -high .. high, zero point 0: as TensorFlow Lite's weights") \
    X(TL_RANGE_WIDE,   "wide",   "a / high on low .. high, zero point 0: as TensorRT")

// id, name, where a number is half way between two integers
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

// Find scale and zero point for a range of values.
//
//   rule           0 = affine
//   least, most    finite, least <= most; a range that lies on one side of 0 is drawn to it
//   low, high      of the integers: -32768 <= low < high <= 65535, of at most 16 bits. narrow takes -high
//                  .. high of them (low <= -high), wide wants 0 among them; half has the zero point
//                  (low + high + 1) / 2 where low >= 0, as PyTorch for unsigned integers
//   quantization   overwritten; rounds to even
//
// All in f32, one rounding an operation. Scales of affine and half are at least 2^-23, as PyTorch's;
// those of narrow and wide at least 2^-126, but 2^-23 where all is zero.
//
// Errors:  TL_ERROR_INVALID_ARG; TL_ERROR_OVERFLOW: most - least does not fit f32. *quantization is all
//          zero then.
TLDEF tl_result tl_find_quantization(tl_env *env, tl_range_rule rule, float least, float most,
                                     int32_t low, int32_t high, tl_quantization *quantization);

// Hold every rule of one: scale finite and > 0, bounds in order, zero point between them.
TLDEF tl_result tl_check_quantization(tl_env *env, const tl_quantization *quantization);

// Quantise numbers, and back.
//
//   quantizations   [channel_count] element i belongs to channel (i / inner_count) % channel_count;
//                   1 and 1 = one for all
//   format          i8, bounds within -128 .. 127 or 0 .. 255; i16, within -32768 .. 32767 or 0 .. 65535
//   from, to        [count] one is f32, the other int8_t or int16_t in the machine's byte order, unsigned
//                   where low >= 0. They do not overlap; NULL with count 0
//
// What is not a number becomes the zero point, infinities become the bounds. Back again, what is too
// large for f32 becomes its largest number, so the result is always finite.
//
// Errors:  TL_ERROR_INVALID_ARG: a quantisation, or one that the format does not hold; nothing is
//          written then.
// Cost:    O(count + channel_count).
TLDEF tl_result tl_quantize(tl_env *env, const tl_quantization *quantizations, int32_t channel_count,
                            uint64_t inner_count, tl_format format, const float *from, void *to,
                            uint64_t count);
TLDEF tl_result tl_dequantize(tl_env *env, const tl_quantization *quantizations, int32_t channel_count,
                              uint64_t inner_count, tl_format format, const void *from, float *to,
                              uint64_t count);

// ONNX DynamicQuantizeLinear: affine on 0 .. 255 over the range of the data, whatever small; data of zeroes
// alone has the scale 2^-23.
//
// Errors:  TL_ERROR_INVALID_ARG: no data, or a value that is not finite; TL_ERROR_OVERFLOW as above.
//          Nothing is written to `to` then, *quantization is all zero.
TLDEF tl_result tl_quantize_dynamic(tl_env *env, const float *from, uint8_t *to, uint64_t count,
                                    tl_quantization *quantization);

// A positive real number as integers: real = multiplier 2^(exponent - 31).
typedef struct tl_multiplier {
    int32_t multiplier;  // 2^30 .. 2^31 - 1
    int32_t exponent;    // > 0 = the number is 1 or more
} tl_multiplier;

// Find the multiplier that takes sums of products in scales a and b to scale c: a b / c, rounded once, half
// away from zero.
//
// Errors:  TL_ERROR_INVALID_ARG: a scale that is not finite and > 0; *multiplier is all zero then.
TLDEF tl_result tl_find_multiplier(tl_env *env, float a, float b, float c, tl_multiplier *multiplier);

// A sum of products -> integer of the target: shifted left where the exponent is > 0 (and held within 32
// bits), the rounding doubling high product, a rounding shift right, the zero point, clamped. Two
// roundings: within 1 of sum x real rounded once. Integers alone: the same on every machine.
// Source:  Jacob et al., 2018, section 2.2; MultiplyByQuantizedMultiplier of TensorFlow Lite.
TLDEF int32_t tl_requantize(int32_t sum, tl_multiplier multiplier, const tl_quantization *to);

#ifndef TL_NO_PLANNERS
TLDEF const char *tl_name_range_rule(tl_range_rule rule);  // "narrow"; "?" out of range
TLDEF const char *tl_name_rounding(tl_rounding rounding);  // "even"
#ifndef TL_NO_TEXT
TLDEF int tl_parse_range_rule(const char *text, tl_range_rule *rule);
TLDEF int tl_parse_rounding(const char *text, tl_rounding *rounding);
#endif
#endif

// -- guards for 16-bit floats --

// The scale of the loss that keeps small gradients above 2^-24: doubled after so many clean steps,
// halved at an overflow, and that step is not taken. Zero is the default everywhere, and so is what is
// negative or not finite.
//
// Source:  Micikevicius et al., 2018, section 3.2; the numbers are those of torch.amp.GradScaler.
typedef struct tl_loss_scaler {
    float    scale;            // 0 = 65536, from the first tl_next_loss_scale on; within least .. most
    float    least, most;      // 0 = 1, 2^24; most is at least `least`
    uint32_t growth_interval;  // clean steps after which it doubles; 0 = 2000
    uint32_t clean_count;      // steps since the last change
    uint64_t skipped_count;    // steps that were not to be taken
} tl_loss_scaler;

// A copy with the defaults filled in; NULL = all of them. counts stay.
TLDEF tl_loss_scaler tl_default_loss_scaler(const tl_loss_scaler *scaler);

// Tell what became of a step: 1 = take it (the gradients are the true ones x the scale it had), 0 = skip it.
TLDEF int tl_next_loss_scale(tl_loss_scaler *scaler, int overflowed);

TLDEF int tl_has_overflow(const float *data, uint64_t count);  // 1 = an infinity or NaN is among them

#ifndef TL_NO_PLANNERS
// -- observers: ranges and noise of tensors, measured --
//
//     batches --tl_observe_data--> counts --tl_measure_observer--> range --tl_find_quantization--> scale
//
//     |         # #                      A histogram has bins of equal width, a power of two: a larger
//     |       # # # #                    value joins the bins in pairs until it has room. So the counts
//     |     # # # # # #           #      do not depend on the order of the data, and two observers
//     +--|-------------|----------|->    merged have, bit for bit, what one of all the data has.
//      least   range  most     outlier
//
// An observer takes a fixed amount of memory for a channel, whatever it sees. A wide range loses by
// rounding, a narrow one by clipping: min-max clips nothing, the last three kinds weigh the two.
//
// References: Migacz, 8-bit Inference with TensorRT, GTC 2017 (entropy; P with the tail, Q without). Here
// whole bins make a level, zeros, which are exact, take no part, and the threshold is the upper edge of
// the last bin; tools differ in all of these, so their thresholds do. Banner et al., Post training
// 4-bit quantization of convolutional networks, 2019, arXiv:1810.05723 (the optimal clip in closed form).

// id, name, range
#define TL_OBSERVERS(X) \
    X(TL_OBSERVER_MIN_MAX,        "min-max",        "least and largest value")                             \
    X(TL_OBSERVER_MOVING_AVERAGE, "moving-average", "of the least and the largest of each batch")          \
    X(TL_OBSERVER_PERCENTILE,     "percentile",     "a share of all magnitudes lies within, nearest rank") \
    X(TL_OBSERVER_MSE,            "mse",            "with the least squared error")                        \
    X(TL_OBSERVER_ENTROPY,        "entropy",        "that loses the least information (Kullback-Leibler)")

typedef enum tl_observer_kind { TL_OBSERVERS(TLI_ENUM) TL_OBSERVER_COUNT } tl_observer_kind;

typedef struct tl_observer_desc {
    tl_observer_kind kind;     // 0 = min-max
    int32_t  channel_count;    // ranges to find; 0 = 1
    uint64_t inner_count;      // elements of one channel side by side; 0 = 1
    double   rate;             // moving-average: of a new batch; 0 = 0.01; (0, 1]
    double   percentile_ratio; // percentile: 0 = 0.999; (0, 1]
    int32_t  high;             // mse, entropy: largest integer of the quantisation; 0 = 127; 1 .. 32767
    tl_range_rule rule;        // mse: of the quantisation; 0 = affine, on -high-1 .. high
    int32_t  bin_count;        // of each sign, a power of two, 128 .. 8192; 0 = 2048 for the last three
                               // kinds; 0 = no histogram for the first two. A bin takes 16 bytes
} tl_observer_desc;

typedef struct tl_observer tl_observer;

// What an observer found out about a channel. All 0 where nothing was observed.
typedef struct tl_observation {
    float    least, most;              // of all values
    float    range_least, range_most;  // what the kind makes of them: for tl_find_quantization
    uint64_t count, zero_count;        // zeros: of data; tl_observe_extremes tells none
    double   square_sum;               // signal power x count, exact but for its last bit; of data
    double   clipped_ratio;            // of the values lie outside the range, to a bin; 0 without histogram
} tl_observation;

// Error of a quantisation on data.
typedef struct tl_noise {
    double   error_sum;      // of squares; where weights are given, of squares x weight
    double   signal_sum;     // the same of the values
    double   mse;            // error_sum / count
    double   sqnr_db;        // 10 log10(signal / error); 0 without error (is_exact) or without signal
    double   clipped_ratio;  // of the values would round to an integer beyond the bounds
    uint64_t count;
    int32_t  is_exact;       // 1 = no error at all (that has a weight)
} tl_noise;

// Make an observer, release it, and make it forget all that it saw.
//
//   env        must outlive the observer: the functions below put their sentences there
//   observer   NULL after an error
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY.
// Cost:    two allocations: about 350 bytes a channel and, with a histogram, 16 a bin: 32 KiB.
// Threads: one observer is used by one thread at a time, one env by one thread. Give each thread its own
//          and merge.
TLDEF tl_result tl_init_observer(tl_env *env, const tl_observer_desc *desc, tl_observer **observer);
TLDEF void      tl_free_observer(tl_observer *observer);   // accepts NULL
TLDEF tl_result tl_reset_observer(tl_observer *observer);

// Take one batch. Element i belongs to channel (i / inner_count) % channel_count.
//
// Errors:  TL_ERROR_INVALID_ARG: a value that is not finite; TL_ERROR_OVERFLOW: more than 2^48 values
//          in a channel. Nothing of the batch is taken then.
// Cost:    O(count + channel_count).
TLDEF tl_result tl_observe_data(tl_observer *observer, const float *data, uint64_t count);

// Take one batch of which a device has found the extremes (tl_vk_read_extremes). min-max and moving-average
// alone, without a histogram.
//
// Errors:  TL_ERROR_INVALID_ARG: numbers that are not finite or not in order, no such channel, count 0;
//          TL_ERROR_UNSUPPORTED: another kind; TL_ERROR_OVERFLOW as above. Nothing is taken then.
TLDEF tl_result tl_observe_extremes(tl_observer *observer, int32_t channel, float least, float most,
                                    uint64_t count);

// Add what another observer of the same desc saw. The result is that of one observer of all the data,
// but for moving averages: these depend on the order, and become the mean weighted by batches.
//
// Errors:  TL_ERROR_INVALID_ARG: another desc; TL_ERROR_OVERFLOW as above. Nothing is taken then.
TLDEF tl_result tl_merge_observer(tl_observer *observer, const tl_observer *other);

// Tell what was found out about a channel.
//
// percentile: the upper edge of the bin that the rank falls into, zeros counted. mse: of ranges in steps of
// 1/200 of all that was seen, at edges of bins, values taken as spread evenly over their bins; under affine
// both ends first by the same share, then each end alone. entropy: of all edges of bins from the
// (high + 1)-th on; it wants many values, a few lie in bins of their own and any threshold keeps that. Of
// equals the widest range is taken, and none exceeds what was seen. Integers choose: the same range on every
// machine.
//
// Errors:  TL_ERROR_INVALID_ARG: no such channel. *observation is all zero then.
// Cost:    O(bins) for percentile, O(200 bins) for mse (affine: 600), O(bins^2) for entropy.
TLDEF tl_result tl_measure_observer(const tl_observer *observer, int32_t channel,
                                    tl_observation *observation);

// The quantisation for the range of a channel.
//
// Errors:  those of the two calls it stands for; TL_ERROR_NOT_FOUND: the channel has seen nothing.
TLDEF tl_result tl_find_observed_quantization(const tl_observer *observer, int32_t channel,
                                              tl_range_rule rule, int32_t low, int32_t high,
                                              tl_quantization *quantization);

// Estimate the noise of a quantisation on what a channel saw: exact but for the place of values in their
// bins, over which they are taken as spread evenly. signal_sum is exact. Any observer with a histogram.
//
// Errors:  TL_ERROR_INVALID_ARG; TL_ERROR_UNSUPPORTED: no histogram; TL_ERROR_NOT_FOUND: the channel has
//          seen nothing. *noise is all zero then.
// Cost:    O(bins).
TLDEF tl_result tl_estimate_noise(const tl_observer *observer, int32_t channel,
                                  const tl_quantization *quantization, tl_noise *noise);

// 1 = f16 holds what was observed in every channel: magnitudes x margin stay within 65504, and at most
// lost_ratio of the values that are not 0 are smaller than its least number, 2^-24. 0 where nothing was
// observed. Small values are those of data; tl_observe_extremes tells none.
//
//   margin       >= 1; 0 = 1. Anything else is not safe
//   lost_ratio   0 .. 1
TLDEF int tl_is_f16_safe(const tl_observer *observer, double margin, double lost_ratio);

// The range of data in memory, exactly: percentile by rank, mse with the true error of 200 clips (in f32:
// largest x (k / 200)). The rest as an observer of one channel and one batch finds it.
//
//   desc   channel_count and inner_count must be 0 or 1
//
// Errors:  TL_ERROR_INVALID_ARG: no data, or a value that is not finite; TL_ERROR_NO_MEMORY (entropy).
//          Both are 0 then.
// Cost:    O(count); mse O(200 count), affine 600.
TLDEF tl_result tl_measure_range(tl_env *env, const tl_observer_desc *desc, const float *data,
                                 uint64_t count, float *least, float *most);

// The noise of a quantisation, or of a format (f32, f16, bf16; what is too large for it becomes its largest
// number and counts as clipped), on data in memory. Sums in f64, in the order of the data.
//
//   weights   [count] >= 0, finite, not all 0: multiply squared errors (squared gradients: the expected
//             change of the loss, to second order); 0 = all 1
//
// Errors:  TL_ERROR_INVALID_ARG: no data, a value or weight that is not finite. *noise is all zero then.
// Cost:    O(count).
TLDEF tl_result tl_measure_noise(tl_env *env, const tl_quantization *quantization, const float *data,
                                 const float *weights, uint64_t count, tl_noise *noise);
TLDEF tl_result tl_measure_format_noise(tl_env *env, tl_format format, const float *data,
                                        const float *weights, uint64_t count, tl_noise *noise);

TLDEF const char *tl_name_observer(tl_observer_kind kind);  // "entropy"; "?" out of range
#ifndef TL_NO_TEXT
TLDEF int tl_parse_observer(const char *text, tl_observer_kind *kind);
#endif

// -- choice: one of a few schemes for each node, exactly --
//
//   minimise   sum cost[v][x_v] + conversions     subject to   sum loss[v][x_v] <= loss_limit
//
// or the other way round. A net is what a node hands on: its readers want it in the formats of their
// schemes, and each format that the producer's scheme does not give is paid for once, however many
// readers want it. One net an edge prices edges one by one. Costs and losses are whole numbers of any unit.
//
//     cost |   A             A, B, C   corners of the hull: one pair of weights each, found first
//          |    ` .  x       - - -     the line between two of them is the Lagrangian bound
//          |       B         x, o      choices; o is the best within the limit, found by lists
//          |        `o. - C
//          +----------|----- loss      the gap is o - bound; 0 where the lists end
//                   limit
//
// Exact: a tree decomposition of the nets (chains and trees are its simplest case), and over it, from the
// leaves to the root, the list of all (loss, cost) that may be part of the best choice: what another
// dominates, what must break the limit, and what by the Lagrangian bound cannot beat the best known
// choice is left out. Lists are cut to their best few at first; then they hold all that costs little more
// than the bound, and ever more, until the best is among it. Graphs too wide for that get their bound from
// chains that share the nodes, and choices by fixing a part of the nodes and finding the best of the others
// exactly, again and again; then branch and bound: schemes that no better choice can have are left out, the
// rest is divided until it is narrow enough for lists.
//
// References: Handler, Zang, A dual algorithm for the constrained shortest path problem, 1980. Dechter,
// Bucket Elimination, 1999. Kolmogorov, Convergent Tree-Reweighted Message Passing for Energy
// Minimization, 2006. Land, Doig, An Automatic Method of Solving Discrete Programming Problems, 1960.
// Nemhauser, Ullmann, Discrete dynamic programming and capital allocation, 1969.

#define TL_FORBIDDEN UINT64_MAX  // as a cost: this scheme, this conversion is not possible

typedef struct tl_choice_net {
    int32_t         producer;     // node
    const int32_t  *readers;      // [reader_count] nodes, in any order; one that comes twice counts once
    int32_t         reader_count; // 0 = nobody reads it: no price
    const uint64_t *costs;        // [format_count x format_count] row: from, column: to, or TL_FORBIDDEN;
                                  // the diagonal is not read: 0
} tl_choice_net;

typedef struct tl_choice_progress {
    uint64_t work, work_limit;    // elementary steps so far; those after which it ends
    uint64_t value, bound;        // best so far, UINT64_MAX = none yet, and what no choice undercuts; of a
                                  // front those of the point under way
} tl_choice_progress;

typedef struct tl_choice_desc {
    int32_t  node_count;          // 1 .. 2^24
    int32_t  scheme_count;        // 1 .. 16
    int32_t  format_count;        // with formats 1 .. 8; without 0 or scheme_count
    const int32_t *formats;       // [scheme_count] of each scheme; 0 = each its own
    const uint64_t *costs;        // [node_count x scheme_count] or TL_FORBIDDEN
    const uint64_t *losses;       // [node_count x scheme_count]; where the cost is forbidden not read
    const tl_choice_net *nets;    // [net_count] any number a node, in any order, cycles too
    int32_t  net_count;
    int32_t  least_loss;          // 0 = least cost within loss_limit; 1 = least loss within cost_limit
    uint64_t loss_limit;          // 0 = none at all; TL_UNLIMITED
    uint64_t cost_limit;          // of least_loss; conversions are part of it; TL_UNLIMITED
    uint64_t work_limit;          // elementary steps of 2 to 8 ns; 0 = 200 million
    int    (*progress)(const tl_choice_progress *progress, void *user);  // 1 = stop with the best so far
    void    *user;                // given to progress
} tl_choice_desc;

// id, name, how the answer was found
#define TL_CHOICE_METHODS(X) \
    X(TL_CHOICE_ELIMINATION, "elimination", "lists over a tree decomposition; exact where they end")     \
    X(TL_CHOICE_BOUND,       "bound",       "the bound over a tree decomposition met the value: exact")  \
    X(TL_CHOICE_SEARCH,      "search",      "too wide: bound from chains, branch and bound over them")

typedef enum tl_choice_method { TL_CHOICE_METHODS(TLI_ENUM) TL_CHOICE_METHOD_COUNT } tl_choice_method;

typedef struct tl_choice_plan {
    const uint8_t *schemes;       // [node_count]
    uint64_t cost, conversion_cost, loss;  // cost includes conversions
    int32_t  conversion_count;    // a net and a format that it is converted to
    uint64_t bound;               // of what is minimised: no choice within the limit has less
    int32_t  proven;              // 1 = it is the least
    double   gap_ratio;           // (value - bound) / bound; 0 = proven, 0.01 = at most 1 % above; where the
                                  // bound is 0 the value
    tl_choice_method method;
    uint64_t nearest_limit;       // of TL_ERROR_INFEASIBLE, else 0: the least limit that can be held, in a
                                  // graph too wide one at which a choice was found; TL_UNLIMITED = none
    uint64_t work;                // elementary steps done
    void    *memory;
} tl_choice_plan;

// Hold every rule of a desc: counts in range, arrays there, nodes and formats that exist, and the
// largest cost of each node and net, added up, below 2^60, losses as well.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW.
// Cost:    O(nodes x schemes + readers + nets x formats^2).
TLDEF tl_result tl_check_choice(tl_env *env, const tl_choice_desc *desc);

// Choose a scheme for each node.
//
//   desc   its progress is asked every million steps or so, once a first choice is known
//   plan   overwritten; release with tl_free_choice_plan
//
// The limit is always held, and the bound is always one: sums are rounded so that both are certain. A
// graph whose decomposition fits work_limit / 64 cells (4 million at most) is solved by lists: a chain of
// 1000 nodes, or 200 series-parallel ones, in 9 schemes, is proven in some hundredths of a second. A wider
// graph is proven where it has some tens of nodes, mostly where it has 200; else it gets a value and a
// bound, less than a thousandth apart in cost; in loss, which falls by decades from scheme to scheme, some
// hundredths. The same desc gives the same plan everywhere, unless progress stops it. Among choices of the
// same value it need not find the one of least loss.
//
// Errors:  those of tl_check_choice; TL_ERROR_INFEASIBLE names the node of which every scheme is
//          forbidden, or the limit and the nearest that can be held; plan has nearest_limit alone then.
//          In a graph too wide, with forbidden conversions or a limit of the cost, it says that none was
//          found, not that there is none. TL_ERROR_NO_MEMORY. On these *plan is all zero.
// Cost:    work_limit, beyond it only what a first choice takes. Memory: O(nodes x schemes + readers),
//          48 bytes a cell at most, and lists of at most 300 MiB.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_choice(tl_env *env, const tl_choice_desc *desc, tl_choice_plan *plan);
TLDEF void      tl_free_choice_plan(tl_env *env, tl_choice_plan *plan);  // accepts a zeroed plan and NULL

typedef struct tl_front_point {
    uint64_t loss, cost;          // the least cost known within this loss
    uint64_t bound_cost;          // nothing within this loss costs less
    const uint8_t *schemes;       // [node_count] one choice that has them
} tl_front_point;

typedef struct tl_choice_front {
    const tl_front_point *points; // [point_count] loss rises, cost falls
    int32_t  point_count;         // > 0
    int32_t  complete;            // 1 = all points there are, each proven; 0 = a selection
    void    *memory;
} tl_choice_front;

// Find all points between which there is a choice (the Pareto front).
//
//   desc         its limits and least_loss are not read
//   point_limit  0 = 256; where there are more points, or the work does not suffice, a selection of so
//                many at most, from the end of least loss to that of least cost
//   front        overwritten; release with tl_free_choice_front
//
// A selection has points equally far apart in cost, or corners of the hull, taken where the cost falls
// most. Its points are proven, unless the graph is too wide: each has a bound of its own then, which may be
// below its cost.
//
// Errors:  those of tl_plan_choice, of limits aside; TL_ERROR_INVALID_ARG: point_limit. *front is all zero
//          then.
// Cost:    an eighth of work_limit for the complete front, then a pass over the cells for each point; in a
//          graph too wide a sixteenth of work_limit for each point, until all is spent.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_choice_front(tl_env *env, const tl_choice_desc *desc, int32_t point_limit,
                                     tl_choice_front *front);
TLDEF void      tl_free_choice_front(tl_env *env, tl_choice_front *front);  // accepts a zeroed front and NULL

// Add a choice up: its cost, conversions and loss, whatever found it. Limits are not looked at.
//
//   schemes   [node_count] result->schemes points at it
//   result    overwritten; nothing of it is to be released, bound and proven are 0
//
// Errors:  those of tl_check_choice; TL_ERROR_INVALID_ARG: a scheme that there is not;
//          TL_ERROR_INVALID_PLAN: a forbidden scheme or conversion. *result is all zero then.
// Cost:    as tl_check_choice.
TLDEF tl_result tl_simulate_choice(tl_env *env, const tl_choice_desc *desc, const uint8_t *schemes,
                                   tl_choice_plan *result);
TLDEF const char *tl_name_choice_method(tl_choice_method method);  // "elimination"; "?" out of range

// -- profiles: what a scheme costs and loses, as data --

// Nodes of one op, and what each scheme does to them. Shapes and machines differ: rows may say for
// which they hold, and the caller's rows, measured ones above all, take the place of the library's.
typedef struct tl_precision_profile {
    const char *op;               // upper and lower case are the same; "*" = where no other row fits
    const char *device;           // tl_device.name; 0 = any
    uint64_t least_elements, most_elements;  // of output 0, f32 elements; most_elements 0 = no limit
    uint32_t schemes;             // bits 1 << tl_scheme; f32 is always possible, others where their bit is set
    double   loss[TL_SCHEME_COUNT];     // of one call: noise / signal power, or what the limit is in; >= 0
    double   speedup[TL_SCHEME_COUNT];  // time in f32 / time in the scheme; > 0
    tl_scheme recommended;        // breaks ties first
    int32_t  sensitive;           // 1 = tensors and weights of 16 bits and more alone, unless allow_sensitive
} tl_precision_profile;

// Tell the library's own rows, a const table: the ops that [3] makes, and "*". They are derived
// from word lengths, as the implementation says line by line, not measured on any machine:
// tl_measure_sensitivity and the caller's clock replace them.
TLDEF const tl_precision_profile *tl_find_default_profiles(int32_t *count);

// Find the row of a node: the first whose op, device and elements fit. Of an op "add+relu" that no
// row names, each part needs a row; the first sensitive one counts, else that of the first part.
// Then "*".
//
//   device   may be NULL: rows that name one do not fit then
//
// Returns NULL where there is none, and for graph inputs.
// Cost:    O(rows x length of the op).
TLDEF const tl_precision_profile *tl_find_profile(const tl_precision_profile *profiles, int32_t profile_count,
                                                  const tl_graph *graph, int32_t node, const tl_device *device);

// Hold every rule of a table: ops named, known schemes, losses finite and >= 0, speed-ups finite
// and > 0 of all schemes that are possible, 0 and 1 for f32 where it is listed, a recommended
// scheme that is possible, bounds in order, and no row that never fits because one above it always
// does.
//
// Errors:  TL_ERROR_INVALID_ARG names the row.
// Cost:    O(rows squared).
TLDEF tl_result tl_check_profiles(tl_env *env, const tl_precision_profile *profiles, int32_t profile_count);

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

typedef enum tl_criterion { TL_CRITERIA(TLI_ENUM) TL_CRITERION_COUNT } tl_criterion;
typedef enum tl_precision_objective {
    TL_PRECISION_OBJECTIVES(TLI_ENUM) TL_OBJECTIVE_COUNT
} tl_precision_objective;
typedef enum tl_loss_source { TL_LOSS_SOURCES(TLI_ENUM) TL_LOSS_SOURCE_COUNT } tl_loss_source;

typedef struct tl_precision_plan tl_precision_plan;

typedef struct tl_precision_desc {
    const tl_graph  *graph;            // not NULL; bytes and costs are those of f32
    const tl_device *device;           // 0 = conversions cost by their elements, see tl_plan_precision
    tl_criterion     criterion;        // 0 = performance
    double           loss_limit;       // performance, custom: >= 0; 0 = lossless, infinity = no limit
    double           least_speedup;    // accuracy, custom: base_cost / cost; 0 = 1
    tl_precision_objective objective;  // 0 = time
    int32_t          training;         // 1 = backward costs count, and only f32, f16, bf16 are offered
    uint32_t         schemes;          // bits 1 << tl_scheme that may be chosen; 0 = all but fake (training:
                                       // the three)
    const uint32_t  *node_schemes;     // [node_count] the same for each node; 0 (the array, or of a node) = no
                                       // further limit
    int32_t          allow_sensitive;  // 1 = sensitive ops may go below 16 bits
    int32_t          allow_unknown;    // 1 = ops that no row names may leave f32, by the "*" row
    int32_t          any_result;       // 1 = results (keep) may end in any format; 0 = converted back to f32
    const tl_precision_profile *profiles;  // [profile_count] 0 = tl_find_default_profiles
    int32_t          profile_count;
    const double    *losses;           // [node_count x TL_SCHEME_COUNT] instead of the profiles'; NaN = not
                                       // measured; of f32 not read: 0
    const uint64_t  *costs;            // [node_count x TL_SCHEME_COUNT] instead of fwd (+ bwd) / speed-up;
                                       // TL_FORBIDDEN = not measured; not read for bytes
    double           performance_weight, accuracy_weight;  // balanced: >= 0; both 0 = 0.5 each
    double           priorities[TL_SCHEME_COUNT];  // break ties, the larger first
    uint64_t         work_limit;       // of each choice; 0 = default
    // One run of the whole plan, after the choice: its loss, in the unit of the limit. No runner-up is
    // known then. Where it is over, the choice is made again, at most round_limit times in all.
    tl_result      (*evaluate)(const tl_precision_plan *plan, double *loss, void *user);
    void            *user;
    int32_t          round_limit;      // 0 = 8
    tl_loss_source   loss_source;      // of losses; 0 = measured
} tl_precision_desc;

typedef struct tl_precision_node {
    tl_scheme scheme;
    tl_format format;                  // of the tensors it hands on
    tl_loss_source source;             // of its loss
    double    loss, speedup;           // of the scheme; time of its calls in f32 / time
    double    confidence;              // 0 .. 1, see tl_plan_precision
    tl_scheme runner_up;               // the next best choice gives this node this one; TL_SCHEME_COUNT = none
    int32_t   runner_up_proven;        // 1 = with another scheme here, no choice is better than that
    uint64_t  runner_up_cost;          // of the whole graph then
    double    runner_up_loss;          // of the whole graph then
    int32_t   conversion_count;        // of its outputs, to other formats
    uint64_t  conversion_cost;
} tl_precision_node;

struct tl_precision_plan {
    const tl_precision_node *nodes;    // [node_count]
    int32_t  node_count;
    tl_criterion criterion;
    double   loss;                     // predicted: the sum of those of the nodes
    double   loss_limit;               // it was made for: cut, where evaluate asked for it; infinity = none
    double   measured_loss;            // by evaluate; NaN = none asked
    int32_t  round_count;              // choices made
    uint64_t cost, base_cost;          // of the objective, conversions included; everything in f32
    uint64_t conversion_cost;
    int32_t  conversion_count;
    uint64_t bound_cost;               // no choice within this loss limit (accuracy: this loss) costs less
    double   bound_loss;               // accuracy: no choice as fast loses less; else 0
    int32_t  proven;                   // 1 = the best there is: value and bound are equal
    double   gap_ratio, speedup;       // (value - bound) / bound, 0 = proven; base_cost / cost
    uint64_t bytes, base_bytes;        // of weights and tensors, with copies, whatever the objective; in f32
    int32_t  scheme_counts[TL_SCHEME_COUNT];  // nodes in each, graph inputs not counted
    void    *memory;                   // what tl_free_precision_plan releases
    tl_precision_objective objective;
};

TLDEF tl_precision_desc tl_default_precision(const tl_precision_desc *desc);  // NULL = all defaults
// Hold every rule of a desc, its graph, device and profiles too.
//
// Errors:  TL_ERROR_INVALID_ARG, and those of tl_check_graph and tl_check_device.
TLDEF tl_result tl_check_precision(tl_env *env, const tl_precision_desc *desc);

// Choose a scheme for every node.
//
//   plan   overwritten; release with tl_free_precision_plan
//
// Time: a node costs fwd, in training fwd + bwd, / speed-up, rounded up. A tensor of E elements
// that is wanted in another format is converted once for each: E (bytes of one format + bytes of
// the other) / bytes_per_second of the device, in ns, rounded up (between f32 and f16 or bf16: 4 E
// / codec_bytes_per_second, where that is known); without such a device E, as an elementwise call
// in FLOP. In training, the gradient of a node that has one takes the same way back: twice as much, also
// for a format that none but readers without a gradient want.
// Bytes: weights and tensors in their formats, and copies of tensors in others; graph inputs are
// f32 and count so.
//
// Losses add up over nodes. What makes the choice is integers: losses in units of loss_limit /
// 2^40, rounded up, so that a limit is never exceeded; without a limit in units of a power of two,
// that which takes the sum of the largest to 2^51 .. 2^52.
//
// Of choices that cost as much (for accuracy, lose as much) that of the least loss (cost) is taken,
// as far as 50 million steps go. Then one node at a time changes, as long as costs and conversions
// do not grow and limits hold: to the recommended scheme of its row, to larger priorities, to less
// loss. Balanced takes the front's point with the least sum of weight x (value - least) / (most -
// least), and of equal ones that of the most such preferences.
//
// The runner-up of a node is the best choice in which it has another scheme (balanced: within the
// plan's loss), by one more choice a node. In graphs of more than 256 nodes, and for those nodes
// that are left when these choices took 50 million steps, all others stay as they are, and it is
// not proven.
//
// Confidence is 1 for a measured loss, 3/4 from data, 1/2 from the table, times (1 + m) / 2: m is
// what the runner-up costs more (for accuracy loses more), over what the node costs in f32 (loses
// in that scheme), at most 1; 1 where the node has no other scheme.
//
// With evaluate, a plan whose measured loss is over loss_limit is made again for a limit cut by
// loss_limit / measured, by a sixteenth at least; the last try is the choice of the least loss. For
// accuracy and balanced, and where loss_limit is infinite, it runs once.
//
// Errors:  those of tl_check_precision; TL_ERROR_INFEASIBLE names the limit that cannot be held and
//          the nearest that can, the node that has no scheme, or the measured loss; TL_ERROR_KERNEL:
//          evaluate failed, or its loss is NaN; TL_ERROR_OVERFLOW: costs do not fit 60 bits;
//          TL_ERROR_NO_MEMORY. *plan is all zero then.
// Cost:    tl_plan_choice's, times rounds and runners-up.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_precision(tl_env *env, const tl_precision_desc *desc, tl_precision_plan *plan);
TLDEF void      tl_free_precision_plan(tl_env *env, tl_precision_plan *plan);  // accepts zeroed ones

typedef struct tl_precision_point {
    double   loss, speedup;            // sum; base_cost / cost
    uint64_t cost, bound_cost;         // nothing within this loss costs less than bound_cost
    uint64_t bytes;                    // as tl_precision_plan.bytes
    const uint8_t *schemes;            // [node_count] tl_scheme
} tl_precision_point;

typedef struct tl_precision_front {
    const tl_precision_point *points;  // [point_count] loss rises, cost falls
    int32_t  point_count;
    int32_t  complete;                 // 1 = all points there are, each proven; 0 = a selection
    int32_t  knee;                     // the point of balanced, with the weights of the desc
    uint64_t base_cost, base_bytes;    // everything in f32
    void    *memory;                   // what tl_free_precision_front releases
} tl_precision_front;

// Find all points between which there is a choice: what each loss buys. Criterion and limits are
// not read.
//
//   point_limit   0 = 256; 2 and more
//   front         overwritten; release with tl_free_precision_front
//
// Errors:  as tl_plan_precision, without evaluate.
// Cost:    tl_plan_choice_front's.
TLDEF tl_result tl_plan_precision_front(tl_env *env, const tl_precision_desc *desc, int32_t point_limit,
                                        tl_precision_front *front);
TLDEF void      tl_free_precision_front(tl_env *env, tl_precision_front *front);  // accepts zeroed ones

// -- sensitivity: what each op loses in each scheme, measured --

typedef struct tl_sensitivity_desc {
    const tl_graph *graph;             // not NULL
    uint32_t        schemes;           // bits to be evaluated; 0 = all but f32 and fake
    const uint32_t *node_schemes;      // [node_count] further limits; 0 (the array, or of a node) = none
    // Evaluate the network with one node in a scheme, all others in f32: how much worse it is.
    tl_result     (*evaluate)(int32_t node, tl_scheme scheme, double *loss, void *user);  // not NULL
    void           *user;
    int           (*progress)(int32_t done, int32_t all, void *user);  // after each; 1 = stop
} tl_sensitivity_desc;

// Measure them one by one, graph inputs left out.
//
//   losses   [node_count x TL_SCHEME_COUNT] overwritten: for tl_precision_desc.losses. NaN where not
//            evaluated, 0 for f32. Less than nothing counts as 0: chance is no credit for other nodes
//
// Errors:  those of tl_check_graph; TL_ERROR_INVALID_ARG; TL_ERROR_KERNEL: evaluate failed or did
//          not give a finite number. *losses is all NaN then (with a desc that is wrong, not
//          touched).
// Cost:    one evaluate for each node and scheme.
TLDEF tl_result tl_measure_sensitivity(tl_env *env, const tl_sensitivity_desc *desc, double *losses);

// -- apply --
//
//     a --> b (result)          a --> a_i8 --> b --> b_f32 (result)     b in i8: two conversions
//
// A graph in which the conversions of a plan are nodes, and bytes are those of the formats: [5] and [6]
// plan on it as on any other, and what they keep for backward is as small as the choice makes it.

typedef struct tl_precision_graph {
    tl_graph       graph;
    const int32_t *nodes;              // [graph.node_count] old node; of a conversion, that of its tensor
    const int32_t *new_nodes;          // [old node_count]
    const uint8_t *formats;            // [graph.tensor_count] tl_format
    const uint8_t *schemes;            // [graph.node_count] tl_scheme; of conversions that of f32
    const tl_quantization *quantizations;  // [graph.tensor_count] of i8 and i16 tensors; scale 0 = none known
    int32_t        conversion_count;
    void          *memory;             // what tl_free_precision_graph releases, and the graph
} tl_precision_graph;

typedef struct tl_apply_desc {
    const tl_graph          *graph;    // not NULL; that of the plan: bytes and costs are those of f32
    const tl_precision_plan *plan;     // not NULL; of each node, scheme and speedup are read
    const tl_device         *device;   // for the costs of conversions; 0 = one for each element
    const tl_quantization   *quantizations;  // [tensor_count of graph] of each tensor in i8; 0 = none known
    const tl_quantization   *wide_quantizations;  // [tensor_count of graph] the same in i16
    int32_t                  training;    // 1 = conversions have a backward; 0 = gradients end there
    int32_t                  any_result;  // 1 = results stay in the format of their node; 0 = end in f32
} tl_apply_desc;

// Make the graph of a plan.
//
//   applied   overwritten; release with tl_free_precision_graph
//
// A tensor that is wanted in a format other than its own is converted once, right before the first node
// that wants it; a result (keep) that is not f32 after all nodes, and the conversion is the result.
// The nodes of the old graph keep their names, order, views, needs (of the converted inputs), batch, layer,
// unit and scratch, and may run in place as before. What changes:
//
//   outputs   elements in the format of the scheme; f32 as before
//   saved     as if f32 elements, in that format, too: state for backward is as narrow as the tensors
//   weights   4, 2 or 1 bytes each by the scheme; scales of channels are not counted, master weights of
//             a training are the caller's
//   costs     divided by the speed-up and rounded; of a training, so that fwd + bwd is rounded as one
//
// A conversion has op "convert", and is called conv1_i8, of several outputs split.2_i8; where a name is taken
// or too long the number of the node follows: conv1_i8_17. Layer, unit and fixed are those of the node
// whose tensor it converts; it needs nothing. It has a gradient where that node has one and it leads on:
// to a reader with a gradient, or out of the graph, where nobody read the result. Its cost is
// elements x (bytes from + bytes to) / bytes_per_second of the device, rounded up to ns; between f32
// and f16 or bf16 the f32 bytes / codec_bytes_per_second, where that is known; the same backward.
//
// Errors:  TL_ERROR_INVALID_ARG: a plan of another graph, an unknown scheme, a graph input that is not f32, a
//          speed-up that is not > 0, a quantisation that does not fit; TL_ERROR_OVERFLOW: a cost, or
//          more bytes than 64 bits hold; TL_ERROR_NO_MEMORY; those of tl_check_graph and tl_check_device.
//          *applied is all zero then.
// Cost:    O(nodes + inputs), and O(n log n) for n names.
// Threads: safe with one env per thread.
TLDEF tl_result tl_apply_precision(tl_env *env, const tl_apply_desc *desc, tl_precision_graph *applied);
TLDEF void      tl_free_precision_graph(tl_env *env, tl_precision_graph *applied);  // accepts zeroed ones

#ifndef TL_NO_CODECS
// -- kept activations in fewer bits --
//
//     F 1  F 2  C 1  F 3  C 2 ...  X 2  B 3  D 2  X 1  B 2     tensor 1 waits in fewer bytes

typedef struct tl_packing_desc {
    const tl_graph  *graph;            // not NULL
    const tl_plan   *plan;             // of a training; 0 = tl_plan_keep_all
    const uint8_t   *tensors;          // [tensor_count] 1 = f32, and may be packed; 0 = all that could be f32
    tl_codec         codec;            // not none
    uint64_t         least_bytes;      // smaller tensors stay as they are
    const tl_device *device;           // for the time of conversions; 0 = they take none
} tl_packing_desc;

// Compress activations while they wait for their backward: lossy.
//
//   plan   overwritten; not that of the desc; release with tl_free_plan; peaks and costs are filled in
//
// A tensor waits from its last reader before the first backward of the plan to the first reader after it,
// backward or forward that runs again: behind the one stands C, before the other X. What was made and
// dropped on either side is not touched, nor are graph inputs, results (keep), tensors that take part
// in copies or conversions of the plan already, sizes that are no multiple of 4 bytes, and what
// would not shrink. On a graph of tl_apply_precision give 1 for tensors whose format is f32.
//
// While a tensor is converted both copies count, so packing more can need more. Of all sets of waiting
// tensors one with the least peak is taken, and in it no tensor is packed in vain: without it the
// peak would be higher. So the peak never rises; where it cannot fall the plan stays as it is.
//
// Errors:  TL_ERROR_INVALID_ARG: codec, plan of an inference; TL_ERROR_INVALID_PLAN and the step; those of
//          tl_check_graph and tl_check_device; TL_ERROR_OVERFLOW; TL_ERROR_NO_MEMORY. *plan is all zero then.
// Cost:    O(waiting tensors x steps) twice, seldom more often; memory O(steps + tensors).
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_packing(tl_env *env, const tl_packing_desc *desc, tl_plan *plan);
#endif  // TL_NO_CODECS

// -- names and text --

TLDEF const char *tl_name_criterion(tl_criterion criterion);         // "balanced"; "?" out of range
TLDEF const char *tl_name_objective(tl_precision_objective objective);  // "bytes"
TLDEF const char *tl_name_loss_source(tl_loss_source source);        // "measured"
#ifndef TL_NO_TEXT
// Each accepts exactly what its tl_name_ returns: 1 and the value, or 0.
TLDEF int tl_parse_criterion(const char *text, tl_criterion *criterion);
TLDEF int tl_parse_objective(const char *text, tl_precision_objective *objective);

// Write a plan as a table for people to read, a node a line: scheme, loss, speed-up, runner-up and what it
// costs more, conversions; then the sums. Numbers are rounded to four digits.
TLDEF size_t tl_print_precision_plan(const tl_graph *graph, const tl_precision_plan *plan, char *buf,
                                     size_t size);

// Write it as JSON: one object with every field of the plan and, in "nodes", of its nodes; names of nodes
// and ops beside them. Numbers are exact, what is not known is null.
TLDEF size_t tl_print_precision_json(const tl_graph *graph, const tl_precision_plan *plan, char *buf,
                                     size_t size);

// Write one node in a sentence: what was chosen and why, the runner-up and its price, where its tensors
// are converted.
TLDEF size_t tl_explain_precision_node(const tl_graph *graph, const tl_precision_plan *plan, int32_t node,
                                       char *buf, size_t size);
#endif
#endif

#else
// Of both a run's desc holds pointers, which must be 0.
typedef struct tl_quantization tl_quantization;
typedef struct tl_loss_scaler tl_loss_scaler;
#endif  // TL_NO_PRECISION

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

