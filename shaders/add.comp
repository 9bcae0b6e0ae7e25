// to[] += from[] as f32. count: elements, one per invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"

layout(set = 0, binding = 0, std430) buffer To { float to[]; };
layout(set = 0, binding = 1, std430) readonly buffer From { float from[]; };

void main() {
    uint i = invocation_index();
    if (i < count) to[i] += from[i];
}
