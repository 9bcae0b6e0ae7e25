#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// ============================================================================
// [10] BACKEND (implementation)
//
// This part: the codecs on the host, and the heap that places blocks in memory of the caller.
// Names with f16, bf16 and q8 belong to the codecs of tl_codec; q8 stores 32 values as one f32 scale and
// 32 bytes.
// ============================================================================

static const char *const tli_tier_names[] = { TL_TIERS(TLI_NAME) };

// -- codecs: integer arithmetic on the bits only, so that every backend and compiler gives the same --

#ifndef TL_ONLY_TABLES
static uint32_t tli_load_u32(const void *from) { uint32_t word; TLI_MEMCPY(&word, from, 4); return word; }
#endif

#ifndef TL_NO_CODECS
static uint16_t tli_load_u16(const void *from) { uint16_t half; TLI_MEMCPY(&half, from, 2); return half; }

// |x| = mantissa 2^exponent, where the mantissa has exactly 24 bits. x must be finite and not 0.
static int32_t tli_split_f32(uint32_t bits, uint32_t *mantissa) {
    int32_t exponent = (int32_t)(bits >> 23 & 255u) - 150;
    *mantissa = bits & 0x7FFFFFu;
    if (exponent > -150) { *mantissa |= 0x800000u; return exponent; }
    for (exponent = -149; !(*mantissa & 0x800000u); exponent--) *mantissa <<= 1;
    return exponent;
}

// value 2^exponent as f32 bits, rounded to nearest even; sticky: the exact value is a little larger.
// value must be in 2^24 .. 2^32-1.
static uint32_t tli_join_f32(uint32_t value, int32_t exponent, int sticky) {
    int32_t shift = 1, field;
    uint32_t bits;
    while (value >> shift >= 0x1000000u) shift++;
    field = exponent + shift + 150;
    if (field < 1) { shift += 1 - field; field = 1; }
    if (field > 254) return 0x7F7FFFFFu;
    bits = ((uint32_t)(field - 1) << 23) + tli_round_shift(value, shift, sticky);
    return bits < 0x7F800000u ? bits : 0x7F7FFFFFu;  // a finite value never becomes infinite
}

// largest / 127 as f32. floor(512 m / 127) has at least 26 bits, two more than the mantissa keeps, so it
// and the sticky bit are enough to round correctly.
static uint32_t tli_q8_scale(uint32_t largest) {
    uint32_t m, whole, rest;
    int32_t exponent;
    if (!largest) return 0;
    exponent = tli_split_f32(largest, &m);
    whole = (m << 7) / 127;
    rest = (m << 7) % 127 * 4;
    return tli_join_f32(whole * 4 + rest / 127, exponent - 9, rest % 127 != 0);
}

// x 127 / largest, rounded to nearest even. The product has 31 bits, so 32-bit integers are enough.
static int8_t tli_q8_of(uint32_t bits, uint32_t largest) {
    uint32_t size = bits & 0x7FFFFFFFu, mx, ml, whole, rest, value;
    int32_t shift;
    if (size > 0x7F800000u) return -128;
    if (size == 0x7F800000u) {
        value = 127;
    } else if (!size || !largest) {
        return 0;
    } else {
        shift = tli_split_f32(largest, &ml) - tli_split_f32(size, &mx);
        whole = mx * 127 / ml;
        rest = mx * 127 % ml * 2;
        value = tli_round_shift(whole * 2 + (rest >= ml), shift + 1, rest != ml && rest != 0);
    }
    return (int8_t)(bits >> 31 ? -(int32_t)value : (int32_t)value);
}

static uint32_t tli_f32_of_q8(int8_t value, uint32_t scale) {
    uint32_t size = (uint32_t)(value < 0 ? -(int32_t)value : (int32_t)value), m;
    uint32_t sign = value < 0 ? 0x80000000u : 0;
    int32_t exponent;
    if (value == -128) return 0x7FC00000u;
    if (!size || !(scale & 0x7FFFFFFFu)) return sign;
    exponent = tli_split_f32(scale & 0x7FFFFFFFu, &m);
    return sign | tli_join_f32(m * 2 * size, exponent - 1, 0);
}

