#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- automatic: one way to split the work --
//
//     time   |..... bound .....|. idle .|. bubble .|. communication .|
//
// bound: all work on all ranks. idle: the same work on those that are used. bubble: the schedule without a link
// is longer than that. communication: with it, and with the exchange of gradients, it is longer again.

typedef struct tli_automatic {
    tl_env   env;                   // the caller's, but silent
    const tl_parallel_desc *desc;
    tl_parallel_plan *plan;
    int32_t  capacity;              // of plan->choices
    tl_unit *units;                 // [unit_count] with parameter_bytes as tli_auto_bytes counts them
    uint64_t *forward, *backward, *output, *activation;     // [unit_count] of the stages that are simulated
    uint64_t *weights, *held;       // [unit_count] by rank: bytes of weights; of all that weights bring
    uint64_t cost, least_bytes;     // of all units; of all choices
    uint64_t work_limit;
} tli_automatic;

static uint64_t tli_auto_ideal(const tli_automatic *a, uint64_t ranks) {
    return tli_divide_up(a->cost * (uint64_t)a->desc->micro_batch_count, ranks);
}

static int32_t tli_auto_share(const tli_automatic *a, int32_t replicas) {
    return (int32_t)tli_divide_up((uint64_t)a->desc->micro_batch_count, (uint64_t)replicas);
}

// Bytes that weights bring to a rank: themselves, gradients, the optimizer's state.
static uint64_t tli_auto_bytes(const tli_automatic *a, const tl_parallel_choice *choice, uint64_t weights) {
    uint64_t optimizer = weights * a->desc->optimizer_multiplier, gradients = weights;
    uint64_t p = (uint64_t)choice->replica_count;
    if (choice->zero_stage > 0) optimizer = tli_divide_up(optimizer, p);
    if (choice->zero_stage > 1) gradients = tli_divide_up(gradients, p);
    return weights + gradients + optimizer;
}

static int tli_auto_fits(const tli_automatic *a, const tl_parallel_choice *choice) {
    return !a->desc->budget_bytes || choice->bytes <= a->desc->budget_bytes;
}

// Divide a time into its parts. free_ns: what it is without a link.
static void tli_auto_divide(const tli_automatic *a, tl_parallel_choice *choice, uint64_t ranks,
                            uint64_t free_ns) {
    uint64_t used = tli_auto_ideal(a, ranks);
    choice->idle_ns = used - a->plan->bound_ns;
    choice->bubble_ns = free_ns - used;
    choice->communication_ns = choice->time_ns - free_ns;
}

// One stage: the whole network on each rank. 0 = overflow.
static int tli_auto_price_whole(tli_automatic *a, tl_parallel_choice *choice) {
    uint64_t activation = 0, weights = 0, exchange, sent, p = (uint64_t)choice->replica_count;
    uint64_t free_ns = a->cost * (uint64_t)tli_auto_share(a, choice->replica_count);
    int32_t i;
    choice->bytes = a->desc->rank_bytes;
    for (i = 0; i < a->desc->unit_count; i++) {
        weights += a->desc->units[i].parameter_bytes;
        activation += a->desc->units[i].activation_bytes;
        choice->bytes += tli_auto_bytes(a, choice, a->desc->units[i].parameter_bytes);
    }
    choice->bytes += activation;
    if (!tli_auto_fits(a, choice)) return 1;
    if (!tli_find_exchange(a->desc->link, choice->zero_stage, weights, weights, p, &exchange, &sent) ||
        !tli_add_u64(free_ns, exchange, &choice->time_ns) ||
        !tli_mul_u64(sent, p, &choice->sent_bytes)) return 0;
    tli_auto_divide(a, choice, p, free_ns);
    return 1;
}

