// [12] RUN: compiled plans, carried out; the bytes they take, and their gradients to the bit.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/run_support.h"

// -- kernels that compute in f32 what they read in any 16-bit format --

enum { MOST_NODES = 40, MOST_ELEMENTS = 512, OP_COUNT = 8 };

typedef struct bench {
    spy         spy;
    tl_env      env, backend_env;
    tl_backend  backend;
    tl_kernel   kernels[OP_COUNT];
    tl_run_desc desc;
    tl_run     *run;
    float       weight_gradients[MOST_NODES];
    float       gradients[MOST_NODES][MOST_ELEMENTS];  // of outputs, summed over micro-batches by element
    long        calls, blocks, narrow;
} bench;

static const char *const ops[OP_COUNT] = { "weigh", "relu", "gelu", "scale", "add", "mul", "tanh", "fold" };

static tl_codec codec_of(tl_format format) { return format == TL_FORMAT_F16 ? TL_CODEC_F16 : TL_CODEC_BF16; }

static float get(const tl_operand *operand, size_t i) {
    float value;
    if (operand->format == TL_FORMAT_F32) return ((const float *)operand->host)[i];
    tl_expand_bytes(codec_of(operand->format), &value, (const uint16_t *)operand->host + i, sizeof value);
    return value;
}

static void set(const tl_operand *operand, size_t i, float value) {
    if (operand->format == TL_FORMAT_F32) ((float *)operand->host)[i] = value;
    else tl_compress_bytes(codec_of(operand->format), (uint16_t *)operand->host + i, &value, sizeof value);
}

static void add(const tl_operand *operand, size_t i, float value) {
    if (operand->range.bytes) set(operand, i, get(operand, i) + value);
}

// Nodes of all graphs of a case have the names of the first one.
static int number_of(const tl_kernel_call *call) { return atoi(tl_name_node(call->graph, call->node) + 1); }

static void count_call(bench *e, const tl_kernel_call *call) {
    e->calls++;
    e->blocks += call->count < call->total;
    e->narrow += call->outputs[0].format != TL_FORMAT_F32;
    assert_true(call->first + call->count <= call->total && call->total <= MOST_ELEMENTS);
    if (call->scratch.host) memset(call->scratch.host, 0x5A, (size_t)call->scratch.range.bytes);
}

static tl_result forward(const tl_kernel_call *call, void *user) {
    const char *op = tl_name_op(call->graph, call->node);
    size_t i, n = (size_t)call->count;
    count_call((bench *)user, call);
    for (i = 0; i < n; i++) {
        float a = get(&call->inputs[0], i % (size_t)(call->inputs[0].range.bytes / 2)), y = a;
        if (!strcmp(op, "weigh")) y = 1.25f * a;
        else if (!strcmp(op, "relu")) y = a > 0 ? a : 0.0f;
        else if (!strcmp(op, "gelu")) y = a / (1.0f + (a < 0 ? -a : a)) + 0.5f * a;
        else if (!strcmp(op, "scale")) y = 0.75f * a;
        else if (!strcmp(op, "add")) y = a + get(&call->inputs[1], i);
        else if (!strcmp(op, "mul")) y = a * get(&call->inputs[1], i);
        else if (!strcmp(op, "tanh")) y = a / (1.0f + (a < 0 ? -a : a));
        set(&call->outputs[0], i, y);
    }
    if (call->saved.host) memset(call->saved.host, 0x33, (size_t)call->saved.range.bytes);
    return TL_OK;
}

