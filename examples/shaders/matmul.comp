#version 450
// c (M, N) = start + a (M, K) b (K, N). The start is zero, a bias per column, or what c holds, to
// which gradients of inputs are added, or those of weights, that is products of the rows of a batch.
//
// Element (i, j) of a is a[a_first + i * a_row + j * a_col], so a transpose costs nothing, nor does
// a part of its rows. One invocation owns a block of 4 x 4 elements: 8 loads serve 16 products.
// Each element gets its K products in order, whatever rows are computed with it.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint M, N, K, a_first, a_row, a_col, b_row, b_col, start; };
layout(std430, binding = 0) buffer C { float c[]; };
layout(std430, binding = 1) readonly buffer A { float a[]; };
layout(std430, binding = 2) readonly buffer B { float b[]; };
layout(std430, binding = 3) readonly buffer Bias { float bias[]; };

const uint START_BIAS = 1, START_C = 2, START_ROWS = 3;

void store(uint row, uint col, vec4 sum) {
    if (row >= M) return;
    for (uint j = 0; j < 4; j++) {
        if (col + j < N) c[row * N + col + j] = sum[j];
    }
}

vec4 begin(uint row, uvec4 cols) {
    if (start == START_BIAS) return vec4(bias[cols.x], bias[cols.y], bias[cols.z], bias[cols.w]);
    if (start != START_C && start != START_ROWS) return vec4(0.0);
    uvec4 at = row * N + cols;
    return vec4(c[at.x], c[at.y], c[at.z], c[at.w]);
}

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    uint across = (N + 3) / 4, row = i / across * 4, col = i % across * 4;
    if (row >= M) return;
    // beyond the edge the last row and column are computed again, and not stored
    uvec4 rows = min(row + uvec4(0, 1, 2, 3), M - 1), cols = min(col + uvec4(0, 1, 2, 3), N - 1);
    uvec4 a_at = a_first + rows * a_row, b_at = cols * b_col;
    vec4 sum0 = begin(rows.x, cols), sum1 = begin(rows.y, cols);
    vec4 sum2 = begin(rows.z, cols), sum3 = begin(rows.w, cols);
    for (uint k = 0; k < K; k++) {
        vec4 v = vec4(b[b_at.x], b[b_at.y], b[b_at.z], b[b_at.w]);
        sum0 += a[a_at.x] * v;
        sum1 += a[a_at.y] * v;
        sum2 += a[a_at.z] * v;
        sum3 += a[a_at.w] * v;
        a_at += a_col;
        b_at += b_row;
    }
    store(row, col, sum0);
    store(row + 1, col, sum1);
    store(row + 2, col, sum2);
    store(row + 3, col, sum3);
}
