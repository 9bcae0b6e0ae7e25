// Declarations and implementation below the macros of windows.h: no field, parameter or variable has such a name.
#include "windows_names.h"

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int windows_names(void);
int windows_names(void) { return tl_version() == TL_VERSION; }
