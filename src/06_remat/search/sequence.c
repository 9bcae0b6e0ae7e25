#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- search: the sequence: a list of calls, a list of events of each item, live bytes of each call --
//
// An event is one touch of an item by a call of the sequence. An item is live from an event x to its next
// event y if y is a use: then the calls after x up to y hold its bytes. If y is an expansion, they hold the
// bytes of its compressed copy, which is made at the end of the call of x. Calls are grouped in blocks, so that
// adding bytes to a long run of calls takes few steps. A place is a call of the sequence.

typedef struct tli_search_event {
    uint32_t item : 31, is_use : 1;
    int32_t call;            // index into tli_search_seq.places
    int32_t before, behind;  // neighbours in time of the same item; -1 = none
    int32_t sibling;         // next event of the same call
} tli_search_event;

typedef struct tli_search_place {
    int32_t  before, behind;  // neighbours in time
    int32_t  call;            // number of the call; -1 = place 0, before everything, or a free place
    int32_t  first_event;
    int32_t  block;
    uint8_t  saves, overwrites;
    int64_t  packs;           // bytes of the largest compressed copy made at its end, beyond what it frees
    int64_t  order;           // ascending in time
    int64_t  held;            // live bytes during the call, less `add` of its block
    int64_t  gradients;       // of these, gradients live after the last B
} tli_search_place;

#define TLI_SEARCH_BLOCK 24  // most places of a block of a short sequence

typedef struct tli_search_block {
    int32_t before, behind;  // neighbours in time
    int32_t first, count;    // places
    int64_t add;             // to be added to `held` of each of its places
    int64_t top;             // largest `held` of its places
    int     is_over;         // 1 = top + add exceeds the budget
} tli_search_block;

// How to undo a change. call -1: remove `place`; else insert `call` after `place`.
typedef struct tli_search_change { int32_t call, place; } tli_search_change;

typedef struct tli_search_seq {
    const tli_search_problem *p;
    tli_search_place  *places;   // place 0 is before everything and is never removed
    int32_t        place_count, place_capacity, free_place, used;
    tli_search_event  *events;
    int32_t        event_count, event_capacity, free_event;
    tli_search_block  *blocks;    // block 0 has place 0, so it is never empty
    int32_t        block_count, block_capacity, free_block;
    int32_t        block_size;    // most places of a block: about the square root of their number
    int32_t       *first, *last;  // [items] first and last event; -1 = none
    int32_t       *recent;        // [items] the event found last by tli_search_event_before; -1 = none yet
    int32_t        last_place;
    int32_t        over_count;    // blocks with a call over the budget
    uint64_t       cost;          // of forwards and conversions
    int64_t        budget;
    uint64_t       work;
    tli_search_change *changes;   // [change_count] how to undo them, recorded while logs is set
    int32_t        change_count, change_capacity;
    int            logs, failed;
} tli_search_seq;

// Free a sequence. Its problem and the work that was done on it can still be read.
static void tli_search_free_seq(tli_search_seq *s) {
    const tli_search_problem *p = s->p;
    uint64_t work = s->work;
    tli_release(s->p->env, s->places);
    tli_release(s->p->env, s->events);
    tli_release(s->p->env, s->blocks);
    tli_release(s->p->env, s->first);
    tli_release(s->p->env, s->last);
    tli_release(s->p->env, s->recent);
    tli_release(s->p->env, s->changes);
    tli_zero(s, sizeof *s);
    s->p = p;
    s->work = work;
}

static int32_t tli_search_new_place(tli_search_seq *s) {
    int32_t at = s->free_place;
    void *array = s->places;
    if (at >= 0) { s->free_place = s->places[at].behind; return at; }
    if (!tli_grow(s->p->env, &array, &s->place_capacity, s->place_count, (int64_t)s->place_count + 1,
                  sizeof *s->places)) { s->failed = 1; return -1; }
    s->places = (tli_search_place *)array;
    TLI_INVARIANT(s->place_count < s->place_capacity);
    return s->place_count++;
}

// Reserve memory for the events of a call, so that inserting it cannot fail half way.
static int tli_search_reserve_events(tli_search_seq *s, int32_t count) {
    void *array = s->events;
    if (!tli_grow(s->p->env, &array, &s->event_capacity, s->event_count, (int64_t)s->event_count + count,
                  sizeof *s->events)) { s->failed = 1; return 0; }
    s->events = (tli_search_event *)array;
    TLI_INVARIANT(s->event_count + count <= s->event_capacity);
    return 1;
}

