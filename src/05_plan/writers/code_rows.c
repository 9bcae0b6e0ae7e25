#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TEXT

// -- plans as C programs: what is called --
//
// A replay with functions of the caller, which here write rows down instead of calling:
//
//     step    row                              words
//     B 2     zero                             where, bytes
//             call, op 1, backward, node 2     where each operand lies, in the order of the prototype
//     O 1     copy                             to, from, bytes
//     B 5     pieces 0                         a loop over pieces; its rows are those of the first piece
//     F 7     region 0                         a region of rows; where its tensors lie (code_regions.c)
//
// The same rows become calls or a table (code_text.c).

static const char *const tli_code_form_names[] = { TL_CODE_FORMS(TLI_NAME) };

TLI_IMPL const char *tl_name_code_form(tl_code_form form) {
    return tli_name(tli_code_form_names, TL_CODE_FORM_COUNT, (int64_t)form);
}

TLI_IMPL int tl_parse_code_form(const char *text, tl_code_form *form) {
    int32_t value;
    int known = tli_parse_word(tli_code_form_names, TL_CODE_FORM_COUNT, text, &value);
    TL_ASSERT(form);
    *form = (tl_code_form)value;
    return known;
}

typedef enum tli_row_kind {
    TLI_ROW_FORWARD, TLI_ROW_BACKWARD, TLI_ROW_ZERO, TLI_ROW_LOSS, TLI_ROW_COPY, TLI_ROW_WAIT,
    TLI_ROW_COMPRESS, TLI_ROW_EXPAND, TLI_ROW_REGION, TLI_ROW_PIECES, TLI_ROW_COUNT
} tli_row_kind;

// The array of the written program that a word points into.
enum {
    TLI_SPACE_NONE,      // the word is a number, or NULL
    TLI_SPACE_BANK,      // of bank 0 of the device; those of its other banks follow
    TLI_SPACE_HOST = TLI_SPACE_BANK + TL_MOST_BANKS,    // the same of the host
    TLI_SPACE_WEIGHTS = TLI_SPACE_HOST + TL_MOST_BANKS,
    TLI_SPACE_GRADIENTS,
    TLI_SPACE_FROZEN,    // in training: what it reads alone
    TLI_SPACE_COUNT
};

// An operand of a row: an address in an array, or a number.
typedef struct tli_code_word {
    uint64_t value;     // offset, or number
    int32_t  space;
} tli_code_word;

typedef struct tli_code_row {
    tli_row_kind kind;
    int32_t step, node, slot;
    int32_t first, count;   // its words: tli_code.words[first] and those that follow
    int32_t loop;           // of TLI_ROW_PIECES: tli_code.loops[loop]
} tli_code_row;

// The first piece of a state: the call that makes it and the one that uses it.
typedef struct tli_code_loop { tli_code_row gradient, update; } tli_code_loop;

// A node that is carried out in calls for ranges: a region, or a whole node of an op that regions call.
typedef struct tli_code_region {
    tli_code_row operands;  // its words: outputs, inputs, scratch
    int32_t      node;      // of the plan's graph
} tli_code_region;

// What the kernels of an op are called for.
typedef enum tli_code_range { TLI_RANGE_WHOLE, TLI_RANGE_ROWS, TLI_RANGE_ELEMENTS } tli_code_range;

// The parts that the operands of a kernel fall into, in the order of its parameters.
typedef enum tli_role {
    TLI_ROLE_OUT_GRAD, TLI_ROLE_IN_GRAD, TLI_ROLE_OUT, TLI_ROLE_IN, TLI_ROLE_NEEDED_OUT, TLI_ROLE_WEIGHT,
    TLI_ROLE_STORED, TLI_ROLE_WEIGHT_GRAD, TLI_ROLE_SAVED, TLI_ROLE_SCRATCH, TLI_ROLE_COUNT
} tli_role;

// A parameter of a kernel: operand `number` of a part, as in1 is number 1 of TLI_ROLE_IN.
typedef struct tli_code_param {
    tli_role part;
    int32_t  number;
} tli_code_param;

// The parameters of a kernel behind node and slot: tli_code.params[first] and those that follow.
typedef struct tli_code_kernel {
    int32_t first, count;
    int     is_called;      // 1 = a row calls it
} tli_code_kernel;

