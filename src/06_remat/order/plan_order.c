#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- order: greedy orders --
//
// The calls that can run are looked at, and one runs: that which leaves the fewest live bytes, or that which
// raises the peak least, and of these that which leaves the fewest. Orders to begin with, for graphs of any
// size.

#define TLI_ORDER_LOOK 512      // calls that are looked at for one place at most

typedef struct tli_order_greedy {
    tli_order *o;
    int32_t   *missing;         // [calls] what it waits for: items that it reads, and calls before it
    int32_t   *ready, ready_count;
    int32_t   *order;           // [calls] to be filled
    uint64_t   live, peak;
    int        by_peak;
} tli_order_greedy;

static uint64_t tli_order_weigh(const tli_order_greedy *g, int32_t call, uint64_t *after) {
    tli_order *o = g->o;
    const tli_order_call *c = &o->calls[call];
    uint64_t peak = g->live + c->made_bytes + c->work_bytes;
    int32_t k;
    *after = g->live + c->made_bytes;
    for (k = c->first_item; k < c->end_item; k++)
        if (!o->left[k] && !o->items[k].stays) *after -= o->items[k].bytes;
    for (k = c->first_read; k < c->end_read; k++)
        if (o->left[o->reads[k]] == 1 && !o->items[o->reads[k]].stays) *after -= o->items[o->reads[k]].bytes;
    if (c->over >= 0 && o->left[c->over] == 1) peak -= o->items[c->over].bytes;
    o->work += 4 + (uint64_t)(c->end_read - c->first_read);
    return peak;
}

static void tli_order_release_call(tli_order_greedy *g, int32_t call) {
    if (call >= 0 && !--g->missing[call]) g->ready[g->ready_count++] = call;
}

static void tli_order_run_greedy(tli_order_greedy *g, int32_t at, int32_t index) {
    tli_order *o = g->o;
    int32_t call = g->ready[index], k, m;
    const tli_order_call *c = &o->calls[call];
    uint64_t peak = tli_order_weigh(g, call, &g->live);
    if (peak > g->peak) g->peak = peak;
    g->order[at] = call;
    g->ready[index] = g->ready[--g->ready_count];
    for (k = c->first_read; k < c->end_read; k++) o->left[o->reads[k]]--;
    for (k = c->first_item; k < c->end_item; k++)
        for (m = o->items[k].first_reader; m < o->items[k].end_reader; m++)
            tli_order_release_call(g, o->readers[m]);
    tli_order_release_call(g, c->after[0]);
    tli_order_release_call(g, c->after[1]);
}

// Which of the calls that can run is next.
static int32_t tli_order_choose(const tli_order_greedy *g) {
    int32_t i, best = 0, count = g->ready_count < TLI_ORDER_LOOK ? g->ready_count : TLI_ORDER_LOOK;
    uint64_t best_peak = 0, best_after = 0, after, peak;
    for (i = 0; i < count; i++) {
        peak = tli_order_weigh(g, g->ready[i], &after);
        if (!g->by_peak || peak < g->peak) peak = g->peak;
        if (i > 0 && (peak > best_peak || (peak == best_peak && after > best_after) ||
                      (peak == best_peak && after == best_after && g->ready[i] > g->ready[best]))) continue;
        best = i;
        best_peak = peak;
        best_after = after;
    }
    return best;
}

// 0 = no memory.
static int tli_order_greedily(tli_order *o, int by_peak, int32_t *order) {
    tli_order_greedy g;
    int32_t i, k;
    tli_zero(&g, sizeof g);
    g.o = o;
    g.by_peak = by_peak;
    g.order = order;
    g.live = g.peak = o->pinned;
    g.missing = TLI_ORDER_NEW(o, o->call_count, int32_t);
    g.ready = TLI_ORDER_NEW(o, o->call_count, int32_t);
    o->failed |= !g.missing || !g.ready;
    for (k = 0; k < o->item_count && !o->failed; k++)
        o->left[k] = o->items[k].end_reader - o->items[k].first_reader;
    for (i = 0; i < o->call_count && !o->failed; i++) {
        const tli_order_call *c = &o->calls[i];
        g.missing[i] = c->end_read - c->first_read + (c->before[0] >= 0) + (c->before[1] >= 0);
        if (!g.missing[i]) g.ready[g.ready_count++] = i;
    }
    for (i = 0; i < o->call_count && !o->failed; i++) tli_order_run_greedy(&g, i, tli_order_choose(&g));
    tli_release(o->env, g.missing);
    tli_release(o->env, g.ready);
    return !o->failed;
}

