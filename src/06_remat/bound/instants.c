#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- bound: the search for a high value --
//
// Any instants, multipliers and branches give a valid bound; these are looked for that give a high one:
//
//     each event alone -> the best, and others with it, one by one -> some beside them -> branching on what
//         3/8 of the work                  3/8, for both                                  is held when: 2/8
//
// Multipliers follow subgradients; for one instant two lines are intersected.

// -- bound: states --

static void tli_bound_free_state(tli_bound *model, tli_bound_state *s) {
    if (s) { tli_release(model->env, s->mu); tli_release(model->env, s->fixed); tli_release(model->env, s); }
}

// Allocate an empty state for so many instants; NULL: no memory (model->failed).
static tli_bound_state *tli_bound_add_state(tli_bound *model, int32_t instants) {
    tli_bound_state *s = (tli_bound_state *)tli_alloc_array(model->env, 1, sizeof *s);
    uint64_t cells = (uint64_t)instants * (uint64_t)model->item_count;
    if (s) {
        tli_zero(s, sizeof *s);
        s->mu = (int64_t *)tli_alloc_array(model->env, cells, sizeof *s->mu);
        s->fixed = (uint8_t *)tli_alloc_array(model->env, 2 * cells, 1);
        s->share = s->fixed ? s->fixed + cells : NULL;
    }
    if (s && s->mu && s->fixed) return s;
    tli_bound_free_state(model, s);
    model->failed = 1;
    return NULL;
}

static void tli_bound_copy_state(const tli_bound *model, tli_bound_state *to, const tli_bound_state *from) {
    size_t cells = (size_t)from->count * (size_t)model->item_count;
    int64_t *mu = to->mu;
    uint8_t *fixed = to->fixed, *share = to->share;
    *to = *from;
    to->mu = mu; to->fixed = fixed; to->share = share;
    tli_copy(mu, from->mu, cells * sizeof *mu);
    tli_copy(fixed, from->fixed, cells);
    tli_copy(share, from->share, cells);
}

// Fix to absent every item that is larger than the room. Returns 0 if the items fixed to be held exceed it.
static int tli_bound_fix_large(const tli_bound *model, tli_bound_state *s, int32_t a) {
    uint8_t *fixed = s->fixed + (size_t)a * (size_t)model->item_count;
    int32_t t;
    if (s->room[a] < 0) return 0;
    for (t = 0; t < model->item_count; t++)
        if (fixed[t] == TLI_BOUND_FREE && model->bytes[t] > s->room[a]) fixed[t] = TLI_BOUND_ABSENT;
    return 1;
}

// Insert an instant into a state so that the value hardly changes: mu of an item starts as a quarter of its
// price at the instant before, or of its forward cost if that is less.
static void tli_bound_add_instant(tli_bound *model, tli_bound_state *s, int32_t event) {
    int32_t a = s->count++, items = model->item_count, t;
    uint64_t room = model->events[event].room / model->unit;
    for (; a > 0 && s->at[a - 1] > event; a--) {
        size_t to = (size_t)a * (size_t)items, from = to - (size_t)items, count = (size_t)items;
        s->at[a] = s->at[a - 1]; s->lambda[a] = s->lambda[a - 1]; s->room[a] = s->room[a - 1];
        tli_copy(s->mu + to, s->mu + from, count * sizeof *s->mu);
        tli_copy(s->fixed + to, s->fixed + from, count);
    }
    s->at[a] = event;
    s->lambda[a] = 0;
    s->room[a] = room < (uint64_t)model->units ? (int64_t)room : model->units;
    tli_zero(s->fixed + (size_t)a * (size_t)items, (size_t)items);
    tli_bound_mark_fixed(model, &model->events[event], s->fixed + (size_t)a * (size_t)items, TLI_BOUND_KEPT);
    for (t = 0; t < items; t++) {
        int64_t price = a ? tli_bound_price(model, s, a - 1, t) : 0, forward = model->cost[model->maker[t]];
        s->mu[a * items + t] = (price < forward ? price : forward) / 4;
    }
    (void)tli_bound_fix_large(model, s, a);
}

