// TL_VK_LINKED: the linked vkGetInstanceProcAddr is used where none is given.
// flags: -lvulkan
#include <vulkan/vulkan.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#define TL_VK_LINKED
#include "../../tl_vk_backend.h"
#include "vk_copy.h"

int main(void) { return copy_on_first_device(NULL); }
