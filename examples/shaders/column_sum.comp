#version 450
// to (N) += the sum of the rows of from (R, N): the gradient of a bias.
//
// A workgroup owns some columns, neighbours of one another, and has a slice of W / columns
// invocations for each, W being its size. One slice adds row after row. Several, on a GPU, share out
// parts of 512 rows: slice s sums rows s, s + slices, ... of the part, and then one invocation of each
// column adds the sums of the slices, first to last. So rows that come in several calls, each of whole
// parts, add what they add in one.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, N, columns; };
layout(std430, binding = 0) buffer To { float to[]; };
layout(std430, binding = 1) readonly buffer From { float from[]; };

const uint PART = 512;

shared float sums[gl_WorkGroupSize.x];

void add_rows(uint column) {
    float total = to[column];
    uint r = 0, at = column;
    for (; r + 3 < R; r += 4) {
        vec4 rows = vec4(from[at], from[at + N], from[at + 2 * N], from[at + 3 * N]);
        total = total + rows.x + rows.y + rows.z + rows.w;
        at += 4 * N;
    }
    for (; r < R; r++) {
        total += from[at];
        at += N;
    }
    to[column] = total;
}

// Every step-th row before the end, four at a time, whose loads overlap.
float sum_slice(uint r, uint end, uint step, uint column) {
    vec4 sum = vec4(0.0);
    uint at = r * N + column, next = step * N;
    for (; r + 3 * step < end; r += 4 * step) {
        sum += vec4(from[at], from[at + next], from[at + 2 * next], from[at + 3 * next]);
        at += 4 * next;
    }
    for (; r < end; r += step) {
        sum.x += from[at];
        at += next;
    }
    return sum.x + sum.y + (sum.z + sum.w);
}

void add_parts(uint first_column) {
    uint i = gl_LocalInvocationID.x, slices = gl_WorkGroupSize.x / columns;
    uint column = first_column + i % columns;
    bool is_first = i < columns && column < N;
    float total = is_first ? to[column] : 0.0;
    for (uint begin = 0; begin < R; begin += PART) {
        sums[i] = sum_slice(begin + i / columns, min(begin + PART, R), slices, min(column, N - 1));
        barrier();
        for (uint k = i; is_first && k < gl_WorkGroupSize.x; k += columns) total += sums[k];
        barrier();
    }
    if (is_first) to[column] = total;
}

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, first = group * columns;
    if (columns < gl_WorkGroupSize.x) add_parts(first);
    else if (first + gl_LocalInvocationID.x < N) add_rows(first + gl_LocalInvocationID.x);
}
