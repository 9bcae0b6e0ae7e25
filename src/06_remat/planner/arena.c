#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- plans that come with places --
//
// The planners count live bytes; an arena can be larger. Sizes are rounded up to the alignment for them, so
// what remains is what lies between allocations, mostly nothing. Where an arena exceeds the budget all the
// same, a plan is made again within as much less, a few times; the last tries are the plan of the least bytes
// and, where its arena is larger than they are, another one and one of a little more. They depend on no budget
// of the device: if none of their arenas fits, the lowest is what does. Host copies have an arena of their own;
// where that of the last tries exceeds the budget of the host, they are made again without copies. In banks,
// what is taken of all of them together is the arena, and places that no bank holds count as an arena that is
// too large. All planners with a budget go this way: each gives a function that makes one plan of the rounded
// graph.

#define TLI_ARENA_TURNS 6      // plans that are made at most, the last one beside
#define TLI_ARENA_CLOSE 32     // an arena exceeds a budget by little: by at most one part in so many
#define TLI_ARENA_ABOVE 4      // a plan above the least bytes: by one part in so many of what its arena exceeds
#define TLI_ARENA_POOL (UINT64_C(4) << 20)  // bytes of plans that are kept for the next ones
#define TLI_ARENA_STEP_WORK UINT64_C(150)   // of a step of a plan that gets places, beside that of its layout
#define TLI_ARENA_EFFORT 16    // times the work of places where those of the first plan do not fit,
#define TLI_ARENA_EFFORT_END (TLI_LAYOUT_WORK / TLI_ARENA_EFFORT)   // up to this

typedef struct tli_arena_plan tli_arena_plan;

// One plan of the rounded graph within a budget. TL_ERROR_INFEASIBLE: the report says what the least one takes.
typedef tl_result (*tli_arena_maker)(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report);

// The error of a budget that the arena of the least plan exceeds, which the report of the desc tells.
typedef tl_result (*tli_arena_refuser)(tli_arena_plan *a, const tli_budget *budget);

typedef struct tli_arena_planner {
    tli_function      function;     // of the caller
    tli_arena_maker   make;
    tli_arena_maker   make_lowest;  // the plan of the least bytes; the report is that of a refusal
    tli_arena_refuser refuse;
} tli_arena_planner;

struct tli_arena_plan {
    tl_env   *env;
    const tli_arena_planner *planner;
    const tl_graph   *given;        // the caller's
    const tl_device  *device;       // may be NULL
    const tl_remat_desc  *desc;     // of tl_plan_remat, else NULL
    tl_remat_desc         rounded;  // what tl_plan_remat is asked
    tl_chain_plan_desc    chain;    // what tl_plan_chain is asked
    tl_policy_desc        policy;   // what tl_plan_policy is asked
    tl_graph        graph;      // the given one, its bytes rounded up
    tl_node        *nodes;      // [node_count] of it
    tl_node_output *outputs;    // [tensor_count]
    int32_t   turns;            // plans that were tried
    uint64_t  alignment;
    uint64_t  place_work;       // of the places of each plan; 0 = the default
    uint64_t  block_bytes;      // of the blocks that cut the arenas; 0 = they are whole
    int       is_unplaced;      // 1 = no places in the banks were found for the plan
    uint64_t  live_bytes;       // of the plan, its sizes rounded up
    uint64_t  work, most_work;  // of the plans before; of the next one by default
    tl_remat_pool own;          // of this call, where the caller gave no pool
    tl_plan   best;             // the best so far, while another is tried
    tl_plan  *plan;
    tl_remat_report *report;    // of the first plan: its bounds hold for all
};

static uint64_t tli_round_bytes(uint64_t bytes, uint64_t alignment) {
    return bytes > UINT64_MAX - alignment ? bytes : tli_align_up(bytes, alignment);
}

