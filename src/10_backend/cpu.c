#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- the CPU backend --
//
// Names that begin with tli_cpu_ are functions of its table. A block is an allocation of the env, or a
// piece of the caller's memory. Work is carried out at once. Two variants are for tests:
//
//     checked    |guard| range |dead| range |dead|guard|    guards and dead bytes hold a poison word;
//                                                           claim and release verify and write it
//                |guard| copy of a mapped range |guard|     unmap verifies them; another pattern each time,
//                                                           so no byte that is written looks like it for long.
//                                                           An address sanitizer ends the program where they
//                                                           are accessed, for reads as well
//     deferred   work waits in a queue and is carried out later, in a random legal order
//
// Checking a claim and poisoning a release are queued like other work; both are called upkeep.

#define TLI_POISON 0xFFFEAD5Au  // word in dead bytes: NaN as f32 and as f64
#define TLI_GUARD_BYTES 64      // before and after a checked block, at least
#define TLI_QUEUE_CAPACITY 256  // deferred work; beyond it the oldest is carried out

#if defined(__SANITIZE_ADDRESS__)
#define TLI_HAS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TLI_HAS_SANITIZER
#endif
#endif
#ifdef TLI_HAS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

typedef struct tli_span { uint64_t start, end; } tli_span;

typedef struct tli_cpu_block {
    char    *memory;          // first byte that a range can name
    void    *allocation;      // of the env; NULL = a piece of the caller's memory
    tli_span *spans;          // checked: claimed ranges, ascending
    uint64_t bytes, reserved_bytes;
    uint64_t claimed_bytes, claim_count;
#ifndef TL_NO_ACCOUNTS
    uint64_t account;         // that claimed first; 0 = none yet
#endif
    uint32_t generation;      // upper half of its handle: tells handles of earlier blocks in this slot apart
    int32_t  span_count, span_capacity;
    int32_t  piece;           // of the heap
    int32_t  next_free;       // next unused slot + 1; 0 = none
    int32_t  pending;         // deferred: queued copies, conversions and fills that touch it
    uint8_t  tier, alive, dying;  // dying: freed, but queued work still needs the bytes
    uint8_t  bank;            // of the device tier
} tli_cpu_block;

// A memory of the caller.
typedef struct tli_cpu_bank {
    char    *memory;          // aligned; NULL = none: blocks are allocations of the env
    uint64_t shift;           // bytes before it, for the alignment
    tl_heap  heap;            // places blocks in it
} tli_cpu_bank;

typedef enum tli_work_kind {
    TLI_WORK_COPY, TLI_WORK_COMPRESS, TLI_WORK_EXPAND, TLI_WORK_FILL,
    TLI_WORK_CLAIM,   // checked: verify the poison, then fill with 0xFF
    TLI_WORK_RELEASE  // checked: fill with poison
} tli_work_kind;

typedef struct tli_work {
    tli_work_kind kind;
    tl_codec codec;
    uint32_t word;
    int32_t  marked;    // to be carried out by the next tli_run_marked
    tl_range to, from;
    uint64_t ticket;    // of its submit; 0 = not submitted
} tli_work;

#ifndef TL_NO_ACCOUNTS
typedef struct tli_account {
    tl_account_counters counters;
    uint64_t limit_bytes[TL_TIER_COUNT];
    uint32_t generation;      // upper half of its handle
    int32_t  next_free;       // next unused slot + 1; 0 = none
    int32_t  is_open;
} tli_account;
#endif

typedef struct tli_mapping {
    tl_range range;
    void    *host;            // of the copy
    void    *allocation;      // guard, copy, guard
    uint64_t key;             // of the guards' pattern
    tl_map_mode mode;
} tli_mapping;

typedef struct tli_cpu {
    tl_env *env;
    tl_cpu_backend_desc desc;        // defaults filled in
    tl_backend_counters counters;
    tli_cpu_block *blocks;
    int32_t block_count, block_capacity, free_block;  // free_block: first unused slot + 1; 0 = none
#ifndef TL_NO_ACCOUNTS
    tli_account *accounts;
    int32_t account_count, account_capacity, free_account;  // free_account: first unused slot + 1; 0 = none
    int32_t open_count;              // accounts
#endif
    uint64_t submitted;
    tli_cpu_bank *banks;             // [bank_count] of the device tier
    int32_t bank_count;
    tli_mapping *mappings;           // checked
    int32_t mapping_count, mapping_capacity;
    tli_work *queue;                 // deferred
    int32_t queue_count, dying_count;
    tl_random random;
    tl_result late;                  // error found by deferred work; the next call that can returns it
} tli_cpu;

static tl_result tli_cpu_fail(tli_cpu *cpu, tl_result code, tli_function function, tli_rule why) {
    return tli_fail(cpu->env, code, function, why);
}

// The variants for tests. With TL_NO_CHECKS both are constant 0, so that the compiler removes the code
// behind them; init refuses to make such a backend then.
#ifndef TL_NO_CHECKS
static int tli_is_checked(const tli_cpu *cpu) { return cpu->desc.checked != 0; }
static int tli_is_deferred(const tli_cpu *cpu) { return cpu->desc.deferred != 0; }
#else
static int tli_is_checked(const tli_cpu *cpu) { (void)cpu; return 0; }
static int tli_is_deferred(const tli_cpu *cpu) { (void)cpu; return 0; }
#endif

static int32_t tli_queued(const tli_cpu *cpu) {
    return tli_is_deferred(cpu) ? cpu->queue_count : 0;
}

static int tli_is_same_range(const tl_range *a, const tl_range *b) {
    return a->block == b->block && a->offset == b->offset && a->bytes == b->bytes;
}

static int tli_overlaps(tl_range a, tl_range b) {
    return a.bytes && b.bytes && a.block == b.block && a.offset < b.offset + b.bytes &&
           b.offset < a.offset + a.bytes;
}

// -- poison --

static void tli_poison(char *at, uint64_t bytes) {
    const uint32_t word = TLI_POISON;
    char *end = at + bytes;
    for (; at < end && ((uintptr_t)at & 3 || end - at < 4); at++)
        *at = ((const char *)&word)[(uintptr_t)at & 3];
    for (; end - at >= 4; at += 4) TLI_MEMCPY(at, &word, 4);
    for (; at < end; at++) *at = ((const char *)&word)[(uintptr_t)at & 3];
}

static int tli_is_poisoned(const char *at, uint64_t bytes) {
    const uint32_t word = TLI_POISON;
    const char *end = at + bytes;
    uint32_t wrong = 0;
    for (; at < end && ((uintptr_t)at & 3 || end - at < 4); at++)
        wrong |= *at != ((const char *)&word)[(uintptr_t)at & 3];
    for (; end - at >= 4; at += 4) wrong |= tli_load_u32(at) ^ word;
    for (; at < end; at++) wrong |= *at != ((const char *)&word)[(uintptr_t)at & 3];
    return !wrong;
}

// -- blocks --

static uint64_t tli_guard_bytes(const tli_cpu *cpu) {
    return tli_is_checked(cpu) ? tli_align_u64(TLI_GUARD_BYTES, cpu->desc.alignment_bytes) : 0;
}

static tli_cpu_block *tli_find_block(tli_cpu *cpu, uint64_t handle, tli_function function, tl_result *result) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    tli_cpu_block *block;
    if (!(handle & 0xFFFFFFFFu) || slot >= (uint64_t)cpu->block_count) {
        *result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, TLI_RULE(BLOCK_NOT_HANDLE_OF_THIS_BACKEND));
        return NULL;
    }
    block = &cpu->blocks[slot];
    if (!block->alive || block->generation != handle >> 32) {
        *result = tli_cpu_fail(cpu, TL_ERROR_STALE, function,
                               TLI_RULE(BLOCK_HANDLE_IS_OF_FREED_BLOCK));
        return NULL;
    }
    return block;
}

// The block of a range that is not empty; an error if the range does not lie in it.
static tli_cpu_block *tli_find_range(tli_cpu *cpu, const tl_range *range, tli_function function,
                                     tl_result *result) {
    tli_cpu_block *block = tli_find_block(cpu, range->block, function, result);
    if (!block) return NULL;
    if (range->bytes > block->bytes || range->offset > block->bytes - range->bytes) {
        *result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, TLI_RULE(RANGE_REACHES_BEYOND_ITS_BLOCK));
        return NULL;
    }
    if (range->offset & (cpu->desc.alignment_bytes - 1)) {
        *result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function,
                               TLI_RULE(RANGE_OFFSET_NOT_MULTIPLE_OF_ALIGNMENT));
        return NULL;
    }
    return block;
}

