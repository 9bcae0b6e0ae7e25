#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- layout: the exact search --
//
// Whether boxes fit a capacity: depth first, in the order of their offsets, ties by rank. Each box is placed as
// low as the boxes before it allow: where any layout fits, one of these does, unless boxes with gaps take some
// of their bytes in a gap. low[] is the lowest offset at which an unplaced box may lie.
//
//   sections   in a section the unplaced boxes lie above each other. The lowest must leave room for the
//              others: if low[] of all is too high for that, the branch ends; low[] of those that are too high
//              is raised to the first end of one that is not, which may decide other sections
//   fit below  no box is placed at or above low[] + bytes of another, which then could as well lie below it
//   twins      of boxes with equal bytes and sections the first is placed first
//   parts      after a box is placed, unplaced boxes that no longer meet in time are searched apart
//
// Several rankings take turns, with more work each time (Moffitt, section 5). The bound rises where a capacity
// is refuted; capacities between it and the best height are tried in turn with it: many, because which ranking
// finds a layout at which capacity is mostly chance, and first by the ranking that found the last one.
//
// p is the pack.

#define TLI_PACK_MOST 16384         // most boxes of a part of time that is searched
#define TLI_PACK_PAIRS 4000000      // pairs of boxes that meet, each counted twice, at most: 16 MB
#define TLI_PACK_SLICE 600          // elementary steps a box of the shortest try
#define TLI_PACK_REPORT 1000000     // elementary steps between two calls of progress
#define TLI_PACK_BOUND 2            // times the slice, where the bound is asked for
#define TLI_PACK_BETWEEN 36         // slices for capacities above the bound before it is asked for again

enum { TLI_PACK_FITS, TLI_PACK_NEVER, TLI_PACK_STOPPED };  // answers of a search

typedef struct tli_pack_change { int32_t box, slept; uint64_t low; } tli_pack_change;   // what was before

// A candidate and what it is ranked by.
typedef struct tli_pack_keys { uint64_t values[3]; int32_t box; } tli_pack_keys;

// A part: boxes that are searched together, by rank.
typedef struct tli_pack_part { int32_t first, count; } tli_pack_part;   // in items[]

typedef struct tli_pack_frame {
    tli_pack_part part;
    int32_t  candidates, candidate_count, next; // boxes that may be tried, in items[], by offset and rank
    int32_t  chosen;                // box that was placed; -1 = none
    int32_t  change_count, placed_count;  // when the frame began
    int32_t  child_first, child_count, child_at;  // parts that are left after the box was placed
    int32_t  item_count;            // of items[] before those of the children
    uint64_t last_offset;           // of the box placed before
} tli_pack_frame;

typedef struct tli_pack_window { uint64_t from, end; } tli_pack_window;   // bytes of a box; from == end: none

typedef struct tli_pack {
    tli_fit  *fit;
    int32_t   count, section_count;
    int32_t  *ids;                  // [count] numbers of the boxes in the fit
    int32_t  *first, *last;         // [count] sections
    uint64_t *bytes, *pin, *alignment;  // [count]
    int32_t  *near_first, *near_boxes;  // [count + 1], boxes that meet each box
    int32_t  *live_first, *live;    // [section_count + 1], boxes of each section
    int32_t  *twin;                 // [count] the twin before it; -1 = none
    tli_pack_keys *keys;            // [count] scratch: the candidates of a frame
    int32_t  *row;                  // [count] windows of a box with gaps, by section; -1 = takes all bytes
    tli_pack_window *windows;  int32_t window_count;
    uint64_t *over;                 // [pairs] how far near_boxes[k] is at least above the box, if placed later;
                                    // NULL = the bytes of the box
    uint64_t *low, *offset, *best;  // [count] lowest offset; where it is placed; in the lowest layout
    uint8_t  *placed, *sleeps;      // [count] sleeps: was tried at this offset; no candidate until it is raised
    int32_t  *stack, placed_count;  // [count] boxes in the order in which they were placed
    uint64_t *rest;                 // [section_count] bytes of unplaced boxes
    uint64_t *spare;                // [section_count] most bytes that rounding added to one box of it
    int32_t  *crossing;             // [section_count] unplaced boxes that are live here and in the next one
    int32_t  *lowest;               // [2 * section_count] two boxes that were low enough to be the lowest
    uint64_t *dirty;                // [section_count / 64 + 1] bits of sections to be looked at
    int32_t   pin_count, ranking, favourite;    // favourite: the ranking that found a layout last
    tli_pack_change *changes;  int32_t change_count, change_capacity;
    int32_t  *items;  int32_t item_count, item_capacity;
    tli_pack_part *parts;  int32_t part_count, part_capacity;
    tli_pack_frame *frames;  int32_t frame_count;   // [count + 1]
    uint64_t  capacity, work, work_limit, work_end;   // work so far; at which a search ends; at which all end
    const tl_layout_desc *desc;
    tl_layout_progress now;         // what is reported; its work is that before this search
    uint64_t  report_at;
    int       failed, stopped;      // 1 = no memory; 1 = progress asked to stop
} tli_pack;

static void tli_pack_free(tli_pack *p) {
    tl_env *env = p->fit->env;
    tli_release(env, p->ids);
    tli_release(env, p->bytes);
    tli_release(env, p->near_first);
    tli_release(env, p->near_boxes);
    tli_release(env, p->windows);
    tli_release(env, p->over);
    tli_release(env, p->live_first);
    tli_release(env, p->live);
    tli_release(env, p->placed);
    tli_release(env, p->keys);
    tli_release(env, p->dirty);
    tli_release(env, p->lowest);
    tli_release(env, p->rest);
    tli_release(env, p->crossing);
    tli_release(env, p->changes);
    tli_release(env, p->items);
    tli_release(env, p->parts);
    tli_release(env, p->frames);
}