// Reserve memory for one more block, so that a split cannot fail.
static int tli_search_reserve_block(tli_search_seq *s) {
    void *array = s->blocks;
    if (s->free_block >= 0) return 1;
    if (!tli_grow(s->p->env, &array, &s->block_capacity, s->block_count, (int64_t)s->block_count + 1,
                  sizeof *s->blocks)) { s->failed = 1; return 0; }
    s->blocks = (tli_search_block *)array;
    TLI_INVARIANT(s->block_count < s->block_capacity);
    return 1;
}

static void tli_search_release_ends(tli_search_seq *s) {
    tli_release(s->p->env, s->first);
    tli_release(s->p->env, s->last);
    tli_release(s->p->env, s->recent);
    s->first = s->last = s->recent = NULL;
}

// Get the arrays of items, where they are not there.
static int tli_search_reserve_ends(tli_search_seq *s) {
    tl_env *env = s->p->env;
    uint64_t items = (uint64_t)s->p->item_count;
    if (!s->first) s->first = (int32_t *)tli_alloc_array(env, items, sizeof *s->first);
    if (!s->last) s->last = (int32_t *)tli_alloc_array(env, items, sizeof *s->last);
    if (!s->recent) s->recent = (int32_t *)tli_alloc_array(env, items, sizeof *s->recent);
    s->failed |= !s->first || !s->last || !s->recent;
    return !s->failed;
}

// Release the arrays of a large sequence: it must be loaded again. Returns whether it was large.
static int tli_search_rest(tli_search_seq *s) {
    if ((size_t)s->place_capacity * sizeof *s->places < TLI_SEARCH_BYTES / 4) return 0;
    tli_release(s->p->env, s->places);
    tli_release(s->p->env, s->events);
    tli_search_release_ends(s);
    s->places = NULL;
    s->events = NULL;
    s->place_capacity = s->event_capacity = 0;
    return 1;
}

static void tli_search_empty_seq(tli_search_seq *s) {
    tli_search_place *start = &s->places[0];
    tli_search_block *block = &s->blocks[0];
    int32_t i;
    for (i = 0; i < s->p->item_count; i++) s->first[i] = s->last[i] = s->recent[i] = -1;
    s->place_count = s->block_count = 1;
    s->event_count = 0;
    s->free_place = s->free_event = s->free_block = -1;
    s->last_place = s->over_count = s->change_count = s->used = 0;
    s->cost = 0;
    tli_zero(start, sizeof *start);
    start->before = start->behind = start->call = start->first_event = -1;
    start->held = -TLI_SEARCH_MOST_BYTES;  // never the largest
    tli_zero(block, sizeof *block);
    block->before = block->behind = -1;
    block->count = 1;
    block->top = start->held;
    TLI_INVARIANT(s->used == 0 && s->over_count == 0);
}

static tl_result tli_search_init_seq(const tli_search_problem *p, tli_search_seq *s) {
    void *array = NULL;
    tli_zero(s, sizeof *s);
    s->p = p;
    s->budget = p->budget;
    s->free_block = -1;
    s->block_size = TLI_SEARCH_BLOCK;
    if (tli_search_reserve_ends(s) && tli_search_reserve_block(s) &&
        tli_grow(p->env, &array, &s->place_capacity, 0, 64, sizeof *s->places)) {
        s->places = (tli_search_place *)array;
        tli_search_empty_seq(s);
        return TL_OK;
    }
    tli_search_free_seq(s);
    return TL_ERROR_NO_MEMORY;
}

// -- search: the sequence: bytes --

static int64_t tli_search_held(const tli_search_seq *s, int32_t at) {
    return s->places[at].held + s->blocks[s->places[at].block].add;
}

// Of the bytes held during a call, those beside graph inputs and the items that are live before it: outputs,
// scratch, saved bytes, all gradients, and what compressed copies take at its end. Of several copies the
// largest counts: what was compressed before is gone.
static int64_t tli_search_own(const tli_search_seq *s, const tli_search_place *place) {
    const tl_graph *graph = s->p->graph;
    int64_t bytes = s->p->call_bytes[place->call] + place->packs;
    if (place->call % 2) return bytes;  // a backward: gradients are among them
    if (place->saves) bytes += tli_search_save_bytes(s->p, place->call / 2);
    if (place->overwrites) bytes -= (int64_t)graph->outputs[graph->nodes[place->call / 2].first_output].bytes;
    return bytes + place->gradients;
}

