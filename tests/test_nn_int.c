// Tests of examples/nn_int.h: every kernel against plain sums in 64 bits, to the last bit; and of
// examples/nn_image.h, whose kernels make the floats: plain sums, and gradients by differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "nn_int.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

// -- helpers --

// A block of exactly so many bytes: the sanitizers see a step outside.
static void *make(size_t count, size_t bytes) {
    void *block = calloc(count, bytes);
    assert_non_null(block);
    return block;
}

// What data look like: anything, or one end everywhere, or both ends by turns.
typedef enum fill { RANDOM, LOWEST, HIGHEST, TURNS, FILLS } fill;

static int32_t pick(fill f, uint64_t seed, uint64_t i, int32_t low, int32_t high) {
    switch (f) {
    case RANDOM:  return low + (int32_t)(nn_hash(seed, i) % (uint64_t)(high - low + 1));
    case LOWEST:  return low;
    case HIGHEST: return high;
    case TURNS:   return i & 1 ? low : high;
    case FILLS:   break;
    }
    return 0;
}

static int8_t *make8(size_t n, fill f, uint64_t seed, int32_t low) {
    int8_t *x = (int8_t *)make(n, 1);
    for (size_t i = 0; i < n; i++) x[i] = (int8_t)pick(f, seed, i, low, 127);
    return x;
}

static int16_t *make16(size_t n, fill f, uint64_t seed) {
    int16_t *x = (int16_t *)make(n, 2);
    for (size_t i = 0; i < n; i++) x[i] = (int16_t)pick(f, seed, i, -32767, 32767);
    return x;
}

// By the words of the definition: divisions, no shift.
static int32_t requantize_by_definition(int64_t sum, nn_int_factor f, nn_int_target to) {
    int64_t left = f.exponent > 0 ? f.exponent : 0, i, product, value, divisor = 1;
    for (i = 0; i < left; i++) {
        sum *= 2;
        if (sum > INT32_MAX) sum = INT32_MAX;
        if (sum < INT32_MIN) sum = INT32_MIN;
    }
    product = sum * f.multiplier;
    value = product >= 0 ? (product + 1073741824) / 2147483648
                         : (product + 1 - 1073741824) / 2147483648;
    for (i = f.exponent; i < 0 && divisor < ((int64_t)1 << 40); i++) divisor *= 2;
    value = value >= 0 ? (2 * value + divisor) / (2 * divisor)
                       : -((-2 * value + divisor) / (2 * divisor));
    value += to.zero;
    return (int32_t)(value < to.low ? to.low : value > to.high ? to.high : value);
}

// -- requantise --

static const nn_int_target words = { 0, -32767, 32767 };

static void requantize_equals_its_definition(void **state) {
    static const int32_t sums[] = { 0, 1, -1, 127, -128, 4095, -4097, 1 << 20, INT32_MAX, INT32_MIN,
                                    INT32_MAX - 1, INT32_MIN + 1, 1 << 30, -(1 << 30) };
    static const int32_t multipliers[] = { 1 << 30, INT32_MAX, 1518500250, (1 << 30) + 1 };
    (void)state;
    for (int32_t exponent = -40; exponent <= 12; exponent++) {
        for (size_t m = 0; m < COUNT(multipliers); m++) {
            nn_int_factor factor = { 0, 0 };
            factor.multiplier = multipliers[m];
            factor.exponent = exponent;
            for (size_t i = 0; i < 300; i++) {
                int32_t sum = i < COUNT(sums) ? sums[i] : (int32_t)(nn_hash(5, i) >> (32 + i % 31));
                if (i & 1 && sum > INT32_MIN) sum = -sum;
                assert_int_equal(nn_int_requantize(sum, factor, words),
                                 requantize_by_definition(sum, factor, words));
            }
        }
    }
}

static void requantize_equals_the_library(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        tl_multiplier multiplier;
        tl_quantization to;
        nn_int_factor factor;
        nn_int_target target;
        int32_t sum = (int32_t)(uint32_t)(nn_hash(6, 3 * i) >> 32);
        multiplier.multiplier = factor.multiplier = (1 << 30) + (int32_t)(nn_hash(6, 3 * i + 1) >> 34);
        multiplier.exponent = factor.exponent = (int32_t)(i % 81) - 40;
        to.scale = 1.0f;
        to.zero_point = target.zero = (int32_t)(i % 256) - 128;
        to.low = target.low = -128;
        to.high = target.high = 127;
        to.rounding = TL_ROUNDING_EVEN;
        if (i % 3) sum >>= i % 31;
        if (i % 100 == 0) sum = i % 200 ? INT32_MAX : INT32_MIN;
        assert_int_equal(nn_int_requantize(sum, factor, target), tl_requantize(sum, multiplier, &to));
    }
}

