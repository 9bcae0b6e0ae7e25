#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- chain: tl_plan_chain --
//
// The optimum over persistent schedules for a caller: its desc checked, the plan within the budget, or the
// least budget in the sentence that refuses.

// A least budget that does not fit 64 bits is no answer: TL_ERROR_OVERFLOW, and the report is all zero.
static tl_result tli_refuse_base(tl_env *env, tl_remat_report *report, tli_function function) {
    tli_zero(report, sizeof *report);
    return tli_fail(env, TL_ERROR_OVERFLOW, function, TLI_RULE(LEAST_BUDGET_DOES_NOT_FIT_64_BITS));
}

static tl_result tli_chain_refuse(tl_env *env, const tl_graph *graph, const tli_budget *budget,
                                  tl_remat_report *report) {
    tli_rule rule = report->proven
        ? TLI_RULE(NO_PERSISTENT_SCHEDULE_FITS_BELOW)
        : TLI_RULE(NO_PERSISTENT_SCHEDULE_FOUND_BELOW);
    tli_sentence s;
    if (report->least_budget_bytes == UINT64_MAX) return tli_refuse_base(env, report, TLI_IN(PLAN_CHAIN));
    s = tli_begin_error(env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_CHAIN), rule, budget->allowed_bytes,
                        report->least_budget_bytes);
    tli_put_limit(env, &s, budget->limit);
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
    result = tli_remat_chain(env, desc->graph, budget->bytes, &watch, limit, UINT64_MAX, 1, &steps, &found);
    if (!result && budget->is_over) result = TL_ERROR_INFEASIBLE;  // it takes 0 bytes; the base alone is over
    infeasible = result == TL_ERROR_INFEASIBLE;
    report->work = found.work;
    if (result && !infeasible) {
        tli_release(env, steps.steps);
        return result;
    }
    report->proven = found.exact;
    if (infeasible && !steps.count) {
        report->least_budget_bytes = found.least;
        report->bound_budget_bytes = found.exact ? found.least : 0;
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

static tl_result tli_check_live(tl_env *env, tli_function function, int32_t live) {
    if (live == 0 || live == 1) return TL_OK;
    return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(LIVE_MUST_BE_0_OR_1));
}

// States can be planned by stages where each is updated right behind the only backward that adds to it.
static tl_result tli_check_chain_states(tl_env *env, const tl_graph *graph) {
    tli_merged merged;
    tl_result result;
    if (!tli_has_states(graph)) return TL_OK;
    result = tli_merge_states(env, graph, &merged);
    tli_free_merged(&merged);
    if (!result) return TL_OK;
    return tli_fail(env, result, TLI_IN(PLAN_CHAIN), result == TL_ERROR_NO_MEMORY
                    ? TLI_RULE(NO_MEMORY_TO_PLAN) : TLI_RULE(CHAIN_STATES_ARE_UPDATED_BEHIND_THEIR_READERS));
}

static tl_result tli_check_chain_desc(tl_env *env, const tl_chain_plan_desc *desc) {
    tl_result result = tl_check_graph(env, desc->graph);
    if (!result) result = tli_check_live(env, TLI_IN(PLAN_CHAIN), desc->live);
    if (!result) result = tli_check_chain_states(env, desc->graph);
    return !result && desc->device ? tl_check_device(env, desc->device) : result;
}

// As tl_plan_chain, of live bytes, within a budget that was found before.
static tl_result tli_plan_chain(tl_env *env, const tl_chain_plan_desc *desc, const tli_budget *budget,
                                tl_plan *plan, tl_remat_report *report) {
    tl_env quiet;
    tl_remat_report local;
    tl_result result;
    if (!report) report = &local;
    tli_zero(plan, sizeof *plan);
    tli_zero(report, sizeof *report);
    tli_zero(&quiet, sizeof quiet);
    result = tli_check_chain_desc(env, desc);
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
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

