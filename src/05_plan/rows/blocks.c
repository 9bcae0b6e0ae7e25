#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- blocks of rows: members of a region --
//
// A region's nodes follow each other in the graph, and a block of rows goes through all of them before the next
// one does. What happens to a block is a list of turns, one for the forward and one for the backward; what only
// turns read exists for one block:
//
//     forward    F m0, F m1, F m2
//     backward   F m0, F m1 again where a backward reads what they make, then B m2, B m1, B m0
//
// Everything of a turn lies in the scratch of the region, placed by [4]: rows of members, their gradients,
// their saved bytes, and the scratch of each call.

#define TLI_CUT_LAYOUT_WORK UINT64_C(1000000)   // of the layout of one list of turns

typedef struct tli_cutting {
    tl_env  *env;
    const tl_cut_desc *desc;
    const tl_graph *graph;
    tli_graph_rules rules;
    uint64_t alignment;
    tl_row_cut *list;           // [list_count] the desc's, and nodes that are cut alone
    int32_t  list_count;
    const tl_row_cut *cut;      // the one at hand, and what belongs to it:
    tl_row_member *members;     // [count]
    int32_t  count, number;     // members; which cut it is
    uint64_t rows, unit, block_rows, block_count;
    int32_t  axis;
    int      is_late;           // its backward makes the output
    int32_t *cuts;              // [nodes] the cut whose member it is; -1 = of none
    int32_t *places;            // [nodes] which member of it
    int32_t *turns;             // [3 nodes] of members at hand: turn of the forward, again, of the backward
    int32_t *tensors;           // [tensors] in the graph that is made; -1 = inside a region
    uint8_t *is_outer;          // [tensors] 1 = somebody outside of its region reads it, or nobody does
    uint8_t *is_needed;         // [tensors] 1 = the backward of the region at hand reads it, or makes it again
    tl_tensor *inputs;          // [inputs] of the node that is added
    uint64_t  *bytes;           // [tensors] of its outputs
    tl_stored *stored;          // [constants] its constants
    tl_layout_buffer *buffers;  // [5 nodes] of a list of turns
    uint64_t **offsets;         // [5 nodes] where the offset of each goes
    int32_t  buffer_count;
} tli_cutting;

static tl_result tli_fail_cut_node(const tli_cutting *c, int32_t id, tli_rule rule) {
    return tli_fail_item(&c->rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(c->graph, id), rule);
}

static int32_t tli_cut_tensor(const tli_cutting *c, int32_t id, int32_t k) {
    return c->graph->inputs[c->graph->nodes[id].first_input + k].tensor;
}

// The member of the region at hand that makes a tensor; NULL = it comes from outside.
static tl_row_member *tli_cut_maker(const tli_cutting *c, int32_t tensor) {
    int32_t maker = c->graph->outputs[tensor].node;
    return c->cuts[maker] == c->number ? &c->members[c->places[maker]] : NULL;
}

static int tli_cut_trains(const tli_cutting *c) {
    return !c->desc->inference && c->graph->nodes[c->cut->last].has_grad;
}

// Whether input k of a member is whole in each call.
static int tli_reads_whole(const tli_cutting *c, int32_t id, int32_t k) {
    tl_relation relation = tli_find_row_relation(c->graph, id, k);
    return tli_is_all_rows(&relation);
}

// Whether backwards add to a gradient of a tensor.
static int tli_is_summed(const tl_graph *graph, int32_t tensor) {
    return tli_gets_gradient(graph, tensor) || tli_held_gradient(graph, tensor) >= 0;
}

static int tli_cut_reduces(const tli_cutting *c, int32_t id) {
    const tl_node_rows *r = tli_find_rows(c->graph, id);
    return r && r->reduces;
}

// -- blocks of rows: rules --

