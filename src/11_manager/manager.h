#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [11] MANAGER -- the store and the online checkpoint manager
//
//     save 1, save 2, save 3 ...   budget full: an eviction picks one
//
//     device |  2  |  3  |  5  |        evicted: compressed, spilled to the host
//     host   |  1  |                    tier, or dropped to be recomputed (4)
//
// There are two tiers, each with a budget. save copies a checkpoint into the store, take
// returns and removes it, peek borrows it. save evicts until the new checkpoint fits, or
// refuses. An evicted checkpoint is compressed if that is allowed and both copies fit, else
// spilled if the host tier has room, else dropped. When a save is refused, or when an
// allocation, copy or conversion fails, no checkpoint is lost but those that were evicted
// for the new one. The counted bytes are exact at all times. Keys contain the training step,
// so a checkpoint of an earlier step is never mistaken for one of this step: asking for it
// is TL_ERROR_STALE.
//
// The manager waits only for copies from and to host memory; all other work is enqueued. If a call
// would have to wait and the backend cannot, it returns TL_NOT_READY: everything is still held, the
// work goes on, and the call can be repeated later.
//
// A victim is found in O(1). The evictions oldest and least-recent find the exact one. For
// largest and cost, checkpoints are sorted into classes, a quarter of a power of two wide in
// bytes and three quarters in cost per byte, and the best of the first of each class is
// taken. So a victim has at least 4/5 of the most bytes, or at most twice the least score;
// among equal sizes, or equal costs per byte, it is exact.
//
// Reference for eviction by cost: Kirisame et al., Dynamic Tensor Rematerialization, 2021,
// arXiv:2006.09616, section 2.
// ============================================================================

#define TL_EVICTIONS(X) \
    X(TL_EVICTION_COST,    "cost",    "least cost per byte and staleness")    \
    X(TL_EVICTION_OLDEST,  "oldest",  "saved first")                          \
    X(TL_EVICTION_RECENT,  "least-recent", "used least recently")             \
    X(TL_EVICTION_LARGEST, "largest", "most bytes, of equals the oldest")     \
    X(TL_EVICTION_CALLER,  "caller",  "the one that the caller's function picks")

typedef enum tl_eviction { TL_EVICTIONS(TLI_ENUM) TL_EVICTION_COUNT } tl_eviction;

// The key under which a checkpoint is held.
typedef struct tl_checkpoint_key {
    uint64_t step;         // training step
    int32_t  micro_batch;  // of the step
    int32_t  node;         // >= 0
    int32_t  output;       // of the node; TL_SAVED = its saved bytes
} tl_checkpoint_key;

#define TL_SAVED (-1)  // tl_checkpoint_key.output: the saved bytes of the node

// One checkpoint, as tl_find_checkpoint shows it and as the caller's eviction function sees it.
typedef struct tl_checkpoint_info {
    tl_checkpoint_key key;
    uint64_t timestamp;    // of the save: grows by one with every save
    uint64_t last_use;     // timestamp of the last save or peek
    uint64_t bytes;        // uncompressed
    uint64_t held_bytes;   // what it takes in its tier now
    uint64_t cost;         // of recomputing it, as given
    int32_t  in_memory;    // 1 = in the device tier
    tl_tier  tier;
    tl_codec codec;        // TL_CODEC_NONE = raw
} tl_checkpoint_info;

// Pick the checkpoint to evict: an index below count, or -1 to refuse. The oldest comes first. Called
// while the lock is held, so it must not call the manager.
typedef int32_t (*tl_evict_fn)(const tl_checkpoint_info *candidates, int32_t count, void *user);

#ifndef TL_NO_ONLINE
// A lock of the caller: both functions or neither.
typedef struct tl_lock {
    void (*lock)(void *user);    // before a call uses the manager
    void (*unlock)(void *user);  // after it
    void  *user;
} tl_lock;

typedef struct tl_manager_desc {
    uint64_t device_budget_bytes;  // 0 = no limit of your own
    uint64_t host_budget_bytes;    // 0 = no host tier; TL_UNLIMITED = no limit of your own
    tl_policy   policy;            // keep-all, every-n, selective or none; of the nodes of keys. 0 = keep-all
    tl_eviction eviction;          // 0 = cost
    tl_evict_fn evict;             // TL_EVICTION_CALLER only
    void       *user;
    tl_codec    codec;             // compress evicted checkpoints, if their save allows it; 0 = never
    tl_lock     lock;              // 0 = the built-in spin lock (TL_NO_THREADS: none)
    int32_t     checkpoint_capacity;  // up to so many the manager allocates nothing after init; 0 = it grows
} tl_manager_desc;

// Events are counted since init or the last reset; counts of checkpoints and bytes are the present ones.
typedef struct tl_checkpoint_statistics {
    uint64_t total_checkpoints;        // held now, in any tier
    uint64_t in_memory_checkpoints;    // of these, in the device tier
    uint64_t total_memory_bytes;       // they take in the device tier
    uint64_t memory_budget_bytes;      // that binds: of the desc or of the backend; TL_UNLIMITED = none
    double   memory_utilization;       // 0..1; 0 without a budget
    uint64_t host_memory_bytes, host_budget_bytes;  // the same of the host tier
    uint64_t peak_bytes;               // most bytes in the device tier
    uint64_t saved, skipped, refused;  // saves that stored, that the policy skipped, that did not fit
    uint64_t hits, misses;             // takes and peeks that found their checkpoint, that did not
    uint64_t evictions;                // = dropped + spills + compressions
    uint64_t dropped, spills, compressions, fetches;  // fetches: brought back to the device tier
} tl_checkpoint_statistics;

