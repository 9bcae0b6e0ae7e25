#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: the plan of each --
//
// f micro-batches are in flight at a rank, so what one of them holds at the turn between its forward and its
// backward counts f times, and what it takes beyond that once. Candidates for the body:
//
//     keep all                              least cost, most held
//     tl_plan_remat at several budgets      what is held follows from the peak; more budgets between one that
//                                           fits and one that does not
//     two of these plans                    the forward part of one; backward, what is missing runs again
//                                           in the way of the other
//     a kept set, as it is                  the tensors that cost most for each byte to make again stay, more
//                                           and more of them; then sets that are better by one tensor, from
//                                           none and from all
//     a kept set, then one of the plans
//     each of these that does not fit, with the largest tensors on the host while they wait for their backward
//
// Each is interleaved for a few micro-batches, which repeat themselves, and measured, as it is and tidied. What
// is cheaper than the best and fits is interleaved for all of them and placed.

#define TLI_RANK_BUDGETS 8    // of tl_plan_remat
#define TLI_RANK_HALVINGS 7   // more budgets, to come near the one that just fits
#define TLI_RANK_PLACES 2     // places_left and fits_left begin with so many times the work of one plan
#define TLI_RANK_SETS 16      // kept sets between none and all

typedef struct tli_rank_events {
    tl_pipeline_event *events;          // [count]
    int32_t            count, micro_batches;
} tli_rank_events;

typedef struct tli_rank_search {
    tl_env                *env;
    const tl_ranks_desc   *desc;
    const tl_graph        *graph;       // of the stage
    tl_graph               turn;        // tli_open_turn
    tli_chunks             chunks;      // of it
    tli_rank_events        all, probe;  // of a training step; of as many micro-batches as repeat themselves
    int32_t                in_flight;   // micro-batches
    uint8_t               *messages;    // [nodes] TLI_MESSAGE_
    uint8_t               *ran;         // [nodes + 1] scratch
    uint8_t               *keep;        // [tensors] scratch
    tl_remat_pool          pool;        // of turn
    tl_plan                plans[TLI_RANK_BUDGETS + TLI_RANK_HALVINGS];  // [plan_count] of tl_plan_remat
    int32_t                plan_count;
    tl_device              device;      // the alignment
    int32_t               *largest;     // [largest_count] tensors that may be copied to the host, largest first
    int32_t                largest_count;
    uint8_t               *copied;      // [tensors] those of the plan that is interleaved next are 1
    int                    copies;      // 1 = some are
    int32_t                beside;      // events beside which these copies run
    uint64_t               room;        // bytes of the arena; UINT64_MAX = no limit
    uint64_t               work_limit;  // of one plan
    tl_plan                best;        // with places
    int                    has_best;    // 1 = best is a plan; it has no steps where no node is wanted
    uint64_t               best_cost;   // of a micro-batch, with what its copies make it wait
    uint64_t               best_calls;  // of a micro-batch
    uint64_t               best_held;
    uint64_t               least;       // arena of the candidate that takes the fewest bytes
    uint64_t               bound_cost;  // of the calls of one micro-batch
    uint64_t               tried_cost, tried_peak;  // of the body that was tried last; UINT64_MAX: not measured
    int                    is_quick;    // 1 = a few bodies, to compare cuts
    int                    climbs;      // 1 = bodies that cost more than the best are measured, too
    uint64_t               climb_room;  // bytes below which a climb asks for cost
    uint64_t               work;        // steps that were simulated to try bodies
    uint64_t               lowest;      // peak of all that was tried
    uint64_t               places_left; // elementary steps for places of what has the fewest live bytes so far
    uint64_t               fits_left;   // the same, of what else fits by its live bytes
} tli_rank_search;

static void tli_free_body(tl_env *env, tli_body *body) {
    tli_release(env, body->steps);
    tli_release(env, body->ends);
    tli_zero(body, sizeof *body);
}

// Bytes that are live where the forward parts of a body have run, graph inputs left out; with what has been
// received and is taken only behind them.
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
    for (i = 0; i < s->graph->node_count && !result; i++)
        if (s->messages[i] == TLI_MESSAGE_RECEIVE && !sim.nodes[i].ran)
            *held += s->graph->outputs[s->graph->nodes[i].first_output].bytes;
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

// Interleave a body for these events, with copies if they are wanted, and measure the plan.
static tl_result tli_interleave_measured(const tli_rank_search *s, const tli_body *body,
                                    const tli_rank_events *events, tl_plan *plan) {
    int32_t *starts = NULL;
    tl_result result;
    tli_zero(plan, sizeof *plan);
    if (s->copies) {
        starts = (int32_t *)tli_alloc_array(s->env, (uint64_t)events->count + 1, sizeof *starts);
        if (!starts) return tli_fail_ranks(s->env);
    }
    result = tli_interleave_plan(s->env, s->graph, &s->chunks, body, s->messages, events->events, events->count,
                            events->micro_batches, s->desc->inference, starts, plan);
    if (!result && starts)
        result = tli_add_copies(s->env, s->graph, s->copied, s->beside, starts, events->count, plan);
    tli_release(s->env, starts);
    return result ? result : tl_measure_plan(s->env, s->graph, s->copies ? s->desc->device : NULL, plan);
}

// Give a plan places, and note the arena. left: the work that may go into that yet.
static tl_result tli_place_rank(tli_rank_search *s, tl_plan *plan, uint64_t work_limit, uint64_t *left) {
    tl_places_desc places;
    tl_places_report report;
    tl_result result;
    tli_zero(&places, sizeof places);
    places.graph = s->graph;
    places.device = &s->device;
    places.block_bytes = s->desc->block_bytes;
    places.work_limit = work_limit;
    result = tl_plan_places(s->env, &places, plan, &report);
    if (result) return result;
    *left -= report.work < *left ? report.work : *left;
    if (plan->host_arena_bytes <= s->desc->host_budget_bytes && plan->arena_bytes < s->least)
        s->least = plan->arena_bytes;
    return TL_OK;
}

