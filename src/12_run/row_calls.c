#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_ONLY_TABLES) && !defined(TL_NO_PLANNERS)

// -- regions of rows --
//
// A node of the run's graph that is a region (tl_rows_plan) is carried out call by call, in the order that its
// planner walked through (tli_next_row_call). Members read and write rings in the node's scratch, and whole
// tensors outside:
//
//     scratch    |ring of m0|ring of m1|..|scratch of the member at hand|
//
// Members that take blocks are called for elements, in ranges that hold the rows of the call alone, the others
// for rows.

static int tli_is_region(const tl_run *run, int32_t id) {
    return run->rows && run->rows->first_members[id] < run->rows->first_members[id + 1];
}

// Whether it goes block by block through turns (tl_cut_rows).
static int tli_has_row_turns(const tl_run *run, int32_t id) {
    return tli_is_region(run, id) && run->rows->turns;
}

static int32_t tli_count_region(const tl_run *run, int32_t id) {
    return run->rows->first_members[id + 1] - run->rows->first_members[id];
}

static const tl_row_member *tli_region_members(const tl_run *run, int32_t id) {
    return &run->rows->members[run->rows->first_members[id]];
}

static tli_row_walk tli_region_walk(const tl_run *run, int32_t id) {
    tli_row_walk walk;
    walk.graph = run->members.graph;
    walk.members = tli_region_members(run, id);
    walk.links = run->rows->links;
    walk.made = run->rows_made;
    walk.first = 0;
    walk.last = tli_count_region(run, id) - 1;
    return walk;
}

// Elements of f32 in a row of a member that takes blocks; of others 1, as calls of them count rows.
static uint64_t tli_count_row_elements(const tl_run *run, const tl_row_member *m) {
    return run->members.graph->nodes[m->node].takes_blocks ? m->row_bytes / 4 : 1;
}

// Set which call is the next, and whether another follows it.
static void tli_choose_row_call(tl_run *run) {
    tli_row_walk walk = tli_region_walk(run, run->at.last.node);
    tli_call *call = &run->at.call;
    tli_row_call next;
    uint64_t each;
    if (!tli_next_row_call(&walk, &next)) return;
    call->member = next.member;
    call->node = walk.members[next.member].node;
    call->kind = TL_STEP_FORWARD;
    each = tli_count_row_elements(run, &walk.members[next.member]);
    call->first = next.first * each;
    call->count = next.count * each;
    call->total = walk.members[next.member].rows * each;
    walk.made[next.member] += next.count;
    call->turn = !tli_next_row_call(&walk, &next);  // of two: the first stands for all but the last
}

// The tensor of the run's graph that is one of the caller's, from outside of the region.
static int32_t tli_outside_tensor(const tl_run *run, int32_t tensor) { return run->members.tensors[tensor]; }

// -- regions of rows: operands --

// The ring in the node's scratch that holds a row of a member.
typedef struct tli_ring {
    tl_range range;
    uint64_t rows, shift, row_bytes;
} tli_ring;

static tli_ring tli_find_ring(const tl_run *run, const tl_row_member *members, int32_t at, uint64_t row) {
    const tl_row_member *m = &members[at], *owner;
    tli_ring ring;
    while (m->shares >= 0 && !m->takes_slots) m = &members[m->shares];
    for (owner = m; owner->shares >= 0; owner = &members[owner->shares]) {}
    ring.range = run->at.call.scratch.range;
    ring.range.offset += owner->ring_offset;
    ring.range.bytes = owner->ring_rows * owner->row_bytes;
    ring.rows = owner->ring_rows;
    ring.row_bytes = owner->row_bytes;
    ring.shift = 0;
    if (m->takes_slots) {  // the row is where the first under its window was
        int64_t under = tli_row_under(&run->rows->links[m->first_link + m->takes_slots - 1].relation, row);
        ring.shift = (uint64_t)(under + (int64_t)ring.rows - (int64_t)(row % ring.rows)) % ring.rows;
    }
    return ring;
}

