// Shared by all Vulkan tests: an instance and a device under full validation, whose errors and
// warnings are counted; raw commands and buffers for tests that do without the backend.
//
//     static void a_fact(void **state) {
//         vkt_desc desc = {0};
//         vkt v;
//         (void)state;
//         if (!vkt_has_vulkan("a_fact")) skip();     // prints SKIPPED a_fact: ...
//         vkt_open(&desc, &v);                       // ends the program where Vulkan is broken
//         backend_desc.device = v.device; ...
//         vkt_close(&v);                             // validation reports leaks as messages, too
//         assert_int_equal(vkt_messages(&v), 0);
//     }
//
// A test that plants a fault says vkt_expect(&v, "SYNC-HAZARD") before it: such messages are then
// not counted by vkt_messages, but by vkt_expected.
//
// Link with -ldl. Some settings of the layer can only be set by environment variables, so a program that
// opens devices in several threads calls vkt_has_vulkan first.
#ifndef TESTS_VK_SUPPORT_H
#define TESTS_VK_SUPPORT_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tl_vk_backend.h"

int setenv(const char *name, const char *value, int overwrite);  // POSIX; not declared under -std=c99
int unsetenv(const char *name);

#define VKT_LAYER "VK_LAYER_KHRONOS_validation"

// The functions that tests call directly: v.vk.CreateBuffer(v.device.device, ...).
#define VKT_INSTANCE_FUNCTIONS(X) \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(EnumerateDeviceExtensionProperties)      \
    X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceFeatures)                               \
    X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceQueueFamilyProperties)            \
    X(CreateDevice) X(GetDeviceProcAddr)
#define VKT_DEVICE_FUNCTIONS(X) \
    X(DestroyDevice) X(DeviceWaitIdle) X(GetDeviceQueue) X(QueueSubmit) X(QueueWaitIdle)      \
    X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory)       \
    X(AllocateMemory) X(FreeMemory) X(MapMemory) X(UnmapMemory)                               \
    X(FlushMappedMemoryRanges) X(InvalidateMappedMemoryRanges)                                \
    X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(FreeCommandBuffers) \
    X(ResetCommandPool) X(ResetCommandBuffer) X(BeginCommandBuffer) X(EndCommandBuffer)       \
    X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdFillBuffer) X(CmdUpdateBuffer) X(CmdDispatch) \
    X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants)                           \
    X(CmdWriteTimestamp) X(CmdResetQueryPool) X(CreateQueryPool) X(DestroyQueryPool)          \
    X(GetQueryPoolResults)                                                                    \
    X(CreateFence) X(DestroyFence) X(ResetFences) X(GetFenceStatus) X(WaitForFences)          \
    X(CreateSemaphore) X(DestroySemaphore)                                                    \
    X(CreateShaderModule) X(DestroyShaderModule)                                              \
    X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout)                                \
    X(CreatePipelineLayout) X(DestroyPipelineLayout)                                          \
    X(CreateComputePipelines) X(DestroyPipeline)                                              \
    X(CreateDescriptorPool) X(DestroyDescriptorPool) X(ResetDescriptorPool)                   \
    X(AllocateDescriptorSets) X(UpdateDescriptorSets)

#define VKT_MEMBER(name) PFN_vk##name name;
typedef struct vkt_functions {
    VKT_INSTANCE_FUNCTIONS(VKT_MEMBER)
    VKT_DEVICE_FUNCTIONS(VKT_MEMBER)
} vkt_functions;
#undef VKT_MEMBER

typedef struct vkt_desc {
    PFN_vkGetInstanceProcAddr get_instance_proc;  // 0 = that of the system's loader
    uint32_t api_version;        // 0 = Vulkan 1.1; lowered to what loader and device have
    int      disable_validation; // 1 = no layer: for measurements
    int      disable_timeline;   // 1 = not enabled, though the device has it
    int      disable_budget;     // the same for VK_EXT_memory_budget
    int      enable_transfer;    // 1 = a transfer queue of another family, where there is one
} vkt_desc;

