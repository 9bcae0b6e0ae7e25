#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- several limits: what a choice takes --
//
// A choice of schemes has four amounts: the RAM of its placed arena, the flash of its weights and constants,
// its loss and its cost. Three are sums. The RAM is that of the graph that the choice makes, with conversions
// as nodes and, where rows may be cut, with line buffers: it is made, planned and placed. Before that, the live
// bytes of the choice tell whether it is worth it: no arena is smaller than what lives at one instant. What
// crosses the call of a node that no region of rows holds is whole, but for streams.
//
//     amounts of a choice:   sums --too much?--> live bytes --too much?--> the graph, rows, places
//
// All amounts are uint64_t that grow with what they stand for; of the loss, a double >= 0, these are its bits.

typedef struct tli_prefix tli_prefix;

typedef struct tli_amounts {
    uint64_t of[TL_MEASURE_COUNT];
} tli_amounts;

typedef struct tli_limits {
    tl_env     *env;
    tl_fit_desc desc;
    tli_precision p;             // costs and net_costs are those of the relaxation at hand
    const tl_graph *graph;
    uint64_t   *numbers;         // the block that holds the next eight
    uint64_t   *flash;           // [nodes x schemes] weights and constants
    uint64_t   *net_times;       // [net_count x formats x formats] time of conversions
    uint64_t   *least;           // [tensors] bytes in the narrowest format that it may be found in
    uint64_t   *between;         // [nodes + 1] least bytes of what lives across the instant before a node
    uint64_t   *across;          // [nodes + 1] what lives in the call of a node beside its outputs
    uint64_t   *widened;         // [nodes + 1] of that what conversions right before the call have added
    uint64_t   *suffix_flash, *suffix_cost;  // [nodes + 1] the least of a node and those behind it
    double     *suffix_losses;   // [nodes + 1] the same
    tli_prefix *stack;           // [nodes + 1] of the search in depth
    int32_t    *lasts;           // [tensors] the last node that reads it; node_count = it is there at the end
    uint8_t    *marks;           // the block that holds the next six
    uint8_t    *possible;        // [nodes x schemes] 1 = the node may have it
    uint8_t    *best, *trial, *kept;       // [node_count of the choice] schemes
    uint8_t    *slot_marks;      // [nodes + conversions at most] tl_fit_desc.in_slots, of the graph of a choice
    uint8_t    *pool;            // [TLI_FIT_POOL x node_count of the choice] schemes of candidates
    tl_precision_node *made;     // [nodes] a plan of the schemes at hand
    int32_t     pool_count;
    uint64_t    live_floor;      // with rows: no choice lives in fewer bytes
    uint64_t    flash_sum, cost_sum;   // no choice takes more; at least 1
    tli_amounts limits;          // TL_UNLIMITED where no choice is above it
    tli_amounts amounts;         // of `best`
    uint64_t    excess;          // of `best`: what it takes above its limits, in 2^-20 of each; 0 = it fits
    int32_t     found;           // 1 = there is a best
    int32_t     arena_count;     // arenas that were placed
    int32_t     stopped;         // 1 = by progress, or arena_limit
    int32_t     is_wide;         // 1 = the graph is too wide for lists: that nothing was found proves nothing
    int32_t     impossible;      // 1 = it is proven that no choice is within the limits
    uint64_t    bound;           // of what is minimised, as amounts are
    tl_result   result;          // the first that went wrong
} tli_limits;

#define TLI_FIT_POOL 24                 // candidates that are improved
#define TLI_FIT_PLACING_WORK 1000000    // of each arena, in steps of tl_plan_places

static uint64_t tli_smaller_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static int32_t tli_smaller_i32(int32_t a, int32_t b) { return a < b ? a : b; }

static size_t tli_fit_at(int32_t node, int32_t scheme) {
    return (size_t)node * TL_SCHEME_COUNT + (size_t)scheme;
}

// -- several limits: sums --

static uint64_t tli_sum_flash(const tli_limits *f, const uint8_t *schemes) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < f->graph->node_count; id++) sum += f->flash[tli_fit_at(id, schemes[id])];
    return sum;
}

static uint64_t tli_sum_time(const tli_limits *f, const uint8_t *schemes) {
    uint64_t sum = 0;
    tli_choice_net net;
    int32_t i;
    for (i = 0; i < f->graph->node_count; i++) sum += f->p.times[tli_fit_at(i, schemes[i])];
    for (i = 0; i < f->p.net_count; i++) {
        net = f->p.nets[i];
        net.costs = f->net_times + (size_t)i * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
        sum += tli_sum_net(&net, schemes);
    }
    return sum;
}

