// to[] = from[]. count: words, one per invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#include "words.glsl"

void main() {
    uint i = invocation_index();
    if (i < count) to[i] = from[i];
}
