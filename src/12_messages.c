#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- messages between ranks --
//
// The nodes "receive" and "send" of a stage have kernels of the run's own, which go through the caller's
// transport and are polled as any kernel is. Message k between two ranks, there or back, of slot s has the tag
// 1 + (2 k + back) x slots + s on both sides, because both list what crosses in the same order. With chunks the
// ranks are a ring. Two ranks are then each other's next: what the one sends is a tensor to its next, or a
// gradient to the one before, so tags differ in back. Tag 0 is the greeting, before the first pass: each
// neighbour sends the hash of the plans of all ranks, and compares.

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
enum { TLI_BEFORE, TLI_AFTER, TLI_NEIGHBOURS };  // rank - 1, rank + 1; with chunks the last is before the first

typedef struct tli_messages {
    const tl_transport *transport;
    int32_t *numbers;                        // [nodes] k of a message; -1 = none
    int32_t  peers[TLI_NEIGHBOURS];          // -1 = none
    uint64_t hash, hashes[TLI_NEIGHBOURS];   // of the plans; as the neighbours have them
    int32_t  requests[TLI_NEIGHBOURS][2];    // of the greeting, sent and received; TLI_NO_REQUEST
    int32_t  is_greeting, is_greeted;
    int32_t  failed_peer;                    // of the last message that failed
} tli_messages;

enum { TLI_NO_REQUEST = -1 };

// A sum over ranks under way (12_reduce.c).
enum { TLI_PIECE_COUNT = 4096 };  // elements
enum { TLI_REDUCE_SCATTER = 1, TLI_REDUCE_GATHER = 2 };

typedef struct tli_reduction {
    int32_t  parts;                 // TLI_REDUCE_ bits that are left; 0 = none is under way
    int32_t  asked;                 // the bits it began with
    tl_state_kind kind;
    int32_t  state, turn;
    uint64_t piece;
    int32_t  is_begun;              // 1 = the messages of this piece are under way
    int32_t  requests[2];           // sent, received
    float    values[TLI_PIECE_COUNT];
} tli_reduction;

static tl_result tli_poll_request(const tl_transport *transport, int32_t *request) {
    tl_result result;
    if (*request == TLI_NO_REQUEST) return TL_OK;
    result = transport->poll(transport->self, *request);
    if (result != TL_NOT_READY) *request = TLI_NO_REQUEST;
    return result;
}

static void tli_cancel_request(const tl_transport *transport, int32_t *request) {
    if (*request != TLI_NO_REQUEST) transport->cancel(transport->self, *request);
    *request = TLI_NO_REQUEST;
}

// Cancel the message of the call at hand.
static void tli_cancel_message(tl_run *run) {
    if (run->messages) tli_cancel_request(run->messages->transport, &run->call.request);
}

static uint32_t tli_message_tag(const tl_run *run, int32_t number, int backward, int32_t slot) {
    return 1 + (uint32_t)(2 * number + backward) * (uint32_t)run->slot_count + (uint32_t)slot;
}

// The kernel of all messages: the first call begins one, the others ask for it.
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
    if (!call->polled) {
        result = sends ? transport->send(transport->self, peer, tag, operand->host, operand->range.bytes,
                                         &run->call.request)
                       : transport->receive(transport->self, peer, tag, operand->host, operand->range.bytes,
                                            &run->call.request);
        if (sends) run->report.sent_bytes += operand->range.bytes;
        else run->report.received_bytes += operand->range.bytes;
    }
    if (!result) result = tli_poll_request(transport, &run->call.request);
    if (result && result != TL_NOT_READY) messages->failed_peer = peer;
    return result;
}

// step: -1 = between passes.
static tl_result tli_fail_peer(tl_run *run, tl_result why, int32_t peer, int32_t step) {
    tli_sentence s = tli_begin_error(run->env, why, TLI_IN(RUN_PLAN),
                                     step < 0 ? TLI_RULE(MESSAGE_BETWEEN_PASSES) : TLI_RULE(MESSAGE_OF_PEER),
                                     (uint64_t)peer, step < 0 ? 0 : (uint64_t)step);
    tli_put_text(&s, tl_name_result(why));
    return tli_end_error(run->env, &s, why);
}

// -- the greeting --

static tl_result tli_begin_greeting(tli_messages *m) {
    const tl_transport *transport = m->transport;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < TLI_NEIGHBOURS && !result; i++) {
        if (m->peers[i] < 0) continue;
        m->failed_peer = m->peers[i];
        result = transport->receive(transport->self, m->peers[i], 0, &m->hashes[i], sizeof m->hashes[i],
                                    &m->requests[i][1]);
        if (!result)
            result = transport->send(transport->self, m->peers[i], 0, &m->hash, sizeof m->hash,
                                     &m->requests[i][0]);
    }
    m->is_greeting = 1;
    return result;
}

static void tli_end_greeting(tli_messages *m) {
    int32_t i;
    for (i = 0; i < 2 * TLI_NEIGHBOURS; i++) tli_cancel_request(m->transport, &m->requests[i / 2][i % 2]);
    m->is_greeting = 0;
}

// Greet the neighbours before the first pass. TL_NOT_READY: the next call goes on.
static tl_result tli_greet_ranks(tl_run *run) {
    tli_messages *m = run->messages;
    tl_result result = TL_OK;
    int32_t i, waits = 0;
    if (!m || m->is_greeted) return TL_OK;
    if (!m->is_greeting) result = tli_begin_greeting(m);
    for (i = 0; i < 2 * TLI_NEIGHBOURS && !result; i++) {
        result = tli_poll_request(m->transport, &m->requests[i / 2][i % 2]);
        if (result == TL_NOT_READY) {
            result = TL_OK;
            waits = 1;
        } else m->failed_peer = result ? m->peers[i / 2] : m->failed_peer;
    }
    if (result) {
        tli_end_greeting(m);
        return tli_fail_peer(run, result, m->failed_peer, -1);
    }
    if (waits) return TL_NOT_READY;
    m->is_greeting = 0;
    for (i = 0; i < TLI_NEIGHBOURS; i++)
        if (m->peers[i] >= 0 && m->hashes[i] != m->hash)
            return tli_fail_values(run->env, TL_ERROR_MISMATCH, TLI_IN(RUN_PLAN),
                                   TLI_RULE(PEER_HAS_OTHER_PLANS), (uint64_t)m->peers[i], m->hashes[i]);
    m->is_greeted = 1;
    return TL_OK;
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
    return TL_OK;
}

// The rank of the transport that is `by` further in the pipeline; -1 = none.
static int32_t tli_find_neighbour(const tl_compiled_plan *compiled, int32_t rank, int32_t by) {
    int32_t at = compiled ? compiled->rank + by : -1, count = compiled ? compiled->rank_count : 0;
    if (compiled && compiled->chunk_count > 1) at = (at + count) % count;
    return tli_is_below(at, count) ? rank - compiled->rank + at : -1;
}

// Get ready for the transport of the desc.
static tl_result tli_open_messages(tl_run *run) {
    const tl_transport *transport = run->desc.transport;
    const tl_compiled_plan *compiled = run->compiled;
    tli_rule why = TLI_NO_RULE;
    tli_messages *m;
    int32_t i;
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
    for (i = 0; i < 2 * TLI_NEIGHBOURS; i++) m->requests[i / 2][i % 2] = TLI_NO_REQUEST;
    m->peers[TLI_BEFORE] = tli_find_neighbour(compiled, transport->rank, -1);
    m->peers[TLI_AFTER] = tli_find_neighbour(compiled, transport->rank, 1);
    m->hash = compiled ? compiled->ranks_hash : 0;
    return compiled && compiled->rank_count > 1 ? tli_number_messages(run, m) : TL_OK;
}

static void tli_stop_reduction(tl_run *run) {
    tli_reduction *r = run->reduction;
    int32_t i;
    for (i = 0; r && i < 2; i++) tli_cancel_request(run->messages->transport, &r->requests[i]);
    tli_release(run->env, r);
    run->reduction = NULL;
}

static void tli_close_messages(tl_run *run) {
    if (!run->messages) return;
    tli_stop_reduction(run);
    tli_end_greeting(run->messages);
    tli_release(run->env, run->messages->numbers);
    tli_release(run->env, run->messages);
    run->messages = NULL;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
