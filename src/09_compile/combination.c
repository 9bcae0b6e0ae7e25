#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- compile: a combination --

// Mark the nodes that have to run: results, in training all that have a backward, forward only without results
// those that no node reads, and what all these are made of.
static void tli_mark_wanted(const tl_graph *graph, int inference, uint8_t *is_wanted) {
    int32_t id, k;
    int any_keep = 0;
    for (id = 0; id < graph->node_count; id++) any_keep |= graph->nodes[id].keep;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        is_wanted[id] = (uint8_t)(node->keep || (!inference && node->has_grad) || (inference && !any_keep));
    }
    for (k = 0; k < graph->input_count && inference && !any_keep; k++)
        is_wanted[graph->outputs[graph->inputs[k].tensor].node] = 0;
    for (id = graph->node_count; id-- > 0;)
        for (k = 0; k < graph->nodes[id].input_count && is_wanted[id]; k++)
            is_wanted[graph->outputs[graph->inputs[graph->nodes[id].first_input + k].tensor].node] = 1;
}

// Every call of the caller's graph once.
static uint64_t tli_sum_calls(const tli_compile *c) {
    const tl_graph *graph = c->desc->graph;
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) sum += tli_find_call_costs(c, &graph->nodes[id]);
    return sum;
}

static uint64_t tli_sum_wanted(const tli_compile *c, const tl_graph *graph, const uint8_t *is_wanted) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++)
        if (is_wanted[id]) sum += tli_find_call_costs(c, &graph->nodes[id]);
    return sum;
}

// The costs of all updates of states.
static uint64_t tli_sum_update_costs(const tli_compile *c) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < c->source.node_count && !c->inference; id++)
        if (c->source.nodes[id].state) sum += c->source.nodes[id].bwd_cost;
    return sum;
}

// The cost of a step whose parts cost so much each.
static uint64_t tli_find_step_cost(const tli_compile *c, uint64_t part_cost) {
    uint64_t parts = (uint64_t)c->parts, sum, rest;
    if (!tli_mul_u64(part_cost, parts, &sum) || !tli_mul_u64(c->desc->split_cost, parts - 1, &rest) ||
        !tli_add_u64(sum, rest, &sum)) return UINT64_MAX;
    rest = (parts - 1) * tli_sum_update_costs(c);   // the last part alone updates; no overflow: less than sum
    return sum - rest;
}

// Whether steps that cost no less than this need not be looked at: they are not the best, and where all are
// planned not the runner-up.
static int tli_is_ruled_out(const tli_compile *c, uint64_t step_cost) {
    if (c->fewest || !c->has_best || step_cost < c->choice.cost) return 0;
    if (!c->enumerates || c->work >= c->second_work) return 1;
    return c->runner_up.cost && step_cost >= c->runner_up.cost;
}

static int tli_is_better(const tli_compile *c, const tl_compile_choice *a, const tl_compile_choice *b) {
    if (!b->cost && !b->arena_bytes) return 1;
    if (c->fewest && a->arena_bytes != b->arena_bytes) return a->arena_bytes < b->arena_bytes;
    if (a->cost != b->cost) return a->cost < b->cost;
    if (a->loss < b->loss || a->loss > b->loss) return a->loss < b->loss;
    if (a->part_count != b->part_count) return a->part_count < b->part_count;
    if (a->fused_count != b->fused_count) return a->fused_count > b->fused_count;
    return a->arena_bytes < b->arena_bytes;
}

// The graph of the mix at hand; zeroes, where it is the graph at hand: all of it in f32, at the graph's costs.
static tl_result tli_apply_mix(tli_compile *c, tl_precision_graph *applied) {
    const tli_precision *p = c->choices;
    tl_apply_desc desc;
    tl_precision_plan plan;
    int32_t id, changed_count = 0;
    tli_zero(applied, sizeof *applied);
    for (id = 0; c->is_mixed && id < c->graph->node_count; id++) {
        uint64_t cost = tli_find_call_costs(c, &c->graph->nodes[id]);
        uint64_t time = p->times[(size_t)id * TL_SCHEME_COUNT + c->schemes[id]];
        tl_precision_node *node = &c->formats[id];
        tli_zero(node, sizeof *node);
        node->scheme = (tl_scheme)c->schemes[id];
        node->speedup = cost && time ? (double)cost / (double)time : 1;
        changed_count += c->schemes[id] != TL_SCHEME_F32 || cost != time;
    }
    if (!changed_count) return TL_OK;
    tli_zero(&plan, sizeof plan);
    plan.nodes = c->formats;
    plan.node_count = c->graph->node_count;
    tli_zero(&desc, sizeof desc);
    desc.graph = c->graph;
    desc.plan = &plan;
    desc.device = c->desc->device;
    desc.training = !c->inference;
    desc.any_result = c->desc->precision ? c->desc->precision->any_result : 0;
    return tl_apply_precision(c->env, &desc, applied);
}

