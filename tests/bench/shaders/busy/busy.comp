#version 450
// As long as is asked for: every invocation below n multiplies and adds so many times.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) buffer To { float to[]; };
layout(push_constant) uniform Push { uint n, loops, mark; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) return;
    float x = to[i];
    for (uint k = 0; k < loops; k++) x = x * 1.000001 + 0.5;
    to[i] = x;
}
