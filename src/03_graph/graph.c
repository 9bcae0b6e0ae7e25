#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- graph --
//
// Rules, building, lookup and .tlg text of graphs. Every node is added through tli_add_node,
// whether it comes from a caller, a text or a layer, so there is one set of rules. tlg is the name
// of the text form.

// -- names --
//
// All names stand in one block of text, each ended by 0; the one at offset 0 is empty.

#define TLI_NAME_LIMIT 255  // bytes of a name

// The length in bytes of the character at `at`; 0 if no name may hold it. With TL_NO_TEXT all bytes beyond
// ASCII are taken as they are, one by one.
static size_t tli_name_character(const char *at, const char *end) {
#ifndef TL_NO_TEXT
    uint32_t code = 0;
    size_t length = tli_utf8_length(at, end, &code);
    return tli_is_visible(code) && code != '#' && code != '=' ? length : 0;
#else
    unsigned char code = (unsigned char)*at;
    (void)end;
    return code > ' ' && code != 0x7f && code != '#' && code != '=';
#endif
}

static int tli_is_name(const char *text) {
    const char *at = text, *end = text + tli_text_length(text);
    if (at == end || end - at > TLI_NAME_LIMIT) return 0;
    while (at < end) {
        size_t length = tli_name_character(at, end);
        if (!length) return 0;
        at += length;
    }
    return 1;
}

// The text at an offset; NULL for an offset outside the block, so it is safe for an unchecked
// graph.
static const char *tli_text_at(const tl_graph *graph, uint32_t offset) {
    if (!graph->text || offset >= graph->text_bytes || graph->text[graph->text_bytes - 1]) return NULL;
    return graph->text + offset;
}

static uint32_t tli_append_text(tl_graph *graph, const char *text) {
    size_t bytes = tli_text_length(text) + 1;
    uint32_t at = graph->text_bytes;
    if (bytes == 1) return 0;
    tli_copy((char *)graph->text + at, text, bytes);
    graph->text_bytes += (uint32_t)bytes;
    return at;
}

static int tli_has_node(const tl_graph *graph, int32_t node) {
    return graph->nodes && node >= 0 && node < graph->node_count;
}

TLI_IMPL const char *tl_name_node(const tl_graph *graph, int32_t node) {
    const char *text = tli_has_node(graph, node) ? tli_text_at(graph, graph->nodes[node].name) : NULL;
    return text ? text : "?";
}

TLI_IMPL const char *tl_name_op(const tl_graph *graph, int32_t node) {
    const char *text = tli_has_node(graph, node) ? tli_text_at(graph, graph->nodes[node].op) : NULL;
    return text ? text : "?";
}

TLI_IMPL const char *tl_name_unit(const tl_graph *graph, int32_t node) {
    const char *text = tli_has_node(graph, node) ? tli_text_at(graph, graph->nodes[node].unit) : NULL;
    return text ? text : "?";
}

// tl_node.is_input of an input that dies, and whether a node is one.
enum { TLI_INPUT_DIES = 2 };
static int tli_dies(const tl_node *node) { return node->is_input == TLI_INPUT_DIES; }

// Whether a node is a state with an update, and one that holds its gradient.
static int tli_has_update(const tl_node *node) {
    return node->state == TL_STATE_TRAINED || node->state == TL_STATE_HELD;
}

static int tli_is_held(const tl_node *node) { return node->state == TL_STATE_HELD; }

// Whether a state is trained within the backward of its reader, and whether a step changes it at all.
static int tli_is_in_pieces(const tl_node *node) { return node->state == TL_STATE_PIECES; }
static int tli_learns(const tl_node *node) { return tli_has_update(node) || tli_is_in_pieces(node); }

// The state that input k of a node reads, if it is trained in pieces; NULL if not.
static const tl_node *tli_find_pieces(const tl_graph *graph, const tl_node *node, int32_t k) {
    const tl_node *maker = &graph->nodes[graph->outputs[graph->inputs[node->first_input + k].tensor].node];
    return tli_is_in_pieces(maker) ? maker : NULL;
}

#ifndef TL_NO_TEXT
// The first node that reads a tensor; -1 = none does.
static int32_t tli_find_reader(const tl_graph *graph, int32_t tensor) {
    int32_t id, i;
    for (id = graph->outputs[tensor].node + 1; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (graph->inputs[i].tensor == tensor) return id;
    }
    return -1;
}
#endif

#ifndef TL_ONLY_TABLES
static int tli_reads_pieces(const tl_graph *graph, const tl_node *node) {
    int32_t k = 0;
    while (k < node->input_count && !tli_find_pieces(graph, node, k)) k++;
    return k < node->input_count;
}
#endif

#define TLI_PIECE_ALIGNMENT 16   // of a piece in its scratch, where the backend asks for no more

// The bytes of a piece of the gradient of a state's weight.
static uint64_t tli_find_piece_bytes(const tl_graph *graph, const tl_node *state) {
    uint64_t row_bytes = graph->outputs[state->first_output].bytes / (uint64_t)state->weight_rows;
    return row_bytes * (uint64_t)state->piece_rows;
}

// A call of the backward of a node that reads states in pieces, but the first: which rows of which.
typedef struct tli_state_piece {
    int32_t input;         // of the node: the weight
    int32_t state;         // its node
    int32_t first, count;  // rows
    int     is_update;     // 1 = the kernel of the state is called, 0 = that of the node
} tli_state_piece;

static int32_t tli_count_state_pieces(const tl_node *state) {
    return state->weight_rows / state->piece_rows + (state->weight_rows % state->piece_rows != 0);
}

// How many calls the backward of a node has: 1, and 2 for each piece.
static int32_t tli_count_piece_calls(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t count = 1, k;
    for (k = 0; k < node->input_count; k++) {
        const tl_node *state = tli_find_pieces(graph, node, k);
        if (state) count += 2 * tli_count_state_pieces(state);
    }
    return count;
}

// What call number `at` of the backward of a node is for; at > 0.
static tli_state_piece tli_find_state_piece(const tl_graph *graph, int32_t id, int32_t at) {
    const tl_node *node = &graph->nodes[id], *state = NULL;
    tli_state_piece piece;
    tli_zero(&piece, sizeof piece);
    for (at--;; piece.input++) {
        state = tli_find_pieces(graph, node, piece.input);
        if (state && at < 2 * tli_count_state_pieces(state)) break;
        if (state) at -= 2 * tli_count_state_pieces(state);
    }
    piece.state = graph->outputs[graph->inputs[node->first_input + piece.input].tensor].node;
    piece.first = at / 2 * state->piece_rows;
    piece.count = state->weight_rows - piece.first;
    if (piece.count > state->piece_rows) piece.count = state->piece_rows;
    piece.is_update = at % 2;
    return piece;
}

// The end of the outputs of a node that have a gradient if it has a backward: a state has one of its weight,
// not of its moments, and none where it holds it.
static int32_t tli_gradient_end(const tl_node *node) {
    return node->first_output + (node->state ? !tli_is_held(node) : node->output_count);
}

// Whether a tensor is running statistics, which the first forward of a reader in a pass changes.
static int tli_is_statistic(const tl_graph *graph, int32_t tensor) {
    return graph->nodes[graph->outputs[tensor].node].state == TL_STATE_STATISTIC;
}

// The tensor that holds the gradient of a weight; -1 = none does.
static int32_t tli_held_gradient(const tl_graph *graph, int32_t tensor) {
    const tl_node *node = &graph->nodes[graph->outputs[tensor].node];
    int holds = tli_is_held(node) && tensor == node->first_output;
    return holds ? node->first_output + node->output_count - 1 : -1;
}

// Whether backwards make a gradient of a tensor.
static int tli_gets_gradient(const tl_graph *graph, int32_t tensor) {
    const tl_node *node = &graph->nodes[graph->outputs[tensor].node];
    return node->has_grad && tensor < tli_gradient_end(node);
}

// -- rules of a node --
//
// Each function that returns a rule returns the broken one, or TLI_NO_RULE.

