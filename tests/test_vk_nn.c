// Tests of examples/vk_nn.h: every kernel, forward and backward, against nn.h on the host and
// against finite differences; odd sizes, guard bytes, equal bits; and a network in the executor.
//
//     cc -std=c99 -Iexamples tests/test_vk_nn.c -lcmocka -lm -ldl -o test_vk_nn && ./test_vk_nn
//
// nn.h is tested against references in double by test_nn.c. The device rounds e^x and fuses sums as
// it likes, so results are compared within 2e-5 of their size or of one. Gradients start from random
// numbers on both sides: what overwrites instead of adding shows.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#include "support/vk_support.h"
#include "support/vk_shared.h"

#include "nn.h"
#include "vk_nn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

// -- the device, opened once --

enum { GUARD = 256, TENSOR_MAX = 48 };

// Floats or int32 on the device, between two guards, and a copy on the host.
typedef struct tensor {
    tl_range whole, range;
    size_t   n;
    float   *host;
} tensor;

static struct {
    shared_device device;
    vk_nn         nn;
    tensor        tensors[TENSOR_MAX];
    int           tensor_count;
    uint64_t      checksum;  // of everything downloaded
} g;

static void ok(tl_result result) { shared_ok(&g.device, result); }

static int has_device(const char *test) {
    if (!vkt_has_vulkan(test)) return 0;
    if (shared_open(&g.device)) ok(vk_nn_init(&g.device.backend, &g.nn));
    return 1;
}

static int close_device(void **state) {
    (void)state;
    if (!g.device.is_open) return 0;
    vk_nn_free(&g.nn);
    return shared_close(&g.device);
}

#define NEED_DEVICE() do { if (!has_device(__func__)) skip(); } while (0)

// -- tensors --

static void upload(tensor *t) {
    void *mapped;
    ok(g.device.backend.map(g.device.backend.self, t->whole, TL_MAP_WRITE, &mapped));
    memset(mapped, 0xA5, (size_t)t->whole.bytes);
    memcpy((char *)mapped + GUARD, t->host, t->n * sizeof(float));
    ok(g.device.backend.unmap(g.device.backend.self, t->whole, TL_MAP_WRITE, mapped));
}

// Wait for the device and fetch; a byte changed around the tensor is a failure.
static void download(tensor *t) {
    tl_ticket ticket;
    void *mapped;
    const unsigned char *bytes;
    size_t i, size = t->n * sizeof(float);
    ok(g.device.backend.submit(g.device.backend.self, &ticket));
    ok(g.device.backend.wait(g.device.backend.self, ticket));
    ok(g.device.backend.map(g.device.backend.self, t->whole, TL_MAP_READ, &mapped));
    bytes = (const unsigned char *)mapped;
    for (i = 0; i < GUARD; i++)
        if (bytes[i] != 0xA5 || bytes[GUARD + size + i] != 0xA5) fail_msg("%s", "a guard byte changed");
    memcpy(t->host, bytes + GUARD, size);
    ok(g.device.backend.unmap(g.device.backend.self, t->whole, TL_MAP_READ, mapped));
    g.checksum = nn_checksum(g.checksum, t->host, size);
}

static tensor *make_empty(size_t n) {
    tensor *t = &g.tensors[g.tensor_count++];
    assert_true(g.tensor_count <= TENSOR_MAX);
    t->n = n;
    t->host = (float *)calloc(n, sizeof(float));
    assert_non_null(t->host);
    t->whole.offset = 0;
    t->whole.bytes = n * sizeof(float) + 2 * GUARD;
    ok(g.device.backend.add_block(g.device.backend.self, TL_TIER_DEVICE, t->whole.bytes, &t->whole.block));
    ok(g.device.backend.claim(g.device.backend.self, t->whole));
    t->range = t->whole;
    t->range.offset = GUARD;
    t->range.bytes = n * sizeof(float);
    return t;
}

// Zeroes; what a forward is to overwrite.
static tensor *make_zero(size_t n) {
    tensor *t = make_empty(n);
    upload(t);
    return t;
}

static tensor *make(size_t n, uint64_t seed) {
    tensor *t = make_empty(n);
    size_t i;
    for (i = 0; i < n; i++) t->host[i] = nn_uniform(seed, i) * 2.0f - 1.0f;
    upload(t);
    return t;
}

static const int32_t *ints(const tensor *t) { return (const int32_t *)(const void *)t->host; }

// Token numbers below a limit.
static tensor *make_tokens(size_t n, uint32_t limit, uint64_t seed) {
    tensor *t = make_empty(n);
    size_t i;
    for (i = 0; i < n; i++) {
        int32_t token = (int32_t)(nn_hash(seed, i) % limit);
        memcpy(&t->host[i], &token, sizeof token);
    }
    upload(t);
    return t;
}

static float *copy_of(const tensor *t) {
    float *copy = (float *)malloc(t->n * sizeof(float));
    assert_non_null(copy);
    memcpy(copy, t->host, t->n * sizeof(float));
    return copy;
}

static void free_tensors(void) {
    tl_ticket ticket;
    int i;
    ok(g.device.backend.submit(g.device.backend.self, &ticket));
    ok(g.device.backend.wait(g.device.backend.self, ticket));
    for (i = 0; i < g.tensor_count; i++) {
        ok(g.device.backend.release(g.device.backend.self, g.tensors[i].whole));
        ok(g.device.backend.free_block(g.device.backend.self, g.tensors[i].whole.block));
        free(g.tensors[i].host);
    }
    memset(g.tensors, 0, sizeof g.tensors);
    g.tensor_count = 0;
}

static void assert_near(double actual, double expected, double tolerance, const char *what,
                        size_t i) {
    double error = fabs(actual - expected);
    if (!(error <= tolerance * (1.0 + fabs(expected))))  // a NaN fails too
        fail_msg("%s[%zu] is %.9g, expected %.9g", what, i, actual, expected);
}

// Download, compare, and free what was expected.
static void assert_result(tensor *t, float *expected, double tolerance, const char *what) {
    size_t i;
    download(t);
    for (i = 0; i < t->n; i++) assert_near(t->host[i], expected[i], tolerance, what, i);
    free(expected);
}

static const tl_range nothing = { 0, 0, 0 };

// -- against nn.h --
//
// These are bodies: a test runs each of them, and another one runs each twice.

typedef struct shape {
    uint32_t a, b, c, d;
} shape;

static void compare_linear(const shape *s) {
    uint32_t R = s->a, K = s->b, N = s->c;
    tensor *in = make(R * K, 1), *weight = make(K * N, 2), *bias = make(N, 3),
           *out = make_zero(R * N);
    tensor *dout = make(R * N, 4), *din = make(R * K, 5), *dw = make(K * N, 6), *db = make(N, 7);
    float *e_out = copy_of(out), *e_din = copy_of(din), *e_dw = copy_of(dw), *e_db = copy_of(db);
    nn_linear_forward(e_out, in->host, weight->host, bias->host, R, K, N);
    nn_linear_backward(e_din, e_dw, e_db, dout->host, in->host, weight->host, R, K, N);
    ok(vk_nn_linear_forward(&g.nn, out->range, in->range, weight->range, bias->range, R, K, N));
    ok(vk_nn_linear_backward(&g.nn, din->range, dw->range, db->range, dout->range, in->range,
                             weight->range, 0, R, K, N));
    assert_result(out, e_out, 2e-5, "out");
    assert_result(din, e_din, 2e-5, "din");
    assert_result(dw, e_dw, 2e-5, "dweight");
    assert_result(db, e_db, 2e-5, "dbias");
    free_tensors();
}

static void compare_embed(const shape *s) {
    uint32_t B = s->a, T = s->b, C = s->c, V = s->d;
    tensor *tokens = make_tokens(B * T, V, 1), *wte = make(V * C, 2), *wpe = make(T * C, 3);
    tensor *out = make_zero(B * T * C), *dout = make(B * T * C, 4);
    tensor *dwte = make(V * C, 5), *dwpe = make(T * C, 6);
    float *e_out = copy_of(out), *e_dwte = copy_of(dwte), *e_dwpe = copy_of(dwpe);
    nn_embed_forward(e_out, ints(tokens), wte->host, wpe->host, B, T, C);
    nn_embed_backward(e_dwte, e_dwpe, dout->host, ints(tokens), B, T, C);
    ok(vk_nn_embed_forward(&g.nn, out->range, tokens->range, wte->range, wpe->range, B, T, C, V));
    ok(vk_nn_embed_backward(&g.nn, dwte->range, dwpe->range, dout->range, tokens->range, 0, B, T, C,
                            V));
    assert_result(out, e_out, 0.0, "out");
    assert_result(dwte, e_dwte, 2e-5, "dwte");
    assert_result(dwpe, e_dwpe, 2e-5, "dwpe");
    free_tensors();
}

