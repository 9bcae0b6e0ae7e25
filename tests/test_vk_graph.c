// Random graphs planned by tl_plan_remat, run on a device: kernels are compute shaders of whole numbers, each word of
// which depends on every word that they may read and on the seed of the call. What was planned is what the backend
// counts, and gradients and results are, bit for bit, those of a run that keeps everything.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#include "support/random_graph.h"
#include "support/vk_support.h"
#include "support/vk_shared.h"
#include "support/vk_layers.h"

enum {
    NODES = 20,
    SLOT = 256,           // bytes between the gradients of two nodes: the most that a device asks for in an offset
    DIGEST = 16,          // bytes of what a call read, put together; and of the gradient of a node
    RESULT_BYTES = 65536
};

static long rounds_of(long count) { return getenv("SOAK") ? 10 * count : getenv("SAMPLE") ? count / 4 : count; }

// -- the device, opened once --

static struct {
    shared_device device;
    tl_vk_kernel *mix;
    tl_range      digest, gradients;  // of the call under way; [NODES][SLOT] of the parameters of each node
} g;

static void ok(tl_result result) { shared_ok(&g.device, result); }

static tl_range add_range(uint64_t bytes) {
    tl_range range;
    memset(&range, 0, sizeof range);
    range.bytes = bytes;
    ok(g.device.backend.add_block(g.device.backend.self, TL_TIER_DEVICE, bytes, &range.block));
    ok(g.device.backend.claim(g.device.backend.self, range));
    return range;
}

static int has_device(const char *test) {
    tl_vk_kernel_desc kernel;
    if (!vkt_has_vulkan(test)) return 0;
    if (!shared_open(&g.device)) return 1;
    memset(&kernel, 0, sizeof kernel);
    kernel.words = vk_graph_mix_words;
    kernel.word_count = sizeof vk_graph_mix_words / 4;
    kernel.buffer_count = 2;
    kernel.push_bytes = 16;
    ok(tl_vk_init_kernel(&g.device.backend, &kernel, &g.mix));
    g.digest = add_range(DIGEST);
    g.gradients = add_range(NODES * SLOT);
    return 1;
}

static void free_range(tl_range range) {
    ok(g.device.backend.release(g.device.backend.self, range));
    ok(g.device.backend.free_block(g.device.backend.self, range.block));
}

static int close_device(void **state) {
    (void)state;
    if (!g.device.is_open) return 0;
    free_range(g.digest);
    free_range(g.gradients);
    tl_vk_free_kernel(&g.device.backend, g.mix);
    return shared_close(&g.device);
}

#define NEED_DEVICE() do { if (!has_device(__func__)) skip(); } while (0)

// -- kernels --

// What the kernels of a run count, and how they misbehave.
typedef struct mixer {
    long forwards, recomputes, backwards;
    int  skips_recompute, reseeds_recompute;
} mixer;

// Mix a source into a target: factor 0 overwrites, 3 adds.
static tl_result mix(tl_range target, tl_range source, uint64_t seed, uint32_t factor) {
    tl_access accesses[2];
    tl_range ranges[2];
    uint32_t push[4];
    tl_result result;
    if (!target.bytes) return TL_OK;
    push[0] = (uint32_t)(target.bytes / 4);
    push[1] = (uint32_t)(source.bytes / 4);
    push[2] = (uint32_t)(seed ^ seed >> 32);
    push[3] = factor;
    accesses[0].range = ranges[0] = target;
    accesses[1].range = ranges[1] = source;
    accesses[0].writes = 1;
    accesses[1].writes = 0;
    result = g.device.backend.order(g.device.backend.self, accesses, source.bytes ? 2 : 1);
    return result ? result : tl_vk_record_kernel(&g.device.backend, g.mix, ranges, push, (push[0] + 63) / 64, 1, 1);
}

// Put what a call reads together in the digest. What a backward does not need is not there, and does not count.
static tl_result digest_operands(const tl_operand *operands, int32_t count, uint64_t seed) {
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < count && !result; i++)
        if (operands[i].range.bytes) result = mix(g.digest, operands[i].range, seed + (uint64_t)i, 3);
    return result;
}

