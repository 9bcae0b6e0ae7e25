#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [8] PARALLEL -- pipeline partition, schedules, data-parallel degree, placement on devices
// ============================================================================
//
// How work is split over several ranks: devices, processes or threads with memory of their own, and a link
// between them.
//
//     chain of units   [0 1 2 3][4 5][6 7 8 9]     a stage is a range of units, on one rank or replicated
//     rank                 0      1      2
//
//     rank 0   F0 F1 F2 B0 F3 B1 .. B2 B3          m micro-batches pass through the stages, forward (F) and
//     rank 1      F0 F1 B0 F2 B1 F3 B2 B3          backward (B). The time in which a rank waits is the bubble
//     rank 2         F0 B0 F1 B1 F2 B2 ..
//
//   tl_plan_partition    cuts the chain: least time within the bytes of every rank, exact
//   tl_list_pipeline     what one rank does, in order: GPipe, 1F1B, interleaved 1F1B
//   tl_simulate_pipeline when it does it: times, transfers, bubble, what is in flight
//   tl_choose_replicas   data parallel: how many copies of the whole network pay, with a sharded optimizer, too
//   tl_plan_placement    nodes of a graph on ranks of limited bytes, least time of one pass, with a bound
//   tl_plan_parallel     all of it with one cost model: the best, and why not the others
//
// The bytes of a stage depend on how many micro-batches are in flight, and with 1F1B that depends on how many
// stages follow it. So stages are counted from the end, which makes the bytes a test of each stage by itself,
// and the dynamic programs below exact.
//
// All arithmetic is in integers, times are nanoseconds, rounded up. The same desc gives the same answer on
// every machine.
//
// References: Harlap et al., PipeDream, SOSP 2019, arXiv:1806.03377, section 3.1. Huang et al., GPipe, 2019,
// arXiv:1811.06965. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, SC 2021,
// arXiv:2104.04473, section 2.2. Zheng et al., Alpa, OSDI 2022, arXiv:2201.12023, section 5. Rajbhandari et
// al., ZeRO, SC 2020, arXiv:1910.02054, section 5.

// A link between two ranks, the same in both directions; both are used at the same time.
typedef struct tl_link {
    uint64_t bytes_per_second;  // one way; > 0
    uint64_t latency_ns;        // of each transfer
} tl_link;

#ifndef TL_NO_PLANNERS
// id, name, what a rank does
#define TL_PIPELINES(X) \
    X(TL_PIPELINE_1F1B,        "1f1b",        "one forward, one backward: stage s of S keeps min(m, S - s)")  \
    X(TL_PIPELINE_GPIPE,       "gpipe",       "all forwards, then all backwards: every stage keeps m")        \
    X(TL_PIPELINE_INTERLEAVED, "interleaved", "1f1b over several chunks of units on every rank")

typedef enum tl_pipeline { TL_PIPELINES(TLI_ENUM) TL_PIPELINE_COUNT } tl_pipeline;

// The bytes and the speed of one rank.
typedef struct tl_rank {
    uint64_t budget_bytes;      // of all that a stage holds; 0 = no limit
    uint32_t cost_numerator;    // what costs c takes c * numerator / denominator here, rounded up:
    uint32_t cost_denominator;  // 3 / 2 = needs half as long again; 0 of either = 1
} tl_rank;

// -- partition --

// A part of the network that stays on one rank. Costs and activations are those of one micro-batch.
typedef struct tl_unit {
    uint64_t forward_ns, backward_ns;  // of one micro-batch
    uint64_t activation_bytes;  // that one micro-batch in flight holds, from its forward to its backward
    uint64_t parameter_bytes;   // weights; their gradients have as many bytes
    uint64_t output_bytes;      // to the next unit if that is on another rank; as many come back as gradient
} tl_unit;

