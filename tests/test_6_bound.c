// [6] REMAT: lower bounds on small graphs: the table of one span against all choices, the bound against the optimum.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"

enum { MOST_THINGS = 10, MOST_NODES = 7 };

// The least scaled cost of span 0 of a state with one instant, by all sets of held things and all sets of nodes that
// run: the rules (1) to (6) of the relaxation, word by word. TLI_BOUND_INFINITE = no choice keeps them.
static int64_t least_of_all_choices(const tli_bound *model, const tli_bound_state *s) {
    const tl_graph *graph = model->graph;
    uint8_t must[MOST_THINGS];
    int64_t best = TLI_BOUND_INFINITE;
    uint32_t held, runs;
    int32_t t, id, i, ran_by;
    assert_true(model->item_count <= MOST_THINGS && graph->node_count <= MOST_NODES);
    tli_bound_mark_span(model, s, 0, must);
    ran_by = tli_bound_ran_by(&model->events[s->at[0]]);
    for (held = 0; held < (uint32_t)1 << model->item_count; held++) {
        int64_t bytes = 0;
        int fits = 1;
        for (t = 0; t < model->item_count; t++) {
            int is_held = (int)(held >> t & 1);
            if (s->fixed[t] == TLI_BOUND_KEPT) fits &= is_held;
            else if (is_held) bytes += model->bytes[t];
        }
        if (!fits || bytes > s->room[0]) continue;
        for (runs = 0; runs < (uint32_t)1 << graph->node_count; runs++) {
            int64_t cost = 0;
            int valid = 1;
            for (t = 0; t < model->item_count; t++)
                if (must[t]) valid &= (int)((held >> t | runs >> model->maker[t]) & 1);
            for (id = 0; id < graph->node_count; id++) {
                const tl_node *node = &graph->nodes[id];
                if (!(runs >> id & 1)) continue;
                if (model->runs_by[id] <= ran_by) cost += model->cost[id];
                for (i = node->first_input; i < node->first_input + node->input_count; i++) {
                    int32_t input = model->item_of[graph->inputs[i].tensor];
                    if (input >= 0) valid &= (int)((held >> input | runs >> model->maker[input]) & 1);
                }
            }
            if (valid && cost < best) best = cost;
        }
    }
    return best;
}

// Events of a graph within a budget, as far as working sets fit it.
static void list_events(tli_bound *model, uint64_t budget) {
    int32_t p;
    for (p = 0; p < model->order_count; p++) {
        uint64_t taken = model->sets[p] + model->held[p];
        model->room[p] = budget > taken ? budget - taken : 0;
    }
    model->event_count = 0;
    model->steps_left = TLI_BOUND_WALK;
    tli_bound_list_events(model, budget, 0);
}

// Compare at every event and at several budgets; returns how many spans cost something, and adds up calls.
static int compare_spans(const tl_graph *graph, int *calls) {
    tli_bound model;
    tli_bound_state *s;
    uint64_t work = 0, floor, more;
    int32_t node, event;
    int paid = 0;
    memset(&model, 0, sizeof model);
    model.graph = graph;
    model.work = &work;
    model.work_limit = model.table_limit = UINT64_MAX;
    assert_int_equal(tli_bound_open(&model, 0), TL_OK);
    if (model.item_count <= MOST_THINGS && model.item_count && model.order_count) {
        assert_int_equal(tli_bound_open_net(&model), TL_OK);
        s = tli_bound_add_state(&model, 1);
        floor = tli_bound_find_floor(&model, 0, 0, &node);
        for (more = 0; more < 100; more += 1 + more) {
            list_events(&model, floor + more);
            for (event = 0; event < model.event_count; event++) {
                int64_t least, found;
                int32_t is_exact = 1;
                s->count = 0;
                tli_bound_add_instant(&model, s, event);
                memset(s->mu, 0, (size_t)model.item_count * sizeof *s->mu);
                least = least_of_all_choices(&model, s);
                found = tli_bound_tabulate_span(&model, s, 0, &is_exact);
                assert_int_equal(is_exact, 1);
                assert_int_equal(found, least);
                assert_true(tli_bound_solve_span(&model, s, 0) <= least);
                paid += least > 0;
                *calls += least > 0 && model.events[event].call >= 0;
            }
        }
        tli_bound_free_state(&model, s);
    }
    tli_bound_free(&model);
    return paid;
}

