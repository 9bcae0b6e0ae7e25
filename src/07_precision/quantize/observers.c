#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- observers --
//
// Observers measure ranges and noise of tensors. A channel keeps extremes, counts, an exact sum of squares and
// two histograms of magnitudes, one for each sign. The bins have equal width and end at 2^top; a larger value
// raises top and joins bins in pairs, so bin edges are always multiples of a power of two and no count moves
// across an edge. Ranges (percentile, mse, entropy) are chosen by integer arithmetic on the counts, so they are
// the same on every machine. Sources and departures from them stand at the public declarations.

static const char *const tli_observer_names[] = { TL_OBSERVERS(TLI_NAME) };

TLI_IMPL const char *tl_name_observer(tl_observer_kind kind) {
    return tli_name(tli_observer_names, TL_OBSERVER_COUNT, (int64_t)kind);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_observer(const char *text, tl_observer_kind *kind) {
    int32_t value;
    int known = tli_parse_word(tli_observer_names, TL_OBSERVER_COUNT, text, &value);
    TL_ASSERT(kind);
    *kind = (tl_observer_kind)value;
    return known;
}
#endif

// -- observers: noise of data in memory --

static tli_rule tli_weights_broken(const float *weights, uint64_t count) {
    uint64_t i;
    int any = 0;
    for (i = 0; i < count; i++) {
        if (!tli_is_finite_f32(weights[i]) || weights[i] < 0) return TLI_RULE(WEIGHTS_MUST_BE_FINITE_AND_NOT);
        any |= weights[i] > 0;
    }
    return any ? TLI_NO_RULE : TLI_RULE(WEIGHTS_MUST_NOT_ALL_BE_0);
}

static tl_result tli_check_noise(tl_env *env, tli_function function, const float *data, const float *weights,
                                 uint64_t count) {
    tli_rule why = TLI_NO_RULE;
    float least, most;
    if (!count) why = TLI_RULE(COUNT_MUST_BE_POSITIVE);
    else if (!data) why = TLI_RULE(DATA_MUST_NOT_BE_NULL);
    else if (!tli_find_extremes(data, count, &least, &most)) why = TLI_RULE(DATA_VALUE_IS_NOT_FINITE);
    else if (weights) why = tli_weights_broken(weights, count);
    return why ? tli_fail(env, TL_ERROR_INVALID_ARG, function, why) : TL_OK;
}

static void tli_add_noise(tl_noise *noise, float value, float rounded, const float *weight) {
    double error = (double)value - (double)rounded;
    double error_square = tli_product(error, error), signal_square = tli_product(value, value);
    noise->error_sum += weight ? tli_product(error_square, *weight) : error_square;
    noise->signal_sum += weight ? tli_product(signal_square, *weight) : signal_square;
}

static void tli_finish_noise(tl_noise *noise, uint64_t count, double clipped_count) {
    noise->count = count;
    noise->mse = noise->error_sum / (double)count;
    noise->clipped_ratio = clipped_count / (double)count;
    noise->is_exact = !(noise->error_sum > 0);
    if (noise->error_sum > 0 && noise->signal_sum > 0)  // 10 log10(2), and logarithms in units of 2^-52
        noise->sqnr_db = (double)(tli_log2_f64(noise->signal_sum) - tli_log2_f64(noise->error_sum))
                         * (3.010299956639811952137388947245 / 4503599627370496.0);
}

static tl_result tli_check_noise_quantization(tl_env *env, tli_function function, const tl_quantization *q) {
    tli_rule rule = tli_quantization_broken(q);
    tli_sentence s;
    if (!rule) return TL_OK;
    s = tli_begin_error(env, TL_ERROR_INVALID_ARG, function, rule, 0, 0);
    if (TLI_ERROR_TEXT) tli_put(&s.text, "quantization: ");
    return tli_end_error(env, &s, TL_ERROR_INVALID_ARG);
}

TLI_IMPL tl_result tl_measure_noise(tl_env *env, const tl_quantization *quantization, const float *data,
                                    const float *weights, uint64_t count, tl_noise *noise) {
    uint64_t clipped = 0, i;
    tl_result result;
    TL_ASSERT(quantization && noise);
    tli_zero(noise, sizeof *noise);
    result = tli_check_noise_quantization(env, TLI_IN(MEASURE_NOISE), quantization);
    if (!result) result = tli_check_noise(env, TLI_IN(MEASURE_NOISE), data, weights, count);
    if (result) return result;
    for (i = 0; i < count; i++) {
        int32_t integer = tli_quantize_freely(quantization, data[i]);
        int32_t clamped = tli_clamp_integer(quantization, integer);
        float rounded = tli_dequantize_integer(quantization, clamped);
        clipped += integer != clamped;
        tli_add_noise(noise, data[i], rounded, weights ? &weights[i] : NULL);
    }
    tli_finish_noise(noise, count, (double)clipped);
    return TL_OK;
}

// Round to a format and back to f32; a value that overflows becomes the format's largest, and sets *clipped.
static float tli_round_to_format(tl_format format, float value, int *clipped) {
    uint32_t bits = tli_bits_of_f32(value), back = bits, largest = 0x477FE000u;
    if (format == TL_FORMAT_F16) back = tli_f32_of_f16(tli_f16_of(bits));
    if (format == TL_FORMAT_BF16) {
        back = tli_f32_of_bf16(tli_bf16_of(bits));
        largest = 0x7F7F0000u;
    }
    *clipped = (back & 0x7FFFFFFFu) == 0x7F800000u;
    return tli_f32_of_bits(*clipped ? (back & 0x80000000u) | largest : back);
}

TLI_IMPL tl_result tl_measure_format_noise(tl_env *env, tl_format format, const float *data,
                                           const float *weights, uint64_t count, tl_noise *noise) {
    const tli_function function = TLI_IN(MEASURE_FORMAT_NOISE);
    uint64_t clipped_count = 0, i;
    tl_result result;
    TL_ASSERT(noise);
    tli_zero(noise, sizeof *noise);
    if (format != TL_FORMAT_F32 && format != TL_FORMAT_F16 && format != TL_FORMAT_BF16)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(FORMAT_MUST_BE_F32_F16_OR_BF16));
    result = tli_check_noise(env, function, data, weights, count);
    if (result) return result;
    for (i = 0; i < count; i++) {
        int clipped;
        float rounded = tli_round_to_format(format, data[i], &clipped);
        clipped_count += clipped != 0;
        tli_add_noise(noise, data[i], rounded, weights ? &weights[i] : NULL);
    }
    tli_finish_noise(noise, count, (double)clipped_count);
    return TL_OK;
}

