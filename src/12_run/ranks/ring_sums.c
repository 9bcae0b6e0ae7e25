#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- sums over ranks --
//
// A ring of p replicas; each range is cut in p shards. In turn t of the scatter replica g sends shard g - t on
// and adds what it has to the shard g - t - 1 that arrives, modulo p; in turn t of the gather it sends shard g
// + 1 - t:
//
//     p = 3          scatter: 0     1                 gather: 0     1
//     replica 0      s0 ->      s2 + own ->   s1 done     s1 ->   s0 ->
//     replica 1      s1 ->      s0 + own ->   s2 done     s2 ->   s1 ->
//     replica 2      s2 ->      s1 + own ->   s0 done     s0 ->   s2 ->
//
// Shards travel in pieces, and what arrives to be added waits in a buffer of one piece.

// Some of a range.
typedef struct tli_shard_piece {
    float   *at;
    uint64_t count;
} tli_shard_piece;

static int32_t tli_count_stages(const tl_run *run) {
    return run->compiled && run->compiled->rank_count > 1 ? run->compiled->rank_count : 1;
}

static int32_t tli_count_replicas(const tl_run *run) {
    return run->messages ? run->messages->transport->rank_count / tli_count_stages(run) : 1;
}

static int32_t tli_find_replica(const tl_run *run) {
    return run->messages ? run->messages->transport->rank / tli_count_stages(run) : 0;
}

// In automatic parallelism the run numbers the micro-batches of replicas, one after the other.
static tl_result tli_number_micro_batches(tl_run *run) {
    const tl_strategy *strategy = run->desc.strategy;
    int64_t first = (int64_t)run->repeat_count * run->slot_count;
    if (!strategy || strategy->parallelism.kind != TL_PARALLELISM_AUTOMATIC || !run->messages) return TL_OK;
    if (tli_find_replica(run) > (INT32_MAX - first - run->desc.first_micro_batch) / first)
        return tli_fail(run->env, TL_ERROR_OVERFLOW, TLI_IN(INIT_RUN),
                        TLI_RULE(MICRO_BATCHES_DO_NOT_FIT_31_BITS));
    run->desc.first_micro_batch += (int32_t)(first * tli_find_replica(run));
    TLI_INVARIANT(run->desc.first_micro_batch >= 0);
    return TL_OK;
}

// The rank of the replica `by` places further in the ring.
static int32_t tli_find_ring_rank(const tl_run *run, int32_t by) {
    int32_t count = tli_count_replicas(run), stages = tli_count_stages(run);
    int32_t replica = (tli_find_replica(run) + by + count) % count;
    return replica * stages + run->messages->transport->rank % stages;
}

// The element at which a shard of a range of so many elements begins.
static uint64_t tli_shard_start(uint64_t count, uint64_t replicas, uint64_t shard) {
    uint64_t rest = count % replicas;
    return count / replicas * shard + (shard < rest ? shard : rest);
}

static tli_shard_piece tli_find_piece(const tl_run *run, const tl_variable *variable, int32_t shard,
                                      uint64_t piece) {
    uint64_t replicas = (uint64_t)tli_count_replicas(run), count = variable->bytes / 4;
    uint64_t at = (uint64_t)((shard % (int32_t)replicas + (int32_t)replicas) % (int32_t)replicas);
    uint64_t first = tli_shard_start(count, replicas, at) + piece * TLI_PIECE_COUNT;
    uint64_t end = tli_shard_start(count, replicas, at + 1);
    tli_shard_piece found;
    found.at = (float *)variable->host + (first < end ? first : end);
    found.count = first < end ? end - first : 0;
    if (found.count > TLI_PIECE_COUNT) found.count = TLI_PIECE_COUNT;
    return found;
}

// The pieces that the present turn sends and receives.
static void tli_find_turn_pieces(const tl_run *run, const tli_reduction *r, tli_shard_piece *sent,
                                 tli_shard_piece *received) {
    const tl_variable *variable = &run->desc.variables[r->variable];
    int32_t shard = tli_find_replica(run) - r->turn + (r->parts & TLI_REDUCE_SCATTER ? 0 : 1);
    *sent = tli_find_piece(run, variable, shard, r->piece);
    *received = tli_find_piece(run, variable, shard - 1, r->piece);
}

#ifdef TLI_INVARIANTS
// A sum has parts of those that were asked for, a turn of its ring, and messages only of a begun piece.
static int tli_reduction_holds(const tl_run *run, const tli_reduction *r) {
    int is_idle = r->requests[0] == TLI_NO_REQUEST && r->requests[1] == TLI_NO_REQUEST;
    if (!r->asked || (r->parts & ~r->asked) || !r->parts || r->variable > run->desc.variable_count) return 0;
    if (r->turn < 0 || r->turn >= tli_count_replicas(run) - 1) return 0;
    return r->accepted || is_idle;
}
#endif

