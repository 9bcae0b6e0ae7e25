/* nn_tiny.h - integer kernels for microcontrollers, for the examples

   Plain C99 that is also C++11, freestanding: no allocation, no state, no libm, of the C library
   memcpy and memset alone. An integer q stands for the number (q - zero) scale:

       i8       activations int8 with a zero point -128 .. 127
       i16      activations int16 with zero point 0; weights are int8 there, too (w8a16)
       w4       activations as i8, weights of 4 bits (w4a8)
       weights  int8 -127 .. 127 with zero point 0, one scale for all or one an output channel
       bias     int32 of scale (scale of in) (scale of weights)

   The bits are those of TensorFlow Lite and of CMSIS-NN. i8 rounds twice (nn_int_scale); sums of
   i16 have 64 bits and are rounded once, with a multiplier of 16 bits, as those two do it where
   biases have 64 bits. w4 is nobody else's; it rounds as i8. Of sigmoid and tanh in i16 the bits are
   TensorFlow Lite's; hardswish in i16 is nobody else's.

   Images are (H, W, C), one at a time. Weights are
       conv2d      (N, height, width, C)
       depthwise   (height, width, N), N = m C; channel n of the output reads channel n / m
       linear      (N, K)
   and those of w4, of each op, (N, K), K as a sum goes: depthwise (N, height, width). A weight is
   q factor (scale of its channel), q -7 .. 7, a factor 0 .. 127 for each 32 terms. Each channel
   begins at a whole byte; q lie so that a word, masked, is those of two words of the input:

       byte      0     1     2     3          terms behind the last full block of 8:
       low       q0    q1    q2    q3             low  q0    q2    q4    q6
       high      q4    q5    q6    q7             high q1    q3    q5    0

   ROWS        Each kernel has a form for rows first .. first + count - 1 of its output, _rows. Its
               operands are found row by row, so they may be rings (line buffers) that hold no
               more than what somebody still reads. The bits are the same, however many rows a
               call makes.
   IN PLACE    add, mul, scale, lookup, sigmoid, tanh, hardswish, softmax: out may be an input of as
               many elements.
   LIMITS      Terms of a sum: i8 65536, i16 2^24, w4 8192. Shifts: -31 .. 30, of i16 sums -31 .. 7.
               Kernels check nothing; nn_tiny_check_window, nn_tiny_check_weights and those of _w4
               say what is wrong.
   STACK       1 KiB at most, with all that a kernel calls.
   SPEED       -O2. Where there are DSP instructions (__ARM_FEATURE_DSP: Cortex-M4, M7, M33), sums
               take two products an instruction. The bits are the same.

   LETTERS     H, W, C = rows, columns, channels of an image, N = output channels, n = elements,
               R = rows of a matrix, K = terms of a sum

   CONTENTS    (search for "// -- ")
               operands    checks    windows    sums of products    weights of 4 bits    conv2d
               linear    depthwise    pools    elementwise    softmax    floats    rows    moves
   nn_fixed.h  requantise    quantise    lookup
*/
#ifndef NN_TINY_H
#define NN_TINY_H

#include <stddef.h>
#include <stdint.h>

#include "nn_fixed.h"

