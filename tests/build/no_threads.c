// TL_NO_THREADS: no built-in lock.
#define TL_NO_THREADS
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int main(void) { return tl_version() != TL_VERSION; }
