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
