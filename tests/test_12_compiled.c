// [12] RUN: compiled plans, carried out; the bytes they take, and their gradients to the bit.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/run_support.h"
#include "support/compiled_cases.h"

// -- kernels that compute in f32 what they read in any 16-bit format --

enum { MOST_NODES = 40, MOST_ELEMENTS = 512, OP_COUNT = 8 };

// What belongs to a node, wherever its kernel is called: fused with others, in another format, on a part of the batch.
typedef struct owner { struct bench *bench; int number; long forwards, backwards; } owner;

typedef struct bench {
    spy         spy;
    tl_env      env, backend_env;
    tl_backend  backend;
    tl_kernel   kernels[OP_COUNT];
    tl_run_desc desc;
    tl_run     *run;
    owner       owners[MOST_NODES], nobody;
    void       *users[MOST_NODES];
    float       weight_gradients[MOST_NODES];
    float       gradients[MOST_NODES][MOST_ELEMENTS];  // of outputs, summed over micro-batches by element
    long        calls, blocks, narrow;
    uint64_t    most_elements;   // of a call
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

static bench *count_call(const tl_kernel_call *call, void *user) {
    owner *own = (owner *)user;
    bench *e = own->bench;
    assert_int_equal(own->number, case_number(call));
    if (call->kind == TL_STEP_BACKWARD) own->backwards++;
    else own->forwards++;
    e->calls++;
    if (call->total > e->most_elements) e->most_elements = call->total;
    e->blocks += call->count < call->total;
    e->narrow += call->outputs[0].format != TL_FORMAT_F32;
    assert_true(call->first + call->count <= call->total && call->total <= MOST_ELEMENTS);
    if (call->scratch.host) memset(call->scratch.host, 0x5A, (size_t)call->scratch.range.bytes);
    return e;
}

static tl_result forward(const tl_kernel_call *call, void *user) {
    const char *op = tl_name_op(call->graph, call->node);
    size_t i, n = (size_t)call->count;
    (void)count_call(call, user);
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
    bench *e = count_call(call, user);
    const char *op = tl_name_op(call->graph, call->node);
    int number = case_number(call);
    size_t i, n = (size_t)call->count;
    if (call->saved.range.bytes) assert_int_equal(((uint8_t *)call->saved.host)[call->saved.range.bytes - 1], 0x33);
    for (i = 0; i < n; i++) {
        float dy = get(&call->output_grads[0], i);
        e->gradients[number][call->first + i] += dy;
        add_gradients(call, op, i, dy, &e->weight_gradients[number]);
    }
    return TL_OK;
}

static void open_bench(bench *e, const tl_graph *graph, uint64_t alignment) {
    int i;
    memset(e, 0, sizeof *e);
    e->backend = spy_open(&e->backend_env, BACKEND_CHECKED, 7, alignment, &e->spy);
    for (i = 0; i < OP_COUNT; i++) {
        e->kernels[i].op = ops[i];
        e->kernels[i].forward = forward;
        e->kernels[i].backward = backward;
        e->kernels[i].user = &e->nobody;
    }
    e->nobody.number = -1;
    for (i = 0; i < MOST_NODES; i++) {
        e->owners[i].bench = e;
        e->owners[i].number = i;
        e->users[i] = &e->owners[i];
    }
    e->desc.users = e->users;
    e->desc.user_count = MOST_NODES;
    e->desc.graph = graph;
    e->desc.backend = &e->backend;
    e->desc.kernels = e->kernels;
    e->desc.kernel_count = OP_COUNT;
    e->desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    e->desc.load = case_load;
    e->desc.load_user = e;
}

static void close_bench(bench *e) {
    tl_free_run(e->run);
    spy_close(&e->backend_env, &e->spy);
}

// -- random graphs and strategies --

static const case_op case_ops[OP_COUNT] = {
    { "weigh", "in", 1, 0, 0 }, { "relu", "out", 1, 1, 0 }, { "gelu", "in", 1, 1, 0 }, { "scale", "none", 1, 1, 0 },
    { "add", "none", 2, 1, 0 }, { "mul", "in", 2, 1, 0 }, { "tanh", "out", 1, 1, 0 }, { "fold", "none", 1, 0, 0 },
};

static void case_open(void *self, case_side side, uint64_t alignment, case_bed *bed) {
    bench *e = (bench *)self + side;
    open_bench(e, NULL, alignment);
    bed->env = e->env;
    bed->desc = e->desc;
}

static void case_check(void *self, const case_bed *bed) { (void)self; (void)bed; }   // the spy's claims are all there is
static void case_note(void *self, case_side side) { (void)self; (void)side; }        // gradients lie in the bench

static void case_close(void *self, case_side side, case_bed *bed) {
    bench *e = (bench *)self + side;
    e->run = bed->run;
    close_bench(e);
}

static void random_strategies_run_as_planned(void **state) {
    static bench sides[CASE_SIDES];
    const case_machine machine = { case_ops, OP_COUNT, 1, case_open, case_check, case_note, case_close, sides };
    tl_random random = {1};
    case_counts counts = { 0, 0, 0, 0, 0 };
    int k;
    long count = scaled(200), i;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_codec codec = case_run(&machine, &random, &counts);
        if (codec) {
            for (k = 0; k < MOST_NODES; k++)
                case_assert_near(sides[0].gradients[k], sides[1].gradients[k], MOST_ELEMENTS, codec);
            continue;
        }
        assert_memory_equal(sides[0].gradients, sides[1].gradients, sizeof sides[0].gradients);
        assert_memory_equal(sides[0].weight_gradients, sides[1].weight_gradients, sizeof sides[0].weight_gradients);
    }
    case_print(count, &counts);
    assert_true(is_thinned() || (counts.fused > count / 20 && counts.narrow > count / 20 && counts.split > count / 20 && counts.again > count / 20));
    assert_true(count < 200 || counts.compressed > 0);
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

// Plans that split, and fuse or convert: each node's kernels get the user of the node that the caller has added. Here the
// caller's graph is one that he has made of another, in which the nodes stand the other way round.
static void users_belong_to_nodes_whatever_a_compiled_plan_makes_of_them(void **state) {
    static const uint64_t budgets[] = { 0, 500 };
    tl_env env = {0};
    tl_graph graph = chain_graph(&env, 4, 14);
    tl_strategy strategy = tl_with_precision(tl_with_memory(tl_strategy_training(), TL_MEMORY_POOLED), TL_PRECISION_MIXED);
    int32_t id, fused = 0, converted = 0, k;
    (void)state;
    strategy.mode = TL_MODE_LAZY;
    strategy.enable_fusion = 1;
    strategy.gradient = tl_gradient_checkpointed(0);
    strategy.gradient.accumulation_steps = 2;
    for (id = 0; id < graph.node_count; id++) ((tl_node *)(uintptr_t)graph.nodes)[id].origin = graph.node_count - 1 - id;
    for (k = 0; k < 2; k++) {
        static bench e;
        tl_compile_desc desc = compile_of(&graph, &strategy);
        tl_compiled_plan compiled;
        desc.may_split = 1;
        desc.budget_bytes = budgets[k];
        assert_int_equal(tl_compile(&env, &desc, &compiled), TL_OK);
        assert_int_equal(compiled.choice.part_count, 2);
        for (id = 0; id < compiled.graph->node_count; id++) {
            int32_t first = compiled.first_members[id], origin = compiled.graph->nodes[id].origin;
            if (first == compiled.first_members[id + 1]) assert_int_equal(origin, -1);
            else assert_int_equal(origin, graph.node_count - 1 - compiled.members[first]);
            converted += origin < 0;
        }
        fused += compiled.choice.fused_count;
        open_bench(&e, &graph, 64);
        for (id = 0; id < graph.node_count; id++) e.users[graph.node_count - 1 - id] = &e.owners[id];
        e.desc.user_count = graph.node_count;
        e.desc.compiled = &compiled;
        if (tl_init_run(&e.env, &e.desc, &e.run) || tl_run_plan(e.run)) fail_msg("%s", e.env.error.text);
        for (id = 1; id < graph.node_count; id++) {
            assert_true(e.owners[id].forwards >= 2);
            assert_true(e.owners[id].backwards >= 2);
        }
        close_bench(&e);
        tl_free_compiled_plan(&env, &compiled);
    }
    assert_true(fused > 0 && converted > 0);
    tl_free_graph(&env, &graph);
}

// A run that is compiled is so within its work_limit; 0 is the default, of which this graph needs a part.
static void a_run_compiles_within_its_work_limit(void **state) {
    static const uint64_t works[] = { 3000, 1000000, 0 };
    tl_env env = {0};
    tl_graph graph = chain_graph(&env, 4, 24);
    tl_strategy strategy = tl_with_mode(tl_with_memory(tl_strategy_new(), TL_MEMORY_POOLED), TL_MODE_LAZY);
    uint64_t done[3], costs[3];
    int k;
    (void)state;
    strategy.gradient = tl_gradient_checkpointed(0);
    strategy.precision = TL_PRECISION_MIXED;
    strategy.enable_fusion = 1;
    for (k = 0; k < 3; k++) {
        static bench e;
        const tl_compiled_plan *compiled;
        open_bench(&e, &graph, 64);
        e.desc.strategy = &strategy;
        e.desc.budget_bytes = 2600;
        e.desc.work_limit = works[k];
        if (tl_init_run(&e.env, &e.desc, &e.run)) fail_msg("%s", e.env.error.text);
        compiled = tl_find_compiled_plan(e.run);
        done[k] = compiled->work;
        costs[k] = compiled->choice.cost;
        close_bench(&e);
    }
    assert_true(done[0] < done[1] / 2 && done[1] < 2 * works[1] && done[2] > 10 * done[1]);
    assert_true(costs[2] <= costs[0] && costs[2] <= costs[1]);
    tl_free_graph(&env, &graph);
}

// A run that splits the batch is rehearsed with one part of it.
static void a_split_run_is_rehearsed_with_a_part(void **state) {
    static bench e;
    tl_env env = {0};
    tl_graph graph = chain_graph(&env, 4, 14);
    tl_strategy lazy = tl_with_mode(tl_with_memory(tl_strategy_new(), TL_MEMORY_POOLED), TL_MODE_LAZY);
    tl_rehearsal_desc without_times = {-1};
    tl_rehearsal found;
    int parts;
    (void)state;
    for (parts = 1; parts <= 2; parts++) {
        open_bench(&e, &graph, 64);
        lazy.gradient = tl_gradient_checkpointed(0);
        lazy.gradient.accumulation_steps = (uint64_t)parts;
        lazy.enable_fusion = 1;
        e.desc.strategy = &lazy;
        e.desc.may_split = 1;
        if (tl_init_run(&e.env, &e.desc, &e.run)) fail_msg("%s", e.env.error.text);
        if (tl_rehearse_run(e.run, &without_times, &found)) fail_msg("%s", e.env.error.text);
        assert_int_equal(found.error_count, 0);
        assert_int_equal(found.kind, TL_REHEARSAL_KEPT);
        assert_int_equal(e.most_elements, 64 / parts);
        tl_free_rehearsal(&e.env, &found);
        close_bench(&e);
        e.run = NULL;
    }
    tl_free_graph(&env, &graph);
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
    if (case_load(e.run, 0, &e) || tl_run_plan(e.run) || tl_read_tensor(e.run, last, first, 256)) fail_msg("%s", e.env.error.text);
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
        cmocka_unit_test(users_belong_to_nodes_whatever_a_compiled_plan_makes_of_them),
        cmocka_unit_test(a_run_compiles_within_its_work_limit),
        cmocka_unit_test(a_split_run_is_rehearsed_with_a_part),
        cmocka_unit_test(every_allocation_of_a_compiling_run_fails_in_turn),
        cmocka_unit_test(fused_nodes_keep_their_results),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
