// volk after the backend, which has included Vulkan without prototypes.
// flags: -ldl
#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"

#define VOLK_IMPLEMENTATION
#include <volk.h>
#include "vk_volk.h"

int main(void) { return copy_beside_volk(); }