static void tli_search_judge(tli_search_seq *s, tli_search_block *block) {
    int is_over = block->top + block->add > s->budget;
    s->over_count += is_over - block->is_over;
    block->is_over = is_over;
    TLI_INVARIANT(s->over_count >= 0 && s->over_count <= s->block_count);
}

static void tli_search_rescan(tli_search_seq *s, int32_t at) {
    tli_search_block *block = &s->blocks[at];
    int32_t place = block->first, count = block->count;
    int64_t top = -TLI_SEARCH_MOST_BYTES - TLI_SEARCH_MOST_BYTES;
    s->work += (uint64_t)count;
    for (; count-- > 0; place = s->places[place].behind)
        if (s->places[place].held > top) top = s->places[place].held;
    block->top = top;
    tli_search_judge(s, block);
    TLI_INVARIANT(top > INT64_MIN / 2);
}

// Add the `add` of a block to its places. It would grow without end where places are shifted as a block and
// back one by one.
static void tli_search_settle(tli_search_seq *s, tli_search_block *block) {
    int32_t place = block->first, count = block->count;
    s->work += (uint64_t)count;
    for (; count-- > 0; place = s->places[place].behind) s->places[place].held += block->add;
    block->top += block->add;
    block->add = 0;
    TLI_INVARIANT(!block->add);
}

// Add bytes to the places after `from` up to `to`.
static void tli_search_shift(tli_search_seq *s, int32_t from, int32_t to, int64_t bytes) {
    tli_search_place *places = s->places;
    int32_t a = places[from].block, b = places[to].block, at = places[from].behind, block;
    if (!bytes) return;
    s->work += (uint64_t)s->block_size / 2;
    if (a == b) {
        for (; at != to; at = places[at].behind) places[at].held += bytes;
        places[to].held += bytes;
        tli_search_rescan(s, a);
        return;
    }
    if (places[at].block == a) {
        for (; places[at].block == a; at = places[at].behind) places[at].held += bytes;
        tli_search_rescan(s, a);
    }
    for (block = s->blocks[a].behind; block != b; block = s->blocks[block].behind) {
        tli_search_block *whole = &s->blocks[block];
        whole->add += bytes;
        if (whole->add > TLI_SEARCH_MOST_BYTES || whole->add < -TLI_SEARCH_MOST_BYTES)
            tli_search_settle(s, whole);
        tli_search_judge(s, whole);
        s->work++;
    }
    TLI_INVARIANT(s->blocks[b].first >= 0);
    for (at = s->blocks[b].first; at != to; at = places[at].behind) places[at].held += bytes;
    places[to].held += bytes;
    tli_search_rescan(s, b);
}

// Add a place to the block of the place before it, and split the block if it grows too long.
static void tli_search_join(tli_search_seq *s, int32_t at, int64_t held) {
    int32_t old = s->places[s->places[at].before].block, new_block, i, first;
    tli_search_block *block = &s->blocks[old], *half;
    s->places[at].block = old;
    s->places[at].held = held - block->add;
    block->count++;
    if (block->count > s->block_size) {
        new_block = s->free_block;
        if (new_block >= 0) s->free_block = s->blocks[new_block].behind;
        else new_block = s->block_count++;
        half = &s->blocks[new_block];
        for (first = block->first, i = 0; i < s->block_size / 2; i++) first = s->places[first].behind;
        half->first = first;
        half->count = block->count - s->block_size / 2;
        half->add = block->add;
        half->is_over = 0;
        half->before = old;
        half->behind = block->behind;
        if (block->behind >= 0) s->blocks[block->behind].before = new_block;
        block->behind = new_block;
        block->count = s->block_size / 2;
        for (i = 0; i < half->count; i++, first = s->places[first].behind) s->places[first].block = new_block;
        tli_search_rescan(s, new_block);
    }
    tli_search_rescan(s, old);
    TLI_INVARIANT(s->places[at].block >= 0 && s->block_count <= s->block_capacity);
}

// Remove a place from its block, before it is unlinked.
static void tli_search_leave(tli_search_seq *s, int32_t at) {
    int32_t number = s->places[at].block;
    tli_search_block *block = &s->blocks[number];
    if (block->first == at) block->first = s->places[at].behind;
    if (--block->count) return;
    s->over_count -= block->is_over;
    s->blocks[block->before].behind = block->behind;  // block 0 is never empty
    if (block->behind >= 0) s->blocks[block->behind].before = block->before;
    block->behind = s->free_block;
    s->free_block = number;
    TLI_INVARIANT(number && s->over_count >= 0);
}

