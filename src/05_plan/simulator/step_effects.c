#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- what steps do --
//
// Each kind of step on the state of a simulation: what it needs, else the sentence that refuses it, and what it
// makes, holds and frees, in the order in which a run claims and gives back.
//
//     F, I, S, B, DS     a node: its outputs, saved bytes, gradients and scratch
//     D, O, L, W, DH     a tensor, or all of a node: bytes on the device, a copy at the host
//     C, X               the same: packed bytes instead

// -- forward and backward --

// The inputs of a node; NULL if it has none, because a graph without inputs has no array of them.
static const tl_node_input *tli_inputs_of(const tl_graph *graph, const tl_node *node) {
    return node->input_count ? graph->inputs + node->first_input : NULL;
}

static int tli_sim_readable(const tli_sim *sim, int32_t tensor) {
    return sim->tensors[tensor].state == TLI_RESIDENT || sim->tensors[tensor].state == TLI_LEAVING;
}

// Whether a tensor is of a state whose update has run.
static int tli_sim_is_updated(const tli_sim *sim, int32_t tensor) {
    int32_t maker = sim->graph->outputs[tensor].node;
    return sim->graph->nodes[maker].state && sim->nodes[maker].done;
}

static tl_result tli_sim_check_inplace(tli_sim *sim, const tl_node *node) {
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    int32_t from, i, reads = 0;
    if (node->inplace < 0) return tli_sim_broken(sim, TLI_RULE(MAY_NOT_RUN_IN_PLACE));
    from = inputs[node->inplace].tensor;  // no graph input, and of the same bytes: tl_check_graph
    if (sim->tensors[from].state != TLI_RESIDENT)
        return tli_sim_broken_tensor(sim, TLI_RULE(INPUT_CANNOT_BE_OVERWRITTEN_IT), from);
    if (sim->tensors[from].readers) return tli_sim_broken_tensor(sim, TLI_RULE(CALL_UNDER_WAY_READS), from);
    if (sim->tensors[node->first_output].state != TLI_ABSENT)
        return tli_sim_broken(sim, TLI_RULE(OUTPUT_0_IS_ALREADY_RESIDENT));
    for (i = 0; i < node->input_count; i++) reads += inputs[i].tensor == from;
    return reads == 1 ? TL_OK : tli_sim_broken_tensor(sim, TLI_RULE(READS_OVERWRITTEN_TENSOR_TWICE), from);
}

static tl_result tli_sim_check_forward(tli_sim *sim, const tl_node *node, tl_step_kind kind,
                                       int32_t *missing) {
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    int32_t i;
    *missing = 0;
    if (node->once && sim->nodes[sim->step->node].ran)
        return tli_sim_broken(sim, TLI_RULE(MAY_RUN_ONCE_ONLY));
    for (i = 0; i < node->input_count; i++) {
        if (!tli_sim_readable(sim, inputs[i].tensor))
            return tli_sim_broken_tensor(sim, TLI_RULE(INPUT_IS_NOT_RESIDENT), inputs[i].tensor);
        if (tli_sim_is_updated(sim, inputs[i].tensor))
            return tli_sim_broken_tensor(sim, TLI_RULE(READS_STATE_AFTER_ITS_UPDATE), inputs[i].tensor);
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (sim->tensors[i].state == TLI_COMING)
            return tli_sim_broken_tensor(sim, TLI_RULE(OUTPUT_IS_BEING_FETCHED), i);
        if (sim->tensors[i].state == TLI_PACKED)
            return tli_sim_broken_tensor(sim, TLI_RULE(OUTPUT_IS_COMPRESSED), i);
        *missing += sim->tensors[i].state == TLI_ABSENT;
    }
    if (kind == TL_STEP_FORWARD_SAVE) {
        if (!node->saved_bytes) return tli_sim_broken(sim, TLI_RULE(HAS_NO_SAVED_BYTES));
        if (!sim->nodes[sim->step->node].has_saved) return TL_OK;
        return tli_sim_broken(sim, TLI_RULE(SAVED_BYTES_ARE_ALREADY_RESIDENT));
    }
    if (!*missing) return tli_sim_broken(sim, TLI_RULE(ALL_OUTPUTS_ARE_ALREADY_RESIDENT));
    if (sim->step->begins && (*missing < node->output_count))
        return tli_sim_broken(sim, TLI_RULE(BEGINS_ALL_OUTPUTS));
    if (sim->step->begins && (node->fwork_bytes || node->saved_bytes))
        return tli_sim_broken(sim, TLI_RULE(BEGINS_NO_SCRATCH));
    return kind == TL_STEP_FORWARD_INPLACE ? tli_sim_check_inplace(sim, node) : TL_OK;
}