// Begin those messages of a piece that the transport did not take so far. *waits = 1: some are left.
static tl_result tli_begin_piece(tl_run *run, tli_reduction *r, tli_shard_piece sent,
                                 tli_shard_piece received, int *waits) {
    void *to = r->parts & TLI_REDUCE_SCATTER ? r->values : received.at;
    tli_message messages[2];
    tl_result result = TL_OK;
    int i;
    messages[0] = tli_message_of(1, tli_find_ring_rank(run, 1), 0, sent.at, 4 * sent.count);
    messages[1] = tli_message_of(0, tli_find_ring_rank(run, -1), 0, to, 4 * received.count);
    for (i = 1; i >= 0 && !result; i--) {
        if (r->accepted & 1u << i) continue;
        run->messages->failed_peer = messages[i].peer;
        if (messages[i].bytes)
            result = tli_begin_request(run->messages->transport, &messages[i], &r->requests[i]);
        if (!result) {
            r->accepted |= 1u << i;
            tli_count_message(run, &messages[i]);
        }
        if (result == TL_NOT_READY) { *waits = 1; result = TL_OK; }
    }
    TLI_INVARIANT(tli_reduction_holds(run, r));
    return result;
}

static tl_result tli_poll_piece(tl_run *run, tli_reduction *r) {
    const tl_transport *transport = run->messages->transport;
    tl_result sent = tli_poll_request(transport, &r->requests[0]);
    tl_result received = tli_poll_request(transport, &r->requests[1]);
    int has_failed = sent && sent != TL_NOT_READY;
    run->messages->failed_peer = tli_find_ring_rank(run, has_failed ? 1 : -1);
    TLI_INVARIANT(tli_reduction_holds(run, r));
    return has_failed || !received ? sent : received;
}

// Go on to the next piece, turn, part or range. At the end no range is left (tli_find_next_variable).
static void tli_pass_piece(tl_run *run, tli_reduction *r) {
    uint64_t replicas = (uint64_t)tli_count_replicas(run), count;
    r->accepted = 0;
    r->piece++;
    if (r->variable < run->desc.variable_count) {
        count = run->desc.variables[r->variable].bytes / 4;
        if (r->piece * TLI_PIECE_COUNT < count / replicas + 1) return;
    }
    r->piece = 0;
    if (++r->turn < (int32_t)replicas - 1) return;
    r->turn = 0;
    if (r->parts == (TLI_REDUCE_SCATTER | TLI_REDUCE_GATHER)) {
        r->parts = TLI_REDUCE_GATHER;
        return;
    }
    r->parts = r->asked;
    r->variable++;
    TLI_INVARIANT(tli_reduction_holds(run, r));
}

// Whether a range has a shard, and is of a node that the step at hand computes.
static int tli_is_shard_at_hand(const tl_run *run, const tl_variable *variable) {
    return variable->shard && tli_find_run_node(run, variable->node) == run->at.last.node;
}

static int tli_is_reduced(const tl_run *run, const tli_reduction *r, const tl_variable *variable) {
    if (r->node >= 0) return tli_is_shard_at_hand(run, variable);
    return variable->kind == r->kind && !variable->shard;
}

// Go to the next range that is summed; 0 = there is none.
static int tli_find_next_variable(const tl_run *run, tli_reduction *r) {
    while (r->variable < run->desc.variable_count && !tli_is_reduced(run, r, &run->desc.variables[r->variable]))
        r->variable++;
    TLI_INVARIANT(r->variable <= run->desc.variable_count);
    return r->variable < run->desc.variable_count;
}

static tl_result tli_move_reduction(tl_run *run, tli_reduction *r) {
    tl_result result = TL_OK;
    uint64_t i;
    while (!result && tli_find_next_variable(run, r)) {
        tli_shard_piece sent, received;
        int waits = 0;
        tli_find_turn_pieces(run, r, &sent, &received);
        result = tli_begin_piece(run, r, sent, received, &waits);
        if (!result) result = tli_poll_piece(run, r);
        if (!result && waits) result = TL_NOT_READY;
        if (result) break;
        for (i = 0; i < received.count && r->parts & TLI_REDUCE_SCATTER; i++)
            received.at[i] = r->values[i] + received.at[i];
        tli_pass_piece(run, r);
    }
    TLI_INVARIANT(tli_reduction_holds(run, r));
    return result;
}

