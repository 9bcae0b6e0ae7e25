#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: a pass --
//
// What is held between passes and at their ends. A pass starts with the inputs and the plan's entry and nothing
// else; it ends with the results and a comparison of the figures. One that is given up releases all but inputs
// and entry, wherever it stands:
//
//     start    release what the pass before left -> claim the entry -> count from 0
//     end      submit -> give back what steps have freed -> compare
//     abort    unmap, cancel, submit -> release; the next pass is the same training step again

#ifndef TL_ONLY_TABLES
// The buffer of a tensor in a slot.
static tli_buffer *tli_caller_buffer(const tl_run *run, int32_t slot, int32_t tensor) {
    return &run->all_tensors[(size_t)slot * (size_t)run->graph->tensor_count + (size_t)tensor];
}

#ifdef TLI_INVARIANTS
// Add what a step holds beside tensors: scratch, second copies, what it has freed.
static void tli_add_step_bytes(const tli_step_state *at, uint64_t bytes[TL_TIER_COUNT]) {
    int32_t i;
    bytes[at->call.scratch.tier] += at->call.scratch.range.bytes;
    for (i = 0; i < at->call.twice_count; i++) bytes[at->call.twice[i].tier] += at->call.twice[i].range.bytes;
    for (i = 0; i < at->freed_count; i++) bytes[at->freed[i].tier] += at->freed[i].range.bytes;
}

// Add what a buffer holds.
static int tli_add_buffer_bytes(const tli_buffer *buffer, uint64_t bytes[TL_TIER_COUNT]) {
    bytes[TL_TIER_DEVICE] += buffer->device.range.bytes;
    return tli_buffer_holds(buffer);
}

// Add the host copy of a tensor; without one nothing is held there.
static int tli_add_spilled_bytes(const tl_run *run, const tli_buffer *buffer, uint64_t bytes[TL_TIER_COUNT]) {
    uint64_t held = run->all_spilled ? tli_spilled_of(run, buffer)->host.range.bytes : 0;
    bytes[TL_TIER_HOST] += held;
    return buffer->on_host || !held;
}

// What the store counts is what buffers, steps under way and calls that were set aside hold, and what the
// backend refused to take back.
static int tli_run_holds(const tl_run *run) {
    size_t slot_total = (size_t)run->slot_count, i, tensors = slot_total * (size_t)run->graph->tensor_count;
    uint64_t bytes[TL_TIER_COUNT];
    int32_t k;
    int holds = 1;
    tli_zero(bytes, sizeof bytes);
    for (i = 0; i < tensors && holds; i++)
        holds = tli_add_buffer_bytes(&run->all_tensors[i], bytes) &&
                tli_add_spilled_bytes(run, &run->all_tensors[i], bytes) &&
                tli_add_buffer_bytes(&run->all_gradients[i], bytes);
    for (i = 0; i < slot_total * (size_t)run->saved_count && holds; i++)
        holds = tli_add_buffer_bytes(&run->all_saved[i], bytes);
    tli_add_step_bytes(&run->at, bytes);
    for (k = 0; run->flights && k < run->flight_count; k++)
        if (k != run->flight) tli_add_step_bytes(&run->flights[k].at, bytes);
    for (k = 0; k < run->begun_count; k++) tli_add_step_bytes(&run->begun[k].at, bytes);
    for (k = 0; k < run->store.lost_count; k++) {
        const tli_lost *lost = &run->store.lost[k];
        if (!lost->host) bytes[lost->held.tier] += lost->held.range.bytes;
    }
    holds &= bytes[TL_TIER_DEVICE] == run->store.bytes[TL_TIER_DEVICE];
    holds &= bytes[TL_TIER_HOST] <= run->store.bytes[TL_TIER_HOST];     // between arenas inputs are there, too
    if (run->active) holds &= bytes[TL_TIER_HOST] == run->store.bytes[TL_TIER_HOST];
    return holds && tli_store_holds(&run->store) && tli_flights_hold(run) && tli_begun_holds(run);
}

