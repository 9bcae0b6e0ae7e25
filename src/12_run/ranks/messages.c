#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- messages between ranks --
//
// The nodes "receive" and "send" of a stage have kernels of the run's own, which go through the caller's
// transport and are polled as any kernel is. Message k between two ranks, there or back, of slot s has the tag
// 1 + (2 k + back) x slots + s on both sides, because both list what crosses in the same order. With chunks
// the ranks are a ring. In a ring of two the rank before is also the rank after: each sends the other tensors,
// as to the one after, and gradients, as to the one before, which `back` in the tag tells apart. Tag 0 is that
// of sums over replicas, and of greetings: before its first pass a rank and its neighbours in the pipeline,
// before its first sum a rank and its neighbours in the ring tell each other what has to be the same on both.

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// The ranks before and after in the pipeline; the replicas before and after in the ring of sums.
enum { TLI_BEFORE, TLI_AFTER, TLI_RING_BEFORE, TLI_RING_AFTER, TLI_NEIGHBOURS };

typedef struct tli_words {
    uint64_t plans;      // hash of those of all ranks; 0 = no plan of ranks
    uint64_t variables;  // hash of the registered ones
    uint64_t settings;   // in the pipeline: hash of repeat_count, seed, first_micro_batch; between replicas
                         // repeat_count if there are shards, else 0: they may differ
    uint64_t step;       // the next training step
    uint64_t passes;     // that have ended of the one under way
} tli_words;

// With the neighbours first and first + 1.
typedef struct tli_greeting {
    int32_t   first;
    int32_t   is_begun, is_done;
    uint32_t  accepted;         // bits 1 << (2 x neighbour + is sent) of what the transport took
    tli_words own, others[2];
    int32_t   requests[2][2];   // sent, received; TLI_NO_REQUEST
} tli_greeting;

typedef struct tli_messages {
    const tl_transport *transport;
    int32_t *numbers;                        // [nodes] k of a message; -1 = none
    int32_t  peers[TLI_NEIGHBOURS];          // ranks of the transport; -1 = none. Of two replicas each has the
                                             // other as TLI_RING_BEFORE, and no TLI_RING_AFTER
    tli_greeting stages, ring;
    int32_t  failed_peer;                    // of the last message that failed
    int32_t  is_out_of_step;                 // 1 = a pass did not end: peers may have its messages, or wait
} tli_messages;

enum { TLI_NO_REQUEST = -1 };

// A sum over ranks under way (ring_sums.c).
enum { TLI_PIECE_COUNT = 4096 };  // elements
enum { TLI_REDUCE_SCATTER = 1, TLI_REDUCE_GATHER = 2 };

typedef struct tli_reduction {
    int32_t  parts;                 // TLI_REDUCE_ bits that are left for the present range
    int32_t  asked;                 // the bits it began with
    tl_variable_kind kind;
    int32_t  node;                  // of the run's graph, whose shards are summed; -1 = every range of the kind
    int32_t  variable, turn;
    uint64_t piece;
    uint32_t accepted;              // bits 1 sent, 2 received: messages of this piece that the transport took
    int32_t  requests[2];           // sent, received
    float    values[TLI_PIECE_COUNT];
} tli_reduction;

// What is sent, or received.
typedef struct tli_message {
    int      sends;
    int32_t  peer;
    uint32_t tag;
    void    *data;      // what is sent is not changed
    uint64_t bytes;
} tli_message;

static tli_message tli_message_of(int sends, int32_t peer, uint32_t tag, void *data, uint64_t bytes) {
    tli_message m;
    m.sends = sends;
    m.peer = peer;
    m.tag = tag;
    m.data = data;
    m.bytes = bytes;
    return m;
}

// Ask the transport to take a message. Only one that it took has a number: whatever it wrote beside another
// answer is forgotten. TL_NOT_READY: it takes no more at present; ask again.
static tl_result tli_begin_request(const tl_transport *transport, const tli_message *m, int32_t *request) {
    int32_t number = TLI_NO_REQUEST;
    tl_result result = m->sends
        ? (transport->send)(transport->self, m->peer, m->tag, m->data, m->bytes, &number)
        : (transport->receive)(transport->self, m->peer, m->tag, m->data, m->bytes, &number);
    if (!result && number < 0) result = TL_ERROR_IO;    // it took the message, and gave it no number
    *request = result ? TLI_NO_REQUEST : number;
    TLI_INVARIANT(!result == (*request != TLI_NO_REQUEST));
    return result;
}

static tl_result tli_poll_request(const tl_transport *transport, int32_t *request) {
    tl_result result;
    if (*request == TLI_NO_REQUEST) return TL_OK;
    result = (transport->poll)(transport->self, *request);
    if (result != TL_NOT_READY) *request = TLI_NO_REQUEST;
    TLI_INVARIANT(result == TL_NOT_READY || *request == TLI_NO_REQUEST);
    return result;
}

static void tli_cancel_request(const tl_transport *transport, int32_t *request) {
    if (*request != TLI_NO_REQUEST) (transport->cancel)(transport->self, *request);
    *request = TLI_NO_REQUEST;
    TLI_INVARIANT(*request == TLI_NO_REQUEST);
}

#ifdef TLI_INVARIANTS
// Only a greeting that was begun has messages under way.
static int tli_greeting_holds(const tli_greeting *g) {
    int32_t i;
    if (g->is_begun && g->is_done) return 0;
    for (i = 0; i < 4; i++) if (!g->is_begun && g->requests[i / 2][i % 2] != TLI_NO_REQUEST) return 0;
    return 1;
}
#endif

// Note that a pass is given up in which neighbours in the pipeline, or replicas that sum shards, may have had
// messages, or wait for them.
static void tli_leave_step(tl_run *run) {
    tli_messages *m = run->messages;
    int is_in_step = run->active || (run->in_plan && run->plan_pass);
    if (!m || !is_in_step) return;
    if (m->peers[TLI_BEFORE] >= 0 || m->peers[TLI_AFTER] >= 0 || run->has_shards) m->is_out_of_step = 1;
    TLI_INVARIANT(run->messages == m);
}

// Cancel the message of the call at hand.
static void tli_cancel_message(tl_run *run) {
    if (run->messages) tli_cancel_request(run->messages->transport, &run->at.call.request);
}

static uint32_t tli_message_tag(const tl_run *run, int32_t number, int backward, int32_t slot) {
    return 1 + (uint32_t)(2 * number + backward) * (uint32_t)run->slot_count + (uint32_t)slot;
}

// Count a message that the transport took.
static void tli_count_message(tl_run *run, const tli_message *m) {
    if (m->sends) run->report.sent_bytes += m->bytes;
    else run->report.received_bytes += m->bytes;
}

// The kernel of all messages: it offers its message until the transport takes it, and polls it from then on.
static tl_result tli_carry_message(const tl_kernel_call *call, void *user) {
    tl_run *run = (tl_run *)user;
    tli_messages *messages = run->messages;
    const tl_transport *transport = messages->transport;
    int backward = call->kind == TL_STEP_BACKWARD, is_receive = !call->graph->nodes[call->node].input_count;
    int sends = is_receive == backward;
    const tl_operand *operand = is_receive ? (backward ? call->output_grads : call->outputs)
                                           : (backward ? call->input_grads : call->inputs);
    uint32_t tag = tli_message_tag(run, messages->numbers[call->node], backward, run->slot);
    int32_t peer = messages->peers[is_receive ? TLI_BEFORE : TLI_AFTER];
    tl_result result = TL_OK;
    if (!operand->range.bytes) return TL_OK;
    if (run->at.call.request == TLI_NO_REQUEST) {   // it is new, or the transport did not take it
        tli_message message = tli_message_of(sends, peer, tag, operand->host, operand->range.bytes);
        result = tli_begin_request(transport, &message, &run->at.call.request);
        if (!result) tli_count_message(run, &message);
    }
    if (!result) result = tli_poll_request(transport, &run->at.call.request);
    if (result && result != TL_NOT_READY) messages->failed_peer = peer;
    TLI_INVARIANT(result == TL_NOT_READY || result || run->at.call.request == TLI_NO_REQUEST);
    return result;
}

// step: -1 = between passes.
static tl_result tli_fail_peer(tl_run *run, tli_function function, tl_result why, int32_t peer, int32_t step) {
    tli_sentence s = tli_begin_error(run->env, why, function,
                                     step < 0 ? TLI_RULE(MESSAGE_BETWEEN_PASSES) : TLI_RULE(MESSAGE_OF_PEER),
                                     (uint64_t)peer, step < 0 ? 0 : (uint64_t)step);
    tli_put_text(&s, tl_name_result(why));
    return tli_end_error(run->env, &s, why);
}

// -- greetings --

// Of an optimizer each replica may have a part of its own length.
static uint64_t tli_hash_variables(const tl_run *run) {
    uint64_t hash = (uint64_t)run->desc.variable_count;
    int32_t i;
    for (i = 0; i < run->desc.variable_count; i++) {
        const tl_variable *variable = &run->desc.variables[i];
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)variable->node << 32 | (uint64_t)variable->kind);
        hash = tl_mix_u64(hash, variable->kind == TL_VARIABLE_OPTIMIZER ? 0 : variable->bytes);
        hash = tl_mix_u64(hash, variable->shard != NULL);
    }
    return hash;
}

