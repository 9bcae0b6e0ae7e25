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
#include "../examples/transport_threads.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/run_bed.h"

#define SOAK_TIMES(count) ((count) * (getenv("SOAK") ? 20 : 1))

enum { MOST_RANKS = 4, MOST_BATCHES = 6 };

// Kernels with a mixer for each micro-batch, because several are under way; gradients add up in the order of calls.
typedef struct hands {
    mixer     mixers[MOST_BATCHES];
    uint64_t  gradients[MIXER_NODES];
    tl_kernel kernels[MIXER_NODES];
} hands;

static tl_result hands_forward(const tl_kernel_call *call, void *user) {
    return mixer_forward(call, &((hands *)user)->mixers[call->micro_batch]);
}

static tl_result hands_backward(const tl_kernel_call *call, void *user) {
    hands *h = (hands *)user;
    mixer *m = &h->mixers[call->micro_batch];
    tl_result result;
    m->gradients[call->node] = h->gradients[call->node];
    result = mixer_backward(call, m);
    h->gradients[call->node] = m->gradients[call->node];
    return result;
}

static void hands_start_step(hands *h) {
    int i;
    for (i = 0; i < MOST_BATCHES; i++) mixer_start_pass(&h->mixers[i]);
}

static void hands_open(hands *h, bed *b, const tl_graph *graph) {
    int32_t i;
    memset(h, 0, sizeof *h);
    for (i = 0; i < MOST_BATCHES; i++) mixer_init(&h->mixers[i]);
    b->desc.kernel_count = mixer_kernels(graph, &h->mixers[0], h->kernels);
    for (i = 0; i < b->desc.kernel_count; i++) {
        h->kernels[i].forward = hands_forward;
        h->kernels[i].backward = hands_backward;
        h->kernels[i].user = h;
    }
    b->desc.kernels = h->kernels;
}

typedef struct crew {
    threads_hub  hub;
    tl_transport transports[MOST_RANKS];
    bed          beds[MOST_RANKS];
    hands        hands[MOST_RANKS];
    int32_t      count;
} crew;

// Write the inputs that the rank's stage has.
static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    bed *b = (bed *)user;
    unsigned char bytes[256];
    int32_t i;
    uint64_t k;
    for (i = 0; i < b->graph->tensor_count; i++) {
        const tl_node_output *output = &b->graph->outputs[i];
        tl_tensor tensor;
        tl_result result;
        if (!b->graph->nodes[output->node].is_input) continue;
        for (k = 0; k < output->bytes; k++) bytes[k] = (unsigned char)tl_mix_u64((uint64_t)micro_batch * 1000 + (uint64_t)i, k);
        tensor.node = output->node;
        tensor.output = output->output;
        result = tl_write_tensor(run, tensor, bytes, output->bytes);
        if (result && result != TL_ERROR_NOT_FOUND) return result;
    }
    return TL_OK;
}

static void crew_open(crew *c, const tl_graph *graph, const tl_compiled_ranks *ranks, uint64_t poll_limit) {
    threads_hub_desc desc;
    int32_t r;
    memset(&desc, 0, sizeof desc);
    desc.rank_count = c->count = ranks->rank_count;
    desc.poll_limit = poll_limit;
    assert_true(threads_hub_open(&c->hub, &desc));
    for (r = 0; r < c->count; r++) {
        bed *b = &c->beds[r];
        c->transports[r] = threads_hub_join(&c->hub, r);
        bed_open(b, graph, BACKEND_CHECKED, (uint64_t)r, 1);
        hands_open(&c->hands[r], b, graph);
        b->desc.load = load;
        b->desc.compiled = &ranks->ranks[r].compiled;
        b->desc.transport = &c->transports[r];
        bed_must_init(b);
    }
}

static void crew_close(crew *c) {
    int32_t r;
    for (r = 0; r < c->count; r++) bed_close(&c->beds[r]);
    threads_hub_close(&c->hub);
}

// One training step of all ranks, in turns.
static void crew_step(crew *c, tl_random *random) {
    int32_t done[MOST_RANKS] = { 0 }, left = c->count;
    long turns = 0;
    int32_t r;
    for (r = 0; r < c->count; r++) hands_start_step(&c->hands[r]);
    while (left) {
        tl_result result;
        r = random_count(random, 0, c->count - 1);
        if (++turns > 100000) fail_msg("%s", "ranks wait for each other");
        if (done[r]) continue;
        result = tl_run_plan(c->beds[r].run);
        if (result == TL_NOT_READY) continue;
        if (result) fail_msg("rank %d: %s", (int)r, c->beds[r].env.error.text);
        done[r] = 1;
        left--;
    }
}

