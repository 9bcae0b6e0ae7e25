#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- states: weights that the graph owns --
//
// A state is added as a node. Three changes of whole graphs: one whose states hold their gradients, for
// passes that are repeated, one whose large gradients are made in pieces, and one whose weights became states,
// or whose updates stand elsewhere:
//
//     x  dense(param=400)  ..     -->   x  [w adamw]  dense  ..        fused: above the first reader
//                                 -->   [w adamw]  x  dense  ..        end: above all other nodes

// The node that a state is. bytes, formats: [2 + moments] room for those of its outputs.
static tl_node_desc tli_describe_state(const tl_state_desc *desc, uint64_t *bytes, uint8_t *formats) {
    tl_node_desc node;
    tli_zero(&node, sizeof node);
    bytes[0] = desc->bytes;
    tli_copy(bytes + 1, desc->moment_bytes, (size_t)desc->moment_count * sizeof *bytes);
    node.name = desc->name;
    node.op = desc->op ? desc->op : "state";
    node.unit = desc->unit;
    node.layer = desc->layer;
    node.output_bytes = bytes;
    node.output_count = 1 + desc->moment_count;
    if (desc->kind == TL_STATE_HELD) bytes[node.output_count++] = desc->bytes;
    node.state = desc->kind ? desc->kind : TL_STATE_TRAINED;
    if (desc->weight_format || desc->moment_formats) node.formats = formats;
#if TLI_ATTRIBUTES
    formats[0] = (uint8_t)desc->weight_format;
    if (desc->moment_formats) tli_copy(formats + 1, desc->moment_formats, (size_t)desc->moment_count);
#endif
    node.bwd_cost = desc->update_cost;
    node.bwork_bytes = desc->update_work_bytes;
    node.weight_rows = desc->weight_rows;
    node.piece_rows = desc->piece_rows;
    node.fixed = 1;
    return node;
}

static tl_result tli_add_state(tli_graph_rules *rules, tl_graph *graph, const tl_state_desc *desc) {
    uint64_t *bytes = NULL;
    tl_node_desc node;
    tl_result result;
    if (desc->moment_count < 0 || desc->moment_count > INT32_MAX - 2 ||
        (desc->moment_count && !desc->moment_bytes))
        return tli_fail_item(rules, TL_ERROR_INVALID_ARG, "state", graph->node_count,
                             desc->name ? desc->name : "?", TLI_RULE(MOMENTS_MISSING_OR_NEGATIVE_COUNT));
#if TLI_ATTRIBUTES
    if (!tli_is_below((int64_t)desc->weight_format, TL_TENSOR_FORMAT_COUNT))
        return tli_fail_item(rules, TL_ERROR_INVALID_ARG, "state", graph->node_count,
                             desc->name ? desc->name : "?", TLI_RULE(FORMAT_THERE_IS_NO_SUCH));
#endif
    bytes = (uint64_t *)tli_alloc_array(rules->env, 2 + (uint64_t)desc->moment_count, sizeof *bytes + 1);
    if (!bytes)
        return tli_fail(rules->env, TL_ERROR_NO_MEMORY, rules->function, TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
    node = tli_describe_state(desc, bytes, (uint8_t *)(bytes + 2 + desc->moment_count));
    result = tli_add_node(rules, graph, &node);
    tli_release(rules->env, bytes);
    return result;
}

TLI_IMPL tl_result tl_add_state(tl_env *env, tl_graph *graph, const tl_state_desc *desc, tl_tensor *weight) {
    tli_graph_rules rules = tli_rules_of(env, TLI_IN(ADD_STATE));
    tl_result result;
    TL_ASSERT(graph && desc);
    if (weight) tli_zero(weight, sizeof *weight);
    result = tli_add_state(&rules, graph, desc);
    if (weight && !result) weight->node = graph->node_count - 1;
    return result;
}

#ifndef TL_NO_PLANNERS
// -- states: gradients that are held --

// Renumber a tensor of `from` for a graph whose nodes have other first outputs.
static int32_t tli_renumber_tensor(const tl_graph *from, const tl_node *nodes, int32_t tensor) {
    return nodes[from->outputs[tensor].node].first_output + from->outputs[tensor].output;
}

// Fill the arrays of a graph in which every trained state holds its gradient.
static void tli_fill_held(const tl_graph *from, tl_node *nodes, tl_node_input *inputs, tl_node_output *outputs,
                          tl_view *views) {
    int32_t id, i, count = 0;
    for (id = 0; id < from->node_count; id++) {
        tl_node *node = &nodes[id];
        *node = from->nodes[id];
        node->first_output = count;
        for (i = 0; i < node->output_count; i++)
            outputs[count++] = from->outputs[from->nodes[id].first_output + i];
        if (node->state != TL_STATE_TRAINED) continue;
        outputs[count] = outputs[node->first_output];
        outputs[count].format = TL_TENSOR_FORMAT_NONE;
        outputs[count++].output = node->output_count++;
        node->state = TL_STATE_HELD;
    }
    for (i = 0; i < from->input_count; i++) {
        inputs[i] = from->inputs[i];
        inputs[i].tensor = tli_renumber_tensor(from, nodes, from->inputs[i].tensor);
    }
    for (i = 0; i < from->view_count; i++) {
        views[i] = from->views[i];
        views[i].tensor = tli_renumber_tensor(from, nodes, from->views[i].tensor);
    }
}

// Put arrays in the place of those of a graph.
static void tli_replace_arrays(tl_env *env, tl_graph *graph, tl_node *nodes, tl_node_input *inputs,
                               tl_node_output *outputs, int32_t tensor_count, tl_view *views) {
    tl_graph old = *graph;
    old.text_capacity = 0;      // the text stays,
    old.attributes = NULL;      // and so do the attributes
    graph->nodes = nodes;     graph->node_capacity = graph->node_count;
    graph->inputs = inputs;   graph->input_capacity = graph->input_count;
    graph->outputs = outputs; graph->tensor_count = graph->tensor_capacity = tensor_count;
    graph->views = views;     graph->view_capacity = graph->view_count;
    tl_free_graph(env, &old);
    if (!graph->input_count) { tli_release(env, inputs); graph->inputs = NULL; }
    if (!graph->view_count) { tli_release(env, views); graph->views = NULL; }
}

static tl_result tli_refuse_held_pieces(tl_env *env, const tl_graph *graph, int32_t id) {
    tli_sentence s = tli_begin_error(env, TL_ERROR_UNSUPPORTED, TLI_IN(HOLD_GRADIENTS),
                                     TLI_RULE(PIECES_HOLD_NO_GRADIENT), (uint64_t)id, 0);
    tli_put_text(&s, tl_name_node(graph, id));
    return tli_end_error(env, &s, TL_ERROR_UNSUPPORTED);
}

TLI_IMPL tl_result tl_hold_gradients(tl_env *env, tl_graph *graph) {
    int32_t id, more = 0;
    tl_node *nodes;
    tl_node_input *inputs;
    tl_node_output *outputs;
    tl_view *views;
    tl_attributes *attributes;
    tl_result result;
    TL_ASSERT(graph);
    attributes = (tl_attributes *)graph->attributes;
    result = tl_check_graph(env, graph);
    for (id = 0; id < graph->node_count && !result; id++) {
        more += graph->nodes[id].state == TL_STATE_TRAINED;
        if (tli_is_in_pieces(&graph->nodes[id])) result = tli_refuse_held_pieces(env, graph, id);
    }
    if (result) return result;
    if (more > INT32_MAX - graph->tensor_count)
        return tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(HOLD_GRADIENTS),
                        TLI_RULE(GRAPH_COUNTS_MUST_STAY_BELOW_2_31));
    nodes = (tl_node *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *nodes);
    inputs = (tl_node_input *)tli_alloc_array(env, (uint64_t)graph->input_count + 1, sizeof *inputs);
    outputs = (tl_node_output *)tli_alloc_array(env, (uint64_t)graph->tensor_count + (uint64_t)more,
                                                sizeof *outputs);
    views = (tl_view *)tli_alloc_array(env, (uint64_t)graph->view_count + 1, sizeof *views);
    if (graph->attributes && !graph->tensor_capacity)   // they belong to the graph where its outputs do
        attributes = tli_copy_attributes(env, graph->attributes);
    if (nodes && inputs && outputs && views && !attributes == !graph->attributes) {
        tli_fill_held(graph, nodes, inputs, outputs, views);
        tli_replace_arrays(env, graph, nodes, inputs, outputs, graph->tensor_count + more, views);
        graph->attributes = attributes;
        return TL_OK;
    }
    if (!graph->tensor_capacity) tli_release_attributes(env, attributes);
    tli_release(env, nodes);
    tli_release(env, inputs);
    tli_release(env, outputs);
    tli_release(env, views);
    return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(HOLD_GRADIENTS), TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
}

