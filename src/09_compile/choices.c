#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- compile --
//
// Each combination of outer choices is a graph, and each trial of one a plan of [6] within the budget:
//
//     number of parts            the caller's graph in the precision and of one part: source
//       set of fused chains      source with these chains fused: graph
//         mix of formats         graph with conversions: applied
//           plan, places, compare
//
// Nothing that a narrower call would find may be missed because other choices used up the work. It is shared:
//
//     a quarter       every number of parts: its bound (tli_bound_part), all in f32 with every chain fused, or
//                     with none, and formats for what that plan runs again
//     a quarter       every number of parts: other chains and mixes, planned with little work
//     the rest        chains and formats beside the best; then the best of each kind, the finalists, are
//                     planned again: all of them, the better half with more work, and so on, until one gets
//                     what is left
//
// With a codec all of this happens twice: first without compressed copies, which are proven sooner, then with.
//
// A combination is left out where the calls of its graph alone, each once, cost as much as the best plan, or as
// the runner-up while that is searched for (second_work). Where bytes come first, none is left out so.
// What is kept of the best is its plan and the numbers that make its graphs again at the end.

#define TLI_COMPILE_WORK      UINT64_C(700000000)   // steps by default
#define TLI_COMPILE_TRY_WORK  UINT64_C(15000000)    // of the plan of a combination, and 4000 a node
#define TLI_COMPILE_MIXES     64      // mixes by prices of a byte that are remembered, to plan none twice
#define TLI_COMPILE_MOST      4096    // combinations, up to which all are enumerated
#define TLI_COMPILE_CHAINS    16      // chains, up to which each is tried apart, or fused, beside the best
#define TLI_COMPILE_FINALISTS 12
#define TLI_COMPILE_OF_KIND   2       // most finalists of one kind: number of parts, all in f32 or not

// A combination that was planned, and may be planned again with more work.
typedef struct tli_finalist {
    uint64_t value;                   // cost of its plan, with `fewest` its bytes; its least budget without one
    uint64_t work;                    // with which it was planned
    int32_t  fits;                    // 1 = there is a plan
    int32_t  is_settled;              // 1 = more work finds no other plan
    int32_t  is_wide;                 // 1 = all in f32
    int32_t  parts, compresses;
    uint8_t *apart, *schemes;         // [nodes of source]
} tli_finalist;

// A number of parts.
typedef struct tli_batch_part {
    uint64_t bound;                   // of a step; UINT64_MAX = nothing fits
    int32_t  parts;
    int32_t  is_out;                  // 1 = the batch cannot be split so
    int32_t  enumerates;              // 1 = all combinations are planned
} tli_batch_part;

