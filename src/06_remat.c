#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- remat: the planner, made of the parts above --
//
// With one tier the parts run in this order, each with a share of the work, until the best plan is proven
// optimal: closed form of equal layers, exact search, lower bound, chain optimum, search. Then, with a host
// tier, the search with fetches improves that plan. Each plan is simulated before it is accepted.

// The default work limit is TLI_REMAT_WORK steps times the square of the number of nodes, within the other two.
// A step is 2 to 3 ns: about a tenth of a second at 100 nodes, two thirds of a second from 250 nodes on.
#define TLI_REMAT_WORK UINT64_C(4000)
#define TLI_REMAT_LEAST_WORK UINT64_C(30000000)
#define TLI_REMAT_MOST_WORK UINT64_C(250000000)

typedef struct tli_remat {
    tl_env          quiet;        // allocator of the caller's env, without its log: parts may fail
    const tl_graph *graph;
    uint64_t        budget;       // without the base
    const tl_device *device;
    uint64_t        host_budget;  // 0 = no host tier
    uint64_t        work, work_limit, bound, least, floor;
    int32_t         inference, node, floor_node;
    tl_remat_form   form;
    int32_t         is_over;      // 1 = the base alone exceeds the limit
    int32_t         none;         // 1 = it is proven that no plan fits
    int32_t         uncountable;  // 1 = bytes or costs are too large for the search
    tli_remat_watch watch;
    tl_plan         plan;         // the best so far; no steps = none
    int32_t         found;
    tli_search_calls    start;    // the chain optimum, one more start of the search; empty = none
} tli_remat;

// Count the work that a part has done.
static void tli_remat_add_work(tli_remat *r, uint64_t work) {
    r->work += work;
    r->watch.before = r->watch.now.work = r->work;
    r->watch.now.bound_cost = r->bound;
}

// The share part / of of the work that is left; 0 after progress asked to stop.
static uint64_t tli_remat_share(const tli_remat *r, uint64_t part, uint64_t of) {
    uint64_t left = r->work < r->work_limit ? r->work_limit - r->work : 0;
    return r->watch.stopped ? 0 : left / of * part;
}

// Keep a simulated plan if it fits and is cheaper than the best so far; otherwise release it.
static void tli_remat_offer(tli_remat *r, tl_plan *plan) {
    if (!r->is_over && plan->peak_bytes <= r->budget && plan->host_peak_bytes <= r->host_budget &&
        (!r->found || plan->cost < r->plan.cost)) {
        tl_plan last = r->plan;
        r->plan = *plan;
        *plan = last;
        r->found = 1;
        r->watch.now.cost = r->plan.cost;
    }
    tl_free_plan(&r->quiet, plan);
}

// Simulate steps and offer the plan. Steps that the simulator refuses are ignored.
static tl_result tli_remat_offer_steps(tli_remat *r, tli_steps *steps) {
    tl_plan plan;
    tl_result result;
    tli_zero(&plan, sizeof plan);
    result = tli_finish_plan(steps, TLI_IN(PLAN_REMAT), r->graph, r->inference, &plan);
    if (!result && r->host_budget) {
        result = tli_measure(&r->quiet, TLI_IN(PLAN_REMAT), r->graph, r->device, 1, &plan);
        if (result) tl_free_plan(&r->quiet, &plan);
    }
    if (!result) tli_remat_offer(r, &plan);
    return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
}

static int tli_remat_is_done(const tli_remat *r) { return r->found && r->plan.cost <= r->bound; }

// Note that no plan fits, and what follows for the least budget.
static tl_result tli_remat_rule_out(tli_remat *r) {
    r->none = 1;
    if (r->floor <= r->budget && !r->is_over) { r->floor = r->budget + 1; r->floor_node = -1; }
    return TL_OK;
}

// Equal layers: plan the optimum in closed form.
static tl_result tli_remat_try_revolve(tli_remat *r) {
    uint64_t least, slots = tli_find_slots(r->graph, r->budget, &least);
    tli_steps steps;
    tl_result result;
    if (!slots) {
        r->least = r->floor = least;
        r->node = r->floor_node = r->graph->node_count - 1;
        return tli_remat_rule_out(r);
    }
    result = tli_revolve(&r->quiet, r->graph, slots, &steps);
    if (result) { tli_release(&r->quiet, steps.steps); return result; }
    tli_remat_add_work(r, (uint64_t)r->graph->node_count + TLI_REVOLVE_WORK * (uint64_t)steps.count);
    result = tli_remat_offer_steps(r, &steps);
    if (!result && r->found) r->watch.now.bound_cost = r->bound = r->plan.cost;
    return result;
}