// Place the plan of a body, with more work as long as it does not fit; take it if it does. What has the fewest
// live bytes so far is placed in the same way whatever the room is, so that the least budget is found again
// when it is asked for.
static tl_result tli_place_body(tli_rank_search *s, const tli_body *body, uint64_t cost, uint64_t held,
                                int is_lowest) {
    uint64_t *left = is_lowest ? &s->places_left : &s->fits_left;
    tl_plan plan;
    tl_result result = tli_interleave_measured(s, body, &s->all, &plan);
    if (!result) result = tli_place_rank(s, &plan, 1, left);
    if (!result && plan.arena_bytes > s->room && plan.arena_bytes > plan.peak_bytes && *left)
        result = tli_place_rank(s, &plan, s->work_limit / 16 + 1, left);
    if (!result && plan.arena_bytes > s->room && plan.peak_bytes <= s->room && s->fits_left)
        result = tli_place_rank(s, &plan, s->work_limit, &s->fits_left);
    if (!result && plan.arena_bytes <= s->room && plan.host_arena_bytes <= s->desc->host_budget_bytes) {
        tl_free_plan(s->env, &s->best);
        s->best = plan;
        s->has_best = 1;
        tli_zero(&plan, sizeof plan);
        s->best_cost = cost;
        s->best_calls = tli_sum_body(s->graph, body);
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

// Whether a body sends all in its forward part. What has no gradient could be sent behind a backward, which
// waits for a gradient that the rank after can send only when it has got everything.
static int tli_sends_forward(const tli_rank_search *s, const tli_body *body) {
    int32_t chunk, i;
    for (chunk = 0; chunk < s->chunks.count; chunk++)
        for (i = tli_find_part_start(body, chunk, 1); i < body->ends[2 * chunk + 1]; i++)
            if (body->steps[i].kind == TL_STEP_FORWARD && s->messages[body->steps[i].node] == TLI_MESSAGE_SEND)
                return 0;
    return 1;
}

// What copies make of a body.
typedef struct tli_copied_body {
    uint64_t peak, host_peak, cost;  // cost: of a micro-batch, with what it waits for copies
} tli_copied_body;

// Measure a few micro-batches of a body with its `count` largest tensors on the host.
static tl_result tli_measure_copied(tli_rank_search *s, const tli_body *body, int32_t count,
                                    tli_copied_body *copied) {
    tl_plan plan;
    tl_result result;
    int32_t k;
    tli_zero(s->copied, (size_t)s->graph->tensor_count);
    for (k = 0; k < count; k++) s->copied[s->largest[k]] = 1;
    s->copies = 1;
    result = tli_interleave_measured(s, body, &s->probe, &plan);
    copied->peak = tli_extend_peak(s, plan.peak_bytes);
    copied->host_peak = plan.host_peak_bytes;
    copied->cost = tli_divide_up(plan.cost, (uint64_t)s->probe.micro_batches);
    tl_free_plan(s->env, &plan);
    return result;
}

// Find how many of the largest tensors the host holds at most: 0 = none. *copied: of so many.
static tl_result tli_find_most_copies(tli_rank_search *s, const tli_body *body, int32_t *most,
                                      tli_copied_body *copied) {
    int32_t low = 0, high = s->largest_count + 1;
    tli_copied_body tried;
    tl_result result = TL_OK;
    tli_zero(copied, sizeof *copied);
    while (!result && high - low > 1) {
        int32_t middle = high > s->largest_count ? s->largest_count : low + (high - low) / 2;
        result = tli_measure_copied(s, body, middle, &tried);
        if (tried.host_peak > s->desc->host_budget_bytes) {
            high = middle;
            continue;
        }
        low = middle;
        *copied = tried;
    }
    *most = low;
    return result;
}

static int tli_is_cheaper_copied(const tli_rank_search *s, const tli_copied_body *copied) {
    return copied->peak <= s->room && (!s->has_best || copied->cost < s->best_cost);
}

// Find the fewest of the largest tensors whose copies make a body fit, and take it then. With the most of them
// it may have the fewest live bytes so far, which counts for the least budget.
static tl_result tli_copy_least(tli_rank_search *s, const tli_body *body, uint64_t held) {
    int32_t low = 0, high = 0;
    tli_copied_body copied;
    int fits, is_lowest;
    tl_result result = tli_find_most_copies(s, body, &high, &copied);
    if (result || !high) return result;
    fits = tli_is_cheaper_copied(s, &copied);
    is_lowest = copied.peak < s->lowest;
    if (is_lowest) s->lowest = copied.peak;
    if (fits || (is_lowest && !s->has_best)) {
        result = tli_measure_copied(s, body, high, &copied);
        if (!result) result = tli_place_body(s, body, copied.cost, held, is_lowest);
    }
    while (!result && fits && high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        result = tli_measure_copied(s, body, middle, &copied);
        if (!result && copied.peak > s->room) {
            low = middle;
            continue;
        }
        high = middle;
        if (!result && (!s->has_best || copied.cost <= s->best_cost))     // of equal costs fewer copies
            result = tli_place_body(s, body, copied.cost, held, 0);
    }
    return result;
}

// Try a body that was not taken with copies to the host.
static tl_result tli_try_copies(tli_rank_search *s, const tli_body *body, uint64_t held) {
    tl_result result = TL_OK;
    if (!s->largest_count || s->climbs) return TL_OK;
    for (s->beside = 1; s->beside >= 0 && !result; s->beside--)
        if (!s->has_best || s->tried_cost < s->best_cost) result = tli_copy_least(s, body, held);
    s->copies = 0;
    return result;
}

// Take a body if it is cheaper than the best and fits, maybe with copies to the host. One whose backwards begin
// before all is sent is left out.
static tl_result tli_try_body(tli_rank_search *s, const tli_body *body) {
    int is_cheaper, is_lowest;
    tli_quiet quiet;
    tl_plan plan;
    uint64_t held = 0;
    tl_result result;
    s->tried_cost = tli_sum_body(s->graph, body);
    s->tried_peak = UINT64_MAX;
    if (!tli_sends_forward(s, body)) return TL_OK;
    is_cheaper = !s->has_best || s->tried_cost < s->best_cost;
    if (!is_cheaper && !s->climbs) return TL_OK;
    s->work += (uint64_t)s->probe.micro_batches * (uint64_t)body->step_count;
    quiet = tli_begin_quiet(s->env);
    result = tli_interleave_measured(s, body, &s->probe, &plan);
    if (!result) result = tli_measure_held(s, body, &held);
    if (!result) s->tried_peak = tli_extend_peak(s, plan.peak_bytes);
    is_lowest = s->tried_peak < s->lowest;
    if (is_lowest) s->lowest = s->tried_peak;
    if (!result && is_cheaper && (s->tried_peak <= s->room || is_lowest))
        result = tli_place_body(s, body, s->tried_cost, held, is_lowest);
    if (!result) result = tli_try_copies(s, body, held);
    tl_free_plan(s->env, &plan);
    if (result == TL_ERROR_INVALID_PLAN) result = TL_OK;
    tli_end_quiet(&quiet, result);
    return result;
}

// Try a plan of one micro-batch; with second, its forward part and then that plan.
static tl_result tli_try_rank_plan(tli_rank_search *s, const tl_plan *plan, const tl_plan *second) {
    tli_body body, tidy;
    tl_result result = tli_join_bodies(s->env, s->graph, &s->chunks, s->messages, plan, second, s->ran, &body);
    tli_zero(&tidy, sizeof tidy);
    if (!result && !s->climbs) result = tli_try_body(s, &body);
    if (!result) result = tli_tidy_body(s->env, s->graph, &body, &tidy);
    if (!result) result = tli_try_body(s, &tidy);
    tli_free_body(s->env, &body);
    tli_free_body(s->env, &tidy);
    return result;
}

// Plan one micro-batch within live bytes. *least: where none fits, the least budget.
static tl_result tli_plan_rank_budget(tli_rank_search *s, uint64_t live, uint64_t *least) {
    tl_remat_desc remat;
    tl_remat_report report;
    tl_result result;
    tli_quiet quiet = tli_begin_quiet(s->env);
    tli_zero(&remat, sizeof remat);
    remat.graph = &s->turn;
    remat.inference = s->desc->inference;
    remat.budget_bytes = live;
    remat.live = 1;
    remat.work_limit = s->work_limit;
    remat.pool = &s->pool;
    result = tl_plan_remat(s->env, &remat, &s->plans[s->plan_count], &report);
    if (!result) s->plan_count++;
    *least = report.least_budget_bytes;
    if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    tli_end_quiet(&quiet, result);
    return result;
}

// Make plans at budgets from the least to near the peak of keeping everything, and try each as it is.
static tl_result tli_try_budgets(tli_rank_search *s, uint64_t most, uint64_t *least) {
    uint64_t none;
    int32_t k;
    tl_result result = tli_plan_rank_budget(s, 1, least);
    for (k = s->plan_count; k < TLI_RANK_BUDGETS && !result && most > *least; k++) {
        uint64_t live = *least + (most - *least) / TLI_RANK_BUDGETS * (uint64_t)k;
        result = tli_plan_rank_budget(s, live ? live : 1, &none);
    }
    for (k = 0; k < s->plan_count && !result; k++) result = tli_try_rank_plan(s, &s->plans[k], NULL);
    return result;
}

// Halve the budgets between the least and the most: up after a plan that fits, else down.
static tl_result tli_try_halvings(tli_rank_search *s, uint64_t low, uint64_t high) {
    uint64_t none;
    int32_t k;
    tl_result result = TL_OK;
    for (k = 0; k < TLI_RANK_HALVINGS && !result && low + 1 < high; k++) {
        uint64_t live = low + (high - low) / 2;
        int32_t count = s->plan_count;
        int fits;
        result = tli_plan_rank_budget(s, live, &none);
        if (result || s->plan_count == count) return result;
        result = tli_try_rank_plan(s, &s->plans[count], NULL);
        fits = s->has_best && s->best_cost <= s->plans[count].cost;
        if (fits) low = live;
        else high = live;
    }
    return result;
}

// Try the forward part of each plan before each other one.
static tl_result tli_try_pairs(tli_rank_search *s) {
    int32_t k, i;
    tl_result result = TL_OK;
    for (k = 0; k < s->plan_count; k++)
        for (i = 0; i < s->plan_count && !result; i++)
            if (i != k) result = tli_try_rank_plan(s, &s->plans[k], &s->plans[i]);
    return result;
}

// Bytes for each unit of cost, times 1024; UINT64_MAX where there is no cost.
static uint64_t tli_rank_key(uint64_t bytes, uint64_t cost) {
    uint64_t scaled;
    if (!cost) return UINT64_MAX;
    return tli_mul_u64(bytes, 1024, &scaled) ? scaled / cost : bytes / cost * 1024;
}

// The tensors that may be kept, those that cost most for each byte first.
static int32_t tli_rank_tensors(const tl_graph *graph, const uint8_t *messages, int32_t *order,
                                uint64_t *keys) {
    int32_t i, count = 0;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *node = &graph->nodes[graph->outputs[i].node];
        uint64_t bytes = graph->outputs[i].bytes + node->saved_bytes;
        if (node->is_input || node->keep || messages[graph->outputs[i].node] || !bytes) continue;
        keys[count] = tli_rank_key(bytes, node->fwd_cost);
        order[count++] = i;
    }
    return count;
}

// Try the plan of a kept set, as it is and, with each, before each of the plans.
static tl_result tli_try_kept_set(tli_rank_search *s, const uint8_t *keep, int with_each) {
    tl_plan kept;
    int32_t i;
    tl_result result = tl_plan_kept_set(s->env, s->graph, keep, &kept);
    if (!result) result = tli_try_rank_plan(s, &kept, NULL);
    for (i = 0; i < s->plan_count && !result && with_each; i++)
        result = tli_try_rank_plan(s, &kept, &s->plans[i]);
    tl_free_plan(s->env, &kept);
    return result;
}

// Whether what was tried last is better than a peak and a cost: nearer to the room, or cheaper within it.
static int tli_is_step_up(const tli_rank_search *s, uint64_t peak, uint64_t cost) {
    uint64_t tried = tli_larger_u64(s->tried_peak, s->climb_room), was = tli_larger_u64(peak, s->climb_room);
    return tried != was ? tried < was : s->tried_cost < cost;
}

// Add and take tensors, one at a time, as long as that is better; then try the set before each of the plans.
// *peak: of the set where that ends.
static tl_result tli_climb_kept_sets(tli_rank_search *s, const int32_t *order, int32_t count, uint64_t *peak) {
    uint64_t cost;
    int32_t i, changes = 1;
    tl_result result;
    s->climbs = 1;
    s->work = 0;
    s->places_left = s->fits_left = TLI_RANK_PLACES * s->work_limit;
    result = tli_try_kept_set(s, s->keep, 0);
    *peak = s->tried_peak;
    cost = s->tried_cost;
    while (changes && !result) {
        changes = 0;
        for (i = 0; i < count && !result && s->work < s->work_limit / 8; i++) {
            s->keep[order[i]] ^= 1;
            result = tli_try_kept_set(s, s->keep, 0);
            if (result) continue;
            if (!tli_is_step_up(s, *peak, cost)) {
                s->keep[order[i]] ^= 1;
                continue;
            }
            *peak = s->tried_peak;
            cost = s->tried_cost;
            changes++;
        }
    }
    s->climbs = 0;
    return result ? result : tli_try_kept_set(s, s->keep, 1);
}

// Climb from the sets of none and of all. Where what has few enough live bytes has no places that fit, climb
// again towards the fewest: that is the way on which the least budget was found, whatever the budget is.
static tl_result tli_climb_from_ends(tli_rank_search *s, const int32_t *order, int32_t count) {
    tl_result result = TL_OK;
    uint64_t peak;
    int32_t k, i, again;
    for (k = 0; k < 2; k++)
        for (again = 0; again < 2 && !result; again++) {
            tli_zero(s->keep, (size_t)s->graph->tensor_count);
            for (i = 0; i < count; i++) s->keep[order[i]] = (uint8_t)k;
            s->climb_room = again ? 0 : s->room;
            result = tli_climb_kept_sets(s, order, count, &peak);
            if (s->has_best || peak > s->room) break;
        }
    return result;
}

// Try kept sets: more and more of the tensors, then from none and from all to better ones.
static tl_result tli_try_kept_sets(tli_rank_search *s) {
    uint64_t tensors = (uint64_t)s->graph->tensor_count;
    uint64_t *keys = (uint64_t *)tli_alloc_array(s->env, tensors, sizeof *keys);
    int32_t *order = (int32_t *)tli_alloc_array(s->env, 3 * tensors, sizeof *order), count = 0, k, i;
    int32_t *sorted = order ? order + 2 * tensors : NULL;
    tl_result result = keys && order ? TL_OK : tli_fail_ranks(s->env);
    if (!result) {
        count = tli_rank_tensors(s->graph, s->messages, order, keys);
        tli_sort_numbers(order + tensors, count, keys);
        for (i = 0; i < count; i++) sorted[i] = order[order[tensors + (uint64_t)i]];
    }
    for (k = 0; k < TLI_RANK_SETS && !result; k++) {
        tli_zero(s->keep, (size_t)tensors);
        for (i = 0; i < (int32_t)((int64_t)count * k / TLI_RANK_SETS); i++) s->keep[sorted[i]] = 1;
        result = tli_try_kept_set(s, s->keep, !s->is_quick);
    }
    if (!result && !s->is_quick) result = tli_climb_from_ends(s, sorted, count);
    tli_release(s->env, keys);
    tli_release(s->env, order);
    return result;
}

// What a plan of one micro-batch costs at least. What neither a backward nor a result wants need not run.
// wanted: [nodes] overwritten.
static uint64_t tli_find_least_cost(const tl_graph *graph, int inference, uint8_t *wanted) {
    uint64_t sum = 0;
    int32_t id;
    tli_mark_wanted(graph, inference, wanted);
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (wanted[id]) sum += node->fwd_cost;
        if (!inference && node->has_grad) sum += node->bwd_cost;
    }
    return sum;
}

// Add a node of the stage's graph to that of tli_open_turn. inputs: [inputs of the graph], bytes: [its tensors]
// scratch.
static tl_result tli_copy_to_turn(tli_rank_search *s, tli_graph_rules *rules, int32_t id, tl_tensor *inputs,
                                  uint64_t *bytes) {
    const tl_graph *graph = s->graph;
    const tl_node *node = &graph->nodes[id];
    tl_node_desc desc;
    int32_t k;
    tl_result result;
    tli_describe_node(graph, id, &desc);
    for (k = 0; k < node->input_count; k++) {
        const tl_node_output *made = &graph->outputs[graph->inputs[node->first_input + k].tensor];
        inputs[k].node = made->node;
        inputs[k].output = made->output;
    }
    for (k = 0; k < node->output_count; k++) bytes[k] = graph->outputs[node->first_output + k].bytes;
    desc.inputs = inputs;
    desc.output_bytes = bytes;
    result = tli_add_node(rules, &s->turn, &desc);
    if (!result) tli_copy_needs(graph, id, &s->turn);
    return result;
}

// Add the turn of a chunk, if it sends several tensors.
static tl_result tli_add_turn(tli_rank_search *s, tli_graph_rules *rules, int32_t chunk, tl_tensor *inputs) {
    static const uint64_t none = 0;
    char name[32];
    tli_writer w = tli_writer_of(name, sizeof name);
    tl_node_desc desc;
    int32_t id, sends = 0;
    for (id = s->chunks.starts[chunk]; id < s->chunks.starts[chunk + 1]; id++) {
        if (s->messages[id] != TLI_MESSAGE_SEND) continue;
        inputs[sends].node = id;
        inputs[sends++].output = 0;
    }
    if (sends < 2) return TL_OK;
    tli_put(&w, "turn:");
    tli_put_i64(&w, chunk);
    tli_finish(&w);
    tli_zero(&desc, sizeof desc);
    desc.name = name;
    desc.op = "turn";
    desc.inputs = inputs;
    desc.input_count = sends;
    desc.output_bytes = &none;
    desc.output_count = 1;
    desc.once = 1;
    desc.origin = -1;
    return tli_add_node(rules, &s->turn, &desc);
}