// Where a box that nothing lies on ends: what rounding added to its bytes does not count.
static uint64_t tli_pack_end(const tli_pack *p, int32_t box, uint64_t offset) {
    return offset + p->fit->boxes[p->ids[box]].bytes;
}

// Bytes that rounding added.
static uint64_t tli_pack_spare(const tli_pack *p, int32_t box) {
    return p->bytes[box] - p->fit->boxes[p->ids[box]].bytes;
}

// Bytes that the unplaced boxes of a section take above each other.
static uint64_t tli_pack_needs(const tli_pack *p, int32_t section) {
    return p->rest[section] > p->spare[section] ? p->rest[section] - p->spare[section] : 0;
}

// What a box takes in one of its sections.
static tli_pack_window tli_pack_window_of(const tli_pack *p, int32_t box, int32_t section) {
    tli_pack_window window;
    if (p->row[box] >= 0) return p->windows[p->row[box] + section - p->first[box]];
    window.from = 0;
    window.end = p->bytes[box];
    return window;
}

static uint64_t tli_pack_takes(const tli_pack *p, int32_t box, int32_t section) {
    tli_pack_window window = tli_pack_window_of(p, box, section);
    return window.end - window.from;
}

// Whether two boxes take bytes in a section. *over: how far b lies at least above a, if it is placed later.
static int tli_pack_meet(const tli_pack *p, int32_t a, int32_t b, uint64_t *over) {
    int32_t s = p->first[a] > p->first[b] ? p->first[a] : p->first[b];
    int32_t last = p->last[a] < p->last[b] ? p->last[a] : p->last[b];
    int meet = 0;
    *over = p->bytes[a];
    if (p->row[a] < 0 && p->row[b] < 0) return s <= last;
    for (*over = 0; s <= last; s++) {
        tli_pack_window of_a = tli_pack_window_of(p, a, s), of_b = tli_pack_window_of(p, b, s);
        if (of_a.from == of_a.end || of_b.from == of_b.end) continue;
        meet = 1;
        if (of_a.end > of_b.from && of_a.end - of_b.from > *over) *over = of_a.end - of_b.from;
    }
    return meet;
}

// -- layout: the search begins --

static int tli_pack_alloc(tli_pack *p) {
    tl_env *env = p->fit->env;
    uint64_t count = (uint64_t)p->count, sections = (uint64_t)p->section_count;
    p->ids = (int32_t *)tli_alloc_array(env, 6 * count, sizeof *p->ids);
    p->bytes = (uint64_t *)tli_alloc_array(env, 6 * count, sizeof *p->bytes);
    p->near_first = (int32_t *)tli_alloc_array(env, count + 1, sizeof *p->near_first);
    p->live_first = (int32_t *)tli_alloc_array(env, sections + 1, sizeof *p->live_first);
    p->placed = (uint8_t *)tli_alloc_array(env, 2 * count, 1);
    p->keys = (tli_pack_keys *)tli_alloc_array(env, count, sizeof *p->keys);
    p->dirty = (uint64_t *)tli_alloc_array(env, sections / 64 + 1, sizeof *p->dirty);
    p->lowest = (int32_t *)tli_alloc_array(env, 2 * sections, sizeof *p->lowest);
    p->rest = (uint64_t *)tli_alloc_array(env, 2 * sections, sizeof *p->rest);
    p->crossing = (int32_t *)tli_alloc_array(env, sections, sizeof *p->crossing);
    p->frames = (tli_pack_frame *)tli_alloc_array(env, count + 1, sizeof *p->frames);
    if (!p->ids || !p->bytes || !p->near_first || !p->live_first || !p->placed || !p->keys || !p->dirty ||
        !p->lowest || !p->rest || !p->crossing || !p->frames) return 0;
    p->first = p->ids + p->count;
    p->last = p->first + p->count;
    p->twin = p->last + p->count;
    p->stack = p->twin + p->count;
    p->row = p->stack + p->count;
    p->pin = p->bytes + p->count;
    p->alignment = p->pin + p->count;
    p->low = p->alignment + p->count;
    p->offset = p->low + p->count;
    p->best = p->offset + p->count;
    p->sleeps = p->placed + p->count;
    p->spare = p->rest + p->section_count;
    return 1;
}

// Add a pair of boxes to both lists.
static void tli_pack_add_pair(tli_pack *p, int32_t a, int32_t b, int32_t *ends) {
    uint64_t over;
    p->near_boxes[ends[a]] = b;
    p->near_boxes[ends[b]] = a;
    if (p->over) {
        (void)tli_pack_meet(p, a, b, &over);
        p->over[ends[a]] = over;
        (void)tli_pack_meet(p, b, a, &over);
        p->over[ends[b]] = over;
    }
    ends[a]++;
    ends[b]++;
}

// List the boxes that meet each box, in rising order: boxes come by first section, so those that begin after a
// box ends are not looked at. 0 = no memory, or too many pairs.
static int tli_pack_list_near(tli_pack *p) {
    int32_t *ends = p->stack, i, k;         // nothing is placed yet
    int64_t pairs = 0;
    uint64_t over;
    for (i = 0; i < p->count; i++)
        for (k = i + 1; k < p->count && p->first[k] <= p->last[i]; k++) {
            TLI_INVARIANT(p->first[k] >= p->first[k - 1]);
            p->work++;
            if (!tli_pack_meet(p, i, k, &over)) continue;
            p->near_first[i + 1]++;
            p->near_first[k + 1]++;
            if ((pairs += 2) > TLI_PACK_PAIRS) return 0;
        }
    p->work += (uint64_t)p->count + (uint64_t)p->window_count * (uint64_t)p->count / 4;
    p->near_boxes = (int32_t *)tli_alloc_array(p->fit->env, (uint64_t)pairs, sizeof *p->near_boxes);
    if (p->window_count) p->over = (uint64_t *)tli_alloc_array(p->fit->env, (uint64_t)pairs, sizeof *p->over);
    if (!p->near_boxes || (p->window_count && !p->over)) { p->failed = 1; return 0; }
    for (i = 0; i < p->count; i++) {
        ends[i] = p->near_first[i];
        p->near_first[i + 1] += p->near_first[i];
    }
    for (i = 0; i < p->count; i++)
        for (k = i + 1; k < p->count && p->first[k] <= p->last[i]; k++)
            if (tli_pack_meet(p, i, k, &over)) tli_pack_add_pair(p, i, k, ends);
    return 1;
}

