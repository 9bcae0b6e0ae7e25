// executor.c -- the same training step by the executor of the library, with its graph and plan as const tables
//
// Everything that a run does not need is left out. Its memory is an array of less than a KiB, taken once. With
// NET_PIECES the graph owns its weights, and gradients are made in pieces: kernels find in the bytes whether a call is for
// rows. With EXECUTOR_CHECKS nothing is taken on trust: graph, plan and places are checked when the run begins, and every pass
// counts what it takes.

#ifndef EXECUTOR_CHECKS
#define TL_SMALL_SIZES
#endif
#define TL_NO_STDIO
#define TL_NO_THREADS
#define TL_NO_TEXT
#define TL_NO_ERROR_TEXT
#define TL_NO_TRACE
#define TL_NO_PLANNERS
#define TL_NO_CHECKS
#define TL_NO_PRECISION
#define TL_NO_OFFLOAD
#define TL_NO_ONLINE
#define TL_NO_CODECS
#define TL_NO_ACCOUNTS
#define TL_NO_MATH
#define TL_MALLOC(user, size) ((void)(user), (void)(size), (void *)0)
#define TL_FREE(user, ptr) ((void)(user), (void)(ptr))
#define TL_ASSERT(x) ((void)(x))
#define TL_STRATEGY_STATIC
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

#include <string.h>

#include "device.h"
#include "net.h"
#include "table.h"

#ifndef NET_BANK_1_PLACE
#define NET_BANK_1_PLACE
#endif
unsigned char net_bank_0[NET_BANK_0_BYTES] __attribute__((aligned(8)));
NET_BANK_1_PLACE unsigned char net_bank_1[NET_BANK_1_BYTES] __attribute__((aligned(8)));
#ifndef NET_PIECES
unsigned char net_weights[NET_WEIGHTS_BYTES] __attribute__((aligned(8)));
unsigned char net_gradients[NET_GRADIENTS_BYTES] __attribute__((aligned(8)));
unsigned char net_states[NET_STATE_BYTES] __attribute__((aligned(8)));
#endif

#ifdef EXECUTOR_CHECKS
#define EXECUTOR_BYTES 16384
#else
#ifndef NET_PIECES
#define EXECUTOR_BYTES (208 * sizeof(void *))
#else
#define EXECUTOR_BYTES (228 * sizeof(void *))
#endif
#endif
static uint64_t memory[EXECUTOR_BYTES / 8];
static tl_env env;
static tl_backend backend;
static tl_run *run;

#ifdef NET_PIECES
#define W c->inputs[1].host

// Rows of a call; 0 = it is for the whole gradient, or for another one.
static int32_t rows_of(const tl_kernel_call *c) {
    return c->input_grads[1].host && !c->inputs[1].host ? (int32_t)c->count : 0;
}

static tl_result conv_backward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_conv2d_backward(c->node, c->output_grads[0].host, c->input_grads[0].host, c->input_grads[1].host, c->inputs[0].host, W,
                        c->scratch.host, (int32_t)c->first, rows_of(c));
    return TL_OK;
}
static tl_result linear_backward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_linear_backward(c->node, c->output_grads[0].host, c->input_grads[0].host, c->input_grads[1].host, c->inputs[0].host, W,
                        c->scratch.host, (int32_t)c->first, rows_of(c));
    return TL_OK;
}
static tl_result update(const tl_kernel_call *c, void *user) {
    (void)user;
    net_momentum_update(c->node, c->output_grads[0].host, c->outputs[0].host, c->outputs[1].host, c->scratch.host,
                        (int32_t)c->first, c->count < c->total ? (int32_t)c->count : 0);
    return TL_OK;
}
#else
static uint32_t weight_of(int32_t node) {
    switch (node) {
    case NET_NODE_CONV2: return NET_WEIGHT_CONV2_OFFSET;
    case NET_NODE_CONV3: return NET_WEIGHT_CONV3_OFFSET;
    case NET_NODE_DENSE: return NET_WEIGHT_DENSE_OFFSET;
    default: return NET_WEIGHT_CONV1_OFFSET;
    }
}

