#version 450
// Forward: to (n) = from, scaled where the element is kept, else 0. Backward: the same with +=.
//
// Whether an element is kept is a function of the seed and its index alone (vk_nn_dropout_keeps in
// vk_nn.h), so a forward that runs again, and backward, find the same decisions and nothing is
// stored.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint n, seed_low, seed_high, threshold; float scale; uint adds; };
layout(std430, binding = 0) buffer To { float to[]; };
layout(std430, binding = 1) readonly buffer From { float from[]; };

uint mix_bits(uint x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= n) return;
    uint bits = mix_bits(mix_bits(i + seed_low) ^ seed_high);
    float value = (bits >> 8) >= threshold ? from[i] * scale : 0.0;
    if (adds != 0) to[i] += value;
    else to[i] = value;
}
