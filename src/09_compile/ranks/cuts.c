#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: where to cut --
//
//     estimate every stage -> tl_plan_partition -> move single cuts while the schedule gets shorter
//         ^                                                          |
//         '---------- plan those of its stages that are estimates <--'
//
// until all stages of the best cut have been planned. Then its cuts are moved once more, with plans and
// messages as they are (tli_simulate_ranks). Of small graphs all cuts are tried instead. Where no cut is found
// that fits, the same search looks for the one whose largest rank is the smallest. That does not know the
// budget, so a refusal names bytes with which the same call finds this cut.

#define TLI_CUT_EVENTS 4000000    // calls simulated to move cuts in each round, and steps at the end
#define TLI_CUT_ROUNDS 32         // at most
#define TLI_CUT_PLANS 24          // of stages for each rank, which share half of the work; the rest is for the
                                  // stages of the cut that is found, and of the one that is best by time
#define TLI_CUT_FEW 200           // cuts that are all tried, in graphs of so many units at most
#define TLI_CUT_FEW_UNITS 24

#define TLI_RANKS_WORK 700000000  // of all ranks together, where the desc has no limit

static uint64_t tli_work_of_ranks(const tl_ranks_desc *desc) {
    return desc->work_limit ? desc->work_limit : TLI_RANKS_WORK;
}

// -- one cut --

// Cut and plan the stage of a rank. bounds: as in tli_cut_stage; budget: of the rank, 0 = no limit; is_quick:
// one of many.
static tl_result tli_plan_stage(const tli_cuts *c, int32_t rank, const int32_t *bounds, uint64_t budget,
                                int is_quick, tli_stage_plan *stage) {
    const tl_ranks_desc *desc = c->desc;
    uint64_t work = tli_work_of_ranks(desc) / (uint64_t)desc->rank_count;
    uint64_t batches = (uint64_t)desc->micro_batch_count;
    tl_rank_plan *plan = &stage->plan;
    tl_result result;
    if (c->known) work /= is_quick ? 2 * TLI_CUT_PLANS : 4;
    stage->rank = rank;
    plan->first_node = bounds[0];
    plan->end_node = bounds[1];
    result = tli_cut_stage(c->env, desc, rank, bounds, &stage->stage, &plan->compiled);
    plan->compiled.graph = &stage->stage.graph;
    if (!result)
        result = tli_plan_rank(c->env, desc, rank, &stage->stage, budget, work, is_quick, plan,
                               &stage->least_bytes);
    stage->base_cost = plan->compiled.base_cost / batches;
    stage->cost = plan->busy_cost / batches;
    return result;
}

// Plan a cut. ends: [all stages].
static tl_result tli_plan_given_cut(tli_cuts *c, const int32_t *ends) {
    const tl_ranks_desc *desc = c->desc;
    int32_t chunks = tli_count_chunks(desc), rank, chunk;
    int32_t *bounds = (int32_t *)tli_alloc_array(c->env, 2 * (uint64_t)chunks, sizeof *bounds);
    tl_result result = bounds ? TL_OK : tli_fail_ranks(c->env);
    for (rank = 0; rank < desc->rank_count && !result; rank++) {
        for (chunk = 0; chunk < chunks; chunk++) {
            int32_t stage = chunk * desc->rank_count + rank;
            bounds[2 * chunk] = stage ? ends[stage - 1] : 0;
            bounds[2 * chunk + 1] = ends[stage];
        }
        result = tli_plan_stage(c, rank, bounds, tli_budget_of_rank(desc, rank), 0, &c->chosen[rank]);
    }
    tli_release(c->env, bounds);
    return result;
}

// Plan the units first .. end - 1 on a rank.
static tl_result tli_plan_units(const tli_cuts *c, int32_t rank, int32_t first, int32_t end, uint64_t budget,
                                int is_quick, tli_stage_plan *stage) {
    int32_t bounds[2];
    bounds[0] = tli_first_node_of(c, first);
    bounds[1] = tli_first_node_of(c, end);
    return tli_plan_stage(c, rank, bounds, budget, is_quick, stage);
}

