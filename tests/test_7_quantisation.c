// [7] PRECISION: formats, schemes, quantisation, requantisation, guards for 16-bit floats.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"

#include <math.h>


// -- what the tests share --

static tl_quantization found(tl_range_rule rule, float least, float most, int32_t low, int32_t high) {
    tl_quantization q;
    tl_env env = {0};
    if (tl_find_quantization(&env, rule, least, most, low, high, &q)) fail_msg("%s", env.error.text);
    if (tli_quantization_broken(&q)) fail_msg("%s", tli_name_rule(tli_quantization_broken(&q)));
    return q;
}

// A number of any size and sign, not infinite.
static float random_float(tl_random *random) {
    for (;;) {
        float value = float_of_bits((uint32_t)tl_next_random(random));
        if (value - value == 0) return value;
    }
}

static void expect_error(const tl_env *env, tl_result result, tl_result code, const char *text) {
    assert_string_equal(env->error.text, text);
    assert_int_equal(result, code);
    assert_int_equal(env->error.code, code);
}

// -- formats and schemes --

static void formats_and_schemes_have_names_that_parse(void **state) {
    int i;
    (void)state;
    for (i = 0; i < TL_FORMAT_COUNT; i++) {
        tl_format format = TL_FORMAT_COUNT;
        assert_true(tl_parse_format(tl_name_format((tl_format)i), &format));
        assert_int_equal(format, i);
    }
    for (i = 0; i < TL_SCHEME_COUNT; i++) {
        tl_scheme scheme = TL_SCHEME_COUNT;
        assert_true(tl_parse_scheme(tl_name_scheme((tl_scheme)i), &scheme));
        assert_int_equal(scheme, i);
        assert_true(tl_find_scheme_format((tl_scheme)i) < TL_FORMAT_COUNT);
    }
    for (i = 0; i < TL_RANGE_COUNT; i++) assert_string_not_equal(tl_name_range_rule((tl_range_rule)i), "?");
    assert_string_equal(tl_name_scheme(TL_SCHEME_W8A16), "w8a16");
    assert_int_equal(tl_find_scheme_format(TL_SCHEME_W8A16), TL_FORMAT_I16);
    assert_int_equal(tl_find_scheme_format(TL_SCHEME_DYNAMIC), TL_FORMAT_F32);
    assert_string_equal(tl_name_scheme(TL_SCHEME_W4A8), "w4a8");
    assert_int_equal(tl_find_scheme_format(TL_SCHEME_W4A8), TL_FORMAT_I8);
}

static void unknown_names_and_values_are_told(void **state) {
    tl_format format = TL_FORMAT_I8;
    tl_scheme scheme = TL_SCHEME_I8;
    (void)state;
    assert_false(tl_parse_format("F32", &format));
    assert_false(tl_parse_scheme("i8 ", &scheme));
    assert_int_equal(format, 0);
    assert_int_equal(scheme, 0);
    assert_string_equal(tl_name_format(TL_FORMAT_COUNT), "?");
    assert_string_equal(tl_name_scheme((tl_scheme)-1), "?");
    assert_string_equal(tl_name_range_rule((tl_range_rule)77), "?");
    assert_int_equal(tl_find_scheme_format(TL_SCHEME_COUNT), TL_FORMAT_COUNT);
    assert_int_equal(tl_find_scheme_format((tl_scheme)-1), TL_FORMAT_COUNT);
}

static void bytes_of_a_format_count_a_tail_as_an_element(void **state) {
    (void)state;
    assert_int_equal(tl_find_format_bytes(TL_FORMAT_F32, 10), 10);
    assert_int_equal(tl_find_format_bytes(TL_FORMAT_F16, 10), 6);
    assert_int_equal(tl_find_format_bytes(TL_FORMAT_BF16, 8), 4);
    assert_int_equal(tl_find_format_bytes(TL_FORMAT_I16, 9), 6);
    assert_int_equal(tl_find_format_bytes(TL_FORMAT_I8, 9), 3);
    assert_int_equal(tl_find_format_bytes(TL_FORMAT_I8, 0), 0);
    assert_true(tl_find_format_bytes(TL_FORMAT_F16, UINT64_MAX) == UINT64_C(1) << 63);
    assert_true(tl_find_format_bytes(TL_FORMAT_F32, UINT64_MAX) == UINT64_MAX);
    assert_int_equal(tl_find_format_bytes(TL_FORMAT_COUNT, 10), 10);
    assert_int_equal(tli_find_weight_bytes(TL_SCHEME_W8A16, 400), 100);
    assert_int_equal(tli_find_weight_bytes(TL_SCHEME_I16, 400), 200);
    assert_int_equal(tli_find_weight_bytes(TL_SCHEME_FAKE, 400), 400);
    assert_int_equal(tli_find_weight_bytes((tl_scheme)-3, 400), 400);
    assert_int_equal(tli_find_weight_bytes(TL_SCHEME_W4A8, 400), 50);
    assert_int_equal(tli_find_weight_bytes(TL_SCHEME_W4A8, 33), 5);
    assert_int_equal(tli_find_weight_bytes(TL_SCHEME_W4A8, 0), 0);
    assert_true(tli_find_weight_bytes(TL_SCHEME_W4A8, UINT64_MAX) == UINT64_C(1) << 61);
    assert_true(tli_find_weight_bytes(TL_SCHEME_I16, UINT64_MAX) == UINT64_C(1) << 63);
}

// -- the rules --