// id, name, what is least
#define TL_PARTITION_OBJECTIVES(X) \
    X(TL_PARTITION_BOTTLENECK, "bottleneck", "the time of the slowest stage or transfer")                      \
    X(TL_PARTITION_TOTAL,      "total",      "sum of times + (m - 1) times the largest: of all micro-batches")

typedef enum tl_partition_objective {
    TL_PARTITION_OBJECTIVES(TLI_ENUM) TL_PARTITION_COUNT
} tl_partition_objective;

// id, name, the time of a stage of cost c and W bytes of weights on r ranks
#define TL_REPLICATIONS(X) \
    X(TL_REPLICATION_NONE,      "none",      "c: every stage is on one rank")                     \
    X(TL_REPLICATION_PIPEDREAM, "pipedream", "(c + 4 (r - 1) W / (r link)) / r, as in PipeDream") \
    X(TL_REPLICATION_RING,      "ring",      "c / r + 2 (r - 1) W / (r link) + 2 (r - 1) latency")

typedef enum tl_replication { TL_REPLICATIONS(TLI_ENUM) TL_REPLICATION_COUNT } tl_replication;

// What tl_partition_desc.measure is asked.
typedef struct tl_stage_query {
    int32_t  first_unit, end_unit;  // the stage is first_unit .. end_unit - 1
    int32_t  stages_after;          // 0 = it is the last stage
    int32_t  in_flight_count;       // micro-batches that it keeps at a time
    int32_t  replica_count;         // ranks that share it; 1 = one
    int32_t  rank;                  // the slowest of them
    uint64_t budget_bytes;          // of each of them; 0 = no limit
} tl_stage_query;

typedef struct tl_stage_cell {
    uint64_t time_ns;   // of one micro-batch, there and back, on that rank; not divided by replica_count
    uint64_t bytes;     // that each rank takes; if it does not fit, what would do; UINT64_MAX = not known
    int32_t  fits;      // 1 = within budget_bytes
} tl_stage_cell;

typedef struct tl_partition_desc {
    const tl_unit *units;           // [unit_count]
    int32_t  unit_count;            // > 0
    int32_t  rank_count;            // > 0; not more than units, unless stages may be replicated
    const tl_rank *ranks;           // [rank_count] the first stage is on the first ones; 0 = equal ranks
    uint64_t budget_bytes;          // of every rank, where ranks is 0; 0 = no limit
    int32_t  stage_count;           // 0 = any number up to rank_count; else exactly so many
    int32_t  micro_batch_count;     // m > 0
    tl_pipeline pipeline;           // how many are in flight: 1f1b or gpipe
    tl_partition_objective objective;
    tl_replication replication;     // pipedream and ring need a link
    int32_t  replica_limit;         // ranks of one stage; 0 = rank_count
    uint64_t parameter_multiplier;  // bytes of a rank for each byte of its weights, gradients and optimizer
                                    // included; 0 = 1
    uint64_t rank_bytes;            // that every stage takes besides: scratch, message buffers
    const tl_link *link;            // 0 = transfers take no time
    uint64_t work_limit;            // stages looked at, of a few ns; 0 = 1000 million. See tl_plan_partition
    // 0 = sums over units. Else time and bytes of a stage come from the caller, from a planner of
    // recomputation, for instance; an error of it ends planning. Asked once for each combination of range,
    // stages_after, replica_count, and speed and budget of ranks.
    tl_result (*measure)(const tl_stage_query *query, tl_stage_cell *cell, void *user);
    void    *user;                  // passed to measure
} tl_partition_desc;

typedef struct tl_stage {
    int32_t  first_unit, end_unit;  // first_unit .. end_unit - 1
    int32_t  first_rank, replica_count;  // first_rank .. first_rank + replica_count - 1 have it
    int32_t  in_flight_count;       // micro-batches that it keeps at a time
    uint64_t time_ns;               // of one micro-batch, with what its replicas exchange
    uint64_t transfer_ns;           // of one micro-batch to the next stage and back; 0 for the last stage
    uint64_t bytes;                 // of each of its ranks
} tl_stage;

