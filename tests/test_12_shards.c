// [12] RUN: gradients of which each replica keeps a shard (ZeRO 2). One buffer serves the gradients of all nodes; what a
// replica has at the end is compared with sums that are taken here, in the documented order.
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
#include "support/rank_hub.h"


enum { MOST_REPLICAS = 4, MOST_WORKERS = 6, MOST_FLOATS = 9000 };

// A rank: kernels that add numbers to the gradient of their node, which must be clear when they begin.
typedef struct worker {
    tl_transport transport;
    bed          bed;
    tl_kernel    kernels[MIXER_NODES];
    tl_variable     states[MIXER_NODES];
    int32_t      state_of[MIXER_NODES];  // -1 = the node has no gradient
    float        buffer[MOST_FLOATS];    // of all gradients
    float       *shards[MIXER_NODES];
    uint64_t     counts[MIXER_NODES];    // floats of a gradient
    int32_t      count;
    long         backwards, fail_at;     // -1 = none fails
} worker;

typedef struct team {
    rank_hub    hub;
    worker      workers[MOST_WORKERS];
    int32_t     count, stages;
} team;

static float added(int32_t micro_batch, int32_t node, uint64_t i) {
    return (float)((tl_mix_u64((uint64_t)micro_batch * 100 + (uint64_t)node, i) >> 40) % 20011) / 97.0f - 100.0f;
}

static tl_result fill_outputs(const tl_kernel_call *call, void *user) {
    int32_t k;
    (void)user;
    for (k = 0; k < call->graph->nodes[call->node].output_count; k++) {
        if (call->outputs[k].range.bytes) memset(call->outputs[k].host, 0, (size_t)call->outputs[k].range.bytes);
    }
    return TL_OK;
}

static tl_result add_gradient(const tl_kernel_call *call, void *user) {
    worker *w = (worker *)user;
    int32_t state = w->state_of[call->node];
    uint64_t i;
    if (w->backwards++ == w->fail_at) return TL_ERROR_KERNEL;
    for (i = 0; state >= 0 && i < w->counts[state]; i++) {
        assert_true(w->buffer[i] == 0);
        w->buffer[i] += added(call->micro_batch, call->node, i);
    }
    return TL_OK;
}

// Write the inputs that the rank's stage has.
static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    const tl_graph *graph = ((worker *)user)->bed.graph;
    static const unsigned char bytes[256];
    int32_t i;
    (void)micro_batch;
    for (i = 0; i < graph->tensor_count; i++) {
        tl_tensor tensor = { graph->outputs[i].node, graph->outputs[i].output };
        tl_result result;
        if (!graph->nodes[tensor.node].is_input) continue;
        result = tl_write_tensor(run, tensor, bytes, graph->outputs[i].bytes);
        if (result && result != TL_ERROR_NOT_FOUND) return result;
    }
    return TL_OK;
}

// Some nodes have gradients, of lengths that depend on the node alone: all in one buffer.
static void worker_open(worker *w, const tl_graph *graph, int32_t replicas, int kind) {
    int32_t id, k;
    bed_open(&w->bed, graph, kind, 3, 1);
    w->bed.desc.kernel_count = mixer_kernels(graph, &w->bed.mixer, w->kernels);
    for (k = 0; k < w->bed.desc.kernel_count; k++) {
        w->kernels[k].forward = fill_outputs;
        w->kernels[k].backward = add_gradient;
        w->kernels[k].user = w;
    }
    w->bed.desc.kernels = w->kernels;
    w->bed.desc.load = load;
    w->bed.desc.load_user = w;
    w->count = 0;
    w->backwards = 0;
    w->fail_at = -1;
    for (id = 0; id < graph->node_count; id++) {
        uint64_t length = tl_mix_u64(7, (uint64_t)id), floats = length % 3 ? length % 11 : length % MOST_FLOATS;
        w->state_of[id] = -1;
        if (graph->nodes[id].is_input || !graph->nodes[id].has_grad) continue;
        w->state_of[id] = w->count;
        w->counts[w->count] = floats;
        w->shards[w->count] = (float *)calloc((size_t)floats / (size_t)replicas + 1, sizeof(float));
        memset(&w->states[w->count], 0, sizeof w->states[0]);
        w->states[w->count].node = id;
        w->states[w->count].kind = TL_VARIABLE_GRADIENT;
        w->states[w->count].host = w->buffer;
        w->states[w->count].bytes = floats * sizeof(float);
        w->states[w->count].shard = w->shards[w->count];
        w->count++;
    }
    w->bed.desc.variables = w->count ? w->states : NULL;
    w->bed.desc.variable_count = w->count;
}

