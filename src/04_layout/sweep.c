#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- layout: a sweep through time --
//
// A sweep gives each box, in the order in which they begin, the lowest gap at that moment, and takes back what
// has ended: first fit, as an allocator does it. What is nested in time is stacked without loss so, and a box
// costs O(log gaps), however much lives with it. The sweep backwards in time is the same from the end.
//
// Two more sweeps stack boxes from both sides of every gap, and of all bytes below the bound: a box lies
// against the neighbour that outlives it by least or, if all end before it, against the one that ends last.
// What ends together lies together then, and leaves one gap. Plans that recompute stages of a chain are of this
// kind: checkpoints, the last of which is dropped first, and between them what lives for a step or two.
//
//     bound  +------------------+
//            |      +-----+     |
//            |      |  c  |     |     c outlives b, so it lies against the bound, which never ends;
//            |      +-----+     |     behind b there is one gap, and not one on each side of c
//            |   +----+ +---+   |
//            |   | b  | | d |   |
//            |  ++----+-+---+-+ |
//            |  |      a      | |
//            +--+-------------+-+--> step
//
// The gaps are the nodes of a treap: in order of their first byte, with ranks that no parent has lower than its
// children, which are hashes of their numbers, and the widest gap below each node. Pins would have to be looked
// for ahead, and a box with pieces gives bytes back before it ends: where there is a pin or a piece, all boxes
// are placed by passes alone.

#define TLI_SWEEP_GAPS 64       // most gaps in which a box would fit that are compared, the lowest first
#ifdef TL_NO_PLANNERS
#define TLI_SWEEP_TURNS 2       // forwards, backwards
#else
#define TLI_SWEEP_TURNS 4       // and stacked, in both directions
#endif
#define TLI_SWEEP_VISIT 4       // elementary steps of a visit of a gap

typedef struct tli_gap {
    uint64_t first, end;        // free bytes
    uint64_t widest;            // most bytes of a gap from here down
    int32_t  up, down[2];       // -1 = none; [0]: lower, [1]: higher
    int32_t  below;             // the box that lies below it; -1 = none
} tli_gap;

typedef struct tli_gaps {
    tl_env   *env;
    tli_gap  *gaps;             // [count]
    int32_t   count, capacity;
    int32_t   root, unused;     // unused: a list through up, -1 = at the end
    uint64_t  end;              // of all bytes; it is raised where no gap is wide enough
    int32_t  *lower, *higher;   // [boxes] placed boxes by offset: a list; -1 = none
    int32_t   lowest, highest;  // its ends
    int       backwards;
    int       failed;           // no memory: gaps are missing, the offsets are not valid
    uint64_t  work;
} tli_gaps;

static uint32_t tli_gap_rank(int32_t gap) { return ((uint32_t)gap + 1) * UINT32_C(2654435761); }

static uint64_t tli_gap_widest(const tli_gaps *g, int32_t gap) { return gap < 0 ? 0 : g->gaps[gap].widest; }

static void tli_gap_update(tli_gaps *g, int32_t gap) {
    tli_gap *at = &g->gaps[gap];
    at->widest = at->end - at->first;
    at->widest = tli_larger_u64(at->widest, tli_gap_widest(g, at->down[0]));
    at->widest = tli_larger_u64(at->widest, tli_gap_widest(g, at->down[1]));
}

#ifdef TLI_INVARIANTS
// A gap and its children stand in order of bytes and ranks, and it knows the widest from itself down.
static int tli_gap_holds(const tli_gaps *g, int32_t gap) {
    const tli_gap *at = &g->gaps[gap];
    uint64_t widest = at->end - at->first;
    int32_t side;
    if (g->failed) return 1;
    if (at->first >= at->end || at->end > g->end) return 0;
    if (at->up < 0 && g->root != gap) return 0;
    if (at->up >= 0 && g->gaps[at->up].down[0] != gap && g->gaps[at->up].down[1] != gap) return 0;
    for (side = 0; side < 2; side++) {
        int32_t down = at->down[side];
        if (down < 0) continue;
        if (g->gaps[down].up != gap || tli_gap_rank(down) > tli_gap_rank(gap)) return 0;
        if (side ? g->gaps[down].first <= at->end : g->gaps[down].end >= at->first) return 0;
        widest = tli_larger_u64(widest, g->gaps[down].widest);
    }
    return widest == at->widest;
}

