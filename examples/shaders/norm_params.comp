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

const uint PART = 512;

shared vec2 sums[gl_WorkGroupSize.x];

// What a row adds to (dweight, dbias) of a channel.
vec2 read(uint r, uint channel) {
    uint at = r * C + channel;
    return vec2((x[at] - saved[2 * r]) * saved[2 * r + 1], 1.0) * dout[at];
}

void add_rows(uint channel) {
    vec2 total = vec2(dweight[channel], dbias[channel]);
    for (uint r = 0; r < R; r++) total += read(r, channel);
    dweight[channel] = total.x;
    dbias[channel] = total.y;
}

// Every step-th row before the end, four at a time, whose loads overlap.
vec2 sum_slice(uint r, uint end, uint step, uint channel) {
    vec2 sum0 = vec2(0.0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (; r + 3 * step < end; r += 4 * step) {
        sum0 += read(r, channel);
        sum1 += read(r + step, channel);
        sum2 += read(r + 2 * step, channel);
        sum3 += read(r + 3 * step, channel);
    }
    for (; r < end; r += step) sum0 += read(r, channel);
    return sum0 + sum1 + (sum2 + sum3);
}

void add_parts(uint first_channel) {
    uint i = gl_LocalInvocationID.x, slices = gl_WorkGroupSize.x / channels;
    uint channel = first_channel + i % channels;
    bool is_first = i < channels && channel < C;
    vec2 total = is_first ? vec2(dweight[channel], dbias[channel]) : vec2(0.0);
    for (uint begin = 0; begin < R; begin += PART) {
        sums[i] = sum_slice(begin + i / channels, min(begin + PART, R), slices, min(channel, C - 1));
        barrier();
        for (uint k = i; is_first && k < gl_WorkGroupSize.x; k += channels) total += sums[k];
        barrier();
    }
    if (!is_first) return;
    dweight[channel] = total.x;
    dbias[channel] = total.y;
}

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, first = group * channels;
    if (channels < gl_WorkGroupSize.x) add_parts(first);
    else if (first + gl_LocalInvocationID.x < C) add_rows(first + gl_LocalInvocationID.x);
}
