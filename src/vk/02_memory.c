#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [2] MEMORY (implementation)
// ============================================================================

// The state of a backend, its chunks and blocks, and its batches. The words of this section:
//
//     chunk     a VkBuffer with its memory; blocks are pieces of it, an arena is all of it
//     place     bytes of a chunk: where a range lies
//     batch     a command buffer: a submit to the own queue, or a frame of the caller
//     serial    the number of a batch; batches finish in this order, and `passed` is the last that did
//     op        work that was enqueued and is not recorded yet
//     noted     of a command: kept until its batch was submitted, so that it can be recorded again
//     touch     an access that was recorded since the last barrier
//     promise   an access that `order` announced; the caller records it later
//     lost      bytes whose last write was in a batch that never ran
//     link      a queue for copies between the tiers
//     transfer  such a copy
//     away      bytes of a transfer that the queue has not waited for

#define TLI_VK_TOUCH_CAPACITY 128  // places in a set, and promises that are remembered
#define TLI_VK_OP_CAPACITY 128     // enqueued work that is not recorded yet
#define TLI_VK_REGION_CAPACITY 32  // copies in one command
#define TLI_VK_CHUNK_NONE (-1)
#define TLI_VK_SETS 64             // descriptor sets in a pool
#define TLI_VK_SET_BUFFERS 256     // descriptors in a pool
#define TLI_VK_KEPT_SETS 256       // most that a kernel keeps
#define TLI_VK_KEPT_WAYS 4         // entries of that table in which a set may stand
#define TLI_VK_BINDINGS 16         // most buffers of one kernel
#define TLI_VK_WRITES 1024         // places that a batch notes before its list grows
#define TLI_VK_SHADER_COPY_BYTES 65536  // smaller copies are always vkCmdCopyBuffer
#define TLI_VK_MOST_BATCHES 256    // to which the ring of batches grows
#define TLI_VK_TRANSFERS 16        // entries of the ring of transfers at first,
#define TLI_VK_MOST_TRANSFERS 1024 // and at most
#define TLI_VK_SENT_AT_ONCE 16     // most transfers in one call of vkQueueSubmit
#define TLI_VK_OWN_TIMES 2         // timestamp slots of the backend, after the caller's
#define TLI_VK_NOTED 2048          // words of noted commands in a batch before its list grows
#define TLI_VK_OPEN 1              // tli_vk.open: the command buffer is recording
#define TLI_VK_ENDED 2             // it is complete, but its submit failed: it will be tried again
#define TLI_VK_BROKEN 3            // its end failed: what it held is recorded again before it is submitted

// Bytes of the buffer of a chunk.
typedef struct tli_vk_place {
    int32_t  chunk;
    uint64_t at, bytes;
} tli_vk_place;

// A set of places.
typedef struct tli_vk_index {
    tli_vk_place places[TLI_VK_TOUCH_CAPACITY];  // [count] disjoint, in order
    int32_t count;
} tli_vk_index;

typedef struct tli_vk_accesses { tli_vk_index reads, writes; } tli_vk_accesses;

// An access that `order` announced for the commands that the caller records next.
typedef struct tli_vk_promise { tli_vk_place place; int32_t writes; uint64_t handle; } tli_vk_promise;

typedef enum tli_vk_chunk_kind {
    TLI_VK_CHUNK_SHARED,           // blocks are pieces of it
    TLI_VK_CHUNK_ARENA,            // one block is all of it, and it is freed with it
    TLI_VK_CHUNK_STAGING
} tli_vk_chunk_kind;

// A VkBuffer and its memory. Blocks are pieces of it. A buffer of the caller is one chunk, however often and in
// whatever parts it is added: accesses through different blocks of it then meet as those through one block do.
typedef struct tli_vk_chunk {
    VkBuffer       buffer;
    VkDeviceMemory memory;
    VkDeviceSize   memory_offset;
    void          *cookie;         // of the allocator's hook
    char          *mapped;         // NULL = not mapped
    tl_heap       *heap;           // of the pieces; NULL = no block is a piece of it
    uint64_t       bytes;
    uint64_t       memory_bytes;   // asked for in vkAllocateMemory
    uint64_t       last_use;       // serial of the latest work on it
    uint64_t       seen;           // imported: serial of the latest batch with a barrier for the caller's use
    VkMemoryPropertyFlags flags;
    VkPipelineStageFlags stages;   // imported: of the caller
    VkAccessFlags  access;
    int32_t        block_count;    // of staging: 1 = in use
    uint8_t        tier, alive, imported;
    uint8_t        kind;           // tli_vk_chunk_kind
    uint8_t        memory_heap;    // index of the heap that its memory is from
} tli_vk_chunk;

typedef struct tli_vk_block {
    uint64_t at;                   // in its chunk
    uint64_t bytes, reserved_bytes;
    uint64_t claimed_bytes, claim_count;
    uint64_t last_write, last_use; // serials of the latest work on it
    uint64_t writes;               // number of operations that wrote to it
    uint64_t account;              // that claimed first; 0 = none yet
    int32_t  chunk, piece;
    int32_t  map_count;
    uint32_t generation;           // upper half of its handle
    int32_t  next_free;            // slot + 1
    uint8_t  tier, alive;
} tli_vk_block;

// A queue for copies between the tiers.
typedef struct tli_vk_link {
    VkQueue     queue;
    VkSemaphore timeline;
    uint64_t    made, sent, passed;// values of the timeline: of the latest transfer, of the latest that was
                                   // handed over, of the latest that is known to have finished
} tli_vk_link;

// A copy between the tiers.
typedef struct tli_vk_transfer {
    VkCommandPool   pool;
    VkCommandBuffer commands;
    int32_t  link;
    uint64_t value;                // of the timeline of its link
    uint64_t after;                // serial of the batch that it waits for; 0 = none
    uint64_t other_value;          // of the other link's timeline that it waits for; 0 = none
    uint64_t serial;               // of the batch that it counts to
} tli_vk_transfer;

// A place that a transfer reads or writes.
typedef struct tli_vk_away {
    tli_vk_place place;
    uint64_t value;                // of the transfer
    int32_t  link, writes;
} tli_vk_away;

// The built-in shaders: src/vk/words has the words of each.
#define TLI_VK_SHADERS(X) \
    X(TLI_VK_SHADER_COPY,             copy)             /* to[] = from[], 4 x uvec4 an invocation */ \
    X(TLI_VK_SHADER_COPY_UINT,        copy_uint)        /* the same, a word an invocation: any length */ \
    X(TLI_VK_SHADER_FILL,             fill)             /* to[] = word */ \
    X(TLI_VK_SHADER_TO_F16,           to_f16)           /* f32 -> f16 */ \
    X(TLI_VK_SHADER_FROM_F16,         from_f16)         /* f16 -> f32 */ \
    X(TLI_VK_SHADER_TO_BF16,          to_bf16)          /* f32 -> bf16 */ \
    X(TLI_VK_SHADER_FROM_BF16,        from_bf16)        /* bf16 -> f32 */ \
    X(TLI_VK_SHADER_TO_Q8,            to_q8)            /* f32 -> blocks of 32 with a scale */ \
    X(TLI_VK_SHADER_FROM_Q8,          from_q8)          /* blocks of 32 with a scale -> f32 */ \
    X(TLI_VK_SHADER_MIN_MAX,          min_max)          /* extremes, and how many are finite */ \
    X(TLI_VK_SHADER_ADD,              add)              /* to[] += from[], f32 */ \
    X(TLI_VK_SHADER_CHECKSUM,         checksum)         /* sum of mixed words: equal where the bytes are */ \
    X(TLI_VK_SHADER_QUANTIZE,         quantize)         /* f32 -> integers of 8 or 16 bits */ \
    X(TLI_VK_SHADER_DEQUANTIZE,       dequantize)       /* integers of 8 or 16 bits -> f32 */ \
    X(TLI_VK_SHADER_MIN_MAX_CHANNELS, min_max_channels) /* min_max of each channel */

#define TLI_VK_SHADER_ID(id, name) id,
typedef enum tli_vk_shader { TLI_VK_SHADERS(TLI_VK_SHADER_ID) TLI_VK_SHADER_COUNT } tli_vk_shader;
#undef TLI_VK_SHADER_ID

typedef enum tli_vk_op_kind { TLI_VK_OP_COPY, TLI_VK_OP_FILL, TLI_VK_OP_SHADER } tli_vk_op_kind;

typedef struct tli_vk_op {
    tli_vk_op_kind kind;
    tli_vk_shader   shader;
    tli_vk_place   to, from;       // lengths as the caller gave them, not rounded up
    uint32_t       word;           // fill: the value; checksum: index of the first word; integers: bytes of one
    uint32_t       channel_count, inner_count;  // 0 = the shader knows no channels
    uint64_t       first;          // index in the whole operation of the first f32 element of these places
    tli_vk_place   quantizations;  // parameters of the channels; bytes 0 = none
} tli_vk_op;

// A pool of descriptor sets for one batch at a time; it is reset with the batch.
typedef struct tli_vk_sets {
    VkDescriptorPool pool;
    uint32_t sets_left, buffers_left;
} tli_vk_sets;

typedef enum tli_vk_command_kind {
    TLI_VK_COMMAND_BARRIER,
    TLI_VK_COMMAND_TIME,
    TLI_VK_COMMAND_COPY,
    TLI_VK_COMMAND_FILL,
    TLI_VK_COMMAND_DISPATCH
} tli_vk_command_kind;

// A command that the backend records for itself, as it is noted; `data` of that many bytes follows it.
typedef struct tli_vk_command {
    tli_vk_command_kind kind;
    uint32_t count;                // regions of a copy; slot of a time
    uint64_t data_bytes;           // regions, push constants
    VkBuffer to, from;
    VkDeviceSize at, bytes;        // fill
    const tl_vk_kernel *kernel;
    VkDescriptorSet set;
    VkPipelineStageFlags stages[2];// before and after a barrier
    VkAccessFlags access[2];
    uint32_t groups[3];
    uint32_t word;                 // fill
} tli_vk_command;

// One command buffer: a submit to the own queue, or a frame of the caller.
typedef struct tli_vk_batch {
    VkCommandPool   pool;
    VkCommandBuffer commands;
    VkFence         fence;         // where there is no timeline
    uint64_t        waits_for[2];  // values of the links' timelines that it waits for; 0 = none
    uint64_t        serial;        // 0 = unused
    uint64_t        dropped;       // serial of the latest frame in this entry that was dropped
    tli_vk_sets    *sets;
    int32_t         set_count, set_capacity, set_at;
    tli_vk_place   *writes;        // [write_count] places it writes: lost if it never runs
    int32_t         write_count, write_capacity;
    uint64_t       *noted;         // [noted_count] words: commands and their data; with a queue only
    int32_t         noted_count, noted_capacity;
    int32_t         has_others;    // 1 = also commands that are not noted: the caller's own
    int32_t         known_count, known_writes;  // noted words and writes before those
} tli_vk_batch;

// A piece of the staging, or a chunk of its own where that is too small. Slots become free in any order.
typedef struct tli_vk_slot {
    uint64_t serial;               // free once this batch has passed; UINT64_MAX = mapped, or a read is pending
    int32_t  chunk;
    int32_t  piece;                // 0 = a chunk of its own, which is kept for the next such slot
    int32_t  next_free;            // slot + 1
    int32_t  is_used;
} tli_vk_slot;

// A mapped range; or in record mode a read that no map has fetched yet.
typedef struct tli_vk_mapping {
    tl_range     range;
    tli_vk_place place;            // of the range
    tli_vk_place staged;           // chunk TLI_VK_CHUNK_NONE = mapped in place
    void        *host;
    uint64_t     serial;           // of the copy into staging
    uint64_t     writes;           // writes of the block when that copy was enqueued; UINT64_MAX = outdated
    int32_t      slot;             // of staging
    int32_t      is_pending;       // 1 = such a read
    int32_t      is_bounced;       // 1 = host is memory of the env, moved through staging in pieces
    uint64_t     asked;            // pending: serial when it was asked for last
    tl_map_mode  mode;
} tli_vk_mapping;

// A descriptor set that is kept, for the places that were bound by it last.
typedef struct tli_vk_kept_set {
    VkDescriptorSet set;           // VK_NULL_HANDLE = not made yet
    uint64_t hash;                 // of the places
    uint64_t last_use;             // serial of a batch: the set is not written before it has passed
    uint64_t destroyed_count;      // chunks destroyed before it was written: its buffers are those of today
} tli_vk_kept_set;

// The sets that a kernel keeps, a table by hash.
typedef struct tli_vk_kept {
    VkDescriptorPool pool;
    tli_vk_kept_set *sets;         // [TLI_VK_KEPT_SETS]; NULL = none was needed yet, or there is no memory
    tli_vk_place    *places;       // [TLI_VK_KEPT_SETS * buffer_count]
} tli_vk_kept;

struct tl_vk_kernel {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    int32_t  buffer_count;
    uint32_t push_bytes;
    tli_vk_kept *kept;
};

// What a run or a manager holds.
typedef struct tli_vk_account {
    tl_account_counters counters;
    uint64_t limit_bytes[TL_TIER_COUNT];
    uint32_t generation;              // upper half of its handle
    int32_t  next_free;               // next unused slot + 1; 0 = none
    int32_t  is_open;
} tli_vk_account;

typedef struct tli_vk {
    tl_env *env;
    tl_env quiet;                     // env without a log, for what may fail inside a call that succeeds
    tl_vk_backend_desc desc;          // defaults filled in
    tli_vk_calls vk;
    VkDevice device;
    const VkAllocationCallbacks *callbacks;
    VkPhysicalDeviceLimits device_limits;
    VkPhysicalDeviceMemoryProperties memory;
    uint64_t most_allocation_bytes;
    uint64_t granularity, overhead;   // of the memory of a buffer
    uint64_t alignment, range_bytes;  // range_bytes: most of one descriptor; longer operations are split
    uint32_t time_bits;
    int32_t  records, has_budget, lost;
    int32_t  grows;                   // 1 = the ring of batches becomes larger where it is full

    tl_backend_counters counters;
    tl_vk_counters calls;
    tli_vk_chunk *chunks;
    int32_t chunk_count, chunk_capacity;
    uint64_t destroyed_count;         // chunks destroyed so far
    int32_t freed_arena_count;        // arenas whose block was freed and whose memory was not yet
    tli_vk_block *blocks;
    int32_t block_count, block_capacity, free_block;  // slot + 1
    tli_vk_account *accounts;
    int32_t account_count, account_capacity, free_account, open_account_count;  // free_account: slot + 1

    tli_vk_batch *batches;            // [batch_count] ring by serial
    uint64_t serial;                  // of the batch that takes work now, or will
    uint64_t computed;                // all batches up to this serial have finished
    uint64_t passed;                  // and the transfers that count to them
    int32_t  open;                    // TLI_VK_OPEN, TLI_VK_ENDED or TLI_VK_BROKEN; 0 = it was not begun yet
    int32_t  has_work;                // 1 = something was enqueued or recorded since the last submit
    VkSemaphore timeline;
    tli_vk_link links[2];             // [link_count] from the device tier, to it; or one for both
    int32_t  link_count;
    tli_vk_transfer *transfers;       // [transfer_capacity] ring by number
    int32_t  transfer_capacity;
    uint64_t transfer_made, transfer_sent, transfer_done;  // numbers of the latest ones
    int32_t  owes_batch;              // 1 = transfers count to the open batch: it is submitted, though empty
    tli_vk_away *away;                // [away_count] places that the queue has not waited for
    int32_t  away_count, away_capacity;

    tli_vk_op ops[TLI_VK_OP_CAPACITY];
    int32_t op_count;
    tli_vk_accesses touches;          // since the last barrier
    tli_vk_accesses group;            // of operations that share the next one
    int32_t all_touched;              // 1 = touches are incomplete: the next access needs a barrier
    tli_vk_promise promises[TLI_VK_TOUCH_CAPACITY];  // ring of the latest that `order` announced
    uint64_t promise_count, early_count;  // early: how many of the latest came before a frame was open
    uint64_t kept_count;              // promises whose commands the caller has recorded
    VkPipelineStageFlags foreign_stages;  // of the caller's own commands, for the next barrier
    VkAccessFlags foreign_access;

    int32_t  staging;                 // chunk
    uint64_t staging_size;
    tl_heap *staging_heap;            // of the slots in it
    tli_vk_slot *all_slots;           // [slot_end]
    int32_t  slot_count, slot_end, slot_capacity, free_slot;  // slot_count: in use; free_slot: slot + 1
    void    *bounce;                  // memory of the env for a map larger than the staging, kept for the next
    uint64_t bounce_bytes;
    int32_t  bounce_is_used;
    tli_vk_mapping *mappings;
    int32_t  mapping_count, mapping_capacity;
    tli_vk_place *lost_places;        // written by frames that were dropped
    int32_t  lost_count, lost_capacity;

    tl_vk_kernel *shaders[TLI_VK_SHADER_COUNT];
    int32_t kernel_count;             // alive, shaders of [5] included
    tli_vk_place placeholder;         // four bytes behind the staging, bound where a range is empty
    VkQueryPool times;
    uint64_t *time_serials;           // [time_count + TLI_VK_OWN_TIMES] batch of each slot; 0 = none
    uint64_t *time_numbers;           // [time_count + TLI_VK_OWN_TIMES] how many times were written before it
    uint64_t time_count;              // times written so far
    uint64_t read_number, read_ticks; // of the time that was read last; ticks 0 = none yet
} tli_vk;

