// [12] RUN with memory standard, pooled and minimal-peak: what each takes, and that all compute the same.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/run_bed.h"

static tl_strategy strategy_of(tl_gradient gradient, tl_memory memory) {
    tl_strategy s = tl_with_mode(tl_with_gradient(tl_strategy_new(), gradient), TL_MODE_LAZY);
    return tl_with_memory(tl_with_precision(s, TL_PRECISION_SINGLE), memory);
}

static tl_graph graph_of(const char *text) {
    tl_env env = silent_env();
    tl_graph graph;
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

typedef struct outcome {
    tl_result     result;
    uint64_t      sum, named;       // of gradients and results; what a refusal names
    tl_run_report report;
    char          text[256];
} outcome;

// Two steps of a run, or its refusal.
static outcome run_with(const tl_graph *graph, tl_strategy strategy, uint64_t budget, const tl_plan *plan) {
    static bed b;
    outcome o;
    memset(&o, 0, sizeof o);
    bed_open(&b, graph, 0, 0, 4);
    b.desc.strategy = &strategy;
    b.desc.budget_bytes = budget;
    b.desc.plan = plan;
    o.result = bed_init(&b);
    if (!o.result) {
        (void)bed_step(&b, !strategy.gradient.computes);
        o.sum = bed_step(&b, !strategy.gradient.computes);
        o.report = bed_report(&b);
        if (strategy.memory != TL_MEMORY_STANDARD)
            assert_int_equal(o.report.taken_bytes, o.report.planned_taken_bytes);
    } else {
        o.named = tl_find_least_budget(&b.env.error);
        snprintf(o.text, sizeof o.text, "%s", b.env.error.text);
    }
    bed_close(&b);
    return o;
}

// Two branches of 256 and 32 bytes: both first tensors are live together in the listing only.
static const char branches[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 a1 f fwd=1 bwd=1 out=256 needs=none in=0\n"
    "node 2 b1 f fwd=1 bwd=1 out=256 needs=none in=0\n"
    "node 3 a2 f fwd=1 bwd=1 out=32 needs=none in=1\n"
    "node 4 b2 f fwd=1 bwd=1 out=32 needs=none in=2\n"
    "node 5 y f fwd=1 bwd=1 out=16 needs=none in=3,4\n";

// Two losses: the one is reversed before the forwards of the other run.
static const char losses[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 a f fwd=1 bwd=1 out=256 needs=out in=0\n"
    "node 2 la f fwd=1 bwd=1 out=16 needs=none in=1\n"
    "node 3 b f fwd=1 bwd=1 out=256 needs=out in=0\n"
    "node 4 lb f fwd=1 bwd=1 out=16 needs=none in=3\n";

static void the_three_take_other_bytes(const char *text, tl_gradient gradient, const uint64_t expected[3]) {
    static const tl_memory memories[] = { TL_MEMORY_STANDARD, TL_MEMORY_POOLED, TL_MEMORY_MINIMAL_PEAK };
    tl_graph graph = graph_of(text);
    uint64_t sum = 0;
    int k;
    for (k = 0; k < 3; k++) {
        outcome o = run_with(&graph, strategy_of(gradient, memories[k]), 0, NULL);
        assert_int_equal(o.result, TL_OK);
        assert_int_equal(o.report.taken_bytes, expected[k]);
        if (k) assert_int_equal(o.report.measured_arena_bytes, o.report.planned_arena_bytes);
        else assert_int_equal(o.report.measured_arena_bytes, 0);
        if (k) assert_int_equal(o.sum, sum);
        sum = o.sum;
    }
    tl_free_graph(NULL, &graph);
}

// What is live at one time leaves a hole in every arena that was found: 240 bytes take 256 in the order of the listing.
static const char holes[] =
    "tlg 1\n"
    "node 0 n0 input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 n1 f fwd=1 bwd=1 out=96,48,64 needs=in in=0\n"
    "node 2 n2 f fwd=1 bwd=1 out=64 needs=in in=1.2,0\n"
    "node 3 n3 f fwd=1 bwd=1 out=16 needs=in in=2\n"
    "node 4 n4 f fwd=1 bwd=0 out=48 needs=none in=0,1.0,1.0 grad=no\n"
    "node 5 n5 f fwd=1 bwd=1 out=48 needs=in in=4,3,2\n"
    "node 6 n6 f fwd=1 bwd=1 out=64 needs=out in=5,2\n"
    "node 7 n7 f fwd=1 bwd=0 out=32,80 needs=none in=5 grad=no\n"
    "node 8 n8 f fwd=1 bwd=0 out=48 needs=none in=4,0 grad=no keep\n";

static void standard_pooled_and_minimal_peak_take_other_bytes(void **state) {
    static const uint64_t forward_only[] = { 240, 256, 224 }, branched[] = { 560, 560, 336 }, training[] = { 800, 800, 544 };
    (void)state;
    the_three_take_other_bytes(holes, tl_gradient_none(), forward_only);
    the_three_take_other_bytes(branches, tl_gradient_none(), branched);     // x, a1, b1, a2; x, a2, b1, b2
    the_three_take_other_bytes(losses, tl_gradient_full(), training);       // x, a, b, gradients of lb and b; but for a
}

static void random_graphs_compute_the_same_in_less(void **state) {
    int count = scaled(80), i, less = 0, computes;
    tl_random random = { 1220 };
    (void)state;
    for (i = 0; i < count; i++) {
        tl_graph graph;
        if (random_graph(NULL, &random, 20, &graph)) fail_msg("%s", "no graph");
        for (computes = 0; computes < 2; computes++) {
            tl_gradient gradient = computes ? tl_gradient_full() : tl_gradient_none();
            outcome pooled = run_with(&graph, strategy_of(gradient, TL_MEMORY_POOLED), 0, NULL);
            outcome minimal = run_with(&graph, strategy_of(gradient, TL_MEMORY_MINIMAL_PEAK), 0, NULL);
            uint64_t taken = minimal.report.taken_bytes;
            assert_int_equal(pooled.result, TL_OK);
            assert_int_equal(minimal.result, TL_OK);
            assert_int_equal(minimal.sum, pooled.sum);
            assert_true(taken <= pooled.report.taken_bytes);
            less += taken < pooled.report.taken_bytes;
            // Within these bytes it runs; one less is refused, and names them, or runs forwards again.
            if (i % 8 || !taken) continue;
            assert_int_equal(run_with(&graph, strategy_of(gradient, TL_MEMORY_MINIMAL_PEAK), taken, NULL).result, TL_OK);
            minimal = run_with(&graph, strategy_of(gradient, TL_MEMORY_MINIMAL_PEAK), taken - 1, NULL);
            assert_true(minimal.result == TL_ERROR_INFEASIBLE ? minimal.named <= taken : !computes && minimal.sum == pooled.sum);
            if (computes) assert_int_equal(minimal.named, taken);
        }
        tl_free_graph(NULL, &graph);
    }
    printf("%d graphs, %d runs in less than pooled\n", count, less);
    assert_true(less > count / 4);
}

// A chain whose order is the only one: where it may, and must, it drops and runs again.
static void where_no_order_fits_forwards_run_again(void **state) {
    tl_chain_desc chain;
    tl_graph graph;
    outcome all, least, some;
    (void)state;
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 16;
    chain.input_bytes = 4;
    if (tl_add_chain(NULL, &graph, &chain)) fail_msg("%s", "no graph");
    all = run_with(&graph, strategy_of(tl_gradient_checkpointed(0), TL_MEMORY_MINIMAL_PEAK), 0, NULL);
    assert_int_equal(all.report.recompute_count, 0);
    some = run_with(&graph, strategy_of(tl_gradient_checkpointed(0), TL_MEMORY_MINIMAL_PEAK), all.report.taken_bytes - 8, NULL);
    assert_int_equal(some.result, TL_OK);
    assert_true(some.report.recompute_count > 0 && some.report.taken_bytes <= all.report.taken_bytes - 8);
    assert_int_equal(some.sum, all.sum);
    least = run_with(&graph, strategy_of(tl_gradient_checkpointed(0), TL_MEMORY_MINIMAL_PEAK), 8, NULL);
    assert_int_equal(least.result, TL_ERROR_INFEASIBLE);
    assert_true(least.named < some.report.taken_bytes);
    assert_int_equal(run_with(&graph, strategy_of(tl_gradient_checkpointed(0), TL_MEMORY_MINIMAL_PEAK), least.named, NULL).result,
                     TL_OK);
    some = run_with(&graph, strategy_of(tl_gradient_full(), TL_MEMORY_MINIMAL_PEAK), all.report.taken_bytes - 8, NULL);
    assert_int_equal(some.result, TL_ERROR_INFEASIBLE);
    assert_int_equal(some.named, all.report.taken_bytes);
    tl_free_graph(NULL, &graph);
}

static void a_plan_that_is_given_keeps_its_order(void **state) {
    tl_graph graph = graph_of(branches);
    tl_plan plan;
    outcome given;
    (void)state;
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 1, &plan), TL_OK);
    given = run_with(&graph, strategy_of(tl_gradient_none(), TL_MEMORY_MINIMAL_PEAK), 0, &plan);
    assert_int_equal(given.report.planned_peak_bytes, plan.peak_bytes);
    assert_true(given.report.planned_arena_bytes >= plan.peak_bytes);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void mode_eager_has_no_order_to_choose(void **state) {
    tl_graph graph = graph_of(branches);
    outcome o = run_with(&graph, tl_with_mode(strategy_of(tl_gradient_none(), TL_MEMORY_MINIMAL_PEAK), TL_MODE_EAGER), 0, NULL);
    (void)state;
    assert_int_equal(o.result, TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(o.text, "strategy.memory: minimal-peak orders the nodes before the pass, but mode eager has no plan"));
    tl_free_graph(NULL, &graph);
}

// Each allocation of a run that is made fails in turn.
static void an_allocation_that_fails_leaves_nothing(void **state) {
    static bed b;
    tl_graph graph = graph_of(losses);
    tl_strategy strategy = strategy_of(tl_gradient_checkpointed(0), TL_MEMORY_MINIMAL_PEAK);
    long at;
    (void)state;
    for (at = 0; at >= 0; at++) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_result result;
        bed_open(&b, &graph, 0, 0, 4);
        b.env = failing_env(&f, at);
        b.desc.strategy = &strategy;
        b.desc.budget_bytes = at % 2 ? 0 : 300;         // no order fits 300: remat is asked as well
        f.fails_once = at / 2 % 2;
        result = bed_init(&b);
        if (f.count <= at) at = -2;
        assert_int_equal(result, at >= 0 ? TL_ERROR_NO_MEMORY : b.desc.budget_bytes ? TL_ERROR_INFEASIBLE : TL_OK);
        bed_close(&b);
        assert_int_equal(f.live, 0);
    }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_pooled_and_minimal_peak_take_other_bytes),
        cmocka_unit_test(random_graphs_compute_the_same_in_less),
        cmocka_unit_test(where_no_order_fits_forwards_run_again),
        cmocka_unit_test(a_plan_that_is_given_keeps_its_order),
        cmocka_unit_test(mode_eager_has_no_order_to_choose),
        cmocka_unit_test(an_allocation_that_fails_leaves_nothing),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