static tli_asked tli_ask_for_compile(tli_compile *c, const tl_graph *graph, uint64_t work_limit) {
    tli_asked asked;
    tli_zero(&asked, sizeof asked);
    asked.env = c->env;
    asked.function = TLI_IN(COMPILE);
    asked.graph = graph;
    asked.gradient = &c->strategy->gradient;
    asked.memory = c->strategy->memory;
    asked.inference = c->inference;
    asked.in_arena = c->in_arena;
    asked.device = c->desc->device;
    asked.live = asked.arena = c->budget;
    asked.alignment_bytes = c->desc->alignment_bytes;
    asked.block_bytes = c->desc->block_bytes;
    asked.work_limit = work_limit;
    asked.is_trial = 1;
    asked.in_flight = c->desc->in_flight;
    asked.codec = c->compresses ? c->codec : TL_CODEC_NONE;
    if (c->desc->progress) {
        asked.progress = tli_watch_compile;
        asked.user = c;
    }
    return asked;
}

// Give a plan the places that it lacks.
static tl_result tli_place_compiled(tli_compile *c, const tl_graph *graph, tl_plan *plan) {
    tl_places_desc places;
    tl_device device;
    tl_result result;
    plan->in_flight = c->desc->in_flight;
    if (!c->in_arena || plan->offset_count) return TL_OK;
    tli_zero(&device, sizeof device);
    if (c->desc->device) device = *c->desc->device;
    device.alignment_bytes = c->desc->alignment_bytes;
    tli_zero(&places, sizeof places);
    places.graph = graph;
    places.device = &device;
    places.work_limit = c->try_work;
    places.block_bytes = c->desc->block_bytes;
    result = tl_plan_places(c->env, &places, plan, NULL);
    if (result) tl_free_plan(c->env, plan);
    return result;
}

static uint64_t tli_compiled_bytes(const tli_compile *c, const tl_plan *plan) {
    return c->in_arena ? plan->arena_bytes : plan->peak_bytes;
}

// Note the budget that the combination at hand would do with; bytes 0 = not known.
static void tli_note_least(tli_compile *c, uint64_t bytes, int32_t node, uint64_t *needed) {
    if (bytes) *needed = bytes;
    if (!bytes || bytes >= c->least) return;
    c->least = bytes;
    c->least_node = node;
    c->least_work = c->plan_work;
}

// The node of the caller's graph that a node of the graph at hand stands for.
static int32_t tli_find_origin(const tli_compile *c, const tl_precision_graph *applied, int32_t node) {
    if (node < 0) return node;
    if (applied->memory) node = applied->nodes[node];
    return c->graph == &c->source ? node : c->fusion.members[c->fusion.first_members[node + 1] - 1];
}

// Plan a graph within the budget, with places. TL_ERROR_INFEASIBLE: nothing fits, and *needed is the budget
// that would do, UINT64_MAX = not known.
static tl_result tli_plan_graph(tli_compile *c, const tl_precision_graph *applied, uint64_t work_limit,
                                tl_plan *plan, int32_t *proven, uint64_t *needed) {
    const tl_graph *graph = applied->memory ? &applied->graph : c->graph;
    tli_asked asked = tli_ask_for_compile(c, graph, work_limit);
    tl_remat_report report;
    tl_result result;
    asked.formats = applied->formats;
    *needed = UINT64_MAX;
    tli_zero(plan, sizeof *plan);
    result = tli_plan_asked(&asked, plan, &report);
    c->work += report.work + (uint64_t)graph->node_count * 64;
    *proven = report.bound_cost || result ? report.proven : !c->fewest;
    if (result == TL_ERROR_INFEASIBLE) {
        int32_t node = report.limiting_node;
        tli_note_least(c, report.least_budget_bytes, tli_find_origin(c, applied, node), needed);
        return result;
    }
    if (!result) result = tli_place_compiled(c, graph, plan);
    if (result) return result;
    plan->base_bytes = c->budget.base_bytes;
    if (!c->budget.is_over && tli_compiled_bytes(c, plan) <= c->budget.bytes &&
        (c->in_arena ? plan->host_arena_bytes : plan->host_peak_bytes) <= c->budget.host_bytes) return TL_OK;
    tli_note_least(c, tli_add_base(&c->budget, tli_compiled_bytes(c, plan)), -1, needed);
    *proven = plan->peak_bytes > c->budget.bytes && !c->fewest && !report.bound_cost;
    tl_free_plan(c->env, plan);
    return TL_ERROR_INFEASIBLE;
}

static void tli_describe_choice(const tli_compile *c, const tl_precision_graph *applied, const tl_plan *plan,
                                tl_compile_choice *choice) {
    int32_t id, k;
    tli_zero(choice, sizeof *choice);
    choice->part_count = c->parts;
    choice->fused_count = c->fusion.fused_count;
    choice->conversion_count = applied->conversion_count;
    choice->cost = tli_find_step_cost(c, plan->cost);
    choice->arena_bytes = tli_compiled_bytes(c, plan);
    for (k = 0; k < plan->step_count; k++) {
        tl_step_kind kind = (tl_step_kind)tl_find_step(plan, k).kind;
        choice->copy_count += kind == TL_STEP_SPILL || kind == TL_STEP_FETCH;
        choice->compressed_count += kind == TL_STEP_COMPRESS;
    }
    for (id = 0; id < c->graph->node_count; id++) {
        int32_t scheme = c->is_mixed ? (int32_t)c->schemes[id] : (int32_t)TL_SCHEME_F32;
        choice->format_counts[tli_scheme_formats[scheme]]++;
        if (c->is_mixed) choice->loss += c->choices->node_losses[(size_t)id * TL_SCHEME_COUNT + (size_t)scheme];
    }
    if (c->is_mixed && c->choices->loss_units != TL_UNLIMITED && choice->loss > c->choices->desc.loss_limit)
        choice->loss = c->choices->desc.loss_limit;     // the exact sum is within it; that of doubles may not
}

