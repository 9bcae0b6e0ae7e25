// [7] PRECISION: observers, their ranges and estimates, noise of data, the reference table.
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

static void expect_error(const tl_env *env, tl_result result, tl_result code, const char *text) {
    assert_string_equal(env->error.text, text);
    assert_int_equal(result, code);
    assert_int_equal(env->error.code, code);
}

static tl_observer_desc desc_of(tl_observer_kind kind) {
    tl_observer_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = kind;
    return desc;
}

static tl_observer *observer_of(tl_env *env, const tl_observer_desc *desc) {
    tl_observer *observer;
    if (tl_init_observer(env, desc, &observer)) fail_msg("%s", env->error.text);
    return observer;
}

static void observe(tl_observer *observer, const float *data, uint64_t count) {
    if (tl_observe_data(observer, data, count)) fail_msg("%s", observer->env->error.text);
}

static tl_observation seen_by(const tl_observer *observer, int32_t channel) {
    tl_observation seen;
    assert_int_equal(tl_measure_observer(observer, channel, &seen), TL_OK);
    return seen;
}

// What one observer of this desc makes of data.
static tl_observation observed(const tl_observer_desc *desc, const float *data, uint64_t count) {
    tl_env env = {0};
    tl_observer *observer = observer_of(&env, desc);
    tl_observation seen;
    observe(observer, data, count);
    seen = seen_by(observer, 0);
    tl_free_observer(observer);
    return seen;
}

static tl_noise noise_of(const tl_quantization *q, const float *data, uint64_t count) {
    tl_noise noise;
    tl_env env = {0};
    if (tl_measure_noise(&env, q, data, NULL, count, &noise)) fail_msg("%s", env.error.text);
    return noise;
}

static tl_quantization found(tl_range_rule rule, float least, float most, int32_t low, int32_t high) {
    tl_quantization q;
    tl_env env = {0};
    if (tl_find_quantization(&env, rule, least, most, low, high, &q)) fail_msg("%s", env.error.text);
    return q;
}

// Sums of 12 uniform numbers: about normal, never beyond 6.
static float random_bell(tl_random *random) {
    double sum = -6;
    int i;
    for (i = 0; i < 12; i++) sum += tl_next_random_ratio(random);
    return (float)sum;
}

// Tensors of many shapes: bell, outliers, one side of 0, sparse, far from 0, tiny, constant.
static void fill_random(tl_random *random, float *data, int count) {
    int kind = (int)tl_next_random_below(random, 8), i;
    float scale = (float)ldexp(1, (int)tl_next_random_below(random, 40) - 20);
    for (i = 0; i < count; i++) {
        float value = random_bell(random);
        if (kind == 1 && tl_next_random_below(random, 100) == 0) value *= 50;
        if (kind == 2 && value < 0) value = 0;
        if (kind == 3 && tl_next_random_below(random, 10)) value = 0;
        if (kind == 4) value += 20;
        if (kind == 5) value = -fabsf(value) * (float)tl_next_random_ratio(random);
        if (kind == 6) value = 3.5f;
        if (kind == 7) value = expf(2 * value);
        data[i] = value * scale;
    }
}

// -- numbers without <math.h> --

static void logarithms_equal_those_of_libm(void **state) {
    tl_random random = {1};
    int i;
    (void)state;
    for (i = -1074; i < 1024; i++) assert_true(tli_log2_f64(ldexp(1, i)) == i * (INT64_C(1) << 52));
    for (i = 0; i < scaled(100000); i++) {
        double value = ldexp(1 + tl_next_random_ratio(&random), (int)tl_next_random_below(&random, 2000) - 1000);
        double ours = (double)tli_log2_f64(value) / 4503599627370496.0, libm = log2(value);
        if (i % 3 == 0) {
            value = 1 + ldexp(tl_next_random_ratio(&random) - 0.5, -(int)tl_next_random_below(&random, 50));
            ours = (double)tli_log2_f64(value) / 4503599627370496.0;
            libm = log2(value);
        }
        assert_true(fabs(ours - libm) <= 3e-16 + 2.3e-16 * fabs(libm));
    }
}

static void wide_products_equal_those_of_halves(void **state) {
    tl_random random = {2};
    int i;
    (void)state;
    for (i = 0; i < 100000; i++) {
        uint64_t a = tl_next_random(&random) >> tl_next_random_below(&random, 64), b = tl_next_random(&random);
        tli_u128 product = tli_mul_u128(a, b), sum, back;
        double exact = (double)a * (double)b;
        assert_true(product.low == a * b);
        assert_true(fabs(ldexp((double)product.high, 64) + (double)product.low - exact) <= exact * 1e-15);
        sum = tli_add_u128(product, tli_mul_u128(b, b));
        back = tli_sub_u128(sum, tli_mul_u128(b, b));
        assert_true(back.high == product.high && back.low == product.low);
        back = tli_scale_u128(tli_mul_u128(a, b >> 40), 1 << 20);
        assert_true(back.low == a * (b >> 40) << 20);
        assert_true(back.high == tli_mul_u128(a, (b >> 40) << 20).high);
    }
}

// -- the reference table --

typedef struct lcg { uint32_t state; } lcg;

static double next_lcg(lcg *g) {
    g->state = 1664525u * g->state + 1013904223u;
    return (double)(g->state >> 8) / 16777216.0;
}

static double next_bell(lcg *g) {
    double sum = 0;
    int i;
    for (i = 0; i < 12; i++) sum += next_lcg(g);
    return sum - 6;
}

// The tensors of the table by name; how many values.
static int fill_tensor(const char *name, float *data) {
    lcg g = {0};
    int i;
    if (!strcmp(name, "zeros") || !strcmp(name, "const")) {
        for (i = 0; i < 8; i++) data[i] = name[0] == 'z' ? 0 : 3.5f;
        return 8;
    }
    if (!strcmp(name, "negative")) {
        for (i = 0; i < 20; i++) data[i] = (float)(-1 - i / 10.0);
        return 20;
    }
    g.state = !strcmp(name, "uniform01") ? 1 : !strcmp(name, "uniform_pm1") ? 2 : !strcmp(name, "irwin_hall12") ? 3
            : !strcmp(name, "outlier80") ? 4 : !strcmp(name, "relu_like") ? 5 : 0;
    if (!g.state) fail_msg("%s: no such tensor", name);
    for (i = 0; i < 1000; i++) {
        uint32_t seed = !strcmp(name, "uniform01") ? 1 : !strcmp(name, "uniform_pm1") ? 2 : 3;
        double value = seed == 1 ? next_lcg(&g) : seed == 2 ? 2 * next_lcg(&g) - 1 : next_bell(&g);
        if (!strcmp(name, "relu_like") && value < 0) value = 0;
        data[i] = (float)value;
    }
    if (!strcmp(name, "outlier80")) data[500] = 80;
    return 1000;
}

static tl_quantization reference_quantization(const char *scheme, const float *data, int count, int low, int high) {
    tl_observer_desc desc = desc_of(strncmp(scheme, "mse", 3) == 0 ? TL_OBSERVER_MSE
                                    : strncmp(scheme, "pct", 3) == 0 ? TL_OBSERVER_PERCENTILE : TL_OBSERVER_MIN_MAX);
    tl_range_rule rule = TL_RANGE_NARROW;
    float least, most;
    tl_env env = {0};
    if (strstr(scheme, "affine")) rule = TL_RANGE_AFFINE;
    else if (strstr(scheme, "torch")) rule = TL_RANGE_HALF;
    desc.rule = TL_RANGE_NARROW;
    desc.percentile_ratio = 0.999;
    if (tl_measure_range(&env, &desc, data, (uint64_t)count, &least, &most)) fail_msg("%s", env.error.text);
    return found(rule, least, most, low, high);
}