static tl_result forward(const tl_kernel_call *call, void *user) {
    static const tl_range nothing;
    mixer *m = (mixer *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t seed = tl_mix_u64(call->seed + (uint64_t)(m->reseeds_recompute && call->recompute), (uint64_t)call->node);
    tl_result result;
    int32_t i;
    m->forwards++;
    m->recomputes += call->recompute;
    if (m->skips_recompute && call->recompute) return TL_OK;
    result = mix(g.digest, nothing, seed, 0);
    if (!result) result = digest_operands(call->inputs, node->input_count, 10);
    if (!result) result = mix(call->scratch.range, g.digest, 1, 0);
    for (i = 0; i < node->output_count && !result && !call->outputs_ready; i++)
        result = mix(call->outputs[i].range, g.digest, 100 + (uint64_t)i, 0);
    return result ? result : mix(call->saved.range, g.digest, 2, 0);
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    static const tl_range nothing;
    mixer *m = (mixer *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    tl_range gradient = g.gradients;
    tl_result result = mix(g.digest, nothing, tl_mix_u64(call->seed, (uint64_t)call->node), 0);
    int32_t i;
    m->backwards++;
    gradient.offset = (uint64_t)call->node * SLOT;
    gradient.bytes = DIGEST;
    if (!result) result = digest_operands(call->inputs, node->input_count, 10);
    if (!result) result = digest_operands(call->outputs, node->output_count, 20);
    if (!result) result = digest_operands(call->output_grads, node->output_count, 30);
    if (!result) result = digest_operands(&call->saved, 1, 40);
    if (!result) result = mix(call->scratch.range, g.digest, 1, 0);
    if (!result) result = mix(gradient, g.digest, 3, 3);
    for (i = 0; i < node->input_count && !result; i++)
        result = mix(call->input_grads[i].range, g.digest, 200 + (uint64_t)i, 3);
    return result;
}

// One kernel an op. Returns how many.
static int32_t make_kernels(const tl_graph *graph, mixer *m, tl_kernel *kernels) {
    int32_t id, count = 0;
    for (id = 0; id < graph->node_count; id++) {
        int32_t k = 0;
        if (graph->nodes[id].is_input) continue;
        while (k < count && strcmp(kernels[k].op, tl_name_op(graph, id))) k++;
        if (k < count) continue;
        kernels[count].op = tl_name_op(graph, id);
        kernels[count].forward = forward;
        kernels[count].backward = backward;
        kernels[count++].user = m;
    }
    return count;
}

// -- runs --

// What two training steps left: the gradients of every node, then the bytes of the results.
typedef struct outcome {
    unsigned char gradients[NODES][DIGEST];
    unsigned char results[RESULT_BYTES];
    size_t        result_bytes;
    mixer         m;
    tl_run_report report;
} outcome;

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    const tl_graph *graph = (const tl_graph *)user;
    unsigned char bytes[1024];
    int32_t i;
    uint64_t k;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        tl_tensor tensor;
        if (!graph->nodes[output->node].is_input) continue;
        assert_true(output->bytes <= sizeof bytes);
        for (k = 0; k < output->bytes; k++) bytes[k] = (unsigned char)tl_mix_u64((uint64_t)micro_batch * 1000 + (uint64_t)i, k);
        tensor.node = output->node;
        tensor.output = output->output;
        if (tl_write_tensor(run, tensor, bytes, output->bytes)) return TL_ERROR_IO;
    }
    return TL_OK;
}

static void read_outcome(tl_run *run, const tl_graph *graph, int inference, outcome *out) {
    uint8_t *is_result = (uint8_t *)calloc((size_t)graph->tensor_count, 1);
    tl_access access;
    void *mapped;
    int32_t i;
    assert_non_null(is_result);
    tli_mark_results(graph, inference, is_result);
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        tl_tensor tensor;
        if (!is_result[i]) continue;
        assert_true(out->result_bytes + output->bytes <= RESULT_BYTES);
        tensor.node = output->node;
        tensor.output = output->output;
        ok(tl_read_tensor(run, tensor, out->results + out->result_bytes, output->bytes));
        out->result_bytes += (size_t)output->bytes;
    }
    free(is_result);
    access.range = g.gradients;
    access.writes = 0;
    ok(g.device.backend.order(g.device.backend.self, &access, 1));
    ok(g.device.backend.map(g.device.backend.self, g.gradients, TL_MAP_READ, &mapped));
    for (i = 0; i < NODES; i++) memcpy(out->gradients[i], (const char *)mapped + i * SLOT, DIGEST);
    ok(g.device.backend.unmap(g.device.backend.self, g.gradients, TL_MAP_READ, mapped));
}