// -- bound: several instants: subgradient steps --

typedef struct tli_bound_climb {
    tli_bound_state *now, *best;
    int32_t *slope;    // [instants][items] direction along mu, 1024 = 1
    int8_t  *held;     // [instants][items] slope along mu: x less w of the span before
    int64_t  along[TLI_BOUND_INSTANTS];    // slope along lambda, bytes less room
    int64_t  turn[TLI_BOUND_INSTANTS];     // direction along lambda x typical
} tli_bound_climb;

// Find the value of a state, the sum of its spans; the slopes along its multipliers go to climb.
static int64_t tli_bound_measure(tli_bound *model, tli_bound_state *s, tli_bound_climb *climb) {
    int32_t a, t, items = model->item_count;
    const int32_t *level = model->net.level;
    int64_t value = 0;
    tli_zero(climb->held, (size_t)s->count * (size_t)items);
    for (a = 0; a < s->count; a++) {
        value += tli_bound_solve_span(model, s, a);
        climb->along[a] = tli_bound_slope(model, s, a);
        for (t = 0; t < items; t++) {
            uint8_t *share = &s->share[a * items + t];
            int is_held = level[t] && !level[items + model->maker[t]];
            *share = (uint8_t)((*share * 7 + (is_held ? 255 : 0)) / 8);
            if (!level[t]) continue;
            if (is_held) climb->held[a * items + t]++;
            if (a + 1 < s->count) climb->held[(a + 1) * items + t]--;
        }
    }
    return value;
}

// Update the direction of the climb: three quarters of the old direction plus the slopes. *norm: the square of
// its length.
static void tli_bound_turn(tli_bound *model, tli_bound_state *s, tli_bound_climb *climb, uint64_t *norm) {
    int32_t a, t, items = model->item_count;
    *norm = 1;
    for (a = 0; a < s->count; a++) {
        int64_t along = climb->along[a] * 256 / model->typical;
        if (along > 1 << 15) along = 1 << 15;
        if (along < -(1 << 15)) along = -(1 << 15);
        climb->turn[a] = climb->turn[a] * 3 / 4 + along;
        if (s->lambda[a] > 0 || climb->turn[a] > 0) *norm += (uint64_t)(climb->turn[a] * climb->turn[a]);
        for (t = 0; a && t < items; t++) {
            int32_t at = a * items + t;
            if (s->fixed[at] != TLI_BOUND_FREE) continue;
            climb->slope[at] = climb->slope[at] * 3 / 4 + climb->held[at] * 256;
            if (s->mu[at] > 0 || climb->slope[at] > 0)
                *norm += (uint64_t)((int64_t)climb->slope[at] * climb->slope[at]);
        }
    }
}

static void tli_bound_step(tli_bound *model, tli_bound_state *s, const tli_bound_climb *climb,
                           int64_t gain, uint64_t norm) {
    int32_t a, t, items = model->item_count;
    int64_t length = (int64_t)(((uint64_t)gain << 8) / (norm >> 10 ? norm >> 10 : 1)), most = INT64_C(1) << 44;
    if (length > most) length = most;
    for (a = 0; a < s->count; a++) {
        int64_t lambda = s->lambda[a] + length * climb->turn[a] / 1024 / model->typical;
        s->lambda[a] = lambda < 0 ? 0 : lambda > model->most_lambda ? model->most_lambda : lambda;
        for (t = 0; a && t < items; t++) {
            int32_t at = a * items + t;
            int64_t mu = s->mu[at];
            if (s->fixed[at] != TLI_BOUND_FREE || (!mu && climb->slope[at] <= 0)) continue;
            mu += length * climb->slope[at] / 1024;
            s->mu[at] = mu < 0 ? 0 : mu > TLI_BOUND_COSTS ? TLI_BOUND_COSTS : mu;
        }
    }
}