// Opened by vkt_open, and must not move until vkt_close: the messenger holds its address.
typedef struct vkt {
    tl_vk_device  device;        // ready for tl_vk_backend_desc.device
    vkt_functions vk;
    VkQueue       queue;         // also where a test clears device.queue for record mode
    uint32_t      transfer_count;  // queues of the family for transfers
    VkPhysicalDeviceProperties       properties;
    VkPhysicalDeviceMemoryProperties memory;
    int           has_validation;
    int           faults;        // errors and warnings that were not expected
    int           expected;      // messages with the id of vkt_expect
    char          expects[96];   // a part of that id; "" = none is expected
    char          last[256];     // the id of the latest fault
    VkDebugUtilsMessengerEXT messenger;
    PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger;
    const char   *extensions[4];
    VkCommandPool   pool;        // for vkt_begin
    VkCommandBuffer commands;
    VkFence         fence;
} vkt;

typedef struct vkt_buffer {
    VkBuffer       buffer;
    VkDeviceMemory memory;
    unsigned char *mapped;       // stays mapped
    uint64_t       bytes;
    int            is_coherent;  // 0 = call vkt_flush after writing and vkt_invalidate before reading
} vkt_buffer;

// For calls that fail only if the machine or the test itself is broken.
static inline void vkt_must(int holds, const char *what) {
    if (holds) return;
    printf("vk_support.h: %s\n", what);
    fflush(stdout);
    exit(1);
}

static inline void vkt_ok(VkResult result, const char *what) {
    char text[160];
    snprintf(text, sizeof text, "%s returned %d", what, (int)result);
    vkt_must(result == VK_SUCCESS, text);
}

// -- messages --

static inline int vkt_is_allowed(const char *id) {
    static const char *const allowed[] = {
        "Loader Message",                              // layers and drivers found, variables seen
        "vkCreateInstance-specialuse-extension-debugging",  // the messenger itself
        "BestPractices-vkAllocateMemory-small-allocation",  // advice against what an arena is meant to be: memory
        "BestPractices-vkBindMemory-small-dedicated-allocation"  // of exactly the bytes of a run, however few
    };
    size_t i;
    for (i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strstr(id, allowed[i])) return 1;
    return 0;
}

static inline VKAPI_ATTR VkBool32 VKAPI_CALL
vkt_on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
               const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    vkt *v = (vkt *)user;
    const char *id = data->pMessageIdName ? data->pMessageIdName : "";
    int is_error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
    (void)types;
    if (v->expects[0] && strstr(id, v->expects)) {
        __atomic_fetch_add(&v->expected, 1, __ATOMIC_RELAXED);
        return VK_FALSE;
    }
    if (vkt_is_allowed(id)) return VK_FALSE;
    __atomic_fetch_add(&v->faults, 1, __ATOMIC_RELAXED);
    snprintf(v->last, sizeof v->last, "%s", id);
    printf("%s %s: %s\n", is_error ? "error" : "warning", id, data->pMessage ? data->pMessage : "");
    fflush(stdout);
    return VK_FALSE;
}

// Errors and warnings of validation so far, without those that were expected.
static inline int vkt_messages(const vkt *v) { return __atomic_load_n(&v->faults, __ATOMIC_RELAXED); }

// From now on messages whose id contains this text are expected; NULL = none.
static inline void vkt_expect(vkt *v, const char *id) {
    v->expected = 0;
    snprintf(v->expects, sizeof v->expects, "%s", id ? id : "");
}

static inline int vkt_expected(const vkt *v) { return __atomic_load_n(&v->expected, __ATOMIC_RELAXED); }

// -- the loader --

// The layer itself leaks a little; leaks of Vulkan objects are found by it, not by the leak detector.
#if defined __has_feature
#if __has_feature(address_sanitizer)
#define VKT_FINDS_LEAKS
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define VKT_FINDS_LEAKS
#endif
#ifdef VKT_FINDS_LEAKS
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libVkLayer_khronos_validation\nleak:libstdc++\n";  // only the layer uses C++
}

// The driver allocates for every group of a dispatch: keep the sanitizer's quarantine of freed memory short.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "quarantine_size_mb=1:thread_local_quarantine_size_kb=16";
}

#endif

