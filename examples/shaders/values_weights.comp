#version 450
// Backward of values.comp, first half: datt (count, T) += dout v^T, of the keys that a query sees. One
// invocation owns a weight.

const uint HEAD = 4;  // vec4 in a head: 16 channels

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint first, count, T, NH; };
layout(std430, binding = 0) buffer Datt { float datt[]; };
layout(std430, binding = 1) readonly buffer Dout { vec4 dout[]; };
layout(std430, binding = 2) readonly buffer Qkv { vec4 qkv[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= count * T) return;
    uint row = first + i / T, s = i % T, t = row % T, b = row / T / NH, h = row / T % NH, C = NH * HEAD;
    if (s > t) return;
    uint d = (b * T + t) * C + h * HEAD, v = (b * T + s) * 3 * C + 2 * C + h * HEAD;
    datt[i] += dot(dout[d], qkv[v]) + dot(dout[d + 1], qkv[v + 1]) + dot(dout[d + 2], qkv[v + 2]) +
               dot(dout[d + 3], qkv[v + 3]);
}
