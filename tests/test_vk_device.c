// A device of one's own: found, made, refused; and memory of an allocator that is not ours.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_support.h"
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
        cmocka_unit_test(what_is_not_there_is_refused_with_a_sentence),
        cmocka_unit_test(versions_and_features_are_taken_as_they_are),
        cmocka_unit_test(every_call_that_fails_leaves_nothing),
        cmocka_unit_test(memory_of_another_allocator_serves_and_goes_back),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_device", tests, NULL, NULL);
}
