#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: one of them --

// The events of a rank; forward only: the micro-batches, one after the other.
static tl_result tli_list_events(tl_env *env, const tl_ranks_desc *desc, int32_t rank, int32_t micro_batches,
                                 tli_rank_events *list) {
    tl_pipeline_desc pipeline;
    int32_t i, kept = 0;
    tl_result result;
    tli_zero(&pipeline, sizeof pipeline);
    pipeline.kind = desc->pipeline;
    pipeline.rank_count = desc->rank_count;
    pipeline.chunk_count = desc->chunk_count;
    pipeline.micro_batch_count = list->micro_batches = micro_batches;
    list->count = tl_count_pipeline_events(&pipeline);
    list->events = (tl_pipeline_event *)tli_alloc_array(env, (uint64_t)list->count, sizeof *list->events);
    if (!list->events) return tli_fail_ranks(env);
    result = tl_list_pipeline(env, &pipeline, rank, list->events);
    for (i = 0; i < list->count && desc->inference; i++)
        if (!list->events[i].is_backward) list->events[kept++] = list->events[i];
    if (desc->inference) list->count = kept;
    return result;
}

// Most micro-batches between their forward and their backward; each counts in each chunk.
static int32_t tli_count_held_batches(const tli_rank_events *list) {
    int32_t held = 0, most = 0, i;
    for (i = 0; i < list->count; i++) {
        held += list->events[i].is_backward ? -1 : 1;
        if (held > most) most = held;
    }
    return most;
}

// A figure of one micro-batch, for all; UINT64_MAX where that does not fit.
static uint64_t tli_of_all_batches(const tli_rank_search *s, uint64_t one) {
    uint64_t all;
    return tli_mul_u64(one, (uint64_t)s->desc->micro_batch_count, &all) ? all : UINT64_MAX;
}

// Bytes that a rank sends in a training step: each tensor forward, each gradient back.
static uint64_t tli_count_sent(const tli_rank_search *s) {
    const tl_graph *graph = s->graph;
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (s->messages[id] == TLI_MESSAGE_SEND)
            sum += graph->outputs[graph->inputs[node->first_input].tensor].bytes;
        if (s->messages[id] == TLI_MESSAGE_RECEIVE && node->has_grad && !s->desc->inference)
            sum += graph->outputs[node->first_output].bytes;
    }
    return tli_of_all_batches(s, sum);
}

static tl_result tli_find_rank_base(tl_env *env, const tl_ranks_desc *desc, const tl_graph *graph,
                                    uint64_t *base) {
    tl_result result = TL_OK;
    *base = 0;
    if (!desc->weights_apart)
        result = tl_find_base_bytes(env, graph, desc->gradient_ratio, desc->optimizer_ratio, base);
    if (!result && !tli_add_u64(*base, desc->base_bytes, base))
        result = tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(COMPILE_RANKS),
                          TLI_RULE(BASE_OF_RANK_DOES_NOT_FIT_64));
    return result;
}

// Fill in what a search has found.
static void tli_fill_rank(tli_rank_search *s, tl_rank_plan *rank) {
    tl_compiled_plan *compiled = &rank->compiled;
    compiled->plan = s->best;
    compiled->plan.base_bytes = rank->base_bytes;
    tli_zero(&s->best, sizeof s->best);
    compiled->inference = s->desc->inference;
    compiled->precision = TL_PRECISION_SINGLE;
    compiled->choice.part_count = 1;
    compiled->choice.cost = tli_of_all_batches(s, s->best_cost);
    compiled->choice.arena_bytes = compiled->plan.arena_bytes;
    compiled->base_cost = compiled->bound_cost = tli_of_all_batches(s, s->bound_cost);
    compiled->proven = s->best_cost == s->bound_cost;
    compiled->gap_ratio = tli_find_gap(s->best_cost, s->bound_cost);
    rank->held_bytes = s->best_held;
    rank->busy_cost = tli_of_all_batches(s, s->best_calls);
    rank->in_flight_count = s->in_flight;
    rank->sent_bytes = tli_count_sent(s);
}

// How many micro-batches show all that a training step of more of them repeats; with chunks four groups of as
// many as there are ranks.
static int32_t tli_count_probed(const tl_ranks_desc *desc, int32_t in_flight) {
    int64_t few = in_flight + 4;    // begun one ahead, ended one behind, and one more of both
    if (tli_count_chunks(desc) > 1) few = 4 * (int64_t)desc->rank_count;
    return few < desc->micro_batch_count ? (int32_t)few : desc->micro_batch_count;
}

// Plan one rank, whose stage is cut. budget: of the rank, 0 = no limit; is_quick: to compare cuts. *least: 0,
// or, where no plan fits, the bytes that would do.
static tl_result tli_plan_rank(tl_env *env, const tl_ranks_desc *desc, int32_t index,
                               const tli_rank_stage *stage, uint64_t budget, uint64_t work_limit, int is_quick,
                               tl_rank_plan *rank, uint64_t *least) {
    const tl_graph *graph = rank->compiled.graph;
    uint64_t nodes = (uint64_t)graph->node_count;
    tli_rank_search s;
    int32_t id;
    tl_result result;
    tli_zero(&s, sizeof s);
    *least = 0;
    s.env = env;
    s.desc = desc;
    s.graph = graph;
    s.is_quick = is_quick;
    tli_pool_init(&s.pool, env, TLI_POOL_BYTES);
    s.chunks.count = tli_count_chunks(desc);
    s.chunks.starts = stage->chunk_starts;
    s.least = s.room = UINT64_MAX;
    s.device.alignment_bytes = desc->alignment_bytes;
    s.work_limit = work_limit / (2 * TLI_RANK_BUDGETS) + 1;
    s.messages = (uint8_t *)tli_alloc_array(env, 2 * nodes + 1 + (uint64_t)graph->tensor_count, 1);
    result = s.messages ? tli_find_rank_base(env, desc, graph, &rank->base_bytes) : tli_fail_ranks(env);
    if (!result) result = tli_list_events(env, desc, index, desc->micro_batch_count, &s.all);
    if (!result) {
        s.in_flight = desc->inference ? 1 : tli_count_held_batches(&s.all);
        result = tli_list_events(env, desc, index, tli_count_probed(desc, s.in_flight), &s.probe);
    }
    if (!result) {
        s.ran = s.messages + graph->node_count;
        s.keep = s.ran + graph->node_count + 1;
        for (id = 0; id < graph->node_count; id++)
            s.messages[id] = tli_find_message(&rank->compiled, id);
        if (budget) s.room = budget > rank->base_bytes ? budget - rank->base_bytes : 0;
        s.bound_cost = tli_find_least_cost(s.graph, desc->inference, s.ran);
        result = tli_search_rank(&s);
    }
    if (!result && s.has_best) tli_fill_rank(&s, rank);
    else if (!result) *least = tli_add_capped(s.least, rank->base_bytes);
    tl_free_plan(env, &s.best);
    tl_free_graph(env, &s.turn);
    tli_pool_clear(&s.pool);
    for (id = 0; id < s.plan_count; id++) tl_free_plan(env, &s.plans[id]);
    tli_release(env, s.largest);
    tli_release(env, s.copied);
    tli_release(env, s.all.events);
    tli_release(env, s.probe.events);
    tli_release(env, s.messages);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
