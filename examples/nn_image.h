/* nn_image.h - kernels of a small convolution network, for the examples of tl_strategy.h

   Beside nn.h, with its rules: plain C99 that is also C++11, float32, one thread, no allocation.
   Forward writes, backward adds (+=), a gradient that is NULL is not computed.

   LETTERS     B = images in the batch    H, W = rows and columns of an image    C = its channels
               N = channels that come out    n = elements, where the shape does not matter
   Images are (B, H, W, C), so that the channels of a pixel stand side by side.

   CONTENTS    (search for "// -- ")
               windows    conv2d    relu    pools    rows
*/
#ifndef NN_IMAGE_H
#define NN_IMAGE_H

#include "nn.h"

// -- windows: what a convolution reads, as rows of a matrix --
//
//     image (H, W, C)        rows (H W, size size C)
//     +---+
//     |[ ]|   window ->   |=====================|
//     +---+
//
// A row for each pixel: the square of size x size pixels (an odd number) around it. Outside of the
// image it is filled with `padding`. Elements may be of any type.

static inline void nn_fill_padding(unsigned char *to, const void *padding, size_t bytes,
                                   size_t count) {
    for (size_t i = 0; i < count; i++) memcpy(to + i * bytes, padding, bytes);
}

// One row of the window of pixel x: size pixels from x - reach on.
static inline void nn_fill_window_row(unsigned char *to, const unsigned char *row,
                                      const void *padding, size_t bytes, size_t W, size_t C,
                                      size_t size, size_t x) {
    size_t reach = size / 2, pixel = C * bytes;
    size_t before = x < reach ? reach - x : 0;
    size_t behind = x + reach >= W ? x + reach - W + 1 : 0, inside = size - before - behind;
    if (before) nn_fill_padding(to, padding, bytes, before * C);
    memcpy(to + before * pixel, row + (x + before - reach) * pixel, inside * pixel);
    if (behind) nn_fill_padding(to + (before + inside) * pixel, padding, bytes, behind * C);
}

// One image to windows.  bytes: of an element, to which padding points; W > size / 2.
static inline void nn_fill_windows(void *windows, const void *in, const void *padding, size_t bytes,
                                   size_t H, size_t W, size_t C, size_t size) {
    size_t reach = size / 2, run = size * C * bytes;
    for (size_t y = 0; y < H; y++) {
        for (size_t dy = 0; dy < size; dy++) {
            unsigned char *to = (unsigned char *)windows + (y * W * size + dy) * run;
            int is_inside = y + dy >= reach && y + dy < H + reach;
            const unsigned char *row =
                (const unsigned char *)in + (is_inside ? y + dy - reach : 0) * W * C * bytes;
            for (size_t x = 0; x < W; x++, to += size * run) {
                if (is_inside) nn_fill_window_row(to, row, padding, bytes, W, C, size, x);
                else nn_fill_padding(to, padding, bytes, size * C);
            }
        }
    }
}

// The way back: each pixel gets the sum of what the windows say about it.
static inline void nn_add_windows(float *din,             // (H, W, C)
                                  const float *dwindows,  // (H, W, size, size, C)
                                  size_t H, size_t W, size_t C, size_t size) {
    size_t reach = size / 2;
    for (size_t at = 0; at < H * W * size; at++) {  // a row of a window each
        size_t x = at / size % W, y = at / size / W + at % size;  // y: + reach
        if (y < reach || y >= H + reach) continue;
        for (size_t dx = 0; dx < size; dx++) {
            if (x + dx < reach || x + dx >= W + reach) continue;
            float *pixel = din + ((y - reach) * W + x + dx - reach) * C;
            for (size_t c = 0; c < C; c++) pixel[c] += dwindows[(at * size + dx) * C + c];
        }
    }
}

// -- conv2d: a window for each pixel, zeros outside; with windows it is linear --

