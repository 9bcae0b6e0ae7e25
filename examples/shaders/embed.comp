#version 450
// out (R, C) = the row of wte for the token plus the row of wpe for its position. The first row is
// number `first` of the batch.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, T, C, V, first; };
layout(std430, binding = 0) writeonly buffer Out { float result[]; };
layout(std430, binding = 1) readonly buffer Tokens { uint tokens[]; };
layout(std430, binding = 2) readonly buffer Wte { float wte[]; };
layout(std430, binding = 3) readonly buffer Wpe { float wpe[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= R * C) return;
    uint row = i / C, channel = i % C;
    result[i] = wte[min(tokens[row], V - 1) * C + channel] + wpe[(first + row) % T * C + channel];
}
