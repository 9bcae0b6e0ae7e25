#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// Sets of places: disjoint, in the order of chunks and bytes, those that touch as one. A look takes a binary
// search, and work that goes through memory in order is added at the end.

// Whether a place ends before another begins, with a gap between them of more than `gap` - 1 bytes.
static int tli_vk_is_before(const tli_vk_place *a, const tli_vk_place *b, uint64_t gap) {
    return a->chunk != b->chunk ? a->chunk < b->chunk : a->at + a->bytes + gap <= b->at;
}

// How many places of a set end before a place begins.
static int32_t tli_vk_count_before(const tli_vk_index *index, const tli_vk_place *place, uint64_t gap) {
    int32_t from = 0, to = index->count;
    if (to && tli_vk_is_before(&index->places[to - 1], place, gap)) return to;
    while (from < to) {
        int32_t middle = from + (to - from) / 2;
        if (tli_vk_is_before(&index->places[middle], place, gap)) from = middle + 1;
        else to = middle;
    }
    return from;
}

static int tli_vk_index_meets(const tli_vk_index *index, const tli_vk_place *place) {
    int32_t i = tli_vk_count_before(index, place, 0);
    return i < index->count && tli_vk_meet(&index->places[i], place);
}

// Add the bytes of a place. 0 = the set is full.
static int tli_vk_index_add(tli_vk_index *index, const tli_vk_place *place) {
    tli_vk_place all = *place, *at;
    int32_t first, end;
    if (!place->bytes) return 1;
    first = end = tli_vk_count_before(index, place, 1);
    while (end < index->count && !tli_vk_is_before(place, &index->places[end], 1)) {
        const tli_vk_place *old = &index->places[end++];
        uint64_t last = old->at + old->bytes > all.at + all.bytes ? old->at + old->bytes : all.at + all.bytes;
        if (old->at < all.at) all.at = old->at;
        all.bytes = last - all.at;
    }
    if (end == first && index->count == TLI_VK_TOUCH_CAPACITY) return 0;
    at = index->places + first;
    memmove(at + 1, index->places + end, (size_t)(index->count - end) * sizeof *at);
    *at = all;
    index->count += first + 1 - end;
    return 1;
}

static void tli_vk_copy_index(const tli_vk_index *from, tli_vk_index *to) {
    memcpy(to->places, from->places, (size_t)from->count * sizeof *from->places);
    to->count = from->count;
}

// -- accesses: what is read and what is written --

static void tli_vk_forget_accesses(tli_vk_accesses *accesses) {
    accesses->reads.count = accesses->writes.count = 0;
}

// Whether an access must come after those: one of both writes the same bytes.
static int tli_vk_follows_accesses(const tli_vk_accesses *accesses, const tli_vk_place *place, int writes) {
    return tli_vk_index_meets(&accesses->writes, place) ||
           (writes && tli_vk_index_meets(&accesses->reads, place));
}

static int tli_vk_add_access(tli_vk_accesses *accesses, const tli_vk_place *place, int writes) {
    return tli_vk_index_add(writes ? &accesses->writes : &accesses->reads, place);
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION
