// dx[] += dy[] * (1 - x[] / 2), and sum[] += dy[] * x[]: what a layer keeps for itself.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; };
layout(set = 0, binding = 0, std430) buffer Dx { float dx[]; };
layout(set = 0, binding = 1, std430) readonly buffer Dy { float dy[]; };
layout(set = 0, binding = 2, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 3, std430) buffer Sum { float sum[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= count) return;
    dx[i] += dy[i] * (1.0 - 0.5 * x[i]);
    sum[i] += dy[i] * x[i];
}
