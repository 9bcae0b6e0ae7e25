// [7] PRECISION: estimated sensitivities, found again by plain sums over the same numbers; and against what a
// network of one layer really loses.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/texts.h"

#define BIT(scheme) (1u << (scheme))

// x (K numbers a row) --linear--> y (N logits a row); the loss is the cross entropy against the label of the row.
enum { ROWS = 64, K = 12, N = 5, BATCHES = 6 };
#define NET "tlg 1\n" \
    "node 0 x input fwd=0 bwd=0 out=3072 needs=none in=-\n" \
    "node 1 y linear fwd=7680 bwd=0 param=240 out=1280 keep needs=in in=0\n"

typedef struct net {
    float x[ROWS * K], y[ROWS * N], dx[ROWS * K], dy[ROWS * N], w[K * N], dw[K * N];
    int   label[ROWS], runs, fail_at, is_bad;
} net;

static double draw(tl_random *random) {
    double sum = -6;
    int i;
    for (i = 0; i < 12; i++) sum += tl_next_random_ratio(random);
    return sum;
}

static void fill_weights(net *n) {
    tl_random random = { 7 };
    int i;
    memset(n, 0, sizeof *n);
    n->fail_at = -1;
    for (i = 0; i < K * N; i++) n->w[i] = (float)(draw(&random) * (1 + i % N));  // channels of different sizes
}

static void multiply(const net *n, const float *x, const float *w, float *y) {
    int r, j, k;
    (void)n;
    for (r = 0; r < ROWS; r++)
        for (j = 0; j < N; j++) {
            float sum = 0;
            for (k = 0; k < K; k++) sum += x[r * K + k] * w[k * N + j];
            y[r * N + j] = sum;
        }
}

// Shares of a row.
static void soften(const float *y, double *p) {
    double sum = 0;
    int j;
    for (j = 0; j < N; j++) sum += exp((double)y[j]);
    for (j = 0; j < N; j++) p[j] = exp((double)y[j]) / sum;
}

// Labels are drawn by the network's own beliefs: then squared gradients are the Fisher information.
static tl_result run(int32_t batch, void *user) {
    net *n = (net *)user;
    tl_random random = { 100 + (uint64_t)batch };
    int i, r, j, k;
    if (n->runs++ == n->fail_at) return TL_ERROR_OVERFLOW;
    for (i = 0; i < ROWS * K; i++) n->x[i] = (float)(0.3 * draw(&random));
    multiply(n, n->x, n->w, n->y);
    memset(n->dx, 0, sizeof n->dx);
    memset(n->dw, 0, sizeof n->dw);
    for (r = 0; r < ROWS; r++) {
        double p[N], u = tl_next_random_ratio(&random);
        soften(n->y + r * N, p);
        for (n->label[r] = 0; n->label[r] < N - 1 && u >= p[n->label[r]]; n->label[r]++) u -= p[n->label[r]];
        for (j = 0; j < N; j++) {
            float d = (float)((p[j] - (j == n->label[r])) / ROWS);
            n->dy[r * N + j] = d;
            for (k = 0; k < K; k++) {
                n->dx[r * K + k] += d * n->w[k * N + j];
                n->dw[k * N + j] += d * n->x[r * K + k];
            }
        }
    }
    return TL_OK;
}

static tl_result find_tensor(int32_t tensor, tl_sample *sample, void *user) {
    net *n = (net *)user;
    sample->values = tensor ? n->y : n->x;
    sample->gradients = tensor ? n->dy : n->dx;
    sample->count = tensor ? ROWS * N : ROWS * K;
    if (n->is_bad && tensor) n->y[3] = (float)INFINITY;
    return TL_OK;
}

static tl_result find_weights(int32_t node, tl_sample *sample, void *user) {
    net *n = (net *)user;
    assert_int_equal(node, 1);
    sample->values = n->w;
    sample->gradients = n->dw;
    sample->count = K * N;
    sample->channel_count = N;
    return TL_OK;
}