#ifdef __GNUC__  // and clang; -ffreestanding has no <string.h>
// A function of which its caller does not take over the frame.
#define NN_TINY_APART static __attribute__((noinline, unused))
// A function that each caller takes over, with the constants that it is called with.
#define NN_TINY_INLINE static inline __attribute__((always_inline))
#define NN_TINY_COPY(to, from, bytes) __builtin_memcpy(to, from, bytes)
#define NN_TINY_FILL(to, byte, bytes) __builtin_memset(to, byte, bytes)
#else
#include <string.h>
#define NN_TINY_APART static inline
#define NN_TINY_INLINE static inline
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
// y stride_y - pad_top + k dilation_y of the input, k = 0 .. height - 1; columns go the same way.
// What lies outside of the image is padding: it adds nothing to sums, and is no element of a pool.
typedef struct nn_tiny_window {
    int32_t in_height, in_width, in_channels;
    int32_t height, width;           // of the window
    int32_t stride_y, stride_x;      // at least 1
    int32_t pad_top, pad_left;       // below and right: as far as the output reaches
    int32_t dilation_y, dilation_x;  // at least 1; pools: 1
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

// Weights of 4 bits: two a byte, with a factor for each group of 32 terms.
typedef struct nn_tiny_weights_w4 {
    nn_tiny_weights packed;  // weights: (N, ceil(K / 2)) bytes
    const int8_t *factors;   // (N, ceil(K / 32)), 0 .. 127
} nn_tiny_weights_w4;

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

// The operands of a whole image; bytes: of an element.
static inline nn_tiny_in nn_tiny_image_in(const void *at, const nn_tiny_window *w, int32_t bytes) {
    return nn_tiny_whole_in(at, w->in_width * w->in_channels * bytes);
}

static inline nn_tiny_out nn_tiny_image_out(void *at, const nn_tiny_window *w, int32_t bytes) {
    return nn_tiny_whole_out(at, w->out_width * w->out_channels * bytes);
}

static inline int32_t nn_tiny_clamp(int32_t value, int32_t low, int32_t high) {
    value = value < low ? low : value;
    return value > high ? high : value;
}

// A sum to an integer of the output: i8, and all that i16 does in 32 bits.
static inline int32_t nn_tiny_finish(int32_t sum, int32_t multiplier, int32_t shift,
                                     const nn_tiny_target *to) {
    int32_t value = nn_int_scale(sum, multiplier, shift);
    return nn_tiny_clamp(value, to->low - to->zero, to->high - to->zero) + to->zero;
}

// A sum of i16: the multiplier is rounded to 16 bits, and the product once. sum: +-2^47.
static inline int32_t nn_tiny_finish_wide(int64_t sum, int32_t multiplier, int32_t shift,
                                          const nn_tiny_target *to) {
    int32_t factor = multiplier < 0x7FFF0000 ? (multiplier + (1 << 15)) >> 16 : 0x7FFF;
    int64_t value = (sum * factor + (INT64_C(1) << (14 - shift))) >> (15 - shift);
    return (int32_t)nn_int_clamp(value, to->low, to->high);
}

// -- checks: for those who make geometry and weights; kernels believe them --

static inline int64_t nn_tiny_count_terms(const nn_tiny_window *w, int is_depthwise) {
    int64_t area = (int64_t)w->height * w->width;
    return is_depthwise ? area : area * w->in_channels;
}

// What is wrong with a window; NULL = nothing. is_depthwise: out_channels are a multiple of
// in_channels; bytes: of an element.
static inline const char *nn_tiny_check_window(const nn_tiny_window *w, int is_depthwise,
                                               int32_t bytes) {
    int64_t K = nn_tiny_count_terms(w, is_depthwise), most = bytes == 1 ? 65536 : 1 << 24;
    if (w->in_height < 1 || w->in_width < 1 || w->in_channels < 1)
        return "the input has no elements";
    if (w->out_height < 1 || w->out_width < 1 || w->out_channels < 1)
        return "the output has no elements";
    if (w->height < 1 || w->width < 1) return "the window has no elements";
    if (w->stride_y < 1 || w->stride_x < 1) return "a stride is below 1";
    if (w->dilation_y < 1 || w->dilation_x < 1) return "a dilation is below 1";
    if (w->pad_top < 0 || w->pad_left < 0) return "a padding is below 0";
    if ((int64_t)(w->out_height - 1) * w->stride_y - w->pad_top >= w->in_height ||
        (int64_t)(w->out_width - 1) * w->stride_x - w->pad_left >= w->in_width)
        return "the last window begins behind the input";
    if (w->pad_top > (int64_t)(w->height - 1) * w->dilation_y ||
        w->pad_left > (int64_t)(w->width - 1) * w->dilation_x)
        return "the first window ends before the input";
    if (is_depthwise && w->out_channels % w->in_channels)
        return "the output's channels are no multiple of the input's";
    return K > most ? "a sum has too many terms" : NULL;
}

// The same of a window over weights of 4 bits.
static inline const char *nn_tiny_check_window_w4(const nn_tiny_window *w, int is_depthwise) {
    const char *text = nn_tiny_check_window(w, is_depthwise, 1);
    if (text) return text;
    return nn_tiny_count_terms(w, is_depthwise) > 8192 ? "a sum has too many terms" : NULL;
}

// The same of N channels of weights.
static inline const char *nn_tiny_check_weights(const nn_tiny_weights *w, int32_t N,
                                                int32_t bytes) {
    int32_t n, count = w->per_channel ? N : 1, most = bytes == 1 ? 30 : 7;
    if (!w->weights || !w->multipliers || !w->shifts) return "an array is missing";
    for (n = 0; n < count; n++) {
        if (w->multipliers[n] != 0 && w->multipliers[n] < 1 << 30)
            return "a multiplier is not 0, nor 2^30 .. 2^31 - 1";
        if (w->shifts[n] < -31 || w->shifts[n] > most) return "a shift is out of range";
    }
    return NULL;
}

// The same of weights of 4 bits, of sums of K terms.
static inline const char *nn_tiny_check_weights_w4(const nn_tiny_weights_w4 *w, int32_t N,
                                                   int32_t K) {
    const char *text = nn_tiny_check_weights(&w->packed, N, 1);
    int32_t i, groups = K / 32 + (K % 32 > 0);
    if (text) return text;
    if (!w->factors) return "an array is missing";
    for (i = 0; i < N * groups; i++)
        if (w->factors[i] < 0) return "a factor is below 0";
    return NULL;
}

// -- windows: the part of one that lies inside of the image, along one axis --

typedef struct nn_tiny_span {
    int32_t at;          // where tap 0 lies; may be outside
    int32_t first, end;  // of the taps inside; end = first: none
} nn_tiny_span;

static inline nn_tiny_span nn_tiny_find_span(int32_t at, int32_t taps, int32_t dilation,
                                             int32_t size) {
    nn_tiny_span span;
    span.at = at;
    span.first = 0;
    span.end = taps;
    if (at < 0) span.first = nn_tiny_clamp((dilation - 1 - at) / dilation, 0, taps);
    if (at + (taps - 1) * dilation >= size) {
        span.end = at < size ? (size - at + dilation - 1) / dilation : 0;
        span.end = nn_tiny_clamp(span.end, span.first, taps);
    }
    return span;
}

static inline nn_tiny_span nn_tiny_rows_of(const nn_tiny_window *w, int32_t y) {
    return nn_tiny_find_span(y * w->stride_y - w->pad_top, w->height, w->dilation_y, w->in_height);
}

static inline nn_tiny_span nn_tiny_columns_of(const nn_tiny_window *w, int32_t x) {
    return nn_tiny_find_span(x * w->stride_x - w->pad_left, w->width, w->dilation_x, w->in_width);
}

// A row under a window, and those below it.
typedef struct nn_tiny_cursor {
    const unsigned char *base;
    int32_t row_bytes, rows;
    int32_t row;  // of the ring, or of the tensor
    int32_t step;
} nn_tiny_cursor;

// From row `row` of a tensor on, step rows at a time.
static inline nn_tiny_cursor nn_tiny_cursor_at(const nn_tiny_in *in, int32_t row, int32_t step) {
    nn_tiny_cursor cursor;
    cursor.base = (const unsigned char *)in->at;
    cursor.row_bytes = in->row_bytes;
    cursor.rows = in->rows;
    cursor.row = in->rows ? (row + in->shift) % in->rows : row;
    cursor.step = step;  // below rows: a ring holds all rows under a window
    return cursor;
}

static inline const unsigned char *nn_tiny_next_row(nn_tiny_cursor *cursor) {
    const unsigned char *at = cursor->base + (ptrdiff_t)cursor->row * cursor->row_bytes;
    cursor->row += cursor->step;
    if (cursor->rows && cursor->row >= cursor->rows) cursor->row -= cursor->rows;
    return at;
}

// -- sums of products --
//
// Two windows, NN_TINY_PATCH bytes apart, meet two rows of weights, so that what is loaded is used
// twice:
//
//              n                  n                 2
//           +-----+            +-----+            +---+
//        2  |  x  |         2  |  w  |         2  |   | sums[2 i + j] = (x_i + offset) w_j
//           +-----+            +-----+            +---+
//
// With DSP instructions four bytes are widened to two pairs of 16 bits, even ones and odd ones,
// which is where the offset is added at no cost, and SMLAD multiplies pairs and adds them up.

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
#define NN_TINY_DSP

typedef struct nn_tiny_word {
    int8_t bytes[4];
} nn_tiny_word;

// Volatile, here and below: in the order as written they need the fewest registers.
NN_TINY_INLINE uint32_t nn_tiny_load(const int8_t *at) {
    uint32_t word;
    __asm__ volatile("ldr %0, %1" : "=r"(word) : "m"(*(const nn_tiny_word *)(const void *)at));
    return word;
}

// Bytes 0 and 2 as two numbers of 16 bits, plus two offsets.
NN_TINY_INLINE uint32_t nn_tiny_even(uint32_t offsets, uint32_t bytes) {
    uint32_t pair;
    __asm__ volatile("sxtab16 %0, %1, %2" : "=r"(pair) : "r"(offsets), "r"(bytes));
    return pair;
}

// Bytes 1 and 3.
NN_TINY_INLINE uint32_t nn_tiny_odd(uint32_t offsets, uint32_t bytes) {
    uint32_t pair;
    __asm__ volatile("sxtab16 %0, %1, %2, ror #8" : "=r"(pair) : "r"(offsets), "r"(bytes));
    return pair;
}

NN_TINY_INLINE uint32_t nn_tiny_even_weights(uint32_t bytes) {
    uint32_t pair;
    __asm__ volatile("sxtb16 %0, %1" : "=r"(pair) : "r"(bytes));
    return pair;
}

NN_TINY_INLINE uint32_t nn_tiny_odd_weights(uint32_t bytes) {
    uint32_t pair;
    __asm__ volatile("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(bytes));
    return pair;
}

// sum + the products of both pairs.
NN_TINY_INLINE int32_t nn_tiny_add_pair(uint32_t a, uint32_t b, int32_t sum) {
    __asm__ volatile("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

// sum + the product of the lower, of the upper numbers.
NN_TINY_INLINE int32_t nn_tiny_add_lower(uint32_t a, uint32_t b, int32_t sum) {
    __asm__ volatile("smlabb %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

NN_TINY_INLINE int32_t nn_tiny_add_upper(uint32_t a, uint32_t b, int32_t sum) {
    __asm__ volatile("smlatt %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

// Of four bytes each the larger.
NN_TINY_INLINE uint32_t nn_tiny_larger_bytes(uint32_t a, uint32_t b) {
    uint32_t most;
    __asm__ volatile("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(most) : "r"(a), "r"(b));
    return most;
}

static inline uint32_t nn_tiny_offsets(int32_t offset) {
    return ((uint32_t)offset & 0xFFFFu) | (uint32_t)offset << 16;
}
#endif

enum {
    NN_TINY_GROUP = 32,   // terms that share a factor of weights of 4 bits
    NN_TINY_TAPS = 256,   // weights of 4 bits that a depthwise window unpacks
    NN_TINY_PATCH = 160,  // bytes of a window, or of a part of it: whole groups; 3 x 3 x 16 fits
    NN_TINY_CHANNELS = 8  // output channels whose sums are kept from part to part, an even number
};

#ifdef NN_TINY_DSP
// Four terms of two windows and of two rows of weights, b and c.
NN_TINY_INLINE void nn_tiny_multiply_pairs(int32_t *sums, uint32_t offsets, const int8_t *x,
                                           uint32_t b_even, uint32_t b, uint32_t c_even,
                                           uint32_t c) {
    uint32_t a = nn_tiny_load(x), a_even;
    a_even = nn_tiny_even(offsets, a);
    a = nn_tiny_odd(offsets, a);
    sums[0] = nn_tiny_add_pair(a_even, b_even, sums[0]);
    sums[1] = nn_tiny_add_pair(a_even, c_even, sums[1]);
    sums[0] = nn_tiny_add_pair(a, b, sums[0]);
    sums[1] = nn_tiny_add_pair(a, c, sums[1]);
    a = nn_tiny_load(x + NN_TINY_PATCH);
    a_even = nn_tiny_even(offsets, a);
    a = nn_tiny_odd(offsets, a);
    sums[2] = nn_tiny_add_pair(a_even, b_even, sums[2]);
    sums[3] = nn_tiny_add_pair(a_even, c_even, sums[3]);
    sums[2] = nn_tiny_add_pair(a, b, sums[2]);
    sums[3] = nn_tiny_add_pair(a, c, sums[3]);
}

NN_TINY_INLINE void nn_tiny_multiply_four(int32_t *sums, uint32_t offsets, const int8_t *x,
                                          const int8_t *w0, const int8_t *w1) {
    uint32_t b = nn_tiny_load(w0), b_even = nn_tiny_even_weights(b), c, c_even;
    b = nn_tiny_odd_weights(b);
    c = nn_tiny_load(w1);
    c_even = nn_tiny_even_weights(c);
    c = nn_tiny_odd_weights(c);
    nn_tiny_multiply_pairs(sums, offsets, x, b_even, b, c_even, c);
}
#endif

// sums (2, 2) += the products.
static inline void nn_tiny_multiply_i8(int32_t *sums, const int8_t *x, const int8_t *w0,
                                       const int8_t *w1, int32_t n, int32_t offset) {
    const int8_t *x1 = x + NN_TINY_PATCH;
    int32_t s[4];
    NN_TINY_COPY(s, sums, sizeof s);
#ifdef NN_TINY_DSP
    uint32_t offsets = nn_tiny_offsets(offset);
    for (; n >= 16; n -= 16, x += 16, w0 += 16, w1 += 16) {
        nn_tiny_multiply_four(s, offsets, x, w0, w1);
        nn_tiny_multiply_four(s, offsets, x + 4, w0 + 4, w1 + 4);
        nn_tiny_multiply_four(s, offsets, x + 8, w0 + 8, w1 + 8);
        nn_tiny_multiply_four(s, offsets, x + 12, w0 + 12, w1 + 12);
    }
    for (; n >= 4; n -= 4, x += 4, w0 += 4, w1 += 4) nn_tiny_multiply_four(s, offsets, x, w0, w1);
    x1 = x + NN_TINY_PATCH;
#endif
    for (int32_t i = 0; i < n; i++) {
        int32_t a = x[i] + offset, b = x1[i] + offset;
        s[0] += a * w0[i];
        s[1] += a * w1[i];
        s[2] += b * w0[i];
        s[3] += b * w1[i];
    }
    NN_TINY_COPY(sums, s, sizeof s);
}

// At most 512 terms: then the sums of the largest products but one fit 32 bits.
static inline void nn_tiny_multiply_i16(int32_t *sums, const int16_t *x0, const int8_t *w0,
                                        const int8_t *w1, int32_t n) {
    const int16_t *x1 = x0 + NN_TINY_PATCH / 2;
    int32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (int32_t i = 0; i < n; i++) {
        s00 += x0[i] * w0[i];
        s01 += x0[i] * w1[i];
        s10 += x1[i] * w0[i];
        s11 += x1[i] * w1[i];
    }
    sums[0] = s00;
    sums[1] = s01;
    sums[2] = s10;
    sums[3] = s11;
}

// One window and four rows of weights, K apart: sums (4) += the products.
static inline void nn_tiny_multiply_row_i8(int32_t *sums, const int8_t *x, const int8_t *w,
                                           int32_t K, int32_t n, int32_t offset) {
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
#ifdef NN_TINY_DSP
    uint32_t offsets = nn_tiny_offsets(offset);
    for (; n >= 4; n -= 4, x += 4, w += 4) {
        uint32_t a = nn_tiny_load(x), b = nn_tiny_load(w), even = nn_tiny_even(offsets, a);
        a = nn_tiny_odd(offsets, a);
        s0 = nn_tiny_add_pair(even, nn_tiny_even_weights(b), s0);
        s0 = nn_tiny_add_pair(a, nn_tiny_odd_weights(b), s0);
        b = nn_tiny_load(w + K);
        s1 = nn_tiny_add_pair(even, nn_tiny_even_weights(b), s1);
        s1 = nn_tiny_add_pair(a, nn_tiny_odd_weights(b), s1);
        b = nn_tiny_load(w + 2 * K);
        s2 = nn_tiny_add_pair(even, nn_tiny_even_weights(b), s2);
        s2 = nn_tiny_add_pair(a, nn_tiny_odd_weights(b), s2);
        b = nn_tiny_load(w + 3 * K);
        s3 = nn_tiny_add_pair(even, nn_tiny_even_weights(b), s3);
        s3 = nn_tiny_add_pair(a, nn_tiny_odd_weights(b), s3);
    }
#endif
    for (int32_t i = 0; i < n; i++, w++) {
        int32_t a = x[i] + offset;
        s0 += a * w[0];
        s1 += a * w[K];
        s2 += a * w[2 * K];
        s3 += a * w[3 * K];
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

// -- weights of 4 bits --
//
// With DSP instructions a mask leaves the nibbles of two bytes as the upper 4 of 16 bits, 4096 q,
// and the sum of a group is shifted back at its end: 32 255 7 4096 < 2^31.

static inline int32_t nn_tiny_low(int8_t byte) { return ((byte & 15) ^ 8) - 8; }

// Term i behind the last full block.
static inline int32_t nn_tiny_nibble(const int8_t *w, int32_t i) {
    return i & 1 ? w[i / 2] >> 4 : nn_tiny_low(w[i / 2]);
}

static inline int32_t nn_tiny_count_groups(int32_t K) {
    return (K + NN_TINY_GROUP - 1) / NN_TINY_GROUP;
}

// Weight k of a channel, its factor in it.
static inline int32_t nn_tiny_find_weight(const int8_t *w, const int8_t *factors, int32_t K,
                                          int32_t k) {
    int32_t q;
    w += k / 8 * 4;
    if (k / 8 == K / 8) q = nn_tiny_nibble(w, k % 8);
    else q = k & 4 ? w[k % 4] >> 4 : nn_tiny_low(w[k % 4]);
    return q * factors[k / NN_TINY_GROUP];
}

// The products of one term of two windows and a weight: sums[0], sums[2].
static inline void nn_tiny_multiply_one(int32_t *sums, const int8_t *x, int32_t offset, int32_t q) {
    sums[0] += (x[0] + offset) * q;
    sums[2] += (x[NN_TINY_PATCH] + offset) * q;
}

#ifdef NN_TINY_DSP
// Numbers 0 and 2 of the low nibbles, shift = 12, or of the high ones, 8; numbers 1 and 3 are 8
// bits further.
NN_TINY_INLINE uint32_t nn_tiny_nibbles(uint32_t bytes, int shift) {
    return (bytes << shift) & 0xF000F000u;
}

// Eight terms of two windows and two rows of weights. Words are loaded twice: registers are few.
NN_TINY_INLINE void nn_tiny_multiply_eight(int32_t *sums, uint32_t offsets, const int8_t *x,
                                           const int8_t *w0, const int8_t *w1) {
    uint32_t b = nn_tiny_load(w0), c = nn_tiny_load(w1);
    nn_tiny_multiply_pairs(sums, offsets, x, nn_tiny_nibbles(b, 12), nn_tiny_nibbles(b, 4),
                           nn_tiny_nibbles(c, 12), nn_tiny_nibbles(c, 4));
    b = nn_tiny_load(w0);
    c = nn_tiny_load(w1);
    nn_tiny_multiply_pairs(sums, offsets, x + 4, nn_tiny_nibbles(b, 8), nn_tiny_nibbles(b, 0),
                           nn_tiny_nibbles(c, 8), nn_tiny_nibbles(c, 0));
}

// sum + the products of eight terms: pairs 0 2, 1 3, 4 6, 5 7.
NN_TINY_INLINE int32_t nn_tiny_add_eight(const uint32_t *pairs, const int8_t *w, int32_t sum) {
    uint32_t b = nn_tiny_load(w);
    sum = nn_tiny_add_pair(pairs[0], nn_tiny_nibbles(b, 12), sum);
    sum = nn_tiny_add_pair(pairs[1], nn_tiny_nibbles(b, 4), sum);
    sum = nn_tiny_add_pair(pairs[2], nn_tiny_nibbles(b, 8), sum);
    return nn_tiny_add_pair(pairs[3], nn_tiny_nibbles(b, 0), sum);
}
#endif

static inline const int8_t *nn_tiny_end_group(const int8_t *x, const int8_t *end) {
    return end - x > NN_TINY_GROUP ? x + NN_TINY_GROUP : end;
}

// sums (2, 2) += the products, group by group. f0, f1: the factors of both rows of weights.
static inline void nn_tiny_multiply_w4(int32_t *sums, const int8_t *x, const int8_t *w0,
                                       const int8_t *w1, const int8_t *f0, const int8_t *f1,
                                       int32_t n, int32_t offset) {
    const int8_t *end = x + n;
#ifdef NN_TINY_DSP
    uint32_t offsets = nn_tiny_offsets(offset);
#endif
    for (; x < end; f0++, f1++) {
        const int8_t *stop = nn_tiny_end_group(x, end);
        int32_t s[4] = {0, 0, 0, 0}, i;
#ifdef NN_TINY_DSP
        for (; stop - x >= 16; x += 16, w0 += 8, w1 += 8) {
            nn_tiny_multiply_eight(s, offsets, x, w0, w1);
            nn_tiny_multiply_eight(s, offsets, x + 8, w0 + 4, w1 + 4);
        }
        for (; stop - x >= 8; x += 8, w0 += 4, w1 += 4)
            nn_tiny_multiply_eight(s, offsets, x, w0, w1);
        s[0] >>= 12;
        s[1] >>= 12;
        s[2] >>= 12;
        s[3] >>= 12;
#endif
        for (; stop - x >= 8; x += 4)
            for (i = 0; i < 4; i++, x++, w0++, w1++) {
                nn_tiny_multiply_one(s, x, offset, nn_tiny_low(*w0));
                nn_tiny_multiply_one(s + 1, x, offset, nn_tiny_low(*w1));
                nn_tiny_multiply_one(s, x + 4, offset, *w0 >> 4);
                nn_tiny_multiply_one(s + 1, x + 4, offset, *w1 >> 4);
            }
        for (i = 0; x < stop; x++, i++) {
            nn_tiny_multiply_one(s, x, offset, nn_tiny_nibble(w0, i));
            nn_tiny_multiply_one(s + 1, x, offset, nn_tiny_nibble(w1, i));
        }
        sums[0] += s[0] * *f0;
        sums[1] += s[1] * *f1;
        sums[2] += s[2] * *f0;
        sums[3] += s[3] * *f1;
    }
}

// One window and four rows of weights, with factors that lie `groups` apart: sums (4) += the
// products.
static inline void nn_tiny_multiply_row_w4(int32_t *sums, const int8_t *x, const int8_t *w,
                                           const int8_t *f, int32_t K, int32_t offset) {
    int32_t groups = nn_tiny_count_groups(K), step = (K + 1) / 2, i, a, b;
    const int8_t *end = x + K;
#ifdef NN_TINY_DSP
    uint32_t offsets = nn_tiny_offsets(offset);
#endif
    for (; x < end; f++) {
        const int8_t *stop = nn_tiny_end_group(x, end);
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#ifdef NN_TINY_DSP
        for (; stop - x >= 8; x += 8, w += 4) {
            uint32_t x03 = nn_tiny_load(x), x47 = nn_tiny_load(x + 4), pairs[4];
            pairs[0] = nn_tiny_even(offsets, x03);
            pairs[1] = nn_tiny_odd(offsets, x03);
            pairs[2] = nn_tiny_even(offsets, x47);
            pairs[3] = nn_tiny_odd(offsets, x47);
            s0 = nn_tiny_add_eight(pairs, w, s0);
            s1 = nn_tiny_add_eight(pairs, w + step, s1);
            s2 = nn_tiny_add_eight(pairs, w + 2 * step, s2);
            s3 = nn_tiny_add_eight(pairs, w + 3 * step, s3);
        }
        s0 >>= 12;
        s1 >>= 12;
        s2 >>= 12;
        s3 >>= 12;
#endif
        for (; stop - x >= 8; x += 4)
            for (i = 0; i < 4; i++, x++, w++) {
                a = x[0] + offset;
                b = x[4] + offset;
                s0 += a * nn_tiny_low(w[0]) + b * (w[0] >> 4);
                s1 += a * nn_tiny_low(w[step]) + b * (w[step] >> 4);
                s2 += a * nn_tiny_low(w[2 * step]) + b * (w[2 * step] >> 4);
                s3 += a * nn_tiny_low(w[3 * step]) + b * (w[3 * step] >> 4);
            }
        for (i = 0; x < stop; x++, i++) {
            a = x[0] + offset;
            s0 += a * nn_tiny_nibble(w, i);
            s1 += a * nn_tiny_nibble(w + step, i);
            s2 += a * nn_tiny_nibble(w + 2 * step, i);
            s3 += a * nn_tiny_nibble(w + 3 * step, i);
        }
        sums[0] += s0 * f[0];
        sums[1] += s1 * f[groups];
        sums[2] += s2 * f[2 * groups];
        sums[3] += s3 * f[3 * groups];
    }
}

// -- conv2d --
//
// Two pixels of the output at a time. Their windows are laid side by side in patches on the stack,
// with the zero point for what lies outside, or a part of them at a time:
//
//        image            window            patch
//        +-----+          +--+
//        |[ ]  |   --->   |--|   --->   |--|--|--|    terms k0 .. k0 + n - 1 of height width C
//        +-----+          |--|
//                         +--+
// A pixel that is left over is read where it lies, if its window is a run of the input.

// Of which numbers a convolution is. Passed by value, so that a compiler sees of which it never is.
typedef enum nn_tiny_kind { NN_TINY_I8, NN_TINY_I16, NN_TINY_W4 } nn_tiny_kind;

typedef struct nn_tiny_conv {
    const nn_tiny_out *out;
    const nn_tiny_in *in;
    const nn_tiny_window *window;
    const nn_tiny_weights *w;
    const nn_tiny_target *to;
    const int8_t *factors;  // of weights of 4 bits; NULL = they have none
    int32_t bytes;          // of an element: 1 or 2
    int32_t K;              // terms of a sum
} nn_tiny_conv;

// A pixel of the output.
typedef struct nn_tiny_pixel {
    int32_t y, x;
    unsigned char *row;  // row y of the output
} nn_tiny_pixel;

static inline void nn_tiny_next_pixel(nn_tiny_pixel *p, const nn_tiny_conv *c, int32_t end) {
    if (++p->x < c->window->out_width) return;
    p->x = 0;
    if (++p->y < end) p->row = (unsigned char *)nn_tiny_find_out(c->out, p->y);
}

// The window of a pixel where it is a run of the input; NULL = it is not.
static inline const unsigned char *nn_tiny_find_run(const nn_tiny_conv *c, const nn_tiny_pixel *p) {
    const nn_tiny_window *w = c->window;
    int32_t y = p->y * w->stride_y - w->pad_top, x = p->x * w->stride_x - w->pad_left;
    if (w->height > 1 || (w->width > 1 && w->dilation_x > 1)) return NULL;
    if (y < 0 || y >= w->in_height || x < 0 || x > w->in_width - w->width) return NULL;
    return (const unsigned char *)nn_tiny_find_in(c->in, y) + x * w->in_channels * c->bytes;
}

static inline void nn_tiny_copy_run(unsigned char *to, const unsigned char *from, int32_t bytes) {
#ifdef NN_TINY_DSP
    for (; bytes >= 4; bytes -= 4, to += 4, from += 4) NN_TINY_COPY(to, from, 4);
    for (; bytes > 0; bytes--) *to++ = *from++;
#else
    if (bytes > 0) NN_TINY_COPY(to, from, (size_t)bytes);
#endif
}

// Elements from .. from + n - 1 of a run of a window, of which lo .. hi - 1 lie inside of the
// image; element 0 lies at x.
static inline void nn_tiny_fill_run(unsigned char *to, const nn_tiny_conv *c,
                                    const unsigned char *x, int32_t lo, int32_t hi, int32_t from,
                                    int32_t n) {
    int32_t bytes = c->bytes;
    lo = nn_tiny_clamp(lo, from, from + n);
    hi = nn_tiny_clamp(hi, lo, from + n);
    if (hi - lo < n) NN_TINY_FILL(to, c->to->in_zero & 255, (size_t)(n * bytes));
    nn_tiny_copy_run(to + (lo - from) * bytes, x + lo * bytes, (hi - lo) * bytes);
}

// Terms k0 .. k0 + n - 1 of the window of a pixel. A run is a row of the window, or with dilation a
// tap.
NN_TINY_APART void nn_tiny_fill_patch(unsigned char *patch, const nn_tiny_conv *c,
                                      const nn_tiny_pixel *p, int32_t k0, int32_t n) {
    const nn_tiny_window *w = c->window;
    nn_tiny_span rows = nn_tiny_rows_of(w, p->y), columns = nn_tiny_columns_of(w, p->x);
    int32_t taps = w->dilation_x == 1 ? w->width : 1, C = w->in_channels, run = taps * C;
    int32_t at = k0 / run, from = k0 - at * run;
    int32_t ky = at * taps / w->width, kx = at * taps % w->width;
    while (n > 0) {
        int32_t size = run - from < n ? run - from : n;
        if (ky < rows.first || ky >= rows.end) nn_tiny_fill_run(patch, c, patch, 0, 0, from, size);
        else {
            const unsigned char *row =
                (const unsigned char *)nn_tiny_find_in(c->in, rows.at + ky * w->dilation_y);
            nn_tiny_fill_run(patch, c,
                             row + (ptrdiff_t)(columns.at + kx * w->dilation_x) * C * c->bytes,
                             (columns.first - kx) * C, (columns.end - kx) * C, from, size);
        }
        patch += size * c->bytes;
        n -= size;
        from = 0;
        kx += taps;
        if (kx >= w->width) {
            kx = 0;
            ky++;
        }
    }
}

// Bytes of the weights of a channel.
static inline int32_t nn_tiny_row_bytes(int32_t K, nn_tiny_kind kind) {
    return kind == NN_TINY_W4 ? (K + 1) / 2 : K;
}

// Which channels and terms of two pixels are summed.
typedef struct nn_tiny_block {
    const unsigned char *x;      // terms k0 .. k0 + n - 1 of their windows
    unsigned char *out0, *out1;  // their outputs
    int32_t n0, channels, k0, n;
    int is_last;  // the sums are complete then
} nn_tiny_block;

static inline int32_t nn_tiny_bias(const nn_tiny_weights *w, int32_t n) {
    return w->bias ? w->bias[n] : 0;
}

// The sum of channel n.
static inline int8_t nn_tiny_finish_i8(int32_t sum, int32_t n, const nn_tiny_weights *w,
                                       const nn_tiny_target *to) {
    int32_t at = w->per_channel ? n : 0;
    return (int8_t)nn_tiny_finish(sum, w->multipliers[at], w->shifts[at], to);
}

// Sums of channel n of two pixels.
static inline void nn_tiny_write_i8(unsigned char *out0, unsigned char *out1, int32_t n,
                                    int32_t sum0, int32_t sum1, const nn_tiny_conv *c) {
    int32_t at = c->w->per_channel ? n : 0;
    int32_t multiplier = c->w->multipliers[at], shift = c->w->shifts[at];
    ((int8_t *)out0)[n] = (int8_t)nn_tiny_finish(sum0, multiplier, shift, c->to);
    ((int8_t *)out1)[n] = (int8_t)nn_tiny_finish(sum1, multiplier, shift, c->to);
}

// sums (2, 2) += the products of channels n and n + step.
NN_TINY_INLINE void nn_tiny_multiply_block(int32_t *sums, const nn_tiny_conv *c,
                                           const nn_tiny_block *b, int32_t n, int32_t step,
                                           nn_tiny_kind kind) {
    const int8_t *x = (const int8_t *)b->x, *w = c->w->weights;
    int32_t row = nn_tiny_row_bytes(c->K, kind), offset = -c->to->in_zero;
    w += (ptrdiff_t)n * row;
    if (kind == NN_TINY_W4) {
        int32_t groups = nn_tiny_count_groups(c->K);
        const int8_t *f = c->factors + (ptrdiff_t)n * groups + b->k0 / NN_TINY_GROUP;
        w += b->k0 / 2;
        nn_tiny_multiply_w4(sums, x, w, w + step * row, f, f + step * groups, b->n, offset);
    } else nn_tiny_multiply_i8(sums, x, w + b->k0, w + b->k0 + step * row, b->n, offset);
}

// Two pixels, two channels at a time; `kept`: sums of parts of the terms, (channels, 2).
NN_TINY_INLINE void nn_tiny_sum_block(int32_t *kept, const nn_tiny_conv *c, const nn_tiny_block *b,
                                      nn_tiny_kind kind) {
    for (int32_t j = 0; j < b->channels; j += 2, kept += 4) {
        int32_t sums[4], n = b->n0 + j, is_pair = j + 1 < b->channels;
        if (b->k0) NN_TINY_COPY(sums, kept, sizeof sums);
        else {
            sums[0] = sums[2] = nn_tiny_bias(c->w, n);
            sums[1] = sums[3] = nn_tiny_bias(c->w, n + is_pair);
        }
        nn_tiny_multiply_block(sums, c, b, n, is_pair, kind);
        if (!b->is_last) {
            NN_TINY_COPY(kept, sums, sizeof sums);
            continue;
        }
        nn_tiny_write_i8(b->out0, b->out1, n, sums[0], sums[2], c);
        if (is_pair) nn_tiny_write_i8(b->out0, b->out1, n + 1, sums[1], sums[3], c);
    }
}

NN_TINY_APART void nn_tiny_sum_block_i8(int32_t *kept, const nn_tiny_conv *c,
                                        const nn_tiny_block *b) {
    nn_tiny_sum_block(kept, c, b, NN_TINY_I8);
}

NN_TINY_APART void nn_tiny_sum_block_w4(int32_t *kept, const nn_tiny_conv *c,
                                        const nn_tiny_block *b) {
    nn_tiny_sum_block(kept, c, b, NN_TINY_W4);
}

// One pixel whose window is a run of the input: four channels at a time.
NN_TINY_INLINE void nn_tiny_conv_run(const nn_tiny_conv *c, const nn_tiny_pixel *p, const int8_t *x,
                                     nn_tiny_kind kind) {
    int32_t N = c->window->out_channels, n = 0, i, K = c->K, offset = -c->to->in_zero;
    int32_t row = nn_tiny_row_bytes(K, kind), groups = nn_tiny_count_groups(K);
    int8_t *out = (int8_t *)p->row + (ptrdiff_t)p->x * N;
    const int8_t *w = c->w->weights, *f = c->factors;
    for (; n + 4 <= N; n += 4, w += 4 * row) {
        int32_t sums[4];
        for (i = 0; i < 4; i++) sums[i] = nn_tiny_bias(c->w, n + i);
        if (kind == NN_TINY_W4) nn_tiny_multiply_row_w4(sums, x, w, f + n * groups, K, offset);
        else nn_tiny_multiply_row_i8(sums, x, w, K, K, offset);
        for (i = 0; i < 4; i++) out[n + i] = nn_tiny_finish_i8(sums[i], n + i, c->w, c->to);
    }
    for (; n < N; n++, w += row) {
        int32_t sum = nn_tiny_bias(c->w, n);
        for (i = 0; i < K; i++)
            sum += (x[i] + offset) *
                   (kind == NN_TINY_W4 ? nn_tiny_find_weight(w, f + n * groups, K, i) : w[i]);
        out[n] = nn_tiny_finish_i8(sum, n, c->w, c->to);
    }
}

NN_TINY_APART void nn_tiny_conv_run_i8(const nn_tiny_conv *c, const nn_tiny_pixel *p,
                                       const int8_t *x) {
    nn_tiny_conv_run(c, p, x, NN_TINY_I8);
}

NN_TINY_APART void nn_tiny_conv_run_w4(const nn_tiny_conv *c, const nn_tiny_pixel *p,
                                       const int8_t *x) {
    nn_tiny_conv_run(c, p, x, NN_TINY_W4);
}

static inline void nn_tiny_write_i16(unsigned char *out, int32_t n, int64_t sum,
                                     const nn_tiny_conv *c) {
    int32_t at = c->w->per_channel ? n : 0;
    sum += nn_tiny_bias(c->w, n);
    ((int16_t *)(void *)out)[n] =
        (int16_t)nn_tiny_finish_wide(sum, c->w->multipliers[at], c->w->shifts[at], c->to);
}

NN_TINY_APART void nn_tiny_sum_block_i16(int64_t *kept, const nn_tiny_conv *c,
                                         const nn_tiny_block *b) {
    for (int32_t j = 0; j < b->channels; j += 2, kept += 4) {
        int32_t sums[4], n = b->n0 + j, i, is_pair = j + 1 < b->channels;
        const int8_t *w = c->w->weights + (ptrdiff_t)n * c->K + b->k0;
        nn_tiny_multiply_i16(sums, (const int16_t *)(const void *)b->x, w, is_pair ? w + c->K : w,
                             b->n);
        for (i = 0; i < 4; i++) kept[i] = sums[i] + (b->k0 ? kept[i] : 0);
        for (i = 0; i < 1 + is_pair && b->is_last; i++) {
            nn_tiny_write_i16(b->out0, n + i, kept[i], c);
            nn_tiny_write_i16(b->out1, n + i, kept[i + 2], c);
        }
    }
}

// Two pixels; the second may be the first once more.
NN_TINY_APART void nn_tiny_conv_pair(const nn_tiny_conv *c, const nn_tiny_pixel *p,
                                     const nn_tiny_pixel *q, nn_tiny_kind kind) {
    union {
        unsigned char bytes[2 * NN_TINY_PATCH];
        int16_t words[1];
    } patch;
    union {
        int32_t narrow[4 * NN_TINY_CHANNELS];
        int64_t wide[2 * NN_TINY_CHANNELS];
    } sums;
    int32_t N = c->window->out_channels, depth = NN_TINY_PATCH / c->bytes, step = N;
    nn_tiny_block b;
    b.out0 = p->row + (ptrdiff_t)p->x * N * c->bytes;
    b.out1 = q->row + (ptrdiff_t)q->x * N * c->bytes;
    b.x = patch.bytes;
    if (kind == NN_TINY_I16) step = NN_TINY_CHANNELS;
    else if (c->K > depth) step = 2 * NN_TINY_CHANNELS;
    for (b.n0 = 0; b.n0 < N; b.n0 += step) {
        b.channels = N - b.n0 < step ? N - b.n0 : step;
        for (b.k0 = 0; b.k0 < c->K; b.k0 += depth) {
            b.n = c->K - b.k0 < depth ? c->K - b.k0 : depth;
            b.is_last = b.k0 + b.n == c->K;
            if (b.n0 == 0 || c->K > depth) {
                nn_tiny_fill_patch(patch.bytes, c, p, b.k0, b.n);
                nn_tiny_fill_patch(patch.bytes + NN_TINY_PATCH, c, q, b.k0, b.n);
            }
            if (kind == NN_TINY_I16) nn_tiny_sum_block_i16(sums.wide, c, &b);
            else if (kind == NN_TINY_W4) nn_tiny_sum_block_w4(sums.narrow, c, &b);
            else nn_tiny_sum_block_i8(sums.narrow, c, &b);
        }
    }
}

static inline void nn_tiny_conv_rows(const nn_tiny_conv *c, int32_t first, int32_t count,
                                     nn_tiny_kind kind) {
    nn_tiny_pixel a, b;
    const int8_t *run = NULL;
    a.y = first;
    a.x = 0;
    a.row = (unsigned char *)nn_tiny_find_out(c->out, first);
    while (a.y < first + count) {
        b = a;
        nn_tiny_next_pixel(&b, c, first + count);
        if (b.y == first + count) b = a;
        if (kind != NN_TINY_I16 && b.y == a.y && b.x == a.x)
            run = (const int8_t *)nn_tiny_find_run(c, &a);
        if (!run) nn_tiny_conv_pair(c, &a, &b, kind);
        else if (kind == NN_TINY_W4) nn_tiny_conv_run_w4(c, &a, run);
        else nn_tiny_conv_run_i8(c, &a, run);
        a = b;
        nn_tiny_next_pixel(&a, c, first + count);
    }
}

static inline void nn_tiny_conv_any(const nn_tiny_out *out, const nn_tiny_in *in,
                                    const nn_tiny_window *window, const nn_tiny_weights *w,
                                    const int8_t *factors, const nn_tiny_target *to, int32_t first,
                                    int32_t count, nn_tiny_kind kind) {
    nn_tiny_conv c;
    c.out = out;
    c.in = in;
    c.window = window;
    c.w = w;
    c.factors = factors;
    c.to = to;
    c.bytes = kind == NN_TINY_I16 ? 2 : 1;
    c.K = window->height * window->width * window->in_channels;
    nn_tiny_conv_rows(&c, first, count, kind);
}

static inline void nn_tiny_conv2d_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                          const nn_tiny_window *window, const nn_tiny_weights *w,
                                          const nn_tiny_target *to, int32_t first, int32_t count) {
    nn_tiny_conv_any(out, in, window, w, NULL, to, first, count, NN_TINY_I8);
}

static inline void nn_tiny_conv2d_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                           const nn_tiny_window *window, const nn_tiny_weights *w,
                                           const nn_tiny_target *to, int32_t first, int32_t count) {
    nn_tiny_conv_any(out, in, window, w, NULL, to, first, count, NN_TINY_I16);
}

static inline void nn_tiny_conv2d_w4_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                          const nn_tiny_window *window, const nn_tiny_weights_w4 *w,
                                          const nn_tiny_target *to, int32_t first, int32_t count) {
    nn_tiny_conv_any(out, in, window, &w->packed, w->factors, to, first, count, NN_TINY_W4);
}

static inline void nn_tiny_conv2d_i8(int8_t *out,       // (out_height, out_width, N)
                                     const int8_t *in,  // (in_height, in_width, C)
                                     const nn_tiny_window *window, const nn_tiny_weights *w,
                                     const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 1);
    nn_tiny_in from = nn_tiny_image_in(in, window, 1);
    nn_tiny_conv2d_i8_rows(&all, &from, window, w, to, 0, window->out_height);
}

static inline void nn_tiny_conv2d_i16(int16_t *out, const int16_t *in, const nn_tiny_window *window,
                                      const nn_tiny_weights *w, const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 2);
    nn_tiny_in from = nn_tiny_image_in(in, window, 2);
    nn_tiny_conv2d_i16_rows(&all, &from, window, w, to, 0, window->out_height);
}

static inline void nn_tiny_conv2d_w4(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                     const nn_tiny_weights_w4 *w, const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 1);
    nn_tiny_in from = nn_tiny_image_in(in, window, 1);
    nn_tiny_conv2d_w4_rows(&all, &from, window, w, to, 0, window->out_height);
}

// -- linear: conv2d of an image that has one pixel in a row --

static inline nn_tiny_window nn_tiny_linear_window(int32_t R, int32_t K, int32_t N) {
    nn_tiny_window w;
    w.in_height = w.out_height = R;
    w.in_width = w.out_width = 1;
    w.in_channels = K;
    w.out_channels = N;
    w.height = w.width = w.stride_y = w.stride_x = w.dilation_y = w.dilation_x = 1;
    w.pad_top = w.pad_left = 0;
    return w;
}

// Rows of a matrix: in (R, K), out (R, N).
static inline void nn_tiny_linear_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                          const nn_tiny_weights *w, const nn_tiny_target *to,
                                          int32_t K, int32_t N, int32_t first, int32_t count) {
    nn_tiny_window window = nn_tiny_linear_window(first + count, K, N);
    nn_tiny_conv2d_i8_rows(out, in, &window, w, to, first, count);
}

static inline void nn_tiny_linear_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                           const nn_tiny_weights *w, const nn_tiny_target *to,
                                           int32_t K, int32_t N, int32_t first, int32_t count) {
    nn_tiny_window window = nn_tiny_linear_window(first + count, K, N);
    nn_tiny_conv2d_i16_rows(out, in, &window, w, to, first, count);
}

static inline void nn_tiny_linear_w4_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                          const nn_tiny_weights_w4 *w, const nn_tiny_target *to,
                                          int32_t K, int32_t N, int32_t first, int32_t count) {
    nn_tiny_window window = nn_tiny_linear_window(first + count, K, N);
    nn_tiny_conv2d_w4_rows(out, in, &window, w, to, first, count);
}

static inline void nn_tiny_linear_i8(int8_t *out,       // (R, N)
                                     const int8_t *in,  // (R, K)
                                     const nn_tiny_weights *w, const nn_tiny_target *to, int32_t R,
                                     int32_t K, int32_t N) {
    nn_tiny_out all = nn_tiny_whole_out(out, N);
    nn_tiny_in from = nn_tiny_whole_in(in, K);
    nn_tiny_linear_i8_rows(&all, &from, w, to, K, N, 0, R);
}

static inline void nn_tiny_linear_i16(int16_t *out, const int16_t *in, const nn_tiny_weights *w,
                                      const nn_tiny_target *to, int32_t R, int32_t K, int32_t N) {
    nn_tiny_out all = nn_tiny_whole_out(out, 2 * N);
    nn_tiny_in from = nn_tiny_whole_in(in, 2 * K);
    nn_tiny_linear_i16_rows(&all, &from, w, to, K, N, 0, R);
}

static inline void nn_tiny_linear_w4(int8_t *out, const int8_t *in, const nn_tiny_weights_w4 *w,
                                     const nn_tiny_target *to, int32_t R, int32_t K, int32_t N) {
    nn_tiny_out all = nn_tiny_whole_out(out, N);
    nn_tiny_in from = nn_tiny_whole_in(in, K);
    nn_tiny_linear_w4_rows(&all, &from, w, to, K, N, 0, R);
}

// -- depthwise --

// The taps of a window that lie inside of the image, for channels side by side.
typedef struct nn_tiny_taps {
    nn_tiny_cursor cursor;  // the first row of them
    int32_t rows, columns;  // so many
    int32_t x, x_step;      // elements: where they begin in a row, and from one to the next
    int32_t first_row;      // of the window
    int32_t weight, weight_row, weight_step;  // elements, the same of depthwise weights
} nn_tiny_taps;

// For row y of the output.
static inline nn_tiny_taps nn_tiny_find_taps(const nn_tiny_in *in, const nn_tiny_window *w,
                                             int32_t y) {
    nn_tiny_span rows = nn_tiny_rows_of(w, y);
    nn_tiny_taps taps;
    taps.rows = rows.end - rows.first;
    if (!taps.rows) rows.first = rows.at = 0;
    taps.cursor = nn_tiny_cursor_at(in, rows.at + rows.first * w->dilation_y, w->dilation_y);
    taps.first_row = rows.first;
    taps.columns = taps.x = taps.weight = 0;
    taps.x_step = w->dilation_x * w->in_channels;
    taps.weight_step = w->out_channels;
    taps.weight_row = w->width * w->out_channels;
    return taps;
}

// For pixel x of it.
static inline void nn_tiny_move_taps(nn_tiny_taps *taps, const nn_tiny_window *w, int32_t x) {
    nn_tiny_span columns = nn_tiny_columns_of(w, x);
    taps->columns = columns.end - columns.first;
    taps->x = (columns.at + columns.first * w->dilation_x) * w->in_channels;
    taps->weight = taps->first_row * taps->weight_row + columns.first * taps->weight_step;
}

// The sum of one output channel n.
static inline int64_t nn_tiny_sum_channel(const nn_tiny_taps *t, const int8_t *weights,
                                          int32_t channel, int32_t n, int32_t offset,
                                          int32_t bytes) {
    nn_tiny_cursor cursor = t->cursor;
    const int8_t *row = weights + t->weight + n;
    int64_t sum = 0;
    for (int32_t i = 0; i < t->rows; i++, row += t->weight_row) {
        const unsigned char *at = nn_tiny_next_row(&cursor);
        const int8_t *x8 = (const int8_t *)at + t->x + channel, *w = row;
        const int16_t *x16 = (const int16_t *)(const void *)at + t->x + channel;
        int32_t part = 0, j = t->columns;
        if (bytes == 1)
            for (; j > 0; j--, x8 += t->x_step, w += t->weight_step) part += (*x8 + offset) * *w;
        for (; j > 0; j--, x16 += t->x_step, w += t->weight_step) sum += *x16 * *w;
        sum += part;
    }
    return sum;
}

// sums (4) += the products of a tap with four channels of int8. Weights of 2 bytes stand as those
// of channels 0, 2, 1, 3.
NN_TINY_INLINE void nn_tiny_multiply_tap(int32_t *sums, const int8_t *x, const unsigned char *w,
                                         int32_t offset, int32_t bytes) {
    const int8_t *w8 = (const int8_t *)w;
#ifdef NN_TINY_DSP
    uint32_t offsets = nn_tiny_offsets(offset), a = nn_tiny_load(x), b = nn_tiny_load(w8);
    uint32_t a_even = nn_tiny_even(offsets, a), b_even = b;
    if (bytes == 1) b_even = nn_tiny_even_weights(b);
    a = nn_tiny_odd(offsets, a);
    b = bytes == 1 ? nn_tiny_odd_weights(b) : nn_tiny_load(w8 + 4);
    sums[0] = nn_tiny_add_lower(a_even, b_even, sums[0]);
    sums[2] = nn_tiny_add_upper(a_even, b_even, sums[2]);
    sums[1] = nn_tiny_add_lower(a, b, sums[1]);
    sums[3] = nn_tiny_add_upper(a, b, sums[3]);
#else
    const int16_t *w16 = (const int16_t *)(const void *)w;
    sums[0] += (x[0] + offset) * (bytes == 1 ? w8[0] : w16[0]);
    sums[1] += (x[1] + offset) * (bytes == 1 ? w8[1] : w16[2]);
    sums[2] += (x[2] + offset) * (bytes == 1 ? w8[2] : w16[1]);
    sums[3] += (x[3] + offset) * (bytes == 1 ? w8[3] : w16[3]);
#endif
}

// sums (4) += those of output channels n .. n + 3, of int8, each of one input channel.
NN_TINY_INLINE void nn_tiny_sum_four(int32_t *sums, const nn_tiny_taps *t, const void *weights,
                                     int32_t n, int32_t offset, int32_t bytes) {
    nn_tiny_cursor cursor = t->cursor;
    int32_t s[4];
    const unsigned char *row = (const unsigned char *)weights + t->weight * bytes;
    NN_TINY_COPY(s, sums, sizeof s);
    for (int32_t i = t->rows; i > 0; i--, row += t->weight_row * bytes) {
        const int8_t *x = (const int8_t *)nn_tiny_next_row(&cursor) + t->x + n;
        const unsigned char *w = row;
        for (int32_t j = t->columns; j > 0; j--, x += t->x_step, w += t->weight_step * bytes)
            nn_tiny_multiply_tap(s, x, w, offset, bytes);
    }
    NN_TINY_COPY(sums, s, sizeof s);
}

// Channels n .. n + 3 of a row of the output, each of one input channel. bytes: of a weight.
NN_TINY_INLINE void nn_tiny_depthwise_four(int8_t *out, nn_tiny_taps *taps,
                                           const nn_tiny_window *window, const nn_tiny_weights *w,
                                           const void *weights, const nn_tiny_target *to, int32_t n,
                                           int32_t bytes) {
    int32_t bias[4], multiplier[4], shift[4], i;
    for (i = 0; i < 4; i++) {
        int32_t at = w->per_channel ? n + i : 0;
        bias[i] = nn_tiny_bias(w, n + i);
        multiplier[i] = w->multipliers[at];
        shift[i] = w->shifts[at];
    }
    out += n;
    for (int32_t x = 0; x < window->out_width; x++, out += window->out_channels) {
        int32_t sums[4];
        NN_TINY_COPY(sums, bias, sizeof sums);
        nn_tiny_move_taps(taps, window, x);
        nn_tiny_sum_four(sums, taps, weights, n, -to->in_zero, bytes);
        for (i = 0; i < 4; i++)
            out[i] = (int8_t)nn_tiny_finish(sums[i], multiplier[i], shift[i], to);
    }
}

static inline void nn_tiny_depthwise_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                             const nn_tiny_window *window, const nn_tiny_weights *w,
                                             const nn_tiny_target *to, int32_t first,
                                             int32_t count) {
    int32_t N = window->out_channels, m = N / window->in_channels;
    int32_t fours = m == 1 ? N / 4 * 4 : 0;  // so many channels four at a time
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_taps taps = nn_tiny_find_taps(in, window, y);
        int8_t *row = (int8_t *)nn_tiny_find_out(out, y);
        for (int32_t n = 0; n < fours; n += 4)
            nn_tiny_depthwise_four(row, &taps, window, w, w->weights + n, to, n, 1);
        for (int32_t x = 0; x < window->out_width && fours < N; x++, row += N) {
            nn_tiny_move_taps(&taps, window, x);
            for (int32_t n = fours; n < N; n++) {
                int32_t sum =
                    (int32_t)nn_tiny_sum_channel(&taps, w->weights, n / m, n, -to->in_zero, 1);
                row[n] = nn_tiny_finish_i8(sum + nn_tiny_bias(w, n), n, w, to);
            }
        }
    }
}

