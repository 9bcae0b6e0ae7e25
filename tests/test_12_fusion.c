// [12] RUN: fused chains of elementwise nodes, carried out block by block.
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/rank_hub.h"
#include "nn.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/texts.h"

// -- kernels, and what a call must look like --

enum { MOST_ELEMENTS = 1500, MOST_NODES = 48, OP_COUNT = 9 };

typedef struct bench {
    spy        spy;
    tl_env     env, backend_env;
    tl_backend backend;
    tl_kernel  kernels[OP_COUNT];
    tl_run_desc desc;
    tl_run    *run;
    uint64_t   alignment, element_bytes;
    // What the kernels saw. Arrays over elements begin at the element's number.
    float      outputs[MOST_NODES][MOST_ELEMENTS], gradients[MOST_NODES][MOST_ELEMENTS];
    float      weight_gradient;
    long       calls, blocks;        // of kernels; of these, for a part of the elements
    long       fail_at;              // call that fails; -1 = none
    int        fail_node;
} bench;

// A part of a tensor begins where an offset may begin and has the call's elements.
static void check_operand(const bench *e, const tl_kernel_call *call, const tl_operand *operand, uint64_t bytes) {
    uint64_t rest = bytes - call->first * 4;
    if (!operand->range.bytes) return;
    assert_int_equal(operand->range.offset % e->alignment, 0);
    assert_int_equal(operand->range.bytes, call->first + call->count < call->total ? call->count * 4 : rest);
}

static void check_call(bench *e, const tl_kernel_call *call) {
    const tl_graph *graph = call->graph;
    const tl_node *node = &graph->nodes[call->node];
    const tl_node_output *output = &graph->outputs[node->first_output];
    int backward = call->kind == TL_STEP_BACKWARD;
    int32_t i;
    assert_ptr_equal(graph, e->desc.graph);
    assert_int_equal(call->total, (output->bytes + 3) / 4);
    assert_true(call->count > 0 && call->first + call->count <= call->total);
    if (!node->takes_blocks) assert_int_equal(call->count, call->total);
    for (i = 0; i < node->input_count; i++) {
        const tl_node_input *input = &graph->inputs[node->first_input + i];
        assert_int_equal(call->inputs[i].range.bytes > 0, !backward || input->needed);
        assert_int_equal(call->input_grads[i].range.bytes > 0,
                         backward && graph->nodes[graph->outputs[input->tensor].node].has_grad);
        check_operand(e, call, &call->inputs[i], graph->outputs[input->tensor].bytes);
        check_operand(e, call, &call->input_grads[i], graph->outputs[input->tensor].bytes);
    }
    assert_int_equal(call->outputs[0].range.bytes > 0, !backward || output->needed);
    assert_int_equal(call->output_grads[0].range.bytes > 0, backward);
    check_operand(e, call, &call->outputs[0], output->bytes);
    check_operand(e, call, &call->output_grads[0], output->bytes);
    assert_int_equal(call->saved.range.bytes, 0);
    assert_int_equal(call->scratch.range.bytes, backward ? node->bwork_bytes : node->fwork_bytes);
    assert_int_equal(call->scratch.range.offset % e->alignment, 0);
    if (call->scratch.host) memset(call->scratch.host, 0x5A, (size_t)call->scratch.range.bytes);
    e->calls++;
    e->blocks += call->count < call->total;
}

static const char *const ops[OP_COUNT] = { "weigh", "relu", "gelu", "dropout", "scale", "add", "mul", "tanh", "total" };

static tl_result forward(const tl_kernel_call *call, void *user) {
    bench *e = (bench *)user;
    const char *op = tl_name_op(call->graph, call->node);
    float *out = (float *)call->outputs[0].host;
    const float *a = (const float *)call->inputs[0].host;
    const float *b = (const float *)(call->graph->nodes[call->node].input_count > 1 ? call->inputs[1].host : NULL);
    size_t n = (size_t)call->count, i;
    if (e->calls++ == e->fail_at) { e->fail_node = call->node; return TL_ERROR_CORRUPT; }
    e->calls--;
    check_call(e, call);
    if (!strcmp(op, "gelu")) nn_gelu_forward(out, a, n);
    else if (!strcmp(op, "add")) nn_add_forward(out, a, b, n);
    else if (!strcmp(op, "dropout")) nn_dropout_forward(out, a, n, 0.3f, call->seed, call->first);
    for (i = 0; i < n && !strcmp(op, "weigh"); i++) out[i] = 1.25f * a[i];
    for (i = 0; i < n && !strcmp(op, "relu"); i++) out[i] = a[i] > 0 ? a[i] : 0.0f;
    for (i = 0; i < n && !strcmp(op, "scale"); i++) out[i] = 0.75f * a[i];
    for (i = 0; i < n && !strcmp(op, "mul"); i++) out[i] = a[i] * b[i];
    for (i = 0; i < n && !strcmp(op, "tanh"); i++) out[i] = a[i] / (1.0f + (a[i] < 0 ? -a[i] : a[i]));
    for (i = 0; i < n && !strcmp(op, "total"); i++) out[i] = a[i];
    memcpy(e->outputs[call->node] + call->first, out, n * sizeof *out);
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    bench *e = (bench *)user;
    const char *op = tl_name_op(call->graph, call->node);
    const float *dout = (const float *)call->output_grads[0].host, *out = (const float *)call->outputs[0].host;
    const float *a = (const float *)call->inputs[0].host;
    float *da = (float *)call->input_grads[0].host;
    size_t n = (size_t)call->count, i;
    if (e->calls++ == e->fail_at) { e->fail_node = call->node; return TL_ERROR_CORRUPT; }
    e->calls--;
    check_call(e, call);
    memcpy(e->gradients[call->node] + call->first, dout, n * sizeof *dout);
    for (i = 0; i < n && !strcmp(op, "weigh"); i++) e->weight_gradient += a[i] * dout[i];
    if (!strcmp(op, "gelu")) nn_gelu_backward(da, dout, a, n);
    else if (!strcmp(op, "add")) nn_add_backward(da, (float *)call->input_grads[1].host, dout, n);
    else if (!strcmp(op, "dropout")) nn_dropout_backward(da, dout, n, 0.3f, call->seed, call->first);
    else if (!strcmp(op, "mul")) {
        const float *b = (const float *)call->inputs[1].host;
        float *db = (float *)call->input_grads[1].host;
        for (i = 0; i < n && da; i++) da[i] += b[i] * dout[i];
        for (i = 0; i < n && db; i++) db[i] += a[i] * dout[i];
    }
    if (!da) return TL_OK;
    for (i = 0; i < n && !strcmp(op, "relu"); i++) da[i] += out[i] > 0 ? dout[i] : 0.0f;
    for (i = 0; i < n && !strcmp(op, "scale"); i++) da[i] += 0.75f * dout[i];
    for (i = 0; i < n && !strcmp(op, "total"); i++) da[i] += (float)((call->first + i) % 7 + 1) * dout[i];
    for (i = 0; i < n && !strcmp(op, "tanh"); i++) da[i] += (1.0f - out[i] * out[i]) * dout[i];
    for (i = 0; i < n && !strcmp(op, "weigh"); i++) da[i] += 1.25f * dout[i];
    return TL_OK;
}

