// hand.c -- the same training step by hand: calls of the layers in two arrays
//
// The schedule is that of net.c: the first convolution and its relu run again for the backward, because in between their
// 4 KiB hold other things. Offsets are in floats.

#include <string.h>

#include "layers.h"
#include "net.h"

#ifndef NET_BANK_1_PLACE
#define NET_BANK_1_PLACE
#endif
unsigned char net_bank_0[NET_BANK_0_BYTES] __attribute__((aligned(8)));
NET_BANK_1_PLACE unsigned char net_bank_1[NET_BANK_1_BYTES] __attribute__((aligned(8)));
unsigned char net_weights[NET_WEIGHTS_BYTES] __attribute__((aligned(8)));
unsigned char net_gradients[NET_GRADIENTS_BYTES] __attribute__((aligned(8)));
unsigned char net_states[NET_STATE_BYTES] __attribute__((aligned(8)));

static const layer_shape conv1 = { 16, 16, 1, 4 }, relu1 = { 16, 16, 4, 4 }, conv2 = { 8, 8, 4, 8 }, relu2 = { 8, 8, 8, 8 },
                         conv3 = { 4, 4, 8, 8 }, relu3 = { 4, 4, 8, 8 }, dense = { 1, 1, 32, 10 }, loss = { 1, 1, 10, 1 };

#define A ((float *)(void *)net_bank_0)
#define B ((float *)(void *)net_bank_1)
#define W ((float *)(void *)net_weights)
#define D ((float *)(void *)net_gradients)
#define ZERO(at, count) memset(at, 0, (count) * sizeof(float))

enum { CONV1 = 0, CONV2 = 40, CONV3 = 336, DENSE = 920 };  // weights

void net_run(void) {
    static const float dloss = NET_LOSS_GRADIENT;
    const int32_t *label = (const int32_t *)(void *)(net_bank_1 + 3072);
    int32_t micro_batch;
    for (micro_batch = 0; micro_batch < NET_MICRO_BATCHES; micro_batch++) {
        net_load(micro_batch);
        layer_conv_forward(&conv1, A + 512, A, W + CONV1, A + 1536);
        layer_relu_forward(&relu1, A + 512, A + 512);
        layer_max_forward(&relu1, A + 256, A + 512);
        layer_conv_forward(&conv2, A + 512, A + 256, W + CONV2, A + 1024);
        layer_relu_forward(&relu2, A + 512, A + 512);
        layer_max_forward(&relu2, A + 1152, A + 512);
        layer_conv_forward(&conv3, A + 1024, A + 1152, W + CONV3, A + 1280);
        layer_relu_forward(&relu3, A + 1024, A + 1024);
        layer_mean_forward(&relu3, A + 1312, A + 1024);
        layer_linear_forward(&dense, A + 1280, A + 1312, W + DENSE);
        layer_loss_forward(&loss, B + 770, A + 1280, label);

        ZERO(A + 1344, 10);
        layer_loss_backward(&loss, &dloss, A + 1344, A + 1280, label);
        ZERO(A + 1280, 32);
        layer_linear_backward(&dense, A + 1344, A + 1280, A + 1312, W + DENSE, D + DENSE);
        ZERO(A + 1408, 128);
        layer_mean_backward(&relu3, A + 1280, A + 1408);
        ZERO(A + 1280, 128);
        layer_relu_backward(&relu3, A + 1408, A + 1280, A + 1024);
        ZERO(A + 1024, 128);
        layer_conv_backward(&conv3, A + 1280, A + 1024, A + 1152, W + CONV3, D + CONV3, A + 1408);
        ZERO(A + 1152, 512);
        layer_max_backward(&relu2, A + 1024, A + 1152, A + 512);
        ZERO(B, 512);
        layer_relu_backward(&relu2, A + 1152, B, A + 512);
        ZERO(B + 512, 256);
        layer_conv_backward(&conv2, B, B + 512, A + 256, W + CONV2, D + CONV2, A + 512);
        layer_conv_forward(&conv1, A + 1280, A, W + CONV1, A + 2304);
        layer_relu_forward(&relu1, A + 1280, A + 1280);
        ZERO(A + 2304, 1024);
        layer_max_backward(&relu1, B + 512, A + 2304, A + 1280);
        ZERO(A + 256, 1024);
        layer_relu_backward(&relu1, A + 2304, A + 256, A + 1280);
        layer_conv_backward(&conv1, A + 256, NULL, A, W + CONV1, D + CONV1, A + 1280);
    }
}
