#version 450
#extension GL_GOOGLE_include_directive : require
// out (columns, N) = bias + the window of size x size pixels around each stride-th pixel of
// in (W, C), times weight (size, size, C, N). Outside of the image nothing is added.
//
// One invocation owns a block of 4 pixels of a row by 4 channels: 8 loads serve 16 products. Each
// element gets its products in order, tap after tap, channel after channel, and nothing is fused.

#include "rows.glsl"
layout(std430, binding = 0) writeonly buffer Out { float result[]; };
layout(std430, binding = 1) readonly buffer In { float image[]; };
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, binding = 3) readonly buffer Bias { float bias[]; };

void store(uint line, uint x, uint n, vec4 sum) {
    if (x >= columns) return;
    for (uint j = 0; j < 4; j++) {
        if (n + j < N) result[line + x * N + n + j] = bounded(sum[j]);
    }
}

void main() {
    uint i = find_invocation(), blocks = (N + 3) / 4, across = (columns + 3) / 4, reach = size / 2;
    uint n = i % blocks * 4, x = i / blocks % across * 4, y = i / blocks / across;
    if (y >= count) return;
    // beyond the edge the last channel is computed again, and not stored
    uvec4 cols = min(n + uvec4(0, 1, 2, 3), N - 1);
    vec4 start = vec4(0.0);
    if (has_bias != 0) start = vec4(bias[cols.x], bias[cols.y], bias[cols.z], bias[cols.w]);
    precise vec4 sum0 = start, sum1 = start, sum2 = start, sum3 = start;
    for (uint tap = 0; tap < size * size; tap++) {
        uint row = (first + y) * stride + tap / size;  // + reach, as `at`
        if (row < reach || row >= H + reach) continue;
        uvec4 at = (x + uvec4(0, 1, 2, 3)) * stride + tap % size;
        bvec4 inside = lessThan(at - reach, uvec4(W));  // left of the image it wraps around
        uvec4 from = find_row(in_ring, row - reach) + mix(uvec4(0), at - reach, inside) * C;
        vec4 old0 = sum0, old1 = sum1, old2 = sum2, old3 = sum3;
        uvec4 w = tap * C * N + cols;
        for (uint c = 0; c < C; c++) {
            vec4 v = vec4(weight[w.x], weight[w.y], weight[w.z], weight[w.w]);
            sum0 += image[from.x + c] * v;
            sum1 += image[from.y + c] * v;
            sum2 += image[from.z + c] * v;
            sum3 += image[from.w + c] * v;
            w += N;
        }
        sum0 = inside.x ? sum0 : old0;
        sum1 = inside.y ? sum1 : old1;
        sum2 = inside.z ? sum2 : old2;
        sum3 = inside.w ? sum3 : old3;
    }
    uint line = find_row(out_ring, first + y);
    store(line, x, n, sum0);
    store(line, x + 1, n, sum1);
    store(line, x + 2, n, sum2);
    store(line, x + 3, n, sum3);
}