// 0 = no memory.
static int tli_arena_round(tli_arena_plan *a) {
    const tl_graph *graph = a->given;
    int32_t i;
    a->nodes = (tl_node *)tli_alloc_array(a->env, (uint64_t)graph->node_count, sizeof *a->nodes);
    a->outputs = (tl_node_output *)tli_alloc_array(a->env, (uint64_t)graph->tensor_count, sizeof *a->outputs);
    if (!a->nodes || !a->outputs) return 0;
    tli_copy(a->nodes, graph->nodes, (size_t)graph->node_count * sizeof *a->nodes);
    tli_copy(a->outputs, graph->outputs, (size_t)graph->tensor_count * sizeof *a->outputs);
    for (i = 0; i < graph->node_count; i++) {
        a->nodes[i].saved_bytes = tli_round_bytes(a->nodes[i].saved_bytes, a->alignment);
        a->nodes[i].fwork_bytes = tli_round_bytes(a->nodes[i].fwork_bytes, a->alignment);
        a->nodes[i].bwork_bytes = tli_round_bytes(a->nodes[i].bwork_bytes, a->alignment);
        a->nodes[i].swork_bytes = tli_round_bytes(a->nodes[i].swork_bytes, a->alignment);
    }
    for (i = 0; i < graph->tensor_count; i++)
        a->outputs[i].bytes = tli_round_bytes(a->outputs[i].bytes, a->alignment);
    a->graph = *graph;
    a->graph.nodes = a->nodes;
    a->graph.outputs = a->outputs;
    return 1;
}

// The work of the plans before counts.
static int tli_arena_watch(const tl_remat_progress *progress, void *user) {
    const tli_arena_plan *a = (const tli_arena_plan *)user;
    tl_remat_progress now = *progress;
    now.work += a->work;
    now.work_limit += a->work;
    return (a->desc->progress)(&now, a->desc->user);
}

// What tl_plan_remat is asked in the place of the caller.
static tl_remat_desc tli_arena_ask(tli_arena_plan *a) {
    tl_remat_desc rounded = *a->desc;
    rounded.graph = &a->graph;
    if (!rounded.progress) return rounded;
    rounded.progress = tli_arena_watch;
    rounded.user = a;
    return rounded;
}

// Give the plan places in the banks of the desc, if it has some, or in one. Banks that hold none are no error
// here.
static tl_result tli_arena_place(tli_arena_plan *a, int in_banks) {
    tl_places_desc places;
    tl_places_report report;
    tl_device device;
    tl_result result;
    tli_zero(&device, sizeof device);
    if (a->device) device = *a->device;
    device.alignment_bytes = a->alignment;
    tli_zero(&places, sizeof places);
    places.graph = a->given;
    places.device = &device;
    places.work_limit = a->place_work;
    places.block_bytes = a->block_bytes;
    if (a->desc) a->plan->in_flight = a->desc->in_flight;
    if (a->desc && in_banks) {
        places.banks = a->desc->banks;
        places.bank_count = a->desc->bank_count;
    }
    result = tl_plan_places(a->env, &places, a->plan, &report);
    a->work += report.work + TLI_ARENA_STEP_WORK * (uint64_t)a->plan->step_count;
    a->is_unplaced = places.bank_count && result == TL_ERROR_INFEASIBLE;
    return a->is_unplaced ? TL_OK : result;
}

// One plan within a budget, with its places. TL_ERROR_INFEASIBLE: there is no plan.
static tl_result tli_arena_try(tli_arena_plan *a, tli_arena_maker make, const tli_budget *budget,
                               tl_remat_report *report) {
    tl_result result = (make)(a, budget, report);
    a->turns++;
    a->work += report->work;
    if (result) return result;
    a->live_bytes = a->plan->peak_bytes;
    result = tli_arena_place(a, 1);
    if (result) tl_free_plan(a->env, a->plan);
    return result;
}

static int tli_fits_arenas(const tl_plan *plan, const tli_budget *budget) {
    return plan->arena_bytes <= budget->bytes && plan->host_arena_bytes <= budget->host_bytes;
}

