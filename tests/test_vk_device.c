// A device of one's own: found, made, refused; and memory of an allocator that is not ours.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_support.h"
#include "support/support.h"
#include "support/vk_shim.c"

static tl_vk_device_desc shim_desc(void) {
    tl_vk_device_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.get_instance_proc = vkshim_get_instance_proc;
    return desc;
}

static void devices_are_listed_and_counted(void **state) {
    tl_vk_device_desc desc = shim_desc();
    tl_vk_device_info info;
    tl_env env = {0};
    int32_t count, again;
    (void)state;
    if (!vkt_has_vulkan("devices_are_listed_and_counted")) skip();
    vkshim_reset(NULL);
    assert_int_equal(tl_vk_read_devices(&env, &desc, NULL, 0, &count), TL_OK);
    assert_true(count >= 1);
    assert_int_equal(tl_vk_read_devices(&env, &desc, &info, 1, &again), TL_OK);
    assert_int_equal(again, count);
    assert_true(info.name[0] && info.has_compute && info.device_bytes > 0);
}

static void a_device_is_made_and_works(void **state) {
    tl_vk_device_desc desc = shim_desc();
    tl_vk_backend_desc backend_desc = {0};
    vkshim_config config;
    tl_backend backend;
    tl_env env = {0};
    int transfers;
    (void)state;
    if (!vkt_has_vulkan("a_device_is_made_and_works")) skip();
    for (transfers = 0; transfers < 2; transfers++) {
        vkshim_counts counts;
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.transfer_family = 1;
        vkshim_reset(&config);
        desc.enable_transfer = transfers;
        desc.number = transfers;
        if (tl_vk_init_device(&env, &desc, &backend_desc.device)) fail_msg("%s", env.error.text);
        assert_int_equal(backend_desc.device.transfer_queue != VK_NULL_HANDLE, transfers);
        assert_int_equal(tl_vk_init_backend(&env, &backend_desc, &backend), TL_OK);
        assert_int_equal(tl_vk_free_device(&env, &backend_desc.device), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text,
                            "tl_vk_free_device: device: still in use (backends: 1): free those first");
        assert_int_equal(tl_vk_free_backend(&env, &backend), TL_OK);
        assert_int_equal(tl_vk_free_device(&env, &backend_desc.device), TL_OK);
        assert_int_equal(tl_vk_free_device(&env, &backend_desc.device), TL_OK);  // a freed one is none
        vkshim_report(&counts);
        assert_int_equal(counts.leak_count, 0);
        assert_int_equal(counts.violation_count, 0);
    }
}

