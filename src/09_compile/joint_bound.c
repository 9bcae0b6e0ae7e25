#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- compile: the bound --
//
// A relaxed graph of source: every node costs what its fastest scheme does, every tensor takes the bytes of the
// narrowest format that its node or a reader may have, or those of a compressed copy, nothing is converted, and
// what is inside of a chain takes no bytes and costs as little as if the chain were fused. Any plan of any
// combination gives a plan of that graph which costs no more and takes no more bytes: leave out the
// conversions, read the tensor where its copy was read, and run the members where the fused node ran. So its
// bound holds for all of them.

typedef struct tli_relaxed {
    tl_graph        graph;
    tl_node        *nodes;       // [nodes of source]
    tl_node_output *outputs;     // [tensors of source]
    tl_node_input  *inputs;      // [inputs of source]
    uint8_t        *is_inner;    // [tensors of source] between members of a chain
    uint64_t       *times;       // [nodes x schemes] first runs; TL_FORBIDDEN = not possible
} tli_relaxed;

static int tli_open_relaxed(tli_compile *c, tli_relaxed *r) {
    const tl_graph *graph = &c->source;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    uint64_t inputs = (uint64_t)graph->input_count;
    tli_zero(r, sizeof *r);
    r->nodes = (tl_node *)tli_alloc_array(c->env, nodes, sizeof *r->nodes);
    r->outputs = (tl_node_output *)tli_alloc_array(c->env, tensors, sizeof *r->outputs);
    r->inputs = (tl_node_input *)tli_alloc_array(c->env, inputs, sizeof *r->inputs);
    r->is_inner = (uint8_t *)tli_alloc_array(c->env, tensors, 1);
    r->times = (uint64_t *)tli_alloc_array(c->env, nodes * TL_SCHEME_COUNT, sizeof *r->times);
    if (!r->nodes || !r->outputs || !r->inputs || !r->is_inner || !r->times) return 0;
    tli_copy(r->nodes, graph->nodes, (size_t)nodes * sizeof *r->nodes);
    tli_copy(r->outputs, graph->outputs, (size_t)tensors * sizeof *r->outputs);
    tli_copy(r->inputs, graph->inputs, (size_t)inputs * sizeof *r->inputs);
    r->graph = *graph;
    r->graph.nodes = r->nodes;
    r->graph.outputs = r->outputs;
    r->graph.inputs = r->inputs;
    r->graph.attributes = NULL;     // no bound goes by rows
    return 1;
}

static void tli_close_relaxed(const tli_compile *c, tli_relaxed *r) {
    tli_release(c->env, r->nodes);
    tli_release(c->env, r->outputs);
    tli_release(c->env, r->inputs);
    tli_release(c->env, r->is_inner);
    tli_release(c->env, r->times);
}

// The share of their costs that the members of a chain have at least, fused or not.
static void tli_find_chain_share(const tli_compile *c, int32_t id, uint64_t *part, uint64_t *of) {
    const tl_node *fused = &c->all.graph.nodes[id];
    uint64_t fwd = 0, bwd = 0, fused_bwd = c->inference ? 0 : fused->bwd_cost, whole = UINT64_C(1) << 60;
    int32_t at;
    for (at = c->all.first_members[id]; at < c->all.first_members[id + 1]; at++) {
        const tl_node *node = &c->source.nodes[c->all.members[at]];
        fwd += node->fwd_cost;
        bwd += c->inference ? 0 : node->bwd_cost;
    }
    *part = *of = 1;
    if (fused->fwd_cost < fwd) { *part = fused->fwd_cost; *of = fwd; }
    // fused_bwd / bwd is less than part / of, compared by shares of a large number
    if (fused_bwd < bwd && tli_multiply_ratio(whole, fused_bwd, bwd, 0) <
                               tli_multiply_ratio(whole, *part, *of, 0)) {
        *part = fused_bwd;
        *of = bwd;
    }
}

// The times of a node in each scheme that it may have, times part / of.
static void tli_relax_times(const tli_compile *c, tli_relaxed *r, int32_t id, uint64_t part, uint64_t of) {
    int32_t k;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        size_t place = (size_t)id * TL_SCHEME_COUNT + (size_t)k;
        uint64_t time = tli_find_call_costs(c, &c->source.nodes[id]);
        int can = k == TL_SCHEME_F32;
        if (c->is_mixed) {
            can = c->tables.costs[place] != TL_FORBIDDEN;
            time = c->tables.times[place];
        }
        r->times[place] = can ? tli_multiply_ratio(time, part, of, 0) : TL_FORBIDDEN;
    }
}

