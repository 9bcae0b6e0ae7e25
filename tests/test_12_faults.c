// [12] RUN: ranks that are lost, messages that are late or too short, and training that goes on from what was saved, with
// fewer ranks: losses and weights are those of a training that nobody has disturbed.
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
#include "support/texts.h"
#include "support/random_graph.h"
#include "support/sink_support.h"
#include "support/run_support.h"
#include "support/run_bed.h"


enum {
    MOST_RANKS = 6, MOST_NODES = 40, STEPS = 4, SAVE_EVERY = 2, SAVES = STEPS / SAVE_EVERY, BATCHES = 4,
    FLOATS = 5, FIRST_HALF = 2, KINDS = 3, RANGES = 2 * KINDS, REQUESTS = 64 * MOST_RANKS
};

// -- a network with weights: what a kernel computes depends on them, and they on all gradients before --

typedef struct trainer {
    mixer     mixers[BATCHES];            // of the slots
    float     values[MOST_NODES][KINDS][FLOATS];  // weights, moments, gradients of each node
    tl_variable  states[MOST_NODES * RANGES];     // of the nodes of this rank: for both halves weight, moment, gradient
    int32_t variable_count;
    tl_kernel kernels[MOST_NODES];
    int32_t   first_batch, last_node;     // last_node: whose outputs are the loss
    uint64_t  loss;                       // of this step: a sum, in no order
} trainer;

