/* nn_int.h - integer kernels for networks whose tensors were quantised, for the examples

   Plain C99 that is also C++11, one thread, no allocation, no I/O, no state, no intrinsics. An
   integer q stands for the number (q - zero) scale:

       activations   int8 with a zero point -128 .. 127, or int16 with zero point 0
       weights       int8 -127 .. 127 or int16 -32767 .. 32767, zero point 0; one scale for all, or
                     one for each output channel
       bias          integers of scale (scale of in) (scale of weight)
       sums          exact: int32 for int8 activations, int64 for int16

   Sums of products are sums of integers: the order does not matter, and every compiler and machine
   gives the same bits. Only what goes to float or comes from it is float arithmetic, one rounding
   an operation; build with -ffp-contract=off.

   LIMITS      int8: K <= 65536, then no sum overflows (65536 * 255 * 127 < 2^31). int16: K < 2^20.
   SPEED       -O3. The inner loop is one that gcc and clang turn into the instruction which adds up
               pairs of products (pmaddwd with SSE2): see matmul.
   STACK       48 KiB at most.

   LETTERS     R = rows, K = terms of a sum, N = output channels, n = elements, H, W = of an image,
               C = its channels; images are (H, W, C)

   CONTENTS    (search for "// -- ")
               matmul    linear    dynamic    conv2d    elementwise    pools    rows
   nn_fixed.h  requantise    quantise    lookup
*/
#ifndef NN_INT_H
#define NN_INT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "nn_fixed.h"
#include "nn_image.h"

// -- matmul --
//
// Both matrices stand with their rows along the sum: a is (R, K), b is (N, K), a row for each
// output channel. Blocks of both are widened to int16 on the stack; then four rows of a meet two of
// b:
//
//               K                    K                      N
//            +-----+              +-----+                +------+
//        R   |=====| 4 rows   N   |=====| 2 rows     R   | ::   | 8 sums
//            |  a  |              |  b  |                |      |
//            +-----+              +-----+                +------+
//
// The inner loop is eight sums of products of int16. The instruction for that multiplies eight
// pairs, adds neighbours and gives four int32: twice what a float instruction does, with less to
// load and nothing to store. clang has to be told how many pairs that are; gcc knows.
//
// The zero point of a costs nothing inside: sum (a - zero) b = sum a b - zero sum b, and sum b is
// known beforehand. int16 times int8 fills int32 after 512 terms, so these sums go to int64 block
// by block; int16 times int16 is two such passes, the upper and the lower byte of the weight.

enum {
    NN_INT_ROWS    = 32,   // rows of a block of a, a multiple of 4
    NN_INT_COLUMNS = 32,   // rows of a block of b, an even number
    NN_INT_DEPTH   = 256   // terms of a block; 256 * 2^15 * 2^7 = 2^30 fits int32
};

#ifdef __clang__
#define NN_INT_PAIRS _Pragma("clang loop vectorize_width(8) interleave_count(1)")
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"  // below -O2 there are no vectors
#else
#define NN_INT_PAIRS
#endif

