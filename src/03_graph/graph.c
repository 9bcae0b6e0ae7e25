#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- graph --
//
// Rules, building and lookup of graphs. Every node is added through tli_add_node, whether it comes from a
// caller, a text or a layer, so there is one set of rules.

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

// Whether the backward of a node makes its outputs.
static int tli_is_late(const tl_node *node) { return node->once == TL_ONCE_LATE; }

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

// Whether a node clips: one of op "clip" that reads weights which are trained, and nothing else, and whose
// outputs nobody reads.
static int tli_clips(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t i, end = node->first_output + node->output_count;
    if (!node->has_grad || node->state || !node->input_count) return 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (!tli_has_update(&graph->nodes[graph->outputs[graph->inputs[i].tensor].node])) return 0;
    if (!tli_same_text(tl_name_op(graph, id), "clip")) return 0;
    for (i = node->first_input + node->input_count; i < graph->input_count; i++)
        if (graph->inputs[i].tensor >= node->first_output && graph->inputs[i].tensor < end) return 0;
    return 1;
}

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
    if (graph->nodes[from->node].state) return TLI_RULE(INPLACE_STATE_MUST_NOT);
    if (graph->nodes[from->node].is_input) return TLI_RULE(INPLACE_GRAPH_INPUT_MUST_NOT);
    if (from->bytes != graph->outputs[node->first_output].bytes)
        return TLI_RULE(INPLACE_INPUT_MUST_HAVE_BYTES);
    return TLI_NO_RULE;
}

static tli_rule tli_check_attributes(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    if (node->is_input > TLI_INPUT_DIES || node->has_grad > 1 || node->keep > 1 || node->fixed > 1 ||
        node->takes_blocks > 1 || node->dynamic > 1 || node->once > TL_ONCE_LATE)
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
    if (rows < 0) return TLI_RULE(WROWS_MUST_NOT_BE_NEGATIVE);
    if (rows && !node->state && !node->param_bytes)
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

// The rules of outputs that a backward makes: it needs them all, so they are there, and no node reads them.
static tli_rule tli_check_late_node(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->input_count; k++)
        if (tli_is_late(&graph->nodes[graph->outputs[graph->inputs[node->first_input + k].tensor].node]))
            return TLI_RULE(LATE_IS_READ_BY_NO_NODE);
    if (!tli_is_late(node)) return TLI_NO_RULE;
    if (!node->has_grad || node->saved_bytes) return TLI_RULE(LATE_IS_MADE_BY_A_BACKWARD);
    for (k = node->first_output; k < node->first_output + node->output_count; k++)
        if (!graph->outputs[k].needed) return TLI_RULE(LATE_IS_MADE_BY_A_BACKWARD);
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
    if (!rule) rule = tli_check_late_node(graph, id);
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
    if ((desc->no_grad | desc->keep | desc->fixed | desc->takes_blocks | desc->dynamic | desc->dies) & ~1 ||
        !tli_is_below(desc->once, TL_ONCE_LATE + 1))
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

