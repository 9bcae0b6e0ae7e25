// Cases for the kernels of examples/nn_tiny.h: shapes, weights and inputs from a seed, the same on every machine.
//
// Integers alone, so that a device and other kernels (tests/kernels/cmsis.c) make the same cases. Where nothing else is said they
// keep to what CMSIS-NN takes: no window without an element, no sum beyond 32 bits, no shift that overflows.

#ifndef TINY_CASES_H
#define TINY_CASES_H

#include "nn_tiny.h"

enum {
    TINY_MOST_ELEMENTS = 8192,   // of an input, of an output
    TINY_MOST_WEIGHTS  = 32768,
    TINY_MOST_CHANNELS = 128,
    TINY_GROUP         = 100,    // cases whose outputs make one hash
    TINY_GROUPS        = 4
};

typedef enum tiny_op {
    TINY_CONV2D, TINY_DEPTHWISE, TINY_LINEAR, TINY_AVGPOOL, TINY_MAXPOOL, TINY_ADD, TINY_MUL, TINY_SOFTMAX,
    TINY_OPS
} tiny_op;

typedef struct tiny_case {
    tiny_op op;
    int32_t bytes;  // of an element: 1 = i8, 2 = i16
    nn_tiny_window window;
    nn_tiny_weights weights;
    nn_tiny_weights_w4 weights_w4;
    int32_t is_w4;  // 1 = those are read: bytes is 1, weights are of 4 bits
    nn_tiny_target to;
    nn_tiny_pair pair;
    nn_tiny_softmax softmax;
    int32_t R, K, N;              // linear; softmax: R rows of N; elementwise: N elements
    int32_t in_count, out_count;  // elements
    // int8_t, or int16_t, as bytes say:
    int16_t a[TINY_MOST_ELEMENTS], b[TINY_MOST_ELEMENTS];
    int8_t  weight[TINY_MOST_WEIGHTS];
    int32_t bias[TINY_MOST_CHANNELS], multipliers[TINY_MOST_CHANNELS], shifts[TINY_MOST_CHANNELS];
    int8_t  packed[TINY_MOST_WEIGHTS / 2 + TINY_MOST_CHANNELS], factors[TINY_MOST_WEIGHTS / 32 + TINY_MOST_CHANNELS];
    int16_t exp_table[513], reciprocal_table[513];
    uint64_t seed;
} tiny_case;