// -- observers: state --

#define TLI_OBSERVED_LIMIT ((uint64_t)1 << 48)  // values per channel, so that sums over bins fit 128 bits
#define TLI_SQUARE_LIMBS 20                     // limbs of 32 bits from 2^-298 up hold any sum of 2^48 squares
#define TLI_CLIP_COUNT 200                      // ranges that mse tries in a pass; affine takes three passes

typedef struct tli_channel {
    float    least, most;             // of all values; valid if batch_count > 0
    double   average_least, average_most;
    uint64_t batch_count, count, zero_count;
    uint64_t tiny_count;              // values that are not 0 and below the least f16, 2^-24
    int32_t  top;                     // the bins end at 2^top, the least power of two above all magnitudes
    int32_t  has_bins;                // 1 = top is set and some bin is not empty
    float    new_least, new_most;     // of the batch being added
    uint64_t new_count;
    uint64_t squares[TLI_SQUARE_LIMBS];  // exact sum of squares; each limb is below 2^32 between calls
} tli_channel;

struct tl_observer {
    tl_env          *env;
    tl_observer_desc desc;      // defaults filled in
    tli_channel     *channels;  // [channel_count]
    uint64_t        *bins;      // [channel_count][2: positive, negative][bin_count] counts; NULL = none
    int32_t          bin_bits;  // bin_count = 2^bin_bits
};

// Whether a kind needs no histogram.
static int tli_takes_extremes(tl_observer_kind kind) {
    return kind == TL_OBSERVER_MIN_MAX || kind == TL_OBSERVER_MOVING_AVERAGE;
}

static tl_observer_desc tli_fill_observer(const tl_observer_desc *desc) {
    tl_observer_desc filled = *desc;
    if (!filled.channel_count) filled.channel_count = 1;
    if (!filled.inner_count) filled.inner_count = 1;
    if (filled.rate == 0) filled.rate = 0.01;
    if (filled.percentile_ratio == 0) filled.percentile_ratio = 0.999;
    if (!filled.high) filled.high = 127;
    if (!filled.bin_count && !tli_takes_extremes(filled.kind)) filled.bin_count = 2048;
    return filled;
}

static tli_rule tli_observer_broken(const tl_observer_desc *filled) {
    int32_t bins = filled->bin_count;
    if (!tli_is_below((int64_t)filled->kind, TL_OBSERVER_COUNT)) return TLI_RULE(KIND_NO_SUCH_OBSERVER);
    if (filled->channel_count < 1) return TLI_RULE(CHANNEL_COUNT_MUST_BE_NOT_NEGATIVE);
    if (!(filled->rate > 0 && filled->rate <= 1)) return TLI_RULE(RATE_MUST_BE_POSITIVE_AND_AT_MOST_1);
    if (!(filled->percentile_ratio > 0 && filled->percentile_ratio <= 1))
        return TLI_RULE(PERCENTILE_RATIO_MUST_BE_POSITIVE);
    if (filled->high < 1 || filled->high > 32767) return TLI_RULE(HIGH_MUST_BE_WITHIN_1_TO_32767);
    if (!tli_is_below((int64_t)filled->rule, TL_RANGE_COUNT)) return TLI_RULE(RULE_NO_SUCH_RULE);
    if (bins && (bins < 128 || bins > 8192 || (bins & (bins - 1))))
        return TLI_RULE(BIN_COUNT_MUST_BE_POWER_OF_TWO_WITHIN);
    return TLI_NO_RULE;
}

TLI_IMPL tl_result tl_init_observer(tl_env *env, const tl_observer_desc *desc, tl_observer **observer) {
    const tli_function function = TLI_IN(INIT_OBSERVER);
    tl_observer_desc filled;
    uint64_t channels_bytes, bins_bytes, bytes;
    tl_observer *made;
    tli_rule why;
    TL_ASSERT(desc && observer);
    *observer = NULL;
    filled = tli_fill_observer(desc);
    why = tli_observer_broken(&filled);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, function, why);
    channels_bytes = (uint64_t)filled.channel_count * sizeof(tli_channel);  // these three stay far below 2^64
    bins_bytes = (uint64_t)filled.channel_count * (uint64_t)filled.bin_count * 2 * sizeof(uint64_t);
    bytes = sizeof *made + channels_bytes + bins_bytes;
    made = (tl_observer *)tli_alloc_array(env, bytes, 1);
    if (!made) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_CHANNELS));
    made->env = env;
    made->desc = filled;
    made->channels = (tli_channel *)(void *)(made + 1);
    if (filled.bin_count) {
        made->bins = (uint64_t *)(void *)(made->channels + filled.channel_count);
        made->bin_bits = tli_log2_u64((uint64_t)filled.bin_count);
    }
    *observer = made;
    return TL_OK;
}

TLI_IMPL void tl_free_observer(tl_observer *observer) {
    if (observer) tli_release(observer->env, observer);
}

// The bins of a channel for one sign (0 = positive, 1 = negative); NULL without a histogram.
static uint64_t *tli_bins_of(const tl_observer *observer, int32_t channel, int32_t sign) {
    size_t bins = (size_t)observer->desc.bin_count;
    return observer->bins ? observer->bins + (2 * (size_t)channel + (size_t)sign) * bins : NULL;
}

// The exponent of the least power of two above a magnitude that is given as bits of an f32; not for 0.
static int32_t tli_top_of(uint32_t size) {
    return size >= 0x800000u ? (int32_t)(size >> 23) - 126 : tli_log2_u64(size) - 148;
}

