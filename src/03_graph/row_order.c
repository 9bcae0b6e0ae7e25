#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- regions: in which order rows are made --
//
// Depth first: the next call is one of the last output of the region that is not whole, unless rows are missing
// that it reads; then one of the member which makes those, and so on. Planner and runs ask for one call after
// the other, so what was counted is what happens.

typedef struct tli_row_walk {
    const tl_graph      *graph;
    const tl_row_member *members;   // of the region; those with ring_rows 0 are its outputs
    const tl_row_link   *links;
    uint64_t            *made;      // [last + 1] rows of each member that were made
    int32_t              first, last;   // members of the region; links to those before are from outside
} tli_row_walk;

typedef struct tli_row_call {
    int32_t  member;
    uint64_t first, count;      // rows
} tli_row_call;

// Whether a relation is to all rows of an input.
static int tli_is_all_rows(const tl_relation *r) {
    return r->kind == TL_RELATION_WHOLE || r->kind == TL_RELATION_PART;
}

// The first row of an input that a row reads; negative where that is padding.
static int64_t tli_row_under(const tl_relation *r, uint64_t row) {
    switch (r->kind) {
    case TL_RELATION_SAME: return (int64_t)row;
    case TL_RELATION_WINDOW: return (int64_t)row * r->stride - r->padding;
    case TL_RELATION_UP: return (int64_t)(row / (uint64_t)r->stride);
    default: return 0;
    }
}

static uint64_t tli_first_row_under(const tl_relation *r, uint64_t row) {
    int64_t first = tli_row_under(r, row);
    return first > 0 ? (uint64_t)first : 0;
}

// One behind the last row of an input, which has so many, that the rows before `end` read.
static uint64_t tli_end_under(const tl_relation *r, uint64_t end, uint64_t rows) {
    int64_t last;
    if (tli_is_all_rows(r)) return rows;
    last = tli_row_under(r, end - 1);
    if (r->kind == TL_RELATION_WINDOW) last += tli_window_reach(r);
    return last < 0 ? 0 : (uint64_t)last + 1 < rows ? (uint64_t)last + 1 : rows;
}

static uint64_t tli_count_next_rows(const tl_row_member *m, uint64_t made) {
    return m->rows - made < m->block_rows ? m->rows - made : m->block_rows;
}

// The member that makes what the next call of a member lacks; -1 = nothing is missing.
static int32_t tli_find_missing_rows(const tli_row_walk *w, int32_t at) {
    const tl_row_member *m = &w->members[at];
    uint64_t end = w->made[at] + tli_count_next_rows(m, w->made[at]);
    int32_t k;
    for (k = 0; k < w->graph->nodes[m->node].input_count; k++) {
        const tl_row_link *link = &w->links[m->first_link + k];
        if (link->member < w->first) continue;
        if (w->made[link->member] < tli_end_under(&link->relation, end, w->members[link->member].rows))
            return link->member;
    }
    return -1;
}

// The next call; 0 = all outputs are whole. The caller counts its rows as made when it was carried out.
static int tli_next_row_call(const tli_row_walk *w, tli_row_call *call) {
    int32_t at = w->last, missing;
    while (at >= w->first && (w->members[at].ring_rows || w->made[at] == w->members[at].rows)) at--;
    if (at < w->first) return 0;
    while ((missing = tli_find_missing_rows(w, at)) >= 0) at = missing;
    call->member = at;
    call->first = w->made[at];
    call->count = tli_count_next_rows(&w->members[at], w->made[at]);
    return 1;
}

// Where a search for the next call goes on: from the member that asked for the rows of the last call, not from
// the output at the top.
typedef struct tli_row_search {
    int32_t *asked;     // [last + 1] the member that waits for rows of one
    int32_t  top, at;   // the output that is made; the member whose rows were last, or -1
} tli_row_search;

static tli_row_search tli_begin_row_search(const tli_row_walk *w, int32_t *asked) {
    tli_row_search search;
    search.asked = asked;
    search.top = w->last;
    search.at = -1;
    return search;
}

// The call that tli_next_row_call finds, in time that does not depend on how deep the region is.
static int tli_follow_row_call(const tli_row_walk *w, tli_row_search *s, tli_row_call *call) {
    int32_t at = s->at < 0 || s->at == s->top ? s->top : s->asked[s->at], missing;
    while (s->top >= w->first && (w->members[s->top].ring_rows || w->made[s->top] == w->members[s->top].rows))
        at = --s->top;
    if (s->top < w->first) return 0;
    while ((missing = tli_find_missing_rows(w, at)) >= 0) {
        s->asked[missing] = at;
        at = missing;
    }
    s->at = call->member = at;
    call->first = w->made[at];
    call->count = tli_count_next_rows(&w->members[at], w->made[at]);
    return 1;
}

// The bytes of scratch that a node's call for so many of its rows gets.
static uint64_t tli_row_scratch(uint64_t bytes, uint64_t count, uint64_t rows) {
    uint64_t each = bytes / rows, rest = bytes % rows;
    return each * count + (rest * count + rows - 1) / rows;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
