#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: how they share a batch --
//
//     4 replicas of 1 stage      0 | 1 | 2 | 3
//     2 replicas of 2 stages     0 1 | 2 3        in every order of calls
//     1 replica of 4 stages      0 1 2 3
//
// Every way is planned with its part of half the work, the fastest once more with all of it: it is not slower
// than asked for by itself.
//
//     time   |..... bound .....|. runs again .|. bubble .|. communication .|

#define TLI_MOST_CHUNKS 4           // of interleaved pipelines that are looked at

typedef struct tli_way {
    int32_t  replicas, stages, chunks;
    tl_pipeline pipeline;
} tli_way;

typedef struct tli_ways {
    tl_env  *env;                   // a copy of the caller's: what does not fit is not logged
    const tl_ranks_desc *desc;
    const tl_graph *graph;          // that is cut
    tl_parallel_plan  *plan;
    tl_compiled_ranks *best;        // of plan->best
    int32_t  capacity;              // of plan->choices
    int32_t  way_count;             // of all that there are
    int32_t  node_count;            // that are no inputs: each stage has one at least
    uint64_t cost;                  // of a micro-batch of which nothing runs again
    uint64_t least_bytes;           // of all ways
} tli_ways;

static tl_result tli_fail_ways(const tli_ways *w, tl_result result, tli_rule rule) {
    return tli_fail(w->env, result, TLI_IN(COMPILE_PARALLEL), rule);
}

static int32_t tli_share_of_way(const tli_ways *w, const tl_parallel_choice *choice) {
    return w->desc->micro_batch_count / choice->replica_count;
}

// The desc of one replica, whose gradients and optimizer are sharded by the zero_stage. One stage takes its
// micro-batches one after the other: it is planned for one, and holds the inputs of no other.
static tl_ranks_desc tli_desc_of_way(const tli_ways *w, const tl_parallel_choice *choice, uint64_t work) {
    tl_ranks_desc desc = *w->desc;
    desc.rank_count = choice->stage_count;
    desc.micro_batch_count = choice->stage_count > 1 ? tli_share_of_way(w, choice) : 1;
    desc.pipeline = choice->pipeline;
    desc.chunk_count = choice->chunk_count;
    desc.work_limit = work ? work : 1;
    if (choice->zero_stage > 0) desc.optimizer_ratio /= choice->replica_count;
    if (choice->zero_stage > 1) desc.gradient_ratio /= choice->replica_count;
    return desc;
}

// What replicas exchange of a rank's weights in a training step. With sharded gradients their sums are taken
// after each micro-batch. 0 = overflow.
static int tli_exchange_of_way(const tli_ways *w, const tl_parallel_choice *choice, uint64_t weights,
                               uint64_t *ns, uint64_t *sent) {
    const tl_link *link = w->desc->link;
    uint64_t p = (uint64_t)choice->replica_count, sums = (uint64_t)tli_share_of_way(w, choice) - 1, part;
    *ns = *sent = 0;
    if (p == 1 || w->desc->inference) return 1;
    if (!tli_find_exchange(link, choice->zero_stage, weights, weights, p, ns, sent)) return 0;
    if (choice->zero_stage < 2) return 1;
    return tli_find_link_time(link, tli_divide_up(weights, p), (p - 1) * sums, &part) &&
           tli_add_u64(*ns, part, ns) && tli_mul_u64(tli_divide_up(weights, p), (p - 1) * sums, &part) &&
           tli_add_u64(*sent, part, sent);
}

