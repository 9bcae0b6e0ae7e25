// [6] REMAT: the order of forwards that takes the least bytes.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/planner_graphs.h"
#include "support/brute_order.h"
#include "support/replay.h"

static tl_order_desc desc_of(const tl_graph *graph, int inference) {
    tl_order_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.inference = inference;
    return desc;
}

static void parse(const char *text, tl_graph *graph) {
    tl_env env = silent_env();
    if (tl_parse_graph(&env, text, strlen(text), graph)) fail_msg("%s", env.error.text);
}

// The rules of steps accept the plan, and find its peak; every forward and backward runs once at most.
static void assert_is_valid(const tl_graph *graph, const tl_plan *plan, const tl_order_report *report, const char *what) {
    replay r;
    if (!replay_plan(graph, plan, NULL, &r)) fail_msg("%s: step %d: %s", what, (int)r.step, r.broken ? r.broken : "no memory");
    if (r.peak != plan->peak_bytes) fail_msg("%s: peak %llu, not %llu", what, (unsigned long long)r.peak,
                                             (unsigned long long)plan->peak_bytes);
    assert_true(plan->cost <= plan->base_cost);
    assert_true(report->bound_bytes <= report->peak_bytes);
    assert_int_equal(report->proven, report->bound_bytes == report->peak_bytes);
    assert_true(report->peak_bytes <= report->listing_peak_bytes);
}

static tl_order_report plan_of(const tl_order_desc *desc, tl_plan *plan) {
    tl_env env = silent_env();
    tl_order_report report;
    if (tl_plan_order(&env, desc, plan, &report)) fail_msg("%s", env.error.text);
    return report;
}

// -- by hand --

