#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: all of them --

typedef struct tli_ranks {
    tli_rank_stage *stages;        // [rank_count]
    tl_rank_plan   *ranks;
    int32_t        *ends;          // [stages] of all ranks
} tli_ranks;

static uint64_t tli_hash_rank_plan(uint64_t hash, const tl_graph *graph, const tl_plan *plan) {
    int32_t i;
    hash = tl_mix_u64(hash, (uint64_t)graph->node_count << 32 | (uint64_t)(uint32_t)plan->step_count);
    for (i = 0; i < graph->tensor_count; i++) hash = tl_mix_u64(hash, graph->outputs[i].bytes);
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        hash = tl_mix_u64(hash, (uint64_t)step->kind << 48 | (uint64_t)step->codec << 40 |
                                    (uint64_t)(step->begins != 0) << 32 | step->slot);
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)step->node << 32 | (uint32_t)step->output);
    }
    return hash;
}

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
    rank->busy_cost = tli_of_all_batches(s, s->best_cost);
    rank->in_flight_count = s->in_flight;
    rank->sent_bytes = tli_count_sent(s);
}

// How many micro-batches repeat what all of them do: with chunks as many groups as pass through all chunks.
static int32_t tli_count_probed(const tl_ranks_desc *desc, int32_t in_flight) {
    int64_t few = in_flight + 4;    // begun one ahead, ended one behind, and one more of both
    if (tli_count_chunks(desc) > 1) few = 4 * (int64_t)desc->rank_count;
    return few < desc->micro_batch_count ? (int32_t)few : desc->micro_batch_count;
}

// Plan one rank, whose stage is cut.
static tl_result tli_plan_rank(tl_env *env, const tl_ranks_desc *desc, int32_t index,
                               const tli_rank_stage *stage, tl_rank_plan *rank) {
    const tl_graph *graph = rank->compiled.graph;
    uint64_t nodes = (uint64_t)graph->node_count;
    tli_rank_search s;
    int32_t id;
    tl_result result;
    tli_zero(&s, sizeof s);
    s.env = env;
    s.desc = desc;
    s.graph = graph;
    s.chunks.count = tli_count_chunks(desc);
    s.chunks.starts = stage->chunk_starts;
    s.least = s.room = UINT64_MAX;
    s.device.alignment_bytes = desc->alignment_bytes;
    s.work_limit = (desc->work_limit ? desc->work_limit : 700000000) / (uint64_t)desc->rank_count /
                   (2 * TLI_RANK_BUDGETS) + 1;
    s.messages = (uint8_t *)tli_alloc_array(env, 2 * nodes + (uint64_t)graph->tensor_count, 1);
    result = s.messages ? tli_find_rank_base(env, desc, graph, &rank->base_bytes) : tli_fail_ranks(env);
    if (!result) result = tli_list_events(env, desc, index, desc->micro_batch_count, &s.all);
    if (!result) {
        s.in_flight = desc->inference ? 1 : tli_count_held_batches(&s.all);
        result = tli_list_events(env, desc, index, tli_count_probed(desc, s.in_flight), &s.probe);
    }
    if (!result) {
        s.ran = s.messages + graph->node_count;
        s.keep = s.ran + graph->node_count;
        for (id = 0; id < graph->node_count; id++)
            s.messages[id] = tli_find_message(&rank->compiled, id);
        if (desc->budget_bytes) s.room = desc->budget_bytes;
        if (desc->budget_bytes) s.room -= rank->base_bytes < s.room ? rank->base_bytes : s.room;
        tli_bound_rank(&s);
        result = tli_search_rank(&s);
    }
    if (!result && !s.best.step_count) result = tli_refuse_rank(&s, index, rank->base_bytes);
    if (!result) tli_fill_rank(&s, rank);
    tl_free_plan(env, &s.best);
    for (id = 0; id < s.plan_count; id++) tl_free_plan(env, &s.plans[id]);
    tli_release(env, s.all.events);
    tli_release(env, s.probe.events);
    tli_release(env, s.messages);
    return result;
}

// -- ranks: where to cut --

static int32_t tli_count_all_stages(const tl_ranks_desc *desc) {
    return desc->rank_count * tli_count_chunks(desc);
}

