/* nn.h - kernels of a small character-level transformer, for the examples of tl_strategy.h

   Plain C99 that is also C++11, float32, one thread, no allocation, no I/O, no state. Each kernel
   is a forward and a backward function over raw pointers; where the bytes live is up to the caller:

       forward     writes its output. State that backward wants besides inputs and outputs goes to
                   `saved`; NULL means not wanted, and the output has the same bits either way.
       backward    ADDS (+=) to every gradient it is given, so that a tensor read by several kernels
                   gets the sum of their contributions, in the order of the calls. Set a gradient to
                   zero before its first use. A gradient that is NULL is not computed.

   Sums are always taken in one order: term by term, rows first to last, onto what is there already.
   So a kernel run again gives the same bits, and a weight gradient has the same bits whether the
   rows of a batch come in one call or in several calls one after the other.

   ROWS        A kernel may be called for some rows of the batch alone, and for the others before and
               after: operands that have these rows begin with the first of them and hold no others,
               weights and their gradients are whole. R is the number of rows of the call then. What
               must know more than that has a function of its own, of rows first .. first + count - 1:
               embed, cross entropy, and attention as three products. Outputs have the bits of one call
               however rows are cut; so have all gradients if the calls follow in the order of rows.

   SAME BITS   One binary, the same calls: always. Between compilers, options and machines: build
               with -ffp-contract=off. Else, where the machine has fused multiply-adds, a compiler
               decides loop by loop which product and sum to round once instead of twice. Never
               -ffast-math. Of <math.h> only sqrtf (exact by IEEE 754) and logf (in the reported
               loss, in no gradient) are used; e^x and the normal numbers are made here.
   SPEED       -O2 is enough for matmul; -O3 makes vectors of e^x and the elementwise loops, too.
   STACK       44 KiB at most; with NN_SMALL_STACK defined 2 KiB, with the same bits.

   LETTERS     B = sequences in the batch    T = tokens in a sequence    C = channels
               V = size of the vocabulary    NH = attention heads        HS = C / NH, head size
               R = rows, mostly B * T        n = elements, where the shape does not matter
   Arrays are row-major; the shape of each is in its comment. din is the gradient of in, and so on.

   CONTENTS    (search for "// -- ")
               numbers    16 bits    matmul
               embed    norm    linear    attention    attention as three products
               gelu    add    dropout    cross entropy
               sgd    adamw    sample    checksum
*/
#ifndef NN_H
#define NN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// -- numbers --

// Number i of the stream of a seed: 64 random bits, a pure function of both (splitmix64, twice).
static inline uint64_t nn_hash(uint64_t seed, uint64_t i) {
    uint64_t x = seed;
    for (int pass = 0; pass < 2; pass++) {  // first the seed alone, then the seed with i
        x += 0x9E3779B97F4A7C15u;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        x ^= x >> 31;
        if (pass == 0) x += i * 0x9E3779B97F4A7C15u;
    }
    return x;
}

// Uniform number in [0, 1), a multiple of 2^-24.
static inline float nn_uniform(uint64_t seed, uint64_t i) {
    return (float)(nn_hash(seed, i) >> 40) * (1.0f / 16777216.0f);
}

// Normal number, mean 0 and variance 1: the sum of 12 uniform numbers of 16 bits, less 6. It has no
// tail beyond 6 and never calls <math.h>, so weights start with the same bits on every machine.
static inline float nn_normal(uint64_t seed, uint64_t i) {
    int32_t sum = 0;
    for (uint64_t word = 0; word < 3; word++) {
        uint64_t bits = nn_hash(seed, 3 * i + word);
        for (int part = 0; part < 64; part += 16) sum += (int32_t)((bits >> part) & 0xFFFF);
    }
    return (float)(sum - 393210) * (1.0f / 65536.0f);  // 393210 = 12 * 32767.5, the mean
}

static inline void nn_fill_normal(float *out, size_t n, float deviation, uint64_t seed) {
    for (size_t i = 0; i < n; i++) out[i] = deviation * nn_normal(seed, i);
}

static inline void nn_fill(float *out, size_t n, float value) {
    for (size_t i = 0; i < n; i++) out[i] = value;
}

// e^x to about one unit in the last place. |x| is clamped to 87, so the result is never 0 and never
// infinite; a NaN stays one. Splits x = k ln2 + f with |f| <= ln2 / 2, then e^x = 2^k e^f: 2^k is
// made from its bits, e^f from a polynomial (Moshier, Cephes, expf.c).
static inline float nn_exp(float x) {
    // clamp on the bits, which order as the sizes do: comparing floats would stop vectorisation
    const int32_t limit = 0x42AE0000, infinity = 0x7F800000;  // the bits of 87 and of infinity
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t size = bits & 0x7FFFFFFF, sign = bits ^ size;
    size = ((size > limit) & (size <= infinity)) ? limit : size;
    bits = sign | size;
    memcpy(&x, &bits, sizeof x);
    // k, rounded: adding 1.5 * 2^23 leaves no bits for a fraction, and k in the low bits
    const float rounder = 12582912.0f;
    float shifted = x * 1.44269504f + rounder;
    float k = shifted - rounder;
    float f = x - k * 0.693359375f;  // ln2 in two parts: k times the first one is exact
    f = f + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * (f * f) + f + 1.0f;
    // 2^k
    uint32_t power_bits;
    memcpy(&power_bits, &shifted, sizeof power_bits);
    power_bits = (power_bits + 127u) << 23;  // 127: the bias of the exponent
    float power;
    memcpy(&power, &power_bits, sizeof power);
    return p * power;
}

