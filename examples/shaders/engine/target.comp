// The colours of the batch, from the picture that the engine rendered in this frame.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Picture { vec4 picture[]; };
layout(std430, binding = 1) writeonly buffer Colours { vec4 colours[]; };
layout(push_constant) uniform Push { uint batch, pixels, width, seed; };

#include "batch.glsl"

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < batch) colours[i] = vec4(picture[pick_pixel(i)].rgb, 0.0);
}
