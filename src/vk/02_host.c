#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// What the host sees: tickets, mapped ranges and the staging behind them, limits, counters; compaction; and
// making and freeing a backend.

// -- tickets --

static tl_result tli_vk_submit(void *self, tl_ticket *ticket) {
    tli_vk *b = (tli_vk *)self;
    tl_result result;
    ticket->value = 0;
    if (b->lost) return tli_vk_fail_lost(b, "submit");
    b->counters.submit_count++;
    if (b->records) {  // the work is in the frame that is open, or will be in the next
        ticket->value = b->has_work || b->open ? b->serial : b->serial - 1;
        return TL_OK;
    }
    result = tli_vk_submit_work(b, "submit");
    if (!result) ticket->value = b->serial - 1;
    return result;
}

static tl_result tli_vk_poll(void *self, tl_ticket ticket) {
    tli_vk *b = (tli_vk *)self;
    tl_result result;
    b->counters.poll_count++;
    if (ticket.value > b->serial || (!b->records && ticket.value == b->serial))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "poll", "ticket: was never submitted");
    if (b->lost) return tli_vk_fail_lost(b, "poll");
    if (ticket.value <= b->passed) return TL_OK;
    result = tli_vk_look(b, "poll");
    return result ? result : ticket.value <= b->passed ? TL_OK : TL_NOT_READY;
}

static tl_result tli_vk_wait(void *self, tl_ticket ticket) {
    tli_vk *b = (tli_vk *)self;
    b->counters.wait_count++;
    if (ticket.value > b->serial || (!b->records && ticket.value == b->serial))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "wait", "ticket: was never submitted");
    if (b->lost) return tli_vk_fail_lost(b, "wait");
    return tli_vk_reach(b, ticket.value, "wait");
}

// -- staging: for ranges that the host cannot address, or may not write yet --

// Cancel a read whose bytes lie ready and that nobody fetched in the last batch_count frames; 0 = none.
static int tli_vk_drop_stale_read(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->mapping_count; i++) {
        const tli_vk_mapping *m = &b->mappings[i];
        if (!m->is_pending || m->serial > b->passed) continue;
        if (b->serial <= m->asked + (uint64_t)b->desc.batch_count) continue;
        tli_vk_cancel_read(b, i, 0);
        return 1;
    }
    return 0;
}

// Free a slot. TL_NOT_READY: all are used by frames that were not retired, or by reads not fetched yet.
static tl_result tli_vk_make_room(tli_vk *b, const char *function) {
    uint64_t serial = UINT64_MAX;
    tl_result result;
    int32_t i, reads = 0;
    if (tli_vk_drop_stale_read(b)) return TL_OK;
    for (i = 0; i < b->slot_end; i++)
        if (b->all_slots[i].is_used && b->all_slots[i].piece)
            serial = tli_vk_least(serial, b->all_slots[i].serial);
    for (i = 0; i < b->mapping_count; i++) reads += b->mappings[i].is_pending;
    if (serial == UINT64_MAX && !reads)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "staging: is full of ranges that are mapped");
    result = serial == UINT64_MAX ? TL_OK : tli_vk_reach(b, serial, function);
    if (result || serial <= b->passed) return result;
    if (b->records || serial == UINT64_MAX) return tli_vk_fail(b, TL_NOT_READY, function, "staging: is in use");
    for (i = 0; i < b->slot_end; i++)   // nothing was left to submit: the work of these was never enqueued
        if (b->all_slots[i].is_used && b->all_slots[i].serial == serial) tli_vk_free_slot(b, &b->all_slots[i]);
    return TL_OK;
}

// Have a chunk for a slot that the staging is too small for: one that is kept, or a new one in the place of
// those that are kept and too small.
static tl_result tli_vk_find_large(tli_vk *b, uint64_t bytes, const char *function, int32_t *index) {
    int32_t i;
    for (i = 0; i < b->chunk_count; i++) {
        tli_vk_chunk *chunk = &b->chunks[i];
        if (!tli_vk_is_empty(chunk) || chunk->kind != TLI_VK_CHUNK_STAGING) continue;
        *index = i;
        if (chunk->bytes >= bytes) return TL_OK;
        tli_vk_destroy_chunk(b, chunk);
    }
    return tli_vk_add_chunk(b, TL_TIER_HOST, TLI_VK_CHUNK_STAGING, bytes, function, index);
}

// Find the memory of a slot.
static tl_result tli_vk_place_slot(tli_vk *b, uint64_t needed, const char *function, tli_vk_slot *slot,
                                   size_t *at) {
    tl_result result = TL_OK;
    *at = 0;
    slot->piece = 0;
    slot->chunk = b->staging;
    if (needed > b->staging_size) {
        result = tli_vk_find_large(b, needed, function, &slot->chunk);
        if (!result) b->chunks[slot->chunk].block_count = 1;
        return result;
    }
    while (!result && tl_add_block(b->staging_heap, (size_t)needed, at, &slot->piece))
        result = tli_vk_make_room(b, function);
    return result;
}