// Index of the first claimed range that ends after an offset.
static int32_t tli_find_span(const tli_cpu_block *block, uint64_t offset) {
    int32_t low = 0, high = block->span_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (block->spans[middle].end <= offset) low = middle + 1;
        else high = middle;
    }
    return low;
}

#ifdef TLI_INVARIANTS
// Claimed ranges of a checked block ascend, do not overlap, and add up.
static int tli_spans_hold(const tli_cpu *cpu, const tli_cpu_block *block) {
    uint64_t bytes = 0;
    int32_t i;
    if (!tli_is_checked(cpu)) return !block->claim_count ? !block->claimed_bytes : block->claimed_bytes > 0;
    for (i = 0; i < block->span_count; i++) {
        const tli_span *span = &block->spans[i];
        if (span->start >= span->end || span->end > block->bytes) return 0;
        if (i && span[-1].end > span->start) return 0;
        bytes += span->end - span->start;
    }
    return bytes == block->claimed_bytes && (uint64_t)block->span_count == block->claim_count;
}
#endif

// Check a range that is about to be used: it must lie in a live block and, if checked, in a claimed range.
static tl_result tli_check_range(tli_cpu *cpu, const tl_range *range, tli_function function) {
    tl_result result = TL_OK;
    tli_cpu_block *block;
    int32_t at;
    if (!range->bytes) return TL_OK;
    block = tli_find_range(cpu, range, function, &result);
    if (!block) return result;
    if (!tli_is_checked(cpu)) return TL_OK;
    at = tli_find_span(block, range->offset);
    if (at < block->span_count && block->spans[at].start <= range->offset &&
        range->offset + range->bytes <= block->spans[at].end) return TL_OK;
    return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, TLI_RULE(RANGE_NOT_INSIDE_CLAIMED_RANGE));
}

static char *tli_address(const tli_cpu *cpu, tl_range range) {
    return cpu->blocks[(range.block & 0xFFFFFFFFu) - 1].memory + range.offset;
}

// Whether the guards of a block, and its bytes that are not claimed, still hold poison.
static int tli_is_intact(const tli_cpu *cpu, const tli_cpu_block *block) {
    uint64_t guard = tli_guard_bytes(cpu), at = 0;
    int32_t i;
    if (!tli_is_poisoned(block->memory - guard, guard)) return 0;
    for (i = 0; i < block->span_count; i++) {
        if (!tli_is_poisoned(block->memory + at, block->spans[i].start - at)) return 0;
        at = block->spans[i].end;
    }
    return tli_is_poisoned(block->memory + at, tli_align_u64(block->bytes ? block->bytes : 1,
                                                             cpu->desc.alignment_bytes) + guard - at);
}

// Bytes that the alignment of an allocation of the env takes at most. The env aligns for any type, so for
// pointers at least.
static size_t tli_find_slack(const tli_cpu *cpu) {
    size_t alignment = (size_t)cpu->desc.alignment_bytes, given = sizeof(void *);
    return alignment > given ? alignment - given : 0;
}

#ifndef TL_NO_ACCOUNTS
// The open account of a handle, or NULL.
static tli_account *tli_open_account_of(tli_cpu *cpu, uint64_t handle) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    tli_account *account = slot < (uint64_t)cpu->account_count ? &cpu->accounts[slot] : NULL;
    return account && account->is_open && account->generation == handle >> 32 ? account : NULL;
}

// The first to claim a range of a block is the one who took its bytes.
static void tli_take_block(const tli_cpu *cpu, tli_account *account, uint64_t handle, tli_cpu_block *block) {
    tl_account_counters *counters = &account->counters;
    if (block->account) return;
    block->account = handle;
    counters->taken_bytes[block->tier] += block->reserved_bytes - 2 * tli_guard_bytes(cpu);
    if (block->tier == TL_TIER_DEVICE)
        counters->bank_taken_bytes[block->bank] += block->reserved_bytes - 2 * tli_guard_bytes(cpu);
    if (counters->taken_bytes[block->tier] > counters->peak_taken_bytes[block->tier])
        counters->peak_taken_bytes[block->tier] = counters->taken_bytes[block->tier];
    TLI_INVARIANT(counters->taken_bytes[block->tier] <= counters->peak_taken_bytes[block->tier]);
}
#endif

#ifdef TLI_INVARIANTS
// Sums over accounts and blocks: claimed and reserved bytes of each tier, and what each open account took; with
// many blocks, that is looked at now and then.
static int tli_cpu_holds(const tli_cpu *cpu) {
    uint64_t reserved[TL_TIER_COUNT], claimed[TL_TIER_COUNT];
    uint64_t turn = cpu->counters.added_count + cpu->counters.copied_bytes;
    int32_t i, tier, dying = 0;
    tli_zero(reserved, sizeof reserved);
    tli_zero(claimed, sizeof claimed);
    if (turn % ((uint64_t)cpu->block_count / 16 + 1)) return 1;
    for (i = 0; i < cpu->block_count; i++) {
        const tli_cpu_block *block = &cpu->blocks[i];
        if (!block->alive && !block->dying) continue;
        reserved[block->tier] += block->reserved_bytes;
        claimed[block->tier] += block->claimed_bytes;
        dying += block->dying;
    }
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        const tl_backend_counters *all = &cpu->counters;
        uint64_t on_accounts = 0;
#ifndef TL_NO_ACCOUNTS
        for (i = 0; i < cpu->account_count; i++)
            if (cpu->accounts[i].is_open) on_accounts += cpu->accounts[i].counters.live_bytes[tier];
#endif
        if (reserved[tier] != all->reserved_bytes[tier] || claimed[tier] != all->live_bytes[tier]) return 0;
        if (on_accounts > all->live_bytes[tier] || all->live_bytes[tier] > all->peak_bytes[tier]) return 0;
        if (all->live_bytes[tier] > cpu->desc.capacity_bytes[tier]) return 0;
    }
    return dying == cpu->dying_count && tli_queued(cpu) <= TLI_QUEUE_CAPACITY;
}
#endif

// The bytes of a block go back to the system; the counters follow.
static void tli_untake_block(tli_cpu *cpu, tli_cpu_block *block) {
#ifndef TL_NO_ACCOUNTS
    tli_account *account = block->account ? tli_open_account_of(cpu, block->account) : NULL;
    uint64_t taken = block->reserved_bytes - 2 * tli_guard_bytes(cpu);
    if (account) account->counters.taken_bytes[block->tier] -= taken;
    if (account && block->tier == TL_TIER_DEVICE) account->counters.bank_taken_bytes[block->bank] -= taken;
    block->account = 0;
#endif
    TLI_INVARIANT(cpu->counters.reserved_bytes[block->tier] >= block->reserved_bytes);
    cpu->counters.reserved_bytes[block->tier] -= block->reserved_bytes;
}

// Find memory for a block; TL_OK sets memory, and allocation or piece.
static tl_result tli_place_block(tli_cpu *cpu, tli_cpu_block *block) {
    size_t guard = (size_t)tli_guard_bytes(cpu), whole;
    size_t alignment = (size_t)cpu->desc.alignment_bytes, slack = 0;
    tli_cpu_bank *bank = &cpu->banks[block->bank];
    char *base;
    block->allocation = NULL;
    block->piece = 0;
    if (block->bytes > SIZE_MAX / 4 - 2 * guard - 2 * alignment) return TL_ERROR_NO_MEMORY;
    whole = (size_t)tli_align_u64(block->bytes ? block->bytes : 1, alignment) + 2 * guard;
    if (block->tier == TL_TIER_DEVICE && bank->memory) {
        block->piece = tli_take_heap_block(&bank->heap, whole);
        if (!block->piece) return TL_ERROR_NO_MEMORY;
        base = bank->memory + bank->heap.extents[block->piece - 1].offset;
    } else {
        slack = tli_find_slack(cpu);
        block->allocation = tli_alloc(cpu->env, whole + slack);
        if (!block->allocation) return TL_ERROR_NO_MEMORY;
        base = (char *)block->allocation;
        base += (0 - (size_t)(uintptr_t)base) & (alignment - 1);
    }
    block->memory = base + guard;
    block->reserved_bytes = whole + slack;
    if (tli_is_checked(cpu)) tli_poison(base, whole);
    return TL_OK;
}

