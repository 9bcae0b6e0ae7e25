#version 450
// Causal attention of several heads on q, k and v side by side, qkv (B, T, 3, NH, 16). One
// invocation owns a query of a head: it goes over the keys up to its own twice, for the largest
// score and for the weighted sum of the values. saved (B, NH, T, 2) gets that score and 1 / sum,
// from which backward makes every weight again: nothing of size T x T is ever stored.

const uint HEAD = 4;  // vec4 in a head: 16 channels

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint B, T, NH, writes; };
layout(std430, binding = 0) writeonly buffer Out { vec4 result[]; };
layout(std430, binding = 1) writeonly buffer Saved { vec2 saved[]; };
layout(std430, binding = 2) readonly buffer Qkv { vec4 qkv[]; };

const uint WRITES_OUT = 1, WRITES_SAVED = 2;

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= B * NH * T) return;
    uint t = i % T, h = i / T % NH, b = i / T / NH, C = NH * HEAD;
    uint first = b * T * 3 * C + h * HEAD, q_at = first + t * 3 * C;  // of k: + C, of v: + 2 C
    vec4 q0 = qkv[q_at], q1 = qkv[q_at + 1], q2 = qkv[q_at + 2], q3 = qkv[q_at + 3];
    float largest = -3.4e38, sum = 0.0;
    for (uint s = 0; s <= t; s++) {
        uint k = first + s * 3 * C + C;
        float score = dot(q0, qkv[k]) + dot(q1, qkv[k + 1]) + dot(q2, qkv[k + 2]) + dot(q3, qkv[k + 3]);
        largest = max(largest, score);
    }
    vec4 out0 = vec4(0.0), out1 = out0, out2 = out0, out3 = out0;
    for (uint s = 0; s <= t; s++) {
        uint k = first + s * 3 * C + C, v = k + C;
        float score = dot(q0, qkv[k]) + dot(q1, qkv[k + 1]) + dot(q2, qkv[k + 2]) + dot(q3, qkv[k + 3]);
        float weight = exp((score - largest) * 0.25);  // 1 / sqrt(16)
        sum += weight;
        out0 += weight * qkv[v];
        out1 += weight * qkv[v + 1];
        out2 += weight * qkv[v + 2];
        out3 += weight * qkv[v + 3];
    }
    float inverse = 1.0 / sum;
    if ((writes & WRITES_OUT) != 0) {
        uint at = (b * T + t) * C + h * HEAD;
        result[at] = out0 * inverse;
        result[at + 1] = out1 * inverse;
        result[at + 2] = out2 * inverse;
        result[at + 3] = out3 * inverse;
    }
    if ((writes & WRITES_SAVED) != 0) saved[i] = vec2(largest, inverse);
}
