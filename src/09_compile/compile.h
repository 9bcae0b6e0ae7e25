#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [9] COMPILE -- one strategy, one graph, one number of bytes: one plan
//
//     graph -> split the batch -> fuse chains -> choose formats -> drop, run again, spill -> places
//              \_______________ outer choices ______________/     \____ [6], within the bytes ____/
//
//     cost of a step
//      |   a        each combination of outer choices has a curve of its own: cost against bytes
//      |   a  b     a: everything in f32. b: kept activations in bf16. c: the batch in two halves
//      |  c a b     at each number of bytes another one is the best
//      |    c a  b
//      +----------- bytes
//
// What is kept in which format decides what has to run again, and what must run again decides which format
// pays. So the choices are not made one after the other: combinations are planned within the budget, each
// with offsets, and the cheapest plan that fits is the answer. With it come a lower bound for all combinations
// together, what the best of the others that were planned would have cost, and the map from the plan's graph to
// the caller's.
//
//   split     the batch in m equal parts, one after the other; every divisor of the batch is tried
//   fuse      each chain of elementwise nodes that take blocks, or not
//   formats   a price for each byte is added to the time of a node in a format, and tl_plan_precision
//             chooses; the price runs over a ladder, each time for several choices of tensors: all, those
//             that backwards read, those live over the budget. Small graphs are enumerated
//   bound     a relaxation of all of it at once: every node in its fastest scheme, every tensor in its
//             narrowest format, nothing converted, every chain as if it were fused; its lower bound in [6].
//             With a limit of the loss, what that raises the sum of the first runs' costs by at least (a
//             Lagrangian dual) is added
//
// References: Beaumont et al., 2019, arXiv:1911.13214. Fisher, The Lagrangian Relaxation Method for Solving
// Integer Programming Problems, 1981.
// ============================================================================

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
typedef struct tl_compile_progress {
    uint64_t work, work_limit;     // elementary steps so far; the number after which compiling ends
    int32_t  tried_count;          // combinations planned
    uint64_t cost, bound_cost;     // of the best so far; lower bound of any. 0 = none yet
} tl_compile_progress;

typedef struct tl_compile_desc {
    const tl_graph    *graph;      // not NULL; bytes of f32 and the costs of a step over the whole batch
    const tl_strategy *strategy;   // not NULL; of mode lazy or hybrid
    const tl_device   *device;     // link, capacities, and the speeds by which conversions and fused nodes are
                                   // priced; 0 = as in tl_remat_desc, tl_apply_desc and tl_fusion_desc
    uint64_t budget_bytes;         // of the arena and base_bytes together; 0 = no limit of your own
    uint64_t host_budget_bytes;    // of host copies at a time; 0 = no host tier
    uint64_t base_bytes;           // weights, gradients, optimizer: part of the budget
    uint64_t alignment_bytes;      // of the places, a power of two up to 2^30; 0 = 1
    uint64_t block_bytes;          // as in tl_places_desc; 0 = arenas are not cut
    uint32_t kernel_precisions;    // bits 1 << tl_precision that kernels compute; 0 = f32 only. Without
                                   // mixed among them, precision mixed is f32
    const tl_precision_desc *precision;  // for precision mixed alone: schemes, losses, costs, loss_limit,
                                   // profiles and the flags are read, graph, device and training are not;
                                   // criterion, objective and evaluate must be 0. 0 = f32 and bf16, with no
                                   // limit of the loss
    int32_t  may_split;            // 1 = the batch may be split in equal parts: in as many as
                                   // gradient.accumulation_steps says, or where that is 0 as is best. 0 = the
                                   // graph is that of one micro-batch
    uint64_t split_cost;           // what each part after the first adds to the cost of a step
    uint64_t fusion_block_bytes;   // as block_bytes in tl_fusion_desc
    uint64_t fusion_scratch_parts; // as scratch_parts in tl_fusion_desc
    uint64_t fusion_call_cost;     // as call_cost in tl_fusion_desc: of each call that a fused node makes more;
                                   // 0 = call_latency_ns of device
    tl_codec codec;                // as in tl_remat_desc, where gradients are checkpointed: f32 tensors may
                                   // wait compressed for a backward; 0 = none. The loss does not count it:
                                   // results are exact
    uint64_t work_limit;           // elementary steps of 2 to 8 ns; 0 = until the best is within 0.1 % of the
                                   // bound, at most 700 million, about two seconds; then the best is planned
                                   // once more, as tl_plan_remat does by default. With few steps a larger
                                   // budget can cost more
    int    (*progress)(const tl_compile_progress *progress, void *user);  // 1 = stop with the best so far
    void    *user;                 // passed to progress
    int32_t  in_flight;            // as in tl_remat_desc
} tl_compile_desc;

