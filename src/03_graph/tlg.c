#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TEXT

// -- .tlg text --
//
// The text form of a graph: a line a node, or a state, of words and key=value. What is printed is read as the
// same graph.

// -- .tlg text: printing --

static int tli_is_needed(const tl_graph *graph, const tl_node *node, int of_outputs, int32_t k) {
    return of_outputs ? graph->outputs[node->first_output + k].needed
                      : graph->inputs[node->first_input + k].needed;
}

// Write "in" if all inputs are needed, else a list like "in0,in2"; the same for outputs.
static void tli_put_needs(tli_writer *w, const tl_graph *graph, const tl_node *node) {
    const char *comma = "";
    int of_outputs;
    for (of_outputs = 0; of_outputs < 2; of_outputs++) {
        int32_t count = of_outputs ? node->output_count : node->input_count, needed = 0, k;
        for (k = 0; k < count; k++) needed += tli_is_needed(graph, node, of_outputs, k);
        for (k = 0; k < count && needed; k++) {
            if (!tli_is_needed(graph, node, of_outputs, k)) continue;
            tli_put(w, comma); tli_put(w, of_outputs ? "out" : "in");
            comma = ",";
            if (needed == count) break;
            tli_put_i64(w, k);
        }
    }
    if (!*comma) tli_put(w, "none");
}

static void tli_put_attribute(tli_writer *w, const char *key, uint64_t value) {
    if (!value) return;
    tli_put(w, key);
    tli_put_u64(w, value);
}

static void tli_put_tensors(tli_writer *w, const tl_graph *graph, const tl_node *node) {
    int32_t k;
    for (k = 0; k < node->output_count; k++) {
        tli_put(w, k ? "," : " out=");
        tli_put_u64(w, graph->outputs[node->first_output + k].bytes);
    }
    tli_put(w, " needs=");
    tli_put_needs(w, graph, node);
    tli_put(w, node->input_count ? " in=" : " in=-");
    for (k = 0; k < node->input_count; k++) {
        const tl_node_output *from = &graph->outputs[graph->inputs[node->first_input + k].tensor];
        tli_put(w, k ? "," : "");
        tli_put_i64(w, from->node);
        if (graph->nodes[from->node].output_count > 1) { tli_put(w, "."); tli_put_i64(w, from->output); }
    }
}

static void tli_put_place(tli_writer *w, const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    if (node->layer >= 0) { tli_put(w, " layer="); tli_put_i64(w, node->layer); }
    if (*tl_name_unit(graph, id)) { tli_put(w, " unit="); tli_put(w, tl_name_unit(graph, id)); }
}

static void tli_put_state(tli_writer *w, const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    tli_put(w, "state "); tli_put_i64(w, id);
    tli_put(w, " "); tli_put(w, tl_name_node(graph, id));
    tli_put(w, " "); tli_put(w, tl_name_op(graph, id));
    for (k = 0; k < node->output_count - tli_is_held(node); k++) {
        tli_put(w, k > 1 ? "," : k ? " m=" : " w=");
        tli_put_u64(w, graph->outputs[node->first_output + k].bytes);
    }
    tli_put_attribute(w, " upd=", node->bwd_cost);
    tli_put_attribute(w, " uwork=", node->bwork_bytes);
    tli_put_attribute(w, " wrows=", (uint64_t)node->weight_rows);
    tli_put_attribute(w, " piece=", (uint64_t)node->piece_rows);
    tli_put_place(w, graph, id);
    if (node->state == TL_STATE_HELD) tli_put(w, " hold");
    if (node->state == TL_STATE_FROZEN) tli_put(w, " frozen");
    if (node->state == TL_STATE_STATISTIC) tli_put(w, " stat");
    tli_put_formats(w, " wfmt=", &graph->outputs[node->first_output], 1);
    tli_put_formats(w, " mfmt=", &graph->outputs[node->first_output + 1],
                    node->output_count - tli_is_held(node) - 1);
    tli_put_stored(w, graph, id);
    tli_put(w, "\n");
}