static inline void nn_tiny_depthwise_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                              const nn_tiny_window *window,
                                              const nn_tiny_weights *w, const nn_tiny_target *to,
                                              int32_t first, int32_t count) {
    int32_t N = window->out_channels, m = N / window->in_channels;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_taps taps = nn_tiny_find_taps(in, window, y);
        int16_t *row = (int16_t *)nn_tiny_find_out(out, y);
        for (int32_t x = 0; x < window->out_width; x++, row += N) {
            nn_tiny_move_taps(&taps, window, x);
            for (int32_t n = 0; n < N; n++) {
                int32_t at = w->per_channel ? n : 0;
                int64_t sum = nn_tiny_sum_channel(&taps, w->weights, n / m, n, 0, 2);
                sum += nn_tiny_bias(w, n);
                row[n] = (int16_t)nn_tiny_finish_wide(sum, w->multipliers[at], w->shifts[at], to);
            }
        }
    }
}

// Weights of 4 bits that are read often, each times its factor: to[0], to[side] ..
static inline void nn_tiny_unpack(int16_t *to, int32_t side, const nn_tiny_weights_w4 *w, int32_t K,
                                  int32_t n) {
    const int8_t *from = w->packed.weights + (ptrdiff_t)n * ((K + 1) / 2);
    const int8_t *factors = w->factors + (ptrdiff_t)n * nn_tiny_count_groups(K);
    int32_t k = 0, i;
    for (; k + 8 <= K; k += 8, from += 4, to += 8 * side)
        for (i = 0; i < 4; i++) {
            to[i * side] = (int16_t)(nn_tiny_low(from[i]) * factors[k / NN_TINY_GROUP]);
            to[(i + 4) * side] = (int16_t)((from[i] >> 4) * factors[k / NN_TINY_GROUP]);
        }
    for (i = 0; k < K; k++, i++)
        to[i * side] = (int16_t)(nn_tiny_nibble(from, i) * factors[k / NN_TINY_GROUP]);
}