// Two training steps by a plan, within a budget (0 = none).
static void run_plan(const tl_graph *graph, const tl_plan *plan, uint64_t budget, const mixer *faults, outcome *out) {
    tl_kernel kernels[NODES];
    tl_run_desc desc;
    tl_run *run;
    memset(out, 0, sizeof *out);
    memset(&desc, 0, sizeof desc);
    if (faults) out->m = *faults;
    ok(g.device.backend.fill(g.device.backend.self, g.gradients, 0));
    desc.graph = graph;
    desc.backend = &g.device.backend;
    desc.kernels = kernels;
    desc.kernel_count = make_kernels(graph, &out->m, kernels);
    desc.plan = plan;
    desc.budget_bytes = budget;
    desc.load = load;
    desc.load_user = (void *)(uintptr_t)graph;
    desc.seed = 42;
    ok(tl_init_run(&g.device.env, &desc, &run));
    ok(tl_run_plan(run));
    ok(tl_run_plan(run));
    tl_measure_run(run, &out->report);
    read_outcome(run, graph, plan->inference, out);
    tl_free_run(run);
}

static int same_outcome(const outcome *a, const outcome *b) {
    return a->result_bytes == b->result_bytes && !memcmp(a->results, b->results, a->result_bytes) &&
           !memcmp(a->gradients, b->gradients, sizeof a->gradients);
}

// -- graphs --

// A random graph of whole words.
static void make_graph(tl_random *random, tl_graph *graph) {
    tl_node *nodes;
    tl_node_output *outputs;
    int32_t i;
    if (random_graph(NULL, random, NODES, graph)) fail_msg("%s", "no graph");
    nodes = (tl_node *)(uintptr_t)graph->nodes;
    outputs = (tl_node_output *)(uintptr_t)graph->outputs;
    for (i = 0; i < graph->tensor_count; i++) outputs[i].bytes *= 4;
    for (i = 0; i < graph->node_count; i++) {
        nodes[i].saved_bytes *= 4;
        nodes[i].fwork_bytes *= 4;
        nodes[i].bwork_bytes *= 4;
    }
}

// A plan within less than the peak of keep all; where nothing fits, one within the least budget, or a little more.
static void make_plan(tl_random *random, const tl_graph *graph, const tl_plan *all, uint64_t *budget, tl_plan *plan) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_backend_limits limits;
    tl_env env;
    tl_result result;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.inference = all->inference;
    g.device.backend.limits(g.device.backend.self, &limits);
    desc.alignment_bytes = limits.alignment_bytes;
    desc.work_limit = 2000 + tl_next_random_below(random, 60000);
    desc.budget_bytes = 1 + all->peak_bytes - tl_next_random_below(random, all->peak_bytes * 2 / 3 + 1);
    result = tl_plan_remat(&env, &desc, plan, &report);
    if (result == TL_ERROR_INFEASIBLE) {
        desc.budget_bytes = report.least_budget_bytes;
        if (desc.budget_bytes < all->peak_bytes)
            desc.budget_bytes += tl_next_random_below(random, all->peak_bytes - desc.budget_bytes) / 2;
        result = tl_plan_remat(&env, &desc, plan, &report);
    }
    if (result) fail_msg("%s", env.error.text);
    *budget = desc.budget_bytes;
}

