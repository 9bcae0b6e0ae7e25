#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: the whole plan --
//
// tl_run_plan pulls the steps of every pass and calls their kernels itself. Where a kernel or a message is not
// ready it answers TL_NOT_READY, and goes on from there when it is called again.

#ifndef TL_ONLY_TABLES
// Call the kernels of the steps under way that were not asked in this turn. *moved: 1 = one of them was carried
// out; else as it was.
static tl_result tli_poll_kernels(tl_run *run, int *moved) {
    tl_result result = TL_OK;
    int32_t f;
    for (f = 0; f < tli_count_flights(run) && !result; f++) {
        tli_choose_flight(run, f);
        if (run->at.computing != TLI_COMPUTING_YIELDED || run->at.call.is_asked) continue;
        result = tl_run_step_kernel(run, &run->at.yielded);
        if (!result) *moved = 1;
        if (result != TL_NOT_READY) continue;
        run->at.call.is_asked = 1;
        result = TL_OK;
    }
    return result;
}

// Pull a step if there is one that can be yielded, and call kernels. TL_NOT_READY: nothing has moved.
static tl_result tli_move_pass(tl_run *run, int32_t *done) {
    tl_run_step step;
    int moved = 0;
    tl_result result = TL_NOT_READY, polled;
    tli_zero(&step, sizeof step);
    if (run->flights || run->at.computing != TLI_COMPUTING_YIELDED) result = tl_next_step(run, &step, done);
    if (result && result != TL_NOT_READY) return result;
    if (!result && step.is_compute) run->at.yielded = step;
    moved = !result;
    polled = run->active ? tli_poll_kernels(run, &moved) : TL_OK;
    return polled ? polled : moved ? TL_OK : TL_NOT_READY;
}

// Whether a kernel has answered that it is not ready.
static int tli_has_polled(const tl_run *run) {
    int is_polled = (run->at.computing == TLI_COMPUTING_YIELDED && run->at.call.polled) || tli_has_begun(run);
    int32_t f;
    for (f = 0; run->flights && f < run->flight_count; f++)
        is_polled |= tli_is_under_way(run, &run->flights[f]) && run->flights[f].at.call.polled;
    return is_polled;
}

// Carry out the rest of the pass (by hand: the steps of the goals decided so far). TL_NOT_READY: up to a kernel
// that is not ready, or to work that the backend cannot wait for.
static tl_result tli_run_steps(tl_run *run) {
    int32_t done = 0, f;
    tl_result result = TL_OK;
    for (f = 0; f < tli_count_flights(run); f++) {
        tli_choose_flight(run, f);
        run->at.call.is_asked = 0;
    }
    run->by_itself = 1;
    while (!result && !done) result = tli_move_pass(run, &done);
    run->by_itself = 0;
    if (result != TL_NOT_READY || tli_has_polled(run) || tli_is_reducing(run)) return result;
    return tli_fail(run->env, result, TLI_IN(RUN_PLAN), TLI_RULE(BACKEND_WORK_IS_UNDER_WAY_THAT_IT));
}
#else
// Pull a step and call its kernel, or call once more one that was not ready.
static tl_result tli_move_pass(tl_run *run, int32_t *done) {
    tl_run_step step;
    tl_result result = TL_OK;
    tli_zero(&step, sizeof step);
    if (run->at.computing == TLI_COMPUTING_YIELDED) {
        step.step = run->at.last;
        step.index = run->at.event.index;
        tli_name_call(run, run->kernel_of[run->at.last.node], &step);
    } else {
        result = tl_next_step(run, &step, done);
    }
    return result || !step.is_compute ? result : tl_run_step_kernel(run, &step);
}

// Carry out the rest of the pass. TL_NOT_READY: up to a kernel that is not ready.
static tl_result tli_run_steps(tl_run *run) {
    int32_t done = 0;
    tl_result result = TL_OK;
    run->by_itself = 1;
    while (!result && !done) result = tli_move_pass(run, &done);
    run->by_itself = 0;
    return result;
}
#endif

// Let the caller write the inputs of each slot before a pass.
static tl_result tli_load_slots(tl_run *run, int32_t micro_batch) {
    int32_t chosen = run->caller_slot, slot;
    tl_result result = TL_OK, before = tli_begin_hook(run->env);
    for (slot = 0; run->desc.load && slot < run->slot_count && !result; slot++) {
        run->caller_slot = slot;
        result = (run->desc.load)(run, micro_batch + slot, run->desc.load_user);
    }
    run->caller_slot = chosen;
    result = tli_end_hook(run->env, before, result, TLI_IN(RUN_PLAN), TLI_RULE(LOAD_HOOK_REPORTED_FAILURE));
    return result && result != TL_NOT_READY ? tli_abort_pass(run, result) : result;
}

// Begin the next pass of tl_run_plan.
static tl_result tli_begin_plan_pass(tl_run *run) {
    int32_t micro_batch = tli_first_micro_batch(run) + run->plan_pass * run->slot_count;
    tl_result result = tli_greet(run);
    if (!result) result = tli_load_slots(run, micro_batch);
    run->by_itself = 1;
    if (!result) result = tl_start_pass(run, micro_batch);
    run->by_itself = 0;
    return result;
}

TLI_IMPL tl_result tl_run_plan(tl_run *run) {
    tl_result result = TL_OK;
    TL_ASSERT(run);
    if (run->active && !run->in_plan)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(RUN_PLAN), TLI_RULE(RUN_PASS_IS_UNDER_WAY));
    if (!run->in_plan) {
        run->plan_pass = 0;
        run->plan_step = run->next_step;
#ifndef TL_ONLY_TABLES
        if (run->resumes) {     // the rest of the training step that was loaded
            run->plan_pass = run->ended_passes;
            run->plan_step = run->training_step;
        }
#endif
    }
    while (run->plan_pass < run->repeat_count && !result) {
        if (!run->active) result = tli_begin_plan_pass(run);
        if (!result) result = tli_run_steps(run);
        run->plan_pass += !result;
    }
    run->in_plan = result == TL_NOT_READY;
    if (result && !run->in_plan) run->next_step = run->plan_step;
#ifndef TL_ONLY_TABLES
    if (result && !run->in_plan) run->ended_passes = run->resumes = 0;
#endif
    return result;
}

TLI_IMPL tl_result tl_reset_run(tl_run *run) {
    TL_ASSERT(run);
    return tli_abort_pass(run, TL_OK);
}
#endif  // TL_STRATEGY_IMPLEMENTATION