// The i-th f32 of an array of `bytes` bytes; an incomplete last value is padded with zeroes.
static uint32_t tli_load_f32(const unsigned char *from, size_t bytes, size_t i) {
    uint32_t word = 0;
    if (bytes - 4 * i >= 4) return tli_load_u32(from + 4 * i);
    TLI_MEMCPY(&word, from + 4 * i, bytes - 4 * i);
    return word;
}

static void tli_compress_q8(unsigned char *to, const unsigned char *from, size_t bytes) {
    size_t count = bytes / 4 + (bytes % 4 != 0), first, i;
    for (first = 0; first < count; first += 32) {
        size_t end = count - first < 32 ? count : first + 32;
        uint32_t largest = 0, scale;
        for (i = first; i < end; i++) {
            uint32_t size = tli_load_f32(from, bytes, i) & 0x7FFFFFFFu;
            if (size < 0x7F800000u && size > largest) largest = size;
        }
        scale = tli_q8_scale(largest);
        TLI_MEMCPY(to, &scale, 4);
        to += 4;
        for (i = first; i < end; i++) *to++ = (unsigned char)tli_q8_of(tli_load_f32(from, bytes, i), largest);
    }
}

TLI_IMPL void tl_compress_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes) {
    const unsigned char *source = (const unsigned char *)from;
    unsigned char *target = (unsigned char *)to;
    size_t size = (size_t)bytes, count = size / 4 + (size % 4 != 0), i;
    if (codec <= TL_CODEC_NONE || codec >= TL_CODEC_COUNT) { tli_copy(to, from, size); return; }
    if (codec == TL_CODEC_Q8) { tli_compress_q8(target, source, size); return; }
    for (i = 0; i < count; i++) {
        uint32_t bits = tli_load_f32(source, size, i);
        uint16_t half = codec == TL_CODEC_F16 ? tli_f16_of(bits) : tli_bf16_of(bits);
        TLI_MEMCPY(target + 2 * i, &half, 2);
    }
}

TLI_IMPL void tl_expand_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes) {
    const unsigned char *source = (const unsigned char *)from;
    unsigned char *target = (unsigned char *)to;
    size_t size = (size_t)bytes, count = size / 4 + (size % 4 != 0), i;
    uint32_t word = 0;
    if (codec <= TL_CODEC_NONE || codec >= TL_CODEC_COUNT) { tli_copy(to, from, size); return; }
    for (i = 0; i < count; i++) {
        const unsigned char *block = source + i / 32 * 36;
        if (codec == TL_CODEC_F16) word = tli_f32_of_f16(tli_load_u16(source + 2 * i));
        else if (codec == TL_CODEC_BF16) word = tli_f32_of_bf16(tli_load_u16(source + 2 * i));
        else word = tli_f32_of_q8((int8_t)block[4 + i % 32], tli_load_u32(block));
        TLI_MEMCPY(target + 4 * i, &word, size - 4 * i < 4 ? size - 4 * i : 4);
    }
}
#endif  // TL_NO_CODECS

// 1 = tensors may be compressed; 0 lets compilers leave out the code that only these need.
#ifdef TL_NO_CODECS
#define TLI_CODECS 0
#else
#define TLI_CODECS 1
#endif

#if !defined(TL_NO_ONLINE) || (!defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION))
// Expand the bytes of a tensor that may be compressed; where codecs are left out, copy them.
static void tli_expand_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes) {
#ifndef TL_NO_CODECS
    tl_expand_bytes(codec, to, from, bytes);
#else
    (void)codec;
    tli_copy(to, from, (size_t)bytes);
#endif
}
#endif

// -- the heap: free lists by size class, neighbours joined when freed --
//
//     |taken|  free  |taken|taken|free|   extents, linked in address order;
//                                         each free one is also in the list of its size class

typedef enum tli_extent_state { TLI_EXTENT_UNUSED, TLI_EXTENT_FREE, TLI_EXTENT_TAKEN } tli_extent_state;

// A part of the heap, taken or free, or an unused record of the table.
typedef struct tli_extent {
    size_t   offset, bytes;
    int32_t  before, after;            // neighbours; -1 = none
    int32_t  free_before, free_after;  // links of its class's list; free_after also links unused records
    int32_t  state;                    // tli_extent_state
} tli_extent;

