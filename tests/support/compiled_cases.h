// Random graphs and strategies that a run compiles by itself, against the run of everything kept, in the same formats,
// that each must equal; on any backend, with any elementwise kernels. Include after cmocka, the implementation and support.h.
#ifndef TESTS_COMPILED_CASES_H
#define TESTS_COMPILED_CASES_H

#include <math.h>

enum { CASE_NODES = 40 };
#define CASE_WORK 3000000         // of planning: cases ask whether plans run, not whether they are the best

// An op that nodes may have.
typedef struct case_op {
    const char *op, *needs;
    int32_t     input_count;
    int32_t     takes_blocks;
    uint64_t    saved_part;       // saved bytes are the output's / this; 0 = any: none, or some now and then
} case_op;

// The case itself, and what it must equal.
typedef enum case_side { CASE_COMPILED, CASE_KEPT, CASE_SIDES } case_side;

typedef struct case_bed {
    tl_env      env;
    tl_run_desc desc;
    tl_run     *run;
} case_bed;

// What carries the runs out.
typedef struct case_machine {
    const case_op *ops;           // [op_count] the first is that of node 1, the last that of the last node alone
    int32_t        op_count;
    uint64_t       unit_floats;   // a sample has a multiple of these
    void (*open)(void *self, case_side side, uint64_t alignment, case_bed *bed);  // backend, kernels and load
    void (*check)(void *self, const case_bed *bed);  // after the compiled run: bytes by another count
    void (*note)(void *self, case_side side);        // after each run: keep its gradients
    void (*close)(void *self, case_side side, case_bed *bed);  // with the run
    void  *self;
} case_machine;

// How many cases had what.
typedef struct case_counts { long fused, narrow, split, again, compressed; } case_counts;

static inline uint64_t case_pick(tl_random *random, uint64_t count) { return tl_next_random(random) % count; }

// Nodes of all graphs of a case have the names of the first one.
static inline int case_number(const tl_kernel_call *call) { return atoi(tl_name_node(call->graph, call->node) + 1); }

static inline void case_describe(const case_op *op, tl_random *random, uint64_t batch, uint64_t bytes, int is_last,
                                 tl_node_desc *node) {
    node->op = op->op;
    node->needs = op->needs;
    node->input_count = op->input_count;
    node->fwd_cost = 1 + case_pick(random, 20);
    node->bwd_cost = 1 + case_pick(random, 30);
    node->takes_blocks = op->takes_blocks;
    node->keep = is_last;
    if (op->saved_part) node->saved_bytes = bytes / op->saved_part;
    else if (!op->takes_blocks && !case_pick(random, 3)) node->saved_bytes = batch * 8;
    if (!case_pick(random, 4)) node->fwork_bytes = 32;
    node->once = random->state % 6 == 0;
}

// The first op of the list that reads one tensor and takes blocks.
static inline const case_op *case_find_simple(const case_machine *m) {
    const case_op *op = m->ops;
    while (op->input_count != 1 || !op->takes_blocks || strcmp(op->needs, "none")) op++;
    return op;
}

// A graph of elementwise ops over a batch, the input first and a result last.
static inline void case_make_graph(const case_machine *m, tl_env *env, tl_random *random, tl_graph *graph, int32_t nodes) {
    static const uint64_t batches[] = { 1, 2, 4, 6, 8 };
    uint64_t batch = batches[case_pick(random, 5)], bytes = batch * 4 * m->unit_floats * (8 + case_pick(random, 40));
    tl_init_graph(graph);
    graph->batch = batch;
    while (graph->node_count < nodes) {
        int32_t id = graph->node_count;
        const case_op *op = id == 1 ? &m->ops[0] : id + 1 == nodes ? &m->ops[m->op_count - 1]
                          : &m->ops[case_pick(random, (uint64_t)m->op_count - 1)];
        tl_node_desc node;
        tl_tensor inputs[2];
        memset(&node, 0, sizeof node);
        memset(inputs, 0, sizeof inputs);
        inputs[0].node = id - 1;
        inputs[1].node = id > 1 ? 1 + (int32_t)case_pick(random, (uint64_t)id - 1) : 0;
        if (inputs[0].node == inputs[1].node && op->input_count == 2) op = case_find_simple(m);
        node.op = "input";
        node.inputs = id ? inputs : NULL;
        node.output_bytes = &bytes;
        node.output_count = 1;
        if (id) case_describe(op, random, batch, bytes, id + 1 == nodes, &node);
        assert_int_equal(tl_add_node(env, graph, &node, NULL), TL_OK);
    }
}

static inline tl_strategy case_strategy(tl_random *random) {
    static const tl_memory memories[] = { TL_MEMORY_POOLED, TL_MEMORY_POOLED, TL_MEMORY_MINIMAL_PEAK,
                                          TL_MEMORY_STANDARD, TL_MEMORY_CACHED };
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = case_pick(random, 3) ? TL_MODE_LAZY : TL_MODE_HYBRID;
    strategy.memory = memories[case_pick(random, 5)];
    strategy.precision = case_pick(random, 2) ? TL_PRECISION_MIXED : TL_PRECISION_SINGLE;
    strategy.enable_fusion = (int32_t)case_pick(random, 2);
    strategy.enable_profiling = (int32_t)case_pick(random, 2);
    switch (case_pick(random, 5)) {
    case 0: strategy.gradient = tl_gradient_full(); break;
    case 1: strategy.gradient = tl_gradient_checkpointed(1 + case_pick(random, 4)); break;
    case 2: strategy.gradient = tl_gradient_none(); break;
    default: strategy.gradient = tl_gradient_checkpointed(0); break;
    }
    return strategy;
}

// Numbers that depend on the micro-batch.
static inline tl_result case_load(tl_run *run, int32_t micro_batch, void *user) {
    static float data[8192];
    uint64_t bytes = tl_find_run_graph(run)->outputs[0].bytes;
    tl_tensor tensor = { 0, 0 };
    size_t i;
    (void)user;
    assert_true(bytes <= sizeof data);
    for (i = 0; i < bytes / 4; i++)
        data[i] = (float)((i + 1) * 37 % 19) / 9.0f - 1.0f + (float)(micro_batch * 7 % 5) / 16.0f;
    return tl_write_tensor(run, tensor, data, bytes);
}

// The graph that the run's kernels see, with the formats of the compiled plan: nothing fused.
static inline void case_apply_formats(const tl_compiled_plan *compiled, const tl_graph *source, tl_precision_graph *applied) {
    tl_precision_node nodes[CASE_NODES];
    tl_precision_plan formats;
    tl_apply_desc apply;
    tl_env env = silent_env();
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
}

// What was planned is what was measured, within the budget.
static inline void case_check_report(const case_bed *bed) {
    tl_run_report report;
    tl_measure_run(bed->run, &report);
    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
    assert_true(report.taken_bytes <= report.planned_taken_bytes || !report.planned_taken_bytes);
    assert_true(report.measured_peak_bytes <= bed->desc.budget_bytes);
    if (report.planned_taken_bytes) assert_true(report.taken_bytes <= bed->desc.budget_bytes);
}

// Within some budget, or where that is refused within the one that is named: it is enough.
static inline void case_start(case_bed *bed, tl_random *random, const tl_graph *graph, int trains) {
    tl_env env = silent_env();
    tl_plan keep_all;
    tl_result result;
    assert_int_equal(tl_plan_keep_all(&env, graph, !trains, &keep_all), TL_OK);
    bed->desc.budget_bytes = keep_all.peak_bytes / 3 + case_pick(random, keep_all.peak_bytes) + 64;
    if (bed->desc.codec) bed->desc.budget_bytes = keep_all.peak_bytes / 3 + 64;   // else hardly anything is compressed
    tl_free_plan(&env, &keep_all);
    bed->desc.work_limit = CASE_WORK;
    result = tl_init_run(&bed->env, &bed->desc, &bed->run);
    if (result == TL_ERROR_INFEASIBLE) {
        bed->desc.budget_bytes = tl_find_least_budget(&bed->env.error);
        result = tl_init_run(&bed->env, &bed->desc, &bed->run);
    }
    if (result) fail_msg("%s", bed->env.error.text);
}

static inline void case_pass(const case_machine *m, case_side side, case_bed *bed) {
    if (tl_run_plan(bed->run)) fail_msg("%s", bed->env.error.text);
    m->note(m->self, side);
}

static inline void case_read_last(case_bed *bed, const tl_graph *graph, void *data) {
    tl_tensor last = { 0, 0 };
    last.node = graph->node_count - 1;
    if (tl_read_tensor(bed->run, last, data, graph->outputs[graph->tensor_count - 1].bytes)) fail_msg("%s", bed->env.error.text);
}

// Returns whether tensors were compressed.
static inline int case_count(const case_bed *bed, const tl_compiled_plan *compiled, case_counts *counts) {
    tl_run_report report;
    tl_measure_run(bed->run, &report);
    counts->again += report.recompute_count;
    counts->compressed += report.compress_count > 0;
    assert_true(bed->desc.codec || !report.compress_count);
    if (!compiled) return report.compress_count > 0;
    counts->fused += compiled->choice.fused_count;
    counts->narrow += compiled->formats != NULL;
    counts->split += compiled->choice.part_count > 1;
    return report.compress_count > 0;
}

// A codec for some cases; not for more, because these use up all of the planner's work.
static inline tl_codec case_codec(tl_random *random, tl_memory memory) {
    if (case_pick(random, 25) || memory == TL_MEMORY_CACHED) return TL_CODEC_NONE;
    return (tl_codec)(1 + case_pick(random, TL_CODEC_COUNT - 1));
}

// One case: a random graph and strategy, as a run and as a run of what everything kept gives. The results are compared here,
// the gradients, which note has kept, by the caller: to the bit, unless this returns a codec, and some were made of tensors
// compressed by it.
static inline tl_codec case_run(const case_machine *m, tl_random *random, case_counts *counts) {
    static float results[CASE_SIDES][8192];
    case_bed beds[CASE_SIDES], *e = &beds[CASE_COMPILED], *r = &beds[CASE_KEPT];
    tl_env env = silent_env();
    tl_strategy strategy = case_strategy(random);
    uint64_t alignment = case_pick(random, 2) ? 4 : 64;
    tl_graph graph;
    tl_precision_graph applied;
    tl_plan plan;
    const tl_compiled_plan *compiled;
    const tl_graph *source;
    tl_codec codec;
    int is_lossy;
    memset(beds, 0, sizeof beds);
    memset(results, 0, sizeof results);
    case_make_graph(m, &env, random, &graph, 5 + (int32_t)case_pick(random, 20));
    m->open(m->self, CASE_COMPILED, alignment, e);
    e->desc.graph = &graph;
    e->desc.strategy = &strategy;
    e->desc.may_split = (int32_t)case_pick(random, 2);
    codec = e->desc.codec = case_codec(random, strategy.memory);
    case_start(e, random, &graph, strategy.gradient.computes);
    compiled = tl_find_compiled_plan(e->run);
    source = compiled ? compiled->source : &graph;
    case_pass(m, CASE_COMPILED, e);
    case_check_report(e);
    m->check(m->self, e);
    is_lossy = case_count(e, compiled, counts);
    case_read_last(e, source, results[CASE_COMPILED]);
    case_apply_formats(compiled, source, &applied);
    assert_int_equal(tl_plan_keep_all(&env, &applied.graph, !strategy.gradient.computes, &plan), TL_OK);
    m->open(m->self, CASE_KEPT, alignment, r);
    r->desc.graph = &applied.graph;
    r->desc.formats = applied.formats;
    r->desc.plan = &plan;
    r->desc.repeat_count = compiled ? compiled->choice.part_count : 1;
    if (tl_init_run(&r->env, &r->desc, &r->run)) fail_msg("%s", r->env.error.text);
    case_pass(m, CASE_KEPT, r);
    case_read_last(r, &applied.graph, results[CASE_KEPT]);
    assert_memory_equal(results[CASE_COMPILED], results[CASE_KEPT], sizeof results[0]);
    m->close(m->self, CASE_COMPILED, e);
    m->close(m->self, CASE_KEPT, r);
    tl_free_plan(&env, &plan);
    tl_free_precision_graph(&env, &applied);
    tl_free_graph(&env, &graph);
    return is_lossy ? codec : TL_CODEC_NONE;
}

// Gradients of compressed tensors: the root of the mean square of their error against theirs. q8 rounds small outputs of relu
// to 0, and their gradients with them.
static inline void case_assert_near(const float *a, const float *b, size_t count, tl_codec codec) {
    double error = 0, size = 0, most = codec == TL_CODEC_Q8 ? 0.6 : 0.02;
    size_t i;
    for (i = 0; i < count; i++) {
        error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    if (!(error <= most * most * size)) fail_msg("%s: off by %g of %g", tl_name_codec(codec), sqrt(error), sqrt(size));
}

static inline void case_print(long count, const case_counts *counts) {
    print_message("%ld runs: %ld fused nodes, %ld with narrow formats, %ld of split batches, %ld forwards again, "
                  "%ld with compressed tensors\n", count, counts->fused, counts->narrow, counts->split, counts->again,
                  counts->compressed);
}

#endif