// Join bins in pairs until the last one ends at 2^top.
static void tli_raise_top(tl_observer *observer, int32_t channel, int32_t top) {
    tli_channel *c = &observer->channels[channel];
    int32_t shift = top - c->top, sign, i;
    if (!c->has_bins) {
        c->has_bins = 1;
        c->top = top;
    }
    if (top <= c->top) return;
    if (shift > observer->bin_bits) shift = observer->bin_bits;
    for (sign = 0; sign < 2; sign++) {
        uint64_t *bins = tli_bins_of(observer, channel, sign);
        for (i = 0; i < observer->desc.bin_count; i++) {
            uint64_t count = bins[i];
            bins[i] = 0;
            bins[i >> shift] += count;
        }
    }
    c->top = top;
}

// Carry each limb's upper half into the next limb.
static void tli_settle_squares(uint64_t squares[TLI_SQUARE_LIMBS]) {
    int32_t i;
    for (i = 0; i + 1 < TLI_SQUARE_LIMBS; i++) {
        squares[i + 1] += squares[i] >> 32;
        squares[i] &= 0xFFFFFFFFu;
    }
}

// Round the sum to a double, half to even: `bits` takes the leading 64 bits, `rest` the 32 bits below them,
// `sticky` tells whether anything below those is not 0.
static double tli_sum_squares(const uint64_t squares[TLI_SQUARE_LIMBS]) {
    int32_t i = TLI_SQUARE_LIMBS - 1, exponent, j;
    uint64_t bits, rest, sticky = 0;
    double sum;
    while (i > 0 && !squares[i]) i--;
    if (!squares[i]) return 0;
    bits = squares[i] << 32 | (i > 0 ? squares[i - 1] : 0);
    rest = (i > 1 ? squares[i - 2] : 0) << 32;
    exponent = 32 * (i - 1) - 298;  // of the last bit
    for (j = i - 3; j >= 0; j--) sticky |= squares[j];
    for (; !(bits >> 63); exponent--, rest <<= 1) bits = bits << 1 | rest >> 63;
    sticky |= rest | (bits & 0x3FF);
    rest = bits >> 10 & 1;  // the first bit that does not fit
    bits >>= 11;
    bits += rest & ((bits & 1) | (sticky != 0));
    bits += (uint64_t)(exponent + 11 + 52 + 1022) << 52;  // the leading 1 adds one to the exponent, a carry too
    tli_copy(&sum, &bits, sizeof sum);
    return sum;
}

// -- observers: batches --

// First pass over a batch: find the extremes of each channel. Returns 0 if a value is not finite.
static int tli_scan_batch(tl_observer *observer, const float *data, uint64_t count) {
    tli_stripe s = tli_first_stripe(observer->desc.channel_count, observer->desc.inner_count, count);
    int32_t i;
    for (i = 0; i < observer->desc.channel_count; i++) observer->channels[i].new_count = 0;
    while (tli_next_stripe(&s)) {
        tli_channel *c = &observer->channels[s.channel];
        float least, most;
        if (!tli_find_extremes(data + s.at, s.length, &least, &most)) return 0;
        if (!c->new_count || least < c->new_least) c->new_least = least;
        if (!c->new_count || most > c->new_most) c->new_most = most;
        c->new_count += s.length;
    }
    return 1;
}

static tl_result tli_fail_batch_limit(const tl_observer *observer, tli_function function) {
    return tli_fail(observer->env, TL_ERROR_OVERFLOW, function, TLI_RULE(COUNT_CHANNEL_TAKES_AT_MOST_2_48));
}

static int tli_batch_fits(const tl_observer *observer) {
    int32_t i;
    for (i = 0; i < observer->desc.channel_count; i++) {
        const tli_channel *c = &observer->channels[i];
        if (c->new_count > TLI_OBSERVED_LIMIT - c->count) return 0;
    }
    return 1;
}

// Merge the extremes of a batch into the channel and its moving averages. Values are not counted here.
static void tli_take_extremes(const tl_observer *observer, tli_channel *c) {
    if (!c->new_count) return;
    if (!c->batch_count || c->new_least < c->least) c->least = c->new_least;
    if (!c->batch_count || c->new_most > c->most) c->most = c->new_most;
    if (!c->batch_count) {
        c->average_least = c->new_least;
        c->average_most = c->new_most;
    } else {
        c->average_least += tli_product(observer->desc.rate, c->new_least - c->average_least);
        c->average_most += tli_product(observer->desc.rate, c->new_most - c->average_most);
    }
    c->batch_count++;
}

// Second pass over a batch: add squares, and count values in their bins. Exact: no value is rounded.
static void tli_count_values(tl_observer *observer, int32_t channel, const float *data, size_t count) {
    tli_channel *c = &observer->channels[channel];
    uint64_t *sides[2];
    size_t i;
    sides[0] = tli_bins_of(observer, channel, 0);
    sides[1] = tli_bins_of(observer, channel, 1);
    for (i = 0; i < count; i++) {
        uint32_t bits = tli_bits_of_f32(data[i]), size = bits & 0x7FFFFFFFu, mantissa = size & 0x7FFFFFu;
        int32_t exponent = (int32_t)(size >> 23), place;
        uint64_t square;
        if (!(++c->count & 0x3FFFFFFF)) tli_settle_squares(c->squares);
        if (!size) {
            c->zero_count++;
            continue;
        }
        c->tiny_count += size < 0x33800000u;
        if (exponent) mantissa |= 0x800000u;
        else exponent = 1;  // now the magnitude is mantissa x 2^(exponent - 150)
        place = 2 * (exponent - 1);
        square = (uint64_t)mantissa * mantissa;
        c->squares[place / 32] += square << place % 32 & 0xFFFFFFFFu;
        square = place % 32 ? square >> (32 - place % 32) : square >> 16 >> 16;
        c->squares[place / 32 + 1] += square & 0xFFFFFFFFu;
        c->squares[place / 32 + 2] += square >> 32;
        if (!sides[0]) continue;
        place = exponent - 150 - c->top + observer->bin_bits;
        sides[bits >> 31][place >= 0 ? mantissa << place : place > -32 ? mantissa >> -place : 0]++;
    }
}