static void add_gradients(const tl_kernel_call *call, const char *op, size_t i, float dy, float *weight_gradient) {
    const tl_operand *dx = &call->input_grads[0];
    if (!strcmp(op, "weigh")) {
        *weight_gradient += get(&call->inputs[0], i) * dy;
        add(dx, i, 1.25f * dy);
    } else if (!strcmp(op, "relu")) add(dx, i, get(&call->outputs[0], i) > 0 ? dy : 0.0f);
    else if (!strcmp(op, "gelu")) {
        float a = get(&call->inputs[0], i), d = 1.0f + (a < 0 ? -a : a);
        add(dx, i, (1.0f / (d * d) + 0.5f) * dy);
    } else if (!strcmp(op, "scale")) add(dx, i, 0.75f * dy);
    else if (!strcmp(op, "add")) {
        add(dx, i, dy);
        add(&call->input_grads[1], i, dy);
    } else if (!strcmp(op, "mul")) {
        add(dx, i, get(&call->inputs[1], i) * dy);
        add(&call->input_grads[1], i, get(&call->inputs[0], i) * dy);
    } else if (!strcmp(op, "tanh")) {
        float y = get(&call->outputs[0], i);
        add(dx, i, (1.0f - y * y) * dy);
    } else add(dx, i, dy);
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    bench *e = (bench *)user;
    const char *op = tl_name_op(call->graph, call->node);
    int number = number_of(call);
    size_t i, n = (size_t)call->count;
    count_call(e, call);
    if (call->saved.range.bytes) assert_int_equal(((uint8_t *)call->saved.host)[call->saved.range.bytes - 1], 0x33);
    for (i = 0; i < n; i++) {
        float dy = get(&call->output_grads[0], i);
        e->gradients[number][call->first + i] += dy;
        add_gradients(call, op, i, dy, &e->weight_gradients[number]);
    }
    return TL_OK;
}

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    const tl_graph *graph = tl_find_run_graph(run);
    float data[MOST_ELEMENTS];
    tl_tensor tensor = { 0, 0 };
    uint64_t bytes = graph->outputs[0].bytes;
    size_t i;
    (void)user;
    for (i = 0; i < bytes / 4; i++)
        data[i] = (float)((i + 1) * 37 % 19) / 9.0f - 1.0f + (float)(micro_batch * 7 % 5) / 16.0f;
    return tl_write_tensor(run, tensor, data, bytes);
}

static void open_bench(bench *e, const tl_graph *graph, uint64_t alignment) {
    int i;
    memset(e, 0, sizeof *e);
    e->backend = spy_open(&e->backend_env, BACKEND_CHECKED, 7, alignment, &e->spy);
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
    e->desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    e->desc.load = load;
    e->desc.load_user = e;
}

static void close_bench(bench *e) {
    tl_free_run(e->run);
    spy_close(&e->backend_env, &e->spy);
}

// -- random graphs and strategies --

static uint64_t pick(tl_random *random, uint64_t count) { return tl_next_random(random) % count; }

// A graph of elementwise ops over a batch, the input first and a result last.
static void make_graph(tl_env *env, tl_random *random, tl_graph *graph, int32_t nodes) {
    static const uint64_t batches[] = { 1, 2, 4, 6, 8 };
    uint64_t batch = batches[pick(random, 5)], bytes = batch * 4 * (8 + pick(random, 40));
    tl_init_graph(graph);
    graph->batch = batch;
    while (graph->node_count < nodes) {
        int32_t id = graph->node_count;
        const char *op = id == 1 ? "weigh" : id + 1 == nodes ? "fold" : ops[pick(random, OP_COUNT - 1)];
        int two = !strcmp(op, "add") || !strcmp(op, "mul");
        tl_node_desc node;
        tl_tensor inputs[2];
        memset(&node, 0, sizeof node);
        memset(inputs, 0, sizeof inputs);
        inputs[0].node = id - 1;
        inputs[1].node = id > 1 ? 1 + (int32_t)pick(random, (uint64_t)id - 1) : 0;
        if (inputs[0].node == inputs[1].node && two) { op = "scale"; two = 0; }
        node.op = id ? op : "input";
        node.inputs = id ? inputs : NULL;
        node.input_count = id ? two ? 2 : 1 : 0;
        node.output_bytes = &bytes;
        node.output_count = 1;
        if (id) {
            node.needs = !strcmp(op, "relu") || !strcmp(op, "tanh") ? "out"
                       : two ? (!strcmp(op, "mul") ? "in" : "none")
                       : !strcmp(op, "scale") || !strcmp(op, "fold") ? "none" : "in";
            node.fwd_cost = 1 + pick(random, 20);
            node.bwd_cost = 1 + pick(random, 30);
            node.takes_blocks = strcmp(op, "weigh") != 0 && strcmp(op, "fold") != 0;
            node.keep = id + 1 == nodes;
            if (!node.takes_blocks && !pick(random, 3)) node.saved_bytes = batch * 8;
            if (!pick(random, 4)) node.fwork_bytes = 32;
        }
        assert_int_equal(tl_add_node(env, graph, &node, NULL), TL_OK);
    }
}