static void compare_norm(const shape *s) {
    uint32_t R = s->a, C = s->b;
    tensor *in = make(R * C, 1), *weight = make(C, 2), *bias = make(C, 3), *out = make_zero(R * C);
    tensor *saved = make_zero(2 * R), *dout = make(R * C, 4), *din = make(R * C, 5);
    tensor *dweight = make(C, 6), *dbias = make(C, 7);
    float *e_out = copy_of(out), *e_saved = copy_of(saved), *e_din = copy_of(din);
    float *e_dweight = copy_of(dweight), *e_dbias = copy_of(dbias);
    nn_norm_forward(e_out, e_saved, in->host, weight->host, bias->host, R, C);
    nn_norm_backward(e_din, e_dweight, e_dbias, dout->host, e_saved, in->host, weight->host, R, C);
    ok(vk_nn_norm_forward(&g.nn, out->range, saved->range, in->range, weight->range, bias->range, R,
                          C));
    ok(vk_nn_norm_backward(&g.nn, din->range, dweight->range, dbias->range, dout->range,
                           saved->range, in->range, weight->range, R, C));
    assert_result(out, e_out, 2e-5, "out");
    assert_result(saved, e_saved, 2e-5, "saved");
    assert_result(din, e_din, 5e-5, "din");
    assert_result(dweight, e_dweight, 2e-5, "dweight");
    assert_result(dbias, e_dbias, 2e-5, "dbias");
    free_tensors();
}

static void compare_attention(const shape *s) {
    uint32_t B = s->a, T = s->b, NH = s->c, C = NH * VK_NN_HEAD;
    size_t rows = (size_t)B * NH * T;
    tensor *qkv = make(3 * B * T * C, 1), *out = make_zero(B * T * C), *saved = make_zero(2 * rows);
    tensor *dout = make(B * T * C, 2), *dqkv = make(3 * B * T * C, 3), *scratch = make_zero(rows);
    float *e_out = copy_of(out), *e_dqkv = copy_of(dqkv);
    float *att = (float *)malloc(nn_attention_saved_bytes(B, NH, T));
    float *work = (float *)malloc(nn_attention_scratch_bytes(T));
    assert_true(att && work);
    nn_attention_forward(e_out, att, qkv->host, work, B, T, C, NH);
    nn_attention_backward(e_dqkv, dout->host, att, qkv->host, work, B, T, C, NH);
    ok(vk_nn_attention_forward(&g.nn, out->range, saved->range, qkv->range, B, T, NH));
    ok(vk_nn_attention_backward(&g.nn, dqkv->range, dout->range, saved->range, qkv->range,
                                scratch->range, B, T, NH));
    assert_result(out, e_out, 2e-5, "out");
    assert_result(dqkv, e_dqkv, 2e-5, "dqkv");
    free(att);
    free(work);
    free_tensors();
}

// The three products of attention: a call has its rows of scores, att, datt and dscores, the rest is whole.
typedef struct products {
    tensor *qkv, *dout, *scores, *att, *datt, *dscores, *out, *dqkv;
} products;

static products make_products(uint32_t B, uint32_t T, uint32_t NH) {
    uint32_t n = B * T * NH * VK_NN_HEAD, square = B * NH * T * T;
    products p;
    p.qkv = make(3 * n, 1);
    p.dout = make(n, 2);
    p.scores = make(square, 3);
    p.att = make(square, 4);
    p.datt = make_zero(square);
    p.dscores = make_zero(square);
    p.out = make(n, 5);
    p.dqkv = make(3 * n, 6);
    return p;
}

static tl_range square_rows(const tensor *t, uint32_t first, uint32_t count, uint32_t T) {
    tl_range range = t->range;
    range.offset += (uint64_t)first * T * sizeof(float);
    range.bytes = (uint64_t)count * T * sizeof(float);
    return range;
}

static void run_products(const products *p, uint32_t first, uint32_t n, uint32_t T, uint32_t NH) {
    tl_range scores = square_rows(p->scores, first, n, T), att = square_rows(p->att, first, n, T);
    tl_range dscores = square_rows(p->dscores, first, n, T), datt = square_rows(p->datt, first, n, T);
    tl_range qkv = p->qkv->range, dqkv = p->dqkv->range;
    ok(vk_nn_scores_forward(&g.nn, scores, qkv, first, n, T, NH));
    ok(vk_nn_causal_softmax_forward(&g.nn, att, scores, first, n, T));
    ok(vk_nn_values_forward(&g.nn, p->out->range, att, qkv, first, n, T, NH));
    ok(vk_nn_values_backward(&g.nn, datt, dqkv, p->dout->range, att, qkv, first, n, T, NH));
    ok(vk_nn_causal_softmax_backward(&g.nn, dscores, datt, att, first, n, T));
    ok(vk_nn_scores_backward(&g.nn, dqkv, dscores, qkv, first, n, T, NH));
}

static void compare_products(const shape *s) {
    uint32_t B = s->a, T = s->b, NH = s->c, C = NH * VK_NN_HEAD, R = B * NH * T;
    products p = make_products(B, T, NH);
    float *e_scores = copy_of(p.scores), *e_att = copy_of(p.att), *e_datt = copy_of(p.datt);
    float *e_dscores = copy_of(p.dscores), *e_out = copy_of(p.out), *e_dqkv = copy_of(p.dqkv);
    nn_scores_forward(e_scores, p.qkv->host, 0, R, T, C, NH);
    nn_causal_softmax_forward(e_att, e_scores, 0, R, T, VK_NN_HEAD);
    nn_values_forward(e_out, e_att, p.qkv->host, 0, R, T, C, NH);
    nn_values_backward(e_datt, e_dqkv, p.dout->host, e_att, p.qkv->host, 0, R, T, C, NH);
    nn_causal_softmax_backward(e_dscores, e_datt, e_att, 0, R, T, VK_NN_HEAD);
    nn_scores_backward(e_dqkv, e_dscores, p.qkv->host, 0, R, T, C, NH);
    run_products(&p, 0, R, T, NH);
    assert_result(p.scores, e_scores, 2e-5, "scores");
    assert_result(p.att, e_att, 2e-5, "att");
    assert_result(p.out, e_out, 2e-5, "out");
    assert_result(p.datt, e_datt, 2e-5, "datt");
    assert_result(p.dscores, e_dscores, 2e-5, "dscores");
    assert_result(p.dqkv, e_dqkv, 2e-5, "dqkv");
    free_tensors();
}

static void compare_gelu(const shape *s) {
    uint32_t n = s->a, i;
    tensor *in = make(n, 1), *out = make_zero(n), *dout = make(n, 2), *din = make(n, 3);
    float *e_out = copy_of(out), *e_din = copy_of(din);
    for (i = 0; i < n; i++) in->host[i] *= 8.0f;
    in->host[n / 2] = -50.0f;  // e^x beyond what a float holds
    upload(in);
    nn_gelu_forward(e_out, in->host, n);
    nn_gelu_backward(e_din, dout->host, in->host, n);
    ok(vk_nn_gelu_forward(&g.nn, out->range, in->range, n));
    ok(vk_nn_gelu_backward(&g.nn, din->range, dout->range, in->range, n));
    assert_result(out, e_out, 2e-5, "out");
    assert_result(din, e_din, 2e-5, "din");
    free_tensors();
}

static void compare_add(const shape *s) {
    uint32_t n = s->a;
    tensor *a = make(n, 1), *b = make(n, 2), *out = make_zero(n);
    tensor *dout = make(n, 3), *da = make(n, 4), *db = make(n, 5), *both = make(n, 6);
    float *e_out = copy_of(out), *e_da = copy_of(da), *e_db = copy_of(db), *e_both = copy_of(both);
    nn_add_forward(e_out, a->host, b->host, n);
    nn_add_backward(e_da, e_db, dout->host, n);
    nn_add_backward(e_both, e_both, dout->host, n);
    ok(vk_nn_add_forward(&g.nn, out->range, a->range, b->range, n));
    ok(vk_nn_add_backward(&g.nn, da->range, db->range, dout->range, n));
    ok(vk_nn_add_backward(&g.nn, both->range, both->range, dout->range, n));
    assert_result(out, e_out, 0.0, "out");
    assert_result(da, e_da, 0.0, "da");
    assert_result(db, e_db, 0.0, "db");
    assert_result(both, e_both, 0.0, "both");
    free_tensors();
}

static void compare_dropout(const shape *s) {
    const uint64_t seed = 0x9E3779B97F4A7C15u;
    const float p = (float)s->b / 100.0f, scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
    uint32_t n = s->a, i;
    tensor *in = make(n, 1), *out = make(n, 2), *dout = make(n, 3), *din = make(n, 4);
    float *e_out = copy_of(out), *e_din = copy_of(din);
    for (i = 0; i < n; i++) {
        int keeps = vk_nn_dropout_keeps(p, seed, i);
        e_out[i] = keeps ? in->host[i] * scale : 0.0f;
        if (keeps) e_din[i] += dout->host[i] * scale;
    }
    ok(vk_nn_dropout_forward(&g.nn, out->range, in->range, n, p, seed, 0));
    ok(vk_nn_dropout_backward(&g.nn, din->range, dout->range, n, p, seed, 0));
    assert_result(out, e_out, 1e-6, "out");
    assert_result(din, e_din, 1e-6, "din");
    free_tensors();
}