typedef struct tli_graph_rules {
    tl_env     *env;
    tli_function function;            // for error sentences
    int32_t     line;                // of the text being read; 0 = none
    uint64_t    bytes, cost, param;  // sums over the nodes seen so far
    uint64_t    stored;              // the same of constants
} tli_graph_rules;

static tli_graph_rules tli_rules_of(tl_env *env, tli_function function) {
    tli_graph_rules rules;
    tli_zero(&rules, sizeof rules);
    rules.env = env;
    rules.function = function;
    return rules;
}

#define TLI_CLIP_BYTES 48

#ifndef TL_NO_TEXT
// Write a text from outside, with ? for what is not visible; behind TLI_CLIP_BYTES bytes it is cut, with "...".
static void tli_put_clipped(tli_writer *w, const char *text, size_t length) {
    const char *end = text + length;
    size_t used = 0;
    while (text < end) {
        uint32_t code = 0;
        size_t read = tli_utf8_length(text, end, &code);
        int shown = read && (tli_is_visible(code) || code == ' ');
        used += shown ? read : 1;
        if (used > TLI_CLIP_BYTES) { tli_put(w, "..."); return; }
        tli_put_bytes(w, shown ? text : "?", shown ? read : 1);
        text += read ? read : 1;
    }
}
#else
// The same by bytes: only control characters of ASCII are not visible.
static void tli_put_clipped(tli_writer *w, const char *text, size_t length) {
    size_t shown = length > TLI_CLIP_BYTES ? tli_whole_characters(text, TLI_CLIP_BYTES) : length, i;
    for (i = 0; i < shown; i++)
        tli_put_bytes(w, (unsigned char)text[i] < ' ' || text[i] == 0x7f ? "?" : text + i, 1);
    if (shown < length) tli_put(w, "...");
}
#endif

// Begin the sentence "tl_add_node: node 3 (conv1): inputs: ..."; while a text is read, it is
// "tl_parse_graph: line 5: node 3 (conv1): inputs: ...".
static tli_sentence tli_begin_item(const tli_graph_rules *rules, tl_result code, const char *kind, int64_t id,
                                   const char *name, tli_rule rule) {
    tli_sentence s = tli_begin_error(rules->env, code, rules->function, rule, (uint64_t)id,
                                     (uint64_t)rules->line);
    if (!TLI_ERROR_TEXT) return s;
    if (rules->line) { tli_put(&s.text, "line "); tli_put_i64(&s.text, rules->line); tli_put(&s.text, ": "); }
    tli_put(&s.text, kind); tli_put(&s.text, " "); tli_put_i64(&s.text, id); tli_put(&s.text, " (");
    tli_put_clipped(&s.text, name, tli_text_length(name));
    tli_put(&s.text, "): ");
    return s;
}

static tl_result tli_fail_item(const tli_graph_rules *rules, tl_result code, const char *kind, int64_t id,
                               const char *name, tli_rule rule) {
    tli_sentence s = tli_begin_item(rules, code, kind, id, name, rule);
    return tli_end_error(rules->env, &s, code);
}

#if TLI_ATTRIBUTES
// Refuse a graph in which a tensor is declared to have another format than f32, where that is what bytes are
// taken for. States keep theirs, and inputs where with_inputs is 0.
static tl_result tli_refuse_formats(tl_env *env, tli_function function, const tl_graph *graph, int with_inputs,
                                    tli_rule rule) {
    tli_graph_rules rules = tli_rules_of(env, function);
    int32_t id = tli_find_foreign_format(graph, with_inputs);
    return id < 0 ? TL_OK
                  : tli_fail_item(&rules, TL_ERROR_UNSUPPORTED, "node", id, tl_name_node(graph, id), rule);
}
#endif

// These rules are checked first, because all others follow the indices: the ranges of nodes lie one
// after the other, and names are valid.
static tli_rule tli_check_ranges(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id], *last = id ? node - 1 : NULL;
    int64_t input = last ? (int64_t)last->first_input + last->input_count : 0;
    int64_t output = last ? (int64_t)last->first_output + last->output_count : 0;
    const char *name = tli_text_at(graph, node->name), *op = tli_text_at(graph, node->op);
    const char *unit = tli_text_at(graph, node->unit);
    if (node->input_count < 0 || node->first_input != input || input + node->input_count > graph->input_count)
        return TLI_RULE(INPUTS_MUST_FOLLOW_THOSE_OF_NODE_ABOVE);
    if (node->output_count < 1) return TLI_RULE(OUTPUTS_THERE_MUST_BE_AT_LEAST_ONE);
    if (node->first_output != output || output + node->output_count > graph->tensor_count)
        return TLI_RULE(OUTPUTS_MUST_FOLLOW_THOSE_OF_NODE);
    if (!name || !tli_is_name(name)) return TLI_RULE(NAME_MUST_BE_1_TO_255_BYTES_OF_UTF_8);
    if (!op || !tli_is_name(op)) return TLI_RULE(OP_MUST_BE_1_TO_255_BYTES_OF_UTF_8);
    if (!unit || (*unit && !tli_is_name(unit))) return TLI_RULE(UNIT_MUST_BE_1_TO_255_BYTES_OF_UTF_8);
    return TLI_NO_RULE;
}

static tli_rule tli_check_tensors(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_input *input = &graph->inputs[node->first_input + k];
        if (input->tensor < 0 || input->tensor >= node->first_output)
            return TLI_RULE(INPUTS_EACH_MUST_BE_MADE_BY_NODE_ABOVE);
        if (input->needed > node->has_grad) return TLI_RULE(NEEDS_MUST_BE_NONE_WHERE_THERE_IS_NO);
        if (graph->nodes[graph->outputs[input->tensor].node].state && graph->outputs[input->tensor].output)
            return TLI_RULE(INPUTS_MOMENTS_ARE_READ_BY_THE_UPDATE);
    }
    for (k = 0; k < node->output_count; k++) {
        const tl_node_output *output = &graph->outputs[node->first_output + k];
        if (output->node != id || output->output != k) return TLI_RULE(OUTPUTS_EACH_MUST_KNOW_ITS_NODE);
        if (output->needed > node->has_grad) return TLI_RULE(NEEDS_MUST_BE_NONE_WHERE_THERE_IS_NO);
        if (tli_has_update(node) && !output->needed) return TLI_RULE(STATE_UPDATE_NEEDS_ITS_OUTPUTS);
    }
    return TLI_NO_RULE;
}

static tli_rule tli_check_inplace(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    const tl_node_output *from;
    if (node->inplace == -1) return TLI_NO_RULE;
    if (node->inplace < 0 || node->inplace >= node->input_count)
        return TLI_RULE(INPLACE_THERE_IS_NO_SUCH_INPUT);
    from = &graph->outputs[graph->inputs[node->first_input + node->inplace].tensor];
    if (graph->nodes[from->node].is_input) return TLI_RULE(INPLACE_GRAPH_INPUT_MUST_NOT);
    if (from->bytes != graph->outputs[node->first_output].bytes)
        return TLI_RULE(INPLACE_INPUT_MUST_HAVE_BYTES);
    return TLI_NO_RULE;
}

