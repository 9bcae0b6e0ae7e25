#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- compile: sets of fused chains --

// Leave chains apart whose bits are set.
static void tli_choose_apart(tli_compile *c, uint32_t bits) {
    int32_t id, number = 0;
    tli_zero(c->apart, (size_t)c->source.node_count);
    for (id = 0; c->all.memory && id < c->all.graph.node_count; id++)
        if (tli_count_in(&c->all, id) > 1) {
            if (number < 32 && bits >> number & 1) tli_mark_apart(c->apart, &c->all, id, 1);
            number++;
        }
}

// Leave all chains apart, or those that do not pay; returns how many.
static int32_t tli_choose_paying(tli_compile *c, int none) {
    int32_t id, count = 0;
    tli_zero(c->apart, (size_t)c->source.node_count);
    for (id = 0; c->all.memory && id < c->all.graph.node_count; id++)
        if (tli_count_in(&c->all, id) > 1 && (none || !tli_pays_fused(&c->source, &c->all, id, c->inference))) {
            tli_mark_apart(c->apart, &c->all, id, 1);
            count++;
        }
    return count;
}

// Plan every chain fused, and none.
static tl_result tli_begin_chains(tli_compile *c) {
    tl_result result;
    tli_choose_apart(c, 0);
    result = tli_try_wide(c);
    if (result || !c->all.fused_count || c->stopped) return result;
    (void)tli_choose_paying(c, 1);
    return tli_try_wide(c);
}

// Plan the sets of fused chains of one number of parts: all sets; or every chain fused, those that pay, none.
static tl_result tli_try_chains(tli_compile *c) {
    int32_t chains = c->all.fused_count, apart;
    uint32_t bits, sets = (uint32_t)1 << (c->enumerates ? chains : 0);
    tl_result result;
    if (c->enumerates) {
        for (bits = 0, result = TL_OK; bits < sets && !result; bits++) {
            tli_choose_apart(c, bits);
            result = tli_try_variant(c, bits == 0 || bits == sets - 1);
        }
        return result;
    }
    if (chains > 1) c->is_complete = 0;
    tli_choose_apart(c, 0);
    result = tli_try_variant(c, 1);
    apart = tli_choose_paying(c, 0);
    if (!result && apart && apart < chains && !tli_is_out_of_work(c)) result = tli_try_variant(c, 0);
    if (!result && chains && !tli_is_out_of_work(c)) {
        (void)tli_choose_paying(c, 1);
        result = tli_try_variant(c, 1);
    }
    return result;
}

// -- compile: numbers of parts --

// Divisors of a batch are looked for up to this; the batch over each that is found is one, too.
#define TLI_COMPILE_DIVISOR 1000000

// Whether nothing of a number of parts fits, or is worth a look.
static int tli_is_part_out(tli_compile *c, const tli_batch_part *part) {
    if (c->seeks_least) return 0;
    c->enumerates = part->enumerates;
    return part->bound == UINT64_MAX || tli_is_ruled_out(c, part->bound);
}

static tl_result tli_open_part(tli_compile *c, int32_t parts) {
    tl_result result = tli_open_source(c, parts);
    if (!result) result = tli_open_tables(c);
    if (!result && c->strategy->enable_fusion) result = tli_fuse_source(c, NULL, &c->all);
    c->graph = &c->source;
    c->choices = &c->tables;
    return result;
}

static void tli_close_part(tli_compile *c) {
    tli_close_precision(&c->tables);
    tli_zero(&c->tables, sizeof c->tables);
    tl_free_fusion_plan(c->env, &c->all);
    tli_close_source(c);
}

// Whether all combinations of this number of parts are few enough to plan each.
static int tli_is_small(const tli_compile *c) {
    uint64_t mixes = tli_count_mixes(c);
    return c->all.fused_count <= 4 && mixes << c->all.fused_count <= TLI_COMPILE_MOST;
}

