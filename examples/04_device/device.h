// device.h -- what main.c needs of a machine: the host (host.c) or a board (board.c)
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

void     device_print(const char *text);
uint32_t device_instructions(void);  // since the program began, modulo 671 million; 0 on the host
uint32_t device_stack_bytes(void);   // most bytes of stack so far; 0 on the host

#endif
