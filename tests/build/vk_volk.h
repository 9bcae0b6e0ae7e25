// What the build tests with volk run: an engine that has its functions from volk, and the backend beside it, which has
// them from the same vkGetInstanceProcAddr. Include volk.h and tl_vk_backend.h before, in any order.
#ifndef TESTS_BUILD_VK_VOLK_H
#define TESTS_BUILD_VK_VOLK_H

#include "vk_copy.h"

// The first device, with a queue of its first family: that one computes on every device.
static inline int create_engine(tl_vk_device *device) {
    float priority = 1.0f;
    uint32_t count = 1;
    VkInstanceCreateInfo instance;
    VkDeviceQueueCreateInfo queue;
    VkDeviceCreateInfo info;
    memset(&instance, 0, sizeof instance);
    instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    if (vkCreateInstance(&instance, NULL, &device->instance)) return 0;
    volkLoadInstance(device->instance);
    if (vkEnumeratePhysicalDevices(device->instance, &count, &device->physical) < VK_SUCCESS || !count) return 0;
    memset(&queue, 0, sizeof queue);
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    if (vkCreateDevice(device->physical, &info, NULL, &device->device)) return 0;
    volkLoadDevice(device->device);
    vkGetDeviceQueue(device->device, 0, 0, &device->queue);
    return 1;
}

static inline int copy_beside_volk(void) {
    tl_env env;
    tl_vk_device device;
    int failed;
    memset(&env, 0, sizeof env);
    memset(&device, 0, sizeof device);
    if (volkInitialize() || !create_engine(&device)) {
        fprintf(stderr, "SKIPPED volk: no Vulkan driver (Debian: mesa-vulkan-drivers)\n");
        if (device.instance) vkDestroyInstance(device.instance, NULL);
        return 0;
    }
    device.get_instance_proc = vkGetInstanceProcAddr;
    failed = copy_on(&env, &device);
    vkDestroyDevice(device.device, NULL);
    vkDestroyInstance(device.instance, NULL);
    return failed;
}

#endif