static tli_rule tli_check_attributes(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    if (node->is_input > TLI_INPUT_DIES || node->has_grad > 1 || node->keep > 1 || node->fixed > 1 ||
        node->takes_blocks > 1 || node->dynamic > 1 || node->once > 1)
        return TLI_RULE(FLAGS_MUST_BE_0_OR_1);
    if (node->state >= TL_STATE_COUNT) return TLI_RULE(STATE_KIND_THERE_IS_NO_SUCH);
    if (!node->is_input != !(node->state || tli_same_text(tl_name_op(graph, id), "input")))
        return TLI_RULE(OP_MUST_BE_INPUT_EXACTLY_FOR_INPUTS);
    if (node->layer < -1 || node->layer == INT32_MAX) return TLI_RULE(LAYER_MUST_BE_NUMBER_BELOW_2_31_1);
    if (node->origin < -1 || node->origin == INT32_MAX) return TLI_RULE(ORIGIN_MUST_BE_NODE_OR_NONE);
    if (node->is_input) {
        if (!node->state && node->has_grad) return TLI_RULE(GRAD_INPUT_MUST_HAVE_NONE);
        if (node->input_count) return TLI_RULE(INPUTS_INPUT_MUST_HAVE_NONE_OF_ITS_OWN);
        if (node->fwd_cost) return TLI_RULE(FWD_MUST_BE_0_FOR_INPUT);
        if (node->fwork_bytes) return TLI_RULE(FWORK_MUST_BE_0_FOR_INPUT);
        if (node->swork_bytes) return TLI_RULE(SWORK_MUST_BE_0_FOR_INPUT);
        if (node->once) return TLI_RULE(ONCE_INPUT_HAS_NO_FORWARD);
        if (tli_dies(node) && (node->keep || node->state))
            return TLI_RULE(DIES_IS_OF_INPUTS_THAT_ARE_NO_RESULTS);
        if (node->param_bytes) return TLI_RULE(PARAM_MUST_BE_0_FOR_INPUT);
    }
    if (node->state) {
        if (tli_same_text(tl_name_op(graph, id), "input")) return TLI_RULE(STATE_OP_MUST_NOT_BE_INPUT);
        if (node->has_grad != tli_has_update(node))
            return TLI_RULE(STATE_HAS_AN_UPDATE_EXACTLY_WHERE_TRAINED);
        if (node->output_count > 1 && !tli_learns(node))
            return TLI_RULE(STATE_MOMENTS_ARE_OF_TRAINED_ONES);
        if (node->saved_bytes || node->keep || !node->fixed) return TLI_RULE(STATE_IS_FIXED_AND_NO_RESULT);
        if (tli_is_held(node) && (node->output_count < 2 || graph->outputs[node->first_output].bytes !=
                                      graph->outputs[node->first_output + node->output_count - 1].bytes))
            return TLI_RULE(STATE_GRADIENT_HAS_THE_BYTES_OF_THE_WEIGHT);
    }
    if (!node->has_grad) {
        if (node->bwd_cost) return TLI_RULE(BWD_MUST_BE_0_WHERE_THERE_IS_NO);
        if (node->saved_bytes) return TLI_RULE(SAVED_MUST_BE_0_WHERE_THERE_IS_NO);
        if (node->bwork_bytes) return TLI_RULE(BWORK_MUST_BE_0_WHERE_THERE_IS_NO);
    }
    return TLI_NO_RULE;
}

// The rules of rows and pieces of weights. Of a state in pieces they may be unknown: it can be planned, and not
// run.
static tli_rule tli_check_pieces(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t rows = node->weight_rows, piece = node->piece_rows, k;
    if (rows < 0 || (rows && !node->state && !node->param_bytes))
        return TLI_RULE(WROWS_ARE_OF_WEIGHTS);
    if (rows && node->param_bytes % (uint64_t)rows)
        return TLI_RULE(WROWS_DIVIDE_WEIGHT_AND_MOMENTS);
    if (tli_is_in_pieces(node) ? piece < (rows > 0) || piece > rows : piece != 0)
        return TLI_RULE(PIECE_IS_1_TO_WROWS);
    if (!rows || !node->state) return TLI_NO_RULE;
    for (k = node->first_output; k < node->first_output + node->output_count; k++)
        if (graph->outputs[k].bytes % (uint64_t)rows) return TLI_RULE(WROWS_DIVIDE_WEIGHT_AND_MOMENTS);
    return TLI_NO_RULE;
}

// How often the inputs of the nodes 0 to `last` read a tensor.
static int32_t tli_count_uses_above(const tl_graph *graph, int32_t tensor, int32_t last) {
    int32_t end = graph->nodes[last].first_input + graph->nodes[last].input_count, count = 0, i;
    for (i = 0; i < end; i++) count += graph->inputs[i].tensor == tensor;
    return count;
}

// The rules of the reader of a state that is trained in pieces.
static tli_rule tli_check_reader(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        const tl_node *state = tli_find_pieces(graph, node, k);
        if (!state) continue;
        if (tli_count_uses_above(graph, state->first_output, id) > 1) return TLI_RULE(PIECES_HAVE_ONE_READER);
        if (!node->has_grad || node->takes_blocks) return TLI_RULE(PIECES_READER_HAS_A_BACKWARD_AND_NO_BLOCKS);
        if (state->weight_rows && node->bwork_bytes < tli_find_piece_bytes(graph, state))
            return TLI_RULE(PIECES_NEED_BWORK);
    }
    return TLI_NO_RULE;
}

// The rules of takes_blocks. They make a range of elements the same range of bytes in all outputs and in all
// inputs to which a gradient passes.
static tli_rule tli_check_blocks(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    const tl_node_output *outputs = &graph->outputs[node->first_output];
    int32_t k;
    if (!node->takes_blocks) return TLI_NO_RULE;
    if (node->is_input) return TLI_RULE(TAKES_BLOCKS_INPUT_HAS_NO_KERNELS);
    if (node->saved_bytes) return TLI_RULE(TAKES_BLOCKS_SAVED_MUST_BE_0);
    for (k = 1; k < node->output_count; k++)
        if (outputs[k].bytes != outputs[0].bytes) return TLI_RULE(TAKES_BLOCKS_OUTPUTS_MUST_HAVE_SAME_BYTES);
    for (k = 0; k < node->input_count && node->has_grad; k++) {
        const tl_node_output *from = &graph->outputs[graph->inputs[node->first_input + k].tensor];
        if (graph->nodes[from->node].has_grad && from->bytes != outputs[0].bytes)
            return TLI_RULE(TAKES_BLOCKS_INPUTS_WITH_GRADIENT);
    }
    return TLI_NO_RULE;
}

// The rules of dynamic: where the bytes of an output are an upper bound, its node is no graph input and takes
// no blocks, no node that takes blocks reads it, and it neither overwrites a tensor in place nor is
// overwritten.
static tli_rule tli_check_dynamic_node(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t over = node->inplace < 0 ? -1 : graph->inputs[node->first_input + node->inplace].tensor, k;
    if (node->dynamic && node->is_input) return TLI_RULE(DYNAMIC_INPUT_HAS_NO_KERNELS);
    if (node->dynamic && node->takes_blocks) return TLI_RULE(DYNAMIC_TAKES_NO_BLOCKS);
    for (k = 0; k < node->input_count && node->takes_blocks; k++) {
        const tl_node_output *from = &graph->outputs[graph->inputs[node->first_input + k].tensor];
        if (graph->nodes[from->node].dynamic) return TLI_RULE(DYNAMIC_READ_IN_NO_BLOCKS);
    }
    if (over >= 0 && (node->dynamic || graph->nodes[graph->outputs[over].node].dynamic))
        return TLI_RULE(DYNAMIC_NOTHING_IN_PLACE);
    return TLI_NO_RULE;
}

// Add a node to the sums of bytes (each output twice, because of its gradient), costs and weights.
// While these fit 64 bits, so does every sum that counts each node once. Sums in which a node counts several
// times, as where its forward runs again, need checks of their own.
static tli_rule tli_add_sums(tli_graph_rules *rules, const tl_graph *graph, const tl_node *node) {
    int32_t k;
    for (k = 0; k < node->output_count; k++) {
        uint64_t bytes = graph->outputs[node->first_output + k].bytes;
        if (!tli_add_u64(bytes, bytes, &bytes) || !tli_add_u64(rules->bytes, bytes, &rules->bytes))
            return TLI_RULE(OUT_SUM_OF_ALL_BYTES_GRADIENTS);
    }
    if (!tli_add_u64(rules->bytes, node->saved_bytes, &rules->bytes) ||
        !tli_add_u64(rules->bytes, tli_larger_u64(node->fwork_bytes, node->swork_bytes), &rules->bytes) ||
        !tli_add_u64(rules->bytes, node->bwork_bytes, &rules->bytes))
        return TLI_RULE(SAVED_FWORK_BWORK_SUM_OF_ALL_BYTES);
    if (!tli_add_u64(rules->cost, node->fwd_cost, &rules->cost) ||
        !tli_add_u64(rules->cost, node->bwd_cost, &rules->cost))
        return TLI_RULE(FWD_BWD_SUM_OF_ALL_COSTS_MUST_FIT_64);
    if (!tli_add_u64(rules->param, node->param_bytes, &rules->param))
        return TLI_RULE(PARAM_SUM_OF_ALL_WEIGHTS_MUST_FIT_64);
#if TLI_ATTRIBUTES
    if (!tli_add_stored(graph, (int32_t)(node - graph->nodes), &rules->stored))
        return TLI_RULE(STORED_SUM_OF_ALL_CONSTANTS_MUST_FIT_64);
#endif
    return TLI_NO_RULE;
}

