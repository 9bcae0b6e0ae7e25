// [9] COMPILE: ranks against exhaustive searches: every cut of small graphs, and every body of small stages.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/brute_stage.h"

enum { MOST_RANKS = 3, MOST_NODES = 8 };

// -- cases --

static tl_result small_node(tl_env *env, tl_random *random, int is_input, tl_graph *graph) {
    tl_node_desc desc;
    tl_tensor inputs[2];
    uint64_t bytes[2];
    char needs[64];
    int32_t k, id = graph->node_count;
    memset(&desc, 0, sizeof desc);
    desc.op = is_input ? "input" : "op";
    desc.inputs = inputs;
    desc.input_count = is_input ? 0 : random_count(random, 1, 2);
    desc.output_bytes = bytes;
    desc.output_count = random_chance(random, 85) ? 1 : 2;
    for (k = 0; k < 2; k++) bytes[k] = (uint64_t)random_count(random, 1, 40);
    for (k = 0; k < desc.input_count; k++) {
        inputs[k].node = !k ? id - 1 : random_count(random, 0, id - 1);
        inputs[k].output = random_count(random, 0, graph->nodes[inputs[k].node].output_count - 1);
    }
    if (is_input) return tl_add_node(env, graph, &desc, NULL);
    random_needs(random, desc.input_count, desc.output_count, needs);
    desc.needs = needs;
    desc.fwd_cost = (uint64_t)random_count(random, 1, 30);
    desc.bwd_cost = (uint64_t)random_count(random, 1, 60);
    desc.param_bytes = (uint64_t)random_count(random, 0, 10);
    if (random_chance(random, 20)) desc.saved_bytes = (uint64_t)random_count(random, 1, 30);
    if (random_chance(random, 20)) desc.fwork_bytes = (uint64_t)random_count(random, 1, 20);
    if (random_chance(random, 20)) desc.bwork_bytes = (uint64_t)random_count(random, 1, 20);
    return tl_add_node(env, graph, &desc, NULL);
}

// A graph of a few nodes, each of which reads the one above, and a pipeline of it without a budget.
typedef struct small_case {
    tl_env        env;
    tl_random     random;
    tl_graph      graph;
    tl_link       link;
    tl_ranks_desc desc;
} small_case;

static void open_case(small_case *c, uint64_t seed, int32_t least_ranks) {
    int32_t count, i;
    memset(c, 0, sizeof *c);
    c->random.state = seed;
    tl_init_graph(&c->graph);
    count = random_count(&c->random, 4, MOST_NODES);
    for (i = 0; i < count; i++)
        assert_int_equal(small_node(&c->env, &c->random, i == 0, &c->graph), TL_OK);
    c->desc.graph = &c->graph;
    c->desc.rank_count = random_count(&c->random, least_ranks, MOST_RANKS);
    c->desc.micro_batch_count = random_count(&c->random, 1, 4);
    c->desc.pipeline = random_chance(&c->random, 60) ? TL_PIPELINE_1F1B : TL_PIPELINE_GPIPE;
    c->desc.gradient_ratio = 1;
    c->desc.work_limit = 20000000;
    if (random_chance(&c->random, 50)) {
        c->link.bytes_per_second = 1000000000 * (uint64_t)random_count(&c->random, 1, 8);
        c->desc.link = &c->link;
    }
}

static void close_case(small_case *c) { tl_free_graph(&c->env, &c->graph); }

// -- every cut --

static int next_ends(int32_t *ends, int32_t ranks, int32_t nodes) {
    int32_t k, i;
    for (k = ranks - 2; k >= 0 && ends[k] == nodes - (ranks - 1 - k); k--) { }
    if (k < 0) return 0;
    ends[k]++;
    for (i = k + 1; i < ranks - 1; i++) ends[i] = ends[i - 1] + 1;
    return 1;
}

// The least cost at any cut; UINT64_MAX: none fits.
static uint64_t find_best_cut(small_case *c, uint64_t budget) {
    int32_t ends[MOST_RANKS], k, nodes = c->graph.node_count, ranks = c->desc.rank_count;
    tl_ranks_desc desc = c->desc;
    uint64_t best = UINT64_MAX;
    for (k = 0; k < ranks; k++) ends[k] = k < ranks - 1 ? k + 1 : nodes;
    desc.ends = ends;
    desc.budget_bytes = budget;
    do {
        tl_compiled_ranks ranked;
        tl_result result = tl_compile_ranks(&c->env, &desc, &ranked);
        if (!result && ranked.cost < best) best = ranked.cost;
        if (result != TL_ERROR_INVALID_ARG && result != TL_ERROR_INFEASIBLE) assert_int_equal(result, TL_OK);
        tl_free_compiled_ranks(&c->env, &ranked);
    } while (next_ends(ends, ranks, nodes));
    return best;
}

// Budgets: none, then parts of what every rank needs at most without one.
static uint64_t budget_of(uint64_t most, int k) { return k ? most * (uint64_t)(11 - 2 * k) / 10 : 0; }

enum { BUDGETS = 5 };
// What may be missed yet, of the budgets that a cut fits, in 1000; and the worst cost, in percent of the least.
enum { MISSED_CUTS_PER_1000 = 15, WORST_CUT_PERCENT = 111 };

static void cuts_are_compared_with_every_cut(void **state) {
    int times = scaled(60), round, k, fits = 0, equal = 0, missed = 0;
    double worst = 1, sum = 0;
    (void)state;
    for (round = 0; round < times; round++) {
        small_case c;
        tl_compiled_ranks ranked;
        uint64_t most = 0;
        open_case(&c, (uint64_t)round + 1, 2);
        assert_int_equal(tl_compile_ranks(&c.env, &c.desc, &ranked), TL_OK);
        for (k = 0; k < ranked.rank_count; k++) {
            uint64_t bytes = ranked.ranks[k].base_bytes + ranked.ranks[k].compiled.plan.arena_bytes;
            if (bytes > most) most = bytes;
        }
        tl_free_compiled_ranks(&c.env, &ranked);
        for (k = 0; k < BUDGETS; k++) {
            tl_ranks_desc desc = c.desc;
            uint64_t best = find_best_cut(&c, budget_of(most, k));
            tl_result result;
            desc.budget_bytes = budget_of(most, k);
            result = tl_compile_ranks(&c.env, &desc, &ranked);
            if (result) assert_int_equal(result, TL_ERROR_INFEASIBLE);
            else assert_true(best <= ranked.cost);
            fits += best != UINT64_MAX;
            missed += result && best != UINT64_MAX;
            equal += !result && ranked.cost == best;
            if (!result) sum += (double)ranked.cost / (double)best;
            if (!result && (double)ranked.cost / (double)best > worst) worst = (double)ranked.cost / (double)best;
            tl_free_compiled_ranks(&c.env, &ranked);
        }
        close_case(&c);
    }
    print_message("cuts: %d of %d budgets that a cut fits have the least cost, %d are missed; worst ratio %.3f, average %.4f\n",
                  equal, fits, missed, worst, sum / (double)(fits - missed));
    if (is_thinned()) return;       // too few for shares
    assert_true(missed * 1000 <= fits * MISSED_CUTS_PER_1000);
    assert_true(worst * 100 <= WORST_CUT_PERCENT);
}

// -- every body of a stage --

static void list_events(const small_case *c, int32_t rank, int32_t batches, tli_rank_events *list) {
    tl_pipeline_desc pipeline;
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.kind = c->desc.pipeline;
    pipeline.rank_count = c->desc.rank_count;
    pipeline.micro_batch_count = list->micro_batches = batches;
    list->count = tl_count_pipeline_events(&pipeline);
    list->events = (tl_pipeline_event *)malloc((size_t)list->count * sizeof *list->events);
    assert_non_null(list->events);
    assert_int_equal(tl_list_pipeline(NULL, &pipeline, rank, list->events), TL_OK);
}

