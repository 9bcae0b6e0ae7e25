#version 450
// Backward of scores.comp, first half: the gradients of the queries of the call. One invocation owns a
// query of a head, and goes over the keys up to its own.

const uint HEAD = 4;  // vec4 in a head: 16 channels

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint first, count, T, NH; };
layout(std430, binding = 0) buffer Dqkv { vec4 dqkv[]; };
layout(std430, binding = 1) readonly buffer Dscores { float dscores[]; };
layout(std430, binding = 2) readonly buffer Qkv { vec4 qkv[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= count) return;
    uint row = first + i, t = row % T, C = NH * HEAD;
    uint head = row / T / NH * T * 3 * C + row / T % NH * HEAD, q = head + t * 3 * C;
    vec4 dq0 = dqkv[q], dq1 = dqkv[q + 1], dq2 = dqkv[q + 2], dq3 = dqkv[q + 3];
    for (uint s = 0; s <= t; s++) {
        uint k = head + s * 3 * C + C;
        float d = dscores[i * T + s];
        dq0 += d * qkv[k];
        dq1 += d * qkv[k + 1];
        dq2 += d * qkv[k + 2];
        dq3 += d * qkv[k + 3];
    }
    dqkv[q] = dq0;
    dqkv[q + 1] = dq1;
    dqkv[q + 2] = dq2;
    dqkv[q + 3] = dq3;
}
