// [12] RUN with checkpoints at an interval: the same nodes eager and lazy, and bytes saved on graphs with skips; and with
// policy none: the least bytes.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/brute_force.h"
#include "support/run_support.h"
#include "support/run_bed.h"

enum { BYTES = 64, NODES = 13 };

// 12 equal nodes behind an input, the last of them the result; with skips every third reads the one three before it, too.
static tl_graph chain_with(int skips) {
    tl_env env = silent_env();
    tl_graph graph;
    char text[2048];
    size_t at = (size_t)snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\n", BYTES);
    int i;
    for (i = 1; i < NODES; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "node %d n%d f fwd=10 bwd=20 out=%d needs=in in=%d", i, i, BYTES, i - 1);
        if (skips && i % 3 == 0) at += (size_t)snprintf(text + at, sizeof text - at, ",%d", i - 3);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\n", i == NODES - 1 ? " keep" : "");
    }
    if (tl_parse_graph(&env, text, at, &graph)) fail_msg("%s", env.error.text);
    return graph;
}

static tl_strategy interval_of(tl_mode mode, uint64_t interval) {
    tl_strategy s = tl_with_gradient(tl_with_mode(tl_strategy_new(), mode), tl_gradient_checkpointed(interval));
    return tl_with_precision(s, TL_PRECISION_SINGLE);
}

// Mark what is resident before the first backward, or before the first forward that runs again.
static void mark_kept(const tl_graph *graph, const tl_plan *plan, uint8_t *kept) {
    uint8_t *ran = (uint8_t *)calloc((size_t)graph->node_count, 1);
    int32_t k, i;
    memset(kept, 0, (size_t)graph->tensor_count);
    for (k = 0; k < plan->step_count; k++) {
        const tl_step step = tl_find_step(plan, k);
        const tl_node *node = &graph->nodes[step.node];
        if (step.kind == TL_STEP_BACKWARD || (step.kind < TL_STEP_BACKWARD && ran[step.node])) break;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (step.output == TL_ALL_OUTPUTS || node->first_output + step.output == i)
                kept[i] = step.kind < TL_STEP_BACKWARD;
        if (step.kind < TL_STEP_BACKWARD) ran[step.node] = 1;
    }
    free(ran);
}

typedef struct outcome {
    uint64_t      sum;
    tl_run_report report;
    uint8_t       kept[256];    // [tensor_count]
} outcome;

static outcome run_interval(const tl_graph *graph, tl_mode mode, uint64_t interval) {
    static bed b;
    tl_strategy strategy = interval_of(mode, interval);
    tl_plan plan;
    outcome o;
    memset(&o, 0, sizeof o);
    assert_true(graph->tensor_count <= (int32_t)sizeof o.kept);
    bed_open(&b, graph, 0, 0, 1);
    b.desc.strategy = &strategy;
    bed_must_init(&b);
    (void)bed_step(&b, 0);
    o.sum = bed_step(&b, 0);
    o.report = bed_report(&b);
    assert_int_equal(o.report.measured_peak_bytes, o.report.planned_peak_bytes);
    tl_find_run_plan(b.run, &plan);
    mark_kept(graph, &plan, o.kept);
    bed_close(&b);
    return o;
}

// -- intervals --