// Take a piece of host-visible memory for a range; tli_vk_give_staging says when it is free again.
static tl_result tli_vk_take_staging(tli_vk *b, uint64_t bytes, const char *function, tli_vk_place *place,
                                     int32_t *number) {
    tli_vk_slot slot;
    tl_result result;
    size_t at;
    memset(&slot, 0, sizeof slot);
    result = tli_vk_place_slot(b, tli_vk_align(bytes, b->alignment), function, &slot, &at);
    if (result) return result;
    slot.serial = UINT64_MAX;
    slot.is_used = 1;
    if (!b->free_slot && tli_vk_grow(b, &b->all_slots, &b->slot_capacity, b->slot_end, sizeof *b->all_slots)) {
        memset(&b->all_slots[b->slot_end], 0, sizeof *b->all_slots);
        b->free_slot = ++b->slot_end;
    }
    if (!b->free_slot) {
        if (slot.piece) tl_free_block(b->staging_heap, slot.piece);
        else b->chunks[slot.chunk].block_count = 0;
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the table of staging");
    }
    place->chunk = slot.chunk;
    place->at = at;
    place->bytes = bytes;
    if (b->lost_count) tli_vk_forget_lost(b, place);  // a dropped frame may have been to write it
    *number = b->free_slot - 1;
    b->free_slot = b->all_slots[*number].next_free;
    b->all_slots[*number] = slot;
    b->slot_count++;
    b->calls.staged_bytes += bytes;
    return TL_OK;
}

// Enqueue a copy between a range and its staging.
static tl_result tli_vk_stage(tli_vk *b, const tli_vk_mapping *m, int to_range, const char *function) {
    tli_vk_op op;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_COPY;
    op.to = to_range ? m->place : m->staged;
    op.from = to_range ? m->staged : m->place;
    return tli_vk_enqueue(b, &op, to_range ? m->range.block : 0, to_range ? 0 : m->range.block, function);
}

static void *tli_vk_address(const tli_vk *b, const tli_vk_place *place) {
    return b->chunks[place->chunk].mapped + place->at;
}

// -- mapping --

static int32_t tli_vk_find_mapping(const tli_vk *b, const tl_range *range, const void *host, int pending) {
    int32_t i;
    for (i = 0; i < b->mapping_count; i++) {
        const tli_vk_mapping *m = &b->mappings[i];
        if (m->is_pending == pending && (pending || m->host == host) && m->range.block == range->block &&
            m->range.offset == range->offset && m->range.bytes == range->bytes)
            return i;
    }
    return -1;
}

static void tli_vk_remove_mapping(tli_vk *b, int32_t i) { b->mappings[i] = b->mappings[--b->mapping_count]; }

// -- ranges larger than the staging, with a queue: memory of the env, moved through the staging in pieces --

static void *tli_vk_take_bounce(tli_vk *b, uint64_t bytes) {
    int is_kept = !b->bounce_is_used;
    void *bounce;
    if (bytes > SIZE_MAX / 4) return NULL;
    if (is_kept && b->bounce_bytes < bytes) {
        tl_free_memory(b->env, b->bounce);
        b->bounce = NULL;
        b->bounce_bytes = 0;
    }
    bounce = is_kept && b->bounce ? b->bounce : tl_add_memory(b->env, (size_t)bytes);
    if (!bounce || !is_kept) return bounce;
    if (!b->bounce) b->bounce_bytes = bytes;
    b->bounce = bounce;
    b->bounce_is_used = 1;
    return bounce;
}

static void tli_vk_give_bounce(tli_vk *b, void *bounce) {
    if (bounce == b->bounce) b->bounce_is_used = 0;
    else tl_free_memory(b->env, bounce);
}

// Move one piece between a range and memory of the host. Reading waits for it.
static tl_result tli_vk_move_piece(tli_vk *b, tli_vk_mapping *piece, int to_range, const char *function) {
    uint64_t serial;
    VkResult moved = VK_SUCCESS;
    tl_result result = tli_vk_take_staging(b, piece->place.bytes, function, &piece->staged, &piece->slot);
    if (result) return result;
    if (to_range) {
        memcpy(tli_vk_address(b, &piece->staged), piece->host, (size_t)piece->place.bytes);
        moved = tli_vk_flush_host(b, &piece->staged);
    }
    if (!moved) result = tli_vk_stage(b, piece, to_range, function);
    serial = b->serial;
    if (!moved && !result && !to_range) result = tli_vk_reach(b, serial, function);
    if (!moved && !result && !to_range) {
        moved = tli_vk_invalidate_host(b, &piece->staged);
        if (!moved) memcpy(piece->host, tli_vk_address(b, &piece->staged), (size_t)piece->place.bytes);
    }
    tli_vk_give_staging(b, piece->slot, moved ? 0 : serial);
    return moved ? tli_vk_fail_result(b, function, "memory of the staging", moved) : result;
}

static tl_result tli_vk_move_pieces(tli_vk *b, const tli_vk_mapping *m, int to_range, const char *function) {
    uint64_t most = b->staging_size / 2 / b->alignment * b->alignment, done = 0;
    tl_result result = TL_OK;
    if (!most) most = b->staging_size;
    while (done < m->range.bytes && !result) {
        tli_vk_mapping piece = *m;
        piece.place.at += done;
        piece.place.bytes = tli_vk_least(m->range.bytes - done, most);
        piece.host = (char *)m->host + done;
        result = tli_vk_move_piece(b, &piece, to_range, function);
        done += piece.place.bytes;
    }
    return result;
}

static tl_result tli_vk_map_bounced(tli_vk *b, tli_vk_mapping *m) {
    tl_result result = TL_OK;
    m->host = tli_vk_take_bounce(b, m->range.bytes);
    m->is_bounced = 1;
    m->staged.chunk = b->staging;
    if (!m->host)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "map", "range: no memory of the host for its bytes");
    if (m->mode != TL_MAP_WRITE) result = tli_vk_move_pieces(b, m, 0, "map");
    if (result) tli_vk_give_bounce(b, m->host);
    return result;
}