static tli_vk *tli_vk_self(const tl_backend *backend) { return (tli_vk *)backend->self; }

static tl_result tli_vk_fail(tli_vk *b, tl_result code, const char *function, const char *why) {
    return tl_record_error(b->env, code, function, why);
}

// Record that a call of Vulkan failed. A lost device stays lost.
static tl_result tli_vk_fail_result(tli_vk *b, const char *function, const char *call, VkResult result) {
    if (result == VK_ERROR_DEVICE_LOST) b->lost = 1;
    return tli_vk_fail_call(b->env, function, call, result);
}

static tl_result tli_vk_fail_lost(tli_vk *b, const char *function) {
    return tli_vk_fail(b, TL_ERROR_DEVICE_LOST, function, "the device was lost");
}

static uint64_t tli_vk_align(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

static uint64_t tli_vk_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Make room for one more element, doubling the capacity; 0 = no memory.
static int tli_vk_grow(tli_vk *b, void *array, int32_t *capacity, int32_t count, size_t size) {
    void *old, *grown;
    int32_t larger = *capacity ? *capacity * 2 : 16;
    if (count < *capacity) return 1;
    if (*capacity > INT32_MAX / 4) return 0;
    grown = tl_add_memory(b->env, (size_t)larger * size);
    if (!grown) return 0;
    b->calls.host_alloc_count++;
    memcpy(&old, array, sizeof old);  // array points to a pointer whose type is not known here
    if (count) memcpy(grown, old, (size_t)count * size);
    tl_free_memory(b->env, old);
    memcpy(array, &grown, sizeof grown);
    *capacity = larger;
    return 1;
}

// -- chunks --

static VkMappedMemoryRange tli_vk_mapped_range(const tli_vk *b, const tli_vk_chunk *chunk, uint64_t at,
                                               uint64_t bytes) {
    uint64_t atom = b->device_limits.nonCoherentAtomSize, from = chunk->memory_offset + at;
    uint64_t end = tli_vk_align(from + bytes, atom);
    VkMappedMemoryRange range;
    memset(&range, 0, sizeof range);
    range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
    range.memory = chunk->memory;
    range.offset = from / atom * atom;
    range.size = end - range.offset;
    return range;  // inside the memory, whose size is a multiple of the atom
}

// Make what the host wrote visible to the device; the next function does the reverse.
static VkResult tli_vk_flush_host(tli_vk *b, const tli_vk_place *place) {
    const tli_vk_chunk *chunk = &b->chunks[place->chunk];
    VkMappedMemoryRange range = tli_vk_mapped_range(b, chunk, place->at, place->bytes);
    if (chunk->flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) return VK_SUCCESS;
    return (b->vk.vkFlushMappedMemoryRanges)(b->device, 1, &range);
}

static VkResult tli_vk_invalidate_host(tli_vk *b, const tli_vk_place *place) {
    const tli_vk_chunk *chunk = &b->chunks[place->chunk];
    VkMappedMemoryRange range = tli_vk_mapped_range(b, chunk, place->at, place->bytes);
    if (chunk->flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) return VK_SUCCESS;
    return (b->vk.vkInvalidateMappedMemoryRanges)(b->device, 1, &range);
}

// Rate how well a memory type serves a tier; 0 = not at all. Host-visible device-local memory rates lower,
// as it is a small window on many machines. Cached host memory rates higher, as the host reads it many
// times faster.
static int32_t tli_vk_rate_type(const tli_vk *b, tl_tier tier, uint32_t index) {
    VkMemoryPropertyFlags flags = b->memory.memoryTypes[index].propertyFlags;
    int visible = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
    int local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
    int cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
    int coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
    if (flags & (VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT)) return 0;
    if (tier == TL_TIER_DEVICE) return 1 + 8 * local + 4 * !visible + 2 * cached + coherent;
    return visible ? 1 + 8 * cached + 4 * !local + coherent : 0;
}

// Whether types of device-local memory are among the allowed ones.
static int tli_vk_has_local(const tli_vk *b, uint32_t allowed) {
    uint32_t i;
    for (i = 0; i < b->memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) && tli_vk_rate_type(b, TL_TIER_DEVICE, i) &&
            (b->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            return 1;
    return 0;
}

// Whether the device tier may only be device-local.
static int tli_vk_needs_local(const tli_vk *b, tl_tier tier, uint32_t allowed) {
    return tier == TL_TIER_DEVICE && !b->desc.allow_host_memory && tli_vk_has_local(b, allowed);
}

// Whether a type is host-visible device-local memory while the tier has a type of its own kind: then it
// is not used even as a last resort.
static int tli_vk_is_window(const tli_vk *b, tl_tier tier, uint32_t allowed, uint32_t index) {
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, both = local | visible;
    uint32_t i;
    if ((b->memory.memoryTypes[index].propertyFlags & both) != both) return 0;
    for (i = 0; i < b->memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) && tli_vk_rate_type(b, tier, i) &&
            (b->memory.memoryTypes[i].propertyFlags & both) == (tier == TL_TIER_DEVICE ? local : visible))
            return 1;
    return 0;
}

// The type to try after `last` (-1 = first): the best allowed one with a lower rating, or with the same
// rating and a higher index. -1 = none is left.
static int32_t tli_vk_next_type(const tli_vk *b, tl_tier tier, uint32_t allowed, int32_t last) {
    int32_t best = -1, best_rate = 0, limit = last < 0 ? INT32_MAX : tli_vk_rate_type(b, tier, (uint32_t)last);
    int needs_local = tli_vk_needs_local(b, tier, allowed);
    uint32_t i;
    for (i = 0; i < b->memory.memoryTypeCount; i++) {
        int32_t rate = tli_vk_rate_type(b, tier, i);
        if (!(allowed >> i & 1) || !rate || rate <= best_rate) continue;
        if (needs_local && !(b->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            continue;
        if (tli_vk_is_window(b, tier, allowed, i)) continue;
        if (rate > limit || (rate == limit && (int32_t)i <= last)) continue;
        best = (int32_t)i;
        best_rate = rate;
    }
    return best;
}

// Add the memory of a chunk to the counters, or take it from them.
static void tli_vk_count_memory(tli_vk *b, const tli_vk_chunk *chunk, int sign) {
    uint64_t bytes = sign > 0 ? chunk->memory_bytes : 0 - chunk->memory_bytes;  // sums wrap back
    b->calls.memory_bytes += bytes;
    b->calls.heap_bytes[chunk->memory_heap] += bytes;
    b->calls.chunk_count += sign > 0 ? 1 : UINT64_MAX;
    if (chunk->kind == TLI_VK_CHUNK_ARENA) b->calls.arena_bytes += bytes;
    if (chunk->kind == TLI_VK_CHUNK_STAGING) b->calls.staging_bytes += bytes;
    if (chunk->tier == TL_TIER_DEVICE && !(chunk->flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
        b->calls.outside_bytes += bytes;
}

// Forget the transfers of a chunk that is destroyed: the next chunk with its number is another.
static void tli_vk_forget_away(tli_vk *b, const tli_vk_chunk *chunk) {
    int32_t i;
    for (i = b->away_count - 1; i >= 0; i--)
        if (b->chunks[b->away[i].place.chunk].buffer == chunk->buffer) b->away[i] = b->away[--b->away_count];
}

static void tli_vk_destroy_chunk(tli_vk *b, tli_vk_chunk *chunk) {
    tli_vk_forget_away(b, chunk);
    b->destroyed_count++;
    if (!chunk->imported) {
        if (chunk->buffer) (b->vk.vkDestroyBuffer)(b->device, chunk->buffer, b->callbacks);
        if (chunk->memory && b->desc.hooks.release) {
            (b->desc.hooks.release)(b->desc.hooks.user, chunk->cookie);
        } else if (chunk->memory) {
            if (chunk->mapped) (b->vk.vkUnmapMemory)(b->device, chunk->memory);
            (b->vk.vkFreeMemory)(b->device, chunk->memory, b->callbacks);
        }
        if (chunk->memory) tli_vk_count_memory(b, chunk, -1);
        tl_free_heap(chunk->heap);
    }
    memset(chunk, 0, sizeof *chunk);
}

// Ask the allocator of the caller once.
static VkResult tli_vk_ask_hook(tli_vk *b, tl_tier tier, const VkMemoryRequirements *needs,
                                VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred,
                                tli_vk_chunk *chunk) {
    void *mapped = NULL;
    uint32_t type = 0;
    VkResult result = (b->desc.hooks.allocate)(b->desc.hooks.user, needs, required, preferred, &chunk->memory,
                                             &chunk->memory_offset, &type, &mapped, &chunk->cookie);
    if (result) {
        chunk->memory = VK_NULL_HANDLE;
        return result;
    }
    chunk->mapped = (char *)mapped;
    chunk->memory_bytes = needs->size;
    chunk->flags = b->memory.memoryTypes[type % VK_MAX_MEMORY_TYPES].propertyFlags;
    chunk->memory_heap = (uint8_t)b->memory.memoryTypes[type % VK_MAX_MEMORY_TYPES].heapIndex;
    return tier == TL_TIER_HOST && !mapped ? VK_ERROR_MEMORY_MAP_FAILED : VK_SUCCESS;
}

// Allocate by the caller's allocator. For the device tier it is asked for memory like that of the best type;
// where that is used up, like that of the next one. Size and alignment are rounded up to nonCoherentAtomSize,
// so that whole atoms can be flushed.
static VkResult tli_vk_allocate_hooked(tli_vk *b, tl_tier tier, const VkMemoryRequirements *requirements,
                                       tli_vk_chunk *chunk) {
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    VkMemoryPropertyFlags asked = ~(VkMemoryPropertyFlags)0;
    VkMemoryRequirements needs = *requirements;
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    int32_t type = -1;
    if (needs.alignment < b->device_limits.nonCoherentAtomSize)
        needs.alignment = b->device_limits.nonCoherentAtomSize;
    needs.size = tli_vk_align(needs.size, b->device_limits.nonCoherentAtomSize);
    if (tier == TL_TIER_HOST)
        return tli_vk_ask_hook(b, tier, &needs, visible, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, chunk);
    while (result == VK_ERROR_OUT_OF_DEVICE_MEMORY &&
           (type = tli_vk_next_type(b, tier, needs.memoryTypeBits, type)) >= 0) {
        VkMemoryPropertyFlags required = b->memory.memoryTypes[type].propertyFlags & (local | visible);
        if (required == asked) continue;  // of the same kind as the type before it
        asked = required;
        result = tli_vk_ask_hook(b, tier, &needs, required, local, chunk);
    }
    return result;
}

static VkResult tli_vk_allocate_typed(tli_vk *b, tl_tier tier, const VkMemoryRequirements *needs,
                                      tli_vk_chunk *chunk) {
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    VkMemoryAllocateInfo info;
    int32_t type = -1;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = tli_vk_align(needs->size, b->device_limits.nonCoherentAtomSize);
    while ((type = tli_vk_next_type(b, tier, needs->memoryTypeBits, type)) >= 0) {
        void *mapped = NULL;
        info.memoryTypeIndex = (uint32_t)type;
        result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
        if (info.allocationSize > b->memory.memoryHeaps[b->memory.memoryTypes[type].heapIndex].size) continue;
        result = (b->vk.vkAllocateMemory)(b->device, &info, b->callbacks, &chunk->memory);
        if (result) {
            chunk->memory = VK_NULL_HANDLE;
            if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY) continue;  // try another heap
            return result;
        }
        chunk->memory_bytes = info.allocationSize;
        chunk->flags = b->memory.memoryTypes[type].propertyFlags;
        chunk->memory_heap = (uint8_t)b->memory.memoryTypes[type].heapIndex;
        if (!(chunk->flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) return VK_SUCCESS;
        result = (b->vk.vkMapMemory)(b->device, chunk->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
        chunk->mapped = (char *)mapped;
        if (result && tier == TL_TIER_DEVICE) result = VK_SUCCESS;  // it is mapped through staging instead
        return result;
    }
    return result;
}

// Create a buffer of this length, without memory. With links of another family it belongs to both: handing it
// over and back would make kernels wait that only read what is copied.
static VkResult tli_vk_create_buffer(tli_vk *b, uint64_t bytes, VkBuffer *buffer, VkMemoryRequirements *needs) {
    const uint32_t families[2] = { b->desc.device.queue_family, b->desc.device.transfer_family };
    VkBufferCreateInfo info;
    VkResult result;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    if (b->link_count && families[0] != families[1]) {
        info.sharingMode = VK_SHARING_MODE_CONCURRENT;
        info.queueFamilyIndexCount = 2;
        info.pQueueFamilyIndices = families;
    }
    result = (b->vk.vkCreateBuffer)(b->device, &info, b->callbacks, buffer);
    if (result) *buffer = VK_NULL_HANDLE;
    else (b->vk.vkGetBufferMemoryRequirements)(b->device, *buffer, needs);
    return result;
}

// Create a buffer of this length with memory of its own.
static VkResult tli_vk_create_chunk(tli_vk *b, tl_tier tier, tli_vk_chunk_kind kind, uint64_t bytes,
                                    tli_vk_chunk *chunk) {
    VkMemoryRequirements needs;
    VkResult result;
    memset(chunk, 0, sizeof *chunk);
    result = tli_vk_create_buffer(b, bytes, &chunk->buffer, &needs);
    if (result) return result;
    b->calls.memory_count++;
    result = b->desc.hooks.allocate ? tli_vk_allocate_hooked(b, tier, &needs, chunk)
                                    : tli_vk_allocate_typed(b, tier, &needs, chunk);
    chunk->bytes = bytes;
    chunk->tier = (uint8_t)tier;
    chunk->kind = (uint8_t)kind;
    if (chunk->memory) tli_vk_count_memory(b, chunk, 1);
    if (!result)
        result = (b->vk.vkBindBufferMemory)(b->device, chunk->buffer, chunk->memory, chunk->memory_offset);
    if (result) tli_vk_destroy_chunk(b, chunk);
    return result;
}

static int tli_vk_is_empty(const tli_vk_chunk *chunk) {
    return chunk->alive && !chunk->imported && !chunk->block_count;
}

// Free the memory of arenas whose blocks were freed, once no work uses it.
static void tli_vk_drop_arenas(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->chunk_count && b->freed_arena_count; i++) {
        tli_vk_chunk *chunk = &b->chunks[i];
        if (!tli_vk_is_empty(chunk) || chunk->kind != TLI_VK_CHUNK_ARENA) continue;
        if (chunk->last_use > b->passed && !b->lost) continue;
        tli_vk_destroy_chunk(b, chunk);
        b->freed_arena_count--;
    }
}

// Free empty chunks that no work uses, but keep the first ones up to keep_bytes. Returns how many were freed.
static int tli_vk_drop_chunks(tli_vk *b, uint64_t keep_bytes) {
    uint64_t kept = 0;
    int32_t i, dropped = b->freed_arena_count;
    tli_vk_drop_arenas(b);
    dropped -= b->freed_arena_count;
    for (i = 0; i < b->chunk_count; i++) {
        tli_vk_chunk *chunk = &b->chunks[i];
        if (!tli_vk_is_empty(chunk) || chunk->kind == TLI_VK_CHUNK_ARENA) continue;
        if (kept + chunk->bytes <= keep_bytes) { kept += chunk->bytes; continue; }
        if (chunk->last_use > b->passed && !b->lost) continue;
        tli_vk_destroy_chunk(b, chunk);
        dropped++;
    }
    return dropped;
}

// The index of an unused entry in the table of chunks; TLI_VK_CHUNK_NONE where there is no memory for one.
static int32_t tli_vk_add_record(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->chunk_count; i++) {
        const tli_vk_chunk *chunk = &b->chunks[i];
        if (!chunk->alive || (chunk->imported && !chunk->block_count && chunk->last_use <= b->passed)) return i;
    }
    if (!tli_vk_grow(b, &b->chunks, &b->chunk_capacity, b->chunk_count, sizeof *b->chunks))
        return TLI_VK_CHUNK_NONE;
    memset(&b->chunks[b->chunk_count], 0, sizeof *b->chunks);
    return b->chunk_count++;
}

static tl_result tli_vk_reach(tli_vk *b, uint64_t serial, const char *function);
static tl_result tli_vk_look(tli_vk *b, const char *function);

// Wait for the work that keeps empty chunks alive and free them. Returns how many were freed.
static int tli_vk_drop_busy_chunks(tli_vk *b, const char *function) {
    int32_t i, busy = 0;
    for (i = 0; i < b->chunk_count; i++)
        busy |= tli_vk_is_empty(&b->chunks[i]);
    if (!busy || b->records) return 0;
    if (tli_vk_reach(b, b->serial, function) || tli_vk_reach(b, b->serial - 1, function)) return 0;
    return tli_vk_drop_chunks(b, 0);
}

// Record that no single allocation may be of so many bytes.
static tl_result tli_vk_fail_largest(tli_vk *b, uint64_t bytes, const char *function) {
    const char *parts[3];
    char digits[2][24];
    parts[0] = tli_vk_print_u64(bytes, digits[0]);
    parts[1] = " bytes: more than the device allocates at once, maxMemoryAllocationSize: ";
    parts[2] = tli_vk_print_u64(b->most_allocation_bytes, digits[1]);
    return tli_vk_fail_parts(b->env, TL_ERROR_NO_MEMORY, function, parts, 3);
}

// Record that there is no memory for so many bytes.
static tl_result tli_vk_fail_memory(tli_vk *b, tl_tier tier, uint64_t bytes, VkResult result,
                                    const char *function) {
    int is_local = result == VK_ERROR_OUT_OF_DEVICE_MEMORY && tli_vk_needs_local(b, tier, ~(uint32_t)0);
    const char *parts[3];
    char digits[24];
    parts[0] = tli_vk_print_u64(bytes, digits);
    parts[1] = " bytes: memory for a chunk: ";
    parts[2] = is_local ? "device-local memory is used up, and allow_host_memory is not set"
                        : tli_vk_explain(result);
    return tli_vk_fail_parts(b->env, tli_vk_translate(result), function, parts, 3);
}

// Add a chunk: for sharing one of the usual size, which is halved while the driver is out of memory, but not
// below `bytes`.
static tl_result tli_vk_add_chunk(tli_vk *b, tl_tier tier, tli_vk_chunk_kind kind, uint64_t bytes,
                                  const char *function, int32_t *index) {
    uint64_t usual = kind == TLI_VK_CHUNK_SHARED ? b->desc.chunk_bytes : 0;
    uint64_t size = bytes > usual ? bytes : usual;
    tli_vk_chunk chunk;
    VkResult result;
    int32_t at;
    *index = TLI_VK_CHUNK_NONE;
    if (bytes > b->most_allocation_bytes || bytes > SIZE_MAX / 4)
        return tli_vk_fail_largest(b, bytes, function);
    size = tli_vk_least(size, b->most_allocation_bytes / b->alignment * b->alignment);
    if (size < bytes) size = bytes;
    at = tli_vk_add_record(b);
    if (at == TLI_VK_CHUNK_NONE)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the table of chunks");
    for (;;) {
        result = tli_vk_create_chunk(b, tier, kind, size, &chunk);
        if (tli_vk_translate(result) != TL_ERROR_NO_MEMORY) break;
        if (tli_vk_drop_chunks(b, 0)) continue;
        if (size == bytes) {
            if (tli_vk_drop_busy_chunks(b, function)) continue;
            break;
        }
        size = tli_vk_align(size / 2 > bytes ? size / 2 : bytes, b->alignment);
    }
    if (result && b->lost) return tli_vk_fail_lost(b, function);
    if (result == VK_ERROR_DEVICE_LOST) b->lost = 1;
    if (result) return tli_vk_fail_memory(b, tier, bytes, result, function);
    if (kind == TLI_VK_CHUNK_SHARED &&
        tl_init_heap(&b->quiet, (size_t)size, (size_t)b->alignment, &chunk.heap)) {
        tli_vk_destroy_chunk(b, &chunk);
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the heap of a chunk");
    }
    b->calls.host_alloc_count += kind == TLI_VK_CHUNK_SHARED;
    chunk.alive = 1;
    b->chunks[at] = chunk;
    *index = at;
    return TL_OK;
}

// -- blocks --

static int tli_vk_is_block(const tli_vk *b, uint64_t handle) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    return (handle & 0xFFFFFFFFu) && slot < (uint64_t)b->block_count && b->blocks[slot].alive &&
           b->blocks[slot].generation == handle >> 32;
}

static tli_vk_block *tli_vk_find_block(tli_vk *b, uint64_t handle, const char *function, tl_result *result) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    tli_vk_block *block;
    if (!(handle & 0xFFFFFFFFu) || slot >= (uint64_t)b->block_count) {
        *result = tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "block: not a handle of this backend");
        return NULL;
    }
    block = &b->blocks[slot];
    if (!tli_vk_is_block(b, handle)) {
        *result = tli_vk_fail(b, TL_ERROR_STALE, function,
                              "block: the handle is of a freed block or of another backend");
        return NULL;
    }
    return block;
}

// Check a range that is not empty and return its block; NULL and *result on error.
static tli_vk_block *tli_vk_find_range(tli_vk *b, const tl_range *range, const char *function,
                                       tl_result *result) {
    tli_vk_block *block = tli_vk_find_block(b, range->block, function, result);
    if (!block) return NULL;
    if (range->bytes > block->bytes || range->offset > block->bytes - range->bytes) {
        *result = tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "range: reaches beyond its block");
        return NULL;
    }
    if (range->offset % b->alignment) {
        *result = tli_vk_fail(b, TL_ERROR_INVALID_ARG, function,
                              "range: offset: not a multiple of the alignment");
        return NULL;
    }
    return block;
}

