#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_ONLY_TABLES) && !defined(TL_NO_PLANNERS)

// -- blocks of rows --
//
// A region of tl_cut_rows takes one block of rows after the other through its turns. The first two entries of
// rows_made are the first row of the block at hand, and the turn. A call has of each tensor that is cut the
// rows of the block alone:
//
//     outside    |..|rows|.....|     a part of the tensor, or of its gradient
//     inside     |rows|              of the scratch: where a forward makes them, where they are made again, and
//                                    where their gradient is

// The turns of the step at hand, and how many there are.
static const tl_row_turn *tli_step_turns(const tl_run *run, int32_t *count) {
    const tl_rows_plan *rows = run->rows;
    int32_t id = run->at.last.node, forward = rows->forward_turns[id];
    const tl_row_turn *turns = rows->turns + rows->first_turns[id];
    if (run->at.last.kind != TL_STEP_BACKWARD) {
        *count = forward;
        return turns;
    }
    *count = rows->first_turns[id + 1] - rows->first_turns[id] - forward;
    return turns + forward;
}

static const tl_row_turn *tli_turn_at_hand(const tl_run *run) {
    int32_t count;
    return tli_step_turns(run, &count) + run->rows_made[1];
}

// Describe the call of the turn at hand. Of the two values of call->turn the first stands for all turns of a
// block but the last one.
static void tli_choose_row_turn(tl_run *run) {
    const tl_row_member *members = tli_region_members(run, run->at.last.node), *m;
    tli_call *call = &run->at.call;
    uint64_t first = run->rows_made[0], rows, each;
    int32_t count;
    const tl_row_turn *turn = tli_step_turns(run, &count) + run->rows_made[1];
    m = &members[count ? turn->member : 0];
    each = tli_count_row_elements(run, m);
    rows = m->rows - first < m->block_rows ? m->rows - first : m->block_rows;
    call->member = count ? turn->member : 0;
    call->node = m->node;
    call->kind = count ? (tl_step_kind)turn->kind : TL_STEP_FORWARD;
    call->first = first * each;
    call->count = (count ? rows : m->rows) * each;
    call->total = m->rows * each;
    call->turn = !count || run->rows_made[1] + 1 == (uint64_t)count;
}

static void tli_take_row_turn(tl_run *run) {
    int32_t count;
    (void)tli_step_turns(run, &count);
    if (++run->rows_made[1] == (uint64_t)count) {
        run->rows_made[1] = 0;
        run->rows_made[0] += tli_region_members(run, run->at.last.node)->block_rows;
    }
    tli_choose_row_turn(run);
}

// Whether a step of a region makes no call: the forward of a loss that its backward makes.
static int tli_has_no_turns(const tl_run *run) {
    int32_t count = 1;
    if (tli_has_row_turns(run, run->at.last.node)) (void)tli_step_turns(run, &count);
    return !count;
}

// -- blocks of rows: operands --

// Add an operand whose rows of the call are all that is there, from `range` on.
static void tli_block_operand(tl_run *run, tl_range range, uint64_t row_bytes, int is_elements, int writes) {
    tli_call *call = &run->at.call;
    tl_operand *operand = &call->operands[call->operand_count];
    uint64_t each = is_elements ? row_bytes / 4 : 1, rows = call->count / each;
    range.bytes = rows * row_bytes;
    tli_call_operand(run, &range, writes);
    if (is_elements) return;
    operand->rows = rows;
    operand->shift = (rows - call->first % rows) % rows;
    operand->row_bytes = row_bytes;
}

static int32_t tli_find_row_axis(const tl_graph *graph, int32_t node) {
    const tl_node_rows *r = tli_find_rows(graph, node);
    return r ? r->axis : 0;
}

// Add an operand that lies outside: a tensor or its gradient, of which the rows of the call, or all.
static void tli_outside_operand(tl_run *run, tl_range range, uint64_t bytes, int is_cut, int writes) {
    const tl_row_member *m = &tli_region_members(run, run->at.last.node)[run->at.call.member];
    const tl_node *node = &run->members.graph->nodes[m->node];
    uint64_t row_bytes = bytes / m->rows, first = run->at.call.first / tli_count_row_elements(run, m);
    if (!is_cut || tli_find_row_axis(run->members.graph, m->node) || !range.bytes) {
        tli_call_operand(run, &range, writes);
        return;
    }
    range.offset += first * row_bytes;
    tli_block_operand(run, range, row_bytes, node->takes_blocks, writes);
}

// Add an operand that lies in the region's scratch: rows of a member, or of their gradient.
static void tli_inside_operand(tl_run *run, const tl_row_member *of, uint64_t offset, int writes) {
    const tl_row_member *m = &tli_region_members(run, run->at.last.node)[run->at.call.member];
    tl_range range = run->at.call.scratch.range;
    range.offset += offset;
    tli_block_operand(run, range, of->row_bytes, run->members.graph->nodes[m->node].takes_blocks, writes);
}

// The range of a tensor outside, as the step has it: an output that is there already is made beside it.
static tl_range tli_outside_range(const tl_run *run, int32_t tensor) {
    int32_t mapped = tli_outside_tensor(run, tensor);
    int32_t place = mapped - run->graph->nodes[run->at.last.node].first_output;
    if (run->at.last.kind != TL_STEP_BACKWARD && place >= 0 &&
        run->graph->outputs[mapped].node == run->at.last.node && run->at.call.twice[place].range.bytes)
        return run->at.call.twice[place].range;
    return run->tensors[mapped].device.range;
}