static void open_bench(bench *e, const tl_graph *graph, int kind, uint64_t alignment) {
    int i;
    memset(e, 0, sizeof *e);
    e->backend = spy_open(&e->backend_env, kind, 7, alignment, &e->spy);
    e->alignment = alignment;
    e->fail_at = -1;
    for (i = 0; i < OP_COUNT; i++) {
        e->kernels[i].op = ops[i];
        e->kernels[i].forward = forward;
        e->kernels[i].backward = backward;
        e->kernels[i].user = e;
    }
    e->desc.graph = graph;
    e->desc.backend = &e->backend;
    e->desc.kernels = e->kernels;
    e->desc.kernel_count = OP_COUNT;
    e->desc.seed = 42;
}

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    const tl_graph *graph = ((bench *)user)->desc.graph;
    int32_t i;
    for (i = 0; i < graph->node_count; i++) {
        tl_tensor tensor = { 0, 0 };
        tl_result result;
        static float data[MOST_ELEMENTS];
        if (!graph->nodes[i].is_input) continue;
        nn_fill_normal(data, MOST_ELEMENTS, 1.0f, (uint64_t)(100 * micro_batch + i));
        tensor.node = i;
        result = tl_write_tensor(run, tensor, data, graph->outputs[graph->nodes[i].first_output].bytes);
        if (result && result != TL_ERROR_NOT_FOUND) return result;     // of another rank
    }
    return TL_OK;
}

static void init_bench(bench *e) {
    e->desc.load = load;
    e->desc.load_user = e;
    if (tl_init_run(&e->env, &e->desc, &e->run)) fail_msg("%s", e->env.error.text);
}

static void close_bench(bench *e) {
    tl_free_run(e->run);
    e->run = NULL;
    spy_close(&e->backend_env, &e->spy);
}

// One training step, or all its passes step by step with kernels called by hand.
static void run_bench(bench *e, int by_hand) {
    int32_t k, done;
    tl_run_report report;
    memset(e->gradients, 0, sizeof e->gradients);
    memset(e->outputs, 0, sizeof e->outputs);
    e->weight_gradient = 0;
    e->calls = e->blocks = 0;
    if (!by_hand && tl_run_plan(e->run)) fail_msg("%s", e->env.error.text);
    for (k = 0; by_hand && k < e->desc.repeat_count; k++) {
        tl_run_step step, before;
        memset(&before, 0, sizeof before);
        before.index = -1;
        if (load(e->run, k, e) || tl_start_pass(e->run, k)) fail_msg("%s", e->env.error.text);
        for (done = 0;;) {
            tl_result result = tl_next_step(e->run, &step, &done);
            if (result == TL_NOT_READY) continue;
            if (result) fail_msg("%s", e->env.error.text);
            if (done) break;
            if (!step.is_compute) continue;
            if (step.index == before.index) {
                assert_memory_equal(&step.step, &before.step, sizeof step.step);
                if (step.call.node != before.call.node || step.call.kind != before.call.kind) assert_int_equal(step.depends_on, step.index);
                assert_int_equal(tl_run_step_kernel(e->run, &before), TL_ERROR_STALE);
            }
            result = tl_map_step(e->run, &step);
            if (!result) result = (step.call.kind == TL_STEP_BACKWARD ? backward : forward)(&step.call, e);
            if (!result) result = tl_finish_step(e->run, &step);
            if (result) fail_msg("%s", e->env.error.text);
            before = step;
        }
    }
    tl_measure_run(e->run, &report);
    assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
}

static void assert_same_floats(const tl_graph *graph, int32_t node, const char *what, const float *a, const float *b) {
    int k;
    for (k = 0; k < MOST_ELEMENTS; k++)
        if (memcmp(&a[k], &b[k], sizeof a[k]))
            fail_msg("%s of node %d (%s), element %d: %g and %g", what, (int)node, tl_name_op(graph, node), k, a[k], b[k]);
}

// Results and gradients must be the same to the bit; those of nodes that did not run are zeroes.
static void assert_same(bench *a, bench *b) {
    const tl_graph *graph = a->desc.graph;
    static float x[MOST_ELEMENTS], y[MOST_ELEMENTS];
    int32_t i;
    for (i = 0; i < graph->node_count; i++) {
        uint64_t bytes = graph->outputs[graph->nodes[i].first_output].bytes;
        tl_tensor tensor = { 0, 0 };
        assert_same_floats(graph, i, "output", a->outputs[i], b->outputs[i]);
        assert_same_floats(graph, i, "gradient", a->gradients[i], b->gradients[i]);
        tensor.node = i;
        if (!graph->nodes[i].keep) continue;
        if (tl_read_tensor(a->run, tensor, x, bytes)) fail_msg("%s", a->env.error.text);
        if (tl_read_tensor(b->run, tensor, y, bytes)) fail_msg("%s", b->env.error.text);
        assert_memory_equal(x, y, (size_t)bytes);
    }
    assert_memory_equal(&a->weight_gradient, &b->weight_gradient, sizeof a->weight_gradient);
}

// -- graphs --

static int put(char *text, int length, const char *format, ...) {
    va_list list;
    va_start(list, format);
    length += vsnprintf(text + length, 16384 - (size_t)length, format, list);
    va_end(list);
    return length;
}

// x, y, weigh, then mostly chains of elementwise nodes, some with a second input that others read too.
static tl_graph random_chains(tl_random *random, uint64_t bytes) {
    static char text[16384];
    const char *op[MOST_NODES];
    int from[MOST_NODES], other[MOST_NODES], is_read[MOST_NODES] = { 0 };
    int nodes = random_count(random, 4, MOST_NODES - 4), i, length, out = (int)bytes;
    length = put(text, 0, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\nnode 1 y input fwd=0 bwd=0 out=%d needs=none in=-\n"
                 "node 2 w weigh fwd=3 bwd=3 out=%d needs=in in=0 takes_blocks\n", out, out, out);
    for (i = 3; i < nodes; i++) {
        int two;
        op[i] = ops[tl_next_random_below(random, OP_COUNT - 2) + 1];
        two = !strcmp(op[i], "add") || !strcmp(op[i], "mul");
        from[i] = random_chance(random, 85) ? i - 1 : random_count(random, 2, i - 1);
        other[i] = !two ? -1 : random_count(random, strcmp(op[i], "add") ? 0 : 2, i - 1);
        if (!two && random_chance(random, 10)) op[i] = "weigh";
        is_read[from[i]] = 1;
        if (two) is_read[other[i]] = 1;
    }
    for (i = 3; i < nodes; i++) {
        const char *needs = "none";
        if (!strcmp(op[i], "gelu") || !strcmp(op[i], "mul") || !strcmp(op[i], "weigh")) needs = "in";
        if (!strcmp(op[i], "relu") || !strcmp(op[i], "tanh")) needs = "out";
        length = put(text, length, "node %d n%d %s fwd=%d bwd=2 out=%d needs=%s in=%d", i, i, op[i], random_count(random, 1, 9), out, needs, from[i]);
        if (other[i] >= 0) length = put(text, length, ",%d", other[i]);
        if (random_chance(random, 10)) length = put(text, length, " fwork=40");
        if (random_chance(random, 10)) length = put(text, length, " bwork=33");
        if (random_chance(random, 40) && strcmp(needs, "in") && other[i] != from[i]) length = put(text, length, " inplace=0");
        if (i < nodes - 1 && (!is_read[i] || random_chance(random, 5))) length = put(text, length, " keep");
        length = put(text, length, " takes_blocks\n");
    }
    (void)put(text, length, "node %d t total fwd=1 bwd=1 out=%d needs=none in=%d keep takes_blocks\n", nodes, out, nodes - 1);
    return graph_of(text);
}

