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
// A backend is a table of functions and a self pointer. Work on ranges is enqueued:
// pieces of work whose ranges overlap are carried out in the order in which they were
// enqueued, all others in any order. A ticket stands for all work that was enqueued before
// its submit. That a call returned does not mean that its work is finished. Work is
// finished once poll or wait on its ticket returns TL_OK, or once `map` has given its bytes
// to the host; `order` puts it before the work that is enqueued next. The CPU backend
// finishes work at once, a GPU later: callers must not rely on either.
//
// A backend that records into command buffers of the caller may be unable to submit and to wait.
// poll, wait and map return TL_NOT_READY then, until the caller has reported that its command
// buffer was submitted or has finished.
//
// The backend counts bytes and calls by itself and never sees a plan, so that its counters are an
// independent check of what was planned.
// ============================================================================

#define TL_TIERS(X) \
    X(TL_TIER_DEVICE, "device", "memory that kernels read and write")     \
    X(TL_TIER_HOST,   "host",   "memory that tensors are spilled to")

typedef enum tl_tier { TL_TIERS(TLI_ENUM) TL_TIER_COUNT } tl_tier;

// What the host does with a range while it is mapped.
#define TL_MAP_MODES(X) \
    X(TL_MAP_READ,   "read",   "nothing is written")                                        \
    X(TL_MAP_WRITE,  "write",  "every byte is written: what the host sees before is undefined") \
    X(TL_MAP_CHANGE, "change", "read and written")

typedef enum tl_map_mode { TL_MAP_MODES(TLI_ENUM) TL_MAP_MODE_COUNT } tl_map_mode;

#define TL_UNLIMITED UINT64_MAX  // a budget or a capacity without a limit

typedef struct tl_range {
    tl_size block;    // handle from add_block; 0 = no memory, bytes is 0 too
    tl_size offset;   // bytes from the start of the block
    tl_size bytes;
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
    uint64_t granularity_bytes;  // the bytes of an arena are rounded up to a multiple of it
    uint64_t block_overhead_bytes[TL_TIER_COUNT];  // taken for an arena beside these, without guards for tests
    uint64_t range_bytes;        // largest range one call may name
    uint64_t capacity_bytes[TL_TIER_COUNT];  // base_bytes of a run included; TL_UNLIMITED = not known
    uint64_t unusable_bytes[TL_TIER_COUNT];  // of the memory behind the capacity, and not in it: what its
                                             // alignment takes. A refusal adds them to the bytes that it names
    uint64_t budget_bytes[TL_TIER_COUNT];    // the part of the capacity that is free at present
    uint32_t codecs;             // bits 1 << tl_codec that compress and expand can do
    int32_t  host_visible;       // 1 = map costs nothing: host kernels may run on device ranges
    int32_t  in_order;           // 1 = copies and kernels run in the order in which they were enqueued:
                                 // work enqueued after a copy need not wait for the copy's ticket
    tl_env  *env;                // where the backend's functions record errors: a run restores it, and
                                 // mutes its log, around calls that may fail. 0 = not known
    uint64_t block_bytes;        // largest block; 0 = not known
    uint64_t binding_bytes;      // largest range that a kernel can be given; 0 = any. Operands of nodes that
                                 // take blocks may be larger, and of ops that have rows
    int32_t  tiers_share_memory; // 1 = both tiers are taken from one memory: what one takes the other lacks, so
                                 // their capacities and budgets are not to be added up
    int32_t  bank_count;         // of the device tier, whose figures above are those of all banks; 0 = 1
    uint64_t bank_bytes[TL_MOST_BANKS];      // with several: what is free in each; TL_UNLIMITED = not known
    uint64_t bank_overhead_bytes[TL_MOST_BANKS];  // with several: taken for an arena in each, in the place of
                                 // block_overhead_bytes of the device, which is the largest of them
} tl_backend_limits;