// -- order: segments --
//
// Where every call is before or after one call c, whatever the order, all orders run the same set up to c. The
// peak of an order is the largest of those of its segments between such calls, and each is ordered alone. What
// skips such a call is live on both sides in every order, so it is no hindrance.

#define TLI_ORDER_WHOLE 1024        // calls of a segment that is searched as a whole
#define TLI_ORDER_LARGEST 16384     // calls of one whose bound is looked for call by call

typedef struct tli_order_segment {
    int32_t  first, count;
    uint64_t peak, bound;
    int      done, has_floor;
} tli_order_segment;

typedef struct tli_order_segments {
    tli_order_segment *items;
    int32_t count;
    int32_t *starts[2];         // [calls] greedy orders
    int32_t *reach;             // [calls] scratch
    int32_t *ends;              // [calls] 1 = a segment ends here
} tli_order_segments;

// after: 1 = the first call of the listing that must run after this one; 0 = the last that must run before it.
// -1 = none.
static int32_t tli_order_nearest(const tli_order *o, int32_t call, int after) {
    const tli_order_call *c = &o->calls[call];
    int32_t k, m, best = -1;
    for (k = 0; k < 2; k++) {
        int32_t other = after ? c->after[k] : c->before[k];
        if (other >= 0 && (best < 0 || (after ? other < best : other > best))) best = other;
    }
    for (k = c->first_read; k < c->end_read && !after; k++)
        if (o->items[o->reads[k]].maker > best) best = o->items[o->reads[k]].maker;
    for (k = c->first_item; k < c->end_item && after; k++)
        for (m = o->items[k].first_reader; m < o->items[k].end_reader; m++)
            if (best < 0 || o->readers[m] < best) best = o->readers[m];
    return best;
}

// Find the calls before or after which every other one runs in any order. Call c is one of them if each call
// that is listed before it must be followed by one that is listed up to c, and each that is listed after it
// must follow one from c on: such steps lead from every call to c.
static void tli_order_find_ends(const tli_order *o, tli_order_segments *s) {
    int32_t i, nearest, most = -1, least = o->call_count;
    for (i = 0; i < o->call_count; i++) {
        s->reach[i] = most;
        nearest = tli_order_nearest(o, i, 1);
        if (nearest < 0) nearest = o->call_count;
        if (nearest > most) most = nearest;
    }
    for (i = o->call_count; i-- > 0;) {
        s->ends[i] = s->reach[i] <= i && least >= i;
        nearest = tli_order_nearest(o, i, 0);
        if (nearest < least) least = nearest;
    }
    s->ends[o->call_count - 1] = 1;
}

static uint64_t tli_order_peak_of(const tli_order *o, int32_t first, int32_t count) {
    uint64_t peak = 0;
    int32_t i;
    for (i = first; i < first + count; i++) if (o->during[i] > peak) peak = o->during[i];
    return peak;
}

// What a call needs in any order: what it reads and makes.
static uint64_t tli_order_least_of(const tli_order *o, int32_t call) {
    const tli_order_call *c = &o->calls[call];
    uint64_t bytes = o->pinned + c->made_bytes + c->work_bytes;
    int32_t k;
    for (k = c->first_read; k < c->end_read; k++)
        if (o->reads[k] != c->over) bytes += o->items[o->reads[k]].bytes;
    return bytes;
}

static void tli_order_list_segments(tli_order *o, tli_order_segments *s) {
    int32_t i, first = 0;
    for (i = 0; i < o->call_count; i++) {
        if (!s->ends[i]) continue;
        s->items[s->count].first = first;
        s->items[s->count].count = i + 1 - first;
        s->items[s->count].peak = tli_order_peak_of(o, first, i + 1 - first);
        for (; first <= i; first++)
            if (tli_order_least_of(o, first) > s->items[s->count].bound)
                s->items[s->count].bound = tli_order_least_of(o, first);
        s->count++;
    }
}

