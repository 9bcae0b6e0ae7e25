#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- pieces of gradients: how large --
//
// Smaller pieces take fewer bytes and more calls. Whole gradients first, then pieces of half the largest, a
// quarter, .. are planned within the budget; the cheapest plan wins, of equal ones that with larger pieces:
//
//     pieces of      whole     128     64      32      16      8
//     forwards       +12 %     +3 %    +0 %
//     calls                    +1 %    +2 %    +4 %: what the calls alone cost is above the best. Stop.
//
// Between the best size and its double fewer calls may do: 96 is tried next, then 80 or 112, ..

typedef struct tli_piece_choice {
    tl_env     *env;
    tl_remat_desc desc;          // of the caller; graph and base of each try
    tl_pieces_desc pieces;
    tl_graph    before;          // of the last size; at first the caller's
    uint64_t    piece_bytes;     // of the best try
    uint64_t    costs;           // of its graph without recomputation
    uint8_t    *is_wanted;       // [nodes] 1 = every plan that trains runs it
    int         has_plan;        // 1 = a try fits
    uint64_t    work;            // of all tries
    tl_remat_report best;
} tli_piece_choice;

// The largest gradient of a state that could be trained in pieces.
static uint64_t tli_find_largest_gradient(const tl_graph *graph) {
    uint64_t most = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++)
        if (graph->nodes[id].state == TL_STATE_TRAINED && graph->nodes[id].weight_rows > 1)
            most = tli_larger_u64(most, graph->outputs[graph->nodes[id].first_output].bytes);
    return most;
}

// Mark the nodes that have a backward or make a result, and those that a marked node reads.
static void tli_mark_trained(const tl_graph *graph, uint8_t *is_wanted) {
    int32_t id, k;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (node->has_grad || node->keep) is_wanted[id] = 1;
        for (k = node->first_input; k < node->first_input + node->input_count && is_wanted[id]; k++)
            is_wanted[graph->outputs[graph->inputs[k].tensor].node] = 1;
    }
}

// What no plan that trains costs less than: every forward and backward that it needs once.
static uint64_t tli_sum_costs(const tli_piece_choice *c, const tl_graph *graph) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++)
        if (c->is_wanted[id]) sum += graph->nodes[id].fwd_cost + graph->nodes[id].bwd_cost;
    return sum;
}

static int tli_has_same_pieces(const tl_graph *a, const tl_graph *b) {
    int32_t id = 0;
    while (id < a->node_count && a->nodes[id].piece_rows == b->nodes[id].piece_rows) id++;
    return id == a->node_count;
}

// Whether a plan, or where both have none a least budget, is better than the best so far.
static int tli_is_better_try(const tli_piece_choice *c, int fits, const tl_remat_report *report) {
    if (fits != c->has_plan) return fits;
    return fits ? report->cost < c->best.cost : report->least_budget_bytes < c->best.least_budget_bytes;
}

// Plan a graph with pieces of so many bytes.
static tl_result tli_try_pieces(tli_piece_choice *c, const tl_graph *graph, uint64_t piece_bytes,
                                int is_first) {
    tl_remat_desc desc = c->desc;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    desc.graph = graph;
    desc.pool = is_first ? desc.pool : NULL;    // plans of another graph are none of this one
    result = tl_plan_remat(c->env, &desc, &plan, &report);
    c->work += report.work;
    if (result && result != TL_ERROR_INFEASIBLE) return result;
    if (is_first || tli_is_better_try(c, !result, &report)) {
        c->best = report;
        c->has_plan = !result;
        c->piece_bytes = piece_bytes;
        c->costs = tli_sum_costs(c, graph);
    }
    tl_free_plan(c->env, &plan);
    return TL_OK;
}

// Whether smaller pieces can be worth something: the plan so far costs more than its calls.
static int tli_wants_pieces(const tli_piece_choice *c) { return !c->has_plan || c->best.cost > c->costs; }

