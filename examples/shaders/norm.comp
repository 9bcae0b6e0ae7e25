#version 450
// Each row of in (R, C) to mean 0 and variance 1, then a weight and a bias per channel. saved (R,
// 2) gets mean and 1 / deviation where backward wants them. One invocation owns a row.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, C, writes; };
layout(std430, binding = 0) writeonly buffer Out { float result[]; };
layout(std430, binding = 1) writeonly buffer Saved { float saved[]; };
layout(std430, binding = 2) readonly buffer In { float x[]; };
layout(std430, binding = 3) readonly buffer Weight { float weight[]; };
layout(std430, binding = 4) readonly buffer Bias { float bias[]; };

const uint WRITES_OUT = 1, WRITES_SAVED = 2;

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= R) return;
    float sum = 0.0, squares = 0.0;
    for (uint c = 0; c < C; c++) sum += x[i * C + c];
    float mean = sum / float(C);
    for (uint c = 0; c < C; c++) {
        float centered = x[i * C + c] - mean;
        squares += centered * centered;
    }
    float rstd = 1.0 / sqrt(squares / float(C) + 1e-5);
    if ((writes & WRITES_OUT) != 0) {
        for (uint c = 0; c < C; c++) result[i * C + c] = (x[i * C + c] - mean) * rstd * weight[c] + bias[c];
    }
    if ((writes & WRITES_SAVED) != 0) {
        saved[2 * i] = mean;
        saved[2 * i + 1] = rstd;
    }
}
