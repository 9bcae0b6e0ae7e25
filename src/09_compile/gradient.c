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
//     forward only with
//     a budget
//     else                  all that backward reads is kept
//
// Search for a run is worth what it saves over the training steps to come, so without a work limit it goes on
// in rounds of more and more elementary steps:
//
//     work      1   4      16            64 million steps, ...
//     gap       |---|------|-------------|
//               3 %  1 %    0.2 %: over 1000 training steps of 10 ms that is 20 ms; an eighth of it is less
//                           than the next round takes
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
    tli_budget       live, arena;   // of plans without places; of plans with places
    uint64_t         alignment_bytes, block_bytes;
    tl_codec         codec;           // f32 tensors may be compressed by it, where forwards may run again
    const uint8_t   *formats;         // [tensors] tl_format; NULL = all f32
    int32_t          in_flight;     // steps under way together; 0 = 1
    int32_t          is_trial;      // 1 = one plan of many: little work for the least budget
    uint64_t         work_limit;    // of tl_plan_remat and tl_plan_order; 0 = their defaults
    int            (*progress)(const tl_remat_progress *progress, void *user);
    void            *user;
    tl_remat_pool   *pool;          // of the caller; NULL = none
    uint64_t         expected_steps;  // > 0: without a work limit, search must pay in so many training steps
    int32_t          costs_are_ns;
} tli_asked;

// -- what search is worth --

#define TLI_WORTH_FIRST UINT64_C(1000000)   // elementary steps of the first round, or
#define TLI_WORTH_NODE UINT64_C(20000)      // so many a node, if that is more; each later one has
#define TLI_WORTH_GROWTH 4                  // times as many
#define TLI_WORTH_SHARE 8                   // a round takes at most one part in so many of what it could save
#define TLI_WORTH_ENOUGH 1000               // a gap of one part in so many is not searched any more
#define TLI_WORTH_CALL_NS UINT64_C(10000)   // assumed of a forward or backward whose ns are not known, and
#define TLI_WORTH_BYTES 10                  // 1 ns more for so many bytes of its outputs
#define TLI_WORTH_MOST_NS (UINT64_C(1) << 62)

// What the caller is told of search, and when it ends for a run.
typedef struct tli_worth {
    const tli_asked *asked;
    uint64_t step_ns, base_cost;   // of a pass with nothing run again; step_ns 0 = the work limit alone counts
    uint64_t before;               // work of the rounds before
    int32_t  is_round;             // 1 = a round, judged before it began; 0 = all of the planner's work, judged
                                   // while it goes on
    uint64_t found_at;             // work of this planner when it last had no plan
    int32_t  stopped;              // 1 = progress asked to stop
    uint64_t told;          // work that the caller's progress function knows of
} tli_worth;

// a * b / c, of which a and c may lose their low bits; at most TLI_WORTH_MOST_NS.
static uint64_t tli_worth_share(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t product;
    while (!tli_mul_u64(a, b, &product)) {
        a >>= 1;
        c >>= 1;
        if (!c) return TLI_WORTH_MOST_NS;
    }
    return product / (c ? c : 1) < TLI_WORTH_MOST_NS ? product / (c ? c : 1) : TLI_WORTH_MOST_NS;
}

static tli_worth tli_worth_of(const tli_asked *asked) {
    const tl_graph *graph = asked->graph;
    tli_worth w;
    uint64_t bytes = 0, calls = 0;
    int32_t id;
    tli_zero(&w, sizeof w);
    w.asked = asked;
    if (asked->work_limit || !asked->expected_steps) return w;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        uint64_t count = node->is_input ? 0 : node->has_grad && !asked->inference ? 2 : 1;
        int32_t i;
        calls += count;
        if (!node->is_input) w.base_cost = tli_add_capped(w.base_cost, node->fwd_cost);
        if (count == 2) w.base_cost = tli_add_capped(w.base_cost, node->bwd_cost);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            bytes = tli_add_capped(bytes, count * (graph->outputs[i].bytes / TLI_WORTH_BYTES));
    }
    w.step_ns = asked->costs_are_ns ? w.base_cost : tli_add_capped(calls * TLI_WORTH_CALL_NS, bytes);
    if (!w.step_ns) w.step_ns = 1;
    return w;
}

// The nanoseconds that all of a gap costs over the expected steps.
static uint64_t tli_worth_ns(const tli_worth *w, uint64_t cost, uint64_t bound) {
    uint64_t gap = cost > bound ? cost - bound : 0;
    if (!w->asked->costs_are_ns) gap = tli_worth_share(gap, w->step_ns, w->base_cost);
    return tli_worth_share(gap, w->asked->expected_steps, 1);
}