static void worker_close(worker *w) {
    int32_t k;
    bed_close(&w->bed);
    for (k = 0; k < w->count; k++) free(w->shards[k]);
}

// Ranks of stages, or without ranks runs of the strategy.
static void team_open(team *t, const tl_graph *graph, const tl_compiled_ranks *ranks, const tl_strategy *strategy, int32_t replicas,
                      int32_t batches, uint64_t poll_limit) {
    int32_t r;
    t->stages = ranks ? ranks->rank_count : 1;
    t->count = replicas * t->stages;
    hub_open(&t->hub, t->count, poll_limit, NULL);
    for (r = 0; r < t->count; r++) {
        worker *w = &t->workers[r];
        w->transport = t->hub.transports[r];
        worker_open(w, graph, replicas, BACKEND_CHECKED);
        w->bed.desc.transport = &w->transport;
        w->bed.desc.first_micro_batch = r / t->stages * batches;
        if (ranks) w->bed.desc.compiled = &ranks->ranks[r % t->stages].compiled;
        else {
            w->bed.desc.strategy = strategy;
            w->bed.desc.repeat_count = batches;
        }
        bed_must_init(&w->bed);
    }
}

static void team_close(team *t) {
    int32_t r;
    for (r = 0; r < t->count; r++) worker_close(&t->workers[r]);
    hub_close(&t->hub);
}

// One training step of all ranks, in turns.
static void team_step(team *t, tl_random *random) {
    int32_t done[MOST_WORKERS] = { 0 }, left = t->count, r, k;
    long turns = 0;
    for (r = 0; r < t->count; r++)
        for (k = 0; k < t->workers[r].count; k++) {
            uint64_t offset, bytes;
            tl_find_run_shard(t->workers[r].bed.run, k, &offset, &bytes);
            memset(t->workers[r].shards[k], 0, (size_t)bytes);
        }
    while (left) {
        tl_result result;
        r = random_count(random, 0, t->count - 1);
        if (++turns > 1000000) fail_msg("%s", "ranks wait for each other");
        if (done[r]) continue;
        result = tl_run_plan(t->workers[r].bed.run);
        if (result == TL_NOT_READY) continue;
        if (result) fail_msg("rank %d: %s", (int)r, t->workers[r].bed.env.error.text);
        done[r] = 1;
        left--;
    }
}

// Element i of shard `shard`: micro-batch after micro-batch the sum over replicas, from replica `shard` on around the ring.
static float expected_sum(int32_t replicas, int32_t batches, int32_t shard, int32_t node, uint64_t i) {
    float all = 0;
    int32_t j, k;
    for (j = 0; j < batches; j++) {
        float sum = added(shard * batches + j, node, i);
        for (k = 1; k < replicas; k++) sum = sum + added((shard + k) % replicas * batches + j, node, i);
        all += sum;
    }
    return all;
}

// Every rank's shards, and the bytes that it has sent for them. Returns how many sums that were.
static long check_team(const team *t, int32_t batches, const tl_compiled_ranks *ranks) {
    int32_t replicas = t->count / t->stages, r, k;
    uint64_t all_sent = 0, all_received = 0;
    long sums = 0;
    for (r = 0; r < t->count; r++) {
        const worker *w = &t->workers[r];
        tl_run_report report = bed_report(&w->bed);
        uint64_t sent = ranks ? ranks->ranks[r % t->stages].sent_bytes : 0;
        for (k = 0; k < w->count; k++) {
            int32_t node = w->states[k].node, shard = (r / t->stages + 1) % replicas;
            uint64_t offset, bytes, i;
            tl_find_run_shard(w->bed.run, k, &offset, &bytes);
            if (ranks && tl_find_node_rank(ranks, node) != r % t->stages) {   // another rank's: nothing has touched it
                for (i = 0; i < bytes / 4; i++) assert_true(w->shards[k][i] == 0);
                continue;
            }
            if (replicas > 1) sent += (w->states[k].bytes - bytes) * (ranks ? (uint64_t)batches : 1);  // of a pass
            for (i = 0; i < bytes / 4; i++) {
                float sum = expected_sum(replicas, batches, shard, node, offset / 4 + i);
                assert_memory_equal(&sum, &w->shards[k][i], sizeof sum);
            }
            sums += (long)(bytes / 4);
        }
        assert_int_equal(report.sent_bytes, sent);
        all_sent += report.sent_bytes;
        all_received += report.received_bytes;
    }
    assert_int_equal(all_received, all_sent);
    return sums;
}