static tli_rule tli_check_cut_input(const tli_cutting *c, int32_t id, int32_t k) {
    const tl_node_rows *r = tli_find_rows(c->graph, id);
    const tl_node_output *from = &c->graph->outputs[tli_cut_tensor(c, id, k)];
    const tl_node *maker = &c->graph->nodes[from->node];
    tl_relation relation = tli_find_row_relation(c->graph, id, k);
    int is_inner = c->cuts[from->node] == c->number;
    if (maker->dynamic) return TLI_RULE(CUT_NODE_IS_CALLED_AS_A_WHOLE);
    if (maker->state == TL_STATE_STATISTIC && !c->desc->inference) return TLI_RULE(CUT_READS_STATISTICS);
    if (maker->state == TL_STATE_PIECES) return TLI_RULE(CUT_READS_PIECES);
    if (tli_is_all_rows(&relation)) {
        if (is_inner) return TLI_RULE(CUT_READS_A_MEMBER_WHOLE);
        return tli_cut_trains(c) && maker->has_grad && r && !r->ordered && !c->desc->may_round
                   ? TLI_RULE(CUT_ADDS_IN_ANOTHER_ORDER)
                   : TLI_NO_RULE;
    }
    if (relation.kind != TL_RELATION_SAME) return TLI_RULE(CUT_READS_WINDOWS);
    return from->bytes % c->rows ? TLI_RULE(CUT_INPUT_HAS_OTHER_ROWS) : TLI_NO_RULE;
}

// The rows of the region are those of its first member that has any.
static tli_rule tli_check_cut_rows(tli_cutting *c, int32_t id) {
    const tl_node *node = &c->graph->nodes[id];
    const tl_node_rows *r = tli_find_rows(c->graph, id);
    uint64_t bytes = c->graph->outputs[node->first_output].bytes, a, b, rest;
    if (r && (r->rows != c->rows || r->axis != c->axis)) return TLI_RULE(CUT_NODE_HAS_OTHER_ROWS);
    if (!r && !node->takes_blocks) return TLI_RULE(CUT_NODE_IS_CALLED_AS_A_WHOLE);
    if (node->takes_blocks && (c->axis || bytes % c->rows || bytes / c->rows % 4))
        return TLI_RULE(CUT_NODE_HAS_OTHER_ROWS);
    if (!r) return TLI_NO_RULE;
    if (r->rows > TLI_MOST_ROWS) return TLI_RULE(CUT_HAS_TOO_MANY_ROWS);
    if (!r->reduces && bytes % c->rows) return TLI_RULE(ROWS_OUTPUT_0_MUST_DIVIDE_BY_THEM);  // of 4 bits
    for (a = c->unit, b = r->unit; b; rest = a % b, a = b, b = rest) {}  // Euclid's algorithm
    c->unit = c->unit / a * r->unit;    // divides rows as both do
    return TLI_NO_RULE;
}

static tli_rule tli_check_cut_member(tli_cutting *c, int32_t id) {
    const tl_node *node = &c->graph->nodes[id], *last = &c->graph->nodes[c->cut->last];
    tli_rule rule = TLI_NO_RULE;
    int32_t k;
    if (node->output_count != 1 || node->dynamic || node->once || !c->graph->outputs[node->first_output].bytes)
        return TLI_RULE(CUT_NODE_IS_CALLED_AS_A_WHOLE);
    if (node->has_grad != last->has_grad && !c->desc->inference) return TLI_RULE(CUT_NODE_HAS_ANOTHER_GRADIENT);
    if (node->fixed != last->fixed) return TLI_RULE(CUT_NODE_SCALES_OTHERWISE);
    if (node->keep && id != c->cut->last) return TLI_RULE(CUT_RESULT_IS_THE_LAST);
    if (tli_cut_reduces(c, id)) {
        if (id != c->cut->last) return TLI_RULE(CUT_REDUCES_IS_THE_LAST);
        if (!tli_find_rows(c->graph, id)->ordered && !c->desc->may_round)
            return TLI_RULE(CUT_ADDS_IN_ANOTHER_ORDER);
    }
    rule = tli_check_cut_rows(c, id);
    for (k = 0; k < node->input_count && !rule; k++) rule = tli_check_cut_input(c, id, k);
    return rule;
}

