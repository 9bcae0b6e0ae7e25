#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- search: improving a sequence --
//
// This part changes the sequence of the part above. It chooses the recomputations to add when the budget is
// exceeded; makes random tries (remove some, mend, remove those not needed, accept or undo), beginning with
// greedy and other schedules; and finds the least budget. r is the state of the search, s its sequence, p the
// problem.

typedef struct tli_search_state {
    const tli_search_problem *p;
    tli_search_seq    seq;
    tli_search_calls  best;
    uint64_t      best_cost;     // of its forwards and conversions
    tl_random     random;
    uint64_t      limit;         // seq.work at which the search ends
    uint64_t      mend_limit;    // seq.work at which the present mending ends
    uint64_t      try_work, mend_work;  // for one try to keep a budget that may be too small: to plan, to mend
    uint64_t      goal, bwd_cost;  // lower bound of the cost of forwards; cost of all backwards
    int32_t       phase, turn, turns;  // number of the next phase; tries done in the present one, of so many
    uint64_t      heat;          // median of what a try may cost more, in the present phase
    tli_remat_watch *watch;
    int32_t      *stack;         // not used
    int32_t      *closure;       // [nodes + tensors] nodes to run for an item; -1 - copy: tli_search_offer_copy
    int32_t      *chosen;        // [nodes + tensors] the best closure so far
    uint32_t     *stamp;         // [nodes] equals stamped where a node is in the closure
    uint32_t      stamped;
    int32_t       chosen_count, chosen_place;
    int32_t       chosen_gone;   // place of an expansion that the chosen nodes replace; -1 = none
    int32_t       group_count, stride;  // groups of candidates; from one to the next: no divisor in common
    int64_t      *ratio;         // [items] score of making it again by one forward: 2 log2 (cost / bytes)
    int64_t       excess;        // bytes by which the fullest call exceeds the budget
    int64_t       noise;         // width of the random part of scores
    int32_t       distance;      // exponent of the distance in scores, in halves
    int           is_exact;      // 1 = freed bytes beyond the excess do not count in scores
    uint64_t     *copies_ns;     // [tensors] time of a copy and the one back; NULL = there is no host tier
    uint64_t      link_price;    // cost of a nanosecond of the link, in 256ths
} tli_search_state;

// A random number below limit.
static int32_t tli_search_draw(tli_search_state *r, int32_t limit) {
    return (int32_t)((tl_next_random(&r->random) >> 33) * (uint64_t)limit >> 31);
}

// The cost of spilling and fetching a tensor at the present price of the link.
static uint64_t tli_search_copy_price(const tli_search_state *r, int32_t tensor) {
    uint64_t ns = r->copies_ns[tensor];
    return ns < TLI_SEARCH_MOST_COST >> 10 ? ns * r->link_price >> 8 : TLI_SEARCH_MOST_COST >> 10;
}

// Add a copy of a tensor to the closure if that costs less than its forward alone: a fetch, or an expansion,
// for which the call at `full` holds compressed bytes from event e on.
static int tli_search_weigh_copy(tli_search_state *r, int32_t tensor, int32_t e, int64_t full, uint64_t *cost,
                                 int64_t *freed, int32_t *count) {
    const tli_search_seq *s = &r->seq;
    const tl_node *maker = &r->p->graph->nodes[r->p->graph->outputs[tensor].node];
    uint64_t price = maker->once ? TLI_SEARCH_MOST_COST : maker->fwd_cost;
    int64_t packed = 0, holds;
    int32_t i, copy = -1;
    if (!TLI_SEARCH_COPIES || !r->p->copies) return 0;
    if (r->copies_ns && tli_search_copy_price(r, tensor) < price) {
        price = tli_search_copy_price(r, tensor);
        copy = tensor;
    }
    holds = r->p->packed_bytes[tensor] - tli_search_gap_bytes(s, s->events[e].behind);
    if (tli_search_when(s, e) >= full) holds = 0;
    if (r->p->packed_bytes[tensor] && holds < *freed && 2 * r->p->codec_ns[tensor] < price &&
        !tli_search_is_return(s, s->events[e].call)) {
        price = 2 * r->p->codec_ns[tensor];
        packed = holds;
        copy = r->p->graph->tensor_count + tensor;
    }
    if (copy < 0) return 0;
    for (i = 0; i < *count; i++) if (r->closure[i] == -1 - copy) return 1;
    r->closure[(*count)++] = -1 - copy;
    *cost += price;
    *freed -= packed;
    return 1;
}

// Score making an item again just before its next use (event y) instead of holding so many bytes of it from
// event x across the full call; the nodes to run go to r->closure. Inputs of theirs that are not resident by
// then are made again too, come back from a copy, or are held across the full call, whichever costs less per
// byte. Returns the score, less is better; *count 0 = it cannot be made, or no bytes are freed.
static int64_t tli_search_weigh(tli_search_state *r, int32_t item, int32_t x, int32_t y, int64_t freed,
                                int64_t full, int32_t *count) {
    tli_search_seq *s = &r->seq;
    const tl_graph *graph = r->p->graph;
    int64_t when = tli_search_when(s, y) - 1, score;
    uint64_t cost;
    int32_t at, i;
    r->closure[0] = tli_search_maker(r->p, item);
    r->stamp[r->closure[0]] = ++r->stamped;
    cost = graph->nodes[r->closure[0]].fwd_cost;
    *count = 1;
    s->work += 24;
    for (at = 0; at < *count; at++) {
        const tl_node *node = &graph->nodes[r->closure[at] < 0 ? 0 : r->closure[at]];
        if (r->closure[at] < 0) continue;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, id = graph->outputs[tensor].node, e;
            int64_t bytes = (int64_t)graph->outputs[tensor].bytes;
            if (graph->nodes[id].is_input || r->stamp[id] == r->stamped) continue;
            e = tli_search_event_before(s, tensor, when);
            s->work += 8;
            if (e < 0) { *count = 0; return 0; }
            if (tli_search_is_use(s, s->events[e].behind)) continue;
            if (tli_search_when(s, e) >= full) continue;
            if (graph->nodes[id].once) {  // held across the full call, or it comes back from a copy
                if (tli_search_weigh_copy(r, tensor, e, full, &cost, &freed, count)) continue;
                if (bytes >= freed) { *count = 0; return 0; }
                freed -= bytes;
                continue;
            }
            if (bytes < freed && tli_search_log(graph->nodes[id].fwd_cost) - tli_search_log((uint64_t)bytes) >
                                     tli_search_log(cost) - tli_search_log((uint64_t)freed) + 16384) {
                freed -= bytes;
                continue;
            }
            if (tli_search_weigh_copy(r, tensor, e, full, &cost, &freed, count)) continue;
            r->stamp[id] = r->stamped;
            r->closure[(*count)++] = id;
            cost += graph->nodes[id].fwd_cost;
        }
    }
    if (!freed) { *count = 0; return 0; }
    if (r->is_exact && freed > r->excess) freed = r->excess;
    score = 2 * tli_search_log(cost) - 2 * tli_search_log((uint64_t)freed);
    score -= r->distance * tli_search_log((uint64_t)(when + 1 - tli_search_when(s, x)) >> 12);
    if (r->noise) score += (int64_t)(tl_next_random(&r->random) >> 40) * r->noise >> 24;
    return score;
}

