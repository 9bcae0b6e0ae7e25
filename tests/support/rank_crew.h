// Runs of several ranks, whose kernels are hashes that do not commute, and what one process computes with them. Include
// after run_bed.h.
#ifndef TESTS_RANK_CREW_H
#define TESTS_RANK_CREW_H

#include "rank_hub.h"

enum { MOST_RANKS = MOST_HUB_RANKS, MOST_BATCHES = 24, MOST_CHUNKS = 4 };

// Kernels with a mixer for each micro-batch, because several are under way; gradients add up in the order of calls.
typedef struct hands {
    mixer     mixers[MOST_BATCHES];
    uint64_t  gradients[MIXER_NODES];
    tl_kernel kernels[MIXER_NODES];
    int32_t   chunk_of[MIXER_NODES];
    int32_t   calls[MOST_BATCHES][MOST_CHUNKS];  // -1 = not begun, else backwards
    int32_t   held, most_held;       // micro-batches that have begun and whose last backward has not run, in each chunk
    int32_t   trained[MOST_CHUNKS];  // backwards of a micro-batch on this rank
} hands;

// Count by the kernels alone how many micro-batches are in flight.
static inline void hands_count(hands *h, const tl_kernel_call *call) {
    int32_t chunk = h->chunk_of[call->node], *calls = &h->calls[call->micro_batch][chunk];
    if (call->kind == TL_STEP_BACKWARD) {
        if (++*calls == h->trained[chunk]) { h->held--; *calls = -1000000; }
    } else if (*calls == -1) {
        *calls = 0;
        if (++h->held > h->most_held) h->most_held = h->held;
    }
}

static inline tl_result hands_forward(const tl_kernel_call *call, void *user) {
    hands_count((hands *)user, call);
    return mixer_forward(call, &((hands *)user)->mixers[call->micro_batch]);
}

static inline tl_result hands_backward(const tl_kernel_call *call, void *user) {
    hands *h = (hands *)user;
    mixer *m = &h->mixers[call->micro_batch];
    tl_result result;
    hands_count(h, call);
    m->gradients[call->node] = h->gradients[call->node];
    result = mixer_backward(call, m);
    h->gradients[call->node] = m->gradients[call->node];
    return result;
}

static inline void hands_start_step(hands *h) {
    int i, k;
    for (i = 0; i < MOST_BATCHES; i++) {
        mixer_start_pass(&h->mixers[i]);
        for (k = 0; k < MOST_CHUNKS; k++) h->calls[i][k] = -1;
    }
    h->held = h->most_held = 0;
}

static inline void hands_open(hands *h, bed *b, const tl_graph *graph) {
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

// Write the inputs that the rank's stage has.
static inline tl_result load(tl_run *run, int32_t micro_batch, void *user) {
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

static inline int32_t count_nodes(const tl_graph *graph) {
    int32_t count = 0, i;
    for (i = 0; i < graph->node_count; i++) count += !graph->nodes[i].is_input;
    return count;
}

// The gradient checksum of every node, of one process that keeps everything and takes so many micro-batches from `first` on.
static inline void one_process(const tl_graph *graph, int32_t first, int32_t micro_batches, uint64_t *gradients) {
    static bed b;
    static hands h;
    tl_plan plan;
    bed_open(&b, graph, 0, 0, 1);
    hands_open(&h, &b, graph);
    b.desc.load = load;
    if (tl_plan_keep_all(&b.env, graph, 0, &plan)) fail_msg("%s", b.env.error.text);
    b.desc.plan = &plan;
    b.desc.repeat_count = micro_batches;
    b.desc.first_micro_batch = first;
    bed_must_init(&b);
    if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    hands_start_step(&h);
    if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    memcpy(gradients, h.gradients, (size_t)graph->node_count * sizeof *gradients);
    bed_close(&b);
    tl_free_plan(&b.env, &plan);
}

// -- a crew: a run on each rank --

typedef struct crew {
    rank_hub hub;
    bed      beds[MOST_RANKS];
    hands    hands[MOST_RANKS];
} crew;

// Everything but what the runs are opened with.
static inline void crew_join(crew *c, const tl_graph *graph, int32_t count, uint64_t poll_limit, const tl_link *link) {
    int32_t r;
    hub_open(&c->hub, count, poll_limit, link);
    for (r = 0; r < count; r++) {
        bed *b = &c->beds[r];
        bed_open(b, graph, BACKEND_CHECKED, (uint64_t)r, 1);
        hands_open(&c->hands[r], b, graph);
        b->desc.load = load;
        b->desc.transport = &c->hub.transports[r];
    }
}

// Runs of one strategy. budget: of each; 0 = no limit, else the host takes any number of bytes.
static inline void crew_open_strategy(crew *c, const tl_graph *graph, int32_t count, const tl_link *link,
                                      const tl_strategy *strategy, uint64_t budget) {
    int32_t r;
    crew_join(c, graph, count, 0, link);
    for (r = 0; r < count; r++) {
        c->beds[r].desc.strategy = strategy;
        c->beds[r].desc.budget_bytes = budget;
        if (budget) c->beds[r].desc.host_budget_bytes = UINT64_MAX;
        bed_must_init(&c->beds[r]);
    }
}

static inline void crew_close(crew *c) {
    int32_t r;
    for (r = 0; r < c->hub.count; r++) bed_close(&c->beds[r]);
    hub_close(&c->hub);
}

static inline tl_result crew_turn(int32_t rank, void *user) {
    bed *b = &((crew *)user)->beds[rank];
    tl_result result = tl_run_plan(b->run);
    if (result && result != TL_NOT_READY) fail_msg("rank %d: %s", (int)rank, b->env.error.text);
    return result;
}

// One training step of all ranks, in turns.
static inline void crew_step(crew *c, tl_random *random) {
    int32_t r;
    for (r = 0; r < c->hub.count; r++) hands_start_step(&c->hands[r]);
    hub_take_turns(&c->hub, random, crew_turn, c);
}

#endif