static void the_rules_divide_by_what_they_are_named_after(void **state) {
    tl_quantization q;
    (void)state;
    q = found(TL_RANGE_AFFINE, -1, 3, 0, 255);
    assert_true(q.scale == 4.0f / 255.0f && q.zero_point == 64 && q.low == 0 && q.high == 255);
    q = found(TL_RANGE_HALF, -1, 3, -128, 127);
    assert_true(q.scale == 3.0f / 127.5f && q.zero_point == 0 && q.low == -128);
    q = found(TL_RANGE_HALF, -1, 3, 0, 255);
    assert_true(q.scale == 3.0f / 127.5f && q.zero_point == 128 && q.low == 0);
    q = found(TL_RANGE_NARROW, -4, 3, -128, 127);
    assert_true(q.scale == 4.0f / 127.0f && q.zero_point == 0 && q.low == -127 && q.high == 127);
    q = found(TL_RANGE_WIDE, -4, 3, -128, 127);
    assert_true(q.scale == 4.0f / 127.0f && q.zero_point == 0 && q.low == -128 && q.high == 127);
    q = found(TL_RANGE_WIDE, 0, 3, 0, 255);
    assert_true(q.scale == 3.0f / 255.0f && q.zero_point == 0);
}

static void a_range_on_one_side_of_zero_is_drawn_to_it(void **state) {
    tl_quantization q, drawn;
    int rule;
    (void)state;
    for (rule = 0; rule < TL_RANGE_COUNT; rule++) {
        q = found((tl_range_rule)rule, 2, 3, -128, 127);
        drawn = found((tl_range_rule)rule, 0, 3, -128, 127);
        assert_memory_equal(&q, &drawn, sizeof q);
        q = found((tl_range_rule)rule, -3, -2, -128, 127);
        drawn = found((tl_range_rule)rule, -3, 0, -128, 127);
        assert_memory_equal(&q, &drawn, sizeof q);
    }
    assert_int_equal(found(TL_RANGE_AFFINE, 2, 3, -128, 127).zero_point, -128);
    assert_int_equal(found(TL_RANGE_AFFINE, -3, -2, -128, 127).zero_point, 127);
}

static void scales_have_a_least_value(void **state) {
    const float smallest = float_of_bits(0x34000000u), normal = float_of_bits(0x00800000u);
    int rule;
    (void)state;
    for (rule = 0; rule < TL_RANGE_COUNT; rule++)
        assert_true(found((tl_range_rule)rule, 0, 0, -128, 127).scale == smallest);
    assert_true(found(TL_RANGE_AFFINE, -1e-6f, 1e-6f, -128, 127).scale == smallest);
    assert_true(found(TL_RANGE_HALF, -1e-6f, 1e-6f, -128, 127).scale == smallest);
    assert_true(found(TL_RANGE_NARROW, -1e-6f, 1e-6f, -127, 127).scale == 1e-6f / 127.0f);
    assert_true(found(TL_RANGE_WIDE, 0, float_of_bits(1), -128, 127).scale == normal);
}

static void zero_is_exact_under_every_rule(void **state) {
    static const int32_t bounds[][2] = {{-128, 127}, {-127, 127}, {-32768, 32767}, {-8, 7}, {-1, 1}};
    tl_random random = {1};
    tl_env env = {0};
    int i, rule;
    (void)state;
    for (i = 0; i < scaled(20000); i++) {
        float a = random_float(&random) * 1e-3f, b = random_float(&random) * 1e-3f;
        const int32_t *bound = bounds[i % 5];
        for (rule = 0; rule < TL_RANGE_COUNT; rule++) {
            tl_quantization q;
            int16_t integer;
            float zero = 0, back;
            if (rule == TL_RANGE_NARROW && bound[0] > -bound[1]) continue;
            q = found((tl_range_rule)rule, a < b ? a : b, a < b ? b : a, bound[0], bound[1]);
            assert_int_equal(tl_quantize(&env, &q, 1, 1, TL_FORMAT_I16, &zero, &integer, 1), TL_OK);
            assert_int_equal(integer, q.zero_point);
            assert_int_equal(tl_dequantize(&env, &q, 1, 1, TL_FORMAT_I16, &integer, &back, 1), TL_OK);
            assert_true(back == 0);
        }
    }
}

static void what_is_no_range_is_refused(void **state) {
    static const struct { int rule; float least, most; int32_t low, high; const char *text; } wrong[] = {
        {4, 0, 1, 0, 255, "rule: no such rule"},
        {-1, 0, 1, 0, 255, "rule: no such rule"},
        {0, NAN, 1, 0, 255, "least: must be finite"},
        {0, -INFINITY, 1, 0, 255, "least: must be finite"},
        {1, 0, NAN, 0, 255, "most: must be finite"},
        {2, 0, INFINITY, 0, 255, "most: must be finite"},
        {0, 1, 0.5f, 0, 255, "least: must be <= most"},
        {0, 0, 1, -32769, 255, "low, high: must be within -32768 .. 65535"},
        {0, 0, 1, 0, 65536, "low, high: must be within -32768 .. 65535"},
        {0, 0, 1, 5, 5, "low: must be < high"},
        {0, 0, 1, INT32_MIN, INT32_MAX, "low, high: must be within -32768 .. 65535"},
        {0, 0, 1, INT32_MAX, INT32_MIN, "low: must be < high"},
        {0, 0, 1, -32768, 32768, "low, high: must be of at most 16 bits"},
        {2, 0, 1, 0, 255, "low: must be <= -high under narrow"},
        {2, 0, 1, -10, -5, "low: must be <= -high under narrow"},
        {3, 0, 1, 1, 255, "low, high: must hold 0 under wide"},
        {3, 0, 1, -5, 0, "low, high: must hold 0 under wide"},
        {1, 0, 1, -5, 0, "high: must be > 0 under half"},
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tl_quantization q = quantization_of(1, 2, 3, 4);
        tl_env env = {0};
        char text[200];
        tl_result result = tl_find_quantization(&env, (tl_range_rule)wrong[i].rule, wrong[i].least, wrong[i].most,
                                                wrong[i].low, wrong[i].high, &q);
        snprintf(text, sizeof text, "tl_find_quantization: %s", wrong[i].text);
        expect_error(&env, result, TL_ERROR_INVALID_ARG, text);
        assert_true(is_zero(&q, sizeof q));
    }
}

