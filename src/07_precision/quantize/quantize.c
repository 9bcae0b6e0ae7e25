#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION

// ============================================================================
// [7] PRECISION (implementation)
// ============================================================================

// -- formats and schemes --
//
// This part holds what a machine needs that runs a quantised network: formats, quantisation of data and
// of sums of products, and the guards for 16-bit floats. It needs no other part of [7] and, but for names
// and text, stays in a build with TL_NO_PLANNERS. Sources stand at the public declarations.

static const uint8_t tli_format_bytes[] = { TL_FORMATS(TLI_LABEL4) };

// Bytes of an array of f32 elements when each takes so many bits, rounded up to a byte; a last partial element
// counts whole.
static uint64_t tli_narrow_bytes(uint64_t f32_bytes, uint64_t bits) {
    uint64_t count = f32_bytes / 4 + (f32_bytes % 4 != 0);
    return bits == 32 ? f32_bytes : count / 8 * bits + (count % 8 * bits + 7) / 8;
}

TLI_IMPL uint64_t tl_find_format_bytes(tl_format format, uint64_t f32_bytes) {
    int known = tli_is_below((int64_t)format, TL_FORMAT_COUNT);
    return tli_narrow_bytes(f32_bytes, known ? 8u * tli_format_bytes[format] : 32);
}

#ifndef TL_NO_PLANNERS  // a device that only runs needs no names, and tables of text would take its memory
#define TLI_NAME5(id, name, format, bits, help) name,      // these three are undefined again below
#define TLI_FORMAT5(id, name, format, bits, help) format,
#define TLI_BITS5(id, name, format, bits, help) bits,

static const char *const tli_format_names[] = { TL_FORMATS(TLI_NAME4) };
static const char *const tli_scheme_names[] = { TL_SCHEMES(TLI_NAME5) };
static const tl_format tli_scheme_formats[] = { TL_SCHEMES(TLI_FORMAT5) };
static const uint8_t tli_weight_bits[] = { TL_SCHEMES(TLI_BITS5) };

#undef TLI_NAME5
#undef TLI_FORMAT5
#undef TLI_BITS5

TLI_IMPL const char *tl_name_format(tl_format format) {
    return tli_name(tli_format_names, TL_FORMAT_COUNT, (int64_t)format);
}

TLI_IMPL const char *tl_name_scheme(tl_scheme scheme) {
    return tli_name(tli_scheme_names, TL_SCHEME_COUNT, (int64_t)scheme);
}

TLI_IMPL tl_format tl_find_scheme_format(tl_scheme scheme) {
    return tli_is_below((int64_t)scheme, TL_SCHEME_COUNT) ? tli_scheme_formats[scheme] : TL_FORMAT_COUNT;
}

