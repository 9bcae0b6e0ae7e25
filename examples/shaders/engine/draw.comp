// The field as a picture, forward only: a workgroup takes 16 pixels through all layers in shared
// memory, an invocation makes 4 channels of 4 of them.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Frequencies { vec4 frequencies[]; };
layout(std430, binding = 1) readonly buffer Weights { vec4 weights[]; };
layout(std430, binding = 2) writeonly buffer Learned { vec4 learned[]; };
layout(push_constant) uniform Push { uint pixels, width, layers; };
#include "features.glsl"

const uint GROUPS = 16;  // of four channels in a layer
shared vec4 values[2][16][GROUPS];

void main() {
    uint column = gl_LocalInvocationID.x % GROUPS, row = gl_LocalInvocationID.x / GROUPS * 4;
    uint first = gl_WorkGroupID.x * 16, offset = 0, side = 0;
    for (uint r = row; r < row + 4; r++)
        values[0][r][column] = find_features(first + r, frequencies[column]);
    for (uint layer = 0; layer + 1 < layers; layer++) {
        barrier();
        vec4 a = weights[offset + GROUPS * 4 * GROUPS + column], b = a, c = a, d = a;
        for (uint i = 0; i < GROUPS; i++) {
            uint w = offset + i * 4 * GROUPS + column;
            mat4 m = mat4(weights[w], weights[w + GROUPS], weights[w + 2 * GROUPS], weights[w + 3 * GROUPS]);
            a += m * values[side][row][i];
            b += m * values[side][row + 1][i];
            c += m * values[side][row + 2][i];
            d += m * values[side][row + 3][i];
        }
        side = 1 - side;
        values[side][row][column] = max(a, vec4(0.0));
        values[side][row + 1][column] = max(b, vec4(0.0));
        values[side][row + 2][column] = max(c, vec4(0.0));
        values[side][row + 3][column] = max(d, vec4(0.0));
        offset += (GROUPS * 4 + 4) * GROUPS;
    }
    barrier();
    uint lane = gl_LocalInvocationID.x;
    if (lane >= 16 || first + lane >= pixels) return;
    vec4 colour = weights[offset + GROUPS * 4];
    for (uint i = 0; i < GROUPS; i++) {
        uint w = offset + i * 4;
        colour += mat4(weights[w], weights[w + 1], weights[w + 2], weights[w + 3]) * values[side][lane][i];
    }
    learned[first + lane] = vec4(clamp(colour.rgb, 0.0, 1.0), 1.0);
}
