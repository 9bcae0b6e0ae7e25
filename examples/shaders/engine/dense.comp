// out[B][O] = relu(in[B][I] W + bias): 4 rows by 4 columns an invocation. W has I rows of O, then the
// bias, then three rows of nobody, so that every layer begins where a descriptor may.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { vec4 inputs[]; };
layout(std430, binding = 1) readonly buffer Weights { vec4 weights[]; };
layout(std430, binding = 2) writeonly buffer Out { vec4 outputs[]; };
layout(push_constant) uniform Push { uint rows, in_groups, out_groups, relu; };  // groups of four

void main() {
    uint column = gl_GlobalInvocationID.x % out_groups, row = gl_GlobalInvocationID.x / out_groups * 4;
    if (row >= rows) return;
    uint from = row * in_groups, bias = in_groups * 4 * out_groups + column;
    vec4 a = weights[bias], b = a, c = a, d = a;
    for (uint i = 0; i < in_groups; i++) {
        uint w = i * 4 * out_groups + column;
        mat4 m = mat4(weights[w], weights[w + out_groups],
                      weights[w + 2 * out_groups], weights[w + 3 * out_groups]);
        a += m * inputs[from + i];
        b += m * inputs[from + in_groups + i];
        c += m * inputs[from + 2 * in_groups + i];
        d += m * inputs[from + 3 * in_groups + i];
    }
    vec4 least = vec4(relu != 0 ? 0.0 : -3.4e38);
    uint to = row * out_groups + column;
    outputs[to] = max(a, least);
    outputs[to + out_groups] = max(b, least);
    outputs[to + 2 * out_groups] = max(c, least);
    outputs[to + 3 * out_groups] = max(d, least);
}
