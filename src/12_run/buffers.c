#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// ============================================================================
// [12] RUN (implementation)
//
// This part: the buffers of a run, which mirror the simulator's states in the backend, and the run.
//
//     step        buffer before                 after
//     SPILL       device range                  + host range, copy under way
//     WAIT        copy under way                after SPILL the host range alone, after FETCH both
//     COMPRESS    device range of f32           device range of packed bytes
// ============================================================================

// -- the run --

// The held bytes of one tensor or gradient, or the saved bytes of a node.
typedef struct tli_buffer {
    tli_held  device;      // raw or compressed
    uint8_t   state;       // tli_state
    uint8_t   on_host;
    uint8_t   codec;       // of the device bytes
    uint8_t   is_entry;    // 1 = claimed for the plan's entry, and no step has freed or overwritten it since
    uint8_t   is_written;  // 1 = of a graph input: the caller has written it
} tli_buffer;

// The copy of a tensor in host memory.
typedef struct tli_spilled {
    tli_held  host;
    tl_ticket copied;      // of the copy under way
    uint64_t  copy_ns;     // when it was issued
} tli_spilled;

// The operands of a compute step. The arrays are made once, for the node with the most operands.
typedef struct tli_call {
    tl_operand *operands;    // inputs, outputs, output_grads, input_grads, saved, scratch
    int32_t    *access_of;   // [operand_count] index into accesses, -1 = none
    int32_t     operand_count;
    tl_access  *accesses;    // [access_count] each range once; writes: by the step or by its kernel
    uint8_t    *writable;    // [access_count] 1 = its kernel may write it
    void      **hosts;       // [access_count] host addresses while mapped
    int32_t     is_mapped;   // 1 = all accesses are
    int32_t     failed;      // the first access whose unmapping failed
    uint32_t    failed_site; // of the backend's error then; 0 = not known
    int32_t     access_count;
    tli_held   *twice;       // [output_count] second ranges of outputs that are resident already
    uint8_t    *made;        // [output_count] 1 = made by this call
    int32_t     twice_count; // most outputs of a node
    tli_held    scratch;
    uint64_t    first, count, total;  // elements: the call is for count from first on, of total
    int32_t     turn, turns; // of the calls for the same elements: one, or several of a fused node
    int32_t     piece, pieces;  // of the calls of a step with states in pieces, else 0 and 1
    tli_state_piece rows;    // what it is for; of the first nothing
    int32_t     member;      // of a fused node: which one is called, from 0
    int32_t     node;        // whose kernel is called, of the caller's graph; of the run's if it has no member
    tl_step_kind kind;       // of the call
    uint64_t    block_bytes; // of a fused node: from one block in the scratch to the next
    int32_t     outputs_ready;
    int32_t     depends_on;  // of the call for the first elements
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    int32_t     adds;        // a conversion without a kernel: 1 = the gradient of its input was there before
#endif
    int32_t     replays;     // 1 = the random hook is to put the present state back after the last call
    int32_t     polled;      // how often its kernel has answered TL_NOT_READY
    int32_t     request;     // of the message that its kernel has begun
    int32_t     is_asked;    // 1 = its kernel was asked in the present call of tl_run_plan, and was not ready
#ifndef TL_NO_ONLINE
    uint64_t   *reported;    // [output_count] bytes that a dynamic node reported, not yet checked, or
                             // TLI_UNREPORTED
    int32_t     is_inside;   // 1 = its kernel is running
#endif
} tli_call;

#define TLI_UNREPORTED UINT64_MAX    // nothing is known but the bound

// The last accesses of a range, for tl_run_step.depends_on.
typedef struct tli_touched {
    tl_range range;
    int32_t  written, read;  // step index, -1 = never
} tli_touched;

#ifndef TL_NO_ONLINE
// State of the online decisions: the simulator's state, and which uses of each tensor are still to come.
// Arrays over "items" hold the tensors first and then the saved bytes of each node.
typedef struct tli_online {
    tli_sim   sim;
    tli_steps record;          // every step decided so far
    int32_t   next_forward;    // node whose forward comes next; node_count = all done
    int32_t   next_backward;   // node whose backward comes next; -1 = all done
    int32_t   closed;          // 1 = what is no result was dropped at the end
    uint64_t  budget;          // of live bytes, base left out
    uint64_t  clock;           // grows with every step
    int32_t   eviction_count;
    int32_t   is_bare;         // 1 = the goal was restarted with nothing held
    int32_t   searches;        // 1 = the budget grows to the bytes that a bare goal needs
    int32_t  *forward_uses;    // [tensor_count] later forwards that read it
    int32_t  *backward_uses;   // [tensor_count] later backwards that use it (tli_online_is_use)
    int32_t  *pins;            // [item_count] > 0 = must not be evicted
    int32_t  *until;           // [tensor_count] the last goal that can need it; NULL = all nodes may run again
    int32_t  *ends, *next_end; // [2 nodes] [tensor_count] lists of tensors by `until`; -1 = the end of a list
    int32_t   now;             // number of the goal: forward of node v: v, backward: 2 nodes - 1 - v
    uint64_t *made_at;         // [item_count] value of clock when it was made
    uint64_t *used_at;         // [item_count] value of clock when it was last used
    // The closure of a goal: the nodes to run again for it.
    int32_t  *closure;         // [closure_count] ascending
    int32_t   closure_count;
    int32_t   open_count;      // wanted tensors that are not held and whose node is not in the closure yet
    int32_t   save_all;        // 1 = there is room to keep everything that the closure makes
    tli_spans spans;           // of policy every-n
    int32_t   by_spans;        // 1 = what a backward makes again in an earlier span is dropped, unless it is
                               // read in another span, to peak lower ("checkpoints at an interval", [5])
    int32_t   span;            // that of the backward under way
    uint8_t  *wanted;          // [tensor_count] tli_want_kind
    int32_t  *wanted_uses;     // [tensor_count] reads left in the closure and by the goal
    int32_t  *left;            // [tensor_count] a copy of wanted_uses, counted down to look ahead
    uint64_t *cuts;            // [node_count] bytes made by closure[0..k] and read after closure[k]
    tl_checkpoint_info *candidates;  // [item_count] for the caller's eviction function; else NULL
    int32_t  *candidate_items;       // [item_count]
} tli_online;

typedef enum tli_want_kind {
    TLI_WANT_NOT,
    TLI_WANT_HELD,   // was held when the closure was collected
    TLI_WANT_MADE,   // the closure makes it, and drops it after its last read there
    TLI_WANT_SAVED   // the closure makes it and keeps it for later backwards
} tli_want_kind;
#endif

typedef enum tli_computing {
    TLI_COMPUTING_NOT,      // no compute step is open: no range is claimed for a call only
    TLI_COMPUTING_OPENED,   // its ranges are claimed, and it waits for a step before
    TLI_COMPUTING_YIELDED,  // a compute step was yielded
    TLI_COMPUTING_DONE      // it was carried out
} tli_computing;

// How far a step is, with its call.
typedef struct tli_step_state {
    tli_call      call;
    tl_run_event  event;
    tl_run_step   yielded;      // to tl_run_plan
    tl_step       last;         // the one pulled last
    tli_computing computing;    // how far the compute step yielded last was carried out
    uint64_t      high_bytes;   // profiling: most live device bytes after a claim of this step
    tli_held     *freed;        // [freed_count] by the step; given back before step index + in_flight
    int32_t       freed_count;
} tli_step_state;

// One of several steps under way. The state of the step at hand is in the run, its place here is then not used
// (tli_choose_flight).
typedef struct tli_flight {
    tli_step_state at;
    tl_kernel user_kernel;      // of the call that was yielded, where nodes have users; never moved to the run
} tli_flight;

// The blocks of a run in one tier, taken at init, and where its claims lie.
typedef struct tli_run_arena {
    const tl_plan_block *blocks;     // [block_count] of the plan; of one that names none: &whole
    uint64_t       *handles;         // [block_count] 0 = not taken; where blocks is &whole: &only
    int32_t         block_count;     // 0 = a block for each claim
    tl_plan_block   whole;
    uint64_t        only;
    int32_t         offset_count, next_offset;  // of the plan's offsets, in the order of the claims
} tli_run_arena;

#ifndef TL_NO_PLANNERS
// What is kept from pass to pass, and the plans of a pass that makes it and of one that begins with it.
typedef struct tli_cache {
    tl_plan   plans[2];              // 0 runs everything, 1 has what is kept as its entry; in the same arenas
    tl_report planned[2];            // of these
    uint64_t  high_bytes[2];         // ends of the highest places in a block
    uint64_t  start_bytes[2];        // the same of what is there before the first step
    uint64_t *versions;              // [node_count] of the pass before
    uint8_t  *is_watched;            // [node_count] 1 = what is kept was made by or from it
    uint64_t  kept_bytes;
    int32_t   is_on;                 // 1 = there is something to keep
    int32_t   is_warm;               // which plan the last pass ran
    int32_t   is_kept;               // 1 = a pass has left what is to be kept, and nothing was written since
    int32_t   skipped_count;         // nodes that the one plan runs and the other does not
} tli_cache;
#endif

// Which nodes of the caller's graph each node of the run's graph computes, by a fusion or by a map that a later
// part fills in. A node with one member is that node; one with several is carried out block by block; one with
// none is a conversion that the run carries out itself, or a message between ranks.
typedef struct tli_members {
    const tl_graph *graph;          // the caller's; NULL = the run's own is it, and all below is 0
    const int32_t  *nodes;          // [nodes of it] the run's node that computes it; -1 = another rank's does
    const int32_t  *tensors;        // [tensors of it] the run's tensor that holds it, -1 = none does; NULL =
                                    // the same output of that node, if it is the last of the node's members
    const int32_t  *first_members;  // [node_count + 1] index into members
    const int32_t  *members;        // nodes of the caller's graph, each a reader of the one before
    const int32_t  *recompute_counts;  // [node_count] members, from the first on, that run again in backward
    int32_t         fused_count;    // nodes with two or more members
    int32_t        *kernels;        // [nodes of graph] index into kernels, for members of fused nodes
    int32_t        *outer;          // [nodes of graph] place of a member's first outer input among those of the
                                    // fused node
} tli_members;

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
// A plan whose rest is decided again when a dynamic node has reported less than its bound.
typedef struct tli_hybrid {
    tl_plan   bounds;                // what each pass begins with
    uint64_t *bound_bytes;           // [tensor_count]
    tl_step  *steps;                 // of this pass, once they differ; else NULL
    uint64_t *offsets;               // likewise
    tli_sim   sim;                   // in step with the executor
    uint64_t  high_bytes;            // aligned end of the highest place of this pass
    int32_t   is_on;                 // 1 = dynamic tensors take the bytes that they report
    int32_t   has_room;              // 1 = bytes were freed since the rest was decided
} tli_hybrid;
#endif

enum { TLI_CONVERSION = -2 };  // in kernel_of: the run converts the node's input itself

// Work that was enqueued and not submitted, by the costs of the graph.
typedef struct tli_submits {
    uint64_t limit_ns;               // of one submit; UINT64_MAX = a pass is one
    uint64_t queued_ns;              // since the last one
    uint64_t link_rates[2];          // of copies to the host, to the device; 0 = they take no time
    uint64_t codec_rate;             // of conversions
} tli_submits;

// Updates of the states of a graph.
typedef struct tli_updates {
    int32_t state_count, held_count;  // trained states; those that hold their gradient
    int32_t count;                    // updates carried out in the pass
    uint8_t skips;                    // 1 = the caller asked for passes without them
    uint8_t is_summing;               // 1 = gradients that states hold have sums that no update has used
    uint8_t has_begun;                // 1 = a kernel of an update was called in the pass
    uint8_t is_torn;                  // 1 = a pass was given up behind that
    uint8_t is_known;                 // 1 = all gradients of states were looked at in the pass, for the scaler
    uint8_t overflows;                // 1 = one of them holds an infinity or NaN: no state is updated
    int32_t looked;                   // nodes below it were looked at
} tli_updates;

struct tl_run {
    tl_env         *env;
    tl_backend      backend;
    tl_backend_limits limits;
    tl_run_desc     desc;            // pointers that need not outlive tl_init_run are NULL
    const tl_graph *graph;
    tl_graph        op_graph;        // made from operations or layers
    tl_graph        own_graph;       // scaled to a precision, with nodes and outputs of its own
    tl_graph        own_source;      // the same of the caller's graph, where that is another
    tli_members     members;
#ifndef TL_NO_PLANNERS
    tl_fusion_plan  own_fusion;      // of the strategy
    const tl_rows_plan *rows;        // whose graph the run has; NULL = none
    tl_rows_plan   *own_rows;        // those of `rows` that the run releases; NULL = the caller's, or none
    uint64_t       *rows_made;       // [members of a region] rows that its step has made, or is making
#ifndef TL_NO_PRECISION
    const tl_compiled_plan *compiled;  // whose graph the run has; NULL = none
    tl_compiled_plan own_compiled;   // of the strategy
    tl_compiled_ranks own_ranks;     // of a strategy with stages
    tl_parallel_plan own_ways;       // of automatic parallelism
#endif
#endif
    tl_kernel      *kernels;
    int32_t        *kernel_of;       // [node_count] index into kernels, -1 = input, TLI_CONVERSION
    tl_precision    precision;
    float           loss_scale;      // of this training step
    tl_plan         plan;
    tl_plan         wide_plan;       // the same for callers, where it is narrow and they asked for it
    tl_plan        *wide;            // &wide_plan
    tl_report       planned;         // of the plan
    tli_budget      budget;          // what caller, device and backend allow
    uint64_t        planning_work;   // elementary steps, until the run is made
    uint64_t        table_bytes;     // of memory of the env that lives as long as the run
    uint64_t        reserved_bytes;  // of the budget, for these tables
    int32_t owns_layers;             // 1 = made from layers
    int32_t owns_nodes;              // 1 = the arrays of own_graph and own_source are the run's
    int32_t         by_node;         // 1 = kernel i is that of the caller's node i, whatever its op
    tl_kernel       user_kernel;     // that of the last call, with the user of its node
    int32_t         is_hybrid;       // 1 = strategy.mode says so
    int32_t         in_arena;        // 1 = one arena a tier, taken at init: a plan without places gets them
    uint64_t        live_budget[TL_TIER_COUNT];  // of the online decisions; less than the budgets where the
                                     // arenas need it
    tl_plan_block  *own_blocks;      // of the plan, given or made, with the bytes that are used of each
    int32_t         owns_plan, is_online, inference, repeat_count, profiling, checkpoints_on;

