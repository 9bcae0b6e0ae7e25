#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [10] BACKEND -- blocks, ranges, tickets; the CPU backend; what a device can do
//
//     block 1  |####....########|..............|      a block is one allocation;
//               range: offset 8, bytes 8              a range is a part of it
//
//     copy, convert, fill --> submit --> ticket --> poll or wait
//
// A backend is a table of functions and a self pointer. Work on ranges is enqueued;
// work whose ranges overlap happens in the order it was enqueued, anything else in
// any order. A ticket stands for everything up to its submit: nothing is finished
// because a call returned, only because poll or wait on a ticket said so, or because
// `order` put it before what follows, or because `map` gave the host its bytes. The CPU
// finishes at once and a GPU does not; nothing above this section may rely on either.
//
// A backend may be unable to submit and wait, because it records into command buffers of the
// caller: poll, wait and map say TL_NOT_READY then, until the caller has told it more.
//
// The backend counts bytes and calls by itself and never sees a plan.
// ============================================================================

#define TL_TIERS(X) \
    X(TL_TIER_DEVICE, "device", "where kernels read and write")       \
    X(TL_TIER_HOST,   "host",   "where tensors are spilled to")

typedef enum tl_tier { TL_TIERS(TLI_ENUM) TL_TIER_COUNT } tl_tier;

// How the host is going to touch a mapped range.
#define TL_MAP_MODES(X) \
    X(TL_MAP_READ,   "read",   "nothing is written")                                        \
    X(TL_MAP_WRITE,  "write",  "every byte is written: what the host sees before is undefined") \
    X(TL_MAP_CHANGE, "change", "read and written")

typedef enum tl_map_mode { TL_MAP_MODES(TLI_ENUM) TL_MAP_MODE_COUNT } tl_map_mode;

#define TL_UNLIMITED UINT64_MAX  // a budget or a capacity without a limit

typedef struct tl_range {
    uint64_t block;   // handle from add_block; 0 = no memory, bytes is 0 too
    uint64_t offset;  // bytes from the start of the block
    uint64_t bytes;
} tl_range;

typedef struct tl_ticket {
    uint64_t value;   // grows with every submit; 0 = nothing to wait for
} tl_ticket;

// One range that a kernel touches.
typedef struct tl_access {
    tl_range range;
    int32_t  writes;  // 1 = read and written, 0 = read only
} tl_access;

typedef struct tl_backend_limits {
    uint64_t alignment_bytes;    // of every offset; a power of two
    uint64_t granularity_bytes;  // a block takes a multiple of it
    uint64_t range_bytes;        // largest range one call may name
    uint64_t capacity_bytes[TL_TIER_COUNT];  // TL_UNLIMITED = not known
    uint64_t budget_bytes[TL_TIER_COUNT];    // of the capacity, what is free to be used at present
    uint32_t codecs;             // bits 1 << tl_codec that convert can do
    int32_t  host_visible;       // 1 = map costs nothing: host kernels may run on device ranges
    int32_t  in_order;           // 1 = copies and kernels run in the order they were enqueued: what
                                 // comes after a copy needs no ticket of it
} tl_backend_limits;

typedef struct tl_backend_counters {
    uint64_t live_bytes[TL_TIER_COUNT];      // claimed ranges, byte-exact
    uint64_t peak_bytes[TL_TIER_COUNT];      // largest live_bytes since the last reset
    uint64_t reserved_bytes[TL_TIER_COUNT];  // blocks, granularity and guards included
    uint64_t arena_bytes;        // largest aligned end of a range claimed in a device block since then
    uint64_t block_count[TL_TIER_COUNT];     // blocks alive
    uint64_t claim_count[TL_TIER_COUNT];     // ranges claimed and not released
    uint64_t added_count, copy_count, convert_count, fill_count;  // calls since init
    uint64_t submit_count, poll_count, wait_count, map_count;
    uint64_t copied_bytes;       // by copy and convert, source side
} tl_backend_counters;