// Base cost + ceil(value / scale), the second term rounded up to a multiple of cost_step, the greatest common
// divisor of the forward costs.
static uint64_t tli_bound_round_up(const tli_bound *model, int64_t value) {
    uint64_t again, rest;
    if (value <= 0) return model->base_cost;
    again = (uint64_t)value >> model->cost_up;
    if (again << model->cost_up != (uint64_t)value) again++;
    again <<= model->cost_down;
    rest = model->cost_step ? again % model->cost_step : 0;
    if (rest) again += model->cost_step - rest;
    return model->base_cost + again < again ? UINT64_MAX : model->base_cost + again;
}

// Note a value that holds for every schedule: where it reaches the cost of a plan, more is of no use.
static void tli_bound_note(tli_bound *model, int64_t value) {
    uint64_t target = model->watch ? model->watch->target : 0;
    if (target && (value >= TLI_BOUND_INFINITE || tli_bound_round_up(model, value) >= target))
        model->is_reached = 1;
}

static int tli_bound_is_over(const tli_bound *model) {
    return model->is_reached || *model->work >= model->work_limit ||
           tli_remat_stops(model->watch, *model->work);
}

// Raise the value of climb->best in at most `rounds` subgradient steps. The length of a step depends on the
// distance to a target value, which is lowered when it is not reached. best->value is the value found.
static void tli_bound_climb_up(tli_bound *model, tli_bound_climb *climb, int32_t rounds) {
    tli_bound_state *best = climb->best, *now = climb->now;
    size_t cells = (size_t)best->count * (size_t)model->item_count;
    int64_t ahead, gap, ends[2];
    int32_t round, failures = 0, a;
    best->value = 0;
    for (a = 0; a < best->count; a++) best->value += tli_bound_search_line(model, best, a, ends);
    tli_bound_copy_state(model, now, best);
    tli_zero(climb->slope, cells * sizeof *climb->slope);
    tli_zero(climb->turn, sizeof climb->turn);
    ahead = (best->value > 0 ? best->value : TLI_BOUND_COSTS / 64) / 16 + 1;
    for (round = 0; round < rounds && !tli_bound_is_over(model); round++) {
        uint64_t norm;
        now->value = tli_bound_measure(model, now, climb);
        if (now->value > best->value) {
            if (now->value - best->value > ahead / 8) { failures = 0; ahead += ahead / 2; }
            tli_bound_copy_state(model, best, now);
        } else if (++failures >= 5) {
            ahead = ahead / 2 + 1;
            failures = 0;
            tli_bound_copy_state(model, now, best);
            tli_zero(climb->slope, cells * sizeof *climb->slope);
            tli_zero(climb->turn, sizeof climb->turn);
            continue;
        }
        tli_bound_turn(model, now, climb, &norm);
        gap = best->value - now->value + ahead;
        tli_bound_step(model, now, climb, gap < TLI_BOUND_COSTS ? gap : TLI_BOUND_COSTS, norm);
    }
}

// -- bound: the choice of instants --

#define TLI_BOUND_OPEN 2048                  // at most so many branches are open at a time,
#define TLI_BOUND_OPEN_BYTES (48u << 20)     // and take about so many bytes

typedef struct tli_bound_tree {
    tli_bound_state *open[TLI_BOUND_OPEN];  // by falling value: the last one is split next
    int32_t       count, most;
    int64_t       bound;              // the least value of an open branch
} tli_bound_tree;

typedef struct tli_bound_search {
    tli_bound       *model;
    tli_bound_climb  climb;
    tli_bound_state *best, *trial;
    tli_bound_state *top;    // of the highest value when spans keep the room as a hard limit
    tli_bound_tree  *tree;
    int64_t      *single;    // [event_count] value with that instant alone; -1 = not computed
    int32_t      *listed;    // [event_count] events to try
    int32_t       listed_count;
} tli_bound_search;

