// [6] REMAT: graphs that own their weights. Every planner on random graphs with states, replayed by the rules alone; tiny ones
// against brute force.
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

// A random graph with up to so many states.
static void state_graph(tl_random *random, int32_t max_nodes, int32_t max_states, int percent, tl_graph *graph) {
    tl_graph plain;
    if (random_effect_graph(NULL, random, max_nodes, percent, &plain) ||
        random_add_states(NULL, random, &plain, max_states, graph)) fail_msg("%s", "no graph");
    tl_free_graph(NULL, &plain);
    if (tl_check_graph(NULL, graph)) fail_msg("not a valid graph:\n%s", text_of(graph));
}

static void tiny_graphs_reach_the_optimum_of_brute_force(void **state) {
    tl_random random = { 4001 };
    brute b;
    brute_state *states = (brute_state *)calloc(1 << 17, sizeof *states);
    brute_entry *heap = (brute_entry *)calloc(1 << 20, sizeof *heap);
    int tried = 0, in_pieces = 0;
    (void)state;
    while (tried < scaled(5000)) {
        tl_graph graph;
        tl_plan all;
        uint64_t cost, peak;
        int k;
        state_graph(&random, 6, 2, tried % 2 * 30, &graph);
        if (tried % 3 == 2) assert_int_equal(tl_hold_gradients(NULL, &graph), TL_OK);
        if (tried % 3 == 1) in_pieces += random_train_in_pieces(NULL, &random, &graph) > 0;
        if (brute_init(&b, &graph, 0) > 15) { tl_free_graph(NULL, &graph); continue; }
        b.states = states; b.capacity = 1 << 17;
        b.heap = heap; b.heap_capacity = 1 << 20;
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        check_replay(&graph, &all, "keep all");
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
                if (report.least_budget_bytes != report.bound_budget_bytes)
                    fail_msg("graph %d, budget %lu: least %lu, bound %lu\n%s", tried, (unsigned long)budget,
                             (unsigned long)report.least_budget_bytes, (unsigned long)report.bound_budget_bytes, text_of(&graph));
                assert_true(brute_solve(&b, report.least_budget_bytes, &cost, &peak));
                assert_false(brute_solve(&b, report.least_budget_bytes - 1, &cost, &peak));
            }
            tl_free_plan(&env, &plan);
        }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
        tried++;
    }
    print_message("%d graphs train states in pieces\n", in_pieces);
    assert_true(is_thinned() || in_pieces > 20);
    free(states);
    free(heap);
}

static void check_policies(const tl_graph *graph, uint64_t budget, uint64_t remat_cost, uint64_t least) {
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
            if (remat_cost > plan.cost)
                fail_msg("policy %s costs %lu, remat %lu\n%s", tl_name_policy(kind), (unsigned long)plan.cost,
                         (unsigned long)remat_cost, text_of(graph));
            assert_true(plan.peak_bytes >= least);
        }
        tl_free_plan(&env, &plan);
    }
}

// The answer of tl_plan_remat at a budget, checked in every way; returns its cost, UINT64_MAX where nothing fits.
static uint64_t check_remat(const tl_graph *graph, uint64_t budget, int live, int host, uint64_t work, uint64_t *least) {
    tl_remat_desc desc;
    tl_device device;
    tl_env env;
    tl_plan plan;
    tl_remat_report report;
    tl_result result;
    uint64_t cost = UINT64_MAX;
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    memset(&env, 0, sizeof env);
    desc.graph = graph;
    desc.live = live;
    desc.budget_bytes = budget;
    desc.work_limit = work;
    if (host) { desc.host_budget_bytes = UINT64_MAX; desc.device = &device; device.link_bytes_per_second = 1000000000; }
    result = tl_plan_remat(&env, &desc, &plan, &report);
    if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s\n%s", env.error.text, text_of(graph));
    *least = result ? report.least_budget_bytes : plan.peak_bytes;
    if (!result) {
        replay r;
        if (!replay_plan(graph, &plan, host ? &device : NULL, &r)) fail_msg("step %d: %s\n%s", (int)r.step, r.broken, text_of(graph));
        assert_int_equal(r.peak, plan.peak_bytes);
        assert_int_equal(r.cost, plan.cost);
        assert_true(report.bound_cost <= plan.cost);
        assert_true((live ? plan.peak_bytes : plan.arena_bytes) <= budget);
        cost = plan.cost;
    }
    tl_free_plan(&env, &plan);
    return cost;
}

// What every planner says to a graph at some budgets.
static void check_planners(tl_random *random, const tl_graph *graph, int is_large) {
    uint64_t least, work = is_large ? 1000000 : 20000000;
    tl_plan all;
    int k;
    if (tl_plan_keep_all(NULL, graph, 0, &all)) fail_msg("%s", "no plan");
    check_replay(graph, &all, "keep all");
    for (k = 0; k < 3; k++) {
        uint64_t budget = 1 + all.peak_bytes - tl_next_random_below(random, all.peak_bytes / 2 + 1), cost, placed;
        cost = check_remat(graph, budget, 1, 0, work, &least);
        check_policies(graph, budget, is_large ? 0 : cost, cost == UINT64_MAX && !is_large ? least : 0);
        placed = check_remat(graph, budget, 0, 0, work, &least);
        if (placed != UINT64_MAX && !is_large) assert_true(cost != UINT64_MAX);
        (void)check_remat(graph, budget, 1, 1, work, &least);
        (void)check_remat(graph, budget, 0, 1, work, &least);
    }
    tl_free_plan(NULL, &all);
}

// Readers of statistics run in the order of the listing: each may change them.
static void check_statistics_in_order(const tl_graph *graph, const tl_plan *plan) {
    int32_t i, k;
    for (k = 0; k < graph->tensor_count; k++) {
        int32_t last = -1;
        if (graph->nodes[graph->outputs[k].node].state != TL_STATE_STATISTIC) continue;
        for (i = 0; i < plan->step_count; i++) {
            const tl_node *node = &graph->nodes[plan->steps[i].node];
            int32_t at = node->first_input;
            if (plan->steps[i].kind >= TL_STEP_BACKWARD) continue;
            while (at < node->first_input + node->input_count && graph->inputs[at].tensor != k) at++;
            if (at == node->first_input + node->input_count) continue;
            if (plan->steps[i].node < last) fail_msg("node %d runs behind %d\n%s", (int)plan->steps[i].node, (int)last, text_of(graph));
            last = plan->steps[i].node;
        }
    }
}

