#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: the time of a training step --
//
// All ranks are replayed together. A message can travel when both sides have begun it; messages of one
// direction between two ranks travel one after the other, in the order of the sender. A rank goes on until a W
// whose message has not arrived; when none goes on, all have ended, or they wait for each other for good.

typedef struct tli_travel {
    uint64_t sent_at, asked_at;     // when the sender, and the receiver, have begun it
    uint64_t arrives_at;
    uint64_t bytes;
    uint8_t  is_sent, is_asked, has_arrived;
} tli_travel;

// Messages of one direction between a rank and the next one; with chunks the first one is next to the last.
typedef struct tli_road {
    tli_travel *travels;            // [count x micro-batches]
    int32_t    *order;              // [sent_count] travels, in the order of the sender
    int32_t     count;              // tensors that cross
    int32_t     sent_count, arrived_count;
    uint64_t    free_at;
} tli_road;

typedef struct tli_clock {
    const tl_rank_plan *rank;
    int32_t  *numbers;              // [nodes] of a message among those received, or sent; -1 = none
    uint8_t  *begun;                // [slots x nodes] 1 = F is under way, 2 = B
    uint64_t *ready;                // [slots x tensors] when the copy to or from the host ends
    tli_copy_clock copies;          // to and from the host
    int32_t   position;
    uint64_t  now, busy;
} tli_clock;

typedef struct tli_ranks_time {
    const tl_ranks_desc *desc;
    int32_t      rank_count, micro_batches;
    tli_clock   *clocks;            // [rank_count]
    tli_road *channels;             // [2 x rank_count] to the next rank and back
} tli_ranks_time;

#ifdef TLI_INVARIANTS
// Messages arrive in the order of the sender, none before both sides have begun it, and the last one frees the
// road.
static int tli_road_holds(const tli_ranks_time *t, const tli_road *channel) {
    const tli_travel *last;
    if (channel->arrived_count < 0 || channel->arrived_count > channel->sent_count) return 0;
    if (channel->sent_count > channel->count * t->micro_batches) return 0;
    if (!channel->arrived_count) return channel->free_at == 0;
    last = &channel->travels[channel->order[channel->arrived_count - 1]];
    if (!last->is_sent || !last->is_asked || !last->has_arrived) return 0;
    if (last->arrives_at != channel->free_at) return 0;
    return last->arrives_at >= last->sent_at && last->arrives_at >= last->asked_at;
}
#endif

// Let messages travel as far as both sides are known.
static tl_result tli_move_road(tli_ranks_time *t, tli_road *channel) {
    const tl_link *link = t->desc->link;
    while (channel->arrived_count < channel->sent_count) {
        tli_travel *travel = &channel->travels[channel->order[channel->arrived_count]];
        uint64_t ns = 0;
        if (!travel->is_asked) return TL_OK;
        if (link && (!tli_find_time(travel->bytes, link->bytes_per_second, &ns) ||
                     !tli_add_u64(ns, link->latency_ns, &ns))) return TL_ERROR_OVERFLOW;
        travel->arrives_at = tli_larger_u64(travel->sent_at, travel->asked_at);
        travel->arrives_at = tli_larger_u64(travel->arrives_at, channel->free_at);
        if (!tli_add_u64(travel->arrives_at, ns, &travel->arrives_at)) return TL_ERROR_OVERFLOW;
        channel->free_at = travel->arrives_at;
        travel->has_arrived = 1;
        channel->arrived_count++;
    }
    TLI_INVARIANT(tli_road_holds(t, channel));
    return TL_OK;
}

// The message of a node in a slot, there or back. sends: whether this rank sends it.
static tli_travel *tli_find_travel(tli_ranks_time *t, int32_t rank, int32_t node, int32_t slot, int backward,
                                   tli_road **channel, int *sends) {
    const tli_clock *clock = &t->clocks[rank];
    int is_receive = tli_find_message(&clock->rank->compiled, node) == TLI_MESSAGE_RECEIVE;
    int32_t boundary = is_receive ? (rank ? rank : t->rank_count) - 1 : rank;
    *channel = &t->channels[2 * boundary + backward];
    *sends = is_receive == backward;
    return &(*channel)->travels[(size_t)slot * (size_t)(*channel)->count + (size_t)clock->numbers[node]];
}

static tl_result tli_begin_travel(tli_ranks_time *t, int32_t rank, const tl_step *step) {
    const tl_graph *graph = t->clocks[rank].rank->compiled.graph;
    const tl_node *node = &graph->nodes[step->node];
    tli_road *channel;
    int sends;
    tli_travel *travel = tli_find_travel(t, rank, step->node, step->slot, step->kind == TL_STEP_BACKWARD,
                                         &channel, &sends);
    travel->bytes = node->input_count ? graph->outputs[graph->inputs[node->first_input].tensor].bytes
                                      : graph->outputs[node->first_output].bytes;
    if (sends) {
        travel->is_sent = 1;
        travel->sent_at = t->clocks[rank].now;
        channel->order[channel->sent_count++] = (int32_t)(travel - channel->travels);
    } else {
        travel->is_asked = 1;
        travel->asked_at = t->clocks[rank].now;
    }
    TLI_INVARIANT(tli_road_holds(t, channel));
    return tli_move_road(t, channel);
}

// Begin a copy to or from the host: one after the other, beside the calls.
static tl_result tli_begin_copy(const tli_ranks_time *t, tli_clock *clock, const tl_step *step) {
    const tl_graph *graph = clock->rank->compiled.graph;
    const tl_device *device = t->desc->device;
    int32_t tensor = graph->nodes[step->node].first_output + step->output;
    uint64_t ns = 0, rate = tli_copy_rate(device, step->kind == TL_STEP_FETCH);
    if (rate &&
        (!tli_find_time(graph->outputs[tensor].bytes, rate, &ns) ||
         !tli_add_u64(ns, device->link_latency_ns, &ns))) return TL_ERROR_OVERFLOW;
    return tli_clock_copy(&clock->copies, &clock->now, step->kind == TL_STEP_FETCH, ns,
                          &clock->ready[(size_t)step->slot * (size_t)graph->tensor_count + (size_t)tensor])
        ? TL_OK : TL_ERROR_OVERFLOW;
}

static tl_result tli_end_copy(tli_clock *clock, const tl_step *step) {
    const tl_graph *graph = clock->rank->compiled.graph;
    int32_t tensor = graph->nodes[step->node].first_output + step->output;
    uint64_t ready = clock->ready[(size_t)step->slot * (size_t)graph->tensor_count + (size_t)tensor];
    return tli_clock_wait(&clock->copies, &clock->now, ready) ? TL_OK : TL_ERROR_OVERFLOW;
}

// Carry out steps of a rank until a message is missing.
static tl_result tli_move_rank(tli_ranks_time *t, int32_t rank, int *moved) {
    tli_clock *clock = &t->clocks[rank];
    const tl_compiled_plan *compiled = &clock->rank->compiled;
    size_t nodes = (size_t)compiled->graph->node_count;
    tl_result result = TL_OK;
    for (; clock->position < compiled->plan.step_count && !result; clock->position++, *moved = 1) {
        const tl_step *step = &compiled->plan.steps[clock->position];
        const tl_node *node = &compiled->graph->nodes[step->node];
        uint8_t *begun = &clock->begun[(size_t)step->slot * nodes + (size_t)step->node];
        uint64_t cost = 0;
        if (step->begins) {
            *begun = step->kind == TL_STEP_BACKWARD ? 2 : 1;
            result = tli_begin_travel(t, rank, step);
        } else if (step->kind == TL_STEP_WAIT && *begun) {
            tli_road *channel;
            int sends;
            const tli_travel *travel = tli_find_travel(t, rank, step->node, step->slot, *begun == 2,
                                                       &channel, &sends);
            if (!travel->has_arrived) return TL_OK;
            clock->now = tli_larger_u64(clock->now, travel->arrives_at);
            *begun = 0;
        } else if (step->kind == TL_STEP_WAIT) {
            result = tli_end_copy(clock, step);
        } else if (step->kind == TL_STEP_SPILL || step->kind == TL_STEP_FETCH) {
            result = tli_begin_copy(t, clock, step);
        } else if (step->kind <= TL_STEP_BACKWARD) {
            cost = step->kind == TL_STEP_BACKWARD ? node->bwd_cost : node->fwd_cost;
            clock->copies.has_waited = 0;
        }
        if (!tli_add_u64(clock->now, cost, &clock->now) || !tli_add_u64(clock->busy, cost, &clock->busy))
            result = TL_ERROR_OVERFLOW;
    }
    TLI_INVARIANT(result || (clock->busy <= clock->now && clock->position <= compiled->plan.step_count));
    return result;
}

