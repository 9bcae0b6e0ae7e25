#version 450
// dscores (count, T) += what goes through causal_softmax.comp: each gradient less their mean, weighted by
// att. One invocation owns a row.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint first, count, T; };
layout(std430, binding = 0) buffer Dscores { float dscores[]; };
layout(std430, binding = 1) readonly buffer Datt { float datt[]; };
layout(std430, binding = 2) readonly buffer Att { float att[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= count) return;
    uint t = (first + i) % T, at = i * T;
    float mean = 0.0;
    for (uint s = 0; s <= t; s++) mean += att[at + s] * datt[at + s];
    for (uint s = 0; s <= t; s++) dscores[at + s] += att[at + s] * (datt[at + s] - mean) * 0.25;
}