static void compare_loss(const shape *s) {
    uint32_t R = s->a, V = s->b, i;
    tensor *logits = make(R * V, 1), *targets = make_tokens(R, V, 2), *loss = make_zero(1);
    tensor *scratch = make_zero(R), *dloss = make_zero(1), *dlogits = make(R * V, 3);
    float *e_loss = copy_of(loss), *e_dlogits = copy_of(dlogits);
    for (i = 0; i < R * V; i++) logits->host[i] *= 30.0f;
    dloss->host[0] = 0.75f;
    upload(logits);
    upload(dloss);
    nn_cross_entropy_forward(e_loss, NULL, logits->host, ints(targets), R, V);
    nn_cross_entropy_backward(e_dlogits, 0.75f, logits->host, ints(targets), R, V);
    ok(vk_nn_cross_entropy_forward(&g.nn, loss->range, logits->range, targets->range,
                                   scratch->range, R, V));
    ok(vk_nn_cross_entropy_backward(&g.nn, dlogits->range, dloss->range, logits->range,
                                    targets->range, R, V));
    assert_result(loss, e_loss, 2e-5, "loss");
    assert_result(dlogits, e_dlogits, 2e-5, "dlogits");
    free_tensors();
}

static void compare_adamw(const shape *s) {
    const nn_adamw host = { 1e-2f, 0.9f, 0.98f, 1e-8f, 0.05f };
    const vk_nn_adamw device = { 1e-2f, 0.9f, 0.98f, 1e-8f, 0.05f };
    uint32_t n = s->a, step;
    tensor *param = make(n, 1), *m = make_zero(n), *v = make_zero(n), *grad = make(n, 2);
    float *e_param = copy_of(param), *e_m = copy_of(m), *e_v = copy_of(v);
    for (step = 1; step <= 5; step++) {
        nn_adamw_update(e_param, e_m, e_v, grad->host, n, step, &host);
        ok(vk_nn_adamw_update(&g.nn, param->range, m->range, v->range, grad->range, n, step,
                              &device));
    }
    assert_result(param, e_param, 2e-5, "param");
    assert_result(m, e_m, 2e-5, "m");
    assert_result(v, e_v, 2e-5, "v");
    free_tensors();
}

typedef void (*compare_fn)(const shape *s);

// Every kernel, at sizes of one, below, at and above blocks and workgroups.
static const struct { compare_fn compare; shape sizes; } comparisons[] = {
    { compare_linear, { 1, 1, 1, 0 } },     { compare_linear, { 5, 7, 9, 0 } },
    { compare_linear, { 33, 17, 66, 0 } },  { compare_linear, { 4, 64, 8, 0 } },
    { compare_linear, { 64, 65, 67, 0 } },  { compare_linear, { 333, 131, 33, 0 } },
    { compare_linear, { 1031, 5, 19, 0 } }, { compare_linear, { 17, 127, 129, 0 } },
    { compare_embed, { 1, 1, 1, 1 } },      { compare_embed, { 3, 5, 7, 4 } },
    { compare_embed, { 2, 33, 16, 97 } },   { compare_norm, { 1, 2, 0, 0 } },
    { compare_norm, { 67, 33, 0, 0 } },     { compare_norm, { 1031, 19, 0, 0 } },
    { compare_norm, { 64, 4, 0, 0 } },      { compare_attention, { 1, 1, 1, 0 } },
    { compare_attention, { 3, 7, 3, 0 } },  { compare_attention, { 2, 65, 2, 0 } },
    { compare_products, { 1, 1, 1, 0 } },   { compare_products, { 2, 65, 2, 0 } },
    { compare_gelu, { 1, 0, 0, 0 } },       { compare_gelu, { 1001, 0, 0, 0 } },
    { compare_add, { 1, 0, 0, 0 } },        { compare_add, { 129, 0, 0, 0 } },
    { compare_dropout, { 1003, 0, 0, 0 } }, { compare_dropout, { 1003, 30, 0, 0 } },
    { compare_dropout, { 65, 100, 0, 0 } }, { compare_loss, { 1, 1, 0, 0 } },
    { compare_loss, { 70, 97, 0, 0 } },     { compare_loss, { 3, 130, 0, 0 } },
    { compare_adamw, { 1, 0, 0, 0 } },      { compare_adamw, { 333, 0, 0, 0 } },
};

// As a device that computes on the host has it, then as a GPU has it.
static void compare_all(compare_fn compare) {
    size_t i;
    for (g.nn.is_gpu = 0; g.nn.is_gpu < 2; g.nn.is_gpu++)
        for (i = 0; i < COUNT(comparisons); i++)
            if (comparisons[i].compare == compare) compare(&comparisons[i].sizes);
    g.nn.is_gpu = 0;
}

#define COMPARES(name) \
    static void name##_equals_that_of_the_host(void **state) { \
        (void)state;                                           \
        NEED_DEVICE();                                         \
        compare_all(compare_##name);                           \
    }
COMPARES(linear)
COMPARES(embed)
COMPARES(norm)
COMPARES(attention)
COMPARES(products)
COMPARES(gelu)
COMPARES(add)
COMPARES(dropout)
COMPARES(loss)
COMPARES(adamw)

static uint64_t checksum_of(size_t comparison) {
    g.checksum = 0;
    comparisons[comparison].compare(&comparisons[comparison].sizes);
    return g.checksum;
}

static void every_kernel_gives_the_same_bits_again(void **state) {
    size_t i;
    (void)state;
    NEED_DEVICE();
    for (i = 0; i < COUNT(comparisons); i++) {
        for (g.nn.is_gpu = 0; g.nn.is_gpu < 2; g.nn.is_gpu++) {
            uint64_t first = checksum_of(i);
            assert_true(first == checksum_of(i) && first != 0);
        }
        g.nn.is_gpu = 0;
    }
}

// Sums in another order round otherwise: equal bits say that the kernels of a GPU have not run.
static void a_gpu_sums_in_another_order(void **state) {
    enum { R = 1031, C = 19, SUMS = 4 };
    tensor *in, *dout, *saved, *sums[2][SUMS];
    int i;
    (void)state;
    NEED_DEVICE();
    in = make(R * C, 1);
    dout = make(R * C, 2);
    saved = make(2 * R, 3);
    for (g.nn.is_gpu = 0; g.nn.is_gpu < 2; g.nn.is_gpu++) {
        tensor **to = sums[g.nn.is_gpu];
        for (i = 0; i < SUMS; i++) to[i] = make_zero(i ? C : C * C);
        ok(vk_nn_linear_backward(&g.nn, nothing, to[0]->range, to[1]->range, dout->range, in->range,
                                 in->range, 0, R, C, C));
        ok(vk_nn_norm_backward(&g.nn, nothing, to[2]->range, to[3]->range, dout->range,
                               saved->range, in->range, in->range, R, C));
        for (i = 0; i < SUMS; i++) download(to[i]);
    }
    g.nn.is_gpu = 0;
    for (i = 0; i < SUMS; i++) {
        size_t bytes = sums[0][i]->n * sizeof(float);
        assert_memory_not_equal(sums[0][i]->host, sums[1][i]->host, bytes);
    }
    free_tensors();
}

// -- what is not wanted --

static void forward_without_saved_has_the_same_bits(void **state) {
    enum { B = 2, T = 9, NH = 2, C = NH * VK_NN_HEAD };
    tensor *qkv, *out, *again, *saved, *weight, *bias;
    (void)state;
    NEED_DEVICE();
    qkv = make(3 * B * T * C, 1);
    out = make_zero(B * T * C);
    again = make_zero(B * T * C);
    saved = make_zero(2 * B * T * NH);
    weight = make(C, 2);
    bias = make(C, 3);
    ok(vk_nn_attention_forward(&g.nn, out->range, saved->range, qkv->range, B, T, NH));
    ok(vk_nn_attention_forward(&g.nn, again->range, nothing, qkv->range, B, T, NH));
    download(out);
    download(again);
    assert_memory_equal(out->host, again->host, out->n * sizeof(float));
    ok(vk_nn_norm_forward(&g.nn, out->range, saved->range, qkv->range, weight->range, bias->range,
                          B * T, C));
    ok(vk_nn_norm_forward(&g.nn, again->range, nothing, qkv->range, weight->range, bias->range,
                          B * T, C));
    download(out);
    download(again);
    assert_memory_equal(out->host, again->host, out->n * sizeof(float));
    free_tensors();
}

// FORWARD_SAVE of outputs that stand: saved alone is made, and is what a whole forward makes.
static void saved_alone_has_the_same_bits(void **state) {
    enum { B = 2, T = 9, NH = 2, C = NH * VK_NN_HEAD };
    tensor *qkv, *out, *saved, *again, *weight, *bias;
    int op;
    (void)state;
    NEED_DEVICE();
    qkv = make(3 * B * T * C, 1);
    weight = make(C, 2);
    bias = make(C, 3);
    out = make_zero(B * T * C);
    for (op = 0; op < 2; op++) {
        size_t n = op ? 2 * B * T : 2 * B * T * NH;
        saved = make_zero(n);
        again = make_zero(n);
        if (op == 0) {
            ok(vk_nn_attention_forward(&g.nn, out->range, saved->range, qkv->range, B, T, NH));
            ok(vk_nn_attention_forward(&g.nn, nothing, again->range, qkv->range, B, T, NH));
        } else {
            ok(vk_nn_norm_forward(&g.nn, out->range, saved->range, qkv->range, weight->range,
                                  bias->range, B * T, C));
            ok(vk_nn_norm_forward(&g.nn, nothing, again->range, qkv->range, weight->range,
                                  bias->range, B * T, C));
        }
        download(saved);
        download(again);
        assert_memory_equal(saved->host, again->host, n * sizeof(float));
        assert_true(saved->host[0] != 0.0f);
    }
    free_tensors();
}

