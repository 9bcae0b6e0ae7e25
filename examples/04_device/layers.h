// layers.h -- the layers of the network on one image, by nn.h and nn_image.h: what net.c and hand.c both call
//
// Weights lie behind each other: those of the taps, then a bias for each channel. So they are rows of a float for each
// channel, and _rows adds to some rows of the gradient alone. A gradient that is NULL is not made.
#ifndef LAYERS_H
#define LAYERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct layer_shape { uint8_t H, W, C, N; } layer_shape;  // H x W pixels of C channels come in; N go out

void layer_conv_forward(const layer_shape *s, float *out, const float *in, const float *weight, float *scratch);
void layer_conv_backward(const layer_shape *s, const float *dout, float *din, const float *in, const float *weight,
                         float *dweight, float *scratch);
void layer_conv_backward_rows(const layer_shape *s, const float *dout, const float *in, float *drows, float *scratch,
                              size_t first, size_t count);
void layer_relu_forward(const layer_shape *s, float *out, const float *in);
void layer_relu_backward(const layer_shape *s, const float *dout, float *din, const float *out);
void layer_max_forward(const layer_shape *s, float *out, const float *in);
void layer_max_backward(const layer_shape *s, const float *dout, float *din, const float *in);
void layer_mean_forward(const layer_shape *s, float *out, const float *in);
void layer_mean_backward(const layer_shape *s, const float *dout, float *din);
void layer_linear_forward(const layer_shape *s, float *out, const float *in, const float *weight);
void layer_linear_backward(const layer_shape *s, const float *dout, float *din, const float *in, const float *weight,
                           float *dweight);
void layer_linear_backward_rows(const layer_shape *s, const float *dout, const float *in, float *drows, size_t first,
                                size_t count);
void layer_loss_forward(const layer_shape *s, float *loss, const float *in, const int32_t *label);
void layer_loss_backward(const layer_shape *s, const float *dloss, float *din, const float *in, const int32_t *label);
void layer_update(float *weight, float *velocity, const float *gradient, size_t count);  // SGD with momentum

extern float layer_loss;  // sum of the losses since it was cleared

#endif
