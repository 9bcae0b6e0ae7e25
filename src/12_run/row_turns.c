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

// Describe the call of the turn at hand. Of the two values of call->turn the first stands for all calls but the
// last one.
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
    call->turn = !count || (run->rows_made[1] + 1 == (uint64_t)count && first + rows == m->rows);
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
        if (gradients && backward && tli_gets_gradient(graph, input->tensor))
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
        if (link->member < 0 || !members[link->member].ring_rows || !tli_gets_gradient(graph, tensor) ||
            tli_is_read_behind(run, turn->member, tensor))
            continue;
        from = &members[link->member];
        range.offset += from->gradient_offset;
        range.bytes = from->row_bytes * from->block_rows;
        result = tli_fill_range(&run->store, &range, 0);
    }
    return result;
}

// -- blocks of rows: preparing a run --

static int tli_fits_in(uint64_t offset, uint64_t bytes, uint64_t size, uint64_t alignment) {
    uint64_t end;
    return !bytes || (tli_add_u64(offset, bytes, &end) && end <= size && offset % alignment == 0);
}

// Whether the backward of a region makes calls.
static int tli_has_backward_turns(const tl_rows_plan *rows, int32_t id) {
    return !rows->inference && rows->graph.nodes[id].has_grad;
}

// Whether blocks of what a member makes or reads outside begin at multiples of the alignment, and are whole
// units.
static int tli_are_blocks_aligned(const tl_graph *graph, const tl_rows_plan *rows, int32_t id,
                                  const tl_row_member *m, uint64_t alignment) {
    const tl_row_member *members = rows->members + rows->first_members[id];
    const tl_node *node = &graph->nodes[m->node];
    const tl_node_rows *r = tli_find_rows(graph, m->node);
    int32_t k;
    if (m->block_rows == m->rows) return 1;
    if (r && m->block_rows % r->unit) return 0;
    if (r && r->axis) return 1;
    if (!m->ring_rows && m->row_bytes * m->block_rows % alignment) return 0;
    for (k = 0; k < node->input_count; k++) {
        const tl_row_link *link = &rows->links[m->first_link + k];
        uint64_t bytes = graph->outputs[graph->inputs[node->first_input + k].tensor].bytes;
        if (tli_is_all_rows(&link->relation) || (link->member >= 0 && members[link->member].ring_rows))
            continue;
        if (bytes % m->rows || bytes / m->rows * m->block_rows % alignment) return 0;
    }
    return 1;
}

// Whether a member of tl_cut_rows has the rows of its region, relations as its node has them, and room in the
// scratch of the backward.
static int tli_is_cut_member(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, int32_t at,
                             uint64_t alignment) {
    const tl_row_member *members = rows->members + rows->first_members[id], *m = &members[at];
    const tl_node *node = &graph->nodes[m->node];
    const tl_node_rows *r = tli_find_rows(graph, m->node);
    uint64_t block = m->row_bytes * m->block_rows, size = rows->graph.nodes[id].bwork_bytes;
    uint64_t saved = node->saved_bytes / m->rows * m->block_rows;
    int32_t k;
    if (m->rows != members->rows || m->block_rows != members->block_rows || (r && r->rows != m->rows) ||
        (!r && !node->takes_blocks) || (m->ring_rows && m->ring_rows != m->block_rows) || m->shares >= 0 ||
        m->takes_slots || !tli_is_below(m->again, 2) || (at && m->node <= members[at - 1].node))
        return 0;
    for (k = 0; k < node->input_count; k++) {
        tl_relation is = rows->links[m->first_link + k].relation, must = tli_cut_relation(graph, m->node, k);
        if (is.kind != must.kind || (must.kind != TL_RELATION_SAME && !tli_is_all_rows(&must))) return 0;
    }
    if (m->again && !(tli_fits_in(m->again_offset, block, size, alignment) &&
                      tli_fits_in(m->saved_offset, saved, size, alignment)))
        return 0;
    if (tli_has_backward_turns(rows, id) && m->ring_rows &&
        !tli_fits_in(m->gradient_offset, block, size, alignment))
        return 0;
    return tli_are_blocks_aligned(graph, rows, id, m, alignment);
}

// Whether the members that are whole are the outputs of the region.
static int tli_are_outputs_of(const tl_graph *graph, const tl_rows_plan *rows, int32_t id) {
    const tl_node *node = &rows->graph.nodes[id];
    int32_t at, count = 0;
    for (at = rows->first_members[id]; at < rows->first_members[id + 1]; at++) {
        const tl_row_member *m = &rows->members[at];
        if (m->ring_rows) continue;
        if (count == node->output_count || rows->graph.outputs[node->first_output + count].bytes !=
                                               graph->outputs[graph->nodes[m->node].first_output].bytes)
            return 0;
        count++;
    }
    return count == node->output_count;
}