#ifdef TLI_INVARIANTS
// A place and its neighbours know each other, orders ascend, and it is in a block that knows that.
static int tli_search_place_holds(const tli_search_seq *s, int32_t at) {
    const tli_search_place *place = &s->places[at];
    const tli_search_block *block = &s->blocks[place->block];
    if (place->behind < 0 ? s->last_place != at : s->places[place->behind].before != at) return 0;
    if (!at) return place->before < 0 && place->call < 0 && block->first == 0;
    if (s->places[place->before].behind != at || s->places[place->before].order >= place->order) return 0;
    if (place->call < 0 || place->held > block->top || block->count < 1) return 0;
    return s->places[place->before].block == place->block || block->first == at;
}
#endif

// The moment of an event in time order: that of its call.
static int64_t tli_search_when(const tli_search_seq *s, int32_t event) {
    return s->places[s->events[event].call].order;
}

static int tli_search_is_use(const tli_search_seq *s, int32_t event) {
    return event >= 0 && s->events[event].is_use;
}

// Whether a call brings a tensor back from a copy: a fetch or an expansion.
static int tli_search_is_return(const tli_search_seq *s, int32_t at) {
    return TLI_SEARCH_COPIES && s->places[at].call > tli_search_end_call(s->p);
}

// Whether an event needs the item as the event before left it: a use does, and what brings a copy of it back.
static int tli_search_is_kept(const tli_search_seq *s, int32_t event) {
    return event >= 0 && (s->events[event].is_use || tli_search_is_return(s, s->events[event].call));
}

// The bytes of an item that calls hold between the event before this one and it.
static int64_t tli_search_gap_bytes(const tli_search_seq *s, int32_t event) {
    if (event < 0) return 0;
    if (s->events[event].is_use) return s->p->item_bytes[s->events[event].item];
    return tli_search_expanded(s->p, s->places[s->events[event].call].call) < 0
               ? 0 : s->p->packed_bytes[s->events[event].item];
}

#ifdef TLI_INVARIANTS
// By how many bytes more items are live behind a call than before it.
static int64_t tli_search_change_at(const tli_search_seq *s, int32_t at) {
    int64_t bytes = 0;
    int32_t e;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling) {
        bytes += tli_search_gap_bytes(s, s->events[e].behind);
        if (s->events[e].before >= 0) bytes -= tli_search_gap_bytes(s, e);
    }
    return bytes;
}

// What a call holds is its own bytes beside those of items that its neighbour before it leaves live.
static int tli_search_bytes_hold(const tli_search_seq *s, int32_t at) {
    const tli_search_place *place = &s->places[at], *before;
    int64_t live, gradients;
    if (at <= 0 || place->before < 0) return 1;
    before = &s->places[place->before];
    live = tli_search_held(s, at) - tli_search_own(s, place);
    gradients = place->call % 2 ? s->p->gradient_bytes[place->call / 2] : before->gradients;
    if (place->gradients != gradients) return 0;
    if (!place->before) return live == s->p->input_bytes;
    return live == tli_search_held(s, place->before) - tli_search_own(s, before) +
                       tli_search_change_at(s, place->before);
}

// All of it: places in time order, live bytes, blocks and the largest of each, counts and the cost.
static int tli_search_seq_holds(const tli_search_seq *s) {
    uint64_t cost = 0;
    int64_t top = INT64_MIN;
    int32_t at, count = 0, over = 0, used = 0;
    for (at = 0; at >= 0; at = s->places[at].behind) {
        const tli_search_place *place = &s->places[at];
        const tli_search_block *block = &s->blocks[place->block];
        if (!tli_search_place_holds(s, at) || !tli_search_bytes_hold(s, at)) return 0;
        if (block->first == at) { count = 0; top = INT64_MIN; }
        if (place->held > top) top = place->held;
        if (++count == block->count) {
            if (top != block->top || block->is_over != (top + block->add > s->budget)) return 0;
            over += block->is_over;
        }
        used += at > 0;
        if (at) cost += tli_search_call_cost(s->p, place->call);
    }
    return used == s->used && cost == s->cost && over == s->over_count;
}

// The same after a change: of long sequences so seldom that it costs no more than the changes.
static int tli_search_seq_holds_often(const tli_search_seq *s) {
    return s->work % ((uint64_t)s->used / 4 + 16) != 0 || tli_search_seq_holds(s);
}
#endif