static tl_result train_forward(const tl_kernel_call *call, void *user) {
    trainer *t = (trainer *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    tl_result result = mixer_forward(call, &t->mixers[call->micro_batch - t->first_batch]);
    uint64_t sum = 1, loss = (uint64_t)call->micro_batch, k;
    uint32_t bits;
    int32_t i;
    if (result || call->outputs_ready) return result;
    for (i = 0; i < FLOATS; i++) {
        memcpy(&bits, &t->values[call->node][TL_VARIABLE_PARAMETER][i], sizeof bits);
        sum = tl_mix_u64(sum, bits);
    }
    for (i = 0; i < node->output_count; i++) {
        unsigned char *at = (unsigned char *)call->outputs[i].host;
        for (k = 0; k < call->outputs[i].range.bytes; k++) at[k] ^= (unsigned char)tl_mix_u64(sum, k);
        loss = mix_bytes(loss, &call->outputs[i]);
    }
    if (call->node == t->last_node && !call->recompute) t->loss += tl_mix_u64(loss, sum);
    return TL_OK;
}

// Gradients are sums of numbers that f32 does not hold exactly: their order shows.
static tl_result train_backward(const tl_kernel_call *call, void *user) {
    trainer *t = (trainer *)user;
    mixer *m = &t->mixers[call->micro_batch - t->first_batch];
    tl_result result;
    uint64_t sum;
    int32_t k;
    m->gradients[call->node] = 0;
    result = mixer_backward(call, m);
    sum = m->gradients[call->node];
    for (k = 0; k < FLOATS; k++)
        t->values[call->node][TL_VARIABLE_GRADIENT][k] += (float)((sum >> (12 * k)) & 4095) / 97.0f - 21.0f;
    return result;
}

static void start_step(trainer *t) {
    int32_t i;
    for (i = 0; i < BATCHES; i++) mixer_start_pass(&t->mixers[i]);
    for (i = 0; i < MOST_NODES; i++) memset(t->values[i][TL_VARIABLE_GRADIENT], 0, sizeof t->values[i][TL_VARIABLE_GRADIENT]);
    t->loss = 0;
}

// What an optimizer does with the floats of a range from `first` on.
static void update_range(const tl_variable *weights, uint64_t first, uint64_t count) {
    float *weight = (float *)weights[0].host, *moment = (float *)weights[1].host;
    const float *gradient = (const float *)weights[2].host;
    uint64_t i;
    for (i = first; i < first + count; i++) {
        moment[i] = 0.75f * moment[i] + gradient[i];
        weight[i] -= moment[i] / 1024.0f;
    }
}

// Each rank has its own nodes only: what it has of others is never what it should be.
static void open_trainer(trainer *t, bed *b, const tl_graph *graph, const tl_rank_plan *rank) {
    static const tl_variable_kind kinds[KINDS] = { TL_VARIABLE_PARAMETER, TL_VARIABLE_OPTIMIZER, TL_VARIABLE_GRADIENT };
    int32_t id, half, k, i;
    memset(t, 0, sizeof *t);
    for (i = 0; i < BATCHES; i++) mixer_init(&t->mixers[i]);
    for (id = 0; id < graph->node_count; id++)
        if (!graph->nodes[id].is_input) t->last_node = id;
    for (id = rank->first_node; id < rank->end_node; id++) {
        if (graph->nodes[id].is_input) continue;
        for (k = 0; k < FLOATS; k++) t->values[id][TL_VARIABLE_PARAMETER][k] = (float)(tl_mix_u64((uint64_t)id, (uint64_t)k) % 1000) / 999.0f;
        for (half = 0; half < 2; half++)
            for (k = 0; k < KINDS; k++) {
                tl_variable *state = &t->states[t->variable_count++];
                state->node = id;
                state->kind = kinds[k];
                state->host = t->values[id][kinds[k]] + (half ? FIRST_HALF : 0);
                state->bytes = sizeof(float) * (uint64_t)(half ? FLOATS - FIRST_HALF : FIRST_HALF);
            }
    }
    b->desc.variables = t->states;
    b->desc.variable_count = t->variable_count;
    b->desc.kernel_count = mixer_kernels(graph, &t->mixers[0], t->kernels);
    for (i = 0; i < b->desc.kernel_count; i++) {
        t->kernels[i].forward = train_forward;
        t->kernels[i].backward = train_backward;
        t->kernels[i].user = t;
    }
    b->desc.kernels = t->kernels;
}

// -- a transport that is late, and that cuts a message short --

typedef struct faulty {
    tl_transport inner;
    tl_random    random;
    int32_t      most_waits;              // polls that a message is held back at most; 0 = none
    int32_t      waits[REQUESTS];
    struct team *team;
} faulty;

enum { SAVE_GATHERS, SAVING, RUNNING, SUMMING, UPDATING, GATHERING, PHASES };

typedef struct team {
    threads_hub  hub;
    tl_transport transports[MOST_RANKS];
    faulty       faults[MOST_RANKS];
    bed          beds[MOST_RANKS];
    trainer      trainers[MOST_RANKS];
    tl_env       env;
    tl_compiled_ranks ranks;
    const tl_graph *graph;
    int32_t      count, stages, replicas;
    int32_t      shards;                  // 1 = each replica updates a shard (ZeRO 1)
    int32_t      steps[MOST_RANKS], phases[MOST_RANKS];
    int32_t      started[MOST_RANKS];     // the step under way was
    uint64_t     losses[MOST_RANKS][STEPS];
    memory_sink  saves[MOST_RANKS][SAVES];
    int32_t      save_counts[MOST_RANKS];
    long         sent, cut_at;            // messages so far; the one that is cut, from 1; 0 = none
    long         waits;                   // polls for which messages were held back
    int32_t      cut_from, cut_to;
    long         turns, moves[MOST_RANKS];  // of all ranks, of each
} team;

static tl_result hold_back(faulty *f, tl_result result, const int32_t *request) {
    if (!result) f->waits[*request] = f->most_waits ? random_count(&f->random, 0, f->most_waits) : 0;
    if (!result) f->team->waits += f->waits[*request];
    return result;
}

static tl_result faulty_send(void *self, int32_t peer, uint32_t tag, const void *data, uint64_t bytes, int32_t *request) {
    faulty *f = (faulty *)self;
    if (++f->team->sent == f->team->cut_at) {
        f->team->cut_from = f->inner.rank;
        f->team->cut_to = peer;
        bytes--;
    }
    return hold_back(f, f->inner.send(f->inner.self, peer, tag, data, bytes, request), request);
}

static tl_result faulty_receive(void *self, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int32_t *request) {
    faulty *f = (faulty *)self;
    return hold_back(f, f->inner.receive(f->inner.self, peer, tag, data, bytes, request), request);
}

static tl_result faulty_poll(void *self, int32_t request) {
    faulty *f = (faulty *)self;
    if (f->waits[request] > 0) { f->waits[request]--; return TL_NOT_READY; }
    return f->inner.poll(f->inner.self, request);
}

static void faulty_cancel(void *self, int32_t request) {
    faulty *f = (faulty *)self;
    f->inner.cancel(f->inner.self, request);
}

// -- a team of ranks: stages x replicas --

typedef struct layout {
    int32_t stages, replicas, shards;
    const int32_t *ends;                  // NULL = chosen
    uint64_t poll_limit;
    int32_t  most_waits;
    uint64_t seed;                        // of lateness
} layout;

// Write the inputs that the rank's stage has.
static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    const tl_graph *graph = ((const bed *)user)->graph;
    unsigned char bytes[256];
    int32_t i;
    uint64_t k;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        tl_tensor tensor;
        tl_result result;
        if (!graph->nodes[output->node].is_input) continue;
        for (k = 0; k < output->bytes; k++) bytes[k] = (unsigned char)tl_mix_u64((uint64_t)micro_batch * 77 + (uint64_t)i, k);
        tensor.node = output->node;
        tensor.output = output->output;
        result = tl_write_tensor(run, tensor, bytes, output->bytes);
        if (result && result != TL_ERROR_NOT_FOUND) return result;
    }
    return TL_OK;
}

static void open_rank(team *t, const layout *l, int32_t r) {
    const tl_rank_plan *rank = &t->ranks.ranks[r % l->stages];
    faulty *f = &t->faults[r];
    bed *b = &t->beds[r];
    memset(f, 0, sizeof *f);
    f->inner = t->transports[r] = threads_hub_join(&t->hub, r);
    f->random.state = l->seed + (uint64_t)r;
    f->most_waits = l->most_waits;
    f->team = t;
    t->transports[r].self = f;
    t->transports[r].send = faulty_send;
    t->transports[r].receive = faulty_receive;
    t->transports[r].poll = faulty_poll;
    t->transports[r].cancel = faulty_cancel;
    bed_open(b, t->graph, BACKEND_CHECKED, (uint64_t)r, 1);
    open_trainer(&t->trainers[r], b, t->graph, rank);
    t->trainers[r].first_batch = b->desc.first_micro_batch = r / l->stages * (BATCHES / l->replicas);
    b->desc.load = load;
    b->desc.compiled = &rank->compiled;
    b->desc.transport = t->count > 1 ? &t->transports[r] : NULL;
    bed_must_init(b);
}

static void open_team(team *t, const tl_graph *graph, const layout *l) {
    threads_hub_desc hub;
    tl_ranks_desc desc;
    int32_t r;
    memset(t, 0, sizeof *t);
    memset(&hub, 0, sizeof hub);
    memset(&desc, 0, sizeof desc);
    t->graph = graph;
    t->stages = l->stages;
    t->replicas = l->replicas;
    t->shards = l->shards;
    hub.rank_count = t->count = l->stages * l->replicas;
    hub.poll_limit = l->poll_limit;
    desc.graph = graph;
    desc.rank_count = l->stages;
    desc.micro_batch_count = BATCHES / l->replicas;
    desc.ends = l->ends;
    desc.work_limit = 300000;
    assert_true(threads_hub_open(&t->hub, &hub));
    if (tl_compile_ranks(&t->env, &desc, &t->ranks)) fail_msg("%s", t->env.error.text);
    for (r = 0; r < t->count; r++) open_rank(t, l, r);
}

static void close_team(team *t) {
    int32_t r, k;
    for (r = 0; r < t->count; r++) {
        bed_close(&t->beds[r]);
        for (k = 0; k < t->save_counts[r]; k++) free(t->saves[r][k].text);
    }
    tl_free_compiled_ranks(&t->env, &t->ranks);
    threads_hub_close(&t->hub);
}

static void update_weights(const team *t, int32_t r) {
    const trainer *own = &t->trainers[r];
    int32_t s;
    for (s = 0; s < own->variable_count; s += KINDS) {
        uint64_t offset = 0, bytes = own->states[s].bytes;
        if (t->shards) tl_find_run_shard(t->beds[r].run, s, &offset, &bytes);
        update_range(&own->states[s], offset / sizeof(float), bytes / sizeof(float));
    }
}

static tl_result run_phase(team *t, int32_t r) {
    tl_run *run = t->beds[r].run;
    int32_t *saves = &t->save_counts[r], is_saved = t->steps[r] % SAVE_EVERY == 0, sums = t->replicas > 1;
    tl_result result = TL_OK;
    switch (t->phases[r]) {
    case SAVE_GATHERS: return sums && t->shards && is_saved ? tl_gather_run(run, TL_VARIABLE_OPTIMIZER) : TL_OK;
    case SAVING:
        if (is_saved) result = tl_save_run(run, sink_of(&t->saves[r][*saves], -1));
        *saves += is_saved && !result;
        return result;
    case RUNNING:
        if (!t->started[r]) start_step(&t->trainers[r]);
        t->started[r] = 1;
        return tl_run_plan(run);
    case SUMMING: return !sums ? TL_OK : t->shards ? tl_scatter_run(run, TL_VARIABLE_GRADIENT) : tl_reduce_run(run, TL_VARIABLE_GRADIENT);
    case UPDATING: update_weights(t, r); return TL_OK;
    default: return sums && t->shards ? tl_gather_run(run, TL_VARIABLE_PARAMETER) : TL_OK;
    }
}

// Let a rank go on until it waits, or has done all steps.
static tl_result move_rank(team *t, int32_t r) {
    t->moves[r]++;
    while (t->steps[r] < STEPS) {
        tl_result result = run_phase(t, r);
        if (result) return result;
        if (++t->phases[r] < PHASES) continue;
        t->losses[r][t->steps[r]++] = t->trainers[r].loss;
        t->phases[r] = t->started[r] = 0;
    }
    return TL_OK;
}

// Train to the end.
static void train(team *t, tl_random *random) {
    int32_t done[MOST_RANKS] = { 0 }, left = t->count;
    while (left) {
        int32_t r = random_count(random, 0, t->count - 1);
        tl_result result;
        if (done[r]) continue;
        if (++t->turns > 400000) fail_msg("%s", "a rank waits for good");
        result = move_rank(t, r);
        if (result == TL_NOT_READY) continue;
        if (result) fail_msg("rank %d of %d: %s", (int)r, (int)t->count, t->beds[r].env.error.text);
        done[r] = 1;
        left--;
    }
}