// Whether a member adds to the gradient of a tensor that it reads whole, and another one, or the same once
// more, adds to it, too: block after block these sums come in another order.
static tli_rule tli_check_cut_sums(const tli_cutting *c, int32_t at) {
    const tl_node *node = &c->graph->nodes[c->members[at].node];
    int32_t k, other, j;
    for (k = 0; k < node->input_count; k++) {
        int32_t tensor = tli_cut_tensor(c, c->members[at].node, k);
        if (tli_find_row_relation(c->graph, c->members[at].node, k).kind != TL_RELATION_WHOLE ||
            !tli_is_summed(c->graph, tensor))
            continue;
        for (other = 0; other < c->count; other++)
            for (j = 0; j < c->graph->nodes[c->members[other].node].input_count; j++)
                if ((other != at || j != k) && tli_cut_tensor(c, c->members[other].node, j) == tensor)
                    return TLI_RULE(CUT_ADDS_TWICE);
    }
    return TLI_NO_RULE;
}

// Find the members of a cut: all nodes from its first to its last but states and inputs.
static tl_result tli_find_cut_members(tli_cutting *c, const tl_row_cut *cut, int32_t number) {
    tli_rule rule;
    int32_t id, at;
    c->cut = cut;
    c->number = number;
    c->count = 0;
    c->rows = 0;
    c->unit = 1;
    c->axis = 0;
    if (cut->block_count < 1) return tli_fail_cut_node(c, cut->first, TLI_RULE(CUT_BLOCKS_MUST_BE_POSITIVE));
    for (id = cut->first; id <= cut->last; id++) {
        const tl_node_rows *r = tli_find_rows(c->graph, id);
        if (c->graph->nodes[id].is_input) continue;
        c->cuts[id] = number;
        c->places[id] = c->count;
        tli_zero(&c->members[c->count], sizeof *c->members);
        c->members[c->count++].node = id;
        if (r && !c->rows) {
            c->rows = r->rows;
            c->axis = r->axis;
        }
    }
    if (!c->rows) return tli_fail_cut_node(c, cut->last, TLI_RULE(CUT_NODE_IS_CALLED_AS_A_WHOLE));
    for (at = 0; at < c->count; at++) {
        rule = tli_check_cut_member(c, c->members[at].node);
        if (rule) return tli_fail_cut_node(c, c->members[at].node, rule);
    }
    for (at = 0; at < c->count && tli_cut_trains(c) && !c->desc->may_round; at++) {
        rule = tli_check_cut_sums(c, at);
        if (rule) return tli_fail_cut_node(c, c->members[at].node, rule);
    }
    return TL_OK;
}

// Find which tensors somebody outside of the region of their node reads, or nobody at all: the last reader
// tells, as those in the region come before the others.
static void tli_mark_outer(tli_cutting *c) {
    const tl_graph *graph = c->graph;
    int32_t id, k;
    for (k = 0; k < graph->tensor_count; k++) c->is_outer[k] = 1;
    for (id = 0; id < graph->node_count; id++)
        for (k = 0; k < graph->nodes[id].input_count; k++) {
            int32_t tensor = tli_cut_tensor(c, id, k), maker = graph->outputs[tensor].node;
            c->is_outer[tensor] = c->cuts[maker] < 0 || c->cuts[maker] != c->cuts[id];
        }
}

// -- blocks of rows: how many, and of which members again --