static void tli_open_words(const tl_run *run, tli_greeting *g) {
    g->own.plans = run->compiled ? run->compiled->ranks_hash : 0;
    g->own.variables = tli_hash_variables(run);
    if (g == &run->messages->stages)
        g->own.settings = tl_mix_u64(run->desc.seed, (uint64_t)(uint32_t)run->repeat_count << 32 |
                                                         (uint32_t)run->desc.first_micro_batch);
    else if (run->has_shards) g->own.settings = (uint64_t)run->repeat_count;   // sums within passes
    g->own.step = run->next_step;
    g->own.passes = tli_is_in_training_step(run) ? (uint64_t)run->ended_passes : 0;
    g->accepted = 0;
    g->is_begun = 1;
    TLI_INVARIANT(tli_greeting_holds(g));
}

// Begin those messages of a greeting that the transport did not take so far. *waits = 1: some are left.
static tl_result tli_begin_greeting(tl_run *run, tli_greeting *g, int32_t *waits) {
    tli_messages *m = run->messages;
    tl_result result = TL_OK;
    int32_t i;
    if (!g->is_begun) tli_open_words(run, g);
    for (i = 0; i < 4 && !result; i++) {
        int32_t peer = m->peers[g->first + i / 2];
        int sends = i % 2;      // what is received first, so that it has a place when it arrives
        tli_message message;
        if (peer < 0 || g->accepted & 1u << i) continue;
        message = tli_message_of(sends, peer, 0, sends ? &g->own : &g->others[i / 2], sizeof g->own);
        m->failed_peer = peer;
        result = tli_begin_request(m->transport, &message, &g->requests[i / 2][!sends]);
        if (!result) g->accepted |= 1u << i;
        if (result == TL_NOT_READY) { *waits = 1; result = TL_OK; }
    }
    TLI_INVARIANT(tli_greeting_holds(g));
    return result;
}

static void tli_end_greeting(const tli_messages *m, tli_greeting *g) {
    int32_t i;
    for (i = 0; i < 4; i++) tli_cancel_request(m->transport, &g->requests[i / 2][i % 2]);
    g->is_begun = 0;
    TLI_INVARIANT(tli_greeting_holds(g));
}

// Check that both sides have told each other the same; variables only of replicas, which have the same stage.
static tl_result tli_compare_words(const tl_run *run, tli_function function, const tli_greeting *g) {
    const tli_messages *m = run->messages;
    int32_t i;
    for (i = 0; i < 2; i++) {
        const tli_words *other = &g->others[i];
        int32_t peer = m->peers[g->first + i];
        tli_rule why = TLI_NO_RULE;
        uint64_t value = 0;
        if (peer < 0) continue;
        if (other->step != g->own.step) { why = TLI_RULE(PEER_IS_AT_ANOTHER_STEP); value = other->step; }
        if (other->passes != g->own.passes) { why = TLI_RULE(PEER_IS_AT_ANOTHER_PASS); value = other->passes; }
        if (other->settings != g->own.settings) why = TLI_RULE(PEER_HAS_OTHER_SETTINGS);
        if (g == &m->ring && other->variables != g->own.variables) why = TLI_RULE(PEER_HAS_OTHER_VARIABLES);
        if (other->plans != g->own.plans) { why = TLI_RULE(PEER_HAS_OTHER_PLANS); value = other->plans; }
        if (why)
            return tli_fail_values(run->env, TL_ERROR_MISMATCH, function, why, (uint64_t)peer, value);
    }
    return TL_OK;
}

// Greet two neighbours, once. TL_NOT_READY: the next call goes on.
static tl_result tli_greet_ranks(tl_run *run, tli_function function, tli_greeting *g) {
    tli_messages *m = run->messages;
    tl_result result = TL_OK;
    int32_t i, waits = 0;
    if (g->is_done) return TL_OK;
    result = tli_begin_greeting(run, g, &waits);
    for (i = 0; i < 4 && !result; i++) {
        result = tli_poll_request(m->transport, &g->requests[i / 2][i % 2]);
        waits |= result == TL_NOT_READY;
        if (result == TL_NOT_READY) result = TL_OK;
        if (result) m->failed_peer = m->peers[g->first + i / 2];
    }
    if (result) {
        tli_end_greeting(m, g);
        return tli_fail_peer(run, function, result, m->failed_peer, -1);
    }
    if (waits) return TL_NOT_READY;
    g->is_begun = 0;
    TLI_INVARIANT(tli_greeting_holds(g));
    result = tli_compare_words(run, function, g);
    g->is_done = !result;
    TLI_INVARIANT(tli_greeting_holds(g));
    return result;
}

// -- preparing and ending --