// As tli_search_weigh, for a fetch just before the next use.
static int64_t tli_search_score_fetch(tli_search_state *r, int32_t item, int32_t x, int32_t y) {
    tli_search_seq *s = &r->seq;
    int64_t freed = r->p->item_bytes[item], score;
    int64_t span = tli_search_when(s, y) - tli_search_when(s, x);
    if (r->is_exact && freed > r->excess) freed = r->excess;
    score = 2 * tli_search_log(tli_search_copy_price(r, item)) - 2 * tli_search_log((uint64_t)freed);
    score -= r->distance * tli_search_log((uint64_t)span >> 12);
    if (r->noise) score += (int64_t)(tl_next_random(&r->random) >> 40) * r->noise >> 24;
    return score;
}

// Whether a use y may read a compressed copy that is made after the event x before it: a backward may, and a
// forward that ran before.
static int tli_search_may_expand(const tli_search_seq *s, int32_t x, int32_t y) {
    int32_t at = s->events[y].call, e;
    if (s->places[at].call >= tli_search_end_call(s->p) || tli_search_is_return(s, s->events[x].call)) return 0;
    for (e = s->places[at].first_event; e >= 0 && s->places[at].call % 2 == 0; e = s->events[e].sibling)
        if (!s->events[e].is_use && s->events[e].before < 0) return 0;
    return 1;
}

// As tli_search_weigh, for a compressed copy that is expanded just before the next use.
static int64_t tli_search_score_expand(tli_search_state *r, int32_t item, int32_t x, int32_t y) {
    tli_search_seq *s = &r->seq;
    int64_t freed = r->p->item_bytes[item] - r->p->packed_bytes[item], score;
    int64_t span = tli_search_when(s, y) - tli_search_when(s, x);
    if (r->is_exact && freed > r->excess) freed = r->excess;
    score = 2 * tli_search_log(2 * r->p->codec_ns[item]) - 2 * tli_search_log((uint64_t)freed);
    score -= r->distance * tli_search_log((uint64_t)span >> 12);
    if (r->noise) score += (int64_t)(tl_next_random(&r->random) >> 40) * r->noise >> 24;
    return score;
}

// Choose a copy if it scores better than the best choice so far. copy: the tensor, or behind all tensors its
// compressed copy.
static void tli_search_offer_copy(tli_search_state *r, int32_t copy, int32_t y, int64_t score, int64_t *least) {
    if (r->chosen_count && score >= *least) return;
    *least = score;
    r->chosen_count = 1;
    r->chosen[0] = -1 - copy;
    r->chosen_place = r->seq.events[y].call;
    r->chosen_gone = -1;
}

static void tli_search_compare_copies(tli_search_state *r, int32_t item, int32_t x, int32_t y, int64_t *least) {
    int32_t tensors = r->p->graph->tensor_count;
    if (r->copies_ns) tli_search_offer_copy(r, item, y, tli_search_score_fetch(r, item, x, y), least);
    if (r->p->packed_bytes[item] && tli_search_may_expand(&r->seq, x, y))
        tli_search_offer_copy(r, tensors + item, y, tli_search_score_expand(r, item, x, y), least);
}

// Compare making an item again later, instead of holding it across the full call, with the best choice so far,
// whose score is *least. Returns whether it is held across the call.
static int tli_search_compare(tli_search_state *r, int32_t item, int32_t full, int64_t *least) {
    tli_search_seq *s = &r->seq;
    int64_t order = s->places[full].order, score;
    int64_t bytes = r->p->item_bytes[item];
    int32_t x, y, count, gone = -1;
    if (!bytes || s->last[item] < 0) return 0;
    x = tli_search_event_before(s, item, order);
    s->work += 4;
    if (x < 0 || s->events[x].call == full) return 0;
    y = s->events[x].behind;
    if (y >= 0 && !s->events[y].is_use && tli_search_gap_bytes(s, y)) {     // it is held compressed
        bytes = r->p->packed_bytes[item];
        gone = s->events[y].call;
        y = gone == full ? -1 : s->events[y].behind;
    }
    if (!tli_search_is_use(s, y)) return 0;
    s->work += 6;
    if (TLI_SEARCH_COPIES && gone < 0 && r->p->copies && item < r->p->graph->tensor_count)
        tli_search_compare_copies(r, item, x, y, least);
    if (tli_search_is_made_once(r->p, item)) return 1;
    if (r->chosen_count) {  // skip it if its own forward alone, a lower bound of the cost, scores no better
        score = tli_search_when(s, y) - tli_search_when(s, x);
        score = r->ratio[item] - r->distance * tli_search_log((uint64_t)score >> 12);
        if (r->is_exact && bytes > r->excess)
            score += 2 * tli_search_log((uint64_t)bytes) - 2 * tli_search_log((uint64_t)r->excess);
        if (score >= *least) return 1;
    }
    score = tli_search_weigh(r, item, x, y, bytes, order, &count);
    if (!count || (r->chosen_count && score >= *least)) return 1;
    *least = score;
    r->chosen_count = count;
    r->chosen_place = s->events[y].call;
    r->chosen_gone = gone;
    tli_copy(r->chosen, r->closure, (size_t)count * sizeof *r->closure);
    return 1;
}

#define TLI_SEARCH_FEW_ITEMS 1024   // so many are all looked at for each choice
#define TLI_SEARCH_CANDIDATES 192   // of more items, so many that are live across the call
#define TLI_SEARCH_GROUP 8          // neighbours in the listing that are looked at together, for the cache