static tli_vk_place tli_vk_place_of(const tli_vk_block *block, const tl_range *range) {
    tli_vk_place place;
    place.chunk = block->chunk;
    place.at = block->at + range->offset;
    place.bytes = range->bytes;
    return place;
}

static tli_vk_place tli_vk_whole_place(const tli_vk_block *block) {
    tli_vk_place place;
    place.chunk = block->chunk;
    place.at = block->at;
    place.bytes = block->reserved_bytes;
    return place;
}

// Have at least one entry in the list of free blocks; 0 where there is no memory.
static int tli_vk_add_slot(tli_vk *b) {
    tli_vk_block *block;
    if (b->free_block) return 1;
    if (!tli_vk_grow(b, &b->blocks, &b->block_capacity, b->block_count, sizeof *b->blocks)) return 0;
    block = &b->blocks[b->block_count];
    memset(block, 0, sizeof *block);
    // Differs from backend to backend, so that handles of another one are refused.
    block->generation = (uint32_t)tl_mix_u64((uint64_t)(uintptr_t)b, (uint64_t)b->block_count);
    b->free_block = ++b->block_count;
    return 1;
}

static uint64_t tli_vk_take_slot(tli_vk *b, tli_vk_block **block) {
    int32_t slot = b->free_block - 1;
    *block = &b->blocks[slot];
    b->free_block = (*block)->next_free;
    (*block)->alive = 1;
    (*block)->claimed_bytes = (*block)->claim_count = (*block)->account = 0;
    (*block)->map_count = 0;
    return (uint64_t)(*block)->generation << 32 | (uint64_t)(slot + 1);
}

