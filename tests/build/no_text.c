// TL_NO_TEXT: no printing, parsing and JSON; error text stays.
#define TL_NO_TEXT
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int main(void) { return tl_version() != TL_VERSION; }
