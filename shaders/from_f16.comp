// f16 -> f32. count: f32 elements, two per invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#include "words.glsl"
#include "codec.glsl"

void main() {
    uint i = 2u * invocation_index();
    if (i >= count) return;
    uint pair = from[i / 2u];
    to[i] = f32_of_f16(pair & 0xFFFFu);
    if (i + 1u < count) to[i + 1u] = f32_of_f16(pair >> 16);
}
