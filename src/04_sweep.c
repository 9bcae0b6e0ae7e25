#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- layout: a sweep through time --
//
// A sweep gives each box, in the order in which they begin, the lowest gap at that moment, and takes back what
// has ended: first fit, as an allocator does it. What is nested in time is stacked without loss so, and a box
// costs O(log gaps), however much lives with it. The sweep backwards in time is the same from the end.
//
// The gaps are the nodes of a treap: in order of their first byte, with random ranks that no parent has lower
// than its children, and the widest gap below each node. Pins would have to be looked for ahead, so boxes with
// pins are placed by passes alone.

typedef struct tli_gap {
    uint64_t first, end;        // free bytes
    uint64_t widest;            // most bytes of a gap from here down
    int32_t  up, down[2];       // -1 = none; [0]: lower, [1]: higher
    uint32_t rank;
} tli_gap;

typedef struct tli_gaps {
    tl_env   *env;
    tli_gap  *gaps;             // [count]
    int32_t   count, capacity;
    int32_t   root, unused;     // unused: a list through up, -1 = at the end
    int       failed;           // no memory: gaps are missing, offsets are none
    tl_random random;
    uint64_t  work;
} tli_gaps;

static uint64_t tli_gap_widest(const tli_gaps *g, int32_t gap) { return gap < 0 ? 0 : g->gaps[gap].widest; }

static void tli_gap_update(tli_gaps *g, int32_t gap) {
    tli_gap *at = &g->gaps[gap];
    at->widest = at->end - at->first;
    at->widest = tli_larger_u64(at->widest, tli_gap_widest(g, at->down[0]));
    at->widest = tli_larger_u64(at->widest, tli_gap_widest(g, at->down[1]));
}

static void tli_gap_update_above(tli_gaps *g, int32_t gap) {
    for (; gap >= 0; gap = g->gaps[gap].up, g->work++) tli_gap_update(g, gap);
}

// Hang a gap, or none, in the place of another.
static void tli_gap_replace(tli_gaps *g, int32_t old, int32_t gap) {
    int32_t up = g->gaps[old].up;
    if (up < 0) g->root = gap;
    else g->gaps[up].down[g->gaps[up].down[1] == old] = gap;
    if (gap >= 0) g->gaps[gap].up = up;
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
    return g->count++;
}

static void tli_gap_add(tli_gaps *g, uint64_t first, uint64_t end) {
    int32_t gap = tli_gap_new(g), at = g->root, up = -1, side = 0;
    tli_gap *item;
    if (gap < 0) return;
    item = &g->gaps[gap];
    for (; at >= 0; up = at, at = g->gaps[at].down[side], g->work++) side = first > g->gaps[at].first;
    item->first = first;
    item->end = end;
    item->up = up;
    item->down[0] = item->down[1] = -1;
    item->rank = (uint32_t)(tl_next_random(&g->random) >> 32);
    if (up < 0) g->root = gap;
    else g->gaps[up].down[side] = gap;
    tli_gap_update(g, gap);
    while (item->up >= 0 && g->gaps[item->up].rank < item->rank) tli_gap_lift(g, gap);
    tli_gap_update_above(g, gap);
}

static void tli_gap_remove(tli_gaps *g, int32_t gap) {
    tli_gap *item = &g->gaps[gap];
    while (item->down[0] >= 0 && item->down[1] >= 0)
        tli_gap_lift(g, item->down[g->gaps[item->down[0]].rank < g->gaps[item->down[1]].rank]);
    tli_gap_replace(g, gap, item->down[item->down[0] < 0]);
    tli_gap_update_above(g, item->up);
    item->up = g->unused;
    g->unused = gap;
}

// The lowest gap of at least so many bytes. There is one: the last gap has no end.
static int32_t tli_gap_find(tli_gaps *g, uint64_t bytes) {
    int32_t at = g->root;
    for (;; g->work++) {
        const tli_gap *gap = &g->gaps[at];
        if (tli_gap_widest(g, gap->down[0]) >= bytes) at = gap->down[0];
        else if (gap->end - gap->first >= bytes) return at;
        else at = gap->down[1];
    }
}

// Take bytes of the lowest gap that holds them; where they do not fit it aligned, or in one block, of the
// lowest that surely does.
static uint64_t tli_gap_take(const tli_fit *f, tli_gaps *g, const tli_fit_box *box) {
    uint64_t bytes = tli_fit_taken_bytes(f, box);
    int32_t at = tli_gap_find(g, bytes);
    uint64_t offset = tli_fit_lift(f, box, g->gaps[at].first), end;
    if (offset + bytes > g->gaps[at].end) {
        at = tli_gap_find(g, (f->block ? 2 * bytes : bytes) + ((uint64_t)1 << box->alignment_bits));
        offset = tli_fit_lift(f, box, g->gaps[at].first);
    }
    end = g->gaps[at].end;
    if (offset > g->gaps[at].first) {
        g->gaps[at].end = offset;
        tli_gap_update_above(g, at);
        if (offset + bytes < end) tli_gap_add(g, offset + bytes, end);
    } else if (offset + bytes < end) {
        g->gaps[at].first = offset + bytes;
        tli_gap_update_above(g, at);
    } else {
        tli_gap_remove(g, at);
    }
    return offset;
}

// Give bytes back: they join the gaps that touch them.
static void tli_gap_give(tli_gaps *g, uint64_t first, uint64_t end) {
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
        tli_gap_add(g, first, end);
        return;
    }
    g->gaps[below].end = end;
    tli_gap_update_above(g, below);
}

static void tli_gap_reset(tli_gaps *g) {
    g->root = g->unused = -1;
    g->count = 0;
    g->random.state = 1;
    tli_gap_add(g, 0, UINT64_MAX);
}

// Place all boxes as they begin, and keep the result if it is the lowest. items: boxes by first section, ends:
// by last section, the latest first; backwards, the two change places, and both are read from the other end.
static void tli_fit_sweep_items(tli_fit *f, tli_gaps *g, const int32_t *ends, int backwards) {
    uint64_t height = 0;
    int32_t i, k = 0, n = f->count;
    for (i = 0; i < n && !g->failed; i++) {
        int32_t id = backwards ? ends[i] : f->by_first[i];
        const tli_fit_box *box = &f->boxes[id];
        for (; k < n; k++) {
            int32_t old = backwards ? f->by_first[n - 1 - k] : ends[n - 1 - k];
            const tli_fit_box *ended = &f->boxes[old];
            if (backwards ? ended->first <= box->last : ended->last >= box->first) break;
            tli_gap_give(g, f->offsets[old], f->offsets[old] + tli_fit_taken_bytes(f, ended));
        }
        if (g->failed) return;
        f->offsets[id] = tli_gap_take(f, g, box);
        height = tli_larger_u64(height, f->offsets[id] + box->bytes);
    }
    if (g->failed || height >= f->best_height) return;
    f->best_height = height;
    tli_copy(f->best, f->offsets, (size_t)n * sizeof *f->best);
}

// Sweep forwards, and where that is above the bound, backwards.
static void tli_fit_sweep(tli_fit *f, uint64_t bound) {
    int32_t i, backwards;
    tli_gaps g;
    for (i = 0; i < f->count; i++) f->order[i] = i;
    tli_fit_sort(f, TLI_FIT_END, f->order);
    tli_zero(&g, sizeof g);
    g.env = f->env;
    for (backwards = 0; backwards < 2 && f->best_height > bound && !g.failed; backwards++) {
        if (backwards && f->work + g.work >= f->work_limit) break;
        tli_gap_reset(&g);
        tli_fit_sweep_items(f, &g, f->order, backwards);
    }
    f->work += 4 * g.work;      // a visit of a gap is a few elementary steps
    f->failed = g.failed;
    tli_release(f->env, g.gaps);
}
#endif  // TL_STRATEGY_IMPLEMENTATION

