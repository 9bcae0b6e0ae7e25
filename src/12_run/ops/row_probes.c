#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- rehearsal: blocks of rows --
//
// A node with rows is called for blocks of them, in order, as regions call it. What a call may not read holds
// signalling NaN meanwhile:
//
//     input 1:1        |  NaN  |block|  NaN    |    window     |  NaN |under block|NaN|    whole  |all of it|
//
// What all blocks have made together is what one call for all rows makes: to the bit, also where it is added
// up, if the node says ordered. Nodes with windows, whose calls find all operands whole, have their forward
// tried alone.

typedef struct tli_row_probe {
    tli_probe *p;
    const tl_graph *graph;
    const tl_node_rows *rows;
    int        has_windows;
    uint64_t   block;           // rows of a call
    uint64_t   first, count;    // of the call at hand
} tli_row_probe;

static const tl_relation *tli_find_probed_relation(const tli_row_probe *b, const tli_shadow *s) {
    int is_input = s->kind == TL_OPERAND_INPUT || s->kind == TL_OPERAND_INPUT_GRADIENT;
    if (!is_input || s->missing) return NULL;
    return &b->graph->attributes->relations[b->rows->first_relation + s->index];
}

// The bytes of a row of an operand that goes by rows; 0 = it is whole in every call.
static uint64_t tli_find_probed_row(const tli_row_probe *b, const tli_shadow *s) {
    const tl_relation *relation = tli_find_probed_relation(b, s);
    if (s->missing || s->kind == TL_OPERAND_SCRATCH) return 0;
    if (s->kind == TL_OPERAND_SAVED) return s->bytes / b->rows->rows;
    if (relation) return relation->kind == TL_RELATION_SAME ? s->bytes / b->rows->rows : 0;
    return b->rows->reduces || s->index ? 0 : s->bytes / b->rows->rows;
}

// Whether a call finds the rows of an operand alone, where they begin.
static int tli_is_probed_cut(const tli_row_probe *b, const tli_shadow *s) {
    if (s->kind == TL_OPERAND_SAVED) return 1;
    return !b->has_windows && !b->rows->axis && tli_find_probed_row(b, s) > 0;
}

// The rows of an input under windows that a call may read; those of an input without rows: all.
static void tli_find_rows_under(const tli_row_probe *b, const tli_shadow *s, const tl_relation *relation,
                                uint64_t *first, uint64_t *end, uint64_t *row_bytes) {
    int32_t tensor = b->graph->inputs[b->p->node->first_input + s->index].tensor;
    const tl_node_rows *from = tli_find_rows(b->graph, b->graph->outputs[tensor].node);
    *first = *end = *row_bytes = 0;
    if (!from || tli_is_all_rows(relation) || s->bytes % from->rows) return;
    *row_bytes = s->bytes / from->rows;
    *first = tli_first_row_under(relation, b->first);
    *end = tli_end_under(relation, b->first + b->count, from->rows);
}

// Fill what the call may not read of an operand, and put back what it may.
static void tli_hide_rows(const tli_row_probe *b, const tli_shadow *s) {
    const tl_relation *relation = tli_find_probed_relation(b, s);
    uint64_t row = tli_find_probed_row(b, s), first = b->first, end = b->first + b->count;
    char *at = b->p->work + s->at;
    if (s->access != TLI_SHADOW_READ || s->kind == TL_OPERAND_INPUT_GRADIENT) return;
    if (relation && !row) tli_find_rows_under(b, s, relation, &first, &end, &row);
    if (!row) return;
    tli_fill_words(at, s->bytes, tli_fill_word(TLI_FILL_SIGNALLING));
    tli_copy(at + first * row, b->p->before + s->at + first * row, (size_t)((end - first) * row));
}