// Take a greedy order in the segments where it takes less.
static void tli_order_take_start(tli_order *o, tli_order_segments *s, const int32_t *order) {
    int32_t i, k;
    for (i = 0; i < o->call_count; i++) s->reach[i] = o->order[i];
    for (i = 0; i < o->call_count; i++) o->order[i] = order[i];
    tli_order_replay(o);
    for (i = 0; i < s->count; i++) {
        tli_order_segment *segment = &s->items[i];
        uint64_t peak = tli_order_peak_of(o, segment->first, segment->count);
        for (k = segment->first; k < segment->first + segment->count && peak >= segment->peak; k++)
            o->order[k] = s->reach[k];
        if (peak < segment->peak) segment->peak = peak;
    }
    for (i = 0; i < o->call_count; i++) o->place[o->order[i]] = i;
    tli_order_replay(o);
}

// -- order: bounds of a window --

typedef struct tli_order_floor {
    const tli_order_window *w;
    uint64_t *above, *below;    // [count][words] calls that must run before it; after it
    uint64_t  rest;             // live in the whole window
} tli_order_floor;

static void tli_order_join_sets(tli_order_floor *f, uint64_t *sets, int32_t from, int32_t to) {
    int32_t words = f->w->words, k;
    for (k = 0; k < words; k++) sets[to * words + k] |= sets[from * words + k];
    tli_order_flip(sets + to * words, from);
}

static void tli_order_close_sets(tli_order_floor *f) {
    const tli_order_window *w = f->w;
    int32_t i, k;
    for (i = 0; i < w->count; i++)
        for (k = w->first_before[i]; k < w->first_before[i + 1]; k++)
            if (!tli_order_has(f->above + i * w->words, w->before[k]))
                tli_order_join_sets(f, f->above, w->before[k], i);
    for (i = w->count; i-- > 0;)
        for (k = w->first_after[i]; k < w->first_after[i + 1]; k++)
            if (!tli_order_has(f->below + i * w->words, w->after[k]))
                tli_order_join_sets(f, f->below, w->after[k], i);
}

// What is live during call i in any order: what calls before it make and calls after it, or it, read.
static uint64_t tli_order_floor_of(const tli_order_floor *f, int32_t i) {
    const tli_order_window *w = f->w;
    const uint64_t *above = f->above + i * w->words, *below = f->below + i * w->words;
    uint64_t bytes = f->rest + w->takes[i];
    int32_t k, m;
    for (k = 0; k < w->count; k++) if (tli_order_has(above, k)) bytes += w->stays[k];
    for (k = 0; k < w->item_count; k++) {
        int reads = 0, later = 0;
        if (w->makers[k] >= 0 && !tli_order_has(above, w->makers[k])) continue;
        for (m = w->first_reader[k]; m < w->first_reader[k + 1]; m++) {
            reads |= w->readers[m] == i;
            later |= tli_order_has(below, w->readers[m]);
        }
        if (later || (reads && w->over[i] != k)) bytes += w->bytes[k];
    }
    w->o->work += (uint64_t)(w->count + w->first_reader[w->item_count]) / 4;
    return bytes;
}

// The largest of these. 0 = no memory.
static uint64_t tli_order_find_floor(const tli_order_window *w) {
    tli_order_floor f;
    uint64_t floor = 0, bytes;
    int32_t i;
    f.w = w;
    f.rest = w->live;
    for (i = 0; i < w->item_count; i++) if (w->makers[i] < 0) f.rest -= w->bytes[i];
    f.above = TLI_ORDER_NEW(w->o, (int64_t)w->count * w->words, uint64_t);
    f.below = TLI_ORDER_NEW(w->o, (int64_t)w->count * w->words, uint64_t);
    w->o->failed |= !f.above || !f.below;
    if (!w->o->failed) tli_order_close_sets(&f);
    for (i = 0; i < w->count && !w->o->failed; i++) {
        bytes = tli_order_floor_of(&f, i);
        if (bytes > floor) floor = bytes;
    }
    tli_release(w->o->env, f.above);
    tli_release(w->o->env, f.below);
    return floor;
}