// Whether the places of the plan fit both budgets.
static int tli_arena_is_within(const tli_arena_plan *a, const tli_budget *budget) {
    return !a->is_unplaced && tli_fits_arenas(a->plan, budget);
}

// A pool is for one budget of the host.
static void tli_arena_lower_host(tli_arena_plan *a, tli_budget *within, uint64_t host_bytes) {
    if (host_bytes != within->host_bytes) a->rounded.pool = NULL;
    within->host_bytes = host_bytes;
}

// By what the arena of the device is too large: an eighth of the live bytes, where there are no places.
static uint64_t tli_arena_excess_of(const tli_arena_plan *a, const tli_budget *budget) {
    uint64_t bytes = a->plan->arena_bytes;
    if (a->is_unplaced) return a->live_bytes / 8 + 1;
    return bytes > budget->bytes ? bytes - budget->bytes : 0;
}

// Less for the next plan, by what the arenas exceed. Where that is little of the device, a 16th of it at first,
// then a fourth: a plan of a little less is another one, whose allocations mostly leave no gaps. 0 = nothing
// would be left.
static int tli_arena_lower(tli_arena_plan *a, const tli_budget *budget, tli_budget *within) {
    uint64_t device = tli_arena_excess_of(a, budget), host = a->plan->host_arena_bytes;
    host -= host < budget->host_bytes ? host : budget->host_bytes;
    if (device && within->bytes > a->live_bytes) within->bytes = a->live_bytes;
    if (device <= budget->bytes / TLI_ARENA_CLOSE && device && a->turns < 3 && !a->is_unplaced)
        device = (device >> (a->turns == 1 ? 4 : 2)) + 1;
    if (device >= within->bytes) return 0;
    within->bytes -= device;
    tli_arena_lower_host(a, within, host < within->host_bytes ? within->host_bytes - host : 0);
    return 1;
}

// The arena of the plan at the least budget is too large, too: it is what would do.
static tl_result tli_arena_refuse(tli_arena_plan *a, const tli_budget *budget, const tl_remat_report *found) {
    tl_remat_report *report = a->report;
    report->least_budget_bytes = tli_add_base(budget, a->plan->arena_bytes);
    report->bound_budget_bytes = found->bound_budget_bytes;
    report->limiting_node = found->limiting_node;
    report->proven = report->bound_budget_bytes > budget->allowed_bytes;
    report->cost = report->bound_cost = 0;
    report->gap_ratio = 0;
    tl_free_plan(a->env, a->plan);
    return (a->planner->refuse)(a, budget);
}

// Less work for each of the plans that follow the first one, and for their places; none for bounds.
static void tli_arena_hurry(tli_arena_plan *a) {
    a->own.is_bounded = 1;
    a->most_work /= 4;
    if (a->rounded.work_limit) a->rounded.work_limit = a->rounded.work_limit / 4 + 1;
    a->place_work = (a->place_work ? a->place_work : TLI_LAYOUT_WORK) / 8 + 1;
}

// Whether the plan that was tried is better than the best so far: the cheaper one of those that fit, or where
// neither does, the one of the lower arena.
static int tli_arena_is_better(const tli_arena_plan *a, const tli_budget *budget) {
    if (a->is_unplaced) return 0;
    if (!tli_fits_arenas(&a->best, budget))
        return tli_fits_arenas(a->plan, budget) || a->plan->arena_bytes < a->best.arena_bytes;
    return tli_fits_arenas(a->plan, budget) && a->plan->cost < a->best.cost;
}