// Remember the numbers that make the graphs at hand again.
static void tli_remember_mix(tli_compile *c) {
    c->best_parts = c->parts;
    c->best_compresses = c->compresses;
    tli_copy(c->best_apart, c->apart, (size_t)c->source.node_count);
    tli_copy(c->best_schemes, c->schemes, (size_t)c->graph->node_count);
}

// Whether the combination at hand is the best one.
static int tli_is_at_best(const tli_compile *c) {
    return c->has_best && c->parts == c->best_parts && c->compresses == c->best_compresses &&
           TLI_MEMCMP(c->apart, c->best_apart, (size_t)c->source.node_count) == 0 &&
           TLI_MEMCMP(c->schemes, c->best_schemes, (size_t)c->graph->node_count) == 0;
}

// Take a plan for the best, or for the runner-up, or release it.
static void tli_offer_choice(tli_compile *c, const tl_precision_graph *applied, tl_plan *plan) {
    tl_compile_choice choice;
    int is_again = tli_is_at_best(c);
    tli_describe_choice(c, applied, plan, &choice);
    if (!c->has_best || tli_is_better(c, &choice, &c->choice)) {
        if (c->has_best && !is_again) c->runner_up = c->choice;
        tl_free_plan(c->env, &c->plan);
        c->plan = *plan;
        c->choice = choice;
        c->has_best = 1;
        tli_remember_mix(c);
        return;
    }
    if (!is_again && tli_is_better(c, &choice, &c->runner_up)) c->runner_up = choice;
    tl_free_plan(c->env, plan);
}

// -- compile: finalists --

// Whether a finalist is better than another one: what fits first.
static int tli_is_ahead(const tli_finalist *a, const tli_finalist *b) {
    if (a->fits != b->fits) return a->fits;
    return a->value < b->value;
}

// The place of a new finalist: of itself, of the worst of its kind, a free one, or of the worst of all.
static tli_finalist *tli_place_finalist(tli_compile *c, const tli_finalist *f, int32_t *is_known) {
    tli_finalist *worst = NULL, *of_kind = NULL;
    int32_t i, count = 0;
    for (i = 0; i < c->finalist_count; i++) {
        tli_finalist *other = &c->finalists[i];
        int same_kind = other->parts == f->parts && other->is_wide == f->is_wide;
        if (same_kind && other->compresses == f->compresses &&
            TLI_MEMCMP(c->apart, other->apart, (size_t)c->source.node_count) == 0 &&
            TLI_MEMCMP(c->schemes, other->schemes, (size_t)c->graph->node_count) == 0) {
            *is_known = 1;
            return other;
        }
        if (!worst || tli_is_ahead(worst, other)) worst = other;
        if (!same_kind) continue;
        count++;
        if (!of_kind || tli_is_ahead(of_kind, other)) of_kind = other;
    }
    if (count >= TLI_COMPILE_OF_KIND) return tli_is_ahead(f, of_kind) ? of_kind : NULL;
    if (c->finalist_count < TLI_COMPILE_FINALISTS) return &c->finalists[c->finalist_count++];
    return tli_is_ahead(f, worst) ? worst : NULL;
}

// Remember the combination at hand, which was planned with plan_work.
static void tli_note_finalist(tli_compile *c, uint64_t value, int fits, int is_settled) {
    tli_finalist f, *place;
    int32_t id, is_known = 0;
    f.value = value;
    f.work = c->plan_work;
    f.fits = fits;
    f.is_settled = is_settled;
    f.is_wide = 1;
    for (id = 0; id < c->graph->node_count && c->is_mixed; id++) f.is_wide &= c->schemes[id] == TL_SCHEME_F32;
    f.parts = c->parts;
    f.compresses = c->compresses;
    place = tli_place_finalist(c, &f, &is_known);
    if (!place) return;
    if (is_known && !tli_is_ahead(&f, place)) {         // no better than in its plan before
        place->work = f.work;
        place->is_settled |= f.is_settled;
        return;
    }
    f.apart = place->apart;
    f.schemes = place->schemes;
    *place = f;
    tli_copy(f.apart, c->apart, (size_t)c->source.node_count);
    tli_zero(f.schemes, (size_t)c->source.node_count);
    tli_copy(f.schemes, c->schemes, (size_t)c->graph->node_count);
}

// Count the forwards of the nodes of the graph at hand in a plan of it, or of it with conversions.
static void tli_count_runs(tli_compile *c, const tl_precision_graph *applied, const tl_plan *plan) {
    int32_t k;
    tli_zero(c->runs, (size_t)c->graph->node_count);
    for (k = 0; k < plan->step_count; k++) {
        tl_step step = tl_find_step(plan, k);
        uint8_t *runs;
        if (step.kind != TL_STEP_FORWARD && step.kind != TL_STEP_FORWARD_INPLACE &&
            step.kind != TL_STEP_FORWARD_SAVE) continue;
        runs = &c->runs[applied->memory ? applied->nodes[step.node] : step.node];
        if (*runs < 255) ++*runs;
    }
    c->has_runs = 1;
}

