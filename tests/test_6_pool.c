// [6] REMAT: nothing that is known is lost. Properties of answers at the sizes that users have, and the pool that calls share.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/layered_graph.h"

enum { SHARES = 12 };   // budgets between below the floor and keep-all
static const uint64_t some_work = 40000000;

static uint64_t keep_all_peak(const tl_graph *graph, int inference) {
    tl_plan all;
    uint64_t peak;
    if (tl_plan_keep_all(NULL, graph, inference, &all)) fail_msg("%s", "no plan");
    peak = all.peak_bytes;
    tl_free_plan(NULL, &all);
    return peak;
}

// A chain of blocks with an addition each, unequal; without additions at the end where `plain` is set.
static void residual_graph(tl_random *random, int32_t count, int plain, tl_graph *graph) {
    tl_init_graph(graph);
    while (graph->node_count < count) {
        tl_node_desc desc;
        tl_tensor inputs[2];
        uint64_t bytes = 1 + tl_next_random_below(random, 1000);
        int32_t id = graph->node_count, is_sum = !plain && id > 3 && id % 4 == 0;
        memset(&desc, 0, sizeof desc);
        memset(inputs, 0, sizeof inputs);
        inputs[0].node = id - 1;
        inputs[1].node = id - 4;
        if (is_sum) bytes = graph->outputs[id - 1].bytes;
        desc.op = id ? is_sum ? "add" : "conv" : "input";
        desc.needs = id && !is_sum ? id % 3 ? "in" : "out" : "none";
        desc.inputs = inputs;
        desc.input_count = id ? 1 + is_sum : 0;
        desc.output_bytes = &bytes;
        desc.output_count = 1;
        desc.fwd_cost = id ? is_sum ? 1 : 1 + tl_next_random_below(random, 100) : 0;
        desc.bwd_cost = 2 * desc.fwd_cost;
        if (tl_add_node(NULL, graph, &desc, NULL)) fail_msg("%s", "no graph");
    }
}

static void any_graph(tl_random *random, int kind, int32_t count, tl_graph *graph) {
    tl_result result = TL_OK;
    switch (kind % 4) {
    case 0: result = layered_graph(NULL, random, count, graph); break;
    case 1: residual_graph(random, count, 0, graph); break;
    case 2: residual_graph(random, count, 1, graph); break;
    default: result = random_graph(NULL, random, count, graph); break;
    }
    if (result) fail_msg("%s", "no graph");
}

typedef struct answer { tl_result result; uint64_t cost, peak, bound, least, floor; } answer;

static answer ask(const tl_remat_desc *desc) {
    tl_env env = silent_env();
    tl_remat_report report;
    tl_plan plan;
    tl_report counts;
    tl_simulate_desc simulate;
    answer a;
    memset(&a, 0, sizeof a);
    a.result = tl_plan_remat(&env, desc, &plan, &report);
    assert_true(!a.result || a.result == TL_ERROR_INFEASIBLE);
    a.cost = plan.cost;
    a.peak = plan.peak_bytes;
    a.bound = report.bound_cost;
    a.least = report.least_budget_bytes;
    a.floor = report.bound_budget_bytes;
    if (!a.result) {
        memset(&simulate, 0, sizeof simulate);
        simulate.graph = desc->graph;
        simulate.plan = &plan;
        assert_int_equal(tl_simulate_plan(&env, &simulate, &counts), TL_OK);
        assert_int_equal(counts.peak_bytes, plan.peak_bytes);
        assert_int_equal(counts.cost, plan.cost);
        assert_true(plan.peak_bytes <= desc->budget_bytes && a.bound <= a.cost);
    } else {
        assert_true(a.least > desc->budget_bytes && a.floor <= a.least);
    }
    tl_free_plan(&env, &plan);
    return a;
}

static tl_remat_desc desc_of(const tl_graph *graph, uint64_t budget, int inference, uint64_t work_limit) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = budget ? budget : 1;
    desc.inference = inference;
    desc.work_limit = work_limit;
    return desc;
}

// What the policies and tl_plan_chain find at a budget; UINT64_MAX = nothing.
static uint64_t cost_of_policies(const tl_graph *graph, uint64_t budget) {
    uint64_t least = UINT64_MAX;
    int k;
    for (k = 0; k <= TL_POLICY_COUNT; k++) {
        tl_env env = silent_env();
        tl_policy_desc policy;
        tl_chain_plan_desc chain;
        tl_plan plan;
        tl_result result;
        memset(&policy, 0, sizeof policy);
        memset(&chain, 0, sizeof chain);
        policy.graph = chain.graph = graph;
        policy.budget_bytes = chain.budget_bytes = budget;
        policy.policy = (tl_policy)k;
        result = k < TL_POLICY_COUNT ? tl_plan_policy(&env, &policy, &plan) : tl_plan_chain(&env, &chain, &plan, NULL);
        if (!result && plan.cost < least) least = plan.cost;
        tl_free_plan(&env, &plan);
    }
    return least;
}

typedef struct tally { int calls, refused, rises; } tally;

// Independent calls, and the same calls with one pool in rising order, then in falling order.
static void check_graph(const tl_graph *graph, int inference, uint64_t work_limit, tally *t) {
    uint64_t peak = keep_all_peak(graph, inference), least = 0, lowest = UINT64_MAX, budgets[SHARES], last = UINT64_MAX;
    answer alone[SHARES];
    tl_remat_desc desc;
    tl_remat_pool *pool;
    answer a;
    int i, k;
    for (i = 0; i < SHARES; i++) {
        budgets[i] = peak / 100 * (uint64_t)(3 + i * i * 97 / (SHARES - 1) / (SHARES - 1)) + (i == SHARES - 1 ? peak % 100 : 0);
        desc = desc_of(graph, budgets[i], inference, work_limit);
        alone[i] = a = ask(&desc);
        t->calls++;
        if (!a.result) {
            if (!inference) assert_true(a.cost <= cost_of_policies(graph, desc.budget_bytes));
            t->rises += a.cost > last;
            last = a.cost;
            continue;
        }
        t->refused++;
        if (least) assert_int_equal(a.least, least);
        least = a.least;
    }
    for (i = 0; i < SHARES; i++)
        for (k = i + 1; k < SHARES && !alone[i].result; k++) assert_true(alone[k].bound <= alone[i].cost);
    if (least) {
        desc = desc_of(graph, least, inference, work_limit);
        a = ask(&desc);
        assert_int_equal(a.result, TL_OK);
    }
    assert_int_equal(tl_init_remat_pool(NULL, &pool), TL_OK);
    for (i = 0, last = UINT64_MAX; i < 2 * SHARES; i++) {
        k = i < SHARES ? i : 2 * SHARES - 1 - i;
        desc = desc_of(graph, budgets[k], inference, work_limit / 4);
        desc.pool = pool;
        a = ask(&desc);
        if (a.result) {
            assert_true(a.least <= lowest);
            continue;
        }
        if (a.peak < lowest) lowest = a.peak;
        if (i < SHARES) assert_true(a.cost <= last);
        else if (i > SHARES) assert_true(a.cost >= last);
        last = a.cost;
    }
    tl_free_remat_pool(pool);
}

static void graphs_of_any_kind_keep_the_properties(void **state) {
    tl_random random = { 13 };
    tally t = { 0, 0, 0 };
    int i;
    (void)state;
    for (i = 0; i < (getenv("SOAK") ? 400 : getenv("SAMPLE") ? 4 : 12); i++) {
        tl_graph graph;
        any_graph(&random, i, random_count(&random, 40, i < 8 ? 120 : 300), &graph);
        check_graph(&graph, i % 8 == 7, some_work, &t);
        tl_free_graph(NULL, &graph);
    }
    print_message("%d calls, %d refused, %d pairs of neighbours rise\n", t.calls, t.refused, t.rises);
    assert_true(t.refused > 0 && t.refused < t.calls);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_of_any_kind_keep_the_properties),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
