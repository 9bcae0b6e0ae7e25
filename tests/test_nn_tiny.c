// Tests of examples/nn_tiny.h: every kernel against sums over padded images in 64 bits, to the last bit; against hashes of what
// CMSIS-NN makes of the same cases (tests/support/tiny_golden.h); and rows of rings against whole images. Of w4, which others
// have not, the hashes are those of the sums here.
//
// The reference knows no shift and no clipped window: images are padded by copying, and the rounding is that of
// TensorFlow Lite's quantisation specification, in divisions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn_tiny.h"
#include "support/tiny_cases.h"
#include "support/tiny_golden.h"
#include "support/walks.h"

static tiny_case c;     // as large as an example's bank: not on the stack
static int32_t expected[TINY_MOST_ELEMENTS];

// Outputs in blocks of exactly their size: the sanitizers see a step outside.
static void *make(int32_t count, int32_t bytes) {
    void *block = malloc((size_t)(count ? count * bytes : 1));
    assert_non_null(block);
    memset(block, 0x5A, (size_t)(count * bytes));
    return block;
}

static int32_t element(const void *x, int32_t i, int32_t bytes) {
    return bytes == 1 ? ((const int8_t *)x)[i] : ((const int16_t *)x)[i];
}

static void assert_elements(const void *actual, const int32_t *want, int32_t n, int32_t bytes, uint64_t index) {
    int32_t i;
    for (i = 0; i < n; i++)
        if (element(actual, i, bytes) != want[i])
            fail_msg("case %d of op %d, %s: element %d is %d, expected %d", (int)index, (int)c.op, bytes == 1 ? "i8" : "i16", (int)i,
                     (int)element(actual, i, bytes), (int)want[i]);
}

static void make_case(tiny_op op, int32_t bytes, int i) { tiny_make_case(&c, op, bytes, (uint64_t)i + 100000); }

// -- the reference: rounding --

