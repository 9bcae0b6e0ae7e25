#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: what no cut goes below --
//
//     rank 0   F0 F1 F2 ..            a rank makes all its calls m times; it cannot begin before what its
//     rank 1      F0 B0 F1 ..         nodes read has been made, and behind its last call the gradients go all
//             |lead|                  the way back: m * calls + lead, if nothing runs again and messages take
//                                     no time
//
// lead of the nodes from i on: each has a longest way from the inputs to it, and one back; lead is the least of
// the first and the least of the second. It is also not above what it is at an earlier node and m times the
// calls between, so that a stage which begins later never ends sooner.
// The bound is the least T for which stages that are as long as T lets them be cover the graph; weights alone
// must fit the budgets.

typedef struct tli_ranks_bound {
    const tl_ranks_desc *desc;
    uint64_t *sums;        // [nodes + 1] costs of the nodes before, with backwards; inputs cost nothing
    uint64_t *weights;     // [nodes + 1]
    uint64_t *leads;       // [nodes]
    uint8_t  *wanted;      // [nodes] 1 = has to run
} tli_ranks_bound;

// Find the longest ways from the inputs to each node and back, without its own call: ways[id] and back[id].
static void tli_find_ways(const tl_ranks_desc *desc, uint64_t *ways, uint64_t *back) {
    const tl_graph *graph = desc->graph;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (k = 0; k < node->input_count; k++) {
            int32_t maker = graph->outputs[graph->inputs[node->first_input + k].tensor].node;
            const tl_node *from = &graph->nodes[maker];
            if (from->is_input) continue;
            ways[id] = tli_larger_u64(ways[id], ways[maker] + from->fwd_cost);
            if (!node->has_grad || !from->has_grad || desc->inference) continue;
            back[id] = tli_larger_u64(back[id], back[maker] + from->bwd_cost);
        }
    }
}

// The rank on which costs are least.
static const tl_rank *tli_fastest_rank(const tl_ranks_desc *desc) {
    const tl_rank *fastest = desc->ranks;
    int32_t rank;
    for (rank = 1; desc->ranks && rank < desc->rank_count; rank++)
        if (tli_is_slower(fastest, &desc->ranks[rank])) fastest = &desc->ranks[rank];
    return fastest;
}

// A cost on a rank, rounded down: sums of calls, each rounded up, are not below.
static uint64_t tli_least_on_rank(const tl_rank *rank, uint64_t cost) {
    uint64_t product;
    if (!rank || tli_rank_numerator(rank) == tli_rank_denominator(rank)) return cost;
    if (!tli_mul_u64(cost, tli_rank_numerator(rank), &product))
        return cost / tli_rank_denominator(rank) * tli_rank_numerator(rank);
    return product / tli_rank_denominator(rank);
}

// Fill sums and leads. back: [nodes] 0, scratch; leads: 0.
static void tli_fill_ranks_bound(tli_ranks_bound *b, uint64_t *back) {
    const tl_graph *graph = b->desc->graph;
    const tl_rank *fastest = tli_fastest_rank(b->desc);
    uint64_t way = UINT64_MAX, home = UINT64_MAX, most, part;
    int32_t id;
    tli_find_ways(b->desc, b->leads, back);
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        uint64_t cost = node->is_input || !b->wanted[id] ? 0 : node->fwd_cost;
        if (!node->is_input && node->has_grad && !b->desc->inference) cost += node->bwd_cost;
        b->sums[id + 1] = b->sums[id] + cost;
        b->weights[id + 1] = b->weights[id] + (b->desc->weights_apart ? 0 : node->param_bytes);
    }
    for (id = graph->node_count - 1; id >= 0; id--) {
        if (b->wanted[id] && !graph->nodes[id].is_input) {
            if (b->leads[id] < way) way = b->leads[id];
            if (back[id] < home) home = back[id];
        }
        b->leads[id] = way == UINT64_MAX ? 0 : tli_least_on_rank(fastest, way + home);
    }
    for (id = 1; id < graph->node_count; id++) {
        part = tli_least_on_rank(fastest, b->sums[id] - b->sums[id - 1]);
        if (!tli_mul_u64(part, (uint64_t)b->desc->micro_batch_count, &most)) continue;
        most = tli_add_capped(b->leads[id - 1], most);
        if (b->leads[id] > most) b->leads[id] = most;
    }
}

