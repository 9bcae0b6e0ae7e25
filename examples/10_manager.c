// 10_manager.c -- the checkpoint manager alone, inside a training loop of your own
//
// You learn: save what forward makes, take it in backward, compute it again where a budget had it evicted. It
// trains 12 layers three times from one seed, to equal weights. Read next: 01, for plans made before a run.
//
// check:
//     mkdir -p build && cc -O3 -ffp-contract=off -o build/10_manager examples/10_manager.c && build/10_manager
#include <stdio.h>
#include <string.h>
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

enum { LAYERS = 12, WIDTH = 16, BATCH = 64, VALUES = BATCH * WIDTH, BYTES = 4 * VALUES, STEPS = 200 };
static float weights[LAYERS][WIDTH * WIDTH], input[VALUES];
static int forwards;

static void forward(int layer, const float *in, float *out) {  // z = in W, out = z / (1 + |z|)
    for (int k = 0; k < VALUES; k++) {
        float z = 0;
        for (int i = 0; i < WIDTH; i++) z += in[k / WIDTH * WIDTH + i] * weights[layer][i * WIDTH + k % WIDTH];
        out[k] = z / (z < 0 ? 1 - z : 1 + z);
    }
    forwards++;
}

static void backward(int layer, const float *in, const float *out, float *grad) {  // grad: of out, then of in
    float grad_in[VALUES] = { 0 }, grad_w[WIDTH * WIDTH] = { 0 };
    for (int k = 0; k < VALUES; k++) {
        float slope = out[k] < 0 ? 1 + out[k] : 1 - out[k], dz = grad[k] * slope * slope;
        for (int i = 0, row = k / WIDTH * WIDTH; i < WIDTH; i++) {
            int w = i * WIDTH + k % WIDTH;
            grad_w[w] += in[row + i] * dz, grad_in[row + i] += weights[layer][w] * dz;
        }
    }
    memcpy(grad, grad_in, BYTES);
    for (int i = 0; i < WIDTH * WIDTH; i++) weights[layer][i] -= 0.5f * grad_w[i];
}

static void save(tl_manager *m, tl_checkpoint_key key, const float *values) {
    tl_save_desc desc = { 0 };
    desc.key = key, desc.data = values, desc.bytes = BYTES, desc.cost = 1, desc.keep = key.node == 0;
    (void)tl_save_checkpoint(NULL, m, &desc);  // refused: it is made again later
}

static void fetch(tl_manager *m, tl_checkpoint_key key, float *values) {  // or make it from below
    float in[VALUES];
    const void *held = NULL;
    int layer = key.node;
    uint64_t bytes;
    if (!tl_take_checkpoint(NULL, m, key, values, BYTES)) return;
    do key.node--; while (tl_peek_checkpoint(NULL, m, key, &held, &bytes));
    memcpy(values, held, BYTES);
    tl_release_checkpoint(NULL, m, key);
    while (key.node < layer) {
        forward(key.node++, memcpy(in, values, BYTES), values);
        if (key.node < layer) save(m, key, values);  // backward wants these next
    }
}

static void train_step(tl_manager *m, int step) {
    float a[VALUES], b[VALUES], grad[VALUES];
    tl_checkpoint_key key = { (uint64_t)step, 0, 0, 0 };  // the step tells last step's values from this one's
    memcpy(a, input, BYTES);
    for (key.node = 0; key.node < LAYERS; key.node++, memcpy(a, b, BYTES)) {
        save(m, key, a);
        forward(key.node, a, b);
    }
    for (int k = 0; k < VALUES; k++) grad[k] = 2 * (a[k] - input[k] * input[k]) / VALUES;  // learn to square
    for (key.node = LAYERS - 1; key.node >= 0; key.node--, memcpy(a, b, BYTES)) {
        fetch(m, key, b);
        backward(key.node, b, a, grad);
    }
}

int main(void) {
    static const uint64_t device[3] = { 0, 4 * BYTES, 4 * BYTES }, host[3] = { 0, 0, 4 * BYTES };
    static float first[LAYERS][WIDTH * WIDTH];
    printf("  device    host  forwards  evicted  spilled    peak  in use  weights\n");
    for (int run = 0; run < 3; run++) {
        tl_random random = { 1 };
        tl_cpu_backend_desc cpu = { 0 };  // zero = default, everywhere
        tl_manager_desc desc = { 0 };
        tl_checkpoint_statistics s;
        tl_backend backend;
        tl_manager *m;
        for (int layer = 0; layer < LAYERS; layer++)
            for (int k = 0; k < WIDTH * WIDTH; k++) weights[layer][k] = (float)tl_next_random_ratio(&random) - 0.5f;
        for (int k = 0; k < VALUES; k++) input[k] = (float)tl_next_random_ratio(&random);
        desc.device_budget_bytes = device[run], desc.host_budget_bytes = host[run], forwards = 0;
        if (tl_init_cpu_backend(NULL, &cpu, &backend) || tl_init_manager(NULL, &backend, &desc, &m)) return 1;
        for (int step = 0; step < STEPS; step++) train_step(m, step);
        tl_measure_manager(m, &s);
        if (run == 0) memcpy(first, weights, sizeof first);
        printf("%8d%8d%10d%9d%9d%8d%8d  %s\n", (int)device[run], (int)host[run], forwards, (int)s.evictions, (int)s.spills,
               (int)s.peak_bytes, (int)s.total_memory_bytes, memcmp(first, weights, sizeof first) ? "differ" : "the same");
        tl_free_manager(m);
        tl_free_cpu_backend(NULL, &backend);
    }
    return 0;
}