typedef struct tli_compile {
    tl_env          *env;
    const tl_compile_desc *desc;
    const tl_strategy *strategy;
    tli_budget       budget;
    tl_precision     precision;      // of all tensors, where no formats are chosen
    int32_t          inference, in_arena, is_mixed;
    int32_t          fewest;         // 1 = bytes come first, then the cost
    tl_codec         codec;          // by which f32 tensors may be compressed
    int32_t          compresses;     // 1 = the plans at hand may
    uint64_t         work, work_limit;
    uint64_t         try_work;       // of the plan of a combination; plan_work: of the one at hand
    uint64_t         plan_work;
    uint64_t         second_work;    // up to which small graphs are searched for the runner-up, too
    int32_t          stopped;        // by progress
    int32_t          tried_count;
    int32_t          is_bounded;     // 1 = the bound is of all numbers of parts
    int32_t          is_complete;    // 1 = every combination so far was proven, or ruled out
    int32_t          enumerates;     // 1 = all combinations are planned
    int32_t          seeks_least;    // 1 = the budget is one byte: what counts is the least budget
    tli_batch_part        *part_list;      // [part_count] the numbers of parts, rising
    int32_t          part_count, part_capacity;
    // One number of parts.
    int32_t          parts;
    int32_t          owns_source;    // 0 = source is the desc's graph
    tl_graph         source;
    tli_precision    tables;         // of source: times and losses of each scheme; mixed only
    double          *losses;         // arrays of the desc of `tables`, or of a fused graph: [nodes x schemes]
    uint64_t        *costs;
    uint32_t        *masks;          // [nodes]
    tl_fusion_plan   all;            // every chain of source fused
    uint8_t         *apart;          // [nodes of source] 1 = not fused
    // One set of fused chains.
    tl_fusion_plan   fusion;
    const tl_graph  *graph;          // source, or that of fusion
    tli_precision    options;        // of graph, where it is not source
    const tli_precision *choices;    // of graph
    uint64_t        *unpriced;       // costs before prices are added: of each node in each scheme, and behind
                                     // them those of converting each net (a tensor for its readers) from each
                                     // format to each
    double          *weights;        // [tensors] by the rule at hand: part of the price that its bytes cost,
                                     // 0 .. 1; the rows of all rules lie in one array
    uint8_t         *mixes;          // [TLI_COMPILE_MIXES x nodes] those tried
    int32_t          mix_count;
    uint8_t         *schemes;        // [nodes] of the mix at hand
    uint8_t         *is_wanted;      // [nodes] of the graph at hand: it has to run
    uint8_t         *runs;           // [nodes] of the graph at hand: forwards of the last plan, at most 255
    int32_t          has_runs;
    tl_precision_node *formats;      // [nodes] of the mix at hand
    // The best so far.
    int32_t          has_best, best_parts, best_compresses;
    tl_plan          plan;
    tl_compile_choice choice, runner_up;
    uint8_t         *best_apart, *best_schemes;  // [nodes of source]
    uint64_t         bound;          // of all parts seen; UINT64_MAX = none
    uint64_t         least;          // budget for which a plan was found, where none fits; UINT64_MAX = none
    uint64_t         least_work;     // with which that was found
    int32_t          least_node;     // of the caller's graph, because of which; -1 = not known
    tli_finalist     finalists[TLI_COMPILE_FINALISTS];
    int32_t          finalist_count;
} tli_compile;

// -- compile: the desc --

static tli_rule tli_find_compile_rule(const tl_compile_desc *desc) {
    const tl_precision_desc *precision = desc->precision;
    const tl_strategy *strategy = desc->strategy;
    if (strategy->mode == TL_MODE_EAGER) return TLI_RULE(STRATEGY_MODE_EAGER_HAS_NO_PLAN);
    if (desc->may_split & ~1) return TLI_RULE(MAY_SPLIT_MUST_BE_0_OR_1);
    if (precision && strategy->precision != TL_PRECISION_MIXED)
        return TLI_RULE(PRECISION_BUT_STRATEGY_IS_NOT_MIXED);
    if ((uint32_t)desc->codec >= (uint32_t)TL_CODEC_COUNT) return TLI_RULE(CODEC_THERE_IS_NO_SUCH_ONE);
    if (desc->alignment_bytes & (desc->alignment_bytes - 1) || desc->alignment_bytes > UINT64_C(1) << 30)
        return TLI_RULE(ALIGNMENT_OF_COMPILE_POWER_OF_TWO);
    if (precision && (precision->criterion || precision->objective || precision->evaluate ||
                      (precision->schemes & ~TLI_FLOAT_SCHEMES)))
        return TLI_RULE(PRECISION_FIELD_IS_NOT_READ);
    return TLI_NO_RULE;
}

// The precision of all tensors, and whether formats are chosen. TL_PRECISION_COUNT: kernels do not compute it.
static tl_precision tli_resolve_precision(tl_precision precision, uint32_t kernel_precisions) {
    uint32_t can = kernel_precisions ? kernel_precisions : 1u << TL_PRECISION_SINGLE;
    if (precision == TL_PRECISION_MIXED && can & (1u << TL_PRECISION_MIXED)) return TL_PRECISION_MIXED;
    if (precision == TL_PRECISION_FULL) return tli_find_widest(can);
    if (precision == TL_PRECISION_MIXED) precision = TL_PRECISION_SINGLE;  // nothing to choose from
    return can & (1u << precision) ? precision : TL_PRECISION_COUNT;
}