// List a number of parts.
static tl_result tli_add_batch_part(tli_compile *c, uint64_t parts) {
    tli_batch_part *part;
    if (parts > INT32_MAX) return TL_OK;
    if (!tli_grow(c->env, (void **)&c->part_list, &c->part_capacity, c->part_count, 1, sizeof *c->part_list))
        return tli_fail_compile(c);
    part = &c->part_list[c->part_count++];
    part->parts = (int32_t)parts;
    return TL_OK;
}

// List the numbers of parts: that of the strategy, or every divisor of the batch that is small, or the batch
// over one.
static tl_result tli_list_parts(tli_compile *c) {
    uint64_t batch = c->desc->graph->batch, steps = c->strategy->gradient.accumulation_steps, d;
    tl_result result = TL_OK;
    if (!c->desc->may_split) return tli_add_batch_part(c, 1);
    if (steps) {
        if (batch % steps == 0 && steps <= INT32_MAX) return tli_add_batch_part(c, steps);
        return tli_fail_values(c->env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE),
                               TLI_RULE(GRAPH_BATCH_CANNOT_BE_SPLIT_SO), batch, steps);
    }
    if (!batch) return tli_add_batch_part(c, 1);
    for (d = 1; d <= TLI_COMPILE_DIVISOR && d <= batch / d && !result; d++)
        if (batch % d == 0) result = tli_add_batch_part(c, d);
    for (d--; d > 0 && !result; d--)
        if (batch % d == 0 && batch / d > d) result = tli_add_batch_part(c, batch / d);
    return result;
}

// Bound a number of parts, and plan it in f32. Its share of the work ends at work_limit.
static tl_result tli_begin_part(tli_compile *c, tli_batch_part *part) {
    uint64_t bound = 0;
    tl_result result = tli_open_part(c, part->parts);
    part->is_out = result == TL_NOT_READY;
    tli_share_work(c, 4);
    if (!result && !c->seeks_least) result = tli_bound_part(c, &bound);
    if (!result) {
        part->bound = bound == UINT64_MAX ? bound : tli_find_step_cost(c, bound);
        if (!c->seeks_least && part->bound < c->bound) c->bound = part->bound;
        part->enumerates = tli_is_small(c);
        if (!tli_is_part_out(c, part)) result = tli_begin_chains(c);
    }
    tli_close_part(c);
    if (result != TL_NOT_READY) return result;
    if (!c->strategy->gradient.accumulation_steps) return TL_OK;
    return tli_fail_values(c->env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE),
                           TLI_RULE(GRAPH_BATCH_CANNOT_BE_SPLIT_SO), c->desc->graph->batch,
                           (uint64_t)part->parts);
}

// Plan the other combinations of a number of parts, each with little work: what is good is planned again.
static tl_result tli_try_part(tli_compile *c, const tli_batch_part *part) {
    tl_result result = tli_open_part(c, part->parts);
    if (!result) {
        c->enumerates = part->enumerates;
        tli_share_work(c, (c->is_mixed ? 24u : 1u) * (c->all.fused_count ? 3u : 1u));
        if (c->plan_work < c->try_work / 8 + 1) c->plan_work = c->try_work / 8 + 1;
        if (c->enumerates) c->plan_work = c->try_work;
        result = tli_try_chains(c);
    }
    tli_close_part(c);
    return result;
}

// One turn over all numbers of parts, each with its share of the work up to `end`.
static tl_result tli_turn_parts(tli_compile *c, uint64_t end, int begins) {
    uint64_t limit = c->work_limit;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < c->part_count && !result && !c->stopped; i++) {
        tli_batch_part *part = &c->part_list[i];
        if (!begins && (part->is_out || tli_is_part_out(c, part))) continue;
        if (!begins && (c->work >= end || tli_is_out_of_work(c))) { c->is_complete = 0; break; }
        c->work_limit = c->work + (end > c->work ? (end - c->work) / (uint64_t)(c->part_count - i) : 0);
        result = begins ? tli_begin_part(c, part) : tli_try_part(c, part);
    }
    c->work_limit = limit;
    c->is_bounded = i == c->part_count || !begins;
    if (c->is_bounded) return result;
    c->is_complete = 0;
    c->bound = 0;
    return result;
}

