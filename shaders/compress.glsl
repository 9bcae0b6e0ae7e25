// Shared by the shaders that compress. Include after words.glsl.

// The bits of the f32 at this index; of a partial last one the missing bytes are zero.
uint load_f32(uint index) {
    uint bits = from[index];
    return index + 1u == count && tail != 0u ? bits & ((1u << 8u * tail) - 1u) : bits;
}