// List the boxes of each section. 0 = no memory, or too many.
static int tli_pack_list_live(tli_pack *p) {
    int32_t i, s;
    int64_t lives = 0;
    for (i = 0; i < p->count; i++) {
        lives += p->last[i] - p->first[i] + 1;
        if (lives > TLI_PACK_PAIRS) return 0;
        for (s = p->first[i]; s <= p->last[i]; s++) p->live_first[s + 1] += tli_pack_takes(p, i, s) > 0;
    }
    p->live = (int32_t *)tli_alloc_array(p->fit->env, (uint64_t)lives, sizeof *p->live);
    if (!p->live) { p->failed = 1; return 0; }
    for (s = 0; s < p->section_count; s++) p->live_first[s + 1] += p->live_first[s];
    for (i = 0; i < p->count; i++)
        for (s = p->first[i]; s <= p->last[i]; s++)
            if (tli_pack_takes(p, i, s)) p->live[p->live_first[s] + p->lowest[s]++] = i;
    tli_zero(p->lowest, (size_t)p->section_count * sizeof *p->lowest);
    return 1;
}

// List what boxes with gaps take in their sections. 0 = no memory, or too much.
static int tli_pack_list_windows(tli_pack *p) {
    int64_t count = 0;
    int32_t i, k, s;
    for (i = 0; i < p->count; i++) {
        p->row[i] = p->fit->boxes[p->ids[i]].pieces ? (int32_t)count : -1;
        if (p->row[i] >= 0) count += p->last[i] - p->first[i] + 1;
        if (count > TLI_PACK_PAIRS / 4) return 0;
    }
    p->window_count = (int32_t)count;
    if (!count) return 1;
    p->windows = (tli_pack_window *)tli_alloc_array(p->fit->env, (uint64_t)count, sizeof *p->windows);
    if (!p->windows) { p->failed = 1; return 0; }
    for (i = 0; i < p->count; i++) {
        const tli_fit_box *box = &p->fit->boxes[p->ids[i]];
        for (k = 0; k < tli_fit_count_pieces(p->fit, box); k++) {
            const tli_fit_piece *piece = &p->fit->pieces[box->pieces - 1 + k];
            for (s = piece->first; s <= piece->last; s++) {
                p->windows[p->row[i] + s - box->first].from = piece->from;
                p->windows[p->row[i] + s - box->first].end = piece->end;
            }
        }
    }
    return 1;
}

// Find the sums of the sections, and twins. Returns the most bytes that the boxes of a section need.
static uint64_t tli_pack_read(tli_pack *p) {
    uint64_t most = 0;
    int32_t i, k, s;
    for (i = 0; i < p->count; i++)
        for (s = p->first[i]; s <= p->last[i]; s++) {
            uint64_t spare = tli_pack_takes(p, i, s) ? tli_pack_spare(p, i) : 0;
            p->rest[s] += tli_pack_takes(p, i, s);
            if (spare > p->spare[s]) p->spare[s] = spare;
            if (s < p->last[i]) p->crossing[s]++;
        }
    for (s = 0; s < p->section_count; s++) if (tli_pack_needs(p, s) > most) most = tli_pack_needs(p, s);
    for (i = 0; i < p->count; i++) {
        p->twin[i] = -1;
        for (k = p->near_first[i]; k < p->near_first[i + 1] && p->pin[i] == UINT64_MAX; k++) {
            int32_t other = p->near_boxes[k];
            if (other < i && p->first[other] == p->first[i] && p->last[other] == p->last[i] &&
                p->bytes[other] == p->bytes[i] && tli_pack_spare(p, other) == tli_pack_spare(p, i) &&
                p->alignment[other] == p->alignment[i] && p->pin[other] == UINT64_MAX && p->row[i] < 0 &&
                p->row[other] < 0)
                p->twin[i] = other;
        }
    }
    TLI_INVARIANT(p->placed_count == 0);
    return most;
}

// Take the boxes of sections first..last of the fit. 0 = no memory, or too many pairs.
static int tli_pack_init(tli_pack *p, tli_fit *fit, const int32_t *boxes, int32_t count, int32_t first,
                         int32_t last) {
    int32_t i;
    tli_zero(p, sizeof *p);
    p->fit = fit;
    p->count = count;
    p->section_count = last - first + 1;
    if (!tli_pack_alloc(p)) { p->failed = 1; return 0; }
    for (i = 0; i < count; i++) {
        const tli_fit_box *box = &fit->boxes[boxes[i]];
        p->ids[i] = boxes[i];
        p->first[i] = box->first - first;
        p->last[i] = box->last - first;
        p->bytes[i] = tli_fit_taken_bytes(fit, box);
        p->pin[i] = box->pin;
        p->alignment[i] = (uint64_t)1 << box->alignment_bits;
        p->best[i] = fit->best[boxes[i]];
        p->pin_count += box->pin != UINT64_MAX;
    }
    TLI_INVARIANT(p->pin_count >= 0 && p->pin_count <= count);
    return tli_pack_list_windows(p) && tli_pack_list_near(p) && tli_pack_list_live(p);
}

// -- layout: rankings --

// A part is ranked when it is made: while its boxes are placed, their order stays. No ranking is best for all;
// the favourite gets TLI_PACK_FIRST times the work of another.

enum { TLI_PACK_STEPS, TLI_PACK_SECTIONS, TLI_PACK_AREA, TLI_PACK_LIVE, TLI_PACK_BEGINS, TLI_PACK_ENDS };