// ln x to about one unit in the last place, for x > 0 that is neither infinite nor subnormal: machines
// without a logf of their own, or with another one, get the same bits. x = 2^k m with 0.7 < m < 1.42,
// ln x = k ln2 + ln m (Moshier, Cephes, logf.c).
static inline float nn_log(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t k = (int32_t)(bits >> 23) - 126;
    bits = (bits & 0x7FFFFFu) | 0x3F000000u;  // 0.5 <= m < 1
    float m;
    memcpy(&m, &bits, sizeof m);
    if (m < 0.707106781f) {
        k--;
        m += m;
    }
    m -= 1.0f;
    float square = m * m, power = (float)k;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m * square + power * -2.12194440e-4f - 0.5f * square;
    return m + p + power * 0.693359375f;
}

static inline size_t nn_min(size_t a, size_t b) { return a < b ? a : b; }

static inline float nn_max(const float *x, size_t n) {
    float max = x[0];
    for (size_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

// x = softmax(scale * x), in place. The maximum is taken off first, so nothing overflows.
static inline void nn_softmax(float *x, size_t n, float scale) {
    float max = nn_max(x, n);
    for (size_t i = 0; i < n; i++) x[i] = nn_exp((x[i] - max) * scale);
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) sum += x[i];
    float inverse = 1.0f / sum;
    for (size_t i = 0; i < n; i++) x[i] *= inverse;
}

// -- 16 bits: how activations can be stored; kernels compute in f32 --
//
// f16 has 11 binary digits up to 65504 and down to 2^-24, bf16 the range of f32 and 8 digits. Both
// are rounded to nearest, ties to even, bit for bit as tl_compress_bytes does. No branches, so that
// the compiler makes vectors of the loops.

static inline uint32_t nn_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float nn_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline void nn_round_f16(uint16_t *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = nn_bits(in[i]), size = bits & 0x7FFFFFFFu;
        uint32_t normal = (size - 0x38000000u + 0xFFFu + (size >> 13 & 1u)) >> 13;
        // below 2^-14: the last digit of a number from 0.5 to 1 is 2^-24, so the sum rounds there
        uint32_t small = nn_bits(nn_float(size & 0x3FFFFFFFu) + 0.5f) - 0x3F000000u;
        uint32_t special = size > 0x7F800000u ? 0x7E00u | (size >> 13 & 0x3FFu) : 0x7C00u;
        uint32_t half = size < 0x38800000u ? small : normal;
        half = size >= 0x477FF000u ? special : half;  // 65520 is half way to 2^16
        out[i] = (uint16_t)((bits >> 16 & 0x8000u) | half);
    }
}

static inline void nn_expand_f16(float *out, const uint16_t *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t sign = (uint32_t)(in[i] & 0x8000u) << 16, size = in[i] & 0x7FFFu;
        uint32_t small = nn_bits(nn_float((size << 13) + 0x38800000u) - 6.103515625e-5f);
        uint32_t special = 0x7F800000u | size << 13 | (size > 0x7C00u ? 0x400000u : 0u);
        uint32_t bits = size < 0x400u ? small : (size << 13) + 0x38000000u;
        out[i] = nn_float(sign | (size >= 0x7C00u ? special : bits));
    }
}

static inline void nn_round_bf16(uint16_t *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = nn_bits(in[i]), rounded = bits + 0x7FFFu + (bits >> 16 & 1u);
        uint32_t is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
        out[i] = (uint16_t)((is_nan ? bits | 0x400000u : rounded) >> 16);
    }
}

static inline void nn_expand_bf16(float *out, const uint16_t *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)in[i] << 16;
        out[i] = nn_float((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x400000u : bits);
    }
}

// -- matmul --
//
// One routine does all the heavy work. A block of b is copied to the stack first, its rows side by
// side and filled up with zeros; then four rows of c at a time run over it:
//
//               K                    N                      N
//            +-----+              +--+==+--+             +--+==+--+
//        M   |=====| 4 rows   K   |  |b |  | block   M   |  |c |  | 4 rows, 64 columns
//            |  a  |              +--+==+--+             |  |==|  |
//            +-----+                                     +--+--+--+
//
// The inner loops run along a row of c: 16 independent sums side by side, in a count the compiler
// knows. That is what lets it use vector instructions without reordering any sum. Each element of c
// gets its K products in order, whatever the block sizes are. Against the plain loops over i, k, j
// this is 7 times as fast with gcc -O2 and 1.6 times with -O3 (SSE2, 1024 x 128 by 128 x 512).

// NN_SMALL_STACK, where it is defined, makes the blocks small, for machines with little memory.
#ifndef NN_SMALL_STACK
enum {
    NN_DEPTH = 128,  // rows of a block of b
    NN_WIDTH = 64,   // columns of a block of b; block = 32 KiB of stack
    NN_STEP  = 16    // columns done at once; divides NN_WIDTH
};
#else
enum { NN_DEPTH = 16, NN_WIDTH = 8, NN_STEP = 4 };  // 896 bytes of stack
#endif

// A matrix to read from: element (i, j) is x[i * row + j * col], so a transpose costs nothing.
typedef struct nn_view {
    const float *x;
    size_t row;
    size_t col;
} nn_view;

static inline nn_view nn_rows(const float *x, size_t width) {
    nn_view view;
    view.x = x;
    view.row = width;
    view.col = 1;
    return view;
}

static inline nn_view nn_transposed(const float *x, size_t width) {
    nn_view view;
    view.x = x;
    view.row = 1;
    view.col = width;
    return view;
}

// c (4, width) += a (4, depth) b (depth, width), width a multiple of NN_STEP; rows of a are
// NN_DEPTH elements apart, those of b and c NN_WIDTH.
static inline void nn_matmul_block(float *c, const float *a, const float *b, size_t depth,
                                   size_t width) {
    float c0[NN_WIDTH], c1[NN_WIDTH], c2[NN_WIDTH], c3[NN_WIDTH];  // local: cannot alias a or b
    memcpy(c0, c + 0 * NN_WIDTH, sizeof c0);
    memcpy(c1, c + 1 * NN_WIDTH, sizeof c1);
    memcpy(c2, c + 2 * NN_WIDTH, sizeof c2);
    memcpy(c3, c + 3 * NN_WIDTH, sizeof c3);
    const float *a0 = a, *a1 = a0 + NN_DEPTH, *a2 = a1 + NN_DEPTH, *a3 = a2 + NN_DEPTH;
    size_t k = 0;
    for (; k + 2 <= depth; k += 2) {  // two rows of b at a time: half the loads and stores of c
        const float *u = b + k * NN_WIDTH, *v = u + NN_WIDTH;
        float a0u = a0[k], a1u = a1[k], a2u = a2[k], a3u = a3[k];
        float a0v = a0[k + 1], a1v = a1[k + 1], a2v = a2[k + 1], a3v = a3[k + 1];
        for (size_t block = 0; block < width; block += NN_STEP) {
            for (int step = 0; step < NN_STEP; step++) {
                size_t j = block + (size_t)step;
                c0[j] = c0[j] + a0u * u[j] + a0v * v[j];
                c1[j] = c1[j] + a1u * u[j] + a1v * v[j];
                c2[j] = c2[j] + a2u * u[j] + a2v * v[j];
                c3[j] = c3[j] + a3u * u[j] + a3v * v[j];
            }
        }
    }
    for (; k < depth; k++) {  // the last row, where depth is odd
        const float *u = b + k * NN_WIDTH;
        float a0u = a0[k], a1u = a1[k], a2u = a2[k], a3u = a3[k];
        for (size_t block = 0; block < width; block += NN_STEP) {
            for (int step = 0; step < NN_STEP; step++) {
                size_t j = block + (size_t)step;
                c0[j] += a0u * u[j];  // NOLINT: b is filled up to width
                c1[j] += a1u * u[j];
                c2[j] += a2u * u[j];
                c3[j] += a3u * u[j];
            }
        }
    }
    memcpy(c + 0 * NN_WIDTH, c0, sizeof c0);
    memcpy(c + 1 * NN_WIDTH, c1, sizeof c1);
    memcpy(c + 2 * NN_WIDTH, c2, sizeof c2);
    memcpy(c + 3 * NN_WIDTH, c3, sizeof c3);
}

// c (M, N) += a (M, K) b (K, N); rows of c are c_row elements apart.
static inline void nn_matmul_add(float *c, size_t c_row, nn_view a, nn_view b, size_t M, size_t N,
                                 size_t K) {
    float b_block[NN_DEPTH * NN_WIDTH], a_block[4 * NN_DEPTH], c_block[4 * NN_WIDTH];
    memset(a_block, 0, sizeof a_block);
    memset(c_block, 0, sizeof c_block);
    for (size_t j0 = 0; j0 < N; j0 += NN_WIDTH) {
        size_t width = nn_min(N - j0, NN_WIDTH);
        size_t padded = (width + NN_STEP - 1) / NN_STEP * NN_STEP;
        for (size_t k0 = 0; k0 < K; k0 += NN_DEPTH) {
            size_t depth = nn_min(K - k0, NN_DEPTH);
            for (size_t k = 0; k < depth; k++) {
                const float *from = b.x + (k0 + k) * b.row + j0 * b.col;
                float *to = b_block + k * NN_WIDTH;
                for (size_t j = 0; j < width; j++) to[j] = from[j * b.col];
                for (size_t j = width; j < padded; j++) to[j] = 0.0f;
            }
            for (size_t i0 = 0; i0 < M; i0 += 4) {
                size_t rows = nn_min(M - i0, 4);
                for (size_t k = 0; k < depth; k++) {
                    const float *from = a.x + i0 * a.row + (k0 + k) * a.col;
                    for (size_t i = 0; i < rows; i++) a_block[i * NN_DEPTH + k] = from[i * a.row];
                }
                for (size_t i = 0; i < rows; i++) {
                    memcpy(c_block + i * NN_WIDTH, c + (i0 + i) * c_row + j0,
                           width * sizeof(float));
                }
                nn_matmul_block(c_block, a_block, b_block, depth, padded);
                for (size_t i = 0; i < rows; i++) {
                    memcpy(c + (i0 + i) * c_row + j0, c_block + i * NN_WIDTH,
                           width * sizeof(float));
                }
            }
        }
    }
}

// -- embed: a row for the token plus a row for its position --

static inline void nn_embed_forward_range(float *out,             // (count, C)
                                          const int32_t *tokens,  // (count), each in [0, V)
                                          const float *wte,       // (V, C)
                                          const float *wpe,       // (T, C) or longer
                                          size_t first, size_t count, size_t T, size_t C) {
    for (size_t r = 0, t = first % T; r < count; r++, t = t + 1 < T ? t + 1 : 0) {
        float *row = out + r * C;
        const float *token = wte + (size_t)tokens[r] * C;
        const float *position = wpe + t * C;
        for (size_t c = 0; c < C; c++) row[c] = token[c] + position[c];
    }
}

static inline void nn_embed_forward(float *out,              // (B, T, C)
                                    const int32_t *tokens,   // (B, T), each in [0, V)
                                    const float *wte,        // (V, C)
                                    const float *wpe,        // (T, C) or longer
                                    size_t B, size_t T, size_t C) {
    nn_embed_forward_range(out, tokens, wte, wpe, 0, B * T, T, C);
}

static inline void nn_embed_backward_range(float *dwte,             // (V, C) or NULL
                                           float *dwpe,             // (T, C) or NULL
                                           const float *dout,       // (count, C)
                                           const int32_t *tokens,   // (count)
                                           size_t first, size_t count, size_t T, size_t C) {
    for (size_t r = 0, t = first % T; r < count; r++, t = t + 1 < T ? t + 1 : 0) {
        const float *drow = dout + r * C;
        if (dwte) {
            float *dtoken = dwte + (size_t)tokens[r] * C;
            for (size_t c = 0; c < C; c++) dtoken[c] += drow[c];
        }
        if (dwpe) {
            float *dposition = dwpe + t * C;
            for (size_t c = 0; c < C; c++) dposition[c] += drow[c];
        }
    }
}

