// Mean squared error of three channels, by one workgroup, always in the same order.
#version 450
layout(local_size_x = 128) in;
layout(std430, binding = 0) readonly buffer Out { vec4 outputs[]; };
layout(std430, binding = 1) readonly buffer Colours { vec4 colours[]; };
layout(std430, binding = 2) writeonly buffer Loss { float loss[]; };
layout(push_constant) uniform Push { uint batch; };
shared float parts[128];

void main() {
    uint lane = gl_LocalInvocationID.x;
    float sum = 0.0;
    for (uint b = lane; b < batch; b += 128) {
        vec3 off = outputs[b].rgb - colours[b].rgb;
        sum += dot(off, off);
    }
    parts[lane] = sum;
    for (uint half_count = 64; half_count > 0; half_count /= 2) {
        barrier();
        if (lane < half_count) parts[lane] += parts[lane + half_count];
    }
    if (lane == 0) loss[0] = parts[0] / (3.0 * float(batch));
}
