#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: the plan of each --
//
// f micro-batches are in flight at a rank, so what one of them holds at the turn between its forward and its
// backward counts f times, and what it takes beyond that once. Candidates for the body:
//
//     keep all                              least cost, most held
//     tl_plan_remat at several budgets      what is held follows from the peak
//     a kept set, as it is                  the tensors that cost most for each byte to make again stay, more
//                                           and more of them
//     a kept set, then one of the plans     the forward part holds the set; backward, the plan runs again what
//                                           is missing, in the way that its budget allows
//
// Each is woven for a few micro-batches, which repeat themselves, and measured. What is cheaper than the best
// and fits is woven for all of them and placed.

#define TLI_RANK_BUDGETS 8    // of tl_plan_remat
#define TLI_RANK_SETS 16      // kept sets between none and all

typedef struct tli_rank_events {
    tl_pipeline_event *events;          // [count]
    int32_t            count, micro_batches;
} tli_rank_events;

typedef struct tli_rank_search {
    tl_env                *env;
    const tl_ranks_desc   *desc;
    const tl_graph        *graph;       // of the stage
    tli_chunks             chunks;      // of it
    tli_rank_events        all, probe;  // of a training step; of as many micro-batches as repeat themselves
    int32_t                in_flight;   // micro-batches
    uint8_t               *messages;    // [nodes] TLI_MESSAGE_
    uint8_t               *ran;         // [nodes] scratch of tli_find_turn
    uint8_t               *keep;        // [tensors] scratch
    tl_plan                plans[TLI_RANK_BUDGETS];  // [plan_count] of tl_plan_remat
    int32_t                plan_count;
    tl_device              device;      // the alignment
    uint64_t               room;        // bytes of the arena; UINT64_MAX = no limit
    uint64_t               work_limit;  // of one plan
    tl_plan                best;        // with places; no steps: none
    uint64_t               best_cost;   // of a micro-batch
    uint64_t               best_held;
    uint64_t               least;       // arena of the candidate that takes the fewest bytes
    uint64_t               bound_cost;  // of the calls of one micro-batch
} tli_rank_search;

static void tli_free_body(tl_env *env, tli_body *body) {
    tli_release(env, body->steps);
    tli_release(env, body->ends);
    tli_zero(body, sizeof *body);
}

// Bytes that are live where the forward parts of a body have run, graph inputs left out.
static tl_result tli_measure_held(const tli_rank_search *s, const tli_body *body, uint64_t *held) {
    tl_plan plan;
    tli_sim sim;
    tl_result result;
    int32_t chunk, i;
    tli_zero(&plan, sizeof plan);
    plan.inference = s->desc->inference;
    result = tli_init_sim(s->env, &sim, TLI_IN(COMPILE_RANKS), s->graph, NULL, &plan, NULL);
    *held = 0;
    if (!result) *held = sim.live_bytes;
    for (chunk = 0; chunk < s->chunks.count; chunk++)
        for (i = tli_find_part_start(body, chunk, 0); i < body->ends[2 * chunk] && !result; i++)
            result = tli_sim_step(&sim, &body->steps[i]);
    if (!result) *held = sim.live_bytes - *held;
    tli_free_sim(&sim);
    return result;
}

// What the calls of a body cost.
static uint64_t tli_sum_body(const tl_graph *graph, const tli_body *body) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < body->step_count; i++) {
        const tl_node *node = &graph->nodes[body->steps[i].node];
        uint64_t cost = body->steps[i].kind == TL_STEP_BACKWARD ? node->bwd_cost : node->fwd_cost;
        if (body->steps[i].kind <= TL_STEP_BACKWARD && !tli_add_u64(sum, cost, &sum)) return UINT64_MAX;
    }
    return sum;
}

// Weave a body for these events and measure the plan.
static tl_result tli_weave_measured(const tli_rank_search *s, const tli_body *body,
                                    const tli_rank_events *events, tl_plan *plan) {
    tl_result result = tli_weave_plan(s->env, s->graph, &s->chunks, body, s->messages, events->events,
                                      events->count, events->micro_batches, s->desc->inference, plan);
    return result ? result : tl_measure_plan(s->env, s->graph, NULL, plan);
}