// A search for the plan of one rank, as tl_compile_ranks has it.
static void open_search(small_case *c, int32_t rank, const tl_rank_plan *plan, int32_t *starts, tli_rank_search *s) {
    const tl_graph *graph = plan->compiled.graph;
    int32_t id, few = plan->in_flight_count + 4;
    memset(s, 0, sizeof *s);
    starts[0] = 0;
    starts[1] = graph->node_count;
    s->env = &c->env;
    s->desc = &c->desc;
    s->graph = graph;
    s->chunks.count = 1;
    s->chunks.starts = starts;
    s->in_flight = plan->in_flight_count;
    s->work_limit = 1000000;
    list_events(c, rank, c->desc.micro_batch_count, &s->all);
    list_events(c, rank, few < c->desc.micro_batch_count ? few : c->desc.micro_batch_count, &s->probe);
    s->messages = (uint8_t *)calloc((size_t)(2 * graph->node_count + 1 + graph->tensor_count), 1);
    assert_non_null(s->messages);
    s->ran = s->messages + graph->node_count;
    s->keep = s->ran + graph->node_count + 1;
    for (id = 0; id < graph->node_count; id++) s->messages[id] = tli_find_message(&plan->compiled, id);
}

static void close_search(tli_rank_search *s) {
    free(s->all.events);
    free(s->probe.events);
    free(s->messages);
}

// The least cost of a micro-batch that the search finds; UINT64_MAX: nothing that fits. least: the arena that it says would do.
static uint64_t search_room(tli_rank_search *s, uint64_t room, uint64_t *least) {
    uint64_t cost;
    int32_t i;
    s->room = room;
    s->least = UINT64_MAX;
    s->plan_count = s->has_best = 0;
    tli_pool_init(&s->pool, s->env, TLI_POOL_BYTES);
    s->bound_cost = tli_find_least_cost(s->graph, s->desc->inference, s->ran);
    assert_int_equal(tli_search_rank(s), TL_OK);
    cost = s->has_best ? s->best_cost : UINT64_MAX;
    tl_free_plan(s->env, &s->best);
    tl_free_graph(s->env, &s->turn);
    tli_pool_clear(&s->pool);
    for (i = 0; i < s->plan_count; i++) tl_free_plan(s->env, &s->plans[i]);
    *least = s->least;
    return cost;
}

// The arena of a body of the exhaustive search, whose live bytes must be what that has counted.
static uint64_t place_point(const tli_rank_search *s, const brute_stage *b, const stage_point *point) {
    tl_step steps[256];
    tli_body body;
    tl_plan plan;
    tl_places_desc places;
    int32_t ends[2];
    uint64_t arena;
    body.steps = steps;
    body.ends = ends;
    body.part_count = 2;
    body.step_count = ends[1] = brute_stage_body(b, point, steps, &ends[0]);
    assert_int_equal(tli_interleave_measured(s, &body, &s->all, &plan), TL_OK);
    assert_int_equal(plan.peak_bytes, point->bytes);
    assert_int_equal(tli_sum_body(s->graph, &body), point->cost);
    memset(&places, 0, sizeof places);
    places.graph = s->graph;
    places.work_limit = s->work_limit;
    assert_int_equal(tl_plan_places(s->env, &places, &plan, NULL), TL_OK);
    arena = plan.arena_bytes;
    tl_free_plan(s->env, &plan);
    return arena;
}

typedef struct body_counts {
    int    stages, large;
    int    budgets, equal, cheaper, missed;     // that some body fits by live bytes
    int    beaten, beaten_missed;               // of those that are not equal: the best body has places that fit, too
    double worst, sum, worst_least;
} body_counts;

