// main.c -- one forward of the network that 09_rows writes: its result as bits, instructions and stack

#define NN_SMALL_STACK
#include "../nn_image.h"

#include "../04_device/device.h"
#include "net.h"
#include "network.h"

#define PERIOD 671088640u   // of device_instructions

__asm__(".section .rodata\n.global net_weights\n.balign 8\nnet_weights:\n.incbin \"" WEIGHTS "\"\n.text\n");

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
    const float *result = (const float *)(const void *)NET_RESULT;
    uint32_t begin = device_instructions(), end, i;
    net_run();
    end = device_instructions();
    for (i = 0; i < NET_RESULT_BYTES / sizeof *result; i++) print_word("result ", nn_bits(result[i]));
    print_word("instructions ", end < begin ? end + PERIOD - begin : end - begin);
    print_word("stack ", device_stack_bytes());
    return 0;
}