// The plan of the least bytes has an arena of more, or it fits but may be expensive: one of the same bytes that
// is made with more work, and one of a little more. The budget picks one, but it does not say what is tried.
static tl_result tli_arena_sink(tli_arena_plan *a, const tli_budget *budget, const tli_budget *least) {
    tli_budget within = *least;
    tl_remat_report report;
    uint64_t live_bytes = a->live_bytes, arena = a->plan->arena_bytes;
    uint64_t most_work = a->most_work, work_limit = a->rounded.work_limit, place_work = a->place_work;
    int32_t above = a->desc ? 0 : 1, last = least->host_bytes ? 0 : 1;
    tl_result result = TL_OK;
    if (!work_limit) tli_arena_hurry(a);    // a refusal comes soon, unless more work was asked for
    for (; above <= last && !result && !(above && arena <= least->bytes); above++) {
        a->best = *a->plan;
        if (above && work_limit) tli_arena_hurry(a);
        if (above) within.bytes = least->bytes + (arena - least->bytes) / TLI_ARENA_ABOVE;
        result = tli_arena_try(a, a->planner->make, &within, &report);
        if (!result && !a->is_unplaced && a->plan->arena_bytes < arena) arena = a->plan->arena_bytes;
        if (!result && tli_arena_is_better(a, budget)) {
            live_bytes = a->live_bytes;
            tl_free_plan(a->env, &a->best);
        } else {
            tl_free_plan(a->env, a->plan);
            *a->plan = a->best;
        }
        tli_zero(&a->best, sizeof a->best);
        if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    }
    a->live_bytes = live_bytes;
    a->most_work = most_work;
    a->rounded.work_limit = work_limit;
    a->place_work = place_work;
    a->is_unplaced = 0;
    if (result) tl_free_plan(a->env, a->plan);
    return result;
}

// The plans of the least bytes, which are the same whatever budget was too small. found: what a refusal says of
// them.
static tl_result tli_arena_try_least(tli_arena_plan *a, const tli_budget *budget, tli_budget *within,
                                     tl_remat_report *found) {
    tl_remat_report least;
    int is_named = found->least_budget_bytes > 0;
    tl_result result;
    within->is_over = 0;
    within->bytes = is_named ? found->least_budget_bytes - within->base_bytes : 1;
    result = tli_arena_try(a, a->planner->make_lowest, within, is_named ? &least : found);
    if (result || a->is_unplaced) return result;
    within->bytes = a->live_bytes;
    return a->plan->arena_bytes > within->bytes || tli_arena_is_within(a, budget)
        ? tli_arena_sink(a, budget, within) : TL_OK;
}

// Leave no plan, and no figures of one.
static tl_result tli_arena_drop(tli_arena_plan *a, tl_result result) {
    tl_free_plan(a->env, a->plan);
    tli_zero(a->report, sizeof *a->report);
    a->report->limiting_node = -1;
    return result;
}

// Whether the least budget is known without its plan, which may be very long: that of equal layers is a closed
// form, and schedules in so few slots lie without gaps.
static int tli_arena_knows_least(const tli_arena_plan *a, const tli_budget *budget,
                                 const tl_remat_report *found) {
    if (budget->host_bytes || a->block_bytes || (a->desc && (a->desc->codec || a->desc->bank_count))) return 0;
    return tli_is_revolve_chain(&a->graph) &&
           found->least_budget_bytes == tli_add_base(budget, tli_find_slots(&a->graph, 0).least);
}

// The last tries: with copies to the host, then without.
static tl_result tli_arena_end(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *found) {
    tli_budget within = *budget;
    tl_result result;
    if (tli_arena_knows_least(a, budget, found)) {
        *a->report = *found;
        return (a->planner->refuse)(a, budget);
    }
    result = tli_arena_try_least(a, budget, &within, found);
    if (!result && a->plan->host_arena_bytes > budget->host_bytes) {
        tl_free_plan(a->env, a->plan);
        tli_zero(found, sizeof *found);
        tli_arena_lower_host(a, &within, 0);
        result = tli_arena_try_least(a, budget, &within, found);
    }
    if (result) return result;
    if (a->is_unplaced) {
        int holds = a->live_bytes <= budget->bytes && !budget->is_over;
        result = tli_arena_place(a, holds);     // the error of the banks, or the bytes that one would do with
        if (holds || result) return tli_arena_drop(a, holds ? TL_ERROR_INFEASIBLE : result);
    }
    return a->plan->arena_bytes > budget->bytes || budget->is_over ? tli_arena_refuse(a, budget, found) : TL_OK;
}