static tl_strategy random_strategy(tl_random *random) {
    static const tl_memory memories[] = { TL_MEMORY_POOLED, TL_MEMORY_POOLED, TL_MEMORY_MINIMAL_PEAK,
                                          TL_MEMORY_STANDARD, TL_MEMORY_CACHED };
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = pick(random, 3) ? TL_MODE_LAZY : TL_MODE_HYBRID;
    strategy.memory = memories[pick(random, 5)];
    strategy.precision = pick(random, 2) ? TL_PRECISION_MIXED : TL_PRECISION_SINGLE;
    strategy.enable_fusion = (int32_t)pick(random, 2);
    strategy.enable_profiling = (int32_t)pick(random, 2);
    switch (pick(random, 5)) {
    case 0: strategy.gradient = tl_gradient_full(); break;
    case 1: strategy.gradient = tl_gradient_checkpointed(1 + pick(random, 4)); break;
    case 2: strategy.gradient = tl_gradient_none(); break;
    default: strategy.gradient = tl_gradient_checkpointed(0); break;
    }
    return strategy;
}

// -- what a compiled run must equal: everything kept, the same formats, nothing fused --

static void make_reference(bench *e, const tl_compiled_plan *compiled, const tl_graph *source,
                           tl_precision_graph *applied, tl_plan *plan, uint64_t alignment) {
    static tl_precision_node nodes[MOST_NODES];
    tl_precision_plan formats;
    tl_apply_desc apply;
    tl_env env = {0};
    int32_t i;
    memset(&formats, 0, sizeof formats);
    memset(&apply, 0, sizeof apply);
    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < source->node_count; i++) {
        int32_t node = compiled && compiled->nodes ? compiled->nodes[i] : i;
        tl_format format = compiled && compiled->formats
                         ? (tl_format)compiled->formats[compiled->graph->nodes[node].first_output] : TL_FORMAT_F32;
        nodes[i].scheme = format == TL_FORMAT_F16 ? TL_SCHEME_F16 : format == TL_FORMAT_BF16 ? TL_SCHEME_BF16
                                                                                             : TL_SCHEME_F32;
        nodes[i].speedup = 1;
    }
    formats.nodes = nodes;
    formats.node_count = source->node_count;
    apply.graph = source;
    apply.plan = &formats;
    apply.training = 1;
    assert_int_equal(tl_apply_precision(&env, &apply, applied), TL_OK);
    open_bench(e, &applied->graph, alignment);
    assert_int_equal(tl_plan_keep_all(&env, &applied->graph, e->desc.inference, plan), TL_OK);
    e->desc.formats = applied->formats;
}

static void assert_same(const bench *a, const bench *b) {
    assert_memory_equal(a->gradients, b->gradients, sizeof a->gradients);
    assert_memory_equal(a->weight_gradients, b->weight_gradients, sizeof a->weight_gradients);
}

// Gradients of which some were computed from compressed tensors: as near as 8 bits allow, relative to the largest.
static void assert_near(const bench *a, const bench *b) {
    size_t i, k;
    for (i = 0; i < MOST_NODES; i++) {
        float largest = 0, off = 0;
        for (k = 0; k < MOST_ELEMENTS; k++) {
            float size = fabsf(b->gradients[i][k]), error = fabsf(a->gradients[i][k] - b->gradients[i][k]);
            if (size > largest) largest = size;
            if (error > off || error != error) off = error;
        }
        if (!(off <= 0.05f * largest)) fail_msg("node %d: off by %g of %g", (int)i, (double)off, (double)largest);
    }
}

// What was planned is what was measured, within the budget.
static void check_report(const bench *e) {
    tl_run_report report;
    tl_measure_run(e->run, &report);
    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
    assert_true(report.taken_bytes <= report.planned_taken_bytes || !report.planned_taken_bytes);
    assert_true(report.measured_peak_bytes <= e->desc.budget_bytes);
    if (report.planned_taken_bytes) assert_true(report.taken_bytes <= e->desc.budget_bytes);
}

typedef struct counts { long fused, narrow, split, again, compressed; } counts;