// -- states: gradients in pieces --

// A copy of an array of which the graph has `count` entries; NULL = no memory. Release with tli_release.
static void *tli_copy_array(tl_env *env, const void *from, int32_t count, size_t size) {
    void *to = tli_alloc_array(env, (uint64_t)count + 1, size);
    if (to && count) tli_copy(to, from, (size_t)count * size);
    return to;
}

// Copy a graph; 0 = no memory, and *to is empty.
static int tli_copy_graph(tl_env *env, const tl_graph *from, tl_graph *to) {
    *to = *from;
    to->nodes = (const tl_node *)tli_copy_array(env, from->nodes, from->node_count, sizeof *from->nodes);
    to->inputs = (const tl_node_input *)tli_copy_array(env, from->inputs, from->input_count,
                                                       sizeof *from->inputs);
    to->outputs = (const tl_node_output *)tli_copy_array(env, from->outputs, from->tensor_count,
                                                         sizeof *from->outputs);
    to->views = (const tl_view *)tli_copy_array(env, from->views, from->view_count, sizeof *from->views);
    to->text = (const char *)tli_copy_array(env, from->text, (int32_t)from->text_bytes, 1);
    to->attributes = from->attributes ? tli_copy_attributes(env, from->attributes) : NULL;
    to->node_capacity = from->node_count + 1;
    to->input_capacity = from->input_count + 1;
    to->tensor_capacity = from->tensor_count + 1;
    to->view_capacity = from->view_count + 1;
    to->text_capacity = from->text_bytes + 1;
    if (to->nodes && to->inputs && to->outputs && to->views && to->text && !to->attributes == !from->attributes)
        return 1;
    tl_free_graph(env, to);
    return 0;
}

// The rows of a piece of a state: as many as piece_bytes hold, in units that keep every piece aligned. 0 = the
// state stays whole.
static int32_t tli_find_piece_rows(const tl_pieces_desc *desc, const tl_graph *graph, const tl_node *state) {
    uint64_t rows = (uint64_t)state->weight_rows, bytes = graph->outputs[state->first_output].bytes;
    uint64_t unit = 1, alignment = desc->alignment_bytes, count;
    int32_t k;
    if (state->state != TL_STATE_TRAINED || rows < 2 || bytes < rows || bytes <= desc->piece_bytes) return 0;
    for (k = state->first_output; k < state->first_output + state->output_count; k++)
        while (alignment > 1 && unit < rows && graph->outputs[k].bytes / rows * unit % alignment) unit *= 2;
    count = desc->piece_bytes / (bytes / rows) / unit * unit;
    if (count < unit) count = unit;
    return count < rows ? (int32_t)count : 0;
}

// The only reader of a state's weight, if it can train the state in pieces; -1 = none.
static int32_t tli_find_piece_reader(const tl_graph *graph, int32_t state) {
    int32_t id, i, found = -1;
    for (id = state + 1; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            if (graph->inputs[i].tensor != graph->nodes[state].first_output) continue;
            if (found >= 0 || !node->has_grad || node->takes_blocks || node->origin < 0) return -1;
            found = id;
        }
    }
    return found;
}

// The scratch of a backward that trains a state in pieces. kernel_bytes: what the reader's kernel has of it.
static uint64_t tli_find_scratch_in_pieces(const tl_pieces_desc *desc, const tl_node *state,
                                           uint64_t kernel_bytes, uint64_t piece_bytes) {
    uint64_t alignment = tli_larger_u64(TLI_PIECE_ALIGNMENT, desc->alignment_bytes);
    uint64_t scratch = tli_larger_u64(kernel_bytes, state->bwork_bytes);
    return scratch + (alignment - scratch % alignment) % alignment + piece_bytes;
}

// Train a state in pieces: costs and scratch go to its reader. 0 = the cost does not fit.
static int tli_train_in_pieces(const tl_pieces_desc *desc, tl_node *state, tl_node *reader, uint64_t scratch) {
    uint64_t pieces = (uint64_t)tli_count_state_pieces(state), calls;
    if (!tli_mul_u64(2 * pieces - 1, desc->call_cost, &calls) ||
        !tli_add_u64(reader->bwd_cost, calls, &reader->bwd_cost) ||
        !tli_add_u64(reader->bwd_cost, state->bwd_cost, &reader->bwd_cost)) return 0;
    reader->bwork_bytes = tli_larger_u64(reader->bwork_bytes, scratch);
    state->state = TL_STATE_PIECES;
    state->has_grad = 0;
    state->bwd_cost = state->bwork_bytes = 0;
    return 1;
}

