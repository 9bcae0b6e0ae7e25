#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: the size of micro-batches --
//
// A graph of a whole batch of B samples is split into m micro-batches of B / m: more of them make the bubble
// less, and messages and sums more often. Every m that divides B is planned with its part of half the work, and
// the best once more with all of it: it is not slower than asked for by itself. Where none fits, that of the
// fewest bytes gets all of it before it is refused.

typedef struct tli_splits {
    tl_env  *env;                   // a copy of the caller's: what does not fit is not logged
    const tl_ranks_desc *desc;
    int      compares;              // 1 = ways to share the batch are compared for each m
    tl_compiled_ranks *ranks;       // the best so far
    tl_parallel_plan  *choices;
    uint64_t time, least_bytes;     // of the best; of all
    int32_t  best;                  // its m; 0 = none fits
    int32_t  nearest;               // m of the least_bytes; 0 = not known
    int32_t  count;                 // of the numbers that divide the batch
} tli_splits;

// The time of a step, and what so many micro-batches cost beside.
static uint64_t tli_time_of_split(const tli_splits *s, int32_t parts, const tl_compiled_ranks *ranks,
                                  const tl_parallel_plan *choices) {
    uint64_t time = s->compares ? choices->choices[choices->best].time_ns : ranks->cost, more;
    if (!tli_mul_u64(s->desc->split_cost, (uint64_t)parts - 1, &more)) return UINT64_MAX;
    return tli_add_capped(time, tli_divide_up(more, (uint64_t)s->desc->rank_count));
}

// Make the graph of one of so many micro-batches.
static tl_result tli_split_graph(tl_env *env, const tl_ranks_desc *desc, int32_t parts,
                                 tl_compiled_plan *split) {
    tl_strategy strategy = tl_strategy_training();
    tl_compile_desc compile;
    tli_zero(&compile, sizeof compile);
    strategy.parallelism = tl_parallelism_none();
    strategy.enable_fusion = 0;
    strategy.gradient.accumulation_steps = (uint64_t)parts;
    compile.graph = desc->graph;
    compile.strategy = &strategy;
    compile.may_split = 1;
    compile.work_limit = 1;         // its plan is not read
    return tl_compile(env, &compile, split);
}

// Plan so many micro-batches of the batch. The ranks own the graph of one.
static tl_result tli_plan_split(tl_env *env, const tl_ranks_desc *desc, int compares, int32_t parts,
                                tl_compiled_ranks *ranks, tl_parallel_plan *choices) {
    tl_ranks_desc of_part = *desc;
    tl_compiled_plan split;
    tli_ranks *own;
    tl_result result = tli_split_graph(env, desc, parts, &split);
    if (result) return result;
    of_part.compiled = &split;
    of_part.micro_batch_count = parts;
    result = compares ? tli_compile_ways(env, &of_part, ranks, choices)
                      : tli_compile_batches(env, &of_part, ranks);
    if (result) {
        tl_free_compiled_plan(env, &split);
        return result;
    }
    own = (tli_ranks *)ranks->memory;
    own->split = split;
    ranks->compiled = &own->split;
    return TL_OK;
}

// Look at one number of micro-batches, if the ranks can have as many.
static tl_result tli_look_at_split(tli_splits *s, int32_t parts, uint64_t work) {
    tl_ranks_desc desc = *s->desc;
    tl_compiled_ranks ranks;
    tl_parallel_plan choices;
    tl_result result;
    uint64_t time;
    tli_zero(&ranks, sizeof ranks);
    tli_zero(&choices, sizeof choices);
    desc.work_limit = work ? work : 1;
    result = tli_plan_split(s->env, &desc, s->compares, parts, &ranks, &choices);
    if (result == TL_ERROR_INFEASIBLE && tl_find_least_budget(&s->env->error) < s->least_bytes) {
        s->least_bytes = tl_find_least_budget(&s->env->error);
        s->nearest = parts;
    }
    if (result == TL_ERROR_INFEASIBLE || result == TL_ERROR_INVALID_ARG) return TL_OK;
    if (result) return result;
    time = tli_time_of_split(s, parts, &ranks, &choices);
    if (!s->best || time < s->time) {
        tl_free_compiled_ranks(s->env, s->ranks);
        tl_free_parallel_plan(s->env, s->choices);
        *s->ranks = ranks;
        *s->choices = choices;
        s->time = time;
        s->best = parts;
        return TL_OK;
    }
    tl_free_compiled_ranks(s->env, &ranks);
    tl_free_parallel_plan(s->env, &choices);
    return TL_OK;
}

