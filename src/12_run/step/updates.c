#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: updates of states --
//
// The backward of a state is its update. Of a training step of several passes the last one updates; the
// others add to gradients that the states hold:
//
//     pass 1   clear the sums   F .. B ..   (updates skipped)
//     pass 2                    F .. B ..   update, update, ..
//
// A pass that is given up in or behind an update leaves states of two training steps, so no pass starts before
// the caller has written or loaded all of them; of a run from tables, none.

static int tli_is_update(const tl_run *run, const tl_step *step) {
    return step->kind == TL_STEP_BACKWARD && run->graph->nodes[step->node].state != TL_STATE_NONE;
}

// Whether the pass under way is the last of its training step.
static int tli_is_last_pass(const tl_run *run) {
    return run->micro_batch - tli_first_micro_batch(run) >= (run->repeat_count - 1) * run->slot_count;
}

#ifndef TL_ONLY_TABLES
static int tli_skips_updates(const tl_run *run) { return run->updates.skips || !tli_is_last_pass(run); }

// What the states of a run's graph ask of the run: the sentence that refuses it, with the state.
static tli_rule tli_find_state_rule(const tl_run *run, const tl_node *node) {
    if (run->slot_count > 1) return TLI_RULE(RUN_STATES_ARE_ONE_FOR_ALL_SLOTS);
    if (run->repeat_count > 1 && !tli_is_held(node)) return TLI_RULE(RUN_STATES_HOLD_NO_GRADIENTS);
    if (run->desc.transport) return TLI_RULE(RUN_STATES_ON_ONE_RANK);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->desc.loss_scaler) return TLI_RULE(RUN_STATES_WITH_LOSS_SCALER);
#endif
    return TLI_NO_RULE;
}

// Where a pass was given up in or behind an update: whether all weights and moments were written since. Held
// gradients are cleared.
static int tli_are_states_written(const tl_run *run) {
    int32_t i;
    for (i = 0; i < run->graph->tensor_count; i++) {
        const tl_node_output *output = &run->graph->outputs[i];
        const tl_node *node = &run->graph->nodes[output->node];
        if (tli_has_update(node) && output->output < node->output_count - tli_is_held(node) &&
            !run->tensors[i].is_written)
            return 0;
    }
    return 1;
}

static void tli_ask_for_states(tl_run *run) {
    int32_t i;
    run->updates.is_torn = 1;
    for (i = 0; i < run->graph->tensor_count; i++) run->tensors[i].is_written = 0;
}

static tl_result tli_check_states(tl_run *run) {
    int32_t id;
    tli_zero(&run->updates, sizeof run->updates);
    for (id = 0; id < run->graph->node_count && !run->inference; id++) {
        const tl_node *node = &run->graph->nodes[id];
        tli_rule why = tli_has_update(node) ? tli_find_state_rule(run, node) : TLI_NO_RULE;
        if (node->state == TL_STATE_STATISTIC && run->slot_count > 1)   // each slot would have its own
            why = TLI_RULE(RUN_STATES_ARE_ONE_FOR_ALL_SLOTS);
        if (why) {
            tli_sentence s = tli_begin_error(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), why,
                                             (uint64_t)id, 0);
            tli_put_text(&s, tl_name_node(run->graph, id));
            return tli_end_error(run->env, &s, TL_ERROR_UNSUPPORTED);
        }
        run->updates.state_count += tli_has_update(node);
        run->updates.held_count += tli_is_held(node);
    }
    return TL_OK;
}
#else
static int tli_skips_updates(const tl_run *run) { return !tli_is_last_pass(run); }
static int tli_are_states_written(const tl_run *run) { return !run; }
static void tli_ask_for_states(tl_run *run) { run->updates.is_torn = 1; }
#endif

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
    if (micro_batch != tli_first_micro_batch(run) || run->updates.is_summing) return TL_OK;
    for (id = 0; id < run->graph->node_count; id++) {
        const tl_node *node = &run->graph->nodes[id];
        if (tli_is_held(node) && tli_clear_tensor(run, node->first_output + node->output_count - 1))
            return tli_fail(run->env, TL_ERROR_BACKEND, TLI_IN(START_PASS), TLI_RULE(CLEAR_FAILED));
    }
    run->updates.is_summing = 1;
    return TL_OK;
}

// A pass has ended: what it updated, it has updated from the sums.
static void tli_end_updates(tl_run *run) {
    if (run->updates.count) run->updates.is_summing = 0;
#ifndef TL_ONLY_TABLES
    run->report.update_count = run->updates.count;
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
    if (on && run->updates.held_count < run->updates.state_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(SKIP_UPDATES),
                        TLI_RULE(SKIP_NEEDS_HELD_GRADIENTS));
    run->updates.skips = on != 0;
    return TL_OK;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
