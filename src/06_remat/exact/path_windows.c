#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- beam: windows of a small graph's plan, planned again by the exact search --
//
//     calls     . . . . [ . . . . . . . . ] . . . . .      The plan is known as its path: the states of the
//     path            to <--------------- from             exact search, from the end to the start. Between two
//                                                          of them that search runs again, for less cost.
//
// What the earlier state wants is what the calls before it hold in any case, so any way to the later state that
// wants no more there can take the place of the old one. A try changes many calls at once, the order of
// forwards too, where the local search stops at plans that no few removals and recomputations improve.
//
// Long windows are cut to a beam: at each position, of the states that may lead to a cheaper plan, so many with
// the least totals are expanded. A window whose states are all within the width is optimal afterwards, unless
// its search ended early.
//
// Lengths and widths are drawn at random: of ten sets of them tried on random graphs, this one gained most.
// Where nothing was found for a quarter of the work, longer and wider ones are drawn as well.

#define TLI_BEAM_LENGTH 12  // calls of the shortest windows; others are 2, 4 and 8 times as long
#define TLI_BEAM_WIDTH 32   // the same for widths
#define TLI_BEAM_SEED 2     // any would do

typedef struct tli_beam {
    tli_exact x;
    tli_exact_state *path, *next;  // [count] from the end to the start; room for the next path
    int32_t count, capacity, next_capacity;
    tl_random random;
} tli_beam;

// Append to the path the state before a step of this call, unless it is a forward that makes nothing wanted.
// Saved bytes that are wanted and that this forward does not save, an earlier one has saved.
static void tli_beam_append(tli_beam *b, int32_t call, int32_t kind) {
    const tli_exact *x = &b->x;
    const tli_exact_call *c = &x->calls[call];
    const tli_exact_state *after = &b->path[b->count - 1];
    int saves = kind == TL_STEP_FORWARD_SAVE && !tli_set_is_empty(tli_set_meet(after->wanted, c->saved));
    tli_set items = saves ? tli_set_join(c->made, c->saved) : c->made;
    tli_exact_state *s = &b->path[b->count];
    uint64_t bytes;
    *s = *after;
    TLI_INVARIANT(call >= 0 && call < x->call_count);
    s->after = b->count - 1;
    s->call = call;
    s->kind = kind;
    if (kind == TL_STEP_BACKWARD) {
        const tli_exact_position *p = &x->positions[--s->position];
        s->wanted = tli_set_join(s->wanted, p->reads);
        s->cost += p->bwd_cost;
    } else {
        if (tli_set_is_empty(tli_set_meet(items, s->wanted))) return;
        if (!saves) s->kind = (int32_t)tli_exact_find_form(c, s->wanted, s->position, &bytes);
        s->wanted = tli_set_join(tli_set_less(s->wanted, items), tli_set_join(c->inputs, c->spent));
        s->cost += c->fwd_cost;
    }
    b->count++;
}

static int tli_beam_reserve(tli_beam *b, int32_t count) {
    void *next = b->next;
    if (!tli_grow(b->x.env, &next, &b->next_capacity, 0, count, sizeof *b->next)) return 0;
    b->next = (tli_exact_state *)next;
    return 1;
}

static void tli_beam_swap(tli_beam *b) {
    tli_exact_state *path = b->path;
    int32_t capacity = b->capacity;
    b->path = b->next;
    b->capacity = b->next_capacity;
    b->next = path;
    b->next_capacity = capacity;
}

// Read the path of a plan without copies to a host. 0 = no memory.
static int tli_beam_read(tli_beam *b, const tl_plan *plan) {
    int32_t i;
    if (!tli_beam_reserve(b, plan->step_count + 1)) return 0;
    tli_beam_swap(b);
    tli_zero(b->path, sizeof *b->path);
    b->path->wanted = b->x.target;
    b->path->position = b->x.last;
    b->path->after = b->path->call = -1;
    b->count = 1;
    for (i = plan->step_count; i-- > 0;) {
        const tl_step *step = &plan->steps[i];
        int32_t call = step->kind <= TL_STEP_BACKWARD ? b->x.call_of[step->node] : -1;
        if (call >= 0) tli_beam_append(b, call, step->kind);    // -1 also where nobody needs the node
    }
    return 1;
}

