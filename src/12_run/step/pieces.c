#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: states in pieces --
//
// The backward of a node that reads a state in pieces is several calls of two kernels. Its own makes all other
// gradients first. Then come the states in the order of its inputs, and of each the rows, piece by piece: its
// kernel adds to a piece that was cleared, and the kernel of the state updates the same rows from it:
//
//     calls      B v: dx   B v: dw 0..3   B w: 0..3   B v: dw 4..7   B w: 4..7   B v: dw 8, 9   B w: 8, 9
//     scratch    |      of both kernels      | piece of dw |
//
// The piece stands at the end of the scratch, at a multiple of TLI_PIECE_ALIGNMENT and of the backend's
// alignment.

// How many calls a step has.
static int32_t tli_count_step_calls(const tl_run *run) {
    return run->at.last.kind == TL_STEP_BACKWARD ? tli_count_piece_calls(run->graph, run->at.last.node) : 1;
}

// What the call at hand is for; not the first of the step.
static tli_state_piece tli_find_call_piece(const tl_run *run) {
    return tli_find_state_piece(run->graph, run->at.last.node, run->at.call.piece);
}

// The node of the run's graph whose kernel the call at hand calls.
static int32_t tli_find_called(const tl_run *run) {
    tli_state_piece piece;
    if (!run->at.call.piece) return run->at.last.node;
    piece = tli_find_call_piece(run);
    return piece.is_update ? piece.state : run->at.last.node;
}

// Go on with the next call of the step.
static void tli_take_piece(tl_run *run) {
    tli_call *call = &run->at.call;
    tli_state_piece piece;
    call->piece++;
    piece = tli_find_call_piece(run);
    call->first = (tl_size)piece.first;
    call->count = (tl_size)piece.count;
    call->total = (tl_size)run->graph->nodes[piece.state].weight_rows;
    call->node = tli_find_member(run, piece.is_update ? piece.state : run->at.last.node, 0);
}

// How many states a step updates.
static int32_t tli_count_updates(const tl_run *run, const tl_step *step) {
    const tl_node *node = &run->graph->nodes[step->node];
    int32_t count = tli_is_update(run, step), k;
    for (k = 0; k < node->input_count && step->kind == TL_STEP_BACKWARD; k++)
        count += tli_find_pieces(run->graph, node, k) != NULL;
    return count;
}

static int tli_calls_update(const tl_run *run) {
    return tli_is_update(run, &run->at.last) || (run->at.call.piece && run->at.call.piece % 2 == 0);
}

// The rows of a piece in a tensor of its state.
static tl_range tli_piece_of(const tl_run *run, const tli_state_piece *piece, int32_t tensor, tl_range whole) {
    uint64_t rows = (uint64_t)run->graph->nodes[piece->state].weight_rows;
    tl_size row = (tl_size)(run->graph->outputs[tensor].bytes / rows);
    whole.offset += (tl_size)piece->first * row;
    whole.bytes = (tl_size)piece->count * row;
    return whole;
}

#ifdef TL_ONLY_TABLES
static tl_size tli_find_piece_alignment(const tl_run *run) { (void)run; return TLI_PIECE_ALIGNMENT; }
#else
static tl_size tli_find_piece_alignment(const tl_run *run) {
    return tli_larger_u64(TLI_PIECE_ALIGNMENT, run->limits.alignment_bytes);
}
#endif

// Where the piece of the gradient lies, and in *work what is left of the scratch for the kernels.
static tl_range tli_find_piece_range(const tl_run *run, const tli_state_piece *piece, tl_range *work) {
    const tl_node *state = &run->graph->nodes[piece->state];
    tl_size alignment = tli_find_piece_alignment(run);
    tl_range room, range;
    *work = *tli_held_range(run, &run->at.call.scratch, &room);
    range = *work;
    work->bytes -= (tl_size)tli_find_piece_bytes(run->graph, state);
    work->bytes -= work->bytes % alignment;
    range.offset += work->bytes;
    range.bytes = (tl_size)piece->count * (tl_size)(tli_find_piece_bytes(run->graph, state) /
                                                     (uint64_t)state->piece_rows);
    return range;
}

static void tli_describe_work(tl_run *run, const tl_range *work) {
    tl_range none;
    tli_zero(&none, sizeof none);
    tli_call_operand(run, work->bytes ? work : &none, 1);
}

// The operands of the call that makes a piece: those of the backward, of its gradients the piece alone.
static void tli_describe_gradient(tl_run *run, const tli_state_piece *piece, const tl_range *gradient) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    tl_range none, room;
    int32_t k;
    tli_zero(&none, sizeof none);
    tli_describe_needed(run);
    for (k = 0; k < node->input_count; k++) tli_call_operand(run, k == piece->input ? gradient : &none, 1);
    tli_call_operand(run, tli_saved_range(run, run->at.last.node, &room), 0);
}

// The operands of the call that updates a piece: its rows of the weight and the moments, and the gradient.
static void tli_describe_update(tl_run *run, const tli_state_piece *piece, const tl_range *gradient) {
    const tl_node *state = &run->graph->nodes[piece->state];
    tl_range none, room;
    int32_t k, end = state->first_output + state->output_count;
    tli_zero(&none, sizeof none);
    for (k = state->first_output; k < end; k++) {
        tl_range rows = tli_piece_of(run, piece, k, *tli_tensor_range(run, k, &room));
        tli_call_operand(run, &rows, 1);
    }
    for (k = state->first_output; k < end; k++)
        tli_call_operand(run, k == state->first_output ? gradient : &none, 0);
    tli_call_operand(run, &none, 0);
}

// Describe the operands of the call at hand, not the first of its step, and clear a gradient that it adds to.
static tl_result tli_describe_piece(tl_run *run) {
    tli_state_piece piece = tli_find_call_piece(run);
    tl_range work, gradient = tli_find_piece_range(run, &piece, &work);
    if (piece.is_update) tli_describe_update(run, &piece, &gradient);
    else tli_describe_gradient(run, &piece, &gradient);
    tli_describe_work(run, &work);
    return piece.is_update ? TL_OK : tli_clear_range(run, &gradient);
}

#ifndef TL_ONLY_TABLES
// The step writes weights and moments, whatever its first call does.
static void tli_note_pieces(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->at.last.node];
    tl_range room;
    int32_t k, i;
    for (k = 0; k < node->input_count && run->at.call.pieces > 1; k++) {
        const tl_node *state = tli_find_pieces(graph, node, k);
        for (i = 0; state && i < state->output_count; i++)
            tli_note_write(run, tli_tensor_range(run, state->first_output + i, &room));
    }
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