// -- order: improving --

#define TLI_ORDER_BEAMS 12      // caps that are tried at most
#define TLI_ORDER_WIDEST 512    // states of one rank
#define TLI_ORDER_EFFORT 40000  // work for each call of a window at most
#define TLI_ORDER_ROUND 4000    // work of the first round for each call

// Bisect the cap between the bound and the peak, under which a beam still finds an order.
static void tli_order_bisect(tli_order_search *s, tli_order_window *w, uint64_t least) {
    tli_order *o = w->o;
    uint64_t share = (s->work_end > o->work ? s->work_end - o->work : 0) / TLI_ORDER_BEAMS;
    uint64_t width = share / ((uint64_t)w->count * (uint64_t)(w->count / 2 + 64)) + 1;
    int turn;
    if (width > TLI_ORDER_WIDEST) width = TLI_ORDER_WIDEST;
    for (turn = 0; turn < TLI_ORDER_BEAMS && least < w->best_peak; turn++) {
        uint64_t cap = least + (w->best_peak - 1 - least) / 2;
        int32_t state = tli_order_beam(s, cap, (int32_t)width);
        if (s->o->failed || o->stopped || o->work >= s->work_end) return;
        if (state >= 0) tli_order_keep(s, w, state);
        else least = cap + 1;
    }
}

// Look for an order of a window that takes less than the present one, down to the floor: exactly, then with
// beams. Returns 1 where one was found and taken. *bound: at least the floor; where it
// is higher, no order of the window takes less.
static int tli_order_improve(tli_order *o, tli_order_window *w, uint64_t floor, uint64_t work,
                             uint64_t *bound) {
    tli_order_search s;
    uint64_t peak = w->best_peak;
    int32_t state;
    *bound = floor;
    if (peak <= floor) return 0;
    if (!tli_order_open_search(&s, w)) return 0;
    s.work_end = o->work + work / 3;
    state = tli_order_rise(&s, floor, peak, bound);
    if (state >= 0) tli_order_keep(&s, w, state);
    s.work_end = o->work + work / 3 * 2;
    if (state < 0 && *bound < peak && !o->failed && !o->stopped) tli_order_bisect(&s, w, *bound);
    tli_order_close_search(&s);
    if (o->failed || w->best_peak >= peak) return 0;
    tli_order_take_window(w);
    return 1;
}

// Order a whole segment, where it is not too large. Its bound is raised, where it can be.
static void tli_order_solve_segment(tli_order *o, tli_order_segment *segment, uint64_t work) {
    tli_order_window w;
    uint64_t floor, bound = 0;
    if (segment->count > TLI_ORDER_LARGEST) return;
    if (!tli_order_open_window(o, segment->first, segment->count, &w)) return;
    if (!segment->has_floor && (uint64_t)w.first_reader[w.item_count] * (uint64_t)w.count / 2 < work) {
        segment->has_floor = 1;
        floor = tli_order_find_floor(&w);
        if (floor > segment->bound) segment->bound = floor;
        if (segment->bound > o->bound) o->bound = segment->bound;
    }
    if (segment->count <= TLI_ORDER_WHOLE && !o->failed) tli_order_improve(o, &w, o->bound, work, &bound);
    if (!o->failed && bound > segment->bound) segment->bound = bound;
    tli_order_close_window(&w);
}

// Order one window again, as far as it pays.
static int tli_order_retry(tli_order *o, int32_t first, int32_t count, uint64_t work) {
    uint64_t most = (uint64_t)count * TLI_ORDER_EFFORT, bound;
    tli_order_window w;
    int helped;
    if (!tli_order_open_window(o, first, count, &w)) return 0;
    helped = tli_order_improve(o, &w, o->bound, work < most ? work : most, &bound);
    tli_order_close_window(&w);
    return helped;
}