// Take a piece of a chunk of the tier; add a chunk where none has room.
//
//   except   a chunk that is being emptied: it gives no piece, and no chunk is added; or TLI_VK_CHUNK_NONE
static tl_result tli_vk_find_piece(tli_vk *b, tl_tier tier, uint64_t bytes, const char *function,
                                   int32_t except, int32_t *index, size_t *at, int32_t *piece) {
    tl_result result;
    int32_t i;
    for (i = 0; i < b->chunk_count; i++) {
        tli_vk_chunk *chunk = &b->chunks[i];
        if (!chunk->alive || !chunk->heap || chunk->tier != (uint8_t)tier || i == except ||
            chunk->bytes < bytes)
            continue;
        if (except != TLI_VK_CHUNK_NONE && !chunk->block_count) continue;  // empty: to be freed as well
        if (tl_add_block(chunk->heap, (size_t)bytes, at, piece) == TL_OK) {
            *index = i;
            return TL_OK;
        }
    }
    if (except != TLI_VK_CHUNK_NONE) return TL_ERROR_NO_MEMORY;
    result = tli_vk_add_chunk(b, tier, TLI_VK_CHUNK_SHARED, bytes, function, index);
    if (result) return result;
    if (tl_add_block(b->chunks[*index].heap, (size_t)bytes, at, piece) == TL_OK) return TL_OK;
    return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the heap of a chunk");
}

