// Fourier features of the batch, two frequencies an invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Frequencies { vec4 frequencies[]; };
layout(std430, binding = 1) writeonly buffer Features { vec4 features[]; };
layout(push_constant) uniform Push { uint batch, pixels, width, seed, groups; };

#include "batch.glsl"
#include "features.glsl"

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= batch * groups) return;
    features[i] = find_features(pick_pixel(i / groups), frequencies[i % groups]);
}
