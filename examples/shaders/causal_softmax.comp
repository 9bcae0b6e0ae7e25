#version 450
// att (count, T) = the softmax of scores / 4 over the keys up to the query's own, 0 for later ones. Rows
// as in scores.comp. One invocation owns a row.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint first, count, T; };
layout(std430, binding = 0) buffer Att { float att[]; };
layout(std430, binding = 1) readonly buffer Scores { float scores[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= count) return;
    uint t = (first + i) % T, at = i * T;
    float largest = scores[at], sum = 0.0;
    for (uint s = 1; s <= t; s++) largest = max(largest, scores[at + s]);
    for (uint s = 0; s <= t; s++) {
        float weight = exp((scores[at + s] - largest) * 0.25);  // 1 / sqrt(16)
        att[at + s] = weight;
        sum += weight;
    }
    float inverse = 1.0 / sum;
    for (uint s = 0; s < T; s++) att[at + s] = s <= t ? att[at + s] * inverse : 0.0;
}