// All numbers of parts: first each in f32, then the rest of each.
static tl_result tli_try_parts(tli_compile *c) {
    uint64_t start = c->work, whole = c->work_limit > start ? c->work_limit - start : 0;
    tl_result result = c->part_count ? TL_OK : tli_list_parts(c);
    c->second_work = start + whole / 2;
    if (!result) result = tli_turn_parts(c, start + whole / 4, 1);
    if (!result && !c->stopped)
        result = tli_turn_parts(c, start + whole / 2 + (c->part_list[0].enumerates ? whole / 4 : 0), 0);
    return result;
}

// All parts; with a codec first without it, in half of the work. is_complete says nothing of compressed copies
// then, so it is set anew.
static tl_result tli_try_codecs(tli_compile *c) {
    uint64_t limit = c->work_limit, bound;
    tl_result result;
    c->compresses = 0;
    if (!c->codec) return tli_try_parts(c);
    c->work_limit = c->work + (limit - c->work) / 2;
    result = tli_try_parts(c);
    c->work_limit = limit;
    bound = c->bound;
    c->compresses = 1;
    if (result || (c->has_best && c->choice.cost == bound && !c->fewest)) return result;
    c->is_complete = 1;
    result = tli_try_parts(c);
    if (c->bound < bound) c->bound = bound;     // both hold for all; 0 where a turn ended early
    return result;
}

// -- compile: the best once more --

// Open the graphs of the best combination again.
static tl_result tli_open_best(tli_compile *c) {
    tl_result result = tli_open_part(c, c->best_parts);
    c->compresses = c->best_compresses;
    tli_copy(c->apart, c->best_apart, (size_t)c->source.node_count);
    if (!result) result = tli_open_variant(c);
    if (!result) tli_copy(c->schemes, c->best_schemes, (size_t)c->graph->node_count);
    return result;
}

// Try each chain the other way, beside the best, with the same prices of a byte.
static tl_result tli_turn_chains(tli_compile *c) {
    int32_t id, count = c->all.fused_count;
    tl_result result = TL_OK;
    if (count < 2 || count > TLI_COMPILE_CHAINS || c->enumerates) return TL_OK;
    for (id = 0; id < c->all.graph.node_count && !result && !tli_is_out_of_work(c); id++) {
        int32_t first;
        if (tli_count_in(&c->all, id) < 2) continue;
        tli_copy(c->apart, c->best_apart, (size_t)c->source.node_count);
        first = c->all.members[c->all.first_members[id]];
        tli_mark_apart(c->apart, &c->all, id, !c->apart[first]);
        result = tli_try_variant(c, 0);
    }
    return result;
}

// Turn chains beside the best, with a third of the work that is left.
static tl_result tli_improve_chains(tli_compile *c) {
    uint64_t limit = c->work_limit;
    tl_result result;
    if (!c->has_best || tli_is_out_of_work(c) || !c->strategy->enable_fusion) return TL_OK;
    c->compresses = c->best_compresses;
    result = tli_open_part(c, c->best_parts);
    c->work_limit = c->work + (limit - c->work) / 3;
    c->plan_work = c->try_work / (c->is_mixed ? 8 : 2) + 1;
    if (!result) result = tli_turn_chains(c);
    tli_close_part(c);
    c->work_limit = limit;
    return result;
}

// Turn formats beside the best, with a third of the work that is left.
static tl_result tli_improve_formats(tli_compile *c) {
    uint64_t limit = c->work_limit;
    tl_result result;
    if (!c->is_mixed || !c->best_parts || c->fewest || tli_is_out_of_work(c)) return TL_OK;
    if (c->has_best && (c->is_complete || c->bound == c->choice.cost || tli_is_near(c))) return TL_OK;
    c->work_limit = c->work + (limit - c->work) / 3;
    result = tli_open_best(c);
    c->plan_work = c->try_work;
    if (!result) result = tli_turn_formats(c);
    tli_close_variant(c);
    tli_close_part(c);
    c->work_limit = limit;
    return result;
}