// Cut into stages of even cost, by the exact partition of the nodes.
static tl_result tli_find_ends(tl_env *env, const tl_ranks_desc *desc, int32_t *ends) {
    const tl_graph *graph = desc->graph;
    uint64_t tensors = (uint64_t)graph->tensor_count, places = tensors + (uint64_t)graph->node_count;
    tl_unit *units = (tl_unit *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *units);
    int32_t *last_readers = (int32_t *)tli_alloc_array(env, places, sizeof *last_readers);
    tl_partition_desc ask;
    tl_partition partition;
    int32_t *unit_ends = last_readers ? last_readers + tensors : NULL, stages = tli_count_all_stages(desc);
    int32_t id, k, count = 0;
    tl_result result = units && last_readers ? TL_OK : tli_fail_ranks(env);
    tli_zero(&ask, sizeof ask);
    tli_zero(&partition, sizeof partition);
    if (!result) tli_find_last_readers(graph, last_readers);
    for (id = 0; id < graph->node_count && !result; id++) {
        const tl_node *node = &graph->nodes[id];
        tl_unit *unit = &units[count];
        if (node->is_input) continue;
        unit->forward_ns = node->fwd_cost;
        unit->backward_ns = node->has_grad && !desc->inference ? node->bwd_cost : 0;
        unit->parameter_bytes = node->param_bytes;
        for (k = 0; k < graph->tensor_count; k++)
            if (tli_crosses(graph, last_readers, k, id + 1)) unit->output_bytes += graph->outputs[k].bytes;
        unit_ends[count++] = id + 1;
    }
    ask.units = units;
    ask.unit_count = count;
    ask.rank_count = ask.stage_count = stages;
    ask.micro_batch_count = desc->micro_batch_count;
    ask.pipeline = desc->pipeline == TL_PIPELINE_GPIPE ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
    ask.link = desc->link;
    ask.objective = TL_PARTITION_TOTAL;
    if (!result) result = tl_plan_partition(env, &ask, &partition);
    for (k = 0; k < stages && !result; k++) ends[k] = unit_ends[partition.stages[k].end_unit - 1];
    if (!result) ends[stages - 1] = graph->node_count;
    tl_free_partition(env, &partition);
    tli_release(env, units);
    tli_release(env, last_readers);
    return result;
}

// Whether each stage has a node that is no input.
static int tli_are_ends(const tl_ranks_desc *desc, const int32_t *ends) {
    int32_t stage, id, first = 0;
    for (stage = 0; stage < tli_count_all_stages(desc); stage++) {
        int has_node = 0;
        if (ends[stage] <= first || ends[stage] > desc->graph->node_count) return 0;
        for (id = first; id < ends[stage]; id++) has_node |= !desc->graph->nodes[id].is_input;
        if (!has_node) return 0;
        first = ends[stage];
    }
    return first == desc->graph->node_count;
}

static tl_result tli_check_ranks_desc(tl_env *env, const tl_ranks_desc *desc) {
    tli_rule why = TLI_NO_RULE;
    tl_result result;
    if (desc->rank_count < 1) why = TLI_RULE(RANK_COUNT_MUST_BE_POSITIVE);
    else if (desc->micro_batch_count < 1 || desc->micro_batch_count >= TLI_MOST_SLOTS)
        why = TLI_RULE(MICRO_BATCH_COUNT_OF_RANKS);
    else if (!tli_is_below((int64_t)desc->pipeline, TL_PIPELINE_COUNT)) why = TLI_RULE(PIPELINE_OF_RANKS);
    else if (desc->chunk_count < 0 || (desc->chunk_count > 1) != (desc->pipeline == TL_PIPELINE_INTERLEAVED))
        why = TLI_RULE(CHUNK_COUNT_ONLY_INTERLEAVED);
    else if (desc->chunk_count > 1 && desc->rank_count == 1) why = TLI_RULE(CHUNKS_NEED_RANKS);
    else if ((desc->inference | desc->weights_apart | desc->keep_all) & ~1)
        why = TLI_RULE(FLAGS_OF_RANKS_MUST_BE_0_OR_1);
    else if (desc->rank_count > desc->graph->node_count) why = TLI_RULE(RANKS_MORE_THAN_NODES);
    else if (tli_count_chunks(desc) > desc->graph->node_count / desc->rank_count)
        why = TLI_RULE(STAGES_MORE_THAN_NODES);
    else if (desc->link && !desc->link->bytes_per_second) why = TLI_RULE(LINK_OF_RANKS_HAS_NO_RATE);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), why);
    if (desc->chunk_count > 1 && desc->micro_batch_count % desc->rank_count)
        return tli_fail_values(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS),
                               TLI_RULE(MICRO_BATCHES_NOT_MULTIPLE_OF_RANKS), (uint64_t)desc->micro_batch_count,
                               (uint64_t)desc->rank_count);
    result = tl_check_graph(env, desc->graph);
    if (!result && desc->ends && !tli_are_ends(desc, desc->ends))
        result = tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), TLI_RULE(ENDS_MUST_RISE));
    return result;
}