// So do all gaps from one up to the root.
static int tli_gap_path_holds(const tli_gaps *g, int32_t gap) {
    for (; gap >= 0; gap = g->gaps[gap].up) if (!tli_gap_holds(g, gap)) return 0;
    return 1;
}

// All gaps hold and do not touch; where they are many, that is looked at now and then.
static int tli_gaps_hold(const tli_gaps *g) {
    int32_t at = g->root, last = -1, left = g->count;
    if (g->failed) return 1;
    if (g->count > 16 && g->work % ((uint64_t)g->count + 1)) return 1;
    while (at >= 0 && g->gaps[at].down[0] >= 0) at = g->gaps[at].down[0];
    for (; at >= 0 && left > 0; left--) {
        if (!tli_gap_holds(g, at) || (last >= 0 && g->gaps[last].end >= g->gaps[at].first)) return 0;
        last = at;
        if (g->gaps[at].down[1] >= 0) {
            at = g->gaps[at].down[1];
            while (g->gaps[at].down[0] >= 0) at = g->gaps[at].down[0];
            continue;
        }
        while (g->gaps[at].up >= 0 && g->gaps[g->gaps[at].up].down[1] == at) at = g->gaps[at].up;
        at = g->gaps[at].up;
    }
    return at < 0;
}

// A box and its neighbours in the list know each other.
static int tli_gap_list_holds(const tli_gaps *g, int32_t box) {
    int32_t below = g->lower[box], above = g->higher[box];
    if ((below < 0 ? g->lowest : g->higher[below]) != box) return 0;
    return (above < 0 ? g->highest : g->lower[above]) == box;
}
#endif

static void tli_gap_update_above(tli_gaps *g, int32_t gap) {
    for (; gap >= 0; gap = g->gaps[gap].up, g->work++) tli_gap_update(g, gap);
}

// Hang a gap, or none, in the place of another.
static void tli_gap_replace(tli_gaps *g, int32_t old, int32_t gap) {
    int32_t up = g->gaps[old].up;
    if (up < 0) g->root = gap;
    else g->gaps[up].down[g->gaps[up].down[1] == old] = gap;
    if (gap >= 0) g->gaps[gap].up = up;
    TLI_INVARIANT(gap < 0 || g->gaps[gap].up == up);
}

// Lift a gap above its parent.
static void tli_gap_lift(tli_gaps *g, int32_t gap) {
    int32_t up = g->gaps[gap].up, side = g->gaps[up].down[1] == gap, inner = g->gaps[gap].down[!side];
    tli_gap_replace(g, up, gap);
    g->gaps[up].down[side] = inner;
    if (inner >= 0) g->gaps[inner].up = up;
    g->gaps[gap].down[!side] = up;
    g->gaps[up].up = gap;
    tli_gap_update(g, up);
    g->work++;
    TLI_INVARIANT(tli_gap_rank(up) <= tli_gap_rank(gap) || g->gaps[up].up == gap);
}

// A gap that is in no tree; -1 = no memory.
static int32_t tli_gap_new(tli_gaps *g) {
    int32_t gap = g->unused;
    void *array = g->gaps;
    if (gap >= 0) {
        g->unused = g->gaps[gap].up;
        return gap;
    }
    if (!tli_grow(g->env, &array, &g->capacity, g->count, (int64_t)g->count + 1, sizeof *g->gaps)) {
        g->failed = 1;
        return -1;
    }
    g->gaps = (tli_gap *)array;
    TLI_INVARIANT(g->count <= g->capacity);
    return g->count++;
}