// One case: a random graph and strategy, as a run and as a run of what everything kept gives. Returns what ran.
static int run_case(tl_random *random, counts *sums) {
    static bench e, r;
    tl_env env = {0};
    tl_graph graph;
    tl_precision_graph applied;
    tl_plan plan, keep_all;
    tl_strategy strategy = random_strategy(random);
    uint64_t alignment = pick(random, 2) ? 4 : 64;
    const tl_compiled_plan *compiled;
    float first[MOST_ELEMENTS], second[MOST_ELEMENTS];
    tl_run_report report;
    tl_tensor last = { 0, 0 };
    tl_result result;
    int trains = strategy.gradient.computes;
    make_graph(&env, random, &graph, 5 + (int32_t)pick(random, 20));
    open_bench(&e, &graph, alignment);
    e.desc.strategy = &strategy;
    e.desc.may_split = (int32_t)pick(random, 2);
    if (!pick(random, getenv("SOAK") ? 3 : 25) && strategy.memory != TL_MEMORY_CACHED)   // these take all of the work
        e.desc.codec = (tl_codec)(1 + pick(random, TL_CODEC_COUNT - 1));
    assert_int_equal(tl_plan_keep_all(&env, &graph, !trains, &keep_all), TL_OK);
    e.desc.budget_bytes = keep_all.peak_bytes / 3 + pick(random, keep_all.peak_bytes) + 64;
    tl_free_plan(&env, &keep_all);
    result = tl_init_run(&e.env, &e.desc, &e.run);
    if (result == TL_ERROR_INFEASIBLE) {    // what it names is enough
        e.desc.budget_bytes = tl_find_least_budget(&e.env.error);
        result = tl_init_run(&e.env, &e.desc, &e.run);
    }
    if (result) fail_msg("%s", e.env.error.text);
    compiled = tl_find_compiled_plan(e.run);
    if (tl_run_plan(e.run)) fail_msg("%s", e.env.error.text);
    check_report(&e);
    tl_measure_run(e.run, &report);
    sums->again += report.recompute_count;
    sums->compressed += report.compress_count > 0;
    assert_true(e.desc.codec || !report.compress_count);
    if (compiled) {
        sums->fused += compiled->choice.fused_count;
        sums->narrow += compiled->formats != NULL;
        sums->split += compiled->choice.part_count > 1;
    }
    make_reference(&r, compiled, compiled ? compiled->source : &graph, &applied, &plan, alignment);
    if (!trains) {
        tl_free_plan(&env, &plan);
        assert_int_equal(tl_plan_keep_all(&env, &applied.graph, 1, &plan), TL_OK);
    }
    r.desc.plan = &plan;
    r.desc.repeat_count = compiled ? compiled->choice.part_count : 1;
    if (tl_init_run(&r.env, &r.desc, &r.run)) fail_msg("%s", r.env.error.text);
    if (tl_run_plan(r.run)) fail_msg("%s", r.env.error.text);
    if (report.compress_count) assert_near(&e, &r);
    else assert_same(&e, &r);
    last.node = graph.node_count - 1;
    if (tl_read_tensor(e.run, last, first, (compiled ? compiled->source : &graph)->outputs[last.node].bytes))
        fail_msg("%s", e.env.error.text);
    last.node = applied.graph.node_count - 1;
    if (tl_read_tensor(r.run, last, second, applied.graph.outputs[applied.graph.tensor_count - 1].bytes))
        fail_msg("%s", r.env.error.text);
    assert_memory_equal(first, second, applied.graph.outputs[applied.graph.tensor_count - 1].bytes);
    close_bench(&e);
    close_bench(&r);
    tl_free_plan(&env, &plan);
    tl_free_precision_graph(&env, &applied);
    tl_free_graph(&env, &graph);
    return 1;
}

static void random_strategies_run_as_planned(void **state) {
    tl_random random = {1};
    counts sums;
    long count = sampled(1000), i;
    (void)state;
    memset(&sums, 0, sizeof sums);
    if (!getenv("SOAK")) count = count / 5 + 1;
    for (i = 0; i < count; i++) (void)run_case(&random, &sums);
    print_message("%ld runs: %ld fused nodes, %ld with narrow formats, %ld of split batches, %ld forwards again, "
                  "%ld with compressed tensors\n", count, sums.fused, sums.narrow, sums.split, sums.again, sums.compressed);
    assert_true(sums.fused > count / 20 && sums.narrow > count / 20 && sums.split > count / 20 && sums.again > count / 20);
    assert_true(count < 200 || sums.compressed > 0);
}

// -- compiled plans that are given --

static void check_passes(const bench *e, int32_t passes) {
    tl_run_report report;
    tl_measure_run(e->run, &report);
    assert_int_equal(e->calls % passes, 0);
    assert_int_equal(report.kernel_count, e->calls / passes);
}