// Free the memory of a block; TL_ERROR_CORRUPT if its dead bytes were written.
static tl_result tli_finish_block(tli_cpu *cpu, int32_t slot) {
    tli_cpu_block *block = &cpu->blocks[slot];
    tl_result result = TL_OK;
    if (tli_is_checked(cpu) && !tli_is_intact(cpu, block))
        result = tli_cpu_fail(cpu, TL_ERROR_CORRUPT, TLI_IN(BACKEND_FREE_BLOCK),
                              TLI_RULE(BYTES_THAT_NOBODY_CLAIMED_WERE_WRITTEN));
    if (block->allocation) tli_release(cpu->env, block->allocation);
    else tli_give_heap_block(&cpu->banks[block->bank].heap, block->piece);
    tli_release(cpu->env, block->spans);
    tli_untake_block(cpu, block);
    block->spans = NULL;
    block->span_count = block->span_capacity = 0;
    cpu->dying_count -= block->dying;
    block->alive = block->dying = 0;
    block->generation++;
    block->next_free = cpu->free_block;
    cpu->free_block = slot + 1;
    TLI_INVARIANT(tli_cpu_holds(cpu));
    return result;
}

// -- work --

static tl_result tli_do_upkeep(tli_cpu *cpu, const tli_work *work, char *to) {
    int intact = 1;
    if (work->kind == TLI_WORK_RELEASE) {
        tli_poison(to, work->to.bytes);
    } else {
        intact = tli_is_poisoned(to, work->to.bytes);
        TLI_MEMSET(to, 255, (size_t)work->to.bytes);
    }
    return intact ? TL_OK : tli_cpu_fail(cpu, TL_ERROR_CORRUPT, TLI_IN(BACKEND_CLAIM),
                                         TLI_RULE(BYTES_WERE_WRITTEN_WHILE_NOBODY_HELD));
}

static tl_result tli_do_work(tli_cpu *cpu, const tli_work *work) {
    char *to = tli_address(cpu, work->to);
    uint64_t i;
    switch (work->kind) {
    case TLI_WORK_COPY: tli_copy(to, tli_address(cpu, work->from), (size_t)work->to.bytes); break;
#ifndef TL_NO_CODECS
    case TLI_WORK_COMPRESS:
        tl_compress_bytes(work->codec, to, tli_address(cpu, work->from), work->from.bytes);
        break;
    case TLI_WORK_EXPAND:
        tl_expand_bytes(work->codec, to, tli_address(cpu, work->from), work->to.bytes);
        break;
#else
    case TLI_WORK_COMPRESS:
    case TLI_WORK_EXPAND: break;
#endif
    case TLI_WORK_FILL:
        for (i = 0; i + 4 <= work->to.bytes; i += 4) TLI_MEMCPY(to + i, &work->word, 4);
        TLI_MEMCPY(to + i, &work->word, (size_t)(work->to.bytes - i));
        break;
    case TLI_WORK_CLAIM:
    case TLI_WORK_RELEASE: return tli_is_checked(cpu) ? tli_do_upkeep(cpu, work, to) : TL_OK;
    }
    return TL_OK;
}

static int tli_conflicts(const tli_work *a, const tli_work *b) {
    return tli_overlaps(a->to, b->to) || tli_overlaps(a->to, b->from) || tli_overlaps(a->from, b->to);
}

static int tli_is_upkeep(const tli_work *work) {
    return work->kind == TLI_WORK_CLAIM || work->kind == TLI_WORK_RELEASE;
}

static tli_cpu_block *tli_block_of_work(tli_cpu *cpu, tl_range range) {
    return range.bytes ? &cpu->blocks[(range.block & 0xFFFFFFFFu) - 1] : NULL;
}

// Add +1 or -1 to the queued work of the blocks that it touches. Upkeep does not keep a block alive.
static void tli_count_work(tli_cpu *cpu, const tli_work *work, int32_t by) {
    tli_cpu_block *to = tli_block_of_work(cpu, work->to), *from = tli_block_of_work(cpu, work->from);
    if (tli_is_upkeep(work)) return;
    if (to) to->pending += by;
    if (from) from->pending += by;
    TLI_INVARIANT((!to || to->pending >= 0) && (!from || from->pending >= 0));
}

// Carry out one queued piece of work and remove it from the queue. An error is returned later.
static void tli_run_queued(tli_cpu *cpu, int32_t index) {
    tli_work work = cpu->queue[index];
    tl_result result = tli_do_work(cpu, &work);
    int32_t i;
    if (result) cpu->late = result;
    for (i = index + 1; i < cpu->queue_count; i++) cpu->queue[i - 1] = cpu->queue[i];
    cpu->queue_count--;
    tli_count_work(cpu, &work, -1);
    TLI_INVARIANT(cpu->queue_count >= 0);
}

// Carry out the queued upkeep of a block that no other work needs any more, then free it.
static tl_result tli_drain_block(tli_cpu *cpu, int32_t slot) {
    int32_t i = 0;
    while (i < tli_queued(cpu))
        if (tli_block_of_work(cpu, cpu->queue[i].to) == &cpu->blocks[slot]) tli_run_queued(cpu, i);
        else i++;
    return tli_finish_block(cpu, slot);
}

static void tli_finish_dying(tli_cpu *cpu, tl_range range) {
    tli_cpu_block *block = tli_block_of_work(cpu, range);
    tl_result result;
    if (!block || !block->dying || block->pending) return;
    result = tli_drain_block(cpu, (int32_t)(range.block & 0xFFFFFFFFu) - 1);
    if (result) cpu->late = result;
}

static void tli_run_work(tli_cpu *cpu, int32_t index) {
    tl_range to = cpu->queue[index].to, from = cpu->queue[index].from;
    tli_run_queued(cpu, index);
    tli_finish_dying(cpu, to);
    tli_finish_dying(cpu, from);
}

// Carry work out, or queue it. Its ranges were checked; from is NULL if nothing is read.
static tl_result tli_enqueue(tli_cpu *cpu, tli_work_kind kind, tl_codec codec, const tl_range *to,
                             const tl_range *from, uint32_t word) {
    tli_work work;
    if (!to->bytes) return TL_OK;
    tli_zero(&work, sizeof work);
    work.kind = kind; work.codec = codec; work.word = word;
    work.to = *to;
    if (from) work.from = *from;
    if (!tli_is_deferred(cpu)) return tli_do_work(cpu, &work);
    if (cpu->queue_count == TLI_QUEUE_CAPACITY) tli_run_work(cpu, 0);
    cpu->queue[cpu->queue_count++] = work;
    TLI_INVARIANT(cpu->queue_count <= TLI_QUEUE_CAPACITY);
    tli_count_work(cpu, &work, 1);
    return TL_OK;
}

// Mark the queued work that must precede these accesses, and the earlier work that it depends on
// itself. Returns whether anything other than upkeep was marked.
static int tli_mark_work(tli_cpu *cpu, const tl_access *accesses, int32_t count) {
    int32_t i, j;
    int real = 0;
    for (i = cpu->queue_count - 1; i >= 0; i--) {
        tli_work *work = &cpu->queue[i];
        work->marked = 0;
        for (j = 0; j < count && !work->marked; j++)
            work->marked = tli_overlaps(work->to, accesses[j].range) ||
                        (accesses[j].writes && tli_overlaps(work->from, accesses[j].range));
        for (j = i + 1; j < cpu->queue_count && !work->marked; j++)
            work->marked = cpu->queue[j].marked && tli_conflicts(work, &cpu->queue[j]);
        if (work->marked && !tli_is_upkeep(work)) real = 1;
    }
    return real;
}

static void tli_run_marked(tli_cpu *cpu) {
    int32_t i = 0;
    while (i < cpu->queue_count)
        if (cpu->queue[i].marked) { tli_run_work(cpu, i); i = 0; }
        else i++;
    TLI_INVARIANT(cpu->queue_count >= 0);
}

// Carry out a random piece of submitted work, among those that conflict with no earlier work.
static void tli_run_random(tli_cpu *cpu) {
    int32_t count = 0, start, i, j;
    while (count < cpu->queue_count && cpu->queue[count].ticket) count++;
    if (!count) return;
    start = (int32_t)tl_next_random_below(&cpu->random, (uint64_t)count);
    for (i = start; ; i = (i + 1) % count) {
        for (j = 0; j < i && !tli_conflicts(&cpu->queue[j], &cpu->queue[i]); j++) {}
        if (j == i) { tli_run_work(cpu, i); return; }
    }
}

