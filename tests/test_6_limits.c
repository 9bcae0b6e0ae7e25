// [6] REMAT: the ends of what may be asked for: no budget, every budget, one step of work.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"

static uint64_t peak_of(const tl_graph *graph, const tl_plan *plan) {
    tl_simulate_desc desc;
    tl_report report;
    tl_env env;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    if (tl_simulate_plan(&env, &desc, &report)) fail_msg("%s", env.error.text);
    assert_int_equal(report.cost, plan->cost);
    return report.peak_bytes;
}

// No budget is the largest one: the same plan, and nothing is made twice.
static void budget_zero_is_no_limit(void **state) {
    tl_random random = { 50 };
    int i;
    (void)state;
    for (i = 0; i < 60; i++) {
        tl_graph graph;
        tl_plan keep_all, none, all;
        tl_remat_report report;
        tl_remat_desc desc;
        assert_int_equal(random_graph(NULL, &random, 20, &graph), TL_OK);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.inference = random_chance(&random, 30);
        desc.work_limit = 100000;
        assert_int_equal(tl_plan_keep_all(NULL, &graph, desc.inference, &keep_all), TL_OK);
        assert_int_equal(tl_plan_remat(NULL, &desc, &none, &report), TL_OK);
        desc.budget_bytes = UINT64_MAX;
        assert_int_equal(tl_plan_remat(NULL, &desc, &all, &report), TL_OK);
        assert_int_equal(peak_of(&graph, &all), all.peak_bytes);
        assert_true(all.cost <= keep_all.cost && report.bound_cost <= all.cost);
        assert_int_equal(none.step_count, all.step_count);
        if (all.step_count) assert_memory_equal(none.steps, all.steps, (size_t)all.step_count * sizeof *all.steps);
        tl_free_plan(NULL, &keep_all);
        tl_free_plan(NULL, &none);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
}

// The base is part of the budget to its last byte.
static void base_fills_any_budget(void **state) {
    tl_random random = { 51 };
    tl_graph graph;
    tl_plan plan;
    tl_remat_report report;
    tl_remat_desc desc;
    tl_env env;
    uint64_t peak;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    assert_int_equal(random_graph(&env, &random, 10, &graph), TL_OK);
    desc.graph = &graph;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_OK);
    peak = plan.peak_bytes;
    assert_true(peak > 0);
    tl_free_plan(&env, &plan);
    desc.budget_bytes = UINT64_MAX;
    desc.base_bytes = UINT64_MAX - peak;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_OK);
    assert_true(plan.peak_bytes <= peak);
    assert_int_equal(plan.base_bytes, UINT64_MAX - peak);
    tl_free_plan(&env, &plan);
    desc.base_bytes = UINT64_MAX;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
    desc.budget_bytes = 1;
    desc.base_bytes = 2;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
    tl_free_graph(&env, &graph);
}

// One step of work still gives an answer that holds, at any budget, soon.
static void one_step_of_work_gives_an_answer_that_holds(void **state) {
    tl_random random = { 52 };
    int i, found = 0, refused = 0;
    (void)state;
    for (i = 0; i < 150; i++) {
        tl_graph graph;
        tl_plan keep_all, plan;
        tl_remat_report report;
        tl_remat_desc desc;
        tl_result result;
        tl_env env;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        assert_int_equal(random_graph(&env, &random, i % 10 ? 14 : 60, &graph), TL_OK);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &keep_all), TL_OK);
        desc.graph = &graph;
        desc.work_limit = 1;
        desc.budget_bytes = keep_all.peak_bytes * (uint64_t)random_count(&random, 0, 110) / 100;
        result = tl_plan_remat(&env, &desc, &plan, &report);
        if (result) {
            assert_int_equal(result, TL_ERROR_INFEASIBLE);
            assert_true(report.least_budget_bytes > desc.budget_bytes && report.bound_budget_bytes <= report.least_budget_bytes);
            refused++;
        } else {
            assert_int_equal(peak_of(&graph, &plan), plan.peak_bytes);
            assert_true(!desc.budget_bytes || plan.peak_bytes <= desc.budget_bytes);
            assert_true(report.bound_cost <= plan.cost);
            found++;
        }
        if (desc.budget_bytes >= keep_all.peak_bytes) assert_int_equal(result, TL_OK);
        tl_free_plan(&env, &plan);
        tl_free_plan(&env, &keep_all);
        tl_free_graph(&env, &graph);
    }
    assert_true(found > 20 && refused > 20);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budget_zero_is_no_limit),
        cmocka_unit_test(base_fills_any_budget),
        cmocka_unit_test(one_step_of_work_gives_an_answer_that_holds),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