static tl_graph chain_of(int count, uint64_t bytes, const char *flags) {
    static const char *const kinds[] = { "gelu", "dropout", "scale", "relu" };
    static char text[16384];
    int i, length = put(text, 0, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\nnode 1 w weigh fwd=3 bwd=3 out=%d needs=in in=0\n",
                        (int)bytes, (int)bytes);
    for (i = 0; i < count; i++)
        length = put(text, length, "node %d n%d %s fwd=1 bwd=1 out=%d needs=%s in=%d%s\n", i + 2, i + 2, kinds[i % 4], (int)bytes,
                     i % 4 == 0 ? "in" : i % 4 == 3 ? "out" : "none", i + 1, flags);
    (void)put(text, length, "node %d t total fwd=1 bwd=1 out=%d needs=none in=%d keep\n", count + 2, (int)bytes, count + 1);
    return graph_of(text);
}

static tl_fusion_plan fusion_of(const tl_graph *graph, uint64_t block_bytes, uint64_t alignment, int inference) {
    tl_fusion_desc desc;
    tl_fusion_plan fusion;
    tl_env env = silent_env();
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.block_bytes = block_bytes;
    desc.blocks_only = 1;
    desc.alignment_bytes = alignment;
    desc.inference = inference;
    if (tl_plan_fusion(&env, &desc, &fusion)) fail_msg("%s", env.error.text);
    return fusion;
}

// The plan of a run over a graph: everything kept, or within a budget. 0 = none, the run decides online.
static int choose_plan(const tl_graph *graph, tl_random *random, int inference, uint64_t alignment, tl_plan *plan, uint64_t *budget) {
    tl_env env = silent_env();
    tl_remat_desc remat;
    tl_remat_report report;
    tl_plan keep_all;
    uint64_t choice = tl_next_random_below(random, 4);
    memset(plan, 0, sizeof *plan);
    *budget = 0;
    if (tl_plan_keep_all(&env, graph, inference, &keep_all)) fail_msg("%s", env.error.text);
    if (choice == 0) { *plan = keep_all; return 1; }
    memset(&remat, 0, sizeof remat);
    remat.graph = graph;
    remat.inference = inference;
    remat.alignment_bytes = alignment;
    remat.budget_bytes = keep_all.peak_bytes - tl_next_random_below(random, keep_all.peak_bytes / 2);
    remat.work_limit = 20000;
    tl_free_plan(&env, &keep_all);
    if (tl_plan_remat(&env, &remat, plan, &report)) {
        remat.budget_bytes = report.least_budget_bytes;
        if (tl_plan_remat(&env, &remat, plan, &report)) fail_msg("%s", env.error.text);
    }
    if (choice < 3) return 1;
    *budget = 2 * plan->peak_bytes + 1000;
    return 0;
}

