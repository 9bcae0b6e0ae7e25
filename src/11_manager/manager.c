#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_ONLINE

// -- the manager --
//
// Checkpoints are entries in an array. A hash table of cells finds them by key; those that hold device
// bytes are also linked in lists, from which an eviction takes its victim:
//
//     cells  [hash, entry] [     ] [hash, entry] ...      key -> entry
//     lists  oldest <-> ... <-> newest                    one for each class of size or of cost per byte,
//                                                         twice: droppable, and kept (keep = 1)
//
// -- names, policies --

static const char *const tli_eviction_names[] = { TL_EVICTIONS(TLI_NAME) };

TLI_IMPL const char *tl_name_eviction(tl_eviction eviction) {
    return tli_name(tli_eviction_names, TL_EVICTION_COUNT, (int64_t)eviction);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_eviction(const char *text, tl_eviction *eviction) {
    int32_t value;
    int known = tli_parse_word(tli_eviction_names, TL_EVICTION_COUNT, text, &value);
    TL_ASSERT(eviction);
    *eviction = (tl_eviction)value;
    return known;
}
#endif

// The policies that decide about each tensor when it is saved, or made, without a plan.
#define TLI_POLICIES_ONLINE (TLI_POLICY(KEEP_ALL) | TLI_POLICY(EVERY_N) | TLI_POLICY(SELECTIVE) | \
                             TLI_POLICY(NONE))

// Check the policy of a manager or of an online run. Nothing is planned, so an interval must be given.
static tl_result tli_check_online_policy(tl_env *env, tli_function function, const tl_policy *policy) {
    tl_result result = tli_check_policy_kind(env, function, policy->kind, TLI_POLICIES_ONLINE,
                                             TLI_RULE(POLICY_MUST_BE_ONLINE));
    if (result || policy->kind != TL_POLICY_EVERY_N || policy->as.every_n.interval) return result;
    return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(INTERVAL_MUST_BE_POSITIVE));
}

// Whether the policy wants a checkpoint of this node and cost. The policy must have been checked.
static int tli_wants_checkpoint(const tl_policy *policy, int32_t node, uint64_t cost) {
    switch (policy->kind) {
    case TL_POLICY_KEEP_ALL:  return 1;
    case TL_POLICY_NONE:      return 0;
    case TL_POLICY_SELECTIVE: return cost >= policy->as.selective.cost_threshold;
    case TL_POLICY_EVERY_N:   return (uint64_t)node % policy->as.every_n.interval == 0;
    case TL_POLICY_CHEN_SQRT: case TL_POLICY_CHEN_GREEDY: case TL_POLICY_REVOLVE: case TL_POLICY_CHAIN:
    case TL_POLICY_LAYERS: case TL_POLICY_FRACTION: case TL_POLICY_COUNT: break;
    }
    return 0;
}

// -- the manager: its state --

typedef struct tli_entry {
    tl_checkpoint_key key;
    tli_victim victim;     // bytes: those it takes in its tier
    uint64_t bytes;        // uncompressed
    tli_held held;
    const void *mapped;    // host address while borrowed
    int32_t  borrows;
    int32_t  list;         // index of its list; -1 = none
    int32_t  before, after;  // its links, entry + 1; after also links unused entries
    uint32_t hash;
    uint8_t  codec, keep, lossless;
    uint8_t  owns_mapped;  // 1 = mapped is memory of the env, not of the backend
} tli_entry;

typedef struct tli_cell { uint32_t hash; int32_t entry; } tli_cell;  // entry + 1; 0 = empty

typedef struct tli_list { int32_t head, tail; } tli_list;  // entry + 1

// A bank is one half of tl_manager.lists here, not a memory.
#define TLI_LIST_COUNT 256  // lists of a bank: one is used, or one for each class of size or cost per byte
#define TLI_DROPPABLE  0    // bank of entries that may be dropped
#define TLI_KEPT       1    // bank of entries that may be compressed or spilled, but not dropped

struct tl_manager {
    tl_env *env;
    tli_entry *entries;              // these first: offsets that are short take less code
    int32_t  entry_capacity, entry_count, free_entry;  // entry_count: ever used; free_entry: unused + 1
    tli_cell *cells;
    uint32_t cell_count;             // a power of two
    int32_t  held, spilled;          // entries in use; of these, in the host tier
    uint64_t clock;                  // timestamp of the last save
    uint64_t droppable_bytes;        // in the device tier, neither kept nor borrowed
    tl_backend backend;
    tl_manager_desc desc;
    uint64_t budget[TL_TIER_COUNT];  // the lesser of the desc's and the backend's capacity
    tl_limit limit;                  // which of the two that of the device is
    int32_t  device_is_finite;       // 1 = the backend knows its capacity: if add_block fails, it is full
    int32_t  host_visible;
    tli_store store;
    tli_list lists[2 * TLI_LIST_COUNT];
    uint32_t list_bits[2 * TLI_LIST_COUNT / 32];
    tl_checkpoint_info *candidates;  // TL_EVICTION_CALLER
    int32_t *candidate_entries;
    int32_t  candidate_capacity, candidate_entry_capacity;
    tl_checkpoint_statistics statistics;
    char     lock;
};

// -- lock: the caller's, or a spin lock; no call takes it twice --

