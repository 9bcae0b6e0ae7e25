// Tests of examples/nn.h: every kernel against a plain reference or finite differences, in double.
//
//     gcc -std=c11 -O2 -I. -Iexamples tests/test_nn.c -lcmocka -lm -o test_nn && ./test_nn
//
// (-std=c11 implies -ffp-contract=off for gcc; clang wants it said where the machine can fuse.)
//
// How a backward is checked. With random weights w, loss = sum_i w_i out_i is one number. Run
// backward with dout = w; then the gradient of every input x must be the slope of the loss,
// (loss(x + h) - loss(x - h)) / 2h. Sum and quotient are taken in double; out itself is float, so
// h is large (1e-2), and the tolerance is 1e-3 relative plus 5e-4 absolute on gradients near one.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn.h"
#include "support/walks.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

// -- helpers --

static void fill_random(float *x, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) x[i] = nn_uniform(seed, i) * 2.0f - 1.0f;
}

// A block of exactly n floats: the sanitizers see a step outside.
static float *make(size_t n, uint64_t seed) {
    float *x = (float *)malloc(n * sizeof(float));
    assert_non_null(x);
    fill_random(x, n, seed);
    return x;
}

static float *make_zero(size_t n) {
    float *x = (float *)calloc(n, sizeof(float));
    assert_non_null(x);
    return x;
}

static void assert_same_bits(const void *a, const void *b, size_t bytes) {
    assert_memory_equal(a, b, bytes);
}

static void assert_near(double actual, double expected, double relative, double absolute,
                        const char *what, size_t i) {
    double error = fabs(actual - expected);
    if (!(error <= absolute + relative * fabs(expected))) {  // a NaN fails too
        fail_msg("%s[%zu] is %.9g, expected %.9g", what, i, actual, expected);
    }
}

static void assert_all_near(const float *actual, const double *expected, size_t n, double tolerance,
                            const char *what) {
    for (size_t i = 0; i < n; i++) {
        assert_near(actual[i], expected[i], tolerance, tolerance, what, i);
    }
}

// A forward to differentiate: reads what `ctx` holds, writes out.
typedef void (*forward_fn)(void *ctx, float *out);

static double weighted_sum(forward_fn forward, void *ctx, float *out, const float *w, size_t n) {
    forward(ctx, out);
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)w[i] * (double)out[i];
    return sum;
}

// Compare dx (x_n) with central differences of sum(w out) over each element of x.
// With SAMPLE=n in the environment every n-th element, for emulators.
static void check_gradient(forward_fn forward, void *ctx, float *x, const float *dx, size_t x_n,
                           const float *w, size_t out_n, const char *what) {
    float *out = make_zero(out_n);
    const size_t step = (size_t)thinned();
    for (size_t i = 0; i < x_n; i += step) {
        const float before = x[i], h = 1e-2f;
        volatile float above = before + h, below = before - h;
        x[i] = above;
        double plus = weighted_sum(forward, ctx, out, w, out_n);
        x[i] = below;
        double minus = weighted_sum(forward, ctx, out, w, out_n);
        x[i] = before;
        double slope = (plus - minus) / ((double)above - (double)below);
        assert_near(dx[i], slope, 1e-3, 5e-4, what, i);
    }
    free(out);
}

// `twice` holds the gradient after two equal calls from zero, `once` after one.
static void assert_doubled(const float *twice, const float *once, size_t n, const char *what) {
    double size = 0.0;
    for (size_t i = 0; i < n; i++) {
        assert_near(twice[i], 2.0 * (double)once[i], 1e-5, 1e-5, what, i);
        size += fabs((double)once[i]);
    }
    assert_true(size > 0.0);  // doubling zeros would prove nothing
}

// -- numbers --

static void hash_is_a_pure_function_of_seed_and_index(void **state) {
    (void)state;
    assert_true(nn_hash(1, 2) == nn_hash(1, 2));
    assert_true(nn_hash(1, 2) != nn_hash(2, 1));
    assert_true(nn_hash(1, 0) != nn_hash(0, 1));
    for (uint64_t i = 0; i < 1000; i++) {  // one changed bit changes about half the bits
        uint64_t changed = nn_hash(7, i) ^ nn_hash(7, i ^ 1), seed = nn_hash(7, i) ^ nn_hash(6, i);
        int bits = 0, seed_bits = 0;
        for (int b = 0; b < 64; b++) {
            bits += (int)(changed >> b & 1);
            seed_bits += (int)(seed >> b & 1);
        }
        assert_in_range(bits, 12, 52);
        assert_in_range(seed_bits, 12, 52);
    }
}

static void uniform_is_in_zero_to_one_and_flat(void **state) {
    (void)state;
    int bucket[10] = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        float u = nn_uniform(3, i);
        assert_true(u >= 0.0f && u < 1.0f);
        bucket[(int)(u * 10.0f)]++;
    }
    for (int b = 0; b < 10; b++) assert_in_range(bucket[b], 9600, 10400);
}

static void normal_has_mean_zero_and_variance_one(void **state) {
    (void)state;
    enum { N = 200000 };
    double sum = 0.0, squares = 0.0, fourth = 0.0;
    int within = 0;
    for (uint64_t i = 0; i < N; i++) {
        double x = (double)nn_normal(11, i);
        assert_true(fabs(x) < 6.0);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        within += fabs(x) < 1.0;
    }
    assert_near(sum / N, 0.0, 0.0, 0.01, "mean", 0);
    assert_near(squares / N, 1.0, 0.0, 0.01, "variance", 0);
    assert_near(fourth / N, 3.0 - 0.1, 0.0, 0.05, "kurtosis", 0);  // a sum of n: 3 - 1.2 / n
    assert_near((double)within / N, 0.683, 0.0, 0.01, "within one deviation", 0);
}

