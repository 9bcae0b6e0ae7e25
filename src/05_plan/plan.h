#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [5] PLAN -- steps, the simulator, checkpoint configs; plans as text and C tables
//
//     F 1  F 2  F 3  D 2  B 3  F 2  B 2  B 1
//     ---------------------------------------    tensor 2 is dropped after its
//     1    ################################       last use in the forward pass
//     2         #######             #######       and made again for B 2:
//     3              ############                 less memory, one more forward
//
// Here each backward reads the output of its node (needs "out"). A plan is a list of steps over the nodes and
// tensors of a graph. The simulator
// replays it and says whether it is valid, what it costs, and its two peaks: the
// largest sum of live bytes, and with offsets the high-water mark of the arena.
// Copies end at an explicit WAIT, so peaks depend on the order of steps alone,
// never on timing. Each backward runs once, in reverse order of the node list (unless tl_plan.any_order).
//
// Every plan, whatever made it, can be copied, replayed with functions of the caller (tl_replay_plan),
// explained in plain text (tl_explain_plan), and written: as a schedule, or with its graph as const C
// tables (tl_write_plan_table), which programs without planners replay.
//
// References: Griewank, Walther, Algorithm 799: Revolve, 2000. Chen et al., Training Deep
// Nets with Sublinear Memory Cost, 2016, arXiv:1604.06174, section 3.
// ============================================================================

// id, letters in a schedule, what must hold -> effect
#define TL_STEPS(X) \
    X(TL_STEP_FORWARD,         "F",  "inputs resident, an output missing -> makes the missing outputs")      \
    X(TL_STEP_FORWARD_INPLACE, "I",  "as F, inplace allowed -> the input's bytes become output 0")           \
    X(TL_STEP_FORWARD_SAVE,    "S",  "as F, saved missing -> also makes saved")                              \
    X(TL_STEP_BACKWARD,        "B",  "forward ran, consumers' B done, needs and saved resident -> gradients") \
    X(TL_STEP_DROP,            "D",  "resident or compressed -> frees the bytes")                            \
    X(TL_STEP_DROP_SAVED,      "DS", "saved resident -> frees it")                                           \
    X(TL_STEP_SPILL,           "O",  "resident, no host copy -> starts copying to the host")                 \
    X(TL_STEP_FETCH,           "L",  "absent, host copy -> allocates and starts copying back")               \
    X(TL_STEP_WAIT,            "W",  "copy under way -> after O the device bytes are freed, after L resident") \
    X(TL_STEP_DROP_HOST,       "DH", "host copy, none under way -> frees the host bytes")                    \
    X(TL_STEP_COMPRESS,        "C",  "resident -> compressed; lossy")                                        \
    X(TL_STEP_EXPAND,          "X",  "compressed -> resident")

#define TL_CODECS(X) \
    X(TL_CODEC_NONE, "none", "raw bytes")                                            \
    X(TL_CODEC_F16,  "f16",  "f32 as IEEE binary16, round to nearest even: half the bytes") \
    X(TL_CODEC_BF16, "bf16", "the upper half of an f32, round to nearest even: half the bytes") \
    X(TL_CODEC_Q8,   "q8",   "blocks of 32 f32 as one f32 scale and 32 int8: 36 bytes for 128")

typedef enum tl_step_kind { TL_STEPS(TLI_ENUM) TL_STEP_COUNT } tl_step_kind;
typedef enum tl_codec     { TL_CODECS(TLI_ENUM) TL_CODEC_COUNT } tl_codec;

// One step. Its fields have fixed widths, so that a plan can be a const table on any ABI.
typedef struct tl_step {
    uint8_t  kind;      // tl_step_kind
    uint8_t  codec;     // tl_codec, TL_STEP_COMPRESS only
    uint16_t slot;      // the micro-batch that it acts on, below tl_plan.slot_count
    int32_t  node;
    int32_t  output;    // D, O, L, W, DH, C, X: -1 = every output it can act on; other kinds: always -1
    int32_t  begins;    // 1 = F or B begins a call, and a later W of the node ends it; else 0
} tl_step;

#define TL_ALL_OUTPUTS (-1)  // tl_step.output: every output that the step can act on, DH alone also on none

// -- what steps allocate and free --
//
// A replay with an allocator of its own needs these rules and no others; tl_simulate_plan counts by them.
// A kernel writes all outputs of its node: one that is still resident is written into a second copy, which
// nobody reads.
// v is a node, T one output of a node (with TL_ALL_OUTPUTS: each output in the state that is named, one
// after the other). A tensor is absent, resident, leaving (O until W), coming (L until W) or compressed.
//
//   step       allocates                                   frees
//   the start  every output of every graph input; then     nothing; steps free inputs that die, no others
//              the tensors of the entry, which are like
//              any other: a node whose outputs are all
//              in the entry has run
//   F v        1. each absent output of v                  at the end of the call: 2. and 3.
//              2. a second copy of each other output
//              3. fwork
//   I v        as F, but output 0 takes over the bytes     as F; the input is absent, its bytes are
//              of input `inplace`, and has no second copy  output 0
//   S v        as F, and saved(v) before the scratch,      as F; saved(v) stays until B v or DS v
//              which is swork; if all outputs are
//              resident, no second copies
//   F v begin  the outputs of v, all absent; v has no      nothing: they are coming until W v
//              scratch and no saved bytes
//   B v        1. the gradient of each output of v         at the end of the call: bwork, the gradient
//              2. the gradient of each input of v whose    of EVERY output of v, and saved(v)
//                 node has a backward
//              both only where there is none yet
//              3. bwork
//   B v begin  1. and 2. of B v, which has no scratch      nothing before W v
//              and no saved bytes
//   W v        nothing                                     ends the call that was begun: what F made is
//                                                          resident; of B, the gradient of every output
//   D T        nothing                                     resident T: its bytes; compressed T: its
//                                                          compressed copy
//   DS v       nothing                                     saved(v)
//   O T        the host copy of resident T                 nothing: T is leaving, still readable
//   L T        absent T, from its host copy                nothing: the host copy stays
//   W T        nothing                                     leaving T: its device bytes, now absent;
//                                                          coming T: nothing, now resident
//   DH T       nothing                                     the host copy of T
//   C T codec  the compressed copy of resident T           then the bytes of T
//   X T        compressed T                                then its compressed copy
//   the end    nothing                                     the caller frees what is left: graph inputs,
//                                                          outputs without D, saved bytes, host copies
//
// Where slot_count micro-batches are under way together, all of this exists once in each slot, graph inputs
// too (fixed ones as well: their bytes are the same for every micro-batch, what they hold need not be). A step
// sees and changes its own slot alone, and each slot keeps every rule by itself, also the order of backwards.
// States are the same for all micro-batches: a plan of a graph that has some has one slot.
//
// Where k = in_flight steps may be under way together, what step i frees is free for what step i + k and later
// ones allocate, whenever step i ends: while step j runs, nothing of what steps j - k + 1 to j use is given
// away. Steps of every kind count. In the table above that is k = 1, but that C and X on several outputs free
// one after the other; with k > 1 they, too, free nothing before step i + k. At the end nothing is under way.
//
//     k = 2     F 1    F 2    D 1    F 3    F 4
//     of 1      ###########################                  D 1 is step 2: free for step 4
//
// Between F v begin, or B v begin, and W v the call is under way beside other steps, as a message or work of
// another processor is: what it reads stays readable, but is not dropped, moved or overwritten; nobody reads,
// adds to or drops what it writes; v takes no other step in its slot. in_flight is 0 or 1 then. B v begin has
// its place in the order of the backwards, and W v, always of the whole node, lets those of the nodes that v
// reads run. Every call has ended at the end. What a kernel sums beside its operands over several slots, it
// sums in the order in which its calls do their work.
//
// So a gradient lives from the first backward that contributes to it to the backward of the node that made
// its tensor, no step names it, and none is left at the end of a training plan. Weights and their gradients
// are allocated by no step: they are the base. The peak is the largest sum of device bytes at any moment.
//
// Weights that the graph owns are states ([3]): every output of a state is allocated at the start, as those of
// graph inputs are, and stays. B p of a state p is its update, its only step, and begins no call: every
// backward that reads the weight has run, no call under way reads it, no forward reads it behind that. B p has
// no place in the order of the others. It allocates a gradient of the weight where no backward did, and bwork,
// and frees both. A state that holds its gradient has it among its outputs, so no step allocates or frees it;
// where steps are repeated all states do, and of the repetitions the last one updates.