// Plan a finalist again, with plan_work.
static tl_result tli_plan_finalist(tli_compile *c, const tli_finalist *f) {
    int32_t tried_count = c->tried_count;
    tl_result result = tli_open_part(c, f->parts);
    c->compresses = f->compresses;
    tli_copy(c->apart, f->apart, (size_t)c->source.node_count);
    if (!result) result = tli_open_variant(c);
    if (!result) {
        tli_copy(c->schemes, f->schemes, (size_t)c->graph->node_count);
        result = tli_try_mix(c);
    }
    tli_close_variant(c);
    tli_close_part(c);
    c->tried_count = tried_count;
    return result;
}

// The best first; equal ones in the order in which they are.
static void tli_sort_finalists(tli_compile *c) {
    int32_t i, k;
    for (i = 1; i < c->finalist_count; i++) {
        tli_finalist f = c->finalists[i];
        for (k = i; k > 0 && tli_is_ahead(&f, &c->finalists[k - 1]); k--) c->finalists[k] = c->finalists[k - 1];
        c->finalists[k] = f;
    }
}

// Whether nothing better is left to find.
static int tli_is_compile_settled(const tli_compile *c) {
    return c->has_best && (c->is_complete || tli_is_near(c) || (!c->fewest && c->bound == c->choice.cost));
}

// Plan the finalists again: all of them, then the best four, the best two; each turn with a quarter of the work
// that was left at first. The best is planned with the last quarter.
static tl_result tli_deepen(tli_compile *c) {
    uint64_t start = c->work, quarter = c->work_limit > c->work ? (c->work_limit - c->work) / 4 : 0, turn = 1;
    tl_result result = TL_OK;
    int32_t count = c->finalist_count, i;
    for (; count > c->has_best && !result && !tli_is_compile_settled(c); turn++) {
        uint64_t end = start + turn * quarter;
        tli_sort_finalists(c);
        for (i = 0; i < count && !result && !tli_is_out_of_work(c) && !tli_is_compile_settled(c); i++) {
            const tli_finalist *f = &c->finalists[i];
            uint64_t share = end > c->work ? (end - c->work) / (uint64_t)(count - i) : 0;
            if (f->is_settled || f->work >= share / 2) continue;
            c->plan_work = share;
            result = tli_plan_finalist(c, f);
        }
        count = count > 4 ? 4 : count / 2;
    }
    return result;
}

// Plan the best combination once more with the work that is left. The graphs are open.
static tl_result tli_improve_plan(tli_compile *c, const tl_precision_graph *applied) {
    uint64_t left = c->work_limit > c->work ? c->work_limit - c->work : 0;
    uint64_t needed;
    int32_t proven;
    tl_plan plan;
    tl_result result;
    if (left <= c->try_work || c->stopped || c->is_complete || c->bound == c->choice.cost || tli_is_near(c))
        return TL_OK;
    result = tli_plan_graph(c, applied, c->desc->work_limit ? left : 0, &plan, &proven, &needed);
    if (result == TL_ERROR_INFEASIBLE) return TL_OK;    // with more work other plans are found, mostly better
    if (result) return result;
    if (c->fewest ? tli_compiled_bytes(c, &plan) < tli_compiled_bytes(c, &c->plan)
                  : plan.cost < c->plan.cost) {
        tl_free_plan(c->env, &c->plan);
        c->plan = plan;
    } else {
        tl_free_plan(c->env, &plan);
    }
    return TL_OK;
}

// -- compile: the result --

// What a compiled plan owns.
typedef struct tli_compiled {
    tl_graph           source;       // empty where it is the caller's
    tl_fusion_plan     fusion;
    tl_precision_graph applied;
    int32_t           *map;          // the four arrays of the map, and tensors
} tli_compiled;

static void tli_free_compiled(tl_env *env, tli_compiled *own) {
    if (!own) return;
    tl_free_graph(env, &own->source);
    tl_free_fusion_plan(env, &own->fusion);
    tl_free_precision_graph(env, &own->applied);
    tli_release(env, own->map);
    tli_release(env, own);
}