#define TLI_PACK_RANKINGS 6
#define TLI_PACK_FIRST 4

// The largest sum of unplaced bytes in a section of a box.
static uint64_t tli_pack_find_live(tli_pack *p, int32_t box) {
    uint64_t most = 0;
    int32_t s;
    for (s = p->first[box]; s <= p->last[box]; s++) if (p->rest[s] > most) most = p->rest[s];
    p->work += (uint64_t)(p->last[box] - p->first[box]) / 4 + 1;
    return most;
}

// What a ranking sorts by, largest first.
static uint64_t tli_pack_find_key(tli_pack *p, int32_t box, int key) {
    uint64_t steps = p->fit->boxes[p->ids[box]].length;
    switch (key) {
    case TLI_PACK_STEPS: return steps;
    case TLI_PACK_SECTIONS: return (uint64_t)(p->last[box] - p->first[box]);
    case TLI_PACK_AREA: return tli_fit_area(p->bytes[box], steps);
    case TLI_PACK_LIVE: return tli_pack_find_live(p, box);
    case TLI_PACK_BEGINS: return (uint64_t)(p->section_count - p->first[box]);
    default: return (uint64_t)p->last[box];
    }
}

static void tli_pack_find_keys(tli_pack *p, int32_t box, tli_pack_keys *keys) {
    static const uint8_t rankings[TLI_PACK_RANKINGS][3] = {
        { TLI_PACK_LIVE, TLI_PACK_STEPS, TLI_PACK_AREA }, { TLI_PACK_LIVE, TLI_PACK_AREA, TLI_PACK_STEPS },
        { TLI_PACK_ENDS, TLI_PACK_LIVE, TLI_PACK_STEPS }, { TLI_PACK_ENDS, TLI_PACK_AREA, TLI_PACK_LIVE },
        { TLI_PACK_BEGINS, TLI_PACK_LIVE, TLI_PACK_AREA }, { TLI_PACK_SECTIONS, TLI_PACK_AREA, TLI_PACK_LIVE }
    };
    int32_t k;
    for (k = 0; k < 3; k++) keys->values[k] = tli_pack_find_key(p, box, rankings[p->ranking][k]);
    keys->box = box;
}

static int tli_pack_ranks_before(const tli_pack_keys *a, const tli_pack_keys *b) {
    int32_t k;
    for (k = 0; k < 3; k++) if (a->values[k] != b->values[k]) return a->values[k] > b->values[k];
    return a->box < b->box;
}

#ifdef TLI_INVARIANTS
// Keys stand in order of rank.
static int tli_pack_is_ranked(const tli_pack *p, int32_t count) {
    int32_t k;
    for (k = 1; k < count; k++) if (!tli_pack_ranks_before(&p->keys[k - 1], &p->keys[k])) return 0;
    return 1;
}
#endif

// Sort the items of a part by rank.
static void tli_pack_rank(tli_pack *p, tli_pack_part part) {
    int32_t *items = p->items + part.first, gap, k, at;
    for (k = 0; k < part.count; k++) tli_pack_find_keys(p, items[k], &p->keys[k]);
    for (gap = part.count > 32 ? part.count / 3 : 1; gap; gap = gap > 3 ? gap / 3 : gap > 1)
        for (k = gap; k < part.count; k++) {
            tli_pack_keys keys = p->keys[k];
            for (at = k; at >= gap && tli_pack_ranks_before(&keys, &p->keys[at - gap]); at -= gap, p->work++)
                p->keys[at] = p->keys[at - gap];
            p->keys[at] = keys;
        }
    TLI_INVARIANT(!part.count || tli_pack_is_ranked(p, part.count));
    for (k = 0; k < part.count; k++) items[k] = p->keys[k].box;
}

// -- layout: moves of the search --

static uint64_t tli_pack_align(const tli_pack *p, int32_t box, uint64_t offset) {
    return tli_lift_into_block(tli_align_up(offset, p->alignment[box]), p->bytes[box], p->fit->block);
}

// The lowest offset from `offset` on at which a box is aligned, lies in one block and overlaps no pinned one
// that is still to be placed. Of a pinned box its pin, or UINT64_MAX / 2 if that is below `offset`.
static uint64_t tli_pack_lift(const tli_pack *p, int32_t box, uint64_t offset) {
    int32_t k;
    if (p->pin[box] != UINT64_MAX) return offset > p->pin[box] ? UINT64_MAX / 2 : p->pin[box];
    offset = tli_pack_align(p, box, offset);
    if (!p->pin_count) return offset;
    for (k = p->near_first[box]; k < p->near_first[box + 1]; k++) {
        int32_t other = p->near_boxes[k];
        if (p->pin[other] == UINT64_MAX || p->placed[other]) continue;
        if (p->pin[other] >= offset + p->bytes[box] || p->pin[other] + p->bytes[other] <= offset) continue;
        offset = tli_pack_align(p, box, p->pin[other] + p->bytes[other]);
        k = p->near_first[box] - 1;     // those before may be in the way now
    }
    return offset;
}

// Set low[] of a box, and note the change for tli_pack_undo. If it stays the same, the box sleeps. 0 = no
// memory.
static int tli_pack_change_low(tli_pack *p, int32_t box, uint64_t low) {
    void *array = p->changes;
    if (p->change_count == p->change_capacity &&
        !tli_grow(p->fit->env, &array, &p->change_capacity, p->change_count, (int64_t)p->change_count + 1,
                  sizeof *p->changes)) { p->failed = 1; return 0; }
    TLI_INVARIANT(low >= p->low[box] && !p->placed[box]);
    p->changes = (tli_pack_change *)array;
    p->changes[p->change_count].box = box;
    p->changes[p->change_count].slept = p->sleeps[box];
    p->changes[p->change_count++].low = p->low[box];
    p->sleeps[box] = p->low[box] == low;
    p->low[box] = low;
    return 1;
}