static void quantize_equals_the_library(void **state) {
    enum { N = 4096 };
    float x[N], back[N], expected_back[N];
    int8_t bytes[N], expected_bytes[N];
    int16_t shorts[N], expected_shorts[N];
    (void)state;
    for (int round = 0; round < 40; round++) {
        tl_quantization q8, q16;
        nn_int_target to8, to16;
        float size = nn_exp((float)(round - 20));
        for (size_t i = 0; i < N; i++) x[i] = nn_normal((uint64_t)round, i) * size;
        assert_int_equal(tl_find_quantization(NULL, TL_RANGE_AFFINE, -2.5f * size, 1.7f * size, -128, 127,
                                              &q8), 0);
        assert_int_equal(tl_find_quantization(NULL, TL_RANGE_NARROW, -2.5f * size, 1.7f * size, -32768,
                                              32767, &q16), 0);
        for (size_t i = 0; i < 512; i++) x[i] = ((float)i - 256.5f) * q8.scale;  // halves
        x[512] = NAN;
        x[513] = INFINITY;
        x[514] = -INFINITY;
        to8.zero = q8.zero_point;
        to8.low = q8.low;
        to8.high = q8.high;
        to16.zero = q16.zero_point;
        to16.low = q16.low;
        to16.high = q16.high;
        nn_int8_quantize(bytes, x, N, q8.scale, to8);
        nn_int16_quantize(shorts, x, N, q16.scale, to16);
        assert_int_equal(tl_quantize(NULL, &q8, 1, 1, TL_FORMAT_I8, x, expected_bytes, N), 0);
        assert_int_equal(tl_quantize(NULL, &q16, 1, 1, TL_FORMAT_I16, x, expected_shorts, N), 0);
        assert_memory_equal(bytes, expected_bytes, sizeof bytes);
        assert_memory_equal(shorts, expected_shorts, sizeof shorts);
        nn_int8_dequantize(back, bytes, N, q8.scale, q8.zero_point);
        assert_int_equal(tl_dequantize(NULL, &q8, 1, 1, TL_FORMAT_I8, bytes, expected_back, N), 0);
        assert_memory_equal(back, expected_back, sizeof back);
        nn_int16_dequantize(back, shorts, N, q16.scale, q16.zero_point);
        assert_int_equal(tl_dequantize(NULL, &q16, 1, 1, TL_FORMAT_I16, shorts, expected_back, N), 0);
        assert_memory_equal(back, expected_back, sizeof back);
    }
}

static void requantize_rounds_halves_of_the_shift_away_from_zero(void **state) {
    nn_int_factor quarter = { 1 << 30, -1 };
    (void)state;
    assert_int_equal(nn_int_requantize(2, quarter, words), 1);    // 0.5, after 1 in the first step
    assert_int_equal(nn_int_requantize(-2, quarter, words), -1);
    assert_int_equal(nn_int_requantize(10, quarter, words), 3);   // 2.5
    assert_int_equal(nn_int_requantize(-10, quarter, words), -3);
}

static void requantize_of_wide_sums_is_near_the_real_number(void **state) {
    nn_int_factor factor = { 1518500250, -20 };
    (void)state;
    for (uint64_t i = 0; i < 2000; i++) {
        int64_t sum = (int64_t)(nn_hash(9, i) >> (25 + i % 20)) * (i & 1 ? -1 : 1);
        double real = (double)sum * 1518500250.0 / 2147483648.0 / 1048576.0;
        if (fabs(real) > 32000.0) continue;
        assert_true(fabs((double)nn_int_requantize_wide(sum, factor, words) - real) < 0.5001);
    }
    assert_int_equal(nn_int_requantize_wide(INT64_MAX / 4, factor, words), 32767);
    assert_int_equal(nn_int_requantize_wide(INT64_MIN / 4, factor, words), -32767);
}

// -- quantise --

static void quantize_rounds_halves_to_even_and_clamps(void **state) {
    const float x[] = { 0.0f, 0.5f, 1.5f, -0.5f, -1.5f, 2.5f, 1000.0f, -1000.0f, 0.49f };
    const int8_t expected[] = { 3, 3, 5, 3, 1, 5, 127, -128, 3 };
    nn_int_target to = { 3, -128, 127 };
    int8_t out[COUNT(x)];
    (void)state;
    nn_int8_quantize(out, x, COUNT(x), 1.0f, to);
    assert_memory_equal(out, expected, sizeof out);
}

static void quantize_makes_infinities_the_bounds_and_nan_the_zero_point(void **state) {
    float x[3];
    int8_t out[3];
    nn_int_target to = { -7, -128, 127 };
    (void)state;
    x[0] = INFINITY;
    x[1] = -INFINITY;
    x[2] = NAN;
    nn_int8_quantize(out, x, 3, 0.1f, to);
    assert_int_equal(out[0], 127);
    assert_int_equal(out[1], -128);
    assert_int_equal(out[2], -7);
}

static void dequantize_gives_back_what_quantize_can_hold(void **state) {
    int8_t bytes[256], again[256];
    int16_t shorts[1000], shorts_again[1000];
    float x[1000];
    (void)state;
    for (int i = 0; i < 256; i++) bytes[i] = (int8_t)(i - 128);
    for (int i = 0; i < 1000; i++) shorts[i] = (int16_t)(65 * i - 32500);
    for (int32_t zero = -128; zero <= 127; zero += 51) {
        nn_int_target to = { 0, -128, 127 };
        to.zero = zero;
        nn_int8_dequantize(x, bytes, 256, 0.037f, zero);
        nn_int8_quantize(again, x, 256, 0.037f, to);
        assert_memory_equal(bytes, again, sizeof bytes);
    }
    nn_int16_dequantize(x, shorts, 1000, 0.00091f, 0);
    nn_int16_quantize(shorts_again, x, 1000, 0.00091f, words);
    assert_memory_equal(shorts, shorts_again, sizeof shorts);
}

// -- linear --

typedef struct shape {
    size_t R, K, N;
} shape;

static const shape shapes[] = {
    { 1, 1, 1 }, { 3, 5, 7 }, { 4, 8, 2 }, { 5, 9, 3 }, { 32, 256, 32 }, { 33, 257, 33 },
    { 31, 255, 31 }, { 2, 1000, 1 }, { 70, 64, 65 }, { 1, 300, 40 }, { 40, 17, 1 }
};

// A linear with everything in it.
typedef struct bed {
    nn_int_linear w;
    int32_t *weight_sums, *bias;
    int64_t *wide_bias;
    nn_int_factor *factors;
    float *scales, *float_bias;
    int8_t *weight;
    int16_t *wide_weight;
} bed;