// The least number of rows whose bytes keep the alignment in every tensor that is cut where it lies.
static uint64_t tli_align_rows(const tli_cutting *c) {
    uint64_t unit = c->unit;
    int32_t at, k;
    for (at = 0; at < c->count && !c->axis; at++) {
        const tl_node *node = &c->graph->nodes[c->members[at].node];
        for (k = -1; k < node->input_count; k++) {
            int32_t tensor = k < 0 ? node->first_output : tli_cut_tensor(c, c->members[at].node, k);
            uint64_t row = c->graph->outputs[tensor].bytes / c->rows;
            if (k < 0 ? tli_cut_reduces(c, c->members[at].node)
                      : tli_reads_whole(c, c->members[at].node, k))
                continue;
            if (tli_cut_maker(c, tensor) && !c->is_outer[tensor]) continue;
            while (unit < c->rows && unit * row % c->alignment) unit *= 2;
        }
    }
    return unit;
}

// The most bytes of a row of what is cut in the calls of a member: operands, saved bytes, scratch.
static uint64_t tli_find_widest_row(const tli_cutting *c, int32_t id) {
    const tl_node *node = &c->graph->nodes[id];
    uint64_t most = node->fwork_bytes;
    int32_t k;
    if (tli_cut_trains(c)) {
        most = tli_larger_u64(most, tli_larger_u64(node->swork_bytes, node->bwork_bytes));
        most = tli_larger_u64(most, node->saved_bytes);
    }
    if (!tli_cut_reduces(c, id)) most = tli_larger_u64(most, c->graph->outputs[node->first_output].bytes);
    for (k = 0; k < node->input_count; k++)
        if (!tli_reads_whole(c, id, k))
            most = tli_larger_u64(most, c->graph->outputs[tli_cut_tensor(c, id, k)].bytes);
    return most / c->rows + (most % c->rows > 0);
}

// The most rows of a block, whole units of them, with which no operand that is cut exceeds a binding.
static uint64_t tli_find_bound_rows(const tli_cutting *c, uint64_t unit) {
    uint64_t most = 1, rows;
    int32_t at;
    if (!c->desc->binding_bytes) return UINT64_MAX;
    for (at = 0; at < c->count; at++)
        most = tli_larger_u64(most, tli_find_widest_row(c, c->members[at].node));
    rows = c->desc->binding_bytes / most / unit * unit;
    return rows ? rows : unit;
}

static void tli_choose_blocks(tli_cutting *c) {
    uint64_t unit = tli_align_rows(c), count = (uint64_t)c->cut->block_count, bound;
    uint64_t rows = (c->rows - 1) / count + 1;
    rows = (rows + unit - 1) / unit * unit;
    bound = tli_find_bound_rows(c, unit);
    if (rows > bound) rows = bound;
    c->block_rows = rows < c->rows ? rows : c->rows;
    c->block_count = (c->rows - 1) / c->block_rows + 1;
}

static void tli_describe_cut_member(const tli_cutting *c, int32_t at) {
    tl_row_member *m = &c->members[at];
    int32_t output = c->graph->nodes[m->node].first_output;
    m->shares = -1;
    m->rows = c->rows;
    m->block_rows = c->block_rows;
    m->row_bytes = tli_cut_reduces(c, m->node) ? 0 : c->graph->outputs[output].bytes / c->rows;
    m->ring_rows = c->is_outer[output] ? 0 : c->block_rows;
}

// Whether the region at hand is a loss alone, whose forward can wait for its backward.
static int tli_is_late_cut(const tli_cutting *c) {
    int32_t at, last = c->graph->nodes[c->cut->last].first_output, id;
    if (!tli_cut_trains(c) || !tli_cut_reduces(c, c->cut->last)) return 0;
    for (at = 0; at < c->count - 1; at++)
        if (c->is_outer[c->graph->nodes[c->members[at].node].first_output]) return 0;
    for (id = c->cut->last + 1; id < c->graph->node_count; id++)
        for (at = 0; at < c->graph->nodes[id].input_count; at++)
            if (tli_cut_tensor(c, id, at) == last) return 0;
    return 1;
}

static void tli_need_inputs(tli_cutting *c, int32_t id, int all) {
    const tl_node *node = &c->graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->input_count; k++)
        if (all || c->graph->inputs[node->first_input + k].needed) c->is_needed[tli_cut_tensor(c, id, k)] = 1;
}