static void fill_normal_scales_and_repeats(void **state) {
    (void)state;
    float a[64], b[64], c[64];
    nn_fill_normal(a, 64, 0.02f, 5);
    nn_fill_normal(b, 64, 0.02f, 5);
    nn_fill_normal(c, 64, 0.02f, 6);
    assert_same_bits(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    for (size_t i = 0; i < 64; i++) assert_true(a[i] == 0.02f * nn_normal(5, i));
    nn_fill(a, 64, 1.5f);
    for (size_t i = 0; i < 64; i++) assert_true(a[i] == 1.5f);
}

// These bits are promised on every machine: a seed must give the same network everywhere.
static void random_numbers_never_change(void **state) {
    (void)state;
    assert_true(nn_hash(0, 0) == 0xA706DD2F4D197E6Fu);
    assert_true(nn_hash(42, 1000) == 0xB1FC8C824D524899u);
    assert_true(nn_uniform(42, 7) == 12326563.0f / 16777216.0f);
    assert_true(nn_normal(42, 7) == 94612.0f / 65536.0f);
}

static void exp_is_accurate_over_its_range(void **state) {
    (void)state;
    double worst = 0.0;
    for (int i = -87000; i <= 87000; i++) {
        float x = (float)i / 1000.0f;
        double exact = exp((double)x), error = fabs((double)nn_exp(x) - exact) / exact;
        worst = error > worst ? error : worst;
    }
    assert_true(worst < 1.3e-7);
    assert_true(nn_exp(0.0f) == 1.0f);
    assert_true(nn_exp(-0.0f) == 1.0f);
}

static void exp_clamps_and_keeps_nan(void **state) {
    (void)state;
    // volatile: what a compiler folds it does not fuse, and that may differ in the last bit
    volatile float below[] = {-87.0f, -88.0f, -1e30f, -INFINITY};
    volatile float above[] = {87.0f, 88.0f, 1e30f, INFINITY};
    volatile float nan[] = {NAN, -NAN};
    assert_true(nn_exp(below[0]) >= FLT_MIN && nn_exp(above[0]) <= FLT_MAX);
    for (size_t i = 1; i < COUNT(below); i++) assert_true(nn_exp(below[i]) == nn_exp(below[0]));
    for (size_t i = 1; i < COUNT(above); i++) assert_true(nn_exp(above[i]) == nn_exp(above[0]));
    for (size_t i = 0; i < COUNT(nan); i++) assert_true(isnan(nn_exp(nan[i])));
}

static void softmax_of_huge_values_is_finite_and_sums_to_one(void **state) {
    (void)state;
    float x[4] = {1e30f, -1e30f, 1e30f, 0.0f};
    nn_softmax(x, 4, 1.0f);
    assert_true(x[0] == 0.5f && x[2] == 0.5f && x[1] < 1e-30f && x[3] < 1e-30f);
    float one[1] = {-3e38f};
    nn_softmax(one, 1, 100.0f);
    assert_true(one[0] == 1.0f);
    float y[3] = {1.0f, 2.0f, 4.0f};
    double sum = exp(0.5) + exp(1.0) + exp(2.0);
    nn_softmax(y, 3, 0.5f);
    double expected[3] = {exp(0.5) / sum, exp(1.0) / sum, exp(2.0) / sum};
    assert_all_near(y, expected, 3, 1e-6, "softmax");
}

// -- matmul --

// Sizes around every block edge: 4 rows, steps of 16, blocks of 64 columns and 128 deep.
static const size_t matmul_shapes[][3] = {
    {1, 1, 1},    {2, 3, 5},    {4, 16, 2},    {5, 17, 3},  {3, 64, 128},
    {7, 65, 129}, {8, 63, 127}, {9, 130, 257}, {1, 200, 1}, {33, 31, 300},
};

static void matmul_equals_a_triple_loop_for_every_transpose(void **state) {
    (void)state;
    for (size_t shape = 0; shape < COUNT(matmul_shapes); shape++) {
        const size_t *s = matmul_shapes[shape];
        size_t M = s[0], N = s[1], K = s[2];
        for (int variant = 0; variant < 4; variant++) {
            float *a = make(M * K, 1), *b = make(K * N, 2), *c = make(M * N, 3);
            nn_view av = variant & 1 ? nn_transposed(a, M) : nn_rows(a, K);
            nn_view bv = variant & 2 ? nn_transposed(b, K) : nn_rows(b, N);
            double *expected = (double *)calloc(M * N, sizeof(double));
            assert_non_null(expected);
            for (size_t i = 0; i < M; i++) {
                for (size_t j = 0; j < N; j++) {
                    double sum = (double)c[i * N + j];
                    for (size_t k = 0; k < K; k++) {
                        float left = variant & 1 ? a[k * M + i] : a[i * K + k];
                        float right = variant & 2 ? b[j * K + k] : b[k * N + j];
                        sum += (double)left * (double)right;
                    }
                    expected[i * N + j] = sum;
                }
            }
            nn_matmul_add(c, N, av, bv, M, N, K);
            assert_all_near(c, expected, M * N, 2e-5, "c");
            free(a), free(b), free(c), free(expected);
        }
    }
}

// The same bits as the plain loop, with or without fused multiply-adds: whichever this build uses.
static void matmul_takes_every_sum_in_order(void **state) {
    (void)state;
    size_t M = 6, N = 70, K = 259, bytes = M * N * sizeof(float);
    float *a = make(M * K, 1), *b = make(K * N, 2), *c = make(M * N, 3);
    float *plain = make(M * N, 3), *fused = make(M * N, 3);
    nn_matmul_add(c, N, nn_rows(a, K), nn_rows(b, N), M, N, K);
    for (size_t i = 0; i < M; i++) {
        for (size_t k = 0; k < K; k++) {
            for (size_t j = 0; j < N; j++) {
                volatile float product = a[i * K + k] * b[k * N + j];
                plain[i * N + j] += product;
                fused[i * N + j] = fmaf(a[i * K + k], b[k * N + j], fused[i * N + j]);
            }
        }
    }
    assert_memory_not_equal(plain, fused, bytes);
    assert_true(memcmp(c, plain, bytes) == 0 || memcmp(c, fused, bytes) == 0);
    free(a), free(b), free(c), free(plain), free(fused);
}

static void matmul_leaves_the_columns_beside_c_alone(void **state) {
    (void)state;
    float a[5 * 3], b[3 * 6], c[5 * 10];
    fill_random(a, 15, 1);
    fill_random(b, 18, 2);
    nn_fill(c, 50, 9.0f);
    nn_matmul_add(c + 2, 10, nn_rows(a, 3), nn_rows(b, 6), 5, 6, 3);
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 10; j++) {
            assert_true((j >= 2 && j < 8) ? c[i * 10 + j] != 9.0f : c[i * 10 + j] == 9.0f);
        }
    }
}

static void matmul_of_an_empty_sum_changes_nothing(void **state) {
    (void)state;
    float c[6] = {1, 2, 3, 4, 5, 6}, before[6] = {1, 2, 3, 4, 5, 6};
    nn_matmul_add(c, 3, nn_rows(c, 0), nn_rows(c, 3), 2, 3, 0);
    assert_same_bits(c, before, sizeof c);
}

// -- embed --

enum { EB = 2, ET = 3, EC = 5, EV = 4 };

typedef struct embed_ctx {
    int32_t tokens[EB * ET];
    float wte[EV * EC], wpe[ET * EC];
} embed_ctx;

static void embed_run(void *ctx, float *out) {
    embed_ctx *e = (embed_ctx *)ctx;
    nn_embed_forward(out, e->tokens, e->wte, e->wpe, EB, ET, EC);
}

static embed_ctx make_embed(void) {
    embed_ctx e;
    const int32_t tokens[EB * ET] = {3, 0, 3, 1, 3, 0};  // token 2 never, token 3 three times
    memcpy(e.tokens, tokens, sizeof tokens);
    fill_random(e.wte, EV * EC, 1);
    fill_random(e.wpe, ET * EC, 2);
    return e;
}

static void embed_adds_token_and_position(void **state) {
    (void)state;
    embed_ctx e = make_embed();
    float out[EB * ET * EC];
    embed_run(&e, out);
    for (size_t r = 0; r < EB * ET; r++) {
        for (size_t c = 0; c < EC; c++) {
            assert_true(out[r * EC + c] ==
                        e.wte[(size_t)e.tokens[r] * EC + c] + e.wpe[r % ET * EC + c]);
        }
    }
}

static void embed_backward_matches_differences_and_accumulates(void **state) {
    (void)state;
    embed_ctx e = make_embed();
    float w[EB * ET * EC], dwte[EV * EC] = {0}, dwpe[ET * EC] = {0}, once[EV * EC], once_p[ET * EC];
    fill_random(w, EB * ET * EC, 3);
    nn_embed_backward(dwte, NULL, w, e.tokens, EB, ET, EC);
    nn_embed_backward(NULL, dwpe, w, e.tokens, EB, ET, EC);
    check_gradient(embed_run, &e, e.wte, dwte, EV * EC, w, EB * ET * EC, "dwte");
    check_gradient(embed_run, &e, e.wpe, dwpe, ET * EC, w, EB * ET * EC, "dwpe");
    for (size_t c = 0; c < EC; c++) assert_true(dwte[2 * EC + c] == 0.0f);
    memcpy(once, dwte, sizeof once);
    memcpy(once_p, dwpe, sizeof once_p);
    nn_embed_backward(dwte, dwpe, w, e.tokens, EB, ET, EC);
    assert_doubled(dwte, once, EV * EC, "dwte");
    assert_doubled(dwpe, once_p, ET * EC, "dwpe");
}

// Any rows of both gradients: tokens that come several times, positions, and a range that has some of either.
static void embed_gradients_by_rows_have_the_same_bits(void **state) {
    (void)state;
    embed_ctx e = make_embed();
    float w[EB * ET * EC], whole[(EV + ET) * EC] = {0};
    fill_random(w, EB * ET * EC, 3);
    nn_embed_backward(whole, whole + EV * EC, w, e.tokens, EB, ET, EC);
    for (size_t first = 0; first < EV + ET; first++) {
        for (size_t count = 1; first + count <= EV + ET; count++) {
            float rows[(EV + ET) * EC + 1] = {0};
            rows[count * EC] = 7.0f;  // behind the last row
            nn_embed_backward_rows(rows, w, e.tokens, EB, ET, EC, EV, first, count);
            assert_same_bits(rows, whole + first * EC, count * EC * sizeof(float));
            assert_true(rows[count * EC] == 7.0f);
        }
    }
}

// -- norm --

enum { NR = 4, NC = 7 };

typedef struct norm_ctx {
    float in[NR * NC], weight[NC], bias[NC];
} norm_ctx;

static void norm_run(void *ctx, float *out) {
    norm_ctx *x = (norm_ctx *)ctx;
    nn_norm_forward(out, NULL, x->in, x->weight, x->bias, NR, NC);
}

static norm_ctx make_norm(void) {
    norm_ctx x;
    fill_random(x.in, NR * NC, 1);
    for (size_t i = 0; i < NR * NC; i++) x.in[i] = x.in[i] * 2.0f + 0.5f;
    fill_random(x.weight, NC, 2);
    fill_random(x.bias, NC, 3);
    return x;
}

