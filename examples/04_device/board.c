// board.c -- the board mps2-an386, a Cortex-M4 with FPU, as qemu-system-arm has it: start-up, output, counters
//
// Instructions are counted by the SysTick timer: with -icount shift=0 an instruction takes a nanosecond, and the timer
// ticks every 40 ns. Stack is counted by the pattern that it was filled with. Output goes by semihosting.

#include <stddef.h>
#include <string.h>

#include "device.h"

extern uint32_t board_data_from[], board_data[], board_data_end[], board_bss[], board_bss_end[];
extern uint32_t board_stack[], board_stack_end[];  // board.ld

int main(void);

// The C library: compilers call these by themselves. The loops must stay loops, see run.sh.
void *memset(void *to, int byte, size_t bytes) {
    unsigned char *at = (unsigned char *)to, *end = at + bytes;
    uint32_t word = (uint32_t)(byte & 255) * 0x01010101u;
    for (; at < end && (uintptr_t)at % 4; at++) *at = (unsigned char)byte;
    for (; end - at >= 4; at += 4) *(uint32_t *)(void *)at = word;
    for (; at < end; at++) *at = (unsigned char)byte;
    return to;
}

void *memcpy(void *to, const void *from, size_t bytes) {
    unsigned char *at = (unsigned char *)to, *end = at + bytes;
    const unsigned char *in = (const unsigned char *)from;
    if (((uintptr_t)at | (uintptr_t)in) % 4 == 0)
        for (; end - at >= 4; at += 4, in += 4) *(uint32_t *)(void *)at = *(const uint32_t *)(const void *)in;
    for (; at < end; at++, in++) *at = *in;
    return to;
}

static const uint32_t pattern = 0xA5C3A5C3u;

static uint32_t call_host(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void device_print(const char *text) { call_host(0x04, text); }  // SYS_WRITE0

uint32_t device_instructions(void) {
    const volatile uint32_t *systick = (const volatile uint32_t *)0xE000E010u;
    return (0xFFFFFFu - systick[2]) * 40u;
}

uint32_t device_stack_bytes(void) {
    const uint32_t *at = board_stack;
    while (*at == pattern) at++;
    return (uint32_t)((uintptr_t)board_stack_end - (uintptr_t)at);
}

static void reset(void) {
    volatile uint32_t *systick = (volatile uint32_t *)0xE000E010u, *cpacr = (volatile uint32_t *)0xE000ED88u;
    const uint32_t *from = board_data_from;
    uint32_t *at, *here = (uint32_t *)__builtin_frame_address(0) - 16;
    *cpacr |= 0xFu << 20;  // the FPU
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    for (at = board_data; at < board_data_end; at++) *at = *from++;
    for (at = board_bss; at < board_bss_end; at++) *at = 0;
    for (at = board_stack; at < here; at++) *at = pattern;
    systick[1] = 0xFFFFFFu;
    systick[2] = 0;
    systick[0] = 5;  // on, the clock of the processor
    main();
    call_host(0x18, (const void *)0x20026u);  // SYS_EXIT, ADP_Stopped_ApplicationExit
    for (;;) { }
}

static void stop(void) {
    device_print("a fault\n");
    call_host(0x18, (const void *)0x20024u);
    for (;;) { }
}

typedef union vector { uint32_t *stack; void (*handler)(void); } vector;

__attribute__((section(".vectors"), used)) static const vector vectors[] = {
    { .stack = board_stack_end }, { .handler = reset }, { .handler = stop }, { .handler = stop },
    { .handler = stop }, { .handler = stop }, { .handler = stop },
};
