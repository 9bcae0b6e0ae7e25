#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- regions: candidates --
//
// All nodes but inputs are candidates for regions, in the order of the graph, and so is each stream that can be
// loaded by rows, right before its reader. They are described as if they were members of one region.

#define TLI_REGION_SPAN 64      // members of a region, at most
#define TLI_ROWS_ASK 1000000    // calls walked through between two calls of progress
#define TLI_ROWS_WORK 100000000 // where no limit is given
#define TLI_MOST_ROWS INT32_MAX
#define TLI_MOST_REGION_ALIGNMENT (UINT64_C(1) << 30)

typedef struct tli_regions {
    tl_env  *env;
    const tl_rows_desc *desc;
    const tl_graph *graph;
    uint64_t alignment, limit;  // of the peak
    tl_row_member *members;     // [count] candidates; rows 0 = it may be in no region
    tl_row_link   *links;       // [inputs]; members are candidates, -1 = made by none
    int32_t  count, link_count;     // candidates, links
    int32_t *places;            // [nodes] the candidate that a node is; -1 = it is none
    int32_t *owners;            // [links] the candidate that has it
    int32_t *next_readers;      // [links] the next link that reads the same candidate; -1 = none
    int32_t *first_readers;     // [nodes] the first link that reads a candidate
    int32_t *lowest;            // [nodes] the first candidate that may be in a region with it; behind it: none
    int32_t *sharers;           // [nodes] the candidate that shares the ring of this one; -1 = none
    int32_t *starts;            // [nodes] where the region begins that a candidate ends; -1 = none ends here
    int32_t *origins;           // [nodes + 1] of the best division: where the last region or node begins
    int32_t *lasts;             // [tensors] the last candidate that reads it; count = it is a result
    int32_t *tensors;           // [tensors] in the graph that is made; -1 = inside a region
    int32_t *asked;             // [nodes] of a walk: the member that waits for rows of one
    int32_t *over;              // [nodes] the input that a candidate may overwrite; -1 = none
    uint8_t *in_slots;          // [nodes] 1 = it shares by slots
    uint8_t *in_elements;       // [nodes] 1 = calls of it or of a reader take elements: no range wraps around
    uint64_t *crossing;         // [nodes + 1] live bytes before a candidate is called
    uint64_t *wholes;           // [nodes] the peak when it is called as a whole; UINT64_MAX = a stream: never
    uint64_t *made, *calls;     // [nodes] of a walk: rows made so far; calls
    uint64_t *rings, *sizes;    // [nodes] of a walk: rows that a ring holds at most; its bytes
    uint64_t *needs, *reaches;  // [nodes] of a walk: rows of a ring that a slot needs, and those who share it
    uint64_t *best, *fewest;    // [nodes + 1] the least peak, and the fewest calls, of all candidates before
    uint64_t *blocks;           // [nodes + 1] of the best division: rows of a call; 0 = a node as a whole
    int32_t *least_origins;     // [nodes + 1] of the division of the least peak: where what ends here begins
    tl_rows_progress now;       // what progress is told
    uint64_t next_ask;          // work at which it is asked again
    int32_t  stopped;           // 1 = it asked to stop
    tl_tensor *inputs;          // [inputs] of the node that is added
    uint64_t  *bytes;           // [tensors] of its outputs
    tl_stored *stored;          // [constants] its constants
} tli_regions;

static int32_t tli_find_maker(const tl_graph *graph, const tl_node *node, int32_t k) {
    return graph->outputs[graph->inputs[node->first_input + k].tensor].node;
}

// Whether a relation fits the rows of both nodes.
static tli_rule tli_check_row_edge(const tl_node_rows *to, const tl_relation *r, const tl_node_rows *from) {
    if (!from || tli_is_all_rows(r)) return TLI_NO_RULE;
    if (from->axis != to->axis) return TLI_RULE(RIN_INPUT_HAS_ROWS_ALONG_ANOTHER_AXIS);
    if (r->kind == TL_RELATION_SAME && from->rows != to->rows)
        return TLI_RULE(RIN_INPUT_HAS_ANOTHER_NUMBER_OF_ROWS);
    return (uint64_t)tli_first_row_under(r, to->rows - 1) < from->rows
               ? TLI_NO_RULE
               : TLI_RULE(RIN_LAST_ROW_READS_BEHIND_INPUT);
}

static tl_result tli_check_row_edges(const tli_regions *g) {
    tli_graph_rules rules = tli_rules_of(g->env, TLI_IN(PLAN_ROWS));
    const tl_graph *graph = g->graph;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node_rows *to = tli_find_rows(graph, id);
        for (k = 0; to && k < graph->nodes[id].input_count; k++) {
            tli_rule rule =
                tli_check_row_edge(to, &graph->attributes->relations[to->first_relation + k],
                                   tli_find_rows(graph, tli_find_maker(graph, &graph->nodes[id], k)));
            if (rule)
                return tli_fail_item(&rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(graph, id), rule);
        }
    }
    return TL_OK;
}

// The rows of elements of a node that takes blocks: those of the first input of as many bytes that has rows
// along axis 0. 0 = it has none.
static uint64_t tli_find_element_rows(const tli_regions *g, const tl_node *node) {
    uint64_t bytes = g->graph->outputs[node->first_output].bytes;
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        int32_t maker = tli_find_maker(g->graph, node, k), place = g->places[maker];
        const tl_node_rows *r = tli_find_rows(g->graph, maker);
        if (g->graph->outputs[g->graph->inputs[node->first_input + k].tensor].bytes != bytes) continue;
        if (r && !r->axis) return r->rows;
        if (!r && place >= 0 && g->graph->nodes[maker].takes_blocks) return g->members[place].rows;
    }
    return 0;
}

