#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- chain: the binomial schedule --
//
// The schedule of Revolve, with stages in place of layers. Where stages are nearly equal it is nearly the
// best, and shortened curves may miss it.

typedef struct tli_chain_binomial {
    tli_chain *chain;
    int32_t   *all_slots;           // [stage_count] stages whose inputs are checkpoints, ascending
    int32_t    slot_count;
    tli_steps *steps;               // NULL = only bytes and cost are wanted
    uint64_t   held, peak, cost;    // held: by checkpoints
} tli_chain_binomial;

// Run stages first..next-1 while those up to `last` are still to be reversed.
static void tli_binomial_advance(tli_chain_binomial *b, int32_t first, int32_t next, int32_t last) {
    const tli_chain_stage *s = b->chain->stages;
    int32_t i;
    for (i = first; i < next; i++) {
        uint64_t peak = b->held + s[last].held_bytes + (i > first ? s[i].go_bytes : s[i].stay_bytes);
        if (peak > b->peak) b->peak = peak;
        b->cost += s[i].advance_cost;
        if (b->steps) tli_chain_run(b->chain, i, TLI_CHAIN_RUN_ADVANCE, i > first, b->steps);
    }
    b->held += next > first ? s[next].in_bytes : 0;
    b->chain->work += 4 * (uint64_t)(next - first);
}

// Reverse a stage alone, then drop its input unless it is the first.
static void tli_binomial_leaf(tli_chain_binomial *b, int32_t stage) {
    const tli_chain_stage *s = &b->chain->stages[stage];
    uint64_t room = b->chain->budget > b->held ? b->chain->budget - b->held : 0;
    int32_t way = tli_chain_choose_leaf(s, room);
    if (b->held + s->leaves[way].bytes > b->peak) b->peak = b->held + s->leaves[way].bytes;
    b->cost += s->leaves[way].cost;
    if (b->steps) tli_chain_run_leaf(b->chain, stage, way, b->steps);
    if (stage && b->steps) tli_chain_drop_input(b->chain, stage, b->steps);
    b->held -= s->in_bytes;
}

// As tli_reverse_chain.
static void tli_binomial_reverse(tli_chain_binomial *b) {
    int32_t right = b->chain->stage_count - 1, depth = 1;
    b->held = b->peak = b->cost = 0;
    b->all_slots[0] = 0;
    while (right >= 0) {
        int32_t left = b->all_slots[depth - 1], count = right - left + 1;
        if (count == 1) {
            tli_binomial_leaf(b, right--);
            if (depth > 1) depth--;
        } else if (depth == b->slot_count) {
            tli_binomial_advance(b, left, right, right);
            tli_binomial_leaf(b, right--);
        } else {
            b->all_slots[depth] = left + tli_split_chain(count, b->slot_count - depth + 1);
            tli_binomial_advance(b, left, b->all_slots[depth], right);
            depth++;
        }
    }
}

// Find the most slots that fit by bisection; one slot is too slow to be of use in a long chain. Returns the
// cost; UINT64_MAX = none fits.
static uint64_t tli_binomial_find(tli_chain_binomial *b) {
    int32_t low = b->chain->stage_count > 200, high = b->chain->stage_count;
    uint64_t cost = UINT64_MAX;
    while (low < high && !tli_chain_stops(b->chain)) {
        b->slot_count = low + (high - low + 1) / 2;
        tli_binomial_reverse(b);
        if (b->peak > b->chain->budget) { high = b->slot_count - 1; continue; }
        low = b->slot_count;
        cost = b->cost;
    }
    b->slot_count = low;
    return cost;
}

// -- chain: equal layers --