static tl_result tli_check_compile(tli_compile *c) {
    const tl_compile_desc *desc = c->desc;
    const tl_strategy *strategy = c->strategy;
    tl_result result = tl_check_strategy(c->env, strategy);
    tli_rule rule;
    if (!result) result = tl_check_graph(c->env, desc->graph);
    if (!result && desc->device) result = tl_check_device(c->env, desc->device);
    if (result) return result;
    rule = tli_find_compile_rule(desc);
    if (rule) return tli_fail(c->env, TL_ERROR_INVALID_ARG, TLI_IN(COMPILE), rule);
    c->precision = tli_resolve_precision(strategy->precision, desc->kernel_precisions);
    c->is_mixed = c->precision == TL_PRECISION_MIXED;
    if (c->precision == TL_PRECISION_COUNT) rule = TLI_RULE(STRATEGY_PRECISION_NOT_AMONG);
    if (strategy->parallelism.kind == TL_PARALLELISM_MODEL ||
        strategy->parallelism.kind == TL_PARALLELISM_PIPELINE) rule = TLI_RULE(STRATEGY_PARALLELISM_ONE_WORKER);
    if (!c->is_mixed && c->precision != TL_PRECISION_SINGLE) c->codec = TL_CODEC_NONE;  // nothing is of f32
    if (!rule && (c->is_mixed || c->precision != TL_PRECISION_SINGLE))
        return tli_refuse_formats(c->env, TLI_IN(COMPILE), desc->graph, c->is_mixed,
                                  TLI_RULE(FORMAT_NO_OTHER_THAN_F32));
    return rule ? tli_fail(c->env, TL_ERROR_UNSUPPORTED, TLI_IN(COMPILE), rule) : TL_OK;
}

static tl_result tli_fail_compile(const tli_compile *c) {
    return tli_fail(c->env, TL_ERROR_NO_MEMORY, TLI_IN(COMPILE), TLI_RULE(NO_MEMORY_TO_COMPILE));
}

// Allocate the arrays of the whole call; those of bytes are one block. 0 = no memory.
static int tli_open_compile(tli_compile *c) {
    uint64_t nodes = (uint64_t)c->desc->graph->node_count;
    uint8_t *bytes = (uint8_t *)tli_alloc_array(c->env, nodes,
                                                TLI_COMPILE_MIXES + 6 + 2 * TLI_COMPILE_FINALISTS);
    int32_t i;
    c->formats = (tl_precision_node *)tli_alloc_array(c->env, nodes, sizeof *c->formats);
    c->losses = (double *)tli_alloc_array(c->env, nodes * TL_SCHEME_COUNT, sizeof *c->losses);
    c->costs = (uint64_t *)tli_alloc_array(c->env, nodes * TL_SCHEME_COUNT, sizeof *c->costs);
    c->masks = (uint32_t *)tli_alloc_array(c->env, nodes, sizeof *c->masks);
    c->apart = bytes;
    if (!bytes || !c->formats || !c->losses || !c->costs || !c->masks) return 0;
    c->schemes = bytes + nodes;
    c->is_wanted = c->schemes + nodes;
    c->best_apart = c->is_wanted + nodes;
    c->best_schemes = c->best_apart + nodes;
    c->runs = c->best_schemes + nodes;
    c->mixes = c->runs + nodes;
    bytes = c->mixes + TLI_COMPILE_MIXES * nodes;
    for (i = 0; i < TLI_COMPILE_FINALISTS; i++, bytes += 2 * nodes) {
        c->finalists[i].apart = bytes;
        c->finalists[i].schemes = bytes + nodes;
    }
    return 1;
}