// A tensor that is resident when a plan starts: a result kept from an earlier run.
typedef struct tl_entry {
    int32_t node, output;        // not of a graph input
    int32_t slot;                // the micro-batch whose result it is
} tl_entry;

// A tier is a kind of memory: device or host. A bank is one memory of a tier (the heap of a GPU; TCM, SRAM
// and PSRAM of a microcontroller). A block is what a run takes from a backend: a part of one bank, at offsets
// of the tier that no other block has. No place crosses the end of a block:
//
//     offsets of the device   0 . . . . . . 4096 . . . . . . 8192 . . . . . . 12288
//     blocks                  |--- block 0 ---|--- block 1 --|--- block 2 ----|
//                             |----------- bank 0 -----------|---- bank 1 ----|

#define TL_MOST_BANKS 8    // of a tier

typedef struct tl_plan_block {
    uint64_t offset;    // of its tier at which it begins; a multiple of the plan's alignment
    uint64_t bytes;     // > 0; a run takes those up to the end of the highest place in it
    uint8_t  tier;      // tl_tier: 0 = device, 1 = host
    uint8_t  bank;      // below TL_MOST_BANKS
    uint16_t reserved;  // 0
} tl_plan_block;

// Steps and offsets in narrow numbers, as tables for small memories hold them. They are read where they are.
typedef struct tl_narrow_plan {
    const uint16_t *steps;          // [step_count][step_words] kind + 16 x codec + 256 x (output + 1), node,
                                    // and with 3 words slot; of F and B begins in the place of codec
    const void     *offsets;        // [offset_count] of uint16_t or uint32_t, in units; 0 = none
    const void     *host_offsets;   // [host_offset_count] the same
    uint64_t        unit_bytes;     // of all offsets; > 0
    int32_t         step_words;     // 2 or 3
    int32_t         offset_bytes;   // 2 or 4: the width of an offset
} tl_narrow_plan;

typedef struct tl_plan {
    const tl_step  *steps;       // [step_count]
    int32_t         step_count;
    int32_t         repeat_count;   // micro-batches: how often the steps are repeated; 0 = 1
    const uint64_t *offsets;     // [offset_count] of each device allocation (tl_simulate_plan); 0 = none
    int32_t         offset_count;
    const uint64_t *host_offsets;   // [host_offset_count] of each host copy, in an arena of the host; 0 = none
    int32_t         host_offset_count;
    int32_t         inference;   // 1 = forward only: no B, ends with its results resident
    int32_t         any_order;   // 1 = backwards in any valid order, not only in reverse order of the list
    uint64_t        peak_bytes;      // largest sum of live bytes
    uint64_t        arena_bytes;     // aligned high-water mark, summed over blocks; 0 without offsets
    uint64_t        host_peak_bytes; // largest sum of host copies
    uint64_t        host_arena_bytes;  // aligned high-water mark of these; 0 without host offsets
    uint64_t        base_bytes;      // weights, their gradients, optimizer: not in the peak, in the budget
    uint64_t        cost;            // of one repetition: time at which its last F, I, S, B, C, X or W ends,
                                     // where copies take turns with kernels also O or L
    uint64_t        base_cost;       // every forward and backward once
    uint64_t        bound_cost;      // lower bound on the cost of plans of its class; 0 = not known
    void           *memory;          // what tl_free_plan releases; 0 = nothing (a const table)
    uint64_t        alignment_bytes; // the offsets are multiples of it, a power of two; 0 = 1
    const tl_entry *entry;           // [entry_count] resident at the start, no tensor twice; 0 = nothing
    int32_t         entry_count;
    int32_t         slot_count;      // micro-batches that are under way together in one repetition, at most
                                     // 65536; 0 = 1
    const tl_plan_block *blocks;     // [block_count] the device's first, each tier's by offset
    int32_t         block_count;     // a tier without blocks is one, from offset 0, of bank 0
    int32_t         in_flight;       // steps that may be under way together, from 1 on; 0 = 1. Peaks and places
                                     // are those of so many; the places hold for fewer, too
    const tl_narrow_plan *narrow;    // what is read where steps, offsets or host_offsets are 0 and their count
                                     // is not; 0 = nothing
} tl_plan;

// Read one step, or the offset of one allocation (is_host: of one host copy), of any plan, narrow or not. The
// index must be below the plan's count of them.
TLDEF tl_step  tl_find_step(const tl_plan *plan, int32_t index);
TLDEF uint64_t tl_find_offset(const tl_plan *plan, int32_t number, int is_host);

