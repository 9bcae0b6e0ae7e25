// test_12_tables: runs in the same with sizes of 32 bits.
#define TL_SMALL_SIZES
#ifndef TL_STRATEGY_STATIC
#define TL_STRATEGY_STATIC
#endif
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include "table_run.h"

void run_small(const table_case *c, table_outcome *out) { table_run(c, out); }

int32_t requantize_small(int32_t sum, int32_t multiplier, int32_t exponent, int32_t zero_point) {
    tl_quantization to = { 1.0f, 0, -128, 127, TL_ROUNDING_EVEN };
    tl_multiplier factor;
    factor.multiplier = multiplier;
    factor.exponent = exponent;
    to.zero_point = zero_point;
    return tl_requantize(sum, factor, &to);
}