// Cut and plan every rank.
static tl_result tli_plan_ranks(tl_env *env, const tl_ranks_desc *desc, const int32_t *ends, tli_ranks *own,
                                tl_compiled_ranks *ranks) {
    tl_result result = TL_OK;
    int32_t rank;
    for (rank = 0; rank < desc->rank_count && !result; rank++) {
        tl_rank_plan *plan = &own->ranks[rank];
        plan->first_node = rank ? ends[rank - 1] : 0;
        plan->end_node = ends[rank];
        result = tli_cut_stage(env, desc, ends, rank, &own->stages[rank], &plan->compiled);
        if (result) return result;
        plan->compiled.graph = &own->stages[rank].graph;
        plan->compiled.source = desc->graph;
        plan->compiled.memory = own;
        result = tli_plan_rank(env, desc, rank, &own->stages[rank], plan);
        if (!result) ranks->hash = tli_hash_rank_plan(ranks->hash, plan->compiled.graph, &plan->compiled.plan);
    }
    return result;
}

// Write into each plan whose it is.
static void tli_name_ranks(tl_compiled_ranks *ranks) {
    int32_t rank;
    for (rank = 0; rank < ranks->rank_count; rank++) {
        tl_compiled_plan *compiled = &ranks->ranks[rank].compiled;
        compiled->rank = rank;
        compiled->rank_count = ranks->rank_count;
        compiled->chunk_count = ranks->chunk_count;
        compiled->ranks_hash = ranks->hash;
    }
}

TLI_IMPL void tl_free_compiled_ranks(tl_env *env, tl_compiled_ranks *ranks) {
    tli_ranks *own;
    int32_t rank;
    TL_ASSERT(ranks);
    own = (tli_ranks *)ranks->memory;
    for (rank = 0; own && rank < ranks->rank_count; rank++) {
        tl_free_plan(env, &own->ranks[rank].compiled.plan);
        tl_free_graph(env, &own->stages[rank].graph);
        tli_release(env, own->stages[rank].map);
    }
    if (own) {
        tli_release(env, own->stages);
        tli_release(env, own->ranks);
        tli_release(env, own->ends);
    }
    tli_release(env, own);
    tli_zero(ranks, sizeof *ranks);
}

TLI_IMPL tl_result tl_compile_ranks(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks) {
    uint64_t stages;
    tli_ranks *own;
    tl_result result;
    TL_ASSERT(desc && desc->graph && ranks);
    tli_zero(ranks, sizeof *ranks);
    result = tli_check_ranks_desc(env, desc);
    if (result) return result;
    own = (tli_ranks *)tli_alloc_array(env, 1, sizeof *own);
    if (!own) return tli_fail_ranks(env);
    stages = (uint64_t)tli_count_all_stages(desc);
    ranks->memory = own;
    ranks->micro_batch_count = desc->micro_batch_count;
    ranks->chunk_count = tli_count_chunks(desc);
    own->stages = (tli_rank_stage *)tli_alloc_array(env, (uint64_t)desc->rank_count, sizeof *own->stages);
    own->ranks = (tl_rank_plan *)tli_alloc_array(env, (uint64_t)desc->rank_count, sizeof *own->ranks);
    own->ends = (int32_t *)tli_alloc_array(env, stages, sizeof *own->ends);
    if (own->stages && own->ranks) ranks->rank_count = desc->rank_count;
    if (!ranks->rank_count || !own->ends) result = tli_fail_ranks(env);
    ranks->ranks = own->ranks;
    ranks->ends = own->ends;
    if (!result && desc->ends) tli_copy(own->ends, desc->ends, (size_t)stages * sizeof *own->ends);
    else if (!result) result = tli_find_ends(env, desc, own->ends);
    if (!result && !desc->ends && desc->chunk_count > 1) result = tli_cut_chunks(env, desc, own->ends);
    if (!result) result = tli_plan_ranks(env, desc, own->ends, own, ranks);
    if (!result) result = tli_simulate_ranks(env, desc, ranks);
    if (!result) tli_name_ranks(ranks);
    if (result) tl_free_compiled_ranks(env, ranks);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