// The result of one replay of a plan.
typedef struct tl_report {
    uint64_t peak_bytes, arena_bytes, host_peak_bytes, host_arena_bytes;  // as in tl_plan
    uint64_t end_bytes;         // device bytes still live after the last step, inputs included
    uint64_t end_host_bytes;    // host copies still held after it
    uint64_t cost;              // as in tl_plan
    uint64_t compute_cost;      // sum of the costs of all forwards and backwards
    uint64_t base_cost;         // every forward and backward once
    int32_t  forward_count;     // F, I and S steps
    int32_t  recompute_count;   // how many of them run a node that had run before
    int32_t  backward_count;    // B steps
    int32_t  copy_count;        // O and L, per tensor
    int32_t  codec_count;       // C and X, per tensor
    int32_t  allocation_count;  // device allocations, with scratch and gradients
    int32_t  host_allocation_count;  // host copies
    int32_t  peak_step;         // the first step that reaches the peak; -1 = before the first
    int32_t  broken_step;       // TL_ERROR_INVALID_PLAN: the first broken step (step_count: the end; 0 also for
                                // the entry, and for slots and repetitions that states refuse); else -1
} tl_report;

#ifndef TL_ONLY_TABLES
typedef struct tl_simulate_desc {
    const tl_graph  *graph;       // not NULL
    const tl_plan   *plan;        // not NULL; steps, entry, places, blocks, slots and flags are read
    const tl_device *device;      // 0 = copies and conversions take no time; the stricter alignment counts
    uint64_t        *live_bytes;  // [step_count] highest live bytes during each step; may be 0
    uint64_t        *host_bytes;  // [step_count] host bytes after each step; may be 0
    uint64_t        *start_cost;  // [step_count] time at which each step begins, O and L on the link; may be 0
    uint64_t        *end_cost;    // [step_count] time at which each step ends; may be 0
    uint64_t        *block_bytes; // [block_count of the plan] aligned high-water mark of each block; may be 0
} tl_simulate_desc;

// Replay a plan and report. The steps are replayed once: each repetition starts in the same state,
// so peaks do not depend on repeat_count.
//
// The allocations of a plan are numbered from 0: first every output of every graph input, slot by slot, then
// those of the entry, then those of each step in this order. F, I, S: each missing output; outputs made twice;
// saved; fwork (S: swork). B: the gradients of its outputs that no other backward has made, the gradients
// of its inputs that it makes, bwork. L: each tensor. C: each compressed copy. X: each tensor.
// plan->offsets[k] places allocation k; no two live allocations may overlap, and each lies inside of one block.
// In place, output 0 takes over its input's allocation. 0 bytes are no allocation. C and X convert several
// outputs one after the other: both copies of one tensor live until its own conversion ends. Host copies are
// numbered by themselves, in the order in which O makes them: plan->host_offsets[k] places copy k.
//
// Errors:  TL_ERROR_INVALID_PLAN with the first broken rule (report->broken_step is set, the rest
//          of *report is zero); TL_ERROR_INVALID_ARG: a count of the plan without its array, a flag, an
//          alignment or a block; TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW, and those of tl_check_graph and
//          tl_check_device.
// Cost:    O(steps + slots x tensors), and O(log allocations) for each one that has an offset; memory
//          O(slots x tensors), and 20 bytes an offset, 28 of a narrow plan.
// Threads: safe with one env per thread.
TLDEF tl_result tl_simulate_plan(tl_env *env, const tl_simulate_desc *desc, tl_report *report);

// Replay the plan and fill in its peaks, cost and base cost.
//
// Errors:  as tl_simulate_plan; peaks and costs are 0 then.
TLDEF tl_result tl_measure_plan(tl_env *env, const tl_graph *graph, const tl_device *device, tl_plan *plan);
#endif  // TL_ONLY_TABLES

#ifndef TL_NO_PLANNERS
// Copy a plan with its steps, entry, offsets and blocks, for example a const table, whose narrow numbers become
// plain arrays, or the record of an online run (tl_find_run_plan), which can then be simulated, improved,
// written and replayed.
//
//   copy   overwritten; must not be the plan itself; release with tl_free_plan
//
// Errors:  TL_ERROR_INVALID_ARG: counts without arrays; TL_ERROR_NO_MEMORY. *copy is all zero then.
//          TL_ERROR_INVALID_ARG: copy is the plan itself, which stays as it is.
// Cost:    O(steps + offsets), one allocation.
TLDEF tl_result tl_copy_plan(tl_env *env, const tl_plan *plan, tl_plan *copy);
#endif

// Free a plan.
TLDEF void        tl_free_plan(tl_env *env, tl_plan *plan);  // accepts zeroed plans and const tables

#ifndef TL_ONLY_TABLES
// -- lifetimes and places --

// id, name, what is allocated
#define TL_USES(X) \
    X(TL_USE_INPUT,      "input",      "an output of a graph input, from the start on")          \
    X(TL_USE_OUTPUT,     "output",     "an output of a node, or of an input that was fetched")   \
    X(TL_USE_SECOND,     "second",     "an output that is resident and made again, for the call") \
    X(TL_USE_GRADIENT,   "gradient",   "the gradient of an output")                              \
    X(TL_USE_SAVED,      "saved",      "the saved bytes of a node")                              \
    X(TL_USE_SCRATCH,    "scratch",    "fwork, swork or bwork of a node, for the call")          \
    X(TL_USE_COMPRESSED, "compressed", "the compressed copy of an output")                       \
    X(TL_USE_HOST,       "host",       "the host copy of an output")                              \
    X(TL_USE_STATE,      "state",      "a weight, a moment, or a gradient that its state holds")

typedef enum tl_use { TL_USES(TLI_ENUM) TL_USE_COUNT } tl_use;