// Sum up what the ranks of a replica do: *busy in calls. Each exchanges its gradients after its last call.
// 0 = overflow.
static int tli_sum_way(const tli_ways *w, const tl_compiled_ranks *ranks, tl_parallel_choice *choice,
                       uint64_t *busy) {
    int32_t rank;
    *busy = choice->time_ns = choice->sent_bytes = choice->bytes = 0;
    for (rank = 0; rank < ranks->rank_count; rank++) {
        const tl_rank_plan *plan = &ranks->ranks[rank];
        uint64_t weights, end, sent, bytes;
        if (tl_find_base_bytes(w->env, plan->compiled.graph, 0, 0, &weights) ||
            !tli_exchange_of_way(w, choice, weights, &end, &sent) ||
            !tli_add_u64(end, plan->end_cost, &end) || !tli_add_u64(sent, plan->sent_bytes, &sent) ||
            !tli_add_u64(choice->sent_bytes, sent, &choice->sent_bytes) ||
            !tli_add_u64(*busy, plan->busy_cost, busy) ||
            !tli_add_u64(plan->compiled.plan.arena_bytes, plan->base_bytes, &bytes)) return 0;
        choice->time_ns = tli_larger_u64(choice->time_ns, end);
        choice->bytes = tli_larger_u64(choice->bytes, bytes);
    }
    return tli_mul_u64(choice->sent_bytes, (uint64_t)choice->replica_count, &choice->sent_bytes);
}

// Repeat the plan of a stage alone for all micro-batches of its replica. *free_ns: its time without a link.
// 0 = overflow.
static int tli_repeat_way(tl_compiled_ranks *ranks, const tl_parallel_choice *choice, uint64_t count,
                          uint64_t *free_ns) {
    tl_rank_plan *rank = &ranks->ranks[0];
    uint64_t *costs[8];
    int k;
    if (choice->stage_count > 1) return 1;
    costs[0] = &ranks->cost;    costs[1] = &ranks->bound_cost;
    costs[2] = &rank->end_cost; costs[3] = &rank->busy_cost;
    costs[4] = &rank->compiled.choice.cost;
    costs[5] = &rank->compiled.base_cost;
    costs[6] = &rank->compiled.bound_cost;
    costs[7] = free_ns;
    for (k = 0; k < 8; k++) if (!tli_mul_u64(*costs[k], count, costs[k])) return 0;
    rank->compiled.plan.repeat_count = ranks->micro_batch_count = (int32_t)count;
    ranks->hash = tl_mix_u64(ranks->hash, count);
    tli_name_ranks(ranks);
    return 1;
}

// Price a way that is planned.
static tl_result tli_price_way(const tli_ways *w, const tl_ranks_desc *desc, tl_compiled_ranks *ranks,
                               tl_parallel_choice *choice) {
    tl_ranks_desc alone = *desc;
    uint64_t used, busy, free_ns;
    tl_result result;
    alone.link = NULL;
    result = tli_simulate_ranks(w->env, &alone, ranks);
    free_ns = ranks->cost;
    if (!result) result = tli_simulate_ranks(w->env, desc, ranks);
    if (result) return result;
    if (!tli_repeat_way(ranks, choice, (uint64_t)tli_share_of_way(w, choice), &free_ns) ||
        !tli_sum_way(w, ranks, choice, &busy))
        return tli_fail_ways(w, TL_ERROR_OVERFLOW, TLI_RULE(COST_OF_RANKS_DOES_NOT_FIT_64));
    used = tli_divide_up(busy, (uint64_t)choice->stage_count);
    choice->recompute_ns = used - w->plan->bound_ns;
    choice->bubble_ns = free_ns - used;
    choice->communication_ns = choice->time_ns - free_ns;
    choice->reason = TL_PARALLEL_CHOSEN;
    return TL_OK;
}

// Plan a way within so much work. Where it does not fit, the choice has no time, and the ranks are all zero.
static tl_result tli_plan_way(const tli_ways *w, tl_parallel_choice *choice, uint64_t work,
                              tl_compiled_ranks *ranks) {
    tl_ranks_desc desc = tli_desc_of_way(w, choice, work);
    tl_result result = tli_compile_batches(w->env, &desc, ranks);
    if (result == TL_ERROR_INFEASIBLE) {
        choice->bytes = tl_find_least_budget(&w->env->error);
        return TL_OK;
    }
    desc.graph = w->graph;
    if (!result) result = tli_price_way(w, &desc, ranks, choice);
    if (result) tl_free_compiled_ranks(w->env, ranks);
    return result;
}