typedef struct tli_code {
    tl_env             *env;
    const tl_code_desc *desc;
    tli_table           table;     // graph, plan, name, lifetimes, report, block_bytes, is_shared
    const tl_graph     *planned;   // the graph of the plan: with rows that with regions, else the same
    const struct tl_rows_plan *row_plan;    // NULL = none
    int32_t            *origins;   // [nodes of planned] the node of the graph that one is, of a region its last
    int32_t            *tensors;   // [tensors of the graph] those of planned; -1 = inside a region
    uint8_t            *ranges;    // [nodes] at the first node of an op: a tli_code_range
    tli_code_region    *regions;   // [region_count]
    int32_t             region_count, region_capacity;
    int32_t             stream;    // a stream that is loaded by rows; -1 = none is
    tli_code_row       *rows;      // [row_count]
    tli_code_word      *words;     // [word_count]
    int32_t             row_count, row_capacity, word_count, word_capacity;
    tli_code_row       *into;      // the row that the next word belongs to
    tli_code_loop      *loops;     // [loop_count]
    int32_t             loop_count, loop_capacity;
    int                 failed;    // 1 = out of memory
    uint8_t            *is_result;   // [tensors]
    int32_t            *ops;       // [nodes] the first node of the same op; -1 = has no kernel
    tli_code_kernel    *kernels;   // [2 x nodes] forward and backward of an op, at 2 x its first node
    tli_code_param     *params;    // [param_count]
    int32_t             param_count, param_capacity;
    uint8_t            *is_op_shared;  // [nodes] at the first node of an op: 1 = another has its name in C
    uint64_t           *weights;   // [nodes] offset of a node's weights in their array
    uint64_t           *stored;    // [constants of the graph] where each begins in the array of constants
    uint64_t           *bases;     // [blocks of the plan] where each begins in the array of its bank
    uint64_t            space_bytes[TLI_SPACE_COUNT];
    uint64_t            alignment;
} tli_code;

// The node of the graph that one of the plan's is; of a region its last.
static int32_t tli_code_origin(const tli_code *c, int32_t node) {
    return c->row_plan ? c->origins[node] : node;
}

static tli_code_range tli_code_range_of(const tli_code *c, int32_t op) {
    return c->row_plan ? (tli_code_range)c->ranges[op] : TLI_RANGE_WHOLE;
}

// -- prototypes --

static int tli_is_trained(const tli_code *c, const tl_node *node) {
    return (node->has_grad || tli_is_in_pieces(node)) && !c->table.plan->inference;
}

// The array of what no kernel writes, const and of the user.
static int32_t tli_constant_space(const tli_code *c) {
    return c->table.plan->inference ? TLI_SPACE_WEIGHTS : TLI_SPACE_FROZEN;
}

static int tli_is_constant_space(const tli_code *c, int32_t space) {
    return space == TLI_SPACE_FROZEN || space == tli_constant_space(c);
}

// The array of a node's weights.
static int32_t tli_weight_space(const tli_code *c, const tl_node *node) {
    return tli_is_trained(c, node) ? TLI_SPACE_WEIGHTS : tli_constant_space(c);
}

// The constants of a node of the graph, and the place of the first among all.
static int32_t tli_code_constants(const tli_code *c, int32_t node, int32_t *first) {
    const tl_stored *stored;
    int32_t count = tli_find_stored(c->table.graph, node, &stored);
    *first = count ? (int32_t)(stored - c->table.graph->attributes->stored) : 0;
    return count;
}

static int tli_in_has_grad(const tl_graph *graph, const tl_node *node, int32_t i) {
    int32_t tensor = graph->inputs[node->first_input + i].tensor;
    return tli_gets_gradient(graph, tensor) || tli_held_gradient(graph, tensor) >= 0 ||
           tli_find_pieces(graph, node, i);
}

// The scratch of a kernel that makes or uses pieces is what the reader of the state has beside one.
static int tli_has_update_scratch(const tl_graph *graph, const tl_node *state) {
    int32_t id = tli_is_in_pieces(state) ? tli_find_reader(graph, state->first_output) : -1;
    if (id < 0) return state->bwork_bytes > 0;
    return graph->nodes[id].bwork_bytes - tli_find_piece_bytes(graph, state) >= TLI_PIECE_ALIGNMENT;
}

