// The network of examples/03_vulkan_engine.c on the host: what its shaders compute, in C, by the same sums in one order of
// their own. Include after the example, whose sizes and graph it uses.
#ifndef BENCH_FIELD_H
#define BENCH_FIELD_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A network that learns the picture on the CPU backend.
typedef struct field {
    tl_env       env;
    tl_backend   backend;
    tl_run      *run;
    const float *picture;         // [pixels][4]
    uint32_t     batch, pixels, width;
    float        rate;
    int32_t      update_count;
    float        state[3][NETWORK_FLOATS];  // weights, first and second moments
    float        gradient[NETWORK_FLOATS];
    float        frequencies[WIDTH];
} field;

// -- batch.glsl, features.glsl, start.comp --

static inline uint32_t field_mix(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

static inline uint32_t field_pixel(const field *t, uint32_t number, uint32_t seed) {
    uint32_t first = number * t->pixels / t->batch, next = (number + 1) * t->pixels / t->batch;
    return first + field_mix(number * 0x9e3779b9u + seed) % (next - first);
}

static inline void field_start_floats(float *values, uint32_t limit, uint32_t seed, double scale) {
    uint32_t i;
    for (i = 0; i < limit; i++) {
        uint32_t a = field_mix(i + field_mix(seed)), b = field_mix(a ^ 0x9e3779b9u);
        float u = ((float)(a >> 8) + 1.0f) / 16777217.0f, angle = (float)(b >> 8) * (6.28318531f / 16777216.0f);
        values[i] = (float)scale * sqrtf(-2.0f * logf(u)) * cosf(angle);
    }
}

// The first numbers, as start_network makes them.
static inline void field_start(field *t) {
    int32_t i;
    memset(t->state, 0, sizeof t->state);
    memset(t->gradient, 0, sizeof t->gradient);
    field_start_floats(t->frequencies, WIDTH, 1, 1.6);
    for (i = 0; i < LAYERS; i++) {
        int last = i == LAYERS - 1;
        field_start_floats(t->state[0] + i * HIDDEN_FLOATS, WIDTH * (last ? OUT_WIDTH : WIDTH), (uint32_t)i + 2,
                           last ? 0.02 : sqrt(2.0 / WIDTH));
    }
}

// -- kernels --

static inline tl_result field_encode(const tl_kernel_call *call, void *user) {
    const field *t = (const field *)user;
    float *out = (float *)call->outputs[0].host;
    uint32_t b, k;
    for (b = 0; b < t->batch; b++) {
        uint32_t pixel = field_pixel(t, b, seed_of(call));
        float x = (float)(pixel % t->width) / (float)t->width, y = (float)(pixel / t->width) / (float)t->width;
        for (k = 0; k < WIDTH; k += 2) {
            float a = 6.28318531f * (t->frequencies[k] * x + t->frequencies[k + 1] * y);
            out[b * WIDTH + k] = sinf(a);
            out[b * WIDTH + k + 1] = cosf(a);
        }
    }
    return TL_OK;
}

static inline tl_result field_target(const tl_kernel_call *call, void *user) {
    const field *t = (const field *)user;
    float *out = (float *)call->outputs[0].host;
    uint32_t b;
    for (b = 0; b < t->batch; b++) {
        memcpy(out + 4 * b, t->picture + 4 * (size_t)field_pixel(t, b, seed_of(call)), 3 * sizeof(float));
        out[4 * b + 3] = 0.0f;
    }
    return TL_OK;
}

static inline uint32_t field_columns(int32_t layer) { return layer < LAYERS - 1 ? WIDTH : OUT_WIDTH; }

static inline tl_result field_dense(const tl_kernel_call *call, void *user) {
    const field *t = (const field *)user;
    int32_t layer = layer_of(call);
    uint32_t columns = field_columns(layer), b, i, o;
    const float *in = (const float *)call->inputs[0].host, *w = t->state[0] + layer * HIDDEN_FLOATS;
    float *out = (float *)call->outputs[0].host;
    for (b = 0; b < t->batch; b++, in += WIDTH, out += columns) {
        for (o = 0; o < columns; o++) out[o] = w[WIDTH * columns + o];
        for (i = 0; i < WIDTH; i++)
            for (o = 0; o < columns; o++) out[o] += w[i * columns + o] * in[i];
        for (o = 0; o < columns && layer < LAYERS - 1; o++) out[o] = out[o] > 0 ? out[o] : 0.0f;
    }
    return TL_OK;
}

// The gradient before the relu, which stands in the scratch; the last layer has none.
static inline const float *field_delta(const field *t, const tl_kernel_call *call, uint32_t columns) {
    const float *out_grad = (const float *)call->output_grads[0].host, *out = (const float *)call->outputs[0].host;
    float *delta = (float *)call->scratch.host;
    uint32_t k;
    if (columns == OUT_WIDTH) return out_grad;
    for (k = 0; k < t->batch * columns; k++) delta[k] = out[k] > 0 ? out_grad[k] : 0.0f;
    return delta;
}

static inline void field_input_gradient(const field *t, const float *w, const float *delta, uint32_t columns, float *in_grad) {
    float turned[WIDTH * WIDTH];  // weights, so that the inner loop runs over neighbours
    uint32_t b, i, o;
    for (i = 0; i < WIDTH; i++)
        for (o = 0; o < columns; o++) turned[o * WIDTH + i] = w[i * columns + o];
    for (b = 0; b < t->batch; b++, in_grad += WIDTH, delta += columns) {
        float sums[WIDTH] = { 0 };
        for (o = 0; o < columns; o++)
            for (i = 0; i < WIDTH; i++) sums[i] += delta[o] * turned[o * WIDTH + i];
        for (i = 0; i < WIDTH; i++) in_grad[i] += sums[i];
    }
}

static inline tl_result field_dense_backward(const tl_kernel_call *call, void *user) {
    field *t = (field *)user;
    int32_t layer = layer_of(call);
    uint32_t columns = field_columns(layer), b, i, o;
    const float *in = (const float *)call->inputs[0].host, *delta = field_delta(t, call, columns);
    float *gradient = t->gradient + layer * HIDDEN_FLOATS;
    memset(gradient, 0, (WIDTH + 1) * columns * sizeof *gradient);
    for (b = 0; b < t->batch; b++) {
        const float *d = delta + b * columns;
        for (i = 0; i < WIDTH; i++)
            for (o = 0; o < columns; o++) gradient[i * columns + o] += in[b * WIDTH + i] * d[o];
        for (o = 0; o < columns; o++) gradient[WIDTH * columns + o] += d[o];
    }
    if (call->input_grads[0].range.bytes)
        field_input_gradient(t, t->state[0] + layer * HIDDEN_FLOATS, delta, columns, (float *)call->input_grads[0].host);
    return TL_OK;
}

static inline tl_result field_loss(const tl_kernel_call *call, void *user) {
    const field *t = (const field *)user;
    const float *out = (const float *)call->inputs[0].host, *colours = (const float *)call->inputs[1].host;
    float sum = 0.0f;
    uint32_t k;
    for (k = 0; k < 4 * t->batch; k++)
        if (k % 4 < 3) sum += (out[k] - colours[k]) * (out[k] - colours[k]);
    *(float *)call->outputs[0].host = sum / (3.0f * (float)t->batch);
    return TL_OK;
}

static inline tl_result field_loss_backward(const tl_kernel_call *call, void *user) {
    const field *t = (const field *)user;
    const float *out = (const float *)call->inputs[0].host, *colours = (const float *)call->inputs[1].host;
    float *out_grad = (float *)call->input_grads[0].host;
    float scale = 2.0f * *(const float *)call->output_grads[0].host / (3.0f * (float)t->batch);
    uint32_t k;
    for (k = 0; k < 4 * t->batch; k++)
        if (k % 4 < 3) out_grad[k] += (out[k] - colours[k]) * scale;
    return TL_OK;
}

// adam.comp and run_adam
static inline void field_adam(field *t) {
    double step = ++t->update_count;
    float rate = (float)(t->rate / (1.0 + step / 400.0));
    float correction1 = (float)(1.0 / (1.0 - pow(0.9, step))), correction2 = (float)(1.0 / (1.0 - pow(0.99, step)));
    int32_t i;
    for (i = 0; i < NETWORK_FLOATS; i++) {
        float g = t->gradient[i];
        float m = g * 0.1f + t->state[1][i] * 0.9f, v = g * g * 0.01f + t->state[2][i] * 0.99f;
        t->state[0][i] -= rate * (m * correction1) / (sqrtf(v * correction2) + 1e-8f);
        t->state[1][i] = m;
        t->state[2][i] = v;
    }
}

enum { FIELD_KERNELS = 4 };

static inline void field_set_kernels(tl_kernel kernels[FIELD_KERNELS], field *t) {
    const tl_kernel all[FIELD_KERNELS] = { { "encode", field_encode, NULL, NULL }, { "target", field_target, NULL, NULL },
                                           { "dense", field_dense, field_dense_backward, NULL },
                                           { "loss", field_loss, field_loss_backward, NULL } };
    int i;
    for (i = 0; i < FIELD_KERNELS; i++) {
        kernels[i] = all[i];
        kernels[i].user = t;
    }
}

#endif
