/* nn_tiny.h - integer kernels for microcontrollers, for the examples

   Plain C99 that is also C++11, freestanding: no allocation, no state, no libm, of the C library
   memcpy and memset alone. An integer q stands for the number (q - zero) scale:

       i8     activations int8 with a zero point -128 .. 127
       i16    activations int16 with zero point 0 (w8a16: weights are int8 there, too)
       weights int8 -127 .. 127 with zero point 0, biases int32 of scale (of in) (of weights); one
       scale for all, or one for each output channel

   The bits are those of TensorFlow Lite and of CMSIS-NN: i8 rounds twice (nn_int_scale), i16 sums in
   64 bits and rounds once with a multiplier of 16 bits, as they do with biases of 64 bits.

   Images are (H, W, C), one at a time. Weights are
       conv2d      (N, height, width, C)
       depthwise   (height, width, N), N = C times a whole number m; channel n reads channel n / m
       linear      (N, K)

   ROWS        Each kernel has a form for rows `first` .. `first + count - 1` of its output, _rows. Its
               operands are found row by row, so that they may be rings (line buffers) that hold those
               rows alone that somebody still reads. The bits are the same, however many rows one call
               makes.
   IN PLACE    out may be an input where both have as many elements: add, mul, scale, lookup, softmax.
   LIMITS      i8: at most 65536 terms of a sum; i16: 2^24. Shifts -31 .. 30 (i16: -31 .. 7).
   STACK       1 KiB at most, with all that a kernel calls.

   LETTERS     H, W, C = rows, columns, channels of an image, N = output channels, n = elements,
               R = rows of a matrix, K = terms of a sum

   CONTENTS    (search for "// -- ")
               operands    conv2d    depthwise    linear    pools    elementwise    softmax
   nn_fixed.h  requantise    quantise    lookup
*/
#ifndef NN_TINY_H
#define NN_TINY_H

#include <stddef.h>
#include <stdint.h>

#include "nn_fixed.h"

#ifdef __GNUC__  // and clang; -ffreestanding has no <string.h>
#define NN_TINY_COPY(to, from, bytes) __builtin_memcpy(to, from, bytes)
#define NN_TINY_FILL(to, byte, bytes) __builtin_memset(to, byte, bytes)
#else
#include <string.h>
#define NN_TINY_COPY(to, from, bytes) memcpy(to, from, bytes)
#define NN_TINY_FILL(to, byte, bytes) memset(to, byte, bytes)
#endif

// -- operands --

// Where the rows of an input lie: a whole tensor, or a ring.
typedef struct nn_tiny_in {
    const void *at;     // its first row
    int32_t row_bytes;  // from one row to the next
    int32_t rows;       // of a ring; 0 = a whole tensor
    int32_t shift;      // of a ring: row y lies at row (y + shift) % rows; 0 .. rows - 1
} nn_tiny_in;

// The same of an output.
typedef struct nn_tiny_out {
    void *at;
    int32_t row_bytes, rows, shift;
} nn_tiny_out;

// The geometry of a window that moves over an image. Row y of the output reads rows
// y stride_y - pad_top + k dilation_y of the input, k = 0 .. height - 1; columns go the same way. What
// lies outside of the image is padding: it adds nothing to sums, and is no element of a pool.
typedef struct nn_tiny_window {
    int32_t in_height, in_width, in_channels;
    int32_t height, width;            // of the window
    int32_t stride_y, stride_x;       // at least 1
    int32_t pad_top, pad_left;        // below and right: as far as the output reaches
    int32_t dilation_y, dilation_x;   // at least 1; pools: 1
    int32_t out_height, out_width, out_channels;
} nn_tiny_window;

// Weights that were quantised, and the factor (scale of in) (scale of weights) / (scale of out) as
// multiplier 2^(shift - 31). The arrays belong to the caller, and lie in flash as a rule.
typedef struct nn_tiny_weights {
    const int8_t *weights;
    const int32_t *bias;         // (N); NULL = zero
    const int32_t *multipliers;  // (N), or (1): 2^30 .. 2^31 - 1, or 0
    const int32_t *shifts;       // (N), or (1)
    int32_t per_channel;         // 1 = multipliers and shifts are (N)
} nn_tiny_weights;

