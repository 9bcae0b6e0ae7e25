// The gradient before the relu: that of the output where the output is positive, else zero.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Out { vec4 outputs[]; };
layout(std430, binding = 1) readonly buffer OutGrad { vec4 output_grads[]; };
layout(std430, binding = 2) writeonly buffer Delta { vec4 deltas[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) deltas[i] = mix(vec4(0.0), output_grads[i], greaterThan(outputs[i], vec4(0.0)));
}