// Order windows around the first place that reaches the peak of a segment, until none helps. After one that
// does, fewer places reach that peak.
static void tli_order_lower_peaks(tli_order *o, const tli_order_segment *segment, uint64_t work_end) {
    static const int32_t sizes[] = { 24, 64, 192, 512, TLI_ORDER_WHOLE };
    int32_t turn = 0, at, end = segment->first + segment->count;    // three windows of each size
    while (turn < 3 * (int32_t)(sizeof sizes / sizeof *sizes) && o->work < work_end && !tli_order_stops(o)) {
        uint64_t peak = tli_order_peak_of(o, segment->first, segment->count);
        int32_t count = sizes[turn / 3] < segment->count ? sizes[turn / 3] : segment->count, first;
        if (peak <= o->bound || o->failed) return;
        for (at = segment->first; o->during[at] < peak; at++) {}
        first = at - count / 4 * (turn % 3 + 1);
        if (first < segment->first) first = segment->first;
        if (first > end - count) first = end - count;
        turn = tli_order_retry(o, first, count, (work_end - o->work) / 4) ? 0 : turn + 1;
    }
}

// The segment with the largest peak that has not been worked on; -1 = none is above the bound.
static int32_t tli_order_next_segment(const tli_order *o, const tli_order_segments *s) {
    int32_t i, best = -1;
    for (i = 0; i < s->count; i++) {
        if (s->items[i].done || s->items[i].peak <= o->bound) continue;
        if (best < 0 || s->items[i].peak > s->items[best].peak) best = i;
    }
    return best;
}

static void tli_order_raise_bound(tli_order *o, const tli_order_segments *s) {
    int32_t i;
    for (i = 0; i < s->count; i++) if (s->items[i].bound > o->bound) o->bound = s->items[i].bound;
}

// Work on each segment once: windows first, because they help soonest.
static void tli_order_work_round(tli_order *o, tli_order_segments *s, uint64_t share) {
    uint64_t end = o->work + share;
    int32_t i;
    for (i = 0; i < s->count; i++) s->items[i].done = 0;
    while (!tli_order_stops(o) && !o->failed && o->work < end && (i = tli_order_next_segment(o, s)) >= 0) {
        tli_order_segment *segment = &s->items[i];
        tli_order_lower_peaks(o, segment, o->work + (end - o->work) / 2);
        if (o->work < end) tli_order_solve_segment(o, segment, (end - o->work) / 4 * 3);
        segment->peak = tli_order_peak_of(o, segment->first, segment->count);
        segment->done = 1;
        tli_order_raise_bound(o, s);
    }
}

// Rounds, each with four times the work of the one before it, which go on from what that found. No choice
// depends on the work limit, which only ends them, so more work never makes an order worse. A round that helps
// nothing and leaves half of its work is the last one.
static void tli_order_solve(tli_order *o, tli_order_segments *s) {
    uint64_t share = TLI_ORDER_ROUND * (uint64_t)o->call_count;
    tli_order_raise_bound(o, s);
    while (!tli_order_stops(o) && !o->failed && o->peak > o->bound) {
        uint64_t work = o->work, peak = o->peak, bound = o->bound;
        tli_order_work_round(o, s, share);
        if (o->peak == peak && o->bound == bound && o->work - work < share / 2) break;
        if (share < UINT64_MAX / 8) share *= 4;
    }
}

// Find the order. o->failed: no memory.
static void tli_order_run(tli_order *o, tl_order_report *report) {
    tli_order_segments s;
    int i;
    tli_zero(&s, sizeof s);
    o->bound = o->pinned;
    tli_order_replay(o);
    report->listing_peak_bytes = o->peak;
    if (!o->call_count) return;
    s.items = TLI_ORDER_NEW(o, o->call_count, tli_order_segment);
    s.starts[0] = TLI_ORDER_NEW(o, o->call_count, int32_t);
    s.starts[1] = TLI_ORDER_NEW(o, o->call_count, int32_t);
    s.reach = TLI_ORDER_NEW(o, o->call_count, int32_t);
    s.ends = TLI_ORDER_NEW(o, o->call_count, int32_t);
    o->failed = !s.items || !s.starts[0] || !s.starts[1] || !s.reach || !s.ends;
    if (!o->failed) {
        tli_order_find_ends(o, &s);
        tli_order_list_segments(o, &s);
        for (i = 0; i < 2; i++)
            if (tli_order_greedily(o, i, s.starts[i])) tli_order_take_start(o, &s, s.starts[i]);
    }
    if (!o->failed) tli_order_solve(o, &s);
    report->segment_count = s.count;
    tli_release(o->env, s.items);
    tli_release(o->env, s.starts[0]);
    tli_release(o->env, s.starts[1]);
    tli_release(o->env, s.reach);
    tli_release(o->env, s.ends);
}