// Whether a node has operand i of a part.
static int tli_node_has_part(const tli_code *c, const tl_node *node, tli_role part, int backward, int32_t i) {
    const tl_graph *graph = c->table.graph;
    int in = i < node->input_count, out = i < node->output_count, trains = !c->table.plan->inference;
    int32_t first;
    switch (part) {
    case TLI_ROLE_OUT_GRAD: return backward && (node->state ? !i : out);
    case TLI_ROLE_IN_GRAD: return backward && in && tli_in_has_grad(graph, node, i);
    case TLI_ROLE_OUT: return !backward && out;
    case TLI_ROLE_IN: return in && (!backward || graph->inputs[node->first_input + i].needed);
    case TLI_ROLE_NEEDED_OUT:
        out = out && !(tli_is_held(node) && i == node->output_count - 1);   // the gradient is dout0
        return backward && out && (graph->outputs[node->first_output + i].needed || tli_is_in_pieces(node));
    case TLI_ROLE_WEIGHT: return !i && node->param_bytes > 0;
    case TLI_ROLE_STORED: return i < tli_code_constants(c, (int32_t)(node - graph->nodes), &first);
    case TLI_ROLE_WEIGHT_GRAD: return !i && backward && node->param_bytes > 0;
    case TLI_ROLE_SAVED: return !i && node->saved_bytes > 0 && trains;
    case TLI_ROLE_SCRATCH:
        if (backward) return !i && tli_has_update_scratch(graph, node);
        return !i && (node->fwork_bytes > 0 || (trains && node->saved_bytes > 0 && node->swork_bytes > 0));
    case TLI_ROLE_COUNT: break;
    }
    return 0;
}

// Whether the kernels of an op have operand i of a part: whether one of its nodes has it. op: its first node.
static int tli_op_has_part(const tli_code *c, int32_t op, tli_role part, int backward, int32_t i) {
    const tl_graph *graph = c->table.graph;
    int32_t id;
    for (id = op; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (c->ops[id] == op && (!backward || node->has_grad || tli_is_in_pieces(node)) &&
            tli_node_has_part(c, node, part, backward, i)) return 1;
    }
    return 0;
}

// Whether the backward of an op is called for rows: it makes or uses pieces.
static int tli_op_takes_rows(const tli_code *c, int32_t op, int backward) {
    const tl_graph *graph = c->table.graph;
    int32_t id;
    for (id = op; id < graph->node_count && backward; id++)
        if (c->ops[id] == op &&
            (tli_is_in_pieces(&graph->nodes[id]) || tli_reads_pieces(graph, &graph->nodes[id]))) return 1;
    return 0;
}

// The most inputs, outputs or constants of a node of the op, but at least 1.
static int32_t tli_most_operands(const tli_code *c, int32_t op) {
    const tl_graph *graph = c->table.graph;
    int32_t id, most = 1, first;
    for (id = op; id < graph->node_count; id++) {
        if (c->ops[id] != op) continue;
        if (tli_code_constants(c, id, &first) > most) most = tli_code_constants(c, id, &first);
        if (graph->nodes[id].input_count > most) most = graph->nodes[id].input_count;
        if (graph->nodes[id].output_count > most) most = graph->nodes[id].output_count;
    }
    return most;
}

// List the parameters of a kernel of an op.
static void tli_code_list_params(tli_code *c, int32_t op, int backward) {
    tli_code_kernel *kernel = &c->kernels[2 * op + backward];
    int32_t most = tli_most_operands(c, op), part, i;
    void *params = c->params;
    kernel->first = c->param_count;
    for (part = 0; part < TLI_ROLE_COUNT; part++)
        for (i = 0; i < most && !c->failed; i++) {
            if (!tli_op_has_part(c, op, (tli_role)part, backward, i)) continue;
            c->failed = !tli_grow(c->env, &params, &c->param_capacity, c->param_count,
                                  (int64_t)c->param_count + 1, sizeof *c->params);
            if (c->failed) return;
            c->params = (tli_code_param *)params;
            c->params[c->param_count].part = (tli_role)part;
            c->params[c->param_count++].number = i;
        }
    kernel->count = c->param_count - kernel->first;
}

// -- rows --

