// 03_vulkan_engine.c -- a game engine trains a small network inside its own frames
//
// You learn: how the executor runs where somebody else owns the device. The engine below renders a
// scene in every frame, lets the library record a slice of a training pass into the same command
// buffer, and submits once. A network learns the picture, from a place (x, y) to a colour, within a
// byte budget. It prints a line every 30 frames and leaves build/engine/engine.png: the scene, and
// what was learned early, on the way and at the end. Read next: tl_vk_backend.h, [3] FRAMES.
//
// check: --frames 45 --drop 17 --validate --out build/check/engine
//
//     mkdir -p build && cc -O2 -o build/03_vulkan_engine examples/03_vulkan_engine.c -lm -ldl
//     build/03_vulkan_engine --frames 45
//
// HOW IT WORKS   The engine has an instance, a queue and three frames in flight, and gives the backend
// its device without the queue: record mode. A pass is a list of steps pulled by tl_next_step, 22 of
// them compute; a frame takes 18, so a pass begins in one frame and ends in another. Its activations
// are dropped and made again to stay within the budget. The target colours are read where the engine
// rendered them: its buffers are added to the backend as blocks. The other way round, the engine's own
// pipeline draws the learned picture from the library's weights. The optimizer reads one copy of the
// network and writes the other, so a frame that is thrown away (--drop) costs an update at most, never
// the network. In a steady frame the library submits, waits and allocates nothing: the program counts
// that from outside, and fails where it is not so.
//
// CONTENTS       (search for "// -- ")
//                clock    vulkan    counters    device    buffers    pipelines    frames
//                network    kernels    training    png    pictures    measures    loop    options    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, mkdir

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <direct.h>
#include <windows.h>
#else
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#endif

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#include "engine_shaders.h"

enum { CODE_OK = 0, CODE_INPUT = 1, CODE_DEVICE = 2, CODE_MISMATCH = 3 };

// Print one sentence; returns the code, for `return fail(...)`.
static int fail(int code, const char *format, ...) {
    va_list list;
    fflush(stdout);
    fprintf(stderr, "03_vulkan_engine: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    return code;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    interrupted = 1;
    signal(number, SIG_DFL);  // a second Ctrl-C ends the program at once
}

// -- clock --

static double now_ms(void) {
#ifdef _WIN32
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return (double)ticks.QuadPart * 1e3 / (double)rate.QuadPart;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
#endif
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Sorts them; 0 where there are none.
static double find_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return count ? values[count / 2] : 0.0;
}

// -- vulkan: the functions that the engine calls, from the system's loader --

#define INSTANCE_FUNCTIONS(X)                                                              \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties)          \
    X(GetPhysicalDeviceFeatures) X(GetPhysicalDeviceMemoryProperties)                      \
    X(GetPhysicalDeviceQueueFamilyProperties) X(CreateDevice) X(GetDeviceProcAddr)         \
    X(DestroyDevice) X(GetDeviceQueue) X(DeviceWaitIdle) X(QueueSubmit) X(QueueWaitIdle)   \
    X(AllocateMemory) X(FreeMemory) X(MapMemory) X(UnmapMemory) X(CreateBuffer)            \
    X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory)                    \
    X(CreateShaderModule) X(DestroyShaderModule) X(CreateDescriptorSetLayout)              \
    X(DestroyDescriptorSetLayout) X(CreatePipelineLayout) X(DestroyPipelineLayout)         \
    X(CreateComputePipelines) X(DestroyPipeline) X(CreateDescriptorPool)                   \
    X(DestroyDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets)             \
    X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers)                   \
    X(BeginCommandBuffer) X(EndCommandBuffer) X(CreateFence) X(DestroyFence)               \
    X(ResetFences) X(WaitForFences) X(CreateQueryPool) X(DestroyQueryPool)                 \
    X(GetQueryPoolResults) X(CmdResetQueryPool) X(CmdWriteTimestamp) X(CmdPipelineBarrier) \
    X(CmdCopyBuffer) X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants)       \
    X(CmdDispatch)

#define DECLARE_FUNCTION(name) PFN_vk##name name;
static struct vulkan {
    void *library;
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
    INSTANCE_FUNCTIONS(DECLARE_FUNCTION)
} vk;

static int open_loader(void) {
#ifdef _WIN32
    HMODULE library = LoadLibraryA("vulkan-1.dll");
    FARPROC function = library ? GetProcAddress(library, "vkGetInstanceProcAddr") : NULL;
    vk.library = (void *)library;
    memcpy(&vk.GetInstanceProcAddr, &function, sizeof function);
#else
    void *function;
    vk.library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    function = vk.library ? dlsym(vk.library, "vkGetInstanceProcAddr") : NULL;
    memcpy(&vk.GetInstanceProcAddr, &function, sizeof function);
#endif
    if (vk.GetInstanceProcAddr) return CODE_OK;
    return fail(CODE_DEVICE, "no Vulkan loader (Debian: libvulkan1, mesa-vulkan-drivers)");
}

static void close_loader(void) {
#ifdef _WIN32
    if (vk.library) FreeLibrary((HMODULE)vk.library);
#else
    if (vk.library) dlclose(vk.library);
#endif
}

