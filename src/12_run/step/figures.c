#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: figures --
//
// What a pass took beside what was planned: two counts that know nothing of each other, one by the simulator
// from the steps, one by the backend from claims. A pass in which they differ has failed.

#ifndef TL_ONLY_TABLES
static tl_result tli_run_mismatch(tl_run *run, tli_rule rule, uint64_t measured,
                                  uint64_t planned) {
    return tli_fail_values(run->env, TL_ERROR_MISMATCH, TLI_IN(RUN_PLAN), rule, measured, planned);
}

// What the run's arena in a tier takes; 0 without one.
static uint64_t tli_planned_taken_bytes(const tl_run *run, tl_tier tier) {
    return run->arenas[tier].block_count ? tli_taken_bytes(run, tier) : 0;
}

// The end of the highest place in a block of the device; 0 without an arena.
static uint64_t tli_planned_arena_bytes(const tl_run *run) {
    const tli_run_arena *arena = &run->arenas[TL_TIER_DEVICE];
    uint64_t highest = 0;
    int32_t k;
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on) return run->cache.high_bytes[run->cache.is_warm];
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) return run->hybrid.high_bytes;
#endif
    for (k = 0; k < arena->block_count; k++) highest = tli_larger_u64(highest, arena->blocks[k].bytes);
    return highest;
}

// Write down what the backend counted beside what was planned.
static void tli_report_pass(tl_run *run, const tl_account_counters *counters) {
    tl_run_report *report = &run->report;
    const tl_report *planned = tli_planned_pass(run);
    int32_t bank;
    report->planned_peak_bytes = planned->peak_bytes;
    report->planned_arena_bytes = tli_planned_arena_bytes(run);
    report->planned_host_peak_bytes = planned->host_peak_bytes;
    report->planned_cost = planned->cost;
    report->base_cost = tli_find_base_cost(run, planned->base_cost);
    report->measured_peak_bytes = tli_larger_u64(counters->peak_bytes[TL_TIER_DEVICE], run->before_bytes[0]);
    report->measured_host_peak_bytes = tli_larger_u64(counters->peak_bytes[TL_TIER_HOST], run->before_bytes[1]);
    report->measured_arena_bytes = 0;
    if (run->arenas[TL_TIER_DEVICE].block_count)
        report->measured_arena_bytes =
            tli_larger_u64(tli_larger_u64(counters->arena_bytes, run->before_bytes[2]), run->input_arena_bytes);
    report->taken_bytes = counters->peak_taken_bytes[TL_TIER_DEVICE];
    report->planned_taken_bytes = tli_planned_taken_bytes(run, TL_TIER_DEVICE);
    report->host_taken_bytes = counters->peak_taken_bytes[TL_TIER_HOST];
    report->planned_host_taken_bytes = tli_planned_taken_bytes(run, TL_TIER_HOST);
    for (bank = 0; bank < TL_MOST_BANKS; bank++) {
        int is_taken = run->arenas[TL_TIER_DEVICE].block_count != 0;
        report->planned_bank_bytes[bank] = is_taken ? tli_taken_in_bank(run, TL_TIER_DEVICE, bank, 0) : 0;
        report->taken_bank_bytes[bank] = counters->bank_taken_bytes[bank];
    }
    report->end_bytes = counters->live_bytes[TL_TIER_DEVICE];
#ifndef TL_NO_ONLINE
    if (run->is_online) report->eviction_count = run->online.eviction_count;
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) report->spared_count = run->planned.recompute_count - planned->recompute_count;
#endif
}