static tl_result tli_report_late(tli_cpu *cpu) {
    tl_result result = cpu->late;  // work that is not deferred returned its error itself
    if (!tli_is_deferred(cpu)) return TL_OK;
    cpu->late = TL_OK;
    return result;
}

// -- the functions of the table --

static tl_result tli_cpu_add_arena(void *self, tl_tier tier, int32_t bank, uint64_t bytes, uint64_t *handle) {
    tli_cpu *cpu = (tli_cpu *)self;
    int32_t slot = cpu->free_block - 1;
    tli_cpu_block *block;
    tl_result result;
    *handle = 0;
    if (!tli_is_below((int64_t)tier, TL_TIER_COUNT))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_ADD_BLOCK), TLI_RULE(TIER_UNKNOWN));
    if (!tli_is_below(bank, tier == TL_TIER_DEVICE ? cpu->bank_count : 1))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_ADD_BLOCK), TLI_RULE(BANK_UNKNOWN));
    if (slot < 0) {
        if (!tli_grow(cpu->env, (void **)&cpu->blocks, &cpu->block_capacity, cpu->block_count,
                      (int64_t)cpu->block_count + 1, sizeof *cpu->blocks))
            return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_ADD_BLOCK),
                                TLI_RULE(NO_MEMORY_FOR_TABLE_OF_BLOCKS));
        slot = cpu->block_count++;
        // Handles of another backend are unlikely to match.
        cpu->blocks[slot].generation = (uint32_t)tl_mix_u64((uint64_t)(uintptr_t)cpu, (uint64_t)slot);
        cpu->blocks[slot].next_free = 0;
    }
    block = &cpu->blocks[slot];
    cpu->free_block = block->next_free;
    block->tier = (uint8_t)tier;
    block->bank = (uint8_t)bank;
    block->bytes = bytes;
    result = tli_place_block(cpu, block);
    while (result && tli_queued(cpu) && cpu->dying_count) {  // carry out what keeps freed blocks
        tli_run_work(cpu, 0);
        result = tli_place_block(cpu, block);
    }
    if (result) {
        block->next_free = cpu->free_block;
        cpu->free_block = slot + 1;
        if (!tli_is_checked(cpu))
            return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_ADD_BLOCK),
                                TLI_RULE(NO_ROOM_FOR_BLOCK));
        return tli_fail_values(cpu->env, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_ADD_BLOCK),
                               TLI_RULE(NO_ROOM_FOR_BLOCK_WITH_GUARDS), bytes, 2 * tli_guard_bytes(cpu));
    }
    block->alive = 1;
    block->claimed_bytes = block->claim_count = 0;
    cpu->counters.added_count++;
    cpu->counters.block_count[tier]++;
    cpu->counters.reserved_bytes[tier] += block->reserved_bytes;
    *handle = (uint64_t)block->generation << 32 | (uint64_t)(slot + 1);
    TLI_INVARIANT(tli_cpu_holds(cpu));
    return TL_OK;
}

static tl_result tli_cpu_add_block(void *self, tl_tier tier, uint64_t bytes, uint64_t *handle) {
    return tli_cpu_add_arena(self, tier, 0, bytes, handle);
}

static tl_result tli_cpu_free_block(void *self, uint64_t handle) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_cpu_block *block = tli_find_block(cpu, handle, TLI_IN(BACKEND_FREE_BLOCK), &result);
    if (!block) return result;
    if (block->claim_count)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_FREE_BLOCK),
                            TLI_RULE(BLOCK_RANGE_IN_IT_IS_STILL_CLAIMED));
    cpu->counters.block_count[block->tier]--;
    if (!block->pending) return tli_drain_block(cpu, (int32_t)(block - cpu->blocks));
    block->alive = 0;
    block->dying = 1;
    cpu->dying_count++;
    TLI_INVARIANT(tli_cpu_holds(cpu));
    return TL_OK;
}

// Record a claimed range of a checked block; no two may overlap.
static tl_result tli_add_span(tli_cpu *cpu, tli_cpu_block *block, tl_range range) {
    int32_t at = tli_find_span(block, range.offset), i;
    if (at < block->span_count && block->spans[at].start < range.offset + range.bytes)
        return tli_cpu_fail(cpu, TL_ERROR_CORRUPT, TLI_IN(BACKEND_CLAIM),
                            TLI_RULE(RANGE_OVERLAPS_ONE_THAT_IS_CLAIMED));
    if (!tli_grow(cpu->env, (void **)&block->spans, &block->span_capacity, block->span_count,
                  (int64_t)block->span_count + 1, sizeof *block->spans))
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_CLAIM),
                            TLI_RULE(NO_MEMORY_FOR_TABLE_OF_RANGES));
    for (i = block->span_count++; i > at; i--) block->spans[i] = block->spans[i - 1];
    block->spans[at].start = range.offset;
    block->spans[at].end = range.offset + range.bytes;
    TLI_INVARIANT(at == tli_find_span(block, range.offset));
    return TL_OK;
}

static void tli_remove_span(tli_cpu_block *block, int32_t at) {
    int32_t i;
    for (i = at + 1; i < block->span_count; i++) block->spans[i - 1] = block->spans[i];
    block->span_count--;
    TLI_INVARIANT(block->span_count >= 0);
}

static tl_result tli_cpu_claim(void *self, tl_range range) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_backend_counters *counters = &cpu->counters;
    tl_result result = TL_OK;
    tli_cpu_block *block;
    uint64_t end;
    if (!range.bytes) return TL_OK;
    block = tli_find_range(cpu, &range, TLI_IN(BACKEND_CLAIM), &result);
    if (!block) return result;
    if (range.bytes > cpu->desc.capacity_bytes[block->tier] - counters->live_bytes[block->tier])
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_CLAIM),
                            TLI_RULE(RANGE_BYTES_TIERS_CAPACITY_IS_USED_UP));
    if (tli_is_checked(cpu)) {
        if ((result = tli_add_span(cpu, block, range)) != TL_OK) return result;
        result = tli_enqueue(cpu, TLI_WORK_CLAIM, TL_CODEC_NONE, &range, NULL, 0);
        if (result) {
            tli_remove_span(block, tli_find_span(block, range.offset));
            tli_poison(block->memory + range.offset, range.bytes);
            return result;
        }
    }
    block->claim_count++;
    block->claimed_bytes += range.bytes;
    counters->claim_count[block->tier]++;
    counters->live_bytes[block->tier] += range.bytes;
    if (counters->live_bytes[block->tier] > counters->peak_bytes[block->tier])
        counters->peak_bytes[block->tier] = counters->live_bytes[block->tier];
    end = tli_align_u64(range.offset + range.bytes, cpu->desc.alignment_bytes);
    if (block->tier == TL_TIER_DEVICE && end > counters->arena_bytes) counters->arena_bytes = end;
    TLI_INVARIANT(tli_spans_hold(cpu, block) && tli_cpu_holds(cpu));
    return TL_OK;
}

static int tli_is_mapped(const tli_cpu *cpu, tl_range range, int writes) {
    int32_t i;
    for (i = 0; i < cpu->mapping_count; i++) {
        const tli_mapping *mapping = &cpu->mappings[i];
        if ((writes || mapping->mode != TL_MAP_READ) && tli_overlaps(mapping->range, range)) return 1;
    }
    return 0;
}

