// The implementation of the library alone, in a file that has included the companion's declarations.
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_vk_backend.h"

int vk_core(void);
int vk_core(void) { return tl_version() == TL_VERSION; }