#define TLI_CLASS_COUNT 256  // four classes for every power of two

struct tl_heap {
    tl_env *env;
    size_t bytes, alignment, free_bytes;
    tli_extent *extents;
    int32_t extent_count, extent_capacity, free_extent;  // free_extent: first unused record + 1; 0 = none
    int32_t class_heads[TLI_CLASS_COUNT];  // first free extent + 1; 0 = none
    uint32_t class_bits[TLI_CLASS_COUNT / 32];  // 1 = the class has a free extent
};

#ifdef TLI_INVARIANTS
// An extent touches its neighbours in address order, or an end of the heap, and no two free ones touch.
static int tli_extent_holds(const tl_heap *heap, int32_t index) {
    const tli_extent *extent = &heap->extents[index], *before = NULL, *after = NULL;
    if (extent->before >= 0) before = &heap->extents[extent->before];
    if (extent->after >= 0) after = &heap->extents[extent->after];
    if (extent->state == TLI_EXTENT_UNUSED || !extent->bytes || extent->offset % heap->alignment) return 0;
    if (before && (before->after != index || before->offset + before->bytes != extent->offset)) return 0;
    if (after && (after->before != index || extent->offset + extent->bytes != after->offset)) return 0;
    if (!before && extent->offset) return 0;
    if (!after && extent->offset + extent->bytes != heap->bytes) return 0;
    if (extent->state != TLI_EXTENT_FREE) return 1;
    return !(before && before->state == TLI_EXTENT_FREE) && !(after && after->state == TLI_EXTENT_FREE);
}
#endif

static int32_t tli_class_of(uint64_t bytes) {
    int32_t high = tli_log2_u64(bytes);
    uint64_t quarter = high > 1 ? bytes >> (high - 2) & 3 : 0;
    return high * 4 + (int32_t)quarter;
}

#ifdef TLI_INVARIANTS
// A free extent is in the list of its class.
static int tli_class_holds(const tl_heap *heap, int32_t index) {
    const tli_extent *extent = &heap->extents[index];
    int32_t class_index = tli_class_of(extent->bytes);
    if (!(heap->class_bits[class_index >> 5] >> (class_index & 31) & 1)) return 0;
    if (extent->free_after >= 0 && heap->extents[extent->free_after].free_before != index) return 0;
    if (extent->free_before < 0) return heap->class_heads[class_index] == index + 1;
    return heap->extents[extent->free_before].free_after == index;
}

// Extents fill the heap in address order, disjoint, and free bytes add up. With many, that is looked at now and
// then: index says which one has changed.
static int tli_heap_holds(const tl_heap *heap, int32_t index) {
    size_t free_bytes = 0;
    int32_t at = 0, count = 0;
    size_t turn = (heap->free_bytes + heap->extents[index].offset) / heap->alignment;
    if (turn % ((size_t)heap->extent_count / 16 + 1)) return 1;
    for (; at >= 0; at = heap->extents[at].after) {
        if (++count > heap->extent_count || !tli_extent_holds(heap, at)) return 0;
        if (heap->extents[at].state != TLI_EXTENT_FREE) continue;
        if (!tli_class_holds(heap, at)) return 0;
        free_bytes += heap->extents[at].bytes;
    }
    return free_bytes == heap->free_bytes;
}
#endif

static void tli_unlink_extent(tl_heap *heap, int32_t index) {
    tli_extent *extent = &heap->extents[index];
    int32_t class_index = tli_class_of(extent->bytes);
    TLI_INVARIANT(tli_class_holds(heap, index));
    if (extent->free_after >= 0) heap->extents[extent->free_after].free_before = extent->free_before;
    if (extent->free_before >= 0) heap->extents[extent->free_before].free_after = extent->free_after;
    else heap->class_heads[class_index] = extent->free_after + 1;
    if (!heap->class_heads[class_index])
        heap->class_bits[class_index >> 5] &= ~((uint32_t)1 << (class_index & 31));
    extent->state = TLI_EXTENT_TAKEN;
    heap->free_bytes -= extent->bytes;
}