// Sum what the stages of a partition do, and what their ranks hold.
static void tli_auto_fill_stages(tli_automatic *a, const tl_parallel_choice *choice,
                                 const tl_partition *parts) {
    int32_t s, i;
    size_t bytes = (size_t)a->desc->unit_count * sizeof(uint64_t);
    tli_zero(a->forward, bytes);
    tli_zero(a->backward, bytes);
    tli_zero(a->activation, bytes);
    tli_zero(a->weights, bytes);
    tli_zero(a->held, bytes);
    for (s = 0; s < parts->stage_count; s++) {
        int32_t rank = s % choice->stage_count;
        a->output[s] = a->units[parts->stages[s].end_unit - 1].output_bytes;
        for (i = parts->stages[s].first_unit; i < parts->stages[s].end_unit; i++) {
            a->forward[s] += a->units[i].forward_ns;
            a->backward[s] += a->units[i].backward_ns;
            a->activation[s] += a->units[i].activation_bytes;
            a->weights[rank] += a->desc->units[i].parameter_bytes;
            a->held[rank] += a->units[i].parameter_bytes;
        }
    }
}

// Find the time of a choice, its bytes and what it sends, from a simulated schedule and the exchange of
// gradients, which begins on each rank after its last call. 0 = overflow.
static int tli_auto_exchange(const tli_automatic *a, const tl_pipeline_report *report,
                             tl_parallel_choice *choice) {
    uint64_t p = (uint64_t)choice->replica_count, m = (uint64_t)a->desc->micro_batch_count, calls = 0, ring = 0;
    uint64_t share = (uint64_t)tli_auto_share(a, choice->replica_count), exchange, sent, bytes;
    int32_t rank;
    choice->time_ns = choice->bytes = 0;
    for (rank = 0; rank < choice->stage_count; rank++) {
        uint64_t weights = a->weights[rank], end = report->ranks[rank].end_ns;
        if (!tli_find_exchange(a->desc->link, choice->zero_stage, weights, weights, p, &exchange, &sent) ||
            !tli_add_u64(exchange, end, &exchange) || !tli_add_u64(ring, sent, &ring)) return 0;
        choice->time_ns = tli_larger_u64(choice->time_ns, exchange);
        calls += report->ranks[rank].sent_bytes / share;
        bytes = a->desc->rank_bytes + a->held[rank] + report->ranks[rank].peak_bytes;
        choice->bytes = tli_larger_u64(choice->bytes, bytes);
    }
    return tli_mul_u64(ring, p, &ring) && tli_mul_u64(calls, m, &calls) &&
           tli_add_u64(ring, calls, &choice->sent_bytes);
}

// Simulate the stages of a partition with and without a link. If they fit, they replace a choice that has no
// time yet, or a longer one.
static tl_result tli_auto_simulate(tli_automatic *a, const tl_partition *parts, tl_parallel_choice *choice) {
    tl_parallel_choice found = *choice;
    tl_pipeline_report report;
    tl_pipeline_desc desc;
    tl_result result;
    int is_first;
    tli_auto_fill_stages(a, choice, parts);
    tli_zero(&desc, sizeof desc);
    desc.kind = choice->pipeline;
    desc.rank_count = choice->stage_count;
    desc.chunk_count = choice->chunk_count;
    desc.micro_batch_count = tli_auto_share(a, choice->replica_count);
    desc.forward_ns = a->forward;
    desc.backward_ns = a->backward;
    desc.output_bytes = a->output;
    desc.activation_bytes = a->activation;
    desc.link = a->desc->link;
    result = tl_simulate_pipeline(&a->env, &desc, &report);
    if (result) return result;
    if (!tli_auto_exchange(a, &report, &found)) result = TL_ERROR_OVERFLOW;
    a->plan->work += 2 * (uint64_t)report.event_count * (uint64_t)desc.rank_count;
    tl_free_pipeline_report(&a->env, &report);
    is_first = choice->reason == TL_PARALLEL_MEMORY;
    if (result || (!is_first && found.time_ns >= choice->time_ns)) return result;
    if (!tli_auto_fits(a, &found)) {
        if (is_first) choice->bytes = found.bytes;
        return TL_OK;
    }
    desc.link = NULL;
    result = tl_simulate_pipeline(&a->env, &desc, &report);
    if (result) return result;
    tli_auto_divide(a, &found, (uint64_t)found.replica_count * (uint64_t)found.stage_count, report.total_ns);
    tl_free_pipeline_report(&a->env, &report);
    *choice = found;
    choice->reason = TL_PARALLEL_CHOSEN;
    return TL_OK;
}

