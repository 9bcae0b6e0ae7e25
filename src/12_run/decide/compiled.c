#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- runs of a compiled plan --
//
// What a strategy leaves open beside the plan itself, fused chains, formats and the parts of a batch, is
// compiled before anything else is prepared. The run's graph is the compiled one then, and its map leads from
// there to the caller's nodes:
//
//     caller's graph --tl_compile--> graph, plan, map --> kernels, arena, steps
//
// Online runs and those that keep results take the graph and make decisions, or plans, of their own.

#ifndef TL_NO_PLANNERS
// The most blocks in which an arena of so many bytes can lie: any two neighbours hold more than one block may.
static uint64_t tli_most_blocks(const tl_run *run, uint64_t bytes) {
    uint64_t cut = tli_run_cut(run);
    return cut && bytes > cut ? bytes / cut * 2 + 2 : 1;
}

// The most that the backend takes beside an aligned arena of so many bytes: overhead, and what rounding adds.
static uint64_t tli_beside_arena(const tl_run *run, tl_tier tier, uint64_t bytes) {
    uint64_t beside = run->limits.block_overhead_bytes[tier], sum;
    if (run->limits.granularity_bytes > run->limits.alignment_bytes)
        beside += run->limits.granularity_bytes - run->limits.alignment_bytes;
    return tli_mul_u64(beside, tli_most_blocks(run, bytes), &sum) ? sum : UINT64_MAX;
}

// The largest arena for which the backend takes no more than so many bytes.
static uint64_t tli_arena_room(const tl_run *run, tl_tier tier, uint64_t bytes) {
    uint64_t overhead = run->limits.block_overhead_bytes[tier];
    uint64_t granularity = run->limits.granularity_bytes ? run->limits.granularity_bytes : 1;
    if (bytes == UINT64_MAX) return bytes;
    if (tli_most_blocks(run, bytes) > 1) overhead = tli_beside_arena(run, tier, bytes);
    bytes -= bytes < overhead ? bytes : overhead;
    return bytes - bytes % granularity;
}

// The budgets of the arenas: without what the backend takes beside them. On the device it counts as base, with
// what rounding to the granularity adds to an aligned arena at most, so that a refusal names bytes that do.
static tli_budget tli_arena_budget(const tl_run *run) {
    tli_budget budget = run->budget;
    uint64_t beside = tli_beside_arena(run, TL_TIER_DEVICE, budget.bytes);
    budget.is_over |= budget.bytes < run->limits.block_overhead_bytes[TL_TIER_DEVICE];
    budget.host_bytes = tli_arena_room(run, TL_TIER_HOST, budget.host_bytes);
    if (budget.bytes == UINT64_MAX) return budget;
    budget.bytes = tli_arena_room(run, TL_TIER_DEVICE, budget.bytes);
    budget.base_bytes = tli_needed_bytes(run, beside);
    return budget;
}
#endif

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
static int tli_computes_mixed(const tl_run *run) {
    return run->desc.strategy->precision == TL_PRECISION_MIXED &&
           (run->desc.kernel_precisions & (1u << TL_PRECISION_MIXED));
}

// Whether the strategy leaves more open than a plan of the graph as it is. For decisions made online on the
// host fusion alone is nothing to compile: tli_take_fusion fuses all chains, because what each would save is
// not known before the decisions.
static int tli_is_open(const tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    if (!desc->strategy || desc->plan || desc->checkpoints || desc->formats || desc->fusion) return 0;
    if (desc->strategy->enable_fusion && !run->owns_layers && !(run->is_online && run->limits.host_visible))
        return 1;
    return tli_computes_mixed(run) || desc->may_split;
}

// Those of some schemes that the run can convert. Of f16 and bf16 one, where the backend's memory is not the
// host's, because to convert between the two it needs scratch.
static uint32_t tli_find_convertible(const tl_run *run, uint32_t schemes) {
    uint32_t can = TLI_BIT(TL_SCHEME_F32);
    if (TLI_CODECS && run->limits.codecs & (1u << TL_CODEC_F16)) can |= TLI_BIT(TL_SCHEME_F16);
    if (TLI_CODECS && run->limits.codecs & (1u << TL_CODEC_BF16)) can |= TLI_BIT(TL_SCHEME_BF16);
    schemes &= can;
    if (!run->limits.host_visible && schemes & TLI_BIT(TL_SCHEME_BF16)) schemes &= ~TLI_BIT(TL_SCHEME_F16);
    return schemes;
}