// The arena of the first plan is too large: plans within less. TL_ERROR_INFEASIBLE, and no plan: none fits.
static tl_result tli_arena_search(tli_arena_plan *a, const tli_budget *budget) {
    tli_budget within = *budget;
    tl_remat_report later;
    tl_result result = TL_OK;
    int turn;
    for (turn = 1; turn < TLI_ARENA_TURNS && !result && !tli_arena_is_within(a, budget); turn++) {
        int is_left = tli_arena_lower(a, budget, &within);
        tl_free_plan(a->env, a->plan);
        result = is_left ? tli_arena_try(a, a->planner->make, &within, &later) : TL_ERROR_INFEASIBLE;
    }
    if (result || tli_arena_is_within(a, budget)) return result;
    tl_free_plan(a->env, a->plan);
    return TL_ERROR_INFEASIBLE;
}

// The first plan. Where a caller's limit was too low for its places, they are made again with more work.
static tl_result tli_arena_try_first(tli_arena_plan *a, const tli_budget *budget) {
    tl_result result = tli_arena_try(a, a->planner->make, budget, a->report);
    if (a->place_work && a->place_work < TLI_ARENA_EFFORT_END) {
        a->place_work *= TLI_ARENA_EFFORT;
        if (a->place_work > TLI_ARENA_EFFORT_END) a->place_work = TLI_ARENA_EFFORT_END;
        if (!result && !tli_arena_is_within(a, budget)) result = tli_arena_place(a, 1);
        if (result) tl_free_plan(a->env, a->plan);
    }
    return result;
}

static tl_result tli_arena_run(tli_arena_plan *a, const tli_budget *budget) {
    tl_remat_report first;
    tl_result result = tli_arena_try_first(a, budget);
    uint64_t place_work = a->place_work;
    first = *a->report;         // names the least budget, if this was refused already: by all of the work
    if (!result && tli_arena_is_within(a, budget)) return TL_OK;
    tli_arena_hurry(a);
    if (!result) result = tli_arena_search(a, budget);
    if (result != TL_ERROR_INFEASIBLE) return result;
    if (a->desc) a->rounded.work_limit = a->desc->work_limit;   // the least budget depends on the work limit
    a->most_work = TLI_REMAT_MOST_WORK;
    a->place_work = place_work;
    return tli_arena_end(a, budget, &first);
}

// Set what the report says of a plan that was not the first one, and the bound.
static void tli_arena_report(tl_plan *plan, tl_remat_report *report, uint64_t bound) {
    report->cost = plan->cost;
    report->bound_cost = bound < plan->cost ? bound : plan->cost;
    plan->bound_cost = report->bound_cost;
    report->proven = report->cost == report->bound_cost;
    report->least_budget_bytes = report->bound_budget_bytes = 0;
    report->limiting_node = -1;
    report->gap_ratio = 0;
    if (!report->proven && report->bound_cost)
        report->gap_ratio = (double)(report->cost - report->bound_cost) / (double)report->bound_cost;
}

// Blocks hold each allocation that a plan of the graph may make, whatever is dropped.
static tl_result tli_check_graph_cut(tl_env *env, tli_function function, const tl_graph *graph,
                                     int inference, uint64_t block_bytes, uint64_t alignment) {
    uint64_t cut = block_bytes & ~(alignment - 1), largest = 0;
    int32_t id, node = 0;
    if (!block_bytes) return TL_OK;
    if (!cut)
        return tli_fail_values(env, TL_ERROR_INVALID_ARG, function,
                               TLI_RULE(BLOCK_BYTES_LESS_THAN_ALIGNMENT), block_bytes, alignment);
    for (id = 0; id < graph->node_count; id++) {
        uint64_t bytes = tli_largest_allocation(graph, id, inference);
        if (bytes > largest) { largest = bytes; node = id; }
    }
    return largest > cut ? tli_fail_cut(env, function, graph, cut, largest, node) : TL_OK;
}