static tl_result tli_check_node(tli_graph_rules *rules, const tl_graph *graph, int32_t id) {
    tli_rule rule = tli_check_ranges(graph, id);
    if (!rule) rule = tli_check_attributes(graph, id);
    if (!rule) rule = tli_check_tensors(graph, id);
    if (!rule) rule = tli_check_inplace(graph, id);
    if (!rule) rule = tli_check_blocks(graph, id);
    if (!rule) rule = tli_check_pieces(graph, id);
    if (!rule) rule = tli_check_reader(graph, id);
    if (!rule) rule = tli_check_dynamic_node(graph, id);
#if TLI_ATTRIBUTES
    if (!rule) rule = tli_check_node_attributes(graph, id);
#endif
    if (rule) return tli_fail_item(rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(graph, id), rule);
    rule = tli_add_sums(rules, graph, &graph->nodes[id]);
    if (rule) return tli_fail_item(rules, TL_ERROR_OVERFLOW, "node", id, tl_name_node(graph, id), rule);
    return TL_OK;
}

// -- unique names --
//
// Names are sorted by a merge sort: unlike a hash table, no choice of names makes it slow.

static const char *tli_name_of(const tl_graph *graph, uint32_t index) {  // nodes first, then views
    uint32_t count = (uint32_t)graph->node_count;
    return graph->text + (index < count ? graph->nodes[index].name : graph->views[index - count].name);
}

static int tli_is_name_above(const tl_graph *graph, uint32_t a, uint32_t b) {
    const char *x = tli_name_of(graph, a), *y = tli_name_of(graph, b);
    while (*x && *x == *y) { x++; y++; }
    return *x > *y;
}

static void tli_merge_names(const tl_graph *graph, const uint32_t *from, uint32_t *to, uint64_t count,
                            uint64_t width) {
    uint64_t start, at, left, right, middle, end;
    for (start = 0; start < count; start = end) {
        middle = start + width < count ? start + width : count;
        end = middle + width < count ? middle + width : count;
        left = start; right = middle;
        for (at = start; at < end; at++) {
            int takes_right = left == middle ||
                              (right < end && tli_is_name_above(graph, from[left], from[right]));
            to[at] = takes_right ? from[right++] : from[left++];
        }
    }
}

// Find the first node or view whose name an earlier one has already; views count after nodes. -1 =
// none.
static tl_result tli_find_duplicate(const tli_graph_rules *rules, const tl_graph *graph, int64_t *found) {
    uint64_t count = (uint64_t)graph->node_count + (uint64_t)graph->view_count, width, i;
    uint32_t *order = (uint32_t *)tli_alloc_array(rules->env, 2 * count, sizeof *order);
    uint32_t *from = order, *to, *swap;
    *found = -1;
    if (!order)
        return tli_fail(rules->env, TL_ERROR_NO_MEMORY, rules->function, TLI_RULE(NO_MEMORY_TO_COMPARE_NAMES));
    to = order + count;
    for (i = 0; i < count; i++) from[i] = (uint32_t)i;
    for (width = 1; width < count; width *= 2) {
        tli_merge_names(graph, from, to, count, width);
        swap = from; from = to; to = swap;
    }
    for (i = 1; i < count; i++)  // the sort is stable: of two equal names the later item stands second
        if ((*found < 0 || from[i] < *found) &&
            tli_same_text(tli_name_of(graph, from[i - 1]), tli_name_of(graph, from[i]))) *found = from[i];
    tli_release(rules->env, order);
    return TL_OK;
}

// -- rules of a graph and of a device --

// Check what is known of nodes when all of them are there: unique names, and that of a stream one node reads
// all rows. *found: the node or view of a sentence, as tli_find_duplicate has it; -1 = every rule is kept.
static tl_result tli_check_together(const tli_graph_rules *rules, const tl_graph *graph, int64_t *found,
                                    tli_rule *rule) {
    tl_result result = tli_find_duplicate(rules, graph, found);
    *rule = TLI_RULE(NAME_MUST_BE_UNIQUE);
#if TLI_ATTRIBUTES
    if (!result && *found < 0) {
        int32_t stream;
        if (!tli_find_shared_stream(rules->env, graph, &stream))
            return tli_fail(rules->env, TL_ERROR_NO_MEMORY, rules->function,
                            TLI_RULE(NO_MEMORY_TO_FIND_READERS));
        *found = stream;
        *rule = TLI_RULE(STREAM_MUST_HAVE_ONE_READER);
    }
#endif
    return result;
}

static tli_rule tli_check_arrays(const tl_graph *graph) {
    if (graph->node_count < 1 || !graph->nodes) return TLI_RULE(NODES_MISSING_OR_FEWER_THAN_ONE);
    if (graph->input_count < 0 || (graph->input_count && !graph->inputs))
        return TLI_RULE(INPUTS_MISSING_OR_NEGATIVE_COUNT);
    if (graph->tensor_count < 0 || !graph->outputs) return TLI_RULE(OUTPUTS_MISSING_OR_NEGATIVE_COUNT);
    if (graph->view_count < 0 || (graph->view_count && !graph->views))
        return TLI_RULE(VIEWS_MISSING_OR_NEGATIVE_COUNT);
    if (!graph->text || !graph->text_bytes || graph->text[graph->text_bytes - 1])
        return TLI_RULE(TEXT_MUST_END_WITH_0);
#if TLI_ATTRIBUTES
    return tli_check_attribute_arrays(graph);
#else
    return TLI_NO_RULE;
#endif
}

static tl_result tli_check_view(const tli_graph_rules *rules, const tl_graph *graph, int32_t view) {
    const tl_view *v = &graph->views[view];
    const char *name = tli_text_at(graph, v->name);
    tli_rule rule = TLI_NO_RULE;
    if (!name || !tli_is_name(name)) rule = TLI_RULE(NAME_MUST_BE_1_TO_255_BYTES_OF_UTF_8);
    else if (v->tensor < 0 || v->tensor >= graph->tensor_count) rule = TLI_RULE(TENSOR_THERE_IS_NO_SUCH_OUTPUT);
    return rule ? tli_fail_item(rules, TL_ERROR_INVALID_ARG, "view", view, name ? name : "?", rule) : TL_OK;
}

TLI_IMPL tl_result tl_check_graph(tl_env *env, const tl_graph *graph) {
    tli_graph_rules rules = tli_rules_of(env, TLI_IN(CHECK_GRAPH));
    tli_rule rule;
    const tl_node *last;
    tl_result result = TL_OK;
    int64_t found = -1;
    int32_t i;
    TL_ASSERT(graph);
    rule = tli_check_arrays(graph);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, rules.function, rule);
    for (i = 0; i < graph->node_count && !result; i++) result = tli_check_node(&rules, graph, i);
    if (result) return result;
    last = &graph->nodes[graph->node_count - 1];
    if (last->first_input + last->input_count != graph->input_count ||
        last->first_output + last->output_count != graph->tensor_count)
        return tli_fail(env, TL_ERROR_INVALID_ARG, rules.function,
                        TLI_RULE(INPUTS_OUTPUTS_EACH_MUST_BELONG));
    for (i = 0; i < graph->view_count && !result; i++) result = tli_check_view(&rules, graph, i);
    if (!result) result = tli_check_together(&rules, graph, &found, &rule);
    if (result || found < 0) return result;
    return tli_fail_item(&rules, TL_ERROR_INVALID_ARG, found < graph->node_count ? "node" : "view",
                         found < graph->node_count ? found : found - graph->node_count,
                         tli_name_of(graph, (uint32_t)found), rule);
}