TLI_IMPL tl_result tl_observe_data(tl_observer *observer, const float *data, uint64_t count) {
    const tli_function function = TLI_IN(OBSERVE_DATA);
    tli_rule why = TLI_NO_RULE;
    tli_stripe s;
    int32_t i;
    TL_ASSERT(observer);
    if (count && !data) why = TLI_RULE(DATA_MUST_NOT_BE_NULL);
    else if (!tli_scan_batch(observer, data, count)) why = TLI_RULE(DATA_VALUE_IS_NOT_FINITE);
    if (why) return tli_fail(observer->env, TL_ERROR_INVALID_ARG, function, why);
    if (!tli_batch_fits(observer)) return tli_fail_batch_limit(observer, function);
    for (i = 0; i < observer->desc.channel_count; i++) {
        tli_channel *c = &observer->channels[i];
        float size = -c->new_least > c->new_most ? -c->new_least : c->new_most;
        tli_take_extremes(observer, c);
        if (!observer->bins || !c->new_count || !(size > 0)) continue;
        tli_raise_top(observer, i, tli_top_of(tli_bits_of_f32(size)));
    }
    s = tli_first_stripe(observer->desc.channel_count, observer->desc.inner_count, count);
    while (tli_next_stripe(&s)) tli_count_values(observer, s.channel, data + s.at, s.length);
    for (i = 0; i < observer->desc.channel_count; i++) tli_settle_squares(observer->channels[i].squares);
    return TL_OK;
}

TLI_IMPL tl_result tl_observe_extremes(tl_observer *observer, int32_t channel, float least, float most,
                                       uint64_t count) {
    const tli_function function = TLI_IN(OBSERVE_EXTREMES);
    tli_rule why = TLI_NO_RULE;
    tli_channel *c;
    TL_ASSERT(observer);
    if (observer->bins || !tli_takes_extremes(observer->desc.kind))
        return tli_fail(observer->env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(OBSERVER_HISTOGRAM_NEEDS_DATA));
    if (!tli_is_below(channel, observer->desc.channel_count)) why = TLI_RULE(CHANNEL_NO_SUCH_CHANNEL);
    else if (!tli_is_finite_f32(least)) why = TLI_RULE(LEAST_MUST_BE_FINITE);
    else if (!tli_is_finite_f32(most)) why = TLI_RULE(MOST_MUST_BE_FINITE);
    else if (least > most) why = TLI_RULE(LEAST_MUST_BE_AT_MOST_MOST);
    else if (!count) why = TLI_RULE(COUNT_MUST_BE_POSITIVE);
    if (why) return tli_fail(observer->env, TL_ERROR_INVALID_ARG, function, why);
    c = &observer->channels[channel];
    if (count > TLI_OBSERVED_LIMIT - c->count) return tli_fail_batch_limit(observer, function);
    c->new_least = least;
    c->new_most = most;
    c->new_count = count;
    tli_take_extremes(observer, c);
    c->count += count;
    return TL_OK;
}

// -- observers: merging --

static int tli_same_observers(const tl_observer_desc *a, const tl_observer_desc *b) {
    return a->kind == b->kind && a->channel_count == b->channel_count && a->inner_count == b->inner_count
        && a->rate == b->rate && a->percentile_ratio == b->percentile_ratio
        && a->high == b->high && a->rule == b->rule && a->bin_count == b->bin_count;
}

static void tli_merge_average(double *to, uint64_t to_count, double from, uint64_t from_count) {
    double sum = tli_product(*to, (double)to_count) + tli_product(from, (double)from_count);
    *to = to_count ? sum / (double)(to_count + from_count) : from;
}

static void tli_merge_bins(tl_observer *observer, const tl_observer *other, int32_t channel) {
    int32_t shift, sign, i;
    if (!observer->bins || !other->channels[channel].has_bins) return;
    tli_raise_top(observer, channel, other->channels[channel].top);
    shift = observer->channels[channel].top - other->channels[channel].top;
    if (shift > observer->bin_bits) shift = observer->bin_bits;
    for (sign = 0; sign < 2; sign++) {
        uint64_t *to = tli_bins_of(observer, channel, sign);
        const uint64_t *from = tli_bins_of(other, channel, sign);
        for (i = 0; i < observer->desc.bin_count; i++) to[i >> shift] += from[i];
    }
}

TLI_IMPL tl_result tl_merge_observer(tl_observer *observer, const tl_observer *other) {
    const tli_function function = TLI_IN(MERGE_OBSERVER);
    int32_t i, j;
    TL_ASSERT(observer && other);
    if (!tli_same_observers(&observer->desc, &other->desc))
        return tli_fail(observer->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(OTHER_MUST_BE_OF_SAME_DESC));
    for (i = 0; i < observer->desc.channel_count; i++)
        if (other->channels[i].count > TLI_OBSERVED_LIMIT - observer->channels[i].count)
            return tli_fail_batch_limit(observer, function);
    for (i = 0; i < observer->desc.channel_count; i++) {
        tli_channel *to = &observer->channels[i];
        const tli_channel *from = &other->channels[i];
        if (!from->batch_count) continue;
        if (!to->batch_count || from->least < to->least) to->least = from->least;
        if (!to->batch_count || from->most > to->most) to->most = from->most;
        tli_merge_average(&to->average_least, to->batch_count, from->average_least, from->batch_count);
        tli_merge_average(&to->average_most, to->batch_count, from->average_most, from->batch_count);
        tli_merge_bins(observer, other, i);
        for (j = 0; j < TLI_SQUARE_LIMBS; j++) to->squares[j] += from->squares[j];
        tli_settle_squares(to->squares);
        to->zero_count += from->zero_count;
        to->tiny_count += from->tiny_count;
        to->count += from->count;
        to->batch_count += from->batch_count;
    }
    return TL_OK;
}

// -- observers: ranges from histograms --

typedef struct tli_histogram {
    const uint64_t *sides[2];  // bins of positive, of negative values
    int32_t  used[2];          // number of bins up to the last that is not empty
    int32_t  count;            // the larger of the two
    double   width;            // of a bin
    const tl_observer_desc *desc;
} tli_histogram;