// Forwards in another order: what reads a weight has run before its update.
static void check_order(const tl_graph *graph) {
    tl_order_desc desc;
    tl_env env;
    tl_plan plan;
    memset(&desc, 0, sizeof desc);
    memset(&env, 0, sizeof env);
    desc.graph = graph;
    if (tl_plan_order(&env, &desc, &plan, NULL)) fail_msg("%s\n%s", env.error.text, text_of(graph));
    check_replay(graph, &plan, "order");
    check_statistics_in_order(graph, &plan);
    tl_free_plan(&env, &plan);
}

static void every_planner_obeys_the_rules(void **state) {
    tl_random random = { 4002 };
    int i;
    (void)state;
    for (i = 0; i < scaled(100); i++) {
        tl_graph graph;
        state_graph(&random, i % 4 == 3 ? 60 : 12, 1 + i % 8, i % 3 * 10, &graph);
        if (i % 5 == 4) assert_int_equal(tl_hold_gradients(NULL, &graph), TL_OK);
        if (i % 5 < 2) (void)random_train_in_pieces(NULL, &random, &graph);
        check_planners(&random, &graph, i % 4 == 3);
        check_order(&graph);
        tl_free_graph(NULL, &graph);
    }
}

// States that nobody reads, of any kind, stand behind the last node that computes: they belong to the last stage, and are
// updated first.
static void states_that_nobody_reads_are_planned(void **state) {
    tl_random random = { 4011 };
    int i;
    (void)state;
    for (i = 0; i < scaled(100); i++) {
        tl_graph graph;
        state_graph(&random, i % 4 == 3 ? 40 : 10, i % 4, i % 3 * 10, &graph);
        if (random_add_unread(NULL, &random, &graph)) fail_msg("%s", "no states");
        if (i % 5 == 4) assert_int_equal(tl_hold_gradients(NULL, &graph), TL_OK);
        if (i % 5 < 2) (void)random_train_in_pieces(NULL, &random, &graph);
        check_planners(&random, &graph, i % 4 == 3);
        check_order(&graph);
        tl_free_graph(NULL, &graph);
    }
}

// A chain of layers, each with a weight: a state in front of it, or, without states, as bytes that its backward takes beside
// its own and as costs that it has in addition. update_work is small, so that the two are the same problem.
static void weighted_chain(uint64_t seed, int with_states, int layers, int held, tl_graph *graph, uint64_t *pinned) {
    char text[8192];
    tl_random random;
    int i, at = 0, id = 0, before;
    random.state = seed;
    *pinned = 0;
    at += snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n");
    for (i = 0; i < layers; i++) {
        unsigned long out = 1 + (unsigned long)tl_next_random_below(&random, 40), weight = 1 + (unsigned long)tl_next_random_below(&random, 60);
        unsigned long cost = 1 + (unsigned long)tl_next_random_below(&random, 9), work = (unsigned long)tl_next_random_below(&random, 20);
        before = id;
        *pinned += (held ? 3 : 2) * weight;
        if (with_states) {
            at += snprintf(text + at, sizeof text - (size_t)at, "state %d w%d momentum w=%lu m=%lu upd=%d%s\n", id + 1, i, weight, weight,
                           i, held ? " hold" : "");
            at += snprintf(text + at, sizeof text - (size_t)at, "node %d n%d dense fwd=%lu bwd=%lu out=%lu needs=in in=%d,%d bwork=%lu\n",
                           id + 2, i, cost, 2 * cost, out, before, id + 1, work);
            id += 2;
        } else {
            at += snprintf(text + at, sizeof text - (size_t)at, "node %d n%d dense fwd=%lu bwd=%lu out=%lu needs=in in=%d bwork=%lu\n",
                           id + 1, i, cost, 2 * cost + (unsigned long)i, out, before, work + (held ? 0 : weight));
            id += 1;
        }
    }
    snprintf(text + at, sizeof text - (size_t)at, "end %d\n", id + 1);
    if (tl_parse_graph(NULL, text, strlen(text), graph)) fail_msg("not a graph:\n%s", text);
}

// Updates are merged into the backwards of a chain without loss: costs are those of a chain that has their bytes and costs
// in its backwards, at budgets that are lower by what is always there.
static void chains_with_states_cost_what_merged_chains_cost(void **state) {
    tl_random random = { 4005 };
    int i, k, planned = 0, again = 0;
    (void)state;
    for (i = 0; i < scaled(200); i++) {
        tl_graph with, without;
        tl_plan all;
        uint64_t pinned, seed = tl_next_random_below(&random, UINT64_C(1) << 40);
        int layers = 3 + i % 18;
        weighted_chain(seed, 1, layers, i % 2, &with, &pinned);
        weighted_chain(seed, 0, layers, i % 2, &without, &pinned);
        if (tl_plan_keep_all(NULL, &without, 0, &all)) fail_msg("%s", "no plan");
        for (k = 0; k < 4; k++) {
            tl_chain_plan_desc desc;
            tl_env env;
            tl_plan plan, merged;
            tl_remat_report report, wanted;
            tl_result result;
            memset(&desc, 0, sizeof desc);
            memset(&env, 0, sizeof env);
            desc.live = 1;
            desc.graph = &without;
            desc.budget_bytes = 1 + all.peak_bytes - tl_next_random_below(&random, all.peak_bytes / 2);
            result = tl_plan_chain(&env, &desc, &merged, &wanted);
            desc.graph = &with;
            desc.budget_bytes += pinned;
            if (tl_plan_chain(&env, &desc, &plan, &report) != result) fail_msg("%s\n%s", env.error.text, text_of(&with));
            if (!result) {
                check_replay(&with, &plan, "chain");
                assert_int_equal(plan.cost, merged.cost);
                assert_int_equal(plan.peak_bytes, merged.peak_bytes + pinned);
                planned++;
                again += plan.cost > all.cost;
            } else {
                assert_int_equal(report.least_budget_bytes, wanted.least_budget_bytes + pinned);
            }
            tl_free_plan(&env, &plan);
            tl_free_plan(&env, &merged);
        }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &with);
        tl_free_graph(NULL, &without);
    }
    assert_true(is_thinned() || (planned > 400 && again > 100));
}