static void the_table_of_a_span_is_its_least_cost(void **state) {
    tl_random random = { 66 };
    int i, paid = 0, calls = 0;
    (void)state;
    for (i = 0; i < scaled(1500); i++) {
        tl_graph graph;
        if (random_effect_graph(NULL, &random, MOST_NODES - 1, i % 3 * 20, &graph)) fail_msg("%s", "no graph");
        paid += compare_spans(&graph, &calls);
        tl_free_graph(NULL, &graph);
    }
    printf("%d spans in which something is made again, %d of them after a call\n", paid, calls);
    assert_true(paid > i * 2 / 3 && (is_thinned() || calls > i / 100));
}

// The cut of a span is remembered by its capacities: a second time it has the same value, slope and source side, and counts
// as the same work; other multipliers are another cut.
static void a_cut_is_remembered_as_it_was(void **state) {
    tl_random random = { 67 };
    int i, many = 0;
    (void)state;
    for (i = 0; i < scaled(300); i++) {
        tl_graph graph;
        tli_bound model;
        tli_bound_state *s;
        uint64_t work = 0, floor;
        int32_t node, event, k, t;
        if (random_effect_graph(NULL, &random, 40, i % 3 * 20, &graph)) fail_msg("%s", "no graph");
        memset(&model, 0, sizeof model);
        model.graph = &graph;
        model.work = &work;
        model.work_limit = UINT64_MAX;
        assert_int_equal(tli_bound_open(&model, 0), TL_OK);
        assert_int_equal(tli_bound_open_net(&model), TL_OK);
        s = tli_bound_add_state(&model, 1);
        floor = tli_bound_find_floor(&model, 0, 0, &node);
        list_events(&model, floor + tl_next_random_below(&random, floor + 1));
        for (event = 0; event < model.event_count; event++) {
            int64_t values[3], slopes[3];
            uint64_t works[3];
            s->count = 0;
            tli_bound_add_instant(&model, s, event);
            s->lambda[0] = (int64_t)tl_next_random_below(&random, 1000) << 20;
            for (t = 0; t < model.item_count; t++) s->mu[t] = (int64_t)tl_next_random_below(&random, 1000) << 30;
            for (k = 0; k < 3; k++) {
                uint64_t before = work;
                if (k == 2) memset(model.cuts, 0, (size_t)model.cut_count * (size_t)model.cut_bytes);
                values[k] = tli_bound_solve_span(&model, s, 0);
                slopes[k] = tli_bound_slope(&model, s, 0);
                works[k] = work - before;
            }
            for (k = 1; k < 3; k++) {
                assert_int_equal(values[k], values[0]);
                assert_int_equal(slopes[k], slopes[0]);
                assert_int_equal(works[k], works[0]);
            }
            many += works[0] > 0;
        }
        tli_bound_free_state(&model, s);
        tli_bound_free(&model);
        tl_free_graph(NULL, &graph);
    }
    assert_true(many > i);
}

// A bound that reaches the cost of a plan ends there: with the same value, and never with more work.
static void a_bound_ends_at_the_cost_of_a_plan(void **state) {
    tl_random random = { 68 };
    int i, sooner = 0, reached = 0;
    (void)state;
    for (i = 0; i < scaled(60); i++) {
        tl_graph graph;
        tl_plan plan;
        tl_remat_desc desc;
        tli_remat_watch watch;
        uint64_t budget, whole, bound = 0, work = 0, least = 0, without = 0;
        if (random_effect_graph(NULL, &random, 30, 0, &graph)) fail_msg("%s", "no graph");
        assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &plan), TL_OK);
        budget = plan.peak_bytes - plan.peak_bytes / 5;
        tl_free_plan(NULL, &plan);
        memset(&desc, 0, sizeof desc);
        memset(&watch, 0, sizeof watch);
        watch.desc = &desc;
        if (!tli_remat_bound(NULL, &graph, budget, 0, &watch, 3000000, &whole, &without)) {
            watch.target = whole;
            assert_int_equal(tli_remat_bound(NULL, &graph, budget, 0, &watch, 3000000, &bound, &work), TL_OK);
            assert_int_equal(bound, whole);
            assert_true(work <= without);
            sooner += 2 * work < without;
            watch.target = UINT64_MAX;
            work = 0;
            assert_int_equal(tli_remat_bound(NULL, &graph, budget, 0, &watch, 3000000, &least, &work), TL_OK);
            assert_int_equal(least, whole);
            reached++;
        }
        tl_free_graph(NULL, &graph);
    }
    printf("%d of %d bounds in half of the work or less\n", sooner, reached);
    assert_true(reached > 0 && sooner > 0);
}