static tl_result tli_cpu_release(void *self, tl_range range) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_cpu_block *block;
    if (!range.bytes) return TL_OK;
    block = tli_find_range(cpu, &range, TLI_IN(BACKEND_RELEASE), &result);
    if (!block) return result;
    if (!block->claim_count || block->claimed_bytes < range.bytes)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_RELEASE),
                            TLI_RULE(RANGE_WAS_NOT_CLAIMED));
    if (tli_is_checked(cpu)) {
        int32_t at = tli_find_span(block, range.offset);
        if (at == block->span_count || block->spans[at].start != range.offset ||
            block->spans[at].end != range.offset + range.bytes)
            return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_RELEASE),
                                TLI_RULE(RANGE_WAS_NOT_CLAIMED_AS_IT_IS));
        if (tli_is_mapped(cpu, range, 1))
            return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_RELEASE), TLI_RULE(RANGE_IS_MAPPED));
        tli_remove_span(block, at);
        result = tli_enqueue(cpu, TLI_WORK_RELEASE, TL_CODEC_NONE, &range, NULL, 0);
    }
    block->claim_count--;
    block->claimed_bytes -= range.bytes;
    cpu->counters.claim_count[block->tier]--;
    cpu->counters.live_bytes[block->tier] -= range.bytes;
    TLI_INVARIANT(tli_spans_hold(cpu, block));
    return result;
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
// End the lifetime of the last `less` bytes of a claimed range.
static tl_result tli_cut_claim(tli_cpu *cpu, tli_cpu_block *block, tl_range range, uint64_t less) {
    int32_t at = tli_is_checked(cpu) ? tli_find_span(block, range.offset) : -1;
    if (!block->claim_count || block->claimed_bytes < range.bytes)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_SHORTEN),
                            TLI_RULE(RANGE_WAS_NOT_CLAIMED));
    if (at >= 0 && (at == block->span_count || block->spans[at].start != range.offset ||
                    block->spans[at].end != range.offset + range.bytes))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_SHORTEN),
                            TLI_RULE(RANGE_WAS_NOT_CLAIMED_AS_IT_IS));
    if (tli_is_mapped(cpu, range, 1))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_SHORTEN), TLI_RULE(RANGE_IS_MAPPED));
    block->claimed_bytes -= less;
    cpu->counters.live_bytes[block->tier] -= less;
    TLI_INVARIANT(block->claimed_bytes > 0);
    if (at < 0) return TL_OK;
    block->spans[at].end -= less;
    TLI_INVARIANT(tli_spans_hold(cpu, block));
    range.offset += range.bytes - less;
    range.bytes = less;
    return tli_enqueue(cpu, TLI_WORK_RELEASE, TL_CODEC_NONE, &range, NULL, 0);
}
#endif

#ifndef TL_NO_ACCOUNTS
// -- the functions of the table: accounts --

// The account of a handle; NULL, with an error, where there is none.
static tli_account *tli_find_account(tli_cpu *cpu, uint64_t handle, tli_function function, tl_result *result) {
    tli_account *account = tli_open_account_of(cpu, handle);
    if (!account)
        *result = tli_cpu_fail(cpu, TL_ERROR_STALE, function, TLI_RULE(ACCOUNT_WAS_CLOSED_OR_IS_OF_ANOTHER));
    return account;
}

static tl_result tli_cpu_open_account(void *self, const uint64_t limit_bytes[TL_TIER_COUNT], uint64_t *handle) {
    tli_cpu *cpu = (tli_cpu *)self;
    int32_t slot = cpu->free_account - 1, tier;
    tli_account *account;
    *handle = 0;
    if (slot < 0) {
        if (!tli_grow(cpu->env, (void **)&cpu->accounts, &cpu->account_capacity, cpu->account_count,
                      (int64_t)cpu->account_count + 1, sizeof *cpu->accounts))
            return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_OPEN_ACCOUNT),
                                TLI_RULE(NO_MEMORY_FOR_TABLE_OF_ACCOUNTS));
        slot = cpu->account_count++;
        tli_zero(&cpu->accounts[slot], sizeof *cpu->accounts);
        cpu->accounts[slot].generation = (uint32_t)tl_mix_u64((uint64_t)(uintptr_t)cpu, (uint64_t)slot);
    }
    account = &cpu->accounts[slot];
    cpu->free_account = account->next_free;
    tli_zero(&account->counters, sizeof account->counters);
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        account->limit_bytes[tier] = limit_bytes[tier] ? limit_bytes[tier] : TL_UNLIMITED;
    account->is_open = 1;
    cpu->open_count++;
    *handle = (uint64_t)account->generation << 32 | (uint64_t)(slot + 1);
    TLI_INVARIANT(cpu->open_count <= cpu->account_count);
    return TL_OK;
}

static tl_result tli_cpu_close_account(void *self, uint64_t handle) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_account *account = tli_find_account(cpu, handle, TLI_IN(BACKEND_CLOSE_ACCOUNT), &result);
    if (!account) return result;
    account->is_open = 0;
    account->generation++;
    account->next_free = cpu->free_account;
    cpu->free_account = (int32_t)(account - cpu->accounts) + 1;
    cpu->open_count--;
    TLI_INVARIANT(cpu->open_count >= 0);
    return TL_OK;
}

static tl_result tli_cpu_claim_on(void *self, uint64_t handle, tl_range range) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_account *account = tli_find_account(cpu, handle, TLI_IN(BACKEND_CLAIM_ON), &result);
    tl_account_counters *counters;
    tli_cpu_block *block;
    uint64_t end;
    if (!account || !range.bytes) return result;
    block = tli_find_range(cpu, &range, TLI_IN(BACKEND_CLAIM_ON), &result);
    if (!block) return result;
    counters = &account->counters;
    if (range.bytes > account->limit_bytes[block->tier] - counters->live_bytes[block->tier])
        return tli_cpu_fail(cpu, TL_ERROR_OVER_BUDGET, TLI_IN(BACKEND_CLAIM_ON),
                            TLI_RULE(RANGE_BYTES_BEYOND_ACCOUNTS_LIMIT));
    result = tli_cpu_claim(self, range);
    if (result) return result;
    tli_take_block(cpu, account, handle, block);
    counters->claim_count[block->tier]++;
    counters->live_bytes[block->tier] += range.bytes;
    if (counters->live_bytes[block->tier] > counters->peak_bytes[block->tier])
        counters->peak_bytes[block->tier] = counters->live_bytes[block->tier];
    end = tli_align_u64(range.offset + range.bytes, cpu->desc.alignment_bytes);
    if (block->tier == TL_TIER_DEVICE && end > counters->arena_bytes) counters->arena_bytes = end;
    TLI_INVARIANT(counters->live_bytes[block->tier] <= account->limit_bytes[block->tier]);
    TLI_INVARIANT(tli_cpu_holds(cpu));
    return TL_OK;
}

static tl_result tli_cpu_release_on(void *self, uint64_t handle, tl_range range) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_account *account = tli_find_account(cpu, handle, TLI_IN(BACKEND_RELEASE_ON), &result);
    tli_cpu_block *block;
    if (!account || !range.bytes) return result;
    block = tli_find_range(cpu, &range, TLI_IN(BACKEND_RELEASE_ON), &result);
    if (!block) return result;
    if (!account->counters.claim_count[block->tier] || account->counters.live_bytes[block->tier] < range.bytes)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_RELEASE_ON),
                            TLI_RULE(RANGE_WAS_NOT_CLAIMED_ON_THIS_ACCOUNT));
    result = tli_cpu_release(self, range);
    if (result) return result;
    account->counters.claim_count[block->tier]--;
    account->counters.live_bytes[block->tier] -= range.bytes;
    TLI_INVARIANT(tli_cpu_holds(cpu));
    return TL_OK;
}

static tl_result tli_cpu_measure_account(void *self, uint64_t handle, int32_t resets,
                                         tl_account_counters *counters) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_account *account = tli_find_account(cpu, handle, TLI_IN(BACKEND_MEASURE_ACCOUNT), &result);
    int tier;
    tli_zero(counters, sizeof *counters);
    if (!account) return result;
    for (tier = 0; tier < TL_TIER_COUNT && resets; tier++) {
        account->counters.peak_bytes[tier] = account->counters.live_bytes[tier];
        account->counters.peak_taken_bytes[tier] = account->counters.taken_bytes[tier];
    }
    if (resets) account->counters.arena_bytes = 0;
    *counters = account->counters;
    return TL_OK;
}
#endif

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
static tl_result tli_cpu_shorten(void *self, uint64_t handle, tl_range range, uint64_t bytes) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_cpu_block *block = tli_find_range(cpu, &range, TLI_IN(BACKEND_SHORTEN), &result);
    uint64_t less = range.bytes - bytes;
    if (!block) return result;
    if (!bytes || bytes > range.bytes)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_SHORTEN),
                            TLI_RULE(BYTES_NOT_PART_OF_RANGE));
#ifndef TL_NO_ACCOUNTS
    if (handle) {
        tli_account *account = tli_find_account(cpu, handle, TLI_IN(BACKEND_SHORTEN), &result);
        if (!account) return result;
        if (account->counters.live_bytes[block->tier] < range.bytes)
            return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_SHORTEN),
                                TLI_RULE(RANGE_WAS_NOT_CLAIMED_ON_THIS_ACCOUNT));
        result = tli_cut_claim(cpu, block, range, less);
        if (!result) account->counters.live_bytes[block->tier] -= less;
        return result;
    }
#else
    (void)handle;
#endif
    return tli_cut_claim(cpu, block, range, less);
}
#endif

// -- the functions of the table: work --

