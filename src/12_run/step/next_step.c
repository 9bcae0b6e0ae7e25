#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: from step to step --
//
// A compute step is opened, yielded as often as it has calls, carried out, and closed when the next one is
// pulled, or at once where several are under way. run->at.computing says how far the one at hand is:
//
//     NOT -> OPENED    its ranges are claimed; it may wait for others under way
//         -> YIELDED   the caller, or tl_run_plan, has its call
//         -> DONE      its kernel has returned; the next range, or the end of the step
//         -> NOT       closed: only what others read stays

// The next step of the plan or of the online record; *done = 1: there is none.
static tl_result tli_pull_step(tl_run *run, tl_step *step, int32_t *done) {
    *done = 0;
#ifndef TL_NO_ONLINE
    if (run->is_online) {
        tl_result result = TL_OK;
        while (!run->by_hand && !result && !*done && run->position >= run->online.record.count)
            result = tli_online_next_goal(run, done);
        if (result) return result;
        *done |= run->position >= run->online.record.count;
        if (!*done) *step = run->online.record.steps[run->position];
        return TL_OK;
    }
#endif
    *done = run->position >= tli_plan_of(run)->step_count;
    if (!*done) *step = tl_find_step(tli_plan_of(run), run->position);
    return TL_OK;
}

#ifndef TL_ONLY_TABLES
// Ask the kernel of a call that was set aside whether it is ready.
static tl_result tli_poll_begun(tl_run *run, tli_begun *begun) {
    tl_result result;
    if (begun->is_ready) return TL_OK;
    tli_swap_begun(run, begun);
    result = tli_call_kernel(run, &run->at.yielded);
    tli_swap_begun(run, begun);
    begun->is_ready = !result;
    return result;
}
#endif

#ifndef TL_ONLY_TABLES
// Offer the messages of begun calls that the transport did not take: while this rank waits for something else,
// another may wait for them.
static tl_result tli_offer_messages(tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    int32_t i;
    for (i = 0; run->messages && i < run->begun_count; i++) {
        tli_begun *begun = &run->begun[i];
        int is_message = begun->is_used && begun->kernel.forward == tli_carry_message;
        tl_result result = TL_OK;
        if (is_message && begun->at.call.request == TLI_NO_REQUEST) result = tli_poll_begun(run, begun);
        if (result && result != TL_NOT_READY) return result;
    }
#else
    (void)run;
#endif
    return TL_OK;
}
#else
static tl_result tli_offer_messages(tl_run *run) { (void)run; return TL_OK; }
#endif

static void tli_count_compute(tl_run *run) {
    int32_t id = run->at.last.node;
    if (run->at.last.kind == TL_STEP_BACKWARD) { run->report.backward_count++; return; }
    run->at.event.recompute = run->ran[id];
    run->report.forward_count++;
    run->report.recompute_count += run->ran[id];
    run->ran[id] = 1;
}

static void tli_keep_first(tl_result *first, tl_result result) { if (!*first) *first = result; }

// Close a compute step that was carried out: release the ranges that only the call needed, and the gradients
// and saved bytes that only this backward read.
static tl_result tli_close_compute(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    int32_t i, end = node->first_output + node->output_count;
    tl_result first;
    run->at.computing = TLI_COMPUTING_NOT;
    if (!tli_skips_updates(run)) run->updates.count += tli_count_updates(run, &run->at.last);
#ifndef TL_ONLY_TABLES
    run->store.enqueued = 1;
#endif
    tli_end_random(run);  // where the caller called the last kernel itself
    first = tli_free_held(run, &run->at.call.scratch);
    for (i = 0; i < node->output_count; i++)
        tli_keep_first(&first, tli_free_held(run, &run->at.call.twice[i]));
    for (i = node->first_output; i < end && run->at.last.kind == TL_STEP_BACKWARD; i++)
        tli_keep_first(&first, tli_buffer_drop(run, &run->gradients[i]));
    if (run->at.last.kind == TL_STEP_BACKWARD)
        tli_keep_first(&first, tli_buffer_drop(run, tli_saved_buffer(run, run->at.last.node)));
#ifndef TL_NO_ONLINE
    tli_keep_first(&first, tli_take_reports(run));
#endif
    if (first) return tli_run_fail_backend(run, first, TLI_RULE(RELEASE_FAILED));
#ifndef TL_ONLY_TABLES
    if (!run->at.event.end_ns) tli_end_event(run);
#endif
    tli_observe_step(run);
    return TL_OK;
}

#ifndef TL_ONLY_TABLES
// Close the step that began a call, at the W that ends it.
static tl_result tli_end_begun(tl_run *run, tli_begun *begun) {
    tl_result result = TL_OK, closed;
    tli_swap_begun(run, begun);
    if (run->at.call.is_mapped) result = tli_unmap_accesses(run, run->at.call.access_count);
    if (result) result = tli_fail_unmap(run, result);
    closed = tli_close_compute(run);
    tli_swap_begun(run, begun);
    begun->is_used = 0;
    return result ? result : closed;
}
#endif

static void tli_open_step(tl_run *run, tl_step step, tl_run_step *out) {
    run->at.last = step;
    tli_run_choose_slot(run, step.slot);
    tli_zero(&run->at.event, sizeof run->at.event);
    run->at.event.index = run->position;
    run->at.event.micro_batch = run->micro_batch + step.slot;
    tli_start_event(run);
    run->at.call.operand_count = 0;
#ifndef TL_ONLY_TABLES
    run->at.event.step = step;
    run->at.event.training_step = run->training_step;
    run->at.call.access_count = 0;
#endif
    out->step = step;
    out->index = run->at.event.index;
    out->depends_on = -1;
}

// Pull a step, and carry it out or prepare its first call.
static tl_result tli_open_next_step(tl_run *run, tl_run_step *out, int32_t *done) {
#ifndef TL_ONLY_TABLES
    tli_begun *begun;
#endif
    tl_step step;
    tl_result result;
    tli_zero(&step, sizeof step);
    result = tli_pull_step(run, &step, done);
    if (result) return result;
#ifdef TL_ONLY_TABLES
    if (*done) return TL_OK;
    tli_open_step(run, step, out);
#else
    if (*done) {
        int32_t latest = tli_find_latest_flight(run);
        if (latest < 0) return TL_OK;
        *done = 0;
        return tli_wait_for(run, latest);
    }
    result = tli_enter_flight(run, &step);
    if (result == TL_NOT_READY) return result;
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(RELEASE_FAILED));
    tli_open_step(run, step, out);
    result = tli_order_memory_step(run);
    begun = tli_find_begun(run, &step);
    if (!result) result = begun ? tli_poll_begun(run, begun) : tli_poll_step(run, &step);
    if (result == TL_NOT_READY || (result && begun)) return result;
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(POLL_FAILED));
#endif
    run->position++;
    run->report.step_count++;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) result = tli_follow_step(run, &step);
    if (result) return result;
#endif
    if (step.kind <= TL_STEP_BACKWARD) {
        if (step.kind == TL_STEP_BACKWARD) tli_clear_shards(run);
        tli_count_compute(run);
        result = tli_begin_compute(run, out);
    } else {
#ifndef TL_ONLY_TABLES
        result = begun ? tli_end_begun(run, begun) : tli_memory_step(run);
#else
        result = tli_memory_step(run);
#endif
        tli_end_event(run);
        if (!result) tli_observe_step(run);
        if (!result && !run->by_itself) result = tli_find_dependency(run, &out->depends_on);
    }
    return result;
}

// Sum the gradients in shards of the step that was carried out, and close it. TL_NOT_READY: not all are summed.
static tl_result tli_end_compute(tl_run *run) {
    tl_result result = tli_sum_shards(run);
    return result ? result : tli_close_compute(run);
}

// Close the step before and open the next one.
static tl_result tli_take_next_step(tl_run *run, tl_run_step *out, int32_t *done) {
    tl_result result;
#ifdef TL_ONLY_TABLES
    if (run->at.computing && tli_has_more_ranges(run)) return tli_yield_next_range(run, out);
#endif
    result = run->at.computing == TLI_COMPUTING_DONE ? tli_end_compute(run) : TL_OK;
    return result ? result : tli_open_next_step(run, out, done);
}