static void norm_rows_get_mean_zero_and_variance_one(void **state) {
    (void)state;
    norm_ctx x = make_norm();
    float out[NR * NC], saved[NR * 2];
    assert_int_equal(nn_norm_saved_bytes(NR), sizeof saved);
    nn_fill(x.weight, NC, 1.0f);
    nn_fill(x.bias, NC, 0.0f);
    nn_norm_forward(out, saved, x.in, x.weight, x.bias, NR, NC);
    for (size_t r = 0; r < NR; r++) {
        double mean = 0.0, variance = 0.0, in_mean = 0.0, in_variance = 0.0;
        for (size_t c = 0; c < NC; c++) mean += (double)out[r * NC + c] / NC;
        for (size_t c = 0; c < NC; c++) variance += pow((double)out[r * NC + c] - mean, 2) / NC;
        for (size_t c = 0; c < NC; c++) in_mean += (double)x.in[r * NC + c] / NC;
        for (size_t c = 0; c < NC; c++) {
            in_variance += pow((double)x.in[r * NC + c] - in_mean, 2) / NC;
        }
        assert_near(mean, 0.0, 0.0, 1e-6, "mean", r);
        assert_near(variance, 1.0, 0.0, 1e-4, "variance", r);
        assert_near(saved[r * 2], in_mean, 1e-5, 1e-6, "saved mean", r);
        assert_near(saved[r * 2 + 1], 1.0 / sqrt(in_variance + 1e-5), 1e-5, 0.0, "saved rstd", r);
    }
}

static void norm_of_a_constant_row_is_the_bias(void **state) {
    (void)state;
    float in[4] = {3, 3, 3, 3}, weight[4] = {1, 2, 3, 4}, bias[4] = {5, 6, 7, 8}, out[4];
    nn_norm_forward(out, NULL, in, weight, bias, 1, 4);
    assert_same_bits(out, bias, sizeof out);
}

static void norm_without_saved_has_the_same_bits(void **state) {
    (void)state;
    norm_ctx x = make_norm();
    float with[NR * NC], without[NR * NC], saved[NR * 2];
    nn_norm_forward(with, saved, x.in, x.weight, x.bias, NR, NC);
    nn_norm_forward(without, NULL, x.in, x.weight, x.bias, NR, NC);
    assert_same_bits(with, without, sizeof with);
}

static void norm_backward_matches_differences_and_accumulates(void **state) {
    (void)state;
    norm_ctx x = make_norm();
    float out[NR * NC], saved[NR * 2], w[NR * NC];
    float din[NR * NC] = {0}, dweight[NC] = {0}, dbias[NC] = {0};
    float once[NR * NC], once_weight[NC], once_bias[NC];
    fill_random(w, NR * NC, 4);
    nn_norm_forward(out, saved, x.in, x.weight, x.bias, NR, NC);
    nn_norm_backward(din, NULL, NULL, w, saved, x.in, x.weight, NR, NC);
    nn_norm_backward(NULL, dweight, NULL, w, saved, x.in, x.weight, NR, NC);
    nn_norm_backward(NULL, NULL, dbias, w, saved, x.in, x.weight, NR, NC);
    check_gradient(norm_run, &x, x.in, din, NR * NC, w, NR * NC, "din");
    check_gradient(norm_run, &x, x.weight, dweight, NC, w, NR * NC, "dweight");
    check_gradient(norm_run, &x, x.bias, dbias, NC, w, NR * NC, "dbias");
    memcpy(once, din, sizeof once);
    memcpy(once_weight, dweight, sizeof once_weight);
    memcpy(once_bias, dbias, sizeof once_bias);
    nn_norm_backward(din, dweight, dbias, w, saved, x.in, x.weight, NR, NC);
    assert_doubled(din, once, NR * NC, "din");
    assert_doubled(dweight, once_weight, NC, "dweight");
    assert_doubled(dbias, once_bias, NC, "dbias");
}

// -- linear --

enum { LR = 6, LK = 5, LN = 19 };

typedef struct linear_ctx {
    float in[LR * LK], weight[LK * LN], bias[LN];
} linear_ctx;

static void linear_run(void *ctx, float *out) {
    linear_ctx *x = (linear_ctx *)ctx;
    nn_linear_forward(out, x->in, x->weight, x->bias, LR, LK, LN);
}

static linear_ctx make_linear(void) {
    linear_ctx x;
    fill_random(x.in, LR * LK, 1);
    fill_random(x.weight, LK * LN, 2);
    fill_random(x.bias, LN, 3);
    return x;
}

static void linear_is_in_times_weight_plus_bias(void **state) {
    (void)state;
    linear_ctx x = make_linear();
    float out[LR * LN], without[LR * LN];
    linear_run(&x, out);
    nn_linear_forward(without, x.in, x.weight, NULL, LR, LK, LN);
    for (size_t r = 0; r < LR; r++) {
        for (size_t j = 0; j < LN; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < LK; k++) {
                sum += (double)x.in[r * LK + k] * (double)x.weight[k * LN + j];
            }
            assert_near(without[r * LN + j], sum, 1e-6, 1e-6, "no bias", r * LN + j);
            assert_near(out[r * LN + j], sum + (double)x.bias[j], 1e-6, 1e-6, "out", r * LN + j);
        }
    }
}

static void linear_backward_matches_differences_and_accumulates(void **state) {
    (void)state;
    linear_ctx x = make_linear();
    float w[LR * LN], din[LR * LK] = {0}, dweight[LK * LN] = {0}, dbias[LN] = {0};
    float once[LR * LK], once_weight[LK * LN], once_bias[LN];
    fill_random(w, LR * LN, 4);
    // each switch alone; what a switch does not read may be NULL
    nn_linear_backward(din, NULL, NULL, w, NULL, x.weight, LR, LK, LN);
    nn_linear_backward(NULL, dweight, NULL, w, x.in, NULL, LR, LK, LN);
    nn_linear_backward(NULL, NULL, dbias, w, NULL, NULL, LR, LK, LN);
    check_gradient(linear_run, &x, x.in, din, LR * LK, w, LR * LN, "din");
    check_gradient(linear_run, &x, x.weight, dweight, LK * LN, w, LR * LN, "dweight");
    check_gradient(linear_run, &x, x.bias, dbias, LN, w, LR * LN, "dbias");
    memcpy(once, din, sizeof once);
    memcpy(once_weight, dweight, sizeof once_weight);
    memcpy(once_bias, dbias, sizeof once_bias);
    nn_linear_backward(din, dweight, dbias, w, x.in, x.weight, LR, LK, LN);
    assert_doubled(din, once, LR * LK, "din");
    assert_doubled(dweight, once_weight, LK * LN, "dweight");
    assert_doubled(dbias, once_bias, LN, "dbias");
}

// Any cut of the rows, at any odd place: micro-batches sum to the same bits as the whole batch.
static void linear_gradients_of_a_cut_batch_have_the_same_bits(void **state) {
    (void)state;
    size_t R = 301, K = 37, N = 70;
    float *in = make(R * K, 1), *dout = make(R * N, 2), *weight = make(K * N, 3);
    float *whole = make_zero(K * N), *whole_bias = make_zero(N), *whole_in = make_zero(R * K);
    nn_linear_backward(whole_in, whole, whole_bias, dout, in, weight, R, K, N);
    const size_t cuts[] = {1, 3, 64, 128, 150, 299};
    for (size_t cut = 0; cut < COUNT(cuts); cut++) {
        size_t first = cuts[cut];
        float *part = make_zero(K * N), *part_bias = make_zero(N), *part_in = make_zero(R * K);
        nn_linear_backward(part_in, part, part_bias, dout, in, weight, first, K, N);
        nn_linear_backward(part_in + first * K, part, part_bias, dout + first * N, in + first * K,
                           weight, R - first, K, N);
        assert_same_bits(part, whole, K * N * sizeof(float));
        assert_same_bits(part_bias, whole_bias, N * sizeof(float));
        assert_same_bits(part_in, whole_in, R * K * sizeof(float));
        free(part), free(part_bias), free(part_in);
    }
    free(in), free(dout), free(weight), free(whole), free(whole_bias), free(whole_in);
}