// What integers come in and go out.
typedef struct nn_tiny_target {
    int32_t in_zero;    // zero point of the input; i16: 0
    int32_t zero;       // of the output; i16: 0
    int32_t low, high;  // bounds of the output: its format, or a folded relu, relu6
} nn_tiny_target;

static inline const void *nn_tiny_find_in(const nn_tiny_in *x, int32_t row) {
    int32_t at = x->rows ? (row + x->shift) % x->rows : row;
    return (const unsigned char *)x->at + (ptrdiff_t)at * x->row_bytes;
}

static inline void *nn_tiny_find_out(const nn_tiny_out *x, int32_t row) {
    int32_t at = x->rows ? (row + x->shift) % x->rows : row;
    return (unsigned char *)x->at + (ptrdiff_t)at * x->row_bytes;
}

// A whole tensor as an operand.
static inline nn_tiny_in nn_tiny_whole_in(const void *at, int32_t row_bytes) {
    nn_tiny_in x;
    x.at = at;
    x.row_bytes = row_bytes;
    x.rows = x.shift = 0;
    return x;
}

static inline nn_tiny_out nn_tiny_whole_out(void *at, int32_t row_bytes) {
    nn_tiny_out x;
    x.at = at;
    x.row_bytes = row_bytes;
    x.rows = x.shift = 0;
    return x;
}

// The part of a window that lies inside of the image, along one axis.
typedef struct nn_tiny_span {
    int32_t first, end;  // of the taps; end = first: none
    int32_t at;          // where tap 0 lies: < 0 = outside
} nn_tiny_span;

static inline nn_tiny_span nn_tiny_find_span(int32_t at, int32_t taps, int32_t dilation,
                                             int32_t size) {
    nn_tiny_span span;
    span.at = at;
    span.first = at < 0 ? (-at + dilation - 1) / dilation : 0;
    span.end = at + (taps - 1) * dilation < size ? taps : (size - at + dilation - 1) / dilation;
    span.first = span.first < taps ? span.first : taps;
    span.end = span.end > span.first ? span.end : span.first;
    return span;
}

static inline nn_tiny_span nn_tiny_rows_of(const nn_tiny_window *w, int32_t y) {
    return nn_tiny_find_span(y * w->stride_y - w->pad_top, w->height, w->dilation_y, w->in_height);
}

static inline nn_tiny_span nn_tiny_columns_of(const nn_tiny_window *w, int32_t x) {
    return nn_tiny_find_span(x * w->stride_x - w->pad_left, w->width, w->dilation_x, w->in_width);
}

static inline int8_t nn_tiny_finish_i8(int32_t sum, int32_t multiplier, int32_t shift,
                                       const nn_tiny_target *to) {
    int32_t value = nn_int_scale(sum, multiplier, shift);
    value = value < to->low - to->zero ? to->low - to->zero : value;
    value = value > to->high - to->zero ? to->high - to->zero : value;
    return (int8_t)(value + to->zero);
}

// -- conv2d --

static inline void nn_tiny_conv2d_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                          const nn_tiny_window *window, const nn_tiny_weights *w,
                                          const nn_tiny_target *to, int32_t first, int32_t count) {
    int32_t C = window->in_channels, N = window->out_channels;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_span rows = nn_tiny_rows_of(window, y);
        int8_t *row = (int8_t *)nn_tiny_find_out(out, y);
        for (int32_t i = 0; i < window->out_width * N; i++) {
            nn_tiny_span columns = nn_tiny_columns_of(window, i / N);
            int32_t n = i % N, sum = w->bias ? w->bias[n] : 0, c;
            for (int32_t ky = rows.first; ky < rows.end; ky++)
                for (int32_t kx = columns.first; kx < columns.end; kx++) {
                    const int8_t *x =
                        (const int8_t *)nn_tiny_find_in(in, rows.at + ky * window->dilation_y) +
                        (columns.at + kx * window->dilation_x) * C;
                    const int8_t *weight =
                        w->weights + ((n * window->height + ky) * window->width + kx) * C;
                    for (c = 0; c < C; c++) sum += (x[c] - to->in_zero) * weight[c];
                }
            c = w->per_channel ? n : 0;
            row[i] = nn_tiny_finish_i8(sum, w->multipliers[c], w->shifts[c], to);
        }
    }
}

