// test_12_tables: runs in a build without simulator.
#define TL_ONLY_TABLES
#ifndef TL_STRATEGY_STATIC
#define TL_STRATEGY_STATIC
#endif
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include "table_run.h"

void run_tables(const table_case *c, table_outcome *out) { table_run(c, out); }