// Make the graph that tl_plan_remat is asked about: that of the stage and, where a chunk sends several tensors,
// a last node that reads what all its sends give. Its backward comes before theirs, so that no plan begins to
// go back before all is sent: the gradient of one tensor may depend on another that this rank sends.
static tl_result tli_open_turn(tli_rank_search *s) {
    tli_graph_rules rules = tli_rules_of(s->env, TLI_IN(COMPILE_RANKS));
    const tl_graph *graph = s->graph;
    tl_tensor *inputs = (tl_tensor *)tli_alloc_array(s->env, (uint64_t)graph->input_count + 1, sizeof *inputs);
    uint64_t *bytes = (uint64_t *)tli_alloc_array(s->env, (uint64_t)graph->tensor_count, sizeof *bytes);
    int32_t i;
    tl_result result = inputs && bytes ? TL_OK : tli_fail_ranks(s->env);
    for (i = 0; i < graph->node_count && !result; i++) result = tli_copy_to_turn(s, &rules, i, inputs, bytes);
    for (i = 0; i < s->chunks.count && !result && !s->desc->inference; i++)
        result = tli_add_turn(s, &rules, i, inputs);
    tli_release(s->env, inputs);
    tli_release(s->env, bytes);
    return result;
}

// Try bodies from the one that costs least on.
static tl_result tli_try_bodies(tli_rank_search *s) {
    tl_plan plan;
    uint64_t least = 0, most = 0;
    tl_result result = tl_plan_keep_all(s->env, s->graph, s->desc->inference, &plan);
    if (!result) result = tl_measure_plan(s->env, s->graph, NULL, &plan);
    if (!result) {
        most = plan.peak_bytes;
        result = tli_try_rank_plan(s, &plan, NULL);
    }
    tl_free_plan(s->env, &plan);
    if (result || s->desc->keep_all || (s->has_best && s->best_cost <= s->best_calls)) return result;
    result = tli_open_turn(s);
    if (!result) result = tli_try_budgets(s, most, &least);
    if (!result && !s->is_quick) result = tli_try_halvings(s, least, most);
    if (!result && !s->is_quick && !s->desc->inference) result = tli_try_pairs(s);
    return result || s->desc->inference ? result : tli_try_kept_sets(s);
}

