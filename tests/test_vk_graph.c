// Random graphs planned by tl_plan_remat, run on a device: kernels are compute shaders of whole numbers, each word of
// which depends on every word that they may read and on the seed of the call. What was planned is what the backend
// counts, and gradients and results are, bit for bit, those of a run that keeps everything. Plans with micro-batch slots and
// with tensors that are there at the start give what they give on the CPU, where the same kernels are C.
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
#include "support/random_steps.h"
#include "support/run_inputs.h"
#include "support/vk_support.h"
#include "support/support.h"
#include "support/vk_shared.h"
#include "support/vk_layers.h"

enum {
    NODES = 20,
    SLOT = 256,           // bytes between the gradients of two nodes: the most that a device asks for in an offset
    DIGEST = 16,          // bytes of what a call read, put together; and of the gradient of a node
    RESULT_BYTES = 65536
};


// -- the device, opened once --

// Where kernels run, and what they share there.
typedef struct site {
    tl_backend *backend;
    int         is_cpu;
    tl_range    digest, gradients;    // of the call under way; [NODES][SLOT] of the parameters of each node
} site;

static struct {
    shared_device device;
    tl_vk_kernel *mix;
    site          vk, cpu;
    tl_backend    cpu_backend;
    const site   *at;                 // one of the two
} g;

static void ok(tl_result result) { shared_ok(&g.device, result); }

static tl_range add_range(const tl_backend *backend, uint64_t bytes) {
    tl_range range;
    memset(&range, 0, sizeof range);
    range.bytes = bytes;
    ok(backend->add_block(backend->self, TL_TIER_DEVICE, bytes, &range.block));
    ok(backend->claim(backend->self, range));
    return range;
}

static void open_site(tl_backend *backend, int is_cpu, site *s) {
    s->backend = backend;
    s->is_cpu = is_cpu;
    s->digest = add_range(backend, DIGEST);
    s->gradients = add_range(backend, NODES * SLOT);
}

static int has_device(const char *test) {
    tl_vk_kernel_desc kernel;
    tl_cpu_backend_desc cpu;
    if (!vkt_has_vulkan(test)) return 0;
    if (!shared_open(&g.device)) return 1;
    memset(&kernel, 0, sizeof kernel);
    kernel.words = vk_graph_mix_words;
    kernel.word_count = sizeof vk_graph_mix_words / 4;
    kernel.buffer_count = 2;
    kernel.push_bytes = 16;
    ok(tl_vk_init_kernel(&g.device.backend, &kernel, &g.mix));
    memset(&cpu, 0, sizeof cpu);
    ok(tl_init_cpu_backend(&g.device.env, &cpu, &g.cpu_backend));
    open_site(&g.device.backend, 0, &g.vk);
    open_site(&g.cpu_backend, 1, &g.cpu);
    g.at = &g.vk;
    return 1;
}

static void free_range(const tl_backend *backend, tl_range range) {
    ok(backend->release(backend->self, range));
    ok(backend->free_block(backend->self, range.block));
}

static void close_site(const site *s) {
    free_range(s->backend, s->digest);
    free_range(s->backend, s->gradients);
}

static int close_device(void **state) {
    (void)state;
    if (!g.device.is_open) return 0;
    close_site(&g.vk);
    close_site(&g.cpu);
    ok(tl_free_cpu_backend(&g.device.env, &g.cpu_backend));
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

// The shader in C. The words of a range on the CPU; those of an empty one are nowhere.
static uint32_t *words_of(tl_range range) {
    void *words = NULL;
    if (!range.bytes) return NULL;
    ok(g.cpu_backend.map(g.cpu_backend.self, range, TL_MAP_READ | TL_MAP_WRITE, &words));
    ok(g.cpu_backend.unmap(g.cpu_backend.self, range, TL_MAP_READ | TL_MAP_WRITE, words));
    return (uint32_t *)words;
}

static uint32_t hash(uint32_t sum, uint32_t word) {
    sum = (sum ^ word) * UINT32_C(2654435769);
    return (sum ^ (sum >> 15)) * UINT32_C(2246822519);
}

static void mix_on_cpu(tl_range target, tl_range source, uint32_t seed, uint32_t factor) {
    uint32_t *to = words_of(target), *from = words_of(source), sum = seed, word;
    uint64_t i;
    for (i = 0; i < source.bytes / 4; i++) {
        memcpy(&word, from + i, 4);
        sum = hash(sum, word);
    }
    for (i = 0; i < target.bytes / 4; i++) {
        memcpy(&word, to + i, 4);
        word = word * factor + hash(sum, (uint32_t)i);
        memcpy(to + i, &word, 4);
    }
}

// Mix a source into a target: factor 0 overwrites, 3 adds.
static tl_result mix(tl_range target, tl_range source, uint64_t seed, uint32_t factor) {
    tl_access accesses[2];
    tl_range ranges[2];
    uint32_t push[4];
    tl_result result;
    if (!target.bytes) return TL_OK;
    if (g.at->is_cpu) {
        mix_on_cpu(target, source, (uint32_t)(seed ^ seed >> 32), factor);
        return TL_OK;
    }
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
        if (operands[i].range.bytes) result = mix(g.at->digest, operands[i].range, seed + (uint64_t)i, 3);
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
    result = mix(g.at->digest, nothing, seed, 0);
    if (!result) result = digest_operands(call->inputs, node->input_count, 10);
    if (!result) result = mix(call->scratch.range, g.at->digest, 1, 0);
    for (i = 0; i < node->output_count && !result && !call->outputs_ready; i++)
        result = mix(call->outputs[i].range, g.at->digest, 100 + (uint64_t)i, 0);
    return result ? result : mix(call->saved.range, g.at->digest, 2, 0);
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    static const tl_range nothing;
    mixer *m = (mixer *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    tl_range gradient = g.at->gradients;
    tl_result result = mix(g.at->digest, nothing, tl_mix_u64(call->seed, (uint64_t)call->node), 0);
    int32_t i;
    m->backwards++;
    gradient.offset = (uint64_t)call->node * SLOT;
    gradient.bytes = DIGEST;
    if (!result) result = digest_operands(call->inputs, node->input_count, 10);
    if (!result) result = digest_operands(call->outputs, node->output_count, 20);
    if (!result) result = digest_operands(call->output_grads, node->output_count, 30);
    if (!result) result = digest_operands(&call->saved, 1, 40);
    if (!result) result = mix(call->scratch.range, g.at->digest, 1, 0);
    if (!result) result = mix(gradient, g.at->digest, 3, 3);
    for (i = 0; i < node->input_count && !result; i++)
        result = mix(call->input_grads[i].range, g.at->digest, 200 + (uint64_t)i, 3);
    for (i = 0; i < node->output_count && node->state && !result; i++)      // an update
        result = mix(call->outputs[i].range, g.at->digest, 300 + (uint64_t)i, 3);
    return result;
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
    return write_inputs(run, (const tl_graph *)user, micro_batch);
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
        if (!is_result[i] && !graph->nodes[output->node].state) continue;
        assert_true(out->result_bytes + output->bytes <= RESULT_BYTES);
        tensor.node = output->node;
        tensor.output = output->output;
        ok(tl_read_tensor(run, tensor, out->results + out->result_bytes, output->bytes));
        out->result_bytes += (size_t)output->bytes;
    }
    free(is_result);
    access.range = g.at->gradients;
    access.writes = 0;
    ok(g.at->backend->order(g.at->backend->self, &access, 1));
    ok(g.at->backend->map(g.at->backend->self, g.at->gradients, TL_MAP_READ, &mapped));
    for (i = 0; i < NODES; i++) memcpy(out->gradients[i], (const char *)mapped + i * SLOT, DIGEST);
    ok(g.at->backend->unmap(g.at->backend->self, g.at->gradients, TL_MAP_READ, mapped));
}

// Two training steps by a plan, within a budget (0 = none).
static void run_plan(const tl_graph *graph, const tl_plan *plan, uint64_t budget, const mixer *faults, outcome *out) {
    tl_kernel kernels[NODES];
    tl_run_desc desc;
    tl_run *run;
    memset(out, 0, sizeof *out);
    memset(&desc, 0, sizeof desc);
    if (faults) out->m = *faults;
    ok(g.at->backend->fill(g.at->backend->self, g.at->gradients, 0));
    desc.graph = graph;
    desc.backend = g.at->backend;
    desc.kernels = kernels;
    desc.kernel_count = list_kernels(graph, forward, backward, &out->m, kernels);
    desc.plan = plan;
    desc.budget_bytes = budget;
    desc.load = load;
    desc.load_user = (void *)(uintptr_t)graph;
    desc.seed = 42;
    ok(tl_init_run(&g.device.env, &desc, &run));
    ok(write_states(run, graph));
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

// A random graph of whole words, of which `states` nodes at most are states.
static void make_graph(tl_random *random, int32_t states, tl_graph *graph) {
    tl_node *nodes;
    tl_node_output *outputs;
    int32_t i;
    if (random_graph(NULL, random, NODES - states, graph)) fail_msg("%s", "no graph");
    if (states) {
        tl_graph plain = *graph;
        if (random_add_states(NULL, random, &plain, states, graph)) fail_msg("%s", "no states");
        tl_free_graph(NULL, &plain);
    }
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

static void walk_graphs(uint64_t seed, int inference, int32_t states, long rounds) {
    static outcome expected, got;
    tl_random random;
    long round, recomputes = 0, lower = 0, faults = 0, seen = 0;
    random.state = seed;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_plan all, plan;
        uint64_t budget;
        make_graph(&random, states, &graph);
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
    if (!is_thinned()) assert_true(lower * 2 > rounds && (inference || (recomputes * 3 > rounds && faults > 0)));
    if (!inference) assert_int_equal(seen, faults);
    assert_int_equal(vkt_messages(&g.device.v), 0);
}

static void random_graphs_run_as_planned_with_the_gradients_of_keep_all(void **state) {
    (void)state;
    NEED_DEVICE();
    walk_graphs(130, 0, 0, scaled(50));
}

static void random_graphs_with_states_are_trained_as_keep_all_trains_them(void **state) {
    (void)state;
    NEED_DEVICE();
    walk_graphs(132, 0, 6, scaled(40));
}

static void forward_only_graphs_give_the_results_of_keep_all(void **state) {
    (void)state;
    NEED_DEVICE();
    walk_graphs(131, 1, 0, scaled(20));
}

// -- a device that allocates little at once --

static void (*device_limits)(void *self, tl_backend_limits *limits);
static uint64_t largest_block;

static void limits_with_largest(void *self, tl_backend_limits *limits) {
    device_limits(self, limits);
    limits->block_bytes = largest_block;
}

static void random_graphs_run_in_blocks_with_the_gradients_of_keep_all(void **state) {
    static outcome expected, got;
    tl_random random = { 132 };
    tl_backend_limits limits;
    long round, rounds = scaled(20), cut = 0;
    (void)state;
    NEED_DEVICE();
    device_limits = g.device.backend.limits;
    device_limits(g.device.backend.self, &limits);
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_plan all, plan;
        uint64_t budget, unit = limits.granularity_bytes > limits.alignment_bytes ? limits.granularity_bytes : limits.alignment_bytes;
        make_graph(&random, 0, &graph);
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        make_plan(&random, &graph, &all, &budget, &plan);
        run_plan(&graph, &all, 0, NULL, &expected);
        largest_block = (random_largest(&graph) + unit - 1) / unit * unit + limits.block_overhead_bytes[TL_TIER_DEVICE] +
                        unit * tl_next_random_below(&random, 3);
        g.device.backend.limits = limits_with_largest;
        run_plan(&graph, &plan, 0, NULL, &got);
        g.device.backend.limits = device_limits;
        assert_int_equal(got.report.measured_peak_bytes, plan.peak_bytes);
        assert_int_equal(got.report.taken_bytes, got.report.planned_taken_bytes);
        assert_true(got.report.measured_arena_bytes <= largest_block);
        cut += got.report.taken_bytes > largest_block;
        if (!same_outcome(&expected, &got)) fail_msg("graph %ld: other gradients or results", round);
        tl_free_plan(NULL, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    assert_true(cut > rounds / 2);     // the others fit one block
    assert_int_equal(vkt_messages(&g.device.v), 0);
}

// -- slots and entry --

enum { MOST_SLOTS = 4 };

typedef struct slots {
    const tl_graph *graph;
    const tl_plan  *plan;
    mixer           m;
    unsigned char   gradients[NODES][DIGEST];
    unsigned char   results[MOST_SLOTS][RESULT_BYTES];
    size_t          result_bytes[MOST_SLOTS];
    tl_run_report   report;
} slots;

static void fill_words(unsigned char *bytes, uint64_t count, uint64_t seed) {
    uint64_t k;
    for (k = 0; k < count; k++) bytes[k] = (unsigned char)tl_mix_u64(seed, k);
}

// The inputs of a micro-batch, and what is there at its start.
static tl_result load_slot(tl_run *run, int32_t micro_batch, void *user) {
    const slots *s = (const slots *)user;
    int32_t slot = micro_batch % tli_count_slots(s->plan), i;
    unsigned char bytes[1024];
    tl_result result = tl_choose_slot(run, slot);
    if (!result) result = load(run, micro_batch, (void *)(uintptr_t)s->graph);
    for (i = 0; i < s->plan->entry_count && !result; i++) {
        const tl_entry *entry = &s->plan->entry[i];
        int32_t index = s->graph->nodes[entry->node].first_output + entry->output;
        tl_tensor tensor;
        if (entry->slot != slot) continue;
        tensor.node = entry->node;
        tensor.output = entry->output;
        assert_true(s->graph->outputs[index].bytes <= sizeof bytes);
        fill_words(bytes, s->graph->outputs[index].bytes, (uint64_t)micro_batch * 7777 + (uint64_t)index);
        result = tl_write_tensor(run, tensor, bytes, s->graph->outputs[index].bytes);
    }
    return result;
}

// Two training steps of a plan with slots.
static void run_slots(const site *at, const tl_graph *graph, const tl_plan *plan, slots *s) {
    static outcome one;
    tl_kernel kernels[NODES];
    tl_run_desc desc;
    tl_run *run;
    int32_t slot;
    memset(s, 0, sizeof *s);
    memset(&desc, 0, sizeof desc);
    g.at = at;
    s->graph = graph;
    s->plan = plan;
    ok(at->backend->fill(at->backend->self, at->gradients, 0));
    desc.graph = graph;
    desc.backend = at->backend;
    desc.kernels = kernels;
    desc.kernel_count = list_kernels(graph, forward, backward, &s->m, kernels);
    desc.plan = plan;
    desc.host_budget_bytes = UINT64_MAX;
    desc.load = load_slot;
    desc.load_user = s;
    desc.seed = 42;
    ok(tl_init_run(&g.device.env, &desc, &run));
    ok(tl_run_plan(run));
    ok(tl_run_plan(run));
    tl_measure_run(run, &s->report);
    for (slot = 0; slot < tli_count_slots(plan); slot++) {
        memset(&one, 0, sizeof one);
        ok(tl_choose_slot(run, slot));
        read_outcome(run, graph, plan->inference, &one);
        memcpy(s->results[slot], one.results, one.result_bytes);
        s->result_bytes[slot] = one.result_bytes;
    }
    memcpy(s->gradients, one.gradients, sizeof s->gradients);
    tl_free_run(run);
    g.at = &g.vk;
    assert_int_equal(s->report.measured_peak_bytes, s->report.planned_peak_bytes);
    assert_int_equal(s->report.measured_arena_bytes, s->report.planned_arena_bytes);
    assert_int_equal(s->report.measured_host_peak_bytes, s->report.planned_host_peak_bytes);
    assert_int_equal(s->report.taken_bytes, s->report.planned_taken_bytes);
}

static void plans_with_slots_and_entry_give_what_the_cpu_gives(void **state) {
    static slots vk, cpu;
    tl_random random = { 133 };
    tl_backend_limits limits;
    long round, rounds = scaled(300), valid = 0, placed = 0, entries = 0, several = 0, spills = 0;
    (void)state;
    NEED_DEVICE();
    g.device.backend.limits(g.device.backend.self, &limits);
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_plan plan;
        tl_device device;
        tl_simulate_desc desc;
        tl_report report;
        int32_t i, compresses = 0;
        memset(&device, 0, sizeof device);
        memset(&desc, 0, sizeof desc);
        make_graph(&random, 0, &graph);
        device.alignment_bytes = limits.alignment_bytes;
        ok(random_slot_plan(NULL, &random, &graph, 1 + (int32_t)tl_next_random_below(&random, MOST_SLOTS - 1), &plan));
        if (round % 2) ok(random_offsets(NULL, &random, &graph, &device, &plan));
        desc.graph = &graph;
        desc.plan = &plan;
        desc.device = &device;
        if (tl_simulate_plan(NULL, &desc, &report)) plan.offset_count = 0;
        plan.alignment_bytes = plan.offset_count ? device.alignment_bytes : 0;
        for (i = 0; i < plan.step_count; i++) compresses |= plan.steps[i].kind == TL_STEP_COMPRESS;   // of words that are no f32
        if (!compresses && !tl_simulate_plan(NULL, &desc, &report)) {
            run_slots(&g.vk, &graph, &plan, &vk);
            run_slots(&g.cpu, &graph, &plan, &cpu);
            assert_true(vk.m.forwards == cpu.m.forwards && vk.m.backwards == cpu.m.backwards);
            assert_int_equal(vk.report.measured_peak_bytes, cpu.report.measured_peak_bytes);
            if (memcmp(vk.gradients, cpu.gradients, sizeof vk.gradients)) fail_msg("round %ld: other gradients", round);
            for (i = 0; i < tli_count_slots(&plan); i++)
                if (vk.result_bytes[i] != cpu.result_bytes[i] || memcmp(vk.results[i], cpu.results[i], vk.result_bytes[i]))
                    fail_msg("round %ld: other results in slot %d", round, (int)i);
            valid++;
            placed += plan.offset_count > 0;
            entries += plan.entry_count > 0;
            several += tli_count_slots(&plan) > 1;
            spills += vk.report.planned_host_peak_bytes > 0;
        }
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld of %ld plans ran: %ld with several slots, %ld with an entry, %ld with offsets of their own, %ld with host copies\n", valid,
           rounds, several, entries, placed, spills);
    assert_true(is_thinned() || (several > rounds / 20 && entries > rounds / 100 && placed > 0 && spills > 0));
    assert_int_equal(vkt_messages(&g.device.v), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_run_as_planned_with_the_gradients_of_keep_all),
        cmocka_unit_test(random_graphs_with_states_are_trained_as_keep_all_trains_them),
        cmocka_unit_test(forward_only_graphs_give_the_results_of_keep_all),
        cmocka_unit_test(random_graphs_run_in_blocks_with_the_gradients_of_keep_all),
        cmocka_unit_test(plans_with_slots_and_entry_give_what_the_cpu_gives),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, close_device);
}