// -- order: the plan --

// List the steps: each call, then the drops of what nothing reads after it.
static void tli_order_list_steps(tli_order *o, tli_steps *list) {
    int32_t at, k;
    for (k = 0; k < o->item_count; k++) o->left[k] = o->items[k].end_reader - o->items[k].first_reader;
    for (at = 0; at < o->call_count; at++) {
        const tli_order_call *call = &o->calls[o->order[at]];
        const tl_node *node = &o->graph->nodes[call->node];
        int in_place = call->over >= 0 && o->left[call->over] == 1;
        tl_step_kind kind = call->is_backward ? TL_STEP_BACKWARD
                          : in_place ? TL_STEP_FORWARD_INPLACE : tli_forward_kind(node, !o->desc->inference);
        tli_add_step(list, tli_step_of(kind, call->node, TL_ALL_OUTPUTS));
        for (k = call->first_item; k < call->end_item; k++)
            if (!o->left[k] && !o->items[k].stays && o->items[k].tensor >= 0)
                tli_add_tensor_step(list, o->graph, TL_STEP_DROP, o->items[k].tensor);
        for (k = call->first_read; k < call->end_read; k++) {
            const tli_order_item *item = &o->items[o->reads[k]];
            if (--o->left[o->reads[k]] || item->stays || item->tensor < 0) continue;
            if (in_place && o->reads[k] == call->over) continue;
            tli_add_tensor_step(list, o->graph, TL_STEP_DROP, item->tensor);
        }
    }
}

static tl_result tli_order_make_plan(tli_order *o, tl_plan *plan) {
    tli_steps list = tli_steps_of(o->env);
    tli_order_list_steps(o, &list);
    return tli_finish_plan(&list, TLI_IN(PLAN_ORDER), o->graph, o->desc->inference, plan);
}

static tl_result tli_order_place(tli_order *o, tl_plan *plan) {
    tl_places_desc places;
    tl_device device;
    tl_result result;
    tli_zero(&device, sizeof device);
    device.alignment_bytes = o->alignment;
    tli_zero(&places, sizeof places);
    places.graph = o->graph;
    places.device = &device;
    places.work_limit = o->desc->work_limit;
    places.block_bytes = o->desc->block_bytes;
    result = tl_plan_places(o->env, &places, plan, NULL);
    if (result) tl_free_plan(o->env, plan);
    return result;
}

// What keeping everything in the order of the listing takes; its plan, where its arena is the smaller one.
static tl_result tli_order_compare(tli_order *o, tl_plan *plan, tl_order_report *report) {
    tl_plan listing;
    tl_result result = tl_plan_keep_all(o->env, o->graph, o->desc->inference, &listing);
    plan->bound_cost = plan->cost;      // what runs is needed, and runs once
    if (!result && !o->desc->live) result = tli_order_place(o, &listing);
    if (!result && !o->desc->live) {
        report->listing_arena_bytes = listing.arena_bytes;
        if (listing.arena_bytes < plan->arena_bytes) {
            tl_plan swap = listing;
            listing = *plan;
            *plan = swap;
            plan->bound_cost = listing.cost;
        }
        report->arena_bytes = plan->arena_bytes;
    }
    if (!result) tl_free_plan(o->env, &listing);
    return result;
}