// Let the sections of a box be looked at.
static void tli_pack_mark(tli_pack *p, int32_t box) {
    int32_t first = p->first[box] / 64, last = p->last[box] / 64, word;
    uint64_t begin = UINT64_MAX << p->first[box] % 64, end = UINT64_MAX >> (63 - p->last[box] % 64);
    for (word = first; word <= last; word++)
        p->dirty[word] |= (word == first ? begin : UINT64_MAX) & (word == last ? end : UINT64_MAX);
}

// Lift a box to what is below it, and let its sections be looked at. 0 = it does not fit, or no memory.
static int tli_pack_raise(tli_pack *p, int32_t box, uint64_t offset) {
    uint64_t low = tli_pack_lift(p, box, offset);
    if (tli_pack_end(p, box, low) > p->capacity || !tli_pack_change_low(p, box, low)) return 0;
    tli_pack_mark(p, box);
    return 1;
}

static int tli_pack_can_be_lowest(const tli_pack *p, int32_t box, int32_t section, uint64_t most) {
    return !p->placed[box] && p->low[box] + tli_pack_window_of(p, box, section).from <= most;
}

// Where what a box takes in a section ends, if it lies as low as it may.
static uint64_t tli_pack_low_end(const tli_pack *p, int32_t box, int32_t section) {
    return p->low[box] + tli_pack_window_of(p, box, section).end;
}

// Whether two boxes that were low enough in a section still are, and one ends so low that no other is raised.
static int tli_pack_is_seen(const tli_pack *p, int32_t section, uint64_t most) {
    int32_t a = p->lowest[2 * section], b = p->lowest[2 * section + 1];
    return a != b && tli_pack_can_be_lowest(p, a, section, most) &&
           tli_pack_can_be_lowest(p, b, section, most) && tli_pack_low_end(p, a, section) <= most;
}

// Find the box of a section that ends first of those that could be its lowest, and another one of them. Returns
// how many could be; *end: where the first ends.
static int32_t tli_pack_find_lowest(tli_pack *p, int32_t section, uint64_t most, uint64_t *end) {
    int32_t k, *lowest = p->lowest + (size_t)2 * (size_t)section, count = 0;
    *end = UINT64_MAX;
    for (k = p->live_first[section]; k < p->live_first[section + 1]; k++) {
        int32_t box = p->live[k];
        if (!tli_pack_can_be_lowest(p, box, section, most)) continue;
        if (!count++) lowest[1] = box;
        if (tli_pack_low_end(p, box, section) >= *end) { lowest[1] = box; continue; }
        if (count > 1) lowest[1] = lowest[0];
        lowest[0] = box;
        *end = tli_pack_low_end(p, box, section);
    }
    p->work += (uint64_t)(k - p->live_first[section]) / 4;
    return count;
}

#ifdef TLI_INVARIANTS
// What is left of a section is what its unplaced boxes take.
static int tli_pack_section_holds(const tli_pack *p, int32_t section) {
    uint64_t rest = 0;
    int32_t k;
    for (k = p->live_first[section]; k < p->live_first[section + 1]; k++)
        if (!p->placed[p->live[k]]) rest += tli_pack_takes(p, p->live[k], section);
    return rest == p->rest[section];
}

// A box that was placed is aligned and over no other that was, where all of them take all their bytes.
static int tli_pack_box_holds(const tli_pack *p, int32_t box) {
    uint64_t offset = p->offset[box], end = offset + p->bytes[box];
    int32_t k;
    if (p->pin[box] != UINT64_MAX ? offset != p->pin[box] : offset != tli_pack_align(p, box, offset)) return 0;
    for (k = p->near_first[box]; k < p->near_first[box + 1] && !p->over; k++) {
        int32_t other = p->near_boxes[k];
        if (!p->placed[other]) continue;
        if (offset < p->offset[other] + p->bytes[other] && p->offset[other] < end) return 0;
    }
    return 1;
}

// Nothing is placed, and every section has all its bytes left.
static int tli_pack_is_empty(const tli_pack *p) {
    int32_t i;
    for (i = 0; i < p->count; i++) if (p->placed[i]) return 0;
    for (i = 0; i < p->section_count; i++) if (!tli_pack_section_holds(p, i) || p->crossing[i] < 0) return 0;
    return p->placed_count == 0;
}
#endif

// Look at the unplaced boxes of a section, of which none lies below `offset`. The lowest of them must leave
// room for all others above it; the others lie above an end of those that could be it. 0 = they do not fit.
static int tli_pack_look_at(tli_pack *p, int32_t section, uint64_t offset) {
    uint64_t most = p->capacity - tli_pack_needs(p, section), end;
    int32_t k, count;
    if (!p->rest[section]) return 1;
    if (offset > most) return 0;
    p->work++;
    if (tli_pack_is_seen(p, section, most)) return 1;
    count = tli_pack_find_lowest(p, section, most, &end);
    if (!count) return 0;
    for (k = p->live_first[section]; k < p->live_first[section + 1] && (count == 1 || end > most); k++) {
        int32_t box = p->live[k];
        uint64_t from = tli_pack_window_of(p, box, section).from;
        if (p->placed[box] || p->low[box] + from >= end) continue;
        if (count == 1 ? box == p->lowest[2 * section] : p->low[box] + from <= most) continue;
        if (!tli_pack_raise(p, box, end - from)) return 0;
    }
    return 1;
}

// Look at sections until none is left whose boxes changed.
static int tli_pack_look(tli_pack *p, uint64_t offset) {
    int32_t at, words = p->section_count / 64 + 1, fits = 1, more = 1;
    while (more)
        for (at = more = 0; at < words; at++)
            while (p->dirty[at]) {
                int32_t bit = tli_log2_u64(p->dirty[at]);
                p->dirty[at] &= ~((uint64_t)1 << bit);
                if (!fits) continue;
                fits = tli_pack_look_at(p, at * 64 + bit, offset);
                more = 1;
            }
    return fits;
}

