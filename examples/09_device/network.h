// network.h -- what kernels know of each node: tensors are (height, width, channels) of f32
#ifndef NETWORK_H
#define NETWORK_H

#include <stdint.h>

typedef struct layer {
    int32_t from;                       // the node that is read; -1 = the image
    int32_t kernel, stride, bounded;    // of a convolution, padded by kernel / 2; 1 = relu6 of what it makes
    int32_t height, width, channels;
} layer;

extern const layer layers[];

#endif