// Whether everything that is read after this event fits beside its working set: then (5) is no constraint.
static int tli_bound_is_slack(tli_bound *model, const tli_bound_event *event) {
    uint64_t need = 0;
    int32_t t, p;
    tli_copy(model->reads_mark, model->at_end, (size_t)model->item_count);
    for (p = tli_bound_ran_by(event) + 1; p < model->order_count; p++)
        tli_bound_mark_reads(model, model->order[p], model->reads_mark, 1);
    tli_bound_mark_fixed(model, event, model->reads_mark, 0);
    for (t = 0; t < model->item_count; t++) if (model->reads_mark[t]) need += model->exact[t];
    tli_zero(model->reads_mark, (size_t)model->item_count);
    *model->work += (uint64_t)model->item_count;
    return need <= event->room;
}

static void tli_bound_try_single(tli_bound_search *search, int32_t event) {
    tli_bound *model = search->model;
    tli_bound_state *s = search->trial;
    int64_t ends[2];
    if (search->single[event] >= 0 || tli_bound_is_over(model)) return;
    search->single[event] = 0;
    if (tli_bound_is_slack(model, &model->events[event])) return;
    s->count = 0;
    tli_bound_add_instant(model, s, event);
    s->value = tli_bound_search_line(model, s, 0, ends);
    search->single[event] = s->value > 1 ? s->value : 1;  // at least 1: not slack, so useful beside others
    if (!search->best->count || s->value > search->best->value) tli_bound_copy_state(model, search->best, s);
    tli_bound_note(model, search->best->value);
}

// Evaluate instants near the best one, in halving distances.
static void tli_bound_refine_single(tli_bound_search *search, int32_t distance) {
    for (; distance > 0 && search->best->count; distance /= 2) {
        int32_t at = search->best->at[0];
        if (at - distance >= 0) tli_bound_try_single(search, at - distance);
        if (at + distance < search->model->event_count) tli_bound_try_single(search, at + distance);
    }
}

// Evaluate each instant alone: all if there are few, else a few, with what is nearer and nearer to the best of
// them, then evenly spaced ones and all near the best.
static void tli_bound_try_singles(tli_bound_search *search) {
    tli_bound *model = search->model;
    int32_t step = model->event_count / 256 + 1, wide = 16 * step, p, k;
    for (p = 0; p < model->event_count; p++) search->single[p] = -1;
    tli_bound_try_single(search, model->event_count - 1);
    for (p = step / 2; p < model->event_count && step > 1; p += wide) tli_bound_try_single(search, p);
    if (step > 1) tli_bound_refine_single(search, wide / 2);
    for (p = step / 2; p < model->event_count; p += step) tli_bound_try_single(search, p);
    for (k = step / 2; step > 1 && k > 0; k--) {
        int32_t at = search->best->count ? search->best->at[0] : 0;
        if (at - k >= 0) tli_bound_try_single(search, at - k);
        if (at + k < model->event_count) tli_bound_try_single(search, at + k);
    }
}

// Whether an instant is a local maximum among those that were evaluated.
static int tli_bound_is_top(const tli_bound_search *search, int32_t event) {
    int64_t value = search->single[event];
    int32_t p;
    for (p = event - 1; p >= 0 && search->single[p] < 0; p--) { }
    if (p >= 0 && search->single[p] >= value) return 0;
    for (p = event + 1; p < search->model->event_count && search->single[p] < 0; p++) { }
    return p == search->model->event_count || search->single[p] <= value;
}

// List the instants to try together with others: all if there are few, else local maxima, those next to the
// best, and evenly spaced ones.
static void tli_bound_list_instants(tli_bound_search *search) {
    enum { LISTED = 24 };
    int32_t p, count = 0, tops = 0, seen = 0, step;
    for (p = 0; p < search->model->event_count; p++) {
        count += search->single[p] > 0;
        tops += search->single[p] > 0 && tli_bound_is_top(search, p);
    }
    if (tops > LISTED / 2) tops = LISTED / 2;
    step = count <= LISTED ? 1 : (count - 1) / (LISTED - tops) + 1;
    for (p = 0; p < search->model->event_count; p++) {
        int is_top;
        if (search->single[p] <= 0) continue;
        is_top = tli_bound_is_top(search, p) ||
                 (p >= search->best->at[0] - 3 && p <= search->best->at[0] + 3);
        if (is_top || seen % step == step / 2) search->listed[search->listed_count++] = p;
        seen += !is_top;
    }
}