// The part of a range that holds the rows of a call which takes elements: of a ring, or of a whole tensor.
static tl_range tli_cut_rows(const tl_run *run, const tli_ring *ring, tl_range range, uint64_t row_bytes) {
    uint64_t first = run->at.call.first / (row_bytes / 4);
    range.offset += ring ? (first + ring->shift) % ring->rows * ring->row_bytes : first * row_bytes;
    range.bytes = run->at.call.count * 4;
    return range;
}

// Add an operand: a ring, the part of it that a call takes as elements, or, with ring NULL, of a whole tensor.
static void tli_row_operand(tl_run *run, const tli_ring *ring, tl_range range, uint64_t cut_bytes, int writes) {
    tl_operand *operand = &run->at.call.operands[run->at.call.operand_count];
    if (ring) range = ring->range;
    if (cut_bytes) range = tli_cut_rows(run, ring, range, cut_bytes);
    tli_call_operand(run, &range, writes);
    if (!ring || cut_bytes) return;
    operand->rows = ring->rows;
    operand->shift = ring->shift;
    operand->row_bytes = ring->row_bytes;
}

// Whether a member writes over the rows of an input, slot by slot.
static int tli_overwrites_slots(const tl_row_member *m, int32_t k) { return m->takes_slots == k + 1; }

static void tli_describe_row_inputs(tl_run *run, const tl_row_member *members, const tl_row_member *m) {
    const tl_graph *graph = run->members.graph;
    const tl_node *node = &graph->nodes[m->node];
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        const tl_row_link *link = &run->rows->links[m->first_link + k];
        uint64_t row =
            tli_first_row_under(&link->relation, run->at.call.first / tli_count_row_elements(run, m));
        uint64_t cut_bytes = node->takes_blocks && link->relation.kind == TL_RELATION_SAME ? m->row_bytes : 0;
        tl_range none;
        tli_ring ring;
        tli_zero(&none, sizeof none);
        if (link->member >= 0 && members[link->member].ring_rows) {
            ring = tli_find_ring(run, members, link->member, row);
            tli_row_operand(run, &ring, none, cut_bytes, tli_overwrites_slots(m, k));
            continue;
        }
        tli_row_operand(
            run, NULL,
            run->tensors[tli_outside_tensor(run, graph->inputs[node->first_input + k].tensor)].device.range,
            cut_bytes, 0);
    }
}

// The most scratch of a call, which lies behind the rings.
static uint64_t tli_find_region_scratch(const tl_run *run, int32_t id) {
    const tl_row_member *members = tli_region_members(run, id);
    int32_t count = tli_region_walk(run, id).last + 1, at;
    uint64_t most = 0;
    for (at = 0; at < count; at++)
        most = tli_larger_u64(most, tli_row_scratch(run->members.graph->nodes[members[at].node].fwork_bytes,
                                                    members[at].block_rows, members[at].rows));
    return most;
}

// The operands of the call at hand in the order of tl_kernel_call.
static void tli_describe_row_call(tl_run *run) {
    const tl_row_member *members = tli_region_members(run, run->at.last.node);
    tli_call *call = &run->at.call;
    const tl_row_member *m = &members[call->member];
    const tl_node *node = &run->members.graph->nodes[m->node];
    uint64_t each = tli_count_row_elements(run, m);
    uint64_t bytes = tli_row_scratch(node->fwork_bytes, call->count / each, m->rows);
    uint64_t cut_bytes = node->takes_blocks ? m->row_bytes : 0;
    tl_range range, none;
    tli_ring ring;
    int32_t k;
    tli_zero(&none, sizeof none);
    tli_describe_row_inputs(run, members, m);
    if (m->ring_rows) {
        ring = tli_find_ring(run, members, call->member, call->first / each);
        tli_row_operand(run, &ring, none, cut_bytes, 1);
    } else {
        tli_row_operand(run, NULL, run->tensors[tli_outside_tensor(run, node->first_output)].device.range,
                        cut_bytes, 1);
    }
    for (k = 0; k < node->input_count + 2; k++) tli_call_operand(run, &none, 0);  // no gradients, nothing saved
    range = call->scratch.range;
    range.offset += range.bytes - tli_find_region_scratch(run, run->at.last.node);
    range.bytes = bytes;
    tli_call_operand(run, bytes ? &range : &none, 1);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