static tl_result tli_apply_pieces(tl_env *env, const tl_pieces_desc *desc, tl_graph *graph) {
    tl_node *nodes = (tl_node *)graph->nodes;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        tl_node *state = &nodes[id];
        int32_t reader, rows = tli_find_piece_rows(desc, graph, state);
        uint64_t bytes = graph->outputs[state->first_output].bytes, kernel, scratch;
        if (!rows) continue;
        reader = tli_find_piece_reader(graph, id);
        if (reader < 0) continue;
        kernel = desc->graph->nodes[reader].bwork_bytes;
        scratch = tli_find_scratch_in_pieces(desc, state, kernel, bytes / (uint64_t)state->weight_rows *
                                                                      (uint64_t)rows);
        if (scratch >= kernel + bytes) continue;    // no fewer bytes than with the whole gradient
        state->piece_rows = rows;
        if (!tli_train_in_pieces(desc, state, &nodes[reader], scratch))
            return tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(APPLY_PIECES),
                            TLI_RULE(FWD_BWD_SUM_OF_ALL_COSTS_MUST_FIT_64));
        for (k = state->first_output; k < state->first_output + state->output_count; k++)
            ((tl_node_output *)graph->outputs)[k].needed = 0;
    }
    return tl_check_graph(env, graph);
}

TLI_IMPL tl_result tl_apply_pieces(tl_env *env, const tl_pieces_desc *desc, tl_graph *graph) {
    tl_result result;
    TL_ASSERT(desc && desc->graph && graph);
    tl_init_graph(graph);
    if (desc->alignment_bytes & (desc->alignment_bytes - 1))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(APPLY_PIECES),
                        TLI_RULE(ALIGNMENT_BYTES_MUST_BE_0_OR_POWER));
    result = tl_check_graph(env, desc->graph);
    if (result) return result;
    if (!tli_copy_graph(env, desc->graph, graph))
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(APPLY_PIECES), TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
    result = tli_apply_pieces(env, desc, graph);
    if (result) tl_free_graph(env, graph);
    return result;
}

TLI_IMPL void tl_let_inputs_die(tl_graph *graph) {
    tl_node *nodes;
    int32_t id;
    TL_ASSERT(graph);
    nodes = (tl_node *)graph->nodes;
    for (id = 0; id < graph->node_count; id++)
        if (nodes[id].is_input && !nodes[id].state && !nodes[id].keep) nodes[id].is_input = TLI_INPUT_DIES;
}

// -- states: frozen ones as constants --

static int tli_takes_flash(const tl_graph *graph, const tl_node *node) {
    return node->state == TL_STATE_FROZEN && graph->outputs[node->first_output].bytes > 0;
}

// Move the bytes of frozen states of a graph, which owns its arrays, to its constants. 0 = no memory.
static int tli_move_frozen(tl_env *env, tl_graph *graph, tl_attributes *a, int32_t count) {
    tl_stored *stored = (tl_stored *)tli_alloc_array(env, (uint64_t)count, sizeof *stored);
    int32_t id, from = 0, to = 0;
    if (!stored) return 0;
    for (id = 0; id < graph->node_count; id++) {
        tl_node *node = (tl_node *)&graph->nodes[id];
        tl_node_output *output = (tl_node_output *)&graph->outputs[node->first_output];
        while (from < a->stored_count && a->stored[from].node == id) stored[to++] = a->stored[from++];
        if (!tli_takes_flash(graph, node)) continue;
        stored[to].bytes = output->bytes;
        stored[to].node = id;
        stored[to++].format = output->format ? (int32_t)output->format : (int32_t)TL_TENSOR_FORMAT_F32;
        output->bytes = 0;
        node->weight_rows = 0;
    }
    if (a->stored_capacity) tli_release(env, (tl_stored *)a->stored);
    a->stored = stored;
    a->stored_count = a->stored_capacity = count;
    return 1;
}