// The last zero_stage that shards anything.
static int32_t tli_most_sharded(const tl_ranks_desc *desc, int32_t replicas) {
    if (replicas == 1 || desc->weights_apart || desc->inference) return 0;
    return desc->gradient_ratio > 0 ? 2 : desc->optimizer_ratio > 0;
}

// Keep the ranks of a choice if it is the fastest so far.
static void tli_keep_way(const tli_ways *w, int32_t choice, tl_compiled_ranks *ranks) {
    const tl_parallel_choice *choices = w->plan->choices;
    if (!ranks->memory) return;
    if (w->plan->best >= 0 && choices[choice].time_ns >= choices[w->plan->best].time_ns) {
        tl_free_compiled_ranks(w->env, ranks);
        return;
    }
    tl_free_compiled_ranks(w->env, w->best);
    *w->best = *ranks;
    w->plan->best = choice;
}

// Plan a way with the first zero_stage that fits.
static tl_result tli_look_at_way(tli_ways *w, const tli_way *way) {
    uint64_t work = tli_work_of_ranks(w->desc) / 2 / (uint64_t)w->way_count;
    int32_t most = tli_most_sharded(w->desc, way->replicas), at = w->plan->choice_count;
    tl_parallel_choice choice;
    tl_compiled_ranks ranks;
    tl_result result = TL_OK;
    tli_zero(&ranks, sizeof ranks);
    tli_zero(&choice, sizeof choice);
    choice.kind = way->stages > 1 ? TL_PARALLELISM_PIPELINE : way->replicas > 1 ? TL_PARALLELISM_DATA
                                                                               : TL_PARALLELISM_NONE;
    choice.replica_count = way->replicas;
    choice.stage_count = way->stages;
    choice.chunk_count = way->chunks;
    choice.pipeline = way->pipeline;
    for (choice.reason = TL_PARALLEL_MEMORY; !result && choice.zero_stage <= most; choice.zero_stage++) {
        result = tli_plan_way(w, &choice, work / (uint64_t)(most + 1), &ranks);
        if (choice.reason == TL_PARALLEL_CHOSEN) break;
    }
    if (choice.zero_stage > most) choice.zero_stage = most;
    if (choice.reason == TL_PARALLEL_MEMORY && choice.bytes < w->least_bytes) w->least_bytes = choice.bytes;
    if (!result && !tli_grow(w->env, (void **)&w->plan->choices, &w->capacity, at, at + (int64_t)1,
                             sizeof choice)) result = tli_fail_ranks(w->env);
    if (result) {
        tl_free_compiled_ranks(w->env, &ranks);
        return result;
    }
    w->plan->choices[w->plan->choice_count++] = choice;
    tli_keep_way(w, at, &ranks);
    return TL_OK;
}

// Look at the orders of calls for a number of stages, or only count them.
static tl_result tli_look_at_orders(tli_ways *w, int32_t stages, int only_count) {
    static const tl_pipeline orders[] = { TL_PIPELINE_1F1B, TL_PIPELINE_GPIPE, TL_PIPELINE_INTERLEAVED };
    int32_t replicas = w->desc->rank_count / stages, count = stages > 1 ? 1 + TLI_MOST_CHUNKS : 1, i;
    int32_t share = w->desc->micro_batch_count / replicas;
    tl_result result = TL_OK;
    for (i = 0; i < count && !result; i++) {
        tli_way way;
        way.replicas = replicas;
        way.stages = stages;
        way.chunks = i < 2 ? 1 : i;
        way.pipeline = orders[i < 2 ? i : 2];
        if (way.chunks > w->node_count / stages || (way.chunks > 1 && share % stages)) continue;
        if (only_count) w->way_count++;
        else result = tli_look_at_way(w, &way);
    }
    return result;
}

