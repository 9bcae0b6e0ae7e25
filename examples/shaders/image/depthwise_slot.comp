#version 450
#extension GL_GOOGLE_include_directive : require
// depthwise.comp for one row that stands where the first row under its windows stood, in the same
// ring: pixel x is written over pixel x. So one invocation owns a channel, which nobody else reads,
// and goes along the row. Of the first row it holds the pixels of a window: those behind them are
// at x + 1 or later, those before them are not read again. The sums are those of depthwise.comp, in
// the same order.

#include "rows.glsl"
layout(std430, binding = 0) buffer Out { float result[]; };
layout(std430, binding = 1) readonly buffer In { float image[]; };  // the same range
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, binding = 3) readonly buffer Bias { float bias[]; };

const uint MOST_SIZE = 7;  // VK_IMAGE_SLOT_SIZE

void main() {
    uint c = find_invocation(), reach = size / 2;
    uint above = first * stride, next = 0;  // row and pixel, + reach
    if (c >= C) return;
    uint first_line = find_row(in_ring, above - reach) + c;  // above the image of no use, but there
    uint out_line = find_row(out_ring, first) + c;
    float held[MOST_SIZE];  // pixel p at p % size
    for (uint x = 0; x < columns; x++) {
        uint left = x * stride;
        for (next = max(next, left); next < left + size; next++) {
            bool inside = next >= reach && next < W + reach;
            held[next % size] = inside ? result[first_line + (next - reach) * C] : 0.0;
        }
        precise float sum = has_bias != 0 ? bias[c] : 0.0;
        for (uint dy = 0; dy < size; dy++) {
            uint row = above + dy;
            if (row < reach || row >= H + reach) continue;
            uint line = find_row(in_ring, row - reach) + c;
            for (uint dx = 0; dx < size; dx++) {
                uint at = left + dx;
                if (at < reach || at >= W + reach) continue;
                float pixel = dy > 0 ? image[line + (at - reach) * C] : held[at % size];
                sum += weight[(dy * size + dx) * C + c] * pixel;
            }
        }
        result[out_line + x * C] = bounded(sum);
    }
}
