#version 450
// dlogits (n, V), some of R rows, += (softmax of the row, less 1 at its target) dloss / R. One
// invocation owns a row.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint n, V, R; };
layout(std430, binding = 0) buffer Dlogits { float dlogits[]; };
layout(std430, binding = 1) readonly buffer Dloss { float dloss[]; };
layout(std430, binding = 2) readonly buffer Logits { float logits[]; };
layout(std430, binding = 3) readonly buffer Targets { uint targets[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= n) return;
    uint target = min(targets[i], V - 1);
    float largest = logits[i * V], sum = 0.0, scale = dloss[0] / float(R);
    for (uint v = 1; v < V; v++) largest = max(largest, logits[i * V + v]);
    for (uint v = 0; v < V; v++) sum += exp(logits[i * V + v] - largest);
    float inverse = 1.0 / sum;
    for (uint v = 0; v < V; v++) {
        float probability = exp(logits[i * V + v] - largest) * inverse;
        dlogits[i * V + v] += (v == target ? probability - 1.0 : probability) * scale;
    }
}
