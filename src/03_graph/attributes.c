#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// ============================================================================
// [3] GRAPH (implementation)
// ============================================================================
//
// -- attributes: what few nodes have --
//
// Rows and constants stand beside the nodes, in arrays of their own in the order of nodes, so that a graph
// without them is no larger. A node is looked up by bisection:
//
//     rows       node 2, first 0   node 5, first 1   node 6, first 3
//     relations  [1:1]             [3/1/1] [whole]   [1:1]
//
// They belong to the graph where its outputs do: every node that is added has outputs, so a const table is
// copied before the first one is added to it.

// Where neither texts nor planners are, nothing reads attributes, and nodes with any are refused.
#if defined(TL_NO_PLANNERS) && defined(TL_NO_TEXT)
#define TLI_ATTRIBUTES 0
#else
#define TLI_ATTRIBUTES 1
#endif

#define TLI_LAST_AXIS 7

#if TLI_ATTRIBUTES
// The first entry of a node in rows, or where it would stand.
static int32_t tli_bisect_rows(const tl_attributes *a, int32_t node) {
    int32_t low = 0, high = a->row_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (a->rows[middle].node < node) low = middle + 1; else high = middle;
    }
    return low;
}

// The first constant of a node, or where it would stand.
static int32_t tli_bisect_stored(const tl_attributes *a, int32_t node) {
    int32_t low = 0, high = a->stored_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (a->stored[middle].node < node) low = middle + 1; else high = middle;
    }
    return low;
}

// The rows of a node; NULL = it has none.
static const tl_node_rows *tli_find_rows(const tl_graph *graph, int32_t node) {
    const tl_attributes *a = graph->attributes;
    int32_t at = a ? tli_bisect_rows(a, node) : 0;
    return a && at < a->row_count && a->rows[at].node == node ? &a->rows[at] : NULL;
}

// How many constants a node reads, and the first.
static int32_t tli_find_stored(const tl_graph *graph, int32_t node, const tl_stored **first) {
    const tl_attributes *a = graph->attributes;
    int32_t at = a ? tli_bisect_stored(a, node) : 0, end = at;
    while (a && end < a->stored_count && a->stored[end].node == node) end++;
    *first = a && end > at ? &a->stored[at] : NULL;
    return end - at;
}

// -- attributes: rules --

// The range of rows that the windows of one row span, less one.
static int64_t tli_window_reach(const tl_relation *r) {
    return (int64_t)r->dilation * ((int64_t)r->kernel - 1);
}

static tli_rule tli_check_relation(const tl_relation *r) {
    int is_window = r->kind == TL_RELATION_WINDOW, has_stride = is_window || r->kind == TL_RELATION_UP;
    if (!tli_is_below(r->kind, TL_RELATION_COUNT)) return TLI_RULE(RIN_THERE_IS_NO_SUCH_RELATION);
    if (is_window && r->kernel < 1) return TLI_RULE(RIN_WINDOW_MUST_HAVE_ROWS);
    if (has_stride && r->stride < 1) return TLI_RULE(RIN_STRIDE_MUST_BE_POSITIVE);
    if (is_window && r->dilation < 1) return TLI_RULE(RIN_DILATION_MUST_BE_POSITIVE);
    if (is_window && (r->padding < 0 || r->padding > tli_window_reach(r)))
        return TLI_RULE(RIN_PADDING_MUST_BE_LESS_THAN_THE_WINDOW);
    if ((!is_window && (r->kernel || r->padding || r->dilation)) || (!has_stride && r->stride))
        return TLI_RULE(RIN_NUMBERS_ARE_OF_WINDOWS);
    return TLI_NO_RULE;
}

// The relation as the graph holds it.
static tl_relation tli_normal_relation(tl_relation relation) {
    if (relation.kind == TL_RELATION_WINDOW && !relation.dilation) relation.dilation = 1;
    return relation;
}

static int tli_has_attributes(const tl_node_desc *desc) {
    return desc->rows || desc->row_axis || desc->relations || desc->row_unit || desc->ordered ||
           desc->reduces || desc->stream || desc->stored_count;
}