static int64_t floor_of(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// a / b to the nearest, halves away from zero.
static int64_t round_away(int64_t a, int64_t b) { return a < 0 ? -((-a + b / 2) / b) : (a + b / 2) / b; }

// sum multiplier 2^(shift - 31): saturated where it is shifted up, high half of twice the product with halves up, then
// halves away from zero.
static int32_t scale_by_definition(int64_t sum, int64_t multiplier, int32_t shift) {
    int32_t i;
    for (i = 0; i < shift; i++) {
        sum *= 2;
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    }
    sum = floor_of(sum * multiplier + (INT64_C(1) << 30), INT64_C(1) << 31);
    return (int32_t)(shift < 0 ? round_away(sum, INT64_C(1) << -shift) : sum);
}

// i16: the multiplier to 16 bits, halves up; the product once, halves up.
static int64_t scale_wide_by_definition(int64_t sum, int64_t multiplier, int32_t shift) {
    int64_t factor = floor_of(multiplier + 32768, 65536);
    if (factor > 32767) factor = 32767;
    return floor_of(sum * factor + (INT64_C(1) << (14 - shift)), INT64_C(1) << (15 - shift));
}

static int32_t bound(int64_t value, const nn_tiny_target *to) {
    return (int32_t)(value < to->low ? to->low : value > to->high ? to->high : value);
}

static int32_t finish_channel(int64_t sum, int32_t n) {
    int32_t at = c.weights.per_channel ? n : 0, multiplier = c.multipliers[at], shift = c.shifts[at];
    if (c.weights.bias) sum += c.bias[n];
    return bound((c.bytes == 1 ? scale_by_definition(sum, multiplier, shift) : scale_wide_by_definition(sum, multiplier, shift)) + c.to.zero,
                 &c.to);
}

// -- the reference: kernels --

enum { OUTSIDE = INT32_MIN };

// The input with a border of so many pixels on each side: OUTSIDE, for a convolution the zero point.
enum { BORDER = 16, SIDE = 13 + 2 * BORDER };
static int32_t image[SIDE * SIDE * 70];
static int32_t *pixel(int32_t y, int32_t x) { return image + ((y + BORDER) * SIDE + x + BORDER) * c.window.in_channels; }

static void make_image(int32_t outside) {
    const nn_tiny_window *w = &c.window;
    int32_t i, y, x, C = w->in_channels;
    for (i = 0; i < SIDE * SIDE * C; i++) image[i] = outside;
    for (y = 0; y < w->in_height; y++)
        for (x = 0; x < w->in_width; x++)
            for (i = 0; i < C; i++) pixel(y, x)[i] = element(c.a, (y * w->in_width + x) * C + i, c.bytes);
}

static int32_t expect_sum(int32_t y, int32_t x, int32_t n) {
    const nn_tiny_window *w = &c.window;
    int32_t ky, kx, k, C = w->in_channels, N = w->out_channels;
    int64_t sum = 0;
    for (ky = 0; ky < w->height; ky++)
        for (kx = 0; kx < w->width; kx++) {
            const int32_t *at = pixel(y * w->stride_y - w->pad_top + ky * w->dilation_y, x * w->stride_x - w->pad_left + kx * w->dilation_x);
            if (c.op == TINY_DEPTHWISE) sum += (int64_t)(at[n / (N / C)] - c.to.in_zero) * c.weight[(ky * w->width + kx) * N + n];
            else for (k = 0; k < C; k++)
                sum += (int64_t)(at[k] - c.to.in_zero) * c.weight[((n * w->height + ky) * w->width + kx) * C + k];
        }
    return finish_channel(sum, n);
}

static int32_t expect_pool(int32_t y, int32_t x, int32_t n) {
    const nn_tiny_window *w = &c.window;
    int32_t ky, kx;
    int64_t sum = 0, count = 0, most = INT32_MIN;
    for (ky = 0; ky < w->height; ky++)
        for (kx = 0; kx < w->width; kx++) {
            int32_t value = pixel(y * w->stride_y - w->pad_top + ky, x * w->stride_x - w->pad_left + kx)[n];
            if (value == OUTSIDE) continue;
            sum += value;
            count++;
            if (value > most) most = value;
        }
    return bound(c.op == TINY_MAXPOOL ? most : round_away(sum, count), &c.to);
}

static void expect_window(void) {
    const nn_tiny_window *w = &c.window;
    int32_t y, x, n, *to = expected, is_pool = c.op == TINY_AVGPOOL || c.op == TINY_MAXPOOL;
    make_image(is_pool ? OUTSIDE : c.to.in_zero);
    for (y = 0; y < w->out_height; y++)
        for (x = 0; x < w->out_width; x++)
            for (n = 0; n < w->out_channels; n++) *to++ = is_pool ? expect_pool(y, x, n) : expect_sum(y, x, n);
}

static void expect_linear(void) {
    int32_t r, n, k;
    for (r = 0; r < c.R; r++)
        for (n = 0; n < c.N; n++) {
            int64_t sum = 0;
            for (k = 0; k < c.K; k++) sum += (int64_t)(element(c.a, r * c.K + k, c.bytes) - c.to.in_zero) * c.weight[n * c.K + k];
            expected[r * c.N + n] = finish_channel(sum, n);
        }
}

static void expect_pair(void) {
    const nn_tiny_pair *p = &c.pair;
    int32_t i, steps = c.bytes == 1 ? 1 << 20 : 1 << 15;
    for (i = 0; i < c.N; i++) {
        int64_t a = element(c.a, i, c.bytes) - p->a_zero, b = element(c.b, i, c.bytes) - p->b_zero, value = a * b;
        if (c.op == TINY_ADD)
            value = (int64_t)scale_by_definition(a * steps, p->a_multiplier, p->a_shift) +
                    scale_by_definition(b * steps, p->b_multiplier, p->b_shift);
        expected[i] = bound(scale_by_definition(value, p->multiplier, p->shift) + p->zero, &c.to);
    }
}

static void check_cases(tiny_op op, int count, void (*expect)(void)) {
    int32_t bytes;
    int i;
    for (bytes = 1; bytes <= 2; bytes++)
        for (i = 0; i < scaled(count); i++) {
            void *out;
            make_case(op, bytes, i);
            out = make(c.out_count, bytes);
            expect();
            tiny_run_case(&c, out);
            assert_elements(out, expected, c.out_count, bytes, (uint64_t)i);
            free(out);
        }
}

static void conv2d_is_the_sum_over_a_padded_image(void **state) { (void)state; check_cases(TINY_CONV2D, 1500, expect_window); }
static void depthwise_is_the_sum_over_a_padded_image(void **state) { (void)state; check_cases(TINY_DEPTHWISE, 1500, expect_window); }
static void avgpool_is_the_mean_of_what_is_inside(void **state) { (void)state; check_cases(TINY_AVGPOOL, 1000, expect_window); }
static void maxpool_is_the_most_of_what_is_inside(void **state) { (void)state; check_cases(TINY_MAXPOOL, 1000, expect_window); }
static void linear_is_the_plain_sum(void **state) { (void)state; check_cases(TINY_LINEAR, 1500, expect_linear); }
static void add_is_three_scalings(void **state) { (void)state; check_cases(TINY_ADD, 1000, expect_pair); }
static void mul_is_a_scaled_product(void **state) { (void)state; check_cases(TINY_MUL, 1000, expect_pair); }

// -- the reference: weights of 4 bits, which are laid out one by one --

static int32_t quarter[TINY_MOST_WEIGHTS];      // (N, K)

static void lay_out(int32_t N, int32_t K) {
    const unsigned char *byte = (const unsigned char *)c.packed;
    int32_t n, k, j, *to = quarter;
    for (n = 0; n < N; n++, to += K) {
        for (k = 0; k + 8 <= K; k += 8, byte += 4)
            for (j = 0; j < 4; j++) {
                to[k + j] = byte[j] % 16;
                to[k + j + 4] = byte[j] / 16;
            }
        for (; k < K; k += 2, byte++) {
            to[k] = byte[0] % 16;
            if (k + 1 < K) to[k + 1] = byte[0] / 16;
            else assert_int_equal(byte[0] / 16, 0);
        }
        for (k = 0; k < K; k++)
            if (to[k] > 7) to[k] -= 16;
    }
}

// The sum of channel n over K numbers x - zero: each group, times its factor.
static int32_t sum_groups(const int32_t *x, int32_t n, int32_t K) {
    int64_t sum = 0, part;
    int32_t k, g = 0;
    for (k = 0; k < K; g++) {
        for (part = 0; k < K && k < 32 * (g + 1); k++) part += x[k] * quarter[n * K + k];
        sum += part * c.factors[n * ((K + 31) / 32) + g];
    }
    return finish_channel(sum, n);
}

// The numbers under the window of a channel.
static int32_t find_terms(int32_t *x, int32_t row, int32_t column, int32_t n) {
    const nn_tiny_window *w = &c.window;
    int32_t ky, kx, k, K = 0, C = w->in_channels, only = n / (w->out_channels / C > 0 ? w->out_channels / C : 1);
    for (ky = 0; ky < w->height; ky++)
        for (kx = 0; kx < w->width; kx++) {
            const int32_t *at = pixel(row * w->stride_y - w->pad_top + ky * w->dilation_y, column * w->stride_x - w->pad_left + kx * w->dilation_x);
            for (k = 0; k < C; k++)
                if (c.op == TINY_CONV2D || k == only) x[K++] = at[k] - c.to.in_zero;
        }
    return K;
}

static void expect_w4(void) {
    static int32_t x[TINY_MOST_WEIGHTS];
    const nn_tiny_window *w = &c.window;
    int32_t row, column, n, k, K, *to = expected;
    if (c.op == TINY_LINEAR) {
        lay_out(c.N, c.K);
        for (row = 0; row < c.R; row++) {
            for (k = 0; k < c.K; k++) x[k] = element(c.a, row * c.K + k, 1) - c.to.in_zero;
            for (n = 0; n < c.N; n++) *to++ = sum_groups(x, n, c.K);
        }
        return;
    }
    make_image(c.to.in_zero);
    K = w->height * w->width * (c.op == TINY_CONV2D ? w->in_channels : 1);
    lay_out(w->out_channels, K);
    for (row = 0; row < w->out_height; row++)
        for (column = 0; column < w->out_width; column++)
            for (n = 0; n < w->out_channels; n++) {
                assert_int_equal(find_terms(x, row, column, n), K);
                *to++ = sum_groups(x, n, K);
            }
}

static void w4_is_the_sum_of_groups(void **state) {
    int op, i;
    (void)state;
    for (op = 0; op < TINY_W4_OPS; op++)
        for (i = 0; i < scaled(1000); i++) {
            void *out;
            tiny_make_w4(&c, tiny_ops_w4[op], (uint64_t)i + 200000);
            out = make(c.out_count, 1);
            expect_w4();
            tiny_run_case(&c, out);
            assert_elements(out, expected, c.out_count, 1, (uint64_t)i);
            free(out);
        }
}

// The reference as a kernel.
static void run_reference_w4(const tiny_case *same, void *out) {
    int32_t i;
    assert_ptr_equal(same, &c);
    expect_w4();
    for (i = 0; i < c.out_count; i++) ((int8_t *)out)[i] = (int8_t)expected[i];
}

static void bits_of_w4_are_those_of_other_machines(void **state) {
    static int8_t out[TINY_MOST_ELEMENTS];
    int op;
    (void)state;
    for (op = 0; op < TINY_W4_OPS; op++) {
        uint64_t hash = tiny_hash_w4(&c, out, tiny_ops_w4[op], run_reference_w4);
        if (hash != tiny_golden_w4[op]) fail_msg("op %d: the hash is 0x%016llX", (int)tiny_ops_w4[op], (unsigned long long)hash);
        assert_true(tiny_hash_w4(&c, out, tiny_ops_w4[op], tiny_run_case) == hash);
    }
}

static void check_w4(int32_t N, int32_t K, uint64_t index) {
    int8_t *out = (int8_t *)make(c.out_count, 1);
    int32_t n;
    tiny_make_packed(&c, N, K);
    tiny_fill(&c, c.a, c.in_count, 1, -128, 127);
    for (n = 0; n < N; n++) c.shifts[n] = tiny_pick(&c, -11, -9) - tiny_half_bits(K);
    expect_w4();
    tiny_run_case(&c, out);
    assert_elements(out, expected, c.out_count, 1, index);
    free(out);
}

// With every rest of 32 and of 8.
static void w4_of_every_length(void **state) {
    int32_t K, i;
    (void)state;
    for (K = 1; K <= 200; K++)
        for (i = 0; i < 4; i++) {
            tiny_make_w4(&c, TINY_LINEAR, (uint64_t)(4 * K + i) + 300000);
            c.R = 1 + i % 3;
            c.K = K;
            c.in_count = c.R * K;
            c.out_count = c.R * c.N;
            check_w4(c.N, K, (uint64_t)K);
        }
}

// Depthwise windows unpack 64 taps for four channels, 256 for one, and more are read where they lie.
static void w4_of_many_taps(void **state) {
    static const int32_t sides[][2] = { { 8, 8 }, { 5, 13 }, { 16, 16 }, { 17, 17 }, { 1, 1 }, { 15, 17 } };
    int i;
    (void)state;
    for (i = 0; i < 60; i++) {
        nn_tiny_window w = { 13, 12, 6, 0, 0, 1, 1, 4, 4, 1, 1, 0, 0, 6 };
        tiny_make_w4(&c, TINY_DEPTHWISE, (uint64_t)i + 400000);
        w.height = sides[i % 6][0];
        w.width = sides[i % 6][1];
        if (i % 6 == 4) w.pad_top = w.pad_left = 0;
        w.out_channels = 6 * (1 + i / 6 % 2);
        w.out_height = 13 + 2 * w.pad_top - w.height + 1;
        w.out_width = 12 + 2 * w.pad_left - w.width + 1;
        c.window = w;
        assert_null(nn_tiny_check_window_w4(&c.window, 1));
        c.in_count = 13 * 12 * 6;
        c.out_count = w.out_height * w.out_width * w.out_channels;
        check_w4(w.out_channels, w.height * w.width, (uint64_t)i);
    }
}

// The largest products, as many as are allowed: 32 bits hold their sums.
static void longest_sums_of_w4_fit(void **state) {
    enum { LONG = 8192, N = 5 };
    static const int8_t ends[2] = { -128, 127 }, pairs[2] = { 7 * 16 + 7, -7 * 16 + 9 };
    int8_t *in = (int8_t *)make(2 * LONG, 1), *packed = (int8_t *)make(N * LONG / 2, 1), *factors = (int8_t *)make(N * LONG / 32, 1), out[2 * N];
    int32_t multipliers[N], shifts[N], i, k, n;
    nn_tiny_weights_w4 w = { { NULL, NULL, NULL, NULL, 1 }, NULL };
    nn_tiny_target to = { 0, 0, -128, 127 };
    (void)state;
    w.packed.weights = packed;
    w.packed.multipliers = multipliers;
    w.packed.shifts = shifts;
    w.factors = factors;
    for (n = 0; n < N; n++) {
        multipliers[n] = (1 << 30) + 1000000 * n;
        shifts[n] = -24;
    }
    memset(factors, 127, N * LONG / 32);
    for (i = 0; i < 4; i++) {
        memset(in, ends[i % 2], 2 * LONG);
        memset(packed, pairs[i / 2], N * LONG / 2);
        to.in_zero = ends[(i + 1) % 2];
        for (k = 1; k <= 2; k++) {
            nn_tiny_linear_w4(out, in, &w, &to, k, LONG, N);
            for (n = 0; n < k * N; n++)
                assert_int_equal(out[n], scale_by_definition(INT64_C(8192) * 255 * 7 * 127 * (i % 2 == i / 2 ? -1 : 1), multipliers[n % N], -24));
        }
    }
    free(in);
    free(packed);
    free(factors);
}

// -- what others compute --

static void bits_are_those_of_cmsis_nn(void **state) {
    static int16_t out[TINY_MOST_ELEMENTS];
    int op, group;
    int32_t bytes;
    (void)state;
    for (op = 0; op < TINY_OPS; op++)
        for (bytes = 1; bytes <= 2; bytes++)
            for (group = 0; group < (is_slow() ? 1 : TINY_GROUPS); group++)
                if (tiny_hash_group(&c, out, (tiny_op)op, bytes, group, tiny_run_case) != tiny_golden[op][bytes - 1][group])
                    fail_msg("op %d, %s, cases %d ..: other bits", op, bytes == 1 ? "i8" : "i16", group * TINY_GROUP);
}

// Cases that are all clamped, or never, would show little.
static void check_reach(tiny_op op, int32_t bytes, int is_w4) {
    static int16_t out[TINY_MOST_ELEMENTS];
    int32_t k, low = 0, high = 0, all = 0, is_softmax = op == TINY_SOFTMAX;
    int i;
    for (i = 0; i < 40; i++) {
        if (is_w4) tiny_make_w4(&c, op, (uint64_t)i);
        else make_case(op, bytes, i);
        tiny_run_case(&c, out);
        for (k = 0; k < c.out_count; k++, all++) {
            int32_t value = element(out, k, bytes);
            low += value == (is_softmax ? (bytes == 1 ? -128 : 0) : c.to.low);
            high += value == (is_softmax ? (bytes == 1 ? 127 : 32767) : c.to.high);
        }
    }
    assert_true(all - low - high > all / 5 && (low > 0 || op == TINY_MAXPOOL) && (high > 0 || is_softmax));
}

static void cases_reach_the_inside_and_both_ends(void **state) {
    int op;
    (void)state;
    for (op = 0; op < TINY_OPS; op++) {
        check_reach((tiny_op)op, 1, 0);
        check_reach((tiny_op)op, 2, 0);
    }
    for (op = 0; op < TINY_W4_OPS; op++) check_reach(tiny_ops_w4[op], 1, 1);
}

// -- scaling --

static void scale_rounds_as_is_defined(void **state) {
    static const int32_t sums[] = { 0, 1, -1, 2, -2, 127, -128, 32767, 65535, -65536, INT32_MAX, INT32_MIN, INT32_MIN + 1 };
    static const int32_t multipliers[] = { 0, 1 << 30, (1 << 30) + 1, 1500000000, INT32_MAX - 1, INT32_MAX };
    int32_t shift;
    size_t i, k;
    (void)state;
    c.seed = 5;
    for (shift = -31; shift <= 30; shift++)
        for (k = 0; k < sizeof multipliers / sizeof *multipliers; k++)
            for (i = 0; i < 60; i++) {
                int32_t sum = i < sizeof sums / sizeof *sums ? sums[i] : tiny_pick(&c, INT32_MIN, INT32_MAX) >> (i % 31);
                assert_int_equal(nn_int_scale(sum, multipliers[k], shift), scale_by_definition(sum, multipliers[k], shift));
            }
}

static void scale_of_halves_goes_away_from_zero(void **state) {
    int32_t shift, k;
    (void)state;
    for (shift = 1; shift < 20; shift++)
        for (k = -9; k <= 9; k += 2) {   // k / 2 exactly, by a multiplier of 1/2
            int32_t sum = k * (1 << shift);
            assert_int_equal(nn_int_scale(sum, 1 << 30, -shift), (k + (k > 0 ? 1 : -1)) / 2);
        }
}

static void wide_scale_rounds_as_is_defined(void **state) {
    static const nn_tiny_target words = { 0, 0, -32768, 32767 };
    int32_t shift, k;
    (void)state;
    c.seed = 6;
    for (shift = -31; shift <= 7; shift++)
        for (k = 0; k < 300; k++) {
            int32_t multiplier = k % 10 ? tiny_multiplier(&c) : k % 20 ? 0x7FFEFFFF + k % 30 : 0x7FFF0000;
            int64_t sum = (int64_t)(tiny_random(&c) >> 16) - (INT64_C(1) << 47);
            sum >>= k % 48;
            assert_int_equal(nn_tiny_finish_wide(sum, multiplier, shift, &words), bound(scale_wide_by_definition(sum, multiplier, shift), &words));
        }
}

// Sums of the lengths that the header allows, of the largest products.
static void longest_sums_fit(void **state) {
    enum { LONG = 65536 };
    int8_t *in = (int8_t *)make(LONG, 1), *weight = (int8_t *)make(LONG, 1), out;
    int16_t *wide = (int16_t *)make(LONG, 2), wide_out;
    int32_t multiplier = 1 << 30, shift = -24;
    nn_tiny_weights w = { NULL, NULL, NULL, NULL, 0 };
    nn_tiny_target to = { -128, 0, -128, 127 }, words = { 0, 0, -32768, 32767 };
    (void)state;
    memset(in, 127, LONG);
    memset(weight, 127, LONG);
    for (int i = 0; i < LONG; i++) wide[i] = -32768;
    w.weights = weight;
    w.multipliers = &multiplier;
    w.shifts = &shift;
    nn_tiny_linear_i8(&out, in, &w, &to, 1, LONG, 1);
    assert_int_equal(out, scale_by_definition(INT64_C(65536) * 255 * 127, multiplier, shift));
    nn_tiny_linear_i16(&wide_out, wide, &w, &words, 1, LONG, 1);
    assert_int_equal(wide_out, scale_wide_by_definition(INT64_C(65536) * -32768 * 127, multiplier, shift));
    free(in);
    free(weight);
    free(wide);
}

// -- gavgpool, scale, concat, lookup, floats, moves --

static void gavgpool_is_the_scaled_sum(void **state) {
    int32_t bytes, n, k;
    int i;
    (void)state;
    for (bytes = 1; bytes <= 2; bytes++)
        for (i = 0; i < scaled(500); i++) {
            int32_t H, W, C, pixels, multiplier, shift;
            void *out;
            make_case(TINY_MAXPOOL, bytes, i);
            H = c.window.in_height;
            W = c.window.in_width;
            C = c.window.in_channels;
            pixels = H * W;
            multiplier = tiny_multiplier(&c);
            shift = tiny_pick(&c, -8, 1);
            out = make(C, bytes);
            for (n = 0; n < C; n++) {
                int64_t sum = 0;
                for (k = 0; k < pixels; k++) sum += element(c.a, k * C + n, bytes) - c.to.in_zero;
                expected[n] = bound((int64_t)scale_by_definition(sum, multiplier, shift) + c.to.zero, &c.to);
            }
            if (bytes == 1) nn_tiny_gavgpool_i8((int8_t *)out, (const int8_t *)c.a, pixels, C, multiplier, shift, &c.to);
            else nn_tiny_gavgpool_i16((int16_t *)out, c.a, pixels, C, multiplier, shift, &c.to);
            assert_elements(out, expected, C, bytes, (uint64_t)i);
            free(out);
        }
}

static void concat_scales_each_input_to_its_channels(void **state) {
    int32_t bytes, pixel_at, n;
    int i;
    (void)state;
    for (bytes = 1; bytes <= 2; bytes++)
        for (i = 0; i < scaled(400); i++) {
            int32_t outer, inner[2], N, at = 0, k, is_same;
            void *out;
            make_case(TINY_ADD, bytes, i);
            outer = tiny_pick(&c, 1, 9);
            inner[0] = tiny_pick(&c, 1, 10);
            inner[1] = tiny_pick(&c, 1, 10);
            N = inner[0] + inner[1];
            out = make(outer * N, bytes);
            tiny_fill(&c, c.a, outer * 10, bytes, bytes == 1 ? -128 : -32768, bytes == 1 ? 127 : 32767);
            tiny_fill(&c, c.b, outer * 10, bytes, bytes == 1 ? -128 : -32768, bytes == 1 ? 127 : 32767);
            for (k = 0; k < 2; k++) {
                const int16_t *in = k ? c.b : c.a;
                int32_t multiplier = tiny_multiplier(&c), shift = tiny_pick(&c, -2, 2);
                is_same = !tiny_pick(&c, 0, 3);
                if (is_same) {
                    multiplier = 1 << 30;
                    shift = 1;
                    c.to.in_zero = c.to.zero;
                }
                for (pixel_at = 0; pixel_at < outer; pixel_at++)
                    for (n = 0; n < inner[k]; n++)
                        expected[pixel_at * N + at + n] = bound(
                            (int64_t)scale_by_definition(element(in, pixel_at * inner[k] + n, bytes) - c.to.in_zero, multiplier, shift) + c.to.zero, &c.to);
                if (bytes == 1)
                    nn_tiny_concat_i8((int8_t *)out, (const int8_t *)in, outer, inner[k], N, at, multiplier, shift, &c.to);
                else nn_tiny_concat_i16((int16_t *)out, in, outer, inner[k], N, at, multiplier, shift, &c.to);
                at += inner[k];
            }
            assert_elements(out, expected, outer * N, bytes, (uint64_t)i);
            free(out);
        }
}

static void lookups_read_tables(void **state) {
    int8_t bytes[256], out[256], table[256];
    int16_t words[3] = { -32768, 100, 32767 }, wide[3], lines[513];
    int i;
    (void)state;
    for (i = 0; i < 256; i++) {
        bytes[i] = (int8_t)(i - 128);
        table[i] = (int8_t)(i * 7 % 256 - 128);
    }
    nn_tiny_lookup_i8(out, bytes, 256, table);
    assert_memory_equal(out, table, 256);
    for (i = 0; i < 513; i++) lines[i] = (int16_t)(i * 60 - 16000);
    nn_tiny_lookup_i16(wide, words, 3, lines);
    assert_int_equal(wide[0], lines[0]);
    assert_int_equal(wide[1], lines[256] + (60 * 100 + 64) / 128);  // entry 256 is that of 0
    assert_int_equal(wide[2], lines[511] + (60 * 127 + 64) / 128);
    for (i = -32768; i < 32768; i++) {      // a table of x / 2, between its entries, too
        int16_t x = (int16_t)i, y;
        lines[(i + 32768) / 128] = (int16_t)((i & ~127) / 2);
        lines[(i + 32768) / 128 + 1] = (int16_t)(((i & ~127) + 128) / 2);
        nn_tiny_lookup_i16(&y, &x, 1, lines);
        assert_in_range(2 * y - i + 1, 0, 2);
    }
}

// -- functions of int16 --

enum { WORDS = 65536 };
static int16_t words[WORDS], made[WORDS];

static void make_words(void) {
    int32_t i;
    for (i = 0; i < WORDS; i++) words[i] = (int16_t)(i - 32768);
}

static double sigmoid_of(double x) { return 1.0 / (1.0 + exp(-x)); }
static double reciprocal_of(double x) { return 1.0 / (1.0 + x); }
static double half_of(double x) { return x / 2.0; }
static double cubed(double x) { return x * x * x; }

static uint64_t hash_table(const void *table, int32_t n) { return tiny_hash(UINT64_C(14695981039346656037), table, n, 2); }

// The hashes are those of tables that others have: of sigmoid and e^x CMSIS-NN and its tests, and of TensorFlow Lite's 1 / (1 + x).
static void tables_of_int16_are_those_of_others(void **state) {
    uint16_t sigmoid[256];
    int16_t table[513];
    int32_t i;
    (void)state;
    nn_int16_fill_sigmoid(sigmoid, sigmoid_of);
    assert_true(hash_table(sigmoid, 256) == UINT64_C(0x6D0E26C08D82D44C));
    nn_int16_fill_table(table, exp, 10.0 / 65535, 32767, 2.0 / 65535);
    assert_true(hash_table(table, 513) == UINT64_C(0x9BFE1D2E58C8973C));
    nn_int16_fill_table(table, reciprocal_of, 1.0 / 65535, -32768, 2.0 / 65535);
    assert_true(hash_table(table, 513) == UINT64_C(0x36A151AAADBCD5E2));
    make_words();
    nn_int16_fill_table(table, half_of, 1.0 / 65535, 0, 1.0 / 65535);
    nn_tiny_lookup_i16(made, words, WORDS, table);
    for (i = 0; i < WORDS; i++) assert_in_range(2 * made[i] - words[i] + 2, 0, 4);
    nn_int16_fill_table(table, cubed, 1.0 / 4096, 0, 1.0 / 32768);      // 1 is 32768: far outside
    assert_true(table[0] == -32768 && table[512] == 32767);
    for (i = -31; i < 32; i++) assert_in_range(table[256 + i] - i * i * i + 30, 0, 60);
}

// As TensorFlow Lite defines it, in 64 bits and divisions: steps of 1 / 24 for sigmoid (1 / 48 for tanh) have 512 (256) parts.
static int32_t curve_by_definition(int64_t q, const nn_tiny_curve *p, const uint16_t *table, int is_tanh) {
    int64_t step = is_tanh ? 256 : 512, divisor = INT64_C(1) << p->shift, x = q * p->multiplier, size, y;
    x = p->shift ? floor_of(x + divisor / 2, divisor) : x;
    size = x < 0 ? -x : x;
    if (size / step >= 255) y = (is_tanh ? 65535 : 65534) * step;
    else y = table[size / step] * (step - size % step) + table[size / step + 1] * (size % step);
    if (is_tanh) return (int32_t)floor_of((x < 0 ? -(y - 32768 * step) - 1 : y - 32768 * step) + 128, 256);
    return (int32_t)floor_of((x < 0 ? 65536 * step - y - 1 : y) + 512, 1024);
}

static void run_curve(int16_t *out, const int16_t *in, int32_t n, const nn_tiny_curve *p, const uint16_t *table, int is_tanh) {
    if (is_tanh) nn_tiny_tanh_i16(out, in, n, p, table);
    else nn_tiny_sigmoid_i16(out, in, n, p, table);
}

static void sigmoid_and_tanh_i16_are_those_of_tensorflow_lite(void **state) {
    static const nn_tiny_curve extra[] = { { 3, 0 }, { 6, 0 }, { 32767, 0 }, { 32767, 31 }, { 16384, 31 }, { 3, 1 }, { 32767, 14 } };
    static const nn_tiny_curve golden[2][3] = { { { 24576, 14 }, { 3, 0 }, { 24576, 12 } }, { { 24576, 14 }, { 3, 0 }, { 6, 0 } } };
    uint16_t table[256];
    int32_t i, k, is_tanh;
    (void)state;
    nn_int16_fill_sigmoid(table, sigmoid_of);
    make_words();
    c.seed = 11;
    for (is_tanh = 0; is_tanh < 2; is_tanh++) {
        for (k = 0; k < 3; k++) {
            run_curve(made, words, WORDS, &golden[is_tanh][k], table, is_tanh);
            assert_true(hash_table(made, WORDS) == tiny_golden_curves[is_tanh][k]);
        }
        for (k = 0; k < 7 + scaled(20); k++) {
            nn_tiny_curve p;
            p.multiplier = tiny_pick(&c, 16384, 32767);
            p.shift = tiny_pick(&c, 8, 20);
            if (k < 7) p = extra[k];
            run_curve(made, words, WORDS, &p, table, is_tanh);
            for (i = 0; i < WORDS; i++) assert_int_equal(made[i], curve_by_definition(words[i], &p, table, is_tanh));
        }
    }
}

// Against the real ones, with scales that use the range of int16 well and badly.
static void sigmoid_and_tanh_i16_are_near_the_real_ones(void **state) {
    uint16_t table[256];
    int32_t i, k, is_tanh;
    (void)state;
    nn_int16_fill_sigmoid(table, sigmoid_of);
    make_words();
    c.seed = 12;
    for (is_tanh = 0; is_tanh < 2; is_tanh++)
        for (k = 0; k < scaled(40); k++) {
            nn_tiny_curve p;
            double scale = pow(2.0, k % 20 * 0.5 - 17.0) * (1.0 + tiny_pick(&c, 0, 1000) / 1000.0), steps = scale * 12288.0;
            for (p.shift = 0; steps <= 16383.5 && p.shift < 31; p.shift++) steps *= 2.0;
            p.multiplier = (int32_t)steps;
            run_curve(made, words, WORDS, &p, table, is_tanh);
            for (i = 0; i < WORDS; i++) {
                double real = 32768.0 * (is_tanh ? tanh(words[i] * scale) : sigmoid_of(words[i] * scale));
                assert_true(fabs(made[i] - real) < (is_tanh ? 4.0 : 2.0));
            }
        }
}

// A factor as multiplier and shift.
static void split(double factor, int32_t *multiplier, int32_t *shift) {
    double part = frexp(factor, shift);
    *multiplier = (int32_t)fmin(floor(part * 2147483648.0 + 0.5), 2147483647.0);
}

static void hardswish_i16_is_the_nearest_integer(void **state) {
    int32_t i, k;
    (void)state;
    make_words();
    c.seed = 13;
    for (k = 0; k < scaled(60); k++) {
        nn_tiny_hardswish p;
        double in_scale = pow(2.0, k % 20 - 19.0) * (1.0 + tiny_pick(&c, 0, 1000) / 1000.0);
        double out_scale = in_scale * (k % 3 ? 1.0 : tiny_pick(&c, 300, 4000) / 1000.0);
        split(in_scale * 32768.0 / 3.0, &p.share_multiplier, &p.share_shift);
        split(in_scale / (16384.0 * out_scale), &p.multiplier, &p.shift);
        nn_tiny_hardswish_i16(made, words, WORDS, &p);
        for (i = 0; i < WORDS; i++) {
            double x = words[i] * in_scale, real = x * fmin(fmax(x + 3.0, 0.0), 6.0) / 6.0 / out_scale;
            assert_true(fabs(made[i] - fmin(fmax(real, -32768.0), 32767.0)) < 0.51);
        }
    }
}

static void floats_come_back_within_half_a_step(void **state) {
    float in[200], back[200];
    int8_t bytes[200];
    int16_t words[200];
    nn_tiny_target to8 = { 0, 11, -128, 127 }, to16 = { 0, 0, -32768, 32767 };
    int i;
    (void)state;
    c.seed = 7;
    for (i = 0; i < 200; i++) in[i] = (float)tiny_pick(&c, -1000, 1000) / 1000.0f;
    nn_tiny_quantize_i8(bytes, in, 200, 1.0f / 100.0f, &to8);
    nn_tiny_dequantize_i8(back, bytes, 200, 1.0f / 100.0f, 11);
    for (i = 0; i < 200; i++) assert_true(fabsf(back[i] - in[i]) <= 0.00501f);
    nn_tiny_quantize_i16(words, in, 200, 1.0f / 32767.0f, &to16);
    nn_tiny_dequantize_i16(back, words, 200, 1.0f / 32767.0f, 0);
    for (i = 0; i < 200; i++) assert_true(fabsf(back[i] - in[i]) <= 0.501f / 32767.0f);
}

static void moves_put_pixels_where_they_belong(void **state) {
    int32_t bytes, y, x, n;
    int i;
    (void)state;
    for (bytes = 1; bytes <= 2; bytes++)
        for (i = 0; i < scaled(200); i++) {
            nn_tiny_window *w = &c.window;
            int32_t scale_y, scale_x, C, H, W;
            void *out;
            do make_case(TINY_MAXPOOL, bytes, i++); while (c.in_count > 1000);
            C = w->in_channels;
            w->pad_top = tiny_pick(&c, 0, 2);
            w->pad_left = tiny_pick(&c, 0, 2);
            w->out_height = H = w->pad_top + w->in_height + tiny_pick(&c, 0, 2);
            w->out_width = W = w->pad_left + w->in_width + tiny_pick(&c, 0, 2);
            out = make(H * W * C, bytes);
            for (y = 0; y < H; y++)
                for (x = 0; x < W; x++)
                    for (n = 0; n < C; n++) {
                        int32_t from_y = y - w->pad_top, from_x = x - w->pad_left;
                        int is_inside = from_y >= 0 && from_x >= 0 && from_y < w->in_height && from_x < w->in_width;
                        expected[(y * W + x) * C + n] = is_inside ? element(c.a, (from_y * w->in_width + from_x) * C + n, bytes) : c.to.zero;
                    }
            if (bytes == 1) nn_tiny_pad_i8((int8_t *)out, (const int8_t *)c.a, w, c.to.zero);
            else nn_tiny_pad_i16((int16_t *)out, c.a, w);
            assert_elements(out, expected, H * W * C, bytes, (uint64_t)i);
            free(out);

            scale_y = tiny_pick(&c, 1, 2);
            scale_x = tiny_pick(&c, 1, 3);
            H = w->in_height * scale_y;
            W = w->in_width * scale_x;
            out = make(H * W * C, bytes);
            for (n = 0; n < H * W * C; n++) {
                int32_t at = n / C, row = at / W / scale_y, column = at % W / scale_x;
                expected[n] = element(c.a, (row * w->in_width + column) * C + n % C, bytes);
            }
            nn_tiny_upsample(out, c.a, w->in_height, w->in_width, C * bytes, scale_y, scale_x);
            assert_elements(out, expected, H * W * C, bytes, (uint64_t)i);
            free(out);
        }
}

// -- softmax --

// The real softmax, with the scale that multiplier and shift stand for.
static void softmax_i8_is_within_a_step_of_the_real_one(void **state) {
    int i;
    (void)state;
    for (i = 0; i < scaled(500); i++) {
        int8_t *out;
        const int8_t *in = (const int8_t *)c.a;
        int32_t r, n;
        make_case(TINY_SOFTMAX, 1, i);
        out = (int8_t *)make(c.out_count, 1);
        nn_tiny_softmax_i8(out, in, c.R, c.N, &c.softmax);
        for (r = 0; r < c.R; r++) {
            double sum = 0.0, scale = ldexp(c.softmax.multiplier, c.softmax.shift - 31 - 26);
            for (n = 0; n < c.N; n++) sum += exp((in[r * c.N + n] - 127) * scale);
            for (n = 0; n < c.N; n++) {
                double real = 256.0 * exp((in[r * c.N + n] - 127) * scale) / sum - 128.0;
                if (real > 127.0) real = 127.0;
                assert_true(fabs(out[r * c.N + n] - real) < 1.01);
            }
        }
        free(out);
    }
}

static void softmax_i8_ignores_what_is_below_the_least(void **state) {
    int8_t in[4] = { 10, 10, 7, 6 }, out[4];
    nn_tiny_softmax p = { 1 << 30, 20, -3 };
    (void)state;
    nn_tiny_softmax_i8(out, in, 1, 4, &p);
    assert_true(out[0] == out[1] && out[2] > -60);   // a third each, nearly
    assert_int_equal(out[3], -128);
    p.least = -2;
    nn_tiny_softmax_i8(out, in, 1, 4, &p);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[2], -128);
}

