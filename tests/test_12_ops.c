// [12] RUN: a list of operations is the graph that it describes, its figures are budgets, and the caller's state is
// known by ranges that are checked.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/run_support.h"
#include "support/run_bed.h"
#include "support/random_graph.h"
#include "support/ops_of_graph.h"

static tl_result init_ops(bed *b, const op_list *list) {
    b->desc.graph = NULL;
    b->desc.kernels = NULL;
    b->desc.kernel_count = 0;
    return tl_init_op_run(&b->env, &b->desc, list->ops, list->count, &b->run);
}

static tl_graph graph_of(const char *text) {
    tl_graph graph;
    tl_env env = silent_env();
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

// What a graph says of its nodes, without ids of text.
static void assert_same_graphs(const tl_graph *a, const tl_graph *b) {
    int32_t i;
    assert_int_equal(a->node_count, b->node_count);
    assert_int_equal(a->tensor_count, b->tensor_count);
    assert_int_equal(a->input_count, b->input_count);
    for (i = 0; i < a->input_count; i++) {
        assert_int_equal(a->inputs[i].tensor, b->inputs[i].tensor);
        assert_int_equal(a->inputs[i].needed, b->inputs[i].needed);
    }
    for (i = 0; i < a->tensor_count; i++) {
        assert_int_equal(a->outputs[i].bytes, b->outputs[i].bytes);
        assert_int_equal(a->outputs[i].needed, b->outputs[i].needed);
    }
    for (i = 0; i < a->node_count; i++) {
        const tl_node *x = &a->nodes[i], *y = &b->nodes[i];
        assert_string_equal(tl_name_node(a, i), tl_name_node(b, i));
        assert_string_equal(tl_name_op(a, i), tl_name_op(b, i));
        assert_int_equal(x->has_grad, y->has_grad);
        assert_int_equal(x->saved_bytes, y->saved_bytes);
        assert_int_equal(x->fwork_bytes, y->fwork_bytes);
        assert_int_equal(x->swork_bytes, y->swork_bytes);
        assert_int_equal(x->bwork_bytes, y->bwork_bytes);
        assert_int_equal(x->param_bytes, y->param_bytes);
        assert_int_equal(x->inplace, y->inplace);
        assert_int_equal(x->layer, y->layer);
        assert_int_equal(x->keep, y->keep);
        assert_int_equal(x->once, y->once);
        assert_int_equal(x->takes_blocks, y->takes_blocks);
        assert_int_equal(y->origin, i);
    }
}

static void a_list_of_operations_is_the_graph_that_it_describes(void **state) {
    tl_random random = {9};
    int turn;
    (void)state;
    for (turn = 0; turn < scaled(200); turn++) {
        static bed b;
        tl_graph graph;
        op_list list;
        uint64_t expected;
        if (random_graph(NULL, &random, 12, &graph)) fail();
        expected = keep_all_outcome(&graph, 0, 1, NULL);
        bed_open(&b, &graph, BACKEND_CHECKED, 0, 1);
        list = ops_of_graph(&graph, &b.mixer);
        if (init_ops(&b, &list)) fail_msg("turn %d: %s", turn, b.env.error.text);
        assert_same_graphs(&graph, tl_find_run_graph(b.run));
        (void)bed_step(&b, 0);
        assert_true(bed_step(&b, 0) == expected);
        bed_close(&b);
        op_list_free(&list);
        tl_free_graph(NULL, &graph);
    }
}

// A budget that is named works, and with one byte less nothing does.
static void figures_are_budgets(void **state) {
    tl_random random = {11};
    int turn, tight = 0;
    (void)state;
    for (turn = 0; turn < scaled(60); turn++) {
        static bed b;
        tl_run_figures figures, at_ratio;
        tl_graph graph;
        op_list list;
        uint64_t expected, base = turn % 3 ? 1000 : 0;
        if (random_graph(NULL, &random, 12, &graph)) fail();
        expected = keep_all_outcome(&graph, 0, 1, NULL);
        bed_open(&b, &graph, 0, 0, turn % 2 ? 16 : 1);
        list = ops_of_graph(&graph, &b.mixer);
        b.desc.figures = &figures;
        b.desc.base_bytes = base;
        b.desc.budget_bytes = 1;
        b.desc.work_limit = 20000000;   // with little, what is named need not be the least
        if (input_bytes(&graph) || base) {
            assert_int_equal(init_ops(&b, &list), TL_ERROR_INFEASIBLE);
            assert_null(b.run);
            assert_int_equal(figures.budget_bytes, 1);
            assert_int_equal(figures.arena_bytes, 0);
            assert_true(figures.least_bytes == tl_find_least_budget(&b.env.error));
            assert_true(figures.least_bytes <= figures.keep_all_bytes);
            assert_true(figures.keep_all_arena_bytes >= figures.keep_all_peak_bytes);
            assert_true(figures.keep_all_bytes >= figures.keep_all_arena_bytes + base);
            tight += figures.least_bytes < figures.keep_all_bytes;
            b.desc.budget_bytes = figures.least_bytes;
            if (init_ops(&b, &list)) fail_msg("turn %d: %s", turn, b.env.error.text);
            (void)bed_step(&b, 0);
            assert_true(bed_step(&b, 0) == expected);
            assert_true(bed_report(&b).measured_peak_bytes == figures.peak_bytes);
            assert_true(bed_report(&b).measured_arena_bytes == figures.arena_bytes);
            assert_true(bed_report(&b).taken_bytes + base <= figures.least_bytes);
            tl_free_run(b.run);
            b.run = NULL;
            b.desc.budget_bytes = figures.least_bytes - 1;
            if (b.desc.budget_bytes) assert_int_equal(init_ops(&b, &list), TL_ERROR_INFEASIBLE);
            b.desc.budget_bytes = 0;
            b.desc.budget_ratio = 1;
            b.desc.figures = &at_ratio;
            if (init_ops(&b, &list)) fail_msg("turn %d: %s", turn, b.env.error.text);
            assert_true(at_ratio.budget_bytes == figures.keep_all_bytes);
            assert_true(at_ratio.least_bytes == figures.least_bytes);
            (void)bed_step(&b, 0);
            assert_int_equal(bed_report(&b).recompute_count, 0);
        }
        bed_close(&b);
        op_list_free(&list);
        tl_free_graph(NULL, &graph);
    }
    assert_true(tight > scaled(60) / 6);
}

// -- each broken rule has its sentence --

static tl_result count_and_copy(const tl_kernel_call *call, void *user) {
    ++*(int *)user;
    if (call->kind != TL_STEP_BACKWARD)
        memset(call->outputs[0].host, call->node, (size_t)call->outputs[0].range.bytes);
    return TL_OK;
}

static void chain_ops(tl_op ops[4], int *counts) {
    int i;
    memset(ops, 0, 4 * sizeof *ops);
    ops[0].kind = "input";
    for (i = 0; i < 4; i++) ops[i].output_bytes = 64;
    for (i = 1; i < 4; i++) {
        ops[i].forward = ops[i].backward = count_and_copy;
        ops[i].user = &counts[i];
    }
}

static void operations_that_break_a_rule_are_refused(void **state) {
    static const char *const sentences[] = {
        "tl_init_op_run: op_count: must be > 0",
        "tl_init_op_run: kernels: they stand in the ops",
        "tl_init_op_run: ops: op 2: forward is missing",
        "tl_init_run: kernels: forward or backward missing for op op of node 3 (n3); that of a state is its update; inference, no_grad: no backward",
        "tl_init_op_run: node 2 (n2): inputs: 3.0 is not made by a node above it",
        "tl_init_op_run: node 2 (n2): inputs: 2.0 is not made by a node above it",
        "tl_init_op_run: ops: op 2: input_count without inputs",
        "tl_init_op_run: ops: op 2: give output_bytes > 0, or output_count and outputs",
        "tl_init_op_run: ops: op 2: give output_bytes > 0, or output_count and outputs",
        "tl_init_op_run: node 2 (n2): out: the sum of all bytes, gradients included, must fit 64 bits",
        "tl_init_op_run: node 2 (n2): needs: must be none, or a list of in, in<k>, out, out<k> that exist",
        "tl_init_op_run: node 2 (n2): inplace: there is no such input",
        "tl_init_op_run: node 1 (n1): inplace: a graph input must not be overwritten",
        "tl_init_op_run: budget_ratio: must be 0 to 1, without budget_bytes",
        "tl_init_op_run: budget_ratio: must be 0 to 1, without budget_bytes",
        "tl_init_op_run: budget_ratio: must be 0 to 1, without budget_bytes",
        "tl_init_op_run: ops: op 0: an input has no forward and no backward",
        "tl_init_op_run: ops: op 0: an input has no forward and no backward",
        "tl_check_graph: node 3 (twin): name: must be unique",
    };
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_env env = silent_env();
    size_t i;
    (void)state;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    for (i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        tl_run_desc desc = {0};
        tl_tensor later = {3, 0}, itself = {2, 0};
        tl_kernel kernel = {0};
        tl_run *run = NULL;
        tl_op ops[4];
        int counts[4] = {0}, count = 4;
        chain_ops(ops, counts);
        desc.backend = &backend;
        switch (i) {
        case 0: count = 0; break;
        case 1: desc.kernels = &kernel; desc.kernel_count = 1; break;
        case 2: ops[2].forward = NULL; break;
        case 3: ops[3].backward = NULL; break;
        case 4: ops[2].inputs = &later; ops[2].input_count = 1; break;
        case 5: ops[2].inputs = &itself; ops[2].input_count = 1; break;
        case 6: ops[2].input_count = 2; break;
        case 7: ops[2].output_bytes = 0; break;
        case 8: ops[2].output_count = 1; ops[2].outputs = &ops[2].output_bytes; break;
        case 9: ops[2].output_bytes = UINT64_MAX / 2; break;
        case 10: ops[2].needs = "in1"; break;
        case 11: ops[2].inplace = 2; break;
        case 12: ops[1].inplace = 1; break;
        case 13: desc.budget_ratio = -0.5; break;
        case 14: desc.budget_ratio = 1.5; break;
        case 15: desc.budget_ratio = 0.5; desc.budget_bytes = 100; break;
        case 16: ops[0].forward = count_and_copy; break;
        case 17: ops[0].backward = count_and_copy; break;
        default: ops[1].name = ops[3].name = "twin"; break;
        }
        assert_int_not_equal(tl_init_op_run(&env, &desc, ops, count, &run), TL_OK);
        assert_string_equal(env.error.text, sentences[i]);
        assert_null(run);
    }
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

static void other_runs_have_no_figures(void **state) {
    static bed b;
    tl_run_figures figures;
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 needs=none out=4 in=-\nnode 1 a relu fwd=1 bwd=1 out=4 needs=out in=0\n");
    (void)state;
    bed_open(&b, &graph, 0, 0, 1);
    b.desc.figures = &figures;
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_init_run: budget_ratio, costs, figures, rehearsal: are of tl_init_op_run");
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- users and graphs made otherwise --

static tl_result note_user(const tl_kernel_call *call, void *user) {
    int *own = (int *)user;
    assert_int_equal(*own % 100, call->graph->nodes[call->node].origin);
    *own += 100;
    if (call->kind != TL_STEP_BACKWARD)
        memset(call->outputs[0].host, 1, (size_t)call->outputs[0].range.bytes);
    return TL_OK;
}

// Two nodes of one op get users of their own, whatever was made of the graph: here one in half precision, and fused. Origins
// are no ids: the caller has made the graph of one in which the nodes stand the other way round.
static void users_belong_to_the_nodes_they_come_from(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 needs=none out=16 in=-\n"
        "node 1 a relu fwd=1 bwd=1 out=16 needs=out in=0 takes_blocks\n"
        "node 2 b relu fwd=1 bwd=1 out=16 needs=out in=1 takes_blocks\n"
        "node 3 c sum fwd=1 bwd=1 out=4 needs=in in=2\n";
    int form;
    (void)state;
    for (form = 0; form < 3; form++) {
        static bed b;
        tl_graph graph = graph_of(text);
        tl_fusion_desc fuse;
        tl_fusion_plan fusion;
        tl_strategy strategy;
        tl_kernel kernels[2];
        int numbers[4] = {0, 1, 2, 3}, i;
        void *users[4];
        memset(&strategy, 0, sizeof strategy);
        memset(&fuse, 0, sizeof fuse);
        memset(&fusion, 0, sizeof fusion);
        fuse.graph = &graph;
        fuse.blocks_only = 1;
        for (i = 0; i < 4; i++) users[i] = &numbers[i];
        for (i = 1; i < 4; i++) ((tl_node *)(uintptr_t)graph.nodes)[i].origin = 4 - i;
        memset(kernels, 0, sizeof kernels);
        kernels[0].op = "relu";
        kernels[1].op = "sum";
        for (i = 0; i < 2; i++) kernels[i].forward = kernels[i].backward = note_user;
        bed_open(&b, &graph, 0, 0, 1);
        b.desc.load = NULL;
        b.desc.kernels = kernels;
        b.desc.kernel_count = 2;
        b.desc.users = users;
        b.desc.user_count = 4;
        strategy.mode = TL_MODE_LAZY;
        strategy.gradient = tl_gradient_full();
        strategy.precision = TL_PRECISION_SINGLE;
        strategy.memory = TL_MEMORY_POOLED;
        if (form == 1) strategy.precision = TL_PRECISION_HALF;
        if (form < 2) b.desc.strategy = &strategy;
        if (form == 2 && tl_plan_fusion(&b.env, &fuse, &fusion)) fail_msg("%s", b.env.error.text);
        if (form == 2) b.desc.fusion = &fusion;
        b.desc.kernel_precisions = 1u << TL_PRECISION_HALF | 1u << TL_PRECISION_SINGLE;
        bed_must_init(&b);
        assert_int_equal(tl_find_run_graph(b.run)->node_count, form == 2 ? 3 : 4);
        if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
        for (i = 1; i < 4; i++) assert_true(numbers[i] >= 200);
        tl_free_run(b.run);
        b.run = NULL;
        b.desc.user_count = 3;
        assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
        assert_string_equal(b.env.error.text, "tl_init_run: users: none for node a, whose origin is 3");
        bed_close(&b);
        tl_free_fusion_plan(&b.env, &fusion);
        tl_free_graph(NULL, &graph);
    }
}

// Sizes and names may come from the shape helpers; measured costs may be put into such a graph.
static void a_graph_of_shapes_gets_kernels_and_costs(void **state) {
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_graph graph;
    tl_value x;
    tl_shape shape = {2, 3, 8, 8};
    tl_layer_desc conv;
    tl_node_cost costs[3] = {{0, 0}, {70, 150}, {9, 11}};
    tl_op ops[3];
    tl_run_desc desc = {0};
    tl_run *run;
    int counts[3] = {0};
    (void)state;
    memset(&conv, 0, sizeof conv);
    memset(ops, 0, sizeof ops);
    conv.channels = 4;
    conv.kernel = 3;
    tl_init_graph(&graph);
    if (tl_init_cpu_backend(&env, &cpu, &backend) ||
        tl_add_input(&env, &graph, "x", shape, TL_PRECISION_SINGLE, &x) ||
        tl_add_conv2d(&env, &graph, &conv, x, &x) ||
        tl_add_elementwise(&env, &graph, TL_ELEMENTWISE_RELU, NULL, &x, 1, &x)) fail_msg("%s", env.error.text);
    ops[1].forward = ops[1].backward = ops[2].forward = ops[2].backward = count_and_copy;
    ops[1].user = &counts[1];
    ops[2].user = &counts[2];
    desc.backend = &backend;
    desc.graph = &graph;
    desc.costs = costs;
    if (tl_init_op_run(&env, &desc, ops, 3, &run)) fail_msg("%s", env.error.text);
    if (tl_run_plan(run)) fail_msg("%s", env.error.text);
    assert_int_equal(counts[1], 2);
    assert_int_equal(counts[2], 2);
    assert_int_equal(tl_find_run_graph(run)->nodes[1].fwd_cost, 70);
    assert_int_equal(tl_find_run_graph(run)->nodes[1].bwd_cost, 150);
    assert_int_equal(tl_find_run_graph(run)->nodes[2].bwd_cost, 11);
    assert_int_not_equal(graph.nodes[1].fwd_cost, 70);
    tl_free_run(run);
    ops[1].saved_bytes = 4;
    assert_int_equal(tl_init_op_run(&env, &desc, ops, 3, &run), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text,
                        "tl_init_op_run: ops: op 1: its sizes and inputs are those of the graph, give kernels only");
    assert_int_equal(tl_init_op_run(&env, &desc, ops, 2, &run), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_init_op_run: op_count: must be that of the graph's nodes, 3");
    tl_free_graph(&env, &graph);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// A backend of zeroes was never made: every way to a run says so, and so does a manager.
static void a_backend_without_functions_is_refused(void **state) {
    static const char sentence[] = "backend: a function is missing: make it with tl_init_cpu_backend or another";
    tl_env env = silent_env();
    tl_run_desc desc = {0};
    tl_backend backend;
    tl_graph graph;
    tl_op ops[4];
    tl_layer layer = {0};
    tl_run *run;
    tl_run_figures figures;
    int counts[4] = {0}, turn;
    (void)state;
    memset(&backend, 0, sizeof backend);
    chain_ops(ops, counts);
    layer.forward = layer.backward = count_and_copy;
    layer.output_bytes = 4;
    tl_init_graph(&graph);
    for (turn = 0; turn < 2; turn++) {
        desc.backend = &backend;
        desc.graph = NULL;
        desc.figures = turn ? &figures : NULL;
        assert_int_equal(tl_init_op_run(&env, &desc, ops, 4, &run), TL_ERROR_INVALID_ARG);
        assert_null(run);
        assert_non_null(strstr(env.error.text, sentence));
        assert_int_equal(tl_init_layer_run(&env, &desc, &layer, 1, 4, &run), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, sentence));
        desc.graph = &graph;
        desc.figures = NULL;
        assert_int_equal(tl_init_run(&env, &desc, &run), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, sentence));
        {   // one function is not enough
            tl_cpu_backend_desc cpu = {0};
            tl_backend whole;
            if (tl_init_cpu_backend(&env, &cpu, &whole)) fail();
            backend = whole;
            backend.reset_peaks = NULL;
            assert_int_equal(tl_free_cpu_backend(&env, &whole), TL_OK);
        }
    }
}

// Memory that is not aligned lacks some bytes: what is refused for them says so.
static void a_refusal_names_the_bytes_that_alignment_takes(void **state) {
    static uint64_t memory[64];
    char *aligned = (char *)memory + (64 - ((uintptr_t)memory & 63)) % 64;
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_run_desc desc = {0};
    tl_graph graph;
    tl_op ops[4];
    tl_plan plan;
    tl_run *run, *first;
    uint64_t needed;
    int counts[4] = {0}, shift;
    (void)state;
    chain_ops(ops, counts);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    desc.backend = &backend;
    if (tl_init_op_run(&env, &desc, ops, 4, &first)) fail_msg("%s", env.error.text);
    graph = *tl_find_run_graph(first);
    if (tl_plan_keep_all(&env, &graph, 0, &plan)) fail();
    {
        tl_kernel kernel = {"op", count_and_copy, count_and_copy, counts};
        tl_backend tight;
        desc.graph = &graph;
        desc.plan = &plan;
        desc.kernels = &kernel;
        desc.kernel_count = 1;
        desc.budget_bytes = 1;
        assert_int_equal(tl_init_run(&env, &desc, &run), TL_ERROR_INFEASIBLE);
        needed = tl_find_least_budget(&env.error);
        desc.budget_bytes = 0;
        assert_true(needed > 64 && needed + 8 <= sizeof memory - 64);
        for (shift = 0; shift < 2; shift++) {
            cpu.memory = aligned + 8 * shift;
            cpu.memory_bytes = needed & ~(uint64_t)63;      // without what an allocation takes to align it
            if (tl_init_cpu_backend(&env, &cpu, &tight)) fail_msg("%s", env.error.text);
            desc.backend = &tight;
            if (tl_init_run(&env, &desc, &run) != (shift ? TL_ERROR_INFEASIBLE : TL_OK)) fail_msg("%d: %s", shift, env.error.text);
            if (shift) assert_non_null(strstr(env.error.text, "; 56 of them, because its memory is not aligned to 64"));
            tl_free_run(run);
            assert_int_equal(tl_free_cpu_backend(&env, &tight), TL_OK);
        }
    }
    tl_free_plan(&env, &plan);
    tl_free_run(first);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// -- the caller's state --

static void ranges_of_the_state_are_checked(void **state) {
    static const char *const sentences[] = {
        "tl_init_run: variables, variable_count: give both or neither",
        "tl_init_run: variables: range 1: node: the graph has no such one; -1 = of none",
        "tl_init_run: variables: range 1: kind: there is no such one",
        "tl_init_run: variables: range 1: host is NULL, where it has 32 bytes",
        "tl_init_run: variables: range 1: 18446744073709551615 bytes end beyond the address space",
        "tl_init_run: variables: ranges 1 and 0 overlap",
        "tl_init_run: variables: ranges 0 and 1 overlap",
        "tl_init_run: variables: range 1 overlaps the run's arena",
        "tl_init_run: variables: range 1 overlaps the run's arena",
    };
    static char memory[4096], weights[64];
    size_t i;
    (void)state;
    for (i = 0; i <= sizeof sentences / sizeof *sentences; i++) {
        tl_cpu_backend_desc cpu = {0};
        tl_backend backend;
        tl_env env = silent_env();
        tl_run_desc desc = {0};
        tl_variable states[3] = {{1, TL_VARIABLE_PARAMETER, 0, 32, 0}, {2, TL_VARIABLE_GRADIENT, 0, 32, 0}, {-1, TL_VARIABLE_RANDOM, 0, 0, 0}};
        tl_run *run = NULL;
        tl_op ops[4];
        int counts[4] = {0};
        cpu.memory = memory;
        cpu.memory_bytes = sizeof memory;
        if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
        chain_ops(ops, counts);
        desc.backend = &backend;
        desc.variables = states;
        desc.variable_count = 3;
        states[0].host = weights;
        states[1].host = weights + 32;
        switch (i) {
        case 0: desc.variable_count = -1; break;
        case 1: states[1].node = 4; break;
        case 2: states[1].kind = TL_VARIABLE_COUNT; break;
        case 3: states[1].host = NULL; break;
        case 4: states[1].bytes = UINT64_MAX; break;
        case 5: states[0].host = weights + 16; states[1].host = weights; break;
        case 6: states[0].host = states[1].host = weights; states[0].bytes = 64; states[1].bytes = 1; break;
        case 7: states[1].host = memory + 64; break;
        case 8: states[1].host = memory; states[1].bytes = sizeof memory; break;
        default: break;
        }
        if (i < sizeof sentences / sizeof *sentences) {
            assert_int_equal(tl_init_op_run(&env, &desc, ops, 4, &run), TL_ERROR_INVALID_ARG);
            assert_string_equal(env.error.text, sentences[i]);
            assert_null(run);
        } else {    // what is right passes, and changes nothing that is counted
            tl_run_report report;
            if (tl_init_op_run(&env, &desc, ops, 4, &run) || tl_run_plan(run)) fail_msg("%s", env.error.text);
            tl_measure_run(run, &report);
            assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
            assert_true(report.taken_bytes > 0);
            tl_free_run(run);
        }
        assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    }
    assert_string_equal(tl_name_variable(TL_VARIABLE_GRADIENT), "gradient");
    assert_string_equal(tl_name_variable(TL_VARIABLE_COUNT), "?");
}

// -- memory --

static void a_failing_allocator_leaves_nothing_behind(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 needs=none out=8 in=-\nnode 1 a conv fwd=3 bwd=6 out=24 needs=in in=0 saved=4 fwork=4\n"
        "node 2 b relu fwd=1 bwd=1 out=24 needs=out in=1\nnode 3 c conv fwd=3 bwd=6 out=24 needs=in in=2 bwork=4\n"
        "node 4 d add fwd=1 bwd=1 out=24 needs=none in=3,1\nnode 5 e ce fwd=1 bwd=1 out=4 needs=in in=4\n";
    tl_graph graph = graph_of(text);
    static char weights[32];
    long at, failures = 0;
    (void)state;
    for (at = 0;; at++) {
        static bed b;
        tl_variable one = {1, TL_VARIABLE_PARAMETER, 0, sizeof weights, 0};
        tl_run_figures figures;
        failing_alloc f;
        op_list list;
        tl_result result;
        memset(&f, 0, sizeof f);
        bed_open(&b, &graph, 0, 0, 1);
        list = ops_of_graph(&graph, &b.mixer);
        b.env = failing_env(&f, at);
        b.desc.budget_ratio = 1;
        b.desc.figures = &figures;
        b.desc.variables = &one;
        b.desc.variable_count = 1;
        one.host = weights;
        result = init_ops(&b, &list);
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        if (result) assert_null(b.run);
        if (result) assert_int_equal(f.live, 0);
        failures += result == TL_ERROR_NO_MEMORY;
        bed_close(&b);
        assert_int_equal(f.live, 0);
        op_list_free(&list);
        if (f.count <= at) break;
    }
    assert_true(failures > 20);
    tl_free_graph(NULL, &graph);
}

// An operation of a graph is kernels alone: each field that says what the graph says already is refused, by its place in the list.
static void operations_of_a_graph_say_nothing_twice(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=64 needs=in in=0\n";
    static const uint64_t one[1] = { 64 };
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_env env = silent_env();
    tl_graph graph;
    tl_tensor input = {0, 0};
    tl_run_desc desc = {0};
    tl_op ops[4];
    tl_run *run;
    int counts[4] = {0}, i;
    (void)state;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    desc.backend = &backend;
    chain_ops(ops, counts);
    if (tl_init_op_run(&env, &desc, ops, 4, &run)) fail_msg("%s", env.error.text);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    tl_free_run(run);
    desc.graph = &graph;
    for (i = 0; i < 15; i++) {
        chain_ops(ops, counts);
        ops[0].output_bytes = ops[1].output_bytes = 0;
        switch (i) {
        case 0: ops[1].inputs = &input; break;
        case 1: ops[1].outputs = one; break;
        case 2: ops[1].needs = "in"; break;
        case 3: ops[1].input_count = 1; break;
        case 4: ops[1].output_count = 1; break;
        case 5: ops[1].inplace = 1; break;
        case 6: ops[1].output_bytes = 64; break;
        case 7: ops[1].saved_bytes = 64; break;
        case 8: ops[1].fwork_bytes = 64; break;
        case 9: ops[1].swork_bytes = 64; break;
        case 10: ops[1].bwork_bytes = 64; break;
        case 11: ops[1].param_bytes = 64; break;
        case 12: ops[1].fwd_cost = 64; break;
        case 13: ops[1].bwd_cost = 64; break;
        default: break;
        }
        if (i == 14) {
            if (tl_init_op_run(&env, &desc, ops, 2, &run)) fail_msg("%s", env.error.text);
            tl_free_run(run);
            break;
        }
        assert_int_equal(tl_init_op_run(&env, &desc, ops, 2, &run), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text,
                            "tl_init_op_run: ops: op 1: its sizes and inputs are those of the graph, give kernels only");
        assert_null(run);
    }
    desc.kernel_count = 1;
    assert_int_equal(tl_init_op_run(&env, &desc, ops, 2, &run), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_init_op_run: kernels: they stand in the ops");
    tl_free_graph(&env, &graph);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// Who says how to run is not overruled by the cheapest plan; who asks for nothing gets that.
static void what_is_asked_for_is_not_overruled(void **state) {
    static const char steps[] = "F 1\nF 2\nF 3\nB 3\nB 2\nB 1\n";
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_env env = silent_env();
    tl_plan plan;
    tl_run *run;
    int i;
    (void)state;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    if (tl_parse_schedule(&env, steps, strlen(steps), &plan)) fail_msg("%s", env.error.text);
    for (i = 0; i < 3; i++) {
        tl_run_desc desc = {0};
        tl_op ops[4];
        int counts[4] = {0};
        tl_result result;
        chain_ops(ops, counts);
        desc.backend = &backend;
        if (i == 0) desc.plan = &plan;
        if (i == 1) desc.eviction = TL_EVICTION_OLDEST;
        if (i == 2) desc.policy = tl_policy_none();
        result = tl_init_op_run(&env, &desc, ops, 4, &run);
        if (result) fail_msg("%d: %s", i, env.error.text);
        if (tl_run_plan(run)) fail_msg("%s", env.error.text);
        if (counts[1] + counts[2] + counts[3] != (i == 2 ? 9 : 6)) fail_msg("%d: %d calls", i, counts[1] + counts[2] + counts[3]);
        tl_free_run(run);
    }
    tl_free_plan(&env, &plan);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_operations_is_the_graph_that_it_describes),
        cmocka_unit_test(figures_are_budgets),
        cmocka_unit_test(operations_that_break_a_rule_are_refused),
        cmocka_unit_test(operations_of_a_graph_say_nothing_twice),
        cmocka_unit_test(what_is_asked_for_is_not_overruled),
        cmocka_unit_test(other_runs_have_no_figures),
        cmocka_unit_test(users_belong_to_the_nodes_they_come_from),
        cmocka_unit_test(a_graph_of_shapes_gets_kernels_and_costs),
        cmocka_unit_test(a_backend_without_functions_is_refused),
        cmocka_unit_test(a_refusal_names_the_bytes_that_alignment_takes),
        cmocka_unit_test(ranges_of_the_state_are_checked),
        cmocka_unit_test(a_failing_allocator_leaves_nothing_behind),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
