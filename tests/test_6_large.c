// [6] REMAT: graphs of thousands of nodes and of every shape: plans that hold, refusals that name what they know, work and
// memory that grow with the graph, and a caller who stops is heard.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/shape_graph.h"
#include "support/counting_alloc.h"
#include "support/keep_all.h"

static tl_report replay(const tl_graph *graph, const tl_plan *plan) {
    tl_simulate_desc desc;
    tl_report report;
    tl_env env;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    if (tl_simulate_plan(&env, &desc, &report)) fail_msg("%s", env.error.text);
    return report;
}

// Every shape, four budgets and little work: a plan that holds, or a refusal with a least budget that was met.
static void every_shape_is_planned_or_refused(void **state) {
    static const int percents[] = { 90, 40, 10, 1 };
    int kind, k, found = 0, refused = 0;
    (void)state;
    for (kind = 0; kind < SHAPE_COUNT; kind++) {
        tl_random random = { 60 };
        tl_graph graph;
        uint64_t all;
        assert_int_equal(shape_graph(NULL, &random, (shape)kind, 700, &graph), TL_OK);
        all = keep_all_peak(&graph, 0);
        for (k = 0; k < 4; k++) {
            tl_remat_report report;
            tl_remat_desc desc;
            tl_plan plan;
            tl_result result;
            memset(&desc, 0, sizeof desc);
            desc.graph = &graph;
            desc.live = 1;
            desc.budget_bytes = all * (uint64_t)percents[k] / 100;
            desc.work_limit = 2000000;
            result = tl_plan_remat(NULL, &desc, &plan, &report);
            if (result) {
                assert_int_equal(result, TL_ERROR_INFEASIBLE);
                assert_true(report.least_budget_bytes > desc.budget_bytes && report.least_budget_bytes <= all);
                assert_true(report.bound_budget_bytes <= report.least_budget_bytes);
                refused++;
            } else {
                tl_report played = replay(&graph, &plan);
                assert_true(played.peak_bytes <= desc.budget_bytes && played.cost == plan.cost);
                assert_true(report.bound_cost <= plan.cost);
                found++;
            }
            tl_free_plan(NULL, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
    assert_true(found >= 15 && refused >= 10);
}

// A wide graph needs the bytes of a few layers, not most of what keeping everything takes.
static void a_wide_graph_fits_a_tenth(void **state) {
    tl_random random = { 61 };
    tl_graph graph;
    tl_remat_report report;
    tl_remat_desc desc;
    tl_plan plan;
    (void)state;
    assert_int_equal(shape_graph(NULL, &random, SHAPE_WIDE, 3000, &graph), TL_OK);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.live = 1;
    desc.budget_bytes = keep_all_peak(&graph, 0) / 8;
    desc.work_limit = 20000000;
    assert_int_equal(tl_plan_remat(NULL, &desc, &plan, &report), TL_OK);
    assert_true(replay(&graph, &plan).peak_bytes <= desc.budget_bytes);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- what outsiders found --

// Layers of two nodes, the second of them with saved bytes; behind the middle every second layer reads the middle, too.
static tl_graph two_stacks(int32_t layers, uint64_t bytes) {
    tl_graph graph;
    int32_t i;
    tl_init_graph(&graph);
    for (i = 0; i <= 2 * layers; i++) {
        int has_side = i > layers && i % 2 == 0;
        tl_tensor reads[2] = { { 0, 0 }, { 0, 0 } };
        tl_node_desc node;
        memset(&node, 0, sizeof node);
        reads[0].node = i - 1;
        reads[1].node = layers;
        node.op = i ? "op" : "input";
        node.inputs = reads;
        node.input_count = !i ? 0 : has_side ? 2 : 1;
        node.output_bytes = &bytes;
        node.output_count = 1;
        node.needs = i ? "in" : NULL;
        node.saved_bytes = i % 2 ? bytes / 2 : 0;
        node.fwd_cost = !i ? 0 : i % 2 ? 30 : 50;
        node.bwd_cost = 2 * node.fwd_cost;
        if (tl_add_node(NULL, &graph, &node, NULL)) fail_msg("%s", "no graph");
    }
    return graph;
}

static tl_result plan_live(const tl_graph *graph, uint64_t budget, uint64_t work_limit, tl_plan *plan) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.work_limit = work_limit;
    return tl_plan_remat(NULL, &desc, plan, NULL);
}

// Policies that try much leave work to those that try little.
static void no_policy_is_cheaper_than_a_large_plan(void **state) {
    tl_graph graph = two_stacks(is_thinned() ? 500 : 1000, 4096);
    uint64_t all = keep_all_peak(&graph, 0);
    int k;
    (void)state;
    for (k = 35; k <= 85; k += is_slow() ? 60 : 25) {
        tl_policy_desc policy;
        tl_plan plan, other;
        int i;
        assert_int_equal(plan_live(&graph, all * (uint64_t)k / 100, 100000000, &plan), TL_OK);
        memset(&policy, 0, sizeof policy);
        policy.graph = &graph;
        policy.live = 1;
        policy.budget_bytes = all * (uint64_t)k / 100;
        for (i = TL_POLICY_EVERY_N; i <= TL_POLICY_REVOLVE; i++) {
            policy.policy.kind = (tl_policy_kind)i;
            if (tl_plan_policy(NULL, &policy, &other)) continue;
            if (other.cost < plan.cost)
                fail_msg("%d %%: %s %llu, planned %llu", k, tl_name_policy(policy.policy.kind), (unsigned long long)other.cost,
                         (unsigned long long)plan.cost);
            tl_free_plan(NULL, &other);
        }
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

// Bytes times a power of two, up to the largest that are planned, are the same plan.
static void large_bytes_are_planned_as_small_ones(void **state) {
    static const int percents[] = { 18, 20, 25, 40 };
    tl_graph small = two_stacks(30, 1 << 8), large = two_stacks(30, (uint64_t)1 << 52);
    const uint64_t work = is_thinned() ? 20000000 : 50000000;
    size_t k;
    (void)state;
    for (k = 0; k < sizeof percents / sizeof *percents; k++) {
        tl_plan a, b;
        uint64_t budget = keep_all_peak(&small, 0) * (uint64_t)percents[k] / 100;
        assert_int_equal(plan_live(&small, budget, work, &a), TL_OK);
        assert_int_equal(plan_live(&large, budget << 44, work, &b), TL_OK);
        assert_int_equal(a.step_count, b.step_count);
        assert_memory_equal(a.steps, b.steps, (size_t)a.step_count * sizeof *a.steps);
        assert_true(replay(&large, &b).peak_bytes <= budget << 44);
        tl_free_plan(NULL, &a);
        tl_free_plan(NULL, &b);
    }
    tl_free_graph(NULL, &small);
    tl_free_graph(NULL, &large);
}

// Bytes that come to all calls at once and go one by one leave nothing behind, however often.
static void shifted_bytes_do_not_pile_up(void **state) {
    const int64_t bytes = (int64_t)1 << 58, most = (int64_t)1 << 61;
    tl_graph graph = two_stacks(100, 64);
    tli_remat_input in;
    tli_search_problem p;
    tli_search_seq s;
    tl_env env;
    int64_t peak;
    int32_t at, last = 0, turn;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&in, 0, sizeof in);
    in.env = &env;
    in.graph = &graph;
    in.budget = TLI_SEARCH_MOST_BYTES;
    assert_int_equal(tli_search_init_problem(&in, &p), TL_OK);
    assert_int_equal(tli_search_init_seq(&p, &s), TL_OK);
    assert_true(tli_search_load_program(&s) && s.block_count > 3);
    peak = tli_search_held(&s, tli_search_find_full(&s));
    for (at = s.places[0].behind; at >= 0; at = s.places[at].behind) last = at;
    for (turn = 0; turn < 16; turn++) {
        tli_search_shift(&s, 0, last, bytes);
        for (at = s.places[0].behind; at >= 0; at = s.places[at].behind) tli_search_shift(&s, s.places[at].before, at, -bytes);
        for (at = s.places[0].behind; at >= 0; at = s.places[at].behind)
            assert_true(s.places[at].held > -most && s.places[at].held < most);
    }
    assert_int_equal(tli_search_held(&s, tli_search_find_full(&s)), peak);
    tli_search_free_seq(&s);
    tli_search_free_problem(&p);
    tl_free_graph(NULL, &graph);
}

// -- growth: counted work of a first plan, at four times the nodes --

static uint64_t work_of(shape kind, int32_t nodes) {
    tl_random random = { 62 };
    tl_graph graph;
    tl_remat_report report;
    tl_remat_desc desc;
    tl_plan plan;
    assert_int_equal(shape_graph(NULL, &random, kind, nodes, &graph), TL_OK);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.live = 1;
    desc.budget_bytes = keep_all_peak(&graph, 0) * 7 / 10;
    desc.work_limit = 1;
    (void)tl_plan_remat(NULL, &desc, &plan, &report);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
    return report.work;
}

static void first_plans_take_work_in_proportion(void **state) {
    static const shape kinds[] = { SHAPE_CHAIN, SHAPE_STAR, SHAPE_LAYERED, SHAPE_RESIDUAL, SHAPE_OUTPUTS };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint64_t less = work_of(kinds[k], 2000), more = work_of(kinds[k], 8000);
        if (more > 8 * less) fail_msg("%s: %llu steps for 2000, %llu for 8000", name_shape(kinds[k]),
                                      (unsigned long long)less, (unsigned long long)more);
    }
}

// -- a caller who stops --

typedef struct listener { uint64_t last, most; int calls; } listener;

static int stop_at_once(const tl_remat_progress *now, void *user) {
    listener *l = (listener *)user;
    l->calls++;
    l->last = now->work;
    return 1;
}

static void a_caller_who_stops_is_heard(void **state) {
    static const shape kinds[] = { SHAPE_CHAIN, SHAPE_LAYERED, SHAPE_WIDE, SHAPE_RANDOM };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        tl_random random = { 63 };
        tl_graph graph;
        tl_remat_report report;
        tl_remat_desc desc;
        tl_plan plan;
        listener l = { 0, 0, 0 };
        assert_int_equal(shape_graph(NULL, &random, kinds[k], 3000, &graph), TL_OK);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.live = 1;
        desc.budget_bytes = keep_all_peak(&graph, 0) / 50;
        desc.progress = stop_at_once;
        desc.user = &l;
        (void)tl_plan_remat(NULL, &desc, &plan, &report);
        assert_true(l.calls == 1 && report.work < l.last + 100000000);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
}

// -- dividing: valid sequences of any random graph, whose peak falls with the budget --

static void a_divided_graph_is_valid(void **state) {
    tl_random random = { 64 };
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < 300; i++) {
        tl_graph graph;
        tli_remat_input in;
        tli_search_problem p;
        tli_search_seq s;
        tli_search_calls calls;
        tli_replay_peak peak;
        tli_steps steps = tli_steps_of(&env);
        tl_plan plan;
        uint64_t work = 0, all;
        assert_int_equal(random_graph(&env, &random, 3 + i % 40, &graph), TL_OK);
        all = keep_all_peak(&graph, 0);
        memset(&in, 0, sizeof in);
        memset(&plan, 0, sizeof plan);
        memset(&calls, 0, sizeof calls);
        in.env = &env;
        in.graph = &graph;
        in.budget = all * (uint64_t)random_count(&random, 0, 100) / 100;
        assert_int_equal(tli_search_init_problem(&in, &p), TL_OK);
        assert_int_equal(tli_search_init_seq(&p, &s), TL_OK);
        assert_true(tli_search_divide(&p, (int64_t)in.budget, &calls, &work));
        assert_true(tli_search_load(&s, &calls));
        assert_true(tli_replay_find_peak(&p, &calls, &peak, &work));
        assert_int_equal(peak.bytes, tli_search_held(&s, tli_search_find_full(&s)));
        assert_int_equal(peak.cost, s.cost);
        assert_true(tli_replay_steps(&p, &calls, &steps));
        if (tli_finish_plan(&steps, TLI_IN(PLAN_REMAT), &graph, 0, &plan)) fail_msg("%s", env.error.text);
        assert_int_equal(plan.peak_bytes, peak.bytes);
        tl_free_plan(&env, &plan);
        tli_release(&env, calls.calls);
        tli_search_free_seq(&s);
        tli_search_free_problem(&p);
        tl_free_graph(&env, &graph);
    }
}

// A sequence made at once equals the one that its calls, put one after the other, make.
static void a_loaded_sequence_equals_one_put_together(void **state) {
    tl_random random = { 65 };
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < 200; i++) {
        tl_graph graph;
        tli_remat_input in;
        tli_search_problem p;
        tli_search_seq a, b;
        tli_search_calls calls;
        uint64_t work = 0;
        int32_t k, x, y;
        assert_int_equal(random_graph(&env, &random, 3 + i % 40, &graph), TL_OK);
        memset(&in, 0, sizeof in);
        memset(&calls, 0, sizeof calls);
        in.env = &env;
        in.graph = &graph;
        in.budget = keep_all_peak(&graph, 0) / 2;
        assert_int_equal(tli_search_init_problem(&in, &p), TL_OK);
        assert_int_equal(tli_search_init_seq(&p, &a), TL_OK);
        assert_int_equal(tli_search_init_seq(&p, &b), TL_OK);
        assert_true(tli_search_divide(&p, (int64_t)in.budget, &calls, &work));
        assert_true(tli_search_load(&a, &calls));
        for (k = 0; k < calls.count; k++) assert_true(tli_search_put(&b, calls.calls[k], b.last_place) >= 0);
        for (x = a.places[0].behind, y = b.places[0].behind; x >= 0; x = a.places[x].behind, y = b.places[y].behind) {
            assert_int_equal(a.places[x].call, b.places[y].call);
            assert_int_equal(tli_search_held(&a, x), tli_search_held(&b, y));
            assert_int_equal(a.places[x].saves, b.places[y].saves);
            assert_int_equal(a.places[x].overwrites, b.places[y].overwrites);
        }
        assert_true(y < 0 && a.cost == b.cost && !a.over_count == !b.over_count);
        tli_release(&env, calls.calls);
        tli_search_free_seq(&a);
        tli_search_free_seq(&b);
        tli_search_free_problem(&p);
        tl_free_graph(&env, &graph);
    }
}

// Little work on graphs that the chain planner would take a hundred times as much for.
static void a_work_limit_is_kept(void **state) {
    static const shape kinds[] = { SHAPE_CHAIN, SHAPE_RESIDUAL, SHAPE_LAYERED };
    static const int percents[] = { 60, 20, 5 };
    size_t kind, k;
    (void)state;
    for (kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        tl_random random = { 3 };
        tl_graph graph;
        assert_int_equal(shape_graph(NULL, &random, kinds[kind], 2000, &graph), TL_OK);
        for (k = 0; k < sizeof percents / sizeof percents[0]; k++) {
            tl_remat_desc desc;
            tl_remat_report report;
            tl_plan plan;
            memset(&desc, 0, sizeof desc);
            desc.graph = &graph;
            desc.live = 1;
            desc.budget_bytes = keep_all_peak(&graph, 0) / 100 * (uint64_t)percents[k];
            desc.work_limit = 8000000;
            assert_int_equal(tl_plan_remat(NULL, &desc, &plan, &report), TL_OK);
            // near the least budget the search for that has work of its own
            if (report.work > (percents[k] > 5 ? 11000000 : 8000000 + 60000000)) fail_msg("%s, %d %%: %llu steps", name_shape(kinds[kind]), percents[k],
                                                 (unsigned long long)report.work);
            tl_free_plan(NULL, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

// Between calls a large sequence has no memory: each call begins anew from the best calls, and cost never rises.
static void a_large_search_goes_on(void **state) {
    tl_random random = { 1 };
    tl_graph graph;
    tli_remat_input in;
    tli_sequence_search search;
    tli_remat_watch watch;
    tl_remat_desc desc;
    tli_steps steps;
    tl_plan plan;
    tl_env env;
    uint64_t cost;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&in, 0, sizeof in);
    memset(&plan, 0, sizeof plan);
    memset(&watch, 0, sizeof watch);
    memset(&desc, 0, sizeof desc);
    watch.desc = &desc;
    in.watch = &watch;
    assert_int_equal(shape_graph(NULL, &random, SHAPE_LAYERED, 90000, &graph), TL_OK);
    in.env = &env;
    in.graph = &graph;
    in.budget = keep_all_peak(&graph, 0) / 100 * 70;
    assert_int_equal(tli_search_open(&in, &search), TL_OK);
    assert_int_equal(tli_search_find_first(&search, 1000000), TL_OK);
    cost = tli_search_cost(&search);
    for (i = 0; i < 3; i++) {
        assert_null(search.r.seq.places);
        assert_int_equal(tli_search_go_on(&search, 3000000, 0), TL_OK);
        assert_true(tli_search_cost(&search) <= cost);
        cost = tli_search_cost(&search);
    }
    steps = tli_steps_of(&env);
    assert_int_equal(tli_search_take_best(&search, &steps), TL_OK);
    tli_search_close(&search);
    assert_int_equal(tli_finish_plan(&steps, TLI_IN(PLAN_REMAT), &graph, 0, &plan), TL_OK);
    assert_true(plan.peak_bytes <= in.budget && plan.cost == cost);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

// Graphs of 100 000 nodes take 1 KiB and 8 bytes, of the rows of states, for each node: plans, lists of calls that are too long to become sequences, refusals.
static void a_large_graph_takes_about_a_kibibyte_a_node(void **state) {
    static const struct { shape kind; int permille, fits; uint64_t work_limit; } rows[] = {
        { SHAPE_LAYERED, 20, 1, 200000000 }, { SHAPE_LAYERED, 0, 0, 200000000 }, { SHAPE_WIDE, 30, 1, 0 },
        { SHAPE_RANDOM, 600, 1, 200000000 }, { SHAPE_CHAIN, 1, 0, 200000000 }
    };
    enum { NODES = 100000 };
    size_t k, count = is_thinned() ? 1 : sizeof rows / sizeof rows[0];
    (void)state;
    for (k = 0; k < count; k++) {
        tl_random random = { 1 };
        counting_alloc counter = { 0, 0 };
        tl_env env = counting_env(&counter);
        tl_graph graph;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_plan plan;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        assert_int_equal(shape_graph(NULL, &random, rows[k].kind, NODES, &graph), TL_OK);
        desc.graph = &graph;
        desc.live = 1;
        desc.budget_bytes = keep_all_peak(&graph, 0) / 1000 * (uint64_t)rows[k].permille + 1;
        desc.work_limit = is_thinned() ? 20000000 : rows[k].work_limit;
        result = tl_plan_remat(&env, &desc, &plan, &report);
        assert_int_equal(result, rows[k].fits ? TL_OK : TL_ERROR_INFEASIBLE);
        if (result) assert_true(report.least_budget_bytes < keep_all_peak(&graph, 0) / 50);
        else assert_true(replay(&graph, &plan).peak_bytes <= desc.budget_bytes);
        if (counter.peak > 1032 * (uint64_t)NODES) fail_msg("%s, %d permille: %.0f bytes a node", name_shape(rows[k].kind),
                                                            rows[k].permille, (double)counter.peak / NODES);
        tl_free_plan(&env, &plan);
        assert_true(counter.live == 0);
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_is_planned_or_refused),
        cmocka_unit_test(a_wide_graph_fits_a_tenth),
        cmocka_unit_test(no_policy_is_cheaper_than_a_large_plan),
        cmocka_unit_test(large_bytes_are_planned_as_small_ones),
        cmocka_unit_test(shifted_bytes_do_not_pile_up),
        cmocka_unit_test(first_plans_take_work_in_proportion),
        cmocka_unit_test(a_caller_who_stops_is_heard),
        cmocka_unit_test(a_divided_graph_is_valid),
        cmocka_unit_test(a_loaded_sequence_equals_one_put_together),
        cmocka_unit_test(a_work_limit_is_kept),
        cmocka_unit_test(a_large_search_goes_on),
        cmocka_unit_test(a_large_graph_takes_about_a_kibibyte_a_node),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