// The tensor of the plan's graph that is a tensor of source; of a result that is converted back, that of the
// conversion.
static int32_t tli_find_compiled_tensor(const tli_compile *c, const tli_compiled *own, int32_t tensor) {
    const tl_precision_graph *applied = &own->applied;
    const tl_node_output *output = &c->source.outputs[tensor];
    int32_t node = output->node, k;
    if (c->graph != &c->source) {
        node = own->fusion.nodes[node];
        if (own->fusion.members[own->fusion.first_members[node + 1] - 1] != output->node) return -1;
    }
    if (!applied->memory) return c->graph->nodes[node].first_output + output->output;
    tensor = applied->graph.nodes[applied->new_nodes[node]].first_output + output->output;
    if (!c->source.nodes[output->node].keep || applied->graph.nodes[applied->new_nodes[node]].keep)
        return tensor;
    for (k = 0; k < applied->graph.input_count; k++) {
        int32_t reader;
        if (applied->graph.inputs[k].tensor != tensor) continue;
        for (reader = applied->new_nodes[node] + 1; reader < applied->graph.node_count; reader++) {
            const tl_node *conversion = &applied->graph.nodes[reader];
            if (conversion->keep && conversion->first_input == k && applied->nodes[reader] == node)
                return conversion->first_output;
        }
    }
    return tensor;
}

// Which nodes of source each node of the plan's graph computes.
static void tli_map_nodes(const tli_compile *c, const tli_compiled *own, int32_t *first, int32_t *members,
                          int32_t *recomputed, int32_t *nodes) {
    const tl_precision_graph *applied = &own->applied;
    const tl_graph *graph = applied->memory ? &applied->graph : c->graph;
    int32_t id, at, count = 0;
    for (id = 0; id < graph->node_count; id++) {
        int32_t from = applied->memory ? applied->nodes[id] : id;
        int is_conversion = applied->memory && applied->new_nodes[from] != id;
        first[id] = count;
        recomputed[id] = 0;
        if (is_conversion) continue;
        if (c->graph == &c->source) {
            nodes[from] = id;
            members[count++] = from;
            continue;
        }
        recomputed[id] = own->fusion.recompute_counts[from];
        for (at = own->fusion.first_members[from]; at < own->fusion.first_members[from + 1]; at++) {
            nodes[own->fusion.members[at]] = id;
            members[count++] = own->fusion.members[at];
        }
    }
    first[graph->node_count] = count;
}

// Make the map; 0 = no memory.
static int tli_open_compiled_map(tli_compile *c, tli_compiled *own, tl_compiled_plan *compiled) {
    uint64_t source = (uint64_t)c->source.node_count, nodes = (uint64_t)compiled->graph->node_count;
    uint64_t tensors = (uint64_t)c->source.tensor_count;
    int32_t *map = (int32_t *)tli_alloc_array(c->env, 2 * source + 2 * nodes + 1 + tensors, sizeof *map), k;
    if (!map) return 0;
    own->map = map;
    compiled->nodes = map;
    compiled->members = map + source;
    compiled->recompute_counts = map + 2 * source;
    compiled->first_members = map + 2 * source + nodes;
    compiled->tensors = map + 2 * source + 2 * nodes + 1;
    tli_map_nodes(c, own, map + 2 * source + nodes, map + source, map + 2 * source, map);
    for (k = 0; k < c->source.tensor_count; k++)
        map[2 * source + 2 * nodes + 1 + (uint64_t)k] = tli_find_compiled_tensor(c, own, k);
    return 1;
}

// Hand over the graphs that are open, and say what they are.
static tl_result tli_take_graphs(tli_compile *c, tli_compiled *own, tl_compiled_plan *compiled) {
    if (c->owns_source) own->source = c->source;
    own->fusion = c->fusion;
    compiled->source = c->owns_source ? &own->source : c->desc->graph;
    compiled->graph = own->applied.memory ? &own->applied.graph
                    : c->graph == &c->source ? compiled->source : &own->fusion.graph;
    compiled->precision = c->precision;
    compiled->inference = c->inference;
    if (own->applied.memory) compiled->formats = own->applied.formats;
    else if (c->is_mixed) compiled->precision = TL_PRECISION_SINGLE;
    if (compiled->graph == compiled->source) return TL_OK;
    return tli_open_compiled_map(c, own, compiled) ? TL_OK : tli_fail_compile(c);
}

