#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- order: states and safe moves --
//
// A state is the set of the calls of a window that have run. The search for an order that never takes more
// than a cap goes from state to state, each once (Serenity's dynamic programming over frontiers, with its
// soft budget). It starts with a cap that is a lower bound. When no state is left under the cap, the cap
// rises to the least that a next call would take: so the first order that is found has the least peak, and
// the cap is a lower bound at any time.
//
// Most states have one safe move, and then no other is tried. Say that after S the calls a1, a2, .., ak can
// run, each of them only after the one before it, that none of them takes more than the cap, and that
// live(S + a1 .. ak) <= live(S), but live(S + a1 .. aj) > live(S) for j < k. Then, if any order from S on
// keeps the cap, one that begins with a1 .. ak does. Proof: let A = {a1 .. ak} and P the calls that such an
// order runs up to any point. An item is live if its maker has run and one of its readers has not, so live(X
// | Y) + live(X & Y) <= live(X) + live(Y) for all sets X, Y that hold with a call all that it reads: where an
// item is live after X | Y, its maker is in X or in Y, and so it is live there, and if it is live after X & Y
// as well, then some reader is in neither or in one alone, and it is counted on the right as often; if it is
// live after X & Y alone, it is so after X or after Y. With X = S + P and Y = S + A: X & Y is S + a1 .. aj
// for some j, because each of the calls needs the one before; live(X & Y) >= live(Y); so live(S + P + A) <=
// live(S + P). Every call of P, run with A done, thus finds no more live than without, and what it overwrites
// it still may: calls that are done read nothing any more. With k = 1 this is the move that frees at least as
// much as it leaves.

#define TLI_ORDER_STATES (1 << 20)          // of a search at most,
#define TLI_ORDER_MEMORY (32 << 20)         // in so many bytes at most; as many for the heap
#define TLI_ORDER_CHAIN 16                  // calls of a safe move at most

typedef struct tli_order_state {
    uint64_t live;
    int32_t  parent, next;                  // next: in the same bucket
    int32_t  rank;                          // number of calls that have run
    int32_t  link;                          // the next of a list; -1 = none
} tli_order_state;

typedef struct tli_order_parked { uint64_t peak; int32_t state, call; } tli_order_parked;

typedef struct tli_order_search {
    const tli_order_window *w;
    tli_order *o;
    uint64_t   cap, limit;                  // peaks of limit and more are of no use
    tli_order_state *states;  int32_t state_count, state_capacity, most_states;
    uint64_t  *sets;          int32_t set_capacity;     // [states][words]
    int32_t   *buckets, bucket_count;       // a power of two
    tli_order_parked *heap;   int32_t heap_count, heap_capacity;
    uint64_t  *now;                         // [words] the state that is looked at
    int32_t   *ready, ready_count;          // [count]
    int32_t    top, base;                   // of the linked stack; the state below this turn's; -1 = none
    int32_t   *heads;                       // [count + 1] of the beam, by rank
    int32_t    width;                       // of the beam; 0 = no beam
    uint64_t   work_end;
    int        is_full;
} tli_order_search;

static int tli_order_has(const uint64_t *set, int32_t i) { return (int)(set[i / 64] >> i % 64 & 1); }

static void tli_order_flip(uint64_t *set, int32_t i) { set[i / 64] ^= (uint64_t)1 << i % 64; }

static int tli_order_is_ready(tli_order_search *s, int32_t i) {
    const tli_order_window *w = s->w;
    int32_t k;
    for (k = w->first_before[i]; k < w->first_before[i + 1]; k++) {
        s->o->work++;
        if (!tli_order_has(s->now, w->before[k])) return 0;
    }
    return 1;
}

// Whether call i is the last one to read an item.
static int tli_order_is_last(tli_order_search *s, int32_t item, int32_t i) {
    const tli_order_window *w = s->w;
    int32_t k;
    for (k = w->first_reader[item]; k < w->first_reader[item + 1]; k++) {
        s->o->work++;
        if (w->readers[k] != i && !tli_order_has(s->now, w->readers[k])) return 0;
    }
    return 1;
}

// What call i takes after the present set, of which `live` bytes are live, and what is live after it.
static uint64_t tli_order_try(tli_order_search *s, int32_t i, uint64_t live, uint64_t *after) {
    const tli_order_window *w = s->w;
    uint64_t peak = live + w->takes[i];
    int32_t k;
    *after = live + w->keeps[i];
    s->o->work += 4 + 2 * (uint64_t)(w->first_read[i + 1] - w->first_read[i]);
    for (k = w->first_read[i]; k < w->first_read[i + 1]; k++) {
        if (!tli_order_is_last(s, w->reads[k], i)) continue;
        *after -= w->bytes[w->reads[k]];
        if (w->over[i] == w->reads[k]) peak -= w->bytes[w->reads[k]];
    }
    return peak;
}

