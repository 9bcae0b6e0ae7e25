// What the shaders that compress share. Include after words.glsl.

// The f32 at this index; bytes beyond the tail count as zero.
uint load_f32(uint index) {
    uint bits = from[index];
    return index + 1u == count && tail != 0u ? bits & ((1u << 8u * tail) - 1u) : bits;
}
