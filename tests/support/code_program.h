// The user's side of programs that tl_write_plan_code writes: kernels whose every byte depends on every byte that they may
// read, as those of run_support.h, and a main that prints what came of each network. Included by programs that
// test_5_code writes.
#ifndef TESTS_CODE_PROGRAM_H
#define TESTS_CODE_PROGRAM_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_OPERANDS = 8, CODE_SLOTS = 4, CODE_NODES = 64 };

typedef struct code_node {
    int      input_count, output_count;
    uint32_t in[CODE_OPERANDS], out[CODE_OPERANDS], saved, fwork, swork, bwork, param;   // bytes
} code_node;

typedef struct code_tensor { int slot, index; unsigned char *at; uint32_t bytes; } code_tensor;

typedef struct code_net {
    const char        *name;
    const code_node   *nodes;
    int32_t            node_count, slot_count;
    const code_tensor *inputs, *results;     // the results in the order of slots and tensors
    int                input_count, result_count;
    void             (*run)(void);
    unsigned char     *weights, *gradients;
    uint32_t           weight_bytes, gradient_bytes;
    int32_t            micro_batch;          // of slot 0
    uint64_t           sums[CODE_SLOTS][CODE_NODES];
    uint32_t           added;                // what kernels added to parameter gradients
    const unsigned char *frozen;             // NULL = none is
} code_net;

typedef struct code_call {
    int32_t node, slot;
    void *in[CODE_OPERANDS], *out[CODE_OPERANDS], *din[CODE_OPERANDS], *dout[CODE_OPERANDS];
    void *weight, *dweight, *saved, *scratch;
} code_call;

static uint64_t code_mix(uint64_t a, uint64_t b) {
    uint64_t z = a + (b + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t code_read(uint64_t sum, const void *from, uint32_t bytes) {
    const unsigned char *at = (const unsigned char *)from;
    uint32_t i;
    if (!from) bytes = 0;
    for (i = 0; i < bytes; i++) sum = (sum ^ at[i]) * UINT64_C(0x100000001b3) + (sum >> 47);
    return code_mix(sum, bytes);
}

static void code_write(uint64_t sum, void *to, uint32_t bytes, int adds) {
    unsigned char *at = (unsigned char *)to;
    uint32_t i;
    for (i = 0; i < bytes && to; i++) {
        sum = sum * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at[i] = (unsigned char)((adds ? at[i] * 3u : 0u) + (unsigned)(sum >> 56));
    }
}

static void code_require(int holds, const code_net *net, const char *what) {
    if (holds) return;
    printf("%s: %s\n", net->name, what);
    exit(1);
}

// Weights hold their distance from the start of their array; nobody else writes there.
static void code_use_weights(code_net *net, const code_node *node, const code_call *c) {
    const unsigned char *weight = (const unsigned char *)c->weight;
    const unsigned char *array = net->frozen && !(net->weight_bytes && weight >= net->weights && weight < net->weights + net->weight_bytes)
                                     ? net->frozen : net->weights;
    uint32_t i;
    code_require(!weight == !node->param, net, "weights are missing");
    for (i = 0; i < node->param; i++)
        code_require(weight[i] == (unsigned char)((uint32_t)(weight - array) + i), net, "weights have changed");
    for (i = 0; i < node->param && c->dweight; i++) ((unsigned char *)c->dweight)[i]++;
    if (c->dweight) {
        net->added += node->param;
        code_require((unsigned char *)c->dweight - net->gradients == weight - net->weights, net, "gradients lie elsewhere than weights");
    }
}

static uint64_t code_seed(const code_net *net, const code_call *c) {
    uint64_t batch = (uint64_t)(net->micro_batch + c->slot);
    return code_mix(code_mix(42, 0), batch << 32 | (uint64_t)c->node);
}

static void code_forward(code_net *net, const code_call *c) {
    const code_node *node = &net->nodes[c->node];
    uint64_t sum = code_mix(code_seed(net, c), (uint64_t)c->node);
    int i;
    code_use_weights(net, node, c);
    for (i = 0; i < node->input_count; i++) sum = code_read(sum, c->in[i], node->in[i]);
    code_write(sum + 1000, c->scratch, c->saved ? node->swork : node->fwork, 1);
    for (i = 0; i < node->output_count; i++) code_write(sum + (uint64_t)i, c->out[i], node->out[i], 0);
    code_write(sum + 77, c->saved, node->saved, 0);
}

static void code_backward(code_net *net, const code_call *c) {
    const code_node *node = &net->nodes[c->node];
    uint64_t sum = code_mix((uint64_t)c->node, code_seed(net, c));
    int i;
    code_use_weights(net, node, c);
    for (i = 0; i < node->output_count; i++) {
        sum = code_read(sum, c->out[i], node->out[i]);
        sum = code_read(sum, c->dout[i], node->out[i]);
    }
    sum = code_read(sum, c->saved, node->saved);
    for (i = 0; i < node->input_count; i++) sum = code_read(sum, c->in[i], node->in[i]);
    code_write(sum + 1000, c->scratch, node->bwork, 1);
    net->sums[c->slot][c->node] = code_mix(net->sums[c->slot][c->node], sum);
    for (i = 0; i < node->input_count; i++) code_write(sum + (uint64_t)i, c->din[i], node->in[i], 1);
}

// Copies are made late, when they are waited for, so that what is copied must stay until then; those that a
// micro-batch does not wait for are never read.
typedef struct code_copy_under_way { void *to; const void *from; size_t bytes; } code_copy_under_way;
static code_copy_under_way code_copies[64];

static void code_copy(void *to, const void *from, size_t bytes) {
    int i = 0;
    while (i < 63 && code_copies[i].to) i++;
    if (code_copies[i].to) { printf("more copies than the program expects\n"); exit(1); }
    code_copies[i].to = to;
    code_copies[i].from = from;
    code_copies[i].bytes = bytes;
}

static void code_wait(const void *to) {
    int i = 0;
    while (i < 63 && code_copies[i].to != to) i++;
    memcpy(code_copies[i].to, code_copies[i].from, code_copies[i].bytes);
    code_copies[i].to = NULL;
}

// The inputs of a micro-batch, by test_5_replay's rule.
static void code_load(code_net *net, int32_t micro_batch) {
    int32_t slot = micro_batch % net->slot_count;
    int i;
    uint32_t k;
    if (!slot) {
        net->micro_batch = micro_batch;
        memset(code_copies, 0, sizeof code_copies);
    }
    for (i = 0; i < net->input_count; i++)
        for (k = 0; k < net->inputs[i].bytes && net->inputs[i].slot == slot; k++)
            net->inputs[i].at[k] = (unsigned char)code_mix((uint64_t)micro_batch * 1000 + (uint64_t)net->inputs[i].index, k);
}

// Codecs by their definition, in doubles, which hold every quotient and product here closely enough: 1 f16, 2 bf16, 3 q8.
static float code_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t code_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// A value rounded to so many bits of mantissa, none below 2^lowest: in units of the last bit, and the unit's exponent.
static double code_round(float value, int mantissa, int lowest, int *exponent) {
    (void)frexp(value, exponent);
    *exponent = value == 0 || *exponent - mantissa < lowest ? lowest : *exponent - mantissa;
    return rint(ldexp(value, -*exponent));
}

static uint16_t code_f16_of(float value) {
    uint32_t bits = code_bits(value);
    int exponent;
    double units;
    if (isnan(value)) return (uint16_t)(bits >> 16 & 0x8000u) | 0x7E00u | (uint16_t)(bits >> 13 & 0x3FFu);
    units = fabs(code_round(value, 11, -24, &exponent));
    if (isinf(value) || ldexp(units, exponent) >= 65536) return (uint16_t)(bits >> 16 & 0x8000u) | 0x7C00u;
    return (uint16_t)((bits >> 16 & 0x8000u) + ((uint32_t)(exponent + 24) << 10) + (uint32_t)units);    // the leading bit counts
}

static float code_of_f16(uint16_t half) {
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    if (exponent == 31) return code_float(sign | 0x7F800000u | (mantissa ? 0x400000u | (uint32_t)mantissa << 13 : 0));
    return code_float(sign | code_bits((float)size));
}

static uint16_t code_bf16_of(float value) {
    uint32_t bits = code_bits(value), below = bits & 0xFFFFu, above = bits >> 16;
    if (isnan(value)) return (uint16_t)(above | 0x40u);
    return (uint16_t)(above + (below > 0x8000u || (below == 0x8000u && (above & 1))));
}

// Value i of `bytes` bytes of f32; the last is padded with zeroes.
static float code_value(const void *from, size_t bytes, size_t i) {
    uint32_t bits = 0;
    memcpy(&bits, (const unsigned char *)from + 4 * i, bytes - 4 * i < 4 ? bytes - 4 * i : 4);
    return code_float(bits);
}

static double code_largest(const void *from, size_t bytes, size_t first) {
    double largest = 0;
    size_t i;
    for (i = first; i < first + 32 && 4 * i < bytes; i++) {
        double size = fabs((double)code_value(from, bytes, i));
        if (isfinite(size) && size > largest) largest = size;
    }
    return largest;
}

static signed char code_q8_of(float value, double largest) {
    if (isnan(value)) return -128;
    if (isinf(value)) return value < 0 ? -127 : 127;
    return largest > 0 ? (signed char)rint((double)value * 127 / largest) : 0;
}

static float code_of_q8(signed char code, float scale) {
    double value = (double)code * (double)scale;
    if (code == -128) return code_float(0x7FC00000u);
    if (fabs(value) > (double)code_float(0x7F7FFFFFu)) value = value < 0 ? -(double)code_float(0x7F7FFFFFu) : (double)code_float(0x7F7FFFFFu);
    return code < 0 ? -(float)-value : (float)value;
}

static void code_compress(int32_t codec, void *to, const void *from, size_t bytes) {
    unsigned char *at = (unsigned char *)to;
    size_t count = (bytes + 3) / 4, i;
    for (i = 0; i < count; i++) {
        float value = code_value(from, bytes, i), scale;
        uint16_t half = codec == 1 ? code_f16_of(value) : code_bf16_of(value);
        if (codec != 3) { memcpy(at + 2 * i, &half, 2); continue; }
        scale = (float)(code_largest(from, bytes, i / 32 * 32) / 127);
        memcpy(at + i / 32 * 36, &scale, 4);
        at[i / 32 * 36 + 4 + i % 32] = (unsigned char)code_q8_of(value, code_largest(from, bytes, i / 32 * 32));
    }
}

static void code_expand(int32_t codec, void *to, const void *from, size_t bytes) {
    const unsigned char *at = (const unsigned char *)from;
    size_t count = (bytes + 3) / 4, i;
    for (i = 0; i < count; i++) {
        float value, scale;
        uint16_t half;
        memcpy(&half, at + 2 * i * (codec != 3), 2);
        memcpy(&scale, at + i / 32 * 36 * (codec == 3), codec == 3 ? 4 : 2);
        if (codec == 1) value = code_of_f16(half);
        else if (codec == 2) value = code_float((uint32_t)half << 16 | (uint32_t)((half & 0x7FFFu) > 0x7F80u ? 0x400000u : 0));
        else value = code_of_q8((signed char)at[i / 32 * 36 + 4 + i % 32], scale);
        memcpy((unsigned char *)to + 4 * i, &value, bytes - 4 * i < 4 ? bytes - 4 * i : 4);
    }
}

static void code_run(code_net *net) {
    uint64_t sum = 1;
    uint32_t k, added = 0;
    int i, slot, id;
    for (k = 0; k < net->weight_bytes; k++) net->weights[k] = (unsigned char)k;
    net->run();
    for (slot = 0; slot < net->slot_count; slot++)
        for (id = 0; id < net->node_count; id++) sum = code_mix(sum, net->sums[slot][id]);
    for (i = 0; i < net->result_count; i++)
        for (k = 0; k < net->results[i].bytes; k++) sum = code_mix(sum, net->results[i].at[k]);
    for (k = 0; k < net->gradient_bytes; k++) added += net->gradients[k];
    code_require(added == net->added || net->added > 200 * net->gradient_bytes, net, "parameter gradients were changed by others");
    printf("%s %016llx\n", net->name, (unsigned long long)sum);
}

#endif
