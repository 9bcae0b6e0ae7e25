#ifndef TL_VK_BACKEND_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [1] DEVICE -- borrow the engine's device, or make one
//
//     engine:      instance, device, queue  --borrowed-->  tl_vk_backend_desc.device
//     standalone:  tl_vk_init_device        --made for you-->  the same struct
//
// Vulkan cannot be asked which extensions and features a device was created with, so its owner
// declares them in this struct. The backend uses nothing that is not declared.
// ============================================================================

// A device and what its owner enabled. Everything in it must outlive the backends made from it.
typedef struct tl_vk_device {
    PFN_vkGetInstanceProcAddr get_instance_proc;  // not 0; tl_vk_init_device sets the one that it used
    VkInstance         instance;         // that the device was made from
    VkPhysicalDevice   physical;         // likewise
    VkDevice           device;
    uint32_t           api_version;      // that instance and device were created for; 0 = Vulkan 1.0
    const char *const *extensions;       // [extension_count] enabled on the device
    uint32_t           extension_count;
    int32_t            timeline_enabled; // 1 = the feature timelineSemaphore is enabled; 0 = use fences
    VkQueue            queue;            // of a family with compute; VK_NULL_HANDLE = record mode, see [3]
    uint32_t           queue_family;     // of the queue, or in record mode of the caller's command buffers
    VkQueue            transfer_queue;   // for copies between the tiers, needs timelines and a queue;
                                         // VK_NULL_HANDLE = the queue
    VkQueue            upload_queue;     // for those of them that go to the device tier, where it copies both
                                         // ways at once; VK_NULL_HANDLE = transfer_queue
    uint32_t           transfer_family;  // of transfer_queue and upload_queue
    void             (*lock_queue)(void *user);    // before every use of a queue; both or neither
    void             (*unlock_queue)(void *user);  // after it
    void              *lock_user;        // passed to both
    const VkAllocationCallbacks *callbacks;        // for every vkCreate and vkAllocateMemory; 0 = none
    void              *owned;            // set by tl_vk_init_device, 0 elsewhere
} tl_vk_device;

typedef struct tl_vk_device_desc {
    PFN_vkGetInstanceProcAddr get_instance_proc;  // 0 = see TL_VK_LINKED and TL_VK_OPEN_LOADER
    int32_t  number;             // 1 = the first that tl_vk_read_devices lists; 0 = the first discrete or
                                 // integrated GPU that computes, else the first device that does
    uint32_t api_version;        // 0 = Vulkan 1.1, or what the loader and the device have if that is less
    int32_t  validates;          // 1 = enable VK_LAYER_KHRONOS_validation, TL_ERROR_NOT_FOUND without it
    PFN_vkDebugUtilsMessengerCallbackEXT message;  // gets warnings and errors of layers and drivers, by
                                 // VK_EXT_debug_utils; 0 = they go where the settings of the layer say
    void    *message_user;
    int32_t  enable_transfer;    // 1 = also queues of the first family that transfers and does nothing else,
                                 // not video either: two where it has two, else one, or none
} tl_vk_device_desc;

// One device of the machine.
typedef struct tl_vk_device_info {
    char     name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];  // as the driver says it
    VkPhysicalDeviceType type;   // VK_PHYSICAL_DEVICE_TYPE_CPU: a driver that computes on the host
    uint32_t api_version, driver_version;  // as the driver says them
    int32_t  has_compute;        // 0 = no queue family computes: tl_vk_init_device refuses the device
    uint64_t device_bytes;       // of its largest device-local heap
} tl_vk_device_info;

// List the devices of the machine.
//
//   infos   [capacity] filled from the start; may be NULL where capacity is 0
//   count   number of devices, which may be larger than the capacity
//
// Errors:  TL_ERROR_NOT_FOUND: no loader, no driver, no validation layer; TL_ERROR_UNSUPPORTED: an entry point
//          is missing; TL_ERROR_NO_MEMORY, TL_ERROR_BACKEND. *count is 0 then.
TLDEF tl_result tl_vk_read_devices(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device_info *infos,
                                   int32_t capacity, int32_t *count);

// Make an instance, a device and a compute queue, for programs that have none.
//
//   device   overwritten; release with tl_vk_free_device, after all backends made from it
//
// Errors:  TL_ERROR_NOT_FOUND: no loader, no driver, no such device, no validation layer; TL_ERROR_UNSUPPORTED:
//          the device has no queue that computes, or an entry point is missing; TL_ERROR_NO_MEMORY,
//          TL_ERROR_BACKEND. *device is all zero then.
TLDEF tl_result tl_vk_init_device(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device *device);

// Free a device that tl_vk_init_device made. Any other, and NULL, is left as it is.
//
// Errors:  TL_ERROR_INVALID_ARG: backends made from it are still there, the text tells how many; nothing is
//          freed.
// Threads: one at a time with the making and freeing of backends from it.
TLDEF tl_result tl_vk_free_device(tl_env *env, tl_vk_device *device);

#ifdef __cplusplus
}
#endif
#endif  // TL_VK_BACKEND_H