static void init_bed(bed *b, shape s, fill f, uint64_t seed) {
    memset(b, 0, sizeof *b);
    b->weight_sums = (int32_t *)make(s.N, sizeof(int32_t));
    b->bias = (int32_t *)make(s.N, sizeof(int32_t));
    b->wide_bias = (int64_t *)make(s.N, sizeof(int64_t));
    b->factors = (nn_int_factor *)make(s.N, sizeof(nn_int_factor));
    b->scales = (float *)make(s.N, sizeof(float));
    b->float_bias = (float *)make(s.N, sizeof(float));
    b->weight = make8(s.N * s.K, f, seed, -127);
    b->wide_weight = make16(s.N * s.K, f, seed);
    for (size_t j = 0; j < s.N; j++) {
        b->bias[j] = pick(RANDOM, seed + 1, j, -20000, 20000);
        b->wide_bias[j] = (int64_t)pick(RANDOM, seed + 2, j, -20000000, 20000000) * 1000;
        b->factors[j].multiplier = (1 << 30) + pick(RANDOM, seed + 3, j, 0, (1 << 30) - 1);
        b->factors[j].exponent = pick(RANDOM, seed + 4, j, -14, -5);
        b->scales[j] = 1e-3f * (1.0f + nn_uniform(seed + 5, j));
        b->float_bias[j] = nn_uniform(seed + 6, j);
    }
    nn_int_sum_weights(b->weight_sums, b->weight, s.N, s.K);
    b->w.K = s.K;
    b->w.N = s.N;
    b->w.weight = b->weight;
    b->w.weight_sums = b->weight_sums;
    b->w.bias = b->bias;
    b->w.wide_bias = b->wide_bias;
    b->w.factors = b->factors;
    b->w.scales = b->scales;
    b->w.float_bias = b->float_bias;
    b->w.to.low = -128;
    b->w.to.high = 127;
}

static void free_bed(bed *b) {
    free(b->weight_sums);
    free(b->bias);
    free(b->wide_bias);
    free(b->factors);
    free(b->scales);
    free(b->float_bias);
    free(b->weight);
    free(b->wide_weight);
}

// sum (in - zero) weight, plainly.
static int64_t sum8(const bed *b, const int8_t *in, size_t i, size_t j) {
    int64_t sum = 0;
    for (size_t k = 0; k < b->w.K; k++)
        sum += (int64_t)(in[i * b->w.K + k] - b->w.in_zero) * b->weight[j * b->w.K + k];
    return sum;
}

static void check_linear8(bed *b, const int8_t *in, size_t R) {
    size_t N = b->w.N;
    int8_t *out = (int8_t *)make(R * N, 1);
    float *floats = (float *)make(R * N, sizeof(float));
    nn_int8_linear_forward(out, in, &b->w, R);
    nn_int8_linear_to_float(floats, in, &b->w, R);
    for (size_t i = 0; i < R * N; i++) {
        size_t j = i % N, channel = b->w.per_channel ? j : 0;
        int64_t sum = sum8(b, in, i / N, j);
        int64_t biased = sum + (b->w.bias ? b->w.bias[j] : 0);
        assert_true(biased >= INT32_MIN && biased <= INT32_MAX);
        assert_int_equal(out[i], requantize_by_definition(biased, b->factors[channel], b->w.to));
        assert_true(floats[i] == (float)sum * b->scales[channel] + b->float_bias[j]);
    }
    free(out);
    free(floats);
}

static void int8_linear_equals_plain_sums(void **state) {
    static const int32_t zeros[] = { -128, -1, 0, 127 };
    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++) {
        for (int f = 0; f < FILLS; f++) {
            bed b;
            int8_t *in = make8(shapes[s].R * shapes[s].K, (fill)f, 11, -128);
            init_bed(&b, shapes[s], (fill)((f + (int)s) % FILLS), 21 + s);
            b.w.in_zero = zeros[(s + (size_t)f) % COUNT(zeros)];
            b.w.to.zero = zeros[s % COUNT(zeros)];
            b.w.per_channel = (int)s & 1;
            check_linear8(&b, in, shapes[s].R);
            free_bed(&b);
            free(in);
        }
    }
}

static void int8_linear_needs_no_bias_and_no_weight_sums_at_zero(void **state) {
    shape s = { 6, 40, 5 };
    int8_t *in = make8(s.R * s.K, RANDOM, 4, -128);
    bed b;
    (void)state;
    init_bed(&b, s, RANDOM, 5);
    b.w.bias = NULL;
    b.w.weight_sums = NULL;
    check_linear8(&b, in, s.R);
    free_bed(&b);
    free(in);
}

static void int8_linear_takes_every_exponent(void **state) {
    shape s = { 5, 30, 34 };
    int8_t *in = make8(s.R * s.K, RANDOM, 4, -128);
    (void)state;
    for (int32_t exponent = -35; exponent <= 4; exponent++) {
        bed b;
        init_bed(&b, s, RANDOM, 6);
        b.w.per_channel = 1;
        for (size_t j = 0; j < s.N; j++) b.factors[j].exponent = exponent;
        check_linear8(&b, in, s.R);
        b.factors[33].exponent = -3;  // one of its own among them
        check_linear8(&b, in, s.R);
        free_bed(&b);
    }
    free(in);
}

static void int8_linear_holds_the_longest_sums(void **state) {
    shape s = { 1, 65536, 2 };
    int8_t *in = make8(s.K, LOWEST, 0, -128);
    bed b;
    (void)state;
    for (int f = LOWEST; f <= HIGHEST; f++) {
        init_bed(&b, s, (fill)f, 3);
        b.w.in_zero = 127;
        b.factors[0].exponent = -25;
        check_linear8(&b, in, s.R);
        free_bed(&b);
    }
    free(in);
}