// Check and enqueue a copy or a conversion. plain: bytes of the uncompressed side; those of the other
// side must follow from them.
static tl_result tli_move(tli_cpu *cpu, tli_work_kind kind, tl_codec codec, const tl_range *to,
                          const tl_range *from, tli_function function) {
    uint64_t plain = kind == TLI_WORK_EXPAND ? to->bytes : from->bytes;
    uint64_t other = kind == TLI_WORK_EXPAND ? from->bytes : to->bytes;
    tl_result result = tli_check_range(cpu, to, function);
    if (result || (result = tli_check_range(cpu, from, function)) != TL_OK) return result;
    if (kind != TLI_WORK_COPY && ((int)codec <= TL_CODEC_NONE || (int)codec >= TL_CODEC_COUNT))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, TLI_RULE(CODEC_NONE_OR_UNKNOWN));
    if (tl_find_codec_bytes(codec, plain) != other)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, TLI_RULE(TO_BYTES_DO_NOT_FIT_THOSE_OF_FROM));
    if (tli_overlaps(*to, *from))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, TLI_RULE(TO_OVERLAPS_FROM));
    if (tli_is_checked(cpu) && (tli_is_mapped(cpu, *to, 1) || tli_is_mapped(cpu, *from, 0)))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, TLI_RULE(RANGE_IS_MAPPED));
    if (kind == TLI_WORK_COPY) cpu->counters.copy_count++;
    else cpu->counters.convert_count++;
    cpu->counters.copied_bytes += from->bytes;
    return tli_enqueue(cpu, kind, codec, to, from, 0);
}

static tl_result tli_cpu_copy(void *self, tl_range to, tl_range from) {
    return tli_move((tli_cpu *)self, TLI_WORK_COPY, TL_CODEC_NONE, &to, &from, TLI_IN(BACKEND_COPY));
}

#ifndef TL_NO_CODECS
static tl_result tli_cpu_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    return tli_move((tli_cpu *)self, TLI_WORK_COMPRESS, codec, &to, &from, TLI_IN(BACKEND_COMPRESS));
}

static tl_result tli_cpu_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    return tli_move((tli_cpu *)self, TLI_WORK_EXPAND, codec, &to, &from, TLI_IN(BACKEND_EXPAND));
}
#else
static tl_result tli_cpu_refuse(tli_cpu *cpu, tli_function function) {
    return tli_cpu_fail(cpu, TL_ERROR_UNSUPPORTED, function, TLI_RULE(CODEC_TL_NO_CODECS_LEFT_ALL_OF_THEM));
}

static tl_result tli_cpu_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    (void)codec; (void)to; (void)from;
    return tli_cpu_refuse((tli_cpu *)self, TLI_IN(BACKEND_COMPRESS));
}

static tl_result tli_cpu_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    (void)codec; (void)to; (void)from;
    return tli_cpu_refuse((tli_cpu *)self, TLI_IN(BACKEND_EXPAND));
}
#endif

static tl_result tli_cpu_fill(void *self, tl_range to, uint32_t word) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = tli_check_range(cpu, &to, TLI_IN(BACKEND_FILL));
    if (result) return result;
    if (tli_is_checked(cpu) && tli_is_mapped(cpu, to, 1))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_FILL), TLI_RULE(RANGE_IS_MAPPED));
    cpu->counters.fill_count++;
    return tli_enqueue(cpu, TLI_WORK_FILL, TL_CODEC_NONE, &to, NULL, word);
}

static tl_result tli_cpu_order(void *self, const tl_access *accesses, int32_t access_count) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < access_count && !result; i++)
        result = tli_check_range(cpu, &accesses[i].range, TLI_IN(BACKEND_ORDER));
    if (result || !tli_queued(cpu)) return result ? result : tli_report_late(cpu);
    (void)tli_mark_work(cpu, accesses, access_count);
    tli_run_marked(cpu);
    return tli_report_late(cpu);
}

static tl_result tli_cpu_submit(void *self, tl_ticket *ticket) {
    tli_cpu *cpu = (tli_cpu *)self;
    int32_t i;
    cpu->counters.submit_count++;
    ticket->value = ++cpu->submitted;
    for (i = tli_queued(cpu) - 1; i >= 0 && !cpu->queue[i].ticket; i--)
        cpu->queue[i].ticket = cpu->submitted;
    TLI_INVARIANT(!tli_queued(cpu) || cpu->queue[0].ticket);
    return TL_OK;
}

// Submitted work stands at the front of the queue, in order of its tickets.
static int tli_has_passed(const tli_cpu *cpu, tl_ticket ticket) {
    return !tli_queued(cpu) || !cpu->queue[0].ticket || cpu->queue[0].ticket > ticket.value;
}

static tl_result tli_cpu_poll(void *self, tl_ticket ticket) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result;
    uint64_t runs;
    cpu->counters.poll_count++;
    if (ticket.value > cpu->submitted)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_POLL),
                            TLI_RULE(TICKET_WAS_NEVER_SUBMITTED));
    if (tli_queued(cpu))
        for (runs = tl_next_random_below(&cpu->random, 4); runs; runs--) tli_run_random(cpu);
    result = tli_report_late(cpu);
    return result ? result : tli_has_passed(cpu, ticket) ? TL_OK : TL_NOT_READY;
}

static tl_result tli_cpu_wait(void *self, tl_ticket ticket) {
    tli_cpu *cpu = (tli_cpu *)self;
    cpu->counters.wait_count++;
    if (ticket.value > cpu->submitted)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_WAIT),
                            TLI_RULE(TICKET_WAS_NEVER_SUBMITTED));
    while (!tli_has_passed(cpu, ticket)) tli_run_random(cpu);
    return tli_report_late(cpu);
}

// Deferred: a range may be mapped only when no queued work on it is left. Upkeep is carried out here,
// because no ticket stands for it and a caller cannot wait for it.
static tl_result tli_settle(tli_cpu *cpu, tl_range range, int writes, tli_function function) {
    tl_access access;
    access.range = range;
    access.writes = writes;
    if (!tli_queued(cpu)) return TL_OK;
    if (tli_mark_work(cpu, &access, 1))
        return tli_cpu_fail(cpu, TL_ERROR_BACKEND, function,
                            TLI_RULE(RANGE_WORK_ON_IT_WAS_NEITHER_ORDERED));
    tli_run_marked(cpu);
    return tli_report_late(cpu);
}

// Write the pattern of a guard, or compare with it. Returns 1 if it is there.
static int tli_is_guard(char *at, size_t bytes, uint64_t key, int writes) {
    uint64_t word = 0;
    size_t i;
    int same = 1;
    for (i = 0; i < bytes; i++, word >>= 8) {
        if (i % 8 == 0) word = tl_mix_u64(key, i);
        if (writes) at[i] = (char)(unsigned char)(word & 255);
        same &= (unsigned char)at[i] == (word & 255);
    }
    return same;
}

// Close the guards of a copy: an address sanitizer ends the program where they are accessed. opens: 1 = open
// them, to compare them and to give the memory back.
static void tli_close_guards(const tli_cpu *cpu, const tli_mapping *mapping, int opens) {
#ifdef TLI_HAS_SANITIZER
    size_t guard = (size_t)tli_guard_bytes(cpu);
    char *sides[2];
    int i;
    sides[0] = (char *)mapping->host - guard;
    sides[1] = (char *)mapping->host + mapping->range.bytes;
    for (i = 0; i < 2; i++) {
        if (opens) __asan_unpoison_memory_region(sides[i], guard);
        else __asan_poison_memory_region(sides[i], guard);
    }
#else
    (void)cpu;
    (void)mapping;
    (void)opens;
#endif
}

// Make room for the copy of a range between two guards, as aligned as the range is. 0 = no memory.
static int tli_make_copy(tli_cpu *cpu, tli_mapping *mapping) {
    size_t guard = (size_t)tli_guard_bytes(cpu), bytes = (size_t)mapping->range.bytes;
    size_t alignment = (size_t)cpu->desc.alignment_bytes;
    char *base = (char *)tli_alloc(cpu->env, bytes + 2 * guard + alignment - 1);
    mapping->allocation = base;
    if (!base) return 0;
    base += (0 - (size_t)(uintptr_t)base) & (alignment - 1);
    mapping->host = base + guard;
    mapping->key = tl_mix_u64(TLI_POISON, cpu->counters.map_count);
    (void)tli_is_guard(base, guard, mapping->key, 1);
    (void)tli_is_guard(base + guard + bytes, guard, ~mapping->key, 1);
    tli_close_guards(cpu, mapping, 0);
    return 1;
}

