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

// The node of the run's graph whose kernel the call at hand calls.
static int32_t tli_find_called(const tl_run *run) {
    return run->at.call.rows.is_update ? run->at.call.rows.state : run->at.last.node;
}

// Go on with the next call of the step.
static void tli_take_piece(tl_run *run) {
    tli_call *call = &run->at.call;
    call->rows = tli_find_state_piece(run->graph, run->at.last.node, ++call->piece);
    call->first = (tl_size)call->rows.first;
    call->count = (tl_size)call->rows.count;
    call->total = (tl_size)run->graph->nodes[call->rows.state].weight_rows;
    call->node = tli_find_member(run, tli_find_called(run), 0);
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
    return tli_is_update(run, &run->at.last) || run->at.call.rows.is_update;
}

// The bytes of so many rows of a tensor of the state at hand.
static tl_size tli_find_row_bytes(const tl_run *run, int32_t tensor, int32_t rows) {
    tl_size bytes = (tl_size)run->graph->outputs[tensor].bytes;
    return bytes / (tl_size)run->graph->nodes[run->at.call.rows.state].weight_rows * (tl_size)rows;
}

#ifdef TL_ONLY_TABLES
static tl_size tli_find_piece_alignment(const tl_run *run) { (void)run; return TLI_PIECE_ALIGNMENT; }
#else
static tl_size tli_find_piece_alignment(const tl_run *run) {
    return tli_larger_u64(TLI_PIECE_ALIGNMENT, run->limits.alignment_bytes);
}
#endif

// Where the piece of the gradient lies, and in *work what is left of the scratch for the kernels.
static tl_range tli_find_piece_range(const tl_run *run, tl_range *work) {
    const tli_state_piece *piece = &run->at.call.rows;
    const tl_node *state = &run->graph->nodes[piece->state];
    tl_range range;
    *work = *tli_held_range(run, &run->at.call.scratch, work);
    range = *work;
    work->bytes -= tli_find_row_bytes(run, state->first_output, state->piece_rows);
    work->bytes -= work->bytes % tli_find_piece_alignment(run);
    range.offset += work->bytes;
    range.bytes = tli_find_row_bytes(run, state->first_output, piece->count);
    return range;
}

// The operands of the call that makes a piece: those of the backward, of its gradients the piece alone.
static void tli_describe_gradient(tl_run *run, const tl_range *gradient, const tl_range *none) {
    int32_t count = run->graph->nodes[run->at.last.node].input_count, k;
    tl_range room;
    tli_describe_needed(run);
    for (k = 0; k < count; k++) tli_call_operand(run, k == run->at.call.rows.input ? gradient : none, 1);
    tli_call_operand(run, tli_saved_range(run, run->at.last.node, &room), 0);
}

// The operands of the call that updates a piece: its rows of the weight and the moments, and the gradient.
static void tli_describe_update(tl_run *run, const tl_range *gradient, const tl_range *none) {
    const tli_state_piece *piece = &run->at.call.rows;
    const tl_node *state = &run->graph->nodes[piece->state];
    int32_t k, end = state->first_output + state->output_count;
    for (k = state->first_output; k < end; k++) {
        tl_range rows;
        rows = *tli_tensor_range(run, k, &rows);
        rows.offset += tli_find_row_bytes(run, k, piece->first);
        rows.bytes = tli_find_row_bytes(run, k, piece->count);
        tli_call_operand(run, &rows, 1);
    }
    for (k = 0; k <= state->output_count; k++) tli_call_operand(run, k ? none : gradient, 0);   // and saved
}

// Describe the operands of the call at hand, not the first of its step, and clear a gradient that it adds to.
static tl_result tli_describe_piece(tl_run *run) {
    tl_range none, work, gradient = tli_find_piece_range(run, &work);
    tli_zero(&none, sizeof none);
    if (run->at.call.rows.is_update) tli_describe_update(run, &gradient, &none);
    else tli_describe_gradient(run, &gradient, &none);
    tli_call_operand(run, work.bytes ? &work : &none, 1);
    return run->at.call.rows.is_update ? TL_OK : tli_clear_range(run, &gradient);
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