static tl_strategy some_strategy(tl_random *random) {
    tl_strategy strategy = tl_with_parallelism(tl_strategy_training(), tl_parallelism_none());
    static const tl_mode modes[] = { TL_MODE_EAGER, TL_MODE_LAZY, TL_MODE_HYBRID };
    strategy.mode = modes[random_count(random, 0, 2)];
    return strategy;
}

static void shards_are_the_sums_over_replicas(void **state) {
    static team t;
    tl_random random;
    long round, rounds = scaled(120), sums = 0, staged = 0;
    (void)state;
    random.state = 11;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        int32_t replicas = random_count(&random, 1, MOST_REPLICAS), batches = random_count(&random, 1, 4);
        int32_t stages = random_chance(&random, 50) ? 0 : random_count(&random, 1, MOST_WORKERS / replicas);
        tl_strategy strategy = some_strategy(&random);
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        if (random_graph(&env, &random, 20, &graph)) fail_msg("%s", env.error.text);
        desc.graph = &graph;
        desc.rank_count = stages;
        desc.micro_batch_count = batches;
        desc.work_limit = 1000000;
        if (stages && tl_compile_ranks(&env, &desc, &ranks)) { tl_free_graph(&env, &graph); continue; }
        team_open(&t, &graph, stages ? &ranks : NULL, &strategy, replicas, batches, 0);
        team_step(&t, &random);
        team_step(&t, &random);
        sums += check_team(&t, batches, stages ? &ranks : NULL);
        staged += stages > 1 && replicas > 1;
        team_close(&t);
        if (stages) tl_free_compiled_ranks(&env, &ranks);
        tl_free_graph(&env, &graph);
    }
    printf("%ld sums of shards, %ld rounds of several stages and replicas\n", sums, staged);
    assert_true(sums > rounds * 100 && staged > rounds / 20);
}

// -- with less than that --

// A pass that is given up, by a kernel or because a replica is lost: an error on all, and none goes on with other sums.
static void a_pass_that_ends_early_is_the_last(void **state) {
    static team t;
    tl_random random;
    tl_graph graph;
    tl_env env;
    tl_strategy strategy;
    long round, lost = 0;
    (void)state;
    random.state = 5;
    memset(&env, 0, sizeof env);
    if (random_graph(&env, &random, 20, &graph)) fail_msg("%s", env.error.text);
    for (round = 0; round < scaled(60); round++) {
        int32_t ended[MOST_WORKERS] = { 0 }, left, r, victim;
        long turns = 0;
        strategy = some_strategy(&random);
        team_open(&t, &graph, NULL, &strategy, 3, 2, 3000);
        victim = random_count(&random, 0, 2);
        t.workers[victim].fail_at = random_count(&random, 0, t.workers[0].count);
        for (left = 3; left;) {
            tl_result result;
            r = random_count(&random, 0, 2);
            if (++turns > 300000) fail_msg("%s", "a rank waits for good");
            if (ended[r]) continue;
            result = tl_run_plan(t.workers[r].bed.run);
            if (result == TL_NOT_READY) continue;
            if (r == victim) assert_int_equal(result, TL_ERROR_KERNEL);
            if (result) {
                if (r != victim) assert_int_equal(result, TL_ERROR_PEER_LOST);
                lost += r != victim;
                if (round % 2) threads_hub_leave(&t.hub.hub, r);
                assert_int_equal(tl_run_plan(t.workers[r].bed.run), TL_ERROR_INVALID_ARG);
                assert_non_null(strstr(t.workers[r].bed.env.error.text, "did not end"));
            }
            ended[r] = 1;
            left--;
        }
        team_close(&t);
    }
    tl_free_graph(&env, &graph);
    assert_true(lost == 2 * scaled(60));
}

