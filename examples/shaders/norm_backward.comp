#version 450
// din (R, C) += what is left of the gradient once mean and deviation have moved with in. One
// invocation owns a row.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint R, C; };
layout(std430, binding = 0) buffer Din { float din[]; };
layout(std430, binding = 1) readonly buffer Dout { float dout[]; };
layout(std430, binding = 2) readonly buffer Saved { float saved[]; };
layout(std430, binding = 3) readonly buffer In { float x[]; };
layout(std430, binding = 4) readonly buffer Weight { float weight[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= R) return;
    float mean = saved[2 * i], rstd = saved[2 * i + 1], sum = 0.0, product = 0.0;
    for (uint c = 0; c < C; c++) {
        float d = weight[c] * dout[i * C + c];
        sum += d;
        product += d * ((x[i * C + c] - mean) * rstd);
    }
    float mean_sum = sum / float(C), mean_product = product / float(C);
    for (uint c = 0; c < C; c++) {
        float normal = (x[i * C + c] - mean) * rstd;
        float centered = weight[c] * dout[i * C + c] - mean_sum;
        din[i * C + c] += (centered - normal * mean_product) * rstd;
    }
}