// Channel n of a row of the output. weights: unpacked; NULL = they are too many for that.
static inline void nn_tiny_depthwise_one(int8_t *out, nn_tiny_taps *taps,
                                         const nn_tiny_window *window, const nn_tiny_weights_w4 *w,
                                         const int16_t *weights, const nn_tiny_target *to,
                                         int32_t n) {
    int32_t N = window->out_channels, channel = n / (N / window->in_channels);
    int32_t K = window->height * window->width;
    const int8_t *packed = w->packed.weights + (ptrdiff_t)n * ((K + 1) / 2);
    const int8_t *factors = w->factors + (ptrdiff_t)n * nn_tiny_count_groups(K);
    for (int32_t x = 0; x < window->out_width; x++, out += N) {
        nn_tiny_cursor cursor;
        int32_t sum = nn_tiny_bias(&w->packed, n);
        nn_tiny_move_taps(taps, window, x);
        cursor = taps->cursor;
        for (int32_t i = 0; i < taps->rows; i++) {
            const int8_t *at = (const int8_t *)nn_tiny_next_row(&cursor) + taps->x + channel;
            int32_t k = taps->weight + i * taps->weight_row, end = k + taps->columns;
            for (; k < end; k++, at += taps->x_step)
                sum += (*at - to->in_zero) *
                       (weights ? weights[k] : nn_tiny_find_weight(packed, factors, K, k));
        }
        out[n] = nn_tiny_finish_i8(sum, n, &w->packed, to);
    }
}