// What was handed over is no longer the compiler's to release.
static void tli_leave_graphs(tli_compile *c) {
    c->owns_source = 0;
    tli_zero(&c->fusion, sizeof c->fusion);
}

static void tli_fill_compiled(tli_compile *c, const tli_compiled *own, tl_compiled_plan *compiled) {
    tli_describe_choice(c, &own->applied, &c->plan, &c->choice);
    compiled->plan = c->plan;
    compiled->plan.repeat_count = c->parts;
    tli_zero(&c->plan, sizeof c->plan);
    compiled->choice = c->choice;
    compiled->runner_up = c->runner_up;
    compiled->tried_count = c->tried_count;
    compiled->work = c->work;
    compiled->bound_cost = c->choice.cost;
    if (c->bound < c->choice.cost && (c->fewest || !c->is_complete)) compiled->bound_cost = c->bound;
    compiled->proven = compiled->bound_cost == c->choice.cost;
    compiled->gap_ratio = tli_find_gap(c->choice.cost, compiled->bound_cost);
    compiled->plan.bound_cost = (uint64_t)c->parts > 1 ? compiled->bound_cost / (uint64_t)c->parts
                                                       : compiled->bound_cost;
    compiled->base_cost = tli_sum_calls(c);
}

// Make the graphs of the best again, improve its plan, and hand it all over.
static tl_result tli_finish_compile(tli_compile *c, tl_compiled_plan *compiled) {
    tli_compiled *own = (tli_compiled *)tli_alloc_array(c->env, 1, sizeof *own);
    tl_result result = own ? tli_open_best(c) : tli_fail_compile(c);
    int taken = 0;
    if (!result) result = tli_apply_mix(c, &own->applied);
    if (!result) result = tli_improve_plan(c, &own->applied);
    if (!result) {
        result = tli_take_graphs(c, own, compiled);
        taken = 1;
    }
    if (!result) tli_fill_compiled(c, own, compiled);
    if (taken) tli_leave_graphs(c);
    tli_close_variant(c);
    tli_close_part(c);
    compiled->memory = own;
    return result;
}

static tl_result tli_refuse_compile(const tli_compile *c) {
    tli_sentence s = tli_begin_error(c->env, TL_ERROR_INFEASIBLE, TLI_IN(COMPILE),
                                     TLI_RULE(NO_COMBINATION_FITS), c->budget.allowed_bytes, c->least);
    tli_put_limit(c->env, &s, c->budget.limit);
    tli_put_rule(&s);
    if (TLI_ERROR_TEXT && c->least_node >= 0) {
        tli_put(&s.text, ", because of node ");
        tli_put_named(&s.text, c->least_node, tl_name_node(c->desc->graph, c->least_node));
    }
    if (TLI_ERROR_TEXT && c->strategy->gradient.computes && !c->strategy->gradient.checkpointed)
        tli_put(&s.text, "; gradient full runs nothing again, checkpointed may");
    return tli_end_error(c->env, &s, TL_ERROR_INFEASIBLE);
}