// Whether a graph is the chain of Revolve: graph inputs, or none, then two layers or more of equal bytes and
// costs, whose backwards read what forward read, with the same scratch in both. With n > 1 layers of b bytes
// and w bytes of scratch, up to three live tensors are not checkpoints: two of an advance and a gradient, or
// two gradients and the tensor that a backward reads. The inputs are the first of the c slots of Revolve, even
// if they are none, so (c + 2) b + w bytes beside them give c slots. The binomial schedule is then optimal
// over all schedules; the tests compare it with the exact search.
static int tli_is_revolve_chain(const tl_graph *graph) {
    const tl_node *one = &graph->nodes[graph->node_count - 1];
    int32_t first = tli_find_first_layer(graph), id, i;
    if (graph->node_count - first < 2) return 0;
    for (id = first; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        const tl_node_output *out = &graph->outputs[node->first_output];
        if (!node->has_grad || node->keep || node->is_input || node->once || node->output_count != 1) return 0;
        if (out->needed || node->inplace >= 0) return 0;
        if (node->saved_bytes || node->fwork_bytes != one->fwork_bytes) return 0;
        if (node->bwork_bytes != one->fwork_bytes || !out->bytes) return 0;
        if (out->bytes != graph->outputs[one->first_output].bytes) return 0;
        if (node->fwd_cost != one->fwd_cost) return 0;
        for (i = node->first_input; i < node->first_input + node->input_count && id == first; i++)
            if (!graph->nodes[graph->outputs[graph->inputs[i].tensor].node].is_input) return 0;
        if (id == first) continue;
        if (node->input_count != 1 || !graph->inputs[node->first_input].needed) return 0;
        if (graph->inputs[node->first_input].tensor != graph->nodes[id - 1].first_output) return 0;
    }
    return 1;
}

// Find the least number of forwards without saving that reverse n = layer_count equal layers with
// c = slot_count checkpoints: r n - C(c+r, r-1), where r is the least number with C(c+r, c) >= n. It is
// computed as a sum of positive terms: r (n - b) + c b (r-1) / (c+1), where b = b(c, r-1) < n.
static tl_result tli_find_revolve_advances(tl_env *env, uint64_t layer_count, uint64_t slot_count,
                                           uint64_t *advances) {
    const tli_function function = TLI_IN(PLAN_POLICY);
    uint64_t n = layer_count, c = slot_count, r = 1, b = 1, next, more;
    int fits = 1;
    TL_ASSERT(advances);
    *advances = 0;
    if (!layer_count)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(LAYER_COUNT_MUST_BE_POSITIVE));
    if (!slot_count)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SLOT_COUNT_MUST_BE_POSITIVE));
    if (c >= n - 1) {  // a checkpoint for every tensor
        *advances = n - 1;
        return TL_OK;
    }
    if (c == 1) {  // r = n - 1 would take too many iterations: n (n - 1) / 2
        fits = tli_mul_u64(n % 2 ? n : n / 2, n % 2 ? (n - 1) / 2 : n - 1, advances);
    } else {
        for (; fits; r++, b = next) {
            fits = tli_mul_u64(r, n - b, advances);  // at most the result: an overflow here is one there
            next = tli_next_binomial(b, c, r);
            if (next >= n) break;
        }
        fits = fits && tli_mul_u64(b / (c + 1), r - 1, &next) && tli_mul_u64(b % (c + 1), r - 1, &more) &&
               tli_add_u64(next, more / (c + 1), &next) && tli_mul_u64(next, c, &next) &&
               tli_add_u64(*advances, next, advances);
    }
    if (fits) return TL_OK;
    *advances = 0;
    return tli_fail(env, TL_ERROR_OVERFLOW, function, TLI_RULE(NUMBER_OF_FORWARDS_DOES_NOT_FIT_64));
}

#define TLI_REVOLVE_MOST (UINT64_C(1) << 22)  // steps of a schedule; a longer one takes seconds and gigabytes

// The least number of slots whose binomial schedule is not too long.
static uint64_t tli_find_fewest_slots(uint64_t layer_count) {
    uint64_t low = 0, high = layer_count, advances;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        int counts = !tli_find_revolve_advances(NULL, layer_count, middle, &advances);
        if (counts && advances + 2 * layer_count <= TLI_REVOLVE_MOST / 2) high = middle; else low = middle;
    }
    return high;
}

// What budgets give an equal chain, in bytes without base.
typedef struct tli_revolve_bytes {
    uint64_t slot_count;    // 0 = no schedule fits that is not too long
    uint64_t least;         // budget for which there is such a schedule; it peaks at the last node
    uint64_t floor;         // no schedule at all fits below
} tli_revolve_bytes;

static tli_revolve_bytes tli_find_slots(const tl_graph *graph, uint64_t budget) {
    const tl_node *one = &graph->nodes[graph->node_count - 1];
    int32_t i, first = tli_find_first_layer(graph), end = graph->nodes[first].first_output;
    uint64_t fewest = tli_find_fewest_slots((uint64_t)(graph->node_count - first));
    uint64_t beside = one->fwork_bytes, bytes = graph->outputs[one->first_output].bytes, tensors;
    tli_revolve_bytes found;
    for (i = 0; i < end; i++) beside += graph->outputs[i].bytes;
    found.floor = beside + 3 * bytes;
    found.least = beside + (fewest + 2) * bytes;
    tensors = budget < beside ? 0 : (budget - beside) / bytes;
    found.slot_count = tensors >= fewest + 2 ? tensors - 2 : 0;
    return found;
}

