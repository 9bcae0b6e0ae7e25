#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [1] DEVICE (implementation)
// ============================================================================

// Loads the entry points that the backend uses, explains VkResults, and makes an instance, a device and
// its queues for programs that have none.

#define TLI_VK_FAMILIES 32  // queue families that are considered

// The entry points that every backend needs. The lists make the table of functions and what loads it; those
// that some backends do without stand in the table alone.
#define TLI_VK_INSTANCE_CALLS(X) \
    X(vkGetDeviceProcAddr) X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceMemoryProperties) \
    X(vkGetPhysicalDeviceQueueFamilyProperties)
#define TLI_VK_DEVICE_CALLS(X) \
    X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory) X(vkUnmapMemory) X(vkFlushMappedMemoryRanges) \
    X(vkInvalidateMappedMemoryRanges) X(vkCreateBuffer) X(vkDestroyBuffer) \
    X(vkGetBufferMemoryRequirements) X(vkBindBufferMemory) X(vkCreateCommandPool) \
    X(vkDestroyCommandPool) X(vkResetCommandPool) X(vkAllocateCommandBuffers) \
    X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkCmdPipelineBarrier) X(vkCmdCopyBuffer) \
    X(vkCmdFillBuffer) X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets) X(vkCmdPushConstants) \
    X(vkCmdDispatch) X(vkCmdWriteTimestamp) X(vkCmdResetQueryPool) X(vkCreateShaderModule) \
    X(vkDestroyShaderModule) X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout) \
    X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout) X(vkCreateComputePipelines) \
    X(vkDestroyPipeline) X(vkCreateDescriptorPool) X(vkDestroyDescriptorPool) \
    X(vkResetDescriptorPool) X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets) X(vkQueueSubmit) \
    X(vkCreateFence) X(vkDestroyFence) X(vkResetFences) X(vkGetFenceStatus) X(vkWaitForFences) \
    X(vkCreateSemaphore) X(vkDestroySemaphore) X(vkCreateQueryPool) X(vkDestroyQueryPool) \
    X(vkGetQueryPoolResults)

#define TLI_VK_MEMBER(name) PFN_##name name;
typedef struct tli_vk_calls {
    TLI_VK_INSTANCE_CALLS(TLI_VK_MEMBER)
    TLI_VK_DEVICE_CALLS(TLI_VK_MEMBER)
    PFN_vkGetPhysicalDeviceProperties2 vkGetPhysicalDeviceProperties2;              // NULL if missing
    PFN_vkGetPhysicalDeviceMemoryProperties2 vkGetPhysicalDeviceMemoryProperties2;  // NULL if missing
    PFN_vkGetSemaphoreCounterValue vkGetSemaphoreCounterValue;                      // NULL without timelines
    PFN_vkWaitSemaphores vkWaitSemaphores;                                          // NULL without timelines
} tli_vk_calls;
#undef TLI_VK_MEMBER

#define TLI_VK_RESULTS(X) \
    X(VK_NOT_READY, "not ready") X(VK_TIMEOUT, "timeout") X(VK_INCOMPLETE, "incomplete") \
    X(VK_ERROR_OUT_OF_HOST_MEMORY, "out of host memory") \
    X(VK_ERROR_OUT_OF_DEVICE_MEMORY, "out of device memory") \
    X(VK_ERROR_INITIALIZATION_FAILED, "initialization failed") X(VK_ERROR_DEVICE_LOST, "device lost") \
    X(VK_ERROR_MEMORY_MAP_FAILED, "memory map failed") X(VK_ERROR_LAYER_NOT_PRESENT, "layer not present") \
    X(VK_ERROR_EXTENSION_NOT_PRESENT, "extension not present") \
    X(VK_ERROR_FEATURE_NOT_PRESENT, "feature not present") \
    X(VK_ERROR_INCOMPATIBLE_DRIVER, "incompatible driver") \
    X(VK_ERROR_TOO_MANY_OBJECTS, "too many objects") X(VK_ERROR_FRAGMENTED_POOL, "fragmented pool") \
    X(VK_ERROR_OUT_OF_POOL_MEMORY, "out of pool memory")