static void check_linear16(const bed *b, const int16_t *in, size_t R, int wide) {
    size_t N = b->w.N, K = b->w.K;
    int16_t *out = (int16_t *)make(R * N, 2);
    nn_int_linear w = b->w;
    w.to = words;
    if (wide) w.weight = b->wide_weight;
    if (wide) nn_int16_linear_forward(out, in, &w, R);
    else nn_w8a16_linear_forward(out, in, &w, R);
    for (size_t i = 0; i < R * N; i++) {
        size_t j = i % N, channel = w.per_channel ? j : 0;
        int64_t sum = w.wide_bias ? w.wide_bias[j] : 0;
        for (size_t k = 0; k < K; k++)
            sum += (int64_t)in[i / N * K + k] *
                   (wide ? b->wide_weight[j * K + k] : b->weight[j * K + k]);
        if (sum >= INT32_MIN && sum <= INT32_MAX)
            assert_int_equal(out[i], requantize_by_definition(sum, b->factors[channel], words));
        else
            assert_int_equal(out[i], nn_int_requantize_wide(sum, b->factors[channel], words));
    }
    free(out);
}

static void int16_linears_equal_plain_sums(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++) {
        for (int f = 0; f < FILLS; f++) {
            bed b;
            int16_t *in = make16(shapes[s].R * shapes[s].K, (fill)f, 12);
            init_bed(&b, shapes[s], (fill)((f + (int)s) % FILLS), 31 + s);
            b.w.per_channel = (int)s & 1;
            for (size_t j = 0; j < shapes[s].N; j++) b.factors[j].exponent -= f & 1 ? 15 : 6;
            check_linear16(&b, in, shapes[s].R, 0);
            check_linear16(&b, in, shapes[s].R, 1);
            b.w.wide_bias = NULL;
            check_linear16(&b, in, shapes[s].R, 0);
            free_bed(&b);
            free(in);
        }
    }
}

static void transposed_weights_stand_a_row_for_each_channel(void **state) {
    const int8_t from[] = { 1, 2, 3, 4, 5, 6 }, expected[] = { 1, 3, 5, 2, 4, 6 };
    const int16_t from16[] = { 1, 2, 3, 4, 5, 6 }, expected16[] = { 1, 3, 5, 2, 4, 6 };
    int8_t to[6];
    int16_t to16[6];
    (void)state;
    nn_int8_transpose(to, from, 3, 2);
    nn_int16_transpose(to16, from16, 3, 2);
    assert_memory_equal(to, expected, sizeof to);
    assert_memory_equal(to16, expected16, sizeof to16);
}

// -- dynamic --

static void dynamic_linear_is_near_the_floats(void **state) {
    shape s = { 9, 50, 13 };
    float *in = (float *)make(s.R * s.K, sizeof(float)), *out = (float *)make(s.R * s.N, sizeof(float));
    float *scales = (float *)make(s.N, sizeof(float));
    int8_t *scratch = (int8_t *)make(s.R * s.K, 1);
    int32_t zero;
    bed b;
    (void)state;
    for (size_t i = 0; i < s.R * s.K; i++) in[i] = 3.0f * nn_uniform(8, i) - 1.0f;
    init_bed(&b, s, RANDOM, 7);
    b.w.per_channel = 1;
    nn_dynamic_linear_forward(out, in, scratch, scales, &b.w, s.R);
    for (size_t i = 0; i < s.R * s.N; i++) {
        size_t j = i % s.N;
        double sum = 0.0, most = 0.0;
        for (size_t k = 0; k < s.K; k++) {
            double weight = (double)b.scales[j] * b.weight[j * s.K + k];
            sum += (double)in[i / s.N * s.K + k] * weight;
            most += fabs(weight) * 0.51 * 3.0 / 255.0;  // half a step of the input each
        }
        assert_true(fabs((double)out[i] - sum - (double)b.float_bias[j]) < most + 1e-5);
    }
    assert_true(nn_int8_find_scale(in, s.R * s.K, &zero) > 0.0f);
    for (size_t i = 0; i < s.K; i++) in[i] = 0.0f;
    assert_true(nn_int8_find_scale(in, s.K, &zero) > 0.0f);
    assert_int_equal(zero, -128);
    free_bed(&b);
    free(in);
    free(out);
    free(scales);
    free(scratch);
}

// -- conv2d --

static void int8_conv2d_equals_plain_sums_with_zero_outside(void **state) {
    static const size_t sizes[] = { 1, 3, 5 };
    (void)state;
    for (size_t t = 0; t < COUNT(sizes); t++) {
        size_t B = 2, H = 6, W = 7, C = 3, N = 5, size = sizes[t], reach = size / 2;
        shape s = { H * W, size * size * C, N };
        int8_t *in = make8(B * H * W * C, RANDOM, 40, -128), *out = (int8_t *)make(B * H * W * N, 1);
        int8_t *scratch = (int8_t *)make(s.R * s.K, 1);
        bed b;
        init_bed(&b, s, RANDOM, 41);
        b.w.in_zero = -37;
        b.w.per_channel = 1;
        nn_int8_conv2d_forward(out, in, scratch, &b.w, B, H, W, C, size);
        for (size_t i = 0; i < B * H * W * N; i++) {
            size_t j = i % N, x = i / N % W, y = i / N / W % H, image = i / N / W / H;
            int64_t sum = b.bias[j];
            for (size_t k = 0; k < s.K; k++) {
                size_t c = k % C, dx = k / C % size, dy = k / C / size;
                if (y + dy < reach || y + dy >= H + reach || x + dx < reach || x + dx >= W + reach)
                    continue;
                sum += (int64_t)(in[((image * H + y + dy - reach) * W + x + dx - reach) * C + c] -
                                 b.w.in_zero) * b.weight[j * s.K + k];
            }
            assert_int_equal(out[i], requantize_by_definition(sum, b.factors[j], b.w.to));
        }
        free_bed(&b);
        free(in);
        free(out);
        free(scratch);
    }
}

