#version 450
// to (1) = the mean of from (n). One workgroup: each invocation sums every W-th element in order,
// then the first one sums the W sums in order; W is fixed by the program, so is the result.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint n; };
layout(std430, binding = 0) writeonly buffer To { float to[]; };
layout(std430, binding = 1) readonly buffer From { float from[]; };

shared float sums[gl_WorkGroupSize.x];

void main() {
    uint i = gl_LocalInvocationID.x;
    float sum = 0.0;
    for (uint k = i; k < n; k += gl_WorkGroupSize.x) sum += from[k];
    sums[i] = sum;
    barrier();
    if (i != 0) return;
    for (uint k = 1; k < gl_WorkGroupSize.x; k++) sum += sums[k];
    to[0] = sum / float(n);
}