static uint64_t loss_of(const team *t, int32_t step) {
    uint64_t sum = 0;
    int32_t r;
    for (r = 0; r < t->count; r++) sum += t->losses[r][step];
    return sum;
}

// The rank of the first replica that has a node.
static int32_t owner_of(const team *t, int32_t node) {
    int32_t r = 0;
    while (node >= t->ranks.ranks[r].end_node) r++;
    return r;
}

// The same losses from a step on, and the same weights in the end, on all replicas.
static void must_equal(const team *a, const team *b, int32_t from, const char *what) {
    int32_t step, id, g;
    for (step = from; step < STEPS; step++)
        if (loss_of(a, step) != loss_of(b, step)) fail_msg("%s: step %d has another loss", what, (int)step);
    for (id = 0; id < a->graph->node_count; id++) {
        const float *expected = b->trainers[owner_of(b, id)].values[id][TL_VARIABLE_PARAMETER];
        if (a->graph->nodes[id].is_input) continue;
        for (g = 0; g < a->replicas; g++)
            if (memcmp(a->trainers[g * a->stages + owner_of(a, id)].values[id][TL_VARIABLE_PARAMETER], expected,
                       FLOATS * sizeof(float)) != 0) fail_msg("%s: node %d has other weights", what, (int)id);
    }
}

// What all ranks of a team saved as their save k.
static void take_saves(const team *t, int32_t k, tl_saved *saves) {
    int32_t r;
    for (r = 0; r < t->count; r++) {
        saves[r].data = t->saves[r][k].text;
        saves[r].length = t->saves[r][k].length;
    }
}

static void load_team(team *t, const tl_saved *saves, int32_t count, int32_t step) {
    int32_t r;
    for (r = 0; r < t->count; r++) {
        if (tl_load_variables(t->beds[r].run, saves, count)) fail_msg("%s", t->beds[r].env.error.text);
        t->steps[r] = step;
    }
}

// Go on with another team from what one has saved, and compare with `expected` from there on.
static void go_on(const team *from, int32_t k, const layout *l, const team *expected, tl_random *random, const char *what) {
    static team next;
    tl_saved saves[MOST_RANKS];
    take_saves(from, k, saves);
    open_team(&next, from->graph, l);
    load_team(&next, saves, from->count, k * SAVE_EVERY);
    train(&next, random);
    must_equal(&next, expected, k * SAVE_EVERY, what);
    close_team(&next);
}

static int32_t count_nodes(const tl_graph *graph) {
    int32_t count = 0, i;
    for (i = 0; i < graph->node_count; i++) count += !graph->nodes[i].is_input;
    return count;
}

static tl_graph next_graph(tl_random *random, int32_t least) {
    tl_env env;
    tl_graph graph;
    memset(&env, 0, sizeof env);
    for (;;) {
        if (random_graph(&env, random, 26, &graph)) fail_msg("%s", env.error.text);
        if (count_nodes(&graph) >= least) return graph;
        tl_free_graph(&env, &graph);
    }
}

// Cuts anywhere: each stage ends behind a node that is no input.
static void random_ends(tl_random *random, const tl_graph *graph, int32_t stages, int32_t *ends) {
    int32_t nodes = count_nodes(graph), left = stages - 1, id, seen = 0, count = 0;
    for (id = 0; id < graph->node_count && left; id++) {
        if (graph->nodes[id].is_input) continue;
        seen++;
        if (random_count(random, 1, nodes - seen) > left) continue;  // of those before the last one, as many as are left
        ends[count++] = id + 1;
        left--;
    }
    ends[count] = graph->node_count;
}

static layout plain_layout(int32_t stages, int32_t replicas) {
    layout l;
    memset(&l, 0, sizeof l);
    l.stages = stages;
    l.replicas = replicas;
    return l;
}

// -- going on with other ranks --

// 4 -> 3, 3 -> 2, 2 -> 1, and more ranks than before; cuts that were found and any others.
static void a_pipeline_goes_on_with_other_ranks(void **state) {
    static team before, alone;
    tl_random random;
    long round, rounds = scaled(60);
    (void)state;
    random.state = 71;
    for (round = 0; round < rounds; round++) {
        tl_graph graph = next_graph(&random, 5);
        int32_t stages = 2 + (int32_t)(round % 3), ends[MOST_RANKS], others[MOST_RANKS], k;
        layout first = plain_layout(stages, 1), one = plain_layout(1, 1), next = plain_layout(stages - 1, 1);
        random_ends(&random, &graph, stages, ends);
        if (random_chance(&random, 70)) first.ends = ends;
        if (random_chance(&random, 20)) next.stages = random_count(&random, 1, 4);
        random_ends(&random, &graph, next.stages, others);
        if (random_chance(&random, 70)) next.ends = others;
        open_team(&before, &graph, &first);
        train(&before, &random);
        open_team(&alone, &graph, &one);
        train(&alone, &random);
        must_equal(&before, &alone, 0, "one process");
        for (k = 0; k < SAVES; k++) go_on(&before, k, &next, &before, &random, "other ranks");
        go_on(&alone, 1, &first, &before, &random, "ranks after one process");
        close_team(&alone);
        close_team(&before);
        tl_free_graph(NULL, &graph);
    }
}