// Any rows of both gradients, from any row on: weights, the bias, and both; what is there is added to.
static void linear_gradients_by_rows_have_the_same_bits(void **state) {
    (void)state;
    enum { R = 131, K = 9, N = 70 };
    float *in = make(R * K, 1), *dout = make(R * N, 2), *whole = make((K + 1) * N, 3), *start = make((K + 1) * N, 3);
    nn_linear_backward(NULL, whole, whole + K * N, dout, in, NULL, R, K, N);
    for (size_t first = 0; first <= K; first++) {
        for (size_t count = 1; first + count <= K + 1; count++) {
            float *rows = make_zero((K + 1) * N + 1);
            memcpy(rows, start + first * N, count * N * sizeof(float));
            rows[count * N] = 7.0f;  // behind the last row
            nn_linear_backward_rows(rows, dout, in, R, K, N, first, count);
            assert_same_bits(rows, whole + first * N, count * N * sizeof(float));
            assert_true(rows[count * N] == 7.0f);
            free(rows);
        }
    }
    free(in), free(dout), free(whole), free(start);
}

// -- attention --

typedef struct attention_ctx {
    size_t B, T, C, NH;
    float *qkv, *scratch;
} attention_ctx;

static void attention_run(void *ctx, float *out) {
    attention_ctx *x = (attention_ctx *)ctx;
    nn_attention_forward(out, NULL, x->qkv, x->scratch, x->B, x->T, x->C, x->NH);
}

static attention_ctx make_attention(size_t B, size_t T, size_t C, size_t NH) {
    attention_ctx x = {B, T, C, NH, NULL, NULL};
    x.qkv = make(B * T * 3 * C, 1);
    x.scratch = make(nn_attention_scratch_bytes(T) / sizeof(float), 2);
    for (size_t i = 0; i < B * T * 3 * C; i++) x.qkv[i] *= 1.5f;
    return x;
}

static void free_attention(attention_ctx *x) { free(x->qkv), free(x->scratch); }

// T below, at and above the block of 32 queries; heads of 1, 2, 3 and 8 channels.
static const size_t attention_shapes[][4] = {
    {1, 1, 2, 1}, {2, 5, 6, 2}, {1, 32, 4, 2}, {1, 33, 8, 1}, {2, 70, 6, 3}, {1, 3, 3, 3},
};

static void attention_equals_the_formula(void **state) {
    (void)state;
    for (size_t shape = 0; shape < COUNT(attention_shapes); shape++) {
        const size_t *s = attention_shapes[shape];
        attention_ctx x = make_attention(s[0], s[1], s[2], s[3]);
        size_t B = x.B, T = x.T, C = x.C, NH = x.NH, HS = C / NH;
        float *out = make(B * T * C, 3);
        float *saved = make(nn_attention_saved_bytes(B, NH, T) / sizeof(float), 4);
        double *att = (double *)calloc(T, sizeof(double));
        assert_non_null(att);
        nn_attention_forward(out, saved, x.qkv, x.scratch, B, T, C, NH);
        for (size_t i = 0; i < B * NH * T; i++) {  // each query of each head
            size_t b = i / (NH * T), h = i / T % NH, t = i % T;
            double sum = 0.0;
            for (size_t key = 0; key <= t; key++) {
                double score = 0.0;
                for (size_t c = 0; c < HS; c++) {
                    score += (double)x.qkv[(b * T + t) * 3 * C + h * HS + c] *
                             (double)x.qkv[(b * T + key) * 3 * C + C + h * HS + c];
                }
                att[key] = exp(score / sqrt((double)HS));
                sum += att[key];
            }
            for (size_t key = 0; key < T; key++) {
                float found = saved[((b * NH + h) * T + t) * T + key];
                if (key > t) assert_true(found == 0.0f);
                else assert_near(found, att[key] / sum, 1e-5, 1e-6, "att", key);
            }
            for (size_t c = 0; c < HS; c++) {
                double value = 0.0;
                for (size_t key = 0; key <= t; key++) {
                    value += att[key] / sum *
                             (double)x.qkv[(b * T + key) * 3 * C + 2 * C + h * HS + c];
                }
                assert_near(out[(b * T + t) * C + h * HS + c], value, 1e-5, 1e-5, "out", c);
            }
        }
        free(out), free(saved), free(att);
        free_attention(&x);
    }
}

static void attention_never_reads_later_tokens(void **state) {
    (void)state;
    attention_ctx x = make_attention(1, 70, 6, 2);
    size_t T = x.T, C = x.C;
    float *before = make(T * C, 3), *after = make(T * C, 4);
    attention_run(&x, before);
    for (size_t cut = 1; cut < T; cut += 7) {  // change everything from token `cut` on
        for (size_t i = cut * 3 * C; i < T * 3 * C; i++) x.qkv[i] += 3.0f;
        attention_run(&x, after);
        assert_same_bits(before, after, cut * C * sizeof(float));
        assert_memory_not_equal(before + cut * C, after + cut * C, C * sizeof(float));
        for (size_t i = cut * 3 * C; i < T * 3 * C; i++) x.qkv[i] -= 3.0f;
        attention_run(&x, before);
    }
    free(before), free(after);
    free_attention(&x);
}

static void attention_gradient_of_early_outputs_is_zero_for_later_tokens(void **state) {
    (void)state;
    attention_ctx x = make_attention(1, 40, 4, 2);
    size_t T = x.T, C = x.C, cut = 10;
    float *out = make_zero(T * C), *dout = make_zero(T * C), *dqkv = make_zero(T * 3 * C);
    float *saved = make(nn_attention_saved_bytes(1, 2, T) / sizeof(float), 3);
    fill_random(dout, cut * C, 4);  // only the first tokens matter
    nn_attention_forward(out, saved, x.qkv, x.scratch, 1, T, C, 2);
    nn_attention_backward(dqkv, dout, saved, x.qkv, x.scratch, 1, T, C, 2);
    for (size_t i = cut * 3 * C; i < T * 3 * C; i++) assert_true(dqkv[i] == 0.0f);
    for (size_t i = 2 * C; i < 3 * C; i++) assert_true(dqkv[i] != 0.0f);  // v of token 0
    free(out), free(dout), free(dqkv), free(saved);
    free_attention(&x);
}

static void attention_without_saved_has_the_same_bits(void **state) {
    (void)state;
    for (size_t shape = 0; shape < COUNT(attention_shapes); shape++) {
        const size_t *s = attention_shapes[shape];
        attention_ctx x = make_attention(s[0], s[1], s[2], s[3]);
        size_t n = x.B * x.T * x.C;
        float *with = make(n, 3), *without = make(n, 4);
        float *saved = make(nn_attention_saved_bytes(x.B, x.NH, x.T) / sizeof(float), 5);
        nn_attention_forward(with, saved, x.qkv, x.scratch, x.B, x.T, x.C, x.NH);
        fill_random(x.scratch, nn_attention_scratch_bytes(x.T) / sizeof(float), 6);  // not state
        nn_attention_forward(without, NULL, x.qkv, x.scratch, x.B, x.T, x.C, x.NH);
        assert_same_bits(with, without, n * sizeof(float));
        free(with), free(without), free(saved);
        free_attention(&x);
    }
}

static void attention_of_a_sequence_does_not_depend_on_the_batch(void **state) {
    (void)state;
    attention_ctx x = make_attention(3, 37, 6, 2);
    size_t row = x.T * x.C;
    float *together = make(3 * row, 3), *alone = make(row, 4);
    attention_run(&x, together);
    nn_attention_forward(alone, NULL, x.qkv + 2 * row * 3, x.scratch, 1, x.T, x.C, x.NH);
    assert_same_bits(together + 2 * row, alone, row * sizeof(float));
    free(together), free(alone);
    free_attention(&x);
}

static void attention_backward_matches_differences_and_accumulates(void **state) {
    (void)state;
    for (size_t shape = 0; shape < COUNT(attention_shapes); shape++) {
        const size_t *s = attention_shapes[shape];
        attention_ctx x = make_attention(s[0], s[1], s[2], s[3]);
        size_t n = x.B * x.T * x.C;
        float *out = make(n, 3), *w = make(n, 4);
        float *dqkv = make_zero(3 * n), *once = make_zero(3 * n);
        float *saved = make(nn_attention_saved_bytes(x.B, x.NH, x.T) / sizeof(float), 5);
        nn_attention_forward(out, saved, x.qkv, x.scratch, x.B, x.T, x.C, x.NH);
        nn_attention_backward(dqkv, w, saved, x.qkv, x.scratch, x.B, x.T, x.C, x.NH);
        check_gradient(attention_run, &x, x.qkv, dqkv, 3 * n, w, n, "dqkv");
        memcpy(once, dqkv, 3 * n * sizeof(float));
        nn_attention_backward(dqkv, w, saved, x.qkv, x.scratch, x.B, x.T, x.C, x.NH);
        assert_doubled(dqkv, once, 3 * n, "dqkv");
        free(out), free(w), free(dqkv), free(once), free(saved);
        free_attention(&x);
    }
}