// The loss of a choice: where that is above the limit by what doubles round alone, it is the limit.
static uint64_t tli_sum_loss_bits(const tli_limits *f, const uint8_t *schemes) {
    double loss = tli_sum_losses(&f->p, schemes), limit = f->desc.precision.loss_limit;
    return tli_bits_of_f64(loss > limit && !tli_is_over_limit(&f->p, schemes) ? limit : loss);
}

// -- several limits: live bytes --

// The bytes of a tensor in a format, and of the inputs of a node in the format of its scheme.
static uint64_t tli_fit_bytes(const tli_limits *f, int32_t tensor, tl_format format) {
    return tl_find_format_bytes(format, f->graph->outputs[tensor].bytes);
}

// Whether a node may be in a region of rows: tensors that cross its call need not be whole then.
static int tli_may_be_cut(const tli_limits *f, int32_t id) {
    const tl_node *node = &f->graph->nodes[id];
    return f->desc.may_cut_rows && (node->is_input || node->takes_blocks || tli_find_rows(f->graph, id));
}

// Whether a tensor is a stream that may be loaded row by row.
static int tli_is_streamed(const tli_limits *f, int32_t tensor) {
    int32_t maker = f->graph->outputs[tensor].node;
    const tl_node_rows *rows = f->graph->nodes[maker].is_input ? tli_find_rows(f->graph, maker) : NULL;
    return f->desc.may_cut_rows && rows && rows->stream;
}

// What a call of a node holds beside what lives across it: its outputs, and its scratch. Where it may write
// over an input, the smaller of both counts once.
static uint64_t tli_find_call_bytes(const tli_limits *f, int32_t id, tl_format format) {
    const tl_node *node = &f->graph->nodes[id];
    uint64_t sum = node->fwork_bytes, in, out;
    int32_t k;
    if (node->is_input) return 0;
    for (k = 0; k < node->output_count; k++) sum += tli_fit_bytes(f, node->first_output + k, format);
    if (node->inplace < 0 || !node->output_count) return sum;
    in = tli_fit_bytes(f, f->graph->inputs[node->first_input + node->inplace].tensor, format);
    out = tli_fit_bytes(f, node->first_output, format);
    return sum - (in < out ? in : out);
}

// Whether a node reads the same tensor by an earlier input.
static int tli_reads_before(const tl_graph *graph, const tl_node *node, int32_t input) {
    int32_t k;
    for (k = 0; k < input; k++)
        if (graph->inputs[node->first_input + k].tensor == graph->inputs[node->first_input + input].tensor)
            return 1;
    return 0;
}

// No fewer bytes live in a call of a node in a scheme, whatever the schemes of the others are; of a graph
// input, at the first instant.
static uint64_t tli_bound_call(const tli_limits *f, int32_t id, tl_scheme scheme) {
    const tl_node *node = &f->graph->nodes[id];
    tl_format format = tl_find_scheme_format(scheme);
    uint64_t sum = f->between[id] + tli_find_call_bytes(f, id, format);
    int32_t k;
    for (k = 0; k < node->output_count && node->is_input; k++)
        sum += tli_fit_bytes(f, node->first_output + k, format) - f->least[node->first_output + k];
    for (k = 0; k < node->input_count; k++) {
        int32_t tensor = f->graph->inputs[node->first_input + k].tensor;
        if (tli_is_statistic(f->graph, tensor) || tli_reads_before(f->graph, node, k)) continue;
        if (!tli_is_streamed(f, tensor)) sum += tli_fit_bytes(f, tensor, format) - f->least[tensor];
    }
    return sum;
}

// The nodes between which a tensor lives: from the one behind its producer to its last reader.
static int32_t tli_find_begin(const tl_graph *graph, int32_t tensor) {
    int32_t node = graph->outputs[tensor].node;
    return graph->nodes[node].is_input ? 0 : node + 1;
}

// Note that a tensor may be found in the format of a scheme.
static void tli_note_format(tli_limits *f, int32_t tensor, int32_t scheme) {
    uint64_t bytes = tli_fit_bytes(f, tensor, tl_find_scheme_format((tl_scheme)scheme));
    f->least[tensor] = tli_smaller_u64(f->least[tensor], bytes);
}