// Close a step that was carried out for all elements. One at a time, that is left to the next call.
static tl_result tli_close_flight(tl_run *run) {
    int is_done = tli_has_flights(run) && run->at.computing == TLI_COMPUTING_DONE && !tli_has_more_ranges(run);
    return is_done ? tli_close_compute(run) : TL_OK;
}

#ifndef TL_ONLY_TABLES
// Go on with the step before, for its next elements, or close it and open the next one.
static tl_result tli_take_step(tl_run *run, tl_run_step *out, int32_t *done) {
    tl_result result;
    run->waits_for = -1;
    tli_choose_step(run, run->position - 1);
    if (run->at.computing == TLI_COMPUTING_OPENED) {
        result = tli_go_on_compute(run, out);
    } else if (run->at.computing && tli_has_more_ranges(run)) {
        if (run->at.computing == TLI_COMPUTING_YIELDED) return tli_wait_for(run, run->at.event.index);
        result = tli_yield_next_range(run, out);
    } else {
        result = tli_take_next_step(run, out, done);
    }
    if (!result && !*done) result = tli_close_flight(run);
    if (result || *done) return result;
    out->accesses = run->at.call.accesses;
    out->access_count = run->at.call.access_count;
    if (!run->limits.in_order) out->ticket = run->store.last_ticket;
    return TL_OK;
}
#endif

static tl_result tli_fail_unfinished(tl_run *run) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(NEXT_STEP),
                                     TLI_RULE(WAS_NOT_CARRIED_OUT_CALL),
                                     (uint64_t)run->at.event.index, (uint64_t)run->at.last.node);
    if (TLI_ERROR_TEXT) {
        tli_put_last_step(run, &s.text);
        tli_put(&s.text, ": ");
    }
    return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
}

TLI_IMPL tl_result tl_next_step(tl_run *run, tl_run_step *step, int32_t *done) {
    tl_result result;
    TL_ASSERT(run && step && done);
    *done = 0;
    if (run->in_plan && !run->by_itself)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(NEXT_STEP), TLI_RULE(RUN_PLAN_IS_UNDER_WAY));
    if (run->active && !tli_has_flights(run) && run->at.computing == TLI_COMPUTING_YIELDED)
        return tli_fail_unfinished(run);
    tli_zero(step, sizeof *step);
    if (!run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(NEXT_STEP),
                        TLI_RULE(RUN_NO_PASS_IS_UNDER_WAY));
#ifdef TL_ONLY_TABLES
    result = tli_take_next_step(run, step, done);
#else
    result = tli_offer_messages(run);
    if (!result) result = tli_take_step(run, step, done);
#endif
    if (!result && *done && !tli_is_by_hand(run)) {
        result = tli_end_pass(run);
        if (!result) tli_end_updates(run);
        if (!result) run->active = 0;
#ifndef TL_ONLY_TABLES
        if (!result) run->ended_passes++;
#endif
#ifndef TL_NO_PLANNERS
        if (!result) run->cache.is_kept = run->cache.is_on;
#endif
    }
    TLI_INVARIANT(result || tli_run_holds_often(run));
    if (!result) return TL_OK;
    tli_zero(step, sizeof *step);
    *done = 0;
    if (result != TL_NOT_READY) return tli_abort_pass(run, result);
#ifndef TL_ONLY_TABLES
    if (run->flights) step->depends_on = run->waits_for;
#endif
    return result;
}

// -- the executor: calls of the caller --

// Whether it is a compute step that was yielded and not carried out yet. It is the one at hand then.
static int tli_is_current(tl_run *run, const tl_run_step *step) {
    if (run->active && step->is_compute) tli_choose_step(run, step->index);
    return run->active && run->at.computing == TLI_COMPUTING_YIELDED && step->is_compute &&
           step->index == run->at.event.index && step->call.first == run->at.call.first &&
           step->piece == run->at.call.piece && step->call.node == run->at.call.node &&
           step->call.kind == run->at.call.kind &&
           step->call.step == run->training_step && step->call.micro_batch == run->at.event.micro_batch;
}

static tl_result tli_fail_stale_step(tl_run *run, tli_function function) {
    return tli_fail(run->env, TL_ERROR_STALE, function,
                    TLI_RULE(STEP_NOT_COMPUTE_STEP_THAT_WAS_YIELDED));
}