// Whether the calls of a graph cost too much already. -1 = no memory.
static int tli_is_too_dear(tli_compile *c, const tl_graph *graph) {
    uint8_t *is_wanted = (uint8_t *)tli_alloc_array(c->env, (uint64_t)graph->node_count, 1);
    int is_out;
    c->work += (uint64_t)graph->node_count * 64;
    if (!is_wanted) return -1;
    tli_mark_wanted(graph, c->inference, is_wanted);
    is_out = tli_is_ruled_out(c, tli_find_step_cost(c, tli_sum_wanted(c, graph, is_wanted)));
    tli_release(c->env, is_wanted);
    return is_out;
}

// Plan the combination at hand with plan_work, unless its calls cost too much.
static tl_result tli_try_mix(tli_compile *c) {
    tl_precision_graph applied;
    tl_plan plan;
    uint64_t least = c->least, needed;
    int32_t proven = 0;
    tl_result result = tli_apply_mix(c, &applied);
    int is_out;
    c->has_runs = 0;
    if (result) return result;
    is_out = tli_is_too_dear(c, applied.memory ? &applied.graph : c->graph);
    if (is_out < 0) result = tli_fail_compile(c);
    if (!is_out) {
        c->tried_count++;
        result = tli_plan_graph(c, &applied, c->plan_work, &plan, &proven, &needed);
        if (!result || result == TL_ERROR_INFEASIBLE) c->is_complete &= proven;
        if (!result) {
            uint64_t cost = tli_find_step_cost(c, plan.cost);
            tli_note_finalist(c, c->fewest ? tli_compiled_bytes(c, &plan) : cost, 1, proven);
            tli_count_runs(c, &applied, &plan);
            tli_offer_choice(c, &applied, &plan);
        } else if (result == TL_ERROR_INFEASIBLE) {
            if (needed != UINT64_MAX && (!proven || c->seeks_least)) tli_note_finalist(c, needed, 0, 0);
            if (!c->has_best && c->least < least) tli_remember_mix(c);
        }
        tli_report_progress(c);
    }
    tl_free_precision_graph(c->env, &applied);
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

// -- compile: mixes of formats --

// Prices of a byte, in units of the time of all calls over all bytes. First time alone and bytes alone, then
// the middle, then what lies between.
static const double tli_byte_prices[] = { 0, 4096, 0.5, 8, 0.125, 2, 0.03125, 1, 32, 0.25, 0.0625 };

// Whether a mix was tried; if not, remember it.
static int tli_is_mix_known(tli_compile *c) {
    size_t nodes = (size_t)c->graph->node_count;
    int32_t i;
    for (i = 0; i < c->mix_count; i++)
        if (TLI_MEMCMP(c->mixes + (size_t)i * nodes, c->schemes, nodes) == 0) return 1;
    if (c->mix_count < TLI_COMPILE_MIXES)
        tli_copy(c->mixes + (size_t)c->mix_count++ * nodes, c->schemes, nodes);
    return 0;
}

// What a price of a byte is for, beside what nodes save for their backwards.
typedef enum tli_price_rule {
    TLI_PRICE_ALL,    // every output, and copies in other formats
    TLI_PRICE_MADE,   // outputs alone
    TLI_PRICE_KEPT,   // outputs that a backward reads, and their copies
    TLI_PRICE_OVER,   // outputs and their copies, by the share of the steps over the budget in which the
                      // outputs live if all is kept
    TLI_PRICE_RULES
} tli_price_rule;

// price x bytes, at most `most`, so that sums over a graph stay within the bits of a choice.
static uint64_t tli_price_bytes(double price, uint64_t bytes, uint64_t most) {
    double cost = price * (double)bytes;
    return cost < (double)most ? (uint64_t)cost : most;
}

// The price of the bytes of a node in a scheme: of its outputs by their weights, and of what it saves for its
// backward; at most `most`.
static uint64_t tli_price_node(const tli_compile *c, int32_t id, int32_t scheme, double price, uint64_t most) {
    const tl_node *node = &c->graph->nodes[id];
    tl_format format = tl_find_scheme_format((tl_scheme)scheme);
    uint64_t saved = c->inference ? 0 : tl_find_format_bytes(format, node->saved_bytes);
    uint64_t sum = tli_price_bytes(price, saved, most);
    int32_t k;
    for (k = node->first_output; k < node->first_output + node->output_count; k++) {
        uint64_t bytes = tl_find_format_bytes(format, c->graph->outputs[k].bytes);
        sum += tli_price_bytes(price * c->weights[k], bytes, most);
    }
    return sum < most ? sum : most;
}

// Choose formats by the costs at hand.
static tl_result tli_pick_formats(tli_compile *c, tli_precision *p) {
    tli_pick pick;
    uint64_t strict = tli_find_strict_units(p);
    int turns = TLI_STRICT_TURNS;
    tl_result result = tli_pick_cost(p, p->loss_units, &pick);
    while (!result && tli_is_over_limit(p, p->schemes))
        result = tli_pick_cost(p, turns-- > 0 && pick.loss > strict ? pick.loss - 1 : strict, &pick);
    c->work += (uint64_t)c->graph->node_count * 4096;
    if (result == TL_ERROR_INFEASIBLE)
        return tli_fail(c->env, TL_ERROR_INFEASIBLE, TLI_IN(COMPILE),
                        TLI_RULE(LOSS_LIMIT_NO_CHOICE_OF_FORMATS));
    if (!result) tli_copy(c->schemes, p->schemes, (size_t)c->graph->node_count);
    return result;
}

// Choose formats by time and a price of a byte.
static tl_result tli_pick_priced(tli_compile *c, tli_precision *p, double price, int copies) {
    uint64_t places = (uint64_t)c->graph->node_count * TL_SCHEME_COUNT, i;
    uint64_t most = (UINT64_C(1) << 58) / ((uint64_t)p->node_count + (uint64_t)p->net_count * TL_FORMAT_COUNT);
    const uint64_t *net_costs = c->unpriced + (uint64_t)p->node_count * TL_SCHEME_COUNT;
    uint64_t net_places = (uint64_t)p->net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
    for (i = 0; i < places; i++)
        if (c->unpriced[i] != TL_FORBIDDEN)
            p->costs[i] = c->unpriced[i] + tli_price_node(c, (int32_t)(i / TL_SCHEME_COUNT),
                                                          (int32_t)(i % TL_SCHEME_COUNT), price, most);
    for (i = 0; i < net_places; i++) {
        int32_t tensor = p->net_tensors[i / (TL_FORMAT_COUNT * TL_FORMAT_COUNT)];
        tl_format from = (tl_format)(i / TL_FORMAT_COUNT % TL_FORMAT_COUNT);
        tl_format to = (tl_format)(i % TL_FORMAT_COUNT);
        uint64_t bytes = tl_find_format_bytes(to, c->graph->outputs[tensor].bytes);
        if (from == to) continue;
        p->net_costs[i] = net_costs[i];
        if (copies) p->net_costs[i] += tli_price_bytes(price * c->weights[tensor], bytes, most);
    }
    return tli_pick_formats(c, p);
}

// Room for what prices are added to; 0 = no memory.
static int tli_open_prices(tli_compile *c, const tli_precision *p) {
    uint64_t costs = (uint64_t)p->node_count * TL_SCHEME_COUNT;
    uint64_t net_costs = (uint64_t)p->net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
    c->unpriced = (uint64_t *)tli_alloc_array(c->env, costs + net_costs, sizeof *c->unpriced);
    c->weights = (double *)tli_alloc_array(c->env, (uint64_t)c->graph->tensor_count,
                                           TLI_PRICE_RULES * sizeof *c->weights);
    if (!c->unpriced || !c->weights) return 0;
    tli_copy(c->unpriced, p->costs, (size_t)costs * sizeof *c->unpriced);
    tli_copy(c->unpriced + costs, p->net_costs, (size_t)net_costs * sizeof *c->unpriced);
    return 1;
}

static void tli_close_prices(tli_compile *c, tli_precision *p, double *weights) {
    uint64_t costs = (uint64_t)p->node_count * TL_SCHEME_COUNT;
    uint64_t net_costs = (uint64_t)p->net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
    if (c->unpriced && weights) {
        tli_copy(p->costs, c->unpriced, (size_t)costs * sizeof *c->unpriced);
        tli_copy(p->net_costs, c->unpriced + costs, (size_t)net_costs * sizeof *c->unpriced);
    }
    tli_release(c->env, c->unpriced);
    tli_release(c->env, weights);
    c->unpriced = NULL;
    c->weights = NULL;
}

// Add to the weight of each output the share of the steps over the budget in which it lives. over: [steps + 1]
// how many steps over the budget there are before each step.
static void tli_add_over(tli_compile *c, const tl_lifetimes *lifetimes, const int32_t *over, int32_t steps) {
    int32_t k;
    for (k = 0; k < lifetimes->count; k++) {
        const tl_lifetime *l = &lifetimes->items[k];
        int32_t first = l->first_step < 0 ? 0 : l->first_step;
        if (l->use != TL_USE_OUTPUT || !over[steps]) continue;
        c->weights[c->graph->nodes[l->node].first_output + l->output] +=
            (double)(over[l->end_step] - over[first]) / (double)over[steps];
    }
}

// Weigh the outputs by the steps of a plan that keeps all, of which those over the budget count.
static tl_result tli_weigh_over(tli_compile *c) {
    tl_simulate_desc simulate;
    tl_lifetimes lifetimes;
    tl_report report;
    tl_plan plan;
    uint64_t *live;
    int32_t *over, k;
    tl_result result = tl_plan_keep_all(c->env, c->graph, c->inference, &plan);
    if (result) return result;
    live = (uint64_t *)tli_alloc_array(c->env, (uint64_t)plan.step_count, sizeof *live);
    over = (int32_t *)tli_alloc_array(c->env, (uint64_t)plan.step_count + 1, sizeof *over);
    tli_zero(&lifetimes, sizeof lifetimes);
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = c->graph;
    simulate.plan = &plan;
    simulate.live_bytes = live;
    if (!live || !over) result = tli_fail_compile(c);
    if (!result) result = tl_simulate_plan(c->env, &simulate, &report);
    if (!result) result = tl_find_lifetimes(c->env, c->graph, &plan, &lifetimes);
    for (k = 0; k < plan.step_count && !result; k++) over[k + 1] = over[k] + (live[k] > c->budget.bytes);
    if (!result) tli_add_over(c, &lifetimes, over, plan.step_count);
    tl_free_lifetimes(c->env, &lifetimes);
    tli_release(c->env, live);
    tli_release(c->env, over);
    tl_free_plan(c->env, &plan);
    return result;
}

// Set the weights of a rule.
static tl_result tli_weigh_tensors(tli_compile *c, tli_price_rule rule) {
    const tl_graph *graph = c->graph;
    int32_t k;
    for (k = 0; k < graph->tensor_count; k++)
        c->weights[k] = rule == TLI_PRICE_OVER ? 0 : rule == TLI_PRICE_KEPT ? graph->outputs[k].needed : 1;
    for (k = 0; k < graph->input_count && rule == TLI_PRICE_KEPT; k++)
        if (graph->inputs[k].needed) c->weights[graph->inputs[k].tensor] = 1;
    return rule == TLI_PRICE_OVER ? tli_weigh_over(c) : TL_OK;
}

// The time of all calls over all bytes, in f32.
static double tli_find_price_unit(const tli_compile *c) {
    uint64_t time = 0, bytes = 1;
    int32_t id, k;
    for (id = 0; id < c->graph->node_count; id++) time += tli_find_call_costs(c, &c->graph->nodes[id]);
    for (k = 0; k < c->graph->tensor_count; k++) bytes += c->graph->outputs[k].bytes;
    return (double)(time + 1) / (double)bytes;
}

static tli_precision *tli_open_choices(tli_compile *c) {
    return c->graph == &c->source ? &c->tables : &c->options;
}

// Plan the mixes that a price of a byte leads to by each rule; a price of 0 is the same by all.
static tl_result tli_try_price(tli_compile *c, tli_precision *p, double *weights, double price) {
    tl_result result = TL_OK;
    int rule;
    for (rule = 0; rule < (price > 0 ? TLI_PRICE_RULES : 1) && !result && !tli_is_out_of_work(c); rule++) {
        if (c->inference && rule == TLI_PRICE_KEPT) continue;   // nothing is kept for a backward
        c->weights = weights + (size_t)rule * (size_t)c->graph->tensor_count;
        result = tli_pick_priced(c, p, price, rule != TLI_PRICE_MADE);
        if (!result && !tli_is_mix_known(c)) result = tli_try_mix(c);
    }
    return result;
}

// Plan the mixes that prices of a byte lead to, the first of them with none.
static tl_result tli_try_prices(tli_compile *c) {
    size_t rows = sizeof tli_byte_prices / sizeof tli_byte_prices[0], i;
    tli_precision *p = tli_open_choices(c);
    tl_result result = tli_open_prices(c, p) ? TL_OK : tli_fail_compile(c);
    double unit = tli_find_price_unit(c), *weights = c->weights;
    int rule;
    for (rule = 0; rule < TLI_PRICE_RULES && !result; rule++) {
        c->weights = weights + (size_t)rule * (size_t)c->graph->tensor_count;
        result = tli_weigh_tensors(c, (tli_price_rule)rule);
    }
    for (i = 0; i < rows && !result && !tli_is_out_of_work(c); i++)
        result = tli_try_price(c, p, weights, unit * tli_byte_prices[i]);
    tli_close_prices(c, p, weights);
    return result;
}

// Raise the times of a choice by what the last plan runs again: precision after recomputation.
static void tli_price_runs(tli_compile *c, tli_precision *p) {
    int32_t id, k;
    for (id = 0; id < c->graph->node_count; id++) {
        const tl_node *node = &c->graph->nodes[id];
        uint64_t once = tli_find_call_costs(c, node), again, most = UINT64_C(1) << 40;
        if (c->runs[id] < 2 || !once) continue;
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            uint64_t *cost = &p->costs[(size_t)id * TL_SCHEME_COUNT + (size_t)k];
            if (*cost == TL_FORBIDDEN) continue;
            again = tli_multiply_ratio(*cost, node->fwd_cost, once, 1);
            if (again > most) again = most;     // sums over a graph stay within the bits of a choice
            *cost += again * (uint64_t)(c->runs[id] - 1);
        }
    }
}