// Find the bytes of the weights of a node in a scheme, from their bytes in f32.
static uint64_t tli_find_weight_bytes(tl_scheme scheme, uint64_t f32_bytes) {
    int known = tli_is_below((int64_t)scheme, TL_SCHEME_COUNT);
    return tli_narrow_bytes(f32_bytes, known ? tli_weight_bits[scheme] : 32);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_format(const char *text, tl_format *format) {
    int32_t value;
    int known = tli_parse_word(tli_format_names, TL_FORMAT_COUNT, text, &value);
    TL_ASSERT(format);
    *format = (tl_format)value;
    return known;
}

TLI_IMPL int tl_parse_scheme(const char *text, tl_scheme *scheme) {
    int32_t value;
    int known = tli_parse_word(tli_scheme_names, TL_SCHEME_COUNT, text, &value);
    TL_ASSERT(scheme);
    *scheme = (tl_scheme)value;
    return known;
}
#endif

#endif  // TL_NO_PLANNERS

// -- quantisation --

#ifndef TL_NO_PLANNERS
static const char *const tli_range_rule_names[] = { TL_RANGE_RULES(TLI_NAME) };

TLI_IMPL const char *tl_name_range_rule(tl_range_rule rule) {
    return tli_name(tli_range_rule_names, TL_RANGE_COUNT, (int64_t)rule);
}

#endif  // TL_NO_PLANNERS

// Round to the nearest integer, saturating at +-2^18: bounds and zero points have at most 16 bits, so larger
// integers are clamped later in any case.
static int32_t tli_round_f32(float value, tl_rounding rounding) {
    int32_t whole;
    float rest;
    if (value >= 262144.0f) return 262144;
    if (value <= -262144.0f) return -262144;
    whole = (int32_t)value;
    rest = value - (float)whole;  // exact
    if (rest > 0.5f || (rest == 0.5f && (rounding == TL_ROUNDING_AWAY || whole % 2))) return whole + 1;
    if (rest < -0.5f || (rest == -0.5f && (rounding == TL_ROUNDING_AWAY || whole % 2))) return whole - 1;
    return whole;
}

static int tli_is_scale(float value) { return tli_is_finite_f32(value) && value > 0; }

static tli_rule tli_bounds_broken(int32_t low, int32_t high) {
    if (low < -32768 || high > 65535) return TLI_RULE(LOW_HIGH_MUST_BE_WITHIN_32768_TO_65535);
    if (low >= high) return TLI_RULE(LOW_MUST_BE_BELOW_HIGH);
    if (high - low > 65535) return TLI_RULE(LOW_HIGH_MUST_BE_OF_AT_MOST_16_BITS);
    return TLI_NO_RULE;
}

static tli_rule tli_range_broken(tl_range_rule rule, float least, float most, int32_t low, int32_t high) {
    if (!tli_is_below((int64_t)rule, TL_RANGE_COUNT)) return TLI_RULE(RULE_NO_SUCH_RULE);
    if (!tli_is_finite_f32(least)) return TLI_RULE(LEAST_MUST_BE_FINITE);
    if (!tli_is_finite_f32(most)) return TLI_RULE(MOST_MUST_BE_FINITE);
    if (least > most) return TLI_RULE(LEAST_MUST_BE_AT_MOST_MOST);
    if (tli_bounds_broken(low, high)) return tli_bounds_broken(low, high);
    if (rule == TL_RANGE_NARROW && (high < 1 || low > -high))
        return TLI_RULE(LOW_MUST_BE_AT_MOST_HIGH_UNDER_NARROW);
    if (rule == TL_RANGE_WIDE && (low > 0 || high < 1)) return TLI_RULE(LOW_HIGH_MUST_HOLD_0_UNDER_WIDE);
    if (rule == TL_RANGE_HALF && high < 1) return TLI_RULE(HIGH_MUST_BE_POSITIVE_UNDER_HALF);
    return TLI_NO_RULE;
}

static float tli_at_least(float scale, float least) { return scale < least ? least : scale; }

#define TLI_SMALLEST_SCALE 1.1920928955078125e-07f       // 2^-23
#define TLI_NORMAL_SCALE   1.17549435082228750797e-38f   // 2^-126: below, an f32 loses digits

// One f32 operation per statement, so that it rounds exactly like the tools that the rules are named after.
static void tli_apply_affine(float least, float most, float least_scale, tl_quantization *q) {
    float size = most - least, steps = (float)(q->high - q->low);
    q->scale = tli_at_least(size / steps, least_scale);
    size = least / q->scale;
    q->zero_point = q->low - tli_round_f32(size, TL_ROUNDING_EVEN);
    if (q->zero_point > q->high) q->zero_point = q->high;
}

static void tli_apply_symmetric(tl_range_rule rule, float size, tl_quantization *q) {
    float steps;
    if (rule == TL_RANGE_HALF) {
        steps = (float)(q->high - q->low) * 0.5f;
        q->scale = tli_at_least(size / steps, TLI_SMALLEST_SCALE);
        q->zero_point = q->low < 0 ? 0 : (q->low + q->high + 1) / 2;
        return;
    }
    if (rule == TL_RANGE_NARROW) q->low = -q->high;
    steps = (float)q->high;
    q->scale = size > 0 ? tli_at_least(size / steps, TLI_NORMAL_SCALE) : TLI_SMALLEST_SCALE;
}

TLI_IMPL tl_result tl_find_quantization(tl_env *env, tl_range_rule rule, float least, float most, int32_t low,
                                        int32_t high, tl_quantization *quantization) {
    const tli_function function = TLI_IN(FIND_QUANTIZATION);
    tli_rule why = tli_range_broken(rule, least, most, low, high);
    float below = least < 0 ? least : 0.0f, above = most > 0 ? most : 0.0f;
    TL_ASSERT(quantization);
    tli_zero(quantization, sizeof *quantization);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, function, why);
    if (rule == TL_RANGE_AFFINE && !tli_is_finite_f32(above - below))
        return tli_fail(env, TL_ERROR_OVERFLOW, function, TLI_RULE(MOST_MOST_LEAST_DOES_NOT_FIT_F32));
    quantization->low = low;
    quantization->high = high;
    if (rule == TL_RANGE_AFFINE) tli_apply_affine(below, above, TLI_SMALLEST_SCALE, quantization);
    else tli_apply_symmetric(rule, -below > above ? -below : above, quantization);
    return TL_OK;
}