// What a call under way reads and adds to is held until it ends. holds: 1 = from now on; 0 = not any more.
static void tli_sim_hold_operands(tli_sim *sim, int32_t id, int backward, int holds) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    uint32_t change = holds ? 1 : UINT32_MAX;   // modulo 2^32 the latter is -1
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        tli_sim_tensor *t = &sim->tensors[graph->inputs[i].tensor];
        int32_t held = tli_held_gradient(graph, graph->inputs[i].tensor);
        if (!backward || graph->inputs[i].needed) t->readers += change;
        if (backward && t->has_gradient) t->has_gradient = holds ? TLI_SUMMED : 1;
        if (backward && held >= 0) sim->tensors[held].readers += change;
    }
    for (i = node->first_output; i < node->first_output + node->output_count && backward; i++)
        if (graph->outputs[i].needed) sim->tensors[i].readers += change;
    TLI_INVARIANT(!holds || backward || !node->input_count ||
                  sim->tensors[graph->inputs[node->first_input].tensor].readers);
}

// The call of the present step goes on until a W ends it.
static void tli_sim_begin_call(tli_sim *sim, int32_t id, uint8_t begun) {
    sim->nodes[id].under_way = begun;
    tli_sim_hold_operands(sim, id, begun == TLI_BEGUN_BACKWARD, 1);
    TLI_INVARIANT(!sim->call_bytes);
}

// Run a forward. It allocates, in this order: missing outputs; second copies of outputs that are
// resident; saved; fwork, or swork with saved. In place, output 0 takes over the input's allocation.
// FORWARD_SAVE with all outputs resident makes the saved bytes only, and no second copies. What a call that is
// begun makes is coming until it ends.
static tl_result tli_sim_forward(tli_sim *sim, int32_t id, tl_step_kind kind) {
    const tl_node *node = &sim->graph->nodes[id];
    int32_t i, end = node->first_output + node->output_count, missing;
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    tl_result result = tli_sim_check_forward(sim, node, kind, &missing);
    if (result) return result;
    for (i = 0; i < node->input_count; i++) tli_ledger_move(sim, TL_USE_OUTPUT, inputs[i].tensor, 1);
    if (kind == TL_STEP_FORWARD_INPLACE)
        tli_sim_hand_over(sim, inputs[node->inplace].tensor, node->first_output);
    for (i = node->first_output; i < end; i++) {
        if (sim->tensors[i].state != TLI_ABSENT) continue;
        result = tli_sim_alloc(sim, TLI_USE_TENSOR, i, sim->graph->outputs[i].bytes);
        if (result) return result;
        sim->tensors[i].state = TLI_COMING;  // during this call: marks the outputs made by it
    }
    for (i = node->first_output; i < end; i++) {
        int again = tli_sim_readable(sim, i) && missing;
        if (kind == TL_STEP_FORWARD_INPLACE && i == node->first_output) again = 0;
        if (sim->tensors[i].state == TLI_COMING && !sim->step->begins) sim->tensors[i].state = TLI_RESIDENT;
        result = again ? tli_sim_alloc(sim, TLI_USE_TWICE, i, sim->graph->outputs[i].bytes) : TL_OK;
        if (result) return result;
    }
    if (kind == TL_STEP_FORWARD_SAVE) {
        result = tli_sim_alloc(sim, TLI_USE_SAVED, id, node->saved_bytes);
        if (result) return result;
        sim->nodes[id].has_saved = 1;
    }
    result = tli_sim_alloc(sim, TLI_USE_WORK, id,
                           kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes);
    if (result) return result;
    tli_sim_release_call(sim);
    if (sim->step->begins) tli_sim_begin_call(sim, id, TLI_BEGUN_FORWARD);
    sim->report.forward_count++;
    sim->report.recompute_count += sim->nodes[id].ran;
    sim->nodes[id].ran = 1;
    TLI_INVARIANT(!sim->call_bytes && sim->nodes[id].ran);
    return tli_sim_compute(sim, node->fwd_cost);
}

