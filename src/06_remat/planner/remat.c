#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- remat: the planner, made of the parts above --
//
//     part 1   part 2   part 3 ...     Parts run in turn, each with a share of the work that is left, and
//        |        |        |           offer their plans to the pool. Rounds of growing work follow until the
//        v        v        v           best plan is proven optimal, or near enough, or the work is used up.
//     ( pool: plans, bounds, floor )
//
// If no part finds a plan within the budget, other parts, the ladder, search the least budget. They depend on
// the bytes of the graph and the class of its plans alone, and have a pool and work of their own. So every call
// names the same least budget, and a call that asks for it gets the plan behind it. A plan that takes less than
// that is no answer: before a plan is returned, the ladder is climbed until it finds one of as few bytes.
//
// With a host tier or a codec, the plan without copies is made first, then the search with fetches and
// expansions improves it.

// The first round takes TLI_REMAT_WORK steps times the square of the number of nodes, but no less and no more
// than the next two. Without a limit of the caller, rounds go on to TLI_REMAT_MOST_WORK steps in all while the
// gap is larger than one part in TLI_REMAT_ENOUGH, or plans still get cheaper. Where it is smaller at the end,
// and the first round took less than TLI_REMAT_MOST_ROUND, the bound gets as much again. A step is 2 to 3 ns.
#define TLI_REMAT_WORK UINT64_C(4000)
#define TLI_REMAT_LEAST_ROUND UINT64_C(30000000)
#define TLI_REMAT_MOST_ROUND UINT64_C(250000000)
#define TLI_REMAT_MOST_WORK UINT64_C(700000000)
#define TLI_REMAT_ENOUGH 1000
#define TLI_REMAT_FAR 25   // the gap, as one part in so many, above which small graphs get beams
#define TLI_REMAT_LARGE 20000  // nodes, above which one search is open at a time
#define TLI_REMAT_SOON_NODE UINT64_C(1024)  // the work of tli_remat_ladder_soon for each node, beside a share
#define TLI_REMAT_SOON 16  // where the first parts of the ladder are enough, each gets one part in so many
#define TLI_REMAT_LATE 50  // the gap, as one part in so many, up to which the bound may get all that is left
#define TLI_REMAT_PATIENCE 16  // but one part in so many of that where it is not raised

// What a call answers with. WITHIN: a plan within the budget, or nothing. The others name the least budget
// where there is no such plan. TRIAL: its search gets a quarter of the work limit. ANY: all the work that it
// takes. HOLDS: that too, and no plan that takes less than the least budget is an answer.
typedef enum tli_remat_answers {
    TLI_REMAT_WITHIN, TLI_REMAT_TRIAL, TLI_REMAT_ANY, TLI_REMAT_HOLDS
} tli_remat_answers;

typedef struct tli_remat {
    tl_env          quiet;        // allocator of the caller's env, without its log: parts may fail
    const tl_graph *graph;
    uint64_t        budget;       // without the base
    const tl_device *device;
    uint64_t        host_budget;  // 0 = no host tier
    tl_codec        codec;        // 0 = nothing is compressed
    const uint8_t  *lossless;     // [tensors] 1 = is not compressed; NULL = all may be
    tl_remat_pool  *pool;         // gets the plans
    uint64_t        work, work_limit, round_end, bound, floor;
    uint64_t        reserve;      // work kept for what follows the ladder; on it, for the part with copies
    uint64_t        least;        // the least budget that was found; 0 = it was not searched
    uint64_t        enough;       // of a ladder: it ends with a plan of at most so many bytes
    uint64_t        most_ladder;  // the most work of a ladder
    int32_t         inference, node, floor_node;
    tl_remat_form   form;
    int32_t         is_over;      // 1 = the base alone exceeds the limit
    int32_t         is_default;   // 1 = the caller gave no work limit: a small gap is enough
    int32_t         holds_least;  // 1 = no plan below the least budget is an answer
    int32_t         is_first;     // 1 = the first parts of the ladder are enough
    int32_t         is_within;    // 1 = a plan within the budget is wanted, or none: no ladder
    int32_t         alone;        // 1 = a plan without copies is being made: host_budget and codec are 0
    int32_t         none;         // 1 = it is proven that no plan fits
    int32_t         bound_is_stuck;  // 1 = its last work did not raise it
    int32_t         search_is_stuck; // 1 = its last work found nothing
    int32_t         bound_was_late;  // 1 = it got the work that follows the rounds, or shall get none
    int32_t         is_long_chain;   // 1 = the graph has many stages, which are most of its calls
    int32_t         chain_turns;     // how often the chain optimum was computed
    int32_t         has_leaves;      // 1 = it was computed with leaves in fewer bytes (chain/stages.c)
    int32_t         round;
    int32_t         uncountable;  // 1 = bytes or costs are too large for the search
    int32_t         is_unpriced;  // 1 = the cost of the plan of the least budget does not fit 64 bits
    tli_remat_watch watch;
    tli_sequence_search      search;
} tli_remat;

// The best plan so far; NULL = none.
static const tl_plan *tli_remat_best(const tli_remat *r) {
    return r->is_over ? NULL : tli_pool_find(r->pool, r->budget);
}

// Count the work that a part has done.
static void tli_remat_add_work(tli_remat *r, uint64_t work) {
    r->work += work;
    r->watch.before = r->work;
    if (r->work > r->watch.now.work) r->watch.now.work = r->work;
}

// The work that is left of this round, less the reserve; 0 after progress asked to stop.
static uint64_t tli_remat_left(const tli_remat *r) {
    uint64_t end = r->round_end > r->reserve ? r->round_end - r->reserve : 0;
    return r->watch.stopped || r->work >= end ? 0 : end - r->work;
}

// Whether plans may have copies, on the host or compressed.
static int tli_remat_has_copies(const tli_remat *r) { return r->host_budget > 0 || r->codec; }

// Note the cost of the best plan for the next call of progress.
static void tli_remat_tell(tli_remat *r) {
    const tl_plan *best = tli_remat_best(r);
    if (best && (!r->watch.now.cost || best->cost < r->watch.now.cost)) r->watch.now.cost = best->cost;
}

// Give a simulated plan to the pool.
static tl_result tli_remat_offer(tli_remat *r, tl_plan *plan) {
    tl_result result = tli_pool_offer(r->pool, &r->quiet, plan);
    tli_remat_tell(r);
    return result;
}

// Simulate steps and offer the plan. Steps that the simulator refuses are ignored.
static tl_result tli_remat_offer_steps(tli_remat *r, tli_steps *steps) {
    tl_plan plan;
    tl_result result;
    tli_zero(&plan, sizeof plan);
    result = tli_finish_plan(steps, TLI_IN(PLAN_REMAT), r->graph, r->inference, &plan);
    if (!result && tli_remat_has_copies(r))
        result = tli_measure(&r->quiet, TLI_IN(PLAN_REMAT), r->graph, r->device, 1, &plan);
    if (!result && plan.host_peak_bytes <= r->host_budget) result = tli_remat_offer(r, &plan);
    tl_free_plan(&r->quiet, &plan);
    return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
}

static int tli_remat_is_done(const tli_remat *r) {
    const tl_plan *best = tli_remat_best(r);
    return best && best->cost <= r->bound;
}

// Whether the best plan costs at most one part in so many more than the bound.
static int tli_remat_is_within(const tli_remat *r, uint64_t parts) {
    const tl_plan *best = tli_remat_best(r);
    return best && r->bound && best->cost - r->bound <= r->bound / parts;
}

static tl_result tli_remat_raise_bound(tli_remat *r, uint64_t bound) {
    if (bound <= r->bound) return TL_OK;
    r->watch.now.bound_cost = r->bound = bound;
    return r->alone ? TL_OK : tli_pool_add_bound(r->pool, r->budget, bound);
}

static void tli_remat_raise_floor(tli_remat *r, uint64_t floor, int32_t node) {
    if (floor <= r->floor) return;
    r->floor = floor;
    r->floor_node = node;
    if (!r->alone) tli_pool_raise_floor(r->pool, floor, node);
}

// Note that no plan fits, and what follows for the least budget.
static tl_result tli_remat_rule_out(tli_remat *r) {
    r->none = 1;
    if (!r->is_over) tli_remat_raise_floor(r, r->budget + 1, -1);
    return TL_OK;
}

// -- remat: parts that find plans or bounds at the budget --

