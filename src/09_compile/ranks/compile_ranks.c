#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: all of them --

typedef struct tli_ranks {
    tli_rank_stage *stages;        // [rank_count]
    tl_rank_plan   *ranks;
    int32_t        *ends;          // [stages] of all ranks
    tl_compiled_plan split;        // the graph of a part of the batch; memory NULL = the batch is not split
} tli_ranks;

static uint64_t tli_hash_rank_plan(uint64_t hash, const tl_graph *graph, const tl_plan *plan) {
    int32_t i;
    hash = tl_mix_u64(hash, (uint64_t)graph->node_count << 32 | (uint64_t)(uint32_t)plan->step_count);
    for (i = 0; i < graph->tensor_count; i++) hash = tl_mix_u64(hash, graph->outputs[i].bytes);
    hash = tli_mix_attributes(hash, graph);
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        hash = tl_mix_u64(hash, (uint64_t)step->kind << 48 | (uint64_t)step->codec << 40 |
                                    (uint64_t)(step->begins != 0) << 32 | step->slot);
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)step->node << 32 | (uint32_t)step->output);
    }
    return hash;
}

// Whether the ends rise to the number of nodes, and each stage has a node that is no input.
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

// Find the rule that desc->compiled breaks: it must be of the desc's graph or of a copy scaled to a part, not
// the plan of one of several ranks, and forward only just if the desc is.
static tli_rule tli_find_cut_rule(const tl_ranks_desc *desc) {
    const tl_compiled_plan *compiled = desc->compiled;
    if (!compiled->memory || compiled->rank_count || compiled->source->inputs != desc->graph->inputs ||
        compiled->source->node_count != desc->graph->node_count) return TLI_RULE(COMPILED_NOT_OF_THE_GRAPH);
    if (compiled->inference != desc->inference) return TLI_RULE(COMPILED_OF_RANKS_INFERENCE);
    return TLI_NO_RULE;
}

// Each stage has a node that is no input, at least.
static tli_rule tli_find_stages_rule(const tl_ranks_desc *desc) {
    int32_t id, nodes = 0;
    for (id = 0; id < desc->graph->node_count; id++) nodes += !desc->graph->nodes[id].is_input;
    if (desc->rank_count > nodes) return TLI_RULE(RANKS_MORE_THAN_NODES);
    return tli_count_chunks(desc) > nodes / desc->rank_count ? TLI_RULE(STAGES_MORE_THAN_NODES) : TLI_NO_RULE;
}

// A state is updated on one rank alone, and is the same for all micro-batches under way together.
static tl_result tli_check_ranks_states(tl_env *env, const tl_ranks_desc *desc) {
    const tl_graph *graph = desc->graph;
    tli_rule why = desc->inference ? TLI_RULE(RANKS_SHARE_NO_STATES) : TLI_RULE(RANKS_SUM_NO_STATES);
    tli_sentence s;
    int32_t id = 0;
    while (id < graph->node_count && !graph->nodes[id].state) id++;
    if (id == graph->node_count || (desc->inference && desc->micro_batch_count == 1)) return TL_OK;
    s = tli_begin_error(env, TL_ERROR_UNSUPPORTED, TLI_IN(COMPILE_RANKS), why, (uint64_t)id, 0);
    tli_put_text(&s, tl_name_node(graph, id));
    return tli_end_error(env, &s, TL_ERROR_UNSUPPORTED);
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
    else if (desc->link && !desc->link->bytes_per_second) why = TLI_RULE(LINK_OF_RANKS_HAS_NO_RATE);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), why);
#ifdef TL_NO_OFFLOAD
    if (desc->host_budget_bytes)
        return tli_fail(env, TL_ERROR_UNSUPPORTED, TLI_IN(COMPILE_RANKS),
                        TLI_RULE(HOST_BUDGET_BYTES_TL_NO_OFFLOAD_LEFT));
#endif
    if (desc->chunk_count > 1 && desc->micro_batch_count % desc->rank_count)
        return tli_fail_values(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS),
                               TLI_RULE(MICRO_BATCHES_NOT_MULTIPLE_OF_RANKS), (uint64_t)desc->micro_batch_count,
                               (uint64_t)desc->rank_count);
    result = tl_check_graph(env, desc->graph);
    if (!result) result = tli_check_ranks_states(env, desc);
    if (!result && tli_has_dying(desc->graph))
        return tli_fail(env, TL_ERROR_UNSUPPORTED, TLI_IN(COMPILE_RANKS), TLI_RULE(RANKS_KEEP_INPUTS));
    if (!result) why = tli_find_stages_rule(desc);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), why);
    if (!result && desc->ends && !tli_are_ends(desc, desc->ends))
        result = tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), TLI_RULE(ENDS_MUST_RISE));
    return result;
}