static tl_graph chain_graph(tl_env *env, uint64_t batch, int32_t nodes) {
    tl_graph graph;
    int32_t id;
    tl_init_graph(&graph);
    graph.batch = batch;
    for (id = 0; id < nodes; id++) {
        uint64_t bytes = batch * 64;
        tl_node_desc node;
        tl_tensor from = { 0, 0 };
        memset(&node, 0, sizeof node);
        from.node = id - 1;
        node.op = !id ? "input" : id % 3 == 1 ? "weigh" : id % 3 == 2 ? "scale" : "relu";
        if (id == nodes - 1) node.op = "fold";
        node.inputs = &from;
        node.input_count = id > 0;
        node.output_bytes = &bytes;
        node.output_count = 1;
        if (id) {
            node.needs = id == nodes - 1 || id % 3 == 2 ? "none" : id % 3 == 1 ? "in" : "out";
            node.fwd_cost = 10;
            node.bwd_cost = 20;
            node.takes_blocks = id < nodes - 1 && id % 3 != 1;
            node.keep = id == nodes - 1;
        }
        assert_int_equal(tl_add_node(env, &graph, &node, NULL), TL_OK);
    }
    return graph;
}

static tl_compile_desc compile_of(const tl_graph *graph, const tl_strategy *strategy) {
    tl_compile_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.strategy = strategy;
    desc.alignment_bytes = 64;
    desc.fusion_block_bytes = 64;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    return desc;
}

static void expect_refused(bench *e, tl_result code, const char *text) {
    assert_int_equal(tl_init_run(&e->env, &e->desc, &e->run), code);
    if (!strstr(e->env.error.text, text)) fail_msg("%s", e->env.error.text);
    assert_null(e->run);
}

static void given_plans_run_or_are_refused(void **state) {
    static bench e;
    tl_env env = {0};
    tl_graph graph = chain_graph(&env, 4, 14), other = chain_graph(&env, 4, 15);
    tl_strategy lazy = tl_with_mode(tl_with_memory(tl_strategy_new(), TL_MEMORY_POOLED), TL_MODE_LAZY), forward_only;
    tl_compile_desc desc;
    tl_compiled_plan compiled, foreign;
    tl_precision_desc formats;
    tl_plan plan;
    tl_tensor tensor = { 2, 0 };
    float data[64];
    (void)state;
    memset(&formats, 0, sizeof formats);
    lazy.gradient = tl_gradient_checkpointed(0);
    lazy.enable_fusion = 1;
    forward_only = tl_with_gradient(lazy, tl_gradient_none());
    desc = compile_of(&graph, &lazy);
    assert_int_equal(tl_compile(&env, &desc, &compiled), TL_OK);
    assert_true(compiled.choice.fused_count > 0);
    desc = compile_of(&other, &lazy);
    assert_int_equal(tl_compile(&env, &desc, &foreign), TL_OK);
    assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
    open_bench(&e, &graph, 64);
    e.desc.compiled = &compiled;
    if (tl_init_run(&e.env, &e.desc, &e.run) || tl_run_plan(e.run)) fail_msg("%s", e.env.error.text);
    assert_ptr_equal(tl_find_compiled_plan(e.run), &compiled);
    assert_true(e.blocks > 0);
    assert_int_equal(tl_read_tensor(e.run, tensor, data, sizeof data), TL_ERROR_NOT_FOUND);  // inside of a fused node
    tensor.node = graph.node_count - 1;
    if (tl_read_tensor(e.run, tensor, data, 256)) fail_msg("%s", e.env.error.text);
    tl_free_run(e.run);
    e.run = NULL;
    e.desc.plan = &plan;
    expect_refused(&e, TL_ERROR_INVALID_ARG, "compiled: give no plan, checkpoints, formats or fusion");
    e.desc.plan = NULL;
    e.desc.compiled = &foreign;
    expect_refused(&e, TL_ERROR_INVALID_ARG, "compiled: not made by tl_compile for this graph");
    e.desc.compiled = &compiled;
    e.desc.strategy = &forward_only;
    expect_refused(&e, TL_ERROR_INVALID_ARG, "compiled: the strategy decides online, or computes gradients");
    e.desc.strategy = NULL;
    tl_free_compiled_plan(&env, &compiled);
    e.desc.compiled = NULL;
    e.desc.precision = &formats;
    expect_refused(&e, TL_ERROR_INVALID_ARG, "precision: says how to choose formats, but strategy.precision is not mixed");
    e.desc.precision = NULL;
    e.desc.compiled = &compiled;
    // In parts: as many passes as parts, and no other number.
    lazy.gradient.accumulation_steps = 2;
    desc = compile_of(&graph, &lazy);
    desc.may_split = 1;
    assert_int_equal(tl_compile(&env, &desc, &compiled), TL_OK);
    assert_int_equal(compiled.choice.part_count, 2);
    e.desc.repeat_count = 3;
    expect_refused(&e, TL_ERROR_INVALID_ARG, "repeat_count: 3, but the batch is split in 2 parts");
    e.desc.repeat_count = 0;
    e.calls = 0;
    if (tl_init_run(&e.env, &e.desc, &e.run) || tl_run_plan(e.run)) fail_msg("%s", e.env.error.text);
    check_passes(&e, 2);
    close_bench(&e);
    tl_free_compiled_plan(&env, &compiled);
    tl_free_compiled_plan(&env, &foreign);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
    tl_free_graph(&env, &other);
}