static tl_estimate_sensitivity_desc desc_of(const tl_graph *graph, net *n) {
    tl_estimate_sensitivity_desc desc;
    memset(&desc, 0, sizeof desc);
    fill_weights(n);
    desc.graph = graph;
    desc.batch_count = BATCHES;
    desc.row_count = ROWS;
    desc.run = run;
    desc.find_tensor = find_tensor;
    desc.find_weights = find_weights;
    desc.user = n;
    return desc;
}

static double noise_of(const tl_quantization *q, const float *values, const float *gradients, int count) {
    double sum = 0;
    int i;
    for (i = 0; i < count; i++) {
        double integer = nearbyint((double)(values[i] / q->scale)) + q->zero_point, error;
        integer = fmin(fmax(integer, q->low), q->high);
        error = values[i] - (integer - q->zero_point) * q->scale;
        sum += error * error * gradients[i] * gradients[i];
    }
    return sum;
}

// Losses are sums over inputs, outputs and weights, here added up by hand from the quantisations that came out.
static void losses_are_sums_of_squares(void **state) {
    static net n;
    tl_graph graph = graph_of(NET);
    tl_estimate_sensitivity_desc desc = desc_of(&graph, &n);
    tl_quantization narrow[2], wide[2], weights;
    double losses[2 * TL_SCHEME_COUNT], i8 = 0, dynamic = 0, i16 = 0, whole;
    int batch, k;
    (void)state;
    assert_int_equal(tl_estimate_sensitivity(NULL, &desc, losses, narrow, wide), TL_OK);
    assert_int_equal(n.runs, 2 * BATCHES);
    for (batch = 0; batch < BATCHES; batch++) {
        run(batch, &n);
        i8 += noise_of(&narrow[0], n.x, n.dx, ROWS * K) + noise_of(&narrow[1], n.y, n.dy, ROWS * N);
        dynamic += noise_of(&narrow[0], n.x, n.dx, ROWS * K);
        i16 += noise_of(&wide[0], n.x, n.dx, ROWS * K) + noise_of(&wide[1], n.y, n.dy, ROWS * N);
        for (whole = 0, k = 0; k < K * N; k++) whole = fmax(whole, fabs((double)n.w[k]));
        assert_int_equal(tl_find_quantization(NULL, TL_RANGE_NARROW, (float)-whole, (float)whole, -127, 127, &weights), TL_OK);
        i8 += noise_of(&weights, n.w, n.dw, K * N);
    }
    assert_true(fabs(losses[TL_SCHEME_COUNT + TL_SCHEME_I8] / (i8 * ROWS / 2 / BATCHES) - 1) < 1e-3);
    assert_true(losses[TL_SCHEME_COUNT + TL_SCHEME_DYNAMIC] > dynamic * ROWS / 2 / BATCHES);
    assert_true(losses[TL_SCHEME_COUNT + TL_SCHEME_DYNAMIC] < losses[TL_SCHEME_COUNT + TL_SCHEME_I8]);
    assert_true(losses[TL_SCHEME_COUNT + TL_SCHEME_I8_CHANNEL] < losses[TL_SCHEME_COUNT + TL_SCHEME_I8]);
    assert_true(losses[TL_SCHEME_COUNT + TL_SCHEME_I16] > 0.99 * i16 * ROWS / 2 / BATCHES);
    assert_true(losses[TL_SCHEME_COUNT + TL_SCHEME_F16] < losses[TL_SCHEME_COUNT + TL_SCHEME_BF16]);
    assert_true(losses[TL_SCHEME_COUNT] == 0 && losses[0] == 0);
    assert_true(isnan(losses[TL_SCHEME_I8]) && isnan(losses[TL_SCHEME_COUNT + TL_SCHEME_FAKE]));
    tl_free_graph(NULL, &graph);
}