// Look at every number of replicas that divides the ranks and the micro-batches, or only count the ways.
static tl_result tli_look_at_all_ways(tli_ways *w, int only_count) {
    const tl_ranks_desc *desc = w->desc;
    int32_t stages;
    tl_result result = TL_OK;
    for (stages = 1; stages <= desc->rank_count && stages <= w->node_count && !result; stages++) {
        int32_t replicas = desc->rank_count / stages;
        if (desc->rank_count % stages || desc->micro_batch_count % replicas) continue;
        if (desc->micro_batch_count / replicas >= TLI_MOST_SLOTS) continue;
        result = tli_look_at_orders(w, stages, only_count);
    }
    return result;
}

// Plan the fastest way once more, with all work, and take what costs less.
static tl_result tli_deepen_way(const tli_ways *w) {
    tl_parallel_choice *choice = &w->plan->choices[w->plan->best], deeper = *choice;
    tl_compiled_ranks ranks;
    tl_result result;
    tli_zero(&ranks, sizeof ranks);
    result = tli_plan_way(w, &deeper, tli_work_of_ranks(w->desc), &ranks);
    if (!result && ranks.memory && deeper.time_ns < choice->time_ns) {
        tl_free_compiled_ranks(w->env, w->best);
        *w->best = ranks;
        *choice = deeper;
        return TL_OK;
    }
    tl_free_compiled_ranks(w->env, &ranks);
    return result;
}

// Nothing fits: plan the way that takes the fewest bytes once more, with all work.
static tl_result tli_try_nearest_way(tli_ways *w) {
    int32_t nearest = -1, i;
    tl_parallel_choice deeper;
    tl_compiled_ranks ranks;
    tl_result result;
    for (i = 0; i < w->plan->choice_count; i++) {
        const tl_parallel_choice *choice = &w->plan->choices[i];
        if (choice->bytes && (nearest < 0 || choice->bytes < w->plan->choices[nearest].bytes)) nearest = i;
    }
    if (nearest < 0) return TL_OK;
    deeper = w->plan->choices[nearest];
    tli_zero(&ranks, sizeof ranks);
    result = tli_plan_way(w, &deeper, tli_work_of_ranks(w->desc), &ranks);
    if (deeper.bytes && deeper.bytes < w->least_bytes) w->least_bytes = deeper.bytes;
    if (result || !ranks.memory) return result;
    w->plan->choices[nearest] = deeper;
    w->plan->best = nearest;
    *w->best = ranks;
    return TL_OK;
}

// Say of each way why it is not the fastest.
static void tli_judge_ways(tl_parallel_plan *plan) {
    uint64_t least = plan->choices[plan->best].time_ns;
    int32_t i;
    for (i = 0; i < plan->choice_count; i++) {
        tl_parallel_choice *c = &plan->choices[i];
        uint64_t most = tli_larger_u64(c->recompute_ns, tli_larger_u64(c->bubble_ns, c->communication_ns));
        if (c->reason == TL_PARALLEL_MEMORY || i == plan->best) continue;
        c->reason = TL_PARALLEL_RECOMPUTATION;
        if (c->bubble_ns == most) c->reason = TL_PARALLEL_BUBBLE;
        if (c->communication_ns == most) c->reason = TL_PARALLEL_COMMUNICATION;
        if (c->time_ns == least) c->reason = TL_PARALLEL_EQUAL;
    }
}