static int tli_remat_always(const tli_remat *r) { (void)r; return 1; }
#ifndef TL_NO_OFFLOAD
static int tli_remat_has_codec(const tli_remat *r) { return r->codec != TL_CODEC_NONE; }
static int tli_remat_has_host_alone(const tli_remat *r) { return r->host_budget > 0 && !r->codec; }
#endif
static int tli_remat_trains(const tli_remat *r) { return !r->inference; }

// More work raises the bound, as far as is known: the last work did.
static int tli_remat_may_raise(const tli_remat *r) { return !r->bound_is_stuck; }

static int tli_remat_is_equal_chain(const tli_remat *r) {
    return !r->inference && !r->is_over && tli_is_revolve_chain(r->graph);
}

static tl_result tli_remat_keep_all(tli_remat *r, uint64_t limit) {
    tl_plan plan;
    tl_result result = tl_plan_keep_all(&r->quiet, r->graph, r->inference, &plan);
    (void)limit;
    if (!result) result = tli_remat_offer(r, &plan);
    tl_free_plan(&r->quiet, &plan);
    return result;
}

// Equal layers: plan the optimum in closed form.
static tl_result tli_remat_try_revolve(tli_remat *r, uint64_t limit) {
    tli_revolve_bytes found = tli_find_slots(r->graph, r->budget);
    tli_steps steps;
    tl_result result;
    (void)limit;
    if (!found.slot_count) {
        tli_remat_raise_floor(r, found.floor, r->graph->node_count - 1);
        return TL_OK;
    }
    result = tli_revolve(&r->quiet, r->graph, found.slot_count, &steps);
    if (result) { tli_release(&r->quiet, steps.steps); return result; }
    tli_remat_add_work(r, (uint64_t)r->graph->node_count + TLI_REVOLVE_WORK * (uint64_t)steps.count);
    result = tli_remat_offer_steps(r, &steps);
    return result || !tli_remat_best(r) ? result : tli_remat_raise_bound(r, tli_remat_best(r)->cost);
}

// The least working set, and the bound without search.
static tl_result tli_remat_try_floor(tli_remat *r, uint64_t limit) {
    uint64_t work = 0, floor, bound = 0;
    int32_t node;
    tl_result result = tli_remat_floor(&r->quiet, r->graph, r->inference, tli_remat_has_copies(r),
                                       &floor, &node, &work);
    (void)limit;
    if (result) return result;
    tli_remat_add_work(r, work);
    tli_remat_raise_floor(r, floor, node);
    if (r->floor > r->budget || r->is_over) return tli_remat_rule_out(r);
    work = 0;
    result = tli_remat_bound(&r->quiet, r->graph, UINT64_MAX, r->inference, &r->watch, 0, &bound, &work);
    tli_remat_add_work(r, work);
    return result ? result : tli_remat_raise_bound(r, bound);
}

static tl_result tli_remat_try_exact(tli_remat *r, uint64_t limit) {
    tli_steps steps = tli_steps_of(&r->quiet);
    uint64_t cost, bound, work = 0;
    int32_t proven;
    tl_result result = tli_remat_exact(&r->quiet, r->graph, r->budget, r->inference, &r->watch,
                                       r->graph->node_count > 64 ? limit / 8 : limit / 2, &steps, &cost, &bound,
                                       &proven, &work);
    tli_remat_add_work(r, work);
    if (!result) result = tli_remat_raise_bound(r, bound);
    if (!result && proven) return tli_remat_offer_steps(r, &steps);
    tli_release(&r->quiet, steps.steps);
    return result == TL_ERROR_INFEASIBLE ? tli_remat_rule_out(r) : result;
}

// Close the search of a large graph, which takes too much memory beside another one or the bound.
// tli_remat_improve opens it again.
static void tli_remat_make_room(tli_remat *r) {
    if (r->graph->node_count > TLI_REMAT_LARGE) tli_search_close(&r->search);
}

static tl_result tli_remat_bound_alone(tli_remat *r, uint64_t limit) {
    uint64_t bound, work = 0, before = r->bound;
    tl_result result;
    tli_remat_make_room(r);
    r->watch.is_near = tli_remat_is_within(r, TLI_REMAT_FAR);
    r->watch.target = tli_remat_best(r) ? tli_remat_best(r)->cost : 0;
    result = tli_remat_bound(&r->quiet, r->graph, r->budget, r->inference, &r->watch, limit, &bound,
                             &work);
    r->watch.target = 0;
    tli_remat_add_work(r, work);
    if (result == TL_ERROR_INFEASIBLE) return tli_remat_rule_out(r);
    if (!result) result = tli_remat_raise_bound(r, bound);
    r->bound_is_stuck = r->bound == before;
    return result;
}

// The local search stands still far from the bound, and the graph may be small enough. Nearer, more of that
// search finds more: with beams U-Net at 25 % of its memory, 1.3 % above the bound, is 0.9 % dearer.
static int tli_remat_needs_beam(const tli_remat *r) {
    return r->search_is_stuck && !tli_remat_is_within(r, TLI_REMAT_FAR) &&
           r->graph->node_count <= TLI_EXACT_ITEMS;
}

// In a long chain few instants matter, and they are found soon.
static tl_result tli_remat_try_bound(tli_remat *r, uint64_t limit) {
    return tli_remat_bound_alone(r, r->is_long_chain ? limit / 8 : limit / 2);
}

// After a round that found nothing: all that is left for the bound, once. Branches that end late prove plans
// that no search improves any more; a plan far above the bound can still be improved. So can one whose bound
// branches do not raise: what they leave is for the search again.
static tl_result tli_remat_bound_late(tli_remat *r) {
    uint64_t left = r->work_limit - r->work;
    tl_result result;
    if (r->bound_was_late || !r->bound_is_stuck) return TL_OK;
    if (!tli_remat_is_within(r, TLI_REMAT_LATE)) return TL_OK;
    r->bound_was_late = 1;
    r->watch.patience = left / TLI_REMAT_PATIENCE + 1;
    result = tli_remat_bound_alone(r, left);
    r->watch.patience = 0;
    return result;
}

// Plan the optimum over persistent schedules, stage by stage, as tl_plan_chain does; with a budget of 0, the
// plan of least peak. The other parameters are those of tli_remat_chain.
static tl_result tli_remat_add_chain(tli_remat *r, uint64_t budget, uint64_t work_limit, uint64_t most_work,
                                     int32_t has_leaves) {
    tli_chain_result found;
    tli_steps steps;
    tl_result result = tli_remat_chain(&r->quiet, r->graph, budget, &r->watch, work_limit, most_work,
                                       has_leaves, &steps, &found);
    tli_remat_add_work(r, found.work);
    if ((!result || result == TL_ERROR_INFEASIBLE) && steps.count) return tli_remat_offer_steps(r, &steps);
    tli_release(&r->quiet, steps.steps);
    return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
}

static int tli_remat_needs_chain(const tli_remat *r) {
    return !r->inference && r->chain_turns <= r->is_long_chain;
}

// Graphs are improved tensor by tensor afterwards. In a long chain that goes slowly, and the optimum over
// persistent schedules is nearly the best: it is computed again with most of the work.
static tl_result tli_remat_try_chain(tli_remat *r, uint64_t limit) {
    if (r->chain_turns++) return tli_remat_add_chain(r, r->budget, limit, limit / 4 * 3, 0);
    if (limit > TLI_CHAIN_WORK) limit = TLI_CHAIN_WORK;
    return tli_remat_add_chain(r, r->budget, limit / 8, limit / 2, 0);
}

// Where memory is so short that no plan was found, or that the first round ended far from the bound: leaves in
// fewer bytes leave room for more checkpoints. With more memory they only lead the search elsewhere.
static int tli_remat_needs_leaves(const tli_remat *r) {
    if (r->inference || r->has_leaves) return 0;
    return !tli_remat_best(r) || (r->round && !tli_remat_is_within(r, TLI_REMAT_LATE));
}

static tl_result tli_remat_try_leaves(tli_remat *r, uint64_t limit) {
    r->has_leaves = 1;
    if (limit > TLI_CHAIN_WORK) limit = TLI_CHAIN_WORK;
    return tli_remat_add_chain(r, r->budget, limit / 4, limit / 2, 2);
}

static tl_result tli_remat_try_policies(tli_remat *r, uint64_t limit) {
    uint64_t work = 0;
    tl_result result = tli_remat_policies(&r->quiet, r->graph, r->budget, 0, r->pool, &r->watch, limit / 2,
                                          &work);
    tli_remat_add_work(r, work);
    return result;
}

