// volk before the backend, and its functions in the same file: no name clashes, and they share a device.
// flags: -ldl
#define VOLK_IMPLEMENTATION
#include <volk.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"
#include "vk_volk.h"

int main(void) { return copy_beside_volk(); }