// Whether so much work is worth its time, of 2.5 ns a step.
static int tli_is_worth(const tli_worth *w, uint64_t cost, uint64_t bound, uint64_t work) {
    if (cost <= bound || cost - bound <= bound / TLI_WORTH_ENOUGH) return 0;
    return work / 2 * 5 <= tli_worth_ns(w, cost, bound) / TLI_WORTH_SHARE;
}

// The progress function of all planners of a run.
static int tli_watch_worth(const tl_remat_progress *progress, void *user) {
    tli_worth *w = (tli_worth *)user;
    tl_remat_progress now = *progress;
    now.work += w->before;
    if (now.work < w->told) now.work = w->told;     // a round may end with less than it told
    w->told = now.work;
    if (now.work_limit <= UINT64_MAX - w->before) now.work_limit += w->before;
    if (now.work_limit < now.work) now.work_limit = now.work;
    if (!w->stopped && w->asked->progress && (w->asked->progress)(&now, w->asked->user)) w->stopped = 1;
    if (!now.cost) w->found_at = progress->work;
    if (w->stopped || !w->step_ns || !now.cost || progress->work < w->found_at + TLI_WORTH_FIRST)
        return w->stopped;
    return !tli_is_worth(w, now.cost, now.bound_cost, w->is_round ? 0 : progress->work - w->found_at);
}

static int tli_needs_watch(const tli_worth *w) { return w->step_ns || w->asked->progress; }

static int tli_watch_order(const tl_order_progress *progress, void *user) {
    tl_remat_progress now;
    tli_zero(&now, sizeof now);
    now.work = progress->work;
    now.work_limit = progress->work_limit;
    return tli_watch_worth(&now, user);
}

// -- what is asked of a graph --

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

// A plan of tl_plan_remat, with so much work; lossless as in tl_remat_desc.
static tl_result tli_plan_remat_asked(tli_worth *w, const uint8_t *lossless, tl_remat_pool *pool,
                                      uint64_t work_limit, tl_plan *plan, tl_remat_report *report) {
    const tli_asked *a = w->asked;
    tl_remat_desc remat;
    tli_zero(&remat, sizeof remat);
    remat.codec = a->inference ? TL_CODEC_NONE : a->codec;
    remat.lossless = lossless;
    remat.graph = a->graph;
    remat.inference = a->inference;
    remat.device = a->device;
    remat.alignment_bytes = a->alignment_bytes;
    remat.block_bytes = a->block_bytes;
    remat.work_limit = work_limit;
    remat.pool = pool;
    if (a->in_arena) remat.in_flight = a->in_flight;
    if (tli_needs_watch(w)) remat.progress = tli_watch_worth;
    remat.user = w;
    if (a->in_arena) return tli_plan_remat_in_arena(a->env, &remat, &a->arena, a->is_trial, plan, report);
    return tli_plan_remat_as(a->env, &remat, &a->live, TLI_REMAT_MOST_WORK,
                             a->is_trial ? TLI_REMAT_TRIAL : TLI_REMAT_HOLDS, plan, report);
}

// Keep the cheaper one of two plans, and the higher of their bounds. best: no steps = none yet.
static void tli_keep_cheaper(tl_env *env, tl_plan *best, tl_remat_report *report, tl_plan *plan,
                             const tl_remat_report *found) {
    uint64_t bound = tli_larger_u64(best->bound_cost, plan->bound_cost);
    int is_better = !best->step_count || plan->cost < best->cost;
    if (is_better) {
        tl_free_plan(env, best);
        *best = *plan;
        *report = *found;
    } else {
        tl_free_plan(env, plan);
    }
    best->bound_cost = report->bound_cost = bound < best->cost ? bound : best->cost;
    report->proven = best->cost == best->bound_cost;
}

