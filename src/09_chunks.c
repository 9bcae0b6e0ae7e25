#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: where to cut for several chunks --
//
//     units      0 1 2 | 3 | 4 5 | 6 7        stages 0 to 3 on two ranks
//     rank 0     0 1 2       4 5
//     rank 1             3         6 7
//
// The calls of a rank take turns with those of its neighbours, chunk by chunk, so the time of a step follows
// from all stages, not from the slowest one. Cuts that are given and even ones are simulated, and moved as long
// as that takes less: one at a time, and all from one on.

typedef struct tli_chunk_cuts {
    tl_env  *env;
    const tl_ranks_desc *desc;
    int32_t  stage_count, unit_count;
    int32_t *ends;            // [units] the node after the unit
    int32_t *cuts;            // [stages + 1] stage k has the units cuts[k] .. cuts[k + 1] - 1
    int32_t *best;            // [stages + 1]
    uint64_t *sums[2];        // [units + 1] forwards, backwards of the units before
    uint64_t *sent;           // [units + 1] bytes from the units before to those behind
    uint64_t *times;          // [3 x stages] of one simulation
    uint64_t cost;            // of the best since the climb began
    uint64_t least;           // of those written
    uint64_t work, work_limit;  // calls simulated
} tli_chunk_cuts;

// Sum up what units cost, and what crosses before each of them.
static void tli_fill_chunk_units(tli_chunk_cuts *c, int32_t *last_readers, int32_t *unit_of) {
    const tl_graph *graph = c->desc->graph;
    int32_t id, k, at;
    tli_find_last_readers(graph, last_readers);
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        unit_of[id] = c->unit_count;
        if (node->is_input) continue;
        at = c->unit_count++;
        c->ends[at] = id + 1;
        c->sums[0][at + 1] = c->sums[0][at] + node->fwd_cost;
        c->sums[1][at + 1] = c->sums[1][at] + (node->has_grad && !c->desc->inference ? node->bwd_cost : 0);
    }
    for (k = 0; k < graph->tensor_count; k++) {
        int32_t maker = graph->outputs[k].node;
        if (graph->nodes[maker].is_input || last_readers[k] < 0) continue;
        for (at = unit_of[maker] + 1; at <= unit_of[last_readers[k]]; at++)
            c->sent[at] += graph->outputs[k].bytes;
    }
}

// Simulate the cuts, and take them if they are better.
static tl_result tli_try_chunk_cuts(tli_chunk_cuts *c) {
    uint64_t stages = (uint64_t)c->stage_count, *forward = c->times, *backward = forward + stages;
    uint64_t *sent = backward + stages;
    tl_pipeline_desc ask;
    tl_pipeline_report report;
    tl_result result;
    int32_t k;
    tli_zero(&ask, sizeof ask);
    for (k = 0; k < c->stage_count; k++) {
        const tl_rank *rank = tli_rank_of(c->desc, k % c->desc->rank_count);
        forward[k] = tli_cost_on_rank(rank, c->sums[0][c->cuts[k + 1]] - c->sums[0][c->cuts[k]]);
        backward[k] = tli_cost_on_rank(rank, c->sums[1][c->cuts[k + 1]] - c->sums[1][c->cuts[k]]);
        sent[k] = c->sent[c->cuts[k + 1]];
    }
    ask.kind = c->desc->pipeline;
    ask.rank_count = c->desc->rank_count;
    ask.chunk_count = c->desc->chunk_count;
    ask.micro_batch_count = c->desc->micro_batch_count;
    ask.forward_ns = forward;
    ask.backward_ns = backward;
    ask.output_bytes = sent;
    ask.link = c->desc->link;
    c->work += (uint64_t)tl_count_pipeline_events(&ask) * (uint64_t)c->desc->rank_count;
    result = tl_simulate_pipeline(c->env, &ask, &report);
    if (result) return result;
    if (report.total_ns < c->cost) {
        c->cost = report.total_ns;
        tli_copy(c->best, c->cuts, ((size_t)c->stage_count + 1) * sizeof *c->cuts);
    }
    tl_free_pipeline_report(c->env, &report);
    return TL_OK;
}

// Move cuts of the best by so many units, if a unit remains between any two.
static tl_result tli_move_chunk_cuts(tli_chunk_cuts *c, int32_t first, int32_t end, int32_t by) {
    int32_t k;
    if (c->work >= c->work_limit || c->best[first] + by <= c->best[first - 1] ||
        c->best[end - 1] + by >= c->best[end]) return TL_OK;
    tli_copy(c->cuts, c->best, ((size_t)c->stage_count + 1) * sizeof *c->cuts);
    for (k = first; k < end; k++) c->cuts[k] += by;
    return tli_try_chunk_cuts(c);
}

// Move the cuts until nothing gets better, and write them if they are better than those before.
static tl_result tli_climb_chunk_cuts(tli_chunk_cuts *c, int32_t *ends) {
    uint64_t before = UINT64_MAX;
    int32_t by, k, turn;
    tl_result result;
    c->cost = UINT64_MAX;
    result = tli_try_chunk_cuts(c);
    while (c->cost < before && !result) {
        before = c->cost;
        for (by = 1; by < c->unit_count && !result; by *= 2)
            for (k = 1; k < c->stage_count && !result; k++)
                for (turn = 0; turn < 4 && !result; turn++)
                    result = tli_move_chunk_cuts(c, k, turn < 2 ? k + 1 : c->stage_count, turn % 2 ? by : -by);
    }
    if (result || c->cost >= c->least) return result;
    c->least = c->cost;
    for (k = 1; k < c->stage_count; k++) ends[k - 1] = c->ends[c->best[k] - 1];
    return TL_OK;
}

// Cuts where the stages before have their even share, with a unit for every stage.
static void tli_cut_chunks_evenly(tli_chunk_cuts *c) {
    double all = (double)c->sums[0][c->unit_count] + (double)c->sums[1][c->unit_count];
    int32_t k, at = 0;
    for (k = 1; k < c->stage_count; k++) {
        at = c->cuts[k - 1] + 1;
        while (at < c->unit_count - (c->stage_count - k) &&
               (double)c->sums[0][at] + (double)c->sums[1][at] < all * k / c->stage_count) at++;
        c->cuts[k] = at;
    }
}

// Improve the cuts of interleaved stages. ends: [all stages] from tl_plan_partition.
static tl_result tli_cut_chunks(tl_env *env, const tl_ranks_desc *desc, int32_t *ends) {
    uint64_t nodes = (uint64_t)desc->graph->node_count, tensors = (uint64_t)desc->graph->tensor_count;
    uint64_t stages = (uint64_t)desc->rank_count * (uint64_t)tli_count_chunks(desc);
    int32_t *numbers = (int32_t *)tli_alloc_array(env, 2 * nodes + tensors + 2 * stages + 2, sizeof *numbers);
    uint64_t *sums = (uint64_t *)tli_alloc_array(env, 3 * (nodes + 1) + 3 * stages, sizeof *sums);
    tl_result result = numbers && sums ? TL_OK : tli_fail_ranks(env);
    int32_t k, at = 0;
    tli_chunk_cuts c;
    tli_zero(&c, sizeof c);
    c.env = env;
    c.desc = desc;
    c.stage_count = (int32_t)stages;
    c.least = UINT64_MAX;
    c.work_limit = (desc->work_limit ? desc->work_limit : 700000000) / 32;
    if (!result) {
        c.ends = numbers;
        c.cuts = c.ends + nodes;
        c.best = c.cuts + stages + 1;
        c.sums[0] = sums;
        c.sums[1] = c.sums[0] + nodes + 1;
        c.sent = c.sums[1] + nodes + 1;
        c.times = c.sent + nodes + 1;
        tli_fill_chunk_units(&c, c.best + stages + 1, c.best + stages + 1 + tensors);
        for (k = 1; k < c.stage_count; k++) {
            while (c.ends[at] < ends[k - 1]) at++;
            c.cuts[k] = ++at;
        }
        c.cuts[k] = c.unit_count;
    }
    if (!result) result = tli_climb_chunk_cuts(&c, ends);
    if (!result) {
        tli_cut_chunks_evenly(&c);
        result = tli_climb_chunk_cuts(&c, ends);
    }
    tli_release(env, numbers);
    tli_release(env, sums);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