static inline void nn_embed_backward(float *dwte,             // (V, C) or NULL
                                     float *dwpe,             // (T, C) or NULL
                                     const float *dout,       // (B, T, C)
                                     const int32_t *tokens,   // (B, T)
                                     size_t B, size_t T, size_t C) {
    nn_embed_backward_range(dwte, dwpe, dout, tokens, 0, B * T, T, C);
}

// Rows first .. first + count - 1 of both gradients together, of all rows of the batch: those of the
// tokens, then those of the positions. They have the bits that nn_embed_backward gives them.
static inline void nn_embed_backward_rows(float *drows,           // (count, C)
                                          const float *dout,      // (B, T, C)
                                          const int32_t *tokens,  // (B, T)
                                          size_t B, size_t T, size_t C, size_t V, size_t first,
                                          size_t count) {
    for (size_t r = 0; r < B * T; r++) {
        size_t rows[2];
        rows[0] = (size_t)tokens[r];
        rows[1] = V + r % T;
        for (int k = 0; k < 2; k++) {
            if (rows[k] < first || rows[k] - first >= count) continue;
            for (size_t c = 0; c < C; c++) drows[(rows[k] - first) * C + c] += dout[r * C + c];
        }
    }
}

// -- norm: each row to mean 0 and variance 1, then a weight and a bias per channel --
// Reference: Ba, Kiros, Hinton, Layer Normalization, 2016, arXiv:1607.06450, section 3.

static inline size_t nn_norm_saved_bytes(size_t R) { return R * 2 * sizeof(float); }

static inline void nn_norm_forward(float *out,           // (R, C)
                                   float *saved,         // (R, 2): mean, 1 / deviation; or NULL
                                   const float *in,      // (R, C)
                                   const float *weight,  // (C)
                                   const float *bias,    // (C)
                                   size_t R, size_t C) {
    for (size_t r = 0; r < R; r++) {
        const float *x = in + r * C;
        float sum = 0.0f;
        for (size_t c = 0; c < C; c++) sum += x[c];
        float mean = sum / (float)C;
        float squares = 0.0f;
        for (size_t c = 0; c < C; c++) squares += (x[c] - mean) * (x[c] - mean);
        float rstd = 1.0f / sqrtf(squares / (float)C + 1e-5f);
        for (size_t c = 0; c < C; c++) out[r * C + c] = (x[c] - mean) * rstd * weight[c] + bias[c];
        if (saved) {
            saved[r * 2 + 0] = mean;
            saved[r * 2 + 1] = rstd;
        }
    }
}

static inline void nn_norm_backward(float *din,           // (R, C) or NULL
                                    float *dweight,       // (C) or NULL
                                    float *dbias,         // (C) or NULL
                                    const float *dout,    // (R, C)
                                    const float *saved,   // (R, 2), from forward
                                    const float *in,      // (R, C)
                                    const float *weight,  // (C)
                                    size_t R, size_t C) {
    for (size_t r = 0; r < R; r++) {
        const float *x = in + r * C, *d = dout + r * C;
        float mean = saved[r * 2 + 0], rstd = saved[r * 2 + 1];
        // the gradients of the channels
        for (size_t c = 0; dweight && c < C; c++) dweight[c] += (x[c] - mean) * rstd * d[c];
        for (size_t c = 0; dbias && c < C; c++) dbias[c] += d[c];
        if (!din) continue;
        // first two sums over the row: of the gradient, and of the gradient times the normal value
        float sum = 0.0f, product = 0.0f;
        for (size_t c = 0; c < C; c++) {
            sum += weight[c] * d[c];
            product += weight[c] * d[c] * ((x[c] - mean) * rstd);
        }
        float mean_sum = sum / (float)C, mean_product = product / (float)C;
        // then what is left of the gradient once the mean and the deviation have moved with x
        for (size_t c = 0; c < C; c++) {
            float normal = (x[c] - mean) * rstd;
            float centered = weight[c] * d[c] - mean_sum;
            din[r * C + c] += (centered - normal * mean_product) * rstd;
        }
    }
}

// -- linear: out = in weight + bias --

static inline void nn_linear_forward(float *out,           // (R, N)
                                     const float *in,      // (R, K)
                                     const float *weight,  // (K, N)
                                     const float *bias,    // (N); NULL = zero
                                     size_t R, size_t K, size_t N) {
    for (size_t r = 0; r < R; r++) {
        if (bias) memcpy(out + r * N, bias, N * sizeof(float));
        else memset(out + r * N, 0, N * sizeof(float));
    }
    nn_matmul_add(out, N, nn_rows(in, K), nn_rows(weight, N), R, N, K);
}

static inline void nn_linear_backward(float *din,           // (R, K) or NULL
                                      float *dweight,       // (K, N) or NULL
                                      float *dbias,         // (N) or NULL
                                      const float *dout,    // (R, N)
                                      const float *in,      // (R, K); read only for dweight
                                      const float *weight,  // (K, N); read only for din
                                      size_t R, size_t K, size_t N) {
    if (din) nn_matmul_add(din, K, nn_rows(dout, N), nn_transposed(weight, N), R, K, N);
    if (dweight) nn_matmul_add(dweight, N, nn_transposed(in, K), nn_rows(dout, N), K, N, R);
    for (size_t r = 0; dbias && r < R; r++) {
        for (size_t j = 0; j < N; j++) dbias[j] += dout[r * N + j];
    }
}

// Rows first .. first + count - 1 of the gradients of weight and bias together: a row for each input,
// then the bias as row K. They have the bits that nn_linear_backward gives them.
static inline void nn_linear_backward_rows(float *drows,       // (count, N)
                                           const float *dout,  // (R, N)
                                           const float *in,    // (R, K)
                                           size_t R, size_t K, size_t N, size_t first,
                                           size_t count) {
    size_t inputs = nn_min(first + count, K) - nn_min(first, K);
    nn_matmul_add(drows, N, nn_transposed(in + first, K), nn_rows(dout, N), inputs, N, R);
    if (inputs < count)
        nn_linear_backward(NULL, NULL, drows + inputs * N, dout, NULL, NULL, R, K, N);
}