// Sums of replicas do not depend on the stages. With other replicas they are taken in another order, which is that of any
// run from the same save with as many.
static void replicas_go_on_with_other_ranks(void **state) {
    static team before, next;
    static const int32_t layouts[][2] = { { 1, 2 }, { 2, 2 }, { 3, 2 }, { 1, 4 } };
    tl_random random;
    long round, rounds = scaled(30);
    (void)state;
    random.state = 72;
    for (round = 0; round < rounds; round++) {
        tl_graph graph = next_graph(&random, 5);
        layout first = plain_layout(layouts[round % 4][0], layouts[round % 4][1]), same = first, fewer = first, one;
        tl_saved saves[MOST_RANKS];
        first.shards = same.shards = (int32_t)(round / 4 % 2);
        open_team(&before, &graph, &first);
        train(&before, &random);
        same.stages = first.stages == 1 ? 2 - (first.replicas > 2) : first.stages - 1;
        same.shards = random_count(&random, 0, 1);       // the same sums, each by all of them or by one
        go_on(&before, 1, &same, &before, &random, "other stages");
        fewer.replicas = first.replicas / 2;
        fewer.stages = random_count(&random, 1, 3);
        one = plain_layout(1, fewer.replicas);
        take_saves(&before, 1, saves);
        open_team(&next, &graph, &one);
        load_team(&next, saves, before.count, SAVE_EVERY);
        train(&next, &random);
        go_on(&before, 1, &fewer, &next, &random, "other replicas");
        close_team(&next);
        close_team(&before);
        tl_free_graph(NULL, &graph);
    }
}

// -- faults --

// Messages that are held back change nothing.
static void late_messages_change_no_bit(void **state) {
    static team prompt, late;
    tl_random random;
    long round, rounds = scaled(12);
    (void)state;
    random.state = 73;
    for (round = 0; round < rounds; round++) {
        tl_graph graph = next_graph(&random, 5);
        layout l = plain_layout(random_count(&random, 1, 3), random_chance(&random, 50) ? 2 : 1);
        l.shards = random_count(&random, 0, 1);
        if (l.stages * l.replicas == 1) l.stages = 2;
        open_team(&prompt, &graph, &l);
        train(&prompt, &random);
        l.most_waits = 1 << random_count(&random, 0, 7);
        l.seed = (uint64_t)round;
        open_team(&late, &graph, &l);
        train(&late, &random);
        must_equal(&late, &prompt, 0, "late messages");
        assert_int_equal(late.sent, prompt.sent);
        assert_true(late.waits > late.sent / 2 && !prompt.waits);
        close_team(&late);
        close_team(&prompt);
        tl_free_graph(NULL, &graph);
    }
}

typedef enum disturbance { LEAVES, FALLS_SILENT, CUTS_A_MESSAGE, DISTURBANCES } disturbance;

typedef struct told {
    long lost, mismatches, sender_mismatches, gone;
    long phases[PHASES], greetings;   // of the rank that went, when it did
} told;

// A sentence that names the peer and where the rank was. ended: of ranks that have gone with a word; NULL = some are silent.
static void check_sentence(const team *t, int32_t r, tl_result result, const int32_t *ended) {
    const char *text = t->beds[r].env.error.text, *at = strstr(text, "message with rank ");
    int32_t peer = at ? (int32_t)strtol(at + 18, NULL, 10) : -1;
    if (!at || peer == r || peer >= t->count || (!strstr(at, " at step ") && !strstr(at, " between passes")) ||
        !strstr(at, tl_name_result(result))) fail_msg("rank %d: %s", (int)r, text);
    if (ended && !ended[peer]) fail_msg("rank %d has lost one that is there: %s", (int)r, text);
    if (result == TL_ERROR_MISMATCH && !(r == t->cut_to && peer == t->cut_from) && !(r == t->cut_from && peer == t->cut_to))
        fail_msg("rank %d, message from %d to %d: %s", (int)r, (int)t->cut_from, (int)t->cut_to, text);
}

