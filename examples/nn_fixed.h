/* nn_fixed.h - fixed-point arithmetic that integer kernels share, for the examples

   Plain C99 that is also C++11: no allocation, no state, nothing of the C library. It is what
   nn_int.h (blocks on the stack, for a desktop) and nn_tiny.h (for microcontrollers) stand on.

   CONTENTS    (search for "// -- ")
               requantise    quantise    lookup
*/
#ifndef NN_FIXED_H
#define NN_FIXED_H

#include <stddef.h>
#include <stdint.h>

// -- requantise: from a sum of products to an integer of the output --
//
// The factor (scale of in) (scale of weight) / (scale of out) is an integer and a power of two, so
// nothing here is float. Two roundings, as in gemmlowp and TensorFlow Lite: the high half of twice
// the product, halves up; then the shift, halves away from zero.
// Reference: Jacob et al., Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference, 2018, arXiv:1712.05877, section 2.2.

typedef struct nn_int_factor {
    int32_t multiplier;  // 2^30 .. 2^31 - 1, or 0
    int32_t exponent;    // the factor is multiplier 2^(exponent - 31)
} nn_int_factor;

// What integers come out.
typedef struct nn_int_target {
    int32_t zero, low, high;
} nn_int_target;

static inline int64_t nn_int_clamp(int64_t value, int64_t low, int64_t high) {
    value = value < low ? low : value;
    return value > high ? high : value;
}

// value / 2^shift, halves away from zero; shift 0 .. 62.
static inline int64_t nn_int_shift(int64_t value, int32_t shift) {
    int64_t half = ((int64_t)1 << shift) >> 1;
    return (value + half - ((value < 0) & (shift > 0))) >> shift;
}

// value / 2^shift, halves away from zero; value is not INT32_MIN, shift 1 .. 31.
static inline int32_t nn_int_shift_right(int32_t value, int32_t shift) {
    value = (value - (value < 0)) >> (shift - 1);  // a negative half is one below now
    return (value + 1) >> 1;
}

// value * 2^shift, at most what int32 holds; shift 0 .. 31.
static inline int32_t nn_int_shift_left(int32_t value, int32_t shift) {
    if (value > INT32_MAX >> shift) return INT32_MAX;
    if (value < -(INT32_MAX >> shift) - 1) return INT32_MIN;
    return (int32_t)((uint32_t)value << shift);
}

// a b / 2^31, halves up; one of them is not INT32_MIN.
static inline int32_t nn_int_multiply(int32_t a, int32_t b) {
    return (int32_t)(((int64_t)a * b + (INT64_C(1) << 30)) >> 31);
}

#ifdef __GNUC__
#define NN_INT_RARELY(condition) __builtin_expect(!!(condition), 0)
#else
#define NN_INT_RARELY(condition) (condition)
#endif

// sum multiplier 2^(exponent - 31); exponent -31 .. 31, multiplier >= 0.
static inline int32_t nn_int_scale(int32_t sum, int32_t multiplier, int32_t exponent) {
    if (NN_INT_RARELY(exponent > 0)) sum = nn_int_shift_left(sum, exponent);
    sum = nn_int_multiply(sum, multiplier);  // no INT32_MIN
    return NN_INT_RARELY(exponent >= 0) ? sum : nn_int_shift_right(sum, -exponent);
}

static inline int32_t nn_int_requantize(int32_t sum, nn_int_factor factor, nn_int_target to) {
    int32_t left = factor.exponent > 0 ? factor.exponent : 0, right = left - factor.exponent;
    int64_t value = left ? nn_int_shift_left(sum, left > 31 ? 31 : left) : sum;
    value = nn_int_multiply((int32_t)value, factor.multiplier);
    value = nn_int_shift(value, right > 62 ? 62 : right);
    return (int32_t)nn_int_clamp(value + to.zero, to.low, to.high);
}

// The same for sums that int32 does not hold: these are halved until it does, which is exact to
// one part in 2^30.
static inline int32_t nn_int_requantize_wide(int64_t sum, nn_int_factor factor, nn_int_target to) {
    int32_t shift = 0;
    if (sum >= INT32_MIN && sum <= INT32_MAX) return nn_int_requantize((int32_t)sum, factor, to);
    while ((sum >> shift) < -(1 << 30) || (sum >> shift) >= 1 << 30) shift++;
    factor.exponent += shift;
    return nn_int_requantize((int32_t)nn_int_shift(sum, shift), factor, to);
}

// -- quantise: floats to integers and back --
//
// q = clamp(round(x / scale) + zero), halves to even. Written so that gcc and clang make vectors of
// it: the clamp comes first, and adding 1.5 * 2^23 leaves no bits for a fraction. The difference of
// the bounds must be below 2^22. A NaN becomes the zero point.