// How the run chooses formats.
static tl_precision_desc tli_ask_run_formats(const tl_run *run) {
    tl_precision_desc ask;
    tli_zero(&ask, sizeof ask);
    if (run->desc.precision) ask = *run->desc.precision;
    else {
        ask.loss_limit = tli_infinity();
        ask.schemes = TLI_BIT(TL_SCHEME_BF16);
        ask.allow_sensitive = ask.allow_unknown = 1;
    }
    if (!ask.schemes) ask.schemes = TLI_FLOAT_SCHEMES;
    ask.schemes = tli_find_convertible(run, ask.schemes | TLI_BIT(TL_SCHEME_F32));
    return ask;
}

static int tli_watch_run_compile(const tl_compile_progress *progress, void *user) {
    const tl_run_desc *desc = (const tl_run_desc *)user;
    tl_remat_progress now;
    now.work = progress->work;
    now.work_limit = progress->work_limit;
    now.cost = progress->cost;
    now.bound_cost = progress->bound_cost;
    return (desc->progress)(&now, desc->progress_user);
}

static tl_result tli_compile_run(tl_run *run, const tl_strategy *strategy, const tli_budget *budget) {
    tl_precision_desc formats = tli_ask_run_formats(run);
    tl_compile_desc desc;
    tli_zero(&desc, sizeof desc);
    desc.graph = run->graph;
    desc.strategy = strategy;
    desc.device = run->desc.device;
    desc.alignment_bytes = run->limits.alignment_bytes;
    desc.block_bytes = tli_run_cut(run);
    desc.kernel_precisions = run->desc.kernel_precisions;
    if (strategy->precision == TL_PRECISION_MIXED) desc.precision = &formats;
    desc.may_split = run->desc.may_split;
    desc.split_cost = run->desc.split_cost;
    desc.in_flight = run->in_flight;
    desc.codec = run->desc.codec;
    desc.work_limit = run->desc.work_limit;
    if (run->desc.progress) desc.progress = tli_watch_run_compile;
    desc.user = &run->desc;
    desc.fusion_block_bytes = tli_find_fusion_block(run);
    desc.fusion_scratch_parts = tli_find_fusion_parts(run);
    desc.fusion_call_cost = tli_find_fusion_call_cost(run);
    return tli_compile_within(run->env, &desc, budget, &run->own_compiled);
}

// Compile within the run's budget. An online run may fit where no plan does, so it gets the graph that is
// cheapest without a limit then.
static tl_result tli_compile_budget(tl_run *run, const tl_strategy *strategy) {
    tli_budget budget = run->in_arena ? tli_arena_budget(run) : run->budget;
    tli_quiet quiet = tli_begin_quiet(run->env);
    tl_result result = tli_compile_run(run, strategy, &budget);
    if (result == TL_ERROR_INFEASIBLE && run->is_online) {
        budget.bytes = budget.host_bytes = UINT64_MAX;
        budget.is_limited = budget.is_over = 0;
        result = tli_compile_run(run, strategy, &budget);
    }
    tli_end_quiet(&quiet, result);
    return result;
}

// Whether the backend cannot carry out a conversion, because it cannot add to a gradient.
static int tli_lacks_conversion(const tl_run *run, const tl_compiled_plan *compiled) {
    const tl_graph *graph = compiled->graph;
    int32_t id, reader, k;
    if (run->limits.host_visible || !compiled->formats || run->inference) return 0;
    for (id = 0; id < graph->node_count; id++) {
        int32_t tensor;
        int is_conversion = compiled->first_members[id + 1] == compiled->first_members[id];
        if (!is_conversion || !graph->nodes[id].has_grad) continue;
        tensor = graph->inputs[graph->nodes[id].first_input].tensor;
        for (reader = id + 1; reader < graph->node_count; reader++)
            for (k = 0; k < graph->nodes[reader].input_count && graph->nodes[reader].has_grad; k++)
                if (graph->inputs[graph->nodes[reader].first_input + k].tensor == tensor) return 1;
    }
    return 0;
}

