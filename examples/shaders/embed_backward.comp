#version 450
// dwte (V, C) and dwpe (T, C), or some rows of each, += the rows of dout (R, C) that read them, first
// to last. An invocation owns an element and looks for its token in all rows: no two ever add to the
// same place. The first row is number `first` of the batch.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    uint R, T, C, V;
    uint token, tokens;        // the first row of wte that dwte has, and how many
    uint position, positions;  // the same of wpe and dwpe
    uint first;
};
layout(std430, binding = 0) buffer Dwte { float dwte[]; };
layout(std430, binding = 1) buffer Dwpe { float dwpe[]; };
layout(std430, binding = 2) readonly buffer Dout { float dout[]; };
layout(std430, binding = 3) readonly buffer Tokens { uint ids[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
             gl_GlobalInvocationID.x;
    if (i >= (tokens + positions) * C) return;
    uint row = i / C, channel = i % C;
    if (row < tokens) {
        float sum = dwte[i];
        for (uint r = 0; r < R; r++) {
            if (min(ids[r], V - 1) == token + row) sum += dout[r * C + channel];
        }
        dwte[i] = sum;
    } else {
        row -= tokens;
        float sum = dwpe[row * C + channel];
        for (uint r = (position + row + T - first % T) % T; r < R; r += T) sum += dout[r * C + channel];
        dwpe[row * C + channel] = sum;
    }
}