static void tli_put_node(tli_writer *w, const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    tli_put(w, "node "); tli_put_i64(w, id);
    tli_put(w, " "); tli_put(w, tl_name_node(graph, id));
    tli_put(w, " "); tli_put(w, tl_name_op(graph, id));
    tli_put(w, " fwd="); tli_put_u64(w, node->fwd_cost);
    tli_put(w, " bwd="); tli_put_u64(w, node->bwd_cost);
    tli_put_tensors(w, graph, node);
    tli_put_attribute(w, " saved=", node->saved_bytes);
    tli_put_attribute(w, " fwork=", node->fwork_bytes);
    tli_put_attribute(w, " bwork=", node->bwork_bytes);
    if (node->swork_bytes != node->fwork_bytes) { tli_put(w, " swork="); tli_put_u64(w, node->swork_bytes); }
    tli_put_attribute(w, " param=", node->param_bytes);
    tli_put_attribute(w, " wrows=", (uint64_t)node->weight_rows);
    if (node->inplace >= 0) { tli_put(w, " inplace="); tli_put_i64(w, node->inplace); }
    tli_put_place(w, graph, id);
    if (!node->has_grad && !node->is_input) tli_put(w, " grad=no");
    if (node->keep) tli_put(w, " keep");
    if (node->once) tli_put(w, tli_is_late(node) ? " late" : " once");
    if (node->dynamic) tli_put(w, " dynamic");
    if (node->takes_blocks) tli_put(w, " takes_blocks");
    if (node->fixed) tli_put(w, " fixed");
    if (tli_dies(node)) tli_put(w, " dies");
    tli_put_attributes(w, graph, id);
    tli_put(w, "\n");
}

TLI_IMPL size_t tl_print_graph(const tl_graph *graph, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t i;
    TL_ASSERT(graph);
    tli_put(&w, "tlg 2\n");
    if (graph->batch) { tli_put(&w, "batch "); tli_put_u64(&w, graph->batch); tli_put(&w, "\n"); }
    for (i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].state) tli_put_state(&w, graph, i); else tli_put_node(&w, graph, i);
    tli_put(&w, "end ");
    tli_put_i64(&w, graph->node_count);
    tli_put(&w, "\n");
    return tli_finish(&w);
}

// -- .tlg text: parsing --
//
// Each line becomes a tl_node_desc for tli_add_node, so a text is held to the same rules as a
// caller.

enum {  // attributes; those whose value is a 64-bit number first, those without a value last
    TLI_TLG_FWD, TLI_TLG_BWD, TLI_TLG_SAVED, TLI_TLG_FWORK, TLI_TLG_BWORK, TLI_TLG_SWORK, TLI_TLG_PARAM,
    TLI_TLG_WEIGHT, TLI_TLG_UPD, TLI_TLG_UWORK, TLI_TLG_NUMBER_COUNT, TLI_TLG_OUT = TLI_TLG_NUMBER_COUNT,
    TLI_TLG_NEEDS, TLI_TLG_IN, TLI_TLG_INPLACE, TLI_TLG_LAYER, TLI_TLG_UNIT, TLI_TLG_GRAD, TLI_TLG_MOMENTS,
    TLI_TLG_WROWS, TLI_TLG_PIECE, TLI_TLG_ROWS, TLI_TLG_RIN, TLI_TLG_ROW_UNIT, TLI_TLG_FORMAT,
    TLI_TLG_STORED, TLI_TLG_WEIGHT_FORMAT, TLI_TLG_MOMENT_FORMATS,
    TLI_TLG_KEEP, TLI_TLG_ONCE, TLI_TLG_LATE, TLI_TLG_DYNAMIC, TLI_TLG_TAKES_BLOCKS, TLI_TLG_FIXED,
    TLI_TLG_FROZEN,
    TLI_TLG_STAT, TLI_TLG_HOLD, TLI_TLG_DIES, TLI_TLG_ORDERED, TLI_TLG_REDUCES, TLI_TLG_STREAM, TLI_TLG_COUNT
};

enum { TLI_OF_NODE = 1, TLI_OF_STATE = 2, TLI_NODE_MUST = 4, TLI_STATE_MUST = 8, TLI_OF_TLG_2 = 16 };

typedef struct tli_tlg_key { const char *key; int lines; } tli_tlg_key;