// Train until the disturbance, and go on until every rank has ended, by an error or because it has done all.
static void train_disturbed(team *t, tl_random *random, disturbance what, int32_t victim, long until, told *told) {
    int32_t ended[MOST_RANKS] = { 0 }, left = t->count;
    while (left) {
        int32_t r = random_count(random, 0, t->count - 1);
        tl_result result = TL_ERROR_PEER_LOST;
        if (ended[r]) continue;
        if (++t->turns > 400000) fail_msg("%s", "a rank waits for good");
        if (what != CUTS_A_MESSAGE && r == victim && t->moves[r] >= until) {
            told->gone++;
            told->phases[t->phases[r]]++;
            told->greetings += t->phases[r] == RUNNING && !t->steps[r] && !t->trainers[r].mixers[0].calls;
            (void)tl_reset_run(t->beds[r].run);
        } else {
            result = move_rank(t, r);
            if (result == TL_NOT_READY) continue;
            if (result) {
                assert_true(result == TL_ERROR_PEER_LOST || (what == CUTS_A_MESSAGE && result == TL_ERROR_MISMATCH));
                check_sentence(t, r, result, what == LEAVES ? ended : NULL);
                told->lost += result == TL_ERROR_PEER_LOST;
                told->mismatches += result == TL_ERROR_MISMATCH && r == t->cut_to;
                told->sender_mismatches += result == TL_ERROR_MISMATCH && r == t->cut_from;
            }
        }
        if (what == LEAVES) threads_hub_leave(&t->hub, r);
        ended[r] = 1;
        left--;
    }
}

// At random moments, 50 of them or more, from the greeting to the last sum, a rank goes with or without a word, or a message is cut short:
// all others are told, none waits for good, and what all had saved goes on with fewer ranks to the same losses.
static void training_survives_50_moments(void **state) {
    static const int32_t layouts[][2] = { { 4, 1 }, { 2, 2 }, { 3, 1 }, { 3, 2 }, { 1, 4 }, { 2, 1 }, { 1, 2 } };
    static team calm, struck;
    tl_random random;
    told told;
    long round, rounds = scaled(90), cuts = 0, fewer_replicas = 0;
    (void)state;
    memset(&told, 0, sizeof told);
    random.state = 74;
    for (round = 0; round < rounds; round++) {
        tl_graph graph = next_graph(&random, 5);
        disturbance what = (disturbance)(round % DISTURBANCES);
        layout l = plain_layout(layouts[round % 7][0], layouts[round % 7][1]), next;
        int32_t victim, r, k = SAVES - 1;
        long until, known;
        l.shards = random_count(&random, 0, 1);
        open_team(&calm, &graph, &l);
        train(&calm, &random);
        victim = random_count(&random, 0, calm.count - 1);
        until = (long)tl_next_random_below(&random, (uint64_t)(random_chance(&random, 20) ? 3 : calm.moves[victim]));
        if (what != LEAVES) l.poll_limit = 3000;
        open_team(&struck, &graph, &l);
        if (what == CUTS_A_MESSAGE) struck.cut_at = 1 + (long)tl_next_random_below(&random, (uint64_t)calm.sent);
        known = told.mismatches + told.sender_mismatches;
        train_disturbed(&struck, &random, what, victim, until, &told);
        cuts += what == CUTS_A_MESSAGE;
        if (what == CUTS_A_MESSAGE) assert_true(told.mismatches + told.sender_mismatches > known);
        for (r = 0; r < struck.count; r++)
            if (struck.save_counts[r] - 1 < k) k = struck.save_counts[r] - 1;
        if (k >= 0) {
            next = plain_layout(l.stages, l.replicas);
            if (l.stages > 1) next.stages--;
            else next.replicas = 1;
            if (next.replicas == l.replicas) go_on(&struck, k, &next, &calm, &random, "after the fault");
            else {
                layout one = plain_layout(2, 1);
                static team other;
                tl_saved saves[MOST_RANKS];
                take_saves(&struck, k, saves);
                open_team(&other, &graph, &one);
                load_team(&other, saves, struck.count, k * SAVE_EVERY);
                train(&other, &random);
                go_on(&struck, k, &next, &other, &random, "after the fault, one replica");
                close_team(&other);
                fewer_replicas++;
            }
        }
        close_team(&struck);
        close_team(&calm);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld ranks went, %ld of them in a pass or before it, %ld in greetings, %ld in sums, %ld in gathers; %ld others were told\n",
           told.gone, told.phases[RUNNING], told.greetings, told.phases[SUMMING],
           told.phases[SAVE_GATHERS] + told.phases[GATHERING], told.lost);
    printf("%ld messages were cut, %ld of their senders knew; %ld times one replica of two went on\n", cuts, told.sender_mismatches,
           fewer_replicas);
    assert_true(is_thinned() || (told.gone >= 50 && told.lost > rounds && told.sender_mismatches > cuts / 2 && told.mismatches > cuts / 2));
    assert_true(is_thinned() || (told.phases[RUNNING] > 0 && told.greetings > 0 && told.phases[SUMMING] > 0));
    assert_true(is_thinned() || (told.phases[SAVE_GATHERS] + told.phases[GATHERING] > 0 && fewer_replicas > 0));
}