// A node that reads an output of node `id` and has not run backward.
static int32_t tli_sim_find_waiting(const tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    int32_t reader, i;
    for (reader = id + 1; reader < graph->node_count; reader++) {
        const tl_node *node = &graph->nodes[reader];
        if (!node->has_grad || (sim->nodes[reader].done && sim->nodes[reader].under_way != TLI_BEGUN_BACKWARD))
            continue;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (graph->outputs[graph->inputs[i].tensor].node == id) return reader;
    }
    return id;
}

static tl_result tli_sim_check_backward(tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    if (sim->inference) return tli_sim_broken(sim, TLI_RULE(NO_BACKWARD_IN_INFERENCE));
    if (!node->has_grad) return tli_sim_broken(sim, TLI_RULE(HAS_NO_GRADIENT));
    if (sim->nodes[id].done) return tli_sim_broken(sim, TLI_RULE(BACKWARD_ALREADY_RAN));
    if (!sim->nodes[id].ran && !sim->nodes[id].enters && !node->is_input)
        return tli_sim_broken(sim, TLI_RULE(FORWARD_NEVER_RAN));
    if (!sim->any_order && !node->state && id != sim->next_backward[sim->slot])
        return tli_sim_broken_node(sim, TLI_RULE(BACKWARD_OUT_OF_ORDER_NODE_IS_NEXT),
                                   sim->next_backward[sim->slot]);
    if (sim->nodes[id].waits_for)
        return tli_sim_broken_node(sim, TLI_RULE(CONSUMER_HAS_NOT_RUN_BACKWARD), tli_sim_find_waiting(sim, id));
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed && !tli_sim_readable(sim, graph->inputs[i].tensor))
            return tli_sim_broken_tensor(sim, TLI_RULE(NEEDS_WHICH_IS_NOT_RESIDENT), graph->inputs[i].tensor);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed && !tli_sim_readable(sim, i))
            return tli_sim_broken_tensor(sim, TLI_RULE(NEEDS_WHICH_IS_NOT_RESIDENT), i);
    for (i = node->first_output; i < node->first_output + node->output_count && tli_is_late(node); i++)
        if (sim->tensors[i].on_host) return tli_sim_broken_tensor(sim, TLI_RULE(HOST_HAS_A_COPY_OF_BEFORE), i);
    if (node->saved_bytes && !sim->nodes[id].has_saved)
        return tli_sim_broken(sim, TLI_RULE(NEEDS_ITS_SAVED_BYTES));
    if (node->state && sim->tensors[node->first_output].readers)     // which the update overwrites
        return tli_sim_broken_tensor(sim, TLI_RULE(CALL_UNDER_WAY_READS), node->first_output);
    if (sim->step->begins && (node->saved_bytes || node->bwork_bytes))
        return tli_sim_broken(sim, TLI_RULE(BEGINS_NO_SCRATCH));
    return TL_OK;
}

// Make a gradient, unless there is one. adds: 1 = the backward adds to it then.
static tl_result tli_sim_make_gradient(tli_sim *sim, int32_t tensor, int adds) {
    const tl_node_output *output = &sim->graph->outputs[tensor];
    int32_t held = tli_held_gradient(sim->graph, tensor);
    if (adds && held >= 0 && sim->tensors[held].readers)
        return tli_sim_broken_tensor(sim, TLI_RULE(CALL_UNDER_WAY_WRITES_GRADIENT), tensor);
    if (!tli_gets_gradient(sim->graph, tensor)) return TL_OK;
    if (sim->tensors[tensor].has_gradient == TLI_SUMMED)
        return tli_sim_broken_tensor(sim, TLI_RULE(CALL_UNDER_WAY_WRITES_GRADIENT), tensor);
    if (sim->tensors[tensor].has_gradient) {
        if (adds) tli_ledger_move(sim, TL_USE_GRADIENT, tensor, 2);
        return TL_OK;
    }
    sim->tensors[tensor].has_gradient = 1;
    TLI_INVARIANT(!sim->inference);
    return tli_sim_alloc(sim, TLI_USE_GRADIENT, tensor, output->bytes);
}

// Write down what a backward reads.
static void tli_sim_read_backward(const tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed) tli_ledger_move(sim, TL_USE_OUTPUT, graph->inputs[i].tensor, 1);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (graph->outputs[i].needed) tli_ledger_move(sim, TL_USE_OUTPUT, i, 1);
        if (tli_gets_gradient(graph, i)) tli_ledger_move(sim, TL_USE_GRADIENT, i, 1);
    }
    tli_ledger_move(sim, TL_USE_SAVED, id, 1);
}

// A backward has ended: free the gradients of its outputs and its saved bytes.
static void tli_sim_end_backward(tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (!sim->tensors[i].has_gradient) continue;  // a moment
        tli_sim_release(sim, TLI_USE_GRADIENT, i, graph->outputs[i].bytes);
        sim->tensors[i].has_gradient = 0;
    }
    if (sim->nodes[id].has_saved) tli_sim_release(sim, TLI_USE_SAVED, id, node->saved_bytes);
    TLI_INVARIANT(!sim->inference && node->has_grad);
    sim->nodes[id].has_saved = 0;
    for (i = 0; i < node->input_count; i++) {
        int32_t maker = graph->outputs[graph->inputs[node->first_input + i].tensor].node;
        sim->nodes[maker].waits_for--;
        if (tli_find_pieces(graph, node, i)) sim->nodes[maker].done = 1;     // updated, too
    }
}

// End the call of a node that was begun.
static tl_result tli_sim_end_call(tli_sim *sim, const tl_step *step) {
    const tl_node *node = &sim->graph->nodes[step->node];
    int backward = sim->nodes[step->node].under_way == TLI_BEGUN_BACKWARD;
    int32_t i;
    if (step->output != TL_ALL_OUTPUTS) return tli_sim_broken(sim, TLI_RULE(WAIT_FOR_A_CALL_IS_OF_THE_NODE));
    tli_sim_hold_operands(sim, step->node, backward, 0);
    for (i = node->first_output; i < node->first_output + node->output_count && !backward; i++)
        sim->tensors[i].state = TLI_RESIDENT;
    if (backward) tli_sim_end_backward(sim, step->node);
    sim->nodes[step->node].under_way = TLI_BEGUN_NOT;
    TLI_INVARIANT(!sim->call_bytes);
    return TL_OK;
}

// Whether the backward of a node has its place in the order of backwards. An update has none: it touches its
// own state alone, so its place changes no sum.
static int tli_sim_is_ordered(const tl_graph *graph, int32_t id) {
    return graph->nodes[id].has_grad && !graph->nodes[id].state;
}

// Run a backward. It allocates, in this order: gradients of outputs, gradients of inputs, bwork,
// where a gradient is allocated only if no other backward has done so. Then it frees bwork, and what
// tli_sim_end_backward says.
static tl_result tli_sim_backward(tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t out_end = node->first_output + node->output_count;
    int32_t in_end = node->first_input + node->input_count, i, *next = &sim->next_backward[sim->slot];
    tl_result result = tli_sim_check_backward(sim, id);
    for (i = node->first_output; i < out_end && !result; i++) result = tli_sim_make_gradient(sim, i, 0);
    for (i = node->first_input; i < in_end && !result; i++)
        result = tli_sim_make_gradient(sim, graph->inputs[i].tensor, 1);
    if (!result) result = tli_sim_alloc(sim, TLI_USE_WORK, id, node->bwork_bytes);
    if (!result) result = tli_sim_compute(sim, node->bwd_cost);
    if (result) return result;
    if (sim->ledger) tli_sim_read_backward(sim, id);
    tli_sim_release_call(sim);
    if (sim->step->begins) tli_sim_begin_call(sim, id, TLI_BEGUN_BACKWARD);
    else tli_sim_end_backward(sim, id);
    sim->nodes[id].done = 1;
    while (*next >= 0 && (sim->nodes[*next].done || !tli_sim_is_ordered(graph, *next))) --*next;
    sim->report.backward_count++;
    TLI_INVARIANT(*next < 0 || !sim->nodes[*next].done);
    return TL_OK;
}

// -- steps on tensors --

static void tli_sim_drop(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (t->state == TLI_PACKED) tli_sim_release(sim, TLI_USE_PACKED, tensor, t->packed_bytes);
    else tli_sim_release(sim, TLI_USE_TENSOR, tensor, sim->graph->outputs[tensor].bytes);
    t->state = TLI_ABSENT;
    TLI_INVARIANT(tli_sim_tensor_holds(sim, t, tensor));
}

static int32_t tli_sim_host_owner(const tli_sim *sim, int32_t tensor) {
    return sim->slot * sim->graph->tensor_count + tensor;
}

