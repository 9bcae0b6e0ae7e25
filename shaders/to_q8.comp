// f32 -> blocks of a scale and 32 bytes. count: f32 elements, a partial last one included; one
// block per invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#include "words.glsl"
#include "compress.glsl"
#include "codec.glsl"

void main() {
    uint block = invocation_index(), first = 32u * block;
    if (first >= count) return;
    uint end = min(count, first + 32u), largest = 0u, target = 9u * block;
    for (uint i = first; i < end; i++) {
        uint size = load_f32(i) & 0x7FFFFFFFu;
        if (size < 0x7F800000u) largest = max(largest, size);
    }
    to[target++] = q8_scale(largest);
    for (uint i = first; i < end; i += 4u) {
        uint four = 0u;
        for (uint k = 0u; k < min(4u, end - i); k++)
            four |= q8_of(load_f32(i + k), largest) << 8u * k;
        to[target++] = four;
    }
}
