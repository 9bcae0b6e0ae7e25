#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- times --
//
// Run the caller's kernels node by node, scheme by scheme, and make a table of what was measured:
//
//     turn 0:  f32 i8 w8a16 ..   warms up, and tells how many calls make a sample
//     turn 1:  f32 i8 w8a16 ..   one sample each; a disturbance meets all schemes
//      ..                        time of a scheme = lower quartile of its samples

#define TLI_MOST_TURNS 31

typedef struct tli_timing {
    tl_env *env;
    const tl_measure_profiles_desc *desc;
    const tl_graph *graph;
    int32_t  turns, done, all;
    int      stopped;             // 1 = progress said so
    uint64_t least_ns;
    uint64_t *costs;              // [node_count x schemes] ns
    tl_precision_profile *rows;   // room for one per node, then the library's
    int32_t  row_count;
    char    *name;                // copy of the machine's
} tli_timing;

static tl_result tli_check_timing(tl_env *env, const tl_measure_profiles_desc *desc) {
    const tli_function function = TLI_IN(MEASURE_PROFILES);
    tl_result result;
    int32_t i;
    if (!desc->name || !desc->name[0])
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(NAME_MUST_NOT_BE_EMPTY));
    if (!desc->run) return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(RUN_MUST_NOT_BE_NULL));
    if (!desc->now_ns) return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(NOW_NS_MUST_NOT_BE_NULL));
    if (desc->sample_count < 0 || desc->sample_count > TLI_MOST_TURNS)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SAMPLE_COUNT_MUST_BE_0_TO_31));
    if (desc->schemes >> TL_SCHEME_COUNT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SCHEMES_UNKNOWN_BIT));
    result = tl_check_graph(env, desc->graph);
    for (i = 0; !result && desc->node_schemes && i < desc->graph->node_count; i++)
        if (desc->node_schemes[i] >> TL_SCHEME_COUNT)
            result = tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(NODE_SCHEMES_UNKNOWN_BIT));
    return result;
}

static tl_result tli_fail_timing(const tli_timing *t, tli_rule rule, const char *what, tl_result code) {
    tli_sentence s = tli_begin_error(t->env, TL_ERROR_KERNEL, TLI_IN(MEASURE_PROFILES), rule,
                                     (uint64_t)code, 0);
    tli_put_text(&s, what);
    tli_put_text(&s, tl_name_result(code));
    return tli_end_error(t->env, &s, TL_ERROR_KERNEL);
}

// The schemes of a node to time, as bits; 0 for graph inputs.
static uint32_t tli_find_timed(const tli_timing *t, int32_t id) {
    const tl_measure_profiles_desc *desc = t->desc;
    uint32_t schemes = desc->schemes ? desc->schemes : TLI_USUAL_SCHEMES;
    if (t->graph->nodes[id].is_input) return 0;
    if (desc->node_schemes && desc->node_schemes[id]) schemes &= desc->node_schemes[id];
    return schemes | TLI_BIT(TL_SCHEME_F32);
}

// Time so many calls of a node in a scheme; *ns of all of them, at least 1.
static tl_result tli_time_calls(const tli_timing *t, int32_t id, int32_t scheme, int32_t count, uint64_t *ns) {
    const tl_measure_profiles_desc *desc = t->desc;
    uint64_t start, end;
    tl_result result = TL_OK;
    if (desc->prepare) result = (desc->prepare)(id, (tl_scheme)scheme, desc->user);
    start = (desc->now_ns)(desc->clock);
    if (!result) result = (desc->run)(id, (tl_scheme)scheme, count, desc->user);
    end = (desc->now_ns)(desc->clock);
    *ns = end > start ? end - start : 1;
    return result ? tli_fail_timing(t, TLI_RULE(RUN_NODE_FAILED), tl_name_node(t->graph, id), result) : TL_OK;
}

static tl_result tli_time_conversion(const tli_timing *t, int32_t tensor, int32_t format, int32_t count,
                                     uint64_t *ns) {
    const tl_measure_profiles_desc *desc = t->desc;
    uint64_t start = (desc->now_ns)(desc->clock), end;
    tl_result result = (desc->convert)(tensor, (tl_format)format, count, desc->user);
    end = (desc->now_ns)(desc->clock);
    *ns = end > start ? end - start : 1;
    if (!result) return TL_OK;
    return tli_fail_timing(t, TLI_RULE(CONVERT_TENSOR_FAILED), tl_name_format((tl_format)format), result);
}

// Calls that make a sample, by the time of one of them.
static int32_t tli_count_calls(const tli_timing *t, uint64_t ns) {
    uint64_t count = t->least_ns / ns + 1;
    return count < 1000000 ? (int32_t)count : 1000000;
}