// Describe the call at hand: operands cut to its rows, with its share of scratch.
static void tli_describe_block(const tli_row_probe *b, const tli_change *change) {
    tli_probe *p = b->p;
    int32_t i;
    tli_describe_probe(p, change);
    for (i = 0; i < p->count; i++) {
        tli_shadow shadow = p->shadows[i], *s = &shadow;
        tl_operand *operand = &p->operands[i];
        uint64_t row;
        shadow.bytes = p->shadows[shadow.same].bytes;   // of a gradient that another input has, too
        row = tli_find_probed_row(b, s);
        tli_hide_rows(b, &p->shadows[i]);
        if (s->kind == TL_OPERAND_SCRATCH)
            operand->range.bytes = tli_row_scratch(operand->range.bytes, b->count, b->rows->rows);
        if (!row || !operand->range.bytes || !tli_is_probed_cut(b, s)) continue;
        operand->host = (char *)operand->host + b->first * row;
        operand->range.offset += b->first * row;
        operand->range.bytes = b->count * row;
        if (s->kind == TL_OPERAND_SAVED) continue;
        operand->rows = b->count;
        operand->shift = (b->count - b->first % b->count) % b->count;
        operand->row_bytes = row;
    }
    p->call.saved = p->operands[p->count - 2];
    p->call.scratch = p->operands[p->count - 1];
    p->call.by_rows = 1;
    p->call.first = b->first;
    p->call.count = b->count;
    p->call.total = b->rows->rows;
}

// How many rows a call has: a third, in an odd number of units, and so few that whoever makes all of them in
// the last call stays in the room behind an operand. 0 = they cannot be cut.
static uint64_t tli_choose_block(const tli_row_probe *b) {
    uint64_t unit = b->rows->unit, most = 1, count;
    int32_t i;
    for (i = 0; i < b->p->count; i++) most = tli_larger_u64(most, tli_find_probed_row(b, &b->p->shadows[i]));
    count = b->rows->rows / 3 < TLI_PROBE_ROOM / most ? b->rows->rows / 3 : TLI_PROBE_ROOM / most;
    count = count > unit ? count - count % unit : unit;
    if (count / unit % 2 == 0) count -= unit;
    return count < b->rows->rows ? count : 0;
}

// Whether the floats of two ranges differ by no more than roundings do.
static int tli_differ_by_rounding(const char *a, const char *b, uint64_t bytes) {
    uint64_t at;
    for (at = 0; at + 4 <= bytes; at += 4) {
        float x, y, most;
        tli_copy(&x, a + at, sizeof x);
        tli_copy(&y, b + at, sizeof y);
        most = (x < 0 ? -x : x) + (y < 0 ? -y : y) + 1e-3f;
        if (!(x - y <= most * 1e-3f && y - x <= most * 1e-3f)) return 0;
    }
    return 1;
}

// Whether an operand is added up from block to block. A gradient may be that of several inputs.
static int tli_is_probed_sum(const tli_row_probe *b, int32_t at) {
    tli_shadow shadow;
    int32_t i;
    for (i = 0; i < b->p->count; i++) {
        shadow = b->p->shadows[i];
        if (shadow.same != at) continue;
        shadow.bytes = b->p->shadows[at].bytes;
        if (!tli_find_probed_row(b, &shadow)) return 1;
    }
    return 0;
}

// Compare what the blocks have made with what the plain call made. What is added up may be rounded otherwise,
// unless the node says ordered. Saved bytes are the kernel's own business.
static void tli_compare_blocks(const tli_row_probe *b, uint32_t word) {
    tli_probe *p = b->p;
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        const char *made = p->work + s->at, *plain = p->after + s->at;
        int is_sum = tli_is_probed_sum(b, i);
        if (!tli_is_effect(s)) continue;
        if (s->kind != TL_OPERAND_SAVED && !tli_same_bytes(made, plain, s->bytes)) {
            int is_rounding = is_sum && tli_differ_by_rounding(made, plain, s->bytes);
            if (is_rounding && !b->rows->ordered) continue;
            tli_note_finding(p, is_rounding ? TL_FINDING_NOT_ORDERED : TL_FINDING_BLOCK_DIFFERS, s, 0);
            return;
        }
        if (tli_holds_word(made + s->bytes, s->end - s->at - s->bytes, word)) continue;
        tli_note_finding(p, TL_FINDING_BLOCK_DIFFERS, s, 0);
        return;
    }
    i = b->rows->ordered ? tli_move_probed(p, p->state_after, TLI_VARIABLES_COMPARE) : -1;
    if (i >= 0) tli_note_variable(p, TL_FINDING_BLOCK_DIFFERS, i);
}

// The saved bytes of the block, as a forward for its rows makes them; its output goes to spare memory.
static tl_result tli_save_block(const tli_row_probe *b, char *spare) {
    tli_probe *p = b->p;
    tl_kernel_call whole = p->call;
    tl_operand output;
    uint64_t bytes = b->graph->outputs[p->node->first_output].bytes, row = bytes / b->rows->rows;
    int is_whole = b->rows->axis || b->rows->reduces;
    tl_result result;
    output = p->call.outputs[0];
    output.host = spare;
    output.range.block = 1;
    output.range.bytes = is_whole ? bytes : b->count * row;
    output.rows = is_whole ? 0 : b->count;
    output.shift = (b->count - b->first % b->count) % b->count;
    output.row_bytes = row;
    p->call.kind = TL_STEP_FORWARD_SAVE;
    p->call.outputs = &output;
    p->call.scratch.range.bytes = tli_row_scratch(p->node->swork_bytes, b->count, b->rows->rows);
    p->call.scratch.host = spare + bytes;
    result = (p->step->kernel->forward)(&p->call, p->step->kernel->user);
    p->call = whole;
    return result ? tli_fail_rehearsed_kernel(p->r, &p->call, result) : TL_OK;
}

// Make the saved bytes of a backward's block, which needs all inputs as the pass has them.
static tl_result tli_save_for_backward(const tli_row_probe *b) {
    tli_probe *p = b->p;
    uint64_t bytes = b->graph->outputs[p->node->first_output].bytes;
    char *spare;
    tl_result result;
    int32_t i;
    if (p->step->call.kind != TL_STEP_BACKWARD || !p->node->saved_bytes) return TL_OK;
    if (!tli_add_u64(bytes, p->node->swork_bytes, &bytes)) bytes = UINT64_MAX;
    spare = (char *)tli_alloc_array(p->r->env, bytes, 1);
    if (!spare)
        return tli_fail(p->r->env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN), TLI_RULE(REHEARSAL_NO_MEMORY));
    for (i = 0; i < p->node->input_count; i++) {    // also those that the backward does not read
        const tli_shadow *s = &p->shadows[i];
        if (p->operands[i].range.bytes) continue;
        p->operands[i].host = p->before + s->at;
        if (tli_is_probed_cut(b, s))
            p->operands[i].host = p->before + s->at + b->first * tli_find_probed_row(b, s);
    }
    result = tli_save_block(b, spare);
    tli_release(p->r->env, spare);
    return result;
}

// A call may use its share of the scratch, and no more.
static void tli_check_block_scratch(const tli_row_probe *b, uint32_t word) {
    const tli_shadow *s = &b->p->shadows[b->p->count - 1];
    uint64_t share = tli_round_bytes(tli_row_scratch(s->bytes, b->count, b->rows->rows), 4);     // whole words
    if (share < s->bytes && !tli_holds_word(b->p->work + s->at + share, s->bytes - share, word))
        tli_note_finding(b->p, TL_FINDING_BEYOND_WRITTEN, s, share);
}

// Whether a backward adds to the gradient of what is read whole for another input, too. No region calls it in
// blocks, because these sums would come in another order.
static int tli_adds_whole_twice(const tli_row_probe *b) {
    const tl_node_input *inputs = &b->graph->inputs[b->p->node->first_input];
    const tl_relation *relations = &b->graph->attributes->relations[b->rows->first_relation];
    int32_t k, j;
    for (k = 0; k < b->p->node->input_count; k++)
        for (j = 0; j < b->p->node->input_count && relations[k].kind == TL_RELATION_WHOLE; j++)
            if (j != k && inputs[j].tensor == inputs[k].tensor &&
                tli_gets_gradient(b->graph, inputs[k].tensor)) return 1;
    return 0;
}

static int tli_can_probe_blocks(const tli_row_probe *b) {
    const tl_node *node = b->p->node;
    int32_t k;
    if (!b->rows || node->takes_blocks || node->output_count != 1 || node->once || b->p->plain) return 0;
    for (k = 0; k < node->input_count; k++) {
        const tl_node *maker = &b->graph->nodes[tli_find_maker(b->graph, node, k)];
        if (maker->state == TL_STATE_STATISTIC || maker->state == TL_STATE_PIECES) return 0;
    }
    if (b->p->step->call.kind != TL_STEP_BACKWARD) return 1;
    return !b->has_windows && !tli_adds_whole_twice(b);
}

// -- rehearsal: parts --
//
// A part of a tensor is read by one node alone, says TL_RELATION_PART. So where a backward adds to the gradient
// of such a tensor, no other one does. A byte for each word of it says who has added there.

enum { TLI_PART_ADDED = 1, TLI_PART_READER_ADDED = 2 };

static int tli_reads_part(const tl_graph *graph, int32_t id, int32_t k) {
    const tl_node_rows *rows = tli_find_rows(graph, id);
    return rows && graph->attributes->relations[rows->first_relation + k].kind == TL_RELATION_PART;
}

// Find the places of tensors that a node reads a part of, and how many bytes these are: [tensor_count + 1]; of
// other tensors there are none.
static void tli_place_row_parts(const tl_graph *graph, uint64_t *places) {
    uint64_t sum = 0, words;
    int32_t id, k;
    for (k = 0; k <= graph->tensor_count; k++) places[k] = 0;
    for (id = 0; id < graph->node_count; id++)
        for (k = 0; k < graph->nodes[id].input_count; k++) {
            int32_t tensor = graph->inputs[graph->nodes[id].first_input + k].tensor;
            if (tli_reads_part(graph, id, k)) places[tensor] = 1;
        }
    for (k = 0; k <= graph->tensor_count; k++) {
        words = k < graph->tensor_count && places[k] ? graph->outputs[k].bytes / 4 : 0;
        places[k] = sum;
        sum = tli_add_capped(sum, words);
    }
}

// Whether a node reads a tensor as a part, and not otherwise as well.
static int tli_reads_parts_alone(const tl_graph *graph, int32_t id, int32_t tensor) {
    int32_t k;
    for (k = 0; k < graph->nodes[id].input_count; k++)
        if (graph->inputs[graph->nodes[id].first_input + k].tensor == tensor && !tli_reads_part(graph, id, k))
            return 0;
    return 1;
}

// Note where a backward has added to the gradients of tensors with parts.
static void tli_check_parts(tli_probe *p) {
    const tl_graph *graph = p->run->graph;
    int32_t i, id = p->step->call.node;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        int32_t tensor;
        uint8_t *marks, mark, other;
        uint64_t at;
        if (s->kind != TL_OPERAND_INPUT_GRADIENT || s->missing || s->same != i || !s->bytes) continue;
        tensor = graph->inputs[p->node->first_input + s->index].tensor;
        if (p->r->part_places[tensor] == p->r->part_places[tensor + 1]) continue;
        marks = p->r->parts + p->r->part_places[tensor];
        other = tli_reads_parts_alone(graph, id, tensor) ? TLI_PART_ADDED : TLI_PART_READER_ADDED;
        mark = other == TLI_PART_ADDED ? TLI_PART_ADDED | TLI_PART_READER_ADDED : TLI_PART_ADDED;
        for (at = 0; at + 4 <= s->bytes; at += 4) {
            if (tli_same_bytes(p->before + s->at + at, p->after + s->at + at, 4)) continue;
            if (marks[at / 4] & other) { tli_note_finding(p, TL_FINDING_PART_SHARED, s, at); break; }
            marks[at / 4] |= mark;
        }
    }
}

// -- rehearsal: calls for blocks --

// The same bytes come of calls for blocks of rows as of one call for all.
static tl_result tli_probe_row_blocks(tli_probe *p) {
    tli_change change = tli_change_of(TLI_PROBE_UNDEFINED, TLI_FILL_SIGNALLING);
    uint32_t word = tli_fill_word(change.fill);
    tl_result result = TL_OK;
    tli_row_probe b;
    int32_t k;
    tli_zero(&b, sizeof b);
    b.p = p;
    b.graph = p->run->graph;
    b.rows = tli_find_rows(b.graph, p->step->call.node);
    for (k = 0; k < p->node->input_count && b.rows; k++) {
        int32_t kind = b.graph->attributes->relations[b.rows->first_relation + k].kind;
        b.has_windows |= kind == TL_RELATION_WINDOW || kind == TL_RELATION_UP;
    }
    if (!tli_can_probe_blocks(&b)) return TL_OK;
    b.block = tli_choose_block(&b);
    if (!b.block) return TL_OK;
    tli_apply_change(p, &change);
    tli_fill_guards(p, p->work, 0, TLI_GUARD_BOTH, word);
    for (; b.first < b.rows->rows && !result; b.first += b.count) {
        b.count = b.rows->rows - b.first < b.block ? b.rows->rows - b.first : b.block;
        tli_describe_block(&b, &change);
        tli_fill_shadow(p, &p->shadows[p->count - 1], change.fill);     // scratch is undefined again
        result = tli_save_for_backward(&b);
        if (!result) result = tli_call_probed(p);
        if (!result) tli_check_block_scratch(&b, word);
    }
    if (!result) tli_compare_blocks(&b, word);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