// Place the plan of a body, and take it if it fits with places.
static tl_result tli_place_body(tli_rank_search *s, const tli_body *body, uint64_t cost, uint64_t held) {
    tl_places_desc places;
    tl_plan plan;
    tl_result result = tli_weave_measured(s, body, &s->all, &plan);
    tli_zero(&places, sizeof places);
    places.graph = s->graph;
    places.device = &s->device;
    places.block_bytes = s->desc->block_bytes;
    places.work_limit = s->work_limit;
    if (!result) result = tl_plan_places(s->env, &places, &plan, NULL);
    if (!result && plan.arena_bytes < s->least) s->least = plan.arena_bytes;
    if (!result && plan.arena_bytes <= s->room) {
        tl_free_plan(s->env, &s->best);
        s->best = plan;
        tli_zero(&plan, sizeof plan);
        s->best_cost = cost;
        s->best_held = held;
    }
    tl_free_plan(s->env, &plan);
    return result;
}

// What every micro-batch takes from the start of a training step to its end: its inputs, and results.
static uint64_t tli_count_fixed(const tl_graph *graph) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *node = &graph->nodes[graph->outputs[i].node];
        if (node->is_input || node->keep) sum += graph->outputs[i].bytes;
    }
    return sum;
}

// The live bytes of all micro-batches, from those of a few.
static uint64_t tli_extend_peak(const tli_rank_search *s, uint64_t peak) {
    uint64_t more = (uint64_t)(s->all.micro_batches - s->probe.micro_batches), bytes;
    if (!tli_mul_u64(more, tli_count_fixed(s->graph), &bytes) || !tli_add_u64(peak, bytes, &peak))
        return UINT64_MAX;
    return peak;
}

// Whether all that is sent goes out in the forward parts. A plan that runs a node late, behind backwards that
// do not wait for it, keeps the next rank waiting for these.
static int tli_sends_forward(const tli_rank_search *s, const tli_body *body) {
    int32_t sends = 0, chunk, i;
    for (i = 0; i < s->graph->node_count; i++) sends += s->messages[i] == TLI_MESSAGE_SEND;
    for (chunk = 0; chunk < s->chunks.count; chunk++)
        for (i = tli_find_part_start(body, chunk, 0); i < body->ends[2 * chunk]; i++)
            sends -= body->steps[i].kind < TL_STEP_BACKWARD &&
                     s->messages[body->steps[i].node] == TLI_MESSAGE_SEND;
    return !sends;
}

// Take a body if it is cheaper than the best and fits. One whose backwards begin before all is sent is none.
static tl_result tli_try_body(tli_rank_search *s, const tli_body *body) {
    tli_quiet quiet;
    tl_plan plan;
    uint64_t held = 0, cost = tli_sum_body(s->graph, body), peak;
    tl_result result;
    if ((s->best.step_count && cost >= s->best_cost) || !tli_sends_forward(s, body)) return TL_OK;
    quiet = tli_begin_quiet(s->env);
    result = tli_weave_measured(s, body, &s->probe, &plan);
    if (!result) result = tli_measure_held(s, body, &held);
    peak = result ? 0 : tli_extend_peak(s, plan.peak_bytes);
    if (!result && (peak <= s->room || peak < s->least))
        result = tli_place_body(s, body, cost, held);
    tl_free_plan(s->env, &plan);
    if (result == TL_ERROR_INVALID_PLAN) result = TL_OK;
    tli_end_quiet(&quiet, result);
    return result;
}

// Try a plan of one micro-batch; with second, its forward part and then that plan.
static tl_result tli_try_rank_plan(tli_rank_search *s, const tl_plan *plan, const tl_plan *second) {
    tli_body body;
    tl_result result = tli_join_bodies(s->env, s->graph, &s->chunks, s->messages, plan, second, s->ran, &body);
    if (!result) result = tli_try_body(s, &body);
    tli_free_body(s->env, &body);
    return result;
}

// Plan one micro-batch within live bytes. *least: where none fits, the least budget.
static tl_result tli_plan_rank_budget(tli_rank_search *s, uint64_t live, uint64_t *least) {
    tl_remat_desc remat;
    tl_remat_report report;
    tl_result result;
    tli_quiet quiet = tli_begin_quiet(s->env);
    tli_zero(&remat, sizeof remat);
    remat.graph = s->graph;
    remat.inference = s->desc->inference;
    remat.budget_bytes = live;
    remat.live = 1;
    remat.work_limit = s->work_limit;
    result = tl_plan_remat(s->env, &remat, &s->plans[s->plan_count], &report);
    if (!result) s->plan_count++;
    *least = report.least_budget_bytes;
    if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    tli_end_quiet(&quiet, result);
    return result;
}