static void gradients_not_wanted_are_left_out(void **state) {
    enum { R = 5, K = 6, N = 7 };
    tensor *in, *weight, *dout, *din, *dw, *db;
    float *e_dw;
    (void)state;
    NEED_DEVICE();
    in = make(R * K, 1);
    weight = make(K * N, 2);
    dout = make(R * N, 3);
    din = make(R * K, 4);
    dw = make(K * N, 5);
    db = make(N, 6);
    e_dw = copy_of(dw);
    nn_linear_backward(NULL, e_dw, NULL, dout->host, in->host, weight->host, R, K, N);
    ok(vk_nn_linear_backward(&g.nn, nothing, dw->range, nothing, dout->range, in->range,
                             weight->range, 0, R, K, N));
    ok(vk_nn_norm_backward(&g.nn, nothing, nothing, nothing, dout->range, in->range, in->range,
                           weight->range, R, K));
    ok(vk_nn_add_backward(&g.nn, nothing, nothing, dout->range, R * N));
    assert_result(dw, e_dw, 2e-5, "dweight");
    assert_result(din, copy_of(din), 0.0, "din");
    assert_result(db, copy_of(db), 0.0, "dbias");
    free_tensors();
}

// Rows `first` .. first + count - 1 of a tensor of so many floats a row, as a tensor of their own.
static tensor *make_rows(const float *from, uint32_t first, uint32_t count, uint32_t width) {
    tensor *t = make_empty((size_t)count * width);
    memcpy(t->host, from + (size_t)first * width, t->n * sizeof(float));
    upload(t);
    return t;
}

static void assert_rows(tensor *t, const tensor *whole, uint32_t first, uint32_t width) {
    download(t);
    assert_memory_equal(t->host, whole->host + (size_t)first * width, t->n * sizeof(float));
}

// On both kinds of devices, with no byte beside the rows changed.
static void rows_of_a_gradient_have_the_bits_of_the_whole(void **state) {
    enum { R = 70, K = 21, N = 19 };
    static const uint32_t pieces[][2] = { { 0, 1 }, { 5, 7 }, { 17, 4 }, { 20, 1 }, { 0, 20 } };
    size_t i;
    (void)state;
    NEED_DEVICE();
    for (g.nn.is_gpu = 0; g.nn.is_gpu < 2; g.nn.is_gpu++) {
        tensor *in = make(R * K, 1), *dout = make(R * N, 2), *whole = make(K * N, 3);
        float *before = copy_of(whole);
        ok(vk_nn_linear_backward(&g.nn, nothing, whole->range, nothing, dout->range, in->range,
                                 nothing, 0, R, K, N));
        download(whole);
        for (i = 0; i < COUNT(pieces); i++) {
            tensor *t = make_rows(before, pieces[i][0], pieces[i][1], N);
            ok(vk_nn_linear_backward(&g.nn, nothing, t->range, nothing, dout->range, in->range,
                                     nothing, pieces[i][0], R, K, N));
            assert_rows(t, whole, pieces[i][0], N);
        }
        free(before);
        free_tensors();
    }
    g.nn.is_gpu = 0;
}

// Of tokens, of positions, and of both, the last tokens and the first positions.
static void rows_of_an_embedding_have_the_bits_of_the_whole(void **state) {
    enum { B = 3, T = 5, C = 7, V = 4 };
    static const uint32_t pieces[][4] = {  // first and count of tokens, then of positions
        { 0, 1, 0, 0 }, { 1, 2, 0, 0 }, { 2, 2, 0, 3 }, { 3, 1, 0, 5 }, { 0, 0, 0, 2 }, { 0, 0, 4, 1 } };
    tensor *tokens, *dout, *dwte, *dwpe;
    float *wte, *wpe;
    size_t i;
    (void)state;
    NEED_DEVICE();
    tokens = make_tokens(B * T, V, 1);
    dout = make(B * T * C, 2);
    dwte = make(V * C, 3);
    dwpe = make(T * C, 4);
    wte = copy_of(dwte);
    wpe = copy_of(dwpe);
    ok(vk_nn_embed_backward(&g.nn, dwte->range, dwpe->range, dout->range, tokens->range, 0, B, T, C,
                            V));
    download(dwte);
    download(dwpe);
    for (i = 0; i < COUNT(pieces); i++) {
        const uint32_t *p = pieces[i];
        tensor *of_tokens = p[1] ? make_rows(wte, p[0], p[1], C) : NULL;
        tensor *of_positions = p[3] ? make_rows(wpe, p[2], p[3], C) : NULL;
        ok(vk_nn_embed_backward(&g.nn, of_tokens ? of_tokens->range : nothing,
                                of_positions ? of_positions->range : nothing, dout->range,
                                tokens->range, of_tokens ? p[0] : V + p[2], B, T, C, V));
        if (of_tokens) assert_rows(of_tokens, dwte, p[0], C);
        if (of_positions) assert_rows(of_positions, dwpe, p[2], C);
    }
    free(wte);
    free(wpe);
    free_tensors();
}

// -- ranges of rows --
//
// Each kernel is called for all rows, and for ranges of some row units one after the other. Outputs, gradients
// of rows and gradients of whole operands must have the same bits, on both kinds of devices.

enum { RANGE_ROWS = 1149, RANGE_CUTS = 3 };  // no multiple of a unit

static uint32_t rows_of_call(int cut, uint32_t first) {
    uint32_t rows =
        vk_nn_row_unit(&g.nn) * (cut < 2 ? 1 + (uint32_t)cut : 1 + (uint32_t)(nn_hash(7, first) % 2));
    return rows < RANGE_ROWS - first ? rows : RANGE_ROWS - first;
}

// Rows of a tensor of so many floats a row.
static tl_range rows_of(const tensor *t, uint32_t first, uint32_t count, uint32_t width) {
    tl_range range = t->range;
    range.offset += (uint64_t)first * width * sizeof(float);
    range.bytes = (uint64_t)count * width * sizeof(float);
    return range;
}

// Rows first .. first + count - 1 of all RANGE_ROWS; x: what kernels read, y: what they write or add to.
typedef void (*range_fn)(tensor *const *x, tensor *const *y, uint32_t first, uint32_t count);

typedef struct range_case {
    range_fn run;
    uint32_t x[6], y[4];        // floats of each; 0 = no more
    uint32_t tokens, limit;     // x[tokens - 1] has token numbers below a limit; 0 = none has
} range_case;

enum { RK = 20, RN = 28, RT = 37, RV = 19 };

static void range_linear(tensor *const *x, tensor *const *y, uint32_t first, uint32_t count) {
    ok(vk_nn_linear_forward(&g.nn, rows_of(y[0], first, count, RN), rows_of(x[0], first, count, RK),
                            x[1]->range, x[2]->range, count, RK, RN));
    ok(vk_nn_linear_backward(&g.nn, rows_of(y[1], first, count, RK), y[2]->range, y[3]->range,
                             rows_of(x[3], first, count, RN), rows_of(x[0], first, count, RK), x[1]->range, 0,
                             count, RK, RN));
}

static void range_norm(tensor *const *x, tensor *const *y, uint32_t first, uint32_t count) {
    tl_range in = rows_of(x[0], first, count, RK), saved = rows_of(y[3], first, count, 2);
    ok(vk_nn_norm_forward(&g.nn, rows_of(y[0], first, count, RK), saved, in, x[1]->range, x[2]->range, count,
                          RK));
    ok(vk_nn_norm_backward(&g.nn, rows_of(y[0], first, count, RK), y[1]->range, y[2]->range,
                           rows_of(x[3], first, count, RK), saved, in, x[1]->range, count, RK));
}

static void range_embed(tensor *const *x, tensor *const *y, uint32_t first, uint32_t count) {
    tl_range tokens = rows_of(x[0], first, count, 1);
    ok(vk_nn_embed_forward_range(&g.nn, rows_of(y[0], first, count, RK), tokens, x[1]->range, x[2]->range,
                                 first, count, RT, RK, RV));
    ok(vk_nn_embed_backward_range(&g.nn, y[1]->range, y[2]->range, rows_of(x[3], first, count, RK), tokens, 0,
                                  first, count, RT, RK, RV));
}

static void range_loss(tensor *const *x, tensor *const *y, uint32_t first, uint32_t count) {
    tl_range logits = rows_of(x[0], first, count, RV), targets = rows_of(x[1], first, count, 1);
    ok(vk_nn_cross_entropy_forward_range(&g.nn, y[0]->range, logits, targets, rows_of(y[1], first, count, 1),
                                         first, count, RANGE_ROWS, RV));
    ok(vk_nn_cross_entropy_backward_range(&g.nn, rows_of(y[2], first, count, RV), x[2]->range, logits, targets,
                                          count, RANGE_ROWS, RV));
}