typedef struct tl_backend_counters {
    uint64_t live_bytes[TL_TIER_COUNT];      // claimed ranges, byte-exact
    uint64_t peak_bytes[TL_TIER_COUNT];      // largest live_bytes since the last reset
    uint64_t reserved_bytes[TL_TIER_COUNT];  // taken for blocks: granularity, overhead and guards included
    uint64_t arena_bytes;        // largest aligned end of a range claimed in a device block since the reset
    uint64_t block_count[TL_TIER_COUNT];     // blocks alive
    uint64_t claim_count[TL_TIER_COUNT];     // ranges claimed and not released
    uint64_t added_count, copy_count, convert_count, fill_count;  // calls since init
    uint64_t submit_count, poll_count, wait_count, map_count;  // calls since init
    uint64_t copied_bytes;       // read by copy, compress and expand
} tl_backend_counters;

// What one account holds. An account counts the ranges of one holder (a run, a manager), beside the
// counters of the backend, which count those of all.
typedef struct tl_account_counters {
    uint64_t live_bytes[TL_TIER_COUNT];      // ranges claimed on the account
    uint64_t peak_bytes[TL_TIER_COUNT];      // largest live_bytes since it was opened or last reset
    uint64_t claim_count[TL_TIER_COUNT];     // ranges claimed on it and not released
    uint64_t arena_bytes;        // largest aligned end of a range claimed on it in a device block since then
                                 // (of its highest block, where it has several)
    uint64_t taken_bytes[TL_TIER_COUNT];     // reserved bytes, without guards, of its blocks: those in which
                                             // it was the first to claim a range, until they are freed
    uint64_t peak_taken_bytes[TL_TIER_COUNT];  // largest taken_bytes since then
    uint64_t bank_taken_bytes[TL_MOST_BANKS];  // now, of the blocks in each bank of the device
} tl_account_counters;