// A sample of weights in channels of so many terms, each terms of `inner` side by side; gradients of different sizes.
enum { MOST_WEIGHTS = 4096 };
typedef struct grouped {
    tl_sample sample;
    float values[MOST_WEIGHTS], gradients[MOST_WEIGHTS];
} grouped;

static void draw_grouped(grouped *g, tl_random *random, int channels, int inner, int blocks) {
    int i;
    memset(&g->sample, 0, sizeof g->sample);
    g->sample.values = g->values;
    g->sample.gradients = g->gradients;
    g->sample.count = (uint64_t)(channels * inner * blocks);
    g->sample.channel_count = channels == 1 ? 0 : channels;
    g->sample.inner_count = inner == 1 ? 0 : (uint64_t)inner;
    for (i = 0; i < channels * inner * blocks; i++) {
        g->values[i] = (float)(draw(random) * (1 + i / inner % channels));
        g->gradients[i] = (float)draw(random);
    }
}

// The rule of w4a8, term by term: a scale of the channel, a factor of 0 .. 127 for each group of 32, integers of -7 .. 7.
static double noise_in_groups(const grouped *g, int channels, int inner, int terms) {
    double sum = 0, step, scale;
    int c, k, first, at;
    for (c = 0; c < channels; c++)
        for (scale = 0, first = -1; first < terms; first = first < 0 ? 0 : first + 32) {
            int begin = first < 0 ? 0 : first, end = first < 0 || first + 32 > terms ? terms : first + 32, factor;
            for (step = 0, k = begin; k < end; k++) {
                at = (k / inner * channels + c) * inner + k % inner;
                step = fmax(step, fabs((double)g->values[at]) / 7);
            }
            if (first < 0) { scale = step > 0 ? step / 127 : 1; continue; }   // of the whole channel
            factor = (int)ceil(step / scale * (1 - 1e-15));
            assert_in_range(factor, 0, 127);
            for (k = begin; k < end; k++) {
                double q, error;
                at = (k / inner * channels + c) * inner + k % inner;
                q = factor ? nearbyint((double)g->values[at] / (scale * factor)) : 0;
                assert_true(fabs(q) <= 7);
                error = (double)g->values[at] - q * scale * factor;
                sum += error * error * (double)g->gradients[at] * (double)g->gradients[at];
            }
        }
    return sum;
}

static void weights_in_groups_lose_what_their_rule_says(void **state) {
    static const int shapes[][3] = { { 1, 1, 1 }, { 1, 1, 100 }, { 3, 1, 32 }, { 5, 1, 33 }, { 4, 45, 1 }, { 2, 9, 64 },
                                     { 7, 64, 2 }, { 6, 7, 9 }, { 1, 31, 5 } };
    static grouped g;
    tl_random random = { 44 };
    size_t i;
    int k;
    (void)state;
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int channels = shapes[i][0], inner = shapes[i][1], terms = inner * shapes[i][2];
        double expected, found, power = 0;
        draw_grouped(&g, &random, channels, inner, shapes[i][2]);
        if (i == 5)     // channel 1 is all zeros, and a group of channel 0
            for (k = 0; k < channels * terms; k++)
                if (k / inner % channels || (k / inner / channels * inner + k % inner) / 32 == 2) g.values[k] = 0;
        if (i == 6) for (k = 0; k < channels * terms; k++) g.values[k] *= 1e-30f;
        expected = noise_in_groups(&g, channels, inner, terms);
        found = tli_sum_grouped_noise(&g.sample);
        for (k = 0; k < channels * terms; k++) power += pow((double)g.values[k] * (double)g.gradients[k], 2);
        assert_true(fabs(found - expected) <= 1e-5 * expected + 1e-13 * power);    // the rounding of f32, squared
        assert_true(terms < 2 || expected > 0);
    }
    g.sample.inner_count = UINT64_MAX;     // all of one channel
    g.sample.channel_count = INT32_MAX;
    assert_true(fabs(tli_sum_grouped_noise(&g.sample) / noise_in_groups(&g, 1, 1, (int)g.sample.count) - 1) < 1e-5);
}

