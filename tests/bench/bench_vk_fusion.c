// What fusion saves and costs on a device: a chain of 20 elementwise nodes of 1 Mi floats, one by one and fused, with
// blocks of several sizes. Wall time of a training step or a forward, with its submit and wait; no validation layer.
#define _POSIX_C_SOURCE 200809L

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../support/vk_support.h"
#include "../../examples/vk_nn.h"
#include "timing.h"

enum { TURNS = 5, LENGTH = 20, COUNT = 1 << 20, BYTES = 4 * COUNT };

typedef struct bench {
    vkt v;
    tl_env env;
    tl_backend backend;
    uint64_t alignment;
    vk_nn nn;
    vk_nn_net net;
    vk_nn_node nodes[LENGTH + 2];
    tl_kernel kernels[VK_NN_OP_COUNT + 1];
    tl_graph graph;
    tl_range gradient;          // of the node before the chain
    float *result, *seen;
} bench;

static void must(bench *b, tl_result result) {
    if (result) { fprintf(stderr, "bench_vk_fusion: %s\n", b->env.error.text); exit(1); }
}

static void finish(bench *b) {
    tl_ticket ticket;
    must(b, b->backend.submit(b->backend.self, &ticket));
    must(b, b->backend.wait(b->backend.self, ticket));
}

static tl_result tap_forward(const tl_kernel_call *call, void *user) {
    bench *b = (bench *)user;
    return b->backend.copy(b->backend.self, call->outputs[0].range, call->inputs[0].range);
}

static tl_result tap_backward(const tl_kernel_call *call, void *user) {
    bench *b = (bench *)user;
    return b->backend.copy(b->backend.self, b->gradient, call->output_grads[0].range);
}

// add: whether the chain adds its first tensor again and again, else it is one of gelu and dropout.
static void open_bench(bench *b, int add) {
    tl_vk_backend_desc desc = {0};
    tl_backend_limits limits;
    vkt_desc device = {0};
    char text[8192];
    int i, length;
    memset(b, 0, sizeof *b);
    device.disable_validation = 1;
    vkt_open(&device, &b->v);
    desc.device = b->v.device;
    must(b, tl_vk_init_backend(&b->env, &desc, &b->backend));
    b->backend.limits(b->backend.self, &limits);
    b->alignment = limits.alignment_bytes;
    must(b, vk_nn_init(&b->backend, &b->nn));
    b->net.nn = &b->nn;
    b->net.nodes = b->nodes;
    b->net.dropout = 0.1f;
    vk_nn_set_kernels(b->kernels, &b->net);
    b->kernels[VK_NN_OP_COUNT].op = "tap";
    b->kernels[VK_NN_OP_COUNT].forward = tap_forward;
    b->kernels[VK_NN_OP_COUNT].backward = tap_backward;
    b->kernels[VK_NN_OP_COUNT].user = b;
    length = snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\n"
                      "node 1 w tap fwd=1 bwd=1 out=%d needs=none in=0\n", BYTES, BYTES);
    for (i = 0; i < LENGTH; i++) {
        const char *op = add ? "add" : i % 2 ? "dropout" : "gelu";
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "node %d n%d %s fwd=1 bwd=1 out=%d needs=%s in=%d%s takes_blocks%s\n", i + 2, i + 2, op, BYTES,
                           *op == 'g' ? "in" : "none", i + 1, add ? ",0" : "", i + 1 == LENGTH ? " keep" : "");
    }
    must(b, tl_parse_graph(&b->env, text, (size_t)length, &b->graph));
    b->gradient.bytes = BYTES;
    must(b, b->backend.add_block(b->backend.self, TL_TIER_DEVICE, BYTES, &b->gradient.block));
    must(b, b->backend.claim(b->backend.self, b->gradient));
    b->result = (float *)malloc(BYTES);
    b->seen = (float *)malloc(BYTES);
    if (!b->result || !b->seen) exit(1);
}

static void close_bench(bench *b) {
    must(b, b->backend.release(b->backend.self, b->gradient));
    must(b, b->backend.free_block(b->backend.self, b->gradient.block));
    finish(b);
    vk_nn_free(&b->nn);
    tl_free_graph(&b->env, &b->graph);
    tl_vk_free_backend(&b->env, &b->backend);
    vkt_close(&b->v);
    free(b->result);
    free(b->seen);
}

