// min_max for each channel: an array of tl_vk_extremes, each {UINT32_MAX, 0, 0, 0} before the first dispatch.
// count: f32 elements; word: the number of slices of each channel; any number of groups.
#version 450
#extension GL_GOOGLE_include_directive : require
#define HAS_CHANNELS
#include "layout.glsl"

struct extremes { uint least_key, largest_key, finite_count, other_count; };

layout(set = 0, binding = 0, std430) buffer To { extremes to[]; };
layout(set = 0, binding = 1, std430) readonly buffer From { uint from[]; };

shared extremes of_group;

void take(uint at, inout extremes e) {  // at: counted from the period's start; element 0 is at `first`
    if (at - first >= count) return;    // also where at < first: the difference wraps
    uint bits = from[at - first];
    // A key in the order of the numbers: invert all bits of negative ones, of the others the sign only.
    uint key = bits ^ (bits >> 31 != 0u ? 0xFFFFFFFFu : 0x80000000u);
    if ((bits & 0x7FFFFFFFu) < 0x7F800000u) {
        e.least_key = min(e.least_key, key);
        e.largest_key = max(e.largest_key, key);
        e.finite_count++;
    } else {
        e.other_count++;
    }
}

void give(uint channel, extremes e) {
    atomicMin(to[channel].least_key, e.least_key);
    atomicMax(to[channel].largest_key, e.largest_key);
    atomicAdd(to[channel].finite_count, e.finite_count);
    atomicAdd(to[channel].other_count, e.other_count);
}

// For long rows of a channel: a group takes one slice of one channel at a time.
void reduce_rows(uint period, uint period_count) {
    const extremes none = extremes(0xFFFFFFFFu, 0u, 0u, 0u);
    uint group_count = gl_NumWorkGroups.x * gl_NumWorkGroups.y, here = gl_LocalInvocationID.x;
    for (uint task = group_index(); task < channel_count * word; task += group_count) {
        uint channel = task / word, slice = task % word;
        extremes e = none;
        if (here == 0u) of_group = none;
        barrier();
        for (uint i = slice * gl_WorkGroupSize.x + here; i < period_count * inner_count;
             i += word * gl_WorkGroupSize.x)
            take(i / inner_count * period + channel * inner_count + i % inner_count, e);
        atomicMin(of_group.least_key, e.least_key);
        atomicMax(of_group.largest_key, e.largest_key);
        atomicAdd(of_group.finite_count, e.finite_count);
        atomicAdd(of_group.other_count, e.other_count);
        barrier();
        if (here == 0u) give(channel, of_group);
        barrier();
    }
}

// For short rows: an invocation takes one column of the periods, so that neighbours read neighbours.
void reduce_columns(uint period, uint period_count) {
    for (uint task = invocation_index(); task < period * word; task += invocation_count()) {
        uint column = task % period;
        extremes e = extremes(0xFFFFFFFFu, 0u, 0u, 0u);
        for (uint i = task / period; i < period_count; i += word) take(i * period + column, e);
        give(column / inner_count, e);
    }
}

void main() {
    uint period = channel_count * inner_count, period_count = (first + count + period - 1u) / period;
    if (inner_count >= gl_WorkGroupSize.x) reduce_rows(period, period_count);
    else reduce_columns(period, period_count);
}
