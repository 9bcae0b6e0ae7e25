#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: updates of states --
//
// The backward of a state is its update. Of a training step of several passes the last one updates; the
// others add to gradients that the states hold:
//
//     pass 1   clear the sums   F .. B ..   (updates skipped)
//     pass 2                    F .. B ..   update, update, ..
//
// A node that clips all gradients waits for that pass, too: before it they are not complete.
//
// A pass that is given up in or behind an update leaves states of two training steps, so no pass starts before
// the caller has written or loaded all of them; of a run from tables, none.
//
// With a loss scaler the gradients of all states are looked at before the first update of a training step:
//
//     .. B 5   B 4   U 3   U 2   U 1      an infinity or NaN in one of them: no kernel of an update is called,
//                  ^ all complete         and the scale falls at the end of the pass

static int tli_is_update(const tl_run *run, const tl_step *step) {
    return step->kind == TL_STEP_BACKWARD && run->graph->nodes[step->node].state != TL_STATE_NONE;
}

// Whether the pass under way is the last of its training step.
static int tli_is_last_pass(const tl_run *run) {
    return run->micro_batch - tli_first_micro_batch(run) >= (run->repeat_count - 1) * run->slot_count;
}

#ifndef TL_ONLY_TABLES
// Whether passes behind this one add to the same gradients.
static int tli_only_adds(const tl_run *run) { return run->updates.skips || !tli_is_last_pass(run); }

static int tli_skips_updates(const tl_run *run) {
    return run->updates.skips || run->updates.overflows || !tli_is_last_pass(run);
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// -- the executor: a loss scaler of states --

// Whether the backward of a node adds to the gradient of a state.
static int tli_adds_to_states(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count && node->has_grad; i++)
        if (tli_has_update(&graph->nodes[graph->outputs[graph->inputs[i].tensor].node])) return 1;
    return 0;
}

// Whether a step of a plan ends a backward that an earlier one has begun.
static int tli_ends_backward(const tl_plan *plan, int32_t at) {
    const tl_step end = tl_find_step(plan, at);
    int32_t i;
    for (i = at; i-- > 0 && end.kind == TL_STEP_WAIT;) {
        const tl_step step = tl_find_step(plan, i);
        if (step.node == end.node && step.slot == end.slot)
            return step.kind == TL_STEP_BACKWARD && step.begins;
    }
    return 0;
}

// The first state of a plan, if the plan updates it before the gradients of all are complete; else -1.
static int32_t tli_find_early_update(const tl_graph *graph, const tl_plan *plan) {
    int32_t first = -1, i;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step step = tl_find_step(plan, i);
        int adds = step.kind == TL_STEP_BACKWARD || (first >= 0 && tli_ends_backward(plan, i));
        if (!adds) continue;
        if (first >= 0 && tli_adds_to_states(graph, step.node)) return first;
        if (first < 0 && tli_has_update(&graph->nodes[step.node])) first = step.node;
    }
    return -1;
}

// The same of decisions made online: backwards go by the listing.
static int32_t tli_find_early_state(const tl_graph *graph) {
    int32_t first = -1, id;
    for (id = graph->node_count; id-- > 0;) {
        if (first >= 0 && tli_adds_to_states(graph, id)) return first;
        if (first < 0 && tli_has_update(&graph->nodes[id])) first = id;
    }
    return -1;
}

// The state that a run with a loss scaler would update before an overflow is known; -1 = none.
static int32_t tli_find_unscalable(const tl_run *run) {
    int32_t k, early = -1;
    if (!run->desc.loss_scaler) return -1;
    if (run->is_online) return tli_find_early_state(run->graph);
    if (!run->cache.is_on) return tli_find_early_update(run->graph, &run->plan);
    for (k = 0; k < 2 && early < 0; k++) early = tli_find_early_update(run->graph, &run->cache.plans[k]);
    return early;
}