typedef struct tl_partition {
    tl_stage *stages;               // [stage_count] in the order of the chain
    int32_t  stage_count;
    int32_t  is_proven;             // 1 = value_ns is bound_ns: no partition has less
    uint64_t value_ns, bound_ns;    // of the objective; a lower bound of every partition
    uint64_t bottleneck_ns;         // the largest of all times and transfers
    uint64_t sum_ns;                // of the times and transfers of all stages
    uint64_t peak_bytes;            // the largest of bytes
    uint64_t work;                  // stages looked at
} tl_partition;

// Cut a chain of units into stages, one after the other on the ranks.
//
//   partition   overwritten; release with tl_free_partition
//
// A stage is on replica_count ranks next to each other. Ranks may stay idle where fewer are better; equal
// ranks are taken from the first one. The bytes of a stage are
//
//     parameter_multiplier * parameter_bytes + in_flight_count * activation_bytes / replica_count + rank_bytes
//
// and in_flight_count is m with gpipe, and with 1f1b min(m, stages from it to the end). A transfer takes
// 2 * output_bytes / link + 2 * latency, both directions one after the other; beside replicas it is divided
// by the lesser number of them. In the sum of the objective total, replicas of the sender alone count. That
// objective is the time of a flow line, whose stations are stages and transfers, and each is passed once. In a
// pipeline each is passed forward and again backward: with few micro-batches in flight that takes longer, and
// where an early stage is the slowest it may take less time, see tl_simulate_pipeline.
//
// The answer is the optimum of this model. Where that takes more than work_limit, planning begins again with
// cuts at half the places, evenly spaced by cost, as often as necessary; then, or where the search for total
// ends early, is_proven is 0 unless the bound happens to be reached.
//
// Errors:  TL_ERROR_INFEASIBLE: no cut keeps all budgets. The error names the least number of bytes that would
//          do if every rank had them (tl_find_least_budget), and the units of the stage that takes them.
//          TL_ERROR_UNSUPPORTED: work_limit is too low even with as few places as stage_count asks for.
//          TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW, TL_ERROR_NO_MEMORY, those of measure. *partition is all
//          zero then.
// Cost:    S stages, n units, D ranks: O(S n^2) time, with ranks that differ O(S D n^2), with replicas
//          O(S D^2 n^2) at most; for total so much for each pair of sum and largest time that is not worse than
//          another; work_limit stages for each number of places. Memory: 16 bytes for each stage and unit, and
//          for each rank where they differ or there are replicas; 25 n^2 for each kind of stage that measure is
//          asked of.
// Threads: safe with one env per thread.
// Source:  Harlap et al., PipeDream, 2019, section 3.1 (one level); Zheng et al., Alpa, 2022, section 5.2, with
//          the largest time lowered from optimum to optimum.
TLDEF tl_result tl_plan_partition(tl_env *env, const tl_partition_desc *desc, tl_partition *partition);
TLDEF void      tl_free_partition(tl_env *env, tl_partition *partition);  // accepts zeroed ones

// -- schedules --

// One call of a rank: forward or backward of one micro-batch through one chunk.
typedef struct tl_pipeline_event {
    int32_t  is_backward;           // 1 = backward, 0 = forward
    int32_t  micro_batch;           // from 0
    int32_t  chunk;                 // of the rank; 0 unless interleaved
    uint64_t start_ns, end_ns;      // of tl_simulate_pipeline; else 0
} tl_pipeline_event;

