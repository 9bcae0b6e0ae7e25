// y[] = x[] * (1 - x[] / 4): a layer without parameters whose backward reads its input.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; };
layout(set = 0, binding = 0, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) y[i] = x[i] * (1.0 - 0.25 * x[i]);
}
