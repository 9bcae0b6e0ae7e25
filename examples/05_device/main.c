// main.c -- the keyword network hears some clips: what was said and what it hears, its scores, instructions and stack
//
// clips.inc are bytes: of each clip the number of its word, and the features that the network reads. With -DBY_HAND the kernels
// are called here, one after the other as one writes them, with the constants and the tables of the generated code (tables.h,
// what stands above the kernels in net_kernels.c) at the addresses of its plan.

#include "device.h"
#include "net.h"

#define PERIOD 671088640u   // of device_instructions

#ifdef NET_RESULT_DENSE_GEMM_F32    // --precision says nothing of the result: it is converted to floats
#define SCORES NET_RESULT_DENSE_GEMM_F32
#define SCORES_BYTES NET_RESULT_DENSE_GEMM_F32_BYTES
#else
#define SCORES NET_RESULT_DENSE_GEMM
#define SCORES_BYTES NET_RESULT_DENSE_GEMM_BYTES
#endif

static const char *const words[] = { "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "unknown", "silence" };

#define WORDS ((int32_t)(sizeof words / sizeof *words))
#define CLIP_BYTES (1 + NET_INPUT_FEATURES_BYTES)

static const signed char clips[] = {
#include "clips.inc"
};
static const signed char *clip = clips;

#define CLIPS ((uint32_t)(sizeof clips / CLIP_BYTES))

void net_load(int32_t micro_batch) {
    int32_t i;
    (void)micro_batch;
    for (i = 0; i < NET_INPUT_FEATURES_BYTES; i++) NET_INPUT_FEATURES[i] = (unsigned char)clip[1 + i];
}

#ifdef BY_HAND
#include "tables.h"

#define CONSTANT(type, name) ((const type *)(const void *)(net_weights + NET_STORED_##name##_OFFSET))
#define CONSTANTS(name) CONSTANT(int8_t, name##_0), CONSTANT(int32_t, name##_1), CONSTANT(int32_t, name##_2), CONSTANT(int32_t, name##_3)

typedef struct constants { const int8_t *weights; const int32_t *bias, *multipliers, *shifts; } constants;

static nn_tiny_weights weights_of(const constants *c) {
    nn_tiny_weights w = { c->weights, c->bias, c->multipliers, c->shifts, 1 };
    return w;
}

static void convolve(int8_t *out, const int8_t *in, const net_windows *k, const constants *c) {
    nn_tiny_weights w = weights_of(c);
    nn_tiny_conv2d_i8(out, in, &k->window, &w, &k->to);
}

static void convolve_each(int8_t *out, const int8_t *in, const net_windows *k, const constants *c) {
    nn_tiny_weights w = weights_of(c);
    nn_tiny_depthwise_i8(out, in, &k->window, &w, &k->to);
}

static void average(int8_t *out, const int8_t *in, const net_means *k) {
    nn_tiny_gavgpool_i8(out, in, k->pixels, k->C, k->multiplier, k->shift, &k->to);
}

static void multiply(int8_t *out, const int8_t *in, const net_matrices *k, const constants *c) {
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
    multiply((int8_t *)SCORES, b, &net_matrices_rows[0], &dense);
}
#else
static void infer(void) { net_run(); }
#endif

// A number as hexadecimal digits, and what follows.
static void print_number(uint32_t number, int32_t digits, const char *end) {
    char text[16];
    int32_t i;
    for (i = 0; i < digits; i++) text[i] = "0123456789abcdef"[number >> 4 * (digits - 1 - i) & 15];
    text[digits] = 0;
    device_print(text);
    device_print(end);
}

// The scores as they are stored, a number each; the largest.
static int32_t print_scores(void) {
#if SCORES_BYTES == 48
    const float *scores = (const float *)(const void *)SCORES;
#else
    const int8_t *scores = (const int8_t *)SCORES;
#endif
    int32_t i, k, most = 0;
    for (i = 0; i < WORDS; i++) {
        uint32_t bits = 0;
        for (k = SCORES_BYTES / WORDS - 1; k >= 0; k--) bits = bits << 8 | SCORES[i * (SCORES_BYTES / WORDS) + k];
        print_number(bits, 2 * SCORES_BYTES / WORDS, i + 1 < WORDS ? " " : "\n");
        if (scores[i] > scores[most]) most = i;
    }
    return most;
}

int main(void) {
    uint32_t begin, end, count = 0, heard;
    for (; clip < clips + sizeof clips; clip += CLIP_BYTES) {
        begin = device_instructions();
        infer();
        end = device_instructions();
        count += (end < begin ? end + PERIOD - begin : end - begin) / CLIPS;
        device_print("scores ");
        heard = (uint32_t)print_scores();
        device_print(heard == (uint32_t)clip[0] ? "right " : "wrong ");
        device_print(words[clip[0]]);
        device_print(" ");
        device_print(words[heard]);
        device_print("\n");
    }
    device_print("instructions ");
    print_number(count, 8, "\n");
    device_print("stack ");
    print_number(device_stack_bytes(), 8, "\n");
    return 0;
}
