// What integers gain over floats: the same matmul in f32 (nn.h), int8 and w8a16 (nn_int.h), on one thread.
//
//     bench_int [ROUNDS]      40; the three take turns, and each figure is the median of the rounds' ratios
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn_int.h"
#include "timing.h"

typedef enum kind { F32, INT8, INT8_FLOAT, W8A16, INT16, KINDS } kind;

typedef struct bed {
    size_t R, K, N;
    float *in, *weight, *bias, *out;
    int8_t *in8, *weight8, *out8;
    int16_t *in16, *weight16, *out16;
    int32_t *sums;
    nn_int_linear w8, w16;
    nn_int_factor factor;
    float scale;
} bed;

static void *make(size_t count, size_t bytes) {
    void *block = calloc(count, bytes);
    if (!block) exit(1);
    return block;
}

static void init_bed(bed *b, size_t R, size_t K, size_t N) {
    nn_int_target bytes = { 0, -127, 127 }, words = { 0, -32767, 32767 };
    memset(b, 0, sizeof *b);
    b->R = R;
    b->K = K;
    b->N = N;
    b->in = (float *)make(R * K, sizeof(float));
    b->weight = (float *)make(K * N, sizeof(float));
    b->bias = (float *)make(N, sizeof(float));
    b->out = (float *)make(R * N, sizeof(float));
    b->in8 = (int8_t *)make(R * K, 1);
    b->weight8 = (int8_t *)make(K * N, 1);
    b->out8 = (int8_t *)make(R * N, 1);
    b->in16 = (int16_t *)make(R * K, 2);
    b->weight16 = (int16_t *)make(K * N, 2);
    b->out16 = (int16_t *)make(R * N, 2);
    b->sums = (int32_t *)make(N, sizeof(int32_t));
    nn_fill_normal(b->in, R * K, 1.0f, 1);
    nn_fill_normal(b->weight, K * N, 0.1f, 2);
    nn_int8_quantize(b->in8, b->in, R * K, 6.0f / 127.0f, bytes);
    nn_int8_quantize(b->weight8, b->weight, K * N, 0.6f / 127.0f, bytes);
    nn_int16_quantize(b->in16, b->in, R * K, 6.0f / 32767.0f, words);
    nn_int16_quantize(b->weight16, b->weight, K * N, 0.6f / 32767.0f, words);
    nn_int_sum_weights(b->sums, b->weight8, N, K);
    b->factor.multiplier = 1 << 30;
    b->factor.exponent = -8;
    b->scale = 6.0f * 0.6f / (127.0f * 127.0f);
    b->w8.K = K;
    b->w8.N = N;
    b->w8.weight = b->weight8;
    b->w8.weight_sums = b->sums;
    b->w8.factors = &b->factor;
    b->w8.scales = &b->scale;
    b->w8.in_zero = 3;
    b->w8.to = bytes;
    b->w16 = b->w8;
    b->w16.to = words;
    b->w16.in_zero = 0;
}

static void free_bed(bed *b) {
    void *blocks[] = { b->in, b->weight, b->bias, b->out, b->in8, b->weight8, b->out8,
                       b->in16, b->weight16, b->out16, b->sums };
    size_t i;
    for (i = 0; i < sizeof blocks / sizeof blocks[0]; i++) free(blocks[i]);
}

static void run_kind(bed *b, kind k) {
    nn_int_linear wide = b->w16;
    switch (k) {
    case F32:   nn_linear_forward(b->out, b->in, b->weight, b->bias, b->R, b->K, b->N); break;
    case INT8:  nn_int8_linear_forward(b->out8, b->in8, &b->w8, b->R); break;
    case INT8_FLOAT: nn_int8_linear_to_float(b->out, b->in8, &b->w8, b->R); break;
    case W8A16: nn_w8a16_linear_forward(b->out16, b->in16, &b->w16, b->R); break;
    case INT16:
        wide.weight = b->weight16;
        nn_int16_linear_forward(b->out16, b->in16, &wide, b->R);
        break;
    case KINDS: break;
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(size_t R, size_t K, size_t N, int rounds) {
    double *ratios[KINDS], f32_ns = 0.0;
    int repeat = (int)(4e6 / ((double)R * (double)K * (double)N) + 1.0), round, i, k;
    bed b;
    init_bed(&b, R, K, N);
    for (k = 0; k < KINDS; k++) ratios[k] = (double *)make((size_t)rounds, sizeof(double));
    for (round = -1; round < rounds; round++) {  // the first one warms up
        for (k = 0; k < KINDS; k++) {
            double ns = processor_ns();
            for (i = 0; i < repeat; i++) run_kind(&b, (kind)k);
            ns = (processor_ns() - ns) / repeat;
            if (k == F32) f32_ns = ns;
            if (round >= 0) ratios[k][round] = k == F32 ? ns : f32_ns / ns;
        }
    }
    for (k = 0; k < KINDS; k++) qsort(ratios[k], (size_t)rounds, sizeof(double), compare);
    printf("%5zu x %4zu x %4zu %9.1f us %7.1f", R, K, N, ratios[F32][rounds / 2] * 1e-3,
           (double)R * (double)K * (double)N / ratios[F32][rounds / 2]);
    for (k = INT8; k < KINDS; k++) printf(" %8.2f", ratios[k][rounds / 2]);
    printf("\n");
    for (k = 0; k < KINDS; k++) free(ratios[k]);
    free_bed(&b);
}

int main(int argc, char **argv) {
    static const size_t shapes[][3] = {
        { 128, 64, 64 }, { 128, 64, 256 }, { 128, 256, 64 }, { 256, 128, 128 }, { 256, 128, 512 },
        { 256, 512, 128 }, { 512, 512, 512 }, { 256, 144, 32 }, { 1, 512, 512 }
    };
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    size_t i;
    if (rounds < 1) rounds = 1;
    printf("rows, terms of a sum, columns; f32 time and multiply-adds a ns; f32 time / time of the others\n");
    printf("                          f32  1/ns      int8  i8->f32    w8a16    int16\n");
    for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        measure(shapes[i][0], shapes[i][1], shapes[i][2], rounds);
    return 0;
}