static double tli_power_of_two(int32_t exponent) {  // -1022 .. 1023
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    tli_copy(&value, &bits, sizeof value);
    return value;
}

static tli_histogram tli_histogram_of(const tl_observer *observer, int32_t channel) {
    tli_histogram h;
    int32_t sign;
    tli_zero(&h, sizeof h);
    h.desc = &observer->desc;
    if (!observer->bins) return h;
    h.width = tli_power_of_two(observer->channels[channel].top - observer->bin_bits);
    for (sign = 0; sign < 2; sign++) {
        h.sides[sign] = tli_bins_of(observer, channel, sign);
        h.used[sign] = observer->desc.bin_count;
        while (h.used[sign] > 0 && !h.sides[sign][h.used[sign] - 1]) h.used[sign]--;
    }
    h.count = h.used[0] > h.used[1] ? h.used[0] : h.used[1];
    return h;
}

// Nearest rank: the least rank, from 1, such that at least a share `ratio` of all values is up to it.
static uint64_t tli_find_nearest_rank(double ratio, uint64_t count) {
    double exact = tli_product(ratio, (double)count);
    uint64_t rank = (uint64_t)exact;
    rank += (double)rank < exact;
    return rank < 1 ? 1 : rank > count ? count : rank;
}

// The number of bins up to and including the one that holds the rank; zeros rank first.
static int32_t tli_find_percentile(const tli_histogram *h, const tli_channel *c) {
    uint64_t rank = tli_find_nearest_rank(h->desc->percentile_ratio, c->count), below = c->zero_count;
    int32_t i;
    for (i = 0; below < rank && i < h->count; i++) below += h->sides[0][i] + h->sides[1][i];
    return i;
}

// -- observers: range of least squared error, in integers --

// A candidate range, in whole bins. Its `steps` quantisation steps span `spacing` bins. The unit of length is
// 1 / (2 steps) of a bin, so that everything is an integer: a bin is 2 steps units wide, and neighbouring
// quantised values are 2 spacing units apart.
typedef struct tli_clip {
    int32_t ends[2];       // ends of the range in bins: positive, negative side
    int32_t integers[2];   // quantised values above and below the zero point
    int32_t spacing, steps;
} tli_clip;

static tli_clip tli_clip_of(const tl_observer_desc *desc, int32_t above, int32_t below) {
    tli_clip clip;
    clip.ends[0] = above;
    clip.ends[1] = below;
    if (desc->rule == TL_RANGE_AFFINE) {
        int64_t twice = 2 * (int64_t)(2 * desc->high + 1) * below;
        clip.spacing = above + below;
        clip.steps = 2 * desc->high + 1;
        clip.integers[1] = (int32_t)((twice + clip.spacing) / (2 * (int64_t)clip.spacing));
        clip.integers[0] = clip.steps - clip.integers[1];
        return clip;
    }
    clip.spacing = 2 * above;
    clip.steps = desc->rule == TL_RANGE_HALF ? 2 * desc->high + 1 : 2 * desc->high;
    clip.integers[0] = desc->high;
    clip.integers[1] = desc->rule == TL_RANGE_NARROW ? desc->high : desc->high + 1;
    return clip;
}

static tli_u128 tli_scale_u128(tli_u128 a, uint64_t factor) {
    tli_u128 product = tli_mul_u128(a.low, factor);
    product.high += a.high * factor;
    return product;
}

// Sum of squared errors over the values of one sign, spread evenly over their bins, times 3 bin widths, in
// cubed units of the clip. The integral of the squared error from 0 to t, times 3, is 2 r spacing^3 + d^3,
// where r is the integer that t rounds to and d = t - 2 r spacing. The sum stays below 2^127: spacing <= 2^14,
// steps <= 2^16, 2^13 bins, 2^48 values.
static tli_u128 tli_find_clip_error(const tli_histogram *h, const tli_clip *clip, int32_t sign) {
    const int64_t space = clip->spacing, bin = 2 * (int64_t)clip->steps, cube = space * space * space;
    const uint32_t last = (uint32_t)clip->integers[sign];
    tli_u128 sum;
    uint32_t from = 0, to;
    int64_t left = 0, right;
    int32_t i;
    sum.high = sum.low = 0;
    for (i = 0; i < h->used[sign]; i++, from = to, left = right) {
        uint64_t count = h->sides[sign][i];
        to = ((uint32_t)(i + 1) * (uint32_t)bin + (uint32_t)space) / (uint32_t)(2 * space);
        if (to > last) to = last;
        right = (i + 1) * bin - 2 * (int64_t)to * space;
        if (!count) continue;
        if (from == last && left > space) {  // clipped: right^3 - left^3 may exceed 64 bits, so it is factored
            uint64_t squares = (uint64_t)(3 * left * (left + bin) + bin * bin);
            sum = tli_add_u128(sum, tli_scale_u128(tli_mul_u128(squares, (uint64_t)bin), count));
        } else {
            int64_t cubes = right * right * right - left * left * left;
            uint64_t error = (uint64_t)(2 * (int64_t)(to - from) * cube + cubes);
            sum = tli_add_u128(sum, tli_mul_u128(error, count));
        }
    }
    return sum;
}

typedef struct tli_clip_search {
    const tli_histogram *h;
    tli_clip best;
    tli_u128 error;     // of the best
    int32_t  found;
} tli_clip_search;

static void tli_try_clip(tli_clip_search *search, int32_t above, int32_t below) {
    tli_clip clip = tli_clip_of(search->h->desc, above, below);
    tli_u128 error = tli_find_clip_error(search->h, &clip, 0);
    error = tli_add_u128(error, tli_find_clip_error(search->h, &clip, 1));
    if (search->found && tli_is_below_u128(search->error, error)) return;
    search->found = 1;
    search->best = clip;
    search->error = error;
}

static int32_t tli_share_of(int32_t bins, int32_t share) {
    return (int32_t)(((int64_t)bins * share + TLI_CLIP_COUNT - 1) / TLI_CLIP_COUNT);
}