static inline int32_t nn_int_quantize(float x, float scale, nn_int_target to) {
    const float rounder = 12582912.0f;
    float low = (float)(to.low - to.zero), high = (float)(to.high - to.zero);
    float steps = x / scale;
    steps = steps == steps ? steps : 0.0f;
    steps = steps > low ? steps : low;
    steps = steps < high ? steps : high;
    steps = (steps + rounder) - rounder;
    return (int32_t)steps + to.zero;
}

static inline void nn_int8_quantize(int8_t *out, const float *in, size_t n, float scale,
                                    nn_int_target to) {
    for (size_t i = 0; i < n; i++) out[i] = (int8_t)nn_int_quantize(in[i], scale, to);
}

static inline void nn_int16_quantize(int16_t *out, const float *in, size_t n, float scale,
                                     nn_int_target to) {
    for (size_t i = 0; i < n; i++) out[i] = (int16_t)nn_int_quantize(in[i], scale, to);
}

static inline void nn_int8_dequantize(float *out, const int8_t *in, size_t n, float scale,
                                      int32_t zero) {
    for (size_t i = 0; i < n; i++) out[i] = (float)(in[i] - zero) * scale;
}

static inline void nn_int16_dequantize(float *out, const int16_t *in, size_t n, float scale,
                                       int32_t zero) {
    for (size_t i = 0; i < n; i++) out[i] = (float)(in[i] - zero) * scale;
}

// -- lookup --

// A function of one int8 is a table of 256 values, whatever it computes and whatever the scales
// are: the entry of q stands at q + 128.
static inline void nn_int8_lookup_forward(int8_t *out, const int8_t *in, const int8_t *table,
                                          size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = table[in[i] + 128];
}

// Fill the table of a function of floats, (n) in and out, between two quantisations.
static inline void nn_int8_fill_table(int8_t *table,  // [256]
                                      void (*function)(float *, const float *, size_t),
                                      float in_scale, int32_t in_zero, float out_scale,
                                      nn_int_target to) {
    int8_t bytes[256];
    float x[256], y[256];
    for (int i = 0; i < 256; i++) bytes[i] = (int8_t)(i - 128);
    nn_int8_dequantize(x, bytes, 256, in_scale, in_zero);
    function(y, x, 256);
    nn_int8_quantize(table, y, 256, out_scale, to);
}

// The nearest integer within bounds, halves away from zero.
static inline int32_t nn_int_round(double x, int32_t low, int32_t high) {
    x += x < 0 ? -0.5 : 0.5;
    return x <= low ? low : x >= high ? high : (int32_t)x;
}

// Fill the table of a function of one int16, lines between 513 entries: that of q = 128 i - 32768
// is entry i. As TensorFlow Lite does it (LUTPopulate, in doubles): an entry is moved by half of
// what the middle of its line misses, and the last one is that of 32767. in_scale is that of q -
// in_zero; the output has zero point 0.
static inline void nn_int16_fill_table(int16_t *table,  // [513]
                                       double (*function)(double), double in_scale, int32_t in_zero,
                                       double out_scale) {
    double first = in_scale * (-32768 - in_zero), last = in_scale * (32767 - in_zero);
    double step = (last - first) / 512, steps = 65536 / (out_scale * 65535);
    for (int i = 0; i < 512; i++) {
        const int32_t most = 1 << 24;
        double ends = function(first + (i + 1) * step) * steps;
        int32_t begins = nn_int_round(function(first + i * step) * steps, -most, most);
        int32_t middle = nn_int_round(function(first + i * step + step / 2) * steps, -most, most);
        middle = nn_int_round((ends + begins) / 2, -most, most) - middle;
        table[i] =
            (int16_t)nn_int_clamp(begins - nn_int_round(middle / 2.0, -most, most), -32768, 32767);
    }
    table[512] = (int16_t)nn_int_round(function(last) * steps, -32768, 32767);
}

// Fill the table of sigmoid(i / 24) 2^16 that TensorFlow Lite and CMSIS-NN have for int16: again an
// entry is moved by half of what the middle of its line misses.
static inline void nn_int16_fill_sigmoid(uint16_t *table,  // [256]
                                         double (*sigmoid)(double)) {
    for (int i = 0; i < 255; i++) {
        double here = sigmoid(i / 24.0), middle = (here + sigmoid((i + 1) / 24.0)) / 2;
        here += (sigmoid((i + 0.5) / 24.0) - middle) / 2;
        table[i] = (uint16_t)nn_int_round(65536 * here, 0, 65535);
    }
    table[255] = 65535;
}

#endif