// Plan the combination that takes the fewest bytes within the budget. The graphs are open.
static tl_result tli_plan_least(tli_compile *c) {
    tl_precision_graph applied;
    tl_plan plan;
    uint64_t needed;
    int32_t proven;
    tl_result result = tli_apply_mix(c, &applied);
    c->plan_work = c->least_work;
    if (!result) result = tli_plan_graph(c, &applied, c->plan_work, &plan, &proven, &needed);
    if (!result) tli_offer_choice(c, &applied, &plan);
    tl_free_precision_graph(c->env, &applied);
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

// Search for the fewest bytes as if the budget were one byte, with all of the work: what is found depends on no
// budget. If it fits, it is the plan.
static tl_result tli_try_least(tli_compile *c) {
    tli_budget budget = c->budget;
    uint64_t before = c->work;
    tl_result result;
    c->budget.bytes = 1;
    c->budget.is_over = 0;
    c->work = 0;
    c->least = UINT64_MAX;
    c->seeks_least = 1;
    c->finalist_count = 0;
    result = tli_try_codecs(c);
    if (!result) result = tli_improve_formats(c);
    if (!result) result = tli_deepen(c);
    c->seeks_least = 0;
    c->budget = budget;
    c->is_complete = 0;
    if (!result && !c->has_best && c->least != UINT64_MAX && c->least <= budget.allowed_bytes) {
        result = tli_open_best(c);
        if (!result) result = tli_plan_least(c);
        tli_close_variant(c);
        tli_close_part(c);
    }
    c->work += before;
    return result;
}

// Search all of it. What fails on the way leaves no error, unless all of it fails.
static tl_result tli_search_combinations(tli_compile *c) {
    tli_quiet quiet = tli_begin_quiet(c->env);
    tl_result result = tli_try_codecs(c);
    if (!result) result = tli_improve_chains(c);
    if (!result) result = tli_improve_formats(c);
    if (!result) result = tli_deepen(c);
    if (!result && !c->has_best) result = tli_try_least(c);
    tli_end_quiet(&quiet, result);
    if (result) return result;
    return c->has_best ? TL_OK : tli_refuse_compile(c);
}

// What a call begins with.
static tli_compile tli_start_compile(tl_env *env, const tl_compile_desc *desc, const tli_budget *budget) {
    tli_compile c;
    tli_zero(&c, sizeof c);
    c.env = env;
    c.desc = desc;
    c.strategy = desc->strategy;
    c.budget = *budget;
    c.inference = !desc->strategy->gradient.computes;
    c.codec = desc->strategy->gradient.checkpointed && !c.inference ? desc->codec : TL_CODEC_NONE;
    c.in_arena = desc->strategy->memory != TL_MEMORY_STANDARD;
    c.fewest = desc->strategy->memory == TL_MEMORY_MINIMAL_PEAK;
    c.work_limit = tli_or_default(desc->work_limit, TLI_COMPILE_WORK);
    c.try_work = TLI_COMPILE_TRY_WORK + (uint64_t)(uint32_t)desc->graph->node_count * 4000;
    if (c.try_work > c.work_limit / 8) c.try_work = c.work_limit / 8 + 1;
    c.is_complete = 1;
    c.bound = c.least = UINT64_MAX;
    c.least_node = -1;
    return c;
}

// tl_compile within a budget that was found before: that of the desc is not read.
static tl_result tli_compile_within(tl_env *env, const tl_compile_desc *desc, const tli_budget *budget,
                                    tl_compiled_plan *compiled) {
    tli_compile c = tli_start_compile(env, desc, budget);
    tl_result result = tli_check_compile(&c);
    tli_zero(compiled, sizeof *compiled);
    if (result) return result;
    if (!tli_open_compile(&c)) result = tli_fail_compile(&c);
    if (!result) result = tli_search_combinations(&c);
    if (!result) result = tli_finish_compile(&c, compiled);
    tl_free_plan(env, &c.plan);
    tli_close_compile(&c);
    if (result) tl_free_compiled_plan(env, compiled);
    return result;
}

TLI_IMPL tl_result tl_compile(tl_env *env, const tl_compile_desc *desc, tl_compiled_plan *compiled) {
    tli_budget budget;
    TL_ASSERT(desc && desc->graph && desc->strategy && compiled);
    budget = tli_find_budget(desc->budget_bytes, desc->host_budget_bytes, desc->base_bytes, desc->device,
                             NULL, 0);
    return tli_compile_within(env, desc, &budget, compiled);
}

TLI_IMPL void tl_free_compiled_plan(tl_env *env, tl_compiled_plan *compiled) {
    if (!compiled) return;
    tl_free_plan(env, &compiled->plan);
    tli_free_compiled(env, (tli_compiled *)compiled->memory);
    tli_zero(compiled, sizeof *compiled);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
