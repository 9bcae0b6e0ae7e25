// target[] = target[] * factor + hash(seed, all of source[], place): every word written depends on every word read, and
// on the order in which sources come.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint target_count, source_count, seed, factor; };
layout(set = 0, binding = 0, std430) buffer Target { uint target[]; };
layout(set = 0, binding = 1, std430) readonly buffer Source { uint source[]; };

uint hash(uint sum, uint word) {
    sum = (sum ^ word) * 2654435769u;
    return (sum ^ (sum >> 15)) * 2246822519u;
}

void main() {
    uint i = gl_GlobalInvocationID.x, sum = seed;
    if (i >= target_count) return;
    for (uint k = 0; k < source_count; k++) sum = hash(sum, source[k]);
    target[i] = target[i] * factor + hash(sum, i);
}