static const char *tli_vk_explain(VkResult result) {
#define TLI_VK_EXPLAIN(id, text) if (result == id) return text;
    TLI_VK_RESULTS(TLI_VK_EXPLAIN)
#undef TLI_VK_EXPLAIN
    return "failed";
}

static tl_result tli_vk_translate(VkResult result) {
    switch ((int)result) {  // values of extensions are not in the enum
    case VK_SUCCESS: return TL_OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_OUT_OF_POOL_MEMORY: return TL_ERROR_NO_MEMORY;
    case VK_ERROR_DEVICE_LOST: return TL_ERROR_DEVICE_LOST;
    default: return TL_ERROR_BACKEND;
    }
}

// Record an error text of several parts. One that is too long is cut.
static tl_result tli_vk_fail_parts(tl_env *env, tl_result code, const char *function, const char *const *parts,
                                   size_t count) {
    char text[192];
    size_t length = 0, i;
    for (i = 0; i < count; i++) {
        size_t part = strlen(parts[i]);
        if (part > sizeof text - 1 - length) part = sizeof text - 1 - length;
        memcpy(text + length, parts[i], part);
        length += part;
    }
    text[length] = 0;
    return tl_record_error(env, code, function, text);
}

// Write a number to the end of 24 characters, and return where it begins.
static const char *tli_vk_print_u64(uint64_t number, char digits[24]) {
    char *digit = &digits[23];
    *digit = 0;
    do *--digit = (char)('0' + number % 10); while ((number /= 10) != 0);
    return digit;
}

// Record an error text such as "tl_vk_init_device: vkCreateDevice: out of host memory".
static tl_result tli_vk_fail_call(tl_env *env, const char *function, const char *call, VkResult result) {
    const char *parts[3];
    parts[0] = call;
    parts[1] = ": ";
    parts[2] = tli_vk_explain(result);
    return tli_vk_fail_parts(env, tli_vk_translate(result), function, parts, 3);
}

// Store a function of the loader in a pointer to a function of another type: compilers warn of the cast.
static void tli_vk_set_call(void *member, PFN_vkVoidFunction function) {
    memcpy(member, &function, sizeof function);
}

typedef struct tli_vk_entry { const char *name; size_t offset; } tli_vk_entry;

#define TLI_VK_ENTRY(name) { #name, offsetof(tli_vk_calls, name) },
static const tli_vk_entry tli_vk_instance_entries[] = { TLI_VK_INSTANCE_CALLS(TLI_VK_ENTRY) };
static const tli_vk_entry tli_vk_device_entries[] = { TLI_VK_DEVICE_CALLS(TLI_VK_ENTRY) };
#undef TLI_VK_ENTRY
#undef TLI_VK_INSTANCE_CALLS
#undef TLI_VK_DEVICE_CALLS

static tl_result tli_vk_fail_entry(tl_env *env, const char *function, const char *entry) {
    char text[96] = "entry point missing: ";
    size_t at = strlen(text), length = strlen(entry);
    if (length > sizeof text - 1 - at) length = sizeof text - 1 - at;
    memcpy(text + at, entry, length);
    text[at + length] = 0;
    (void)tl_record_error(env, TL_ERROR_UNSUPPORTED, function, text);
    return TL_ERROR_UNSUPPORTED;
}

// "<what>: still in use (<users>: <count>): free those first"
static tl_result tli_vk_fail_users(tl_env *env, const char *function, const char *what, int32_t count,
                                   const char *users) {
    const char *parts[6];
    char digits[24];
    parts[0] = what;
    parts[1] = ": still in use (";
    parts[2] = users;
    parts[3] = ": ";
    parts[4] = tli_vk_print_u64((uint64_t)count, digits);
    parts[5] = "): free those first";
    return tli_vk_fail_parts(env, TL_ERROR_INVALID_ARG, function, parts, 6);
}