// Compare the bytes that the backend counted with the simulated ones: two independent counts.
static tl_result tli_check_pass(tl_run *run) {
    tl_run_report *report = &run->report;
    const tl_report *planned = tli_planned_pass(run);
    tl_account_counters counters;
    int32_t bank;
    tl_result result = (run->backend.check)(run->backend.self);
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(CHECK_FAILED));
    tli_measure_store(&run->store, 0, &counters);
    tli_report_pass(run, &counters);
    if (report->measured_peak_bytes != report->planned_peak_bytes)
        return tli_run_mismatch(run, TLI_RULE(PEAK_MEASURED_BYTES_PLANNED), report->measured_peak_bytes,
                                report->planned_peak_bytes);
    if (report->measured_host_peak_bytes != report->planned_host_peak_bytes)
        return tli_run_mismatch(run, TLI_RULE(HOST_PEAK_MEASURED_BYTES_PLANNED),
                                report->measured_host_peak_bytes,
                                report->planned_host_peak_bytes);
    if (report->measured_arena_bytes != report->planned_arena_bytes)
        return tli_run_mismatch(run, TLI_RULE(ARENA_MEASURED_BYTES_PLANNED), report->measured_arena_bytes,
                                report->planned_arena_bytes);
    if (run->arenas[TL_TIER_DEVICE].block_count && report->taken_bytes > report->planned_taken_bytes)
        return tli_run_mismatch(run, TLI_RULE(TAKEN_MEASURED_BYTES_PLANNED), report->taken_bytes,
                                report->planned_taken_bytes);
    for (bank = 0; bank < TL_MOST_BANKS && run->arenas[TL_TIER_DEVICE].block_count; bank++)
        if (report->taken_bank_bytes[bank] > report->planned_bank_bytes[bank])
            return tli_run_mismatch(run, TLI_RULE(BANK_MEASURED_BYTES_PLANNED), report->taken_bank_bytes[bank],
                                    report->planned_bank_bytes[bank]);
    if (run->arenas[TL_TIER_HOST].block_count && report->host_taken_bytes > report->planned_host_taken_bytes)
        return tli_run_mismatch(run, TLI_RULE(TAKEN_ON_HOST_MEASURED_BYTES_PLANNED), report->host_taken_bytes,
                                report->planned_host_taken_bytes);
    if (report->end_bytes != planned->end_bytes)
        return tli_run_mismatch(run, TLI_RULE(IN_USE_AFTER_PASS_MEASURED_BYTES), report->end_bytes,
                                planned->end_bytes);
    if (counters.live_bytes[TL_TIER_HOST] != planned->end_host_bytes)
        return tli_run_mismatch(run, TLI_RULE(IN_USE_ON_HOST_AFTER_PASS_MEASURED),
                                counters.live_bytes[TL_TIER_HOST], planned->end_host_bytes);
    return TL_OK;
}
#endif

TLI_IMPL void tl_measure_run(const tl_run *run, tl_run_report *report) {
    TL_ASSERT(run && report);
    *report = run->report;
#ifndef TL_ONLY_TABLES
    report->table_bytes = run->table_bytes;
#endif
}

#ifndef TL_NO_ONLINE
// The steps decided in the last online pass, as a plan.
static void tli_copy_record(const tl_run *run, tl_plan *plan) {
    const tl_report *report = &run->online.sim.report;
    plan->steps = run->online.record.steps;
    plan->step_count = run->online.record.count;
    plan->inference = run->inference;
    plan->repeat_count = run->repeat_count;
    plan->peak_bytes = report->peak_bytes;
    plan->host_peak_bytes = report->host_peak_bytes;
    plan->cost = report->cost;
    plan->base_cost = report->base_cost;
    if (plan->step_count == run->plan.step_count) return;   // with the places that the run takes
    plan->offsets = plan->host_offsets = NULL;              // a pass that is under way
    plan->offset_count = plan->host_offset_count = 0;
    plan->arena_bytes = plan->host_arena_bytes = 0;
    plan->blocks = NULL;
    plan->block_count = 0;
    plan->alignment_bytes = 0;
}
#endif

#ifndef TL_ONLY_TABLES
// A run keeps a plan of its own in narrow numbers; callers get plain ones.
static const tl_plan *tli_widen_plan(const tl_run *run) {
    tli_quiet quiet;
    if (!run->owns_plan || !run->plan.narrow) return &run->plan;
    if (run->wide->memory) return run->wide;
    quiet = tli_begin_quiet(run->env);
    (void)tli_join_plan(run->env, TLI_IN(INIT_RUN), &run->plan, run->wide);
    tli_end_quiet(&quiet, TL_OK);
    return run->wide->memory ? run->wide : &run->plan;
}
#else
static const tl_plan *tli_widen_plan(const tl_run *run) { return tli_plan_of(run); }
#endif

TLI_IMPL void tl_find_run_plan(const tl_run *run, tl_plan *plan) {
    TL_ASSERT(run && plan);
    *plan = *tli_widen_plan(run);
    plan->memory = NULL;
#ifndef TL_ONLY_TABLES
    plan->base_bytes = run->desc.base_bytes;
    if (tli_keeps_results(run)) {   // the run's own bytes are those of both plans
        plan->arena_bytes = run->planned.arena_bytes;
        plan->host_arena_bytes = run->planned.host_arena_bytes;
    }
#endif
#ifndef TL_NO_ONLINE
    if (run->is_online) tli_copy_record(run, plan);
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) tli_copy_figures(run, plan);
#endif
}

TLI_IMPL const tl_graph *tl_find_run_graph(const tl_run *run) {
    TL_ASSERT(run);
    return run->graph;
}
#endif  // TL_STRATEGY_IMPLEMENTATION