// Plan with pieces of so many bytes, if these are others than before, and all calls cost less than `most`.
// *sum: what they cost.
static tl_result tli_try_size(tli_piece_choice *c, uint64_t bytes, uint64_t most, uint64_t *sum) {
    tl_graph now;
    tl_result result;
    c->pieces.piece_bytes = bytes;
    result = tl_apply_pieces(c->env, &c->pieces, &now);
    if (result) return result;
    *sum = tli_sum_costs(c, &now);
    if (*sum < most && !tli_has_same_pieces(&c->before, &now)) result = tli_try_pieces(c, &now, bytes, 0);
    tl_free_graph(c->env, &c->before);
    c->before = now;
    return result;
}

static tl_result tli_try_halves(tli_piece_choice *c) {
    uint64_t bytes = tli_find_largest_gradient(c->desc.graph), most = UINT64_MAX, sum = 0;
    tl_result result = TL_OK;
    while (!result && bytes && sum < most && tli_wants_pieces(c)) {
        most = c->has_plan ? c->best.cost : UINT64_MAX;
        result = tli_try_size(c, bytes /= 2, most, &sum);
    }
    return result;
}

// Look for larger pieces with fewer calls, up to twice the best size, to a sixteenth of it.
static tl_result tli_try_between(tli_piece_choice *c) {
    uint64_t low = c->piece_bytes, high = 2 * low, sum;
    tl_result result = TL_OK;
    while (!result && high - low > 1 + c->piece_bytes / 16) {
        uint64_t bytes = low + (high - low) / 2, costs = c->costs;
        result = tli_try_size(c, bytes, costs, &sum);
        if (c->piece_bytes == bytes || sum == costs) low = bytes;
        else high = bytes;
    }
    return result;
}

static tl_result tli_try_all_pieces(tli_piece_choice *c) {
    tl_result result = tli_try_pieces(c, c->desc.graph, UINT64_MAX, 1);
    c->before = *c->desc.graph;
    c->before.node_capacity = c->before.input_capacity = c->before.tensor_capacity = 0;
    c->before.view_capacity = 0;
    c->before.text_capacity = 0;
    if (!result && !c->desc.inference) result = tli_try_halves(c);
    if (!result && c->has_plan && c->piece_bytes < UINT64_MAX && c->pieces.call_cost)
        result = tli_try_between(c);
    tl_free_graph(c->env, &c->before);
    return result;
}

TLI_IMPL tl_result tl_choose_pieces(tl_env *env, const tl_remat_desc *desc, uint64_t call_cost,
                                    uint64_t *piece_bytes, tl_remat_report *report) {
    tli_piece_choice c;
    tl_result result;
    TL_ASSERT(desc && desc->graph && piece_bytes);
    *piece_bytes = UINT64_MAX;
    tli_zero(&c, sizeof c);
    c.env = env;
    c.desc = *desc;
    c.pieces.graph = desc->graph;
    c.pieces.alignment_bytes = desc->alignment_bytes;
    c.pieces.call_cost = call_cost;
    c.piece_bytes = UINT64_MAX;
    result = tl_check_graph(env, desc->graph);
    if (!result) c.is_wanted = (uint8_t *)tli_alloc_array(env, (uint64_t)desc->graph->node_count, 1);
    if (!result && !c.is_wanted)
        result = tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(CHOOSE_PIECES), TLI_RULE(NO_MEMORY_TO_PLAN));
    if (!result) tli_mark_trained(desc->graph, c.is_wanted);
    if (!result) result = tli_try_all_pieces(&c);
    tli_release(env, c.is_wanted);
    *piece_bytes = c.piece_bytes;
    c.best.work = c.work;
    if (report) *report = c.best;
    if (result || c.has_plan) return result;
    return tli_fail_values(env, TL_ERROR_INFEASIBLE, TLI_IN(CHOOSE_PIECES),
                           TLI_RULE(PIECES_BUDGET_IS_TOO_SMALL), desc->budget_bytes,
                           c.best.least_budget_bytes);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