// Whether a value is finite and not negative. By its bits, because microcontrollers compare doubles in
// software.
static int tli_is_amount(double value) {
    uint64_t bits;
    tli_copy(&bits, &value, sizeof bits);
    return bits < UINT64_C(0x7FF) << 52 || bits == UINT64_C(1) << 63;  // the last one is -0
}

TLI_IMPL tl_result tl_check_device(tl_env *env, const tl_device *device) {
    uint64_t alignment;
    int32_t i;
    TL_ASSERT(device);
    alignment = device->alignment_bytes;
    for (i = 0; i < TL_PRECISION_COUNT; i++)
        if (!tli_is_amount(device->flops_per_second[i]))
            return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(CHECK_DEVICE),
                            TLI_RULE(FLOPS_PER_SECOND_MUST_BE_FINITE));
    if (device->copy_channels < TL_COPIES_IN_TURN || device->copy_channels > 2)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(CHECK_DEVICE), TLI_RULE(COPY_CHANNELS_MUST_BE));
    if (alignment & (alignment - 1 + !alignment))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(CHECK_DEVICE),
                        TLI_RULE(ALIGNMENT_BYTES_MUST_BE_0_OR_POWER));
    if (device->supported >> TL_PRECISION_COUNT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(CHECK_DEVICE),
                        TLI_RULE(SUPPORTED_MUST_NAME_KNOWN_PRECISIONS));
    return TL_OK;
}

// -- numbers inside words --
//
// Words such as "3", "3.1" and "in0,out1".

// Read the digits at *at and move *at behind them; 0 if there are none or the number exceeds 31
// bits.
static int tli_read_index(const char **at, const char *end, int32_t *value) {
    int64_t number = -1;
    while (*at < end && **at >= '0' && **at <= '9') {
        number = (number < 0 ? 0 : number) * 10 + (**at - '0');
        if (number > INT32_MAX) return 0;
        (*at)++;
    }
    *value = number < 0 ? 0 : (int32_t)number;
    return number >= 0;
}

static int tli_read_tensor(const char *text, size_t length, tl_tensor *tensor) {
    const char *end = text + length;
    tensor->output = 0;
    if (!tli_read_index(&text, end, &tensor->node)) return 0;
    if (text == end) return 1;
    return *text++ == '.' && tli_read_index(&text, end, &tensor->output) && text == end;
}

// The index of a tensor made by one of the first node_count nodes; -1 if there is no such tensor.
static int32_t tli_index_tensor(const tl_graph *graph, int32_t node_count, tl_tensor tensor) {
    const tl_node *node;
    if (tensor.node < 0 || tensor.node >= node_count || tensor.output < 0) return -1;
    node = &graph->nodes[tensor.node];
    return tensor.output < node->output_count ? node->first_output + tensor.output : -1;
}

// Set the needed flags that a `needs` text names; 0 if the text is not valid.
static int tli_read_needs(const char *at, tl_graph *graph, const tl_node *node) {
    const char *end = at + tli_text_length(at);
    tl_node_input *inputs = (tl_node_input *)graph->inputs;
    tl_node_output *outputs = (tl_node_output *)graph->outputs;
    int all_inputs = 0, all_outputs = 0;
    int32_t k;
    if (tli_same_text(at, "none")) return 1;
    do {
        int reads_output = *at == 'o';
        ptrdiff_t length = reads_output ? 3 : 2;
        if (end - at < length || TLI_MEMCMP(at, reads_output ? "out" : "in", (size_t)length) != 0) return 0;
        at += length;
        if (at == end || *at == ',') {
            if (reads_output) all_outputs = 1; else all_inputs = 1;
        } else {
            if (!tli_read_index(&at, end, &k)) return 0;
            if (k >= (reads_output ? node->output_count : node->input_count)) return 0;
            if (reads_output) outputs[node->first_output + k].needed = 1;
            else inputs[node->first_input + k].needed = 1;
        }
        if (at < end && *at != ',') return 0;
    } while (at++ < end);
    for (k = 0; k < node->input_count && all_inputs; k++) inputs[node->first_input + k].needed = 1;
    for (k = 0; k < node->output_count && all_outputs; k++) outputs[node->first_output + k].needed = 1;
    return 1;
}

// -- building --

TLI_IMPL void tl_init_graph(tl_graph *graph) {
    TL_ASSERT(graph);
    tli_zero(graph, sizeof *graph);
}

TLI_IMPL void tl_free_graph(tl_env *env, tl_graph *graph) {
    if (!graph) return;
#if TLI_ATTRIBUTES
    tli_free_attributes(env, graph);
#endif
    if (graph->node_capacity) tli_release(env, (tl_node *)graph->nodes);
    if (graph->input_capacity) tli_release(env, (tl_node_input *)graph->inputs);
    if (graph->tensor_capacity) tli_release(env, (tl_node_output *)graph->outputs);
    if (graph->view_capacity) tli_release(env, (tl_view *)graph->views);
    if (graph->text_capacity) tli_release(env, (char *)graph->text);
    tli_zero(graph, sizeof *graph);
}

#ifndef TL_ONLY_TABLES
// Replace an array that has grown by one with room for exactly `count` items. 0 = no memory.
static int tli_fit_array(tl_env *env, const void **items, int32_t count, int32_t *capacity, size_t item_bytes) {
    void *fitted;
    if (!*capacity || *capacity == count || !count) return 1;
    fitted = tli_alloc_array(env, (uint64_t)count, item_bytes);
    if (!fitted) return 0;
    tli_copy(fitted, *items, (size_t)count * item_bytes);
    tli_release(env, (void *)(uintptr_t)*items);
    *items = fitted;
    *capacity = count;
    return 1;
}

// Put the arrays of a graph that is finished, but for its views, into memory of exactly their size.
static tl_result tli_fit_graph(tl_env *env, tli_function function, tl_graph *graph) {
    const void *nodes = graph->nodes, *inputs = graph->inputs, *outputs = graph->outputs, *text = graph->text;
    int32_t text_capacity = (int32_t)graph->text_capacity;
    int ok = tli_fit_array(env, &nodes, graph->node_count, &graph->node_capacity, sizeof *graph->nodes) &&
             tli_fit_array(env, &inputs, graph->input_count, &graph->input_capacity, sizeof *graph->inputs) &&
             tli_fit_array(env, &outputs, graph->tensor_count, &graph->tensor_capacity,
                           sizeof *graph->outputs) &&
             tli_fit_array(env, &text, (int32_t)graph->text_bytes, &text_capacity, 1);
    graph->nodes = (const tl_node *)nodes;
    graph->inputs = (const tl_node_input *)inputs;
    graph->outputs = (const tl_node_output *)outputs;
    graph->text = (const char *)text;
    graph->text_capacity = (uint32_t)text_capacity;
    return ok ? TL_OK : tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
}
#endif