// Add what a turn has of a tensor: where a member makes it, makes it again, or from outside.
static void tli_turn_tensor(tl_run *run, int32_t tensor, int32_t maker, int is_cut, int writes) {
    const tl_row_member *members = tli_region_members(run, run->at.last.node);
    const tl_row_member *of = maker < 0 ? NULL : &members[maker];
    int backward = run->at.last.kind == TL_STEP_BACKWARD;
    if (of && of->row_bytes && backward && of->again) tli_inside_operand(run, of, of->again_offset, writes);
    else if (of && of->ring_rows && !backward) tli_inside_operand(run, of, of->ring_offset, writes);
    else
        tli_outside_operand(run, tli_outside_range(run, tensor), run->members.graph->outputs[tensor].bytes,
                            is_cut, writes);
}

static void tli_turn_gradient(tl_run *run, int32_t tensor, int32_t maker, int is_cut, int writes) {
    const tl_row_member *members = tli_region_members(run, run->at.last.node);
    tl_range room;
    if (maker >= 0 && members[maker].ring_rows) {
        tli_inside_operand(run, &members[maker], members[maker].gradient_offset, writes);
        return;
    }
    room = *tli_gradient_range(run, tli_outside_tensor(run, tensor), &room);
    tli_outside_operand(run, room, run->members.graph->outputs[tensor].bytes, is_cut, writes);
}

static void tli_absent_operand(tl_run *run) {
    tl_range none;
    tli_zero(&none, sizeof none);
    tli_call_operand(run, &none, 0);
}

// The inputs of the member at hand, or with `gradients` their gradients.
static void tli_describe_turn_inputs(tl_run *run, const tl_row_member *m, int gradients) {
    const tl_graph *graph = run->members.graph;
    const tl_node *node = &graph->nodes[m->node];
    int backward = run->at.call.kind == TL_STEP_BACKWARD;
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        const tl_row_link *link = &run->rows->links[m->first_link + k];
        const tl_node_input *input = &graph->inputs[node->first_input + k];
        int is_cut = !tli_is_all_rows(&link->relation);
        if (gradients && backward)
            tli_turn_gradient(run, input->tensor, link->member, is_cut, 1);
        else if (!gradients && (!backward || input->needed))
            tli_turn_tensor(run, input->tensor, link->member, is_cut, 0);
        else tli_absent_operand(run);
    }
}

// The part of the scratch from an offset on.
static void tli_turn_bytes(tl_run *run, uint64_t offset, uint64_t bytes, int writes) {
    tl_range range = run->at.call.scratch.range;
    range.offset += offset;
    range.bytes = bytes;
    if (!bytes) range.offset = 0;
    tli_call_operand(run, &range, writes);
}

// The operands of the turn at hand in the order of tl_kernel_call.
static void tli_describe_row_turn(tl_run *run) {
    const tl_graph *graph = run->members.graph;
    const tl_row_turn *turn = tli_turn_at_hand(run);
    const tl_row_member *m = &tli_region_members(run, run->at.last.node)[turn->member];
    const tl_node *node = &graph->nodes[m->node];
    uint64_t rows = run->at.call.count / tli_count_row_elements(run, m);
    int backward = turn->kind == TL_STEP_BACKWARD, has_saved = backward || turn->kind == TL_STEP_FORWARD_SAVE;
    tli_describe_turn_inputs(run, m, 0);
    if (!backward || graph->outputs[node->first_output].needed)
        tli_turn_tensor(run, node->first_output, turn->member, m->row_bytes > 0, !backward);
    else tli_absent_operand(run);
    if (backward) tli_turn_gradient(run, node->first_output, turn->member, m->row_bytes > 0, 0);
    else tli_absent_operand(run);
    tli_describe_turn_inputs(run, m, 1);
    tli_turn_bytes(run, m->saved_offset, has_saved ? node->saved_bytes / m->rows * rows : 0, !backward);
    tli_turn_bytes(run, turn->work_offset, tli_row_scratch(tli_find_turn_work(node, turn->kind), rows, m->rows),
                   1);
}

// Whether a member behind number `at` reads the same tensor, so that its backward has added to the gradient.
static int tli_is_read_behind(const tl_run *run, int32_t at, int32_t tensor) {
    const tl_graph *graph = run->members.graph;
    const tl_row_member *members = tli_region_members(run, run->at.last.node);
    int32_t count = tli_count_region(run, run->at.last.node), k;
    for (at++; at < count; at++) {
        const tl_node *node = &graph->nodes[members[at].node];
        for (k = 0; k < node->input_count; k++)
            if (graph->inputs[node->first_input + k].tensor == tensor) return 1;
    }
    return 0;
}

// Gradients inside begin as zeroes where they are added to first.
static tl_result tli_clear_turn_gradients(tl_run *run) {
    const tl_row_member *members = tli_region_members(run, run->at.last.node), *m, *from;
    const tl_row_turn *turn = tli_turn_at_hand(run);
    const tl_graph *graph = run->members.graph;
    const tl_node *node;
    tl_result result = TL_OK;
    int32_t k;
    m = &members[turn->member];
    node = &graph->nodes[m->node];
    for (k = 0; turn->kind == TL_STEP_BACKWARD && k < node->input_count && !result; k++) {
        const tl_row_link *link = &run->rows->links[m->first_link + k];
        int32_t tensor = graph->inputs[node->first_input + k].tensor;
        tl_range range = run->at.call.scratch.range;
        if (link->member < 0 || !members[link->member].ring_rows ||
            tli_is_read_behind(run, turn->member, tensor))
            continue;
        from = &members[link->member];
        range.offset += from->gradient_offset;
        range.bytes = from->row_bytes * from->block_rows;
        result = tli_fill_range(&run->store, &range, 0);
    }
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