static void every_row_of_the_reference_table_is_equal(void **state) {
    char *text = read_reference("every_row_of_the_reference_table_is_equal", "precision/quant_reference.csv", NULL), *line;
    int rows = 0;
    (void)state;
    if (!text) skip();
    for (line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        char name[32], scheme[48], least[32], most[32], scale[32], mse[40], sqnr[40];
        int count, low, high, zero, made;
        unsigned bits;
        float data[1000];
        tl_quantization q;
        tl_noise noise;
        if (sscanf(line, "%31[^,],%d,%31[^,],%31[^,],%47[^,],%d,%d,%31[^,],%x,%d,%39[^,],%39[^\r\n]", name, &count, least,
                   most, scheme, &low, &high, scale, &bits, &zero, mse, sqnr) != 12)
            fail_msg("line not understood: %.80s", line);
        made = fill_tensor(name, data);
        assert_int_equal(made, count);
        q = reference_quantization(scheme, data, count, low, high);
        if (tli_bits_of_f32(q.scale) != bits || q.zero_point != zero || q.low != low || q.high != high)
            fail_msg("%s %s: scale %08x zero point %d, expected %08x %d", name, scheme, tli_bits_of_f32(q.scale), q.zero_point,
                     bits, zero);
        noise = noise_of(&q, data, (uint64_t)count);
        if (fabs(noise.mse - atof(mse)) > 1e-12 * atof(mse)) fail_msg("%s %s: mse %.17g", name, scheme, noise.mse);
        assert_int_equal(noise.is_exact, atof(mse) == 0);
        if (!strcmp(sqnr, "inf") || !strcmp(sqnr, "nan")) assert_true(noise.sqnr_db == 0);
        else if (fabs(noise.sqnr_db - atof(sqnr)) > 1e-12 * fabs(atof(sqnr))) fail_msg("%s %s: %.17g dB", name, scheme, noise.sqnr_db);
        rows++;
    }
    free(text);
    assert_int_equal(rows, 68);
}

// -- noise of data --

// The density of a distribution as weights on a dense grid: no sample, no chance.
static double best_clip(int laplace, double *db) {
    enum { COUNT = 200001 };
    float *x = (float *)malloc(COUNT * sizeof *x), *w = (float *)malloc(COUNT * sizeof *w);
    double best = 0;
    int i;
    assert_non_null(x);
    assert_non_null(w);
    for (i = 0; i < COUNT; i++) {
        double at = (i - COUNT / 2) * (laplace ? 30.0 : 9.0) / (COUNT / 2);
        x[i] = (float)at;
        w[i] = (float)(laplace ? exp(-fabs(at)) : exp(-at * at / 2));
    }
    *db = 0;
    for (i = 0; i < 60; i++) {
        double clip = (laplace ? 9.0 : 3.6) + i * (laplace ? 0.03 : 0.01);
        tl_quantization q = found(TL_RANGE_HALF, (float)-clip, (float)clip, -128, 127);
        tl_noise noise;
        assert_int_equal(tl_measure_noise(NULL, &q, x, w, COUNT, &noise), TL_OK);
        if (noise.sqnr_db > *db) {
            *db = noise.sqnr_db;
            best = clip;
        }
    }
    free(x);
    free(w);
    return best;
}

static void noise_has_its_closed_forms(void **state) {
    tl_quantization q = found(TL_RANGE_AFFINE, -1, 1, -128, 127);
    float *data = (float *)malloc(100000 * sizeof *data);
    double db, clip;
    int i;
    (void)state;
    assert_non_null(data);
    for (i = 0; i < 100000; i++) data[i] = (float)(i - 49999.5) / 50000;
    assert_true(fabs(noise_of(&q, data, 100000).sqnr_db - 20 * log10(255)) < 0.01);
    free(data);
    clip = best_clip(0, &db);
    assert_true(fabs(clip - 3.924) < 0.05 && fabs(db - 40.60) < 0.05);
    clip = best_clip(1, &db);
    assert_true(fabs(clip - 9.8968) < 0.15 && fabs(db - 35.24) < 0.06);
}

static void weights_multiply_squared_errors(void **state) {
    static const float data[] = {0.4f, 1.3f, -2.2f, 9}, weights[] = {1, 0, 2, 0.5f};
    tl_quantization q = found(TL_RANGE_NARROW, -5, 5, -5, 5);
    tl_noise noise;
    (void)state;
    assert_int_equal(tl_measure_noise(NULL, &q, data, weights, 4, &noise), TL_OK);
    assert_true(fabs(noise.error_sum - (0.16 + 2 * 0.04 + 0.5 * 16)) < 1e-6);
    assert_true(fabs(noise.signal_sum - (0.16 + 2 * 4.84 + 0.5 * 81)) < 1e-5);
    assert_true(noise.mse == noise.error_sum / 4 && noise.clipped_ratio == 0.25 && noise.count == 4 && !noise.is_exact);
    assert_int_equal(tl_measure_noise(NULL, &q, data, NULL, 4, &noise), TL_OK);
    assert_true(fabs(noise.error_sum - (0.16 + 0.09 + 0.04 + 16)) < 1e-5);
}

static void formats_lose_what_their_conversions_lose(void **state) {
    float data[500];
    tl_random random = {3};
    tl_noise noise;
    double f16 = 0, bf16 = 0, signal = 0;
    int i;
    (void)state;
    for (i = 0; i < 500; i++) {
        uint32_t bits, back;
        uint16_t half;
        float rounded;
        data[i] = random_bell(&random) * (i % 7 ? 1.0f : 1e-6f);
        memcpy(&bits, &data[i], 4);
        tl_compress_bytes(TL_CODEC_F16, &half, &bits, 4);
        tl_expand_bytes(TL_CODEC_F16, &back, &half, 4);
        memcpy(&rounded, &back, 4);
        f16 += pow((double)data[i] - rounded, 2);
        tl_compress_bytes(TL_CODEC_BF16, &half, &bits, 4);
        tl_expand_bytes(TL_CODEC_BF16, &back, &half, 4);
        memcpy(&rounded, &back, 4);
        bf16 += pow((double)data[i] - rounded, 2);
        signal += (double)data[i] * data[i];
    }
    assert_int_equal(tl_measure_format_noise(NULL, TL_FORMAT_F16, data, NULL, 500, &noise), TL_OK);
    assert_true(fabs(noise.error_sum - f16) <= 1e-12 * f16 && fabs(noise.signal_sum - signal) <= 1e-12 * signal);
    assert_true(noise.sqnr_db > 70 && noise.sqnr_db < 80 && noise.clipped_ratio == 0);
    assert_int_equal(tl_measure_format_noise(NULL, TL_FORMAT_BF16, data, NULL, 500, &noise), TL_OK);
    assert_true(fabs(noise.error_sum - bf16) <= 1e-12 * bf16 && noise.sqnr_db > 50 && noise.sqnr_db < 60);
    assert_int_equal(tl_measure_format_noise(NULL, TL_FORMAT_F32, data, NULL, 500, &noise), TL_OK);
    assert_true(noise.error_sum == 0 && noise.is_exact && noise.sqnr_db == 0);
    data[0] = 1e6f;
    data[1] = -1e6f;
    assert_int_equal(tl_measure_format_noise(NULL, TL_FORMAT_F16, data, NULL, 2, &noise), TL_OK);
    assert_true(noise.error_sum == 2 * pow(1e6 - 65504, 2) && noise.clipped_ratio == 1);
    data[0] = float_of_bits(0x7F7FFFFFu);
    assert_int_equal(tl_measure_format_noise(NULL, TL_FORMAT_BF16, data, NULL, 1, &noise), TL_OK);
    assert_true(noise.clipped_ratio == 1 && noise.mse > 0 && isfinite(noise.mse) && isfinite(noise.sqnr_db));
}

static void noise_of_what_is_no_data_is_refused(void **state) {
    static const struct { float data, weight; int count; const char *text; } wrong[] = {
        {NAN, 1, 2, "data: a value is not finite"},       {INFINITY, 1, 2, "data: a value is not finite"},
        {1, NAN, 2, "weights: must be finite and >= 0"},  {1, INFINITY, 2, "weights: must be finite and >= 0"},
        {1, -1, 2, "weights: must be finite and >= 0"},   {1, 0, 2, "weights: must not all be 0"},
        {1, 1, 0, "count: must be > 0"}};
    tl_quantization q = found(TL_RANGE_NARROW, -1, 1, -127, 127);
    tl_env env = {0};
    tl_noise noise;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        float data[2] = {0, 0}, weights[2] = {0, 0};
        char text[200];
        data[1] = wrong[i].data;
        weights[1] = wrong[i].weight;
        memset(&noise, 1, sizeof noise);
        snprintf(text, sizeof text, "tl_measure_noise: %s", wrong[i].text);
        expect_error(&env, tl_measure_noise(&env, &q, data, weights, (uint64_t)wrong[i].count, &noise), TL_ERROR_INVALID_ARG, text);
        assert_true(is_zero(&noise, sizeof noise));
        memset(&noise, 1, sizeof noise);
        snprintf(text, sizeof text, "tl_measure_format_noise: %s", wrong[i].text);
        expect_error(&env, tl_measure_format_noise(&env, TL_FORMAT_F16, data, weights, (uint64_t)wrong[i].count, &noise),
                     TL_ERROR_INVALID_ARG, text);
        assert_true(is_zero(&noise, sizeof noise));
    }
    expect_error(&env, tl_measure_noise(&env, &q, NULL, NULL, 2, &noise), TL_ERROR_INVALID_ARG,
                 "tl_measure_noise: data: must not be NULL");
    expect_error(&env, tl_measure_format_noise(&env, TL_FORMAT_I8, &q.scale, NULL, 1, &noise), TL_ERROR_INVALID_ARG,
                 "tl_measure_format_noise: format: must be f32, f16 or bf16");
    q.scale = 0;
    expect_error(&env, tl_measure_noise(&env, &q, &q.scale, NULL, 1, &noise), TL_ERROR_INVALID_ARG,
                 "tl_measure_noise: quantization: scale: must be finite and > 0");
}