// Offer the best sequence of the search.
static tl_result tli_remat_offer_search(tli_remat *r, tli_sequence_search *search) {
    const tl_plan *best = tli_remat_best(r);
    tli_steps steps;
    tl_result result;
    if (!tli_search_is_found(search) || (best && tli_search_cost(search) >= best->cost)) return TL_OK;
    result = tli_search_take_best(search, &steps);
    return result ? result : tli_remat_offer_steps(r, &steps);
}

// What the planners of sequences and kept sets are asked: for plans without copies.
static tli_remat_input tli_remat_input_of(tli_remat *r, uint64_t budget, uint64_t work_limit) {
    tli_remat_input in;
    tli_zero(&in, sizeof in);
    in.env = &r->quiet;
    in.graph = r->graph;
    in.budget = budget;
    in.inference = r->inference;
    in.work_limit = work_limit;
    in.bound = r->bound;
    in.watch = &r->watch;
    return in;
}

static tl_result tli_remat_open_search(tli_remat *r, tli_sequence_search *search) {
    tli_remat_input in = tli_remat_input_of(r, r->budget, 0);
    tl_result result = tli_search_open(&in, search);
    r->uncountable = result == TL_ERROR_OVERFLOW;
    return r->uncountable ? TL_OK : result;
}

// Close a search and offer its best sequence. result: what its last function returned.
static tl_result tli_remat_end_search(tli_remat *r, tli_sequence_search *search, tl_result result) {
    tli_steps steps = tli_steps_of(&r->quiet);
    int found = !result && tli_search_is_found(search);
    tli_remat_add_work(r, tli_search_count(search));
    if (found) result = tli_search_take_last(search, &steps);
    tli_search_close(search);
    return found && !result ? tli_remat_offer_steps(r, &steps) : result;
}

static tl_result tli_remat_find_first(tli_remat *r, uint64_t limit) {
    tl_result result = tli_remat_open_search(r, &r->search);
    if (!r->search.is_open) return result;
    result = tli_search_find_first(&r->search, limit / 4);
    if (!result && r->watch.stopped && !tli_search_is_found(&r->search) && !tli_remat_best(r))
        result = tli_search_find_at_once(&r->search);
    tli_remat_add_work(r, tli_search_count(&r->search));
    return result ? result : tli_remat_offer_search(r, &r->search);
}

// Improve the best plan.
static tl_result tli_remat_improve(tli_remat *r, uint64_t limit) {
    const tl_plan *best = tli_remat_best(r);
    uint64_t before;
    tl_result result = TL_OK;
    if (!best) return TL_OK;
    if (!r->search.is_open) result = tli_remat_open_search(r, &r->search);
    if (!r->search.is_open) return result;
    before = best->cost;
    if (!best->host_peak_bytes &&
        (!tli_search_is_found(&r->search) || best->cost < tli_search_cost(&r->search)))
        result = tli_search_add_plan(&r->search, best);
    if (!result && tli_search_is_found(&r->search)) result = tli_search_go_on(&r->search, limit, r->bound);
    tli_remat_add_work(r, tli_search_count(&r->search));
    if (!result) result = tli_remat_offer_search(r, &r->search);
    r->search_is_stuck = tli_remat_best(r)->cost == before;
    return result;
}

// Improve a plan piece by piece, or lower its peak towards the budget.
static tl_result tli_remat_run_window(tli_remat *r, const tl_plan *start, uint64_t budget, uint64_t limit) {
    tli_remat_input in = tli_remat_input_of(r, budget, limit);
    tli_steps steps;
    uint64_t work;
    tl_result result;
    if (!start || start->host_peak_bytes) return TL_OK;
    result = tli_remat_window(&in, start, &steps, &work);
    tli_remat_add_work(r, work);
    if (!result || result == TL_ERROR_INFEASIBLE) return tli_remat_offer_steps(r, &steps);
    return result == TL_ERROR_OVERFLOW ? TL_OK : result;
}

// In small graphs a try of the whole sequence takes no longer than one in a window, so windows get less work.
static tl_result tli_remat_try_window(tli_remat *r, uint64_t limit) {
    uint64_t share = r->graph->node_count > 128 ? limit / 2 : limit / 8;
    return tli_remat_run_window(r, tli_remat_best(r), r->budget, share);
}

// Plan windows of the best plan again, by the exact search cut to a width.
static tl_result tli_remat_try_beam(tli_remat *r, uint64_t limit) {
    const tl_plan *best = tli_remat_best(r);
    tli_steps steps = tli_steps_of(&r->quiet);
    uint64_t work = 0;
    tl_result result = TL_OK;
    if (!best || best->host_peak_bytes) return TL_OK;
    result = tli_remat_beam(&r->quiet, r->graph, r->budget, r->inference, &r->watch, best, limit / 2, &steps,
                            &work);
    tli_remat_add_work(r, work);
    if (!result && steps.count) return tli_remat_offer_steps(r, &steps);
    tli_release(&r->quiet, steps.steps);
    return result;
}

// Lower the peak of a plan to the budget, or as far as it goes.
static tl_result tli_remat_lower_plan(tli_remat *r, const tl_plan *plan, uint64_t limit) {
    tli_sequence_search search;
    tl_result result = tli_remat_open_search(r, &search);
    if (!search.is_open) return result;
    result = tli_search_lower(&search, plan, limit);
    return tli_remat_end_search(r, &search, result);
}

static tl_result tli_remat_lower(tli_remat *r, uint64_t limit) {
    const tl_plan *least = tli_pool_least(r->pool);
    return !least || least->host_peak_bytes ? TL_OK : tli_remat_lower_plan(r, least, limit);
}

// A first plan of more than twice the bound is a bad one to begin with. The plan that keeps everything, lowered
// step by step, is a better one.
static int tli_remat_needs_descent(const tli_remat *r) {
    return tli_remat_best(r) && !tli_remat_is_within(r, 1);
}

static tl_result tli_remat_descend(tli_remat *r, uint64_t limit) {
    tl_plan plan;
    tl_result result;
    tli_remat_make_room(r);
    result = tl_plan_keep_all(&r->quiet, r->graph, r->inference, &plan);
    if (!result) result = tli_remat_lower_plan(r, &plan, limit / 4);
    tl_free_plan(&r->quiet, &plan);
    return result;
}

// Search plans of a kept set alone. The bound of any plan holds for them, and trying all sets may prove one.
static tl_result tli_remat_try_once(tli_remat *r, uint64_t limit) {
    tli_remat_input in = tli_remat_input_of(r, r->budget, limit);
    tli_once_result found;
    tl_result result = tli_remat_once(&in, &found);
    tli_remat_add_work(r, found.work);
    if (!result && found.proven) result = tli_remat_raise_bound(r, found.plan.cost);
    if (result == TL_ERROR_INFEASIBLE) {
        if (found.proven) tli_remat_raise_floor(r, found.plan.peak_bytes, found.node);
        if (found.proven) r->none = 1;
        result = TL_OK;
    }
    if (!result) result = tli_remat_offer(r, &found.plan);
    tl_free_plan(&r->quiet, &found.plan);
    return result;
}

// -- remat: the least budget --

static tl_result tli_remat_ladder_floor(tli_remat *r, uint64_t limit) {
    uint64_t floor, work = 0;
    int32_t node;
    tl_result result = tli_remat_floor(&r->quiet, r->graph, r->inference, tli_remat_has_copies(r),
                                       &floor, &node, &work);
    (void)limit;
    tli_remat_add_work(r, work);
    if (!result) tli_remat_raise_floor(r, floor, node);
    return result;
}

// Equal layers: the least budget in closed form. Its plan may be very long; it is made where it is asked for.
static tl_result tli_remat_ladder_revolve(tli_remat *r, uint64_t limit) {
    tli_revolve_bytes found;
    (void)limit;
    if (!tli_is_revolve_chain(r->graph)) return TL_OK;
    found = tli_find_slots(r->graph, 0);
    r->pool->least = found.least;
    r->pool->least_node = r->graph->node_count - 1;
    if (!tli_remat_has_copies(r)) tli_remat_raise_floor(r, found.floor, r->pool->least_node);
    return TL_OK;
}