// The same after a step: of large graphs so seldom that it costs no more than the steps.
static int tli_run_holds_often(const tl_run *run) {
    int64_t size = (int64_t)run->slot_count * (run->graph->tensor_count + run->graph->node_count);
    return (run->position % (size / 16 + 1)) != 0 || tli_run_holds(run);
}
#endif

// Whether a tensor is of a graph input, or a state, that no plan frees.
static int tli_stays(const tl_graph *graph, int32_t tensor) {
    const tl_node *maker = &graph->nodes[graph->outputs[tensor].node];
    return maker->is_input && !tli_dies(maker);
}

// Release the buffers of the present slot. What the plan's entry took stays, as inputs do, where no step has
// freed it.
static void tli_release_slot(tl_run *run, int with_inputs) {
    const tl_graph *graph = run->graph;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) {
        (void)tli_buffer_drop(run, &run->gradients[i]);
        (void)tli_buffer_drop_host(run, &run->tensors[i]);
        if (tli_stays(graph, i) && !with_inputs) continue;
        if (run->tensors[i].is_entry && !with_inputs) run->tensors[i].state = TLI_RESIDENT;
        else (void)tli_buffer_drop(run, &run->tensors[i]);
    }
    for (i = 0; i < run->saved_count; i++) (void)tli_buffer_drop(run, &run->saved[i]);
}

// Release all buffers; inputs and what is left of the plan's entry only with_inputs. What the backend does not
// take back is offered to it again by the next pass.
static void tli_release_buffers(tl_run *run, int with_inputs) {
    tli_quiet quiet = tli_begin_quiet(run->limits.env);
    int32_t i, f;
    (void)tli_give_all_freed(run);
    for (f = 0; f < tli_count_flights(run); f++) {
        tli_choose_flight(run, f);
        (void)tli_abandon(&run->store, &run->at.call.scratch);
        for (i = 0; i < run->at.call.twice_count; i++) (void)tli_abandon(&run->store, &run->at.call.twice[i]);
    }
    for (i = 0; i < run->slot_count; i++) {
        tli_run_choose_slot(run, i);
        tli_release_slot(run, with_inputs);
    }
    tli_run_choose_slot(run, 0);
    (void)tli_retry_lost(&run->store);
    tli_end_quiet(&quiet, TL_OK);
    TLI_INVARIANT(tli_run_holds(run));
}

// An input that dies is written before each pass, in every slot.
static tl_result tli_check_written(tl_run *run) {
    int32_t slot, i;
    for (slot = 0; slot < run->slot_count; slot++)
        for (i = 0; i < run->graph->tensor_count; i++) {
            int32_t id = run->graph->outputs[i].node;
            tli_sentence s;
            if (!tli_dies(&run->graph->nodes[id]) || tli_caller_buffer(run, slot, i)->is_written) continue;
            s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS),
                                TLI_RULE(INPUT_DIED_AND_WAS_NOT_WRITTEN), (uint64_t)id, (uint64_t)slot);
            tli_put_text(&s, tl_name_node(run->graph, id));
            return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
        }
    return TL_OK;
}

// A pass uses the inputs that die, whatever its plan frees.
static void tli_use_inputs(tl_run *run) {
    int32_t slot, i;
    for (slot = 0; slot < run->slot_count; slot++)
        for (i = 0; i < run->graph->tensor_count; i++)
            if (tli_dies(&run->graph->nodes[run->graph->outputs[i].node]))
                tli_caller_buffer(run, slot, i)->is_written = 0;
}

// Claim the graph's inputs that are not there: all at first, later those that died, which have their places
// again.
static tl_result tli_claim_graph_inputs(tl_run *run) {
    const tl_graph *graph = run->graph;
    int32_t *next = &run->arenas[TL_TIER_DEVICE].next_offset, number = 0, slot, i;
    tl_result result = TL_OK;
    for (slot = 0; slot < run->slot_count; slot++) {
        for (i = 0; i < graph->tensor_count && !result; i++) {
            tli_buffer *input = tli_caller_buffer(run, slot, i);
            if (!graph->nodes[graph->outputs[i].node].is_input) continue;
            *next = number;
            number += graph->outputs[i].bytes > 0;
            if (tli_stays(graph, i) ? input->state != TLI_ABSENT : input->is_entry) continue;
            input->state = TLI_RESIDENT;
            input->is_entry = (uint8_t)!tli_stays(graph, i);
            result = tli_claim_device(run, graph->outputs[i].bytes, &input->device);
            if (!result) result = tli_fill_range(&run->store, &input->device.range, 0);
        }
    }
    run->input_count = *next = number;
    return result;
}

// Claim what the plan's entry names and is not there (any more), and fill it with zeroes; so the inputs that
// died. Everything else was released.
static tl_result tli_claim_entry(tl_run *run) {
    const tl_graph *graph = run->graph;
    int32_t *next = &run->arenas[TL_TIER_DEVICE].next_offset;
    tl_result result = tli_claim_graph_inputs(run);
    int32_t number = run->input_count, i;
    for (i = 0; i < run->plan.entry_count && !result; i++) {
        const tl_entry *entry = &run->plan.entry[i];
        int32_t index = graph->nodes[entry->node].first_output + entry->output;
        uint64_t bytes = graph->outputs[index].bytes;
        tli_buffer *buffer = tli_caller_buffer(run, entry->slot, index);
        *next = number;
        number += bytes > 0;
        if (buffer->is_entry) continue;
        result = tli_claim_device(run, bytes, &buffer->device);
        if (result) break;
        buffer->state = TLI_RESIDENT;
        buffer->is_entry = 1;
        result = tli_fill_range(&run->store, &buffer->device.range, 0);
    }
    run->first_count = *next = number;
    TLI_INVARIANT(result || tli_run_holds(run));
    return result;
}

// The pass is given up: the message of the call at hand, too.
static void tli_cancel_call(tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->messages) tli_cancel_message(run);
#else
    (void)run;
#endif
}

// Give up a call that was set aside.
static void tli_drop_begun(tl_run *run, tli_begun *begun) {
    if (!begun->is_used) return;
    tli_swap_begun(run, begun);
    if (run->at.call.is_mapped) (void)tli_unmap_accesses(run, run->at.call.access_count);
    run->store.enqueued = 1;
    tli_cancel_call(run);
    tli_swap_begun(run, begun);
    begun->is_used = 0;
    TLI_INVARIANT(tli_begun_holds(run));
}

// Submit what was enqueued and release as tli_release_buffers does, at any point of a pass.
static void tli_clear_run(tl_run *run, int with_inputs) {
    tli_quiet quiet = tli_begin_quiet(run->limits.env);
    int32_t f;
    for (f = 0; f < tli_count_flights(run); f++) {
        tli_choose_flight(run, f);
        if (run->at.call.is_mapped) (void)tli_unmap_accesses(run, run->at.call.access_count);
        if (run->at.computing) run->store.enqueued = 1;  // the kernel may have been recorded
        if (run->at.computing) tli_cancel_call(run);
        tli_end_random(run);
        run->at.computing = TLI_COMPUTING_NOT;
    }
    for (f = 0; f < run->begun_count; f++) tli_drop_begun(run, &run->begun[f]);
    (void)tli_submit_store(&run->store);
    tli_release_buffers(run, with_inputs);
    tli_end_quiet(&quiet, TL_OK);
    TLI_INVARIANT(tli_run_holds(run));
}
#else
#ifdef TLI_INVARIANTS
// A run of tables stands at a step of its plan, or at its end.
static int tli_run_holds_often(const tl_run *run) {
    return run->position >= 0 && run->position <= tli_plan_of(run)->step_count;
}
#endif