static void int16_conv2d_equals_plain_sums_with_zero_outside(void **state) {
    size_t H = 5, W = 4, C = 2, N = 3, size = 3;
    shape s = { 20, 18, 3 };
    int16_t *in = make16(H * W * C, RANDOM, 42), *out = (int16_t *)make(H * W * N, 2);
    int16_t *scratch = (int16_t *)make(s.R * s.K, 2);
    bed b;
    (void)state;
    init_bed(&b, s, RANDOM, 43);
    b.w.to = words;
    for (size_t j = 0; j < N; j++) b.factors[j].exponent = -12;
    for (int wide = 0; wide < 2; wide++) {
        if (wide) b.w.weight = b.wide_weight;
        nn_int16_conv2d_forward(out, in, scratch, &b.w, 1, H, W, C, size, wide);
        for (size_t i = 0; i < H * W * N; i++) {
            size_t j = i % N, x = i / N % W, y = i / N / W;
            int64_t sum = b.wide_bias[j];
            for (size_t k = 0; k < s.K; k++) {
                size_t c = k % C, dx = k / C % size, dy = k / C / size;
                if (y + dy < 1 || y + dy > H || x + dx < 1 || x + dx > W) continue;
                sum += (int64_t)in[((y + dy - 1) * W + x + dx - 1) * C + c] *
                       (wide ? b.wide_weight[j * s.K + k] : b.weight[j * s.K + k]);
            }
            assert_int_equal(out[i], nn_int_requantize_wide(sum, b.factors[0], words));
        }
    }
    free_bed(&b);
    free(in);
    free(out);
    free(scratch);
}

// -- elementwise --

static void halve(float *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = 0.5f * in[i];
}

static void lookup_is_the_function_at_each_integer(void **state) {
    int8_t table[256], in[256], out[256];
    nn_int_target to = { 5, -128, 127 };
    (void)state;
    nn_int8_fill_table(table, halve, 0.25f, -3, 0.125f, to);  // half the number, half the scale
    for (int i = 0; i < 256; i++) in[i] = (int8_t)(i - 128);
    nn_int8_lookup_forward(out, in, table, 256);
    for (int i = 0; i < 256; i++) {
        int expected = i - 128 + 3 + 5;
        assert_int_equal(out[i], expected > 127 ? 127 : expected);
    }
}

static void relu_keeps_what_is_above_the_zero_point(void **state) {
    const int8_t in[] = { -128, -11, -10, -9, 127 }, expected[] = { -10, -10, -10, -9, 127 };
    int8_t out[5];
    (void)state;
    nn_int8_relu_forward(out, in, 5, -10);
    assert_memory_equal(out, expected, 5);
}

static void add_is_within_one_rounding_of_the_real_sum(void **state) {
    static const float scales[][3] = {
        { 0.1f, 0.1f, 0.2f }, { 0.013f, 0.4f, 0.37f }, { 1.0f, 0.001f, 0.9f }, { 0.5f, 0.5f, 0.01f }
    };
    (void)state;
    for (size_t s = 0; s < COUNT(scales); s++) {
        nn_int_add add = { 0, 0, -128, 127, { 17, -128, 127 } };
        add.a_weight = nn_int_find_add_weight(scales[s][0], scales[s][2]);
        add.b_weight = nn_int_find_add_weight(scales[s][1], scales[s][2]);
        for (int i = -128; i < 128; i++) {
            for (int j = -128; j < 128; j++) {
                int8_t a = (int8_t)i, b = (int8_t)j, out;
                double real = ((i + 128) * (double)scales[s][0] + (j - 127) * (double)scales[s][1]) /
                                  (double)scales[s][2] + 17.0;
                nn_int8_add_forward(&out, &a, &b, 1, &add);
                if (real < -128.0) real = -128.0;
                if (real > 127.0) real = 127.0;
                assert_true(fabs(real - out) <= 0.505);
            }
        }
    }
    assert_int_equal(nn_int_find_add_weight(1.0f, 1e-9f), 4194304);
    for (int i = -9; i <= 9; i += 2) {  // halves go away from zero
        nn_int_add add = { 32768, 32768, 0, 0, { 0, -128, 127 } };
        int8_t a = (int8_t)i, b = 0, out;
        nn_int8_add_forward(&out, &a, &b, 1, &add);
        assert_int_equal(out, i > 0 ? (i + 1) / 2 : (i - 1) / 2);
    }
}

// -- pools --

static void pools_take_the_most_and_the_mean_of_each_square(void **state) {
    size_t B = 2, H = 4, W = 6, C = 3, size = 2;
    int8_t *in = make8(B * H * W * C, RANDOM, 50, -128);
    int8_t *most = (int8_t *)make(B * H * W * C / 4, 1), *mean = (int8_t *)make(B * H * W * C / 4, 1);
    (void)state;
    nn_int8_max_pool_forward(most, in, B, H, W, C, size);
    nn_int8_mean_pool_forward(mean, in, B, H, W, C, size, -20);
    for (size_t i = 0; i < B * H * W * C / 4; i++) {
        size_t c = i % C, x = i / C % (W / 2), y = i / C / (W / 2);  // y: over all images
        int expected = -128;
        double sum = 0.0;
        for (size_t k = 0; k < 4; k++) {
            int8_t value = in[((2 * y + k / 2) * W + 2 * x + k % 2) * C + c];
            expected = value > expected ? value : expected;
            sum += value + 20;
        }
        assert_int_equal(most[i], expected);
        assert_int_equal(mean[i], (int)round(sum / 4.0) - 20);
    }
    free(in);
    free(most);
    free(mean);
}