    tli_store       store;
    tli_submits     submits;
    tli_run_arena   arenas[TL_TIER_COUNT];
    int32_t         slot_count;      // micro-batches under way together in a pass; each has buffers of its own
    int32_t         slot;            // whose buffers these four are: that of the last step
    tli_buffer     *tensors;         // [tensor_count]
    tli_buffer     *gradients;       // [tensor_count]
    tli_buffer     *saved;           // [saved_count] of the nodes that have some
    uint8_t        *ran;             // [node_count] in this pass
    tli_buffer     *all_tensors, *all_gradients;  // [slot_count * tensor_count]
    tli_spilled    *all_spilled;     // [slot_count * tensor_count]; NULL = nothing is ever spilled
    tli_buffer     *all_saved;       // [slot_count * saved_count]
    int32_t        *saved_of;        // [node_count] index into saved, -1 = the node has none; NULL = none has
    int32_t         saved_count;
    uint8_t        *all_ran;         // [slot_count * node_count]
    int32_t         caller_slot;     // of tl_write_tensor and tl_read_tensor
#ifndef TL_NO_PLANNERS
    struct tli_write_watch *watch;   // of a load hook that is rehearsed; NULL = none
#endif
#ifndef TL_NO_ONLINE
    uint64_t       *real_bytes;      // [slot_count * tensor_count] reported of dynamic tensors in this pass, or
                                     // TLI_UNREPORTED; NULL = the graph has none
#endif
    uint8_t        *is_read;         // [tensor_count] a node reads it
    uint8_t        *is_result;       // [tensor_count] resident at the end of the pass
    tli_step_state  at;              // of the step at hand
    struct tli_begun *begun;         // [begun_count] calls that were set aside (tli_set_aside)
    int32_t         begun_count;
    int32_t         in_flight;       // steps that may be under way together
    tli_flight     *flights;         // [flight_count] step i has place i % flight_count; NULL = one at a time
    int32_t         flight_count, flight;   // flight: that of the step at hand
    int32_t         defers;          // 1 = what is freed is given back later
    int32_t         waits_for;       // after TL_NOT_READY: index of the step that must be finished; -1 = none
    struct tli_messages *messages;   // with other ranks; NULL = none
    struct tli_reduction *reduction; // under way; NULL = none
    struct tli_reduction *in_pass;   // for sums of shards: a pass allocates nothing; NULL = none needed
    int32_t       has_shards;        // 1 = some of desc.variables have a shard
    tli_touched    *touched;
    int32_t         touched_count, touched_capacity;

    int32_t         active;          // 1 = inside a pass
    int32_t         position;        // index of the next step
    int32_t         by_itself;       // 1 = inside tl_run_plan: may wait, and needs no depends_on
    int32_t         by_hand;         // 1 = tl_run_forward and tl_run_backward choose the goals
    int32_t         goal_waits;      // 1 = the last of these has not reached its goal: TL_NOT_READY
    int32_t         in_plan;         // 1 = tl_run_plan answered TL_NOT_READY and is to go on
    int32_t         plan_pass;       // of tl_run_plan, from 0
    uint64_t        plan_step;       // training step that it runs
    int32_t         micro_batch;     // of slot 0
    uint64_t        training_step, next_step;
    tli_updates     updates;         // of states
    int32_t         ended_passes;    // of the training step that was begun last
    int32_t         resumes;         // 1 = a training step under way was loaded, and no pass of it was started
    int32_t         input_count;     // offsets that the graph's inputs take
    int32_t         first_count;     // these, and offsets that the plan's entry takes
    uint64_t        before_bytes[3];  // of a pass that was loaded: peaks of both tiers and arena until then
    uint64_t        input_arena_bytes;  // highest end in a block of the inputs and of the plan's entry
    tl_run_report   report;
#ifndef TL_NO_PLANNERS
    tli_cache       cache;
#endif
#ifndef TL_NO_ONLINE
    tli_online      online;
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    tli_hybrid      hybrid;
#endif
};