static void tli_close_compile(tli_compile *c) {
    tli_release(c->env, c->apart);
    tli_release(c->env, c->formats);
    tli_release(c->env, c->losses);
    tli_release(c->env, c->costs);
    tli_release(c->env, c->masks);
    tli_release(c->env, c->part_list);
}

// Whether the best is within 0.1 % of the bound of all parts: by default nothing is improved then, unless bytes
// come first.
static int tli_is_near(const tli_compile *c) {
    return c->has_best && !c->fewest && !c->desc->work_limit && c->bound != UINT64_MAX &&
           c->choice.cost - (c->bound < c->choice.cost ? c->bound : c->choice.cost) <= c->bound / 1000;
}

static int tli_is_out_of_work(const tli_compile *c) {
    int is_near = c->is_bounded && tli_is_near(c) && (!c->enumerates || c->work >= c->second_work);
    return is_near || c->stopped || c->work >= c->work_limit;
}

static void tli_report_progress(tli_compile *c) {
    tl_compile_progress now;
    if (!c->desc->progress || c->stopped) return;
    now.work = c->work;
    now.work_limit = c->work_limit > c->work ? c->work_limit : c->work;
    now.tried_count = c->tried_count;
    now.cost = c->has_best ? c->choice.cost : 0;
    now.bound_cost = c->bound == UINT64_MAX ? 0 : c->bound;
    if ((c->desc->progress)(&now, c->desc->user)) c->stopped = 1;
}

// Called by the planner of a combination, whose own work counts on top.
static int tli_watch_compile(const tl_remat_progress *progress, void *user) {
    tli_compile *c = (tli_compile *)user;
    uint64_t before = c->work;
    c->work += progress->work;
    tli_report_progress(c);
    c->work = before;
    return c->stopped;
}

// -- compile: the graph of a part --

// Scale source to the precision; its inputs and states stay as they are.
static void tli_scale_source(tli_compile *c) {
    tl_node *nodes = (tl_node *)c->source.nodes;
    tl_node_output *outputs = (tl_node_output *)c->source.outputs;
    int32_t i;
    for (i = 0; i < c->source.node_count; i++) {
        tl_node *node = &nodes[i];
        if (node->state) continue;
        node->saved_bytes = tli_scale_bytes(node->saved_bytes, c->precision);
        node->fwork_bytes = tli_scale_bytes(node->fwork_bytes, c->precision);
        node->swork_bytes = tli_scale_bytes(node->swork_bytes, c->precision);
        if (!tli_reads_pieces(&c->source, node))
            node->bwork_bytes = tli_scale_bytes(node->bwork_bytes, c->precision);
    }
    for (i = 0; i < c->source.tensor_count; i++) {
        if (nodes[outputs[i].node].is_input) continue;
        outputs[i].bytes = tli_scale_bytes(outputs[i].bytes, c->precision);
        outputs[i].format = tli_scale_tensor_format(outputs[i].format, c->precision);
    }
}

// Make source for a number of parts. TL_NOT_READY: the batch cannot be split so.
static tl_result tli_open_source(tli_compile *c, int32_t parts) {
    const tl_graph *graph = c->desc->graph;
    int32_t whole;
    tl_result result;
    c->parts = parts;
    c->source = *graph;
    c->owns_source = 0;
    if (parts > 1 && !c->inference && !tli_holds_gradients(graph)) return TL_NOT_READY;
    if (parts == 1 && (c->is_mixed || c->precision == TL_PRECISION_SINGLE)) return TL_OK;
    if (!tli_share_graph(c->env, graph, &c->source)) return tli_fail_compile(c);
    c->owns_source = 1;
    result = tli_divide_graph(graph, (uint64_t)parts, &c->source, &whole);
    if (result) return result;
    tli_scale_source(c);
    if (!tli_divide_rows(c->env, graph, (uint64_t)parts, &c->source)) return tli_fail_compile(c);
    return tl_check_graph(c->env, &c->source);
}

