// Random numbers to begin with: normal ones times a scale, and zeroes from `limit` on.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) writeonly buffer Values { float values[]; };
layout(push_constant) uniform Push { uint count, limit, seed; float scale; };

uint mix_bits(uint x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= count) return;
    uint a = mix_bits(i + mix_bits(seed)), b = mix_bits(a ^ 0x9e3779b9u);
    float u = (float(a >> 8) + 1.0) / 16777217.0, angle = float(b >> 8) * (6.28318531 / 16777216.0);
    values[i] = i < limit ? scale * sqrt(-2.0 * log(u)) * cos(angle) : 0.0;  // Box and Muller
}