#define TLI_REVOLVE_WORK UINT64_C(16)  // elementary steps for each step of a schedule, made and simulated

// Make the binomial schedule for so many slots.
static tl_result tli_revolve(tl_env *env, const tl_graph *graph, uint64_t slot_count, tli_steps *steps) {
    int32_t most = slot_count < (uint64_t)graph->node_count ? (int32_t)slot_count : graph->node_count;
    tli_unit_chain chain;
    int32_t *all_slots = (int32_t *)tli_alloc_array(env, (uint64_t)most, sizeof *all_slots);
    chain.graph = graph;
    chain.list = tli_steps_of(env);
    chain.list.failed = !all_slots;
    if (all_slots) tli_reverse_chain(&chain, most, all_slots);
    tli_release(env, all_slots);
    *steps = chain.list;
    return steps->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// Whether a graph has many stages, and most of its calls are stages of their own. TL_ERROR_NO_MEMORY.
static tl_result tli_chain_is_long(tl_env *env, const tl_graph *graph, int32_t *is_long) {
    tli_chain chain;
    int32_t id, calls = 0, count = 0;
    tl_result result;
    *is_long = 0;
    if (graph->node_count <= TLI_CHAIN_FEW_STAGES) return TL_OK;
    tli_zero(&chain, sizeof chain);
    chain.env = env;
    chain.graph = graph;
    result = tli_chain_alloc_graph(&chain);
    if (!result) {
        tli_chain_find_ends(&chain);
        for (id = 0; id < graph->node_count; id++) {
            calls += !graph->nodes[id].is_input;
            count += chain.stage_of[id];
        }
        *is_long = count > TLI_CHAIN_FEW_STAGES && count > calls / 2;
    }
    tli_chain_free(&chain);
    return result;
}

// What planning by stages found; bytes are without base.
typedef struct tli_chain_result {
    uint64_t cost, least, work;     // least: least budget, if nothing fits
    int32_t  exact;                 // 1 = the cost, or the least budget, is optimal over persistent schedules
} tli_chain_result;

// If the binomial schedule is cheaper than the curves say, write its steps. Returns 1 if it is.
static int tli_chain_try_binomial(tli_chain *chain, tli_steps *steps, tli_chain_result *found) {
    const tli_chain_curve *curve = tli_chain_curve_of(chain, 0, chain->stage_count - 1);
    tli_chain_binomial b;
    tli_zero(&b, sizeof b);
    b.chain = chain;
    b.all_slots = (int32_t *)tli_alloc_array(chain->env, (uint64_t)chain->stage_count, sizeof *b.all_slots);
    if (!b.all_slots) { chain->failed = 1; return 0; }
    found->cost = tli_binomial_find(&b);
    if (curve->count && curve->points[curve->count - 1].cost <= found->cost) found->cost = UINT64_MAX;
    if (found->cost != UINT64_MAX) {
        b.steps = steps;
        tli_binomial_reverse(&b);
    }
    tli_release(chain->env, b.all_slots);
    if (steps->failed) chain->failed = 1;
    return found->cost != UINT64_MAX;
}

static int tli_chain_has_once(const tli_chain *chain) {
    int32_t i;
    for (i = 0; i < chain->stage_count; i++) if (chain->stages[i].once) return 1;
    return 0;
}

// Write the steps that the curves describe, or those of the least budget if nothing fits.
static tl_result tli_chain_finish(tli_chain *chain, int feasible, uint64_t work_limit, tli_steps *steps,
                                  tli_chain_result *found) {
    const tli_chain_curve *curve = tli_chain_curve_of(chain, 0, chain->stage_count - 1);
    tl_result result;
    if (!chain->failed && feasible && !found->exact && !tli_chain_has_once(chain) &&
        tli_chain_try_binomial(chain, steps, found))
        return chain->failed ? TL_ERROR_NO_MEMORY : TL_OK;
    feasible = feasible && curve->count;
    if (tli_chain_stops(chain) && !feasible && !chain->failed) return TL_ERROR_INFEASIBLE;
    if (!feasible && !chain->failed) {
        found->exact = tli_chain_solve_least(chain, work_limit);
        found->least = chain->budget + chain->pinned_bytes;
    }
    if (chain->failed) return TL_ERROR_NO_MEMORY;
    if (!curve->count) return TL_ERROR_INFEASIBLE;  // it had to stop
    found->cost = curve->points[curve->count - 1].cost;
    result = tli_chain_add_steps(chain, steps);
    return !result && !feasible ? TL_ERROR_INFEASIBLE : result;
}

// Whether some leaf has a way in fewer bytes than the first, which makes all that its backwards read at once.
static int tli_chain_gains(const tli_chain *chain) {
    int32_t i;
    for (i = 0; i < chain->stage_count; i++)
        if (chain->stages[i].leaf_least < chain->stages[i].leaves[0].bytes) return 1;
    return 0;
}

// As tli_remat_chain, of a graph without states.
static tl_result tli_chain_plan(tl_env *env, const tl_graph *graph, uint64_t budget, tli_remat_watch *watch,
                                uint64_t work_limit, uint64_t most_work, int32_t has_leaves,
                                tli_steps *steps, tli_chain_result *found) {
    tli_chain chain;
    tl_result result;
    tli_zero(found, sizeof *found);
    *steps = tli_steps_of(env);
    if (tli_is_revolve_chain(graph)) {
        tli_revolve_bytes revolve = tli_find_slots(graph, budget);
        found->least = revolve.least;
        found->exact = revolve.slot_count || revolve.least == revolve.floor;
        if (!revolve.slot_count) return TL_ERROR_INFEASIBLE;
        result = tli_revolve(env, graph, revolve.slot_count, steps);
        found->work = TLI_REVOLVE_WORK * (uint64_t)steps->count;
        return result;
    }
    tli_zero(&chain, sizeof chain);
    chain.env = env;
    chain.graph = graph;
    chain.watch = watch;
    chain.work_limit = has_leaves ? work_limit / 8 : 0;
    chain.most_work = most_work;
    result = tli_chain_init(&chain);
    found->work = chain.work;
    if (!result && has_leaves == 2 && !tli_chain_gains(&chain)) result = TL_ERROR_INFEASIBLE;
    if (!result) {
        int feasible = budget >= chain.pinned_bytes;
        chain.budget = feasible ? budget - chain.pinned_bytes : 0;
        found->exact = tli_chain_solve(&chain, work_limit);
        result = tli_chain_finish(&chain, feasible, work_limit, steps, found);
        found->work = chain.work;
    }
    tli_chain_free(&chain);
    return result;
}

// Find the cheapest persistent schedule within the budget. TL_ERROR_INFEASIBLE, without a sentence: none was
// found; steps are then those of the least budget, or empty for Revolve's chain, whose last node sets it, and
// after progress asked to stop or most_work was reached. Curves that take more than work_limit are shortened.
// has_leaves: 1 = leaves may be run in fewer bytes; 2 = the same, and nothing is planned where none can.
// TL_ERROR_UNSUPPORTED, without a sentence: the graph has states that cannot be merged.
static tl_result tli_remat_chain(tl_env *env, const tl_graph *graph, uint64_t budget, tli_remat_watch *watch,
                                 uint64_t work_limit, uint64_t most_work, int32_t has_leaves,
                                 tli_steps *steps, tli_chain_result *found) {
    tli_merged merged;
    tli_steps split;
    tl_result result;
    if (!tli_has_states(graph))
        return tli_chain_plan(env, graph, budget, watch, work_limit, most_work, has_leaves, steps, found);
    tli_zero(found, sizeof *found);
    *steps = tli_steps_of(env);
    result = tli_merge_states(env, graph, &merged);
    if (!result) {
        int fits = budget >= merged.pinned_bytes;
        result = tli_chain_plan(env, &merged.graph, fits ? budget - merged.pinned_bytes : 0, watch, work_limit,
                                most_work, has_leaves, steps, found);
        if (!result && !fits) result = TL_ERROR_INFEASIBLE;     // the graph takes 0 bytes beside its states
        if (!tli_add_u64(found->least, merged.pinned_bytes, &found->least)) found->least = UINT64_MAX;
        split = tli_steps_of(env);
        tli_split_states(&merged, graph, steps, &split);
        tli_release(env, steps->steps);
        *steps = split;
        if (split.failed) result = TL_ERROR_NO_MEMORY;
    }
    tli_free_merged(&merged);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

