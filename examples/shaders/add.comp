#version 450
// out (n) = a + b. out may be a: that is backward, out += b.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint n; };
layout(std430, binding = 0) buffer Out { float result[]; };
layout(std430, binding = 1) buffer A { float a[]; };
layout(std430, binding = 2) readonly buffer B { float b[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i < n) result[i] = a[i] + b[i];
}
