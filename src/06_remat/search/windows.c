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

#define TLI_WINDOW_VIEWS 8  // bits of is_listed
#define TLI_WINDOW_TURNS 64 // tries in one window

// A part of the sequence, and what may be held there.
typedef struct tli_window_view {
    int32_t  first, last;      // places around it
    int32_t  call_of_first, call_of_last;
    int32_t *items;            // [item_count]
    int32_t  item_count, item_capacity;
} tli_window_view;

typedef struct tli_search_window {
    tli_search_state *r;
    tli_window_view views[TLI_WINDOW_VIEWS];  // [view_count] the window, then parts that exceeded the budget
    int32_t  view_count, oldest;              // oldest: the view that gives way to the next one
    int32_t  count;            // calls in the window when it was set
    uint8_t *is_listed;        // [items of the problem] a bit for each view
    int32_t  noted;            // changes of the log whose items are listed
} tli_search_window;

// -- window: what is held in it --

static void tli_window_list(tli_search_window *w, int32_t view, int32_t item) {
    tli_window_view *v = &w->views[view];
    void *items = v->items;
    if (w->is_listed[item] >> view & 1 || !w->r->p->item_bytes[item]) return;
    if (!tli_grow(w->r->p->env, &items, &v->item_capacity, v->item_count, (int64_t)v->item_count + 1,
                  sizeof *v->items)) {
        w->r->seq.failed = 1;
        return;
    }
    v->items = (int32_t *)items;
    w->is_listed[item] = (uint8_t)(w->is_listed[item] | 1 << view);
    v->items[v->item_count++] = item;
    TLI_INVARIANT(v->item_count <= w->r->p->item_count);
}

#ifdef TLI_INVARIANTS
// Each view lists exactly the items that have its bit.
static int tli_window_lists_hold(const tli_search_window *w) {
    int32_t view, i, counts[TLI_WINDOW_VIEWS];
    tli_zero(counts, sizeof counts);
    for (i = 0; i < w->r->p->item_count; i++)
        for (view = 0; view < TLI_WINDOW_VIEWS; view++) counts[view] += w->is_listed[i] >> view & 1;
    for (view = 0; view < TLI_WINDOW_VIEWS; view++) {
        if (counts[view] != w->views[view].item_count) return 0;
        for (i = 0; i < counts[view]; i++) if (!(w->is_listed[w->views[view].items[i]] >> view & 1)) return 0;
    }
    return 1;
}
#endif

// Put a view around a place, `half` calls to each side, and list the items with an event in it or held across
// it. Returns the number of its calls.
static int32_t tli_window_set(tli_search_window *w, int32_t number, int32_t at, int32_t half) {
    tli_search_seq *s = &w->r->seq;
    tli_window_view *view = &w->views[number];
    int32_t item, items = w->r->p->item_count - w->r->p->node_count, i, count = -1;
    int64_t from, to;
    view->first = view->last = at;
    for (i = 0; i < half && s->places[view->first].before >= 0; i++, count++)
        view->first = s->places[view->first].before;
    for (i = 0; i < half && s->places[view->last].behind >= 0; i++, count++)
        view->last = s->places[view->last].behind;
    view->call_of_first = s->places[view->first].call;
    view->call_of_last = s->places[view->last].call;
    from = s->places[view->first].order;
    to = s->places[view->last].order;
    while (view->item_count)
        w->is_listed[view->items[--view->item_count]] &= (uint8_t)~(1u << number);
    for (item = 0; item < items; item++) {
        int32_t e = w->r->p->item_bytes[item] ? tli_search_event_before(s, item, to) : -1;
        if (e < 0) continue;
        if (tli_search_when(s, e) >= from || tli_search_is_use(s, s->events[e].behind))
            tli_window_list(w, number, item);
    }
    s->work += 2 * (uint64_t)half + 3 * (uint64_t)items;
    TLI_INVARIANT(tli_window_lists_hold(w));
    return count;
}

