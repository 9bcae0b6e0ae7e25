// main.c -- trains the network of net.tlg for a few steps, and prints what came of it
//
// The same main for every form of the network: generated code (net.c), the version by hand (hand.c), the executor with
// tables (executor.c); on the host and on the device. Losses and weights are printed as their bits. The optimizer is
// called here, or in the plan where it holds the weights.

#define NN_SMALL_STACK
#define NN_LOG nn_log
#include "../nn.h"

#include "device.h"
#include "layers.h"
#include "net.h"

enum { STEPS = 40, CLASSES = 10, LAYERS = 4 };

static int32_t step;

// The weights of each layer with its biases, and where they lie.
typedef struct weights {
    unsigned char *at, *velocity;
    uint32_t bytes;
    size_t   taps;      // without biases
    float    deviation;
} weights;

#ifdef NET_STATE_CONV1_W_o0
#define WEIGHTS(NAME, taps, deviation) \
    { NET_STATE_##NAME##_W_o0, NET_STATE_##NAME##_W_o1, NET_STATE_##NAME##_W_o0_BYTES, taps, deviation }
#else
#define WEIGHTS(NAME, taps, deviation) \
    { net_weights + NET_WEIGHT_##NAME##_OFFSET, net_states + NET_WEIGHT_##NAME##_OFFSET, NET_WEIGHT_##NAME##_BYTES, taps, \
      deviation }
#endif

static const weights layers[] = { WEIGHTS(CONV1, 9 * 4, 0.3f), WEIGHTS(CONV2, 36 * 8, 0.2f),
                                  WEIGHTS(CONV3, 72 * 8, 0.15f), WEIGHTS(DENSE, 32 * 10, 0.2f) };

// Called behind the start of the executor, which clears the states of its graph.
static void init_weights(void) {
    int i;
    for (i = 0; i < LAYERS; i++) {
        memset(layers[i].at, 0, layers[i].bytes);
        memset(layers[i].velocity, 0, layers[i].bytes);
        nn_fill_normal((float *)(void *)layers[i].at, layers[i].taps, layers[i].deviation, (uint64_t)i);
    }
}

// A bright square in one of ten places, and noise.
void net_load(int32_t micro_batch) {
    uint64_t number = (uint64_t)(step * NET_MICRO_BATCHES + micro_batch);
    int32_t label = (int32_t)(nn_hash(7, number) % CLASSES), at, x, y;
    float *image = (float *)(void *)NET_INPUT_X;
    if (number == 0) init_weights();
    for (at = 0; at < 256; at++) image[at] = 0.5f * nn_uniform(number, (uint64_t)at);
    for (y = 0; y < 5; y++)
        for (x = 0; x < 3; x++) image[(label / 5 * 8 + y + 1) * 16 + label % 5 * 3 + x] += 1.0f;
    memcpy(NET_INPUT_LABEL, &label, sizeof label);
}

#ifdef NET_STATE_CONV1_W_o0
static void train(void) { net_run(); }
#else
static void train(void) {
    memset(net_gradients, 0, NET_GRADIENTS_BYTES);
    net_run();
    layer_update((float *)(void *)net_weights, (float *)(void *)net_states, (const float *)(const void *)net_gradients,
                 NET_GRADIENTS_BYTES / sizeof(float));
}
#endif

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
    uint64_t sum = 0;
    int i;
    for (step = 0; step < STEPS; step++) {
        layer_loss = 0.0f;
        begin = device_instructions();
        train();
        instructions = device_instructions() - begin;  // of the last step
        print_word("loss ", nn_bits(layer_loss));
    }
    for (i = 0; i < LAYERS; i++) sum = nn_checksum(sum, layers[i].at, layers[i].bytes);
    print_word("weights ", (uint32_t)sum);
    print_word("instructions ", instructions);
    print_word("stack ", device_stack_bytes());
    return 0;
}