// Check what is asked for, and have a slot for the block.
static tl_result tli_vk_start_block(tli_vk *b, tl_tier tier, uint64_t bytes, const char *function) {
    if (b->lost) return tli_vk_fail_lost(b, function);
    if ((uint64_t)tier >= TL_TIER_COUNT) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "tier: unknown");
    if (bytes > UINT64_MAX / 4)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "bytes: more than there are");
    return tli_vk_add_slot(b) ? TL_OK
         : tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the table of blocks");
}

// Make the block of a piece of a chunk.
//
//   reserved   what is taken for it
static uint64_t tli_vk_end_block(tli_vk *b, int32_t chunk, size_t at, int32_t piece, uint64_t bytes,
                                 uint64_t reserved) {
    tli_vk_block *block;
    uint64_t handle = tli_vk_take_slot(b, &block);
    block->tier = b->chunks[chunk].tier;
    block->bytes = bytes;
    block->reserved_bytes = reserved;
    block->chunk = chunk;
    block->piece = piece;
    block->at = at;
    // Work on the block that had this piece before may not have finished.
    block->last_write = block->last_use = b->chunks[chunk].last_use;
    b->chunks[chunk].block_count++;
    b->counters.added_count++;
    b->counters.block_count[block->tier]++;
    b->counters.reserved_bytes[block->tier] += reserved;
    return handle;
}

static tl_result tli_vk_add_block(void *self, tl_tier tier, uint64_t bytes, uint64_t *handle) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = tli_vk_start_block(b, tier, bytes, "add_block");
    uint64_t reserved;
    int32_t chunk, piece;
    size_t at;
    *handle = 0;
    if (result) return result;
    reserved = tli_vk_align(bytes ? bytes : 1, b->alignment);
    result = tli_vk_find_piece(b, tier, reserved, "add_block", TLI_VK_CHUNK_NONE, &chunk, &at, &piece);
    if (!result) *handle = tli_vk_end_block(b, chunk, at, piece, bytes, reserved);
    return result;
}

// The memory heap that is tried first for the chunks of a tier.
static uint32_t tli_vk_heap_of(const tli_vk *b, tl_tier tier) {
    int32_t type = tli_vk_next_type(b, tier, ~(uint32_t)0, -1);
    return type < 0 ? 0 : b->memory.memoryTypes[type].heapIndex;
}

// The bytes that a heap can still give: by VK_EXT_memory_budget where it is enabled, else four fifths of the
// heap less the chunks of the backend.
static uint64_t tli_vk_heap_budget(const tli_vk *b, uint32_t heap) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    VkPhysicalDeviceMemoryProperties2 properties;
    uint64_t whole = b->memory.memoryHeaps[heap].size / 5 * 4, used = 0;
    int32_t i;
    for (i = 0; i < b->chunk_count; i++)
        if (b->chunks[i].alive && !b->chunks[i].imported && b->chunks[i].memory_heap == heap)
            used += b->chunks[i].memory_bytes;
    if (b->has_budget) {
        memset(&budget, 0, sizeof budget);
        memset(&properties, 0, sizeof properties);
        budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
        properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
        properties.pNext = &budget;
        (b->vk.vkGetPhysicalDeviceMemoryProperties2)(b->desc.device.physical, &properties);
        whole = budget.heapBudget[heap];
        used = budget.heapUsage[heap];
    }
    return whole > used ? whole - used : 0;
}

// Make room in the budget of the heap by giving back what is not used; refuse what is still beyond it.
static tl_result tli_vk_check_arena(tli_vk *b, tl_tier tier, uint64_t bytes, const char *function) {
    uint32_t heap = tli_vk_heap_of(b, tier);
    const char *parts[4];
    char digits[2][24];
    if (b->desc.exceed_budget || bytes <= tli_vk_heap_budget(b, heap)) return TL_OK;
    (void)tli_vk_drop_chunks(b, 0);
    if (bytes > tli_vk_heap_budget(b, heap)) (void)tli_vk_drop_busy_chunks(b, function);
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (bytes <= tli_vk_heap_budget(b, heap)) return TL_OK;
    parts[0] = tli_vk_print_u64(bytes, digits[0]);
    parts[1] = " bytes: the budget of the heap leaves ";
    parts[2] = tli_vk_print_u64(tli_vk_heap_budget(b, heap), digits[1]);
    parts[3] = ", and exceed_budget is not set";
    return tli_vk_fail_parts(b->env, TL_ERROR_NO_MEMORY, function, parts, 4);
}

static tl_result tli_vk_add_arena(void *self, tl_tier tier, int32_t bank, uint64_t bytes, uint64_t *handle) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = tli_vk_start_block(b, tier, bytes, "add_arena");
    uint64_t reserved;
    int32_t chunk;
    *handle = 0;
    if (!result && bank)
        result = tli_vk_fail(b, TL_ERROR_INVALID_ARG, "add_arena", "bank: there is bank 0 alone");
    if (result) return result;
    reserved = tli_vk_align(bytes ? bytes : 1, b->granularity);
    if (b->freed_arena_count) (void)tli_vk_drop_busy_chunks(b, "add_arena");  // both may not fit together
    result = tli_vk_check_arena(b, tier, reserved + b->overhead, "add_arena");
    if (!result) result = tli_vk_add_chunk(b, tier, TLI_VK_CHUNK_ARENA, reserved, "add_arena", &chunk);
    if (!result) *handle = tli_vk_end_block(b, chunk, 0, -1, bytes, b->chunks[chunk].memory_bytes);
    return result;
}

// The open account of a handle, or NULL.
static tli_vk_account *tli_vk_open_account_of(tli_vk *b, uint64_t handle) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    tli_vk_account *account = slot < (uint64_t)b->account_count ? &b->accounts[slot] : NULL;
    return account && account->is_open && account->generation == handle >> 32 ? account : NULL;
}

// The first to claim a range of a block is the one who took its bytes.
static void tli_vk_take_block(tli_vk_account *account, uint64_t handle, tli_vk_block *block) {
    tl_account_counters *counters = &account->counters;
    if (block->account) return;
    block->account = handle;
    counters->taken_bytes[block->tier] += block->reserved_bytes;
    counters->bank_taken_bytes[0] = counters->taken_bytes[TL_TIER_DEVICE];
    if (counters->taken_bytes[block->tier] > counters->peak_taken_bytes[block->tier])
        counters->peak_taken_bytes[block->tier] = counters->taken_bytes[block->tier];
}