// Choose the item to make again later instead of holding it across a call that exceeds the budget. In a large
// graph only some items are candidates: groups spread over the listing from a random one on.
static int tli_search_choose(tli_search_state *r, int32_t full) {
    int64_t least = 0;
    int32_t items = r->p->item_count - r->p->node_count, left = items, group = 0, k;
    if (items > TLI_SEARCH_FEW_ITEMS) {
        left = TLI_SEARCH_CANDIDATES;
        group = tli_search_draw(r, r->group_count);
    }
    r->chosen_count = 0;
    r->chosen_gone = -1;
    r->excess = tli_search_held(&r->seq, full) - r->seq.budget;
    for (k = 0; k < r->group_count * TLI_SEARCH_GROUP && left > 0; k++) {
        int32_t item = group * TLI_SEARCH_GROUP + k % TLI_SEARCH_GROUP;
        if (k % TLI_SEARCH_GROUP == TLI_SEARCH_GROUP - 1)
            group += group < r->group_count - r->stride ? r->stride : r->stride - r->group_count;
        if (item < items) left -= tli_search_compare(r, item, full, &least);
    }
    TLI_INVARIANT(r->chosen_count <= r->p->node_count + r->p->graph->tensor_count);
    return r->chosen_count > 0;
}

// Insert the chosen nodes before their place, in listing order.
static int tli_search_apply(tli_search_state *r) {
    int32_t i, k, behind;
    if (TLI_SEARCH_COPIES && r->chosen_gone >= 0) tli_search_remove(&r->seq, r->chosen_gone);
    behind = r->seq.places[r->chosen_place].before;
    for (i = 1; i < r->chosen_count; i++) {
        int32_t id = r->chosen[i];
        for (k = i; k > 0 && r->chosen[k - 1] > id; k--) r->chosen[k] = r->chosen[k - 1];
        r->chosen[k] = id;
    }
    for (i = 0; i < r->chosen_count; i++) {
        int32_t id = r->chosen[i];      // below 0: the number of a copy, fetches first
        int32_t call = id < 0 ? tli_search_fetch_call(r->p, -1 - id) : 2 * id;
        behind = tli_search_insert(&r->seq, call, behind);
        if (behind < 0) return 0;
    }
    TLI_INVARIANT(r->seq.failed || tli_search_seq_holds_often(&r->seq));
    return 1;
}

// The place with the most live bytes.
static int32_t tli_search_find_full(tli_search_seq *s) {
    int32_t b, at, full = 0;
    for (b = 0; b >= 0; b = s->blocks[b].behind) {
        s->work++;
        if (s->blocks[b].top + s->blocks[b].add > s->blocks[full].top + s->blocks[full].add) full = b;
    }
    for (at = s->blocks[full].first; s->places[at].held != s->blocks[full].top;) at = s->places[at].behind;
    return at;
}

// Insert recomputations until the budget is kept; 0 if that costs too much, or fails.
static int tli_search_mend(tli_search_state *r, uint64_t most_cost, int32_t steps) {
    tli_search_seq *s = &r->seq;
    while (s->over_count > 0) {
        if (s->cost > most_cost || steps-- <= 0 || s->failed || s->work > r->mend_limit) return 0;
        if (s->used > r->p->most_calls) return 0;
        if (r->watch && tli_remat_stops(r->watch, s->work)) return 0;
        if (!tli_search_choose(r, tli_search_find_full(s)) || !tli_search_apply(r)) return 0;
    }
    TLI_INVARIANT(!s->over_count && tli_search_seq_holds_often(s));
    return s->cost <= most_cost;
}

#define TLI_SEARCH_SPANS 12

typedef struct tli_search_spans {
    int64_t orders[TLI_SEARCH_SPANS], bytes[TLI_SEARCH_SPANS];
    int32_t count;
} tli_search_spans;

// List how live bytes before a call would change if it were removed: so many bytes from each order on up to the
// call. Returns 0 if there are too many spans.
static int tli_search_list_spans(const tli_search_seq *s, int32_t at, tli_search_spans *spans) {
    int32_t e;
    spans->count = 0;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling) {
        const tli_search_event *event = &s->events[e];
        int64_t more = tli_search_gap_bytes(s, event->behind) - tli_search_gap_bytes(s, e);
        if (event->before < 0 || !more) continue;
        if (spans->count == TLI_SEARCH_SPANS) return 0;
        spans->orders[spans->count] = tli_search_when(s, event->before);
        spans->bytes[spans->count++] = more;
    }
    return 1;
}

// Sum the spans at a moment: *more bytes, constant since *since. Returns 0 if no span adds bytes there or
// before.
static int tli_search_sum_spans(const tli_search_spans *spans, int64_t order, int64_t *more, int64_t *since) {
    int32_t i;
    int any = 0;
    *more = 0;
    *since = -1;
    for (i = 0; i < spans->count; i++) {
        if (spans->orders[i] >= order) continue;
        any |= spans->bytes[i] > 0;
        *more += spans->bytes[i];
        if (spans->orders[i] > *since) *since = spans->orders[i];
    }
    return any;
}

// Whether the budget is probably kept without a recomputation; a cheap test before it is removed.
static int tli_search_may_fit(tli_search_seq *s, int32_t at) {
    tli_search_spans spans;
    int64_t more = 0, since = INT64_MAX;
    int32_t q = s->places[at].before;
    if (!tli_search_list_spans(s, at, &spans)) return 1;
    while (q > 0) {
        const tli_search_place *place = &s->places[q];
        const tli_search_block *block = &s->blocks[place->block];
        s->work++;
        if (place->order <= since && !tli_search_sum_spans(&spans, place->order, &more, &since)) return 1;
        if (block->top + block->add + more <= s->budget && s->places[block->first].order > since) {
            q = s->places[block->first].before;
            continue;
        }
        if (place->held + block->add + more > s->budget) return 0;
        q = place->before;
    }
    return 1;
}

// Remove a call if it is a recomputation that the budget does not require.
static void tli_search_spare(tli_search_seq *s, int32_t at) {
    int32_t mark = s->change_count;
    s->work += 2;
    if (!at || !tli_search_can_remove(s, at)) return;
    s->work += 8;
    if (!tli_search_is_useless(s, at) && !tli_search_may_fit(s, at)) return;
    tli_search_remove(s, at);
    if (s->over_count) tli_search_undo(s, mark);
    TLI_INVARIANT(s->failed || s->change_count >= mark);
}

#define TLI_SEARCH_NEARBY 2000  // places that are tidied after one try

// Remove every recomputation that the budget does not require, from a place on: at most `count` places, once
// around.
static void tli_search_tidy_some(tli_search_state *r, int32_t from, int32_t count) {
    tli_search_seq *s = &r->seq;
    int32_t at = s->places[from].call < 0 ? 0 : from;
    while (count-- > 0 && !s->failed) {
        int32_t next = s->places[at].behind;
        tli_search_spare(s, at);
        at = next < 0 ? 0 : next;
    }
}