// Take over the plan of a stage.
static void tli_take_stage(const tl_ranks_desc *desc, tli_stage_plan *stage, tli_ranks *own,
                           tl_compiled_ranks *ranks) {
    tl_rank_plan *rank = &own->ranks[stage->rank];
    *rank = stage->plan;
    own->stages[stage->rank] = stage->stage;
    tli_zero(&stage->stage, sizeof stage->stage);
    tli_zero(&stage->plan.compiled.plan, sizeof stage->plan.compiled.plan);
    rank->compiled.graph = &own->stages[stage->rank].graph;
    rank->compiled.source = desc->graph;
    rank->compiled.memory = own;
    ranks->hash = tli_hash_rank_plan(ranks->hash, rank->compiled.graph, &rank->compiled.plan);
}

static tl_result tli_refuse_rank(tl_env *env, const tl_ranks_desc *desc, const tli_stage_plan *stage) {
    tli_sentence e = tli_begin_error(env, TL_ERROR_INFEASIBLE, TLI_IN(COMPILE_RANKS),
                                     TLI_RULE(STAGE_DOES_NOT_FIT), tli_budget_of_rank(desc, stage->rank),
                                     stage->least_bytes);
    tli_put_limit(env, &e, TL_LIMIT_BUDGET);
    tli_put_rule(&e);
    if (TLI_ERROR_TEXT) {
        tli_put(&e.text, ", because of rank ");
        tli_put_i64(&e.text, stage->rank);
    }
    return tli_end_error(env, &e, TL_ERROR_INFEASIBLE);
}

// Find the cut, where none is given, and plan every rank.
static tl_result tli_plan_ranks(tl_env *env, const tl_ranks_desc *desc, tli_ranks *own,
                                tl_compiled_ranks *ranks) {
    const tli_stage_plan *worst = NULL;
    tli_stage_plan *stage;
    tli_cuts cuts;
    int32_t rank;
    tl_result result = tli_open_cuts(env, desc, &cuts);
    if (!result) result = tli_choose_cut(&cuts, own->ends);
    for (rank = 0; rank < desc->rank_count && !result; rank++) {
        stage = &cuts.chosen[rank];
        if (stage->least_bytes && (!worst || stage->least_bytes > worst->least_bytes)) worst = stage;
    }
    if (worst) result = tli_refuse_rank(env, desc, worst);
    for (rank = 0; rank < desc->rank_count && !result; rank++)
        tli_take_stage(desc, &cuts.chosen[rank], own, ranks);
    tli_close_cuts(&cuts);
    return result;
}

// Note the members of one node of a stage, behind `count` others; returns how many there are then.
static int32_t tli_map_members_of(const tl_compiled_plan *whole, const tl_compiled_plan *cut, int32_t id,
                                  int32_t *nodes, int32_t *members, int32_t count) {
    int32_t at, k;
    for (at = cut->first_members[id]; at < cut->first_members[id + 1]; at++)
        for (k = whole->first_members[cut->members[at]]; k < whole->first_members[cut->members[at] + 1]; k++) {
            nodes[whole->members[k]] = id;
            members[count++] = whole->members[k];
        }
    return count;
}