// The tensor of the graph with regions that a whole tensor is.
static int32_t tli_find_made_tensor(const tl_graph *graph, const tl_rows_plan *rows, int32_t tensor) {
    int32_t node = graph->outputs[tensor].node, made = rows->nodes[node], k = graph->outputs[tensor].output, at;
    for (at = rows->first_members[made]; at < rows->first_members[made + 1]; at++)
        k += rows->members[at].node < node && !rows->members[at].ring_rows;
    return rows->graph.nodes[made].first_output + k;
}

// Whether the backward of a region finds a tensor: rows that were made again, or a whole one that it needs.
static int tli_is_there_again(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, int32_t tensor,
                              int32_t maker) {
    const tl_row_member *m = maker < 0 ? NULL : &rows->members[rows->first_members[id] + maker];
    const tl_node *node = &rows->graph.nodes[id];
    int32_t made, k;
    if (m && m->row_bytes && m->again) return 1;
    if (m && m->ring_rows) return 0;
    made = tli_find_made_tensor(graph, rows, tensor);
    if (m) return rows->graph.outputs[made].needed;
    for (k = node->first_input; k < node->first_input + node->input_count; k++)
        if (rows->graph.inputs[k].tensor == made) return rows->graph.inputs[k].needed;
    return 0;
}

// Whether the calls of a member in the backward find what they read.
static int tli_is_read_again(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, int32_t at) {
    const tl_row_member *m = &rows->members[rows->first_members[id] + at];
    const tl_node *node = &graph->nodes[m->node];
    int32_t k;
    if (node->saved_bytes && !m->again) return 0;
    if (graph->outputs[node->first_output].needed &&
        !tli_is_there_again(graph, rows, id, node->first_output, at))
        return 0;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_input *input = &graph->inputs[node->first_input + k];
        if ((m->again || input->needed) &&
            !tli_is_there_again(graph, rows, id, input->tensor, rows->links[m->first_link + k].member))
            return 0;
    }
    return 1;
}

// Whether a turn is this call, with scratch that lies in the region's.
static int tli_is_turn_of(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, int32_t at,
                          int32_t member, tl_step_kind kind, uint64_t alignment) {
    const tl_row_turn *turn = &rows->turns[rows->first_turns[id] + at];
    const tl_row_member *m = &rows->members[rows->first_members[id] + member];
    const tl_node *region = &rows->graph.nodes[id];
    uint64_t bytes = tli_row_scratch(tli_find_turn_work(&graph->nodes[m->node], (int)kind), m->block_rows,
                                     m->rows);
    return at < rows->first_turns[id + 1] - rows->first_turns[id] && turn->member == member &&
           turn->kind == kind && turn->work_bytes == bytes &&
           tli_fits_in(turn->work_offset, bytes,
                       at < rows->forward_turns[id] ? region->fwork_bytes : region->bwork_bytes, alignment);
}

// Whether the turns of a region are those of its members: each forward, unless its backward makes the output;
// what is made again, and each backward.
static int tli_are_turns_of(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, uint64_t alignment) {
    const tl_row_member *members = rows->members + rows->first_members[id];
    int32_t count = rows->first_members[id + 1] - rows->first_members[id], k = 0, at;
    int trains = tli_has_backward_turns(rows, id), is_late = count && tli_is_late(&rows->graph.nodes[id]);
    if (rows->first_turns[id + 1] < rows->first_turns[id] || rows->first_turns[id + 1] > rows->turn_count)
        return 0;
    if (count && (rows->forward_turns[id] != (is_late ? 0 : count) || (is_late && !trains))) return 0;
    for (at = 0; at < count && !is_late; at++)
        if (!tli_is_turn_of(graph, rows, id, k++, at, TL_STEP_FORWARD, alignment)) return 0;
    for (at = 0; at < count && trains; at++) {
        int saves = graph->nodes[members[at].node].saved_bytes > 0;
        tl_step_kind kind = saves ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD;
        if (!tli_is_read_again(graph, rows, id, at)) return 0;
        if (members[at].again && !tli_is_turn_of(graph, rows, id, k++, at, kind, alignment)) return 0;
    }
    for (at = count - 1; at >= 0 && trains; at--)
        if (!tli_is_turn_of(graph, rows, id, k++, at, TL_STEP_BACKWARD, alignment)) return 0;
    return rows->first_turns[id + 1] - rows->first_turns[id] == k;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
