#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- plans that come with places --
//
// The planners count live bytes; an arena can be larger. Sizes are rounded up to the alignment for them, so
// what remains is what lies between allocations, mostly nothing. Where an arena exceeds the budget all the
// same, a plan is made again within as much less, a few times.
//
// The least budget is the lowest arena of a few plans that are made in bytes alone: that of the least live
// bytes, others of as many and of a little more, and with copies also those without. They depend on no budget
// of the device and no cost. If none of their arenas fits, the error names the lowest. A plan whose arena is
// lower still is no answer, so refusals hold for every call. Host copies have an arena of their own. In banks,
// what is taken of all of them together is the arena, and places that no bank holds count as an arena that is
// too large.
//
// All planners with a budget go this way: each gives a function that makes one plan of the rounded graph. Those
// of chains and policies have few plans: theirs of the least bytes and of a little more are the last tries.

#define TLI_ARENA_TURNS 6      // plans within the budget and within less, at most; then those of the least
#define TLI_ARENA_CLOSE 32     // an arena exceeds a budget by little: by at most one part in so many
#define TLI_ARENA_ABOVE 4      // a plan above the least bytes: by one part in so many of what the arena of the
                               // plan of the least bytes takes beyond these
#define TLI_ARENA_POOL (UINT64_C(4) << 20)  // bytes of plans that are kept for the next ones
#define TLI_ARENA_STEP_WORK UINT64_C(150)   // of a step of a plan that gets places, beside that of its layout
#define TLI_ARENA_EFFORT 16    // times the work of places where those of the first plan do not fit,
#define TLI_ARENA_EFFORT_END (TLI_LAYOUT_WORK / TLI_ARENA_EFFORT)   // up to this

typedef struct tli_arena_plan tli_arena_plan;

// One plan of the rounded graph within a budget. TL_ERROR_INFEASIBLE: the report says what the least one takes,
// if that is known.
typedef tl_result (*tli_arena_maker)(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report);

// Fail with the error of a budget that the arena of the least plan exceeds; what that takes is in a->report.
typedef tl_result (*tli_arena_refuser)(tli_arena_plan *a, const tli_budget *budget);

typedef struct tli_arena_planner {
    tli_function      function;     // for error sentences
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
    int       is_trial;         // 1 = one plan of many: little work for the least budget, no plan is held to it
    int       is_stopped;       // 1 = progress asked to stop
    int       is_unplaced;      // 1 = no places in the banks were found for the plan
    uint64_t  live_bytes;       // of the plan, its sizes rounded up
    uint64_t  work, most_work;  // of the plans before; of the next one by default
    uint64_t  work_end;         // of all plans and their places: a limit of the caller from TLI_LAYOUT_WORK on;
                                // else 0
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
        a->nodes[i].weight_rows = a->nodes[i].piece_rows = 0;      // which do not divide rounded bytes
    }
    for (i = 0; i < graph->tensor_count; i++)
        a->outputs[i].bytes = tli_round_bytes(a->outputs[i].bytes, a->alignment);
    a->graph = *graph;
    a->graph.nodes = a->nodes;
    a->graph.outputs = a->outputs;
    a->graph.attributes = NULL;     // bytes are no longer as many for each row
    return 1;
}