// block_bytes: 0 = the nodes one by one, UINT64_MAX = what the strategy chooses.
static double run_chain(bench *b, int inference, uint64_t block_bytes, tl_run_report *report) {
    tl_strategy strategy = tl_with_profiling(tl_with_parallelism(tl_strategy_training(), tl_parallelism_none()), 0);
    tl_fusion_desc fuse = {0};
    tl_fusion_plan fusion = {0};
    tl_run_desc desc = {0};
    tl_run *run;
    tl_tensor tensor = {0, 0};
    double ns[TURNS];
    void *host;
    int i;
    if (inference) strategy.gradient = tl_gradient_none();
    strategy.enable_fusion = block_bytes != 0;
    desc.graph = &b->graph;
    desc.backend = &b->backend;
    desc.kernels = b->kernels;
    desc.kernel_count = VK_NN_OP_COUNT + 1;
    desc.strategy = &strategy;
    if (block_bytes && block_bytes != UINT64_MAX) {
        fuse.graph = &b->graph;
        fuse.block_bytes = block_bytes;
        fuse.alignment_bytes = b->alignment;
        fuse.inference = inference;
        must(b, tl_plan_fusion(&b->env, &fuse, &fusion));
        desc.fusion = &fusion;
    }
    must(b, tl_init_run(&b->env, &desc, &run));
    for (i = 0; i < COUNT; i++) b->result[i] = (float)(i % 1001) / 250.0f - 2.0f;
    must(b, tl_write_tensor(run, tensor, b->result, BYTES));
    for (i = -1; i < TURNS; i++) {
        double start = wall_ns();
        must(b, tl_run_plan(run));
        finish(b);
        ns[i < 0 ? 0 : i] = wall_ns() - start;
    }
    tensor.node = LENGTH + 1;
    must(b, tl_read_tensor(run, tensor, b->result, BYTES));
    if (!inference) {
        must(b, b->backend.map(b->backend.self, b->gradient, TL_MAP_READ, &host));
        memcpy(b->seen, host, BYTES);
        must(b, b->backend.unmap(b->backend.self, b->gradient, TL_MAP_READ, host));
    }
    tl_measure_run(run, report);
    tl_free_run(run);
    tl_free_fusion_plan(&b->env, &fusion);
    return median(ns, TURNS) / 1e6;
}

static uint64_t sum_bits(const float *values) {
    uint64_t sum = 0;
    int i;
    for (i = 0; i < COUNT; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum = tl_mix_u64(sum, bits);
    }
    return sum;
}

static void bench_chain(const char *what, int add, int inference) {
    static const uint64_t blocks[] = { 0, UINT64_MAX, 16384, 65536, 131072, 262144, 524288, 1048576 };
    bench b;
    double first = 0;
    uint64_t expected[2] = { 0, 0 };
    int i;
    open_bench(&b, add);
    printf("%-32s %10s %9s %8s %12s %8s\n", what, "block", "ms", "to alone", "taken", "calls");
    for (i = 0; i < (int)(sizeof blocks / sizeof *blocks); i++) {
        tl_run_report report;
        double ms = run_chain(&b, inference, blocks[i], &report);
        uint64_t sums[2];
        char name[24];
        sums[0] = sum_bits(b.result);
        sums[1] = inference ? 0 : sum_bits(b.seen);
        if (!i) { first = ms; memcpy(expected, sums, sizeof sums); }
        snprintf(name, sizeof name, blocks[i] == UINT64_MAX ? "strategy" : blocks[i] ? "%llu" : "alone", (unsigned long long)blocks[i]);
        printf("%-32s %10s %9.2f %8.3f %12llu %8d\n", inference ? "inference" : "training", name, ms, ms / first,
               (unsigned long long)report.taken_bytes, (int)report.kernel_count);
        if (memcmp(sums, expected, sizeof sums)) { fprintf(stderr, "bench_vk_fusion: not the same bits\n"); exit(1); }
    }
    printf("\n");
    close_bench(&b);
}

int main(void) {
    bench_chain("20 of gelu and dropout, 1 Mi", 0, 0);
    bench_chain("20 of gelu and dropout, 1 Mi", 0, 1);
    bench_chain("20 of add, 1 Mi", 1, 0);
    bench_chain("20 of add, 1 Mi", 1, 1);
    return 0;
}