// The narrowest format of each tensor, its last reader, and what lives across each instant at least.
static void tli_find_narrowest_bytes(tli_limits *f) {
    const tl_graph *graph = f->graph;
    const tli_choice_net *net;
    int32_t i, k, r;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *maker = &graph->nodes[graph->outputs[i].node];
        f->least[i] = tli_fit_bytes(f, i, TL_FORMAT_F32);
        f->lasts[i] = maker->keep || maker->is_input == 1 ? graph->node_count : -1;
    }
    for (i = 0; i < graph->input_count; i++) {
        int32_t reader = 0, tensor = graph->inputs[i].tensor;
        while (graph->nodes[reader].first_input + graph->nodes[reader].input_count <= i) reader++;
        f->lasts[tensor] = tli_larger_i32(f->lasts[tensor], reader);
    }
    for (i = 0; i < graph->tensor_count; i++) {
        int32_t maker = graph->outputs[i].node;
        if (tli_is_statistic(graph, i)) continue;
        for (k = 0; k < TL_SCHEME_COUNT; k++)
            if (f->p.costs[tli_fit_at(maker, k)] != TL_FORBIDDEN) tli_note_format(f, i, k);
    }
    for (i = 0; i < f->p.net_count; i++)
        for (net = &f->p.nets[i], r = 0; r < net->reader_count; r++)
            for (k = 0; k < TL_SCHEME_COUNT; k++)
                if (f->p.costs[tli_fit_at(net->readers[r], k)] != TL_FORBIDDEN)
                    tli_note_format(f, f->p.net_tensors[i], k);
    for (i = 0; i < graph->tensor_count; i++)
        for (k = tli_find_begin(graph, i); k <= f->lasts[i] && !tli_is_streamed(f, i); k++)
            f->between[k] += f->least[i];
}

// When a tensor, and each copy of it in another format, lives under given schemes, as nodes whose calls see it.
typedef struct tli_lives {
    int32_t  first[TL_FORMAT_COUNT], last[TL_FORMAT_COUNT];  // reads in each format; last < first = none
    tl_format own;               // that its producer writes
    int32_t  begin, end;         // of the tensor itself
} tli_lives;

static void tli_find_lives_of(const tli_limits *f, int32_t index, const uint8_t *schemes, tli_lives *s) {
    const tli_choice_net *net = &f->p.nets[index];
    const tl_node *maker = &f->graph->nodes[net->producer];
    int32_t nodes = f->graph->node_count, k, reader;
    s->own = tl_find_scheme_format((tl_scheme)schemes[net->producer]);
    s->begin = tli_find_begin(f->graph, f->p.net_tensors[index]);
    for (k = 0; k < TL_FORMAT_COUNT; k++) { s->first[k] = nodes + 1; s->last[k] = -1; }
    for (k = 0; k < net->reader_count; k++) {
        tl_format format = tl_find_scheme_format((tl_scheme)schemes[net->readers[k]]);
        reader = net->readers[k] < nodes ? net->readers[k] : nodes;
        s->first[format] = tli_smaller_i32(s->first[format], reader);
        s->last[format] = tli_larger_i32(s->last[format], reader);
    }
    s->end = maker->is_input == 1 || (maker->keep && f->desc.precision.any_result) ? nodes : s->last[s->own];
    for (k = 0; k < TL_FORMAT_COUNT; k++)
        if (k != (int32_t)s->own && s->last[k] >= 0) s->end = tli_larger_i32(s->end, s->first[k] - 1);
}

static void tli_add_life(uint64_t *sums, int32_t first, int32_t last, uint64_t bytes) {
    for (; first <= last; first++) sums[first] += bytes;
}

// Add what a tensor and its copies take in each call.
static void tli_add_lives(tli_limits *f, int32_t index, const tli_lives *s) {
    int32_t tensor = f->p.net_tensors[index], k;
    uint64_t own = tli_fit_bytes(f, tensor, s->own), copy;
    tli_add_life(f->across, s->begin, s->end, own);
    for (k = 0; k < TL_FORMAT_COUNT; k++) {
        if (k == (int32_t)s->own || s->last[k] < 0) continue;
        copy = tli_fit_bytes(f, tensor, (tl_format)k);
        tli_add_life(f->across, s->first[k], s->last[k], copy);
        f->widened[s->first[k]] += copy > own || s->end >= s->first[k] ? copy : 0;
    }
}

// The live bytes of the conversions of a tensor: both copies, and what else lives there at least.
static uint64_t tli_bound_conversions(const tli_limits *f, int32_t index, const tli_lives *s) {
    int32_t tensor = f->p.net_tensors[index], k;
    uint64_t own = tli_fit_bytes(f, tensor, s->own), most = 0, copy, others, here;
    for (k = 0; k < TL_FORMAT_COUNT; k++) {
        if (k == (int32_t)s->own || s->last[k] < 0) continue;
        copy = tli_fit_bytes(f, tensor, (tl_format)k);
        here = f->across[s->first[k]];
        others = copy + (s->end >= s->first[k] ? own : 0) + f->widened[s->first[k]];
        most = tli_larger_u64(most, own + copy + (here > others ? here - others : 0));
    }
    return most;
}

