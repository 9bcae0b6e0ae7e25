#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- banks: who lives where --
//
// A buffer is in a bank, or in none yet, which costs more than any bank. For each bank with a capacity a tree
// over the buffers by first section knows which are in it, as in the passes of a layout, so the buffers that
// one would meet there are found fast, and with them the gaps. A buffer moves where a gap lets it; what is in
// its way may be moved elsewhere if that pays; or the bank is laid out anew (tl_plan_layout). So whatever is
// in such a bank has an offset in it, and nothing is accepted that has none. A bank without a capacity takes
// everything, and its offsets are made at the end; where there are pins, its gaps are looked for as well.

#define TLI_BANKS_WORK UINT64_C(100000000)  // default work limit, beside 20 000 a buffer
#define TLI_BANKS_MOST 32                   // banks
#define TLI_BANKS_NONE 32                   // lives nowhere yet
#define TLI_BANKS_OPEN (UINT64_C(1) << 62)  // capacity of a bank that has none
#define TLI_BANKS_LAYOUT 200000             // work of a layout that decides one move
#define TLI_BANKS_MOVED 16                  // buffers that one may put elsewhere

enum { TLI_BANKS_FITS, TLI_BANKS_NEVER, TLI_BANKS_STOPPED };    // answers of a layout

typedef struct tli_banks {
    tl_env   *env;
    tl_env    silent;               // its memory, without its error and log: for layouts that may fail
    const tl_bank_desc *desc;
    int32_t   count, bank_count, section_count, leaf_count;
    tl_bank   banks[TLI_BANKS_MOST];    // of the present question (tli_banks_ask); a capacity of 0 is OPEN here
    int32_t   by_price[TLI_BANKS_MOST];
    int       asks_bytes;           // of that question: bytes are priced, not what is moved
    uint32_t *allowed;              // [count] banks that a buffer may live in and fits into
    int32_t  *first, *last;         // [count] sections; of no bytes: -1
    int64_t  *steps;                // [section_count] step at which a section begins
    int32_t  *by_first, *position;  // [count] buffers by first section
    int32_t  *reach[TLI_BANKS_MOST];    // [2 * leaf_count] last section of what is in a bank; NULL = takes all
    int64_t  *fullest[TLI_BANKS_MOST], *added[TLI_BANKS_MOST];   // [2 * section_leaves], [section_leaves] bytes
    int32_t   section_leaves;
    uint64_t  top[TLI_BANKS_MOST];  // nothing in the bank ends above it
    uint8_t  *bank, *best_bank;     // [count]
    uint64_t *offset, *best_offset; // [count]
    uint64_t  cost, best_cost;      // best_cost: UINT64_MAX = there is none yet
    int32_t   missing;              // buffers that live nowhere
    uint64_t  dearest, penalty;     // cost of all in their dearest banks; of one that lives nowhere
    int32_t  *by_offset[TLI_BANKS_MOST], sizes[TLI_BANKS_MOST];     // [count] what is in a bank; how many
    int32_t  *slot;                 // [count] where a buffer stands in near_ids
    int32_t  *near_ids, *near_order, near_count;    // [count] what a buffer meets in a bank, and by offset
    uint64_t *near_keys;            // [count]
    uint64_t *keys;                 // [count] what a pass sorts by
    int32_t  *order;                // [count]
    uint32_t *tried;                // [count] of the search, by depth: bits of banks that were tried
    tl_layout_buffer *members;      // [count] of one bank
    int32_t   member_pairs;         // of them
    int32_t  *member_ids, *number_of;   // [count]
    uint64_t *fill;                 // [section_count + 1] bytes
    uint64_t *multipliers[TLI_BANKS_MOST];    // [section_count] price of a byte there; NULL = has no capacity
    uint64_t *sums[TLI_BANKS_MOST];     // [section_count + 1] of the multipliers before a section
    uint64_t *used[TLI_BANKS_MOST];     // [section_count + 1] bytes at these multipliers
    uint64_t *best_multipliers[TLI_BANKS_MOST];
    int32_t   bits, halvings, stalls;   // of a cost behind the point; of steps; steps without a better bound
    uint64_t  relaxed, bound;       // best sum with multipliers; no plan costs less than bound
    uint64_t  work, end;            // so far; at which what runs now ends
    int       has_pins, has_pairs, avoids_pairs, failed;    // failed: no memory
} tli_banks;

static uint64_t tli_banks_bytes(const tli_banks *b, int32_t i) { return b->desc->buffers[i].bytes; }

static uint64_t tli_banks_alignment(const tli_banks *b, int32_t i, int32_t bank) {
    return tli_larger_u64(tli_layout_alignment(&b->desc->buffers[i]), b->banks[bank].alignment);
}