static int tli_vk_has_extension(const tl_vk_device *device, const char *name) {
    uint32_t i;
    for (i = 0; i < device->extension_count; i++)
        if (strcmp(device->extensions[i], name) == 0) return 1;
    return 0;
}

static int tli_vk_is_at_least(const tl_vk_device *device, uint32_t version) {
    return device->api_version >= version;
}

static tl_result tli_vk_load(tl_env *env, const tl_vk_device *device, tli_vk_calls *calls) {
    const char *function = "tl_vk_init_backend";
    PFN_vkGetInstanceProcAddr get = device->get_instance_proc;
    int timelines_in_core = tli_vk_is_at_least(device, VK_API_VERSION_1_2);
    const char *counter = timelines_in_core ? "vkGetSemaphoreCounterValue" : "vkGetSemaphoreCounterValueKHR";
    const char *wait = timelines_in_core ? "vkWaitSemaphores" : "vkWaitSemaphoresKHR";
    size_t i;
    for (i = 0; i < sizeof tli_vk_instance_entries / sizeof *tli_vk_instance_entries; i++) {
        const tli_vk_entry *entry = &tli_vk_instance_entries[i];
        PFN_vkVoidFunction found = (get)(device->instance, entry->name);
        if (!found) return tli_vk_fail_entry(env, function, entry->name);
        tli_vk_set_call((char *)calls + entry->offset, found);
    }
    for (i = 0; i < sizeof tli_vk_device_entries / sizeof *tli_vk_device_entries; i++) {
        const tli_vk_entry *entry = &tli_vk_device_entries[i];
        PFN_vkVoidFunction found = (calls->vkGetDeviceProcAddr)(device->device, entry->name);
        if (!found) return tli_vk_fail_entry(env, function, entry->name);
        tli_vk_set_call((char *)calls + entry->offset, found);
    }
    if (tli_vk_is_at_least(device, VK_API_VERSION_1_1)) {
        tli_vk_set_call(&calls->vkGetPhysicalDeviceProperties2,
                        (get)(device->instance, "vkGetPhysicalDeviceProperties2"));
        tli_vk_set_call(&calls->vkGetPhysicalDeviceMemoryProperties2,
                        (get)(device->instance, "vkGetPhysicalDeviceMemoryProperties2"));
    }
    if (!device->timeline_enabled) return TL_OK;
    tli_vk_set_call(&calls->vkGetSemaphoreCounterValue, (calls->vkGetDeviceProcAddr)(device->device, counter));
    tli_vk_set_call(&calls->vkWaitSemaphores, (calls->vkGetDeviceProcAddr)(device->device, wait));
    if (!calls->vkGetSemaphoreCounterValue) return tli_vk_fail_entry(env, function, counter);
    return calls->vkWaitSemaphores ? TL_OK : tli_vk_fail_entry(env, function, wait);
}

// -- the standalone device --

typedef struct tli_vk_owned {
    void *library;  // the loader, if it was opened here
    VkDebugUtilsMessengerEXT messenger;
    PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger;
    PFN_vkDestroyDevice destroy_device;
    PFN_vkDestroyInstance destroy_instance;
    const char *extensions[4];
    int32_t backend_count;  // made from the device and not freed
} tli_vk_owned;

static void tli_vk_close_loader(void *library) {
#if defined(TL_VK_OPEN_LOADER) && defined(_WIN32)
    if (library) FreeLibrary((HMODULE)library);
#elif defined(TL_VK_OPEN_LOADER)
    if (library) dlclose(library);
#else
    (void)library;
#endif
}