// Record mode: enqueue a read and return TL_NOT_READY until the frame that does it was retired; then return
// TL_OK, and mappings[*index] holds the bytes.
static tl_result tli_vk_read_later(tli_vk *b, const tli_vk_mapping *wanted, uint64_t writes, int32_t *index) {
    int32_t i = tli_vk_find_mapping(b, &wanted->range, NULL, 1);
    tli_vk_mapping m = *wanted;
    tl_result result;
    if (i >= 0 && b->mappings[i].writes != writes) {  // the bytes were written since
        tli_vk_cancel_read(b, i, b->mappings[i].serial);
        i = -1;
    }
    if (i >= 0) {
        b->mappings[i].asked = b->serial;
        if (b->mappings[i].serial > b->passed)
            return tli_vk_fail(b, TL_NOT_READY, "map", "the frame that reads the range was not retired yet");
        b->mappings[i].mode = wanted->mode;
        *index = i;
        return TL_OK;
    }
    result = tli_vk_take_staging(b, m.range.bytes, "map", &m.staged, &m.slot);
    if (result) return result;
    result = tli_vk_stage(b, &m, 0, "map");
    if (result) {
        tli_vk_give_staging(b, m.slot, 0);
        return result;
    }
    m.is_pending = 1;
    m.serial = m.asked = b->serial;
    m.writes = writes;
    b->mappings[b->mapping_count++] = m;
    return tli_vk_fail(b, TL_NOT_READY, "map", "the range is read by the frame that is open, or the next");
}

// With a queue: copy a range into staging and wait for the copy.
static tl_result tli_vk_read_now(tli_vk *b, tli_vk_mapping *m) {
    uint64_t serial;
    tl_result result = tli_vk_take_staging(b, m->range.bytes, "map", &m->staged, &m->slot);
    if (result) return result;
    result = tli_vk_stage(b, m, 0, "map");
    serial = b->serial;
    if (!result) result = tli_vk_reach(b, serial, "map");
    if (result) tli_vk_give_staging(b, m->slot, serial);
    return result;
}

// Map a range in place. TL_NOT_READY, without an error text: it is in use, so the write goes through staging.
static tl_result tli_vk_map_direct(tli_vk *b, const tli_vk_block *block, tli_vk_mapping *m) {
    uint64_t serial = m->mode == TL_MAP_READ ? block->last_write : block->last_use;
    VkResult result;
    tl_result code = TL_OK;
    if (serial > b->passed) code = b->lost ? tli_vk_fail_lost(b, "map") : tli_vk_look(b, "map");
    if (code) return code;
    if (serial > b->passed) {
        if (m->mode == TL_MAP_WRITE) return TL_NOT_READY;
        code = tli_vk_reach(b, serial, "map");
        if (code) return code;
    }
    m->staged.chunk = TLI_VK_CHUNK_NONE;
    m->host = tli_vk_address(b, &m->place);
    if (m->mode == TL_MAP_WRITE) return TL_OK;
    result = tli_vk_invalidate_host(b, &m->place);
    return result ? tli_vk_fail_result(b, "map", "vkInvalidateMappedMemoryRanges", result) : TL_OK;
}

static tl_result tli_vk_map_staged(tli_vk *b, const tli_vk_block *block, tli_vk_mapping *m, int32_t *ready) {
    VkResult invalidated;
    tl_result result;
    *ready = -1;
    if (m->range.bytes > b->staging_size && !b->records) return tli_vk_map_bounced(b, m);
    if (m->mode == TL_MAP_WRITE) result = tli_vk_take_staging(b, m->range.bytes, "map", &m->staged, &m->slot);
    else if (b->records) result = tli_vk_read_later(b, m, block->writes, ready);
    else result = tli_vk_read_now(b, m);
    if (result) return result;
    if (*ready >= 0) *m = b->mappings[*ready];
    m->host = tli_vk_address(b, &m->staged);
    if (m->mode == TL_MAP_WRITE) return TL_OK;
    invalidated = tli_vk_invalidate_host(b, &m->staged);
    if (!invalidated) return TL_OK;
    if (*ready < 0) tli_vk_give_staging(b, m->slot, b->serial);
    return tli_vk_fail_result(b, "map", "vkInvalidateMappedMemoryRanges", invalidated);
}

static tl_result tli_vk_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    int32_t ready = -1;
    tli_vk_block *block;
    tli_vk_mapping m;
    *host = NULL;
    b->counters.map_count++;
    if (!range.bytes) return b->lost ? tli_vk_fail_lost(b, "map") : TL_OK;
    block = tli_vk_find_range(b, &range, "map", &result);
    if (!block) return result;
    if (b->lost && (mode != TL_MAP_READ || block->tier != TL_TIER_HOST)) return tli_vk_fail_lost(b, "map");
    if (!tli_vk_grow(b, &b->mappings, &b->mapping_capacity, b->mapping_count, sizeof *b->mappings))
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "map", "no memory for the table of mappings");
    memset(&m, 0, sizeof m);
    m.range = range;
    m.mode = mode;
    m.place = tli_vk_place_of(block, &range);
    if (mode != TL_MAP_WRITE && b->lost_count && tli_vk_is_lost(b, &m.place))
        return tli_vk_fail_stale(b, "map", "range");
    result = b->chunks[block->chunk].mapped ? tli_vk_map_direct(b, block, &m) : TL_NOT_READY;
    if (result == TL_NOT_READY && (mode == TL_MAP_WRITE || !b->chunks[block->chunk].mapped))
        result = tli_vk_map_staged(b, block, &m, &ready);
    if (result) return result;
    m.is_pending = 0;
    if (ready >= 0) b->mappings[ready] = m;
    else b->mappings[b->mapping_count++] = m;
    block->map_count++;
    *host = m.host;
    return TL_OK;
}