#ifndef TL_NO_THREADS
#if defined(__GNUC__) || defined(__clang__)
static void tli_spin_lock(char *lock) {
    while (__atomic_test_and_set(lock, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(lock, __ATOMIC_RELAXED)) {}
}
static void tli_spin_unlock(char *lock) { __atomic_clear(lock, __ATOMIC_RELEASE); }
#elif defined(_MSC_VER)
#include <intrin.h>
static void tli_spin_lock(char *lock) { while (_InterlockedExchange8(lock, 1)) {} }
static void tli_spin_unlock(char *lock) { _InterlockedExchange8(lock, 0); }
#else
#error "tl_strategy.h: no spin lock for this compiler: define TL_NO_THREADS, give a manager your own lock"
#endif
#endif

static void tli_lock_manager(tl_manager *m) {
    if (m->desc.lock.lock) { (m->desc.lock.lock)(m->desc.lock.user); return; }
#ifndef TL_NO_THREADS
    tli_spin_lock(&m->lock);
#endif
}

static void tli_unlock_manager(tl_manager *m) {
    if (m->desc.lock.unlock) { (m->desc.lock.unlock)(m->desc.lock.user); return; }
#ifndef TL_NO_THREADS
    tli_spin_unlock(&m->lock);
#endif
}

// -- table: open addressing on micro-batch, node and output; the step is not hashed --

// The cells of eight neighbouring nodes share a cache line, because passes visit the nodes in order.
static uint32_t tli_hash_key(const tl_checkpoint_key *key) {
    uint64_t place = (uint64_t)((uint32_t)key->node >> 3) << 32 | (uint32_t)key->output;
    uint32_t hash = (uint32_t)(tl_mix_u64(place, (uint64_t)(uint32_t)key->micro_batch) >> 32);
    return (hash & ~7u) | ((uint32_t)key->node & 7u);
}

static int tli_same_place(const tl_checkpoint_key *a, const tl_checkpoint_key *b) {
    return a->node == b->node && a->output == b->output && a->micro_batch == b->micro_batch;
}

// The entry of the key's micro-batch, node and output, of any step; -1 = none.
static int32_t tli_find_entry(const tl_manager *m, const tl_checkpoint_key *key) {
    uint32_t hash = tli_hash_key(key), mask = m->cell_count - 1, at;
    if (!m->cell_count) return -1;
    for (at = hash & mask; m->cells[at].entry; at = (at + 1) & mask)
        if (m->cells[at].hash == hash && tli_same_place(&m->entries[m->cells[at].entry - 1].key, key))
            return m->cells[at].entry - 1;
    return -1;
}

#ifdef TLI_INVARIANTS
// An entry in use is found by its key, counts the bytes that it has claimed, and is in a list of its bank if
// these are of the device tier.
static int tli_entry_holds(const tl_manager *m, int32_t i) {
    const tli_entry *e = &m->entries[i];
    int is_listed = e->held.tier == TL_TIER_DEVICE && e->held.range.bytes > 0;
    if (tli_find_entry(m, &e->key) != i || e->borrows < 0 || (e->list >= 0) != is_listed) return 0;
    if (e->victim.bytes != e->held.range.bytes || e->victim.bytes > e->bytes) return 0;
    if (!is_listed) return 1;
    if (!(m->list_bits[e->list >> 5] >> (e->list & 31) & 1) || e->list / TLI_LIST_COUNT != e->keep) return 0;
    if ((e->before ? m->entries[e->before - 1].after : m->lists[e->list].head) != i + 1) return 0;
    return (e->after ? m->entries[e->after - 1].before : m->lists[e->list].tail) == i + 1;
}

// Bytes counted are those of all entries and of what the backend refused to take back, within the budgets; with
// many entries, that is looked at now and then.
static int tli_manager_holds(const tl_manager *m) {
    uint64_t bytes[TL_TIER_COUNT], droppable = 0;
    int32_t held = 0, spilled = 0, i;
    uint32_t at;
    tli_zero(bytes, sizeof bytes);
    if ((m->clock + m->statistics.hits + m->statistics.misses) % (m->cell_count / 64 + 1)) return 1;
    for (at = 0; at < m->cell_count; at++) {
        const tli_entry *e = m->cells[at].entry ? &m->entries[m->cells[at].entry - 1] : NULL;
        if (!e) continue;
        if (!tli_entry_holds(m, m->cells[at].entry - 1)) return 0;
        held++;
        spilled += e->held.tier == TL_TIER_HOST;
        bytes[e->held.tier] += e->held.range.bytes;
        if (e->list >= 0 && !e->keep && !e->borrows) droppable += e->victim.bytes;
    }
    for (i = 0; i < m->store.lost_count; i++)
        if (!m->store.lost[i].host) bytes[m->store.lost[i].held.tier] += m->store.lost[i].held.range.bytes;
    for (i = 0; i < TL_TIER_COUNT; i++)
        if (bytes[i] != m->store.bytes[i] || bytes[i] > m->budget[i]) return 0;
    if (held != m->held || spilled != m->spilled || droppable != m->droppable_bytes) return 0;
    return tli_store_holds(&m->store);
}
#endif

static void tli_put_cell(tli_cell *cells, uint32_t cell_count, uint32_t hash, int32_t entry) {
    uint32_t at = hash & (cell_count - 1);
    while (cells[at].entry) at = (at + 1) & (cell_count - 1);
    cells[at].hash = hash;
    cells[at].entry = entry + 1;
    TLI_INVARIANT(cells[at].hash == hash);
}

// Empty a cell and move later cells of its probe sequence up, so that no search ends too early and no
// deleted cells accumulate.
static void tli_clear_cell(tl_manager *m, int32_t entry) {
    uint32_t mask = m->cell_count - 1, gap = m->entries[entry].hash & mask, at;
    while (m->cells[gap].entry != entry + 1) gap = (gap + 1) & mask;
    for (at = (gap + 1) & mask; m->cells[at].entry; at = (at + 1) & mask) {
        if (((at - m->cells[at].hash) & mask) < ((at - gap) & mask)) continue;  // its home is after the gap
        m->cells[gap] = m->cells[at];
        gap = at;
    }
    m->cells[gap].entry = 0;
    TLI_INVARIANT(tli_find_entry(m, &m->entries[entry].key) < 0);
}

// Make room for `count` entries in every table.
static int tli_reserve_entries(tl_manager *m, int64_t count) {
    uint32_t cells = m->cell_count ? m->cell_count : 16, i;
    tli_cell *table;
    if (count > (int64_t)1 << 29) return 0;
    if (!tli_grow(m->env, (void **)&m->entries, &m->entry_capacity, m->entry_count, count,
                  sizeof *m->entries))
        return 0;
    if (m->desc.eviction == TL_EVICTION_CALLER &&
        (!tli_grow(m->env, (void **)&m->candidate_entries, &m->candidate_entry_capacity, 0, m->entry_capacity,
                   sizeof *m->candidate_entries) ||
         !tli_grow(m->env, (void **)&m->candidates, &m->candidate_capacity, 0, m->entry_capacity,
                   sizeof *m->candidates)))
        return 0;
    while (cells < 2 * (uint64_t)count) cells *= 2;
    if (cells == m->cell_count) return 1;
    table = (tli_cell *)tli_alloc_array(m->env, cells, sizeof *table);
    if (!table) return 0;
    for (i = 0; i < m->cell_count; i++)
        if (m->cells[i].entry) tli_put_cell(table, cells, m->cells[i].hash, m->cells[i].entry - 1);
    tli_release(m->env, m->cells);
    m->cells = table;
    m->cell_count = cells;
    TLI_INVARIANT(2 * (int64_t)m->held <= m->cell_count);
    return 1;
}

// Take an unused entry for a key; tli_reserve_entries made room.
static int32_t tli_add_entry(tl_manager *m, const tl_checkpoint_key *key) {
    int32_t i = m->free_entry ? m->free_entry - 1 : m->entry_count++;
    tli_entry *e = &m->entries[i];
    if (m->free_entry) m->free_entry = e->after;
    tli_zero(e, sizeof *e);
    e->key = *key;
    e->list = -1;
    e->hash = tli_hash_key(key);
    tli_put_cell(m->cells, m->cell_count, e->hash, i);
    m->held++;
    TLI_INVARIANT(tli_find_entry(m, key) == i && m->held <= m->entry_count);
    return i;
}

static void tli_remove_entry(tl_manager *m, int32_t i) {
    tli_clear_cell(m, i);
    m->spilled -= m->entries[i].held.tier == TL_TIER_HOST;
    m->entries[i].after = m->free_entry;
    m->free_entry = i + 1;
    m->held--;
    TLI_INVARIANT(m->spilled >= 0 && m->held >= m->spilled);
}

// -- lists of entries that may be evicted, each in order of age or of last use --

// The list of an entry, by its class of size or of cost per byte, in steps of a fraction of a power of
// two. Classes save time: the victim is then near the best ([11] says how near), not always the best.
static int32_t tli_list_of(const tl_manager *m, const tli_entry *e) {
    int32_t bank = e->keep ? TLI_LIST_COUNT * TLI_KEPT : TLI_LIST_COUNT * TLI_DROPPABLE;
    if (m->desc.eviction == TL_EVICTION_LARGEST) return bank + tli_class_of(e->victim.bytes);
    if (m->desc.eviction != TL_EVICTION_COST || !e->victim.cost) return bank;
    return bank + (tli_class_of(e->victim.cost) - tli_class_of(e->victim.bytes) + 258) / 2;
}

static uint64_t tli_list_key(const tl_manager *m, const tli_entry *e) {
    int by_use = m->desc.eviction == TL_EVICTION_COST || m->desc.eviction == TL_EVICTION_RECENT;
    return by_use ? e->victim.last_use : e->victim.timestamp;
}

// Whether an entry of a list may be dropped now.
static int tli_is_droppable(const tli_entry *e) { return !e->keep && !e->borrows; }

// Insert an entry that takes device bytes into its list, in order of tli_list_key. The place is searched from
// both ends at once: new entries belong at the end, those that just left the front at the front.
static void tli_enlist(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    uint64_t key = tli_list_key(m, e);
    int32_t front, back;
    tli_list *list;
    if (!e->victim.bytes) return;
    e->list = tli_list_of(m, e);
    list = &m->lists[e->list];
    m->list_bits[e->list >> 5] |= (uint32_t)1 << (e->list & 31);
    front = list->head;
    back = list->tail;
    while (back && tli_list_key(m, &m->entries[back - 1]) > key) {
        if (tli_list_key(m, &m->entries[front - 1]) > key) { back = m->entries[front - 1].before; break; }
        front = m->entries[front - 1].after;
        back = m->entries[back - 1].before;
    }
    e->before = back;
    e->after = back ? m->entries[back - 1].after : list->head;
    if (e->before) m->entries[e->before - 1].after = i + 1; else list->head = i + 1;
    if (e->after) m->entries[e->after - 1].before = i + 1; else list->tail = i + 1;
    if (tli_is_droppable(e)) m->droppable_bytes += e->victim.bytes;
    TLI_INVARIANT(!e->before || tli_list_key(m, &m->entries[e->before - 1]) <= key);
    TLI_INVARIANT(!e->after || tli_list_key(m, &m->entries[e->after - 1]) > key);
}

static void tli_delist(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    tli_list *list;
    if (e->list < 0) return;
    list = &m->lists[e->list];
    if (e->before) m->entries[e->before - 1].after = e->after; else list->head = e->after;
    if (e->after) m->entries[e->after - 1].before = e->before; else list->tail = e->before;
    if (!list->head) m->list_bits[e->list >> 5] &= ~((uint32_t)1 << (e->list & 31));
    TLI_INVARIANT(!tli_is_droppable(e) || m->droppable_bytes >= e->victim.bytes);
    if (tli_is_droppable(e)) m->droppable_bytes -= e->victim.bytes;
    e->list = -1;
}

// A borrowed entry stays in its list; evictions skip it.
static void tli_borrow(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    if (e->list >= 0 && tli_is_droppable(e)) m->droppable_bytes -= e->victim.bytes;
    e->borrows++;
    TLI_INVARIANT(e->borrows > 0);
}

static void tli_unborrow(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    e->borrows--;
    if (e->list >= 0 && tli_is_droppable(e)) m->droppable_bytes += e->victim.bytes;
    TLI_INVARIANT(e->borrows >= 0);
}

// -- memory and work of the backend --

static tl_result tli_fail_backend(tl_env *env, tli_function function, tli_rule rule, tl_result result) {
    tli_sentence s = tli_begin_error(env, result, function, rule, 0, 0);
    if (TLI_ERROR_TEXT) tli_put(&s.text, "backend: ");
    tli_put_text(&s, tl_explain_result(result));
    return tli_end_error(env, &s, result);
}

// Map held bytes once the work on them is finished. After the device was lost, the host tier can still be
// read.
static tl_result tli_map_held(const tli_store *store, const tli_held *held, tl_map_mode mode, void **host) {
    tl_result result = tli_order_range(store, &held->range, mode != TL_MAP_READ);
    *host = NULL;
    if (result == TL_ERROR_DEVICE_LOST && held->tier == TL_TIER_HOST && mode == TL_MAP_READ) result = TL_OK;
    return result ? result : (store->backend->map)(store->backend->self, held->range, mode, host);
}

static uint64_t tli_find_room(const tl_manager *m, tl_tier tier) {
    return tli_room(m->budget[tier], m->store.bytes[tier]);
}

static int tli_has_room(const tl_manager *m, uint64_t bytes) {
    uint64_t used = m->store.bytes[TL_TIER_DEVICE];
    return used <= m->budget[TL_TIER_DEVICE] && bytes <= m->budget[TL_TIER_DEVICE] - used;
}

// -- eviction --

// How an entry is evicted: compressed, spilled or dropped; TLI_EXIT_NONE = it has to stay. may_compress = 0:
// there was no memory for its compressed bytes.
static tli_exit tli_find_exit(const tl_manager *m, const tli_entry *e, int may_compress) {
    tli_exits exits;
    exits.codec = may_compress && e->codec == TL_CODEC_NONE && !e->lossless ? m->desc.codec : TL_CODEC_NONE;
    exits.may_spill = 1;
    exits.may_drop = !e->keep;
    exits.bytes = e->bytes;
    exits.held_bytes = e->victim.bytes;
    exits.device_room = tli_find_room(m, TL_TIER_DEVICE);
    exits.host_room = tli_find_room(m, TL_TIER_HOST);
    return tli_choose_exit(&exits);
}

static int tli_may_evict(const tl_manager *m, const tli_entry *e) {
    return !e->borrows && (!e->keep || tli_find_exit(m, e, 1) != TLI_EXIT_NONE);
}

static void tli_fill_info(const tli_entry *e, tl_checkpoint_info *info) {
    tli_fill_victim(&e->victim, (tl_tier)e->held.tier, info);
    info->key = e->key;
    info->bytes = e->bytes;
    info->codec = (tl_codec)e->codec;
}

// Pick from a bank: the best among the first evictable entry of each list; -1 = none. The caller's function
// sees all evictable entries.
static int32_t tli_pick_victim(tl_manager *m, int32_t bank) {
    tli_hunt hunt = tli_start_hunt(m->desc.eviction, m->clock);
    int asks = m->desc.eviction == TL_EVICTION_CALLER;
    tl_checkpoint_info info;
    int32_t word, at;
    hunt.evict = m->desc.evict;
    hunt.user = m->desc.user;
    hunt.infos = m->candidates;
    hunt.indices = m->candidate_entries;
    for (word = TLI_LIST_COUNT / 32 - 1; word >= 0; word--) {
        uint32_t bits = m->list_bits[bank * TLI_LIST_COUNT / 32 + word];
        while (bits) {
            int32_t bit = tli_log2_u64(bits);
            const tli_list *list = &m->lists[bank * TLI_LIST_COUNT + word * 32 + bit];
            bits &= ~((uint32_t)1 << bit);
            for (at = list->head; at; at = m->entries[at - 1].after) {
                if (!tli_may_evict(m, &m->entries[at - 1])) continue;
                if (!asks) break;
                tli_fill_info(&m->entries[at - 1], &info);
                tli_describe_victim(&hunt, at - 1, &info);
            }
            if (!at) continue;
            tli_offer_victim(&hunt, at - 1, &m->entries[at - 1].victim);
            if (m->desc.eviction == TL_EVICTION_LARGEST) return hunt.best;
        }
    }
    return tli_end_hunt(&hunt);
}

// Copy, or convert, an entry into claimed bytes, where it lives from then on. If the backend refuses the copy,
// or to take the old bytes back, nothing changed.
static tl_result tli_move_entry(tl_manager *m, int32_t i, tli_held *to, tl_codec codec) {
    tli_entry *e = &m->entries[i];
    int was_spilled = e->held.tier == TL_TIER_HOST, moved;
    tl_result result = tli_move_held(&m->store, &e->held, (tl_codec)e->codec, to, codec, &moved);
    if (!moved) return result;
    tli_delist(m, i);
    m->spilled += (e->held.tier == TL_TIER_HOST) - was_spilled;
    e->victim.bytes = e->held.range.bytes;
    e->codec = (uint8_t)codec;
    if (e->held.tier == TL_TIER_DEVICE) tli_enlist(m, i);
    TLI_INVARIANT(tli_entry_holds(m, i));
    return result;
}

// Compress or spill an entry. *full = 1, and nothing was done: there is no memory for the compressed bytes.
static tl_result tli_relocate(tl_env *env, tl_manager *m, tli_function function, int32_t i, tli_exit way,
                              int *full) {
    tli_entry *e = &m->entries[i];
    int packs = way == TLI_EXIT_COMPRESS;
    tl_tier tier = packs ? TL_TIER_DEVICE : TL_TIER_HOST;
    tl_codec codec = packs ? m->desc.codec : (tl_codec)e->codec;
    uint64_t bytes = packs ? tl_find_codec_bytes(codec, e->bytes) : e->victim.bytes;
    tli_held to;
    tli_quiet quiet = tli_begin_quiet(packs ? m->store.backend_env : NULL);
    tl_result result = tli_place_held(&m->store, tier, bytes, &tli_by_heap, &to);
    *full = result == TL_ERROR_NO_MEMORY && packs && m->device_is_finite;
    tli_end_quiet(&quiet, *full ? TL_OK : result);
    if (*full) return TL_OK;
    if (result) return tli_fail_backend(env, function, TLI_RULE(ADD_BLOCK_FAILED), result);
    result = tli_claim_placed(&m->store, &to);
    if (!result) result = tli_move_entry(m, i, &to, codec);
    if (result) return tli_fail_backend(env, function, packs ? TLI_RULE(COMPRESS_FAILED)
                                        : TLI_RULE(SPILL_FAILED), result);
    if (packs) m->statistics.compressions++;
    else m->statistics.spills++;
    TLI_INVARIANT(tier != TL_TIER_HOST || m->store.bytes[tier] <= m->budget[tier]);
    return TL_OK;
}

// Free the bytes of an entry and remove it.
static tl_result tli_discard(tl_env *env, tl_manager *m, tli_function function, int32_t i) {
    int gone;
    tl_result result = tli_give_back(&m->store, &m->entries[i].held, &gone);
    if (gone) {
        tli_delist(m, i);
        tli_remove_entry(m, i);
    }
    return result ? tli_fail_backend(env, function, TLI_RULE(RELEASE_FAILED), result) : TL_OK;
}

// Evict one entry of a bank. TL_ERROR_OVER_BUDGET, without a text, if there is none to evict.
static tl_result tli_evict_one(tl_env *env, tl_manager *m, tli_function function, int32_t bank) {
    int32_t i = tli_pick_victim(m, bank);
    tli_exit way = i >= 0 ? tli_find_exit(m, &m->entries[i], 1) : TLI_EXIT_NONE;
    tl_result result = TL_OK;
    int full = 0;
    if (way == TLI_EXIT_COMPRESS) result = tli_relocate(env, m, function, i, way, &full);
    if (full) way = tli_find_exit(m, &m->entries[i], 0);
    if (way == TLI_EXIT_NONE) return TL_ERROR_OVER_BUDGET;
    if (way == TLI_EXIT_SPILL) result = tli_relocate(env, m, function, i, way, &full);
    if (way == TLI_EXIT_DROP) {
        result = tli_discard(env, m, function, i);
        if (!result) m->statistics.dropped++;
    }
    if (!result) m->statistics.evictions++;
    return result;
}

static tl_result tli_refuse(tl_env *env, tl_manager *m, tli_function function, uint64_t bytes) {
    uint64_t used = m->store.bytes[TL_TIER_DEVICE], need;
    tli_sentence s;
    if (!tli_add_u64(used - m->droppable_bytes, bytes, &need)) need = UINT64_MAX;
    s = tli_begin_error(env, TL_ERROR_OVER_BUDGET, function,
                        TLI_RULE(BUDGET_BYTES_DO_NOT_FIT_OF_ARE_IN_USE),
                        m->budget[TL_TIER_DEVICE], need);
    tli_put_limit(env, &s, m->limit);
    tli_put_rule(&s);
    tli_put_u64(&s.text, bytes);
    tli_put_rule(&s);
    tli_put_u64(&s.text, used);
    tli_put_rule(&s);
    tli_put_u64(&s.text, m->droppable_bytes);
    return tli_end_error(env, &s, TL_ERROR_OVER_BUDGET);
}

// Ensure that dropping all droppable entries would make room; if not, compress or spill kept ones. So a
// request that cannot be met is refused before anything is dropped.
static tl_result tli_clear_way(tl_env *env, tl_manager *m, tli_function function, uint64_t bytes) {
    uint64_t budget = m->budget[TL_TIER_DEVICE];
    tl_result result = bytes > budget ? TL_ERROR_OVER_BUDGET : TL_OK;
    while (!result && m->store.bytes[TL_TIER_DEVICE] - m->droppable_bytes > budget - bytes)
        result = tli_evict_one(env, m, function, TLI_KEPT);
    return result == TL_ERROR_OVER_BUDGET ? tli_refuse(env, m, function, bytes) : result;
}

static tl_result tli_evict_until(tl_env *env, tl_manager *m, tli_function function, uint64_t bytes) {
    tl_result result = TL_OK;
    while (!result && !tli_has_room(m, bytes))
        result = tli_evict_one(env, m, function, TLI_DROPPABLE);
    return result == TL_ERROR_OVER_BUDGET ? tli_refuse(env, m, function, bytes) : result;
}

// Claim bytes in the device tier, evicting for them. Their memory is found before anything is dropped, so
// nothing is lost if there is none. Only if the backend's capacity is known are entries evicted to find it.
static tl_result tli_acquire(tl_env *env, tl_manager *m, tli_function function, uint64_t bytes,
                             tli_held *held) {
    tl_result result, evicted = TL_OK;
    tli_quiet quiet;
    tli_zero(held, sizeof *held);
    if (!bytes) return TL_OK;
    result = tli_clear_way(env, m, function, bytes);
    if (result) return result;
    quiet = tli_begin_quiet(m->device_is_finite ? m->store.backend_env : NULL);
    result = tli_place_held(&m->store, TL_TIER_DEVICE, bytes, &tli_by_heap, held);
    while (result == TL_ERROR_NO_MEMORY && m->device_is_finite && !evicted) {
        evicted = tli_evict_one(env, m, function, TLI_DROPPABLE);
        if (!evicted) result = tli_place_held(&m->store, TL_TIER_DEVICE, bytes, &tli_by_heap, held);
    }
    tli_end_quiet(&quiet, result);  // also where an eviction failed: no block was made then
    if (evicted && evicted != TL_ERROR_OVER_BUDGET) return evicted;
    if (result) return tli_fail_backend(env, function, TLI_RULE(ADD_BLOCK_FAILED), result);
    result = tli_evict_until(env, m, function, bytes);
    if (result) {
        (void)tli_free_held_block(&m->store, held);
        return result;
    }
    result = tli_claim_placed(&m->store, held);
    TLI_INVARIANT(result || m->store.bytes[TL_TIER_DEVICE] <= m->budget[TL_TIER_DEVICE]);
    return result ? tli_fail_backend(env, function, TLI_RULE(CLAIM_FAILED), result) : TL_OK;
}

// -- save --

static tl_result tli_check_save(tl_env *env, const tl_save_desc *desc) {
    tli_rule why = TLI_NO_RULE;
    if (desc->key.node < 0) why = TLI_RULE(KEY_NODE_MUST_BE_NOT_NEGATIVE);
    else if (desc->key.output < TL_SAVED) why = TLI_RULE(KEY_OUTPUT_MUST_BE_NOT_NEGATIVE);
    else if (desc->key.micro_batch < 0) why = TLI_RULE(KEY_MICRO_BATCH_MUST_BE_NOT_NEGATIVE);
    else if (desc->data && desc->source.bytes) why = TLI_RULE(SOURCE_ONLY_WHERE_DATA_IS_0);
    else if (!desc->data && desc->bytes && desc->bytes != desc->source.bytes) why = TLI_RULE(DATA_MISSING);
    return why ? tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(SAVE_CHECKPOINT), why) : TL_OK;
}