static int load_functions(VkInstance instance) {
#define LOAD_FUNCTION(name)                                                           \
    vk.name = (PFN_vk##name)vk.GetInstanceProcAddr(instance, "vk" #name);             \
    if (!vk.name) return fail(CODE_DEVICE, "the Vulkan driver has no vk" #name);
    INSTANCE_FUNCTIONS(LOAD_FUNCTION)
    return CODE_OK;
}

static int check_vk(VkResult result, const char *function) {
    if (result == VK_SUCCESS) return CODE_OK;
    return fail(CODE_DEVICE, "%s returned VkResult %d", function, (int)result);
}

// -- counters: what the library asks of Vulkan and of the heap, seen from outside --
//
// The library gets its entry points from find_instance_function, and its memory from count_alloc.

typedef struct counts {
    uint64_t submits, waits, memory_allocations, host_allocations;
} counts;

static counts seen;

static VKAPI_ATTR VkResult VKAPI_CALL count_submit(VkQueue queue, uint32_t count,
                                                   const VkSubmitInfo *infos, VkFence fence) {
    seen.submits++;
    return vk.QueueSubmit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_wait(VkDevice device, uint32_t count,
                                                 const VkFence *fences, VkBool32 all,
                                                 uint64_t timeout) {
    seen.waits++;
    return vk.WaitForFences(device, count, fences, all, timeout);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_queue_wait(VkQueue queue) {
    seen.waits++;
    return vk.QueueWaitIdle(queue);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_device_wait(VkDevice device) {
    seen.waits++;
    return vk.DeviceWaitIdle(device);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_memory(VkDevice device,
                                                   const VkMemoryAllocateInfo *info,
                                                   const VkAllocationCallbacks *callbacks,
                                                   VkDeviceMemory *memory) {
    seen.memory_allocations++;
    return vk.AllocateMemory(device, info, callbacks, memory);
}

static PFN_vkVoidFunction find_counted(const char *name, PFN_vkVoidFunction function) {
    if (!strcmp(name, "vkQueueSubmit")) return (PFN_vkVoidFunction)count_submit;
    if (!strcmp(name, "vkWaitForFences")) return (PFN_vkVoidFunction)count_wait;
    if (!strcmp(name, "vkQueueWaitIdle")) return (PFN_vkVoidFunction)count_queue_wait;
    if (!strcmp(name, "vkDeviceWaitIdle")) return (PFN_vkVoidFunction)count_device_wait;
    if (!strcmp(name, "vkAllocateMemory")) return (PFN_vkVoidFunction)count_memory;
    return function;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_device_function(VkDevice device,
                                                                     const char *name) {
    return find_counted(name, vk.GetDeviceProcAddr(device, name));
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_instance_function(VkInstance instance,
                                                                       const char *name) {
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (PFN_vkVoidFunction)find_device_function;
    return find_counted(name, vk.GetInstanceProcAddr(instance, name));
}

static void *count_alloc(void *user, size_t bytes) {
    (void)user;
    seen.host_allocations++;
    return malloc(bytes);
}

static void count_release(void *user, void *memory) {
    (void)user;
    free(memory);
}

// -- device: instance, validation, one queue --

typedef struct buffer {
    VkBuffer       buffer;
    VkDeviceMemory memory;
    void          *mapped;   // host-visible ones
} buffer;

typedef struct pipeline {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout      layout;
    VkPipeline            pipeline;
} pipeline;

enum {
    FRAMES_IN_FLIGHT = 3,
    BUFFER_USAGE = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                   VK_BUFFER_USAGE_TRANSFER_DST_BIT
};

// What one frame in flight owns.
typedef struct frame {
    VkCommandBuffer commands;
    VkFence         fence;
    VkDescriptorSet scene_set, draw_set;
    buffer          picture, learned, readback;  // readback: picture, learned, then the loss
    uint64_t        block;      // the picture, as the backend knows it
    tl_ticket       ticket;     // of the library's part
    int32_t         number;     // of the frame, from 0
    int32_t         is_open;    // 1 = recorded for the library, neither submitted nor dropped
    int32_t         is_submitted;
    int32_t         trains, draws, has_loss, update_count;
    int32_t         ended;      // 1 = it holds the end of a pass and its optimizer step
    counts          counted;    // what the library asked for in it
    double          record_ms;  // host time the library took
} frame;

typedef struct engine {
    VkInstance       instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical;
    VkDevice         device;
    VkQueue          queue;
    uint32_t         family;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    VkCommandPool    commands;
    VkDescriptorPool sets;
    VkQueryPool      times;     // two a frame in flight; VK_NULL_HANDLE = the queue has none
    pipeline         scene, draw;
    frame            frames[FRAMES_IN_FLIGHT];
    uint32_t         width, height;
    int              messages;  // of the validation layer
} engine;

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                 void *user) {
    (void)types;
    ((engine *)user)->messages++;
    fprintf(stderr, "validation %s: %s\n",
            severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? "error" : "warning",
            data->pMessage);
    return VK_FALSE;
}

static int make_instance(engine *e, int validates) {
    static const char *const layers[] = { "VK_LAYER_KHRONOS_validation" };
    static const char *const extensions[] = { VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                              VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME };
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
    };
    VkApplicationInfo app = { 0 };
    VkInstanceCreateInfo info = { 0 };
    VkDebugUtilsMessengerCreateInfoEXT messenger = { 0 };
    VkValidationFeaturesEXT features = { 0 };
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)vk.GetInstanceProcAddr(NULL, "vkCreateInstance");
    PFN_vkCreateDebugUtilsMessengerEXT create_messenger;
    VkResult result;
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.pApplicationName = "03_vulkan_engine";
    app.apiVersion = VK_API_VERSION_1_0;
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &app;
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                                VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                            VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = e;
    features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    features.pNext = &messenger;
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = enables;
    if (validates) {
        info.pNext = &features;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = layers;
        info.enabledExtensionCount = 2;
        info.ppEnabledExtensionNames = extensions;
    }
    if (!create) return fail(CODE_DEVICE, "the Vulkan loader has no vkCreateInstance");
    result = create(&info, NULL, &e->instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return fail(CODE_DEVICE, "no Vulkan driver (Debian: mesa-vulkan-drivers)");
    if (result == VK_ERROR_LAYER_NOT_PRESENT)
        return fail(CODE_DEVICE, "--validate: no %s (Debian: vulkan-validationlayers)", layers[0]);
    if (check_vk(result, "vkCreateInstance") || load_functions(e->instance)) return CODE_DEVICE;
    if (!validates) return CODE_OK;
    create_messenger = (PFN_vkCreateDebugUtilsMessengerEXT)vk.GetInstanceProcAddr(
        e->instance, "vkCreateDebugUtilsMessengerEXT");
    if (!create_messenger)
        return fail(CODE_DEVICE, "--validate: no vkCreateDebugUtilsMessengerEXT");
    return check_vk(create_messenger(e->instance, &messenger, NULL, &e->messenger),
                    "vkCreateDebugUtilsMessengerEXT");
}

// The first family that computes; timestamps says whether it tells the time.
static int find_family(VkPhysicalDevice physical, uint32_t *family, int *timestamps) {
    VkQueueFamilyProperties families[16];
    uint32_t count = 16, i;
    vk.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (i = 0; i < count; i++) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        *family = i;
        *timestamps = families[i].timestampValidBits > 0;
        return 1;
    }
    return 0;
}

// Device `number` from 1; 0 = the first GPU, else the first of any kind.
static int pick_device(engine *e, int number, int *timestamps) {
    VkPhysicalDevice devices[16];
    uint32_t count = 16, i, pick = 0;
    VkResult result = vk.EnumeratePhysicalDevices(e->instance, &count, devices);
    if (result != VK_INCOMPLETE && check_vk(result, "vkEnumeratePhysicalDevices"))
        return CODE_DEVICE;
    if (!count) return fail(CODE_DEVICE, "no Vulkan device (Debian: mesa-vulkan-drivers)");
    if (number > (int)count)
        return fail(CODE_INPUT, "--device %d: there are %d", number, (int)count);
    for (i = count; number == 0 && i-- > 0;) {
        vk.GetPhysicalDeviceProperties(devices[i], &e->properties);
        if (e->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) pick = i;
    }
    e->physical = devices[number ? (uint32_t)number - 1 : pick];
    vk.GetPhysicalDeviceProperties(e->physical, &e->properties);
    vk.GetPhysicalDeviceMemoryProperties(e->physical, &e->memory);
    if (!find_family(e->physical, &e->family, timestamps))
        return fail(CODE_DEVICE, "%s has no queue that computes", e->properties.deviceName);
    return CODE_OK;
}

static int make_device(engine *e, int number) {
    static const float priority = 1.0f;
    VkPhysicalDeviceFeatures features;
    VkDeviceQueueCreateInfo queue = { VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, NULL, 0, 0, 1,
                                      &priority };
    VkDeviceCreateInfo info = { 0 };
    VkCommandPoolCreateInfo pool = { VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, NULL,
                                     VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, 0 };
    VkQueryPoolCreateInfo times = { VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, NULL, 0,
                                    VK_QUERY_TYPE_TIMESTAMP, 2 * FRAMES_IN_FLIGHT, 0 };
    int timestamps = 0, code = pick_device(e, number, &timestamps);
    if (code) return code;
    vk.GetPhysicalDeviceFeatures(e->physical, &features);  // none is needed; layers expect the question
    queue.queueFamilyIndex = e->family;
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    if (check_vk(vk.CreateDevice(e->physical, &info, NULL, &e->device), "vkCreateDevice"))
        return CODE_DEVICE;
    vk.GetDeviceQueue(e->device, e->family, 0, &e->queue);
    pool.queueFamilyIndex = e->family;
    if (check_vk(vk.CreateCommandPool(e->device, &pool, NULL, &e->commands), "vkCreateCommandPool"))
        return CODE_DEVICE;
    if (!timestamps) return CODE_OK;
    return check_vk(vk.CreateQueryPool(e->device, &times, NULL, &e->times), "vkCreateQueryPool");
}

// -- buffers --

// The first type that has all of `needed`, and if there is one all of `wanted`; UINT32_MAX = none.
static uint32_t find_memory_type(const engine *e, uint32_t bits, VkMemoryPropertyFlags needed,
                                 VkMemoryPropertyFlags wanted) {
    uint32_t i, found = UINT32_MAX;
    for (i = e->memory.memoryTypeCount; i-- > 0;) {
        VkMemoryPropertyFlags flags = e->memory.memoryTypes[i].propertyFlags;
        if ((bits >> i & 1) == 0 || (flags & needed) != needed) continue;
        if (found == UINT32_MAX || (flags & wanted) == wanted) found = i;
    }
    return found;
}

static int make_buffer(engine *e, uint64_t bytes, int host, buffer *made) {
    VkBufferCreateInfo info = { 0 };
    VkMemoryAllocateInfo allocate = { VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, 0, 0 };
    VkMemoryRequirements needs;
    VkMemoryPropertyFlags needed = 0, wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    if (host) {
        needed = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        wanted = needed | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    }
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = BUFFER_USAGE;
    if (check_vk(vk.CreateBuffer(e->device, &info, NULL, &made->buffer), "vkCreateBuffer"))
        return CODE_DEVICE;
    vk.GetBufferMemoryRequirements(e->device, made->buffer, &needs);
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = find_memory_type(e, needs.memoryTypeBits, needed, wanted);
    if (allocate.memoryTypeIndex == UINT32_MAX)
        return fail(CODE_DEVICE, "no memory type for a buffer");
    if (check_vk(vk.AllocateMemory(e->device, &allocate, NULL, &made->memory),
                 "vkAllocateMemory") ||
        check_vk(vk.BindBufferMemory(e->device, made->buffer, made->memory, 0),
                 "vkBindBufferMemory"))
        return CODE_DEVICE;
    if (!host) return CODE_OK;
    return check_vk(vk.MapMemory(e->device, made->memory, 0, VK_WHOLE_SIZE, 0, &made->mapped),
                    "vkMapMemory");
}

static void free_buffer(engine *e, buffer *b) {
    if (b->buffer) vk.DestroyBuffer(e->device, b->buffer, NULL);
    if (b->memory) vk.FreeMemory(e->device, b->memory, NULL);
    memset(b, 0, sizeof *b);
}

// -- pipelines: the two shaders that the engine dispatches itself --

static int make_pipeline(engine *e, const uint32_t *words, size_t bytes, uint32_t buffer_count,
                         uint32_t push_bytes, pipeline *made) {
    VkDescriptorSetLayoutBinding bindings[4];
    VkDescriptorSetLayoutCreateInfo set = { 0 };
    VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, 0 };
    VkPipelineLayoutCreateInfo layout = { 0 };
    VkShaderModuleCreateInfo module = { 0 };
    VkComputePipelineCreateInfo info = { 0 };
    VkShaderModule shader = VK_NULL_HANDLE;
    uint32_t i;
    int code;
    memset(bindings, 0, sizeof bindings);
    for (i = 0; i < buffer_count; i++) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set.bindingCount = buffer_count;
    set.pBindings = bindings;
    if (check_vk(vk.CreateDescriptorSetLayout(e->device, &set, NULL, &made->set_layout),
                 "vkCreateDescriptorSetLayout"))
        return CODE_DEVICE;
    push.size = push_bytes;
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &made->set_layout;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &push;
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = bytes;
    module.pCode = words;
    if (check_vk(vk.CreatePipelineLayout(e->device, &layout, NULL, &made->layout),
                 "vkCreatePipelineLayout") ||
        check_vk(vk.CreateShaderModule(e->device, &module, NULL, &shader), "vkCreateShaderModule"))
        return CODE_DEVICE;
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = shader;
    info.stage.pName = "main";
    info.layout = made->layout;
    code = check_vk(
        vk.CreateComputePipelines(e->device, VK_NULL_HANDLE, 1, &info, NULL, &made->pipeline),
        "vkCreateComputePipelines");
    vk.DestroyShaderModule(e->device, shader, NULL);
    return code;
}

static void free_pipeline(engine *e, pipeline *p) {
    if (p->pipeline) vk.DestroyPipeline(e->device, p->pipeline, NULL);
    if (p->layout) vk.DestroyPipelineLayout(e->device, p->layout, NULL);
    if (p->set_layout) vk.DestroyDescriptorSetLayout(e->device, p->set_layout, NULL);
}

// At most four, bound from 0.
static void write_set(engine *e, VkDescriptorSet set, const VkDescriptorBufferInfo *infos,
                      uint32_t count) {
    VkWriteDescriptorSet writes[4];
    uint32_t i;
    memset(writes, 0, sizeof writes);
    for (i = 0; i < count; i++) {
        writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        writes[i].dstSet = set;
        writes[i].dstBinding = i;
        writes[i].descriptorCount = 1;
        writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        writes[i].pBufferInfo = &infos[i];
    }
    vk.UpdateDescriptorSets(e->device, count, writes, 0, NULL);
}

static void dispatch(VkCommandBuffer commands, const pipeline *p, VkDescriptorSet set,
                     const void *push, uint32_t push_bytes, uint32_t groups_x, uint32_t groups_y) {
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &set, 0,
                             NULL);
    vk.CmdPushConstants(commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes, push);
    vk.CmdDispatch(commands, groups_x, groups_y, 1);
}

static void put_barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                        VkAccessFlags from_access, VkPipelineStageFlags to,
                        VkAccessFlags to_access) {
    VkMemoryBarrier barrier = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, 0, 0 };
    barrier.srcAccessMask = from_access;
    barrier.dstAccessMask = to_access;
    vk.CmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, NULL, 0, NULL);
}