// The rows by which a node may be called in a region; 0 = it may not. Calls take elements where each row begins
// at a multiple of the alignment.
static uint64_t tli_find_member_rows(const tli_regions *g, int32_t id) {
    const tl_node *node = &g->graph->nodes[id];
    const tl_node_rows *r = tli_find_rows(g->graph, id);
    uint64_t bytes = g->graph->outputs[node->first_output].bytes, rows = r ? r->rows : 0;
    if (node->output_count != 1 || node->dynamic || node->once || !bytes || (r && r->reduces)) return 0;
    if (g->desc->apart && g->desc->apart[id]) return 0;
    if (node->takes_blocks && !r) rows = tli_find_element_rows(g, node);
    if (!rows || rows > TLI_MOST_ROWS || bytes % rows) return 0;
    if (node->takes_blocks && ((r && r->axis) || bytes / rows % tli_larger_u64(4, g->alignment))) return 0;
    return rows;
}

// How the rows of an input relate to those of a node that may be a member; what takes blocks and has no rows
// reads as many elements row by row.
static tl_relation tli_find_row_relation(const tl_graph *graph, int32_t id, int32_t k) {
    const tl_node *node = &graph->nodes[id];
    const tl_node_rows *r = tli_find_rows(graph, id);
    tl_relation relation;
    if (r) return graph->attributes->relations[r->first_relation + k];
    tli_zero(&relation, sizeof relation);
    if (graph->outputs[graph->inputs[node->first_input + k].tensor].bytes ==
        graph->outputs[node->first_output].bytes)
        relation.kind = TL_RELATION_SAME;
    return relation;
}

static void tli_add_candidate(tli_regions *g, int32_t id) {
    const tl_node *node = &g->graph->nodes[id];
    int32_t at = g->count++, k;
    tl_row_member *m = &g->members[at];
    tli_zero(m, sizeof *m);
    m->node = id;
    m->first_link = g->link_count;
    m->rows = tli_find_member_rows(g, id);
    m->row_bytes = m->rows ? g->graph->outputs[node->first_output].bytes / m->rows : 0;
    g->places[id] = at;
    for (k = 0; k < node->input_count; k++) {
        g->owners[g->link_count] = at;
        g->links[g->link_count].member = g->places[tli_find_maker(g->graph, node, k)];
        g->links[g->link_count++].relation = tli_find_row_relation(g->graph, id, k);
    }
}

// Whether input k of a node is a stream that can be loaded row by row.
static int tli_is_row_stream(const tli_regions *g, int32_t id, int32_t k) {
    int32_t maker = tli_find_maker(g->graph, &g->graph->nodes[id], k);
    const tl_node_rows *stream = tli_find_rows(g->graph, maker);
    tl_relation relation = tli_find_row_relation(g->graph, id, k);
    return stream && stream->stream && g->places[maker] < 0 && tli_find_member_rows(g, id) &&
           tli_find_member_rows(g, maker) && !g->graph->nodes[id].takes_blocks &&
           !tli_is_all_rows(&relation);
}

static void tli_find_candidates(tli_regions *g) {
    int32_t id, k;
    for (id = 0; id < g->graph->node_count; id++) g->places[id] = -1;
    for (id = 0; id < g->graph->node_count; id++) {
        if (g->graph->nodes[id].is_input) continue;
        for (k = 0; k < g->graph->nodes[id].input_count; k++)
            if (tli_is_row_stream(g, id, k))
                tli_add_candidate(g, tli_find_maker(g->graph, &g->graph->nodes[id], k));
        tli_add_candidate(g, id);
    }
}

// -- regions: how candidates lie to each other --

// Find who reads each candidate, and the last that reads each tensor.
static void tli_link_candidates(tli_regions *g) {
    int32_t at, k;
    for (k = 0; k < g->graph->tensor_count; k++)
        g->lasts[k] =
            g->graph->nodes[g->graph->outputs[k].node].keep ? g->count : g->places[g->graph->outputs[k].node];
    for (at = 0; at < g->count; at++) g->first_readers[at] = -1;
    for (k = g->link_count - 1; k >= 0; k--) {
        const tl_row_member *m = &g->members[g->owners[k]];
        int32_t tensor = g->graph->inputs[g->graph->nodes[m->node].first_input + k - m->first_link].tensor;
        g->lasts[tensor] = tli_larger_i32(g->lasts[tensor], g->owners[k]);
        if (g->links[k].member < 0) continue;
        g->next_readers[k] = g->first_readers[g->links[k].member];
        g->first_readers[g->links[k].member] = k;
    }
}

static int32_t tli_last_of(const tli_regions *g, int32_t at) {
    return g->lasts[g->graph->nodes[g->members[at].node].first_output];
}

// The first of the streams right before a candidate, which is their reader; the candidate itself if there are
// none. They are always in a region with it.
static int32_t tli_find_own_streams(const tli_regions *g, int32_t at) {
    while (at > 0 && g->graph->nodes[g->members[at - 1].node].is_input) at--;
    return at;
}

