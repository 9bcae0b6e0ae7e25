// TL_SMALL_SIZES: the same, with ranges of 12 bytes, and without the room for texts of errors where there are none.
// lang: both
#define TL_SMALL_SIZES
#define TL_NO_ERROR_TEXT
#define TL_MALLOC(user, size) ((void)(user), (void)(size), (void *)0)
#define TL_FREE(user, ptr) ((void)(user), (void)(ptr))
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/tables_only.h"

int main(void) { return sizeof(tl_range) != 12 || sizeof(tl_error) != 32 || tables_fail(); }
