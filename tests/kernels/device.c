// device.c -- the kernels of examples/nn_tiny.h on a simulated Cortex-M4: hashes of tests/support/tiny_cases.h, and instructions
//
// tests/kernels/device.sh builds and runs it. With -DCMSIS the kernels of CMSIS-NN are counted beside them.

#include "../../examples/04_device/device.h"
#include "../support/tiny_cases.h"
#include "../support/tiny_golden.h"
#ifdef CMSIS
#include "arm_nnfunctions.h"
#endif

enum { MOST_IN = 32768, MOST_OUT = 18432 };

static union {
    struct { tiny_case c; int16_t out[TINY_MOST_ELEMENTS]; } hashed;
    struct { int8_t in[MOST_IN], out[MOST_OUT], other[MOST_OUT]; int16_t scratch[8192]; } counted;
} memory;

static void print_number(uint32_t value) {
    char text[16];
    int i = 15;
    text[i] = 0;
    do text[--i] = (char)('0' + value % 10); while (value /= 10);
    device_print(text + i);
}

static int compare_hashes(void) {
    int bad = 0;
    for (int op = 0; op < TINY_OPS; op++)
        for (int32_t bytes = 1; bytes <= 2; bytes++)
            for (int32_t group = 0; group < TINY_DEVICE_GROUPS; group++) {
                uint64_t hash = tiny_hash_group(&memory.hashed.c, memory.hashed.out, (tiny_op)op, bytes, group, tiny_run_case);
                if (hash == tiny_golden[op][bytes - 1][group]) continue;
                device_print("differs: op ");
                print_number((uint32_t)op);
                device_print(bytes == 1 ? " i8\n" : " i16\n");
                bad++;
            }
    for (int op = 0; op < TINY_W4_OPS; op++) {
        if (tiny_hash_w4(&memory.hashed.c, memory.hashed.out, tiny_ops_w4[op], tiny_run_case) == tiny_golden_w4[op]) continue;
        device_print("differs: op ");
        print_number((uint32_t)tiny_ops_w4[op]);
        device_print(" w4\n");
        bad++;
    }
    device_print(bad ? "" : "hashes: the same\n");
    return bad;
}

// -- instructions --

typedef enum kind { CONV, DEPTHWISE, LINEAR, MEAN, MOST, ADD, SOFTMAX } kind;

typedef struct layer {
    const char *name;
    kind kind;
    nn_tiny_window window;
} layer;

#define WINDOW(h, w, c, kh, kw, s, top, left, oh, ow, n) { h, w, c, kh, kw, s, s, top, left, 1, 1, oh, ow, n }
static const layer layers[] = {
    { "conv2d 10x4/2 49x10x1 -> 25x5x64   ", CONV, WINDOW(49, 10, 1, 10, 4, 2, 4, 1, 25, 5, 64) },
    { "depthwise 3x3 25x5x64              ", DEPTHWISE, WINDOW(25, 5, 64, 3, 3, 1, 1, 1, 25, 5, 64) },
    { "conv2d 1x1 25x5x64 -> 64           ", CONV, WINDOW(25, 5, 64, 1, 1, 1, 0, 0, 25, 5, 64) },
    { "avgpool 25x5x64                    ", MEAN, WINDOW(25, 5, 64, 25, 5, 1, 0, 0, 1, 1, 64) },
    { "linear 64 -> 12                    ", LINEAR, WINDOW(1, 1, 64, 1, 1, 1, 0, 0, 1, 1, 12) },
    { "softmax 12                         ", SOFTMAX, WINDOW(1, 1, 12, 1, 1, 1, 0, 0, 1, 1, 12) },
    { "conv2d 3x3/2 96x96x3 -> 48x48x8    ", CONV, WINDOW(96, 96, 3, 3, 3, 2, 0, 0, 48, 48, 8) },
    { "depthwise 3x3/2 24x24x32 -> 12x12  ", DEPTHWISE, WINDOW(24, 24, 32, 3, 3, 2, 0, 0, 12, 12, 32) },
    { "conv2d 1x1 6x6x128 -> 128          ", CONV, WINDOW(6, 6, 128, 1, 1, 1, 0, 0, 6, 6, 128) },
    { "conv2d 1x1 3x3x256 -> 256          ", CONV, WINDOW(3, 3, 256, 1, 1, 1, 0, 0, 3, 3, 256) },
    { "conv2d 3x3 32x32x16 -> 16          ", CONV, WINDOW(32, 32, 16, 3, 3, 1, 1, 1, 32, 32, 16) },
    { "conv2d 3x3 8x8x64 -> 64            ", CONV, WINDOW(8, 8, 64, 3, 3, 1, 1, 1, 8, 8, 64) },
    { "add 32x32x16                       ", ADD, WINDOW(32, 32, 16, 1, 1, 1, 0, 0, 32, 32, 16) },
    { "maxpool 2x2/2 32x32x16             ", MOST, WINDOW(32, 32, 16, 2, 2, 2, 0, 0, 16, 16, 16) },
    { "linear 640 -> 128                  ", LINEAR, WINDOW(1, 1, 640, 1, 1, 1, 0, 0, 1, 1, 128) },
};

