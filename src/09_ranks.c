#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: the plan of each --
//
// f micro-batches are in flight at a rank, so what one of them holds at the turn between its forward and its
// backward counts f times, and what it takes beyond that once. Candidates for the body:
//
//     keep all                             least cost, most held
//     tl_plan_remat at several budgets     what is held follows from the peak
//     drop all + the same                  the forward part holds what it received and what may not run again,
//                                          all else runs again
//
// Each is woven and measured; those that fit are placed in the order of their cost until one fits with places.

#define TLI_RANK_TRIES 8    // budgets of tl_plan_remat

typedef struct tli_rank_search {
    tl_env                *env;
    const tl_ranks_desc   *desc;
    const tl_graph        *graph;       // of the stage
    const tl_pipeline_event *events;
    int32_t                event_count;
    uint8_t               *messages;    // [nodes] TLI_MESSAGE_
    uint8_t               *ran;         // [nodes] scratch of tli_find_turn
    uint8_t               *keep;        // [tensors] scratch
    tl_device              device;      // the alignment
    uint64_t               room;        // bytes of the arena; UINT64_MAX = no limit
    uint64_t               work_limit;  // of one plan
    tl_plan                best;        // with places; no steps: none
    uint64_t               best_cost, best_held;
    uint64_t               least;       // arena of the candidate that takes the fewest bytes
    uint64_t               bound_cost;  // of the calls of one micro-batch
} tli_rank_search;

static void tli_free_body(tl_env *env, tli_body *body) {
    tli_release(env, body->steps);
    tli_zero(body, sizeof *body);
}

// Bytes that are live where the forward part of a body ends, graph inputs left out.
static tl_result tli_measure_held(const tli_rank_search *s, const tli_body *body, uint64_t *held) {
    tl_plan plan;
    tli_sim sim;
    tl_result result;
    int32_t i;
    tli_zero(&plan, sizeof plan);
    plan.inference = s->desc->inference;
    result = tli_init_sim(s->env, &sim, TLI_IN(COMPILE_RANKS), s->graph, NULL, &plan, NULL);
    *held = 0;
    if (!result) *held = sim.live_bytes;
    for (i = 0; i < body->turn && !result; i++) result = tli_sim_step(&sim, &body->steps[i]);
    if (!result) *held = sim.live_bytes - *held;
    tli_free_sim(&sim);
    return result;
}

// Place a plan that fits by its live bytes, and take it if it fits with places and costs less.
static tl_result tli_place_rank_plan(tli_rank_search *s, tl_plan *plan, uint64_t cost, uint64_t held) {
    tl_places_desc places;
    tl_result result;
    tli_zero(&places, sizeof places);
    places.graph = s->graph;
    places.device = &s->device;
    places.block_bytes = s->desc->block_bytes;
    places.work_limit = s->work_limit;
    result = tl_plan_places(s->env, &places, plan, NULL);
    if (result) return result;
    if (plan->arena_bytes < s->least) s->least = plan->arena_bytes;
    if (plan->arena_bytes > s->room) return TL_OK;
    tl_free_plan(s->env, &s->best);
    s->best = *plan;
    tli_zero(plan, sizeof *plan);
    s->best_cost = cost;
    s->best_held = held;
    return TL_OK;
}

// Weave a body, and take its plan if it is cheaper than the best and fits. A body whose backwards begin before
// all is sent cannot be woven: it is none.
static tl_result tli_try_body(tli_rank_search *s, const tli_body *body) {
    tli_quiet quiet = tli_begin_quiet(s->env);
    tl_plan plan;
    uint64_t held = 0;
    tl_result result = tli_weave_plan(s->env, s->graph, body, s->messages, s->events, s->event_count,
                                      s->desc->micro_batch_count, s->desc->inference, &plan);
    if (!result) result = tl_measure_plan(s->env, s->graph, NULL, &plan);
    if (!result) result = tli_measure_held(s, body, &held);
    tli_end_quiet(&quiet, result == TL_ERROR_INVALID_PLAN ? TL_OK : result);
    if (!result && (!s->best.step_count || plan.cost < s->best_cost)) {
        if (plan.peak_bytes <= s->room || plan.peak_bytes < s->least)
            result = tli_place_rank_plan(s, &plan, plan.cost, held);
    }
    tl_free_plan(s->env, &plan);
    return result == TL_ERROR_INVALID_PLAN ? TL_OK : result;
}