static inline void nn_tiny_depthwise_w4_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                             const nn_tiny_window *window,
                                             const nn_tiny_weights_w4 *w, const nn_tiny_target *to,
                                             int32_t first, int32_t count) {
    static const int8_t places[4] = {0, 2, 1, 3};
    int16_t weights[NN_TINY_TAPS];
    int32_t N = window->out_channels, K = window->height * window->width, n, side;
    int32_t fours = N == window->in_channels && 4 * K <= NN_TINY_TAPS ? N / 4 * 4 : 0;
    for (n = 0; n < N; n += side) {
        side = n < fours ? 4 : 1;  // so many channels at a time
        for (int32_t i = 0; i < side && side * K <= NN_TINY_TAPS; i++)
            nn_tiny_unpack(weights + places[i], side, w, K, n + i);
        for (int32_t y = first; y < first + count; y++) {
            nn_tiny_taps taps = nn_tiny_find_taps(in, window, y);
            int8_t *row = (int8_t *)nn_tiny_find_out(out, y);
            taps.weight_step = side;
            taps.weight_row = side * window->width;
            if (side == 4)
                nn_tiny_depthwise_four(row, &taps, window, &w->packed, weights, to, n, 2);
            else
                nn_tiny_depthwise_one(row, &taps, window, w, K <= NN_TINY_TAPS ? weights : NULL, to,
                                      n);
        }
    }
}

static inline void nn_tiny_depthwise_i8(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                        const nn_tiny_weights *w, const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 1);
    nn_tiny_in from = nn_tiny_image_in(in, window, 1);
    nn_tiny_depthwise_i8_rows(&all, &from, window, w, to, 0, window->out_height);
}

static inline void nn_tiny_depthwise_i16(int16_t *out, const int16_t *in,
                                         const nn_tiny_window *window, const nn_tiny_weights *w,
                                         const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 2);
    nn_tiny_in from = nn_tiny_image_in(in, window, 2);
    nn_tiny_depthwise_i16_rows(&all, &from, window, w, to, 0, window->out_height);
}

static inline void nn_tiny_depthwise_w4(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                        const nn_tiny_weights_w4 *w, const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 1);
    nn_tiny_in from = nn_tiny_image_in(in, window, 1);
    nn_tiny_depthwise_w4_rows(&all, &from, window, w, to, 0, window->out_height);
}

// -- pools: in and out have one quantisation, and as many channels; `to` gives bounds alone --

typedef enum nn_tiny_pool { NN_TINY_MEAN, NN_TINY_MOST } nn_tiny_pool;

static inline int32_t nn_tiny_element(const unsigned char *at, ptrdiff_t i, int32_t bytes) {
    if (bytes == 1) return ((const int8_t *)at)[i];
    return ((const int16_t *)(const void *)at)[i];
}