static void range_elements(tensor *const *x, tensor *const *y, uint32_t first, uint32_t count) {
    tl_range in = rows_of(x[0], first, count, RK), dout = rows_of(x[1], first, count, RK);
    tl_range out = rows_of(y[0], first, count, RK), din = rows_of(y[1], first, count, RK);
    ok(vk_nn_gelu_forward(&g.nn, out, in, count * RK));
    ok(vk_nn_gelu_backward(&g.nn, din, dout, in, count * RK));
    ok(vk_nn_add_backward(&g.nn, out, din, in, count * RK));
    ok(vk_nn_dropout_forward(&g.nn, rows_of(y[2], first, count, RK), in, count * RK, 0.3f, 5, first * RK));
    ok(vk_nn_dropout_backward(&g.nn, din, dout, count * RK, 0.3f, 5, first * RK));
}

enum { OF_RK = RANGE_ROWS * RK, OF_RN = RANGE_ROWS * RN, OF_RV = RANGE_ROWS * RV };

static const range_case range_cases[] = {
    { range_linear, { OF_RK, RK * RN, RN, OF_RN }, { OF_RN, OF_RK, RK * RN, RN }, 0, 0 },
    { range_norm, { OF_RK, RK, RK, OF_RK }, { OF_RK, RK, RK, 2 * RANGE_ROWS }, 0, 0 },
    { range_embed, { RANGE_ROWS, RV * RK, RT * RK, OF_RK }, { OF_RK, RV * RK, RT * RK }, 1, RV },
    { range_loss, { OF_RV, RANGE_ROWS, 1 }, { 1, RANGE_ROWS, OF_RV }, 2, RV },
    { range_elements, { OF_RK, OF_RK }, { OF_RK, OF_RK, OF_RK }, 0, 0 },
};

static void make_range_inputs(const range_case *c, tensor **x) {
    uint32_t k;
    for (k = 0; k < COUNT(c->x) && c->x[k]; k++)
        x[k] = k + 1 == c->tokens ? make_tokens(c->x[k], c->limit, 10 + k) : make(c->x[k], 10 + k);
}

static void make_range_outputs(const range_case *c, tensor **y) {
    uint32_t k;
    for (k = 0; k < COUNT(c->y) && c->y[k]; k++) y[k] = make(c->y[k], 20 + k);
}

static void check_range_case(const range_case *c) {
    tensor *x[COUNT(c->x)], *whole[COUNT(c->y)], *y[COUNT(c->y)];
    uint32_t k, first, n;
    int cut;
    make_range_inputs(c, x);
    make_range_outputs(c, whole);
    c->run(x, whole, 0, RANGE_ROWS);
    for (k = 0; k < COUNT(c->y) && c->y[k]; k++) download(whole[k]);
    for (cut = 0; cut < RANGE_CUTS; cut++) {
        make_range_outputs(c, y);
        for (first = 0; first < RANGE_ROWS; first += n) {
            n = rows_of_call(cut, first);
            c->run(x, y, first, n);
        }
        for (k = 0; k < COUNT(c->y) && c->y[k]; k++) assert_rows(y[k], whole[k], 0, 1);
    }
    free_tensors();
}

static void ranges_of_rows_have_the_bits_of_the_whole(void **state) {
    size_t i;
    (void)state;
    NEED_DEVICE();
    for (g.nn.is_gpu = 0; g.nn.is_gpu < 2; g.nn.is_gpu++)
        for (i = 0; i < COUNT(range_cases); i++) check_range_case(&range_cases[i]);
    g.nn.is_gpu = 0;
}

// Of any rows, across heads and sequences.
static void ranges_of_products_have_the_bits_of_the_whole(void **state) {
    enum { B = 2, T = 64, NH = 2, R = B * NH * T };
    static const uint32_t blocks[] = { 3, 24, 100 };
    products whole, cut;
    uint32_t first, n, k;
    (void)state;
    NEED_DEVICE();
    for (k = 0; k < COUNT(blocks); k++) {
        whole = make_products(B, T, NH);
        cut = make_products(B, T, NH);
        run_products(&whole, 0, R, T, NH);
        for (first = 0; first < R; first += n) {
            n = blocks[k] < R - first ? blocks[k] : R - first;
            run_products(&cut, first, n, T, NH);
        }
        download(whole.out);
        download(whole.dqkv);
        download(whole.att);
        assert_rows(cut.out, whole.out, 0, 1);
        assert_rows(cut.dqkv, whole.dqkv, 0, 1);
        assert_rows(cut.att, whole.att, 0, 1);
        free_tensors();
    }
}

static void a_linear_without_bias_starts_at_zero(void **state) {
    enum { R = 3, K = 5, N = 6 };
    tensor *in, *weight, *out;
    float *expected;
    (void)state;
    NEED_DEVICE();
    in = make(R * K, 1);
    weight = make(K * N, 2);
    out = make(R * N, 3);
    expected = copy_of(out);
    nn_linear_forward(expected, in->host, weight->host, NULL, R, K, N);
    ok(vk_nn_linear_forward(&g.nn, out->range, in->range, weight->range, nothing, R, K, N));
    assert_result(out, expected, 2e-5, "out");
    free_tensors();
}

// More workgroups than one direction takes: the second one is used, and nothing is left out.
static void sizes_beyond_one_row_of_workgroups_are_whole(void **state) {
    const uint32_t n = VK_NN_GROUPS * VK_NN_WORKGROUP + 77;
    tensor *a, *out;
    uint32_t i;
    (void)state;
    NEED_DEVICE();
    a = make(n, 1);
    out = make_zero(n);
    ok(vk_nn_add_forward(&g.nn, out->range, a->range, a->range, n));
    download(out);
    for (i = 0; i < n; i++)
        if (out->host[i] != a->host[i] + a->host[i]) fail_msg("element %u differs", (unsigned)i);
    free_tensors();
}

// The same of tiles: every element is a product of ones, a number of its row and one of its column.
static void tiles_beyond_one_row_of_workgroups_are_whole(void **state) {
    enum { R = 4111, K = VK_NN_SLAB + 1, N = 4099 };
    tensor *in, *weight, *out;
    size_t i;
    (void)state;
    NEED_DEVICE();
    in = make_empty((size_t)R * K);
    weight = make_empty((size_t)K * N);
    out = make_zero((size_t)R * N);
    for (i = 0; i < in->n; i++) in->host[i] = (float)(i / K % 61 + 1);
    for (i = 0; i < weight->n; i++) weight->host[i] = (float)(i % N % 59 + 1);
    upload(in);
    upload(weight);
    g.nn.is_gpu = 1;
    ok(vk_nn_linear_forward(&g.nn, out->range, in->range, weight->range, nothing, R, K, N));
    g.nn.is_gpu = 0;
    download(out);
    for (i = 0; i < out->n; i++)
        if (out->host[i] != (float)((i / N % 61 + 1) * (i % N % 59 + 1) * K))
            fail_msg("element %zu is %g", i, (double)out->host[i]);
    free_tensors();
}

// And of columns, of which a workgroup of a GPU owns four.
static void columns_beyond_one_row_of_workgroups_are_whole(void **state) {
    const uint32_t R = 2, N = VK_NN_GROUPS * 4 + 7;
    tensor *dout, *db, *saved, *in, *dweight, *dbias;
    uint32_t i;
    (void)state;
    NEED_DEVICE();
    dout = make((size_t)R * N, 1);
    in = make((size_t)R * N, 2);
    saved = make(2 * R, 3);
    db = make_zero(N);
    dweight = make_zero(N);
    dbias = make_zero(N);
    g.nn.is_gpu = 1;
    ok(vk_nn_linear_backward(&g.nn, nothing, nothing, db->range, dout->range, in->range, in->range,
                             0, R, 1, N));
    ok(vk_nn_norm_backward(&g.nn, nothing, dweight->range, dbias->range, dout->range, saved->range,
                           in->range, in->range, R, N));
    g.nn.is_gpu = 0;
    download(db);
    download(dweight);
    download(dbias);
    for (i = 0; i < N; i++) {
        const float *d = dout->host + i, *x = in->host + i, *s = saved->host;
        assert_near(db->host[i], d[0] + d[N], 2e-5, "db", i);
        assert_near(dbias->host[i], d[0] + d[N], 2e-5, "dbias", i);
        assert_near(dweight->host[i], (x[0] - s[0]) * s[1] * d[0] + (x[N] - s[2]) * s[3] * d[N],
                    2e-5, "dweight", i);
    }
    free_tensors();
}

static void dropout_keeps_the_ratio_asked_for(void **state) {
    uint32_t i, kept = 0, changed = 0;
    (void)state;
    for (i = 0; i < 100000; i++) {
        int keeps = vk_nn_dropout_keeps(0.3f, 7, i);
        kept += (uint32_t)keeps;
        changed += keeps != vk_nn_dropout_keeps(0.3f, 8, i);
    }
    assert_in_range(kept, 69500, 70500);
    assert_in_range(changed, 41000, 43000);  // 2 0.3 0.7 of all where seeds are independent
}

// -- against finite differences --
//
// With random weights w, loss = sum_i w_i out_i. Backward with dout = w gives the slopes of it.

typedef struct slope_case {
    tensor *out, *dout, *saved, *scratch, *x[4];  // x: what is differentiated, NULL = no more
    tensor *dx[4];
    tensor *fixed;                                // tokens or targets
} slope_case;