static uint64_t tli_find_lower_quartile(uint64_t *samples, int32_t count) {
    int32_t i, k;
    for (i = 1; i < count; i++) {
        uint64_t sample = samples[i];
        for (k = i; k > 0 && samples[k - 1] > sample; k--) samples[k] = samples[k - 1];
        samples[k] = sample;
    }
    return samples[(count - 1) / 4];
}

// Time the schemes of a node or, with `converts`, the formats of a tensor by turns: those in `bits`. costs: ns
// of one call, rounded up; those of schemes and formats that are not in `bits` stay as they are.
static tl_result tli_take_turns(const tli_timing *t, int32_t id, uint32_t bits, int32_t kinds, int converts,
                                uint64_t *costs) {
    uint64_t samples[TL_SCHEME_COUNT][TLI_MOST_TURNS], ns;
    int32_t counts[TL_SCHEME_COUNT], turn, k;
    for (k = 0; k < kinds; k++) counts[k] = 1;
    for (turn = -1; turn < t->turns; turn++)
        for (k = 0; k < kinds; k++) {
            tl_result result;
            if (!(bits >> k & 1)) continue;
            result = converts ? tli_time_conversion(t, id, k, counts[k], &ns)
                              : tli_time_calls(t, id, k, counts[k], &ns);
            if (result) return result;
            if (turn < 0) counts[k] = tli_count_calls(t, ns);
            else samples[k][turn] = (ns + (uint64_t)counts[k] - 1) / (uint64_t)counts[k];
        }
    for (k = 0; k < kinds; k++)
        if (bits >> k & 1) costs[k] = tli_find_lower_quartile(samples[k], t->turns);
    return TL_OK;
}

static void tli_report_timing(tli_timing *t) {
    t->done++;
    if (t->desc->progress && (t->desc->progress)(t->done, t->all, t->desc->user)) t->stopped = 1;
}

static tl_result tli_time_nodes(tli_timing *t) {
    int32_t id;
    uint64_t i, places = (uint64_t)t->graph->node_count * TL_SCHEME_COUNT;
    for (i = 0; i < places; i++) t->costs[i] = TL_FORBIDDEN;
    for (id = 0; id < t->graph->node_count && !t->stopped; id++) {
        uint64_t *costs = t->costs + (size_t)id * TL_SCHEME_COUNT;
        tl_result result = tli_take_turns(t, id, tli_find_timed(t, id), TL_SCHEME_COUNT, 0, costs);
        if (result) return result;
        tli_report_timing(t);
    }
    return TL_OK;
}

static uint64_t tli_find_rate(uint64_t bytes, uint64_t ns) {
    double rate = ns ? (double)bytes / (double)ns * 1e9 : 0;
    return rate < 1e18 ? (uint64_t)rate : UINT64_C(1000000000000000000);
}

// Time conversions of all tensors but graph inputs to a format and back, and find the two rates of the device:
// i8 and i16 by all bytes read and written, f16 by the bytes in f32 alone, as tli_price_conversion counts them.
static tl_result tli_time_conversions(tli_timing *t, tl_device *device) {
    static const uint32_t bits = TLI_BIT(TL_FORMAT_F16) | TLI_BIT(TL_FORMAT_I16) | TLI_BIT(TL_FORMAT_I8);
    uint64_t costs[TL_FORMAT_COUNT], bytes[2] = { 0, 0 }, ns[2] = { 0, 0 };
    int32_t i, k;
    if (!t->desc->convert) return TL_OK;
    for (i = 0; i < t->graph->tensor_count && !t->stopped; i++) {
        uint64_t elements = tli_count_elements(t->graph->outputs[i].bytes);
        tl_result result;
        if (t->graph->nodes[t->graph->outputs[i].node].is_input) continue;
        result = tli_take_turns(t, i, bits, TL_FORMAT_COUNT, 1, costs);
        if (result) return result;
        for (k = 0; k < TL_FORMAT_COUNT; k++) {
            int is_half = k == TL_FORMAT_F16;
            if (!(bits >> k & 1)) continue;
            bytes[is_half] += 2 * elements * (is_half ? 4 : 4 + tl_find_format_bytes((tl_format)k, 4));
            ns[is_half] += costs[k];
        }
        tli_report_timing(t);
    }
    device->bytes_per_second = tli_find_rate(bytes[0], ns[0]);
    device->codec_bytes_per_second = tli_find_rate(bytes[1], ns[1]);
    return TL_OK;
}

// -- times: rows --

