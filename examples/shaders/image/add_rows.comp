#version 450
#extension GL_GOOGLE_include_directive : require
// out (W, C) = in + other. out may be one of them where their rows stand in the same places.

#include "rows.glsl"
layout(std430, binding = 0) buffer Out { float result[]; };
layout(std430, binding = 1) buffer In { float image[]; };
layout(std430, binding = 2) buffer Other { float other[]; };

void main() {
    uint i = find_invocation(), floats = W * C, at = i % floats, row = first + i / floats;
    if (i / floats >= count) return;
    result[find_row(out_ring, row) + at] =
        image[find_row(in_ring, row) + at] + other[find_row(other_ring, row) + at];
}