// -- frames --

static uint64_t picture_bytes(const engine *e) { return (uint64_t)e->width * e->height * 16; }

static int make_frame(engine *e, frame *f) {
    VkCommandBufferAllocateInfo commands = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, NULL,
                                             VK_NULL_HANDLE, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1 };
    VkFenceCreateInfo fence = { VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, NULL, 0 };
    VkDescriptorSetAllocateInfo sets = { VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL,
                                         VK_NULL_HANDLE, 2, NULL };
    VkDescriptorSetLayout layouts[2];
    VkDescriptorSet made[2];
    VkDescriptorBufferInfo info = { VK_NULL_HANDLE, 0, VK_WHOLE_SIZE };
    commands.commandPool = e->commands;
    layouts[0] = e->scene.set_layout;
    layouts[1] = e->draw.set_layout;
    sets.descriptorPool = e->sets;
    sets.pSetLayouts = layouts;
    if (check_vk(vk.AllocateCommandBuffers(e->device, &commands, &f->commands),
                 "vkAllocateCommandBuffers") ||
        check_vk(vk.CreateFence(e->device, &fence, NULL, &f->fence), "vkCreateFence") ||
        check_vk(vk.AllocateDescriptorSets(e->device, &sets, made), "vkAllocateDescriptorSets") ||
        make_buffer(e, picture_bytes(e), 0, &f->picture) ||
        make_buffer(e, picture_bytes(e), 0, &f->learned) ||
        make_buffer(e, 2 * picture_bytes(e) + 16, 1, &f->readback))
        return CODE_DEVICE;
    f->scene_set = made[0];
    f->draw_set = made[1];
    info.buffer = f->picture.buffer;
    write_set(e, f->scene_set, &info, 1);
    return CODE_OK;
}

static int make_engine(engine *e, int device, int validates) {
    VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4 * FRAMES_IN_FLIGHT };
    VkDescriptorPoolCreateInfo sets = { VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, NULL, 0,
                                        2 * FRAMES_IN_FLIGHT, 1, NULL };
    int i, code = open_loader();
    if (!code) code = make_instance(e, validates);
    if (!code) code = make_device(e, device);
    if (code) return code;
    sets.pPoolSizes = &size;
    if (check_vk(vk.CreateDescriptorPool(e->device, &sets, NULL, &e->sets),
                 "vkCreateDescriptorPool") ||
        make_pipeline(e, engine_scene_words, sizeof engine_scene_words, 1, 8, &e->scene) ||
        make_pipeline(e, engine_draw_words, sizeof engine_draw_words, 3, 12, &e->draw))
        return CODE_DEVICE;
    for (i = 0; i < FRAMES_IN_FLIGHT; i++)
        if (make_frame(e, &e->frames[i])) return CODE_DEVICE;
    return CODE_OK;
}

// The device is idle, the library is gone.
static void free_engine(engine *e) {
    int i;
    for (i = 0; e->device && i < FRAMES_IN_FLIGHT; i++) {
        frame *f = &e->frames[i];
        free_buffer(e, &f->picture);
        free_buffer(e, &f->learned);
        free_buffer(e, &f->readback);
        if (f->fence) vk.DestroyFence(e->device, f->fence, NULL);
    }
    if (e->device) {
        free_pipeline(e, &e->scene);
        free_pipeline(e, &e->draw);
        if (e->times) vk.DestroyQueryPool(e->device, e->times, NULL);
        if (e->sets) vk.DestroyDescriptorPool(e->device, e->sets, NULL);
        if (e->commands) vk.DestroyCommandPool(e->device, e->commands, NULL);
        vk.DestroyDevice(e->device, NULL);
    }
    if (e->messenger) {
        PFN_vkDestroyDebugUtilsMessengerEXT destroy;
        destroy = (PFN_vkDestroyDebugUtilsMessengerEXT)vk.GetInstanceProcAddr(
            e->instance, "vkDestroyDebugUtilsMessengerEXT");
        if (destroy) destroy(e->instance, e->messenger, NULL);
    }
    if (e->instance && vk.DestroyInstance) vk.DestroyInstance(e->instance, NULL);
    close_loader();
}

static int begin_commands(VkCommandBuffer commands) {
    VkCommandBufferBeginInfo info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, NULL,
                                      VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, NULL };
    return check_vk(vk.BeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
}

static int submit_commands(engine *e, frame *f) {
    VkSubmitInfo info = { 0 };
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &f->commands;
    if (check_vk(vk.QueueSubmit(e->queue, 1, &info, f->fence), "vkQueueSubmit")) return CODE_DEVICE;
    f->is_open = 0;
    f->is_submitted = 1;
    return CODE_OK;
}

