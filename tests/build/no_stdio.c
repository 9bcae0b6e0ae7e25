// TL_NO_STDIO: no function opens a file, <stdio.h> is not included.
#define TL_NO_STDIO
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int main(void) { return tl_version() != TL_VERSION; }