static void tli_search_tidy(tli_search_state *r, int32_t from) {
    tli_search_tidy_some(r, from, r->seq.used);
}

// -- search: one try: remove, mend, tidy, keep or undo --

// A recomputation drawn at random or, where moves is set, a forward; -1 = none found.
static int32_t tli_search_pick(tli_search_state *r, int moves) {
    tli_search_seq *s = &r->seq;
    int32_t tries;
    for (tries = 0; tries < 64; tries++) {
        int32_t at = 1 + tli_search_draw(r, s->place_count - 1);
        s->work += 4;
        if (moves ? tli_search_is_forward(s, at) : tli_search_can_remove(s, at)) return at;
    }
    return -1;
}

// Remove some recomputations near a place. Returns a place from which to tidy; -1 = none.
static int32_t tli_search_ruin(tli_search_state *r, int32_t at) {
    tli_search_seq *s = &r->seq;
    int32_t wanted = 1 + tli_search_draw(r, 6), span = 4 * wanted + 4, mark = 0, first = s->change_count;
    int forwards = tli_search_draw(r, 2);
    if (at < 0) return -1;
    while (at > 0 && wanted > 0 && span-- > 0) {
        int32_t next = forwards ? s->places[at].behind : s->places[at].before;
        if (tli_search_can_remove(s, at) && (s->change_count == first || tli_search_draw(r, 3))) {
            mark = s->places[at].before;
            tli_search_remove(s, at);
            wanted--;
        }
        at = next;
    }
    TLI_INVARIANT(s->failed || tli_search_seq_holds_often(s));
    return mark;
}

// Move a forward to another time, after its inputs are made and before the first use of its outputs. Returns a
// place from which to tidy; -1 = nothing moved.
static int32_t tli_search_move(tli_search_state *r, int32_t at) {
    tli_search_seq *s = &r->seq;
    int32_t e, lo = 0, hi = -1, call, steps;
    if (at < 0) return -1;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling) {
        int32_t x = s->events[e].before;
        if (s->events[e].is_use) while (x >= 0 && s->events[x].is_use) x = s->events[x].before;
        if (x >= 0 && tli_search_when(s, x) > s->places[lo].order) lo = s->events[x].call;
        x = s->events[e].behind;
        if (s->events[e].is_use || !tli_search_is_kept(s, x)) continue;
        if (hi < 0 || tli_search_when(s, x) < s->places[hi].order) hi = s->events[x].call;
    }
    call = s->places[at].call;
    steps = 1 + tli_search_draw(r, 8);
    e = s->places[at].before;
    if (hi < 0) return -1;
    if (tli_search_draw(r, 2)) {
        while (steps-- > 0 && e != lo) e = s->places[e].before;
        if (e == s->places[at].before) return -1;
    } else {
        e = at;
        while (steps-- > 0 && s->places[e].behind != hi) e = s->places[e].behind;
        if (e == at) return -1;
    }
    tli_search_remove(s, at);
    tli_search_insert(s, call, e);
    TLI_INVARIANT(s->failed || tli_search_seq_holds_often(s));
    return e;
}

// Change the sequence somewhere. Returns a place from which to tidy; -1 = nothing changed.
static int32_t tli_search_shake(tli_search_state *r) {
    return tli_search_draw(r, 4) ? tli_search_ruin(r, tli_search_pick(r, 0))
                                 : tli_search_move(r, tli_search_pick(r, 1));
}

static int tli_search_list_calls(tli_search_seq *s, tli_search_calls *list) {
    int32_t at;
    list->count = 0;
    s->work += 2 * (uint64_t)s->used;
    for (at = s->places[0].behind; at >= 0 && !s->failed; at = s->places[at].behind)
        if (!tli_search_add_call(s->p->env, list, s->places[at].call)) s->failed = 1;
    TLI_INVARIANT(s->failed || list->count == s->used);
    return !s->failed;
}

static int tli_search_save_best(tli_search_state *r) {
    if (!tli_search_list_calls(&r->seq, &r->best)) return 0;
    r->best_cost = r->seq.cost;
    TLI_INVARIANT(r->best.count == r->seq.used);
    return 1;
}

// Draw how the next try scores, and the most that it may cost: above what it costs now by an exponentially
// distributed number of median `heat`.
static uint64_t tli_search_temper(tli_search_state *r, uint64_t was, uint64_t heat) {
    int64_t u = 32 * 65536 - tli_search_log((tl_next_random(&r->random) >> 32) + 1);  // -log2 of a random ratio
    r->noise = (int64_t)65536 * (1 + tli_search_draw(r, 4));
    if (!tli_search_draw(r, 8)) r->noise *= 8;
    r->distance = tli_search_draw(r, 4);
    r->is_exact = !tli_search_draw(r, 8);
    return was + (heat >> 16) * (uint64_t)u + ((heat & 65535) * (uint64_t)u >> 16);
}

// Change the sequence at random and keep it if its cost is below a random threshold, which is above the present
// cost by an exponentially distributed number of median `heat`; else undo.
static void tli_search_try(tli_search_state *r, uint64_t heat) {
    tli_search_seq *s = &r->seq;
    uint64_t most;
    int32_t mark;
    s->change_count = 0;
    s->logs = 1;
    most = tli_search_temper(r, s->cost, heat);
    mark = tli_search_shake(r);
    if (mark >= 0 && tli_search_mend(r, most, 40)) {
        tli_search_tidy_some(r, mark, s->used < TLI_SEARCH_NEARBY ? s->used : TLI_SEARCH_NEARBY);
        if (!s->failed && s->cost < r->best_cost) tli_search_save_best(r);
        TLI_INVARIANT(s->failed || !s->over_count);
        return;
    }
    tli_search_undo(s, 0);
    TLI_INVARIANT(s->failed || tli_search_seq_holds_often(s));
}

// -- search: starts, phases, the whole --

// The rules that the greedy planner tries in turn.
static const tli_search_rule tli_search_rules[] = {
    { 2, 2, 2, 0, 0, 0 }, { 2, 2, 2, 0, 1, 0 }, { 2, 2, 1, 0, 0, 0 }, { 2, 2, 4, 0, 0, 0 },
    { 2, 2, 0, 0, 0, 0 }, { 2, 1, 2, 0, 0, 0 }, { 2, 4, 2, 0, 0, 0 }, { 1, 2, 2, 0, 1, 0 },
    { 0, 0, 2, 0, 1, 0 }, { 2, 2, 2, 1, 0, 0 }, { 2, 2, 2, 1, 1, 0 }, { 2, 2, 0, 1, 1, 0 },
    { 2, 2, 2, 0, 0, 1 }, { 2, 2, 2, 0, 1, 1 }, { 2, 2, 1, 0, 1, 1 }, { 2, 2, 0, 0, 1, 1 }
};