// Place a box. 0 = what is left cannot fit.
static int tli_pack_place(tli_pack *p, int32_t box, uint64_t offset) {
    int32_t k, s;
    int fits = 1;
    TLI_INVARIANT(!p->placed[box] && p->placed_count < p->count);
    p->placed[box] = 1;
    p->stack[p->placed_count++] = box;
    p->offset[box] = offset;
    for (s = p->first[box]; s <= p->last[box]; s++) {
        p->rest[s] -= tli_pack_takes(p, box, s);
        if (s < p->last[box]) p->crossing[s]--;
    }
    TLI_INVARIANT(tli_pack_box_holds(p, box) && tli_pack_section_holds(p, p->first[box]));
    for (k = p->near_first[box]; k < p->near_first[box + 1] && fits; k++) {
        int32_t other = p->near_boxes[k];
        uint64_t end = offset + (p->over ? p->over[k] : p->bytes[box]);
        if (!p->placed[other] && p->low[other] < end) fits = tli_pack_raise(p, other, end);
    }
    p->work += (uint64_t)(p->near_first[box + 1] - p->near_first[box] + p->last[box] - p->first[box]) / 8 + 1;
    return tli_pack_look(p, offset) && fits;
}

// Take back the box that was placed last.
static void tli_pack_take_back(tli_pack *p) {
    int32_t box = p->stack[--p->placed_count], s;
    p->placed[box] = 0;
    for (s = p->first[box]; s <= p->last[box]; s++) {
        p->rest[s] += tli_pack_takes(p, box, s);
        if (s < p->last[box]) p->crossing[s]++;
    }
    TLI_INVARIANT(tli_pack_section_holds(p, p->first[box]));
}

// -- layout: parts --

static int tli_pack_add_item(tli_pack *p, int32_t box) {
    void *array = p->items;
    if (p->item_count == p->item_capacity &&
        !tli_grow(p->fit->env, &array, &p->item_capacity, p->item_count, (int64_t)p->item_count + 1,
                  sizeof *p->items)) {
        p->failed = 1;
        return 0;
    }
    p->items = (int32_t *)array;
    p->items[p->item_count++] = box;
    TLI_INVARIANT(p->item_count <= p->item_capacity);
    return 1;
}

static int tli_pack_add_part(tli_pack *p, int32_t first) {
    void *array = p->parts;
    if (p->item_count == first) return 1;
    if (p->part_count == p->part_capacity &&
        !tli_grow(p->fit->env, &array, &p->part_capacity, p->part_count, (int64_t)p->part_count + 1,
                  sizeof *p->parts)) {
        p->failed = 1;
        return 0;
    }
    p->parts = (tli_pack_part *)array;
    p->parts[p->part_count].first = first;
    p->parts[p->part_count++].count = p->item_count - first;
    TLI_INVARIANT(p->part_count <= p->part_capacity);
    return 1;
}

// Divide what is left of a part where no unplaced box spans two sections; within the sections of the box that
// was placed, because elsewhere nothing changed. What was divided is ranked anew. 0 = no memory.
static int tli_pack_divide(tli_pack *p, tli_pack_part part, int32_t box) {
    int32_t from = 0, s, k, first;
    int ranks = 0;
    for (s = p->first[box]; s <= p->last[box]; s++) {
        int ends = s == p->last[box];
        if (!ends && p->crossing[s]) continue;
        ranks |= !ends;
        first = p->item_count;
        for (k = part.first; k < part.first + part.count; k++) {
            int32_t item = p->items[k];
            if (p->placed[item] || p->first[item] < from || (!ends && p->first[item] > s)) continue;
            if (!tli_pack_add_item(p, item)) return 0;
        }
        p->work += (uint64_t)part.count / 4 + 1;
        if (!tli_pack_add_part(p, first)) return 0;
        if (ranks && p->item_count > first) tli_pack_rank(p, p->parts[p->part_count - 1]);
        from = s + 1;
    }
    return 1;
}

// -- layout: the search --

// No box is placed at or above the returned offset: below it another would fit, or a section would be too full.
static uint64_t tli_pack_find_most(tli_pack *p, const tli_pack_frame *f) {
    uint64_t most = UINT64_MAX, rest = 0;
    int32_t k, s, from = INT32_MAX, to = -1;
    for (k = f->part.first; k < f->part.first + f->part.count; k++) {
        int32_t box = p->items[k];
        uint64_t end = p->low[box] + (p->pin[box] == UINT64_MAX ? p->bytes[box] : 1);
        if (end < most) most = end;
        if (p->first[box] < from) from = p->first[box];
        if (p->last[box] > to) to = p->last[box];
    }
    for (s = from; s <= to; s++) if (tli_pack_needs(p, s) > rest) rest = tli_pack_needs(p, s);
    p->work += (uint64_t)(f->part.count + to - from) / 2 + 1;
    return most < p->capacity - rest + 1 ? most : p->capacity - rest + 1;
}

// A box that could have been placed before, or that was tried here, is none until another has lifted it.
static int tli_pack_is_candidate(const tli_pack *p, const tli_pack_frame *f, int32_t box, uint64_t most) {
    if (p->low[box] < f->last_offset || p->low[box] >= most || p->sleeps[box]) return 0;
    return p->twin[box] < 0 || p->placed[p->twin[box]];
}

#ifdef TLI_INVARIANTS
// Candidates stand in order of offset, and none is placed.
static int tli_pack_candidates_hold(const tli_pack *p, const tli_pack_frame *f) {
    const int32_t *items = p->items + f->candidates;
    int32_t k;
    for (k = 0; k < f->candidate_count; k++) {
        if (p->placed[items[k]] || p->low[items[k]] < f->last_offset) return 0;
        if (k && p->low[items[k - 1]] > p->low[items[k]]) return 0;
    }
    return 1;
}
#endif

// List the boxes that may be placed next, by offset and rank. 0 = no memory.
static int tli_pack_list_candidates(tli_pack *p, tli_pack_frame *f) {
    uint64_t most = tli_pack_find_most(p, f);
    int32_t k, at;
    f->candidates = p->item_count;
    for (k = f->part.first; k < f->part.first + f->part.count; k++) {
        int32_t box = p->items[k];
        if (!tli_pack_is_candidate(p, f, box, most)) continue;
        if (!tli_pack_add_item(p, box)) return 0;
        for (at = p->item_count - 1; at > f->candidates && p->low[box] < p->low[p->items[at - 1]]; at--) {
            p->items[at] = p->items[at - 1];
            p->work++;
        }
        p->items[at] = box;
    }
    f->candidate_count = p->item_count - f->candidates;
    TLI_INVARIANT(tli_pack_candidates_hold(p, f));
    return 1;
}

// Begin the frame of a part; last_offset: that of the box placed before. 0 = no memory.
static int tli_pack_push(tli_pack *p, tli_pack_part part, uint64_t last_offset) {
    tli_pack_frame *f = &p->frames[p->frame_count++];
    tli_zero(f, sizeof *f);
    f->part = part;
    f->chosen = -1;
    f->change_count = p->change_count;
    f->placed_count = p->placed_count;
    f->child_first = p->part_count;
    f->last_offset = last_offset;
    if (!tli_pack_list_candidates(p, f)) return 0;
    f->item_count = p->item_count;
    TLI_INVARIANT(p->frame_count <= p->count + 1);
    return 1;
}

enum { TLI_PACK_PLACED, TLI_PACK_FAILED, TLI_PACK_NO_MORE };

// Whether a box has unplaced boxes beside it that could lie on top of it.
static int tli_pack_has_others(const tli_pack *p, int32_t box) {
    int32_t k;
    for (k = p->near_first[box]; k < p->near_first[box + 1]; k++) if (!p->placed[p->near_boxes[k]]) return 1;
    return 0;
}

// Place the next box of a frame. One that nothing will lie on harms nobody where it is: it is the only choice.
static int tli_pack_try_next(tli_pack *p, tli_pack_frame *f) {
    int32_t box;
    if (f->next == f->candidate_count || p->work >= p->work_limit || p->failed) return TLI_PACK_NO_MORE;
    box = p->items[f->candidates + f->next++];
    if (!tli_pack_has_others(p, box)) f->next = f->candidate_count;
    f->chosen = box;
    if (!tli_pack_place(p, box, p->low[box]) || !tli_pack_divide(p, f->part, box)) return TLI_PACK_FAILED;
    f->child_count = p->part_count - f->child_first;
    f->child_at = 0;
    return TLI_PACK_PLACED;
}

// Undo what was placed since a frame began.
static void tli_pack_undo(tli_pack *p, const tli_pack_frame *f) {
    while (p->change_count > f->change_count) {
        const tli_pack_change *change = &p->changes[--p->change_count];
        p->low[change->box] = change->low;
        p->sleeps[change->box] = (uint8_t)change->slept;
    }
    while (p->placed_count > f->placed_count) tli_pack_take_back(p);
    p->item_count = f->item_count;
    p->part_count = f->child_first;
    TLI_INVARIANT(p->change_count == f->change_count && p->placed_count == f->placed_count);
}

// Report progress; where it asks to stop, no work is left.
static void tli_pack_report(tli_pack *p) {
    tl_layout_progress now = p->now;
    if (p->work < p->report_at) return;
    p->report_at = p->work + TLI_PACK_REPORT;
    now.work += p->work;
    if (p->desc->progress && (p->desc->progress)(&now, p->desc->user)) p->stopped = 1;
    if (p->stopped) p->work_limit = p->work_end = 0;
}

// Whether the boxes fit the capacity.
static int tli_pack_search(tli_pack *p) {
    int solved = 0, tried;
    tli_pack_part all;
    int32_t i;
    p->change_count = p->item_count = p->part_count = p->frame_count = 0;
    for (i = 0; i < p->count; i++) {
        p->low[i] = p->sleeps[i] = 0;
        if (!tli_pack_add_item(p, i)) return TLI_PACK_STOPPED;
    }
    for (i = 0; i < p->count; i++) {
        p->low[i] = tli_pack_lift(p, i, 0);
        if (tli_pack_end(p, i, p->low[i]) > p->capacity) return TLI_PACK_NEVER;   // pins
    }
    all.first = 0;
    all.count = p->count;
    tli_pack_rank(p, all);
    if (!tli_pack_push(p, all, 0)) return TLI_PACK_STOPPED;
    while (p->frame_count) {
        tli_pack_frame *f = &p->frames[p->frame_count - 1];
        tli_pack_report(p);
        if (solved && ++f->child_at == f->child_count) { p->frame_count--; continue; }
        if (!solved) {
            if (f->chosen >= 0) {
                tli_pack_undo(p, f);
                if (!tli_pack_change_low(p, f->chosen, p->low[f->chosen])) return TLI_PACK_STOPPED;
                f->change_count++;      // to be undone by the frame below
            }
            f->chosen = -1;
            tried = tli_pack_try_next(p, f);
            if (tried == TLI_PACK_FAILED) continue;
            if (tried == TLI_PACK_NO_MORE) { p->frame_count--; continue; }
            if (!f->child_count) { solved = 1; p->frame_count--; continue; }
        }
        solved = 0;
        if (!tli_pack_push(p, p->parts[f->child_first + f->child_at], p->offset[f->chosen]))
            return TLI_PACK_STOPPED;
    }
    TLI_INVARIANT(!solved || p->placed_count == p->count);
    if (solved) return TLI_PACK_FITS;
    return p->work < p->work_limit && !p->failed ? TLI_PACK_NEVER : TLI_PACK_STOPPED;
}

// After a search, whatever its answer: nothing is placed.
static void tli_pack_reset(tli_pack *p) {
    while (p->placed_count) tli_pack_take_back(p);
    TLI_INVARIANT(tli_pack_is_empty(p));
}
// -- layout: from a bound to a height --