// Once the device is lost, these stay legal and work: release, free_block, unmap, limits, counters,
// reset_peaks, now_ns, and map for reading in the host tier where all work on the range had passed. All
// others return TL_ERROR_DEVICE_LOST for ever. All are called by one thread at a time.
//
// The bytes between the end of a range and the next multiple of the alignment belong to nobody: work
// on the range may overwrite them.
typedef struct tl_backend {
    void *self;

    // Make a block. TL_ERROR_NO_MEMORY where there is none, even once the work has passed that keeps
    // freed blocks, if the backend can wait for it; *block is 0 then.
    tl_result (*add_block)(void *self, tl_tier tier, uint64_t bytes, uint64_t *block);
    // Free a block; nothing in it may be claimed any more. Work on it may be under way, or not even
    // submitted: the backend keeps the bytes until it has passed. TL_ERROR_CORRUPT where its dead
    // bytes were written: it is freed all the same.
    tl_result (*free_block)(void *self, uint64_t block);

    // Begin and end the life of a range: claimed bytes are counted, their content is undefined. A range
    // may be released while work on it is under way. TL_ERROR_NO_MEMORY beyond the tier's capacity.
    tl_result (*claim)(void *self, tl_range range);
    tl_result (*release)(void *self, tl_range range);

    // Enqueue. Ranges lie in claimed ranges; source and target do not overlap.
    tl_result (*copy)(void *self, tl_range to, tl_range from);         // same bytes
    tl_result (*compress)(void *self, tl_codec codec, tl_range to, tl_range from);  // f32 -> codec
    tl_result (*expand)(void *self, tl_codec codec, tl_range to, tl_range from);    // codec -> f32
    tl_result (*fill)(void *self, tl_range to, uint32_t word);  // words as the host stores them, tail cut

    // Put all enqueued work on these ranges before what the caller does with them next: the CPU
    // finishes it, a GPU records one barrier. Called before every kernel.
    tl_result (*order)(void *self, const tl_access *accesses, int32_t access_count);

    tl_result (*submit)(void *self, tl_ticket *ticket);  // hand over what was enqueued, to be submitted
                                                         // by the caller where the backend cannot
    tl_result (*poll)(void *self, tl_ticket ticket);     // TL_OK or TL_NOT_READY; never blocks
    tl_result (*wait)(void *self, tl_ticket ticket);     // submits what the ticket needs, blocks

    // Give the host a pointer to a range whose work was ordered: waits until that is finished, or
    // returns TL_NOT_READY where the backend cannot wait. After unmap, with the same mode, the pointer
    // is dead and what was written is in the range. Ranges mapped together do not overlap, unless all
    // of them are only read.
    tl_result (*map)(void *self, tl_range range, tl_map_mode mode, void **host);
    tl_result (*unmap)(void *self, tl_range range, tl_map_mode mode, void *host);

    // Verify what can be verified (canaries, poison): TL_ERROR_CORRUPT where bytes changed.
    tl_result (*check)(void *self);

    uint64_t (*now_ns)(void *self);  // a clock that never goes back; 0 = the backend has none
    void     (*limits)(void *self, tl_backend_limits *limits);
    void     (*counters)(void *self, tl_backend_counters *counters);
    void     (*reset_peaks)(void *self);  // peak_bytes = live_bytes, arena_bytes = 0
} tl_backend;

typedef struct tl_cpu_backend_desc {
    void    *memory;              // device tier in one block of the caller; 0 = each block from the env
    uint64_t memory_bytes;        // of that block
    uint64_t capacity_bytes[TL_TIER_COUNT];  // 0 = TL_UNLIMITED; counted with live ranges
    uint64_t alignment_bytes;     // 0 = 64; a power of two
    uint64_t (*now_ns)(void *user);  // 0 = none, every time is 0
    void    *user;
    // For tests, not with TL_NO_CHECKS: checked = 1 poisons dead ranges, guards blocks and hands
    // kernels copies of their ranges, the host poison where it said that it writes every byte; with
    // deferred = 1, work finishes only when polled, waited for or ordered, or when a block does not fit,
    // in any legal order, which seed decides.
    int32_t  checked, deferred;
    uint64_t seed;
} tl_cpu_backend_desc;

// Make the CPU backend. It finishes work at once, unless it is deferred: that variant is for
// tests, a wait that is missing above it shows as wrong bytes. With checked, a kernel gets copies
// of its ranges, so that an address sanitizer sees every stray access; what it wrote to a range
// that it may only read, to a dead range or around a block is TL_ERROR_CORRUPT. TL_NO_CHECKS leaves
// both variants out: asking for one is TL_ERROR_UNSUPPORTED then.
//
//   env       must outlive it, and gets the sentence where one of its functions fails
//   backend   overwritten; release with tl_free_cpu_backend
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_UNSUPPORTED; *backend is all zero
//          then.
// Threads: one backend per thread, or behind the lock of a shared manager.
TLDEF tl_result tl_init_cpu_backend(tl_env *env, const tl_cpu_backend_desc *desc, tl_backend *backend);
TLDEF void      tl_free_cpu_backend(tl_env *env, tl_backend *backend);