// A chain of rank_count * chunk_count stages; stage i is chunk i / rank_count of rank i % rank_count.
typedef struct tl_pipeline_desc {
    tl_pipeline kind;
    int32_t  rank_count;            // S > 0
    int32_t  chunk_count;           // v; 0 = 1; 2 or more with interleaved, and only then
    int32_t  micro_batch_count;     // m > 0; with interleaved a multiple of rank_count
    const uint64_t *forward_ns;     // [rank_count * chunk_count] of one micro-batch; 0 = all 0
    const uint64_t *backward_ns;    // [rank_count * chunk_count] the same of a backward
    const uint64_t *output_bytes;   // [rank_count * chunk_count] that a forward sends on, and that its gradient
                                    // takes back; the last is not sent. 0 = none
    const uint64_t *activation_bytes;  // [rank_count * chunk_count] of a micro-batch in flight; 0 = not counted
    const tl_link  *link;           // 0 = transfers take no time
    int32_t  keep_events;           // 1 = tl_pipeline_report.events
} tl_pipeline_desc;

// Count the calls of a rank: 2 * micro_batch_count * chunk_count. 0 if they do not fit 31 bits.
TLDEF int32_t tl_count_pipeline_events(const tl_pipeline_desc *desc);

// Find what a rank does, in order.
//
//   rank     from 0; rank 0 has the first stage
//   events   [tl_count_pipeline_events] overwritten; times are 0
//
// Backwards of one chunk take the micro-batches in rising order in every schedule, so that sums of gradients
// are taken as in one process. With 1f1b rank s begins with min(m, S - 1 - s) forwards, then one forward and
// one backward take turns. Interleaved ranks take S micro-batches through one chunk, then through the next, and
// begin with min(v m, 2 (S - 1 - s) + (v - 1) S) forwards.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW. No event is written then.
// Cost:    O(events).
// Threads: safe with one env per thread.
TLDEF tl_result tl_list_pipeline(tl_env *env, const tl_pipeline_desc *desc, int32_t rank,
                                 tl_pipeline_event *events);

// What one rank does and holds.
typedef struct tl_pipeline_rank {
    uint64_t busy_ns;               // in calls; the rest of total_ns it waits
    uint64_t end_ns;                // of its last call
    uint64_t peak_bytes;            // activation_bytes of what is in flight, at most
    uint64_t sent_bytes;            // outputs and gradients
    int32_t  in_flight_count;       // at most: a micro-batch counts in each chunk from the start of its
                                    // forward to the end of its backward
} tl_pipeline_rank;

typedef struct tl_pipeline_report {
    uint64_t total_ns;              // from the first call to the end of the last one
    uint64_t bubble_ns;             // in which ranks wait, summed over them
    double   bubble_ratio;          // bubble_ns / (S total_ns); (S - 1) / (m + S - 1) with equal stages and no
                                    // transfers
    tl_pipeline_rank *ranks;        // [rank_count]
    tl_pipeline_event *events;      // [rank_count * event_count] the calls of rank 0, then of rank 1, ..
    int32_t  event_count;           // calls of each rank; events is NULL unless keep_events
} tl_pipeline_report;

// Simulate the schedule of a pipeline, call by call.
//
//   report   overwritten; release with tl_free_pipeline_report
//
// A rank makes its calls in the order of tl_list_pipeline, each as soon as the call before has ended and what
// it reads has arrived: the output of the stage before, or the gradient of the one after. Between a rank and
// the next one, and between the last and the first, there is one channel for outputs and one for gradients.
// Transfers take their channel in the order in which they were issued, latency + bytes / link each, while calls
// go on. What stays on one rank is there at once.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW, TL_ERROR_NO_MEMORY. *report is all zero then.
// Cost:    O(events of all ranks). Memory: 16 bytes for each micro-batch and stage, 32 for each
//          event that is kept.
// Threads: safe with one env per thread.
TLDEF tl_result tl_simulate_pipeline(tl_env *env, const tl_pipeline_desc *desc, tl_pipeline_report *report);
TLDEF void      tl_free_pipeline_report(tl_env *env, tl_pipeline_report *report);  // accepts zeroed ones

// -- data parallel --