// The bits of the exponent of an element of a gradient, which are all set in an infinity and a NaN. Integers
// have no gradients.
static uint64_t tli_find_exponent(const tl_run *run, int32_t tensor, uint64_t *width) {
    tl_format format = tli_run_format(run, tensor);
    int is_f16 = run->precision == TL_PRECISION_HALF || format == TL_FORMAT_F16;
    int is_bf16 = run->precision == TL_PRECISION_BF16 || format == TL_FORMAT_BF16;
    *width = run->precision == TL_PRECISION_DOUBLE ? 8 : is_f16 || is_bf16 ? 2 : 4;
    if (*width == 8) return (uint64_t)0x7FF << 52;
    if (*width == 2) return is_f16 ? 0x7C00 : 0x7F80;
    return 0x7F800000;
}

static int tli_holds_overflow(const char *data, uint64_t bytes, uint64_t width, uint64_t exponent) {
    uint64_t at;
    for (at = 0; bytes - at >= width; at += width) {
        uint16_t half;
        uint32_t word;
        uint64_t bits;
        if (width == 2) { tli_copy(&half, data + at, sizeof half); bits = half; }
        else if (width == 4) { tli_copy(&word, data + at, sizeof word); bits = word; }
        else tli_copy(&bits, data + at, sizeof bits);
        if ((bits & exponent) == exponent) return 1;
    }
    return 0;
}

// Look at the gradient of a tensor, if there is one. TL_NOT_READY: the backend has not finished it and cannot
// wait.
static tl_result tli_look_at_gradient(tl_run *run, int32_t tensor) {
    tl_range room, range = *tli_gradient_range(run, tensor, &room);
    uint64_t width, exponent = tli_find_exponent(run, tensor, &width);
    void *host = NULL;
    tl_result result;
    if (!range.bytes) return TL_OK;
    // On a backend that works in order, map itself waits for the work on the range.
    result = run->limits.in_order ? TL_OK : tli_order_range(&run->store, &range, 0);
    if (!result) result = (run->backend.map)(run->backend.self, range, TL_MAP_READ, &host);
    if (result) return result;
    run->updates.overflows = (uint8_t)tli_holds_overflow((const char *)host, range.bytes, width, exponent);
    return (run->backend.unmap)(run->backend.self, range, TL_MAP_READ, host);
}

// Before an update: with a loss scaler, know whether a gradient of a state has overflowed. TL_NOT_READY: a step
// under way has to be finished first, or the backend.
static tl_result tli_look_for_overflow(tl_run *run) {
    tli_updates *u = &run->updates;
    int32_t before = tli_find_other_flight(run);
    if (!run->desc.loss_scaler || u->is_known || tli_skips_updates(run)) return TL_OK;
    if (before >= 0) return tli_wait_for(run, before);
    for (; u->looked < run->graph->node_count && !u->overflows; u->looked++) {
        const tl_node *node = &run->graph->nodes[u->looked];
        tl_result result = tli_has_update(node) ? tli_look_at_gradient(run, node->first_output) : TL_OK;
        if (result == TL_NOT_READY) return result;
        if (result) return tli_run_fail_backend(run, result, TLI_RULE(MAP_FAILED));
    }
    u->is_known = 1;
    TLI_INVARIANT(!u->has_begun && !u->count);
    return TL_OK;
}

// A training step has ended: the scale of the next one.
static void tli_end_scale(tl_run *run) {
    if (run->updates.is_known) (void)tl_next_loss_scale(run->desc.loss_scaler, run->updates.overflows);
}

static int tli_scales_loss(const tl_run *run) { return run->desc.loss_scaler != NULL; }
#else
static int tli_scales_loss(const tl_run *run) { (void)run; return 0; }
static int32_t tli_find_unscalable(const tl_run *run) { (void)run; return -1; }
static tl_result tli_look_for_overflow(tl_run *run) { (void)run; return TL_OK; }
static void tli_end_scale(tl_run *run) { (void)run; }
#endif

// Whether the pieces of a state are known, and each begins at a multiple of the backend's alignment.
static int tli_fits_pieces(const tl_run *run, int32_t id) {
    const tl_graph *graph = run->graph;
    const tl_node *state = &graph->nodes[id];
    uint64_t alignment = run->limits.alignment_bytes ? run->limits.alignment_bytes : 1;
    int32_t k;
    for (k = state->first_output; state->weight_rows && k < state->first_output + state->output_count; k++)
        if (state->piece_rows < state->weight_rows && graph->outputs[k].bytes / (uint64_t)state->weight_rows *
                                                   (uint64_t)state->piece_rows % alignment) return 0;
    return state->weight_rows > 0;
}