// One allocation of a plan. use, node, output, slot and occurrence name it.
typedef struct tl_lifetime {
    uint64_t bytes;        // > 0
    uint64_t offset;       // where plan->offsets, or host_offsets, puts it; 0 without
    tl_use   use;
    int32_t  node, output;  // output: 0 for saved bytes and scratch
    int32_t  occurrence;   // so many of the same use, node, output and slot came before, of 0 bytes too; input
                           // and output count as one use
    int32_t  first_step, end_step;  // it lives in the steps k with first_step <= k < end_step
    int32_t  number;       // in plan->offsets, of host copies in plan->host_offsets
    int32_t  over;         // written in place: the lifetime that it takes over, of the same number; else -1
    int32_t  slot;         // of its micro-batch
    int32_t  block;        // in plan->blocks; -1 = its tier is one block
    int32_t  bank;         // of that block; 0 without
    int32_t  free_step;    // the step that frees it, or hands it over in place; step_count: none does
    uint64_t moved_bytes;  // what steps read and write of it: its bytes for each kernel operand, copy and
                           // conversion; a gradient that is added to, and scratch, are read and written
} tl_lifetime;

typedef struct tl_lifetimes {
    tl_lifetime *items;    // [count] in the order in which they begin
    int32_t      count;
} tl_lifetimes;

// Find every allocation that the steps of a plan make, on the device and on the host.
//
//   lifetimes   overwritten; release with tl_free_lifetimes
//
// What a step frees before it allocates, or frees and nothing else, does not live in that step; what it frees
// at the end of its call, or after a conversion, does. With k = plan->in_flight > 1 what step i frees lives up
// to step i + k. What is never freed, or not before the end, ends at step_count.
//
// Errors:  those of tl_simulate_plan; *lifetimes is all zero then.
// Cost:    one replay; 72 bytes an allocation, and as much again while the list grows.
// Threads: safe with one env per thread.
TLDEF tl_result tl_find_lifetimes(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                  tl_lifetimes *lifetimes);
TLDEF void      tl_free_lifetimes(tl_env *env, tl_lifetimes *lifetimes);  // accepts zeroed ones

// Name a use.
TLDEF const char *tl_name_use(tl_use use);  // "gradient"; "?" if it is out of range

// -- replay: a plan carried out with functions of the caller --
//
//     tl_replay_plan --> allocate  each lifetime that begins: input, output, gradient, scratch, host copy, ..
//                    --> call      F, I, S, B: the kernel of a node, with what was allocated as its operands
//                    --> copy      O, L, W, C, X: to the host and back, into a codec and back
//                    --> release   each lifetime that ends
//
// By the rules of "what steps allocate and free", without a backend and without anything else of a run: for
// those who have memory, kernels and copies of their own.

// What a gradient holds when a backward is called.
#define TL_STARTS(X) \
    X(TL_START_FILLED, "filled", "what earlier calls left in it; also of all that is no gradient")        \
    X(TL_START_ZERO,   "zero",   "nothing yet: the caller fills it with zeroes first, or writes it")      \
    X(TL_START_LOSS,   "loss",   "nothing yet, and no node reads the tensor: the caller fills it, say with 1")

typedef enum tl_start { TL_STARTS(TLI_ENUM) TL_START_COUNT } tl_start;

// An operand of a call or a copy.
typedef struct tl_replay_operand {
    void     *memory;    // what allocate returned; NULL = not present: not needed, not wanted, or of 0 bytes
    int32_t   lifetime;  // in tl_replay_call.lifetimes; -1 = not present
    tl_start  start;     // of gradients
    uint64_t  offset, bytes;  // of memory: the part that the call has, which is all of it but where it is for a
                         // piece (TL_STATE_PIECES)
} tl_replay_operand;

// One call of a kernel. Counts are those of the node. The backward of a node that reads states in pieces is
// called once for all other gradients, then for each piece: with its gradient alone, a part of the scratch, and
// then, with step.node = the state, to update the same rows.
typedef struct tl_replay_call {
    const tl_graph          *graph;
    const tl_lifetime       *lifetimes;
    tl_step                  step;            // F, I, S or B
    int32_t                  index;           // of the step
    int32_t                  recompute;       // 1 = this forward ran before, in this slot
    int32_t                  outputs_ready;   // S: 1 = no byte of the outputs is made, saved only
    const tl_replay_operand *inputs;          // [input_count] in place: one is outputs[0]; B: those it needs
    const tl_replay_operand *outputs;         // [output_count] second copies where there are; B: those it needs
    const tl_replay_operand *output_grads;    // [output_count] B; not present in other steps
    const tl_replay_operand *input_grads;     // [input_count] B: add (+=), in this order
    tl_replay_operand        saved, scratch;
    int32_t                  first, count, total;  // rows of a piece, of all rows; 0, 0, 0 = not for a piece
} tl_replay_call;

// One copy of a tensor, or of its part in a conversion.
typedef struct tl_replay_copy {
    const tl_graph    *graph;
    const tl_lifetime *lifetimes;
    tl_step            step;       // O, L: begin to copy. W: wait for the copy. C, X: convert. With
                                   // the one output, never TL_ALL_OUTPUTS; X with the codec of C
    int32_t            index;      // of the step
    tl_replay_operand  to, from;   // W: those of the copy that it waits for
} tl_replay_copy;

typedef struct tl_replay_desc {
    const tl_graph *graph;     // not NULL
    const tl_plan  *plan;      // not NULL
    // Get memory for a lifetime, or find it: life->offset, where the plan has places. *memory may be any
    // address but NULL. That of a graph input, or of the entry, must hold the tensor when allocate returns.
    tl_result (*allocate)(const tl_lifetime *life, void **memory, void *user);
    // Take memory back. Where life->free_step is the plan's step_count no step freed it: graph inputs, results,
    // and what else was left.
    void      (*release)(const tl_lifetime *life, void *memory, void *user);
    tl_result (*call)(const tl_replay_call *call, void *user);  // run a kernel
    tl_result (*copy)(const tl_replay_copy *copy, void *user);  // 0 = the plan must have no O, L, W, C, X
    void       *user;
} tl_replay_desc;

// Replay the steps of a plan once with functions of the caller; of a plan with a repeat_count, one repetition a
// call. The plan is simulated first: nothing is called where it is not valid.
//
// What a step frees after its call is released after it; a step with several outputs converts one after the
// other. What is written in place is not allocated: it keeps the memory of the input, in whose place its own
// lifetime is released. 0 bytes are never allocated, copied or released. At the end, and where a function
// fails, all that is left is released, in the order in which it was allocated.
//
// Errors:  those of tl_simulate_plan; TL_ERROR_INVALID_ARG: the plan has copies and desc has not;
//          TL_ERROR_UNSUPPORTED: it begins calls that other steps end; what a function of the caller returned,
//          with the step in the sentence.
// Cost:    that of tl_find_lifetimes, and O(steps + operands); 16 bytes an allocation more.
// Threads: safe with one env per thread.
TLDEF tl_result tl_replay_plan(tl_env *env, const tl_replay_desc *desc);
TLDEF const char *tl_name_start(tl_start start);  // "zero"; "?" if it is out of range