// Make room for one more node (output_count > 0) or view, so that appending it cannot fail halfway.
static tl_result tli_reserve_graph(const tli_graph_rules *rules, tl_graph *graph, int32_t input_count,
                                   int32_t output_count, size_t text_bytes) {
    tl_env *env = rules->env;
    void *nodes = (tl_node *)graph->nodes, *inputs = (tl_node_input *)graph->inputs;
    void *outputs = (tl_node_output *)graph->outputs, *views = (tl_view *)graph->views;
    void *text = (char *)graph->text;
    int32_t text_capacity = (int32_t)graph->text_capacity;
    int64_t input_end = (int64_t)graph->input_count + input_count;
    int64_t tensor_end = (int64_t)graph->tensor_count + output_count;
    int64_t text_end = (int64_t)graph->text_bytes + 1 + (int64_t)text_bytes;
    int fits = graph->node_count < INT32_MAX && graph->view_count < INT32_MAX && input_end <= INT32_MAX &&
               tensor_end <= INT32_MAX && text_end <= INT32_MAX;
    int ok = fits &&
        tli_grow(env, &inputs, &graph->input_capacity, graph->input_count, input_end, sizeof(tl_node_input)) &&
        tli_grow(env, &outputs, &graph->tensor_capacity, graph->tensor_count, tensor_end,
                 sizeof(tl_node_output)) &&
        tli_grow(env, &text, &text_capacity, (int32_t)graph->text_bytes, text_end, 1) &&
        (output_count ? tli_grow(env, &nodes, &graph->node_capacity, graph->node_count,
                                 (int64_t)graph->node_count + 1, sizeof(tl_node))
                      : tli_grow(env, &views, &graph->view_capacity, graph->view_count,
                                 (int64_t)graph->view_count + 1, sizeof(tl_view)));
    graph->nodes = (tl_node *)nodes;
    graph->inputs = (tl_node_input *)inputs;
    graph->outputs = (tl_node_output *)outputs;
    graph->views = (tl_view *)views;
    graph->text = (char *)text;
    graph->text_capacity = (uint32_t)text_capacity;
    if (!fits)
        return tli_fail(env, TL_ERROR_OVERFLOW, rules->function, TLI_RULE(GRAPH_COUNTS_MUST_STAY_BELOW_2_31));
    if (!ok) return tli_fail(env, TL_ERROR_NO_MEMORY, rules->function, TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
    if (!graph->text_bytes) *((char *)graph->text + graph->text_bytes++) = 0;
    return TL_OK;
}

static tli_rule tli_check_desc(const tl_node_desc *desc, const char *name, const char *op,
                                  const char *unit) {
    if (!tli_is_name(name)) return TLI_RULE(NAME_MUST_BE_1_TO_255_BYTES_OF_UTF_8);
    if (!tli_is_name(op)) return TLI_RULE(OP_MUST_BE_1_TO_255_BYTES_OF_UTF_8);
    if (*unit && !tli_is_name(unit)) return TLI_RULE(UNIT_MUST_BE_1_TO_255_BYTES_OF_UTF_8);
    if (desc->input_count < 0 || (desc->input_count && !desc->inputs))
        return TLI_RULE(INPUTS_MISSING_OR_NEGATIVE_COUNT);
    if (desc->output_count < 1 || !desc->output_bytes) return TLI_RULE(OUTPUTS_THERE_MUST_BE_AT_LEAST_ONE);
    if (desc->inplace < 0 || desc->inplace > desc->input_count) return TLI_RULE(INPLACE_THERE_IS_NO_SUCH_INPUT);
    if (desc->layer < 0) return TLI_RULE(LAYER_MUST_NOT_BE_NEGATIVE);
    if ((desc->no_grad | desc->keep | desc->fixed | desc->takes_blocks | desc->dynamic | desc->once |
         desc->dies) & ~1)
        return TLI_RULE(NO_GRAD_KEEP_FIXED_MUST_BE_0_OR_1);
    if (desc->origin < -1) return TLI_RULE(ORIGIN_MUST_BE_NODE_OR_NONE);
    if (desc->dies && (desc->keep || !tli_same_text(op, "input")))
        return TLI_RULE(DIES_IS_OF_INPUTS_THAT_ARE_NO_RESULTS);
    if (!tli_is_below((int32_t)desc->state, TL_STATE_COUNT)) return TLI_RULE(STATE_KIND_THERE_IS_NO_SUCH);
#if TLI_ATTRIBUTES
    return tli_check_desc_attributes(desc);
#else
    return TLI_NO_RULE;
#endif
}

#if TLI_ATTRIBUTES
// tli_reserve_graph for a node, and room for its attributes.
static tl_result tli_reserve_node(const tli_graph_rules *rules, tl_graph *graph, const tl_node_desc *desc,
                                  size_t text_bytes) {
    tl_attributes *copy;
    int ok = tli_reserve_attributes(rules->env, graph, desc, &copy);
    tl_result result;
    if (!ok)
        result = tli_fail(rules->env, TL_ERROR_NO_MEMORY, rules->function,
                          TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
    else
        result = tli_reserve_graph(rules, graph, desc->input_count, desc->output_count, text_bytes);
    if (copy && graph->tensor_capacity) graph->attributes = copy;    // with the outputs, even where that failed
    else tli_release_attributes(rules->env, copy);
    return result;
}
#endif

#ifndef TL_NO_PLANNERS
// The origin of a node (-1 = none) as tl_node_desc.origin has it, for a node that is made from this one.
static int32_t tli_pass_origin(int32_t origin) { return origin < 0 ? -1 : origin + 1; }

// Describe a node for a graph that is made from this one. Its inputs and the bytes of its outputs are the
// caller's to set; what its backward needs is copied by tli_copy_needs.
static void tli_describe_node(const tl_graph *graph, int32_t id, tl_node_desc *desc) {
    const tl_node *node = &graph->nodes[id];
    tli_zero(desc, sizeof *desc);
    desc->name = tl_name_node(graph, id);
    desc->op = tl_name_op(graph, id);
    desc->unit = node->unit ? tl_name_unit(graph, id) : NULL;
    desc->input_count = node->input_count;
    desc->output_count = node->output_count;
    desc->fwd_cost = node->fwd_cost;
    desc->bwd_cost = node->bwd_cost;
    desc->saved_bytes = node->saved_bytes;
    desc->fwork_bytes = node->fwork_bytes;
    desc->bwork_bytes = node->bwork_bytes;
    desc->swork_bytes = node->swork_bytes ? node->swork_bytes : TL_SCRATCH_NONE;
    desc->param_bytes = node->param_bytes;
    desc->layer = node->layer + 1;
    desc->inplace = node->inplace + 1;
    desc->no_grad = !node->is_input && !node->has_grad;
    desc->keep = node->keep;
    desc->fixed = node->fixed;
    desc->takes_blocks = node->takes_blocks;
    desc->dynamic = node->dynamic;
    desc->once = node->once;
    desc->dies = tli_dies(node);
    desc->state = (tl_state)node->state;
    desc->weight_rows = node->weight_rows;
    desc->piece_rows = node->piece_rows;
    desc->origin = tli_pass_origin(node->origin);
    tli_describe_attributes(graph, id, desc);
}

// Mark what the backward of the last node of `to` needs: the same as that of node `id` of `from`, of which it
// was made; and the formats of its outputs.
static void tli_copy_needs(const tl_graph *from, int32_t id, tl_graph *to) {
    const tl_node *node = &from->nodes[id], *made = &to->nodes[to->node_count - 1];
    tl_node_input *inputs = (tl_node_input *)to->inputs;
    tl_node_output *outputs = (tl_node_output *)to->outputs;
    int32_t k;
    for (k = 0; k < node->input_count; k++)
        inputs[made->first_input + k].needed = from->inputs[node->first_input + k].needed;
    for (k = 0; k < node->output_count; k++) {
        outputs[made->first_output + k].needed = from->outputs[node->first_output + k].needed;
        outputs[made->first_output + k].format = from->outputs[node->first_output + k].format;
    }
}
#endif

// Append a node with the fields and outputs of a desc; its inputs are added by tli_add_inputs.
static void tli_append_node(tl_graph *graph, const tl_node_desc *desc, const char *name, const char *op) {
    int32_t id = graph->node_count++, k;
    tl_node *node = (tl_node *)graph->nodes + id;
    tli_zero(node, sizeof *node);
    node->name = tli_append_text(graph, name);
    node->op = tli_append_text(graph, op);
    node->unit = tli_append_text(graph, desc->unit ? desc->unit : "");
    node->first_input = graph->input_count;
    node->input_count = desc->input_count;
    node->first_output = graph->tensor_count;
    node->output_count = desc->output_count;
    node->inplace = desc->inplace - 1;
    node->layer = desc->layer - 1;
    node->state = (uint8_t)desc->state;
    node->is_input = (uint8_t)((desc->state || tli_same_text(op, "input")) + desc->dies);   // TLI_INPUT_DIES
    node->has_grad = (uint8_t)(node->is_input ? tli_has_update(node) : !desc->no_grad);
    node->keep = (uint8_t)desc->keep;
    node->fixed = (uint8_t)desc->fixed;
    node->takes_blocks = (uint8_t)desc->takes_blocks;
    node->dynamic = (uint8_t)desc->dynamic;
    node->once = (uint8_t)desc->once;
    node->origin = desc->origin > 0 ? desc->origin - 1 : desc->origin < 0 ? -1 : id;
    node->fwd_cost = desc->fwd_cost;
    node->bwd_cost = desc->bwd_cost;
    node->saved_bytes = desc->saved_bytes;
    node->fwork_bytes = desc->fwork_bytes;
    node->bwork_bytes = desc->bwork_bytes;
    node->swork_bytes = !desc->swork_bytes ? desc->fwork_bytes
                        : desc->swork_bytes == TL_SCRATCH_NONE ? 0 : desc->swork_bytes;
    node->param_bytes = desc->param_bytes;
    node->weight_rows = desc->weight_rows;
    node->piece_rows = desc->piece_rows;
    for (k = 0; k < desc->output_count; k++) {
        tl_node_output *output = (tl_node_output *)graph->outputs + graph->tensor_count++;
        output->node = id;
        output->output = k;
        output->bytes = desc->output_bytes[k];
        output->needed = (uint8_t)tli_has_update(node);
#if TLI_ATTRIBUTES
        output->format = desc->formats ? desc->formats[k] : 0;
#else
        output->format = 0;
#endif
    }
#if TLI_ATTRIBUTES
    if (graph->attributes) tli_append_attributes(graph, desc);
#endif
}

static tl_result tli_add_inputs(const tli_graph_rules *rules, tl_graph *graph, const tl_node_desc *desc) {
    int32_t id = graph->node_count - 1, k;
    const tl_node *node = &graph->nodes[id];
    for (k = 0; k < desc->input_count; k++) {
        tl_node_input *input = (tl_node_input *)graph->inputs + graph->input_count++;
        input->tensor = tli_index_tensor(graph, id, desc->inputs[k]);
        input->needed = 0;
        if (input->tensor < 0) {
            tli_sentence s = tli_begin_item(rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(graph, id),
                                            TLI_RULE(INPUTS_IS_NOT_MADE_BY_NODE_ABOVE_IT));
            tli_put_rule(&s);
            tli_put_i64(&s.text, desc->inputs[k].node);
            tli_put(&s.text, ".");
            tli_put_i64(&s.text, desc->inputs[k].output);
            return tli_end_error(rules->env, &s, TL_ERROR_INVALID_ARG);
        }
    }
    if (!tli_read_needs(desc->needs ? desc->needs : "none", graph, node))
        return tli_fail_item(rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(graph, id),
                             TLI_RULE(NEEDS_MUST_BE_NONE_OR_LIST));
    return TL_OK;
}

// tl_add_node, with rules that carry the sums over all nodes so far and the line of the text being
// read.
static tl_result tli_add_node(tli_graph_rules *rules, tl_graph *graph, const tl_node_desc *desc) {
    char number[16];
    tli_writer w = tli_writer_of(number, sizeof number);
    const char *name = desc->name ? desc->name : number, *op = desc->op ? desc->op : "op";
    const char *unit = desc->unit ? desc->unit : "";
    size_t text_bytes;
    tli_rule rule;
    tl_graph before;
    tl_result result = TL_ERROR_INVALID_ARG;
    tli_put(&w, "n"); tli_put_i64(&w, graph->node_count);
    tli_finish(&w);
    rule = tli_check_desc(desc, name, op, unit);
#if !TLI_ATTRIBUTES
    if (desc->rows || desc->stored_count || desc->formats) {
        result = TL_ERROR_UNSUPPORTED;
        rule = TLI_RULE(ATTRIBUTES_WERE_LEFT_OUT);
    }
#endif
    if (rule) return tli_fail_item(rules, result, "node", graph->node_count, name, rule);
    text_bytes = tli_text_length(name) + tli_text_length(op) + tli_text_length(unit) + 3;
#if TLI_ATTRIBUTES
    result = tli_reserve_node(rules, graph, desc, text_bytes);
#else
    result = tli_reserve_graph(rules, graph, desc->input_count, desc->output_count, text_bytes);
#endif
    if (result) return result;
    before = *graph;
    tli_append_node(graph, desc, name, op);
    result = tli_add_inputs(rules, graph, desc);
    if (!result) result = tli_check_node(rules, graph, before.node_count);
    if (result) *graph = before;
#if TLI_ATTRIBUTES
    if (result) tli_cut_attributes(graph);
#endif
    return result;
}

TLI_IMPL tl_result tl_add_node(tl_env *env, tl_graph *graph, const tl_node_desc *desc, int32_t *id) {
    tli_graph_rules rules = tli_rules_of(env, TLI_IN(ADD_NODE));
    tl_result result;
    TL_ASSERT(graph && desc);
    result = tli_add_node(&rules, graph, desc);
    if (id) *id = result ? 0 : graph->node_count - 1;
    return result;
}

TLI_IMPL tl_result tl_add_view(tl_env *env, tl_graph *graph, const char *name, tl_tensor of,
                               tl_tensor *storage) {
    tli_graph_rules rules = tli_rules_of(env, TLI_IN(ADD_VIEW));
    int32_t tensor;
    tl_result result;
    tl_view *view;
    TL_ASSERT(graph && name);
    if (storage) tli_zero(storage, sizeof *storage);
    tensor = tli_index_tensor(graph, graph->node_count, of);
    if (!tli_is_name(name))
        return tli_fail_item(&rules, TL_ERROR_INVALID_ARG, "view", graph->view_count, name,
                             TLI_RULE(NAME_MUST_BE_1_TO_255_BYTES_OF_UTF_8));
    if (tensor < 0)
        return tli_fail_item(&rules, TL_ERROR_INVALID_ARG, "view", graph->view_count, name,
                             TLI_RULE(OF_THERE_IS_NO_SUCH_TENSOR));
    result = tli_reserve_graph(&rules, graph, 0, 0, tli_text_length(name) + 1);
    if (result) return result;
    view = (tl_view *)graph->views + graph->view_count++;
    view->name = tli_append_text(graph, name);
    view->tensor = tensor;
    if (storage) *storage = of;
    return TL_OK;
}

// Add layer i of a chain, or the graph input for i = -1.
static tl_result tli_add_layer(tli_graph_rules *rules, tl_graph *graph, const tl_chain_desc *desc, int32_t i) {
    tl_node_desc node;
    tl_tensor input;
    uint64_t bytes = 1;
    tli_zero(&node, sizeof node);
    node.output_bytes = &bytes;
    node.output_count = 1;
    if (i < 0) {
        node.name = "x"; node.op = "input";
        bytes = desc->input_bytes;
        return tli_add_node(rules, graph, &node);
    }
    input.node = i; input.output = 0;
    node.op = "layer";
    node.inputs = &input; node.input_count = 1;
    node.needs = desc->needs ? desc->needs : "in";
    node.layer = i + 1;
    if (desc->output_bytes) bytes = desc->output_bytes[i];
    node.fwd_cost = desc->fwd_costs ? desc->fwd_costs[i] : 1;
    node.bwd_cost = desc->bwd_costs ? desc->bwd_costs[i] : 1;
    node.saved_bytes = desc->saved_bytes ? desc->saved_bytes[i] : 0;
    node.fwork_bytes = desc->fwork_bytes ? desc->fwork_bytes[i] : 0;
    node.bwork_bytes = desc->bwork_bytes ? desc->bwork_bytes[i] : 0;
    node.param_bytes = desc->param_bytes ? desc->param_bytes[i] : 0;
    return tli_add_node(rules, graph, &node);
}

TLI_IMPL tl_result tl_add_chain(tl_env *env, tl_graph *graph, const tl_chain_desc *desc) {
    tli_graph_rules rules = tli_rules_of(env, TLI_IN(ADD_CHAIN));
    tl_result result = TL_OK;
    int32_t i;
    TL_ASSERT(graph && desc);
    tl_init_graph(graph);
    if (desc->layer_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, rules.function, TLI_RULE(LAYER_COUNT_MUST_BE_POSITIVE));
    for (i = -1; i < desc->layer_count && !result; i++) result = tli_add_layer(&rules, graph, desc, i);
    if (result) tl_free_graph(env, graph);
    return result;
}

// -- lookup by name --

// Find a node or view by name. A node gives its id, a view node_count + its index, neither -1.
static int64_t tli_find_name(const tl_graph *graph, const char *name, size_t length) {
    int64_t i, count = (int64_t)graph->node_count + graph->view_count;
    for (i = 0; i < count; i++) {
        const char *text = tli_name_of(graph, (uint32_t)i);
        size_t k = 0;
        while (k < length && text[k] == name[k]) k++;
        if (k == length && !text[k]) return i;
    }
    return -1;
}

TLI_IMPL tl_result tl_find_tensor(tl_env *env, const tl_graph *graph, const char *name, tl_tensor *tensor) {
    size_t length, dot;
    int64_t found;
    tli_sentence s;
    TL_ASSERT(graph && name && tensor);
    length = dot = tli_text_length(name);
    tli_zero(tensor, sizeof *tensor);
    found = tli_find_name(graph, name, length);
    if (found >= graph->node_count) {
        const tl_node_output *output = &graph->outputs[graph->views[found - graph->node_count].tensor];
        tensor->node = output->node; tensor->output = output->output;
        return TL_OK;
    }
    if (found >= 0) { tensor->node = (int32_t)found; return TL_OK; }
    while (dot > 0 && name[dot - 1] != '.') dot--;
    if (dot > 1) {
        const char *digits = name + dot;
        found = tli_find_name(graph, name, dot - 1);
        if (found >= 0 && found < graph->node_count &&
            tli_read_index(&digits, name + length, &tensor->output) &&
            digits == name + length && tensor->output < graph->nodes[found].output_count) {
            tensor->node = (int32_t)found;
            return TL_OK;
        }
    }
    if (tli_read_tensor(name, length, tensor) && tli_index_tensor(graph, graph->node_count, *tensor) >= 0)
        return TL_OK;
    tli_zero(tensor, sizeof *tensor);
    s = tli_begin_error(env, TL_ERROR_NOT_FOUND, TLI_IN(FIND_TENSOR), TLI_RULE(NAME_NO_TENSOR_IS_CALLED), 0, 0);
    tli_put_rule(&s);
    tli_put_clipped(&s.text, name, length);
    return tli_end_error(env, &s, TL_ERROR_NOT_FOUND);
}

// -- base bytes --

// sum x ratio, rounded up; the fraction of the ratio is rounded up to a multiple of 2^-32. 0 on
// overflow.
static int tli_scale_up(uint64_t sum, double ratio, uint64_t *scaled) {
    uint64_t whole, step, high, low, part;
    double fraction;
    if (ratio >= 18446744073709551616.0) { *scaled = 0; return !sum; }
    whole = (uint64_t)ratio;
    fraction = (ratio - (double)whole) * 4294967296.0;
    step = (uint64_t)fraction;
    step += (double)step < fraction;
    high = (sum >> 32) * step;
    low = (sum & UINT32_MAX) * step;
    part = high + (low >> 32) + ((low & UINT32_MAX) > 0);
    return tli_mul_u64(sum, whole, scaled) && tli_add_u64(*scaled, part, scaled);
}

// What so many bytes of weights take with their gradients and the state of the optimizer. 0 on overflow.
static int tli_find_base_of(uint64_t weights, double gradient_ratio, double optimizer_ratio, uint64_t *base) {
    uint64_t state = 0;
    return tli_scale_up(weights, gradient_ratio, &state) && tli_add_u64(weights, state, base) &&
           tli_scale_up(weights, optimizer_ratio, &state) && tli_add_u64(*base, state, base);
}

TLI_IMPL tl_result tl_find_base_bytes(tl_env *env, const tl_graph *graph, double gradient_ratio,
                                      double optimizer_ratio, uint64_t *base_bytes) {
    uint64_t sum = 0;
    int32_t i;
    int fits = 1;
    TL_ASSERT(graph && base_bytes);
    *base_bytes = 0;
    if (!tli_is_amount(gradient_ratio) || !tli_is_amount(optimizer_ratio))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(FIND_BASE_BYTES),
                        TLI_RULE(GRADIENT_RATIO_OPTIMIZER_RATIO));
    for (i = 0; i < graph->node_count && fits; i++) fits = tli_add_u64(sum, graph->nodes[i].param_bytes, &sum);
    if (fits && tli_find_base_of(sum, gradient_ratio, optimizer_ratio, base_bytes)) return TL_OK;
    *base_bytes = 0;
    return tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(FIND_BASE_BYTES), TLI_RULE(PARAM_SUM_MUST_FIT_64_BITS));
}