// Several stages: with both objectives, what the simulation finds better. Of interleaved chunks the bytes are
// known only when they are simulated.
static tl_result tli_auto_price_stages(tli_automatic *a, tl_parallel_choice *choice) {
    int interleaved = choice->pipeline == TL_PIPELINE_INTERLEAVED, round;
    tl_partition_desc desc;
    tl_partition parts;
    tl_result result = TL_OK;
    tli_zero(&desc, sizeof desc);
    desc.units = a->units;
    desc.unit_count = a->desc->unit_count;
    desc.rank_count = desc.stage_count = choice->stage_count * choice->chunk_count;
    desc.budget_bytes = interleaved ? 0 : a->desc->budget_bytes;
    desc.micro_batch_count = tli_auto_share(a, choice->replica_count);
    desc.pipeline = interleaved ? TL_PIPELINE_1F1B : choice->pipeline;
    desc.rank_bytes = a->desc->rank_bytes;
    desc.link = a->desc->link;
    desc.work_limit = a->work_limit > a->plan->work ? a->work_limit - a->plan->work : 1;
    for (round = 0; round < TL_PARTITION_COUNT && !result; round++) {
        desc.objective = (tl_partition_objective)round;
        result = tl_plan_partition(&a->env, &desc, &parts);
        if (result == TL_ERROR_INFEASIBLE) choice->bytes = tl_find_least_budget(&a->env.error);
        if (result) break;
        a->plan->work += parts.work;
        result = tli_auto_simulate(a, &parts, choice);
        tl_free_partition(&a->env, &parts);
    }
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

// Price a choice with the first zero_stage that fits. One that does not fit has no time.
static tl_result tli_auto_price(tli_automatic *a, tl_parallel_choice *choice) {
    int32_t most = choice->replica_count > 1 ? 2 : 0, i;
    tl_result result = TL_OK;
    for (choice->zero_stage = 0; ; choice->zero_stage++) {
        for (i = 0; i < a->desc->unit_count; i++)
            a->units[i].parameter_bytes = tli_auto_bytes(a, choice, a->desc->units[i].parameter_bytes);
        if (choice->stage_count > 1) result = tli_auto_price_stages(a, choice);
        else if (!tli_auto_price_whole(a, choice)) result = TL_ERROR_OVERFLOW;
        if (result || tli_auto_fits(a, choice) || choice->zero_stage == most) return result;
    }
}

// -- automatic: all ways --

static tl_result tli_auto_add(tli_automatic *a, const tl_parallel_choice *choice) {
    tl_parallel_plan *plan = a->plan;
    int32_t count = plan->choice_count;
    if (!tli_grow(&a->env, (void **)&plan->choices, &a->capacity, count, count + (int64_t)1,
                  sizeof *plan->choices)) return TL_ERROR_NO_MEMORY;
    plan->choices[plan->choice_count++] = *choice;
    if (choice->bytes < a->least_bytes) a->least_bytes = choice->bytes;
    return TL_OK;
}

#define TLI_WAY_WORK 1000            // that a choice counts for, besides what it cuts and simulates

// Look at one number of replicas and stages with one schedule.
static tl_result tli_auto_look(tli_automatic *a, int32_t replicas, int32_t stages, tl_pipeline pipeline,
                               int32_t chunks) {
    tl_parallel_choice choice;
    tl_result result;
    tli_zero(&choice, sizeof choice);
    if (replicas > 1) choice.kind = TL_PARALLELISM_DATA;
    if (stages > 1) choice.kind = TL_PARALLELISM_PIPELINE;
    choice.reason = TL_PARALLEL_MEMORY;         // until it has a time
    choice.replica_count = replicas;
    choice.stage_count = stages;
    choice.pipeline = pipeline;
    choice.chunk_count = chunks;
    if (a->desc->kinds && !(a->desc->kinds >> choice.kind & 1)) return TL_OK;
    if (a->plan->work >= a->work_limit) { a->plan->is_complete = 0; return TL_OK; }
    a->plan->work += TLI_WAY_WORK;
    result = tli_auto_price(a, &choice);
    if (result == TL_ERROR_UNSUPPORTED) { a->plan->is_complete = 0; return TL_OK; }
    return result ? result : tli_auto_add(a, &choice);
}

static tl_result tli_auto_look_at_stages(tli_automatic *a, int32_t replicas, int32_t stages) {
    int32_t share = tli_auto_share(a, replicas), most = a->desc->chunk_limit ? a->desc->chunk_limit : 4, chunks;
    tl_result result = tli_auto_look(a, replicas, stages, TL_PIPELINE_1F1B, 1);
    if (stages == 1 || result) return result;
    result = tli_auto_look(a, replicas, stages, TL_PIPELINE_GPIPE, 1);
    for (chunks = 2; chunks <= most && chunks <= a->desc->unit_count / stages && !result; chunks++)
        if (share % stages == 0) result = tli_auto_look(a, replicas, stages, TL_PIPELINE_INTERLEAVED, chunks);
    return result;
}

static tl_result tli_auto_look_at_graph(tli_automatic *a) {
    const tl_parallel_desc *desc = a->desc;
    tl_parallel_choice choice;
    tl_placement placement;
    uint64_t m = (uint64_t)desc->micro_batch_count, used = 0;
    int32_t i;
    tl_result result;
    if (!desc->graph || (desc->kinds && !(desc->kinds >> TL_PARALLELISM_MODEL & 1))) return TL_OK;
    tli_zero(&choice, sizeof choice);
    choice.kind = TL_PARALLELISM_MODEL;
    choice.replica_count = choice.chunk_count = 1;
    result = tl_plan_placement(&a->env, desc->graph, &placement);
    if (result == TL_ERROR_INFEASIBLE) {
        choice.bytes = tl_find_least_budget(&a->env.error);
        return tli_auto_add(a, &choice);
    }
    if (result) return result;
    for (i = 0; i < desc->rank_count; i++) {
        used += placement.busy_ns[i] > 0;
        choice.bytes = tli_larger_u64(choice.bytes, placement.rank_bytes[i]);
    }
    choice.stage_count = (int32_t)used;
    if (!tli_mul_u64(placement.total_ns, m, &choice.time_ns) ||
        !tli_mul_u64(placement.sent_bytes, m, &choice.sent_bytes)) result = TL_ERROR_OVERFLOW;
    tli_auto_divide(a, &choice, used ? used : 1, choice.time_ns);
    tl_free_placement(&a->env, &placement);
    return result ? result : tli_auto_add(a, &choice);
}

// Say of each choice why it is not the best one.
static void tli_auto_judge(tli_automatic *a) {
    tl_parallel_plan *plan = a->plan;
    int32_t i;
    plan->best = -1;
    for (i = 0; i < plan->choice_count; i++) {
        tl_parallel_choice *c = &plan->choices[i];
        uint64_t most = tli_larger_u64(c->idle_ns, tli_larger_u64(c->bubble_ns, c->communication_ns));
        c->reason = TL_PARALLEL_IDLE;
        if (c->bubble_ns == most) c->reason = TL_PARALLEL_BUBBLE;
        if (c->communication_ns == most) c->reason = TL_PARALLEL_COMMUNICATION;
        if (!tli_auto_fits(a, c)) c->reason = TL_PARALLEL_MEMORY;
        else if (plan->best < 0 || c->time_ns < plan->choices[plan->best].time_ns) plan->best = i;
    }
    for (i = 0; i < plan->choice_count && plan->best >= 0; i++) {
        tl_parallel_choice *c = &plan->choices[i];
        if (c->reason == TL_PARALLEL_MEMORY || c->time_ns > plan->choices[plan->best].time_ns) continue;
        c->reason = i == plan->best ? TL_PARALLEL_CHOSEN : TL_PARALLEL_EQUAL;
    }
}

// -- automatic: what it takes --

static tl_result tli_parallel_check(tl_env *env, const tl_parallel_desc *desc) {
    tli_function in = TLI_IN(PLAN_PARALLEL);
    uint32_t known = 1u << TL_PARALLELISM_NONE | 1u << TL_PARALLELISM_DATA | 1u << TL_PARALLELISM_PIPELINE;
    if (desc->graph) known |= 1u << TL_PARALLELISM_MODEL;
    if (!desc->units || desc->unit_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(UNIT_COUNT_MUST_BE_POSITIVE));
    if (desc->rank_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(RANK_COUNT_MUST_BE_POSITIVE));
    if (desc->micro_batch_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(MICRO_BATCH_COUNT_MUST_BE_POSITIVE));
    if (desc->link && !desc->link->bytes_per_second)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(LINK_RATE_MUST_BE_POSITIVE));
    if (desc->kinds & ~known) return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(KINDS_UNKNOWN_OR_NONE));
    if (desc->chunk_limit < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(CHUNK_LIMIT_MUST_BE_NOT_NEGATIVE));
    if (desc->graph && (desc->graph->rank_count != desc->rank_count || desc->graph->ranks ||
                        desc->graph->budget_bytes != desc->budget_bytes || desc->graph->link != desc->link))
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(GRAPH_OF_OTHER_RANKS));
    return TL_OK;
}

