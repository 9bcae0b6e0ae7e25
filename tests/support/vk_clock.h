// A modelled device: the driver does the work, and a clock of ours says when a discrete GPU would have done it.
//
//     program  --vkclock_get_instance_proc-->  clock  -->  vk_shim  -->  libvulkan.so.1  -->  driver
//
// The clock follows what is really submitted. Each queue runs its submits one after the other. A submit begins when the host has
// handed it over, its queue is free and its semaphores are signalled; its commands follow each other. A kernel occupies the part of
// the device that computes; a copy on a queue for transfers alone its queue; a copy on any other queue the part that computes, too:
// there copies and kernels add up. The host has a clock of its own, which calls of Vulkan move on, and waits. Only what a program
// hands over moves the clocks, so that times are the same in every run.
//
// One device, one thread. Include vk_shim.c beside it. Fences, binary semaphores and events are not followed.
#ifndef TESTS_VK_CLOCK_H
#define TESTS_VK_CLOCK_H

#include "vk_shim.h"

typedef struct vkclock_config {
    double   link_bytes_per_ns[2];   // between the tiers: from the device, to the device
    double   device_bytes_per_ns;    // of copies and fills inside the device
    uint64_t copy_latency_ns;        // of a copy on a queue for transfers alone
    uint64_t other_copy_latency_ns;  // of a copy on any other queue
    uint64_t kernel_latency_ns;      // from a kernel to the next behind a barrier
    uint64_t begin_ns;               // from the call that submits to the begin on an idle queue
    uint64_t signal_ns;              // from a signal to the begin of what waits for it on another queue
    uint64_t gap_ns;                 // of a queue before a submit that waits for another one, however long ago that was
    uint64_t record_ns, submit_ns, poll_ns;  // of the host: a command recorded, a call that submits, a look
    uint64_t (*kernel_ns)(const uint32_t *push, const uint32_t groups[3]);  // what a dispatch takes
} vkclock_config;

typedef struct vkclock_counts {
    uint64_t now_ns;             // of the host
    uint64_t end_ns;             // when all that was submitted ends
    uint64_t compute_ns;         // the device computed
    uint64_t copy_ns[2];         // copies between the tiers took, by direction
    uint64_t submit_count, wait_count;  // calls of vkQueueSubmit; waits of the host that blocked
    uint64_t longest_ns;         // of the submits to queues that compute, without what they waited for
} vkclock_counts;

// An NVIDIA H200 as measurements have it: 51 and 49 GB/s, 45 us from queue to queue.
void vkclock_default(vkclock_config *config);

// Begin anew. No device may exist.
void vkclock_reset(const vkclock_config *config);

void vkclock_report(vkclock_counts *counts);
uint64_t vkclock_now_ns(void *user);    // of the host: for tl_vk_backend_desc.now_ns

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkclock_get_instance_proc(VkInstance instance, const char *name);

#endif