static int8_t weights[640 * 128], factors[640 * 128 / 32];
static int32_t biases[256], multipliers[256], shifts[256];
static const nn_tiny_weights numbers = { weights, biases, multipliers, shifts, 1 };
static const nn_tiny_weights_w4 quarters = { { weights, biases, multipliers, shifts, 1 }, factors };
static const nn_tiny_target target = { 3, -7, -128, 127 };
static const nn_tiny_pair pair = { 3, 1 << 30, 0, -5, 1900000000, -1, 1500000000, -18, -7, -128, 127 };
static const nn_tiny_softmax classes = { 1700000000, 22, -496 };

static void run_own(const layer *l) {
    const nn_tiny_window *w = &l->window;
    int8_t *in = memory.counted.in, *out = memory.counted.out;
    int32_t n = w->out_height * w->out_width * w->out_channels;
    switch (l->kind) {
    case CONV: nn_tiny_conv2d_i8(out, in, w, &numbers, &target); break;
    case DEPTHWISE: nn_tiny_depthwise_i8(out, in, w, &numbers, &target); break;
    case LINEAR: nn_tiny_linear_i8(out, in, &numbers, &target, 1, w->in_channels, w->out_channels); break;
    case MEAN: nn_tiny_avgpool_i8(out, in, w, &target); break;
    case MOST: nn_tiny_maxpool_i8(out, in, w, &target); break;
    case ADD: nn_tiny_add_i8(out, in, in + 1, n, &pair); break;
    case SOFTMAX: nn_tiny_softmax_i8(out, in, 1, n, &classes); break;
    }
}

// The same layer in w4, of those that have weights.
static void run_w4(const layer *l) {
    const nn_tiny_window *w = &l->window;
    int8_t *in = memory.counted.in, *out = memory.counted.out;
    if (l->kind == CONV) nn_tiny_conv2d_w4(out, in, w, &quarters, &target);
    else if (l->kind == DEPTHWISE) nn_tiny_depthwise_w4(out, in, w, &quarters, &target);
    else nn_tiny_linear_w4(out, in, &quarters, &target, 1, w->in_channels, w->out_channels);
}