// The functions of a backend, called by one thread at a time. Once the device is lost, release, release_on,
// free_block, unmap, limits, counters, reset_peaks, now_ns, close_account and measure_account still work, and
// so does map for reading in the host tier if all work on the range had finished before. All others return
// TL_ERROR_DEVICE_LOST from then on.
//
// Work on a range may overwrite the bytes between its end and the next multiple of the alignment:
// they must not be part of another range.
//
// With TL_ONLY_TABLES a backend gives memory of the host, and nothing else: free_block, map and add_arena.
typedef struct tl_backend {
    void *self;  // first argument of all functions

#ifndef TL_ONLY_TABLES
    // Make a block. TL_ERROR_NO_MEMORY, with *block 0, if there is no memory for it. A backend that can
    // wait first waits for the work that still uses freed blocks.
    tl_result (*add_block)(void *self, tl_tier tier, uint64_t bytes, uint64_t *block);
#endif
    // Free a block in which no range is claimed any more. Work on it may be under way, or not even be
    // submitted: the backend keeps the bytes until that work has finished. TL_ERROR_CORRUPT if bytes
    // that were not claimed were written; the block is freed all the same.
    tl_result (*free_block)(void *self, uint64_t block);

#ifndef TL_ONLY_TABLES
    // Begin and end the lifetime of a range: its bytes count as live, their content is undefined. A range
    // may be released while work on it is under way. TL_ERROR_NO_MEMORY beyond the tier's capacity.
    tl_result (*claim)(void *self, tl_range range);
    tl_result (*release)(void *self, tl_range range);

    // Enqueue. Ranges lie in claimed ranges; source and target do not overlap.
    tl_result (*copy)(void *self, tl_range to, tl_range from);         // same bytes
    tl_result (*compress)(void *self, tl_codec codec, tl_range to, tl_range from);  // f32 -> codec
    tl_result (*expand)(void *self, tl_codec codec, tl_range to, tl_range from);    // codec -> f32
    tl_result (*fill)(void *self, tl_range to, uint32_t word);  // in the host's byte order; the tail is cut

    // Put all enqueued work on these ranges before the caller's next use of them: the CPU backend
    // finishes that work, a GPU records one barrier. Called before every kernel.
    tl_result (*order)(void *self, const tl_access *accesses, int32_t access_count);

    tl_result (*submit)(void *self, tl_ticket *ticket);  // end a batch of enqueued work; the caller
                                                         // submits it if the backend cannot
    tl_result (*poll)(void *self, tl_ticket ticket);     // TL_OK or TL_NOT_READY; never blocks
    tl_result (*wait)(void *self, tl_ticket ticket);     // submits the ticket's work and blocks
#endif

    // Give the host a pointer to a range, after `order` on it: waits until the work on it is finished, or
    // returns TL_NOT_READY if the backend cannot wait. unmap takes the same mode; the pointer is invalid
    // then, and the bytes written are in the range. Ranges that are mapped at the same time do not
    // overlap, unless all of them are only read. unmap with host 0 cancels a read that map answered with
    // TL_NOT_READY and that is not wanted any more. One that nobody fetches is cancelled when its room is
    // needed.
    tl_result (*map)(void *self, tl_range range, tl_map_mode mode, void **host);
#ifndef TL_ONLY_TABLES
    tl_result (*unmap)(void *self, tl_range range, tl_map_mode mode, void *host);

    // Verify guard bytes and dead bytes, if the backend has such checks: TL_ERROR_CORRUPT if some changed.
    tl_result (*check)(void *self);

    uint64_t (*now_ns)(void *self);  // a clock that never goes back; 0 = the backend has none
    void     (*limits)(void *self, tl_backend_limits *limits);
    void     (*counters)(void *self, tl_backend_counters *counters);
    void     (*reset_peaks)(void *self);  // peaks = present bytes, arena_bytes = 0

    // Accounts: all five functions, or none (0). Every run and every manager opens one for its lifetime and
    // claims on it, so that the backend counts and limits them apart, besides together, and refuses to be
    // freed while one is open. Without accounts, runs and managers use claim and release; with TL_NO_ACCOUNTS
    // the CPU backend has none, and no backend is asked for one.

    // Open an account.
    //
    //   limit_bytes   most live bytes of the account in each tier; 0 = no limit of its own
    //
    // Errors: TL_ERROR_NO_MEMORY; *account is 0 then.
    tl_result (*open_account)(void *self, const uint64_t limit_bytes[TL_TIER_COUNT], uint64_t *account);
    // Close an account. Ranges that are still claimed on it stay claimed, on no account.
    tl_result (*close_account)(void *self, uint64_t account);
    // As claim and release, on an account. A range is released on the account that it was claimed on.
    // TL_ERROR_OVER_BUDGET beyond the account's limit; TL_ERROR_STALE: the account was closed.
    tl_result (*claim_on)(void *self, uint64_t account, tl_range range);
    tl_result (*release_on)(void *self, uint64_t account, tl_range range);
    // Report what an account holds. With resets = 1 its peaks are set to the present bytes and its arena_bytes
    // to 0 first.
    tl_result (*measure_account)(void *self, uint64_t account, int32_t resets, tl_account_counters *counters);
#endif

    // Make a block for a run, as add_block does in bank 0: memory of its own of these bytes, rounded up to
    // granularity_bytes, and block_overhead_bytes, which goes back when the block is freed. 0 = add_block does
    // that for every block. Another backend may cut small blocks from memory that it keeps.
    tl_result (*add_arena)(void *self, tl_tier tier, int32_t bank, uint64_t bytes, uint64_t *block);

#ifndef TL_ONLY_TABLES
    // End the lifetime of what lies behind the first `bytes` bytes of a claimed range: these stay claimed, with
    // their content. account: on which the range was claimed, 0 = none; bytes: > 0, at most those of the range,
    // which is not mapped. 0 = the backend cannot: what turns out to be smaller than its bound stays whole.
    tl_result (*shorten)(void *self, uint64_t account, tl_range range, uint64_t bytes);
#endif
} tl_backend;

// One more memory of the device tier.
typedef struct tl_cpu_bank {
    void    *memory;              // of the caller
    uint64_t memory_bytes;        // room for an aligned byte at least
} tl_cpu_bank;

