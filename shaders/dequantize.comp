// Integers of `word` bytes each, 1 or 2, -> f32. count: f32 elements; an invocation reads 32 bits of integers.
#version 450
#extension GL_GOOGLE_include_directive : require
#define HAS_CHANNELS
#include "layout.glsl"
#include "words.glsl"
#include "codec.glsl"
#include "quantization.glsl"

void main() {
    uint each = 4u / word, i = each * invocation_index(), bits = 8u * word;
    if (i >= count) return;
    uint integers = from[i / each];
    for (uint k = 0u; k < min(each, count - i); k++) {
        quantization q = quantization_of(i + k);
        int at = int(bits * k), value = bitfieldExtract(int(integers), at, int(bits));
        if (q.low >= 0) value = int(bitfieldExtract(integers, at, int(bits)));
        to[i + k] = f32_of_integer(value, q);
    }
}