// -- order: a search --

static void tli_order_close_search(tli_order_search *s) {
    tl_env *env = s->o->env;
    tli_release(env, s->states);
    tli_release(env, s->sets);
    tli_release(env, s->buckets);
    tli_release(env, s->heap);
    tli_release(env, s->now);
    tli_release(env, s->ready);
    tli_release(env, s->heads);
}

// 0 = no memory.
static int tli_order_open_search(tli_order_search *s, const tli_order_window *w) {
    tli_order *o = w->o;
    int64_t most = TLI_ORDER_MEMORY / (8 * w->words + (int32_t)sizeof(tli_order_state));
    tli_zero(s, sizeof *s);
    s->w = w;
    s->o = o;
    s->most_states = most < TLI_ORDER_STATES ? (int32_t)most : TLI_ORDER_STATES;
    s->bucket_count = 1024;
    s->buckets = TLI_ORDER_NEW(o, s->bucket_count, int32_t);
    s->now = TLI_ORDER_NEW(o, w->words, uint64_t);
    s->ready = TLI_ORDER_NEW(o, w->count, int32_t);
    s->heads = TLI_ORDER_NEW(o, w->count + 1, int32_t);
    if (s->buckets && s->now && s->ready && s->heads) return 1;
    tli_order_close_search(s);
    o->failed = 1;
    return 0;
}

static uint64_t *tli_order_set_of(const tli_order_search *s, int32_t state) {
    return s->sets + (size_t)state * (size_t)s->w->words;
}