static tl_result tli_fail_step(tl_env *env, tli_function function, uint64_t held, uint64_t asked) {
    return tli_fail_values(env, TL_ERROR_STALE, function,
                           TLI_RULE(KEY_STEP_IS_HELD_IS_THAT_OF_STEP), asked, held);
}

// Write the bytes of a save into a claimed range.
static tl_result tli_write_save(tl_manager *m, const tl_save_desc *desc, const tli_held *to) {
    tl_result result;
    void *host;
    if (!to->range.bytes) return TL_OK;
    if (!desc->data) return tli_transfer(&m->store, &to->range, TL_CODEC_NONE, &desc->source, TL_CODEC_NONE);
    result = tli_map_held(&m->store, to, TL_MAP_WRITE, &host);
    if (result) return result;
    tli_copy(host, desc->data, (size_t)to->range.bytes);
    return tli_unmap_held(&m->store, to, TL_MAP_WRITE, host);
}

static void tli_fill_entry(tl_manager *m, int32_t i, const tl_save_desc *desc, uint64_t bytes) {
    tli_entry *e = &m->entries[i];
    e->key.step = desc->key.step;
    e->victim.timestamp = e->victim.last_use = ++m->clock;
    e->victim.bytes = e->bytes = bytes;
    e->victim.cost = desc->cost;
    e->codec = TL_CODEC_NONE;
    e->keep = desc->keep != 0;
    e->lossless = desc->lossless != 0;
    tli_enlist(m, i);
    m->statistics.saved++;
    TLI_INVARIANT(tli_entry_holds(m, i));
}