static inline size_t nn_conv2d_scratch_bytes(size_t H, size_t W, size_t C, size_t size) {
    return H * W * size * size * C * sizeof(float);
}

static inline void nn_conv2d_forward(float *out,           // (B, H, W, N)
                                     const float *in,      // (B, H, W, C)
                                     const float *weight,  // (size, size, C, N)
                                     const float *bias,    // (N)
                                     float *scratch,       // nn_conv2d_scratch_bytes
                                     size_t B, size_t H, size_t W, size_t C, size_t N,
                                     size_t size) {
    const float zero = 0.0f;
    for (size_t b = 0; b < B; b++) {
        nn_fill_windows(scratch, in + b * H * W * C, &zero, sizeof zero, H, W, C, size);
        nn_linear_forward(out + b * H * W * N, scratch, weight, bias, H * W, size * size * C, N);
    }
}

static inline void nn_conv2d_backward(float *din,           // (B, H, W, C) or NULL
                                      float *dweight,       // (size, size, C, N) or NULL
                                      float *dbias,         // (N) or NULL
                                      const float *dout,    // (B, H, W, N)
                                      const float *in,      // (B, H, W, C)
                                      const float *weight,  // (size, size, C, N)
                                      float *scratch,       // twice nn_conv2d_scratch_bytes
                                      size_t B, size_t H, size_t W, size_t C, size_t N,
                                      size_t size) {
    const float zero = 0.0f;
    size_t K = size * size * C;
    float *dwindows = din ? scratch + H * W * K : NULL;
    for (size_t b = 0; b < B; b++) {
        nn_fill_windows(scratch, in + b * H * W * C, &zero, sizeof zero, H, W, C, size);
        if (din) memset(dwindows, 0, H * W * K * sizeof(float));
        nn_linear_backward(dwindows, dweight, dbias, dout + b * H * W * N, scratch, weight, H * W,
                           K, N);
        if (din) nn_add_windows(din + b * H * W * C, dwindows, H, W, C, size);
    }
}

// Rows first .. first + count - 1 of the gradients of weight and bias together: a row for each tap and
// channel, then the bias. They have the bits that nn_conv2d_backward gives them.
static inline void nn_conv2d_backward_rows(float *drows,       // (count, N)
                                           const float *dout,  // (B, H, W, N)
                                           const float *in,    // (B, H, W, C)
                                           float *scratch,     // nn_conv2d_scratch_bytes
                                           size_t B, size_t H, size_t W, size_t C, size_t N,
                                           size_t size, size_t first, size_t count) {
    const float zero = 0.0f;
    for (size_t b = 0; b < B; b++) {
        nn_fill_windows(scratch, in + b * H * W * C, &zero, sizeof zero, H, W, C, size);
        nn_linear_backward_rows(drows, dout + b * H * W * N, scratch, H * W, size * size * C, N,
                                first, count);
    }
}

// -- relu --

static inline void nn_relu_forward(float *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = in[i] > 0.0f ? in[i] : 0.0f;
}

static inline void nn_relu6_forward(float *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = in[i] < 0.0f ? 0.0f : in[i] > 6.0f ? 6.0f : in[i];
}

static inline void nn_relu_backward(float *din, const float *dout, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) din[i] += in[i] > 0.0f ? dout[i] : 0.0f;
}

// -- pools: squares of `size`, side by side; H and W are multiples of it --

// Element c of pixel k of square i, in (B, H, W, C).
static inline size_t nn_find_pool_place(size_t i, size_t k, size_t c, size_t W, size_t C,
                                        size_t size) {
    size_t columns = W / size, y = i / columns * size + k / size, x = i % columns * size + k % size;
    return (y * W + x) * C + c;
}

// The pixel of a square whose channel c is the largest, the first of equals.
static inline size_t nn_find_pool_most(const float *in, size_t i, size_t c, size_t W, size_t C,
                                       size_t size) {
    size_t best = nn_find_pool_place(i, 0, c, W, C, size);
    for (size_t k = 1; k < size * size; k++) {
        size_t place = nn_find_pool_place(i, k, c, W, C, size);
        best = in[place] > in[best] ? place : best;
    }
    return best;
}

