// Both implementations in one file, without a loader: what is asked of it is an error with a text.
#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"

#ifndef VK_NO_PROTOTYPES
#error "prototypes of Vulkan are declared without a need"
#endif

int main(void) {
    tl_env env;
    tl_vk_device_desc desc;
    tl_vk_device device;
    int32_t count = 1;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    if (tl_vk_init_device(&env, &desc, &device) != TL_ERROR_NOT_FOUND || !env.error.text[0]) return 1;
    return tl_vk_read_devices(&env, &desc, NULL, 0, &count) != TL_ERROR_NOT_FOUND || count;
}