// Two branches, each of a large and a small tensor: 100 + 2 + 100 when one ends before the other begins.
static const char branches[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
    "node 1 a1 f fwd=1 bwd=1 out=100 needs=none in=0\n"
    "node 2 b1 f fwd=1 bwd=1 out=100 needs=none in=0\n"
    "node 3 a2 f fwd=1 bwd=1 out=2 needs=none in=1\n"
    "node 4 b2 f fwd=1 bwd=1 out=2 needs=none in=2\n"
    "node 5 y f fwd=1 bwd=1 out=1 needs=none in=3,4\n";

static void a_branch_ends_before_the_next_begins(void **state) {
    static const int32_t order[] = { 1, 3, 1, 2, 4, 2, 5, 3, 4 };     // the nodes of the steps
    tl_graph graph;
    tl_plan plan;
    tl_order_report report;
    tl_order_desc desc;
    int32_t k;
    (void)state;
    parse(branches, &graph);
    desc = desc_of(&graph, 1);
    report = plan_of(&desc, &plan);
    assert_int_equal(report.listing_peak_bytes, 203);       // x, a1, b1, a2
    assert_int_equal(report.peak_bytes, 105);               // x, a2, b1, b2
    assert_int_equal(report.bound_bytes, 105);
    assert_true(report.proven);
    assert_int_equal(report.segment_count, 1);
    assert_int_equal(plan.peak_bytes, 105);
    assert_int_equal(plan.step_count, sizeof order / sizeof *order);
    for (k = 0; k < plan.step_count; k++) assert_int_equal(plan.steps[k].node, order[k]);
    assert_is_valid(&graph, &plan, &report, "branches");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// The input is read twice; it may be overwritten by the last reader alone, so that one must be r.
static void what_may_run_in_place_runs_after_the_other_readers(void **state) {
    tl_graph graph;
    tl_plan plan;
    tl_order_report report;
    tl_order_desc desc;
    (void)state;
    parse("tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\nnode 1 a f fwd=1 bwd=0 out=50 needs=none in=0\n"
          "node 2 r f fwd=1 bwd=0 out=50 needs=none in=1 inplace=0\nnode 3 s f fwd=1 bwd=0 out=7 needs=none in=1\n"
          "node 4 y f fwd=1 bwd=0 out=1 needs=none in=2,3\n", &graph);
    desc = desc_of(&graph, 1);
    report = plan_of(&desc, &plan);
    assert_int_equal(report.listing_peak_bytes, 108);       // x, a, r, s
    assert_int_equal(report.peak_bytes, 59);                // x, r over a, s, y
    assert_true(report.proven);
    assert_int_equal(plan.steps[2].kind, TL_STEP_FORWARD_INPLACE);
    assert_is_valid(&graph, &plan, &report, "in place");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Two losses of one graph: the forwards of the first may run after the backwards of the second.
static void a_loss_is_reversed_before_the_forwards_of_another(void **state) {
    tl_graph graph;
    tl_plan plan, keep_all;
    tl_order_report report;
    tl_order_desc desc;
    int32_t k, backwards = 0, last = INT32_MAX;
    (void)state;
    parse("tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\nnode 1 a f fwd=1 bwd=1 out=100 needs=out in=0\n"
          "node 2 la f fwd=1 bwd=1 out=1 needs=none in=1\nnode 3 b f fwd=1 bwd=1 out=100 needs=out in=0\n"
          "node 4 lb f fwd=1 bwd=1 out=1 needs=none in=3\n", &graph);
    desc = desc_of(&graph, 0);
    report = plan_of(&desc, &plan);
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &keep_all), TL_OK);
    assert_int_equal(report.listing_peak_bytes, keep_all.peak_bytes);
    assert_int_equal(keep_all.peak_bytes, 302);             // x, a, b, the gradients of lb and b
    assert_int_equal(plan.peak_bytes, 202);
    assert_true(report.proven);
    for (k = 0; k < plan.step_count; k++) {
        if (plan.steps[k].kind != TL_STEP_BACKWARD) continue;
        assert_true(plan.steps[k].node < last);
        last = plan.steps[k].node;
        backwards++;
    }
    assert_int_equal(backwards, 4);
    assert_is_valid(&graph, &plan, &report, "two losses");
    tl_free_plan(NULL, &plan);
    tl_free_plan(NULL, &keep_all);
    tl_free_graph(NULL, &graph);
}

static void nodes_that_nobody_needs_do_not_run(void **state) {
    tl_graph graph;
    tl_plan plan;
    tl_order_report report;
    tl_order_desc desc;
    (void)state;
    parse("tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\nnode 1 a f fwd=1 bwd=1 out=10 needs=none in=0 keep\n"
          "node 2 b f fwd=1 bwd=1 out=90 needs=none in=1\n", &graph);
    desc = desc_of(&graph, 1);
    report = plan_of(&desc, &plan);
    assert_int_equal(plan.step_count, 1);
    assert_int_equal(report.peak_bytes, 11);
    assert_int_equal(report.listing_peak_bytes, 11);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void a_graph_of_inputs_has_no_steps(void **state) {
    tl_graph graph;
    tl_plan plan;
    tl_order_report report;
    tl_order_desc desc;
    (void)state;
    parse("tlg 1\nnode 0 x input fwd=0 bwd=0 out=12 needs=none in=-\n", &graph);
    desc = desc_of(&graph, 1);
    report = plan_of(&desc, &plan);
    assert_int_equal(plan.step_count, 0);
    assert_int_equal(report.peak_bytes, 12);
    assert_true(report.proven);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// With an alignment the bytes that count are those of places.
static void places_come_with_the_plan(void **state) {
    tl_graph graph;
    tl_plan plan;
    tl_order_report report;
    tl_order_desc desc;
    (void)state;
    parse(branches, &graph);
    desc = desc_of(&graph, 1);
    desc.live = 0;
    desc.alignment_bytes = 16;
    report = plan_of(&desc, &plan);
    assert_int_equal(report.peak_bytes, 16 + 16 + 112 + 16);
    assert_int_equal(report.arena_bytes, plan.arena_bytes);
    assert_int_equal(plan.arena_bytes, 160);
    assert_int_equal(report.listing_arena_bytes, 16 + 112 + 112 + 16);
    assert_int_equal(plan.peak_bytes, 105);
    assert_true(plan.offset_count > 0);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// In the order found live bytes are fewer, but between them the arena has larger gaps than in that of the listing.
static void where_gaps_cost_more_the_listing_stays(void **state) {
    tl_graph graph;
    tl_plan plan, keep_all;
    tl_order_report report;
    tl_order_desc desc;
    (void)state;
    parse("tlg 1\n"
          "node 0 n0 input fwd=0 bwd=0 out=1,96 needs=none in=- keep\n"
          "node 1 n1 conv fwd=6 bwd=32 out=103,6,3 needs=none in=0.1,0.0,0.1 fwork=8 bwork=9\n"
          "node 2 n2 split fwd=3 bwd=3 out=4 needs=in,out in=1.1 fwork=16\n"
          "node 3 n3 add fwd=23 bwd=2 out=16 needs=in in=2,0.1\n"
          "node 4 n4 add fwd=16 bwd=16 out=0 needs=out in=3 saved=8 fwork=12\n"
          "node 5 n5 linear fwd=5 bwd=5 out=66,124,0 needs=in,out0 in=2 bwork=12\n"
          "node 6 n6 linear fwd=14 bwd=11 out=60 needs=in,out in=3\n"
          "node 7 n7 add fwd=16 bwd=39 out=6 needs=in in=6,6 saved=10 bwork=8\n"
          "node 8 n8 ce fwd=2 bwd=34 out=3 needs=in,out in=2,7\n"
          "node 9 n9 ce fwd=11 bwd=28 out=0 needs=in,out in=8\n"
          "node 10 n10 ce fwd=16 bwd=9 out=16 needs=in in=5.0 bwork=1\n"
          "node 11 n11 relu fwd=4 bwd=5 out=16,14 needs=in,out1 in=10 saved=6 fwork=7 inplace=0\n", &graph);
    desc = desc_of(&graph, 0);
    desc.live = 0;
    desc.work_limit = 300000;
    report = plan_of(&desc, &plan);
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &keep_all), TL_OK);
    assert_int_equal(report.peak_bytes, 403);
    assert_int_equal(report.arena_bytes, report.listing_arena_bytes);
    assert_int_equal(plan.arena_bytes, 411);
    assert_int_equal(plan.peak_bytes, keep_all.peak_bytes);
    tl_free_plan(NULL, &plan);
    tl_free_plan(NULL, &keep_all);
    tl_free_graph(NULL, &graph);
}

// -- against every order --

static void compare_with_brute_force(const tl_graph *graph, int inference, uint64_t work_limit, uint64_t least, const char *what) {
    tl_order_desc desc = desc_of(graph, inference);
    tl_order_report report;
    tl_plan plan;
    desc.work_limit = work_limit;
    report = plan_of(&desc, &plan);
    assert_is_valid(graph, &plan, &report, what);
    assert_int_equal(plan.peak_bytes, report.peak_bytes);
    if (report.bound_bytes > least || report.peak_bytes < least || (!work_limit && report.peak_bytes != least))
        fail_msg("%s: peak %llu, bound %llu, the least is %llu", what, (unsigned long long)report.peak_bytes,
                 (unsigned long long)report.bound_bytes, (unsigned long long)least);
    if (!work_limit) assert_true(report.proven);
    tl_free_plan(NULL, &plan);
}

static void every_order_of_small_graphs_takes_as_much(void **state) {
    int count = scaled(400), i, inference;
    tl_random random = { 614 };
    long orders = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_graph graph;
        char what[64];
        assert_int_equal(i % 3 ? wide_graph(NULL, &random, random_count(&random, 2, 10), &graph)
                               : random_effect_graph(NULL, &random, 10, i % 2 * 30, &graph), TL_OK);
        for (inference = 0; inference < 2; inference++) {
            uint64_t least = brute_least_peak(&graph, inference, &orders);
            snprintf(what, sizeof what, "graph %d, %s", i, inference ? "forward only" : "training");
            compare_with_brute_force(&graph, inference, 0, least, what);
            compare_with_brute_force(&graph, inference, 1, least, what);
            compare_with_brute_force(&graph, inference, 1000, least, what);
            compare_with_brute_force(&graph, inference, 3000, least, what);
        }
        tl_free_graph(NULL, &graph);
    }
    printf("%d graphs, %ld orders tried or cut off\n", count, orders);
}

// -- properties --

static uint64_t peak_of_order(const tl_graph *graph, const int32_t *order, int32_t count, const uint8_t *results) {
    tl_plan plan = order_plan(graph, order, count, results);
    tl_env env = silent_env();
    uint64_t peak;
    if (tl_measure_plan(&env, graph, NULL, &plan)) fail_msg("%s", env.error.text);
    peak = plan.peak_bytes;
    free((void *)plan.steps);
    return peak;
}

// The nodes of a plan in the order in which it runs them, and what it keeps.
static int32_t read_order(const tl_graph *graph, const tl_plan *plan, int32_t *order, uint8_t *results) {
    int32_t k, i, count = 0;
    memset(results, 0, (size_t)graph->tensor_count);
    for (k = 0; k < plan->step_count; k++) {
        const tl_step *step = &plan->steps[k];
        const tl_node *node = &graph->nodes[step->node];
        if (step->kind == TL_STEP_DROP) { results[node->first_output + step->output] = 0; continue; }
        order[count++] = step->node;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) results[i] = 1;
        if (step->kind == TL_STEP_FORWARD_INPLACE) results[graph->inputs[node->first_input + node->inplace].tensor] = 0;
    }
    return count;
}

// Draw an order of the same nodes; greedy: of those that can run, the one after which the fewest bytes are live.
static void draw_order(tl_random *random, const tl_graph *graph, int32_t *order, int32_t count, const uint8_t *results, int greedy) {
    uint8_t *state = (uint8_t *)calloc((size_t)graph->node_count, 1);      // 1 = to be run, 2 = ran
    int32_t *left = (int32_t *)calloc((size_t)graph->tensor_count, sizeof *left), at, id, i, k;
    for (at = 0; at < count; at++) {
        const tl_node *node = &graph->nodes[order[at]];
        state[order[at]] = 1;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) left[graph->inputs[i].tensor]++;
    }
    for (at = 0; at < count; at++) {
        int64_t best = INT64_MAX, value;
        int32_t seen = 0, chosen = -1;
        for (id = 0; id < graph->node_count; id++) {
            const tl_node *node = &graph->nodes[id];
            int ready = state[id] == 1;
            for (i = node->first_input; i < node->first_input + node->input_count; i++)
                ready &= state[graph->outputs[graph->inputs[i].tensor].node] != 1;
            if (!ready) continue;
            value = (int64_t)tl_next_random_below(random, 1000000);
            for (i = node->first_output; greedy && i < node->first_output + node->output_count; i++)
                value = (i == node->first_output ? 0 : value) + (left[i] || results[i] ? (int64_t)graph->outputs[i].bytes : 0);
            for (i = node->first_input; greedy && i < node->first_input + node->input_count; i++) {
                int32_t tensor = graph->inputs[i].tensor, reads = 0, earlier = 0;
                for (k = node->first_input; k < node->first_input + node->input_count; k++) {
                    reads += graph->inputs[k].tensor == tensor;
                    earlier += k < i && graph->inputs[k].tensor == tensor;
                }
                if (!earlier && left[tensor] == reads && !results[tensor] && !graph->nodes[graph->outputs[tensor].node].is_input)
                    value -= (int64_t)graph->outputs[tensor].bytes;
            }
            if (chosen >= 0 && value >= best) continue;
            best = value;
            chosen = id;
            seen++;
        }
        assert_true(seen > 0);
        state[chosen] = 2;
        order[at] = chosen;
        for (i = graph->nodes[chosen].first_input; i < graph->nodes[chosen].first_input + graph->nodes[chosen].input_count; i++)
            left[graph->inputs[i].tensor]--;
    }
    free(state);
    free(left);
}

static void compare_with_other_orders(tl_random *random, const tl_graph *graph, const tl_plan *plan, const tl_order_report *report,
                                      const char *what) {
    int32_t *order = (int32_t *)malloc((size_t)graph->node_count * sizeof *order), count;
    uint8_t *results = (uint8_t *)malloc((size_t)graph->tensor_count);
    uint64_t peak;
    int k;
    count = read_order(graph, plan, order, results);
    assert_int_equal(peak_of_order(graph, order, count, results), plan->peak_bytes);
    for (k = 0; k < 3; k++) {
        draw_order(random, graph, order, count, results, k == 0);
        peak = peak_of_order(graph, order, count, results);
        if (peak < report->peak_bytes || peak < report->bound_bytes)
            fail_msg("%s: %llu, but %llu in %s order", what, (unsigned long long)report->peak_bytes, (unsigned long long)peak,
                     k ? "a random" : "the greedy");
    }
    free(order);
    free(results);
}

static void other_orders_take_no_less_at_30_to_5000_nodes(void **state) {
    int count = scaled(28), i, inference, proven = 0, lower = 0, plans = 0;
    tl_random random = { 615 };
    (void)state;
    for (i = 0; i < count; i++) {
        tl_graph graph;
        tl_plan plan;
        char what[80];
        int32_t size = i % 7 == 6 ? random_count(&random, 1000, 5000) : random_count(&random, 30, 400);
        int shape = i % (PLANNER_SHAPE_COUNT + 1);
        assert_int_equal(shape < PLANNER_SHAPE_COUNT ? planner_graph(NULL, &random, (planner_shape)shape, size, &graph)
                                                     : wide_graph(NULL, &random, size, &graph), TL_OK);
        for (inference = 0; inference < 2; inference++) {
            tl_order_desc desc = desc_of(&graph, inference);
            tl_order_report report;
            desc.work_limit = is_soaked() ? 0 : 20000000;
            snprintf(what, sizeof what, "graph %d of %d nodes, %s", i, (int)graph.node_count, inference ? "forward only" : "training");
            report = plan_of(&desc, &plan);
            assert_is_valid(&graph, &plan, &report, what);
            if (inference) compare_with_other_orders(&random, &graph, &plan, &report, what);
            proven += report.proven;
            lower += report.peak_bytes < report.listing_peak_bytes;
            plans++;
            tl_free_plan(NULL, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
    printf("%d plans: %d proven, %d below the listing\n", plans, proven, lower);
}

// A cell of random wiring, each node of which reads some of the last ones; at the end all that nothing read is joined.
static void wire_cell(tl_random *random, int32_t count, tl_graph *graph) {
    uint64_t bytes = 64;
    tl_tensor inputs[64];
    tl_node_desc desc;
    uint8_t read[64];
    int32_t k, i, made;
    assert_true(count < 64);
    memset(read, 0, sizeof read);
    memset(inputs, 0, sizeof inputs);
    tl_init_graph(graph);
    for (k = 0; k <= count; k++) {
        memset(&desc, 0, sizeof desc);
        desc.op = k ? "conv" : "input";
        desc.inputs = inputs;
        desc.output_bytes = &bytes;
        desc.output_count = 1;
        desc.fwd_cost = desc.bwd_cost = k > 0;
        if (k) bytes = 16 + tl_next_random_below(random, 4096);
        if (k) desc.input_count = random_count(random, 1, k < 3 ? k : 3);
        if (k == count) desc.input_count = 0;
        for (i = 0; i < k; i++) if (k == count && !read[i]) inputs[desc.input_count++].node = i;
        for (i = 0; i < desc.input_count && k < count; i++) {
            inputs[i].node = random_count(random, k > 10 ? k - 10 : 0, k - 1);
            read[inputs[i].node] = 1;
        }
        assert_int_equal(tl_add_node(NULL, graph, &desc, &made), TL_OK);
    }
}

// A limit only ends what a larger one goes on with.
static void more_work_never_makes_an_order_or_its_bound_worse(void **state) {
    static const uint64_t limits[] = { 1, 1000, 100000, 700000, 2500000, 10000000, 20000000, 40000000 };
    int count = scaled(18), i;
    tl_random random = { 616 };
    size_t k;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_graph graph;
        uint64_t peak = UINT64_MAX, bound = 0;
        if (i % 3 == 2) assert_int_equal(wide_graph(NULL, &random, random_count(&random, 20, i % 2 ? 60 : 600), &graph), TL_OK);
        else wire_cell(&random, random_count(&random, 40, 62), &graph);
        for (k = 0; k < sizeof limits / sizeof limits[0]; k++) {
            tl_order_desc desc = desc_of(&graph, 1);
            tl_order_report report;
            tl_plan plan;
            desc.work_limit = limits[k];
            report = plan_of(&desc, &plan);
            if (report.peak_bytes > peak || report.bound_bytes < bound)
                fail_msg("graph %d, work %llu: %llu and %llu, before %llu and %llu", i, (unsigned long long)limits[k],
                         (unsigned long long)report.peak_bytes, (unsigned long long)report.bound_bytes, (unsigned long long)peak,
                         (unsigned long long)bound);
            peak = report.peak_bytes;
            bound = report.bound_bytes;
            assert_true(report.work < limits[k] + limits[k] / 10 + 20000000);
            tl_free_plan(NULL, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

static int stop_at_once(const tl_order_progress *progress, void *user) {
    assert_true(progress->bound_bytes <= progress->peak_bytes);
    assert_true(progress->work <= progress->work_limit + 1000000);
    ++*(int *)user;
    return 1;
}

static void progress_stops_with_the_best_so_far(void **state) {
    tl_random random = { 617 };
    tl_graph graph;
    tl_order_desc desc;
    tl_order_report report;
    tl_plan plan;
    int calls = 0;
    (void)state;
    assert_int_equal(wide_graph(NULL, &random, 400, &graph), TL_OK);
    desc = desc_of(&graph, 1);
    desc.progress = stop_at_once;
    desc.user = &calls;
    report = plan_of(&desc, &plan);
    assert_int_equal(calls, 1);
    assert_is_valid(&graph, &plan, &report, "stopped");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- blocks --

static void no_allocation_of_an_order_is_in_two_blocks(void **state) {
    tl_random random = { 619 };
    int round, rounds = 60, cut = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_order_desc desc;
        tl_order_report report;
        tl_lifetimes lives;
        tl_plan plan;
        uint64_t largest;
        int32_t k;
        assert_int_equal(round % 2 ? wide_graph(NULL, &random, 30, &graph) : random_graph(NULL, &random, 20, &graph), TL_OK);
        largest = random_largest(&graph);
        desc = desc_of(&graph, round % 3 == 0);
        desc.live = 0;
        desc.work_limit = 200000;
        desc.alignment_bytes = (uint64_t)1 << 2 * (round % 4);
        desc.block_bytes = (largest + desc.alignment_bytes - 1) / desc.alignment_bytes * desc.alignment_bytes +
                           tl_next_random_below(&random, largest);
        report = plan_of(&desc, &plan);
        assert_true(plan.arena_bytes == report.arena_bytes && report.arena_bytes <= report.listing_arena_bytes);
        if (tl_find_lifetimes(&env, &graph, &plan, &lives)) fail_msg("%s", env.error.text);
        for (k = 0; k < lives.count && plan.block_count; k++) {
            const tl_plan_block *block = &plan.blocks[lives.items[k].block];
            assert_true(lives.items[k].offset >= block->offset);
            assert_true(lives.items[k].offset + lives.items[k].bytes <= block->offset + block->bytes);
        }
        for (k = 0; k < plan.block_count; k++) assert_true(plan.blocks[k].bytes <= desc.block_bytes);
        if (!plan.block_count) assert_true(plan.arena_bytes <= desc.block_bytes);
        cut += plan.block_count > 1;
        tl_free_lifetimes(&env, &lives);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%d orders, %d in several blocks\n", rounds, cut);
    assert_true(cut > rounds / 3);
}

// -- errors --

static void wrong_fields_are_named(void **state) {
    tl_env env = silent_env();
    tl_graph graph;
    tl_order_desc desc;
    tl_order_report report;
    tl_plan plan;
    (void)state;
    parse(branches, &graph);
    desc = desc_of(&graph, 2);
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_order: inference: must be 0 or 1");
    desc = desc_of(&graph, 1);
    desc.live = -1;
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_order: live: must be 0 or 1");
    desc = desc_of(&graph, 1);
    desc.alignment_bytes = 3;
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_ERROR_INVALID_ARG);
    desc.alignment_bytes = UINT64_C(1) << 31;
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_order: alignment_bytes: must be a power of two, at most 2^30");
    desc = desc_of(&graph, 1);
    desc.block_bytes = 99;
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_OK);     // without places there are no blocks
    tl_free_plan(&env, &plan);
    desc.live = 0;
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_string_equal(env.error.text, "tl_plan_order: block_bytes: an allocation of node 1 (a1) takes 100 bytes, a block has 99");
    desc.alignment_bytes = 128;
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_order: block_bytes: 99 bytes are less than the alignment, 128");
    assert_true(is_zero(&plan, sizeof plan) && is_zero(&report, sizeof report));
    OUTPUTS(&graph)[1].bytes = UINT64_MAX;
    desc = desc_of(&graph, 1);
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_ERROR_OVERFLOW);
    OUTPUTS(&graph)[1].bytes = UINT64_C(1) << 62;
    assert_int_equal(tl_plan_order(&env, &desc, &plan, &report), TL_ERROR_OVERFLOW);
    assert_string_equal(env.error.text, "tl_plan_order: graph: bytes, rounded up to the alignment, must fit 62 bits");
    assert_true(is_zero(&plan, sizeof plan) && is_zero(&report, sizeof report));
    assert_int_equal(tl_plan_order(NULL, &desc, &plan, NULL), TL_ERROR_OVERFLOW);
    tl_free_graph(NULL, &graph);
}

// Each allocation fails in turn, alone and with all later ones: no plan is left then.
static void an_allocation_that_fails_is_an_error(void **state) {
    tl_random random = { 618 };
    int k;
    (void)state;
    for (k = 0; k < 3; k++) {
        tl_graph graph;
        long at, step = 1;
        int once;
        assert_int_equal(wide_graph(NULL, &random, k < 2 ? 12 : 120, &graph), TL_OK);
        for (once = 0; once < 2; once++)
            for (at = 0; at >= 0; at += step) {
                failing_alloc f = { 0, 0, 0, 0 };
                tl_env env = failing_env(&f, at);
                tl_order_desc desc = desc_of(&graph, k != 1);
                tl_order_report report;
                tl_plan plan;
                tl_result result;
                f.fails_once = once;
                desc.live = k != 1;
                desc.work_limit = 300000;
                result = tl_plan_order(&env, &desc, &plan, &report);
                if (f.count <= at) at = -1 - step;
                assert_int_equal(result, at < 0 ? TL_OK : TL_ERROR_NO_MEMORY);
                assert_true(at < 0 || (is_zero(&plan, sizeof plan) && is_zero(&report, sizeof report)));
                tl_free_plan(&env, &plan);
                assert_int_equal(f.live, 0);
            }
        tl_free_graph(NULL, &graph);
    }
}

// -- public networks --

static void public_networks_of_30_nodes_are_proven(void **state) {
    static const char *const names[] = { "encoder2", "mlp8", "unit10", "unit20", "vgg16", "vgg16_rl" };
    size_t k;
    int inference;
    (void)state;
    for (k = 0; k < sizeof names / sizeof *names; k++) {
        char path[64];
        char *text;
        tl_graph graph;
        snprintf(path, sizeof path, "models/%s.tlg", names[k]);
        text = read_reference("public_networks_of_30_nodes_are_proven", path, NULL);
        if (!text) skip();
        parse(text, &graph);
        free(text);
        assert_true(graph.node_count <= 30);
        for (inference = 0; inference < 2; inference++) {
            tl_order_desc desc = desc_of(&graph, inference);
            tl_plan plan;
            tl_order_report report = plan_of(&desc, &plan);
            assert_true(report.proven);
            assert_is_valid(&graph, &plan, &report, names[k]);
            tl_free_plan(NULL, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_branch_ends_before_the_next_begins),
        cmocka_unit_test(what_may_run_in_place_runs_after_the_other_readers),
        cmocka_unit_test(a_loss_is_reversed_before_the_forwards_of_another),
        cmocka_unit_test(nodes_that_nobody_needs_do_not_run),
        cmocka_unit_test(a_graph_of_inputs_has_no_steps),
        cmocka_unit_test(places_come_with_the_plan),
        cmocka_unit_test(where_gaps_cost_more_the_listing_stays),
        cmocka_unit_test(every_order_of_small_graphs_takes_as_much),
        cmocka_unit_test(other_orders_take_no_less_at_30_to_5000_nodes),
        cmocka_unit_test(more_work_never_makes_an_order_or_its_bound_worse),
        cmocka_unit_test(progress_stops_with_the_best_so_far),
        cmocka_unit_test(no_allocation_of_an_order_is_in_two_blocks),
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(an_allocation_that_fails_is_an_error),
        cmocka_unit_test(public_networks_of_30_nodes_are_proven),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
