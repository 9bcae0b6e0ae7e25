// [6] REMAT of graphs whose inputs die: optimal by brute force, valid by an independent replay, by every planner.
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
#include "support/check_replay.h"
#include "support/sink_support.h"

// Where a node trains or makes a result: the inputs that die. Otherwise none is freed.
static int count_dying(const tl_graph *graph) {
    int32_t id, count = 0, works = 0;
    for (id = 0; id < graph->node_count; id++) {
        count += graph->nodes[id].is_input == 2;
        works |= graph->nodes[id].has_grad && !graph->nodes[id].is_input;
    }
    return works ? count : 0;
}

static void dying_graph(tl_random *random, int32_t max_nodes, int32_t states, int percent, tl_graph *graph) {
    tl_graph plain;
    for (;;) {
        if (random_effect_graph(NULL, random, max_nodes, percent, &plain)) fail_msg("%s", "no graph");
        if (!states) *graph = plain;
        else if (random_add_states(NULL, random, &plain, states, graph)) fail_msg("%s", "no graph");
        else tl_free_graph(NULL, &plain);
        if (tl_next_random_below(random, 2)) (void)random_let_inputs_die(random, graph);
        else tl_let_inputs_die(graph);      // also those that nothing reads
        if (count_dying(graph)) break;
        tl_free_graph(NULL, graph);
    }
    if (tl_check_graph(NULL, graph)) fail_msg("not a valid graph:\n%s", text_of(graph));
}

static void tiny_graphs_reach_the_optimum_of_brute_force(void **state) {
    tl_random random = { 4301 };
    brute b;
    brute_state *states = (brute_state *)calloc(1 << 17, sizeof *states);
    brute_entry *heap = (brute_entry *)calloc(1 << 20, sizeof *heap);
    int tried = 0, freed = 0;
    (void)state;
    while (tried < scaled(600)) {
        int inference = tried % 3 == 2, k;
        uint64_t cost, peak;
        tl_graph graph;
        tl_plan all;
        dying_graph(&random, 6, tried % 4 == 3 ? 2 : 0, tried % 2 * 30, &graph);
        for (k = 0; k < graph.node_count && inference; k++) ((tl_node *)graph.nodes + k)->keep = 0;     // all have to run
        if (brute_init(&b, &graph, inference) > 15) { tl_free_graph(NULL, &graph); continue; }
        b.states = states; b.capacity = 1 << 17;
        b.heap = heap; b.heap_capacity = 1 << 20;
        if (tl_plan_keep_all(NULL, &graph, inference, &all)) fail_msg("%s", "no plan");
        check_replay(&graph, &all, "keep all");
        for (k = 0; k < all.step_count; k++)
            freed += all.steps[k].kind == TL_STEP_DROP && graph.nodes[all.steps[k].node].is_input;
        for (k = 0; k < 3; k++) {
            uint64_t budget = all.peak_bytes - tl_next_random_below(&random, all.peak_bytes / 2 + 1);
            tl_remat_desc desc;
            tl_env env;
            tl_plan plan;
            tl_remat_report report;
            tl_result result;
            int fits;
            memset(&desc, 0, sizeof desc);
            memset(&env, 0, sizeof env);
            desc.graph = &graph;
            desc.inference = inference;
            desc.live = 1;
            desc.budget_bytes = budget ? budget : 1;
            fits = brute_solve(&b, desc.budget_bytes, &cost, &peak);
            result = tl_plan_remat(&env, &desc, &plan, &report);
            if (result != (fits ? TL_OK : TL_ERROR_INFEASIBLE))
                fail_msg("graph %d, budget %lu: %s\n%s", tried, (unsigned long)budget, env.error.text, text_of(&graph));
            if (!report.proven) fail_msg("graph %d: not proven\n%s", tried, text_of(&graph));
            if (fits && report.cost != cost)
                fail_msg("graph %d, budget %lu: %lu, brute force %lu\n%s", tried, (unsigned long)budget,
                         (unsigned long)report.cost, (unsigned long)cost, text_of(&graph));
            if (fits) check_replay(&graph, &plan, "remat");
            if (!fits) {
                assert_true(report.limiting_node < 0 || report.limiting_node < graph.node_count);
                if (!brute_solve(&b, report.least_budget_bytes, &cost, &peak))
                    fail_msg("graph %d: least budget %lu is too small\n%s", tried, (unsigned long)report.least_budget_bytes, text_of(&graph));
                if (brute_solve(&b, report.least_budget_bytes - 1, &cost, &peak))
                    fail_msg("graph %d: least budget %lu, but %lu do\n%s", tried, (unsigned long)report.least_budget_bytes,
                             (unsigned long)peak, text_of(&graph));
            }
            tl_free_plan(&env, &plan);
        }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
        tried++;
    }
    printf("%d graphs, %d inputs freed where everything else is kept\n", tried, freed);
    assert_true(freed > 0);
    free(states);
    free(heap);
}