// -- nn_image.h --

enum { IMAGES = 2, HIGH = 4, BROAD = 6, DEEP = 3, OUT = 5, SIDE = 3 };

typedef struct image_bed {
    float in[IMAGES * HIGH * BROAD * DEEP], weight[SIDE * SIDE * DEEP * OUT], bias[OUT];
    float scratch[2 * HIGH * BROAD * SIDE * SIDE * DEEP], out[IMAGES * HIGH * BROAD * OUT];
    float weights[IMAGES * HIGH * BROAD * OUT];  // of the elements of out in the loss
    size_t out_count;
} image_bed;

typedef void (*image_forward)(image_bed *b);

static void run_conv2d(image_bed *b) {
    nn_conv2d_forward(b->out, b->in, b->weight, b->bias, b->scratch, IMAGES, HIGH, BROAD, DEEP, OUT, SIDE);
}
static void run_relu(image_bed *b) { nn_relu_forward(b->out, b->in, COUNT(b->in)); }
static void run_max_pool(image_bed *b) {
    nn_max_pool_forward(b->out, b->in, IMAGES, HIGH, BROAD, DEEP, 2);
}
static void run_mean_pool(image_bed *b) {
    nn_mean_pool_forward(b->out, b->in, IMAGES, HIGH, BROAD, DEEP, 2);
}

static void init_image_bed(image_bed *b, size_t out_count) {
    memset(b, 0, sizeof *b);
    nn_fill_normal(b->weight, COUNT(b->weight), 0.3f, 61);
    nn_fill_normal(b->bias, COUNT(b->bias), 0.3f, 62);
    nn_fill_normal(b->weights, COUNT(b->weights), 1.0f, 63);
    for (size_t i = 0; i < COUNT(b->in); i++)  // each number once: no ties, none near the kink of relu
        b->in[i] = ((float)(i * 37 % COUNT(b->in)) + 0.5f) * 0.02f - 1.44f;
    b->out_count = out_count;
}

static double image_loss(image_bed *b, image_forward forward) {
    double sum = 0.0;
    forward(b);
    for (size_t i = 0; i < b->out_count; i++) sum += (double)b->weights[i] * (double)b->out[i];
    return sum;
}

// The gradient of each element of x is the slope of the loss.
static void check_slopes(image_bed *b, image_forward forward, float *x, const float *dx, size_t n) {
    const float h = 0.00390625f;
    for (size_t i = 0; i < n; i++) {
        float kept = x[i];
        double above, below;
        x[i] = kept + h;
        above = image_loss(b, forward);
        x[i] = kept - h;
        below = image_loss(b, forward);
        x[i] = kept;
        assert_true(fabs((above - below) / (2.0 * (double)h) - (double)dx[i]) < 2e-3);
    }
}

static void conv2d_is_the_plain_sum_and_its_gradients_are_slopes(void **state) {
    static image_bed b;
    float din[COUNT(b.in)] = { 0 }, dweight[COUNT(b.weight)] = { 0 }, dbias[OUT] = { 0 };
    (void)state;
    init_image_bed(&b, COUNT(b.out));
    run_conv2d(&b);
    for (size_t i = 0; i < COUNT(b.out); i++) {
        size_t j = i % OUT, x = i / OUT % BROAD, y = i / OUT / BROAD % HIGH, image = i / OUT / BROAD / HIGH;
        double sum = (double)b.bias[j];
        for (size_t k = 0; k < SIDE * SIDE * DEEP; k++) {
            size_t c = k % DEEP, dx = k / DEEP % SIDE, dy = k / DEEP / SIDE;
            if (y + dy < 1 || y + dy > HIGH || x + dx < 1 || x + dx > BROAD) continue;
            sum += (double)b.in[((image * HIGH + y + dy - 1) * BROAD + x + dx - 1) * DEEP + c] *
                   (double)b.weight[k * OUT + j];
        }
        assert_true(fabs(sum - (double)b.out[i]) < 1e-5);
    }
    nn_conv2d_backward(din, dweight, dbias, b.weights, b.in, b.weight, b.scratch, IMAGES, HIGH, BROAD,
                       DEEP, OUT, SIDE);
    check_slopes(&b, run_conv2d, b.in, din, COUNT(din));
    check_slopes(&b, run_conv2d, b.weight, dweight, COUNT(dweight));
    check_slopes(&b, run_conv2d, b.bias, dbias, OUT);
    nn_conv2d_backward(NULL, NULL, NULL, b.weights, b.in, b.weight, b.scratch, IMAGES, HIGH, BROAD,
                       DEEP, OUT, SIDE);
}

static void relu_and_pool_gradients_are_slopes(void **state) {
    static image_bed b;
    float din[COUNT(b.in)] = { 0 };
    (void)state;
    init_image_bed(&b, COUNT(b.in));
    nn_relu_backward(din, b.weights, b.in, COUNT(b.in));
    check_slopes(&b, run_relu, b.in, din, COUNT(din));
    init_image_bed(&b, COUNT(b.in) / 4);
    memset(din, 0, sizeof din);
    nn_max_pool_backward(din, b.weights, b.in, IMAGES, HIGH, BROAD, DEEP, 2);
    check_slopes(&b, run_max_pool, b.in, din, COUNT(din));
    memset(din, 0, sizeof din);
    nn_mean_pool_backward(din, b.weights, IMAGES, HIGH, BROAD, DEEP, 2);
    check_slopes(&b, run_mean_pool, b.in, din, COUNT(din));
}

// -- rows --

// Pointers to the rows under the window of row y, each copied alone: NULL outside of the image. free_rows releases them.
static void copy_rows(const void **rows, const void *in, size_t bytes, size_t H, size_t first, size_t before, size_t size) {
    for (size_t k = 0; k < size; k++) {
        unsigned char *row = NULL;
        if (first + k >= before && first + k < H + before) {
            row = (unsigned char *)make(bytes, 1);
            memcpy(row, (const unsigned char *)in + (first + k - before) * bytes, bytes);
        }
        rows[k] = row;
    }
}

static void free_rows(const void **rows, size_t size) {
    for (size_t k = 0; k < size; k++) free((void *)(uintptr_t)rows[k]);
}

// Pixel x of row y of a result with a stride is pixel (x, y) times that of the result without.
static void check_row(const void *row, const void *whole, size_t bytes, size_t y, size_t W, size_t stride) {
    for (size_t x = 0; x < nn_find_row_width(W, stride); x++)
        assert_memory_equal((const unsigned char *)row + x * bytes,
                            (const unsigned char *)whole + (y * stride * W + x * stride) * bytes, bytes);
}

static void rows_of_convolutions_have_the_bits_of_whole_images(void **state) {
    static image_bed b;
    float row[BROAD * OUT];
    const void *rows[SIDE];
    (void)state;
    init_image_bed(&b, COUNT(b.out));
    run_conv2d(&b);
    for (size_t stride = 1; stride <= 3; stride++)
        for (size_t y = 0; y < nn_find_row_width(HIGH, stride); y++) {
            copy_rows(rows, b.in, BROAD * DEEP * sizeof(float), HIGH, y * stride, SIDE / 2, SIDE);
            nn_conv2d_row(row, (const float *const *)rows, b.weight, b.bias, BROAD, DEEP, OUT, SIDE, stride);
            check_row(row, b.out, OUT * sizeof(float), y, BROAD, stride);
            nn_conv2d_row(row, (const float *const *)rows, b.weight, NULL, BROAD, DEEP, OUT, SIDE, stride);
            free_rows(rows, SIDE);
        }
}

// Each output channel of the convolution reads one input channel; the result may stand where the first row was.
static void rows_of_depthwise_convolutions_overwrite_their_first_row(void **state) {
    static image_bed b;
    float weight[SIDE * SIDE * DEEP], first[BROAD], row[BROAD * DEEP], whole[HIGH * BROAD * DEEP];
    const void *rows[SIDE];
    (void)state;
    init_image_bed(&b, COUNT(b.out));
    nn_fill_normal(weight, COUNT(weight), 0.3f, 65);
    memset(b.weight, 0, sizeof b.weight);
    for (size_t k = 0; k < COUNT(weight); k++) b.weight[k * DEEP + k % DEEP] = weight[k];
    nn_conv2d_forward(whole, b.in, b.weight, b.bias, b.scratch, 1, HIGH, BROAD, DEEP, DEEP, SIDE);
    for (size_t stride = 1; stride <= 2; stride++)
        for (size_t y = 0; y < nn_find_row_width(HIGH, stride); y++) {
            copy_rows(rows, b.in, BROAD * DEEP * sizeof(float), HIGH, y * stride, SIDE / 2, SIDE);
            nn_depthwise_row(row, (const float *const *)rows, weight, b.bias, first, BROAD, DEEP, SIDE, stride);
            check_row(row, whole, DEEP * sizeof(float), y, BROAD, stride);
            if (rows[0]) {
                nn_depthwise_row((float *)(uintptr_t)rows[0], (const float *const *)rows, weight, b.bias, first, BROAD,
                                 DEEP, SIDE, stride);
                check_row(rows[0], whole, DEEP * sizeof(float), y, BROAD, stride);
            }
            nn_depthwise_row(row, (const float *const *)rows, weight, NULL, first, BROAD, DEEP, SIDE, stride);
            free_rows(rows, SIDE);
        }
}

static void rows_of_pools_have_the_bits_of_whole_images(void **state) {
    static image_bed b;
    float row[BROAD / 2 * DEEP], mean[HIGH / 2 * BROAD / 2 * DEEP];
    int8_t bytes[HIGH * BROAD * DEEP], most8[COUNT(mean)], mean8[COUNT(mean)], row8[COUNT(row)];
    const void *rows[2];
    (void)state;
    init_image_bed(&b, COUNT(mean));
    for (size_t i = 0; i < COUNT(bytes); i++) bytes[i] = (int8_t)(i * 37 % 251);
    nn_max_pool_forward(b.out, b.in, 1, HIGH, BROAD, DEEP, 2);
    nn_mean_pool_forward(mean, b.in, 1, HIGH, BROAD, DEEP, 2);
    nn_int8_max_pool_forward(most8, bytes, 1, HIGH, BROAD, DEEP, 2);
    nn_int8_mean_pool_forward(mean8, bytes, 1, HIGH, BROAD, DEEP, 2, -20);
    for (size_t y = 0; y < HIGH / 2; y++) {
        copy_rows(rows, b.in, BROAD * DEEP * sizeof(float), HIGH, 2 * y, 0, 2);
        nn_max_pool_row(row, (const float *const *)rows, BROAD, DEEP, 2);
        check_row(row, b.out, DEEP * sizeof(float), y, BROAD / 2, 1);
        nn_mean_pool_row(row, (const float *const *)rows, BROAD, DEEP, 2);
        check_row(row, mean, DEEP * sizeof(float), y, BROAD / 2, 1);
        free_rows(rows, 2);
        copy_rows(rows, bytes, BROAD * DEEP, HIGH, 2 * y, 0, 2);
        nn_int8_max_pool_row(row8, (const int8_t *const *)rows, BROAD, DEEP, 2);
        check_row(row8, most8, DEEP, y, BROAD / 2, 1);
        nn_int8_mean_pool_row(row8, (const int8_t *const *)rows, BROAD, DEEP, 2, -20);
        check_row(row8, mean8, DEEP, y, BROAD / 2, 1);
        free_rows(rows, 2);
    }
}

