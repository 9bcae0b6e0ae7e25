#version 450
// The rows of the call of out (B, T, NH, 16) = att v. Rows as in scores.comp; one invocation owns a
// query of a head.

const uint HEAD = 4;  // vec4 in a head: 16 channels

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint first, count, T, NH; };
layout(std430, binding = 0) writeonly buffer Out { vec4 result[]; };
layout(std430, binding = 1) readonly buffer Att { float att[]; };
layout(std430, binding = 2) readonly buffer Qkv { vec4 qkv[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= count) return;
    uint row = first + i, t = row % T, b = row / T / NH, h = row / T % NH, C = NH * HEAD;
    vec4 out0 = vec4(0.0), out1 = out0, out2 = out0, out3 = out0;
    for (uint s = 0; s <= t; s++) {
        uint v = (b * T + s) * 3 * C + 2 * C + h * HEAD;
        float weight = att[i * T + s];
        out0 += weight * qkv[v];
        out1 += weight * qkv[v + 1];
        out2 += weight * qkv[v + 2];
        out3 += weight * qkv[v + 3];
    }
    uint at = (b * T + t) * C + h * HEAD;
    result[at] = out0;
    result[at + 1] = out1;
    result[at + 2] = out2;
    result[at + 3] = out3;
}