static int tli_bound_has_instant(const tli_bound_state *s, int32_t event) {
    int32_t a;
    for (a = 0; a < s->count; a++) if (s->at[a] == event) return 1;
    return 0;
}

// Find the value of the best state with one more instant after some steps of climbing; into climb.best.
static int64_t tli_bound_try_more(tli_bound_search *search, int32_t event, int32_t rounds) {
    tli_bound_copy_state(search->model, search->climb.best, search->best);
    tli_bound_add_instant(search->model, search->climb.best, event);
    tli_bound_climb_up(search->model, &search->climb, rounds);
    return search->climb.best->value;
}

// Add the instant that raises the value most. All listed ones are tried with a few steps, the best of them,
// and the neighbours of the best one, with more. Returns 0 if none raises it. More attempts may find a better
// instant, but leave work for fewer of them.
static int tli_bound_add_best(tli_bound_search *search) {
    enum { HOPEFUL = 3, AROUND = 2, FEW = 8, MORE = 40 };
    tli_bound *model = search->model;
    int64_t values[HOPEFUL], before = search->best->value;
    int32_t chosen[HOPEFUL], count = 0, nearby = -1, i, k;
    for (i = 0; i < search->listed_count && !tli_bound_is_over(model); i++) {
        int64_t value;
        if (tli_bound_has_instant(search->best, search->listed[i])) continue;
        value = tli_bound_try_more(search, search->listed[i], FEW);
        if (count == HOPEFUL && value <= values[count - 1]) continue;
        k = count < HOPEFUL ? count++ : count - 1;
        for (; k > 0 && values[k - 1] < value; k--) { values[k] = values[k - 1]; chosen[k] = chosen[k - 1]; }
        values[k] = value;
        chosen[k] = search->listed[i];
    }
    tli_bound_copy_state(model, search->trial, search->best);
    for (i = 0; i < count && !tli_bound_is_over(model); i++)
        if (tli_bound_try_more(search, chosen[i], MORE) > search->trial->value) {
            tli_bound_copy_state(model, search->trial, search->climb.best);
            tli_bound_note(model, search->trial->value);
            nearby = chosen[i];
        }
    for (i = -AROUND; i <= AROUND && nearby >= 0 && !tli_bound_is_over(model); i++) {
        if (nearby + i < 0 || nearby + i >= model->event_count) continue;
        if (tli_bound_has_instant(search->best, nearby + i)) continue;
        if (tli_bound_try_more(search, nearby + i, MORE) > search->trial->value)
            tli_bound_copy_state(model, search->trial, search->climb.best);
    }
    if (search->trial->value <= before) return 0;
    tli_bound_copy_state(model, search->best, search->trial);
    return 1;
}

// Note the best state as search->top if its value, each span with the room as a hard limit, is the highest.
// Where a few large items compete for the room, that is far above the value that the multipliers give, and one
// instant more can lower it: half of a call in each of two spans does what a whole call does in their union.
static void tli_bound_keep_top(tli_bound_search *search) {
    tli_bound *model = search->model;
    tli_bound_copy_state(model, search->trial, search->best);
    if (!tli_bound_is_over(model)) tli_bound_tabulate(model, search->trial);
    if (!search->top->count || search->trial->value > search->top->value)
        tli_bound_copy_state(model, search->top, search->trial);
    tli_bound_note(model, search->top->value);
}

// -- bound: branching --