// Try the plan that keeps everything, then find the least working set and the bound without search.
static tl_result tli_remat_begin(tli_remat *r) {
    uint64_t work = 0;
    tl_plan plan;
    tl_result result = tl_plan_keep_all(&r->quiet, r->graph, r->inference, &plan);
    r->node = r->floor_node = -1;
    if (result) return result;
    r->least = plan.peak_bytes;
    tli_remat_offer(r, &plan);
    if (!r->inference && !r->is_over && !r->host_budget && !r->form && tli_is_revolve_chain(r->graph)) {
        result = tli_remat_try_revolve(r);
        if (result || r->none || tli_remat_is_done(r)) return result;
    }
    result = tli_remat_floor(&r->quiet, r->graph, r->inference, r->host_budget > 0, &r->floor, &r->floor_node);
    if (result) return result;
    if (r->floor > r->budget || r->is_over) return tli_remat_rule_out(r);
    result = tli_remat_bound(&r->quiet, r->graph, UINT64_MAX, r->inference, &r->watch, 0, &r->bound, &work);
    tli_remat_add_work(r, (uint64_t)r->graph->node_count);
    return result;
}

static tl_result tli_remat_try_exact(tli_remat *r) {
    tli_steps steps = tli_steps_of(&r->quiet);
    uint64_t cost, bound, work = 0, limit = tli_remat_share(r, 1, r->graph->node_count > 64 ? 8 : 2);
    int32_t proven;
    tl_result result = tli_remat_exact(&r->quiet, r->graph, r->budget, r->inference, &r->watch, limit,
                                       &steps, &cost, &bound, &proven, &work);
    tli_remat_add_work(r, work);
    if (!result && bound > r->bound) r->watch.now.bound_cost = r->bound = bound;
    if (!result && proven) return tli_remat_offer_steps(r, &steps);
    tli_release(&r->quiet, steps.steps);
    return result == TL_ERROR_INFEASIBLE ? tli_remat_rule_out(r) : result;
}

static tl_result tli_remat_try_bound(tli_remat *r) {
    uint64_t bound, work = 0;
    tl_result result = tli_remat_bound(&r->quiet, r->graph, r->budget, r->inference, &r->watch,
                                       tli_remat_share(r, 1, 2), &bound, &work);
    tli_remat_add_work(r, work);
    if (!result && bound > r->bound) r->watch.now.bound_cost = r->bound = bound;
    return result == TL_ERROR_INFEASIBLE ? tli_remat_rule_out(r) : result;
}

