// Blocks of a scale and 32 bytes -> f32. count: f32 elements, one per invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#include "words.glsl"
#include "codec.glsl"

void main() {
    uint i = invocation_index();
    if (i >= count) return;
    uint block = 9u * (i / 32u), four = from[block + 1u + i % 32u / 4u];
    to[i] = f32_of_q8(four >> 8u * (i % 4u) & 255u, from[block]);
}
