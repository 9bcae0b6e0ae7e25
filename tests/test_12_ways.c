// [12] RUN: automatic parallelism: the ranks of a transport run what is fastest on their link, and number the micro-batches.
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/texts.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/run_bed.h"
#include "support/rank_crew.h"

static tl_strategy automatic(int32_t steps) {
    tl_strategy strategy = tl_with_parallelism(tl_with_fusion(tl_strategy_training(), 0), tl_parallelism_automatic());
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.gradient.checkpoint_interval = 0;
    strategy.gradient.accumulation_steps = (uint64_t)steps;
    return strategy;
}

typedef struct ways_tally {
    long runs, kinds[TL_PARALLELISM_COUNT], orders[TL_PIPELINE_COUNT], both, within, recomputed;
} ways_tally;

// Every replica has the gradients that one process has of its micro-batches, and each node is on one rank of it.
static void check_gradients(const crew *c, const tl_graph *graph, const tl_parallel_choice *best, int32_t share, int32_t first) {
    static uint64_t expected[MIXER_NODES];
    int32_t replica, stage, id;
    for (replica = 0; replica < best->replica_count; replica++) {
        one_process(graph, first + replica * share, share, expected);
        for (id = 0; id < graph->node_count; id++) {
            uint64_t found = 0;
            for (stage = 0; stage < best->stage_count; stage++)
                found |= c->hands[replica * best->stage_count + stage].gradients[id];
            if (!graph->nodes[id].is_input) assert_int_equal(found, expected[id]);
        }
    }
}

static void check_figures(const crew *c, uint64_t budget, uint64_t *most, ways_tally *t) {
    uint64_t forwards = 0;
    int32_t r;
    *most = 0;
    for (r = 0; r < c->hub.count; r++) {
        tl_run_report report = bed_report(&c->beds[r]);
        assert_int_equal(report.worker_count, c->hub.count);
        assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
        assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
        bed_check_taken(&report);
        assert_true(!budget || report.planned_taken_bytes <= budget);
        if (report.planned_taken_bytes > *most) *most = report.planned_taken_bytes;
        forwards += (uint64_t)report.recompute_count;
    }
    t->recomputed += forwards > 0;
}

// Two training steps; returns what the largest rank takes.
static uint64_t train(const tl_graph *graph, const tl_random *random, int32_t ranks, int32_t steps, const tl_link *link, uint64_t budget,
                      int32_t first, ways_tally *t) {
    static crew c;
    tl_random values = *random;     // the next graph does not depend on the plan
    tl_strategy strategy = automatic(steps);
    const tl_parallel_plan *ways;
    const tl_parallel_choice *best;
    uint64_t most;
    int32_t r;
    strategy.gradient.checkpointed = budget > 0;
    crew_join(&c, graph, ranks, 0, link);
    for (r = 0; r < ranks; r++) {
        c.beds[r].desc.strategy = &strategy;
        c.beds[r].desc.budget_bytes = budget;
        c.beds[r].desc.first_micro_batch = first;
        if (bed_init(&c.beds[r])) {
            assert_true(budget && !r && c.beds[r].env.error.code == TL_ERROR_INFEASIBLE);
            c.beds[r].desc.budget_bytes = budget = tl_find_least_budget(&c.beds[r].env.error);
            bed_must_init(&c.beds[r]);
        }
    }
    ways = tl_find_parallel_plan(c.beds[0].run);
    assert_non_null(ways);
    best = &ways->choices[ways->best];
    assert_int_equal(best->replica_count * best->stage_count, ranks);
    for (r = 1; r < ranks; r++)     // each rank has chosen the same by itself
        assert_memory_equal(&tl_find_parallel_plan(c.beds[r].run)->choices[ways->best], best, sizeof *best);
    crew_step(&c, &values);
    crew_step(&c, &values);
    check_gradients(&c, graph, best, steps * best->stage_count, first);
    check_figures(&c, budget, &most, t);
    t->runs++;
    t->kinds[best->kind]++;
    t->orders[best->pipeline]++;
    t->both += best->replica_count > 1 && best->stage_count > 1;
    t->within += budget > 0;
    crew_close(&c);
    return most;
}

// Long calls and heavy weights, so that sums over replicas take longer than messages.
static void make_heavy(tl_graph *graph) {
    tl_node *nodes = (tl_node *)graph->nodes;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        nodes[id].fwd_cost *= 50;
        nodes[id].bwd_cost *= 50;
        nodes[id].param_bytes *= 100;
    }
}