static tli_rule tli_quantization_broken(const tl_quantization *q) {
    if (!tli_is_scale(q->scale)) return TLI_RULE(SCALE_MUST_BE_FINITE_AND_POSITIVE);
    if (tli_bounds_broken(q->low, q->high)) return tli_bounds_broken(q->low, q->high);
    if (q->zero_point < q->low || q->zero_point > q->high)
        return TLI_RULE(ZERO_POINT_MUST_BE_WITHIN_LOW_TO_HIGH);
    if (!tli_is_below((int64_t)q->rounding, TL_ROUNDING_COUNT)) return TLI_RULE(ROUNDING_NO_SUCH_ROUNDING);
    return TLI_NO_RULE;
}

// The integer before clamping.
static int32_t tli_quantize_freely(const tl_quantization *q, float value) {
    if ((tli_bits_of_f32(value) & 0x7FFFFFFFu) > 0x7F800000u) return q->zero_point;
    return tli_round_f32(value / q->scale, q->rounding) + q->zero_point;
}

static int32_t tli_clamp_integer(const tl_quantization *q, int32_t integer) {
    return integer < q->low ? q->low : integer > q->high ? q->high : integer;
}

static float tli_dequantize_integer(const tl_quantization *q, int32_t integer) {
    float value = (float)(integer - q->zero_point) * q->scale;
    uint32_t bits = tli_bits_of_f32(value);
    if ((bits & 0x7FFFFFFFu) == 0x7F800000u) return tli_f32_of_bits(bits - 1);  // the largest of this sign
    return value;
}

// Quantise consecutive elements with one quantisation; `width` bytes per integer.
static void tli_quantize_run(const tl_quantization *q, size_t width, const float *from, void *to,
                             size_t count) {
    unsigned char *bytes = (unsigned char *)to;
    size_t i;
    for (i = 0; i < count; i++) {
        int32_t integer = tli_clamp_integer(q, tli_quantize_freely(q, from[i]));
        uint16_t half = (uint16_t)integer;
        if (width == 1) bytes[i] = (unsigned char)integer;
        else tli_copy(bytes + 2 * i, &half, 2);
    }
}

static void tli_dequantize_run(const tl_quantization *q, size_t width, const void *from, float *to,
                               size_t count) {
    const unsigned char *bytes = (const unsigned char *)from;
    int32_t half = width == 1 ? 128 : 32768;
    size_t i;
    for (i = 0; i < count; i++) {
        uint16_t wide = bytes[width == 1 ? i : 0];
        int32_t integer;
        if (width == 2) tli_copy(&wide, bytes + 2 * i, 2);
        integer = (int32_t)wide;
        if (q->low < 0 && integer >= half) integer -= 2 * half;
        to[i] = tli_dequantize_integer(q, integer);
    }
}

static tli_rule tli_format_lacks(const tl_quantization *q, tl_format format) {
    int32_t half = format == TL_FORMAT_I8 ? 128 : 32768;
    if (q->low >= 0 ? q->high < 2 * half : q->low >= -half && q->high < half) return TLI_NO_RULE;
    return format == TL_FORMAT_I8 ? TLI_RULE(LOW_HIGH_ARE_MORE_THAN_I8_HOLDS)
        : TLI_RULE(LOW_HIGH_ARE_MORE_THAN_I16_HOLDS);
}

static tl_result tli_fail_channel_of(tl_env *env, tli_function function, int32_t channel, tli_rule rule) {
    tli_sentence s = tli_begin_error(env, TL_ERROR_INVALID_ARG, function, rule, (uint64_t)channel, 0);
    if (TLI_ERROR_TEXT) {
        tli_put(&s.text, "quantizations["); tli_put_i64(&s.text, channel); tli_put(&s.text, "]: ");
    }
    return tli_end_error(env, &s, TL_ERROR_INVALID_ARG);
}