// In which lines an attribute may stand, and in which it must.
static const tli_tlg_key tli_tlg_keys[TLI_TLG_COUNT] = {
    { "fwd", TLI_OF_NODE | TLI_NODE_MUST }, { "bwd", TLI_OF_NODE | TLI_NODE_MUST }, { "saved", TLI_OF_NODE },
    { "fwork", TLI_OF_NODE }, { "bwork", TLI_OF_NODE }, { "swork", TLI_OF_NODE }, { "param", TLI_OF_NODE },
    { "w", TLI_OF_STATE | TLI_STATE_MUST }, { "upd", TLI_OF_STATE }, { "uwork", TLI_OF_STATE },
    { "out", TLI_OF_NODE | TLI_NODE_MUST }, { "needs", TLI_OF_NODE | TLI_NODE_MUST },
    { "in", TLI_OF_NODE | TLI_NODE_MUST }, { "inplace", TLI_OF_NODE }, { "layer", TLI_OF_NODE | TLI_OF_STATE },
    { "unit", TLI_OF_NODE | TLI_OF_STATE }, { "grad", TLI_OF_NODE }, { "m", TLI_OF_STATE },
    { "wrows", TLI_OF_NODE | TLI_OF_STATE | TLI_OF_TLG_2 }, { "piece", TLI_OF_STATE | TLI_OF_TLG_2 },
    { "rows", TLI_OF_NODE | TLI_OF_TLG_2 }, { "rin", TLI_OF_NODE | TLI_OF_TLG_2 },
    { "row_unit", TLI_OF_NODE | TLI_OF_TLG_2 }, { "format", TLI_OF_NODE | TLI_OF_TLG_2 },
    { "stored", TLI_OF_NODE | TLI_OF_STATE | TLI_OF_TLG_2 }, { "wfmt", TLI_OF_STATE | TLI_OF_TLG_2 },
    { "mfmt", TLI_OF_STATE | TLI_OF_TLG_2 },
    { "keep", TLI_OF_NODE }, { "once", TLI_OF_NODE }, { "late", TLI_OF_NODE | TLI_OF_TLG_2 },
    { "dynamic", TLI_OF_NODE },
    { "takes_blocks", TLI_OF_NODE }, { "fixed", TLI_OF_NODE }, { "frozen", TLI_OF_STATE },
    { "stat", TLI_OF_STATE }, { "hold", TLI_OF_STATE }, { "dies", TLI_OF_NODE },
    { "ordered", TLI_OF_NODE | TLI_OF_TLG_2 }, { "reduces", TLI_OF_NODE | TLI_OF_TLG_2 },
    { "stream", TLI_OF_NODE | TLI_OF_TLG_2 }
};

typedef struct tli_tlg {
    tli_graph_rules rules;             // rules.line is the line being read
    tl_graph  *graph;
    int32_t    version;                // of the text; 0 = its first line was not read yet
    int        has_ended;              // 1 = its last line was read
    tli_word   values[TLI_TLG_COUNT];  // attributes of the current line; text NULL = not given
    tl_tensor *inputs;                 // inputs of the current line
    uint64_t  *bytes;                  // bytes of its outputs
    uint64_t   weight_bytes;           // of the state of the current line
    char      *text;                   // its name, op, unit and needs, each ended by 0
    int32_t    input_capacity, bytes_capacity, text_capacity;
    tl_relation *relations;            // of its inputs
    tl_stored *stored;                 // its constants
    uint8_t   *formats;                // of its outputs
    int32_t    relation_capacity, stored_capacity, format_capacity;
} tli_tlg;

// Fail with "tl_parse_graph: line 3: fwd: ...".
static tl_result tli_fail_word(const tli_tlg *t, tli_word word, tli_rule rule) {
    tli_sentence s = tli_begin_error(t->rules.env, TL_ERROR_PARSE, t->rules.function, rule,
                                     (uint64_t)t->rules.line, 0);
    if (TLI_ERROR_TEXT) {
        tli_put(&s.text, "line "); tli_put_i64(&s.text, t->rules.line); tli_put(&s.text, ": ");
        tli_put_clipped(&s.text, word.text, word.length);
        tli_put(&s.text, ": ");
    }
    return tli_end_error(t->rules.env, &s, TL_ERROR_PARSE);
}

static tl_result tli_fail_key(const tli_tlg *t, int32_t key, tli_rule rule) {
    tli_word word;
    word.text = tli_tlg_keys[key].key; word.length = tli_text_length(word.text);
    return tli_fail_word(t, word, rule);
}

static tl_result tli_fail_read(const tli_tlg *t, tli_rule why) {
    return tli_fail_line(t->rules.env, TL_ERROR_PARSE, t->rules.function, t->rules.line, why);
}

// The line of the first control character other than tab and line end; 0 = none.
static int32_t tli_find_control(const char *text, size_t length) {
    int32_t line = 1;
    size_t i;
    for (i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\r' ? i + 1 < length && text[i + 1] != '\n' : (c < ' ' && c != '\t' && c != '\n') || c == 127)
            return line;
        line += c == '\n';
    }
    return 0;
}

// The attribute of a name; TLI_TLG_COUNT = there is no such one in these lines.
static int32_t tli_find_attribute(tli_word key, int lines) {
    int32_t k = 0;
    while (k < TLI_TLG_COUNT && !(tli_tlg_keys[k].lines & lines && tli_word_is(key, tli_tlg_keys[k].key))) k++;
    return k;
}