// -- gelu --

enum { GN = 41 };

static void gelu_run(void *ctx, float *out) { nn_gelu_forward(out, (const float *)ctx, GN); }

static void gelu_equals_its_tanh_form(void **state) {
    (void)state;
    float in[GN], out[GN];
    for (int i = 0; i < GN; i++) in[i] = (float)(i - 20) / 2.0f;  // -10 .. 10
    gelu_run(in, out);
    for (size_t i = 0; i < GN; i++) {
        double x = (double)in[i], inner = sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x);
        assert_near(out[i], 0.5 * x * (1.0 + tanh(inner)), 2e-6, 2e-7, "gelu", i);
    }
    assert_true(out[20] == 0.0f);
    float far[2] = {-1000.0f, 1000.0f}, far_out[2];
    nn_gelu_forward(far_out, far, 2);
    assert_true(far_out[0] <= 0.0f && far_out[0] > -1e-30f && far_out[1] == 1000.0f);
}

static void gelu_backward_matches_differences_and_accumulates(void **state) {
    (void)state;
    float in[GN], w[GN], din[GN] = {0}, once[GN];
    for (int i = 0; i < GN; i++) in[i] = (float)(i - 20) / 5.0f;
    fill_random(w, GN, 1);
    nn_gelu_backward(din, w, in, GN);
    check_gradient(gelu_run, in, in, din, GN, w, GN, "din");
    memcpy(once, din, sizeof once);
    nn_gelu_backward(din, w, in, GN);
    assert_doubled(din, once, GN, "din");
}

// -- add --

static void add_backward_gives_both_sides_the_gradient(void **state) {
    (void)state;
    float a[3] = {1, 2, 3}, b[3] = {10, 20, 30}, out[3], dout[3] = {5, 6, 7};
    float da[3] = {100, 100, 100}, db[3] = {0, 0, 0};
    nn_add_forward(out, a, b, 3);
    nn_add_backward(da, NULL, dout, 3);
    nn_add_backward(NULL, db, dout, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(out[i] == a[i] + b[i]);
        assert_true(da[i] == 100.0f + dout[i] && db[i] == dout[i]);
    }
    nn_add_backward(db, db, dout, 3);  // x + x: both contributions to one tensor
    for (size_t i = 0; i < 3; i++) assert_true(db[i] == 3.0f * dout[i]);
}

// -- dropout --

enum { DN = 50 };

static void dropout_run(void *ctx, float *out) {
    nn_dropout_forward(out, (const float *)ctx, DN, 0.4f, 77, 0);
}

static void dropout_keeps_the_ratio_asked_for(void **state) {
    (void)state;
    const float ratios[] = {0.0f, 0.1f, 0.5f, 0.9f};
    enum { N = 100000 };
    float *in = make(N, 1), *out = make(N, 2);
    nn_fill(in, N, 1.0f);
    for (size_t k = 0; k < COUNT(ratios); k++) {
        float p = ratios[k];
        size_t kept = 0;
        nn_dropout_forward(out, in, N, p, 1234, 0);
        for (size_t i = 0; i < N; i++) {
            assert_true(out[i] == 0.0f || out[i] == 1.0f / (1.0f - p));
            kept += out[i] != 0.0f;
        }
        assert_near((double)kept / N, 1.0 - (double)p, 0.0, 0.006, "kept", k);
    }
    free(in), free(out);
}

static void dropout_of_zero_copies_and_of_one_clears(void **state) {
    (void)state;
    float in[DN], out[DN], zero[DN] = {0}, din[DN] = {0};
    fill_random(in, DN, 1);
    nn_dropout_forward(out, in, DN, 0.0f, 5, 0);
    assert_same_bits(out, in, sizeof in);
    nn_dropout_forward(out, in, DN, 1.0f, 5, 0);
    assert_same_bits(out, zero, sizeof zero);
    nn_dropout_backward(din, in, DN, 1.0f, 5, 0);
    assert_same_bits(din, zero, sizeof zero);
}

static void dropout_depends_on_seed_and_index_only(void **state) {
    (void)state;
    float in[DN], out[DN], again[DN], other[DN], parts[DN];
    nn_fill(in, DN, 1.0f);
    nn_dropout_forward(out, in, DN, 0.5f, 5, 0);
    nn_dropout_forward(again, in, DN, 0.5f, 5, 0);
    nn_dropout_forward(other, in, DN, 0.5f, 6, 0);
    assert_same_bits(out, again, sizeof out);
    assert_memory_not_equal(out, other, sizeof out);
    nn_dropout_forward(parts, in, 20, 0.5f, 5, 0);  // a batch cut in two drops the same elements
    nn_dropout_forward(parts + 20, in + 20, DN - 20, 0.5f, 5, 20);
    assert_same_bits(out, parts, sizeof out);
    nn_dropout_forward(in, in, DN, 0.5f, 5, 0);  // in place
    assert_same_bits(out, in, sizeof out);
}

static void dropout_backward_needs_the_seed_of_forward(void **state) {
    (void)state;
    float in[DN], w[DN], din[DN] = {0}, wrong[DN] = {0}, once[DN], offset[DN] = {0};
    fill_random(in, DN, 1);
    fill_random(w, DN, 2);
    nn_dropout_backward(din, w, DN, 0.4f, 77, 0);
    check_gradient(dropout_run, in, in, din, DN, w, DN, "din");
    nn_dropout_backward(wrong, w, DN, 0.4f, 78, 0);
    assert_memory_not_equal(wrong, din, sizeof din);
    nn_dropout_backward(offset, w, 20, 0.4f, 77, 0);
    nn_dropout_backward(offset + 20, w + 20, DN - 20, 0.4f, 77, 20);
    assert_same_bits(offset, din, sizeof din);
    memcpy(once, din, sizeof once);
    nn_dropout_backward(din, w, DN, 0.4f, 77, 0);
    assert_doubled(din, once, DN, "din");
}

// -- cross entropy --

enum { CR = 5, CV = 9 };

static const int32_t cross_entropy_targets[CR] = {0, 8, 3, 3, 5};

static void cross_entropy_run(void *ctx, float *out) {
    nn_cross_entropy_forward(out, NULL, (const float *)ctx, cross_entropy_targets, CR, CV);
}

static void cross_entropy_is_the_mean_of_minus_log_probability(void **state) {
    (void)state;
    float logits[CR * CV], loss, losses[CR], alone;
    double total = 0.0;
    fill_random(logits, CR * CV, 1);
    for (size_t i = 0; i < CR * CV; i++) logits[i] *= 5.0f;
    nn_cross_entropy_forward(&loss, losses, logits, cross_entropy_targets, CR, CV);
    for (size_t r = 0; r < CR; r++) {
        double sum = 0.0;
        for (size_t i = 0; i < CV; i++) sum += exp((double)logits[r * CV + i]);
        double expected = log(sum) - (double)logits[r * CV + (size_t)cross_entropy_targets[r]];
        assert_near(losses[r], expected, 1e-5, 1e-6, "losses", r);
        total += expected;
    }
    assert_near(loss, total / CR, 1e-5, 1e-6, "loss", 0);
    cross_entropy_run(logits, &alone);
    assert_same_bits(&alone, &loss, sizeof loss);
}

static void cross_entropy_survives_huge_logits(void **state) {
    (void)state;
    float logits[3] = {1e4f, -1e4f, 0.0f}, loss, dlogits[3] = {0};
    int32_t target = 1;
    nn_cross_entropy_forward(&loss, NULL, logits, &target, 1, 3);
    assert_true(loss == 2e4f);
    nn_cross_entropy_backward(dlogits, 1.0f, logits, &target, 1, 3);
    assert_true(dlogits[0] == 1.0f && dlogits[1] == -1.0f && fabsf(dlogits[2]) < 1e-30f);
}

static void cross_entropy_backward_matches_differences_and_accumulates(void **state) {
    (void)state;
    float logits[CR * CV], dlogits[CR * CV] = {0}, once[CR * CV];
    const float upstream = 4.0f;
    fill_random(logits, CR * CV, 1);
    for (size_t i = 0; i < CR * CV; i++) logits[i] *= 2.0f;
    nn_cross_entropy_backward(dlogits, upstream, logits, cross_entropy_targets, CR, CV);
    check_gradient(cross_entropy_run, logits, logits, dlogits, CR * CV, &upstream, 1, "dlogits");
    for (size_t r = 0; r < CR; r++) {  // probabilities less a one-hot sum to zero
        double sum = 0.0;
        for (size_t i = 0; i < CV; i++) sum += (double)dlogits[r * CV + i];
        assert_near(sum, 0.0, 0.0, 1e-6, "row", r);
    }
    memcpy(once, dlogits, sizeof once);
    nn_cross_entropy_backward(dlogits, upstream, logits, cross_entropy_targets, CR, CV);
    assert_doubled(dlogits, once, CR * CV, "dlogits");
}

