// Both headers below the macros of windows.h: no field, parameter or variable has such a name.
#include <vulkan/vulkan_core.h>
#include "windows_names.h"

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"

int vk_windows_names(void);
int vk_windows_names(void) { return tl_version() == TL_VERSION; }