// Keep the calls of a plan as a start of the search.
static tl_result tli_remat_set_start(tli_remat *r, const tli_steps *steps) {
    int32_t i;
    for (i = 0; i < steps->count; i++) {
        const tl_step *step = &steps->steps[i];
        if (step->kind > TL_STEP_BACKWARD) continue;
        if (!tli_search_add_call(&r->quiet, &r->start, 2 * step->node + (step->kind == TL_STEP_BACKWARD)))
            return TL_ERROR_NO_MEMORY;
    }
    return tli_search_add_call(&r->quiet, &r->start, 2 * r->graph->node_count) ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Plan the optimum over persistent schedules, stage by stage.
static tl_result tli_remat_try_chain(tli_remat *r) {
    tli_chain_result found;
    tli_steps steps;
    uint64_t limit = tli_remat_share(r, 1, 4);
    tl_result result = tli_remat_chain(&r->quiet, r->graph, r->budget, &r->watch, limit, &steps, &found);
    tli_remat_add_work(r, found.work);
    if (!result) result = tli_remat_set_start(r, &steps);
    if (!result) return tli_remat_offer_steps(r, &steps);
    tli_release(&r->quiet, steps.steps);
    return result == TL_ERROR_INFEASIBLE || result == TL_ERROR_OVERFLOW ? TL_OK : result;
}

// Search a plan. If it is proven that none fits, only the least budget is wanted, so nothing is improved.
static tl_result tli_remat_try_search(tli_remat *r) {
    tli_remat_input in;
    tli_steps steps;
    uint64_t cost, work, least;
    int32_t node;
    tl_result result;
    tli_zero(&in, sizeof in);
    in.env = &r->quiet;
    in.graph = r->graph;
    in.budget = r->budget;
    in.inference = r->inference;
    in.work_limit = r->none ? 0 : tli_remat_share(r, 1, 1);
    in.bound = r->bound;
    in.start = &r->start;
    in.watch = &r->watch;
    result = tli_remat_search(&in, &steps, &cost, &work, &least, &node);
    tli_remat_add_work(r, work);
    r->uncountable = result == TL_ERROR_OVERFLOW;
    if (result == TL_ERROR_INFEASIBLE && least < r->least) { r->least = least; r->node = node; }
    if (!result) return tli_remat_offer_steps(r, &steps);
    return result == TL_ERROR_INFEASIBLE || r->uncountable ? TL_OK : result;
}

// Nothing fits: find the least budget of a small graph exactly.
static tl_result tli_remat_find_least(tli_remat *r) {
    uint64_t floor, work = 0, limit = tli_remat_share(r, 1, 4);
    int32_t proven;
    tl_result result = tli_remat_exact_floor(&r->quiet, r->graph, r->inference, &r->watch, limit, &floor,
                                             &proven, &work);
    tli_remat_add_work(r, work);
    if (!result && floor > r->floor) { r->floor = floor; r->floor_node = -1; }
    if (!result && proven && r->floor < r->least) { r->least = r->floor; r->node = r->floor_node; }
    return result;
}

#ifndef TL_NO_OFFLOAD
// -- remat: with a host tier --

// Improve the plan found so far, or find one, with spills and fetches.
static tl_result tli_remat_try_offload(tli_remat *r, uint64_t work_limit) {
    tli_remat_input in;
    tli_steps steps;
    uint64_t work;
    tl_result result;
    tli_zero(&in, sizeof in);
    in.env = &r->quiet;
    in.graph = r->graph;
    in.budget = r->budget;
    in.inference = r->inference;
    in.work_limit = work_limit;
    in.bound = r->bound;
    in.watch = &r->watch;
    in.fetches = 1;
    result = tli_remat_offload(&in, r->device, r->host_budget, &r->plan, 0, &steps, &work);
    tli_remat_add_work(r, work);
    if (!result) return tli_remat_offer_steps(r, &steps);
    return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
}

// Raise the bound by relaxations for several end times T0: a plan ends after T0, or not before g(T0). First
// with the end of the plan found, in both ways of tli_bound_host.is_even, with half of the work; then by
// bisection between the bound and that end, in the better way.
static tl_result tli_remat_bound_offload(tli_remat *r) {
    enum { ROUNDS = 9 };
    uint64_t high = r->plan.cost, limit = tli_remat_share(r, 1, 8), bound, work, last = 0;
    tli_bound_host host;
    int32_t round;
    tl_result result;
    host.bytes = r->host_budget;
    host.rate = r->device ? r->device->link_bytes_per_second : 0;
    for (round = 0; round < ROUNDS && r->bound < high && !r->watch.stopped; round++) {
        host.time = round > 1 ? r->bound + (high - r->bound) / 2 : r->plan.cost - 1;
        if (round < 2) host.is_even = round;
        work = 0;
        result = tli_remat_bound_host(&r->quiet, r->graph, r->budget, &host, r->inference, &r->watch,
                                      round > 1 ? limit / (ROUNDS - 2) * 2 : limit, &bound, &work);
        tli_remat_add_work(r, work + (uint64_t)r->graph->node_count);
        if (result && result != TL_ERROR_INFEASIBLE) return result;
        if (round == 1 && bound <= last) host.is_even = 0;
        last = bound;
        if (bound <= host.time) high = host.time;
        else bound = host.time + 1;
        if (bound > r->bound) r->watch.now.bound_cost = r->bound = bound;
    }
    return TL_OK;
}

// Nothing was found: find the least budget with a host. Its plan is the answer if it fits after all.
static tl_result tli_remat_least_offload(tli_remat *r) {
    tli_remat_input in;
    tli_steps steps;
    tl_plan plan;
    uint64_t work;
    tl_result result;
    tli_zero(&plan, sizeof plan);
    tli_zero(&in, sizeof in);
    in.env = &r->quiet;
    in.graph = r->graph;
    in.budget = r->budget;
    in.inference = r->inference;
    in.work_limit = r->watch.now.work_limit;
    in.watch = &r->watch;
    in.fetches = 1;
    result = tli_remat_offload(&in, r->device, r->host_budget, NULL, r->floor, &steps, &work);
    tli_remat_add_work(r, work);
    if (result) return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
    result = tli_finish_plan(&steps, TLI_IN(PLAN_REMAT), r->graph, r->inference, &plan);
    if (result) return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
    result = tli_measure(&r->quiet, TLI_IN(PLAN_REMAT), r->graph, r->device, 1, &plan);
    if (plan.peak_bytes < r->least) {
        r->least = plan.peak_bytes;
        r->node = plan.peak_bytes == r->floor ? r->floor_node : -1;
    }
    if (!result) tli_remat_offer(r, &plan);
    tl_free_plan(&r->quiet, &plan);
    return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
}
#endif  // TL_NO_OFFLOAD

// One tier: run the parts in turn until the plan is proven optimal, or it is proven that none fits.
static tl_result tli_remat_run_alone(tli_remat *r) {
    int has_stages = !r->inference && !r->is_over;
    tl_result result = tli_remat_begin(r);
    if (!result && r->none && r->least == r->floor) return TL_ERROR_INFEASIBLE;
    if (!result && !r->none && !tli_remat_is_done(r)) result = tli_remat_try_exact(r);
    if (!result && !r->none && !tli_remat_is_done(r)) result = tli_remat_try_bound(r);
    if (!result && !r->none && has_stages && !tli_remat_is_done(r) && !r->watch.stopped)
        result = tli_remat_try_chain(r);
    if (!result && !tli_remat_is_done(r) && !(r->found && r->watch.stopped)) result = tli_remat_try_search(r);
    if (!result && !r->found) result = tli_remat_find_least(r);
    if (result) return result;
    if (r->found) return TL_OK;
    return r->uncountable && !r->none ? TL_ERROR_OVERFLOW : TL_ERROR_INFEASIBLE;
}

// Plans of a kept set alone. The bound of any plan holds for them, and trying all sets may prove one.
static tl_result tli_remat_run_once(tli_remat *r) {
    tli_remat_input in;
    tli_once_result found;
    tl_result result = tli_remat_begin(r);
    if (!result && !r->none && !tli_remat_is_done(r)) result = tli_remat_try_bound(r);
    if (result || tli_remat_is_done(r)) return result;
    tli_zero(&in, sizeof in);
    in.env = &r->quiet;
    in.graph = r->graph;
    in.budget = r->budget;
    in.inference = r->inference;
    in.work_limit = r->work_limit / 2;
    in.watch = &r->watch;
    result = tli_remat_once(&in, &found);
    tli_remat_add_work(r, found.work);
    if (!result) {
        if (found.proven && found.plan.cost > r->bound) r->bound = found.plan.cost;
        tli_remat_offer(r, &found.plan);
    } else if (result == TL_ERROR_INFEASIBLE && found.plan.peak_bytes <= r->least) {
        r->least = found.plan.peak_bytes;
        r->node = found.node;
    }
    if (result == TL_ERROR_INFEASIBLE && found.proven) {
        r->none = 1;
        r->floor = r->least;
    }
    tl_free_plan(&r->quiet, &found.plan);
    if (result && result != TL_ERROR_INFEASIBLE) return result;
    return r->found ? TL_OK : TL_ERROR_INFEASIBLE;
}

#ifndef TL_NO_OFFLOAD
// Two tiers: first the plan without the host, with all the work that it would get alone, so that a host never
// makes a plan more expensive; then the same amount of work for the plan with the host.
static tl_result tli_remat_run_offload(tli_remat *r) {
    uint64_t host_budget = r->host_budget, bound, floor;
    int32_t node;
    tl_result result = tli_remat_begin(r);
    bound = r->bound;
    floor = r->floor;  // these also hold with the host
    node = r->floor_node;
    if (!result && !r->none) {
        r->host_budget = 0;
        result = tli_remat_run_alone(r);
        if (result == TL_ERROR_INFEASIBLE || result == TL_ERROR_OVERFLOW) result = TL_OK;
        r->host_budget = host_budget;
        r->none = 0;
        r->watch.now.bound_cost = r->bound = bound;
        r->floor = floor;
        r->floor_node = node;
        r->watch.now.work_limit = r->work_limit += r->work_limit;
    }
    if (!result && !r->none && !tli_remat_is_done(r)) {
        result = tli_remat_try_offload(r, tli_remat_share(r, 1, 8));
        if (!result && r->found) result = tli_remat_bound_offload(r);
        if (!result && !tli_remat_is_done(r)) result = tli_remat_try_offload(r, tli_remat_share(r, 1, 1));
    }
    if (!result && !r->found) result = tli_remat_least_offload(r);
    if (result) return result;
    return r->found ? TL_OK : TL_ERROR_INFEASIBLE;
}

static tl_result tli_remat_run(tli_remat *r) {
    if (r->form == TL_REMAT_FORM_ONCE) return tli_remat_run_once(r);
    return r->host_budget ? tli_remat_run_offload(r) : tli_remat_run_alone(r);
}
#else
static tl_result tli_remat_run(tli_remat *r) {
    return r->form == TL_REMAT_FORM_ONCE ? tli_remat_run_once(r) : tli_remat_run_alone(r);
}
#endif

static tl_result tli_remat_refuse(tl_env *env, const tli_remat *r, const tli_budget *budget,
                                  const tl_remat_report *report) {
    int32_t node = report->limiting_node;
    tli_rule rule = report->proven
        ? TLI_RULE(NO_PLAN_FOUND_BELOW_BYTES_NONE_FITS)
        : TLI_RULE(NO_PLAN_FOUND_BELOW_BYTES_WHETHER_ONE);
    tli_sentence s = tli_begin_error(env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_REMAT), rule, budget->allowed_bytes,
                                     report->least_budget_bytes);
    tli_put_text(&s, tli_limit_names[budget->limit]);
    tli_put_rule(&s);
    if (TLI_ERROR_TEXT && node >= 0) {
        tli_put(&s.text, ", which node ");
        tli_put_named(&s.text, node, tl_name_node(r->graph, node));
        tli_put(&s.text, " takes");
    }
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

static void tli_remat_report(const tli_remat *r, const tli_budget *budget, tl_result result,
                             tl_remat_report *report) {
    report->limiting_node = -1;
    report->work = r->work;
    if (!result) {
        report->cost = r->plan.cost;
        report->bound_cost = r->plan.bound_cost;
        report->proven = report->cost == report->bound_cost;
        if (!report->proven && report->bound_cost)
            report->gap_ratio = (double)(report->cost - report->bound_cost) / (double)report->bound_cost;
    } else if (result == TL_ERROR_INFEASIBLE) {
        report->least_budget_bytes = tli_add_base(budget, r->least);
        report->bound_budget_bytes = tli_add_base(budget, r->floor);
        report->limiting_node = r->node;
        report->proven = r->none;
    }
}

static uint64_t tli_remat_default_work(const tl_graph *graph) {
    uint64_t nodes = (uint64_t)graph->node_count, work = TLI_REMAT_WORK * nodes * nodes;
    if (work < TLI_REMAT_LEAST_WORK) return TLI_REMAT_LEAST_WORK;
    return work < TLI_REMAT_MOST_WORK ? work : TLI_REMAT_MOST_WORK;
}

static tl_result tli_check_remat(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget) {
    tl_result result = tl_check_graph(env, desc->graph);
    if (desc->inference != 0 && desc->inference != 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT), TLI_RULE(INFERENCE_MUST_BE_0_OR_1));
    if ((uint32_t)desc->form >= (uint32_t)TL_REMAT_FORM_COUNT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT), TLI_RULE(FORM_THERE_IS_NO_SUCH_ONE));
    if (desc->form && budget->host_bytes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REMAT),
                        TLI_RULE(HOST_BUDGET_BYTES_NEEDS_FORM_ANY));