// On GPUs whose queues for video transfer, too, those for transfers alone are taken: both of them.
static void queues_for_video_are_not_taken_for_copies(void **state) {
    tl_vk_device_desc desc = shim_desc();
    vkshim_config config;
    tl_vk_device device;
    tl_env env = {0};
    (void)state;
    if (!vkt_has_vulkan("queues_for_video_are_not_taken_for_copies")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    vkshim_add_engines(&config);
    desc.enable_transfer = 1;
    vkshim_reset(&config);
    if (tl_vk_init_device(&env, &desc, &device)) fail_msg("%s", env.error.text);
    assert_int_equal(device.transfer_family, 1);
    assert_true(device.transfer_queue && device.upload_queue && device.transfer_queue != device.upload_queue);
    assert_int_equal(tl_vk_free_device(&env, &device), TL_OK);
    config.families[1].queue_count = 1;
    config.families[4].flags = VK_QUEUE_TRANSFER_BIT;       // one more: the first is taken
    vkshim_reset(&config);
    if (tl_vk_init_device(&env, &desc, &device)) fail_msg("%s", env.error.text);
    assert_true(device.transfer_family == 1 && device.transfer_queue && !device.upload_queue);
    assert_int_equal(tl_vk_free_device(&env, &device), TL_OK);
    config.families[1].flags |= 0x20;
    config.families[4].flags |= 0x40;
    vkshim_reset(&config);
    if (tl_vk_init_device(&env, &desc, &device)) fail_msg("%s", env.error.text);
    assert_true(!device.transfer_queue && !device.upload_queue);
    assert_int_equal(tl_vk_free_device(&env, &device), TL_OK);
}

static void what_is_not_there_is_refused_with_a_sentence(void **state) {
    static const char *const missing[] = { "vkDestroyDevice", "vkCreateInstance", "vkGetDeviceQueue",
                                           "vkEnumeratePhysicalDevices" };
    tl_vk_device_desc desc = shim_desc();
    vkshim_config config;
    vkshim_counts counts;
    tl_vk_device device;
    tl_env env = {0};
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("what_is_not_there_is_refused_with_a_sentence")) skip();
    vkshim_reset(NULL);
    desc.number = 99;
    assert_int_equal(tl_vk_init_device(&env, &desc, &device), TL_ERROR_NOT_FOUND);
    assert_non_null(strstr(env.error.text, "number"));
    desc.number = 0;
    desc.get_instance_proc = NULL;
    assert_int_equal(tl_vk_init_device(&env, &desc, &device), TL_ERROR_NOT_FOUND);
    assert_non_null(strstr(env.error.text, "loader"));
    desc = shim_desc();
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.family_flags = VK_QUEUE_TRANSFER_BIT;
    vkshim_reset(&config);
    assert_int_equal(tl_vk_init_device(&env, &desc, &device), TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(env.error.text, "no queue that computes"));
    for (i = 0; i < sizeof missing / sizeof *missing; i++) {
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.missing = &missing[i];
        config.missing_count = 1;
        vkshim_reset(&config);
        assert_int_equal(tl_vk_init_device(&env, &desc, &device), TL_ERROR_UNSUPPORTED);
        assert_null(device.owned);
        vkshim_report(&counts);
        assert_int_equal(counts.live[VKSHIM_DEVICE], 0);
        assert_int_equal(counts.violation_count, 0);
    }
}