// What the states of a run's graph ask of the run: the sentence that refuses it, with the state. early: that is
// updated before an overflow is known.
static tli_rule tli_find_state_rule(const tl_run *run, int32_t id, int32_t early) {
    const tl_node *node = &run->graph->nodes[id];
    if (run->repeat_count > 1 && !tli_is_held(node)) return TLI_RULE(RUN_STATES_HOLD_NO_GRADIENTS);
    if (run->desc.transport) return TLI_RULE(RUN_STATES_ON_ONE_RANK);
    if (tli_is_in_pieces(node) && run->in_flight > 1) return TLI_RULE(IN_FLIGHT_PIECES);
    if (tli_is_in_pieces(node) && !tli_fits_pieces(run, id)) return TLI_RULE(RUN_PIECES_ARE_NOT_ALIGNED);
    if (early == id || (tli_is_in_pieces(node) && tli_scales_loss(run)))
        return TLI_RULE(RUN_STATES_WITH_LOSS_SCALER);
    return TLI_NO_RULE;
}

// Where a pass was given up in or behind an update: whether all weights and moments were written since. Held
// gradients are cleared.
static int tli_are_states_written(const tl_run *run) {
    int32_t i;
    for (i = 0; i < run->graph->tensor_count; i++) {
        const tl_node_output *output = &run->graph->outputs[i];
        const tl_node *node = &run->graph->nodes[output->node];
        if (tli_learns(node) && output->output < node->output_count - tli_is_held(node) &&
            !run->tensors[i].is_written)
            return 0;
    }
    return 1;
}

// What is known of an overflow is of one pass.
static void tli_forget_overflow(tl_run *run) {
    run->updates.is_known = run->updates.overflows = 0;
    run->updates.looked = 0;
}

static void tli_ask_for_states(tl_run *run) {
    int32_t i;
    run->updates.is_torn = 1;
    for (i = 0; i < run->graph->tensor_count; i++) run->tensors[i].is_written = 0;
}

// Whether two nodes read a tensor in common.
static int tli_share_input(const tl_graph *graph, const tl_node *a, const tl_node *b) {
    int32_t i, k;
    for (i = a->first_input; i < a->first_input + a->input_count; i++)
        for (k = b->first_input; k < b->first_input + b->input_count; k++)
            if (graph->inputs[i].tensor == graph->inputs[k].tensor) return 1;
    return 0;
}

// The first node that adds to a gradient after a node that clips it, because it stands above that; -1 = none.
static int32_t tli_find_late_reader(const tl_graph *graph, int32_t clip) {
    int32_t id = 0;
    while (id < clip && (!graph->nodes[id].has_grad || tli_clips(graph, id) ||
                         !tli_share_input(graph, &graph->nodes[id], &graph->nodes[clip]))) id++;
    return id < clip ? id : -1;
}

static tl_result tli_check_clips(tl_run *run) {
    const tl_graph *graph = run->graph;
    int32_t id, late;
    for (id = 0; id < graph->node_count && !run->inference; id++) {
        tli_sentence s;
        late = tli_clips(graph, id) ? tli_find_late_reader(graph, id) : -1;
        if (late < 0) continue;
        s = tli_begin_error(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                            TLI_RULE(RUN_CLIPS_STAND_ABOVE_READERS), (uint64_t)id, (uint64_t)late);
        tli_put_text(&s, tl_name_node(graph, id));
        tli_put_text(&s, tl_name_node(graph, late));
        return tli_end_error(run->env, &s, TL_ERROR_UNSUPPORTED);
    }
    return TL_OK;
}

// Whether a state is a constant, of which a run has no bytes.
static int tli_has_no_bytes(const tl_run *run, int32_t id) {
#if TLI_ATTRIBUTES
    return tli_is_constant_state(run->graph, id);
#else
    (void)run; (void)id;
    return 0;
#endif
}

static tl_result tli_fail_state(tl_run *run, int32_t id, tli_rule why) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), why, (uint64_t)id, 0);
    tli_put_text(&s, tl_name_node(run->graph, id));
    return tli_end_error(run->env, &s, TL_ERROR_UNSUPPORTED);
}