static int32_t tli_first_micro_batch(const tl_run *run) { return run->desc.first_micro_batch; }

// Whether some of the passes of a training step have ended, and not all.
static int tli_is_in_training_step(const tl_run *run) {
    return run->ended_passes > 0 && run->ended_passes < run->repeat_count;
}

// Go on with the buffers of a slot.
static void tli_run_choose_slot(tl_run *run, int32_t slot) {
    size_t tensors = (size_t)slot * (size_t)run->graph->tensor_count;
    size_t nodes = (size_t)slot * (size_t)run->graph->node_count;
    size_t saved = (size_t)slot * (size_t)run->saved_count;
    run->slot = slot;
    run->tensors = run->all_tensors + tensors;
    run->gradients = run->all_gradients + tensors;
    run->saved = run->saved_of ? run->all_saved + saved : NULL;
    run->ran = run->all_ran + nodes;
    TLI_INVARIANT(slot >= 0 && slot < run->slot_count);
}

// The bytes of a tensor in a slot: those that were reported in this pass, else those of the graph, which are
// the bound of a dynamic node.
static uint64_t tli_known_bytes(const tl_run *run, int32_t slot, int32_t tensor) {
    uint64_t bytes = run->graph->outputs[tensor].bytes;
#ifndef TL_NO_ONLINE
    if (run->real_bytes) {
        uint64_t real = run->real_bytes[(size_t)slot * (size_t)run->graph->tensor_count + (size_t)tensor];
        if (real < bytes) return real;
    }
#else
    (void)slot;
#endif
    return bytes;
}

// The part of a tensor's range, or of its gradient's, that is known to be used.
static tl_range tli_known_range(const tl_run *run, int32_t tensor, tl_range whole) {
    uint64_t bytes = tli_known_bytes(run, run->slot, tensor);
    if (bytes < whole.bytes) whole.bytes = bytes;
    return whole;
}

// Whether results are kept from pass to pass, so that one of two plans is replayed.
static int tli_keeps_results(const tl_run *run) {
#ifndef TL_NO_PLANNERS
    return run->cache.is_on;
#else
    (void)run;
    return 0;
#endif
}

// What was planned for the pass, or decided in it.
static const tl_report *tli_planned_pass(const tl_run *run) {
#ifndef TL_NO_ONLINE
    if (run->is_online) return &run->online.sim.report;
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) return &run->hybrid.sim.report;
#endif
    return &run->planned;
}