static inline void nn_tiny_put(unsigned char *at, ptrdiff_t i, int32_t value, int32_t bytes) {
    if (bytes == 1) ((int8_t *)at)[i] = (int8_t)value;
    else ((int16_t *)(void *)at)[i] = (int16_t)value;
}

static inline int32_t nn_tiny_sum_taps(const nn_tiny_taps *t, int32_t c, int32_t bytes) {
    nn_tiny_cursor cursor = t->cursor;
    int32_t sum = 0;
    for (int32_t i = 0; i < t->rows; i++) {
        const unsigned char *row = nn_tiny_next_row(&cursor);
        ptrdiff_t at = t->x + c;
        for (int32_t j = t->columns; j > 0; j--, at += t->x_step)
            sum += nn_tiny_element(row, at, bytes);
    }
    return sum;
}

static inline int32_t nn_tiny_find_most(const nn_tiny_taps *t, int32_t c, int32_t bytes) {
    nn_tiny_cursor cursor = t->cursor;
    int32_t most = INT32_MIN;
    for (int32_t i = 0; i < t->rows; i++) {
        const unsigned char *row = nn_tiny_next_row(&cursor);
        ptrdiff_t at = t->x + c;
        for (int32_t j = t->columns; j > 0; j--, at += t->x_step) {
            int32_t x = nn_tiny_element(row, at, bytes);
            most = x > most ? x : most;
        }
    }
    return most;
}

// A mean, halves away from zero.
static inline int32_t nn_tiny_divide(int32_t sum, int32_t size) {
    return (sum > 0 ? sum + size / 2 : sum - size / 2) / size;
}

#ifdef NN_TINY_DSP
// Four channels of int8. `size` taps: at least 1.
static inline void nn_tiny_average_four(int8_t *out, const nn_tiny_taps *t, int32_t c,
                                        const nn_tiny_target *to) {
    nn_tiny_cursor cursor = t->cursor;
    int32_t sums[4] = {0, 0, 0, 0}, size = t->rows * t->columns, i, j, part;
    for (i = t->rows; i > 0; i--) {
        const int8_t *x = (const int8_t *)nn_tiny_next_row(&cursor) + t->x + c;
        for (j = t->columns; j > 0; j -= part) {
            uint32_t even = 0, odd = 0;  // two sums of 16 bits each: 128 * 255 fits
            part = j < 255 ? j : 255;
            for (int32_t k = part; k > 0; k--, x += t->x_step) {
                uint32_t word = nn_tiny_load(x);
                even = nn_tiny_even(even, word);
                odd = nn_tiny_odd(odd, word);
            }
            sums[0] += (int16_t)(even & 0xFFFFu);
            sums[1] += (int16_t)(odd & 0xFFFFu);
            sums[2] += (int16_t)(even >> 16);
            sums[3] += (int16_t)(odd >> 16);
        }
    }
    for (i = 0; i < 4; i++)
        out[c + i] = (int8_t)nn_tiny_clamp(nn_tiny_divide(sums[i], size), to->low, to->high);
}

static inline void nn_tiny_most_of_four(int8_t *out, const nn_tiny_taps *t, int32_t c,
                                        const nn_tiny_target *to) {
    nn_tiny_cursor cursor = t->cursor;
    uint32_t most = 0x80808080u;
    int8_t bytes[4];
    for (int32_t i = t->rows; i > 0; i--) {
        const int8_t *x = (const int8_t *)nn_tiny_next_row(&cursor) + t->x + c;
        for (int32_t j = t->columns; j > 0; j--, x += t->x_step)
            most = nn_tiny_larger_bytes(most, nn_tiny_load(x));
    }
    NN_TINY_COPY(bytes, &most, 4);
    for (int32_t i = 0; i < 4; i++) out[c + i] = (int8_t)nn_tiny_clamp(bytes[i], to->low, to->high);
}
#endif

// One pixel: the mean, or the largest; no tap inside: 0.
static inline void nn_tiny_pool_pixel(unsigned char *out, const nn_tiny_taps *t, int32_t C,
                                      const nn_tiny_target *to, nn_tiny_pool kind, int32_t bytes) {
    int32_t size = t->rows * t->columns, fours = 0, c, value;
#ifdef NN_TINY_DSP
    // Counted before both loops: with `c < C` behind a loop that ends at `c + 4 > C`, and C known to be
    // a multiple of 4, gcc 12 counts the iterations of the other before it drops it, from C to C, and
    // warns of undefined behaviour in code that never runs.
    fours = bytes == 1 && size > 0 ? C & ~3 : 0;
    for (c = 0; c < fours; c += 4) {
        if (kind == NN_TINY_MEAN) nn_tiny_average_four((int8_t *)out, t, c, to);
        else nn_tiny_most_of_four((int8_t *)out, t, c, to);
    }
#endif
    for (c = fours; c < C; c++) {
        if (!size) value = 0;
        else if (kind == NN_TINY_MOST) value = nn_tiny_find_most(t, c, bytes);
        else value = nn_tiny_divide(nn_tiny_sum_taps(t, c, bytes), size);
        nn_tiny_put(out, c, nn_tiny_clamp(value, to->low, to->high), bytes);
    }
}

static inline void nn_tiny_pool_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                     const nn_tiny_window *window, const nn_tiny_target *to,
                                     int32_t first, int32_t count, nn_tiny_pool kind,
                                     int32_t bytes) {
    int32_t C = window->in_channels;
    for (int32_t y = first; y < first + count; y++) {
        nn_tiny_taps taps = nn_tiny_find_taps(in, window, y);
        unsigned char *row = (unsigned char *)nn_tiny_find_out(out, y);
        for (int32_t x = 0; x < window->out_width; x++, row += C * bytes) {
            nn_tiny_move_taps(&taps, window, x);
            nn_tiny_pool_pixel(row, &taps, C, to, kind, bytes);
        }
    }
}

static inline void nn_tiny_avgpool_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                           const nn_tiny_window *window, const nn_tiny_target *to,
                                           int32_t first, int32_t count) {
    nn_tiny_pool_rows(out, in, window, to, first, count, NN_TINY_MEAN, 1);
}

static inline void nn_tiny_avgpool_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                            const nn_tiny_window *window, const nn_tiny_target *to,
                                            int32_t first, int32_t count) {
    nn_tiny_pool_rows(out, in, window, to, first, count, NN_TINY_MEAN, 2);
}

static inline void nn_tiny_maxpool_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                           const nn_tiny_window *window, const nn_tiny_target *to,
                                           int32_t first, int32_t count) {
    nn_tiny_pool_rows(out, in, window, to, first, count, NN_TINY_MOST, 1);
}

static inline void nn_tiny_maxpool_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                            const nn_tiny_window *window, const nn_tiny_target *to,
                                            int32_t first, int32_t count) {
    nn_tiny_pool_rows(out, in, window, to, first, count, NN_TINY_MOST, 2);
}

static inline void nn_tiny_avgpool_i8(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                      const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 1);
    nn_tiny_in from = nn_tiny_image_in(in, window, 1);
    nn_tiny_avgpool_i8_rows(&all, &from, window, to, 0, window->out_height);
}

static inline void nn_tiny_avgpool_i16(int16_t *out, const int16_t *in,
                                       const nn_tiny_window *window, const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 2);
    nn_tiny_in from = nn_tiny_image_in(in, window, 2);
    nn_tiny_avgpool_i16_rows(&all, &from, window, to, 0, window->out_height);
}

static inline void nn_tiny_maxpool_i8(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                      const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 1);
    nn_tiny_in from = nn_tiny_image_in(in, window, 1);
    nn_tiny_maxpool_i8_rows(&all, &from, window, to, 0, window->out_height);
}

static inline void nn_tiny_maxpool_i16(int16_t *out, const int16_t *in,
                                       const nn_tiny_window *window, const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 2);
    nn_tiny_in from = nn_tiny_image_in(in, window, 2);
    nn_tiny_maxpool_i16_rows(&all, &from, window, to, 0, window->out_height);
}

// The mean of each channel of an image (H, W, C), as MEAN of TensorFlow Lite has it: the sum of
// x - in_zero times one factor, rounded twice. With (scale of in) / (scale of out) = m 2^(e - 31),
// and s the whole part of log2(H W), its bits come from
//     multiplier = (m 2^s) / (H W), rounded down    shift = e - s
// It reads all rows for the one that it writes. (An AVERAGE_POOL of the whole image is avgpool.)
static inline void nn_tiny_gavgpool_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t H,
                                         int32_t W, int32_t C, int32_t multiplier, int32_t shift,
                                         const nn_tiny_target *to, int32_t first, int32_t count,
                                         int32_t bytes) {
    unsigned char *row = (unsigned char *)nn_tiny_find_out(out, 0);
    nn_tiny_taps taps;
    (void)first;  // 0
    if (count <= 0) return;
    NN_TINY_FILL(&taps, 0, sizeof taps);
    taps.cursor = nn_tiny_cursor_at(in, 0, 1);
    taps.rows = H;
    taps.columns = W;
    taps.x_step = C;
    for (int32_t c = 0; c < C; c++) {
        int32_t sum = nn_tiny_sum_taps(&taps, c, bytes) - H * W * to->in_zero;
        nn_tiny_put(row, c, nn_tiny_finish(sum, multiplier, shift, to), bytes);
    }
}

static inline void nn_tiny_gavgpool_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t H,
                                            int32_t W, int32_t C, int32_t multiplier, int32_t shift,
                                            const nn_tiny_target *to, int32_t first,
                                            int32_t count) {
    nn_tiny_gavgpool_rows(out, in, H, W, C, multiplier, shift, to, first, count, 1);
}

// H W <= 65536.
static inline void nn_tiny_gavgpool_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                             int32_t H, int32_t W, int32_t C, int32_t multiplier,
                                             int32_t shift, const nn_tiny_target *to, int32_t first,
                                             int32_t count) {
    nn_tiny_gavgpool_rows(out, in, H, W, C, multiplier, shift, to, first, count, 2);
}

static inline void nn_tiny_gavgpool_i8(int8_t *out,       // (C)
                                       const int8_t *in,  // (pixels, C)
                                       int32_t pixels, int32_t C, int32_t multiplier, int32_t shift,
                                       const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_whole_out(out, C);
    nn_tiny_in from = nn_tiny_whole_in(in, pixels * C);
    nn_tiny_gavgpool_rows(&all, &from, 1, pixels, C, multiplier, shift, to, 0, 1, 1);
}

static inline void nn_tiny_gavgpool_i16(int16_t *out, const int16_t *in, int32_t pixels, int32_t C,
                                        int32_t multiplier, int32_t shift,
                                        const nn_tiny_target *to) {
    nn_tiny_out all = nn_tiny_whole_out(out, 2 * C);
    nn_tiny_in from = nn_tiny_whole_in(in, 2 * pixels * C);
    nn_tiny_gavgpool_rows(&all, &from, 1, pixels, C, multiplier, shift, to, 0, 1, 2);
}

// -- elementwise: n elements, or rows of n elements --

// Two numbers of different scales. With twice = 2 max(scale of a, scale of b) the factors are
//     a: (scale of a) / twice    b: (scale of b) / twice    out: twice / (2^20 (scale of out))
// (i16: 2^15 instead of 2^20), each as multiplier 2^(shift - 31). mul reads that of out alone:
//     (scale of a) (scale of b) / (scale of out)
// Where b is one pixel for all of a, there is a call for each pixel.
typedef struct nn_tiny_pair {
    int32_t a_zero, a_multiplier, a_shift;
    int32_t b_zero, b_multiplier, b_shift;
    int32_t multiplier, shift;
    int32_t zero, low, high;  // of the output
} nn_tiny_pair;

static inline int32_t nn_tiny_finish_pair(int32_t value, const nn_tiny_pair *p) {
    value = nn_int_scale(value, p->multiplier, p->shift);
    return nn_tiny_clamp(value, p->low - p->zero, p->high - p->zero) + p->zero;
}

static inline int32_t nn_tiny_add_two(int32_t a, int32_t b, int32_t steps, const nn_tiny_pair *p) {
    a = nn_int_scale((a - p->a_zero) * steps, p->a_multiplier, p->a_shift);
    b = nn_int_scale((b - p->b_zero) * steps, p->b_multiplier, p->b_shift);
    return nn_tiny_finish_pair(a + b, p);
}

static inline void nn_tiny_add_i8(int8_t *out, const int8_t *a, const int8_t *b, int32_t n,
                                  const nn_tiny_pair *p) {
    for (int32_t i = 0; i < n; i++) out[i] = (int8_t)nn_tiny_add_two(a[i], b[i], 1 << 20, p);
}

static inline void nn_tiny_add_i16(int16_t *out, const int16_t *a, const int16_t *b, int32_t n,
                                   const nn_tiny_pair *p) {
    for (int32_t i = 0; i < n; i++) out[i] = (int16_t)nn_tiny_add_two(a[i], b[i], 1 << 15, p);
}