#ifdef TL_NO_OFFLOAD
    if (budget->host_bytes)
        return tli_fail(env, TL_ERROR_UNSUPPORTED, TLI_IN(PLAN_REMAT),
                        TLI_RULE(HOST_BUDGET_BYTES_TL_NO_OFFLOAD_LEFT));
#else
    (void)budget;
#endif
    return !result && desc->device ? tl_check_device(env, desc->device) : result;
}

// Plan within a budget that was found before: the limits and the base of the desc are not read.
static tl_result tli_plan_remat(tl_env *env, const tl_remat_desc *desc, const tli_budget *budget, tl_plan *plan,
                                tl_remat_report *report) {
    tli_remat r;
    tl_remat_report local;
    tl_result result;
    if (!report) report = &local;
    tli_zero(plan, sizeof *plan);
    tli_zero(report, sizeof *report);
    tli_zero(&r, sizeof r);
    result = tli_check_remat(env, desc, budget);
    if (result) return result;
    if (env) r.quiet = *env;
    r.quiet.log = NULL;
    r.graph = desc->graph;
    r.inference = desc->inference;
    r.form = desc->form;
    r.is_over = budget->is_over;
    r.budget = budget->bytes;
    r.work_limit = desc->work_limit ? desc->work_limit : tli_remat_default_work(r.graph);
    r.watch.now.work_limit = r.work_limit;
    r.watch.desc = desc;
    r.device = desc->device;
    r.host_budget = budget->host_bytes;
    result = tli_remat_run(&r);
    if (!result) {
        r.plan.base_bytes = budget->base_bytes;
        r.plan.bound_cost = r.bound < r.plan.cost ? r.bound : r.plan.cost;
        *plan = r.plan;
    } else {
        tl_free_plan(&r.quiet, &r.plan);
    }
    tli_release(&r.quiet, r.start.calls);
    tli_remat_report(&r, budget, result, report);
    if (result == TL_ERROR_INFEASIBLE) return tli_remat_refuse(env, &r, budget, report);
    if (result == TL_ERROR_OVERFLOW)
        return tli_fail(env, result, TLI_IN(PLAN_REMAT), TLI_RULE(GRAPH_BYTES_MUST_FIT_60_BITS_COSTS));
    if (result) return tli_fail(env, result, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN));
    return TL_OK;
}

