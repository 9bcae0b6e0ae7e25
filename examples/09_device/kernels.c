// kernels.c -- kernels of the network that 09_rows writes, row by row, for generated code with and without regions of rows
//
// In regions operands are found by rows (net_find_row); without they are whole tensors. The loops are the same.

#include <string.h>

#include "../nn_image.h"

#include "net.h"
#include "network.h"

enum { TALLEST = 3, WIDEST = 512 };

const layer layers[NET_NODES] = {
#include "layers.inc"
};

#ifdef NET_ROWS
typedef net_operand operand;
#define RANGE , int32_t first, int32_t count
static void *find_row(const operand *x, int32_t row, int32_t bytes) { return net_find_row(x, row, bytes); }
#define WHOLE(node)
#else
typedef void operand;
#define RANGE
static void *find_row(const void *x, int32_t row, int32_t bytes) { return (unsigned char *)(uintptr_t)x + row * bytes; }
#define WHOLE(node) int32_t first = 0, count = layers[node].height;
#endif

static void *row_of(const operand *x, const layer *l, int32_t row) {
    if (row < 0 || row >= l->height) return NULL;   // padding
    return find_row(x, row, l->width * l->channels * (int32_t)sizeof(float));
}

// The rows of an input under the window of a row.
static void find_window(const operand *x, const layer *l, int32_t row, const float *rows[TALLEST]) {
    int32_t k;
    for (k = 0; k < l->kernel; k++)
        rows[k] = (const float *)row_of(x, &layers[l->from], row * l->stride + k - l->kernel / 2);
}

#ifdef NET_ROWS
#define OUT const operand *
#else
#define OUT void *
#endif

void net_conv_forward(int32_t node, OUT out0, const operand *in0, const void *weight RANGE) {
    const layer *l = &layers[node], *in = &layers[l->from];
    const float *rows[TALLEST];
    WHOLE(node)
    for (; count > 0; first++, count--) {
        float *out = (float *)row_of(out0, l, first);
        find_window(in0, l, first, rows);
        nn_conv2d_row(out, rows, (const float *)weight, NULL, (size_t)in->width, (size_t)in->channels, (size_t)l->channels,
                      (size_t)l->kernel, (size_t)l->stride);
        if (l->bounded) nn_relu6_forward(out, out, (size_t)(l->width * l->channels));
    }
}

void net_depthwise_forward(int32_t node, OUT out0, const operand *in0, const void *weight RANGE) {
    const layer *l = &layers[node], *in = &layers[l->from];
    const float *rows[TALLEST];
    float channel[WIDEST];
    WHOLE(node)
    for (; count > 0; first++, count--) {
        float *out = (float *)row_of(out0, l, first);
        find_window(in0, l, first, rows);
        nn_depthwise_row(out, rows, (const float *)weight, NULL, channel, (size_t)in->width, (size_t)l->channels,
                         (size_t)l->kernel, (size_t)l->stride);
        nn_relu6_forward(out, out, (size_t)(l->width * l->channels));
    }
}

void net_add_forward(int32_t node, OUT out0, const operand *in0, const operand *in1 RANGE) {
    const layer *l = &layers[node];
    WHOLE(node)
    for (; count > 0; first++, count--)
        nn_add_forward((float *)row_of(out0, l, first), (const float *)row_of(in0, l, first), (const float *)row_of(in1, l, first),
                       (size_t)(l->width * l->channels));
}

// The mean of each channel, then a dense layer: it reads all rows.
void net_head_forward(int32_t node, void *out0, const void *in0, const void *weight) {
    const layer *l = &layers[node], *in = &layers[l->from];
    const float *x = (const float *)in0, *w = (const float *)weight;
    float *out = (float *)out0;
    int32_t c, n, i, pixels = in->height * in->width;
    memset(out, 0, (size_t)l->channels * sizeof *out);
    for (c = 0; c < in->channels; c++) {
        float sum = 0.0f;
        for (i = 0; i < pixels; i++) sum += x[i * in->channels + c];
        for (n = 0; n < l->channels; n++) out[n] += sum / (float)pixels * w[c * l->channels + n];
    }
}

// A row of the image, as a camera would deliver it.
static void take_row(float *out, const layer *l, int32_t row) {
    int32_t i;
    for (i = 0; i < l->width * l->channels; i++)
        out[i] = (float)((row * row + 3 * (i / l->channels) + 7 * (i % l->channels)) % 32) / 16.0f - 1.0f;
}

#ifdef NET_INPUT_N0
void net_load(int32_t micro_batch) {
    int32_t row;
    (void)micro_batch;
    for (row = 0; row < layers[0].height; row++)
        take_row((float *)(void *)NET_INPUT_N0 + row * layers[0].width * layers[0].channels, &layers[0], row);
}
#else
void net_load(int32_t micro_batch) { (void)micro_batch; }

void net_load_rows(int32_t node, const net_operand *out0, int32_t first, int32_t count) {
    const layer *l = &layers[node];
    for (; count > 0; first++, count--) take_row((float *)row_of(out0, l, first), l, first);
}
#endif