// No arena of a choice is smaller than this: the most that lives in a call, or in a conversion.
static uint64_t tli_bound_live(tli_limits *f, const uint8_t *schemes) {
    int32_t nodes = f->graph->node_count, i;
    uint64_t most = f->live_floor;
    tli_lives spans;
    for (i = 0; i <= nodes; i++) f->across[i] = f->widened[i] = 0;
    for (i = 0; i < f->p.net_count; i++) {
        if (tli_is_streamed(f, f->p.net_tensors[i])) continue;
        tli_find_lives_of(f, i, schemes, &spans);
        tli_add_lives(f, i, &spans);
    }
    for (i = 0; i < nodes; i++) {
        tl_format format = tl_find_scheme_format((tl_scheme)schemes[i]);
        if (tli_may_be_cut(f, i)) continue;
        most = tli_larger_u64(most, f->across[i] + tli_find_call_bytes(f, i, format));
    }
    for (i = 0; i < f->p.net_count; i++) {
        if (tli_may_be_cut(f, f->p.nets[i].producer)) continue;
        tli_find_lives_of(f, i, schemes, &spans);
        most = tli_larger_u64(most, tli_bound_conversions(f, i, &spans));
    }
    return most;
}

// -- several limits: the placed arena --

static void tli_fit_fail(tli_limits *f, tl_result result) {
    if (!f->result) f->result = result;
}

// Make the graph of a choice.
static tl_result tli_make_choice(const tli_limits *f, const uint8_t *schemes, tl_precision_graph *applied) {
    const tl_precision_desc *precision = &f->desc.precision;
    tl_precision_plan plan;
    tl_apply_desc apply;
    int32_t i;
    tli_zero(&plan, sizeof plan);
    tli_zero(&apply, sizeof apply);
    for (i = 0; i < f->graph->node_count; i++) {
        f->made[i].scheme = (tl_scheme)schemes[i];
        f->made[i].speedup = 1;
    }
    plan.nodes = f->made;
    plan.node_count = f->graph->node_count;
    apply.graph = f->graph;
    apply.plan = &plan;
    apply.device = precision->device;
    apply.any_result = precision->any_result;
    apply.any_input = precision->input_schemes != NULL;
    return tl_apply_precision(f->env, &apply, applied);
}

static tl_result tli_place_inference(const tli_limits *f, const tl_graph *graph, uint64_t *arena_bytes) {
    tl_places_report report;
    tl_places_desc places;
    tl_device device;
    tl_plan plan;
    tl_result result = tl_plan_keep_all(f->env, graph, 1, &plan);
    if (result) return result;
    tli_zero(&places, sizeof places);
    tli_zero(&device, sizeof device);
    device.alignment_bytes = f->desc.alignment_bytes;
    places.graph = graph;
    places.device = &device;
    places.work_limit = TLI_FIT_PLACING_WORK;
    result = tl_plan_places(f->env, &places, &plan, &report);
    if (!result) *arena_bytes = report.arena_bytes;
    tl_free_plan(f->env, &plan);
    return result;
}

// Cut the rows of a graph where that is asked for, then place it.
static tl_result tli_place_rows(const tli_limits *f, const tl_precision_graph *applied,
                                uint64_t *arena_bytes) {
    const tl_graph *graph = &applied->graph;
    tl_rows_desc desc;
    tl_rows_plan rows;
    tl_result result;
    int32_t i;
    if (!f->desc.may_cut_rows) return tli_place_inference(f, graph, arena_bytes);
    for (i = 0; i < graph->node_count && f->desc.in_slots; i++)   // no conversion is one
        f->slot_marks[i] = applied->new_nodes[applied->nodes[i]] == i && f->desc.in_slots[applied->nodes[i]];
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.in_slots = f->desc.in_slots ? f->slot_marks : NULL;
    desc.alignment_bytes = f->desc.alignment_bytes;
    desc.call_cost = f->desc.call_cost;
    desc.work_limit = f->desc.rows_work_limit;
    result = tl_plan_rows(f->env, &desc, &rows);
    if (!result) result = tli_place_inference(f, &rows.graph, arena_bytes);
    tl_free_rows_plan(f->env, &rows);
    return result;
}

// The RAM of a choice; UINT64_MAX after an error.
static uint64_t tli_find_ram(tli_limits *f, const uint8_t *schemes) {
    tl_precision_graph applied;
    uint64_t bytes = UINT64_MAX;
    tl_result result = tli_make_choice(f, schemes, &applied);
    if (!result) result = tli_place_rows(f, &applied, &bytes);
    tl_free_precision_graph(f->env, &applied);
    f->arena_count++;
    if (result) tli_fit_fail(f, result);
    return bytes;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