// vkGetInstanceProcAddr: as given, or what 0 means in this build; NULL where there is no loader.
static PFN_vkGetInstanceProcAddr tli_vk_find_loader(PFN_vkGetInstanceProcAddr given, void **library) {
    *library = NULL;
    if (given) return given;
#if defined(TL_VK_LINKED)
    return vkGetInstanceProcAddr;
#elif defined(TL_VK_OPEN_LOADER)
    {
        PFN_vkGetInstanceProcAddr get = NULL;
#ifdef _WIN32
        FARPROC symbol;
        HMODULE module = LoadLibraryA("vulkan-1.dll");
        *library = (void *)module;
        symbol = module ? GetProcAddress(module, "vkGetInstanceProcAddr") : NULL;
#else
        void *symbol;
        *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!*library) *library = dlopen("libvulkan.dylib", RTLD_NOW | RTLD_LOCAL);
        symbol = *library ? dlsym(*library, "vkGetInstanceProcAddr") : NULL;
#endif
        memcpy(&get, &symbol, sizeof get);
        return get;
    }
#else
    return NULL;
#endif
}

// The functions and objects that are needed until there is a device.
typedef struct tli_vk_loader {
    tl_env *env;
    const char *function;
    const tl_vk_device_desc *desc;
    void *library;
    PFN_vkGetInstanceProcAddr get;
    VkInstance instance;
    uint32_t api_version;
    PFN_vkDestroyInstance destroy;
    PFN_vkEnumeratePhysicalDevices enumerate;
    PFN_vkGetPhysicalDeviceProperties properties;
    PFN_vkGetPhysicalDeviceFeatures features;
    PFN_vkGetPhysicalDeviceMemoryProperties memory;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
    PFN_vkEnumerateDeviceExtensionProperties device_extensions;
    PFN_vkCreateDevice create_device;
    PFN_vkDebugUtilsMessengerCallbackEXT message;
    VkPhysicalDevice *devices;
    uint32_t device_count;
} tli_vk_loader;

static void tli_vk_close_instance(tli_vk_loader *loader) {
    if (loader->instance && loader->destroy) (loader->destroy)(loader->instance, NULL);
    tli_vk_close_loader(loader->library);
    tl_free_memory(loader->env, loader->devices);
    loader->instance = VK_NULL_HANDLE;
    loader->library = NULL;
    loader->devices = NULL;
}

static tl_result tli_vk_loader_fail(tli_vk_loader *loader, tl_result code, const char *why) {
    return tl_record_error(loader->env, code, loader->function, why);
}

static void tli_vk_fill_messenger(const tl_vk_device_desc *desc, VkDebugUtilsMessengerCreateInfoEXT *info) {
    memset(info, 0, sizeof *info);
    info->sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    info->messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                            VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    info->messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                        VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    info->pfnUserCallback = desc->message;
    info->pUserData = desc->message_user;
}

static tl_result tli_vk_create_instance(tli_vk_loader *loader) {
    const char *layer = "VK_LAYER_KHRONOS_validation", *debug = "VK_EXT_debug_utils";
    const tl_vk_device_desc *desc = loader->desc;
    PFN_vkCreateInstance create;
    PFN_vkEnumerateInstanceVersion version;
    VkApplicationInfo application;
    VkInstanceCreateInfo info;
    VkDebugUtilsMessengerCreateInfoEXT messenger;
    uint32_t highest = VK_API_VERSION_1_0;
    VkResult result;
    tli_vk_set_call(&create, (loader->get)(VK_NULL_HANDLE, "vkCreateInstance"));
    tli_vk_set_call(&version, (loader->get)(VK_NULL_HANDLE, "vkEnumerateInstanceVersion"));
    if (!create) return tli_vk_fail_entry(loader->env, loader->function, "vkCreateInstance");
    if (version && (version)(&highest) != VK_SUCCESS) highest = VK_API_VERSION_1_0;
    loader->api_version = desc->api_version ? desc->api_version : VK_API_VERSION_1_1;
    if (loader->api_version > highest) loader->api_version = highest;
    memset(&application, 0, sizeof application);
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.pEngineName = "tl_strategy";
    application.engineVersion = (uint32_t)TL_VERSION;
    application.apiVersion = loader->api_version;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    if (desc->validates) {
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = &layer;
    }
    if (desc->message) {
        tli_vk_fill_messenger(desc, &messenger);
        info.pNext = &messenger;
        info.enabledExtensionCount = 1;
        info.ppEnabledExtensionNames = &debug;
    }
    result = (create)(&info, NULL, &loader->instance);
    if (result == VK_ERROR_LAYER_NOT_PRESENT)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND,
                                  "validates: VK_LAYER_KHRONOS_validation is not installed");
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND, "no Vulkan driver is installed");
    return result ? tli_vk_fail_call(loader->env, loader->function, "vkCreateInstance", result) : TL_OK;
}

static tl_result tli_vk_load_instance(tli_vk_loader *loader) {
    VkInstance instance = loader->instance;
    tli_vk_set_call(&loader->destroy, (loader->get)(instance, "vkDestroyInstance"));
    tli_vk_set_call(&loader->enumerate, (loader->get)(instance, "vkEnumeratePhysicalDevices"));
    tli_vk_set_call(&loader->properties, (loader->get)(instance, "vkGetPhysicalDeviceProperties"));
    tli_vk_set_call(&loader->features, (loader->get)(instance, "vkGetPhysicalDeviceFeatures"));
    tli_vk_set_call(&loader->memory, (loader->get)(instance, "vkGetPhysicalDeviceMemoryProperties"));
    tli_vk_set_call(&loader->families, (loader->get)(instance, "vkGetPhysicalDeviceQueueFamilyProperties"));
    tli_vk_set_call(&loader->device_extensions,
                    (loader->get)(instance, "vkEnumerateDeviceExtensionProperties"));
    tli_vk_set_call(&loader->create_device, (loader->get)(instance, "vkCreateDevice"));
    if (!loader->destroy || !loader->enumerate || !loader->properties || !loader->features ||
        !loader->memory || !loader->families || !loader->device_extensions || !loader->create_device)
        return tli_vk_fail_entry(loader->env, loader->function, "of the instance");
    return TL_OK;
}

static tl_result tli_vk_open_instance(tli_vk_loader *loader) {
    VkResult result;
    tl_result code;
    loader->get = tli_vk_find_loader(loader->desc->get_instance_proc, &loader->library);
    if (!loader->get)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND, "get_instance_proc: no Vulkan loader");
    code = tli_vk_create_instance(loader);
    if (!code) code = tli_vk_load_instance(loader);
    if (code) return code;
    result = (loader->enumerate)(loader->instance, &loader->device_count, NULL);
    if (!result && loader->device_count) {
        loader->devices = (VkPhysicalDevice *)tl_add_memory(
            loader->env, loader->device_count * sizeof(VkPhysicalDevice));
        if (!loader->devices) return tli_vk_loader_fail(loader, TL_ERROR_NO_MEMORY, "list of devices");
        result = (loader->enumerate)(loader->instance, &loader->device_count, loader->devices);
    }
    if (result && result != VK_INCOMPLETE)
        return tli_vk_fail_call(loader->env, loader->function, "vkEnumeratePhysicalDevices", result);
    return TL_OK;
}

// Flags of queues that do more than transfers. Copies of the queues for video, which transfer as well, are slow
// and do not run beside kernels (measured on an NVIDIA H200).
#define TLI_VK_MORE_THAN_TRANSFERS (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT | 0x20u | 0x40u | 0x100u)

// Find the first queue family that computes, and the first for transfers only, with the number of its queues;
// -1 where there is none.
static void tli_vk_find_families(tli_vk_loader *loader, VkPhysicalDevice physical, int32_t *compute,
                                 int32_t *transfer, uint32_t *transfer_count) {
    VkQueueFamilyProperties families[TLI_VK_FAMILIES];
    uint32_t count = 0, i;
    (loader->families)(physical, &count, NULL);
    if (count > TLI_VK_FAMILIES) count = TLI_VK_FAMILIES;
    (loader->families)(physical, &count, families);
    *compute = *transfer = -1;
    *transfer_count = 0;
    for (i = 0; i < count; i++) {
        VkQueueFlags flags = families[i].queueFlags;
        if (!families[i].queueCount) continue;
        if (flags & VK_QUEUE_COMPUTE_BIT && *compute < 0) *compute = (int32_t)i;
        if (!(flags & VK_QUEUE_TRANSFER_BIT) || flags & TLI_VK_MORE_THAN_TRANSFERS || *transfer >= 0) continue;
        *transfer = (int32_t)i;
        *transfer_count = families[i].queueCount;
    }
}

static void tli_vk_describe_device(tli_vk_loader *loader, VkPhysicalDevice physical,
                                   tl_vk_device_info *info) {
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    int32_t compute, transfer;
    uint32_t transfer_count, i;
    (loader->properties)(physical, &properties);
    (loader->memory)(physical, &memory);
    tli_vk_find_families(loader, physical, &compute, &transfer, &transfer_count);
    memset(info, 0, sizeof *info);
    memcpy(info->name, properties.deviceName, sizeof info->name);
    info->name[sizeof info->name - 1] = 0;
    info->type = properties.deviceType;
    info->api_version = properties.apiVersion;
    info->driver_version = properties.driverVersion;
    info->has_compute = compute >= 0;
    for (i = 0; i < memory.memoryHeapCount; i++)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
            memory.memoryHeaps[i].size > info->device_bytes)
            info->device_bytes = memory.memoryHeaps[i].size;
}

TLI_VK_IMPL tl_result tl_vk_read_devices(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device_info *infos,
                                      int32_t capacity, int32_t *count) {
    tli_vk_loader loader;
    tl_result result;
    uint32_t i;
    memset(&loader, 0, sizeof loader);
    loader.env = env;
    loader.desc = desc;
    loader.function = "tl_vk_read_devices";
    *count = 0;
    result = tli_vk_open_instance(&loader);
    for (i = 0; !result && i < loader.device_count; i++) {
        if ((int32_t)i < capacity) tli_vk_describe_device(&loader, loader.devices[i], &infos[i]);
        ++*count;
    }
    tli_vk_close_instance(&loader);
    return result;
}

// Pick the device with the number given; for 0 the first GPU that computes, else the first device that does.
static tl_result tli_vk_pick_device(tli_vk_loader *loader, VkPhysicalDevice *picked, tl_vk_device_info *info) {
    int32_t number = loader->desc->number;
    uint32_t i, best = loader->device_count;
    if (!loader->device_count)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND, "no Vulkan device");
    if (number < 0 || (uint32_t)number > loader->device_count)
        return tli_vk_loader_fail(loader, TL_ERROR_NOT_FOUND, "number: there are fewer devices");
    for (i = 0; i < loader->device_count && !number; i++) {
        tli_vk_describe_device(loader, loader->devices[i], info);
        if (!info->has_compute) continue;
        if (best == loader->device_count) best = i;
        if (info->type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU &&
            info->type != VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) continue;
        best = i;
        break;
    }
    if (number) best = (uint32_t)number - 1;
    if (best == loader->device_count) best = 0;
    tli_vk_describe_device(loader, loader->devices[best], info);
    if (!info->has_compute)
        return tli_vk_loader_fail(loader, TL_ERROR_UNSUPPORTED, "the device has no queue that computes");
    *picked = loader->devices[best];
    return TL_OK;
}

static int tli_vk_device_has(tli_vk_loader *loader, VkPhysicalDevice physical, const char *name) {
    VkExtensionProperties *list;
    uint32_t count = 0, i;
    int found = 0;
    if ((loader->device_extensions)(physical, NULL, &count, NULL) || !count) return 0;
    list = (VkExtensionProperties *)tl_add_memory(loader->env, count * sizeof *list);
    if (!list) return 0;
    if ((loader->device_extensions)(physical, NULL, &count, list) == VK_SUCCESS)
        for (i = 0; i < count && !found; i++) found = strcmp(list[i].extensionName, name) == 0;
    tl_free_memory(loader->env, list);
    return found;
}

// Whether timeline semaphores can be enabled. Only a device with the extension may be asked for the feature.
static int tli_vk_can_timeline(tli_vk_loader *loader, VkPhysicalDevice physical) {
    PFN_vkGetPhysicalDeviceFeatures2 get;
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    if (loader->api_version < VK_API_VERSION_1_1) return 0;
    if (!tli_vk_device_has(loader, physical, "VK_KHR_timeline_semaphore")) return 0;
    tli_vk_set_call(&get, (loader->get)(loader->instance, "vkGetPhysicalDeviceFeatures2"));
    if (!get) return 0;
    memset(&features, 0, sizeof features);
    memset(&timeline, 0, sizeof timeline);
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    features.pNext = &timeline;
    (get)(physical, &features);
    return timeline.timelineSemaphore != 0;
}

static tl_result tli_vk_create_device(tli_vk_loader *loader, VkPhysicalDevice physical, tli_vk_owned *owned,
                                      tl_vk_device *device) {
    static const float priorities[2] = { 1.0f, 1.0f };
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceFeatures features;
    VkDeviceQueueCreateInfo queues[2];
    VkDeviceCreateInfo info;
    PFN_vkGetDeviceProcAddr get_device_proc;
    PFN_vkGetDeviceQueue get_queue;
    int32_t compute, transfer;
    uint32_t transfer_count;
    VkResult result;
    (loader->features)(physical, &features);  // validation warns where features were never queried
    tli_vk_find_families(loader, physical, &compute, &transfer, &transfer_count);
    if (!loader->desc->enable_transfer) transfer = -1;
    memset(queues, 0, sizeof queues);
    memset(&info, 0, sizeof info);
    memset(&timeline, 0, sizeof timeline);
    queues[0].sType = queues[1].sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues[0].queueFamilyIndex = (uint32_t)compute;
    queues[1].queueFamilyIndex = (uint32_t)transfer;
    queues[0].queueCount = 1;
    queues[1].queueCount = transfer_count < 2 ? 1 : 2;
    queues[0].pQueuePriorities = queues[1].pQueuePriorities = priorities;
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.queueCreateInfoCount = transfer >= 0 ? 2 : 1;
    info.pQueueCreateInfos = queues;
    if (tli_vk_can_timeline(loader, physical)) {
        timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
        timeline.timelineSemaphore = VK_TRUE;
        info.pNext = &timeline;
        owned->extensions[info.enabledExtensionCount++] = "VK_KHR_timeline_semaphore";
    }
    if (loader->api_version >= VK_API_VERSION_1_1 &&
        tli_vk_device_has(loader, physical, "VK_EXT_memory_budget"))
        owned->extensions[info.enabledExtensionCount++] = "VK_EXT_memory_budget";
    info.ppEnabledExtensionNames = owned->extensions;
    // Load what destroys a device before one is made: one that stayed while its library is closed would crash
    // in threads of the driver.
    tli_vk_set_call(&owned->destroy_device, (loader->get)(loader->instance, "vkDestroyDevice"));
    tli_vk_set_call(&get_device_proc, (loader->get)(loader->instance, "vkGetDeviceProcAddr"));
    if (!owned->destroy_device || !get_device_proc)
        return tli_vk_fail_entry(loader->env, loader->function, "vkGetDeviceProcAddr");
    result = (loader->create_device)(physical, &info, NULL, &device->device);
    if (result) return tli_vk_fail_call(loader->env, loader->function, "vkCreateDevice", result);
    tli_vk_set_call(&get_queue, (get_device_proc)(device->device, "vkGetDeviceQueue"));
    if (!get_queue) return tli_vk_fail_entry(loader->env, loader->function, "vkGetDeviceQueue");
    (get_queue)(device->device, (uint32_t)compute, 0, &device->queue);
    device->queue_family = (uint32_t)compute;
    if (transfer >= 0) {
        (get_queue)(device->device, (uint32_t)transfer, 0, &device->transfer_queue);
        if (transfer_count > 1) (get_queue)(device->device, (uint32_t)transfer, 1, &device->upload_queue);
        device->transfer_family = (uint32_t)transfer;
    }
    device->timeline_enabled = timeline.timelineSemaphore != 0;
    device->extensions = owned->extensions;
    device->extension_count = info.enabledExtensionCount;
    return TL_OK;
}