static void tli_close_source(tli_compile *c) {
    if (c->owns_source) tl_free_graph(c->env, &c->source);
    c->owns_source = 0;
}

// Costs that the caller measured are of the whole batch.
static void tli_scale_costs(tli_compile *c, const uint64_t *costs) {
    const tl_graph *graph = &c->source;
    uint64_t i, places = (uint64_t)graph->node_count * TL_SCHEME_COUNT;
    for (i = 0; i < places; i++) {
        c->costs[i] = costs[i];
        if (costs[i] != TL_FORBIDDEN && !graph->nodes[i / TL_SCHEME_COUNT].fixed)
            c->costs[i] = tli_divide_up(costs[i], (uint64_t)c->parts);
    }
}

// How to choose formats for source.
static tl_precision_desc tli_ask_formats(tli_compile *c) {
    tl_precision_desc ask;
    tli_zero(&ask, sizeof ask);
    if (c->desc->precision) ask = *c->desc->precision;
    else {
        ask.loss_limit = tli_infinity();
        ask.schemes = TLI_BIT(TL_SCHEME_F32) | TLI_BIT(TL_SCHEME_BF16);
        ask.allow_sensitive = ask.allow_unknown = 1;
    }
    ask.graph = &c->source;
    ask.device = c->desc->device;
    ask.training = !c->inference;
    if (!ask.schemes) ask.schemes = TLI_FLOAT_SCHEMES;
    if (!ask.work_limit) ask.work_limit = c->try_work;
    if (ask.costs) {
        tli_scale_costs(c, ask.costs);
        ask.costs = c->costs;
    }
    return ask;
}

// Runs convert no tensor whose bytes are known only when it is made: its node and what reads it stay in f32.
static void tli_keep_dynamic_wide(tli_compile *c) {
    const tl_graph *graph = &c->source;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int is_dynamic = node->dynamic;
        for (k = node->first_input; k < node->first_input + node->input_count; k++)
            is_dynamic |= graph->nodes[graph->outputs[graph->inputs[k].tensor].node].dynamic;
        for (k = 0; k < TL_SCHEME_COUNT && is_dynamic; k++)
            if (k != TL_SCHEME_F32) c->tables.costs[(size_t)id * TL_SCHEME_COUNT + (size_t)k] = TL_FORBIDDEN;
    }
}

static tl_result tli_open_tables(tli_compile *c) {
    tl_precision_desc ask = tli_ask_formats(c);
    tl_result result;
    tli_zero(&c->tables, sizeof c->tables);
    if (!c->is_mixed) return TL_OK;
    result = tli_check_precision_of(c->env, TLI_IN(COMPILE), &ask);
    if (!result)
        result = tli_open_precision(c->env, TLI_IN(COMPILE), &ask, tli_has_loss_limit(&ask), &c->tables);
    if (!result) tli_keep_dynamic_wide(c);
    return result;
}

// -- compile: fused chains --

// apart: of source; NULL = every chain is fused.
static tl_result tli_fuse_source(tli_compile *c, const uint8_t *apart, tl_fusion_plan *fusion) {
    tl_fusion_desc desc;
    tli_zero(&desc, sizeof desc);
    desc.graph = &c->source;
    desc.device = c->desc->device;
    desc.inference = c->inference;
    desc.blocks_only = 1;
    desc.apart = apart;
    desc.alignment_bytes = c->desc->alignment_bytes;
    desc.block_bytes = c->desc->fusion_block_bytes;
    desc.scratch_parts = c->desc->fusion_scratch_parts;
    desc.call_cost = c->desc->fusion_call_cost;
    return tl_plan_fusion(c->env, &desc, fusion);
}

static int32_t tli_count_in(const tl_fusion_plan *fusion, int32_t id) {
    return fusion->first_members[id + 1] - fusion->first_members[id];
}