// -- ranges of data in memory --

static int compare_magnitudes(const void *a, const void *b) {
    float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return (x > y) - (x < y);
}

static void a_percentile_is_the_value_of_that_rank(void **state) {
    static const double ratios[] = {1e-9, 0.1, 0.5, 0.9, 0.99, 0.999, 1};
    tl_random random = {4};
    float data[300], sorted[300];
    int trial, k;
    (void)state;
    for (trial = 0; trial < 200; trial++) {
        int count = 1 + (int)tl_next_random_below(&random, 300);
        fill_random(&random, data, count);
        memcpy(sorted, data, sizeof sorted);
        qsort(sorted, (size_t)count, sizeof *sorted, compare_magnitudes);
        for (k = 0; k < 7; k++) {
            tl_observer_desc desc = desc_of(TL_OBSERVER_PERCENTILE);
            int rank = (int)fmax(1, ceil(ratios[k] * count));
            float limit = fabsf(sorted[rank - 1]), least, most;
            desc.percentile_ratio = ratios[k];
            assert_int_equal(tl_measure_range(NULL, &desc, data, (uint64_t)count, &least, &most), TL_OK);
            assert_true(fmaxf(fabsf(least), fabsf(most)) == limit && least >= -limit && most <= limit);
        }
    }
}

static void the_exact_mse_range_is_the_best_of_the_grid(void **state) {
    tl_random random = {5};
    float data[200];
    int trial, rule, k;
    (void)state;
    for (trial = 0; trial < 40; trial++) {
        fill_random(&random, data, 200);
        for (rule = 0; rule < TL_RANGE_COUNT; rule++) {
            tl_observer_desc desc = desc_of(TL_OBSERVER_MSE);
            int32_t low = rule == TL_RANGE_NARROW ? -127 : -128;
            float all[2], range[2], size;
            tl_quantization q;
            double ours;
            tl_observer_desc plain = desc_of(TL_OBSERVER_MIN_MAX);
            desc.rule = (tl_range_rule)rule;
            assert_int_equal(tl_measure_range(NULL, &plain, data, 200, &all[0], &all[1]), TL_OK);
            assert_int_equal(tl_measure_range(NULL, &desc, data, 200, &range[0], &range[1]), TL_OK);
            assert_true(range[0] >= all[0] && range[1] <= all[1]);
            q = found((tl_range_rule)rule, range[0], range[1], low, 127);
            ours = noise_of(&q, data, 200).mse;
            size = fmaxf(fabsf(all[0]), fabsf(all[1]));
            for (k = 1; k <= 200; k++) {
                float share = (float)(k / 200.0), least = fminf(all[0], 0) * share, most = fmaxf(all[1], 0) * share;
                if (rule != TL_RANGE_AFFINE) most = size * share;
                if (rule != TL_RANGE_AFFINE) least = -most;
                q = found((tl_range_rule)rule, least, most, low, 127);
                assert_true(ours <= noise_of(&q, data, 200).mse);
            }
        }
    }
}

// An outlier above in 4 bits: a common share of both ends could cut it only together with the data below.
static void an_affine_mse_range_cuts_each_end_by_itself(void **state) {
    enum { COUNT = 4001 };
    tl_observer_desc desc = desc_of(TL_OBSERVER_MSE);
    tl_random random = {23};
    float data[COUNT], least[2], most[2];
    tl_observation seen;
    tl_observer *observer;
    tl_env env = {0};
    int i, k;
    (void)state;
    desc.rule = TL_RANGE_AFFINE;
    desc.high = 7;
    for (i = 0; i < COUNT - 1; i++) data[i] = 2 * (float)tl_next_random_ratio(&random) - 1;
    data[COUNT - 1] = 40;
    assert_int_equal(tl_measure_range(NULL, &desc, data, COUNT, &least[0], &most[0]), TL_OK);
    observer = observer_of(&env, &desc);
    assert_int_equal(tl_observe_data(observer, data, COUNT), TL_OK);
    assert_int_equal(tl_measure_observer(observer, 0, &seen), TL_OK);
    tl_free_observer(observer);
    least[1] = seen.range_least;
    most[1] = seen.range_most;
    for (i = 0; i < 2; i++) {
        tl_quantization q = found(desc.rule, least[i], most[i], -8, 7);
        double ours = noise_of(&q, data, COUNT).mse;
        assert_true(least[i] < -0.5f && most[i] < 20);
        for (k = 1; k <= 100; k++) {
            float share = (float)k / 100;
            q = found(desc.rule, -share, 40 * share, -8, 7);
            assert_true(ours < noise_of(&q, data, COUNT).mse);
        }
    }
}

static void a_range_of_what_is_no_data_is_refused(void **state) {
    tl_observer_desc desc = desc_of(TL_OBSERVER_MIN_MAX);
    float data[2] = {1, 2}, least = 5, most = 5;
    tl_env env = {0};
    (void)state;
    expect_error(&env, tl_measure_range(&env, &desc, data, 0, &least, &most), TL_ERROR_INVALID_ARG,
                 "tl_measure_range: count: must be > 0");
    assert_true(least == 0 && most == 0);
    expect_error(&env, tl_measure_range(&env, &desc, NULL, 2, &least, &most), TL_ERROR_INVALID_ARG,
                 "tl_measure_range: data: must not be NULL");
    desc.channel_count = 2;
    expect_error(&env, tl_measure_range(&env, &desc, data, 2, &least, &most), TL_ERROR_INVALID_ARG,
                 "tl_measure_range: desc: must be of one channel");
    desc.channel_count = 1;
    desc.kind = TL_OBSERVER_COUNT;
    expect_error(&env, tl_measure_range(&env, &desc, data, 2, &least, &most), TL_ERROR_INVALID_ARG,
                 "tl_measure_range: kind: no such observer");
    desc.kind = TL_OBSERVER_MSE;
    data[1] = NAN;
    least = 5;
    expect_error(&env, tl_measure_range(&env, &desc, data, 2, &least, &most), TL_ERROR_INVALID_ARG,
                 "tl_measure_range: data: a value is not finite");
    assert_true(least == 0 && most == 0);
}

static void every_allocation_of_a_range_fails_in_turn(void **state) {
    tl_observer_desc desc = desc_of(TL_OBSERVER_ENTROPY);
    float data[3] = {1, 2, -3}, least, most;
    long at;
    (void)state;
    for (at = 0;; at++) {
        failing_alloc f = {0};
        tl_env env = failing_env(&f, at);
        tl_result result = tl_measure_range(&env, &desc, data, 3, &least, &most);
        assert_int_equal(f.live, 0);
        if (f.count <= at) {
            assert_int_equal(result, TL_OK);
            assert_true(least == -3 && most == 2);
            break;
        }
        expect_error(&env, result, TL_ERROR_NO_MEMORY, "tl_init_observer: no memory for the channels");
        assert_true(least == 0 && most == 0);
    }
    assert_int_equal(at, 1);
}

// -- observers --

static void observers_have_names_that_parse(void **state) {
    tl_observer_kind kind = TL_OBSERVER_MSE;
    int i;
    (void)state;
    for (i = 0; i < TL_OBSERVER_COUNT; i++) {
        assert_true(tl_parse_observer(tl_name_observer((tl_observer_kind)i), &kind));
        assert_int_equal(kind, i);
    }
    assert_false(tl_parse_observer("minmax", &kind));
    assert_int_equal(kind, 0);
    assert_string_equal(tl_name_observer(TL_OBSERVER_COUNT), "?");
}

