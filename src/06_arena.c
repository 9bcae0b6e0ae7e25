#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- plans that come with places --
//
// The planner counts live bytes; an arena can be larger. Sizes are rounded up to the alignment for it, so
// what remains is what lies between allocations, mostly nothing. Where an arena exceeds the budget all the
// same, a plan is made again within as much less, a few times; the last try is the plan of the least
// budget, which depends on no budget of the device: if its arena is refused, it is what does. Host copies
// have an arena of their own; where even the least plan's exceeds the budget of the host, the last try is
// the least plan without copies.

#define TLI_ARENA_TURNS 6      // plans that are made at most, the last one beside

typedef struct tli_arena_plan {
    tl_env   *env;
    const tl_remat_desc *desc;
    tl_remat_desc   rounded;    // what the planner is asked
    tl_graph        graph;      // the graph of desc, its bytes rounded up
    tl_node        *nodes;      // [node_count] of it
    tl_node_output *outputs;    // [tensor_count]
    uint64_t  alignment;
    uint64_t  work, most_work;  // of the plans before; of the next one by default
    tl_plan  *plan;
    tl_remat_report *report;    // of the first plan: its bounds hold for all
} tli_arena_plan;

static uint64_t tli_round_bytes(uint64_t bytes, uint64_t alignment) {
    return bytes > UINT64_MAX - alignment ? bytes : tli_align_up(bytes, alignment);
}

// 0 = no memory.
static int tli_arena_round(tli_arena_plan *a) {
    const tl_graph *graph = a->desc->graph;
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
    return a->desc->progress(&now, a->desc->user);
}

// One plan within a budget, with its places. TL_ERROR_INFEASIBLE: there is no plan.
static tl_result tli_arena_try(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *report) {
    tl_places_desc places;
    tl_device device;
    tl_result result = tli_plan_remat(a->env, &a->rounded, budget, a->most_work, a->plan, report);
    a->work += report->work;
    if (result) return result;
    tli_zero(&device, sizeof device);
    if (a->desc->device) device = *a->desc->device;
    device.alignment_bytes = a->alignment;
    tli_zero(&places, sizeof places);
    places.graph = a->desc->graph;
    places.device = &device;
    places.work_limit = a->desc->work_limit;
    places.block_bytes = a->desc->block_bytes;
    result = tl_plan_places(a->env, &places, a->plan, NULL);
    if (result) tl_free_plan(a->env, a->plan);
    return result;
}

// Whether the places of the plan fit both budgets.
static int tli_arena_is_within(const tli_arena_plan *a, const tli_budget *budget) {
    return a->plan->arena_bytes <= budget->bytes && a->plan->host_arena_bytes <= budget->host_bytes;
}

// A pool is for one budget of the host.
static void tli_arena_lower_host(tli_arena_plan *a, tli_budget *within, uint64_t host_bytes) {
    if (host_bytes != within->host_bytes) a->rounded.pool = NULL;
    within->host_bytes = host_bytes;
}

// Less for the next plan, by what the arenas exceed. 0 = nothing would be left.
static int tli_arena_lower(tli_arena_plan *a, const tli_budget *budget, tli_budget *within) {
    uint64_t device = a->plan->arena_bytes, host = a->plan->host_arena_bytes;
    device -= device < budget->bytes ? device : budget->bytes;
    host -= host < budget->host_bytes ? host : budget->host_bytes;
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
    return tli_remat_refuse(a->env, a->desc->graph, budget, report);
}

// The plan at the least budget, which is the same whatever budget was too small. found: what a refusal says of
// it.
static tl_result tli_arena_try_least(tli_arena_plan *a, tli_budget *within, tl_remat_report *found) {
    tl_remat_report least;
    tl_result result = TL_ERROR_INFEASIBLE;
    within->is_over = 0;
    within->bytes = 1;
    if (!found->least_budget_bytes) result = tli_arena_try(a, within, found);
    if (result == TL_ERROR_INFEASIBLE && found->least_budget_bytes) {
        within->bytes = found->least_budget_bytes - within->base_bytes;
        result = tli_arena_try(a, within, &least);
    }
    return result;
}

// The last tries: with copies to the host, then without.
static tl_result tli_arena_end(tli_arena_plan *a, const tli_budget *budget, tl_remat_report *found) {
    tli_budget within = *budget;
    tl_result result = tli_arena_try_least(a, &within, found);
    if (!result && a->plan->host_arena_bytes > budget->host_bytes) {
        tl_free_plan(a->env, a->plan);
        tli_zero(found, sizeof *found);
        tli_arena_lower_host(a, &within, 0);
        result = tli_arena_try_least(a, &within, found);
    }
    if (result) return result;
    return a->plan->arena_bytes > budget->bytes || budget->is_over ? tli_arena_refuse(a, budget, found) : TL_OK;
}