typedef void (*forward_fn)(const slope_case *s);

static double find_loss(const slope_case *s, forward_fn forward) {
    double sum = 0.0;
    size_t i;
    forward(s);
    download(s->out);
    for (i = 0; i < s->out->n; i++) sum += (double)s->dout->host[i] * (double)s->out->host[i];
    return sum;
}

// Run both directions, then compare every gradient with the difference of two losses.
static void check_slopes(slope_case *s, forward_fn forward, forward_fn backward) {
    int k;
    forward(s);
    backward(s);
    for (k = 0; k < 4 && s->x[k]; k++) {
        tensor *x = s->x[k];
        size_t i;
        download(s->dx[k]);
        for (i = 0; i < x->n; i++) {
            const float before = x->host[i], h = 1e-2f;
            volatile float above = before + h, below = before - h;
            double plus, minus;
            x->host[i] = above;
            upload(x);
            plus = find_loss(s, forward);
            x->host[i] = below;
            upload(x);
            minus = find_loss(s, forward);
            x->host[i] = before;
            upload(x);
            assert_near(s->dx[k]->host[i], (plus - minus) / ((double)above - (double)below), 2e-3,
                        "gradient", i);
        }
    }
    free_tensors();
}

static void run_linear(const slope_case *s) {
    ok(vk_nn_linear_forward(&g.nn, s->out->range, s->x[0]->range, s->x[1]->range, s->x[2]->range, 3,
                            5, 2));
}

static void run_linear_backward(const slope_case *s) {
    ok(vk_nn_linear_backward(&g.nn, s->dx[0]->range, s->dx[1]->range, s->dx[2]->range,
                             s->dout->range, s->x[0]->range, s->x[1]->range, 0, 3, 5, 2));
}

static void linear_backward_matches_differences(void **state) {
    slope_case s;
    (void)state;
    NEED_DEVICE();
    memset(&s, 0, sizeof s);
    s.x[0] = make(15, 1);
    s.x[1] = make(10, 2);
    s.x[2] = make(2, 3);
    s.dx[0] = make_zero(15);
    s.dx[1] = make_zero(10);
    s.dx[2] = make_zero(2);
    s.out = make_zero(6);
    s.dout = make(6, 4);
    check_slopes(&s, run_linear, run_linear_backward);
}

static void run_norm(const slope_case *s) {
    ok(vk_nn_norm_forward(&g.nn, s->out->range, s->saved->range, s->x[0]->range, s->x[1]->range,
                          s->x[2]->range, 3, 6));
}

static void run_norm_backward(const slope_case *s) {
    ok(vk_nn_norm_backward(&g.nn, s->dx[0]->range, s->dx[1]->range, s->dx[2]->range, s->dout->range,
                           s->saved->range, s->x[0]->range, s->x[1]->range, 3, 6));
}

static void norm_backward_matches_differences(void **state) {
    slope_case s;
    (void)state;
    NEED_DEVICE();
    memset(&s, 0, sizeof s);
    s.x[0] = make(18, 1);
    s.x[1] = make(6, 2);
    s.x[2] = make(6, 3);
    s.dx[0] = make_zero(18);
    s.dx[1] = make_zero(6);
    s.dx[2] = make_zero(6);
    s.saved = make_zero(6);
    s.out = make_zero(18);
    s.dout = make(18, 4);
    check_slopes(&s, run_norm, run_norm_backward);
}

static void run_attention(const slope_case *s) {
    ok(vk_nn_attention_forward(&g.nn, s->out->range, s->saved->range, s->x[0]->range, 1, 3, 1));
}

static void run_attention_backward(const slope_case *s) {
    ok(vk_nn_attention_backward(&g.nn, s->dx[0]->range, s->dout->range, s->saved->range,
                                s->x[0]->range, s->scratch->range, 1, 3, 1));
}

static void attention_backward_matches_differences(void **state) {
    slope_case s;
    (void)state;
    NEED_DEVICE();
    memset(&s, 0, sizeof s);
    s.x[0] = make(3 * 3 * VK_NN_HEAD, 1);
    s.dx[0] = make_zero(3 * 3 * VK_NN_HEAD);
    s.saved = make_zero(6);
    s.scratch = make_zero(3);
    s.out = make_zero(3 * VK_NN_HEAD);
    s.dout = make(3 * VK_NN_HEAD, 2);
    check_slopes(&s, run_attention, run_attention_backward);
}

static void run_gelu(const slope_case *s) {
    ok(vk_nn_gelu_forward(&g.nn, s->out->range, s->x[0]->range, 33));
}

static void run_gelu_backward(const slope_case *s) {
    ok(vk_nn_gelu_backward(&g.nn, s->dx[0]->range, s->dout->range, s->x[0]->range, 33));
}

static void gelu_backward_matches_differences(void **state) {
    slope_case s;
    (void)state;
    NEED_DEVICE();
    memset(&s, 0, sizeof s);
    s.x[0] = make(33, 1);
    s.dx[0] = make_zero(33);
    s.out = make_zero(33);
    s.dout = make(33, 2);
    check_slopes(&s, run_gelu, run_gelu_backward);
}

static void run_loss(const slope_case *s) {
    ok(vk_nn_cross_entropy_forward(&g.nn, s->out->range, s->x[0]->range, s->fixed->range,
                                   s->scratch->range, 3, 5));
}

static void run_loss_backward(const slope_case *s) {
    ok(vk_nn_cross_entropy_backward(&g.nn, s->dx[0]->range, s->dout->range, s->x[0]->range,
                                    s->fixed->range, 3, 5));
}

static void loss_backward_matches_differences(void **state) {
    slope_case s;
    (void)state;
    NEED_DEVICE();
    memset(&s, 0, sizeof s);
    s.x[0] = make(15, 1);
    s.dx[0] = make_zero(15);
    s.fixed = make_tokens(3, 5, 2);
    s.scratch = make_zero(3);
    s.out = make_zero(1);
    s.dout = make(1, 3);
    check_slopes(&s, run_loss, run_loss_backward);
}

// -- through the executor: one block of a transformer --

enum { NET_B = 2, NET_T = 5, NET_C = 16, NET_V = 11, NET_NODES = 16, NET_ROWS = NET_B * NET_T };

typedef struct net_row {
    const char *name, *op, *needs;
    int32_t     from, from2;      // -1 = none
    uint32_t    in_width, width;
    uint32_t    weights, biases;  // floats
} net_row;

static const net_row net_rows[NET_NODES] = {
    { "tokens", "input", NULL, -1, -1, 0, 1, 0, 0 },
    { "targets", "input", NULL, -1, -1, 0, 1, 0, 0 },
    { "embed", "embed", "in", 0, -1, 1, NET_C, NET_V * NET_C, NET_T * NET_C },
    { "norm1", "norm", "in", 2, -1, NET_C, NET_C, NET_C, NET_C },
    { "qkv", "linear", "in", 3, -1, NET_C, 3 * NET_C, 3 * NET_C * NET_C, 3 * NET_C },
    { "attend", "attention", "in", 4, -1, 3 * NET_C, NET_C, 0, 0 },
    { "drop", "dropout", "none", 5, -1, NET_C, NET_C, 0, 0 },
    { "proj", "linear", "in", 6, -1, NET_C, NET_C, NET_C * NET_C, NET_C },
    { "add1", "add", "none", 2, 7, NET_C, NET_C, 0, 0 },
    { "norm2", "norm", "in", 8, -1, NET_C, NET_C, NET_C, NET_C },
    { "fc1", "linear", "in", 9, -1, NET_C, 2 * NET_C, 2 * NET_C * NET_C, 2 * NET_C },
    { "gelu", "gelu", "in", 10, -1, 2 * NET_C, 2 * NET_C, 0, 0 },
    { "fc2", "linear", "in", 11, -1, 2 * NET_C, NET_C, 2 * NET_C * NET_C, NET_C },
    { "add2", "add", "none", 8, 12, NET_C, NET_C, 0, 0 },
    { "head", "linear", "in", 13, -1, NET_C, NET_V, NET_C * NET_V, NET_V },
    { "loss", "loss", "in", 14, 1, NET_V, 1, 0, 0 },
};

static struct {
    tl_graph   graph;
    vk_nn_node nodes[NET_NODES];
    vk_nn_net  net;
    tensor    *params[2 * NET_NODES], *grads[2 * NET_NODES];
    int        count;
} n;

static void add_net_param(uint32_t count, uint64_t seed, tl_range *param, tl_range *grad) {
    if (!count) return;
    n.params[n.count] = make(count, seed);
    n.grads[n.count] = make_zero(count);
    *param = n.params[n.count]->range;
    *grad = n.grads[n.count++]->range;
}

// A part of a state begins at a multiple of 256 bytes.
static uint64_t part_floats(uint32_t count) { return ((uint64_t)count + 63) / 64 * 64; }

