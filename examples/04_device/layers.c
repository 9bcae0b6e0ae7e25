// layers.c -- see layers.h
#define NN_SMALL_STACK
#define NN_LOG nn_log
#include "../nn_image.h"

#include "layers.h"

float layer_loss;

static size_t elements(const layer_shape *s) { return (size_t)s->H * s->W * s->C; }
static size_t taps(const layer_shape *s, size_t size) { return size * size * s->C * s->N; }

void layer_conv_forward(const layer_shape *s, float *out, const float *in, const float *weight, float *scratch) {
    nn_conv2d_forward(out, in, weight, weight + taps(s, 3), scratch, 1, s->H, s->W, s->C, s->N, 3);
}

void layer_conv_backward(const layer_shape *s, const float *dout, float *din, const float *in, const float *weight,
                         float *dweight, float *scratch) {
    nn_conv2d_backward(din, dweight, dweight ? dweight + taps(s, 3) : NULL, dout, in, weight, scratch, 1, s->H, s->W, s->C,
                       s->N, 3);
}

void layer_conv_backward_rows(const layer_shape *s, const float *dout, const float *in, float *drows, float *scratch,
                              size_t first, size_t count) {
    nn_conv2d_backward_rows(drows, dout, in, scratch, 1, s->H, s->W, s->C, s->N, 3, first, count);
}

void layer_relu_forward(const layer_shape *s, float *out, const float *in) { nn_relu_forward(out, in, elements(s)); }

void layer_relu_backward(const layer_shape *s, const float *dout, float *din, const float *out) {
    nn_relu_backward(din, dout, out, elements(s));  // the sign of out is that of in
}

void layer_max_forward(const layer_shape *s, float *out, const float *in) {
    nn_max_pool_forward(out, in, 1, s->H, s->W, s->C, 2);
}

void layer_max_backward(const layer_shape *s, const float *dout, float *din, const float *in) {
    nn_max_pool_backward(din, dout, in, 1, s->H, s->W, s->C, 2);
}

void layer_mean_forward(const layer_shape *s, float *out, const float *in) {
    nn_mean_pool_forward(out, in, 1, s->H, s->W, s->C, 2);
}

void layer_mean_backward(const layer_shape *s, const float *dout, float *din) {
    nn_mean_pool_backward(din, dout, 1, s->H, s->W, s->C, 2);
}

void layer_linear_forward(const layer_shape *s, float *out, const float *in, const float *weight) {
    nn_linear_forward(out, in, weight, weight + taps(s, 1), 1, s->C, s->N);
}

void layer_linear_backward(const layer_shape *s, const float *dout, float *din, const float *in, const float *weight,
                           float *dweight) {
    nn_linear_backward(din, dweight, dweight ? dweight + taps(s, 1) : NULL, dout, in, weight, 1, s->C, s->N);
}

void layer_linear_backward_rows(const layer_shape *s, const float *dout, const float *in, float *drows, size_t first,
                                size_t count) {
    nn_linear_backward_rows(drows, dout, in, 1, s->C, s->N, first, count);
}

void layer_update(float *weight, float *velocity, const float *gradient, size_t count) {
    nn_sgd_update(weight, velocity, gradient, count, 0.05f, 0.9f);
}

void layer_loss_forward(const layer_shape *s, float *loss, const float *in, const int32_t *label) {
    nn_cross_entropy_forward(loss, NULL, in, label, 1, s->C);
    layer_loss += *loss;
}

void layer_loss_backward(const layer_shape *s, const float *dloss, float *din, const float *in, const int32_t *label) {
    nn_cross_entropy_backward(din, *dloss, in, label, 1, s->C);
}
