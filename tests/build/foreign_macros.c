// Declarations and implementation below <tgmath.h> and macros of others with the names of members, of functions and of variables.
#include "foreign_macros.h"

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int foreign_macros(void);
int foreign_macros(void) { return tl_version() == TL_VERSION; }