// -- attention: causal, several heads, on q, k and v side by side --
//
// For each sequence and head:     scores = q k^T / sqrt(HS)      (T, T), only keys <= query
//                                 att    = softmax(scores)       per row; 0 for later keys
//                                 out    = att v                 (T, HS)
//
// Queries are done in blocks of rows, and a block reads the keys up to its own last one, so little
// is computed above the diagonal and thrown away:
//
//         keys ->    | x . . . . . . . |
//      queries       | x x . . . . . . |  block 0 reads 2 keys here
//                    | x x x . . . . . |
//                    | x x x x . . . . |  block 1 reads 4
//
// Reference: Vaswani et al., Attention Is All You Need, 2017, arXiv:1706.03762, section 3.2.

enum { NN_QUERIES = 32 };  // rows of a block

static inline size_t nn_attention_saved_bytes(size_t B, size_t NH, size_t T) {
    return B * NH * T * T * sizeof(float);
}

static inline size_t nn_attention_scratch_bytes(size_t T) {
    return nn_min(NN_QUERIES, T) * T * sizeof(float);
}

static inline void nn_attention_forward(float *out,        // (B, T, C)
                                        float *saved,      // (B, NH, T, T): att; or NULL
                                        const float *qkv,  // (B, T, 3, NH, HS)
                                        float *scratch,    // nn_attention_scratch_bytes(T)
                                        size_t B, size_t T, size_t C, size_t NH) {
    size_t HS = C / NH;
    float scale = 1.0f / sqrtf((float)HS);
    memset(out, 0, B * T * C * sizeof(float));
    for (size_t bh = 0; bh < B * NH; bh++) {
        size_t b = bh / NH, h = bh % NH;
        const float *q = qkv + b * T * 3 * C + h * HS, *k = q + C, *v = k + C;  // rows 3C apart
        for (size_t t0 = 0; t0 < T; t0 += NN_QUERIES) {
            size_t rows = nn_min(NN_QUERIES, T - t0), keys = t0 + rows;
            float *att = scratch;  // (rows, keys)
            memset(att, 0, rows * keys * sizeof(float));
            nn_matmul_add(att, keys, nn_rows(q + t0 * 3 * C, 3 * C), nn_transposed(k, 3 * C), rows,
                          keys, HS);
            for (size_t r = 0; r < rows; r++) {
                float *row = att + r * keys;
                size_t seen = t0 + r + 1;
                nn_softmax(row, seen, scale);
                memset(row + seen, 0, (keys - seen) * sizeof(float));
            }
            nn_matmul_add(out + (b * T + t0) * C + h * HS, C, nn_rows(att, keys), nn_rows(v, 3 * C),
                          rows, HS, keys);
            for (size_t r = 0; saved && r < rows; r++) {
                float *to = saved + (bh * T + t0 + r) * T;
                memcpy(to, att + r * keys, keys * sizeof(float));
                memset(to + keys, 0, (T - keys) * sizeof(float));
            }
        }
    }
}

static inline void nn_attention_backward(float *dqkv,         // (B, T, 3, NH, HS)
                                         const float *dout,   // (B, T, C)
                                         const float *saved,  // (B, NH, T, T), from forward
                                         const float *qkv,    // (B, T, 3, NH, HS)
                                         float *scratch,      // nn_attention_scratch_bytes(T)
                                         size_t B, size_t T, size_t C, size_t NH) {
    size_t HS = C / NH;
    float scale = 1.0f / sqrtf((float)HS);
    for (size_t bh = 0; bh < B * NH; bh++) {
        size_t b = bh / NH, h = bh % NH, head = b * T * 3 * C + h * HS;
        const float *q = qkv + head, *k = q + C, *v = k + C;
        float *dq = dqkv + head, *dk = dq + C, *dv = dk + C;
        for (size_t t0 = 0; t0 < T; t0 += NN_QUERIES) {
            size_t rows = nn_min(NN_QUERIES, T - t0), keys = t0 + rows;
            const float *att = saved + (bh * T + t0) * T;         // (rows, T)
            const float *d = dout + (b * T + t0) * C + h * HS;    // (rows, HS), rows C apart
            float *dscores = scratch;                             // (rows, keys)
            // through out = att v
            nn_matmul_add(dv, 3 * C, nn_transposed(att, T), nn_rows(d, C), keys, HS, rows);
            memset(dscores, 0, rows * keys * sizeof(float));
            nn_matmul_add(dscores, keys, nn_rows(d, C), nn_transposed(v, 3 * C), rows, keys, HS);
            // through the softmax: each gradient less their mean, weighted by att
            for (size_t r = 0; r < rows; r++) {
                const float *a = att + r * T;
                float *ds = dscores + r * keys;
                size_t seen = t0 + r + 1;
                float mean = 0.0f;
                for (size_t t = 0; t < seen; t++) mean += a[t] * ds[t];
                for (size_t t = 0; t < seen; t++) ds[t] = a[t] * (ds[t] - mean) * scale;
                memset(ds + seen, 0, (keys - seen) * sizeof(float));
            }
            // through scores = q k^T
            nn_matmul_add(dq + t0 * 3 * C, 3 * C, nn_rows(dscores, keys), nn_rows(k, 3 * C), rows,
                          HS, keys);
            nn_matmul_add(dk, 3 * C, nn_transposed(dscores, keys), nn_rows(q + t0 * 3 * C, 3 * C),
                          keys, HS, rows);
        }
    }
}

// -- attention as three products, for ranges of rows --
//
// The same attention as three kernels, so that a call for some rows never holds more than these of
// what has T numbers a row. A row is a query of a head: number (b NH + h) T + t of B NH T.
//
//     scores    q k^T                      (count, T)    each after the other: the bits of attention
//     softmax   of scores / sqrt(HS)       (count, T)    above, forward and backward
//     values    att v, into out            (B, T, C)
//
// qkv, out and their gradients are whole. What is for later keys is 0 and is never read.

// Queries of one head that are done together, so many at most.
#ifndef NN_SMALL_STACK
enum { NN_TILE = 32 };
#else
enum { NN_TILE = 8 };
#endif

typedef struct nn_queries {
    size_t t, rows;    // the first query in its sequence, and how many
    size_t head, out;  // where the q of the head's query 0 is in qkv, and where query t is in out
} nn_queries;

// The next queries from a row on, before row `end`.
static inline nn_queries nn_find_queries(size_t row, size_t end, size_t T, size_t C, size_t NH) {
    size_t b = row / T / NH, h = row / T % NH, HS = C / NH;
    nn_queries found;
    found.t = row % T;
    found.rows = nn_min(nn_min(NN_TILE, T - found.t), end - row);
    found.head = b * T * 3 * C + h * HS;
    found.out = (b * T + found.t) * C + h * HS;
    return found;
}

// Of the keys from the first query on each query sees one more than the one before: copy what they
// have of rows of T as (rows, rows), with 0 for later keys.
static inline void nn_copy_seen(float *tile, const float *from, const nn_queries *queries, size_t T) {
    for (size_t r = 0; r < queries->rows; r++)
        for (size_t k = 0; k < queries->rows; k++)
            tile[r * queries->rows + k] = k <= r ? from[r * T + queries->t + k] : 0.0f;
}

static inline void nn_scores_forward(float *scores,     // (count, T)
                                     const float *qkv,  // (B, T, 3, NH, HS)
                                     size_t first, size_t count, size_t T, size_t C, size_t NH) {
    nn_queries now;
    for (size_t row = first; row < first + count; row += now.rows) {
        float *s = scores + (row - first) * T;
        now = nn_find_queries(row, first + count, T, C, NH);
        const float *q = qkv + now.head + now.t * 3 * C, *k = qkv + now.head + C;
        memset(s, 0, now.rows * T * sizeof(float));
        nn_matmul_add(s, T, nn_rows(q, 3 * C), nn_transposed(k, 3 * C), now.rows, now.t + now.rows,
                      C / NH);
        for (size_t r = 0; r < now.rows; r++)
            memset(s + r * T + now.t + r + 1, 0, (now.rows - r - 1) * sizeof(float));
    }
}

static inline void nn_scores_backward(float *dqkv,           // (B, T, 3, NH, HS): of q and k
                                      const float *dscores,  // (count, T)
                                      const float *qkv, size_t first, size_t count, size_t T, size_t C,
                                      size_t NH) {
    float tile[NN_TILE * NN_TILE];
    nn_queries now;
    for (size_t row = first; row < first + count; row += now.rows) {
        const float *ds = dscores + (row - first) * T;
        now = nn_find_queries(row, first + count, T, C, NH);
        size_t wide = 3 * C, HS = C / NH, at = now.t * wide;  // at: of the first query, and of its key
        const float *q = qkv + now.head, *k = q + C;
        float *dq = dqkv + now.head, *dk = dq + C;
        nn_copy_seen(tile, ds, &now, T);
        nn_matmul_add(dq + at, wide, nn_rows(ds, T), nn_rows(k, wide), now.rows, HS, now.t);
        nn_matmul_add(dq + at, wide, nn_rows(tile, now.rows), nn_rows(k + at, wide), now.rows, HS,
                      now.rows);
        nn_matmul_add(dk, wide, nn_transposed(ds, T), nn_rows(q + at, wide), now.t, HS, now.rows);
        nn_matmul_add(dk + at, wide, nn_transposed(tile, now.rows), nn_rows(q + at, wide), now.rows, HS,
                      now.rows);
    }
}

static inline void nn_causal_softmax_forward(float *att,           // (count, T); may be scores
                                             const float *scores,  // (count, T)
                                             size_t first, size_t count, size_t T, size_t HS) {
    float scale = 1.0f / sqrtf((float)HS);
    for (size_t r = 0; r < count; r++) {
        size_t seen = (first + r) % T + 1;
        float *row = att + r * T;
        if (row != scores + r * T) memcpy(row, scores + r * T, seen * sizeof(float));
        nn_softmax(row, seen, scale);
        memset(row + seen, 0, (T - seen) * sizeof(float));
    }
}

static inline void nn_causal_softmax_backward(float *dscores,     // (count, T)
                                              const float *datt,  // (count, T)
                                              const float *att,   // (count, T), from forward
                                              size_t first, size_t count, size_t T, size_t HS) {
    float scale = 1.0f / sqrtf((float)HS);
    for (size_t r = 0; r < count; r++) {
        const float *a = att + r * T, *da = datt + r * T;
        float *ds = dscores + r * T, mean = 0.0f;
        size_t seen = (first + r) % T + 1;
        for (size_t t = 0; t < seen; t++) mean += a[t] * da[t];
        for (size_t t = 0; t < seen; t++) ds[t] += a[t] * (da[t] - mean) * scale;
    }
}

static inline void nn_values_forward(float *out,        // (B, T, C): of the rows of the call
                                     const float *att,  // (count, T)
                                     const float *qkv,  // (B, T, 3, NH, HS)
                                     size_t first, size_t count, size_t T, size_t C, size_t NH) {
    float tile[NN_TILE * NN_TILE];
    nn_queries now;
    for (size_t row = first; row < first + count; row += now.rows) {
        const float *a = att + (row - first) * T;
        now = nn_find_queries(row, first + count, T, C, NH);
        const float *v = qkv + now.head + 2 * C;
        float *to = out + now.out;
        for (size_t r = 0; r < now.rows; r++) memset(to + r * C, 0, C / NH * sizeof(float));
        nn_copy_seen(tile, a, &now, T);
        nn_matmul_add(to, C, nn_rows(a, T), nn_rows(v, 3 * C), now.rows, C / NH, now.t);
        nn_matmul_add(to, C, nn_rows(tile, now.rows), nn_rows(v + now.t * 3 * C, 3 * C), now.rows,
                      C / NH, now.rows);
    }
}