// From where on candidates may be in one region with this one: behind those that it reads whole, and at most so
// many, with its streams.
static void tli_find_lowest(tli_regions *g, int32_t span) {
    int32_t at, k;
    for (at = 0; at < g->count; at++) {
        const tl_row_member *m = &g->members[at];
        int32_t low = at ? g->lowest[at - 1] : 0, own = tli_find_own_streams(g, at);
        low = tli_larger_i32(low, at + 1 - span < own ? at + 1 - span : own);
        for (k = 0; k < g->graph->nodes[m->node].input_count; k++) {
            const tl_row_link *link = &g->links[m->first_link + k];
            if (tli_is_all_rows(&link->relation)) low = tli_larger_i32(low, link->member + 1);
        }
        if (!m->rows) low = at + 1;
        if (at && g->graph->nodes[g->members[at - 1].node].keep) low = tli_larger_i32(low, at);
        g->lowest[at] = low;
    }
}

// The members that regions may have, so that walks through all take no more than the limit. Each is walked
// through twice in calls of one row, and in calls of 2, 4, .. rows, which are as many again.
static int32_t tli_find_region_span(tli_regions *g) {
    uint64_t limit = g->now.work_limit / 3, *sums = g->best, work;  // sums: rows of all candidates before
    int32_t span, at;
    for (sums[0] = 0, at = 0; at < g->count; at++) sums[at + 1] = sums[at] + g->members[at].rows;
    for (span = TLI_REGION_SPAN; span > 1; span--) {
        for (work = 0, at = 0; at < g->count && work <= limit; at++)
            if (g->lowest[at] <= at) work += sums[at + 1] - sums[tli_larger_i32(g->lowest[at], at + 1 - span)];
        if (work <= limit) break;
    }
    return span;
}

// The input that a candidate may overwrite row by row; -1 = none.
static int32_t tli_find_over(const tli_regions *g, int32_t at) {
    const tl_row_member *m = &g->members[at];
    const tl_node *node = &g->graph->nodes[m->node];
    int32_t k;
    if (node->inplace >= 0 || !g->desc->in_slots || !g->desc->in_slots[m->node]) return node->inplace;
    for (k = 0; k < node->input_count; k++)
        if (g->links[m->first_link + k].relation.kind == TL_RELATION_WINDOW) return k;
    return -1;
}

// Whether a candidate may share the ring of another, which it alone reads.
static int tli_may_share(const tli_regions *g, int32_t at, int32_t from, const tl_relation *r) {
    const tl_row_member *m = &g->members[at], *f = &g->members[from];
    if (!m->rows || !f->rows || g->next_readers[g->first_readers[from]] >= 0 || tli_last_of(g, from) != at)
        return 0;
    if (r->kind == TL_RELATION_SAME) return m->row_bytes == f->row_bytes;
    if (g->in_elements[at] && f->row_bytes % g->alignment) return 0;
    return r->kind == TL_RELATION_WINDOW && m->row_bytes <= f->row_bytes;
}

// Whether a candidate or one that reads it is called for elements.
static int tli_meets_elements(const tli_regions *g, int32_t at) {
    int takes_blocks = g->graph->nodes[g->members[at].node].takes_blocks;
    int32_t k;
    for (k = g->first_readers[at]; k >= 0 && !takes_blocks; k = g->next_readers[k])
        takes_blocks = g->graph->nodes[g->members[g->owners[k]].node].takes_blocks;
    return takes_blocks;
}

// Find which candidates share a ring: those that alone read, and may overwrite, what another makes.
static void tli_find_sharers(tli_regions *g) {
    int32_t at;
    for (at = 0; at < g->count; at++) g->sharers[at] = -1;
    for (at = g->count - 1; at >= 0; at--) {
        tl_row_member *m = &g->members[at];
        int32_t k = g->over[at] = tli_find_over(g, at), from = k < 0 ? -1 : g->links[m->first_link + k].member;
        g->in_elements[at] = (uint8_t)tli_meets_elements(g, at);
        if (g->sharers[at] >= 0 && !g->in_slots[g->sharers[at]])
            g->in_elements[at] |= g->in_elements[g->sharers[at]];
        m->shares = -1;
        if (from < 0 || !tli_may_share(g, at, from, &g->links[m->first_link + k].relation)) continue;
        g->in_slots[at] = g->links[m->first_link + k].relation.kind == TL_RELATION_WINDOW;
        m->shares = from;
        g->sharers[from] = at;
    }
}

// Count the bytes that are live before each candidate is called, and while it is called as a whole.
static void tli_count_live(tli_regions *g) {
    const tl_graph *graph = g->graph;
    uint64_t resident = 0, live = 0;
    int32_t at, k;
    for (at = 0; at <= g->count; at++) g->crossing[at] = g->fewest[at] = 0;  // fewest: bytes that end here
    for (k = 0; k < graph->tensor_count; k++) {
        const tl_node *node = &graph->nodes[graph->outputs[k].node];
        uint64_t bytes = graph->outputs[k].bytes;
        if (!node->is_input) g->fewest[g->lasts[k]] += bytes;
        else if (g->places[graph->outputs[k].node] >= 0) continue;
        else if (!tli_dies(node)) resident += bytes;
        else if (g->lasts[k] >= 0) {
            live += bytes;
            g->fewest[g->lasts[k]] += bytes;
        }
    }
    for (at = 0; at < g->count; at++) {
        const tl_node *node = &graph->nodes[g->members[at].node];
        g->crossing[at] = g->wholes[at] = resident + live;
        if (node->is_input) {
            g->wholes[at] = UINT64_MAX;
            continue;
        }
        for (k = node->first_output; k < node->first_output + node->output_count; k++)
            live += graph->outputs[k].bytes;
        g->wholes[at] = resident + live + node->fwork_bytes;
        if (node->inplace >= 0) {
            int32_t tensor = graph->inputs[node->first_input + node->inplace].tensor;
            if (g->lasts[tensor] == at && !graph->nodes[graph->outputs[tensor].node].is_input)
                g->wholes[at] -= graph->outputs[tensor].bytes;
        }
        live -= g->fewest[at];
    }
}