// Keep the drivers loaded, and the layer: some can be loaded thirty times only in a process, and the detector of leaks
// names functions of libraries that are there.
static inline void vkt_keep_loaded(PFN_vkGetInstanceProcAddr proc) {
    static VkInstance kept;  // keeps the drivers loaded
    PFN_vkCreateInstance create = proc ? (PFN_vkCreateInstance)proc(VK_NULL_HANDLE, "vkCreateInstance") : 0;
    VkInstanceCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    dlopen("libVkLayer_khronos_validation.so", RTLD_NOW | RTLD_LOCAL);
    if (create) create(&info, NULL, &kept);
}

static inline PFN_vkGetInstanceProcAddr vkt_loader(void) {
    static PFN_vkGetInstanceProcAddr proc;
    void *library, *symbol;
    if (proc) return proc;
    library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
    memcpy(&proc, &symbol, sizeof proc);
    vkt_keep_loaded(proc);
    return proc;
}

// Set the environment of the layer: validate hazards between submits, and read no settings file, because
// ./vk_layer_settings.txt could switch it off unnoticed.
static inline void vkt_set_environment(void) {
    static int is_set;
    if (is_set) return;
    is_set = 1;
    setenv("VK_LAYER_SETTINGS_PATH", "/dev/null", 1);
    setenv("VK_LAYER_ENABLES", "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT", 1);
    unsetenv("VK_LAYER_DISABLES");
}

static inline int vkt_has_layer(PFN_vkGetInstanceProcAddr proc) {
    PFN_vkEnumerateInstanceLayerProperties enumerate = (PFN_vkEnumerateInstanceLayerProperties)
        proc(VK_NULL_HANDLE, "vkEnumerateInstanceLayerProperties");
    VkLayerProperties layers[64];
    uint32_t count = 64, i;
    if (!enumerate || enumerate(&count, layers) < VK_SUCCESS) return 0;
    for (i = 0; i < count; i++)
        if (!strcmp(layers[i].layerName, VKT_LAYER)) return 1;
    return 0;
}

// Whether there is a driver with a device; looked up once. If not, prints SKIPPED and the name of the test.
// If only the validation layer is missing, tests run, and that is printed instead.
static inline int vkt_has_vulkan(const char *test) {
    static int known, has_driver, has_layer;
    if (!known) {
        PFN_vkGetInstanceProcAddr proc = vkt_loader();
        PFN_vkCreateInstance create = proc ? (PFN_vkCreateInstance)proc(VK_NULL_HANDLE, "vkCreateInstance") : 0;
        VkInstanceCreateInfo info;
        VkInstance instance = VK_NULL_HANDLE;
        uint32_t count = 0;
        known = 1;
        vkt_set_environment();
        memset(&info, 0, sizeof info);
        info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
        if (create && create(&info, NULL, &instance) == VK_SUCCESS) {
            PFN_vkEnumeratePhysicalDevices enumerate =
                (PFN_vkEnumeratePhysicalDevices)proc(instance, "vkEnumeratePhysicalDevices");
            has_driver = enumerate(instance, &count, NULL) == VK_SUCCESS && count > 0;
            ((PFN_vkDestroyInstance)proc(instance, "vkDestroyInstance"))(instance, NULL);
            has_layer = vkt_has_layer(proc);
        }
        if (has_driver && !has_layer)
            printf("SKIPPED validation: no " VKT_LAYER " (Debian: vulkan-validationlayers)\n");
    }
    if (!has_driver) printf("SKIPPED %s: no Vulkan driver (Debian: mesa-vulkan-drivers)\n", test);
    fflush(stdout);
    return has_driver;
}

// -- opening and closing --

