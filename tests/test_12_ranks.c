// [9] COMPILE and [12] RUN: the plans of several ranks, and their runs: what is planned is taken, on every rank, and
// gradients have the bits of one process.
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
#include "support/sink_support.h"
#include "support/run_support.h"
#include "support/run_bed.h"
#include "support/rank_crew.h"

enum { FEW_RANKS = 4, FEW_CHUNKS = 3, FEW_BATCHES = 6 };  // of random pipelines

// Note which chunk of its rank a node is in, and on a rank how many nodes of each are trained.
static void hands_take_stages(hands *h, const tl_graph *graph, const tl_compiled_ranks *ranks, int32_t rank) {
    int32_t stage, id;
    for (stage = rank; stage < ranks->rank_count * ranks->chunk_count; stage += ranks->rank_count)
        for (id = stage ? ranks->ends[stage - 1] : 0; id < ranks->ends[stage]; id++) {
            h->chunk_of[id] = stage / ranks->rank_count;
            h->trained[stage / ranks->rank_count] += !graph->nodes[id].is_input && graph->nodes[id].has_grad;
        }
}

static void crew_open(crew *c, const tl_graph *graph, const tl_compiled_ranks *ranks, uint64_t poll_limit) {
    int32_t r;
    crew_join(c, graph, ranks->rank_count, poll_limit, NULL);
    for (r = 0; r < c->hub.count; r++) {
        bed *b = &c->beds[r];
        hands_take_stages(&c->hands[r], graph, ranks, r);
        b->desc.compiled = &ranks->ranks[r].compiled;
        b->desc.host_budget_bytes = ranks->ranks[r].compiled.plan.host_arena_bytes;
        bed_must_init(b);
    }
}

// What every schedule keeps, counted from the end; what interleaved keeps is in the order of the calls.
static void find_in_flight(const tl_compiled_ranks *ranks, tl_pipeline pipeline, int32_t *most) {
    tl_pipeline_desc desc;
    tl_pipeline_report report;
    int32_t r;
    for (r = 0; r < ranks->rank_count; r++) {
        int32_t after = ranks->rank_count - r, m = ranks->micro_batch_count;
        most[r] = pipeline == TL_PIPELINE_GPIPE || m < after ? m : after;
    }
    if (pipeline != TL_PIPELINE_INTERLEAVED) return;
    memset(&desc, 0, sizeof desc);
    desc.kind = pipeline;
    desc.rank_count = ranks->rank_count;
    desc.chunk_count = ranks->chunk_count;
    desc.micro_batch_count = ranks->micro_batch_count;
    assert_int_equal(tl_simulate_pipeline(NULL, &desc, &report), TL_OK);
    for (r = 0; r < ranks->rank_count; r++) most[r] = report.ranks[r].in_flight_count;
    tl_free_pipeline_report(NULL, &report);
}

// Returns how many ranks hold less than they may: plans within a budget can leave all forwards of a stage for its backward.
static long check_crew(const crew *c, const tl_graph *graph, const tl_compiled_ranks *ranks, tl_pipeline pipeline,
                       const uint64_t *expected) {
    long fewer = 0;
    int32_t stages = ranks->rank_count * ranks->chunk_count, most[MOST_RANKS], r, stage, id;
    find_in_flight(ranks, pipeline, most);
    for (r = 0; r < c->hub.count; r++) {
        const tl_rank_plan *rank = &ranks->ranks[r];
        tl_run_report report = bed_report(&c->beds[r]);
        int is_trained = 1;
        assert_int_equal(report.measured_peak_bytes, rank->compiled.plan.peak_bytes);
        assert_int_equal(report.measured_arena_bytes, rank->compiled.plan.arena_bytes);
        bed_check_taken(&report);
        assert_int_equal(report.measured_host_peak_bytes, rank->compiled.plan.host_peak_bytes);
        assert_int_equal(report.sent_bytes, rank->sent_bytes);
        assert_int_equal(rank->in_flight_count, most[r]);
        for (stage = 0; stage < ranks->chunk_count; stage++) is_trained &= c->hands[r].trained[stage] > 0;
        if (is_trained) assert_true(c->hands[r].most_held <= most[r]);
        fewer += is_trained && c->hands[r].most_held < most[r];
    }
    for (stage = 0; stage < stages; stage++)
        for (id = stage ? ranks->ends[stage - 1] : 0; id < ranks->ends[stage]; id++)
            if (tl_find_node_rank(ranks, id) != stage % ranks->rank_count) fail_msg("node %d is on another rank", (int)id);
            else if (!graph->nodes[id].is_input && c->hands[stage % ranks->rank_count].gradients[id] != expected[id])
                fail_msg("stage %d: node %d has another gradient", (int)stage, (int)id);
    return fewer;
}

// What some rounds did.
typedef struct tally {
    long ran, tight, recomputed, fewer, copies;
} tally;

static long count_copies(const tl_compiled_ranks *ranks) {
    long count = 0;
    int32_t r, k;
    for (r = 0; r < ranks->rank_count; r++)
        for (k = 0; k < ranks->ranks[r].compiled.plan.step_count; k++)
            count += tl_find_step(&ranks->ranks[r].compiled.plan, k).kind == TL_STEP_SPILL;
    return count;
}

// The same plans forward only: what is planned is taken.
static void infer_as_planned(tl_env *env, tl_random *random, const tl_ranks_desc *of) {
    static crew c;
    tl_ranks_desc desc = *of;
    tl_compiled_ranks ranks;
    int32_t r;
    desc.budget_bytes = 0;
    desc.inference = 1;
    if (tl_compile_ranks(env, &desc, &ranks)) fail_msg("%s", env->error.text);
    crew_open(&c, desc.graph, &ranks, 0);
    crew_step(&c, random);
    for (r = 0; r < c.hub.count; r++) {
        tl_run_report report = bed_report(&c.beds[r]);
        assert_int_equal(report.measured_peak_bytes, ranks.ranks[r].compiled.plan.peak_bytes);
        assert_int_equal(report.measured_arena_bytes, ranks.ranks[r].compiled.plan.arena_bytes);
        assert_int_equal(report.sent_bytes, ranks.ranks[r].sent_bytes);
    }
    crew_close(&c);
    tl_free_compiled_ranks(env, &ranks);
}

// Plan a graph, now and then within less than its largest stage takes, and train two steps: all is as planned.
static void train_as_planned(tl_env *env, tl_random *random, const tl_graph *graph, tl_ranks_desc *desc, tally *t) {
    static crew c;
    static uint64_t expected[MIXER_NODES];
    tl_compiled_ranks ranks;
    tl_result result;
    long fewer;
    int32_t r;
    if (count_nodes(graph) < desc->rank_count * (desc->chunk_count ? desc->chunk_count : 1)) return;
    result = tl_compile_ranks(env, desc, &ranks);
    if (result) fail_msg("%s", env->error.text);
    if (random_chance(random, 60)) {
        uint64_t most = 0;
        for (r = 0; r < ranks.rank_count; r++)
            if (ranks.ranks[r].compiled.plan.arena_bytes > most) most = ranks.ranks[r].compiled.plan.arena_bytes;
        desc->budget_bytes = most - most / 4 ? most - most / 4 : 1;
        tl_free_compiled_ranks(env, &ranks);
        if (desc->host_budget_bytes) desc->budget_bytes = most / 2 + 1;
        result = tl_compile_ranks(env, desc, &ranks);
        if (result == TL_ERROR_INFEASIBLE && !desc->host_budget_bytes) return;
        if (result == TL_ERROR_INFEASIBLE) {    // what the refusal names does
            desc->budget_bytes = env->error.values[1];
            result = tl_compile_ranks(env, desc, &ranks);
        }
        if (result) fail_msg("%s", env->error.text);
        t->tight++;
    }
    for (r = 0; r < ranks.rank_count; r++) {
        assert_true(!desc->budget_bytes || ranks.ranks[r].compiled.plan.arena_bytes <= desc->budget_bytes);
        assert_true(ranks.ranks[r].compiled.plan.host_arena_bytes <= desc->host_budget_bytes);
        t->recomputed += ranks.ranks[r].busy_cost > ranks.ranks[r].compiled.bound_cost;
    }
    t->copies += count_copies(&ranks);
    one_process(graph, 0, desc->micro_batch_count, expected);
    crew_open(&c, graph, &ranks, 0);
    crew_step(&c, random);
    crew_step(&c, random);
    fewer = check_crew(&c, graph, &ranks, desc->pipeline, expected);
    if (!desc->budget_bytes) assert_int_equal(fewer, 0);
    t->fewer += fewer;
    crew_close(&c);
    t->ran++;
    tl_free_compiled_ranks(env, &ranks);
    infer_as_planned(env, random, desc);
}