static void check_policies(const tl_graph *graph, uint64_t budget) {
    tl_policy_kind kind;
    for (kind = TL_POLICY_KEEP_ALL; kind <= TL_POLICY_CHAIN; kind = (tl_policy_kind)(kind + 1)) {
        tl_policy_desc desc;
        tl_env env;
        tl_plan plan;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        memset(&env, 0, sizeof env);
        desc.graph = graph;
        desc.policy.kind = kind;
        desc.budget_bytes = budget;
        result = tl_plan_policy(&env, &desc, &plan);
        if (result && result != TL_ERROR_INFEASIBLE && result != TL_ERROR_UNSUPPORTED && result != TL_ERROR_INVALID_ARG)
            fail_msg("policy %s: %s\n%s", tl_name_policy(kind), env.error.text, text_of(graph));
        if (!result) {
            check_replay(graph, &plan, tl_name_policy(kind));
            assert_true(plan.peak_bytes <= budget);
        }
        tl_free_plan(&env, &plan);
    }
}

// How many steps compress; none what may not be.
static int count_packed(const tl_graph *graph, const tl_plan *plan, const uint8_t *lossless) {
    int i, count = 0;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        if (step->kind != TL_STEP_COMPRESS) continue;
        count++;
        assert_false(graph->nodes[step->node].is_input);
        assert_false(lossless && lossless[graph->nodes[step->node].first_output + step->output]);
    }
    return count;
}

// Placed, with host copies and codecs, larger: what a plan says is what a replay finds, also at its offsets.
static void plans_are_valid_and_placed(void **state) {
    static uint8_t lossless[1000];
    tl_random random = { 4302 };
    int i, k, plans = 0, packed = 0;
    tl_device device;
    (void)state;
    memset(&device, 0, sizeof device);
    device.link_bytes_per_second = UINT64_C(40000000000);
    device.link_latency_ns = 2;
    device.wait_latency_ns = 3;
    device.call_latency_ns = 5;
    device.codec_bytes_per_second = UINT64_C(80000000000);
    for (i = 0; i < 1000; i += 2) lossless[i] = 1;
    for (i = 0; i < scaled(120); i++) {
        int inference = i % 2;
        tl_graph graph;
        tl_plan all;
        dying_graph(&random, i % 4 == 3 ? 60 : 14, i % 3, i % 3 * 10, &graph);
        for (k = 0; k < graph.tensor_count; k++) ((tl_node_output *)(uintptr_t)graph.outputs + k)->bytes *= 4;   // whole elements
        if (tl_plan_keep_all(NULL, &graph, inference, &all)) fail_msg("%s", "no plan");
        for (k = 0; k < 3; k++) {
            tl_remat_desc desc;
            tl_env env;
            tl_plan plan;
            tl_simulate_desc simulate;
            tl_report report;
            tl_result result;
            memset(&desc, 0, sizeof desc);
            memset(&env, 0, sizeof env);
            memset(&simulate, 0, sizeof simulate);
            desc.graph = &graph;
            desc.inference = inference;
            desc.device = simulate.device = i / 2 % 3 ? &device : NULL;
            desc.budget_bytes = 1 + all.peak_bytes + 8 - tl_next_random_below(&random, all.peak_bytes / 2 + 1);
            desc.host_budget_bytes = k == 2 ? all.peak_bytes : 0;
            desc.alignment_bytes = k == 1 ? 4 : 0;
            desc.work_limit = 1000000;
            desc.codec = !inference && i % 5 > 2 ? TL_CODEC_F16 : TL_CODEC_NONE;
            desc.lossless = k % 2 ? lossless : NULL;
            if (!inference) check_policies(&graph, desc.budget_bytes);
            result = tl_plan_remat(&env, &desc, &plan, NULL);
            if (result == TL_ERROR_INFEASIBLE) continue;
            if (result) fail_msg("%d %s %s", result, env.error.text, text_of(&graph));
            if (!desc.codec && !desc.device) check_replay(&graph, &plan, "placed");
            simulate.graph = &graph;
            simulate.plan = &plan;
            if (tl_simulate_plan(&env, &simulate, &report)) fail_msg("graph %d: %s\n%s", i, env.error.text, text_of(&graph));
            assert_int_equal(report.cost, plan.cost);
            assert_true(report.arena_bytes == plan.arena_bytes && plan.arena_bytes <= desc.budget_bytes);
            packed += count_packed(&graph, &plan, desc.lossless);
            plans++;
            tl_free_plan(&env, &plan);
        }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    printf("%d plans, %d tensors compressed\n", plans, packed);
    assert_true(plans > scaled(120) && (is_thinned() || packed > 0));
}

// An input is not compressed: it would come back with other bits than the caller wrote.
static void an_input_is_never_compressed(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=800 needs=none in=- dies\n"
                               "node 1 a op fwd=9 bwd=1 out=400 needs=in in=0\nnode 2 b op fwd=9 bwd=1 out=800 needs=in in=1\n"
                               "node 3 c op fwd=9 bwd=1 out=8 needs=in in=2\nnode 4 d op fwd=9 bwd=1 out=8 needs=none in=3\nend 5\n";
    uint64_t bytes;
    int lossless, packed = 0, refused = 0;
    (void)state;
    for (lossless = 0; lossless < 2; lossless++)
        for (bytes = 1200; bytes < 3000; bytes += 40) {
            static const uint8_t all_but[5] = { 0, 1, 1, 1, 1 };
            tl_remat_desc desc;
            tl_graph graph;
            tl_plan plan;
            tl_env env;
            tl_result result;
            memset(&env, 0, sizeof env);
            memset(&desc, 0, sizeof desc);
            if (tl_parse_graph(&env, text, sizeof text - 1, &graph)) fail_msg("%s", env.error.text);
            desc.graph = &graph;
            desc.live = 1;
            desc.budget_bytes = bytes;
            desc.codec = TL_CODEC_F16;
            desc.lossless = lossless ? all_but : NULL;
            result = tl_plan_remat(&env, &desc, &plan, NULL);
            if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%lu bytes: %s", (unsigned long)bytes, env.error.text);
            refused += result != TL_OK;
            if (!result) packed += count_packed(&graph, &plan, desc.lossless);
            tl_free_plan(&env, &plan);
            tl_free_graph(&env, &graph);
        }
    printf("%d tensors compressed, %d budgets refused\n", packed, refused);
    assert_true(packed > 0 && refused > 0);
}

// An update that waits for no backward may come before the first forward, while all inputs are there.
static void an_update_may_wait_for_nothing(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=80 needs=none in=- dies\n"
                               "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0\n"
                               "state 2 w adamw w=40 m=40 upd=3\nnode 3 b op fwd=1 bwd=0 out=8 needs=none in=1,2 grad=no\nend 4\n";
    int i, plans = 0;
    (void)state;
    for (i = 0; i < 150; i++) {
        tl_remat_desc desc;
        tl_graph graph;
        tl_plan plan;
        tl_env env;
        tl_result result;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        if (tl_parse_graph(&env, text, sizeof text - 1, &graph)) fail_msg("%s", env.error.text);
        desc.graph = &graph;
        desc.live = 1;
        desc.budget_bytes = 120 + (uint64_t)i;
        result = tl_plan_remat(&env, &desc, &plan, NULL);
        if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s", env.error.text);
        if (!result) check_replay(&graph, &plan, "idle");
        plans += !result;
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(plans > 0 && plans < 150);
}

// An order takes the fewest bytes with which every forward can run once: brute force finds no plan of that cost below.
static void orders_of_tiny_graphs_are_the_best(void **state) {
    tl_random random = { 4303 };
    brute b;
    brute_state *states = (brute_state *)calloc(1 << 17, sizeof *states);
    brute_entry *heap = (brute_entry *)calloc(1 << 20, sizeof *heap);
    int tried = 0, proven = 0, freed = 0;
    (void)state;
    while (tried < scaled(300)) {
        int inference = tried % 2, k, fits;
        uint64_t cost, peak;
        tl_order_desc desc;
        tl_order_report report;
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        memset(&desc, 0, sizeof desc);
        memset(&env, 0, sizeof env);
        dying_graph(&random, 6, 0, 0, &graph);
        for (k = 0; k < graph.node_count; k++) {
            tl_node *node = (tl_node *)graph.nodes + k;
            node->keep = 0;
            node->fwd_cost += !node->is_input;      // what runs again costs more
        }
        if (brute_init(&b, &graph, inference) > 15) { tl_free_graph(NULL, &graph); continue; }
        b.states = states; b.capacity = 1 << 17;
        b.heap = heap; b.heap_capacity = 1 << 20;
        desc.graph = &graph;
        desc.inference = inference;
        desc.live = 1;
        if (tl_plan_order(&env, &desc, &plan, &report)) fail_msg("%s", env.error.text);
        check_replay(&graph, &plan, "order");
        assert_int_equal(plan.peak_bytes, report.peak_bytes);
        for (k = 0; k < plan.step_count; k++) freed += graph.nodes[plan.steps[k].node].is_input > 0;
        assert_true(brute_solve(&b, plan.peak_bytes, &cost, &peak) && cost <= plan.cost);
        fits = plan.peak_bytes > 0 && brute_solve(&b, plan.peak_bytes - 1, &cost, &peak);
        if (report.proven && fits && cost <= plan.cost)
            fail_msg("graph %d: %lu bytes, but %lu do\n%s", tried, (unsigned long)plan.peak_bytes, (unsigned long)peak, text_of(&graph));
        proven += report.proven;
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
        tried++;
    }
    printf("%d orders, %d proven; %d inputs freed\n", tried, proven, freed);
    assert_true(proven * 10 > tried * 9 && freed > 0);
    free(states);
    free(heap);
}

static void the_rules_of_inputs_that_die(void **state) {
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_simulate_desc desc;
    tl_report report;
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- dies\n"
                               "node 1 a op fwd=1 bwd=1 out=8 needs=in in=0\nnode 2 b op fwd=1 bwd=1 out=4 needs=none in=1\nend 3\n";
    static const char good[] = "F 1\nF 2\nD 1\nB 2\nB 1\nD 0\n";
    static const char wrong[] = "tlg 2\nnode 0 x op fwd=0 bwd=0 out=8 needs=none in=- dies\nend 1\n";
    static const char *const bad[][2] = { { "F 1\nD 0\nF 2\nB 2\nB 1\n", "not resident" },
                                          { "F 0\nF 1\nF 2\nB 2\nB 1\n", "input nodes" },
                                          { "D 0\nF 1\nF 2\nB 2\nB 1\n", "not resident" },
                                          { "C 0 f16\nF 1\nF 2\nB 2\nB 1\n", "input nodes" } };
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    assert_int_equal(tl_parse_graph(&env, text, sizeof text - 1, &graph), TL_OK);
    assert_int_equal(graph.nodes[0].is_input, 2);
    assert_string_equal(text_of(&graph), text);
    desc.graph = &graph;
    desc.plan = &plan;
    assert_int_equal(tl_parse_schedule(&env, good, sizeof good - 1, &plan), TL_OK);
    assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_OK);
    tl_free_plan(&env, &plan);
    for (i = 0; i < 4; i++) {
        assert_int_equal(tl_parse_schedule(&env, bad[i][0], strlen(bad[i][0]), &plan), TL_OK);
        assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_ERROR_INVALID_PLAN);
        if (!strstr(env.error.text, bad[i][1])) fail_msg("%s", env.error.text);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(&env, &graph);
    assert_int_equal(tl_parse_graph(&env, wrong, sizeof wrong - 1, &graph), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "dies: is of an input"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_graphs_reach_the_optimum_of_brute_force),
        cmocka_unit_test(plans_are_valid_and_placed),
        cmocka_unit_test(an_input_is_never_compressed),
        cmocka_unit_test(an_update_may_wait_for_nothing),
        cmocka_unit_test(orders_of_tiny_graphs_are_the_best),
        cmocka_unit_test(the_rules_of_inputs_that_die),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