typedef struct tl_places_desc {
    const tl_graph  *graph;     // not NULL
    const tl_device *device;    // its alignment_bytes holds for every place; 0 = 1
    uint64_t         work_limit;  // elementary steps, as in tl_layout_desc; 0 = 100 million; 1 = one fast pass
    const tl_bank   *banks;     // [bank_count] of the device, and what a byte moved in each costs
    int32_t          bank_count;  // at most TL_MOST_BANKS; 0 = one bank without a limit
    uint64_t         block_bytes;  // every bank, and the host's, is cut into blocks of at most so many bytes,
                                // rounded down to the alignments; 0 = not cut
} tl_places_desc;

typedef struct tl_places_report {
    uint64_t arena_bytes;       // what the places on the device take
    uint64_t bound_bytes;       // no places of these allocations take less
    uint64_t host_arena_bytes, host_bound_bytes;  // the same of the host copies
    int32_t  proven;            // 1 = both arenas are as large as their bounds
    uint64_t work;              // elementary steps done
    int32_t  block_count;       // that the plan names
    uint64_t cost, bound_cost;  // with banks: moved bytes x price of their bank, summed up; none costs less
    uint64_t bank_bytes[TL_MOST_BANKS];  // of the arena in each bank
} tl_places_report;

// Give every allocation of a plan an offset, in an arena of the device and, for host copies, one of the host,
// each as small as is found (tl_plan_layout). With banks, each allocation of the device is put into one of
// them, so that what steps move (tl_lifetime.moved_bytes) costs as little as is found (tl_plan_banks).
//
//   plan     gets new offsets, and its peaks and costs are measured again; steps and offsets are in one new
//            block then, and what it had is released. Not changed where there is an error
//   report   may be 0
//
// A run takes a plan with offsets in one block of arena_bytes, and one of host_arena_bytes; or, where the plan
// names blocks, in these (tl_init_run). It names them with banks, and where an arena exceeds block_bytes.
// Inputs have places as well, and outputs that are written in place stand where their input stood.
//
// Errors:  those of tl_simulate_plan, TL_ERROR_OVERFLOW: the aligned bytes of all allocations do not fit 61
//          bits; TL_ERROR_INFEASIBLE: the largest allocation, where it is larger than a block, by node and
//          bytes; those of tl_plan_banks, whose buffers are numbered as offsets; a bank in which no blocks
//          were found that hold what is chosen for it; TL_ERROR_INVALID_ARG: banks, block_bytes;
//          TL_ERROR_UNSUPPORTED: banks with TL_NO_PLANNERS; TL_ERROR_NO_MEMORY.
// Cost:    that of tl_find_lifetimes and tl_plan_layout, and a replay.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_places(tl_env *env, const tl_places_desc *desc, tl_plan *plan,
                               tl_places_report *report);
#endif  // TL_ONLY_TABLES

// Name or explain a kind; "?" if it is out of range.
TLDEF const char *tl_name_step(tl_step_kind kind);    // "F"
TLDEF const char *tl_explain_step(tl_step_kind kind);  // "inputs resident, ... -> ..."
TLDEF const char *tl_name_codec(tl_codec codec);      // "bf16"

// Find the bytes of a compressed tensor: f16 and bf16 2 per element, q8 1 per element and 4 per
// block of 32. An element is 4 bytes; an incomplete element or block counts as a whole one.
TLDEF uint64_t tl_find_codec_bytes(tl_codec codec, uint64_t bytes);

#ifndef TL_NO_PLANNERS
// Make the plan that keeps every tensor until its last reader has run: the plan to compare with. This one and
// the next two have no places; a run, or tl_plan_places, gives them some.
//
//   plan   overwritten; release with tl_free_plan; peaks and costs are filled in
//
// Errors:  those of tl_check_graph, TL_ERROR_NO_MEMORY; *plan is all zero then.
TLDEF tl_result tl_plan_keep_all(tl_env *env, const tl_graph *graph, int inference, tl_plan *plan);

// Make the plan that keeps the given tensors for backward, drops the others after their last use in
// the forward pass, and computes them again when backward first needs them: each node at most once.
// What a node makes that may run once only is kept as well.
//
//   keep   [tensor_count] 1 = kept; saved bytes of a node are kept if all its outputs are
//
// Errors:  as tl_plan_keep_all.
TLDEF tl_result tl_plan_kept_set(tl_env *env, const tl_graph *graph, const uint8_t *keep, tl_plan *plan);

// Make the plan that reverses a chain of equal layers with slot_count checkpoints (the graph input
// is the first) in the least number of forwards: the binomial schedule of Revolve.
//
//   graph   a chain, as tl_add_chain makes it; where the backward of a layer reads its output or saved bytes,
//           its forward runs once more
//
// Errors:  TL_ERROR_INVALID_ARG: not a chain, a node that may run once only, slot_count < 1; those of
//          tl_check_graph; TL_ERROR_NO_MEMORY. *plan is all zero then.
// Cost:    O(forwards).
// Reference: Griewank, Walther, 2000, section 2.
TLDEF tl_result tl_plan_revolve(tl_env *env, const tl_graph *graph, int32_t slot_count, tl_plan *plan);
#endif

// -- checkpoint configs --

// Which layers keep their result, and whether the inner activations of attention and ffn units
// (tl_node_desc.unit) are dropped and computed again, also in kept layers. A tensor is inner if it
// has readers and all of them belong to its own layer. Every other tensor of a layer, and inner
// tensors of other units, are kept if their layer is; nodes without a layer are always kept. The policy
// keep-all keeps everything and ignores the flags. With a fraction a flag allows to drop, and the fraction
// decides which inner tensors are dropped: as few as it takes, in kept layers and in others.
typedef struct tl_checkpoint_config {
    tl_policy policy;                  // keep-all, every-n (of layers), layers or fraction; "strategy" in JSON
    int32_t  checkpoint_attention;     // 1 = drop inner activations of attention units (fraction: or not, as
                                       // it asks for), 0 = keep them
    int32_t  checkpoint_ffn;           // the same for ffn units
    uint64_t min_checkpoint_interval;  // kept layers are at least that far apart; 0 and 1 = no limit
    void    *memory;                   // what tl_free_checkpoint_config releases; 0 = nothing
} tl_checkpoint_config;

#ifndef TL_NO_PLANNERS
// Make a config as the seed does, with its policy: keep-all, every-n, layers (with the flags on, too).
TLDEF tl_checkpoint_config tl_checkpoint_none(void);                      // the default: flags off
TLDEF tl_checkpoint_config tl_checkpoint_uniform(uint64_t interval);      // flags on
TLDEF tl_checkpoint_config tl_checkpoint_selective(const uint64_t *layers, uint64_t layer_count);  // borrowed

// Make a config with a fraction, flags on.
//
// Errors:  TL_ERROR_INVALID_ARG: layer_count 0, or memory_fraction not in [0, 1]; *config is that of
//          tl_checkpoint_none then.
TLDEF tl_result tl_checkpoint_dynamic(tl_env *env, uint64_t layer_count, double memory_fraction,
                                      tl_checkpoint_config *config);

// Return a copy of the config with one field changed.
TLDEF tl_checkpoint_config tl_with_checkpoint_attention(tl_checkpoint_config config, int32_t on);
TLDEF tl_checkpoint_config tl_with_checkpoint_ffn(tl_checkpoint_config config, int32_t on);
TLDEF tl_checkpoint_config tl_with_min_interval(tl_checkpoint_config config, uint64_t interval);

// Check every rule of a config: a policy that configs carry out, interval > 0, no duplicate layers,
// layer_count > 0, memory_fraction in [0, 1], flags 0 or 1. With layer_count > 0, listed layers must be below
// it and a fraction must be for that many layers.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY.
TLDEF tl_result tl_check_checkpoint_config(tl_env *env, const tl_checkpoint_config *config,
                                           uint64_t layer_count);

// Tell whether a layer's result is kept: 1 or 0. The minimal interval is applied in ascending
// order: a layer that is closer to the last kept one is not kept. keep-all keeps all (the seed returns
// false there, because no checkpoint is made). For a fraction the result is 0: ask
// tl_find_kept_layers.
//
// Cost:    O(1); layers O(listed layers), times the number of kept ones if the list does not
//          ascend and there is a minimal interval.
TLDEF int tl_keeps_layer(const tl_checkpoint_config *config, uint64_t layer);

// Find the kept layers of a graph.
//
//   kept   [layer_count] overwritten with 1 = kept, 0 = recomputed; layer_count is that of the
//          graph: its highest layer number + 1
//
// A fraction chooses layers and those inner tensors that the flags allow to drop; kept tells the layers. Of
// up to 12 choices it tries all sets, and of up to 12 layers all sets that drop what is inner. For more
// choices, segments of up to 90 layers (45, where both units are chosen from) between two kept ones are
// measured in evenly spaced kept sets, with the inner tensors of each kind of unit kept or not, and a label
// search over (live bytes, cost) combines the segments at least cost; then single choices are added and
// exchanged. If layers read only the layer below and nothing inner is chosen, this has equalled brute force
// on every graph tried; else it is a heuristic. Every candidate is simulated, so the set is always within
// the fraction.
//
// Errors:  those of tl_check_graph and tl_check_checkpoint_config; TL_ERROR_INFEASIBLE names the
//          least peak found and its node.
// Cost:    fraction: at most 4096 simulated plans, with more than 12 choices up to five times as
//          many, and 8 KiB of memory per layer during the search.
TLDEF tl_result tl_find_kept_layers(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                    uint8_t *kept, uint64_t layer_count);

// Make the plan of a config, on a graph whose nodes have layers and units.
//
//   plan   overwritten; release with tl_free_plan; peaks and costs are filled in, and it has places
//          (tl_plan_places, with an alignment of 1)
//
// Errors:  as tl_find_kept_layers, tl_plan_kept_set and tl_plan_places; *plan is all zero then.
TLDEF tl_result tl_plan_checkpoints(tl_env *env, const tl_graph *graph,
                                    const tl_checkpoint_config *config, tl_plan *plan);

// The effect of a config on a graph, from its simulated plan.
typedef struct tl_checkpoint_effect {
    uint64_t peak_bytes, keep_all_peak_bytes;  // of its plan, and of keeping everything
    double   memory_savings_ratio;     // 1 - peak / keep-all peak; below 0 where it needs more
    double   compute_overhead_ratio;   // cost / base cost; 1 = no recomputation
    uint64_t kept_count;               // layers kept
} tl_checkpoint_effect;

// Measure the effect of a config.
//
//   graph         0 = layer_count equal layers, whose backward costs twice the forward
//   layer_count   with a graph: 0, or that of the graph. Without graph and layers nothing is saved
//                 and the overhead ratio is 1
//
// Errors:  as tl_plan_checkpoints, TL_ERROR_OVERFLOW; *effect is all zero then.
TLDEF tl_result tl_measure_checkpoints(tl_env *env, const tl_graph *graph, uint64_t layer_count,
                                       const tl_checkpoint_config *config, tl_checkpoint_effect *effect);

// Free a config.
TLDEF void tl_free_checkpoint_config(tl_env *env, tl_checkpoint_config *config);  // accepts zeroed ones
#endif

#ifndef TL_NO_TEXT
// Parse exactly what the tl_name_ function returns: 1 and the value, or 0.
TLDEF int tl_parse_step(const char *text, tl_step_kind *kind);
TLDEF int tl_parse_codec(const char *text, tl_codec *codec);

// Write steps as a schedule, one per line: "F 1\nD 1.0\nC 3 q8\nF 1@2\n". A step of another slot than 0 ends
// in @ and its slot; one that begins a call in begin: "F 3@1 begin\nW 3@1\n". The entry stands before the
// steps: "E 3.0\nE 3.1@2\n". Before all, where in_flight is above 1, stands that: "K 4\n".
TLDEF size_t tl_print_schedule(const tl_plan *plan, char *buf, size_t size);

// Parse a schedule; # starts a comment. Kinds and forms of steps are checked here, the rules of
// steps by tl_simulate_plan.
//
//   plan   overwritten; release with tl_free_plan; peaks and costs are 0; slot_count is the highest slot + 1
//
// Errors:  TL_ERROR_PARSE with the line, TL_ERROR_NO_MEMORY; *plan is all zero then.
TLDEF tl_result tl_parse_schedule(tl_env *env, const char *text, size_t length, tl_plan *plan);