// Overwrite the bytes of an entry in place. This is done only if the host writes them, because then no
// copy can fail half way: the old bytes are untouched until the mapping succeeded. If the unmap fails,
// the range holds an unknown mix of both, and the entry is dropped.
static tl_result tli_rewrite(tl_env *env, tl_manager *m, const tl_save_desc *desc, int32_t i) {
    const tli_function function = TLI_IN(SAVE_CHECKPOINT);
    const tli_held *held = &m->entries[i].held;
    void *host;
    tl_result result = tli_map_held(&m->store, held, TL_MAP_WRITE, &host);
    if (result) return tli_fail_backend(env, function, TLI_RULE(MAP_FAILED), result);
    tli_copy(host, desc->data, (size_t)held->range.bytes);
    result = tli_unmap_held(&m->store, held, TL_MAP_WRITE, host);
    if (result) {
        (void)tli_discard(NULL, m, function, i);
        return tli_fail_backend(env, function, TLI_RULE(UNMAP_FAILED), result);
    }
    tli_delist(m, i);
    tli_fill_entry(m, i, desc, desc->bytes);
    return TL_OK;
}

static int tli_may_rewrite(const tl_manager *m, const tl_save_desc *desc, int32_t i) {
    const tli_entry *e = i >= 0 ? &m->entries[i] : NULL;
    return e && desc->data && m->host_visible && e->held.tier == TL_TIER_DEVICE && e->codec == TL_CODEC_NONE &&
        e->bytes == desc->bytes && e->bytes;
}

