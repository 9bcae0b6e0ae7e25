// TL_STRATEGY_STATIC: everything is private to this file, and what is not used gives no warning.
#define TL_STRATEGY_STATIC
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int static_impl(void);
int static_impl(void) { return tl_version() == TL_VERSION; }