static void softmax_i8_of_very_many_classes_is_nothing_for_each(void **state) {
    int8_t *x = (int8_t *)make(4000, 1);
    nn_tiny_softmax p = { 1 << 30, 20, -100 };
    int i;
    (void)state;
    memset(x, 5, 4000);
    nn_tiny_softmax_i8(x, x, 1, 4000, &p);
    for (i = 0; i < 4000; i++) assert_int_equal(x[i], -128);
    free(x);
}

static void softmax_i16_is_near_the_real_one(void **state) {
    static int16_t exp_table[513], reciprocal_table[513];
    int i;
    (void)state;
    nn_int16_fill_table(exp_table, exp, 10.0 / 65535, 32767, 2.0 / 65535);
    nn_int16_fill_table(reciprocal_table, reciprocal_of, 1.0 / 65535, -32768, 2.0 / 65535);
    for (i = 0; i < scaled(300); i++) {
        int16_t *out;
        int32_t r, n;
        double scale = 1.0 / 4096.0, factor = scale * 65535.0 / 10.0;
        make_case(TINY_SOFTMAX, 2, i);
        c.softmax.multiplier = (int32_t)lrint(factor / 2.0 * 2147483648.0);
        c.softmax.shift = 1;
        out = (int16_t *)make(c.out_count, 2);
        nn_tiny_softmax_i16(out, c.a, c.R, c.N, &c.softmax, exp_table, reciprocal_table);
        for (r = 0; r < c.R; r++) {
            double sum = 0.0;
            for (n = 0; n < c.N; n++) sum += exp((c.a[r * c.N + n] - 32768) * scale);
            for (n = 0; n < c.N; n++)
                assert_true(fabs(out[r * c.N + n] - 32768.0 * exp((c.a[r * c.N + n] - 32768) * scale) / sum) < 40.0);
        }
        free(out);
    }
}