static void tli_arena_open_pool(tli_arena_plan *a) {
    tli_pool_init(&a->own, a->env, TLI_ARENA_POOL);
    a->own.is_of_call = 1;
}

// Ask for plans that share a pool, if they have no copies.
static void tli_arena_begin(tli_arena_plan *a, const tli_budget *budget) {
    if (!a->desc) return;
    a->rounded = tli_arena_ask(a);
    if (a->rounded.pool || a->desc->codec || budget->host_bytes) return;
    tli_arena_open_pool(a);
    a->rounded.pool = &a->own;
}

// Plan within a budget that binds the arena. result: of the checks of the desc.
static tl_result tli_plan_in_arena(tli_arena_plan *a, const tli_budget *budget, uint64_t alignment,
                                   tl_result result) {
    tl_remat_report local;
    if (!a->report) a->report = &local;
    tli_zero(a->plan, sizeof *a->plan);
    tli_zero(a->report, sizeof *a->report);
    a->alignment = alignment ? alignment : 1;
    a->most_work = TLI_REMAT_MOST_WORK;
    if (!result && ((a->alignment & (a->alignment - 1)) || a->alignment > UINT64_C(1) << 30))
        result = tli_fail(a->env, TL_ERROR_INVALID_ARG, a->planner->function,
                          TLI_RULE(ALIGNMENT_MUST_BE_POWER_OF_TWO));
    if (!result)
        result = tli_check_graph_cut(a->env, a->planner->function, a->given, a->desc && a->desc->inference,
                                     a->block_bytes, a->alignment);
    if (result == TL_ERROR_INFEASIBLE) return result;
    if (!result && !tli_arena_round(a))
        result = tli_fail(a->env, TL_ERROR_NO_MEMORY, a->planner->function, TLI_RULE(NO_MEMORY_TO_PLAN));
    if (!result) tli_arena_begin(a, budget);
    if (!result) result = tli_arena_run(a, budget);
    if (!result) tli_arena_report(a->plan, a->report, a->report->bound_cost);
    else if (result != TL_ERROR_INFEASIBLE) tli_zero(a->report, sizeof *a->report);
    if (!result || result == TL_ERROR_INFEASIBLE) a->report->work = a->work;
    tl_free_plan(a->env, &a->best);
    tli_pool_clear(&a->own);
    tli_release(a->env, a->nodes);
    tli_release(a->env, a->outputs);
    return result;
}

// -- plans that come with places: the planners --

// Plan within what a refusal names.
static tl_result tli_make_lowest(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    tl_remat_report again;
    tli_budget within = *budget;
    tl_result result = (a->planner->make)(a, budget, report);
    if (result != TL_ERROR_INFEASIBLE || !report->least_budget_bytes) return result;
    within.bytes = report->least_budget_bytes - budget->base_bytes;
    return (a->planner->make)(a, &within, &again);
}

static tl_result tli_make_remat(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    return tli_plan_remat(a->env, &a->rounded, budget, a->most_work, a->plan, report);
}

// Begin a pool of this call anew, with one plan: what is planned next depends on nothing else.
static tl_result tli_arena_seed(tli_arena_plan *a, const tl_plan *plan) {
    tl_plan copy;
    tl_result result;
    if (a->rounded.pool != &a->own) return TL_OK;
    tli_pool_clear(&a->own);
    tli_arena_open_pool(a);
    a->own.is_bounded = 1;
    result = tl_copy_plan(&a->own.env, plan, &copy);
    return result ? result : tli_pool_offer(&a->own, &a->own.env, &copy);
}

// A plan that is too long to be kept is made where it is asked for.
static tl_result tli_make_lowest_remat(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    tl_remat_report again;
    tli_budget within = *budget;
    tl_result result = tli_plan_remat_lowest(a->env, &a->rounded, budget, a->most_work, a->plan, report);
    if (!result && tli_arena_seed(a, a->plan)) {
        tl_free_plan(a->env, a->plan);
        return tli_fail(a->env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN));
    }
    if (result != TL_ERROR_INFEASIBLE || !report->least_budget_bytes) return result;
    within.bytes = report->least_budget_bytes - budget->base_bytes;
    return tli_make_remat(a, &within, &again);
}

static tl_result tli_refuse_remat(tli_arena_plan *a, const tli_budget *budget) {
    return tli_remat_refuse(a->env, a->given, budget, a->report);
}

static tl_result tli_make_chain(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    a->chain.graph = &a->graph;
    return tli_plan_chain(a->env, &a->chain, budget, a->plan, report);
}

static tl_result tli_refuse_chain(tli_arena_plan *a, const tli_budget *budget) {
    return tli_chain_refuse(a->env, a->given, budget, a->report);
}

static tl_result tli_make_policy(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    a->policy.graph = &a->graph;
    return tli_plan_policy(a->env, &a->policy, budget, a->plan, report);
}

static tl_result tli_refuse_policy(tli_arena_plan *a, const tli_budget *budget) {
    return tli_policy_refuse(a->env, a->given, a->policy.policy, budget, a->report);
}

static const tli_arena_planner tli_arena_remat = {
    TLI_IN(PLAN_REMAT), tli_make_remat, tli_make_lowest_remat, tli_refuse_remat
};
static const tli_arena_planner tli_arena_chain = {
    TLI_IN(PLAN_CHAIN), tli_make_chain, tli_make_lowest, tli_refuse_chain
};
static const tli_arena_planner tli_arena_policy = {
    TLI_IN(PLAN_POLICY), tli_make_policy, tli_make_lowest, tli_refuse_policy
};

// What every planner is asked; the rest stands in its own desc.
static tli_arena_plan tli_arena_of(tl_env *env, const tli_arena_planner *planner, const tl_graph *graph,
                                   const tl_device *device, uint64_t work_limit, tl_plan *plan) {
    tli_arena_plan a;
    tli_zero(&a, sizeof a);
    a.env = env;
    a.planner = planner;
    a.given = graph;
    a.device = device;
    a.place_work = work_limit;
    a.plan = plan;
    return a;
}

// Plan with places. *lowered: whether the arena of the first plan was too large.
static tl_result tli_plan_remat_placed(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                       tl_plan *plan, tl_remat_report *report, int *lowered) {
    tli_arena_plan a = tli_arena_of(env, &tli_arena_remat, desc->graph, desc->device, desc->work_limit, plan);
    tl_result result;
    a.desc = desc;
    a.block_bytes = desc->block_bytes;
    a.report = report;
    result = tli_plan_in_arena(&a, budget, desc->alignment_bytes, tli_check_remat(env, desc, budget));
    *lowered = a.turns > 1;
    return result;
}

// Plan without copies, compressed or on the host, and take that plan if it is cheaper, or what is said of its
// least budget if that is less. result: of the plan with them.
static tl_result tli_plan_remat_plain(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                      tl_result result, tl_plan *plan, tl_remat_report *report) {
    tl_remat_desc plain = *desc;
    tl_remat_report other;
    tli_budget within = *budget;
    uint64_t bound = result ? 0 : report->bound_cost;
    tl_plan without;
    int lowered, is_better;
    tl_result again;
    plain.codec = TL_CODEC_NONE;
    plain.pool = NULL;
    within.host_bytes = 0;
    again = tli_plan_remat_placed(env, &plain, &within, &without, &other, &lowered);
    report->work = other.work += report->work;
    is_better = again != TL_ERROR_INFEASIBLE ? again || result || without.cost < plan->cost
                                             : result && other.least_budget_bytes < report->least_budget_bytes;
    if (!is_better) {
        tl_free_plan(env, &without);
        return result ? tli_remat_refuse(env, desc->graph, budget, report) : TL_OK;
    }
    tl_free_plan(env, plan);
    *plan = without;
    *report = other;
    if (!again) tli_arena_report(plan, report, bound);
    report->proven &= !again;       // of plans without copies only
    return again;
}

