// An interposer between a device and the driver: it knows nothing of the backend or of plans, and counts the bytes of
// VkDeviceMemory. Include after vk_support.h; open the device with get_instance_proc = count_instance_proc.
#ifndef TESTS_VK_COUNTED_H
#define TESTS_VK_COUNTED_H

enum { COUNTED_MEMORIES = 64 };

static struct {
    PFN_vkGetInstanceProcAddr instance_proc;
    PFN_vkGetDeviceProcAddr   device_proc;
    PFN_vkAllocateMemory      allocate;
    PFN_vkFreeMemory          release;
    VkDeviceMemory memories[COUNTED_MEMORIES];
    VkDeviceSize   sizes[COUNTED_MEMORIES];
    uint64_t bytes, peak_bytes, calls;
} counted;

static VKAPI_ATTR VkResult VKAPI_CALL count_allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                                     const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory) {
    VkResult result = counted.allocate(device, info, callbacks, memory);
    int i = 0;
    counted.calls++;
    if (result) return result;
    while (counted.memories[i]) assert_true(++i < COUNTED_MEMORIES);
    counted.memories[i] = *memory;
    counted.sizes[i] = info->allocationSize;
    counted.bytes += info->allocationSize;
    if (counted.bytes > counted.peak_bytes) counted.peak_bytes = counted.bytes;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL count_free(VkDevice device, VkDeviceMemory memory,
                                             const VkAllocationCallbacks *callbacks) {
    int i;
    for (i = 0; memory && i < COUNTED_MEMORIES; i++) {
        if (counted.memories[i] != memory) continue;
        counted.bytes -= counted.sizes[i];
        counted.memories[i] = VK_NULL_HANDLE;
        break;
    }
    counted.release(device, memory, callbacks);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL count_device_proc(VkDevice device, const char *name) {
    PFN_vkVoidFunction function = counted.device_proc(device, name);
    if (!strcmp(name, "vkAllocateMemory")) {
        counted.allocate = (PFN_vkAllocateMemory)function;
        return (PFN_vkVoidFunction)count_allocate;
    }
    if (!strcmp(name, "vkFreeMemory")) {
        counted.release = (PFN_vkFreeMemory)function;
        return (PFN_vkVoidFunction)count_free;
    }
    return function;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL count_instance_proc(VkInstance instance, const char *name) {
    PFN_vkVoidFunction function = counted.instance_proc(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr")) return function;
    counted.device_proc = (PFN_vkGetDeviceProcAddr)function;
    return (PFN_vkVoidFunction)count_device_proc;
}

// Begin to count. The device is opened next.
static inline void count_start(PFN_vkGetInstanceProcAddr loader) {
    memset(&counted, 0, sizeof counted);
    counted.instance_proc = loader;
}

#endif