// The buffer of a tensor in a slot.
static tli_buffer *tli_caller_buffer(const tl_run *run, int32_t slot, int32_t tensor) {
    return run->tensors + (slot - run->slot) * run->graph->tensor_count + tensor;
}

// Forget all buffers but inputs, which stay as long as the run.
static void tli_release_buffers(tl_run *run, int with_inputs) {
    const tl_graph *graph = run->graph;
    int32_t slot, i;
    (void)with_inputs;
    for (slot = 0; slot < run->slot_count; slot++) {
        tli_run_choose_slot(run, slot);
        for (i = 0; i < graph->tensor_count; i++) {
            (void)tli_buffer_drop(run, &run->gradients[i]);
            if (!graph->nodes[graph->outputs[i].node].is_input) (void)tli_buffer_drop(run, &run->tensors[i]);
        }
        for (i = 0; i < graph->node_count && run->saved; i++) (void)tli_buffer_drop(run, &run->saved[i]);
    }
    tli_run_choose_slot(run, 0);
}

static void tli_clear_run(tl_run *run, int with_inputs) {
    tli_end_random(run);
    run->at.computing = TLI_COMPUTING_NOT;
    tli_release_buffers(run, with_inputs);
}
#endif

static tl_result tli_abort_pass(tl_run *run, tl_result why) {
    tl_error error;  // keep the reason: the clean-up may overwrite it
    tli_zero(&error, sizeof error);
    if (run->env) error = run->env->error;
#ifndef TL_NO_PLANNERS
    tli_forget_cache(run);
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    tli_leave_step(run);
    tli_stop_reduction(run);
#endif
    tli_clear_run(run, 0);
    tli_abort_updates(run);
    if (run->active) run->next_step = run->training_step;  // the same step is run again
    if (run->in_plan) run->next_step = run->plan_step;
#ifndef TL_ONLY_TABLES
    if (run->active || run->in_plan) run->ended_passes = run->resumes = 0;
#endif
    run->active = run->in_plan = 0;
#ifndef TL_NO_ONLINE
    run->goal_waits = 0;
#endif
    if (run->env) run->env->error = error;
    TLI_INVARIANT(!run->active && !run->in_plan && !run->at.computing);
    return why;
}

#ifndef TL_ONLY_TABLES
static tl_result tli_end_pass(tl_run *run) {
    tl_result result = tli_submit_store(&run->store);
    if (result == TL_NOT_READY) return result;  // the next call tries again
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(SUBMIT_FAILED));
    result = tli_give_all_freed(run);
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(RELEASE_FAILED));
#ifndef TL_NO_ONLINE
    if (run->is_online) result = tli_sim_end(&run->online.sim);
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) result = tli_sim_end(&run->hybrid.sim);
#endif
    TLI_INVARIANT(result || tli_run_holds(run));
    return result ? result : tli_check_pass(run);
}
#else
static tl_result tli_end_pass(tl_run *run) { (void)run; return TL_OK; }
#endif

#ifndef TL_ONLY_TABLES
// What the gradients of a training step that starts now are multiplied by.
static float tli_find_loss_scale(const tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->desc.loss_scaler) return tl_default_loss_scaler(run->desc.loss_scaler).scale;
#endif
    (void)run;
    return 1.0f;
}
#endif

static void tli_start_training_step(tl_run *run) {
    run->training_step = run->next_step++;
#ifndef TL_ONLY_TABLES
    run->loss_scale = tli_find_loss_scale(run);
    run->ended_passes = 0;
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->desc.loss_scaler) *run->desc.loss_scaler = tl_default_loss_scaler(run->desc.loss_scaler);
#endif
    TLI_INVARIANT(run->next_step == run->training_step + 1);
}

// Count from here on: offsets, accesses, forwards, and what the report says.
static void tli_start_counting(tl_run *run) {
    tli_zero(&run->report, sizeof run->report);
#ifdef TL_ONLY_TABLES
    run->next_offset = run->first_count;
    tli_zero(run->ran, (size_t)run->slot_count * (size_t)run->graph->node_count);    // slot 0 is chosen
#else
    tl_account_counters counters;
    run->touched_count = 0;
    run->arenas[TL_TIER_DEVICE].next_offset = run->first_count;  // the offsets before are taken already
    run->arenas[TL_TIER_HOST].next_offset = 0;
    tli_zero(run->all_ran, (size_t)run->slot_count * (size_t)run->graph->node_count);
    run->report.limiting_node = -1;
    run->report.worker_count = run->desc.transport ? run->desc.transport->rank_count : 1;
#ifndef TL_NO_PLANNERS
    run->report.cached_bytes = run->cache.kept_bytes;
    if (run->cache.is_warm) run->report.cached_count = run->cache.skipped_count;
#endif
    run->report.fused_count = run->members.fused_count;
    tli_zero(run->before_bytes, sizeof run->before_bytes);
    run->submits.queued_ns = 0;
    tli_measure_store(&run->store, 1, &counters);
    run->defers = run->flights != NULL;
#endif
    TLI_INVARIANT(run->active == 0);
}

// The neighbours of a rank are greeted before its first pass. TL_NOT_READY: not all have answered.
static tl_result tli_greet(tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->reduction)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS), TLI_RULE(REDUCTION_IS_UNDER_WAY));
    if (run->messages && run->messages->is_out_of_step)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS), TLI_RULE(MESSAGES_ARE_OUT_OF_STEP));
    return run->messages ? tli_greet_ranks(run, TLI_IN(RUN_PLAN), &run->messages->stages) : TL_OK;
#else
    (void)run;
    return TL_OK;
#endif
}

// What refuses a pass and leaves everything as it is.
static tl_result tli_check_start(tl_run *run) {
    tl_result result = tli_check_torn(run);
#ifndef TL_ONLY_TABLES
    if (!result) result = tli_check_written(run);
#endif
    return result;
}

TLI_IMPL tl_result tl_start_pass(tl_run *run, int32_t micro_batch) {
    tl_result result;
    TL_ASSERT(run);
    if (run->active || (run->in_plan && !run->by_itself))
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS),
                        TLI_RULE(RUN_PASS_IS_UNDER_WAY));
    if (micro_batch < 0 || micro_batch > INT32_MAX - run->slot_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS), micro_batch < 0
                            ? TLI_RULE(MICRO_BATCH_MUST_BE_NOT_NEGATIVE)
                            : TLI_RULE(MICRO_BATCHES_DO_NOT_FIT_31_BITS));
    result = tli_check_start(run);
    if (!result) result = tli_greet(run);
    if (result) return result;
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on) tli_choose_cached_plan(run, micro_batch);
#endif
    tli_release_buffers(run, 0);
#ifndef TL_NO_ONLINE
    tli_forget_reports(run);
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on && tli_start_hybrid(run))
        return tli_fail(run->env, TL_ERROR_INVALID_PLAN, TLI_IN(START_PASS), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
#endif
#ifndef TL_ONLY_TABLES
    run->resumes = 0;
    if (tli_claim_entry(run))
        return tli_fail(run->env, TL_ERROR_BACKEND, TLI_IN(START_PASS), TLI_RULE(BACKEND_COULD_NOT_TAKE_ENTRY));
    tli_use_inputs(run);
#endif
    result = tli_start_updates(run, micro_batch);
    if (result) return result;
    if (micro_batch == tli_first_micro_batch(run)) tli_start_training_step(run);
    run->micro_batch = micro_batch;
    run->position = 0;
    run->at.computing = TLI_COMPUTING_NOT;
    tli_start_counting(run);
#ifndef TL_NO_ONLINE
    if (run->is_online) result = tli_start_online(run, run->live_budget[TL_TIER_DEVICE]);
#endif
    run->active = !result;
    TLI_INVARIANT(!run->active || run->position == 0);
    return result;
}
#endif  // TL_STRATEGY_IMPLEMENTATION