// Saved in a pass after any step, shards go on in another run; a save of other replicas leaves them as they are.
static void shards_are_saved(void **state) {
    static worker a, b;
    tl_graph graph;
    tl_random random;
    tl_env env;
    tl_strategy strategy = tl_with_parallelism(tl_strategy_training(), tl_parallelism_none());
    int32_t at, k, steps = 1;
    (void)state;
    memset(&env, 0, sizeof env);
    random.state = 21;
    if (random_graph(&env, &random, 14, &graph)) fail_msg("%s", env.error.text);
    for (at = 0; at <= steps; at++) {
        memory_sink saved;
        tl_sink sink = sink_of(&saved, -1);
        tl_saved save;
        tl_run_step step;
        int32_t done = 0, i;
        worker_open(&a, &graph, 1, BACKEND_CHECKED);
        worker_open(&b, &graph, 1, BACKEND_CHECKED);
        a.bed.desc.strategy = b.bed.desc.strategy = &strategy;
        bed_must_init(&a.bed);
        bed_must_init(&b.bed);
        load(a.bed.run, 0, &a);
        assert_int_equal(tl_start_pass(a.bed.run, 0), TL_OK);
        for (i = 0; i < at; i++) {
            assert_int_equal(tl_next_step(a.bed.run, &step, &done), TL_OK);
            if (done) break;
            if (step.is_compute) assert_int_equal(tl_run_step_kernel(a.bed.run, &step), TL_OK);
        }
        if (!done) steps = at + 1;
        assert_int_equal(tl_save_run(a.bed.run, sink), TL_OK);
        if (tl_load_run(b.bed.run, saved.text, saved.length)) fail_msg("%s", b.bed.env.error.text);
        for (k = 0; k < a.count; k++)
            assert_memory_equal(a.shards[k], b.shards[k], (size_t)a.states[k].bytes);
        while (!done) {
            assert_int_equal(tl_next_step(b.bed.run, &step, &done), TL_OK);
            if (!done && step.is_compute) assert_int_equal(tl_run_step_kernel(b.bed.run, &step), TL_OK);
        }
        for (k = 0; k < a.count; k++)
            for (i = 0; i < (int32_t)a.counts[k]; i++) assert_true(b.shards[k][i] == added(0, a.states[k].node, (uint64_t)i));
        save.data = saved.text;
        save.length = saved.length;
        if (at > steps - 1) {   // between passes
            b.shards[0][0] = 1234;
            if (tl_load_variables(b.bed.run, &save, 1)) fail_msg("%s", b.bed.env.error.text);
            assert_true(b.shards[0][0] == 1234);
        }
        free(saved.text);
        worker_close(&a);
        worker_close(&b);
    }
    tl_free_graph(&env, &graph);
}

static const char *const pair =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 a op fwd=1 bwd=1 out=16 needs=none in=0\n"
    "node 2 b op fwd=1 bwd=1 out=16 needs=none in=1 keep\n";

static void assert_init_fails(worker *w, const char *text) {
    assert_int_equal(bed_init(&w->bed), TL_ERROR_INVALID_ARG);
    assert_string_equal(w->bed.env.error.text, text);
}