// What a buffer takes of a bank, so that the next one is aligned to it.
static uint64_t tli_banks_rounded(const tli_banks *b, int32_t i, int32_t bank) {
    return tli_align_up(tli_banks_bytes(b, i), b->banks[bank].alignment);
}

static uint64_t tli_banks_moved(const tli_banks *b, int32_t i) {
    return b->asks_bytes || !b->desc->moved_bytes ? tli_banks_bytes(b, i) : b->desc->moved_bytes[i];
}

static uint64_t tli_banks_price(const tli_banks *b, int32_t i, int32_t bank) {
    return bank == TLI_BANKS_NONE ? b->penalty : tli_banks_moved(b, i) * b->banks[bank].price;
}

static int tli_banks_may(const tli_banks *b, int32_t i, int32_t bank) { return b->allowed[i] >> bank & 1; }

// What a buffer costs more in the next dearer place that it may live in.
static uint64_t tli_banks_saves(const tli_banks *b, int32_t i, int32_t bank) {
    uint64_t price = tli_banks_price(b, i, bank);
    int32_t k;
    for (k = 0; k < b->bank_count; k++) {
        int32_t other = b->by_price[k];
        if (tli_banks_may(b, i, other) && tli_banks_price(b, i, other) > price)
            return tli_banks_price(b, i, other) - price;
    }
    return b->penalty > price ? b->penalty - price : 0;
}

// Whether two buffers may begin at one offset.
static int tli_banks_is_pair(const tli_banks *b, int32_t i, int32_t other) {
    const tl_layout_buffer *buffers = b->desc->buffers;
    if (buffers[i].in_place && buffers[i].over == other) return 1;
    return buffers[other].in_place && buffers[other].over == i;
}

// What a pair saves in a bank in the section that both are in: bytes of the smaller one.
static uint64_t tli_banks_shared(const tli_banks *b, int32_t i, int32_t bank) {
    uint64_t own = tli_banks_rounded(b, i, bank), other = tli_banks_rounded(b, b->desc->buffers[i].over, bank);
    return own < other ? own : other;
}

// -- banks: how full a bank is --
//
// A tree over the sections: of each node the most bytes in a section below it, less what was added above it.
// Of a buffer that may lie over another that may be in the bank, the shared bytes do not count, so what is too
// full is so in every layout.

static void tli_banks_add_fill(tli_banks *b, int32_t bank, int32_t at, int64_t bytes) {
    b->fullest[bank][at] += bytes;
    if (at < b->section_leaves) b->added[bank][at] += bytes;
}

// Add bytes to sections first..last.
static void tli_banks_add_bytes(tli_banks *b, int32_t bank, int32_t first, int32_t last, int64_t bytes) {
    int64_t *fullest = b->fullest[bank], *added = b->added[bank];
    int32_t low = first + b->section_leaves, high = last + b->section_leaves + 1, side, at;
    for (; low < high; low /= 2, high /= 2, b->work++) {
        if (low & 1) tli_banks_add_fill(b, bank, low++, bytes);
        if (high & 1) tli_banks_add_fill(b, bank, --high, bytes);
    }
    for (side = 0; side < 2; side++)
        for (at = ((side ? last : first) + b->section_leaves) / 2; at; at /= 2, b->work++)
            fullest[at] = added[at] + fullest[2 * at + (fullest[2 * at] < fullest[2 * at + 1])];
}

// Add a buffer (sign 1), or take it away (-1).
static void tli_banks_fill(tli_banks *b, int32_t i, int32_t bank, int64_t sign) {
    const tl_layout_buffer *buffer = &b->desc->buffers[i];
    tli_banks_add_bytes(b, bank, b->first[i], b->last[i], sign * (int64_t)tli_banks_rounded(b, i, bank));
    if (buffer->in_place && tli_banks_may(b, buffer->over, bank))
        tli_banks_add_bytes(b, bank, b->first[i], b->first[i], -sign * (int64_t)tli_banks_shared(b, i, bank));
    TLI_INVARIANT(b->fullest[bank][1] >= 0);
}

// The most bytes in sections first..last.
static int64_t tli_banks_find_fill(tli_banks *b, int32_t bank, int32_t first, int32_t last) {
    int64_t *fullest = b->fullest[bank], *added = b->added[bank], most = INT64_MIN;
    int32_t low = first + b->section_leaves, high = last + b->section_leaves + 1, side, bit, at;
    for (side = 0; side < 2; side++)
        for (bit = tli_log2_u64((uint64_t)b->section_leaves); bit > 0; bit--, b->work++) {
            at = (side ? high - 1 : low) >> bit;
            if (!added[at]) continue;
            tli_banks_add_fill(b, bank, 2 * at, added[at]);
            tli_banks_add_fill(b, bank, 2 * at + 1, added[at]);
            added[at] = 0;
        }
    for (; low < high; low /= 2, high /= 2, b->work++) {
        if (low & 1) { if (fullest[low] > most) most = fullest[low]; low++; }
        if (high & 1) { high--; if (fullest[high] > most) most = fullest[high]; }
    }
    return most;
}

// Whether the sums alone show that a buffer that is not in a bank fits no layout of it.
static int tli_banks_is_full(tli_banks *b, int32_t i, int32_t bank) {
    int64_t most = (int64_t)tli_align_up(b->banks[bank].capacity_bytes, b->banks[bank].alignment);
    int is_full;
    tli_banks_fill(b, i, bank, 1);
    is_full = tli_banks_find_fill(b, bank, b->first[i], b->last[i]) > most;
    tli_banks_fill(b, i, bank, -1);
    return is_full;
}

#ifdef TLI_INVARIANTS
// The cost is that of where all buffers live; nowhere, too.
static int tli_banks_sums_hold(const tli_banks *b) {
    uint64_t cost = 0;
    int32_t i, missing = 0;
    for (i = 0; i < b->count; i++) {
        cost += tli_banks_price(b, i, b->bank[i]);
        missing += b->bank[i] == TLI_BANKS_NONE;
    }
    return cost == b->cost && missing == b->missing;
}

// A buffer ends within its bank, and what is above it there and meets it in time lies over none of its bytes.
static int tli_banks_place_holds(const tli_banks *b, int32_t bank, int32_t rank) {
    int32_t i = b->by_offset[bank][rank], k;
    uint64_t end = b->offset[i] + tli_banks_bytes(b, i);
    if (b->bank[i] != bank || end > b->banks[bank].capacity_bytes || end > b->top[bank]) return 0;
    for (k = rank + 1; k < b->sizes[bank] && b->offset[b->by_offset[bank][k]] < end; k++) {
        int32_t other = b->by_offset[bank][k];
        if (b->offset[other] < b->offset[i]) return 0;
        if (b->first[other] > b->last[i] || b->last[other] < b->first[i]) continue;
        if (b->offset[other] != b->offset[i] || !tli_banks_is_pair(b, i, other)) return 0;
    }
    return 1;
}

// The sums hold, and whatever is in a bank has a place there that nothing else takes.
static int tli_banks_hold(const tli_banks *b) {
    int32_t bank, rank;
    for (bank = 0; bank < b->bank_count; bank++)
        for (rank = 0; rank < b->sizes[bank]; rank++) if (!tli_banks_place_holds(b, bank, rank)) return 0;
    return tli_banks_sums_hold(b);
}
#endif

// -- banks: into a bank and out of it --

// Where a buffer stands in a bank by offset, or would.
static int32_t tli_banks_find_rank(const tli_banks *b, int32_t i, int32_t bank) {
    int32_t low = 0, high = b->sizes[bank];
    while (low < high) {
        int32_t middle = low + (high - low) / 2, other = b->by_offset[bank][middle];
        if (b->offset[other] != b->offset[i] ? b->offset[other] < b->offset[i] : other < i) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void tli_banks_insert(tli_banks *b, int32_t i, int32_t bank) {
    int32_t *items = b->by_offset[bank], at, rank = tli_banks_find_rank(b, i, bank);
    for (at = b->sizes[bank]++; at > rank; at--) items[at] = items[at - 1];
    items[rank] = i;
    b->work += (uint64_t)(b->sizes[bank] - rank) / 16;
    TLI_INVARIANT(rank == tli_banks_find_rank(b, i, bank));
}

static void tli_banks_delete(tli_banks *b, int32_t i, int32_t bank) {
    int32_t *items = b->by_offset[bank], at, rank = tli_banks_find_rank(b, i, bank);
    TLI_INVARIANT(rank < b->sizes[bank] && items[rank] == i);
    b->sizes[bank]--;
    for (at = rank; at < b->sizes[bank]; at++) items[at] = items[at + 1];
    b->work += (uint64_t)(b->sizes[bank] - rank) / 16;
}

static void tli_banks_climb(tli_banks *b, int32_t i, int32_t bank, int32_t last) {
    int32_t *reach = b->reach[bank], at = b->leaf_count + b->position[i];
    for (reach[at] = last; (at /= 2) > 0; b->work++)
        reach[at] = reach[2 * at] > reach[2 * at + 1] ? reach[2 * at] : reach[2 * at + 1];
    TLI_INVARIANT(reach[1] >= last);
}

static void tli_banks_put(tli_banks *b, int32_t i, int32_t bank, uint64_t offset) {
    TLI_INVARIANT(bank == TLI_BANKS_NONE || tli_banks_may(b, i, bank));
    b->bank[i] = (uint8_t)bank;
    b->offset[i] = offset;
    b->cost += tli_banks_price(b, i, bank);
    if (bank == TLI_BANKS_NONE) { b->missing++; return; }
    if (!tli_banks_bytes(b, i) || !b->reach[bank]) return;
    b->top[bank] = tli_larger_u64(b->top[bank], offset + tli_banks_bytes(b, i));
    tli_banks_climb(b, i, bank, b->last[i]);
    tli_banks_fill(b, i, bank, 1);
    tli_banks_insert(b, i, bank);
    TLI_INVARIANT(tli_banks_bytes(b, i) <= b->banks[bank].capacity_bytes);
}

// Take a buffer out. It has no price until it is put somewhere.
static void tli_banks_take(tli_banks *b, int32_t i) {
    int32_t bank = b->bank[i];
    TLI_INVARIANT(b->cost >= tli_banks_price(b, i, bank));
    b->cost -= tli_banks_price(b, i, bank);
    b->bank[i] = TLI_BANKS_NONE;
    if (bank == TLI_BANKS_NONE) { b->missing--; return; }
    if (!tli_banks_bytes(b, i) || !b->reach[bank]) return;
    tli_banks_climb(b, i, bank, -1);
    tli_banks_fill(b, i, bank, -1);
    tli_banks_delete(b, i, bank);
}

static void tli_banks_clear(tli_banks *b) {
    int32_t i, k;
    for (k = 0; k < b->bank_count; k++) {
        b->top[k] = 0;
        b->sizes[k] = 0;
        if (!b->reach[k]) continue;
        for (i = 0; i < 2 * b->leaf_count; i++) b->reach[k][i] = -1;
        tli_zero(b->fullest[k], 3 * (size_t)b->section_leaves * sizeof *b->fullest[k]);
        b->work += (uint64_t)b->leaf_count / 2;
    }
    for (i = 0; i < b->count; i++) b->bank[i] = TLI_BANKS_NONE;
    b->cost = 0;
    b->missing = 0;
    TLI_INVARIANT(b->cost == 0 && b->missing == 0);
}

// Put every buffer where the best plan has it, in the order of offsets: so each is put behind all that are in
// its bank already.
static void tli_banks_load(tli_banks *b) {
    int32_t at;
    tli_banks_clear(b);
    tli_sort_numbers(b->order, b->count, b->best_offset);
    b->work += (uint64_t)b->count * 16;
    for (at = 0; at < b->count; at++)
        tli_banks_put(b, b->order[at], b->best_bank[b->order[at]], b->best_offset[b->order[at]]);
    TLI_INVARIANT(tli_banks_hold(b));
}

static void tli_banks_keep(tli_banks *b) {
    if (b->missing || b->cost >= b->best_cost) return;
    b->best_cost = b->cost;
    tli_copy(b->best_bank, b->bank, (size_t)b->count);
    tli_copy(b->best_offset, b->offset, (size_t)b->count * sizeof *b->offset);
    TLI_INVARIANT(tli_banks_hold(b));
}

// -- banks: gaps --

// Sort the list by offset: it is picked from what is in the bank, or sorted where that is much more.
static void tli_banks_order(tli_banks *b, int32_t bank) {
    int32_t k, slot, count = 0;
    if (b->near_count < b->sizes[bank] / 8) {
        tli_sort_numbers(b->near_order, b->near_count, b->near_keys);
        b->work += (uint64_t)b->near_count * (b->near_count > 16 ? 16 : 6);
        return;
    }
    for (k = 0; count < b->near_count; k++) {
        slot = b->slot[b->by_offset[bank][k]];
        if (slot < b->near_count && b->near_ids[slot] == b->by_offset[bank][k]) b->near_order[count++] = slot;
    }
    b->work += (uint64_t)k;
}

// List what is in a bank and meets a buffer in time, by offset.
static void tli_banks_list(tli_banks *b, int32_t i, int32_t bank) {
    const int32_t *reach = b->reach[bank];
    int32_t at = 1;
    b->near_count = 0;
    for (;;) {
        b->work++;
        if (reach[at] >= b->first[i]) {
            int32_t other;
            if (at < b->leaf_count) { at *= 2; continue; }
            other = b->by_first[at - b->leaf_count];
            if (b->first[other] > b->last[i]) break;    // and so do all behind it
            b->near_keys[b->near_count] = b->offset[other];
            b->slot[other] = b->near_count;
            b->near_ids[b->near_count++] = other;
        }
        while (at & 1) at /= 2;
        if (!at) break;
        at++;
    }
    tli_banks_order(b, bank);
}

// Whether a buffer at an offset overlaps another of the list. Two that may begin at one offset and do so, do
// not, unless pairs are avoided.
static int tli_banks_is_hit(const tli_banks *b, int32_t i, uint64_t offset, int32_t other) {
    if (offset >= b->offset[other] + tli_banks_bytes(b, other) ||
        b->offset[other] >= offset + tli_banks_bytes(b, i)) return 0;
    return offset != b->offset[other] || b->avoids_pairs || !tli_banks_is_pair(b, i, other);
}

static int tli_banks_is_free(tli_banks *b, int32_t i, uint64_t offset) {
    int32_t k;
    b->work += (uint64_t)b->near_count;
    for (k = 0; k < b->near_count; k++) if (tli_banks_is_hit(b, i, offset, b->near_ids[k])) return 0;
    return 1;
}

// The lowest offset at which a buffer fits between those of the list, or lies over one; UINT64_MAX = none.
static uint64_t tli_banks_find_free(tli_banks *b, int32_t i, int32_t bank) {
    const tl_layout_buffer *buffer = &b->desc->buffers[i];
    uint64_t alignment = tli_banks_alignment(b, i, bank), offset = 0, capacity = b->banks[bank].capacity_bytes;
    int32_t k;
    if (buffer->is_pinned)
        return tli_banks_is_free(b, i, buffer->pinned_offset) ? buffer->pinned_offset : UINT64_MAX;
    for (k = 0; k < b->near_count; k++) {
        int32_t other = b->near_ids[b->near_order[k]];
        uint64_t end = b->offset[other] + tli_banks_bytes(b, other);
        if (b->offset[other] >= offset + buffer->bytes) break;
        if (end > offset) offset = tli_align_up(end, alignment);
    }
    b->work += (uint64_t)k;
    for (k = 0; k < b->near_count && b->has_pairs && !b->avoids_pairs; k++) {
        uint64_t over = b->offset[b->near_ids[k]];
        if (tli_banks_is_pair(b, i, b->near_ids[k]) && over < offset && !(over & (alignment - 1)) &&
            tli_banks_is_free(b, i, over)) offset = over;
    }
    return offset + buffer->bytes <= capacity ? offset : UINT64_MAX;
}

// The lowest offset for a buffer in a bank as it is. Where the work is spent, only the one above all that was
// ever in the bank is looked at. UINT64_MAX = none.
static uint64_t tli_banks_find_gap(tli_banks *b, int32_t i, int32_t bank) {
    if (!tli_banks_bytes(b, i) || !b->reach[bank]) return 0;
    if (b->work >= b->end && !b->desc->buffers[i].is_pinned) {
        uint64_t offset = tli_align_up(b->top[bank], tli_banks_alignment(b, i, bank));
        return offset + tli_banks_bytes(b, i) <= b->banks[bank].capacity_bytes ? offset : UINT64_MAX;
    }
    if (tli_banks_is_full(b, i, bank)) return UINT64_MAX;
    tli_banks_list(b, i, bank);
    return tli_banks_find_free(b, i, bank);
}

// Put a buffer into the cheapest bank with a gap, or nowhere.
static void tli_banks_place(tli_banks *b, int32_t i) {
    int32_t k;
    for (k = 0; k < b->bank_count; k++) {
        int32_t bank = b->by_price[k];
        uint64_t offset = tli_banks_may(b, i, bank) ? tli_banks_find_gap(b, i, bank) : UINT64_MAX;
        if (offset == UINT64_MAX) continue;
        tli_banks_put(b, i, bank, offset);
        return;
    }
    tli_banks_put(b, i, TLI_BANKS_NONE, 0);
}

// -- banks: a layout decides --

// List what is in a bank, and one more (-1 = none), as buffers for a layout.
static int32_t tli_banks_gather(tli_banks *b, int32_t bank, int32_t extra) {
    int32_t i, count = 0;
    b->member_pairs = 0;
    for (i = 0; i < b->count; i++) {
        b->number_of[i] = -1;
        if ((b->bank[i] != bank && i != extra) || !tli_banks_bytes(b, i)) continue;
        b->member_ids[count] = i;
        b->members[count] = b->desc->buffers[i];
        b->members[count].alignment = tli_banks_alignment(b, i, bank);
        b->number_of[i] = count++;
    }
    for (i = 0; i < count; i++) {
        tl_layout_buffer *member = &b->members[i];
        if (member->in_place) member->over = b->number_of[member->over];
        if (member->in_place && member->over < 0) member->in_place = member->over = 0;
        b->member_pairs += member->in_place;
    }
    b->work += (uint64_t)b->count / 2;
    return count;
}

// Sort what is in a bank by its new offsets.
static void tli_banks_sort(tli_banks *b, int32_t bank) {
    int32_t k;
    tli_sort_numbers(b->near_order, b->near_count, b->near_keys);
    for (k = 0; k < b->near_count; k++) b->by_offset[bank][k] = b->near_ids[b->near_order[k]];
    b->sizes[bank] = b->near_count;
}

// Lay out a bank, with one more buffer (-1 = none), which is in no bank. If that fits, *height is set, and
// offset[] of everything in it.
static int tli_banks_lay_out(tli_banks *b, int32_t bank, int32_t extra, uint64_t work_limit, uint64_t *height) {
    tl_layout_desc desc;
    tl_layout_plan plan;
    tl_result result;
    int32_t k;
    tli_zero(&desc, sizeof desc);
    desc.buffers = b->members;
    desc.buffer_count = tli_banks_gather(b, bank, extra);
    desc.capacity_bytes = b->banks[bank].capacity_bytes == TLI_BANKS_OPEN ? 0 : b->banks[bank].capacity_bytes;
    desc.work_limit = work_limit;
    result = tl_plan_layout(&b->silent, &desc, &plan);
    b->work += plan.work + 16 * (uint64_t)desc.buffer_count;
    if (result == TL_ERROR_NO_MEMORY) b->failed = 1;
    if (result == TL_ERROR_INVALID_ARG)     // pins overlap, unless a set of pairs was not tried
        return b->member_pairs <= TLI_LAYOUT_FEW ? TLI_BANKS_NEVER : TLI_BANKS_STOPPED;
    if (result) return plan.bound_bytes > desc.capacity_bytes ? TLI_BANKS_NEVER : TLI_BANKS_STOPPED;
    for (k = b->near_count = 0; k < desc.buffer_count; k++) {
        b->offset[b->member_ids[k]] = b->near_keys[b->near_count] = plan.offsets[k];
        b->near_ids[b->near_count] = b->member_ids[k];
        b->near_count += b->member_ids[k] != extra;
    }
    if (b->reach[bank]) tli_banks_sort(b, bank);
    *height = plan.height_bytes;
    TLI_INVARIANT(plan.height_bytes <= b->banks[bank].capacity_bytes);
    b->top[bank] = tli_larger_u64(b->top[bank], plan.height_bytes);
    tl_free_layout_plan(&b->silent, &plan);
    return TLI_BANKS_FITS;
}

// Put a buffer that is in no bank into one: into a gap, or by a new layout.
static int tli_banks_squeeze(tli_banks *b, int32_t i, int32_t bank) {
    uint64_t offset = tli_banks_find_gap(b, i, bank), height;
    int answer;
    if (offset == UINT64_MAX) {
        if (tli_banks_is_full(b, i, bank)) return TLI_BANKS_NEVER;
        answer = tli_banks_lay_out(b, bank, i, TLI_BANKS_LAYOUT, &height);
        if (answer) return answer;
        offset = b->offset[i];
    }
    tli_banks_put(b, i, bank, offset);
    return TLI_BANKS_FITS;
}

// -- banks: passes --

enum {
    TLI_BANKS_LISTED, TLI_BANKS_BYTES, TLI_BANKS_MOVES, TLI_BANKS_DENSITY, TLI_BANKS_SAVING,
    TLI_BANKS_MULTIPLIER
};

// What a buffer pays for its bytes in the sections that it is in.
static uint64_t tli_banks_multiplier(const tli_banks *b, int32_t i, int32_t bank) {
    const tl_layout_buffer *buffer = &b->desc->buffers[i];
    uint64_t sum, multiplier;
    if (!b->multipliers[bank] || !buffer->bytes) return 0;
    sum = b->sums[bank][b->last[i] + 1] - b->sums[bank][b->first[i]];
    if (!tli_mul_u64(sum, tli_banks_rounded(b, i, bank), &multiplier) || multiplier >> 61)
        return UINT64_C(1) << 61;
    if (buffer->in_place && tli_banks_may(b, buffer->over, bank))
        multiplier -= tli_banks_shared(b, i, bank) *
                (b->sums[bank][b->first[i] + 1] - b->sums[bank][b->first[i]]);
    return multiplier;
}

// What a pass sorts by in a bank, largest first.
static uint64_t tli_banks_key(const tli_banks *b, int32_t kind, int32_t i, int32_t bank) {
    const tl_layout_buffer *buffer = &b->desc->buffers[i];
    uint64_t length = tli_layout_time(buffer->last_step) - tli_layout_time(buffer->first_step) + 1;
    uint64_t saves;
    switch (kind) {
    case TLI_BANKS_LISTED: return 0;
    case TLI_BANKS_BYTES: return buffer->bytes;
    case TLI_BANKS_MOVES: return tli_banks_moved(b, i);
    case TLI_BANKS_DENSITY: return tli_fixed_ratio(tli_banks_moved(b, i), buffer->bytes);
    default: break;
    }
    if (buffer->is_pinned) return UINT64_MAX;
    saves = tli_banks_saves(b, i, bank);
    if (kind == TLI_BANKS_MULTIPLIER)
        return tli_fixed_ratio(saves << b->bits, tli_banks_multiplier(b, i, bank) + 1);
    return tli_fixed_ratio(saves, tli_fit_area(buffer->bytes, length));
}

// Give each buffer, in an order, the lowest gap of the cheapest bank that has one. That is the same bank by
// bank: what is in one depends on no dearer one.
static void tli_banks_pass(tli_banks *b, int32_t kind) {
    int32_t i, k, at;
    tli_banks_clear(b);
    for (k = 0; k < b->bank_count; k++) {
        int32_t bank = b->by_price[k];
        for (i = 0; i < b->count; i++) b->keys[i] = UINT64_MAX - tli_banks_key(b, kind, i, bank);
        tli_sort_numbers(b->order, b->count, b->keys);
        b->work += (uint64_t)b->count * (kind > TLI_BANKS_DENSITY ? 24 : 16);
        for (at = 0; at < b->count; at++) {
            uint64_t offset;
            i = b->order[at];
            if (b->bank[i] != TLI_BANKS_NONE || !tli_banks_may(b, i, bank)) continue;
            offset = tli_banks_find_gap(b, i, bank);
            if (offset != UINT64_MAX) tli_banks_put(b, i, bank, offset);
        }
    }
    for (i = 0; i < b->count; i++)
        if (b->bank[i] == TLI_BANKS_NONE) tli_banks_put(b, i, TLI_BANKS_NONE, 0);
    TLI_INVARIANT(tli_banks_sums_hold(b));
}

// -- banks: moves and exchanges --

// What it costs to put elsewhere what a buffer at an offset hits: UINT64_MAX = `most` or more, or too many.
// near_keys says what each costs.
static uint64_t tli_banks_loss(tli_banks *b, int32_t i, int32_t bank, uint64_t offset, uint64_t most) {
    uint64_t loss = 0, end = offset + tli_banks_bytes(b, i);
    int32_t k, count = 0;
    if (end > b->banks[bank].capacity_bytes) return UINT64_MAX;
    for (k = 0; k < b->near_count && loss < most; k++) {
        int32_t other = b->near_order[k];
        if (b->offset[b->near_ids[other]] >= end) break;
        if (!tli_banks_is_hit(b, i, offset, b->near_ids[other])) continue;
        loss += b->near_keys[other];
        if (++count > TLI_BANKS_MOVED) loss = UINT64_MAX;
    }
    b->work += (uint64_t)k;
    return loss < most ? loss : UINT64_MAX;
}

// The offset at which a buffer hits what is cheapest to put elsewhere, less than it gains; UINT64_MAX = none.
// It is at the beginning or the end of the bank, or just above or below another buffer.
static uint64_t tli_banks_find_cheap(tli_banks *b, int32_t i, int32_t bank, uint64_t gain) {
    const tl_layout_buffer *buffer = &b->desc->buffers[i];
    uint64_t alignment = tli_banks_alignment(b, i, bank), found = UINT64_MAX, least = gain;
    int32_t k, side;
    for (k = 0; k < b->near_count; k++) b->near_keys[k] = tli_banks_saves(b, b->near_ids[k], bank);
    b->work += 4 * (uint64_t)b->near_count;
    for (k = -1; k < b->near_count && b->work < b->end && least; k++)
        for (side = 0; side < 2; side++) {
            int32_t other = k < 0 ? 0 : b->near_ids[k];
            uint64_t end = k < 0 ? b->banks[bank].capacity_bytes : b->offset[other], loss;
            uint64_t offset = k < 0 ? 0 : b->offset[other] + tli_banks_bytes(b, other);
            if (side && end < buffer->bytes) continue;
            offset = side ? (end - buffer->bytes) & ~(alignment - 1) : tli_align_up(offset, alignment);
            if (buffer->is_pinned) offset = buffer->pinned_offset;
            loss = tli_banks_loss(b, i, bank, offset, least);
            if (loss < least) { least = loss; found = offset; }
        }
    return found;
}

// Put a buffer into a bank at an offset, and what it hits elsewhere. 0 = that is not cheaper: nothing changed.
static int tli_banks_exchange(tli_banks *b, int32_t i, int32_t bank, uint64_t offset) {
    int32_t hit[TLI_BANKS_MOVED], count = 0, k, from = b->bank[i];
    uint64_t at[TLI_BANKS_MOVED], before = b->offset[i], cost = b->cost;
    for (k = 0; k < b->near_count; k++)
        if (tli_banks_is_hit(b, i, offset, b->near_ids[b->near_order[k]])) {
            hit[count] = b->near_ids[b->near_order[k]];
            at[count] = b->offset[hit[count]];
            count++;
        }
    tli_banks_take(b, i);
    for (k = 0; k < count; k++) tli_banks_take(b, hit[k]);
    tli_banks_put(b, i, bank, offset);
    for (k = 0; k < count; k++) tli_banks_place(b, hit[k]);
    if (b->cost < cost) return 1;
    tli_banks_take(b, i);
    for (k = 0; k < count; k++) tli_banks_take(b, hit[k]);
    for (k = 0; k < count; k++) tli_banks_put(b, hit[k], bank, at[k]);
    tli_banks_put(b, i, from, before);
    TLI_INVARIANT(b->cost == cost && b->offset[i] == before);
    return 0;
}

// Move a buffer into a cheaper bank. 0 = it stays.
static int tli_banks_move(tli_banks *b, int32_t i, int32_t bank, int lays_out) {
    int32_t from = b->bank[i];
    uint64_t gap = tli_banks_find_gap(b, i, bank), before = b->offset[i], cheap;
    uint64_t gain = tli_banks_price(b, i, from) - tli_banks_price(b, i, bank);
    if (gap == UINT64_MAX && b->work < b->end) {
        tli_banks_list(b, i, bank);
        cheap = tli_banks_find_cheap(b, i, bank, gain);
        if (cheap != UINT64_MAX && tli_banks_exchange(b, i, bank, cheap)) return 1;
        if (!lays_out) return 0;
        tli_banks_take(b, i);
        if (tli_banks_squeeze(b, i, bank) == TLI_BANKS_FITS) return 1;
        tli_banks_put(b, i, from, before);
        return 0;
    }
    if (gap == UINT64_MAX) return 0;
    tli_banks_take(b, i);
    tli_banks_put(b, i, bank, gap);
    return 1;
}

// Move a buffer into the cheapest bank that takes it. 0 = it stays.
static int tli_banks_cheapen(tli_banks *b, int32_t i, int lays_out) {
    int32_t k;
    for (k = 0; k < b->bank_count && !b->failed; k++) {
        int32_t bank = b->by_price[k];
        if (tli_banks_price(b, i, bank) >= tli_banks_price(b, i, b->bank[i])) return 0;
        if (tli_banks_may(b, i, bank) && tli_banks_move(b, i, bank, lays_out)) return 1;
    }
    return 0;
}

// Move buffers into cheaper banks as long as that goes, the dearest first.
static void tli_banks_improve(tli_banks *b, int lays_out, int32_t rounds) {
    int32_t at, moved = 1;
    while (moved && rounds-- > 0 && b->work < b->end && !b->failed) {
        for (at = 0; at < b->count; at++)
            b->keys[at] = UINT64_MAX - tli_banks_price(b, at, b->bank[at]);
        tli_sort_numbers(b->order, b->count, b->keys);
        b->work += (uint64_t)b->count * 16;
        for (at = moved = 0; at < b->count && b->work < b->end && !b->failed; at++)
            moved |= tli_banks_cheapen(b, b->order[at], lays_out);
    }
    tli_banks_keep(b);
}

// Put back what is elsewhere than in the best plan.
static void tli_banks_restore(tli_banks *b) {
    int32_t i, count = 0;
    for (i = 0; i < b->count; i++) {
        if (b->bank[i] == b->best_bank[i] && b->offset[i] == b->best_offset[i]) continue;
        tli_banks_take(b, i);
        b->order[count++] = i;
    }
    while (count--) {
        i = b->order[count];
        tli_banks_put(b, i, b->best_bank[i], b->best_offset[i]);
    }
    b->work += (uint64_t)b->count / 2;
    TLI_INVARIANT(tli_banks_sums_hold(b));
}

// Take about three quarters of what lives in a section, chosen by chance, out of the best plan, and put it back
// in an order by saving and by chance. A plan that is no dearer is the best then; else it is undone.
static void tli_banks_shake(tli_banks *b, tl_random *random) {
    int32_t section = (int32_t)tl_next_random_below(random, (uint64_t)b->section_count), i, k, count = 0;
    for (i = 0; i < b->count; i++) {
        if (b->first[i] > section || b->last[i] < section || !tl_next_random_below(random, 4)) continue;
        for (k = 0; !tli_banks_may(b, i, b->by_price[k]); k++) { }
        uint64_t key = tli_banks_key(b, TLI_BANKS_MULTIPLIER, i, b->by_price[k]);
        b->keys[count] = key >> tl_next_random_below(random, 3);
        b->keys[count] = UINT64_MAX - b->keys[count];
        b->tried[count++] = (uint32_t)i;
        tli_banks_take(b, i);
    }
    tli_sort_numbers(b->order, count, b->keys);
    b->work += (uint64_t)(b->count + 60 * count);
    for (k = 0; k < count; k++) tli_banks_place(b, (int32_t)b->tried[b->order[k]]);
    for (k = 0; k < count && b->work < b->end; k++) tli_banks_cheapen(b, (int32_t)b->tried[b->order[k]], 0);
    if (b->missing || b->cost > b->best_cost) { tli_banks_restore(b); return; }
    b->best_cost = b->cost + 1;     // so that what costs the same is kept, too
    tli_banks_keep(b);
    TLI_INVARIANT(tli_banks_sums_hold(b));
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
