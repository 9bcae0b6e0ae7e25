// device.c -- clips.h through generated code of the keyword network on a board: results and instructions of all clips
//
// With -DBY_HAND its kernels are called here instead, one after the other as one writes them, with the constants and the tables
// of the generated code at the addresses of its plan.

#include "clips.h"
#include "device.h"

#ifdef BY_HAND
#include "tables.h"    // what stands above the kernels in net_kernels.c
#else
#include "net.h"
#endif

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

static const signed char *clip = clips;

void net_load(int32_t micro_batch) {
    int32_t i;
    (void)micro_batch;
    for (i = 0; i < NET_INPUT_FEATURES_BYTES; i++) NET_INPUT_FEATURES[i] = (unsigned char)clip[i];
}

#ifdef BY_HAND

// Kernels that lie in files of their own, as those of generated code do: nothing is known of the geometry when they are compiled.
#define APART __attribute__((noipa))
#define CONSTANT(type, name) ((const type *)(const void *)(net_weights + NET_STORED_##name##_OFFSET))
#define CONSTANTS(name) CONSTANT(int8_t, name##_0), CONSTANT(int32_t, name##_1), CONSTANT(int32_t, name##_2), CONSTANT(int32_t, name##_3)

typedef struct constants { const int8_t *weights; const int32_t *bias, *multipliers, *shifts; } constants;

static nn_tiny_weights weights_of(const constants *c) {
    nn_tiny_weights w = { c->weights, c->bias, c->multipliers, c->shifts, 1 };
    return w;
}

APART static void convolve(int8_t *out, const int8_t *in, const net_windows *k, const constants *c) {
    nn_tiny_weights w = weights_of(c);
    nn_tiny_conv2d_i8(out, in, &k->window, &w, &k->to);
}

APART static void convolve_each(int8_t *out, const int8_t *in, const net_windows *k, const constants *c) {
    nn_tiny_weights w = weights_of(c);
    nn_tiny_depthwise_i8(out, in, &k->window, &w, &k->to);
}

APART static void average(int8_t *out, const int8_t *in, const net_means *k) {
    nn_tiny_gavgpool_i8(out, in, k->pixels, k->C, k->multiplier, k->shift, &k->to);
}

APART static void multiply(int8_t *out, const int8_t *in, const net_matrices *k, const constants *c) {
    nn_tiny_weights w = weights_of(c);
    nn_tiny_linear_i8(out, in, &w, &k->to, 1, k->K, k->N);
}

static void infer(void) {
    static const constants first = { CONSTANTS(FIRST_CONV) }, dense = { CONSTANTS(DENSE_GEMM) };
    static const constants depth[] = { { CONSTANTS(DEPTH1_CONV) }, { CONSTANTS(DEPTH2_CONV) }, { CONSTANTS(DEPTH3_CONV) }, { CONSTANTS(DEPTH4_CONV) } };
    static const constants point[] = { { CONSTANTS(POINT1_CONV) }, { CONSTANTS(POINT2_CONV) }, { CONSTANTS(POINT3_CONV) }, { CONSTANTS(POINT4_CONV) } };
    int8_t *a = (int8_t *)net_bank_0, *b = a + 8000;
    int32_t i;
    net_load(0);
    convolve(a, (const int8_t *)NET_INPUT_FEATURES, &net_windows_rows[0], &first);
    for (i = 0; i < 4; i++) {
        convolve_each(b, a, &net_windows_rows[2 * i + 1], &depth[i]);
        convolve(a, b, &net_windows_rows[2 * i + 2], &point[i]);
    }
    average(b, a, &net_means_rows[0]);
    multiply((int8_t *)NET_RESULT_DENSE_GEMM, b, &net_matrices_rows[0], &dense);
}
#else
static void infer(void) { net_run(); }
#endif

int main(void) {
    const unsigned char *result = NET_RESULT_DENSE_GEMM;
    uint32_t begin, end, i, count = 0;
    for (; clip < clips + CLIPS * NET_INPUT_FEATURES_BYTES; clip += NET_INPUT_FEATURES_BYTES) {
        begin = device_instructions();
        infer();
        end = device_instructions();
        count += end < begin ? end + PERIOD - begin : end - begin;
        for (i = 0; i < NET_RESULT_DENSE_GEMM_BYTES; i++) print_number("result ", result[i], 2);
    }
    print_number("instructions ", count, 8);
    return 0;
}