// Write the bytes of a save into new memory. The entry that it replaces is freed once they are complete.
static tl_result tli_store_save(tl_env *env, tl_manager *m, const tl_save_desc *desc, int32_t old,
                                tli_held *held) {
    const tli_function function = TLI_IN(SAVE_CHECKPOINT);
    tl_result result = tli_write_save(m, desc, held);
    uint64_t bytes = held->range.bytes;
    int gone = 1;
    if (result) {
        (void)tli_abandon(&m->store, held);
        return tli_fail_backend(env, function, TLI_RULE(COPY_FAILED), result);
    }
    if (old >= 0) {
        int was_spilled = m->entries[old].held.tier == TL_TIER_HOST;
        result = tli_replace(&m->store, &m->entries[old].held, held, &gone);
        if (!gone) return tli_fail_backend(env, function, TLI_RULE(RELEASE_FAILED), result);
        m->spilled -= was_spilled;
        tli_delist(m, old);
    } else {
        old = tli_add_entry(m, &desc->key);
        m->entries[old].held = *held;
    }
    tli_fill_entry(m, old, desc, bytes);
    return result ? tli_fail_backend(env, function, TLI_RULE(RELEASE_FAILED), result) : TL_OK;
}

static tl_result tli_save_unlocked(tl_env *env, tl_manager *m, const tl_save_desc *desc) {
    const tli_function function = TLI_IN(SAVE_CHECKPOINT);
    uint64_t bytes = desc->data ? desc->bytes : desc->source.bytes;
    tli_held held;
    int32_t old = tli_find_entry(m, &desc->key);
    tl_result result;
    tli_quiet quiet;
    int rewrites;
    if (old >= 0 && m->entries[old].key.step > desc->key.step)
        return tli_fail_step(env, function, m->entries[old].key.step, desc->key.step);
    if (old >= 0 && m->entries[old].borrows)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(KEY_IS_BORROWED));
    if (!desc->keep && !tli_wants_checkpoint(&m->desc.policy, desc->key.node, desc->cost)) {
        result = old >= 0 ? tli_discard(env, m, function, old) : TL_OK;  // not to be mistaken for this one
        if (!result) m->statistics.skipped++;
        return result;
    }
    if (old < 0 && !tli_reserve_entries(m, (int64_t)m->held + 1))
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_TABLE_OF_CHECKPOINTS));
    if (old >= 0) tli_borrow(m, old);
    rewrites = tli_may_rewrite(m, desc, old);
    quiet = tli_begin_quiet(rewrites ? env : NULL);
    result = tli_acquire(env, m, function, bytes, &held);
    rewrites = rewrites && result == TL_ERROR_OVER_BUDGET;
    tli_end_quiet(&quiet, rewrites ? TL_OK : result);
    if (old >= 0) tli_unborrow(m, old);
    if (rewrites) return tli_rewrite(env, m, desc, old);
    if (result == TL_ERROR_OVER_BUDGET) m->statistics.refused++;
    return result ? result : tli_store_save(env, m, desc, old, &held);
}

