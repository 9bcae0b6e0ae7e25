// to[] = from[], 16 bytes an invocation: what the copy of four at a time is measured against.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "../../../shaders/layout.glsl"

layout(set = 0, binding = 0, std430) writeonly buffer To { uvec4 to[]; };
layout(set = 0, binding = 1, std430) readonly buffer From { uvec4 from[]; };

void main() {
    uint i = invocation_index();
    if (i < count) to[i] = from[i];
}