static inline void nn_tiny_mul_i8(int8_t *out, const int8_t *a, const int8_t *b, int32_t n,
                                  const nn_tiny_pair *p) {
    for (int32_t i = 0; i < n; i++)
        out[i] = (int8_t)nn_tiny_finish_pair((a[i] - p->a_zero) * (b[i] - p->b_zero), p);
}

static inline void nn_tiny_mul_i16(int16_t *out, const int16_t *a, const int16_t *b, int32_t n,
                                   const nn_tiny_pair *p) {
    for (int32_t i = 0; i < n; i++) out[i] = (int16_t)nn_tiny_finish_pair(a[i] * b[i], p);
}

// Whether a factor changes nothing: it is 1, and the zero points are the same.
static inline int nn_tiny_is_same(int32_t multiplier, int32_t shift, const nn_tiny_target *to,
                                  int32_t low, int32_t high) {
    return multiplier == 1 << 30 && shift == 1 && to->in_zero == to->zero && to->low <= low &&
           to->high >= high;
}

// To another scale: the factor (scale of in) / (scale of out) is multiplier 2^(shift - 31). Bounds
// make a relu or relu6 of it.
static inline void nn_tiny_scale_i8(int8_t *out, const int8_t *in, int32_t n, int32_t multiplier,
                                    int32_t shift, const nn_tiny_target *to) {
    if (nn_tiny_is_same(multiplier, shift, to, -128, 127)) {
        if (out != in) NN_TINY_COPY(out, in, (size_t)n);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        out[i] = (int8_t)nn_tiny_finish(in[i] - to->in_zero, multiplier, shift, to);
}

static inline void nn_tiny_scale_i16(int16_t *out, const int16_t *in, int32_t n, int32_t multiplier,
                                     int32_t shift, const nn_tiny_target *to) {
    if (nn_tiny_is_same(multiplier, shift, to, -32768, 32767)) {
        if (out != in) NN_TINY_COPY(out, in, (size_t)n * sizeof *out);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        out[i] = (int16_t)nn_tiny_finish(in[i] - to->in_zero, multiplier, shift, to);
}

// One input of a concat: in (outer, inner) to elements at .. at + inner - 1 of out (outer,
// out_inner), with a factor as above. Along channels outer is the number of pixels; along rows it
// is 1.
static inline void nn_tiny_concat_i8(int8_t *out, const int8_t *in, int32_t outer, int32_t inner,
                                     int32_t out_inner, int32_t at, int32_t multiplier,
                                     int32_t shift, const nn_tiny_target *to) {
    for (int32_t i = 0; i < outer; i++)
        nn_tiny_scale_i8(out + (ptrdiff_t)i * out_inner + at, in + (ptrdiff_t)i * inner, inner,
                         multiplier, shift, to);
}

static inline void nn_tiny_concat_i16(int16_t *out, const int16_t *in, int32_t outer, int32_t inner,
                                      int32_t out_inner, int32_t at, int32_t multiplier,
                                      int32_t shift, const nn_tiny_target *to) {
    for (int32_t i = 0; i < outer; i++)
        nn_tiny_scale_i16(out + (ptrdiff_t)i * out_inner + at, in + (ptrdiff_t)i * inner, inner,
                          multiplier, shift, to);
}

// Any function of one int8 (sigmoid, tanh, hardswish): the entry of q stands at q + 128; see
// nn_int8_fill_table.
static inline void nn_tiny_lookup_i8(int8_t *out, const int8_t *in, int32_t n,
                                     const int8_t *table) {  // [256]
    nn_int8_lookup_forward(out, in, table, (size_t)n);
}

// Between entries of a table, those of -32768, -32640, .., 32640, 32768: lines.
static inline int32_t nn_tiny_find_between(int32_t x, const int16_t *table) {
    const int16_t *at = table + 256 + (x >> 7);
    return at[0] + (((at[1] - at[0]) * (x & 127) + 64) >> 7);
}

static inline void nn_tiny_lookup_i16(int16_t *out, const int16_t *in, int32_t n,
                                      const int16_t *table) {  // [513]
    for (int32_t i = 0; i < n; i++) out[i] = (int16_t)nn_tiny_find_between(in[i], table);
}

// sigmoid and tanh of int16 to the scale 1 / 32768, with the bits of TensorFlow Lite (and, where
// the scale is a power of two, of CMSIS-NN): lines between the entries of a table of sigmoid that
// all nodes share, nn_int16_fill_sigmoid. The factor of the input is
//     (scale of in) 3 2^12 = multiplier 2^-shift
// where TensorFlow Lite takes a multiplier 3, shift 0 for a scale of 2^-12, and 6 for the tanh of
// 2^-11, both to one part in 1443; else one of 2^14 .. 2^15 - 1, rounded down. They are within two
// steps of the function, tanh within four.
typedef struct nn_tiny_curve {
    int32_t multiplier, shift;  // 3 .. 32767; 0 .. 31
} nn_tiny_curve;

static inline int32_t nn_tiny_find_curve(int32_t x, const nn_tiny_curve *p) {
    return (x * p->multiplier + (int32_t)((1u << p->shift) >> 1)) >> p->shift;
}

// 2^(16 + bits) sigmoid of the size of x / (24 2^bits). most: what stands behind the table.
static inline int32_t nn_tiny_find_sigmoid(int32_t x, const uint16_t *table, int32_t bits,
                                           int32_t most) {
    int32_t size = x < 0 ? -x : x, at = size >> bits, part = size & ((1 << bits) - 1);
    if (at >= 255) return most << bits;
    return (table[at] << bits) + part * (table[at + 1] - table[at]);
}

static inline void nn_tiny_sigmoid_i16(int16_t *out, const int16_t *in, int32_t n,
                                       const nn_tiny_curve *p, const uint16_t *table) {  // [256]
    for (int32_t i = 0; i < n; i++) {
        int32_t x = nn_tiny_find_curve(in[i], p), y = nn_tiny_find_sigmoid(x, table, 9, 65534);
        out[i] = (int16_t)((x < 0 ? (1 << 25) + 511 - y : y + 512) >> 10);
    }
}

// 2 sigmoid(2 x) - 1.
static inline void nn_tiny_tanh_i16(int16_t *out, const int16_t *in, int32_t n,
                                    const nn_tiny_curve *p, const uint16_t *table) {  // [256]
    for (int32_t i = 0; i < n; i++) {
        int32_t x = nn_tiny_find_curve(in[i], p);
        int32_t y = nn_tiny_find_sigmoid(x, table, 8, 65535) - (1 << 23);
        out[i] = (int16_t)((x < 0 ? 127 - y : y + 128) >> 8);
    }
}

// hardswish of int16: x times its share, (x + 3) / 6 within 0 .. 1. No table: lines between entries
// would miss the bends at -3 and 3. Nobody else's bits (TensorFlow Lite and CMSIS-NN have none of
// int16): the nearest integer, but for halves. The factors, each as multiplier 2^(shift - 31), are
//     share: (scale of in) 2^15 / 3    out: (scale of in) / (2^14 (scale of out))
typedef struct nn_tiny_hardswish {
    int32_t share_multiplier, share_shift;
    int32_t multiplier, shift;
} nn_tiny_hardswish;

static inline void nn_tiny_hardswish_i16(int16_t *out, const int16_t *in, int32_t n,
                                         const nn_tiny_hardswish *p) {
    const int32_t half = 1 << 29;
    for (int32_t i = 0; i < n; i++) {
        int32_t x = in[i] * (1 << 14), y = nn_int_scale(x, p->share_multiplier, p->share_shift);
        y = nn_int_multiply(2 * x, nn_tiny_clamp(y, -half, half) + half);
        out[i] = (int16_t)nn_tiny_clamp(nn_int_scale(y, p->multiplier, p->shift), -32768, 32767);
    }
}

// -- softmax --
//
// i8: the exponential and the reciprocal in fixed point, as gemmlowp has them: out = 256 e^x / sum
// e^x - 128, so the output has scale 1 / 256 and zero point -128. The factor of the input is
//     (scale of in) beta 2^26 = multiplier 2^(shift - 31)
// and differences from the largest below `least` = -floor(31 2^(31 - 5) / 2^shift) count as
// nothing.

typedef struct nn_tiny_softmax {
    int32_t multiplier, shift;  // i8: shift 0 .. 30
    int32_t least;              // i8 alone
} nn_tiny_softmax;

// e^x of x = value 2^-26 in -1/4 .. 0, as a fraction of 2^31: a polynomial around -1/8.
static inline int32_t nn_tiny_exp_small(int32_t value) {
    int32_t x = value * 32 + (1 << 28), x2 = nn_int_multiply(x, x), x3 = nn_int_multiply(x2, x);
    int32_t x4 = nn_int_shift_right(nn_int_multiply(x2, x2), 2);
    int32_t rest = nn_int_shift_right(nn_int_multiply(x4 + x3, 715827883) + x2, 1);  // 2^31 / 3
    return 1895147668 + nn_int_multiply(1895147668, x + rest);  // 2^31 e^(-1/8)
}

// e^x of x = value 2^-26, value -2^31 .. 0.
static inline int32_t nn_tiny_exp(int32_t value) {
    // 2^31 e^(-2^(i - 2))
    static const int32_t powers[7] = {1672461947, 1302514674, 790015084, 290630308,
                                      39332535,   720401,     242};
    int32_t small = (int32_t)((uint32_t)value & 0xFFFFFFu) - (1 << 24), result;
    uint32_t rest = (uint32_t)small - (uint32_t)value;
    if (value == 0) return INT32_MAX;
    result = nn_tiny_exp_small(small);
    for (int i = 0; i < 7; i++)
        if (rest >> (24 + i) & 1) result = nn_int_multiply(result, powers[i]);
    return result;
}

// 1 / (1 + x) of x = value 2^-31, 0 <= x < 1: three steps of Newton.
static inline int32_t nn_tiny_reciprocal(int32_t value) {
    int32_t half = (int32_t)(((int64_t)value + INT32_MAX + 1) / 2);
    int32_t x = 1515870810 + nn_int_multiply(half, -1010580540);  // (48 - 32 half) / 17
    for (int i = 0; i < 3; i++) {
        int32_t error = (1 << 29) - nn_int_multiply(half, x);
        x += nn_int_shift_left(nn_int_multiply(x, error), 2);
    }
    return nn_int_shift_left(x, 1);
}

// Zeros above the highest 1 of a number that is not 0.
static inline int32_t nn_tiny_count_zeros(uint32_t value) {
#ifdef __GNUC__
    return __builtin_clz(value);
#else
    int32_t zeros = 0;
    for (; !(value >> 31); value <<= 1) zeros++;
    return zeros;
#endif
}

// e^x of an input, 0 = too little to count.
static inline int32_t nn_tiny_exp_of(int32_t difference, const nn_tiny_softmax *p) {
    if (difference < p->least) return 0;
    return nn_tiny_exp(nn_int_scale(difference, p->multiplier, p->shift));
}

static inline void nn_tiny_softmax_row_i8(int8_t *out, const int8_t *in, int32_t n,
                                          const nn_tiny_softmax *p) {
    int32_t most = in[0], zeros, share, i;
    uint32_t sum = 0;
    for (i = 1; i < n; i++) most = in[i] > most ? in[i] : most;
    for (i = 0; i < n; i++)
        sum += (uint32_t)nn_int_shift_right(nn_tiny_exp_of(in[i] - most, p), 12);
    zeros = nn_tiny_count_zeros(sum);
    share = nn_tiny_reciprocal((int32_t)((sum << zeros) - 0x80000000u));
    for (i = 0; i < n; i++) {
        int32_t value = nn_int_multiply(share, nn_tiny_exp_of(in[i] - most, p));
        value = zeros < 4 ? 0 : nn_int_shift_right(value, 35 - zeros);
        out[i] = (int8_t)nn_tiny_clamp(value - 128, -128, 127);
    }
}

// Each row of (R, n); n <= 4095.
static inline void nn_tiny_softmax_i8(int8_t *out, const int8_t *in, int32_t R, int32_t n,
                                      const nn_tiny_softmax *p) {
    for (int32_t i = 0; i < R; i++, out += n, in += n) nn_tiny_softmax_row_i8(out, in, n, p);
}

// i16: two tables, as TensorFlow Lite has them: of e^x, -10 <= x <= 0, and of 1 / (1 + x), 0 <= x
// <= 1, filled by nn_int16_fill_table with in_scale 10 / 65535 and 1 / 65535, in_zero 32767 and
// -32768, out_scale 2 / 65535. (TFLM fills the second one in floats: entries 160 and 294 are one
// apart.) The factor of the input is (scale of in) beta 65535 / 10; out has scale 1 / 32768.
static inline void nn_tiny_softmax_row_i16(int16_t *out, const int16_t *in, int32_t n,
                                           const nn_tiny_softmax *p, const int16_t *exp_table,
                                           const int16_t *reciprocal_table) {
    int32_t most = in[0], sum = 0, zeros, share, i;
    for (i = 1; i < n; i++) most = in[i] > most ? in[i] : most;
    for (i = 0; i < n; i++) {
        int32_t x = nn_int_scale(in[i] - most, p->multiplier, p->shift);
        x = nn_tiny_clamp(x, -65535, 0) + 32767;
        out[i] = (int16_t)nn_tiny_find_between(x, exp_table);
        sum += out[i];
    }
    zeros = nn_tiny_count_zeros((uint32_t)sum);
    share = (int32_t)(((uint32_t)sum << (zeros - 1)) + (1u << 13)) >> 14;
    share = nn_tiny_find_between(nn_tiny_clamp(share - 98304, -32768, 32767), reciprocal_table);
    for (i = 0; i < n; i++) {
        int32_t value = (out[i] * share + (1 << (30 - zeros))) >> (31 - zeros);
        out[i] = (int16_t)nn_tiny_clamp(value, -32768, 32767);
    }
}

static inline void nn_tiny_softmax_i16(int16_t *out, const int16_t *in, int32_t R, int32_t n,
                                       const nn_tiny_softmax *p,
                                       const int16_t *exp_table,           // [513]
                                       const int16_t *reciprocal_table) {  // [513]
    for (int32_t i = 0; i < R; i++, out += n, in += n)
        nn_tiny_softmax_row_i16(out, in, n, p, exp_table, reciprocal_table);
}

// -- floats: to integers and back, q = clamp(round(x / scale) + zero), halves to even --

static inline void nn_tiny_quantize_i8(int8_t *out, const float *in, int32_t n, float scale,
                                       const nn_tiny_target *to) {
    nn_int_target target;
    target.zero = to->zero;
    target.low = to->low;
    target.high = to->high;
    nn_int8_quantize(out, in, (size_t)n, scale, target);
}

static inline void nn_tiny_dequantize_i8(float *out, const int8_t *in, int32_t n, float scale,
                                         int32_t zero) {
    nn_int8_dequantize(out, in, (size_t)n, scale, zero);
}

static inline void nn_tiny_quantize_i16(int16_t *out, const float *in, int32_t n, float scale,
                                        const nn_tiny_target *to) {
    nn_int_target target;
    target.zero = to->zero;
    target.low = to->low;
    target.high = to->high;
    nn_int16_quantize(out, in, (size_t)n, scale, target);
}

static inline void nn_tiny_dequantize_i16(float *out, const int16_t *in, int32_t n, float scale,
                                          int32_t zero) {
    nn_int16_dequantize(out, in, (size_t)n, scale, zero);
}

// -- rows: of what has no window. A row has n elements (concat: outer inner, softmax: R n) --

static inline void nn_tiny_add_i8_rows(const nn_tiny_out *out, const nn_tiny_in *a,
                                       const nn_tiny_in *b, int32_t n, const nn_tiny_pair *p,
                                       int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_add_i8((int8_t *)nn_tiny_find_out(out, y), (const int8_t *)nn_tiny_find_in(a, y),
                       (const int8_t *)nn_tiny_find_in(b, y), n, p);
}

static inline void nn_tiny_add_i16_rows(const nn_tiny_out *out, const nn_tiny_in *a,
                                        const nn_tiny_in *b, int32_t n, const nn_tiny_pair *p,
                                        int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_add_i16((int16_t *)nn_tiny_find_out(out, y), (const int16_t *)nn_tiny_find_in(a, y),
                        (const int16_t *)nn_tiny_find_in(b, y), n, p);
}

static inline void nn_tiny_mul_i8_rows(const nn_tiny_out *out, const nn_tiny_in *a,
                                       const nn_tiny_in *b, int32_t n, const nn_tiny_pair *p,
                                       int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_mul_i8((int8_t *)nn_tiny_find_out(out, y), (const int8_t *)nn_tiny_find_in(a, y),
                       (const int8_t *)nn_tiny_find_in(b, y), n, p);
}

static inline void nn_tiny_mul_i16_rows(const nn_tiny_out *out, const nn_tiny_in *a,
                                        const nn_tiny_in *b, int32_t n, const nn_tiny_pair *p,
                                        int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_mul_i16((int16_t *)nn_tiny_find_out(out, y), (const int16_t *)nn_tiny_find_in(a, y),
                        (const int16_t *)nn_tiny_find_in(b, y), n, p);
}

static inline void nn_tiny_scale_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t n,
                                         int32_t multiplier, int32_t shift,
                                         const nn_tiny_target *to, int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_scale_i8((int8_t *)nn_tiny_find_out(out, y), (const int8_t *)nn_tiny_find_in(in, y),
                         n, multiplier, shift, to);
}

static inline void nn_tiny_scale_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t n,
                                          int32_t multiplier, int32_t shift,
                                          const nn_tiny_target *to, int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_scale_i16((int16_t *)nn_tiny_find_out(out, y),
                          (const int16_t *)nn_tiny_find_in(in, y), n, multiplier, shift, to);
}

