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
#include "support/keep_all.h"

enum { SHARES = 12 };   // budgets between below the floor and keep-all
static const uint64_t some_work = 40000000;

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
    default: result = random_effect_graph(NULL, random, count, kind / 4 % 2 * 20, graph); break;
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
    desc.live = 1;
    desc.budget_bytes = budget ? budget : 1;
    desc.inference = inference;
    desc.work_limit = work_limit;
    return desc;
}

// What the policies and tl_plan_chain find at a budget; UINT64_MAX = nothing.
static uint64_t cost_of_policies(const tl_graph *graph, uint64_t budget) {
    uint64_t least = UINT64_MAX;
    int k;
    for (k = 0; k <= TL_POLICY_CHAIN + 1; k++) {
        tl_env env = silent_env();
        tl_policy_desc policy;
        tl_chain_plan_desc chain;
        tl_plan plan;
        tl_result result;
        memset(&policy, 0, sizeof policy);
        memset(&chain, 0, sizeof chain);
        policy.graph = chain.graph = graph;
        policy.live = 1;
        policy.budget_bytes = chain.budget_bytes = budget;
        policy.policy.kind = (tl_policy_kind)k;
        result = k <= TL_POLICY_CHAIN ? tl_plan_policy(&env, &policy, &plan) : tl_plan_chain(&env, &chain, &plan, NULL);
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
    for (i = 0; i < scaled(12); i++) {
        tl_graph graph;
        any_graph(&random, i, random_count(&random, 40, i < 8 ? 120 : 300), &graph);
        check_graph(&graph, i % 8 == 7, some_work, &t);
        tl_free_graph(NULL, &graph);
    }
    print_message("%d calls, %d refused, %d pairs of neighbours rise\n", t.calls, t.refused, t.rises);
    assert_true(t.refused > 0 && t.refused < t.calls);
}

// -- the pool itself --

// A plan of no steps, for the rules of the front.
static void offer(tl_remat_pool *pool, uint64_t peak, uint64_t cost) {
    tl_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.peak_bytes = peak;
    plan.cost = cost;
    plan.repeat_count = 1;
    assert_int_equal(tli_pool_offer(pool, &pool->env, &plan), TL_OK);
}

static void a_pool_keeps_a_front(void **state) {
    tl_random random = { 7 };
    int round, i;
    (void)state;
    for (round = 0; round < 200; round++) {
        tl_remat_pool pool;
        uint64_t peaks[40], costs[40], budget;
        tli_pool_init(&pool, NULL, UINT64_MAX);
        for (i = 0; i < 40; i++) offer(&pool, peaks[i] = tl_next_random_below(&random, 20), costs[i] = tl_next_random_below(&random, 20));
        for (i = 1; i < pool.plan_count; i++)
            assert_true(pool.plans[i - 1].peak_bytes < pool.plans[i].peak_bytes && pool.plans[i - 1].cost > pool.plans[i].cost);
        for (budget = 0; budget < 22; budget++) {
            const tl_plan *best = tli_pool_find(&pool, budget);
            uint64_t least = UINT64_MAX, peak = UINT64_MAX;
            for (i = 0; i < 40; i++)
                if (peaks[i] <= budget && (costs[i] < least || (costs[i] == least && peaks[i] < peak))) { least = costs[i]; peak = peaks[i]; }
            assert_true(best ? best->cost == least && best->peak_bytes == peak : least == UINT64_MAX);
        }
        tli_pool_clear(&pool);
    }
}

static void a_pool_thins_out_but_keeps_its_answers(void **state) {
    tl_random random = { 8 };
    int round, i;
    (void)state;
    for (round = 0; round < 50; round++) {
        tl_remat_pool pool, whole;
        tl_step steps[4];
        uint64_t budget;
        tli_pool_init(&pool, NULL, 6 * sizeof steps);
        tli_pool_init(&whole, NULL, UINT64_MAX);
        for (budget = 10; budget < 100; budget += 30) assert_int_equal(tli_pool_ask(&pool, budget), TL_OK);
        memset(steps, 0, sizeof steps);
        for (i = 0; i < 60; i++) {
            tl_plan plan, again;
            memset(&plan, 0, sizeof plan);
            plan.peak_bytes = tl_next_random_below(&random, 100);
            plan.cost = 100 - plan.peak_bytes + tl_next_random_below(&random, 20);
            plan.repeat_count = 1;
            plan.steps = steps;
            plan.step_count = 4;
            again = plan;  // a table: copies of it own nothing
            assert_int_equal(tli_pool_offer(&pool, &pool.env, &plan), TL_OK);
            assert_int_equal(tli_pool_offer(&whole, &whole.env, &again), TL_OK);
            assert_true(pool.bytes <= 6 * sizeof steps && pool.plan_count <= 6);
            assert_int_equal(pool.plans[0].peak_bytes, whole.plans[0].peak_bytes);
            for (budget = 10; budget < 100; budget += 30) {
                const tl_plan *best = tli_pool_find(&pool, budget), *all = tli_pool_find(&whole, budget);
                assert_true(best ? best->cost == all->cost : !all);
            }
        }
        tli_pool_clear(&pool);
        tli_pool_clear(&whole);
    }
}

static void a_bound_holds_for_smaller_budgets(void **state) {
    tl_random random = { 9 };
    int round, i;
    (void)state;
    for (round = 0; round < 200; round++) {
        tl_remat_pool pool;
        uint64_t budgets[20], costs[20], at;
        tli_pool_init(&pool, NULL, 0);
        for (i = 0; i < 20; i++) {
            budgets[i] = tl_next_random_below(&random, 15);
            costs[i] = tl_next_random_below(&random, 15);
            assert_int_equal(tli_pool_add_bound(&pool, budgets[i], costs[i]), TL_OK);
        }
        for (at = 0; at < 16; at++) {
            uint64_t most = 0;
            for (i = 0; i < 20; i++) if (budgets[i] >= at && costs[i] > most) most = costs[i];
            assert_int_equal(tli_pool_bound_at(&pool, at), most);
        }
        tli_pool_clear(&pool);
    }
}

// Whatever of the device changes what copies cost makes other plans.
static void a_pool_of_another_device_is_refused(void **state) {
    tl_random random = { 22 };
    tl_device devices[6];
    tl_graph graph;
    tl_remat_pool *pool;
    tl_remat_desc desc;
    tl_env env = silent_env();
    tl_plan plan;
    int i;
    (void)state;
    any_graph(&random, 1, 20, &graph);
    memset(devices, 0, sizeof devices);
    for (i = 0; i < 6; i++) devices[i].link_bytes_per_second = 1000000000;
    devices[1].link_bytes_per_second++;
    devices[2].link_latency_ns = 1;
    devices[3].copy_channels = 2;
    devices[4].wait_latency_ns = 1;
    devices[5].upload_bytes_per_second = 999999999;
    assert_int_equal(tl_init_remat_pool(NULL, &pool), TL_OK);
    desc = desc_of(&graph, keep_all_peak(&graph, 0), 0, some_work);
    desc.host_budget_bytes = 1000;
    desc.pool = pool;
    for (i = 0; i < 7; i++) {
        desc.device = &devices[i % 6];
        assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), i % 6 ? TL_ERROR_INVALID_ARG : TL_OK);
        tl_free_plan(&env, &plan);
    }
    tl_free_remat_pool(pool);
    tl_free_graph(NULL, &graph);
}

