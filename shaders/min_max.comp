// The least and the largest finite f32, and the numbers of finite and of other values, as tl_vk_extremes; `to`
// holds {UINT32_MAX, 0, 0, 0} before the first dispatch. count: f32 elements, any number of groups.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"

layout(set = 0, binding = 0, std430) buffer To {
    uint least_key, largest_key, finite_count, other_count;
};
layout(set = 0, binding = 1, std430) readonly buffer From { uint from[]; };

shared uint group_least, group_largest, group_finite, group_other;

void main() {
    if (gl_LocalInvocationID.x == 0u) {
        group_least = 0xFFFFFFFFu;
        group_largest = group_finite = group_other = 0u;
    }
    barrier();
    uint least = 0xFFFFFFFFu, largest = 0u, finite = 0u, other = 0u;
    for (uint i = invocation_index(); i < count; i += invocation_count()) {
        uint bits = from[i];
        // A key in the order of the numbers: invert all bits of negative ones, of the others the sign only.
        uint key = bits ^ (bits >> 31 != 0u ? 0xFFFFFFFFu : 0x80000000u);
        if ((bits & 0x7FFFFFFFu) < 0x7F800000u) {
            least = min(least, key);
            largest = max(largest, key);
            finite++;
        } else {
            other++;
        }
    }
    atomicMin(group_least, least);
    atomicMax(group_largest, largest);
    atomicAdd(group_finite, finite);
    atomicAdd(group_other, other);
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        atomicMin(least_key, group_least);
        atomicMax(largest_key, group_largest);
        atomicAdd(finite_count, group_finite);
        atomicAdd(other_count, group_other);
    }
}