TLI_IMPL tl_result tl_store_frozen(tl_env *env, tl_graph *graph) {
    int64_t count = graph->attributes ? graph->attributes->stored_count : 0;
    int32_t id, more = 0;
    tl_graph made;
    tl_result result = tl_check_graph(env, graph);
    if (result) return result;
    for (id = 0; id < graph->node_count; id++) more += tli_takes_flash(graph, &graph->nodes[id]);
    if (!more) return TL_OK;
    if (count + more > INT32_MAX)
        return tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(STORE_FROZEN),
                        TLI_RULE(GRAPH_COUNTS_MUST_STAY_BELOW_2_31));
    if (!tli_copy_graph(env, graph, &made))
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(STORE_FROZEN), TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
    if (!made.attributes)
        made.attributes = (tl_attributes *)tli_alloc_array(env, 1, sizeof *made.attributes);
    if (made.attributes && tli_move_frozen(env, &made, (tl_attributes *)made.attributes, (int32_t)count + more))
        result = tl_check_graph(env, &made);
    else
        result = tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(STORE_FROZEN), TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
    tl_free_graph(env, result ? &made : graph);
    if (!result) *graph = made;
    return result;
}

// -- states: an optimizer for a graph --

#define TLI_MOST_MOMENTS 16

typedef struct tli_owner {
    tl_env     *env;
    const tl_optimizer_desc *desc;
    const tl_graph *from;
    tl_graph   *to;
    int32_t    *new_ids;       // [nodes of from] -1 = not added yet
    int32_t    *weights;       // [nodes of from] the state made of its weights; -1 = none
    int32_t    *first_reader;  // [nodes of from] of a state; -1 = none
    tl_tensor  *inputs;        // of the node at hand
    tl_relation *relations;    // the same of its rows
} tli_owner;

static tl_result tli_fail_owner(const tli_owner *o) {
    return tli_fail(o->env, TL_ERROR_NO_MEMORY, TLI_IN(APPLY_OPTIMIZER), TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
}

// The cost of an update: the weight, its gradient and the moments are read, weight and moments are written.
static tl_result tli_price_update(const tli_owner *o, uint64_t bytes, int32_t moment_count, uint64_t *cost) {
    uint64_t moved, rate = o->desc->bytes_per_second;
    *cost = o->desc->call_cost;
    if (!rate) return TL_OK;
    if (tli_mul_u64(bytes, 3 + 2 * (uint64_t)moment_count, &moved) && tli_find_time(moved, rate, &moved) &&
        tli_add_u64(*cost, moved, cost)) return TL_OK;
    return tli_fail(o->env, TL_ERROR_OVERFLOW, TLI_IN(APPLY_OPTIMIZER),
                    TLI_RULE(FWD_BWD_SUM_OF_ALL_COSTS_MUST_FIT_64));
}

// Add the state that a node's weights become.
static tl_result tli_own_weights(tli_owner *o, int32_t id) {
    const tl_node *node = &o->from->nodes[id];
    int32_t moments = node->has_grad ? o->desc->moment_count : 0, k;
    uint64_t bytes[TLI_MOST_MOMENTS];
    char name[TLI_NAME_LIMIT + 3];
    tli_writer w = tli_writer_of(name, sizeof name);
    tl_state_desc state;
    tl_tensor weight;
    tl_result result;
    tli_zero(&state, sizeof state);
    tli_put(&w, tl_name_node(o->from, id));
    tli_put(&w, ".w");
    tli_finish(&w);
    for (k = 0; k < moments; k++) bytes[k] = node->param_bytes;
    state.name = name;
    state.op = o->desc->op;
    state.bytes = node->param_bytes;
    state.moment_bytes = bytes;
    state.moment_count = moments;
    state.kind = node->has_grad ? TL_STATE_TRAINED : TL_STATE_FROZEN;
    state.unit = node->unit ? tl_name_unit(o->from, id) : NULL;
    state.layer = node->layer + 1;
    state.weight_rows = node->has_grad ? node->weight_rows : 0;
    result = node->has_grad ? tli_price_update(o, node->param_bytes, moments, &state.update_cost) : TL_OK;
    if (!result) result = tl_add_state(o->env, o->to, &state, &weight);
    if (result) return result;
    ((tl_node *)o->to->nodes)[weight.node].origin = node->origin;
    o->weights[id] = weight.node;
    return TL_OK;
}

// Copy a node; one with weights reads the state that they became.
static tl_result tli_own_node(tli_owner *o, int32_t id) {
    const tl_graph *from = o->from;
    const tl_node *node = &from->nodes[id];
    int has_weights = o->weights[id] >= 0;
    uint64_t *bytes = (uint64_t *)tli_alloc_array(o->env, (uint64_t)node->output_count, sizeof *bytes);
    tl_node_desc desc;
    tl_result result = bytes ? TL_OK : tli_fail_owner(o);
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_output *output = &from->outputs[from->inputs[node->first_input + k].tensor];
        o->inputs[k].node = o->new_ids[output->node];
        o->inputs[k].output = output->output;
    }
    o->inputs[node->input_count].node = o->weights[id];
    o->inputs[node->input_count].output = 0;
    for (k = 0; k < node->output_count && !result; k++) bytes[k] = from->outputs[node->first_output + k].bytes;
    tli_describe_node(from, id, &desc);
    desc.inputs = o->inputs;
    desc.input_count += has_weights;
    desc.output_bytes = bytes;
    desc.param_bytes = has_weights ? 0 : node->param_bytes;
    if (has_weights) desc.weight_rows = 0;
    if (desc.rows && has_weights) {
        for (k = 0; k < node->input_count; k++) o->relations[k] = desc.relations[k];
        tli_zero(&o->relations[k], sizeof o->relations[k]);     // TL_RELATION_WHOLE
        desc.relations = o->relations;
    }
    if (!result) result = tl_add_node(o->env, o->to, &desc, &o->new_ids[id]);
    if (!result) tli_copy_needs(from, id, o->to);
    if (!result && has_weights)    // a backward reads the weights where it makes the gradient of its inputs
        ((tl_node_input *)o->to->inputs)[o->to->input_count - 1].needed = node->has_grad;
    tli_release(o->env, bytes);
    return result;
}