// Compute the value of a branch anew; it never falls. Returns 0 if no schedule is in the branch.
static int tli_bound_find_branch(tli_bound_search *search, tli_bound_state *s, int32_t rounds) {
    tli_bound *model = search->model;
    int64_t before = s->value, ends[2];
    int32_t a;
    for (a = 0; a < s->count; a++) if (!tli_bound_fix_large(model, s, a)) return 0;
    if (s->count > 1) {
        tli_bound_copy_state(model, search->climb.best, s);
        tli_bound_climb_up(model, &search->climb, rounds);
        search->climb.now->value = search->climb.best->value;
        tli_bound_copy_state(model, s, search->climb.best);
        tli_copy(s->share, search->climb.now->share, (size_t)s->count * (size_t)model->item_count);
        if (model->table_limit) tli_bound_tabulate(model, s);
    } else {
        s->value = tli_bound_search_line(model, s, 0, ends);
        s->is_exact = ends[0] == ends[1];
        tli_zero(s->share, (size_t)model->item_count);
        for (a = 0; a < 2 && ends[0] != ends[1]; a++) {
            int64_t lambda = s->lambda[0];
            (void)tli_bound_touch(model, s, 0, ends[a]);
            tli_bound_add_share(model, s, 0, 127);
            s->lambda[0] = lambda;
        }
    }
    if (s->value < before) s->value = before;
    return 1;
}

// Choose the x[a][t] to branch on: near one half in the last solutions, and of high price; -1 = none is free.
static int32_t tli_bound_choose_cell(const tli_bound *model, const tli_bound_state *s) {
    int32_t best = -1, a, t;
    int64_t most = 0;
    if (s->is_exact) return -1;
    for (a = 0; a < s->count; a++)
        for (t = 0; t < model->item_count; t++) {
            int32_t at = a * model->item_count + t;
            int64_t doubt = s->share[at] < 128 ? s->share[at] : 255 - s->share[at];
            if (s->fixed[at] != TLI_BOUND_FREE || !model->bytes[t]) continue;
            doubt = (1 + 32 * doubt) * (1 + tli_bound_price(model, s, a, t) / 4096);
            if (doubt > most) { most = doubt; best = at; }
        }
    return best;
}

static void tli_bound_push(tli_bound_tree *tree, tli_bound_state *s) {
    int32_t at = tree->count++;
    for (; at > 0 && tree->open[at - 1]->value < s->value; at--) tree->open[at] = tree->open[at - 1];
    tree->open[at] = s;
}

// If all variables of a branch are fixed, only another instant can raise its value: add the one with the
// highest value. Returns 0 if there is none, or no memory for it, or no branch is left.
static int tli_bound_extend(tli_bound_search *search, tli_bound_tree *tree) {
    tli_bound *model = search->model;
    tli_bound_state *low = tree->open[tree->count - 1], *more;
    int64_t most = 0;
    int32_t i, found = -1;
    if (low->count == search->model->most_instants) return 0;
    for (i = 0; i < search->listed_count && !tli_bound_is_over(model); i++) {
        if (tli_bound_has_instant(low, search->listed[i])) continue;
        tli_bound_copy_state(model, search->climb.best, low);
        tli_bound_add_instant(model, search->climb.best, search->listed[i]);
        tli_bound_climb_up(model, &search->climb, 12);
        if (found >= 0 && (search->climb.best->value < most || (search->climb.best->value == most &&
            search->single[search->listed[i]] <= search->single[found]))) continue;
        most = search->climb.best->value;
        found = search->listed[i];
        tli_bound_copy_state(model, search->trial, search->climb.best);
    }
    if (found < 0) return 0;
    more = tli_bound_add_state(model, low->count + 1);
    if (!more) return 0;
    tli_bound_copy_state(model, more, search->trial);
    more->is_exact = 0;
    if (more->value < low->value) more->value = low->value;
    tli_bound_free_state(model, low);
    tree->count--;
    if (tli_bound_find_branch(search, more, 30)) tli_bound_push(tree, more);
    else tli_bound_free_state(model, more);
    tree->bound = tree->count ? tree->open[tree->count - 1]->value : TLI_BOUND_INFINITE;
    return tree->count > 0;
}