// The bytes that a call holds and that are gone behind it: scratch, gradients, and items that nothing needs.
static int64_t tli_search_freed(const tli_search_seq *s, const tli_search_place *place) {
    const tl_graph *graph = s->p->graph;
    int32_t id = place->call / 2, e;
    int64_t freed = 0;
    if (place->call < tli_search_end_call(s->p))
        freed = place->call % 2 ? s->p->call_bytes[place->call] - s->p->gradient_bytes[id]
                : (int64_t)(place->saves ? graph->nodes[id].swork_bytes : graph->nodes[id].fwork_bytes);
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        int32_t item = s->events[e].item;
        if (tli_search_is_kept(s, s->events[e].behind)) continue;
        if (s->events[e].is_use || item < graph->tensor_count) freed += s->p->item_bytes[item];
    }
    if (place->overwrites) freed -= (int64_t)graph->outputs[graph->nodes[id].first_output].bytes;
    return freed;
}

// Find again what the copies take that the call compresses at its end, after what it frees.
static void tli_search_refresh_packs(tli_search_seq *s, tli_search_place *place) {
    int64_t packs = 0;
    int32_t e;
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        int32_t behind = s->events[e].behind;
        int64_t bytes = behind < 0 || s->events[behind].is_use ? 0 : tli_search_gap_bytes(s, behind);
        if (bytes > packs) packs = bytes;
    }
    if (packs) packs -= tli_search_freed(s, place);
    if (packs < 0) packs = 0;
    if (packs == place->packs) return;
    place->held += packs - place->packs;
    place->packs = packs;
    tli_search_rescan(s, place->block);
    TLI_INVARIANT(packs >= 0);
}

// Find again whether a forward saves and whether it runs in place; both follow from the next events of its
// items.
static void tli_search_refresh_form(tli_search_seq *s, int32_t at) {
    const tl_graph *graph = s->p->graph;
    tli_search_place *place = &s->places[at];
    const tl_node *node;
    int32_t e, input = -1, i, reads = 0;
    int saves = 0, overwrites = 0;
    int64_t own;
    if (place->call < 0 || place->call % 2 || place->call >= tli_search_end_call(s->p)) return;
    node = &graph->nodes[place->call / 2];
    if (!node->saved_bytes && node->inplace < 0) return;
    if (node->inplace >= 0) input = graph->inputs[node->first_input + node->inplace].tensor;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        reads += graph->inputs[i].tensor == input;
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        if (s->events[e].item == s->p->graph->tensor_count + place->call / 2 &&
            tli_search_is_use(s, s->events[e].behind))
            saves = 1;
        if (s->events[e].item == input && reads == 1 && !tli_search_is_kept(s, s->events[e].behind))
            overwrites = 1;
    }
    if (saves) overwrites = 0;
    if (saves == place->saves && overwrites == place->overwrites) return;
    own = tli_search_own(s, place);
    place->saves = (uint8_t)saves;
    place->overwrites = (uint8_t)overwrites;
    place->held += tli_search_own(s, place) - own;
    tli_search_rescan(s, place->block);
    TLI_INVARIANT(!saves || !overwrites);
}

static void tli_search_refresh(tli_search_seq *s, int32_t at) {
    tli_search_refresh_form(s, at);
    if (s->p->copies && s->places[at].call >= 0) tli_search_refresh_packs(s, &s->places[at]);
}

static void tli_search_refresh_event(tli_search_seq *s, int32_t event) {
    if (event >= 0) tli_search_refresh(s, s->events[event].call);
}

// The last event of an item at or before a moment in time order; -1 = none. As a rule it is near the one found
// last.
static int32_t tli_search_event_before(tli_search_seq *s, int32_t item, int64_t order) {
    int32_t e = s->recent[item], next;
    if (e < 0) e = s->last[item];
    while (e >= 0 && tli_search_when(s, e) > order) { e = s->events[e].before; s->work += 3; }
    if (e < 0) return -1;
    for (next = s->events[e].behind; next >= 0 && tli_search_when(s, next) <= order; s->work += 3) {
        e = next;
        next = s->events[e].behind;
    }
    s->recent[item] = e;
    return e;
}