// Number what is received, and what is sent.
static tl_result tli_number_messages(tl_run *run, tli_messages *m) {
    const tl_graph *graph = run->graph;
    int32_t id, received = 0, sent = 0;
    m->numbers = (int32_t *)tli_alloc_array(run->env, (uint64_t)graph->node_count, sizeof *m->numbers);
    if (!m->numbers)
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    for (id = 0; id < graph->node_count; id++) {
        int message = tli_find_message(run->compiled, id);
        m->numbers[id] = -1;
        if (message) m->numbers[id] = message == TLI_MESSAGE_RECEIVE ? received++ : sent++;
    }
    TLI_INVARIANT(received + sent <= graph->node_count);
    return TL_OK;
}

static void tli_open_greeting(tli_greeting *g, int32_t first) {
    int32_t i;
    g->first = first;
    for (i = 0; i < 4; i++) g->requests[i / 2][i % 2] = TLI_NO_REQUEST;
    TLI_INVARIANT(tli_greeting_holds(g));
}

// The rank of the transport that is `by` further in the pipeline; -1 = none.
static int32_t tli_find_neighbour(const tl_compiled_plan *compiled, int32_t rank, int32_t by) {
    int32_t at = compiled ? compiled->rank + by : -1, count = compiled ? compiled->rank_count : 0;
    if (compiled && compiled->chunk_count > 1) at = (at + count) % count;
    return tli_is_below(at, count) ? rank - compiled->rank + at : -1;
}

// Ranks of a transport with the same stage are replicas, in a ring (ring_sums.c).
static void tli_find_neighbours(tli_messages *m, const tl_compiled_plan *compiled) {
    const tl_transport *transport = m->transport;
    int32_t stages = compiled && compiled->rank_count > 1 ? compiled->rank_count : 1;
    int32_t replicas = transport->rank_count / stages, rank = transport->rank, count = transport->rank_count;
    int32_t i;
    for (i = 0; i < TLI_NEIGHBOURS; i++) m->peers[i] = -1;
    m->peers[TLI_BEFORE] = tli_find_neighbour(compiled, rank, -1);
    m->peers[TLI_AFTER] = tli_find_neighbour(compiled, rank, 1);
    if (replicas > 1) m->peers[TLI_RING_BEFORE] = (rank - stages + count) % count;
    if (replicas > 2) m->peers[TLI_RING_AFTER] = (rank + stages) % count;
    tli_open_greeting(&m->stages, TLI_BEFORE);
    tli_open_greeting(&m->ring, TLI_RING_BEFORE);
}

// Get ready for the transport of the desc.
static tl_result tli_open_messages(tl_run *run) {
    const tl_transport *transport = run->desc.transport;
    const tl_compiled_plan *compiled = run->compiled;
    tli_rule why = TLI_NO_RULE;
    tli_messages *m;
    if (!transport && (!compiled || compiled->rank_count <= 1)) return TL_OK;
    if (!transport) why = TLI_RULE(TRANSPORT_RANKS_NEED_ONE);
    else if (!transport->send || !transport->receive || !transport->poll || !transport->cancel)
        why = TLI_RULE(TRANSPORT_FUNCTIONS_MISSING);
    else if (!tli_is_below(transport->rank, transport->rank_count)) why = TLI_RULE(TRANSPORT_RANK_OUT_OF_RANGE);
    else if (compiled && compiled->rank_count > 1 &&
             (transport->rank_count % compiled->rank_count ||
              transport->rank % compiled->rank_count != compiled->rank))
        why = TLI_RULE(TRANSPORT_RANK_HAS_ANOTHER_STAGE);
    if (why) return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), why);
    if (!run->limits.host_visible)
        return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                        TLI_RULE(TRANSPORT_NEEDS_HOST_VISIBLE));
    m = (tli_messages *)tli_alloc_array(run->env, 1, sizeof *m);
    if (!m) return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    run->messages = m;
    m->transport = transport;
    tli_find_neighbours(m, compiled);
    return compiled && compiled->rank_count > 1 ? tli_number_messages(run, m) : TL_OK;
}

static void tli_stop_reduction(tl_run *run) {
    tli_reduction *r = run->reduction;
    int32_t i;
    for (i = 0; r && i < 2; i++) tli_cancel_request(run->messages->transport, &r->requests[i]);
    if (r != run->in_pass) tli_release(run->env, r);
    run->reduction = NULL;
    TLI_INVARIANT(!run->reduction);
}

static void tli_close_messages(tl_run *run) {
    if (!run->messages) return;
    tli_stop_reduction(run);
    tli_release(run->env, run->in_pass);
    run->in_pass = NULL;
    tli_end_greeting(run->messages, &run->messages->stages);
    tli_end_greeting(run->messages, &run->messages->ring);
    tli_release(run->env, run->messages->numbers);
    tli_release(run->env, run->messages);
    run->messages = NULL;
    TLI_INVARIANT(!run->messages && !run->in_pass && !run->reduction);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