// -- pieces of gradients --

// A graph with pieces of so many bytes as text; or the sentence that refuses it.
static const char *cut(const char *text, uint64_t piece_bytes, uint64_t alignment, uint64_t call_cost) {
    static char out[4096];
    tl_graph graph, made;
    tl_pieces_desc desc;
    tl_env env;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    desc.graph = &graph;
    desc.piece_bytes = piece_bytes;
    desc.alignment_bytes = alignment;
    desc.call_cost = call_cost;
    if (tl_apply_pieces(&env, &desc, &made)) {
        assert_int_equal(made.node_count, 0);
        snprintf(out, sizeof out, "%s", env.error.text);
    } else {
        tl_print_graph(&made, out, sizeof out);
        tl_free_graph(&env, &made);
    }
    tl_free_graph(&env, &graph);
    return out;
}

#define CUT_X "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"

// Costs and scratch of updates go to the reader: two calls a piece, of which one would have been a step of its own.
static void readers_take_over_what_pieces_cost(void **state) {
    static const char two[] = CUT_X "state 1 v adamw w=60 m=60,20 upd=7 uwork=18 wrows=10\nstate 2 w sgd w=24 upd=2 wrows=3\n"
        "node 3 y dense fwd=10 bwd=20 out=8 needs=in in=0,1.0,2 bwork=%s\nend 4\n";
    char whole[800];
    (void)state;
    snprintf(whole, sizeof whole, two, "20");
    assert_string_equal(cut(whole, 60, 0, 5), whole);       // no gradient is larger
    assert_string_equal(cut(whole, 24, 0, 5), CUT_X "state 1 v adamw w=60 m=60,20 wrows=10 piece=4\nstate 2 w sgd w=24 upd=2 wrows=3\n"
        "node 3 y dense fwd=10 bwd=52 out=8 needs=in in=0,1.0,2 bwork=56\nend 4\n");      // 5 calls more; 20 -> 32 and 24
    assert_string_equal(cut(whole, 9, 0, 5), CUT_X "state 1 v adamw w=60 m=60,20 wrows=10 piece=1\nstate 2 w sgd w=24 wrows=3 piece=1\n"
        "node 3 y dense fwd=10 bwd=149 out=8 needs=in in=0,1.0,2 bwork=40\nend 4\n");     // 19 + 5 calls; the larger is 32 + 8
    assert_string_equal(cut(whole, 0, 0, 0), CUT_X "state 1 v adamw w=60 m=60,20 wrows=10 piece=1\nstate 2 w sgd w=24 wrows=3 piece=1\n"
        "node 3 y dense fwd=10 bwd=29 out=8 needs=in in=0,1.0,2 bwork=40\nend 4\n");
    assert_string_equal(cut(whole, 0, 4, 0), CUT_X "state 1 v adamw w=60 m=60,20 wrows=10 piece=2\nstate 2 w sgd w=24 wrows=3 piece=1\n"
        "node 3 y dense fwd=10 bwd=29 out=8 needs=in in=0,1.0,2 bwork=44\nend 4\n");
    assert_string_equal(cut(whole, 0, 32, 0), whole);       // no piece but the whole is aligned
    snprintf(whole, sizeof whole, two, "3");
    assert_string_equal(cut(whole, 24, 0, 0), CUT_X "state 1 v adamw w=60 m=60,20 wrows=10 piece=4\nstate 2 w sgd w=24 upd=2 wrows=3\n"
        "node 3 y dense fwd=10 bwd=27 out=8 needs=in in=0,1.0,2 bwork=56\nend 4\n");      // that of the update
    assert_string_equal(cut(whole, 0, 6, 0), "tl_apply_pieces: alignment_bytes: must be 0 or a power of two");
    assert_string_equal(cut(whole, 0, 0, UINT64_MAX / 4), "tl_apply_pieces: fwd, bwd: the sum of all costs must fit 64 bits");
    assert_string_equal(cut(whole, 0, 0, UINT64_MAX / 19), "tl_apply_pieces: fwd, bwd: the sum of all costs must fit 64 bits");
}

// States that others read, too, readers that have no backward or take blocks, and weights without rows stay whole.
static void what_has_no_one_reader_stays_whole(void **state) {
    static const char *const texts[] = {
        CUT_X "state 1 w sgd w=24\nnode 2 y dense fwd=1 bwd=2 out=8 needs=in in=0,1\nend 3\n",
        CUT_X "state 1 w sgd w=24 wrows=1\nnode 2 y dense fwd=1 bwd=2 out=8 needs=in in=0,1\nend 3\n",
        CUT_X "state 1 w sgd w=24 wrows=3 hold\nnode 2 y dense fwd=1 bwd=2 out=8 needs=in in=0,1.0\nend 3\n",
        CUT_X "state 1 w sgd w=24 wrows=3\nend 2\n",
        CUT_X "state 1 w sgd w=24 wrows=3\nnode 2 y dense fwd=1 bwd=2 out=8 needs=in in=1,1\nend 3\n",
        CUT_X "state 1 w sgd w=24 wrows=3\nnode 2 y dense fwd=1 bwd=2 out=8 needs=in in=0,1\nnode 3 z dense fwd=1 bwd=2 out=8 needs=in in=2,1\nend 4\n",
        CUT_X "state 1 w sgd w=24 wrows=3\nnode 2 y dense fwd=1 bwd=0 out=8 needs=none in=0,1 grad=no\nend 3\n",
        CUT_X "state 1 w sgd w=8 wrows=2\nnode 2 y add fwd=1 bwd=2 out=8 needs=in in=0,1 takes_blocks\nend 3\n",
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) assert_string_equal(cut(texts[i], 0, 0, 0), texts[i]);
}

// Nor is one that fits cut because its rows go together by 4.
static void what_is_no_larger_than_a_piece_stays_whole(void **state) {
    static const char text[] = CUT_X "state 1 w sgd w=48 wrows=6\nnode 2 y dense fwd=1 bwd=2 out=8 needs=in in=0,1\nend 3\n";
    (void)state;
    assert_string_equal(cut(text, 48, 32, 1), text);
    assert_string_not_equal(cut(text, 47, 32, 1), text);
}