TLI_IMPL tl_result tl_save_checkpoint(tl_env *env, tl_manager *manager, const tl_save_desc *desc) {
    tl_result result;
    TL_ASSERT(manager && desc);
    result = tli_check_save(env, desc);
    if (result) return result;
    tli_lock_manager(manager);
    result = tli_save_unlocked(env, manager, desc);
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

// -- take, peek, release --

// The entry of a key, if it is of the key's step. counts: 1 = count a hit or a miss.
static tl_result tli_look_up(tl_env *env, tl_manager *m, tli_function function, const tl_checkpoint_key *key,
                             int counts, int32_t *entry) {
    *entry = tli_find_entry(m, key);
    if (*entry >= 0 && m->entries[*entry].key.step == key->step) {
        m->statistics.hits += counts != 0;
        return TL_OK;
    }
    m->statistics.misses += counts != 0;
    if (*entry >= 0) return tli_fail_step(env, function, m->entries[*entry].key.step, key->step);
    return tli_fail(env, TL_ERROR_NOT_FOUND, function, TLI_RULE(KEY_NOTHING_IS_HELD_UNDER_IT));
}

static tl_result tli_check_take(tl_env *env, tl_manager *m, tli_function function,
                                const tl_checkpoint_key *key, uint64_t bytes, int32_t *entry) {
    tl_result result = tli_look_up(env, m, function, key, 1, entry);
    if (result) return result;
    if (m->entries[*entry].borrows)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(KEY_IS_BORROWED));
    if (m->entries[*entry].bytes != bytes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(BYTES_ARE_NOT_THOSE_OF_CHECKPOINT));
    return TL_OK;
}

static tl_result tli_take_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key, void *data,
                                   uint64_t bytes) {
    const tli_function function = TLI_IN(TAKE_CHECKPOINT);
    int32_t i;
    const tli_held *held;
    void *host;
    tl_result result = tli_check_take(env, m, function, key, bytes, &i);
    if (result) return result;
    held = &m->entries[i].held;
    if (held->range.bytes) {
        result = tli_map_held(&m->store, held, TL_MAP_READ, &host);
        if (result) return tli_fail_backend(env, function, TLI_RULE(MAP_FAILED), result);
        tli_expand_bytes((tl_codec)m->entries[i].codec, data, host, bytes);
        result = tli_unmap_held(&m->store, held, TL_MAP_READ, host);
        if (result) return tli_fail_backend(env, function, TLI_RULE(UNMAP_FAILED), result);
    }
    return tli_discard(env, m, function, i);
}

TLI_IMPL tl_result tl_take_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key, void *data,
                                      uint64_t bytes) {
    tl_result result;
    TL_ASSERT(manager && (data || !bytes));
    tli_lock_manager(manager);
    result = tli_take_unlocked(env, manager, &key, data, bytes);
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

static tl_result tli_take_range_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key,
                                         tl_range to, tl_ticket *ticket) {
    const tli_function function = TLI_IN(TAKE_CHECKPOINT_RANGE);
    const tli_entry *e;
    int32_t i;
    tl_result result = tli_check_take(env, m, function, key, to.bytes, &i);
    if (result) return result;
    e = &m->entries[i];
    if (to.bytes) {
        result = tli_transfer(&m->store, &to, TL_CODEC_NONE, &e->held.range, (tl_codec)e->codec);
        if (result) return tli_fail_backend(env, function, TLI_RULE(COPY_FAILED), result);
        result = ticket ? tli_submit_store(&m->store) : TL_OK;
        if (result) return tli_fail_backend(env, function, TLI_RULE(SUBMIT_FAILED), result);
    }
    result = tli_discard(env, m, function, i);
    if (!result && ticket) *ticket = m->store.last_ticket;
    return result;
}