static void compare_point(tli_rank_search *s, const brute_stage *b, int32_t at, body_counts *n) {
    const stage_point *point = &b->points[at];
    uint64_t least, cost = search_room(s, point->bytes, &least), arena;
    double ratio = cost == UINT64_MAX ? 0 : (double)cost / (double)point->cost;
    n->budgets++;
    n->equal += cost == point->cost;
    n->cheaper += cost < point->cost;
    n->missed += cost == UINT64_MAX;
    if (ratio > 0) n->sum += ratio;
    if (ratio > n->worst) n->worst = ratio;
    if (!at && (double)least / (double)point->bytes > n->worst_least) n->worst_least = (double)least / (double)point->bytes;
    arena = place_point(s, b, point);
    if (cost <= point->cost || arena > point->bytes) return;
    n->beaten++;
    n->beaten_missed += cost == UINT64_MAX;
    if (getenv("VERBOSE"))
        print_message("%d nodes, %d in flight, %d of %d: %llu bytes, cost %lld, least %llu\n", (int)s->graph->node_count, (int)s->in_flight,
                      (int)at, (int)b->point_count, (unsigned long long)point->bytes, (long long)(cost - point->cost), (unsigned long long)point->cost);
}

// Of the budgets that a body fits, in 1000: those that must have the least cost, and that may have no plan.
enum { EQUAL_BODIES_PER_1000 = 915, MISSED_BODIES_PER_1000 = 6, WORST_BODY_PERCENT = 131 };

static void plans_of_stages_are_compared_with_every_body(void **state) {
    int times = scaled(120), round;
    body_counts n;
    (void)state;
    memset(&n, 0, sizeof n);
    for (round = 0; round < times; round++) {
        small_case c;
        tl_compiled_ranks ranked;
        int32_t rank, at;
        open_case(&c, (uint64_t)round + 1000001, 1);
        assert_int_equal(tl_compile_ranks(&c.env, &c.desc, &ranked), TL_OK);
        for (rank = 0; rank < ranked.rank_count; rank++) {
            tli_rank_search s;
            int32_t starts[2];
            brute_stage b;
            open_search(&c, rank, &ranked.ranks[rank], starts, &s);
            n.stages++;
            if (brute_stage_solve(&b, s.graph, s.all.events, s.all.count, c.desc.micro_batch_count)) {
                assert_true(b.point_count > 0);
                for (at = 0; at < b.point_count; at++) compare_point(&s, &b, at, &n);
            } else n.large++;
            brute_stage_free(&b);
            close_search(&s);
        }
        tl_free_compiled_ranks(&c.env, &ranked);
        close_case(&c);
    }
    print_message("bodies: %d stages, %d more too large; of %d budgets %d have the least cost, %d less, %d no plan; "
                  "%d where a body fits with places, %d of them no plan; worst ratio %.3f, average %.4f, least bytes %.3f times\n",
                  n.stages - n.large, n.large, n.budgets, n.equal, n.cheaper, n.missed, n.beaten, n.beaten_missed, n.worst,
                  n.sum / (double)(n.budgets - n.missed), n.worst_least);
    assert_int_equal(n.cheaper, 0);
    if (is_thinned()) return;       // too few for shares
    assert_true(n.equal * 1000 >= n.budgets * EQUAL_BODIES_PER_1000);
    assert_true(n.missed * 1000 <= n.budgets * MISSED_BODIES_PER_1000);
    assert_true(n.worst * 100 <= WORST_BODY_PERCENT);
}

// -- what nothing wants --

// An input, a node that nobody reads and that has no gradient, and one that has.
static void open_unwanted(small_case *c, int keep) {
    const uint64_t bytes = 8;
    const tl_tensor input = { 0, 0 };
    tl_node_desc desc;
    int32_t id;
    memset(c, 0, sizeof *c);
    tl_init_graph(&c->graph);
    for (id = 0; id < 3; id++) {
        memset(&desc, 0, sizeof desc);
        desc.op = id ? "op" : "input";
        desc.inputs = &input;
        desc.input_count = id > 0;
        desc.output_bytes = &bytes;
        desc.output_count = 1;
        desc.no_grad = id == 1;
        desc.fwork_bytes = id == 1 ? 100 : 0;
        desc.fwd_cost = id ? 10 : 0;
        desc.bwd_cost = id == 2 ? 20 : 0;
        desc.keep = keep && id == 2;
        assert_int_equal(tl_add_node(&c->env, &c->graph, &desc, NULL), TL_OK);
    }
    c->desc.graph = &c->graph;
    c->desc.micro_batch_count = 3;
}