// As tli_plan_remat, within a budget that binds the arena. Where the arena of the first plan with copies is too
// large, the plan without them may be the better one.
static tl_result tli_plan_remat_in_arena(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                         tl_plan *plan, tl_remat_report *report) {
    tl_remat_report local;
    tli_quiet quiet = tli_begin_quiet(env);
    int lowered;
    tl_result result;
    if (!report) report = &local;
    result = tli_plan_remat_placed(env, desc, budget, plan, report, &lowered);
    if ((desc->codec || budget->host_bytes) && lowered && (!result || result == TL_ERROR_INFEASIBLE))
        result = tli_plan_remat_plain(env, desc, budget, result, plan, report);
    tli_end_quiet(&quiet, result);
    return result;
}

// Where every bank has a capacity, they hold no more than that together. The base is not in them.
static void tli_lower_to_banks(const tl_remat_desc *desc, tli_budget *budget) {
    uint64_t sum = 0;
    int32_t k;
    if (!desc->banks || desc->bank_count < 1 || desc->bank_count > TL_MOST_BANKS) return;   // refused elsewhere
    for (k = 0; k < desc->bank_count; k++)
        if (!desc->banks[k].capacity_bytes || !tli_add_u64(sum, desc->banks[k].capacity_bytes, &sum)) return;
    if (sum >= budget->bytes || budget->is_over) return;
    budget->bytes = sum;
    budget->allowed_bytes = tli_add_base(budget, sum);
    budget->is_limited = 1;
    budget->limit = TL_LIMIT_DEVICE;
}

TLI_IMPL tl_result tl_plan_remat(tl_env *env, const tl_remat_desc *desc, tl_plan *plan,
                                 tl_remat_report *report) {
    tli_budget budget;
    TL_ASSERT(desc && desc->graph && plan);
    budget = tli_find_budget(desc->budget_bytes, desc->host_budget_bytes, desc->base_bytes, desc->device,
                             NULL, 0);
    if (!desc->live) tli_lower_to_banks(desc, &budget);
    return desc->live ? tli_plan_remat(env, desc, &budget, TLI_REMAT_MOST_WORK, plan, report)
                      : tli_plan_remat_in_arena(env, desc, &budget, plan, report);
}

TLI_IMPL tl_result tl_plan_chain(tl_env *env, const tl_chain_plan_desc *desc, tl_plan *plan,
                                 tl_remat_report *report) {
    tli_arena_plan a;
    tli_budget budget;
    TL_ASSERT(desc && desc->graph && plan);
    budget = tli_find_budget(desc->budget_bytes, 0, desc->base_bytes, desc->device, NULL, 0);
    if (desc->live) return tli_plan_chain(env, desc, &budget, plan, report);
    a = tli_arena_of(env, &tli_arena_chain, desc->graph, desc->device, desc->work_limit, plan);
    a.chain = *desc;
    a.report = report;
    return tli_plan_in_arena(&a, &budget, desc->alignment_bytes, tli_check_chain_desc(env, desc));
}

TLI_IMPL tl_result tl_plan_policy(tl_env *env, const tl_policy_desc *desc, tl_plan *plan) {
    tli_arena_plan a;
    tli_budget budget;
    TL_ASSERT(desc && desc->graph && plan);
    budget = tli_find_budget(desc->budget_bytes, 0, desc->base_bytes, desc->device, NULL, 0);
    if (desc->live) return tli_plan_policy(env, desc, &budget, plan, NULL);
    a = tli_arena_of(env, &tli_arena_policy, desc->graph, desc->device, 0, plan);
    a.policy = *desc;
    return tli_plan_in_arena(&a, &budget, desc->alignment_bytes, tli_check_policy(env, desc));
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