typedef struct tl_cpu_backend_desc {
    void    *memory;              // device tier in one block of the caller; 0 = each block from the env
    uint64_t memory_bytes;        // of that block
    uint64_t capacity_bytes[TL_TIER_COUNT];  // most bytes claimed at a time, and of a run
                                  // with its base_bytes; 0 = TL_UNLIMITED
    uint64_t alignment_bytes;     // 0 = 64; a power of two
    uint64_t (*now_ns)(void *user);  // the clock; 0 = that of the system, where it has one and
                                  // TL_NO_CLOCK is not set: clock_gettime; QueryPerformanceCounter, if
                                  // <windows.h> was included before the implementation. One that returns
                                  // 0 is none: every time is 0, nothing is measured
    void    *user;
    // For tests, not with TL_NO_CHECKS. checked = 1 fills dead ranges with a poison word, puts guard bytes
    // around blocks and maps copies of ranges (filled with poison if the mode is TL_MAP_WRITE): 64 bytes before
    // and after each block and each copy, or the alignment where that is more; those of a copy are looked at
    // when it is unmapped, after each call of a kernel. No budget and no plan counts guard bytes;
    // memory of the caller needs room for them. deferred = 1 delays work until it is polled, waited for or
    // ordered, or until a new block needs its memory, and carries it out in a random legal order that follows
    // from seed.
    int32_t  checked, deferred;
    uint64_t seed;
    const tl_cpu_bank *banks;     // [bank_count] banks 1, 2, .. of the device tier; `memory` is bank 0. Runs of
    int32_t  bank_count;          // plans that name them use them; below TL_MOST_BANKS. Read during the call
} tl_cpu_backend_desc;

// Make the CPU backend. It finishes work at once. Two variants are for tests. The deferred one finishes
// work late, so that a missing wait in its caller shows as wrong bytes. The checked one gives kernels
// copies of their ranges; it reports TL_ERROR_CORRUPT when a kernel wrote to a range that it may only read,
// one byte or more beside a range, to a dead range or beside a block, and a run names the kernel's op, the
// operand and the side. In a build with an address sanitizer that sees every access outside of a copy, reads
// too, and ends the program there. With TL_NO_CHECKS asking for one of them is TL_ERROR_UNSUPPORTED. With
// TL_ONLY_TABLES each memory is one block, of one run at a time, and capacities and clock are not read.
//
//   env       must outlive the backend, and gets the error text when one of its functions fails
//   backend   overwritten; release with tl_free_cpu_backend
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_UNSUPPORTED; *backend is all zero
//          then.
// Threads: one backend per thread, or behind the lock of a shared manager.
TLDEF tl_result tl_init_cpu_backend(tl_env *env, const tl_cpu_backend_desc *desc, tl_backend *backend);

// Free the CPU backend, with its blocks. Accepts NULL and a backend that is all zero.
//
// Errors:  TL_ERROR_INVALID_ARG: runs or managers still use it, the text tells how many; nothing is freed.
//          With TL_NO_ACCOUNTS they are not counted: the caller frees them first.
TLDEF tl_result tl_free_cpu_backend(tl_env *env, tl_backend *backend);

// A heap gives out blocks of a range of offsets (of device memory, of a file, of an arena) and never
// touches the memory itself. A block has an offset and an id. Neighbouring free blocks are joined.
typedef struct tl_heap tl_heap;

// Make a heap over so many bytes, all free; the env must outlive it.
//
//   bytes       rounded down to the alignment
//   alignment   of every offset and every block: a power of two; 0 = 1
//   heap        overwritten; release with tl_free_heap
//
// Errors:  TL_ERROR_INVALID_ARG: no byte, or an alignment that is no power of two; TL_ERROR_NO_MEMORY.
//          *heap is NULL then.
// Threads: one heap per thread.
TLDEF tl_result tl_init_heap(tl_env *env, size_t bytes, size_t alignment, tl_heap **heap);
TLDEF void      tl_free_heap(tl_heap *heap);  // accepts NULL

// Take a block, and free one. The block is cut from a free place of about its size, not always from the
// smallest that is large enough. tl_free_block ignores an id that stands for no block; ids are used again.
//
//   bytes   rounded up to the alignment
//   block   its id, > 0
//
// Errors:  TL_ERROR_INVALID_ARG: 0 bytes; TL_ERROR_NO_MEMORY: no free place is large enough, or no memory
//          for the table of blocks. *offset and *block are 0 then.
// Cost:    O(1); O(free places of about this size) if hardly any of them is large enough.
TLDEF tl_result tl_add_block(tl_heap *heap, size_t bytes, size_t *offset, int32_t *block);
TLDEF void      tl_free_block(tl_heap *heap, int32_t block);

// Report the free bytes, and those of the largest block that can be taken. Either may be NULL.
TLDEF void tl_measure_heap(const tl_heap *heap, size_t *free_bytes, size_t *largest_bytes);

#ifndef TL_NO_CODECS
// Convert on the host. Every backend must give the same bits. f16 and bf16: rounded to nearest even,
// infinities stay, a NaN becomes a quiet NaN. q8: in blocks of 32 values, scale = largest finite
// magnitude / 127 rounded to nearest even, code = x 127 / largest rounded to nearest even; infinities
// become +-127, NaN becomes -128. Expanding gives code x scale rounded to nearest even, limited to the
// largest finite number. Pointers need no alignment.
//
//   bytes   of the f32 side; a tail of fewer than 4 bytes is padded with zeroes
TLDEF void tl_compress_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes);
TLDEF void tl_expand_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes);
#endif

#ifndef TL_NO_PLANNERS
// -- what a device can do, measured --

typedef struct tl_measure_device_desc {
    const char *name;          // of the device; borrowed
    uint64_t    bytes;         // of the largest copy; 0 = 64 MiB; halved until the backend has room. Codecs
                               // are timed on a sixteenth of it
    int32_t     sample_count;  // samples of each time, of which the median is taken; 0 = 5; 1 .. 31
    // Run a kernel in this precision, wait until it is finished and set *flops to the FLOP that it did,
    // the same each time. TL_ERROR_UNSUPPORTED = not in this precision. 0 = on a host-visible backend a
    // loop of this library on one thread, f32 and f64; on others FLOP/s remain unknown.
    tl_result (*compute)(tl_precision precision, uint64_t *flops, void *user);
    void       *user;
    uint32_t    codecs;        // bits 1 << tl_codec to time, as far as the backend has them; 0 = all. Name
                               // those that plans are to use: q8 takes three times as long as bf16, or more
} tl_measure_device_desc;

// Measure a device for the planners, with the backend's own copies, codecs and clock. A call takes
// latency + bytes / rate, so each is timed at two sizes; what a call takes among others, by small copies
// each of which waits for the one before. Whether host copies run beside others, and beside those of the other
// direction, is timed as well, with copies on the device in the place of kernels: copy_channels, and what a
// wait for them costs, wait_latency_ns. Memory bytes/s count bytes read and bytes written. The link has a rate
// each way and the longer latency of both; of the codecs the slowest is reported. Capacities and alignment are
// those of the limits. A figure that cannot be measured, for lack of memory, of a host tier or of a kernel,
// stays 0.
// A precision counts as supported if its FLOP/s were measured; one below f32 only if it is not slower than f32.
//
//   desc     0 = all defaults
//   device   overwritten
//
// Errors:  TL_ERROR_INVALID_ARG; TL_ERROR_UNSUPPORTED: the backend cannot wait, or its clock stands still;
//          TL_ERROR_KERNEL: compute failed; and those of the backend. *device is all zero then.
// Cost:    three times `bytes` of memory while it runs; the same calls each time, which the counters and
//          peaks of the backend include.
// Threads: as the backend.
TLDEF tl_result tl_measure_device(tl_env *env, const tl_backend *backend,
                                  const tl_measure_device_desc *desc, tl_device *device);
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