// Make what the host wrote part of the range: flush it, or enqueue the copy from staging.
static tl_result tli_vk_unmap_written(tli_vk *b, tli_vk_mapping *m) {
    int staged = m->staged.chunk != TLI_VK_CHUNK_NONE;
    VkResult flushed;
    tl_result result;
    if (m->is_bounced) return tli_vk_move_pieces(b, m, 1, "unmap");
    flushed = tli_vk_flush_host(b, staged ? &m->staged : &m->place);
    if (flushed) return tli_vk_fail_result(b, "unmap", "vkFlushMappedMemoryRanges", flushed);
    if (!staged) {
        if (b->lost_count) tli_vk_forget_lost(b, &m->place);
        return TL_OK;
    }
    result = tli_vk_stage(b, m, 1, "unmap");
    if (!result) tli_vk_give_staging(b, m->slot, b->serial);
    return result;
}

static tl_result tli_vk_unmap(void *self, tl_range range, tl_map_mode mode, void *host) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_block *block;
    tli_vk_mapping *m;
    int32_t i;
    if (!range.bytes) return TL_OK;
    block = tli_vk_find_range(b, &range, "unmap", &result);
    if (!block) return result;
    i = tli_vk_find_mapping(b, &range, host, !host);
    if (!host) {
        if (i >= 0) tli_vk_cancel_read(b, i, b->mappings[i].serial);
        return TL_OK;
    }
    if (i < 0)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "unmap", "host: is not what map gave for this range");
    m = &b->mappings[i];
    if (mode != m->mode)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "unmap", "mode: not that of the map");
    if (mode != TL_MAP_READ) result = b->lost ? tli_vk_fail_lost(b, "unmap") : tli_vk_unmap_written(b, m);
    if (m->is_bounced) tli_vk_give_bounce(b, m->host);
    else if (m->staged.chunk != TLI_VK_CHUNK_NONE && (mode == TL_MAP_READ || result))
        tli_vk_give_staging(b, m->slot, 0);
    tli_vk_remove_mapping(b, i);  // on error, too: callers do not unmap a second time
    block->map_count--;
    return result;
}

// -- measuring --

static tl_result tli_vk_check(void *self) {
    tli_vk *b = (tli_vk *)self;
    return b->lost ? tli_vk_fail_lost(b, "check") : TL_OK;
}

static uint64_t tli_vk_now_ns(void *self) {
    const tli_vk *b = (const tli_vk *)self;
    return b->desc.now_ns ? (b->desc.now_ns)(b->desc.user) : 0;
}

// The bytes of a chunk that the tier can take without asking the driver, or after a wait.
static uint64_t tli_vk_free_bytes(const tli_vk *b, const tli_vk_chunk *chunk, tl_tier tier) {
    size_t in_chunk = 0, largest = 0;
    if (!chunk->alive || chunk->imported || chunk->tier != (uint8_t)tier) return 0;
    if (chunk->kind == TLI_VK_CHUNK_ARENA) return chunk->block_count || b->records ? 0 : chunk->memory_bytes;
    if (chunk->heap) tl_measure_heap(chunk->heap, &in_chunk, &largest);
    return in_chunk;
}

static void tli_vk_limits(void *self, tl_backend_limits *limits) {
    const tli_vk *b = (const tli_vk *)self;
    int32_t i;
    int tier;
    memset(limits, 0, sizeof *limits);
    limits->alignment_bytes = b->alignment;
    limits->granularity_bytes = b->granularity;
    limits->range_bytes = limits->block_bytes = b->most_allocation_bytes;
    limits->binding_bytes = b->device_limits.maxStorageBufferRange;
    limits->tiers_share_memory = tli_vk_heap_of(b, TL_TIER_DEVICE) == tli_vk_heap_of(b, TL_TIER_HOST);
    limits->codecs = 1u << TL_CODEC_F16 | 1u << TL_CODEC_BF16 | 1u << TL_CODEC_Q8;
    limits->in_order = 1;
    limits->env = b->env;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        uint32_t heap = tli_vk_heap_of(b, (tl_tier)tier);
        uint64_t live = b->counters.live_bytes[tier], left = b->desc.capacity_bytes[tier] - live;
        uint64_t free_bytes = tli_vk_heap_budget(b, heap), piece, largest;
        for (i = 0; i < b->chunk_count; i++) free_bytes += tli_vk_free_bytes(b, &b->chunks[i], (tl_tier)tier);
        if (b->desc.exceed_budget) free_bytes = b->memory.memoryHeaps[heap].size;
        limits->block_overhead_bytes[tier] = b->overhead;
        piece = b->memory.memoryHeaps[heap].size;
        largest = b->desc.capacity_bytes[tier];
        limits->capacity_bytes[tier] = tli_vk_least(piece, largest);
        limits->budget_bytes[tier] = tli_vk_least(free_bytes, left);
    }
}

static void tli_vk_counters(void *self, tl_backend_counters *counters) {
    *counters = ((const tli_vk *)self)->counters;
}

static void tli_vk_reset_peaks(void *self) {
    tl_backend_counters *counters = &((tli_vk *)self)->counters;
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) counters->peak_bytes[tier] = counters->live_bytes[tier];
    counters->arena_bytes = 0;
}

TLI_VK_IMPL void tl_vk_measure(const tl_backend *backend, tl_vk_counters *counters) {
    const tli_vk *b = tli_vk_self(backend);
    int32_t i;
    *counters = b->calls;
    counters->largest_free_bytes = 0;
    for (i = 0; i < b->chunk_count; i++) {
        size_t free_bytes = 0, largest = 0;
        if (!b->chunks[i].alive || !b->chunks[i].heap || b->chunks[i].tier != TL_TIER_DEVICE) continue;
        tl_measure_heap(b->chunks[i].heap, &free_bytes, &largest);
        if (largest > counters->largest_free_bytes) counters->largest_free_bytes = largest;
    }
}

// -- for the caller's own commands --