// Sum the costs of the units, and check that what is added up later fits 62 bits and that the nodes of the
// graph cost as much as the units.
static tl_result tli_auto_sum(tli_automatic *a, tl_env *env) {
    const tl_parallel_desc *desc = a->desc;
    uint64_t most = UINT64_C(1) << 62, bytes = desc->rank_bytes, share, graph = 0;
    int32_t i, fits = desc->optimizer_multiplier < most;
    for (i = 0; i < desc->unit_count && fits; i++) {
        const tl_unit *unit = &desc->units[i];
        fits = tli_add_u64(a->cost, unit->forward_ns, &a->cost) &&
               tli_add_u64(a->cost, unit->backward_ns, &a->cost) &&
               tli_mul_u64(unit->parameter_bytes, desc->optimizer_multiplier + 2, &share) &&
               tli_add_u64(bytes, share, &bytes) && tli_add_u64(bytes, unit->activation_bytes, &bytes) &&
               bytes <= most;
    }
    if (!fits || !tli_mul_u64(a->cost, (uint64_t)desc->micro_batch_count, &share) || share > most)
        return tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(PLAN_PARALLEL), TLI_RULE(REPLICA_SUMS_MUST_FIT_62_BITS));
    for (i = 0; desc->graph && desc->graph->nodes && i < desc->graph->node_count; i++)
        graph += desc->graph->nodes[i].cost_ns;
    if (desc->graph && graph != a->cost)
        return tli_fail_values(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_PARALLEL), TLI_RULE(GRAPH_OF_OTHER_COST),
                               graph, a->cost);
    return TL_OK;
}

