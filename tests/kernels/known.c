// known.c -- a pool of examples/nn_tiny.h whose geometry the compiler knows: read without a warning (tests/kernels/device.sh).
// One call alone: all of it is inlined then.
#include "nn_tiny.h"

void average(int8_t *out, const int8_t *in);

void average(int8_t *out, const int8_t *in) {
    static const nn_tiny_window window = { 25, 5, 8, 25, 5, 1, 1, 0, 0, 1, 1, 1, 1, 8 };
    static const nn_tiny_target target = { -128, -128, -128, 127 };
    nn_tiny_avgpool_i8(out, in, &window, &target);
}
