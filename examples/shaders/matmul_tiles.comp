#version 450
// c (M, N) = start + a (M, K) b (K, N), as in matmul.comp, for many products on a GPU.
//
// A workgroup, which must have 64 invocations, owns a tile of 16 x 16 elements. It goes over K in
// slabs of 64, which it copies to shared memory: neighbours load neighbours, whichever way a matrix
// lies. In each of 4 slices of the workgroup 16 invocations own a block of 4 x 4 elements each;
// slice s sums the products s, s + 4, s + 8, ... in order. In the end an invocation adds up the
// sums of the slices, first to last, for 4 elements. Of products of rows of a batch it does so
// after every 512: rows that come in several calls, each of so many, add what they add in one.

#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint M, N, K, a_first, a_row, a_col, b_row, b_col, start; };
layout(std430, binding = 0) buffer C { float c[]; };
layout(std430, binding = 1) readonly buffer A { float a[]; };
layout(std430, binding = 2) readonly buffer B { float b[]; };
layout(std430, binding = 3) readonly buffer Bias { float bias[]; };

const uint START_BIAS = 1, START_C = 2, START_ROWS = 3;
const uint GROUP = 64, SIDE = 16, SLAB = 64, PART = 512, SLICES = 4, QUADS = SIDE * SIDE / 4;
const uint STRIDE = SIDE + 1;          // from k to k + 1 in a slab: odd, which spreads the banks
const uint B_SLAB = SLAB * STRIDE;     // where that of b begins, after that of a
const uvec4 FOUR = uvec4(0, 1, 2, 3);

shared float slabs[2 * SLAB * STRIDE];
shared vec4 sums[SLICES * QUADS];

// Where an invocation begins in a slab, as (row or column, k), and its step. Invocations side by
// side are side by side in memory.
uvec2 first_place(bool along_k) {
    uint i = gl_LocalInvocationID.x;
    return along_k ? uvec2(0, i) : uvec2(i % SIDE, i / SIDE);
}
uvec2 next_place(bool along_k) { return along_k ? uvec2(1, 0) : uvec2(0, GROUP / SIDE); }

// Zeroes stand for what is beyond K.
void put(uint slab, uvec4 row, uvec4 k, vec4 values, bvec4 is_inside) {
    uvec4 at = slab + k * STRIDE + row;
    vec4 kept = mix(vec4(0.0), values, is_inside);
    slabs[at.x] = kept.x;
    slabs[at.y] = kept.y;
    slabs[at.z] = kept.z;
    slabs[at.w] = kept.w;
}

// Copy the slabs that begin at k = first: all loads of an invocation, before it waits for one.
// Beyond the edge of c are the last row and column again.
void copy_slabs(uint row, uint col, uint first) {
    uvec2 p = first_place(a_col == 1), p_step = next_place(a_col == 1);
    uvec2 q = first_place(b_row == 1), q_step = next_place(b_row == 1);
    [[unroll]] for (uint n = 0; n < SIDE * SLAB / GROUP; n += 4) {
        uvec4 i = p.x + p_step.x * (n + FOUR), i_k = p.y + p_step.y * (n + FOUR);
        uvec4 j = q.x + q_step.x * (n + FOUR), j_k = q.y + q_step.y * (n + FOUR);
        uvec4 a_at = a_first + min(row + i, M - 1) * a_row + min(first + i_k, K - 1) * a_col;
        uvec4 b_at = min(col + j, N - 1) * b_col + min(first + j_k, K - 1) * b_row;
        vec4 a_values = vec4(a[a_at.x], a[a_at.y], a[a_at.z], a[a_at.w]);
        vec4 b_values = vec4(b[b_at.x], b[b_at.y], b[b_at.z], b[b_at.w]);
        put(0, i, i_k, a_values, lessThan(first + i_k, uvec4(K)));
        put(B_SLAB, j, j_k, b_values, lessThan(first + j_k, uvec4(K)));
    }
}

// What 4 elements of a row start from.
vec4 begin(uint row, uvec4 cols) {
    if (start == START_BIAS) return vec4(bias[cols.x], bias[cols.y], bias[cols.z], bias[cols.w]);
    if (start != START_C && start != START_ROWS) return vec4(0.0);
    uvec4 at = row * N + cols;
    return vec4(c[at.x], c[at.y], c[at.z], c[at.w]);
}

void store(uint row, uint col, vec4 sum) {
    if (row >= M) return;
    for (uint j = 0; j < 4; j++) {
        if (col + j < N) c[row * N + col + j] = sum[j];
    }
}

// Sum the products first .. end - 1 of an invocation's block, and leave its sums to those of others.
void sum_slice(uint row, uint col, uint first, uint end) {
    uint i = gl_LocalInvocationID.x, slice = i / 16, down = i / 4 % 4, right = i % 4;
    vec4 sum0 = vec4(0.0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (; first < end; first += SLAB) {
        copy_slabs(row, col, first);
        barrier();
        for (uint n = 0; n < SLAB; n += SLICES) {
            uint k = (n + slice) * STRIDE, p = k + 4 * down, q = B_SLAB + k + 4 * right;
            vec4 v = vec4(slabs[q], slabs[q + 1], slabs[q + 2], slabs[q + 3]);
            sum0 += slabs[p] * v;
            sum1 += slabs[p + 1] * v;
            sum2 += slabs[p + 2] * v;
            sum3 += slabs[p + 3] * v;
        }
        barrier();
    }
    uint at = slice * QUADS + 16 * down + right;  // a row of the tile has 4 quads
    sums[at] = sum0;
    sums[at + 4] = sum1;
    sums[at + 8] = sum2;
    sums[at + 12] = sum3;
    barrier();
}

void main() {
    uint across = (N + SIDE - 1) / SIDE, i = gl_LocalInvocationID.x;
    uint tile = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint row = tile / across * SIDE, col = tile % across * SIDE;
    if (row >= M) return;  // the whole workgroup
    uint own_row = row + i / 4, own_col = col + 4 * (i % 4), part = start == START_ROWS ? PART : K;
    vec4 total = begin(min(own_row, M - 1), min(own_col + FOUR, N - 1));
    for (uint first = 0; first < K; first += part) {
        sum_slice(row, col, first, min(first + part, K));
        for (uint s = 0; s < SLICES; s++) total += sums[s * QUADS + i];
    }
    store(own_row, own_col, total);
}