// The noise of the library's table is that of normal weights in groups, to 3 %: channels of 64 to 576 terms.
static void normal_weights_lose_what_the_table_says(void **state) {
    static grouped g;
    tl_random random = { 45 };
    double sum = 0, power = 0;
    int round, i;
    (void)state;
    for (round = 0; round < 40; round++) {
        draw_grouped(&g, &random, 1, 1, 64 + 128 * (round % 5));
        for (i = 0; i < (int)g.sample.count; i++) {
            double u = 1 - tl_next_random_ratio(&random);
            g.values[i] = (float)(sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * tl_next_random_ratio(&random)));
            g.gradients[i] = 1;
            power += (double)g.values[i] * (double)g.values[i];
        }
        sum += tli_sum_grouped_noise(&g.sample);
    }
    assert_true(fabs(sum / power / TLI_NOISE_W4 - 1) < 0.03);
}

// w4a8 is estimated where it is asked for: noise of tensors in i8, and that of weights in groups.
static void groups_are_estimated_where_they_are_asked_for(void **state) {
    static net n;
    static grouped g;
    tl_graph graph = graph_of(NET);
    tl_estimate_sensitivity_desc desc = desc_of(&graph, &n);
    tl_quantization narrow[2];
    double losses[2 * TL_SCHEME_COUNT], expected = 0;
    int batch;
    (void)state;
    assert_int_equal(tl_estimate_sensitivity(NULL, &desc, losses, narrow, NULL), TL_OK);
    assert_true(isnan(losses[TL_SCHEME_COUNT + TL_SCHEME_W4A8]));
    desc.schemes = BIT(TL_SCHEME_W4A8) | BIT(TL_SCHEME_I8_CHANNEL);
    assert_int_equal(tl_estimate_sensitivity(NULL, &desc, losses, narrow, NULL), TL_OK);
    for (batch = 0; batch < BATCHES; batch++) {
        run(batch, &n);
        memcpy(g.values, n.w, sizeof n.w);
        memcpy(g.gradients, n.dw, sizeof n.dw);
        expected += noise_of(&narrow[0], n.x, n.dx, ROWS * K) + noise_of(&narrow[1], n.y, n.dy, ROWS * N);
        expected += noise_in_groups(&g, N, 1, K);
    }
    assert_true(fabs(losses[TL_SCHEME_COUNT + TL_SCHEME_W4A8] / (expected * ROWS / 2 / BATCHES) - 1) < 1e-3);
    assert_true(losses[TL_SCHEME_COUNT + TL_SCHEME_W4A8] > losses[TL_SCHEME_COUNT + TL_SCHEME_I8_CHANNEL]);
    tl_free_graph(NULL, &graph);
}

// What the logits really lose in i8: the divergence of the answers, measured.
static void an_estimate_is_near_what_is_measured(void **state) {
    static net n;
    static float stored[ROWS * N];
    tl_graph graph = graph_of(NET);
    tl_estimate_sensitivity_desc desc = desc_of(&graph, &n);
    tl_quantization narrow[2];
    double losses[2 * TL_SCHEME_COUNT], measured = 0;
    int8_t integers[ROWS * N];
    int batch, r, j;
    (void)state;
    desc.find_weights = NULL;
    desc.batch_count = 100;
    desc.schemes = BIT(TL_SCHEME_I8) | BIT(TL_SCHEME_DYNAMIC);
    assert_int_equal(tl_estimate_sensitivity(NULL, &desc, losses, narrow, NULL), TL_OK);
    for (batch = 0; batch < 100; batch++) {
        run(batch, &n);
        assert_int_equal(tl_quantize(NULL, &narrow[1], 1, 1, TL_FORMAT_I8, n.y, integers, ROWS * N), TL_OK);
        assert_int_equal(tl_dequantize(NULL, &narrow[1], 1, 1, TL_FORMAT_I8, integers, stored, ROWS * N), TL_OK);
        for (r = 0; r < ROWS; r++) {
            double p[N], q[N];
            soften(n.y + r * N, p);
            soften(stored + r * N, q);
            for (j = 0; j < N; j++) measured += p[j] * log(p[j] / q[j]) / (ROWS * 100);
        }
    }
    // dynamic has the noise of x, i8 that of x and of y
    assert_in_range((int)(100 * (losses[TL_SCHEME_COUNT + TL_SCHEME_I8] - losses[TL_SCHEME_COUNT + TL_SCHEME_DYNAMIC]) / measured), 85, 115);
    tl_free_graph(NULL, &graph);
}