// Rounds of growing work in one pool, as long as the next one is worth it. Where no round finds a plan, all of
// the planner's work finds the least budget: in no pool but the caller's, so that it depends on nothing else.
static tl_result tli_plan_rounds(tli_worth *w, const uint8_t *lossless, tl_plan *plan,
                                 tl_remat_report *report) {
    const tli_asked *a = w->asked;
    tl_remat_pool *own = NULL;
    tl_remat_report found;
    tl_plan best, next;
    uint64_t work = TLI_WORTH_NODE * (uint64_t)a->graph->node_count;
    tl_result result = a->pool ? TL_OK : tl_init_remat_pool(a->env, &own);
    tli_zero(&best, sizeof best);
    if (work < TLI_WORTH_FIRST) work = TLI_WORTH_FIRST;
    if (work > TLI_REMAT_LEAST_ROUND) work = TLI_REMAT_LEAST_ROUND;
    w->is_round = 1;
    for (; !result && !w->stopped && work < TLI_REMAT_MOST_WORK; work *= TLI_WORTH_GROWTH) {
        if (best.step_count && !tli_is_worth(w, best.cost, best.bound_cost, work)) break;
        result = tli_plan_remat_asked(w, lossless, a->pool ? a->pool : own, work, &next, &found);
        w->before += found.work;
        if (!result) tli_keep_cheaper(a->env, &best, report, &next, &found);
        else *report = found;
        if (result != TL_ERROR_INFEASIBLE) continue;
        if (best.step_count) { result = TL_OK; break; }
        if (!w->stopped && !found.proven && work < TLI_REMAT_LEAST_ROUND / TLI_WORTH_GROWTH) result = TL_OK;
    }
    tl_free_remat_pool(own);
    w->is_round = 0;
    w->found_at = 0;
    if (result == TL_ERROR_INFEASIBLE && !w->stopped) {
        result = tli_plan_remat_asked(w, lossless, a->pool, 0, &best, report);
        w->before += report->work;
    }
    report->work = w->before;
    *plan = best;
    if (result) tl_free_plan(a->env, plan);
    return result;
}

// The cheapest plan, in rounds where search is for expected_steps. Rounds that fail on the way to a plan leave
// no error.
static tl_result tli_plan_within(tli_worth *w, const uint8_t *lossless, tl_plan *plan,
                                 tl_remat_report *report) {
    const tli_asked *a = w->asked;
    tli_quiet quiet;
    tl_result result;
    if (!w->step_ns) return tli_plan_remat_asked(w, lossless, a->pool, a->work_limit, plan, report);
    quiet = tli_begin_quiet(a->env);
    result = tli_plan_rounds(w, lossless, plan, report);
    tli_end_quiet(&quiet, result);
    return result;
}

// The cheapest plan within the budget. Tensors that are not of f32 are not compressed.
static tl_result tli_plan_cheapest(const tli_asked *a, tl_plan *plan, tl_remat_report *report) {
    tli_worth w = tli_worth_of(a);
    uint8_t *lossless = NULL;
    tl_result result;
    int32_t i;
    if (!a->codec || !a->formats) return tli_plan_within(&w, NULL, plan, report);
    lossless = (uint8_t *)tli_alloc_array(a->env, (uint64_t)a->graph->tensor_count, 1);
    if (!lossless) return tli_fail(a->env, TL_ERROR_NO_MEMORY, a->function, TLI_RULE(NO_MEMORY_TO_PLAN));
    for (i = 0; i < a->graph->tensor_count; i++) lossless[i] = a->formats[i] != TL_FORMAT_F32;
    result = tli_plan_within(&w, lossless, plan, report);
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
// do. Where there is none either, the order stays if it takes no more than the least budget of such a plan; the
// caller refuses it then.
static tl_result tli_plan_fewest(const tli_asked *a, tl_plan *plan, tl_remat_report *report) {
    tl_order_desc order;
    tl_order_report found;
    tl_plan ordered;
    tl_result result;
    tli_quiet quiet;
    tli_worth w = tli_worth_of(a);
    tli_zero(&order, sizeof order);
    order.graph = a->graph;
    order.inference = a->inference;
    order.alignment_bytes = a->alignment_bytes;
    order.block_bytes = a->block_bytes;
    order.work_limit = a->work_limit;
    if (a->progress) order.progress = tli_watch_order;
    order.user = &w;
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

// Make the plan. report: zeroes but for the work, unless tl_plan_remat made the plan or found none.
static tl_result tli_plan_asked(const tli_asked *a, tl_plan *plan, tl_remat_report *report) {
    tli_zero(report, sizeof *report);
    if (a->gradient && a->gradient->checkpoint_interval) return tli_plan_spaced(a, plan);
    if (a->gradient && a->memory == TL_MEMORY_MINIMAL_PEAK) return tli_plan_fewest(a, plan, report);
    if (tli_may_run_again(a)) return tli_plan_cheapest(a, plan, report);
    return tl_plan_keep_all(a->env, a->graph, a->inference, plan);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