// What a node costs at least: its first run, and each further one.
static void tli_relax_node(const tli_compile *c, tli_relaxed *r, int32_t id) {
    uint64_t cost = tli_find_call_costs(c, &c->source.nodes[id]), least = UINT64_MAX;
    tl_node *node = &r->nodes[id];
    int32_t k;
    for (k = 0; k < TL_SCHEME_COUNT; k++)
        if (r->times[(size_t)id * TL_SCHEME_COUNT + (size_t)k] < least)
            least = r->times[(size_t)id * TL_SCHEME_COUNT + (size_t)k];
    if (c->inference || !node->bwd_cost) {
        node->fwd_cost = least;
        return;
    }
    node->fwd_cost = cost ? tli_multiply_ratio(node->fwd_cost, least, cost, 0) : 0;
    if (node->fwd_cost > least) node->fwd_cost = least;
    node->bwd_cost = least - node->fwd_cost;
}

// The bytes of the narrowest format that a node may have of what takes so many in f32.
static uint64_t tli_find_narrowest(const tli_compile *c, int32_t id, uint64_t bytes) {
    uint64_t least = bytes;
    int32_t k;
    for (k = 0; c->is_mixed && k < TL_SCHEME_COUNT; k++) {
        uint64_t narrow = tl_find_format_bytes(tl_find_scheme_format((tl_scheme)k), bytes);
        if (c->tables.costs[(size_t)id * TL_SCHEME_COUNT + (size_t)k] != TL_FORBIDDEN && narrow < least)
            least = narrow;
    }
    return least;
}

// What lies inside of chains takes nothing. Where other nodes stand between two members, the backwards of a
// fused node run in another order; so backwards of such chains read nothing.
static void tli_relax_chain(const tli_compile *c, tli_relaxed *r, int32_t id) {
    const int32_t *members = c->all.members + c->all.first_members[id];
    int32_t count = tli_count_in(&c->all, id), at, k;
    int apart = members[count - 1] - members[0] >= count;
    for (at = 0; at < count; at++) {
        tl_node *node = &r->nodes[members[at]];
        if (at + 1 < count) {
            r->outputs[node->first_output].bytes = 0;
            r->is_inner[node->first_output] = 1;
        }
        if (!apart) continue;
        for (k = node->first_input; k < node->first_input + node->input_count; k++) r->inputs[k].needed = 0;
        r->outputs[node->first_output].needed = 0;
    }
}

// In place needs equal bytes: both take the lesser, until all agree.
static void tli_relax_inplace(tli_relaxed *r) {
    int32_t id, changed = 1;
    while (changed)
        for (id = 0, changed = 0; id < r->graph.node_count; id++) {
            tl_node *node = &r->nodes[id];
            uint64_t *from, *to;
            int32_t tensor;
            if (node->inplace < 0) continue;
            tensor = r->inputs[node->first_input + node->inplace].tensor;
            if (r->is_inner[tensor] || r->is_inner[node->first_output]) { node->inplace = -1; continue; }
            from = &r->outputs[tensor].bytes;
            to = &r->outputs[node->first_output].bytes;
            if (*from == *to) continue;
            if (*from < *to) *to = *from; else *from = *to;
            changed = 1;
        }
}

// Readers may read a converted copy.
static void tli_relax_inputs(const tli_compile *c, tli_relaxed *r, int32_t id) {
    const tl_graph *graph = &c->source;
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count; k++) {
        int32_t tensor = graph->inputs[k].tensor;
        uint64_t narrow = tli_find_narrowest(c, id, graph->outputs[tensor].bytes);
        if (narrow < r->outputs[tensor].bytes && !graph->nodes[graph->outputs[tensor].node].is_input)
            r->outputs[tensor].bytes = narrow;
    }
}