static uint64_t tli_pack_gcd(uint64_t a, uint64_t b) {
    while (b) { uint64_t rest = a % b; a = b; b = rest; }
    return a;
}

// A divisor of every height that a layout can have: the greatest common divisor of bytes, rounded and not,
// pins, alignments, windows and blocks.
static uint64_t tli_pack_step(const tli_pack *p) {
    uint64_t step = p->fit->block;
    int32_t i;
    for (i = 0; i < p->count; i++) {
        step = tli_pack_gcd(p->bytes[i], step);
        step = tli_pack_gcd(tli_pack_spare(p, i), step);
        if (p->alignment[i] > 1) step = tli_pack_gcd(p->alignment[i], step);
        if (p->pin[i] != UINT64_MAX) step = tli_pack_gcd(p->pin[i], step);
    }
    for (i = 0; i < p->window_count; i++)
        step = tli_pack_gcd(p->windows[i].from, tli_pack_gcd(p->windows[i].end, step));
    return step;
}

static uint64_t tli_pack_height(const tli_pack *p, const uint64_t *offsets) {
    uint64_t height = 0;
    int32_t i;
    for (i = 0; i < p->count; i++)
        if (tli_pack_end(p, i, offsets[i]) > height) height = tli_pack_end(p, i, offsets[i]);
    return height;
}

// Ask whether a capacity is reached, with a slice of work for each ranking, and more for the favourite.
static int tli_pack_ask(tli_pack *p, uint64_t capacity, uint64_t slice, int32_t favourite) {
    int32_t turn;
    int answer = TLI_PACK_STOPPED;
    p->capacity = capacity;
    for (turn = 0; turn < TLI_PACK_RANKINGS && answer == TLI_PACK_STOPPED; turn++) {
        uint64_t share = turn ? slice : slice * TLI_PACK_FIRST;
        if (p->work >= p->work_end || p->failed) break;
        p->ranking = turn ? turn - (turn <= favourite) : favourite;
        p->work_limit = p->work_end - p->work < share ? p->work_end : p->work + share;
        answer = tli_pack_search(p);
        if (answer == TLI_PACK_FITS) {
            tli_copy(p->best, p->offset, (size_t)p->count * sizeof *p->best);
            TLI_INVARIANT(tli_pack_height(p, p->best) <= capacity);
            p->favourite = p->ranking;
        }
        tli_pack_reset(p);
    }
    return answer;
}

// What is known about the heights of the boxes: low is the bound, high was reached; all are multiples of step.
typedef struct tli_pack_range { uint64_t low, high, step; } tli_pack_range;

static int tli_pack_ask_range(tli_pack *p, tli_pack_range *range, uint64_t capacity, uint64_t slice,
                              int32_t favourite) {
    int answer = tli_pack_ask(p, capacity, slice, favourite);
    if (answer == TLI_PACK_FITS) range->high = tli_pack_height(p, p->best);
    if (answer == TLI_PACK_NEVER) range->low = capacity + range->step;
    TLI_INVARIANT(answer != TLI_PACK_NEVER || range->low <= range->high);
    return answer;
}

// Ask for capacities a gap below what is reached. The gap doubles where they are, and halves where not.
static void tli_pack_ask_between(tli_pack *p, tli_pack_range *range, uint64_t slice) {
    uint64_t gap = (range->high - range->low) / 2 / range->step * range->step;
    uint64_t least = gap / 64, end = p->work + TLI_PACK_BETWEEN * slice;
    if (end > p->work_end) end = p->work_end;
    while (gap && gap >= least && p->work < end && !p->failed) {
        int answer = tli_pack_ask_range(p, range, range->high - gap, slice, p->favourite);
        uint64_t most = range->high > range->low ? (range->high - range->low) / 2 : 0;
        gap = answer == TLI_PACK_FITS ? gap * 2 : gap / 2;
        gap = (gap < most ? gap : most) / range->step * range->step;
    }
}

// The next slice of work: four times as long, until one is as long as all work. So it does not overflow,
// however often the bound rises.
static uint64_t tli_pack_more(uint64_t slice, uint64_t work_limit) {
    return slice < work_limit ? 4 * slice : slice;
}

// Lower the layout of the boxes to `goal` or less, as far as the work goes; *bound: no layout is lower. Most of
// the work goes to the capacity that is wanted, if more than that is taken.
static void tli_pack_lower(tli_pack *p, uint64_t goal, uint64_t wanted, uint64_t work_limit, uint64_t *bound) {
    uint64_t slice = TLI_PACK_SLICE * (uint64_t)p->count, end = p->work + work_limit;
    tli_pack_range range;
    int answer = TLI_PACK_STOPPED;
    range.step = tli_pack_step(p);
    range.low = (tli_pack_read(p) + range.step - 1) / range.step * range.step;
    if (goal / range.step * range.step > range.low) range.low = goal / range.step * range.step;
    range.high = tli_pack_height(p, p->best);
    p->work_end = end - work_limit / 4;
    wanted = wanted / range.step * range.step;
    while (wanted >= range.low && range.high > wanted && p->work < p->work_end && answer == TLI_PACK_STOPPED) {
        if (p->failed) break;
        answer = tli_pack_ask_range(p, &range, wanted, slice, 0);
        slice = tli_pack_more(slice, work_limit);
    }
    p->work_end = p->stopped ? 0 : end;
    slice = TLI_PACK_SLICE * (uint64_t)p->count;
    while (range.high > range.low && p->work < p->work_end && !p->failed) {
        answer = tli_pack_ask_range(p, &range, range.low, slice * TLI_PACK_BOUND, 0);
        if (answer == TLI_PACK_STOPPED) tli_pack_ask_between(p, &range, slice);
        slice = tli_pack_more(slice, work_limit);
    }
    *bound = range.low;
    TLI_INVARIANT(range.high == tli_pack_height(p, p->best));
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