// Links of every speed: what is fastest differs. Then within less than that takes.
static void ranks_run_what_is_fastest(void **state) {
    static const int32_t counts[] = { 2, 3, 4, 4, 6 };
    tl_random random = { 31 };
    ways_tally t;
    long round;
    (void)state;
    memset(&t, 0, sizeof t);
    for (round = 0; round < scaled(16); round++) {
        int32_t ranks = counts[round % 5], steps = random_count(&random, 1, MOST_BATCHES / 3 / ranks), first = round % 4 ? 0 : MOST_BATCHES / 2;
        tl_graph graph;
        tl_link link;
        uint64_t most;
        if (random_graph(NULL, &random, 16, &graph)) fail_msg("%s", "no graph");
        if (round % 2) make_heavy(&graph);
        link.bytes_per_second = UINT64_C(1000000000) << random_count(&random, 0, 8);
        link.latency_ns = (uint64_t)random_count(&random, 0, 20);
        if (count_nodes(&graph) >= ranks) {
            most = train(&graph, &random, ranks, steps, round % 3 ? &link : NULL, 0, first, &t);
            if (most) (void)train(&graph, &random, ranks, steps, round % 3 ? &link : NULL, most - most / 3, first, &t);
        }
        tl_free_graph(NULL, &graph);
    }
    printf("%ld runs, data %ld, pipeline %ld, of these replicated %ld; 1f1b %ld, gpipe %ld, interleaved %ld; %ld within a budget, %ld run again\n",
           t.runs, t.kinds[TL_PARALLELISM_DATA], t.kinds[TL_PARALLELISM_PIPELINE], t.both, t.orders[TL_PIPELINE_1F1B],
           t.orders[TL_PIPELINE_GPIPE], t.orders[TL_PIPELINE_INTERLEAVED], t.within, t.recomputed);
    assert_true(is_thinned() || (t.kinds[TL_PARALLELISM_DATA] && t.both && t.orders[TL_PIPELINE_INTERLEAVED] && t.recomputed &&
                                 t.kinds[TL_PARALLELISM_PIPELINE] > t.both));
}

