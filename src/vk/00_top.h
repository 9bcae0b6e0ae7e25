/* tl_vk_backend.h - v0.6.0 - the buffers of tl_strategy.h on Vulkan compute
   Joined from the parts in src/vk by `make header`: edit those, this file is overwritten.
   Depends on tl_strategy.h and <vulkan/vulkan_core.h>. MIT or public domain: see the end.

   Implements [10] BACKEND of tl_strategy.h on a VkDevice that you own: tensors are kept, spilled,
   compressed and recomputed in Vulkan memory, on your queue or in your command buffers. The
   checkpoint manager and the executor run on it as they do on the CPU backend.

   SYNOPSIS
       #define TL_STRATEGY_IMPLEMENTATION      // in exactly one .c or .cpp file
       #define TL_VK_BACKEND_IMPLEMENTATION
       #include "tl_vk_backend.h"

       tl_vk_backend_desc desc = {0};
       desc.device.get_instance_proc = vkGetInstanceProcAddr;   // volk's, SDL's, dlsym's
       desc.device.instance = ...;  desc.device.physical = ...;  desc.device.device = ...;
       desc.device.queue = ...;     desc.device.queue_family = ...;
       if (tl_vk_init_backend(&env, &desc, &backend)) puts(env.error.text);
       run_desc.backend = &backend;                              // all else is as on the CPU

   CONTENTS          (every name below is a banner: search for "[2]")
       [1] DEVICE        borrow the engine's device, or make one
       [2] MEMORY        blocks in large buffers, allocators of others, staging
       [3] FRAMES        recording into command buffers of the caller
       [4] KERNELS       compute shaders on ranges, timestamps
       [5] SHADERS       copy, fill and convert on the device

   OPTIONS           (define before the include; none is needed)
       TL_VK_BACKEND_IMPLEMENTATION   in one file, the one with TL_STRATEGY_IMPLEMENTATION or another
       TL_VK_LINKED                   get_instance_proc = 0 in a tl_vk_device_desc means the linked
                                      vkGetInstanceProcAddr
       TL_VK_OPEN_LOADER              the same means that of the system's loader, found with dlopen
                                      or LoadLibrary
       VK_NO_PROTOTYPES               is defined here unless <vulkan/vulkan.h> was included before:
                                      include that or volk.h first if you need the prototypes

   RULES
       Those of tl_strategy.h. No global symbol beginning with vk is defined or needed. One backend
       is used by one thread at a time; several backends may share a device, and a queue where
       lock_queue and unlock_queue are given. Vulkan 1.0 is enough, and SPIR-V 1.0 without 8 or
       16-bit types; timeline semaphores and VK_EXT_memory_budget are used where they were enabled.

       All work runs on one queue in the order in which it was enqueued. A freed range can therefore
       be reused at once: a barrier orders the new work after the old. The host waits for the device
       only where it is asked to (wait, times), for mapped ranges, for staging or memory that work
       still uses, and while batch_count submits are under way. With a transfer queue, copies between
       the tiers are submitted to it at once; later work on their ranges waits for them on the device.
*/
#ifndef TL_VK_BACKEND_H

#include "tl_strategy.h"

#ifdef TL_ONLY_TABLES
#error "tl_vk_backend.h: TL_ONLY_TABLES runs in memory of the host"
#endif

#ifndef VULKAN_CORE_H_
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>
#endif

#ifndef TL_EXPERIMENTAL  // functions whose form may still change
#define TL_EXPERIMENTAL TLDEF
#endif
#endif  // TL_VK_BACKEND_H

