#version 450
// Gradients of keys or of values, which are sums over the queries of the call that saw them, first to
// last: of keys, dk += dscores^T q; of values, dv += att^T dout. One invocation owns a key of a head of
// those that the call has rows of.

const uint HEAD = 4;  // vec4 in a head: 16 channels

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    uint first, count, T, NH;
    uint from_width, to;  // vec4 in a token of from; 1 = keys, 2 = values
};
layout(std430, binding = 0) buffer Dqkv { vec4 dqkv[]; };
layout(std430, binding = 1) readonly buffer Weights { float weights[]; };
layout(std430, binding = 2) readonly buffer From { vec4 from[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    uint heads = (first + count - 1) / T - first / T + 1, C = NH * HEAD;
    if (i >= heads * T) return;
    uint key = first / T * T + i, s = key % T, b = key / T / NH, h = key / T % NH;
    uint begin = max(key, first), end = min(key - s + T, first + count);
    uint at = (b * T + s) * 3 * C + to * C + h * HEAD;
    if (begin >= end) return;
    vec4 d0 = dqkv[at], d1 = dqkv[at + 1], d2 = dqkv[at + 2], d3 = dqkv[at + 3];
    for (uint row = begin; row < end; row++) {
        uint f = (b * T + row % T) * from_width + h * HEAD;
        float weight = weights[(row - first) * T + s];
        d0 += weight * from[f];
        d1 += weight * from[f + 1];
        d2 += weight * from[f + 2];
        d3 += weight * from[f + 3];
    }
    dqkv[at] = d0;
    dqkv[at + 1] = d1;
    dqkv[at + 2] = d2;
    dqkv[at + 3] = d3;
}
