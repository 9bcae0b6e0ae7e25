// f32 -> f16. count: f32 elements, a partial last one included; two per invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#include "words.glsl"
#include "compress.glsl"
#include "codec.glsl"

void main() {
    uint i = 2u * invocation_index();
    if (i >= count) return;
    uint low = f16_of(load_f32(i));
    uint high = i + 1u < count ? f16_of(load_f32(i + 1u)) : 0u;
    to[i / 2u] = high << 16 | low;
}