// Blocks of any length, on every kind of backend, under plans and online: to the bit what the nodes compute alone.
static void fused_runs_compute_what_the_nodes_do(void **state) {
    static bench whole, fused;
    long blocks = 0, members = 0, recomputes = 0, in_place = 0;
    int round;
    (void)state;
    for (round = 0; round < scaled(400); round++) {
        tl_random random = { (uint64_t)round + 1 };
        uint64_t bytes = 4 + 4 * tl_next_random_below(&random, MOST_ELEMENTS - 1), budget;
        uint64_t alignment = UINT64_C(4) << random_count(&random, 0, 5), block = UINT64_C(64) << tl_next_random_below(&random, 11);
        int inference = random_chance(&random, 25), planned, pass;
        tl_graph graph;
        tl_fusion_plan fusion;
        tl_plan plan;
        tl_run_report report;
        graph = random_chains(&random, bytes);
        fusion = fusion_of(&graph, block, alignment, inference);
        members += fusion.fused_count;
        open_bench(&whole, &graph, 0, alignment);
        open_bench(&fused, &graph, round % BACKEND_KINDS, alignment);
        planned = choose_plan(&fusion.graph, &random, inference, alignment, &plan, &budget);
        whole.desc.inference = fused.desc.inference = inference;
        whole.desc.repeat_count = fused.desc.repeat_count = 2;
        fused.desc.fusion = &fusion;
        if (planned) fused.desc.plan = &plan;
        fused.desc.budget_bytes = budget;
        if (random_chance(&random, 30)) fused.spy.binding = 4 * alignment + 400;
        init_bench(&whole);
        init_bench(&fused);
        assert_ptr_equal(tl_find_run_graph(fused.run), &fusion.graph);
        for (pass = 0; pass < 2; pass++) {
            run_bench(&whole, 0);
            run_bench(&fused, random_chance(&random, 50));
            assert_same(&whole, &fused);
            tl_measure_run(fused.run, &report);
            assert_int_equal(report.fused_count, fusion.fused_count);
            recomputes += report.recompute_count;
        }
        for (pass = 0; pass < plan.step_count && planned; pass++) {
            tl_step step = tl_find_step(&plan, pass);
            in_place += step.kind == TL_STEP_FORWARD_INPLACE && fusion.first_members[step.node + 1] - fusion.first_members[step.node] > 1;
        }
        blocks += fused.blocks;
        close_bench(&whole);
        close_bench(&fused);
        tl_free_plan(NULL, &plan);
        tl_free_fusion_plan(NULL, &fusion);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld fused nodes, %ld calls for blocks, %ld forwards again, %ld in place\n", members, blocks, recomputes, in_place);
    assert_true(members > round / 2 && blocks > 25 * round && recomputes > round / 40 && in_place > round / 40);
}

// -- the strategy --

static tl_strategy fused_strategy(int inference) {
    tl_strategy strategy = inference ? tl_with_gradient(tl_strategy_training(), tl_gradient_none()) : tl_strategy_training();
    strategy.parallelism = tl_parallelism_none();
    return strategy;
}

// Twenty elementwise nodes: the strategy fuses them, the peak falls, and the bits stay.
static void the_strategy_fuses_a_chain(void **state) {
    static bench whole, fused;
    tl_graph graph = chain_of(20, 4 * MOST_ELEMENTS, " takes_blocks");
    tl_strategy off = tl_with_fusion(fused_strategy(0), 0), on = fused_strategy(0);
    tl_run_report before, after;
    tl_tensor inner = { 5, 0 };
    float data[MOST_ELEMENTS];
    (void)state;
    open_bench(&whole, &graph, BACKEND_CHECKED, 64);
    open_bench(&fused, &graph, BACKEND_CHECKED, 64);
    whole.desc.strategy = &off;
    fused.desc.strategy = &on;
    init_bench(&fused);     // backward would have to run forwards again: nothing pays for that
    tl_measure_run(fused.run, &after);
    assert_int_equal(after.fused_count, 0);
    tl_free_run(fused.run);
    fused.desc.budget_bytes = 10 * 4 * MOST_ELEMENTS;   // in which the chain as it is does not fit
    init_bench(&whole);
    init_bench(&fused);
    tl_measure_run(fused.run, &after);
    assert_int_equal(after.fused_count, 1);
    run_bench(&whole, 0);
    run_bench(&fused, 0);
    assert_same(&whole, &fused);
    tl_measure_run(whole.run, &before);
    tl_measure_run(fused.run, &after);
    assert_int_equal(before.fused_count, 0);
    assert_int_equal(after.fused_count, 1);
    assert_true(after.measured_peak_bytes < before.measured_peak_bytes);
    assert_true(after.taken_bytes < before.taken_bytes);
    assert_int_equal(after.forward_count, 3);
    assert_int_equal(tl_read_tensor(fused.run, inner, data, sizeof data), TL_ERROR_NOT_FOUND);
    assert_non_null(strstr(fused.env.error.text, "tensor: inside of a fused node"));
    close_bench(&whole);
    close_bench(&fused);
    tl_free_graph(NULL, &graph);
}

// -- precisions, and decisions made online --

// Kernels on elements of 2 bytes; graph inputs have 4.
static tl_result count_up(const tl_kernel_call *call, void *user) {
    bench *e = (bench *)user;
    int backward = call->kind == TL_STEP_BACKWARD, is_first = call->node == 1;
    const uint16_t *from = (const uint16_t *)(backward ? call->output_grads[0].host : call->inputs[0].host);
    uint16_t *to = (uint16_t *)(backward ? call->input_grads[0].host : call->outputs[0].host);
    uint64_t i;
    assert_int_equal(call->total, 777);
    assert_int_equal(call->graph->outputs[call->node].bytes, 2 * 777);
    if (!is_first || !backward) assert_int_equal(call->inputs[0].range.bytes, backward ? 0 : (is_first ? 4 : 2) * call->count);
    e->calls++;
    e->blocks += call->count < call->total;
    for (i = 0; i < call->count && !backward; i++)
        to[i] = (uint16_t)(from[is_first ? 2 * i : i] * 3 + call->node + (uint16_t)(call->first + i) + (uint16_t)call->seed);
    for (i = 0; i < call->count && backward; i++) {
        uint16_t gradient = (uint16_t)(from[i] * 5 + call->node);
        if (is_first) ((uint16_t *)(void *)e->gradients[0])[call->first + i] = gradient;
        else to[i] = (uint16_t)(to[i] + gradient);
    }
    return TL_OK;
}

static void precisions_of_other_sizes_are_cut_by_elements(void **state) {
    static bench whole, fused;
    static uint16_t results[2][777];
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=3108 needs=none in=-\n"
                              "node 1 w weigh fwd=1 bwd=1 out=3108 needs=none in=0 takes_blocks\n"
                              "node 2 a scale fwd=1 bwd=1 out=3108 needs=none in=1 takes_blocks\n"
                              "node 3 b scale fwd=1 bwd=1 out=3108 needs=none in=2 takes_blocks\n"
                              "node 4 c scale fwd=1 bwd=1 out=3108 needs=none in=3 keep takes_blocks\n");
    tl_strategy on = tl_with_precision(fused_strategy(0), TL_PRECISION_HALF), off = tl_with_fusion(on, 0);
    tl_tensor last = { 4, 0 };
    int i, k;
    (void)state;
    for (i = 0; i < 2; i++) {
        bench *e = i ? &fused : &whole;
        open_bench(e, &graph, BACKEND_CHECKED, 64);
        for (k = 0; k < OP_COUNT; k++) e->kernels[k].forward = e->kernels[k].backward = count_up;
        e->desc.kernel_precisions = 1u << TL_PRECISION_HALF;
        e->desc.strategy = i ? &on : &off;
        init_bench(e);
        if (tl_run_plan(e->run) || tl_read_tensor(e->run, last, results[i], sizeof results[i])) fail_msg("%s", e->env.error.text);
    }
    assert_true(whole.blocks == 0 && fused.blocks > 20);
    assert_memory_equal(results[0], results[1], sizeof results[0]);
    assert_memory_equal(whole.gradients[0], fused.gradients[0], 2 * 777);
    close_bench(&whole);
    close_bench(&fused);
    tl_free_graph(NULL, &graph);
}

// Online the decisions are made over the fused graph, within a budget that the nodes one by one do not fit.
static void online_runs_are_fused_too(void **state) {
    static bench whole, fused;
    tl_graph graph = chain_of(16, 4 * MOST_ELEMENTS, " takes_blocks");
    tl_strategy on = tl_with_mode(tl_with_gradient(fused_strategy(0), tl_gradient_checkpointed(0)), TL_MODE_EAGER), off = tl_with_fusion(on, 0);
    tl_run_report report;
    uint64_t least;
    (void)state;
    open_bench(&whole, &graph, 0, 64);
    open_bench(&fused, &graph, BACKEND_CHECKED, 64);
    fused.desc.strategy = &on;
    fused.desc.budget_bytes = 1;
    assert_int_equal(tl_init_run(&fused.env, &fused.desc, &fused.run), TL_ERROR_INFEASIBLE);
    fused.desc.budget_bytes = least = tl_find_least_budget(&fused.env.error);
    init_bench(&fused);
    whole.desc.strategy = &off;
    init_bench(&whole);
    run_bench(&whole, 0);
    run_bench(&fused, 0);
    assert_same(&whole, &fused);
    tl_measure_run(fused.run, &report);
    assert_true(report.fused_count == 1 && report.taken_bytes <= least);
    close_bench(&whole);
    close_bench(&fused);
    tl_free_graph(NULL, &graph);
}

// Small tensors have blocks that are small against them, and of a whole alignment.
static void blocks_suit_the_tensor_and_the_backend(void **state) {
    static bench e;
    static const struct { uint64_t bytes, alignment; uint64_t calls; } cases[] = {
        { 6000, 64, 9 }, { 6000, 256, 8 }, { 100, 64, 2 }, { 100, 256, 1 }, { 4, 16, 1 }
    };
    int i;
    (void)state;
    for (i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        tl_graph graph = chain_of(3, cases[i].bytes, " takes_blocks");
        tl_strategy on = fused_strategy(1);
        open_bench(&e, &graph, BACKEND_CHECKED, cases[i].alignment);
        e.desc.strategy = &on;
        init_bench(&e);
        run_bench(&e, 0);
        assert_int_equal(e.calls, 3 * cases[i].calls + 2);
        close_bench(&e);
        tl_free_graph(NULL, &graph);
    }
}