static void a_stage_in_which_nothing_is_wanted_has_an_empty_plan(void **state) {
    static const int32_t ends[] = { 2, 3 };
    small_case c;
    tl_compiled_ranks ranked;
    (void)state;
    open_unwanted(&c, 0);
    c.desc.rank_count = 2;
    c.desc.ends = ends;
    c.desc.budget_bytes = 40;       // what the other stage takes, with three inputs
    assert_int_equal(tl_compile_ranks(&c.env, &c.desc, &ranked), TL_OK);
    assert_int_equal(ranked.ranks[0].compiled.plan.step_count, 0);
    assert_int_equal(ranked.ranks[0].busy_cost, 0);
    assert_int_equal(ranked.ranks[0].compiled.bound_cost, 0);
    assert_true(ranked.ranks[0].compiled.proven);
    assert_int_equal(ranked.cost, 90);
    tl_free_compiled_ranks(&c.env, &ranked);
    close_case(&c);
}

static void a_bound_is_without_what_nothing_wants(void **state) {
    int inference;
    (void)state;
    for (inference = 0; inference < 2; inference++) {
        small_case c;
        tl_compiled_ranks ranked;
        open_unwanted(&c, inference);
        c.desc.rank_count = 1;
        c.desc.inference = inference;
        c.desc.budget_bytes = 40;
        assert_int_equal(tl_compile_ranks(&c.env, &c.desc, &ranked), inference ? TL_ERROR_INFEASIBLE : TL_OK);
        if (inference) {
            c.desc.budget_bytes = 0;
            assert_int_equal(tl_compile_ranks(&c.env, &c.desc, &ranked), TL_OK);
        }
        assert_int_equal(ranked.bound_cost, inference ? 30 : 90);
        assert_true(ranked.bound_cost <= ranked.cost);
        tl_free_compiled_ranks(&c.env, &ranked);
        close_case(&c);
    }
}

// -- what is sent late --

// The node without a gradient could run behind the first backward, which takes fewer bytes; but the rank after needs what it
// makes before it can send that backward its gradient.
static void what_has_no_gradient_is_sent_before_the_first_backward(void **state) {
    static const char text[] =
        "tlg 1\n"
        "node 0 x0 input fwd=0 bwd=0 out=16,35,14 needs=none in=-\n"
        "node 1 n1 op fwd=10 bwd=25 out=17 needs=none in=0.2 saved=3\n"
        "node 2 n2 op fwd=6 bwd=0 out=39,35,26 needs=none in=0.0 grad=no\n"
        "node 3 n3 op fwd=27 bwd=0 out=35 needs=none in=2.2,2.1 keep inplace=1 grad=no\n"
        "node 4 n4 op fwd=3 bwd=10 out=35 needs=none in=2.1 fwork=5 keep inplace=0 saved=28 bwork=16\n"
        "node 5 n5 op fwd=17 bwd=6 out=12 needs=out0,in0 in=3.0,3.0 keep saved=13\n"
        "node 6 n6 op fwd=22 bwd=12 out=15 needs=out,out in=5.0,4.0\n"
        "node 7 n7 op fwd=14 bwd=11 out=25 needs=in,in0 in=6.0\n";
    static const int32_t ends[] = { 5, 8 };
    small_case c;
    tl_compiled_ranks ranked;
    int fits = 0;
    (void)state;
    memset(&c, 0, sizeof c);
    assert_int_equal(tl_parse_graph(&c.env, text, sizeof text - 1, &c.graph), TL_OK);
    c.desc.graph = &c.graph;
    c.desc.rank_count = 2;
    c.desc.micro_batch_count = 1;
    c.desc.ends = ends;
    for (c.desc.budget_bytes = 150; c.desc.budget_bytes < 300; c.desc.budget_bytes += 2) {
        tl_result result = tl_compile_ranks(&c.env, &c.desc, &ranked);
        if (result) assert_int_equal(result, TL_ERROR_INFEASIBLE);
        fits += !result;
        tl_free_compiled_ranks(&c.env, &ranked);
    }
    assert_in_range(fits, 1, 74);
    close_case(&c);
}