static inline void nn_tiny_conv2d_i8(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                     const nn_tiny_weights *w, const nn_tiny_target *to) {
    nn_tiny_out to_rows = nn_tiny_whole_out(out, window->out_width * window->out_channels);
    nn_tiny_in from_rows = nn_tiny_whole_in(in, window->in_width * window->in_channels);
    nn_tiny_conv2d_i8_rows(&to_rows, &from_rows, window, w, to, 0, window->out_height);
}

// -- depthwise --

static inline void nn_tiny_depthwise_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                             const nn_tiny_window *window, const nn_tiny_weights *w,
                                             const nn_tiny_target *to, int32_t first,
                                             int32_t count) {
    int32_t C = window->in_channels, N = window->out_channels, m = N / C;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_span rows = nn_tiny_rows_of(window, y);
        int8_t *row = (int8_t *)nn_tiny_find_out(out, y);
        for (int32_t i = 0; i < window->out_width * N; i++) {
            nn_tiny_span columns = nn_tiny_columns_of(window, i / N);
            int32_t n = i % N, sum = w->bias ? w->bias[n] : 0;
            for (int32_t ky = rows.first; ky < rows.end; ky++)
                for (int32_t kx = columns.first; kx < columns.end; kx++) {
                    const int8_t *x =
                        (const int8_t *)nn_tiny_find_in(in, rows.at + ky * window->dilation_y) +
                        (columns.at + kx * window->dilation_x) * C;
                    sum += (x[n / m] - to->in_zero) * w->weights[(ky * window->width + kx) * N + n];
                }
            n = w->per_channel ? n : 0;
            row[i] = nn_tiny_finish_i8(sum, w->multipliers[n], w->shifts[n], to);
        }
    }
}

static inline void nn_tiny_depthwise_i8(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                        const nn_tiny_weights *w, const nn_tiny_target *to) {
    nn_tiny_out to_rows = nn_tiny_whole_out(out, window->out_width * window->out_channels);
    nn_tiny_in from_rows = nn_tiny_whole_in(in, window->in_width * window->in_channels);
    nn_tiny_depthwise_i8_rows(&to_rows, &from_rows, window, w, to, 0, window->out_height);
}

// -- linear --

static inline void nn_tiny_linear_i8(int8_t *out,       // (R, N)
                                     const int8_t *in,  // (R, K)
                                     const nn_tiny_weights *w, const nn_tiny_target *to, int32_t R,
                                     int32_t K, int32_t N) {
    for (int32_t i = 0; i < R * N; i++) {
        int32_t n = i % N, sum = w->bias ? w->bias[n] : 0, k;
        for (k = 0; k < K; k++) sum += (in[i / N * K + k] - to->in_zero) * w->weights[n * K + k];
        n = w->per_channel ? n : 0;
        out[i] = nn_tiny_finish_i8(sum, w->multipliers[n], w->shifts[n], to);
    }
}

// -- pools: in and out have one quantisation; `to` gives bounds alone --

// The mean of what a window covers of the image, halves away from zero.
static inline void nn_tiny_avgpool_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                           const nn_tiny_window *window, const nn_tiny_target *to,
                                           int32_t first, int32_t count) {
    int32_t C = window->in_channels;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_span rows = nn_tiny_rows_of(window, y);
        int8_t *row = (int8_t *)nn_tiny_find_out(out, y);
        for (int32_t i = 0; i < window->out_width * C; i++) {
            nn_tiny_span columns = nn_tiny_columns_of(window, i / C);
            int32_t size = (rows.end - rows.first) * (columns.end - columns.first), sum = 0;
            for (int32_t ky = rows.first; ky < rows.end; ky++)
                for (int32_t kx = columns.first; kx < columns.end; kx++)
                    sum += ((const int8_t *)nn_tiny_find_in(in, rows.at + ky))[(columns.at + kx) * C + i % C];
            sum = size ? (sum > 0 ? sum + size / 2 : sum - size / 2) / size : 0;
            sum = sum < to->low ? to->low : sum;
            row[i] = (int8_t)(sum > to->high ? to->high : sum);
        }
    }
}

static inline void nn_tiny_avgpool_i8(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                      const nn_tiny_target *to) {
    nn_tiny_out to_rows = nn_tiny_whole_out(out, window->out_width * window->in_channels);
    nn_tiny_in from_rows = nn_tiny_whole_in(in, window->in_width * window->in_channels);
    nn_tiny_avgpool_i8_rows(&to_rows, &from_rows, window, to, 0, window->out_height);
}