typedef struct tl_replicas_desc {
    uint64_t compute_ns;            // of one step on one rank: forward and backward of the whole batch
    uint64_t parameter_bytes;       // weights
    uint64_t gradient_bytes;        // summed over all replicas in each step
    uint64_t optimizer_bytes;       // state of the optimizer
    uint64_t activation_bytes;      // of the whole batch on one rank, and all else that it scales
    uint64_t rank_bytes;            // that every rank takes besides
    uint64_t budget_bytes;          // of each rank; 0 = no limit
    int32_t  sample_count;          // of the batch: the largest share is one of whole samples; 0 = any share
    int32_t  replica_limit;         // > 0
    int32_t  zero_stage;            // 0 = whole copies; 1 = the optimizer's state is sharded; 2 = gradients too
    int32_t  is_weak;               // 1 = each replica takes a whole batch, so a step does the work of several
    const tl_link *link;            // 0 = transfers take no time
} tl_replicas_desc;

// What p replicas take.
typedef struct tl_replicas {
    int32_t  replica_count;         // p
    int32_t  fits;                  // 1 = within the budget
    uint64_t time_ns;               // of a step: compute and exchange one after the other
    uint64_t compute_ns, exchange_ns;  // of a step: calls; the sum of gradients
    uint64_t sent_bytes;            // by each rank in a step
    uint64_t bytes;                 // of each rank
} tl_replicas;

// Estimate what a number of replicas takes. With G bytes of gradients and W of weights,
//
//     exchange    zero_stage 0: a ring that adds and then hands round: 2 (p - 1) transfers of G / p bytes;
//                 1, 2: p - 1 transfers of G / p add, the owner of a part updates it, p - 1 of W / p hand round
//     bytes       weights + gradients + optimizer + activations / p + rank_bytes, where zero_stage 1 divides
//                 the optimizer's by p, and 2 those of gradients, too
//
// Shares are rounded up. Errors: TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW; *replicas is all zero then.
TLDEF tl_result tl_estimate_replicas(tl_env *env, const tl_replicas_desc *desc, int32_t replica_count,
                                     tl_replicas *replicas);

// Choose the number of replicas with the least time (weak: the least time for each batch) of those that fit; of
// equal ones the least. One replica is always looked at.
//
// Errors:  TL_ERROR_INFEASIBLE: no number fits; the error names the least bytes of all. TL_ERROR_INVALID_ARG,
//          TL_ERROR_OVERFLOW. *replicas is all zero then.
// Cost:    O(replica_limit).
// Threads: safe with one env per thread.
TLDEF tl_result tl_choose_replicas(tl_env *env, const tl_replicas_desc *desc, tl_replicas *replicas);

// -- placement --

typedef struct tl_placement_node {
    uint64_t cost_ns;               // on a rank of cost 1 / 1
    uint64_t bytes;                 // that its rank holds for it throughout
} tl_placement_node;

typedef struct tl_placement_edge {
    int32_t  from, to;              // nodes; from < to
    int32_t  output;                // which output of from; edges with the same one carry the same tensor
    uint64_t bytes;                 // of the tensor
} tl_placement_edge;

typedef struct tl_placement_desc {
    const tl_placement_node *nodes; // [node_count] in topological order
    int32_t  node_count;            // > 0
    const tl_placement_edge *edges; // [edge_count]
    int32_t  edge_count;
    int32_t  rank_count;            // > 0
    const tl_rank *ranks;           // [rank_count] 0 = equal ranks
    uint64_t budget_bytes;          // of every rank, where ranks is 0; 0 = no limit
    const tl_link *link;            // between any two ranks, one for each direction; 0 = no time
    uint64_t work_limit;            // nodes placed, of some 50 ns; 0 = 20 million
} tl_placement_desc;

typedef struct tl_placement {
    int32_t  *rank_of;              // [node_count]
    uint64_t *rank_bytes;           // [rank_count] that its nodes take
    uint64_t *busy_ns;              // [rank_count] costs of its nodes
    int32_t   is_proven;            // 1 = total_ns is the least of all placements
    uint64_t  total_ns, bound_ns;   // the end of the last node; a lower bound of every placement, in any order
    uint64_t  sent_bytes;           // by all ranks
    uint64_t  work;                 // nodes placed
} tl_placement;

