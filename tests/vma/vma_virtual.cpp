// Offsets from the Vulkan Memory Allocator, for a program that opens this library:
// make bench VMA=<path of a clone>
#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <vk_mem_alloc.h>

extern "C" void *vma_virtual_open(uint64_t bytes) {
    VmaVirtualBlockCreateInfo info = {};
    VmaVirtualBlock block;
    info.size = bytes;
    return vmaCreateVirtualBlock(&info, &block) ? nullptr : block;
}

extern "C" void *vma_virtual_add(void *block, uint64_t bytes, uint64_t alignment) {
    VmaVirtualAllocationCreateInfo info = {};
    VmaVirtualAllocation piece;
    info.size = bytes;
    info.alignment = alignment;
    return vmaVirtualAllocate((VmaVirtualBlock)block, &info, &piece, nullptr) ? nullptr : piece;
}

extern "C" void vma_virtual_free(void *block, void *piece) {
    vmaVirtualFree((VmaVirtualBlock)block, (VmaVirtualAllocation)piece);
}

extern "C" void vma_virtual_close(void *block) { vmaDestroyVirtualBlock((VmaVirtualBlock)block); }
