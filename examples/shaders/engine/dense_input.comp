// in_grad[B][I] += delta[B][O] W^T: 4 rows by 4 columns an invocation.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Delta { vec4 deltas[]; };
layout(std430, binding = 1) readonly buffer Weights { vec4 weights[]; };
layout(std430, binding = 2) buffer InGrad { vec4 input_grads[]; };
layout(push_constant) uniform Push { uint rows, in_groups, out_groups; };

void main() {
    uint column = gl_GlobalInvocationID.x % in_groups, row = gl_GlobalInvocationID.x / in_groups * 4;
    if (row >= rows) return;
    uint from = row * out_groups, to = row * in_groups + column;
    vec4 a = vec4(0.0), b = a, c = a, d = a;
    for (uint o = 0; o < out_groups; o++) {
        uint w = column * 4 * out_groups + o;
        mat4 m = mat4(weights[w], weights[w + out_groups],
                      weights[w + 2 * out_groups], weights[w + 3 * out_groups]);
        a += deltas[from + o] * m;
        b += deltas[from + out_groups + o] * m;
        c += deltas[from + 2 * out_groups + o] * m;
        d += deltas[from + 3 * out_groups + o] * m;
    }
    input_grads[to] += a;
    input_grads[to + in_groups] += b;
    input_grads[to + 2 * in_groups] += c;
    input_grads[to + 3 * in_groups] += d;
}