// Train random graphs, each on as many ranks as it comes.
static void train_random_graphs(uint64_t seed, long rounds, int32_t node_limit, int interleaved, int copies) {
    tl_random random;
    tally t = { 0, 0, 0, 0, 0 };
    tl_device device;
    long round;
    random.state = seed;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_ranks_desc desc;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        if (random_graph(&env, &random, node_limit, &graph)) fail_msg("%s", env.error.text);
        desc.graph = &graph;
        desc.work_limit = BED_WORK;
        if (interleaved) {
            desc.rank_count = random_count(&random, 2, 3);
            desc.chunk_count = random_count(&random, 2, FEW_CHUNKS);
            desc.micro_batch_count = desc.rank_count * random_count(&random, 1, FEW_BATCHES / desc.rank_count);
            desc.pipeline = TL_PIPELINE_INTERLEAVED;
        } else {
            desc.rank_count = random_count(&random, 2, FEW_RANKS);
            desc.micro_batch_count = random_count(&random, 1, FEW_BATCHES);
            desc.pipeline = random_chance(&random, 30) ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
        }
        if (copies) {
            memset(&device, 0, sizeof device);
            device.link_bytes_per_second = UINT64_C(1000000000) * (uint64_t)random_count(&random, 0, 3);   // 0: no time
            desc.device = &device;
            desc.host_budget_bytes = random_chance(&random, 50) ? UINT64_MAX : (uint64_t)random_count(&random, 20, 400);
            desc.keep_all = random_chance(&random, 50);
        }
        train_as_planned(&env, &random, &graph, &desc, &t);
        tl_free_graph(&env, &graph);
    }
    if (copies) {
        printf("%ld graphs ran, %ld within less than all, %ld copies, %ld ranks run forwards again\n", t.ran, t.tight, t.copies, t.recomputed);
        assert_true(is_thinned() || (t.copies > rounds / 4 && t.tight > t.ran / 10));
        return;
    }
    printf("%ld graphs ran, %ld within less than all, %ld ranks run forwards again, %ld hold less than they may\n", t.ran, t.tight, t.recomputed,
           t.fewer);
    assert_true(is_thinned() || (t.ran > rounds / 3 && t.tight > t.ran / 10 && t.recomputed > t.tight / 4 && t.fewer <= t.tight / 10));
}

static void gradients_are_those_of_one_process(void **state) {
    (void)state;
    train_random_graphs(1, scaled(100), 26, 0, 0);
}

// The same with several chunks on each rank, two ranks among them, that are each other's neighbours on both sides.
static void interleaved_gradients_are_those_of_one_process(void **state) {
    (void)state;
    train_random_graphs(2, scaled(300), 32, 1, 0);
}

// Tensors of micro-batches in flight wait on the host.
static void copies_to_the_host_change_no_bit(void **state) {
    (void)state;
    train_random_graphs(3, scaled(70), 26, 0, 1);
    train_random_graphs(4, scaled(60), 32, 1, 1);
}

// What a training step takes when everything is kept and messages leave as soon as they are there.
static uint64_t simulated_cost(const tl_graph *graph, const tl_compiled_ranks *ranks, const tl_ranks_desc *of) {
    uint64_t sent[MOST_RANKS * MOST_CHUNKS] = { 0 }, forward[MOST_RANKS * MOST_CHUNKS] = { 0 }, backward[MOST_RANKS * MOST_CHUNKS] = { 0 }, cost;
    tl_pipeline_desc desc;
    tl_pipeline_report report;
    int32_t stage = 0, id;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        stage += id >= ranks->ends[stage];
        forward[stage] += node->fwd_cost;
        backward[stage] += node->bwd_cost;
        sent[stage] = graph->outputs[node->first_output].bytes;
    }
    memset(&desc, 0, sizeof desc);
    desc.kind = of->pipeline;
    desc.rank_count = ranks->rank_count;
    desc.chunk_count = ranks->chunk_count;
    desc.micro_batch_count = ranks->micro_batch_count;
    desc.output_bytes = sent;
    desc.link = of->link;
    desc.forward_ns = forward;
    desc.backward_ns = backward;
    assert_int_equal(tl_simulate_pipeline(NULL, &desc, &report), TL_OK);
    cost = report.total_ns;
    tl_free_pipeline_report(NULL, &report);
    return cost;
}

// A chain whose tensors are all kept, of random costs or of equal ones.
static void chain_of(tl_env *env, tl_random *random, int32_t count, tl_graph *graph) {
    int32_t i;
    tl_init_graph(graph);
    for (i = 0; i < count; i++) {
        tl_node_desc desc;
        tl_tensor input = { i - 1, 0 };
        uint64_t bytes = random ? 1 + tl_next_random_below(random, 20) : 8;
        memset(&desc, 0, sizeof desc);
        desc.op = i ? "op" : "input";
        desc.inputs = &input;
        desc.input_count = i > 0;
        desc.output_bytes = &bytes;
        desc.output_count = 1;
        desc.needs = i ? "out" : NULL;
        desc.fwd_cost = i == 0 ? 0 : random ? tl_next_random_below(random, 30) : 10;
        desc.bwd_cost = i == 0 ? 0 : random ? tl_next_random_below(random, 60) : 20;
        if (tl_add_node(env, graph, &desc, NULL)) fail_msg("%s", env->error.text);
    }
}

// On chains that keep everything all schedules take what tl_simulate_pipeline says, but for a few of interleaved ones, whose
// ranks now and then wait until a message has left. With a link it is somewhat more, because messages leave when the receiver
// has asked for them, one or two calls ahead.
static void chains_take_what_is_simulated(void **state) {
    tl_random random;
    long round, interleaved = 0, longer = 0;
    (void)state;
    random.state = 5;
    for (round = 0; round < scaled(300); round++) {
        tl_env env;
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        tl_link link;
        uint64_t cost;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        chain_of(&env, round % 2 ? &random : NULL, 25, &graph);
        desc.graph = &graph;
        desc.pipeline = (tl_pipeline)random_count(&random, 0, TL_PIPELINE_COUNT - 1);
        desc.work_limit = 2000000;
        desc.rank_count = random_count(&random, 2, FEW_RANKS);
        desc.micro_batch_count = random_count(&random, 1, 12);
        link.bytes_per_second = (uint64_t)random_count(&random, 2, 10) * 100000000;
        link.latency_ns = (uint64_t)random_count(&random, 0, 20);
        if (round % 3 == 0) desc.link = &link;
        if (desc.pipeline == TL_PIPELINE_INTERLEAVED) {
            desc.chunk_count = random_count(&random, 2, FEW_CHUNKS);
            desc.micro_batch_count = desc.rank_count * random_count(&random, 1, 4);
            interleaved++;
        }
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        cost = simulated_cost(&graph, &ranks, &desc);
        if (!desc.link && desc.pipeline != TL_PIPELINE_INTERLEAVED) assert_int_equal(ranks.cost, cost);
        longer += !desc.link && ranks.cost > cost;
        assert_true(ranks.cost >= cost && ranks.cost <= cost + cost / 8);
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_graph(&env, &graph);
    }
    assert_true(interleaved > scaled(300) / 6 && longer <= interleaved / 200);
}