// What clips gradients wants them whole.
static void a_node_of_the_library_is_no_reader(void **state) {
    static const char text[] = CUT_X "state 1 w sgd w=24 upd=2 wrows=3\nnode 2 y dense fwd=1 bwd=2 out=8 needs=in in=0\nend 3\n";
    tl_graph graph, clipped, cut_graph;
    tl_optimizer_desc optimizer;
    tl_pieces_desc pieces;
    (void)state;
    memset(&optimizer, 0, sizeof optimizer);
    memset(&pieces, 0, sizeof pieces);
    assert_int_equal(tl_parse_graph(NULL, text, strlen(text), &graph), TL_OK);
    optimizer.graph = &graph;
    optimizer.updates = TL_UPDATES_END;
    optimizer.clips = 1;
    assert_int_equal(tl_apply_optimizer(NULL, &optimizer, &clipped), TL_OK);
    assert_int_equal(clipped.nodes[1].input_count, 1);
    pieces.graph = &clipped;
    assert_int_equal(tl_apply_pieces(NULL, &pieces, &cut_graph), TL_OK);
    assert_int_equal(cut_graph.nodes[0].state, TL_STATE_TRAINED);
    tl_free_graph(NULL, &cut_graph);
    tl_free_graph(NULL, &clipped);
    tl_free_graph(NULL, &graph);
}