static void a_range_wider_than_f32_is_an_overflow_for_affine_alone(void **state) {
    const float most = float_of_bits(0x7F7FFFFFu);
    tl_quantization q = quantization_of(1, 2, 3, 4);
    tl_env env = {0};
    tl_result result = tl_find_quantization(&env, TL_RANGE_AFFINE, -most, most, -128, 127, &q);
    (void)state;
    expect_error(&env, result, TL_ERROR_OVERFLOW, "tl_find_quantization: most: most - least does not fit f32");
    assert_true(is_zero(&q, sizeof q));
    assert_true(found(TL_RANGE_NARROW, -most, most, -127, 127).scale == most / 127.0f);
    assert_true(found(TL_RANGE_AFFINE, most, most, -127, 127).scale == most / 254.0f);
}

static void what_is_no_quantization_is_refused(void **state) {
    static const struct { float scale; int32_t zero, low, high; int rounding; const char *text; } wrong[] = {
        {0, 0, -1, 1, 0, "scale: must be finite and > 0"},
        {-1, 0, -1, 1, 0, "scale: must be finite and > 0"},
        {NAN, 0, -1, 1, 0, "scale: must be finite and > 0"},
        {INFINITY, 0, -1, 1, 0, "scale: must be finite and > 0"},
        {1, 0, 1, 1, 0, "low: must be < high"},
        {1, 2, -1, 1, 0, "zero_point: must be within low .. high"},
        {1, -2, -1, 1, 0, "zero_point: must be within low .. high"},
        {1, 0, -1, 1, 2, "rounding: no such rounding"},
        {1, 0, -1, 1, -1, "rounding: no such rounding"},
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tl_quantization q = quantization_of(wrong[i].scale, wrong[i].zero, wrong[i].low, wrong[i].high);
        tl_env env = {0};
        char text[200];
        tl_result result;
        float value = 1, back = 7;
        int16_t integer = 7;
        q.rounding = (tl_rounding)wrong[i].rounding;
        result = tl_quantize(&env, &q, 1, 1, TL_FORMAT_I16, &value, &integer, 1);
        snprintf(text, sizeof text, "tl_quantize: quantizations[0]: %s", wrong[i].text);
        expect_error(&env, result, TL_ERROR_INVALID_ARG, text);
        result = tl_dequantize(&env, &q, 1, 1, TL_FORMAT_I16, &integer, &back, 1);
        snprintf(text, sizeof text, "tl_dequantize: quantizations[0]: %s", wrong[i].text);
        expect_error(&env, result, TL_ERROR_INVALID_ARG, text);
        assert_true(integer == 7 && back == 7);
    }
}

// -- quantise --

static void numbers_round_as_libm_does(void **state) {
    tl_random random = {2};
    tl_env env = {0};
    int i;
    (void)state;
    for (i = 0; i < scaled(200000); i++) {
        tl_quantization q = quantization_of(float_of_bits(0x30000000u + (uint32_t)tl_next_random_below(&random, 0x20000000u)),
                                            (int32_t)tl_next_random_below(&random, 256) - 128, -128, 127);
        int64_t half = (int64_t)tl_next_random_below(&random, 800) - 400;
        float value = i % 2 ? random_float(&random) : (float)half * 0.5f * q.scale;
        double exact = value / q.scale, even, away;
        int8_t integer;
        if (exact > 1e6) exact = 1e6;
        if (exact < -1e6) exact = -1e6;
        even = fmin(fmax(nearbyint(exact) + q.zero_point, -128), 127);
        away = fmin(fmax(round(exact) + q.zero_point, -128), 127);
        assert_int_equal(tl_quantize(&env, &q, 1, 1, TL_FORMAT_I8, &value, &integer, 1), TL_OK);
        assert_int_equal(integer, (int)even);
        q.rounding = TL_ROUNDING_AWAY;
        assert_int_equal(tl_quantize(&env, &q, 1, 1, TL_FORMAT_I8, &value, &integer, 1), TL_OK);
        assert_int_equal(integer, (int)away);
    }
}

static void half_way_goes_where_the_rounding_says(void **state) {
    static const float values[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.49999997f, -0.49999997f};
    static const int8_t even[] = {0, 2, 2, 0, -2, -2, 0, 0}, away[] = {1, 2, 3, -1, -2, -3, 0, 0};
    tl_quantization q = quantization_of(1, 0, -128, 127);
    tl_env env = {0};
    int8_t integers[8];
    (void)state;
    assert_int_equal(tl_quantize(&env, &q, 1, 1, TL_FORMAT_I8, values, integers, 8), TL_OK);
    assert_memory_equal(integers, even, 8);
    q.rounding = TL_ROUNDING_AWAY;
    assert_int_equal(tl_quantize(&env, &q, 1, 1, TL_FORMAT_I8, values, integers, 8), TL_OK);
    assert_memory_equal(integers, away, 8);
}

static void integers_come_back_as_themselves(void **state) {
    static const struct { tl_format format; int32_t low, high, zero; } kinds[] = {
        {TL_FORMAT_I8, -128, 127, 3}, {TL_FORMAT_I8, 0, 255, 200}, {TL_FORMAT_I8, -127, 127, 0}, {TL_FORMAT_I8, 0, 15, 0},
        {TL_FORMAT_I16, -32768, 32767, -5}, {TL_FORMAT_I16, 0, 65535, 40000}, {TL_FORMAT_I16, -8, 7, 0}};
    tl_env env = {0};
    size_t k;
    (void)state;
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        tl_quantization q = quantization_of(0.37f, kinds[k].zero, kinds[k].low, kinds[k].high);
        int32_t i;
        for (i = q.low; i <= q.high; i++) {
            float value = (float)(i - q.zero_point) * q.scale, back;
            int8_t byte = 0;
            int16_t word = 0;
            void *to = kinds[k].format == TL_FORMAT_I8 ? (void *)&byte : (void *)&word;
            int32_t stored;
            assert_int_equal(tl_quantize(&env, &q, 1, 1, kinds[k].format, &value, to, 1), TL_OK);
            stored = kinds[k].format == TL_FORMAT_I8 ? (q.low < 0 ? byte : (uint8_t)byte) : (q.low < 0 ? word : (uint16_t)word);
            assert_int_equal(stored, i);
            assert_int_equal(tl_dequantize(&env, &q, 1, 1, kinds[k].format, to, &back, 1), TL_OK);
            assert_true(back == value);
        }
    }
}

