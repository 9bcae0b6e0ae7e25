#version 450
// dweight (C) and dbias (C) += the sums over the rows. Channels and rows are shared out as in
// column_sum.comp.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, C, channels; };
layout(std430, binding = 0) buffer Dweight { float dweight[]; };
layout(std430, binding = 1) buffer Dbias { float dbias[]; };
layout(std430, binding = 2) readonly buffer Dout { float dout[]; };
layout(std430, binding = 3) readonly buffer Saved { float saved[]; };
layout(std430, binding = 4) readonly buffer In { float x[]; };

shared vec2 sums[gl_WorkGroupSize.x];

// What a row adds to (dweight, dbias) of a channel.
vec2 read(uint r, uint channel) {
    uint at = r * C + channel;
    return vec2((x[at] - saved[2 * r]) * saved[2 * r + 1], 1.0) * dout[at];
}

void main() {
    uint i = gl_LocalInvocationID.x, slices = gl_WorkGroupSize.x / channels;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint channel = group * channels + i % channels, c = min(channel, C - 1), r = i / channels;
    vec2 sum0 = vec2(0.0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (; r + 3 * slices < R; r += 4 * slices) {  // four rows at a time, whose loads overlap
        sum0 += read(r, c);
        sum1 += read(r + slices, c);
        sum2 += read(r + 2 * slices, c);
        sum3 += read(r + 3 * slices, c);
    }
    for (; r < R; r += slices) sum0 += read(r, c);
    sums[i] = sum0 + sum1 + (sum2 + sum3);
    barrier();
    if (i >= channels || channel >= C) return;
    vec2 total = vec2(dweight[channel], dbias[channel]);
    for (uint k = i; k < gl_WorkGroupSize.x; k += channels) total += sums[k];
    dweight[channel] = total.x;
    dbias[channel] = total.y;
}