static inline void vkt_create_instance(const vkt_desc *desc, vkt *v) {
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
        VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT
    };
    static const char *const layers[] = { VKT_LAYER };
    static const char *const extensions[] = { "VK_EXT_debug_utils", "VK_EXT_validation_features" };
    PFN_vkGetInstanceProcAddr proc = v->device.get_instance_proc;
    PFN_vkEnumerateInstanceVersion read_version =
        (PFN_vkEnumerateInstanceVersion)proc(VK_NULL_HANDLE, "vkEnumerateInstanceVersion");
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)proc(VK_NULL_HANDLE, "vkCreateInstance");
    uint32_t version = VK_API_VERSION_1_0;
    VkDebugUtilsMessengerCreateInfoEXT messenger;
    VkValidationFeaturesEXT features;
    VkApplicationInfo application;
    VkInstanceCreateInfo info;
    if (read_version) vkt_ok(read_version(&version), "vkEnumerateInstanceVersion");
    if (version < v->device.api_version) v->device.api_version = version;
    memset(&messenger, 0, sizeof messenger);
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                                VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                            VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                            VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messenger.pfnUserCallback = vkt_on_message;
    messenger.pUserData = v;
    memset(&features, 0, sizeof features);
    features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    features.pNext = &messenger;
    features.enabledValidationFeatureCount = 2;
    features.pEnabledValidationFeatures = enables;
    memset(&application, 0, sizeof application);
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = v->device.api_version;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    v->has_validation = !desc->disable_validation && vkt_has_layer(proc);
    if (v->has_validation) {
        info.pNext = &features;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = layers;
        info.enabledExtensionCount = 2;
        info.ppEnabledExtensionNames = extensions;
    }
    vkt_ok(create(&info, NULL, &v->device.instance), "vkCreateInstance");
    if (v->has_validation) {
        PFN_vkCreateDebugUtilsMessengerEXT create_messenger = (PFN_vkCreateDebugUtilsMessengerEXT)
            proc(v->device.instance, "vkCreateDebugUtilsMessengerEXT");
        v->destroy_messenger = (PFN_vkDestroyDebugUtilsMessengerEXT)
            proc(v->device.instance, "vkDestroyDebugUtilsMessengerEXT");
        vkt_must(create_messenger && v->destroy_messenger, "the loader lacks VK_EXT_debug_utils");
        vkt_ok(create_messenger(v->device.instance, &messenger, NULL, &v->messenger),
               "vkCreateDebugUtilsMessengerEXT");
    }
}

// The first device with a queue that computes, its queue, and another family for transfers.
static inline void vkt_pick_device(const vkt_desc *desc, vkt *v, uint32_t *family_count) {
    VkPhysicalDevice physicals[16];
    VkQueueFamilyProperties families[16];
    uint32_t count = 16, i, f;
    int found = 0;
    vkt_must(v->vk.EnumeratePhysicalDevices(v->device.instance, &count, physicals) >= VK_SUCCESS,
             "vkEnumeratePhysicalDevices failed");
    for (i = 0; i < count && !found; i++) {
        v->device.physical = physicals[i];
        v->vk.GetPhysicalDeviceQueueFamilyProperties(physicals[i], family_count, NULL);
        if (*family_count > 16) *family_count = 16;
        v->vk.GetPhysicalDeviceQueueFamilyProperties(physicals[i], family_count, families);
        for (f = 0; f < *family_count && !found; f++)
            if (families[f].queueFlags & VK_QUEUE_COMPUTE_BIT) { v->device.queue_family = f; found = 1; }
    }
    vkt_must(found, "no device has a queue that computes");
    v->device.transfer_family = v->device.queue_family;
    for (f = *family_count; f-- > 0 && desc->enable_transfer;)
        if (f != v->device.queue_family && (families[f].queueFlags & VK_QUEUE_TRANSFER_BIT) &&
            !(families[f].queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT | 0x60u))) {
            v->device.transfer_family = f;
            v->transfer_count = families[f].queueCount;
        }
    v->vk.GetPhysicalDeviceProperties(v->device.physical, &v->properties);
    v->vk.GetPhysicalDeviceMemoryProperties(v->device.physical, &v->memory);
    if (v->properties.apiVersion < v->device.api_version) v->device.api_version = v->properties.apiVersion;
    v->device.api_version = VK_MAKE_API_VERSION(0, VK_API_VERSION_MAJOR(v->device.api_version),
                                                VK_API_VERSION_MINOR(v->device.api_version), 0);
}

static inline int vkt_has_extension(const vkt *v, const char *name) {
    VkExtensionProperties *all;
    uint32_t count = 0, i;
    int found = 0;
    if (v->vk.EnumerateDeviceExtensionProperties(v->device.physical, NULL, &count, NULL) || !count) return 0;
    all = (VkExtensionProperties *)calloc(count, sizeof *all);
    vkt_must(all != NULL, "out of memory");
    if (v->vk.EnumerateDeviceExtensionProperties(v->device.physical, NULL, &count, all) >= VK_SUCCESS)
        for (i = 0; i < count; i++) found |= !strcmp(all[i].extensionName, name);
    free(all);
    return found;
}

