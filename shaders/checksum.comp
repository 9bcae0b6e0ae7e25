// Add two sums of hashed words to `sum`. count: words, any number of groups. Each word is hashed with its
// index, word + i, so that the parts of a range may be added one after the other, in any order.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"

layout(set = 0, binding = 0, std430) buffer To { uint sum[2]; };
layout(set = 0, binding = 1, std430) readonly buffer From { uint from[]; };

shared uint group_sum[2];

// Appleby, MurmurHash3, 2011: the finaliser fmix32.
uint mix_0(uint x) {
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

// Wellons, Prospecting for hash functions, 2018: lowbias32.
uint mix_1(uint x) {
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    return x ^ x >> 16;
}

void main() {
    if (gl_LocalInvocationID.x == 0u) group_sum[0] = group_sum[1] = 0u;
    barrier();
    uint sum_0 = 0u, sum_1 = 0u;
    for (uint i = invocation_index(); i < count; i += invocation_count()) {
        sum_0 += mix_0(from[i] + (word + i) * 0x9E3779B9u);
        sum_1 += mix_1(from[i] + (word + i) * 0x7F4A7C15u);
    }
    atomicAdd(group_sum[0], sum_0);
    atomicAdd(group_sum[1], sum_1);
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        atomicAdd(sum[0], group_sum[0]);
        atomicAdd(sum[1], group_sum[1]);
    }
}
