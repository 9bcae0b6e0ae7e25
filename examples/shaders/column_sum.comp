#version 450
// to (N) += the sum of the rows of from (R, N): the gradient of a bias.
//
// A workgroup owns some columns, neighbours of one another, and has a slice of W / columns
// invocations for each, W being its size. Slice s sums the rows s, s + slices, ...; in the end one
// invocation of each column adds the sums of the slices, first to last.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, N, columns; };
layout(std430, binding = 0) buffer To { float to[]; };
layout(std430, binding = 1) readonly buffer From { float from[]; };

shared float sums[gl_WorkGroupSize.x];

void main() {
    uint i = gl_LocalInvocationID.x, slices = gl_WorkGroupSize.x / columns;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint column = group * columns + i % columns;
    uint at = i / columns * N + min(column, N - 1), step = slices * N, r = i / columns;
    vec4 sum = vec4(0.0);  // of four rows at a time, whose loads overlap
    for (; r + 3 * slices < R; r += 4 * slices) {
        sum += vec4(from[at], from[at + step], from[at + 2 * step], from[at + 3 * step]);
        at += 4 * step;
    }
    for (; r < R; r += slices) {
        sum.x += from[at];
        at += step;
    }
    sums[i] = sum.x + sum.y + (sum.z + sum.w);
    barrier();
    if (i >= columns || column >= N) return;
    float total = to[column];
    for (uint k = i; k < gl_WorkGroupSize.x; k += columns) total += sums[k];
    to[column] = total;
}
