// The gradient of the mean squared error; the fourth channel learns nothing.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Out { vec4 outputs[]; };
layout(std430, binding = 1) readonly buffer Colours { vec4 colours[]; };
layout(std430, binding = 2) readonly buffer LossGrad { float loss_grad[]; };
layout(std430, binding = 3) buffer OutGrad { vec4 output_grads[]; };
layout(push_constant) uniform Push { uint batch; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= batch) return;
    vec3 off = outputs[i].rgb - colours[i].rgb;
    output_grads[i] += vec4(off * (2.0 * loss_grad[0] / (3.0 * float(batch))), 0.0);
}