// Small graphs: the least peak without a host. Half of the work is left to the other parts.
static tl_result tli_remat_ladder_exact(tli_remat *r, uint64_t limit) {
    tli_steps steps = tli_steps_of(&r->quiet);
    uint64_t floor, work = 0;
    int32_t proven;
    tl_result result = tli_remat_exact_floor(&r->quiet, r->graph, r->inference, &r->watch, limit / 2, &steps,
                                             &floor, &proven, &work);
    tli_remat_add_work(r, work);
    if (!result && !tli_remat_has_copies(r)) tli_remat_raise_floor(r, floor, -1);
    if (!result && proven) return tli_remat_offer_steps(r, &steps);
    tli_release(&r->quiet, steps.steps);
    return result;
}

static tl_result tli_remat_ladder_chain(tli_remat *r, uint64_t limit) {
    if (limit > TLI_CHAIN_WORK) limit = TLI_CHAIN_WORK;
    return tli_remat_add_chain(r, 0, limit / 8, limit / 2, 1);
}

static tl_result tli_remat_climb_policies(tli_remat *r, uint64_t limit) {
    uint64_t work = 0;
    tl_result result = tli_remat_policies(&r->quiet, r->graph, 0, 1, r->pool, &r->watch, limit, &work);
    tli_remat_add_work(r, work);
    return result;
}

// With little work: most budgets are far above the least, which need not be known then.
static tl_result tli_remat_ladder_soon(tli_remat *r, uint64_t limit) {
    uint64_t little = limit / 64 + TLI_REMAT_SOON_NODE * (uint64_t)r->graph->node_count;
    return tli_remat_climb_policies(r, little < limit ? little : limit);
}

static tl_result tli_remat_ladder_policies(tli_remat *r, uint64_t limit) {
    return tli_remat_climb_policies(r, limit / 4);
}

static tl_result tli_remat_ladder_search(tli_remat *r, uint64_t limit) {
    tli_sequence_search search;
    tl_result result = tli_remat_open_search(r, &search);
    if (!search.is_open) return result;
    return tli_remat_end_search(r, &search, tli_search_find_lowest(&search, limit));
}

static tl_result tli_remat_ladder_window(tli_remat *r, uint64_t limit) {
    return tli_remat_run_window(r, tli_pool_least(r->pool), r->floor, limit);
}

#ifndef TL_NO_OFFLOAD
// Search a plan with copies that costs less than the best so far; where that is none, from the plan of the
// least bytes on. least: 1 = search the plan of the least budget instead.
static tl_result tli_remat_add_offload(tli_remat *r, int least, uint64_t limit) {
    const tl_plan *start = least ? NULL : tli_remat_best(r);
    tli_remat_input in = tli_remat_input_of(r, r->budget, limit);
    tli_steps steps;
    uint64_t work;
    tl_result result;
    in.fetches = r->host_budget > 0;
    in.codec = r->codec;
    in.lossless = r->lossless;
    in.codec_rate = r->device ? r->device->codec_bytes_per_second : 0;
    if (!start) start = tli_pool_least(r->pool);
    result = tli_remat_offload(&in, r->device, r->host_budget, start, least, r->floor, &steps, &work);
    tli_remat_add_work(r, work);
    if (!result) return tli_remat_offer_steps(r, &steps);
    return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
}

static tl_result tli_remat_ladder_offload(tli_remat *r, uint64_t limit) {
    (void)limit;
    r->reserve = 0;
    return tli_remat_add_offload(r, 1, tli_remat_left(r));
}
#endif

// -- remat: parts in turn --

// The least bytes of a plan that a pool knows, and the node at which that plan peaks; 0 and -1 = none.
static tl_result tli_remat_find_least(tli_remat *r, const tl_remat_pool *pool, uint64_t *least, int32_t *node) {
    const tl_plan *plan = tli_pool_least(pool);
    tl_simulate_desc desc;
    tl_report report;
    tl_result result;
    *least = pool->least;
    *node = pool->least ? pool->least_node : -1;
    if (!plan || (pool->least && pool->least <= plan->peak_bytes)) return TL_OK;
    *least = plan->peak_bytes;
    *node = -1;
    tli_zero(&desc, sizeof desc);
    desc.graph = r->graph;
    desc.plan = plan;
    result = tli_simulate(&r->quiet, TLI_IN(PLAN_REMAT), &desc, NULL, &report);
    if (!result && report.peak_step >= 0) *node = plan->steps[report.peak_step].node;
    return result;
}

typedef struct tli_remat_part {
    int32_t   once;                                       // 1 = in the first round only
    int     (*applies)(const tli_remat *r);
    tl_result (*run)(tli_remat *r, uint64_t work_limit);  // work_limit: all that is left of the round
} tli_remat_part;

#define TLI_REMAT_COUNT(parts) ((int32_t)(sizeof(parts) / sizeof(parts)[0]))

// Run parts in turn until the best plan is optimal, or until it is proven that none fits.
static tl_result tli_remat_run_parts(tli_remat *r, const tli_remat_part *parts, int32_t count, int32_t round) {
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < count && !result && !r->none && !tli_remat_is_done(r); i++) {
        uint64_t limit = tli_remat_left(r);
        if ((round && parts[i].once) || (!limit && tli_remat_best(r)) || !(parts[i].applies)(r)) continue;
        result = (parts[i].run)(r, limit);
    }
    return result;
}

// once: 1 = it finds much soon.
static const tli_remat_part tli_remat_ladder[] = {
    { 1, tli_remat_always, tli_remat_keep_all },
    { 1, tli_remat_always, tli_remat_ladder_floor },
    { 1, tli_remat_trains, tli_remat_ladder_revolve },
    { 1, tli_remat_trains, tli_remat_ladder_soon },
    { 1, tli_remat_trains, tli_remat_ladder_policies },
    { 0, tli_remat_always, tli_remat_ladder_exact },
    { 0, tli_remat_trains, tli_remat_ladder_chain },
    { 0, tli_remat_always, tli_remat_ladder_search },
    { 0, tli_remat_always, tli_remat_ladder_window },
#ifndef TL_NO_OFFLOAD
    { 0, tli_remat_has_copies, tli_remat_ladder_offload }
#endif
};

static const tli_remat_part tli_remat_once_ladder[] = {
    { 1, tli_remat_always, tli_remat_keep_all },
    { 1, tli_remat_always, tli_remat_ladder_floor },
    { 1, tli_remat_always, tli_remat_try_once }
};

// Whether the plan of the least peak is known to be that, or low enough.
static int tli_remat_is_lowest(const tli_remat *r) {
    const tl_plan *least = tli_pool_least(r->pool);
    if (least && (least->peak_bytes <= r->floor || least->peak_bytes <= r->enough)) return 1;
    return r->pool->least && (!tli_remat_has_copies(r) || r->pool->least <= r->enough);
}

// Ask the caller's progress function, in the costs of the caller.
static int tli_remat_watch_ladder(const tl_remat_progress *progress, void *user) {
    const tli_remat *r = (const tli_remat *)user;
    tl_remat_progress now = r->watch.now;
    now.work = progress->work;
    if (now.work_limit < now.work) now.work_limit = now.work;
    return (r->watch.desc->progress)(&now, r->watch.desc->user);
}

// The planner that climbs the ladder. Of what r knows it gets the graph and the class of its plans, no budget
// and no cost, and the bytes that are enough. desc: overwritten; lives as long as the result.
static tli_remat tli_remat_ladder_of(tli_remat *r, const tli_bytes_alone *alone, tl_remat_pool *ladder,
                                     tl_remat_desc *desc) {
    tli_remat l;
    tli_zero(&l, sizeof l);
    tli_zero(desc, sizeof *desc);
    if (r->watch.desc->progress) desc->progress = tli_remat_watch_ladder;
    desc->user = r;
    l.quiet = r->quiet;
    l.graph = &alone->graph;
    l.device = &alone->device;
    l.inference = r->inference;
    l.form = r->form;
    l.host_budget = r->host_budget;
    l.codec = r->codec;
    l.lossless = r->lossless;
    l.pool = ladder;
    l.floor_node = l.node = -1;
    l.work = l.watch.before = r->work;
    l.watch.next = r->watch.next;
    l.reserve = tli_remat_has_copies(r) ? alone->work : 0;      // of the part with copies
    l.work_limit = l.round_end = r->work + alone->work + l.reserve;
    l.watch.desc = desc;
    l.watch.stopped = r->watch.stopped;
    l.enough = r->enough;
    return l;
}