static void what_cannot_be_in_shards_is_refused(void **state) {
    static const char *const what = "tl_init_run: variables: range 0: has a shard, but is no gradient of one node in f32 (kind, node, bytes)";
    static worker w;
    tl_graph graph = graph_of(pair);
    tl_strategy strategy = tl_with_parallelism(tl_strategy_training(), tl_parallelism_none());
    float shard[64] = { 0 };
    tl_variable *s = w.states;
    tl_run_report report;
    tl_rehearsal rehearsal;
    (void)state;
    worker_open(&w, &graph, 1, BACKEND_CHECKED);
    w.bed.desc.strategy = &strategy;
    assert_int_equal(w.count, 2);
    s[0].bytes = s[1].bytes = 64;
    free(w.shards[0]);
    free(w.shards[1]);
    w.shards[0] = w.shards[1] = NULL;
    w.counts[0] = w.counts[1] = 16;
    s[0].shard = shard;
    s[1].shard = shard + 16;
    s[0].kind = TL_VARIABLE_PARAMETER;
    assert_init_fails(&w, what);
    s[0].kind = TL_VARIABLE_GRADIENT;
    s[0].node = -1;
    assert_init_fails(&w, what);
    s[0].node = 1;
    s[0].bytes = 62;
    assert_init_fails(&w, what);
    s[0].bytes = 64;
    w.bed.spy.is_remote = 1;
    assert_init_fails(&w, "tl_init_run: variables: range 0: has a shard, but the backend's memory is not the host's");
    w.bed.spy.is_remote = 0;
    w.bed.desc.in_flight = 2;
    assert_init_fails(&w, "tl_init_run: variables: range 0: with shards in_flight must be 0 or 1");
    w.bed.desc.in_flight = 0;
    s[1].shard = shard + 15;
    assert_init_fails(&w, "tl_init_run: variables: ranges 0 and 1 overlap, or the shard of one does");
    s[1].shard = w.buffer + 3;
    assert_init_fails(&w, "tl_init_run: variables: ranges 0 and 1 overlap, or the shard of one does");
    s[1].shard = NULL;
    assert_init_fails(&w, "tl_init_run: variables: ranges 0 and 1 overlap, or the shard of one does");
    s[1].host = w.buffer + 16;
    s[1].shard = shard + 32;
    s[0].bytes = 4 * 17;
    s[1].node = 1;
    assert_init_fails(&w, "tl_init_run: variables: ranges 0 and 1 overlap");   // both of one backward
    s[1].node = 2;
    bed_must_init(&w.bed);          // buffers of shards may overlap in any way
    assert_int_equal(tl_rehearse_run(w.bed.run, NULL, &rehearsal), TL_ERROR_UNSUPPORTED);
    assert_string_equal(w.bed.env.error.text,
                        "tl_rehearse_run: variables: range 0 has a shard; rehearse with gradients apart from each other");
    tl_free_run(w.bed.run);
    s[0].bytes = 64;
    s[1].host = w.buffer;
    bed_must_init(&w.bed);
    assert_int_equal(tl_run_plan(w.bed.run), TL_OK);
    tl_measure_run(w.bed.run, &report);
    assert_true(shard[0] == added(0, 1, 0) && shard[32] == added(0, 2, 0) && report.sent_bytes == 0);
    worker_close(&w);
    tl_free_graph(NULL, &graph);
}

// Two replicas with shards of one gradient, and all of another: sums between passes are of the latter, and one process goes
// on from what both have saved, with its own shards as they are.
static void the_rest_is_summed_and_saved_as_ever(void **state) {
    static team t;
    static worker one;
    tl_graph graph = graph_of(pair);
    tl_strategy strategy = tl_with_parallelism(tl_strategy_training(), tl_parallelism_none());
    memory_sink sinks[2];
    tl_saved saves[2];
    float whole[2][5] = { { 1, 2, 3, 4, 5 }, { 10, 20, 30, 40, 50 } }, third[5] = { 0 };
    tl_random random;
    uint64_t sent[2];
    int32_t r, left;
    (void)state;
    random.state = 3;
    team_open(&t, &graph, NULL, &strategy, 2, 1, 0);
    for (r = 0; r < 2; r++) {
        tl_variable *s = &t.workers[r].states[1];
        s->host = whole[r];
        s->shard = NULL;
        s->bytes = sizeof whole[r];
        t.workers[r].counts[1] = 0;
        tl_free_run(t.workers[r].bed.run);
        bed_must_init(&t.workers[r].bed);
    }
    team_step(&t, &random);
    for (r = 0; r < 2; r++) sent[r] = bed_report(&t.workers[r].bed).sent_bytes;
    for (r = 0; r < 2; r++) assert_int_equal(t.workers[r].bed.logged, 0);    // to wait for others is no error
    for (left = 3; left;)
        for (r = 0; r < 2; r++) {
            tl_result result = left >> r & 1 ? tl_reduce_run(t.workers[r].bed.run, TL_VARIABLE_GRADIENT) : TL_NOT_READY;
            assert_true(!result || result == TL_NOT_READY);
            if (!result) left &= ~(1 << r);
        }
    for (r = 0; r < 2; r++) {
        const worker *w = &t.workers[r];
        uint64_t offset, bytes, i;
        assert_int_equal(bed_report(&w->bed).sent_bytes - sent[r], sizeof third);
        tl_find_run_shard(w->bed.run, 0, &offset, &bytes);
        assert_true(w->counts[0] > 2 && bytes > 0 && bytes < w->states[0].bytes);
        for (i = 0; i < bytes / 4; i++) assert_true(w->shards[0][i] == expected_sum(2, 1, (r + 1) % 2, 1, offset / 4 + i));
        for (i = 0; i < 5; i++) assert_true(whole[r][i] == 11 * (float)(i + 1));
        assert_int_equal(tl_save_run(w->bed.run, sink_of(&sinks[r], -1)), TL_OK);
        saves[r].data = sinks[r].text;
        saves[r].length = sinks[r].length;
    }
    worker_open(&one, &graph, 1, BACKEND_CHECKED);
    one.bed.desc.strategy = &strategy;
    one.states[1].host = third;
    one.states[1].shard = NULL;
    one.states[1].bytes = sizeof third;
    bed_must_init(&one.bed);
    one.shards[0][0] = 1234;
    if (tl_load_variables(one.bed.run, saves, 2)) fail_msg("%s", one.bed.env.error.text);
    assert_true(one.shards[0][0] == 1234 && third[4] == 55);
    worker_close(&one);
    team_close(&t);
    free(sinks[0].text);
    free(sinks[1].text);
    tl_free_graph(NULL, &graph);
}