#ifndef TL_NO_TEXT
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
    if (node->once) tli_put(w, " once");
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
    TLI_TLG_KEEP, TLI_TLG_ONCE, TLI_TLG_DYNAMIC, TLI_TLG_TAKES_BLOCKS, TLI_TLG_FIXED, TLI_TLG_FROZEN,
    TLI_TLG_STAT, TLI_TLG_HOLD, TLI_TLG_DIES, TLI_TLG_ORDERED, TLI_TLG_STREAM, TLI_TLG_COUNT
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
    { "stored", TLI_OF_NODE | TLI_OF_TLG_2 }, { "wfmt", TLI_OF_STATE | TLI_OF_TLG_2 },
    { "mfmt", TLI_OF_STATE | TLI_OF_TLG_2 },
    { "keep", TLI_OF_NODE }, { "once", TLI_OF_NODE }, { "dynamic", TLI_OF_NODE },
    { "takes_blocks", TLI_OF_NODE }, { "fixed", TLI_OF_NODE }, { "frozen", TLI_OF_STATE },
    { "stat", TLI_OF_STATE }, { "hold", TLI_OF_STATE }, { "dies", TLI_OF_NODE },
    { "ordered", TLI_OF_NODE | TLI_OF_TLG_2 }, { "stream", TLI_OF_NODE | TLI_OF_TLG_2 }
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