static void tli_code_add_word(tli_code *c, int32_t space, uint64_t value) {
    void *words = c->words;
    if (c->failed) return;
    if (!tli_grow(c->env, &words, &c->word_capacity, c->word_count, (int64_t)c->word_count + 1,
                  sizeof *c->words)) {
        c->failed = 1;
        return;
    }
    c->words = (tli_code_word *)words;
    c->words[c->word_count].space = space;
    c->words[c->word_count++].value = value;
    c->into->count++;
}

static tli_code_row tli_code_row_of(const tli_code *c, tli_row_kind kind, const tl_step *step, int32_t index) {
    tli_code_row row;
    tli_zero(&row, sizeof row);
    row.kind = kind;
    row.step = index;
    row.node = tli_code_origin(c, step->node);
    row.slot = step->slot;
    row.first = c->word_count;
    return row;
}

static void tli_code_add_row(tli_code *c, tli_row_kind kind, const tl_step *step, int32_t index) {
    void *rows = c->rows;
    if (c->failed) return;
    if (!tli_grow(c->env, &rows, &c->row_capacity, c->row_count, (int64_t)c->row_count + 1, sizeof *c->rows)) {
        c->failed = 1;
        return;
    }
    c->rows = (tli_code_row *)rows;
    c->into = &c->rows[c->row_count++];
    *c->into = tli_code_row_of(c, kind, step, index);
}

// Add a loop over the pieces of a state.
static void tli_code_add_loop(tli_code *c, const tl_step *step, int32_t index) {
    void *loops = c->loops;
    tli_code_add_row(c, TLI_ROW_PIECES, step, index);
    if (c->failed) return;
    c->failed = !tli_grow(c->env, &loops, &c->loop_capacity, c->loop_count, (int64_t)c->loop_count + 1,
                          sizeof *c->loops);
    if (c->failed) return;
    c->loops = (tli_code_loop *)loops;
    c->into->loop = c->loop_count++;
}

// Add an address in a lifetime.
static void tli_code_add_life(tli_code *c, const tl_lifetime *life, uint64_t from) {
    int is_host = life->use == TL_USE_HOST;
    uint64_t offset = life->offset + from;
    if (life->block >= 0) offset += c->bases[life->block] - c->table.plan->blocks[life->block].offset;
    tli_code_add_word(c, (is_host ? TLI_SPACE_HOST : TLI_SPACE_BANK) + life->bank, offset);
}

static void tli_code_add_operand(tli_code *c, const tl_replay_call *call, const tl_replay_operand *operand) {
    if (operand->lifetime < 0) tli_code_add_word(c, TLI_SPACE_NONE, 0);
    else tli_code_add_life(c, &call->lifetimes[operand->lifetime], operand->offset);
}

// Add what a call reads as input i: a tensor, or the constant that a frozen state is.
static void tli_code_add_input(tli_code *c, const tl_replay_call *call, int32_t i) {
    const tl_graph *graph = call->graph;
    const tl_node_input *input = &graph->inputs[graph->nodes[call->step.node].first_input + i];
    int32_t maker = graph->outputs[input->tensor].node, first;
    if (tli_is_constant_state(graph, maker)) {
        (void)tli_code_constants(c, tli_code_origin(c, maker), &first);
        tli_code_add_word(c, tli_constant_space(c), c->stored[first]);
    } else {
        tli_code_add_operand(c, call, &call->inputs[i]);
    }
}

static void tli_code_add_start(tli_code *c, const tl_replay_call *call, const tl_replay_operand *gradient) {
    if (gradient->lifetime < 0 || gradient->start == TL_START_FILLED) return;
    tli_code_add_row(c, gradient->start == TL_START_LOSS ? TLI_ROW_LOSS : TLI_ROW_ZERO, &call->step,
                     call->index);
    tli_code_add_operand(c, call, gradient);
    tli_code_add_word(c, TLI_SPACE_NONE, call->lifetimes[gradient->lifetime].bytes);
}

