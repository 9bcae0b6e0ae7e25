#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: where to cut --
//
//     estimate every stage -> tl_plan_partition -> move single cuts while the schedule gets shorter
//         ^                                                          |
//         '---------- plan those of its stages that are estimates <--'
//
// until all stages of the best cut have been planned. Where no cut fits that is found so, the same search looks
// for the cut whose largest rank is the smallest. It does not know the budget, so a refusal names bytes with
// which the same call finds this cut.

#define TLI_CUT_EVENTS 4000000    // calls simulated to move cuts, in each round

// -- one cut --

// Cut and plan a stage. budget: of the rank, 0 = no limit.
static tl_result tli_plan_stage(const tli_cuts *c, int32_t rank, int32_t first_node, int32_t end_node,
                                uint64_t budget, int32_t shares, tli_stage_plan *stage) {
    const tl_ranks_desc *desc = c->desc;
    uint64_t work = desc->work_limit ? desc->work_limit : 700000000;
    uint64_t batches = (uint64_t)desc->micro_batch_count;
    tl_rank_plan *plan = &stage->plan;
    tl_result result;
    stage->rank = rank;
    plan->first_node = first_node;
    plan->end_node = end_node;
    result = tli_cut_stage(c->env, desc, rank, first_node, end_node, &stage->stage, &plan->compiled);
    plan->compiled.graph = &stage->stage.graph;
    if (!result)
        result = tli_plan_rank(c->env, desc, rank, budget, work / (uint64_t)desc->rank_count / (uint64_t)shares,
                               plan, &stage->least_bytes);
    stage->base_cost = plan->compiled.base_cost / batches;
    stage->cost = plan->busy_cost / batches;
    return result;
}

// Plan the cut that the caller has given.
static tl_result tli_plan_given_cut(tli_cuts *c) {
    tl_result result = TL_OK;
    int32_t rank;
    for (rank = 0; rank < c->desc->rank_count && !result; rank++)
        result = tli_plan_stage(c, rank, rank ? c->desc->ends[rank - 1] : 0, c->desc->ends[rank],
                                tli_budget_of_rank(c->desc, rank), 1, &c->chosen[rank]);
    return result;
}

// Plan the stages of a cut that are not known, up to one that does not fit.
static tl_result tli_plan_unknown(tli_cuts *c, const int32_t *ends) {
    tl_result result = TL_OK;
    int32_t rank, first = 0;
    for (rank = 0; rank < c->desc->rank_count && !result; first = ends[rank++]) {
        tli_stage_plan *stage = &c->known[c->known_count];
        if (tli_find_known(c, rank, first, ends[rank])) continue;
        c->known_count++;
        result = tli_plan_stage(c, rank, tli_first_node_of(c, first), tli_first_node_of(c, ends[rank]),
                                c->is_tight ? 1 : tli_budget_of_rank(c->desc, rank), TLI_CUT_ROUNDS, stage);
        if (!stage->least_bytes || result) continue;
        stage->cost = stage->base_cost = tli_base_cost(c, rank, first, ends[rank]);
        if (!c->is_tight) break;
    }
    return result;
}

// Whether all stages of a cut have been planned and, unless the fewest bytes are looked for, fit.
static int tli_is_settled(const tli_cuts *c, const int32_t *ends) {
    int32_t rank, first = 0;
    for (rank = 0; rank < c->desc->rank_count; first = ends[rank++]) {
        const tli_stage_plan *known = tli_find_known(c, rank, first, ends[rank]);
        if (!known || (known->least_bytes && !c->is_tight)) return 0;
    }
    return 1;
}

// -- the best by estimates --

// Answers tl_plan_partition. For the fewest bytes, the bytes stand in for the time.
static tl_result tli_measure_stage(const tl_stage_query *query, tl_stage_cell *cell, void *user) {
    const tli_cuts *c = (const tli_cuts *)user;
    int32_t ranks = c->desc->rank_count;
    uint64_t most = (UINT64_C(1) << 59) / (uint64_t)(c->desc->micro_batch_count + 2 * ranks);
    tli_estimate_stage(c, ranks - 1 - query->stages_after, query->first_unit, query->end_unit, cell);
    if (c->is_tight) cell->time_ns = cell->bytes;
    if (c->is_tight) cell->fits = 1;
    if (cell->time_ns > most) cell->time_ns = most;
    return TL_OK;
}