static tli_rule tli_check_desc_rows(const tl_node_desc *desc) {
    tli_rule rule = TLI_NO_RULE;
    int32_t k;
    if (!desc->rows && (desc->row_axis || desc->relations || desc->row_unit || desc->ordered || desc->reduces ||
                        desc->stream))
        return TLI_RULE(ROWS_ARE_MISSING);
    if (desc->row_axis < 0 || desc->row_axis > TLI_LAST_AXIS) return TLI_RULE(ROWS_AXIS_MUST_BE_0_TO_7);
    if ((desc->ordered | desc->reduces | desc->stream) & ~1) return TLI_RULE(ORDERED_STREAM_MUST_BE_0_OR_1);
    for (k = 0; k < desc->input_count && desc->relations && !rule; k++) {
        tl_relation relation = tli_normal_relation(desc->relations[k]);
        rule = tli_check_relation(&relation);
    }
    return rule;
}

static tli_rule tli_check_desc_attributes(const tl_node_desc *desc) {
    int32_t k;
    tli_rule rule = tli_check_desc_rows(desc);
    if (rule) return rule;
    if (desc->stored_count < 0 || (desc->stored_count && !desc->stored))
        return TLI_RULE(STORED_MISSING_OR_NEGATIVE_COUNT);
    for (k = 0; k < desc->output_count && desc->formats; k++)
        if (desc->formats[k] >= TL_TENSOR_FORMAT_COUNT) return TLI_RULE(FORMAT_THERE_IS_NO_SUCH);
    return TLI_NO_RULE;
}

// Whether the bytes of a node are as many for each of its rows. Those of 4 bits may share a byte.
static tli_rule tli_check_row_bytes(const tl_graph *graph, const tl_node *node, const tl_node_rows *r,
                                    uint64_t rows) {
    const tl_node_output *output = &graph->outputs[node->first_output];
    if (!r->reduces && output->format != TL_TENSOR_FORMAT_I4 && output->bytes % rows)
        return TLI_RULE(ROWS_OUTPUT_0_MUST_DIVIDE_BY_THEM);
    return node->saved_bytes % rows ? TLI_RULE(ROWS_SAVED_MUST_DIVIDE_BY_THEM) : TLI_NO_RULE;
}

static tli_rule tli_check_node_rows(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    const tl_node_rows *r = tli_find_rows(graph, id);
    tli_rule rule = TLI_NO_RULE;
    int32_t k;
    if (!r) return TLI_NO_RULE;
    if (node->state) return TLI_RULE(ROWS_STATE_HAS_NONE);
    if (node->dynamic) return TLI_RULE(ROWS_NOBODY_KNOWS_THOSE_OF_DYNAMIC);
    if (!r->rows || !r->unit) return TLI_RULE(ROWS_MUST_BE_POSITIVE);
    if (r->axis > TLI_LAST_AXIS) return TLI_RULE(ROWS_AXIS_MUST_BE_0_TO_7);
    if (r->rows % r->unit) return TLI_RULE(ROW_UNIT_MUST_DIVIDE_ROWS);
    if (r->ordered > 1 || r->reduces > 1 || r->stream > 1) return TLI_RULE(ORDERED_STREAM_MUST_BE_0_OR_1);
    if (r->stream && !node->is_input) return TLI_RULE(STREAM_IS_OF_INPUTS);
    if (r->reduces && (node->is_input || node->takes_blocks)) return TLI_RULE(REDUCES_IS_OF_NODES_BY_ROWS);
    if (r->stream && node->keep) return TLI_RULE(STREAM_IS_NO_RESULT);
    for (k = 0; k < node->input_count && !rule; k++)
        rule = tli_check_relation(&graph->attributes->relations[r->first_relation + k]);
    return rule ? rule : tli_check_row_bytes(graph, node, r, r->rows);
}

static tli_rule tli_check_formats_of(const tl_graph *graph, const tl_node *node) {
    int32_t k;
    for (k = node->first_output; k < node->first_output + node->output_count; k++)
        if (graph->outputs[k].format >= TL_TENSOR_FORMAT_COUNT) return TLI_RULE(FORMAT_THERE_IS_NO_SUCH);
    if (node->state == TL_STATE_HELD && graph->outputs[k - 1].format)
        return TLI_RULE(FORMAT_HELD_GRADIENT_HAS_NONE);
    return TLI_NO_RULE;
}

// Whether a node is a frozen state whose weight is a constant: the tensor that others read has no bytes.
static int tli_is_constant_state(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    const tl_stored *stored;
    return node->state == TL_STATE_FROZEN && !graph->outputs[node->first_output].bytes &&
           tli_find_stored(graph, id, &stored) == 1;
}

static tli_rule tli_check_stored(const tl_graph *graph, int32_t id) {
    const tl_stored *stored;
    int32_t count = tli_find_stored(graph, id, &stored), k;
    if (count && graph->nodes[id].is_input && !tli_is_constant_state(graph, id))
        return TLI_RULE(STORED_INPUT_HAS_NONE);
    for (k = 0; k < count; k++) {
        if (!stored[k].bytes) return TLI_RULE(STORED_MUST_HAVE_BYTES);
        if (!stored[k].format || !tli_is_below(stored[k].format, TL_TENSOR_FORMAT_COUNT))
            return TLI_RULE(STORED_MUST_HAVE_A_FORMAT);
    }
    return TLI_NO_RULE;
}

static tli_rule tli_check_node_attributes(const tl_graph *graph, int32_t id) {
    tli_rule rule = tli_check_formats_of(graph, &graph->nodes[id]);
    if (!rule) rule = tli_check_node_rows(graph, id);
    if (!rule) rule = tli_check_stored(graph, id);
    return rule;
}

// Add the constants of a node to a sum. 0 = it does not fit 64 bits.
static int tli_add_stored(const tl_graph *graph, int32_t id, uint64_t *sum) {
    const tl_stored *stored;
    int32_t count = tli_find_stored(graph, id, &stored), k;
    int fits = 1;
    for (k = 0; k < count && fits; k++) fits = tli_add_u64(*sum, stored[k].bytes, sum);
    return fits;
}

// Whether the arrays are there and in order; all other rules follow them. Nodes may be unchecked, but are
// there.
static tli_rule tli_check_attribute_arrays(const tl_graph *graph) {
    const tl_attributes *a = graph->attributes;
    int32_t i;
    int64_t relation = 0;
    if (!a) return TLI_NO_RULE;
    if (a->row_count < 0 || a->relation_count < 0 || a->stored_count < 0 || (a->row_count && !a->rows) ||
        (a->relation_count && !a->relations) || (a->stored_count && !a->stored))
        return TLI_RULE(ATTRIBUTES_MISSING_OR_NEGATIVE_COUNT);
    for (i = 0; i < a->row_count; i++) {
        int32_t node = a->rows[i].node;
        if (node < 0 || node >= graph->node_count || (i && node <= a->rows[i - 1].node) ||
            a->rows[i].first_relation != relation || graph->nodes[node].input_count < 0)
            return TLI_RULE(ATTRIBUTES_MUST_BE_IN_THE_ORDER_OF_NODES);
        relation += graph->nodes[node].input_count;
        if (relation > a->relation_count) return TLI_RULE(ATTRIBUTES_MUST_BE_IN_THE_ORDER_OF_NODES);
    }
    for (i = 0; i < a->stored_count; i++)
        if (a->stored[i].node < 0 || a->stored[i].node >= graph->node_count ||
            (i && a->stored[i].node < a->stored[i - 1].node))
            return TLI_RULE(ATTRIBUTES_MUST_BE_IN_THE_ORDER_OF_NODES);
    return relation == a->relation_count ? TLI_NO_RULE : TLI_RULE(ATTRIBUTES_MUST_BE_IN_THE_ORDER_OF_NODES);
}

// Find a stream that a second node reads; -1 = none. 0 = no memory.
static int tli_find_shared_stream(tl_env *env, const tl_graph *graph, int32_t *found) {
    const tl_attributes *a = graph->attributes;
    int32_t *readers, id, k, streams = 0;
    *found = -1;
    for (k = 0; a && k < a->row_count; k++) streams += a->rows[k].stream;
    if (!streams) return 1;
    readers = (int32_t *)tli_alloc_array(env, (uint64_t)a->row_count, sizeof *readers);
    if (!readers) return 0;
    for (k = 0; k < a->row_count; k++) readers[k] = -1;
    for (id = 0; id < graph->node_count && *found < 0; id++)
        for (k = 0; k < graph->nodes[id].input_count; k++) {
            int32_t maker = graph->outputs[graph->inputs[graph->nodes[id].first_input + k].tensor].node;
            const tl_node_rows *r = graph->nodes[maker].is_input ? tli_find_rows(graph, maker) : NULL;
            if (!r || !r->stream) continue;
            if (readers[r - a->rows] >= 0 && readers[r - a->rows] != id) *found = maker;
            readers[r - a->rows] = id;
        }
    tli_release(env, readers);
    return 1;
}

// Find a node whose tensors are declared to have another format than f32; -1 = none. States have what they
// declare whatever a run computes in, and so have inputs where they are not among those that are asked for.
static int32_t tli_find_foreign_format(const tl_graph *graph, int with_inputs) {
    int32_t k;
    for (k = 0; k < graph->tensor_count; k++) {
        const tl_node_output *output = &graph->outputs[k];
        const tl_node *node = &graph->nodes[output->node];
        if (node->state || (node->is_input && !with_inputs)) continue;
        if (output->format != TL_TENSOR_FORMAT_NONE && output->format != TL_TENSOR_FORMAT_F32)
            return output->node;
    }
    return -1;
}

// -- attributes: memory --

static void tli_release_attributes(tl_env *env, tl_attributes *a) {
    if (!a) return;
    if (a->row_capacity) tli_release(env, (tl_node_rows *)a->rows);
    if (a->relation_capacity) tli_release(env, (tl_relation *)a->relations);
    if (a->stored_capacity) tli_release(env, (tl_stored *)a->stored);
    tli_release(env, a);
}

// Release those of a graph, if they are its own.
static void tli_free_attributes(tl_env *env, tl_graph *graph) {
    if (graph->tensor_capacity) tli_release_attributes(env, (tl_attributes *)graph->attributes);
}

// Make room for more in attributes that are the graph's own. 0 = no memory.
static int tli_grow_attributes(tl_env *env, tl_attributes *a, int32_t rows, int32_t relations, int32_t stored) {
    void *row_array = (tl_node_rows *)a->rows, *relation_array = (tl_relation *)a->relations;
    void *stored_array = (tl_stored *)a->stored;
    int ok = tli_grow(env, &row_array, &a->row_capacity, a->row_count, (int64_t)a->row_count + rows,
                      sizeof *a->rows) &&
             tli_grow(env, &relation_array, &a->relation_capacity, a->relation_count,
                      (int64_t)a->relation_count + relations, sizeof *a->relations) &&
             tli_grow(env, &stored_array, &a->stored_capacity, a->stored_count,
                      (int64_t)a->stored_count + stored, sizeof *a->stored);
    a->rows = (tl_node_rows *)row_array;
    a->relations = (tl_relation *)relation_array;
    a->stored = (tl_stored *)stored_array;
    return ok;
}

// A copy that belongs to whoever asks; NULL = no memory.
static tl_attributes *tli_copy_attributes(tl_env *env, const tl_attributes *from) {
    tl_attributes *a = (tl_attributes *)tli_alloc_array(env, 1, sizeof *a);
    if (!a) return NULL;
    if (!tli_grow_attributes(env, a, from->row_count, from->relation_count, from->stored_count)) {
        tli_release_attributes(env, a);
        return NULL;
    }
    if (from->row_count)
        tli_copy((tl_node_rows *)a->rows, from->rows, (size_t)from->row_count * sizeof *a->rows);
    if (from->relation_count)
        tli_copy((tl_relation *)a->relations, from->relations,
                 (size_t)from->relation_count * sizeof *a->relations);
    if (from->stored_count)
        tli_copy((tl_stored *)a->stored, from->stored, (size_t)from->stored_count * sizeof *a->stored);
    a->row_count = from->row_count;
    a->relation_count = from->relation_count;
    a->stored_count = from->stored_count;
    return a;
}

// Take out what is of nodes that the graph does not have: one that was added and refused.
static void tli_cut_attributes(tl_graph *graph) {
    tl_attributes *a = (tl_attributes *)graph->attributes;
    const tl_node_rows *last;
    if (!a) return;
    a->row_count = tli_bisect_rows(a, graph->node_count);
    a->stored_count = tli_bisect_stored(a, graph->node_count);
    last = a->row_count ? &a->rows[a->row_count - 1] : NULL;
    a->relation_count = last ? last->first_relation + graph->nodes[last->node].input_count : 0;
}

