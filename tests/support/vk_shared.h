// One device for a whole test program: the first test that asks opens it; it is closed at the end. Include after
// cmocka.h, the implementations and vk_support.h.
#ifndef TESTS_VK_SHARED_H
#define TESTS_VK_SHARED_H

typedef struct shared_device {  // all zero at first
    vkt        v;
    int        is_open;
    tl_env     env;
    tl_backend backend;
} shared_device;

static inline void shared_ok(const shared_device *d, tl_result result) {
    if (result) fail_msg("%s: %s", tl_name_result(result), d->env.error.text);
}

// 1 = opened just now, 0 = open since an earlier test.
static inline int shared_open(shared_device *d) {
    vkt_desc device;
    tl_vk_backend_desc backend;
    if (d->is_open) return 0;
    memset(&device, 0, sizeof device);
    memset(&backend, 0, sizeof backend);
    vkt_open(&device, &d->v);
    backend.device = d->v.device;
    shared_ok(d, tl_vk_init_backend(&d->env, &backend, &d->backend));
    d->is_open = 1;
    return 1;
}

// The result of a group teardown: not 0, and the run fails, where there were messages.
static inline int shared_close(shared_device *d) {
    tl_vk_free_backend(&d->env, &d->backend);
    vkt_close(&d->v);
    return vkt_messages(&d->v);
}

#endif