// Replicas that take another number of micro-batches would wait for sums that nobody takes.
static void replicas_have_one_repeat_count(void **state) {
    static team t;
    tl_graph graph = graph_of(pair);
    tl_strategy strategy = tl_with_parallelism(tl_strategy_training(), tl_parallelism_none());
    tl_result results[2] = { TL_NOT_READY, TL_NOT_READY };
    int32_t r;
    (void)state;
    team_open(&t, &graph, NULL, &strategy, 2, 2, 5000);
    tl_free_run(t.workers[1].bed.run);
    t.workers[1].bed.desc.repeat_count = 3;
    bed_must_init(&t.workers[1].bed);
    while (results[0] == TL_NOT_READY || results[1] == TL_NOT_READY)
        for (r = 0; r < 2; r++)
            if (results[r] == TL_NOT_READY) results[r] = tl_run_plan(t.workers[r].bed.run);
    for (r = 0; r < 2; r++) assert_int_equal(results[r], TL_ERROR_MISMATCH);
    assert_string_equal(t.workers[0].bed.env.error.text,
                        "tl_run_plan: rank 1 has another repeat_count, seed or first_micro_batch than this one");
    team_close(&t);
    tl_free_graph(NULL, &graph);
}

// A run with shards takes all it needs when it is made: each allocation may fail, and passes make none.
static void passes_allocate_nothing(void **state) {
    static team t;
    static failing_alloc allocs[2];
    tl_graph graph = graph_of(pair);
    tl_strategy strategy = tl_with_parallelism(tl_strategy_training(), tl_parallelism_none());
    tl_random random;
    long at, counts[2];
    int32_t r;
    (void)state;
    random.state = 4;
    team_open(&t, &graph, NULL, &strategy, 2, 2, 0);
    for (r = 0; r < 2; r++) {
        bed *b = &t.workers[r].bed;
        tl_result result = TL_ERROR_NO_MEMORY;
        tl_free_run(b->run);
        for (at = 0; result; at++) {
            memset(&allocs[r], 0, sizeof allocs[r]);
            b->env = failing_env(&allocs[r], at);
            result = bed_init(b);
            assert_true(!result || (result == TL_ERROR_NO_MEMORY && allocs[r].live == 0));
        }
        counts[r] = allocs[r].count;
        allocs[r].fail_at = counts[r];
    }
    team_step(&t, &random);
    team_step(&t, &random);
    check_team(&t, 2, NULL);
    for (r = 0; r < 2; r++) assert_int_equal(allocs[r].count, counts[r]);
    team_close(&t);
    for (r = 0; r < 2; r++) assert_int_equal(allocs[r].live, 0);
    tl_free_graph(NULL, &graph);
}

// The same where the transport does not take every message at once.
static void shards_are_the_sums_over_replicas_of_a_slow_transport(void **state) {
    hub_not_ready = 30;
    shards_are_the_sums_over_replicas(state);
    hub_not_ready = 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_the_sums_over_replicas),
        cmocka_unit_test(shards_are_the_sums_over_replicas_of_a_slow_transport),
        cmocka_unit_test(a_pass_that_ends_early_is_the_last),
        cmocka_unit_test(shards_are_saved),
        cmocka_unit_test(the_rest_is_summed_and_saved_as_ever),
        cmocka_unit_test(replicas_have_one_repeat_count),
        cmocka_unit_test(passes_allocate_nothing),
        cmocka_unit_test(what_cannot_be_in_shards_is_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