static uint64_t tli_find_output_elements(const tl_graph *graph, int32_t id) {
    return tli_count_elements(graph->outputs[graph->nodes[id].first_output].bytes);
}

static int tli_has_op(const tl_precision_profile *row, const char *op) {
    return tli_is_same_op(row->op, op, tli_text_length(op));
}

static int tli_is_measured_op(const tli_timing *t, const char *op) {
    int32_t i;
    for (i = 0; i < t->row_count; i++)
        if (tli_has_op(&t->rows[i], op)) return 1;
    return 0;
}

// The loss of a node in a scheme: given, else the library's; negative where neither knows it.
static double tli_find_row_loss(const tli_timing *t, const tl_precision_profile *known, int32_t id, int32_t k) {
    const double *losses = t->desc->losses ? t->desc->losses + (size_t)id * TL_SCHEME_COUNT : NULL;
    if (losses && losses[k] == losses[k]) return losses[k];
    return known && known->schemes >> k & 1 ? known->loss[k] : -1;
}

// To four decimals, which is more than was measured: text is short and reads back the same.
static double tli_round_speedup(double ratio) {
    return ratio < 0.001 || ratio > 1e9 ? ratio : (double)(uint64_t)(ratio * 10000 + 0.5) / 10000;
}

// Fill a row from all nodes of its op and size; its least_elements are this size, the elements of output 0.
static void tli_fill_row(const tli_timing *t, tl_precision_profile *row, const tl_precision_profile *known) {
    uint64_t base[TL_SCHEME_COUNT], narrow[TL_SCHEME_COUNT];
    uint32_t unknown = 0;
    int32_t id, k;
    tli_zero(base, sizeof base);
    tli_zero(narrow, sizeof narrow);
    for (id = 0; id < t->graph->node_count; id++) {
        const uint64_t *costs = t->costs + (size_t)id * TL_SCHEME_COUNT;
        const char *op = tl_name_op(t->graph, id);
        if (costs[TL_SCHEME_F32] == TL_FORBIDDEN || !tli_has_op(row, op) ||
            tli_find_output_elements(t->graph, id) != row->least_elements) continue;
        for (k = 1; k < TL_SCHEME_COUNT; k++) {
            double loss = tli_find_row_loss(t, known, id, k);
            if (costs[k] == TL_FORBIDDEN) continue;
            if (loss < 0) unknown |= TLI_BIT(k);
            if (loss > row->loss[k]) row->loss[k] = loss;
            base[k] += costs[TL_SCHEME_F32];
            narrow[k] += costs[k];
        }
    }
    row->schemes = TLI_BIT(TL_SCHEME_F32);
    row->speedup[TL_SCHEME_F32] = 1;
    for (k = 1; k < TL_SCHEME_COUNT; k++) {
        if (!narrow[k] || unknown >> k & 1) { row->loss[k] = 0; continue; }
        row->schemes |= TLI_BIT(k);
        row->speedup[k] = tli_round_speedup((double)base[k] / (double)narrow[k]);
    }
    if (known && row->schemes >> known->recommended & 1) row->recommended = known->recommended;
    row->sensitive = known ? known->sensitive : 0;
}

static int tli_has_row(const tli_timing *t, const char *op, uint64_t elements) {
    int32_t i;
    for (i = 0; i < t->row_count; i++)
        if (t->rows[i].least_elements == elements && tli_has_op(&t->rows[i], op)) return 1;
    return 0;
}

// The next larger size of a row's op; 0 = there is none.
static uint64_t tli_find_next_size(const tli_timing *t, const tl_precision_profile *row) {
    uint64_t next = 0;
    int32_t i;
    for (i = 0; i < t->row_count; i++) {
        const tl_precision_profile *other = &t->rows[i];
        if (other->least_elements > row->least_elements && (!next || other->least_elements < next) &&
            tli_has_op(other, row->op)) next = other->least_elements;
    }
    return next;
}

// Sizes of an op become ranges: each ends in the middle between its size and the next larger one, and the rows
// are sorted by size, so that the first that fits is the right one.
static void tli_spread_sizes(tli_timing *t) {
    int32_t i, k;
    for (i = 0; i < t->row_count; i++) {
        uint64_t next = tli_find_next_size(t, &t->rows[i]), size = t->rows[i].least_elements;
        t->rows[i].most_elements = next ? size + (next - size) / 2 : 0;
    }
    for (i = 1; i < t->row_count; i++) {  // no two are equal in op and size
        tl_precision_profile row = t->rows[i];
        for (k = i; k > 0 && t->rows[k - 1].least_elements > row.least_elements; k--)
            t->rows[k] = t->rows[k - 1];
        t->rows[k] = row;
    }
    for (i = 0; i < t->row_count; i++) t->rows[i].least_elements = 0;
}