static void rows_of_int8_and_int16_convolutions_equal_whole_images(void **state) {
    size_t H = 5, W = 4, C = 2, N = 3, size = 3;
    shape s = { 20, 18, 3 };
    int8_t *in8 = make8(H * W * C, RANDOM, 44, -128), *out8 = (int8_t *)make(H * W * N, 1), *row8 = (int8_t *)make(W * N, 1);
    int16_t *in16 = make16(H * W * C, RANDOM, 45), *out16 = (int16_t *)make(H * W * N, 2), *row16 = (int16_t *)make(W * N, 2);
    void *scratch = make(s.R * s.K, 2);
    const void *rows[3];
    bed b;
    (void)state;
    init_bed(&b, s, RANDOM, 46);
    for (size_t j = 0; j < N; j++) b.factors[j].exponent = -12;
    nn_int8_conv2d_forward(out8, in8, (int8_t *)scratch, &b.w, 1, H, W, C, size);
    for (size_t stride = 1; stride <= 2; stride++)
        for (size_t y = 0; y < nn_find_row_width(H, stride); y++) {
            copy_rows(rows, in8, W * C, H, y * stride, 1, size);
            nn_int8_conv2d_row(row8, rows, (int8_t *)scratch, &b.w, W, C, size, stride);
            check_row(row8, out8, N, y, W, stride);
            free_rows(rows, size);
        }
    b.w.to = words;
    for (int wide = 0; wide < 2; wide++) {
        if (wide) b.w.weight = b.wide_weight;
        nn_int16_conv2d_forward(out16, in16, (int16_t *)scratch, &b.w, 1, H, W, C, size, wide);
        for (size_t y = 0; y < H; y++) {
            copy_rows(rows, in16, W * C * 2, H, y, 1, size);
            nn_int16_conv2d_row(row16, rows, (int16_t *)scratch, &b.w, W, C, size, 1, wide);
            check_row(row16, out16, N * 2, y, W, 1);
            free_rows(rows, size);
        }
    }
    free_bed(&b);
    free(in8);
    free(in16);
    free(out8);
    free(out16);
    free(row8);
    free(row16);
    free(scratch);
}

static void upsampled_pixels_stand_behind_those_of_the_row(void **state) {
    const float in[] = { 1, 2, 3 }, wide[] = { 10, 11, 20, 21 }, expected[] = { 1, 10, 11, 2, 10, 11, 3, 20, 21 };
    float out[9], relu[] = { -1, 0, 3, 6, 7 };
    const float bounded[] = { 0, 0, 3, 6, 6 };
    (void)state;
    nn_concat_upsampled_row(out, in, wide, 3, 1, 2, 2);
    assert_memory_equal(out, expected, sizeof out);
    nn_relu6_forward(relu, relu, 5);
    assert_memory_equal(relu, bounded, sizeof relu);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requantize_equals_its_definition),
        cmocka_unit_test(requantize_equals_the_library),
        cmocka_unit_test(quantize_equals_the_library),
        cmocka_unit_test(requantize_rounds_halves_of_the_shift_away_from_zero),
        cmocka_unit_test(requantize_of_wide_sums_is_near_the_real_number),
        cmocka_unit_test(quantize_rounds_halves_to_even_and_clamps),
        cmocka_unit_test(quantize_makes_infinities_the_bounds_and_nan_the_zero_point),
        cmocka_unit_test(dequantize_gives_back_what_quantize_can_hold),
        cmocka_unit_test(int8_linear_equals_plain_sums),
        cmocka_unit_test(int8_linear_needs_no_bias_and_no_weight_sums_at_zero),
        cmocka_unit_test(int8_linear_takes_every_exponent),
        cmocka_unit_test(int8_linear_holds_the_longest_sums),
        cmocka_unit_test(int16_linears_equal_plain_sums),
        cmocka_unit_test(transposed_weights_stand_a_row_for_each_channel),
        cmocka_unit_test(dynamic_linear_is_near_the_floats),
        cmocka_unit_test(int8_conv2d_equals_plain_sums_with_zero_outside),
        cmocka_unit_test(int16_conv2d_equals_plain_sums_with_zero_outside),
        cmocka_unit_test(lookup_is_the_function_at_each_integer),
        cmocka_unit_test(relu_keeps_what_is_above_the_zero_point),
        cmocka_unit_test(add_is_within_one_rounding_of_the_real_sum),
        cmocka_unit_test(pools_take_the_most_and_the_mean_of_each_square),
        cmocka_unit_test(conv2d_is_the_plain_sum_and_its_gradients_are_slopes),
        cmocka_unit_test(relu_and_pool_gradients_are_slopes),
        cmocka_unit_test(rows_of_convolutions_have_the_bits_of_whole_images),
        cmocka_unit_test(rows_of_depthwise_convolutions_overwrite_their_first_row),
        cmocka_unit_test(rows_of_pools_have_the_bits_of_whole_images),
        cmocka_unit_test(rows_of_int8_and_int16_convolutions_equal_whole_images),
        cmocka_unit_test(upsampled_pixels_stand_behind_those_of_the_row),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
