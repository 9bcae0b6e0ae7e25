// f32 -> integers of `word` bytes each, 1 or 2. count: f32 elements; an invocation writes 32 bits of integers,
// the last one filled up with zeros.
#version 450
#extension GL_GOOGLE_include_directive : require
#define HAS_CHANNELS
#include "layout.glsl"
#include "words.glsl"
#include "codec.glsl"
#include "quantization.glsl"

void main() {
    uint each = 4u / word, i = each * invocation_index(), bits = 8u * word, integers = 0u;
    if (i >= count) return;
    for (uint k = 0u; k < min(each, count - i); k++) {
        uint integer = uint(integer_of(from[i + k], quantization_of(i + k)));
        integers |= (integer & (1u << bits) - 1u) << bits * k;
    }
    to[i / each] = integers;
}
