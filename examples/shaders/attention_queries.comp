#version 450
// Backward of attention, first half: the gradient of the queries. means (B, NH, T) gets each
// query's mean gradient of its weights, for the second half. One invocation owns a query of a head.

const uint HEAD = 4;  // vec4 in a head: 16 channels

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint B, T, NH; };
layout(std430, binding = 0) buffer Dqkv { vec4 dqkv[]; };
layout(std430, binding = 1) writeonly buffer Means { float means[]; };
layout(std430, binding = 2) readonly buffer Dout { vec4 dout[]; };
layout(std430, binding = 3) readonly buffer Saved { vec2 saved[]; };
layout(std430, binding = 4) readonly buffer Qkv { vec4 qkv[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= B * NH * T) return;
    uint t = i % T, h = i / T % NH, b = i / T / NH, C = NH * HEAD;
    uint first = b * T * 3 * C + h * HEAD, q_at = first + t * 3 * C, d_at = (b * T + t) * C + h * HEAD;
    vec4 q0 = qkv[q_at], q1 = qkv[q_at + 1], q2 = qkv[q_at + 2], q3 = qkv[q_at + 3];
    vec4 d0 = dout[d_at], d1 = dout[d_at + 1], d2 = dout[d_at + 2], d3 = dout[d_at + 3];
    float largest = saved[i].x, inverse = saved[i].y, mean = 0.0;
    for (uint s = 0; s <= t; s++) {
        uint k = first + s * 3 * C + C, v = k + C;
        float score = dot(q0, qkv[k]) + dot(q1, qkv[k + 1]) + dot(q2, qkv[k + 2]) + dot(q3, qkv[k + 3]);
        float dweight = dot(d0, qkv[v]) + dot(d1, qkv[v + 1]) + dot(d2, qkv[v + 2]) + dot(d3, qkv[v + 3]);
        mean += exp((score - largest) * 0.25) * inverse * dweight;
    }
    means[i] = mean;
    vec4 dq0 = dqkv[q_at], dq1 = dqkv[q_at + 1], dq2 = dqkv[q_at + 2], dq3 = dqkv[q_at + 3];
    for (uint s = 0; s <= t; s++) {
        uint k = first + s * 3 * C + C, v = k + C;
        float score = dot(q0, qkv[k]) + dot(q1, qkv[k + 1]) + dot(q2, qkv[k + 2]) + dot(q3, qkv[k + 3]);
        float dweight = dot(d0, qkv[v]) + dot(d1, qkv[v + 1]) + dot(d2, qkv[v + 2]) + dot(d3, qkv[v + 3]);
        float dscore = exp((score - largest) * 0.25) * inverse * (dweight - mean) * 0.25;
        dq0 += dscore * qkv[k];
        dq1 += dscore * qkv[k + 1];
        dq2 += dscore * qkv[k + 2];
        dq3 += dscore * qkv[k + 3];
    }
    dqkv[q_at] = dq0;
    dqkv[q_at + 1] = dq1;
    dqkv[q_at + 2] = dq2;
    dqkv[q_at + 3] = dq3;
}