// Whether the device has timeline semaphores, in core or as an extension.
static inline int vkt_has_timeline(const vkt *v) {
    PFN_vkGetPhysicalDeviceFeatures2 read_features = (PFN_vkGetPhysicalDeviceFeatures2)
        v->device.get_instance_proc(v->device.instance, "vkGetPhysicalDeviceFeatures2");
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceFeatures2 features;
    if (v->device.api_version < VK_API_VERSION_1_1 || !read_features) return 0;
    if (v->device.api_version < VK_API_VERSION_1_2 && !vkt_has_extension(v, "VK_KHR_timeline_semaphore"))
        return 0;
    memset(&timeline, 0, sizeof timeline);
    timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    memset(&features, 0, sizeof features);
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &timeline;
    read_features(v->device.physical, &features);
    return timeline.timelineSemaphore != 0;
}

static inline void vkt_create_device(const vkt_desc *desc, vkt *v) {
    static const float priorities[2] = { 1.0f, 1.0f };
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceFeatures features;
    VkDeviceQueueCreateInfo queues[2];
    VkDeviceCreateInfo info;
    uint32_t i, family_count;
    vkt_pick_device(desc, v, &family_count);
    v->vk.GetPhysicalDeviceFeatures(v->device.physical, &features);  // best practices want it queried
    memset(queues, 0, sizeof queues);
    for (i = 0; i < 2; i++) {
        queues[i].sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
        queues[i].queueFamilyIndex = i ? v->device.transfer_family : v->device.queue_family;
        queues[i].queueCount = 1;
        queues[i].pQueuePriorities = priorities;
    }
    memset(&timeline, 0, sizeof timeline);
    timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    timeline.timelineSemaphore = VK_TRUE;
    v->device.extensions = v->extensions;
    v->device.timeline_enabled = !desc->disable_timeline && vkt_has_timeline(v);
    if (v->device.timeline_enabled && v->device.api_version < VK_API_VERSION_1_2)
        v->extensions[v->device.extension_count++] = "VK_KHR_timeline_semaphore";
    if (!desc->disable_budget && v->device.api_version >= VK_API_VERSION_1_1 &&
        vkt_has_extension(v, "VK_EXT_memory_budget"))
        v->extensions[v->device.extension_count++] = "VK_EXT_memory_budget";
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = v->device.timeline_enabled ? &timeline : NULL;
    queues[1].queueCount = v->transfer_count < 2 ? 1 : 2;
    info.queueCreateInfoCount = v->device.transfer_family != v->device.queue_family ? 2 : 1;
    info.pQueueCreateInfos = queues;
    info.enabledExtensionCount = v->device.extension_count;
    info.ppEnabledExtensionNames = v->extensions;
    vkt_ok(v->vk.CreateDevice(v->device.physical, &info, NULL, &v->device.device), "vkCreateDevice");
}