TLDEF const char *tl_name_tier(tl_tier tier);          // "device"; "?" out of range
TLDEF const char *tl_name_map_mode(tl_map_mode mode);  // "write"

// Places pieces in memory that it never touches: of a device, of a file, of an arena. A piece has an
// offset and an id; neighbours are joined when they are free.
typedef struct tl_heap tl_heap;

// Make a heap over so many bytes, all free; the env must outlive it.
//
//   bytes       rounded down to the alignment
//   alignment   of every offset and every piece: a power of two; 0 = 1
//   heap        overwritten; release with tl_free_heap
//
// Errors:  TL_ERROR_INVALID_ARG: no byte, or an alignment that is no power of two; TL_ERROR_NO_MEMORY.
//          *heap is NULL then.
// Threads: one heap per thread.
TLDEF tl_result tl_init_heap(tl_env *env, size_t bytes, size_t alignment, tl_heap **heap);
TLDEF void      tl_free_heap(tl_heap *heap);  // accepts NULL

// Take a piece, and give one back. Among free places one of about the size is taken, not always the
// best. An id that stands for no piece is passed over; ids are used again.
//
//   bytes   rounded up to the alignment
//   piece   its id, > 0
//
// Errors:  TL_ERROR_INVALID_ARG: 0 bytes; TL_ERROR_NO_MEMORY: no place is large enough, or no memory for
//          the table of pieces. *offset and *piece are 0 then.
// Cost:    O(1); O(free places of about this size) where hardly any is large enough.
TLDEF tl_result tl_add_piece(tl_heap *heap, size_t bytes, size_t *offset, int32_t *piece);
TLDEF void      tl_free_piece(tl_heap *heap, int32_t piece);

// Report what is free, and the largest piece that can be taken. Either may be NULL.
TLDEF void tl_measure_heap(const tl_heap *heap, size_t *free_bytes, size_t *largest_bytes);

#ifndef TL_NO_CODECS
// Convert on the host, as every backend must, bit for bit. f16 and bf16: round to nearest even,
// infinities stay, a NaN stays a quiet NaN. q8: block by block of 32, scale = largest finite
// magnitude / 127 rounded to nearest even, each value the nearest of x 127 / largest (half to
// even); infinities become +-127, NaN is -128; read back, a value is its code x scale rounded to
// nearest even, at most the largest finite number. Pointers need no alignment.
//
//   bytes   of the f32 side; a tail of fewer than 4 bytes is taken as zero-padded
TLDEF void tl_compress_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes);
TLDEF void tl_expand_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes);
#endif

#ifndef TL_NO_PLANNERS
// -- what a device can do, measured --

typedef struct tl_measure_device_desc {
    const char *name;          // of the device; borrowed
    uint64_t    bytes;         // of the largest copy; 0 = 64 MiB; halved until the backend has room. Codecs
                               // are timed on a sixteenth
    int32_t     sample_count;  // of each time, whose median counts; 0 = 5; 1 .. 31
    // Run a kernel in this precision, wait until it has passed, and tell how many FLOP it had: as many
    // each time. TL_ERROR_UNSUPPORTED = not in this precision. 0 = where the backend is host-visible, a
    // loop of the library's on one thread, f32 and f64; elsewhere FLOP/s remain unknown.
    tl_result (*compute)(tl_precision precision, uint64_t *flops, void *user);
    void       *user;
} tl_measure_device_desc;

// Measure what [3] and the planners want to know of a device, with the backend's own copies, codecs and
// clock. Each is timed at two sizes, because a call takes latency + bytes / rate: memory counts what is
// read and what is written; of both directions of the link, and of the codecs, the slower one is told.
// Capacities and alignment are those of the limits. What cannot be measured, because there is no clock,
// no room, no host tier or no kernel, stays 0. A precision is supported where FLOP/s were measured, and
// those below f32 only where they are not slower than f32.
//
//   desc     0 = all defaults
//   device   overwritten
//
// Errors:  TL_ERROR_INVALID_ARG; TL_ERROR_UNSUPPORTED: the backend cannot wait; TL_ERROR_KERNEL: compute
//          failed; and those of the backend. *device is all zero then.
// Cost:    three times `bytes` of memory while it runs; the calls are the same each time. The counters
//          and peaks of the backend count them.
// Threads: as the backend.
TLDEF tl_result tl_measure_device(tl_env *env, const tl_backend *backend,
                                  const tl_measure_device_desc *desc, tl_device *device);
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

