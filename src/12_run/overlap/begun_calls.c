#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- calls that one step begins and another ends --
//
//     steps          F 7 begin   F 2   B 5   W 7   F 8
//     call of F 7    |-----------------------|
//
// When the kernel has been called once, the call is set aside with its operands, mapped as they are. The W of
// its node calls the kernel again until it is ready, and closes the step then.

// A call that was set aside: states are swapped with the run's, so that each keeps its arrays.
typedef struct tli_begun {
    tli_step_state at;
    tl_kernel kernel;          // of the call
    int32_t   is_used;         // 0 = the place is free
    int32_t   is_ready;        // 1 = the kernel has carried it out
} tli_begun;

static void tli_swap_begun(tl_run *run, tli_begun *begun) {
    tli_step_state at = run->at;
    run->at = begun->at;
    begun->at = at;
    tli_run_choose_slot(run, run->at.last.slot);
    TLI_INVARIANT(run->at.last.slot < (uint32_t)run->slot_count);
}

#ifdef TLI_INVARIANTS
// No two calls that were set aside are of one node and slot, and each is a step that begins one.
static int tli_begun_holds(const tl_run *run) {
    int32_t i, k;
    for (i = 0; i < run->begun_count; i++) {
        const tl_step *step = &run->begun[i].at.last;
        if (!run->begun[i].is_used) continue;
        if (!step->begins) return 0;
        for (k = 0; k < i; k++) {
            const tl_step *other = &run->begun[k].at.last;
            if (run->begun[k].is_used && other->node == step->node && other->slot == step->slot) return 0;
        }
    }
    return 1;
}
#endif

// The call that a step ends; NULL = none.
static tli_begun *tli_find_begun(const tl_run *run, const tl_step *step) {
    int32_t i;
    if (step->kind != TL_STEP_WAIT) return NULL;
    for (i = 0; i < run->begun_count; i++) {
        tli_begun *begun = &run->begun[i];
        const tl_step *last = &begun->at.last;
        if (begun->is_used && last->node == step->node && last->slot == step->slot) return begun;
    }
    return NULL;
}

// Set the call at hand aside, if its step begins one: its kernel was called, and is_ready or not. Returns
// whether it did.
static int tli_set_aside(tl_run *run, const tl_run_step *step, int is_ready) {
    tli_begun *begun = run->begun;
    if (!run->at.last.begins) return 0;
    TLI_INVARIANT(run->begun_count > 0);
    while (begun->is_used) begun++;     // there is a place for each call that the plan begins
    begun->kernel = *step->kernel;
    run->at.yielded = *step;
    run->at.yielded.kernel = &begun->kernel;
    begun->at.last = run->at.last;      // the step at hand stays the last one
    begun->is_used = 1;
    begun->is_ready = is_ready;
    tli_swap_begun(run, begun);
    run->at.computing = TLI_COMPUTING_NOT;
    TLI_INVARIANT(begun < run->begun + run->begun_count && tli_begun_holds(run));
    return 1;
}

// Whether a call that was begun is not ready.
static int tli_has_begun(const tl_run *run) {
    int32_t i;
    for (i = 0; i < run->begun_count; i++)
        if (run->begun[i].is_used && !run->begun[i].is_ready) return 1;
    return 0;
}

// Most calls under way together of a plan that was simulated.
static int32_t tli_count_begun(const tl_run *run) {
    uint8_t *is_begun = run->all_ran;   // zeroes, before the first pass, and again when all calls have ended
    int32_t most = 0, count = 0, i;
    for (i = 0; i < run->plan.step_count; i++) {
        const tl_step step = tl_find_step(&run->plan, i);
        size_t at = (size_t)step.slot * (size_t)run->graph->node_count + (size_t)step.node;
        if (step.begins) count++;
        else if (step.kind == TL_STEP_WAIT && is_begun[at]) count--;
        else continue;
        is_begun[at] = (uint8_t)step.begins;
        if (count > most) most = count;
    }
    return most;
}

// Refuse a plan that begins what is not one call of one kernel; one that begins any call goes with no random
// hook and no dynamic nodes. Fused nodes have scratch, so they begin none.
static tl_result tli_check_begun(tl_run *run) {
    int32_t i;
    for (i = 0; i < run->plan.step_count; i++) {
        const tl_step step = tl_find_step(&run->plan, i);
        tli_cut cut = tli_find_cut(run, step.node);
        tli_rule rule = TLI_NO_RULE;
        if (!step.begins) continue;
        if (run->kernel_of[step.node] < 0 || cut.count < cut.total ||
            (step.kind == TL_STEP_BACKWARD && tli_count_piece_calls(run->graph, step.node) > 1))
            rule = TLI_RULE(BEGINS_ONE_KERNEL_CALL);
        if (run->desc.random) rule = TLI_RULE(BEGINS_RANDOM_HOOK);
#ifndef TL_NO_ONLINE
        if (run->real_bytes) rule = TLI_RULE(BEGINS_DYNAMIC_NODES);
#endif
        if (rule)
            return tli_fail_values(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), rule, (uint64_t)i,
                                   (uint64_t)step.node);
    }
    return TL_OK;
}

static void tli_free_begun(tl_run *run) {
    int32_t i;
    for (i = 0; i < run->begun_count; i++) tli_free_call(run->env, &run->begun[i].at.call);
    tli_release(run->env, run->begun);
    run->begun = NULL;
    run->begun_count = 0;
    TLI_INVARIANT(!run->begun_count);
}

// Room for the calls that are begun. operands, outputs: most of a node.
static tl_result tli_open_begun(tl_run *run, uint64_t operands, uint64_t outputs) {
    int32_t count = tli_count_begun(run), i;
    int is_there = 1;
    if (!count) return TL_OK;
    run->begun = (tli_begun *)tli_alloc_array(run->env, (uint64_t)count, sizeof *run->begun);
    run->begun_count = run->begun ? count : 0;
    for (i = 0; i < run->begun_count && is_there; i++)
        is_there = tli_alloc_call(run->env, operands, outputs, &run->begun[i].at.call);
    if (run->begun && is_there) return tli_check_begun(run);
    TLI_INVARIANT(run->begun_count == (run->begun ? count : 0));
    return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