static inline void nn_max_pool_forward(float *out,       // (B, H / size, W / size, C)
                                       const float *in,  // (B, H, W, C)
                                       size_t B, size_t H, size_t W, size_t C, size_t size) {
    for (size_t i = 0; i < B * (H / size) * (W / size); i++) {
        for (size_t c = 0; c < C; c++) out[i * C + c] = in[nn_find_pool_most(in, i, c, W, C, size)];
    }
}

static inline void nn_max_pool_backward(float *din,         // (B, H, W, C)
                                        const float *dout,  // (B, H / size, W / size, C)
                                        const float *in,    // (B, H, W, C)
                                        size_t B, size_t H, size_t W, size_t C, size_t size) {
    for (size_t i = 0; i < B * (H / size) * (W / size); i++) {
        for (size_t c = 0; c < C; c++)
            din[nn_find_pool_most(in, i, c, W, C, size)] += dout[i * C + c];
    }
}

static inline void nn_mean_pool_forward(float *out,       // (B, H / size, W / size, C)
                                        const float *in,  // (B, H, W, C)
                                        size_t B, size_t H, size_t W, size_t C, size_t size) {
    float share = 1.0f / (float)(size * size);
    for (size_t i = 0; i < B * (H / size) * (W / size); i++) {
        for (size_t c = 0; c < C; c++) {
            float sum = 0.0f;
            for (size_t k = 0; k < size * size; k++)
                sum += in[nn_find_pool_place(i, k, c, W, C, size)];
            out[i * C + c] = sum * share;
        }
    }
}

static inline void nn_mean_pool_backward(float *din,         // (B, H, W, C)
                                         const float *dout,  // (B, H / size, W / size, C)
                                         size_t B, size_t H, size_t W, size_t C, size_t size) {
    float share = 1.0f / (float)(size * size);
    for (size_t i = 0; i < B * (H / size) * (W / size); i++) {
        for (size_t k = 0; k < size * size; k++) {
            for (size_t c = 0; c < C; c++)
                din[nn_find_pool_place(i, k, c, W, C, size)] += dout[i * C + c] * share;
        }
    }
}

// -- rows: one row of the result, from the rows under its window --
//
//     rows[0]    NULL: above the image           rows of a whole image, or of a ring (a line buffer) that
//     rows[1]    |=====|                         holds those alone that somebody still reads. The bits are
//     rows[2]    |=====|  -->  out |=====|       the same, however many rows one call makes.
//
// Row y reads row y * stride - size / 2 and the size - 1 below it; that of a pool y * size and below.
// Columns go the same way, so that a row has (W - 1) / stride + 1 pixels.

static inline size_t nn_find_row_width(size_t W, size_t stride) { return (W - 1) / stride + 1; }

// The windows of a row: those of nn_fill_windows where the stride is 1.
static inline void nn_fill_row_windows(void *windows,           // (columns, size, size, C)
                                       const void *const *rows,  // [size] (W, C)
                                       const void *padding, size_t bytes, size_t W, size_t C,
                                       size_t size, size_t stride) {
    size_t run = size * C * bytes, columns = nn_find_row_width(W, stride);
    unsigned char *to = (unsigned char *)windows;
    for (size_t x = 0; x < columns; x++)
        for (size_t dy = 0; dy < size; dy++, to += run) {
            const unsigned char *row = (const unsigned char *)rows[dy];
            if (row) nn_fill_window_row(to, row, padding, bytes, W, C, size, x * stride);
            else nn_fill_padding(to, padding, bytes, size * C);
        }
}