// Replace the map from a stage to the compiled graph by one to the source of that graph.
static tl_result tli_map_compiled(tl_env *env, const tl_compiled_plan *whole, tli_rank_stage *stage,
                                  tl_compiled_plan *compiled) {
    uint64_t olds = (uint64_t)whole->source->node_count, tensors = (uint64_t)whole->source->tensor_count;
    uint64_t nodes = (uint64_t)compiled->graph->node_count;
    int32_t *map = (int32_t *)tli_alloc_array(env, 2 * olds + tensors + 2 * nodes + 1, sizeof *map);
    int32_t *first, *recomputed, count = 0, id;
    if (!map) return tli_fail_ranks(env);
    first = map + 2 * olds + tensors;
    recomputed = first + nodes + 1;
    for (id = 0; id < whole->source->node_count; id++) map[id] = -1;
    for (id = 0; id < whole->source->tensor_count; id++) {
        int32_t tensor = whole->tensors[id];
        map[2 * olds + (uint64_t)id] = tensor < 0 ? -1 : compiled->tensors[tensor];
    }
    for (id = 0; id < compiled->graph->node_count; id++) {
        int32_t before = count, is_node = compiled->first_members[id] < compiled->first_members[id + 1];
        first[id] = count;
        recomputed[id] = is_node ? whole->recompute_counts[compiled->members[compiled->first_members[id]]] : 0;
        count = tli_map_members_of(whole, compiled, id, map, map + olds, count);
        compiled->choice.fused_count += count > before + 1;
        compiled->choice.conversion_count += is_node && count == before;
    }
    first[compiled->graph->node_count] = count;
    tli_release(env, stage->map);
    stage->map = map;
    stage->chunk_starts = NULL;
    compiled->nodes = map;
    compiled->members = map + olds;
    compiled->tensors = map + 2 * olds;
    compiled->first_members = first;
    compiled->recompute_counts = recomputed;
    return TL_OK;
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
        tli_release(env, own->stages[rank].formats);
    }
    if (own) {
        tli_release(env, own->stages);
        tli_release(env, own->ranks);
        tli_release(env, own->ends);
        tl_free_compiled_plan(env, &own->split);
    }
    tli_release(env, own);
    tli_zero(ranks, sizeof *ranks);
}

TLI_IMPL int32_t tl_find_node_rank(const tl_compiled_ranks *ranks, int32_t node) {
    int32_t stages, stage = 0;
    TL_ASSERT(ranks);
    stages = ranks->rank_count * ranks->chunk_count;
    if (ranks->compiled && ranks->compiled->nodes && node >= 0)
        node = node < ranks->compiled->source->node_count ? ranks->compiled->nodes[node] : -1;
    while (stage < stages && ranks->ends[stage] <= node) stage++;
    return node >= 0 && stage < stages ? stage % ranks->rank_count : -1;
}

static tl_result tli_compile_cut(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks) {
    const tl_compiled_plan *whole = desc->compiled;
    tli_ranks *own;
    tl_result result = tli_check_ranks_desc(env, desc);
    int32_t rank;
    if (result) return result;
    own = (tli_ranks *)tli_alloc_array(env, 1, sizeof *own);
    if (!own) return tli_fail_ranks(env);
    ranks->memory = own;
    ranks->micro_batch_count = desc->micro_batch_count;
    ranks->chunk_count = tli_count_chunks(desc);
    own->stages = (tli_rank_stage *)tli_alloc_array(env, (uint64_t)desc->rank_count, sizeof *own->stages);
    own->ranks = (tl_rank_plan *)tli_alloc_array(env, (uint64_t)desc->rank_count, sizeof *own->ranks);
    own->ends = (int32_t *)tli_alloc_array(env, (uint64_t)tli_count_all_stages(desc), sizeof *own->ends);
    if (own->stages && own->ranks) ranks->rank_count = desc->rank_count;
    if (!ranks->rank_count || !own->ends) result = tli_fail_ranks(env);
    ranks->ranks = own->ranks;
    ranks->ends = own->ends;
    if (!result) result = tli_plan_ranks(env, desc, own, ranks);
    if (!result) result = tli_simulate_ranks(env, desc, ranks);
    if (!result) result = tli_bound_ranks(env, desc, &ranks->bound_cost);
    for (rank = 0; rank < desc->rank_count && whole && !result; rank++) {
        tl_compiled_plan *compiled = &own->ranks[rank].compiled;
        compiled->source = whole->source;
        compiled->precision = whole->precision;
        if (whole->nodes) result = tli_map_compiled(env, whole, &own->stages[rank], compiled);
    }
    if (!result) tli_name_ranks(ranks);
    if (result) tl_free_compiled_ranks(env, ranks);
    return result;
}

// Plan a pipeline of the micro-batches that the desc names.
static tl_result tli_compile_batches(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks) {
    tl_ranks_desc cut;
    tli_rule why;
    tl_result result;
    tli_zero(ranks, sizeof *ranks);
    if (!desc->compiled) return tli_compile_cut(env, desc, ranks);
    why = tli_find_cut_rule(desc);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), why);
    cut = *desc;
    cut.graph = desc->compiled->graph;
    result = tli_compile_cut(env, &cut, ranks);
    if (!result) ranks->compiled = desc->compiled;
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