static int tli_owns_weights(const tli_owner *o, int32_t id) {
    return o->from->nodes[id].param_bytes > 0 && !o->desc->keeps_weights;
}

// Whether a state stands in front of a node: of the states that are not placed, those above their first reader.
static int tli_is_placed_at(const tli_owner *o, int32_t state, int32_t id) {
    if (!o->from->nodes[state].state || o->new_ids[state] >= 0) return 0;
    return o->first_reader[state] < 0 ? state == id : o->first_reader[state] == id;
}

static tl_result tli_own_states_of(tli_owner *o, int32_t id) {
    const tl_node *node = &o->from->nodes[id];
    tl_result result = TL_OK;
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count && !result; k++) {
        int32_t maker = o->from->outputs[o->from->inputs[k].tensor].node;
        if (tli_is_placed_at(o, maker, id)) result = tli_own_node(o, maker);
    }
    if (!result && tli_owns_weights(o, id) && o->weights[id] < 0) result = tli_own_weights(o, id);
    return result;
}

// Add the node that clips: below it stand no states, above it nothing but states.
static tl_result tli_add_clip(tli_owner *o) {
    uint64_t out = 4, bytes = 0, weight;
    tl_node_desc node;
    tl_tensor *inputs = (tl_tensor *)tli_alloc_array(o->env, (uint64_t)o->to->node_count + 1, sizeof *inputs);
    tl_result result;
    int32_t id;
    if (!inputs) return tli_fail_owner(o);
    tli_zero(&node, sizeof node);
    for (id = 0; id < o->to->node_count; id++) {
        if (!tli_has_update(&o->to->nodes[id])) continue;
        weight = o->to->outputs[o->to->nodes[id].first_output].bytes;
        bytes = weight > UINT64_MAX / 8 - bytes ? UINT64_MAX / 8 : bytes + weight;
        inputs[node.input_count].node = id;
        inputs[node.input_count++].output = 0;
    }
    node.name = node.op = "clip";
    node.inputs = inputs;
    node.output_bytes = &out;
    node.output_count = 1;
    node.fixed = 1;
    node.origin = -1;
    result = tli_price_update(o, bytes, 0, &node.bwd_cost);     // gradients are read twice, and written
    if (!result) result = tl_add_node(o->env, o->to, &node, NULL);
    tli_release(o->env, inputs);
    return result;
}