// -- budgets that were refused between others that were not --

// A stage whose plan was found by the quick search keeps it where the search of all bodies finds none.
static void a_budget_above_one_that_fits_is_not_refused(void **state) {
    static const char text[] =
        "tlg 1\n"
        "node 0 x0 input fwd=0 bwd=0 out=17 needs=none in=-\n"
        "node 1 n1 op fwd=16 bwd=19 out=0 needs=none in=0.0\n"
        "node 2 n2 op fwd=14 bwd=23 out=27 needs=out0,out0 in=1.0,1.0,1.0 param=13 bwork=16\n"
        "node 3 n3 op fwd=23 bwd=13 out=13 needs=out in=2.0\n"
        "node 4 n4 op fwd=0 bwd=12 out=13 needs=in0,out in=3.0 inplace=0\n"
        "node 5 n5 op fwd=7 bwd=9 out=0 needs=none in=4.0 param=3 bwork=6\n"
        "node 6 n6 op fwd=10 bwd=29 out=20 needs=none in=0.0 param=5 keep saved=15\n"
        "node 7 n7 op fwd=7 bwd=17 out=18 needs=none in=4.0\n"
        "node 8 n8 op fwd=7 bwd=13 out=17 needs=none in=7.0 param=4 bwork=7\n"
        "node 9 n9 op fwd=10 bwd=20 out=17 needs=out0 in=8.0,8.0\n";
    small_case c;
    tl_compiled_ranks ranked;
    (void)state;
    memset(&c, 0, sizeof c);
    assert_int_equal(tl_parse_graph(&c.env, text, sizeof text - 1, &c.graph), TL_OK);
    c.desc.graph = &c.graph;
    c.desc.rank_count = 4;
    c.desc.micro_batch_count = 1;
    c.desc.gradient_ratio = 1;
    c.desc.alignment_bytes = 16;
    c.desc.host_budget_bytes = UINT64_C(1) << 30;
    c.desc.work_limit = 2000000;
    for (c.desc.budget_bytes = 112; c.desc.budget_bytes < 180; c.desc.budget_bytes += is_slow() ? 20 : 4) {
        if (tl_compile_ranks(&c.env, &c.desc, &ranked)) fail_msg("%s", c.env.error.text);
        tl_free_compiled_ranks(&c.env, &ranked);
    }
    close_case(&c);
}

// Graphs of no node, of inputs alone, of one node, of as many as ranks: a plan, or a sentence.
static void graphs_with_few_nodes_are_planned_or_refused(void **state) {
    tl_env env = silent_env();
    int32_t inputs, nodes, ranks, chunks, ways;
    long planned = 0, refused = 0;
    (void)state;
    for (inputs = 0; inputs <= 3; inputs++)
    for (nodes = 0; nodes <= 3; nodes++)
    for (ranks = 1; ranks <= 4; ranks++)
    for (chunks = 1; chunks <= 2; chunks++)
    for (ways = 0; ways < 4; ways++) {
        tl_random random = { (uint64_t)(inputs * 100 + nodes * 10 + ranks) };
        tl_parallel_plan choices;
        tl_compiled_ranks compiled;
        tl_ranks_desc desc;
        tl_graph graph;
        tl_result result;
        int32_t i;
        tl_init_graph(&graph);
        graph.batch = 4;
        for (i = 0; i < inputs; i++) assert_int_equal(small_node(&env, &random, 1, &graph), TL_OK);
        for (i = 0; i < nodes && inputs; i++) assert_int_equal(small_node(&env, &random, 0, &graph), TL_OK);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.rank_count = ranks;
        desc.micro_batch_count = ways & 2 ? 0 : 4;
        desc.may_split = ways & 2 ? 1 : 0;
        desc.work_limit = 100000;
        if (chunks > 1) { desc.chunk_count = chunks; desc.pipeline = TL_PIPELINE_INTERLEAVED; }
        memset(&choices, 0, sizeof choices);
        env.error.text[0] = 0;
        result = ways & 1 ? tl_compile_parallel(&env, &desc, &compiled, &choices) : tl_compile_ranks(&env, &desc, &compiled);
        if (!result) assert_true(compiled.rank_count <= nodes && nodes && inputs);
        else assert_true(result == TL_ERROR_INVALID_ARG && env.error.text[0]);
        if (result && inputs && !nodes && ways == 0 && chunks == 1)
            assert_string_equal(env.error.text, "tl_compile_ranks: rank_count: more ranks than nodes that are no inputs");
        planned += !result;
        refused += result != TL_OK;
        tl_free_parallel_plan(&env, &choices);
        tl_free_compiled_ranks(&env, &compiled);
        tl_free_graph(&env, &graph);
    }
    print_message("%ld planned, %ld refused\n", planned, refused);
    assert_true(planned > 50 && refused > 50);
}