// Put the nodes of a graph on ranks so that one pass ends early.
//
//     a -> c      rank 0  [ a ][ c ]    Every rank runs its nodes in the order of the listing, each as soon as
//     b ---^      rank 1  [b]\_^        the rank is free and its inputs are there.
//
//   placement   overwritten; release with tl_free_placement
//
// A tensor goes once to each rank that reads it, over the channel between the two ranks, when its node has
// ended and the channel is free: transfers take it in the order in which the listing reads them, and take
// latency + bytes / link each. The bytes of the nodes on a rank keep its budget.
//
// Graphs of up to 24 nodes are searched by branch and bound, node by node in the order of the listing: proven
// unless work_limit ends it. Larger ones get the best of greedy placements and of contiguous parts of two
// topological orders, improved by moving single nodes. bound_ns is the larger of total cost / ranks and the
// critical path (so of the heaviest node, too), with each node on the fastest rank, or what the search proved.
//
// Errors:  TL_ERROR_INFEASIBLE: no placement was found within the budgets; the error names bytes that would do
//          if every rank had them. TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW, TL_ERROR_NO_MEMORY. *placement is
//          all zero then.
// Cost:    work_limit, twice at most; before that nodes * ranks, and tl_plan_partition four times with an
//          eighth of work_limit. Memory: 8 bytes for each edge and rank, node and rank, pair of ranks.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_placement(tl_env *env, const tl_placement_desc *desc, tl_placement *placement);
TLDEF void      tl_free_placement(tl_env *env, tl_placement *placement);  // accepts zeroed ones

// -- automatic --

// id, name, why a way to split the work was chosen, or not
#define TL_PARALLEL_REASONS(X) \
    X(TL_PARALLEL_CHOSEN,        "chosen",        "the least time of all that fit")                           \
    X(TL_PARALLEL_MEMORY,        "memory",        "a rank would take more than its budget")                   \
    X(TL_PARALLEL_COMMUNICATION, "communication", "slower, most of all for what the ranks send")              \
    X(TL_PARALLEL_BUBBLE,        "bubble",        "slower, most of all for ranks that wait for others")       \
    X(TL_PARALLEL_IDLE,          "idle",          "slower, most of all for ranks that it does not use")       \
    X(TL_PARALLEL_EQUAL,         "equal",         "as fast as the one chosen, which was looked at before it") \
    X(TL_PARALLEL_RECOMPUTATION, "recomputation", "slower, most of all for what runs again")

typedef enum tl_parallel_reason { TL_PARALLEL_REASONS(TLI_ENUM) TL_PARALLEL_REASON_COUNT } tl_parallel_reason;

typedef struct tl_parallel_desc {
    const tl_unit *units;           // [unit_count] of one micro-batch
    int32_t  unit_count;            // > 0
    int32_t  rank_count;            // > 0; equal ranks
    uint64_t budget_bytes;          // of every rank; 0 = no limit
    int32_t  micro_batch_count;     // of one step, m > 0
    uint64_t optimizer_multiplier;  // bytes of the optimizer's state for each byte of weights; 0 = none
    uint64_t rank_bytes;            // that every rank takes besides
    const tl_link *link;            // 0 = transfers take no time
    int32_t  chunk_limit;           // of interleaved; 0 = 4, 1 = without
    uint32_t kinds;                 // bits 1 << tl_parallelism_kind of what may be chosen; 0 = all
    const tl_placement_desc *graph; // the network as nodes, there and back of one micro-batch; 0 = model is not
                                    // looked at
    uint64_t work_limit;            // calls simulated, stages looked at, 1000 for each choice; 0 = 500 million
} tl_parallel_desc;