// Compile the strategy of the desc. Where the backend cannot convert what was chosen, everything is f32.
static tl_result tli_compile_strategy(tl_run *run) {
    tl_strategy strategy = *run->desc.strategy;
    tl_result result;
    strategy.mode = TL_MODE_LAZY;
    if (run->owns_layers) strategy.enable_fusion = 0;
    if (strategy.memory == TL_MEMORY_MINIMAL_PEAK && run->is_online) strategy.memory = TL_MEMORY_POOLED;
    result = tli_compile_budget(run, &strategy);
    if (result || !tli_lacks_conversion(run, &run->own_compiled)) return result;
    tl_free_compiled_plan(run->env, &run->own_compiled);
    strategy.precision = TL_PRECISION_SINGLE;
    return tli_compile_budget(run, &strategy);
}

// Why the compiled plan that was given is refused: it is not of the desc's graph, or something contradicts it.
// TLI_NO_RULE = it is not refused.
static tli_rule tli_find_compiled_rule(const tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    const tl_compiled_plan *compiled = desc->compiled;
    if (desc->plan || desc->checkpoints || desc->formats || desc->fusion || run->owns_layers)
        return TLI_RULE(COMPILED_GIVE_NOTHING_BESIDE_IT);
    if (!compiled->memory || compiled->source->node_count != run->graph->node_count ||
        compiled->source->inputs != run->graph->inputs) return TLI_RULE(COMPILED_NOT_OF_THE_GRAPH);
    if (desc->strategy && (run->is_online || run->inference != compiled->inference))
        return TLI_RULE(COMPILED_BUT_STRATEGY_SAYS_OTHERWISE);
    return TLI_NO_RULE;
}

// Go on with the compiled graph; kernels see the caller's.
static tl_result tli_use_compiled(tl_run *run, const tl_compiled_plan *compiled) {
    tli_members *members = &run->members;
    run->compiled = compiled;
    run->graph = compiled->graph;
    run->inference = compiled->inference;
    run->precision = compiled->formats ? TL_PRECISION_MIXED : compiled->precision;
    run->desc.formats = compiled->formats;
    if (!compiled->nodes) return TL_OK;
    members->graph = compiled->source;
    members->nodes = compiled->nodes;
    members->tensors = compiled->tensors;
    members->first_members = compiled->first_members;
    members->members = compiled->members;
    members->recompute_counts = compiled->recompute_counts;
    members->fused_count = compiled->choice.fused_count;
    return tli_map_members(run);
}

// Whether ranks can run parts of what the strategy asks for. Pipelines alone split a batch.
static int tli_can_be_cut(const tl_run *run) {
    const tl_strategy *strategy = run->desc.strategy;
    int may_be_split = strategy->parallelism.kind == TL_PARALLELISM_PIPELINE;
    return strategy->mode == TL_MODE_LAZY && strategy->memory == TL_MEMORY_POOLED &&
           !strategy->gradient.checkpoint_interval && (!run->desc.may_split || may_be_split) &&
           !run->desc.plan && !run->desc.checkpoints && !run->desc.formats && !run->owns_layers;
}

// How many ranks share a graph that the strategy cuts; 1 = it is not cut.
static int32_t tli_count_sharing_ranks(const tl_run *run) {
    const tl_parallelism *parallelism = run->desc.strategy ? &run->desc.strategy->parallelism : NULL;
    if (!parallelism || !run->desc.transport || run->desc.compiled) return 1;
    if (parallelism->kind == TL_PARALLELISM_MODEL) return (int32_t)parallelism->as.model.device_count;
    if (parallelism->kind == TL_PARALLELISM_PIPELINE) return (int32_t)parallelism->as.pipeline.stage_count;
    if (parallelism->kind != TL_PARALLELISM_AUTOMATIC || !tli_can_be_cut(run)) return 1;
    return run->desc.transport->rank_count;
}

static int tli_is_automatic(const tl_run *run) {
    return run->desc.strategy->parallelism.kind == TL_PARALLELISM_AUTOMATIC;
}

