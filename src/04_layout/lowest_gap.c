#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// ============================================================================
// [4] LAYOUT (implementation)
// ============================================================================

// -- layout: boxes in the lowest gap --
//
// A box is a buffer, or several that lie over each other at one offset. Time is divided into sections: points
// at which a buffer begins and after which one ends before the next begins. Two boxes meet in time exactly if
// they meet in a section, and the bytes that are live are most in one.
//
//     boxes     |--a--|                  begins at 0 and 1, then a ends; begins at 4, then b and c end:
//                  |------b------|       two sections, {a, b} and {b, c}
//                           |--c-|
//
// A pass puts the boxes one after the other into the lowest gap that is free in all their sections. The boxes
// that are placed and live at the same time are found in a tree over the boxes by first section, of which each
// node knows the last section that a placed box below it reaches.
//
// All offsets are multiples of the unit, the least alignment, so a box takes its bytes rounded up to it; only
// of the box on top the bytes themselves count. Blocks begin at multiples of every alignment, so a box that
// would lie in two of them lies lowest at the beginning of the second.

// A box that takes some of its bytes only at times has pieces: sections in which it takes the same bytes.

typedef struct tli_fit_piece {
    int32_t  first, last;               // sections
    int32_t  count;                     // pieces of the box from this one on
    uint64_t from, end;                 // bytes of the box, rounded to the unit
} tli_fit_piece;

typedef struct tli_fit_box {
    uint64_t bytes, pin;                // pin UINT64_MAX = none
    uint64_t length;                    // steps
    int32_t  first, last;               // sections, both included
    int32_t  pieces;                    // 1 + number of its first piece; 0 = takes all bytes in all sections
    uint8_t  alignment_bits;            // its logarithm
} tli_fit_box;

typedef struct tli_fit_taken { uint64_t first, end; } tli_fit_taken;   // bytes of a box that is placed

typedef struct tli_fit {
    tl_env   *env;
    tli_fit_box  *boxes;        // [count]
    const tli_fit_piece *pieces;
    int32_t   count;
    int32_t  *order;        // [count] boxes as the pass takes them
    int32_t  *by_first;     // [count] boxes by first section
    int32_t  *reach;        // [2 * leaf_count] last section of placed boxes below a node of the tree; -1 = none
    int32_t   leaf_count;
    tli_fit_taken *taken;   // scratch: what is taken where a box is to lie
    int32_t   taken_capacity;
    uint64_t *offsets;      // [count] of the present pass; UINT64_MAX = not placed
    uint64_t *best;         // [count] of the lowest pass
    uint64_t  best_height;  // UINT64_MAX = there was no pass yet
    uint64_t  work, work_limit;
    uint64_t  unit;         // the least alignment
    uint64_t  block;        // bytes of a block; 0 = there are none
    int       pins_overlap, failed;     // failed: no memory
} tli_fit;

// What a pass takes first: the box with most bytes, most bytes x steps or most steps, the one that begins
// first, or the one that ends last.
enum { TLI_FIT_BYTES, TLI_FIT_AREA, TLI_FIT_LENGTH, TLI_FIT_START, TLI_FIT_END };

static uint64_t tli_align_up(uint64_t offset, uint64_t alignment) {
    return (offset + alignment - 1) & ~(alignment - 1);
}

// What a box takes of its place, so that the next one is aligned to the unit.
static uint64_t tli_fit_taken_bytes(const tli_fit *f, const tli_fit_box *box) {
    return tli_align_up(box->bytes, f->unit);
}

static uint64_t tli_fit_align(const tli_fit_box *box, uint64_t offset) {
    return tli_align_up(offset, (uint64_t)1 << box->alignment_bits);
}

// Whether bytes at an offset lie in two blocks. No sum overflows: offsets and bytes are below 2^62.
static int tli_is_split(uint64_t offset, uint64_t bytes, uint64_t block) {
    return block && offset % block + bytes > block;
}

// The offset itself, or where the next block begins.
static uint64_t tli_lift_into_block(uint64_t offset, uint64_t bytes, uint64_t block) {
    return tli_is_split(offset, bytes, block) ? offset - offset % block + block : offset;
}

// The lowest offset from `offset` on at which a box is aligned and lies in one block.
static uint64_t tli_fit_lift(const tli_fit *f, const tli_fit_box *box, uint64_t offset) {
    return tli_lift_into_block(tli_fit_align(box, offset), box->bytes, f->block);
}

static void tli_fit_free(tli_fit *f) {
    tli_release(f->env, f->order);
    tli_release(f->env, f->by_first);
    tli_release(f->env, f->reach);
    tli_release(f->env, f->taken);
    tli_release(f->env, f->offsets);
    tli_release(f->env, f->best);
}