static void what_is_no_number_becomes_zero_and_infinities_the_bounds(void **state) {
    static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    static const int8_t expected[] = {7, 100, -100, 100, -100};
    tl_quantization q = quantization_of(1e-38f, 7, -100, 100);
    tl_env env = {0};
    int8_t integers[5];
    float back[5];
    int i;
    (void)state;
    assert_int_equal(tl_quantize(&env, &q, 1, 1, TL_FORMAT_I8, values, integers, 5), TL_OK);
    assert_memory_equal(integers, expected, 5);
    q.scale = 3e38f;
    assert_int_equal(tl_dequantize(&env, &q, 1, 1, TL_FORMAT_I8, integers, back, 5), TL_OK);
    assert_true(back[0] == 0);
    for (i = 1; i < 5; i++) assert_int_equal(bits_of_float(back[i]), i % 2 ? 0x7F7FFFFFu : 0xFF7FFFFFu);
}

static void channels_are_those_of_the_axis(void **state) {
    enum { CHANNELS = 3 };
    static const float scales[CHANNELS] = {1, 0.5f, 0.25f};
    tl_quantization q[CHANNELS];
    float values[50], back[50];
    int8_t integers[50];
    tl_env env = {0};
    uint64_t inner, count, i;
    (void)state;
    for (i = 0; i < CHANNELS; i++) q[i] = quantization_of(scales[i], (int32_t)i, -128, 127);
    for (i = 0; i < 50; i++) values[i] = (float)i - 20;
    for (inner = 1; inner < 60; inner++)
        for (count = 0; count <= 50; count++) {
            memset(integers, 99, sizeof integers);
            assert_int_equal(tl_quantize(&env, q, CHANNELS, inner, TL_FORMAT_I8, values, integers, count), TL_OK);
            assert_int_equal(tl_dequantize(&env, q, CHANNELS, inner, TL_FORMAT_I8, integers, back, count), TL_OK);
            for (i = 0; i < 50; i++) {
                uint64_t channel = i / inner % CHANNELS;
                float whole = values[i] / scales[channel] + (float)channel;
                if (whole > 127) whole = 127;
                assert_int_equal(integers[i], i < count ? (int)whole : 99);
                if (i < count) assert_true(back[i] == (whole - (float)channel) * scales[channel]);
            }
        }
}

static void what_cannot_be_quantised_is_refused(void **state) {
    tl_quantization q[2];
    tl_env env = {0};
    float value = 1;
    int16_t integer = 7;
    (void)state;
    q[0] = quantization_of(1, 0, -128, 127);
    q[1] = quantization_of(1, 0, -128, 128);
    expect_error(&env, tl_quantize(&env, q, 0, 1, TL_FORMAT_I8, &value, &integer, 1), TL_ERROR_INVALID_ARG,
                 "tl_quantize: channel_count: must be > 0");
    expect_error(&env, tl_quantize(&env, q, 1, 0, TL_FORMAT_I8, &value, &integer, 1), TL_ERROR_INVALID_ARG,
                 "tl_quantize: inner_count: must be > 0");
    expect_error(&env, tl_dequantize(&env, q, 1, 1, TL_FORMAT_F16, &integer, &value, 1), TL_ERROR_INVALID_ARG,
                 "tl_dequantize: format: must be i8 or i16");
    expect_error(&env, tl_quantize(&env, NULL, 1, 1, TL_FORMAT_I8, &value, &integer, 1), TL_ERROR_INVALID_ARG,
                 "tl_quantize: quantizations: must not be NULL");
    expect_error(&env, tl_quantize(&env, q, 1, 1, TL_FORMAT_I8, NULL, &integer, 1), TL_ERROR_INVALID_ARG,
                 "tl_quantize: from, to: must not be NULL");
    expect_error(&env, tl_dequantize(&env, q, 1, 1, TL_FORMAT_I8, &integer, NULL, 1), TL_ERROR_INVALID_ARG,
                 "tl_dequantize: from, to: must not be NULL");
    expect_error(&env, tl_quantize(&env, q, 2, 1, TL_FORMAT_I8, &value, &integer, 1), TL_ERROR_INVALID_ARG,
                 "tl_quantize: quantizations[1]: low, high: are more than i8 holds");
    q[1] = quantization_of(1, 0, 0, 256);
    expect_error(&env, tl_quantize(&env, q, 2, 1, TL_FORMAT_I8, &value, &integer, 1), TL_ERROR_INVALID_ARG,
                 "tl_quantize: quantizations[1]: low, high: are more than i8 holds");
    q[1] = quantization_of(1, 0, -1, 32768);
    expect_error(&env, tl_quantize(&env, q, 2, 1, TL_FORMAT_I16, &value, &integer, 1), TL_ERROR_INVALID_ARG,
                 "tl_quantize: quantizations[1]: low, high: are more than i16 holds");
    assert_int_equal(integer, 7);
    assert_int_equal(tl_quantize(&env, q, 1, 1, TL_FORMAT_I8, NULL, NULL, 0), TL_OK);
    assert_int_equal(tl_dequantize(&env, q, 1, 1, TL_FORMAT_I8, NULL, NULL, 0), TL_OK);
}

// -- the node tests of ONNX --

static void onnx_quantizelinear(void **state) {
    static const float x[] = {0, 2, 3, 1000, -254, -1000};
    static const uint8_t y[] = {128, 129, 130, 255, 1, 0};
    tl_quantization q = quantization_of(2, 128, 0, 255);
    uint8_t integers[6];
    (void)state;
    assert_int_equal(tl_quantize(NULL, &q, 1, 1, TL_FORMAT_I8, x, integers, 6), TL_OK);
    assert_memory_equal(integers, y, 6);
}

static void onnx_dynamicquantizelinear(void **state) {
    static const float x[] = {0, 2, -3, -2.5f, 1.34f, 0.5f};
    static const uint8_t y[] = {153, 255, 0, 26, 221, 179};
    tl_quantization q;
    uint8_t integers[6];
    (void)state;
    assert_int_equal(tl_quantize_dynamic(NULL, x, integers, 6, &q), TL_OK);
    assert_memory_equal(integers, y, 6);
    assert_true(q.scale == 0.0196078438f && q.zero_point == 153 && q.low == 0 && q.high == 255);
}

static void onnx_dynamicquantizelinear_max_adjusted(void **state) {
    static const float x[] = {-1.0f, -2.1f, -1.3f, -2.5f, -3.34f, -4.0f};
    static const uint8_t y[] = {191, 121, 172, 96, 42, 0};
    tl_quantization q;
    uint8_t integers[6];
    (void)state;
    assert_int_equal(tl_quantize_dynamic(NULL, x, integers, 6, &q), TL_OK);
    assert_memory_equal(integers, y, 6);
    assert_true(q.scale == 0.0156862754f && q.zero_point == 255);
}

static void onnx_dynamicquantizelinear_min_adjusted(void **state) {
    static const float x[] = {1, 2.1f, 1.3f, 2.5f, 3.34f, 4.0f, 1.5f, 2.6f, 3.9f, 4.0f, 3.0f, 2.345f};
    static const uint8_t y[] = {64, 134, 83, 159, 213, 255, 96, 166, 249, 255, 191, 149};
    tl_quantization q;
    uint8_t integers[12];
    (void)state;
    assert_int_equal(tl_quantize_dynamic(NULL, x, integers, 12, &q), TL_OK);
    assert_memory_equal(integers, y, 12);
    assert_true(q.scale == 0.0156862754f && q.zero_point == 0);
}

static void dynamic_quantisation_takes_small_data_and_refuses_none(void **state) {
    const float most = float_of_bits(0x7F7FFFFFu);
    float small[2] = {-1e-9f, 1e-9f}, zeros[2] = {0, 0}, wrong[2] = {1, NAN}, wide[2];
    tl_quantization q;
    uint8_t integers[2] = {9, 9};
    tl_env env = {0};
    (void)state;
    wide[0] = -most;
    wide[1] = most;
    expect_error(&env, tl_quantize_dynamic(&env, wrong, integers, 2, &q), TL_ERROR_INVALID_ARG,
                 "tl_quantize_dynamic: from: a value is not finite");
    assert_true(is_zero(&q, sizeof q));
    expect_error(&env, tl_quantize_dynamic(&env, wrong, integers, 0, &q), TL_ERROR_INVALID_ARG,
                 "tl_quantize_dynamic: count: must be > 0");
    expect_error(&env, tl_quantize_dynamic(&env, NULL, integers, 2, &q), TL_ERROR_INVALID_ARG,
                 "tl_quantize_dynamic: from, to: must not be NULL");
    expect_error(&env, tl_quantize_dynamic(&env, wide, integers, 2, &q), TL_ERROR_OVERFLOW,
                 "tl_quantize_dynamic: from: most - least does not fit f32");
    assert_true(integers[0] == 9 && integers[1] == 9);
    assert_int_equal(tl_quantize_dynamic(&env, small, integers, 2, &q), TL_OK);
    assert_true(q.scale == 2e-9f / 255.0f && integers[0] == 0 && integers[1] == 255);
    assert_int_equal(tl_quantize_dynamic(&env, zeros, integers, 2, &q), TL_OK);
    assert_true(q.scale == float_of_bits(0x34000000u) && integers[0] == 0 && integers[1] == 0);
}

// -- requantise --

static void a_multiplier_is_the_nearest_to_the_quotient(void **state) {
    tl_random random = {3};
    tl_env env = {0};
    int i;
    (void)state;
    for (i = 0; i < scaled(100000); i++) {
        float a = fabsf(random_float(&random)), b = fabsf(random_float(&random)), c = fabsf(random_float(&random));
        tl_multiplier m;
        int ea, eb, ec;
        uint64_t fa, fb, fc, low;
        double exact;
        if (a == 0 || b == 0 || c == 0) continue;
        assert_int_equal(tl_find_multiplier(&env, a, b, c, &m), TL_OK);
        if (!m.multiplier) continue;  // below 2^-32
        assert_true(m.multiplier >= 1 << 30);
        fa = (uint64_t)ldexp(frexp((double)a, &ea), 24);
        fb = (uint64_t)ldexp(frexp((double)b, &eb), 24);
        fc = (uint64_t)ldexp(frexp((double)c, &ec), 24);
        exact = (double)(fa * fb) / (double)fc;  // 2^23 .. 2^25
        exact = ldexp(exact, ea + eb - ec - 24 - m.exponent + 31);
        assert_true(fabs(exact - m.multiplier) <= 0.5 + 1e-6);
        // |multiplier fc 2^s - fa fb 2^t| <= fc 2^s / 2, all in integers
        low = (uint64_t)(ea + eb - ec - 24 - m.exponent + 31);
        assert_true(low <= 8);
        low = (fa * fb << low) * 2;
        assert_true(low + fc >= 2 * fc * (uint64_t)m.multiplier);
        assert_true(low <= fc * (2 * (uint64_t)m.multiplier + 1) || m.multiplier == 1 << 30);
    }
}