// A state is on one rank, and is the same for all micro-batches under way together: ranks that would update it, or have one
// for each micro-batch, are refused with its name. One micro-batch forward only reads it.
static void ranks_share_no_states(void **state) {
    static const char *const kinds[] = { "", " hold", " frozen", " stat" };
    int kind, inference, micro_batches, ranks, is_parallel, k;
    (void)state;
    for (kind = 0; kind < 4; kind++)
        for (inference = 0; inference < 2; inference++)
            for (micro_batches = 1; micro_batches <= 2; micro_batches++)
                for (ranks = 1; ranks <= 2; ranks++)
                    for (is_parallel = 0; is_parallel < 2; is_parallel++) {
                        char text[400];
                        tl_env env = silent_env();
                        tl_ranks_desc desc;
                        tl_compiled_ranks compiled;
                        tl_graph graph;
                        tl_result result;
                        const char *says = !inference ? "graph: v: a state is updated within a pass, gradients of ranks are summed between passes"
                            : "micro_batch_count: above 1, and state v is the same for all micro-batches, which are under way together";
                        snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nstate 1 v adam w=8%s\n"
                                 "node 2 a op fwd=1 bwd=1 out=8 needs=in in=0,1\nnode 3 b op fwd=1 bwd=1 keep out=8 needs=in in=2\nend 4\n",
                                 kinds[kind]);
                        if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
                        memset(&desc, 0, sizeof desc);
                        desc.graph = &graph;
                        desc.rank_count = ranks;
                        desc.micro_batch_count = micro_batches;
                        desc.inference = inference;
                        if (is_parallel) result = tl_compile_parallel(&env, &desc, &compiled, NULL);
                        else result = tl_compile_ranks(&env, &desc, &compiled);
                        if (!inference || (micro_batches > 1 && !is_parallel)) assert_int_equal(result, TL_ERROR_UNSUPPORTED);
                        if (inference && micro_batches == 1) assert_int_equal(result, TL_OK);
                        if (result == TL_ERROR_UNSUPPORTED && !strstr(env.error.text, says)) fail_msg("%s\nand not: %s", env.error.text, says);
                        if (result) assert_int_equal(result, TL_ERROR_UNSUPPORTED);
                        for (k = 0; !result && k < compiled.rank_count; k++)
                            assert_true(compiled.ranks[k].compiled.plan.slot_count <= 1);
                        tl_free_compiled_ranks(&env, &compiled);
                        tl_free_graph(&env, &graph);
                    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_no_states),
        cmocka_unit_test(graphs_with_few_nodes_are_planned_or_refused),
        cmocka_unit_test(cuts_are_compared_with_every_cut),
        cmocka_unit_test(plans_of_stages_are_compared_with_every_body),
        cmocka_unit_test(a_stage_in_which_nothing_is_wanted_has_an_empty_plan),
        cmocka_unit_test(a_bound_is_without_what_nothing_wants),
        cmocka_unit_test(what_has_no_gradient_is_sent_before_the_first_backward),
        cmocka_unit_test(a_budget_above_one_that_fits_is_not_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