// The host copy of a tensor is made.
static tl_result tli_sim_alloc_host(tli_sim *sim, int32_t tensor) {
    uint64_t bytes = sim->graph->outputs[tensor].bytes;
    int32_t number = sim->report.host_allocation_count;
    if (sim->ledger) tli_ledger_open(sim, TL_USE_HOST, tensor, bytes, number);
    if (!bytes) return TL_OK;
    if (!tli_add_u64(sim->host_bytes, bytes, &sim->host_bytes))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(HOST_BYTES_DO_NOT_FIT_64_BITS));
    if (sim->host_bytes > sim->report.host_peak_bytes) sim->report.host_peak_bytes = sim->host_bytes;
    if (number == INT32_MAX)
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(ALLOCATIONS_DO_NOT_FIT_31_BITS));
    sim->report.host_allocation_count++;
    if (!sim->host_arena.offsets) return TL_OK;
    TLI_INVARIANT(sim->host_bytes <= sim->report.host_peak_bytes);
    return tli_sim_place(sim, &sim->host_arena, number, tli_sim_host_owner(sim, tensor), bytes,
                         &sim->report.host_arena_bytes);
}

static tl_result tli_sim_spill(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    tl_result result;
    if (t->on_host) return tli_sim_broken_tensor(sim, TLI_RULE(HOST_HAS_ALREADY), tensor);
    result = tli_sim_alloc_host(sim, tensor);
    if (result) return result;
    t->on_host = 1;
    t->state = TLI_LEAVING;
    tli_ledger_move(sim, TL_USE_OUTPUT, tensor, 1);
    TLI_INVARIANT(tli_sim_tensor_holds(sim, t, tensor));
    return tli_sim_copy(sim, tensor, 0);
}

static tl_result tli_sim_fetch(tli_sim *sim, int32_t tensor) {
    tl_result result;
    if (!sim->tensors[tensor].on_host)
        return tli_sim_broken_tensor(sim, TLI_RULE(HOST_HAS_NO_COPY_OF), tensor);
    result = tli_sim_alloc(sim, TLI_USE_TENSOR, tensor, sim->graph->outputs[tensor].bytes);
    if (result) return result;
    sim->tensors[tensor].state = TLI_COMING;
    tli_ledger_move(sim, TL_USE_HOST, tensor, 1);
    TLI_INVARIANT(tli_sim_tensor_holds(sim, &sim->tensors[tensor], tensor));
    return tli_sim_copy(sim, tensor, 1);
}

static tl_result tli_sim_wait(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (!tli_clock_wait(&sim->copies, &sim->now, t->ready))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    if (t->state == TLI_LEAVING) tli_sim_drop(sim, tensor);
    else t->state = TLI_RESIDENT;
    TLI_INVARIANT(t->state == TLI_ABSENT || t->state == TLI_RESIDENT);
    return TL_OK;
}

// Compress one tensor. A step on several outputs converts them one after the other: both copies of
// a tensor live until its own conversion ends, not until the step ends.
static tl_result tli_sim_compress(tli_sim *sim, int32_t tensor, uint8_t codec) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    uint64_t bytes = sim->graph->outputs[tensor].bytes, packed = tl_find_codec_bytes((tl_codec)codec, bytes);
    tl_result result = tli_sim_alloc(sim, TLI_USE_PACKED, tensor, packed);
    if (result) return result;
    tli_ledger_move(sim, TL_USE_OUTPUT, tensor, 1);
    tli_sim_release(sim, TLI_USE_TENSOR, tensor, bytes);
    t->state = TLI_PACKED;
    t->packed_bytes = packed;
    t->codec = codec;
    TLI_INVARIANT(tli_sim_tensor_holds(sim, t, tensor));
    return tli_sim_convert(sim, bytes);
}

static tl_result tli_sim_expand(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    uint64_t bytes = sim->graph->outputs[tensor].bytes;
    tl_result result = tli_sim_alloc(sim, TLI_USE_TENSOR, tensor, bytes);
    if (result) return result;
    tli_ledger_move(sim, TL_USE_COMPRESSED, tensor, 1);
    tli_sim_release(sim, TLI_USE_PACKED, tensor, t->packed_bytes);
    t->state = TLI_RESIDENT;
    TLI_INVARIANT(tli_sim_tensor_holds(sim, t, tensor));
    return tli_sim_convert(sim, bytes);
}