static tl_result tli_read_attributes(tli_tlg *t, tli_reader *r, int is_state) {
    tli_word word, key, value;
    int32_t k;
    tli_zero(t->values, sizeof t->values);
    while (tli_next_word(r, &word)) {
        int has_value = tli_cut_word(word, &key, &value);
        k = tli_find_attribute(key, is_state ? TLI_OF_STATE : TLI_OF_NODE);
        if (k < TLI_TLG_COUNT && tli_tlg_keys[k].lines & TLI_OF_TLG_2 && t->version < 2)
            return tli_fail_word(t, key, TLI_RULE(ATTRIBUTE_IS_OF_TLG_2));
        if (k == TLI_TLG_COUNT) return tli_fail_word(t, key, TLI_RULE(THERE_IS_NO_SUCH_ATTRIBUTE));
        if (t->values[k].text) return tli_fail_key(t, k, TLI_RULE(IS_GIVEN_TWICE));
        if (has_value != (k < TLI_TLG_KEEP))
            return tli_fail_key(t, k, has_value ? TLI_RULE(TAKES_NO_VALUE) : TLI_RULE(NEEDS_VALUE));
        t->values[k] = value;
    }
    for (k = 0; k < TLI_TLG_COUNT; k++)
        if (!t->values[k].text && tli_tlg_keys[k].lines & (is_state ? TLI_STATE_MUST : TLI_NODE_MUST))
            return tli_fail_key(t, k, TLI_RULE(IS_MISSING));
    return TL_OK;
}

static tl_result tli_read_numbers(tli_tlg *t, tl_node_desc *desc) {
    uint64_t *numbers[TLI_TLG_NUMBER_COUNT];
    int32_t k;
    numbers[TLI_TLG_FWD] = &desc->fwd_cost;      numbers[TLI_TLG_BWD] = &desc->bwd_cost;
    numbers[TLI_TLG_SAVED] = &desc->saved_bytes; numbers[TLI_TLG_FWORK] = &desc->fwork_bytes;
    numbers[TLI_TLG_BWORK] = &desc->bwork_bytes; numbers[TLI_TLG_SWORK] = &desc->swork_bytes;
    numbers[TLI_TLG_PARAM] = &desc->param_bytes; numbers[TLI_TLG_WEIGHT] = &t->weight_bytes;
    numbers[TLI_TLG_UPD] = &desc->bwd_cost;      numbers[TLI_TLG_UWORK] = &desc->bwork_bytes;
    for (k = 0; k < TLI_TLG_NUMBER_COUNT; k++)
        if (t->values[k].text && !tli_read_u64(t->values[k], numbers[k]))
            return tli_fail_key(t, k, TLI_RULE(MUST_BE_NUMBER_BELOW_2_64));
    if (t->values[TLI_TLG_SWORK].text) {
        if (desc->swork_bytes == TL_SCRATCH_NONE)
            return tli_fail_key(t, TLI_TLG_SWORK, TLI_RULE(MUST_BE_NUMBER_BELOW_2_64));
        if (!desc->swork_bytes) desc->swork_bytes = TL_SCRATCH_NONE;
    }
    for (k = TLI_TLG_INPLACE; k <= TLI_TLG_LAYER; k++) {  // a desc stores the value + 1, with 0 = none
        int32_t *number = k == TLI_TLG_LAYER ? &desc->layer : &desc->inplace;
        if (!t->values[k].text) continue;
        if (!tli_read_i32(t->values[k], number) || *number == INT32_MAX)
            return tli_fail_key(t, k, TLI_RULE(MUST_BE_NUMBER_BELOW_2_31_1));
        ++*number;
    }
    for (k = TLI_TLG_WROWS; k <= TLI_TLG_PIECE; k++) {
        int32_t *number = k == TLI_TLG_WROWS ? &desc->weight_rows : &desc->piece_rows;
        if (t->values[k].text && (!tli_read_i32(t->values[k], number) || !*number))
            return tli_fail_key(t, k, TLI_RULE(MUST_BE_NUMBER_FROM_1_TO_2_31_1));
    }
    if (t->values[TLI_TLG_GRAD].text && !tli_word_is(t->values[TLI_TLG_GRAD], "no"))
        return tli_fail_key(t, TLI_TLG_GRAD, TLI_RULE(CAN_ONLY_BE_NO));
    desc->no_grad = t->values[TLI_TLG_GRAD].text != NULL;
    desc->keep = t->values[TLI_TLG_KEEP].text != NULL;
    desc->dynamic = t->values[TLI_TLG_DYNAMIC].text != NULL;
    desc->once = t->values[TLI_TLG_ONCE].text != NULL;
    if (t->values[TLI_TLG_LATE].text) desc->once = TL_ONCE_LATE;
    desc->takes_blocks = t->values[TLI_TLG_TAKES_BLOCKS].text != NULL;
    desc->fixed = t->values[TLI_TLG_FIXED].text != NULL;
    desc->dies = t->values[TLI_TLG_DIES].text != NULL;
    return TL_OK;
}