#define TLI_SEARCH_RULES ((int32_t)(sizeof tli_search_rules / sizeof tli_search_rules[0]))
#define TLI_SEARCH_STARTS 4
#define TLI_SEARCH_GREEDY_LIMIT 10000000  // work after which no more rules are tried, if there is a sequence

typedef struct tli_search_start { tli_search_calls calls; uint64_t cost; } tli_search_start;

static void tli_search_free_search(tli_search_state *r, tli_search_start *starts) {
    tl_env *env = r->p->env;
    int32_t i;
    tli_search_free_seq(&r->seq);
    tli_release(env, r->best.calls);
    tli_release(env, r->closure);
    tli_release(env, r->chosen);
    tli_release(env, r->stamp);
    tli_release(env, r->ratio);
    for (i = 0; i < TLI_SEARCH_STARTS; i++) tli_release(env, starts[i].calls.calls);
}

static tl_result tli_search_init_search(const tli_search_problem *p, tli_search_state *r) {
    tl_result result;
    uint64_t nodes = (uint64_t)p->node_count, tensors = p->copies ? (uint64_t)p->graph->tensor_count : 0;
    int32_t i;
    tli_zero(r, sizeof *r);
    r->p = p;
    r->best_cost = r->mend_limit = UINT64_MAX;
    r->random.state = 1;
    for (i = 0; i < p->node_count; i++)
        if (!p->inference && p->graph->nodes[i].has_grad) r->bwd_cost += p->graph->nodes[i].bwd_cost;
    r->closure = (int32_t *)tli_alloc_array(p->env, nodes + tensors, sizeof *r->closure);
    r->chosen = (int32_t *)tli_alloc_array(p->env, nodes + tensors, sizeof *r->chosen);
    r->stamp = (uint32_t *)tli_alloc_array(p->env, nodes, sizeof *r->stamp);
    r->ratio = (int64_t *)tli_alloc_array(p->env, (uint64_t)p->item_count, sizeof *r->ratio);
    result = tli_search_init_seq(p, &r->seq);
    if (!result && (!r->closure || !r->chosen || !r->stamp || !r->ratio)) {
        tli_search_free_seq(&r->seq);
        result = TL_ERROR_NO_MEMORY;
    }
    if (result) {
        tli_release(p->env, r->closure);
        tli_release(p->env, r->chosen);
        tli_release(p->env, r->stamp);
        tli_release(p->env, r->ratio);
        return result;
    }
    i = p->item_count - p->node_count;
    r->group_count = (i + TLI_SEARCH_GROUP - 1) / TLI_SEARCH_GROUP;
    r->stride = i > TLI_SEARCH_FEW_ITEMS ? (int32_t)((int64_t)r->group_count * 618 / 1000) : 1;  // golden ratio
    while (tli_bound_gcd((uint64_t)r->group_count, (uint64_t)r->stride) > 1) r->stride++;
    for (i = 0; i < p->item_count; i++)
        r->ratio[i] = 2 * tli_search_log(p->graph->nodes[tli_search_maker(p, i)].fwd_cost) -
                      2 * tli_search_log((uint64_t)p->item_bytes[i]);
    return TL_OK;
}

// Keep the sequence among the TLI_SEARCH_STARTS cheapest starts; 0 = no memory.
static int tli_search_keep_start(tli_search_state *r, tli_search_start *starts) {
    tli_search_seq *s = &r->seq;
    int32_t i, worst = 0;
    for (i = 0; i < TLI_SEARCH_STARTS; i++) {
        if (starts[i].calls.count && starts[i].cost == s->cost) return 1;
        if (!starts[worst].calls.count) continue;
        if (!starts[i].calls.count || starts[i].cost > starts[worst].cost) worst = i;
    }
    if (starts[worst].calls.count && starts[worst].cost <= s->cost) return 1;
    TLI_INVARIANT(!s->over_count);
    starts[worst].cost = s->cost;
    return tli_search_list_calls(s, &starts[worst].calls);
}

// If the loaded sequence keeps the budget, tidy it and add it to the starts. 0 = no memory.
static int tli_search_add_start(tli_search_state *r, tli_search_start *starts) {
    tli_search_seq *s = &r->seq;
    if (s->failed) return 0;
    if (s->over_count) return 1;
    s->change_count = 0;
    s->logs = 1;
    tli_search_tidy(r, 0);
    if (s->failed || (s->cost < r->best_cost && !tli_search_save_best(r))) return 0;
    return tli_search_keep_start(r, starts);
}

// Whether work is left, the bound is not reached and nobody asked to stop.
static int tli_search_goes_on(tli_search_state *r) {
    uint64_t *known = &r->watch->now.cost, cost = r->best_cost + r->bwd_cost;
    if (r->seq.failed || r->seq.work >= r->limit || r->best_cost <= r->goal) return 0;
    if (!*known || cost < *known) *known = cost;
    return !tli_remat_stops(r->watch, r->seq.work);
}

// So many 16ths of the mean cost of a call, also where costs are small numbers.
static uint64_t tli_search_find_heat(uint64_t cost, int32_t calls, uint64_t sixteenths) {
    uint64_t mean = cost / (uint64_t)calls;
    if (mean < 65536) return cost * sixteenths / 16 / (uint64_t)calls;
    return (mean < TLI_SEARCH_MOST_COST >> 16 ? mean : TLI_SEARCH_MOST_COST >> 16) / 16 * sixteenths;
}

#define TLI_SEARCH_FORGETS 1024  // most calls of a sequence that one phase can make anew

// Whether another beginning may pay: the best sequence costs more than one part in 1000 above the bound, and is
// so short that a phase leads as low again.
static int tli_search_may_forget(const tli_search_state *r) {
    if (r->seq.used > TLI_SEARCH_FORGETS) return 0;
    return !r->goal || r->best_cost - r->goal > (r->goal + r->bwd_cost) / 1000;
}

