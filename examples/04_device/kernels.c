// kernels.c -- the kernels that net.h declares: each finds the shape of its node, and calls its layer

#include "layers.h"
#include "net.h"

static const layer_shape shapes[NET_NODES] = {
    [NET_NODE_CONV1] = { 16, 16, 1, 4 }, [NET_NODE_RELU1] = { 16, 16, 4, 4 }, [NET_NODE_POOL1] = { 16, 16, 4, 4 },
    [NET_NODE_CONV2] = { 8, 8, 4, 8 },   [NET_NODE_RELU2] = { 8, 8, 8, 8 },   [NET_NODE_POOL2] = { 8, 8, 8, 8 },
    [NET_NODE_CONV3] = { 4, 4, 8, 8 },   [NET_NODE_RELU3] = { 4, 4, 8, 8 },   [NET_NODE_POOL3] = { 4, 4, 8, 8 },
    [NET_NODE_DENSE] = { 1, 1, 32, 10 }, [NET_NODE_LOSS] = { 1, 1, 10, 1 },
};

void net_conv2d_forward(int32_t node, void *out0, const void *in0, const void *weight, void *scratch) {
    layer_conv_forward(&shapes[node], out0, in0, weight, scratch);
}

void net_conv2d_backward(int32_t node, const void *dout0, void *din0, const void *in0, const void *weight, void *dweight,
                         void *scratch) {
    layer_conv_backward(&shapes[node], dout0, din0, in0, weight, dweight, scratch);
}

void net_relu_forward(int32_t node, void *out0, const void *in0) { layer_relu_forward(&shapes[node], out0, in0); }

void net_relu_backward(int32_t node, const void *dout0, void *din0, const void *out0) {
    layer_relu_backward(&shapes[node], dout0, din0, out0);
}

void net_maxpool_forward(int32_t node, void *out0, const void *in0) { layer_max_forward(&shapes[node], out0, in0); }

void net_maxpool_backward(int32_t node, const void *dout0, void *din0, const void *in0) {
    layer_max_backward(&shapes[node], dout0, din0, in0);
}

void net_meanpool_forward(int32_t node, void *out0, const void *in0) { layer_mean_forward(&shapes[node], out0, in0); }

void net_meanpool_backward(int32_t node, const void *dout0, void *din0) {
    layer_mean_backward(&shapes[node], dout0, din0);
}

void net_linear_forward(int32_t node, void *out0, const void *in0, const void *weight) {
    layer_linear_forward(&shapes[node], out0, in0, weight);
}

void net_linear_backward(int32_t node, const void *dout0, void *din0, const void *in0, const void *weight, void *dweight) {
    layer_linear_backward(&shapes[node], dout0, din0, in0, weight, dweight);
}

void net_crossentropy_forward(int32_t node, void *out0, const void *in0, const void *in1) {
    layer_loss_forward(&shapes[node], out0, in0, in1);
}

void net_crossentropy_backward(int32_t node, const void *dout0, void *din0, const void *in0, const void *in1) {
    layer_loss_backward(&shapes[node], dout0, din0, in0, in1);
}