TLI_IMPL tl_result tl_take_checkpoint_range(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                            tl_range to, tl_ticket *ticket) {
    tl_result result;
    TL_ASSERT(manager);
    if (ticket) ticket->value = 0;
    tli_lock_manager(manager);
    result = tli_take_range_unlocked(env, manager, &key, to, ticket);
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

TLI_IMPL tl_result tl_submit_checkpoints(tl_env *env, tl_manager *manager, tl_ticket *ticket) {
    tl_result result;
    TL_ASSERT(manager && ticket);
    tli_lock_manager(manager);
    result = tli_submit_store(&manager->store);
    *ticket = manager->store.last_ticket;
    tli_unlock_manager(manager);
    if (!result) return TL_OK;
    ticket->value = 0;
    return tli_fail_backend(env, TLI_IN(SUBMIT_CHECKPOINTS), TLI_RULE(SUBMIT_FAILED), result);
}

// Bring an entry into the device tier, uncompressed, if it is not.
static tl_result tli_bring_back(tl_env *env, tl_manager *m, tli_function function, int32_t i) {
    const tli_entry *e = &m->entries[i];
    int fetches = e->held.tier == TL_TIER_HOST;
    tli_held held;
    tl_result result;
    if (!e->bytes || (!fetches && e->codec == TL_CODEC_NONE)) return TL_OK;
    result = tli_acquire(env, m, function, e->bytes, &held);
    if (result) return result;
    result = tli_move_entry(m, i, &held, TL_CODEC_NONE);
    if (result) return tli_fail_backend(env, function, TLI_RULE(FETCH_FAILED), result);
    m->statistics.fetches += fetches != 0;
    return TL_OK;
}

// Unpack a compressed entry of the host tier into memory of the env.
static tl_result tli_unpack(tl_manager *m, const tli_entry *e, void **data) {
    void *host;
    tl_result result = tli_map_held(&m->store, &e->held, TL_MAP_READ, &host);
    if (result) return result;
    *data = tli_alloc(m->env, (size_t)e->bytes);
    if (*data) tli_expand_bytes((tl_codec)e->codec, *data, host, e->bytes);
    result = tli_unmap_held(&m->store, &e->held, TL_MAP_READ, host);
    if (!result && *data) return TL_OK;
    tli_release(m->env, *data);
    *data = NULL;
    return result ? result : TL_ERROR_NO_MEMORY;
}

// Map the bytes of an entry, after bringing it back into the device tier. After the device was lost,
// those in the host tier are mapped, or unpacked into memory of the env.
static tl_result tli_map_entry(tl_env *env, tl_manager *m, tli_function function, int32_t i) {
    tli_entry *e = &m->entries[i];
    void *host = NULL;
    tli_quiet quiet = tli_begin_quiet(env), backend_quiet = tli_begin_quiet(m->store.backend_env);
    tl_result result = tli_bring_back(env, m, function, i);
    int is_lost = result && e->held.tier == TL_TIER_HOST &&
                  tli_order_range(&m->store, &e->held.range, 0) == TL_ERROR_DEVICE_LOST;
    tli_end_quiet(&backend_quiet, is_lost ? TL_OK : result);
    tli_end_quiet(&quiet, is_lost ? TL_OK : result);
    if (result && !is_lost) return result;
    e->owns_mapped = is_lost && e->codec != TL_CODEC_NONE;
    result = TL_OK;
    if (e->owns_mapped) result = tli_unpack(m, e, &host);
    else if (e->bytes) result = tli_map_held(&m->store, &e->held, TL_MAP_READ, &host);
    if (result) return tli_fail_backend(env, function, TLI_RULE(MAP_FAILED), result);
    e->mapped = host;
    return TL_OK;
}

static tl_result tli_peek_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key,
                                   const void **data, uint64_t *bytes) {
    const tli_function function = TLI_IN(PEEK_CHECKPOINT);
    tl_result result;
    tli_entry *e;
    int32_t i;
    result = tli_look_up(env, m, function, key, 1, &i);
    if (result) return result;
    if (!m->entries[i].borrows) {
        tli_borrow(m, i);
        result = tli_map_entry(env, m, function, i);
        tli_unborrow(m, i);
        if (result) return result;
    }
    tli_borrow(m, i);
    e = &m->entries[i];
    e->victim.last_use = m->clock;
    if (e->list >= 0 && (m->desc.eviction == TL_EVICTION_COST || m->desc.eviction == TL_EVICTION_RECENT)) {
        tli_delist(m, i);
        tli_enlist(m, i);
    }
    *data = e->mapped;
    *bytes = e->bytes;
    return TL_OK;
}

TLI_IMPL tl_result tl_peek_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                      const void **data, uint64_t *bytes) {
    tl_result result;
    TL_ASSERT(manager && data && bytes);
    *data = NULL;
    *bytes = 0;
    tli_lock_manager(manager);
    result = tli_peek_unlocked(env, manager, &key, data, bytes);
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

// End the mapping of an entry. It has also ended if the result is TL_ERROR_CORRUPT.
static tl_result tli_unmap_entry(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    tl_result result = TL_OK;
    union { const void *in; void *out; } host;
    host.in = e->mapped;
    if (host.in && e->owns_mapped) tli_release(m->env, host.out);
    else if (host.in) result = (m->backend.unmap)(m->backend.self, e->held.range, TL_MAP_READ, host.out);
    if (!result || result == TL_ERROR_CORRUPT) e->mapped = NULL;
    TLI_INVARIANT(result || !e->mapped);
    return result;
}

static tl_result tli_release_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key) {
    const tli_function function = TLI_IN(RELEASE_CHECKPOINT);
    int32_t i;
    tl_result result = tli_look_up(env, m, function, key, 0, &i);
    if (result) return result;
    if (!m->entries[i].borrows)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(KEY_IS_NOT_BORROWED));
    if (m->entries[i].borrows == 1) result = tli_unmap_entry(m, i);
    if (!result || result == TL_ERROR_CORRUPT) tli_unborrow(m, i);
    return result ? tli_fail_backend(env, function, TLI_RULE(UNMAP_FAILED), result) : TL_OK;
}

TLI_IMPL tl_result tl_release_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key) {
    tl_result result;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    result = tli_release_unlocked(env, manager, &key);
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

// -- has, drop, find, evict, reset, measure --

TLI_IMPL int tl_has_checkpoint(tl_manager *manager, tl_checkpoint_key key) {
    int32_t i;
    int has;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    i = tli_find_entry(manager, &key);
    has = i >= 0 && manager->entries[i].key.step == key.step;
    tli_unlock_manager(manager);
    return has;
}

static tl_result tli_drop_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key) {
    const tli_function function = TLI_IN(DROP_CHECKPOINT);
    int32_t i;
    tl_result result = tli_look_up(env, m, function, key, 0, &i);
    if (result) return result;
    if (m->entries[i].borrows) return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(KEY_IS_BORROWED));
    return tli_discard(env, m, function, i);
}

TLI_IMPL tl_result tl_drop_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key) {
    tl_result result;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    result = tli_drop_unlocked(env, manager, &key);
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

TLI_IMPL tl_result tl_find_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                      tl_checkpoint_info *info) {
    tl_result result;
    int32_t i;
    TL_ASSERT(manager && info);
    tli_zero(info, sizeof *info);
    tli_lock_manager(manager);
    result = tli_look_up(env, manager, TLI_IN(FIND_CHECKPOINT), &key, 0, &i);
    if (!result) tli_fill_info(&manager->entries[i], info);
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

TLI_IMPL tl_result tl_evict_checkpoints(tl_env *env, tl_manager *manager, uint64_t bytes) {
    const tli_function function = TLI_IN(EVICT_CHECKPOINTS);
    tl_result result;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    result = tli_clear_way(env, manager, function, bytes);
    if (!result) result = tli_evict_until(env, manager, function, bytes);
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

static tl_result tli_reset_unlocked(tl_env *env, tl_manager *m, tli_function function) {
    tl_result first = TL_OK;
    uint32_t at = 0;
    int32_t i;
    while (at < m->cell_count) {
        tl_result result;
        if (!m->cells[at].entry) { at++; continue; }
        i = m->cells[at].entry - 1;
        result = tli_unmap_entry(m, i);
        if (result && !first) first = tli_fail_backend(env, function, TLI_RULE(UNMAP_FAILED), result);
        if (!m->entries[i].mapped) {
            while (m->entries[i].borrows) tli_unborrow(m, i);
            result = tli_discard(env, m, function, i);
            if (result && !first) first = result;
        }
        if (m->cells[at].entry == i + 1) at++;  // it could not be dropped: go on behind it
    }
    TLI_INVARIANT(first || !m->held);
    return first;
}

TLI_IMPL tl_result tl_reset_manager(tl_env *env, tl_manager *manager) {
    tl_result result;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    result = tli_reset_unlocked(env, manager, TLI_IN(RESET_MANAGER));
    (void)tli_retry_lost(&manager->store);
    tli_zero(&manager->statistics, sizeof manager->statistics);
    manager->store.peak_bytes = manager->store.bytes[TL_TIER_DEVICE];
    TLI_INVARIANT(tli_manager_holds(manager));
    tli_unlock_manager(manager);
    return result;
}

TLI_IMPL uint64_t tl_find_memory_usage(tl_manager *manager) {
    uint64_t bytes;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    bytes = manager->store.bytes[TL_TIER_DEVICE];
    tli_unlock_manager(manager);
    return bytes;
}

TLI_IMPL uint64_t tl_find_checkpoint_count(tl_manager *manager) {
    uint64_t count;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    count = (uint64_t)manager->held;
    tli_unlock_manager(manager);
    return count;
}

TLI_IMPL void tl_measure_manager(tl_manager *manager, tl_checkpoint_statistics *statistics) {
    uint64_t budget;
    TL_ASSERT(manager && statistics);
    tli_lock_manager(manager);
    *statistics = manager->statistics;
    statistics->peak_bytes = manager->store.peak_bytes;
    budget = manager->budget[TL_TIER_DEVICE];
    statistics->total_checkpoints = (uint64_t)manager->held;
    statistics->in_memory_checkpoints = (uint64_t)(manager->held - manager->spilled);
    statistics->total_memory_bytes = manager->store.bytes[TL_TIER_DEVICE];
    statistics->memory_budget_bytes = budget;
    statistics->memory_utilization = budget == TL_UNLIMITED || !budget ? 0.0
                                   : (double)manager->store.bytes[TL_TIER_DEVICE] / (double)budget;
    statistics->host_memory_bytes = manager->store.bytes[TL_TIER_HOST];
    statistics->host_budget_bytes = manager->budget[TL_TIER_HOST];
    tli_unlock_manager(manager);
}

// -- making and freeing it --

static tl_result tli_check_manager(tl_env *env, const tl_backend *backend, const tl_manager_desc *desc,
                                   const tl_backend_limits *limits) {
    const tli_function function = TLI_IN(INIT_MANAGER);
    tli_rule why = TLI_NO_RULE;
    if (!backend->self && !backend->add_block) why = TLI_RULE(BACKEND_IS_NOT_INITIALISED);
    else if (tli_check_online_policy(env, function, &desc->policy)) return TL_ERROR_INVALID_ARG;
    else if (!tli_is_below((int64_t)desc->eviction, TL_EVICTION_COUNT)) why = TLI_RULE(EVICTION_UNKNOWN);
    else if ((desc->eviction == TL_EVICTION_CALLER) != (desc->evict != NULL))
        why = TLI_RULE(EVICT_MUST_BE_GIVEN);
    else if (!tli_is_below((int64_t)desc->codec, TL_CODEC_COUNT)) why = TLI_RULE(CODEC_UNKNOWN);
    else if (!desc->lock.lock != !desc->lock.unlock) why = TLI_RULE(LOCK_BOTH_FUNCTIONS_OR_NEITHER);
    else if (desc->checkpoint_capacity < 0) why = TLI_RULE(CHECKPOINT_CAPACITY_MUST_BE_NOT);
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, function, why);
    if (!TLI_CODECS && desc->codec != TL_CODEC_NONE)
        return tli_fail(env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(CODEC_TL_NO_CODECS_LEFT_ALL_OF_THEM));
    if (desc->codec != TL_CODEC_NONE && !(limits->codecs >> desc->codec & 1u))
        return tli_fail(env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(CODEC_BACKEND_CANNOT_CONVERT_TO_IT));
    return TL_OK;
}

// A budget that the caller asks for must be free at present; that of a whole backend need not be.
static tl_result tli_check_manager_room(tl_env *env, const tli_budget *budget,
                                        const tl_backend_limits *limits) {
    uint64_t free_bytes = limits->budget_bytes[TL_TIER_DEVICE];
    if (!budget->is_limited || budget->limit != TL_LIMIT_BUDGET || budget->bytes <= free_bytes) return TL_OK;
    return tli_fail_values(env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_MANAGER),
                           TLI_RULE(DEVICE_BUDGET_BYTES_BYTES_OF_WHICH),
                           budget->bytes, free_bytes);
}

TLI_IMPL tl_result tl_init_manager(tl_env *env, const tl_backend *backend, const tl_manager_desc *desc,
                                   tl_manager **manager) {
    const tli_function function = TLI_IN(INIT_MANAGER);
    tl_backend_limits limits;
    tli_budget budget;
    tl_result result;
    tl_manager *m;
    TL_ASSERT(backend && desc && manager);
    *manager = NULL;
    tli_zero(&limits, sizeof limits);
    if (backend->limits) (backend->limits)(backend->self, &limits);
    result = tli_check_manager(env, backend, desc, &limits);
    budget = tli_find_budget(desc->device_budget_bytes, desc->host_budget_bytes, 0, NULL,
                             limits.capacity_bytes, 0);
    if (!result) result = tli_check_manager_room(env, &budget, &limits);
    if (result) return result;
    m = (tl_manager *)tli_alloc_array(env, 1, sizeof *m);
    if (!m) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY));
    m->env = env;
    m->backend = *backend;
    m->desc = *desc;
    m->budget[TL_TIER_DEVICE] = budget.bytes;
    m->budget[TL_TIER_HOST] = budget.host_bytes;
    m->limit = budget.limit;
    m->device_is_finite = limits.capacity_bytes[TL_TIER_DEVICE] != TL_UNLIMITED;
    m->host_visible = limits.host_visible;
    result = tli_open_store(env, &m->backend, m->budget, &m->store);
    if (result) result = tli_fail_backend(env, function, TLI_RULE(OPEN_ACCOUNT_FAILED), result);
    else if (desc->checkpoint_capacity && !tli_reserve_entries(m, desc->checkpoint_capacity))
        result = tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_TABLE_OF_CHECKPOINTS));
    if (result) {
        tl_free_manager(m);
        return result;
    }
    *manager = m;
    return TL_OK;
}

TLI_IMPL void tl_free_manager(tl_manager *manager) {
    tli_quiet quiet;
    tl_env *env;
    if (!manager) return;
    env = manager->env;
    quiet = tli_begin_quiet(manager->store.backend_env);
    (void)tli_reset_unlocked(NULL, manager, TLI_IN(FREE_MANAGER));
    tli_close_store(&manager->store);
    tli_end_quiet(&quiet, TL_OK);
    tli_release(env, manager->candidates);
    tli_release(env, manager->candidate_entries);
    tli_release(env, manager->cells);
    tli_release(env, manager->entries);
    tli_release(env, manager);
}
#endif  // TL_NO_ONLINE
#endif  // TL_STRATEGY_IMPLEMENTATION