static inline void nn_tiny_concat_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                          int32_t outer, int32_t inner, int32_t out_inner,
                                          int32_t at, int32_t multiplier, int32_t shift,
                                          const nn_tiny_target *to, int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_concat_i8((int8_t *)nn_tiny_find_out(out, y),
                          (const int8_t *)nn_tiny_find_in(in, y), outer, inner, out_inner, at,
                          multiplier, shift, to);
}

static inline void nn_tiny_concat_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                           int32_t outer, int32_t inner, int32_t out_inner,
                                           int32_t at, int32_t multiplier, int32_t shift,
                                           const nn_tiny_target *to, int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_concat_i16((int16_t *)nn_tiny_find_out(out, y),
                           (const int16_t *)nn_tiny_find_in(in, y), outer, inner, out_inner, at,
                           multiplier, shift, to);
}

static inline void nn_tiny_lookup_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t n,
                                          const int8_t *table, int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_lookup_i8((int8_t *)nn_tiny_find_out(out, y),
                          (const int8_t *)nn_tiny_find_in(in, y), n, table);
}

static inline void nn_tiny_lookup_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t n,
                                           const int16_t *table, int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_lookup_i16((int16_t *)nn_tiny_find_out(out, y),
                           (const int16_t *)nn_tiny_find_in(in, y), n, table);
}

static inline void nn_tiny_sigmoid_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t n,
                                            const nn_tiny_curve *p, const uint16_t *table,
                                            int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_sigmoid_i16((int16_t *)nn_tiny_find_out(out, y),
                            (const int16_t *)nn_tiny_find_in(in, y), n, p, table);
}

static inline void nn_tiny_tanh_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t n,
                                         const nn_tiny_curve *p, const uint16_t *table,
                                         int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_tanh_i16((int16_t *)nn_tiny_find_out(out, y),
                         (const int16_t *)nn_tiny_find_in(in, y), n, p, table);
}

static inline void nn_tiny_hardswish_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                              int32_t n, const nn_tiny_hardswish *p, int32_t first,
                                              int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_hardswish_i16((int16_t *)nn_tiny_find_out(out, y),
                              (const int16_t *)nn_tiny_find_in(in, y), n, p);
}

static inline void nn_tiny_softmax_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t R,
                                           int32_t n, const nn_tiny_softmax *p, int32_t first,
                                           int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_softmax_i8((int8_t *)nn_tiny_find_out(out, y),
                           (const int8_t *)nn_tiny_find_in(in, y), R, n, p);
}

static inline void nn_tiny_softmax_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t R,
                                            int32_t n, const nn_tiny_softmax *p,
                                            const int16_t *exp_table,
                                            const int16_t *reciprocal_table, int32_t first,
                                            int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_softmax_i16((int16_t *)nn_tiny_find_out(out, y),
                            (const int16_t *)nn_tiny_find_in(in, y), R, n, p, exp_table,
                            reciprocal_table);
}

static inline void nn_tiny_quantize_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in, int32_t n,
                                            float scale, const nn_tiny_target *to, int32_t first,
                                            int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_quantize_i8((int8_t *)nn_tiny_find_out(out, y),
                            (const float *)nn_tiny_find_in(in, y), n, scale, to);
}

static inline void nn_tiny_dequantize_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                              int32_t n, float scale, int32_t zero, int32_t first,
                                              int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_dequantize_i8((float *)nn_tiny_find_out(out, y),
                              (const int8_t *)nn_tiny_find_in(in, y), n, scale, zero);
}

static inline void nn_tiny_quantize_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                             int32_t n, float scale, const nn_tiny_target *to,
                                             int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_quantize_i16((int16_t *)nn_tiny_find_out(out, y),
                             (const float *)nn_tiny_find_in(in, y), n, scale, to);
}

static inline void nn_tiny_dequantize_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                               int32_t n, float scale, int32_t zero, int32_t first,
                                               int32_t count) {
    for (int32_t y = first; y < first + count; y++)
        nn_tiny_dequantize_i16((float *)nn_tiny_find_out(out, y),
                               (const int16_t *)nn_tiny_find_in(in, y), n, scale, zero);
}

// -- moves: pad, and pixels repeated --

// Zeros around an image: row y of the output is row y - pad_top of the input, columns go the same
// way. Of the window it reads sizes and padding alone.
static inline void nn_tiny_pad_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                    const nn_tiny_window *window, int32_t zero, int32_t first,
                                    int32_t count, int32_t bytes) {
    int32_t C = window->in_channels, before = window->pad_left * C, inside = window->in_width * C;
    int32_t behind = (window->out_width - window->in_width - window->pad_left) * C;
    int32_t byte = bytes == 1 ? zero & 255 : 0;
    for (int32_t y = first; y < first + count; y++) {
        unsigned char *row = (unsigned char *)nn_tiny_find_out(out, y);
        int32_t from = y - window->pad_top;
        if (from < 0 || from >= window->in_height) {
            NN_TINY_FILL(row, byte, (size_t)((before + inside + behind) * bytes));
            continue;
        }
        NN_TINY_FILL(row, byte, (size_t)(before * bytes));
        NN_TINY_COPY(row + before * bytes, nn_tiny_find_in(in, from), (size_t)(inside * bytes));
        NN_TINY_FILL(row + (before + inside) * bytes, byte, (size_t)(behind * bytes));
    }
}

static inline void nn_tiny_pad_i8_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                       const nn_tiny_window *window, int32_t zero, int32_t first,
                                       int32_t count) {
    nn_tiny_pad_rows(out, in, window, zero, first, count, 1);
}

static inline void nn_tiny_pad_i16_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                        const nn_tiny_window *window, int32_t first,
                                        int32_t count) {
    nn_tiny_pad_rows(out, in, window, 0, first, count, 2);
}

static inline void nn_tiny_pad_i8(int8_t *out, const int8_t *in, const nn_tiny_window *window,
                                  int32_t zero) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 1);
    nn_tiny_in from = nn_tiny_image_in(in, window, 1);
    nn_tiny_pad_rows(&all, &from, window, zero, 0, window->out_height, 1);
}

static inline void nn_tiny_pad_i16(int16_t *out, const int16_t *in, const nn_tiny_window *window) {
    nn_tiny_out all = nn_tiny_image_out(out, window, 2);
    nn_tiny_in from = nn_tiny_image_in(in, window, 2);
    nn_tiny_pad_rows(&all, &from, window, 0, 0, window->out_height, 2);
}

// Nearest: pixel (y, x) of the output is pixel (y / scale_y, x / scale_x) of the input, of any
// type.
static inline void nn_tiny_upsample_rows(const nn_tiny_out *out, const nn_tiny_in *in,
                                         int32_t in_width, int32_t pixel_bytes, int32_t scale_y,
                                         int32_t scale_x, int32_t first, int32_t count) {
    for (int32_t y = first; y < first + count; y++) {
        unsigned char *to = (unsigned char *)nn_tiny_find_out(out, y);
        const unsigned char *from = (const unsigned char *)nn_tiny_find_in(in, y / scale_y);
        for (int32_t x = 0; x < in_width; x++, from += pixel_bytes)
            for (int32_t i = 0; i < scale_x; i++, to += pixel_bytes)
                NN_TINY_COPY(to, from, (size_t)pixel_bytes);
    }
}

static inline void nn_tiny_upsample(void *out, const void *in, int32_t in_height, int32_t in_width,
                                    int32_t pixel_bytes, int32_t scale_y, int32_t scale_x) {
    nn_tiny_out all = nn_tiny_whole_out(out, in_width * scale_x * pixel_bytes);
    nn_tiny_in from = nn_tiny_whole_in(in, in_width * pixel_bytes);
    nn_tiny_upsample_rows(&all, &from, in_width, pixel_bytes, scale_y, scale_x, 0,
                          in_height * scale_y);
}

#endif