// Sort the tensors that may be copied to the host.
static tl_result tli_open_copies(tli_rank_search *s) {
    const tl_graph *graph = s->graph;
    uint64_t tensors = (uint64_t)graph->tensor_count;
    uint64_t *keys;
    int32_t *items, i, count = 0;
    if (!s->desc->host_budget_bytes || s->desc->inference) return TL_OK;
    keys = (uint64_t *)tli_alloc_array(s->env, tensors, sizeof *keys);
    items = (int32_t *)tli_alloc_array(s->env, 2 * tensors, sizeof *items);
    s->largest = items;
    s->copied = (uint8_t *)tli_alloc_array(s->env, tensors, 1);
    if (keys && items && s->copied) {
        for (i = 0; i < graph->tensor_count; i++) {
            uint64_t bytes = graph->outputs[i].bytes;
            if (!bytes || graph->nodes[graph->outputs[i].node].is_input) continue;
            keys[count] = UINT64_MAX - bytes;
            items[tensors + (uint64_t)count++] = i;
        }
        tli_sort_numbers(items, count, keys);
        for (i = 0; i < count; i++) items[i] = items[tensors + (uint64_t)items[i]];
        s->largest_count = count;
    }
    tli_release(s->env, keys);
    return s->largest_count || (keys && items && s->copied) ? TL_OK : tli_fail_ranks(s->env);
}

// Find the plan of a rank, and the least arena for it that the work allows.
static tl_result tli_search_rank(tli_rank_search *s) {
    tl_plan plan;
    tl_result result;
    s->places_left = s->fits_left = TLI_RANK_PLACES * s->work_limit;
    s->lowest = UINT64_MAX;
    result = tli_open_copies(s);
    if (!result) result = tli_try_bodies(s);
    if (result || !s->has_best || s->best.arena_bytes == s->best.peak_bytes) return result;
    result = tl_copy_plan(s->env, &s->best, &plan);
    if (!result) result = tli_place_rank(s, &plan, s->work_limit, &s->fits_left);
    if (!result && plan.arena_bytes < s->best.arena_bytes &&
        plan.host_arena_bytes <= s->desc->host_budget_bytes) {
        tl_free_plan(s->env, &s->best);
        s->best = plan;
        return TL_OK;
    }
    tl_free_plan(s->env, &plan);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
