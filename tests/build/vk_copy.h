// What build tests with a loader run: bytes go to a device of the backend's own, are copied there, and come back.
#ifndef TESTS_BUILD_VK_COPY_H
#define TESTS_BUILD_VK_COPY_H

#include <stdio.h>

// A block of 64 bytes in a tier, claimed.
static inline tl_result add_range(const tl_backend *backend, tl_tier tier, tl_range *range) {
    memset(range, 0, sizeof *range);
    if (backend->add_block(backend->self, tier, 64, &range->block)) return TL_ERROR_BACKEND;
    range->bytes = 64;
    return backend->claim(backend->self, *range);
}

static inline tl_result copy_bytes(const tl_backend *backend, const char bytes[64], char copied[64]) {
    tl_range from, to;
    void *host;
    if (add_range(backend, TL_TIER_HOST, &from) || add_range(backend, TL_TIER_DEVICE, &to)) return TL_ERROR_BACKEND;
    if (backend->map(backend->self, from, TL_MAP_WRITE, &host)) return TL_ERROR_BACKEND;
    memcpy(host, bytes, 64);
    if (backend->unmap(backend->self, from, TL_MAP_WRITE, host)) return TL_ERROR_BACKEND;
    if (backend->copy(backend->self, to, from)) return TL_ERROR_BACKEND;
    if (backend->map(backend->self, to, TL_MAP_READ, &host)) return TL_ERROR_BACKEND;
    memcpy(copied, host, 64);
    return backend->unmap(backend->self, to, TL_MAP_READ, host);
}

// 0 where the bytes came back. Without a Vulkan driver it says SKIPPED, and is 0.
static inline int copy_on(tl_env *env, const tl_vk_device *device) {
    char bytes[64], copied[64];
    tl_vk_backend_desc desc;
    tl_backend backend;
    tl_result result;
    int i;
    memset(&desc, 0, sizeof desc);
    desc.device = *device;
    for (i = 0; i < 64; i++) { bytes[i] = (char)(i + 1); copied[i] = 0; }
    result = tl_vk_init_backend(env, &desc, &backend);
    if (!result) result = copy_bytes(&backend, bytes, copied);
    if (result) fprintf(stderr, "%s\n", env->error.text);
    tl_vk_free_backend(env, &backend);
    return result || memcmp(bytes, copied, 64) != 0;
}

static inline int copy_on_first_device(PFN_vkGetInstanceProcAddr get_instance_proc) {
    tl_env env;
    tl_vk_device_desc desc;
    tl_vk_device device;
    tl_result result;
    int failed;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.get_instance_proc = get_instance_proc;
    result = tl_vk_init_device(&env, &desc, &device);
    if (result == TL_ERROR_NOT_FOUND) return fprintf(stderr, "SKIPPED copy: %s\n", env.error.text) < 0;
    if (result) return fprintf(stderr, "%s\n", env.error.text), 1;
    failed = copy_on(&env, &device);
    tl_vk_free_device(&env, &device);
    return failed;
}

#endif