static tl_result tli_arena_run(tli_arena_plan *a, const tli_budget *budget) {
    tli_budget within = *budget;
    tl_remat_report first, later;
    tl_result result = tli_arena_try(a, &within, a->report);
    int turn;
    first = *a->report;         // names the least budget, if this was refused already: by all of the work
    a->most_work /= 4;
    if (a->rounded.work_limit) a->rounded.work_limit = a->rounded.work_limit / 4 + 1;
    for (turn = 1; turn < TLI_ARENA_TURNS && !result && !tli_arena_is_within(a, budget); turn++) {
        int is_left = tli_arena_lower(a, budget, &within);
        tl_free_plan(a->env, a->plan);
        result = is_left ? tli_arena_try(a, &within, &later) : TL_ERROR_INFEASIBLE;
    }
    a->rounded.work_limit = a->desc->work_limit;    // on which the least budget depends
    a->rounded.pool = a->desc->pool;
    a->most_work = TLI_REMAT_MOST_WORK;
    if (!result && !tli_arena_is_within(a, budget)) {
        tl_free_plan(a->env, a->plan);
        result = TL_ERROR_INFEASIBLE;
    }
    return result == TL_ERROR_INFEASIBLE ? tli_arena_end(a, budget, &first) : result;
}

// Set what the report says of a plan that was not the first one.
static void tli_arena_report(const tli_arena_plan *a) {
    tl_remat_report *report = a->report;
    tl_plan *plan = a->plan;
    report->work = a->work;
    report->cost = plan->cost;
    if (report->bound_cost > plan->cost) report->bound_cost = plan->cost;
    plan->bound_cost = report->bound_cost;
    report->proven = report->cost == report->bound_cost;
    report->least_budget_bytes = report->bound_budget_bytes = 0;
    report->limiting_node = -1;
    report->gap_ratio = 0;
    if (!report->proven && report->bound_cost)
        report->gap_ratio = (double)(report->cost - report->bound_cost) / (double)report->bound_cost;
}

// Blocks hold each allocation that a plan may make, whatever is dropped.
static tl_result tli_arena_check_cut(const tli_arena_plan *a) {
    const tl_graph *graph = a->desc->graph;
    uint64_t cut = a->desc->block_bytes & ~(a->alignment - 1);
    int32_t id;
    if (!a->desc->block_bytes) return TL_OK;
    if (!cut)
        return tli_fail_values(a->env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT),
                               TLI_RULE(BLOCK_BYTES_LESS_THAN_ALIGNMENT), a->desc->block_bytes, a->alignment);
    for (id = 0; id < graph->node_count; id++) {
        uint64_t bytes = tli_largest_allocation(graph, id, a->desc->inference);
        if (bytes > cut) return tli_fail_cut(a->env, TLI_IN(PLAN_REMAT), graph, cut, bytes, id);
    }
    return TL_OK;
}

// Plan within a budget that binds the arena.
static tl_result tli_plan_remat_in_arena(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget,
                                         tl_plan *plan, tl_remat_report *report) {
    tli_arena_plan a;
    tl_remat_report local;
    tl_result result = tli_check_remat(env, desc, budget);
    tli_zero(plan, sizeof *plan);
    tli_zero(&a, sizeof a);
    a.env = env;
    a.desc = desc;
    a.alignment = desc->alignment_bytes ? desc->alignment_bytes : 1;
    a.most_work = TLI_REMAT_MOST_WORK;
    a.plan = plan;
    a.report = report ? report : &local;
    tli_zero(a.report, sizeof *a.report);
    if (!result && ((a.alignment & (a.alignment - 1)) || a.alignment > UINT64_C(1) << 30))
        result = tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT),
                          TLI_RULE(ALIGNMENT_MUST_BE_POWER_OF_TWO));
    if (!result) result = tli_arena_check_cut(&a);
    if (result == TL_ERROR_INFEASIBLE) return result;
    if (!result && !tli_arena_round(&a))
        result = tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN));
    a.rounded = *desc;
    a.rounded.graph = &a.graph;
    if (desc->progress) { a.rounded.progress = tli_arena_watch; a.rounded.user = &a; }
    if (!result) result = tli_arena_run(&a, budget);
    if (!result) tli_arena_report(&a);
    else if (result != TL_ERROR_INFEASIBLE) tli_zero(a.report, sizeof *a.report);
    else a.report->work = a.work;
    tli_release(env, a.nodes);
    tli_release(env, a.outputs);
    return result;
}

TLI_IMPL tl_result tl_plan_remat(tl_env *env, const tl_remat_desc *desc, tl_plan *plan,
                                 tl_remat_report *report) {
    tli_budget budget;
    TL_ASSERT(desc && desc->graph && plan);
    budget = tli_find_budget(desc->budget_bytes, desc->host_budget_bytes, desc->base_bytes, desc->device,
                             NULL, 0);
    return desc->in_arena ? tli_plan_remat_in_arena(env, desc, &budget, plan, report)
                          : tli_plan_remat(env, desc, &budget, TLI_REMAT_MOST_WORK, plan, report);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