// One combination of the outer choices.
typedef struct tl_compile_choice {
    int32_t  part_count;           // micro-batches of a step
    int32_t  fused_count;          // nodes that stand for several
    int32_t  conversion_count;     // nodes that convert a tensor
    int32_t  format_counts[TL_FORMAT_COUNT];  // nodes of the graph, conversions left out, by their format
    int32_t  copy_count;           // tensors copied to or from the host in a part
    int32_t  compressed_count;     // tensors compressed in a part
    double   loss;                 // sum over the nodes
    uint64_t cost;                 // of a step: of all parts
    uint64_t arena_bytes;          // with memory standard: the peak
} tl_compile_choice;

typedef struct tl_compiled_plan {
    tl_plan          plan;         // of `graph`, for one part; repeat_count = parts
    const tl_graph  *graph;        // with fused nodes and conversions
    const tl_graph  *source;       // the desc's, or a copy scaled to the precision and to a part: what
                                   // kernels see
    const int32_t   *nodes;        // [source nodes] the node of `graph` that computes it. This and the next
                                   // four are 0 where graph and source are one
    const int32_t   *tensors;      // [source tensors] the tensor of `graph` that holds it; of a result that is
                                   // converted back, the conversion's; -1 = inside of a fused node
    const int32_t   *first_members;  // [graph nodes + 1] index into members
    const int32_t   *members;      // nodes of source by node of `graph`: one; several of a fused node; none of
                                   // a conversion
    const int32_t   *recompute_counts;  // [graph nodes] members, from the first on, that run again in backward
    const uint8_t   *formats;      // [graph tensors] tl_format; 0 = all of `precision`
    tl_precision     precision;    // of the tensors; mixed: see formats
    int32_t          inference;    // 1 = forward only
    tl_compile_choice choice;      // what was chosen
    tl_compile_choice runner_up;   // the best of the other combinations that were planned; cost 0 = none of
                                   // these fits. In small graphs the best of all others
    uint64_t bound_cost;           // no plan of any combination costs less
    uint64_t base_cost;            // of a step with nothing split, fused, converted or run again
    int32_t  proven;               // 1 = cost equals bound_cost, or every combination was planned or ruled out
    double   gap_ratio;            // (cost - bound_cost) / bound_cost; 0 = proven
    int32_t  tried_count;          // combinations planned
    uint64_t work;                 // elementary steps done
    int32_t  rank, rank_count;     // of tl_compile_ranks: whose stage it is, of how many; else 0
    int32_t  chunk_count;          // of tl_compile_ranks: stages of it; else 0
    uint64_t ranks_hash;           // of the plans of all ranks; else 0
    void    *memory;               // released by tl_free_compiled_plan, with all of the above; of a rank by
                                   // tl_free_compiled_ranks
} tl_compiled_plan;

