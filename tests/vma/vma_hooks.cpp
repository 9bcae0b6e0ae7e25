// tl_vk_memory_hooks on the Vulkan Memory Allocator: the two functions on top are all that an engine writes.
#include "vma_hooks.h"

#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#include <vk_mem_alloc.h>

static VkResult allocate(void *user, const VkMemoryRequirements *requirements, VkMemoryPropertyFlags required,
                         VkMemoryPropertyFlags preferred, VkDeviceMemory *memory, VkDeviceSize *offset,
                         uint32_t *type_index, void **mapped, void **cookie) {
    VmaAllocationCreateInfo create = {};
    VmaAllocationInfo info = {};
    VmaAllocation allocation = VK_NULL_HANDLE;
    create.requiredFlags = required;
    create.preferredFlags = preferred;
    if (required & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) create.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT;
    VkResult result = vmaAllocateMemory((VmaAllocator)user, requirements, &create, &allocation, &info);
    *memory = info.deviceMemory;
    *offset = info.offset;
    *type_index = info.memoryType;
    *mapped = info.pMappedData;
    *cookie = allocation;
    return result;
}

static void release(void *user, void *cookie) { vmaFreeMemory((VmaAllocator)user, (VmaAllocation)cookie); }

int vma_open(const tl_vk_device *device, uint64_t heap_bytes, tl_vk_memory_hooks *hooks) {
    VmaVulkanFunctions functions = {};
    VmaAllocatorCreateInfo info = {};
    VkDeviceSize limits[VK_MAX_MEMORY_HEAPS];
    VmaAllocator allocator;
    for (VkDeviceSize &limit : limits) limit = heap_bytes;
    functions.vkGetInstanceProcAddr = device->get_instance_proc;
    functions.vkGetDeviceProcAddr =
        (PFN_vkGetDeviceProcAddr)device->get_instance_proc(device->instance, "vkGetDeviceProcAddr");
    info.instance = device->instance;
    info.physicalDevice = device->physical;
    info.device = device->device;
    info.vulkanApiVersion = device->api_version;
    info.pVulkanFunctions = &functions;
    if (heap_bytes) info.pHeapSizeLimit = limits;
    if (vmaCreateAllocator(&info, &allocator)) return 0;
    hooks->allocate = allocate;
    hooks->release = release;
    hooks->user = allocator;
    return 1;
}

void vma_close(tl_vk_memory_hooks *hooks) { vmaDestroyAllocator((VmaAllocator)hooks->user); }

vma_counts vma_count(const tl_vk_memory_hooks *hooks) {
    VmaTotalStatistics statistics;
    vmaCalculateStatistics((VmaAllocator)hooks->user, &statistics);
    return {statistics.total.statistics.allocationCount, statistics.total.statistics.allocationBytes};
}