// On one rank, whose copies nobody else waits for, a step takes what the simulator of single plans says: no longer than its
// calls where the link is quick, longer where it is slow.
static void copies_take_what_is_simulated(void **state) {
    static const uint64_t rates[] = { 0, UINT64_C(4000000000), 50000000, 2000000 };
    int k, waits = 0, hides = 0;
    (void)state;
    for (k = 0; k < 4; k++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        tl_device device;
        tl_plan plan;
        memset(&desc, 0, sizeof desc);
        memset(&device, 0, sizeof device);
        chain_of(&env, NULL, 25, &graph);
        device.link_bytes_per_second = rates[k];
        device.link_latency_ns = rates[k] ? 1 : 0;
        desc.graph = &graph;
        desc.rank_count = 1;
        desc.micro_batch_count = 8;
        desc.pipeline = TL_PIPELINE_GPIPE;
        desc.keep_all = 1;
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        desc.budget_bytes = ranks.ranks[0].compiled.plan.arena_bytes / 2;
        tl_free_compiled_ranks(&env, &ranks);
        assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INFEASIBLE);
        desc.device = &device;
        desc.host_budget_bytes = UINT64_MAX;
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        assert_true(count_copies(&ranks) >= 8);
        if (tl_copy_plan(&env, &ranks.ranks[0].compiled.plan, &plan)) fail_msg("%s", env.error.text);
        if (tl_measure_plan(&env, ranks.ranks[0].compiled.graph, &device, &plan)) fail_msg("%s", env.error.text);
        assert_int_equal(ranks.cost, plan.cost);
        assert_int_equal(ranks.ranks[0].busy_cost, 8 * 24 * 30);
        waits += ranks.cost > ranks.ranks[0].busy_cost;
        hides += ranks.cost == ranks.ranks[0].busy_cost;
        tl_free_plan(&env, &plan);
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_graph(&env, &graph);
    }
    assert_true(waits >= 1 && hides >= 2);
}

// Of one cut: fewer bytes of the device take more of the host, no more than needed; over a slow link forwards run again
// where that is cheaper, so a step takes no longer than without a host.
static void copies_are_few_and_weighed_against_running_again(void **state) {
    static const int32_t ends[] = { 9, 17, 25 };
    tl_env env = silent_env();
    tl_graph graph;
    tl_ranks_desc desc;
    tl_compiled_ranks ranks;
    tl_device device;
    uint64_t most, host = 0, again, budget;
    (void)state;
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    chain_of(&env, NULL, 25, &graph);
    desc.graph = &graph;
    desc.ends = ends;
    desc.rank_count = 3;
    desc.micro_batch_count = 6;
    desc.keep_all = 1;
    if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
    most = ranks.ranks[0].compiled.plan.arena_bytes;
    tl_free_compiled_ranks(&env, &ranks);
    desc.host_budget_bytes = UINT64_MAX;
    for (budget = most - 8; budget >= most * 3 / 4; budget -= most / 8) {
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        assert_true(!desc.budget_bytes || ranks.ranks[0].compiled.plan.host_peak_bytes > host);
        assert_true(ranks.ranks[0].compiled.plan.arena_bytes + 64 >= (desc.budget_bytes ? desc.budget_bytes : most));
        host = ranks.ranks[0].compiled.plan.host_peak_bytes;
        tl_free_compiled_ranks(&env, &ranks);
        desc.budget_bytes = budget;
    }
    desc.keep_all = 0;
    desc.budget_bytes = most * 3 / 4;
    desc.host_budget_bytes = 0;
    if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
    again = ranks.cost;
    tl_free_compiled_ranks(&env, &ranks);
    device.link_bytes_per_second = 50000;
    desc.device = &device;
    desc.host_budget_bytes = UINT64_MAX;
    if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
    assert_true(ranks.cost <= again && count_copies(&ranks) == 0);
    tl_free_compiled_ranks(&env, &ranks);
    tl_free_graph(&env, &graph);
}

// With v chunks of equal stages S ranks wait (S - 1) of v m + S - 1 calls. Cuts that are chosen take no longer.
static void chunks_make_the_bubble_less(void **state) {
    tl_env env = silent_env();
    tl_graph graph;
    tl_ranks_desc desc;
    tl_compiled_ranks ranks;
    uint64_t before = UINT64_MAX, cost;
    int32_t chunks, ends[4 * 4], k;
    (void)state;
    chain_of(&env, NULL, 49, &graph);
    for (chunks = 1; chunks <= 4; chunks++) {
        double expected = 3.0 / (8.0 * chunks + 3.0);
        memset(&desc, 0, sizeof desc);
        for (k = 0; k < 4 * chunks; k++) ends[k] = 1 + (k + 1) * 12 / chunks;
        desc.graph = &graph;
        desc.rank_count = 4;
        desc.micro_batch_count = 8;
        desc.chunk_count = chunks;
        desc.ends = ends;
        if (chunks > 1) desc.pipeline = TL_PIPELINE_INTERLEAVED;
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        assert_true(ranks.bubble_ratio > expected - 1e-9 && ranks.bubble_ratio < expected + 1e-9);
        assert_int_equal(ranks.chunk_count, chunks);
        assert_memory_equal(ranks.ends, ends, 4 * (size_t)chunks * sizeof *ends);
        assert_true(ranks.cost < before);
        before = cost = ranks.cost;
        tl_free_compiled_ranks(&env, &ranks);
        desc.ends = NULL;
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        assert_true(ranks.cost <= cost);
        tl_free_compiled_ranks(&env, &ranks);
    }
    desc.micro_batch_count = 6;
    assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_compile_ranks: micro_batch_count: 6 is not a multiple of 4 ranks, as interleaved needs");
    assert_true(is_zero(&ranks, sizeof ranks));
    tl_free_graph(&env, &graph);
}

// A rank that is slower gets less in its chunks together.
static void a_slow_rank_has_short_chunks(void **state) {
    tl_env env = silent_env();
    tl_rank ranks[3];
    tl_graph graph;
    tl_ranks_desc desc;
    tl_compiled_ranks even, chosen;
    int32_t ends[6], k;
    (void)state;
    chain_of(&env, NULL, 43, &graph);
    memset(&desc, 0, sizeof desc);
    memset(ranks, 0, sizeof ranks);
    ranks[1].cost_numerator = 3;
    ranks[1].cost_denominator = 1;
    for (k = 0; k < 6; k++) ends[k] = 1 + (k + 1) * 7;
    desc.graph = &graph;
    desc.rank_count = 3;
    desc.chunk_count = 2;
    desc.pipeline = TL_PIPELINE_INTERLEAVED;
    desc.micro_batch_count = 6;
    desc.ranks = ranks;
    desc.ends = ends;
    if (tl_compile_ranks(&env, &desc, &even)) fail_msg("%s", env.error.text);
    desc.ends = NULL;
    if (tl_compile_ranks(&env, &desc, &chosen)) fail_msg("%s", env.error.text);
    assert_true(chosen.cost < even.cost - even.cost / 4);
    assert_true(chosen.ranks[1].busy_cost < even.ranks[1].busy_cost / 4 * 3);
    tl_free_compiled_ranks(&env, &even);
    tl_free_compiled_ranks(&env, &chosen);
    tl_free_graph(&env, &graph);
}