static const char three[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 a op fwd=10 bwd=20 out=16 needs=in in=0 param=40\n"
    "node 2 b op fwd=10 bwd=20 out=16 needs=in in=1 param=40\n"
    "node 3 c op fwd=10 bwd=20 out=16 needs=in in=2 param=40 keep\n";

// What ranks cannot run parts of is copied to each, and numbered in the same way.
static void what_cannot_be_cut_is_copied(void **state) {
    static crew c;
    tl_random random = { 3 };
    tl_graph graph = graph_of(three);
    tl_strategy strategy = automatic(2);
    uint64_t expected[MIXER_NODES];
    int32_t r, id;
    (void)state;
    strategy.mode = TL_MODE_EAGER;
    crew_open_strategy(&c, &graph, 3, NULL, &strategy, 0);
    crew_step(&c, &random);
    crew_step(&c, &random);
    for (r = 0; r < 3; r++) {
        one_process(&graph, 2 * r, 2, expected);
        assert_null(tl_find_parallel_plan(c.beds[r].run));
        for (id = 1; id < graph.node_count; id++) assert_int_equal(c.hands[r].gradients[id], expected[id]);
    }
    crew_close(&c);
    tl_free_graph(NULL, &graph);
}

// A rank alone, and one whose micro-batches have no numbers left.
static void the_ends_of_numbers(void **state) {
    static crew c;
    tl_graph graph = graph_of(three);
    tl_strategy strategy = automatic(2);
    (void)state;
    crew_open_strategy(&c, &graph, 1, NULL, &strategy, 0);
    assert_null(tl_find_parallel_plan(c.beds[0].run));
    crew_close(&c);
    crew_join(&c, &graph, 3, 0, NULL);
    c.beds[2].desc.strategy = &strategy;
    c.beds[2].desc.first_micro_batch = INT32_MAX - 5;
    assert_int_equal(bed_init(&c.beds[2]), TL_ERROR_OVERFLOW);
    c.beds[2].desc.first_micro_batch = INT32_MAX - 6;
    bed_must_init(&c.beds[2]);
    crew_close(&c);
    tl_free_graph(NULL, &graph);
}

// -- the size of micro-batches --

enum { BATCH = 4 };

static tl_graph random_batch(tl_random *random) {
    tl_graph graph;
    tl_node_output *outputs;
    int32_t i;
    do if (random_graph(NULL, random, 16, &graph)) fail_msg("%s", "no graph");
    while (count_nodes(&graph) < 4 && (tl_free_graph(NULL, &graph), 1));
    outputs = (tl_node_output *)graph.outputs;
    graph.batch = BATCH;
    for (i = 0; i < graph.tensor_count; i++) outputs[i].bytes = (outputs[i].bytes + 15) / 16 * 16;     // whole samples of f32
    for (i = 0; i < graph.node_count; i++) ((tl_node *)graph.nodes)[i].fixed = 0;
    return graph;
}

// Gradients of one process whose run splits the batch itself.
static void one_split_process(const tl_graph *graph, int32_t parts, uint64_t *gradients) {
    static bed b;
    static hands h;
    tl_strategy strategy = tl_with_parallelism(automatic(parts), tl_parallelism_none());
    tl_compile_desc desc;
    tl_compiled_plan compiled;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.strategy = &strategy;
    desc.may_split = 1;
    desc.alignment_bytes = 1;
    desc.work_limit = BED_WORK;
    if (tl_compile(NULL, &desc, &compiled)) fail_msg("%s", "not compiled");
    bed_open(&b, graph, 0, 0, 1);
    hands_open(&h, &b, graph);
    b.graph = compiled.source;
    b.desc.load = load;
    b.desc.compiled = &compiled;
    bed_must_init(&b);
    if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    hands_start_step(&h);
    if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    memcpy(gradients, h.gradients, (size_t)graph->node_count * sizeof *gradients);
    bed_close(&b);
    tl_free_compiled_plan(NULL, &compiled);
}

// Each node's gradient is on one rank, and that of one process.
static void check_split(const crew *c, const tl_graph *graph, int32_t parts) {
    static uint64_t expected[MIXER_NODES];
    int32_t r, id;
    one_split_process(graph, parts, expected);
    for (id = 0; id < graph->node_count; id++) {
        uint64_t found = 0;
        for (r = 0; r < c->hub.count; r++) found |= c->hands[r].gradients[id];
        if (!graph->nodes[id].is_input) assert_int_equal(found, expected[id]);
    }
}

// The same by a strategy; steps 0 = as many as is best. The loaded inputs are those of a part.
static int32_t run_split_strategy(const tl_ranks_desc *desc, tl_random *random, int32_t steps, int fuses) {
    static crew c;
    const tl_graph *graph = desc->graph;
    int32_t ranks = desc->rank_count;
    tl_strategy strategy = tl_with_parallelism(automatic(steps), tl_parallelism_pipeline((uint64_t)ranks));
    int32_t r, parts;
    strategy.enable_fusion = !steps && fuses;       // nothing can be fused here, but the graph is compiled first
    crew_join(&c, graph, ranks, 0, desc->link);
    for (r = 0; r < ranks; r++) {
        c.beds[r].desc.strategy = &strategy;
        c.beds[r].desc.may_split = 1;
        c.beds[r].desc.split_cost = desc->split_cost;
        c.beds[r].desc.work_limit = desc->work_limit;
        bed_must_init(&c.beds[r]);
        c.beds[r].graph = tl_find_compiled_plan(c.beds[r].run)->source;
    }
    parts = (int32_t)(graph->batch / c.beds[0].graph->batch);
    assert_true(!steps || parts == steps);
    crew_step(&c, random);
    crew_step(&c, random);
    check_split(&c, graph, parts);
    crew_close(&c);
    return parts;
}

static void run_split(const tl_graph *graph, tl_random *random, const tl_compiled_ranks *ranks) {
    static crew c;
    int32_t r;
    crew_join(&c, graph, ranks->rank_count, 0, NULL);
    for (r = 0; r < ranks->rank_count; r++) {
        c.beds[r].graph = ranks->compiled->source;
        c.beds[r].desc.compiled = &ranks->ranks[r].compiled;
        bed_must_init(&c.beds[r]);
    }
    crew_step(&c, random);
    crew_step(&c, random);
    for (r = 0; r < ranks->rank_count; r++) {
        tl_run_report report = bed_report(&c.beds[r]);
        assert_int_equal(report.measured_arena_bytes, ranks->ranks[r].compiled.plan.arena_bytes);
        bed_check_taken(&report);
    }
    check_split(&c, graph, ranks->micro_batch_count);
    crew_close(&c);
}

// The number of micro-batches that is chosen is the best of all; its step is that of one process that splits as often.
static void a_batch_is_split_into_what_is_best(void **state) {
    tl_random random = { 77 };
    long round, chosen[BATCH + 1] = { 0 }, refused = 0;
    (void)state;
    for (round = 0; round < scaled(20); round++) {
        tl_graph graph = random_batch(&random);
        tl_env env = silent_env();
        tl_link link;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks, each;
        uint64_t least = UINT64_MAX, chosen_time = 0, most = 0;
        int32_t parts, r;
        int tight;
        link.bytes_per_second = UINT64_C(1000000000) << random_count(&random, 0, 6);
        link.latency_ns = (uint64_t)random_count(&random, 0, round % 3 ? 30 : 300);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.may_split = 1;
        desc.work_limit = 10 * BED_WORK;
        desc.rank_count = random_count(&random, 2, 3);
        desc.link = round % 4 ? &link : NULL;
        desc.split_cost = round % 2 ? 0 : (uint64_t)random_count(&random, 1, 200);
        for (tight = 0; tight < (is_slow() ? 1 : 2); tight++) {
            tl_result result = tl_compile_ranks(&env, &desc, &ranks);
            if (result == TL_ERROR_INFEASIBLE) {    // what it names does
                desc.budget_bytes = tl_find_least_budget(&env.error);
                result = tl_compile_ranks(&env, &desc, &ranks);
                refused++;
            }
            if (result) fail_msg("%s", env.error.text);
            for (parts = 1; parts <= BATCH; parts *= 2) {
                tl_ranks_desc one = desc;
                one.micro_batch_count = parts;
                result = tl_compile_ranks(&env, &one, &each);
                if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s", env.error.text);
                if (!result) assert_true(each.micro_batch_count == parts && each.compiled->choice.part_count == parts);
                if (!result) {
                    uint64_t time = each.cost + ((uint64_t)(parts - 1) * desc.split_cost + (uint64_t)desc.rank_count - 1) / (uint64_t)desc.rank_count;
                    if (time < least) least = time;
                    if (parts == ranks.micro_batch_count) chosen_time = time;
                }
                tl_free_compiled_ranks(&env, &each);
            }
            if (!tight) assert_int_equal(chosen_time, least);
            chosen[ranks.micro_batch_count]++;
            if (!tight) assert_int_equal(run_split_strategy(&desc, &random, 0, round % 2), ranks.micro_batch_count);
            run_split(&graph, &random, &ranks);
            for (r = 0; r < ranks.rank_count; r++)
                if (ranks.ranks[r].compiled.plan.arena_bytes > most) most = ranks.ranks[r].compiled.plan.arena_bytes;
            tl_free_compiled_ranks(&env, &ranks);
            desc.budget_bytes = most * 2 / 3 + 1;
        }
        (void)run_split_strategy(&desc, &random, round % 2 ? 2 : 4, 0);
        desc.budget_bytes = 0;
        if (count_nodes(&graph) >= 4) {     // ways of a batch, split
            tl_parallel_plan plan;
            desc.rank_count = 4;
            if (tl_compile_parallel(&env, &desc, &ranks, &plan)) fail_msg("%s", env.error.text);
            assert_int_equal(ranks.compiled->choice.part_count, ranks.micro_batch_count * plan.choices[plan.best].replica_count);
            tl_free_parallel_plan(&env, &plan);
            tl_free_compiled_ranks(&env, &ranks);
        }
        tl_free_graph(NULL, &graph);
    }
    printf("1: %ld, 2: %ld, 4: %ld micro-batches, %ld refused at first\n", chosen[1], chosen[2], chosen[4], refused);
    assert_true(is_thinned() || (chosen[1] && chosen[2] && chosen[4] && refused));
}

static void what_cannot_be_split_is_refused(void **state) {
    tl_graph graph = graph_of(three);
    tl_env env = silent_env();
    tl_compiled_ranks ranks;
    tl_compiled_plan none;
    tl_ranks_desc desc;
    int i;
    (void)state;
    memset(&none, 0, sizeof none);
    for (i = 0; i < 7; i++) {
        static const char *const says[] = { "may_split: must be", "may_split: must be", "may_split: must be", "more ranks", "may_split: no number",
                                            "batch", "graph.batch is 0" };
        graph.batch = i < 6;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.may_split = i ? 1 : 2;
        desc.rank_count = i == 3 ? 9 : 2;
        if (i == 1) desc.inference = 1;
        if (i == 2) desc.compiled = &none;
        if (i == 4) { desc.pipeline = TL_PIPELINE_INTERLEAVED; desc.chunk_count = 2; }      // a batch of one, not of two
        if (i == 5) desc.micro_batch_count = 3;
        assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INVALID_ARG);
        if (!strstr(env.error.text, says[i])) fail_msg("%d: %s", i, env.error.text);
        assert_null(ranks.memory);
    }
    tl_free_graph(NULL, &graph);
}

static void failing_memory_loses_nothing(void **state) {
    tl_random random = { 5 };
    tl_graph graph = random_batch(&random);
    long at, failures = 0;
    (void)state;
    for (at = 0;; at += is_soaked() ? 1 : 1 + at / 8) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, at);
        tl_compiled_ranks ranks;
        tl_ranks_desc desc;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.may_split = 1;
        desc.rank_count = 2;
        desc.work_limit = 1000;
        result = tl_compile_ranks(&env, &desc, &ranks);
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        tl_free_compiled_ranks(&env, &ranks);
        assert_int_equal(f.live, 0);
        if (!result) break;
        failures++;
    }
    assert_true(failures > 20);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_run_what_is_fastest),
        cmocka_unit_test(what_cannot_be_cut_is_copied),
        cmocka_unit_test(the_ends_of_numbers),
        cmocka_unit_test(a_batch_is_split_into_what_is_best),
        cmocka_unit_test(what_cannot_be_split_is_refused),
        cmocka_unit_test(failing_memory_loses_nothing),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