static void pieces_hold_no_gradients(void **state) {
    static const char text[] = CUT_X "state 1 v sgd w=24\nstate 2 w sgd w=24 wrows=3 piece=1\n"
        "node 3 y dense fwd=1 bwd=2 out=8 needs=in in=0,1,2 bwork=8\nend 4\n";
    tl_graph graph;
    tl_tensor weight;
    tl_state_desc desc;
    char out[400];
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_OK);
    assert_int_equal(tl_hold_gradients(&env, &graph), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_hold_gradients: w: its gradient is made in pieces, and cannot be held");
    tl_print_graph(&graph, out, sizeof out);
    assert_string_equal(out, text);
    desc.bytes = 24;
    desc.weight_rows = -3;
    assert_int_equal(tl_add_state(&env, &graph, &desc, &weight), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_add_state: node 4 (n4): wrows (weight_rows): must not be negative");
    desc.weight_rows = 3;
    desc.piece_rows = 1;
    assert_int_equal(tl_add_state(&env, &graph, &desc, &weight), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_add_state: node 4 (n4): piece: must be 1 to wrows, of a state in pieces alone");
    desc.kind = TL_STATE_PIECES;
    desc.piece_rows = -1;
    assert_int_equal(tl_add_state(&env, &graph, &desc, &weight), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_add_state: node 4 (n4): piece: must be 1 to wrows, of a state in pieces alone");
    desc.piece_rows = 1;
    assert_int_equal(tl_add_state(&env, &graph, &desc, &weight), TL_OK);
    tl_free_graph(&env, &graph);
}

// One plan of a graph with pieces of so many bytes: what it costs, UINT64_MAX where none fits; or the least budget.
static uint64_t cost_in_pieces(const tl_remat_desc *asked, uint64_t piece_bytes, uint64_t call_cost, uint64_t *least) {
    tl_remat_desc desc = *asked;
    tl_pieces_desc pieces;
    tl_graph cut_graph;
    tl_plan plan;
    tl_remat_report report;
    tl_result result;
    memset(&pieces, 0, sizeof pieces);
    pieces.graph = asked->graph;
    pieces.piece_bytes = piece_bytes;
    pieces.alignment_bytes = asked->alignment_bytes;
    pieces.call_cost = call_cost;
    if (tl_apply_pieces(NULL, &pieces, &cut_graph)) fail_msg("%s", "no pieces");
    desc.graph = &cut_graph;
    result = tl_plan_remat(NULL, &desc, &plan, &report);
    assert_true(report.proven);
    if (report.least_budget_bytes && report.least_budget_bytes < *least) *least = report.least_budget_bytes;
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &cut_graph);
    return result ? UINT64_MAX : report.cost;
}

// The choice is no dearer than whole gradients and the halvings of the largest, and seldom than any size; it is there wherever rows
// one by one fit.
static void pieces_are_chosen_among_all_sizes(void **state) {
    tl_random random = { 4006 };
    int tried = 0, chosen = 0, saved = 0, refused = 0, between = 0, dearer = 0;
    (void)state;
    while (tried < scaled(600)) {
        tl_graph graph;
        tl_plan all;
        tl_remat_desc desc;
        tl_remat_report report;
        uint64_t call_cost = tl_next_random_below(&random, 3), largest = 0, bytes, whole, best, any, of, least = UINT64_MAX, wanted = UINT64_MAX;
        tl_result result;
        int32_t id;
        state_graph(&random, 9, 4, 0, &graph);
        for (id = 0; id < graph.node_count; id++)
            if (graph.nodes[id].weight_rows > 1 && graph.outputs[graph.nodes[id].first_output].bytes > largest)
                largest = graph.outputs[graph.nodes[id].first_output].bytes;
        if (!largest) { tl_free_graph(NULL, &graph); continue; }
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.live = 1;
        desc.alignment_bytes = random_chance(&random, 30) ? 4 : 0;
        desc.budget_bytes = 1;
        (void)cost_in_pieces(&desc, UINT64_MAX, call_cost, &least);
        (void)cost_in_pieces(&desc, 0, call_cost, &least);
        assert_true(least <= all.peak_bytes);
        desc.budget_bytes = least + tl_next_random_below(&random, all.peak_bytes - least + 1);
        if (random_chance(&random, 20) && least > 1) desc.budget_bytes = least - 1;
        least = UINT64_MAX;
        result = tl_choose_pieces(NULL, &desc, call_cost, &bytes, &report);
        best = whole = cost_in_pieces(&desc, UINT64_MAX, call_cost, &least);
        for (of = largest / 2;; of /= 2) {
            uint64_t cost = cost_in_pieces(&desc, of, call_cost, &least);
            if (cost < best) { best = cost; wanted = of; }
            if (!of) break;
        }
        assert_int_equal(result, best == UINT64_MAX ? TL_ERROR_INFEASIBLE : TL_OK);
        if (!result && (report.cost > best || (report.cost == best && bytes < wanted)))
            fail_msg("graph %d: pieces of %lu cost %lu, of %lu %lu\n%s", tried, (unsigned long)bytes, (unsigned long)report.cost,
                     (unsigned long)wanted, (unsigned long)best, text_of(&graph));
        if (!result && cost_in_pieces(&desc, bytes, call_cost, &least) != report.cost) fail_msg("%s", "another cost");
        for (any = best, of = 1; !result && of < largest; of += 1 + largest / 32) {
            uint64_t cost = cost_in_pieces(&desc, of, call_cost, &least);
            if (cost < any) any = cost;
        }
        between += !result && report.cost < best;
        dearer += !result && report.cost > any;
        if (result) {
            uint64_t found = UINT64_MAX;
            assert_int_equal(report.least_budget_bytes, least);     // of all these
            (void)cost_in_pieces(&desc, bytes, call_cost, &found);
            assert_int_equal(found, least);
            for (of = 1; of < largest; of += 1 + largest / 16)      // and no other size fits
                assert_true(cost_in_pieces(&desc, of, call_cost, &found) == UINT64_MAX && found == least);
        }
        chosen += !result && bytes != UINT64_MAX;
        saved += best < whole && whole != UINT64_MAX;
        refused += result != TL_OK;
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
        tried++;
    }
    print_message("%d in pieces, %d of them cheaper than whole gradients, %d than any halving, %d dearer than another size, %d refused\n",
                  chosen, saved, between, dearer, refused);
    assert_true(dearer <= 2 + chosen / 25 && (is_thinned() || (chosen > 10 && saved > 3 && between > 3 && refused > 10)));
}

// Where nothing can be made again, the largest pieces that fit are the cheapest: they are found to a sixteenth.
static void the_largest_pieces_that_fit_are_found(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\nstate 1 p sgd w=4000 wrows=1000\n"
                               "node 2 a dense fwd=10 bwd=20 out=64 needs=in in=0,1\nnode 3 loss ce fwd=1 bwd=1 out=4 needs=in in=2\nend 4\n";
    uint64_t beside = 64 + 4000 + 64, bytes, fit, half, pieces;
    int fewer = 0;
    tl_remat_desc desc;
    tl_graph graph;
    (void)state;
    if (tl_parse_graph(NULL, text, sizeof text - 1, &graph)) fail_msg("%s", "no graph");
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.live = 1;
    for (fit = 72; fit < 4000; fit += 7 + fit / 20) {
        desc.budget_bytes = beside + fit;
        assert_int_equal(tl_choose_pieces(NULL, &desc, 1, &bytes, NULL), TL_OK);
        assert_true(bytes / 4 * 4 <= fit);
        pieces = (1000 + bytes / 4 - 1) / (bytes / 4);
        assert_true(pieces <= (1000 + (fit - fit / 16) / 4 - 2) / ((fit - fit / 16) / 4 - 1));
        for (half = 4000; half > fit; half /= 2) {}
        fewer += pieces < (1000 + half / 4 - 1) / (half / 4);
    }
    assert_true(fewer > 20);
    tl_free_graph(NULL, &graph);
}

// A result is made before the weight that it depends on is updated in pieces: it is there in that backward, and cannot be made
// again behind it. The graph is no chain, and too large for the exact planner.
static void results_are_made_before_pieces_are_updated(void **state) {
    enum { CHAIN = 150 };
    char text[16000];
    int i, at = snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n");
    uint64_t least, peak = 8 + 2 + 10 + 500 + 100;      // x, w, gradient of y, scratch and r; of the inner tensors none
    tl_graph graph;
    (void)state;
    for (i = 1; i <= CHAIN; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "node %d c%d op fwd=1 bwd=1 out=1 needs=none in=%d,%d\n", i, i, i - 1, i / 2);
    snprintf(text + at, sizeof text - (size_t)at, "state %d w sgd w=2 wrows=2 piece=1\n"
             "node %d y dense fwd=1 bwd=1 out=10 needs=none in=%d,%d bwork=500\n"
             "node %d r op fwd=1 bwd=1 out=100 needs=none in=%d keep\nend %d\n", CHAIN + 1, CHAIN + 2, CHAIN, CHAIN + 1, CHAIN + 3, CHAIN + 2,
             CHAIN + 4);
    if (tl_parse_graph(NULL, text, strlen(text), &graph)) fail_msg("%s", text);
    assert_true(check_remat(&graph, peak - 50, 1, 0, 2000000, &least) == UINT64_MAX);
    assert_true(least >= peak && check_remat(&graph, least, 1, 0, 2000000, &least) != UINT64_MAX);
    tl_free_graph(NULL, &graph);
}

// A large result beside activations that a budget asks to make again: to drop it and make it again at the end, from the input
// of its maker, which is small, would be cheapest, were the weight not updated by then.
static void no_result_is_made_of_updated_pieces(void **state) {
    enum { INNER = 150 };
    char text[20000];
    int i, at = snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n");
    uint64_t least, cost, base = 2 * INNER + 4;
    tl_graph graph;
    tl_plan all;
    (void)state;
    for (i = 1; i <= INNER; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "node %d c%d op fwd=1 bwd=1 out=10 needs=in0 in=%d,%d\n", i, i, i - 1, i / 2);
    snprintf(text + at, sizeof text - (size_t)at, "state %d w sgd w=2 wrows=2 piece=1\n"
             "node %d y dense fwd=1 bwd=1 out=10 needs=in0 in=%d,%d bwork=1\n"
             "node %d r op fwd=1 bwd=1 out=300 needs=none in=%d keep\nend %d\n", INNER + 1, INNER + 2, INNER, INNER + 1, INNER + 3, INNER + 2,
             INNER + 4);
    if (tl_parse_graph(NULL, text, strlen(text), &graph)) fail_msg("%s", text);
    if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
    cost = check_remat(&graph, all.peak_bytes - 700, 1, 0, 20000000, &least);
    assert_true(cost > base && cost <= base * 6 / 5);
    tl_free_plan(NULL, &all);
    tl_free_graph(NULL, &graph);
}

// Forward only, no gradient is cut; the work is that of all tries; and every allocation may fail.
static void pieces_are_chosen_for_training_alone(void **state) {
    static const char text[] = CUT_X "state 1 w sgd w=400 upd=2 wrows=10\nnode 2 a dense fwd=10 bwd=20 out=90 needs=in in=0,1\n"
        "node 3 b dense fwd=10 bwd=20 out=90 needs=in in=2\nnode 4 c dense fwd=10 bwd=20 out=9 needs=in in=3\nend 5\n";
    tl_graph graph, cut_graph;
    tl_pieces_desc pieces;
    tl_remat_desc desc;
    tl_remat_report report, one, two;
    tl_remat_pool *pool;
    tl_plan plan;
    uint64_t bytes;
    long at;
    tl_env env;
    (void)state;
    memset(&pieces, 0, sizeof pieces);
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_OK);
    desc.graph = &graph;
    desc.live = 1;
    desc.budget_bytes = 700;
    assert_int_equal(tl_choose_pieces(&env, &desc, 0, &bytes, &report), TL_OK);
    assert_int_equal(bytes, 200);
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &one), TL_ERROR_INFEASIBLE);
    pieces.graph = &graph;
    pieces.piece_bytes = 200;
    assert_int_equal(tl_apply_pieces(&env, &pieces, &cut_graph), TL_OK);
    desc.graph = &cut_graph;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &two), TL_OK);
    assert_int_equal(report.cost, two.cost);
    assert_int_equal(report.work, one.work + two.work);     // which costs what its calls do: no more are tried
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &cut_graph);
    desc.graph = &graph;
    for (at = 0;; at++) {
        failing_alloc f = { 0 };
        tl_env fails = failing_env(&f, at);
        tl_result result = tl_choose_pieces(&fails, &desc, 0, &bytes, NULL);
        assert_int_equal(f.live, 0);
        if (f.count <= at) { assert_int_equal(result, TL_OK); break; }
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
    }
    assert_true(at > 12);
    assert_int_equal(tl_init_remat_pool(&env, &pool), TL_OK);        // of whole gradients alone
    desc.pool = pool;
    assert_int_equal(tl_choose_pieces(&env, &desc, 0, &bytes, &report), TL_OK);
    assert_int_equal(bytes, 200);
    desc.pool = NULL;
    tl_free_remat_pool(pool);
    desc.inference = 1;
    desc.budget_bytes = 1;
    assert_int_equal(tl_choose_pieces(&env, &desc, 0, &bytes, &report), TL_ERROR_INFEASIBLE);
    assert_int_equal(bytes, UINT64_MAX);
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &one), TL_ERROR_INFEASIBLE);
    assert_int_equal(report.work, one.work);
    tl_free_graph(&env, &graph);
}

static void text_holds_states(void **state) {
    tl_random random = { 4003 };
    int32_t i, k;
    (void)state;
    for (i = 0; i < scaled(300); i++) {
        tl_graph graph, again;
        char *before, *after;
        size_t length;
        state_graph(&random, 20, 6, 20, &graph);
        if (i % 2) tl_let_inputs_die(&graph);
        if (i % 3 == 2) (void)random_train_in_pieces(NULL, &random, &graph);
        length = tl_print_graph(&graph, NULL, 0);
        before = (char *)malloc(length + 1);
        after = (char *)malloc(length + 1);
        assert_true(before && after);
        tl_print_graph(&graph, before, length + 1);
        assert_int_equal(tl_parse_graph(NULL, before, length, &again), TL_OK);
        assert_int_equal(tl_print_graph(&again, after, length + 1), length);
        assert_string_equal(before, after);
        for (k = 0; k < again.node_count; k++)
            assert_int_equal(again.nodes[k].is_input == 2, i % 2 && graph.nodes[k].is_input && !graph.nodes[k].state && !graph.nodes[k].keep);
        free(before);
        free(after);
        tl_free_graph(NULL, &again);
        tl_free_graph(NULL, &graph);
    }
}

static const char *applied(const char *text, tl_optimizer_desc desc) {
    static char out[4096];
    tl_graph graph, owned;
    tl_env env;
    memset(&env, 0, sizeof env);
    assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_OK);
    desc.graph = &graph;
    if (tl_apply_optimizer(&env, &desc, &owned)) {
        snprintf(out, sizeof out, "%s", env.error.text);
    } else {
        tl_print_graph(&owned, out, sizeof out);
        tl_free_graph(&env, &owned);
    }
    tl_free_graph(&env, &graph);
    return out;
}

// Weights become states where the updates are to be, with what an update moves as its cost.
static void an_optimizer_is_applied_to_a_graph(void **state) {
    static const char plain[] = "tlg 2\nbatch 4\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
        "node 1 a dense fwd=10 bwd=20 out=64 needs=in in=0 param=100 layer=3\n"
        "node 2 b frozen_dense fwd=5 bwd=0 out=64 needs=none in=0 param=40 grad=no\n"
        "state 3 s sgd w=8 upd=1\nnode 4 c op fwd=1 bwd=1 out=8 needs=in1 in=1,3,2\nend 5\n";
    tl_optimizer_desc desc;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.op = "adamw";
    desc.moment_count = 2;
    desc.bytes_per_second = 1000000000;     // a byte a nanosecond: 7 passes over the weight
    desc.call_cost = 3;
    assert_string_equal(applied(plain, desc), "tlg 2\nbatch 4\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
        "state 1 a.w adamw w=100 m=100,100 upd=703 layer=3\n"
        "node 2 a dense fwd=10 bwd=20 out=64 needs=in in=0,1.0 layer=3\n"
        "state 3 b.w adamw w=40 frozen\n"
        "node 4 b frozen_dense fwd=5 bwd=0 out=64 needs=none in=0,3 grad=no\n"
        "state 5 s sgd w=8 upd=1\nnode 6 c op fwd=1 bwd=1 out=8 needs=in1 in=2,5,4\nend 7\n");
    desc.updates = TL_UPDATES_END;
    desc.clips = 1;
    assert_string_equal(applied(plain, desc), "tlg 2\nbatch 4\nstate 0 a.w adamw w=100 m=100,100 upd=703 layer=3\n"
        "state 1 b.w adamw w=40 frozen\nstate 2 s sgd w=8 upd=1\n"
        "node 3 clip clip fwd=0 bwd=327 out=4 needs=none in=0.0,2 fixed\n"
        "node 4 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
        "node 5 a dense fwd=10 bwd=20 out=64 needs=in in=4,0.0 layer=3\n"
        "node 6 b frozen_dense fwd=5 bwd=0 out=64 needs=none in=4,1 grad=no\n"
        "node 7 c op fwd=1 bwd=1 out=8 needs=in1 in=5,2,6\nend 8\n");
    desc.keeps_weights = 1;
    desc.clips = 0;
    assert_non_null(strstr(applied(plain, desc), "tlg 2\nbatch 4\nstate 0 s sgd w=8 upd=1\nnode 1 x input"));
    assert_non_null(strstr(applied(plain, desc), "param=100"));
    desc.updates = TL_UPDATES_FUSED;
    desc.clips = 1;
    assert_string_equal(applied(plain, desc), "tl_apply_optimizer: clips: must be 0 or 1, and 1 with updates at the end alone");
    desc.clips = 0;
    desc.moment_count = 17;
    assert_string_equal(applied(plain, desc), "tl_apply_optimizer: moment_count: must be 0 to 16");
}

static void an_explanation_says_what_states_hold(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=40 needs=none in=-\nstate 1 w adamw w=100 m=100,100 hold\n"
        "node 2 y dense fwd=1 bwd=1 out=60 needs=in in=0,1\nend 3\n";
    tl_graph graph;
    tl_plan plan;
    memory_sink m;
    (void)state;
    assert_int_equal(tl_parse_graph(NULL, text, strlen(text), &graph), TL_OK);
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &plan), TL_OK);
    assert_int_equal(tl_explain_plan(NULL, &graph, &plan, sink_of(&m, -1)), TL_OK);
    if (!strstr(m.text, "\nstates: 400 bytes, 80.00 % of the peak: ")) fail_msg("%s", m.text);     // of 40 + 400 + 60
    free(m.text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Gradients that are held are outputs of their states: of every plan of such a graph the gradient of a weight is no allocation.
static void held_gradients_are_planned_as_outputs(void **state) {
    tl_random random = { 4004 };
    int i;
    (void)state;
    for (i = 0; i < scaled(60); i++) {
        tl_graph graph;
        tl_plan plan;
        tl_lifetimes lifetimes;
        uint64_t least;
        int32_t k;
        state_graph(&random, 12, 6, 10, &graph);
        assert_int_equal(tl_hold_gradients(NULL, &graph), TL_OK);
        assert_int_equal(tl_hold_gradients(NULL, &graph), TL_OK);
        assert_int_equal(tl_check_graph(NULL, &graph), TL_OK);
        if (tl_plan_keep_all(NULL, &graph, 0, &plan)) fail_msg("%s", "no plan");
        plan.repeat_count = 3;
        if (tl_find_lifetimes(NULL, &graph, &plan, &lifetimes)) fail_msg("%s", "not valid");
        for (k = 0; k < lifetimes.count; k++)
            assert_true(lifetimes.items[k].use != TL_USE_GRADIENT || !graph.nodes[lifetimes.items[k].node].state);
        tl_free_lifetimes(NULL, &lifetimes);
        (void)check_remat(&graph, plan.peak_bytes * 3 / 4, 1, 0, 1000000, &least);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
}

// -- the network of examples/01_train_text.c --

typedef struct row { const char *op, *needs; int from, from2; uint64_t bytes, cost, weights, saved, work; } row;

// Which row of a layer each reads; -1 = what the layer reads, -2 = nothing.
static const row layer_rows[] = {
    { "norm", "in", -1, -2, 24576, 49152, 384, 1024, 0 },        { "linear", "in", 0, -2, 73728, 1769472, 28224, 0, 0 },
    { "attention", "in", 1, -2, 24576, 786432, 0, 49152, 4096 }, { "dropout", "none", 2, -2, 24576, 122880, 0, 0, 0 },
    { "linear", "in", 3, -2, 24576, 589824, 9408, 0, 0 },        { "add", "none", -1, 4, 24576, 6144, 0, 0, 0 },
    { "norm", "in", 5, -2, 24576, 49152, 384, 1024, 0 },         { "linear", "in", 6, -2, 98304, 2359296, 37632, 0, 0 },
    { "gelu", "in", 7, -2, 98304, 491520, 0, 0, 0 },             { "linear", "in", 8, -2, 24576, 2359296, 37056, 0, 0 },
    { "dropout", "none", 9, -2, 24576, 122880, 0, 0, 0 },        { "add", "none", 5, 10, 24576, 6144, 0, 0, 0 },
};
static const row first_row = { "embed", "in", 0, -2, 24576, 6144, 24000, 0, 0 };
static const row last_rows[] = {
    { "norm", "in", -1, -2, 24576, 49152, 384, 1024, 0 }, { "linear", "in", 0, -2, 47616, 1142784, 18228, 0, 0 },
    { "loss", "in", 1, -2, 4, 238080, 0, 0, 0 },
};

// is_scratch: 1 = the gradient of the weights is scratch of the backward, which updates them.
static int32_t add_row(tl_graph *graph, const row *r, int32_t from, int32_t from2, int is_scratch) {
    tl_node_desc desc;
    tl_tensor inputs[2];
    char name[32];
    memset(&desc, 0, sizeof desc);
    memset(inputs, 0, sizeof inputs);
    inputs[0].node = from;
    inputs[1].node = from2;
    snprintf(name, sizeof name, "%s%d", r->op, (int)graph->node_count);
    desc.name = name;
    desc.op = r->op;
    desc.needs = from < 0 ? NULL : r->needs;
    desc.inputs = inputs;
    desc.input_count = (from >= 0) + (from2 >= 0);
    desc.output_bytes = &r->bytes;
    desc.output_count = 1;
    desc.fwd_cost = r->cost;
    desc.bwd_cost = 2 * r->cost + (is_scratch ? 7 * r->weights : 0);
    desc.param_bytes = is_scratch ? 0 : r->weights;
    desc.saved_bytes = r->saved;
    desc.fwork_bytes = r->work;
    desc.bwork_bytes = r->work + (is_scratch ? r->weights : 0);
    desc.keep = strcmp(r->op, "loss") == 0;
    assert_int_equal(tl_add_node(NULL, graph, &desc, NULL), TL_OK);
    return graph->node_count - 1;
}

static int32_t add_rows(tl_graph *graph, const row *rows, int count, int32_t before, int is_scratch) {
    int32_t ids[16];
    int i;
    for (i = 0; i < count; i++) {
        int32_t from = rows[i].from < 0 ? before : ids[rows[i].from];
        ids[i] = add_row(graph, &rows[i], from, rows[i].from2 < 0 ? -1 : ids[rows[i].from2], is_scratch);
    }
    return ids[count - 1];
}

// Its weights are states, or their gradients scratch: the same problem, but for the bytes of the states.
static void text_network(tl_graph *graph, int is_scratch) {
    static const row input = { "input", NULL, -2, -2, 512, 0, 0, 0, 0 };
    tl_optimizer_desc desc;
    tl_graph plain;
    int32_t last, k;
    tl_init_graph(&plain);
    last = add_row(&plain, &input, -1, -1, 1);
    last = add_row(&plain, &first_row, last, -1, is_scratch);
    for (k = 0; k < 6; k++) last = add_rows(&plain, layer_rows, 12, last, is_scratch);
    (void)add_rows(&plain, last_rows, 3, last, is_scratch);
    if (is_scratch) { *graph = plain; return; }
    memset(&desc, 0, sizeof desc);
    desc.graph = &plain;
    desc.op = "adamw";
    desc.moment_count = 2;
    desc.bytes_per_second = 1000000000;
    assert_int_equal(tl_apply_optimizer(NULL, &desc, graph), TL_OK);
    tl_free_graph(NULL, &plain);
}

static tl_remat_report plan_live(const tl_graph *graph, uint64_t budget, uint64_t seed) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.seed = seed;
    assert_int_equal(tl_plan_remat(NULL, &desc, &plan, &report), TL_OK);
    assert_true(plan.peak_bytes <= budget);
    tl_free_plan(NULL, &plan);
    return report;
}

static void what_states_take_is_scratch_of_backwards(void **state) {
    static const uint64_t shares[] = { 80, 65, 58, 50, 42, 35, 30, 27, 24 };
    enum { SHARES = sizeof shares / sizeof *shares };
    tl_graph owned, scratch;
    tl_plan all, small;
    uint64_t beside, work[2] = { 0, 0 };
    uint64_t seed;
    int k;
    (void)state;
    text_network(&owned, 0);
    text_network(&scratch, 1);
    assert_int_equal(tl_plan_keep_all(NULL, &owned, 0, &all), TL_OK);
    assert_int_equal(tl_plan_keep_all(NULL, &scratch, 0, &small), TL_OK);
    beside = all.peak_bytes - small.peak_bytes;             // weights and moments
    assert_int_equal(beside, 3 * 721140);
    assert_int_equal(all.cost, small.cost);
    for (k = 0; k < (is_soaked() ? SHARES : 6); k++) {
        uint64_t budget = small.peak_bytes / 100 * shares[k], sums[2] = { 0, 0 };
        for (seed = 0; seed < (is_soaked() ? 4 : 2); seed++) {
            tl_remat_report with = plan_live(&owned, beside + budget, seed);
            tl_remat_report without = plan_live(&scratch, budget, seed);
            assert_true(with.gap_ratio < 0.01 && without.gap_ratio < 0.01);
            assert_true(with.bound_cost <= without.cost && without.bound_cost <= with.cost);
            sums[0] += with.work;
            sums[1] += without.work;
        }
        print_message("%d %%: %.2f million steps of work with states, %.2f with scratch\n", (int)shares[k],
                      (double)sums[0] / 1e6, (double)sums[1] / 1e6);
        work[0] += sums[0];
        work[1] += sums[1];
    }
    print_message("states take %.3f times the work\n", (double)work[0] / (double)work[1]);
    assert_true(work[0] * 10 <= work[1] * 12);
    tl_free_plan(NULL, &all);
    tl_free_plan(NULL, &small);
    tl_free_graph(NULL, &owned);
    tl_free_graph(NULL, &scratch);
}

// The bound is as good as the optimum soon, and branching does not raise it: with all the work that was left it proved
// nothing, and the plan stayed 0.24 % above.
static void branches_that_raise_nothing_leave_work_to_the_search(void **state) {
    tl_graph graph;
    tl_remat_report report;
    (void)state;
    text_network(&graph, 1);
    report = plan_live(&graph, 650000, 0);
    assert_true(report.gap_ratio < 0.0001);
    assert_true(report.work < 400000000);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_take_over_what_pieces_cost),
        cmocka_unit_test(what_has_no_one_reader_stays_whole),
        cmocka_unit_test(what_is_no_larger_than_a_piece_stays_whole),
        cmocka_unit_test(a_node_of_the_library_is_no_reader),
        cmocka_unit_test(pieces_hold_no_gradients),
        cmocka_unit_test(pieces_are_chosen_among_all_sizes),
        cmocka_unit_test(the_largest_pieces_that_fit_are_found),
        cmocka_unit_test(results_are_made_before_pieces_are_updated),
        cmocka_unit_test(no_result_is_made_of_updated_pieces),
        cmocka_unit_test(pieces_are_chosen_for_training_alone),
        cmocka_unit_test(text_holds_states),
        cmocka_unit_test(an_optimizer_is_applied_to_a_graph),
        cmocka_unit_test(an_explanation_says_what_states_hold),
        cmocka_unit_test(held_gradients_are_planned_as_outputs),
        cmocka_unit_test(chains_with_states_cost_what_merged_chains_cost),
        cmocka_unit_test(tiny_graphs_reach_the_optimum_of_brute_force),
        cmocka_unit_test(every_planner_obeys_the_rules),
        cmocka_unit_test(states_that_nobody_reads_are_planned),
        cmocka_unit_test(what_states_take_is_scratch_of_backwards),
        cmocka_unit_test(branches_that_raise_nothing_leave_work_to_the_search),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