// Costs of all calls of a fused graph.
// Of the cost of a fused node, each block of each member is a part: no submit holds more than its limit.
static void a_submit_holds_blocks_of_members(void **state) {
    static bench e;
    tl_graph graph = chain_of(4, 400, " takes_blocks");
    tl_fusion_plan fusion = fusion_of(&graph, 128, 64, 1);
    tl_device device;
    tl_run_report report;
    int32_t i, round;
    uint64_t calls = 0;
    (void)state;
    memset(&device, 0, sizeof device);
    for (round = 0; round < 2; round++) {
        for (i = 0; i < fusion.graph.node_count; i++) {
            tl_node *node = (tl_node *)(uintptr_t)&fusion.graph.nodes[i];
            node->fwd_cost = node->takes_blocks && !node->is_input ? 1000 * calls : 0;
        }
        open_bench(&e, &graph, 0, 64);
        e.desc.fusion = &fusion;
        e.desc.inference = 1;
        e.desc.device = &device;
        e.desc.submit_ns = 1000;
        init_bench(&e);
        run_bench(&e, 0);
        tl_measure_run(e.run, &report);
        assert_int_equal(report.fused_count, 1);
        assert_int_equal(report.longest_submit_ns, round ? 1000 : 0);
        if (round) assert_true(e.spy.calls[SPY_SUBMIT] > (long)calls / 2);
        calls = (uint64_t)e.blocks;
        assert_true(calls >= 4 * 4);
        close_bench(&e);
    }
    tl_free_fusion_plan(NULL, &fusion);
    tl_free_graph(NULL, &graph);
}

static uint64_t sum_fused_costs(tl_fusion_desc desc, uint64_t call_cost, tl_fusion_plan *fusion) {
    uint64_t sum = 0;
    int32_t id;
    desc.call_cost = call_cost;
    assert_int_equal(tl_plan_fusion(NULL, &desc, fusion), TL_OK);
    for (id = 0; id < fusion->graph.node_count; id++)
        sum += fusion->graph.nodes[id].fwd_cost + fusion->graph.nodes[id].bwd_cost;
    return sum;
}

// What blocks cost more than the nodes one by one is a call's price for each call that is made more.
static void calls_are_priced_as_they_are_made(void **state) {
    static bench whole, fused;
    static const uint64_t bytes[] = { 4, 256, 260, 4 * MOST_ELEMENTS };
    tl_strategy on = fused_strategy(0), off = tl_with_fusion(on, 0);
    int i;
    (void)state;
    for (i = 0; i < 12; i++) {
        tl_graph graph = chain_of(2 + i, bytes[i % 4], " takes_blocks");
        tl_fusion_desc desc;
        tl_fusion_plan plain, fusion;
        uint64_t free_calls, priced;
        int64_t more;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.block_bytes = i < 6 ? 64 : 192;
        desc.alignment_bytes = 64;
        desc.blocks_only = 1;
        free_calls = sum_fused_costs(desc, 0, &plain);
        open_bench(&whole, &graph, BACKEND_CHECKED, 64);
        open_bench(&fused, &graph, BACKEND_CHECKED, 64);
        whole.desc.strategy = &off;
        fused.desc.strategy = &on;
        fused.desc.fusion = &fusion;
        priced = sum_fused_costs(desc, 1000, &fusion);
        init_bench(&whole);
        init_bench(&fused);
        run_bench(&whole, 0);
        run_bench(&fused, 0);
        assert_same(&whole, &fused);
        assert_int_equal(fusion.fused_count, 1);
        // a forward that runs again costs what it does, so that its first call is in that
        more = fused.calls - whole.calls - fusion.recompute_counts[fusion.nodes[2]];
        assert_int_equal(priced - free_calls, 1000 * more);
        close_bench(&whole);
        close_bench(&fused);
        tl_free_fusion_plan(NULL, &plain);
        tl_free_fusion_plan(NULL, &fusion);
        tl_free_graph(NULL, &graph);
    }
}

// Where a call costs more than its block saves, nothing is fused; where a device is not the host's, only for bytes.
static void what_calls_cost_decides(void **state) {
    static bench e;
    tl_graph graph = chain_of(4, 4 * MOST_ELEMENTS, " takes_blocks");
    tl_strategy on = fused_strategy(1);
    tl_run_report report;
    tl_device device;
    int i;
    (void)state;
    memset(&device, 0, sizeof device);
    for (i = 0; i < 4; i++) {
        open_bench(&e, &graph, BACKEND_CHECKED, 64);
        e.spy.is_remote = i == 3;
        device.call_latency_ns = i == 2 ? 1 : 0;
        e.desc.strategy = &on;
        e.desc.device = i ? &device : NULL;
        init_bench(&e);
        tl_measure_run(e.run, &report);
        assert_int_equal(report.fused_count, i < 2);
        close_bench(&e);
    }
    tl_free_graph(NULL, &graph);
}

static tl_result count_call(const tl_kernel_call *call, void *user) {
    if (strcmp(tl_name_op(call->graph, call->node), "scale") == 0) ++*(long *)user;
    return TL_OK;
}

// Where it is known what a call takes, blocks are so large that it is an eighth of the time in which one is read and written.
static void blocks_suit_what_calls_take(void **state) {
    static bench e;
    static const struct { uint64_t latency, rate; long calls; } cases[] = {
        { 0, 0, 3 * 256 }, { 50000, 1000000000, 3 * 21 }, { 1, 1000000000, 3 * 256 }, { 50000, 0, 3 * 256 }, { 1 << 20, 1000000000, 3 * 8 }
    };
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=4194304 needs=none in=-\n"
                              "node 1 a scale fwd=1 bwd=1 out=4194304 needs=none in=0 takes_blocks\n"
                              "node 2 b scale fwd=1 bwd=1 out=4194304 needs=none in=1 takes_blocks\n"
                              "node 3 c scale fwd=1 bwd=1 out=4194304 needs=none in=2 keep takes_blocks\n");
    tl_strategy on = tl_with_mode(fused_strategy(1), TL_MODE_EAGER);    // fused, whatever it costs
    int i, k;
    (void)state;
    for (i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        tl_device device;
        long calls = 0;
        memset(&device, 0, sizeof device);
        device.call_latency_ns = cases[i].latency;
        device.bytes_per_second = cases[i].rate;
        open_bench(&e, &graph, 0, 64);
        for (k = 0; k < OP_COUNT; k++) {
            e.kernels[k].forward = count_call;
            e.kernels[k].user = &calls;
        }
        e.desc.strategy = &on;
        e.desc.device = &device;
        if (tl_init_run(&e.env, &e.desc, &e.run) || tl_run_plan(e.run)) fail_msg("%s", e.env.error.text);
        assert_int_equal(calls, cases[i].calls);
        close_bench(&e);
    }
    tl_free_graph(NULL, &graph);
}

static tl_result init_with(bench *e, const tl_fusion_plan *fusion, const tl_strategy *strategy, const tl_plan *plan) {
    e->desc.fusion = fusion;
    e->desc.strategy = strategy;
    e->desc.plan = plan;
    return tl_init_run(&e->env, &e->desc, &e->run);
}

// -- ranks --

// Chains of some lengths with a node between them that is not fused.
static tl_graph chains_of(int count, int length, uint64_t bytes) {
    static const char *const kinds[] = { "gelu", "dropout", "scale", "relu" };
    static char text[16384];
    int i, k, id = 2, at = put(text, 0, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\n"
                               "node 1 w weigh fwd=3 bwd=3 out=%d needs=in in=0\n", (int)bytes, (int)bytes);
    for (i = 0; i < count; i++) {
        for (k = 0; k < length; k++, id++)
            at = put(text, at, "node %d n%d %s fwd=1 bwd=1 out=%d needs=%s in=%d takes_blocks\n", id, id, kinds[k % 4], (int)bytes,
                     k % 4 == 0 ? "in" : k % 4 == 3 ? "out" : "none", id - 1);
        at = put(text, at, "node %d t%d total fwd=2 bwd=2 out=%d needs=none in=%d%s\n", id, id, (int)bytes, id - 1,
                 i + 1 == count ? " keep" : "");
        id++;
    }
    return graph_of(text);
}

enum { RANKS = 3, RANK_BATCHES = 4 };

typedef struct fused_ranks {
    rank_hub hub;
    bench    benches[RANKS];
} fused_ranks;

static void open_fused_ranks(fused_ranks *f, const tl_graph *graph) {
    int r;
    hub_open(&f->hub, RANKS, 0, NULL);
    for (r = 0; r < RANKS; r++) {
        open_bench(&f->benches[r], graph, BACKEND_CHECKED, 64);
        f->benches[r].desc.transport = &f->hub.transports[r];
    }
}

static tl_result run_fused_rank(int32_t rank, void *user) {
    bench *e = &((fused_ranks *)user)->benches[rank];
    tl_result result = tl_run_plan(e->run);
    if (result && result != TL_NOT_READY) fail_msg("rank %d: %s", (int)rank, e->env.error.text);
    return result;
}

// One step of all ranks; returns how many blocks were called.
static long run_fused_ranks(fused_ranks *f) {
    int r;
    long blocks = 0;
    for (r = 0; r < RANKS; r++) f->benches[r].calls = f->benches[r].blocks = 0;
    hub_take_turns(&f->hub, NULL, run_fused_rank, f);
    for (r = 0; r < RANKS; r++) {
        tl_run_report report;
        tl_measure_run(f->benches[r].run, &report);
        assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
        assert_int_equal(report.planned_arena_bytes, report.measured_arena_bytes);
        blocks += f->benches[r].blocks;
    }
    return blocks;
}

// Every node's last output and gradient are those of one process, on the rank that has the node, and nowhere else.
static void check_fused_ranks(const fused_ranks *f, const tl_compiled_ranks *ranks, const bench *whole) {
    const tl_graph *graph = whole->desc.graph;
    static const float none[MOST_ELEMENTS];
    float sum = 0;
    int32_t id, r;
    for (r = 0; r < RANKS; r++) sum += f->benches[r].weight_gradient;
    assert_memory_equal(&sum, &whole->weight_gradient, sizeof sum);
    for (id = 1; id < graph->node_count; id++)
        for (r = 0; r < RANKS; r++) {
            const bench *e = &f->benches[r];
            int is_here = tl_find_node_rank(ranks, id) == r;
            assert_same_floats(graph, id, "output", is_here ? whole->outputs[id] : none, e->outputs[id]);
            assert_same_floats(graph, id, "gradient", is_here ? whole->gradients[id] : none, e->gradients[id]);
        }
    for (r = 0; r < RANKS; r++) {   // the map: a node is a member of what computes it
        const tl_compiled_plan *plan = &ranks->ranks[r].compiled;
        int32_t at, count = 0;
        for (id = 0; id < plan->graph->node_count; id++)
            for (at = plan->first_members[id]; at < plan->first_members[id + 1]; at++, count++)
                assert_int_equal(plan->nodes[plan->members[at]], id);
        for (id = 0; id < graph->node_count; id++) count -= plan->nodes[id] >= 0;
        assert_int_equal(count, 0);
    }
    assert_int_equal(tl_find_node_rank(ranks, -1), -1);
    assert_int_equal(tl_find_node_rank(ranks, graph->node_count), -1);
}

static void run_whole(bench *whole, const tl_graph *graph, tl_plan *plan) {
    open_bench(whole, graph, BACKEND_CHECKED, 64);
    if (tl_plan_keep_all(&whole->env, graph, 0, plan)) fail_msg("%s", whole->env.error.text);
    whole->desc.plan = plan;
    whole->desc.repeat_count = RANK_BATCHES;
    init_bench(whole);
    run_bench(whole, 0);
}

// The graph compiled with chains fused as the fewest bytes ask for it.
static tl_compiled_plan fused_whole(const tl_graph *graph, int inference) {
    tl_strategy strategy = fused_strategy(inference);
    tl_env env = silent_env();
    tl_compile_desc desc;
    tl_compiled_plan compiled;
    memset(&desc, 0, sizeof desc);
    strategy.memory = TL_MEMORY_MINIMAL_PEAK;
    desc.graph = graph;
    desc.strategy = &strategy;
    desc.alignment_bytes = 64;
    desc.fusion_block_bytes = 1024;
    desc.work_limit = 20000000;
    if (tl_compile(&env, &desc, &compiled)) fail_msg("%s", env.error.text);
    return compiled;
}

static void ranks_of_fused_graphs_have_the_bits_of_one_process(void **state) {
    static fused_ranks f;
    static bench whole;
    long fused = 0;
    int round, r;
    (void)state;
    for (round = 0; round < 12; round++) {
        tl_graph graph = chains_of(3 + round % 3, 2 + round % 5, round % 4 ? 4 * MOST_ELEMENTS : 300);
        tl_compiled_plan compiled = fused_whole(&graph, 0);
        tl_env env = silent_env();
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        tl_plan plan;
        run_whole(&whole, &graph, &plan);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.compiled = &compiled;
        desc.rank_count = RANKS;
        desc.micro_batch_count = RANK_BATCHES;
        desc.alignment_bytes = 64;
        desc.pipeline = round % 2 ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        open_fused_ranks(&f, &graph);
        for (r = 0; r < RANKS; r++) {
            f.benches[r].desc.compiled = &ranks.ranks[r].compiled;
            fused += ranks.ranks[r].compiled.choice.fused_count;
            init_bench(&f.benches[r]);
        }
        (void)run_fused_ranks(&f);
        check_fused_ranks(&f, &ranks, &whole);
        for (r = 0; r < RANKS; r++) close_bench(&f.benches[r]);
        hub_close(&f.hub);
        tl_free_compiled_ranks(&env, &ranks);
        close_bench(&whole);
        tl_free_plan(NULL, &plan);
        tl_free_compiled_plan(NULL, &compiled);
        tl_free_graph(NULL, &graph);
    }
    assert_true(fused >= 18);
}

static void ranks_refuse_what_they_cannot_cut(void **state) {
    tl_graph graph = chains_of(3, 4, 400), other = chains_of(3, 5, 400);
    tl_compiled_plan foreign = fused_whole(&other, 0), none, forward_only = fused_whole(&graph, 1);
    tl_env env = silent_env();
    tl_ranks_desc desc;
    tl_compiled_ranks ranks, again;
    (void)state;
    memset(&none, 0, sizeof none);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.rank_count = 2;
    desc.micro_batch_count = 1;
    desc.compiled = &foreign;
    assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_compile_ranks: compiled: not made by tl_compile for this graph");
    desc.compiled = &none;
    assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INVALID_ARG);
    desc.compiled = &forward_only;
    assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_compile_ranks: compiled: its inference is not that of the desc");
    desc.inference = 1;
    assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_OK);
    desc.compiled = &ranks.ranks[0].compiled;      // of a rank
    assert_int_equal(tl_compile_ranks(&env, &desc, &again), TL_ERROR_INVALID_ARG);
    tl_free_compiled_ranks(&env, &ranks);
    tl_free_compiled_plan(NULL, &foreign);
    tl_free_compiled_plan(NULL, &forward_only);
    tl_free_graph(NULL, &other);
    tl_free_graph(NULL, &graph);
}

// A strategy with fusion: where it costs nothing, and where the bytes ask for it.
static void pipelines_of_strategies_are_fused(void **state) {
    static fused_ranks f;
    static bench whole;
    tl_graph graph = chains_of(4, 5, 4 * MOST_ELEMENTS);
    tl_strategy strategy = tl_with_parallelism(fused_strategy(0), tl_parallelism_pipeline(RANKS));
    tl_plan plan;
    int round, r;
    long fused[2] = { 0, 0 };
    (void)state;
    strategy.gradient.accumulation_steps = RANK_BATCHES;
    run_whole(&whole, &graph, &plan);
    for (round = 0; round < 2; round++) {
        open_fused_ranks(&f, &graph);
        for (r = 0; r < RANKS; r++) {
            tl_run_report report;
            f.benches[r].desc.strategy = &strategy;
            f.benches[r].desc.budget_bytes = round ? 60000 : 0;   // more than what fits unfused
            init_bench(&f.benches[r]);
            tl_measure_run(f.benches[r].run, &report);
            fused[round] += report.fused_count;
        }
        (void)run_fused_ranks(&f);
        for (r = 0; r < RANKS; r++) {
            int32_t id;
            for (id = 1; id < graph.node_count; id++)
                if (f.benches[r].outputs[id][0] != 0)
                    assert_same_floats(&graph, id, "gradient", whole.gradients[id], f.benches[r].gradients[id]);
            close_bench(&f.benches[r]);
        }
        hub_close(&f.hub);
    }
    assert_true(fused[0] == 0 && fused[1] == 4);   // backwards would run forwards again
    close_bench(&whole);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void assert_refused(bench *e, tl_result got, tl_result expected, const char *text) {
    assert_int_equal(got, expected);
    assert_null(e->run);
    if (!strstr(e->env.error.text, text)) fail_msg("\"%s\" where \"%s\" was expected", e->env.error.text, text);
}

static void ignore_moment(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user) {
    (void)moment; (void)node; (void)micro_batch; (void)user;
}

static void what_cannot_be_fused_is_refused(void **state) {
    static bench e;
    tl_graph graph = chain_of(6, 400, " takes_blocks"), other = chain_of(7, 400, " takes_blocks"), stubborn;
    tl_fusion_plan fusion = fusion_of(&graph, 64, 64, 0), foreign = fusion_of(&other, 64, 64, 0), broken;
    tl_fusion_plan inference = fusion_of(&graph, 64, 64, 1), tight = fusion_of(&graph, 64, 0, 0);
    tl_strategy on = fused_strategy(0), off = tl_with_fusion(on, 0), forward_only = tl_with_gradient(on, tl_gradient_none());
    tl_fusion_desc desc;
    tl_env env = silent_env();
    int32_t members[16];
    tl_plan plan;
    (void)state;
    if (tl_plan_keep_all(&env, &graph, 0, &plan)) fail_msg("%s", env.error.text);
    open_bench(&e, &graph, 0, 64);
    assert_refused(&e, init_with(&e, &fusion, &off, NULL), TL_ERROR_INVALID_ARG, "fusion: given, but strategy.enable_fusion is 0");
    assert_refused(&e, init_with(&e, NULL, &on, &plan), TL_ERROR_INVALID_ARG, "strategy.enable_fusion: the plan or the formats");
    assert_refused(&e, init_with(&e, &foreign, NULL, NULL), TL_ERROR_INVALID_ARG, "fusion: not made of the graph");
    assert_refused(&e, init_with(&e, &inference, NULL, NULL), TL_ERROR_INVALID_ARG, "fusion: made for inference");
    assert_refused(&e, init_with(&e, &fusion, NULL, &plan), TL_ERROR_INVALID_PLAN, "");  // a plan of the other graph
    memcpy(members, fusion.members, (size_t)graph.node_count * sizeof *members);
    broken = fusion;
    broken.members = members;
    members[3] = fusion.members[4];
    members[4] = fusion.members[3];
    assert_refused(&e, init_with(&e, &broken, NULL, NULL), TL_ERROR_INVALID_ARG, "fusion: not made of the graph");
    e.desc.random = ignore_moment;
    assert_refused(&e, init_with(&e, &fusion, NULL, NULL), TL_ERROR_UNSUPPORTED, "fusion: members take turns, so the random hook");
    assert_refused(&e, init_with(&e, NULL, &forward_only, NULL), TL_ERROR_UNSUPPORTED, "fusion: members take turns");
    e.desc.random = NULL;
    e.kernels[3].op = "drop";   // no kernel for a member
    assert_refused(&e, init_with(&e, &fusion, NULL, NULL), TL_ERROR_INVALID_ARG, "kernels: ");
    assert_non_null(strstr(e.env.error.text, "dropout"));
    e.kernels[3].op = "dropout";
    e.kernels[3].backward = NULL;
    assert_refused(&e, init_with(&e, &fusion, NULL, NULL), TL_ERROR_INVALID_ARG, "kernels: ");
    close_bench(&e);
    // Blocks of 64 bytes on a backend that aligns to 256, and a scratch that is larger than a binding.
    open_bench(&e, &graph, 0, 256);
    assert_refused(&e, init_with(&e, &tight, NULL, NULL), TL_ERROR_UNSUPPORTED, "holds no block that is aligned to 256");
    close_bench(&e);
    open_bench(&e, &graph, 0, 64);
    e.spy.binding = 63;
    assert_refused(&e, init_with(&e, &fusion, NULL, NULL), TL_ERROR_UNSUPPORTED, "holds no block");
    close_bench(&e);
    tl_free_plan(NULL, &plan);
    // A member that does not say takes_blocks is fused only by those who ask for it, and not run.
    stubborn = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=400 needs=none in=-\nnode 1 w weigh fwd=1 bwd=1 out=400 needs=in in=0\n"
                        "node 2 a scale fwd=1 bwd=1 out=400 needs=none in=1 takes_blocks\n"
                        "node 3 obstinate relu fwd=1 bwd=1 out=400 needs=out in=2\n"
                        "node 4 c scale fwd=1 bwd=1 out=400 needs=none in=3 keep takes_blocks\n");
    memset(&desc, 0, sizeof desc);
    desc.graph = &stubborn;
    if (tl_plan_fusion(&env, &desc, &broken)) fail_msg("%s", env.error.text);
    assert_int_equal(broken.fused_count, 1);
    open_bench(&e, &stubborn, 0, 64);
    assert_refused(&e, init_with(&e, &broken, NULL, NULL), TL_ERROR_UNSUPPORTED, "does not say takes_blocks: node 3 (obstinate)");
    e.desc.strategy = &on;
    e.desc.fusion = NULL;
    init_bench(&e);
    run_bench(&e, 0);
    {
        tl_run_report report;
        tl_measure_run(e.run, &report);
        assert_int_equal(report.fused_count, 0);
    }
    close_bench(&e);
    tl_free_fusion_plan(NULL, &broken);
    desc.blocks_only = 2;
    assert_int_equal(tl_plan_fusion(&env, &desc, &broken), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_fusion: blocks_only: must be 0 or 1");
    desc.blocks_only = 0;
    desc.alignment_bytes = 48;
    assert_int_equal(tl_plan_fusion(&env, &desc, &broken), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_fusion: alignment_bytes: must be 0 or a power of two");
    desc.alignment_bytes = UINT64_C(1) << 63;
    assert_int_equal(tl_plan_fusion(&env, &desc, &broken), TL_ERROR_OVERFLOW);
    tl_free_graph(NULL, &stubborn);
    tl_free_fusion_plan(NULL, &fusion);
    tl_free_fusion_plan(NULL, &foreign);
    tl_free_fusion_plan(NULL, &inference);
    tl_free_fusion_plan(NULL, &tight);
    tl_free_graph(NULL, &graph);
    tl_free_graph(NULL, &other);
}

// -- failures --

// Each call of a kernel fails once: the sentence names the member, and the next pass is right.
static void a_kernel_that_fails_in_a_block_leaves_the_run_usable(void **state) {
    static bench whole, fused;
    tl_graph graph = chain_of(5, 1000, " takes_blocks");
    tl_strategy on = fused_strategy(0), off = tl_with_fusion(on, 0);
    long calls, at;
    (void)state;
    open_bench(&whole, &graph, 0, 64);
    open_bench(&fused, &graph, BACKEND_CHECKED, 64);
    whole.desc.strategy = &off;
    fused.desc.strategy = &on;
    fused.desc.budget_bytes = 6000;    // in which the chain as it is does not fit
    init_bench(&whole);
    init_bench(&fused);
    run_bench(&whole, 0);
    run_bench(&fused, 0);
    calls = fused.calls;
    assert_true(calls > 60);
    for (at = 0; at < calls; at++) {
        char name[32];
        fused.calls = 0;
        fused.fail_at = at;
        assert_int_equal(tl_run_plan(fused.run), TL_ERROR_KERNEL);
        snprintf(name, sizeof name, "node %d", fused.fail_node);
        if (!strstr(fused.env.error.text, name)) fail_msg("%s: %s", name, fused.env.error.text);
        fused.fail_at = -1;
        if (at % 7) continue;
        run_bench(&fused, 0);
        run_bench(&whole, 0);
        assert_same(&whole, &fused);
    }
    close_bench(&whole);
    close_bench(&fused);
    tl_free_graph(NULL, &graph);
}

// Any call of the backend may fail at any turn: the pass ends with an error, and the next one is right.
static void failing_backends_are_survived_at_every_turn(void **state) {
    static const spy_function functions[] = { SPY_ORDER, SPY_MAP, SPY_UNMAP, SPY_FILL, SPY_CLAIM, SPY_RELEASE };
    static bench whole, fused;
    tl_graph graph = chain_of(4, 400, " takes_blocks");
    tl_strategy on = fused_strategy(0), off = tl_with_fusion(on, 0);
    long failed = 0, at;
    int f;
    (void)state;
    open_bench(&whole, &graph, 0, 64);
    open_bench(&fused, &graph, 0, 64);
    whole.desc.strategy = &off;
    fused.desc.strategy = &on;
    init_bench(&whole);
    init_bench(&fused);
    for (f = 0; f < 6; f++) {
        for (at = 0;; at += 1 + at / 20) {
            tl_result result;
            fused.spy.fail_function = (int)functions[f];
            fused.spy.fail_at = fused.spy.calls[functions[f]] + at;
            result = tl_run_plan(fused.run);
            fused.spy.fail_function = -1;
            if (!result) break;
            failed++;
            assert_true(fused.env.error.text[0]);
        }
        run_bench(&whole, 0);   // the step that has passed at last, and one more
        run_bench(&whole, 0);
        run_bench(&fused, 0);
        assert_same(&whole, &fused);
    }
    assert_true(failed > 30);
    close_bench(&whole);
    close_bench(&fused);
    tl_free_graph(NULL, &graph);
}

static void every_allocation_may_fail(void **state) {
    static bench e;
    tl_graph graph = chain_of(4, 400, " takes_blocks");
    tl_strategy on = fused_strategy(0);
    long at, refused = 0;
    (void)state;
    for (at = 0;; at++) {
        failing_alloc f = { 0 };
        tl_result result;
        open_bench(&e, &graph, 0, 64);
        e.desc.strategy = &on;
        e.env = failing_env(&f, at);
        result = tl_init_run(&e.env, &e.desc, &e.run);
        if (!result) result = tl_run_plan(e.run);
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        refused += result != TL_OK;
        close_bench(&e);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(refused > 20);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_runs_compute_what_the_nodes_do),
        cmocka_unit_test(the_strategy_fuses_a_chain),
        cmocka_unit_test(precisions_of_other_sizes_are_cut_by_elements),
        cmocka_unit_test(online_runs_are_fused_too),
        cmocka_unit_test(blocks_suit_the_tensor_and_the_backend),
        cmocka_unit_test(blocks_suit_what_calls_take),
        cmocka_unit_test(a_submit_holds_blocks_of_members),
        cmocka_unit_test(calls_are_priced_as_they_are_made),
        cmocka_unit_test(what_calls_cost_decides),
        cmocka_unit_test(ranks_of_fused_graphs_have_the_bits_of_one_process),
        cmocka_unit_test(ranks_refuse_what_they_cannot_cut),
        cmocka_unit_test(pipelines_of_strategies_are_fused),
        cmocka_unit_test(what_cannot_be_fused_is_refused),
        cmocka_unit_test(a_kernel_that_fails_in_a_block_leaves_the_run_usable),
        cmocka_unit_test(failing_backends_are_survived_at_every_turn),
        cmocka_unit_test(every_allocation_may_fail),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