// -- checks --

static void assert_says(const char *said, const char *expected_text) {
    if (!expected_text) assert_null(said);
    else {
        assert_non_null(said);
        assert_string_equal(said, expected_text);
    }
}

static void checks_say_what_is_wrong(void **state) {
    static const struct { int field; int32_t value; const char *text; } wrong[] = {
        { 0, 0, "the input has no elements" }, { 1, -1, "the input has no elements" }, { 2, 0, "the input has no elements" },
        { 3, 0, "the window has no elements" }, { 4, 0, "the window has no elements" },
        { 5, 0, "a stride is below 1" }, { 6, -3, "a stride is below 1" },
        { 7, -1, "a padding is below 0" }, { 8, -1, "a padding is below 0" },
        { 9, 0, "a dilation is below 1" }, { 10, 0, "a dilation is below 1" },
        { 11, 0, "the output has no elements" }, { 12, 0, "the output has no elements" }, { 13, 0, "the output has no elements" },
        { 7, 5, "the first window ends before the input" }, { 8, 3, "the first window ends before the input" },
        { 11, 7, "the last window begins behind the input" }, { 12, 9, "the last window begins behind the input" },
        { 13, 5, "the output's channels are no multiple of the input's" },
        { 3, 1 << 30, "a sum has too many terms" },
        { 7, 4, NULL }, { 8, 2, NULL }, { 11, 6, NULL }, { 12, 8, NULL },
    };
    static const int32_t good[14] = { 10, 7, 4, 3, 3, 2, 1, 1, 1, 2, 1, 5, 7, 8 };
    int32_t fields[14], multipliers[2] = { 1 << 30, INT32_MAX }, shifts[2] = { 30, -31 };
    int8_t weight = 1;
    nn_tiny_weights w = { NULL, NULL, NULL, NULL, 1 };
    nn_tiny_window window;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(fields, good, sizeof fields);
        memcpy(&window, fields, sizeof window);
        assert_says(nn_tiny_check_window(&window, 1, 1), NULL);
        fields[wrong[i].field] = wrong[i].value;
        memcpy(&window, fields, sizeof window);
        assert_says(nn_tiny_check_window(&window, 1, 1), wrong[i].text);
    }
    memcpy(&window, good, sizeof window);
    window.in_channels = 65536 / 9 + 1;
    assert_says(nn_tiny_check_window(&window, 0, 1), "a sum has too many terms");
    assert_says(nn_tiny_check_window(&window, 0, 2), NULL);
    for (i = 0; i < 400; i++) {     // what the other tests run is allowed
        make_case(i % 2 ? TINY_CONV2D : TINY_DEPTHWISE, 1 + (int32_t)i / 2 % 2, (int)i);
        assert_says(nn_tiny_check_window(&c.window, c.op == TINY_DEPTHWISE, c.bytes), NULL);
        assert_says(nn_tiny_check_weights(&c.weights, c.window.out_channels, c.bytes), NULL);
    }
    assert_says(nn_tiny_check_weights(&w, 2, 1), "an array is missing");
    w.weights = &weight;
    w.multipliers = multipliers;
    w.shifts = shifts;
    assert_says(nn_tiny_check_weights(&w, 2, 1), NULL);
    assert_says(nn_tiny_check_weights(&w, 2, 2), "a shift is out of range");
    shifts[1] = -32;
    assert_says(nn_tiny_check_weights(&w, 2, 1), "a shift is out of range");
    w.per_channel = 0;
    assert_says(nn_tiny_check_weights(&w, 2, 1), NULL);
    multipliers[0] = (1 << 30) - 1;
    assert_says(nn_tiny_check_weights(&w, 2, 1), "a multiplier is not 0, nor 2^30 .. 2^31 - 1");
}

static void checks_of_w4_say_what_is_wrong(void **state) {
    nn_tiny_window w = { 1, 1, 8192, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 2 };
    int i;
    (void)state;
    assert_says(nn_tiny_check_window_w4(&w, 0), NULL);
    w.in_channels++;
    assert_says(nn_tiny_check_window_w4(&w, 0), "a sum has too many terms");
    assert_says(nn_tiny_check_window(&w, 0, 1), NULL);
    w.in_channels = 0;
    assert_says(nn_tiny_check_window_w4(&w, 0), "the input has no elements");
    for (i = 0; i < 300; i++) {
        int32_t K, N;
        tiny_make_w4(&c, tiny_ops_w4[i % 3], (uint64_t)i);
        N = c.op == TINY_LINEAR ? c.N : c.window.out_channels;
        K = c.op == TINY_LINEAR ? c.K : c.window.height * c.window.width * (c.op == TINY_CONV2D ? c.window.in_channels : 1);
        assert_says(nn_tiny_check_weights_w4(&c.weights_w4, N, K), NULL);
        c.factors[N * ((K + 31) / 32) - 1] = -1;
        assert_says(nn_tiny_check_weights_w4(&c.weights_w4, N, K), "a factor is below 0");
    }
    c.weights_w4.factors = NULL;
    assert_says(nn_tiny_check_weights_w4(&c.weights_w4, 1, 1), "an array is missing");
    c.weights_w4.packed.weights = NULL;
    assert_says(nn_tiny_check_weights_w4(&c.weights_w4, 1, 1), "an array is missing");
}

// -- rows --

// An image as a ring of `rows` rows with a gap behind each, into which rows are put as they are needed.
typedef struct ring {
    unsigned char *at;
    int32_t rows, row_bytes, pitch, shift, made;
} ring;

static ring make_ring(int32_t rows, int32_t row_bytes) {
    ring r = { NULL, rows, row_bytes, row_bytes + tiny_pick(&c, 0, 3) * 2, tiny_pick(&c, 0, rows - 1), 0 };
    r.at = (unsigned char *)make(rows * r.pitch, 1);
    return r;
}

static unsigned char *ring_row(const ring *r, int32_t row) { return r->at + (row + r->shift) % r->rows * r->pitch; }

static nn_tiny_in ring_in(const ring *r) {
    nn_tiny_in x = { NULL, r->pitch, r->rows, r->shift };
    x.at = r->at;
    return x;
}

static nn_tiny_out ring_out(const ring *r) {
    nn_tiny_out x = { r->at, r->pitch, r->rows, r->shift };
    return x;
}

// Rows up to `end` of an image of which the ring keeps the last ones.
static void take_rows(ring *r, const void *image_of, int32_t end) {
    for (; r->made < end; r->made++)
        memcpy(ring_row(r, r->made), (const unsigned char *)image_of + r->made * r->row_bytes, (size_t)r->row_bytes);
}

static void run_rows_w4(const nn_tiny_out *out, const nn_tiny_in *a, int32_t first, int32_t count) {
    if (c.op == TINY_CONV2D) nn_tiny_conv2d_w4_rows(out, a, &c.window, &c.weights_w4, &c.to, first, count);
    else if (c.op == TINY_DEPTHWISE) nn_tiny_depthwise_w4_rows(out, a, &c.window, &c.weights_w4, &c.to, first, count);
    else nn_tiny_linear_w4_rows(out, a, &c.weights_w4, &c.to, c.K, c.N, first, count);
}

static void run_rows(const nn_tiny_out *out, const nn_tiny_in *a, const nn_tiny_in *b, int32_t n, int32_t first, int32_t count) {
    int wide = c.bytes == 2;
    if (c.is_w4) {
        run_rows_w4(out, a, first, count);
        return;
    }
    switch (c.op) {
    case TINY_CONV2D: (wide ? nn_tiny_conv2d_i16_rows : nn_tiny_conv2d_i8_rows)(out, a, &c.window, &c.weights, &c.to, first, count); break;
    case TINY_DEPTHWISE:
        (wide ? nn_tiny_depthwise_i16_rows : nn_tiny_depthwise_i8_rows)(out, a, &c.window, &c.weights, &c.to, first, count);
        break;
    case TINY_LINEAR:
        (wide ? nn_tiny_linear_i16_rows : nn_tiny_linear_i8_rows)(out, a, &c.weights, &c.to, c.K, c.N, first, count);
        break;
    case TINY_AVGPOOL: (wide ? nn_tiny_avgpool_i16_rows : nn_tiny_avgpool_i8_rows)(out, a, &c.window, &c.to, first, count); break;
    case TINY_MAXPOOL: (wide ? nn_tiny_maxpool_i16_rows : nn_tiny_maxpool_i8_rows)(out, a, &c.window, &c.to, first, count); break;
    case TINY_ADD: (wide ? nn_tiny_add_i16_rows : nn_tiny_add_i8_rows)(out, a, b, n, &c.pair, first, count); break;
    case TINY_MUL: (wide ? nn_tiny_mul_i16_rows : nn_tiny_mul_i8_rows)(out, a, b, n, &c.pair, first, count); break;
    case TINY_SOFTMAX:
        if (wide) nn_tiny_softmax_i16_rows(out, a, 1, n, &c.softmax, c.exp_table, c.reciprocal_table, first, count);
        else nn_tiny_softmax_i8_rows(out, a, 1, n, &c.softmax, first, count);
        break;
    case TINY_OPS: break;
    }
}

// A whole case by calls for some rows, its input and output in rings as small as they may be.
static void check_rows(const void *whole) {
    const nn_tiny_window *w = &c.window;
    int is_window = c.op <= TINY_DEPTHWISE || c.op == TINY_AVGPOOL || c.op == TINY_MAXPOOL;
    int32_t most = tiny_pick(&c, 1, 3), in_rows = c.R, out_rows = c.R, reach = 1, stride = 1, pad = 0, first = 0, count, y;
    int32_t in_bytes, out_bytes;
    ring a, b, out;
    nn_tiny_in in_a, in_b;
    nn_tiny_out to;
    if (c.op == TINY_ADD || c.op == TINY_MUL) in_rows = out_rows = c.N % 3 ? 1 : 3;
    if (is_window) {
        in_rows = w->in_height;
        out_rows = w->out_height;
        stride = w->stride_y;
        pad = w->pad_top;
        reach = (w->height - 1) * w->dilation_y + 1;
    }
    in_bytes = c.in_count / in_rows * c.bytes;
    out_bytes = c.out_count / out_rows * c.bytes;
    a = make_ring((most - 1) * stride + reach, in_bytes);
    b = make_ring(most, in_bytes);
    out = make_ring(most, out_bytes);
    in_a = ring_in(&a);
    in_b = ring_in(&b);
    to = ring_out(&out);
    for (; first < out_rows; first += count) {
        int32_t end;
        count = tiny_pick(&c, 1, most);
        if (count > out_rows - first) count = out_rows - first;
        end = (first + count - 1) * stride - pad + reach;
        take_rows(&a, c.a, end < in_rows ? end : in_rows);
        take_rows(&b, c.b, first + count < in_rows ? first + count : in_rows);
        run_rows(&to, &in_a, &in_b, in_bytes / c.bytes, first, count);
        for (y = first; y < first + count; y++)
            if (memcmp(ring_row(&out, y), (const unsigned char *)whole + y * out_bytes, (size_t)out_bytes) != 0)
                fail_msg("op %d, %d bytes, seed %llu: row %d differs", (int)c.op, (int)c.bytes, (unsigned long long)c.seed, (int)y);
    }
    free(a.at);
    free(b.at);
    free(out.at);
}

static void rows_of_rings_have_the_bits_of_whole_images(void **state) {
    int op, i;
    int32_t bytes;
    (void)state;
    for (op = 0; op < TINY_OPS; op++)
        for (bytes = 1; bytes <= 2; bytes++)
            for (i = 0; i < scaled(500); i++) {
                void *whole;
                make_case((tiny_op)op, bytes, i);
                whole = make(c.out_count, bytes);
                tiny_run_case(&c, whole);
                check_rows(whole);
                free(whole);
            }
}

static void rows_of_w4_have_the_bits_of_whole_images(void **state) {
    int op, i;
    (void)state;
    for (op = 0; op < TINY_W4_OPS; op++)
        for (i = 0; i < scaled(500); i++) {
            void *whole;
            tiny_make_w4(&c, tiny_ops_w4[op], (uint64_t)i + 500000);
            whole = make(c.out_count, 1);
            tiny_run_case(&c, whole);
            check_rows(whole);
            free(whole);
        }
}

static void functions_of_i16_by_rows_and_in_place(void **state) {
    static const nn_tiny_curve curve = { 20000, 14 };
    static const nn_tiny_hardswish bend = { 1500000000, 1, 1 << 30, -13 };
    static int16_t rows_made[WORDS], own[WORDS];
    nn_tiny_in in = nn_tiny_whole_in(words, 2 * 4096);
    nn_tiny_out out = nn_tiny_whole_out(rows_made, 2 * 4096);
    uint16_t table[256];
    int32_t k, first;
    (void)state;
    nn_int16_fill_sigmoid(table, sigmoid_of);
    make_words();
    for (k = 0; k < 3; k++) {
        memset(rows_made, 0, sizeof rows_made);
        memcpy(own, words, sizeof own);
        if (k < 2) run_curve(made, words, WORDS, &curve, table, k);
        else nn_tiny_hardswish_i16(made, words, WORDS, &bend);
        if (k < 2) run_curve(own, own, WORDS, &curve, table, k);
        else nn_tiny_hardswish_i16(own, own, WORDS, &bend);
        for (first = 0; first < 16; first += 2) {
            if (k == 0) nn_tiny_sigmoid_i16_rows(&out, &in, 4096, &curve, table, first, 2);
            else if (k == 1) nn_tiny_tanh_i16_rows(&out, &in, 4096, &curve, table, first, 2);
            else nn_tiny_hardswish_i16_rows(&out, &in, 4096, &bend, first, 2);
        }
        assert_memory_equal(made, rows_made, sizeof made);
        assert_memory_equal(made, own, sizeof made);
    }
}

// The kernels without cases of their own.
static void rows_of_other_kernels_have_the_bits_of_whole_images(void **state) {
    int i;
    (void)state;
    for (i = 0; i < scaled(200); i++) {
        int8_t whole[4096], part[4096], table[256];
        float floats[2048], float_rows[2048];
        int32_t n = 1 + i % 40, rows = 1 + i % 5, k, first, inner = 1 + i % 7;
        nn_tiny_in in;
        nn_tiny_out out;
        nn_tiny_window w;
        make_case(TINY_CONV2D, 1, i);
        for (k = 0; k < 256; k++) table[k] = (int8_t)tiny_pick(&c, -128, 127);
        tiny_fill(&c, c.a, 1000, 1, -128, 127);
        in = nn_tiny_whole_in(c.a, n);
        out = nn_tiny_whole_out(part, n);
        nn_tiny_lookup_i8(whole, (const int8_t *)c.a, n * rows, table);
        for (first = 0; first < rows; first += 2) nn_tiny_lookup_i8_rows(&out, &in, n, table, first, rows - first < 2 ? 1 : 2);
        assert_memory_equal(whole, part, (size_t)(n * rows));

        nn_tiny_scale_i8(whole, (const int8_t *)c.a, n * rows, 1 << 30, 0, &c.to);
        for (first = 0; first < rows; first++) nn_tiny_scale_i8_rows(&out, &in, n, 1 << 30, 0, &c.to, first, 1);
        assert_memory_equal(whole, part, (size_t)(n * rows));

        nn_tiny_dequantize_i8(floats, (const int8_t *)c.a, n * rows, 0.25f, 3);
        out = nn_tiny_whole_out(float_rows, n * (int32_t)sizeof(float));
        nn_tiny_dequantize_i8_rows(&out, &in, n, 0.25f, 3, 0, rows);
        assert_memory_equal(floats, float_rows, (size_t)(n * rows) * sizeof(float));
        in = nn_tiny_whole_in(floats, n * (int32_t)sizeof(float));
        out = nn_tiny_whole_out(part, n);
        nn_tiny_quantize_i8(whole, floats, n * rows, 0.5f, &c.to);
        nn_tiny_quantize_i8_rows(&out, &in, n, 0.5f, &c.to, 0, rows);
        assert_memory_equal(whole, part, (size_t)(n * rows));

        in = nn_tiny_whole_in(c.a, n * inner);
        out = nn_tiny_whole_out(part, n * (inner + 2));
        memset(whole, 0, sizeof whole);
        memset(part, 0, sizeof part);
        nn_tiny_concat_i8(whole, (const int8_t *)c.a, n * rows, inner, inner + 2, 1, 1600000000, 0, &c.to);
        for (first = 0; first < rows; first++)
            nn_tiny_concat_i8_rows(&out, &in, n, inner, inner + 2, 1, 1600000000, 0, &c.to, first, 1);
        assert_memory_equal(whole, part, (size_t)(n * rows * (inner + 2)));

        memset(&w, 0, sizeof w);
        w.in_height = rows;
        w.in_width = n;
        w.in_channels = w.out_channels = inner;
        w.pad_top = i % 2;
        w.pad_left = i % 3;
        w.out_height = rows + w.pad_top + 1;
        w.out_width = n + w.pad_left + i % 2;
        out = nn_tiny_whole_out(part, w.out_width * inner);
        nn_tiny_pad_i8(whole, (const int8_t *)c.a, &w, 7);
        for (first = 0; first < w.out_height; first++) nn_tiny_pad_i8_rows(&out, &in, &w, 7, first, 1);
        assert_memory_equal(whole, part, (size_t)(w.out_height * w.out_width * inner));

        out = nn_tiny_whole_out(part, 2 * n * inner);
        nn_tiny_upsample(whole, c.a, rows, n, inner, 1, 2);
        for (first = 0; first < rows; first++) nn_tiny_upsample_rows(&out, &in, n, inner, 1, 2, first, 1);
        assert_memory_equal(whole, part, (size_t)(2 * n * rows * inner));

        out = nn_tiny_whole_out(part, inner);
        nn_tiny_gavgpool_i8(whole, (const int8_t *)c.a, rows * n, inner, 1 << 30, -3, &c.to);
        nn_tiny_gavgpool_i8_rows(&out, &in, rows, n, inner, 1 << 30, -3, &c.to, 0, 1);
        assert_memory_equal(whole, part, (size_t)inner);
        memset(part, 0x5A, sizeof part);
        nn_tiny_gavgpool_i8_rows(&out, &in, rows, n, inner, 1 << 30, -3, &c.to, 0, 0);
        for (k = 0; k < inner; k++) assert_int_equal(part[k], 0x5A);
    }
}

static void no_rows_write_nothing(void **state) {
    int op;
    int32_t bytes;
    (void)state;
    for (op = 0; op < TINY_OPS; op++)
        for (bytes = 1; bytes <= 2; bytes++) {
            static int16_t out[64];
            nn_tiny_in in;
            nn_tiny_out to = nn_tiny_whole_out(out, 2);
            make_case((tiny_op)op, bytes, 3);
            in = nn_tiny_whole_in(c.a, 2);
            run_rows(&to, &in, &in, 1, 0, 0);
            assert_int_equal(out[0], 0);
        }
}

static void elementwise_kernels_may_overwrite_an_input(void **state) {
    static const tiny_op ops[] = { TINY_ADD, TINY_MUL, TINY_SOFTMAX };
    size_t k;
    int32_t bytes;
    int i;
    (void)state;
    for (k = 0; k < 3; k++)
        for (bytes = 1; bytes <= 2; bytes++)
            for (i = 0; i < scaled(100); i++) {
                void *out;
                make_case(ops[k], bytes, i);
                out = make(c.out_count, bytes);
                tiny_run_case(&c, out);
                tiny_run_case(&c, c.a);
                assert_memory_equal(out, c.a, (size_t)(c.out_count * bytes));
                free(out);
            }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_cmsis_nn),
        cmocka_unit_test(cases_reach_the_inside_and_both_ends),
        cmocka_unit_test(conv2d_is_the_sum_over_a_padded_image),
        cmocka_unit_test(depthwise_is_the_sum_over_a_padded_image),
        cmocka_unit_test(linear_is_the_plain_sum),
        cmocka_unit_test(w4_is_the_sum_of_groups),
        cmocka_unit_test(w4_of_every_length),
        cmocka_unit_test(w4_of_many_taps),
        cmocka_unit_test(longest_sums_of_w4_fit),
        cmocka_unit_test(bits_of_w4_are_those_of_other_machines),
        cmocka_unit_test(avgpool_is_the_mean_of_what_is_inside),
        cmocka_unit_test(maxpool_is_the_most_of_what_is_inside),
        cmocka_unit_test(gavgpool_is_the_scaled_sum),
        cmocka_unit_test(add_is_three_scalings),
        cmocka_unit_test(mul_is_a_scaled_product),
        cmocka_unit_test(concat_scales_each_input_to_its_channels),
        cmocka_unit_test(lookups_read_tables),
        cmocka_unit_test(tables_of_int16_are_those_of_others),
        cmocka_unit_test(sigmoid_and_tanh_i16_are_those_of_tensorflow_lite),
        cmocka_unit_test(sigmoid_and_tanh_i16_are_near_the_real_ones),
        cmocka_unit_test(hardswish_i16_is_the_nearest_integer),
        cmocka_unit_test(floats_come_back_within_half_a_step),
        cmocka_unit_test(moves_put_pixels_where_they_belong),
        cmocka_unit_test(softmax_i8_is_within_a_step_of_the_real_one),
        cmocka_unit_test(softmax_i8_ignores_what_is_below_the_least),
        cmocka_unit_test(softmax_i8_of_very_many_classes_is_nothing_for_each),
        cmocka_unit_test(softmax_i16_is_near_the_real_one),
        cmocka_unit_test(scale_rounds_as_is_defined),
        cmocka_unit_test(scale_of_halves_goes_away_from_zero),
        cmocka_unit_test(wide_scale_rounds_as_is_defined),
        cmocka_unit_test(longest_sums_fit),
        cmocka_unit_test(checks_say_what_is_wrong),
        cmocka_unit_test(checks_of_w4_say_what_is_wrong),
        cmocka_unit_test(rows_of_rings_have_the_bits_of_whole_images),
        cmocka_unit_test(rows_of_w4_have_the_bits_of_whole_images),
        cmocka_unit_test(rows_of_other_kernels_have_the_bits_of_whole_images),
        cmocka_unit_test(functions_of_i16_by_rows_and_in_place),
        cmocka_unit_test(no_rows_write_nothing),
        cmocka_unit_test(elementwise_kernels_may_overwrite_an_input),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