static void tli_relax(const tli_compile *c, tli_relaxed *r) {
    const tl_graph *graph = &c->source;
    uint64_t alignment = c->in_arena && c->desc->alignment_bytes ? c->desc->alignment_bytes : 1, part, of;
    int32_t id, at, k;
    for (id = 0; id < graph->node_count; id++) {
        tli_relax_times(c, r, id, 1, 1);
        r->nodes[id].takes_blocks = 0;
        r->nodes[id].saved_bytes = tli_find_narrowest(c, id, r->nodes[id].saved_bytes);
    }
    for (k = 0; k < graph->tensor_count; k++)
        if (!graph->nodes[graph->outputs[k].node].is_input)
            r->outputs[k].bytes = tli_find_narrowest(c, graph->outputs[k].node, graph->outputs[k].bytes);
    for (id = 0; id < graph->node_count; id++) tli_relax_inputs(c, r, id);
    for (k = 0; k < graph->tensor_count && c->codec; k++) {
        uint64_t packed = tl_find_codec_bytes(c->codec, graph->outputs[k].bytes);
        if (graph->nodes[graph->outputs[k].node].is_input || packed >= r->outputs[k].bytes) continue;
        r->outputs[k].bytes = packed;
    }
    for (id = 0; c->all.memory && id < c->all.graph.node_count; id++) {
        if (tli_count_in(&c->all, id) < 2) continue;
        tli_find_chain_share(c, id, &part, &of);
        for (at = c->all.first_members[id]; at < c->all.first_members[id + 1]; at++)
            tli_relax_times(c, r, c->all.members[at], part, of);
        tli_relax_chain(c, r, id);
    }
    tli_relax_inplace(r);
    for (id = 0; id < graph->node_count; id++) {
        tl_node *node = &r->nodes[id];
        tli_relax_node(c, r, id);
        node->saved_bytes = tli_round_bytes(node->saved_bytes, alignment);
        node->fwork_bytes = tli_round_bytes(node->fwork_bytes, alignment);
        node->bwork_bytes = tli_round_bytes(node->bwork_bytes, alignment);
        node->swork_bytes = tli_round_bytes(node->swork_bytes, alignment);
    }
    for (k = 0; k < graph->tensor_count; k++)
        r->outputs[k].bytes = tli_round_bytes(r->outputs[k].bytes, alignment);
}

// loss x 2^power, rounded down or up, at most 2^60.
static uint64_t tli_weigh_loss(uint64_t loss, int power, int up) {
    if (power <= 0) {
        uint64_t whole = power <= -64 ? 0 : loss >> -power;
        return whole + (uint64_t)(up && (power <= -64 ? loss != 0 : (whole << -power) != loss));
    }
    return power >= 60 || loss >> (60 - power) ? (loss ? UINT64_C(1) << 60 : 0) : loss << power;
}

// By how much a limit of the loss raises the sum of the first runs at least: the best of the Lagrangian duals
// whose multiplier is a power of two.
static uint64_t tli_find_loss_price(const tli_compile *c, const tli_relaxed *r, const uint8_t *is_wanted,
                                    uint64_t base) {
    const tli_precision *p = &c->tables;
    uint64_t best = base;
    int power;
    int32_t id, k;
    if (!c->is_mixed || p->loss_units == TL_UNLIMITED) return 0;
    for (power = -40; power < 60; power++) {
        uint64_t sum = 0, most = tli_weigh_loss(p->loss_units, power, 1);
        for (id = 0; id < c->source.node_count; id++) {
            uint64_t least = UINT64_MAX;
            for (k = 0; k < TL_SCHEME_COUNT; k++) {
                size_t place = (size_t)id * TL_SCHEME_COUNT + (size_t)k;
                uint64_t cost = r->times[place];
                if (cost == TL_FORBIDDEN) continue;
                cost += tli_weigh_loss(p->losses[place], power, 0);
                if (cost < least) least = cost;
            }
            if (is_wanted[id] && !tli_add_u64(sum, least, &sum)) sum = UINT64_MAX;
        }
        if (most < UINT64_C(1) << 60 && sum != UINT64_MAX && sum > most && sum - most > best) best = sum - most;
    }
    return best - base;
}

// The bound of a relaxed graph: with this number of parts no plan of a part costs less. UINT64_MAX = none fits.
static tl_result tli_bound_relaxed(tli_compile *c, const tli_relaxed *r, uint64_t *bound) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    uint64_t base;
    tli_mark_wanted(&r->graph, c->inference, c->is_wanted);
    base = tli_sum_wanted(c, &r->graph, c->is_wanted);
    *bound = base;
    tli_zero(&desc, sizeof desc);
    desc.graph = &r->graph;
    desc.inference = c->inference;
    desc.device = c->desc->device;
    desc.work_limit = c->plan_work;
    result = tli_plan_remat_as(c->env, &desc, &c->budget, TLI_REMAT_MOST_WORK, TLI_REMAT_TRIAL, &plan,
                                &report);
    c->work += report.work;
    if (!result && report.bound_cost > base) *bound = report.bound_cost;
    if (!result) tl_free_plan(c->env, &plan);
    if (result == TL_ERROR_INFEASIBLE && report.proven) *bound = UINT64_MAX;
    if (*bound != UINT64_MAX) *bound += tli_find_loss_price(c, r, c->is_wanted, base);
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

static tl_result tli_bound_part(tli_compile *c, uint64_t *bound) {
    tli_relaxed r;
    tl_result result = tli_open_relaxed(c, &r) ? TL_OK : tli_fail_compile(c);
    if (!result) {
        tli_relax(c, &r);
        result = tl_check_graph(c->env, &r.graph);
    }
    if (!result) result = tli_bound_relaxed(c, &r, bound);
    tli_close_relaxed(c, &r);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