// Compile a strategy for a graph: choose how the batch is split, which chains are fused, which format each node
// has, what is dropped, run again, compressed or spilled, and where everything lies, so that a step costs least
// within the budget. With memory minimal-peak the forwards take the order of the fewest bytes found in which
// each runs once; of the combinations the one that takes the fewest so is chosen. Where none fits the budget,
// what runs again is searched there as with the others; without a budget nothing runs again, so that
// checkpointed gradients can take fewer bytes.
//
//   compiled   overwritten; release with tl_free_compiled_plan; desc->graph must outlive it
//
// What the strategy leaves open is searched: fusion where enable_fusion is on, formats where the precision is
// mixed and kernels compute that, parts where may_split is 1 and accumulation_steps is 0, copies with a host
// budget, and what runs again where gradients are checkpointed with interval 0, or forward only. Everything
// else is as the strategy says: gradient full keeps all that backward reads, an interval keeps every n-th
// node. A combination whose calls alone cost no less than the best plan is left out before it is planned. Of
// equal costs the one that loses less is taken, then that of fewer parts, then the one with more fused chains
// (that saves memory traffic, which only a device prices), then that of fewer bytes. Where none
// fits, a search for the fewest bytes follows, which depends on no budget: the error names its number, and
// there is a plan where that number is asked for. With a codec half of the work goes into plans without
// compressed copies.
//
// What a narrower call would plan is among the trials: every number of parts in f32, formats chosen first by
// time or by bytes, formats chosen for the plan in f32. Each has a share of the work, and the best of each kind
// are planned again with more. Formats that lose exactly the limit are allowed: what choice.loss says can be
// given back as loss_limit.
//
// Errors:  those of tl_check_strategy, tl_check_graph, tl_plan_precision, tl_plan_remat; TL_ERROR_INVALID_ARG:
//          mode eager, which has no plan; a field of precision that is not read; a batch that cannot be split
//          so; TL_ERROR_UNSUPPORTED: parallelism model, pipeline, a precision that kernels do not compute;
//          TL_ERROR_INFEASIBLE names the least budget found; TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW.
//          *compiled is all zero then.
// Cost:    work_limit, twice where nothing fits. Memory: that of tl_plan_remat and about four copies of the
//          graph.
// Threads: safe with one env per thread.
TLDEF tl_result tl_compile(tl_env *env, const tl_compile_desc *desc, tl_compiled_plan *compiled);
TLDEF void      tl_free_compiled_plan(tl_env *env, tl_compiled_plan *compiled);  // accepts zeroed ones

#ifndef TL_NO_TEXT
// Explain a compiled plan in plain text: what was chosen, what the best of the other combinations would have
// cost, how far the plan can be from the best, and what one more MiB of budget would buy, for which it compiles
// again.
//
//   desc   that of the call of tl_compile
//
// Errors:  those of tl_compile, but for TL_ERROR_INFEASIBLE; what the sink returned.
// Cost:    that of tl_compile, where there is a budget.
TLDEF tl_result tl_explain_compiled(tl_env *env, const tl_compile_desc *desc, const tl_compiled_plan *compiled,
                                    tl_sink sink);
#endif

// -- curves --

typedef struct tl_compile_point {
    uint64_t budget_bytes;         // for which it was compiled
    tl_compile_choice choice;
    uint64_t bound_cost;           // of that budget
} tl_compile_point;

typedef struct tl_compile_front {
    const tl_compile_point *points;  // [point_count] bytes rise, cost falls
    int32_t  point_count;
    int32_t  knee;                 // the point farthest from the line between the ends, both axes scaled to 1
    uint64_t work;                 // elementary steps done
    void    *memory;               // released by tl_free_compile_front
} tl_compile_front;

// Find the Pareto curve of bytes against cost over all combinations: compile for budgets between the fewest
// bytes found and the bytes at which nothing gets cheaper, evenly spaced, each with its part of the work.
//
//   desc          the budget is not read
//   point_limit   most points, from 2 to 1000; 0 = 16
//   front         overwritten; release with tl_free_compile_front
//
// Errors:  as tl_compile. *front is all zero then.
// Cost:    work_limit.
TLDEF tl_result tl_plan_compile_front(tl_env *env, const tl_compile_desc *desc, int32_t point_limit,
                                      tl_compile_front *front);
TLDEF void      tl_free_compile_front(tl_env *env, tl_compile_front *front);  // accepts zeroed ones

// -- recommend --