// Read a list of numbers of 64 bits to the bytes of outputs from `first` on.
static tl_result tli_read_bytes(tli_tlg *t, int32_t key, int32_t first, int32_t count) {
    tli_word list = t->values[key];
    int32_t k;
    for (k = first; k < first + count; k++)
        if (!tli_read_u64(tli_next_item(&list), &t->bytes[k]))
            return tli_fail_key(t, key, TLI_RULE(MUST_BE_NUMBERS_BELOW_2_64_WITH_COMMAS));
    return TL_OK;
}

static tl_result tli_read_lists(tli_tlg *t, tl_node_desc *desc, int is_state) {
    tli_word in = t->values[TLI_TLG_IN], moments = t->values[TLI_TLG_MOMENTS];
    void *bytes = t->bytes, *inputs = t->inputs;
    int32_t k, moment_count = moments.text ? tli_count_items(moments) : 0;
    int ok;
    tl_result result;
    desc->output_count = is_state ? 1 + moment_count + (t->values[TLI_TLG_HOLD].text != NULL)
                                  : tli_count_items(t->values[TLI_TLG_OUT]);
    desc->input_count = is_state || tli_word_is(in, "-") ? 0 : tli_count_items(in);
    ok = tli_grow(t->rules.env, &bytes, &t->bytes_capacity, 0, desc->output_count, sizeof *t->bytes) &&
         tli_grow(t->rules.env, &inputs, &t->input_capacity, 0, desc->input_count, sizeof *t->inputs);
    desc->output_bytes = t->bytes = (uint64_t *)bytes;
    desc->inputs = t->inputs = (tl_tensor *)inputs;
    if (!ok) return tli_fail(t->rules.env, TL_ERROR_NO_MEMORY, t->rules.function, TLI_RULE(NO_MEMORY_FOR_LINE));
    if (is_state) t->bytes[desc->output_count - 1] = t->bytes[0] = t->weight_bytes;
    result = is_state ? tli_read_bytes(t, TLI_TLG_MOMENTS, 1, moment_count)
                      : tli_read_bytes(t, TLI_TLG_OUT, 0, desc->output_count);
    for (k = 0; k < desc->input_count && !result; k++) {
        tli_word item = tli_next_item(&in);
        if (!tli_read_tensor(item.text, item.length, &t->inputs[k]))
            result = tli_fail_key(t, TLI_TLG_IN, TLI_RULE(MUST_BE_MINUS_OR_TENSORS_LIKE_3_OR_3_1));
    }
    return result;
}

// What the attributes say about a state.
static tl_result tli_read_state(tli_tlg *t, tl_node_desc *desc) {
    int frozen = t->values[TLI_TLG_FROZEN].text != NULL, statistic = t->values[TLI_TLG_STAT].text != NULL;
    int held = t->values[TLI_TLG_HOLD].text != NULL;
    int pieces = t->values[TLI_TLG_PIECE].text != NULL;
    if (frozen + statistic + held + pieces > 1)
        return tli_fail_key(t, pieces ? TLI_TLG_PIECE : held ? TLI_TLG_HOLD : TLI_TLG_STAT,
                            TLI_RULE(STATE_IS_FROZEN_OR_STAT));
    desc->state = frozen ? TL_STATE_FROZEN : statistic ? TL_STATE_STATISTIC : held ? TL_STATE_HELD
                  : pieces ? TL_STATE_PIECES : TL_STATE_TRAINED;
    desc->fixed = 1;
    return TL_OK;
}

static tl_result tli_fail_memory(const tli_tlg *t) {
    return tli_fail(t->rules.env, TL_ERROR_NO_MEMORY, t->rules.function, TLI_RULE(NO_MEMORY_FOR_LINE));
}

