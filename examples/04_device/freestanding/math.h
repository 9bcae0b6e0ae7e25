// math.h for a compiler without a C library: nn.h names these in kernels that are not called here
#ifndef DEVICE_MATH_H
#define DEVICE_MATH_H
float sqrtf(float x);
float logf(float x);
#endif