// The work of the plans before counts.
static int tli_arena_watch(const tl_remat_progress *progress, void *user) {
    tli_arena_plan *a = (tli_arena_plan *)user;
    tl_remat_progress now = *progress;
    now.work += a->work;
    now.work_limit += a->work;
    if (!a->is_stopped && (a->desc->progress)(&now, a->desc->user)) a->is_stopped = 1;
    return a->is_stopped;
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

// Of a caller's limit, a plan and its places take no more than these parts of what is left, so each of the next
// ones has some, and all together stay within it.
#define TLI_ARENA_PLAN_SHARE(left) ((left) / 4 * 3 + 1)
#define TLI_ARENA_PLACE_SHARE(left) ((left) / 2 + 1)

static uint64_t tli_arena_left(const tli_arena_plan *a) {
    if (!a->work_end) return UINT64_MAX - 1;
    return a->work_end > a->work ? a->work_end - a->work : 0;
}

// Give the plan places. in_banks: 1 = in the banks of the desc, if it has some; 0 = in one bank. Where the
// banks cannot hold the plan, is_unplaced is set, which is no error here.
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
    if (a->work_end && TLI_ARENA_PLACE_SHARE(tli_arena_left(a)) < a->place_work)
        places.work_limit = TLI_ARENA_PLACE_SHARE(tli_arena_left(a));
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

// One plan within a budget of live bytes, with its places. TL_ERROR_INFEASIBLE: no plan was found.
static tl_result tli_arena_try(tli_arena_plan *a, tli_arena_maker make, const tli_budget *budget,
                               tl_remat_report *report) {
    uint64_t asked = a->rounded.work_limit, left = tli_arena_left(a);
    uint64_t share = a->turns ? TLI_ARENA_PLAN_SHARE(left) : left / 8 * 5 + 1;  // others may have to follow
    tl_result result;
    if (a->rounded.codec || budget->host_bytes) share = share / 2 + 1;  // it is spent without copies, then with
    if (a->work_end && share < asked) a->rounded.work_limit = share;
    result = (make)(a, budget, report);
    a->rounded.work_limit = asked;
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

// Set the host budget of the next plan. A pool is for one host budget: with another, the plan is made without.
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

// The arena of the plan at the least budget is too large, too: its bytes are the least budget to name.
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

// Where the arena of the plan of the least bytes takes more than these, try one of a little more bytes, and
// keep the better one for the budget: its arena may be lower, or it may cost less. What is tried does not
// depend on the budget.
static tl_result tli_arena_try_above(tli_arena_plan *a, const tli_budget *budget, const tli_budget *least) {
    tli_budget within = *least;
    tl_remat_report report;
    uint64_t live_bytes = a->live_bytes, most_work = a->most_work, place_work = a->place_work;
    tl_result result;
    if (a->plan->arena_bytes <= least->bytes) return TL_OK;
    tli_arena_hurry(a);     // a refusal comes soon
    a->best = *a->plan;
    within.bytes = least->bytes + (a->plan->arena_bytes - least->bytes) / TLI_ARENA_ABOVE;
    result = tli_arena_try(a, a->planner->make, &within, &report);
    if (!result && tli_arena_is_better(a, budget)) {
        live_bytes = a->live_bytes;
        tl_free_plan(a->env, &a->best);
    } else {
        tl_free_plan(a->env, a->plan);
        *a->plan = a->best;
    }
    tli_zero(&a->best, sizeof a->best);
    if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    a->live_bytes = live_bytes;
    a->most_work = most_work;
    a->place_work = place_work;
    if (result) tl_free_plan(a->env, a->plan);
    return result;
}

// The plans of the least bytes, which are the same whatever budget was too small. found: what a refusal says of
// them.
static tl_result tli_arena_try_least(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *found) {
    tli_budget within = *budget;
    tl_remat_report least;
    int is_named = found->least_budget_bytes > 0;
    tl_result result;
    within.is_over = 0;
    within.bytes = is_named ? found->least_budget_bytes - within.base_bytes : 1;
    result = tli_arena_try(a, a->planner->make_lowest, &within, is_named ? &least : found);
    if (result) return result;
    within.bytes = a->live_bytes;
    return tli_arena_try_above(a, budget, &within);
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
static int tli_arena_knows_least(const tli_arena_plan *a, uint64_t host_bytes) {
    if (host_bytes || a->block_bytes) return 0;
    if (a->desc && (a->desc->codec || a->desc->form || a->desc->bank_count || a->desc->in_flight > 1)) return 0;
    return !(a->desc && a->desc->inference) && tli_is_revolve_chain(&a->graph);
}

// The last tries of chains and policies.
static tl_result tli_arena_end(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *found) {
    tl_result result;
    if (tli_arena_knows_least(a, budget->host_bytes) &&
        found->least_budget_bytes == tli_add_base(budget, tli_find_slots(&a->graph, 0).least)) {
        *a->report = *found;
        return (a->planner->refuse)(a, budget);
    }
    result = tli_arena_try_least(a, budget, found);
    if (result) return result;
    return a->plan->arena_bytes > budget->bytes || budget->is_over ? tli_arena_refuse(a, budget, found) : TL_OK;
}

// -- plans that come with places: the least budget --

static void tli_arena_open_pool(tli_arena_plan *a) {
    tli_pool_init(&a->own, a->env, TLI_ARENA_POOL);
}

static tl_result tli_make_remat(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    return tli_plan_remat_as(a->env, &a->rounded, budget, a->most_work, TLI_REMAT_WITHIN, a->plan, report);
}

// As tl_plan_remat, of live bytes, with the search for the least budget.
static tl_result tli_make_any_remat(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    return tli_plan_remat_as(a->env, &a->rounded, budget, a->most_work, TLI_REMAT_ANY, a->plan, report);
}

// Begin a pool of this call anew, with one plan: what is planned next depends on nothing else.
static tl_result tli_arena_seed(tli_arena_plan *a, const tl_plan *plan) {
    tl_plan copy;
    tl_result result;
    tli_pool_clear(&a->own);
    tli_arena_open_pool(a);
    a->rounded.pool = &a->own;
    a->own.is_bounded = 1;
    result = tl_copy_plan(&a->own.env, plan, &copy);
    if (!result) result = tli_pool_offer(&a->own, &a->own.env, &copy);
    return result ? tli_fail(a->env, result, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN)) : TL_OK;
}

// The plan of the least live bytes that is found soon.
static tl_result tli_make_first_remat(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    return tli_plan_remat_lowest(a->env, &a->rounded, budget, a->most_work, 1, a->plan, report);
}

// The plan of the least live bytes. If only its bytes are known, because it may be long, it is made here.
static tl_result tli_make_lowest_remat(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    tl_remat_report again;
    tli_budget within = *budget;
    tl_result result = tli_plan_remat_lowest(a->env, &a->rounded, budget, a->most_work, 0, a->plan, report);
    if (!result) result = tli_arena_seed(a, a->plan);
    if (result && result != TL_ERROR_INFEASIBLE) tl_free_plan(a->env, a->plan);
    if (result != TL_ERROR_INFEASIBLE || !report->least_budget_bytes) return result;
    within.bytes = report->least_budget_bytes - budget->base_bytes;
    return tli_make_remat(a, &within, &again);
}

// The search for the least budget, which is a call of its own.
typedef struct tli_arena_least {
    tli_arena_plan   a;
    tli_bytes_alone  alone;
    tl_remat_desc    desc;
    tl_remat_report  report;        // of the plan of the least live bytes
    tl_plan          plan;          // that is tried
    tli_arena_plan *caller;
    uint64_t         host_bytes;    // of its class
} tli_arena_least;

// What is found.
typedef struct tli_arena_lowest {
    tl_plan  plan;                  // with costs of bytes alone
    uint64_t bytes;                 // its arena; UINT64_MAX = nothing is found
    uint64_t enough;                // it need be no lower
    uint64_t floor;                 // proven: no plan takes less
    int32_t  node;                  // that takes so many; -1 = none
    int32_t  has_plan;              // 0 = the bytes are known without one
} tli_arena_lowest;

// Ask the caller's progress function. It is told no costs: they are those of bytes alone.
static int tli_arena_watch_least(const tl_remat_progress *progress, void *user) {
    tli_arena_plan *a = ((tli_arena_least *)user)->caller;
    tl_remat_progress now = *progress;
    now.cost = now.bound_cost = 0;
    now.work += a->work;
    now.work_limit += a->work;
    if (!a->is_stopped && (a->desc->progress)(&now, a->desc->user)) a->is_stopped = 1;
    return a->is_stopped;
}

// Begin, with copies or without. 0 = no memory.
static int tli_arena_open_least(tli_arena_plan *a, uint64_t host_bytes, int has_copies,
                                tli_arena_least *x) {
    tli_zero(x, sizeof *x);
    x->caller = a;
    x->host_bytes = has_copies ? host_bytes : 0;
    if (!tli_open_alone(a->env, a->given, &x->alone)) return 0;
    x->desc = *a->desc;
    x->desc.graph = &x->alone.graph;
    x->desc.seed = 0;
    x->desc.device = &x->alone.device;
    if (a->is_trial && a->desc->work_limit && x->alone.work > a->desc->work_limit / 4)
        x->alone.work = a->desc->work_limit / 4 + 1;
    x->desc.work_limit = x->alone.work;
    if (x->desc.progress) { x->desc.progress = tli_arena_watch_least; x->desc.user = x; }
    if (!has_copies) x->desc.codec = TL_CODEC_NONE;
    x->a = *a;
    x->a.given = &x->alone.graph;
    x->a.device = &x->alone.device;
    x->a.desc = &x->desc;
    x->a.place_work = a->is_trial ? x->alone.work / 4 + 1 : x->alone.work;
    x->a.plan = &x->plan;
    x->a.report = &x->report;
    x->a.most_work = x->desc.work_limit;
    x->a.turns = 0;
    x->a.work = x->a.work_end = 0;
    tli_zero(&x->a.own, sizeof x->a.own);
    x->a.nodes = NULL;
    x->a.outputs = NULL;
    tli_zero(&x->a.best, sizeof x->a.best);
    if (!tli_arena_round(&x->a)) return 0;
    x->a.rounded = tli_arena_ask(&x->a);
    tli_arena_open_pool(&x->a);
    x->a.rounded.pool = &x->a.own;
    return 1;
}

static void tli_arena_close_least(tli_arena_least *x) {
    tl_free_plan(x->a.env, &x->plan);
    tli_pool_clear(&x->a.own);
    tli_release(x->a.env, x->a.nodes);
    tli_release(x->a.env, x->a.outputs);
    tli_close_alone(&x->alone);
}

// Keep the plan that was tried if its arena is the lowest so far, and the host holds its copies.
static void tli_arena_sink(tli_arena_least *x, tli_arena_lowest *lowest) {
    if (x->a.is_unplaced || x->plan.host_arena_bytes > x->host_bytes || x->plan.arena_bytes >= lowest->bytes) {
        tl_free_plan(x->a.env, &x->plan);
        return;
    }
    tl_free_plan(x->a.env, &lowest->plan);
    lowest->plan = x->plan;
    lowest->bytes = x->plan.arena_bytes;
    lowest->has_plan = 1;
    lowest->node = x->report.limiting_node;
    tli_zero(&x->plan, sizeof x->plan);
}

static int tli_arena_is_low(const tli_arena_lowest *lowest) {
    return lowest->bytes <= lowest->enough || lowest->bytes <= lowest->floor;
}

// Try the plan of the least live bytes that the first parts of the ladder find, that of the least live bytes,
// one of as many that is planned anew, and others of more: by parts of what the lowest arena takes beyond them.
static tl_result tli_arena_sink_all(tli_arena_least *x, tli_arena_lowest *lowest) {
    static const uint8_t above[] = { 0, 128, 64, 192, 32, 224 };  // 256ths
    tli_budget within = tli_find_budget(0, x->host_bytes, 0, NULL, NULL, 0);
    tl_remat_report report;
    uint64_t live, most, over;
    uint32_t i;
    tl_result result = TL_ERROR_INFEASIBLE;
    within.bytes = 0;
    if (!x->a.is_trial) result = tli_arena_try(&x->a, tli_make_first_remat, &within, &x->report);
    if (result && result != TL_ERROR_INFEASIBLE) return result;
    if (!result) tli_arena_sink(x, lowest);
    if (tli_arena_is_low(lowest)) return TL_OK;
    result = tli_arena_try(&x->a, x->a.planner->make_lowest, &within, &x->report);
    if (result) return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
    lowest->floor = x->report.bound_budget_bytes;
    live = x->a.live_bytes;
    most = x->a.is_unplaced ? live + live / 4 : x->plan.arena_bytes;
    tli_arena_sink(x, lowest);
    for (i = 0; i < (x->a.is_trial ? 1 : sizeof above) && most > live && !tli_arena_is_low(lowest); i++) {
        if (lowest->bytes < most) most = lowest->bytes;
        over = most > live ? most - live : 0;
        within.bytes = live + over / 256 * above[i] + over % 256 * above[i] / 256;
        result = tli_arena_try(&x->a, x->a.planner->make, &within, &report);
        if (result == TL_ERROR_INFEASIBLE) continue;
        if (result) return result;
        tli_arena_sink(x, lowest);
    }
    return TL_OK;
}

// Find the lowest arena of the plans of a class, but no lower than is enough.
static tl_result tli_arena_find_least(tli_arena_plan *a, uint64_t host_bytes, int has_copies,
                                      tli_arena_lowest *lowest) {
    tli_arena_least x;
    tl_result result = TL_ERROR_NO_MEMORY;
    if (tli_arena_is_low(lowest)) return TL_OK;
    if (tli_arena_open_least(a, host_bytes, has_copies, &x)) {
        if (tli_arena_knows_least(&x.a, host_bytes)) {
            lowest->bytes = tli_find_slots(&x.a.graph, 0).least;
            lowest->node = a->given->node_count - 1;
            result = TL_OK;
        } else {
            result = tli_arena_sink_all(&x, lowest);
        }
    }
    a->work += x.a.work;
    tli_arena_close_least(&x);
    return result;
}

// What the lowest arena depends on beside the class of a pool; 0 = pools do not keep it. With banks it is not
// bytes alone that bind.
static uint64_t tli_arena_key(const tli_arena_plan *a) {
    if (!a->desc->pool || a->desc->bank_count || a->is_trial) return 0;
    return tl_mix_u64(tl_mix_u64(a->alignment, a->block_bytes), (uint64_t)a->desc->in_flight) | 1;
}

// Take it from the caller's pool, if it was searched before.
static tl_result tli_arena_recall(tli_arena_plan *a, tli_arena_lowest *lowest, int *is_known) {
    const tl_remat_pool *pool = a->desc->pool;
    uint64_t key = tli_arena_key(a);
    *is_known = key && pool->arena_key == key;
    if (!*is_known) return TL_OK;
    lowest->bytes = pool->arena_bytes;
    lowest->floor = pool->arena_floor;
    lowest->node = pool->arena_node;
    lowest->has_plan = pool->arena_lowest.step_count > 0;
    return lowest->has_plan ? tl_copy_plan(a->env, &pool->arena_lowest, &lowest->plan) : TL_OK;
}

// Give it to the pool, if the search went to its end.
static tl_result tli_arena_keep(const tli_arena_plan *a, const tli_arena_lowest *lowest) {
    tl_remat_pool *pool = a->desc->pool;
    uint64_t key = tli_arena_key(a);
    int is_empty = lowest->has_plan && !lowest->plan.step_count;
    tl_result result = TL_OK;
    if (!key || a->is_stopped || is_empty || lowest->bytes <= lowest->enough) return TL_OK;
    tl_free_plan(&pool->env, &pool->arena_lowest);
    pool->arena_key = 0;
    if (lowest->has_plan) result = tl_copy_plan(&pool->env, &lowest->plan, &pool->arena_lowest);
    if (result) return result;
    pool->arena_key = key;
    pool->arena_bytes = lowest->bytes;
    pool->arena_floor = lowest->floor;
    pool->arena_node = lowest->node;
    return TL_OK;
}

// Find the lowest arena of the plans that the call may make: where it allows copies, also of those without.
static tl_result tli_arena_find_lowest(tli_arena_plan *a, const tli_budget *budget, uint64_t enough,
                                       tli_arena_lowest *lowest) {
    tl_result result;
    int is_known;
    tli_zero(lowest, sizeof *lowest);
    lowest->bytes = UINT64_MAX;
    lowest->enough = enough;
    lowest->node = -1;
    result = tli_arena_recall(a, lowest, &is_known);
    if (!result && is_known) return TL_OK;
    if (!result) result = tli_arena_find_least(a, 0, 0, lowest);
    if (!result && (budget->host_bytes || a->desc->codec)) {
        lowest->floor = 0;
        result = tli_arena_find_least(a, budget->host_bytes, 1, lowest);
    }
    if (!result) result = tli_arena_keep(a, lowest);
    if (result == TL_ERROR_NO_MEMORY)
        result = tli_fail(a->env, result, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN));
    return result;
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

// Say that the least budget is what was found.
static tl_result tli_arena_refuse_below(tli_arena_plan *a, const tli_budget *budget,
                                        const tl_remat_report *first, const tli_arena_lowest *lowest) {
    tl_remat_report *report = a->report;
    uint64_t floor = tli_add_base(budget, lowest->floor);
    tl_free_plan(a->env, a->plan);
    tli_zero(report, sizeof *report);
    report->least_budget_bytes = tli_add_base(budget, lowest->bytes);
    report->bound_budget_bytes = tli_larger_u64(first->bound_budget_bytes, floor);
    if (report->bound_budget_bytes > report->least_budget_bytes)
        report->bound_budget_bytes = report->least_budget_bytes;
    report->limiting_node = lowest->node;
    report->proven = report->bound_budget_bytes > budget->allowed_bytes;
    return (a->planner->refuse)(a, budget);
}

// Nothing was placed in the banks: the error that they give for the plan of the least bytes.
static tl_result tli_arena_refuse_banks(tli_arena_plan *a, const tli_budget *budget) {
    tl_remat_report found;
    tli_budget within = *budget;
    tl_result result;
    int holds;
    within.bytes = 0;
    result = tli_arena_try(a, a->planner->make_lowest, &within, &found);
    if (result) return result;
    holds = a->live_bytes <= budget->bytes && !budget->is_over;
    result = tli_arena_place(a, holds);     // or in one bank, to name what it takes there
    if (holds || result) return tli_arena_drop(a, holds ? TL_ERROR_INFEASIBLE : result);
    return tli_arena_refuse(a, budget, &found);
}

// Begin a pool with a plan of the given graph.
static tl_result tli_arena_seed_lowest(tli_arena_plan *a, const tl_plan *from) {
    tli_steps steps = tli_steps_of(a->env);
    tl_plan plan;
    int32_t i;
    tl_result result;
    tli_zero(&plan, sizeof plan);
    for (i = 0; i < from->step_count; i++) tli_add_step(&steps, from->steps[i]);
    result = tli_finish_plan(&steps, TLI_IN(PLAN_REMAT), &a->graph, from->inference, &plan);
    if (!result) result = tli_measure(a->env, TLI_IN(PLAN_REMAT), &a->graph, a->device, 1, &plan);
    if (!result) result = tli_arena_seed(a, &plan);
    tl_free_plan(a->env, &plan);
    return result;
}

// The lowest plan fits. It gets the costs of the graph, and from it cheaper ones are searched within the budget
// or, where none is found, within its own bytes.
static tl_result tli_arena_rise(tli_arena_plan *a, const tli_budget *budget, tli_arena_lowest *lowest) {
    tli_budget within = *budget;
    tl_remat_report report;
    tl_result result;
    int turn;
    a->best = lowest->plan;
    tli_zero(&lowest->plan, sizeof lowest->plan);
    result = tli_measure(a->env, TLI_IN(PLAN_REMAT), a->given, a->device, 1, &a->best);
    for (turn = 0; turn < 2 && !result; turn++) {
        result = tli_arena_seed_lowest(a, &a->best);
        if (turn) within.bytes = a->best.arena_bytes;
        if (turn) tli_arena_hurry(a);
        else a->own.is_bounded = 0;
        if (!result) result = tli_arena_try(a, a->planner->make, &within, &report);
        if (!result && !turn) a->report->bound_cost = report.bound_cost;
        if (!result && tli_arena_is_within(a, budget) && a->plan->cost <= a->best.cost &&
            a->plan->arena_bytes >= lowest->bytes) {
            tl_free_plan(a->env, &a->best);
            return TL_OK;
        }
        tl_free_plan(a->env, a->plan);
        if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    }
    *a->plan = a->best;
    tli_zero(&a->best, sizeof a->best);
    if (result) tl_free_plan(a->env, a->plan);
    return result;
}

// Make the plan of equal layers, whose bytes are known without it.
static tl_result tli_arena_make_equal(tli_arena_plan *a, const tli_budget *budget) {
    tl_remat_report report;
    tl_result result = tli_arena_try(a, tli_make_any_remat, budget, &report);
    if (result || tli_arena_is_within(a, budget)) return result;
    tl_free_plan(a->env, a->plan);
    return TL_ERROR_INFEASIBLE;
}

// Refuse with a least budget whose plan has costs that can be counted.
static tl_result tli_arena_refuse_priced(tli_arena_plan *a, const tli_budget *budget,
                                         const tl_remat_report *first, tli_arena_lowest *lowest) {
    tl_result result = TL_OK;
    if (lowest->has_plan)
        result = tli_measure(a->env, TLI_IN(PLAN_REMAT), a->given, a->device, 1, &lowest->plan);
    return result ? tli_arena_drop(a, result) : tli_arena_refuse_below(a, budget, first, lowest);
}

// No plan takes less than the least budget. result: TL_OK = there is a plan that fits, which is the answer if
// it keeps that; else the one behind the least budget is, if it fits. first: the report of the first plan.
static tl_result tli_arena_hold_least(tli_arena_plan *a, const tli_budget *budget, tl_result result,
                                      const tl_remat_report *first) {
    tli_arena_lowest lowest;
    tl_result found;
    if (!result && !a->plan->arena_bytes) return TL_OK;     // there is nothing below
    found = tli_arena_find_lowest(a, budget, result ? 0 : a->plan->arena_bytes, &lowest);
    a->place_work = a->desc->work_limit;
    a->most_work = TLI_REMAT_MOST_WORK;
    a->rounded.work_limit = a->desc->work_limit;
    if (a->is_stopped && !result) found = TL_OK;        // what is found so far is the answer
    else if (!found && (result || lowest.bytes > a->plan->arena_bytes)) {
        tl_free_plan(a->env, a->plan);
        if (lowest.bytes == UINT64_MAX) found = tli_arena_refuse_banks(a, budget);
        else if (lowest.bytes > budget->bytes || budget->is_over)
            found = tli_arena_refuse_priced(a, budget, first, &lowest);
        else if (lowest.has_plan) found = tli_arena_rise(a, budget, &lowest);
        else found = tli_arena_make_equal(a, budget);
    }
    tl_free_plan(a->env, &lowest.plan);
    if (found) tl_free_plan(a->env, a->plan);
    return found;
}

static tl_result tli_arena_run(tli_arena_plan *a, const tli_budget *budget) {
    tl_remat_report first;
    tl_result result = tli_arena_try_first(a, budget);
    uint64_t place_work = a->place_work;
    first = *a->report;         // names the least budget, if this was refused already
    if (!result && tli_arena_is_within(a, budget))
        return a->desc && !a->is_trial ? tli_arena_hold_least(a, budget, TL_OK, &first) : TL_OK;
    tli_arena_hurry(a);
    if (!result) result = tli_arena_search(a, budget);
    // Costs that are too large do not rule out a plan of the least budget, which is searched in bytes alone.
    if (result == TL_ERROR_OVERFLOW && a->desc) result = TL_ERROR_INFEASIBLE;
    if (result && result != TL_ERROR_INFEASIBLE) return result;
    if (a->desc && (result || !a->is_trial)) return tli_arena_hold_least(a, budget, result, &first);
    if (!result) return result;
    a->most_work = TLI_REMAT_MOST_WORK;
    a->place_work = place_work;
    return tli_arena_end(a, budget, &first);
}

// Set what the report says of the plan that is the answer. bound: of any plan, from the report of the first.
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

// Check that a block holds each allocation that a plan of the graph may make, whatever is dropped.
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

static tl_result tli_refuse_remat(tli_arena_plan *a, const tli_budget *budget) {
    return tli_remat_refuse(a->env, a->given, budget, a->is_stopped, a->report);
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
    return tli_policy_refuse(a->env, a->given, a->policy.policy.kind, budget, a->report);
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

// Places are aligned as asked, else as the device asks.
static uint64_t tli_arena_alignment(uint64_t alignment, const tl_device *device) {
    return alignment || !device ? alignment : device->alignment_bytes;
}

// Plan with places. *lowered: whether the arena of the first plan was too large.
static tl_result tli_plan_remat_placed(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                       int is_trial, tl_plan *plan, tl_remat_report *report, int *lowered) {
    tli_arena_plan a = tli_arena_of(env, &tli_arena_remat, desc->graph, desc->device, desc->work_limit, plan);
    tl_result result;
    a.desc = desc;
    a.is_trial = is_trial;
    a.block_bytes = desc->block_bytes;
    a.work_end = desc->work_limit < TLI_LAYOUT_WORK ? 0 : desc->work_limit;
    a.report = report;
    result = tli_plan_in_arena(&a, budget, tli_arena_alignment(desc->alignment_bytes, desc->device),
                               tli_check_remat(env, desc, budget));
    *lowered = a.turns > 1;
    return result;
}

// Plan without copies, compressed or on the host, and take that plan if it is cheaper.
static tl_result tli_plan_remat_plain(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                      int is_trial, tl_plan *plan, tl_remat_report *report) {
    tl_remat_desc plain = *desc;
    tl_remat_report other;
    tli_budget within = *budget;
    uint64_t bound = report->bound_cost;
    tl_plan without;
    int lowered;
    tl_result result;
    plain.codec = TL_CODEC_NONE;
    plain.pool = NULL;
    within.host_bytes = 0;
    result = tli_plan_remat_placed(env, &plain, &within, is_trial, &without, &other, &lowered);
    report->work = other.work += report->work;
    if (result == TL_ERROR_INFEASIBLE || result == TL_ERROR_OVERFLOW ||
        (!result && without.cost >= plan->cost)) {
        tl_free_plan(env, &without);
        return TL_OK;
    }
    tl_free_plan(env, plan);
    *plan = without;
    *report = other;
    if (!result) tli_arena_report(plan, report, bound);
    return result;
}

// As tli_plan_remat, within a budget that binds the arena. Where the arena of the first plan with copies is too
// large, the plan without them may be the better one.
static tl_result tli_search_in_arena(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                     int is_trial, tl_plan *plan, tl_remat_report *report) {
    tl_remat_report local;
    tli_quiet quiet = tli_begin_quiet(env);
    int lowered;
    tl_result result;
    if (!report) report = &local;
    result = tli_plan_remat_placed(env, desc, budget, is_trial, plan, report, &lowered);
    if ((desc->codec || budget->host_bytes) && lowered && !result)
        result = tli_plan_remat_plain(env, desc, budget, is_trial, plan, report);
    tli_end_quiet(&quiet, result);
    return result;
}

// The same, where inputs of the graph may die.
static tl_result tli_plan_remat_in_arena(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                         int is_trial, tl_plan *plan, tl_remat_report *report) {
    tl_remat_desc asked = *desc;
    tli_dying dying;
    tl_result result;
    if (!tli_has_dying(desc->graph)) return tli_search_in_arena(env, desc, budget, is_trial, plan, report);
    tli_zero(plan, sizeof *plan);
    if (report) tli_zero(report, sizeof *report);
    result = tl_check_graph(env, desc->graph);
    if (!result) result = tli_begin_dying(env, &asked, &dying);
    if (result) return result;
    result = tli_search_in_arena(env, &asked, budget, is_trial, plan, report);
    tli_end_dying(env, desc->graph, &dying, plan, report);
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
                      : tli_plan_remat_in_arena(env, desc, &budget, 0, plan, report);
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
    return tli_plan_in_arena(&a, &budget, tli_arena_alignment(desc->alignment_bytes, desc->device),
                               tli_check_chain_desc(env, desc));
}

TLI_IMPL tl_result tl_plan_policy(tl_env *env, const tl_policy_desc *desc, tl_plan *plan) {
    tli_arena_plan a;
    tli_budget budget;
    TL_ASSERT(desc && desc->graph && plan);
    budget = tli_find_budget(desc->budget_bytes, 0, desc->base_bytes, desc->device, NULL, 0);
    if (desc->live) return tli_plan_policy(env, desc, &budget, plan, NULL);
    a = tli_arena_of(env, &tli_arena_policy, desc->graph, desc->device, 0, plan);
    a.policy = *desc;
    return tli_plan_in_arena(&a, &budget, tli_arena_alignment(desc->alignment_bytes, desc->device),
                               tli_check_policy_desc(env, desc));
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