// "rows=64@0 rin=1:1,whole row_unit=8 ordered reduces stream"
static tl_result tli_read_rows(tli_tlg *t, tl_node_desc *desc) {
    tli_word rows = t->values[TLI_TLG_ROWS], rin = t->values[TLI_TLG_RIN], unit = t->values[TLI_TLG_ROW_UNIT];
    void *relations = t->relations;
    int32_t k;
    int found, ok;
    desc->ordered = t->values[TLI_TLG_ORDERED].text != NULL;
    desc->reduces = t->values[TLI_TLG_REDUCES].text != NULL;
    desc->stream = t->values[TLI_TLG_STREAM].text != NULL;
    if (!rows.text) {
        k = rin.text ? TLI_TLG_RIN : unit.text ? TLI_TLG_ROW_UNIT : desc->ordered ? TLI_TLG_ORDERED
            : desc->reduces ? TLI_TLG_REDUCES : TLI_TLG_STREAM;
        return t->values[k].text ? tli_fail_key(t, k, TLI_RULE(NEEDS_ROWS)) : TL_OK;
    }
    ok = tli_read_u64(tli_cut_at(&rows, '@', &found), &desc->rows) && desc->rows;
    if (!ok || !found || !tli_read_i32(rows, &desc->row_axis))
        return tli_fail_key(t, TLI_TLG_ROWS, TLI_RULE(MUST_BE_A_NUMBER_OF_ROWS_AND_AN_AXIS));
    if (unit.text && (!tli_read_u64(unit, &desc->row_unit) || !desc->row_unit))
        return tli_fail_key(t, TLI_TLG_ROW_UNIT, TLI_RULE(MUST_BE_A_NUMBER_FROM_1_TO_2_64_1));
    if (desc->input_count != (rin.text ? tli_count_items(rin) : 0))
        return tli_fail_key(t, TLI_TLG_RIN, TLI_RULE(MUST_BE_ONE_RELATION_AN_INPUT));
    ok = tli_grow(t->rules.env, &relations, &t->relation_capacity, 0, desc->input_count, sizeof *t->relations);
    desc->relations = t->relations = (tl_relation *)relations;
    if (!ok) return tli_fail_memory(t);
    if (!desc->input_count) desc->relations = NULL;
    for (k = 0; k < desc->input_count; k++)
        if (!tli_read_relation(tli_next_item(&rin), &t->relations[k]))
            return tli_fail_key(t, TLI_TLG_RIN, TLI_RULE(MUST_BE_RELATIONS_LIKE_1_1_OR_3_1_1));
    return TL_OK;
}

// Read a list of names to the formats of outputs from `first` on.
static tl_result tli_read_format_list(tli_tlg *t, int32_t key, int32_t first, int32_t count) {
    tli_word list = t->values[key];
    int32_t k;
    if (!list.text) return TL_OK;
    if (tli_count_items(list) != count)
        return tli_fail_key(t, key, key == TLI_TLG_MOMENT_FORMATS ? TLI_RULE(MUST_BE_ONE_FORMAT_A_MOMENT)
                                                                  : TLI_RULE(MUST_BE_ONE_FORMAT_AN_OUTPUT));
    for (k = first; k < first + count; k++)
        if (!tli_read_tensor_format(tli_next_item(&list), &t->formats[k]))
            return tli_fail_key(t, key, TLI_RULE(MUST_BE_FORMATS_LIKE_F32_OR_I8));
    return TL_OK;
}

static tl_result tli_read_formats(tli_tlg *t, tl_node_desc *desc, int is_state) {
    void *formats = t->formats;
    int32_t k, held = t->values[TLI_TLG_HOLD].text != NULL;
    tl_result result;
    int ok;
    if (!t->values[TLI_TLG_FORMAT].text && !t->values[TLI_TLG_WEIGHT_FORMAT].text &&
        !t->values[TLI_TLG_MOMENT_FORMATS].text) return TL_OK;
    ok = tli_grow(t->rules.env, &formats, &t->format_capacity, 0, desc->output_count, sizeof *t->formats);
    desc->formats = t->formats = (uint8_t *)formats;
    if (!ok) return tli_fail_memory(t);
    for (k = 0; k < desc->output_count; k++) t->formats[k] = TL_TENSOR_FORMAT_NONE;
    if (!is_state) return tli_read_format_list(t, TLI_TLG_FORMAT, 0, desc->output_count);
    result = tli_read_format_list(t, TLI_TLG_WEIGHT_FORMAT, 0, 1);
    return result ? result
                  : tli_read_format_list(t, TLI_TLG_MOMENT_FORMATS, 1, desc->output_count - 1 - held);
}

static tl_result tli_read_constants(tli_tlg *t, tl_node_desc *desc) {
    tli_word list = t->values[TLI_TLG_STORED];
    void *stored = t->stored;
    int32_t k;
    int ok;
    if (!list.text) return TL_OK;
    desc->stored_count = tli_count_items(list);
    ok = tli_grow(t->rules.env, &stored, &t->stored_capacity, 0, desc->stored_count, sizeof *t->stored);
    desc->stored = t->stored = (tl_stored *)stored;
    if (!ok) return tli_fail_memory(t);
    for (k = 0; k < desc->stored_count; k++)
        if (!tli_read_stored(tli_next_item(&list), &t->stored[k]))
            return tli_fail_key(t, TLI_TLG_STORED, TLI_RULE(MUST_BE_CONSTANTS_LIKE_400_I8));
    return TL_OK;
}

