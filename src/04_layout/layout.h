#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [4] LAYOUT -- put buffers with lifetimes at offsets
// ============================================================================
//
// Buffers that are never live at the same step may share bytes. Where each lies decides how large
// an arena must be:
//
//     offset
//       ^   +-----------+---------+
//       |   |     b     |    d    |      a buffer is a rectangle: steps wide, bytes high. A
//       |   +-------+---+---+-----+      layout puts rectangles at heights at which no two
//       |   |   a   |   c   |     |      overlap; the arena is as high as the highest of them
//       |   +-------+-------+     |
//       +--------------------------> step
//
// The height is at least the largest sum of bytes that are live at one step. Fast passes put the
// buffers, in several orders, into the lowest gap that is free over their whole lifetime, or stack them
// as they begin, each beside one that outlives it by little, from both ends of every gap. If the
// height is above the bound then, an exact search tries to reach it, or to prove that nothing does:
// buffers are placed in the order of their offsets, each as low as those before it allow, which
// misses no layout; sections of time whose buffers no longer fit below the height cut branches, and
// where no unplaced buffer spans a point in time, the sides of it are searched apart.
//
// Memory that comes in blocks, as where one allocation has a largest size, is one range of offsets, cut at the
// multiples of block_bytes: buffer b is in block offsets[b] / block_bytes, at offsets[b] % block_bytes.
//
// The layout knows nothing of graphs and plans. All arithmetic is in integers; limits are numbers of
// elementary steps: the same desc gives the same layout on every machine.
//
// References: Moffitt, MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
// Learning, ASPLOS 2023. Pisarchyk, Lee, Efficient Memory Management for Deep Neural Net Inference,
// 2020, arXiv:2001.03288 (greedy by size).
// ============================================================================

#ifndef TL_ONLY_TABLES
// Steps at which a buffer takes fewer of its bytes.
typedef struct tl_layout_gap {
    int64_t  first_step, last_step;  // of its lifetime; first_step <= last_step
    uint64_t first_byte, bytes;      // what it takes meanwhile, from its beginning; bytes 0 = none
} tl_layout_gap;

typedef struct tl_layout_buffer {
    uint64_t bytes;             // 0 = takes no place, its offset is 0
    int64_t  first_step, last_step;  // first and last step at which it is live; first_step <= last_step
    uint64_t alignment;         // of its offset, a power of two; 0 = 1
    int32_t  is_pinned;         // 1 = its offset is pinned_offset
    int32_t  gap_count;         // 0 = it takes all of its bytes at all of its steps
    uint64_t pinned_offset;     // a multiple of the alignment
    int32_t  in_place;          // 1 = may begin where buffer `over` does, whose last step is its first one
    int32_t  over;              // number of that buffer
    const tl_layout_gap *gaps;  // [gap_count], each behind the one before it
} tl_layout_buffer;

typedef struct tl_layout_progress {
    uint64_t work, work_limit;  // elementary steps so far; the number after which planning ends
    uint64_t height_bytes;      // of the lowest layout that was known when the present search began
    uint64_t bound_bytes;       // no layout is lower
} tl_layout_progress;

typedef struct tl_layout_desc {
    const tl_layout_buffer *buffers;  // [buffer_count]
    int32_t  buffer_count;
    uint64_t capacity_bytes;    // most that the layout may take; 0 = no limit
    uint64_t work_limit;        // elementary steps of a few ns; 0 = 100 million; 1 = one fast pass
    int    (*progress)(const tl_layout_progress *progress, void *user);  // 1 = stop with the lowest so far
    void    *user;              // passed to progress
    uint64_t block_bytes;       // no buffer lies on both sides of a multiple of it; 0 = any may
} tl_layout_desc;

typedef struct tl_layout_plan {
    uint64_t *offsets;          // [buffer_count]
    int32_t   buffer_count;
    uint64_t  height_bytes;     // largest offset + bytes
    uint64_t  bound_bytes;      // no layout is lower
    int32_t   proven;           // 1 = height_bytes equals bound_bytes
    uint64_t  work;             // elementary steps done
} tl_layout_plan;

// Place buffers so that the layout is as low as possible.
//
//   desc   its buffers may be in any order; its progress function is called about every million steps
//          of the search
//   plan   overwritten; release with tl_free_layout_plan
//
// A buffer that may lie over another either begins at the same offset as that one, or shares no byte
// with it. A buffer with gaps neither lies over another nor under one; one that takes no bytes at any step has
// offset 0. Pins, capacity and blocks are kept; a buffer with gaps lies in one block with all of its bytes. A
// layout that fits the capacity is still lowered while there is work. Where gaps leave some bytes of a buffer,
// the search does not try every layout: the bound is the largest sum. No layout with gaps is higher than that
// of the same buffers without.
//
// Errors:  TL_ERROR_INVALID_ARG: a lifetime that is reversed, an alignment that is no power of two, a pin
//          that is no multiple of it, does not fit the capacity or overlaps another, an `over` that names no
//          buffer or one that ends at another step, a buffer that two others lie over, gaps out of order or
//          outside of the lifetime or the bytes of their buffer, block_bytes that are no multiple of an
//          alignment, a pin that lies on both sides of a multiple of them; TL_ERROR_OVERFLOW: the bytes of all
//          buffers together, aligned, do not fit 61 bits; TL_ERROR_INFEASIBLE: a buffer that is larger than a
//          block, by number and bytes; or no layout that fits the capacity: the height of the one found
//          and the bound are the values of the error and in *plan, without offsets;
//          TL_ERROR_NO_MEMORY. After all other errors *plan is all zero.
// Cost:    O(buffers log buffers) and the pairs of buffers that are live together, for each order tried;
//          at most work_limit and a pass of O(buffers log buffers), where buffers have gaps at most twice
//          that. Memory: less than 100 bytes a buffer, with gaps 180 and 100 for each of them; the search, of
//          up to 16384 buffers between two points that none spans, up to 48 MiB.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_layout(tl_env *env, const tl_layout_desc *desc, tl_layout_plan *plan);
TLDEF void      tl_free_layout_plan(tl_env *env, tl_layout_plan *plan);  // accepts a zeroed plan

#ifndef TL_NO_PLANNERS
// -- banks --
//
// A machine may have several memories: a few fast kilobytes beside a large slow one (TCM, SRAM, PSRAM), or
// memory of a device beside memory that the host sees. Each has a capacity, and a price of a byte moved to or
// from it. What is moved most for the bytes and steps that it takes should live in the cheapest:
//
//     TCM    |[--a--][-c-]  |    64 KiB,  price 1       cost = sum of moved bytes x price of their bank
//     SRAM   |[-----b------]|   256 KiB,  price 2       and in each bank a layout that fits its capacity
//     PSRAM  |   [-----d---]|  no limit,  price 16
//
// The bound is Lagrange's: in each section of time a byte in a bank costs a multiplier more, instead of being
// limited, and what the capacity is worth at the multipliers is subtracted; they are raised where a bank is too
// full. They also order the buffers for passes into the lowest gap of the cheapest bank, of which the results
// are improved by moves and by exchanges; then a search, which the bound cuts, tries to prove the best of them.
//
// Reference: Fisher, The Lagrangian Relaxation Method for Solving Integer Programming Problems, Management
// Science 27, 1981.

#endif
typedef struct tl_bank {
    uint64_t capacity_bytes;    // 0 = no limit
    uint64_t price;             // of a byte moved, in any unit that all banks share; 0 = free
    uint64_t alignment;         // of every offset in it, a power of two; 0 = 1
} tl_bank;

#ifndef TL_NO_PLANNERS
typedef struct tl_bank_desc {
    const tl_layout_buffer *buffers;  // [buffer_count] as in tl_layout_desc; a pin is an offset in the bank
    const uint64_t *moved_bytes;      // [buffer_count] read and written in its life; NULL = its bytes, once
    const uint32_t *allowed;          // [buffer_count] bit b = may live in bank b; 0, NULL = any
    const tl_bank  *banks;            // [bank_count]
    int32_t  buffer_count, bank_count;  // bank_count: 1 to 32
    uint64_t work_limit;              // elementary steps of a few ns; 0 = 100 million + 20 000 a buffer
} tl_bank_desc;

typedef struct tl_bank_plan {
    uint64_t *offsets;          // [buffer_count] in its bank
    uint64_t *heights;          // [bank_count] largest offset + bytes in each
    int32_t  *banks;            // [buffer_count] where it lives
    int32_t   buffer_count, bank_count;
    uint64_t  cost;             // sum of moved bytes x price
    uint64_t  bound_cost;       // no plan costs less
    int32_t   proven;           // 1 = the two are equal
    uint64_t  work;             // elementary steps done
} tl_bank_plan;

// Choose a bank and an offset in it for each buffer, so that moving costs as little as possible.
//
//   desc   its arrays may be freed after the call
//   plan   overwritten; release with tl_free_bank_plan
//
// In each bank the buffers keep the rules of tl_plan_layout. One that may lie over another does so only where
// both live in one bank.
//
// Errors:  those of tl_plan_layout for buffers; TL_ERROR_INVALID_ARG: a buffer with gaps, no bank or more
//          than 32, an alignment that is no power of two, an allowed bank that does not exist, a pin that none
//          of its banks can hold, pins of buffers that live in one bank at one step and overlap;
//          TL_ERROR_OVERFLOW: all buffers in their dearest bank cost 2^56 or more; TL_ERROR_INFEASIBLE: a
//          buffer that is larger than each of its banks, by number and bytes; or a bank that is too small,
//          by number, with a capacity that would do if the others stay (env->error.values);
//          TL_ERROR_NO_MEMORY. *plan is all zero then.
// Cost:    O(buffers log buffers) and the pairs of buffers that are live together in a bank, for each pass; at
//          most work_limit, a pass, and a layout of each bank. Memory: less than 260 bytes a buffer, and 100
//          more for each bank with a capacity; searches of offsets up to 48 MiB.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_banks(tl_env *env, const tl_bank_desc *desc, tl_bank_plan *plan);
TLDEF void      tl_free_bank_plan(tl_env *env, tl_bank_plan *plan);  // accepts a zeroed plan
#endif
#endif  // TL_ONLY_TABLES

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