// Add operand i of a part of a call.
static void tli_code_add_part(tli_code *c, const tl_replay_call *call, tli_role part, int32_t i) {
    const tl_node *node = &call->graph->nodes[call->step.node];
    tl_replay_operand none;
    int32_t id = tli_code_origin(c, call->step.node), first;
    none.lifetime = -1;
    switch (part) {
    case TLI_ROLE_OUT_GRAD: tli_code_add_operand(c, call, &call->output_grads[i]); break;
    case TLI_ROLE_IN_GRAD: tli_code_add_operand(c, call, &call->input_grads[i]); break;
    case TLI_ROLE_OUT: tli_code_add_operand(c, call, call->outputs_ready ? &none : &call->outputs[i]); break;
    case TLI_ROLE_NEEDED_OUT: tli_code_add_operand(c, call, &call->outputs[i]); break;
    case TLI_ROLE_IN: tli_code_add_input(c, call, i); break;
    case TLI_ROLE_WEIGHT: tli_code_add_word(c, tli_weight_space(c, node), c->weights[id]); break;
    case TLI_ROLE_STORED:
        (void)tli_code_constants(c, id, &first);
        tli_code_add_word(c, tli_constant_space(c), c->stored[first + i]);
        break;
    case TLI_ROLE_WEIGHT_GRAD:
        if (tli_is_trained(c, node)) tli_code_add_word(c, TLI_SPACE_GRADIENTS, c->weights[call->step.node]);
        else tli_code_add_word(c, TLI_SPACE_NONE, 0);
        break;
    case TLI_ROLE_SAVED: tli_code_add_operand(c, call, &call->saved); break;
    case TLI_ROLE_SCRATCH: tli_code_add_operand(c, call, &call->scratch); break;
    case TLI_ROLE_COUNT: break;
    }
}

// Add the operands of a call, in the order of the parameters of its kernel.
static void tli_code_add_operands(tli_code *c, const tl_replay_call *call) {
    int32_t id = tli_code_origin(c, call->step.node);
    const tl_node *node = &c->table.graph->nodes[id];
    int backward = call->step.kind == TL_STEP_BACKWARD;
    tli_code_kernel *kernel = &c->kernels[2 * c->ops[id] + backward];
    int32_t i;
    for (i = kernel->first; i < kernel->first + kernel->count; i++) {
        tli_code_param param = c->params[i];
        if (tli_node_has_part(c, node, param.part, backward, param.number))
            tli_code_add_part(c, call, param.part, param.number);
        else tli_code_add_word(c, TLI_SPACE_NONE, 0);
    }
    kernel->is_called = 1;
}

// Of the pieces of a state the first stands for all.
static void tli_code_add_piece(tli_code *c, const tl_replay_call *call) {
    int is_update = call->graph->nodes[call->step.node].state != TL_STATE_NONE;
    tli_code_loop *loop;
    if (call->first) return;
    if (!is_update) tli_code_add_loop(c, &call->step, call->index);
    if (c->failed) return;
    loop = &c->loops[c->loop_count - 1];
    c->into = is_update ? &loop->update : &loop->gradient;
    *c->into = tli_code_row_of(c, TLI_ROW_BACKWARD, &call->step, call->index);
    tli_code_add_operands(c, call);
}

// Add a node that is carried out in ranges, and where its operands lie.
static void tli_code_add_region(tli_code *c, const tl_replay_call *call) {
    const tl_node *node = &call->graph->nodes[call->step.node];
    void *regions = c->regions;
    tli_code_region *region;
    int32_t i;
    tli_code_add_row(c, TLI_ROW_REGION, &call->step, call->index);
    tli_code_add_word(c, TLI_SPACE_NONE, (uint64_t)c->region_count);
    c->failed = c->failed || !tli_grow(c->env, &regions, &c->region_capacity, c->region_count,
                                       (int64_t)c->region_count + 1, sizeof *c->regions);
    if (c->failed) return;
    c->regions = (tli_code_region *)regions;
    region = &c->regions[c->region_count++];
    region->node = call->step.node;
    region->operands = tli_code_row_of(c, TLI_ROW_FORWARD, &call->step, call->index);
    c->into = &region->operands;
    for (i = 0; i < node->output_count; i++) tli_code_add_operand(c, call, &call->outputs[i]);
    for (i = 0; i < node->input_count; i++) tli_code_add_input(c, call, i);
    tli_code_add_operand(c, call, &call->scratch);
}

