#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// -- ranks: the plan of each worker of a pipeline --
//
//     nodes      0 .. 11 | 12 .. 20 | 21 .. 34        each rank has a stage: nodes that follow each other
//     rank 0     [0 .. 11, send a]
//     rank 1     [receive a, 12 .. 20, send b]        what crosses into the next stage is sent, its gradient
//     rank 2     [receive b, 21 .. 34]                comes back
//
//     rank 1     F receive@0 begin, F receive@1 begin, W receive@0, F 12@0, .. F send@0 begin, ..
//                B send@0 begin, W receive@1, F 12@1, .. W send@0, B 20@0, .. B receive@0 begin, ..
//
// The graph of a stage has nodes of op "receive" and "send", without cost; everything else is as in the
// caller's graph, whose kernels, tensors and origins a run keeps (tl_run_desc.compiled). A tensor that is read
// two stages on goes through the stage between. The forward of a receive takes a tensor from the rank before,
// its backward sends the gradient back; the forward of a send sends the tensor on, and its backward receives
// the gradient, which is the sum of what all later stages have added, so that sums are taken in the order of
// one process and have the same bits. All four are begun by one step and ended by a W, and messages travel
// beside the calls.
//
// With interleaved each rank has several stages, its chunks, and the ranks are a ring:
//
//     nodes      0 .. 11 | 12 .. 20 | 21 .. 34 | 35 .. 40      two ranks of two chunks
//     rank 0     [0 .. 11, send a] [receive b, 21 .. 34, send c]
//     rank 1     [receive a, 12 .. 20, send b] [receive c, 35 .. 40]
//
// A rank waits for less then, (S - 1) of v m + S - 1 calls where all are equal, because the first micro-batch
// comes to it sooner; it sends v times as often and holds up to v S + S - 1 micro-batches, each of a part of
// its nodes. Chunks of one rank share nothing but graph inputs: what is read further on goes round.
//
// Fused nodes and conversions are nodes like others: with `compiled` the graph that is cut is tl_compile's.
//
// Every rank plans all ranks, from the same desc, and takes its own: plans are the same on every machine.

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
typedef struct tl_ranks_desc {
    const tl_graph *graph;         // not NULL; of one micro-batch, or with may_split of a whole batch
    int32_t  rank_count;           // > 0; with chunks each has several stages, else one
    int32_t  micro_batch_count;    // of a training step > 0, at most 65535; with interleaved a multiple of
                                   // rank_count
    int32_t  may_split;            // 1 = graph is of a whole batch, which is split into micro_batch_count equal
                                   // parts, or where that is 0 into as many as make a training step shortest:
                                   // every number that divides graph->batch is planned within half of the work,
                                   // the best once more with all of it. For training, without compiled
    uint64_t split_cost;           // what each micro-batch after the first adds to the cost of all calls, for
                                   // instance what a call costs beside its work: shared by the ranks, it weighs
                                   // against the bubble where their number is chosen. Not in `cost`
    tl_pipeline pipeline;
    int32_t  chunk_count;          // v, stages of each rank: stage i is chunk i / rank_count of rank i %
                                   // rank_count. 2 or more with interleaved, else 0 or 1
    const int32_t *ends;           // [rank_count * chunk_count] for each stage the node after its last, rising,
                                   // the last one node_count; 0 = chosen; where chunks are, by time: their
                                   // bytes are not asked
    const tl_rank *ranks;          // [rank_count] bytes and speed of each; 0 = equal ones
    const tl_compiled_plan *compiled;  // of graph: its graph is cut, so ranks run its fused nodes and
                                   // conversions in its precision, and ends are nodes of its graph; its plan is
                                   // not read. Where it splits the batch, micro-batches are its parts. It must
                                   // outlive the plans. 0 = graph itself is cut
    int32_t  inference;            // 1 = forward only
    uint64_t budget_bytes;         // of each rank, where ranks is 0: its arena and its part of the base; what a
                                   // backend takes beside them is not in it; 0 = no limit
    double   gradient_ratio;       // the base of a rank is base_bytes and the weights of its nodes times
    double   optimizer_ratio;      // 1 + gradient_ratio + optimizer_ratio (tl_find_base_bytes)
    uint64_t base_bytes;           // of every rank
    int32_t  weights_apart;        // 1 = the base is base_bytes alone: the budget is without weights
    int32_t  keep_all;             // 1 = nothing runs again
    uint64_t alignment_bytes;      // of the places, a power of two; 0 = 1. That of the backend: what is placed
                                   // for less is placed again by a run, and may take more
    uint64_t block_bytes;          // arenas are cut as in tl_places_desc; 0 = not
    const tl_device *device;       // the link to the host of each rank, for copies; 0 = they take no time
    uint64_t host_budget_bytes;    // of host copies of each rank at a time; 0 = none. What a micro-batch leaves
                                   // between its forward and its backward may wait there; UINT64_MAX = no limit
    const tl_link *link;           // between neighbours; with chunks the last and the first are, too. 0 =
                                   // messages take no time
    uint64_t work_limit;           // elementary steps of all ranks together; 0 = 700 million
} tl_ranks_desc;

// What one rank runs.
typedef struct tl_rank_plan {
    tl_compiled_plan compiled;     // of the stage; its plan has a slot for each micro-batch
    int32_t  first_node, end_node; // of the graph that is cut; with chunks those of the first one
    int32_t  in_flight_count;      // micro-batches whose activations it holds at a time, at most; in each chunk
                                   // it counts once
    uint64_t base_bytes;           // weights, gradients and optimizer of its nodes
    uint64_t held_bytes;           // that a micro-batch leaves between its forward and its backward, in all
                                   // chunks together, here or on the host
    uint64_t sent_bytes;           // in a training step, to both neighbours together
    uint64_t busy_cost;            // of its calls
    uint64_t end_cost;             // at which its last call ends
} tl_rank_plan;

