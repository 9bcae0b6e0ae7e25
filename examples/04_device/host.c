// host.c -- the host as a machine: nothing is counted
#include <stdio.h>

#include "device.h"

void device_print(const char *text) { fputs(text, stdout); }
uint32_t device_instructions(void) { return 0; }
uint32_t device_stack_bytes(void) { return 0; }
