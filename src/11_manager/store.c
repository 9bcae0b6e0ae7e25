#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// ============================================================================
// [11] MANAGER (implementation)
//
// This part: the store, on which the manager and the runs of [12] stand. It holds bytes in the tiers of a
// backend, on an account of its own; who holds them, and under which key, is the caller's business: the
// manager has a hash table of checkpoints, a run has arrays over tensors and nodes.
//
//     place + bytes --claim--> held bytes --transfer--> other held bytes (copied, compressed, expanded)
//                                  |
//                              give back --> the backend, or the list of what it refused to take back
//
// A place is a block and an offset, or 0: then the backend's heap finds memory, as a block of its own.
// What the backend refuses to take back is offered to it again later; until then its bytes count as used.
// The second half of this part decides about an eviction: which of the candidates is the victim, and whether it
// is compressed, spilled or dropped. These are pure functions of numbers, so a run can decide on the state of
// its simulator. The simulator ([5]) never uses the store: its counts and the backend's are independent.
// ============================================================================

// -- the store: state --

// Where a claim is placed. The block must stay longer than the claim.
typedef struct tli_placement {
    uint64_t block;   // 0 = by the heap of the backend: a block of its own
    uint64_t offset;  // in the block
} tli_placement;

static const tli_placement tli_by_heap = { 0, 0 };

// A claimed range of a tier, or nothing: range all zero.
typedef struct tli_held {
    tl_range range;
    uint8_t  tier;
    uint8_t  owns_block;  // 1 = the heap placed it: its block is freed with it
} tli_held;

// Something that the backend refused to take back: with a host address a mapping of the range, else what is
// left of held bytes (range.bytes 0: a block without a claim).
typedef struct tli_lost { tli_held held; void *host; tl_map_mode mode; } tli_lost;

typedef struct tli_store {
    tl_env    *env;                    // allocates the list
    tl_env    *backend_env;            // where the backend records errors; NULL = not known
    const tl_backend *backend;         // must outlive the store; NULL = closed
#ifndef TL_NO_ACCOUNTS
    uint64_t   account;                // 0 = the backend has no accounts
#endif
    uint64_t   bytes[TL_TIER_COUNT];   // claimed now
    uint64_t   peak_bytes;             // device tier: most bytes since the caller set it
    uint64_t   foreign[TL_TIER_COUNT]; // without accounts: live bytes of others when the peaks were reset
    int32_t    is_strict;              // 1 = a block that the backend does not take back is an error, too, and
                                       // claims fail until it has taken the whole list back: a plan has no room
                                       // for bytes that should be gone
    int32_t    enqueued;               // 1 = work was enqueued after the last submit
    tl_ticket  last_ticket;            // of the last submit
    tli_lost  *lost;
    int32_t    lost_count, lost_capacity;
} tli_store;

// -- the store: its account --

// Its account; 0 = it uses claim and release. With TL_NO_ACCOUNTS this is a constant, so that the compiler
// removes the code behind it.
static uint64_t tli_account_of(const tli_store *store) {
#ifndef TL_NO_ACCOUNTS
    return store->account;
#else
    (void)store;
    return 0;
#endif
}

#ifdef TLI_INVARIANTS
// Bytes that the backend refused to take back count as claimed, and the peak is no less than what is claimed.
static int tli_store_holds(const tli_store *store) {
    uint64_t bytes[TL_TIER_COUNT];
    int32_t i;
    tli_zero(bytes, sizeof bytes);
    for (i = 0; i < store->lost_count; i++)
        if (!store->lost[i].host) bytes[store->lost[i].held.tier] += store->lost[i].held.range.bytes;
    for (i = 0; i < TL_TIER_COUNT; i++) if (bytes[i] > store->bytes[i]) return 0;
    return store->lost_count <= store->lost_capacity && store->bytes[TL_TIER_DEVICE] <= store->peak_bytes;
}
#endif

// limit_bytes: of each tier; 0 = none.
static tl_result tli_open_store(tl_env *env, const tl_backend *backend,
                                const uint64_t limit_bytes[TL_TIER_COUNT], tli_store *store) {
    tl_backend_limits limits;
    tl_result result = TL_OK;
    tli_zero(store, sizeof *store);
    tli_zero(&limits, sizeof limits);
    if (backend->limits) (backend->limits)(backend->self, &limits);
    store->env = env;
    store->backend_env = limits.env;
#ifndef TL_NO_ACCOUNTS
    if (backend->open_account) result = (backend->open_account)(backend->self, limit_bytes, &store->account);
#else
    (void)limit_bytes;
#endif
    if (!result) store->backend = backend;
    TLI_INVARIANT(tli_store_holds(store));
    return result;
}

// What this store holds, counted by the backend; without accounts nobody can tell whose blocks are whose, and
// taken bytes are 0. With resets = 1 peaks start again from the present bytes.
static void tli_measure_store(tli_store *store, int resets, tl_account_counters *counters) {
    const tl_backend *backend = store->backend;
    tl_backend_counters all;
    int tier;
    tli_zero(counters, sizeof *counters);
    if (resets) (backend->reset_peaks)(backend->self);
    if (tli_account_of(store)) {
        (void)(backend->measure_account)(backend->self, tli_account_of(store), resets, counters);
        return;
    }
    (backend->counters)(backend->self, &all);
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        if (resets) store->foreign[tier] = all.live_bytes[tier] - store->bytes[tier];
        counters->live_bytes[tier] = all.live_bytes[tier] - store->foreign[tier];
        counters->peak_bytes[tier] = all.peak_bytes[tier] - store->foreign[tier];
    }
    counters->arena_bytes = all.arena_bytes;
}

// -- the store: work --

static tl_result tli_submit_store(tli_store *store) {
    tl_result result;
    if (!store->enqueued) return TL_OK;
    result = (store->backend->submit)(store->backend->self, &store->last_ticket);
    if (!result) store->enqueued = 0;
    TLI_INVARIANT(result || !store->enqueued);
    return result;
}

static tl_result tli_order_range(const tli_store *store, const tl_range *range, int writes) {
    tl_access access;
    access.range = *range;
    access.writes = writes;
    return (store->backend->order)(store->backend->self, &access, 1);
}

// Enqueue a copy or a conversion between two ranges, by the codecs in which their bytes are.
static tl_result tli_transfer(tli_store *store, const tl_range *to, tl_codec to_codec, const tl_range *from,
                              tl_codec from_codec) {
    const tl_backend *backend = store->backend;
    tl_result result;
    if (!from->bytes) return TL_OK;
    if (to_codec == from_codec) result = (backend->copy)(backend->self, *to, *from);
    else if (to_codec == TL_CODEC_NONE) result = (backend->expand)(backend->self, from_codec, *to, *from);
    else result = (backend->compress)(backend->self, to_codec, *to, *from);
    if (!result) store->enqueued = 1;
    return result;
}

static tl_result tli_fill_range(tli_store *store, const tl_range *to, uint32_t word) {
    if (!to->bytes) return TL_OK;
    store->enqueued = 1;
    return (store->backend->fill)(store->backend->self, *to, word);
}

// -- the store: give back --

static void tli_lose(tli_store *store, const tli_held *held, void *host, tl_map_mode mode) {
    tli_lost *lost;
    if (!tli_grow(store->env, (void **)&store->lost, &store->lost_capacity, store->lost_count,
                  (int64_t)store->lost_count + 1, sizeof *store->lost))
        return;
    lost = &store->lost[store->lost_count++];
    lost->held = *held;
    lost->host = host;
    lost->mode = mode;
    TLI_INVARIANT(tli_store_holds(store));
}

static tl_result tli_release_range(tli_store *store, const tli_held *held) {
    const tl_backend *backend = store->backend;
    uint64_t account = tli_account_of(store);
    tl_result result = account ? (backend->release_on)(backend->self, account, held->range)
                               : (backend->release)(backend->self, held->range);
    TLI_INVARIANT(store->bytes[held->tier] >= held->range.bytes);
    if (!result) store->bytes[held->tier] -= held->range.bytes;
    return result;
}

// Offer an entry of the list to the backend again; TL_OK once it has taken it back.
static tl_result tli_retry_one(tli_store *store, tli_lost *lost) {
    const tl_backend *backend = store->backend;
    tli_held *held = &lost->held;
    tl_result result = TL_OK;
    if (lost->host) {
        result = (backend->unmap)(backend->self, held->range, lost->mode, lost->host);
        return result == TL_ERROR_CORRUPT ? TL_OK : result;
    }
    if (held->range.bytes) result = tli_release_range(store, held);
    if (result) return result;
    held->range.bytes = 0;
    if (held->owns_block) result = (backend->free_block)(backend->self, held->range.block);
    return result == TL_ERROR_CORRUPT ? TL_OK : result;
}

