// weight_grad[I + 1][O] = in^T delta, summed over the batch: a workgroup makes 4 by 4 of them, each
// invocation from every 64th sample; the 64 parts are added in their order, so the sum is always
// the same to the last bit.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { vec4 inputs[]; };
layout(std430, binding = 1) readonly buffer Delta { vec4 deltas[]; };
layout(std430, binding = 2) writeonly buffer Gradient { float gradient[]; };
layout(push_constant) uniform Push { uint rows, in_groups, out_groups; };
shared float parts[64][17];

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint column = gl_WorkGroupID.x % out_groups, row = gl_WorkGroupID.x / out_groups;
    mat4 sum = mat4(0.0);
    for (uint b = lane; b < rows; b += 64) {
        vec4 x = row < in_groups ? inputs[b * in_groups + row] : vec4(1.0, 0.0, 0.0, 0.0);  // the bias
        sum += outerProduct(deltas[b * out_groups + column], x);
    }
    for (uint i = 0; i < 16; i++) parts[lane][i] = sum[i / 4][i % 4];
    barrier();
    if (lane < 16) {
        float total = 0.0;
        for (uint k = 0; k < 64; k++) total += parts[k][lane];
        gradient[(row * 4 + lane / 4) * out_groups * 4 + column * 4 + lane % 4] = total;
    }
}