static void tli_search_link_event(tli_search_seq *s, int32_t at, const tli_search_touch *touch) {
    int32_t e = s->free_event, x, y, c;
    int64_t was, left, right;
    tli_search_event *event;
    if (e >= 0) s->free_event = s->events[e].sibling;
    else e = s->event_count++;
    x = tli_search_event_before(s, touch->item, s->places[at].order);
    y = x >= 0 ? s->events[x].behind : s->first[touch->item];
    event = &s->events[e];
    event->item = touch->item;
    event->is_use = touch->is_use;
    event->call = at;
    event->sibling = s->places[at].first_event;
    s->places[at].first_event = e;
    event->before = x;
    event->behind = y;
    if (x >= 0) s->events[x].behind = e; else s->first[touch->item] = e;
    if (y >= 0) s->events[y].before = e; else s->last[touch->item] = e;
    right = tli_search_gap_bytes(s, y);
    was = x >= 0 ? right : 0;
    left = x >= 0 ? tli_search_gap_bytes(s, e) : 0;
    c = x >= 0 ? s->events[x].call : 0;
    if (was != left) tli_search_shift(s, c, at, left - was);
    if (was != right) tli_search_shift(s, at, s->events[y].call, right - was);
    TLI_INVARIANT(event->before == x && event->behind == y && s->event_count <= s->event_capacity);
    tli_search_refresh_event(s, x);
}

static void tli_search_unlink_event(tli_search_seq *s, int32_t e) {
    tli_search_event *event = &s->events[e];
    int32_t x = event->before, y = event->behind, at = event->call;
    int64_t was_right = tli_search_gap_bytes(s, y), will = x >= 0 ? was_right : 0;
    int64_t was_left = x >= 0 ? tli_search_gap_bytes(s, e) : 0;
    if (x >= 0) s->events[x].behind = y; else s->first[event->item] = y;
    if (y >= 0) s->events[y].before = x; else s->last[event->item] = x;
    if (s->recent[event->item] == e) s->recent[event->item] = x >= 0 ? x : y;
    if (will != was_left) tli_search_shift(s, s->events[x].call, at, will - was_left);
    if (will != was_right) tli_search_shift(s, at, s->events[y].call, will - was_right);
    TLI_INVARIANT(s->recent[event->item] != e);
    event->sibling = s->free_event;
    s->free_event = e;
    tli_search_refresh_event(s, x);
}

// Number the places in time order, with room between the numbers for places inserted later.
static void tli_search_number(tli_search_seq *s) {
    int64_t order = 0;
    int32_t at;
    for (at = 0; at >= 0; at = s->places[at].behind) {
        s->places[at].order = order;
        order += (int64_t)1 << 24;
    }
    s->work += 8 * (uint64_t)s->used;
    TLI_INVARIANT(s->places[s->last_place].behind < 0);
}

static void tli_search_log_change(tli_search_seq *s, int32_t call, int32_t place) {
    void *array = s->changes;
    if (!s->logs) return;
    if (!tli_grow(s->p->env, &array, &s->change_capacity, s->change_count, (int64_t)s->change_count + 1,
                  sizeof *s->changes)) { s->failed = 1; return; }
    s->changes = (tli_search_change *)array;
    s->changes[s->change_count].call = call;
    s->changes[s->change_count++].place = place;
    TLI_INVARIANT(s->change_count <= s->change_capacity);
}

// Insert a call after a place; -1 = no memory, nothing changed.
static int32_t tli_search_put(tli_search_seq *s, int32_t call, int32_t behind) {
    const tli_search_problem *p = s->p;
    int32_t k, at, next, from = p->first_touch[call], to = p->first_touch[call + 1];
    int64_t live = p->input_bytes;  // bytes of items live between the call and the next one
    tli_search_place *place;
    if (!tli_search_reserve_events(s, to - from) || !tli_search_reserve_block(s)) return -1;
    at = tli_search_new_place(s);
    if (at < 0) return -1;
    place = &s->places[at];
    next = s->places[behind].behind;
    place->call = call;
    place->first_event = -1;
    place->before = behind;
    place->behind = next;
    s->places[behind].behind = at;
    if (next >= 0) s->places[next].before = at; else s->last_place = at;
    place->order = next >= 0 ? (s->places[behind].order + s->places[next].order) / 2
                             : s->places[behind].order + ((int64_t)1 << 24);
    if (place->order == s->places[behind].order) tli_search_number(s);
    if (next >= 0) live = tli_search_held(s, next) - tli_search_own(s, &s->places[next]);
    place->saves = place->overwrites = 0;
    place->packs = 0;
    place->gradients = s->places[behind].gradients;
    if (call % 2) place->gradients = p->gradient_bytes[call / 2];
    tli_search_join(s, at, live + tli_search_own(s, place));
    s->cost += tli_search_call_cost(p, call);
    for (k = from; k < to; k++) tli_search_link_event(s, at, &p->touches[k]);
    tli_search_refresh(s, at);
    s->used++;
    s->work += 8 + 6 * (uint64_t)(to - from);
    TLI_INVARIANT(tli_search_place_holds(s, at) && tli_search_bytes_hold(s, at));
    TLI_INVARIANT(tli_search_bytes_hold(s, next));
    TLI_INVARIANT(tli_search_seq_holds_often(s));
    return at;
}

static void tli_search_take(tli_search_seq *s, int32_t at) {
    tli_search_place *place = &s->places[at];
    int32_t call = place->call;
    while (place->first_event >= 0) {
        int32_t e = place->first_event;
        place->first_event = s->events[e].sibling;
        tli_search_unlink_event(s, e);
        s->work += 6;
    }
    tli_search_leave(s, at);
    s->cost -= tli_search_call_cost(s->p, call);
    s->places[place->before].behind = place->behind;
    if (place->behind >= 0) s->places[place->behind].before = place->before; else s->last_place = place->before;
    if (s->blocks[place->block].count) tli_search_rescan(s, place->block);
    place->behind = s->free_place;
    place->call = -1;
    s->free_place = at;
    s->used--;
    s->work += 8;
    TLI_INVARIANT(s->used >= 0 && tli_search_seq_holds_often(s));
}

// -- search: the sequence: all of it from a list of calls --
//
// In time linear in the touches of the calls, where putting one call after the other would take time for every
// block between the uses of an item.

// Add a call at the end, with its events. The bytes of items are left as changes: `order` of a place gets the
// bytes live before the place behind it, less those live before the place itself.
static int tli_search_append(tli_search_seq *s, int32_t call) {
    const tli_search_problem *p = s->p;
    int32_t k, from = p->first_touch[call], to = p->first_touch[call + 1], at;
    int64_t bytes;
    tli_search_place *place;
    if (!tli_search_reserve_events(s, to - from)) return 0;
    at = tli_search_new_place(s);
    if (at < 0) return 0;
    place = &s->places[at];
    tli_zero(place, sizeof *place);
    place->call = call;
    place->first_event = -1;
    place->before = s->last_place;
    place->behind = -1;
    s->places[s->last_place].behind = at;
    for (k = from; k < to; k++) {
        int32_t item = p->touches[k].item, e = s->event_count++, x = s->last[item];
        tli_search_event *event = &s->events[e];
        event->item = p->touches[k].item;
        event->is_use = p->touches[k].is_use;
        event->call = at;
        event->sibling = place->first_event;
        place->first_event = e;
        event->before = x;
        event->behind = -1;
        s->last[item] = e;
        if (x < 0) { s->first[item] = e; continue; }
        s->events[x].behind = e;
        bytes = tli_search_gap_bytes(s, e);
        s->places[s->events[x].call].order += bytes;
        place->order -= bytes;
    }
    s->last_place = at;
    s->used++;
    s->work += 4 + 4 * (uint64_t)(to - from);
    TLI_INVARIANT(s->last_place == at && s->event_count <= s->event_capacity);
    return 1;
}

// Find the bytes and the order of all places from what tli_search_append left, and make the blocks.
static int tli_search_make_blocks(tli_search_seq *s) {
    const tli_search_problem *p = s->p;
    int64_t live = p->input_bytes, gradients = 0, order = 0, change = s->places[0].order;
    int32_t at, number = 0;
    s->places[0].order = 0;
    for (at = s->places[0].behind; at >= 0; at = s->places[at].behind) {
        tli_search_place *place = &s->places[at];
        live += change;
        change = place->order;
        place->order = order += (int64_t)1 << 24;
        if (place->call % 2) gradients = p->gradient_bytes[place->call / 2];
        place->gradients = gradients;
        place->held = live + tli_search_own(s, place);
        if (s->blocks[number].count == s->block_size / 2) {
            tli_search_block *block;
            if (!tli_search_reserve_block(s)) return 0;
            block = &s->blocks[s->block_count];
            tli_zero(block, sizeof *block);
            block->before = number;
            block->behind = -1;
            block->first = at;
            s->blocks[number].behind = s->block_count;
            number = s->block_count++;
        }
        place->block = number;
        s->blocks[number].count++;
        s->cost += tli_search_call_cost(p, place->call);
    }
    for (number = 0; number >= 0; number = s->blocks[number].behind) tli_search_rescan(s, number);
    s->work += 4 * (uint64_t)s->used;
    return 1;
}

// Replace an array whose items are no longer needed by a larger one, with a 200th to spare; 0 = no memory.
static int tli_search_replace(tl_env *env, void **array, int32_t *capacity, int64_t needed, size_t item_bytes) {
    int64_t count = needed + needed / 200 + 64;
    if (needed < *capacity) return 1;
    if (count > INT32_MAX) return 0;
    tli_release(env, *array);
    *capacity = 0;
    *array = tli_alloc_array(env, (uint64_t)count, item_bytes);
    if (*array) *capacity = (int32_t)count;
    return *array != NULL;
}

// Make room for a list of calls in an empty sequence: doubling the arrays as they grow would take three times
// that.
static int tli_search_reserve_calls(tli_search_seq *s, const tli_search_calls *calls) {
    const int32_t *first = s->p->first_touch;
    void *places = s->places, *events = s->events;
    int64_t touches = 0;
    int32_t i;
    for (i = 0; i < calls->count; i++) touches += first[calls->calls[i] + 1] - first[calls->calls[i]];
    s->failed |= !tli_search_replace(s->p->env, &places, &s->place_capacity, (int64_t)calls->count + 1,
                                     sizeof *s->places);
    s->failed |= !tli_search_replace(s->p->env, &events, &s->event_capacity, touches, sizeof *s->events);
    s->places = (tli_search_place *)places;
    s->events = (tli_search_event *)events;
    return tli_search_reserve_ends(s);
}

// Make the sequence anew from a list of calls; 0 = no memory.
static int tli_search_load(tli_search_seq *s, const tli_search_calls *calls) {
    int32_t i, at;
    if (!tli_search_reserve_calls(s, calls)) return 0;
    tli_search_empty_seq(s);
    s->logs = 0;
    s->block_size = TLI_SEARCH_BLOCK;
    while (s->block_size < calls->count / s->block_size) s->block_size += s->block_size / 4;
    for (i = 0; i < calls->count; i++) if (!tli_search_append(s, calls->calls[i])) return 0;
    if (!tli_search_make_blocks(s)) return 0;
    for (at = s->places[0].behind; at >= 0; at = s->places[at].behind) tli_search_refresh(s, at);
    s->work += (uint64_t)s->p->item_count + 2 * (uint64_t)s->used;
    TLI_INVARIANT(tli_search_seq_holds(s));
    return 1;
}

// -- search: changes that can be undone --

static int32_t tli_search_insert(tli_search_seq *s, int32_t call, int32_t behind) {
    int32_t at = tli_search_put(s, call, behind);
    if (at >= 0) tli_search_log_change(s, -1, at);
    return at;
}

static void tli_search_remove(tli_search_seq *s, int32_t at) {
    int32_t call = s->places[at].call, before = s->places[at].before;
    tli_search_take(s, at);
    tli_search_log_change(s, call, before);
}

// Take changes back, to the first `count`. Without memory (s->failed) some are not in the log: the sequence is
// lost, and must only be freed.
static void tli_search_undo(tli_search_seq *s, int32_t count) {
    if (s->failed) return;
    while (s->change_count > count) {
        tli_search_change *change = &s->changes[--s->change_count];
        if (change->call < 0) tli_search_take(s, change->place);
        else tli_search_put(s, change->call, change->place);
    }
    TLI_INVARIANT(s->change_count <= count || s->failed);
}

static int tli_search_is_forward(const tli_search_seq *s, int32_t at) {
    int32_t call = s->places[at].call;
    return call >= 0 && call % 2 == 0 && call < tli_search_end_call(s->p);
}

// Whether the sequence stays valid without this call: each item that it makes and that is used later was also
// made earlier.
static int tli_search_can_remove(const tli_search_seq *s, int32_t at) {
    int32_t e;
    if (tli_search_is_return(s, at)) return 1;
    if (!tli_search_is_forward(s, at)) return 0;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling)
        if (!s->events[e].is_use && s->events[e].before < 0 &&
            tli_search_is_kept(s, s->events[e].behind))
            return 0;
    return 1;
}

// Whether nothing that this call makes is used before it is made again, so that it may be removed.
static int tli_search_is_useless(const tli_search_seq *s, int32_t at) {
    int32_t e, ran;
    if (tli_search_is_return(s, at)) return !tli_search_is_use(s, s->events[s->places[at].first_event].behind);
    if (!tli_search_is_forward(s, at)) return 0;
    ran = tli_search_ran_item(s->p, s->places[at].call / 2);
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling)
        if (!s->events[e].is_use && tli_search_is_kept(s, s->events[e].behind) &&
            ((s->events[e].item != ran && tli_search_is_use(s, s->events[e].behind)) ||
             s->events[e].before < 0))
            return 0;
    return 1;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