static uint32_t tli_order_hash(const tli_order_search *s, const uint64_t *set) {
    uint64_t hash = 0;
    int32_t k;
    for (k = 0; k < s->w->words; k++) {
        hash = (hash ^ set[k]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash & (uint32_t)(s->bucket_count - 1);
}

static int tli_order_widen(tli_order_search *s) {
    int32_t *buckets = TLI_ORDER_NEW(s->o, 2 * s->bucket_count, int32_t), i;
    if (!buckets) return 0;
    tli_release(s->o->env, s->buckets);
    s->buckets = buckets;
    s->bucket_count *= 2;
    for (i = 0; i < s->state_count; i++) {
        uint32_t at = tli_order_hash(s, tli_order_set_of(s, i));
        s->states[i].next = buckets[at] - 1;
        buckets[at] = i + 1;
    }
    return 1;
}

// Make room for one more state. 0 = none: is_full or failed is set.
static int tli_order_grow(tli_order_search *s) {
    void *states = s->states, *sets = s->sets;
    if (s->state_count == s->most_states) { s->is_full = 1; return 0; }
    if (!tli_grow(s->o->env, &states, &s->state_capacity, s->state_count, (int64_t)s->state_count + 1,
                  sizeof *s->states)) s->o->failed = 1;
    s->states = (tli_order_state *)states;
    if (!s->o->failed && !tli_grow(s->o->env, &sets, &s->set_capacity, s->state_count,
                                   (int64_t)s->state_count + 1, 8 * (size_t)s->w->words)) s->o->failed = 1;
    s->sets = (uint64_t *)sets;
    if (!s->o->failed && s->state_count >= s->bucket_count && !tli_order_widen(s)) s->o->failed = 1;
    return !s->o->failed;
}

// Add the present set as a state; -1 = it is one already, or there is no room.
static int32_t tli_order_add_state(tli_order_search *s, uint64_t live, int32_t parent, int32_t rank) {
    int32_t k, at, words = s->w->words;
    uint32_t bucket = tli_order_hash(s, s->now);
    tli_order_state *state;
    s->o->work += (uint64_t)words;
    for (at = s->buckets[bucket] - 1; at >= 0; at = s->states[at].next) {
        const uint64_t *set = tli_order_set_of(s, at);
        for (k = 0; k < words && set[k] == s->now[k]; k++) {}
        s->o->work += (uint64_t)k + 1;
        if (k == words) return -1;
    }
    if (!tli_order_grow(s)) return -1;
    bucket = tli_order_hash(s, s->now);
    state = &s->states[s->state_count];
    state->live = live;
    state->parent = parent;
    state->rank = rank;
    state->next = s->buckets[bucket] - 1;
    state->link = -1;
    s->buckets[bucket] = s->state_count + 1;
    tli_copy(tli_order_set_of(s, s->state_count), s->now, 8 * (size_t)words);
    return s->state_count++;
}

static int tli_order_is_above(const tli_order_parked *a, const tli_order_parked *b) {
    if (a->peak != b->peak) return a->peak > b->peak;
    return a->state != b->state ? a->state < b->state : a->call > b->call;  // of equal ones the later state
}

// Keep a call that takes more than the cap for later.
static void tli_order_park(tli_order_search *s, uint64_t peak, int32_t state, int32_t call) {
    void *heap = s->heap;
    tli_order_parked entry;
    int32_t at;
    entry.peak = peak;
    entry.state = state;
    entry.call = call;
    if (s->heap_count == TLI_ORDER_MEMORY / (int32_t)sizeof entry) { s->is_full = 1; return; }
    if (!tli_grow(s->o->env, &heap, &s->heap_capacity, s->heap_count, (int64_t)s->heap_count + 1,
                  sizeof entry)) {
        s->o->failed = 1;
        return;
    }
    s->heap = (tli_order_parked *)heap;
    for (at = s->heap_count++; at > 0 && tli_order_is_above(&s->heap[(at - 1) / 2], &entry); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = entry;
    s->o->work += 8;
}

static tli_order_parked tli_order_unpark(tli_order_search *s) {
    tli_order_parked first = s->heap[0], last = s->heap[--s->heap_count];
    int32_t at, child;
    for (at = 0; 2 * at + 1 < s->heap_count; at = child) {
        child = 2 * at + 1;
        if (child + 1 < s->heap_count && tli_order_is_above(&s->heap[child], &s->heap[child + 1])) child++;
        if (!tli_order_is_above(&last, &s->heap[child])) break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = last;
    s->o->work += 16;
    return first;
}

// Whether a state would be among the best of its rank.
static int tli_order_is_among_best(tli_order_search *s, int32_t rank, uint64_t live) {
    int32_t at = s->heads[rank], left = s->width;
    for (; left > 0 && at >= 0 && s->states[at].live <= live; at = s->states[at].link) left--;
    s->o->work += (uint64_t)(s->width - left) + 1;
    return left > 0;
}

// Go to the present set, if it is new. In a beam it must be among the best of its rank; else it goes on the
// stack, where of the states of one turn that with the least live bytes is on top.
static void tli_order_go(tli_order_search *s, uint64_t live, int32_t parent, int32_t rank) {
    int32_t state, *at;
    if (s->width && !tli_order_is_among_best(s, rank, live)) return;
    state = tli_order_add_state(s, live, parent, rank);
    if (state < 0) return;
    at = s->width ? &s->heads[rank] : &s->top;
    while (*at != s->base && s->states[*at].live <= live) at = &s->states[*at].link;
    s->states[state].link = *at;
    *at = state;
}

// The call that goes on from call i: of those that must follow it and can run now, within the cap, the one that
// leaves the fewest bytes. -1 = none.
static int32_t tli_order_find_next(tli_order_search *s, int32_t i, uint64_t live, uint64_t *after) {
    const tli_order_window *w = s->w;
    int32_t k, best = -1;
    uint64_t left;
    for (k = w->first_after[i]; k < w->first_after[i + 1]; k++) {
        if (!tli_order_is_ready(s, w->after[k])) continue;
        if (tli_order_try(s, w->after[k], live, &left) > s->cap) continue;
        if (best >= 0 && left >= *after) continue;
        best = w->after[k];
        *after = left;
    }
    return best;
}

// Make the safe move that begins with call i in the present set; *live changes with it. Returns the number of
// its calls; 0 = it is none.
static int32_t tli_order_move(tli_order_search *s, int32_t i, uint64_t *live) {
    int32_t trail[TLI_ORDER_CHAIN], count = 0;
    uint64_t after, at = *live;
    if (tli_order_try(s, i, at, &after) > s->cap) return 0;
    while (i >= 0 && count < TLI_ORDER_CHAIN) {
        tli_order_flip(s->now, i);
        trail[count++] = i;
        if (after <= *live) { *live = after; return count; }
        at = after;
        i = tli_order_find_next(s, i, at, &after);
    }
    while (count > 0) tli_order_flip(s->now, trail[--count]);
    return 0;
}

static void tli_order_find_ready(tli_order_search *s) {
    int32_t k, i;
    s->ready_count = 0;
    for (k = 0; k < s->w->words; k++) {
        uint64_t missing = ~s->now[k];
        s->o->work += 4;
        for (i = 64 * k; missing && i < s->w->count; i++, missing >>= 1)
            if ((missing & 1) && tli_order_is_ready(s, i)) s->ready[s->ready_count++] = i;
    }
}

// Try what can follow a state: a safe move alone, or every call that can run.
static void tli_order_expand(tli_order_search *s, int32_t state) {
    uint64_t live = s->states[state].live, after, peak;
    int32_t rank = s->states[state].rank, i, moved;
    s->base = s->width ? -1 : s->top;
    tli_copy(s->now, tli_order_set_of(s, state), 8 * (size_t)s->w->words);
    tli_order_find_ready(s);
    for (i = 0; i < s->ready_count; i++) {
        moved = tli_order_move(s, s->ready[i], &live);
        if (!moved) continue;
        tli_order_go(s, live, state, rank + moved);
        return;
    }
    for (i = 0; i < s->ready_count && !s->is_full && !s->o->failed; i++) {
        peak = tli_order_try(s, s->ready[i], live, &after);
        if (peak >= s->limit || (peak > s->cap && s->width)) continue;
        if (peak > s->cap) { tli_order_park(s, peak, state, s->ready[i]); continue; }
        tli_order_flip(s->now, s->ready[i]);
        tli_order_go(s, after, state, rank + 1);
        tli_order_flip(s->now, s->ready[i]);
    }
}

static int tli_order_search_ends(tli_order_search *s) {
    return s->is_full || s->o->failed || s->o->work >= s->work_end || tli_order_stops(s->o);
}

// Begin with nothing run.
static void tli_order_restart(tli_order_search *s) {
    int32_t k;
    s->state_count = s->heap_count = 0;
    s->is_full = 0;
    s->top = s->base = -1;
    for (k = 0; k < s->bucket_count; k++) s->buckets[k] = 0;
    for (k = 0; k <= s->w->count; k++) s->heads[k] = -1;
    tli_zero(s->now, 8 * (size_t)s->w->words);
    s->o->work += (uint64_t)(s->bucket_count + s->w->count);
    tli_order_go(s, s->w->live, -1, 0);
}

// Search under a cap that rises. Returns the last state of an order of least peak, or -1; *bound: no order of
// the window takes less, up to the limit.
static int32_t tli_order_rise(tli_order_search *s, uint64_t floor, uint64_t limit, uint64_t *bound) {
    s->width = 0;
    s->limit = limit;
    s->cap = *bound = floor;
    tli_order_restart(s);
    while (!tli_order_search_ends(s)) {
        int32_t state = s->top;
        *bound = s->cap;
        if (state >= 0) {
            if (s->states[state].rank == s->w->count) return state;
            s->top = s->states[state].link;
            tli_order_expand(s, state);
        } else if (s->heap_count) {
            tli_order_parked next = tli_order_unpark(s);
            uint64_t after;
            if (next.peak > s->cap) s->cap = next.peak;
            s->base = -1;
            tli_copy(s->now, tli_order_set_of(s, next.state), 8 * (size_t)s->w->words);
            tli_order_try(s, next.call, s->states[next.state].live, &after);
            tli_order_flip(s->now, next.call);
            tli_order_go(s, after, next.state, s->states[next.state].rank + 1);
        } else {
            *bound = limit;
            return -1;
        }
    }
    return -1;
}

// Search under a fixed cap, with the `width` best states of each rank. Returns the last state, or -1.
static int32_t tli_order_beam(tli_order_search *s, uint64_t cap, int32_t width) {
    int32_t rank, state;
    s->width = width;
    s->limit = cap + 1;
    s->cap = cap;
    tli_order_restart(s);
    for (rank = 0; rank < s->w->count; rank++) {
        int32_t left = width;
        for (state = s->heads[rank]; state >= 0 && left > 0; state = s->states[state].link, left--) {
            if (tli_order_search_ends(s)) return -1;
            tli_order_expand(s, state);
        }
    }
    return s->heads[s->w->count];
}

// Keep the order that ends in a state. The calls of one move have rising numbers in the order of their run.
static void tli_order_keep(tli_order_search *s, tli_order_window *w, int32_t state) {
    uint64_t peak = 0, now, after, live = w->live;
    int32_t i, k;
    for (; s->states[state].parent >= 0; state = s->states[state].parent) {
        const uint64_t *set = tli_order_set_of(s, state), *was = tli_order_set_of(s, s->states[state].parent);
        int32_t at = s->states[s->states[state].parent].rank;
        for (k = 0; k < w->words; k++)
            for (i = 0; i < 64 && 64 * k + i < w->count; i++)
                if ((set[k] & ~was[k]) >> i & 1) w->best[at++] = 64 * k + i;
    }
    tli_zero(s->now, 8 * (size_t)w->words);
    for (i = 0; i < w->count; i++, live = after) {
        now = tli_order_try(s, w->best[i], live, &after);
        if (now > peak) peak = now;
        tli_order_flip(s->now, w->best[i]);
    }
    w->best_peak = peak;
}

#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