static tl_result tli_check_ways(const tli_ways *w) {
    const tl_ranks_desc *desc = w->desc;
    if (desc->ends || desc->ranks || desc->pipeline || desc->chunk_count)
        return tli_fail_ways(w, TL_ERROR_INVALID_ARG, TLI_RULE(WAYS_CHOOSE_ENDS_AND_ORDER));
    if (desc->rank_count < 1)
        return tli_fail_ways(w, TL_ERROR_INVALID_ARG, TLI_RULE(RANK_COUNT_MUST_BE_POSITIVE));
    if (desc->micro_batch_count < 1)
        return tli_fail_ways(w, TL_ERROR_INVALID_ARG, TLI_RULE(MICRO_BATCH_COUNT_MUST_BE_POSITIVE));
    return TL_OK;
}

// Find the time of a training step in which all ranks work throughout, and nothing runs again.
static tl_result tli_bound_ways(tli_ways *w) {
    const tl_ranks_desc *desc = w->desc;
    uint8_t *wanted;
    uint64_t all;
    int32_t id;
    tl_result result = tl_check_graph(w->env, w->graph);
    if (result) return result;
    for (id = 0; id < w->graph->node_count; id++) w->node_count += !w->graph->nodes[id].is_input;
    wanted = (uint8_t *)tli_alloc_array(w->env, (uint64_t)w->graph->node_count, 1);
    if (!wanted) return tli_fail_ranks(w->env);
    w->cost = tli_find_least_cost(w->graph, desc->inference, wanted);
    tli_release(w->env, wanted);
    if (!tli_mul_u64(w->cost, (uint64_t)desc->micro_batch_count, &all))
        return tli_fail_ways(w, TL_ERROR_OVERFLOW, TLI_RULE(COST_OF_RANKS_DOES_NOT_FIT_64));
    w->plan->bound_ns = tli_divide_up(all, (uint64_t)desc->rank_count);
    return TL_OK;
}

static tl_result tli_refuse_ways(const tli_ways *w) {
    tli_sentence s = tli_begin_error(w->env, TL_ERROR_INFEASIBLE, TLI_IN(COMPILE_PARALLEL),
                                     TLI_RULE(NO_CHOICE_FITS), w->desc->budget_bytes, w->least_bytes);
    tli_put_limit(w->env, &s, TL_LIMIT_BUDGET);
    return tli_end_error(w->env, &s, TL_ERROR_INFEASIBLE);
}

static tl_result tli_choose_way(tli_ways *w) {
    tl_result result = tli_check_ways(w);
    if (!result) result = tli_bound_ways(w);
    if (!result) result = tli_look_at_all_ways(w, 1);
    if (!result && !w->way_count)
        return tli_fail_ways(w, TL_ERROR_INVALID_ARG, TLI_RULE(NO_WAY_TO_SHARE_THE_BATCH));
    if (!result) result = tli_look_at_all_ways(w, 0);
    if (result) return result;
    w->plan->is_complete = 1;
    result = w->plan->best < 0 ? tli_try_nearest_way(w) : tli_deepen_way(w);
    if (!result && w->plan->best < 0) return tli_refuse_ways(w);
    if (result) return result;
    tli_judge_ways(w->plan);
    return result;
}

// Choose a way for the micro-batches that the desc names.
static tl_result tli_compile_ways(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks,
                                  tl_parallel_plan *choices) {
    tli_quiet quiet = tli_begin_quiet(env);
    tl_env copy;
    tli_ways w;
    tl_result result;
    tli_zero(&copy, sizeof copy);
    if (env) copy = *env;
    tli_zero(ranks, sizeof *ranks);
    tli_zero(choices, sizeof *choices);
    tli_zero(&w, sizeof w);
    choices->best = -1;
    w.env = &copy;
    w.desc = desc;
    w.graph = desc->compiled ? desc->compiled->graph : desc->graph;
    w.plan = choices;
    w.best = ranks;
    w.least_bytes = UINT64_MAX;
    result = tli_choose_way(&w);
    if (result) tl_free_compiled_ranks(env, ranks);
    if (result) tl_free_parallel_plan(env, choices);
    if (result && env) env->error = copy.error;
    tli_end_quiet(&quiet, result);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
