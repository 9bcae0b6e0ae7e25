#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- calls that one step begins and another ends --
//
//     steps          F 7 begin   F 2   B 5   W 7   F 8
//     call of F 7    |-----------------------|
//
// When the kernel has been called once, the call is set aside with its operands, mapped as they are. The W of
// its node calls the kernel again until it is ready, and closes the step as others are closed at once.

// A call that was set aside. calls are swapped with the run's, so that each keeps its arrays.
typedef struct tli_begun {
    tli_call     call;
    tl_step      last;
    tl_run_event event;
    tl_run_step  yielded;
    tl_kernel    kernel;       // of it
    uint64_t     high_bytes;
    int32_t      is_used;      // 0 = the place is free
    int32_t      is_ready;     // 1 = the kernel has carried it out
} tli_begun;

static void tli_swap_begun(tl_run *run, tli_begun *begun) {
    tli_call call = run->call;
    tl_step last = run->last;
    tl_run_event event = run->event;
    uint64_t high_bytes = run->high_bytes;
    run->call = begun->call;
    run->last = begun->last;
    run->event = begun->event;
    run->high_bytes = begun->high_bytes;
    begun->call = call;
    begun->last = last;
    begun->event = event;
    begun->high_bytes = high_bytes;
    tli_run_choose_slot(run, run->last.slot);
}

// The call that a step ends; NULL = none.
static tli_begun *tli_find_begun(const tl_run *run, const tl_step *step) {
    int32_t i;
    if (step->kind != TL_STEP_WAIT) return NULL;
    for (i = 0; i < run->begun_count; i++) {
        tli_begun *begun = &run->begun[i];
        if (begun->is_used && begun->last.node == step->node && begun->last.slot == step->slot) return begun;
    }
    return NULL;
}

// Set the call at hand aside: its kernel was called, and is_ready or not.
static void tli_set_aside(tl_run *run, const tl_run_step *step, int is_ready) {
    tli_begun *begun = run->begun;
    while (begun->is_used) begun++;     // there is a place for each call that the plan begins
    begun->yielded = *step;
    begun->kernel = *step->kernel;
    begun->yielded.kernel = &begun->kernel;
    begun->last = run->last;
    begun->is_used = 1;
    begun->is_ready = is_ready;
    tli_swap_begun(run, begun);
    run->computing = TLI_COMPUTING_NOT;
}

// Whether a call that was begun is not ready.
static int tli_has_begun(const tl_run *run) {
    int32_t i;
    for (i = 0; i < run->begun_count; i++)
        if (run->begun[i].is_used && !run->begun[i].is_ready) return 1;
    return 0;
}

// Most calls under way of a plan that was simulated.
static int32_t tli_count_begun(const tl_plan *plan) {
    int32_t most = 0, count = 0, i, k;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step step = tl_find_step(plan, i);
        if (step.begins && ++count > most) most = count;
        if (step.kind != TL_STEP_WAIT || step.output != TL_ALL_OUTPUTS || !count) continue;
        for (k = i - 1; k >= 0; k--) {    // the step before it on the same node
            const tl_step before = tl_find_step(plan, k);
            if (before.node != step.node || before.slot != step.slot) continue;
            count -= before.begins;
            break;
        }
    }
    return most;
}

static void tli_free_begun(tl_run *run) {
    int32_t i;
    for (i = 0; i < run->begun_count; i++) tli_free_call(run->env, &run->begun[i].call);
    tli_release(run->env, run->begun);
    run->begun = NULL;
    run->begun_count = 0;
}

// Room for the calls that are begun. operands, outputs: most of a node.
static tl_result tli_open_begun(tl_run *run, uint64_t operands, uint64_t outputs) {
    int32_t count = tli_count_begun(&run->plan), i;
    int is_there = 1;
    if (!count) return TL_OK;
    run->begun = (tli_begun *)tli_alloc_array(run->env, (uint64_t)count, sizeof *run->begun);
    run->begun_count = run->begun ? count : 0;
    for (i = 0; i < run->begun_count && is_there; i++)
        is_there = tli_alloc_call(run->env, operands, outputs, &run->begun[i].call);
    if (run->begun && is_there) return TL_OK;
    return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
}
#endif  // TL_STRATEGY_IMPLEMENTATION