static tl_result tli_code_call(const tl_replay_call *call, void *user) {
    tli_code *c = (tli_code *)user;
    const tl_node *node = &call->graph->nodes[call->step.node];
    int backward = call->step.kind == TL_STEP_BACKWARD;
    int32_t i;
    if (call->total) {
        tli_code_add_piece(c, call);
        return c->failed ? TL_ERROR_NO_MEMORY : TL_OK;
    }
    if (tli_code_range_of(c, c->ops[tli_code_origin(c, call->step.node)])) {
        tli_code_add_region(c, call);
        return c->failed ? TL_ERROR_NO_MEMORY : TL_OK;
    }
    for (i = 0; i < node->output_count; i++) tli_code_add_start(c, call, &call->output_grads[i]);
    for (i = 0; i < node->input_count; i++) tli_code_add_start(c, call, &call->input_grads[i]);
    tli_code_add_row(c, backward ? TLI_ROW_BACKWARD : TLI_ROW_FORWARD, &call->step, call->index);
    if (!c->failed) tli_code_add_operands(c, call);
    return c->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

static tl_result tli_code_copy(const tl_replay_copy *copy, void *user) {
    tli_code *c = (tli_code *)user;
    const tl_lifetime *to = &copy->lifetimes[copy->to.lifetime], *from = &copy->lifetimes[copy->from.lifetime];
    int packs = copy->step.kind == TL_STEP_COMPRESS, unpacks = copy->step.kind == TL_STEP_EXPAND;
    tli_row_kind kind = packs ? TLI_ROW_COMPRESS : unpacks ? TLI_ROW_EXPAND : TLI_ROW_COPY;
    if (copy->step.kind == TL_STEP_WAIT) kind = TLI_ROW_WAIT;
    tli_code_add_row(c, kind, &copy->step, copy->index);
    if (packs || unpacks) tli_code_add_word(c, TLI_SPACE_NONE, copy->step.codec);
    tli_code_add_life(c, to, 0);
    if (kind != TLI_ROW_WAIT) tli_code_add_life(c, from, 0);
    if (kind != TLI_ROW_WAIT) tli_code_add_word(c, TLI_SPACE_NONE, packs ? from->bytes : to->bytes);
    return c->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// Every lifetime has its place: nothing to do, but memory may not be NULL.
static tl_result tli_code_allocate(const tl_lifetime *life, void **memory, void *user) {
    (void)life;
    *memory = user;
    return TL_OK;
}

static void tli_code_release(const tl_lifetime *life, void *memory, void *user) {
    (void)life; (void)memory; (void)user;
}

static tl_result tli_code_replay(tli_code *c) {
    tl_replay_desc replay;
    tl_result result;
    tli_zero(&replay, sizeof replay);
    replay.graph = c->planned;
    replay.plan = c->table.plan;
    replay.allocate = tli_code_allocate;
    replay.release = tli_code_release;
    replay.call = tli_code_call;
    replay.copy = tli_code_copy;
    replay.user = c;
    result = tli_replay_plan(c->env, TLI_IN(WRITE_PLAN_CODE), &replay);
    if (!c->failed) return result;
    return tli_fail(c->env, TL_ERROR_NO_MEMORY, TLI_IN(WRITE_PLAN_CODE), TLI_RULE(NO_MEMORY_TO_WRITE_CODE));
}

// -- layout --

// The bytes that an element of a declared format begins at a multiple of.
static uint64_t tli_format_alignment(uint8_t format) {
    switch ((tl_tensor_format)format) {
    case TL_TENSOR_FORMAT_F32:
    case TL_TENSOR_FORMAT_I32: return 4;
    case TL_TENSOR_FORMAT_F16:
    case TL_TENSOR_FORMAT_BF16:
    case TL_TENSOR_FORMAT_I16: return 2;
    case TL_TENSOR_FORMAT_NONE:
    case TL_TENSOR_FORMAT_I8:
    case TL_TENSOR_FORMAT_I4:
    case TL_TENSOR_FORMAT_COUNT: break;
    }
    return 1;
}

// Put so many bytes at the end of an array of weights, at a multiple of alignment.
static tl_result tli_code_place_at_end(const tli_code *c, uint64_t bytes, uint64_t alignment, uint64_t *offset,
                                       uint64_t *end) {
    *offset = tli_align_up(*end, alignment);
    if (tli_add_u64(*offset, bytes, end) && *end <= UINT64_MAX / 32) return TL_OK;
    return tli_fail(c->env, TL_ERROR_OVERFLOW, TLI_IN(WRITE_PLAN_CODE),
                    TLI_RULE(OFFSETS_OFFSET_BYTES_DOES_NOT_FIT_64));
}

// Lay out the weights of the nodes that are trained, or of the others, one behind the other.
static tl_result tli_code_place_weights(tli_code *c, int trained, uint64_t *end) {
    const tl_graph *graph = c->table.graph;
    uint64_t alignment = c->alignment > 4 ? c->alignment : 4;
    tl_result result = TL_OK;
    int32_t id;
    for (id = 0; id < graph->node_count && !result; id++) {
        const tl_node *node = &graph->nodes[id];
        if (!node->param_bytes || tli_is_trained(c, node) != trained) continue;
        result = tli_code_place_at_end(c, node->param_bytes, alignment, &c->weights[id], end);
        if (!result) *end = tli_align_up(*end, alignment);
    }
    return result;
}

// Lay out what no kernel writes: frozen weights, then stored constants. These have no holes between them: first
// those of whole words, then those of whole halves of a word, then the others.
static tl_result tli_code_place_constants(tli_code *c) {
    const tl_attributes *a = c->table.graph->attributes;
    uint64_t *end = &c->space_bytes[tli_constant_space(c)], unit;
    tl_result result = tli_code_place_weights(c, 0, end);
    int32_t i;
    for (unit = 4; unit && !result; unit /= 2)
        for (i = 0; a && i < a->stored_count && !result; i++) {
            const tl_stored *stored = &a->stored[i];
            if (stored->bytes % unit || (unit < 4 && stored->bytes % (2 * unit) == 0)) continue;
            result = tli_code_place_at_end(c, stored->bytes, tli_format_alignment((uint8_t)stored->format),
                                           &c->stored[i], end);
        }
    return result;
}

// Find the bytes of every array, and where blocks begin in those of banks.
static tl_result tli_code_place(tli_code *c) {
    const tl_plan *plan = c->table.plan;
    uint64_t end = 0;
    tl_result result;
    int32_t k;
    int has_blocks[2] = { 0, 0 };
    for (k = 0; k < plan->block_count; k++) {
        const tl_plan_block *block = &plan->blocks[k];
        uint64_t *bytes = &c->space_bytes[(block->tier ? TLI_SPACE_HOST : TLI_SPACE_BANK) + block->bank];
        c->bases[k] = *bytes;
        *bytes += c->table.block_bytes[k];   // no overflow: part of an arena
        has_blocks[block->tier] = 1;
    }
    if (!has_blocks[0]) c->space_bytes[TLI_SPACE_BANK] = c->table.report.arena_bytes;
    if (!has_blocks[1]) c->space_bytes[TLI_SPACE_HOST] = c->table.report.host_arena_bytes;
    result = tli_code_place_weights(c, 1, &end);
    c->space_bytes[TLI_SPACE_GRADIENTS] = c->space_bytes[TLI_SPACE_WEIGHTS] = end;
    return result ? result : tli_code_place_constants(c);
}

// What stands in C for a character of an op's name.
static char tli_code_letter(char c) {
    int is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_letter ? c : '_';
}

static int tli_same_in_c(const char *a, const char *b) {
    while (*a && tli_code_letter(*a) == tli_code_letter(*b)) { a++; b++; }
    return !*a && !*b;
}

// The name of a node's kernel: that of the caller, or the op's.
static const char *tli_code_op_name(const tli_code *c, int32_t id) {
    const char *name = c->desc->kernels ? c->desc->kernels[id] : NULL;
    return name ? name : tl_name_op(c->table.graph, id);
}

// Find the ops, each by its first node, those whose names are the same in C, and the parameters of all kernels.
static void tli_code_find_ops(tli_code *c) {
    const tl_graph *graph = c->table.graph;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        const char *name = tli_code_op_name(c, id);
        c->ops[id] = graph->nodes[id].is_input && !tli_is_trained(c, &graph->nodes[id]) ? -1 : id;
        for (k = 0; k < id && c->ops[id] >= 0; k++) {
            if (c->ops[k] != k) continue;
            if (tli_same_text(tli_code_op_name(c, k), name)) { c->ops[id] = k; break; }
            if (tli_same_in_c(tli_code_op_name(c, k), name)) c->is_op_shared[k] = c->is_op_shared[id] = 1;
        }
    }
    for (id = 0; id < graph->node_count; id++)
        for (k = 0; k < 2 && c->ops[id] == id; k++) tli_code_list_params(c, id, k);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