static tl_result tli_vk_add_messenger(tli_vk_loader *loader, tli_vk_owned *owned) {
    VkDebugUtilsMessengerCreateInfoEXT info;
    PFN_vkCreateDebugUtilsMessengerEXT create;
    VkResult result;
    if (!loader->desc->message) return TL_OK;
    tli_vk_set_call(&create, (loader->get)(loader->instance, "vkCreateDebugUtilsMessengerEXT"));
    tli_vk_set_call(&owned->destroy_messenger,
                    (loader->get)(loader->instance, "vkDestroyDebugUtilsMessengerEXT"));
    if (!create || !owned->destroy_messenger)
        return tli_vk_fail_entry(loader->env, loader->function, "vkCreateDebugUtilsMessengerEXT");
    tli_vk_fill_messenger(loader->desc, &info);
    result = (create)(loader->instance, &info, NULL, &owned->messenger);
    return result ? tli_vk_fail_call(loader->env, loader->function, "vkCreateDebugUtilsMessengerEXT", result)
                  : TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_init_device(tl_env *env, const tl_vk_device_desc *desc, tl_vk_device *device) {
    tli_vk_loader loader;
    tl_vk_device_info info;
    tli_vk_owned *owned;
    tl_result result;
    memset(&loader, 0, sizeof loader);
    memset(&info, 0, sizeof info);
    memset(device, 0, sizeof *device);
    loader.env = env;
    loader.desc = desc;
    loader.function = "tl_vk_init_device";
    owned = (tli_vk_owned *)tl_add_memory(env, sizeof *owned);
    if (!owned) return tli_vk_loader_fail(&loader, TL_ERROR_NO_MEMORY, "no memory");
    result = tli_vk_open_instance(&loader);
    owned->library = loader.library;
    owned->destroy_instance = loader.destroy;
    device->owned = owned;
    device->get_instance_proc = loader.get;
    device->instance = loader.instance;
    loader.library = NULL;  // *device owns both from here on
    loader.instance = VK_NULL_HANDLE;
    if (!result) {
        loader.instance = device->instance;
        result = tli_vk_add_messenger(&loader, owned);
        if (!result) result = tli_vk_pick_device(&loader, &device->physical, &info);
        if (!result) {
            device->api_version = loader.api_version < info.api_version ? loader.api_version
                                                                        : info.api_version;
            result = tli_vk_create_device(&loader, device->physical, owned, device);
        }
        loader.instance = VK_NULL_HANDLE;
    }
    tli_vk_close_instance(&loader);
    if (result) (void)tl_vk_free_device(env, device);
    return result;
}

TLI_VK_IMPL tl_result tl_vk_free_device(tl_env *env, tl_vk_device *device) {
    tli_vk_owned *owned = device ? (tli_vk_owned *)device->owned : NULL;
    if (!owned) return TL_OK;
    if (owned->backend_count)
        return tli_vk_fail_users(env, "tl_vk_free_device", "device", owned->backend_count, "backends");
    if (device->device && owned->destroy_device) (owned->destroy_device)(device->device, NULL);
    if (owned->messenger) (owned->destroy_messenger)(device->instance, owned->messenger, NULL);
    if (device->instance && owned->destroy_instance) (owned->destroy_instance)(device->instance, NULL);
    tli_vk_close_loader(owned->library);
    tl_free_memory(env, owned);
    memset(device, 0, sizeof *device);
    return TL_OK;
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