// Append a word and a final 0 at *at, where the caller has made room.
static const char *tli_keep_word(char **at, tli_word word) {
    const char *text = *at;
    tli_copy(*at, word.text, word.length);
    (*at)[word.length] = 0;
    *at += word.length + 1;
    return text;
}

// Read the rest of the line of a node, or of a state.
static tl_result tli_read_node(tli_tlg *t, tli_reader *r, int is_state) {
    tl_node_desc desc;
    tli_word id, name, op, unit, needs;
    void *text = t->text;
    char *at;
    int32_t number;
    int ok;
    tl_result result;
    if (!tli_next_word(r, &id) || !tli_read_i32(id, &number) || number != t->graph->node_count)
        return tli_fail_word(t, id, TLI_RULE(NODE_IDS_MUST_BE_0_1_2_IN_THIS_ORDER));
    if (!tli_next_word(r, &name) || !tli_next_word(r, &op))
        return tli_fail_read(t, TLI_RULE(NODE_NAME_AND_OP_MUST_FOLLOW_ID));
    tli_zero(&desc, sizeof desc);
    result = tli_read_attributes(t, r, is_state);
    if (!result) result = tli_read_numbers(t, &desc);
    if (!result) result = tli_read_lists(t, &desc, is_state);
    if (!result && is_state) result = tli_read_state(t, &desc);
    if (!result) result = tli_read_rows(t, &desc);
    if (!result) result = tli_read_formats(t, &desc, is_state);
    if (!result) result = tli_read_constants(t, &desc);
    if (result) return result;
    unit = t->values[TLI_TLG_UNIT];
    needs = t->values[TLI_TLG_NEEDS];
    if (unit.text && !unit.length) return tli_fail_key(t, TLI_TLG_UNIT, TLI_RULE(NEEDS_VALUE));
    ok = tli_grow(t->rules.env, &text, &t->text_capacity, 0,
                  (int64_t)(name.length + op.length + unit.length + needs.length + 4), 1);
    at = t->text = (char *)text;
    if (!ok) return tli_fail(t->rules.env, TL_ERROR_NO_MEMORY, t->rules.function, TLI_RULE(NO_MEMORY_FOR_LINE));
    desc.name = tli_keep_word(&at, name);
    desc.op = tli_keep_word(&at, op);
    desc.unit = tli_keep_word(&at, unit);
    desc.needs = is_state ? NULL : tli_keep_word(&at, needs);
    return tli_add_node(&t->rules, t->graph, &desc);
}

// Read the rest of the last line: the number of nodes. It must be the right one and a line end must follow, so
// that a text that was cut is refused.
static tl_result tli_read_end(tli_tlg *t, tli_reader *r, tli_word first) {
    tli_word word, more;
    const char *at = r->line_end;
    uint64_t count;
    if (!tli_next_word(r, &word) || !tli_read_u64(word, &count) || tli_next_word(r, &more) ||
        count != (uint64_t)t->graph->node_count)
        return tli_fail_word(t, first, TLI_RULE(END_MUST_BE_THE_NUMBER_OF_NODES));
    while (at < r->end && *at != '\n') at++;
    if (at == r->end) return tli_fail_word(t, first, TLI_RULE(END_MUST_HAVE_A_LINE_END));
    t->has_ended = 1;
    return TL_OK;
}

static tl_result tli_read_line(tli_tlg *t, tli_reader *r, tli_word first) {
    tli_word word, more;
    if (!t->version) {
        if (!tli_word_is(first, "tlg")) return tli_fail_word(t, first, TLI_RULE(GRAPH_MUST_START_WITH_TLG));
        if (!tli_next_word(r, &word) || !(tli_word_is(word, "1") || tli_word_is(word, "2")) ||
            tli_next_word(r, &more)) return tli_fail_word(t, first, TLI_RULE(VERSION_MUST_BE_1_OR_2));
        t->version = *word.text - '0';
        return TL_OK;
    }
    if (t->has_ended) return tli_fail_word(t, first, TLI_RULE(END_MUST_BE_THE_LAST_LINE));
    if (tli_word_is(first, "node")) return tli_read_node(t, r, 0);
    if (t->version > 1 && tli_word_is(first, "state")) return tli_read_node(t, r, 1);
    if (t->version > 1 && tli_word_is(first, "end")) return tli_read_end(t, r, first);
    if (!tli_word_is(first, "batch"))
        return tli_fail_word(t, first, TLI_RULE(LINE_MUST_START_WITH_NODE_OR_BATCH));
    if (t->graph->batch || t->graph->node_count)
        return tli_fail_word(t, first, TLI_RULE(MUST_STAND_ONCE_AND_ABOVE_NODES));
    if (!tli_next_word(r, &word) || !tli_read_u64(word, &t->graph->batch) || !t->graph->batch ||
        tli_next_word(r, &more))
        return tli_fail_word(t, first, TLI_RULE(MUST_BE_ONE_NUMBER_FROM_1_TO_2_64_1));
    return TL_OK;
}

