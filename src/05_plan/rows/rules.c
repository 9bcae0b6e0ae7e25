#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- regions: whether a plan of rows is one of a graph, and what it makes of its tensors --
//
// Who carries a plan of rows out, and who writes it as code, looks at all of it first: nothing is read or
// written outside of what the graph says.

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
        tl_relation is = rows->links[m->first_link + k].relation;
        tl_relation must = tli_find_row_relation(graph, m->node, k);
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

// Whether the turns of a region are those of its members: each forward; what is made again, which is all where
// the backward makes the output; and each backward.
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
        if ((is_late && !members[at].again) || !tli_is_read_again(graph, rows, id, at)) return 0;
        if (members[at].again && !tli_is_turn_of(graph, rows, id, k++, at, kind, alignment)) return 0;
    }
    for (at = count - 1; at >= 0 && trains; at--)
        if (!tli_is_turn_of(graph, rows, id, k++, at, TL_STEP_BACKWARD, alignment)) return 0;
    return rows->first_turns[id + 1] - rows->first_turns[id] == k;
}

static int tli_has_row_bytes(const tl_graph *graph, const tl_rows_plan *rows, const tl_row_member *m) {
    const tl_node_rows *r = tli_find_rows(graph, m->node);
    uint64_t bytes = graph->outputs[graph->nodes[m->node].first_output].bytes;
    if (r && r->reduces) return rows->turns && !m->row_bytes && !m->ring_rows;
    return m->row_bytes == bytes / m->rows && bytes % m->rows == 0;
}

// Whether its ring lies in the scratch of the forward, if that makes any calls.
static int tli_fits_ring(const tl_node *region, const tl_row_member *m, uint64_t alignment) {
    uint64_t bytes;
    if (!m->ring_rows) return !(m->ring_offset % alignment);
    if (tli_is_late(region)) return 1;
    return tli_mul_u64(m->ring_rows, m->row_bytes, &bytes) &&
           tli_fits_in(m->ring_offset, bytes, region->fwork_bytes, alignment);
}

// Whether a member is what its node says, and finds its rows within the scratch of the region.
static int tli_is_member_of(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, int32_t at,
                            uint64_t alignment) {
    const tl_row_member *members = rows->members + rows->first_members[id], *m = &members[at];
    const tl_node *node;
    int32_t k;
    if (m->node < 0 || m->node >= graph->node_count || rows->nodes[m->node] != id) return 0;
    node = &graph->nodes[m->node];
    if (m->first_link < 0 || m->first_link > graph->input_count - node->input_count) return 0;
    if (node->output_count != 1 || !m->rows || m->rows > TLI_MOST_ROWS || !m->block_rows ||
        m->block_rows > m->rows || !tli_has_row_bytes(graph, rows, m) ||
        m->shares < -1 || m->shares >= at || m->takes_slots < 0 || m->takes_slots > node->input_count ||
        (m->takes_slots && m->shares < 0))
        return 0;
    if (!tli_fits_ring(&rows->graph.nodes[id], m, alignment) ||
        (node->takes_blocks && (rows->turns ? m->row_bytes % 4 : m->row_bytes % alignment)))
        return 0;
    if (m->shares >= 0 && (members[m->shares].ring_rows != m->ring_rows || !m->ring_rows ||
                           members[m->shares].ring_offset != m->ring_offset))
        return 0;
    for (k = 0; k < node->input_count; k++) {
        const tl_row_link *link = &rows->links[m->first_link + k];
        int32_t maker = tli_find_maker(graph, node, k);
        tl_relation relation = link->relation;
        if (link->member < -1 || link->member >= at || tli_check_relation(&relation)) return 0;
        if (link->member >= 0 ? members[link->member].node != maker : rows->nodes[maker] == id) return 0;
    }
    return 1;
}

// Whether each node that is in no region has one of its own, of the same name.
static int tli_are_nodes_of(const tl_graph *graph, const tl_rows_plan *rows) {
    const int32_t *first = rows->first_members;
    int32_t id, made, alone = 0, count = 0;
    for (made = 0; made < rows->graph.node_count; made++) alone += first[made] == first[made + 1];
    for (id = 0; id < graph->node_count; id++) {
        made = rows->nodes[id];
        if (first[made] != first[made + 1]) continue;
        count++;
        if (!tli_same_text(tl_name_node(graph, id), tl_name_node(&rows->graph, made))) return 0;
    }
    return count == alone;
}

// Whether a plan of rows was made of the graph.
static int tli_is_rows_of(const tl_graph *graph, const tl_rows_plan *rows, uint64_t alignment) {
    const tl_graph *made = &rows->graph;
    int32_t id, at, link = 0;
    if (!rows->memory || made->node_count > graph->node_count || rows->first_members[0] ||
        rows->first_members[made->node_count] != rows->member_count ||
        (rows->turns && (rows->first_turns[0] || rows->first_turns[made->node_count] != rows->turn_count)))
        return 0;
    for (id = 0; id < graph->node_count; id++)
        if (rows->nodes[id] < 0 || rows->nodes[id] >= made->node_count) return 0;
    for (id = 0; id < made->node_count; id++) {
        int32_t first = rows->first_members[id], count;
        if (rows->first_members[id + 1] < first || rows->first_members[id + 1] > rows->member_count) return 0;
        count = rows->first_members[id + 1] - first;
        for (at = 0; at < count; at++) {
            if (rows->members[first + at].first_link != link ||
                !tli_is_member_of(graph, rows, id, at, alignment))
                return 0;
            if (rows->turns && !tli_is_cut_member(graph, rows, id, at, alignment)) return 0;
            link += graph->nodes[rows->members[first + at].node].input_count;
        }
        if (rows->turns && count && !tli_are_outputs_of(graph, rows, id)) return 0;
    }
    if (!tli_are_nodes_of(graph, rows)) return 0;
    for (id = 0; id < made->node_count && rows->turns; id++)
        if (!tli_are_turns_of(graph, rows, id, alignment)) return 0;
    return 1;
}

// Map tensors of a graph to those of the graph with regions, -1 = inside of one: by what each new node
// computes.
//
//   next    [nodes of the graph with regions] of the caller's, content undefined
static void tli_map_row_tensors(const tl_graph *graph, const tl_rows_plan *rows, int32_t *next,
                                int32_t *tensors) {
    int32_t id, k;
    for (id = 0; id < rows->graph.node_count; id++) next[id] = rows->graph.nodes[id].first_output;
    for (k = 0; k < graph->tensor_count; k++) tensors[k] = -1;
    for (id = 0; id < graph->node_count; id++) {
        int32_t made = rows->nodes[id], at = rows->first_members[made];
        while (at < rows->first_members[made + 1] && rows->members[at].node != id) at++;
        if (at < rows->first_members[made + 1] && rows->members[at].ring_rows) continue;
        for (k = 0; k < graph->nodes[id].output_count; k++)
            tensors[graph->nodes[id].first_output + k] = next[made]++;
    }
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
