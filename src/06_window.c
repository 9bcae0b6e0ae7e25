#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- window: a sequence improved piece by piece --
//
//     calls     . . . . [ . . . . . . . . ] . . . . .      Calls are removed, moved and tidied between two
//                     first             last               places alone, and what is held there is listed
//                                                          once: a try takes the time of the window, not of
//                                                          the sequence. In long sequences there are many more
//                                                          tries in the same work.
//
// A window is annealed by itself: it is warm at first, cools down, and ends with the cheapest sequence that it
// met, which the log of changes brings back. So the sequence never becomes dearer from one window to the next.
//
// A sequence that exceeds the budget is lowered first: windows are put around its fullest call, and changes
// are kept that lower the peak, whatever they cost (Bartan et al., Moccasin, 2023, arXiv:2304.14463, begin with
// feasibility as well).

typedef struct tli_search_window {
    tli_search_state *r;
    int32_t  first, last;      // places around it, which no try removes
    int32_t  call_of_first, call_of_last;
    int32_t  count;            // calls between them when it was set
    int32_t *items;            // [item_count] items that may be live in it
    int32_t  item_count;
    uint8_t *is_listed;        // [items of the problem]
    int32_t  noted;            // changes of the log whose items are listed
} tli_search_window;

// -- window: what is held in it --

static void tli_window_list(tli_search_window *w, int32_t item) {
    if (w->is_listed[item] || !w->r->p->item_bytes[item]) return;
    w->is_listed[item] = 1;
    w->items[w->item_count++] = item;
}

// List the items with an event in the window, or held across it.
static void tli_window_fill(tli_search_window *w) {
    tli_search_seq *s = &w->r->seq;
    int64_t from = s->places[w->first].order, to = s->places[w->last].order;
    int32_t item, items = w->r->p->item_count - w->r->p->node_count;
    while (w->item_count) w->is_listed[w->items[--w->item_count]] = 0;
    w->noted = 0;
    for (item = 0; item < items; item++) {
        int32_t e;
        s->work++;
        if (!w->r->p->item_bytes[item]) continue;
        e = tli_search_event_before(s, item, to);
        if (e < 0) continue;
        if (s->places[s->events[e].call].order >= from || tli_search_is_use(s, s->events[e].behind))
            tli_window_list(w, item);
    }
}

// List the items of calls that have been inserted or removed since the last time.
static void tli_window_note(tli_search_window *w) {
    const tli_search_seq *s = &w->r->seq;
    const tli_search_problem *p = w->r->p;
    for (; w->noted < s->change_count; w->noted++) {
        const tli_search_change *change = &s->changes[w->noted];
        int32_t call = change->call < 0 ? s->places[change->place].call : change->call, k;
        if (call < 0) continue;
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++) tli_window_list(w, p->touches[k].item);
    }
}

// Put the window around a place, `half` calls to each side.
static void tli_window_set(tli_search_window *w, int32_t at, int32_t half) {
    tli_search_seq *s = &w->r->seq;
    int32_t i;
    w->first = w->last = at;
    w->count = 1;
    for (i = 0; i < half && s->places[w->first].before >= 0; i++, w->count++) w->first = s->places[w->first].before;
    for (i = 0; i < half && s->places[w->last].behind >= 0; i++, w->count++) w->last = s->places[w->last].behind;
    w->call_of_first = s->places[w->first].call;
    w->call_of_last = s->places[w->last].call;
    w->count -= 2;
    s->work += 2 * (uint64_t)half;
    tli_window_fill(w);
}

static int tli_window_holds(const tli_search_window *w, int32_t at) {
    const tli_search_place *places = w->r->seq.places;
    return places[at].order > places[w->first].order && places[at].order < places[w->last].order;
}

// -- window: one try --

// A call of the window drawn at random, or one of the next few that is a recomputation or, where moves is set, a
// forward; -1 = none.
static int32_t tli_window_pick(tli_search_window *w, int moves) {
    tli_search_seq *s = &w->r->seq;
    int32_t skip = tli_search_draw(w->r, w->count), at = s->places[w->first].behind, tries = 16;
    s->work += (uint64_t)skip / 2;
    for (; skip > 0 && at != w->last; skip--) at = s->places[at].behind;
    for (; tries > 0 && at != w->last; tries--, at = s->places[at].behind) {
        s->work += 4;
        if (moves ? tli_search_is_forward(s, at) : tli_search_can_remove(s, at)) return at;
    }
    return -1;
}

// The place with the most live bytes among the blocks of the window; -1 = none of them exceeds the budget.
static int32_t tli_window_find_full(const tli_search_window *w) {
    tli_search_seq *s = &w->r->seq;
    int32_t b = s->places[w->first].block, end = s->blocks[s->places[w->last].block].behind, full = -1, at;
    for (; b != end; b = s->blocks[b].behind) {
        const tli_search_block *block = &s->blocks[b];
        s->work++;
        if (!block->is_over) continue;
        if (full < 0 || block->top + block->add > s->blocks[full].top + s->blocks[full].add) full = b;
    }
    if (full < 0) return -1;
    for (at = s->blocks[full].first; s->places[at].held != s->blocks[full].top;) at = s->places[at].behind;
    return at;
}

// As tli_search_choose, among the items of the window if the call is in it.
static int tli_window_choose(tli_search_window *w) {
    tli_search_state *r = w->r;
    int32_t full = tli_window_find_full(w), i;
    int64_t least = 0;
    if (full < 0) full = tli_search_find_full(&r->seq);
    if (!tli_window_holds(w, full)) return tli_search_choose(r, full);
    r->chosen_count = 0;
    r->excess = tli_search_held(&r->seq, full) - r->seq.budget;
    for (i = 0; i < w->item_count; i++) tli_search_compare(r, w->items[i], full, &least);
    return r->chosen_count > 0;
}

// As tli_search_mend.
static int tli_window_mend(tli_search_window *w, uint64_t most_cost, int32_t steps) {
    tli_search_seq *s = &w->r->seq;
    while (s->over_count > 0) {
        if (s->cost > most_cost || steps-- <= 0 || s->failed) return 0;
        tli_window_note(w);
        if (!tli_window_choose(w) || !tli_search_apply(w->r)) return 0;
    }
    tli_window_note(w);
    return s->cost <= most_cost;
}

// Remove the recomputations of the window, and those among the inserted calls, that the budget does not require.
static void tli_window_tidy(tli_search_window *w, int32_t mark) {
    tli_search_seq *s = &w->r->seq;
    int32_t at, next, end = s->change_count, i;
    for (i = mark; i < end; i++)
        if (s->changes[i].call < 0 && s->places[s->changes[i].place].call >= 0 &&
            !tli_window_holds(w, s->changes[i].place)) tli_search_spare(s, s->changes[i].place);
    for (at = s->places[w->first].behind; at != w->last && !s->failed; at = next) {
        next = s->places[at].behind;
        tli_search_spare(s, at);
    }
    tli_window_note(w);
}

static int tli_window_is_whole(const tli_search_window *w) {
    const tli_search_place *places = w->r->seq.places;
    return places[w->first].call == w->call_of_first && places[w->last].call == w->call_of_last;
}

// As tli_search_try, inside the window. The log keeps the changes of earlier tries.
static void tli_window_try(tli_search_window *w, uint64_t heat) {
    tli_search_state *r = w->r;
    tli_search_seq *s = &r->seq;
    uint64_t most = tli_search_temper(r, s->cost, heat);
    int32_t mark = s->change_count, from;
    if (tli_search_draw(r, 4)) from = tli_search_ruin(r, tli_window_pick(w, 0));
    else from = tli_search_move(r, tli_window_pick(w, 1));
    if (from >= 0 && tli_window_is_whole(w) && tli_window_mend(w, most, 40)) {
        tli_window_tidy(w, mark);
    } else {
        tli_search_undo(s, mark);
        if (w->noted > mark) w->noted = mark;
    }
}

// -- window: one after another --

// Anneal the window and return to the cheapest sequence that was met.
static void tli_window_anneal(tli_search_window *w, uint64_t heat) {
    tli_search_state *r = w->r;
    tli_search_seq *s = &r->seq;
    int32_t turn, turns = 64, best = 0;
    s->logs = 1;
    s->change_count = 0;
    r->best_cost = s->cost;
    for (turn = 0; turn < turns && tli_search_goes_on(r); turn++) {
        tli_window_try(w, heat);
        if (turn % (turns / 16) == 0) heat -= heat / 4;
        if (s->failed || s->cost > r->best_cost) continue;
        r->best_cost = s->cost;
        best = s->change_count;
    }
    if (!s->failed) tli_search_undo(s, best);
}

static void tli_window_improve(tli_search_window *w) {
    tli_search_state *r = w->r;
    tli_search_seq *s = &r->seq;
    static const uint8_t heats[] = { 16, 2, 64, 1 };  // of the mean cost of a call, in 16ths
    int32_t turn;
    for (turn = 0; tli_search_goes_on(r); turn++) {
        uint64_t mean = s->cost / (uint64_t)s->used / 16;
        int32_t at = 1 + tli_search_draw(r, s->place_count - 1);
        s->work += 8;
        if (s->places[at].call < 0) continue;
        tli_window_set(w, at, 8 << tli_search_draw(r, 5));
        if (w->count > 0)
            tli_window_anneal(w, (mean < TLI_SEARCH_MOST_COST >> 12 ? mean : TLI_SEARCH_MOST_COST >> 12) *
                                     heats[turn % 4]);
    }
}

static tl_result tli_window_run(const tli_remat_input *in, tli_search_state *r) {
    tli_search_window w;
    tl_env *env = r->p->env;
    tl_result result = TL_OK;
    tli_zero(&w, sizeof w);
    w.r = r;
    w.items = (int32_t *)tli_alloc_array(env, (uint64_t)r->p->item_count, sizeof *w.items);
    w.is_listed = (uint8_t *)tli_alloc_array(env, (uint64_t)r->p->item_count, 1);
    if (!w.items || !w.is_listed || !tli_search_load(&r->seq, in->start)) result = TL_ERROR_NO_MEMORY;
    if (!result) {
        r->goal = in->bound > r->bwd_cost ? in->bound - r->bwd_cost : 0;
        r->watch = in->watch;
        r->limit = in->work_limit;
        r->best_cost = r->seq.cost;
        if (r->seq.over_count) result = TL_ERROR_INFEASIBLE;
        else tli_window_improve(&w);
        if (r->seq.failed) result = TL_ERROR_NO_MEMORY;
    }
    tli_release(env, w.items);
    tli_release(env, w.is_listed);
    return result;
}

// Improve a sequence of calls (in->start) by work_limit steps. best gets the steps of the cheapest sequence.
//
// Errors: TL_ERROR_INFEASIBLE: the start exceeds the budget; TL_ERROR_OVERFLOW; TL_ERROR_NO_MEMORY.
static tl_result tli_remat_window(const tli_remat_input *in, tli_steps *best, uint64_t *cost, uint64_t *work) {
    tli_search_problem p;
    tli_search_state r;
    tli_search_start none[TLI_SEARCH_STARTS];
    tl_result result;
    tli_zero(best, sizeof *best);
    tli_zero(none, sizeof none);
    *cost = *work = 0;
    result = tli_search_init_problem(in, &p);
    if (result) return result;
    result = tli_search_init_search(&p, &r);
    if (!result) {
        result = tli_window_run(in, &r);
        *work = r.seq.work;
        if (!result && !tli_search_list_calls(&r.seq, &r.best)) result = TL_ERROR_NO_MEMORY;
        if (!result) result = tli_search_finish(&r, best, cost);
        tli_search_free_search(&r, none);
    }
    tli_search_free_problem(&p);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