static tl_result tli_order_check(tl_env *env, const tl_order_desc *desc) {
    tl_result result = tl_check_graph(env, desc->graph);
    uint64_t alignment = desc->alignment_bytes;
    if (desc->inference != 0 && desc->inference != 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_ORDER), TLI_RULE(INFERENCE_MUST_BE_0_OR_1));
    if (!result) result = tli_check_live(env, TLI_IN(PLAN_ORDER), desc->live);
    if (result) return result;
    if (alignment && ((alignment & (alignment - 1)) || alignment > UINT64_C(1) << 30))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_ORDER),
                        TLI_RULE(ALIGNMENT_MUST_BE_POWER_OF_TWO));
    if (desc->live) return TL_OK;
    return tli_check_graph_cut(env, TLI_IN(PLAN_ORDER), desc->graph, desc->inference, desc->block_bytes,
                               alignment ? alignment : 1);
}

// Whether the bytes of all items and of the scratch of all calls fit 62 bits, so that no sum needs more.
static int tli_order_fits(const tli_order *o) {
    uint64_t sum = o->pinned, most = UINT64_C(1) << 62;
    int32_t i;
    for (i = 0; i < o->item_count && sum < most; i++)
        if (o->items[i].bytes > most || !tli_add_u64(sum, o->items[i].bytes, &sum)) return 0;
    for (i = 0; i < o->call_count && sum < most; i++)
        if (o->calls[i].work_bytes > most || !tli_add_u64(sum, o->calls[i].work_bytes, &sum)) return 0;
    return sum < most;
}

#define TLI_ORDER_WORK 200000000    // elementary steps, where the desc has no limit

// The order of a graph whose inputs stay.
static tl_result tli_search_order(tl_env *env, const tl_order_desc *desc, tl_plan *plan,
                                  tl_order_report *report) {
    tli_order o;
    tl_result result = TL_OK;
    tli_zero(&o, sizeof o);
    o.env = env;
    o.desc = desc;
    o.graph = desc->graph;
    o.alignment = desc->alignment_bytes ? desc->alignment_bytes : 1;
    o.work_limit = desc->work_limit ? desc->work_limit : TLI_ORDER_WORK;
    o.failed = !tli_order_alloc(&o);
    if (!o.failed) tli_order_list_calls(&o);
    if (!o.failed && !tli_order_fits(&o))
        result = tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(PLAN_ORDER), TLI_RULE(GRAPH_BYTES_MUST_FIT_62_BITS));
    if (!o.failed && !result) tli_order_run(&o, report);
    if (o.failed) result = tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_ORDER), TLI_RULE(NO_MEMORY_TO_PLAN));
    report->peak_bytes = o.peak;
    report->bound_bytes = o.bound < o.peak ? o.bound : o.peak;
    report->proven = report->bound_bytes == report->peak_bytes;
    report->work = o.work;
    if (!result) result = tli_order_make_plan(&o, plan);
    if (!result && !desc->live) result = tli_order_place(&o, plan);
    if (!result) {
        result = tli_order_compare(&o, plan, report);
        if (result) tl_free_plan(env, plan);
    }
    if (result) tli_zero(report, sizeof *report);
    tli_order_free(&o);
    return result;
}

TLI_IMPL tl_result tl_plan_order(tl_env *env, const tl_order_desc *desc, tl_plan *plan,
                                 tl_order_report *report) {
    tl_order_report local;
    tl_order_desc asked;
    tl_remat_desc searched;
    tli_dying dying;
    tl_result result;
    TL_ASSERT(desc && desc->graph && plan);
    if (!report) report = &local;
    tli_zero(plan, sizeof *plan);
    tli_zero(report, sizeof *report);
    result = tli_order_check(env, desc);
    if (result) return result;
    if (!tli_has_dying(desc->graph)) return tli_search_order(env, desc, plan, report);
    tli_zero(&searched, sizeof searched);
    searched.graph = desc->graph;
    searched.inference = desc->inference;
    result = tli_begin_dying(env, &searched, &dying);
    if (result) return result;
    asked = *desc;
    asked.graph = searched.graph;
    result = tli_search_order(env, &asked, plan, report);
    tli_end_dying(env, desc->graph, &dying, plan, NULL);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