static void a_pool_of_another_graph_is_refused(void **state) {
    tl_random random = { 21 };
    tl_graph first, second;
    tl_remat_desc desc;
    tl_remat_pool *pool;
    tl_env env = silent_env();
    tl_plan plan;
    (void)state;
    any_graph(&random, 1, 20, &first);
    any_graph(&random, 1, 20, &second);
    assert_int_equal(tl_init_remat_pool(NULL, &pool), TL_OK);
    desc = desc_of(&first, keep_all_peak(&first, 0), 0, 0);
    desc.pool = pool;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_OK);
    tl_free_plan(&env, &plan);
    desc.inference = 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "tl_plan_remat: pool: it holds plans of another graph"));
    desc.inference = 0;
    ((tl_node *)(uintptr_t)first.nodes)[2].dynamic = 1;     // what copies may compress depends on it
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    ((tl_node *)(uintptr_t)first.nodes)[2].dynamic = 0;
    desc.graph = &second;
    desc.live = 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    desc.graph = &first;
    desc.live = 1;
    desc.host_budget_bytes = 1000;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    desc.host_budget_bytes = 0;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_OK);
    tl_free_plan(&env, &plan);
    tl_free_remat_pool(pool);
    tl_free_remat_pool(NULL);
    tl_free_graph(NULL, &first);
    tl_free_graph(NULL, &second);
}

// The lowest arena is searched once by the calls that share a pool: they name what a call alone names, with less work, for
// each alignment, block and number of steps in flight, and plan there.
static void a_pool_keeps_the_lowest_arena(void **state) {
    static const struct { uint64_t alignment, block; int32_t in_flight; } forms[] = {
        { 64, 0, 0 }, { 64, 1 << 23, 0 }, { 64, 0, 3 }, { 4, 0, 0 } };
    tl_random random = { 23 };
    uint64_t works[2] = { 0, 0 };
    int i, k, turn;
    (void)state;
    for (i = 0; i < scaled(2); i++) {
        tl_graph graph;
        tl_remat_pool *pool;
        any_graph(&random, i % 3, 24, &graph);
        for (k = 0; k < graph.tensor_count; k++) ((tl_node_output *)graph.outputs)[k].bytes *= 64;
        assert_int_equal(tl_init_remat_pool(NULL, &pool), TL_OK);
        for (turn = 0; turn < (is_thinned() ? 1 : 3); turn++)
            for (k = 0; k < (is_slow() ? 1 : 4); k++) {
                tl_remat_desc desc = desc_of(&graph, 1, 0, 300000);
                tl_remat_report alone, shared;
                tl_env env = silent_env();
                tl_plan plan;
                tl_result result;
                desc.alignment_bytes = forms[k].alignment;
                desc.block_bytes = forms[k].block;
                desc.in_flight = forms[k].in_flight;
                desc.live = 0;
                result = tl_plan_remat(&env, &desc, &plan, &alone);
                desc.pool = pool;
                assert_int_equal(tl_plan_remat(&env, &desc, &plan, &shared), result);
                assert_int_equal(result, TL_ERROR_INFEASIBLE);
                assert_true(shared.least_budget_bytes == alone.least_budget_bytes);
                assert_true(shared.limiting_node == alone.limiting_node && shared.bound_budget_bytes == alone.bound_budget_bytes);
                desc.budget_bytes = alone.least_budget_bytes;
                if (tl_plan_remat(&env, &desc, &plan, &shared)) fail_msg("%s", env.error.text);
                assert_true(plan.arena_bytes <= desc.budget_bytes);
                tl_free_plan(&env, &plan);
                desc.pool = NULL;
                if (tl_plan_remat(&env, &desc, &plan, &alone)) fail_msg("%s", env.error.text);
                tl_free_plan(&env, &plan);
                works[0] += alone.work, works[1] += shared.work;
                desc.pool = pool;
                desc.budget_bytes--;
                assert_int_equal(tl_plan_remat(&env, &desc, &plan, &shared), TL_ERROR_INFEASIBLE);
                assert_true(shared.least_budget_bytes == desc.budget_bytes + 1);
            }
        tl_free_remat_pool(pool);
        tl_free_graph(NULL, &graph);
    }
    printf("work at the least budget: %.3f of that without a pool\n", (double)works[1] / (double)works[0]);
    assert_true(works[1] < works[0] / 2);
}

// Each allocation fails in turn, of the pool and of three calls that share it: no memory, or the undisturbed answer.
static void every_allocation_of_a_shared_pool_fails_in_turn(void **state) {
    tl_random random = { 22 };
    uint64_t peak, costs[3] = { 0, 0, 0 };
    tl_graph graph;
    long at;
    int i;
    (void)state;
    any_graph(&random, 0, 50, &graph);
    peak = keep_all_peak(&graph, 0);
    for (at = -1; ; at += at < 200 ? 1 : 13) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, at);
        tl_remat_pool *pool;
        if (tl_init_remat_pool(&env, &pool)) {
            assert_true(!pool && env.error.code == TL_ERROR_NO_MEMORY && !f.live);
            continue;
        }
        f.fails_once = at % 2 == 0;
        for (i = 0; i < 3; i++) {
            tl_remat_desc desc = desc_of(&graph, peak * (uint64_t)(2 * i + 1) / 6, 0, 300000);
            tl_plan plan;
            tl_result result;
            desc.pool = pool;
            result = tl_plan_remat(&env, &desc, &plan, NULL);
            if (at < 0) costs[i] = plan.cost;
            else if (f.count <= at && result != TL_ERROR_NO_MEMORY) assert_int_equal(plan.cost, costs[i]);
            assert_true(!result || result == TL_ERROR_NO_MEMORY || result == TL_ERROR_INFEASIBLE);
            tl_free_plan(&env, &plan);
        }
        tl_free_remat_pool(pool);
        assert_int_equal(f.live, 0);
        if (at >= 0 && f.count <= at) break;
    }
    tl_free_graph(NULL, &graph);
}

static int stop_at_once(const tl_remat_progress *progress, void *user) {
    (void)progress;
    ++*(long *)user;
    return 1;
}

// One step of work, and a caller who stops at the first question, at any budget: a plan that holds or a refusal.
static void little_work_gives_an_answer_that_holds(void **state) {
    tl_random random = { 23 };
    int i, share;
    (void)state;
    for (i = 0; i < 24; i++) {
        tl_graph graph;
        uint64_t peak;
        any_graph(&random, i, random_count(&random, 20, 300), &graph);
        peak = keep_all_peak(&graph, 0);
        for (share = 5; share <= 100; share += 19) {
            tl_remat_desc desc = desc_of(&graph, peak / 100 * (uint64_t)share, 0, 1);
            long asked = 0;
            (void)ask(&desc);
            desc.work_limit = 0;
            desc.progress = stop_at_once;
            desc.user = &asked;
            (void)ask(&desc);
            assert_true(asked <= 1);
        }
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_keeps_a_front),
        cmocka_unit_test(a_pool_thins_out_but_keeps_its_answers),
        cmocka_unit_test(a_bound_holds_for_smaller_budgets),
        cmocka_unit_test(a_pool_of_another_device_is_refused),
        cmocka_unit_test(a_pool_of_another_graph_is_refused),
        cmocka_unit_test(a_pool_keeps_the_lowest_arena),
        cmocka_unit_test(every_allocation_of_a_shared_pool_fails_in_turn),
        cmocka_unit_test(little_work_gives_an_answer_that_holds),
        cmocka_unit_test(graphs_of_any_kind_keep_the_properties),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