typedef struct tl_compiled_ranks {
    tl_rank_plan *ranks;           // [rank_count]
    int32_t  rank_count, chunk_count, micro_batch_count;  // ranks; stages of each; of a training step
    const int32_t *ends;           // [rank_count * chunk_count] the node after the last of each stage
    const tl_compiled_plan *compiled;  // of the desc, or with may_split of one micro-batch; 0 = none
    uint64_t hash;                 // of all plans; runs compare it with that of their neighbours
    uint64_t cost;                 // of a training step: the largest end_cost, with messages on the link
    uint64_t bound_cost;           // no plans of any cut cost less; where ends are given, none of these stages
    double   bubble_ratio;         // part of all ranks' time in which they wait
    void    *memory;               // released by tl_free_compiled_ranks, with all of the above
} tl_compiled_ranks;

// Plan a pipeline: cut the graph, plan each stage for its micro-batches in flight, and simulate all ranks with
// their messages.
//
//   ranks   overwritten; release with tl_free_compiled_ranks; desc->graph must outlive it
//
// What a rank holds of a micro-batch until its backward counts once for each that is in flight, so plans that
// keep everything, plans of tl_plan_remat at several budgets and plans that drop what costs little for each
// byte are all interleaved into the rank's order, placed, and the cheapest that fits is taken.
//
// Where to cut is found by tl_plan_partition, from estimates of what each possible stage costs and takes within
// the bytes of its rank, and by moving cuts as long as the simulated step gets shorter; stages of the best cut
// are planned, which corrects the estimates, until the best cut has no estimates left or a share of the work is
// used up. Where there is a budget, graphs of more than 256 nodes are cut at one of some 256 places.
//
// Errors:  those of tl_check_graph, tl_plan_remat, tl_plan_partition; TL_ERROR_INVALID_ARG: more ranks than
//          nodes, a compiled plan that is not of the graph, or of other parts of the batch, or of one rank,
//          ends that do not rise, chunks without interleaved, or of one rank, or with micro-batches that are no
//          multiple of the ranks; TL_ERROR_INFEASIBLE names a stage and the least budget found for it;
//          TL_ERROR_UNSUPPORTED: states, but in an inference of one micro-batch; inputs that die; a host
//          budget, which TL_NO_OFFLOAD left out; TL_ERROR_NO_MEMORY,
//          TL_ERROR_OVERFLOW. *ranks is all zero then.
// Cost:    work_limit. Memory: that of tl_plan_remat, and for each rank a copy of its part of the graph and 16
//          bytes a step.
// Threads: safe with one env per thread.
// Source:  Huang et al., GPipe, 2019, arXiv:1811.06965; Narayanan et al., 2021, arXiv:2104.04473, section 2.2;
//          Korthikanti et al., Reducing Activation Recomputation, 2022, arXiv:2205.05198, section 5.
TLDEF tl_result tl_compile_ranks(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks);
TLDEF void      tl_free_compiled_ranks(tl_env *env, tl_compiled_ranks *ranks);  // accepts zeroed ones

// Choose how ranks share the batch of a training step, and plan it: each with a copy of all (data parallel), as
// one pipeline, or as several replicas of a shorter one.
//
//   desc      as of tl_compile_ranks, but for: rank_count, of all ranks; micro_batch_count, of all of them
//             together; ends, ranks, pipeline and chunk_count, which are chosen: 0; work_limit, of all ways
//             together, 0 = 700 million
//   ranks     overwritten: the plan of one replica, of ranks->rank_count stages. Rank r has stage r %
//             rank_count, and replica r / rank_count takes ranks->micro_batch_count of the micro-batches
//   choices   overwritten: what was compared, and why it was not taken, and whether the best fits only with
//             shards (zero_stage); release with tl_free_parallel_plan. 0 = not wanted
//
// Looks at every number of stages that divides the ranks and leaves replicas that divide the micro-batches, in
// each order of calls, with 2 to 4 chunks where they are interleaved. A stage alone takes its micro-batches one
// after the other: its plan is of one, and repeated. All of them are planned within half of
// the work, then the fastest once more with all of it. Behind its last call each rank exchanges the
// gradients of its weights with the other replicas (tl_reduce_run). Where a rank has no bytes for what
// gradient_ratio and optimizer_ratio ask, they are sharded over the replicas, by the first zero_stage of the
// choice that fits; ranges are cut in whole elements, which may take a few bytes more. Times are those of
// tl_compiled_ranks and of the exchange on the link, in nanoseconds where the costs of the graph are. idle_ns
// is 0: all ranks work.
//
// Errors:  those of tl_compile_ranks; TL_ERROR_INFEASIBLE: no way fits, with the least bytes found of all.
//          *ranks and *choices are all zero then.
// Cost:    half as much again as work_limit.
// Threads: safe with one env per thread.
// Source:  Narayanan et al., 2021, arXiv:2104.04473, section 3; Zheng et al., Alpa, 2022, arXiv:2201.12023.
TLDEF tl_result tl_compile_parallel(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks,
                                    tl_parallel_plan *choices);

// Find the rank that runs a node of the desc's graph, and so has its weights. Inputs are on every rank whose
// nodes read them. -1 = there is no such node.
TLDEF int32_t tl_find_node_rank(const tl_compiled_ranks *ranks, int32_t node);
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H
