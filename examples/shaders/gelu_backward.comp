#version 450
// din (n) += dout times the slope of gelu: with s = 1 / (1 + e^-2u) it is s + x s (1 - s) 2u'.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint n; };
layout(std430, binding = 0) buffer Din { float din[]; };
layout(std430, binding = 1) readonly buffer Dout { float dout[]; };
layout(std430, binding = 2) readonly buffer In { float values[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= n) return;
    float x = values[i], square = x * x;
    float u2 = 1.59576912 * x * (1.0 + 0.044715 * square);
    float s = 1.0 / (1.0 + exp(clamp(-u2, -87.0, 87.0)));
    float slope = 1.59576912 * (1.0 + 3.0 * 0.044715 * square);
    din[i] += dout[i] * (s + x * s * (1.0 - s) * slope);
}