static inline void nn_values_backward(float *datt,        // (count, T) or NULL
                                      float *dqkv,        // (B, T, 3, NH, HS): of v; or NULL
                                      const float *dout,  // (B, T, C)
                                      const float *att,   // (count, T)
                                      const float *qkv, size_t first, size_t count, size_t T, size_t C,
                                      size_t NH) {
    float tile[NN_TILE * NN_TILE];
    nn_queries now;
    for (size_t row = first; row < first + count; row += now.rows) {
        size_t wide = 3 * C, HS = C / NH, begin = (row - first) * T;
        now = nn_find_queries(row, first + count, T, C, NH);
        const float *v = qkv + now.head + 2 * C, *d = dout + now.out, *a = att + begin;
        if (dqkv) {
            float *dv = dqkv + now.head + 2 * C;
            nn_copy_seen(tile, a, &now, T);
            nn_matmul_add(dv, wide, nn_transposed(a, T), nn_rows(d, C), now.t, HS, now.rows);
            nn_matmul_add(dv + now.t * wide, wide, nn_transposed(tile, now.rows), nn_rows(d, C),
                          now.rows, HS, now.rows);
        }
        if (!datt) continue;
        for (size_t r = 0; r < now.rows; r++)  // what is for later keys is put back
            memcpy(tile + r * now.rows, datt + begin + r * T + now.t, now.rows * sizeof(float));
        nn_matmul_add(datt + begin, T, nn_rows(d, C), nn_transposed(v, wide), now.rows, now.t + now.rows,
                      HS);
        for (size_t r = 0; r < now.rows; r++)
            memcpy(datt + begin + r * T + now.t + r + 1, tile + r * now.rows + r + 1,
                   (now.rows - r - 1) * sizeof(float));
    }
}

// -- gelu: x times the normal distribution function, in its tanh form --
// 0.5 (1 + tanh(u)) = 1 / (1 + e^-2u) =: s, so out = x s and dout/din = s + x s (1 - s) 2u'.
// Reference: Hendrycks, Gimpel, Gaussian Error Linear Units, 2016, arXiv:1606.08415, section 2.

#define NN_GELU_2U 1.59576912f  // 2 sqrt(2 / pi)
#define NN_GELU_CUBE 0.044715f  // 2u = NN_GELU_2U (x + NN_GELU_CUBE x^3)

static inline void nn_gelu_forward(float *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float x = in[i], square = x * x;
        float u2 = NN_GELU_2U * x * (1.0f + NN_GELU_CUBE * square);
        out[i] = x / (1.0f + nn_exp(-u2));
    }
}

static inline void nn_gelu_backward(float *din, const float *dout, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float x = in[i], square = x * x;
        float u2 = NN_GELU_2U * x * (1.0f + NN_GELU_CUBE * square);
        float s = 1.0f / (1.0f + nn_exp(-u2));
        float slope = NN_GELU_2U * (1.0f + 3.0f * NN_GELU_CUBE * square);  // of u2
        din[i] += dout[i] * (s + x * s * (1.0f - s) * slope);
    }
}

// -- add: the residual stream --