// Find the best cut by what is known and estimated. *found = 0: nothing fits.
static tl_result tli_partition_units(tli_cuts *c, int32_t *ends, int *found) {
    const tl_ranks_desc *desc = c->desc;
    tl_partition_desc ask;
    tl_partition partition;
    tl_link link;
    int32_t k;
    tl_result result;
    tli_quiet quiet = tli_begin_quiet(c->env);
    tli_zero(&ask, sizeof ask);
    ask.units = c->chain;
    ask.unit_count = c->unit_count;
    ask.rank_count = ask.stage_count = desc->rank_count;
    ask.ranks = desc->ranks;
    ask.micro_batch_count = desc->micro_batch_count;
    ask.pipeline = desc->pipeline;
    ask.objective = c->is_tight ? TL_PARTITION_BOTTLENECK : TL_PARTITION_TOTAL;
    if (c->is_tight || tli_has_budget(desc)) ask.measure = tli_measure_stage;
    ask.user = c;
    if (desc->link && !c->is_tight) {
        link = *desc->link;
        if (desc->inference) {      // nothing comes back
            if (!tli_mul_u64(link.bytes_per_second, 2, &link.bytes_per_second)) link = *desc->link;
            link.latency_ns /= 2;
        }
        ask.link = &link;
    }
    result = tl_plan_partition(c->env, &ask, &partition);
    *found = !result;
    for (k = 0; k < desc->rank_count && !result; k++) ends[k] = partition.stages[k].end_unit;
    tl_free_partition(c->env, &partition);
    if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    tli_end_quiet(&quiet, result);
    return result;
}

// -- moving cuts --

// The time of a training step with these stages; UINT64_MAX: one does not fit.
static tl_result tli_time_cut(const tli_cuts *c, const int32_t *ends, uint64_t *ns) {
    const tl_ranks_desc *desc = c->desc;
    uint64_t *forwards = c->times, *backwards = forwards + desc->rank_count;
    uint64_t *bytes = backwards + desc->rank_count;
    tl_pipeline_desc pipeline;
    tl_pipeline_report report;
    int32_t rank, first = 0;
    tl_result result;
    *ns = UINT64_MAX;
    for (rank = 0; rank < desc->rank_count; first = ends[rank++]) {
        uint64_t forward;
        tl_stage_cell cell;
        if (first >= ends[rank] || ends[rank] > c->unit_count) return TL_OK;
        forward = c->units[ends[rank]].before.forward - c->units[first].before.forward;
        cell.fits = 1;
        cell.time_ns = tli_base_cost(c, rank, first, ends[rank]);
        if (tli_has_budget(desc)) tli_estimate_stage(c, rank, first, ends[rank], &cell);
        if (!cell.fits) return TL_OK;
        forward = tli_cost_on_rank(tli_rank_of(desc, rank), forward);
        forwards[rank] = forward < cell.time_ns ? forward : cell.time_ns;
        backwards[rank] = cell.time_ns - forwards[rank];
        bytes[rank] = c->units[ends[rank]].crossing;
    }
    tli_zero(&pipeline, sizeof pipeline);
    pipeline.kind = desc->pipeline;
    pipeline.rank_count = desc->rank_count;
    pipeline.micro_batch_count = desc->micro_batch_count;
    pipeline.forward_ns = forwards;
    pipeline.backward_ns = backwards;
    pipeline.output_bytes = bytes;
    pipeline.link = desc->link;
    result = tl_simulate_pipeline(c->env, &pipeline, &report);
    if (!result) *ns = report.total_ns;
    tl_free_pipeline_report(c->env, &report);
    return result;
}

// Move one cut by some units there and back, as long as that pays.
static tl_result tli_move_cut(const tli_cuts *c, int32_t *ends, int32_t rank, int32_t by, uint64_t *events,
                              uint64_t *best) {
    uint64_t cost = 2 * (uint64_t)c->desc->micro_batch_count * (uint64_t)c->desc->rank_count;
    int32_t moved = -by;
    tl_result result = TL_OK;
    while (!result && *events >= cost) {
        uint64_t ns;
        *events -= cost;
        ends[rank] += moved;
        result = tli_time_cut(c, ends, &ns);
        if (!result && ns < *best) {
            *best = ns;
            continue;
        }
        ends[rank] -= moved;
        if (moved > 0) break;
        moved = by;
    }
    return result;
}

// Move cuts, far ones first, until no move of one shortens the step. *best: its time.
static tl_result tli_move_cuts(const tli_cuts *c, int32_t *ends, uint64_t *best) {
    uint64_t events = c->desc->inference ? 0 : TLI_CUT_EVENTS, before;
    int32_t by = 1, rank;
    tl_result result = tli_time_cut(c, ends, best);
    while (by * 8 * c->desc->rank_count < c->unit_count) by *= 2;
    for (; by && !result; by /= 2) do {
        before = *best;
        for (rank = 0; rank + 1 < c->desc->rank_count && !result; rank++)
            result = tli_move_cut(c, ends, rank, by, &events, best);
    } while (*best < before && !result);
    return result;
}