#define W (net_weights + weight_of(c->node))
#define D (net_gradients + weight_of(c->node))

static tl_result conv_backward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_conv2d_backward(c->node, c->output_grads[0].host, c->input_grads[0].host, c->inputs[0].host, W, D, c->scratch.host);
    return TL_OK;
}
static tl_result linear_backward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_linear_backward(c->node, c->output_grads[0].host, c->input_grads[0].host, c->inputs[0].host, W, D);
    return TL_OK;
}
#endif

static tl_result conv_forward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_conv2d_forward(c->node, c->outputs[0].host, c->inputs[0].host, W, c->scratch.host);
    return TL_OK;
}
static tl_result relu_forward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_relu_forward(c->node, c->outputs[0].host, c->inputs[0].host);
    return TL_OK;
}
static tl_result relu_backward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_relu_backward(c->node, c->output_grads[0].host, c->input_grads[0].host, c->outputs[0].host);
    return TL_OK;
}
static tl_result max_forward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_maxpool_forward(c->node, c->outputs[0].host, c->inputs[0].host);
    return TL_OK;
}
static tl_result max_backward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_maxpool_backward(c->node, c->output_grads[0].host, c->input_grads[0].host, c->inputs[0].host);
    return TL_OK;
}
static tl_result mean_forward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_meanpool_forward(c->node, c->outputs[0].host, c->inputs[0].host);
    return TL_OK;
}
static tl_result mean_backward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_meanpool_backward(c->node, c->output_grads[0].host, c->input_grads[0].host);
    return TL_OK;
}
static tl_result linear_forward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_linear_forward(c->node, c->outputs[0].host, c->inputs[0].host, W);
    return TL_OK;
}
static tl_result loss_forward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_crossentropy_forward(c->node, c->outputs[0].host, c->inputs[0].host, c->inputs[1].host);
    return TL_OK;
}
static tl_result loss_backward(const tl_kernel_call *c, void *user) {
    (void)user;
    net_crossentropy_backward(c->node, c->output_grads[0].host, c->input_grads[0].host, c->inputs[0].host, c->inputs[1].host);
    return TL_OK;
}

static const tl_kernel kernels[] = {
    { "conv2d", conv_forward, conv_backward, NULL },   { "relu", relu_forward, relu_backward, NULL },
    { "maxpool", max_forward, max_backward, NULL },    { "meanpool", mean_forward, mean_backward, NULL },
    { "linear", linear_forward, linear_backward, NULL }, { "crossentropy", loss_forward, loss_backward, NULL },
#ifdef NET_PIECES
    { "momentum", NULL, update, NULL },
#endif
};

// The inputs have their places in the banks, the same as in net.h.
static tl_result load(tl_run *of, int32_t micro_batch, void *user) {
    (void)of; (void)user;
    net_load(micro_batch);
    return TL_OK;
}

static tl_result start(void) {
    tl_cpu_backend_desc desc;
    tl_cpu_bank bank;
    tl_run_desc how;
    tl_result result = tl_init_arena(&env, memory, sizeof memory);
    memset(&desc, 0, sizeof desc);
    memset(&bank, 0, sizeof bank);
    memset(&how, 0, sizeof how);
    desc.memory = net_bank_0;
    desc.memory_bytes = sizeof net_bank_0;
    desc.alignment_bytes = TABLE_ALIGNMENT;
    bank.memory = net_bank_1;
    bank.memory_bytes = sizeof net_bank_1;
    desc.banks = &bank;
    desc.bank_count = 1;
    if (!result) result = tl_init_cpu_backend(&env, &desc, &backend);
    how.graph = &table_graph;
    how.plan = &table_plan;
    how.backend = &backend;
    how.kernels = kernels;
    how.kernel_count = (int32_t)(sizeof kernels / sizeof *kernels);
    how.repeat_count = NET_MICRO_BATCHES;
    how.load = load;
    how.loss_gradient_word = 0x3E800000u;  // 0.25f
    return result ? result : tl_init_run(&env, &how, &run);
}

void net_run(void) {
    tl_result result = run ? TL_OK : start();
    if (!result) result = tl_run_plan(run);
    if (result) device_print("the executor failed\n");
}