static void bad_input_is_named(void **state) {
    static net n;
    tl_graph graph = graph_of(NET);
    tl_estimate_sensitivity_desc good = desc_of(&graph, &n), desc;
    tl_quantization narrow[2], wide[2];
    double losses[2 * TL_SCHEME_COUNT];
    uint32_t schemes[2] = { 0, 1u << 30 };
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
#define REFUSED(change, code, sentence) \
    desc = good; change; \
    assert_int_equal(tl_estimate_sensitivity(&env, &desc, losses, narrow, wide), code); \
    assert_string_equal(env.error.text, "tl_estimate_sensitivity: " sentence)
    REFUSED(desc.schemes = BIT(TL_SCHEME_COUNT), TL_ERROR_INVALID_ARG, "schemes: unknown bit");
    REFUSED(desc.node_schemes = schemes, TL_ERROR_INVALID_ARG, "node_schemes: unknown bit");
    REFUSED(desc.batch_count = 0, TL_ERROR_INVALID_ARG, "batch_count: must be > 0");
    REFUSED(desc.row_count = 0, TL_ERROR_INVALID_ARG, "row_count: must be > 0");
    REFUSED(desc.run = NULL, TL_ERROR_INVALID_ARG, "run: must not be NULL");
    REFUSED(desc.find_tensor = NULL, TL_ERROR_INVALID_ARG, "find_tensor: must not be NULL");
    REFUSED(desc.observer = TL_OBSERVER_COUNT, TL_ERROR_INVALID_ARG, "kind: no such observer");
    n.runs = 0;
    REFUSED(n.fail_at = BATCHES + 1, TL_ERROR_KERNEL, "run: failed: overflow");
    for (i = 0; i < 2 * TL_SCHEME_COUNT; i++) assert_true(isnan(losses[i]));
    assert_true(is_zero(narrow, sizeof narrow) && is_zero(wide, sizeof wide));
    n.fail_at = -1;
    REFUSED(n.is_bad = 1, TL_ERROR_INVALID_ARG, "sample: a value or gradient is not finite");
#undef REFUSED
    tl_free_graph(NULL, &graph);
}

static void every_allocation_fails_in_turn(void **state) {
    static net n;
    tl_graph graph = graph_of(NET);
    tl_estimate_sensitivity_desc desc = desc_of(&graph, &n);
    double losses[2 * TL_SCHEME_COUNT];
    long at;
    (void)state;
    desc.batch_count = 1;
    for (at = 0; ; at++) {
        failing_alloc f = { 0 };
        tl_env env = failing_env(&f, at);
        tl_result result = tl_estimate_sensitivity(&env, &desc, losses, NULL, NULL);
        assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
        if (!result) break;
    }
    assert_true(at > 6);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_sums_of_squares),
        cmocka_unit_test(weights_in_groups_lose_what_their_rule_says),
        cmocka_unit_test(normal_weights_lose_what_the_table_says),
        cmocka_unit_test(groups_are_estimated_where_they_are_asked_for),
        cmocka_unit_test(an_estimate_is_near_what_is_measured),
        cmocka_unit_test(bad_input_is_named),
        cmocka_unit_test(every_allocation_fails_in_turn),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