// Make plans at budgets from the least to near the peak of keeping everything, and try each as it is.
static tl_result tli_try_budgets(tli_rank_search *s, uint64_t most) {
    uint64_t least = 0, none;
    int32_t k;
    tl_result result = tli_plan_rank_budget(s, 1, &least);
    for (k = s->plan_count; k < TLI_RANK_BUDGETS && !result && most > least; k++) {
        uint64_t live = least + (most - least) / TLI_RANK_BUDGETS * (uint64_t)k;
        result = tli_plan_rank_budget(s, live ? live : 1, &none);
    }
    for (k = 0; k < s->plan_count && !result; k++) result = tli_try_rank_plan(s, &s->plans[k], NULL);
    return result;
}

// The tensors that may be kept, those that cost most for each byte first.
static int32_t tli_rank_tensors(const tl_graph *graph, const uint8_t *messages, int32_t *order,
                                uint64_t *keys) {
    int32_t i, count = 0;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *node = &graph->nodes[graph->outputs[i].node];
        uint64_t bytes = graph->outputs[i].bytes + node->saved_bytes, per;
        if (node->is_input || node->keep || messages[graph->outputs[i].node] || !bytes) continue;
        per = node->fwd_cost ? bytes / (node->fwd_cost / 1024 + 1) : UINT64_MAX;
        keys[count] = per;
        order[count++] = i;
    }
    return count;
}

// Try kept sets, more and more of the tensors, as they are and before each of the plans.
static tl_result tli_try_kept_sets(tli_rank_search *s) {
    uint64_t tensors = (uint64_t)s->graph->tensor_count;
    uint64_t *keys = (uint64_t *)tli_alloc_array(s->env, tensors, sizeof *keys);
    int32_t *order = (int32_t *)tli_alloc_array(s->env, 2 * tensors, sizeof *order), count, k, i;
    tl_result result = keys && order ? TL_OK : tli_fail_ranks(s->env);
    if (!result) {
        count = tli_rank_tensors(s->graph, s->messages, order, keys);
        tli_sort_numbers(order + tensors, count, keys);
        for (k = 0; k < TLI_RANK_SETS && !result; k++) {
            tl_plan kept;
            tli_zero(s->keep, (size_t)tensors);
            for (i = 0; i < (int32_t)((int64_t)count * k / TLI_RANK_SETS); i++)
                s->keep[order[order[tensors + (uint64_t)i]]] = 1;
            result = tl_plan_kept_set(s->env, s->graph, s->keep, &kept);
            if (!result) result = tli_try_rank_plan(s, &kept, NULL);
            for (i = 0; i < s->plan_count && !result; i++) result = tli_try_rank_plan(s, &kept, &s->plans[i]);
            tl_free_plan(s->env, &kept);
        }
    }
    tli_release(s->env, keys);
    tli_release(s->env, order);
    return result;
}

// What a plan of one micro-batch costs at least.
static void tli_bound_rank(tli_rank_search *s) {
    int32_t id;
    s->bound_cost = 0;
    for (id = 0; id < s->graph->node_count; id++) {
        const tl_node *node = &s->graph->nodes[id];
        s->bound_cost += node->fwd_cost + (!s->desc->inference && node->has_grad ? node->bwd_cost : 0);
    }
}

static tl_result tli_refuse_rank(const tli_rank_search *s, int32_t rank, uint64_t base) {
    uint64_t least;
    tli_sentence e;
    if (!tli_add_u64(s->least, base, &least)) least = UINT64_MAX;
    e = tli_begin_error(s->env, TL_ERROR_INFEASIBLE, TLI_IN(COMPILE_RANKS), TLI_RULE(STAGE_DOES_NOT_FIT),
                        s->desc->budget_bytes, least);
    tli_put_rule(&e);
    if (TLI_ERROR_TEXT) {
        tli_put(&e.text, ", because of rank ");
        tli_put_i64(&e.text, rank);
    }
    return tli_end_error(s->env, &e, TL_ERROR_INFEASIBLE);
}

static tl_result tli_search_rank(tli_rank_search *s) {
    tl_plan plan;
    uint64_t most = 0;
    tl_result result = tl_plan_keep_all(s->env, s->graph, s->desc->inference, &plan);
    if (!result) result = tl_measure_plan(s->env, s->graph, NULL, &plan);
    if (!result) {
        most = plan.peak_bytes;
        result = tli_try_rank_plan(s, &plan, NULL);
    }
    tl_free_plan(s->env, &plan);
    if (result || s->best.step_count || s->desc->keep_all) return result;
    result = tli_try_budgets(s, most);
    return result || s->desc->inference ? result : tli_try_kept_sets(s);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