// Chosen cuts of chunks against all that there are.
static void cuts_of_chunks_are_near_the_best(void **state) {
    tl_random random;
    long round, rounds = scaled(150), best_of_all = 0;
    double ratio = 0;
    (void)state;
    random.state = 8;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks, all;
        tl_link link = { 200000000, 3 };
        uint64_t least = UINT64_MAX, cost;
        int32_t ends[4], count = random_count(&random, 5, 12);
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        chain_of(&env, &random, count, &graph);
        desc.graph = &graph;
        desc.rank_count = desc.chunk_count = 2;
        desc.pipeline = TL_PIPELINE_INTERLEAVED;
        desc.micro_batch_count = 2 * random_count(&random, 1, 4);
        desc.work_limit = 2000000;
        if (round % 2) desc.link = &link;
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        all.rank_count = all.chunk_count = 2;
        all.micro_batch_count = desc.micro_batch_count;
        all.ends = ends;
        ends[3] = count;
        for (ends[0] = 2; ends[0] < count; ends[0]++)
            for (ends[1] = ends[0] + 1; ends[1] < count; ends[1]++)
                for (ends[2] = ends[1] + 1; ends[2] < count; ends[2]++) {
                    cost = simulated_cost(&graph, &all, &desc);
                    if (cost < least) least = cost;
                }
        cost = simulated_cost(&graph, &ranks, &desc);
        assert_true(cost >= least);
        best_of_all += cost == least;
        ratio += (double)cost / (double)least;
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_graph(&env, &graph);
    }
    printf("%ld of %ld cuts are the best of all, on average %.4f times as long\n", best_of_all, rounds, ratio / (double)rounds);
    assert_true(best_of_all > rounds * 2 / 3 && ratio < 1.01 * (double)rounds);
}

// -- sums over ranks --

enum { MOST_REPLICAS = 4, MOST_FLOATS = 20000 };

typedef struct circle {
    rank_hub     hub;
    bed          beds[2 * MOST_REPLICAS];
    tl_variable     states[2 * MOST_REPLICAS][3];
    float       *values[2 * MOST_REPLICAS][3];
    int32_t      stages;
} circle;

static const char *const pair =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 a op fwd=1 bwd=1 out=16 needs=none in=0\n"
    "node 2 b op fwd=1 bwd=1 out=16 needs=none in=1 keep\n";

static float some_value(int32_t rank, int32_t state, uint64_t i) {
    return (float)((tl_mix_u64((uint64_t)rank * 10 + (uint64_t)state, i) >> 40) % 20011) / 97.0f - 100.0f;
}

// Ranks of `stages` stages, each with two ranges of gradients and one of weights. ranks: with several stages.
static void circle_open(circle *c, const tl_graph *graph, const tl_compiled_ranks *ranks, int32_t replicas, int32_t stages,
                        const uint64_t *counts, uint64_t poll_limit) {
    int32_t r, s;
    uint64_t i;
    c->stages = stages;
    hub_open(&c->hub, replicas * stages, poll_limit, NULL);
    for (r = 0; r < c->hub.count; r++) {
        bed *b = &c->beds[r];
        bed_open(b, graph, 0, 0, 1);
        for (s = 0; s < 3; s++) {
            c->values[r][s] = (float *)malloc((size_t)counts[s] * sizeof(float) + 4);
            for (i = 0; i < counts[s]; i++) c->values[r][s][i] = some_value(r, s, i);
            c->states[r][s].node = -1;
            c->states[r][s].kind = s == 1 ? TL_VARIABLE_PARAMETER : TL_VARIABLE_GRADIENT;
            c->states[r][s].host = c->values[r][s];
            c->states[r][s].bytes = counts[s] * sizeof(float);
        }
        b->desc.variables = c->states[r];
        b->desc.variable_count = 3;
        b->desc.transport = &c->hub.transports[r];
        b->desc.load = load;
        if (ranks) b->desc.compiled = &ranks->ranks[r % stages].compiled;
        bed_must_init(b);
    }
}

static void circle_close(circle *c) {
    int32_t r, s;
    for (r = 0; r < c->hub.count; r++) {
        bed_close(&c->beds[r]);
        for (s = 0; s < 3; s++) free(c->values[r][s]);
    }
    hub_close(&c->hub);
}

typedef struct circle_call {
    circle *c;
    tl_result (*call)(tl_run *, tl_variable_kind);
    tl_variable_kind kind;
} circle_call;

static tl_result circle_turn_of(int32_t rank, void *user) {
    circle_call *turn = (circle_call *)user;
    tl_result result = turn->call(turn->c->beds[rank].run, turn->kind);
    if (result && result != TL_NOT_READY) fail_msg("rank %d: %s", (int)rank, turn->c->beds[rank].env.error.text);
    return result;
}

static void circle_turn(circle *c, tl_random *random, tl_result (*call)(tl_run *, tl_variable_kind), tl_variable_kind kind) {
    circle_call turn = { c, call, kind };
    hub_take_turns(&c->hub, random, circle_turn_of, &turn);
}

// The sum of an element in the order that is documented.
static float ring_sum(const circle *c, int32_t stage, int32_t state, uint64_t count, uint64_t i) {
    int32_t replicas = c->hub.count / c->stages, shard = 0, k;
    uint64_t first = 0;
    float sum;
    for (; shard < replicas; shard++) {
        uint64_t length = count / (uint64_t)replicas + ((uint64_t)shard < count % (uint64_t)replicas);
        if (i < first + length) break;
        first += length;
    }
    sum = some_value(shard * c->stages + stage, state, i);
    for (k = 1; k < replicas; k++) sum = sum + some_value((shard + k) % replicas * c->stages + stage, state, i);
    return sum;
}

static void sums_have_the_bits_of_the_documented_order(void **state) {
    static circle c;
    tl_random random;
    tl_graph graph = graph_of(pair);
    int round;
    (void)state;
    random.state = 3;
    for (round = 0; round < 40; round++) {
        tl_env env;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        int32_t replicas = random_count(&random, 1, MOST_REPLICAS), stages = random_count(&random, 1, 2), r, s;
        uint64_t counts[3], i, scattered[2 * MOST_REPLICAS][2];
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.rank_count = stages;
        desc.micro_batch_count = 1;
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        for (s = 0; s < 3; s++) counts[s] = random_chance(&random, 40) ? (uint64_t)random_count(&random, 0, 9) : (uint64_t)random_count(&random, 1, MOST_FLOATS);
        circle_open(&c, &graph, &ranks, replicas, stages, counts, 0);
        if (round % 2) circle_turn(&c, &random, tl_reduce_run, TL_VARIABLE_GRADIENT);
        else circle_turn(&c, &random, tl_scatter_run, TL_VARIABLE_GRADIENT);
        for (r = 0; r < c.hub.count; r++)
            for (s = -1; s < 4; s += 4) {       // no such variables
                uint64_t offset = 1, bytes = 1;
                tl_find_run_shard(c.beds[r].run, s, &offset, &bytes);
                assert_true(!offset && !bytes);
            }
        for (r = 0; r < c.hub.count; r++)
            for (s = 0; s < 3; s++) {
                uint64_t offset = 0, bytes = counts[s] * sizeof(float);
                if (round % 2 == 0) tl_find_run_shard(c.beds[r].run, s, &offset, &bytes);
                if (s == 1) {
                    scattered[r][0] = offset / 4;
                    scattered[r][1] = bytes / 4;
                    for (i = 0; i < counts[s]; i++) assert_true(c.values[r][s][i] == some_value(r, s, i));
                    continue;
                }
                for (i = offset / 4; i < (offset + bytes) / 4; i++) {
                    float sum = ring_sum(&c, r % stages, s, counts[s], i);
                    assert_memory_equal(&sum, &c.values[r][s][i], sizeof sum);
                }
            }
        if (round % 2 == 0) {   // each changes its shard of the weights; then all have all of them
            for (r = 0; r < c.hub.count; r++)
                for (i = 0; i < scattered[r][1]; i++) c.values[r][1][scattered[r][0] + i] = (float)(r % stages) + (float)i / 64;
            circle_turn(&c, &random, tl_gather_run, TL_VARIABLE_PARAMETER);
            for (r = 0; r < c.hub.count; r++)
                assert_memory_equal(c.values[r][1], c.values[r % stages][1], (size_t)counts[1] * sizeof(float));
        }
        circle_close(&c);
        tl_free_compiled_ranks(&env, &ranks);
    }
    tl_free_graph(NULL, &graph);
}