// Offer the whole list again; returns the first error. What is refused to the end is freed with the backend.
static tl_result tli_retry_lost(tli_store *store) {
    tl_result first = TL_OK;
    int32_t i, kept = 0;
    for (i = 0; i < store->lost_count; i++) {
        tl_result result = tli_retry_one(store, &store->lost[i]);
        if (result && !first) first = result;
        if (result) store->lost[kept++] = store->lost[i];
    }
    store->lost_count = kept;
    TLI_INVARIANT(tli_store_holds(store));
    return first;
}

// The same inside a call that does not fail for it.
static void tli_retry_quietly(tli_store *store) {
    tli_quiet quiet = tli_begin_quiet(store->backend_env);
    (void)tli_retry_lost(store);
    tli_end_quiet(&quiet, TL_OK);
}

// Free the block of held bytes that are not claimed (any more). *held is empty then.
static tl_result tli_free_held_block(tli_store *store, tli_held *held) {
    tli_quiet quiet = tli_begin_quiet(store->backend_env);
    tl_result result = TL_OK;
    held->range.bytes = 0;
    if (held->owns_block) result = (store->backend->free_block)(store->backend->self, held->range.block);
    if (result && result != TL_ERROR_CORRUPT) {
        tli_lose(store, held, NULL, TL_MAP_READ);
        if (!store->is_strict) result = TL_OK;
    }
    tli_end_quiet(&quiet, result);
    tli_zero(&held->range, sizeof held->range);
    TLI_INVARIANT(tli_store_holds(store));
    return result;
}

// Give held bytes back. *gone = 1: they are no longer claimed and *held is empty, also if an error is
// returned; *gone = 0: an error, and nothing changed.
static tl_result tli_give_back(tli_store *store, tli_held *held, int *gone) {
    tl_result result;
    *gone = 1;
    if (!held->range.bytes) return TL_OK;
    *gone = 0;
    if (store->lost_count) tli_retry_quietly(store);
    result = tli_release_range(store, held);
    if (result) return result;
    *gone = 1;
    return tli_free_held_block(store, held);
}

// Give back bytes that are not needed any more. What is refused is remembered; *held is empty in any case.
static tl_result tli_abandon(tli_store *store, tli_held *held) {
    int gone;
    tl_result result = tli_give_back(store, held, &gone);
    if (!gone) tli_lose(store, held, NULL, TL_MAP_READ);
    tli_zero(&held->range, sizeof held->range);
    TLI_INVARIANT(tli_store_holds(store));
    return result;
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
// Give back all but the first `bytes` of held bytes; bytes > 0. The backend must have `shorten`.
static tl_result tli_shorten_held(tli_store *store, tli_held *held, uint64_t bytes) {
    tl_result result = (store->backend->shorten)(store->backend->self, tli_account_of(store), held->range,
                                               bytes);
    if (result) return result;
    TLI_INVARIANT(bytes <= held->range.bytes && store->bytes[held->tier] >= held->range.bytes);
    store->bytes[held->tier] -= held->range.bytes - bytes;
    held->range.bytes = bytes;
    return TL_OK;
}
#endif

#ifndef TL_NO_ONLINE
// Unmap; a mapping whose unmap failed is remembered, so that it ends before its range is released.
static tl_result tli_unmap_held(tli_store *store, const tli_held *held, tl_map_mode mode, void *host) {
    tl_result result = (store->backend->unmap)(store->backend->self, held->range, mode, host);
    if (result && result != TL_ERROR_CORRUPT) tli_lose(store, held, host, mode);
    return result;
}
#endif

// Give the account back, and what the backend now takes of the list.
static void tli_close_store(tli_store *store) {
    const tl_backend *backend = store->backend;
    if (backend) {
        tli_retry_quietly(store);
        if (tli_account_of(store)) (void)(backend->close_account)(backend->self, tli_account_of(store));
    }
    tli_release(store->env, store->lost);
    store->backend = NULL;
    store->lost = NULL;
}

// -- the store: claim and replace --

// Find the memory of a claim: at its place, or in a new block. Nothing is claimed yet. bytes must be > 0.
static tl_result tli_place_held(tli_store *store, tl_tier tier, uint64_t bytes, const tli_placement *place,
                                tli_held *held) {
    const tl_backend *backend = store->backend;
    tl_result result = TL_OK;
    tli_zero(held, sizeof *held);
    held->tier = (uint8_t)tier;
    held->owns_block = !place->block;
    held->range.block = place->block;
    held->range.offset = place->block ? place->offset : 0;
    held->range.bytes = bytes;
    if (held->owns_block) result = (backend->add_block)(backend->self, tier, bytes, &held->range.block);
    if (result) tli_zero(&held->range, sizeof held->range);
    return result;
}

// Claim a range whose memory was found. If that fails its own block is freed and *held is empty.
static tl_result tli_claim_placed(tli_store *store, tli_held *held) {
    const tl_backend *backend = store->backend;
    uint64_t account = tli_account_of(store);
    tl_result result = account ? (backend->claim_on)(backend->self, account, held->range)
                               : (backend->claim)(backend->self, held->range);
    if (result) {
        (void)tli_free_held_block(store, held);
        return result;
    }
    store->bytes[held->tier] += held->range.bytes;
    if (held->tier == TL_TIER_DEVICE && store->bytes[TL_TIER_DEVICE] > store->peak_bytes)
        store->peak_bytes = store->bytes[TL_TIER_DEVICE];
    TLI_INVARIANT(tli_store_holds(store));
    return TL_OK;
}

// Both. No bytes need no memory: *held stays empty then.
static tl_result tli_claim(tli_store *store, tl_tier tier, uint64_t bytes, const tli_placement *place,
                           tli_held *held) {
    tl_result result = store->is_strict && store->lost_count ? tli_retry_lost(store) : TL_OK;
    tli_zero(held, sizeof *held);
    if (result || !bytes) return result;
    result = tli_place_held(store, tier, bytes, place, held);
    return result ? result : tli_claim_placed(store, held);
}

// Let `to`, where the bytes stand now, take the place of `held`, which is given back. *gone = 0: the backend
// refused, `to` was given back instead, and nothing changed.
static tl_result tli_replace(tli_store *store, tli_held *held, tli_held *to, int *gone) {
    tl_result result = tli_give_back(store, held, gone);
    if (!*gone) {
        (void)tli_abandon(store, to);
        return result;
    }
    *held = *to;
    TLI_INVARIANT(tli_store_holds(store));
    return result;
}

// Copy or convert held bytes into claimed ones, which take their place. *gone as above, 0 also if the copy
// was refused.
static tl_result tli_move_held(tli_store *store, tli_held *held, tl_codec from_codec, tli_held *to,
                               tl_codec to_codec, int *gone) {
    tl_result result = tli_transfer(store, &to->range, to_codec, &held->range, from_codec);
    *gone = 0;
    if (!result) return tli_replace(store, held, to, gone);
    (void)tli_abandon(store, to);
    return result;
}

#ifndef TL_NO_ONLINE
// -- evictions: the victim --

// The figures that an eviction compares.
typedef struct tli_victim {
    uint64_t timestamp, last_use;
    uint64_t bytes;  // that it takes now
    uint64_t cost;   // of recomputing it
} tli_victim;

// limbs = a b c: 192 bits, least significant first.
static void tli_mul_wide(uint64_t a, uint64_t b, uint64_t c, uint64_t limbs[3]) {
    uint32_t factors[4], words[6];
    uint64_t carry;
    int i, j;
    factors[0] = (uint32_t)b; factors[1] = (uint32_t)(b >> 32);
    factors[2] = (uint32_t)c; factors[3] = (uint32_t)(c >> 32);
    words[0] = (uint32_t)a; words[1] = (uint32_t)(a >> 32);
    words[2] = words[3] = words[4] = words[5] = 0;
    for (i = 0; i < 4; i += 2) {
        uint64_t low = 0, high = 0, sum;
        uint32_t before = 0;
        carry = 0;
        for (j = 0; j < 6; j++) {  // words x (factors[i] + 2^32 factors[i + 1]), one word at a time
            low = (uint64_t)words[j] * factors[i] + (carry & 0xFFFFFFFFu);
            high = (uint64_t)before * factors[i + 1] + (carry >> 32);
            before = words[j];
            sum = (low & 0xFFFFFFFFu) + (high & 0xFFFFFFFFu);
            words[j] = (uint32_t)sum;
            carry = (low >> 32) + (sum >> 32);
            carry = (carry & 0xFFFFFFFFu) | (high >> 32) << 32;
        }
    }
    for (i = 0; i < 3; i++) limbs[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

// Whether a is evicted before b. By cost: the least cost / (bytes x staleness), where staleness counts
// saves from 1; cross-multiplied, so the comparison is exact. Equal ones are compared by age, and so are
// those of the caller's own order.
static int tli_evict_before(tl_eviction eviction, const tli_victim *a, const tli_victim *b, uint64_t now) {
    uint64_t left[3], right[3];
    int i;
    switch (eviction) {
    case TL_EVICTION_COST:
        tli_mul_wide(a->cost, b->bytes, now - b->last_use + 1, left);
        tli_mul_wide(b->cost, a->bytes, now - a->last_use + 1, right);
        for (i = 2; i >= 0; i--)
            if (left[i] != right[i]) return left[i] < right[i];
        break;
    case TL_EVICTION_RECENT:
        if (a->last_use != b->last_use) return a->last_use < b->last_use;
        break;
    case TL_EVICTION_LARGEST:
        if (a->bytes != b->bytes) return a->bytes > b->bytes;
        break;
    case TL_EVICTION_OLDEST:
    case TL_EVICTION_CALLER:
    case TL_EVICTION_COUNT: break;
    }
    return a->timestamp < b->timestamp;
}

// A search for a victim among candidates, each with an index of the caller's.
typedef struct tli_hunt {
    tl_eviction eviction;
    uint64_t    now;           // clock of last_use
    int32_t     best;          // -1 = none yet
    tli_victim  best_victim;
    tl_evict_fn evict;         // TL_EVICTION_CALLER: asked at the end
    void       *user;
    tl_checkpoint_info *infos; // [count] described for the caller's function
    int32_t    *indices;       // [count]
    int32_t     count;
} tli_hunt;

static tli_hunt tli_start_hunt(tl_eviction eviction, uint64_t now) {
    tli_hunt hunt;
    tli_zero(&hunt, sizeof hunt);
    hunt.eviction = eviction;
    hunt.now = now;
    hunt.best = -1;
    return hunt;
}

// Consider a candidate.
static void tli_offer_victim(tli_hunt *hunt, int32_t index, const tli_victim *victim) {
    if (hunt->best >= 0 && !tli_evict_before(hunt->eviction, victim, &hunt->best_victim, hunt->now)) return;
    hunt->best = index;
    hunt->best_victim = *victim;
}

// Add a candidate for the caller's function, which needs the whole description.
static void tli_describe_victim(tli_hunt *hunt, int32_t index, const tl_checkpoint_info *info) {
    hunt->infos[hunt->count] = *info;
    hunt->indices[hunt->count++] = index;
}

// The index of the victim; -1 = none, or the caller's function refused.
static int32_t tli_end_hunt(const tli_hunt *hunt) {
    int32_t picked;
    if (hunt->eviction != TL_EVICTION_CALLER) return hunt->best;
    picked = hunt->count ? (hunt->evict)(hunt->infos, hunt->count, hunt->user) : -1;
    return picked >= 0 && picked < hunt->count ? hunt->indices[picked] : -1;
}

static void tli_fill_victim(const tli_victim *victim, tl_tier tier, tl_checkpoint_info *info) {
    info->timestamp = victim->timestamp;
    info->last_use = victim->last_use;
    info->held_bytes = victim->bytes;
    info->cost = victim->cost;
    info->in_memory = tier == TL_TIER_DEVICE;
    info->tier = tier;
}

// -- evictions: the exit --

typedef enum tli_exit {
    TLI_EXIT_NONE,      // the victim has to stay
    TLI_EXIT_COMPRESS,  // both copies stand until it is compressed
    TLI_EXIT_SPILL,
    TLI_EXIT_DROP
} tli_exit;

typedef struct tli_exits {
    tl_codec codec;        // by which it may be compressed; TL_CODEC_NONE = it may not
    int32_t  may_spill, may_drop;
    uint64_t bytes;        // uncompressed
    uint64_t held_bytes;   // that it takes now
    uint64_t device_room, host_room;  // free bytes of the budgets
} tli_exits;

// Bytes of a budget that are free.
static uint64_t tli_room(uint64_t budget, uint64_t used) { return used < budget ? budget - used : 0; }

// Compress if that is allowed and fits, else spill if the host has room, else drop.
static tli_exit tli_choose_exit(const tli_exits *exits) {
    uint64_t packed = tl_find_codec_bytes(exits->codec, exits->bytes);
    if (TLI_CODECS && exits->codec != TL_CODEC_NONE && packed < exits->bytes && packed <= exits->device_room)
        return TLI_EXIT_COMPRESS;
    if (exits->may_spill && exits->held_bytes <= exits->host_room) return TLI_EXIT_SPILL;
    return exits->may_drop ? TLI_EXIT_DROP : TLI_EXIT_NONE;
}
#endif  // TL_NO_ONLINE
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
