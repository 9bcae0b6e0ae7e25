#version 450
#extension GL_GOOGLE_include_directive : require
// out (W / size, C) = the mean of each square of size x size pixels of in (W, C), summed up row
// after row. One invocation owns an element.

#include "rows.glsl"
layout(std430, binding = 0) writeonly buffer Out { float result[]; };
layout(std430, binding = 1) readonly buffer In { float image[]; };

void main() {
    uint i = find_invocation();
    uint c = i % C, x = i / C % columns, y = i / C / columns;
    if (y >= count) return;
    precise float sum = 0.0;
    for (uint k = 0; k < size * size; k++) {
        uint line = find_row(in_ring, (first + y) * size + k / size);
        sum += image[line + (x * size + k % size) * C + c];
    }
    precise float mean = sum * share;
    result[find_row(out_ring, first + y) + x * C + c] = mean;
}
