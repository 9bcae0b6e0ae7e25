#version 450
#extension GL_GOOGLE_include_directive : require
// out (columns, C) = bias + the window around each stride-th pixel of in (W, C), each channel by
// itself, times weight (size, size, C). One invocation owns an element. out must not overlap in:
// see depthwise_slot.comp.

#include "rows.glsl"
layout(std430, binding = 0) writeonly buffer Out { float result[]; };
layout(std430, binding = 1) readonly buffer In { float image[]; };
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, binding = 3) readonly buffer Bias { float bias[]; };

void main() {
    uint i = find_invocation(), reach = size / 2;
    uint c = i % C, x = i / C % columns, y = i / C / columns;
    if (y >= count) return;
    precise float sum = has_bias != 0 ? bias[c] : 0.0;
    for (uint dy = 0; dy < size; dy++) {
        uint row = (first + y) * stride + dy;  // + reach, as `at`
        if (row < reach || row >= H + reach) continue;
        uint line = find_row(in_ring, row - reach) + c;
        for (uint dx = 0; dx < size; dx++) {
            uint at = x * stride + dx;
            if (at < reach || at >= W + reach) continue;
            sum += weight[(dy * size + dx) * C + c] * image[line + (at - reach) * C];
        }
    }
    result[find_row(out_ring, first + y) + x * C + c] = bounded(sum);
}