// After a plan in f32: choose the formats in which the calls of that plan are fastest, and plan with them.
static tl_result tli_try_after_plan(tli_compile *c) {
    tli_precision *p = tli_open_choices(c);
    tl_result result;
    double *weights;
    if (!c->is_mixed || !c->has_runs) return TL_OK;
    result = tli_open_prices(c, p) ? TL_OK : tli_fail_compile(c);
    weights = c->weights;
    if (!result) {
        tli_price_runs(c, p);
        result = tli_pick_formats(c, p);
    }
    if (!result && !tli_is_mix_known(c)) result = tli_try_mix(c);
    tli_close_prices(c, p, weights);
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;      // tli_try_prices reports this error
}

// Whether the mix at hand keeps the limit of the loss.
static int tli_keeps_loss(const tli_compile *c) {
    const tli_precision *p = c->choices;
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < c->graph->node_count; id++)
        sum += p->losses[(size_t)id * TL_SCHEME_COUNT + c->schemes[id]];
    return p->loss_units == TL_UNLIMITED || (sum <= p->loss_units && !tli_is_over_limit(p, c->schemes));
}

// Whether every node may stay in f32.
static int tli_may_be_wide(const tli_compile *c) {
    int32_t id;
    for (id = 0; c->is_mixed && id < c->graph->node_count; id++)
        if (c->choices->costs[(size_t)id * TL_SCHEME_COUNT] == TL_FORBIDDEN) return 0;
    return 1;
}

