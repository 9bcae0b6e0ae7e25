#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- memory --

// With one of alloc and release alone, memory of the one would go back to another: there is none then.
static void *tli_alloc(tl_env *env, size_t bytes) {
    if (tli_has_half_allocator(env)) return NULL;
    return env && env->alloc ? (env->alloc)(env->user, bytes) : TL_MALLOC(env ? env->user : NULL, bytes);
}

static void tli_release(tl_env *env, void *ptr) {
    if (!ptr) return;
    if (env && env->release) (env->release)(env->user, ptr);
    else TL_FREE(env ? env->user : NULL, ptr);
}

// Allocate a zeroed array. NULL if there is no memory, the size overflows or item_bytes is 0; never NULL for 0
// items, so that NULL always means failure.
static void *tli_alloc_array(tl_env *env, uint64_t count, size_t item_bytes) {
    uint64_t bytes;
    void *array;
    if (!tli_mul_u64(count ? count : 1, item_bytes, &bytes) || !bytes || bytes > SIZE_MAX / 2) return NULL;
    array = tli_alloc(env, (size_t)bytes);
    if (array) tli_zero(array, (size_t)bytes);
    return array;
}

// Make room for `needed` items: the first `used` items move to a larger array, the rest of which is
// zero. The old array is released unless its capacity is 0, which marks memory of the caller (a
// const table).
static int tli_grow(tl_env *env, void **array, int32_t *capacity, int32_t used, int64_t needed,
                    size_t item_bytes) {
    int64_t wanted = *capacity ? *capacity : 8;
    void *bigger;
    if (needed <= *capacity) return 1;
    if (needed > INT32_MAX) return 0;
    while (wanted < needed) wanted += wanted < 65536 ? wanted : wanted / 2;
    if (wanted > INT32_MAX) wanted = INT32_MAX;
    bigger = tli_alloc_array(env, (uint64_t)wanted, item_bytes);
    if (!bigger) return 0;
    tli_copy(bigger, *array, (size_t)used * item_bytes);
    if (*capacity) tli_release(env, *array);
    *array = bigger;
    *capacity = (int32_t)wanted;
    TLI_INVARIANT(used <= *capacity && needed <= *capacity);
    return 1;
}

// -- sorting --

#ifndef TL_ONLY_TABLES
// Move the item at root down a binary heap until none of its children is larger.
static void tli_sink_u64(uint64_t *items, size_t root, size_t count) {
    uint64_t item = items[root];
    size_t child;
    for (; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && items[child + 1] > items[child]) child++;
        if (items[child] <= item) break;
        items[root] = items[child];
    }
    items[root] = item;
}

// Sort ascending, by heap sort: no order of the items makes it slow.
static void tli_sort_u64(uint64_t *items, size_t count) {
    size_t i;
    for (i = count / 2; i-- > 0;) tli_sink_u64(items, i, count);
    for (i = count; i-- > 1;) {
        uint64_t largest = items[0];
        items[0] = items[i];
        items[i] = largest;
        tli_sink_u64(items, 0, i);
    }
}
#endif

#ifndef TL_NO_PLANNERS
// a / b in units of 2^-32, at most 2^63 - 1. Of a b above 2^32 only the 32 highest bits count, and a is shifted
// alike; 0 counts as 1.
static uint64_t tli_fixed_ratio(uint64_t a, uint64_t b) {
    int32_t shift = tli_log2_u64(b) > 31 ? tli_log2_u64(b) - 31 : 0;
    a >>= shift;
    b = b >> shift ? b >> shift : 1;
    if (a / b >> 31) return UINT64_MAX >> 1;
    return (a / b) << 32 | ((a % b) << 32) / b;
}
#endif

#ifndef TL_ONLY_TABLES
static int tli_key_is_above(const uint64_t *keys, int32_t a, int32_t b) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : a > b;
}

// Sort numbers 0 .. count - 1 by their keys, those of one key ascending, by heap sort.
static void tli_sort_numbers(int32_t *items, int32_t count, const uint64_t *keys) {
    int32_t end = count, root = count / 2, at, child, item;
    for (at = 0; at < count; at++) items[at] = at;
    while (end > 1) {
        if (root > 0) item = items[--root];
        else { item = items[--end]; items[end] = items[0]; }
        for (at = root; at < end / 2; at = child) {
            child = 2 * at + 1;
            if (child + 1 < end && tli_key_is_above(keys, items[child + 1], items[child])) child++;
            if (!tli_key_is_above(keys, items[child], item)) break;
            items[at] = items[child];
        }
        items[at] = item;
    }
}
#endif

// -- services for backends --

TLI_IMPL void *tl_add_memory(tl_env *env, size_t bytes) {
    return tli_alloc_array(env, 1, bytes);
}

TLI_IMPL void tl_free_memory(tl_env *env, void *memory) { tli_release(env, memory); }

// -- arena --
//
// The block is divided into pieces in address order, each with a head. An allocation splits the
// first free piece that is large enough; a release joins all adjacent free pieces.

typedef struct tli_piece {
    size_t bytes;       // of the piece, including this head
    size_t free_bytes;  // 0 = in use, else equal to bytes
} tli_piece;

typedef struct tli_arena {
    size_t size, used, peak;  // bytes after this head; used and peak include the heads of pieces
    size_t reserved;          // makes the head a multiple of 16 on 64-bit machines
} tli_arena;

#define TLI_ARENA_ALIGN ((size_t)16)

static size_t tli_round_up(size_t bytes, size_t align) { return (bytes + align - 1) / align * align; }

static size_t tli_piece_head(void) { return tli_round_up(sizeof(tli_piece), TLI_ARENA_ALIGN); }