static void multipliers_of_known_numbers(void **state) {
    tl_multiplier m;
    (void)state;
    assert_int_equal(tl_find_multiplier(NULL, 1, 1, 1, &m), TL_OK);
    assert_true(m.multiplier == 1 << 30 && m.exponent == 1);
    assert_int_equal(tl_find_multiplier(NULL, 0.5f, 0.5f, 1, &m), TL_OK);
    assert_true(m.multiplier == 1 << 30 && m.exponent == -1);
    assert_int_equal(tl_find_multiplier(NULL, 1, 1, 3, &m), TL_OK);
    assert_true(m.multiplier == 1431655765 && m.exponent == -1);
    assert_int_equal(tl_find_multiplier(NULL, float_of_bits(1), float_of_bits(1), float_of_bits(0x7F7FFFFFu), &m), TL_OK);
    assert_true(m.multiplier == 0 && m.exponent == 0);
    assert_int_equal(tl_find_multiplier(NULL, float_of_bits(0x7F7FFFFFu), float_of_bits(0x7F7FFFFFu), float_of_bits(1), &m), TL_OK);
    assert_true(m.exponent == 405 && m.multiplier == 2147483392);
}

// QuantizeMultiplier of TensorFlow Lite, in doubles: fraction and exponent by frexp, rounded to 31 bits, flushed.
static tl_multiplier reference_multiplier(float a, float b, float c) {
    tl_multiplier m;
    int exponent;
    double fraction = frexp((double)a * (double)b / (double)c, &exponent);
    int64_t rounded = (int64_t)floor(ldexp(fraction, 31) + 0.5);
    if (rounded == INT64_C(1) << 31) { rounded /= 2; exponent++; }
    if (exponent < -31) rounded = exponent = 0;
    m.multiplier = (int32_t)rounded;
    m.exponent = exponent;
    return m;
}

static void expect_multiplier(float a, float b, float c, int32_t multiplier, int32_t exponent) {
    tl_multiplier m, reference = reference_multiplier(a, b, c);
    assert_int_equal(tl_find_multiplier(NULL, a, b, c, &m), TL_OK);
    assert_int_equal(m.multiplier, multiplier);
    assert_int_equal(m.exponent, exponent);
    assert_true(reference.multiplier == multiplier && reference.exponent == exponent);
}

static void multipliers_below_2_to_the_minus_32_are_flushed_to_0(void **state) {
    const tl_quantization to = { 1, 3, -128, 127, TL_ROUNDING_EVEN };
    const float half = ldexpf(1, -16), below = nextafterf(half, 0), above = nextafterf(half, 1);
    tl_random random = { 5 };
    int i, flushed = 0, kept = 0;
    (void)state;
    expect_multiplier(half, half, 1, 1 << 30, -31);
    expect_multiplier(half, above, 1, (1 << 30) + (1 << 7), -31);
    expect_multiplier(half, below, 1, 0, 0);
    expect_multiplier(half, half, nextafterf(1, 2), 0, 0);
    expect_multiplier(half, half, nextafterf(1, 0), (1 << 30) + (1 << 6), -31);
    expect_multiplier(ldexpf(1, -100), ldexpf(1, -80), ldexpf(1, -148), 1 << 30, -31);
    expect_multiplier(ldexpf(1, -100), ldexpf(1, -80), ldexpf(1, -147), 0, 0);
    // 2^-32 (1 - 2^-46): rounding carries it to 2^-32
    expect_multiplier(ldexpf(1, -32), 1 - ldexpf(1, -23), 1 - ldexpf(1, -23), 1 << 30, -31);
    expect_multiplier(ldexpf(1 + ldexpf(1, -23), -32), 1 - ldexpf(1, -23), 1, 1 << 30, -31);
    for (i = 0; i < 100000; i++) {
        float a = ldexpf((float)(1 + tl_next_random_ratio(&random)), -20), b = (float)(1 + tl_next_random_ratio(&random));
        float c = ldexpf((float)(1 + tl_next_random_ratio(&random)), (int)tl_next_random_below(&random, 5) + 9);
        int32_t sum = (int32_t)(tl_next_random(&random) >> 32);
        tl_multiplier m, reference = reference_multiplier(a, b, c);
        assert_int_equal(tl_find_multiplier(NULL, a, b, c, &m), TL_OK);
        assert_int_equal(m.exponent, reference.exponent);
        assert_true(abs(m.multiplier - reference.multiplier) <= 1);  // the reference rounds the quotient once more
        assert_true(!m.multiplier == !reference.multiplier);
        if (m.multiplier) { kept++; continue; }
        flushed++;
        assert_int_equal(tl_requantize(sum, m, &to), 3);
    }
    assert_true(flushed > 10000 && kept > 10000);
}

static void multipliers_of_no_scale_are_refused(void **state) {
    static const float wrong[] = {0, -1, NAN, INFINITY};
    tl_env env = {0};
    tl_multiplier m;
    int i;
    (void)state;
    for (i = 0; i < 4; i++) {
        expect_error(&env, tl_find_multiplier(&env, wrong[i], 1, 1, &m), TL_ERROR_INVALID_ARG,
                     "tl_find_multiplier: a: must be finite and > 0");
        expect_error(&env, tl_find_multiplier(&env, 1, wrong[i], 1, &m), TL_ERROR_INVALID_ARG,
                     "tl_find_multiplier: b: must be finite and > 0");
        expect_error(&env, tl_find_multiplier(&env, 1, 1, wrong[i], &m), TL_ERROR_INVALID_ARG,
                     "tl_find_multiplier: c: must be finite and > 0");
        assert_true(is_zero(&m, sizeof m));
    }
}

// MultiplyByQuantizedMultiplier of TensorFlow Lite, on gemmlowp's two functions, word by word.
static int32_t doubling_high_product(int32_t a, int32_t b) {
    int overflow = a == b && a == INT32_MIN;
    int64_t product = (int64_t)a * b;
    int32_t nudge = product >= 0 ? (1 << 30) : (1 - (1 << 30));
    int32_t high = (int32_t)((product + nudge) / (INT64_C(1) << 31));
    return overflow ? INT32_MAX : high;
}