static int32_t count_nodes(const tl_graph *graph) {
    int32_t count = 0, i;
    for (i = 0; i < graph->node_count; i++) count += !graph->nodes[i].is_input;
    return count;
}

// The gradient checksum of every node, of one process that keeps everything.
static void one_process(const tl_graph *graph, int32_t micro_batches, uint64_t *gradients) {
    static bed b;
    static hands h;
    tl_plan plan;
    bed_open(&b, graph, 0, 0, 1);
    hands_open(&h, &b, graph);
    b.desc.load = load;
    if (tl_plan_keep_all(&b.env, graph, 0, &plan)) fail_msg("%s", b.env.error.text);
    b.desc.plan = &plan;
    b.desc.repeat_count = micro_batches;
    bed_must_init(&b);
    if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    hands_start_step(&h);
    if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    memcpy(gradients, h.gradients, (size_t)graph->node_count * sizeof *gradients);
    bed_close(&b);
    tl_free_plan(&b.env, &plan);
}

static void check_crew(const crew *c, const tl_graph *graph, const tl_compiled_ranks *ranks, const uint64_t *expected) {
    int32_t r, id;
    for (r = 0; r < c->count; r++) {
        const tl_rank_plan *rank = &ranks->ranks[r];
        tl_run_report report = bed_report(&c->beds[r]);
        assert_int_equal(report.measured_peak_bytes, rank->compiled.plan.peak_bytes);
        assert_int_equal(report.measured_arena_bytes, rank->compiled.plan.arena_bytes);
        bed_check_taken(&report);
        assert_int_equal(report.sent_bytes, rank->sent_bytes);
        for (id = rank->first_node; id < rank->end_node; id++)
            if (!graph->nodes[id].is_input && c->hands[r].gradients[id] != expected[id])
                fail_msg("rank %d: node %d has another gradient", (int)r, (int)id);
    }
}

static void gradients_are_those_of_one_process(void **state) {
    static crew c;
    static uint64_t expected[MIXER_NODES];
    tl_random random;
    long round, rounds = SOAK_TIMES(150), ran = 0, tight = 0, relayed = 0, remade = 0;
    (void)state;
    random.state = 1;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        tl_result result;
        int32_t r;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        if (random_graph(&env, &random, 26, &graph)) fail_msg("%s", env.error.text);
        desc.graph = &graph;
        desc.rank_count = random_count(&random, 2, MOST_RANKS);
        desc.micro_batch_count = random_count(&random, 1, MOST_BATCHES);
        desc.pipeline = random_chance(&random, 30) ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
        desc.work_limit = 2000000;
        if (count_nodes(&graph) < desc.rank_count) { tl_free_graph(&env, &graph); continue; }
        result = tl_compile_ranks(&env, &desc, &ranks);
        if (result) fail_msg("%s", env.error.text);
        if (random_chance(&random, 60)) {   // less than the largest stage takes
            uint64_t most = 0;
            for (r = 0; r < ranks.rank_count; r++)
                if (ranks.ranks[r].compiled.plan.arena_bytes > most) most = ranks.ranks[r].compiled.plan.arena_bytes;
            desc.budget_bytes = most - most / 4 ? most - most / 4 : 1;
            tl_free_compiled_ranks(&env, &ranks);
            result = tl_compile_ranks(&env, &desc, &ranks);
            if (result == TL_ERROR_INFEASIBLE) { tl_free_graph(&env, &graph); continue; }
            if (result) fail_msg("%s", env.error.text);
            tight++;
        }
        for (r = 0; r < ranks.rank_count; r++) {
            assert_true(!desc.budget_bytes || ranks.ranks[r].compiled.plan.arena_bytes <= desc.budget_bytes);
            remade += ranks.ranks[r].busy_cost > ranks.ranks[r].compiled.bound_cost;
        }
        one_process(&graph, desc.micro_batch_count, expected);
        crew_open(&c, &graph, &ranks, 0);
        crew_step(&c, &random);
        crew_step(&c, &random);
        check_crew(&c, &graph, &ranks, expected);
        crew_close(&c);
        ran++;
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_graph(&env, &graph);
    }
    printf("%ld graphs ran, %ld within less than all, %ld ranks run forwards again\n", ran, tight, remade);
    (void)relayed;
    assert_true(ran > rounds / 3 && tight > ran / 10 && remade > tight / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_one_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