#ifdef CMSIS
static void run_cmsis(const layer *l) {
    const nn_tiny_window *w = &l->window;
    int8_t *in = memory.counted.in, *out = memory.counted.other;
    cmsis_nn_context context = { memory.counted.scratch, sizeof memory.counted.scratch };
    cmsis_nn_dims from = { 1, w->in_height, w->in_width, w->in_channels }, to = { 1, w->out_height, w->out_width, w->out_channels };
    cmsis_nn_dims filter = { l->kind == CONV ? w->out_channels : 1, w->height, w->width, l->kind == CONV ? w->in_channels : w->out_channels };
    cmsis_nn_dims bias = { 1, 1, 1, w->out_channels }, matrix = { w->in_channels, 1, 1, w->out_channels };
    cmsis_nn_conv_params conv = { -3, -7, { w->stride_x, w->stride_y }, { w->pad_left, w->pad_top }, { 1, 1 }, { -128, 127 } };
    cmsis_nn_dw_conv_params depthwise = { -3, -7, 1, { w->stride_x, w->stride_y }, { w->pad_left, w->pad_top }, { 1, 1 }, { -128, 127 } };
    cmsis_nn_pool_params pool = { { w->stride_x, w->stride_y }, { w->pad_left, w->pad_top }, { -128, 127 } };
    cmsis_nn_per_channel_quant_params q = { multipliers, shifts };
    cmsis_nn_fc_params fc = { -3, 0, -7, { -128, 127 } };
    int32_t n = to.h * to.w * to.c;
    switch (l->kind) {
    case CONV: arm_convolve_wrapper_s8(&context, &conv, &q, &from, in, &filter, weights, &bias, biases, &to, out); break;
    case DEPTHWISE: arm_depthwise_conv_wrapper_s8(&context, &depthwise, &q, &from, in, &filter, weights, &bias, biases, &to, out); break;
    case LINEAR: arm_fully_connected_per_channel_s8(&context, &fc, &q, &from, in, &matrix, weights, &bias, biases, &to, out); break;
    case MEAN: arm_avgpool_s8(&context, &pool, &from, in, &filter, &to, out); break;
    case MOST: arm_max_pool_s8(&context, &pool, &from, in, &filter, &to, out); break;
    case ADD:
        arm_elementwise_add_s8(in, in + 1, -pair.a_zero, pair.a_multiplier, pair.a_shift, -pair.b_zero, pair.b_multiplier, pair.b_shift, 20,
                               out, pair.zero, pair.multiplier, pair.shift, pair.low, pair.high, n);
        break;
    case SOFTMAX: arm_softmax_s8(in, 1, n, classes.multiplier, classes.shift, classes.least, out); break;
    }
}
#endif

static uint32_t count(void (*run)(const layer *), const layer *l) {
    uint32_t begin = device_instructions(), end;
    run(l);
    end = device_instructions();
    return end < begin ? end + 671088640u - begin : end - begin;
}

static void count_layers(void) {
    tiny_case *c = &memory.hashed.c;
    c->seed = 1;
    for (size_t i = 0; i < sizeof weights; i++) weights[i] = (int8_t)(i * 2654435761u >> 24);
    for (size_t i = 0; i < sizeof factors; i++) factors[i] = (int8_t)(i % 128);
    for (int i = 0; i < 256; i++) {
        biases[i] = i * 977 % 4001 - 2000;
        multipliers[i] = (1 << 30) + i * 3000017;
        shifts[i] = -9 - i % 4;
    }
    for (int i = 0; i < MOST_IN; i++) memory.counted.in[i] = (int8_t)((uint32_t)i * 2246822519u >> 24);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const layer *l = &layers[i];
        uint32_t own = count(run_own, l);
        device_print(l->name);
        print_number(own);
#ifndef CMSIS
        if (l->kind <= LINEAR) {
            device_print("  w4 ");
            print_number(count(run_w4, l));
        }
#else
        device_print(" ");
        print_number(count(run_cmsis, l));
        for (int32_t k = 0; k < l->window.out_height * l->window.out_width * l->window.out_channels; k++)
            if (memory.counted.out[k] != memory.counted.other[k]) {
                device_print(" differs");
                break;
            }
#endif
        device_print("\n");
    }
}

int main(void) {
    int bad = compare_hashes();
    count_layers();
    device_print("stack ");
    print_number(device_stack_bytes());
    device_print("\n");
    return bad;
}