static void versions_and_features_are_taken_as_they_are(void **state) {
    tl_vk_device_desc desc = shim_desc();
    vkshim_config config;
    tl_vk_device device;
    tl_env env = {0};
    (void)state;
    if (!vkt_has_vulkan("versions_and_features_are_taken_as_they_are")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.instance_version = config.api_version = VK_API_VERSION_1_0;
    vkshim_reset(&config);
    assert_int_equal(tl_vk_init_device(&env, &desc, &device), TL_OK);
    assert_false(device.timeline_enabled);
    tl_vk_free_device(&env, &device);
    vkshim_default(&config, VKSHIM_MACHINE_REAL);
    config.hides_timeline = 1;
    vkshim_reset(&config);
    assert_int_equal(tl_vk_init_device(&env, &desc, &device), TL_OK);
    assert_false(device.timeline_enabled);
    tl_vk_free_device(&env, &device);
}

static void every_call_that_fails_leaves_nothing(void **state) {
    tl_vk_device_desc desc = shim_desc();
    uint64_t at;
    int injected = 1;
    (void)state;
    if (!vkt_has_vulkan("every_call_that_fails_leaves_nothing")) skip();
    for (at = 1; injected; at++) {
        vkshim_config config;
        vkshim_counts counts;
        tl_vk_device device;
        tl_env env = {0};
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.fail_any_at = at;
        vkshim_reset(&config);
        if (tl_vk_init_device(&env, &desc, &device)) assert_true(env.error.text[0] != 0);
        tl_vk_free_device(&env, &device);
        vkshim_report(&counts);
        injected = counts.injected_count != 0;
        assert_int_equal(counts.live[VKSHIM_DEVICE] + counts.live[VKSHIM_INSTANCE] + counts.leak_count, 0);
    }
    assert_true(at > 3);
}

// -- machines with a loader that answers otherwise --

// Functions that are found in place of the shim's; NULL = none is found.
typedef struct replacement { const char *name; PFN_vkVoidFunction function; } replacement;
static replacement replaced;
static VkInstance made_instance;

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_replaced(VkInstance instance, const char *name) {
    if (instance) made_instance = instance;
    if (replaced.name && !strcmp(replaced.name, name)) return replaced.function;
    return vkshim_get_instance_proc(instance, name);
}

static VKAPI_ATTR VkResult VKAPI_CALL no_version(uint32_t *version) {
    *version = 0;
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

static VKAPI_ATTR VkResult VKAPI_CALL no_devices(VkInstance instance, uint32_t *count, VkPhysicalDevice *devices) {
    (void)instance;
    (void)devices;
    *count = 0;
    return VK_SUCCESS;
}

// A device came between the two calls: as many as there is room for, and VK_INCOMPLETE.
static VKAPI_ATTR VkResult VKAPI_CALL one_device_more(VkInstance instance, uint32_t *count, VkPhysicalDevice *devices) {
    PFN_vkEnumeratePhysicalDevices list =
        (PFN_vkEnumeratePhysicalDevices)vkshim_get_instance_proc(instance, "vkEnumeratePhysicalDevices");
    VkResult result = list(instance, count, devices);
    return result == VK_SUCCESS && devices ? VK_INCOMPLETE : result;
}

// The first family twice, and more without a queue than are considered.
static VKAPI_ATTR void VKAPI_CALL many_families(VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties *list) {
    PFN_vkGetPhysicalDeviceQueueFamilyProperties get = (PFN_vkGetPhysicalDeviceQueueFamilyProperties)
        vkshim_get_instance_proc(made_instance, "vkGetPhysicalDeviceQueueFamilyProperties");
    uint32_t one = 1, i;
    if (!list) { *count = 40; return; }
    get(physical, &one, list);
    for (i = 1; i < *count; i++) {
        list[i] = list[0];
        if (i > 1) list[i].queueCount = 0;
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL no_extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count,
                                                    VkExtensionProperties *list) {
    (void)physical;
    (void)layer;
    (void)list;
    *count = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL no_messenger(VkInstance instance, const VkDebugUtilsMessengerCreateInfoEXT *info,
                                                   const VkAllocationCallbacks *callbacks, VkDebugUtilsMessengerEXT *messenger) {
    (void)instance;
    (void)info;
    (void)callbacks;
    *messenger = VK_NULL_HANDLE;
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL no_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    (void)severity;
    (void)types;
    (void)data;
    (void)user;
    return VK_FALSE;
}

static tl_vk_device_desc replaced_desc(const char *name, PFN_vkVoidFunction function) {
    tl_vk_device_desc desc = shim_desc();
    replaced.name = name;
    replaced.function = function;
    desc.get_instance_proc = find_replaced;
    return desc;
}

static void expect_device(const tl_vk_device_desc *desc, int has_timeline) {
    tl_vk_device device;
    tl_env env = {0};
    if (tl_vk_init_device(&env, desc, &device)) fail_msg("%s", env.error.text);
    assert_int_equal(device.timeline_enabled, has_timeline);
    assert_int_equal(tl_vk_free_device(&env, &device), TL_OK);
}

static void expect_no_device(const tl_vk_device_desc *desc, tl_result code, const char *text) {
    vkshim_counts counts;
    tl_vk_device device;
    tl_env env = {0};
    assert_int_equal(tl_vk_init_device(&env, desc, &device), code);
    if (strcmp(env.error.text, text)) fail_msg("%s", env.error.text);
    assert_null(device.owned);
    vkshim_report(&counts);
    assert_int_equal(counts.live[VKSHIM_DEVICE] + counts.leak_count + counts.violation_count, 0);
}

static void a_loader_that_answers_otherwise_is_believed(void **state) {
    static const char *const needed[] = {
        "vkGetPhysicalDeviceProperties", "vkGetPhysicalDeviceFeatures", "vkGetPhysicalDeviceMemoryProperties",
        "vkGetPhysicalDeviceQueueFamilyProperties", "vkEnumerateDeviceExtensionProperties", "vkCreateDevice"
    };
    tl_vk_device_desc desc;
    tl_vk_device_info infos[4];
    tl_env env = {0};
    int32_t count = 0;
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("a_loader_that_answers_otherwise_is_believed")) skip();
    vkshim_reset(NULL);
    desc = replaced_desc("vkEnumerateInstanceVersion", (PFN_vkVoidFunction)no_version);     // so it is 1.0
    desc.api_version = VK_API_VERSION_1_2;
    expect_device(&desc, 0);
    desc = replaced_desc("vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)no_devices);
    expect_no_device(&desc, TL_ERROR_NOT_FOUND, "tl_vk_init_device: no Vulkan device");
    assert_int_equal(tl_vk_read_devices(&env, &desc, infos, 4, &count), TL_OK);
    assert_int_equal(count, 0);
    desc = replaced_desc("vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)one_device_more);
    expect_device(&desc, 1);
    desc = replaced_desc("vkGetPhysicalDeviceQueueFamilyProperties", (PFN_vkVoidFunction)many_families);
    expect_device(&desc, 1);
    desc = replaced_desc("vkEnumerateDeviceExtensionProperties", (PFN_vkVoidFunction)no_extensions);
    expect_device(&desc, 0);
    desc = replaced_desc("vkGetPhysicalDeviceFeatures2", NULL);
    expect_device(&desc, 0);
    for (i = 0; i < sizeof needed / sizeof *needed; i++) {
        desc = replaced_desc(needed[i], NULL);
        expect_no_device(&desc, TL_ERROR_UNSUPPORTED, "tl_vk_init_device: entry point missing: of the instance");
    }
    desc = replaced_desc("vkGetDeviceProcAddr", NULL);
    expect_no_device(&desc, TL_ERROR_UNSUPPORTED, "tl_vk_init_device: entry point missing: vkGetDeviceProcAddr");
    assert_int_equal(tl_vk_read_devices(&env, &desc, infos, 4, &count), TL_OK);
    desc.get_instance_proc = NULL;
    assert_int_equal(tl_vk_read_devices(&env, &desc, infos, 4, &count), TL_ERROR_NOT_FOUND);
    desc = replaced_desc(NULL, NULL);
    desc.number = -1;
    expect_no_device(&desc, TL_ERROR_NOT_FOUND, "tl_vk_init_device: number: there are fewer devices");
    assert_int_equal(tl_vk_free_device(&env, NULL), TL_OK);
}

static void messages_and_validation_are_there_or_refused(void **state) {
    tl_vk_device_desc desc;
    (void)state;
    if (!vkt_has_vulkan("messages_and_validation_are_there_or_refused")) skip();
    vkshim_reset(NULL);
    desc = replaced_desc("vkCreateDebugUtilsMessengerEXT", NULL);
    desc.message = no_message;
    expect_no_device(&desc, TL_ERROR_UNSUPPORTED, "tl_vk_init_device: entry point missing: vkCreateDebugUtilsMessengerEXT");
    replaced.name = "vkDestroyDebugUtilsMessengerEXT";
    expect_no_device(&desc, TL_ERROR_UNSUPPORTED, "tl_vk_init_device: entry point missing: vkCreateDebugUtilsMessengerEXT");
    replaced.name = "vkCreateDebugUtilsMessengerEXT";
    replaced.function = (PFN_vkVoidFunction)no_messenger;
    expect_no_device(&desc, TL_ERROR_NO_MEMORY, "tl_vk_init_device: vkCreateDebugUtilsMessengerEXT: out of host memory");
    replaced.name = NULL;
    expect_device(&desc, 1);
    desc.validates = 1;
    if (vkt_has_layer(vkt_loader())) expect_device(&desc, 1);
    else expect_no_device(&desc, TL_ERROR_NOT_FOUND, "tl_vk_init_device: validates: VK_LAYER_KHRONOS_validation is not installed");
}

// Every result of Vulkan that a call may have is told by its name, and what it means to a caller.
static void results_are_told_by_name(void **state) {
    static const struct { VkResult result; tl_result code; const char *text; } cases[] = {
        { VK_NOT_READY, TL_ERROR_BACKEND, "not ready" },
        { VK_TIMEOUT, TL_ERROR_BACKEND, "timeout" },
        { VK_ERROR_OUT_OF_HOST_MEMORY, TL_ERROR_NO_MEMORY, "out of host memory" },
        { VK_ERROR_OUT_OF_DEVICE_MEMORY, TL_ERROR_NO_MEMORY, "out of device memory" },
        { VK_ERROR_INITIALIZATION_FAILED, TL_ERROR_BACKEND, "initialization failed" },
        { VK_ERROR_MEMORY_MAP_FAILED, TL_ERROR_BACKEND, "memory map failed" },
        { VK_ERROR_EXTENSION_NOT_PRESENT, TL_ERROR_BACKEND, "extension not present" },
        { VK_ERROR_FEATURE_NOT_PRESENT, TL_ERROR_BACKEND, "feature not present" },
        { VK_ERROR_TOO_MANY_OBJECTS, TL_ERROR_NO_MEMORY, "too many objects" },
        { VK_ERROR_FRAGMENTED_POOL, TL_ERROR_NO_MEMORY, "fragmented pool" },
        { VK_ERROR_OUT_OF_POOL_MEMORY, TL_ERROR_NO_MEMORY, "out of pool memory" },
        { VK_ERROR_FORMAT_NOT_SUPPORTED, TL_ERROR_BACKEND, "failed" },
        { VK_ERROR_DEVICE_LOST, TL_ERROR_DEVICE_LOST, "device lost" },
    };
    tl_vk_device_desc desc = shim_desc();
    vkshim_config config;
    char text[160];
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("results_are_told_by_name")) skip();
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        config.fail_call = "vkCreateDevice";
        config.fail_at = 1;
        config.fail_with = cases[i].result;
        vkshim_reset(&config);
        snprintf(text, sizeof text, "tl_vk_init_device: vkCreateDevice: %s", cases[i].text);
        expect_no_device(&desc, cases[i].code, text);
    }
    config.fail_call = "vkCreateInstance";
    config.fail_with = VK_ERROR_LAYER_NOT_PRESENT;
    vkshim_reset(&config);
    expect_no_device(&desc, TL_ERROR_NOT_FOUND, "tl_vk_init_device: validates: VK_LAYER_KHRONOS_validation is not installed");
    config.fail_with = VK_ERROR_INCOMPATIBLE_DRIVER;
    vkshim_reset(&config);
    expect_no_device(&desc, TL_ERROR_NOT_FOUND, "tl_vk_init_device: no Vulkan driver is installed");
}

// Graphics cards, two heaps of the device, a budget that can be asked for, and no memory for any list.
static void machines_are_described_as_they_are(void **state) {
    static const VkPhysicalDeviceType types[] = { VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU };
    tl_vk_device_desc desc = shim_desc();
    vkshim_config config;
    long at, i, made = 0;
    (void)state;
    if (!vkt_has_vulkan("machines_are_described_as_they_are")) skip();
    for (i = 0; i < 2; i++) {
        tl_vk_device_info info;
        tl_env env = {0};
        int32_t count;
        vkshim_default(&config, VKSHIM_MACHINE_SMALL_BAR);
        config.device_type = types[i];
        config.fakes_budget = 1;
        vkshim_reset(&config);
        assert_int_equal(tl_vk_read_devices(&env, &desc, &info, 1, &count), TL_OK);
        assert_int_equal(info.type, types[i]);
        assert_int_equal(info.device_bytes, (uint64_t)4 << 30);
        expect_device(&desc, 1);
    }
    for (at = 0; made < 2; at++) {
        failing_alloc f = {0};
        tl_env env = failing_env(&f, at);
        tl_vk_device device;
        f.fails_once = 1;
        if (tl_vk_init_device(&env, &desc, &device)) assert_int_equal(env.error.code, TL_ERROR_NO_MEMORY);
        else tl_vk_free_device(&env, &device);
        assert_int_equal(f.live, 0);
        made += f.count <= at;
    }
}

// -- hooks --

typedef struct owner { vkt *v; int live, refuse; } owner;

static VkResult allocate(void *user, const VkMemoryRequirements *needs, VkMemoryPropertyFlags required,
                         VkMemoryPropertyFlags preferred, VkDeviceMemory *memory, VkDeviceSize *offset,
                         uint32_t *type_index, void **mapped, void **cookie) {
    owner *o = (owner *)user;
    VkMemoryAllocateInfo info;
    VkResult result;
    (void)preferred;
    if (o->refuse) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = needs->size;
    while (!(needs->memoryTypeBits >> info.memoryTypeIndex & 1) ||
           (o->v->memory.memoryTypes[info.memoryTypeIndex].propertyFlags & required) != required)
        if (++info.memoryTypeIndex == o->v->memory.memoryTypeCount) return VK_ERROR_FEATURE_NOT_PRESENT;
    result = o->v->vk.AllocateMemory(o->v->device.device, &info, NULL, memory);
    if (result) return result;
    if (required & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
        result = o->v->vk.MapMemory(o->v->device.device, *memory, 0, VK_WHOLE_SIZE, 0, mapped);
    *offset = 0;
    *type_index = info.memoryTypeIndex;
    *cookie = (void *)(uintptr_t)*memory;
    o->live++;
    return result;
}

static void release(void *user, void *cookie) {
    owner *o = (owner *)user;
    o->v->vk.FreeMemory(o->v->device.device, (VkDeviceMemory)(uintptr_t)cookie, NULL);
    o->live--;
}

static void memory_of_another_allocator_serves_and_goes_back(void **state) {
    vkt_desc device = {0};
    tl_vk_backend_desc desc = {0};
    tl_backend backend;
    tl_env env = {0};
    uint64_t block;
    owner o;
    vkt v;
    (void)state;
    if (!vkt_has_vulkan("memory_of_another_allocator_serves_and_goes_back")) skip();
    vkt_open(&device, &v);
    memset(&o, 0, sizeof o);
    o.v = &v;
    desc.device = v.device;
    desc.hooks.allocate = allocate;
    desc.hooks.release = release;
    desc.hooks.user = &o;
    desc.chunk_bytes = 2 << 20;
    assert_int_equal(tl_vk_init_backend(&env, &desc, &backend), TL_OK);
    assert_int_equal(backend.add_block(backend.self, TL_TIER_DEVICE, 1 << 20, &block), TL_OK);
    assert_int_equal(o.live, 2);  // the staging ring and a chunk
    o.refuse = 1;
    assert_int_equal(backend.add_block(backend.self, TL_TIER_HOST, 4096, &block), TL_ERROR_NO_MEMORY);
    tl_vk_free_backend(&env, &backend);
    assert_int_equal(o.live, 0);
    vkt_close(&v);
    assert_int_equal(vkt_messages(&v), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_listed_and_counted),
        cmocka_unit_test(a_device_is_made_and_works),
        cmocka_unit_test(queues_for_video_are_not_taken_for_copies),
        cmocka_unit_test(what_is_not_there_is_refused_with_a_sentence),
        cmocka_unit_test(versions_and_features_are_taken_as_they_are),
        cmocka_unit_test(every_call_that_fails_leaves_nothing),
        cmocka_unit_test(a_loader_that_answers_otherwise_is_believed),
        cmocka_unit_test(messages_and_validation_are_there_or_refused),
        cmocka_unit_test(results_are_told_by_name),
        cmocka_unit_test(machines_are_described_as_they_are),
        cmocka_unit_test(memory_of_another_allocator_serves_and_goes_back),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_device", tests, NULL, NULL);
}