// Make room for those of one more node. Where the outputs become the graph's own, so do the attributes, of
// which *copy is a copy then. 0 = no memory, and *copy is to be released in any case.
static int tli_reserve_attributes(tl_env *env, tl_graph *graph, const tl_node_desc *desc,
                                  tl_attributes **copy) {
    *copy = NULL;
    if (graph->attributes && !graph->tensor_capacity) *copy = tli_copy_attributes(env, graph->attributes);
    else if (!graph->attributes && tli_has_attributes(desc))
        *copy = (tl_attributes *)tli_alloc_array(env, 1, sizeof **copy);
    if (!*copy && (!graph->attributes || !graph->tensor_capacity))
        return !graph->attributes && !tli_has_attributes(desc);
    return tli_grow_attributes(env, *copy ? *copy : (tl_attributes *)graph->attributes, desc->rows > 0,
                               desc->rows ? desc->input_count : 0, desc->stored_count);
}

// Append those of the last node, for which there is room.
static void tli_append_attributes(tl_graph *graph, const tl_node_desc *desc) {
    tl_attributes *a = (tl_attributes *)graph->attributes;
    int32_t id = graph->node_count - 1, k;
    if (desc->rows) {
        tl_node_rows *r = (tl_node_rows *)&a->rows[a->row_count++];
        r->rows = desc->rows;
        r->unit = desc->row_unit ? desc->row_unit : 1;
        r->node = id;
        r->first_relation = a->relation_count;
        r->axis = (uint8_t)desc->row_axis;
        r->ordered = (uint8_t)desc->ordered;
        r->reduces = (uint8_t)desc->reduces;
        r->stream = (uint8_t)desc->stream;
        for (k = 0; k < desc->input_count; k++) {
            tl_relation *relation = (tl_relation *)&a->relations[a->relation_count++];
            if (desc->relations) *relation = tli_normal_relation(desc->relations[k]);
            else tli_zero(relation, sizeof *relation);
        }
    }
    for (k = 0; k < desc->stored_count; k++) {
        tl_stored *stored = (tl_stored *)&a->stored[a->stored_count++];
        *stored = desc->stored[k];
        stored->node = id;
    }
}

// -- attributes: graphs made from graphs --

#ifndef TL_NO_PLANNERS
// Describe those of a node for a graph that is made from this one; formats are copied by tli_copy_needs.
static void tli_describe_attributes(const tl_graph *graph, int32_t id, tl_node_desc *desc) {
    const tl_node_rows *r = tli_find_rows(graph, id);
    desc->stored_count = tli_find_stored(graph, id, &desc->stored);
    if (!r) return;
    desc->rows = r->rows;
    desc->row_unit = r->unit;
    desc->row_axis = r->axis;
    desc->ordered = r->ordered;
    desc->reduces = r->reduces;
    desc->stream = r->stream;
    desc->relations = desc->input_count ? &graph->attributes->relations[r->first_relation] : NULL;
}

static void tli_omit_rows(tl_node_desc *desc) {
    desc->rows = desc->row_unit = 0;
    desc->row_axis = desc->ordered = desc->reduces = desc->stream = 0;
    desc->relations = NULL;
}

#ifndef TL_NO_PRECISION
// Leave the rows out where the bytes of a desc are not as many for each.
static void tli_fit_rows(tl_node_desc *desc, uint8_t format) {
    if (desc->rows && (desc->saved_bytes % desc->rows ||
                       (!desc->reduces && format != TL_TENSOR_FORMAT_I4 &&
                        desc->output_bytes[0] % desc->rows)))
        tli_omit_rows(desc);
}
#endif
#endif

// A format that was declared, of a tensor whose bytes are scaled to a precision.
static uint8_t tli_scale_tensor_format(uint8_t format, tl_precision precision) {
    if (format != TL_TENSOR_FORMAT_F32) return format;
    switch (precision) {
    case TL_PRECISION_DOUBLE: return TL_TENSOR_FORMAT_NONE;     // there is no such one
    case TL_PRECISION_HALF: return TL_TENSOR_FORMAT_F16;
    case TL_PRECISION_BF16: return TL_TENSOR_FORMAT_BF16;
    case TL_PRECISION_FULL:
    case TL_PRECISION_SINGLE:
    case TL_PRECISION_MIXED:
    case TL_PRECISION_COUNT: break;
    }
    return format;
}