static void tli_link_extent(tl_heap *heap, int32_t index) {
    tli_extent *extent = &heap->extents[index];
    int32_t class_index = tli_class_of(extent->bytes);
    extent->free_before = -1;
    extent->free_after = heap->class_heads[class_index] - 1;
    if (extent->free_after >= 0) heap->extents[extent->free_after].free_before = index;
    heap->class_heads[class_index] = index + 1;
    heap->class_bits[class_index >> 5] |= (uint32_t)1 << (class_index & 31);
    extent->state = TLI_EXTENT_FREE;
    heap->free_bytes += extent->bytes;
    TLI_INVARIANT(tli_class_holds(heap, index) && heap->free_bytes <= heap->bytes);
}

// Find a free extent of at least so many bytes; -1 = there is none. The same sizes are often taken
// and freed again, so a few extents of the size's own class are tried first. Any extent of a higher
// class is large enough. The rest of the own class is searched only if there is none.
static int32_t tli_find_extent(const tl_heap *heap, size_t bytes) {
    int32_t own = tli_class_of(bytes), at = heap->class_heads[own] - 1, tries, word;
    for (tries = 0; at >= 0 && tries < 4; tries++, at = heap->extents[at].free_after)
        if (heap->extents[at].bytes >= bytes) return at;
    for (word = (own + 1) >> 5; word < TLI_CLASS_COUNT / 32; word++) {
        uint32_t bits = heap->class_bits[word];
        if (word == (own + 1) >> 5) bits &= ~(uint32_t)0 << ((own + 1) & 31);
        if (bits) return heap->class_heads[word * 32 + tli_log2_u64(bits & (0 - bits))] - 1;
    }
    for (; at >= 0; at = heap->extents[at].free_after)
        if (heap->extents[at].bytes >= bytes) return at;
    return -1;
}

static int32_t tli_add_extent(tl_heap *heap) {
    int32_t index = heap->free_extent - 1;
    if (index >= 0) {
        heap->free_extent = heap->extents[index].free_after + 1;
        return index;
    }
    if (!tli_grow(heap->env, (void **)&heap->extents, &heap->extent_capacity, heap->extent_count,
                  (int64_t)heap->extent_count + 1, sizeof *heap->extents)) return -1;
    TLI_INVARIANT(heap->extent_count < heap->extent_capacity);
    return heap->extent_count++;
}

// Take bytes and return the id of the block; 0 = no room, or no memory for its record.
static int32_t tli_take_heap_block(tl_heap *heap, size_t bytes) {
    int32_t index, rest;
    tli_extent *extent, *left;
    if (bytes > heap->bytes) return 0;
    bytes = (bytes + heap->alignment - 1) & ~(heap->alignment - 1);
    index = tli_find_extent(heap, bytes);
    if (index < 0) return 0;
    if (heap->extents[index].bytes == bytes) {
        tli_unlink_extent(heap, index);
        TLI_INVARIANT(tli_heap_holds(heap, index));
        return index + 1;
    }
    rest = tli_add_extent(heap);
    if (rest < 0) return 0;
    tli_unlink_extent(heap, index);
    extent = &heap->extents[index];
    left = &heap->extents[rest];
    left->offset = extent->offset + bytes;
    left->bytes = extent->bytes - bytes;
    left->before = index;
    left->after = extent->after;
    if (left->after >= 0) heap->extents[left->after].before = rest;
    extent->after = rest;
    extent->bytes = bytes;
    tli_link_extent(heap, rest);
    TLI_INVARIANT(tli_extent_holds(heap, index) && tli_extent_holds(heap, rest));
    TLI_INVARIANT(tli_heap_holds(heap, index));
    return index + 1;
}

// Join an extent with the one after it, whose record becomes unused.
static void tli_join_extent(tl_heap *heap, int32_t index) {
    tli_extent *extent = &heap->extents[index], *after = &heap->extents[extent->after];
    int32_t unused = extent->after;
    extent->bytes += after->bytes;
    extent->after = after->after;
    if (extent->after >= 0) heap->extents[extent->after].before = index;
    after->state = TLI_EXTENT_UNUSED;
    after->free_after = heap->free_extent - 1;
    heap->free_extent = unused + 1;
    TLI_INVARIANT(tli_extent_holds(heap, index) || heap->extents[index].state == TLI_EXTENT_TAKEN);
}

