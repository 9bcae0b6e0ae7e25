// The Vulkan Memory Allocator as an engine has it, and the hooks by which the backend's chunks come from it.
#ifndef TESTS_VMA_HOOKS_H
#define TESTS_VMA_HOOKS_H

#include "../../tl_vk_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

// Make an allocator on a device, which must outlive it; 0 where that fails. heap_bytes limits each heap; 0 = its
// size.
int vma_open(const tl_vk_device *device, uint64_t heap_bytes, tl_vk_memory_hooks *hooks);
void vma_close(tl_vk_memory_hooks *hooks);

// What the allocator has given out and not got back.
typedef struct vma_counts { uint64_t allocations, bytes; } vma_counts;
vma_counts vma_count(const tl_vk_memory_hooks *hooks);

#ifdef __cplusplus
}
#endif
#endif