// List the items of calls that have been inserted or removed since the last time.
static void tli_window_note(tli_search_window *w) {
    tli_search_seq *s = &w->r->seq;
    const tli_search_problem *p = w->r->p;
    for (; w->noted < s->change_count; w->noted++) {
        const tli_search_change *change = &s->changes[w->noted];
        int32_t call = change->call < 0 ? s->places[change->place].call : change->call, k, view;
        if (call < 0) continue;
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++)
            for (view = 0; view < w->view_count; view++) tli_window_list(w, view, p->touches[k].item);
        s->work += 4;
    }
    TLI_INVARIANT(w->noted >= s->change_count);
}

static int tli_window_holds(const tli_search_window *w, int32_t view, int32_t at) {
    const tli_search_place *places = w->r->seq.places;
    return places[at].order > places[w->views[view].first].order &&
           places[at].order < places[w->views[view].last].order;
}

// Whether the places around a view are still there.
static int tli_window_is_whole(const tli_search_window *w, int32_t view) {
    const tli_search_place *places = w->r->seq.places;
    return places[w->views[view].first].call == w->views[view].call_of_first &&
           places[w->views[view].last].call == w->views[view].call_of_last;
}

// A view that holds a place: one of those there are, or a new one.
static int32_t tli_window_find_view(tli_search_window *w, int32_t at) {
    int32_t view;
    for (view = 0; view < w->view_count; view++)
        if (tli_window_is_whole(w, view) && tli_window_holds(w, view, at)) return view;
    if (w->view_count < TLI_WINDOW_VIEWS) {
        view = w->view_count++;
    } else {
        view = w->oldest;
        w->oldest = w->oldest % (TLI_WINDOW_VIEWS - 1) + 1;
    }
    tli_window_set(w, view, at, 48);
    TLI_INVARIANT(view < w->view_count && w->oldest < TLI_WINDOW_VIEWS);
    return view;
}

// -- window: one try --

// The first of a few calls, from a random one of the window on, that is a recomputation or, where moves is set,
// a forward; -1 = none.
static int32_t tli_window_pick(tli_search_window *w, int moves) {
    tli_search_seq *s = &w->r->seq;
    int32_t skip = tli_search_draw(w->r, w->count), at = s->places[w->views[0].first].behind, tries = 16,
            last = w->views[0].last;
    s->work += (uint64_t)skip / 2;
    for (; skip > 0 && at != last; skip--) at = s->places[at].behind;
    for (; tries > 0 && at != last; tries--, at = s->places[at].behind) {
        s->work += 4;
        if (moves ? tli_search_is_forward(s, at) : tli_search_can_remove(s, at)) return at;
    }
    return -1;
}

// As tli_search_choose, among the items that may be held there.
static int tli_window_choose(tli_search_window *w) {
    tli_search_state *r = w->r;
    int32_t full = tli_search_find_full(&r->seq), i;
    const tli_window_view *view = &w->views[tli_window_find_view(w, full)];
    int64_t least = 0;
    r->chosen_count = 0;
    r->excess = tli_search_held(&r->seq, full) - r->seq.budget;
    for (i = 0; i < view->item_count; i++) tli_search_compare(r, view->items[i], full, &least);
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
    TLI_INVARIANT(!s->over_count && tli_search_seq_holds_often(s));
    return s->cost <= most_cost;
}

// Remove the recomputations of the window and those inserted outside it that the budget does not require.
static void tli_window_tidy(tli_search_window *w, int32_t mark) {
    tli_search_seq *s = &w->r->seq;
    int32_t at, next, end = s->change_count, i;
    for (i = mark; i < end; i++)
        if (s->changes[i].call < 0 && s->places[s->changes[i].place].call >= 0 &&
            !tli_window_holds(w, 0, s->changes[i].place)) tli_search_spare(s, s->changes[i].place);
    for (at = s->places[w->views[0].first].behind; at != w->views[0].last && !s->failed; at = next) {
        next = s->places[at].behind;
        tli_search_spare(s, at);
    }
    tli_window_note(w);
    TLI_INVARIANT(s->failed || !s->over_count);
}

