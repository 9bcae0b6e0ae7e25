// TL_VK_OPEN_LOADER: the system's loader is opened where no vkGetInstanceProcAddr is given.
// flags: -ldl
#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#define TL_VK_OPEN_LOADER
#include "../../tl_vk_backend.h"
#include "vk_copy.h"

int main(void) { return copy_on_first_device(NULL); }