TLI_VK_IMPL tl_result tl_vk_find_buffer(const tl_backend *backend, tl_range range,
                                        VkDescriptorBufferInfo *info) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result = TL_OK;
    const tli_vk_block *block;
    memset(info, 0, sizeof *info);
    if (!range.bytes) return TL_OK;
    block = tli_vk_find_range(b, &range, "tl_vk_find_buffer", &result);
    if (!block) return result;
    info->buffer = b->chunks[block->chunk].buffer;
    info->offset = block->at + range.offset;
    info->range = tli_vk_align(range.bytes, 4);
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_find_commands(const tl_backend *backend, VkCommandBuffer *commands) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result;
    *commands = VK_NULL_HANDLE;
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_find_commands");
    result = tli_vk_open(b, "tl_vk_find_commands");
    if (!result) result = tli_vk_order_early(b, "tl_vk_find_commands");
    if (!result) result = tli_vk_flush(b, "tl_vk_find_commands");
    if (result) return result;
    // Before the touches: the writes that were announced are those of the caller's commands.
    tli_vk_note_others(tli_vk_batch_of(b, b->serial));
    result = tli_vk_touch_open_promises(b, "tl_vk_find_commands");
    if (result) return result;
    b->kept_count = b->promise_count;
    b->has_work = 1;
    *commands = tli_vk_batch_of(b, b->serial)->commands;
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_drop_unused(const tl_backend *backend, uint64_t keep_bytes) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tli_vk_look(b, "tl_vk_drop_unused");
    if (!result) (void)tli_vk_drop_chunks(b, keep_bytes);
    return result;
}

// -- compaction --

static uint64_t tli_vk_used_bytes(const tli_vk_chunk *chunk) {
    size_t free_bytes = 0, largest = 0;
    tl_measure_heap(chunk->heap, &free_bytes, &largest);
    return chunk->bytes - free_bytes;
}

// The chunk with the fewest bytes in use; TLI_VK_CHUNK_NONE where no other chunk could take its blocks.
static int32_t tli_vk_emptiest_chunk(const tli_vk *b) {
    int32_t best = TLI_VK_CHUNK_NONE, candidates = 0, i;
    uint64_t least = UINT64_MAX;
    for (i = 0; i < b->chunk_count; i++) {
        const tli_vk_chunk *chunk = &b->chunks[i];
        if (!chunk->alive || !chunk->heap || chunk->tier != TL_TIER_DEVICE || !chunk->block_count) continue;
        candidates++;
        if (tli_vk_used_bytes(chunk) >= least) continue;
        least = tli_vk_used_bytes(chunk);
        best = i;
    }
    return candidates > 1 ? best : TLI_VK_CHUNK_NONE;
}