static tl_result tli_check_quantize(tl_env *env, tli_function function, const tl_quantization *quantizations,
                                    int32_t channel_count, uint64_t inner_count, tl_format format,
                                    int has_arrays) {
    int32_t i;
    tli_rule why = TLI_NO_RULE;
    if (channel_count < 1) why = TLI_RULE(CHANNEL_COUNT_MUST_BE_POSITIVE);
    else if (!inner_count) why = TLI_RULE(INNER_COUNT_MUST_BE_POSITIVE);
    else if (format != TL_FORMAT_I8 && format != TL_FORMAT_I16) why = TLI_RULE(FORMAT_MUST_BE_I8_OR_I16);
    else if (!quantizations) why = TLI_RULE(QUANTIZATIONS_MUST_NOT_BE_NULL);
    else if (!has_arrays) why = TLI_RULE(FROM_TO_MUST_NOT_BE_NULL);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, function, why);
    for (i = 0; i < channel_count; i++) {
        why = tli_quantization_broken(&quantizations[i]);
        if (!why) why = tli_format_lacks(&quantizations[i], format);
        if (why) return tli_fail_channel_of(env, function, i, why);
    }
    return TL_OK;
}

// An iterator over the elements of a tensor in order, in runs that belong to one channel.
typedef struct tli_stripe {
    uint64_t inner_count, count;
    size_t   at, length;               // the present run
    int32_t  channel, channel_count;
} tli_stripe;

static tli_stripe tli_first_stripe(int32_t channel_count, uint64_t inner_count, uint64_t count) {
    tli_stripe s;
    tli_zero(&s, sizeof s);
    s.inner_count = channel_count == 1 ? count : inner_count;
    s.count = count;
    s.channel = -1;
    s.channel_count = channel_count;
    return s;
}

static int tli_next_stripe(tli_stripe *s) {
    uint64_t left;
    s->at += s->length;
    s->channel = s->channel + 1 < s->channel_count ? s->channel + 1 : 0;
    left = s->count - s->at;
    s->length = (size_t)(left < s->inner_count ? left : s->inner_count);
    return left > 0;
}

TLI_IMPL tl_result tl_quantize(tl_env *env, const tl_quantization *quantizations, int32_t channel_count,
                               uint64_t inner_count, tl_format format, const float *from, void *to,
                               uint64_t count) {
    size_t width = format == TL_FORMAT_I8 ? 1 : 2;
    tli_stripe s;
    tl_result result = tli_check_quantize(env, TLI_IN(QUANTIZE), quantizations, channel_count,
                                          inner_count, format,
                                          !count || (from && to));
    if (result) return result;
    s = tli_first_stripe(channel_count, inner_count, count);
    while (tli_next_stripe(&s)) {
        void *at = (char *)to + s.at * width;
        tli_quantize_run(&quantizations[s.channel], width, from + s.at, at, s.length);
    }
    return TL_OK;
}

TLI_IMPL tl_result tl_dequantize(tl_env *env, const tl_quantization *quantizations, int32_t channel_count,
                                 uint64_t inner_count, tl_format format, const void *from, float *to,
                                 uint64_t count) {
    size_t width = format == TL_FORMAT_I8 ? 1 : 2;
    tli_stripe s;
    tl_result result = tli_check_quantize(env, TLI_IN(DEQUANTIZE), quantizations, channel_count, inner_count,
                                          format, !count || (from && to));
    if (result) return result;
    s = tli_first_stripe(channel_count, inner_count, count);
    while (tli_next_stripe(&s)) {
        const void *at = (const char *)from + s.at * width;
        tli_dequantize_run(&quantizations[s.channel], width, at, to + s.at, s.length);
    }
    return TL_OK;
}

// Find least and largest value; returns 0 if a value is not finite. count > 0.
static int tli_find_extremes(const float *data, uint64_t count, float *least, float *most) {
    uint64_t i;
    *least = *most = data[0];
    for (i = 0; i < count; i++) {
        if (!tli_is_finite_f32(data[i])) return 0;
        if (data[i] < *least) *least = data[i];
        if (data[i] > *most) *most = data[i];
    }
    return 1;
}