// The first node may compute without an input; what it makes is dropped and made again like everything else.
static void the_table_counts_a_first_node_without_inputs(void **state) {
    static const char text[] =
        "tlg 1\n"
        "node 0 a make fwd=5 bwd=1 out=4 needs=none in=-\n"
        "node 1 b relu fwd=3 bwd=1 out=4 needs=in in=0\n"
        "node 2 c relu fwd=2 bwd=1 out=4 needs=in in=1 bwork=100\n"
        "node 3 d add fwd=1 bwd=1 out=4 needs=in in=2,0\n"
        "node 4 e relu fwd=1 bwd=1 out=4 needs=in in=3\n";
    tl_graph graph;
    tl_env env = silent_env();
    int calls = 0;
    (void)state;
    if (tl_parse_graph(&env, text, sizeof text - 1, &graph)) fail_msg("%s", env.error.text);
    assert_int_equal(compare_spans(&graph, &calls), 3);
    tl_free_graph(&env, &graph);
}

// a runs once only, and its own backward, the last one, reads what it makes: it is there while c has its backward.
static void what_cannot_be_made_again_is_held(void **state) {
    static const char text[] =
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a norm fwd=5 bwd=1 out=50 needs=out in=0 %s\n"
        "node 2 b relu fwd=3 bwd=1 out=4 needs=none in=1\n"
        "node 3 c relu fwd=2 bwd=1 out=4 needs=none in=2 bwork=60\n";
    static const uint64_t floors[2][2] = { { 104, 104 }, { 122, 104 } };    // inputs, gradients, scratch; and a
    int once, has_host;
    (void)state;
    for (once = 0; once < 2; once++)
        for (has_host = 0; has_host < 2; has_host++) {
            tl_graph graph;
            tl_env env = silent_env();
            char line[sizeof text + 8];
            uint64_t floor, work = 0;
            int32_t node;
            snprintf(line, sizeof line, text, once ? "once" : "");
            if (tl_parse_graph(&env, line, strlen(line), &graph)) fail_msg("%s", env.error.text);
            assert_int_equal(tli_remat_floor(NULL, &graph, 0, has_host, &floor, &node, &work), TL_OK);
            assert_int_equal(floor, floors[once][has_host]);
            tl_free_graph(&env, &graph);
        }
}

static uint64_t bound_of(const tl_graph *graph, uint64_t budget, uint64_t work_limit, tl_result *result) {
    tl_remat_desc desc;
    tli_remat_watch watch;
    uint64_t bound = 0, work = 0;
    memset(&desc, 0, sizeof desc);
    memset(&watch, 0, sizeof watch);
    watch.desc = &desc;
    watch.is_near = 1;
    *result = tli_remat_bound(NULL, graph, budget, 0, &watch, work_limit, &bound, &work);
    return bound;
}