// Begin the next phase. The first ones begin with the starts, the later ones with the best sequence; every
// fourth is hot, and where that may pay so hot that it forgets most of the plan, or all, and is another
// beginning. Returns 0 if memory ran out, or the sequence is too long or exceeds the budget.
static int tli_search_begin_phase(tli_search_state *r, const tli_search_start *starts) {
    static const uint16_t heats[] = { 16, 2, 1000, 1, 16, 2, 4000, 1 };
    const tli_search_calls *from = &r->best;
    uint64_t heat;
    while (r->phase < TLI_SEARCH_STARTS && !starts[r->phase].calls.count) r->phase++;
    if (r->phase < TLI_SEARCH_STARTS) from = &starts[r->phase].calls;
    if (!tli_search_is_short(r->p, from) || !tli_search_load(&r->seq, from) || r->seq.over_count) return 0;
    r->turns = 400 << (r->phase < 24 ? r->phase / 2 : 12);
    r->turn = 0;
    heat = heats[r->phase++ % 8];
    if (heat > 255 && !tli_search_may_forget(r)) heat = 255;
    r->heat = tli_search_find_heat(r->best_cost, r->seq.used, heat);
    TLI_INVARIANT(r->seq.used > 0 && tli_search_seq_holds(&r->seq));
    return 1;
}

// Improve the best sequence in phases of growing length (doubled every second phase), each of which cools down.
// The work limit decides only when this ends, not what it does: called again, it goes on.
static void tli_search_improve(tli_search_state *r, const tli_search_start *starts) {
    while (tli_search_goes_on(r)) {
        if (r->turn == r->turns && !tli_search_begin_phase(r, starts)) return;
        tli_search_try(r, r->heat);
        if (r->turn++ % (r->turns / 20 + 1) == r->turns / 20) r->heat -= r->heat / 3;
    }
}

static int tli_search_load_program(tli_search_seq *s) {
    tli_search_calls program;
    int ok;
    tli_zero(&program, sizeof program);
    ok = tli_search_list_program(s->p, &program) && tli_search_load(s, &program);
    tli_release(s->p->env, program.calls);
    return ok;
}

// The fewest bytes of a forward that takes so many without saving. One that has something to save may run as
// FORWARD_SAVE, which takes fewer where swork is far below fwork, and must if it runs only once.
static int64_t tli_search_least_bytes(const tli_search_problem *p, int32_t id, int64_t bytes) {
    const tl_node *node = &p->graph->nodes[id];
    int64_t more = tli_search_save_bytes(p, id);
    if (!node->saved_bytes || p->inference) return bytes;
    if (node->inplace >= 0) more += p->item_bytes[node->first_output];
    return node->once || more < 0 ? bytes + more : bytes;
}

// The largest working set of one call: a lower bound of every budget.
static int64_t tli_search_find_floor(const tli_search_problem *p) {
    int64_t most = p->input_bytes;
    int32_t call, k;
    for (call = 0; call < tli_search_end_call(p); call++) {
        int64_t bytes = p->call_bytes[call];
        int is_inplace = call % 2 == 0 && p->graph->nodes[call / 2].inplace >= 0;
        if (call % 2 ? p->inference || !p->graph->nodes[call / 2].has_grad : !p->is_wanted[call / 2]) continue;
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++)
            if (p->touches[k].is_use) bytes += p->item_bytes[p->touches[k].item];
        if (is_inplace) bytes -= p->item_bytes[p->graph->nodes[call / 2].first_output];
        if (call % 2 == 0) bytes = tli_search_least_bytes(p, call / 2, bytes);
        if (p->input_bytes + bytes > most) most = p->input_bytes + bytes;
    }
    return most;
}

// Set the work for one try of a budget that may be too small: at most an eighth of the work limit, but for a
// plan as much as a greedy one takes.
static void tli_search_limit_tries(tli_search_state *r, uint64_t work_limit) {
    uint64_t least = 500 * ((uint64_t)r->p->node_count + (uint64_t)r->p->graph->input_count);
    uint64_t most = UINT64_C(8000000) + 1500 * (uint64_t)r->p->node_count;
    r->mend_work = work_limit / 8 < most ? work_limit / 8 : most;
    r->try_work = r->mend_work > least ? r->mend_work : least;
}

// Load a list of calls, and mend it if it exceeds the budget. 0 = no memory.
static int tli_search_load_mended(tli_search_state *r, const tli_search_calls *calls) {
    if (!tli_search_load(&r->seq, calls)) return 0;
    r->mend_limit = r->seq.work + r->mend_work;
    if (r->seq.over_count) tli_search_mend(r, TLI_SEARCH_MOST_COST, r->p->node_count);
    return !r->seq.failed;
}

// Exchange the best sequence for a list of calls.
static void tli_search_swap_best(tli_search_state *r, tli_search_calls *calls, uint64_t cost) {
    tli_search_calls best = r->best;
    r->best = *calls;
    r->best_cost = cost;
    *calls = best;
    TLI_INVARIANT(r->best_cost == cost);
}

// Make a list of calls a start. One that is too long for that becomes the best sequence, if it keeps the budget
// and costs least; the list is exchanged then. 0 = no memory.
static int tli_search_start_from(tli_search_state *r, tli_search_calls *calls, tli_search_start *starts) {
    tli_replay_peak peak;
    if (tli_search_is_short(r->p, calls))
        return tli_search_load_mended(r, calls) && tli_search_add_start(r, starts);
    if (!tli_replay_find_peak(r->p, calls, &peak, &r->seq.work)) return 0;
    if (peak.bytes <= r->p->budget && peak.cost < r->best_cost) tli_search_swap_best(r, calls, peak.cost);
    return 1;
}

// Make the starts: the graph divided; the plan that keeps everything, mended; greedy plans. 0 = no memory.
static int tli_search_begin(tli_search_state *r, tli_search_greedy *g, tli_search_start *starts) {
    const tli_search_problem *p = r->p;
    uint64_t limit = g->work + (r->try_work > 4 * r->mend_work ? r->try_work : 4 * r->mend_work);
    int32_t i;
    if (p->budget < tli_search_find_floor(p)) return 1;
    r->distance = 2;
    r->seq.budget = p->budget;
    if (!p->inference && (!tli_search_divide(p, p->budget, &g->calls, &g->work) ||
                          !tli_search_start_from(r, &g->calls, starts))) return 0;
    r->mend_limit = r->seq.work + 2 * r->mend_work;
    if (!tli_search_load_program(&r->seq)) return 0;
    if (!r->seq.over_count || tli_search_mend(r, TLI_SEARCH_MOST_COST, 4 * p->node_count + 64))
        if (!tli_search_add_start(r, starts)) return 0;
    if (r->seq.failed) return 0;
    for (i = 0; i < TLI_SEARCH_RULES && g->work < limit; i++) {
        int found = r->best.count && tli_search_is_short(p, &r->best);
        if (found && (g->work > TLI_SEARCH_GREEDY_LIMIT || g->work > 2 * r->mend_work)) break;
        g->most_work = g->work + r->try_work;
        if (tli_search_run_greedy(g, &tli_search_rules[i], p->budget) &&
            !tli_search_start_from(r, &g->calls, starts)) return 0;
        if (g->failed) return 0;
    }
    return 1;
}

// -- search: the least budget --

// Make the sequence the best one if it lowers the peak *high. 0 = no memory.
static int tli_search_take_lower(tli_search_state *r, int64_t *high) {
    int64_t peak = tli_search_held(&r->seq, tli_search_find_full(&r->seq));
    if (peak >= *high) return 1;
    *high = peak;
    TLI_INVARIANT(!r->seq.failed);
    return tli_search_save_best(r);
}

// The same for a list of calls, which is exchanged for the best one then.
static int tli_search_take_list(tli_search_state *r, tli_search_calls *calls, int64_t *high) {
    tli_replay_peak peak;
    if (!tli_replay_find_peak(r->p, calls, &peak, &r->seq.work)) return 0;
    if (peak.bytes >= *high) return 1;
    *high = peak.bytes;
    tli_search_swap_best(r, calls, peak.cost);
    return 1;
}

// Lower the peak *high of the best sequence to a budget by dividing the graph. 0 = no memory.
static int tli_search_divide_to(tli_search_state *r, tli_search_greedy *g, int64_t budget, int64_t *high) {
    tli_replay_peak peak;
    if (!tli_search_divide(r->p, budget, &g->calls, &g->work)) return 0;
    if (!tli_replay_find_peak(r->p, &g->calls, &peak, &g->work)) return 0;
    if (peak.bytes > budget && tli_search_is_short(r->p, &g->calls))
        return tli_search_load_mended(r, &g->calls) && tli_search_take_lower(r, high);
    return tli_search_take_list(r, &g->calls, high);
}

// Lower the peak *high of the best sequence to a budget, if a sequence is found. 0 = no memory.
static int tli_search_lower_to(tli_search_state *r, tli_search_greedy *g, int64_t budget, int64_t *high) {
    int32_t i;
    r->seq.budget = budget;
    r->distance = 2;
    r->noise = 0;
    if (!r->p->inference && !tli_search_divide_to(r, g, budget, high)) return 0;
    g->most_work = g->work + r->try_work;
    for (i = 0; i < TLI_SEARCH_RULES && g->work < g->most_work && *high > budget; i++) {
        if (tli_search_run_greedy(g, &tli_search_rules[i], budget) && !tli_search_take_list(r, &g->calls, high))
            return 0;
        if (g->failed) return 0;
    }
    if (*high <= budget) return 1;
    r->mend_limit = r->seq.work + r->mend_work;
    tli_release(r->p->env, g->calls.calls);     // the next list is made anew, and the sequence is large
    tli_zero(&g->calls, sizeof g->calls);
    if (!tli_search_load_program(&r->seq)) return 0;
    if (!tli_search_mend(r, TLI_SEARCH_MOST_COST, 4 * r->p->node_count + 64)) return !r->seq.failed;
    return tli_search_take_lower(r, high);
}

// Lower the peak of the best sequence, *high, by dividing the graph alone, the cheapest way to a sequence of
// few bytes: for halves of the least peak so far, as long as these are kept, then between that and the largest
// budget that was not. Returns 0 if memory ran out.
static int tli_search_divide_down(tli_search_state *r, tli_search_greedy *g, int64_t floor, int64_t *high) {
    int64_t low = floor, budget;
    uint64_t limit = r->seq.work + g->work + r->try_work;
    while (*high - low > 1 + *high / 64 && r->seq.work + g->work < limit) {
        budget = low == floor && *high / 2 > floor ? *high / 2 : low + (*high - low) / 2;
        if (!tli_search_divide(r->p, budget, &g->calls, &g->work)) return 0;
        if (!tli_search_take_list(r, &g->calls, high)) return 0;
        if (*high > budget) low = budget;
        if (r->watch && tli_remat_stops(r->watch, r->seq.work + g->work)) return 1;
    }
    return 1;
}

// Find the least budget for which a sequence is found: by dividing; the floor; then halves of the least peak
// so far, as long as these are kept; then bisection until the work is used up. Returns 0 if memory ran out;
// the sequence is in r->best.
static int tli_search_find_least(tli_search_state *r, tli_search_greedy *g, int64_t *least) {
    tli_search_seq *s = &r->seq;
    int64_t floor = tli_search_find_floor(r->p), low = floor, budget = floor;
    uint64_t limit = s->work + g->work + 8 * r->try_work;
    int is_halved = 1;
    *least = INT64_MAX;
    if (!tli_search_load_program(s) || !tli_search_take_lower(r, least)) return 0;
    (void)tli_search_rest(s);       // it is loaded anew, and lists are made meanwhile
    if (!r->p->inference && !tli_search_divide_down(r, g, floor, least)) return 0;
    while (budget < *least && s->work + g->work < limit) {
        if (!tli_search_lower_to(r, g, budget, least)) return 0;
        if (r->watch && r->watch->stopped) break;
        if (*least > budget) {
            is_halved &= low == floor && budget == floor;
            low = budget;
        }
        if (*least - low <= 1 + *least / 4096 || s->work + g->work > r->limit) break;
        budget = is_halved && *least / 2 > low ? *least / 2 : low + (*least - low) / 2;
    }
    return 1;
}

// Try to lower the peak of the best sequence to a target, by mending it repeatedly. 0 = no memory.
static int tli_search_squeeze(tli_search_state *r, int64_t target, int64_t *least) {
    tli_search_seq *s = &r->seq;
    int32_t tries;
    if (!tli_search_is_short(r->p, &r->best)) return 1;
    for (tries = 0; tries < 200 && *least > target && s->work < r->mend_limit; tries++) {
        s->budget = target;
        if (!tli_search_load(s, &r->best)) return 0;
        r->noise = (int64_t)65536 * tries / 50;
        r->distance = tries % 4;
        tli_search_mend(r, TLI_SEARCH_MOST_COST, 2 * r->p->node_count + 64);
        if (s->failed || !tli_search_take_lower(r, least)) return 0;
        if (r->watch && tli_remat_stops(r->watch, s->work)) break;
    }
    r->mend_limit = UINT64_MAX;
    s->budget = r->p->budget;
    return 1;
}

// -- search: a search that goes on where it was --

typedef struct tli_sequence_search {
    tli_search_problem p;
    tli_search_state   r;
    tli_search_start   starts[TLI_SEARCH_STARTS];
    uint64_t           counted;     // work that was reported before
    int32_t            is_open;
} tli_sequence_search;