// Everything in f32, where it may be: that keeps any limit of the loss. 0 = it may not.
static int tli_choose_wide(tli_compile *c) {
    int32_t id;
    for (id = 0; id < c->graph->node_count; id++) c->schemes[id] = TL_SCHEME_F32;
    return tli_may_be_wide(c);
}

// Plan the mix in which every node that may have a scheme has it, and each other node the first that it may
// have, mostly f32.
static tl_result tli_try_uniform(tli_compile *c, int32_t scheme) {
    int32_t id, k;
    for (id = 0; id < c->graph->node_count; id++) {
        const uint64_t *costs = c->choices->costs + (size_t)id * TL_SCHEME_COUNT;
        for (k = costs[scheme] != TL_FORBIDDEN ? scheme : 0; k < TL_SCHEME_COUNT; k++)
            if (costs[k] != TL_FORBIDDEN) break;
        c->schemes[id] = (uint8_t)k;
    }
    return !tli_keeps_loss(c) || tli_is_mix_known(c) ? TL_OK : tli_try_mix(c);
}

static tl_result tli_try_uniforms(tli_compile *c) {
    tl_result result = TL_OK;
    int32_t scheme;
    for (scheme = 0; scheme < TL_SCHEME_COUNT && !result && !tli_is_out_of_work(c); scheme++)
        if (scheme != TL_SCHEME_F32 && TLI_FLOAT_SCHEMES >> scheme & 1) result = tli_try_uniform(c, scheme);
    return result;
}