// The bytes of a block are given back; the counters follow.
static void tli_vk_untake_block(tli_vk *b, const tli_vk_block *block) {
    tli_vk_account *account = block->account ? tli_vk_open_account_of(b, block->account) : NULL;
    if (account) account->counters.taken_bytes[block->tier] -= block->reserved_bytes;
    if (account) account->counters.bank_taken_bytes[0] = account->counters.taken_bytes[TL_TIER_DEVICE];
    b->counters.reserved_bytes[block->tier] -= block->reserved_bytes;
}

// Give the memory of a slot back.
static void tli_vk_free_slot(tli_vk *b, tli_vk_slot *slot) {
    if (slot->piece) tl_free_block(b->staging_heap, slot->piece);
    else b->chunks[slot->chunk].block_count = 0;
    slot->is_used = 0;
    b->slot_count--;
    slot->next_free = b->free_slot;
    b->free_slot = (int32_t)(slot - b->all_slots) + 1;
}

// A slot is free as soon as this batch has finished.
static void tli_vk_give_staging(tli_vk *b, int32_t number, uint64_t serial) {
    tli_vk_slot *slot = &b->all_slots[number];
    slot->serial = serial;
    if (serial <= b->passed) tli_vk_free_slot(b, slot);
}

// Cancel a read that is pending: its slot is free once the copy into it, if it runs at all, has finished.
static void tli_vk_cancel_read(tli_vk *b, int32_t mapping, uint64_t serial) {
    tli_vk_give_staging(b, b->mappings[mapping].slot, serial);
    b->mappings[mapping] = b->mappings[--b->mapping_count];
}

// Cancel the reads of a block that are pending.
static void tli_vk_drop_reads(tli_vk *b, uint64_t handle) {
    int32_t i;
    for (i = b->mapping_count - 1; i >= 0; i--)
        if (b->mappings[i].is_pending && b->mappings[i].range.block == handle)
            tli_vk_cancel_read(b, i, b->mappings[i].serial);
}

// The block of an arena was freed: so is its memory, if the work on it has finished, else when that is noticed.
static void tli_vk_free_arena(tli_vk *b) {
    tl_env *env = b->env;
    b->freed_arena_count++;
    b->env = &b->quiet;
    (void)tli_vk_look(b, "free_block");
    b->env = env;
    tli_vk_drop_arenas(b);
}

static tl_result tli_vk_free_block(void *self, uint64_t handle) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_block *block = tli_vk_find_block(b, handle, "free_block", &result);
    tli_vk_chunk *chunk;
    if (!block) return result;
    if (block->claim_count)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "free_block", "block: a range in it is still claimed");
    if (block->map_count)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "free_block", "block: a range in it is mapped");
    chunk = &b->chunks[block->chunk];
    b->counters.block_count[block->tier]--;
    tli_vk_untake_block(b, block);
    chunk->block_count--;
    tli_vk_drop_reads(b, handle);
    if (chunk->heap) tl_free_block(chunk->heap, block->piece);  // a barrier orders the next user after it
    block->alive = 0;
    block->generation++;
    block->next_free = b->free_block;
    b->free_block = (int32_t)(block - b->blocks) + 1;
    if (!chunk->imported && chunk->kind == TLI_VK_CHUNK_ARENA) tli_vk_free_arena(b);
    return TL_OK;
}

// -- buffers of the caller --

// The chunk of a buffer; TLI_VK_CHUNK_NONE where it has none. A chunk whose blocks were all freed counts, as
// work on it may not have finished.
static int32_t tli_vk_find_chunk(const tli_vk *b, VkBuffer buffer) {
    int32_t i;
    for (i = 0; i < b->chunk_count; i++)
        if (b->chunks[i].alive && b->chunks[i].buffer == buffer) return i;
    return TLI_VK_CHUNK_NONE;
}

static const char *tli_vk_explain_buffer(const tli_vk *b, const tl_vk_buffer_desc *desc) {
    const VkBufferUsageFlags needed = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    int32_t at = tli_vk_find_chunk(b, desc->buffer);
    if (!desc->buffer) return "buffer: missing";
    if (at != TLI_VK_CHUNK_NONE && !b->chunks[at].imported) return "buffer: is one of the backend itself";
    if ((desc->usage & needed) != needed) return "usage: needs STORAGE_BUFFER, TRANSFER_SRC and TRANSFER_DST";
    if (!desc->bytes || desc->bytes % 4 || desc->bytes > UINT64_MAX / 4)
        return "bytes: must be a multiple of 4, not 0";
    if (desc->offset % b->alignment) return "offset: not a multiple of the alignment";
    return desc->offset > UINT64_MAX / 4 ? "offset: beyond any buffer" : NULL;
}

// Have a chunk for a buffer of the caller: the one it has, or a new one; TLI_VK_CHUNK_NONE where there is no
// memory for it. The stages of all its blocks are waited for.
static int32_t tli_vk_import_chunk(tli_vk *b, const tl_vk_buffer_desc *desc) {
    int32_t at = tli_vk_find_chunk(b, desc->buffer);
    tli_vk_chunk *chunk;
    if (at == TLI_VK_CHUNK_NONE) {
        at = tli_vk_add_record(b);
        if (at == TLI_VK_CHUNK_NONE) return at;
        b->chunks[at].block_count = 0;
    }
    chunk = &b->chunks[at];
    if (!chunk->block_count && chunk->last_use <= b->passed) memset(chunk, 0, sizeof *chunk);
    chunk->buffer = desc->buffer;
    if (chunk->bytes < desc->offset + desc->bytes) chunk->bytes = desc->offset + desc->bytes;
    chunk->stages |= desc->stages;
    chunk->access |= desc->access;
    chunk->seen = 0;
    chunk->tier = TL_TIER_DEVICE;
    chunk->alive = chunk->imported = 1;
    chunk->block_count++;
    return at;
}

TLI_VK_IMPL tl_result tl_vk_add_buffer(const tl_backend *backend, const tl_vk_buffer_desc *desc,
                                       uint64_t *handle) {
    const char *function = "tl_vk_add_buffer", *why;
    tli_vk *b = tli_vk_self(backend);
    tli_vk_block *block;
    int32_t at;
    *handle = 0;
    if (b->lost) return tli_vk_fail_lost(b, function);
    why = tli_vk_explain_buffer(b, desc);
    if (why) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, why);
    at = tli_vk_add_slot(b) ? tli_vk_import_chunk(b, desc) : TLI_VK_CHUNK_NONE;
    if (at == TLI_VK_CHUNK_NONE)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the tables");
    *handle = tli_vk_take_slot(b, &block);
    block->tier = TL_TIER_DEVICE;
    block->bytes = block->reserved_bytes = desc->bytes;
    block->chunk = at;
    block->piece = -1;
    block->at = desc->offset;
    block->last_write = block->last_use = 0;
    b->counters.added_count++;
    b->counters.block_count[TL_TIER_DEVICE]++;
    b->counters.reserved_bytes[TL_TIER_DEVICE] += desc->bytes;
    return TL_OK;
}

// -- lost places: what dropped frames would have written --