// At six budgets from the floor up: the bound is never above the optimum of the exact search and refuses nothing that has
// a plan. Returns how often it equals the optimum, of *planned budgets that have one; *rises: how often it is above that
// of the budget before, which with more work it would not be.
static int compare_with_optimum(const tl_graph *graph, int *planned, int *rises) {
    uint64_t floor, last = UINT64_MAX, work = 0;
    int32_t node, k, equal = 0;
    tl_plan plan;
    if (tl_plan_keep_all(NULL, graph, 0, &plan)) return 0;
    assert_int_equal(tli_remat_floor(NULL, graph, 0, 0, &floor, &node, &work), TL_OK);
    assert_true(floor <= plan.peak_bytes);
    for (k = 0; k < 6; k++) {
        uint64_t budget = floor + (plan.peak_bytes - floor) * (uint64_t)k / 6, cost, least, bound, early;
        tli_steps steps = tli_steps_of(NULL);
        tl_remat_desc desc;
        tli_remat_watch watch;
        tl_result result, found, soon;
        int32_t proven;
        memset(&desc, 0, sizeof desc);
        memset(&watch, 0, sizeof watch);
        watch.desc = &desc;
        work = 0;
        result = tli_remat_exact(NULL, graph, budget, 0, &watch, 20000000, &steps, &cost, &least, &proven, &work);
        tli_release(NULL, steps.steps);
        bound = bound_of(graph, budget, 300000, &found);
        early = bound_of(graph, budget, 3000, &soon);
        *rises += bound > last;
        last = bound;
        if (!proven || result) continue;
        ++*planned;
        assert_int_equal(found, TL_OK);
        assert_int_equal(soon, TL_OK);
        assert_true(bound <= cost && early <= cost);
        equal += bound == cost;
    }
    tl_free_plan(NULL, &plan);
    return equal;
}

static void the_bound_is_never_above_the_optimum(void **state) {
    tl_random random = { 13 };
    int i, equal = 0, planned = 0, rises = 0;
    (void)state;
    for (i = 0; i < scaled(700); i++) {
        tl_graph graph;
        if (random_effect_graph(NULL, &random, 3 + i % 8, i % 3 * 20, &graph)) fail_msg("%s", "no graph");
        equal += compare_with_optimum(&graph, &planned, &rises);
        tl_free_graph(NULL, &graph);
    }
    printf("%d of %d bounds equal the optimum, %d rise with the budget\n", equal, planned, rises);
    assert_true(planned > 0 && (is_thinned() || (planned > 5 * i && 100 * equal > 95 * planned)));
    assert_true(is_thinned() || 1000 * rises < planned);
}

// Within 566 bytes F4 and F5 are made again before B 6 in every schedule, and F4 leaves less room than any backward: the bound is
// 163 without that. What F4 of the second graph saves is among the bytes of its call, and takes no room beside it.
static void calls_that_every_schedule_makes_are_instants(void **state) {
    static const struct { const char *text; uint64_t budget, optimum; } rows[] = {
        { "tlg 1\n"
          "node 0 n0 input fwd=0 bwd=0 out=4 needs=none in=-\n"
          "node 1 n1 conv fwd=21 bwd=13 out=0 needs=none in=0,0,0 bwork=5 once\n"
          "node 2 n2 input fwd=0 bwd=0 out=104,6,25,4 needs=none in=-\n"
          "node 3 n3 ce fwd=18 bwd=11 out=1,0 needs=in1 in=2.1,2.0,2.2\n"
          "node 4 n4 relu fwd=13 bwd=22 out=195 needs=in in=3.0,1,3.1 fwork=13\n"
          "node 5 n5 conv fwd=27 bwd=8 out=18 needs=in in=4\n"
          "node 6 n6 conv fwd=17 bwd=0 out=1,2 needs=out0 in=5,3.0,4 bwork=18 keep\n", 566, 207 },
        { "tlg 1\n"
          "node 0 n0 input fwd=0 bwd=0 out=17 needs=none in=-\n"
          "node 1 n1 conv fwd=8 bwd=18 out=13 needs=in,out in=0,0 saved=19 once\n"
          "node 2 n2 relu fwd=20 bwd=30 out=10,0 needs=none in=1,0,1 once\n"
          "node 3 n3 input fwd=0 bwd=0 out=4 needs=none in=-\n"
          "node 4 n4 conv fwd=15 bwd=8 out=18 needs=in in=3,3 saved=12 fwork=18 swork=5\n"
          "node 5 n5 add fwd=8 bwd=24 out=18 needs=out in=4,0 fwork=9 inplace=0 once\n", 76, 146 }
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_result result;
        if (tl_parse_graph(&env, rows[i].text, strlen(rows[i].text), &graph)) fail_msg("%s", env.error.text);
        assert_int_equal(bound_of(&graph, rows[i].budget, 300000, &result), rows[i].optimum);
        assert_int_equal(result, TL_OK);
        tl_free_graph(&env, &graph);
    }
}

// Long chains in few bytes: the bound counts how often all must run, exactly where costs are equal.
static void long_chains_in_few_bytes_run_again_and_again(void **state) {
    int slots, unequal;
    (void)state;
    for (unequal = 0; unequal < 2; unequal++)
        for (slots = 3; slots < 9; slots += is_slow() ? 6 : is_thinned() ? 3 : 1) {
            char text[16384] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n";
            tl_env env = silent_env();
            tl_remat_desc desc;
            tl_graph graph;
            tl_plan plan;
            tl_result result;
            uint64_t bound;
            int i;
            for (i = 1; i <= 200; i++)
                snprintf(text + strlen(text), sizeof text - strlen(text),
                         "node %d n%d relu fwd=%d bwd=1 out=100 needs=in in=%d\n", i, i, unequal ? 50 + i * 37 % 100 : 100, i - 1);
            if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
            memset(&desc, 0, sizeof desc);
            desc.graph = &graph;
            desc.budget_bytes = 304 + 100 * (uint64_t)slots;
            if (tl_plan_remat(&env, &desc, &plan, NULL)) fail_msg("%s", env.error.text);
            bound = bound_of(&graph, desc.budget_bytes, 300000, &result);
            assert_int_equal(result, TL_OK);
            assert_true(unequal || bound == plan.cost);
            assert_true(bound <= plan.cost && (double)bound > 0.95 * (double)plan.cost);
            tl_free_plan(&env, &plan);
            tl_free_graph(&env, &graph);
        }
}

// B k reads what nodes k - 1 and k - 3 make, and has a little more room than B (k - 1): it is the moment of pivot k - 1, and reads
// a region two before that one.
static void what_a_backward_reads_itself_takes_a_slot(void **state) {
    enum { COUNT = 12 };
    static int32_t path[COUNT + 1], moment[COUNT + 1], region[COUNT + 1], index[COUNT + 1];
    static uint64_t slots[COUNT + 1], costs[COUNT + 1];
    char text[2048] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n";
    tl_env env = silent_env();
    tl_graph graph;
    tli_bound model;
    tli_runs r;
    uint64_t work = 0;
    int i, pivots = 0;
    (void)state;
    for (i = 1; i <= COUNT; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "node %d n%d f fwd=10 bwd=1 out=100 needs=in in=%d,%d\n", i, i, i - 1, i > 3 ? i - 3 : 0);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    memset(&model, 0, sizeof model);
    memset(&r, 0, sizeof r);
    model.graph = &graph;
    model.work = &work;
    assert_int_equal(tli_bound_open(&model, 0), TL_OK);
    for (i = 0; i < model.order_count; i++) model.room[i] = 250 - (uint64_t)i;
    r.model = &model;
    r.least = 100;
    r.path = path; r.moment = moment; r.region = region; r.index = index; r.all_slots = slots; r.costs = costs;
    tli_runs_find_path(&r);
    assert_int_equal(r.count, COUNT - 1);       // what the last one makes no backward reads
    tli_runs_find_moments(&r);
    tli_runs_try(&r);
    for (i = 0; i < r.count; i++) {
        if (moment[i] < 0) continue;
        pivots++;
        assert_int_equal(slots[i], path[i] > 2 ? 3 : 2);
    }
    assert_int_equal(pivots, COUNT - 1);
    for (i = 0; i < model.order_count; i++) model.room[i] = 250 + (uint64_t)i;    // pivot 9 wants B 12, too
    tli_runs_find_moments(&r);
    assert_int_equal(moment[0], 0);
    assert_int_equal(moment[1], 1);
    assert_int_equal(moment[2], -1);
    tli_bound_free(&model);
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_a_span_is_its_least_cost),
        cmocka_unit_test(the_table_counts_a_first_node_without_inputs),
        cmocka_unit_test(a_cut_is_remembered_as_it_was),
        cmocka_unit_test(a_bound_ends_at_the_cost_of_a_plan),
        cmocka_unit_test(what_cannot_be_made_again_is_held),
        cmocka_unit_test(the_bound_is_never_above_the_optimum),
        cmocka_unit_test(calls_that_every_schedule_makes_are_instants),
        cmocka_unit_test(long_chains_in_few_bytes_run_again_and_again),
        cmocka_unit_test(what_a_backward_reads_itself_takes_a_slot),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