// Plan the ranks of a desc: all of them as one pipeline or, in automatic, in the way that is fastest.
static tl_result tli_plan_shared(tl_run *run, const tl_ranks_desc *desc) {
    if (!tli_is_automatic(run)) return tl_compile_ranks(run->env, desc, &run->own_ranks);
    return tl_compile_parallel(run->env, desc, &run->own_ranks, &run->own_ways);
}

// Choose chains and formats for the graph as a whole, and plan ranks of what that gives: what is cheapest or,
// in memory minimal-peak, what takes fewest bytes.
static tl_result tli_compile_and_cut(tl_run *run, tl_memory memory, tl_ranks_desc *desc) {
    tl_strategy strategy = *run->desc.strategy;
    tli_budget budget = tli_arena_budget(run);
    tl_result result;
    strategy.memory = memory;
    strategy.parallelism = tl_parallelism_none();
    if (run->desc.may_split) strategy.gradient.accumulation_steps = (uint64_t)desc->micro_batch_count;
    budget.bytes = budget.host_bytes = UINT64_MAX;
    budget.is_limited = budget.is_over = 0;
    tl_free_compiled_plan(run->env, &run->own_compiled);
    result = tli_compile_run(run, &strategy, &budget);
    if (result) return result;
    desc->compiled = &run->own_compiled;
    if (run->desc.may_split) desc->micro_batch_count = desc->compiled->choice.part_count;
    desc->may_split = 0;
    return tli_plan_shared(run, desc);
}

// Choose into how many micro-batches the batch is split, by the graph as it is. 0 = none fits: tl_compile
// chooses.
static tl_result tli_choose_parts(tl_run *run, tl_ranks_desc *desc) {
    tl_compiled_ranks ranks;
    tl_result result = tl_compile_ranks(run->env, desc, &ranks);
    desc->micro_batch_count = ranks.micro_batch_count;
    tl_free_compiled_ranks(run->env, &ranks);
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

// Plan the ranks of what a strategy leaves open: as cheap as can be, and with fewest bytes where that does not
// fit.
static tl_result tli_compile_open(tl_run *run, tl_ranks_desc *desc) {
    tli_quiet quiet;
    tl_result result;
    tl_precision precision = tli_resolve_precision(run->desc.strategy->precision, run->desc.kernel_precisions);
    if (!run->desc.strategy->enable_fusion && precision == TL_PRECISION_SINGLE)
        return tli_plan_shared(run, desc);
    quiet = tli_begin_quiet(run->env);
    result = desc->micro_batch_count ? TL_OK : tli_choose_parts(run, desc);
    if (!result) result = tli_compile_and_cut(run, TL_MEMORY_POOLED, desc);
    tli_end_quiet(&quiet, result == TL_ERROR_INFEASIBLE ? TL_OK : result);
    if (result != TL_ERROR_INFEASIBLE) return result;
    return tli_compile_and_cut(run, TL_MEMORY_MINIMAL_PEAK, desc);
}

// The micro-batches of a training step that a pipeline has under way. Model parallelism takes one after the
// other.
static int32_t tli_count_step_batches(const tl_run *run) {
    uint64_t steps = run->desc.strategy->gradient.accumulation_steps;
    if (run->desc.strategy->parallelism.kind == TL_PARALLELISM_MODEL || !steps) return 1;
    return steps < TLI_MOST_SLOTS ? (int32_t)steps : TLI_MOST_SLOTS;
}

// The micro-batches that the ranks of a desc share: in automatic every rank brings as many.
static int32_t tli_count_shared_batches(const tl_run *run, int32_t ranks) {
    int32_t count = tli_count_step_batches(run);
    if (!tli_is_automatic(run)) return count;
    return ranks <= INT32_MAX / count ? ranks * count : INT32_MAX;
}

// Plan the stages of a strategy and take that of this rank.
static tl_result tli_compile_stages(tl_run *run, int32_t rank_count) {
    const tl_strategy *strategy = run->desc.strategy;
    const tl_compiled_ranks *ranks = &run->own_ranks;
    tli_budget budget = tli_arena_budget(run);
    tl_ranks_desc desc;
    tl_result result;
    if (!tli_can_be_cut(run))
        return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), TLI_RULE(STRATEGY_OF_RANKS_IS_LAZY));
    tli_zero(&desc, sizeof desc);
    desc.graph = run->graph;
    desc.rank_count = rank_count;
    desc.micro_batch_count = tli_count_shared_batches(run, rank_count);
    desc.may_split = run->desc.may_split;
    desc.split_cost = run->desc.split_cost;
    desc.work_limit = run->desc.work_limit;
    if (desc.may_split && !strategy->gradient.accumulation_steps) desc.micro_batch_count = 0;
    desc.inference = run->inference;
    desc.weights_apart = 1;
    desc.keep_all = !strategy->gradient.checkpointed && !run->inference;
    if (budget.is_limited) {
        uint64_t bytes = tli_add_capped(budget.bytes, budget.base_bytes);
        desc.base_bytes = budget.base_bytes;
        desc.budget_bytes = bytes && !budget.is_over ? bytes : 1;
    }
    desc.device = run->desc.device;
    desc.host_budget_bytes = budget.host_bytes;
    desc.link = run->desc.transport->link;
    desc.alignment_bytes = run->limits.alignment_bytes;
    desc.block_bytes = tli_run_cut(run);
    result = tli_compile_open(run, &desc);
    if (result) return result;
    if (run->own_compiled.choice.fused_count && run->desc.random)
        return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                        TLI_RULE(FUSION_RANDOM_HOOK_SEES_NODES_IN_ORDER));
    if (tli_count_step_batches(run) > 1)
        run->desc.repeat_count = ranks->ranks[0].compiled.plan.repeat_count;
    return tli_use_compiled(run, &ranks->ranks[run->desc.transport->rank % ranks->rank_count].compiled);
}