static char *tli_arena_start(tli_arena *arena) {
    return (char *)arena + tli_round_up(sizeof *arena, TLI_ARENA_ALIGN);
}

#ifdef TLI_INVARIANTS
// Pieces fill the arena without a gap, no two free ones lie side by side, and those in use add up to `used`.
static int tli_arena_holds(tli_arena *arena) {
    size_t at = 0, used = 0;
    int was_free = 0;
    while (at < arena->size) {
        const tli_piece *piece = (tli_piece *)(void *)(tli_arena_start(arena) + at);
        int is_free = piece->free_bytes != 0;
        if (piece->bytes < tli_piece_head() || piece->bytes > arena->size - at) return 0;
        if (piece->bytes % TLI_ARENA_ALIGN || (is_free && was_free)) return 0;
        if (is_free && piece->free_bytes != piece->bytes) return 0;
        if (!is_free) used += piece->bytes;
        was_free = is_free;
        at += piece->bytes;
    }
    return used == arena->used && used <= arena->peak && arena->peak <= arena->size;
}
#endif

static void *tli_arena_alloc(void *user, size_t bytes) {
    tli_arena *arena = (tli_arena *)user;
    size_t head = tli_piece_head(), at, need;
    if (bytes > arena->size) return NULL;
    need = tli_round_up(bytes ? bytes : 1, TLI_ARENA_ALIGN) + head;
    for (at = 0; at < arena->size; at += ((tli_piece *)(void *)(tli_arena_start(arena) + at))->bytes) {
        tli_piece *piece = (tli_piece *)(void *)(tli_arena_start(arena) + at);
        if (!piece->free_bytes || piece->bytes < need) continue;
        if (piece->bytes - need > head) {
            tli_piece *rest = (tli_piece *)(void *)((char *)piece + need);
            rest->bytes = rest->free_bytes = piece->bytes - need;
            piece->bytes = need;
        }
        piece->free_bytes = 0;
        arena->used += piece->bytes;
        if (arena->used > arena->peak) arena->peak = arena->used;
        TLI_INVARIANT(tli_arena_holds(arena));
        return (char *)piece + head;
    }
    return NULL;
}

static void tli_arena_release(void *user, void *ptr) {
    tli_arena *arena = (tli_arena *)user;
    tli_piece *freed = (tli_piece *)(void *)((char *)ptr - tli_piece_head()), *last = NULL;
    size_t at = 0;
    arena->used -= freed->bytes;
    freed->free_bytes = freed->bytes;
    while (at < arena->size) {
        tli_piece *piece = (tli_piece *)(void *)(tli_arena_start(arena) + at);
        at += piece->bytes;
        if (last && last->free_bytes && piece->free_bytes) {
            last->bytes += piece->bytes;
            last->free_bytes = last->bytes;
        } else {
            last = piece;
        }
    }
    TLI_INVARIANT(tli_arena_holds(arena));
}

TLI_IMPL tl_result tl_init_arena(tl_env *env, void *memory, size_t bytes) {
    size_t shift = (TLI_ARENA_ALIGN - (size_t)((uintptr_t)memory % TLI_ARENA_ALIGN)) % TLI_ARENA_ALIGN;
    size_t head = tli_round_up(sizeof(tli_arena), TLI_ARENA_ALIGN);
    tli_arena *arena;
    tli_piece *all;
    TL_ASSERT(env && memory);
    if (bytes < shift + head + 2 * tli_piece_head())
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_ARENA), TLI_RULE(BYTES_TOO_FEW_FOR_BOOKKEEPING));
    arena = (tli_arena *)(void *)((char *)memory + shift);
    arena->size = (bytes - shift - head) / TLI_ARENA_ALIGN * TLI_ARENA_ALIGN;
    arena->used = arena->peak = arena->reserved = 0;
    all = (tli_piece *)(void *)tli_arena_start(arena);
    all->bytes = all->free_bytes = arena->size;
    tli_zero(env, sizeof *env);
    env->alloc = tli_arena_alloc;
    env->release = tli_arena_release;
    env->user = arena;
    TLI_INVARIANT(tli_arena_holds(arena));
    return TL_OK;
}

TLI_IMPL void tl_measure_arena(const tl_env *env, size_t *used_bytes, size_t *peak_bytes) {
    const size_t head = tli_round_up(sizeof(tli_arena), TLI_ARENA_ALIGN);
    const tli_arena *arena;
    TL_ASSERT(env);
    arena = env->alloc == tli_arena_alloc ? (const tli_arena *)env->user : NULL;
    if (used_bytes) *used_bytes = arena ? head + arena->used : 0;
    if (peak_bytes) *peak_bytes = arena ? head + arena->peak : 0;
}

// -- random numbers --

TLI_IMPL uint64_t tl_mix_u64(uint64_t a, uint64_t b) {
    uint64_t z = a + (b + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

TLI_IMPL uint64_t tl_next_random(tl_random *random) {
    uint64_t value = tl_mix_u64(random->state, 0);
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    return value;
}

TLI_IMPL double tl_next_random_ratio(tl_random *random) {
    return (double)(tl_next_random(random) >> 11) * (1.0 / 9007199254740992.0);
}

TLI_IMPL uint64_t tl_next_random_below(tl_random *random, uint64_t limit) {
    uint64_t value, uneven;
    if (!limit) return 0;
    uneven = ((uint64_t)0 - limit) % limit;  // 2^64 mod limit: values below it would favour small remainders
    do value = tl_next_random(random); while (value < uneven);
    return value % limit;
}
#endif  // TL_STRATEGY_IMPLEMENTATION