static void tli_gap_add(tli_gaps *g, int32_t below, uint64_t first, uint64_t end) {
    int32_t gap = tli_gap_new(g), at = g->root, up = -1, side = 0;
    tli_gap *item;
    if (gap < 0) return;
    item = &g->gaps[gap];
    for (; at >= 0; up = at, at = g->gaps[at].down[side], g->work++) side = first > g->gaps[at].first;
    item->first = first;
    item->end = end;
    item->up = up;
    item->down[0] = item->down[1] = -1;
    item->below = below;
    if (up < 0) g->root = gap;
    else g->gaps[up].down[side] = gap;
    tli_gap_update(g, gap);
    while (item->up >= 0 && tli_gap_rank(item->up) < tli_gap_rank(gap)) tli_gap_lift(g, gap);
    tli_gap_update_above(g, gap);
    TLI_INVARIANT(tli_gap_path_holds(g, gap));
}

static void tli_gap_remove(tli_gaps *g, int32_t gap) {
    tli_gap *item = &g->gaps[gap];
    while (item->down[0] >= 0 && item->down[1] >= 0)
        tli_gap_lift(g, item->down[tli_gap_rank(item->down[0]) < tli_gap_rank(item->down[1])]);
    tli_gap_replace(g, gap, item->down[item->down[0] < 0]);
    tli_gap_update_above(g, item->up);
    TLI_INVARIANT(tli_gap_path_holds(g, item->up));
    item->up = g->unused;
    g->unused = gap;
}

// The lowest gap of at least so many bytes among a gap of the tree and those below it. There must be one.
static int32_t tli_gap_find(tli_gaps *g, int32_t at, uint64_t bytes) {
    for (;; g->work++) {
        const tli_gap *gap = &g->gaps[at];
        if (tli_gap_widest(g, gap->down[0]) >= bytes) at = gap->down[0];
        else if (gap->end - gap->first >= bytes) return at;
        else at = gap->down[1];
    }
}

// The next gap of at least so many bytes at higher offsets than a gap; -1 = none.
static int32_t tli_gap_next(tli_gaps *g, int32_t at, uint64_t bytes) {
    int32_t up;
    if (tli_gap_widest(g, g->gaps[at].down[1]) >= bytes) return tli_gap_find(g, g->gaps[at].down[1], bytes);
    for (; (up = g->gaps[at].up) >= 0; at = up, g->work++) {
        const tli_gap *gap = &g->gaps[up];
        if (gap->down[1] == at) continue;
        if (gap->end - gap->first >= bytes) return up;
        if (tli_gap_widest(g, gap->down[1]) >= bytes) return tli_gap_find(g, gap->down[1], bytes);
    }
    return -1;
}

// Give bytes above a box back: they join the gaps that touch them.
static void tli_gap_give(tli_gaps *g, int32_t box, uint64_t first, uint64_t end) {
    int32_t at = g->root, below = -1, above = -1;
    for (; at >= 0; g->work++) {
        if (g->gaps[at].first < first) { below = at; at = g->gaps[at].down[1]; }
        else { above = at; at = g->gaps[at].down[0]; }
    }
    if (above >= 0 && g->gaps[above].first == end) {
        end = g->gaps[above].end;
        tli_gap_remove(g, above);
    }
    if (below < 0 || g->gaps[below].end != first) {
        tli_gap_add(g, box, first, end);
        return;
    }
    g->gaps[below].end = end;
    tli_gap_update_above(g, below);
    TLI_INVARIANT(tli_gap_path_holds(g, below));
}

// Let there be a gap of so many bytes: the last one grows, or begins at the end.
static void tli_gap_widen(tli_gaps *g, uint64_t bytes) {
    int32_t at = g->root;
    uint64_t end = g->end;
    if (tli_gap_widest(g, at) >= bytes) return;
    while (at >= 0 && g->gaps[at].down[1] >= 0) at = g->gaps[at].down[1];
    g->end += bytes - (at >= 0 && g->gaps[at].end == end ? end - g->gaps[at].first : 0);
    tli_gap_give(g, g->highest, end, g->end);
    TLI_INVARIANT(g->failed || tli_gap_widest(g, g->root) >= bytes);
}

// A place in a gap: against the box below it, or, side 1, against the one above.
typedef struct tli_gap_place { uint64_t offset; int32_t gap, side; } tli_gap_place;

// The offset of a box on a side of a gap: the lowest, on side 1 the highest, at which it is aligned and in one
// block. It may reach out of the gap on the other side.
static uint64_t tli_gap_offset(const tli_fit *f, const tli_gap *gap, const tli_fit_box *box, int32_t side) {
    uint64_t bytes = tli_fit_taken_bytes(f, box), offset;
    if (!side) return tli_fit_lift(f, box, gap->first);
    offset = gap->end - bytes;
    if (tli_is_split(offset, bytes, f->block)) offset = (offset + bytes) / f->block * f->block - bytes;
    return offset & ~(((uint64_t)1 << box->alignment_bits) - 1);
}

// The section behind which a box ends in the direction of the sweep. Box -1, the end of all bytes below or
// above, never does.
static int64_t tli_gap_until(const tli_fit *f, const tli_gaps *g, int32_t box) {
    if (box < 0) return INT32_MAX;
    return g->backwards ? -(int64_t)f->boxes[box].first : f->boxes[box].last;
}

// The side of a gap on which the neighbour outlives a box by least. *rate: by how many sections; of one that
// ends before the box it is above the rate of any that does not.
static int32_t tli_gap_side(const tli_fit *f, const tli_gaps *g, int32_t gap, int32_t box, uint64_t *rate) {
    int32_t below = g->gaps[gap].below, above = below < 0 ? g->lowest : g->higher[below], side, best = 0;
    *rate = UINT64_MAX;
    for (side = 0; side < 2; side++) {
        int64_t by = tli_gap_until(f, g, side ? above : below) - tli_gap_until(f, g, box);
        uint64_t value = by < 0 ? (uint64_t)-by | (uint64_t)1 << 40 : (uint64_t)by;
        if (value >= *rate) continue;
        *rate = value;
        best = side;
    }
    return best;
}

// The place of a box in a gap of at least so many bytes: the lowest, or the one beside the neighbour that
// outlives it by least.
static tli_gap_place tli_gap_choose(const tli_fit *f, tli_gaps *g, int32_t box, uint64_t bytes, int stacks) {
    tli_gap_place best;
    uint64_t least = UINT64_MAX, rate;
    int32_t gap = tli_gap_find(g, g->root, bytes), count = 0;
    best.gap = gap;
    best.side = 0;
    for (; stacks && gap >= 0 && count < TLI_SWEEP_GAPS; gap = tli_gap_next(g, gap, bytes), count++) {
        int32_t side = tli_gap_side(f, g, gap, box, &rate);
        if (rate >= least) continue;
        least = rate;
        best.gap = gap;
        best.side = side;
    }
    g->work += (uint64_t)count;
    best.offset = tli_gap_offset(f, &g->gaps[best.gap], &f->boxes[box], best.side);
    return best;
}

// Hang a box into the list, above the one below a gap.
static void tli_gap_link(tli_gaps *g, int32_t box, int32_t below) {
    int32_t above = below < 0 ? g->lowest : g->higher[below];
    g->lower[box] = below;
    g->higher[box] = above;
    if (below < 0) g->lowest = box;
    else g->higher[below] = box;
    if (above < 0) g->highest = box;
    else g->lower[above] = box;
    TLI_INVARIANT(tli_gap_list_holds(g, box));
}

// Take a box out of the list, and give its bytes back.
static void tli_gap_drop(const tli_fit *f, tli_gaps *g, int32_t box) {
    int32_t below = g->lower[box], above = g->higher[box];
    TLI_INVARIANT(tli_gap_list_holds(g, box));
    if (below < 0) g->lowest = above;
    else g->higher[below] = above;
    if (above < 0) g->highest = below;
    else g->lower[above] = below;
    tli_gap_give(g, below, f->offsets[box], f->offsets[box] + tli_fit_taken_bytes(f, &f->boxes[box]));
    TLI_INVARIANT(tli_gaps_hold(g));
}

// Take the bytes of a box in a gap that holds them; where they do not fit it aligned, or in one block, in one
// that surely does.
static uint64_t tli_gap_take(const tli_fit *f, tli_gaps *g, int32_t id, int stacks) {
    const tli_fit_box *box = &f->boxes[id];
    uint64_t bytes = tli_fit_taken_bytes(f, box), first, end, wanted = bytes;
    tli_gap_place place;
    int again;
    for (again = 0;; again++) {
        tli_gap_widen(g, wanted);
        if (g->failed) return 0;
        place = tli_gap_choose(f, g, id, wanted, stacks);
        first = g->gaps[place.gap].first;
        end = g->gaps[place.gap].end;
        if (again || (place.offset >= first && place.offset + bytes <= end)) break;
        wanted = (f->block ? 2 * bytes : bytes) + ((uint64_t)1 << box->alignment_bits);
    }
    TLI_INVARIANT(place.offset >= first && place.offset + bytes <= end);
    tli_gap_link(g, id, g->gaps[place.gap].below);
    if (place.offset > first) {
        g->gaps[place.gap].end = place.offset;
        tli_gap_update_above(g, place.gap);
        if (place.offset + bytes < end) tli_gap_add(g, id, place.offset + bytes, end);
    } else if (place.offset + bytes < end) {
        g->gaps[place.gap].first = place.offset + bytes;
        g->gaps[place.gap].below = id;
        tli_gap_update_above(g, place.gap);
    } else {
        tli_gap_remove(g, place.gap);
    }
    TLI_INVARIANT(tli_gaps_hold(g));
    return place.offset;
}

static void tli_gap_reset(tli_gaps *g, uint64_t end) {
    g->root = g->unused = g->lowest = g->highest = -1;
    g->count = 0;
    g->end = end;
    if (end) tli_gap_add(g, -1, 0, end);
    TLI_INVARIANT(g->failed || tli_gaps_hold(g));
}

// Place all boxes as they begin, and keep the result if it is the lowest. by_first: boxes by first section,
// ends: by last section, the latest first; backwards, the two change places, and both are read from the other
// end.
static void tli_fit_sweep_items(tli_fit *f, tli_gaps *g, const int32_t *ends, int stacks) {
    uint64_t height = 0;
    int32_t i, k = 0, n = f->count;
    for (i = 0; i < n && height < f->best_height; i++) {
        // Stacking takes more work a box than a plain sweep, so it may end before all boxes are placed.
        if (stacks && f->work + TLI_SWEEP_VISIT * g->work >= f->work_limit) return;
        int32_t id = g->backwards ? ends[i] : f->by_first[i];
        const tli_fit_box *box = &f->boxes[id];
        for (; k < n; k++) {
            int32_t old = g->backwards ? f->by_first[n - 1 - k] : ends[n - 1 - k];
            const tli_fit_box *ended = &f->boxes[old];
            if (g->backwards ? ended->first <= box->last : ended->last >= box->first) break;
            tli_gap_drop(f, g, old);
        }
        f->offsets[id] = tli_gap_take(f, g, id, stacks);
        if (g->failed) return;
        height = tli_larger_u64(height, f->offsets[id] + box->bytes);
    }
    if (height >= f->best_height) return;
    f->best_height = height;
    tli_copy(f->best, f->offsets, (size_t)n * sizeof *f->best);
    TLI_INVARIANT(tli_fit_best_holds(f));
}

// Sweep forwards, and where that is above the bound, backwards; then stack in both directions.
static void tli_fit_sweep(tli_fit *f, uint64_t bound) {
    uint64_t end = tli_align_up(bound, f->unit);
    int32_t i, turn;
    tli_gaps g;
    for (i = 0; i < f->count; i++) f->order[i] = i;
    tli_fit_sort(f, TLI_FIT_END, f->order);
    tli_zero(&g, sizeof g);
    g.env = f->env;
    g.lower = f->reach;             // scratch here: each pass sets all of reach[] first
    g.higher = f->reach + f->leaf_count;
    for (turn = 0; turn < TLI_SWEEP_TURNS && f->best_height > bound && !g.failed; turn++) {
        if (turn && f->work + TLI_SWEEP_VISIT * g.work >= f->work_limit) break;
        g.backwards = turn % 2;
        tli_gap_reset(&g, turn < 2 ? UINT64_MAX : end);
        tli_fit_sweep_items(f, &g, f->order, TLI_SWEEP_TURNS > 2 && turn >= 2);
    }
    f->work += TLI_SWEEP_VISIT * g.work;
    f->failed = g.failed;
    tli_release(f->env, g.gaps);
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