// -- lost peers, and what cannot be --

// Ranks stop at random moments: every other one gets "peer lost" or ends, none waits for good, nothing is lost.
static void a_lost_rank_is_told_to_all(void **state) {
    static crew c;
    tl_random random;
    long round, rounds = scaled(50), told = 0;
    (void)state;
    random.state = 9;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        int32_t victim, ended[MOST_RANKS] = { 0 }, left, r;
        long until = random_count(&random, 0, 60), turns = 0;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        if (random_graph(&env, &random, 20, &graph)) fail_msg("%s", env.error.text);
        desc.graph = &graph;
        desc.rank_count = 3;
        desc.micro_batch_count = 4;
        if (round % 4 >= 2) {
            desc.pipeline = TL_PIPELINE_INTERLEAVED;
            desc.chunk_count = 2;
            desc.micro_batch_count = 6;
        }
        desc.work_limit = 1000000;
        if (count_nodes(&graph) < (desc.chunk_count ? 6 : 3)) { tl_free_graph(&env, &graph); continue; }
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        crew_open(&c, &graph, &ranks, round % 2 ? 5000 : 0);
        victim = random_count(&random, 0, c.hub.count - 1);
        for (r = 0; r < c.hub.count; r++) hands_start_step(&c.hands[r]);
        left = c.hub.count;
        while (left) {
            tl_result result;
            r = random_count(&random, 0, c.hub.count - 1);
            if (ended[r]) continue;
            if (++turns > 200000) fail_msg("%s", "a rank waits for good");
            if (r == victim && turns > until) {     // it ends; with odd rounds without a word
                tl_reset_run(c.beds[r].run);
                if (round % 2 == 0) threads_hub_leave(&c.hub.hub, r);
                ended[r] = 1;
                left--;
                continue;
            }
            result = tl_run_plan(c.beds[r].run);
            if (result == TL_NOT_READY) continue;
            if (result) {
                assert_int_equal(result, TL_ERROR_PEER_LOST);
                assert_non_null(strstr(c.beds[r].env.error.text, "peer lost"));
                if (round % 2 == 0) threads_hub_leave(&c.hub.hub, r);
                told++;
            }
            ended[r] = 1;
            left--;
        }
        crew_close(&c);
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_graph(&env, &graph);
    }
    printf("%ld ranks were told that a peer is lost\n", told);
    assert_true(rounds < 8 || told >= rounds / 2);
}

// -- transports that do not take every message, or fail --

// Messages that are not taken are offered again: the same bits and bytes, in pipelines, rings, and both.
static void a_transport_that_is_not_ready_changes_no_bit(void **state) {
    int share;
    (void)state;
    for (share = 20; share <= 80; share += 60) {
        hub_not_ready = share;
        train_random_graphs((uint64_t)share + 5, scaled(24), 26, 0, 0);
        train_random_graphs((uint64_t)share + 6, scaled(40), 32, 1, 0);
        sums_have_the_bits_of_the_documented_order(state);
    }
    hub_not_ready = 0;
}

// Take turns until all have ended. A rank that gets an error leaves. Returns how many got one.
static int32_t take_turns_to_the_end(rank_hub *hub, bed *beds, tl_random *random, tl_result (*call)(tl_run *run)) {
    int32_t left = hub->count, errors = 0, ended[MOST_RANKS] = { 0 };
    long turns = 0;
    while (left) {
        int32_t r = random_count(random, 0, hub->count - 1);
        tl_result result;
        if (ended[r]) continue;
        if (++turns > 200000) fail_msg("%s", "a rank waits for good");
        result = call(beds[r].run);
        if (result == TL_NOT_READY) continue;
        if (result) {
            assert_true(result == hub_fail_code || result == TL_ERROR_PEER_LOST);
            assert_non_null(strstr(beds[r].env.error.text, tl_name_result(result)));
            threads_hub_leave(&hub->hub, r);
            errors++;
        }
        ended[r] = 1;
        left--;
    }
    return errors;
}

static tl_result reduce_gradients(tl_run *run) { return tl_reduce_run(run, TL_VARIABLE_GRADIENT); }

// A send or receive that fails, and leaves the number of another rank's message: only what was taken is polled and canceled,
// which the hub asserts, and nothing is left behind.
static void a_message_that_fails_takes_no_other_with_it(void **state) {
    static const tl_result codes[] = { TL_ERROR_IO, TL_ERROR_NO_MEMORY, TL_ERROR_PEER_LOST };
    static crew c;
    static circle ring;
    tl_env env;
    tl_random random;
    tl_graph graph = graph_of(pair);
    tl_ranks_desc desc;
    tl_compiled_ranks ranks;
    uint64_t counts[3] = { 700, 3, 9000 };
    long at, failures = 0, canceled = 0, is_failed = 1;
    int32_t r;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    random.state = 15;
    desc.graph = &graph;
    desc.rank_count = 2;
    desc.micro_batch_count = 3;
    if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
    for (at = 0; is_failed; at++) {
        hub_fail_at = at;
        hub_fail_code = codes[at % 3];
        hub_not_ready = at % 2 ? 30 : 0;
        crew_open(&c, &graph, &ranks, 0);
        for (r = 0; r < c.hub.count; r++) hands_start_step(&c.hands[r]);
        is_failed = take_turns_to_the_end(&c.hub, c.beds, &random, tl_run_plan) > 0;
        assert_int_equal(is_failed, c.hub.failed);
        crew_close(&c);
        failures += is_failed;
        canceled += c.hub.canceled;
    }
    for (at = 0, is_failed = 1; is_failed; at++) {
        hub_fail_at = at;
        hub_fail_code = codes[at % 3];
        hub_not_ready = at % 2 ? 30 : 0;
        circle_open(&ring, &graph, NULL, 3, 1, counts, 0);
        is_failed = take_turns_to_the_end(&ring.hub, ring.beds, &random, reduce_gradients) > 0;
        assert_int_equal(is_failed, ring.hub.failed);
        circle_close(&ring);
        failures += is_failed;
        canceled += ring.hub.canceled;
    }
    hub_fail_at = -1;
    hub_not_ready = 0;
    printf("%ld failures, %ld messages canceled\n", failures, canceled);
    assert_true(failures > 30 && canceled > 10);
    tl_free_compiled_ranks(&env, &ranks);
    tl_free_graph(NULL, &graph);
}

static void ranks_with_other_plans_are_told_so(void **state) {
    static crew c;
    tl_env env;
    tl_graph graph = graph_of(pair);
    tl_ranks_desc desc;
    tl_compiled_ranks ranks, others;
    tl_result results[2] = { TL_NOT_READY, TL_NOT_READY };
    int32_t r;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.rank_count = 2;
    desc.micro_batch_count = 2;
    assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_OK);
    desc.pipeline = TL_PIPELINE_GPIPE;
    desc.micro_batch_count = 3;
    assert_int_equal(tl_compile_ranks(&env, &desc, &others), TL_OK);
    assert_true(ranks.hash != others.hash);
    crew_open(&c, &graph, &ranks, 0);
    bed_close(&c.beds[1]);
    bed_open(&c.beds[1], &graph, 0, 0, 1);
    hands_open(&c.hands[1], &c.beds[1], &graph);
    c.beds[1].desc.compiled = &others.ranks[1].compiled;
    c.beds[1].desc.transport = &c.hub.transports[1];
    c.beds[1].desc.load = load;
    bed_must_init(&c.beds[1]);
    while (results[0] == TL_NOT_READY || results[1] == TL_NOT_READY)
        for (r = 0; r < 2; r++)
            if (results[r] == TL_NOT_READY) results[r] = tl_run_plan(c.beds[r].run);
    for (r = 0; r < 2; r++) {
        assert_int_equal(results[r], TL_ERROR_MISMATCH);
        assert_non_null(strstr(c.beds[r].env.error.text, "has other plans"));
    }
    crew_close(&c);
    tl_free_compiled_ranks(&env, &ranks);
    tl_free_compiled_ranks(&env, &others);
    tl_free_graph(NULL, &graph);
}