static tl_result tli_auto_run(tli_automatic *a) {
    const tl_parallel_desc *desc = a->desc;
    int32_t most = desc->rank_count, p, s;
    tl_result result = TL_OK;
    if (most > desc->micro_batch_count) most = desc->micro_batch_count;
    a->plan->bound_ns = tli_auto_ideal(a, (uint64_t)desc->rank_count);
    a->plan->is_complete = 1;
    for (p = 1; p <= most && !result && a->plan->is_complete; p++) result = tli_auto_look_at_stages(a, p, 1);
    if (!result) result = tli_auto_look_at_graph(a);
    for (s = 2; s <= desc->rank_count && s <= desc->unit_count && !result && a->plan->is_complete; s++)
        for (p = 1; p <= most && p <= desc->rank_count / s && !result && a->plan->is_complete; p++)
            result = tli_auto_look_at_stages(a, p, s);
    tli_auto_judge(a);
    return result;
}

static tl_result tli_auto_plan(tli_automatic *a, tl_env *env) {
    size_t count = (size_t)a->desc->unit_count;
    tl_result result;
    tli_sentence s;
    a->units = (tl_unit *)tli_alloc_array(env, count, sizeof *a->units);
    a->forward = (uint64_t *)tli_alloc_array(env, 6 * (uint64_t)count, sizeof(uint64_t));
    if (!a->units || !a->forward)
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_PARALLEL), TLI_RULE(NO_MEMORY_FOR_CHOICES));
    a->backward = a->forward + count;
    a->output = a->backward + count;
    a->activation = a->output + count;
    a->weights = a->activation + count;
    a->held = a->weights + count;
    result = tli_auto_sum(a, env);
    if (result) return result;
    tli_copy(a->units, a->desc->units, count * sizeof *a->units);
    result = tli_auto_run(a);
    if (result == TL_ERROR_NO_MEMORY)
        return tli_fail(env, result, TLI_IN(PLAN_PARALLEL), TLI_RULE(NO_MEMORY_FOR_CHOICES));
    if (result == TL_ERROR_OVERFLOW)
        return tli_fail(env, result, TLI_IN(PLAN_PARALLEL), TLI_RULE(REPLICA_SUMS_MUST_FIT_62_BITS));
    if (result && env) env->error = a->env.error;       // of the graph
    if (result || a->plan->best >= 0) return result;
    s = tli_begin_error(env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_PARALLEL), TLI_RULE(NO_CHOICE_FITS),
                        a->desc->budget_bytes, a->least_bytes);
    tli_put_limit(env, &s, TL_LIMIT_BUDGET);
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

