// TL_STRATEGY_STATIC: the companion is private to this file, too, and what is not used gives no warning.
#define TL_STRATEGY_STATIC
#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"

int static_vk(void);
int static_vk(void) { return tl_vk_name_copy_path(TL_VK_COPY_PATH_COMMAND)[0] == 'c'; }