// -- ranges of rows --
//
// Each kernel is called for all rows, and for ranges one after the other: blocks of some sizes, and cuts
// by chance. Outputs, gradients of rows and gradients of whole operands must have the same bits.

static const size_t row_blocks[] = {1, 2, 3, 8, 24, 31, 32, 50, 64};
enum { ROW_CUTS = 14 };  // those, and others by chance

static size_t rows_of_call(size_t cut, size_t first, size_t R) {
    size_t rows = cut < COUNT(row_blocks) ? row_blocks[cut] : 1 + (size_t)(nn_hash(cut, first) % 40);
    return nn_min(rows, R - first);
}

static void embed_of_a_range_of_rows_has_the_same_bits(void **state) {
    (void)state;
    enum { B = 5, T = 23, C = 6, V = 11, R = B * T };
    int32_t tokens[R];
    for (size_t r = 0; r < R; r++) tokens[r] = (int32_t)(nn_hash(1, r) % V);
    float *wte = make(V * C, 2), *wpe = make(T * C, 3), *dout = make(R * C, 4), *whole = make(R * C, 5);
    float *dwte = make(V * C, 6), *dwpe = make(T * C, 7);
    nn_embed_forward(whole, tokens, wte, wpe, B, T, C);
    nn_embed_backward(dwte, dwpe, dout, tokens, B, T, C);
    for (size_t cut = 0; cut < ROW_CUTS; cut++) {
        float *out = make(R * C, 8), *dtokens = make(V * C, 6), *dplaces = make(T * C, 7);
        for (size_t first = 0, n; first < R; first += n) {
            n = rows_of_call(cut, first, R);
            nn_embed_forward_range(out + first * C, tokens + first, wte, wpe, first, n, T, C);
            nn_embed_backward_range(dtokens, dplaces, dout + first * C, tokens + first, first, n, T, C);
        }
        assert_same_bits(out, whole, R * C * sizeof(float));
        assert_same_bits(dtokens, dwte, V * C * sizeof(float));
        assert_same_bits(dplaces, dwpe, T * C * sizeof(float));
        free(out), free(dtokens), free(dplaces);
    }
    free(wte), free(wpe), free(dout), free(whole), free(dwte), free(dwpe);
}

static void norm_of_a_range_of_rows_has_the_same_bits(void **state) {
    (void)state;
    enum { R = 131, C = 37 };
    float *in = make(R * C, 1), *weight = make(C, 2), *bias = make(C, 3), *dout = make(R * C, 4);
    float *out = make(R * C, 5), *saved = make(2 * R, 6), *din = make(R * C, 7), *dweight = make(2 * C, 8);
    nn_norm_forward(out, saved, in, weight, bias, R, C);
    nn_norm_backward(din, dweight, dweight + C, dout, saved, in, weight, R, C);
    for (size_t cut = 0; cut < ROW_CUTS; cut++) {
        float *o = make(R * C, 9), *s = make(2 * R, 10), *d = make(R * C, 7), *dw = make(2 * C, 8);
        for (size_t first = 0, n; first < R; first += n) {
            size_t at = first * C;
            n = rows_of_call(cut, first, R);
            nn_norm_forward(o + at, s + 2 * first, in + at, weight, bias, n, C);
            nn_norm_backward(d + at, dw, dw + C, dout + at, s + 2 * first, in + at, weight, n, C);
        }
        assert_same_bits(o, out, R * C * sizeof(float));
        assert_same_bits(s, saved, 2 * R * sizeof(float));
        assert_same_bits(d, din, R * C * sizeof(float));
        assert_same_bits(dw, dweight, 2 * C * sizeof(float));
        free(o), free(s), free(d), free(dw);
    }
    free(in), free(weight), free(bias), free(dout), free(out), free(saved), free(din), free(dweight);
}

static void linear_of_a_range_of_rows_has_the_same_bits(void **state) {
    (void)state;
    enum { R = 131, K = 67, N = 130 };
    float *in = make(R * K, 1), *weight = make(K * N, 2), *bias = make(N, 3), *dout = make(R * N, 4);
    float *out = make(R * N, 5), *din = make(R * K, 6), *dweight = make(K * N, 7), *dbias = make(N, 8);
    nn_linear_forward(out, in, weight, bias, R, K, N);
    nn_linear_backward(din, dweight, dbias, dout, in, weight, R, K, N);
    for (size_t cut = 0; cut < ROW_CUTS; cut++) {
        float *o = make(R * N, 9), *d = make(R * K, 6), *dw = make(K * N, 7), *db = make(N, 8);
        for (size_t first = 0, n; first < R; first += n) {
            n = rows_of_call(cut, first, R);
            nn_linear_forward(o + first * N, in + first * K, weight, bias, n, K, N);
            nn_linear_backward(d + first * K, dw, db, dout + first * N, in + first * K, weight, n, K, N);
        }
        assert_same_bits(o, out, R * N * sizeof(float));
        assert_same_bits(d, din, R * K * sizeof(float));
        assert_same_bits(dw, dweight, K * N * sizeof(float));
        assert_same_bits(db, dbias, N * sizeof(float));
        free(o), free(d), free(dw), free(db);
    }
    free(in), free(weight), free(bias), free(dout), free(out), free(din), free(dweight), free(dbias);
}

// gelu, add and dropout: `which` 0, 1, 2.
static void run_elements(int which, float *out, float *din, const float *in, const float *dout, size_t n,
                         size_t first) {
    if (which == 0) nn_gelu_forward(out, in, n), nn_gelu_backward(din, dout, in, n);
    if (which == 1) nn_add_forward(out, in, dout, n), nn_add_backward(din, din, dout, n);
    if (which < 2) return;
    nn_dropout_forward(out, in, n, 0.4f, 5, first);
    nn_dropout_backward(din, dout, n, 0.4f, 5, first);
}

static void elements_of_a_range_of_rows_have_the_same_bits(void **state) {
    (void)state;
    enum { R = 131, C = 5 };
    float *in = make(R * C, 1), *dout = make(R * C, 2);
    for (int which = 0; which < 3; which++) {
        float *out = make(R * C, 3), *din = make(R * C, 4);
        run_elements(which, out, din, in, dout, R * C, 0);
        for (size_t cut = 0; cut < ROW_CUTS; cut++) {
            float *o = make(R * C, 5), *d = make(R * C, 4);
            for (size_t first = 0, n; first < R; first += n) {
                size_t at = first * C;
                n = rows_of_call(cut, first, R);
                run_elements(which, o + at, d + at, in + at, dout + at, n * C, at);
            }
            assert_same_bits(o, out, R * C * sizeof(float));
            assert_same_bits(d, din, R * C * sizeof(float));
            free(o), free(d);
        }
        free(out), free(din);
    }
    free(in), free(dout);
}

static void cross_entropy_of_ranges_of_rows_has_the_same_bits(void **state) {
    (void)state;
    enum { R = 131, V = 37 };
    int32_t targets[R];
    for (size_t r = 0; r < R; r++) targets[r] = (int32_t)(nn_hash(1, r) % V);
    float *logits = make(R * V, 2), *losses = make(R, 3), *dlogits = make(R * V, 4), loss;
    nn_cross_entropy_forward(&loss, losses, logits, targets, R, V);
    nn_cross_entropy_backward(dlogits, 0.7f, logits, targets, R, V);
    for (size_t cut = 0; cut < ROW_CUTS; cut++) {
        float *each = make(R, 5), *d = make(R * V, 4), sum = NAN;  // the first call begins the sum
        for (size_t first = 0, n; first < R; first += n) {
            const float *x = logits + first * V;
            n = rows_of_call(cut, first, R);
            nn_cross_entropy_forward_range(&sum, each + first, x, targets + first, first, n, R, V);
            nn_cross_entropy_backward_range(d + first * V, 0.7f, x, targets + first, n, R, V);
        }
        assert_same_bits(&sum, &loss, sizeof loss);
        assert_same_bits(each, losses, R * sizeof(float));
        assert_same_bits(d, dlogits, R * V * sizeof(float));
        free(each), free(d);
    }
    free(logits), free(losses), free(dlogits);
}