static void tli_add_measured_rows(tli_timing *t, char *text) {
    int32_t count, id;
    const tl_precision_profile *defaults = tl_find_default_profiles(&count);
    for (id = 0; id < t->graph->node_count; id++) {
        const char *op = tl_name_op(t->graph, id);
        size_t length = tli_text_length(op) + 1;
        tl_precision_profile *row = &t->rows[t->row_count];
        uint64_t elements = tli_find_output_elements(t->graph, id);
        if (t->costs[(size_t)id * TL_SCHEME_COUNT + TL_SCHEME_F32] == TL_FORBIDDEN ||
            tli_has_row(t, op, elements)) continue;
        tli_copy(text, op, length);
        row->op = text;
        text += length;
        row->least_elements = elements;
        row->measured_on = t->name;
        tli_fill_row(t, row, tl_find_profile(defaults, count, t->graph, id, NULL));
        t->row_count++;
    }
    tli_spread_sizes(t);
}

static void tli_add_assumed_rows(tli_timing *t) {
    int32_t count, measured = t->row_count, rows = measured, i;
    const tl_precision_profile *defaults = tl_find_default_profiles(&count);
    for (i = 0; i < count; i++)
        if (!tli_is_measured_op(t, defaults[i].op)) t->rows[rows++] = defaults[i];
    t->row_count = rows;
}

// Units of cost a second in f32, over all nodes.
static double tli_find_cost_rate(const tli_timing *t) {
    double units = 0, ns = 0;
    int32_t id;
    for (id = 0; id < t->graph->node_count; id++) {
        uint64_t cost = t->costs[(size_t)id * TL_SCHEME_COUNT + TL_SCHEME_F32];
        if (cost == TL_FORBIDDEN) continue;
        units += (double)t->graph->nodes[id].fwd_cost;
        ns += (double)cost;
    }
    return ns > 0 ? units / ns * 1e9 : 0;
}

TLI_IMPL tl_result tl_measure_profiles(tl_env *env, const tl_measure_profiles_desc *desc,
                                       tl_measured_profiles *measured) {
    uint64_t nodes, text;
    tli_timing t;
    tl_result result;
    int32_t count, i;
    TL_ASSERT(desc && desc->graph && measured);
    tli_zero(measured, sizeof *measured);
    result = tli_check_timing(env, desc);
    if (result) return result;
    tli_zero(&t, sizeof t);
    t.env = env;
    t.desc = desc;
    t.graph = desc->graph;
    t.turns = desc->sample_count ? desc->sample_count : 15;
    t.least_ns = desc->least_ns ? desc->least_ns : 100000;
    nodes = (uint64_t)t.graph->node_count;
    t.all = t.graph->node_count;
    for (i = 0; desc->convert && i < t.graph->tensor_count; i++)
        t.all += !t.graph->nodes[t.graph->outputs[i].node].is_input;
    (void)tl_find_default_profiles(&count);
    text = tli_text_length(desc->name) + 1;
    for (i = 0; i < t.graph->node_count; i++) text += tli_text_length(tl_name_op(t.graph, i)) + 1;
    measured->memory = tli_alloc_array(env, nodes * (sizeof *t.rows + TL_SCHEME_COUNT * sizeof *t.costs) +
                                                (uint64_t)count * sizeof *t.rows + text, 1);
    if (!measured->memory)
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(MEASURE_PROFILES), TLI_RULE(NO_MEMORY_FOR_TIMES));
    t.rows = (tl_precision_profile *)measured->memory;
    t.costs = (uint64_t *)(t.rows + nodes + (uint64_t)count);
    t.name = (char *)(t.costs + nodes * TL_SCHEME_COUNT);
    tli_copy(t.name, desc->name, tli_text_length(desc->name) + 1);
    result = tli_time_nodes(&t);
    if (!result) result = tli_time_conversions(&t, &measured->device);
    if (result) {
        tl_free_measured_profiles(env, measured);
        return result;
    }
    tli_add_measured_rows(&t, t.name + tli_text_length(t.name) + 1);
    tli_add_assumed_rows(&t);
    measured->profiles = t.rows;
    measured->profile_count = t.row_count;
    measured->costs = t.costs;
    measured->device.name = t.name;
    measured->device.flops_per_second[TL_PRECISION_SINGLE] = tli_find_cost_rate(&t);
    return TL_OK;
}

TLI_IMPL void tl_free_measured_profiles(tl_env *env, tl_measured_profiles *measured) {
    if (!measured) return;
    tli_release(env, measured->memory);
    tli_zero(measured, sizeof *measured);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