static inline void nn_tiny_maxpool_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                           const nn_tiny_window *window, const nn_tiny_target *to,
                                           int32_t first, int32_t count) {
    int32_t C = window->in_channels;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_span rows = nn_tiny_rows_of(window, y);
        int8_t *row = (int8_t *)nn_tiny_find_out(out, y);
        for (int32_t i = 0; i < window->out_width * C; i++) {
            nn_tiny_span columns = nn_tiny_columns_of(window, i / C);
            int32_t most = to->low;
            for (int32_t ky = rows.first; ky < rows.end; ky++)
                for (int32_t kx = columns.first; kx < columns.end; kx++) {
                    int32_t x =
                        ((const int8_t *)nn_tiny_find_in(in, rows.at + ky))[(columns.at + kx) * C + i % C];
                    most = x > most ? x : most;
                }
            row[i] = (int8_t)(most > to->high ? to->high : most);
        }
    }
}

static inline void nn_tiny_maxpool_i8(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                      const nn_tiny_target *to) {
    nn_tiny_out to_rows = nn_tiny_whole_out(out, window->out_width * window->in_channels);
    nn_tiny_in from_rows = nn_tiny_whole_in(in, window->in_width * window->in_channels);
    nn_tiny_maxpool_i8_rows(&to_rows, &from_rows, window, to, 0, window->out_height);
}

// The mean of each channel, as TensorFlow Lite's MEAN has it: the sum of x - in_zero times the factor
// (scale of in) / (scale of out) / pixels. (An AVERAGE_POOL of the whole image: avgpool with a window
// as large.)
static inline void nn_tiny_gavgpool_i8(int8_t *out,       // (C)
                                       const int8_t *in,  // (pixels, C)
                                       int32_t pixels, int32_t C, int32_t multiplier, int32_t shift,
                                       const nn_tiny_target *to) {
    for (int32_t c = 0; c < C; c++) {
        int32_t sum = -pixels * to->in_zero;
        for (int32_t i = 0; i < pixels; i++) sum += in[i * C + c];
        out[c] = nn_tiny_finish_i8(sum, multiplier, shift, to);
    }
}

// -- elementwise --

// Two numbers of different scales. With twice = 2 max(scale of a, scale of b) the factors are
//     a: (scale of a) / twice    b: (scale of b) / twice    out: twice / (2^20 (scale of out))
// (i16: 2^15 instead of 2^20), each as multiplier 2^(shift - 31). mul reads that of out alone:
//     (scale of a) (scale of b) / (scale of out)
typedef struct nn_tiny_pair {
    int32_t a_zero, a_multiplier, a_shift;
    int32_t b_zero, b_multiplier, b_shift;
    int32_t multiplier, shift;
    int32_t zero, low, high;  // of the output
} nn_tiny_pair;

static inline nn_tiny_target nn_tiny_pair_target(const nn_tiny_pair *p) {
    nn_tiny_target to;
    to.in_zero = 0;
    to.zero = p->zero;
    to.low = p->low;
    to.high = p->high;
    return to;
}

static inline void nn_tiny_add_i8(int8_t *out, const int8_t *a, const int8_t *b, int32_t n,
                                  const nn_tiny_pair *p) {
    nn_tiny_target to = nn_tiny_pair_target(p);
    for (int32_t i = 0; i < n; i++) {
        int32_t x = nn_int_scale((a[i] - p->a_zero) * (1 << 20), p->a_multiplier, p->a_shift);
        int32_t y = nn_int_scale((b[i] - p->b_zero) * (1 << 20), p->b_multiplier, p->b_shift);
        out[i] = nn_tiny_finish_i8(x + y, p->multiplier, p->shift, &to);
    }
}

static inline void nn_tiny_add_i8_rows(const nn_tiny_out *out, const nn_tiny_in *a,
                                       const nn_tiny_in *b,
                                       int32_t n,  // elements of a row
                                       const nn_tiny_pair *p, int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_add_i8((int8_t *)nn_tiny_find_out(out, y), (const int8_t *)nn_tiny_find_in(a, y),
                       (const int8_t *)nn_tiny_find_in(b, y), n, p);
}

#endif