// What the range functions are for: (n / R) / n is not 1 / R for many n that are no powers of two.
static void cross_entropy_of_a_block_scaled_to_the_whole_has_other_bits(void **state) {
    (void)state;
    enum { R = 131, V = 37 };
    const size_t blocks[] = {32, 35};
    int32_t targets[R];
    for (size_t r = 0; r < R; r++) targets[r] = (int32_t)(nn_hash(1, r) % V);
    float *logits = make(R * V, 2), *whole = make_zero(R * V);
    nn_cross_entropy_backward(whole, 1.0f, logits, targets, R, V);
    for (size_t k = 0; k < COUNT(blocks); k++) {
        float *block = make_zero(R * V), part = (float)blocks[k] / (float)R;
        nn_cross_entropy_backward(block, part, logits, targets, blocks[k], V);
        assert_int_equal(memcmp(block, whole, blocks[k] * V * sizeof(float)) == 0, k == 0);
        free(block);
    }
    free(logits), free(whole);
}

// What the three products make of a batch, call by call. What is for later keys is not read, and left alone.
typedef struct products {
    float *scores, *att, *datt, *dscores;  // (rows of a call, T)
    float *out, *dqkv;                     // whole
} products;

static void run_products(products *p, const attention_ctx *x, const float *dout, size_t cut) {
    size_t T = x->T, C = x->C, NH = x->NH, R = x->B * NH * T, HS = C / NH, n;
    for (size_t first = 0; first < R; first += n) {
        n = cut == SIZE_MAX ? R : rows_of_call(cut, first, R);
        fill_random(p->scores, n * T, 20);
        fill_random(p->att, n * T, 21);
        nn_scores_forward(p->scores, x->qkv, first, n, T, C, NH);
        nn_causal_softmax_forward(p->att, p->scores, first, n, T, HS);
        nn_values_forward(p->out, p->att, x->qkv, first, n, T, C, NH);
        memset(p->datt, 0, n * T * sizeof(float));
        memset(p->dscores, 0, n * T * sizeof(float));
        for (size_t r = 0; r < n; r++)
            for (size_t k = (first + r) % T + 1; k < T; k++)
                p->att[r * T + k] = p->datt[r * T + k] = p->dscores[r * T + k] = 1e9f;
        nn_values_backward(p->datt, p->dqkv, dout, p->att, x->qkv, first, n, T, C, NH);
        nn_causal_softmax_backward(p->dscores, p->datt, p->att, first, n, T, HS);
        nn_scores_backward(p->dqkv, p->dscores, x->qkv, first, n, T, C, NH);
        for (size_t r = 0; r < n; r++)
            for (size_t k = (first + r) % T + 1; k < T; k++)
                assert_true(p->datt[r * T + k] == 1e9f && p->dscores[r * T + k] == 1e9f &&
                            p->scores[r * T + k] == 0.0f);
    }
}

static void attention_as_three_products_has_the_bits_of_attention(void **state) {
    (void)state;
    for (size_t shape = 0; shape < COUNT(attention_shapes); shape++) {
        const size_t *s = attention_shapes[shape];
        attention_ctx x = make_attention(s[0], s[1], s[2], s[3]);
        size_t n = x.B * x.T * x.C, square = x.B * x.NH * x.T * x.T;
        float *out = make(n, 3), *dout = make(n, 4), *dqkv = make(3 * n, 5), *saved = make(square, 6);
        nn_attention_forward(out, saved, x.qkv, x.scratch, x.B, x.T, x.C, x.NH);
        nn_attention_backward(dqkv, dout, saved, x.qkv, x.scratch, x.B, x.T, x.C, x.NH);
        for (size_t cut = 0; cut <= ROW_CUTS; cut++) {
            products p = {make(square, 7), make(square, 8), make(square, 9), make(square, 10), make(n, 11),
                          make(3 * n, 5)};
            run_products(&p, &x, dout, cut == ROW_CUTS ? SIZE_MAX : cut);
            assert_same_bits(p.out, out, n * sizeof(float));
            assert_same_bits(p.dqkv, dqkv, 3 * n * sizeof(float));
            free(p.scores), free(p.att), free(p.datt), free(p.dscores), free(p.out), free(p.dqkv);
        }
        free(out), free(dout), free(dqkv), free(saved);
        free_attention(&x);
    }
}

static void causal_softmax_in_place_has_the_same_bits(void **state) {
    (void)state;
    enum { T = 17, R = 3 * T };
    float *scores = make(R * T, 1), *att = make(R * T, 2);
    nn_causal_softmax_forward(att, scores, 5, R - 5, T, 16);
    nn_causal_softmax_forward(scores, scores, 5, R - 5, T, 16);
    assert_same_bits(scores, att, (R - 5) * T * sizeof(float));
    free(scores), free(att);
}

// -- adamw --

static void adamw_follows_the_paper(void **state) {
    (void)state;
    enum { N = 17, STEPS = 200 };
    nn_adamw opt = {1e-2f, 0.9f, 0.999f, 1e-8f, 0.1f};
    float param[N], m[N] = {0}, v[N] = {0}, grad[N];
    double theta[N], m_ref[N] = {0}, v_ref[N] = {0};
    fill_random(param, N, 1);
    for (int i = 0; i < N; i++) theta[i] = (double)param[i];
    for (uint64_t step = 1; step <= STEPS; step++) {
        fill_random(grad, N, 100 + step);
        nn_adamw_update(param, m, v, grad, N, step, &opt);
        double b1 = (double)opt.beta1, b2 = (double)opt.beta2, rate = (double)opt.rate;
        for (int i = 0; i < N; i++) {
            double g = (double)grad[i];
            m_ref[i] = b1 * m_ref[i] + (1.0 - b1) * g;
            v_ref[i] = b2 * v_ref[i] + (1.0 - b2) * g * g;
            double m_hat = m_ref[i] / (1.0 - pow(b1, (double)step));
            double v_hat = v_ref[i] / (1.0 - pow(b2, (double)step));
            theta[i] -= rate * (m_hat / (sqrt(v_hat) + (double)opt.epsilon) +
                                (double)opt.weight_decay * theta[i]);
        }
        assert_all_near(param, theta, N, 2e-5, "param");
        assert_all_near(m, m_ref, N, 1e-5, "m");
        assert_all_near(v, v_ref, N, 1e-5, "v");
    }
}

static void adamw_first_step_is_the_rate_against_the_gradient(void **state) {
    (void)state;
    nn_adamw opt = {0.5f, 0.9f, 0.999f, 1e-12f, 0.0f};
    float param[2] = {1.0f, 1.0f}, m[2] = {0}, v[2] = {0}, grad[2] = {1e-3f, -1e3f};
    nn_adamw_update(param, m, v, grad, 2, 1, &opt);
    assert_near(param[0], 0.5, 1e-5, 0.0, "param", 0);
    assert_near(param[1], 1.5, 1e-5, 0.0, "param", 1);
}

static void adamw_weight_decay_is_decoupled_from_the_gradient(void **state) {
    (void)state;
    nn_adamw opt = {0.1f, 0.9f, 0.999f, 1e-8f, 0.5f};
    float param[1] = {2.0f}, m[1] = {0}, v[1] = {0}, grad[1] = {0};
    nn_adamw_update(param, m, v, grad, 1, 1, &opt);
    assert_near(param[0], 2.0 * (1.0 - 0.1 * 0.5), 1e-6, 0.0, "param", 0);
    assert_true(m[0] == 0.0f && v[0] == 0.0f);
}

static void adamw_reaches_the_minimum_of_a_parabola(void **state) {
    (void)state;
    nn_adamw opt = {0.05f, 0.9f, 0.99f, 1e-8f, 0.0f};
    float x[1] = {5.0f}, m[1] = {0}, v[1] = {0};
    for (uint64_t step = 1; step <= 1000; step++) {
        float grad[1] = {2.0f * (x[0] - 3.0f)};
        nn_adamw_update(x, m, v, grad, 1, step, &opt);
    }
    assert_near(x[0], 3.0, 0.0, 1e-2, "x", 0);
}

// -- sample --

static void sample_at_temperature_zero_takes_the_first_maximum(void **state) {
    (void)state;
    const float logits[5] = {1, 7, 3, 7, 7};
    assert_int_equal(nn_sample(logits, 5, 0.0f, 0.99f), 1);
    assert_int_equal(nn_sample(logits, 5, -1.0f, 0.0f), 1);
    assert_int_equal(nn_sample(logits, 1, 0.0f, 0.5f), 0);
    assert_int_equal(nn_sample(logits, 1, 1.0f, 0.999f), 0);
}

