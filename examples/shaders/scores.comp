#version 450
// scores (count, T) of queries and keys, qkv (B, T, 3, NH, 16): q k^T, 0 for later keys. Rows are the
// queries of all heads, (B, NH, T), from number `first` on. One invocation owns a score.

const uint HEAD = 4;  // vec4 in a head: 16 channels

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint first, count, T, NH; };
layout(std430, binding = 0) writeonly buffer Scores { float scores[]; };
layout(std430, binding = 1) readonly buffer Qkv { vec4 qkv[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= count * T) return;
    uint row = first + i / T, s = i % T, t = row % T, C = NH * HEAD;
    uint head = row / T / NH * T * 3 * C + row / T % NH * HEAD, q = head + t * 3 * C, k = head + s * 3 * C + C;
    scores[i] = s > t ? 0.0 : dot(qkv[q], qkv[k]) + dot(qkv[q + 1], qkv[k + 1]) + dot(qkv[q + 2], qkv[k + 2]) +
                              dot(qkv[q + 3], qkv[k + 3]);
}
