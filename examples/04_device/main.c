// main.c -- trains the network of net.tlg for a few steps, and prints what came of it
//
// The same main for every form of the network: generated code (net.c), the version by hand (hand.c), the executor with
// tables (executor.c); on the host and on the device. Losses and weights are printed as their bits.

#define NN_SMALL_STACK
#define NN_LOG nn_log
#include "../nn.h"

#include "device.h"
#include "layers.h"
#include "net.h"

enum { STEPS = 40, CLASSES = 10 };

static int32_t step;

// A bright square in one of ten places, and noise.
void net_load(int32_t micro_batch) {
    uint64_t number = (uint64_t)(step * NET_MICRO_BATCHES + micro_batch);
    int32_t label = (int32_t)(nn_hash(7, number) % CLASSES), at, x, y;
    float *image = (float *)(void *)NET_INPUT_X;
    for (at = 0; at < 256; at++) image[at] = 0.5f * nn_uniform(number, (uint64_t)at);
    for (y = 0; y < 5; y++)
        for (x = 0; x < 3; x++) image[(label / 5 * 8 + y + 1) * 16 + label % 5 * 3 + x] += 1.0f;
    memcpy(NET_INPUT_LABEL, &label, sizeof label);
}

static void start_weights(uint32_t offset, size_t count, float deviation) {
    nn_fill_normal((float *)(void *)(net_weights + offset), count, deviation, offset);
}

static void print_word(const char *name, uint32_t word) {
    char text[16];
    int i;
    device_print(name);
    for (i = 0; i < 8; i++) text[i] = "0123456789abcdef"[word >> (28 - 4 * i) & 15];
    text[8] = '\n';
    text[9] = 0;
    device_print(text);
}

int main(void) {
    uint32_t instructions = 0, begin;
    start_weights(NET_WEIGHT_CONV1_OFFSET, 9 * 4, 0.3f);
    start_weights(NET_WEIGHT_CONV2_OFFSET, 36 * 8, 0.2f);
    start_weights(NET_WEIGHT_CONV3_OFFSET, 72 * 8, 0.15f);
    start_weights(NET_WEIGHT_DENSE_OFFSET, 32 * 10, 0.2f);
    for (step = 0; step < STEPS; step++) {
        memset(net_gradients, 0, NET_GRADIENTS_BYTES);
        layer_loss = 0.0f;
        begin = device_instructions();
        net_run();
        instructions = device_instructions() - begin;  // of the last step
        nn_sgd_update((float *)(void *)net_weights, (float *)(void *)net_states, (const float *)(const void *)net_gradients,
                      NET_GRADIENTS_BYTES / sizeof(float), 0.05f, 0.9f);
        print_word("loss ", nn_bits(layer_loss));
    }
    print_word("weights ", (uint32_t)nn_checksum(0, net_weights, NET_WEIGHTS_BYTES));
    print_word("instructions ", instructions);
    print_word("stack ", device_stack_bytes());
    return 0;
}