// Make a plan of the same steps for the caller's graph, and measure its costs there. TL_ERROR_OVERFLOW: they
// are too large.
static tl_result tli_remat_price(tli_remat *r, const tl_plan *from, tl_plan *plan) {
    tli_steps steps = tli_steps_of(&r->quiet);
    tl_result result;
    tli_zero(plan, sizeof *plan);
    steps.steps = (tl_step *)tli_alloc_array(&r->quiet, (uint64_t)from->step_count, sizeof *steps.steps);
    steps.failed = !steps.steps;
    steps.count = from->step_count;
    steps.capacity = from->step_count + !from->step_count;     // 0 would be memory of the caller
    if (!steps.failed) tli_copy(steps.steps, from->steps, (size_t)from->step_count * sizeof *steps.steps);
    result = tli_finish_plan(&steps, TLI_IN(PLAN_REMAT), r->graph, r->inference, plan);
    if (!result && tli_remat_has_copies(r))
        result = tli_measure(&r->quiet, TLI_IN(PLAN_REMAT), r->graph, r->device, 1, plan);
    if (result) tl_free_plan(&r->quiet, plan);
    return result;
}

// Give what the ladder found to the pool; keep its lowest plan apart from what that gets later, which depends
// on a budget.
static tl_result tli_remat_take_ladder(tli_remat *r, const tl_remat_pool *ladder) {
    tl_result result = TL_OK;
    tl_plan plan;
    int32_t i;
    r->is_unpriced = 0;     // the last ladder tells: with copies, where these are allowed
    for (i = 0; i < ladder->plan_count && !result; i++) {
        result = tli_remat_price(r, &ladder->plans[i], &plan);
        if (!result && !i && !r->alone) {
            tl_free_plan(&r->pool->env, &r->pool->lowest);
            result = tl_copy_plan(&r->pool->env, &plan, &r->pool->lowest);
        }
        if (!result) result = tli_remat_offer(r, &plan);
        tl_free_plan(&r->quiet, &plan);
        if (result == TL_ERROR_OVERFLOW) {
            r->is_unpriced |= !i;
            result = TL_OK;
        }
    }
    return result;
}

// Equal layers, whose least budget is known without a plan: make one where it is asked for.
static tl_result tli_remat_make_equal(tli_remat *r, const tl_graph *graph) {
    tli_revolve_bytes found = tli_find_slots(graph, r->budget);
    tli_steps steps;
    tl_result result;
    if (r->is_over || tli_remat_best(r) || !found.slot_count) return TL_OK;
    result = tli_revolve(&r->quiet, graph, found.slot_count, &steps);
    if (result) { tli_release(&r->quiet, steps.steps); return result; }
    tli_remat_add_work(r, (uint64_t)graph->node_count + TLI_REVOLVE_WORK * (uint64_t)steps.count);
    return tli_remat_offer_steps(r, &steps);
}

// Climb the ladder, in bytes alone, and take what was found.
static tl_result tli_remat_climb(tli_remat *r, const tli_bytes_alone *alone) {
    const tli_remat_part *parts = r->form ? tli_remat_once_ladder : tli_remat_ladder;
    int32_t count = r->form ? TLI_REMAT_COUNT(tli_remat_once_ladder) : TLI_REMAT_COUNT(tli_remat_ladder), i;
    tl_remat_pool ladder;
    tl_remat_desc desc;
    tli_remat l;
    uint64_t least;
    int32_t node, is_whole;
    tl_result result = TL_OK;
    tli_pool_init(&ladder, &r->quiet, 0);
    l = tli_remat_ladder_of(r, alone, &ladder, &desc);
    for (i = 0; i < count && !result && !tli_remat_is_lowest(&l); i++)
        if ((parts[i].applies)(&l) && (parts[i].once || !r->is_first))
            result = (parts[i].run)(&l, tli_remat_left(&l) / (r->is_first ? TLI_REMAT_SOON : 1));
    r->watch.stopped |= l.watch.stopped;
    r->watch.next = l.watch.next;
    r->work_limit += l.work - r->work;
    r->watch.now.work_limit += l.work - r->work;
    r->round_end += l.work - r->work;
    tli_remat_add_work(r, l.work - r->work);
    r->uncountable |= l.uncountable && !l.pool->plan_count;
    if (!result) tli_remat_raise_floor(r, l.floor, l.floor_node);
    if (!result) result = tli_remat_find_least(&l, &ladder, &least, &node);
    if (!result) result = tli_remat_take_ladder(r, &ladder);
    if (!result) {
        r->least = least;
        r->node = node;
        r->pool->lowest_node = node;
        is_whole = (i == count && !r->is_first) || least <= l.floor ||
                   (ladder.least && !tli_remat_has_copies(&l));
        if (!r->watch.stopped && !r->alone && is_whole && !r->is_unpriced) r->pool->ladder_least = least;
        if (ladder.least && ladder.least == least) result = tli_remat_make_equal(r, l.graph);
    }
    tli_pool_clear(&ladder);
    return result;
}

// Search the least budget, unless this pool's is known.
static tl_result tli_remat_run_ladder(tli_remat *r) {
    tli_bytes_alone alone;
    tl_result result;
    r->round_end = r->work + r->reserve;
    r->reserve = 0;
    if (r->is_within) return TL_OK;
    if (r->pool->ladder_least && !r->alone) {
        r->least = r->pool->ladder_least;
        r->node = r->pool->lowest_node;
        return TL_OK;
    }
    if (!tli_open_alone(&r->quiet, r->graph, &alone)) return TL_ERROR_NO_MEMORY;
    if (alone.work > r->most_ladder) alone.work = r->most_ladder;
    result = tli_remat_climb(r, &alone);
    tli_close_alone(&alone);
    return result;
}

// What each is worth, plans without it: FIGURES.md, section 1 (tests/ablation.py).
static const tli_remat_part tli_remat_parts[] = {
    { 1, tli_remat_always, tli_remat_keep_all },
    { 1, tli_remat_is_equal_chain, tli_remat_try_revolve },
    { 1, tli_remat_always, tli_remat_try_floor },
    { 1, tli_remat_always, tli_remat_try_exact },
    { 1, tli_remat_trains, tli_remat_try_policies },
    { 1, tli_remat_always, tli_remat_find_first },
    { 1, tli_remat_needs_descent, tli_remat_descend },
    { 0, tli_remat_needs_chain, tli_remat_try_chain },
    { 0, tli_remat_needs_leaves, tli_remat_try_leaves },
    { 0, tli_remat_needs_beam, tli_remat_try_beam },
    { 0, tli_remat_may_raise, tli_remat_try_bound },
    { 0, tli_remat_always, tli_remat_try_window },
    { 0, tli_remat_always, tli_remat_improve }
};

// Whether there is a plan, which may be improved with the work that is left; cost: of the plan before the last
// round.
static int tli_remat_goes_on(const tli_remat *r, uint64_t cost) {
    if (!tli_remat_best(r) || tli_remat_is_done(r) || r->work >= r->work_limit || r->watch.stopped) return 0;
    return !r->is_default || tli_remat_best(r)->cost != cost || !tli_remat_is_within(r, TLI_REMAT_ENOUGH);
}

// Rounds get longer. By default a plan that is near the bound gets short ones as long as it gets cheaper.
static uint64_t tli_remat_next_length(const tli_remat *r, uint64_t length) {
    return r->is_default && tli_remat_is_within(r, TLI_REMAT_ENOUGH) ? TLI_REMAT_LEAST_ROUND : 2 * length;
}

// The work of the first round. Where that is the least without the states, which are no nodes that run again,
// it is with them: of short rounds more end early.
static uint64_t tli_remat_first_length(const tli_remat *r) {
    uint64_t nodes = 0, length;
    int32_t id;
    for (id = 0; id < r->graph->node_count; id++) nodes += !r->graph->nodes[id].state;
    if (TLI_REMAT_WORK * nodes * nodes > TLI_REMAT_LEAST_ROUND) nodes = (uint64_t)r->graph->node_count;
    length = TLI_REMAT_WORK * nodes * nodes;
    if (length < TLI_REMAT_LEAST_ROUND) return TLI_REMAT_LEAST_ROUND;
    return length < TLI_REMAT_MOST_ROUND ? length : TLI_REMAT_MOST_ROUND;
}

// The default ends where the gap is small: the bound gets as much work again as the first round, once, which
// proves some of the plans. In graphs of 250 nodes and more it hardly ever does.
static tl_result tli_remat_prove(tli_remat *r) {
    uint64_t length = tli_remat_first_length(r), left = r->work < r->work_limit ? r->work_limit - r->work : 0;
    if (!r->is_default || r->bound_was_late || !left || r->watch.stopped) return TL_OK;
    if (length >= TLI_REMAT_MOST_ROUND) return TL_OK;
    if (tli_remat_is_done(r) || !tli_remat_is_within(r, TLI_REMAT_ENOUGH)) return TL_OK;
    r->bound_was_late = 1;
    return tli_remat_bound_alone(r, left < length ? left : length);
}