// -- compile: mixes of formats, all of them --

// How many mixes the graph at hand has; TLI_COMPILE_MOST + 1 = more than that.
static uint64_t tli_count_mixes(const tli_compile *c) {
    uint64_t count = 1;
    int32_t id, k;
    for (id = 0; c->is_mixed && id < c->graph->node_count; id++) {
        uint64_t schemes = 0;
        for (k = 0; k < TL_SCHEME_COUNT; k++)
            schemes += c->choices->costs[(size_t)id * TL_SCHEME_COUNT + (size_t)k] != TL_FORBIDDEN;
        count *= schemes;
        if (count > TLI_COMPILE_MOST) return TLI_COMPILE_MOST + 1;
    }
    return count;
}

// Time and loss of the first so many nodes of a mix that is built node by node.
typedef struct tli_partial {
    uint64_t time, loss;
    uint64_t rest;        // the least time of all others, of those that have to run
} tli_partial;

// Go on to the next scheme of a node with which the mix may become the best; 0 = there is none.
static int tli_next_scheme(tli_compile *c, tli_partial *at, int32_t id, int32_t *scheme) {
    const tli_precision *p = c->choices;
    for (++*scheme; *scheme < TL_SCHEME_COUNT; ++*scheme) {
        size_t place = (size_t)id * TL_SCHEME_COUNT + (size_t)*scheme;
        if (p->costs[place] == TL_FORBIDDEN) continue;
        at[1].loss = at->loss + p->losses[place];
        at[1].time = at->time + (c->is_wanted[id] ? p->times[place] : 0);
        if (p->loss_units != TL_UNLIMITED && at[1].loss > p->loss_units) continue;
        if (!tli_is_ruled_out(c, tli_find_step_cost(c, at[1].time + at[1].rest))) return 1;
    }
    return 0;
}

// Fill in the least times of the nodes that follow.
static void tli_find_rests(tli_compile *c, tli_partial *at) {
    int32_t id, k;
    tli_zero(&at[c->graph->node_count], sizeof *at);
    for (id = c->graph->node_count; id-- > 0;) {
        uint64_t least = UINT64_MAX;
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            size_t place = (size_t)id * TL_SCHEME_COUNT + (size_t)k;
            if (c->choices->costs[place] != TL_FORBIDDEN && c->choices->times[place] < least)
                least = c->choices->times[place];
        }
        at[id].rest = at[id + 1].rest + (c->is_wanted[id] ? least : 0);
        at[id].time = at[id].loss = 0;
    }
}

static tl_result tli_try_all(tli_compile *c) {
    int32_t count = c->graph->node_count, id = 0, *scheme;
    tli_partial *at = (tli_partial *)tli_alloc_array(c->env, (uint64_t)count + 1, sizeof *at);
    tl_result result = TL_OK;
    scheme = (int32_t *)tli_alloc_array(c->env, (uint64_t)count, sizeof *scheme);
    if (at && scheme) {
        tli_mark_wanted(c->graph, c->inference, c->is_wanted);
        tli_find_rests(c, at);
        for (scheme[0] = -1; id >= 0 && !result && !tli_is_out_of_work(c);) {
            if (!tli_next_scheme(c, &at[id], id, &scheme[id])) { id--; continue; }
            c->schemes[id] = (uint8_t)scheme[id];
            if (++id < count) { scheme[id] = -1; continue; }
            id--;
            if (tli_keeps_loss(c) && !tli_is_mix_known(c)) result = tli_try_mix(c);
        }
    } else {
        result = tli_fail_compile(c);
    }
    tli_release(c->env, at);
    tli_release(c->env, scheme);
    return result;
}