// Bytes times steps, as far as 64 bits go.
static uint64_t tli_fit_area(uint64_t bytes, uint64_t length) {
    uint64_t area;
    return tli_mul_u64(bytes, length, &area) ? area : UINT64_MAX;
}

// What an order sorts by, largest first.
static uint64_t tli_fit_key(const tli_fit *f, int32_t order, int32_t i) {
    const tli_fit_box *box = &f->boxes[i];
    switch (order) {
    case TLI_FIT_BYTES: return box->bytes;
    case TLI_FIT_AREA: return tli_fit_area(box->bytes, box->length);
    case TLI_FIT_LENGTH: return box->length;
    case TLI_FIT_END: return (uint64_t)box->last << 32 | (uint64_t)(INT32_MAX - box->first);
    default: return (uint64_t)(INT32_MAX - box->first) << 32 | (uint64_t)box->last;
    }
}

// Whether box a comes before box b: by the key, then the larger, then the earlier in the list.
static int tli_fit_is_before(const tli_fit *f, int32_t order, int32_t a, int32_t b) {
    uint64_t x = tli_fit_key(f, order, a), y = tli_fit_key(f, order, b);
    if (x != y) return x > y;
    if (f->boxes[a].bytes != f->boxes[b].bytes) return f->boxes[a].bytes > f->boxes[b].bytes;
    return a < b;
}

#ifdef TLI_INVARIANTS
// The boxes stand in an order.
static int tli_fit_is_sorted(const tli_fit *f, int32_t order, const int32_t *items) {
    int32_t i;
    for (i = 1; i < f->count; i++) if (!tli_fit_is_before(f, order, items[i - 1], items[i])) return 0;
    return 1;
}
#endif

// Sort boxes by heap sort: no order of them makes it slow.
static void tli_fit_sort(tli_fit *f, int32_t order, int32_t *items) {
    int32_t end, root, at, child, swap;
    for (end = f->count, root = f->count / 2; end > 1;) {
        if (root > 0) root--;
        else { end--; swap = items[0]; items[0] = items[end]; items[end] = swap; }
        for (at = root; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && tli_fit_is_before(f, order, items[child], items[child + 1])) child++;
            if (!tli_fit_is_before(f, order, items[at], items[child])) break;
            swap = items[at]; items[at] = items[child]; items[child] = swap;
        }
        f->work += 4;
    }
    TLI_INVARIANT(tli_fit_is_sorted(f, order, items));
}

// Get memory for passes over the boxes. 0 = there is none.
static int tli_fit_init(tli_fit *f) {
    uint64_t count = (uint64_t)f->count;
    int32_t i;
    for (f->leaf_count = 1; f->leaf_count < f->count; f->leaf_count *= 2) { }
    f->order = (int32_t *)tli_alloc_array(f->env, count, sizeof *f->order);
    f->by_first = (int32_t *)tli_alloc_array(f->env, count, sizeof *f->by_first);
    f->reach = (int32_t *)tli_alloc_array(f->env, 2 * (uint64_t)f->leaf_count, sizeof *f->reach);
    f->offsets = (uint64_t *)tli_alloc_array(f->env, count, sizeof *f->offsets);
    f->best = (uint64_t *)tli_alloc_array(f->env, count, sizeof *f->best);
    if (!f->order || !f->by_first || !f->reach || !f->offsets || !f->best) return 0;
    f->best_height = UINT64_MAX;
    for (i = 0; i < f->count; i++) f->by_first[i] = i;
    tli_fit_sort(f, TLI_FIT_START, f->by_first);
    TLI_INVARIANT(f->leaf_count >= f->count);
    return 1;
}

// Where a box stands in by_first.
static int32_t tli_fit_position(const tli_fit *f, int32_t box) {
    int32_t low = 0, high = f->count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2, other = f->by_first[middle];
        if (other == box || tli_fit_is_before(f, TLI_FIT_START, other, box)) low = middle;
        else high = middle;
    }
    return low;
}

#ifdef TLI_INVARIANTS
// From a leaf of the tree to its root each node knows the last section that a placed box below it reaches.
static int tli_fit_reach_holds(const tli_fit *f, int32_t at) {
    while ((at /= 2) > 0) {
        int32_t low = f->reach[2 * at], high = f->reach[2 * at + 1];
        if (f->reach[at] != (low > high ? low : high)) return 0;
    }
    return 1;
}
#endif

static void tli_fit_put(tli_fit *f, int32_t box, uint64_t offset) {
    int32_t at = f->leaf_count + tli_fit_position(f, box);
    f->offsets[box] = offset;
    for (; at; at /= 2)
        if (f->reach[at] < f->boxes[box].last) f->reach[at] = f->boxes[box].last;
    TLI_INVARIANT(tli_fit_reach_holds(f, f->leaf_count + tli_fit_position(f, box)));
}