// A pass that is given up is not run again: the neighbours may have its messages. Ranks that begin at other micro-batches,
// repeat the plan or draw otherwise are told so; a rank rehearses nothing, and has the tensors of its stage alone.
static void ranks_stay_in_step(void **state) {
    static crew c;
    tl_env env;
    tl_graph graph = graph_of(pair);
    tl_ranks_desc desc;
    tl_compiled_ranks ranks;
    tl_rehearsal rehearsal;
    tl_tensor last = { 0, 0 };
    int field;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.rank_count = 2;
    desc.micro_batch_count = 2;
    assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_OK);
    for (field = 0; field < graph.node_count; field++) {
        int32_t at = tl_find_node_rank(&ranks, field);
        if (!graph.nodes[field].is_input) assert_true(ranks.ranks[at].compiled.nodes[field] >= 0);
        if (!graph.nodes[field].is_input) assert_true(ranks.ranks[1 - at].compiled.nodes[field] < 0);
    }
    assert_int_equal(tl_find_node_rank(&ranks, graph.node_count), -1);
    assert_int_equal(tl_find_node_rank(&ranks, -1), -1);
    crew_open(&c, &graph, &ranks, 0);
    last.node = graph.node_count - 1;
    assert_int_equal(tl_read_tensor(c.beds[0].run, last, &field, sizeof field), TL_ERROR_NOT_FOUND);
    assert_string_equal(c.beds[0].env.error.text, "tl_read_tensor: tensor: of a node that this rank does not have");
    assert_int_equal(tl_rehearse_run(c.beds[0].run, NULL, &rehearsal), TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(c.beds[0].env.error.text, "run: is of one rank of several"));
    for (field = 0; field < 50; field++) {      // both have greeted, and rank 0 waits for its gradient
        hands_start_step(&c.hands[0]);
        assert_int_equal(tl_run_plan(c.beds[0].run), TL_NOT_READY);
        if (!field) (void)tl_run_plan(c.beds[1].run);
    }
    assert_int_equal(tl_reset_run(c.beds[0].run), TL_OK);
    assert_int_equal(tl_run_plan(c.beds[0].run), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(c.beds[0].env.error.text, "a pass with messages did not end"));
    crew_close(&c);
    for (field = 0; field < 3; field++) {
        tl_result results[2] = { TL_NOT_READY, TL_NOT_READY };
        int32_t r;
        crew_open(&c, &graph, &ranks, 0);
        bed_close(&c.beds[1]);
        bed_open(&c.beds[1], &graph, 0, 0, 1);
        hands_open(&c.hands[1], &c.beds[1], &graph);
        c.beds[1].desc.compiled = &ranks.ranks[1].compiled;
        c.beds[1].desc.transport = &c.hub.transports[1];
        c.beds[1].desc.load = load;
        if (field == 0) c.beds[1].desc.first_micro_batch = 2;
        if (field == 1) c.beds[1].desc.repeat_count = 3;
        if (field == 2) c.beds[1].desc.seed = c.beds[0].desc.seed + 1;
        bed_must_init(&c.beds[1]);
        while (results[0] == TL_NOT_READY || results[1] == TL_NOT_READY)
            for (r = 0; r < 2; r++)
                if (results[r] == TL_NOT_READY) results[r] = tl_run_plan(c.beds[r].run);
        for (r = 0; r < 2; r++) {
            assert_int_equal(results[r], TL_ERROR_MISMATCH);
            assert_non_null(strstr(c.beds[r].env.error.text, "has another repeat_count, seed or first_micro_batch"));
        }
        crew_close(&c);
    }
    tl_free_compiled_ranks(&env, &ranks);
    tl_free_graph(NULL, &graph);
}

static void bad_descs_are_refused(void **state) {
    static const int32_t falling[2] = { 3, 2 }, short_ends[2] = { 1, 3 }, outside[2] = { 2, 4 };
    static const struct { int32_t ranks, batches; const int32_t *ends; int pipeline; const char *says; int32_t chunks; } rows[] = {
        { 0, 1, NULL, 0, "rank_count: must be > 0", 0 },   { 4, 1, NULL, 0, "rank_count: more ranks than nodes", 0 },
        { 2, 0, NULL, 0, "micro_batch_count: must be", 0 }, { 2, 65536, NULL, 0, "micro_batch_count: must be", 0 },
        { 2, 1, falling, 0, "ends: must rise", 0 },        { 2, 1, short_ends, 0, "ends: must rise", 0 },
        { 2, 1, outside, 0, "ends: must rise", 0 },        { 2, 1, NULL, 77, "pipeline: ranks run 1f1b, gpipe or interleaved", 0 },
        { 2, 2, NULL, TL_PIPELINE_INTERLEAVED, "chunk_count: interleaved needs 2 or more", 0 },
        { 2, 2, NULL, TL_PIPELINE_INTERLEAVED, "chunk_count: interleaved needs 2 or more", 1 },
        { 2, 2, NULL, TL_PIPELINE_INTERLEAVED, "chunk_count: interleaved needs 2 or more", -1 },
        { 2, 2, NULL, TL_PIPELINE_1F1B, "other kinds 0 or 1", 2 },
        { 1, 2, NULL, TL_PIPELINE_INTERLEAVED, "chunk_count: more than 1 needs more than 1 rank", 2 },
        { 2, 2, NULL, TL_PIPELINE_INTERLEAVED, "chunk_count: more stages than nodes", 2 },
        { 2, 2, NULL, TL_PIPELINE_INTERLEAVED, "chunk_count: more stages than nodes", INT32_MAX },
    };
    tl_graph graph = graph_of(pair);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tl_env env = silent_env();
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        memset(&desc, 0, sizeof desc);
        memset(&ranks, 1, sizeof ranks);
        desc.graph = &graph;
        desc.rank_count = rows[i].ranks;
        desc.micro_batch_count = rows[i].batches;
        desc.ends = rows[i].ends;
        desc.pipeline = (tl_pipeline)rows[i].pipeline;
        desc.chunk_count = rows[i].chunks;
        assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INVALID_ARG);
        if (!strstr(env.error.text, rows[i].says)) fail_msg("row %d: %s", (int)i, env.error.text);
        assert_true(is_zero(&ranks, sizeof ranks));
    }
    tl_free_graph(NULL, &graph);
}

// A link without a rate, with cuts that are given and that are found.
static void a_link_of_0_is_refused(void **state) {
    static const int32_t ends[2] = { 2, 3 };
    static const tl_link link = { 0, 5 };
    tl_graph graph = graph_of(pair);
    int given;
    (void)state;
    for (given = 0; given < 2; given++) {
        tl_env env = silent_env();
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.rank_count = 2;
        desc.micro_batch_count = 1;
        desc.ends = given ? ends : NULL;
        desc.link = &link;
        assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_compile_ranks: link: bytes_per_second must be > 0 between ranks");
    }
    tl_free_graph(NULL, &graph);
}