// Find which members run again in the backward: those whose saved bytes it reads, and those of which it needs
// what nobody keeps. What is_needed says of outer tensors holds where their member does not run again.
static void tli_find_rows_again(tli_cutting *c) {
    int32_t at;
    c->is_late = tli_is_late_cut(c);
    for (at = 0; at < c->graph->tensor_count; at++) c->is_needed[at] = 0;
    if (!tli_cut_trains(c)) return;
    for (at = c->count - 1; at >= 0; at--) {
        tl_row_member *m = &c->members[at];
        int32_t output = c->graph->nodes[m->node].first_output;
        if (c->graph->outputs[output].needed) c->is_needed[output] = 1;
        m->again = c->is_late || c->graph->nodes[m->node].saved_bytes ||
                   (c->is_needed[output] && !c->is_outer[output]);
        if (m->again && tli_cut_reduces(c, m->node)) c->is_needed[output] = 1;     // it is made where it lies
        tli_need_inputs(c, m->node, m->again);
    }
}

// -- blocks of rows: turns, and where everything lies --

static void tli_add_row_turn(tl_rows_plan *plan, int32_t member, tl_step_kind kind) {
    tl_row_turn *turn = (tl_row_turn *)&plan->turns[plan->turn_count++];
    tli_zero(turn, sizeof *turn);
    turn->member = member;
    turn->kind = (uint8_t)kind;
}

// A buffer of the present list of turns, whose offset goes to *offset.
static void tli_add_cut_buffer(tli_cutting *c, uint64_t bytes, int32_t first, int32_t last, uint64_t *offset) {
    tl_layout_buffer *buffer = &c->buffers[c->buffer_count];
    *offset = 0;
    if (!bytes) return;
    tli_zero(buffer, sizeof *buffer);
    buffer->bytes = bytes;
    buffer->first_step = first;
    buffer->last_step = last;
    buffer->alignment = c->alignment;
    c->offsets[c->buffer_count++] = offset;
}

static tl_result tli_place_cut_buffers(tli_cutting *c, uint64_t *bytes) {
    tl_layout_desc desc;
    tl_layout_plan plan;
    tl_result result;
    int32_t i;
    tli_zero(&desc, sizeof desc);
    desc.buffers = c->buffers;
    desc.buffer_count = c->buffer_count;
    desc.work_limit = TLI_CUT_LAYOUT_WORK;
    *bytes = 0;
    result = tl_plan_layout(c->env, &desc, &plan);
    if (result) return result;
    for (i = 0; i < c->buffer_count; i++) *c->offsets[i] = plan.offsets[i];
    *bytes = plan.height_bytes;
    tl_free_layout_plan(c->env, &plan);
    return TL_OK;
}

// The scratch of a node's call for all rows.
static uint64_t tli_find_turn_work(const tl_node *node, int kind) {
    if (kind == TL_STEP_BACKWARD) return node->bwork_bytes;
    return kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes;
}

// The scratch of each turn from number `from` of the plan on.
static void tli_add_turn_scratch(tli_cutting *c, tl_rows_plan *plan, int32_t from) {
    int32_t k;
    for (k = from; k < plan->turn_count; k++) {
        tl_row_turn *turn = (tl_row_turn *)&plan->turns[k];
        const tl_node *node = &c->graph->nodes[c->members[turn->member].node];
        turn->work_bytes = tli_row_scratch(tli_find_turn_work(node, turn->kind), c->block_rows, c->rows);
        tli_add_cut_buffer(c, turn->work_bytes, k - from, k - from, &turn->work_offset);
    }
}

// The last turn, of those in `turns`, in which members read a tensor: of all with `all`, else those whose
// backward does. At least `last`.
static int32_t tli_find_last_turn(const tli_cutting *c, int32_t tensor, const int32_t *turns, int all,
                                  int32_t last) {
    int32_t at, k;
    for (at = 0; at < c->count; at++) {
        const tl_node *node = &c->graph->nodes[c->members[at].node];
        for (k = 0; k < node->input_count; k++)
            if (tli_cut_tensor(c, c->members[at].node, k) == tensor && turns[at] > last &&
                (all || c->graph->inputs[node->first_input + k].needed))
                last = turns[at];
    }
    return last;
}

static tl_result tli_plan_forward_turns(tli_cutting *c, tl_rows_plan *plan, uint64_t *bytes) {
    int32_t at, from = plan->turn_count;
    c->buffer_count = 0;
    for (at = 0; at < c->count && !c->is_late; at++) {
        c->turns[at] = at;
        tli_add_row_turn(plan, at, TL_STEP_FORWARD);
    }
    for (at = 0; at < c->count && !c->is_late; at++) {
        tl_row_member *m = &c->members[at];
        tli_add_cut_buffer(c, m->ring_rows * m->row_bytes, at,
                           tli_find_last_turn(c, c->graph->nodes[m->node].first_output, c->turns, 1, at),
                           &m->ring_offset);
    }
    tli_add_turn_scratch(c, plan, from);
    return tli_place_cut_buffers(c, bytes);
}

// The first turn in which the gradient of a tensor is added to: that of the backward of its last reader.
static int32_t tli_find_first_sum(const tli_cutting *c, int32_t tensor, const int32_t *backwards, int32_t own) {
    int32_t at, k, first = own;
    for (at = 0; at < c->count; at++)
        for (k = 0; k < c->graph->nodes[c->members[at].node].input_count; k++)
            if (tli_cut_tensor(c, c->members[at].node, k) == tensor && backwards[at] < first)
                first = backwards[at];
    return first;
}

// What a member has in a backward: its rows made again, its saved bytes, the gradient of its rows.
static void tli_add_backward_buffers(tli_cutting *c, tl_row_member *m, const int32_t *again,
                                     const int32_t *backwards, int32_t at) {
    const tl_node *node = &c->graph->nodes[m->node];
    int32_t tensor = node->first_output, last = again[at];
    if (m->again) {
        last = tli_find_last_turn(c, tensor, again, 1, last);
        last = tli_find_last_turn(c, tensor, backwards, 0, last);
        if (c->graph->outputs[tensor].needed && backwards[at] > last) last = backwards[at];
        tli_add_cut_buffer(c, m->row_bytes * m->block_rows, again[at], last, &m->again_offset);
        tli_add_cut_buffer(c, node->saved_bytes / m->rows * m->block_rows, again[at], backwards[at],
                           &m->saved_offset);
    }
    if (m->ring_rows)
        tli_add_cut_buffer(c, m->row_bytes * m->block_rows,
                           tli_find_first_sum(c, tensor, backwards, backwards[at]), backwards[at],
                           &m->gradient_offset);
}

static tl_result tli_plan_backward_turns(tli_cutting *c, tl_rows_plan *plan, uint64_t *bytes) {
    int32_t at, from = plan->turn_count, *again = c->turns + c->count, *backwards = again + c->count;
    *bytes = 0;
    if (!tli_cut_trains(c)) return TL_OK;
    c->buffer_count = 0;
    for (at = 0; at < c->count; at++) {
        again[at] = -1;
        if (!c->members[at].again) continue;
        again[at] = plan->turn_count - from;
        tli_add_row_turn(plan, at, c->graph->nodes[c->members[at].node].saved_bytes ? TL_STEP_FORWARD_SAVE
                                                                               : TL_STEP_FORWARD);
    }
    for (at = c->count - 1; at >= 0; at--) {
        backwards[at] = plan->turn_count - from;
        tli_add_row_turn(plan, at, TL_STEP_BACKWARD);
    }
    for (at = 0; at < c->count; at++) tli_add_backward_buffers(c, &c->members[at], again, backwards, at);
    tli_add_turn_scratch(c, plan, from);
    return tli_place_cut_buffers(c, bytes);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