// A run that compiles by itself: each allocation fails once, and nothing is lost.
static void every_allocation_of_a_compiling_run_fails_in_turn(void **state) {
    long at;
    (void)state;
    for (at = 0;; at += 1 + at / 25) {
        static bench e;
        failing_alloc f = {0};
        tl_env plain = {0};
        tl_graph graph = chain_graph(&plain, 2, 8);
        tl_strategy strategy = tl_with_precision(tl_strategy_training(), TL_PRECISION_MIXED);
        tl_result result;
        strategy.gradient = tl_gradient_checkpointed(0);
        open_bench(&e, &graph, 64);
        e.env = failing_env(&f, at);
        e.desc.strategy = &strategy;
        e.desc.may_split = 1;
        e.desc.budget_bytes = 700;
        result = tl_init_run(&e.env, &e.desc, &e.run);
        if (f.count > at) assert_true(result != TL_OK);
        else if (result) fail_msg("%s", e.env.error.text);
        close_bench(&e);
        e.run = NULL;
        assert_int_equal(f.live, 0);
        tl_free_graph(&plain, &graph);
        if (f.count <= at) break;
    }
    assert_true(at > 100);
}

// -- results kept from pass to pass, of fused nodes --

static uint64_t constant_version(int32_t node, int32_t micro_batch, void *user) {
    (void)micro_batch;
    return node < *(const int32_t *)user;
}

static void fused_nodes_keep_their_results(void **state) {
    static bench e;
    tl_env env = {0};
    tl_graph graph = chain_graph(&env, 4, 14);
    tl_strategy strategy = tl_with_gradient(tl_strategy_inference(), tl_gradient_none());
    int32_t constants = 10;
    tl_run_report report;
    tl_tensor last = { 13, 0 };
    float first[64], second[64];
    long calls;
    (void)state;
    strategy.mode = TL_MODE_LAZY;
    open_bench(&e, &graph, 64);
    e.desc.strategy = &strategy;
    e.desc.version = constant_version;
    e.desc.version_user = &constants;
    e.desc.load = NULL;
    if (tl_init_run(&e.env, &e.desc, &e.run)) fail_msg("%s", e.env.error.text);
    if (load(e.run, 0, &e) || tl_run_plan(e.run) || tl_read_tensor(e.run, last, first, 256)) fail_msg("%s", e.env.error.text);
    tl_measure_run(e.run, &report);
    assert_true(report.fused_count > 0);
    assert_int_equal(report.cached_count, 0);
    calls = e.calls;
    if (tl_run_plan(e.run) || tl_read_tensor(e.run, last, second, 256)) fail_msg("%s", e.env.error.text);
    tl_measure_run(e.run, &report);
    assert_true(report.cached_count > 0);
    assert_true(e.calls - calls < calls);
    assert_memory_equal(first, second, 256);
    constants = 2;      // the versions of members of fused nodes change: those nodes run again
    calls = e.calls;
    if (tl_run_plan(e.run) || tl_read_tensor(e.run, last, second, 256)) fail_msg("%s", e.env.error.text);
    tl_measure_run(e.run, &report);
    assert_int_equal(report.cached_count, 0);
    assert_memory_equal(first, second, 256);
    close_bench(&e);
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_strategies_run_as_planned),
        cmocka_unit_test(given_plans_run_or_are_refused),
        cmocka_unit_test(every_allocation_of_a_compiling_run_fails_in_turn),
        cmocka_unit_test(fused_nodes_keep_their_results),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