static void min_max_and_sums_are_those_of_the_data(void **state) {
    static const float data[] = {0, 1.5f, -0.0f, -3, 2, 1e-8f, 0.5f};
    tl_observer_desc desc = desc_of(TL_OBSERVER_MIN_MAX);
    tl_observation seen = observed(&desc, data, 7);
    (void)state;
    assert_true(seen.least == -3 && seen.most == 2 && seen.range_least == -3 && seen.range_most == 2);
    assert_true(seen.count == 7 && seen.zero_count == 2 && seen.clipped_ratio == 0);
    assert_true(seen.square_sum == 2.25 + 9 + 4 + 0.25 + (double)1e-8f * 1e-8f);
}

static void sums_of_squares_are_rounded_once(void **state) {
    const float large = float_of_bits(0x7F7FFFFFu), small = float_of_bits(1);
    tl_observer_desc desc = desc_of(TL_OBSERVER_MIN_MAX);
    float data[5000];
    tl_random random = {6};
    int trial, i;
    (void)state;
    data[0] = large;
    data[1] = -large;
    data[2] = small;
    assert_true(observed(&desc, data, 2).square_sum == 2 * (double)large * large);
    assert_true(observed(&desc, data + 2, 1).square_sum == (double)small * small);
    for (trial = 0; trial < 50; trial++) {  // integers: the sum is known exactly
        uint64_t exact = 0;
        for (i = 0; i < 5000; i++) {
            int64_t value = (int64_t)tl_next_random_below(&random, 1 << 24) - (1 << 23);
            data[i] = (float)value;
            exact += (uint64_t)(value * value);
        }
        assert_true(observed(&desc, data, 5000).square_sum == (double)exact);
        data[0] = ldexpf(1, 60);  // 2^120 + exact: as far as 53 digits go, with what lies below a half
        data[1] = 0;
        assert_true(observed(&desc, data, 2).square_sum == ldexp(1, 120));
    }
    data[0] = 67108864;  // 2^52, 1/4 and 1/4: a half more than 2^52 is even, a bit above it is not
    data[1] = data[2] = 0.5f;
    data[3] = 1e-20f;
    assert_true(observed(&desc, data, 3).square_sum == ldexp(1, 52));
    data[0] = 94906272;  // its square is even and above 2^53, where doubles are 2 apart: 1 more is half way
    data[1] = 1;
    data[2] = 1e-20f;
    assert_true(observed(&desc, data, 2).square_sum == 94906272.0 * 94906272.0);
    assert_true(observed(&desc, data, 3).square_sum == 94906272.0 * 94906272.0 + 2);
}

static void a_moving_average_moves_by_its_rate(void **state) {
    tl_observer_desc desc = desc_of(TL_OBSERVER_MOVING_AVERAGE);
    float data[4] = {-1, 3, 0, 0};
    tl_env env = {0};
    tl_observer *observer;
    tl_observation seen;
    (void)state;
    desc.rate = 0.25;
    observer = observer_of(&env, &desc);
    observe(observer, data, 4);
    seen = seen_by(observer, 0);
    assert_true(seen.range_least == -1 && seen.range_most == 3);
    data[0] = -5;
    data[1] = 11;
    observe(observer, data, 4);
    observe(observer, data, 0);
    seen = seen_by(observer, 0);
    assert_true(seen.range_least == -2 && seen.range_most == 5 && seen.least == -5 && seen.most == 11);
    tl_free_observer(observer);
    desc.rate = 0;
    observer = observer_of(&env, &desc);
    data[1] = 0;
    observe(observer, data, 1);
    observe(observer, data + 1, 1);
    assert_true(seen_by(observer, 0).range_least == (float)(-5 * 0.99));
    tl_free_observer(observer);
}

// Everything but the order of batches: extremes, counts, sums, bins.
static void expect_same(const tl_observer *a, const tl_observer *b) {
    int32_t i;
    for (i = 0; i < a->desc.channel_count; i++) {
        tl_observation x = seen_by(a, i), y = seen_by(b, i);
        assert_memory_equal(&x, &y, sizeof x);
        assert_true(a->channels[i].tiny_count == b->channels[i].tiny_count);
        assert_memory_equal(a->channels[i].squares, b->channels[i].squares, sizeof a->channels[i].squares);
    }
    if (a->bins)
        assert_memory_equal(a->bins, b->bins,
                            2 * (size_t)a->desc.channel_count * (size_t)a->desc.bin_count * sizeof *a->bins);
}

static void what_is_seen_does_not_depend_on_the_order_or_on_who_saw_it(void **state) {
    static const int kinds[] = {TL_OBSERVER_MIN_MAX, TL_OBSERVER_PERCENTILE, TL_OBSERVER_MSE, TL_OBSERVER_ENTROPY};
    tl_random random = {7};
    tl_env env = {0};
    int trial;
    (void)state;
    for (trial = 0; trial < scaled(60); trial++) {
        float data[700];
        int count = 1 + (int)tl_next_random_below(&random, 700), i;
        tl_observer_desc desc = desc_of((tl_observer_kind)kinds[trial % 4]);
        tl_observer *whole, *parts, *others[3];
        fill_random(&random, data, count);
        for (i = 0; i < count; i += 10) data[i] *= ldexpf(1, (int)tl_next_random_below(&random, 90) - 80);
        desc.bin_count = trial % 4 ? 128 : trial % 8 ? 256 : 0;
        desc.high = 31;
        whole = observer_of(&env, &desc);
        parts = observer_of(&env, &desc);
        observe(whole, data, (uint64_t)count);
        for (i = 0; i < 3; i++) others[i] = observer_of(&env, &desc);
        for (i = count - 1; i > 0; i--) {  // shuffled
            int other = (int)tl_next_random_below(&random, (uint64_t)i + 1);
            float kept = data[i];
            data[i] = data[other];
            data[other] = kept;
        }
        for (i = 0; i < count;) {
            int batch = 1 + (int)tl_next_random_below(&random, 200);
            if (batch > count - i) batch = count - i;
            observe(others[tl_next_random_below(&random, 3)], data + i, (uint64_t)batch);
            i += batch;
        }
        for (i = 0; i < 3; i++) assert_int_equal(tl_merge_observer(parts, others[i]), TL_OK);
        expect_same(whole, parts);
        for (i = 0; i < 3; i++) tl_free_observer(others[i]);
        tl_free_observer(whole);
        tl_free_observer(parts);
    }
}

static void an_observer_merged_with_itself_has_seen_all_twice(void **state) {
    tl_observer_desc desc = desc_of(TL_OBSERVER_PERCENTILE);
    float data[64];
    tl_random random = {8};
    tl_env env = {0};
    tl_observer *once = observer_of(&env, &desc), *twice = observer_of(&env, &desc);
    (void)state;
    fill_random(&random, data, 64);
    observe(once, data, 64);
    observe(twice, data, 64);
    observe(twice, data, 64);
    assert_int_equal(tl_merge_observer(once, once), TL_OK);
    expect_same(once, twice);
    tl_free_observer(once);
    tl_free_observer(twice);
}

static void merged_moving_averages_are_weighted_by_batches(void **state) {
    static const float first[] = {-1, 2}, second[] = {-4, 8};
    tl_observer_desc desc = desc_of(TL_OBSERVER_MOVING_AVERAGE);
    tl_env env = {0};
    tl_observer *a = observer_of(&env, &desc), *b = observer_of(&env, &desc), *empty = observer_of(&env, &desc);
    tl_observation seen;
    int i;
    (void)state;
    for (i = 0; i < 2; i++) observe(a, first, 2);
    observe(b, second, 2);
    assert_int_equal(tl_merge_observer(empty, a), TL_OK);
    assert_int_equal(tl_merge_observer(empty, b), TL_OK);
    seen = seen_by(empty, 0);
    assert_true(seen.range_least == -2 && seen.range_most == 4 && seen.least == -4 && seen.count == 6);
    tl_free_observer(a);
    tl_free_observer(b);
    tl_free_observer(empty);
}

static void channels_are_observed_as_if_alone(void **state) {
    enum { CHANNELS = 3, COUNT = 400 };
    static const int kinds[] = {TL_OBSERVER_MIN_MAX, TL_OBSERVER_MOVING_AVERAGE, TL_OBSERVER_PERCENTILE, TL_OBSERVER_MSE,
                                TL_OBSERVER_ENTROPY};
    tl_random random = {9};
    tl_env env = {0};
    int k;
    (void)state;
    for (k = 0; k < 15; k++) {
        tl_observer_desc desc = desc_of((tl_observer_kind)kinds[k % 5]), alone;
        uint64_t inner = k < 5 ? 1 : k < 10 ? 7 : 200;
        float data[COUNT], channel[COUNT];
        tl_observer *observer;
        int c, i, count;
        fill_random(&random, data, COUNT);
        desc.bin_count = 256;
        desc.high = 31;
        alone = desc;
        desc.channel_count = CHANNELS;
        desc.inner_count = inner;
        observer = observer_of(&env, &desc);
        observe(observer, data, COUNT);
        for (c = 0; c < CHANNELS; c++) {
            tl_observation a = seen_by(observer, c), b;
            for (i = count = 0; i < COUNT; i++)
                if ((int)((uint64_t)i / inner % CHANNELS) == c) channel[count++] = data[i];
            memset(&b, 0, sizeof b);
            if (count) b = observed(&alone, channel, (uint64_t)count);
            assert_memory_equal(&a, &b, sizeof a);
        }
        tl_free_observer(observer);
    }
}

