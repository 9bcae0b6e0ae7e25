#version 450
// Backward of attention, second half: the gradients of keys and values, summed over the queries
// that saw them, first to last. One invocation owns a key and its value in a head.

const uint HEAD = 4;  // vec4 in a head: 16 channels

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint B, T, NH; };
layout(std430, binding = 0) buffer Dqkv { vec4 dqkv[]; };
layout(std430, binding = 1) readonly buffer Means { float means[]; };
layout(std430, binding = 2) readonly buffer Dout { vec4 dout[]; };
layout(std430, binding = 3) readonly buffer Saved { vec2 saved[]; };
layout(std430, binding = 4) readonly buffer Qkv { vec4 qkv[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= B * NH * T) return;
    uint s = i % T, h = i / T % NH, b = i / T / NH, C = NH * HEAD;
    uint first = b * T * 3 * C + h * HEAD, k = first + s * 3 * C + C, v = k + C;
    vec4 k0 = qkv[k], k1 = qkv[k + 1], k2 = qkv[k + 2], k3 = qkv[k + 3];
    vec4 v0 = qkv[v], v1 = qkv[v + 1], v2 = qkv[v + 2], v3 = qkv[v + 3];
    vec4 dk0 = dqkv[k], dk1 = dqkv[k + 1], dk2 = dqkv[k + 2], dk3 = dqkv[k + 3];
    vec4 dv0 = dqkv[v], dv1 = dqkv[v + 1], dv2 = dqkv[v + 2], dv3 = dqkv[v + 3];
    for (uint t = s; t < T; t++) {
        uint row = i - s + t, q = first + t * 3 * C, d = (b * T + t) * C + h * HEAD;
        vec4 q0 = qkv[q], q1 = qkv[q + 1], q2 = qkv[q + 2], q3 = qkv[q + 3];
        vec4 d0 = dout[d], d1 = dout[d + 1], d2 = dout[d + 2], d3 = dout[d + 3];
        float score = dot(q0, k0) + dot(q1, k1) + dot(q2, k2) + dot(q3, k3);
        float dweight = dot(d0, v0) + dot(d1, v1) + dot(d2, v2) + dot(d3, v3);
        float weight = exp((score - saved[row].x) * 0.25) * saved[row].y;
        float dscore = weight * (dweight - means[row]) * 0.25;
        dk0 += dscore * q0;
        dk1 += dscore * q1;
        dk2 += dscore * q2;
        dk3 += dscore * q3;
        dv0 += weight * d0;
        dv1 += weight * d1;
        dv2 += weight * d2;
        dv3 += weight * d3;
    }
    dqkv[k] = dk0;
    dqkv[k + 1] = dk1;
    dqkv[k + 2] = dk2;
    dqkv[k + 3] = dk3;
    dqkv[v] = dv0;
    dqkv[v + 1] = dv1;
    dqkv[v + 2] = dv2;
    dqkv[v + 3] = dv3;
}