static tl_result tli_open_clock(tl_env *env, tli_ranks_time *t, int32_t rank, const tl_rank_plan *plan) {
    const tl_graph *graph = plan->compiled.graph;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    uint64_t slot_total = (uint64_t)t->micro_batches;
    tli_clock *clock = &t->clocks[rank];
    int32_t id, counts[2] = { 0, 0 }, k;
    clock->rank = plan;
    tli_init_copy_clock(&clock->copies, t->desc->device);
    clock->numbers = (int32_t *)tli_alloc_array(env, nodes, sizeof *clock->numbers);
    clock->begun = (uint8_t *)tli_alloc_array(env, nodes * slot_total, 1);
    clock->ready = (uint64_t *)tli_alloc_array(env, slot_total * tensors, sizeof *clock->ready);
    if (!clock->numbers || !clock->begun || !clock->ready) return tli_fail_ranks(env);
    for (id = 0; id < graph->node_count; id++) {
        uint8_t message = tli_find_message(&plan->compiled, id);
        clock->numbers[id] = message ? counts[message == TLI_MESSAGE_SEND]++ : -1;
    }
    for (k = 0; k < 2; k++) {
        tli_road *channel = &t->channels[2 * rank + k];
        uint64_t most = slot_total * (uint64_t)counts[1] + 1;
        channel->count = counts[1];
        channel->travels = (tli_travel *)tli_alloc_array(env, most, sizeof *channel->travels);
        channel->order = (int32_t *)tli_alloc_array(env, most, sizeof *channel->order);
        if (!channel->travels || !channel->order) return tli_fail_ranks(env);
    }
    return TL_OK;
}

static void tli_close_clocks(tl_env *env, tli_ranks_time *t) {
    int32_t rank;
    for (rank = 0; t->clocks && rank < t->rank_count; rank++) {
        tli_release(env, t->clocks[rank].numbers);
        tli_release(env, t->clocks[rank].begun);
        tli_release(env, t->clocks[rank].ready);
    }
    for (rank = 0; t->channels && rank < 2 * t->rank_count; rank++) {
        tli_release(env, t->channels[rank].travels);
        tli_release(env, t->channels[rank].order);
    }
    tli_release(env, t->clocks);
    tli_release(env, t->channels);
}

// Write the times down.
static void tli_take_rank_times(const tli_ranks_time *t, tl_compiled_ranks *ranks) {
    double busy = 0;
    int32_t rank;
    ranks->cost = 0;
    for (rank = 0; rank < t->rank_count; rank++) {
        tl_rank_plan *plan = &ranks->ranks[rank];
        plan->end_cost = t->clocks[rank].now;
        ranks->cost = tli_larger_u64(ranks->cost, plan->end_cost);
        busy += (double)t->clocks[rank].busy;
    }
    if (ranks->cost) ranks->bubble_ratio = 1 - busy / ((double)ranks->cost * t->rank_count);
    TLI_INVARIANT(busy <= (double)ranks->cost * t->rank_count);
}

// Find how long a training step takes, and that no ranks wait for each other for good.
static tl_result tli_simulate_ranks(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks) {
    tli_ranks_time t;
    int32_t rank, ended = 0;
    int moved = 1;
    tl_result result = TL_OK;
    tli_zero(&t, sizeof t);
    t.desc = desc;
    t.rank_count = ranks->rank_count;
    t.micro_batches = ranks->micro_batch_count;
    t.clocks = (tli_clock *)tli_alloc_array(env, (uint64_t)t.rank_count, sizeof *t.clocks);
    t.channels = (tli_road *)tli_alloc_array(env, 2 * (uint64_t)t.rank_count, sizeof *t.channels);
    if (!t.clocks || !t.channels) result = tli_fail_ranks(env);
    for (rank = 0; rank < t.rank_count && !result; rank++)
        result = tli_open_clock(env, &t, rank, &ranks->ranks[rank]);
    while (moved && !result) {
        moved = 0;
        for (rank = 0; rank < t.rank_count && !result; rank++) result = tli_move_rank(&t, rank, &moved);
    }
    if (result == TL_ERROR_OVERFLOW)
        result = tli_fail(env, result, TLI_IN(COMPILE_RANKS), TLI_RULE(COST_OF_RANKS_DOES_NOT_FIT_64));
    for (rank = 0; rank < t.rank_count && !result; rank++)
        ended += t.clocks[rank].position == ranks->ranks[rank].compiled.plan.step_count;
    if (!result && ended < t.rank_count)
        result = tli_fail(env, TL_ERROR_INVALID_PLAN, TLI_IN(COMPILE_RANKS),
                          TLI_RULE(RANKS_WAIT_FOR_EACH_OTHER));
    if (!result) tli_take_rank_times(&t, ranks);
    tli_close_clocks(env, &t);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
