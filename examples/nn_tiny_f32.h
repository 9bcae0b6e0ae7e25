/* nn_tiny_f32.h - the kernels of nn_tiny.h in f32, for the nodes that stay in it

   Operands, windows and rows are those of nn_tiny.h, weights have the same order. Sums begin with the
   bias and add products in the order of the weights, so the bits do not depend on how many rows a call
   makes; build with -ffp-contract=off. What comes out is bounded: relu is 0 .. infinity.

   STACK       128 bytes.

   CONTENTS    (search for "// -- ")
               sums    pools    elementwise
*/
#ifndef NN_TINY_F32_H
#define NN_TINY_F32_H

#include "nn.h"
#include "nn_tiny.h"

typedef struct nn_tiny_bounds { float low, high; } nn_tiny_bounds;

static inline float nn_tiny_bound(float x, const nn_tiny_bounds *to) {
    x = x < to->low ? to->low : x;
    return x > to->high ? to->high : x;
}

// -- sums: conv2d, depthwise, linear --

static inline void nn_tiny_conv2d_f32_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                           const nn_tiny_window *w,
                                           const float *weights,  // (N, height, width, C)
                                           const float *bias,     // (N)
                                           const nn_tiny_bounds *to, int32_t first, int32_t count) {
    int32_t C = w->in_channels, N = w->out_channels;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_span rows = nn_tiny_rows_of(w, y);
        float *row = (float *)nn_tiny_find_out(out, y);
        for (int32_t i = 0; i < w->out_width * N; i++) {
            nn_tiny_span columns = nn_tiny_columns_of(w, i / N);
            float sum = bias[i % N];
            for (int32_t ky = rows.first; ky < rows.end; ky++) {
                const float *x = (const float *)nn_tiny_find_in(in, rows.at + ky * w->dilation_y);
                for (int32_t kx = columns.first; kx < columns.end; kx++) {
                    const float *pixel = x + (columns.at + kx * w->dilation_x) * C;
                    const float *weight = weights + ((i % N * w->height + ky) * w->width + kx) * C;
                    for (int32_t c = 0; c < C; c++) sum += pixel[c] * weight[c];
                }
            }
            row[i] = nn_tiny_bound(sum, to);
        }
    }
}

static inline void nn_tiny_depthwise_f32_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                              const nn_tiny_window *w,
                                              const float *weights,  // (height, width, N)
                                              const float *bias,     // (N)
                                              const nn_tiny_bounds *to, int32_t first,
                                              int32_t count) {
    int32_t C = w->in_channels, N = w->out_channels, m = N / C;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_span rows = nn_tiny_rows_of(w, y);
        float *row = (float *)nn_tiny_find_out(out, y);
        for (int32_t i = 0; i < w->out_width * N; i++) {
            nn_tiny_span columns = nn_tiny_columns_of(w, i / N);
            float sum = bias[i % N];
            for (int32_t ky = rows.first; ky < rows.end; ky++) {
                const float *x = (const float *)nn_tiny_find_in(in, rows.at + ky * w->dilation_y);
                for (int32_t kx = columns.first; kx < columns.end; kx++)
                    sum += x[(columns.at + kx * w->dilation_x) * C + i % N / m] *
                           weights[(ky * w->width + kx) * N + i % N];
            }
            row[i] = nn_tiny_bound(sum, to);
        }
    }
}

static inline void nn_tiny_linear_f32(float *out,            // (R, N)
                                      const float *in,       // (R, K)
                                      const float *weights,  // (N, K)
                                      const float *bias,     // (N)
                                      const nn_tiny_bounds *to, int32_t R, int32_t K, int32_t N) {
    for (int32_t i = 0; i < R * N; i++) {
        const float *x = in + i / N * K, *weight = weights + i % N * K;
        float sum = bias[i % N];
        for (int32_t k = 0; k < K; k++) sum += x[k] * weight[k];
        out[i] = nn_tiny_bound(sum, to);
    }
}

// -- pools: over what a window covers of the image --