// Try a plan of one micro-batch as it is, and with a forward part that drops everything.
static tl_result tli_try_rank_plan(tli_rank_search *s, const tl_plan *plan, const tl_plan *dropped,
                                   int32_t dropped_turn) {
    tli_body body;
    tl_result result;
    tli_zero(s->ran, (size_t)s->graph->node_count);
    result = tli_join_bodies(s->env, s->graph, s->messages, plan, tli_find_turn(plan, s->ran), NULL, &body);
    if (!result) result = tli_try_body(s, &body);
    tli_free_body(s->env, &body);
    if (result || !dropped) return result;
    result = tli_join_bodies(s->env, s->graph, s->messages, dropped, dropped_turn, plan, &body);
    if (!result) result = tli_try_body(s, &body);
    tli_free_body(s->env, &body);
    return result;
}

// Plan one micro-batch within live bytes, and try it. *peak: of the plan; where none fits, the least budget.
static tl_result tli_try_budget(tli_rank_search *s, uint64_t live, const tl_plan *dropped, int32_t turn,
                                uint64_t *peak) {
    tl_remat_desc remat;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    tli_quiet quiet = tli_begin_quiet(s->env);
    tli_zero(&remat, sizeof remat);
    remat.graph = s->graph;
    remat.inference = s->desc->inference;
    remat.budget_bytes = live;
    remat.live = 1;
    remat.work_limit = s->work_limit;
    result = tl_plan_remat(s->env, &remat, &plan, &report);
    *peak = result == TL_ERROR_INFEASIBLE ? report.least_budget_bytes : plan.peak_bytes;
    tli_end_quiet(&quiet, result == TL_ERROR_INFEASIBLE ? TL_OK : result);
    if (result == TL_ERROR_INFEASIBLE) return TL_OK;
    if (!result) result = tli_try_rank_plan(s, &plan, dropped, turn);
    tl_free_plan(s->env, &plan);
    return result;
}

// The plan of one micro-batch that drops whatever may run again.
static tl_result tli_plan_dropped(tli_rank_search *s, tl_plan *plan, int32_t *turn) {
    tl_result result;
    tli_zero(s->keep, (size_t)s->graph->tensor_count);
    result = tl_plan_kept_set(s->env, s->graph, s->keep, plan);
    if (result) return result;
    tli_zero(s->ran, (size_t)s->graph->node_count);
    *turn = tli_find_turn(plan, s->ran);
    return TL_OK;
}

// Try budgets between the least and the peak of keeping everything.
static tl_result tli_try_budgets(tli_rank_search *s, uint64_t most) {
    tl_plan dropped;
    int32_t turn = 0, k;
    uint64_t least = 0, peak;
    tl_result result;
    tli_zero(&dropped, sizeof dropped);
    result = s->desc->inference ? TL_OK : tli_plan_dropped(s, &dropped, &turn);
    if (!result) result = tli_try_budget(s, 1, NULL, 0, &least);
    if (!result && !s->desc->inference) result = tli_try_rank_plan(s, &dropped, NULL, 0);
    for (k = 0; k < TLI_RANK_TRIES && !result && most > least; k++) {
        uint64_t live = least + (most - least) / TLI_RANK_TRIES * (uint64_t)k;
        result = tli_try_budget(s, live, dropped.step_count ? &dropped : NULL, turn, &peak);
    }
    tl_free_plan(s->env, &dropped);
    return result;
}

// What a plan of one micro-batch costs at least within the room.
static tl_result tli_bound_rank(tli_rank_search *s) {
    int32_t id;
    s->bound_cost = 0;
    for (id = 0; id < s->graph->node_count; id++) {
        const tl_node *node = &s->graph->nodes[id];
        s->bound_cost += node->fwd_cost + (!s->desc->inference && node->has_grad ? node->bwd_cost : 0);
    }
    return TL_OK;
}

static tl_result tli_refuse_rank(const tli_rank_search *s, int32_t rank, uint64_t base) {
    uint64_t least;
    tli_sentence e;
    if (!tli_add_u64(s->least, base, &least)) least = UINT64_MAX;
    e = tli_begin_error(s->env, TL_ERROR_INFEASIBLE, TLI_IN(COMPILE_RANKS), TLI_RULE(STAGE_DOES_NOT_FIT),
                        s->desc->budget_bytes, least);
    tli_put_rule(&e);
    if (TLI_ERROR_TEXT) {
        tli_put(&e.text, ", because of rank ");
        tli_put_i64(&e.text, rank);
    }
    return tli_end_error(s->env, &e, TL_ERROR_INFEASIBLE);
}

static tl_result tli_search_rank(tli_rank_search *s) {
    tl_plan plan;
    uint64_t most = 0;
    tl_result result = tl_plan_keep_all(s->env, s->graph, s->desc->inference, &plan);
    if (!result) result = tl_measure_plan(s->env, s->graph, NULL, &plan);
    if (!result) {
        most = plan.peak_bytes;
        result = tli_try_rank_plan(s, &plan, NULL, 0);
    }
    tl_free_plan(s->env, &plan);
    if (!result && !s->best.step_count && !s->desc->keep_all) result = tli_try_budgets(s, most);
    return result;
}