// id, name, what is wanted
#define TL_WISHES(X) \
    X(TL_WISH_LEAST_TIME,  "least-time",  "the least cost within budget_bytes")           \
    X(TL_WISH_LEAST_BYTES, "least-bytes", "the fewest bytes at a cost of cost_limit")     \
    X(TL_WISH_KNEE,        "knee",        "where fewer bytes begin to cost much")

// id, name, why a strategy was not recommended
#define TL_OUTCOMES(X) \
    X(TL_OUTCOME_CHOSEN, "chosen", "it is the one")                                      \
    X(TL_OUTCOME_SLOWER, "slower", "costs as much or more")                              \
    X(TL_OUTCOME_LARGER, "larger", "takes as many bytes or more")                        \
    X(TL_OUTCOME_OVER,   "over",   "no plan was found within the bytes, or the cost limit") \
    X(TL_OUTCOME_LOSS,   "loss",   "no choice of formats keeps the limit of the loss")

typedef enum tl_wish { TL_WISHES(TLI_ENUM) TL_WISH_COUNT } tl_wish;
typedef enum tl_outcome { TL_OUTCOMES(TLI_ENUM) TL_OUTCOME_COUNT } tl_outcome;

typedef struct tl_recommend_desc {
    tl_compile_desc compile;       // graph, device, budgets and what kernels can do; its strategy must be 0.
                                   // budget_bytes counts for least-time alone
    int32_t  inference;            // 1 = forward only
    tl_wish  wish;                 // 0 = the least time within budget_bytes
    uint64_t cost_limit;           // of a step, for least-bytes alone: > 0
} tl_recommend_desc;

// A strategy that was compiled.
typedef struct tl_recommend_row {
    tl_strategy strategy;
    tl_outcome  outcome;
    tl_compile_choice choice;      // its best by the wish; zeroes where nothing fits
    uint64_t    least_bytes;       // nothing fits: the budget that would do; else 0
} tl_recommend_row;

typedef struct tl_recommendation {
    tl_strategy      strategy;
    tl_compiled_plan compiled;     // its plan; its graph refers to the desc's
    const tl_recommend_row *rows;  // [row_count] all that were compiled, the chosen one too
    int32_t          row_count;
    void            *memory;       // released by tl_free_recommendation, with all of the above
} tl_recommendation;

// Recommend a strategy for a graph and a device, by compiling those that can be: gradients kept or
// checkpointed, pooled or of the least peak, one format or mixed, fused or not. Of equal ones the one that asks
// for less is taken. Model and pipeline parallelism are left out.
//
//   recommendation   overwritten; release with tl_free_recommendation; desc->compile.graph must outlive it
//
// Errors:  those of tl_compile; TL_ERROR_INFEASIBLE: no strategy fits; the error names the least budget found,
//          or the least cost; TL_ERROR_INVALID_ARG. *recommendation is all zero then.
// Cost:    three times compile.work_limit, of which each strategy gets an eighth. Where one fits, those that
//          are not found to fit get all of work_limit once more. Knee and least-bytes eight to ten times that.
// Threads: safe with one env per thread.
TLDEF tl_result tl_recommend(tl_env *env, const tl_recommend_desc *desc, tl_recommendation *recommendation);
TLDEF void      tl_free_recommendation(tl_env *env, tl_recommendation *recommendation);  // accepts zeroed ones

// Name a wish, or an outcome.
TLDEF const char *tl_name_wish(tl_wish wish);           // "knee"; "?" out of range
TLDEF const char *tl_name_outcome(tl_outcome outcome);  // "slower"
#ifndef TL_NO_TEXT
// Parse the name of a wish.
TLDEF int tl_parse_wish(const char *text, tl_wish *wish);  // 1 and the value, or 0

// Write the rows as a table for people: what each strategy asks for, its bytes and cost, and why it was not
// recommended. Returns the length needed without the final 0.
TLDEF size_t tl_print_recommendation(const tl_recommendation *recommendation, char *buf, size_t size);
#endif
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H