#ifndef TL_ONLY_TABLES
static tl_result tli_map_last_step(tl_run *run, tli_function function) {
    tl_result result = run->at.call.is_mapped ? TL_OK : tli_map_accesses(run);
    if (result == TL_NOT_READY)
        return tli_fail(run->env, result, function, TLI_RULE(BACKEND_WORK_IS_UNDER_WAY_THAT_IT));
    return result ? tli_abort_pass(run, tli_run_fail_backend(run, result, TLI_RULE(MAP_FAILED))) : TL_OK;
}

#else
// On the host operands have their addresses from the beginning.
static tl_result tli_map_last_step(tl_run *run, tli_function function) {
    (void)run;
    (void)function;
    return TL_OK;
}
#endif

// The step yielded last was carried out, with this result.
static tl_result tli_leave_kernel(tl_run *run, tl_result result) {
#ifndef TL_ONLY_TABLES
    tl_result unmapped = run->at.call.is_mapped ? tli_unmap_accesses(run, run->at.call.access_count) : TL_OK;
    if (!result && unmapped) result = tli_fail_unmap(run, unmapped);
#endif
    run->at.computing = TLI_COMPUTING_DONE;
    if (!result) result = tli_close_flight(run);
    return result ? tli_abort_pass(run, result) : TL_OK;
}

TLI_IMPL tl_result tl_map_step(tl_run *run, tl_run_step *step) {
    tl_result result;
    TL_ASSERT(run && step);
    if (!tli_is_current(run, step)) return tli_fail_stale_step(run, TLI_IN(MAP_STEP));
    result = tli_map_last_step(run, TLI_IN(MAP_STEP));
    if (!result) tli_update_call(run, &step->call);
    return result;
}

#ifndef TL_NO_ONLINE
TLI_IMPL tl_result tl_report_bytes(tl_run *run, int32_t output, uint64_t bytes) {
    const tl_node *node;
    TL_ASSERT(run);
    node = &run->graph->nodes[run->at.last.node];
    if (!run->active || !(run->at.computing == TLI_COMPUTING_YIELDED || run->at.call.is_inside) ||
        run->at.last.kind == TL_STEP_BACKWARD || !node->dynamic)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(REPORT_BYTES),
                        TLI_RULE(NO_FORWARD_OF_DYNAMIC_NODE));
    if (output < 0 || output >= node->output_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(REPORT_BYTES), TLI_RULE(OUTPUT_NOT_BELOW_COUNT));
    return tli_note_report(run, output, bytes);
}
#endif

TLI_IMPL tl_result tl_run_step_kernel(tl_run *run, const tl_run_step *step) {
    const tli_function function = TLI_IN(RUN_STEP_KERNEL);
    tl_result result;
    TL_ASSERT(run && step);
    if (!tli_is_current(run, step)) return tli_fail_stale_step(run, function);
    result = tli_is_host_visible(run) ? tli_map_last_step(run, function) : TL_OK;
    if (result) return result;
    result = tli_offer_messages(run);
    if (result) return tli_abort_pass(run, result);
    run->at.computing = TLI_COMPUTING_DONE;
    result = tli_call_kernel(run, step);
    if ((!result || result == TL_NOT_READY) && tli_set_aside(run, step, !result)) return TL_OK;
    if (result != TL_NOT_READY) return tli_leave_kernel(run, result);
    run->at.computing = TLI_COMPUTING_YIELDED;
    return result;
}

TLI_IMPL tl_result tl_finish_step(tl_run *run, const tl_run_step *step) {
    TL_ASSERT(run && step);
    if (!step->is_compute) return TL_OK;
    if (!tli_is_current(run, step)) return tli_fail_stale_step(run, TLI_IN(FINISH_STEP));
#ifndef TL_NO_ONLINE
    if (tli_check_reports(run)) return TL_ERROR_INVALID_ARG;
#endif
    tli_end_event(run);
    if (tli_set_aside(run, step, 1)) return TL_OK;
    return tli_leave_kernel(run, TL_OK);
}
#endif  // TL_STRATEGY_IMPLEMENTATION
