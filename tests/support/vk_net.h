// A training run whose kernels are compute shaders: a chain of layers y = x * (1 - x / 4), each of which also
// keeps a sum that stands for the gradient of its parameters. Include after cmocka and the implementation.
#ifndef TESTS_VK_NET_H
#define TESTS_VK_NET_H

#include <string.h>

#include "vk_layers.h"

#define NET_LAYERS 12
#define NET_BYTES 1024
#define NET_COUNT (NET_BYTES / 4)

typedef struct net net;
typedef struct net_layer { net *owner; int32_t number; } net_layer;

struct net {
    tl_env *env;
    const tl_backend *backend;      // that the run and its kernels use
    tl_backend inner;               // the Vulkan one itself
    tl_vk_kernel *forward, *backward;
    tl_range sums[NET_LAYERS];      // of each layer: its backward adds to it
    tl_range spare;                 // gradient of the input; not used
    net_layer layers[NET_LAYERS];
    tl_run *run;
};

static tl_vk_kernel *net_kernel(tl_env *env, const tl_backend *backend, const uint32_t *words, size_t bytes,
                                int32_t buffer_count) {
    tl_vk_kernel_desc desc = {0};
    tl_vk_kernel *kernel;
    desc.words = words;
    desc.word_count = bytes / 4;
    desc.buffer_count = buffer_count;
    desc.push_bytes = 4;
    if (tl_vk_init_kernel(backend, &desc, &kernel)) fail_msg("%s", env->error.text);
    return kernel;
}

static tl_result net_forward(const tl_kernel_call *call, void *user) {
    const net *n = ((const net_layer *)user)->owner;
    uint32_t count = NET_COUNT;
    tl_range ranges[2];
    ranges[0] = call->outputs[0].range;
    ranges[1] = call->inputs[0].range;
    return tl_vk_record_kernel(&n->inner, n->forward, ranges, &count, NET_COUNT / 64, 1, 1);
}

static tl_result net_backward(const tl_kernel_call *call, void *user) {
    const net_layer *layer = (const net_layer *)user;
    const net *n = layer->owner;
    const tl_backend *b = n->backend;
    uint32_t count = NET_COUNT;
    tl_range ranges[4];
    tl_access accesses[2];
    tl_result result = b->fill(b->self, n->sums[layer->number], 0);
    if (!result && layer->number == 0) result = b->fill(b->self, n->spare, 0);
    if (result) return result;
    accesses[0].range = n->sums[layer->number];
    accesses[1].range = n->spare;
    accesses[0].writes = accesses[1].writes = 1;
    result = b->order(b->self, accesses, layer->number ? 1 : 2);
    if (result) return result;
    ranges[0] = layer->number ? call->input_grads[0].range : n->spare;
    ranges[1] = call->output_grads[0].range;
    ranges[2] = call->inputs[0].range;
    ranges[3] = n->sums[layer->number];
    return tl_vk_record_kernel(&n->inner, n->backward, ranges, &count, NET_COUNT / 64, 1, 1);
}

static tl_range net_block(tl_env *env, const tl_backend *b) {
    tl_range range = {0};
    if (b->add_block(b->self, TL_TIER_DEVICE, NET_BYTES, &range.block)) fail_msg("%s", env->error.text);
    range.bytes = NET_BYTES;
    assert_int_equal(b->claim(b->self, range), TL_OK);
    return range;
}

// backend: the Vulkan backend `inner`, or a wrapper around it.
static void net_open(net *n, tl_env *env, const tl_backend *backend, const tl_backend *inner) {
    int32_t i;
    memset(n, 0, sizeof *n);
    n->env = env;
    n->backend = backend;
    n->inner = *inner;
    n->forward = net_kernel(env, inner, vk_layer_forward_words, sizeof vk_layer_forward_words, 2);
    n->backward = net_kernel(env, inner, vk_layer_backward_words, sizeof vk_layer_backward_words, 4);
    for (i = 0; i < NET_LAYERS; i++) {
        n->sums[i] = net_block(env, backend);
        n->layers[i].owner = n;
        n->layers[i].number = i;
    }
    n->spare = net_block(env, backend);
}

// Budgets in bytes, 0 = none; plan may be NULL: the run decides online.
static void net_start(net *n, uint64_t budget, uint64_t host_budget, const tl_plan *plan) {
    tl_layer layers[NET_LAYERS];
    tl_run_desc desc = {0};
    int32_t i;
    memset(layers, 0, sizeof layers);
    for (i = 0; i < NET_LAYERS; i++) {
        layers[i].forward = net_forward;
        layers[i].backward = net_backward;
        layers[i].user = &n->layers[i];
        layers[i].output_bytes = NET_BYTES;
    }
    desc.backend = n->backend;
    desc.budget_bytes = budget;
    desc.host_budget_bytes = host_budget;
    desc.plan = plan;
    if (tl_init_layer_run(n->env, &desc, layers, NET_LAYERS, NET_BYTES, &n->run)) fail_msg("%s", n->env->error.text);
}

static void net_stop(net *n) {
    tl_free_run(n->run);
    n->run = NULL;
}

static tl_result net_write_input(net *n, float scale) {
    float values[NET_COUNT];
    tl_tensor input = {0, 0};
    int32_t i;
    for (i = 0; i < NET_COUNT; i++) values[i] = scale * (float)(i + 1) / NET_COUNT;
    return tl_write_tensor(n->run, input, values, sizeof values);
}

static void net_close(net *n) {
    const tl_backend *b = n->backend;
    int32_t i;
    for (i = 0; i <= NET_LAYERS; i++) {
        tl_range range = i < NET_LAYERS ? n->sums[i] : n->spare;
        assert_int_equal(b->release(b->self, range), TL_OK);
        assert_int_equal(b->free_block(b->self, range.block), TL_OK);
    }
    tl_vk_free_kernel(&n->inner, n->forward);
    tl_vk_free_kernel(&n->inner, n->backward);
}

#endif