static void scaling_data_by_a_power_of_two_scales_the_range(void **state) {
    tl_random random = {10};
    int trial, kind;
    (void)state;
    for (trial = 0; trial < scaled(20); trial++) {
        float data[600], scaled[600];
        int power = (int)tl_next_random_below(&random, 60) - 30, i;
        fill_random(&random, data, 600);
        for (i = 0; i < 600; i++) scaled[i] = ldexpf(data[i], power);
        for (kind = 0; kind < TL_OBSERVER_COUNT; kind++) {
            tl_observer_desc desc = desc_of((tl_observer_kind)kind);
            tl_observation a, b;
            desc.rule = (tl_range_rule)(trial % TL_RANGE_COUNT);
            a = observed(&desc, data, 600);
            b = observed(&desc, scaled, 600);
            assert_true(b.range_least == ldexpf(a.range_least, power) && b.range_most == ldexpf(a.range_most, power));
            assert_true(a.clipped_ratio == b.clipped_ratio && b.square_sum == ldexp(a.square_sum, 2 * power));
        }
    }
}

// The bins of magnitudes or of one sign, made here: the width of the observer, which the test may see.
static int fill_bins(const float *data, int count, int sign, double width, double *bins) {
    int used = 0, i;
    memset(bins, 0, 2048 * sizeof *bins);
    for (i = 0; i < count; i++) {
        int bin = (int)(fabs((double)data[i]) / width);
        if (data[i] == 0 || (sign > 0 && data[i] < 0) || (sign < 0 && data[i] > 0)) continue;
        bins[bin]++;
        if (bin + 1 > used) used = bin + 1;
    }
    return used;
}

static double width_for(const float *data, int count) {
    float size = 0;
    int exponent, i;
    for (i = 0; i < count; i++) size = fmaxf(size, fabsf(data[i]));
    frexp((double)size, &exponent);
    return ldexp(1, exponent - 11);
}

// Kullback-Leibler as the slides have it, in floating point: the first i bins against these in `levels`.
static double divergence(const double *bins, int all_bins, int i, int levels) {
    double p[2048] = { 0 }, q[2048], all = 0, within = 0, sum = 0;
    int j, level;
    for (j = 0; j < all_bins; j++) all += bins[j];
    for (j = 0; j < i; j++) {
        p[j] = bins[j];
        within += bins[j];
    }
    p[i - 1] += all - within;
    for (level = 0; level < levels; level++) {
        double mass = 0;
        int filled = 0;
        for (j = 0; j < i; j++)
            if ((int64_t)j * levels / i == level && bins[j] > 0) {
                mass += bins[j];
                filled++;
            }
        for (j = 0; j < i; j++)
            if ((int64_t)j * levels / i == level) q[j] = bins[j] > 0 ? mass / filled : 0;
    }
    for (j = 0; j < i; j++) {
        if (p[j] > 0 && !(q[j] > 0)) return INFINITY;
        if (p[j] > 0) sum += p[j] / all * log(p[j] / all / (q[j] / within));
    }
    return sum;
}

static void the_entropy_threshold_is_the_argument_of_the_least_divergence(void **state) {
    tl_random random = {11};
    int trial, cut = 0;
    (void)state;
    for (trial = 0; trial < scaled(3); trial++) {
        enum { COUNT = 20000 };
        tl_observer_desc desc = desc_of(TL_OBSERVER_ENTROPY);
        float *data = (float *)malloc(COUNT * sizeof *data);
        double bins[2048], width, least = INFINITY, ours;
        tl_observation seen;
        int used, i, at;
        assert_non_null(data);
        for (i = 0; i < COUNT; i++) {
            data[i] = random_bell(&random);
            if (trial % 3 == 0 && i % 500 == 0) data[i] *= 6;
            if (trial % 3 == 1 && data[i] < 0) data[i] = 0;
            if (trial % 3 == 2) data[i] *= fabsf(data[i]);
        }
        desc.high = 15;
        seen = observed(&desc, data, COUNT);
        width = width_for(data, COUNT);
        used = fill_bins(data, COUNT, 0, width, bins);
        at = (int)ceil(fmax(-seen.range_least, seen.range_most) / width);
        if (at > used) at = used;
        ours = divergence(bins, used, at, 16);
        for (i = 16; i <= used; i++) {
            double other = divergence(bins, used, i, 16);
            if (other < least) least = other;
        }
        if (ours > least + 1e-10) fail_msg("trial %d: %d bins, divergence %.12g, least %.12g", trial, at, ours, least);
        cut += at < used;
        free(data);
    }
    assert_true(cut * 10 >= trial * 9);     // seldom the whole range is the best
}

// The integral of the squared error over a bin, level by level, in floating point.
static double bin_error(double from, double to, double scale, int last) {
    double sum = 0, at = from;
    while (at < to) {
        double level = fmin(floor(at / scale + 0.5 + 1e-12), last), end = level < last ? fmin((level + 0.5) * scale, to) : to;
        double a = at - level * scale, b = end - level * scale;
        sum += (b * b * b - a * a * a) / 3;
        at = end;
    }
    return sum / (to - from);
}

static double clip_error(double bins[2][2048], const int *used, double width, tl_range_rule rule, int above, int below) {
    int high = 15, low = rule == TL_RANGE_NARROW ? -15 : -16, sign, i, zero = 0;
    double scale, sum = 0;
    if (rule == TL_RANGE_AFFINE) {
        scale = (above + below) * width / (high - low);
        zero = low + (int)floor((double)below * (high - low) / (above + below) + 0.5);
    } else {
        scale = above * width / (rule == TL_RANGE_HALF ? 15.5 : 15);
    }
    for (sign = 0; sign < 2; sign++)
        for (i = 0; i < used[sign]; i++)
            if (bins[sign][i] > 0)
                sum += bins[sign][i] * bin_error(i * width, (i + 1) * width, scale, sign ? zero - low : high - zero);
    return sum;
}

static void the_mse_range_has_the_least_error_of_its_histogram(void **state) {
    tl_random random = {12};
    int trial;
    (void)state;
    for (trial = 0; trial < scaled(12); trial++) {
        tl_observer_desc desc = desc_of(TL_OBSERVER_MSE);
        tl_range_rule rule = (tl_range_rule)(trial % TL_RANGE_COUNT);
        double bins[2][2048], width, ours, least = INFINITY;
        float data[3000];
        tl_observation seen;
        int used[2], size, ends[2], k;
        fill_random(&random, data, 3000);
        desc.high = 15;
        desc.rule = rule;
        seen = observed(&desc, data, 3000);
        width = width_for(data, 3000);
        used[0] = fill_bins(data, 3000, 1, width, bins[0]);
        used[1] = fill_bins(data, 3000, -1, width, bins[1]);
        size = used[0] > used[1] ? used[0] : used[1];
        for (k = 1; k <= 200; k++) {
            int affine = rule == TL_RANGE_AFFINE;
            double other = clip_error(bins, used, width, rule, ((affine ? used[0] : size) * k + 199) / 200,
                                      ((affine ? used[1] : size) * k + 199) / 200);
            if (other < least) least = other;
        }
        ends[0] = seen.range_most < seen.most ? (int)(seen.range_most / width) : used[0];
        ends[1] = seen.range_least > seen.least ? (int)(-seen.range_least / width) : used[1];
        if (rule != TL_RANGE_AFFINE) ends[0] = ends[1] = ends[0] > ends[1] ? ends[0] : ends[1];
        ours = clip_error(bins, used, width, rule, ends[0], ends[1]);
        if (ours > least * (1 + 1e-9)) fail_msg("trial %d %s: %.12g, best of the grid %.12g", trial, tl_name_range_rule(rule), ours, least);
    }
}

static void mse_ranges_of_histograms_are_near_the_exact_ones(void **state) {
    tl_random random = {13};
    tl_env env = {0};
    int trial;
    (void)state;
    for (trial = 0; trial < scaled(24); trial++) {
        tl_observer_desc desc = desc_of(TL_OBSERVER_MSE);
        tl_range_rule rule = (tl_range_rule)(trial % TL_RANGE_COUNT);
        int32_t low = rule == TL_RANGE_NARROW ? -127 : -128;
        float data[2000], least, most;
        tl_observation seen;
        tl_quantization a, b;
        double near_best, best;
        int i;
        fill_random(&random, data, 2000);
        for (i = 0; i < 2000; i++) data[i] *= 1000;  // far above the least scale
        desc.rule = rule;
        seen = observed(&desc, data, 2000);
        assert_int_equal(tl_measure_range(&env, &desc, data, 2000, &least, &most), TL_OK);
        a = found(rule, seen.range_least, seen.range_most, low, 127);
        b = found(rule, least, most, low, 127);
        near_best = noise_of(&a, data, 2000).mse;
        best = noise_of(&b, data, 2000).mse;
        if (near_best > 1.05 * best + 1e-9 * most * most)
            fail_msg("trial %d %s: %g, exact %g", trial, tl_name_range_rule(rule), near_best, best);
    }
}

// The value below which a share of a standard normal distribution lies.
static double normal_quantile(double share) {
    double low = -9, high = 9;
    int i;
    for (i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (0.5 * erfc(-middle / sqrt(2)) < share) low = middle;
        else high = middle;
    }
    return low;
}

static void the_mse_clip_of_known_distributions_is_the_closed_form(void **state) {
    enum { COUNT = 400000 };
    tl_observer_desc desc = desc_of(TL_OBSERVER_MSE);
    float *data = (float *)malloc(COUNT * sizeof *data);
    int step = is_thinned() ? 4 : 1, count = COUNT / step, i;
    double clip;
    (void)state;
    assert_non_null(data);
    desc.rule = TL_RANGE_HALF;
    for (i = 0; i < count; i++) {
        double share = (i + 0.5) / count;
        data[i] = (float)(share < 0.5 ? log(2 * share) : -log(2 - 2 * share));
    }
    clip = observed(&desc, data, (uint64_t)count).range_most;
    if (fabs(clip / 9.8968 - 1) > 0.04) fail_msg("Laplace: clip %g b", clip);
    for (i = 0; i < count / 4; i++) data[i] = (float)normal_quantile((i + 0.5) / (count / 4));
    clip = observed(&desc, data, (uint64_t)count / 4).range_most;
    if (fabs(clip / 3.924 - 1) > 0.03) fail_msg("Gauss: clip %g sigma", clip);
    free(data);
}

static void a_percentile_of_bins_holds_its_share_and_hardly_more(void **state) {
    tl_random random = {14};
    int trial;
    (void)state;
    for (trial = 0; trial < 100; trial++) {
        tl_observer_desc desc = desc_of(TL_OBSERVER_PERCENTILE);
        float data[1500], least, most, limit;
        tl_observation seen;
        int within = 0, i;
        fill_random(&random, data, 1500);
        desc.percentile_ratio = trial % 2 ? 0.99 : 0.7;
        seen = observed(&desc, data, 1500);
        assert_int_equal(tl_measure_range(NULL, &desc, data, 1500, &least, &most), TL_OK);
        limit = fmaxf(-seen.range_least, seen.range_most);
        for (i = 0; i < 1500; i++) within += fabsf(data[i]) <= limit;
        assert_true(within >= desc.percentile_ratio * 1500);
        assert_true(limit >= fmaxf(-least, most) && limit <= fmaxf(-least, most) + width_for(data, 1500));
        assert_true(seen.clipped_ratio <= 1 - desc.percentile_ratio + 1e-9);
        assert_true(fabs(seen.clipped_ratio - (1500 - within) / 1500.0) < 0.02);
    }
}

static void noise_estimated_from_a_histogram_is_near_the_noise_of_the_data(void **state) {
    tl_random random = {15};
    tl_env env = {0};
    int trial;
    (void)state;
    for (trial = 0; trial < scaled(80); trial++) {
        tl_observer_desc desc = desc_of(TL_OBSERVER_MIN_MAX);
        static float data[20000];
        float share = trial % 3 ? 1.0f : 0.6f;
        tl_range_rule rule = (tl_range_rule)(trial / 3 % TL_RANGE_COUNT);
        int32_t high = trial % 2 ? 127 : 32767;
        tl_quantization q;
        tl_observation seen;
        tl_noise exact, estimate;
        tl_observer *observer;
        int i;
        fill_random(&random, data, 20000);
        for (i = 0; i < 20000; i++) data[i] *= 1e6f;
        desc.bin_count = 2048;
        observer = observer_of(&env, &desc);
        observe(observer, data, 20000);
        seen = seen_by(observer, 0);
        q = found(rule, seen.least * share, seen.most * share, rule == TL_RANGE_NARROW ? -high : -high - 1, high);
        exact = noise_of(&q, data, 20000);
        assert_int_equal(tl_estimate_noise(observer, 0, &q, &estimate), TL_OK);
        tl_free_observer(observer);
        assert_true(estimate.count == 20000 && fabs(estimate.signal_sum / exact.signal_sum - 1) < 1e-12);
        if (seen.least < seen.most) assert_true(fabs(estimate.clipped_ratio - exact.clipped_ratio) < 0.01);
        if (seen.least == seen.most) {
            assert_true(fabs(sqrt(estimate.error_sum) - sqrt(exact.error_sum)) <= 1e-7 * sqrt(exact.signal_sum));
            continue;
        }
        if (fabs(estimate.sqnr_db - exact.sqnr_db) > 1)
            fail_msg("trial %d: estimate %g, exact %g", trial, estimate.sqnr_db, exact.sqnr_db);
        assert_true(fabs(estimate.mse - estimate.error_sum / 20000) <= 1e-15 * estimate.mse);
    }
}

static void numbers_of_any_size_are_counted(void **state) {
    static const uint32_t sizes[] = {1, 3, 0x7FFFFF, 0x800000, 0x800001, 0x33800000, 0x337FFFFF, 0x3F800000, 0x7F7FFFFF};
    int kind, trial;
    tl_random random = {16};
    (void)state;
    for (kind = 0; kind < TL_OBSERVER_COUNT; kind++)
        for (trial = 0; trial < 40; trial++) {
            tl_observer_desc desc = desc_of((tl_observer_kind)kind);
            float data[9];
            tl_env env = {0};
            tl_observer *observer = observer_of(&env, &desc);
            tl_observation seen;
            uint64_t total = 0;
            int i, j;
            for (i = 0; i < 9; i++) {
                int at = (int)tl_next_random_below(&random, 9);
                data[i] = float_of_bits(sizes[at] | (uint32_t)tl_next_random_below(&random, 2) << 31);
                observe(observer, &data[i], 1);
            }
            seen = seen_by(observer, 0);
            assert_true(isfinite(seen.range_least) && isfinite(seen.range_most) && isfinite(seen.square_sum));
            assert_true(seen.range_least <= seen.range_most && seen.range_most <= seen.most);
            for (j = 0; observer->bins && j < 2 * desc.bin_count + 4096; j++) total += observer->bins[j];
            assert_true(!observer->bins || total == 9);
            tl_free_observer(observer);
        }
}

static void channels_of_zeros_and_empty_ones_have_a_range(void **state) {
    int kind;
    (void)state;
    for (kind = 0; kind < TL_OBSERVER_COUNT; kind++) {
        tl_observer_desc desc = desc_of((tl_observer_kind)kind);
        float data[6] = {0, 0, 0, 2, -1, 0};
        tl_env env = {0};
        tl_observer *observer;
        tl_observation seen;
        tl_quantization q;
        tl_noise noise;
        desc.channel_count = 3;
        desc.inner_count = 3;
        desc.bin_count = 128;
        observer = observer_of(&env, &desc);
        observe(observer, data, 6);
        seen = seen_by(observer, 0);
        assert_true(seen.count == 3 && seen.zero_count == 3 && seen.range_least == 0 && seen.range_most == 0);
        assert_int_equal(tl_find_observed_quantization(observer, 0, TL_RANGE_AFFINE, -128, 127, &q), TL_OK);
        assert_true(q.scale > 0);
        assert_int_equal(tl_estimate_noise(observer, 0, &q, &noise), TL_OK);
        assert_true(noise.is_exact && noise.sqnr_db == 0 && noise.count == 3);
        assert_int_equal(tl_find_observed_quantization(observer, 1, TL_RANGE_NARROW, -127, 127, &q), TL_OK);
        seen = seen_by(observer, 2);
        assert_true(is_zero(&seen, sizeof seen));
        memset(&q, 1, sizeof q);
        expect_error(&env, tl_find_observed_quantization(observer, 2, TL_RANGE_AFFINE, -128, 127, &q), TL_ERROR_NOT_FOUND,
                     "tl_find_observed_quantization: channel: 2 has seen nothing");
        assert_true(is_zero(&q, sizeof q));
        q = found(TL_RANGE_AFFINE, 0, 1, -128, 127);
        memset(&noise, 1, sizeof noise);
        expect_error(&env, tl_estimate_noise(observer, 2, &q, &noise), TL_ERROR_NOT_FOUND,
                     "tl_estimate_noise: channel: 2 has seen nothing");
        assert_true(is_zero(&noise, sizeof noise));
        tl_free_observer(observer);
    }
}

// Student's t with 3 degrees of freedom: normal / sqrt(sum of 3 squares of normals / 3).
static void fill_heavy(float *data, size_t count) {
    tl_random random = { 2026 };
    size_t i;
    int k, j;
    for (i = 0; i < count; i++) {
        double sums[4] = { 0, 0, 0, 0 };
        for (k = 0; k < 4; k++) {
            for (j = 0; j < 12; j++) sums[k] += tl_next_random_ratio(&random);
            sums[k] -= 6;
        }
        data[i] = (float)(sums[0] / sqrt((sums[1] * sums[1] + sums[2] * sums[2] + sums[3] * sums[3]) / 3));
    }
}

// The kind that a zeroed desc has loses least on any data; what entropy clips of a heavy tail costs more than min-max.
static void mse_is_the_default_and_loses_least(void **state) {
    enum { COUNT = 40000 };
    static float heavy[COUNT];
    tl_observer_desc zeroed;
    double mse[TL_OBSERVER_COUNT];
    int kind;
    (void)state;
    memset(&zeroed, 0, sizeof zeroed);
    assert_int_equal(zeroed.kind, TL_OBSERVER_MSE);
    fill_heavy(heavy, COUNT);
    for (kind = 0; kind < TL_OBSERVER_COUNT; kind++) {
        tl_observer_desc desc = desc_of((tl_observer_kind)kind);
        tl_env env = {0};
        tl_observer *observer = observer_of(&env, &desc);
        tl_quantization q;
        tl_noise noise;
        observe(observer, heavy, COUNT);
        assert_int_equal(tl_find_observed_quantization(observer, 0, TL_RANGE_AFFINE, -128, 127, &q), TL_OK);
        assert_int_equal(tl_measure_noise(&env, &q, heavy, NULL, COUNT, &noise), TL_OK);
        mse[kind] = noise.mse;
        tl_free_observer(observer);
    }
    for (kind = 0; kind < TL_OBSERVER_COUNT; kind++) assert_true(mse[TL_OBSERVER_MSE] <= mse[kind] * 1.001);
    assert_true(mse[TL_OBSERVER_ENTROPY] > 2 * mse[TL_OBSERVER_MIN_MAX]);
}

static void extremes_of_a_device_are_those_of_the_data(void **state) {
    int kind;
    (void)state;
    for (kind = TL_OBSERVER_MIN_MAX; kind <= TL_OBSERVER_MOVING_AVERAGE; kind++) {
        static const float data[] = {1, -2, 5, 3, -7, 0};
        tl_observer_desc desc = desc_of((tl_observer_kind)kind);
        tl_env env = {0};
        tl_observer *a = observer_of(&env, &desc), *b = observer_of(&env, &desc);
        tl_observation x, y;
        observe(a, data, 3);
        observe(a, data + 3, 3);
        assert_int_equal(tl_observe_extremes(b, 0, -2, 5, 3), TL_OK);
        assert_int_equal(tl_observe_extremes(b, 0, -7, 3, 3), TL_OK);
        x = seen_by(a, 0);
        y = seen_by(b, 0);
        assert_true(x.range_least == y.range_least && x.range_most == y.range_most && x.least == y.least);
        assert_true(x.most == y.most && x.count == y.count && y.square_sum == 0 && y.zero_count == 0);
        tl_free_observer(a);
        tl_free_observer(b);
    }
}

static void f16_is_safe_within_its_range(void **state) {
    tl_observer_desc desc = desc_of(TL_OBSERVER_MIN_MAX);
    float data[4] = {1, -65504, 5.9604645e-8f, 0};
    tl_env env = {0};
    tl_observer *observer = observer_of(&env, &desc);
    (void)state;
    assert_int_equal(tl_is_f16_safe(observer, 1, 1), 0);
    observe(observer, data, 4);
    assert_int_equal(tl_is_f16_safe(observer, 1, 0), 1);
    assert_int_equal(tl_is_f16_safe(observer, 0, 0), 1);
    assert_int_equal(tl_is_f16_safe(observer, 1.01, 0), 0);
    assert_int_equal(tl_is_f16_safe(observer, NAN, 0), 0);
    assert_int_equal(tl_is_f16_safe(observer, 0.5, 0), 0);
    assert_int_equal(tl_is_f16_safe(observer, INFINITY, 0), 0);
    assert_int_equal(tl_is_f16_safe(observer, 1, NAN), 0);
    assert_int_equal(tl_is_f16_safe(observer, 1, -1), 0);
    data[0] = 5.9e-8f;  // one of four that are not 0
    data[1] = 1;
    tl_free_observer(observer);
    assert_int_equal(tl_init_observer(&env, &desc, &observer), TL_OK);
    observe(observer, data, 4);
    observe(observer, data + 1, 1);
    assert_int_equal(tl_is_f16_safe(observer, 1, 0), 0);
    assert_int_equal(tl_is_f16_safe(observer, 1, 0.25), 1);
    assert_int_equal(tl_is_f16_safe(observer, 1, 0.2499), 0);
    tl_free_observer(observer);
}

// -- errors --

static void what_is_no_observer_is_refused(void **state) {
    static const struct { int kind, channels; double rate, ratio; int high, rule, bins; const char *text; } wrong[] = {
        {5, 0, 0, 0, 0, 0, 0, "kind: no such observer"},
        {-1, 0, 0, 0, 0, 0, 0, "kind: no such observer"},
        {0, -1, 0, 0, 0, 0, 0, "channel_count: must be >= 0"},
        {1, 0, NAN, 0, 0, 0, 0, "rate: must be > 0 and <= 1"},
        {1, 0, -0.1, 0, 0, 0, 0, "rate: must be > 0 and <= 1"},
        {1, 0, 1.1, 0, 0, 0, 0, "rate: must be > 0 and <= 1"},
        {2, 0, 0, NAN, 0, 0, 0, "percentile_ratio: must be > 0 and <= 1"},
        {2, 0, 0, 1.5, 0, 0, 0, "percentile_ratio: must be > 0 and <= 1"},
        {3, 0, 0, 0, -1, 0, 0, "high: must be within 1 .. 32767"},
        {3, 0, 0, 0, 32768, 0, 0, "high: must be within 1 .. 32767"},
        {3, 0, 0, 0, 0, 4, 0, "rule: no such rule"},
        {4, 0, 0, 0, 0, 0, 100, "bin_count: must be a power of two within 128 .. 8192"},
        {4, 0, 0, 0, 0, 0, 64, "bin_count: must be a power of two within 128 .. 8192"},
        {4, 0, 0, 0, 0, 0, 16384, "bin_count: must be a power of two within 128 .. 8192"},
        {4, 0, 0, 0, 0, 0, -128, "bin_count: must be a power of two within 128 .. 8192"},
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tl_observer_desc desc = desc_of((tl_observer_kind)wrong[i].kind);
        tl_observer *observer = (tl_observer *)&desc;
        tl_env env = {0};
        char text[200];
        desc.channel_count = wrong[i].channels;
        desc.rate = wrong[i].rate;
        desc.percentile_ratio = wrong[i].ratio;
        desc.high = wrong[i].high;
        desc.rule = (tl_range_rule)wrong[i].rule;
        desc.bin_count = wrong[i].bins;
        snprintf(text, sizeof text, "tl_init_observer: %s", wrong[i].text);
        expect_error(&env, tl_init_observer(&env, &desc, &observer), TL_ERROR_INVALID_ARG, text);
        assert_null(observer);
    }
    tl_free_observer(NULL);
}

static void the_allocation_of_an_observer_may_fail(void **state) {
    tl_observer_desc desc = desc_of(TL_OBSERVER_MSE);
    failing_alloc f = {0};
    tl_env env = failing_env(&f, 0);
    tl_observer *observer;
    (void)state;
    desc.channel_count = INT32_MAX;
    desc.bin_count = 8192;
    expect_error(&env, tl_init_observer(&env, &desc, &observer), TL_ERROR_NO_MEMORY,
                 "tl_init_observer: no memory for the channels");
    assert_null(observer);
    env = failing_env(&f, -1);
    desc.channel_count = 2;
    assert_int_equal(tl_init_observer(&env, &desc, &observer), TL_OK);
    assert_int_equal(f.live, 1);
    tl_free_observer(observer);
    assert_int_equal(f.live, 0);
}

static void a_refused_batch_leaves_the_observer_as_it_was(void **state) {
    int kind;
    (void)state;
    for (kind = 0; kind < TL_OBSERVER_COUNT; kind++) {
        tl_observer_desc desc = desc_of((tl_observer_kind)kind);
        float data[8] = {1, 2, -3, 4, 5, 6, 7, 8};
        tl_env env = {0};
        tl_observer *a, *b;
        desc.channel_count = 2;
        desc.bin_count = 128;
        a = observer_of(&env, &desc);
        b = observer_of(&env, &desc);
        observe(a, data, 8);
        observe(b, data, 8);
        data[0] = 1e9f;
        data[7] = kind % 2 ? NAN : -INFINITY;
        expect_error(&env, tl_observe_data(a, data, 8), TL_ERROR_INVALID_ARG, "tl_observe_data: data: a value is not finite");
        expect_error(&env, tl_observe_data(a, NULL, 1), TL_ERROR_INVALID_ARG, "tl_observe_data: data: must not be NULL");
        a->channels[1].count = b->channels[1].count = UINT64_C(1) << 48;
        expect_error(&env, tl_observe_data(a, data, 7), TL_ERROR_OVERFLOW,
                     "tl_observe_data: count: a channel takes at most 2^48 values");
        expect_error(&env, tl_merge_observer(a, b), TL_ERROR_OVERFLOW,
                     "tl_merge_observer: count: a channel takes at most 2^48 values");
        a->channels[1].count = b->channels[1].count = 4;
        expect_same(a, b);
        desc.high = 126;
        tl_free_observer(b);
        b = observer_of(&env, &desc);
        expect_error(&env, tl_merge_observer(a, b), TL_ERROR_INVALID_ARG, "tl_merge_observer: other: must be of the same desc");
        tl_free_observer(a);
        tl_free_observer(b);
    }
}

static void what_observers_cannot_answer_is_refused(void **state) {
    tl_observer_desc desc = desc_of(TL_OBSERVER_MIN_MAX);
    tl_env env = {0};
    tl_observer *plain = observer_of(&env, &desc), *binned;
    tl_quantization q = found(TL_RANGE_AFFINE, 0, 1, -128, 127);
    tl_observation seen;
    tl_noise noise;
    float one = 1;
    (void)state;
    desc.kind = TL_OBSERVER_MSE;
    binned = observer_of(&env, &desc);
    memset(&seen, 1, sizeof seen);
    expect_error(&env, tl_measure_observer(plain, 1, &seen), TL_ERROR_INVALID_ARG, "tl_measure_observer: channel: no such channel");
    assert_true(is_zero(&seen, sizeof seen));
    expect_error(&env, tl_find_observed_quantization(plain, -1, TL_RANGE_AFFINE, 0, 255, &q), TL_ERROR_INVALID_ARG,
                 "tl_find_observed_quantization: channel: no such channel");
    observe(plain, &one, 1);
    expect_error(&env, tl_find_observed_quantization(plain, 0, TL_RANGE_AFFINE, 9, 5, &q), TL_ERROR_INVALID_ARG,
                 "tl_find_quantization: low: must be < high");
    expect_error(&env, tl_estimate_noise(binned, 0, &q, &noise), TL_ERROR_INVALID_ARG,
                 "tl_estimate_noise: quantization: scale: must be finite and > 0");
    q = found(TL_RANGE_AFFINE, 0, 1, -128, 127);
    expect_error(&env, tl_estimate_noise(plain, 0, &q, &noise), TL_ERROR_UNSUPPORTED,
                 "tl_estimate_noise: observer: has no histogram");
    expect_error(&env, tl_estimate_noise(binned, 1, &q, &noise), TL_ERROR_INVALID_ARG,
                 "tl_estimate_noise: channel: no such channel");
    expect_error(&env, tl_observe_extremes(binned, 0, 0, 1, 1), TL_ERROR_UNSUPPORTED,
                 "tl_observe_extremes: observer: a histogram needs the data");
    expect_error(&env, tl_observe_extremes(plain, 1, 0, 1, 1), TL_ERROR_INVALID_ARG,
                 "tl_observe_extremes: channel: no such channel");
    expect_error(&env, tl_observe_extremes(plain, 0, NAN, 1, 1), TL_ERROR_INVALID_ARG,
                 "tl_observe_extremes: least: must be finite");
    expect_error(&env, tl_observe_extremes(plain, 0, 0, INFINITY, 1), TL_ERROR_INVALID_ARG,
                 "tl_observe_extremes: most: must be finite");
    expect_error(&env, tl_observe_extremes(plain, 0, 2, 1, 1), TL_ERROR_INVALID_ARG,
                 "tl_observe_extremes: least: must be <= most");
    expect_error(&env, tl_observe_extremes(plain, 0, 0, 1, 0), TL_ERROR_INVALID_ARG,
                 "tl_observe_extremes: count: must be > 0");
    expect_error(&env, tl_observe_extremes(plain, 0, 0, 1, UINT64_C(1) << 48), TL_ERROR_OVERFLOW,
                 "tl_observe_extremes: count: a channel takes at most 2^48 values");
    assert_int_equal(seen_by(plain, 0).count, 1);
    tl_free_observer(plain);
    tl_free_observer(binned);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms_equal_those_of_libm),
        cmocka_unit_test(wide_products_equal_those_of_halves),
        cmocka_unit_test(every_row_of_the_reference_table_is_equal),
        cmocka_unit_test(noise_has_its_closed_forms),
        cmocka_unit_test(weights_multiply_squared_errors),
        cmocka_unit_test(formats_lose_what_their_conversions_lose),
        cmocka_unit_test(noise_of_what_is_no_data_is_refused),
        cmocka_unit_test(a_percentile_is_the_value_of_that_rank),
        cmocka_unit_test(the_exact_mse_range_is_the_best_of_the_grid),
        cmocka_unit_test(an_affine_mse_range_cuts_each_end_by_itself),
        cmocka_unit_test(a_range_of_what_is_no_data_is_refused),
        cmocka_unit_test(every_allocation_of_a_range_fails_in_turn),
        cmocka_unit_test(observers_have_names_that_parse),
        cmocka_unit_test(min_max_and_sums_are_those_of_the_data),
        cmocka_unit_test(sums_of_squares_are_rounded_once),
        cmocka_unit_test(a_moving_average_moves_by_its_rate),
        cmocka_unit_test(what_is_seen_does_not_depend_on_the_order_or_on_who_saw_it),
        cmocka_unit_test(an_observer_merged_with_itself_has_seen_all_twice),
        cmocka_unit_test(merged_moving_averages_are_weighted_by_batches),
        cmocka_unit_test(channels_are_observed_as_if_alone),
        cmocka_unit_test(scaling_data_by_a_power_of_two_scales_the_range),
        cmocka_unit_test(the_entropy_threshold_is_the_argument_of_the_least_divergence),
        cmocka_unit_test(the_mse_range_has_the_least_error_of_its_histogram),
        cmocka_unit_test(mse_ranges_of_histograms_are_near_the_exact_ones),
        cmocka_unit_test(the_mse_clip_of_known_distributions_is_the_closed_form),
        cmocka_unit_test(a_percentile_of_bins_holds_its_share_and_hardly_more),
        cmocka_unit_test(noise_estimated_from_a_histogram_is_near_the_noise_of_the_data),
        cmocka_unit_test(numbers_of_any_size_are_counted),
        cmocka_unit_test(channels_of_zeros_and_empty_ones_have_a_range),
        cmocka_unit_test(mse_is_the_default_and_loses_least),
        cmocka_unit_test(extremes_of_a_device_are_those_of_the_data),
        cmocka_unit_test(f16_is_safe_within_its_range),
        cmocka_unit_test(what_is_no_observer_is_refused),
        cmocka_unit_test(the_allocation_of_an_observer_may_fail),
        cmocka_unit_test(a_refused_batch_leaves_the_observer_as_it_was),
        cmocka_unit_test(what_observers_cannot_answer_is_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