#define TLI_PARALLEL_WORK 500000000     // calls and stages, where the desc has no limit

TLI_IMPL tl_result tl_plan_parallel(tl_env *env, const tl_parallel_desc *desc, tl_parallel_plan *plan) {
    tli_automatic a;
    tl_result result;
    TL_ASSERT(desc && plan);
    tli_zero(plan, sizeof *plan);
    result = tli_parallel_check(env, desc);
    if (result) return result;
    tli_zero(&a, sizeof a);
    if (env) a.env = *env;
    a.env.log = NULL;
    a.desc = desc;
    a.plan = plan;
    a.least_bytes = UINT64_MAX;
    a.work_limit = desc->work_limit ? desc->work_limit : TLI_PARALLEL_WORK;
    result = tli_auto_plan(&a, env);
    if (result) tl_free_parallel_plan(env, plan);
    tli_release(env, a.units);
    tli_release(env, a.forward);
    return result;
}

TLI_IMPL void tl_free_parallel_plan(tl_env *env, tl_parallel_plan *plan) {
    TL_ASSERT(plan);
    tli_release(env, plan->choices);
    tli_zero(plan, sizeof *plan);
}

static const char *const tli_parallel_reason_names[] = { TL_PARALLEL_REASONS(TLI_NAME) };

TLI_IMPL const char *tl_name_parallel_reason(tl_parallel_reason reason) {
    return tli_name(tli_parallel_reason_names, TL_PARALLEL_REASON_COUNT, (int64_t)reason);
}

#ifndef TL_NO_TEXT
static void tli_put_way_name(tli_writer *w, const char *word, size_t width) {
    size_t length = tli_text_length(word);
    tli_put(w, word);
    for (; length < width; length++) tli_put(w, " ");
}

static void tli_put_way(tli_writer *w, const tl_parallel_choice *c) {
    tli_put_way_name(w, tl_name_parallelism(c->kind), 9);
    tli_put_way_name(w, c->kind == TL_PARALLELISM_PIPELINE ? tl_name_pipeline(c->pipeline) : "-", 12);
    tli_put_column(w, (uint64_t)c->replica_count, 4);
    tli_put_column(w, (uint64_t)c->stage_count, 5);
    tli_put_column(w, (uint64_t)c->chunk_count, 3);
    tli_put_column(w, (uint64_t)c->zero_stage, 3);
    tli_put_column(w, c->time_ns, 15);
    tli_put_column(w, c->communication_ns, 15);
    tli_put_column(w, c->bubble_ns, 15);
    tli_put_column(w, c->idle_ns, 15);
    tli_put_column(w, c->recompute_ns, 15);
    tli_put_column(w, c->sent_bytes, 15);
    tli_put_column(w, c->bytes, 15);
    tli_put(w, "  ");
    tli_put(w, tl_name_parallel_reason(c->reason));
    tli_put(w, "\n");
}

TLI_IMPL size_t tl_print_parallel_plan(const tl_parallel_plan *plan, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t i;
    TL_ASSERT(plan);
    tli_put(&w, "kind     schedule       p    S  v  z        time_ns  communication         bubble");
    tli_put(&w, "           idle      recompute     sent_bytes     rank_bytes  reason\n");
    if (plan->choice_count) tli_put_way(&w, &plan->choices[plan->best]);
    for (i = 0; i < plan->choice_count; i++) if (i != plan->best) tli_put_way(&w, &plan->choices[i]);
    return tli_finish(&w);
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
