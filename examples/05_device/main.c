// main.c -- one inference of a network in int8 from generated code: its result, instructions and stack
//
// With -DBY_HAND the kernels are called here instead, with the same constants, at the same addresses, and what tl_plan
// wrote about geometry and scales is written out.

#include "../04_device/device.h"
#include "net.h"

#define PERIOD 671088640u   // of device_instructions

static void print_number(const char *name, uint32_t number, int digits) {
    char text[16];
    int i;
    device_print(name);
    for (i = 0; i < digits; i++) text[i] = "0123456789abcdef"[number >> 4 * (digits - 1 - i) & 15];
    text[digits] = '\n';
    text[digits + 1] = 0;
    device_print(text);
}

// Features as a microphone would give them: a chirp.
void net_load(int32_t micro_batch) {
    unsigned char *input = NET_INPUT_INPUT0;
    int32_t i;
    (void)micro_batch;
    for (i = 0; i < NET_INPUT_INPUT0_BYTES; i++) input[i] = (unsigned char)(i * i / 7 + 13 * (i % 10));
}

#ifdef BY_HAND
#include "../nn_tiny.h"

#define CONSTANT(type, name) ((const type *)(const void *)(net_weights + NET_STORED_##name##_OFFSET))

static nn_tiny_weights weights_of(const int8_t *weights, const int32_t *bias, const int32_t *multipliers, const int32_t *shifts) {
    nn_tiny_weights w;
    w.weights = weights;
    w.bias = bias;
    w.multipliers = multipliers;
    w.shifts = shifts;
    w.per_channel = 1;
    return w;
}

#define WEIGHTS(name) weights_of(CONSTANT(int8_t, name##_0), CONSTANT(int32_t, name##_1), CONSTANT(int32_t, name##_2), CONSTANT(int32_t, name##_3))

// Kernels that lie in files of their own, as those of generated code do: nothing is known of the geometry when they are compiled.
#define APART __attribute__((noipa))

APART static void convolve(int8_t *out, const int8_t *in, const nn_tiny_window *window, const nn_tiny_weights *w, const nn_tiny_target *to) {
    nn_tiny_conv2d_i8(out, in, window, w, to);
}

APART static void convolve_each(int8_t *out, const int8_t *in, const nn_tiny_window *window, const nn_tiny_weights *w, const nn_tiny_target *to) {
    nn_tiny_depthwise_i8(out, in, window, w, to);
}

APART static void average(int8_t *out, const int8_t *in, const nn_tiny_window *window, const nn_tiny_target *to) {
    nn_tiny_avgpool_i8(out, in, window, to);
}

APART static void multiply(int8_t *out, const int8_t *in, const nn_tiny_weights *w, const nn_tiny_target *to, int32_t K, int32_t N) {
    nn_tiny_linear_i8(out, in, w, to, 1, K, N);
}

static void infer(void) {
    static const nn_tiny_window conv = { 49, 10, 1, 10, 4, 2, 2, 4, 1, 1, 1, 25, 5, 8 }, depthwise = { 25, 5, 8, 3, 3, 1, 1, 1, 1, 1, 1, 25, 5, 8 };
    static const nn_tiny_window point = { 25, 5, 8, 1, 1, 1, 1, 0, 0, 1, 1, 25, 5, 8 }, pool = { 25, 5, 8, 25, 5, 1, 1, 0, 0, 1, 1, 1, 1, 8 };
    static const nn_tiny_target first = { -1, -128, -128, 127 }, inner = { -128, -128, -128, 127 }, words = { -128, -1, -128, 127 };
    static const nn_tiny_softmax softmax = { 1077952640, 22, -496 };
    nn_tiny_weights w = WEIGHTS(T6);
    int8_t *a = (int8_t *)net_bank_0, *b = a + 1000;
    net_load(0);
    convolve(a, (const int8_t *)NET_INPUT_INPUT0, &conv, &w, &first);
    w = WEIGHTS(T9);
    convolve_each(b, a, &depthwise, &w, &inner);
    w = WEIGHTS(T12);
    convolve(a, b, &point, &w, &inner);
    average(b, a, &pool, &inner);
    w = WEIGHTS(T18);
    multiply(a, b, &w, &words, 8, 12);
    nn_tiny_softmax_i8((int8_t *)NET_RESULT_T19, a, 1, 12, &softmax);
}
#else
static void infer(void) { net_run(); }
#endif

int main(void) {
    const unsigned char *result = NET_RESULT_T19;
    uint32_t begin = device_instructions(), end, i;
    infer();
    end = device_instructions();
    for (i = 0; i < NET_RESULT_T19_BYTES; i++) print_number("result ", result[i], 2);
    print_number("instructions ", end < begin ? end + PERIOD - begin : end - begin, 8);
    print_number("stack ", device_stack_bytes(), 8);
    return 0;
}