static void walk_graphs(uint64_t seed, int inference, long rounds) {
    static outcome expected, got;
    tl_random random;
    long round, recomputes = 0, lower = 0, faults = 0, seen = 0;
    random.state = seed;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_plan all, plan;
        uint64_t budget;
        make_graph(&random, &graph);
        if (tl_plan_keep_all(NULL, &graph, inference, &all)) fail_msg("%s", "no plan");
        make_plan(&random, &graph, &all, &budget, &plan);
        run_plan(&graph, &all, 0, NULL, &expected);
        run_plan(&graph, &plan, budget, NULL, &got);
        assert_int_equal(expected.report.measured_peak_bytes, all.peak_bytes);
        assert_int_equal(got.report.planned_peak_bytes, plan.peak_bytes);
        assert_int_equal(got.report.measured_peak_bytes, plan.peak_bytes);
        assert_true(got.report.measured_peak_bytes <= budget);
        assert_int_equal(2 * got.report.recompute_count, got.m.recomputes);
        assert_int_equal(2 * got.report.forward_count, got.m.forwards);
        assert_int_equal(got.m.backwards, expected.m.backwards);
        if (!same_outcome(&expected, &got)) fail_msg("graph %ld: other gradients or results", round);
        lower += plan.peak_bytes < all.peak_bytes;
        recomputes += got.m.recomputes > 0;
        if (got.m.recomputes && round % 4 == 0) {  // a fault of the kernels must show
            mixer fault;
            memset(&fault, 0, sizeof fault);
            fault.skips_recompute = (int)(round / 4 % 2);
            fault.reseeds_recompute = !fault.skips_recompute;
            run_plan(&graph, &plan, budget, &fault, &got);
            faults++;
            seen += !same_outcome(&expected, &got);
        }
        tl_free_plan(NULL, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld graphs: %ld with forwards made again, %ld below the peak of keep all; %ld of %ld planted faults seen\n",
           rounds, recomputes, lower, seen, faults);
    assert_true(lower * 2 > rounds);
    if (!inference) assert_true(recomputes * 3 > rounds && faults > 0 && seen == faults);
    assert_int_equal(vkt_messages(&g.device.v), 0);
}

static void random_graphs_run_as_planned_with_the_gradients_of_keep_all(void **state) {
    (void)state;
    NEED_DEVICE();
    walk_graphs(130, 0, rounds_of(50));
}

static void forward_only_graphs_give_the_results_of_keep_all(void **state) {
    (void)state;
    NEED_DEVICE();
    walk_graphs(131, 1, rounds_of(20));
}

// -- a device that allocates little at once --

static void (*device_limits)(void *self, tl_backend_limits *limits);
static uint64_t largest_block;

static void limits_with_largest(void *self, tl_backend_limits *limits) {
    device_limits(self, limits);
    limits->block_bytes = largest_block;
}

static uint64_t largest_of(const tl_graph *graph) {
    uint64_t largest = 1;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->outputs[i].bytes > largest) largest = graph->outputs[i].bytes;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        if (node->saved_bytes > largest) largest = node->saved_bytes;
        if (node->fwork_bytes > largest) largest = node->fwork_bytes;
        if (node->bwork_bytes > largest) largest = node->bwork_bytes;
    }
    return largest;
}

static void random_graphs_run_in_blocks_with_the_gradients_of_keep_all(void **state) {
    static outcome expected, got;
    tl_random random = { 132 };
    tl_backend_limits limits;
    long round, rounds = rounds_of(20);
    (void)state;
    NEED_DEVICE();
    device_limits = g.device.backend.limits;
    device_limits(g.device.backend.self, &limits);
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_plan all, plan;
        uint64_t budget, unit = limits.granularity_bytes > limits.alignment_bytes ? limits.granularity_bytes : limits.alignment_bytes;
        make_graph(&random, &graph);
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        make_plan(&random, &graph, &all, &budget, &plan);
        run_plan(&graph, &all, 0, NULL, &expected);
        largest_block = (largest_of(&graph) + unit - 1) / unit * unit + limits.block_overhead_bytes[TL_TIER_DEVICE] +
                        unit * tl_next_random_below(&random, 3);
        g.device.backend.limits = limits_with_largest;
        run_plan(&graph, &plan, 0, NULL, &got);
        g.device.backend.limits = device_limits;
        assert_int_equal(got.report.measured_peak_bytes, plan.peak_bytes);
        assert_int_equal(got.report.taken_bytes, got.report.planned_taken_bytes);
        assert_true(got.report.taken_bytes > largest_block && got.report.measured_arena_bytes <= largest_block);
        if (!same_outcome(&expected, &got)) fail_msg("graph %ld: other gradients or results", round);
        tl_free_plan(NULL, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    assert_int_equal(vkt_messages(&g.device.v), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_run_as_planned_with_the_gradients_of_keep_all),
        cmocka_unit_test(forward_only_graphs_give_the_results_of_keep_all),
        cmocka_unit_test(random_graphs_run_in_blocks_with_the_gradients_of_keep_all),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, close_device);
}