// -- compile: mixes of formats, run by run --
//
// Beside the best mix, or where nothing fits the one that takes the fewest bytes: runs of 1, 2, 4 and 8 nodes
// in another format, first those that begin at the nodes with the most bytes, as long as that helps.

// Put a run of nodes of the best mix into a scheme, as far as they may have it; 0 = that changes nothing, or
// the first one has it already.
static int tli_turn_run(tli_compile *c, int32_t first, int32_t count, int32_t scheme) {
    int32_t id, changed = 0;
    tli_copy(c->schemes, c->best_schemes, (size_t)c->graph->node_count);
    for (id = first; id < first + count && id < c->graph->node_count; id++) {
        if (c->choices->costs[(size_t)id * TL_SCHEME_COUNT + (size_t)scheme] == TL_FORBIDDEN) continue;
        changed |= c->schemes[id] != scheme;
        c->schemes[id] = (uint8_t)scheme;
    }
    return changed && c->best_schemes[first] != scheme;
}

// The node with the most bytes that was not tried yet; -1 = all were.
static int32_t tli_find_largest_node(const tli_compile *c, const uint8_t *is_tried) {
    uint64_t most = 0;
    int32_t id, k, largest = -1;
    for (id = 0; id < c->graph->node_count; id++) {
        const tl_node *node = &c->graph->nodes[id];
        uint64_t bytes = 1 + node->saved_bytes;
        for (k = node->first_output; k < node->first_output + node->output_count; k++)
            bytes += c->graph->outputs[k].bytes;
        if (!is_tried[id] && !node->is_input && bytes > most) { most = bytes; largest = id; }
    }
    return largest;
}

// Turn runs that begin with one node. *helped: whether a better mix was found.
static tl_result tli_turn_runs(tli_compile *c, int32_t first, int *helped) {
    tl_result result = TL_OK;
    int32_t count, scheme;
    for (count = 1; count <= 8; count *= 2)
        for (scheme = 0; scheme < TL_SCHEME_COUNT && !result; scheme++) {
            uint64_t before = c->has_best ? c->choice.cost : c->least;
            int had_best = c->has_best;
            if (tli_is_out_of_work(c) || tli_is_near(c)) return TL_OK;
            if (!tli_turn_run(c, first, count, scheme) || !tli_keeps_loss(c)) continue;
            result = tli_try_mix(c);
            *helped |= had_best != c->has_best || (c->has_best ? c->choice.cost : c->least) < before;
        }
    return result;
}

// Turn runs of all nodes as long as that helps. The graphs of the best are open.
static tl_result tli_turn_formats(tli_compile *c) {
    uint8_t *is_tried = (uint8_t *)tli_alloc_array(c->env, (uint64_t)c->graph->node_count, 1);
    tl_result result = is_tried ? TL_OK : tli_fail_compile(c);
    int32_t id = 0;
    int helped = 1;
    while (helped && !result && !tli_is_out_of_work(c) && !tli_is_near(c)) {
        helped = 0;
        tli_zero(is_tried, (size_t)c->graph->node_count);
        while (!result && !tli_is_out_of_work(c) && (id = tli_find_largest_node(c, is_tried)) >= 0) {
            is_tried[id] = 1;
            result = tli_turn_runs(c, id, &helped);
        }
    }
    tli_release(c->env, is_tried);
    return result;
}

// Give the next plan one part in so many of the work that is left, but try_work at most.
static void tli_share_work(tli_compile *c, uint64_t count) {
    uint64_t left = c->work_limit > c->work ? c->work_limit - c->work : 0;
    c->plan_work = left / count < c->try_work ? left / count + 1 : c->try_work;
}

// Plan one set of fused chains in f32, where it may be, and with formats for that plan.
static tl_result tli_try_wide(tli_compile *c) {
    tl_result result = tli_open_variant(c);
    tli_share_work(c, 2);
    if (!result && tli_choose_wide(c)) {
        (void)tli_is_mix_known(c);
        result = tli_try_mix(c);
        tli_share_work(c, 2);
        if (!result && !c->stopped) result = tli_try_after_plan(c);
    }
    tli_close_variant(c);
    return result;
}

// Plan the mixes of one set of fused chains. has_wide: it was planned in f32 before.
static tl_result tli_try_variant(tli_compile *c, int has_wide) {
    tl_result result = tli_open_variant(c);
    if (!result && tli_choose_wide(c)) {
        (void)tli_is_mix_known(c);
        if (!has_wide) result = tli_try_mix(c);
    }
    if (!result && c->is_mixed && (tli_count_mixes(c) > 1 || !tli_may_be_wide(c))) {
        result = tli_try_uniforms(c);
        if (!result) result = tli_try_prices(c);
        if (result == TL_ERROR_INFEASIBLE && tli_may_be_wide(c)) {  // the search failed; f32 keeps the limit
            c->is_complete = 0;
            result = TL_OK;
        }
        if (!result && c->enumerates) result = tli_try_all(c);
        if (!c->enumerates || tli_is_out_of_work(c)) c->is_complete = 0;
    }
    tli_close_variant(c);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