static inline uint64_t tiny_random(tiny_case *c) {
    uint64_t x = c->seed += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static inline int32_t tiny_pick(tiny_case *c, int32_t low, int32_t high) {
    return (int32_t)(low + (int64_t)(tiny_random(c) % (uint64_t)((int64_t)high - low + 1)));
}

// Fill n elements: anything, or, one time in six each, all of them one end, or both ends by turns.
static inline void tiny_fill(tiny_case *c, void *x, int32_t n, int32_t bytes, int32_t low, int32_t high) {
    int32_t how = tiny_pick(c, 0, 11), i;
    for (i = 0; i < n; i++) {
        int32_t value = how < 8 ? tiny_pick(c, low, high) : how == 8 ? low : how == 9 ? high : (i + how) % 2 ? low : high;
        if (bytes == 1) ((int8_t *)x)[i] = (int8_t)value;
        else ((int16_t *)x)[i] = (int16_t)value;
    }
}

static inline int32_t tiny_multiplier(tiny_case *c) {
    int32_t how = tiny_pick(c, 0, 15);
    if (how == 0) return 1 << 30;
    if (how == 1) return INT32_MAX;
    return tiny_pick(c, 1 << 30, INT32_MAX);
}

// Half of the bits of a count.
static inline int32_t tiny_half_bits(int32_t n) {
    int32_t bits = 0;
    for (; n; n >>= 1) bits++;
    return bits / 2;
}

static inline void tiny_make_target(tiny_case *c) {
    int32_t low = c->bytes == 1 ? -128 : -32768, high = -1 - low;
    c->to.in_zero = c->bytes == 1 ? tiny_pick(c, -128, 127) : 0;
    c->to.zero = c->bytes == 1 ? tiny_pick(c, -128, 127) : 0;
    c->to.low = tiny_pick(c, 0, 2) ? low : tiny_pick(c, low, high);
    c->to.high = tiny_pick(c, 0, 2) ? high : tiny_pick(c, c->to.low, high);
}

static inline void tiny_make_weights(tiny_case *c, int32_t count, int32_t N, int32_t K) {
    int32_t n;
    tiny_fill(c, c->weight, count, 1, -127, 127);
    c->weights.weights = c->weight;
    c->weights.bias = tiny_pick(c, 0, 5) ? c->bias : NULL;
    c->weights.multipliers = c->multipliers;
    c->weights.shifts = c->shifts;
    c->weights.per_channel = tiny_pick(c, 0, 3) > 0;
    for (n = 0; n < N; n++) {
        c->bias[n] = tiny_pick(c, -40000, 40000) * (c->bytes == 1 ? 1 : 100);
        c->multipliers[n] = tiny_pick(c, 0, 30) ? tiny_multiplier(c) : 0;
        c->shifts[n] = tiny_pick(c, -9, -3) - tiny_half_bits(K);
    }
    if (!tiny_pick(c, 0, 9)) c->shifts[0] = tiny_pick(c, -31, -20);
}

// A window along one axis.
static inline void tiny_make_axis(tiny_case *c, int32_t *in, int32_t *taps, int32_t *stride, int32_t *pad,
                                  int32_t *dilation, int32_t *out) {
    int32_t most = c->op == TINY_AVGPOOL || c->op == TINY_MAXPOOL ? 6 : 5, reach, behind;
    *taps = tiny_pick(c, 0, 3) ? tiny_pick(c, 1, most) : 1;
    *stride = tiny_pick(c, 1, 3);
    *dilation = most == 5 && !tiny_pick(c, 0, 2) ? tiny_pick(c, 1, 3) : 1;
    reach = (*taps - 1) * *dilation;
    *pad = tiny_pick(c, 0, 1) ? tiny_pick(c, 0, reach) : 0;
    behind = tiny_pick(c, 0, 1) ? tiny_pick(c, 0, reach) : 0;
    do *in = tiny_pick(c, 1, 13); while (*in + *pad + behind <= reach);
    *out = (*in + *pad + behind - reach - 1) / *stride + 1;
}

static inline void tiny_make_window(tiny_case *c) {
    nn_tiny_window *w = &c->window;
    int32_t K, most = 500;
    do {
        tiny_make_axis(c, &w->in_height, &w->height, &w->stride_y, &w->pad_top, &w->dilation_y, &w->out_height);
        tiny_make_axis(c, &w->in_width, &w->width, &w->stride_x, &w->pad_left, &w->dilation_x, &w->out_width);
        w->in_channels = tiny_pick(c, 0, 4) ? tiny_pick(c, 1, 20) : tiny_pick(c, 1, 70);
        w->out_channels = w->in_channels;
        if (c->op == TINY_CONV2D) w->out_channels = tiny_pick(c, 1, 40);
        if (c->op == TINY_DEPTHWISE && !tiny_pick(c, 0, 2)) w->out_channels *= tiny_pick(c, 1, 5);
        K = w->height * w->width * (c->op == TINY_CONV2D ? w->in_channels : 1);
        if (c->bytes == 1) most = 2000;
        c->in_count = w->in_height * w->in_width * w->in_channels;
        c->out_count = w->out_height * w->out_width * w->out_channels;
    } while (K > most || K * w->out_channels > TINY_MOST_WEIGHTS || w->out_channels > TINY_MOST_CHANNELS ||
             c->in_count > TINY_MOST_ELEMENTS || c->out_count > TINY_MOST_ELEMENTS);
    if (c->op <= TINY_DEPTHWISE) tiny_make_weights(c, K * w->out_channels, w->out_channels, K);
}

static inline void tiny_make_pair(tiny_case *c) {
    nn_tiny_pair *p = &c->pair;
    int32_t other = -tiny_pick(c, 0, 4), a_is_large = tiny_pick(c, 0, 1);
    p->a_zero = c->bytes == 1 ? tiny_pick(c, -128, 127) : 0;
    p->b_zero = c->bytes == 1 ? tiny_pick(c, -128, 127) : 0;
    p->a_multiplier = a_is_large ? 1 << 30 : tiny_multiplier(c);
    p->b_multiplier = a_is_large ? tiny_multiplier(c) : 1 << 30;
    p->a_shift = a_is_large ? 0 : other;
    p->b_shift = a_is_large ? other : 0;
    p->multiplier = tiny_multiplier(c);
    p->shift = c->op == TINY_ADD ? tiny_pick(c, -2, 2) - (c->bytes == 1 ? 19 : 14)
                                 : tiny_pick(c, -2, 1) - (c->bytes == 1 ? 7 : 15);
    p->zero = c->to.zero;
    p->low = c->to.low;
    p->high = c->to.high;
    c->N = c->in_count = c->out_count = tiny_pick(c, 1, 200);
    tiny_fill(c, c->b, c->N, c->bytes, c->bytes == 1 ? -128 : -32768, c->bytes == 1 ? 127 : 32767);
}

static inline void tiny_make_softmax(tiny_case *c) {
    int32_t i;
    c->R = tiny_pick(c, 1, 4);
    c->N = tiny_pick(c, 0, 2) ? tiny_pick(c, 1, 20) : tiny_pick(c, 1, c->bytes == 1 ? 500 : 1500);
    c->in_count = c->out_count = c->R * c->N;
    c->softmax.multiplier = tiny_multiplier(c);
    c->softmax.shift = c->bytes == 1 ? tiny_pick(c, 16, 27) : tiny_pick(c, -4, 2);
    c->softmax.least = c->bytes == 1 ? -(int32_t)((INT64_C(31) << 26) >> c->softmax.shift) : 0;
    for (i = 0; i <= 512; i++) {    // not those of e^x: any that rise and fall do for bits
        c->exp_table[i] = (int16_t)((int64_t)32767 * i * i * i / (512 * 512 * 512));
        c->reciprocal_table[i] = (int16_t)(32767 * 512 / (512 + i));
    }
}

// Case `index` of an op; bytes: 1 = i8, 2 = i16.
static inline void tiny_make_case(tiny_case *c, tiny_op op, int32_t bytes, uint64_t index) {
    int32_t low = bytes == 1 ? -128 : -32768;
    NN_TINY_FILL(c, 0, sizeof *c);
    c->op = op;
    c->bytes = bytes;
    c->seed = (index * TINY_OPS + (uint64_t)op) * 2 + (uint64_t)bytes;
    tiny_make_target(c);
    switch (op) {
    case TINY_CONV2D: case TINY_DEPTHWISE: case TINY_AVGPOOL: case TINY_MAXPOOL:
        tiny_make_window(c);
        break;
    case TINY_LINEAR:
        c->R = tiny_pick(c, 1, 5);
        c->K = tiny_pick(c, 0, 3) ? tiny_pick(c, 1, 64) : tiny_pick(c, 1, 500);
        c->N = tiny_pick(c, 1, 40);
        c->in_count = c->R * c->K;
        c->out_count = c->R * c->N;
        tiny_make_weights(c, c->N * c->K, c->N, c->K);
        break;
    case TINY_ADD: case TINY_MUL: tiny_make_pair(c); break;
    case TINY_SOFTMAX: tiny_make_softmax(c); break;
    case TINY_OPS: break;
    }
    tiny_fill(c, c->a, c->in_count, bytes, low, -1 - low);
}

// Weights of 4 bits for N sums of K terms.
static inline void tiny_make_packed(tiny_case *c, int32_t N, int32_t K) {
    int32_t n, i, row = (K + 1) / 2;
    tiny_fill(c, c->factors, N * ((K + 31) / 32), 1, 0, 127);
    for (n = 0; n < N; n++) {
        tiny_fill(c, c->weight, 2 * row, 1, -7, 7);
        if (K % 2) c->weight[K] = 0;
        for (i = 0; i < row; i++) c->packed[n * row + i] = (int8_t)(c->weight[2 * i + 1] * 16 + (c->weight[2 * i] & 15));
    }
    c->weights_w4.packed = c->weights;
    c->weights_w4.packed.weights = c->packed;
    c->weights_w4.factors = c->factors;
}

// Case `index` of an op in w4: conv2d, depthwise or linear. Of the i8 case it keeps what is not weights.
static inline void tiny_make_w4(tiny_case *c, tiny_op op, uint64_t index) {
    const nn_tiny_window *w = &c->window;
    int32_t N, K, n;
    tiny_make_case(c, op, 1, index);
    N = op == TINY_LINEAR ? c->N : w->out_channels;
    K = op == TINY_LINEAR ? c->K : w->height * w->width * (op == TINY_CONV2D ? w->in_channels : 1);
    c->is_w4 = 1;
    tiny_make_packed(c, N, K);
    for (n = 0; n < N; n++) c->shifts[n] -= c->shifts[n] > -30 ? 2 : 0;
}

static inline void tiny_run_w4(const tiny_case *c, int8_t *out) {
    const int8_t *a = (const int8_t *)c->a;
    if (c->op == TINY_CONV2D) nn_tiny_conv2d_w4(out, a, &c->window, &c->weights_w4, &c->to);
    else if (c->op == TINY_DEPTHWISE) nn_tiny_depthwise_w4(out, a, &c->window, &c->weights_w4, &c->to);
    else nn_tiny_linear_w4(out, a, &c->weights_w4, &c->to, c->R, c->K, c->N);
}

// The kernels of nn_tiny.h on a whole case.
static inline void tiny_run_case(const tiny_case *c, void *out) {
    const int8_t *a8 = (const int8_t *)c->a, *b8 = (const int8_t *)c->b;
    int8_t *out8 = (int8_t *)out;
    int16_t *out16 = (int16_t *)out;
    int wide = c->bytes == 2;
    if (c->is_w4) {
        tiny_run_w4(c, out8);
        return;
    }
    switch (c->op) {
    case TINY_CONV2D:
        if (wide) nn_tiny_conv2d_i16(out16, c->a, &c->window, &c->weights, &c->to);
        else nn_tiny_conv2d_i8(out8, a8, &c->window, &c->weights, &c->to);
        break;
    case TINY_DEPTHWISE:
        if (wide) nn_tiny_depthwise_i16(out16, c->a, &c->window, &c->weights, &c->to);
        else nn_tiny_depthwise_i8(out8, a8, &c->window, &c->weights, &c->to);
        break;
    case TINY_LINEAR:
        if (wide) nn_tiny_linear_i16(out16, c->a, &c->weights, &c->to, c->R, c->K, c->N);
        else nn_tiny_linear_i8(out8, a8, &c->weights, &c->to, c->R, c->K, c->N);
        break;
    case TINY_AVGPOOL:
        if (wide) nn_tiny_avgpool_i16(out16, c->a, &c->window, &c->to);
        else nn_tiny_avgpool_i8(out8, a8, &c->window, &c->to);
        break;
    case TINY_MAXPOOL:
        if (wide) nn_tiny_maxpool_i16(out16, c->a, &c->window, &c->to);
        else nn_tiny_maxpool_i8(out8, a8, &c->window, &c->to);
        break;
    case TINY_ADD:
        if (wide) nn_tiny_add_i16(out16, c->a, c->b, c->N, &c->pair);
        else nn_tiny_add_i8(out8, a8, b8, c->N, &c->pair);
        break;
    case TINY_MUL:
        if (wide) nn_tiny_mul_i16(out16, c->a, c->b, c->N, &c->pair);
        else nn_tiny_mul_i8(out8, a8, b8, c->N, &c->pair);
        break;
    case TINY_SOFTMAX:
        if (wide) nn_tiny_softmax_i16(out16, c->a, c->R, c->N, &c->softmax, c->exp_table, c->reciprocal_table);
        else nn_tiny_softmax_i8(out8, a8, c->R, c->N, &c->softmax);
        break;
    case TINY_OPS: break;
    }
}

// FNV-1a over elements, whatever the order of bytes.
static inline uint64_t tiny_hash(uint64_t hash, const void *x, int32_t n, int32_t bytes) {
    int32_t i;
    for (i = 0; i < n; i++) {
        uint32_t value = (uint32_t)(bytes == 1 ? ((const int8_t *)x)[i] : ((const int16_t *)x)[i]);
        hash = (hash ^ (value & 255)) * UINT64_C(1099511628211);
        hash = (hash ^ ((value >> 8) & 255)) * UINT64_C(1099511628211);
    }
    return hash;
}

// The outputs of a group of cases, by `run`.
static inline uint64_t tiny_hash_group(tiny_case *c, void *out, tiny_op op, int32_t bytes, int32_t group,
                                       void (*run)(const tiny_case *, void *)) {
    uint64_t hash = UINT64_C(14695981039346656037);
    int32_t i;
    for (i = 0; i < TINY_GROUP; i++) {
        tiny_make_case(c, op, bytes, (uint64_t)(group * TINY_GROUP + i));
        run(c, out);
        hash = tiny_hash(hash, out, c->out_count, bytes);
    }
    return hash;
}

// Of the sums that test_nn_tiny.c makes of the first cases in w4 of each op. (Nobody else has such kernels.)
enum { TINY_W4_OPS = 3 };
static const tiny_op tiny_ops_w4[TINY_W4_OPS] = { TINY_CONV2D, TINY_DEPTHWISE, TINY_LINEAR };
static const uint64_t tiny_golden_w4[TINY_W4_OPS] = { UINT64_C(0x583D2B5F490083CC), UINT64_C(0xA0280F1F8C176CF8), UINT64_C(0xD9D5A7A5B4C1CE59) };

// The outputs of the first cases of an op in w4, by `run`.
static inline uint64_t tiny_hash_w4(tiny_case *c, void *out, tiny_op op, void (*run)(const tiny_case *, void *)) {
    uint64_t hash = UINT64_C(14695981039346656037);
    int32_t i;
    for (i = 0; i < TINY_GROUP; i++) {
        tiny_make_w4(c, op, (uint64_t)i);
        run(c, out);
        hash = tiny_hash(hash, out, c->out_count, 1);
    }
    return hash;
}

#endif