// Explain a plan in plain text: its numbers, the tensors that are live at its peak, largest first,
// which forwards run again, how often and at what cost, and how much is copied.
//
// Errors:  those of tl_simulate_plan, TL_ERROR_NO_MEMORY; what the sink returned.
// Cost:    O(steps + tensors), as the simulator.
TLDEF tl_result tl_explain_plan(tl_env *env, const tl_graph *graph, const tl_plan *plan, tl_sink sink);

// Write a plan and its graph as const C tables, for C99 and C++11 on any machine. A program uses
// them where they are, without allocating or reading anything.
//
//     #include "tl_strategy.h"
//     #include "net.h"               // written with the name "net"
//     static uint64_t arena[(NET_ARENA_BYTES + NET_ALIGNMENT) / 8];  // the memory of its backend: all that
//                                    // a run takes, and room to align it
//     desc.graph = &net_graph;       // tl_graph
//     desc.plan  = &net_plan;        // tl_plan over net_steps; tl_free_plan does nothing to it
//
// Before the tables stand numbers for the preprocessor, with the name in upper case in front:
//
//     NET_ARENA_BYTES, NET_ALIGNMENT           with offsets: the bytes that a run takes, and their alignment
//     NET_BLOCKS, NET_BLOCK_0_BYTES, ..        of a plan with blocks: what each takes
//     NET_BANK_0_BYTES, NET_BANK_1_BYTES, ..   of these in each bank of the device, the same added up
//     NET_PEAK_BYTES, NET_BASE_BYTES           the largest sum of live bytes; beside it
//     NET_HOST_PEAK_BYTES, NET_HOST_ARENA_BYTES  the same for host copies, where there are some
//     NET_STEPS, NET_NODES, NET_TENSORS        counts; NET_SLOTS, NET_IN_FLIGHT where there are several
//     NET_INPUT_X_BYTES, NET_INPUT_X_OFFSET    of a graph input x; where it lies in the arena, with blocks in
//     NET_INPUT_X_BLOCK                        that block
//     NET_ENTRY_Z_BYTES, _OFFSET, _BLOCK       of a tensor of the entry
//     NET_RESULT_Y_BYTES, _OFFSET, _BLOCK      of a node y that is kept; forward only, where none is kept, of
//                                              each that no node reads
//     NET_NODE_Y                               the number of every node
//
// Nodes whose names differ in case or punctuation alone, or have nothing of ASCII, end with _n and their
// number, outputs of a node with several with _o and theirs, those of another slot than 0 with _s and theirs.
// Tables of several networks stand in one program where their names differ in upper case, and none begins with
// another and a _.
//
//   plan   replayed first, so that only valid plans are written; its peaks and costs are written
//          unchanged
//   name   1 to 48 letters, digits and _, a letter first, no _ beside another _ or at the end
//
// A run of such a plan takes memory from its env in tl_init_run only; the lists of the CPU backend
// grow in its first pass. A graph of tables is never released. A table compiles only with the
// version of tl_strategy.h that wrote it; any other stops at an #error.
// Errors:  TL_ERROR_INVALID_ARG: name; those of tl_simulate_plan, TL_ERROR_NO_MEMORY; what the sink returned.
// Cost:    that of tl_find_lifetimes, and O(nodes x log nodes + texts).
TLDEF tl_result tl_write_plan_table(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                    const char *name, tl_sink sink);

typedef struct tl_table_desc {
    const char *name;        // as above; not NULL
    int32_t     is_narrow;   // 1 = steps of 4 bytes (with slots 6) in the place of 16, and offsets of 2 or 4 in
                             // the place of 8 (tl_narrow_plan)
    int32_t     omit_names;  // 1 = nodes are named 0 to 9, a to z, 10 and so on; no units and no views. The
                             // numbers for the preprocessor keep their names
} tl_table_desc;

// Write a table as tl_write_plan_table does, in a form that takes less memory. A run reads it where it is, as
// it does the plain one, and takes nothing for it but 8 bytes an offset while it is made.
//
// Errors:  as tl_write_plan_table; TL_ERROR_UNSUPPORTED: a narrow table of more than 65536 nodes, of a node
//          with more than 254 outputs, or of offsets that do not fit 32 bits in the greatest unit that all have
//          in common.
TLDEF tl_result tl_write_table(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                               const tl_table_desc *desc, tl_sink sink);

// -- code --

// id, name, what runs the steps
#define TL_CODE_FORMS(X) \
    X(TL_CODE_SMALLEST, "smallest", "calls or table, whichever is estimated to take less flash") \
    X(TL_CODE_CALLS,    "calls",    "a straight list of calls")                                  \
    X(TL_CODE_TABLE,    "table",    "a const table, and a loop over its rows")

typedef enum tl_code_form { TL_CODE_FORMS(TLI_ENUM) TL_CODE_FORM_COUNT } tl_code_form;

// What the arrays of a C program take.
typedef struct tl_code_figures {
    uint64_t bank_bytes;      // of all banks of the device: the arena of the plan
    uint64_t host_bytes;      // of all banks of the host
    uint64_t weight_bytes;    // of weights that are trained, in RAM
    uint64_t gradient_bytes;  // of their gradients
    uint64_t state_bytes;     // of the numbers of the optimizer
    uint64_t constant_bytes;  // of the const array of the user: weights that nobody trains, and constants
    uint64_t ram_bytes;       // the sum of all but host and constants
} tl_code_figures;

typedef struct tl_code_desc {
    const char  *name;         // of the files, and in front of every name in them; as for tl_write_plan_table
    tl_code_form form;         // 0 = whichever is smaller
    int32_t      state_count;  // numbers of the optimizer a trained weight: SGD 0, with momentum 1, AdamW 2
    const struct tl_rows_plan *rows;    // of tl_plan_rows, of `graph`: the plan is one of rows->graph; 0 = none
    tl_code_figures *figures;  // receives what the arrays take; zero on errors; 0 = not wanted
    const char *const *kernels;  // [node_count of graph] what stands for the op in the name of a node's kernel:
                               // nodes of one name have one kernel; 0, or a 0 of a node = the op
    uint64_t    *stored_offsets;  // [constants of graph, see tl_attributes] receives where each begins in the
                               // const array of the user; 0 = not wanted
} tl_code_desc;

// Write a plan as a C program that needs nothing of this library: the steps as calls of the user's kernels, at
// constant addresses in one array for each bank.
//
//     #include "net.h"                     // written with the name "net"
//     void net_load(int32_t micro_batch) { memcpy(NET_INPUT_X, image, NET_INPUT_X_BYTES); }
//     void net_conv_forward(int32_t node, void *out0, const void *in0, const void *weight) { .. }
//     ..
//     net_run();                           // a training step: all micro-batches
//
// For each kind of op the header declares a forward and, in training, a backward, which the user defines. Where
// nodes of one op need different kernels, as those of different schemes do, kernels names these: the names that
// tl_print_kernel writes make net_conv_i8_channel_forward of op conv. Parameters are what some node of that op,
// or of that name, has, in this order; a node that has not gets NULL:
//
//     node                 its number, NET_NODE_CONV1; in plans with several slots also the slot
//     out0, out1, ..       written. NULL in a forward that saves, and need not write them again
//     dout0, ..            backward: the gradients of the outputs, complete
//     din0, ..             backward: gradients of the inputs, add (+=) in this order; NULL = not wanted
//     in0, .. out0, ..     read; in place out0 is in0. Backward: those that some node of the op needs
//     weight, stored0, ..  the weights of the node, and its constants (tl_node_desc.stored)
//     dweight              backward of a trained node: the gradient of its weights, add (+=)
//     saved                written by a forward, or NULL; read by the backward
//     scratch              fwork, swork (with saved) or bwork bytes, content undefined
//
// An op of states has an update in the place of these two, net_adamw_update: dout0 is the complete gradient,
// out0 the weight, out1 .. its moments, all of which it writes; NET_STATE_W is where they lie. Of several
// micro-batches the last one updates; held gradients are cleared before the first.
//
// Gradients that begin are filled before the call: with zeroes; where no node reads the tensor with f32 of
// NET_LOSS_GRADIENT, 1 unless it is defined. The user clears net_gradients before a training step, and applies
// the optimizer behind it; weights and their gradients lie at the same offsets of net_weights and
// net_gradients. Weights that nobody trains, and constants, lie in net_frozen: a const array of the user, which
// takes no RAM where const data stays in flash; NET_FROZEN_CONV1_OFFSET, NET_STORED_CONV1_0_OFFSET. Forward
// only, net_weights is such an array, and holds everything. Host copies and compressed copies call net_copy,
// net_wait, net_compress and net_expand, also of the user.
//
// Calls do not say whether a forward runs again (call->recompute of a run), nor which training step it is. A
// forward that changes something beside its operands, such as a running mean, must do so once a pass: mark its
// node once, or let it look at what it has done since net_load. Random numbers are a function of node,
// micro-batch and a step that the user counts, which stay the same where a forward runs again.
//
// Regions of rows become tables, and a loop that calls by them: forwards alone. Nodes and weights stay those of
// `graph`. The kernels of an op that regions call for rows find each row by net_find_row, in rings or in whole
// tensors; row_bytes are those of a whole tensor. So are whole calls of such an op made:
//
//     void net_conv_forward(int32_t node, const net_operand *out0, const net_operand *in0, const void *weight,
//                           int32_t first, int32_t count) {
//         for (; count > 0; first++, count--) {
//             float *row = (float *)net_find_row(out0, first, ROW_BYTES);
//             ..
//
// In an operand that a node has not, `at` is NULL. Of ops that regions call for elements out0, in0, .. are
// those of the call, or whole where the node reads them whole, first and count elements. Both are 0 in the call
// of a node that has neither rows nor elements. net_load_rows, of the user, loads rows of a stream, in order.
// On the stack net_run has two numbers for each member of the largest region.
//
// Operands lie where the plan has them: at multiples of its alignment, which is to be that of the widest type
// of the kernels, 8 for any of C99. Weights lie at multiples of 4 at least, constants at multiples of the bytes
// of their elements, without holes between them. The arrays are aligned to 8 bytes at least, where the
// compiler can, and so must those of the user be; NET_BANK_1_PLACE, if it is defined, stands in front of that
// of bank 1, say as a section. The numbers for the preprocessor are those of tl_write_plan_table but for
// offsets, for which there are addresses: NET_INPUT_X, NET_RESULT_Y. C99, no library function but memset.
//
//   header, source   get net.h and net.c
//
// Errors:  TL_ERROR_INVALID_ARG: name, form, state_count, a plan without offsets, or one in which a tensor of
//          a declared format lies at no multiple of the bytes of its elements; rows that are not of the graph,
//          or for a lower alignment than the plan's, or whose plan has slots or backwards;
//          TL_ERROR_UNSUPPORTED: form is table and its words do not fit 32 bits; nodes of one op that are
//          called for rows and for elements, numbers of a region that do not fit 28 bits; those of
//          tl_simulate_plan, TL_ERROR_NO_MEMORY; what a sink returned.
// Cost:    that of tl_replay_plan, and O(text + ops x ops x nodes).
TLDEF tl_result tl_write_plan_code(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                   const tl_code_desc *desc, tl_sink header, tl_sink source);

// Name a form, and parse its name.
TLDEF const char *tl_name_code_form(tl_code_form form);  // "calls"; "?" if it is out of range
TLDEF int         tl_parse_code_form(const char *text, tl_code_form *form);  // exactly these: 1 and the value

#ifndef TL_NO_PLANNERS
// Write the config as the seed's summary: "Uniform checkpointing every 2 layers". Nothing for a policy that
// configs do not carry out.
TLDEF size_t tl_print_checkpoint_config(const tl_checkpoint_config *config, char *buf, size_t size);

// Write or parse JSON as the Rust crate from which configs come (SEEDS.md: the seed) writes its struct with
// serde_json, so that its files load:
// {"strategy":{"Uniform":{"interval":2}},"checkpoint_attention":true,"checkpoint_ffn":true,
// "min_checkpoint_interval":1}. There None is keep-all, Uniform every-n, Selective layers and Dynamic fraction;
// "?" is written for a policy that configs do not carry out, and refused when read. The parser takes the keys
// in any order and ignores unknown ones; a key that is missing or comes twice is an error. As in the crate,
// the rules of a config are checked separately, by tl_check_checkpoint_config. The parsed config owns its
// layers: release it with tl_free_checkpoint_config.
//
// Errors:  TL_ERROR_PARSE with line and column, TL_ERROR_NO_MEMORY; *config is all zero then.
TLDEF size_t    tl_print_checkpoint_config_json(const tl_checkpoint_config *config, char *buf, size_t size);
TLDEF tl_result tl_parse_checkpoint_config_json(tl_env *env, const char *text, size_t length,
                                                tl_checkpoint_config *config);
#endif
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