static inline void nn_add_forward(float *out, const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

static inline void nn_add_backward(float *da, float *db, const float *dout, size_t n) {
    for (size_t i = 0; da && i < n; i++) da[i] += dout[i];
    for (size_t i = 0; db && i < n; i++) db[i] += dout[i];
}

// -- dropout: each element is zeroed with probability p, the others grow by 1 / (1 - p) --
//
// Nothing is stored: whether an element stays is a pure function of the seed and its index, so
// backward, and a forward run again, find the same decisions. Give each layer and each training
// step a seed of its own. `first` is the index of element 0 in the whole batch: 0, unless the batch
// is cut into parts that must drop what the whole would have dropped.
// Reference: Srivastava et al., Dropout, 2014, JMLR 15, section 4.

static inline int nn_dropout_keeps(float p, uint64_t seed, uint64_t i) {
    return nn_uniform(seed, i) >= p;
}

static inline void nn_dropout_forward(float *out, const float *in, size_t n, float p, uint64_t seed,
                                      uint64_t first) {
    float scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
    for (size_t i = 0; i < n; i++) {
        out[i] = nn_dropout_keeps(p, seed, first + i) ? in[i] * scale : 0.0f;
    }
}

static inline void nn_dropout_backward(float *din, const float *dout, size_t n, float p,
                                       uint64_t seed, uint64_t first) {
    float scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
    for (size_t i = 0; i < n; i++) {
        if (nn_dropout_keeps(p, seed, first + i)) din[i] += dout[i] * scale;
    }
}

// NN_LOG is what takes the logarithm of the reported loss: logf, unless it is defined, say as nn_log.
#ifndef NN_LOG
#define NN_LOG logf
#endif

// -- cross entropy: softmax of the logits, then -log of what the target got; mean over the rows --

// For a range of rows the loss is the sum until the last of all R rows is there. Its backward divides
// by R, too: the mean of a block of n rows, scaled by n / R, has other bits for many n, unless R or n
// is a power of two.

static inline void nn_cross_entropy_forward_range(float *loss,             // (1): begun by first == 0
                                                  float *losses,           // (count) or NULL
                                                  const float *logits,     // (count, V)
                                                  const int32_t *targets,  // (count), each in [0, V)
                                                  size_t first, size_t count, size_t R, size_t V) {
    float total = first ? *loss : 0.0f;
    for (size_t r = 0; r < count; r++) {
        const float *x = logits + r * V;
        float max = nn_max(x, V), sum = nn_exp(x[0] - max);
        for (size_t i = 1; i < V; i++) sum += nn_exp(x[i] - max);
        float row = NN_LOG(sum) - (x[targets[r]] - max);
        if (losses) losses[r] = row;
        total += row;
    }
    *loss = first + count == R ? total / (float)R : total;
}

static inline void nn_cross_entropy_forward(float *loss,             // (1): the mean
                                            float *losses,           // (R) or NULL
                                            const float *logits,     // (R, V)
                                            const int32_t *targets,  // (R), each in [0, V)
                                            size_t R, size_t V) {
    nn_cross_entropy_forward_range(loss, losses, logits, targets, 0, R, R, V);
}

static inline void nn_cross_entropy_backward_range(float *dlogits,          // (count, V)
                                                   float dloss,             // of the mean, mostly 1
                                                   const float *logits,     // (count, V)
                                                   const int32_t *targets,  // (count)
                                                   size_t count, size_t R, size_t V) {
    float scale = dloss / (float)R;
    for (size_t r = 0; r < count; r++) {
        const float *x = logits + r * V;
        float *dx = dlogits + r * V;
        size_t target = (size_t)targets[r];
        float max = nn_max(x, V), sum = 0.0f;
        for (size_t i = 0; i < V; i++) sum += nn_exp(x[i] - max);
        float inverse = 1.0f / sum;
        for (size_t i = 0; i < V; i++) {
            float probability = nn_exp(x[i] - max) * inverse;
            dx[i] += (i == target ? probability - 1.0f : probability) * scale;
        }
    }
}

static inline void nn_cross_entropy_backward(float *dlogits,          // (R, V)
                                             float dloss,             // of the mean, mostly 1
                                             const float *logits,     // (R, V)
                                             const int32_t *targets,  // (R)
                                             size_t R, size_t V) {
    nn_cross_entropy_backward_range(dlogits, dloss, logits, targets, R, R, V);
}

// -- sgd: one step, in place, with momentum --
// Reference: Polyak, Some methods of speeding up the convergence of iteration methods, 1964.

static inline void nn_sgd_update(float *param,       // (n)
                                 float *velocity,    // (n): 0 before the first step; NULL = no momentum
                                 const float *grad,  // (n)
                                 size_t n, float rate, float momentum) {
    for (size_t i = 0; i < n; i++) {
        if (velocity) velocity[i] = momentum * velocity[i] + grad[i];
        param[i] -= rate * (velocity ? velocity[i] : grad[i]);
    }
}

// -- adamw: one step of the optimizer --
// Reference: Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2017, arXiv:1711.05101,
// algorithm 2 (with Adam's bias correction: Kingma, Ba, 2014, arXiv:1412.6980).

typedef struct nn_adamw {
    float rate;          // e.g. 1e-3
    float beta1;         // of the mean of the gradient, e.g. 0.9
    float beta2;         // of the mean of its square, e.g. 0.999
    float epsilon;       // e.g. 1e-8
    float weight_decay;  // e.g. 0.1 for matrices; 0 for biases and norms
} nn_adamw;

static inline void nn_adamw_update(float *param,       // (n)
                                   float *m,           // (n): mean of the gradient, 0 before step 1
                                   float *v,           // (n): mean of its square, 0 before step 1
                                   const float *grad,  // (n)
                                   size_t n,
                                   uint64_t step,      // 1, 2, 3, ...
                                   const nn_adamw *opt) {
    // beta^step by squaring; what is left of 1 says how much of m and v is still their zero start
    double power1 = 1.0, power2 = 1.0, square1 = (double)opt->beta1, square2 = (double)opt->beta2;
    for (uint64_t bits = step; bits; bits >>= 1) {
        if (bits & 1) power1 *= square1;
        if (bits & 1) power2 *= square2;
        square1 *= square1;
        square2 *= square2;
    }
    float unbias1 = (float)(1.0 / (1.0 - power1)), unbias2 = (float)(1.0 / (1.0 - power2));
    float keep1 = 1.0f - opt->beta1, keep2 = 1.0f - opt->beta2;
    for (size_t i = 0; i < n; i++) {
        m[i] += keep1 * (grad[i] - m[i]);
        v[i] += keep2 * (grad[i] * grad[i] - v[i]);
        float delta = m[i] * unbias1 / (sqrtf(v[i] * unbias2) + opt->epsilon);
        param[i] -= opt->rate * (delta + opt->weight_decay * param[i]);
    }
}

// -- sample --

// Draw a token. temperature 1 = as the model says, lower = more sure, 0 = the most likely one (the
// first of equals). uniform is in [0, 1), see nn_uniform.
static inline int32_t nn_sample(const float *logits,  // (V)
                                size_t V, float temperature, float uniform) {
    size_t best = 0;
    for (size_t i = 1; i < V; i++) best = logits[i] > logits[best] ? i : best;
    if (temperature <= 0.0f) return (int32_t)best;
    float scale = 1.0f / temperature;
    double sum = 0.0;
    for (size_t i = 0; i < V; i++) sum += (double)nn_exp((logits[i] - logits[best]) * scale);
    double left = sum * (double)uniform;
    for (size_t i = 0; i < V; i++) {
        left -= (double)nn_exp((logits[i] - logits[best]) * scale);
        if (left < 0.0) return (int32_t)i;
    }
    return (int32_t)best;
}

// -- checksum --

// FNV-1a, 64 bits: each step is one-to-one, so a change within one byte always shows. Start with 0,
// give the last result to go on: nn_checksum(nn_checksum(0, a, n), b, m).
static inline uint64_t nn_checksum(uint64_t before, const void *data, size_t bytes) {
    const unsigned char *p = (const unsigned char *)data;
    uint64_t hash = before ^ 0xCBF29CE484222325u;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * 0x100000001B3u;
    return hash ^ 0xCBF29CE484222325u;
}

#endif