// One way to split the work: replica_count copies of a pipeline of stage_count ranks.
typedef struct tl_parallel_choice {
    tl_parallelism_kind kind;       // none, data: one stage; pipeline: several, replicated or not; model
    tl_parallel_reason  reason;
    int32_t  replica_count, stage_count;    // model: 1, ranks that are used
    tl_pipeline pipeline;
    int32_t  chunk_count;           // of interleaved; else 1
    int32_t  zero_stage;            // 0 to 2: the first that fits
    uint64_t time_ns;               // of one step; with reason memory 0, as are the next five
    uint64_t communication_ns;      // that it is longer for transfers and exchange
    uint64_t bubble_ns;             // that it is longer because ranks wait for others, or for host copies
    uint64_t idle_ns;               // that it is longer for ranks that are not used
    uint64_t recompute_ns;          // that it is longer for what runs again; of tl_compile_parallel
    uint64_t sent_bytes;            // by all ranks
    uint64_t bytes;                 // of the rank that takes most; with reason memory the least that was found
} tl_parallel_choice;

typedef struct tl_parallel_plan {
    tl_parallel_choice *choices;    // [choice_count] in the order in which they were looked at
    int32_t  choice_count;
    int32_t  best;                  // index of the one chosen
    int32_t  is_complete;           // 1 = work_limit left none out
    uint64_t bound_ns;              // all work on all ranks: no way takes less
    uint64_t work;
} tl_parallel_plan;

// Choose how to split the work over ranks: not at all, data parallel, pipelines, both, or model parallel.
//
//   plan   overwritten; release with tl_free_parallel_plan
//
// Looks at every number p of replicas, at most m, and S of stages for which there are p * S ranks, all
// schedules, and 2 to chunk_limit chunks where they can be interleaved. A replica takes ceil(m / p)
// micro-batches. Stages are those of tl_plan_partition with the better of its two objectives, times those of
// tl_simulate_pipeline. When a rank has made its last call, the gradients of its stage are exchanged as in
// tl_estimate_replicas. A rank takes
//
//     weights + gradients + optimizer, sharded over p by zero_stage, + activations in flight + rank_bytes
//
// Model parallel takes m times what tl_plan_placement finds for one micro-batch; what waits for inputs counts
// as bubble there. Everything is kept: recompute_ns is 0. time_ns is bound_ns + idle_ns + bubble_ns +
// communication_ns. tl_compile_parallel compares real plans of a graph, in which nodes may run again.
//
// Errors:  TL_ERROR_INFEASIBLE: nothing fits; the error names the least bytes. TL_ERROR_INVALID_ARG,
//          TL_ERROR_OVERFLOW, TL_ERROR_NO_MEMORY. *plan is all zero then.
// Cost:    for all p and S: a partition and 2 m S / p calls, a few times.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_parallel(tl_env *env, const tl_parallel_desc *desc, tl_parallel_plan *plan);
TLDEF void      tl_free_parallel_plan(tl_env *env, tl_parallel_plan *plan);  // accepts zeroed ones

#ifndef TL_NO_TEXT
// Write the choices as a table, a line each, the one chosen first.
TLDEF size_t tl_print_parallel_plan(const tl_parallel_plan *plan, char *buf, size_t size);
#endif
// Name a value.
TLDEF const char *tl_name_parallel_reason(tl_parallel_reason reason);               // "bubble"
TLDEF const char *tl_name_pipeline(tl_pipeline pipeline);                           // "1f1b"; "?" out of range
TLDEF const char *tl_name_partition_objective(tl_partition_objective objective);    // "total"
TLDEF const char *tl_name_replication(tl_replication replication);                  // "ring"
#ifndef TL_NO_TEXT
// Parse exactly what the tl_name_ function returns: 1 and the value, or 0.
TLDEF int tl_parse_pipeline(const char *text, tl_pipeline *pipeline);
TLDEF int tl_parse_partition_objective(const char *text, tl_partition_objective *objective);
TLDEF int tl_parse_replication(const char *text, tl_replication *replication);
#endif
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