// -- what is refused --

static const char *const two_inputs =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 y input fwd=0 bwd=0 out=12 needs=none in=-\n"
    "node 2 a op fwd=1 bwd=1 out=16 needs=in in=0\n"
    "node 3 b op fwd=1 bwd=1 out=16 needs=in in=2,1 keep\n";

static void must_refuse(team *t, int32_t r, const tl_saved *saves, int32_t count, const char *says) {
    static float before[MOST_NODES][KINDS][FLOATS];
    memcpy(before, t->trainers[r].values, sizeof before);
    assert_int_equal(tl_load_variables(t->beds[r].run, saves, count), TL_ERROR_INVALID_ARG);
    if (strncmp(t->beds[r].env.error.text, "tl_load_variables: ", 16) || !strstr(t->beds[r].env.error.text, says))
        fail_msg("%s, not %s", t->beds[r].env.error.text, says);
    assert_memory_equal(before, t->trainers[r].values, sizeof before);
}

static void saves_that_do_not_belong_are_refused(void **state) {
    static team two, other, alone;
    tl_graph graph = graph_of(two_inputs), another = graph_of(
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=8 needs=in in=0\n");
    layout l = plain_layout(2, 1), one = plain_layout(1, 1);
    tl_saved saves[MOST_RANKS], mixed[2];
    memory_sink in_pass;
    tl_random random;
    (void)state;
    random.state = 75;
    open_team(&two, &graph, &l);
    train(&two, &random);
    open_team(&other, &graph, &l);
    other.trainers[0].values[2][TL_VARIABLE_PARAMETER][FIRST_HALF] = 9.0f;
    train(&other, &random);
    open_team(&alone, &graph, &one);
    take_saves(&two, 1, saves);
    must_refuse(&alone, 0, saves, 0, "saves: there must be at least one");
    must_refuse(&alone, 0, saves, 1, "saves: none has variables[6], parameter of node 3 (b)");
    must_refuse(&alone, 0, saves + 1, 1, "saves: none has variables[0], parameter of node 2 (a)");
    take_saves(&other, 1, saves + 2);
    must_refuse(&alone, 0, saves, 4, ", is not the same in all of them");
    close_team(&alone);
    open_team(&alone, &another, &one);
    must_refuse(&alone, 0, saves, 2, "data: of another graph");
    close_team(&alone);
    open_team(&alone, &graph, &one);
    mixed[0] = saves[0];
    mixed[1].data = two.saves[1][0].text;
    mixed[1].length = two.saves[1][0].length;
    must_refuse(&alone, 0, mixed, 2, "saves: some are of training step 2, others of 0");
    alone.trainers[0].states[4].bytes -= sizeof(float);
    must_refuse(&alone, 0, saves, 2, "saves: variables[4], optimizer of node 2 (a), has another number of bytes there");
    alone.trainers[0].states[4].bytes += sizeof(float);
    alone.trainers[0].states[4].kind = TL_VARIABLE_STATISTICS;
    must_refuse(&alone, 0, saves, 2, "data: other variables than this run has");
    alone.trainers[0].states[4].kind = TL_VARIABLE_OPTIMIZER;
    if (tl_start_pass(alone.beds[0].run, 0)) fail_msg("%s", alone.beds[0].env.error.text);
    must_refuse(&alone, 0, saves, 2, "a pass is under way");
    if (tl_save_run(alone.beds[0].run, sink_of(&in_pass, -1))) fail_msg("%s", alone.beds[0].env.error.text);
    if (tl_reset_run(alone.beds[0].run)) fail_msg("%s", alone.beds[0].env.error.text);
    mixed[1].data = in_pass.text;
    mixed[1].length = in_pass.length;
    must_refuse(&alone, 0, mixed, 2, "data: saved in a pass, where variables are not whole");
    load_team(&alone, saves, 2, SAVE_EVERY);    // and nothing of it is in the way
    train(&alone, &random);
    must_equal(&alone, &two, SAVE_EVERY, "after refusals");
    free(in_pass.text);
    close_team(&alone);
    close_team(&other);
    close_team(&two);
    tl_free_graph(NULL, &graph);
    tl_free_graph(NULL, &another);
}

// Both of two ranks end with a mismatch, and say so.
static void must_disagree(team *t, const char *of_0, const char *of_1) {
    tl_result results[2] = { TL_NOT_READY, TL_NOT_READY };
    long turns = 0;
    int32_t r;
    while (results[0] == TL_NOT_READY || results[1] == TL_NOT_READY) {
        assert_true(++turns < 10000);
        for (r = 0; r < 2; r++)
            if (results[r] == TL_NOT_READY) results[r] = move_rank(t, r);
    }
    for (r = 0; r < 2; r++) {
        assert_int_equal(results[r], TL_ERROR_MISMATCH);
        if (!strstr(t->beds[r].env.error.text, r ? of_1 : of_0)) fail_msg("rank %d: %s", (int)r, t->beds[r].env.error.text);
    }
}

static void ranks_that_disagree_are_told(void **state) {
    static team before, t;
    tl_graph graph = graph_of(two_inputs);
    layout stages = plain_layout(2, 1), replicas = plain_layout(1, 2);
    tl_saved saves[MOST_RANKS];
    tl_random random;
    int k;
    (void)state;
    random.state = 76;
    open_team(&before, &graph, &stages);
    train(&before, &random);
    take_saves(&before, 1, saves);
    for (k = 0; k < 2; k++) {       // neighbours of a pipeline, and of a ring
        open_team(&t, &graph, k ? &replicas : &stages);
        if (tl_load_variables(t.beds[1].run, saves, 2)) fail_msg("%s", t.beds[1].env.error.text);
        must_disagree(&t, k ? "rank 1 is at training step 3: ranks begin at the same one" : "rank 1 is at training step 2",
                      k ? "rank 0 is at training step 1" : "rank 0 is at training step 0: ranks begin at the same one");
        close_team(&t);
    }
    for (k = 0; k < 3; k++) {
        tl_variable *changed;
        open_team(&t, &graph, &replicas);
        changed = &t.trainers[1].states[3];
        if (k == 0) changed->bytes -= 4;
        if (k == 1) changed->kind = TL_VARIABLE_STATISTICS;
        if (k == 2) changed->node = 3;
        must_disagree(&t, "rank 1 has other variables: replicas register the same nodes, kinds, bytes and shards",
                      "rank 0 has other variables");
        close_team(&t);
    }
    close_team(&before);
    tl_free_graph(NULL, &graph);
}

// Nothing is saved or loaded while a sum is under way: a part of it is in no range.
static void a_sum_under_way_is_not_saved(void **state) {
    static team t;
    tl_graph graph = graph_of(two_inputs);
    layout replicas = plain_layout(1, 2);
    tl_saved none = { NULL, 0 };
    memory_sink saved;
    tl_run *run;
    (void)state;
    open_team(&t, &graph, &replicas);
    run = t.beds[0].run;
    assert_int_equal(tl_reduce_run(run, TL_VARIABLE_GRADIENT), TL_NOT_READY);
    assert_int_equal(tl_save_run(run, sink_of(&saved, -1)), TL_ERROR_INVALID_ARG);
    assert_string_equal(t.beds[0].env.error.text, "tl_save_run: run: another sum over ranks is under way");
    assert_int_equal(saved.length, 0);
    assert_int_equal(tl_load_run(run, NULL, 0), TL_ERROR_INVALID_ARG);
    assert_string_equal(t.beds[0].env.error.text, "tl_load_run: run: another sum over ranks is under way");
    must_refuse(&t, 0, &none, 1, "run: another sum over ranks is under way");
    close_team(&t);
    tl_free_graph(NULL, &graph);
}

// A stage's save has the inputs that the stage has, wherever they stand in the listing.
static void inputs_of_a_later_stage_are_saved(void **state) {
    static team t, next;
    static const int32_t ends[2] = { 3, 4 };
    static const tl_tensor y = { 1, 0 };
    static const char bytes[12] = "hello, again";
    tl_graph graph = graph_of(two_inputs);
    layout l = plain_layout(2, 1);
    memory_sink saved;
    char found[12] = { 0 };
    (void)state;
    l.ends = ends;
    open_team(&t, &graph, &l);
    open_team(&next, &graph, &l);
    if (tl_write_tensor(t.beds[1].run, y, bytes, sizeof bytes)) fail_msg("%s", t.beds[1].env.error.text);
    t.beds[1].logged = 0;
    if (tl_save_run(t.beds[1].run, sink_of(&saved, -1))) fail_msg("%s", t.beds[1].env.error.text);
    assert_int_equal(t.beds[1].logged, 0);
    if (tl_load_run(next.beds[1].run, saved.text, saved.length)) fail_msg("%s", next.beds[1].env.error.text);
    if (tl_read_tensor(next.beds[1].run, y, found, sizeof found)) fail_msg("%s", next.beds[1].env.error.text);
    assert_memory_equal(found, bytes, sizeof bytes);
    free(saved.text);
    close_team(&next);
    close_team(&t);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_goes_on_with_other_ranks),
        cmocka_unit_test(replicas_go_on_with_other_ranks),
        cmocka_unit_test(late_messages_change_no_bit),
        cmocka_unit_test(training_survives_50_moments),
        cmocka_unit_test(saves_that_do_not_belong_are_refused),
        cmocka_unit_test(ranks_that_disagree_are_told),
        cmocka_unit_test(a_sum_under_way_is_not_saved),
        cmocka_unit_test(inputs_of_a_later_stage_are_saved),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