// Check that nothing was written beside the copy of a range.
static tl_result tli_check_copy(tli_cpu *cpu, const tli_mapping *mapping) {
    size_t guard = (size_t)tli_guard_bytes(cpu);
    char *host = (char *)mapping->host;
    if (!tli_is_guard(host - guard, guard, mapping->key, 0))
        return tli_cpu_fail(cpu, TL_ERROR_CORRUPT, TLI_IN(BACKEND_UNMAP),
                            TLI_RULE(BYTES_BEFORE_A_MAPPED_RANGE_WERE_WRITTEN));
    if (!tli_is_guard(host + mapping->range.bytes, guard, ~mapping->key, 0))
        return tli_cpu_fail(cpu, TL_ERROR_CORRUPT, TLI_IN(BACKEND_UNMAP),
                            TLI_RULE(BYTES_BEHIND_A_MAPPED_RANGE_WERE_WRITTEN));
    return TL_OK;
}

static tl_result tli_cpu_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = tli_check_range(cpu, &range, TLI_IN(BACKEND_MAP));
    int writes = mode != TL_MAP_READ;
    tli_mapping *mapping;
    *host = NULL;
    if (!result && !tli_is_below((int64_t)mode, TL_MAP_MODE_COUNT))
        result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_MAP), TLI_RULE(MODE_UNKNOWN));
    if (result) return result;
    cpu->counters.map_count++;
    if (!range.bytes) return TL_OK;
    if ((result = tli_settle(cpu, range, writes, TLI_IN(BACKEND_MAP))) != TL_OK) return result;
    if (!tli_is_checked(cpu)) { *host = tli_address(cpu, range); return TL_OK; }
    if (tli_is_mapped(cpu, range, writes))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_MAP),
                            TLI_RULE(RANGE_OVERLAPS_ONE_THAT_IS_MAPPED));
    if (!tli_grow(cpu->env, (void **)&cpu->mappings, &cpu->mapping_capacity, cpu->mapping_count,
                  (int64_t)cpu->mapping_count + 1, sizeof *cpu->mappings))
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_MAP),
                            TLI_RULE(NO_MEMORY_FOR_TABLE_OF_MAPPINGS));
    mapping = &cpu->mappings[cpu->mapping_count];
    mapping->range = range;
    mapping->mode = mode;
    if (!tli_make_copy(cpu, mapping))
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_MAP),
                            TLI_RULE(NO_MEMORY_FOR_COPY_OF_RANGE));
    *host = mapping->host;
    if (mode == TL_MAP_WRITE) tli_poison((char *)*host, range.bytes);
    else tli_copy(*host, tli_address(cpu, range), (size_t)range.bytes);
    cpu->mapping_count++;
    TLI_INVARIANT(cpu->mapping_count <= cpu->mapping_capacity);
    return TL_OK;
}

static tl_result tli_cpu_unmap(void *self, tl_range range, tl_map_mode mode, void *host) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = tli_check_range(cpu, &range, TLI_IN(BACKEND_UNMAP));
    int32_t i;
    if (result || !range.bytes) return result;
    result = tli_settle(cpu, range, mode != TL_MAP_READ, TLI_IN(BACKEND_UNMAP));
    if (!tli_is_checked(cpu)) return result;
    for (i = 0; i < cpu->mapping_count; i++)
        if (cpu->mappings[i].host == host && tli_is_same_range(&cpu->mappings[i].range, &range)) break;
    if (i == cpu->mapping_count)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_UNMAP),
                            TLI_RULE(HOST_IS_NOT_WHAT_MAP_GAVE_FOR_THIS));
    if (mode != cpu->mappings[i].mode)
        result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_UNMAP),
                              TLI_RULE(MODE_IS_NOT_THAT_OF_MAPPING));
    else if (mode != TL_MAP_READ)
        tli_copy(tli_address(cpu, range), host, (size_t)range.bytes);
    else if (TLI_MEMCMP(tli_address(cpu, range), host, (size_t)range.bytes) != 0)
        result = tli_cpu_fail(cpu, TL_ERROR_CORRUPT, TLI_IN(BACKEND_UNMAP),
                              TLI_RULE(BYTES_OF_READ_ONLY_RANGE_WERE_WRITTEN));
    tli_close_guards(cpu, &cpu->mappings[i], 1);
    if (!result) result = tli_check_copy(cpu, &cpu->mappings[i]);
    tli_release(cpu->env, cpu->mappings[i].allocation);
    TLI_INVARIANT(i < cpu->mapping_count);
    cpu->mappings[i] = cpu->mappings[--cpu->mapping_count];
    return result;
}

static tl_result tli_cpu_check(void *self) {
    tli_cpu *cpu = (tli_cpu *)self;
    int32_t i = 0, j;
    while (i < tli_queued(cpu)) {  // carry out upkeep that conflicts with no earlier work
        for (j = 0; j < i && !tli_conflicts(&cpu->queue[j], &cpu->queue[i]); j++) {}
        if (j == i && tli_is_upkeep(&cpu->queue[i])) tli_run_work(cpu, i);
        else i++;
    }
    for (i = 0; tli_is_checked(cpu) && i < cpu->block_count; i++)
        if (cpu->blocks[i].alive && !cpu->blocks[i].pending && !tli_is_intact(cpu, &cpu->blocks[i]))
            return tli_cpu_fail(cpu, TL_ERROR_CORRUPT, TLI_IN(BACKEND_CHECK),
                                TLI_RULE(BYTES_THAT_NOBODY_CLAIMED_WERE_WRITTEN));
    return tli_report_late(cpu);
}

// The clock of the system in nanoseconds; 0 = it has none, or TL_NO_CLOCK left it out.
static uint64_t tli_system_now_ns(void) {
#if defined(TLI_CLOCK_WINDOWS)
    LARGE_INTEGER rate, now;
    uint64_t each, ticks;
    if (!QueryPerformanceFrequency(&rate) || !QueryPerformanceCounter(&now) || rate.QuadPart <= 0) return 0;
    each = (uint64_t)rate.QuadPart;
    ticks = (uint64_t)now.QuadPart;
    return ticks / each * 1000000000u + ticks % each * 1000000000u / each;
#elif defined(TLI_CLOCK_POSIX)
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now)) return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#elif defined(TLI_CLOCK_HIDDEN)
    tli_time now;
    if (clock_gettime(1, &now)) return 0;    // CLOCK_MONOTONIC
    return (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
#else
    return 0;
#endif
}

static uint64_t tli_cpu_now_ns(void *self) {
    const tli_cpu *cpu = (const tli_cpu *)self;
    return cpu->desc.now_ns ? (cpu->desc.now_ns)(cpu->desc.user) : tli_system_now_ns();
}

// Report the banks, and limit the device tier to the memory of the caller. Where bank 0 is of the env, the
// memory of the other banks is no limit.
static void tli_limit_memory(const tli_cpu *cpu, tl_backend_limits *limits) {
    uint64_t *capacity = &limits->capacity_bytes[TL_TIER_DEVICE];
    uint64_t *present = &limits->budget_bytes[TL_TIER_DEVICE];
    uint64_t bytes = 0, free_bytes = 0, shift = 0;
    int32_t k;
    limits->bank_count = cpu->bank_count;
    for (k = 0; k < cpu->bank_count; k++) {
        const tli_cpu_bank *bank = &cpu->banks[k];
        limits->bank_bytes[k] = bank->memory ? bank->heap.free_bytes : TL_UNLIMITED;
        limits->bank_overhead_bytes[k] = bank->memory ? 0 : tli_find_slack(cpu);
        bytes += bank->heap.bytes;      // each less than a quarter of the address space
        free_bytes += bank->heap.free_bytes;
        shift += bank->shift;
    }
    if (!cpu->banks[0].memory) return;
    if (*capacity > bytes) {
        *capacity = bytes;
        limits->unusable_bytes[TL_TIER_DEVICE] = shift;
    }
    if (*present > free_bytes) *present = free_bytes;
    limits->block_overhead_bytes[TL_TIER_DEVICE] = 0;
}

