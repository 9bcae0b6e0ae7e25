// to[] = from[]. count: elements of 16 bytes, four per invocation. Eight invocations move 512 bytes in steps of
// 128 bytes, a cache line of most devices. Steps of a whole workgroup are slower on devices that run few
// invocations at a time; they are used only where eight does not divide the workgroup size.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"

layout(set = 0, binding = 0, std430) writeonly buffer To { uvec4 to[]; };
layout(set = 0, binding = 1, std430) readonly buffer From { uvec4 from[]; };

void main() {
    uint step_count = gl_WorkGroupSize.x, invocation = gl_LocalInvocationID.x;
    uint first = group_index() * 4u * step_count;
    if (step_count % 8u == 0u) {
        step_count = 8u;
        first += invocation / 8u * 32u + invocation % 8u;
    } else {
        first += invocation;
    }
    uint last = first + 3u * step_count;
    if (last < count) {  // four loads in flight before the first store
        uvec4 a = from[first], b = from[first + step_count];
        uvec4 c = from[first + 2u * step_count], d = from[last];
        to[first] = a;
        to[first + step_count] = b;
        to[first + 2u * step_count] = c;
        to[last] = d;
    } else {
        for (uint i = first; i < count; i += step_count) to[i] = from[i];
    }
}