// Wait for the fence of a frame in flight and make it ready for the next use.
static int wait_frame(engine *e, frame *f) {
    if (check_vk(vk.WaitForFences(e->device, 1, &f->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences"))
        return CODE_DEVICE;
    return check_vk(vk.ResetFences(e->device, 1, &f->fence), "vkResetFences");
}

static void render_scene(engine *e, frame *f) {
    uint32_t push[2];
    push[0] = e->width;
    push[1] = e->height;
    dispatch(f->commands, &e->scene, f->scene_set, push, sizeof push, (e->width + 7) / 8,
             (e->height + 7) / 8);
}

// -- network: a field from a place to a colour --
//
//     encode -> fc1 -> fc2 -> fc3 -> fc4 -> out --+--> loss        B = samples in a batch
//                                       target ---+

enum {
    WHOLE_PASS = 1000,                           // compute steps: more than a pass has
    WIDTH = 64, LAYERS = 5, OUT_WIDTH = 4,       // OUT_WIDTH: red, green, blue and one of nobody
    HIDDEN_FLOATS = (WIDTH + 4) * WIDTH,         // rows of weights, the bias, three rows of nobody
    LAYER_FLOATS = (LAYERS - 1) * HIDDEN_FLOATS + (WIDTH + 4) * OUT_WIDTH,
    NETWORK_FLOATS = (LAYER_FLOATS + 63) / 64 * 64
};

#define KERNELS(X)                                                                      \
    X(START, start, 1, 16) X(ENCODE, encode, 2, 20) X(TARGET, target, 2, 16)            \
    X(DENSE, dense, 3, 16) X(DENSE_DELTA, dense_delta, 3, 4)                            \
    X(DENSE_INPUT, dense_input, 3, 12) X(DENSE_WEIGHTS, dense_weights, 3, 12)           \
    X(LOSS, loss, 3, 4) X(LOSS_INPUT, loss_input, 4, 4) X(ADAM, adam, 3, 16)

#define KERNEL_ID(id, name, buffers, push) KERNEL_##id,
typedef enum kernel_id { KERNELS(KERNEL_ID) KERNEL_COUNT } kernel_id;

typedef struct trainer {
    tl_env        env;
    tl_backend    backend;
    int           has_backend;
    tl_vk_kernel *kernels[KERNEL_COUNT];
    tl_graph      graph;
    tl_run       *run;
    uint64_t      keep_all_bytes, budget_bytes, base_bytes;  // the budget includes the base
    tl_range      states[2];      // weights, first and second moments; the optimizer reads one of
                                  // them and writes the other
    tl_range      gradient, frequencies;
    int32_t       current;        // which of the states is the network
    int32_t       update_count;   // optimizer steps that count
    int32_t       dropped_count;  // passes given up because a frame was thrown away
    int32_t       in_pass;
    tl_range      picture;        // that of the frame being recorded
    tl_range      loss;           // of the pass, where it is until the next one begins
    uint32_t      batch, pixels, width;
    tl_result     kernel_result;  // why a kernel of ours failed
    tl_run_report report;         // of the last whole pass
    float         rate;
} trainer;

static int fail_library(const trainer *t, const char *what) {
    return fail(CODE_DEVICE, "%s: %s", what, t->env.error.text);
}

static int make_kernels(trainer *t) {
#define ADD_KERNEL(id, name, buffers, push)                                         \
    desc.words = engine_##name##_words;                                             \
    desc.word_count = sizeof engine_##name##_words / sizeof *engine_##name##_words; \
    desc.buffer_count = buffers;                                                    \
    desc.push_bytes = push;                                                         \
    if (tl_vk_init_kernel(&t->backend, &desc, &t->kernels[KERNEL_##id]))            \
        return fail_library(t, #name);
    tl_vk_kernel_desc desc = { 0 };
    KERNELS(ADD_KERNEL)
    return CODE_OK;
}

// Memory of the network: beside the plan, within the budget.
static int add_range(trainer *t, uint64_t bytes, tl_range *range) {
    range->offset = 0;
    range->bytes = bytes;
    if (t->backend.add_block(t->backend.self, TL_TIER_DEVICE, bytes, &range->block) ||
        t->backend.claim(t->backend.self, *range))
        return fail_library(t, "memory of the network");
    t->base_bytes += bytes;
    return CODE_OK;
}

// The floats of a layer in a range that is laid out as the network.
static tl_range find_layer(tl_range whole, int32_t layer) {
    tl_range part = whole;
    part.offset += (uint64_t)layer * HIDDEN_FLOATS * 4;
    part.bytes = layer == LAYERS - 1 ? (WIDTH + 4) * OUT_WIDTH * 4 : HIDDEN_FLOATS * 4;
    return part;
}

// What one kernel binds; bit i of `writes` says that it writes the ith range.
typedef struct binding {
    tl_range ranges[4];
    int32_t  count;
    uint32_t writes;
} binding;

static void bind_range(binding *b, tl_range range, int writes) {
    b->writes |= (uint32_t)writes << b->count;
    b->ranges[b->count++] = range;
}

// Record a dispatch whose ranges are in order. That is so in the first dispatch of a call: the
// executor has ordered the operands, and begin_training the rest.
static tl_result record(trainer *t, kernel_id id, const binding *b, const void *push,
                        uint32_t groups) {
    t->kernel_result =
        tl_vk_record_kernel(&t->backend, t->kernels[id], b->ranges, push, groups, 1, 1);
    return t->kernel_result;
}

// Put all that a dispatch touches behind what was recorded before, then record it.
static tl_result record_ordered(trainer *t, kernel_id id, const binding *b, const void *push,
                                uint32_t groups) {
    tl_access accesses[4];
    int32_t i;
    for (i = 0; i < b->count; i++) {
        accesses[i].range = b->ranges[i];
        accesses[i].writes = b->writes >> i & 1;
    }
    t->kernel_result = t->backend.order(t->backend.self, accesses, b->count);
    return t->kernel_result ? t->kernel_result : record(t, id, b, push, groups);
}

static tl_result order_range(trainer *t, tl_range range) {
    tl_access access;
    access.range = range;
    access.writes = 0;
    return t->backend.order(t->backend.self, &access, 1);
}

static uint32_t groups_of(uint32_t count) { return (count + 63) / 64; }

// -- kernels: what the executor calls --

// The pixels of a training step: the same in every call of the pass, also when it runs again.
static uint32_t seed_of(const tl_kernel_call *call) {
    return (uint32_t)call->step * 0x85ebca6bu + 1;
}

static tl_result run_encode(const tl_kernel_call *call, void *user) {
    trainer *t = (trainer *)user;
    binding b = { { { 0, 0, 0 } }, 0, 0 };
    uint32_t push[5];
    push[0] = t->batch;
    push[1] = t->pixels;
    push[2] = t->width;
    push[3] = seed_of(call);
    push[4] = WIDTH / 4;
    bind_range(&b, t->frequencies, 0);
    bind_range(&b, call->outputs[0].range, 1);
    return record(t, KERNEL_ENCODE, &b, push, groups_of(t->batch * push[4]));
}

static tl_result run_target(const tl_kernel_call *call, void *user) {
    trainer *t = (trainer *)user;
    binding b = { { { 0, 0, 0 } }, 0, 0 };
    uint32_t push[4];
    push[0] = t->batch;
    push[1] = t->pixels;
    push[2] = t->width;
    push[3] = seed_of(call);
    bind_range(&b, t->picture, 0);
    bind_range(&b, call->outputs[0].range, 1);
    return record(t, KERNEL_TARGET, &b, push, groups_of(t->batch));
}

// Nodes 1 to LAYERS are the layers.
static int32_t layer_of(const tl_kernel_call *call) { return call->node - 1; }
static uint32_t out_groups_of(int32_t layer) {
    return layer == LAYERS - 1 ? OUT_WIDTH / 4 : WIDTH / 4;
}

static tl_result run_dense(const tl_kernel_call *call, void *user) {
    trainer *t = (trainer *)user;
    int32_t layer = layer_of(call);
    binding b = { { { 0, 0, 0 } }, 0, 0 };
    uint32_t push[4];
    push[0] = t->batch;
    push[1] = WIDTH / 4;
    push[2] = out_groups_of(layer);
    push[3] = layer < LAYERS - 1;
    bind_range(&b, call->inputs[0].range, 0);
    bind_range(&b, find_layer(t->states[t->current], layer), 0);
    bind_range(&b, call->outputs[0].range, 1);
    return record(t, KERNEL_DENSE, &b, push, groups_of(t->batch / 4 * push[2]));
}

static tl_result run_dense_backward(const tl_kernel_call *call, void *user) {
    trainer *t = (trainer *)user;
    int32_t layer = layer_of(call), has_relu = layer < LAYERS - 1;
    binding before_relu = { { { 0, 0, 0 } }, 0, 0 }, gradient = before_relu, input = before_relu;
    tl_range delta = has_relu ? call->scratch.range : call->output_grads[0].range;
    uint32_t push[3];
    tl_result result = TL_OK;
    push[0] = t->batch * out_groups_of(layer);
    bind_range(&before_relu, call->outputs[0].range, 0);
    bind_range(&before_relu, call->output_grads[0].range, 0);
    bind_range(&before_relu, delta, 1);
    if (has_relu) result = record(t, KERNEL_DENSE_DELTA, &before_relu, push, groups_of(push[0]));
    push[0] = t->batch;
    push[1] = WIDTH / 4;
    push[2] = out_groups_of(layer);
    bind_range(&gradient, call->inputs[0].range, 0);
    bind_range(&gradient, delta, 0);
    bind_range(&gradient, find_layer(t->gradient, layer), 1);
    if (!result)  // its groups: 4 by 4 gradients each, the bias included
        result = record_ordered(t, KERNEL_DENSE_WEIGHTS, &gradient, push, (push[1] + 1) * push[2]);
    if (result || !call->input_grads[0].range.bytes) return result;
    bind_range(&input, delta, 0);
    bind_range(&input, find_layer(t->states[t->current], layer), 0);
    bind_range(&input, call->input_grads[0].range, 1);
    return record_ordered(t, KERNEL_DENSE_INPUT, &input, push, groups_of(t->batch / 4 * push[1]));
}

static tl_result run_loss(const tl_kernel_call *call, void *user) {
    trainer *t = (trainer *)user;
    binding b = { { { 0, 0, 0 } }, 0, 0 };
    t->loss = call->outputs[0].range;
    bind_range(&b, call->inputs[0].range, 0);
    bind_range(&b, call->inputs[1].range, 0);
    bind_range(&b, t->loss, 1);
    return record(t, KERNEL_LOSS, &b, &t->batch, 1);
}

static tl_result run_loss_backward(const tl_kernel_call *call, void *user) {
    trainer *t = (trainer *)user;
    binding b = { { { 0, 0, 0 } }, 0, 0 };
    bind_range(&b, call->inputs[0].range, 0);
    bind_range(&b, call->inputs[1].range, 0);
    bind_range(&b, call->output_grads[0].range, 0);
    bind_range(&b, call->input_grads[0].range, 1);
    return record(t, KERNEL_LOSS_INPUT, &b, &t->batch, groups_of(t->batch));
}

typedef struct adam_push {
    uint32_t count;  // of groups of four
    float    rate, correction1, correction2;
} adam_push;

// One optimizer step, from the current state into the other one, which the next pass reads.
static tl_result run_adam(trainer *t) {
    double step = t->update_count + 1.0;
    binding b = { { { 0, 0, 0 } }, 0, 0 };
    adam_push push;
    tl_result result;
    push.count = NETWORK_FLOATS / 4;
    push.rate = (float)(t->rate / (1.0 + step / 400.0));
    push.correction1 = (float)(1.0 / (1.0 - pow(0.9, step)));
    push.correction2 = (float)(1.0 / (1.0 - pow(0.99, step)));
    bind_range(&b, t->states[t->current], 0);
    bind_range(&b, t->gradient, 0);
    bind_range(&b, t->states[1 - t->current], 1);
    result = record_ordered(t, KERNEL_ADAM, &b, &push, groups_of(push.count));
    if (!result) result = order_range(t, t->states[1 - t->current]);
    if (result) return result;
    t->current = 1 - t->current;
    t->update_count++;
    return TL_OK;
}

// -- training: the graph, the run, a slice a frame --

static int add_node(trainer *t, tl_graph *graph, const char *name, const char *op, int32_t from,
                    int32_t from2, uint64_t bytes, uint64_t work) {
    tl_node_desc node = { 0 };
    tl_tensor inputs[2] = { { 0, 0 }, { 0, 0 } };
    int dense = !strcmp(op, "dense"), loss = !strcmp(op, "loss");
    int has_relu = dense && bytes == (uint64_t)t->batch * WIDTH * 4;
    inputs[0].node = from;
    inputs[1].node = from2;
    node.name = name;
    node.op = op;
    node.inputs = inputs;
    node.input_count = (from >= 0) + (from2 >= 0);
    node.output_bytes = &bytes;
    node.output_count = 1;
    node.fwd_cost = work;
    node.bwd_cost = dense || loss ? 2 * work : 0;
    node.needs = has_relu ? "in,out" : dense || loss ? "in" : "none";
    if (has_relu) node.bwork_bytes = bytes;  // the gradient before the relu
    node.no_grad = !dense && !loss;
    node.keep = loss;
    return tl_add_node(&t->env, graph, &node, NULL) ? fail_library(t, name) : CODE_OK;
}

static int add_nodes(trainer *t, tl_graph *graph) {
    static const char *const names[LAYERS] = { "fc1", "fc2", "fc3", "fc4", "out" };
    uint64_t B = t->batch;
    int32_t i;
    int code = add_node(t, graph, "encode", "encode", -1, -1, B * WIDTH * 4, B * WIDTH);
    for (i = 0; i < LAYERS && !code; i++) {
        uint64_t columns = i < LAYERS - 1 ? WIDTH : OUT_WIDTH;
        code = add_node(t, graph, names[i], "dense", i, -1, B * columns * 4, B * WIDTH * columns);
    }
    if (!code) code = add_node(t, graph, "target", "target", -1, -1, B * 16, B);
    return code ? code : add_node(t, graph, "loss", "loss", LAYERS, LAYERS + 1, 4, B);
}

static int make_graph(trainer *t) {
    tl_graph graph = { 0 };
    tl_plan all = { 0 };
    int code = add_nodes(t, &graph);
    t->graph = graph;
    if (code) return code;
    if (tl_plan_keep_all(&t->env, &t->graph, 0, &all)) return fail_library(t, "keep all");
    t->keep_all_bytes = all.peak_bytes;
    tl_free_plan(&t->env, &all);
    return CODE_OK;
}

// Within `percent` of what keeping all would take, decided online.
static int make_run(trainer *t, double percent) {
    tl_kernel kernels[4] = { { "encode", run_encode, NULL, NULL },
                             { "target", run_target, NULL, NULL },
                             { "dense", run_dense, run_dense_backward, NULL },
                             { "loss", run_loss, run_loss_backward, NULL } };
    tl_run_desc desc = { 0 };
    int i;
    for (i = 0; i < 4; i++) kernels[i].user = t;
    t->budget_bytes = t->base_bytes + (uint64_t)(percent / 100.0 * (double)t->keep_all_bytes);
    desc.graph = &t->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = 4;
    desc.budget_bytes = t->budget_bytes;
    desc.base_bytes = t->base_bytes;
    return tl_init_run(&t->env, &desc, &t->run) ? fail_library(t, "--budget") : CODE_OK;
}

static int make_backend(trainer *t, engine *e) {
    tl_vk_backend_desc desc = { 0 };
    int i;
    t->env.alloc = count_alloc;
    t->env.release = count_release;
    desc.device.get_instance_proc = find_instance_function;
    desc.device.instance = e->instance;
    desc.device.physical = e->physical;
    desc.device.device = e->device;
    desc.device.queue = VK_NULL_HANDLE;  // record mode: the engine submits
    desc.device.queue_family = e->family;
    desc.chunk_bytes = 8u << 20;
    desc.batch_count = FRAMES_IN_FLIGHT;
    if (tl_vk_init_backend(&t->env, &desc, &t->backend)) return fail_library(t, "the backend");
    t->has_backend = 1;
    for (i = 0; i < FRAMES_IN_FLIGHT; i++) {
        tl_vk_buffer_desc picture = { 0 };
        picture.buffer = e->frames[i].picture.buffer;
        picture.usage = BUFFER_USAGE;
        picture.bytes = picture_bytes(e);
        picture.stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;  // where render_scene writes it
        picture.access = VK_ACCESS_SHADER_WRITE_BIT;
        if (tl_vk_add_buffer(&t->backend, &picture, &e->frames[i].block))
            return fail_library(t, "a picture");
    }
    return CODE_OK;
}

typedef struct start_push {
    uint32_t count, limit, seed;
    float    scale;
} start_push;

static tl_result start_range(trainer *t, tl_range range, uint32_t limit, uint32_t seed,
                             double scale) {
    binding b = { { { 0, 0, 0 } }, 0, 0 };
    start_push push;
    push.count = (uint32_t)(range.bytes / 4);
    push.limit = limit;
    push.seed = seed;
    push.scale = (float)scale;
    bind_range(&b, range, 1);
    return record_ordered(t, KERNEL_START, &b, &push, groups_of(push.count));
}

// The first numbers of the network, made on the device in a frame of their own.
static int start_network(trainer *t, engine *e) {
    frame *f = &e->frames[0];
    tl_result result;
    int32_t i;
    if (begin_commands(f->commands)) return CODE_DEVICE;
    result = tl_vk_start_frame(&t->backend, f->commands, &f->ticket);
    if (!result) result = t->backend.fill(t->backend.self, t->states[0], 0);  // the moments stay so
    if (!result) result = t->backend.fill(t->backend.self, t->gradient, 0);
    if (!result) result = start_range(t, t->frequencies, WIDTH, 1, 1.6);
    for (i = 0; i < LAYERS && !result; i++) {
        tl_range layer = find_layer(t->states[0], i);
        int last = i == LAYERS - 1;  // it begins near black: what the others begin with is noise
        result = start_range(t, layer, WIDTH * (last ? OUT_WIDTH : WIDTH), (uint32_t)i + 2,
                             last ? 0.02 : sqrt(2.0 / WIDTH));
    }
    if (!result) result = tl_vk_end_frame(&t->backend);
    f->is_open = f->ticket.value != 0;
    if (result) return fail_library(t, "the first numbers");
    if (check_vk(vk.EndCommandBuffer(f->commands), "vkEndCommandBuffer") || submit_commands(e, f) ||
        wait_frame(e, f))
        return CODE_DEVICE;
    f->is_submitted = 0;
    return tl_vk_retire_frame(&t->backend, f->ticket) ? fail_library(t, "the first frame") : CODE_OK;
}

static int make_trainer(trainer *t, engine *e, double percent) {
    int code = make_backend(t, e);
    if (!code) code = make_kernels(t);
    if (!code) code = add_range(t, 3 * NETWORK_FLOATS * 4, &t->states[0]);
    if (!code) code = add_range(t, 3 * NETWORK_FLOATS * 4, &t->states[1]);
    if (!code) code = add_range(t, NETWORK_FLOATS * 4, &t->gradient);
    if (!code) code = add_range(t, WIDTH * 4, &t->frequencies);
    if (!code) code = make_graph(t);
    if (!code) code = make_run(t, percent);
    if (!code) code = start_network(t, e);
    return code;
}

static void free_range(trainer *t, tl_range range) {
    if (!range.block) return;
    (void)t->backend.release(t->backend.self, range);
    (void)t->backend.free_block(t->backend.self, range.block);
}

// The device is idle; frames that are still open or under way have been dropped or retired.
static void free_trainer(trainer *t) {
    int i;
    tl_free_run(t->run);
    tl_free_graph(&t->env, &t->graph);
    if (!t->has_backend) return;
    for (i = 0; i < 2; i++) free_range(t, t->states[i]);
    free_range(t, t->gradient);
    free_range(t, t->frequencies);
    for (i = 0; i < KERNEL_COUNT; i++) tl_vk_free_kernel(&t->backend, t->kernels[i]);
    tl_vk_free_backend(&t->env, &t->backend);
}

// Copy the loss of a whole pass to where the host sees it: a command of the engine's, put behind what
// it reads by the library.
static tl_result copy_loss(trainer *t, const engine *e, frame *f) {
    VkBufferCopy copy = { 0, 0, 4 };
    VkDescriptorBufferInfo info;
    VkCommandBuffer commands;  // of the frame, once all that the library has enqueued stands in it
    tl_access access;
    tl_result result;
    access.range = t->loss;
    access.writes = 0;
    result = tl_vk_order(&t->backend, &access, 1, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         VK_ACCESS_TRANSFER_READ_BIT);
    if (!result) result = tl_vk_find_buffer(&t->backend, access.range, &info);
    if (!result) result = tl_vk_find_commands(&t->backend, &commands);
    if (result) return result;
    copy.srcOffset = info.offset;
    copy.dstOffset = 2 * picture_bytes(e);
    vk.CmdCopyBuffer(commands, info.buffer, f->readback.buffer, 1, &copy);
    f->has_loss = 1;
    return TL_OK;
}

// The pass is whole: hold what the run measured against the budget, and take an optimizer step.
static tl_result end_pass(trainer *t, const engine *e, frame *f) {
    tl_result result;
    t->in_pass = 0;
    tl_measure_run(t->run, &t->report);
    if (t->report.measured_peak_bytes != t->report.planned_peak_bytes ||
        t->base_bytes + t->report.measured_peak_bytes > t->budget_bytes) {
        snprintf(t->env.error.text, sizeof t->env.error.text, "a pass took %llu bytes, planned were %llu",
                 (unsigned long long)t->report.measured_peak_bytes,
                 (unsigned long long)t->report.planned_peak_bytes);
        return TL_ERROR_MISMATCH;
    }
    result = run_adam(t);
    if (result) return result;
    f->ended = 1;
    return copy_loss(t, e, f);
}

// What the kernels of a frame read beside their operands: behind what wrote it.
static tl_result begin_training(trainer *t) {
    tl_result result = order_range(t, t->picture);
    if (!result) result = order_range(t, t->frequencies);
    return result ? result : order_range(t, t->states[t->current]);
}

// One step of the pass, after starting one where none is under way.
static tl_result train_step(trainer *t, const engine *e, frame *f, int32_t *is_compute) {
    tl_run_step step;
    int32_t done = 0;
    tl_result result = t->in_pass ? TL_OK : tl_start_pass(t->run, 0);
    if (result) return result;
    t->in_pass = 1;
    result = tl_next_step(t->run, &step, &done);
    if (!result && done) result = end_pass(t, e, f);
    *is_compute = !result && step.is_compute;
    return *is_compute ? tl_run_step_kernel(t->run, &step) : result;
}

// Nothing that the range holds is wanted any more. So kernels may write to it, also where a frame
// that was thrown away had done so.
static tl_result renew_range(trainer *t, tl_range range) {
    tl_result result = t->backend.release(t->backend.self, range);
    return result ? result : t->backend.claim(t->backend.self, range);
}

// At most `slice` compute steps, and at most one optimizer step, because a frame that is thrown
// away takes back one. What such a frame had made is TL_ERROR_STALE: then the pass begins again.
static tl_result train_slice(trainer *t, const engine *e, frame *f, int32_t slice) {
    int32_t count = 0;
    while (count < slice) {
        int32_t is_compute = 0;
        tl_result result;
        t->kernel_result = TL_OK;
        result = train_step(t, e, f, &is_compute);
        if (result == TL_ERROR_STALE || t->kernel_result == TL_ERROR_STALE) {
            t->dropped_count++;
            t->in_pass = 0;
            is_compute = 1;  // it was tried: no slice goes on for ever
            result = renew_range(t, t->gradient);
            if (!result) result = renew_range(t, t->states[1 - t->current]);
            if (result) return result;
        } else if (result) {
            return result;
        }
        count += is_compute;
        if (f->ended && slice >= t->report.forward_count + t->report.backward_count) break;
    }
    return TL_OK;
}

// -- png: filtered rows under one Huffman code made for them, no matches --
//
// Deutsch, DEFLATE Compressed Data Format Specification, 1996, RFC 1951, section 3.2.7.

typedef struct bit_writer {
    uint8_t *bytes;
    size_t   count;
    uint32_t bits, held;
} bit_writer;

static void put_bits(bit_writer *w, uint32_t value, uint32_t count) {
    w->bits |= value << w->held;
    for (w->held += count; w->held >= 8; w->held -= 8, w->bits >>= 8)
        w->bytes[w->count++] = (uint8_t)w->bits;
}

static uint32_t add_crc(uint32_t crc, const uint8_t *bytes, size_t count) {
    size_t i;
    int k;
    for (i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (k = 0; k < 8; k++) crc = crc & 1 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
    }
    return crc;
}

enum { SYMBOL_COUNT = 257, END_SYMBOL = 256, LENGTH_LIMIT = 15 };

// Join the two rarest until one tree is left; returns the length of the longest code.
static int find_code_lengths(const uint64_t *uses, uint8_t *lengths) {
    uint64_t weights[2 * SYMBOL_COUNT];
    int parents[2 * SYMBOL_COUNT], count = SYMBOL_COUNT, longest = 0, i;
    memset(lengths, 0, SYMBOL_COUNT);
    for (i = 0; i < SYMBOL_COUNT; i++) weights[i] = uses[i];
    for (;; count++) {
        int a = -1, b = -1;
        for (i = 0; i < count; i++) {
            if (!weights[i]) continue;
            if (a < 0 || weights[i] < weights[a]) { b = a; a = i; }
            else if (b < 0 || weights[i] < weights[b]) b = i;
        }
        if (b < 0) { parents[a] = -1; break; }
        weights[count] = weights[a] + weights[b];
        weights[a] = weights[b] = 0;
        parents[a] = parents[b] = count;
    }
    for (i = 0; i < SYMBOL_COUNT; i++) {
        int at = i;
        if (!uses[i]) continue;
        for (; parents[at] >= 0; at = parents[at]) lengths[i]++;
        if (lengths[i] > longest) longest = lengths[i];
    }
    return longest;
}

// Codes in order of length, then of symbol, the first bit lowest as DEFLATE wants it.
static void find_codes(const uint8_t *lengths, uint16_t *codes) {
    uint32_t code = 0;
    int length, i, k;
    for (length = 1; length <= LENGTH_LIMIT; length++, code <<= 1)
        for (i = 0; i < SYMBOL_COUNT; i++) {
            if (lengths[i] != length) continue;
            for (codes[i] = 0, k = 0; k < length; k++)
                codes[i] = (uint16_t)((uint32_t)codes[i] << 1 | (code >> k & 1));
            code++;
        }
}

// One zlib stream; `to` has room for twice the bytes and 1 KiB.
static size_t deflate_bytes(const uint8_t *bytes, size_t count, uint8_t *to) {
    uint64_t uses[SYMBOL_COUNT] = { 0 };
    uint8_t lengths[SYMBOL_COUNT];
    uint16_t codes[SYMBOL_COUNT];
    bit_writer w = { NULL, 0, 0, 0 };
    uint32_t a = 1, b = 0;
    size_t i;
    for (i = 0; i < count; i++) {
        uses[bytes[i]]++;
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    uses[END_SYMBOL] = 1;
    while (find_code_lengths(uses, lengths) > LENGTH_LIMIT)
        for (i = 0; i < SYMBOL_COUNT; i++) uses[i] = (uses[i] + 1) / 2;
    find_codes(lengths, codes);
    w.bytes = to;
    put_bits(&w, 0x0178, 16);
    put_bits(&w, 5, 3);         // the last block, with codes of its own
    put_bits(&w, 0, 10);        // 257 symbols, one distance
    put_bits(&w, 15, 4);        // all 19 code length codes, in the order of the format:
    for (i = 0; i < 19; i++) put_bits(&w, i < 3 ? 0 : 4, 3);  // not 16 to 18, the others 4 bits
    for (i = 0; i <= SYMBOL_COUNT; i++) {
        uint32_t l = i < SYMBOL_COUNT ? lengths[i] : 0;       // of the distance: no match, no code
        put_bits(&w, (l & 1) << 3 | (l & 2) << 1 | (l & 4) >> 1 | l >> 3, 4);
    }
    for (i = 0; i < count; i++) put_bits(&w, codes[bytes[i]], lengths[bytes[i]]);
    put_bits(&w, codes[END_SYMBOL], lengths[END_SYMBOL]);
    put_bits(&w, 0, 7);         // the last byte is whole
    w.held = 0;
    for (i = 0; i < 4; i++) to[w.count++] = (uint8_t)((b << 16 | a) >> (24 - 8 * i));
    return w.count;
}

static uint8_t predict_paeth(int left, int up, int corner) {
    int guess = left + up - corner;
    int a = abs(guess - left), b = abs(guess - up), c = abs(guess - corner);
    if (a <= b && a <= c) return (uint8_t)left;
    return (uint8_t)(b <= c ? up : corner);
}

// Every row less what its neighbours predict.
static void filter_rows(const uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *to) {
    size_t stride = (size_t)width * 3, x, y;
    for (y = 0; y < height; y++) {
        const uint8_t *row = rgb + y * stride, *above = row - (y ? stride : 0);
        *to++ = 4;
        for (x = 0; x < stride; x++) {
            int left = x >= 3 ? row[x - 3] : 0, up = y ? above[x] : 0;
            int corner = x >= 3 && y ? above[x - 3] : 0;
            *to++ = (uint8_t)(row[x] - predict_paeth(left, up, corner));
        }
    }
}

static int write_chunk(FILE *file, const char *name, const uint8_t *bytes, size_t count) {
    uint8_t head[8], tail[4];
    uint32_t crc;
    int i;
    for (i = 0; i < 4; i++) head[i] = (uint8_t)(count >> (24 - 8 * i));
    memcpy(head + 4, name, 4);
    crc = ~add_crc(add_crc(0xffffffffu, head + 4, 4), bytes, count);
    for (i = 0; i < 4; i++) tail[i] = (uint8_t)(crc >> (24 - 8 * i));
    return fwrite(head, 1, 8, file) == 8 && fwrite(bytes, 1, count, file) == count &&
           fwrite(tail, 1, 4, file) == 4;
}

static int write_png(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height) {
    static const uint8_t signature[8] = { 0x89, 'P', 'N', 'G', 13, 10, 26, 10 };
    size_t count = ((size_t)width * 3 + 1) * height;
    uint8_t header[13] = { 0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0 };  // 8 bits, colours
    uint8_t *filtered = (uint8_t *)malloc(count), *packed = (uint8_t *)malloc(2 * count + 1024);
    tl_file_sink target;
    tl_sink sink;
    FILE *file = NULL;
    int i, written = 0;
    if (filtered && packed && !tl_init_file_sink(NULL, path, &target, &sink)) file = (FILE *)target.file;
    if (file) {
        for (i = 0; i < 4; i++) {
            header[i] = (uint8_t)(width >> (24 - 8 * i));
            header[4 + i] = (uint8_t)(height >> (24 - 8 * i));
        }
        filter_rows(rgb, width, height, filtered);
        count = deflate_bytes(filtered, count, packed);
        written = fwrite(signature, 1, 8, file) == 8 && write_chunk(file, "IHDR", header, 13) &&
                  write_chunk(file, "IDAT", packed, count) && write_chunk(file, "IEND", packed, 0);
        written = tl_finish_file_sink(NULL, &target, written ? TL_OK : TL_ERROR_IO) == TL_OK;
    }
    free(filtered);
    free(packed);
    return written ? CODE_OK : fail(CODE_INPUT, "%s: %s", path, strerror(errno));
}

// -- pictures: what a frame drew, against what it should have drawn --

enum { PANEL_COUNT = 4, PATH_SIZE = 1024 };

typedef struct options {
    int32_t     frames, width, height, batch, slice, device, drop;
    double      budget;
    const char *out;
    int32_t     validates, verbose;
} options;

typedef struct program {
    options  o;
    engine   e;
    trainer  t;
    uint8_t *panels[PANEL_COUNT];   // target, learned early, on the way, last
    double   first_psnr, psnr, loss;
    double  *with_ms, *without_ms;  // device time of frames that train, and that do not
    double  *record_ms;             // host time of the library; all from the fourth frame on
    int32_t  with_count, without_count, record_count, draw_count;
    int32_t  first_update_count;    // when the first picture was drawn
} program;

static void store_pixels(const float *from, uint32_t pixels, uint8_t *rgb) {
    uint32_t i, k;
    for (i = 0; i < pixels; i++)
        for (k = 0; k < 3; k++) {
            float value = from[i * 4 + k];
            value = value > 0.0f ? value : 0.0f;  // also where it is no number
            rgb[i * 3 + k] = (uint8_t)((value < 1.0f ? value : 1.0f) * 255.0f + 0.5f);
        }
}

// Peak signal to noise of 8-bit channels, in dB.
static double find_psnr(const uint8_t *a, const uint8_t *b, size_t count) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < count; i++) sum += (double)(a[i] - b[i]) * (a[i] - b[i]);
    return sum > 0.0 ? 10.0 * log10(255.0 * 255.0 * (double)count / sum) : 99.0;
}

// Write panels side by side, four dark columns between them.
static int write_panels(const program *p, const char *name, const int32_t *numbers,
                        uint32_t count) {
    uint32_t width = p->e.width, height = p->e.height, whole = count * width + (count - 1) * 4;
    uint32_t x, y, i;
    uint8_t *rgb = (uint8_t *)malloc((size_t)whole * height * 3);
    char path[PATH_SIZE];
    int code;
    if (!rgb) return fail(CODE_INPUT, "no memory for a picture");
    memset(rgb, 24, (size_t)whole * height * 3);
    for (i = 0; i < count; i++)
        for (y = 0; y < height; y++)
            for (x = 0; x < width; x++)
                memcpy(rgb + ((size_t)y * whole + i * (width + 4) + x) * 3,
                       p->panels[numbers[i]] + ((size_t)y * width + x) * 3, 3);
    snprintf(path, sizeof path, "%s/%s", p->o.out, name);
    code = write_png(path, rgb, whole, height);
    free(rgb);
    return code;
}

static int take_pictures(program *p, const frame *f) {
    static const int32_t pair[2] = { 0, 3 };
    uint32_t pixels = p->e.width * p->e.height;
    char name[32];
    store_pixels((const float *)f->readback.mapped, pixels, p->panels[0]);
    store_pixels((const float *)f->readback.mapped + (size_t)pixels * 4, pixels, p->panels[3]);
    p->psnr = find_psnr(p->panels[0], p->panels[3], (size_t)pixels * 3);
    if (p->draw_count == 0) {
        p->first_psnr = p->psnr;
        p->first_update_count = f->update_count;
        memcpy(p->panels[1], p->panels[3], (size_t)pixels * 3);
    }
    if (p->draw_count <= 2) memcpy(p->panels[2], p->panels[3], (size_t)pixels * 3);
    p->draw_count++;
    snprintf(name, sizeof name, "engine_%04d.png", (int)f->number + 1);
    return write_panels(p, name, pair, 2);
}

// -- measures: what a frame took --

// What the library says that it did. Ours, `seen`, does not know of it.
static counts find_own_counts(const trainer *t) {
    tl_vk_counters own;
    counts c;
    tl_vk_measure(&t->backend, &own);
    c.submits = own.submit_count;
    c.waits = own.host_wait_count;
    c.memory_allocations = own.memory_count;
    c.host_allocations = own.host_alloc_count;
    return c;
}

static counts subtract_counts(counts a, counts b) {
    a.submits -= b.submits;
    a.waits -= b.waits;
    a.memory_allocations -= b.memory_allocations;
    a.host_allocations -= b.host_allocations;
    return a;
}

static counts find_larger_counts(counts a, counts b) {
    if (b.submits > a.submits) a.submits = b.submits;
    if (b.waits > a.waits) a.waits = b.waits;
    if (b.memory_allocations > a.memory_allocations) a.memory_allocations = b.memory_allocations;
    if (b.host_allocations > a.host_allocations) a.host_allocations = b.host_allocations;
    return a;
}

static int read_time(program *p, const frame *f, int32_t slot) {
    uint64_t ticks[2];
    double ms;
    if (!p->e.times || f->number < FRAMES_IN_FLIGHT) return CODE_OK;
    if (check_vk(vk.GetQueryPoolResults(p->e.device, p->e.times, 2 * (uint32_t)slot, 2,
                                        sizeof ticks, ticks, 8,
                                        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                 "vkGetQueryPoolResults"))
        return CODE_DEVICE;
    ms = (double)(ticks[1] - ticks[0]) * (double)p->e.properties.limits.timestampPeriod * 1e-6;
    if (f->draws) return CODE_OK;  // it also draws: neither one nor the other
    if (f->trains) p->with_ms[p->with_count++] = ms;
    else p->without_ms[p->without_count++] = ms;
    return CODE_OK;
}

static void print_head(void) {
    printf("                             in this frame, by the library:\n"
           " frame  updates     loss     PSNR  submits  waits  vkAlloc  malloc  record ms\n");
}

static void print_frame(const program *p, const frame *f, counts c) {
    printf("%6d %8d %8.5f", (int)f->number + 1, (int)f->update_count, p->loss);
    if (p->draw_count) printf(" %5.1f dB", p->psnr);
    else printf("        -");
    printf(" %8d %6d %8d %7d %10.2f\n", (int)c.submits, (int)c.waits, (int)c.memory_allocations,
           (int)c.host_allocations, f->record_ms);
}

// The device is through with this frame: tell the library, read what it left.
static int finish_frame(program *p, frame *f) {
    int code = wait_frame(&p->e, f);
    if (code) return code;
    f->is_submitted = 0;
    if (tl_vk_retire_frame(&p->t.backend, f->ticket)) return fail_library(&p->t, "a frame");
    code = read_time(p, f, (int32_t)(f - p->e.frames));
    if (!code && f->has_loss) {
        float loss;
        memcpy(&loss, (const char *)f->readback.mapped + 2 * picture_bytes(&p->e), sizeof loss);
        p->loss = loss;
    }
    if (!code && f->draws) code = take_pictures(p, f);
    if (!code && (p->o.verbose || f->draws)) print_frame(p, f, f->counted);
    return code;
}

// -- loop: a frame is rendered, trained in, drawn and submitted --

// The engine's own pipeline reads the weights where the library keeps them.
static tl_result draw_learned(program *p, frame *f) {
    engine *e = &p->e;
    VkDescriptorBufferInfo infos[3];
    tl_access accesses[2];
    uint32_t push[3];
    tl_result result;
    accesses[0].range = p->t.frequencies;
    accesses[1].range = p->t.states[p->t.current];
    accesses[0].writes = accesses[1].writes = 0;
    result = tl_vk_order(&p->t.backend, accesses, 2, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_ACCESS_SHADER_READ_BIT);
    if (!result) result = tl_vk_find_buffer(&p->t.backend, accesses[0].range, &infos[0]);
    if (!result) result = tl_vk_find_buffer(&p->t.backend, accesses[1].range, &infos[1]);
    if (result) return result;
    infos[2].buffer = f->learned.buffer;
    infos[2].offset = 0;
    infos[2].range = VK_WHOLE_SIZE;
    write_set(e, f->draw_set, infos, 3);
    push[0] = e->width * e->height;
    push[1] = e->width;
    push[2] = LAYERS;
    dispatch(f->commands, &e->draw, f->draw_set, push, sizeof push, (push[0] + 15) / 16, 1);
    return TL_OK;
}

static void copy_pictures(engine *e, frame *f) {
    VkBufferCopy copy = { 0, 0, 0 };
    copy.size = picture_bytes(e);
    put_barrier(f->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    vk.CmdCopyBuffer(f->commands, f->picture.buffer, f->readback.buffer, 1, &copy);
    copy.dstOffset = copy.size;
    vk.CmdCopyBuffer(f->commands, f->learned.buffer, f->readback.buffer, 1, &copy);
}

// The library's part of the frame: nothing here submits or waits. The first frame of every slot
// trains a whole pass, so that the library's tables have grown when the fourth frame begins.
static tl_result record_training(program *p, frame *f) {
    trainer *t = &p->t;
    tl_result result = tl_vk_start_frame(&t->backend, f->commands, &f->ticket), closed;
    if (result) return result;
    f->is_open = 1;
    t->picture.block = f->block;
    t->picture.offset = 0;
    t->picture.bytes = picture_bytes(&p->e);
    if (f->trains) result = begin_training(t);
    if (f->trains && !result)
        result = train_slice(t, &p->e, f, f->number < FRAMES_IN_FLIGHT ? WHOLE_PASS : p->o.slice);
    if (!result && f->draws) result = draw_learned(p, f);
    closed = tl_vk_end_frame(&t->backend);
    f->update_count = t->update_count;
    return result ? result : closed;
}

// This frame is not going to be submitted. Its optimizer step, if it had one, has not happened.
static int drop_frame(program *p, frame *f) {
    trainer *t = &p->t;
    f->is_open = 0;
    if (tl_vk_drop_frame(&t->backend, f->ticket)) return fail_library(t, "--drop");
    if (f->ended) {
        t->current = 1 - t->current;
        t->update_count--;
        if (renew_range(t, t->states[1 - t->current])) return fail_library(t, "--drop");
    }
    printf("%6d  thrown away, and %s with it\n", (int)f->number + 1,
           f->ended ? "an update" : f->trains ? "a part of a pass" : "no training");
    return CODE_OK;
}

static int record_frame(program *p, frame *f) {
    engine *e = &p->e;
    uint32_t query = 2 * (uint32_t)(f - e->frames);
    double start;
    if (begin_commands(f->commands)) return CODE_DEVICE;
    if (e->times) {
        vk.CmdResetQueryPool(f->commands, e->times, query, 2);
        vk.CmdWriteTimestamp(f->commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, e->times, query);
    }
    render_scene(e, f);
    start = now_ms();
    if (record_training(p, f)) return fail_library(&p->t, "a frame");
    f->record_ms = now_ms() - start;
    if (f->draws) copy_pictures(e, f);
    put_barrier(f->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    if (e->times)
        vk.CmdWriteTimestamp(f->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, e->times,
                             query + 1);
    return check_vk(vk.EndCommandBuffer(f->commands), "vkEndCommandBuffer");
}

// Every tenth frame trains nothing, so that both kinds of frames are timed side by side.
static int run_frame(program *p, int32_t number) {
    frame *f = &p->e.frames[number % FRAMES_IN_FLIGHT];
    counts before = seen, own_before = find_own_counts(&p->t), c;
    int code = f->is_submitted ? finish_frame(p, f) : CODE_OK;
    if (code) return code;
    f->number = number;
    f->trains = number % 10 != 9;
    f->draws = number % 30 == 29 || number == p->o.frames - 1;
    f->has_loss = f->ended = 0;
    code = record_frame(p, f);
    if (code) return code;
    c = find_larger_counts(subtract_counts(seen, before),
                           subtract_counts(find_own_counts(&p->t), own_before));
    f->counted = c;
    if (number >= FRAMES_IN_FLIGHT) {
        if (c.submits || c.waits || c.memory_allocations || c.host_allocations)
            return fail(CODE_MISMATCH, "frame %d: %d submits, %d waits, %d vkAllocateMemory, %d mallocs",
                        (int)number + 1, (int)c.submits, (int)c.waits, (int)c.memory_allocations,
                        (int)c.host_allocations);
        p->record_ms[p->record_count++] = f->record_ms;
    }
    return number + 1 == p->o.drop ? drop_frame(p, f) : submit_commands(&p->e, f);
}

// In the order in which they were submitted.
static int finish_frames(program *p) {
    int code = CODE_OK, i;
    for (;;) {
        frame *oldest = NULL;
        for (i = 0; i < FRAMES_IN_FLIGHT; i++) {
            frame *f = &p->e.frames[i];
            if (f->is_submitted && (!oldest || f->number < oldest->number)) oldest = f;
        }
        if (!oldest || code) return code;
        code = finish_frame(p, oldest);
    }
}

// -- options --

static const char usage[] =
    "usage: 03_vulkan_engine [options]\n"
    "  --frames N     frames to render (300)\n"
    "  --width N      of the picture, 16 to 1024 (120)\n"
    "  --height N     (90)\n"
    "  --batch N      pixels a training step, a multiple of 64; 0 = a quarter, at most 2048 (0)\n"
    "  --slice N      steps of the pass that a frame records (18)\n"
    "  --budget P     activations and gradients, percent of what keeping all takes (70)\n"
    "  --drop N       throw the commands of frame N away instead of submitting them\n"
    "  --device N     the Nth device; 0 = the first GPU, else the first of any kind (0)\n"
    "  --out DIR      where the pictures go (build/engine)\n"
    "  --validate     with the validation layer: a message is a failure\n"
    "  --verbose      a line every frame, not every 30\n"
    "  --help         this list\n"
    "Codes: 0 done, 1 input or validation, 2 Vulkan or the library, 3 a figure that is not as it "
    "must be.\n";

typedef struct number_option {
    const char *name;
    size_t      offset;
    int32_t     least, most;
} number_option;

static int parse_number(options *o, const char *name, const char *value, int *code) {
    static const number_option rows[] = {
        { "--frames", offsetof(options, frames), 1, 1000000 },
        { "--width", offsetof(options, width), 16, 1024 },
        { "--height", offsetof(options, height), 16, 1024 },
        { "--batch", offsetof(options, batch), 0, 65536 },
        { "--slice", offsetof(options, slice), 1, 1000 },
        { "--drop", offsetof(options, drop), 1, 1000000 },
        { "--device", offsetof(options, device), 0, 16 },
    };
    size_t i;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *end;
        long number;
        int32_t stored;
        if (strcmp(name, rows[i].name) != 0) continue;
        number = value ? strtol(value, &end, 10) : 0;
        if (!value || end == value || *end || number < rows[i].least || number > rows[i].most)
            *code = fail(CODE_INPUT, "%s: must be %d to %d", name, (int)rows[i].least,
                         (int)rows[i].most);
        stored = (int32_t)number;
        memcpy((char *)o + rows[i].offset, &stored, sizeof stored);
        return 1;
    }
    return 0;
}

static int parse_options(options *o, int count, char **argv, int *done) {
    int i, code = CODE_OK;
    o->frames = 300;
    o->width = 120;
    o->height = 90;
    o->slice = 18;
    o->budget = 70.0;
    o->out = "build/engine";
    for (i = 1; i < count && !code; i++) {
        const char *name = argv[i], *value = i + 1 < count ? argv[i + 1] : NULL;
        if (!strcmp(name, "--help")) {
            *done = 1;
            fputs(usage, stdout);
            return CODE_OK;
        }
        if (!strcmp(name, "--validate")) { o->validates = 1; continue; }
        if (!strcmp(name, "--verbose")) { o->verbose = 1; continue; }
        i++;
        if (parse_number(o, name, value, &code)) continue;
        if (!strcmp(name, "--budget")) {
            char *end = NULL;
            o->budget = value ? strtod(value, &end) : 0.0;
            if (!value || end == value || *end || !(o->budget > 0.0 && o->budget <= 1000.0))
                return fail(CODE_INPUT, "--budget: must be a percentage above 0");
        } else if (!strcmp(name, "--out") && value && *value) {
            o->out = value;
        } else {
            return fail(CODE_INPUT,
                        "%s: unknown option, or its value is missing; --help lists them", name);
        }
    }
    if (code) return code;
    if (o->batch % 64) return fail(CODE_INPUT, "--batch: must be a multiple of 64");
    if (o->batch > o->width * o->height)
        return fail(CODE_INPUT, "--batch: must be at most the pixels of the picture");
    if (!o->batch) {
        o->batch = o->width * o->height / 4 / 64 * 64;
        if (o->batch > 2048) o->batch = 2048;
    }
    return CODE_OK;
}

// -- main --

// The folder and those above it.
static int make_folder(const char *path) {
    char part[PATH_SIZE];
    size_t i, length = strlen(path);
    if (length + 32 > sizeof part) return fail(CODE_INPUT, "--out: the path is too long");
    for (i = 1; i <= length; i++) {
        if (i < length && path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = 0;
#ifdef _WIN32
        if (_mkdir(part) != 0 && errno != EEXIST)
            return fail(CODE_INPUT, "%s: %s", part, strerror(errno));
#else
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return fail(CODE_INPUT, "%s: %s", part, strerror(errno));
#endif
    }
    return CODE_OK;
}

static int make_program(program *p) {
    size_t frames = (size_t)p->o.frames, pixels = (size_t)p->o.width * (size_t)p->o.height;
    int i, code;
    p->with_ms = (double *)malloc(3 * frames * sizeof(double));
    p->panels[0] = (uint8_t *)calloc(PANEL_COUNT, pixels * 3);
    if (!p->with_ms || !p->panels[0]) return fail(CODE_INPUT, "no memory for the measures");
    p->without_ms = p->with_ms + frames;
    p->record_ms = p->without_ms + frames;
    for (i = 1; i < PANEL_COUNT; i++) p->panels[i] = p->panels[0] + (size_t)i * pixels * 3;
    code = make_folder(p->o.out);
    p->e.width = (uint32_t)p->o.width;
    p->e.height = (uint32_t)p->o.height;
    if (!code) code = make_engine(&p->e, (int)p->o.device, (int)p->o.validates);
    if (code) return code;
    p->t.batch = (uint32_t)p->o.batch;
    p->t.pixels = (uint32_t)pixels;
    p->t.width = p->e.width;
    p->t.rate = 0.006f;
    return make_trainer(&p->t, &p->e, p->o.budget);
}

static void free_program(program *p) {
    int i;
    if (p->e.device && vk.DeviceWaitIdle(p->e.device) == VK_ERROR_DEVICE_LOST && p->t.has_backend)
        tl_vk_lose_device(&p->t.backend);  // it cannot see that: all its work is the engine's to submit
    for (i = 0; p->t.has_backend && i < FRAMES_IN_FLIGHT; i++) {  // where something failed
        frame *f = &p->e.frames[i];
        if (f->is_open) (void)tl_vk_drop_frame(&p->t.backend, f->ticket);
        if (f->is_submitted) (void)tl_vk_retire_frame(&p->t.backend, f->ticket);
    }
    free_trainer(&p->t);
    free_engine(&p->e);
    free(p->with_ms);
    free(p->panels[0]);
}

static void print_plan(const program *p) {
    const trainer *t = &p->t;
    printf("%s; %d x %d pixels, %d a training step, %d weights\n", p->e.properties.deviceName,
           (int)p->o.width, (int)p->o.height, (int)t->batch, LAYER_FLOATS);
    printf("budget %d KiB: %d KiB for the network, and %.0f %% of the %d KiB that keeping all takes\n\n",
           (int)(t->budget_bytes / 1024), (int)(t->base_bytes / 1024), p->o.budget,
           (int)(t->keep_all_bytes / 1024));
}

static int print_end(program *p) {
    static const int32_t all[PANEL_COUNT] = { 0, 1, 2, 3 };
    const tl_run_report *r = &p->t.report;
    double with = find_median(p->with_ms, p->with_count);
    double without = find_median(p->without_ms, p->without_count);
    tl_vk_counters own;
    tl_vk_measure(&p->t.backend, &own);
    printf("\n%d updates, %d passes begun again\n"
           "peak of a pass %d KiB, planned %d KiB; %d of its %d forwards are made again\n",
           (int)p->t.update_count, (int)p->t.dropped_count, (int)(r->measured_peak_bytes / 1024),
           (int)(r->planned_peak_bytes / 1024), (int)r->recompute_count, (int)r->forward_count);
    if (with > 0.0 && without > 0.0)
        printf("device time of a frame: %.2f ms without training, %.2f ms with (medians)\n",
               without, with);
    printf("host time of the library in a frame: %.3f ms (median); %.1f kernels, %.1f barriers\n",
           find_median(p->record_ms, p->record_count),
           (double)own.kernel_count / (double)own.frame_count,
           (double)own.barrier_count / (double)own.frame_count);
    return p->draw_count ? write_panels(p, "engine.png", all, PANEL_COUNT) : CODE_OK;
}

// What a run must have shown.
static int check_end(const program *p) {
    const trainer *t = &p->t;
    const tl_run_report *r = &t->report;
    if (p->e.messages) return fail(CODE_INPUT, "--validate: %d messages", p->e.messages);
    if (interrupted) return CODE_OK;
    if (t->update_count && t->budget_bytes < t->base_bytes + t->keep_all_bytes &&
        r->recompute_count < 1)
        return fail(CODE_MISMATCH, "no forward was made again below the bytes of keeping all");
    if (t->update_count >= p->first_update_count + 10 && p->psnr <= p->first_psnr)
        return fail(CODE_MISMATCH, "the picture learned nothing: %.1f dB, then %.1f dB",
                    p->first_psnr, p->psnr);
    if (p->o.frames >= 300 && p->o.width * p->o.height <= 128 * 128 && p->psnr < 25.0)
        return fail(CODE_MISMATCH, "%.1f dB after %d frames: 25 were expected", p->psnr,
                    (int)p->o.frames);
    return CODE_OK;
}

static int run(program *p) {
    int32_t number;
    int code = make_program(p), ended;
    if (code) return code;
    print_plan(p);
    print_head();
    for (number = 0; number < p->o.frames && !code && !interrupted; number++) {
        code = run_frame(p, number);
        fflush(stdout);
    }
    ended = code ? code : finish_frames(p);
    if (!ended) ended = print_end(p);
    return ended ? ended : check_end(p);
}

int main(int count, char **argv) {
    static program p;
    int done = 0, code = parse_options(&p.o, count, argv, &done);
    if (code || done) return code;
    signal(SIGINT, on_interrupt);
    code = run(&p);
    free_program(&p);
    if (!code && p.e.messages) code = fail(CODE_INPUT, "--validate: %d messages", p.e.messages);
    return code;
}