static void add_net_node(int32_t id) {
    const net_row *row = &net_rows[id];
    vk_nn_node *node = &n.nodes[id];
    uint64_t bytes = (id == NET_NODES - 1 ? 1u : NET_ROWS * row->width) * sizeof(float);
    tl_node_desc desc;
    tl_tensor inputs[2];
    memset(&desc, 0, sizeof desc);
    memset(inputs, 0, sizeof inputs);
    node->in_width = row->in_width;
    node->width = row->width;
    add_net_param(row->weights, 100 + (uint64_t)id, &node->weight, &node->dweight);
    add_net_param(row->biases, 200 + (uint64_t)id, &node->bias, &node->dbias);
    inputs[0].node = row->from;
    inputs[1].node = row->from2;
    desc.name = row->name;
    desc.op = row->op;
    desc.needs = row->needs;
    desc.inputs = inputs;
    desc.input_count = (row->from >= 0) + (row->from2 >= 0);
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fwd_cost = desc.bwd_cost = id > 1;
    desc.keep = id == NET_NODES - 1;
    desc.param_bytes = (part_floats(row->weights) + part_floats(row->biases)) * sizeof(float);
    if (strcmp(row->op, "norm") == 0) desc.saved_bytes = vk_nn_norm_saved_bytes(NET_ROWS);
    if (strcmp(row->op, "loss") == 0)
        desc.fwork_bytes = vk_nn_cross_entropy_scratch_bytes(NET_ROWS);
    if (strcmp(row->op, "attention") == 0) {
        desc.saved_bytes = vk_nn_attention_saved_bytes(NET_B, NET_C / VK_NN_HEAD, NET_T);
        desc.bwork_bytes = vk_nn_attention_scratch_bytes(NET_B, NET_C / VK_NN_HEAD, NET_T);
    }
    ok(tl_add_node(&g.device.env, &n.graph, &desc, NULL));
}

static void make_net(void) {
    int32_t id;
    memset(&n, 0, sizeof n);
    for (id = 0; id < NET_NODES; id++) add_net_node(id);
    n.net.nn = &g.nn;
    n.net.nodes = n.nodes;
    n.net.B = NET_B;
    n.net.T = NET_T;
    n.net.C = NET_C;
    n.net.V = NET_V;
    n.net.dropout = 0.2f;
}

// One pass by a plan that keeps every tensor, or none of them; returns the loss. Gradients are in
// n.grads, on the host too.
static float run_net(uint8_t keep_flag, int32_t *recomputed) {
    static const tl_tensor tokens = { 0, 0 }, targets = { 1, 0 }, loss = { NET_NODES - 1, 0 };
    int32_t ids[NET_ROWS], i;
    uint8_t keep[NET_NODES];
    float value;
    tl_plan plan;
    tl_run *run;
    tl_run_desc desc;
    tl_run_report report;
    tl_kernel kernels[VK_NN_OP_COUNT];
    memset(keep, keep_flag, sizeof keep);
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < n.count; i++) {
        memset(n.grads[i]->host, 0, n.grads[i]->n * sizeof(float));
        upload(n.grads[i]);
    }
    ok(tl_plan_kept_set(&g.device.env, &n.graph, keep, &plan));
    vk_nn_set_kernels(kernels, &n.net);
    desc.graph = &n.graph;
    desc.backend = &g.device.backend;
    desc.kernels = kernels;
    desc.kernel_count = VK_NN_OP_COUNT;
    desc.plan = &plan;
    desc.seed = 3;
    ok(tl_init_run(&g.device.env, &desc, &run));
    for (i = 0; i < NET_ROWS; i++) ids[i] = (int32_t)(nn_hash(9, (uint64_t)i) % NET_V);
    ok(tl_write_tensor(run, tokens, ids, sizeof ids));
    for (i = 0; i < NET_ROWS; i++) ids[i] = (int32_t)(nn_hash(8, (uint64_t)i) % NET_V);
    ok(tl_write_tensor(run, targets, ids, sizeof ids));
    ok(tl_run_plan(run));
    ok(tl_read_tensor(run, loss, &value, sizeof value));
    tl_measure_run(run, &report);
    if (recomputed) *recomputed = report.recompute_count;
    tl_free_run(run);
    tl_free_plan(&g.device.env, &plan);
    for (i = 0; i < n.count; i++) download(n.grads[i]);
    return value;
}

static void free_net(void) {
    free_tensors();
    tl_free_graph(&g.device.env, &n.graph);
}

static void a_network_that_recomputes_has_the_gradients_of_one_that_keeps(void **state) {
    float *kept[2 * NET_NODES], keeps, drops;
    int32_t recomputed = 0;
    int i;
    (void)state;
    NEED_DEVICE();
    make_net();
    keeps = run_net(1, NULL);
    for (i = 0; i < n.count; i++) kept[i] = copy_of(n.grads[i]);
    drops = run_net(0, &recomputed);
    assert_true(recomputed > 5);
    assert_memory_equal(&keeps, &drops, sizeof keeps);
    for (i = 0; i < n.count; i++) {
        size_t k, zeroes = 0;
        assert_memory_equal(kept[i], n.grads[i]->host, n.grads[i]->n * sizeof(float));
        for (k = 0; k < n.grads[i]->n; k++) zeroes += kept[i][k] == 0.0f;
        assert_true(zeroes < n.grads[i]->n);  // equal zeroes would prove nothing
        free(kept[i]);
    }
    free_net();
}

static void gradients_of_a_network_match_differences(void **state) {
    int i;
    (void)state;
    NEED_DEVICE();
    make_net();
    run_net(1, NULL);
    for (i = 0; i < n.count; i++) {  // of each parameter array one number
        tensor *param = n.params[i];
        size_t at = (size_t)(nn_hash(5, (uint64_t)i) % param->n);
        const float before = param->host[at], gradient = n.grads[i]->host[at], h = 1e-2f;
        volatile float above = before + h, below = before - h;
        double plus, minus;
        param->host[at] = above;
        upload(param);
        plus = run_net(1, NULL);
        param->host[at] = below;
        upload(param);
        minus = run_net(1, NULL);
        param->host[at] = before;
        upload(param);
        run_net(1, NULL);
        assert_near(gradient, (plus - minus) / ((double)above - (double)below), 3e-3, "gradient",
                    (size_t)i);
    }
    free_net();
}

// A call for some rows of a node of the network, of tensors that hold these rows alone.
typedef struct row_call {
    tl_operand     inputs[2], output, output_grad, input_grads[2], saved, scratch;
    tl_kernel_call call;
} row_call;

enum { FIRST_ROW = 4, CALL_ROWS = 6 };

static row_call call_of_rows(const char *name) {
    row_call r;
    memset(&r, 0, sizeof r);
    r.call.graph = &n.graph;
    while (strcmp(net_rows[r.call.node].name, name) != 0) r.call.node++;
    r.call.kind = TL_STEP_FORWARD;
    r.call.seed = 5;
    r.call.by_rows = 1;
    r.call.first = FIRST_ROW;
    r.call.count = CALL_ROWS;
    r.call.total = NET_ROWS;
    return r;
}

static void run_row_call(row_call *r, tl_kernel_fn kernel) {
    r->call.inputs = r->inputs;
    r->call.outputs = &r->output;
    r->call.output_grads = &r->output_grad;
    r->call.input_grads = r->input_grads;
    r->call.saved = r->saved;
    r->call.scratch = r->scratch;
    ok(kernel(&r->call, &n.net));
}

// Positions go on where the rows before end.
static void check_embed_by_rows(void) {
    tensor *tokens = make_tokens(CALL_ROWS, NET_V, 1), *out = make_zero(CALL_ROWS * NET_C);
    const float *wte = n.params[0]->host, *wpe = n.params[1]->host;
    row_call r = call_of_rows("embed");
    uint32_t i;
    r.inputs[0].range = tokens->range;
    r.output.range = out->range;
    run_row_call(&r, vk_nn_run_embed);
    download(out);
    for (i = 0; i < out->n; i++) {
        uint32_t token = (uint32_t)ints(tokens)[i / NET_C], place = (FIRST_ROW + i / NET_C) % NET_T;
        assert_true(out->host[i] == wte[token * NET_C + i % NET_C] + wpe[place * NET_C + i % NET_C]);
    }
}

// Elements have the numbers that they have in the batch.
static void check_dropout_by_rows(void) {
    tensor *x = make(CALL_ROWS * NET_C, 2), *out = make_zero(CALL_ROWS * NET_C);
    row_call r = call_of_rows("drop");
    uint32_t i;
    r.inputs[0].range = x->range;
    r.output.range = out->range;
    run_row_call(&r, vk_nn_run_dropout);
    download(out);
    for (i = 0; i < out->n; i++) {
        int keeps = vk_nn_dropout_keeps(0.2f, 5, FIRST_ROW * NET_C + i);
        assert_near(out->host[i], keeps ? x->host[i] / 0.8f : 0.0f, 1e-6, "dropout", i);
    }
}