// One tier: rounds of all parts. TL_OK also where no plan was found.
static tl_result tli_remat_run_alone(tli_remat *r) {
    uint64_t length = tli_remat_first_length(r);
    tl_result result = r->inference ? TL_OK : tli_chain_is_long(&r->quiet, r->graph, &r->is_long_chain);
    int32_t round;
    for (round = 0; !result; round++, length = tli_remat_next_length(r, length)) {
        uint64_t before = r->work, cost = tli_remat_best(r) ? tli_remat_best(r)->cost : 0, bound = r->bound;
        r->round = round;
        r->round_end = r->work_limit;
        if (r->work_limit - r->work > length + r->reserve) r->round_end = r->work + length + r->reserve;
        result = tli_remat_run_parts(r, tli_remat_parts, TLI_REMAT_COUNT(tli_remat_parts), round);
        if (!result && !tli_remat_best(r)) {
            tli_search_close(&r->search);
            result = tli_remat_run_ladder(r);
        }
        if (!result && !tli_remat_best(r) && !r->none) result = tli_remat_lower(r, r->work_limit / 8);
        tli_remat_tell(r);
        r->reserve = 0;
        if (!result && tli_remat_goes_on(r, cost) && tli_remat_best(r)->cost == cost && r->bound == bound)
            result = tli_remat_bound_late(r);
        if (!tli_remat_goes_on(r, cost) || r->work == before) break;  // or no part has anything left to do
    }
    if (!result) result = tli_remat_prove(r);
    tli_search_close(&r->search);
    return result;
}

static const tli_remat_part tli_remat_once_parts[] = {
    { 1, tli_remat_always, tli_remat_keep_all },
    { 1, tli_remat_always, tli_remat_try_floor },
    { 1, tli_remat_always, tli_remat_try_bound },
    { 1, tli_remat_always, tli_remat_try_once }
};

// The form once: a single round.
static tl_result tli_remat_run_once(tli_remat *r) {
    tl_result result;
    r->round_end = r->work_limit;
    result = tli_remat_run_parts(r, tli_remat_once_parts, TLI_REMAT_COUNT(tli_remat_once_parts), 0);
    return result || tli_remat_best(r) ? result : tli_remat_run_ladder(r);
}

#ifndef TL_NO_OFFLOAD
// -- remat: with copies --

// Improve the plan found so far, or find one, with copies.
static tl_result tli_remat_improve_offload(tli_remat *r, uint64_t limit) {
    return tli_remat_add_offload(r, 0, limit);
}

static tl_result tli_remat_begin_offload(tli_remat *r, uint64_t limit) {
    return tli_remat_improve_offload(r, limit / 8);
}

// The speed of copies in the faster one of both ways; 0 = they take no time.
static uint64_t tli_find_faster_rate(const tl_device *device) {
    uint64_t rate = tli_copy_rate(device, 0);
    return rate ? tli_larger_u64(rate, tli_copy_rate(device, 1)) : 0;
}

// Raise the bound by relaxations for several end times T0: a plan ends after T0, or not before g(T0). First
// with the end of the plan found, in both ways of tli_bound_host.is_even, with half of the work; then by
// bisection between the bound and that end, in the better way.
static tl_result tli_remat_bound_offload(tli_remat *r, uint64_t limit) {
    enum { ROUNDS = 9 };
    const tl_plan *best = tli_remat_best(r);
    uint64_t high = best ? best->cost : 0, bound, work, last = 0;
    tli_bound_host host;
    int32_t round;
    tl_result result = TL_OK;
    host.bytes = r->host_budget;
    host.rate = tli_find_faster_rate(r->device);
    for (round = 0; round < ROUNDS && r->bound < high && !r->watch.stopped && !result; round++) {
        host.time = round > 1 ? r->bound + (high - r->bound) / 2 : best->cost - 1;
        if (round < 2) host.is_even = round;
        work = 0;
        result = tli_remat_bound_host(&r->quiet, r->graph, r->budget, &host, r->inference, &r->watch,
                                      round > 1 ? limit / 8 / (ROUNDS - 2) * 2 : limit / 8, &bound, &work);
        tli_remat_add_work(r, work + (uint64_t)r->graph->node_count);
        if (result && result != TL_ERROR_INFEASIBLE) return result;
        if (round == 1 && bound <= last) host.is_even = 0;
        last = bound;
        if (bound <= host.time) high = host.time;
        else bound = host.time + 1;
        result = tli_remat_raise_bound(r, bound);
    }
    return result;
}

// Set the bytes of each tensor that may be compressed to those of its compressed copy. An output that may
// overwrite an input gets the lesser bytes of both, and so does that input. Blocks, which ask for equal bytes,
// no node takes then.
static void tli_remat_narrow(const tli_remat *r, tl_node *nodes, tl_node_output *outputs) {
    const tl_graph *graph = r->graph;
    int32_t i, changed = 1;
    for (i = 0; i < graph->tensor_count; i++) {
        uint64_t packed = tl_find_codec_bytes(r->codec, outputs[i].bytes);
        int may = !nodes[outputs[i].node].is_input && !(r->lossless && r->lossless[i]);
        if (may && packed < outputs[i].bytes) outputs[i].bytes = packed;
    }
    while (changed)
        for (i = 0, changed = 0; i < graph->node_count; i++) {
            uint64_t *from, *to;
            if (nodes[i].inplace < 0) continue;
            from = &outputs[graph->inputs[nodes[i].first_input + nodes[i].inplace].tensor].bytes;
            to = &outputs[nodes[i].first_output].bytes;
            changed |= *from != *to;
            if (*from < *to) *to = *from; else *from = *to;
        }
    for (i = 0; i < graph->node_count; i++) nodes[i].takes_blocks = 0;
}

static tl_result tli_search_remat(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                  uint64_t most_work, tli_remat_answers answers, tl_plan *plan,
                                  tl_remat_report *report);

// Plan a graph in which what may be compressed takes the bytes of its copy all the time, at no cost: a plan
// with compressed copies is one of that graph if the conversions are left out, and costs no less.
static tl_result tli_remat_bound_narrow(tli_remat *r, const tl_graph *narrow, uint64_t limit) {
    tl_remat_desc desc;
    tl_remat_report report;
    tli_budget budget;
    tl_result result;
    tl_plan plan;
    tli_zero(&desc, sizeof desc);
    desc.graph = narrow;
    desc.inference = r->inference;
    desc.device = r->device;
    desc.work_limit = r->is_default ? 0 : limit;
    tli_zero(&budget, sizeof budget);
    budget.bytes = budget.allowed_bytes = r->budget;
    budget.is_over = r->is_over;
    budget.host_bytes = r->host_budget;
    result = tli_search_remat(&r->quiet, &desc, &budget, limit, TLI_REMAT_TRIAL, &plan, &report);
    tli_remat_add_work(r, report.work);
    tl_free_plan(&r->quiet, &plan);
    if (!result) return tli_remat_raise_bound(r, report.bound_cost);
    if (result != TL_ERROR_INFEASIBLE) return result == TL_ERROR_OVERFLOW ? TL_OK : result;
    tli_remat_raise_floor(r, report.bound_budget_bytes, -1);
    return report.proven ? tli_remat_rule_out(r) : TL_OK;
}

static tl_result tli_remat_bound_codec(tli_remat *r, uint64_t limit) {
    uint64_t nodes = (uint64_t)r->graph->node_count, tensors = (uint64_t)r->graph->tensor_count;
    tl_graph narrow = *r->graph;
    tl_node *copy = (tl_node *)tli_alloc_array(&r->quiet, nodes, sizeof *copy);
    tl_node_output *outputs = (tl_node_output *)tli_alloc_array(&r->quiet, tensors, sizeof *outputs);
    tl_result result = TL_ERROR_NO_MEMORY;
    if (copy && outputs) {
        tli_copy(copy, r->graph->nodes, (size_t)nodes * sizeof *copy);
        tli_copy(outputs, r->graph->outputs, (size_t)tensors * sizeof *outputs);
        tli_remat_narrow(r, copy, outputs);
        narrow.nodes = copy;
        narrow.outputs = outputs;
        narrow.attributes = NULL;
        result = tli_remat_bound_narrow(r, &narrow, limit / 4 + 1);
    }
    tli_release(&r->quiet, copy);
    tli_release(&r->quiet, outputs);
    return result;
}

