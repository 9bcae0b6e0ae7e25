#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- regions: whether a plan of rows is one of a graph, and what it makes of its tensors --
//
// Who carries a plan of rows out, and who writes it as code, looks at all of it first: nothing is read or
// written outside of what the graph says.

// Whether a member is what its node says, and finds its rows within the scratch of the region.
static int tli_is_member_of(const tl_graph *graph, const tl_rows_plan *rows, int32_t id, int32_t at,
                            uint64_t alignment) {
    const tl_row_member *members = rows->members + rows->first_members[id], *m = &members[at];
    const tl_node *node;
    uint64_t end;
    int32_t k;
    if (m->node < 0 || m->node >= graph->node_count || rows->nodes[m->node] != id) return 0;
    node = &graph->nodes[m->node];
    if (node->output_count != 1 || !m->rows || m->rows > TLI_MOST_ROWS || !m->block_rows ||
        m->block_rows > m->rows || m->row_bytes * m->rows != graph->outputs[node->first_output].bytes ||
        m->shares < -1 || m->shares >= at || m->takes_slots < 0 || m->takes_slots > node->input_count ||
        (m->takes_slots && m->shares < 0))
        return 0;
    if (m->ring_rows && (!tli_mul_u64(m->ring_rows, m->row_bytes, &end) ||
                         !tli_add_u64(end, m->ring_offset, &end) || end > rows->graph.nodes[id].fwork_bytes))
        return 0;
    if (m->ring_offset % alignment || (node->takes_blocks && m->row_bytes % alignment)) return 0;
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
            link += graph->nodes[rows->members[first + at].node].input_count;
        }
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
