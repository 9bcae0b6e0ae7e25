// No planners: plans made elsewhere and online runs remain.
// flags: -Wall
// lang: both
#define TL_NO_PLANNERS
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

int no_planners(void);
int no_planners(void) { return tl_version(); }
