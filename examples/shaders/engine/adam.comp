// Adam from one copy of the network's state into the other: weights, then first, then second moments.
// Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014, algorithm 1.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer From { vec4 from[]; };
layout(std430, binding = 1) readonly buffer Gradient { vec4 gradient[]; };
layout(std430, binding = 2) writeonly buffer To { vec4 to[]; };
layout(push_constant) uniform Push { uint count; float rate, correction1, correction2; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= count) return;
    vec4 g = gradient[i];
    vec4 m = mix(g, from[count + i], 0.9), v = mix(g * g, from[2 * count + i], 0.99);
    to[i] = from[i] - rate * (m * correction1) / (sqrt(v * correction2) + 1e-8);
    to[count + i] = m;
    to[2 * count + i] = v;
}