typedef struct tl_manager tl_manager;

// Make a manager over a backend.
//
//   backend   must outlive it; the manager uses it under its lock only: nothing else may use it
//             while other threads use the manager
//   manager   overwritten; release with tl_free_manager
//
// Errors:  TL_ERROR_INVALID_ARG; TL_ERROR_NO_MEMORY, also if device_budget_bytes are within the capacity of
//          the backend but not free at present; TL_ERROR_UNSUPPORTED: the backend lacks the codec; *manager
//          is NULL then.
// Threads: the manager may be shared; every call takes the env of its own thread, which receives the
//          error text. The env given here is kept and allocates the manager's tables.
TLDEF tl_result tl_init_manager(tl_env *env, const tl_backend *backend,
                                const tl_manager_desc *desc, tl_manager **manager);
TLDEF void      tl_free_manager(tl_manager *manager);  // accepts NULL; frees what is still held

typedef struct tl_save_desc {
    tl_checkpoint_key key;
    const void *data;      // host bytes to copy; 0 = copy source
    tl_range    source;    // a range of the backend, where data is 0
    uint64_t    bytes;     // of data
    uint64_t    cost;      // of recomputing it
    int32_t     keep;      // 1 = always saved whatever the policy, never dropped: graph inputs
    int32_t     lossless;  // 1 = never compressed
} tl_save_desc;

// Copy a checkpoint into the store, replacing one of the same key. The old one is held until the new
// one is complete, so both must fit. If they do not, an old one of the same size is overwritten in place,
// provided that the host does the copy. Checkpoints saved with keep are evicted (compressed or spilled)
// only if dropping all others does not free enough.
//
// Returns TL_OK also if the policy skips it (tl_has_checkpoint tells): an older one of the same key is
// then dropped, so that it is not mistaken for this one.
// Errors:  TL_ERROR_OVER_BUDGET: it does not fit even after evicting all that may be evicted;
//          TL_ERROR_STALE: the key's step is below that of the checkpoint it would replace;
//          TL_ERROR_INVALID_ARG: also if the old one is borrowed; TL_ERROR_NO_MEMORY, and those of
//          the backend.
// Cost:    O(1) beside the copy; an eviction also steps over borrowed ones, and with
//          TL_EVICTION_CALLER takes O(held).
TLDEF tl_result tl_save_checkpoint(tl_env *env, tl_manager *manager, const tl_save_desc *desc);

// Copy a checkpoint out and remove it.
//
//   data, bytes   host memory and its size, exactly that of the checkpoint
//
// Errors:  TL_ERROR_NOT_FOUND: never saved, dropped by an eviction, or taken already: recompute it;
//          TL_ERROR_STALE: held for another step; TL_ERROR_INVALID_ARG: wrong size, borrowed; and
//          those of the backend. On error it stays held.
TLDEF tl_result tl_take_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                   void *data, uint64_t bytes);

// Do the same into a range of the backend. The copy is enqueued; it is finished when the ticket is.
//
//   ticket   NULL = do not submit: `order` or tl_submit_checkpoints follows later
TLDEF tl_result tl_take_checkpoint_range(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                         tl_range to, tl_ticket *ticket);

// Borrow a checkpoint. One that was spilled or compressed is first brought back to the device tier. It is
// not evicted until tl_release_checkpoint. Borrowing nests. After the device was lost, spilled ones are
// read in the host tier, so that a training can be saved.
//
// Errors:  as tl_take_checkpoint, and TL_ERROR_OVER_BUDGET: no room to bring it back.
TLDEF tl_result tl_peek_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                   const void **data, uint64_t *bytes);
TLDEF tl_result tl_release_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key);

// Ask whether a checkpoint is held; drop it; describe it. Errors: TL_ERROR_NOT_FOUND, TL_ERROR_STALE;
// TL_ERROR_INVALID_ARG: borrowed.
TLDEF int       tl_has_checkpoint(tl_manager *manager, tl_checkpoint_key key);  // 1 = held, in any tier
TLDEF tl_result tl_drop_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key);
TLDEF tl_result tl_find_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                   tl_checkpoint_info *info);

// Evict until at least `bytes` of the device budget are free. TL_ERROR_OVER_BUDGET, with nothing dropped,
// if that is impossible.
TLDEF tl_result tl_evict_checkpoints(tl_env *env, tl_manager *manager, uint64_t bytes);

// Submit what saves, evictions and takes have enqueued. They do not submit by themselves, because work on
// the same bytes is ordered in any case.
//
//   ticket   of all of it; its value is 0 if nothing was ever enqueued
//
// Errors:  those of the backend.
TLDEF tl_result tl_submit_checkpoints(tl_env *env, tl_manager *manager, tl_ticket *ticket);

// Drop everything, borrowed or not, and set the counters to zero.
TLDEF tl_result tl_reset_manager(tl_env *env, tl_manager *manager);

// Read what is held, and what was counted.
TLDEF uint64_t tl_find_memory_usage(tl_manager *manager);      // bytes in the device tier
TLDEF uint64_t tl_find_checkpoint_count(tl_manager *manager);  // held, in any tier
TLDEF void     tl_measure_manager(tl_manager *manager, tl_checkpoint_statistics *statistics);

// Name an eviction; "?" if it is out of range.
TLDEF const char *tl_name_eviction(tl_eviction eviction);  // "oldest"
#ifndef TL_NO_TEXT
// Parse exactly what the tl_name_ function returns: 1 and the value, or 0.
TLDEF int tl_parse_eviction(const char *text, tl_eviction *eviction);
#endif
#endif  // TL_NO_ONLINE

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

