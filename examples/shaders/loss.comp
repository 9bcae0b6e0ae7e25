#version 450
// losses (R) = -log of what the softmax of a row of logits (R, V) gives to its target. One
// invocation owns a row.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, V; };
layout(std430, binding = 0) writeonly buffer Losses { float losses[]; };
layout(std430, binding = 1) readonly buffer Logits { float logits[]; };
layout(std430, binding = 2) readonly buffer Targets { uint targets[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= R) return;
    float largest = logits[i * V], sum = 0.0;
    for (uint v = 1; v < V; v++) largest = max(largest, logits[i * V + v]);
    for (uint v = 0; v < V; v++) sum += exp(logits[i * V + v] - largest);
    losses[i] = log(sum) - (logits[i * V + min(targets[i], V - 1)] - largest);
}
