#version 450
#extension GL_GOOGLE_include_directive : require
// out (W, C + N) = the channels of each pixel of in (W, C), then those of a pixel of an image
// (.., N) that is `size` times smaller. One invocation owns an element.

#include "rows.glsl"
layout(std430, binding = 0) writeonly buffer Out { float result[]; };
layout(std430, binding = 1) readonly buffer In { float image[]; };
layout(std430, binding = 2) readonly buffer Other { float other[]; };

void main() {
    uint i = find_invocation(), both = C + N;
    uint c = i % both, x = i / both % columns, y = i / both / columns, row = first + y;
    if (y >= count) return;
    float value;
    if (c < C) value = image[find_row(in_ring, row) + x * C + c];
    else value = other[find_row(other_ring, row / size) + x / size * N + c - C];
    result[find_row(out_ring, row) + x * both + c] = value;
}