static int32_t divide_by_power(int32_t x, int exponent) {
    const int32_t mask = (int32_t)((INT64_C(1) << exponent) - 1);
    const int32_t remainder = x & mask;
    const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    int64_t down = x >= 0 ? x >> exponent : -((-(int64_t)x + mask) >> exponent);
    return (int32_t)(down + (remainder > threshold ? 1 : 0));
}

static int32_t reference_requantize(int32_t sum, int32_t multiplier, int shift) {
    int left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    return divide_by_power(doubling_high_product((int32_t)((int64_t)sum * (INT64_C(1) << left)), multiplier), right);
}

static void requantising_equals_the_reference_and_is_within_one_of_the_real_number(void **state) {
    const tl_quantization to = quantization_of(1, 0, -32768, 32767);
    tl_random random = {4};
    long exact = 0, all = 0;
    int i;
    (void)state;
    for (i = 0; i < scaled(1000000); i++) {
        tl_multiplier m;
        int32_t sum = (int32_t)(uint32_t)tl_next_random(&random) >> tl_next_random_below(&random, 31);
        int32_t expected, got;
        int64_t product, half, real;
        int shift;
        m.multiplier = (1 << 30) + (int32_t)tl_next_random_below(&random, 1 << 30);
        m.exponent = 8 - (int32_t)tl_next_random_below(&random, 40);
        if (i % 16 == 0) m.multiplier = 1 << 30;
        if (i % 64 == 0) sum = INT32_MIN;
        if (m.exponent > 0 && (sum > INT32_MAX >> m.exponent || sum < -(INT32_MAX >> m.exponent))) continue;
        got = tl_requantize(sum, m, &to);
        expected = reference_requantize(sum, m.multiplier, m.exponent);
        if (expected > 32767) expected = 32767;
        if (expected < -32768) expected = -32768;
        if (got != expected) fail_msg("%d x %d 2^(%d - 31): %d, reference %d", sum, m.multiplier, m.exponent, got, expected);
        product = (int64_t)sum * m.multiplier;
        shift = 31 - m.exponent;
        half = INT64_C(1) << (shift - 1);
        real = product < 0 ? -((half - product) >> shift) : (product + half) >> shift;
        if (real > 32767) real = 32767;
        if (real < -32768) real = -32768;
        assert_true(got - real <= 1 && real - got <= 1);
        exact += got == real;
        all++;
    }
    printf("requantised as the real number rounded once: %ld of %ld\n", exact, all);
    assert_true(exact * 100 >= all * 99 && exact < all);
}

static void requantising_adds_the_zero_point_and_stays_within_bounds(void **state) {
    tl_quantization to = quantization_of(1, 5, -128, 127);
    tl_multiplier one, m;
    (void)state;
    one.multiplier = 1 << 30;
    one.exponent = 1;
    assert_int_equal(tl_requantize(0, one, &to), 5);
    assert_int_equal(tl_requantize(100, one, &to), 105);
    assert_int_equal(tl_requantize(123, one, &to), 127);
    assert_int_equal(tl_requantize(-200, one, &to), -128);
    assert_int_equal(tl_requantize(INT32_MAX, one, &to), 127);
    assert_int_equal(tl_requantize(INT32_MIN, one, &to), -128);
    m = one;
    m.exponent = 400;  // far more than 32 bits hold
    assert_int_equal(tl_requantize(1, m, &to), 127);
    assert_int_equal(tl_requantize(-1, m, &to), -128);
    assert_int_equal(tl_requantize(0, m, &to), 5);
    m.exponent = INT32_MAX;
    assert_int_equal(tl_requantize(-7, m, &to), -128);
    m.exponent = -31;  // just below a half, which the first rounding makes a half
    assert_int_equal(tl_requantize(INT32_MAX, m, &to), 6);
    assert_int_equal(tl_requantize(INT32_MAX / 2, m, &to), 5);
    m.exponent = -40;
    assert_int_equal(tl_requantize(INT32_MIN, m, &to), 5);
    m.exponent = INT32_MIN;
    assert_int_equal(tl_requantize(INT32_MIN, m, &to), 5);
}

// A whole layer: the sum of integer products, requantised, against the same in double.
static void a_row_of_products_requantised_is_the_row_of_real_numbers(void **state) {
    enum { LENGTH = 64 };
    tl_random random = {5};
    tl_env env = {0};
    int trial, i;
    (void)state;
    for (trial = 0; trial < 2000; trial++) {
        float x[LENGTH], w[LENGTH];
        int8_t qx[LENGTH], qw[LENGTH];
        tl_quantization sx, sw, sy;
        tl_multiplier m;
        int32_t sum = 0;
        double real = 0;
        for (i = 0; i < LENGTH; i++) {
            x[i] = (float)tl_next_random_ratio(&random) * 4 - 1;
            w[i] = (float)tl_next_random_ratio(&random) * 2 - 1;
        }
        sx = found(TL_RANGE_AFFINE, -1, 3, -128, 127);
        sw = found(TL_RANGE_NARROW, -1, 1, -127, 127);
        sy = found(TL_RANGE_AFFINE, -20, 20, -128, 127);
        assert_int_equal(tl_quantize(&env, &sx, 1, 1, TL_FORMAT_I8, x, qx, LENGTH), TL_OK);
        assert_int_equal(tl_quantize(&env, &sw, 1, 1, TL_FORMAT_I8, w, qw, LENGTH), TL_OK);
        for (i = 0; i < LENGTH; i++) {
            sum += (qx[i] - sx.zero_point) * qw[i];
            real += (double)(qx[i] - sx.zero_point) * qw[i] * sx.scale * sw.scale;
        }
        assert_int_equal(tl_find_multiplier(&env, sx.scale, sw.scale, sy.scale, &m), TL_OK);
        real = fmin(fmax(real / sy.scale + sy.zero_point, -128), 127);
        assert_true(fabs(tl_requantize(sum, m, &sy) - real) <= 0.5 + 1e-3);
    }
}

// -- guards for 16-bit floats --

