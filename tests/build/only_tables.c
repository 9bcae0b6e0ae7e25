// TL_ONLY_TABLES: a table is trained; a run without one is refused.
// lang: both
#define TL_ONLY_TABLES
#define TL_MALLOC(user, size) ((void)(user), (void)(size), (void *)0)
#define TL_FREE(user, ptr) ((void)(user), (void)(ptr))
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/tables_only.h"

int main(void) { return tables_fail(); }