// The line of a node, in a text that was parsed without an error.
static int32_t tli_find_line(const char *text, size_t length, int64_t node) {
    tli_reader r = tli_reader_of(text, length);
    tli_word word;
    while (node >= 0 && tli_next_line(&r))
        if (tli_next_word(&r, &word) && (tli_word_is(word, "node") || tli_word_is(word, "state"))) node--;
    return r.line;
}

static tl_result tli_read_tlg(tli_tlg *t, const char *text, size_t length) {
    tli_reader r;
    tli_word word;
    tli_rule rule;
    tl_result result;
    int64_t found;
    if (length > TLI_TEXT_LIMIT)
        return tli_fail(t->rules.env, TL_ERROR_PARSE, t->rules.function,
                        TLI_RULE(LENGTH_MUST_NOT_EXCEED_2_30_BYTES));
    t->rules.line = tli_find_control(text, length);
    if (t->rules.line) return tli_fail_read(t, TLI_RULE(TEXT_HOLDS_CONTROL_CHARACTER));
    r = tli_reader_of(text, length);
    while (tli_next_line(&r)) {
        t->rules.line = r.line;
        if (!tli_next_word(&r, &word)) continue;
        result = tli_read_line(t, &r, word);
        if (result) return result;
    }
    t->rules.line = r.line ? r.line : 1;
    if (!t->version) return tli_fail_read(t, TLI_RULE(TEXT_MUST_START_WITH_TLG));
    if (!t->graph->node_count) return tli_fail_read(t, TLI_RULE(TEXT_ENDS_BEFORE_FIRST_NODE));
    if (t->version > 1 && !t->has_ended) return tli_fail_read(t, TLI_RULE(TEXT_ENDS_BEFORE_ITS_END));
    result = tli_check_together(&t->rules, t->graph, &found, &rule);
    if (result || found < 0) return result;
    t->rules.line = tli_find_line(text, length, found);
    return tli_fail_item(&t->rules, TL_ERROR_INVALID_ARG, "node", found, tl_name_node(t->graph, (int32_t)found),
                         rule);
}

static tl_result tli_parse_tlg(tl_env *env, tli_function function, const char *text, size_t length,
                               tl_graph *graph) {
    tli_tlg t;
    tl_result result;
    tli_zero(&t, sizeof t);
    t.rules = tli_rules_of(env, function);
    t.graph = graph;
    tl_init_graph(graph);
    result = tli_read_tlg(&t, text, length);
    tli_release(env, t.inputs);
    tli_release(env, t.bytes);
    tli_release(env, t.text);
    tli_release(env, t.relations);
    tli_release(env, t.stored);
    tli_release(env, t.formats);
    if (result) tl_free_graph(env, graph);
    return result;
}

TLI_IMPL tl_result tl_parse_graph(tl_env *env, const char *text, size_t length, tl_graph *graph) {
    TL_ASSERT((text || !length) && graph);
    return tli_parse_tlg(env, TLI_IN(PARSE_GRAPH), text ? text : "", length, graph);
}

#ifndef TL_NO_STDIO
// -- graph: files --

TLI_IMPL tl_result tl_read_graph(tl_env *env, const char *path, tl_graph *graph) {
    char *text;
    size_t length;
    tl_result result;
    TL_ASSERT(path && graph);
    tl_init_graph(graph);
    result = tli_read_file(env, TLI_IN(READ_GRAPH), path, &text, &length);
    if (result) return result;
    result = tli_parse_tlg(env, TLI_IN(READ_GRAPH), text, length, graph);
    tli_release(env, text);
    return result;
}

TLI_IMPL tl_result tl_write_graph(tl_env *env, const tl_graph *graph, const char *path) {
    tl_file_sink file;
    tl_result result;
    size_t length;
    char *text;
    TL_ASSERT(graph && path);
    length = tl_print_graph(graph, NULL, 0);
    text = (char *)tli_alloc_array(env, (uint64_t)length + 1, 1);
    if (!text)
        return tli_fail_path(env, TL_ERROR_NO_MEMORY, TLI_IN(WRITE_GRAPH),
                             TLI_RULE(PATH_NO_MEMORY_TO_PRINT_FOR), path);
    tl_print_graph(graph, text, length + 1);
    result = tli_open_file(env, TLI_IN(WRITE_GRAPH), path, &file);
    if (!result)
        result = tli_close_file(env, TLI_IN(WRITE_GRAPH), &file, tli_write_file(&file, text, length));
    tli_release(env, text);
    return result;
}
#endif
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