// -- regions: walks --
//
// How many rows the rings of a region hold shows when its calls are walked through. Which calls those of the
// candidates i .. j are does not depend on what lies above i, so that one walk tells all regions that end at j.

// The rows of a call of a candidate, where a region asks for so many.
static uint64_t tli_find_block_rows(const tli_regions *g, int32_t at, uint64_t rows) {
    const tl_row_member *m = &g->members[at];
    const tl_node_rows *r = tli_find_rows(g->graph, m->node);
    uint64_t unit = r && !g->graph->nodes[m->node].takes_blocks ? r->unit : 1;
    rows = rows < unit ? unit : rows - rows % unit;
    return rows < m->rows ? rows : m->rows;
}

// The candidate that shares the ring of one in a region, 1:1 or by slots; -1 = none.
static int32_t tli_find_sharer(const tli_regions *g, int32_t at, int in_slots) {
    int32_t sharer = g->sharers[at];
    return sharer >= 0 && g->members[sharer].ring_rows && g->in_slots[sharer] == in_slots ? sharer : -1;
}

// The first row that is still read in the ring of a candidate, of itself or of those that share it.
static uint64_t tli_find_oldest_row(const tli_regions *g, int32_t at, uint64_t top) {
    int32_t k;
    for (; at >= 0; at = tli_find_sharer(g, at, 0))
        for (k = g->first_readers[at]; k >= 0; k = g->next_readers[k]) {
            int32_t reader = g->owners[k];
            uint64_t first;
            if (g->made[reader] == g->members[reader].rows) continue;
            first = tli_first_row_under(&g->links[k].relation, g->made[reader]);
            if (first < top) top = first;
        }
    return top;
}

// Note what a call of the walk needs of rings: all from the oldest row, or from a slot, to the newest.
static void tli_note_row_call(tli_regions *g, int32_t first, const tli_row_call *call) {
    const tl_row_member *m = &g->members[call->member];
    int32_t from = m->shares, at = call->member;
    uint64_t top = call->first + call->count;
    g->calls[at]++;
    if (!m->ring_rows) return;
    g->rings[at] = tli_larger_u64(g->rings[at], top - tli_find_oldest_row(g, at, call->first));
    if (from < first || !g->in_slots[at]) return;
    while (g->members[from].shares >= first && !g->in_slots[from]) from = g->members[from].shares;
    top = g->made[from] - (uint64_t)tli_row_under(&g->links[m->first_link + g->over[at]].relation, call->first);
    g->needs[at] = tli_larger_u64(g->needs[at], top);
}

// Count a call that was walked through, and ask the caller from time to time whether to stop.
static void tli_note_row_work(tli_regions *g) {
    if (++g->now.work < g->next_ask || !g->desc->progress || g->stopped) return;
    g->next_ask = g->now.work + TLI_ROWS_ASK;
    if (g->now.work_limit < g->now.work) g->now.work_limit = g->now.work;
    g->stopped = (g->desc->progress)(&g->now, g->desc->user) != 0;
}

// Walk through the region of the candidates first .. last, in calls of so many rows; not to the end where the
// caller asks to stop.
static void tli_walk_region(tli_regions *g, int32_t first, int32_t last, uint64_t rows) {
    tli_row_walk walk;
    tli_row_search search;
    tli_row_call call;
    int32_t at, stopped = g->stopped;
    walk.graph = g->graph;
    walk.members = g->members;
    walk.links = g->links;
    walk.made = g->made;
    walk.first = first;
    walk.last = last;
    for (at = first; at <= last; at++) {
        g->made[at] = g->calls[at] = g->rings[at] = g->sizes[at] = g->needs[at] = 0;
        g->members[at].ring_rows = g->first_readers[at] >= 0 && tli_last_of(g, at) <= last;
        g->members[at].block_rows = tli_find_block_rows(g, at, rows);
    }
    search = tli_begin_row_search(&walk, g->asked);
    while (g->stopped == stopped && tli_follow_row_call(&walk, &search, &call)) {
        tli_note_row_call(g, first, &call);
        tli_note_row_work(g);
        g->made[call.member] += call.count;
    }
}

// What a region takes, summed up from its last member on.
typedef struct tli_region_sum {
    uint64_t outputs, rings, scratch, calls, rows;  // rows: that it asked for
} tli_region_sum;

// Whether a member's rows, one at a time, stand in slots of the ring that it shares.
static int tli_takes_slots(const tli_regions *g, const tli_region_sum *sum, int32_t at) {
    return at >= 0 && g->rings[at] == 1 && sum->rows == 1;
}

// The rows of a ring: a multiple of those of a call where these may not wrap around its end.
static uint64_t tli_find_ring_rows(const tli_regions *g, int32_t at, uint64_t rows) {
    uint64_t least = tli_larger_u64(g->rings[at], g->reaches[at]), rest = least % rows;
    uint64_t most = tli_larger_u64(least, g->members[at].rows);
    if (!g->in_elements[at] || !rest) return least;
    return least + (rows - rest) < most ? least + (rows - rest) : most;
}

