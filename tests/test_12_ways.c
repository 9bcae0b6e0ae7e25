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
    long runs, kinds[TL_PARALLELISM_COUNT], orders[TL_PIPELINE_COUNT], both, within, remade;
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
    t->remade += forwards > 0;
}

// Two training steps; returns what the largest rank takes.
static uint64_t train(const tl_graph *graph, tl_random *random, int32_t ranks, int32_t steps, const tl_link *link, uint64_t budget,
                      int32_t first, ways_tally *t) {
    static crew c;
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
    crew_step(&c, random);
    crew_step(&c, random);
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
    for (round = 0; round < scaled(24); round++) {
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
           t.orders[TL_PIPELINE_GPIPE], t.orders[TL_PIPELINE_INTERLEAVED], t.within, t.remade);
    assert_true(is_thinned() || (t.kinds[TL_PARALLELISM_DATA] && t.both && t.orders[TL_PIPELINE_INTERLEAVED] && t.remade &&
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_run_what_is_fastest),
        cmocka_unit_test(what_cannot_be_cut_is_copied),
        cmocka_unit_test(the_ends_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