static tl_result tli_sim_drop_host(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (!t->on_host) return tli_sim_broken_tensor(sim, TLI_RULE(HOST_HAS_NO_COPY_OF), tensor);
    if (t->state == TLI_LEAVING || t->state == TLI_COMING)
        return tli_sim_broken_tensor(sim, TLI_RULE(COPY_OF_IS_UNDER_WAY), tensor);
    t->on_host = 0;
    if (sim->ledger) tli_ledger_close(sim, TL_USE_HOST, tensor, tli_sim_free_step(sim, 0));
    if (!sim->graph->outputs[tensor].bytes) return TL_OK;
    tli_sim_leave(sim, &sim->host_arena, tli_sim_host_owner(sim, tensor), TLI_USE_TENSOR, tensor,
                  sim->graph->outputs[tensor].bytes);
    TLI_INVARIANT(tli_sim_tensor_holds(sim, t, tensor));
    return TL_OK;
}

// Whether a step can act on a tensor in this state. DROP_HOST depends on the host copy instead.
static int tli_acts_in_state(tl_step_kind kind, tli_state state, int on_host) {
    switch (kind) {
    case TL_STEP_DROP: return state == TLI_RESIDENT || state == TLI_PACKED;
    case TL_STEP_SPILL:
    case TL_STEP_COMPRESS: return state == TLI_RESIDENT;
    case TL_STEP_FETCH: return state == TLI_ABSENT;
    case TL_STEP_WAIT: return state == TLI_LEAVING || state == TLI_COMING;
    case TL_STEP_EXPAND: return state == TLI_PACKED;
    case TL_STEP_DROP_HOST: return on_host;
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return 0;
}

static int tli_sim_acts_on(const tli_sim *sim, tl_step_kind kind, int32_t tensor) {
    const tli_sim_tensor *t = &sim->tensors[tensor];
    return tli_acts_in_state(kind, (tli_state)t->state, t->on_host);
}

static tl_result tli_sim_act(tli_sim *sim, tl_step_kind kind, int32_t tensor) {
    if (sim->tensors[tensor].readers && kind != TL_STEP_DROP_HOST)
        return tli_sim_broken_tensor(sim, TLI_RULE(CALL_UNDER_WAY_READS), tensor);
    switch (kind) {
    case TL_STEP_DROP: tli_sim_drop(sim, tensor); break;
    case TL_STEP_SPILL: return tli_sim_spill(sim, tensor);
    case TL_STEP_FETCH: return tli_sim_fetch(sim, tensor);
    case TL_STEP_WAIT: return tli_sim_wait(sim, tensor);
    case TL_STEP_DROP_HOST: return tli_sim_drop_host(sim, tensor);
    case TL_STEP_COMPRESS: return tli_sim_compress(sim, tensor, sim->step->codec);
    case TL_STEP_EXPAND: return tli_sim_expand(sim, tensor);
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// Run a step on one output or, with TL_ALL_OUTPUTS, on every output in a suitable state; the step
// is broken if one of these breaks a rule. Only DROP_HOST may find no such output.
static tl_result tli_sim_tensor_step(tli_sim *sim, const tl_step *step) {
    static const tli_rule sentences[] = { TLI_RULE(TENSOR_IS_ABSENT), TLI_RULE(TENSOR_IS_RESIDENT),
        TLI_RULE(TENSOR_IS_BEING_SPILLED), TLI_RULE(TENSOR_IS_BEING_FETCHED), TLI_RULE(TENSOR_IS_COMPRESSED) };
    const tl_node *node = &sim->graph->nodes[step->node];
    tl_step_kind kind = (tl_step_kind)step->kind;
    int32_t i, acted = 0;
    tl_result result;
    if (step->output != TL_ALL_OUTPUTS) {
        i = node->first_output + step->output;
        if (kind == TL_STEP_DROP_HOST || tli_sim_acts_on(sim, kind, i)) return tli_sim_act(sim, kind, i);
        return tli_sim_broken(sim, sentences[sim->tensors[i].state]);
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (!tli_sim_acts_on(sim, kind, i)) continue;
        acted++;
        result = tli_sim_act(sim, kind, i);
        if (result) return result;
    }
    if (acted || kind == TL_STEP_DROP_HOST) return TL_OK;
    return tli_sim_broken(sim, TLI_RULE(NO_OUTPUT_IS_IN_STATE_TO_ACT_ON));
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