// The bits of nn_conv2d_forward, without scratch.
static inline void nn_conv2d_row(float *out,                // (columns, N)
                                 const float *const *rows,  // [size] (W, C)
                                 const float *weight,       // (size, size, C, N)
                                 const float *bias,         // (N); NULL = zero
                                 size_t W, size_t C, size_t N, size_t size, size_t stride) {
    size_t columns = nn_find_row_width(W, stride);
    for (size_t x = 0; x < columns; x++)
        for (size_t n = 0; n < N; n++) out[x * N + n] = bias ? bias[n] : 0.0f;
    for (size_t tap = 0; tap < size * size; tap++) {
        const float *row = rows[tap / size];
        for (size_t x = 0; row && x < columns; x++) {
            size_t at = x * stride + tap % size;  // + size / 2
            if (at < size / 2 || at >= W + size / 2) continue;
            const float *pixel = row + (at - size / 2) * C, *w = weight + tap * C * N;
            for (size_t c = 0; c < C; c++, w += N)
                for (size_t n = 0; n < N; n++) out[x * N + n] += pixel[c] * w[n];
        }
    }
}

// Each channel by itself, one after the other. It keeps that of the first row, which it may overwrite:
// out may be rows[0] where a row of the result is not longer.
static inline void nn_depthwise_row(float *out,                // (columns, C)
                                    const float *const *rows,  // [size] (W, C)
                                    const float *weight,       // (size, size, C)
                                    const float *bias,         // (C); NULL = zero
                                    float *first,              // (W)
                                    size_t W, size_t C, size_t size, size_t stride) {
    size_t columns = nn_find_row_width(W, stride);
    for (size_t c = 0; c < C; c++) {
        for (size_t x = 0; x < W && rows[0]; x++) first[x] = rows[0][x * C + c];
        for (size_t x = 0; x < columns; x++) {
            float sum = bias ? bias[c] : 0.0f;
            for (size_t dy = 0; dy < size; dy++) {
                const float *row = dy ? rows[dy] : first;
                size_t step = dy ? C : 1, from = dy ? c : 0;
                for (size_t dx = 0; rows[dy] && dx < size; dx++) {
                    size_t at = x * stride + dx;  // + size / 2
                    if (at < size / 2 || at >= W + size / 2) continue;
                    sum += weight[(dy * size + dx) * C + c] * row[(at - size / 2) * step + from];
                }
            }
            out[x * C + c] = sum;
        }
    }
}

static inline void nn_max_pool_row(float *out,                // (W / size, C)
                                   const float *const *rows,  // [size] (W, C)
                                   size_t W, size_t C, size_t size) {
    for (size_t x = 0; x < W / size; x++) {
        for (size_t c = 0; c < C; c++) {
            float most = rows[0][x * size * C + c];
            for (size_t k = 1; k < size * size; k++) {
                float value = rows[k / size][(x * size + k % size) * C + c];
                most = value > most ? value : most;
            }
            out[x * C + c] = most;
        }
    }
}

static inline void nn_mean_pool_row(float *out,                // (W / size, C)
                                    const float *const *rows,  // [size] (W, C)
                                    size_t W, size_t C, size_t size) {
    float share = 1.0f / (float)(size * size);
    for (size_t x = 0; x < W / size; x++) {
        for (size_t c = 0; c < C; c++) {
            float sum = 0.0f;
            for (size_t k = 0; k < size * size; k++)
                sum += rows[k / size][(x * size + k % size) * C + c];
            out[x * C + c] = sum * share;
        }
    }
}

// The channels of each pixel of a row, then those of a row whose pixels are `scale` times as wide.
static inline void nn_concat_upsampled_row(float *out,         // (W, C + N)
                                           const float *in,    // (W, C)
                                           const float *wide,  // ((W - 1) / scale + 1, N)
                                           size_t W, size_t C, size_t N, size_t scale) {
    for (size_t x = 0; x < W; x++) {
        memcpy(out + x * (C + N), in + x * C, C * sizeof(float));
        memcpy(out + x * (C + N) + C, wide + x / scale * N, N * sizeof(float));
    }
}

#endif