static void tli_search_close(tli_sequence_search *s) {
    if (!s->is_open) return;
    tli_search_free_search(&s->r, s->starts);
    tli_search_free_problem(&s->p);
    s->is_open = 0;
    TLI_INVARIANT(!s->is_open);
}

// Prepare a search; close it also after an error. TL_ERROR_OVERFLOW: bytes or costs are too large.
static tl_result tli_search_open(const tli_remat_input *in, tli_sequence_search *s) {
    tl_result result;
    tli_zero(s, sizeof *s);
    result = tli_search_init_problem(in, &s->p);
    if (result) return result;
    result = tli_search_init_search(&s->p, &s->r);
    if (result) tli_search_free_problem(&s->p);
    s->is_open = !result;
    s->r.watch = in->watch;
    s->r.random.state += tli_remat_seed(in->watch);
    return result;
}

// The work since the last call of this function.
static uint64_t tli_search_count(tli_sequence_search *s) {
    uint64_t work = s->r.seq.work - s->counted;
    s->counted += work;
    return work;
}

static int tli_search_is_found(const tli_sequence_search *s) { return s->r.best.count > 0; }

// The cost of the best sequence.
static uint64_t tli_search_cost(const tli_sequence_search *s) { return s->r.best_cost + s->r.bwd_cost; }

// The sequence is not the one that the phase had, or its arrays are gone: the next phase begins.
static void tli_search_end_phase(tli_search_state *r) { r->turn = r->turns = 0; }

// Make the first sequences that keep the budget.
static tl_result tli_search_find_first(tli_sequence_search *s, uint64_t work_limit) {
    tli_search_greedy g;
    tl_result result = tli_search_init_greedy(&s->p, &g);
    if (result) return result;
    g.watch = s->r.watch;
    tli_search_limit_tries(&s->r, work_limit);
    if (!tli_search_begin(&s->r, &g, s->starts)) result = TL_ERROR_NO_MEMORY;
    s->r.mend_limit = UINT64_MAX;
    s->r.seq.work += g.work;
    tli_search_free_greedy(&g);
    tli_search_rest(&s->r.seq);
    return result;
}

// The same with the least work, though the caller asks to stop.
static tl_result tli_search_find_at_once(tli_sequence_search *s) {
    tli_remat_watch *watch = s->r.watch;
    tl_result result;
    s->r.watch = NULL;
    result = tli_search_find_first(s, 0);
    s->r.watch = watch;
    return result;
}

// List the calls of a plan without copies to a host. 0 = no memory.
static int tli_search_list_plan(const tli_search_problem *p, const tl_plan *plan, tli_search_calls *calls) {
    int32_t i, ok = 1;
    calls->count = 0;
    for (i = 0; i < plan->step_count && ok; i++) {
        const tl_step *step = &plan->steps[i];
        if (step->kind > TL_STEP_BACKWARD) continue;
        ok = tli_search_add_call(p->env, calls, 2 * step->node + (step->kind == TL_STEP_BACKWARD));
    }
    return ok && tli_search_add_call(p->env, calls, tli_search_end_call(p));
}

// Load a plan without copies to a host; *is_short: 0 = it is too long, nothing is loaded.
static tl_result tli_search_load_plan(tli_search_seq *s, const tl_plan *plan, int *is_short) {
    tli_search_calls calls;
    int ok;
    tli_zero(&calls, sizeof calls);
    ok = tli_search_list_plan(s->p, plan, &calls);
    *is_short = tli_search_is_short(s->p, &calls);
    if (ok && *is_short) ok = tli_search_load(s, &calls);
    tli_release(s->p->env, calls.calls);
    return ok ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Make a plan one more start, if it keeps the budget and is not too long.
static tl_result tli_search_add_plan(tli_sequence_search *s, const tl_plan *plan) {
    int is_short;
    tl_result result = tli_search_load_plan(&s->r.seq, plan, &is_short);
    tli_search_end_phase(&s->r);
    if (result || !is_short) return result;
    return tli_search_add_start(&s->r, s->starts) ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Try to lower the peak of a plan to the budget. The best sequence is then the lowest one that was found.
static tl_result tli_search_lower(tli_sequence_search *s, const tl_plan *plan, uint64_t work_limit) {
    tli_search_state *r = &s->r;
    int64_t least = INT64_MAX;
    int is_short;
    tl_result result = tli_search_load_plan(&r->seq, plan, &is_short);
    if (result || !is_short) return result;
    if (!tli_search_take_lower(r, &least)) return TL_ERROR_NO_MEMORY;
    r->mend_limit = r->seq.work + work_limit;
    return tli_search_squeeze(r, s->p.budget, &least) ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Improve the best sequence until the work limit or the bound is reached.
static tl_result tli_search_go_on(tli_sequence_search *s, uint64_t work_limit, uint64_t bound) {
    tli_search_state *r = &s->r;
    r->goal = bound > r->bwd_cost ? bound - r->bwd_cost : 0;
    r->limit = r->seq.work + work_limit;
    tli_search_improve(r, s->starts);
    if (tli_search_rest(&r->seq)) tli_search_end_phase(r);
    return r->seq.failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// The steps of the best sequence.
static tl_result tli_search_take_best(tli_sequence_search *s, tli_steps *steps) {
    return tli_replay_steps(&s->p, &s->r.best, steps) ? TL_OK : TL_ERROR_NO_MEMORY;
}

// The same, at the end of a search: the sequence is freed first, which makes room for the steps.
static tl_result tli_search_take_last(tli_sequence_search *s, tli_steps *steps) {
    tli_search_free_seq(&s->r.seq);
    return tli_search_take_best(s, steps);
}

// Find the sequence of the least peak; it becomes the best one.
static tl_result tli_search_find_lowest(tli_sequence_search *s, uint64_t work_limit) {
    tli_search_state *r = &s->r;
    tli_search_greedy g;
    uint64_t before = r->seq.work;
    int64_t least;
    int ok;
    tl_result result = tli_search_init_greedy(&s->p, &g);
    if (result) return result;
    g.watch = r->watch;
    tli_search_limit_tries(r, work_limit / 2);
    r->limit = before + work_limit / 2;
    ok = tli_search_find_least(r, &g, &least);
    r->seq.work += g.work;
    tli_search_free_greedy(&g);
    before = r->seq.work - before;
    r->mend_limit = r->seq.work + (before < work_limit ? work_limit - before : 0);
    ok = ok && tli_search_squeeze(r, tli_search_find_floor(&s->p), &least);
    tli_search_rest(&r->seq);
    return ok ? TL_OK : TL_ERROR_NO_MEMORY;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
