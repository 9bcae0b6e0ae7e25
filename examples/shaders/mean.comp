#version 450
// to (1) = the mean of R numbers, of which from (n) has those from number `first` on: the sum of all
// before and these, divided by R where they are the last. One workgroup: each invocation sums a unit
// of 16 in order, then the first one adds the sums of the units in order.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint n, first, R; };
layout(std430, binding = 0) buffer To { float to[]; };
layout(std430, binding = 1) readonly buffer From { float from[]; };

const uint UNIT = 16;

shared float sums[gl_WorkGroupSize.x];

void main() {
    uint i = gl_LocalInvocationID.x;
    float total = first == 0 ? 0.0 : to[0];
    for (uint begin = 0; begin < n; begin += gl_WorkGroupSize.x * UNIT) {
        uint units = min(gl_WorkGroupSize.x, (n - begin + UNIT - 1) / UNIT), k = begin + i * UNIT;
        float sum = 0.0;
        for (uint end = min(k + UNIT, n); k < end; k++) sum += from[k];
        sums[i] = sum;
        barrier();
        for (uint unit = 0; i == 0 && unit < units; unit++) total += sums[unit];
        barrier();
    }
    if (i == 0) to[0] = first + n == R ? total / float(R) : total;
}