static void tli_give_heap_block(tl_heap *heap, int32_t block) {
    int32_t index = block - 1;
    int32_t before = heap->extents[index].before, after = heap->extents[index].after;
    TLI_INVARIANT(heap->extents[index].state == TLI_EXTENT_TAKEN);
    if (after >= 0 && heap->extents[after].state == TLI_EXTENT_FREE) {
        tli_unlink_extent(heap, after);
        tli_join_extent(heap, index);
    }
    if (before >= 0 && heap->extents[before].state == TLI_EXTENT_FREE) {
        tli_unlink_extent(heap, before);
        tli_join_extent(heap, before);
        index = before;
    }
    tli_link_extent(heap, index);
    TLI_INVARIANT(tli_extent_holds(heap, index));
    TLI_INVARIANT(tli_heap_holds(heap, index));
}

// Start with one free extent over all bytes, a multiple of the alignment; 0 = no memory for its record.
static int tli_open_heap(tl_env *env, size_t bytes, size_t alignment, tl_heap *heap) {
    int32_t first;
    heap->env = env;
    heap->bytes = bytes;
    heap->alignment = alignment;
    first = tli_add_extent(heap);
    if (first < 0) return 0;
    heap->extents[first].offset = 0;
    heap->extents[first].bytes = bytes;
    heap->extents[first].before = heap->extents[first].after = -1;
    tli_link_extent(heap, first);
    TLI_INVARIANT(tli_heap_holds(heap, first));
    return 1;
}

TLI_IMPL tl_result tl_init_heap(tl_env *env, size_t bytes, size_t alignment, tl_heap **heap) {
    const tli_function function = TLI_IN(INIT_HEAP);
    tl_heap *h;
    TL_ASSERT(heap);
    *heap = NULL;
    if (alignment & (alignment - 1))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(ALIGNMENT_NOT_POWER_OF_TWO));
    if (!alignment) alignment = 1;
    bytes &= ~(alignment - 1);
    if (!bytes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(BYTES_FEWER_THAN_ONE_ALIGNED_PIECE));
    h = (tl_heap *)tli_alloc_array(env, 1, sizeof *h);
    if (!h || !tli_open_heap(env, bytes, alignment, h)) {
        tli_release(env, h);
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_TABLE_OF_PIECES));
    }
    *heap = h;
    return TL_OK;
}

TLI_IMPL void tl_free_heap(tl_heap *heap) {
    tl_env *env;
    if (!heap) return;
    env = heap->env;
    tli_release(env, heap->extents);
    tli_release(env, heap);
}

TLI_IMPL tl_result tl_add_block(tl_heap *heap, size_t bytes, size_t *offset, int32_t *block) {
    TL_ASSERT(heap && offset && block);
    *offset = 0;
    *block = 0;
    if (!bytes)
        return tli_fail(heap->env, TL_ERROR_INVALID_ARG, TLI_IN(ADD_BLOCK), TLI_RULE(BYTES_MUST_BE_POSITIVE));
    *block = tli_take_heap_block(heap, bytes);
    if (!*block)
        return tli_fail(heap->env, TL_ERROR_NO_MEMORY, TLI_IN(ADD_BLOCK), TLI_RULE(BYTES_NO_PLACE_FOR_SO_MANY));
    *offset = heap->extents[*block - 1].offset;
    return TL_OK;
}

TLI_IMPL void tl_free_block(tl_heap *heap, int32_t block) {
    TL_ASSERT(heap);
    if (block > 0 && block <= heap->extent_count && heap->extents[block - 1].state == TLI_EXTENT_TAKEN)
        tli_give_heap_block(heap, block);
}

TLI_IMPL void tl_measure_heap(const tl_heap *heap, size_t *free_bytes, size_t *largest_bytes) {
    int32_t at = TLI_CLASS_COUNT - 1;
    size_t largest = 0;
    TL_ASSERT(heap);
    while (at > 0 && !heap->class_heads[at]) at--;
    for (at = heap->class_heads[at] - 1; at >= 0; at = heap->extents[at].free_after)
        if (heap->extents[at].bytes > largest) largest = heap->extents[at].bytes;
    if (free_bytes) *free_bytes = heap->free_bytes;
    if (largest_bytes) *largest_bytes = largest;
}
#endif  // TL_STRATEGY_IMPLEMENTATION