static tl_result tli_check_states(tl_run *run) {
    int32_t id, early = run->inference ? -1 : tli_find_unscalable(run);
    tli_zero(&run->updates, sizeof run->updates);
    for (id = 0; id < run->graph->node_count; id++) {
        const tl_node *node = &run->graph->nodes[id];
        tli_rule why = TLI_NO_RULE;
        if (tli_has_no_bytes(run, id)) why = TLI_RULE(RUN_STATES_ARE_NO_CONSTANTS);
        else if (tli_learns(node) && !run->inference) why = tli_find_state_rule(run, id, early);
        if (why) return tli_fail_state(run, id, why);
        if (run->inference) continue;
        run->updates.state_count += tli_learns(node);
        run->updates.held_count += tli_is_held(node);
    }
    return tli_check_clips(run);
}
#else
static tl_result tli_look_for_overflow(tl_run *run) { (void)run; return TL_OK; }
static int tli_only_adds(const tl_run *run) { return !tli_is_last_pass(run); }
static int tli_skips_updates(const tl_run *run) { return !tli_is_last_pass(run); }
static int tli_are_states_written(const tl_run *run) { return !run; }
static void tli_ask_for_states(tl_run *run) { run->updates.is_torn = 1; }
#endif

// Whether a step takes its place in the pass, and no kernel runs.
static int tli_is_passed_over(const tl_run *run, const tl_step *step) {
    if (tli_is_update(run, step)) return tli_skips_updates(run);
    return step->kind == TL_STEP_BACKWARD && tli_only_adds(run) && tli_clips(run->graph, step->node);
}

// Refuse a pass on states of two training steps.
static tl_result tli_check_torn(tl_run *run) {
    if (!run->updates.is_torn || tli_are_states_written(run)) return TL_OK;
    return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS), TLI_RULE(RUN_STATES_HALF_UPDATED));
}

// Before a pass: where it is the first that adds to gradients which states hold, these are zero.
static tl_result tli_start_updates(tl_run *run, int32_t micro_batch) {
    int32_t id;
    run->updates.is_torn = 0;
    run->updates.count = run->updates.has_begun = 0;
#ifndef TL_ONLY_TABLES
    tli_forget_overflow(run);
#endif
    if (micro_batch != tli_first_micro_batch(run) || run->updates.is_summing) return TL_OK;
    for (id = 0; id < run->graph->node_count; id++) {
        const tl_node *node = &run->graph->nodes[id];
        if (tli_is_held(node) && tli_clear_tensor(run, node->first_output + node->output_count - 1))
            return tli_fail(run->env, TL_ERROR_BACKEND, TLI_IN(START_PASS), TLI_RULE(CLEAR_FAILED));
    }
    run->updates.is_summing = 1;
    return TL_OK;
}

// A pass has ended: what it updated, it has updated from the sums, and what it skipped for an overflow is over.
static void tli_end_updates(tl_run *run) {
    if (run->updates.count) run->updates.is_summing = 0;
#ifndef TL_ONLY_TABLES
    if (run->updates.overflows) run->updates.is_summing = 0;
    run->report.update_count = run->updates.count;
    tli_end_scale(run);
#endif
}

// A pass was given up.
static void tli_abort_updates(tl_run *run) {
    if (run->active && run->updates.has_begun) tli_ask_for_states(run);
    run->updates.is_summing = 0;
}

#ifndef TL_ONLY_TABLES
TLI_IMPL tl_result tl_skip_updates(tl_run *run, int32_t on) {
    TL_ASSERT(run);
    if (run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(SKIP_UPDATES), TLI_RULE(RUN_PASS_IS_UNDER_WAY));
    if (on & ~1)
        return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(SKIP_UPDATES), TLI_RULE(SKIP_IS_0_OR_1),
                               (uint64_t)(int64_t)on, 0);
    if (on && run->updates.held_count < run->updates.state_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(SKIP_UPDATES),
                        TLI_RULE(SKIP_NEEDS_HELD_GRADIENTS));
    run->updates.skips = (uint8_t)on;
    return TL_OK;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