// The sum of the rows before is there; the last rows divide by all of them.
static void check_loss_by_rows(void) {
    tensor *logits = make(CALL_ROWS * NET_V, 3), *targets = make_tokens(CALL_ROWS, NET_V, 4);
    tensor *loss = make(1, 6), *scratch = make_zero(CALL_ROWS), *dlogits = make(CALL_ROWS * NET_V, 5);
    float *e_loss = copy_of(loss), *e_dlogits = copy_of(dlogits);
    row_call r = call_of_rows("loss");
    nn_cross_entropy_forward_range(e_loss, NULL, logits->host, ints(targets), FIRST_ROW, CALL_ROWS, NET_ROWS,
                                   NET_V);
    nn_cross_entropy_backward_range(e_dlogits, *e_loss, logits->host, ints(targets), CALL_ROWS, NET_ROWS,
                                    NET_V);
    r.inputs[0].range = logits->range;
    r.inputs[1].range = targets->range;
    r.output.range = r.output_grad.range = loss->range;
    r.scratch.range = scratch->range;
    r.input_grads[0].range = dlogits->range;
    run_row_call(&r, vk_nn_run_loss);
    r.call.kind = TL_STEP_BACKWARD;
    run_row_call(&r, vk_nn_run_loss_backward);
    assert_result(loss, e_loss, 2e-5, "loss");
    assert_result(dlogits, e_dlogits, 2e-5, "dlogits");
}

// What the executor calls by rows goes by first, count and total.
static void calls_for_rows_of_a_network_go_by_their_rows(void **state) {
    (void)state;
    NEED_DEVICE();
    make_net();
    check_embed_by_rows();
    check_dropout_by_rows();
    check_loss_by_rows();
    free_net();
}

// Write the params of a node to its state, or compare what the state has with AdamW on the host; param, gradient: of n, the
// next ones. Of the bias nothing decays.
static void move_part(tl_run *run, int32_t state, uint64_t offset, uint64_t bytes, int32_t k, int compares) {
    static float device[3][1 << 16];
    tl_tensor tensor = { 0, 0 };
    size_t count = n.params[k]->n, i;
    float *moments = (float *)calloc(2 * count, sizeof *moments), *expected = copy_of(n.params[k]);
    nn_adamw adamw = { 0.01f, 0.9f, 0.98f, 1e-8f, 0.0f };
    assert_true(moments && bytes <= sizeof device[0]);
    tensor.node = state;
    for (; tensor.output < 3; tensor.output++) ok(tl_read_tensor(run, tensor, device[tensor.output], bytes));
    if (!compares) {
        memcpy((char *)device[0] + offset, n.params[k]->host, count * sizeof(float));
        tensor.output = 0;
        ok(tl_write_tensor(run, tensor, device[0], bytes));
    } else {
        adamw.weight_decay = offset ? 0.0f : 0.1f;
        nn_adamw_update(expected, moments, moments + count, n.grads[k]->host, count, 1, &adamw);
        for (i = 0; i < count; i++) {
            const size_t at = (size_t)(offset / sizeof(float)) + i;
            assert_near(device[0][at], (double)expected[i], 1e-5, "weight", i);
            assert_near(device[1][at], (double)moments[i], 1e-6, "first moment", i);
            assert_near(device[2][at], (double)moments[count + i], 1e-6, "second moment", i);
        }
    }
    free(moments);
    free(expected);
}

// Weights in the graph, updated in the pass: loss, moments and weights are those of AdamW behind a pass without.
static void a_network_that_owns_its_weights_updates_them(void **state) {
    vk_nn_node nodes[2 * NET_NODES];
    tl_optimizer_desc asked;
    tl_graph owned;
    tl_tensor loss = { 0, 0 };
    tl_kernel kernels[VK_NN_OP_COUNT + 1];
    tl_run_desc desc;
    tl_run *run;
    tl_plan plan;
    float value, expected;
    int32_t ids[NET_ROWS], id, i, states = 0, compares;
    (void)state;
    NEED_DEVICE();
    make_net();
    expected = run_net(1, NULL);
    memset(&asked, 0, sizeof asked);
    memset(&desc, 0, sizeof desc);
    memset(nodes, 0, sizeof nodes);
    memset(kernels, 0, sizeof kernels);
    asked.graph = &n.graph;
    asked.op = "adamw";
    asked.moment_count = 2;
    ok(tl_apply_optimizer(&g.device.env, &asked, &owned));
    for (id = 0; id < owned.node_count; id++) {
        const net_row *row = &net_rows[owned.nodes[id].origin];
        nodes[id] = n.nodes[owned.nodes[id].origin];
        nodes[id].weight.offset = 0;
        nodes[id].bias.offset = part_floats(row->weights) * sizeof(float);
        nodes[id].decays[0] = 1;
        states += owned.nodes[id].state != TL_STATE_NONE;
    }
    ok(tl_plan_keep_all(&g.device.env, &owned, 0, &plan));
    n.net.nodes = nodes;
    n.net.owns_weights = 1;
    n.net.adamw.rate = 0.01f;
    n.net.adamw.beta1 = 0.9f;
    n.net.adamw.beta2 = 0.98f;
    n.net.adamw.epsilon = 1e-8f;
    n.net.adamw.weight_decay = 0.1f;
    n.net.step = 1;
    vk_nn_set_kernels(kernels, &n.net);
    kernels[VK_NN_OP_COUNT].op = "adamw";
    kernels[VK_NN_OP_COUNT].backward = vk_nn_run_adamw_update;
    kernels[VK_NN_OP_COUNT].user = &n.net;
    desc.graph = &owned;
    desc.backend = &g.device.backend;
    desc.kernels = kernels;
    desc.kernel_count = VK_NN_OP_COUNT + 1;
    desc.plan = &plan;
    desc.seed = 3;
    ok(tl_init_run(&g.device.env, &desc, &run));
    for (id = 0; id < owned.node_count; id++) {
        tl_tensor tensor = { 0, 0 };
        tensor.node = id;
        if (owned.nodes[id].state || owned.nodes[id].origin > 1) continue;
        for (i = 0; i < NET_ROWS; i++)
            ids[i] = (int32_t)(nn_hash(9 - (uint64_t)owned.nodes[id].origin, (uint64_t)i) % NET_V);
        ok(tl_write_tensor(run, tensor, ids, sizeof ids));
    }
    for (compares = 0; compares < 2; compares++) {
        int32_t k = 0;
        for (id = 0; id < owned.node_count; id++) {     // states come in the order of the nodes whose weights they are
            const net_row *row = &net_rows[owned.nodes[id].origin];
            uint64_t bytes = owned.outputs[owned.nodes[id].first_output].bytes;
            if (!owned.nodes[id].state) continue;
            move_part(run, id, 0, bytes, k++, compares);
            if (row->biases) move_part(run, id, nodes[id].bias.offset, bytes, k++, compares);
        }
        assert_int_equal(k, n.count);
        if (!compares) ok(tl_run_plan(run));
    }
    while (!owned.nodes[loss.node].keep) loss.node++;
    ok(tl_read_tensor(run, loss, &value, sizeof value));
    assert_memory_equal(&value, &expected, sizeof value);
    assert_true(states > 3);
    tl_free_run(run);
    tl_free_plan(&g.device.env, &plan);
    tl_free_graph(&g.device.env, &owned);
    free_net();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_equals_that_of_the_host),
        cmocka_unit_test(a_network_that_owns_its_weights_updates_them),
        cmocka_unit_test(embed_equals_that_of_the_host),
        cmocka_unit_test(norm_equals_that_of_the_host),
        cmocka_unit_test(attention_equals_that_of_the_host),
        cmocka_unit_test(products_equals_that_of_the_host),
        cmocka_unit_test(gelu_equals_that_of_the_host),
        cmocka_unit_test(add_equals_that_of_the_host),
        cmocka_unit_test(dropout_equals_that_of_the_host),
        cmocka_unit_test(loss_equals_that_of_the_host),
        cmocka_unit_test(adamw_equals_that_of_the_host),
        cmocka_unit_test(every_kernel_gives_the_same_bits_again),
        cmocka_unit_test(a_gpu_sums_in_another_order),
        cmocka_unit_test(forward_without_saved_has_the_same_bits),
        cmocka_unit_test(saved_alone_has_the_same_bits),
        cmocka_unit_test(gradients_not_wanted_are_left_out),
        cmocka_unit_test(rows_of_a_gradient_have_the_bits_of_the_whole),
        cmocka_unit_test(rows_of_an_embedding_have_the_bits_of_the_whole),
        cmocka_unit_test(ranges_of_rows_have_the_bits_of_the_whole),
        cmocka_unit_test(ranges_of_products_have_the_bits_of_the_whole),
        cmocka_unit_test(a_linear_without_bias_starts_at_zero),
        cmocka_unit_test(sizes_beyond_one_row_of_workgroups_are_whole),
        cmocka_unit_test(tiles_beyond_one_row_of_workgroups_are_whole),
        cmocka_unit_test(columns_beyond_one_row_of_workgroups_are_whole),
        cmocka_unit_test(dropout_keeps_the_ratio_asked_for),
        cmocka_unit_test(linear_backward_matches_differences),
        cmocka_unit_test(norm_backward_matches_differences),
        cmocka_unit_test(attention_backward_matches_differences),
        cmocka_unit_test(gelu_backward_matches_differences),
        cmocka_unit_test(loss_backward_matches_differences),
        cmocka_unit_test(a_network_that_recomputes_has_the_gradients_of_one_that_keeps),
        cmocka_unit_test(gradients_of_a_network_match_differences),
        cmocka_unit_test(calls_for_rows_of_a_network_go_by_their_rows),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_nn", tests, NULL, close_device);
}