// As tli_search_try, inside the window. The log keeps the changes of earlier tries.
static void tli_window_try(tli_search_window *w, uint64_t heat) {
    tli_search_state *r = w->r;
    tli_search_seq *s = &r->seq;
    uint64_t most = tli_search_temper(r, s->cost, heat);
    int32_t mark = s->change_count, from;
    if (tli_search_draw(r, 4)) from = tli_search_ruin(r, tli_window_pick(w, 0));
    else from = tli_search_move(r, tli_window_pick(w, 1));
    if (from >= 0 && tli_window_is_whole(w, 0) && tli_window_mend(w, most, 40)) {
        tli_window_tidy(w, mark);
    } else {
        tli_search_undo(s, mark);
        if (w->noted > mark) w->noted = mark;
    }
    TLI_INVARIANT(s->failed || (!s->over_count && w->noted <= s->change_count));
}

// -- window: one after another --

// Anneal the window and return to the cheapest sequence that was met.
static void tli_window_anneal(tli_search_window *w, uint64_t heat) {
    tli_search_state *r = w->r;
    tli_search_seq *s = &r->seq;
    int32_t turn, turns = TLI_WINDOW_TURNS, best = 0;
    s->logs = 1;
    s->change_count = w->noted = 0;
    r->best_cost = s->cost;
    for (turn = 0; turn < turns && tli_search_goes_on(r); turn++) {
        tli_window_try(w, heat);
        if (turn % (turns / 16) == 0) heat -= heat / 4;
        if (s->failed || s->cost > r->best_cost) continue;
        r->best_cost = s->cost;
        best = s->change_count;
    }
    if (!s->failed) tli_search_undo(s, best);
    TLI_INVARIANT(s->failed || s->cost == r->best_cost);
}

static void tli_window_improve(tli_search_window *w) {
    tli_search_state *r = w->r;
    tli_search_seq *s = &r->seq;
    static const uint8_t heats[] = { 16, 2, 64, 1 };
    int32_t turn;
    for (turn = 0; tli_search_goes_on(r); turn++) {
        int32_t at = 1 + tli_search_draw(r, s->place_count - 1);
        s->work += 8;
        if (s->places[at].call < 0) continue;
        w->view_count = w->oldest = 1;
        w->count = tli_window_set(w, 0, at, 8 << tli_search_draw(r, 5));
        if (w->count > 0) tli_window_anneal(w, tli_search_find_heat(s->cost, s->used, heats[turn % 4]));
    }
    TLI_INVARIANT(s->failed || tli_search_seq_holds(s));
}

// -- window: lower the peak --

// Judge the sequence by another budget.
static void tli_window_rebudget(tli_search_seq *s, int64_t budget) {
    int32_t b;
    s->budget = budget;
    for (b = 0; b >= 0; b = s->blocks[b].behind, s->work++) tli_search_judge(s, &s->blocks[b]);
    TLI_INVARIANT(tli_search_seq_holds_often(s));
}

static int64_t tli_window_peak(tli_search_seq *s) { return tli_search_held(s, tli_search_find_full(s)); }

// Try some changes near the fullest call that bring the sequence within s->budget, whatever they cost.
static int tli_window_dip(tli_search_window *w) {
    tli_search_state *r = w->r;
    tli_search_seq *s = &r->seq;
    int32_t turn, full = tli_search_find_full(s);
    s->change_count = w->noted = 0;
    s->logs = 1;
    w->view_count = w->oldest = 1;
    w->count = tli_window_set(w, 0, full, 8 << tli_search_draw(r, 5));
    for (turn = 0; turn < TLI_WINDOW_TURNS / 4 && tli_search_goes_on(r); turn++) {
        tli_search_temper(r, 0, 0);
        if (turn % 4 == 1) tli_search_ruin(r, tli_window_pick(w, 0));
        if (turn % 4 == 2) tli_search_move(r, tli_window_pick(w, 1));
        if (tli_window_is_whole(w, 0) && tli_window_mend(w, TLI_SEARCH_MOST_COST, 80)) return 1;
        tli_search_undo(s, 0);
        w->noted = 0;
    }
    TLI_INVARIANT(s->failed || s->change_count == 0);
    return 0;
}

// Lower the peak of the sequence towards the budget, by less at a time where that fails.
static void tli_window_lower(tli_search_window *w) {
    tli_search_state *r = w->r;
    tli_search_seq *s = &r->seq;
    int64_t target = r->p->budget, peak = tli_window_peak(s), step = peak - target;
    while (peak > target && tli_search_goes_on(r)) {
        if (step > peak - target) step = peak - target;
        tli_window_rebudget(s, peak - step);
        if (tli_window_dip(w)) {
            peak = tli_window_peak(s);
            step *= 2;
        } else if (step > 1) {
            step = step / 2;
        }
    }
    tli_window_rebudget(s, target);
    TLI_INVARIANT(s->failed || tli_search_seq_holds(s));
}

// Begin without a view; 0 = no memory.
static int tli_window_init(tli_search_window *w, tli_search_state *r) {
    tli_zero(w, sizeof *w);
    w->r = r;
    w->is_listed = (uint8_t *)tli_alloc_array(r->p->env, (uint64_t)r->p->item_count, 1);
    TLI_INVARIANT(w->view_count == 0);
    return w->is_listed != NULL;
}

static void tli_window_close(tli_search_window *w) {
    int32_t i;
    for (i = 0; i < TLI_WINDOW_VIEWS; i++) tli_release(w->r->p->env, w->views[i].items);
    tli_release(w->r->p->env, w->is_listed);
}

static tl_result tli_window_run(const tli_remat_input *in, const tl_plan *start, tli_search_state *r) {
    tli_search_window w;
    tl_result result = TL_ERROR_NO_MEMORY;
    int is_short = 0;
    if (tli_window_init(&w, r)) result = tli_search_load_plan(&r->seq, start, &is_short);
    if (!result && !is_short) result = TL_ERROR_OVERFLOW;
    if (!result) {
        r->goal = in->bound > r->bwd_cost ? in->bound - r->bwd_cost : 0;
        r->watch = in->watch;
        r->limit = in->work_limit;
        r->random.state += in->work_limit + tli_remat_seed(in->watch);
        tli_window_lower(&w);
        r->best_cost = r->seq.cost;
        if (r->seq.over_count) result = TL_ERROR_INFEASIBLE;
        else tli_window_improve(&w);
        if (r->seq.failed) result = TL_ERROR_NO_MEMORY;
    }
    tli_window_close(&w);
    return result;
}

// Improve a plan without copies to a host by work_limit steps; another limit makes other tries. best gets the
// steps of the cheapest sequence found, or with TL_ERROR_INFEASIBLE those of the one with the lowest peak.
//
// Errors: TL_ERROR_INFEASIBLE: the budget was not reached; TL_ERROR_OVERFLOW: bytes, costs or the plan are too
// large; TL_ERROR_NO_MEMORY.
static tl_result tli_remat_window(const tli_remat_input *in, const tl_plan *start, tli_steps *best,
                                  uint64_t *work) {
    tli_sequence_search s;
    tl_result result = tli_search_open(in, &s);
    tli_zero(best, sizeof *best);
    *work = 0;
    if (result) return result;
    result = tli_window_run(in, start, &s.r);
    *work = s.r.seq.work;
    if ((!result || result == TL_ERROR_INFEASIBLE) &&
        (!tli_search_list_calls(&s.r.seq, &s.r.best) || tli_search_take_last(&s, best)))
        result = TL_ERROR_NO_MEMORY;
    tli_search_close(&s);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