// Move a block to a piece of another chunk; *moved is 0, with TL_OK, where no other has room.
static tl_result tli_vk_move_block(tli_vk *b, uint64_t handle, tli_vk_block *block, int *moved) {
    tli_vk_chunk *old = &b->chunks[block->chunk];
    int32_t chunk, piece;
    size_t at;
    tli_vk_op op;
    tl_result result = tli_vk_find_piece(b, TL_TIER_DEVICE, block->reserved_bytes, "tl_vk_compact",
                                         block->chunk, &chunk, &at, &piece);
    *moved = !result;
    if (result == TL_ERROR_NO_MEMORY) return TL_OK;
    if (result) return result;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_COPY;
    op.from = tli_vk_whole_place(block);
    op.to = op.from;
    op.to.chunk = chunk;
    op.to.at = at;
    result = tli_vk_enqueue(b, &op, handle, 0, "tl_vk_compact");
    if (result) {
        tl_free_block(b->chunks[chunk].heap, piece);
        return result;
    }
    old->last_use = b->serial;
    tl_free_block(old->heap, block->piece);
    old->block_count--;
    b->chunks[chunk].block_count++;
    b->chunks[chunk].last_use = b->serial;
    block->chunk = chunk;
    block->piece = piece;
    block->at = at;
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_compact(const tl_backend *backend, uint64_t most_bytes, uint64_t *moved_bytes) {
    tli_vk *b = tli_vk_self(backend);
    int32_t from, i;
    *moved_bytes = 0;
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_compact");
    for (i = 0; i < b->mapping_count; i++)
        if (!b->mappings[i].is_pending)
            return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_compact", "backend: a range is mapped");
    from = tli_vk_emptiest_chunk(b);
    for (i = 0; i < b->block_count && from != TLI_VK_CHUNK_NONE; i++) {
        tli_vk_block *block = &b->blocks[i];
        const tli_vk_place whole = tli_vk_whole_place(block);
        tl_result result;
        int moved;
        if (b->lost_count && tli_vk_is_lost(b, &whole)) continue;
        if (!block->alive || block->chunk != from || block->reserved_bytes > most_bytes - *moved_bytes)
            continue;
        result = tli_vk_move_block(b, (uint64_t)block->generation << 32 | (uint64_t)(i + 1), block, &moved);
        if (result) return result;
        if (moved) *moved_bytes += block->reserved_bytes;  // otherwise a smaller block may fit
    }
    return TL_OK;
}

// -- init and free --

static void tli_vk_fill_backend(tl_backend *backend, tli_vk *b) {
    backend->self = b;
    backend->add_block = tli_vk_add_block;
    backend->free_block = tli_vk_free_block;
    backend->claim = tli_vk_claim;
    backend->release = tli_vk_release;
    backend->copy = tli_vk_copy;
    backend->compress = tli_vk_compress;
    backend->expand = tli_vk_expand;
    backend->fill = tli_vk_fill;
    backend->order = tli_vk_order;
    backend->submit = tli_vk_submit;
    backend->poll = tli_vk_poll;
    backend->wait = tli_vk_wait;
    backend->map = tli_vk_map;
    backend->unmap = tli_vk_unmap;
    backend->check = tli_vk_check;
    backend->now_ns = tli_vk_now_ns;
    backend->limits = tli_vk_limits;
    backend->counters = tli_vk_counters;
    backend->reset_peaks = tli_vk_reset_peaks;
    backend->open_account = tli_vk_open_account;
    backend->close_account = tli_vk_close_account;
    backend->claim_on = tli_vk_claim_on;
    backend->release_on = tli_vk_release_on;
    backend->measure_account = tli_vk_measure_account;
    backend->add_arena = tli_vk_add_arena;
    backend->shorten = tli_vk_shorten;
}

static const char *tli_vk_explain_desc(const tl_vk_backend_desc *desc) {
    const tl_vk_device *device = &desc->device;
    if (!device->get_instance_proc) return "device: get_instance_proc: missing";
    if (!device->instance || !device->physical || !device->device)
        return "device: instance, physical and device: all three are needed";
    if (!device->lock_queue != !device->unlock_queue)
        return "device: lock_queue, unlock_queue: set both or neither";
    if (device->transfer_queue && (!device->queue || !device->timeline_enabled))
        return "device: transfer_queue: needs timeline_enabled and a queue";
    if (device->upload_queue && (!device->transfer_queue || device->transfer_queue == device->queue))
        return "device: upload_queue: needs a transfer_queue beside the queue";
    if (device->upload_queue && device->upload_queue == device->queue)
        return "device: upload_queue: must be another than the queue";
    if (!desc->hooks.allocate != !desc->hooks.release) return "hooks: set both or neither";
    if (desc->batch_count < 0 || desc->batch_count > 64) return "batch_count: must be 0 to 64";
    if (desc->workgroup_size > 1024 || (desc->workgroup_size & (desc->workgroup_size - 1)))
        return "workgroup_size: must be a power of two up to 1024";
    if ((uint32_t)desc->copy_path >= TL_VK_COPY_PATH_COUNT) return "copy_path: unknown";
    return NULL;
}

// Read the properties of the device and set the limits of the backend by them.
static tl_result tli_vk_read_device(tli_vk *b) {
    const char *function = "tl_vk_init_backend";
    const tl_vk_device *device = &b->desc.device;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceProperties2 more;
    VkPhysicalDeviceMaintenance3Properties largest;
    VkQueueFamilyProperties families[TLI_VK_FAMILIES];
    uint32_t family_count = 0;
    const VkPhysicalDeviceLimits *limits = &b->device_limits;
    uint64_t unit;
    (b->vk.vkGetPhysicalDeviceProperties)(device->physical, &properties);
    (b->vk.vkGetPhysicalDeviceMemoryProperties)(device->physical, &b->memory);
    (b->vk.vkGetPhysicalDeviceQueueFamilyProperties)(device->physical, &family_count, NULL);
    if (family_count > TLI_VK_FAMILIES) family_count = TLI_VK_FAMILIES;
    (b->vk.vkGetPhysicalDeviceQueueFamilyProperties)(device->physical, &family_count, families);
    b->device_limits = properties.limits;
    if (device->queue_family >= family_count ||
        !(families[device->queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function,
                           "device: queue_family: no such family that computes");
    if (b->link_count && (device->transfer_family >= family_count ||
        !(families[device->transfer_family].queueFlags &
          (VK_QUEUE_TRANSFER_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT))))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function,
                           "device: transfer_family: no such family that transfers");
    b->time_bits = families[device->queue_family].timestampValidBits;
    b->alignment = 16;
    if (limits->minStorageBufferOffsetAlignment > b->alignment)
        b->alignment = limits->minStorageBufferOffsetAlignment;
    if (limits->nonCoherentAtomSize > b->alignment) b->alignment = limits->nonCoherentAtomSize;
    unit = 128 * b->alignment;  // so that f16 and q8 of a multiple of it are aligned, too
    b->range_bytes = limits->maxStorageBufferRange / unit * unit;
    if (!b->range_bytes)
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "maxStorageBufferRange: too small for any block");
    if (b->desc.workgroup_size > limits->maxComputeWorkGroupInvocations ||
        b->desc.workgroup_size > limits->maxComputeWorkGroupSize[0])
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "workgroup_size: more than the device takes");
    b->desc.submit_bytes = b->desc.submit_bytes < unit ? unit : b->desc.submit_bytes / unit * unit;
    b->most_allocation_bytes = UINT64_MAX / 4;
    if (b->vk.vkGetPhysicalDeviceProperties2 && tli_vk_is_at_least(device, VK_API_VERSION_1_1) &&
        properties.apiVersion >= VK_API_VERSION_1_1) {
        memset(&more, 0, sizeof more);
        memset(&largest, 0, sizeof largest);
        more.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
        largest.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
        more.pNext = &largest;
        (b->vk.vkGetPhysicalDeviceProperties2)(device->physical, &more);
        if (largest.maxMemoryAllocationSize) b->most_allocation_bytes = largest.maxMemoryAllocationSize;
    }
    b->has_budget = tli_vk_has_extension(device, "VK_EXT_memory_budget") &&
                    b->vk.vkGetPhysicalDeviceMemoryProperties2 != NULL;
    return TL_OK;
}