// Try shares of the observed range. `steps` is the same for all ranges under one rule, so all errors have the
// same unit and can be compared.
static tli_clip tli_find_best_clip(const tli_histogram *h) {
    int32_t affine = h->desc->rule == TL_RANGE_AFFINE, k;
    tli_clip_search search;
    tli_zero(&search, sizeof search);
    search.h = h;
    for (k = 1; k <= TLI_CLIP_COUNT; k++) {
        int32_t above = tli_share_of(affine ? h->used[0] : h->count, k);
        int32_t below = tli_share_of(affine ? h->used[1] : h->count, k);
        tli_try_clip(&search, above, below);
    }
    if (!affine || !h->used[0] || !h->used[1]) return search.best;
    for (k = 1; k <= TLI_CLIP_COUNT; k++)
        tli_try_clip(&search, tli_share_of(h->used[0], k), search.best.ends[1]);
    for (k = 1; k <= TLI_CLIP_COUNT; k++)
        tli_try_clip(&search, search.best.ends[0], tli_share_of(h->used[1], k));
    return search.best;
}

// -- observers: range of least information loss, in integers --

// count x log2(of), in units of 2^-40; 0 < of < 2^48.
static tli_u128 tli_mul_log2(uint64_t count, uint64_t of) {
    int32_t whole = tli_log2_u64(of);
    return tli_mul_u128(count, ((uint64_t)whole << 40) + tli_log2_fraction(of << (63 - whole), 40));
}

static uint64_t tli_bin_count(const tli_histogram *h, int32_t i) { return h->sides[0][i] + h->sides[1][i]; }

// Sum of P log2 Q over the first `used` bins. P counts values, with the `tail` beyond the threshold added to
// the last bin. Q has the bins grouped into `levels` levels, and spreads each level's count (without the tail)
// evenly over its bins that are not empty.
static tli_u128 tli_find_level_sum(const tli_histogram *h, int32_t used, int32_t levels, uint64_t tail) {
    uint64_t mass = 0, logs_of = 0;
    tli_u128 sum, logs, term;
    int32_t i, filled = 0;
    sum.high = sum.low = 0;
    logs = sum;
    for (i = 0; i < used; i++) {
        uint64_t count = tli_bin_count(h, i), all;
        mass += count;
        filled += count > 0;
        if (i + 1 < used && (int64_t)i * levels / used == (int64_t)(i + 1) * levels / used) continue;
        if (mass) {
            all = mass + (i + 1 == used ? tail : 0);
            if (logs_of != (uint64_t)filled) {
                logs_of = (uint64_t)filled;
                logs = tli_mul_log2(1, logs_of);
            }
            term = tli_sub_u128(tli_mul_log2(all, mass), tli_scale_u128(logs, all));
            sum = tli_add_u128(sum, term);
        }
        mass = 0;
        filled = 0;
    }
    return sum;
}

// The threshold, as a number of bins, with the least divergence sum P log2(P / Q). P and Q are counts instead
// of shares, which multiplies all sums by the same number of values.
static int32_t tli_find_least_entropy(const tli_histogram *h) {
    int32_t levels = h->desc->high + 1, best = h->count, i;
    uint64_t all = 0, within = 0;
    tli_u128 own, least, slack;
    if (h->count <= levels) return h->count;
    own.high = own.low = 0;
    least.high = least.low = UINT64_MAX;
    for (i = 0; i < h->count; i++) all += tli_bin_count(h, i);
    slack = tli_mul_u128(all, 8);  // logarithms are rounded down; this offset keeps the sums above 0
    for (i = 1; i <= h->count; i++) {
        uint64_t count = tli_bin_count(h, i - 1), tail = all - within - count;
        tli_u128 sum;
        within += count;
        if (count && i >= levels) {  // with an empty last bin P has a tail where Q is 0: an infinite sum
            sum = tli_add_u128(tli_add_u128(own, slack), tli_mul_log2(count + tail, count + tail));
            sum = tli_sub_u128(sum, tli_find_level_sum(h, i, levels, tail));
            sum = tli_sub_u128(tli_add_u128(sum, tli_mul_log2(all, within)), tli_mul_log2(all, all));
            if (!tli_is_below_u128(least, sum)) {
                least = sum;
                best = i;
            }
        }
        if (count) own = tli_add_u128(own, tli_mul_log2(count, count));
    }
    return best;
}

// -- observers: results --

static float tli_clamp_f32(float value, double least, double most) {
    return value < least ? (float)least : value > most ? (float)most : value;
}

static void tli_find_channel_range(const tl_observer *observer, int32_t channel, tl_observation *o) {
    const tli_channel *c = &observer->channels[channel];
    tli_histogram h = tli_histogram_of(observer, channel);
    double above = 0, below = 0;
    o->range_least = o->least;
    o->range_most = o->most;
    switch (observer->desc.kind) {
        case TL_OBSERVER_MIN_MAX: case TL_OBSERVER_COUNT: return;
        case TL_OBSERVER_MOVING_AVERAGE:
            o->range_least = (float)c->average_least;
            o->range_most = (float)c->average_most;
            return;
        case TL_OBSERVER_PERCENTILE:
            above = below = tli_product(h.width, tli_find_percentile(&h, c));
            break;
        case TL_OBSERVER_MSE:
            if (h.count) {
                tli_clip clip = tli_find_best_clip(&h);
                above = tli_product(h.width, clip.ends[0]);
                below = tli_product(h.width, clip.ends[1]);
            }
            break;
        case TL_OBSERVER_ENTROPY:
            above = below = tli_product(h.width, tli_find_least_entropy(&h));
            break;
    }
    o->range_least = tli_clamp_f32(o->least, -below, above);
    o->range_most = tli_clamp_f32(o->most, -below, above);
}

// Count the values in bins that begin at `limit` or beyond.
static uint64_t tli_count_beyond(const tli_histogram *h, int32_t sign, double limit) {
    uint64_t count = 0;
    int32_t i;
    for (i = h->used[sign]; i > 0 && tli_product(h->width, i - 1) >= limit; i--) count += h->sides[sign][i - 1];
    return count;
}

static tl_result tli_fail_channel(const tl_observer *observer, tli_function function) {
    return tli_fail(observer->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(CHANNEL_NO_SUCH_CHANNEL));
}

TLI_IMPL tl_result tl_measure_observer(const tl_observer *observer, int32_t channel,
                                       tl_observation *observation) {
    const tli_function function = TLI_IN(MEASURE_OBSERVER);
    const tli_channel *c;
    tli_histogram h;
    TL_ASSERT(observer && observation);
    tli_zero(observation, sizeof *observation);
    if (!tli_is_below(channel, observer->desc.channel_count)) return tli_fail_channel(observer, function);
    c = &observer->channels[channel];
    if (!c->batch_count) return TL_OK;
    observation->least = c->least + 0.0f;  // turns -0 into 0, so the result does not depend on the order
    observation->most = c->most + 0.0f;
    observation->count = c->count;
    observation->zero_count = c->zero_count;
    observation->square_sum = tli_sum_squares(c->squares);
    tli_find_channel_range(observer, channel, observation);
    observation->range_least += 0.0f;
    observation->range_most += 0.0f;
    h = tli_histogram_of(observer, channel);
    if (h.count) {
        float least = observation->range_least, most = observation->range_most;
        uint64_t count = most < c->most ? tli_count_beyond(&h, 0, most > 0 ? most : 0) : 0;
        count += least > c->least ? tli_count_beyond(&h, 1, least < 0 ? -least : 0) : 0;
        observation->clipped_ratio = (double)count / (double)c->count;
    }
    return TL_OK;
}

static tl_result tli_check_seen(const tl_observer *observer, int32_t channel, tli_function function) {
    if (!tli_is_below(channel, observer->desc.channel_count)) return tli_fail_channel(observer, function);
    if (observer->channels[channel].batch_count) return TL_OK;
    return tli_fail_values(observer->env, TL_ERROR_NOT_FOUND, function,
                           TLI_RULE(CHANNEL_HAS_SEEN_NOTHING), (uint64_t)channel, 0);
}

TLI_IMPL tl_result tl_find_observed_quantization(const tl_observer *observer, int32_t channel,
                                                 tl_range_rule rule, int32_t low, int32_t high,
                                                 tl_quantization *quantization) {
    tl_observation seen;
    tl_result result;
    TL_ASSERT(observer && quantization);
    tli_zero(quantization, sizeof *quantization);
    result = tli_check_seen(observer, channel, TLI_IN(FIND_OBSERVED_QUANTIZATION));
    if (!result) result = tl_measure_observer(observer, channel, &seen);
    if (result) return result;
    return tl_find_quantization(observer->env, rule, seen.range_least, seen.range_most, low, high,
                                quantization);
}

// -- observers: noise from histograms --

// The number of quantisation steps that a magnitude rounds to, at most `last`.
static double tli_find_level(double magnitude, double scale, int32_t last) {
    double level = magnitude / scale + 0.5;
    return level >= last ? last : (double)(int64_t)level;
}

// Integral of the square from a to b.
static double tli_integrate_square(double a, double b) {
    double squares = tli_product(a, a) + tli_product(a, b);
    return tli_product(b - a, (squares + tli_product(b, b)) / 3);
}

// Mean squared error of magnitudes that are spread evenly over from .. to.
static double tli_find_mean_error(double from, double to, double scale, int32_t last) {
    double first_level = tli_find_level(from, scale, last), last_level = tli_find_level(to, scale, last);
    double left = from - tli_product(first_level, scale), right = to - tli_product(last_level, scale);
    double half = scale * 0.5, sum;
    if (!(from < to)) return tli_product(left, left);
    if (first_level >= last_level) {
        sum = tli_product(left, left) + tli_product(left, right);
        return (sum + tli_product(right, right)) / 3;
    }
    sum = tli_product(last_level - first_level - 1, tli_integrate_square(-half, half));
    sum += tli_integrate_square(left, half);
    sum += tli_integrate_square(-half, right);
    return sum / (to - from);
}

TLI_IMPL tl_result tl_estimate_noise(const tl_observer *observer, int32_t channel,
                                     const tl_quantization *quantization, tl_noise *noise) {
    const tli_function function = TLI_IN(ESTIMATE_NOISE);
    tl_noise estimate;
    tli_histogram h;
    const tli_channel *c;
    double clipped = 0;
    int32_t sign, i;
    tl_result result;
    TL_ASSERT(observer && quantization && noise);
    tli_zero(noise, sizeof *noise);
    tli_zero(&estimate, sizeof estimate);
    result = tli_check_noise_quantization(observer->env, function, quantization);
    if (!result && !observer->bins)
        result = tli_fail(observer->env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(OBSERVER_HAS_NO_HISTOGRAM));
    if (!result) result = tli_check_seen(observer, channel, function);
    if (result) return result;
    c = &observer->channels[channel];
    h = tli_histogram_of(observer, channel);
    for (sign = 0; sign < 2; sign++) {
        int32_t last = sign ? quantization->zero_point - quantization->low
                            : quantization->high - quantization->zero_point;
        double least = sign ? -(double)c->most : c->least, most = sign ? -(double)c->least : c->most;
        double edge = tli_product(quantization->scale, last + 0.5);
        for (i = 0; i < h.used[sign]; i++) {
            double from = tli_product(h.width, i), to = tli_product(h.width, i + 1);
            double count = (double)h.sides[sign][i];
            if (!h.sides[sign][i]) continue;
            if (from < least) from = least;
            if (to > most) to = most;
            estimate.error_sum += tli_product(count, tli_find_mean_error(from, to, quantization->scale, last));
            if (from >= edge) clipped += count;
            else if (to > edge) clipped += tli_product(count, (to - edge) / (to - from));
        }
    }
    estimate.signal_sum = tli_sum_squares(c->squares);
    tli_finish_noise(&estimate, c->count, clipped);
    *noise = estimate;
    return TL_OK;
}

TLI_IMPL int tl_is_f16_safe(const tl_observer *observer, double margin, double lost_ratio) {
    int32_t i, seen = 0;
    TL_ASSERT(observer);
    if (margin == 0) margin = 1;
    if (!(margin >= 1 && margin <= 65504) || !(lost_ratio >= 0 && lost_ratio <= 1)) return 0;
    for (i = 0; i < observer->desc.channel_count; i++) {
        const tli_channel *c = &observer->channels[i];
        double size = -(double)c->least > c->most ? -(double)c->least : c->most;
        if (!c->batch_count) continue;
        seen = 1;
        if (size * margin > 65504) return 0;
        if ((double)c->tiny_count > lost_ratio * (double)(c->count - c->zero_count)) return 0;
    }
    return seen;
}

// -- observers: ranges of data in memory --

// The magnitude of this rank, from 1: radix selection on the bits, eight per pass, in four passes without a
// copy of the data.
static float tli_select_magnitude(const float *data, uint64_t count, uint64_t rank) {
    uint64_t digits[256], i;
    uint32_t prefix = 0, known = 0;
    int32_t shift, digit;
    for (shift = 24; shift >= 0; shift -= 8) {
        tli_zero(digits, sizeof digits);
        for (i = 0; i < count; i++) {
            uint32_t size = tli_bits_of_f32(data[i]) & 0x7FFFFFFFu;
            if ((size & known) == prefix) digits[size >> shift & 255]++;
        }
        for (digit = 0; rank > digits[digit]; digit++) rank -= digits[digit];
        prefix |= (uint32_t)digit << shift;
        known |= (uint32_t)255 << shift;
    }
    return tli_f32_of_bits(prefix);
}

typedef struct tli_range_search {
    const tl_observer_desc *desc;
    const float *data;
    uint64_t count;
    float    least, most;  // the best range so far
    double   mse;
    int32_t  found;
} tli_range_search;

static void tli_try_range(tli_range_search *search, float least, float most) {
    int32_t high = search->desc->high, low = search->desc->rule == TL_RANGE_NARROW ? -high : -high - 1;
    tl_quantization q;
    double sum = 0;
    uint64_t i;
    if (tl_find_quantization(NULL, search->desc->rule, least, most, low, high, &q)) return;
    for (i = 0; i < search->count; i++) {
        int32_t integer = tli_clamp_integer(&q, tli_quantize_freely(&q, search->data[i]));
        double error = (double)search->data[i] - (double)tli_dequantize_integer(&q, integer);
        sum += tli_product(error, error);
    }
    sum /= (double)search->count;
    if (search->found && sum > search->mse) return;
    search->found = 1;
    search->mse = sum;
    search->least = least;
    search->most = most;
}

// As tli_find_best_clip, with the true error of the data. Range ends are products in f32.
static void tli_find_best_range(tli_range_search *search, float least, float most) {
    int32_t affine = search->desc->rule == TL_RANGE_AFFINE, k;
    float below = least < 0 ? least : 0.0f, above = most > 0 ? most : 0.0f, share;
    if (!affine) {
        above = -below > above ? -below : above;
        below = -above;
    }
    for (k = 1; k <= TLI_CLIP_COUNT; k++) {
        share = (float)(k / (double)TLI_CLIP_COUNT);
        tli_try_range(search, below * share, above * share);
    }
    for (k = 1; affine && k <= TLI_CLIP_COUNT; k++)
        tli_try_range(search, search->least, above * (float)(k / (double)TLI_CLIP_COUNT));
    for (k = 1; affine && k <= TLI_CLIP_COUNT; k++)
        tli_try_range(search, below * (float)(k / (double)TLI_CLIP_COUNT), search->most);
}

static tl_result tli_measure_by_observer(tl_env *env, const tl_observer_desc *desc, const float *data,
                                         uint64_t count, float *least, float *most) {
    tl_observation seen;
    tl_observer *observer;
    tl_result result = tl_init_observer(env, desc, &observer);
    if (result) return result;
    result = tl_observe_data(observer, data, count);
    if (!result) result = tl_measure_observer(observer, 0, &seen);
    if (!result) {
        *least = seen.range_least;
        *most = seen.range_most;
    }
    tl_free_observer(observer);
    return result;
}

TLI_IMPL tl_result tl_measure_range(tl_env *env, const tl_observer_desc *desc, const float *data,
                                    uint64_t count, float *least, float *most) {
    const tli_function function = TLI_IN(MEASURE_RANGE);
    float all_least, all_most, limit;
    tl_observer_desc filled;
    tli_range_search search;
    tli_rule why;
    TL_ASSERT(desc && least && most);
    *least = *most = 0;
    filled = tli_fill_observer(desc);
    why = tli_observer_broken(&filled);
    if (!why && (filled.channel_count > 1 || filled.inner_count > 1))
        why = TLI_RULE(DESC_MUST_BE_OF_ONE_CHANNEL);
    if (!why && !count) why = TLI_RULE(COUNT_MUST_BE_POSITIVE);
    if (!why && !data) why = TLI_RULE(DATA_MUST_NOT_BE_NULL);
    if (!why && !tli_find_extremes(data, count, &all_least, &all_most))
        why = TLI_RULE(DATA_VALUE_IS_NOT_FINITE);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, function, why);
    if (filled.kind == TL_OBSERVER_ENTROPY)
        return tli_measure_by_observer(env, &filled, data, count, least, most);
    *least = all_least;
    *most = all_most;
    if (filled.kind == TL_OBSERVER_PERCENTILE) {
        limit = tli_select_magnitude(data, count, tli_find_nearest_rank(filled.percentile_ratio, count));
        *least = tli_clamp_f32(all_least, -limit, limit);
        *most = tli_clamp_f32(all_most, -limit, limit);
    } else if (filled.kind == TL_OBSERVER_MSE) {
        tli_zero(&search, sizeof search);
        search.desc = &filled;
        search.data = data;
        search.count = count;
        tli_find_best_range(&search, all_least, all_most);
        if (search.found) {
            *least = tli_clamp_f32(all_least, search.least, search.most);
            *most = tli_clamp_f32(all_most, search.least, search.most);
        }
    }
    return TL_OK;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