// What a rank takes at least for the nodes first .. end - 1.
static uint64_t tli_bound_stage(const tli_ranks_bound *b, int32_t rank, int32_t first, int32_t end) {
    uint64_t cost = tli_least_on_rank(tli_rank_of(b->desc, rank), b->sums[end] - b->sums[first]), all;
    if (!tli_mul_u64(cost, (uint64_t)b->desc->micro_batch_count, &all)) return UINT64_MAX;
    return tli_add_capped(all, b->leads[first]);
}

// Whether the weights of a stage alone are too much for its rank.
static int tli_is_too_heavy(const tli_ranks_bound *b, int32_t rank, int32_t first, int32_t end) {
    const tl_ranks_desc *desc = b->desc;
    uint64_t budget = tli_budget_of_rank(desc, rank), base;
    if (!budget) return 0;
    return !tli_find_base_of(b->weights[end] - b->weights[first], desc->gradient_ratio, desc->optimizer_ratio,
                             &base) || tli_add_capped(base, desc->base_bytes) > budget;
}

// Whether stages that take no more than this cover the graph.
static int tli_are_covered(const tli_ranks_bound *b, uint64_t most) {
    int32_t nodes = b->desc->graph->node_count, rank, first = 0;
    for (rank = 0; rank < b->desc->rank_count && first < nodes; rank++) {
        int32_t low = first, high = nodes;      // low fits
        while (low < high) {
            int32_t end = low + (high - low + 1) / 2;
            int fits = tli_bound_stage(b, rank, first, end) <= most && !tli_is_too_heavy(b, rank, first, end);
            if (fits) low = end;
            else high = end - 1;
        }
        first = low;
    }
    return first == nodes;
}

// The least T for which stages cover the graph, or 0 where sums go beyond 64 bits.
static uint64_t tli_bound_cuts(const tli_ranks_bound *b) {
    uint64_t low = 0, high = UINT64_MAX - 1;
    if (!tli_are_covered(b, high)) return 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (tli_are_covered(b, middle)) high = middle;
        else low = middle + 1;
    }
    return low;
}

// What the stages of a rank take at least.
static uint64_t tli_bound_given(const tli_ranks_bound *b, int32_t rank) {
    const tl_ranks_desc *desc = b->desc;
    int32_t stage = rank, first = rank ? desc->ends[rank - 1] : 0;
    uint64_t cost = 0, all;
    for (; stage < tli_count_all_stages(desc); stage += desc->rank_count)
        cost += b->sums[desc->ends[stage]] - b->sums[stage ? desc->ends[stage - 1] : 0];
    cost = tli_least_on_rank(tli_rank_of(desc, rank), cost);
    if (!tli_mul_u64(cost, (uint64_t)desc->micro_batch_count, &all)) return UINT64_MAX;
    return tli_add_capped(all, b->leads[first]);
}

// The time of all calls, shared evenly by ranks that are all like the fastest; 0 where it does not fit.
static uint64_t tli_bound_share(const tli_ranks_bound *b) {
    const tl_ranks_desc *desc = b->desc;
    uint64_t cost = tli_least_on_rank(tli_fastest_rank(desc), b->sums[desc->graph->node_count]), all;
    if (!tli_mul_u64(cost, (uint64_t)desc->micro_batch_count, &all)) return 0;
    return tli_divide_up(all, (uint64_t)desc->rank_count);
}

// The least time of a training step of any cut, or of the given one. 0 where nothing can be said.
static tl_result tli_bound_ranks(tl_env *env, const tl_ranks_desc *desc, uint64_t *bound) {
    uint64_t nodes = (uint64_t)desc->graph->node_count, *numbers;
    tli_ranks_bound b;
    int32_t rank;
    *bound = 0;
    numbers = (uint64_t *)tli_alloc_array(env, 4 * nodes + 2, sizeof *numbers);
    b.wanted = (uint8_t *)tli_alloc_array(env, nodes, 1);
    if (!numbers || !b.wanted) {
        tli_release(env, numbers);
        tli_release(env, b.wanted);
        return tli_fail_ranks(env);
    }
    tli_mark_wanted(desc->graph, desc->inference, b.wanted);
    b.desc = desc;
    b.sums = numbers;
    b.weights = b.sums + nodes + 1;
    b.leads = b.weights + nodes + 1;
    tli_fill_ranks_bound(&b, b.leads + nodes);
    if (desc->ends) {
        for (rank = 0; rank < desc->rank_count; rank++)
            *bound = tli_larger_u64(*bound, tli_bound_given(&b, rank));
    } else *bound = desc->chunk_count > 1 ? tli_bound_share(&b) : tli_bound_cuts(&b);
    tli_release(env, numbers);
    tli_release(env, b.wanted);
    return TL_OK;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