static void an_interval_keeps_the_same_nodes_eager_lazy_and_as_a_policy(void **state) {
    int skips, mode, id;
    uint64_t n;
    (void)state;
    for (skips = 0; skips < 2; skips++) {
        tl_graph graph = chain_with(skips);
        for (n = 1; n <= NODES; n++) {
            tl_env env = silent_env();
            tl_policy_desc desc;
            tl_plan plan;
            uint8_t kept[NODES];
            for (mode = 0; mode < 2; mode++) {
                outcome o = run_interval(&graph, mode ? TL_MODE_LAZY : TL_MODE_EAGER, n);
                for (id = 1; id < NODES; id++)
                    assert_int_equal(o.kept[id], (uint64_t)id % n == 0 || id == NODES - 1);
            }
            memset(&desc, 0, sizeof desc);
            desc.graph = &graph;
            desc.policy.kind = TL_POLICY_EVERY_N;
            desc.policy.as.every_n.interval = n;
            if (tl_plan_policy(&env, &desc, &plan)) fail_msg("%s", env.error.text);
            mark_kept(&graph, &plan, kept);
            for (id = 1; id < NODES; id++) assert_int_equal(kept[id], (uint64_t)id % n == 0 || id == NODES - 1);
            tl_free_plan(&env, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

// Numbers are layers where nodes have them.
static void an_interval_counts_layers(void **state) {
    static const char text[] =
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
        "node 1 a f fwd=1 bwd=1 out=8 needs=in in=0 layer=0\n"
        "node 2 b f fwd=1 bwd=1 out=8 needs=in in=1 layer=1\n"
        "node 3 c f fwd=1 bwd=1 out=8 needs=in in=2 layer=1\n"
        "node 4 d f fwd=1 bwd=1 out=8 needs=in in=3 layer=2\n"
        "node 5 e f fwd=1 bwd=1 out=8 needs=in in=4 layer=2\n"
        "node 6 f f fwd=1 bwd=1 out=8 needs=in in=5\n"
        "node 7 g f fwd=1 bwd=1 out=8 needs=in in=6\n"
        "node 8 h f fwd=1 bwd=1 out=8 needs=in in=7 layer=3\n";
    static const uint8_t kept[] = { 0, 1, 0, 0, 1, 1, 1, 0, 0 };
    tl_env env = silent_env();
    tl_graph graph;
    int mode, id;
    (void)state;
    if (tl_parse_graph(&env, text, sizeof text - 1, &graph)) fail_msg("%s", env.error.text);
    for (mode = 0; mode < 2; mode++) {
        outcome o = run_interval(&graph, mode ? TL_MODE_LAZY : TL_MODE_EAGER, 2);
        for (id = 1; id < 9; id++) assert_int_equal(o.kept[id], kept[id]);
    }
    tl_free_graph(NULL, &graph);
}

// Keep-all peaks at 16 of these tensors. A skip past a checkpoint makes forwards of earlier spans run: what they make in
// passing does not stay.
static void on_graphs_with_skips_an_interval_saves(void **state) {
    static const int tensors[] = { 16, 12, 10, 12, 10, 11, 11, 10, 13, 13, 13, 16, 16 };
    static const int recomputed[] = { 0, 6, 8, 12, 14, 10, 15, 15, 10, 18, 18, 11, 11 };
    tl_graph graph = chain_with(1);
    uint64_t expected = keep_all_outcome(&graph, 0, 1, NULL);
    int n, mode;
    (void)state;
    for (n = 1; n <= NODES; n++)
        for (mode = 0; mode < 2; mode++) {
            outcome o = run_interval(&graph, mode ? TL_MODE_LAZY : TL_MODE_EAGER, (uint64_t)n);
            assert_int_equal(o.report.measured_peak_bytes, tensors[n - 1] * BYTES);
            assert_int_equal(o.report.recompute_count, recomputed[n - 1]);
            assert_int_equal(o.sum, expected);
        }
    tl_free_graph(NULL, &graph);
}

static uint64_t kept_set_peak(const tl_graph *graph, const uint8_t *keep) {
    tl_env env = silent_env();
    tl_plan plan;
    uint64_t peak;
    if (tl_plan_kept_set(&env, graph, keep, &plan)) fail_msg("%s", env.error.text);
    peak = plan.peak_bytes;
    tl_free_plan(&env, &plan);
    return peak;
}

static void intervals_on_random_graphs(void **state) {
    int count = scaled(300), i, less = 0, mode;
    tl_random random = { 1236 };
    (void)state;
    for (i = 0; i < count; i++) {
        tl_graph graph;
        uint64_t n = 1 + tl_next_random_below(&random, 6), expected, peak;
        uint8_t keep[256];
        int32_t k;
        if (random_graph(NULL, &random, 24, &graph)) fail_msg("%s", "no graph");
        expected = keep_all_outcome(&graph, 0, 1, NULL);
        for (k = 0; k < graph.tensor_count; k++) {
            const tl_node *node = &graph.nodes[graph.outputs[k].node];
            int32_t number = node->layer >= 0 ? node->layer : graph.outputs[k].node;
            keep[k] = !node->is_input && (uint64_t)number % n == 0;
        }
        peak = kept_set_peak(&graph, keep);
        for (mode = 0; mode < 2; mode++) {
            outcome o = run_interval(&graph, mode ? TL_MODE_LAZY : TL_MODE_EAGER, n);
            assert_int_equal(o.sum, expected);
            for (k = 0; k < graph.tensor_count; k++)
                if (o.kept[k]) assert_true(keep[k] || graph.nodes[graph.outputs[k].node].keep);
            if (!mode) continue;
            assert_true(o.report.measured_peak_bytes <= peak);
            less += o.report.measured_peak_bytes < peak;
        }
        tl_free_graph(NULL, &graph);
    }
    printf("%d graphs, %d with less than the kept set alone takes\n", count, less);
    assert_true(less > count / 50);
}

// -- policy none --

// Every buffer a block of its own, so bytes are those of the decisions.
static tl_result init_none(bed *b, const tl_graph *graph, tl_strategy *strategy, uint64_t budget) {
    *strategy = tl_with_memory(interval_of(TL_MODE_EAGER, 0), TL_MEMORY_STANDARD);
    bed_open(b, graph, 0, 0, 1);
    b->desc.strategy = strategy;
    b->desc.policy = tl_policy_none();
    b->desc.budget_bytes = budget;
    return bed_init(b);
}

static void policy_none_without_a_budget_takes_the_least_that_works(void **state) {
    int count = scaled(150), i, less = 0;
    tl_random random = { 1237 };
    static bed b;
    tl_strategy strategy;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_graph graph;
        uint64_t expected, peak, named, all;
        if (random_graph(NULL, &random, 20, &graph)) fail_msg("%s", "no graph");
        expected = keep_all_outcome(&graph, 0, 1, &all);
        if (init_none(&b, &graph, &strategy, 0)) fail_msg("%s", b.env.error.text);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_step(&b, 0), expected);
        peak = bed_report(&b).measured_peak_bytes;
        bed_close(&b);
        assert_int_equal(init_none(&b, &graph, &strategy, 1), TL_ERROR_INFEASIBLE);
        named = tl_find_least_budget(&b.env.error);
        bed_close(&b);
        assert_int_equal(init_none(&b, &graph, &strategy, named - 1), TL_ERROR_INFEASIBLE);
        bed_close(&b);
        if (init_none(&b, &graph, &strategy, named)) fail_msg("%s", b.env.error.text);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_report(&b).measured_peak_bytes, peak);
        bed_close(&b);
        less += peak < all;
        tl_free_graph(NULL, &graph);
    }
    assert_true(is_thinned() || less > count / 3);
}

// The least peak of any schedule.
static uint64_t brute_least(const tl_graph *graph, uint64_t works) {
    static brute b;
    uint64_t fails = 0, cost, peak;
    assert_true(brute_init(&b, graph, 0) < 20);
    b.capacity = b.heap_capacity = (size_t)1 << 20;
    b.states = (brute_state *)calloc(b.capacity, sizeof *b.states);
    b.heap = (brute_entry *)malloc(b.heap_capacity * sizeof *b.heap);
    assert_true(b.states && b.heap);
    while (works - fails > 1) {
        uint64_t middle = fails + (works - fails) / 2;
        if (brute_solve(&b, middle, &cost, &peak)) works = middle; else fails = middle;
    }
    free(b.states);
    free(b.heap);
    return works;
}

static void policy_none_takes_the_least_of_all_schedules_on_chains(void **state) {
    static const char *const needs[] = { "in", "out", "in,out" };
    tl_random random = { 1238 };
    static bed b;
    tl_strategy strategy;
    int i, k;
    (void)state;
    for (i = 0; i < 30; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        char text[1024];
        int layers = 1 + i % 6;
        size_t at = (size_t)snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n");
        for (k = 1; k <= layers; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "node %d n%d f fwd=1 bwd=2 out=%d needs=%s in=%d\n", k, k,
                                   1 + (int)tl_next_random_below(&random, 9), needs[i / 6 % 3], k - 1);
        if (tl_parse_graph(&env, text, at, &graph)) fail_msg("%s", env.error.text);
        if (init_none(&b, &graph, &strategy, 0)) fail_msg("%s", b.env.error.text);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_report(&b).measured_peak_bytes, brute_least(&graph, bed_report(&b).measured_peak_bytes));
        bed_close(&b);
        tl_free_graph(NULL, &graph);
    }
}

// Each backward begins at the input; with room for everything at most one more forward pass. Switched off, the policy
// keeps everything; a device that is known is no budget.
static void policy_none_uses_a_budget_and_may_be_switched_off(void **state) {
    static const int memories[] = { TL_MEMORY_STANDARD, TL_MEMORY_POOLED };
    tl_device device;
    int m;
    (void)state;
    memset(&device, 0, sizeof device);
    device.device_capacity_bytes = 1 << 20;
    for (m = 0; m < 4; m++) {
        static bed b;
        tl_graph graph = chain_with(0);
        uint64_t all, expected = keep_all_outcome(&graph, 0, 1, &all);
        tl_strategy strategy = tl_with_memory(interval_of(TL_MODE_EAGER, 0), (tl_memory)memories[m % 2]);
        bed_open(&b, &graph, 0, 0, 1);
        b.desc.strategy = &strategy;
        b.desc.policy = tl_policy_none();
        b.desc.device = m < 2 ? NULL : &device;
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_step(&b, 0), expected);
        assert_int_equal(bed_report(&b).measured_peak_bytes, 5 * BYTES);    // input, result, one tensor, two gradients
        assert_int_equal(bed_report(&b).forward_count, 12 + 12 * 11 / 2);
        if (tl_enable_checkpoints(b.run, 0)) fail_msg("%s", b.env.error.text);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_report(&b).measured_peak_bytes, all);
        assert_int_equal(bed_report(&b).forward_count, 12);
        if (tl_enable_checkpoints(b.run, 1)) fail_msg("%s", b.env.error.text);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_report(&b).measured_peak_bytes, 5 * BYTES);
        bed_close(&b);
        if (init_none(&b, &graph, &strategy, all)) fail_msg("%s", b.env.error.text);
        (void)bed_step(&b, 0);
        assert_true(bed_report(&b).forward_count > 12 && bed_report(&b).forward_count <= 24);
        bed_close(&b);
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_keeps_the_same_nodes_eager_lazy_and_as_a_policy),
        cmocka_unit_test(an_interval_counts_layers),
        cmocka_unit_test(on_graphs_with_skips_an_interval_saves),
        cmocka_unit_test(intervals_on_random_graphs),
        cmocka_unit_test(policy_none_without_a_budget_takes_the_least_that_works),
        cmocka_unit_test(policy_none_takes_the_least_of_all_schedules_on_chains),
        cmocka_unit_test(policy_none_uses_a_budget_and_may_be_switched_off),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