// Open everything; ends the program if that fails, because vkt_has_vulkan said that it can be done.
static inline void vkt_open(const vkt_desc *desc, vkt *v) {
    VkCommandPoolCreateInfo pool;
    VkCommandBufferAllocateInfo buffers;
    VkFenceCreateInfo fence;
    memset(v, 0, sizeof *v);
    vkt_set_environment();
    v->device.get_instance_proc = desc->get_instance_proc ? desc->get_instance_proc : vkt_loader();
    v->device.api_version = desc->api_version ? desc->api_version : VK_API_VERSION_1_1;
    vkt_must(v->device.get_instance_proc != NULL, "there is no Vulkan loader");
    vkt_create_instance(desc, v);
#define VKT_LOAD(name) \
    v->vk.name = (PFN_vk##name)v->device.get_instance_proc(v->device.instance, "vk" #name); \
    vkt_must(v->vk.name != NULL, "vk" #name " is missing");
    VKT_INSTANCE_FUNCTIONS(VKT_LOAD)
#undef VKT_LOAD
    vkt_create_device(desc, v);
#define VKT_LOAD(name) \
    v->vk.name = (PFN_vk##name)v->vk.GetDeviceProcAddr(v->device.device, "vk" #name); \
    vkt_must(v->vk.name != NULL, "vk" #name " is missing");
    VKT_DEVICE_FUNCTIONS(VKT_LOAD)
#undef VKT_LOAD
    v->vk.GetDeviceQueue(v->device.device, v->device.queue_family, 0, &v->queue);
    v->device.queue = v->queue;
    if (v->device.transfer_family != v->device.queue_family)
        v->vk.GetDeviceQueue(v->device.device, v->device.transfer_family, 0, &v->device.transfer_queue);
    if (v->transfer_count > 1)
        v->vk.GetDeviceQueue(v->device.device, v->device.transfer_family, 1, &v->device.upload_queue);
    memset(&pool, 0, sizeof pool);
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.queueFamilyIndex = v->device.queue_family;
    vkt_ok(v->vk.CreateCommandPool(v->device.device, &pool, NULL, &v->pool), "vkCreateCommandPool");
    memset(&buffers, 0, sizeof buffers);
    buffers.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    buffers.commandPool = v->pool;
    buffers.commandBufferCount = 1;
    vkt_ok(v->vk.AllocateCommandBuffers(v->device.device, &buffers, &v->commands),
           "vkAllocateCommandBuffers");
    memset(&fence, 0, sizeof fence);
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    vkt_ok(v->vk.CreateFence(v->device.device, &fence, NULL, &v->fence), "vkCreateFence");
}

// Free everything; what vkt_messages counts stays readable.
static inline void vkt_close(vkt *v) {
    if (v->device.device) {
        v->vk.DeviceWaitIdle(v->device.device);
        v->vk.DestroyFence(v->device.device, v->fence, NULL);
        v->vk.DestroyCommandPool(v->device.device, v->pool, NULL);
        v->vk.DestroyDevice(v->device.device, NULL);
    }
    if (v->messenger) v->destroy_messenger(v->device.instance, v->messenger, NULL);
    if (v->device.instance) v->vk.DestroyInstance(v->device.instance, NULL);
    v->device.device = VK_NULL_HANDLE;
    v->device.instance = VK_NULL_HANDLE;
    v->messenger = VK_NULL_HANDLE;
}

// -- raw commands: one command buffer, submitted and waited for --

static inline VkCommandBuffer vkt_begin(vkt *v) {
    VkCommandBufferBeginInfo begin;
    vkt_ok(v->vk.ResetCommandPool(v->device.device, v->pool, 0), "vkResetCommandPool");
    memset(&begin, 0, sizeof begin);
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    vkt_ok(v->vk.BeginCommandBuffer(v->commands, &begin), "vkBeginCommandBuffer");
    return v->commands;
}

// Submit a command buffer that has ended; signals the fence where there is one.
static inline void vkt_submit(vkt *v, VkCommandBuffer commands, VkFence fence) {
    VkSubmitInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    vkt_ok(v->vk.QueueSubmit(v->queue, 1, &info, fence), "vkQueueSubmit");
}

// End what vkt_begin began, submit it and wait. What it wrote is visible to the host.
static inline void vkt_submit_wait(vkt *v) {
    VkMemoryBarrier barrier;
    memset(&barrier, 0, sizeof barrier);
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    v->vk.CmdPipelineBarrier(v->commands,
                             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                             VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    vkt_ok(v->vk.EndCommandBuffer(v->commands), "vkEndCommandBuffer");
    vkt_submit(v, v->commands, v->fence);
    vkt_ok(v->vk.WaitForFences(v->device.device, 1, &v->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    vkt_ok(v->vk.ResetFences(v->device.device, 1, &v->fence), "vkResetFences");
}

// The first memory type among bits that has all these properties, or UINT32_MAX.
static inline uint32_t vkt_find_memory(const vkt *v, uint32_t bits, VkMemoryPropertyFlags flags) {
    uint32_t i;
    for (i = 0; i < v->memory.memoryTypeCount; i++)
        if ((bits >> i & 1u) && (v->memory.memoryTypes[i].propertyFlags & flags) == flags) return i;
    return UINT32_MAX;
}

// A buffer for storage and transfers that the host sees. It has memory of its own, of 1 MiB at
// least: less is something that best practices warn about.
static inline void vkt_make_buffer(vkt *v, uint64_t bytes, vkt_buffer *made) {
    VkBufferCreateInfo info;
    VkMemoryRequirements needs;
    VkMemoryAllocateInfo memory;
    VkMemoryPropertyFlags flags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    void *mapped = NULL;
    memset(made, 0, sizeof *made);
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    vkt_ok(v->vk.CreateBuffer(v->device.device, &info, NULL, &made->buffer), "vkCreateBuffer");
    v->vk.GetBufferMemoryRequirements(v->device.device, made->buffer, &needs);
    memset(&memory, 0, sizeof memory);
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory.allocationSize = needs.size < 1 << 20 ? 1 << 20 : needs.size;
    memory.memoryTypeIndex = vkt_find_memory(v, needs.memoryTypeBits,
                                             flags | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    made->is_coherent = memory.memoryTypeIndex != UINT32_MAX;
    if (!made->is_coherent) memory.memoryTypeIndex = vkt_find_memory(v, needs.memoryTypeBits, flags);
    vkt_must(memory.memoryTypeIndex != UINT32_MAX, "no memory is host-visible");
    vkt_ok(v->vk.AllocateMemory(v->device.device, &memory, NULL, &made->memory), "vkAllocateMemory");
    vkt_ok(v->vk.BindBufferMemory(v->device.device, made->buffer, made->memory, 0), "vkBindBufferMemory");
    vkt_ok(v->vk.MapMemory(v->device.device, made->memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
    made->mapped = (unsigned char *)mapped;
    made->bytes = bytes;
}

static inline VkMappedMemoryRange vkt_whole(const vkt_buffer *buffer) {
    VkMappedMemoryRange range;
    memset(&range, 0, sizeof range);
    range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
    range.memory = buffer->memory;
    range.size = VK_WHOLE_SIZE;
    return range;
}

static inline void vkt_flush(vkt *v, const vkt_buffer *buffer) {
    VkMappedMemoryRange range = vkt_whole(buffer);
    if (!buffer->is_coherent)
        vkt_ok(v->vk.FlushMappedMemoryRanges(v->device.device, 1, &range), "vkFlushMappedMemoryRanges");
}

static inline void vkt_invalidate(vkt *v, const vkt_buffer *buffer) {
    VkMappedMemoryRange range = vkt_whole(buffer);
    if (!buffer->is_coherent)
        vkt_ok(v->vk.InvalidateMappedMemoryRanges(v->device.device, 1, &range),
               "vkInvalidateMappedMemoryRanges");
}

static inline void vkt_free_buffer(vkt *v, vkt_buffer *buffer) {
    v->vk.DestroyBuffer(v->device.device, buffer->buffer, NULL);
    v->vk.FreeMemory(v->device.device, buffer->memory, NULL);
    memset(buffer, 0, sizeof *buffer);
}

// -- raw kernels --

typedef struct vkt_kernel {
    VkShaderModule        module;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout      layout;
    VkPipeline            pipeline;
    VkDescriptorPool      pool;
    VkDescriptorSet       set;   // one: a kernel is recorded once per submit
    uint32_t              buffer_count, push_bytes;
} vkt_kernel;

static inline void vkt_make_layouts(vkt *v, vkt_kernel *kernel) {
    VkDescriptorSetLayoutBinding bindings[8];
    VkDescriptorSetLayoutCreateInfo set;
    VkPushConstantRange push;
    VkPipelineLayoutCreateInfo layout;
    uint32_t i;
    vkt_must(kernel->buffer_count <= 8, "a kernel of vk_support.h has at most 8 buffers");
    memset(bindings, 0, sizeof bindings);
    for (i = 0; i < kernel->buffer_count; i++) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    memset(&set, 0, sizeof set);
    set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set.bindingCount = kernel->buffer_count;
    set.pBindings = bindings;
    vkt_ok(v->vk.CreateDescriptorSetLayout(v->device.device, &set, NULL, &kernel->set_layout),
           "vkCreateDescriptorSetLayout");
    push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    push.offset = 0;
    push.size = kernel->push_bytes;
    memset(&layout, 0, sizeof layout);
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &kernel->set_layout;
    layout.pushConstantRangeCount = kernel->push_bytes ? 1 : 0;
    layout.pPushConstantRanges = &push;
    vkt_ok(v->vk.CreatePipelineLayout(v->device.device, &layout, NULL, &kernel->layout),
           "vkCreatePipelineLayout");
}

static inline void vkt_make_set(vkt *v, vkt_kernel *kernel) {
    VkDescriptorPoolSize size;
    VkDescriptorPoolCreateInfo pool;
    VkDescriptorSetAllocateInfo set;
    size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    size.descriptorCount = kernel->buffer_count;
    memset(&pool, 0, sizeof pool);
    pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool.maxSets = 1;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    vkt_ok(v->vk.CreateDescriptorPool(v->device.device, &pool, NULL, &kernel->pool),
           "vkCreateDescriptorPool");
    memset(&set, 0, sizeof set);
    set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    set.descriptorPool = kernel->pool;
    set.descriptorSetCount = 1;
    set.pSetLayouts = &kernel->set_layout;
    vkt_ok(v->vk.AllocateDescriptorSets(v->device.device, &set, &kernel->set), "vkAllocateDescriptorSets");
}

// A compute pipeline whose specialisation constant 0, the workgroup size, has this value.
static inline void vkt_make_kernel(vkt *v, const uint32_t *words, size_t bytes, uint32_t buffer_count,
                                   uint32_t push_bytes, uint32_t workgroup_size, vkt_kernel *kernel) {
    VkSpecializationMapEntry entry;
    VkSpecializationInfo constants;
    VkShaderModuleCreateInfo module;
    VkComputePipelineCreateInfo pipeline;
    memset(kernel, 0, sizeof *kernel);
    kernel->buffer_count = buffer_count;
    kernel->push_bytes = push_bytes;
    vkt_make_layouts(v, kernel);
    vkt_make_set(v, kernel);
    memset(&module, 0, sizeof module);
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = bytes;
    module.pCode = words;
    vkt_ok(v->vk.CreateShaderModule(v->device.device, &module, NULL, &kernel->module),
           "vkCreateShaderModule");
    entry.constantID = 0;
    entry.offset = 0;
    entry.size = 4;
    constants.mapEntryCount = 1;
    constants.pMapEntries = &entry;
    constants.dataSize = 4;
    constants.pData = &workgroup_size;
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = kernel->module;
    pipeline.stage.pName = "main";
    pipeline.stage.pSpecializationInfo = &constants;
    pipeline.layout = kernel->layout;
    vkt_ok(v->vk.CreateComputePipelines(v->device.device, VK_NULL_HANDLE, 1, &pipeline, NULL,
                                        &kernel->pipeline), "vkCreateComputePipelines");
}

static inline void vkt_free_kernel(vkt *v, vkt_kernel *kernel) {
    VkDevice device = v->device.device;
    v->vk.DestroyPipeline(device, kernel->pipeline, NULL);
    v->vk.DestroyShaderModule(device, kernel->module, NULL);
    v->vk.DestroyDescriptorPool(device, kernel->pool, NULL);
    v->vk.DestroyPipelineLayout(device, kernel->layout, NULL);
    v->vk.DestroyDescriptorSetLayout(device, kernel->set_layout, NULL);
    memset(kernel, 0, sizeof *kernel);
}

// Bind parts of buffers. Not while a submit that uses the kernel is under way.
static inline void vkt_bind(vkt *v, vkt_kernel *kernel, const VkDescriptorBufferInfo *parts) {
    VkWriteDescriptorSet write;
    memset(&write, 0, sizeof write);
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = kernel->set;
    write.descriptorCount = kernel->buffer_count;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = parts;
    v->vk.UpdateDescriptorSets(v->device.device, 1, &write, 0, NULL);
}

static inline void vkt_dispatch(vkt *v, VkCommandBuffer commands, const vkt_kernel *kernel, const void *push,
                                uint32_t groups_x, uint32_t groups_y) {
    v->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
    v->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, 1,
                                &kernel->set, 0, NULL);
    if (kernel->push_bytes)
        v->vk.CmdPushConstants(commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->push_bytes,
                               push);
    v->vk.CmdDispatch(commands, groups_x, groups_y, 1);
}

#endif
