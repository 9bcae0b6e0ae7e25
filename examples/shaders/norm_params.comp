#version 450
// dweight (C) and dbias (C) += the sums over the rows, first to last. One invocation owns a
// channel.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, C; };
layout(std430, binding = 0) buffer Dweight { float dweight[]; };
layout(std430, binding = 1) buffer Dbias { float dbias[]; };
layout(std430, binding = 2) readonly buffer Dout { float dout[]; };
layout(std430, binding = 3) readonly buffer Saved { float saved[]; };
layout(std430, binding = 4) readonly buffer In { float x[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= C) return;
    float weight_sum = dweight[i], bias_sum = dbias[i];
    for (uint r = 0; r < R; r++) {
        float d = dout[r * C + i];
        weight_sum += (x[r * C + i] - saved[2 * r]) * saved[2 * r + 1] * d;
        bias_sum += d;
    }
    dweight[i] = weight_sum;
    dbias[i] = bias_sum;
}
