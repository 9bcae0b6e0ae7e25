// [6] REMAT: an allocation that fails is an error: it never makes another plan, or a looser bound.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/keep_all.h"

// One call of one entry point, and all that it answers.
typedef enum entry { REMAT, OFFLOAD, CHAIN, DYNAMIC, POLICY } entry;  // POLICY + k = policy k

typedef struct question {
    const tl_graph *graph;
    int             entry, inference;
    uint64_t        budget, work_limit;
} question;

typedef struct answer { tl_result result; tl_plan plan; tl_remat_report report; } answer;

static answer ask(tl_env *env, const question *q) {
    static tl_device device;
    answer a;
    memset(&a, 0, sizeof a);
    device.link_bytes_per_second = 1000000000;
    if (q->entry == REMAT || q->entry == OFFLOAD) {
        tl_remat_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.graph = q->graph;
        desc.live = 1;
        desc.budget_bytes = q->budget;
        desc.work_limit = q->work_limit;
        desc.inference = q->inference;
        if (q->entry == OFFLOAD) { desc.device = &device; desc.host_budget_bytes = q->budget / 2 + 1; }
        a.result = tl_plan_remat(env, &desc, &a.plan, &a.report);
    } else if (q->entry == CHAIN) {
        tl_chain_plan_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.graph = q->graph;
        desc.live = 1;
        desc.budget_bytes = q->budget;
        desc.work_limit = q->work_limit;
        a.result = tl_plan_chain(env, &desc, &a.plan, &a.report);
    } else if (q->entry == DYNAMIC) {
        tl_checkpoint_config config;
        memset(&config, 0, sizeof config);
        config.policy.kind = TL_POLICY_FRACTION;
        config.policy.as.fraction.layer_count = (uint64_t)q->graph->node_count - 1;
        config.policy.as.fraction.memory_fraction = 0.7;
        a.result = tl_plan_checkpoints(env, q->graph, &config, &a.plan);
    } else {
        tl_policy_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.graph = q->graph;
        desc.live = 1;
        desc.policy.kind = (tl_policy_kind)(q->entry - POLICY);
        desc.budget_bytes = q->budget;
        a.result = tl_plan_policy(env, &desc, &a.plan);
    }
    return a;
}

static void assert_same_plan(const answer *a, const answer *b) {
    assert_int_equal(a->result, b->result);
    assert_memory_equal(&a->report, &b->report, sizeof a->report);
    assert_int_equal(a->plan.step_count, b->plan.step_count);
    if (a->plan.step_count)
        assert_memory_equal(a->plan.steps, b->plan.steps, (size_t)a->plan.step_count * sizeof *a->plan.steps);
    assert_int_equal(a->plan.cost, b->plan.cost);
    assert_int_equal(a->plan.bound_cost, b->plan.bound_cost);
    assert_int_equal(a->plan.peak_bytes, b->plan.peak_bytes);
    assert_int_equal(a->plan.host_peak_bytes, b->plan.host_peak_bytes);
}

// Fail allocations of a call in turn, each alone and with all that follow: every one where there are few, or
// about `most` of them, evenly spaced. Each time the answer is the undisturbed one, or TL_ERROR_NO_MEMORY.
static void fail_in_turn(const question *q, long most) {
    failing_alloc all = { 0, 0, 0, 0 };
    tl_env counting = failing_env(&all, -1);
    answer whole = ask(&counting, q);
    long step = all.count / (is_thinned() ? most / 7 + 1 : most) + 1, at;
    int once;
    assert_true(all.count > 2);
    for (once = 0; once < 2; once++)
        for (at = 0; at < all.count; at += step) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at);
            answer broken;
            f.fails_once = once;
            broken = ask(&env, q);
            if (broken.result != TL_ERROR_NO_MEMORY) assert_same_plan(&broken, &whole);
            else assert_int_equal(broken.plan.step_count, 0);
            tl_free_plan(&env, &broken.plan);
            assert_int_equal(f.live, 0);
        }
    tl_free_plan(&counting, &whole.plan);
    assert_int_equal(all.live, 0);
}

static void a_residual_block_has_one_plan_or_none(void **state) {
    question q;
    tl_graph graph;
    (void)state;
    if (tl_read_graph(NULL, "examples/residual.tlg", &graph)) fail_msg("%s", "no graph");
    memset(&q, 0, sizeof q);
    q.graph = &graph;
    q.budget = 12000000;
    q.work_limit = 2000000;
    fail_in_turn(&q, 600);
    q.entry = OFFLOAD;
    fail_in_turn(&q, 600);
    tl_free_graph(NULL, &graph);
}

static void random_graphs_have_one_plan_or_none_from_every_entry(void **state) {
    tl_random random = { 62 };
    int i, share, kind;
    (void)state;
    for (i = 0; i < scaled(6); i++) {
        tl_graph graph;
        uint64_t peak;
        if (random_graph(NULL, &random, i < 5 ? 14 : 60, &graph)) fail_msg("%s", "no graph");
        peak = keep_all_peak(&graph, 0);
        for (share = 1; share < 4; share++)
            for (kind = 0; kind < POLICY + TL_POLICY_CHAIN + 1; kind++) {
                question q;
                memset(&q, 0, sizeof q);
                q.graph = &graph;
                q.entry = kind;
                q.budget = peak * (uint64_t)share / 4 + 1;
                q.work_limit = 200000;
                if (kind != DYNAMIC) fail_in_turn(&q, i < 5 ? 300 : 40);
                q.inference = 1;
                if (kind == REMAT) fail_in_turn(&q, i < 5 ? 300 : 40);
            }
        tl_free_graph(NULL, &graph);
    }
}

static void chains_have_one_plan_or_none_from_every_entry(void **state) {
    tl_random random = { 63 };
    int length, kind, share;
    (void)state;
    for (length = 6; length <= 24; length += 18) {
        uint64_t bytes[24], costs[24], peak;
        tl_chain_desc chain;
        tl_graph graph;
        int i;
        for (i = 0; i < length; i++) {
            bytes[i] = 1 + tl_next_random_below(&random, 9);
            costs[i] = 1 + tl_next_random_below(&random, 9);
        }
        memset(&chain, 0, sizeof chain);
        chain.layer_count = length;
        chain.input_bytes = 1;
        chain.output_bytes = bytes;
        chain.fwd_costs = costs;
        tl_init_graph(&graph);
        if (tl_add_chain(NULL, &graph, &chain)) fail_msg("%s", "no chain");
        peak = keep_all_peak(&graph, 0);
        for (share = 1; share < 4; share++)
            for (kind = 0; kind < POLICY + TL_POLICY_CHAIN + 1; kind++) {
                question q;
                memset(&q, 0, sizeof q);
                q.graph = &graph;
                q.entry = kind;
                q.budget = peak * (uint64_t)share / 4 + 1;
                q.work_limit = 100000;
                fail_in_turn(&q, kind == DYNAMIC || length > 6 ? 20 : 300);
            }
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_residual_block_has_one_plan_or_none),
        cmocka_unit_test(random_graphs_have_one_plan_or_none_from_every_entry),
        cmocka_unit_test(chains_have_one_plan_or_none_from_every_entry),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
