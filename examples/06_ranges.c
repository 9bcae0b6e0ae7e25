// 06_ranges.c -- from numbers to integers: observers, quantisations, noise, an integer dot product
//
// You learn: how the range of a tensor is found while its data passes by, what each way of finding
// it costs in noise, when 16-bit floats are the better choice, and how sums of products of integers
// become integers again. It prints a row for each kind of observer and for each format, then one
// output of a layer in floats and in integers. Read next: 05_quantize.c, which does this to networks.
//
// check:
//
//     mkdir -p build && cc -o build/06_ranges examples/06_ranges.c && build/06_ranges

#include <stdio.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

enum { COUNT = 4096, HALF = COUNT / 2 };
static float activations[COUNT], weights[COUNT];

static int fail(const tl_env *env) {
    fprintf(stderr, "%s\n", env->error.text);
    return 1;
}

// Sums of twelve uniform numbers are nearly normal; one value in 512 is an outlier.
static void make_data(void) {
    tl_random random = { 6 };
    for (int i = 0; i < COUNT; i++) {
        double sum = -6, other = -6;
        for (int k = 0; k < 12; k++) {
            sum += tl_next_random_ratio(&random);
            other += tl_next_random_ratio(&random);
        }
        activations[i] = (float)(i % 512 == 7 ? 8 * sum : sum);
        weights[i] = (float)(other / 64);
    }
}

// Two threads would each observe their half; the merged observer is that of all the data.
static int show_observer(tl_env *env, tl_observer_kind kind) {
    tl_observer_desc desc = { kind, 0, 0, 0, 0, 0, TL_RANGE_AFFINE, 2048 };
    tl_observer *first, *second = NULL;
    tl_observation seen;
    tl_quantization q;
    tl_noise estimate, noise;
    float least, most;
    int failed = tl_init_observer(env, &desc, &first) || tl_init_observer(env, &desc, &second) ||
                 tl_observe_data(first, activations, HALF) ||
                 tl_observe_data(second, activations + HALF, HALF) ||
                 tl_merge_observer(first, second) || tl_measure_observer(first, 0, &seen) ||
                 tl_find_observed_quantization(first, 0, TL_RANGE_AFFINE, -128, 127, &q) ||
                 tl_estimate_noise(first, 0, &q, &estimate) ||
                 tl_measure_noise(env, &q, activations, NULL, COUNT, &noise) ||
                 tl_measure_range(env, &desc, activations, COUNT, &least, &most);
    if (!failed)
        printf("%-15s %7.2f .. %5.2f %7.2f .. %5.2f %7.1f %9.1f %8.2f %%\n", tl_name_observer(kind),
               (double)seen.range_least, (double)seen.range_most, (double)least, (double)most,
               estimate.sqnr_db, noise.sqnr_db, 100 * noise.clipped_ratio);
    if (!failed && kind == TL_OBSERVER_COUNT - 1)
        printf("f16 holds the data with a margin of 2: %s\n", tl_is_f16_safe(first, 2, 0) ? "yes" : "no");
    tl_free_observer(first);
    tl_free_observer(second);
    return failed ? fail(env) : 0;
}

static int show_format(tl_env *env, tl_format format) {
    tl_noise noise;
    if (tl_measure_format_noise(env, format, activations, NULL, COUNT, &noise)) return fail(env);
    printf("%-15s %.1f dB\n", tl_name_format(format), noise.sqnr_db);
    return 0;
}

// x w in floats; then in integers: x quantised when it arrives, w beforehand, the sum requantised.
static int show_product(tl_env *env) {
    static uint8_t x[COUNT];
    static int8_t w[COUNT];
    tl_quantization qx, qw, qy;
    tl_multiplier multiplier;
    double exact = 0;
    int32_t sum = 0;
    if (tl_quantize_dynamic(env, activations, x, COUNT, &qx) ||
        tl_find_quantization(env, TL_RANGE_NARROW, -0.1f, 0.1f, -128, 127, &qw) ||
        tl_quantize(env, &qw, 1, 1, TL_FORMAT_I8, weights, w, COUNT) ||
        tl_find_quantization(env, TL_RANGE_AFFINE, -4, 4, -128, 127, &qy) ||
        tl_find_multiplier(env, qx.scale, qw.scale, qy.scale, &multiplier)) return fail(env);
    for (int i = 0; i < COUNT; i++) {
        exact += (double)activations[i] * (double)weights[i];
        sum += (x[i] - qx.zero_point) * w[i];
    }
    sum = tl_requantize(sum, multiplier, &qy);
    printf("a dot product (weights: %s): %.3f in floats, %.3f in integers, in steps of %.3f\n",
           tl_name_range_rule(TL_RANGE_NARROW), exact, (double)(sum - qy.zero_point) * (double)qy.scale,
           (double)qy.scale);
    return 0;
}

int main(void) {
    tl_env env = {0};
    int failed = 0;
    make_data();
    printf("observer            by histogram         exactly         dB  measured  clipped\n");
    for (int k = 0; k < TL_OBSERVER_COUNT; k++) failed |= show_observer(&env, (tl_observer_kind)k);
    for (int f = TL_FORMAT_F16; f <= TL_FORMAT_BF16; f++) failed |= show_format(&env, (tl_format)f);
    return failed | show_product(&env);
}