static void sample_walks_the_probabilities_in_order(void **state) {
    (void)state;
    const float logits[4] = {0, 0, 0, 0};
    const float last = 1.0f - 1.0f / 16777216.0f;  // the largest nn_uniform
    assert_int_equal(nn_sample(logits, 4, 1.0f, 0.0f), 0);
    assert_int_equal(nn_sample(logits, 4, 1.0f, 0.24f), 0);
    assert_int_equal(nn_sample(logits, 4, 1.0f, 0.26f), 1);
    assert_int_equal(nn_sample(logits, 4, 1.0f, 0.74f), 2);
    assert_int_equal(nn_sample(logits, 4, 1.0f, last), 3);
    assert_int_equal(nn_sample(logits, 4, 1.0f, 1.0f), 0);  // outside [0, 1): the most likely one
}

static void sample_frequencies_follow_the_temperature(void **state) {
    (void)state;
    const float logits[3] = {0.0f, 1.0f, 2.0f}, temperatures[3] = {0.5f, 1.0f, 2.0f};
    enum { N = 50000 };
    for (size_t k = 0; k < 3; k++) {
        int count[3] = {0};
        double sum = 0.0;
        for (uint64_t i = 0; i < N; i++) {
            count[nn_sample(logits, 3, temperatures[k], nn_uniform(k, i))]++;
        }
        for (int i = 0; i < 3; i++) sum += exp((double)(logits[i] / temperatures[k]));
        for (size_t i = 0; i < 3; i++) {
            double expected = exp((double)(logits[i] / temperatures[k])) / sum;
            assert_near((double)count[i] / N, expected, 0.0, 0.01, "frequency", i);
        }
    }
}

static void sample_survives_extreme_logits_and_temperatures(void **state) {
    (void)state;
    const float wide[3] = {-3e38f, 3e38f, 0.0f}, banned[3] = {-INFINITY, 2.0f, -INFINITY};
    const float last = 1.0f - 1.0f / 16777216.0f;
    for (int i = 0; i < 100; i++) {
        float u = (float)i / 100.0f;
        assert_int_equal(nn_sample(wide, 3, 1.0f, u == 0.0f ? 0.01f : u), 1);
        assert_int_equal(nn_sample(banned, 3, 1.0f, u == 0.0f ? 0.01f : u), 1);
        assert_in_range(nn_sample(wide, 3, 1e-30f, u), 0, 2);
        assert_in_range(nn_sample(wide, 3, 1e30f, u), 0, 2);
    }
    assert_int_equal(nn_sample(banned, 3, 1.0f, last), 1);
    const float broken[3] = {NAN, NAN, NAN};
    assert_in_range(nn_sample(broken, 3, 1.0f, 0.5f), 0, 2);
}

// -- checksum --

static void checksum_changes_on_every_one_bit_flip(void **state) {
    (void)state;
    unsigned char data[67];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)nn_hash(1, i);
    uint64_t before = nn_checksum(0, data, sizeof data);
    for (size_t bit = 0; bit < sizeof data * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(nn_checksum(0, data, sizeof data) != before);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(nn_checksum(0, data, sizeof data) == before);
}

static void checksum_goes_on_where_it_stopped(void **state) {
    (void)state;
    const char *text = "the quick brown fox";
    size_t n = strlen(text);
    uint64_t whole = nn_checksum(0, text, n);
    for (size_t cut = 0; cut <= n; cut++) {
        assert_true(nn_checksum(nn_checksum(0, text, cut), text + cut, n - cut) == whole);
    }
    assert_true(nn_checksum(0, NULL, 0) == 0);
    assert_true(nn_checksum(0, text, n - 1) != whole);
    assert_true(nn_checksum(0, "\0", 1) != nn_checksum(0, "\0\0", 2));
}

static void checksum_is_fnv_1a(void **state) {
    (void)state;
    // published value of FNV-1a 64 for "foobar"; ours is offset so that no bytes give 0
    assert_true((nn_checksum(0, "foobar", 6) ^ 0xCBF29CE484222325u) == 0x85944171F73967E8u);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_a_pure_function_of_seed_and_index),
        cmocka_unit_test(uniform_is_in_zero_to_one_and_flat),
        cmocka_unit_test(normal_has_mean_zero_and_variance_one),
        cmocka_unit_test(fill_normal_scales_and_repeats),
        cmocka_unit_test(random_numbers_never_change),
        cmocka_unit_test(exp_is_accurate_over_its_range),
        cmocka_unit_test(exp_clamps_and_keeps_nan),
        cmocka_unit_test(softmax_of_huge_values_is_finite_and_sums_to_one),
        cmocka_unit_test(matmul_equals_a_triple_loop_for_every_transpose),
        cmocka_unit_test(matmul_takes_every_sum_in_order),
        cmocka_unit_test(matmul_leaves_the_columns_beside_c_alone),
        cmocka_unit_test(matmul_of_an_empty_sum_changes_nothing),
        cmocka_unit_test(embed_adds_token_and_position),
        cmocka_unit_test(embed_backward_matches_differences_and_accumulates),
        cmocka_unit_test(embed_gradients_by_rows_have_the_same_bits),
        cmocka_unit_test(norm_rows_get_mean_zero_and_variance_one),
        cmocka_unit_test(norm_of_a_constant_row_is_the_bias),
        cmocka_unit_test(norm_without_saved_has_the_same_bits),
        cmocka_unit_test(norm_backward_matches_differences_and_accumulates),
        cmocka_unit_test(linear_is_in_times_weight_plus_bias),
        cmocka_unit_test(linear_backward_matches_differences_and_accumulates),
        cmocka_unit_test(linear_gradients_of_a_cut_batch_have_the_same_bits),
        cmocka_unit_test(linear_gradients_by_rows_have_the_same_bits),
        cmocka_unit_test(attention_equals_the_formula),
        cmocka_unit_test(attention_never_reads_later_tokens),
        cmocka_unit_test(attention_gradient_of_early_outputs_is_zero_for_later_tokens),
        cmocka_unit_test(attention_without_saved_has_the_same_bits),
        cmocka_unit_test(attention_of_a_sequence_does_not_depend_on_the_batch),
        cmocka_unit_test(attention_backward_matches_differences_and_accumulates),
        cmocka_unit_test(gelu_equals_its_tanh_form),
        cmocka_unit_test(gelu_backward_matches_differences_and_accumulates),
        cmocka_unit_test(add_backward_gives_both_sides_the_gradient),
        cmocka_unit_test(dropout_keeps_the_ratio_asked_for),
        cmocka_unit_test(dropout_of_zero_copies_and_of_one_clears),
        cmocka_unit_test(dropout_depends_on_seed_and_index_only),
        cmocka_unit_test(dropout_backward_needs_the_seed_of_forward),
        cmocka_unit_test(cross_entropy_is_the_mean_of_minus_log_probability),
        cmocka_unit_test(cross_entropy_survives_huge_logits),
        cmocka_unit_test(cross_entropy_backward_matches_differences_and_accumulates),
        cmocka_unit_test(embed_of_a_range_of_rows_has_the_same_bits),
        cmocka_unit_test(norm_of_a_range_of_rows_has_the_same_bits),
        cmocka_unit_test(linear_of_a_range_of_rows_has_the_same_bits),
        cmocka_unit_test(elements_of_a_range_of_rows_have_the_same_bits),
        cmocka_unit_test(cross_entropy_of_ranges_of_rows_has_the_same_bits),
        cmocka_unit_test(cross_entropy_of_a_block_scaled_to_the_whole_has_other_bits),
        cmocka_unit_test(attention_as_three_products_has_the_bits_of_attention),
        cmocka_unit_test(causal_softmax_in_place_has_the_same_bits),
        cmocka_unit_test(adamw_follows_the_paper),
        cmocka_unit_test(adamw_first_step_is_the_rate_against_the_gradient),
        cmocka_unit_test(adamw_weight_decay_is_decoupled_from_the_gradient),
        cmocka_unit_test(adamw_reaches_the_minimum_of_a_parabola),
        cmocka_unit_test(sample_at_temperature_zero_takes_the_first_maximum),
        cmocka_unit_test(sample_walks_the_probabilities_in_order),
        cmocka_unit_test(sample_frequencies_follow_the_temperature),
        cmocka_unit_test(sample_survives_extreme_logits_and_temperatures),
        cmocka_unit_test(checksum_changes_on_every_one_bit_flip),
        cmocka_unit_test(checksum_goes_on_where_it_stopped),
        cmocka_unit_test(checksum_is_fnv_1a),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("nn", tests, NULL, NULL);
}