// Plan the stages of a cut that are not known, up to one that does not fit.
static tl_result tli_plan_unknown(tli_cuts *c, const int32_t *ends) {
    tl_result result = TL_OK;
    int32_t rank, first = 0;
    for (rank = 0; rank < c->desc->rank_count && !result; first = ends[rank++]) {
        tli_stage_plan *stage = &c->known[c->known_count];
        if (tli_find_known(c, rank, first, ends[rank])) continue;
        c->known_count++;
        result = tli_plan_units(c, rank, first, ends[rank],
                                c->is_tight ? 1 : tli_budget_of_rank(c->desc, rank), 1, stage);
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

static int tli_looks_at_bytes(const tli_cuts *c) { return !c->by_time && tli_has_budget(c->desc); }

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

// Find the best cut by what is known and estimated, or by time alone. *found = 0: nothing fits.
static tl_result tli_partition_units(tli_cuts *c, int32_t *ends, int *found) {
    const tl_ranks_desc *desc = c->desc;
    tl_partition_desc ask;
    tl_partition partition;
    tl_link link;
    int32_t stages = tli_count_all_stages(desc), k;
    tl_result result;
    tli_quiet quiet = tli_begin_quiet(c->env);
    tli_zero(&ask, sizeof ask);
    ask.units = c->chain;
    ask.unit_count = c->unit_count;
    ask.rank_count = ask.stage_count = stages;
    ask.micro_batch_count = desc->micro_batch_count;
    ask.pipeline = desc->pipeline == TL_PIPELINE_GPIPE ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
    if (stages == desc->rank_count) ask.ranks = desc->ranks;
    ask.objective = c->is_tight ? TL_PARTITION_BOTTLENECK : TL_PARTITION_TOTAL;
    if (tli_looks_at_bytes(c)) ask.measure = tli_measure_stage;
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
    for (k = 0; k < stages && !result; k++) ends[k] = partition.stages[k].end_unit;
    tl_free_partition(c->env, &partition);
    if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    tli_end_quiet(&quiet, result);
    return result;
}

// -- moving cuts --

// The time of a training step with these stages; UINT64_MAX: one does not fit, or has no unit.
static tl_result tli_time_cut(const tli_cuts *c, const int32_t *ends, uint64_t *ns) {
    const tl_ranks_desc *desc = c->desc;
    int32_t stages = tli_count_all_stages(desc), stage, first = 0;
    uint64_t *forwards = c->times, *backwards = forwards + stages, *bytes = backwards + stages;
    tl_pipeline_desc pipeline;
    tl_pipeline_report report;
    tl_result result;
    *ns = UINT64_MAX;
    for (stage = 0; stage < stages; first = ends[stage++]) {
        int32_t rank = stage % desc->rank_count;
        uint64_t forward;
        tl_stage_cell cell;
        if (first >= ends[stage] || ends[stage] > c->unit_count) return TL_OK;
        forward = c->units[ends[stage]].before.forward - c->units[first].before.forward;
        cell.fits = 1;
        cell.time_ns = tli_base_cost(c, rank, first, ends[stage]);
        if (tli_looks_at_bytes(c)) tli_estimate_stage(c, rank, first, ends[stage], &cell);
        if (!cell.fits) return TL_OK;
        forward = tli_cost_on_rank(tli_rank_of(desc, rank), forward);
        forwards[stage] = forward < cell.time_ns ? forward : cell.time_ns;
        backwards[stage] = cell.time_ns - forwards[stage];
        bytes[stage] = c->units[ends[stage]].crossing;
    }
    tli_zero(&pipeline, sizeof pipeline);
    pipeline.kind = desc->pipeline;
    pipeline.rank_count = desc->rank_count;
    pipeline.chunk_count = desc->chunk_count;
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

static void tli_shift_cuts(int32_t *ends, int32_t from, int32_t to, int32_t by) {
    for (; from <= to; from++) ends[from] += by;
}

// Move the cuts from .. to by some units there and back, as long as that pays.
static tl_result tli_move_some(const tli_cuts *c, int32_t *ends, int32_t from, int32_t to, int32_t by,
                               uint64_t *events, uint64_t *best) {
    uint64_t cost = 2 * (uint64_t)c->desc->micro_batch_count * (uint64_t)tli_count_all_stages(c->desc);
    int32_t moved = -by;
    tl_result result = TL_OK;
    while (!result && *events >= cost) {
        uint64_t ns;
        *events -= cost;
        tli_shift_cuts(ends, from, to, moved);
        result = tli_time_cut(c, ends, &ns);
        if (!result && ns < *best) {
            *best = ns;
            continue;
        }
        tli_shift_cuts(ends, from, to, -moved);
        if (moved > 0) break;
        moved = by;
    }
    return result;
}

// Move cuts, by many units first, one and all from one on together, until nothing shortens the step. *best: its
// time.
static tl_result tli_move_cuts(const tli_cuts *c, int32_t *ends, uint64_t *best) {
    uint64_t events = c->desc->inference ? 0 : TLI_CUT_EVENTS, before;
    int32_t stages = tli_count_all_stages(c->desc), last = stages - 2, by = 1, stage;
    tl_result result = tli_time_cut(c, ends, best);
    while (2 * by < c->unit_count) by *= 2;
    for (; by && !result; by /= 2) do {
        before = *best;
        for (stage = 0; stage <= last && !result; stage++) {
            result = tli_move_some(c, ends, stage, stage, by, &events, best);
            if (!result && stage < last) result = tli_move_some(c, ends, stage, last, by, &events, best);
        }
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

// The time of a training step with these plans, [rank_count], and their messages; UINT64_MAX where ranks wait
// for each other. *steps: of all plans.
static tl_result tli_simulate_plans(const tli_cuts *c, tl_rank_plan *plans, uint64_t *cost, uint64_t *steps) {
    tl_compiled_ranks ranks;
    tli_quiet quiet = tli_begin_quiet(c->env);
    int32_t rank;
    tl_result result;
    tli_zero(&ranks, sizeof ranks);
    ranks.rank_count = c->desc->rank_count;
    ranks.micro_batch_count = c->desc->micro_batch_count;
    ranks.ranks = plans;
    *steps = 0;
    for (rank = 0; rank < ranks.rank_count; rank++) *steps += (uint64_t)plans[rank].compiled.plan.step_count;
    result = tli_simulate_ranks(c->env, c->desc, &ranks);
    *cost = result ? UINT64_MAX : ranks.cost;
    if (result == TL_ERROR_INVALID_PLAN) result = TL_OK;
    tli_end_quiet(&quiet, result);
    return result;
}

// The same, of a cut whose stages are known.
static tl_result tli_simulate_cut(const tli_cuts *c, const int32_t *ends, uint64_t *cost, uint64_t *steps) {
    uint64_t ranks = (uint64_t)c->desc->rank_count;
    tl_rank_plan *plans = (tl_rank_plan *)tli_alloc_array(c->env, ranks, sizeof *plans);
    int32_t rank, first = 0;
    tl_result result;
    if (!plans) return tli_fail_ranks(c->env);
    for (rank = 0; rank < c->desc->rank_count; first = ends[rank++])
        plans[rank] = tli_find_known(c, rank, first, ends[rank])->plan;
    result = tli_simulate_plans(c, plans, cost, steps);
    tli_release(c->env, plans);
    return result;
}

// The same, of stages that are chosen; UINT64_MAX where one of them does not fit.
static tl_result tli_simulate_chosen(const tli_cuts *c, const tli_stage_plan *stages, uint64_t *cost) {
    uint64_t ranks = (uint64_t)c->desc->rank_count, steps, fits = 1;
    tl_rank_plan *plans = (tl_rank_plan *)tli_alloc_array(c->env, ranks, sizeof *plans);
    int32_t rank;
    tl_result result = plans ? TL_OK : tli_fail_ranks(c->env);
    for (rank = 0; rank < c->desc->rank_count && !result; rank++) {
        plans[rank] = stages[rank].plan;
        fits = fits && !stages[rank].least_bytes;
    }
    *cost = UINT64_MAX;
    if (!result && fits) result = tli_simulate_plans(c, plans, cost, &steps);
    tli_release(c->env, plans);
    return result;
}

// Plan what is not known of a cut. *value: the time of a step or the bytes of the largest rank; UINT64_MAX
// where a stage does not fit.
static tl_result tli_value_cut(tli_cuts *c, const int32_t *ends, uint64_t *value, uint64_t *steps) {
    tl_result result = tli_plan_unknown(c, ends);
    *value = UINT64_MAX;
    *steps = 0;
    if (result || !tli_is_settled(c, ends)) return result;
    if (!c->is_tight) return tli_simulate_cut(c, ends, value, steps);
    *value = tli_largest_of_cut(c, ends);
    return TL_OK;
}

static int tli_can_plan_more(const tli_cuts *c) {
    return c->known_count <= c->known_limit - c->desc->rank_count;
}

// Whether there are few enough cuts to try all of them: their number is (units - 1) over (ranks - 1).
static int tli_are_few_cuts(const tli_cuts *c) {
    int64_t cuts = 1, k;
    if (c->unit_count > TLI_CUT_FEW_UNITS) return 0;
    for (k = 1; k < c->desc->rank_count && cuts <= TLI_CUT_FEW; k++) cuts = cuts * (c->unit_count - k) / k;
    return cuts <= TLI_CUT_FEW;
}

// Make the next cut in the order of the numbers. 0 = that was the last one.
static int tli_next_cut(const tli_cuts *c, int32_t *ends) {
    int32_t ranks = c->desc->rank_count, rank = ranks - 2;
    while (rank >= 0 && ends[rank] == c->unit_count - (ranks - 1 - rank)) rank--;
    if (rank < 0) return 0;
    for (ends[rank]++; rank + 2 < ranks; rank++) ends[rank + 1] = ends[rank] + 1;
    return 1;
}

// Whether a cut may be better than the best, whose value is `best`: stages that are known fit, and the calls of
// each alone take less time; or, where the fewest bytes are looked for, stages that are known take fewer.
static int tli_may_be_better(const tli_cuts *c, const int32_t *ends, uint64_t best) {
    uint64_t batches = (uint64_t)c->desc->micro_batch_count, all;
    int32_t rank, first = 0;
    for (rank = 0; rank < c->desc->rank_count; first = ends[rank++]) {
        const tli_stage_plan *known = tli_find_known(c, rank, first, ends[rank]);
        uint64_t cost = known ? known->cost : tli_base_cost(c, rank, first, ends[rank]);
        if (c->is_tight && known && known->least_bytes >= best) return 0;
        if (!c->is_tight && known && known->least_bytes) return 0;
        if (!c->is_tight && (!tli_mul_u64(cost, batches, &all) || all >= best)) return 0;
    }
    return 1;
}

// Try all cuts. ends: [2 x rank_count] as in tli_search_cut.
static tl_result tli_try_all_cuts(tli_cuts *c, int32_t *ends, uint64_t *best) {
    int32_t ranks = c->desc->rank_count, rank, *next = ends + ranks;
    uint64_t value, steps;
    tl_result result = TL_OK;
    *best = UINT64_MAX;
    for (rank = 0; rank < ranks; rank++) next[rank] = rank + 1 < ranks ? rank + 1 : c->unit_count;
    do {
        if (!tli_may_be_better(c, next, *best)) continue;
        result = tli_value_cut(c, next, &value, &steps);
        if (result || value >= *best) continue;
        *best = value;
        tli_copy(ends, next, (size_t)ranks * sizeof *ends);
    } while (!result && tli_next_cut(c, next));
    return result;
}

// Move the cuts from .. to of what was found by some units, with plans and messages as they are. *steps: that
// were simulated.
static tl_result tli_refine_some(tli_cuts *c, int32_t *ends, int32_t from, int32_t to, int32_t by,
                                 uint64_t *best, uint64_t *steps) {
    int32_t side;
    for (side = -1; side <= 1 && tli_can_plan_more(c) && *steps < TLI_CUT_EVENTS; side += 2) {
        int32_t first = from ? ends[from - 1] : 0;
        uint64_t value, more;
        tl_result result;
        if (ends[from] + side * by <= first || ends[to] + side * by >= ends[to + 1]) continue;
        tli_shift_cuts(ends, from, to, side * by);
        result = tli_value_cut(c, ends, &value, &more);
        if (result) return result;
        *steps += more;
        if (value < *best) *best = value;
        else tli_shift_cuts(ends, from, to, -side * by);
    }
    return TL_OK;
}

// The same, by less and less, until nothing is gained.
static tl_result tli_refine_cut(tli_cuts *c, int32_t *ends, uint64_t *best) {
    uint64_t steps = 0, before;
    int32_t by, rank, last = c->desc->rank_count - 2;
    tl_result result = TL_OK;
    do {
        before = *best;
        for (by = c->unit_count / c->desc->rank_count; by > 0; by /= 2)
            for (rank = 0; rank <= last && !result; rank++) {
                result = tli_refine_some(c, ends, rank, rank, by, best, &steps);
                if (!result && rank < last) result = tli_refine_some(c, ends, rank, last, by, best, &steps);
            }
    } while (*best < before && !result);
    return result;
}

// Look for the best cut. ends: [2 x rank_count] the first half is what was found, the rest scratch. *best: what
// tli_value_cut says of it; UINT64_MAX: none was found.
static tl_result tli_search_cut(tli_cuts *c, int32_t *ends, uint64_t *best) {
    int32_t *next = ends + c->desc->rank_count, round;
    uint64_t value, steps;
    int fits = 1, is_settled = 0;
    tl_result result = TL_OK;
    if (c->is_small) return tli_try_all_cuts(c, ends, best);
    *best = UINT64_MAX;
    for (round = 0; tli_can_plan_more(c) && round < TLI_CUT_ROUNDS && !is_settled && !result; round++) {
        result = tli_partition_units(c, next, &fits);
        if (result || !fits) break;
        if (!c->is_tight) result = tli_move_cuts(c, next, &value);
        if (result) break;
        is_settled = tli_is_settled(c, next) || !tli_looks_at_bytes(c);
        result = tli_value_cut(c, next, &value, &steps);
        if (result || value >= *best) continue;
        *best = value;
        tli_copy(ends, next, (size_t)c->desc->rank_count * sizeof *ends);
    }
    return !result && *best < UINT64_MAX ? tli_refine_cut(c, ends, best) : result;
}

// Whether the cut with the fewest bytes fits all budgets.
static int tli_do_all_fit(const tli_cuts *c, const int32_t *ends) {
    int32_t rank, first = 0;
    for (rank = 0; rank < c->desc->rank_count; first = ends[rank++]) {
        uint64_t budget = tli_budget_of_rank(c->desc, rank);
        if (budget && tli_find_known(c, rank, first, ends[rank])->least_bytes > budget) return 0;
    }
    return 1;
}

static void tli_forget_stages(tli_cuts *c) {
    tli_free_stages(c->env, c->known, c->known_count);
    c->known_count = 0;
}

// From the cut with the fewest bytes, which fits, go on towards less time.
static tl_result tli_loosen_cut(tli_cuts *c, int32_t *ends, uint64_t *best) {
    uint64_t steps;
    tl_result result;
    tli_forget_stages(c);
    c->is_tight = 0;
    result = tli_value_cut(c, ends, best, &steps);
    return result ? result : tli_refine_cut(c, ends, best);
}

// Take a planned stage as it is.
static void tli_take_known(tli_cuts *c, int32_t rank, tli_stage_plan *known) {
    tli_free_stages(c->env, &c->chosen[rank], 1);
    c->chosen[rank] = *known;
    c->chosen[rank].plan.compiled.graph = &c->chosen[rank].stage.graph;
    tli_zero(known, sizeof *known);
    known->rank = -1;
}

// Take the stages of the cut: those in which nothing runs again as they are, others with the search of all
// bodies, where that finds a plan that costs no more.
static tl_result tli_take_cut(tli_cuts *c, const int32_t *ends) {
    int32_t rank, first = 0;
    tl_result result = TL_OK;
    for (rank = 0; rank < c->desc->rank_count && !result; first = ends[rank++]) {
        tli_stage_plan *known = tli_find_known(c, rank, first, ends[rank]), *chosen = &c->chosen[rank];
        int fits = known && !known->least_bytes, is_best = fits && known->cost == known->base_cost;
        if (!is_best)
            result = tli_plan_units(c, rank, first, ends[rank], tli_budget_of_rank(c->desc, rank), 0, chosen);
        if (!result && fits && (is_best || chosen->least_bytes || chosen->cost > known->cost))
            tli_take_known(c, rank, known);
    }
    return result;
}

static int tli_are_same_cuts(const tli_cuts *c, const int32_t *ends) {
    int32_t rank = 0, count = c->desc->rank_count;
    while (rank < count && c->chosen[rank].plan.end_node == tli_first_node_of(c, ends[rank])) rank++;
    return rank == count;
}

// Plan the cut that is best by time alone with the search of all bodies, too, and take it if it is better: that
// search gains more on some stages than on others. ends: scratch.
static tl_result tli_compare_by_time(tli_cuts *c, int32_t *ends) {
    const tl_ranks_desc *desc = c->desc;
    uint64_t cost, other_cost;
    tli_stage_plan *other;
    int32_t rank, first = 0;
    int found;
    tl_result result;
    c->by_time = 1;
    result = tli_partition_units(c, ends, &found);
    if (!result) result = tli_move_cuts(c, ends, &cost);
    c->by_time = 0;
    if (result || tli_are_same_cuts(c, ends)) return result;
    other = (tli_stage_plan *)tli_alloc_array(c->env, (uint64_t)desc->rank_count, sizeof *other);
    if (!other) return tli_fail_ranks(c->env);
    for (rank = 0; rank < desc->rank_count && !result; first = ends[rank++])
        result = tli_plan_units(c, rank, first, ends[rank], tli_budget_of_rank(desc, rank), 0, &other[rank]);
    if (!result) result = tli_simulate_chosen(c, c->chosen, &cost);
    if (!result) result = tli_simulate_chosen(c, other, &other_cost);
    if (!result && other_cost < cost) {
        tli_stage_plan *chosen = c->chosen;
        c->chosen = other;
        other = chosen;
    }
    tli_free_stages(c->env, other, desc->rank_count);
    tli_release(c->env, other);
    return result;
}

// Find the cut of one stage a rank. ends: [2 x rank_count] units; the second half is scratch.
static tl_result tli_cut_units(tli_cuts *c, int32_t *ends) {
    uint64_t best = 0;
    tl_result result = TL_OK;
    c->known_limit = TLI_CUT_PLANS * c->desc->rank_count;
    c->is_small = tli_are_few_cuts(c);
    if (c->is_small) c->known_limit = c->desc->rank_count * c->unit_count * c->unit_count;
    c->known = (tli_stage_plan *)tli_alloc_array(c->env, (uint64_t)c->known_limit, sizeof *c->known);
    if (!c->known) result = tli_fail_ranks(c->env);
    if (!result) result = tli_search_cut(c, ends, &best);
    if (!result && best == UINT64_MAX) {
        tli_forget_stages(c);
        c->is_tight = 1;
        result = tli_search_cut(c, ends, &best);
    }
    if (!result && best == UINT64_MAX)
        result = tli_fail(c->env, TL_ERROR_OVERFLOW, TLI_IN(COMPILE_RANKS),
                          TLI_RULE(BASE_OF_RANK_DOES_NOT_FIT_64));
    if (!result && c->is_tight && tli_do_all_fit(c, ends)) result = tli_loosen_cut(c, ends, &best);
    if (!result) result = tli_take_cut(c, ends);
    return result || c->is_small || !tli_looks_at_bytes(c) ? result : tli_compare_by_time(c, ends);
}

// Cuts where the stages before have their even share, with a unit for every stage.
static void tli_cut_evenly(const tli_cuts *c, int32_t *ends) {
    const tli_cut_sums *all = &c->units[c->unit_count].before;
    int32_t stages = tli_count_all_stages(c->desc), stage, at = 0;
    double share = ((double)all->forward + (double)all->backward) / stages;
    for (stage = 0; stage < stages; stage++) {
        const tli_cut_sums *before = &c->units[++at].before;
        while (at < c->unit_count - (stages - 1 - stage) &&
               (double)before->forward + (double)before->backward < share * (stage + 1))
            before = &c->units[++at].before;
        ends[stage] = at;
    }
    ends[stages - 1] = c->unit_count;
}

// Find the cut of several chunks a rank, by time alone: the calls of a rank take turns with those of its
// neighbours, chunk by chunk, so the time of a step follows from all stages and not from the slowest one. The
// best of the partition and an even one are moved. ends: [2 x all stages] units; the second half is scratch.
static tl_result tli_cut_chunks(tli_cuts *c, int32_t *ends) {
    int32_t stages = tli_count_all_stages(c->desc), *even = ends + stages;
    uint64_t ns = 0, even_ns = 0;
    int found;
    tl_result result;
    c->by_time = 1;
    result = tli_partition_units(c, ends, &found);
    tli_cut_evenly(c, even);
    if (!result) result = tli_move_cuts(c, ends, &ns);
    if (!result) result = tli_move_cuts(c, even, &even_ns);
    if (!result && even_ns < ns) tli_copy(ends, even, (size_t)stages * sizeof *ends);
    return result;
}

// Find the cut, where none is given, and plan its stages. ends: [all stages] nodes.
static tl_result tli_choose_cut(tli_cuts *c, int32_t *ends) {
    const tl_ranks_desc *desc = c->desc;
    int32_t stages = tli_count_all_stages(desc), k, *units;
    int has_chunks = stages > desc->rank_count;
    tl_result result = TL_OK;
    if (desc->ends) tli_copy(ends, desc->ends, (size_t)stages * sizeof *ends);
    else ends[0] = desc->graph->node_count;
    if (desc->ends || stages == 1) return tli_plan_given_cut(c, ends);
    if (c->unit_count < stages)
        return tli_fail(c->env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS),
                        has_chunks ? TLI_RULE(STAGES_MORE_THAN_NODES) : TLI_RULE(RANKS_MORE_THAN_NODES));
    units = (int32_t *)tli_alloc_array(c->env, 2 * (uint64_t)stages, sizeof *units);
    c->times = (uint64_t *)tli_alloc_array(c->env, 3 * (uint64_t)stages, sizeof *c->times);
    if (!units || !c->times) result = tli_fail_ranks(c->env);
    if (!result) tli_fill_chain(c);
    if (!result) result = has_chunks ? tli_cut_chunks(c, units) : tli_cut_units(c, units);
    for (k = 0; k < stages && !result; k++)
        ends[k] = has_chunks ? tli_first_node_of(c, units[k]) : c->chosen[k].plan.end_node;
    tli_release(c->env, units);
    return result || !has_chunks ? result : tli_plan_given_cut(c, ends);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