static void tli_cpu_limits(void *self, tl_backend_limits *limits) {
    const tli_cpu *cpu = (const tli_cpu *)self;
    int tier;
    tli_zero(limits, sizeof *limits);
    limits->alignment_bytes = limits->granularity_bytes = cpu->desc.alignment_bytes;
    limits->range_bytes = SIZE_MAX / 4;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        uint64_t capacity = cpu->desc.capacity_bytes[tier];
        limits->capacity_bytes[tier] = capacity;
        limits->budget_bytes[tier] =
            capacity == TL_UNLIMITED ? capacity : capacity - cpu->counters.live_bytes[tier];
        limits->block_overhead_bytes[tier] = tli_find_slack(cpu);
    }
    tli_limit_memory(cpu, limits);
#ifndef TL_NO_CODECS
    limits->codecs = 1u << TL_CODEC_F16 | 1u << TL_CODEC_BF16 | 1u << TL_CODEC_Q8;
#endif
    limits->host_visible = 1;
    limits->in_order = !tli_is_deferred(cpu);
    limits->env = cpu->env;
}

static void tli_cpu_counters(void *self, tl_backend_counters *counters) {
    *counters = ((const tli_cpu *)self)->counters;
}

static void tli_cpu_reset_peaks(void *self) {
    tl_backend_counters *counters = &((tli_cpu *)self)->counters;
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) counters->peak_bytes[tier] = counters->live_bytes[tier];
    counters->arena_bytes = 0;
    TLI_INVARIANT(tli_cpu_holds((const tli_cpu *)self));
}

// -- making and freeing it --

static void tli_fill_backend(tl_backend *backend, tli_cpu *cpu) {
    backend->self = cpu;
    backend->add_block = tli_cpu_add_block;
    backend->add_arena = tli_cpu_add_arena;
    backend->free_block = tli_cpu_free_block;
    backend->claim = tli_cpu_claim;
    backend->release = tli_cpu_release;
    backend->copy = tli_cpu_copy;
    backend->compress = tli_cpu_compress;
    backend->expand = tli_cpu_expand;
    backend->fill = tli_cpu_fill;
    backend->order = tli_cpu_order;
    backend->submit = tli_cpu_submit;
    backend->poll = tli_cpu_poll;
    backend->wait = tli_cpu_wait;
    backend->map = tli_cpu_map;
    backend->unmap = tli_cpu_unmap;
    backend->check = tli_cpu_check;
    backend->now_ns = tli_cpu_now_ns;
    backend->limits = tli_cpu_limits;
    backend->counters = tli_cpu_counters;
    backend->reset_peaks = tli_cpu_reset_peaks;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    backend->shorten = tli_cpu_shorten;
#endif
#ifndef TL_NO_ACCOUNTS
    backend->open_account = tli_cpu_open_account;
    backend->close_account = tli_cpu_close_account;
    backend->claim_on = tli_cpu_claim_on;
    backend->release_on = tli_cpu_release_on;
    backend->measure_account = tli_cpu_measure_account;
#endif
}

// Make a heap over memory of the caller, less the bytes that its alignment takes.
static tl_result tli_open_memory(tli_cpu *cpu, void *memory, uint64_t memory_bytes, tli_cpu_bank *bank) {
    size_t alignment = (size_t)cpu->desc.alignment_bytes;
    size_t shift = (0 - (size_t)(uintptr_t)memory) & (alignment - 1), bytes;
    if (!memory || memory_bytes > SIZE_MAX / 4 || memory_bytes < shift + alignment)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, TLI_IN(INIT_CPU_BACKEND),
                            TLI_RULE(MEMORY_BYTES_TOO_FEW_FOR_ONE_ALIGNED));
    bytes = ((size_t)memory_bytes - shift) & ~(alignment - 1);
    if (!tli_open_heap(cpu->env, bytes, alignment, &bank->heap))
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(INIT_CPU_BACKEND),
                            TLI_RULE(NO_MEMORY_FOR_TABLE_OF_PIECES));
    bank->memory = (char *)memory + shift;
    bank->shift = shift;
    return TL_OK;
}

static tl_result tli_open_banks(tli_cpu *cpu) {
    const tl_cpu_backend_desc *desc = &cpu->desc;
    tl_result result = TL_OK;
    int32_t k;
    cpu->bank_count = 1 + desc->bank_count;
    cpu->banks = (tli_cpu_bank *)tli_alloc_array(cpu->env, (uint64_t)cpu->bank_count, sizeof *cpu->banks);
    if (!cpu->banks)
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, TLI_IN(INIT_CPU_BACKEND), TLI_RULE(NO_MEMORY));
    if (desc->memory) result = tli_open_memory(cpu, desc->memory, desc->memory_bytes, &cpu->banks[0]);
    for (k = 0; k < desc->bank_count && !result; k++)
        result = tli_open_memory(cpu, desc->banks[k].memory, desc->banks[k].memory_bytes, &cpu->banks[k + 1]);
    cpu->desc.banks = NULL;     // read during the call
    return result;
}

TLI_IMPL tl_result tl_init_cpu_backend(tl_env *env, const tl_cpu_backend_desc *desc, tl_backend *backend) {
    const tli_function function = TLI_IN(INIT_CPU_BACKEND);
    tl_result result = TL_OK;
    tli_cpu *cpu;
    int tier;
    TL_ASSERT(desc && backend);
    tli_zero(backend, sizeof *backend);
    if (desc->alignment_bytes & (desc->alignment_bytes - 1) || desc->alignment_bytes > SIZE_MAX / 16)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(ALIGNMENT_BYTES_NOT_POWER_OF_TWO));
    if (!desc->memory && desc->memory_bytes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(MEMORY_BYTES_WITHOUT_MEMORY));
    if (desc->bank_count < 0 || desc->bank_count >= TL_MOST_BANKS || (desc->bank_count && !desc->banks))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(CPU_BANK_COUNT_MUST_BE_0_TO_7));
#ifdef TL_NO_CHECKS
    if (desc->checked || desc->deferred)
        return tli_fail(env, TL_ERROR_UNSUPPORTED, function,
                        TLI_RULE(CHECKED_DEFERRED_LEFT_OUT));
#endif
    cpu = (tli_cpu *)tli_alloc_array(env, 1, sizeof *cpu);
    if (!cpu) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY));
    cpu->env = env;
    cpu->desc = *desc;
    if (!cpu->desc.alignment_bytes) cpu->desc.alignment_bytes = 64;
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        if (!cpu->desc.capacity_bytes[tier]) cpu->desc.capacity_bytes[tier] = TL_UNLIMITED;
    cpu->random.state = desc->seed;
    tli_fill_backend(backend, cpu);
    result = tli_open_banks(cpu);
    if (!result && tli_is_deferred(cpu)) {
        cpu->queue = (tli_work *)tli_alloc_array(env, TLI_QUEUE_CAPACITY, sizeof *cpu->queue);
        if (!cpu->queue) result = tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_QUEUE));
    }
    if (result) (void)tl_free_cpu_backend(env, backend);
    return result;
}

#ifndef TL_NO_ACCOUNTS
static tl_result tli_fail_users(tl_env *env, tli_function function, int32_t count) {
    return tli_fail_values(env, TL_ERROR_INVALID_ARG, function,
                           TLI_RULE(BACKEND_STILL_IN_USE_RUNS_AND_MANAGERS),
                           (uint64_t)count, 0);
}
#endif

TLI_IMPL tl_result tl_free_cpu_backend(tl_env *env, tl_backend *backend) {
    tli_cpu *cpu;
    int32_t i;
    if (!backend || !backend->self) return TL_OK;
    cpu = (tli_cpu *)backend->self;
#ifndef TL_NO_ACCOUNTS
    if (cpu->open_count) return tli_fail_users(env, TLI_IN(FREE_CPU_BACKEND), cpu->open_count);
    tli_release(env, cpu->accounts);
#endif
    for (i = 0; tli_is_checked(cpu) && i < cpu->mapping_count; i++) {
        tli_close_guards(cpu, &cpu->mappings[i], 1);
        tli_release(env, cpu->mappings[i].allocation);
    }
    for (i = 0; i < cpu->block_count; i++) {
        tli_cpu_block *block = &cpu->blocks[i];
        if (block->alive || block->dying) {
            tli_release(env, block->allocation);
            tli_release(env, block->spans);
        }
    }
    tli_release(env, cpu->mappings);
    tli_release(env, cpu->queue);
    for (i = 0; i < cpu->bank_count && cpu->banks; i++) tli_release(env, cpu->banks[i].heap.extents);
    tli_release(env, cpu->banks);
    tli_release(env, cpu->blocks);
    tli_release(env, cpu);
    tli_zero(backend, sizeof *backend);
    return TL_OK;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION

