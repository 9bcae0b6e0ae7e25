#version 450
// out (n) = x times the normal distribution function of x, in its tanh form: x / (1 + e^-2u).

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint n; };
layout(std430, binding = 0) writeonly buffer Out { float result[]; };
layout(std430, binding = 1) readonly buffer In { float values[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= n) return;
    float x = values[i];
    float u2 = 1.59576912 * x * (1.0 + 0.044715 * x * x);
    result[i] = x / (1.0 + exp(clamp(-u2, -87.0, 87.0)));
}
