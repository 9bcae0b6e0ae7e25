#version 450
// to (N) += the sum of the rows of from (R, N), first to last: the gradient of a bias.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, N; };
layout(std430, binding = 0) buffer To { float to[]; };
layout(std430, binding = 1) readonly buffer From { float from[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= N) return;
    float sum = to[i];
    for (uint r = 0; r < R; r++) sum += from[r * N + i];
    to[i] = sum;
}