// sums (4, 2) += a (4, depth) b (2, depth); rows of a and b are NN_INT_DEPTH elements apart, those
// of sums NN_INT_COLUMNS.
static inline void nn_int_tile(int32_t *sums, const int16_t *a, const int16_t *b, size_t depth) {
    const int16_t *a0 = a, *a1 = a0 + NN_INT_DEPTH, *a2 = a1 + NN_INT_DEPTH;
    const int16_t *a3 = a2 + NN_INT_DEPTH, *b0 = b, *b1 = b0 + NN_INT_DEPTH;
    int32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0, s20 = 0, s21 = 0, s30 = 0, s31 = 0;
    NN_INT_PAIRS
    for (size_t k = 0; k < depth; k++) {
        s00 += a0[k] * b0[k];
        s01 += a0[k] * b1[k];
        s10 += a1[k] * b0[k];
        s11 += a1[k] * b1[k];
        s20 += a2[k] * b0[k];
        s21 += a2[k] * b1[k];
        s30 += a3[k] * b0[k];
        s31 += a3[k] * b1[k];
    }
    sums[0 * NN_INT_COLUMNS + 0] += s00;
    sums[0 * NN_INT_COLUMNS + 1] += s01;
    sums[1 * NN_INT_COLUMNS + 0] += s10;
    sums[1 * NN_INT_COLUMNS + 1] += s11;
    sums[2 * NN_INT_COLUMNS + 0] += s20;
    sums[2 * NN_INT_COLUMNS + 1] += s21;
    sums[3 * NN_INT_COLUMNS + 0] += s30;
    sums[3 * NN_INT_COLUMNS + 1] += s31;
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

// What a block is made of.
typedef enum nn_int_part {
    NN_INT_8,      // int8, as it is
    NN_INT_16,     // int16, as it is
    NN_INT_UPPER,  // int16: x = 256 upper + lower, upper -128 .. 128
    NN_INT_LOWER   // lower -128 .. 127
} nn_int_part;

// A matrix to read from: rows of so many elements.
typedef struct nn_int_view {
    const void *x;
    size_t row;
    nn_int_part part;
} nn_int_view;

static inline nn_int_view nn_int_rows(const void *x, size_t row, nn_int_part part) {
    nn_int_view view;
    view.x = x;
    view.row = row;
    view.part = part;
    return view;
}

static inline void nn_int_widen_row(int16_t *to, nn_int_view from, size_t first, size_t depth) {
    const int8_t *x8 = (const int8_t *)from.x + first;
    const int16_t *x16 = (const int16_t *)from.x + first;
    switch (from.part) {
    case NN_INT_8:
        for (size_t k = 0; k < depth; k++) to[k] = x8[k];
        break;
    case NN_INT_16:
        memcpy(to, x16, depth * sizeof *to);
        break;
    case NN_INT_UPPER:
        for (size_t k = 0; k < depth; k++) to[k] = (int16_t)((x16[k] + 128) >> 8);
        break;
    case NN_INT_LOWER:
        for (size_t k = 0; k < depth; k++) to[k] = (int16_t)(((x16[k] + 128) & 255) - 128);
        break;
    }
}

// Widen a block to int16: rows of zeros below up to `padded`, columns of zeros up to the next
// multiple of eight.
static inline void nn_int_widen(int16_t *to, nn_int_view from, size_t i0, size_t k0, size_t rows,
                                size_t padded, size_t depth) {
    size_t even = (depth + 7) / 8 * 8;
    for (size_t i = 0; i < rows; i++) {
        int16_t *row = to + i * NN_INT_DEPTH;
        nn_int_widen_row(row, from, (i0 + i) * from.row + k0, depth);
        for (size_t k = depth; k < even; k++) row[k] = 0;
    }
    for (size_t i = rows; i < padded; i++) {
        memset(to + i * NN_INT_DEPTH, 0, even * sizeof *to);
    }
}

// The rows and columns of a block of the output.
typedef struct nn_int_block {
    size_t i0, j0, rows, columns;
} nn_int_block;

// sums (NN_INT_ROWS, NN_INT_COLUMNS) += a b^T over terms k0 to k0 + depth.
static inline void nn_int_add_terms(int32_t *sums, nn_int_view a, nn_int_view b, nn_int_block at,
                                    size_t k0, size_t depth) {
    int16_t a_block[NN_INT_ROWS * NN_INT_DEPTH], b_block[NN_INT_COLUMNS * NN_INT_DEPTH];
    size_t rows = (at.rows + 3) / 4 * 4, columns = (at.columns + 1) / 2 * 2;
    nn_int_widen(a_block, a, at.i0, k0, at.rows, rows, depth);
    nn_int_widen(b_block, b, at.j0, k0, at.columns, columns, depth);
    depth = (depth + 7) / 8 * 8;
    for (size_t i = 0; i < rows; i += 4) {
        for (size_t j = 0; j < columns; j += 2) {
            nn_int_tile(sums + i * NN_INT_COLUMNS + j, a_block + i * NN_INT_DEPTH,
                        b_block + j * NN_INT_DEPTH, depth);
        }
    }
}

// The sums of a block for int8 by int8.
static inline void nn_int8_sum(int32_t *sums, nn_int_view a, nn_int_view b, nn_int_block at,
                               size_t K) {
    memset(sums, 0, NN_INT_ROWS * NN_INT_COLUMNS * sizeof *sums);
    for (size_t k0 = 0; k0 < K; k0 += NN_INT_DEPTH) {
        nn_int_add_terms(sums, a, b, at, k0, nn_min(K - k0, NN_INT_DEPTH));
    }
}

// The sums of a block for int16 by int8, or int16 by a byte of int16; each counts `weight` times.
static inline void nn_int16_add_sum(int64_t *sums, nn_int_view a, nn_int_view b, nn_int_block at,
                                    size_t K, int32_t weight) {
    int32_t part[NN_INT_ROWS * NN_INT_COLUMNS];
    for (size_t k0 = 0; k0 < K; k0 += NN_INT_DEPTH) {
        memset(part, 0, sizeof part);
        nn_int_add_terms(part, a, b, at, k0, nn_min(K - k0, NN_INT_DEPTH));
        for (size_t i = 0; i < NN_INT_ROWS * NN_INT_COLUMNS; i++)
            sums[i] += (int64_t)part[i] * weight;
    }
}

// -- linear: out = in weight^T + bias, requantised, or as floats --

// A weight matrix that was quantised. Arrays belong to the caller.
typedef struct nn_int_linear {
    size_t K, N;
    const void *weight;            // (N, K) int8_t; nn_int16_linear_forward: int16_t
    const int32_t *weight_sums;    // (N) see nn_int_sum_weights; may be NULL where in_zero is 0
    const int32_t *bias;           // (N) in (scale of in) (scale of weight); NULL = zero
    const int64_t *wide_bias;      // the same for int16 activations
    const nn_int_factor *factors;  // (N), or (1): to integers of the output
    const float *scales;           // (N), or (1): (scale of in) (scale of weight), to floats
    const float *float_bias;       // (N) added to floats instead of bias; NULL = zero
    int per_channel;               // 1 = factors and scales are (N)
    int32_t in_zero;               // zero point of in
    nn_int_target to;              // of the output
} nn_int_linear;

// The sum of each row of weights: what one step of the input's zero point adds to a sum.
static inline void nn_int_sum_weights(int32_t *sums,         // (N)
                                      const int8_t *weight,  // (N, K)
                                      size_t N, size_t K) {
    for (size_t j = 0; j < N; j++) {
        int32_t sum = 0;
        for (size_t k = 0; k < K; k++) sum += weight[j * K + k];
        sums[j] = sum;
    }
}

// (K, N), as nn.h has weights, to (N, K).
static inline void nn_int8_transpose(int8_t *out, const int8_t *in, size_t K, size_t N) {
    for (size_t j = 0; j < N; j++) {
        for (size_t k = 0; k < K; k++) out[j * K + k] = in[k * N + j];
    }
}

static inline void nn_int16_transpose(int16_t *out, const int16_t *in, size_t K, size_t N) {
    for (size_t j = 0; j < N; j++) {
        for (size_t k = 0; k < K; k++) out[j * K + k] = in[k * N + j];
    }
}

static inline nn_int_block nn_int_block_at(size_t i0, size_t j0, size_t R, size_t N) {
    nn_int_block at;
    at.i0 = i0;
    at.j0 = j0;
    at.rows = nn_min(R - i0, NN_INT_ROWS);
    at.columns = nn_min(N - j0, NN_INT_COLUMNS);
    return at;
}

// What must be added to a sum of channel j: bias, and the zero point of the input taken off.
static inline int32_t nn_int_find_offset(const nn_int_linear *w, size_t j) {
    int32_t offset = w->bias ? w->bias[j] : 0;
    return w->in_zero ? offset - w->in_zero * w->weight_sums[j] : offset;
}

static inline nn_int_factor nn_int_factor_of(const nn_int_linear *w, size_t j) {
    return w->factors[w->per_channel ? j : 0];
}

// nn_int_requantize for a row of a block at once: what depends on the channel, prepared, and one
// loop without a branch that vectors can do, which know no signed products of 64 bits and no shifts
// of different lengths. Both are unsigned products here, of the number plus 2^31:
//
//     (x + 2^31) m >> 31       = (x m >> 31) + m
//     (x + 2^31) 2^(32-r) >> 32 = (x >> r) + 2^(31-r)
typedef struct nn_int_columns {
    uint32_t offset[NN_INT_COLUMNS];      // nn_int_find_offset, plus 2^31
    uint32_t multiplier[NN_INT_COLUMNS];
    uint32_t power[NN_INT_COLUMNS];       // 2^(32 - r), where r = -exponent
    int32_t  mask[NN_INT_COLUMNS];        // 2^r - 1
    int32_t  zero[NN_INT_COLUMNS];        // of the output, less 2^(31 - r)
} nn_int_columns;

// 0 = a factor is not a shift to the right by 1 .. 30: each number for itself then.
static inline int nn_int_prepare_columns(nn_int_columns *c, const nn_int_linear *w,
                                         nn_int_block at) {
    memset(c, 0, sizeof *c);
    for (size_t j = 0; j < at.columns; j++) {
        nn_int_factor factor = nn_int_factor_of(w, at.j0 + j);
        if (factor.exponent > -1 || factor.exponent < -30) return 0;
        c->offset[j] = (uint32_t)nn_int_find_offset(w, at.j0 + j) + 0x80000000u;
        c->multiplier[j] = (uint32_t)factor.multiplier;
        c->power[j] = 1u << (32 + factor.exponent);
        c->mask[j] = (int32_t)((1u << -factor.exponent) - 1);
        c->zero[j] = (int32_t)((uint32_t)w->to.zero - (c->power[j] >> 1));
    }
    return 1;
}

static inline void nn_int_requantize_row(int32_t *out, const int32_t *sums,
                                         const nn_int_columns *c, int32_t low, int32_t high) {
    for (size_t j = 0; j < NN_INT_COLUMNS; j++) {
        uint32_t sum = (uint32_t)sums[j] + c->offset[j];
        uint64_t product = (uint64_t)sum * c->multiplier[j] + (1u << 30);
        int32_t half = (int32_t)((uint32_t)(product >> 31) - c->multiplier[j]);
        uint64_t shifted = (uint64_t)((uint32_t)half + 0x80000000u) * c->power[j];
        int32_t rest = half & c->mask[j], threshold = (c->mask[j] >> 1) - (half >> 31);
        int32_t value = (int32_t)(uint32_t)(shifted >> 32) + c->zero[j] + (rest > threshold);
        value = value < low ? low : value;
        out[j] = value > high ? high : value;
    }
}

// A block of sums to the output: int8.
static inline void nn_int8_write_block(int8_t *out, const int32_t *sums, const nn_int_linear *w,
                                       nn_int_block at) {
    nn_int_columns columns;
    int32_t row[NN_INT_COLUMNS];
    int8_t bytes[NN_INT_COLUMNS];
    int is_fast = nn_int_prepare_columns(&columns, w, at);
    memset(row, 0, sizeof row);
    for (size_t i = 0; i < at.rows; i++) {
        const int32_t *from = sums + i * NN_INT_COLUMNS;
        if (is_fast) nn_int_requantize_row(row, from, &columns, w->to.low, w->to.high);
        for (size_t j = 0; j < at.columns && !is_fast; j++) {
            int32_t sum = from[j] + nn_int_find_offset(w, at.j0 + j);
            row[j] = nn_int_requantize(sum, nn_int_factor_of(w, at.j0 + j), w->to);
        }
        for (size_t j = 0; j < NN_INT_COLUMNS; j++) bytes[j] = (int8_t)row[j];
        memcpy(out + (at.i0 + i) * w->N + at.j0, bytes, at.columns);
    }
}

// A block of sums to the output: floats.
static inline void nn_int8_write_floats(float *out, const int32_t *sums, const nn_int_linear *w,
                                        nn_int_block at) {
    int32_t offsets[NN_INT_COLUMNS];
    float scales[NN_INT_COLUMNS], biases[NN_INT_COLUMNS];
    for (size_t j = 0; j < at.columns; j++) {
        offsets[j] = w->in_zero ? -w->in_zero * w->weight_sums[at.j0 + j] : 0;
        scales[j] = w->scales[w->per_channel ? at.j0 + j : 0];
        biases[j] = w->float_bias ? w->float_bias[at.j0 + j] : 0.0f;
    }
    for (size_t i = 0; i < at.rows; i++) {
        float *row = out + (at.i0 + i) * w->N + at.j0;
        const int32_t *from = sums + i * NN_INT_COLUMNS;
        for (size_t j = 0; j < at.columns; j++) {
            row[j] = (float)(from[j] + offsets[j]) * scales[j] + biases[j];
        }
    }
}

// int8 to int8, or to floats: exactly one of out and floats is not NULL.
static inline void nn_int8_linear_any(int8_t *out, float *floats, const int8_t *in,
                                      const nn_int_linear *w, size_t R) {
    int32_t sums[NN_INT_ROWS * NN_INT_COLUMNS];
    nn_int_view a = nn_int_rows(in, w->K, NN_INT_8), b = nn_int_rows(w->weight, w->K, NN_INT_8);
    for (size_t i0 = 0; i0 < R; i0 += NN_INT_ROWS) {
        for (size_t j0 = 0; j0 < w->N; j0 += NN_INT_COLUMNS) {
            nn_int_block at = nn_int_block_at(i0, j0, R, w->N);
            nn_int8_sum(sums, a, b, at, w->K);
            if (out) nn_int8_write_block(out, sums, w, at);
            else nn_int8_write_floats(floats, sums, w, at);
        }
    }
}

static inline void nn_int8_linear_forward(int8_t *out,       // (R, N)
                                          const int8_t *in,  // (R, K)
                                          const nn_int_linear *w, size_t R) {
    nn_int8_linear_any(out, NULL, in, w, R);
}

static inline void nn_int8_linear_to_float(float *out,        // (R, N)
                                           const int8_t *in,  // (R, K)
                                           const nn_int_linear *w, size_t R) {
    nn_int8_linear_any(NULL, out, in, w, R);
}

// A block of sums to the output: int16. Most sums fit int32, and then a row goes the fast way.
static inline void nn_int16_write_block(int16_t *out, int64_t *sums, const nn_int_linear *w,
                                        nn_int_block at) {
    nn_int_columns columns;
    int32_t row[NN_INT_COLUMNS], narrow[NN_INT_COLUMNS];
    int16_t words[NN_INT_COLUMNS];
    int can_be_fast = nn_int_prepare_columns(&columns, w, at);
    for (size_t j = 0; j < NN_INT_COLUMNS; j++) columns.offset[j] = 0x80000000u;  // bias: below
    memset(row, 0, sizeof row);
    for (size_t i = 0; i < at.rows; i++) {
        int64_t *from = sums + i * NN_INT_COLUMNS;
        int is_fast = can_be_fast;
        for (size_t j = 0; j < at.columns; j++) {
            if (w->wide_bias) from[j] += w->wide_bias[at.j0 + j];
            is_fast &= from[j] >= INT32_MIN && from[j] <= INT32_MAX;
        }
        for (size_t j = 0; j < NN_INT_COLUMNS; j++) narrow[j] = (int32_t)(uint32_t)from[j];
        if (is_fast) nn_int_requantize_row(row, narrow, &columns, w->to.low, w->to.high);
        for (size_t j = 0; j < at.columns && !is_fast; j++)
            row[j] = nn_int_requantize_wide(from[j], nn_int_factor_of(w, at.j0 + j), w->to);
        for (size_t j = 0; j < NN_INT_COLUMNS; j++) words[j] = (int16_t)row[j];
        memcpy(out + (at.i0 + i) * w->N + at.j0, words, at.columns * sizeof *out);
    }
}

// int16 activations. Weights: int8 (w8a16) in one pass, int16 in two.
static inline void nn_int16_linear_any(int16_t *out, const int16_t *in, const nn_int_linear *w,
                                       size_t R, int wide) {
    int64_t sums[NN_INT_ROWS * NN_INT_COLUMNS];
    nn_int_view a = nn_int_rows(in, w->K, NN_INT_16);
    nn_int_view b = nn_int_rows(w->weight, w->K, wide ? NN_INT_LOWER : NN_INT_8);
    for (size_t i0 = 0; i0 < R; i0 += NN_INT_ROWS) {
        for (size_t j0 = 0; j0 < w->N; j0 += NN_INT_COLUMNS) {
            nn_int_block at = nn_int_block_at(i0, j0, R, w->N);
            memset(sums, 0, sizeof sums);
            nn_int16_add_sum(sums, a, b, at, w->K, 1);
            if (wide) {
                nn_int_view upper = nn_int_rows(w->weight, w->K, NN_INT_UPPER);
                nn_int16_add_sum(sums, a, upper, at, w->K, 256);
            }
            nn_int16_write_block(out, sums, w, at);
        }
    }
}

// in_zero must be 0.
static inline void nn_w8a16_linear_forward(int16_t *out,       // (R, N)
                                           const int16_t *in,  // (R, K)
                                           const nn_int_linear *w, size_t R) {
    nn_int16_linear_any(out, in, w, R, 0);
}

static inline void nn_int16_linear_forward(int16_t *out,       // (R, N)
                                           const int16_t *in,  // (R, K)
                                           const nn_int_linear *w, size_t R) {
    nn_int16_linear_any(out, in, w, R, 1);
}

// -- dynamic: floats in and out, the range of the input found when it runs --
//
// Weights in 8 bits; scales of w are those of the weights alone. Costs a pass for the range and one
// for the integers, and saves having to know the range beforehand.

// The affine quantisation of a range; one value for each step from -128 to 127, 0 exact.
static inline float nn_int8_find_scale(const float *x, size_t n, int32_t *zero) {
    float least = 0.0f, most = 0.0f;
    for (size_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    float scale = (most - least) / 255.0f;
    scale = scale > 1.1920929e-7f ? scale : 1.1920929e-7f;
    nn_int_target unit = { 0, 0, 255 };
    *zero = nn_int_quantize(-least, scale, unit) - 128;
    return scale;
}

static inline void nn_dynamic_linear_forward(float *out,        // (R, N)
                                             const float *in,   // (R, K)
                                             int8_t *scratch,   // (R, K)
                                             float *scales,     // (N) or (1) of scratch
                                             const nn_int_linear *w, size_t R) {
    nn_int_linear now = *w;
    float scale = nn_int8_find_scale(in, R * w->K, &now.in_zero);
    nn_int_target bytes = { now.in_zero, -128, 127 };
    nn_int8_quantize(scratch, in, R * w->K, scale, bytes);
    for (size_t j = 0; j < (w->per_channel ? w->N : 1); j++) scales[j] = w->scales[j] * scale;
    now.scales = scales;
    nn_int8_linear_to_float(out, scratch, &now, R);
}

// -- conv2d: the windows of nn_image.h are rows of a matrix; the rest is linear --
//
// Outside of the image they are filled with the zero point, which stands for exactly 0.

static inline void nn_int8_conv2d_forward(int8_t *out,        // (B, H, W, N)
                                          const int8_t *in,   // (B, H, W, C)
                                          int8_t *scratch,    // (H W, size size C)
                                          const nn_int_linear *w, size_t B, size_t H, size_t W,
                                          size_t C, size_t size) {
    int8_t padding = (int8_t)w->in_zero;
    for (size_t b = 0; b < B; b++) {
        nn_fill_windows(scratch, in + b * H * W * C, &padding, 1, H, W, C, size);
        nn_int8_linear_forward(out + b * H * W * w->N, scratch, w, H * W);
    }
}

// w8a16, or with wide int16 weights, too.
static inline void nn_int16_conv2d_forward(int16_t *out,       // (B, H, W, N)
                                           const int16_t *in,  // (B, H, W, C)
                                           int16_t *scratch,   // (H W, size size C)
                                           const nn_int_linear *w, size_t B, size_t H, size_t W,
                                           size_t C, size_t size, int wide) {
    int16_t padding = 0;
    for (size_t b = 0; b < B; b++) {
        nn_fill_windows(scratch, in + b * H * W * C, &padding, 2, H, W, C, size);
        nn_int16_linear_any(out + b * H * W * w->N, scratch, w, H * W, wide);
    }
}

// Floats in and out, see dynamic.
static inline void nn_dynamic_conv2d_forward(float *out,        // (B, H, W, N)
                                             const float *in,   // (B, H, W, C)
                                             int8_t *scratch,   // (H W, size size C)
                                             int8_t *integers,  // (B, H, W, C)
                                             float *scales,     // (N) or (1) of scratch
                                             const nn_int_linear *w, size_t B, size_t H, size_t W,
                                             size_t C, size_t size) {
    nn_int_linear now = *w;
    float scale = nn_int8_find_scale(in, B * H * W * C, &now.in_zero);
    nn_int_target bytes = { now.in_zero, -128, 127 };
    int8_t padding = (int8_t)now.in_zero;
    nn_int8_quantize(integers, in, B * H * W * C, scale, bytes);
    for (size_t j = 0; j < (w->per_channel ? w->N : 1); j++) scales[j] = w->scales[j] * scale;
    now.scales = scales;
    for (size_t b = 0; b < B; b++) {
        nn_fill_windows(scratch, integers + b * H * W * C, &padding, 1, H, W, C, size);
        nn_int8_linear_to_float(out + b * H * W * w->N, scratch, &now, H * W);
    }
}

// -- elementwise --

// With one quantisation on both sides.
static inline void nn_int8_relu_forward(int8_t *out, const int8_t *in, size_t n, int32_t zero) {
    int8_t least = (int8_t)zero;
    for (size_t i = 0; i < n; i++) out[i] = in[i] > least ? in[i] : least;
}

// Two numbers of different scales: each counts (its scale) / (scale of out) in steps of 2^-16.
typedef struct nn_int_add {
    int32_t a_weight, b_weight;  // at most 2^22: scales up to 64 times that of out
    int32_t a_zero, b_zero;
    nn_int_target to;
} nn_int_add;

static inline int32_t nn_int_find_add_weight(float scale, float out_scale) {
    float weight = scale / out_scale * 65536.0f;
    return weight < 4194304.0f ? (int32_t)(weight + 0.5f) : 4194304;
}

static inline void nn_int8_add_forward(int8_t *out, const int8_t *a, const int8_t *b, size_t n,
                                       const nn_int_add *add) {
    for (size_t i = 0; i < n; i++) {  // 2 * 2^22 * 255 fits int32
        int32_t sum = (a[i] - add->a_zero) * add->a_weight + (b[i] - add->b_zero) * add->b_weight;
        int32_t value = (sum + 32768 - (sum < 0)) >> 16;  // halves away from zero
        value += add->to.zero;
        value = value < add->to.low ? add->to.low : value;
        out[i] = (int8_t)(value > add->to.high ? add->to.high : value);
    }
}

// -- pools: squares of `size`, side by side; out (B, H / size, W / size, C), quantised as in --

static inline void nn_int8_max_pool_forward(int8_t *out, const int8_t *in, size_t B, size_t H,
                                            size_t W, size_t C, size_t size) {
    size_t rows = B * (H / size), columns = W / size;  // H is a multiple of size, and so is W
    for (size_t i = 0; i < rows * columns; i++) {
        const int8_t *corner = in + ((i / columns) * size * W + (i % columns) * size) * C;
        for (size_t c = 0; c < C; c++) {
            int8_t most = corner[c];
            for (size_t k = 1; k < size * size; k++) {
                int8_t x = corner[((k / size) * W + k % size) * C + c];
                most = x > most ? x : most;
            }
            out[i * C + c] = most;
        }
    }
}

// The mean, halves away from the zero point.
static inline void nn_int8_mean_pool_forward(int8_t *out, const int8_t *in, size_t B, size_t H,
                                             size_t W, size_t C, size_t size, int32_t zero) {
    size_t rows = B * (H / size), columns = W / size;
    int32_t count = (int32_t)size * (int32_t)size;
    for (size_t i = 0; i < rows * columns; i++) {
        const int8_t *corner = in + ((i / columns) * size * W + (i % columns) * size) * C;
        for (size_t c = 0; c < C; c++) {
            int32_t sum = 0;
            for (size_t k = 0; k < size * size; k++) {
                sum += corner[((k / size) * W + k % size) * C + c] - zero;
            }
            sum += sum < 0 ? -(count / 2) : count / 2;
            out[i * C + c] = (int8_t)(sum / count + zero);
        }
    }
}

// -- rows: one row of the result, from the rows under its window; see nn_image.h --
//
// The same integers as for whole images. A row of relu, of a table or of a sum is a call for so many
// elements. Dynamic kernels have none: their range is that of the whole input.

static inline void nn_int8_conv2d_row(int8_t *out,               // (columns, N)
                                      const void *const *rows,  // [size] (W, C) of int8
                                      int8_t *scratch,           // (columns, size size C)
                                      const nn_int_linear *w, size_t W, size_t C, size_t size,
                                      size_t stride) {
    int8_t padding = (int8_t)w->in_zero;
    nn_fill_row_windows(scratch, rows, &padding, 1, W, C, size, stride);
    nn_int8_linear_forward(out, scratch, w, nn_find_row_width(W, stride));
}

// w8a16, or with wide int16 weights, too.
static inline void nn_int16_conv2d_row(int16_t *out,              // (columns, N)
                                       const void *const *rows,  // [size] (W, C) of int16
                                       int16_t *scratch,          // (columns, size size C)
                                       const nn_int_linear *w, size_t W, size_t C, size_t size,
                                       size_t stride, int wide) {
    int16_t padding = 0;
    nn_fill_row_windows(scratch, rows, &padding, 2, W, C, size, stride);
    nn_int16_linear_any(out, scratch, w, nn_find_row_width(W, stride), wide);
}

static inline void nn_int8_max_pool_row(int8_t *out,                // (W / size, C)
                                        const int8_t *const *rows,  // [size] (W, C)
                                        size_t W, size_t C, size_t size) {
    for (size_t i = 0; i < W / size * C; i++) {
        size_t at = i / C * size * C + i % C;
        int8_t most = rows[0][at];
        for (size_t k = 1; k < size * size; k++) {
            int8_t x = rows[k / size][at + k % size * C];
            most = x > most ? x : most;
        }
        out[i] = most;
    }
}

static inline void nn_int8_mean_pool_row(int8_t *out,                // (W / size, C)
                                         const int8_t *const *rows,  // [size] (W, C)
                                         size_t W, size_t C, size_t size, int32_t zero) {
    int32_t count = (int32_t)size * (int32_t)size;
    for (size_t i = 0; i < W / size * C; i++) {
        size_t at = i / C * size * C + i % C;
        int32_t sum = 0;
        for (size_t k = 0; k < size * size; k++) sum += rows[k / size][at + k % size * C] - zero;
        sum += sum < 0 ? -(count / 2) : count / 2;
        out[i] = (int8_t)(sum / count + zero);
    }
}

#endif
