// Both headers below <tgmath.h> and macros of others with the names of members, of functions and of variables.
#include <vulkan/vulkan_core.h>
#include "foreign_macros.h"

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"

int vk_foreign_macros(void);
int vk_foreign_macros(void) { return tl_version() == TL_VERSION; }
