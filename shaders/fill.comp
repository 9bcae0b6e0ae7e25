// to[] = word. count: words, one per invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"

layout(set = 0, binding = 0, std430) writeonly buffer To { uint to[]; };

void main() {
    uint i = invocation_index();
    if (i < count) to[i] = word;
}