static const tli_remat_part tli_remat_offload_parts[] = {
    { 1, tli_remat_always, tli_remat_keep_all },
    { 1, tli_remat_always, tli_remat_try_floor },
    { 1, tli_remat_has_codec, tli_remat_bound_codec },
    { 1, tli_remat_always, tli_remat_begin_offload },
    { 1, tli_remat_has_host_alone, tli_remat_bound_offload },
    { 0, tli_remat_always, tli_remat_improve_offload }
};

// With a host tier, or a limit of the caller's, all of the work in one round. Else rounds of growing work,
// until one makes the plan cheaper by less than one part in TLI_REMAT_ENOUGH.
static tl_result tli_remat_run_copies(tli_remat *r) {
    const tli_remat_part *parts = tli_remat_offload_parts;
    uint64_t end = r->round_end, length = tli_remat_first_length(r);
    int32_t round, goes_on = 1;
    tl_result result = TL_OK;
    for (round = 0; !result && goes_on; round++, length *= 2) {
        uint64_t cost = tli_remat_best(r) ? tli_remat_best(r)->cost : UINT64_MAX;
        int adapts = r->is_default && !r->host_budget && end - r->work > length + r->reserve;
        r->round_end = adapts ? r->work + length + r->reserve : end;
        result = tli_remat_run_parts(r, parts, TLI_REMAT_COUNT(tli_remat_offload_parts), round);
        goes_on = adapts && tli_remat_best(r) && cost - tli_remat_best(r)->cost > cost / TLI_REMAT_ENOUGH &&
                  !r->watch.stopped && !tli_remat_is_within(r, TLI_REMAT_ENOUGH);
    }
    r->round_end = end;
    return result;
}

// First the plan without copies, with all the work that it would get alone, so that copies never make a plan
// more expensive; then the same amount of work for the plan with copies.
static tl_result tli_remat_run_offload(tli_remat *r) {
    uint64_t bound = r->bound, floor = r->floor, host_budget = r->host_budget;
    int32_t node = r->floor_node;
    tl_codec codec = r->codec;
    tl_result result;
    r->alone = 1;
    r->host_budget = 0;
    r->codec = TL_CODEC_NONE;
    result = tli_remat_run_alone(r);
    r->alone = r->none = 0;  // what is proven without copies need not hold with them
    r->host_budget = host_budget;
    r->codec = codec;
    r->watch.now.bound_cost = r->bound = bound;
    r->floor = floor;
    r->floor_node = node;
    r->reserve = r->work_limit / 4;
    r->watch.now.work_limit = r->round_end = r->work + r->work_limit;
    if (!result) result = tli_remat_run_copies(r);
    return result || tli_remat_best(r) ? result : tli_remat_run_ladder(r);
}

static tl_result tli_remat_run(tli_remat *r) {
    if (r->form == TL_REMAT_FORM_ONCE) return tli_remat_run_once(r);
    return tli_remat_has_copies(r) ? tli_remat_run_offload(r) : tli_remat_run_alone(r);
}
#else
static tl_result tli_remat_run(tli_remat *r) {
    return r->form == TL_REMAT_FORM_ONCE ? tli_remat_run_once(r) : tli_remat_run_alone(r);
}
#endif

static tl_result tli_remat_refuse(tl_env *env, const tl_graph *graph, const tli_budget *budget, int is_stopped,
                                  tl_remat_report *report) {
    int32_t node = report->limiting_node;
    tli_rule rule = report->proven
        ? TLI_RULE(BYTES_ARE_TOO_FEW_FOR_ANY_PLAN)
        : TLI_RULE(NO_PLAN_WAS_FOUND_FOR_BYTES);
    tli_sentence s;
    if (report->least_budget_bytes == UINT64_MAX) return tli_refuse_base(env, report, TLI_IN(PLAN_REMAT));
    s = tli_begin_error(env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_REMAT), rule, budget->allowed_bytes,
                        report->least_budget_bytes);
    tli_put_limit(env, &s, budget->limit);
    tli_put_rule(&s);
    if (TLI_ERROR_TEXT && budget->is_over) {
        tli_put(&s.text, ", of which ");
        tli_put_u64(&s.text, budget->base_bytes);
        tli_put(&s.text, " stand beside the arena (base_bytes, the backend)");
    } else if (TLI_ERROR_TEXT && node >= 0) {
        tli_put(&s.text, ", because of node ");
        tli_put_named(&s.text, node, tl_name_node(graph, node));
    }
    if (TLI_ERROR_TEXT && is_stopped && !report->proven) tli_put(&s.text, "; progress stopped the search");
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

// Report what is known of the least budget.
static void tli_remat_report_least(const tli_remat *r, const tli_budget *budget, tl_remat_report *report) {
    int knows = r->least && r->least == r->floor && r->floor_node >= 0;     // what all plans take
    report->least_budget_bytes = r->least ? tli_add_base(budget, r->least) : 0;
    report->bound_budget_bytes = tli_add_base(budget, r->floor);
    report->limiting_node = knows ? r->floor_node : r->least ? r->node : -1;
    report->proven = r->none;
    report->work = r->work;
}

static void tli_remat_report_best(const tli_remat *r, const tl_plan *best, tl_remat_report *report) {
    report->limiting_node = -1;
    report->work = r->work;
    report->cost = best->cost;
    report->bound_cost = r->bound < best->cost ? r->bound : best->cost;
    report->proven = report->cost == report->bound_cost;
    if (!report->proven && report->bound_cost)
        report->gap_ratio = (double)(report->cost - report->bound_cost) / (double)report->bound_cost;
}

// Codecs take what they compress for f32.
static tl_result tli_check_codec_formats(tl_env *env, const tl_remat_desc *desc) {
    const tl_graph *graph = desc->graph;
    tli_graph_rules rules = tli_rules_of(env, TLI_IN(PLAN_REMAT));
    int32_t k;
    for (k = 0; k < graph->tensor_count && desc->codec; k++) {
        const tl_node_output *output = &graph->outputs[k];
        int may = !graph->nodes[output->node].is_input && !(desc->lossless && desc->lossless[k]);
        if (may && output->format != TL_TENSOR_FORMAT_NONE && output->format != TL_TENSOR_FORMAT_F32)
            return tli_fail_item(&rules, TL_ERROR_UNSUPPORTED, "node", output->node,
                                 tl_name_node(graph, output->node), TLI_RULE(CODEC_COMPRESSES_F32_ALONE));
    }
    return TL_OK;
}

static tl_result tli_check_remat(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget) {
    tl_result result = tl_check_graph(env, desc->graph);
    if (!result) result = tli_check_live(env, TLI_IN(PLAN_REMAT), desc->live);
    if (!result) result = tli_check_bank_count(env, TLI_IN(PLAN_REMAT), desc->banks, desc->bank_count);
    if (result) return result;
    if (desc->inference != 0 && desc->inference != 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT), TLI_RULE(INFERENCE_MUST_BE_0_OR_1));
    if ((uint32_t)desc->form >= (uint32_t)TL_REMAT_FORM_COUNT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT), TLI_RULE(FORM_THERE_IS_NO_SUCH_ONE));
    if (desc->form && budget->host_bytes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT),
                        TLI_RULE(HOST_BUDGET_BYTES_NEEDS_FORM_ANY));
    if (desc->in_flight < 0 || (desc->live && desc->in_flight > 1))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT), TLI_RULE(IN_FLIGHT_NEEDS_PLACES));
    if ((uint32_t)desc->codec >= (uint32_t)TL_CODEC_COUNT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT), TLI_RULE(CODEC_THERE_IS_NO_SUCH_ONE));
    if (desc->codec && (desc->inference || desc->form))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT), TLI_RULE(CODEC_NEEDS_TRAINING));
#ifdef TL_NO_OFFLOAD
    if (budget->host_bytes)
        return tli_fail(env, TL_ERROR_UNSUPPORTED, TLI_IN(PLAN_REMAT),
                        TLI_RULE(HOST_BUDGET_BYTES_TL_NO_OFFLOAD_LEFT));
    if (desc->codec)
        return tli_fail(env, TL_ERROR_UNSUPPORTED, TLI_IN(PLAN_REMAT), TLI_RULE(CODEC_TL_NO_OFFLOAD_LEFT));
#else
    (void)budget;
#endif
    result = tli_check_codec_formats(env, desc);
    return result || !desc->device ? result : tl_check_device(env, desc->device);
}

// Take the caller's pool, or begin one for this call alone.
static tl_result tli_remat_take_pool(tli_remat *r, tl_env *env, tl_remat_pool *given, tl_remat_pool *own) {
    uint64_t key;
    tli_pool_init(own, &r->quiet, 0);
    r->pool = given ? given : own;
    if (given) {
        key = tli_pool_class_of(r->graph, r->inference, r->form, r->host_budget, r->device);
        if (r->codec) key = tli_pool_class_with(key, r->graph, r->codec, r->lossless, r->device);
        if (given->class_key && given->class_key != key)
            return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT), TLI_RULE(POOL_OF_ANOTHER_GRAPH));
        given->class_key = key;
        r->bound = tli_pool_bound_at(given, r->budget);
        r->floor = given->floor;
        r->floor_node = given->floor_node;
        r->bound_is_stuck = r->bound_was_late = given->is_bounded;
    }
    return tli_pool_ask(r->pool, r->budget)
        ? tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN)) : TL_OK;
}

// No plan takes less than the least budget that refusals name. The ladder is climbed until it finds a plan of
// as few bytes as the best. If it finds none, its lowest plan is the answer; NULL = that does not fit.
static tl_result tli_remat_hold_least(tli_remat *r, const tl_plan **best) {
    tl_result result;
    if (r->watch.stopped) return TL_OK;
    if (!r->watch.desc->pool) tli_pool_keep_one(r->pool, (int32_t)(*best - r->pool->plans));
    r->enough = tli_remat_best(r)->peak_bytes;
    result = tli_remat_run_ladder(r);
    *best = tli_remat_best(r);
    if (result || r->watch.stopped || (*best)->peak_bytes >= r->least) return result;
    *best = &r->pool->lowest;
    if (r->pool->lowest.peak_bytes > r->budget) *best = NULL;
    return TL_OK;
}

// Answer with the best plan of the pool, or say why there is none.
static tl_result tli_remat_answer(tl_env *env, tli_remat *r, const tli_budget *budget, tl_result result,
                                  tl_plan *plan, tl_remat_report *report) {
    const tl_plan *best = tli_remat_best(r);
    if (!result && best && r->holds_least) result = tli_remat_hold_least(r, &best);
    if (!result && best) tli_remat_report_best(r, best, report);
    else if (!result) tli_remat_report_least(r, budget, report);
    if (!result && best) result = tl_copy_plan(&r->quiet, best, plan);
    if (!result && best) {
        plan->base_bytes = budget->base_bytes;
        plan->bound_cost = report->bound_cost;
        return TL_OK;
    }
    if (result) {
        tli_zero(report, sizeof *report);
        return tli_fail(env, result, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN));
    }
    if (!r->is_unpriced && (!r->uncountable || r->none))
        return tli_remat_refuse(env, r->graph, budget, r->watch.stopped, report);
    tli_zero(report, sizeof *report);
    return tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(PLAN_REMAT), TLI_RULE(GRAPH_BYTES_MUST_FIT_60_BITS_COSTS));
}

// What a call begins with. most_work: the limit where the desc has none.
static tli_remat tli_remat_of(const tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                              uint64_t most_work) {
    tli_remat r;
    tli_zero(&r, sizeof r);
    if (env) r.quiet = *env;
    r.quiet.log = NULL;
    r.graph = desc->graph;
    r.inference = desc->inference;
    r.form = desc->form;
    r.is_over = budget->is_over;
    r.budget = budget->bytes;
    r.is_default = !desc->work_limit;
    r.work_limit = desc->work_limit ? desc->work_limit : most_work;
    r.reserve = r.work_limit / 4;
    r.most_ladder = UINT64_MAX;
    r.watch.now.work_limit = r.work_limit;
    r.watch.desc = desc;
    r.device = desc->device;
    r.host_budget = budget->host_bytes;
    r.codec = desc->codec;
    r.lossless = desc->lossless;
    return r;
}

// Plan within a budget that was found before: budget_bytes, host_budget_bytes and base_bytes of the desc are
// not read, nor the capacities of its device. most_work: the work limit where the desc has none.
static tl_result tli_search_remat(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                  uint64_t most_work, tli_remat_answers answers, tl_plan *plan,
                                  tl_remat_report *report) {
    tli_remat r;
    tl_remat_pool own;
    tl_remat_report local;
    uint64_t kept;      // work of the search for the least budget
    tl_result result;
    if (!report) report = &local;
    tli_zero(plan, sizeof *plan);
    tli_zero(report, sizeof *report);
    result = tli_check_remat(env, desc, budget);
    if (result) return result;
    r = tli_remat_of(env, desc, budget, most_work);
    r.is_within = answers == TLI_REMAT_WITHIN;
    r.holds_least = answers == TLI_REMAT_HOLDS;
    kept = tli_alone_work(desc->graph);
    if (r.holds_least && !r.is_default)     // of a limit, this is kept for the search for the least budget
        r.work_limit -= kept < r.work_limit / 6 ? kept / 2 * 3 : r.work_limit / 4;
    if (answers == TLI_REMAT_TRIAL) r.most_ladder = r.work_limit / 4 + 1;
    result = tli_remat_take_pool(&r, env, desc->pool, &own);
    if (!result) {
        result = tli_remat_run(&r);
        result = tli_remat_answer(env, &r, budget, result, plan, report);
    }
    tli_search_close(&r.search);
    tli_pool_clear(&own);
    return result;
}

// The same, where inputs of the graph may die.
static tl_result tli_plan_remat_as(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                   uint64_t most_work, tli_remat_answers answers, tl_plan *plan,
                                   tl_remat_report *report) {
    tl_remat_desc asked = *desc;
    tli_dying dying;
    tl_result result;
    if (!tli_has_dying(desc->graph))
        return tli_search_remat(env, desc, budget, most_work, answers, plan, report);
    tli_zero(plan, sizeof *plan);
    if (report) tli_zero(report, sizeof *report);
    result = tl_check_graph(env, desc->graph);
    if (!result) result = tli_begin_dying(env, &asked, &dying);
    if (result) return result;
    result = tli_search_remat(env, &asked, budget, most_work, answers, plan, report);
    tli_end_dying(env, desc->graph, &dying, plan, report);
    return result;
}

// As tl_plan_remat, of live bytes.
static tl_result tli_plan_remat(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                uint64_t most_work, tl_plan *plan, tl_remat_report *report) {
    return tli_plan_remat_as(env, desc, budget, most_work, TLI_REMAT_HOLDS, plan, report);
}

// Make the plan of the least budget that a refusal by tli_plan_remat names, with the work of the search for it
// alone, at most most_work. is_first: 1 = what the first parts of the ladder find is enough. The report is that
// of the refusal. TL_ERROR_INFEASIBLE: the least budget is known, but its plan was not made.
static tl_result tli_plan_remat_lowest(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                       uint64_t most_work, int is_first, tl_plan *plan,
                                       tl_remat_report *report) {
    tli_remat r = tli_remat_of(env, desc, budget, 0);
    const tl_plan *lowest;
    tl_remat_pool own;
    tl_result result = tli_remat_take_pool(&r, env, desc->pool, &own);
    tli_zero(plan, sizeof *plan);
    tli_zero(report, sizeof *report);
    r.is_first = is_first;
    r.most_ladder = most_work;
    if (!result) {
        result = tli_remat_run_ladder(&r);
        if (!result) tli_remat_report_least(&r, budget, report);
        lowest = &r.pool->lowest;
        if (!result && (!lowest->peak_bytes || lowest->peak_bytes > r.least)) result = TL_ERROR_INFEASIBLE;
        if (!result) result = tl_copy_plan(&r.quiet, lowest, plan);
        if (result && result != TL_ERROR_INFEASIBLE)
            result = tli_fail(env, result, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN));
        plan->base_bytes = budget->base_bytes;
    }
    tli_pool_clear(&own);
    return result;
}

static const char *const tli_remat_form_names[] = { TL_REMAT_FORMS(TLI_NAME) };

TLI_IMPL const char *tl_name_remat_form(tl_remat_form form) {
    return tli_name(tli_remat_form_names, TL_REMAT_FORM_COUNT, (int64_t)form);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_remat_form(const char *text, tl_remat_form *form) {
    int32_t value;
    int known = tli_parse_word(tli_remat_form_names, TL_REMAT_FORM_COUNT, text, &value);
    TL_ASSERT(form);
    *form = (tl_remat_form)value;
    return known;
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