static const char *const tli_remat_form_names[] = { TL_REMAT_FORMS(TLI_NAME) };

TLI_IMPL const char *tl_name_remat_form(tl_remat_form form) {
    return tli_name(tli_remat_form_names, TL_REMAT_FORM_COUNT, (int64_t)form);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_remat_form(const char *text, tl_remat_form *form) {
    int32_t value;
    int ok = tli_parse_name(tli_remat_form_names, TL_REMAT_FORM_COUNT, text, tli_text_length(text), &value);
    *form = (tl_remat_form)value;
    return ok;
}
#endif

TLI_IMPL tl_result tl_plan_remat(tl_env *env, const tl_remat_desc *desc, tl_plan *plan,
                                 tl_remat_report *report) {
    tli_budget budget;
    TL_ASSERT(desc && desc->graph && plan);
    budget = tli_find_budget(desc->budget_bytes, desc->host_budget_bytes, desc->base_bytes, desc->device,
                             NULL, 0);
    return tli_plan_remat(env, desc, &budget, plan, report);
}

// -- remat: chains --

typedef struct tli_chain_answer {
    tl_plan  plan;
    uint64_t budget, bound, least, work;   // bytes without base
    int32_t  node;                         // at which the plan of the least budget peaks
} tli_chain_answer;

static tl_result tli_chain_refuse(tl_env *env, const tl_graph *graph, const tli_budget *budget,
                                  const tl_remat_report *report) {
    tli_rule rule = report->proven
        ? TLI_RULE(NO_PERSISTENT_SCHEDULE_FITS_BELOW)
        : TLI_RULE(NO_PERSISTENT_SCHEDULE_FOUND_BELOW);
    tli_sentence s = tli_begin_error(env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_CHAIN), rule, budget->allowed_bytes,
                                     report->least_budget_bytes);
    tli_put_text(&s, tli_limit_names[budget->limit]);
    tli_put_rule(&s);
    tli_put_named(&s.text, report->limiting_node, tl_name_node(graph, report->limiting_node));
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

// The node at which a plan peaks.
static tl_result tli_find_peak_node(tl_env *env, const tl_graph *graph, const tl_plan *plan, int32_t *node) {
    tl_simulate_desc desc;
    tl_report report;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    result = tl_simulate_plan(env, &desc, &report);
    *node = !result && report.peak_step >= 0 ? plan->steps[report.peak_step].node : 0;
    return result;
}

static tl_result tli_plan_stages(tl_env *env, const tl_chain_plan_desc *desc, const tli_budget *budget,
                                 tl_plan *plan, tl_remat_report *report) {
    uint64_t limit = desc->work_limit ? desc->work_limit : TLI_CHAIN_WORK, work = 0;
    tli_chain_result found;
    tli_steps steps;
    tli_remat_watch watch;
    tl_remat_desc remat;
    tl_result result, last;
    int infeasible;
    tli_zero(&remat, sizeof remat);
    tli_zero(&watch, sizeof watch);
    watch.desc = &remat;
    result = tli_remat_chain(env, desc->graph, budget->bytes, &watch, limit, &steps, &found);
    if (!result && budget->is_over) result = TL_ERROR_INFEASIBLE;  // a plan of no bytes
    infeasible = result == TL_ERROR_INFEASIBLE;
    report->work = found.work;
    if (result && !infeasible) {
        tli_release(env, steps.steps);
        return result;
    }
    report->proven = found.exact;
    if (infeasible && !steps.count) {
        report->least_budget_bytes = report->bound_budget_bytes = found.least;
        report->limiting_node = desc->graph->node_count - 1;
        return result;
    }
    last = tli_finish_plan(&steps, TLI_IN(PLAN_CHAIN), desc->graph, 0, plan);
    if (last) return last;
    if (infeasible) {
        report->least_budget_bytes = plan->peak_bytes;
        report->bound_budget_bytes = found.exact ? plan->peak_bytes : 0;
        return tli_find_peak_node(env, desc->graph, plan, &report->limiting_node) ? TL_ERROR_NO_MEMORY : result;
    }
    report->cost = report->bound_cost = plan->cost;
    if (found.exact) return TL_OK;
    result = tli_remat_bound(env, desc->graph, budget->bytes, 0, &watch, limit / 2, &report->bound_cost, &work);
    report->work += work;
    return result;
}

// As tli_plan_remat.
static tl_result tli_plan_chain(tl_env *env, const tl_chain_plan_desc *desc, const tli_budget *budget,
                                tl_plan *plan, tl_remat_report *report) {
    tl_env quiet;
    tl_remat_report local;
    tl_result result;
    if (!report) report = &local;
    tli_zero(plan, sizeof *plan);
    tli_zero(report, sizeof *report);
    tli_zero(&quiet, sizeof quiet);
    result = tl_check_graph(env, desc->graph);
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (result) return result;
    if (env) quiet = *env;
    quiet.log = NULL;
    report->limiting_node = -1;
    result = tli_plan_stages(&quiet, desc, budget, plan, report);
    if (!result) {
        plan->base_bytes = budget->base_bytes;
        plan->bound_cost = report->bound_cost;
        report->proven = report->cost == report->bound_cost;
        if (!report->proven && report->bound_cost)
            report->gap_ratio = (double)(report->cost - report->bound_cost) / (double)report->bound_cost;
        return TL_OK;
    }
    tl_free_plan(&quiet, plan);
    if (result == TL_ERROR_INFEASIBLE) {
        report->least_budget_bytes = tli_add_base(budget, report->least_budget_bytes);
        report->bound_budget_bytes = tli_add_base(budget, report->bound_budget_bytes);
        return tli_chain_refuse(env, desc->graph, budget, report);
    }
    tli_zero(report, sizeof *report);
    if (result == TL_ERROR_OVERFLOW)
        return tli_fail(env, result, TLI_IN(PLAN_CHAIN), TLI_RULE(GRAPH_COSTS_TIMES_STAGES_MUST_FIT_62));
    return tli_fail(env, result, TLI_IN(PLAN_CHAIN), TLI_RULE(NO_MEMORY_TO_PLAN));
}

TLI_IMPL tl_result tl_plan_chain(tl_env *env, const tl_chain_plan_desc *desc, tl_plan *plan,
                                 tl_remat_report *report) {
    tli_budget budget;
    TL_ASSERT(desc && desc->graph && plan);
    budget = tli_find_budget(desc->budget_bytes, 0, desc->base_bytes, desc->device, NULL, 0);
    return tli_plan_chain(env, desc, &budget, plan, report);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