static int tli_divides_batch(const tl_ranks_desc *desc, int32_t parts) {
    return desc->graph->batch % (uint64_t)parts == 0 &&
           (tli_count_chunks(desc) == 1 || parts % desc->rank_count == 0);
}

static tl_result tli_choose_split(tli_splits *s) {
    uint64_t batch = s->desc->graph->batch, half = tli_work_of_ranks(s->desc) / 2;
    int32_t most = batch < TLI_MOST_SLOTS ? (int32_t)batch : TLI_MOST_SLOTS - 1, parts;
    tl_result result = tl_check_graph(s->env, s->desc->graph);
    if (!result && !batch)
        result = tli_fail(s->env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS),
                          TLI_RULE(SPLIT_OF_UNKNOWN_BATCH));
    for (parts = 1; parts <= most && !result; parts++) s->count += tli_divides_batch(s->desc, parts);
    for (parts = 1; parts <= most && !result; parts++)
        if (tli_divides_batch(s->desc, parts))
            result = tli_look_at_split(s, parts, half / (uint64_t)s->count);
    if (result) return result;
    if (!s->best && s->nearest) result = tli_look_at_split(s, s->nearest, tli_work_of_ranks(s->desc));
    else if (s->best) return tli_look_at_split(s, s->best, tli_work_of_ranks(s->desc));
    if (result || s->best) return result;
    if (s->least_bytes < UINT64_MAX) {
        tli_sentence e = tli_begin_error(s->env, TL_ERROR_INFEASIBLE, TLI_IN(COMPILE_RANKS),
                                         TLI_RULE(NO_CHOICE_FITS), s->desc->budget_bytes, s->least_bytes);
        tli_put_limit(s->env, &e, TL_LIMIT_BUDGET);
        return tli_end_error(s->env, &e, TL_ERROR_INFEASIBLE);
    }
    if (s->count) return s->env->error.code;        // the same for every number of micro-batches
    return tli_fail(s->env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), TLI_RULE(NO_SPLIT_OF_RANKS));
}

// Plan the micro-batches of the graph, or of the batch that it is of: as many as the desc says, or as is best.
static tl_result tli_compile_split(tl_env *env, const tl_ranks_desc *desc, int compares,
                                   tl_compiled_ranks *ranks, tl_parallel_plan *choices) {
    tli_quiet quiet;
    tl_env copy;
    tli_splits s;
    tl_result result;
    tli_zero(ranks, sizeof *ranks);
    tli_zero(choices, sizeof *choices);
    if (desc->may_split & ~1 || (desc->may_split && (desc->inference || desc->compiled)))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS),
                        TLI_RULE(SPLIT_OF_RANKS_IS_OF_TRAINING));
    if (!desc->may_split)
        return compares ? tli_compile_ways(env, desc, ranks, choices) : tli_compile_batches(env, desc, ranks);
    if (desc->micro_batch_count)
        return tli_plan_split(env, desc, compares, desc->micro_batch_count, ranks, choices);
    quiet = tli_begin_quiet(env);
    tli_zero(&copy, sizeof copy);
    if (env) copy = *env;
    tli_zero(&s, sizeof s);
    s.env = &copy;
    s.desc = desc;
    s.compares = compares;
    s.ranks = ranks;
    s.choices = choices;
    s.least_bytes = UINT64_MAX;
    result = tli_choose_split(&s);
    if (result) tl_free_compiled_ranks(env, ranks);
    if (result) tl_free_parallel_plan(env, choices);
    if (result && env) env->error = copy.error;
    tli_end_quiet(&quiet, result);
    return result;
}

TLI_IMPL tl_result tl_compile_ranks(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks) {
    tl_parallel_plan none;
    TL_ASSERT(desc && desc->graph && ranks);
    return tli_compile_split(env, desc, 0, ranks, &none);
}

TLI_IMPL tl_result tl_compile_parallel(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks,
                                       tl_parallel_plan *choices) {
    tl_parallel_plan own;
    tl_result result;
    TL_ASSERT(desc && desc->graph && ranks);
    result = tli_compile_split(env, desc, 1, ranks, choices ? choices : &own);
    if (!choices) tl_free_parallel_plan(env, &own);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