// Split the lowest branch in two: item held, item absent. Returns 0 when branching has to end.
static int tli_bound_split(tli_bound_search *search, tli_bound_tree *tree) {
    tli_bound *model = search->model;
    tli_bound_state *low = tree->open[tree->count - 1], *half;
    int32_t cell = tli_bound_choose_cell(model, low), rounds = low->count > 1 ? 6 : 0;
    tree->bound = low->value;
    if (tli_bound_is_over(model)) return 0;
    if (cell < 0) return tli_bound_extend(search, tree);
    if (tree->count == tree->most) return 0;
    half = tli_bound_add_state(model, low->count);
    if (!half) return 0;
    tli_bound_copy_state(model, half, low);
    tree->count--;
    low->fixed[cell] = TLI_BOUND_ABSENT;
    low->mu[cell] = 0;
    half->fixed[cell] = TLI_BOUND_KEPT;
    half->mu[cell] = 0;
    half->room[cell / model->item_count] -= model->bytes[cell % model->item_count];
    if (tli_bound_find_branch(search, low, rounds)) tli_bound_push(tree, low);
    else tli_bound_free_state(model, low);
    if (tli_bound_find_branch(search, half, rounds)) tli_bound_push(tree, half);
    else tli_bound_free_state(model, half);
    tree->bound = tree->count ? tree->open[tree->count - 1]->value : TLI_BOUND_INFINITE;
    return tree->count > 0;
}

// Whether branching began so much work ago and has not raised the bound above that of the root. Where branches
// prove a plan, the lowest ones rise soon; where none does, mostly there is a cheaper plan.
static int tli_bound_is_idle(const tli_bound *model, const tli_bound_tree *tree, int64_t root, uint64_t start) {
    uint64_t patience = model->watch ? model->watch->patience : 0;
    if (!patience || *model->work - start < patience) return 0;
    return tli_bound_round_up(model, tree->bound) == tli_bound_round_up(model, root);
}

// Raise the value of a state by so many splits; TLI_BOUND_INFINITE: no schedule fits.
static int64_t tli_bound_branch(tli_bound_search *search, const tli_bound_state *from, int32_t splits) {
    tli_bound *model = search->model;
    tli_bound_tree *tree = search->tree;
    tli_bound_state *root = tli_bound_add_state(model, from->count);
    int64_t bound = from->value, first;
    uint64_t most, start = *model->work, before;
    if (!root) return bound;
    tli_bound_copy_state(model, root, from);
    most = TLI_BOUND_OPEN_BYTES / (sizeof *root + 10 * (uint64_t)root->count * (uint64_t)model->item_count);
    tree->most = most < TLI_BOUND_OPEN ? (int32_t)most : TLI_BOUND_OPEN;
    tree->count = 0;
    if (tli_bound_find_branch(search, root, 30)) {
        before = *model->work;
        tli_bound_tabulate(model, root);
        if (*model->work - before > model->table_limit / 16)
            model->table_limit = 0;                     // too slow for each branch
        tli_bound_push(tree, root);
    } else {
        tli_bound_free_state(model, root);
    }
    first = tree->bound = tree->count ? root->value : TLI_BOUND_INFINITE;
    while (tree->count && splits-- > 0 && !tli_bound_is_idle(model, tree, first, start) &&
           tli_bound_split(search, tree)) tli_bound_note(model, tree->bound);
    bound = tree->bound > bound ? tree->bound : bound;
    while (tree->count > 0) tli_bound_free_state(model, tree->open[--tree->count]);
    return bound;
}

// The value of a state after a few splits, without tables.
static int64_t tli_bound_sound(tli_bound_search *search, const tli_bound_state *s) {
    enum { SPLITS = 24 };
    tli_bound *model = search->model;
    uint64_t tables = model->table_limit;
    int64_t value;
    model->table_limit = 0;
    value = tli_bound_branch(search, s, SPLITS);
    model->table_limit = tables;
    return value;
}

// Whether an event is beside one of a state's instants, and none of them.
static int tli_bound_is_beside(const tli_bound_state *s, int32_t event) {
    enum { AROUND = 2 };
    int32_t a, beside = 0;
    for (a = 0; a < s->count; a++) {
        if (s->at[a] == event) return 0;
        beside |= event >= s->at[a] - AROUND && event <= s->at[a] + AROUND;
    }
    return beside;
}

// Add to the top state the instant beside its own with which the value after a few splits is highest; without
// splits the instant may lower the value. *sounded: the value after a few splits. 0 = no instant raises it.
static int tli_bound_grow(tli_bound_search *search, int64_t *sounded) {
    tli_bound *model = search->model;
    int64_t most = *sounded, value;
    int32_t event;
    tli_bound_copy_state(model, search->best, search->top);
    for (event = 0; event < model->event_count && search->best->count < model->most_instants; event++) {
        if (!tli_bound_is_beside(search->best, event) || tli_bound_is_over(model)) continue;
        tli_bound_copy_state(model, search->trial, search->best);
        tli_bound_add_instant(model, search->trial, event);
        search->trial->value = 0;
        value = tli_bound_sound(search, search->trial);
        if (value <= most) continue;
        most = value;
        tli_bound_copy_state(model, search->top, search->trial);
    }
    if (most <= *sounded) return 0;
    *sounded = most;
    return 1;
}

// -- bound: the search as a whole --

// Three eighths of the work go to choosing instants one by one, as much again to choosing them together, at
// last by a few splits each if plans are near the bound, and the rest to branching.
static void tli_bound_search_all(tli_bound_search *search, int64_t *value) {
    tli_bound *model = search->model;
    uint64_t limit = model->work_limit, start = *model->work, share = limit > start ? (limit - start) / 8 : 0;
    int64_t sounded = 0;
    if (!tli_add_u64(limit, limit / 8, &model->flow_limit)) model->flow_limit = UINT64_MAX;
    model->work_limit = start + 3 * share;
    tli_bound_try_singles(search);
    *value = 0;
    model->table_limit = 2 * share;
    if (search->best->count > 0) {
        tli_bound_list_instants(search);
        model->work_limit = start + 6 * share;
        do { tli_bound_keep_top(search); }
        while (search->best->count < model->most_instants && tli_bound_add_best(search));
        if (model->watch->is_near) sounded = tli_bound_sound(search, search->top);
        while (model->watch->is_near && tli_bound_grow(search, &sounded)) { }
        model->work_limit = limit;
        *value = tli_bound_branch(search, search->top, INT32_MAX);
        if (*value < sounded) *value = sounded;
    }
    model->work_limit = limit;
}

// Find the scaled bound of the cost beyond the base cost; TLI_BOUND_INFINITE: no schedule fits.
static tl_result tli_bound_search_bound(tli_bound *model, int64_t *value) {
    tli_bound_search search;
    int64_t cells;
    tl_result result = tli_bound_open_net(model);
    if (result) return result;
    model->most_instants = model->item_count > TLI_BOUND_CELLS / TLI_BOUND_INSTANTS
        ? 1 + TLI_BOUND_CELLS / model->item_count : TLI_BOUND_INSTANTS;
    cells = (int64_t)model->most_instants * model->item_count;
    tli_zero(&search, sizeof search);
    search.model = model;
    search.single = (int64_t *)tli_bound_take(model, model->event_count, sizeof(int64_t));
    search.listed = (int32_t *)tli_bound_take(model, model->event_count, sizeof(int32_t));
    search.tree = (tli_bound_tree *)tli_bound_take(model, 1, sizeof *search.tree);
    search.climb.slope = (int32_t *)tli_bound_take(model, cells, sizeof(int32_t));
    search.climb.held = (int8_t *)tli_bound_take(model, cells, 1);
    search.climb.now = tli_bound_add_state(model, model->most_instants);
    search.climb.best = tli_bound_add_state(model, model->most_instants);
    search.best = tli_bound_add_state(model, model->most_instants);
    search.trial = tli_bound_add_state(model, model->most_instants);
    search.top = tli_bound_add_state(model, model->most_instants);
    if (!model->failed) tli_bound_search_all(&search, value);
    tli_bound_free_state(model, search.climb.now);
    tli_bound_free_state(model, search.climb.best);
    tli_bound_free_state(model, search.best);
    tli_bound_free_state(model, search.trial);
    tli_bound_free_state(model, search.top);
    return model->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
