// The declarations alone: no implementation, nothing but types, prototypes and macros.
#include "../../tl_strategy.h"

int only_header(void);
int only_header(void) { return tl_version() == TL_VERSION; }