// -- ranks: all of them --

typedef struct tli_ranks {
    tli_rank_stage *stages;        // [rank_count]
    tl_rank_plan   *ranks;
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
static tl_result tli_list_events(tl_env *env, const tl_ranks_desc *desc, int32_t rank,
                                 tl_pipeline_event **events, int32_t *count) {
    tl_pipeline_desc pipeline;
    int32_t i, kept = 0;
    tl_result result;
    tli_zero(&pipeline, sizeof pipeline);
    pipeline.kind = desc->pipeline;
    pipeline.rank_count = desc->rank_count;
    pipeline.micro_batch_count = desc->micro_batch_count;
    *count = tl_count_pipeline_events(&pipeline);
    *events = (tl_pipeline_event *)tli_alloc_array(env, (uint64_t)*count, sizeof **events);
    if (!*events) return tli_fail_ranks(env);
    result = tl_list_pipeline(env, &pipeline, rank, *events);
    for (i = 0; i < *count && desc->inference; i++)
        if (!(*events)[i].is_backward) (*events)[kept++] = (*events)[i];
    if (desc->inference) *count = kept;
    return result;
}

static int32_t tli_count_held_batches(const tl_pipeline_event *events, int32_t count) {
    int32_t held = 0, most = 0, i;
    for (i = 0; i < count; i++) {
        held += events[i].is_backward ? -1 : 1;
        if (held > most) most = held;
    }
    return most;
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
    return sum * (uint64_t)s->desc->micro_batch_count;
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
    compiled->choice.cost = s->best_cost;
    compiled->choice.arena_bytes = compiled->plan.arena_bytes;
    compiled->base_cost = compiled->bound_cost = s->bound_cost * (uint64_t)s->desc->micro_batch_count;
    compiled->proven = s->best_cost == compiled->bound_cost;
    compiled->gap_ratio = tli_find_gap(s->best_cost, compiled->bound_cost);
    rank->held_bytes = s->best_held;
    rank->busy_cost = s->best_cost;
    rank->in_flight_count = s->desc->inference ? 1 : tli_count_held_batches(s->events, s->event_count);
    rank->sent_bytes = tli_count_sent(s);
}

// Plan one rank, whose stage is cut.
static tl_result tli_plan_rank(tl_env *env, const tl_ranks_desc *desc, int32_t index, tl_rank_plan *rank) {
    const tl_graph *graph = rank->compiled.graph;
    uint64_t nodes = (uint64_t)graph->node_count;
    tl_pipeline_event *events = NULL;
    tli_rank_search s;
    int32_t id;
    tl_result result;
    tli_zero(&s, sizeof s);
    s.env = env;
    s.desc = desc;
    s.graph = graph;
    s.least = s.room = UINT64_MAX;
    s.device.alignment_bytes = desc->alignment_bytes;
    s.work_limit = (desc->work_limit ? desc->work_limit : 700000000) / (uint64_t)desc->rank_count / 24 + 1;
    s.messages = (uint8_t *)tli_alloc_array(env, 2 * nodes + (uint64_t)graph->tensor_count, 1);
    result = s.messages ? tli_find_rank_base(env, desc, graph, &rank->base_bytes) : tli_fail_ranks(env);
    if (!result) result = tli_list_events(env, desc, index, &events, &s.event_count);
    if (!result) {
        s.events = events;
        s.ran = s.messages + graph->node_count;
        s.keep = s.ran + graph->node_count;
        for (id = 0; id < graph->node_count; id++)
            s.messages[id] = tli_find_message(&rank->compiled, id);
        if (desc->budget_bytes) s.room = desc->budget_bytes;
        if (desc->budget_bytes) s.room -= rank->base_bytes < s.room ? rank->base_bytes : s.room;
        result = tli_bound_rank(&s);
    }
    if (!result) result = tli_search_rank(&s);
    if (!result && !s.best.step_count) result = tli_refuse_rank(&s, index, rank->base_bytes);
    if (!result) tli_fill_rank(&s, rank);
    tl_free_plan(env, &s.best);
    tli_release(env, events);
    tli_release(env, s.messages);
    return result;
}

// -- ranks: where to cut --

// Cut into stages of even cost, by the exact partition of the nodes.
static tl_result tli_find_ends(tl_env *env, const tl_ranks_desc *desc, int32_t *ends) {
    const tl_graph *graph = desc->graph;
    uint64_t tensors = (uint64_t)graph->tensor_count, places = tensors + (uint64_t)graph->node_count;
    tl_unit *units = (tl_unit *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *units);
    int32_t *last_readers = (int32_t *)tli_alloc_array(env, places, sizeof *last_readers);
    tl_partition_desc ask;
    tl_partition partition;
    int32_t id, k, count = 0, *unit_ends = last_readers ? last_readers + tensors : NULL;
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
    ask.rank_count = ask.stage_count = desc->rank_count;
    ask.micro_batch_count = desc->micro_batch_count;
    ask.pipeline = desc->pipeline;
    ask.link = desc->link;
    ask.objective = TL_PARTITION_TOTAL;
    if (!result) result = tl_plan_partition(env, &ask, &partition);
    for (k = 0; k < desc->rank_count && !result; k++) ends[k] = unit_ends[partition.stages[k].end_unit - 1];
    if (!result) ends[desc->rank_count - 1] = graph->node_count;
    tl_free_partition(env, &partition);
    tli_release(env, units);
    tli_release(env, last_readers);
    return result;
}

// Whether each stage has a node that is no input.
static int tli_are_ends(const tl_ranks_desc *desc, const int32_t *ends) {
    int32_t rank, id, first = 0;
    for (rank = 0; rank < desc->rank_count; rank++) {
        int has_node = 0;
        if (ends[rank] <= first || ends[rank] > desc->graph->node_count) return 0;
        for (id = first; id < ends[rank]; id++) has_node |= !desc->graph->nodes[id].is_input;
        if (!has_node) return 0;
        first = ends[rank];
    }
    return first == desc->graph->node_count;
}

static tl_result tli_check_ranks_desc(tl_env *env, const tl_ranks_desc *desc) {
    tli_rule why = TLI_NO_RULE;
    tl_result result;
    if (desc->rank_count < 1) why = TLI_RULE(RANK_COUNT_MUST_BE_POSITIVE);
    else if (desc->micro_batch_count < 1 || desc->micro_batch_count >= TLI_MOST_SLOTS)
        why = TLI_RULE(MICRO_BATCH_COUNT_OF_RANKS);
    else if (desc->pipeline != TL_PIPELINE_1F1B && desc->pipeline != TL_PIPELINE_GPIPE)
        why = TLI_RULE(PIPELINE_OF_RANKS);
    else if ((desc->inference | desc->weights_apart | desc->keep_all) & ~1)
        why = TLI_RULE(FLAGS_OF_RANKS_MUST_BE_0_OR_1);
    else if (desc->rank_count > desc->graph->node_count) why = TLI_RULE(RANKS_MORE_THAN_NODES);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE_RANKS), why);
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
        result = tli_cut_stage(env, desc, plan->first_node, plan->end_node, &own->stages[rank],
                               &plan->compiled);
        if (result) return result;
        plan->compiled.graph = &own->stages[rank].graph;
        plan->compiled.source = desc->graph;
        plan->compiled.memory = own;
        result = tli_plan_rank(env, desc, rank, plan);
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
    }
    tli_release(env, own);
    tli_zero(ranks, sizeof *ranks);
}

TLI_IMPL tl_result tl_compile_ranks(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks) {
    int32_t *ends = NULL;
    tli_ranks *own;
    tl_result result;
    TL_ASSERT(desc && desc->graph && ranks);
    tli_zero(ranks, sizeof *ranks);
    result = tli_check_ranks_desc(env, desc);
    if (result) return result;
    own = (tli_ranks *)tli_alloc_array(env, 1, sizeof *own);
    if (!own) return tli_fail_ranks(env);
    ranks->memory = own;
    ranks->micro_batch_count = desc->micro_batch_count;
    own->stages = (tli_rank_stage *)tli_alloc_array(env, (uint64_t)desc->rank_count, sizeof *own->stages);
    own->ranks = (tl_rank_plan *)tli_alloc_array(env, (uint64_t)desc->rank_count, sizeof *own->ranks);
    ends = (int32_t *)tli_alloc_array(env, (uint64_t)desc->rank_count, sizeof *ends);
    if (own->stages && own->ranks) ranks->rank_count = desc->rank_count;
    if (!ranks->rank_count || !ends) result = tli_fail_ranks(env);
    ranks->ranks = own->ranks;
    if (!result && desc->ends) tli_copy(ends, desc->ends, (size_t)desc->rank_count * sizeof *ends);
    else if (!result) result = tli_find_ends(env, desc, ends);
    if (!result) result = tli_plan_ranks(env, desc, ends, own, ranks);
    if (!result) result = tli_simulate_ranks(env, desc, ranks);
    if (!result) tli_name_ranks(ranks);
    tli_release(env, ends);
    if (result) tl_free_compiled_ranks(env, ranks);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
