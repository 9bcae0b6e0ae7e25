#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- several steps under way --
//
// Step j is opened only when step j - k is finished, k = in_flight. So what steps up to j - k have freed can be
// given away, and nothing that a step under way uses: no step waits for memory. What one reads or writes that
// another writes is found from their ranges; then it waits for the other.
//
//     steps        F 1    F 2    F 3    D 1    F 4          k = 3
//     under way    |------ F 1 ------|
//                         |-- F 2 --|
//                                |---- F 3 ----|
//                                              F 4 is opened when F 2 has ended, and yielded when
//                                              all that write what it reads have
//
// Two calls of one node are never under way together, whatever their ranges: so sums of parameter gradients,
// and whatever else belongs to a node, are made in the order of the steps.

#ifdef TLI_INVARIANTS
// Each step under way has the place of its index, and frees no more than there is room for.
static int tli_flights_hold(const tl_run *run) {
    int32_t i;
    if (!run->flights) return 1;
    if (run->flight < 0 || run->flight >= run->flight_count) return 0;
    for (i = 0; i < run->flight_count; i++) {
        const tli_step_state *at = i == run->flight ? &run->at : &run->flights[i].at;
        if (at->freed_count < 0 || at->freed_count > at->call.twice_count + 2) return 0;
        if (at->computing && at->event.index % run->flight_count != i) return 0;
    }
    return 1;
}
#endif

// Go on with the state of the flight at this place.
static void tli_choose_flight(tl_run *run, int32_t place) {
    if (!run->flights || place == run->flight) return;
    run->flights[run->flight].at = run->at;
    run->at = run->flights[place].at;
    run->flight = place;
    tli_run_choose_slot(run, run->at.last.slot);
    TLI_INVARIANT(tli_flights_hold(run));
}

// Go on with the state of a step that may be under way.
static void tli_choose_step(tl_run *run, int32_t index) {
    if (run->flights && index >= 0) tli_choose_flight(run, index % run->flight_count);
}

static int32_t tli_count_flights(const tl_run *run) { return run->flights ? run->flight_count : 1; }

// Give back what the step at hand has freed.
static tl_result tli_give_freed(tl_run *run) {
    tl_result first = TL_OK;
    int32_t i;
    for (i = 0; i < run->at.freed_count; i++) {
        tl_result result = tli_abandon(&run->store, &run->at.freed[i]);
        if (!first) first = result;
    }
    run->at.freed_count = 0;
    TLI_INVARIANT(!run->at.freed_count);
    return first;
}

// Give back what all steps have freed, at the end of a pass.
static tl_result tli_give_all_freed(tl_run *run) {
    tl_result first = TL_OK;
    int32_t i;
    for (i = 0; run->flights && i < run->flight_count; i++) {
        tl_result result;
        tli_choose_flight(run, i);
        result = tli_give_freed(run);
        if (!first) first = result;
    }
    run->defers = 0;
    TLI_INVARIANT(!run->defers && tli_flights_hold(run));
    return first;
}

// The caller has to finish a step first.
static tl_result tli_wait_for(tl_run *run, int32_t index) {
    run->waits_for = index;
    TLI_INVARIANT(index >= 0);
    return TL_NOT_READY;
}

static int tli_is_under_way(const tl_run *run, const tli_flight *flight) {
    return flight != &run->flights[run->flight] && flight->at.computing;
}

static int tli_accesses_conflict(const tl_access *a, const tl_access *b) {
    return (a->writes || b->writes) && tli_overlaps(a->range, b->range);
}

// The latest other step under way that must be finished before the accesses can be made; -1 = there is none.
static int32_t tli_find_conflict(const tl_run *run, const tl_access *accesses, int32_t count) {
    int32_t latest = -1, f, i, k;
    for (f = 0; run->flights && f < run->flight_count; f++) {
        const tli_flight *other = &run->flights[f];
        int is_met = 0;
        if (!tli_is_under_way(run, other) || other->at.event.index < latest) continue;
        for (i = 0; i < count && !is_met; i++)
            for (k = 0; k < other->at.call.access_count && !is_met; k++)
                is_met = tli_accesses_conflict(&accesses[i], &other->at.call.accesses[k]);
        if (is_met) latest = other->at.event.index;
    }
    return latest;
}

// The other step under way that calls a node; -1 = there is none.
static int32_t tli_find_node_flight(const tl_run *run, int32_t node) {
    int32_t f;
    for (f = 0; run->flights && f < run->flight_count; f++)
        if (tli_is_under_way(run, &run->flights[f]) && run->flights[f].at.last.node == node)
            return run->flights[f].at.event.index;
    return -1;
}

// The latest step under way beside the one at hand; -1 = there is none.
static int32_t tli_find_other_flight(const tl_run *run) {
    int32_t latest = -1, f;
    for (f = 0; run->flights && f < run->flight_count; f++)
        if (tli_is_under_way(run, &run->flights[f]) && run->flights[f].at.event.index > latest)
            latest = run->flights[f].at.event.index;
    return latest;
}