static inline void nn_tiny_pool_f32_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                         const nn_tiny_window *w, int is_mean,
                                         const nn_tiny_bounds *to, int32_t first, int32_t count) {
    int32_t C = w->in_channels;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_span rows = nn_tiny_rows_of(w, y);
        float *row = (float *)nn_tiny_find_out(out, y);
        for (int32_t i = 0; i < w->out_width * C; i++) {
            nn_tiny_span columns = nn_tiny_columns_of(w, i / C);
            int32_t size = (rows.end - rows.first) * (columns.end - columns.first);
            float value = is_mean ? 0.0f : to->low;
            for (int32_t ky = rows.first; ky < rows.end; ky++)
                for (int32_t kx = columns.first; kx < columns.end; kx++) {
                    float x = ((const float *)nn_tiny_find_in(in, rows.at + ky))[(columns.at + kx) * C + i % C];
                    value = is_mean ? value + x : x > value ? x : value;
                }
            row[i] = nn_tiny_bound(is_mean && size ? value / (float)size : value, to);
        }
    }
}

static inline void nn_tiny_avgpool_f32_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                            const nn_tiny_window *w, const nn_tiny_bounds *to,
                                            int32_t first, int32_t count) {
    nn_tiny_pool_f32_rows(out, in, w, 1, to, first, count);
}

static inline void nn_tiny_maxpool_f32_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                            const nn_tiny_window *w, const nn_tiny_bounds *to,
                                            int32_t first, int32_t count) {
    nn_tiny_pool_f32_rows(out, in, w, 0, to, first, count);
}

static inline void nn_tiny_gavgpool_f32(float *out,       // (C)
                                        const float *in,  // (pixels, C)
                                        int32_t pixels, int32_t C, const nn_tiny_bounds *to) {
    for (int32_t c = 0; c < C; c++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < pixels; i++) sum += in[i * C + c];
        out[c] = nn_tiny_bound(sum / (float)pixels, to);
    }
}

// -- elementwise: n elements; out may be an input --

static inline void nn_tiny_add_f32(float *out, const float *a, const float *b, int32_t n,
                                   const nn_tiny_bounds *to) {
    for (int32_t i = 0; i < n; i++) out[i] = nn_tiny_bound(a[i] + b[i], to);
}

static inline void nn_tiny_mul_f32(float *out, const float *a, const float *b, int32_t n,
                                   const nn_tiny_bounds *to) {
    for (int32_t i = 0; i < n; i++) out[i] = nn_tiny_bound(a[i] * b[i], to);
}

static inline void nn_tiny_bound_f32(float *out, const float *in, int32_t n,
                                     const nn_tiny_bounds *to) {
    for (int32_t i = 0; i < n; i++) out[i] = nn_tiny_bound(in[i], to);
}

static inline void nn_tiny_sigmoid_f32(float *out, const float *in, int32_t n) {
    for (int32_t i = 0; i < n; i++) out[i] = 1.0f / (1.0f + nn_exp(-in[i]));
}

static inline void nn_tiny_tanh_f32(float *out, const float *in, int32_t n) {
    for (int32_t i = 0; i < n; i++) out[i] = 1.0f - 2.0f / (nn_exp(2.0f * in[i]) + 1.0f);
}

static inline void nn_tiny_hardswish_f32(float *out, const float *in, int32_t n) {
    const nn_tiny_bounds to = { 0.0f, 6.0f };
    for (int32_t i = 0; i < n; i++) out[i] = in[i] * nn_tiny_bound(in[i] + 3.0f, &to) / 6.0f;
}

// One input of a concat, as nn_tiny_concat_i8.
static inline void nn_tiny_concat_f32(float *out, const float *in, int32_t outer, int32_t inner,
                                      int32_t out_inner, int32_t at) {
    for (int32_t i = 0; i < outer; i++)
        memcpy(out + (ptrdiff_t)i * out_inner + at, in + (ptrdiff_t)i * inner,
               (size_t)inner * sizeof *out);
}

// Each row of (R, n).
static inline void nn_tiny_softmax_f32(float *out, const float *in, int32_t R, int32_t n) {
    for (int32_t i = 0; i < R; i++, out += n, in += n) {
        if (out != in) memcpy(out, in, (size_t)n * sizeof *out);
        nn_softmax(out, (size_t)n, 1.0f);
    }
}

#endif