static uint64_t tli_find_call_costs(const tli_compile *c, const tl_node *node) {
    return tli_sum_call_costs(node, c->inference);
}

// a x b / d, rounded down or up; 0 < d < 2^62. UINT64_MAX if it does not fit.
static uint64_t tli_multiply_ratio(uint64_t a, uint64_t b, uint64_t d, int up) {
    uint64_t whole = 0, rest = 0;
    int bit;
    for (bit = 63; bit >= 0; bit--) {
        if (whole >> 63) return UINT64_MAX;
        whole = 2 * whole + 2 * rest / d;
        rest = 2 * rest % d;
        if (!(b >> bit & 1)) continue;
        rest += a % d;
        if (!tli_add_u64(whole, a / d + rest / d, &whole)) return UINT64_MAX;
        rest %= d;
    }
    return whole + (uint64_t)(up && rest && whole != UINT64_MAX);
}

// The schemes of a fused node: those that all members may have, with the sums of their losses, and of the fused
// node's cost the share that the times of the members are of their costs.
static void tli_combine_members(tli_compile *c, int32_t id) {
    const tli_precision *tables = &c->tables;
    uint64_t cost = tli_find_call_costs(c, &c->fusion.graph.nodes[id]);
    uint64_t sum = 0;
    int32_t at, k;
    c->masks[id] = 0;
    for (at = c->fusion.first_members[id]; at < c->fusion.first_members[id + 1]; at++)
        sum += tli_find_call_costs(c, &c->source.nodes[c->fusion.members[at]]);
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        size_t place = (size_t)id * TL_SCHEME_COUNT + (size_t)k;
        uint64_t time = 0;
        double loss = 0;
        int can = 1;
        for (at = c->fusion.first_members[id]; at < c->fusion.first_members[id + 1]; at++) {
            size_t from = (size_t)c->fusion.members[at] * TL_SCHEME_COUNT + (size_t)k;
            can &= tables->costs[from] != TL_FORBIDDEN;
            time += tables->times[from];
            loss += tables->node_losses[from];
        }
        c->losses[place] = k == TL_SCHEME_F32 ? 0 : can ? loss : tli_not_a_number();
        c->costs[place] = !can ? TL_FORBIDDEN : sum && time ? tli_multiply_ratio(cost, time, sum, 1) : cost;
        if (can) c->masks[id] |= TLI_BIT(k);
    }
}

static tl_result tli_open_options(tli_compile *c) {
    tl_precision_desc ask = tli_ask_formats(c);
    tl_result result;
    int32_t id;
    tli_zero(&c->options, sizeof c->options);
    c->choices = &c->tables;
    if (!c->is_mixed || c->graph == &c->source) return TL_OK;
    for (id = 0; id < c->graph->node_count; id++) tli_combine_members(c, id);
    ask.graph = c->graph;
    ask.losses = c->losses;
    ask.costs = c->costs;
    ask.node_schemes = c->masks;
    ask.allow_f16 = 1;          // as far as the masks go
    ask.f16_nodes = NULL;
    result = tli_open_precision(c->env, TLI_IN(COMPILE), &ask, tli_has_loss_limit(&ask), &c->options);
    c->choices = &c->options;
    return result;
}

// Make the graph in which the chains that are not apart are fused.
static tl_result tli_open_variant(tli_compile *c) {
    tl_result result = TL_OK;
    tli_zero(&c->fusion, sizeof c->fusion);
    c->graph = &c->source;
    c->mix_count = 0;
    if (c->strategy->enable_fusion) result = tli_fuse_source(c, c->apart, &c->fusion);
    if (c->fusion.fused_count) c->graph = &c->fusion.graph;
    return result ? result : tli_open_options(c);
}

static void tli_close_variant(tli_compile *c) {
    tli_close_precision(&c->options);
    tli_zero(&c->options, sizeof c->options);
    tl_free_fusion_plan(c->env, &c->fusion);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