static tl_result tli_check_reduction(tl_run *run, tli_function function, tl_variable_kind kind) {
    tli_rule why = TLI_NO_RULE;
    int32_t i;
    if (!tli_is_below((int64_t)kind, TL_VARIABLE_COUNT)) why = TLI_RULE(REDUCED_KIND_UNKNOWN);
    else if (run->active || run->in_plan) why = TLI_RULE(RUN_PASS_IS_UNDER_WAY);
    else if (!run->messages) why = TLI_RULE(REDUCTION_NEEDS_TRANSPORT);
    for (i = 0; i < run->desc.variable_count && !why; i++)
        if (run->desc.variables[i].kind == kind && run->desc.variables[i].bytes % 4)
            why = TLI_RULE(REDUCED_RANGES_ARE_F32);
    return why ? tli_fail(run->env, TL_ERROR_INVALID_ARG, function, why) : TL_OK;
}

static tli_reduction *tli_alloc_reduction(tl_run *run, tli_function function) {
    tli_reduction *r = (tli_reduction *)tli_alloc_array(run->env, 1, sizeof *r);
    if (!r) (void)tli_fail(run->env, TL_ERROR_NO_MEMORY, function, TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    return r;
}

// node: as in tli_reduction.
static void tli_open_reduction(tl_run *run, tli_reduction *r, tl_variable_kind kind, int32_t parts,
                               int32_t node) {
    tli_zero(r, sizeof *r);
    run->reduction = r;
    r->kind = kind;
    r->node = node;
    r->parts = r->asked = parts;
    r->requests[0] = r->requests[1] = TLI_NO_REQUEST;
    TLI_INVARIANT(tli_reduction_holds(run, r));
}

// step: of the pass; -1 = between passes.
static tl_result tli_continue_reduction(tl_run *run, tli_function function, int32_t step) {
    tl_result result = tli_greet_ranks(run, function, &run->messages->ring);
    if (!result) {
        result = tli_move_reduction(run, run->reduction);
        if (result && result != TL_NOT_READY)
            result = tli_fail_peer(run, function, result, run->messages->failed_peer, step);
    }
    if (result != TL_NOT_READY) tli_stop_reduction(run);
    TLI_INVARIANT(result == TL_NOT_READY || !run->reduction);
    return result;
}

// Begin, or go on with, a reduction of these parts.
static tl_result tli_reduce(tl_run *run, tli_function function, tl_variable_kind kind, int32_t parts) {
    tli_reduction *r = run->reduction;
    tl_result result = tli_check_reduction(run, function, kind);
    if (result) return result;
    if (r && (r->kind != kind || r->asked != parts))
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(REDUCTION_IS_UNDER_WAY));
    if (tli_count_replicas(run) == 1) return TL_OK;
    if (!r) {
        r = tli_alloc_reduction(run, function);
        if (!r) return TL_ERROR_NO_MEMORY;
        tli_open_reduction(run, r, kind, parts, -1);
    }
    return tli_continue_reduction(run, function, -1);
}

// Scatter the ranges with shards of a node of the run's graph, in a pass.
static tl_result tli_reduce_node(tl_run *run, int32_t node, int32_t step) {
    if (!run->reduction)
        tli_open_reduction(run, run->in_pass, TL_VARIABLE_GRADIENT, TLI_REDUCE_SCATTER, node);
    return tli_continue_reduction(run, TLI_IN(RUN_PLAN), step);
}

TLI_IMPL tl_result tl_reduce_run(tl_run *run, tl_variable_kind kind) {
    TL_ASSERT(run);
    return tli_reduce(run, TLI_IN(REDUCE_RUN), kind, TLI_REDUCE_SCATTER | TLI_REDUCE_GATHER);
}

TLI_IMPL tl_result tl_scatter_run(tl_run *run, tl_variable_kind kind) {
    TL_ASSERT(run);
    return tli_reduce(run, TLI_IN(SCATTER_RUN), kind, TLI_REDUCE_SCATTER);
}

TLI_IMPL tl_result tl_gather_run(tl_run *run, tl_variable_kind kind) {
    TL_ASSERT(run);
    return tli_reduce(run, TLI_IN(GATHER_RUN), kind, TLI_REDUCE_GATHER);
}

static void tli_find_shard(const tl_run *run, int32_t variable, uint64_t *offset, uint64_t *bytes) {
    uint64_t replicas = (uint64_t)tli_count_replicas(run), count = run->desc.variables[variable].bytes / 4;
    uint64_t shard = ((uint64_t)tli_find_replica(run) + 1) % replicas;
    *offset = 4 * tli_shard_start(count, replicas, shard);
    *bytes = 4 * tli_shard_start(count, replicas, shard + 1) - *offset;
    TLI_INVARIANT(*offset + *bytes <= run->desc.variables[variable].bytes);
}

TLI_IMPL void tl_find_run_shard(const tl_run *run, int32_t variable, uint64_t *offset, uint64_t *bytes) {
    TL_ASSERT(run && offset && bytes);
    *offset = *bytes = 0;
    if (tli_is_below(variable, run->desc.variable_count)) tli_find_shard(run, variable, offset, bytes);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