// Whether the run's nodes stand for those of another graph. Without planners none do, and what is for them
// alone is not compiled.
static int tli_has_members(const tl_run *run) {
#ifdef TL_NO_PLANNERS
    (void)run;
    return 0;
#else
    return run->members.graph != NULL;
#endif
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// The node of the run's graph that computes a node of the caller's; -1 = another rank's does.
static int32_t tli_find_run_node(const tl_run *run, int32_t node) {
    return tli_has_members(run) ? run->members.nodes[node] : node;
}
#endif

// Whether the run's graph is that of a compiled plan.
static int tli_has_compiled(const tl_run *run) {
#if defined(TL_NO_PLANNERS) || defined(TL_NO_PRECISION)
    (void)run;
    return 0;
#else
    return run->compiled != NULL;
#endif
}

// Whether the call at hand is one of several for the same elements.
static int tli_has_turns(const tl_run *run) {
    return tli_has_members(run) && run->at.call.turns > 1;
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
static tl_format tli_run_format(const tl_run *run, int32_t tensor) {
    return run->desc.formats ? (tl_format)run->desc.formats[tensor] : TL_FORMAT_F32;
}
#else
static tl_format tli_run_format(const tl_run *run, int32_t tensor) {
    (void)run;
    (void)tensor;
    return TL_FORMAT_F32;
}
#endif

// Whether a tensor is of f32, which codecs read.
static int tli_is_f32(const tl_run *run, int32_t tensor) {
    if (run->precision == TL_PRECISION_MIXED) return tli_run_format(run, tensor) == TL_FORMAT_F32;
    return run->precision == TL_PRECISION_SINGLE;
}

// The bytes that the caller has to allow for so many bytes of the run.
static uint64_t tli_needed_bytes(const tl_run *run, uint64_t bytes) {
    uint64_t needed = tli_add_base(&run->budget, bytes), unusable = run->limits.unusable_bytes[TL_TIER_DEVICE];
    if (run->budget.limit != TL_LIMIT_BACKEND || needed > UINT64_MAX - unusable) return needed;
    return needed + unusable;
}

#ifdef TLI_INVARIANTS
// Invariants of a buffer: an absent one holds nothing on the device, one that leaves has a host copy, and it
// has a codec if and only if it is packed.
static int tli_buffer_holds(const tli_buffer *buffer) {
    if (buffer->state > TLI_PACKED || (buffer->state == TLI_ABSENT && buffer->device.range.bytes)) return 0;
    if (!buffer->on_host && buffer->state == TLI_LEAVING) return 0;
    return (buffer->state == TLI_PACKED) == (buffer->codec != TL_CODEC_NONE);
}
#endif

// -- buffers: claims --

// What the backend takes for a block in a bank of a tier.
static uint64_t tli_taken_block_bytes(const tl_run *run, int tier, int32_t bank, uint64_t bytes) {
    int32_t banks = tier == TL_TIER_DEVICE && run->limits.bank_count > 1 ? run->limits.bank_count : 0;
    uint64_t overhead = bank < banks ? run->limits.bank_overhead_bytes[bank]
                                     : run->limits.block_overhead_bytes[tier];
    uint64_t granularity = run->limits.granularity_bytes ? run->limits.granularity_bytes : 1;
    if (!bytes || bytes > UINT64_MAX - granularity - overhead) return bytes;
    return (bytes + granularity - 1) / granularity * granularity + overhead;
}

// What the backend takes for the blocks of the plan in a tier. bank: -1 = in all banks. largest: 1 = for the
// largest of them.
static uint64_t tli_taken_in_bank(const tl_run *run, int tier, int32_t bank, int largest) {
    uint64_t sum = 0, arena = tier == TL_TIER_HOST ? run->plan.host_arena_bytes : run->plan.arena_bytes;
    int32_t k, count = 0;
    for (k = 0; k < run->plan.block_count; k++) {
        const tl_plan_block *block = &run->plan.blocks[k];
        uint64_t taken = tli_taken_block_bytes(run, tier, block->bank, block->bytes);
        if (block->tier != tier) continue;
        count++;
        if (bank >= 0 && block->bank != bank) continue;
        if (largest) sum = tli_larger_u64(sum, taken);
        else if (!tli_add_u64(sum, taken, &sum)) sum = UINT64_MAX;
    }
    return count || bank > 0 ? sum : tli_taken_block_bytes(run, tier, 0, arena);
}

// What the backend takes for the arena of the plan in a tier.
static uint64_t tli_taken_bytes(const tl_run *run, tl_tier tier) {
    return tli_taken_in_bank(run, (int)tier, -1, 0);
}

// The most bytes that a block of the plan may have, so that with its overhead it is no larger than the largest
// block of the backend; 0 = the backend names no largest.
static uint64_t tli_run_cut(const tl_run *run) {
    uint64_t unit = tli_larger_u64(1, run->limits.alignment_bytes), block = run->limits.block_bytes;
    uint64_t overhead = 0;
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        overhead = tli_larger_u64(overhead, run->limits.block_overhead_bytes[tier]);
    unit = tli_larger_u64(unit, run->limits.granularity_bytes);
    if (!block) return 0;
    block -= block < overhead ? block : overhead;
    return block < unit ? unit : block - block % unit;
}

// By how much the arena of a tier exceeds its budget.
static uint64_t tli_arena_excess(const tl_run *run, tl_tier tier) {
    uint64_t budget = tier == TL_TIER_HOST ? run->budget.host_bytes : run->budget.bytes;
    uint64_t taken = run->in_arena ? tli_taken_bytes(run, tier) : 0;
    return taken > budget ? taken - budget : 0;
}

static int tli_arenas_fit(const tl_run *run) {
    return !tli_arena_excess(run, TL_TIER_DEVICE) && !tli_arena_excess(run, TL_TIER_HOST);
}

// The device of the desc, with the alignment of the backend where the plan has places.
static tl_device tli_run_device(const tl_run *run) {
    tl_device device;
    tli_zero(&device, sizeof device);
    if (run->desc.device) device = *run->desc.device;
    if (run->plan.offset_count || run->in_arena) device.alignment_bytes = run->limits.alignment_bytes;
    return device;
}

static uint64_t tli_run_live_bytes(tl_run *run, tl_tier tier) {
    tl_account_counters counters;
    tli_measure_store(&run->store, 0, &counters);
    return counters.live_bytes[tier];
}

// Claim bytes: at the next offset of the plan, or by the heap.
static tl_result tli_claim_planned(tl_run *run, tl_tier tier, uint64_t bytes, tli_held *held) {
    tli_run_arena *arena = &run->arenas[tier];
    tli_placement place = tli_by_heap;
    if (arena->block_count && bytes) {
        uint64_t offset;
        int32_t k;
        if (arena->next_offset >= arena->offset_count) return TL_ERROR_INVALID_PLAN;
        offset = tl_find_offset(&run->plan, arena->next_offset++, tier == TL_TIER_HOST);
        k = tli_find_plan_block(arena->blocks, arena->block_count, offset);
        if (k < 0) return TL_ERROR_INVALID_PLAN;
        place.block = arena->handles[k];
        place.offset = offset - arena->blocks[k].offset;
    }
    TLI_INVARIANT(!arena->block_count || arena->next_offset <= arena->offset_count);
    return tli_claim(&run->store, tier, bytes, &place, held);
}

static tl_result tli_claim_device(tl_run *run, uint64_t bytes, tli_held *held) {
    tl_result result = tli_claim_planned(run, TL_TIER_DEVICE, bytes, held);
    if (!result && run->profiling && run->active) {
        uint64_t live = tli_run_live_bytes(run, TL_TIER_DEVICE);
        if (live > run->at.high_bytes) run->at.high_bytes = live;
    }
    return result;
}

// -- buffers: what the executor asks them --

static const tl_plan *tli_plan_of(const tl_run *run) { return &run->plan; }
static tl_precision tli_precision_of(const tl_run *run) { return run->precision; }
static int tli_has_flights(const tl_run *run) { return run->flights != NULL; }
static int tli_is_by_hand(const tl_run *run) { return run->by_hand; }
static int tli_is_host_visible(const tl_run *run) { return run->limits.host_visible; }

// Where the kernel of the call at hand is kept with the user of its node.
static tl_kernel *tli_own_kernel(tl_run *run) {
    return run->flights ? &run->flights[run->flight].user_kernel : &run->user_kernel;
}

static int tli_is_present(const tli_buffer *buffer) { return buffer->state != TLI_ABSENT; }
static int tli_is_readable(const tli_buffer *buffer) {
    return buffer->state == TLI_RESIDENT || buffer->state == TLI_LEAVING;
}

// Ranges of what is held. room: where a range is written that is not stored, as in runs of TL_ONLY_TABLES.
static const tl_range *tli_held_range(const tl_run *run, const tli_held *held, tl_range *room) {
    (void)run;
    (void)room;
    return &held->range;
}

static const tl_range *tli_tensor_range(const tl_run *run, int32_t tensor, tl_range *room) {
    return tli_held_range(run, &run->tensors[tensor].device, room);
}

static const tl_range *tli_gradient_range(const tl_run *run, int32_t tensor, tl_range *room) {
    int32_t held = tli_held_gradient(run->graph, tensor);
    if (held >= 0) return tli_held_range(run, &run->tensors[held].device, room);
    return tli_held_range(run, &run->gradients[tensor].device, room);
}

static const tl_range *tli_saved_range(const tl_run *run, int32_t id, tl_range *room) {
    tli_zero(room, sizeof *room);
    return run->saved_of && run->saved_of[id] >= 0
               ? tli_held_range(run, &run->saved[run->saved_of[id]].device, room) : room;
}

// NULL = the node saves nothing.
static tli_buffer *tli_saved_buffer(const tl_run *run, int32_t id) {
    return run->saved_of && run->saved_of[id] >= 0 ? &run->saved[run->saved_of[id]] : NULL;
}

// The host copy of a tensor. A run has them where something is ever spilled.
static tli_spilled *tli_spilled_of(const tl_run *run, const tli_buffer *buffer) {
    TLI_INVARIANT(run->all_spilled);
    return &run->all_spilled[buffer - run->all_tensors];
}

// -- buffers: the steps on one tensor --

static tl_result tli_buffer_claim(tl_run *run, uint64_t bytes, tli_buffer *buffer) {
    tl_result result = TL_OK;
    if (!buffer) return TL_OK;
    result = tli_claim_device(run, bytes, &buffer->device);
    if (!result) buffer->state = TLI_RESIDENT;
    TLI_INVARIANT(result || tli_buffer_holds(buffer));
    return result;
}

// What is held of one becomes that of another.
static void tli_buffer_hand_over(tli_buffer *to, tli_buffer *from) {
    to->device = from->device;
    to->state = TLI_RESIDENT;
    tli_zero(&from->device, sizeof from->device);
    from->state = TLI_ABSENT;
    from->is_entry = 0;
    TLI_INVARIANT(tli_buffer_holds(from) && to->state == TLI_RESIDENT);
}

// Give held bytes back: at once, or where others may be under way, in_flight steps later.
static tl_result tli_free_held(tl_run *run, tli_held *held) {
    if (!run->defers || !held->range.bytes) return tli_abandon(&run->store, held);
    TLI_INVARIANT(run->at.freed_count < run->at.call.twice_count + 2);
    run->at.freed[run->at.freed_count++] = *held;
    tli_zero(&held->range, sizeof held->range);
    return TL_OK;
}

static tl_result tli_buffer_drop(tl_run *run, tli_buffer *buffer) {
    if (!buffer) return TL_OK;
    buffer->state = TLI_ABSENT;
    buffer->codec = TL_CODEC_NONE;
    buffer->is_entry = buffer->is_written = 0;
    TLI_INVARIANT(buffer->state == TLI_ABSENT);
    return tli_free_held(run, &buffer->device);
}

static tl_result tli_buffer_drop_host(tl_run *run, tli_buffer *buffer) {
    buffer->on_host = 0;
    return run->all_spilled ? tli_free_held(run, &tli_spilled_of(run, buffer)->host) : TL_OK;
}

// Enqueue a copy that a WAIT ends. On a backend that works in order no ticket is needed to wait for it.
static tl_result tli_buffer_copy(tl_run *run, tli_buffer *buffer, const tli_held *to, const tli_held *from) {
    tl_result result = tli_transfer(&run->store, &to->range, TL_CODEC_NONE, &from->range, TL_CODEC_NONE);
    if (!result && !run->limits.in_order) result = tli_submit_store(&run->store);
    tli_spilled_of(run, buffer)->copied = run->store.last_ticket;
    return result;
}

static tl_result tli_buffer_spill(tl_run *run, tli_buffer *buffer) {
    tli_held *host = &tli_spilled_of(run, buffer)->host;
    tl_result result = tli_claim_planned(run, TL_TIER_HOST, buffer->device.range.bytes, host);
    if (result) return result;
    buffer->on_host = 1;
    buffer->state = TLI_LEAVING;
    TLI_INVARIANT(host->range.bytes == buffer->device.range.bytes);
    return tli_buffer_copy(run, buffer, host, &buffer->device);
}

static tl_result tli_buffer_fetch(tl_run *run, tli_buffer *buffer) {
    const tli_held *host = &tli_spilled_of(run, buffer)->host;
    tl_result result = tli_claim_device(run, host->range.bytes, &buffer->device);
    if (result) return result;
    buffer->state = TLI_COMING;
    TLI_INVARIANT(host->range.bytes == buffer->device.range.bytes);
    return tli_buffer_copy(run, buffer, &buffer->device, host);
}

// End a copy that is finished, or after which later work is ordered: a tensor that was spilled leaves the
// device, one that was fetched is resident.
static tl_result tli_buffer_wait(tl_run *run, tli_buffer *buffer) {
    if (buffer->state == TLI_LEAVING) return tli_buffer_drop(run, buffer);
    buffer->state = TLI_RESIDENT;
    TLI_INVARIANT(tli_buffer_holds(buffer));
    return TL_OK;
}

// As tli_move_held; the bytes that were held before stay as long as a step that reads them may be under way.
static tl_result tli_move_later(tl_run *run, tli_held *held, tl_codec from_codec, tli_held *to,
                                tl_codec to_codec, int *moved) {
    tl_result result = tli_transfer(&run->store, &to->range, to_codec, &held->range, from_codec);
    *moved = !result;
    if (result) {
        (void)tli_abandon(&run->store, to);
        return result;
    }
    result = tli_free_held(run, held);
    *held = *to;
    return result;
}

// Compress or expand a tensor of so many bytes. Both ranges are claimed until the conversion is enqueued.
static tl_result tli_buffer_convert(tl_run *run, tli_buffer *buffer, uint64_t bytes, tl_codec codec) {
    tli_held to;
    int moved;
    tl_result result = tli_claim_device(run, tl_find_codec_bytes(codec, bytes), &to);
    if (result) return result;
    result = run->defers
        ? tli_move_later(run, &buffer->device, (tl_codec)buffer->codec, &to, codec, &moved)
        : tli_move_held(&run->store, &buffer->device, (tl_codec)buffer->codec, &to, codec, &moved);
    if (!moved) return result;
    buffer->is_entry = 0;
    buffer->codec = (uint8_t)codec;
    buffer->state = codec == TL_CODEC_NONE ? TLI_RESIDENT : TLI_PACKED;
    TLI_INVARIANT(tli_buffer_holds(buffer));
    return result;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION

