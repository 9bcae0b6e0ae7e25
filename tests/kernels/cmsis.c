// cmsis.c -- hashes of what CMSIS-NN makes of the cases of tests/support/tiny_cases.h, as a table in C
//
// Built with a clone of github.com/ARM-software/CMSIS-NN by tests/kernels/cmsis.sh, which compares the table with
// tests/support/tiny_golden.h. Nothing of that library stands here.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arm_nnfunctions.h"
#include "../support/tiny_cases.h"

static int16_t scratch[1 << 16];

static cmsis_nn_dims dims(int32_t n, int32_t h, int32_t w, int32_t c) {
    cmsis_nn_dims d = { n, h, w, c };
    return d;
}

static void must(arm_cmsis_nn_status status) {
    if (status == ARM_CMSIS_NN_SUCCESS) return;
    fprintf(stderr, "CMSIS-NN refuses a case\n");
    exit(1);
}

// Arrays of N, also where the case has one for all; biases of 64 bits.
static int32_t multipliers[TINY_MOST_CHANNELS], shifts[TINY_MOST_CHANNELS];
static int64_t wide_bias[TINY_MOST_CHANNELS];
static cmsis_nn_per_channel_quant_params spread(const tiny_case *c, int32_t N) {
    cmsis_nn_per_channel_quant_params q = { multipliers, shifts };
    for (int32_t n = 0; n < N; n++) {
        multipliers[n] = c->weights.multipliers[c->weights.per_channel ? n : 0];
        shifts[n] = c->weights.shifts[c->weights.per_channel ? n : 0];
        wide_bias[n] = c->weights.bias ? c->weights.bias[n] : 0;
    }
    return q;
}

static void run_conv(const tiny_case *c, void *out, int is_depthwise) {
    const nn_tiny_window *w = &c->window;
    cmsis_nn_context context = { scratch, sizeof scratch };
    cmsis_nn_dims in = dims(1, w->in_height, w->in_width, w->in_channels);
    cmsis_nn_dims to = dims(1, w->out_height, w->out_width, w->out_channels);
    cmsis_nn_dims filter = is_depthwise ? dims(1, w->height, w->width, w->out_channels)
                                        : dims(w->out_channels, w->height, w->width, w->in_channels);
    cmsis_nn_dims bias = dims(1, 1, 1, w->out_channels);
    cmsis_nn_tile stride = { w->stride_x, w->stride_y }, pad = { w->pad_left, w->pad_top };
    cmsis_nn_tile dilation = { w->dilation_x, w->dilation_y };
    cmsis_nn_activation range = { c->to.low, c->to.high };
    cmsis_nn_per_channel_quant_params q = spread(c, w->out_channels);
    cmsis_nn_conv_params conv = { -c->to.in_zero, c->to.zero, stride, pad, dilation, range };
    cmsis_nn_dw_conv_params depthwise = { -c->to.in_zero, c->to.zero, w->out_channels / w->in_channels, stride, pad, dilation, range };
    cmsis_nn_bias_data biases = { wide_bias, false };
    if (is_depthwise && c->bytes == 1)
        must(arm_depthwise_conv_s8(&context, &depthwise, &q, &in, (const int8_t *)c->a, &filter, c->weight, &bias, c->weights.bias, &to, out));
    else if (is_depthwise)
        must(arm_depthwise_conv_s16(&context, &depthwise, &q, &in, c->a, &filter, c->weight, &bias, wide_bias, &to, out));
    else if (c->bytes == 1)
        must(arm_convolve_s8(&context, &conv, &q, &in, (const int8_t *)c->a, &filter, c->weight, &bias, c->weights.bias, NULL, &to, out));
    else must(arm_convolve_s16(&context, &conv, &q, &in, c->a, &filter, c->weight, &bias, &biases, &to, out));
}

static void run_pool(const tiny_case *c, void *out, int is_mean) {
    const nn_tiny_window *w = &c->window;
    cmsis_nn_context context = { scratch, sizeof scratch };
    cmsis_nn_dims in = dims(1, w->in_height, w->in_width, w->in_channels), filter = dims(1, w->height, w->width, 1);
    cmsis_nn_dims to = dims(1, w->out_height, w->out_width, w->out_channels);
    cmsis_nn_pool_params p = { { w->stride_x, w->stride_y }, { w->pad_left, w->pad_top }, { c->to.low, c->to.high } };
    if (is_mean && c->bytes == 1) must(arm_avgpool_s8(&context, &p, &in, (const int8_t *)c->a, &filter, &to, out));
    else if (is_mean) must(arm_avgpool_s16(&context, &p, &in, c->a, &filter, &to, out));
    else if (c->bytes == 1) must(arm_max_pool_s8(&context, &p, &in, (const int8_t *)c->a, &filter, &to, out));
    else must(arm_max_pool_s16(&context, &p, &in, c->a, &filter, &to, out));
}

static void run_linear(const tiny_case *c, void *out) {
    cmsis_nn_context context = { scratch, sizeof scratch };
    cmsis_nn_fc_params p = { -c->to.in_zero, 0, c->to.zero, { c->to.low, c->to.high } };
    cmsis_nn_dims in = dims(c->R, 1, 1, c->K), filter = dims(c->K, 1, 1, c->N), bias = dims(1, 1, 1, c->N), to = dims(c->R, 1, 1, c->N);
    cmsis_nn_per_channel_quant_params q = spread(c, c->N);
    cmsis_nn_per_tensor_quant_params one = { multipliers[0], shifts[0] };
    if (c->bytes == 1) {
        must(arm_fully_connected_per_channel_s8(&context, &p, &q, &in, (const int8_t *)c->a, &filter, c->weight, &bias, c->weights.bias, &to, out));
        return;
    }
    if (!c->weights.per_channel) {
        must(arm_fully_connected_s16(&context, &p, &one, &in, c->a, &filter, c->weight, &bias, wide_bias, &to, out));
        return;
    }
    for (int32_t r = 0; r < c->R; r++)      // it has one scale for all: a channel at a time
        for (int32_t n = 0; n < c->N; n++) {
            cmsis_nn_dims row = dims(1, 1, 1, c->K), single = dims(1, 1, 1, 1);
            one.multiplier = multipliers[n];
            one.shift = shifts[n];
            must(arm_fully_connected_s16(&context, &p, &one, &row, c->a + r * c->K, &filter, c->weight + n * c->K, &single,
                                         wide_bias + n, &single, (int16_t *)out + r * c->N + n));
        }
}

static void run_pair(const tiny_case *c, void *out) {
    const nn_tiny_pair *p = &c->pair;
    const int8_t *a8 = (const int8_t *)c->a, *b8 = (const int8_t *)c->b;
    if (c->op == TINY_ADD && c->bytes == 1)
        must(arm_elementwise_add_s8(a8, b8, -p->a_zero, p->a_multiplier, p->a_shift, -p->b_zero, p->b_multiplier, p->b_shift, 20, out,
                                    p->zero, p->multiplier, p->shift, p->low, p->high, c->N));
    else if (c->op == TINY_ADD)
        must(arm_elementwise_add_s16(c->a, c->b, 0, p->a_multiplier, p->a_shift, 0, p->b_multiplier, p->b_shift, 15, out, 0, p->multiplier,
                                     p->shift, p->low, p->high, c->N));
    else if (c->bytes == 1)
        must(arm_elementwise_mul_s8(a8, b8, -p->a_zero, -p->b_zero, out, p->zero, p->multiplier, p->shift, p->low, p->high, c->N));
    else must(arm_elementwise_mul_s16(c->a, c->b, 0, 0, out, 0, p->multiplier, p->shift, p->low, p->high, c->N));
}

static void run_case(const tiny_case *c, void *out) {
    cmsis_nn_softmax_lut_s16 tables = { c->exp_table, c->reciprocal_table };
    switch (c->op) {
    case TINY_CONV2D: case TINY_DEPTHWISE: run_conv(c, out, c->op == TINY_DEPTHWISE); break;
    case TINY_AVGPOOL: case TINY_MAXPOOL: run_pool(c, out, c->op == TINY_AVGPOOL); break;
    case TINY_LINEAR: run_linear(c, out); break;
    case TINY_ADD: case TINY_MUL: run_pair(c, out); break;
    case TINY_SOFTMAX:
        if (c->bytes == 1)
            arm_softmax_s8((const int8_t *)c->a, c->R, c->N, c->softmax.multiplier, c->softmax.shift, c->softmax.least, out);
        else must(arm_softmax_s16(c->a, c->R, c->N, c->softmax.multiplier, c->softmax.shift, &tables, out));
        break;
    case TINY_OPS: break;
    }
}

int main(void) {
    static tiny_case c;
    static int16_t out[TINY_MOST_ELEMENTS];
    printf("// Hashes of what CMSIS-NN makes of the cases of tiny_cases.h; written by tests/kernels/cmsis.sh\n\n"
           "static const uint64_t tiny_golden[TINY_OPS][2][TINY_GROUPS] = {    // i8, i16\n");
    for (int op = 0; op < TINY_OPS; op++) {
        printf("    {");
        for (int32_t bytes = 1; bytes <= 2; bytes++) {
            printf("%s{ ", bytes == 1 ? "" : "\n     ");
            for (int32_t group = 0; group < TINY_GROUPS; group++)
                printf("UINT64_C(0x%016" PRIX64 ")%s", tiny_hash_group(&c, out, (tiny_op)op, bytes, group, run_case),
                       group + 1 < TINY_GROUPS ? group == 1 ? ",\n       " : ", " : " }");
            printf(bytes == 1 ? "," : "},\n");
        }
    }
    printf("};\n\n// sigmoid and tanh of all int16, of scales 2^-13, 2^-12 and 2^-11\n"
           "static const uint64_t tiny_golden_curves[2][3] = {\n");
    for (int op = 0; op < 2; op++) {
        static int16_t words[65536], curve[65536];
        printf("    { ");
        for (int32_t shift = -1; shift <= 1; shift++) {
            for (int32_t i = 0; i < 65536; i++) words[i] = (int16_t)(i - 32768);
            must(arm_nn_activation_s16(words, curve, 65536, shift, op ? ARM_TANH : ARM_SIGMOID));
            printf("UINT64_C(0x%016" PRIX64 ")%s", tiny_hash(UINT64_C(14695981039346656037), curve, 65536, 2), shift < 1 ? ", " : " },\n");
        }
    }
    printf("};\n");
    return 0;
}