static void a_zero_loss_scaler_has_the_usual_numbers(void **state) {
    tl_loss_scaler s = tl_default_loss_scaler(NULL), zero;
    (void)state;
    assert_true(s.scale == 65536 && s.least == 1 && s.most == 16777216);
    assert_int_equal(s.growth_interval, 2000);
    memset(&zero, 0, sizeof zero);
    assert_int_equal(tl_next_loss_scale(&zero, 0), 1);
    s.clean_count = 1;
    assert_memory_equal(&zero, &s, sizeof s);
}

static void clean_steps_double_the_loss_scale_and_an_overflow_halves_it(void **state) {
    tl_loss_scaler s;
    int i;
    (void)state;
    memset(&s, 0, sizeof s);
    for (i = 0; i < 1999; i++) assert_int_equal(tl_next_loss_scale(&s, 0), 1);
    assert_true(s.scale == 65536);
    assert_int_equal(tl_next_loss_scale(&s, 0), 1);
    assert_true(s.scale == 131072 && s.clean_count == 0);
    for (i = 0; i < 1500; i++) tl_next_loss_scale(&s, 0);
    assert_int_equal(tl_next_loss_scale(&s, 1), 0);
    assert_true(s.scale == 65536 && s.clean_count == 0 && s.skipped_count == 1);
    for (i = 0; i < 1999; i++) tl_next_loss_scale(&s, 0);
    assert_true(s.scale == 65536);
    tl_next_loss_scale(&s, 0);
    assert_true(s.scale == 131072);
}

static void a_loss_scale_stays_within_its_limits(void **state) {
    tl_loss_scaler s;
    int i;
    (void)state;
    memset(&s, 0, sizeof s);
    s.growth_interval = 1;
    s.least = 4;
    s.most = 100;
    for (i = 0; i < 50; i++) assert_int_equal(tl_next_loss_scale(&s, 0), 1);
    assert_true(s.scale == 100);
    for (i = 0; i < 50; i++) assert_int_equal(tl_next_loss_scale(&s, 1), 0);
    assert_true(s.scale == 4 && s.skipped_count == 50);
    s.least = NAN;
    s.most = -1;
    s.scale = INFINITY;
    s = tl_default_loss_scaler(&s);
    assert_true(s.scale == 65536 && s.least == 1 && s.most == 16777216 && s.skipped_count == 50);
    s.least = 200;
    s.most = 100;
    s.scale = 3;
    s = tl_default_loss_scaler(&s);
    assert_true(s.scale == 200 && s.least == 200 && s.most == 200);
    s.most = float_of_bits(0x7F7FFFFFu);
    s.scale = 3e38f;
    for (i = 0; i < 3; i++) tl_next_loss_scale(&s, 0);
    assert_true(s.scale == s.most);
}

static void an_overflow_is_an_infinity_or_what_is_no_number(void **state) {
    float data[9] = {0, -0.0f, 3e38f, -3e38f, 1e-45f, 1, 2, 3, 4};
    int i;
    (void)state;
    assert_int_equal(tl_has_overflow(data, 9), 0);
    assert_int_equal(tl_has_overflow(NULL, 0), 0);
    for (i = 0; i < 9; i++) {
        static const float wrong[] = {NAN, INFINITY, -INFINITY};
        float kept = data[i];
        data[i] = wrong[i % 3];
        assert_int_equal(tl_has_overflow(data, 9), 1);
        assert_int_equal(tl_has_overflow(data, (uint64_t)i), 0);
        data[i] = kept;
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_and_schemes_have_names_that_parse),
        cmocka_unit_test(unknown_names_and_values_are_told),
        cmocka_unit_test(bytes_of_a_format_count_a_tail_as_an_element),
        cmocka_unit_test(the_rules_divide_by_what_they_are_named_after),
        cmocka_unit_test(a_range_on_one_side_of_zero_is_drawn_to_it),
        cmocka_unit_test(scales_have_a_least_value),
        cmocka_unit_test(zero_is_exact_under_every_rule),
        cmocka_unit_test(what_is_no_range_is_refused),
        cmocka_unit_test(a_range_wider_than_f32_is_an_overflow_for_affine_alone),
        cmocka_unit_test(what_is_no_quantization_is_refused),
        cmocka_unit_test(numbers_round_as_libm_does),
        cmocka_unit_test(half_way_goes_where_the_rounding_says),
        cmocka_unit_test(integers_come_back_as_themselves),
        cmocka_unit_test(what_is_no_number_becomes_zero_and_infinities_the_bounds),
        cmocka_unit_test(channels_are_those_of_the_axis),
        cmocka_unit_test(what_cannot_be_quantised_is_refused),
        cmocka_unit_test(onnx_quantizelinear),
        cmocka_unit_test(onnx_dynamicquantizelinear),
        cmocka_unit_test(onnx_dynamicquantizelinear_max_adjusted),
        cmocka_unit_test(onnx_dynamicquantizelinear_min_adjusted),
        cmocka_unit_test(dynamic_quantisation_takes_small_data_and_refuses_none),
        cmocka_unit_test(a_multiplier_is_the_nearest_to_the_quotient),
        cmocka_unit_test(multipliers_below_2_to_the_minus_32_are_flushed_to_0),
        cmocka_unit_test(multipliers_of_known_numbers),
        cmocka_unit_test(multipliers_of_no_scale_are_refused),
        cmocka_unit_test(requantising_equals_the_reference_and_is_within_one_of_the_real_number),
        cmocka_unit_test(requantising_adds_the_zero_point_and_stays_within_bounds),
        cmocka_unit_test(a_row_of_products_requantised_is_the_row_of_real_numbers),
        cmocka_unit_test(a_zero_loss_scaler_has_the_usual_numbers),
        cmocka_unit_test(clean_steps_double_the_loss_scale_and_an_overflow_halves_it),
        cmocka_unit_test(a_loss_scale_stays_within_its_limits),
        cmocka_unit_test(an_overflow_is_an_infinity_or_what_is_no_number),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
