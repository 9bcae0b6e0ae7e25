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

// Whether what a member has in the scratch of the backward lies there.
static int tli_lies_in_backward(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, int32_t at,
                                uint64_t alignment) {
    const tl_row_member *m = &rows->members[rows->first_members[id] + at];
    uint64_t block = m->row_bytes * m->block_rows, size = rows->graph.nodes[id].bwork_bytes;
    uint64_t saved = graph->nodes[m->node].saved_bytes / m->rows * m->block_rows;
    if (m->block_rows != rows->members[rows->first_members[id]].block_rows ||
        m->rows != rows->members[rows->first_members[id]].rows || !tli_is_below(m->again, 2))
        return 0;
    if (m->again && !(tli_fits_in(m->again_offset, block, size, alignment) &&
                      tli_fits_in(m->saved_offset, saved, size, alignment)))
        return 0;
    return rows->inference || !m->ring_rows || tli_fits_in(m->gradient_offset, block, size, alignment);
}

// Whether the turns of a region are calls of its members, with scratch that lies in the region's.
static int tli_are_turns_of(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, uint64_t alignment) {
    int32_t from = rows->first_turns[id], count = rows->first_turns[id + 1] - from, k;
    int32_t members = rows->first_members[id + 1] - rows->first_members[id], forward = rows->forward_turns[id];
    if (count < 0 || from < 0 || from + count > rows->turn_count) return 0;
    if (!members) return !count;
    if (forward < 0 || forward > count || (!forward && rows->graph.nodes[id].once != TL_ONCE_LATE)) return 0;
    for (k = 0; k < count; k++) {
        const tl_row_turn *turn = &rows->turns[from + k];
        const tl_row_member *m = &rows->members[rows->first_members[id]];
        const tl_node *node = &rows->graph.nodes[id], *member;
        if (!tli_is_below(turn->member, members)) return 0;
        m += turn->member;
        member = &graph->nodes[m->node];
        if (turn->kind == TL_STEP_BACKWARD) {
            if (k < forward || !member->has_grad) return 0;
        } else if ((turn->kind != TL_STEP_FORWARD && turn->kind != TL_STEP_FORWARD_SAVE) ||
                   (k < forward ? turn->kind != TL_STEP_FORWARD : !m->again)) {
            return 0;
        }
        if (!tli_fits_in(turn->work_offset,
                         tli_row_scratch(tli_find_turn_work(member, turn->kind), m->block_rows, m->rows),
                         k < forward ? node->fwork_bytes : node->bwork_bytes, alignment))
            return 0;
    }
    return 1;
}

static int tli_has_row_bytes(const tl_graph *graph, const tl_rows_plan *rows, const tl_row_member *m) {
    const tl_node_rows *r = tli_find_rows(graph, m->node);
    if (r && r->reduces) return rows->turns && !m->row_bytes && !m->ring_rows;
    return m->row_bytes * m->rows == graph->outputs[graph->nodes[m->node].first_output].bytes;
}

// Whether its ring lies in the scratch of the forward, if that makes any calls.
static int tli_fits_ring(const tl_node *region, const tl_row_member *m, uint64_t alignment) {
    uint64_t bytes;
    if (m->ring_offset % alignment) return 0;
    if (!m->ring_rows || tli_is_late(region)) return 1;
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

// Whether a plan of rows was made of the graph.
static int tli_is_rows_of(const tl_graph *graph, const tl_rows_plan *rows, uint64_t alignment) {
    const tl_graph *made = &rows->graph;
    int32_t id, at, link = 0;
    if (!rows->memory || made->node_count > graph->node_count || rows->first_members[0] ||
        rows->first_members[made->node_count] != rows->member_count)
        return 0;
    for (id = 0; id < graph->node_count; id++)
        if (rows->nodes[id] < 0 || rows->nodes[id] >= made->node_count) return 0;
    for (id = 0; id < made->node_count; id++) {
        int32_t first = rows->first_members[id], count = rows->first_members[id + 1] - first;
        if (count < 0 || first + count > rows->member_count) return 0;
        for (at = 0; at < count; at++) {
            if (rows->members[first + at].first_link != link ||
                !tli_is_member_of(graph, rows, id, at, alignment))
                return 0;
            if (rows->turns && !tli_lies_in_backward(graph, rows, id, at, alignment)) return 0;
            link += graph->nodes[rows->members[first + at].node].input_count;
        }
        if (rows->turns && !tli_are_turns_of(graph, rows, id, alignment)) return 0;
    }
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