// The latest step under way; -1 = there is none.
static int32_t tli_find_latest_flight(const tl_run *run) {
    int32_t own = run->flights && run->at.computing ? run->at.event.index : -1;
    int32_t other = tli_find_other_flight(run);
    return own > other ? own : other;
}

// Take the place of the step that comes next, when the one that had it is finished, and any that calls its
// node: what belongs to a node, its saved bytes too, changes hands when a call has ended.
static tl_result tli_enter_flight(tl_run *run, const tl_step *step) {
    int32_t before = -1;
    if (!run->flights) return TL_OK;
    tli_choose_step(run, run->position);
    if (run->at.computing) return tli_wait_for(run, run->at.event.index);
    TLI_INVARIANT(tli_flights_hold(run) && run->flight == run->position % run->flight_count);
    if (step->kind <= TL_STEP_BACKWARD) before = tli_find_node_flight(run, step->node);
    return before >= 0 ? tli_wait_for(run, before) : tli_give_freed(run);
}

// -- several steps under way: preparing a run --

static void tli_free_call(tl_env *env, tli_call *call) {
    tli_release(env, call->operands);
    tli_release(env, call->access_of);
    tli_release(env, call->accesses);
    tli_release(env, call->writable);
    tli_release(env, call->hosts);
    tli_release(env, call->twice);
    tli_release(env, call->made);
    tli_zero(call, sizeof *call);
}

// Get the arrays of a call with at most so many operands and outputs. 0 = no memory.
static int tli_alloc_call(tl_env *env, uint64_t operands, uint64_t outputs, tli_call *call) {
    call->operands = (tl_operand *)tli_alloc_array(env, operands, sizeof *call->operands);
    call->access_of = (int32_t *)tli_alloc_array(env, operands, sizeof *call->access_of);
    call->accesses = (tl_access *)tli_alloc_array(env, operands, sizeof *call->accesses);
    call->writable = (uint8_t *)tli_alloc_array(env, operands, 1);
    call->hosts = (void **)tli_alloc_array(env, operands, sizeof *call->hosts);
    call->twice = (tli_held *)tli_alloc_array(env, outputs, sizeof *call->twice);
    call->made = (uint8_t *)tli_alloc_array(env, outputs, 1);
    call->twice_count = (int32_t)outputs;
    return call->operands && call->access_of && call->accesses && call->writable && call->hosts &&
           call->twice && call->made;
}

static void tli_free_flights(tl_run *run) {
    int32_t i;
    for (i = 0; run->flights && i < run->flight_count; i++) {
        tli_choose_flight(run, i);
        tli_free_call(run->env, &run->at.call);
        tli_release(run->env, run->at.freed);
        run->at.freed = NULL;
    }
    tli_free_call(run->env, &run->at.call);
    tli_release(run->env, run->flights);
    run->flights = NULL;
    TLI_INVARIANT(!run->flights);
}

// Refuse what is for one step at a time.
static tl_result tli_check_in_flight(tl_run *run) {
    tli_rule why = TLI_NO_RULE;
    if (run->in_flight <= 1) return TL_OK;
    if (run->is_online) why = TLI_RULE(IN_FLIGHT_NEEDS_A_PLAN);
    if (run->desc.random) why = TLI_RULE(IN_FLIGHT_RANDOM_HOOK);
#ifndef TL_NO_ONLINE
    if (run->real_bytes) why = TLI_RULE(IN_FLIGHT_DYNAMIC_NODES);
#endif
    return why ? tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), why) : TL_OK;
}

// Room for as many steps as can be under way together, of a plan with so many steps. operands, outputs: most of
// a node. What step i frees is at most its outputs, or their gradients, or second copies, and two more.
static tl_result tli_open_flights(tl_run *run, int32_t step_count, uint64_t operands, uint64_t outputs) {
    int32_t count = run->in_flight < step_count ? run->in_flight : step_count, i;
    int is_there;
    if (run->in_flight <= 1) return TL_OK;
    if (!count) count = 1;
    run->flights = (tli_flight *)tli_alloc_array(run->env, (uint64_t)count, sizeof *run->flights);
    is_there = run->flights != NULL;
    run->flight_count = is_there ? count : 0;
    run->flight = 0;
    for (i = 0; i < count && is_there; i++) {
        tli_choose_flight(run, i);
        run->at.freed = (tli_held *)tli_alloc_array(run->env, outputs + 2, sizeof *run->at.freed);
        is_there = run->at.freed && (!i || tli_alloc_call(run->env, operands, outputs, &run->at.call));
    }
    tli_choose_flight(run, 0);
    TLI_INVARIANT(!is_there || tli_flights_hold(run));
    if (is_there) return TL_OK;
    return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