// -- all cuts --

static void tli_fill_chain(tli_cuts *c) {
    int32_t i;
    for (i = 0; i < c->unit_count; i++) {
        const tli_cut_sums *from = &c->units[i].before, *to = &c->units[i + 1].before;
        c->chain[i].forward_ns = to->forward - from->forward;
        c->chain[i].backward_ns = to->backward - from->backward;
        c->chain[i].parameter_bytes = to->parameters - from->parameters;
        c->chain[i].output_bytes = c->units[i + 1].crossing;
    }
}

// The bytes of the largest rank of a cut whose stages are known.
static uint64_t tli_largest_of_cut(const tli_cuts *c, const int32_t *ends) {
    uint64_t most = 0;
    int32_t rank, first = 0;
    for (rank = 0; rank < c->desc->rank_count; first = ends[rank++])
        most = tli_larger_u64(most, tli_find_known(c, rank, first, ends[rank])->least_bytes);
    return most;
}

// Look for the best cut. ends: [2 x rank_count] the first half is what was found, the rest scratch.
// *found = 0: nothing.
static tl_result tli_search_cut(tli_cuts *c, int32_t *ends, int *found) {
    int32_t *next = ends + c->desc->rank_count, most = (TLI_CUT_ROUNDS - 1) * c->desc->rank_count, round;
    uint64_t best = UINT64_MAX, value = 0;
    int fits = 1, is_settled = 0;
    tl_result result = TL_OK;
    *found = 0;
    for (round = 0; c->known_count <= most && round < 4 * TLI_CUT_ROUNDS && !is_settled && !result; round++) {
        result = tli_partition_units(c, next, &fits);
        if (result || !fits) break;
        if (!c->is_tight) result = tli_move_cuts(c, next, &value);
        if (result) break;
        is_settled = tli_is_settled(c, next) || !tli_has_budget(c->desc);
        result = tli_plan_unknown(c, next);
        if (result || !tli_is_settled(c, next)) continue;
        if (c->is_tight) value = tli_largest_of_cut(c, next);
        else if (!is_settled) result = tli_time_cut(c, next, &value);
        if (result || value >= best) continue;
        best = value;
        *found = 1;
        tli_copy(ends, next, (size_t)c->desc->rank_count * sizeof *ends);
    }
    return result;
}

// Take the stages of the cut. Those that were planned for the fewest bytes are planned anew if all of them fit.
static tl_result tli_choose_cut(tli_cuts *c, const int32_t *ends) {
    const tl_ranks_desc *desc = c->desc;
    int32_t rank, first = 0, too_large = 0;
    tl_result result = TL_OK;
    for (rank = 0; rank < desc->rank_count && c->is_tight; first = ends[rank++]) {
        uint64_t budget = tli_budget_of_rank(desc, rank);
        too_large |= budget && tli_find_known(c, rank, first, ends[rank])->least_bytes > budget;
    }
    for (rank = first = 0; rank < desc->rank_count && !result; first = ends[rank++]) {
        tli_stage_plan *known = tli_find_known(c, rank, first, ends[rank]);
        if (known && (!c->is_tight || too_large)) {
            c->chosen[rank] = *known;
            tli_zero(known, sizeof *known);
            known->rank = -1;
        } else {
            result = tli_plan_stage(c, rank, tli_first_node_of(c, first), tli_first_node_of(c, ends[rank]),
                                    tli_budget_of_rank(desc, rank), TLI_CUT_ROUNDS, &c->chosen[rank]);
        }
    }
    return result;
}

// Find the cut and plan its stages.
static tl_result tli_choose_stages(tli_cuts *c) {
    uint64_t ranks = (uint64_t)c->desc->rank_count;
    int32_t *ends;
    int found = 1;
    tl_result result = TL_OK;
    if (c->unit_count < c->desc->rank_count)
        return tli_fail(c->env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), TLI_RULE(RANKS_MORE_THAN_NODES));
    ends = (int32_t *)tli_alloc_array(c->env, 2 * ranks, sizeof *ends);
    c->times = (uint64_t *)tli_alloc_array(c->env, 3 * ranks, sizeof *c->times);
    if (!ends || !c->times) result = tli_fail_ranks(c->env);
    if (!result) {
        tli_fill_chain(c);
        result = tli_search_cut(c, ends, &found);
    }
    if (!result && !found) {
        tli_free_stages(c->env, c->known, c->known_count);
        c->known_count = 0;
        c->is_tight = 1;
        result = tli_search_cut(c, ends, &found);
    }
    if (!result) result = tli_choose_cut(c, ends);
    tli_release(c->env, ends);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