// Add the member before. One that shares its ring has been added with a ring of its own.
static void tli_add_member(tli_regions *g, tli_region_sum *sum, int32_t at) {
    const tl_row_member *m = &g->members[at];
    const tl_node *node = &g->graph->nodes[m->node];
    int32_t sharer = tli_find_sharer(g, at, 0), slot = tli_find_sharer(g, at, 1);
    sum->calls += g->calls[at];
    sum->scratch = tli_larger_u64(sum->scratch, tli_row_scratch(node->fwork_bytes, m->block_rows, m->rows));
    if (!m->ring_rows) {
        sum->outputs += g->graph->outputs[node->first_output].bytes;
        return;
    }
    if (!tli_takes_slots(g, sum, slot)) slot = -1;
    g->reaches[at] = sharer >= 0 ? g->reaches[sharer] : slot >= 0 ? g->needs[slot] : 0;
    if (sharer >= 0 || slot >= 0) sum->rings -= g->sizes[sharer >= 0 ? sharer : slot];
    g->rings[at] = tli_find_ring_rows(g, at, sum->rows);
    g->sizes[at] = tli_align_u64(g->rings[at] * m->row_bytes, g->alignment);
    sum->rings += g->sizes[at];
}

// -- regions: the best division --
//
//     best[j + 1]    least over i of max(best[i], peak of i .. j, in calls of one row)
//     fewest[j + 1]  least over i and rows of fewest[i] + the calls of i .. j, where that peak is in the limit

static uint64_t tli_find_region_peak(const tli_regions *g, const tli_region_sum *sum, int32_t first) {
    return tli_add_capped(tli_add_capped(g->crossing[first], sum->outputs),
                          tli_add_capped(sum->rings, sum->scratch));
}

// Weigh a region as the last of the candidates up to its end.
static void tli_weigh_region(tli_regions *g, const tli_region_sum *sum, int32_t first, int32_t last) {
    uint64_t peak = tli_find_region_peak(g, sum, first), calls;
    if (first == last || g->graph->nodes[g->members[last].node].is_input) return;  // a stream ends no region
    if (sum->rows == 1) {
        uint64_t most = tli_larger_u64(g->best[first], peak);
        if (most < g->best[last + 1]) {
            g->best[last + 1] = most;
            g->least_origins[last + 1] = first;
        }
    }
    if (peak > g->limit || g->fewest[first] == UINT64_MAX) return;
    calls = g->fewest[first] + sum->calls;
    if (calls >= g->fewest[last + 1]) return;
    g->fewest[last + 1] = calls;
    g->origins[last + 1] = first;
    g->blocks[last + 1] = sum->rows;
}

// Weigh all regions that end at a candidate, in calls of so many rows; where the caller asked to stop, that
// with its streams alone. 0 = more would make no larger calls.
static int tli_weigh_regions(tli_regions *g, int32_t last, uint64_t rows) {
    int32_t first, at;
    int stopped, grows = 0;
    tli_region_sum sum;
    tli_zero(&sum, sizeof sum);
    sum.rows = rows;
    do {
        stopped = g->stopped;
        first = stopped ? tli_find_own_streams(g, last) : g->lowest[last];
        if (first > last || (stopped && first == last)) return 0;
        tli_walk_region(g, first, last, rows);
    } while (g->stopped != stopped);
    for (at = last; at >= first; at--) {
        grows |= g->members[at].block_rows < g->members[at].rows;
        tli_add_member(g, &sum, at);
        tli_weigh_region(g, &sum, at, last);
    }
    return grows;
}

// Weigh each candidate as a whole, and all regions.
static void tli_weigh_all(tli_regions *g) {
    int32_t at;
    uint64_t rows;
    g->best[0] = g->fewest[0] = 0;
    for (at = 0; at < g->count; at++) {
        g->best[at + 1] = tli_larger_u64(g->best[at], g->wholes[at]);
        g->least_origins[at + 1] = at;
        g->fewest[at + 1] = UINT64_MAX;
        g->blocks[at + 1] = 0;
        g->origins[at + 1] = at;
        if (g->wholes[at] <= g->limit && g->fewest[at] < UINT64_MAX) g->fewest[at + 1] = g->fewest[at] + 1;
        for (rows = 1; tli_weigh_regions(g, at, rows) && g->limit; rows *= 2) {}
    }
}

// Go on with the division of the least peak, in calls of one row.
static void tli_take_least_division(tli_regions *g) {
    int32_t at;
    for (at = 0; at < g->count; at++) {
        g->origins[at + 1] = g->starts[at];
        g->blocks[at + 1] = g->starts[at] < at;
    }
}

// Divide by the least peak, then by the fewest calls within that or within the budget.
static tl_result tli_choose_regions(tli_regions *g) {
    uint64_t least;
    int32_t at;
    g->limit = 0;
    tli_weigh_all(g);
    least = g->best[g->count];
    for (at = 0; at < g->count; at++) g->starts[at] = g->least_origins[at + 1];
    g->limit = tli_or_default(g->desc->budget_bytes, least);
    if (least > g->limit)
        return tli_fail_values(g->env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_ROWS),
                               TLI_RULE(ROWS_NO_DIVISION_FITS_LEAST_IS_BYTES), g->limit, least);
    if (!g->stopped) tli_weigh_all(g);
    if (g->stopped) tli_take_least_division(g);
    for (at = 0; at < g->count; at++) g->starts[at] = -1;
    for (at = g->count; at > 0; at = g->origins[at]) g->starts[at - 1] = g->origins[at];
    return TL_OK;
}

// -- regions: the graph with regions as nodes --

// Where the rows of a member are: in a ring of its own, or in that of the member which it shares with.
static void tli_place_ring(const tli_regions *g, const tli_region_sum *sum, int32_t first, int32_t at,
                           tl_row_member *members, uint64_t *end) {
    tl_row_member *m = &members[at - first];
    int32_t from = m->shares - first;
    m->shares = -1;
    if (!m->ring_rows) return;
    if (from >= 0 && (!g->in_slots[at] || tli_takes_slots(g, sum, at))) {
        m->takes_slots = g->in_slots[at] ? g->over[at] + 1 : 0;
        m->shares = from;
        m->ring_rows = members[from].ring_rows;
        m->ring_offset = members[from].ring_offset;
        return;
    }
    m->ring_rows = g->rings[at];
    m->ring_offset = *end;
    *end += g->sizes[at];
}

// Write the members of the region that ends at a candidate, and their links.
static void tli_write_members(tli_regions *g, const tli_region_sum *sum, int32_t first, int32_t last,
                              tl_rows_plan *plan) {
    tl_row_member *members = (tl_row_member *)plan->members + plan->member_count;
    tl_row_link *links = (tl_row_link *)plan->links;
    int32_t link = plan->link_count;
    uint64_t end = 0;
    int32_t at, k;
    for (at = first; at <= last; at++) {
        const tl_row_member *m = &g->members[at];
        members[at - first] = *m;
        members[at - first].first_link = link;
        for (k = 0; k < g->graph->nodes[m->node].input_count; k++, link++) {
            links[link] = g->links[m->first_link + k];
            links[link].member = links[link].member < first ? -1 : links[link].member - first;
        }
        tli_place_ring(g, sum, first, at, members, &end);
    }
    plan->member_count += last - first + 1;
    plan->link_count = link;
}

// The tensors that a region reads from outside, each once; returns how many.
static int32_t tli_list_region_inputs(tli_regions *g, const tl_graph *graph, int32_t first, int32_t last) {
    int32_t at, k, i, count = 0;
    for (at = first; at <= last; at++) {
        const tl_row_member *m = &g->members[at];
        const tl_node *node = &g->graph->nodes[m->node];
        for (k = 0; k < node->input_count; k++) {
            int32_t tensor = g->tensors[g->graph->inputs[node->first_input + k].tensor];
            tl_tensor input;
            if (g->links[m->first_link + k].member >= first) continue;
            input.node = graph->outputs[tensor].node;
            input.output = graph->outputs[tensor].output;
            for (i = 0; i < count && (g->inputs[i].node != input.node || g->inputs[i].output != input.output);
                 i++) {}
            g->inputs[i] = input;
            count += i == count;
        }
    }
    return count;
}

// Give a region the weights, constants, outputs and origin of its members. stored, bytes: room for them.
static void tli_describe_members(const tl_graph *graph, const tl_row_member *members, int32_t count,
                                 tl_stored *stored, uint64_t *bytes, tl_node_desc *desc) {
    int32_t at, k;
    desc->param_bytes = 0;
    desc->output_count = desc->stored_count = 0;
    desc->origin = -1;
    for (at = 0; at < count; at++) {
        const tl_node *node = &graph->nodes[members[at].node];
        const tl_stored *constants;
        int32_t constant_count = tli_find_stored(graph, members[at].node, &constants);
        desc->param_bytes += node->param_bytes;
        if (desc->origin < 0 && node->origin >= 0 && !node->is_input) desc->origin = node->origin + 1;
        for (k = 0; k < constant_count; k++) stored[desc->stored_count++] = constants[k];
        if (!members[at].ring_rows) bytes[desc->output_count++] = graph->outputs[node->first_output].bytes;
    }
    desc->stored = stored;
    desc->output_bytes = bytes;
}

// Describe the region of the candidates first .. last, whose sums are known, as a node without a gradient.
static void tli_describe_region(tli_regions *g, const tl_graph *graph, const tli_region_sum *sum, int32_t first,
                                int32_t last, tl_node_desc *desc) {
    uint64_t calls;
    int32_t at;
    desc->op = g->desc->op ? g->desc->op : "rows";
    desc->fwd_cost = 0;
    desc->fwork_bytes = sum->rings + sum->scratch;
    desc->inplace = desc->takes_blocks = 0;
    tli_omit_rows(desc);
    tli_describe_members(g->graph, &g->members[first], last - first + 1, g->stored, g->bytes, desc);
    for (at = first; at <= last; at++) {
        const tl_node *node = &g->graph->nodes[g->members[at].node];
        desc->fwd_cost += node->fwd_cost;
        desc->once |= node->is_input > 0;   // rows of a stream come once
    }
    if (!tli_mul_u64(sum->calls, g->desc->call_cost, &calls)) calls = UINT64_MAX;
    desc->fwd_cost = tli_add_capped(desc->fwd_cost, calls);
    desc->input_count = tli_list_region_inputs(g, graph, first, last);
}

// Add a node that is in no region, without a gradient.
static tl_result tli_add_whole(tli_regions *g, tli_graph_rules *rules, tl_graph *graph, int32_t id) {
    const tl_node *node = &g->graph->nodes[id];
    tl_node_desc desc;
    int32_t k;
    tli_describe_node(g->graph, id, &desc);
    desc.bwd_cost = desc.saved_bytes = desc.bwork_bytes = desc.swork_bytes = 0;
    desc.no_grad = !node->is_input;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_output *from =
            &graph->outputs[g->tensors[g->graph->inputs[node->first_input + k].tensor]];
        g->inputs[k].node = from->node;
        g->inputs[k].output = from->output;
    }
    for (k = 0; k < node->output_count; k++) g->bytes[k] = g->graph->outputs[node->first_output + k].bytes;
    desc.inputs = g->inputs;
    desc.output_bytes = g->bytes;
    return tli_add_node(rules, graph, &desc);
}

// Add the region that ends at a candidate, walked through once more from its own first member on.
static tl_result tli_add_region(tli_regions *g, tli_graph_rules *rules, int32_t last, tl_rows_plan *plan) {
    int32_t first = g->starts[last], at;
    tli_region_sum sum;
    tl_node_desc desc;
    tli_zero(&sum, sizeof sum);
    sum.rows = g->blocks[last + 1];
    tli_walk_region(g, first, last, sum.rows);
    for (at = last; at >= first; at--) tli_add_member(g, &sum, at);
    tli_write_members(g, &sum, first, last, plan);
    tli_describe_node(g->graph, g->members[last].node, &desc);
    desc.bwd_cost = desc.saved_bytes = desc.bwork_bytes = desc.swork_bytes = 0;
    desc.no_grad = 1;
    tli_describe_region(g, &plan->graph, &sum, first, last, &desc);
    desc.inputs = g->inputs;
    plan->region_count++;
    plan->call_count += sum.calls;
    plan->peak_bytes = tli_larger_u64(plan->peak_bytes, tli_find_region_peak(g, &sum, first));
    return tli_add_node(rules, &plan->graph, &desc);
}

// Note which tensors of the new graph are the outputs of candidates first .. last, or of an input.
static void tli_note_outputs(tli_regions *g, const tl_graph *graph, int32_t first, int32_t last, int32_t id) {
    const tl_node *made = &graph->nodes[graph->node_count - 1];
    int32_t at, k, count = made->first_output;
    for (at = first; at <= last; at++) {
        const tl_node *node = &g->graph->nodes[first < last ? g->members[at].node : id];
        if (first < last && g->members[at].ring_rows) continue;
        for (k = node->first_output; k < node->first_output + node->output_count; k++) {
            ((tl_node_output *)graph->outputs)[count].format = g->graph->outputs[k].format;
            g->tensors[k] = count++;
        }
    }
}

static tl_result tli_build_regions(tli_regions *g, tl_rows_plan *plan, int32_t *nodes, int32_t *first_members) {
    tli_graph_rules rules = tli_rules_of(g->env, TLI_IN(PLAN_ROWS));
    tl_result result = TL_OK;
    int32_t id, at;
    plan->graph.batch = g->graph->batch;
    g->next_ask = UINT64_MAX;   // nothing is searched any more
    for (id = 0; id < g->graph->tensor_count; id++) g->tensors[id] = -1;
    for (id = 0; id < g->graph->node_count && !result; id++) {
        int32_t last = g->places[id], first = last < 0 ? -1 : g->starts[last];
        int is_region = last >= 0 && first >= 0 && g->blocks[last + 1];
        if (last >= 0 && (first < 0 || (g->graph->nodes[id].is_input && !is_region))) continue;  // a member
        first_members[plan->graph.node_count] = plan->member_count;
        result = is_region ? tli_add_region(g, &rules, last, plan) : tli_add_whole(g, &rules, &plan->graph, id);
        if (result) return result;
        for (at = is_region ? first : last; at <= last; at++)
            nodes[at < 0 ? id : g->members[at].node] = plan->graph.node_count - 1;
        tli_note_outputs(g, &plan->graph, is_region ? first : last, last, id);
        if (is_region || last < 0) continue;
        plan->call_count++;
        plan->peak_bytes = tli_larger_u64(plan->peak_bytes, g->wholes[last]);
    }
    first_members[plan->graph.node_count] = plan->member_count;
    return result ? result : tli_copy_views(g->env, g->graph, g->tensors, &plan->graph);
}

// -- regions: planning --

// What the descs of tl_plan_rows and tl_cut_rows have in common.
static tli_rule tli_check_region_desc(uint64_t alignment_bytes, const char *op) {
    if (alignment_bytes & (alignment_bytes - 1)) return TLI_RULE(ALIGNMENT_BYTES_MUST_BE_0_OR_POWER);
    if (alignment_bytes > TLI_MOST_REGION_ALIGNMENT) return TLI_RULE(ALIGNMENT_BYTES_OF_RINGS_ARE_AT_MOST_2_30);
    if (op && (!tli_is_name(op) || tli_same_text(op, "input")))
        return TLI_RULE(OP_MUST_NOT_BE_INPUT_AND_MUST_BE_1);
    return TLI_NO_RULE;
}

// Allocate the arrays; 0 if there is no memory. Those of numbers of the same size share a block.
static int tli_open_regions(tl_env *env, const tl_rows_desc *desc, tli_regions *g) {
    const tl_graph *graph = desc->graph;
    const tl_attributes *a = graph->attributes;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    uint64_t inputs = (uint64_t)graph->input_count;
    tli_zero(g, sizeof *g);
    g->env = env;
    g->desc = desc;
    g->graph = graph;
    g->alignment = tli_or_default(desc->alignment_bytes, 1);
    g->members = (tl_row_member *)tli_alloc_array(env, nodes, sizeof *g->members);
    g->links = (tl_row_link *)tli_alloc_array(env, inputs + 1, sizeof *g->links);
    g->inputs = (tl_tensor *)tli_alloc_array(env, inputs + 1, sizeof *g->inputs);
    g->stored = (tl_stored *)tli_alloc_array(env, a ? (uint64_t)a->stored_count + 1 : 1, sizeof *g->stored);
    g->places = (int32_t *)tli_alloc_array(env, 9 * nodes + 2 + 2 * inputs + 2 * tensors, sizeof *g->places);
    g->now.work_limit = desc->work_limit ? desc->work_limit : TLI_ROWS_WORK;
    g->next_ask = TLI_ROWS_ASK;
    g->crossing = (uint64_t *)tli_alloc_array(env, 11 * nodes + 4 + tensors, sizeof *g->crossing);
    g->in_slots = (uint8_t *)tli_alloc_array(env, 2 * nodes, 1);
    if (!g->members || !g->links || !g->inputs || !g->stored || !g->places || !g->crossing || !g->in_slots)
        return 0;
    g->first_readers = g->places + nodes;
    g->lowest = g->first_readers + nodes;
    g->sharers = g->lowest + nodes;
    g->over = g->sharers + nodes;
    g->asked = g->over + nodes;
    g->starts = g->asked + nodes;
    g->origins = g->starts + nodes;
    g->least_origins = g->origins + nodes + 1;
    g->owners = g->least_origins + nodes + 1;
    g->next_readers = g->owners + inputs;
    g->lasts = g->next_readers + inputs;
    g->tensors = g->lasts + tensors;
    g->best = g->crossing + nodes + 1;
    g->fewest = g->best + nodes + 1;
    g->blocks = g->fewest + nodes + 1;
    g->wholes = g->blocks + nodes + 1;
    g->made = g->wholes + nodes;
    g->calls = g->made + nodes;
    g->rings = g->calls + nodes;
    g->sizes = g->rings + nodes;
    g->needs = g->sizes + nodes;
    g->reaches = g->needs + nodes;
    g->bytes = g->reaches + nodes;
    g->in_elements = g->in_slots + nodes;
    return 1;
}

static void tli_close_regions(tli_regions *g) {
    tli_release(g->env, g->members);
    tli_release(g->env, g->links);
    tli_release(g->env, g->inputs);
    tli_release(g->env, g->stored);
    tli_release(g->env, g->places);
    tli_release(g->env, g->crossing);
    tli_release(g->env, g->in_slots);
}

// The bytes of the arrays of a plan, with room for so many turns a node.
static uint64_t tli_count_rows_plan(const tl_graph *graph, uint64_t turns) {
    uint64_t each = sizeof(tl_row_member) + turns * sizeof(tl_row_turn) + 4 * sizeof(int32_t);
    return (uint64_t)graph->node_count * each + (uint64_t)graph->input_count * sizeof(tl_row_link) +
           2 * sizeof(int32_t);
}

// The arrays of a plan, in one block; 0 if there is no memory.
static int tli_open_rows_plan(tl_env *env, const tl_graph *graph, uint64_t turns, tl_rows_plan *plan) {
    uint64_t nodes = (uint64_t)graph->node_count, inputs = (uint64_t)graph->input_count;
    plan->memory = tli_alloc_array(env, tli_count_rows_plan(graph, turns), 1);
    if (!plan->memory) return 0;
    plan->members = (tl_row_member *)plan->memory;
    plan->turns = (tl_row_turn *)(plan->members + nodes);
    plan->links = (tl_row_link *)(plan->turns + turns * nodes);
    plan->nodes = (int32_t *)(plan->links + inputs);
    plan->first_members = plan->nodes + nodes;
    if (!turns) {
        plan->turns = NULL;
        return 1;
    }
    plan->first_turns = plan->first_members + nodes + 1;
    plan->forward_turns = plan->first_turns + nodes + 1;
    return 1;
}

// Find the candidates and all that is known of them before a region is weighed.
static tl_result tli_prepare_regions(tli_regions *g) {
    tl_result result = tli_check_row_edges(g);
    if (result) return result;
    tli_find_candidates(g);
    tli_link_candidates(g);
    tli_find_lowest(g, TLI_REGION_SPAN);
    tli_find_lowest(g, tli_find_region_span(g));
    tli_find_sharers(g);
    tli_count_live(g);
    return TL_OK;
}

// The peak when all is whole, streams too.
static uint64_t tli_find_whole_peak(const tli_regions *g) {
    uint64_t peak = 0, streams = 0;
    int32_t at;
    for (at = 0; at < g->count; at++) {
        const tl_node *node = &g->graph->nodes[g->members[at].node];
        if (node->is_input) streams += g->graph->outputs[node->first_output].bytes;
        else peak = tli_larger_u64(peak, g->wholes[at]);
    }
    return peak + streams;
}

TLI_IMPL tl_result tl_plan_rows(tl_env *env, const tl_rows_desc *desc, tl_rows_plan *rows) {
    const tli_function function = TLI_IN(PLAN_ROWS);
    tli_rule rule;
    tli_regions g;
    tl_rows_plan plan;
    tl_result result;
    TL_ASSERT(desc && desc->graph && rows);
    tli_zero(rows, sizeof *rows);
    tli_zero(&plan, sizeof plan);
    rule = tli_check_region_desc(desc->alignment_bytes, desc->op);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    result = tl_check_graph(env, desc->graph);
    if (result) return result;
    if (!tli_open_regions(env, desc, &g) || !tli_open_rows_plan(env, desc->graph, 0, &plan))
        result = tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(ROWS_NO_MEMORY_TO_FIND_REGIONS));
    if (!result) result = tli_prepare_regions(&g);
    if (!result) result = tli_choose_regions(&g);
    if (!result) {
        plan.whole_bytes = tli_find_whole_peak(&g);
        plan.inference = 1;
        result = tli_build_regions(&g, &plan, (int32_t *)plan.nodes, (int32_t *)plan.first_members);
    }
    tli_close_regions(&g);
    if (result) tl_free_rows_plan(env, &plan);
    *rows = plan;
    return result;
}

TLI_IMPL void tl_free_rows_plan(tl_env *env, tl_rows_plan *rows) {
    if (!rows) return;
    tl_free_graph(env, &rows->graph);
    tli_release(env, rows->memory);
    tli_zero(rows, sizeof *rows);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