#ifndef TL_NO_PLANNERS
// The attributes of a graph whose nodes, of other bytes, stand in the place of those of `from`: rows along axis
// 0 of nodes that are not fixed are divided by parts, and those of nodes that do not divide are left out.
// *copy is NULL where there are none, and else the caller's to release. 0 = no memory.
static int tli_divide_attributes(tl_env *env, const tl_attributes *from, const tl_graph *graph, uint64_t parts,
                                 tl_attributes **copy) {
    tl_attributes *a = from ? tli_copy_attributes(env, from) : NULL;
    tl_node_rows *rows = a ? (tl_node_rows *)a->rows : NULL;
    tl_relation *relations = a ? (tl_relation *)a->relations : NULL;
    int32_t i, k;
    *copy = a;
    if (!a) return !from;
    a->row_count = a->relation_count = 0;
    for (i = 0; i < from->row_count; i++) {
        const tl_node *node = &graph->nodes[from->rows[i].node];
        tl_node_rows *r = &rows[a->row_count];
        uint64_t by = node->fixed || from->rows[i].axis ? 1 : parts;
        *r = from->rows[i];
        if (r->rows % by || r->rows / by % r->unit || tli_check_row_bytes(graph, node, r, r->rows / by))
            continue;
        r->rows /= by;
        r->first_relation = a->relation_count;
        for (k = 0; k < node->input_count; k++)
            relations[a->relation_count++] = from->relations[from->rows[i].first_relation + k];
        a->row_count++;
    }
    return 1;
}
#endif
#endif

#ifndef TL_ONLY_TABLES
// Mix what the attributes of a graph say into a hash, which stays what it is where there are none.
static uint64_t tli_mix_attributes(uint64_t hash, const tl_graph *graph) {
    const tl_attributes *a = graph->attributes;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->outputs[i].format) hash = tl_mix_u64(hash, (uint64_t)i << 8 | graph->outputs[i].format);
    for (i = 0; a && i < a->row_count; i++) {
        const tl_node_rows *r = &a->rows[i];
        hash = tl_mix_u64(hash, tl_mix_u64(r->rows, r->unit));
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)r->node << 32 | (uint64_t)r->reduces << 8 |
                                (uint64_t)r->axis << 2 | (uint64_t)r->ordered << 1 | r->stream);
    }
    for (i = 0; a && i < a->relation_count; i++) {
        const tl_relation *r = &a->relations[i];
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)r->kind << 32 | (uint32_t)r->dilation);
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)r->kernel << 32 | (uint32_t)r->stride);
        hash = tl_mix_u64(hash, (uint32_t)r->padding);
    }
    for (i = 0; a && i < a->stored_count; i++) {
        hash = tl_mix_u64(hash, a->stored[i].bytes);
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)a->stored[i].node << 32 | (uint32_t)a->stored[i].format);
    }
    return hash;
}
#endif

#ifndef TL_NO_TEXT
// -- attributes: text --

static const char *const tli_tensor_format_names[] = { TL_TENSOR_FORMATS(TLI_NAME) };

static void tli_put_relation(tli_writer *w, const tl_relation *r) {
    switch ((tl_relation_kind)r->kind) {
    case TL_RELATION_WHOLE: tli_put(w, "whole"); break;
    case TL_RELATION_PART: tli_put(w, "part"); break;
    case TL_RELATION_SAME: tli_put(w, "1:1"); break;
    case TL_RELATION_UP: tli_put(w, "up"); tli_put_i64(w, r->stride); break;
    case TL_RELATION_WINDOW:
        tli_put_i64(w, r->kernel);
        tli_put(w, "/"); tli_put_i64(w, r->stride);
        tli_put(w, "/"); tli_put_i64(w, r->padding);
        if (r->dilation > 1) { tli_put(w, "/"); tli_put_i64(w, r->dilation); }
        break;
    case TL_RELATION_COUNT: tli_put(w, "?"); break;
    }
}

static const char *tli_name_tensor_format(int64_t format) {
    return tli_name(tli_tensor_format_names, TL_TENSOR_FORMAT_COUNT, format);
}

// Write the formats of tensors, if one has any.
static void tli_put_formats(tli_writer *w, const char *key, const tl_node_output *outputs, int32_t count) {
    int32_t k, declared = 0;
    for (k = 0; k < count; k++) declared |= outputs[k].format;
    for (k = 0; k < count && declared; k++) {
        tli_put(w, k ? "," : key);
        tli_put(w, tli_name_tensor_format(outputs[k].format));
    }
}

static void tli_put_stored(tli_writer *w, const tl_graph *graph, int32_t id) {
    const tl_stored *stored;
    int32_t count = tli_find_stored(graph, id, &stored), k;
    for (k = 0; k < count; k++) {
        tli_put(w, k ? "," : " stored=");
        tli_put_u64(w, stored[k].bytes);
        tli_put(w, ":"); tli_put(w, tli_name_tensor_format(stored[k].format));
    }
}

static void tli_put_attributes(tli_writer *w, const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    const tl_node_rows *r = tli_find_rows(graph, id);
    int32_t k;
    if (r) {
        tli_put(w, " rows="); tli_put_u64(w, r->rows);
        tli_put(w, "@"); tli_put_i64(w, r->axis);
        for (k = 0; k < node->input_count; k++) {
            tli_put(w, k ? "," : " rin=");
            tli_put_relation(w, &graph->attributes->relations[r->first_relation + k]);
        }
        if (r->unit != 1) { tli_put(w, " row_unit="); tli_put_u64(w, r->unit); }
        if (r->ordered) tli_put(w, " ordered");
        if (r->reduces) tli_put(w, " reduces");
        if (r->stream) tli_put(w, " stream");
    }
    tli_put_formats(w, " format=", &graph->outputs[node->first_output], node->output_count);
    tli_put_stored(w, graph, id);
}

// Cut what stands in front of the first `at` off a word; all of it where there is none. *found: whether there
// is one.
static tli_word tli_cut_at(tli_word *word, char at, int *found) {
    tli_word cut = *word;
    cut.length = 0;
    while (cut.length < word->length && cut.text[cut.length] != at) cut.length++;
    *found = cut.length < word->length;
    word->text += cut.length + (size_t)*found;
    word->length -= cut.length + (size_t)*found;
    return cut;
}

// Cut the next item off a list "a,b,c". A list has one item more than it has commas.
static tli_word tli_next_item(tli_word *list) {
    int found;
    return tli_cut_at(list, ',', &found);
}

static int32_t tli_count_items(tli_word list) {
    int32_t count = 1;
    size_t i;
    for (i = 0; i < list.length; i++) count += list.text[i] == ',';
    return count;
}

// Read a relation. 0 = the word is none; whether its numbers make one is for tli_check_relation to say, but a
// dilation that is given is not 0.
static int tli_read_relation(tli_word word, tl_relation *r) {
    int32_t *numbers[4];
    int found = 1;
    int32_t k;
    tli_zero(r, sizeof *r);
    if (tli_word_is(word, "whole")) return 1;
    if (tli_word_is(word, "part")) { r->kind = TL_RELATION_PART; return 1; }
    if (tli_word_is(word, "1:1")) { r->kind = TL_RELATION_SAME; return 1; }
    if (word.length > 2 && word.text[0] == 'u' && word.text[1] == 'p') {
        word.text += 2; word.length -= 2;
        r->kind = TL_RELATION_UP;
        return tli_read_i32(word, &r->stride);
    }
    r->kind = TL_RELATION_WINDOW;
    numbers[0] = &r->kernel; numbers[1] = &r->stride; numbers[2] = &r->padding; numbers[3] = &r->dilation;
    for (k = 0; k < 4 && found; k++)
        if (!tli_read_i32(tli_cut_at(&word, '/', &found), numbers[k])) return 0;
    if (k == 4 && !r->dilation) r->dilation = -1;
    return k >= 3 && !found;
}

// Read the name of a format. 0 = there is no such one.
static int tli_read_tensor_format(tli_word word, uint8_t *format) {
    int32_t value;
    int known = tli_parse_name(tli_tensor_format_names, TL_TENSOR_FORMAT_COUNT, word.text, word.length, &value);
    *format = (uint8_t)value;
    return known;
}

// Read "100:i8".
static int tli_read_stored(tli_word word, tl_stored *stored) {
    int found;
    uint8_t format = 0;
    int ok = tli_read_u64(tli_cut_at(&word, ':', &found), &stored->bytes);
    ok = ok && found && tli_read_tensor_format(word, &format);
    stored->format = format;
    stored->node = 0;
    return ok;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