// Take the compiled plan that was given, or compile what the strategy leaves open.
static tl_result tli_take_compiled(tl_run *run) {
    tl_run_desc *desc = &run->desc;
    const tl_compiled_plan *compiled = desc->compiled;
    int32_t sharing = tli_count_sharing_ranks(run);
    tli_rule why = compiled ? tli_find_compiled_rule(run) : TLI_NO_RULE;
    tl_result result = TL_OK;
    if (desc->precision && (!desc->strategy || desc->strategy->precision != TL_PRECISION_MIXED))
        why = TLI_RULE(PRECISION_BUT_STRATEGY_IS_NOT_MIXED);
    if (why) return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), why);
    if (sharing > 1) return tli_compile_stages(run, sharing);
    if (!compiled && !tli_is_open(run)) return TL_OK;
    if (!compiled) {
        result = tli_compile_strategy(run);
        compiled = &run->own_compiled;
    } else {
        run->is_online = 0;
    }
    if (result) return result;
    if (compiled->choice.fused_count && desc->random)
        return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                        TLI_RULE(FUSION_RANDOM_HOOK_SEES_NODES_IN_ORDER));
    if (compiled->plan.repeat_count > 1) {
        if (desc->repeat_count && desc->repeat_count != compiled->plan.repeat_count)
            return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                                   TLI_RULE(REPEAT_COUNT_IS_NOT_THAT_OF_THE_PARTS),
                                   (uint64_t)desc->repeat_count, (uint64_t)compiled->plan.repeat_count);
        desc->repeat_count = compiled->plan.repeat_count;
    }
    return tli_use_compiled(run, compiled);
}

static void tli_take_compiled_plan(tl_run *run) {
    run->plan = run->compiled->plan;
    run->owns_plan = 0;
}

TLI_IMPL const tl_compiled_plan *tl_find_compiled_plan(const tl_run *run) {
    TL_ASSERT(run);
    return run->compiled;
}

TLI_IMPL const tl_parallel_plan *tl_find_parallel_plan(const tl_run *run) {
    TL_ASSERT(run);
    return run->own_ways.choice_count ? &run->own_ways : NULL;
}
#else
static void tli_take_compiled_plan(tl_run *run) { (void)run; }

static tl_result tli_take_compiled(tl_run *run) {
    if (!run->desc.compiled && !run->desc.may_split && !run->desc.precision) return TL_OK;
    return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), TLI_RULE(COMPILED_WAS_LEFT_OUT));
}
#endif
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