// While a sum is under way no pass begins; a reset gives the sum up, and a lost peer between passes has no step.
static void a_sum_under_way_keeps_passes_out(void **state) {
    static circle c;
    static const uint64_t counts[3] = { 9, 0, 0 };
    tl_graph graph = graph_of(pair);
    tl_run *run;
    tl_result result;
    (void)state;
    circle_open(&c, &graph, NULL, 2, 1, counts, 0);
    run = c.beds[0].run;
    assert_int_equal(tl_reduce_run(run, TL_VARIABLE_GRADIENT), TL_NOT_READY);
    assert_int_equal(tl_scatter_run(run, TL_VARIABLE_GRADIENT), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_start_pass(run, 0), TL_ERROR_INVALID_ARG);
    assert_string_equal(c.beds[0].env.error.text, "tl_start_pass: run: another sum over ranks is under way");
    assert_int_equal(tl_reset_run(run), TL_OK);
    assert_int_equal(tl_start_pass(run, 0), TL_OK);
    assert_int_equal(tl_reset_run(run), TL_OK);
    assert_int_equal(tl_reduce_run(run, TL_VARIABLE_GRADIENT), TL_NOT_READY);
    threads_hub_leave(&c.hub.hub, 1);
    do result = tl_reduce_run(run, TL_VARIABLE_GRADIENT); while (result == TL_NOT_READY);
    assert_int_equal(result, TL_ERROR_PEER_LOST);
    assert_non_null(strstr(c.beds[0].env.error.text, "message with rank 1 between passes: peer lost"));
    circle_close(&c);
    tl_free_graph(NULL, &graph);
}

// Whatever allocation fails, the answer is "no memory" or the same plans, and nothing leaks.
static void failing_memory_loses_nothing(void **state) {
    tl_env none = silent_env();
    tl_graph graphs[2];
    int chunks;
    (void)state;
    graphs[0] = graph_of(pair);
    chain_of(&none, NULL, 6, &graphs[1]);
    for (chunks = 1; chunks <= 2; chunks++) {
        long at, failures = 0;
        for (at = 0;; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at);
            tl_ranks_desc desc;
            tl_compiled_ranks ranks;
            tl_result result;
            memset(&desc, 0, sizeof desc);
            desc.graph = &graphs[chunks - 1];
            desc.rank_count = 2;
            desc.chunk_count = chunks;
            if (chunks > 1) desc.pipeline = TL_PIPELINE_INTERLEAVED;
            desc.micro_batch_count = 2;
            desc.budget_bytes = chunks == 1 ? 70 : 0;
            result = tl_compile_ranks(&env, &desc, &ranks);
            if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
            tl_free_compiled_ranks(&env, &ranks);
            assert_int_equal(f.live, 0);
            if (!result) break;
            failures++;
        }
        printf("%ld failures\n", failures);
        assert_true(failures > 20);
        tl_free_graph(NULL, &graphs[chunks - 1]);
    }
}

// A message that has not the bytes that the other side expects ends both ranks.
static void short_messages_are_told(void **state) {
    threads_hub_desc desc;
    threads_hub hub;
    tl_transport a, b;
    char from[16], to[16];
    int32_t sent, received;
    (void)state;
    memset(&desc, 0, sizeof desc);
    memset(from, 1, sizeof from);
    desc.rank_count = 2;
    desc.message_limit = 2;
    assert_true(threads_hub_open(&hub, &desc));
    a = threads_hub_join(&hub, 0);
    b = threads_hub_join(&hub, 1);
    assert_int_equal(a.send(a.self, 1, 5, from, 12, &sent), TL_OK);
    assert_int_equal(a.poll(a.self, sent), TL_NOT_READY);
    assert_int_equal(b.receive(b.self, 0, 5, to, 16, &received), TL_OK);
    assert_int_equal(a.send(a.self, 1, 6, from, 1, &sent), TL_ERROR_NO_MEMORY);
    assert_int_equal(a.poll(a.self, 0), TL_ERROR_MISMATCH);
    assert_int_equal(b.poll(b.self, received), TL_ERROR_MISMATCH);
    threads_hub_close(&hub);
}

// Training goes on after a rank is lost: each rank has saved itself before the step, a new crew loads that, and what
// follows is as if nothing had happened.
static void training_goes_on_from_what_was_saved(void **state) {
    static crew c, again;
    tl_random random;
    int round, resumed = 0;
    (void)state;
    random.state = 31;
    for (round = 0; round < 30; round++) {
        tl_env env;
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        memory_sink saved[MOST_RANKS];
        uint64_t before[MOST_RANKS][MIXER_NODES];
        int32_t r, victim, id;
        long turns;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        if (random_graph(&env, &random, 26, &graph)) fail_msg("%s", env.error.text);
        desc.graph = &graph;
        desc.rank_count = 2;
        desc.micro_batch_count = 3;
        desc.work_limit = 1000000;
        if (count_nodes(&graph) < 2) { tl_free_graph(&env, &graph); continue; }
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("%s", env.error.text);
        crew_open(&c, &graph, &ranks, 0);
        crew_step(&c, &random);
        for (r = 0; r < 2; r++) {
            if (tl_save_run(c.beds[r].run, sink_of(&saved[r], -1))) fail_msg("%s", c.beds[r].env.error.text);
            memcpy(before[r], c.hands[r].gradients, sizeof before[r]);
        }
        // the step that is lost
        victim = random_count(&random, 0, 1);
        for (turns = random_count(&random, 0, 10); turns; turns--)
            for (r = 0; r < 2; r++) {
                hands_start_step(&c.hands[r]);
                (void)tl_run_plan(c.beds[r].run);
            }
        tl_reset_run(c.beds[victim].run);
        threads_hub_leave(&c.hub.hub, victim);
        crew_close(&c);
        // all over again, without a loss, and from what was saved
        crew_open(&c, &graph, &ranks, 0);
        crew_step(&c, &random);
        crew_step(&c, &random);
        crew_open(&again, &graph, &ranks, 0);
        for (r = 0; r < 2; r++) {
            if (tl_load_run(again.beds[r].run, saved[r].text, saved[r].length)) fail_msg("%s", again.beds[r].env.error.text);
            memcpy(again.hands[r].gradients, before[r], sizeof before[r]);
            free(saved[r].text);
        }
        crew_step(&again, &random);
        for (r = 0; r < 2; r++)
            for (id = 0; id < graph.node_count; id++)
                assert_int_equal(again.hands[r].gradients[id], c.hands[r].gradients[id]);
        resumed++;
        crew_close(&again);
        crew_close(&c);
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_graph(&env, &graph);
    }
    assert_true(resumed > 10);
}

// -- strategies --

// A strategy with stages, and a transport: each run plans all ranks and takes its own.
static void strategies_cut_the_graph(void **state) {
    static crew c;
    static uint64_t expected[MIXER_NODES];
    static const struct { tl_parallelism_kind kind; uint64_t workers, steps; int checkpointed; } rows[] = {
        { TL_PARALLELISM_PIPELINE, 2, 4, 0 }, { TL_PARALLELISM_PIPELINE, 3, 5, 1 }, { TL_PARALLELISM_MODEL, 2, 3, 0 },
        { TL_PARALLELISM_MODEL, 3, 1, 1 },    { TL_PARALLELISM_PIPELINE, 1, 2, 0 },
    };
    tl_random random;
    tl_env env;
    tl_graph graph;
    size_t row;
    (void)state;
    memset(&env, 0, sizeof env);
    random.state = 12;
    do {
        if (random_graph(&env, &random, 26, &graph)) fail_msg("%s", env.error.text);
        if (count_nodes(&graph) >= 8) break;
        tl_free_graph(&env, &graph);
    } while (1);
    for (row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        tl_strategy strategy = tl_strategy_training();
        uint64_t sent = 0;
        int32_t r, id;
        strategy.mode = TL_MODE_LAZY;
        strategy.precision = TL_PRECISION_SINGLE;
        strategy.memory = TL_MEMORY_POOLED;
        strategy.enable_fusion = 0;
        strategy.gradient.checkpointed = rows[row].checkpointed;
        strategy.gradient.checkpoint_interval = 0;
        strategy.gradient.accumulation_steps = rows[row].steps;
        strategy.parallelism = rows[row].kind == TL_PARALLELISM_MODEL ? tl_parallelism_model(rows[row].workers)
                                                                      : tl_parallelism_pipeline(rows[row].workers);
        one_process(&graph, 0, (int32_t)rows[row].steps, expected);
        crew_open_strategy(&c, &graph, (int32_t)rows[row].workers, NULL, &strategy, 0);
        crew_step(&c, &random);
        crew_step(&c, &random);
        for (id = 0; id < graph.node_count; id++) {
            uint64_t found = 0;
            for (r = 0; r < c.hub.count; r++) found |= c.hands[r].gradients[id];
            if (!graph.nodes[id].is_input) assert_int_equal(found, expected[id]);
        }
        for (r = 0; r < c.hub.count; r++) {
            tl_run_report report = bed_report(&c.beds[r]);
            assert_int_equal(report.worker_count, c.hub.count);
            assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
            sent += report.sent_bytes;
        }
        assert_true(c.hub.count == 1 || sent > 0);
        crew_close(&c);
    }
    tl_free_graph(&env, &graph);
}