static int32_t tli_fit_count_pieces(const tli_fit *f, const tli_fit_box *box) {
    return box->pieces ? f->pieces[box->pieces - 1].count : 0;
}

static tli_fit_piece tli_fit_find_piece(const tli_fit *f, const tli_fit_box *box, int32_t k) {
    tli_fit_piece piece;
    if (box->pieces) return f->pieces[box->pieces - 1 + k];
    piece.first = box->first;
    piece.last = box->last;
    piece.count = 1;
    piece.from = 0;
    piece.end = tli_fit_taken_bytes(f, box);
    return piece;
}

// Add what a piece of a placed box takes to the list taken[] of another box of `bytes` bytes: the range that
// this whole box must not overlap, so that its piece `other` does not meet the piece.
static void tli_fit_add_taken(tli_fit *f, uint64_t offset, const tli_fit_piece *piece, uint64_t bytes,
                              const tli_fit_piece *other, int32_t *count) {
    void *array = f->taken;
    if (piece->first > other->last || other->first > piece->last || offset + piece->end <= other->from) return;
    if (!tli_grow(f->env, &array, &f->taken_capacity, *count, (int64_t)*count + 1, sizeof *f->taken)) {
        f->failed = 1;
        return;
    }
    f->taken = (tli_fit_taken *)array;
    f->taken[*count].first = offset + piece->from + (bytes - other->end);
    f->taken[(*count)++].end = offset + piece->end - other->from;
    TLI_INVARIANT(*count <= f->taken_capacity);
}

// The same for all pieces of both.
static void tli_fit_add_pieces(tli_fit *f, int32_t placed, const tli_fit_box *box, int32_t *count) {
    const tli_fit_box *other = &f->boxes[placed];
    int32_t i, k, other_count = tli_fit_count_pieces(f, other), count_of_box = tli_fit_count_pieces(f, box);
    for (i = 0; !i || i < other_count; i++)
        for (k = 0; (!k || k < count_of_box) && !f->failed; k++) {
            tli_fit_piece a = tli_fit_find_piece(f, other, i), b = tli_fit_find_piece(f, box, k);
            tli_fit_add_taken(f, f->offsets[placed], &a, tli_fit_taken_bytes(f, box), &b, count);
        }
    f->work += (uint64_t)other_count * (uint64_t)(count_of_box + 1);
}

// List what placed boxes take in the sections of a box; returns the number of entries of taken[]. The tree is
// walked in order, without a stack: from a node that has nothing to the next one beside or above it.
static int32_t tli_fit_list_taken(tli_fit *f, const tli_fit_box *box) {
    int32_t at = 1, count = 0, position;
    for (;;) {
        f->work++;
        if (f->reach[at] >= box->first) {
            if (at < f->leaf_count) { at *= 2; continue; }
            position = at - f->leaf_count;
            if (f->boxes[f->by_first[position]].first > box->last) break;   // and so do all behind it
            tli_fit_add_pieces(f, f->by_first[position], box, &count);
            if (f->failed) return 0;
        }
        while (at & 1) at /= 2;
        if (!at) break;
        at++;
    }
    return count;
}

#ifdef TLI_INVARIANTS
// What is taken stands in order of its first byte.
static int tli_fit_taken_is_sorted(const tli_fit *f, int32_t count) {
    int32_t i;
    for (i = 1; i < count; i++) if (f->taken[i - 1].first > f->taken[i].first) return 0;
    return 1;
}
#endif

// Sort what is taken by its first byte: by insertion if there is little, else by heap sort.
static void tli_fit_sort_taken(tli_fit *f, int32_t count) {
    tli_fit_taken *g = f->taken, swap;
    int32_t i, at, child, end, root;
    for (i = 1; i < count && count <= 16; i++)
        for (at = i; at && g[at].first < g[at - 1].first; at--) {
            swap = g[at];
            g[at] = g[at - 1];
            g[at - 1] = swap;
        }
    for (end = count, root = count / 2; count > 16 && end > 1;) {
        if (root > 0) root--;
        else { end--; swap = g[0]; g[0] = g[end]; g[end] = swap; }
        for (at = root; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && g[child].first < g[child + 1].first) child++;
            if (g[at].first >= g[child].first) break;
            swap = g[at]; g[at] = g[child]; g[child] = swap;
        }
    }
    f->work += (uint64_t)count * (count > 16 ? 8 : 2);
    TLI_INVARIANT(f->failed || tli_fit_taken_is_sorted(f, count));
}

#ifdef TLI_INVARIANTS
// A box lies at an offset in none of the bytes that are taken, aligned and in one block.
static int tli_fit_is_free(const tli_fit *f, const tli_fit_box *box, int32_t count, uint64_t offset) {
    uint64_t end = offset + tli_fit_taken_bytes(f, box);
    int32_t i;
    for (i = 0; i < count; i++) if (f->taken[i].first < end && f->taken[i].end > offset) return 0;
    return offset == tli_fit_lift(f, box, offset);
}
#endif

// The lowest offset at which a box lies in a gap.
static uint64_t tli_fit_find_gap(tli_fit *f, const tli_fit_box *box) {
    int32_t count = tli_fit_list_taken(f, box), i;
    uint64_t offset = 0, bytes = tli_fit_taken_bytes(f, box);
    tli_fit_sort_taken(f, count);
    for (i = 0; i < count && f->taken[i].first < offset + bytes; i++)
        if (f->taken[i].end > offset) offset = tli_fit_lift(f, box, f->taken[i].end);
    TLI_INVARIANT(f->failed || tli_fit_is_free(f, box, count, offset));
    return offset;
}

// Place a pinned box; pins_overlap is set where bytes of it are taken.
static void tli_fit_put_pinned(tli_fit *f, int32_t box) {
    const tli_fit_box *b = &f->boxes[box];
    int32_t count = tli_fit_list_taken(f, b), i;
    uint64_t end = b->pin + tli_fit_taken_bytes(f, b);
    for (i = 0; i < count; i++)
        if (f->taken[i].first < end && b->pin < f->taken[i].end) f->pins_overlap = 1;
    tli_fit_put(f, box, b->pin);
    TLI_INVARIANT(f->offsets[box] == b->pin);
}

#ifdef TLI_INVARIANTS
// Where the boxes are few, no two take the same bytes in the same section.
static int tli_fit_is_apart(const tli_fit *f) {
    int32_t a, b, i, k;
    for (a = 0; a < f->count && f->count <= 128; a++)
        for (b = a + 1; b < f->count; b++) {
            const tli_fit_box *x = &f->boxes[a], *y = &f->boxes[b];
            for (i = 0; !i || i < tli_fit_count_pieces(f, x); i++)
                for (k = 0; !k || k < tli_fit_count_pieces(f, y); k++) {
                    tli_fit_piece p = tli_fit_find_piece(f, x, i), q = tli_fit_find_piece(f, y, k);
                    if (p.first > q.last || q.first > p.last) continue;
                    if (f->best[a] + p.from < f->best[b] + q.end && f->best[b] + q.from < f->best[a] + p.end)
                        return 0;
                }
        }
    return 1;
}

// The best offsets reach exactly the best height, and unless pins do, no boxes overlap.
static int tli_fit_best_holds(const tli_fit *f) {
    uint64_t height = 0;
    int32_t i;
    for (i = 0; i < f->count; i++) height = tli_larger_u64(height, f->best[i] + f->boxes[i].bytes);
    return height == f->best_height && (f->pins_overlap || tli_fit_is_apart(f));
}
#endif

// Place all boxes in an order and keep the result if it is the lowest. Where the work is spent, the first pass
// puts what is left on top, and later ones end.
static void tli_fit_run(tli_fit *f, int32_t order) {
    uint64_t height = 0;
    int32_t i;
    for (i = 0; i < 2 * f->leaf_count; i++) f->reach[i] = -1;
    for (i = 0; i < f->count; i++) f->order[i] = i;
    tli_fit_sort(f, order, f->order);
    for (i = 0; i < f->count; i++) {
        const tli_fit_box *box = &f->boxes[f->order[i]];
        if (box->pin == UINT64_MAX) continue;
        tli_fit_put_pinned(f, f->order[i]);
        if (box->pin + box->bytes > height) height = box->pin + box->bytes;
    }
    for (i = 0; i < f->count; i++) {
        const tli_fit_box *box = &f->boxes[f->order[i]];
        int is_over = f->work >= f->work_limit;
        uint64_t offset;
        if (box->pin != UINT64_MAX) continue;
        if (f->failed || (is_over && f->best_height != UINT64_MAX)) return;
        offset = is_over ? tli_fit_lift(f, box, height) : tli_fit_find_gap(f, box);
        tli_fit_put(f, f->order[i], offset);
        if (offset + box->bytes > height) height = offset + box->bytes;
    }
    if (height >= f->best_height) return;
    f->best_height = height;
    tli_copy(f->best, f->offsets, (size_t)f->count * sizeof *f->best);
    TLI_INVARIANT(f->failed || tli_fit_best_holds(f));
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