static int tli_vk_meet(const tli_vk_place *a, const tli_vk_place *b) {
    return a->chunk == b->chunk && a->bytes && b->bytes && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

static int tli_vk_is_lost(const tli_vk *b, const tli_vk_place *place) {
    int32_t i;
    for (i = 0; i < b->lost_count; i++)
        if (tli_vk_meet(&b->lost_places[i], place)) return 1;
    return 0;
}

static int tli_vk_add_lost(tli_vk *b, tli_vk_place place) {
    if (b->chunks[place.chunk].kind == TLI_VK_CHUNK_STAGING) return 1;
    if (!tli_vk_grow(b, &b->lost_places, &b->lost_capacity, b->lost_count, sizeof *b->lost_places)) return 0;
    b->lost_places[b->lost_count++] = place;
    return 1;
}

static tl_result tli_vk_fail_stale(tli_vk *b, const char *function, const char *what) {
    const char *parts[2];
    parts[0] = what;
    parts[1] = b->records ? ": was written by a frame that was dropped"
                          : ": was written behind commands of the caller that did not run";
    return tli_vk_fail_parts(b->env, TL_ERROR_STALE, function, parts, 2);
}

// These bytes are written again: they are no longer lost.
static void tli_vk_forget_lost(tli_vk *b, const tli_vk_place *place) {
    int32_t i;
    for (i = b->lost_count - 1; i >= 0; i--) {
        tli_vk_place *lost = &b->lost_places[i], rest;
        uint64_t end = lost->at + lost->bytes, place_end = place->at + place->bytes;
        if (!tli_vk_meet(lost, place)) continue;
        rest = *lost;
        if (lost->at < place->at && end > place_end) {  // in two; without memory all stays lost
            rest.at = place_end;
            rest.bytes = end - place_end;
            if (!tli_vk_add_lost(b, rest)) continue;
            b->lost_places[i].bytes = place->at - b->lost_places[i].at;
        } else if (lost->at < place->at) {
            lost->bytes = place->at - lost->at;
        } else if (end > place_end) {
            lost->at = place_end;
            lost->bytes = end - place_end;
        } else {
            *lost = b->lost_places[--b->lost_count];
        }
    }
}

// -- claims --

static tl_result tli_vk_claim(void *self, tl_range range) {
    tli_vk *b = (tli_vk *)self;
    tl_backend_counters *counters = &b->counters;
    tl_result result = TL_OK;
    tli_vk_block *block;
    tli_vk_place place;
    uint64_t end;
    if (b->lost) return tli_vk_fail_lost(b, "claim");
    if (!range.bytes) return TL_OK;
    block = tli_vk_find_range(b, &range, "claim", &result);
    if (!block) return result;
    if (range.bytes > b->desc.capacity_bytes[block->tier] - counters->live_bytes[block->tier])
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "claim", "range: bytes: the tier's capacity is used up");
    place = tli_vk_place_of(block, &range);
    if (b->lost_count) tli_vk_forget_lost(b, &place);
    block->claim_count++;
    block->claimed_bytes += range.bytes;
    counters->claim_count[block->tier]++;
    counters->live_bytes[block->tier] += range.bytes;
    if (counters->live_bytes[block->tier] > counters->peak_bytes[block->tier])
        counters->peak_bytes[block->tier] = counters->live_bytes[block->tier];
    end = tli_vk_align(range.offset + range.bytes, b->alignment);
    if (block->tier == TL_TIER_DEVICE && end > counters->arena_bytes) counters->arena_bytes = end;
    return TL_OK;
}

static tl_result tli_vk_release(void *self, tl_range range) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_block *block;
    if (!range.bytes) return TL_OK;
    block = tli_vk_find_range(b, &range, "release", &result);
    if (!block) return result;
    if (!block->claim_count || block->claimed_bytes < range.bytes)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "release", "range: was not claimed");
    block->claim_count--;
    block->claimed_bytes -= range.bytes;
    b->counters.claim_count[block->tier]--;
    b->counters.live_bytes[block->tier] -= range.bytes;
    return TL_OK;
}

// -- accounts --

static tli_vk_account *tli_vk_find_account(tli_vk *b, uint64_t handle, const char *function,
                                           tl_result *result) {
    tli_vk_account *account = tli_vk_open_account_of(b, handle);
    if (!account)
        *result = tli_vk_fail(b, TL_ERROR_STALE, function, "account: was closed, or is of another backend");
    return account;
}

static tl_result tli_vk_open_account(void *self, const uint64_t limit_bytes[TL_TIER_COUNT],
                                     uint64_t *handle) {
    tli_vk *b = (tli_vk *)self;
    int32_t slot = b->free_account - 1, tier;
    tli_vk_account *account;
    *handle = 0;
    if (b->lost) return tli_vk_fail_lost(b, "open_account");
    if (slot < 0) {
        if (!tli_vk_grow(b, &b->accounts, &b->account_capacity, b->account_count, sizeof *b->accounts))
            return tli_vk_fail(b, TL_ERROR_NO_MEMORY, "open_account", "no memory for the table of accounts");
        slot = b->account_count++;
        memset(&b->accounts[slot], 0, sizeof *b->accounts);
        b->accounts[slot].generation = (uint32_t)tl_mix_u64((uint64_t)(uintptr_t)b, (uint64_t)slot);
    }
    account = &b->accounts[slot];
    b->free_account = account->next_free;
    memset(&account->counters, 0, sizeof account->counters);
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        account->limit_bytes[tier] = limit_bytes[tier] ? limit_bytes[tier] : TL_UNLIMITED;
    account->is_open = 1;
    b->open_account_count++;
    *handle = (uint64_t)account->generation << 32 | (uint64_t)(slot + 1);
    return TL_OK;
}

static tl_result tli_vk_close_account(void *self, uint64_t handle) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = tli_vk_find_account(b, handle, "close_account", &result);
    if (!account) return result;
    account->is_open = 0;
    account->generation++;
    account->next_free = b->free_account;
    b->free_account = (int32_t)(account - b->accounts) + 1;
    b->open_account_count--;
    return TL_OK;
}

static tl_result tli_vk_claim_on(void *self, uint64_t handle, tl_range range) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = tli_vk_find_account(b, handle, "claim_on", &result);
    tl_account_counters *counters;
    tli_vk_block *block;
    uint64_t end;
    if (!account || !range.bytes) return result;
    block = tli_vk_find_range(b, &range, "claim_on", &result);
    if (!block) return result;
    counters = &account->counters;
    if (range.bytes > account->limit_bytes[block->tier] - counters->live_bytes[block->tier])
        return tli_vk_fail(b, TL_ERROR_OVER_BUDGET, "claim_on", "range: bytes: beyond the account's limit");
    result = tli_vk_claim(self, range);
    if (result) return result;
    tli_vk_take_block(account, handle, block);
    counters->claim_count[block->tier]++;
    counters->live_bytes[block->tier] += range.bytes;
    if (counters->live_bytes[block->tier] > counters->peak_bytes[block->tier])
        counters->peak_bytes[block->tier] = counters->live_bytes[block->tier];
    end = tli_vk_align(range.offset + range.bytes, b->alignment);
    if (block->tier == TL_TIER_DEVICE && end > counters->arena_bytes) counters->arena_bytes = end;
    return TL_OK;
}

static tl_result tli_vk_release_on(void *self, uint64_t handle, tl_range range) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = tli_vk_find_account(b, handle, "release_on", &result);
    tli_vk_block *block;
    if (!account || !range.bytes) return result;
    block = tli_vk_find_range(b, &range, "release_on", &result);
    if (!block) return result;
    if (!account->counters.claim_count[block->tier] || account->counters.live_bytes[block->tier] < range.bytes)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "release_on", "range: was not claimed on this account");
    result = tli_vk_release(self, range);
    if (result) return result;
    account->counters.claim_count[block->tier]--;
    account->counters.live_bytes[block->tier] -= range.bytes;
    return TL_OK;
}

static tl_result tli_vk_shorten(void *self, uint64_t handle, tl_range range, uint64_t bytes) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = handle ? tli_vk_find_account(b, handle, "shorten", &result) : NULL;
    tli_vk_block *block = result ? NULL : tli_vk_find_range(b, &range, "shorten", &result);
    uint64_t less = range.bytes - bytes;
    if (!block) return result;
    if (!bytes || bytes > range.bytes)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "shorten",
                           "bytes: must be > 0 and not above those of the range");
    if (!block->claim_count || block->claimed_bytes < range.bytes ||
        (account && account->counters.live_bytes[block->tier] < range.bytes))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "shorten", "range: was not claimed");
    block->claimed_bytes -= less;
    b->counters.live_bytes[block->tier] -= less;
    if (account) account->counters.live_bytes[block->tier] -= less;
    return TL_OK;
}

static tl_result tli_vk_measure_account(void *self, uint64_t handle, int32_t resets,
                                        tl_account_counters *counters) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_account *account = tli_vk_find_account(b, handle, "measure_account", &result);
    int tier;
    memset(counters, 0, sizeof *counters);
    if (!account) return result;
    for (tier = 0; tier < TL_TIER_COUNT && resets; tier++) {
        account->counters.peak_bytes[tier] = account->counters.live_bytes[tier];
        account->counters.peak_taken_bytes[tier] = account->counters.taken_bytes[tier];
    }
    if (resets) account->counters.arena_bytes = 0;
    *counters = account->counters;
    return TL_OK;
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION
