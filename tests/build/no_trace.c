// TL_NO_TRACE: [13] is dropped.
#define TL_NO_TRACE
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int main(void) { return tl_version() != TL_VERSION; }