TLI_IMPL tl_result tl_quantize_dynamic(tl_env *env, const float *from, uint8_t *to, uint64_t count,
                                       tl_quantization *quantization) {
    const tli_function function = TLI_IN(QUANTIZE_DYNAMIC);
    tl_quantization found;
    float least, most;
    TL_ASSERT(quantization);
    tli_zero(quantization, sizeof *quantization);
    tli_zero(&found, sizeof found);
    if (!count) return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(COUNT_MUST_BE_POSITIVE));
    if (!from || !to) return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(FROM_TO_MUST_NOT_BE_NULL));
    if (!tli_find_extremes(from, count, &least, &most))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(FROM_VALUE_IS_NOT_FINITE));
    if (least > 0) least = 0;
    if (most < 0) most = 0;
    if (!tli_is_finite_f32(most - least))
        return tli_fail(env, TL_ERROR_OVERFLOW, function, TLI_RULE(FROM_MOST_LEAST_DOES_NOT_FIT_F32));
    found.high = 255;
    tli_apply_affine(least, most, most - least > 0 ? TLI_NORMAL_SCALE : TLI_SMALLEST_SCALE, &found);
    tli_quantize_run(&found, 1, from, to, (size_t)count);
    *quantization = found;
    return TL_OK;
}

// Split a finite value > 0 into a mantissa of exactly 24 bits and the exponent of two that is returned.
static int32_t tli_split_positive(float value, uint64_t *mantissa) {
    uint32_t bits = tli_bits_of_f32(value);
    int32_t exponent = (int32_t)(bits >> 23) - 150;
    *mantissa = bits & 0x7FFFFFu;
    if (exponent > -150) *mantissa |= 0x800000u;
    else exponent = -149;
    for (; *mantissa < 0x800000u; exponent--) *mantissa *= 2;
    return exponent;
}

TLI_IMPL tl_result tl_find_multiplier(tl_env *env, float a, float b, float c, tl_multiplier *multiplier) {
    const tli_function function = TLI_IN(FIND_MULTIPLIER);
    uint64_t over, factor, under, whole;
    int32_t exponent, shift = 0;
    TL_ASSERT(multiplier);
    tli_zero(multiplier, sizeof *multiplier);
    if (!tli_is_scale(a))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(MUST_BE_FINITE_AND_POSITIVE));
    if (!tli_is_scale(b))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(B_MUST_BE_FINITE_AND_POSITIVE));
    if (!tli_is_scale(c))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(C_MUST_BE_FINITE_AND_POSITIVE));
    exponent = tli_split_positive(a, &over) + tli_split_positive(b, &factor) - tli_split_positive(c, &under);
    over *= factor;  // 47 or 48 bits, so the quotient has 23 to 25 bits
    while ((over << shift) / under < ((uint64_t)1 << 30)) shift++;
    whole = (over << shift) / under;
    whole += (over << shift) % under * 2 >= under;
    if (whole >> 31) { whole /= 2; shift--; }  // 2^31 - 1 and a half became 2^31
    exponent += 31 - shift;
    if (exponent < -31) return TL_OK;  // stays 0: every sum would round to 0
    multiplier->multiplier = (int32_t)whole;
    multiplier->exponent = exponent;
    return TL_OK;
}

// -- guards for 16-bit floats --

static float tli_positive_or(float value, float otherwise) {
    return tli_is_scale(value) ? value : otherwise;
}

TLI_IMPL tl_loss_scaler tl_default_loss_scaler(const tl_loss_scaler *scaler) {
    tl_loss_scaler filled;
    tli_zero(&filled, sizeof filled);
    if (scaler) filled = *scaler;
    filled.least = tli_positive_or(filled.least, 1.0f);
    filled.most = tli_positive_or(filled.most, 16777216.0f);
    if (filled.most < filled.least) filled.most = filled.least;
    filled.scale = tli_positive_or(filled.scale, 65536.0f);
    if (filled.scale < filled.least) filled.scale = filled.least;
    if (filled.scale > filled.most) filled.scale = filled.most;
    if (!filled.growth_interval) filled.growth_interval = 2000;
    return filled;
}

TLI_IMPL int tl_next_loss_scale(tl_loss_scaler *scaler, int overflowed) {
    TL_ASSERT(scaler);
    *scaler = tl_default_loss_scaler(scaler);
    if (overflowed) {
        scaler->scale = scaler->scale * 0.5f < scaler->least ? scaler->least : scaler->scale * 0.5f;
        scaler->clean_count = 0;
        scaler->skipped_count++;
        return 0;
    }
    if (++scaler->clean_count >= scaler->growth_interval) {
        scaler->scale = scaler->scale > scaler->most * 0.5f ? scaler->most : scaler->scale * 2.0f;
        scaler->clean_count = 0;
    }
    return 1;
}

TLI_IMPL int tl_has_overflow(const float *data, uint64_t count) {
    uint64_t i;
    TL_ASSERT(data || !count);
    for (i = 0; i < count; i++)
        if (!tli_is_finite_f32(data[i])) return 1;
    return 0;
}
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