static tl_result tli_own_graph(tli_owner *o) {
    const tl_graph *from = o->from;
    int is_end = o->desc->updates == TL_UPDATES_END;
    tl_result result = TL_OK;
    int32_t id, i;
    for (id = 0; id < from->node_count; id++) o->new_ids[id] = o->weights[id] = o->first_reader[id] = -1;
    for (id = from->node_count; id-- > 0;)
        for (i = 0; i < from->nodes[id].input_count; i++)
            o->first_reader[from->outputs[from->inputs[from->nodes[id].first_input + i].tensor].node] = id;
    for (id = 0; id < from->node_count && is_end && !result; id++) {
        if (from->nodes[id].state) result = tli_own_node(o, id);
        else if (tli_owns_weights(o, id)) result = tli_own_weights(o, id);
    }
    if (!result && o->desc->clips) result = tli_add_clip(o);
    for (id = 0; id < from->node_count && !result; id++) {
        if (!from->nodes[id].state) result = tli_own_states_of(o, id);
        if (!result && (!from->nodes[id].state || tli_is_placed_at(o, id, id))) result = tli_own_node(o, id);
    }
    for (i = 0; i < from->view_count && !result; i++) {
        tl_tensor of;
        of.node = o->new_ids[from->outputs[from->views[i].tensor].node];
        of.output = from->outputs[from->views[i].tensor].output;
        result = tl_add_view(o->env, o->to, from->text + from->views[i].name, of, NULL);
    }
    return result ? result : tl_check_graph(o->env, o->to);
}

static tl_result tli_check_optimizer(tl_env *env, const tl_optimizer_desc *desc) {
    tli_rule why = TLI_NO_RULE;
    if (desc->clips & ~1 || (desc->clips && desc->updates != TL_UPDATES_END))
        why = TLI_RULE(CLIPS_NEEDS_UPDATES_AT_THE_END);
    else if (desc->keeps_weights & ~1) why = TLI_RULE(KEEPS_WEIGHTS_MUST_BE_0_OR_1);
    else if (!tli_is_below((int32_t)desc->updates, TL_UPDATES_COUNT))
        why = TLI_RULE(UPDATES_THERE_IS_NO_SUCH_PLACE);
    else if (desc->moment_count < 0 || desc->moment_count > TLI_MOST_MOMENTS)
        why = TLI_RULE(MOMENT_COUNT_MUST_BE_0_TO_16);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(APPLY_OPTIMIZER), why);
    return tl_check_graph(env, desc->graph);
}

TLI_IMPL tl_result tl_apply_optimizer(tl_env *env, const tl_optimizer_desc *desc, tl_graph *graph) {
    tli_owner o;
    uint64_t nodes;
    tl_result result;
    TL_ASSERT(desc && desc->graph && graph);
    tl_init_graph(graph);
    result = tli_check_optimizer(env, desc);
    if (result) return result;
    tli_zero(&o, sizeof o);
    o.env = env;
    o.desc = desc;
    o.from = desc->graph;
    o.to = graph;
    nodes = (uint64_t)desc->graph->node_count;
    graph->batch = desc->graph->batch;
    o.new_ids = (int32_t *)tli_alloc_array(env, nodes, sizeof *o.new_ids);
    o.weights = (int32_t *)tli_alloc_array(env, nodes, sizeof *o.weights);
    o.first_reader = (int32_t *)tli_alloc_array(env, nodes, sizeof *o.first_reader);
    o.inputs = (tl_tensor *)tli_alloc_array(env, (uint64_t)desc->graph->input_count + 1, sizeof *o.inputs);
    o.relations = (tl_relation *)tli_alloc_array(env, (uint64_t)desc->graph->input_count + 1,
                                                 sizeof *o.relations);
    result = o.new_ids && o.weights && o.first_reader && o.inputs && o.relations ? tli_own_graph(&o)
                                                                                 : tli_fail_owner(&o);
    tli_release(env, o.new_ids);
    tli_release(env, o.weights);
    tli_release(env, o.first_reader);
    tli_release(env, o.inputs);
    tli_release(env, o.relations);
    if (result) tl_free_graph(env, graph);
    return result;
}

static const char *const tli_updates_names[] = { TL_UPDATES(TLI_NAME) };

TLI_IMPL const char *tl_name_updates(tl_updates updates) {
    return tli_name(tli_updates_names, TL_UPDATES_COUNT, (int64_t)updates);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_updates(const char *text, tl_updates *updates) {
    int32_t value;
    int known = tli_parse_word(tli_updates_names, TL_UPDATES_COUNT, text, &value);
    TL_ASSERT(updates);
    *updates = (tl_updates)value;
    return known;
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