// Learn what the memory of a buffer takes beside its bytes. The alignment that the driver tells is that of
// every buffer with these usages; the overhead is measured on buffers of several lengths.
static tl_result tli_vk_read_overhead(tli_vk *b) {
    static const uint64_t units[] = { 1, 3, 4097 };
    VkMemoryRequirements needs;
    VkBuffer buffer;
    VkResult result;
    size_t i;
    b->granularity = b->alignment;
    for (i = 0; i < sizeof units / sizeof *units; i++) {
        uint64_t bytes = units[i] * b->granularity;
        result = tli_vk_create_buffer(b, bytes, &buffer, &needs);
        if (result) return tli_vk_fail_result(b, "tl_vk_init_backend", "vkCreateBuffer", result);
        (b->vk.vkDestroyBuffer)(b->device, buffer, b->callbacks);
        if (needs.alignment > b->granularity) b->granularity = needs.alignment;
        bytes = tli_vk_align(bytes, b->granularity);
        needs.size = tli_vk_align(needs.size, b->granularity);
        if (needs.size > bytes && needs.size - bytes > b->overhead) b->overhead = needs.size - bytes;
    }
    return TL_OK;
}

static void tli_vk_fill_defaults(tl_vk_backend_desc *desc) {
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        if (!desc->capacity_bytes[tier]) desc->capacity_bytes[tier] = TL_UNLIMITED;
    if (!desc->staging_bytes) desc->staging_bytes = (uint64_t)4 << 20;
    if (!desc->submit_bytes) desc->submit_bytes = (uint64_t)256 << 20;
    if (!desc->batch_count) desc->batch_count = desc->device.transfer_queue ? 16 : 4;
    if (!desc->workgroup_size) desc->workgroup_size = 64;
}

static void tli_vk_fill_chunk_bytes(tli_vk *b) {
    uint64_t eighth = b->memory.memoryHeaps[tli_vk_heap_of(b, TL_TIER_DEVICE)].size / 8;
    uint64_t least = (uint64_t)4 << 20, most = (uint64_t)64 << 20;
    if (!b->desc.chunk_bytes) b->desc.chunk_bytes = eighth < least ? least : tli_vk_least(eighth, most);
    b->desc.chunk_bytes = tli_vk_align(b->desc.chunk_bytes, b->alignment);
    b->desc.staging_bytes = tli_vk_align(b->desc.staging_bytes, b->alignment);
}

// The timelines of the queue and of the links.
static tl_result tli_vk_make_timelines(tli_vk *b) {
    VkSemaphoreTypeCreateInfo type;
    VkSemaphoreCreateInfo info;
    VkResult result;
    int32_t i;
    if (b->records || !b->desc.device.timeline_enabled) return TL_OK;
    memset(&type, 0, sizeof type);
    memset(&info, 0, sizeof info);
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    info.pNext = &type;
    result = (b->vk.vkCreateSemaphore)(b->device, &info, b->callbacks, &b->timeline);
    if (result) b->timeline = VK_NULL_HANDLE;
    for (i = 0; i < b->link_count && !result; i++) {
        result = (b->vk.vkCreateSemaphore)(b->device, &info, b->callbacks, &b->links[i].timeline);
        if (result) b->links[i].timeline = VK_NULL_HANDLE;
    }
    return result ? tli_vk_fail_result(b, "tl_vk_init_backend", "vkCreateSemaphore", result) : TL_OK;
}

static tl_result tli_vk_make_times(tli_vk *b) {
    VkQueryPoolCreateInfo info;
    VkResult result;
    uint32_t count = b->desc.time_count;
    if (!b->time_bits) return TL_OK;
    if (count > UINT32_MAX - TLI_VK_OWN_TIMES)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_init_backend", "time_count: too many");
    b->time_serials =
        (uint64_t *)tl_add_memory(b->env, ((size_t)count + TLI_VK_OWN_TIMES) * 2 * sizeof *b->time_serials);
    b->time_numbers = b->time_serials ? b->time_serials + count + TLI_VK_OWN_TIMES : NULL;
    if (!b->time_serials)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "tl_vk_init_backend", "no memory for the times");
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = count + TLI_VK_OWN_TIMES;
    result = (b->vk.vkCreateQueryPool)(b->device, &info, b->callbacks, &b->times);
    if (result) b->times = VK_NULL_HANDLE;
    return result ? tli_vk_fail_result(b, "tl_vk_init_backend", "vkCreateQueryPool", result) : TL_OK;
}

static tl_result tli_vk_make_objects(tli_vk *b) {
    const char *function = "tl_vk_init_backend";
    tl_result result = tli_vk_make_timelines(b);
    int32_t i;
    b->batches = (tli_vk_batch *)tl_add_memory(b->env, (size_t)b->desc.batch_count * sizeof *b->batches);
    if (!b->batches) return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the batches");
    for (i = 0; i < b->desc.batch_count && !result; i++)    // now, so that recording does not allocate
        result = tli_vk_make_batch(b, &b->batches[i], function);
    if (!result) result = tli_vk_make_times(b);
    b->staging_size = b->desc.staging_bytes;
    if (!result)
        result = tli_vk_add_chunk(b, TL_TIER_HOST, TLI_VK_CHUNK_STAGING, b->staging_size + b->alignment,
                                  function, &b->staging);
    if (!result) b->chunks[b->staging].block_count = 1;
    if (!result && tl_init_heap(&b->quiet, (size_t)b->staging_size, (size_t)b->alignment, &b->staging_heap))
        result = tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the heap of the staging");
    b->placeholder.chunk = b->staging;
    b->placeholder.at = b->staging_size;
    b->placeholder.bytes = 4;
    return result;
}

// The queues for copies between the tiers, where they are others than the queue.
static void tli_vk_name_links(tli_vk *b) {
    const tl_vk_device *device = &b->desc.device;
    if (!device->transfer_queue || device->transfer_queue == device->queue) return;
    b->links[b->link_count++].queue = device->transfer_queue;
    if (device->upload_queue && device->upload_queue != device->transfer_queue)
        b->links[b->link_count++].queue = device->upload_queue;
}

TLI_VK_IMPL tl_result tl_vk_init_backend(tl_env *env, const tl_vk_backend_desc *desc, tl_backend *backend) {
    const char *why = tli_vk_explain_desc(desc);
    tl_result result;
    tli_vk *b;
    memset(backend, 0, sizeof *backend);
    if (why) return tl_record_error(env, TL_ERROR_INVALID_ARG, "tl_vk_init_backend", why);
    b = (tli_vk *)tl_add_memory(env, sizeof *b);
    if (!b) return tl_record_error(env, TL_ERROR_NO_MEMORY, "tl_vk_init_backend", "no memory");
    b->env = env;
    if (env) b->quiet = *env;
    b->quiet.log = NULL;
    b->desc = *desc;
    if (!b->desc.device.api_version) b->desc.device.api_version = VK_API_VERSION_1_0;
    tli_vk_name_links(b);
    b->device = desc->device.device;
    b->callbacks = desc->device.callbacks;
    b->records = desc->device.queue == VK_NULL_HANDLE;
    b->serial = 1;
    b->all_touched = 1;
    b->staging = TLI_VK_CHUNK_NONE;
    b->grows = !b->records && !desc->batch_count;
    tli_vk_fill_defaults(&b->desc);
    result = tli_vk_load(env, &b->desc.device, &b->vk);
    if (result) {  // nothing was made, and no function can be called
        tl_free_memory(env, b);
        return result;
    }
    tli_vk_fill_backend(backend, b);
    if (b->desc.device.owned) ((tli_vk_owned *)b->desc.device.owned)->backend_count++;
    result = tli_vk_read_device(b);
    if (!result) {
        tli_vk_fill_chunk_bytes(b);
        result = tli_vk_read_overhead(b);
    }
    if (!result) result = tli_vk_make_objects(b);
    if (result) {
        tl_error error;
        memset(&error, 0, sizeof error);
        if (env) error = env->error;
        (void)tl_vk_free_backend(env, backend);
        if (env) env->error = error;
    }
    return result;
}

// Refuse to free what runs, managers or pointers of the caller still need. The device may still read what
// frames under way use, unless it was lost.
static tl_result tli_vk_check_unused(tli_vk *b, tl_env *env) {
    const char *function = "tl_vk_free_backend", *what = "backend";
    int32_t kernels = b->kernel_count, mapped = 0, frames = 0, i;
    uint64_t serial;
    for (i = 0; i < TLI_VK_SHADER_COUNT; i++) kernels -= b->shaders[i] != NULL;
    for (i = 0; i < b->mapping_count; i++) mapped += !b->mappings[i].is_pending;
    for (serial = b->passed + 1; b->records && b->batches && serial <= b->serial; serial++)
        frames += tli_vk_batch_of(b, serial)->serial == serial;
    if (b->open_account_count)
        return tli_vk_fail_users(env, function, what, b->open_account_count, "runs and managers");
    if (kernels) return tli_vk_fail_users(env, function, what, kernels, "kernels");
    if (mapped) return tli_vk_fail_users(env, function, what, mapped, "mapped ranges");
    if (frames && !b->lost)
        return tli_vk_fail_users(env, function, what, frames, "frames neither retired nor dropped");
    return TL_OK;
}

// Wait for what was submitted, and for the transfers that count to the batch that was not.
static tl_result tli_vk_wait_for_all(tli_vk *b, const char *function) {
    tl_result result = tli_vk_wait_batch(b, b->serial - 1, 1, function);
    while (!result && b->transfer_done < b->transfer_sent) result = tli_vk_wait_for_oldest(b, function);
    return result;
}

TLI_VK_IMPL tl_result tl_vk_free_backend(tl_env *env, tl_backend *backend) {
    tl_result result;
    tli_vk *b;
    int32_t i;
    if (!backend || !backend->self) return TL_OK;
    b = tli_vk_self(backend);
    result = tli_vk_check_unused(b, env);
    if (result) return result;
    if (b->desc.device.owned) ((tli_vk_owned *)b->desc.device.owned)->backend_count--;
    b->env = &b->quiet;  // nothing below is an error of this call
    for (i = 0; i < 64 && !b->records && !b->lost; i++)  // a wait that fails for want of memory may work again
        if (tli_vk_wait_for_all(b, "tl_vk_free_backend") == TL_OK) break;
    for (i = 0; i < TLI_VK_SHADER_COUNT; i++) tl_vk_free_kernel(backend, b->shaders[i]);
    for (i = 0; i < b->chunk_count; i++)
        if (b->chunks[i].alive) tli_vk_destroy_chunk(b, &b->chunks[i]);
    tl_free_memory(env, b->bounce);
    tl_free_heap(b->staging_heap);
    for (i = 0; b->batches && i < b->desc.batch_count; i++) tli_vk_free_batch(b, &b->batches[i]);
    if (b->timeline) (b->vk.vkDestroySemaphore)(b->device, b->timeline, b->callbacks);
    tli_vk_free_links(b);
    if (b->times) (b->vk.vkDestroyQueryPool)(b->device, b->times, b->callbacks);
    tl_free_memory(env, b->time_serials);
    tl_free_memory(env, b->batches);
    tl_free_memory(env, b->chunks);
    tl_free_memory(env, b->blocks);
    tl_free_memory(env, b->accounts);
    tl_free_memory(env, b->all_slots);
    tl_free_memory(env, b->mappings);
    tl_free_memory(env, b->lost_places);
    tl_free_memory(env, b);
    memset(backend, 0, sizeof *backend);
    return TL_OK;
}

static const char *const tli_vk_copy_path_names[] = { TL_VK_COPY_PATHS(TLI_VK_NAME) };

TLI_VK_IMPL const char *tl_vk_name_copy_path(tl_vk_copy_path path) {
    return (unsigned)path < TL_VK_COPY_PATH_COUNT ? tli_vk_copy_path_names[path] : "?";
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