// Put the states that the search found from `state` on in the place of the window. 0 = no memory.
static int tli_beam_splice(tli_beam *b, int32_t from, int32_t to, int32_t state) {
    const tli_exact_state *states = b->x.states, *old;
    int32_t count = 0, end = b->count, at, i;
    for (at = state; states[at].after >= 0; at = states[at].after) count++;
    if (!tli_beam_reserve(b, from + 1 + count + end - to)) return 0;
    tli_beam_swap(b);
    old = b->next;
    tli_copy(b->path, old, ((size_t)from + 1) * sizeof *old);
    for (at = state, i = from + count; i > from; at = states[at].after, i--) {
        b->path[i] = states[at];
        b->path[i].after = i - 1;
    }
    b->count = from + count + 1;
    for (i = to + 1; i < end; i++) tli_beam_append(b, old[i].call, old[i].kind);
    return 1;
}

// Empty the search for another window.
static void tli_beam_reset(tli_exact *x) {
    int32_t k;
    for (k = 0; k < x->state_count; k++)
        x->buckets[tli_exact_hash(x->states[k].wanted, x->states[k].position) &
                   (uint32_t)(x->bucket_count - 1)] = 0;
    for (k = x->first; k <= x->last; k++) x->positions[k].settled_count = 0;
    x->work += (uint64_t)x->state_count + 2 * (uint64_t)(x->last - x->first + 1) * (uint64_t)x->call_count;
    x->state_count = x->heap_count = x->full = 0;
}

// Plan the window between two states of the path again. 0 = no memory.
static int tli_beam_plan(tli_beam *b, int32_t from, int32_t to) {
    tli_exact *x = &b->x;
    uint64_t bound;
    int32_t state;
    x->first = b->path[to].position;
    x->given = b->path[to].wanted;
    x->last = b->path[from].position;
    x->target = b->path[from].wanted;
    x->paid = b->path[from].cost;
    x->most_total = b->path[to].cost;
    tli_beam_reset(x);
    tli_exact_read_before(x);
    if (!tli_exact_read_budget(x)) return 1;
    state = tli_exact_search(x, &bound);
    return !x->failed && (state < 0 || tli_beam_splice(b, from, to, state));
}

static int32_t tli_beam_draw(tli_beam *b, int32_t limit) {
    return (int32_t)(tl_next_random_below(&b->random, (uint64_t)limit));
}

// Plan windows drawn at random until the work is used up. 0 = no memory.
static int tli_beam_improve(tli_beam *b) {
    tli_exact *x = &b->x;
    uint64_t found = x->work, cost = b->path[b->count - 1].cost;    // work when the cost last fell; that cost
    while (x->work < x->work_limit && !tli_remat_stops(x->watch, x->work)) {
        int32_t stuck = x->work - found > x->work_limit / 4;
        int32_t length = TLI_BEAM_LENGTH << tli_beam_draw(b, 4 + stuck), from;
        x->width = TLI_BEAM_WIDTH << tli_beam_draw(b, 4 + 2 * stuck);
        if (b->path[b->count - 1].cost < cost) { cost = b->path[b->count - 1].cost; found = x->work; }
        if (length > b->count - 1) length = b->count - 1;
        from = tli_beam_draw(b, b->count - length);
        if (!tli_beam_plan(b, from, from + length)) return 0;
    }
    return 1;
}

// The steps of the path. 0 = no memory.
static int tli_beam_steps(tli_beam *b, tli_steps *steps) {
    tli_release(b->x.env, b->x.states);
    b->x.states = b->path;
    b->path = NULL;
    tli_exact_add_steps(&b->x, b->count - 1, steps);
    return !steps->failed;
}

// Improve a plan without copies to a host, which keeps the budget, by work_limit steps; another limit makes
// other tries.
//
//   steps  an empty list, gets the steps of a cheaper plan; stays empty if none was found, or if the graph has
//          more than TLI_EXACT_ITEMS items
//   work   elementary steps are added to it
//
// Errors: TL_ERROR_NO_MEMORY.
static tl_result tli_remat_beam(tl_env *env, const tl_graph *graph, uint64_t budget, int32_t inference,
                                tli_remat_watch *watch, const tl_plan *start, uint64_t work_limit,
                                tli_steps *steps, uint64_t *work) {
    tli_beam b;
    tl_result result;
    tli_zero(&b, sizeof b);
    result = tli_exact_init(env, &b.x, graph, inference);
    b.x.watch = watch;
    b.x.work_limit = work_limit;
    b.x.budget = budget;
    b.random.state = work_limit + TLI_BEAM_SEED + tli_remat_seed(watch);
    if (!result && b.x.item_count <= TLI_EXACT_ITEMS) {
        int ok = tli_beam_read(&b, start) && tli_beam_improve(&b);
        if (ok && b.path[b.count - 1].cost < start->cost) ok = tli_beam_steps(&b, steps);
        if (!ok) result = TL_ERROR_NO_MEMORY;
    }
    *work += b.x.work;
    tli_release(env, b.path);
    tli_release(env, b.next);
    tli_exact_free(&b.x);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
