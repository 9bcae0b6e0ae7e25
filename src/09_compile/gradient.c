#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// ============================================================================
// [9] COMPILE (implementation)
//
// This part: what the gradient and the memory of a strategy ask of one graph:
//
//     interval n            every n-th node is kept
//     memory minimal-peak   the order of the fewest bytes; where that exceeds the budget, as below
//     checkpointed, or      the cheapest plan within the budget
//     forward only in one
//     else                  all that backward reads is kept
//
// Compiled plans and runs of a strategy come here, so both give the same plan.
// ============================================================================

typedef struct tli_asked {
    tl_env          *env;
    tli_function     function;
    const tl_graph  *graph;
    const tl_gradient *gradient;    // NULL = no strategy: all is kept
    tl_memory        memory;
    int32_t          inference;
    int32_t          in_arena;      // 1 = plans that come with places
    const tl_device *device;        // may be NULL
    tli_budget       live, arena;   // what binds the one kind of plan, and the other
    uint64_t         alignment_bytes, block_bytes;
    tl_codec         codec;           // f32 tensors may be compressed by it, where forwards may run again
    const uint8_t   *formats;         // [tensors] tl_format; NULL = all f32
    int32_t          in_flight;     // steps under way together; 0 = 1
    int32_t          is_trial;      // 1 = one plan of many: little work for the least budget
    uint64_t         work_limit;    // of tl_plan_remat and tl_plan_order; 0 = their defaults
    int            (*progress)(const tl_remat_progress *progress, void *user);
    void            *user;
} tli_asked;

// Whether forwards may run again where that makes the plan fit.
static int tli_may_run_again(const tli_asked *a) {
    return a->gradient && (a->gradient->checkpointed || (a->inference && a->live.is_limited));
}

// Every n-th node is kept.
static tl_result tli_plan_spaced(const tli_asked *a, tl_plan *plan) {
    tl_result result = tli_plan_interval(a->env, a->graph, a->gradient->checkpoint_interval, plan);
    return result == TL_ERROR_NO_MEMORY
               ? tli_fail(a->env, result, a->function, TLI_RULE(KEPT_SET_NO_MEMORY)) : result;
}

// The cheapest plan within the budget; lossless as in tl_remat_desc.
static tl_result tli_plan_remat_asked(const tli_asked *a, const uint8_t *lossless, tl_plan *plan,
                                      tl_remat_report *report) {
    tl_remat_desc remat;
    tli_zero(&remat, sizeof remat);
    remat.codec = a->inference ? TL_CODEC_NONE : a->codec;
    remat.lossless = lossless;
    remat.graph = a->graph;
    remat.inference = a->inference;
    remat.device = a->device;
    remat.alignment_bytes = a->alignment_bytes;
    remat.block_bytes = a->block_bytes;
    remat.work_limit = a->work_limit;
    if (a->in_arena) remat.in_flight = a->in_flight;
    remat.progress = a->progress;
    remat.user = a->user;
    if (a->in_arena) return tli_plan_remat_in_arena(a->env, &remat, &a->arena, a->is_trial, plan, report);
    return tli_plan_remat_as(a->env, &remat, &a->live, TLI_REMAT_MOST_WORK,
                             a->is_trial ? TLI_REMAT_TRIAL : TLI_REMAT_HOLDS, plan, report);
}

// The cheapest plan within the budget. Tensors that are not of f32 are not compressed.
static tl_result tli_plan_cheapest(const tli_asked *a, tl_plan *plan, tl_remat_report *report) {
    uint8_t *lossless;
    tl_result result;
    int32_t i;
    if (!a->codec || !a->formats) return tli_plan_remat_asked(a, NULL, plan, report);
    lossless = (uint8_t *)tli_alloc_array(a->env, (uint64_t)a->graph->tensor_count, 1);
    if (!lossless) return tli_fail(a->env, TL_ERROR_NO_MEMORY, a->function, TLI_RULE(NO_MEMORY_TO_PLAN));
    for (i = 0; i < a->graph->tensor_count; i++) lossless[i] = a->formats[i] != TL_FORMAT_F32;
    result = tli_plan_remat_asked(a, lossless, plan, report);
    tli_release(a->env, lossless);
    return result;
}

// Give a plan that was placed for one step at a time the places for several.
static tl_result tli_place_in_flight(const tli_asked *a, tl_plan *plan) {
    tl_places_desc places;
    tl_device device;
    tl_result result;
    if (a->in_flight <= 1) return TL_OK;
    tli_zero(&device, sizeof device);
    if (a->device) device = *a->device;
    device.alignment_bytes = a->alignment_bytes;
    tli_zero(&places, sizeof places);
    places.graph = a->graph;
    places.device = &device;
    places.work_limit = a->work_limit;
    plan->in_flight = a->in_flight;
    result = tl_plan_places(a->env, &places, plan, NULL);
    if (result) tl_free_plan(a->env, plan);
    return result;
}

// The order of the least peak. Where that exceeds the budget and forwards may run again, a plan in which they
// do; where there is none either, the order stays if it takes less than what that would take, and is refused
// by the caller.
static tl_result tli_plan_fewest(const tli_asked *a, tl_plan *plan, tl_remat_report *report) {
    tl_order_desc order;
    tl_order_report found;
    tl_plan ordered;
    tl_result result;
    tli_quiet quiet;
    tli_zero(&order, sizeof order);
    order.graph = a->graph;
    order.inference = a->inference;
    order.alignment_bytes = a->alignment_bytes;
    order.block_bytes = a->block_bytes;
    order.work_limit = a->work_limit;
    result = tl_plan_order(a->env, &order, plan, &found);
    if (!result) result = tli_place_in_flight(a, plan);
    report->work = found.work;
    if (result || !tli_may_run_again(a) || (!a->arena.is_over && plan->arena_bytes <= a->arena.bytes))
        return result;
    ordered = *plan;
    quiet = tli_begin_quiet(a->env);
    result = tli_plan_cheapest(a, plan, report);
    report->work += found.work;
    if (result == TL_ERROR_INFEASIBLE &&
        tli_add_base(&a->arena, ordered.arena_bytes) <= report->least_budget_bytes) {
        *plan = ordered;
        result = TL_OK;
    } else {
        tl_free_plan(a->env, &ordered);
    }
    tli_end_quiet(&quiet, result);
    return result;
}

// Make the plan. report: zeroes but for the work, unless tl_plan_remat made it or was refused.
static tl_result tli_plan_asked(const tli_asked *a, tl_plan *plan, tl_remat_report *report) {
    tli_zero(report, sizeof *report);
    if (a->gradient && a->gradient->checkpoint_interval) return tli_plan_spaced(a, plan);
    if (a->gradient && a->memory == TL_MEMORY_MINIMAL_PEAK) return tli_plan_fewest(a, plan, report);
    if (tli_may_run_again(a)) return tli_plan_cheapest(a, plan, report);
    return tl_plan_keep_all(a->env, a->graph, a->inference, plan);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