// "rows=64@0 rin=1:1,whole row_unit=8 ordered stream"
static tl_result tli_read_rows(tli_tlg *t, tl_node_desc *desc) {
    tli_word rows = t->values[TLI_TLG_ROWS], rin = t->values[TLI_TLG_RIN], unit = t->values[TLI_TLG_ROW_UNIT];
    void *relations = t->relations;
    int32_t k;
    int found, ok;
    desc->ordered = t->values[TLI_TLG_ORDERED].text != NULL;
    desc->stream = t->values[TLI_TLG_STREAM].text != NULL;
    if (!rows.text) {
        k = rin.text ? TLI_TLG_RIN : unit.text ? TLI_TLG_ROW_UNIT : desc->ordered ? TLI_TLG_ORDERED
                                                                                  : TLI_TLG_STREAM;
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

// -- graph: other precisions --

#ifndef TL_ONLY_TABLES
// The widest of the precisions that kernels compute: what full means.
static tl_precision tli_find_widest(uint32_t can) {
    static const tl_precision widest[] = { TL_PRECISION_DOUBLE, TL_PRECISION_SINGLE, TL_PRECISION_BF16,
                                           TL_PRECISION_HALF };
    size_t i;
    for (i = 0; i < sizeof widest / sizeof widest[0]; i++)
        if (can & (1u << widest[i])) return widest[i];
    return TL_PRECISION_SINGLE;
}

// The bytes in a precision of what takes `bytes` in f32, rounded up; UINT64_MAX if they do not fit 64 bits.
static uint64_t tli_scale_bytes(uint64_t bytes, tl_precision precision) {
    switch (precision) {
    case TL_PRECISION_DOUBLE: return bytes <= UINT64_MAX / 2 ? 2 * bytes : UINT64_MAX;
    case TL_PRECISION_HALF:
    case TL_PRECISION_BF16: return bytes / 2 + bytes % 2;
    case TL_PRECISION_FULL:  // callers that know the kernels have put tli_find_widest in its place
    case TL_PRECISION_SINGLE:
    case TL_PRECISION_MIXED:
    case TL_PRECISION_COUNT: break;
    }
    return bytes;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION

