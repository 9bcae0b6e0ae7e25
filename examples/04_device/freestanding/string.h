// string.h for a compiler without a C library: what nn.h uses, defined in board.c
#ifndef DEVICE_STRING_H
#define DEVICE_STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
#endif
