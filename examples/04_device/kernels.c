// kernels.c -- the kernels that net.h declares: each finds the shape of its node, and calls its layer
//
// Where the plan holds the weights, these are an input as any other, and their update is a kernel. With NET_PIECES some
// gradients are made by rows: count rows from first on, of the gradient and of what is updated; count 0 = all.

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

#ifdef NET_STATE_CONV1_W_o0
static size_t count_weights(int32_t node) {
    static const uint16_t bytes[NET_NODES] = {
        [NET_NODE_CONV1_W] = NET_STATE_CONV1_W_o0_BYTES, [NET_NODE_CONV2_W] = NET_STATE_CONV2_W_o0_BYTES,
        [NET_NODE_CONV3_W] = NET_STATE_CONV3_W_o0_BYTES, [NET_NODE_DENSE_W] = NET_STATE_DENSE_W_o0_BYTES,
    };
    return bytes[node] / sizeof(float);
}
#endif

#ifdef NET_PIECES
void net_conv2d_backward(int32_t node, const void *dout0, void *din0, void *din1, const void *in0, const void *in1, void *scratch,
                         int32_t first, int32_t count) {
    if (count) layer_conv_backward_rows(&shapes[node], dout0, in0, din1, scratch, (size_t)first, (size_t)count);
    else layer_conv_backward(&shapes[node], dout0, din0, in0, in1, din1, scratch);
}

void net_linear_backward(int32_t node, const void *dout0, void *din0, void *din1, const void *in0, const void *in1, void *scratch,
                         int32_t first, int32_t count) {
    (void)scratch;
    if (count) layer_linear_backward_rows(&shapes[node], dout0, in0, din1, (size_t)first, (size_t)count);
    else layer_linear_backward(&shapes[node], dout0, din0, in0, in1, din1);
}

// A state stands right above the node that reads it.
void net_momentum_update(int32_t node, const void *dout0, void *out0, void *out1, void *scratch, int32_t first, int32_t count) {
    (void)scratch; (void)first;
    layer_update(out0, out1, dout0, count ? (size_t)count * shapes[node + 1].N : count_weights(node));
}
#elif defined(NET_STATE_CONV1_W_o0)
void net_conv2d_backward(int32_t node, const void *dout0, void *din0, void *din1, const void *in0, const void *in1, void *scratch) {
    layer_conv_backward(&shapes[node], dout0, din0, in0, in1, din1, scratch);
}

void net_linear_backward(int32_t node, const void *dout0, void *din0, void *din1, const void *in0, const void *in1) {
    layer_linear_backward(&shapes[node], dout0, din0, in0, in1, din1);
}

void net_momentum_update(int32_t node, const void *dout0, void *out0, void *out1) {
    layer_update(out0, out1, dout0, count_weights(node));
}
#else
void net_conv2d_backward(int32_t node, const void *dout0, void *din0, const void *in0, const void *weight, void *dweight,
                         void *scratch) {
    layer_conv_backward(&shapes[node], dout0, din0, in0, weight, dweight, scratch);
}

void net_linear_backward(int32_t node, const void *dout0, void *din0, const void *in0, const void *weight, void *dweight) {
    layer_linear_backward(&shapes[node], dout0, din0, in0, weight, dweight);
}
#endif

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

void net_crossentropy_forward(int32_t node, void *out0, const void *in0, const void *in1) {
    layer_loss_forward(&shapes[node], out0, in0, in1);
}

void net_crossentropy_backward(int32_t node, const void *dout0, void *din0, const void *in0, const void *in1) {
    layer_loss_backward(&shapes[node], dout0, din0, in0, in1);
}