// A pipeline that keeps everything runs within fewer bytes of the device where the host takes some.
static void strategies_copy_to_the_host(void **state) {
    static crew c;
    static uint64_t expected[MIXER_NODES];
    tl_strategy strategy = tl_with_parallelism(tl_with_fusion(tl_strategy_training(), 0), tl_parallelism_pipeline(3));
    tl_random random = { 12 };
    tl_env env = silent_env();
    tl_graph graph;
    uint64_t most = 0, budget, copied = 0;
    int32_t r, id, part;
    (void)state;
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.gradient = tl_gradient_full();
    strategy.gradient.accumulation_steps = 6;
    chain_of(&env, NULL, 25, &graph);
    one_process(&graph, 0, 6, expected);
    for (part = 8; part > 4; part--) {
        budget = most * (uint64_t)part / 8;         // 0 at first: no limit
        crew_open_strategy(&c, &graph, 3, NULL, &strategy, budget);
        crew_step(&c, &random);
        crew_step(&c, &random);
        for (r = 0; r < c.hub.count; r++) {
            tl_run_report report = bed_report(&c.beds[r]);
            assert_true(!budget || report.taken_bytes <= budget);
            assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
            assert_int_equal(report.measured_host_peak_bytes, report.planned_host_peak_bytes);
            copied += report.measured_host_peak_bytes;
            if (!budget && report.taken_bytes > most) most = report.taken_bytes;
        }
        for (id = 0; id < graph.node_count; id++) {
            uint64_t found = 0;
            for (r = 0; r < c.hub.count; r++) found |= c.hands[r].gradients[id];
            if (!graph.nodes[id].is_input) assert_int_equal(found, expected[id]);
        }
        assert_true(budget || !copied);
        crew_close(&c);
    }
    assert_true(copied > 0);
    tl_free_graph(&env, &graph);
}

static void strategies_that_no_transport_carries_are_refused(void **state) {
    static const struct {
        tl_parallelism_kind kind; uint64_t workers; int mode, ranks; tl_result result; const char *says;
        int memory; uint64_t interval;
    } rows[] = {
        { TL_PARALLELISM_PIPELINE, 2, TL_MODE_LAZY, 0, TL_ERROR_UNSUPPORTED, "model and pipeline need a transport", TL_MEMORY_POOLED, 0 },
        { TL_PARALLELISM_MODEL, 2, TL_MODE_LAZY, 0, TL_ERROR_UNSUPPORTED, "model and pipeline need a transport", TL_MEMORY_POOLED, 0 },
        { TL_PARALLELISM_PIPELINE, 2, TL_MODE_LAZY, 3, TL_ERROR_INVALID_ARG, "2 does not divide the 3 ranks", TL_MEMORY_POOLED, 0 },
        { TL_PARALLELISM_DATA, 2, TL_MODE_LAZY, 4, TL_ERROR_INVALID_ARG, "2 does not divide the 4 ranks", TL_MEMORY_POOLED, 0 },
        { TL_PARALLELISM_PIPELINE, 2, TL_MODE_EAGER, 2, TL_ERROR_UNSUPPORTED, "are for mode lazy", TL_MEMORY_POOLED, 0 },
        { TL_PARALLELISM_PIPELINE, 2, TL_MODE_LAZY, 2, TL_ERROR_UNSUPPORTED, "no interval", TL_MEMORY_POOLED, 3 },
        { TL_PARALLELISM_MODEL, 2, TL_MODE_LAZY, 2, TL_ERROR_UNSUPPORTED, "memory pooled", TL_MEMORY_MINIMAL_PEAK, 0 },
    };
    tl_graph graph = graph_of(pair);
    size_t row;
    (void)state;
    for (row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        static bed b;
        tl_strategy strategy = tl_strategy_training();
        threads_hub_desc desc;
        threads_hub hub;
        tl_transport transport;
        memset(&desc, 0, sizeof desc);
        desc.rank_count = rows[row].ranks ? rows[row].ranks : 1;
        assert_true(threads_hub_open(&hub, &desc));
        transport = threads_hub_join(&hub, 0);
        strategy.mode = (tl_mode)rows[row].mode;
        strategy.precision = TL_PRECISION_SINGLE;
        strategy.enable_fusion = 0;
        strategy.memory = (tl_memory)rows[row].memory;
        if (rows[row].interval) strategy.gradient.checkpointed = 1;
        strategy.gradient.checkpoint_interval = rows[row].interval;
        strategy.parallelism.kind = rows[row].kind;
        strategy.parallelism.as.data.worker_count = rows[row].workers;
        bed_open(&b, &graph, 0, 0, 1);
        b.desc.strategy = &strategy;
        b.desc.transport = rows[row].ranks ? &transport : NULL;
        assert_int_equal(bed_init(&b), rows[row].result);
        if (!strstr(b.env.error.text, rows[row].says)) fail_msg("row %d: %s", (int)row, b.env.error.text);
        bed_close(&b);
        threads_hub_close(&hub);
    }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_one_process),
        cmocka_unit_test(interleaved_gradients_are_those_of_one_process),
        cmocka_unit_test(copies_to_the_host_change_no_bit),
        cmocka_unit_test(chains_take_what_is_simulated),
        cmocka_unit_test(copies_take_what_is_simulated),
        cmocka_unit_test(copies_are_few_and_weighed_against_running_again),
        cmocka_unit_test(chunks_make_the_bubble_less),
        cmocka_unit_test(cuts_of_chunks_are_near_the_best),
        cmocka_unit_test(a_slow_rank_has_short_chunks),
        cmocka_unit_test(sums_have_the_bits_of_the_documented_order),
        cmocka_unit_test(a_lost_rank_is_told_to_all),
        cmocka_unit_test(a_transport_that_is_not_ready_changes_no_bit),
        cmocka_unit_test(a_message_that_fails_takes_no_other_with_it),
        cmocka_unit_test(ranks_with_other_plans_are_told_so),
        cmocka_unit_test(ranks_stay_in_step),
        cmocka_unit_test(bad_descs_are_refused),
        cmocka_unit_test(a_link_of_0_is_refused),
        cmocka_unit_test(a_sum_under_way_keeps_passes_out),
        cmocka_unit_test(failing_memory_loses_nothing),
        cmocka_unit_test(short_messages_are_told),
        cmocka_unit_test(training_goes_on_from_what_was_saved),
        cmocka_unit_test(strategies_cut_the_graph),
        cmocka_unit_test(strategies_copy_to_the_host),
        cmocka_unit_test(strategies_that_no_transport_carries_are_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
