#version 450
// One step of AdamW on n elements. unbias1 and unbias2 are 1 / (1 - beta^step), made by the host.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    uint n;
    float rate, keep1, keep2, unbias1, unbias2, epsilon, decay;
};
layout(std430, binding = 0) buffer Param { float param[]; };
layout(std430, binding = 1) buffer M { float m[]; };
layout(std430, binding = 2) buffer V { float v[]; };
layout(std430, binding = 3) readonly buffer Grad { float grad[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= n) return;
    float g = grad[i], mean = m[i] + keep1 * (g - m[i]), square = v[i] + keep2 * (g * g - v[i]);
    m[i] = mean;
    v[i] = square;
    float delta = mean * unbias1 / (sqrt(square * unbias2) + epsilon);
    param[i] -= rate * (delta + decay * param[i]);
}
