#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [12] RUN -- the executor: plans, online runs, layer-by-layer backprop
//
//     tl_plan  -----+
//                   +--> tl_next_step --> ranges claimed, copies enqueued -->
//     budget -------+                     your kernel --> the next step
//     (online)
//
// One executor carries out the steps of two sources: a plan that was made before the run, or
// online decisions, made one step at a time under a byte budget. Activations are really freed,
// and computed again by the caller's forward kernels. Gradients are bit-identical whatever was
// dropped, because sums are taken in the same order. An online run is recorded as a plan.
// After every pass the run compares the peak that the backend counted, without knowing the
// plan, with the simulated one, and the bytes in use with those of its inputs and results:
// TL_ERROR_MISMATCH if they differ.
//
// Online, the forward pass keeps the tensors that the policy wants and evicts when the budget
// is full. The backward pass recomputes from the nearest resident ancestors and keeps some
// recomputed tensors at binomial distances (Griewank and Walther, Algorithm 799: Revolve,
// 2000), so a chain of n costs O(n log n) forwards with O(log n) checkpoints; with none, which the
// least bytes leave room for, O(n^2).
//
// Checkpoints at an interval n, of a strategy or of the policy every-n, are the nodes whose layer, or
// place in the listing where they have none, is divisible by n, planned and online:
//
//     input | 1 2 3 | 4 5 6 | 7 8       interval 3: 3 and 6 are kept
//
// Where a skip leads past a checkpoint, a backward needs forwards of earlier spans: of what these make,
// only what is read in another span stays, and the rest is made again for its own span, if that lowers
// the peak (online: without a budget_bytes).
// The decisions depend on the simulator alone, so tl_init_run tries them out: a budget that is
// too small is refused before anything runs.
//
// A hybrid run plans what is known before it, and decides the rest when it is known. A dynamic node has an
// upper bound on the bytes that it makes; its forward reports the real ones (tl_report_bytes):
//
//     arena   |== a ==|=== v: bound =======|==== b ====|     until v reports
//             |== a ==|== v ==|== c ==|    |==== b ====|     then: c, dropped and made again by the plan, stays
//
// The plan is made and placed by the bounds, so it holds whatever is reported, and no pass fails for memory.
// After a report the rest of it is looked at again: what it drops and runs again later stays, where that fits
// into the bytes that are free then. What is to come is placed beside what is there; what has not
// reported yet counts with its bound.
//
// Mixed precision is a graph whose tensors have formats, as tl_apply_precision makes them:
//
//     a (f32) --> [convert] --> a_bf16 (bf16) --> [c]        forward   a_bf16 = round(a)
//      da += (f32) da_bf16 <--- da_bf16 (bf16) <---+         backward  da += da_bf16
//
// The bytes of the tensors are those of their formats, so the peak falls. Parameters, their gradients
// and the optimizer belong to the caller and stay f32. A loss scaler multiplies the gradient of the
// loss; the caller divides the gradients of the parameters by the scale, or skips the step
// (Micikevicius et al., Mixed Precision Training, 2018, arXiv:1710.03740, section 3). Of weights that the
// graph owns (states) the run finds an overflow itself, and skips the step.
// ============================================================================

typedef struct tl_run tl_run;

// One tensor as a kernel sees it.
typedef struct tl_operand {
    tl_range  range;   // bytes 0 = not present (no gradient wanted, no saved bytes)
    void     *host;    // address while the step is mapped (see tl_next_step), else NULL; NULL for 0 bytes
    tl_format format;  // of the tensor, and of its gradient, from tl_run_desc.formats. Without formats,
                       // and for saved bytes and scratch, it is f32, whatever call->precision says
#ifndef TL_ONLY_TABLES
    uint64_t  rows;    // in a region of rows (tl_run_desc.rows): it is a ring of so many, see tl_find_row;
                       // 0 = it is whole, or holds the elements of the call alone
    uint64_t  shift;   // of a ring: row r of the tensor is row (r + shift) % rows of it
    uint64_t  row_bytes;   // of a ring: from one of its rows to the next
#endif
} tl_operand;

// One call of a kernel. Counts are those of the node.
typedef struct tl_kernel_call {
    const tl_graph   *graph;           // that of the desc (or scaled to the precision), with a fusion, too
    int32_t           node;
    tl_step_kind      kind;            // FORWARD, FORWARD_INPLACE, FORWARD_SAVE, BACKWARD
    int32_t           recompute;       // 1 = this forward ran before in this pass
    int32_t           outputs_ready;   // FORWARD_SAVE: 1 = the outputs are resident: make saved only
    int32_t           micro_batch;     // in slot s of pass k of a plan with n slots: first + k x n + s,
                                       // first as in tl_run_desc.first_micro_batch
    uint64_t          step;            // training step, from 0: of a state so many updates were made before,
                                       // unless some were skipped (tl_skip_updates, loss_scaler)
    uint64_t          seed;            // the same in all calls of this node in this pass, by its origin: with
                                       // states, other formats or fewer ranks as without. A state of
                                       // tl_apply_optimizer has that of the node whose weights it is
    tl_precision      precision;       // element size of the buffers; mixed: see their formats
    const tl_operand *inputs;          // [input_count] read only; in place: one is outputs[0]
    const tl_operand *outputs;         // [output_count] written; backward: read only, if needed
    const tl_operand *output_grads;    // [output_count] backward: read only
    const tl_operand *input_grads;     // [input_count] backward: add (+=); range.bytes 0 = not wanted
    tl_operand        saved;           // FORWARD_SAVE: written; BACKWARD: read only
    tl_operand        scratch;         // fwork, swork or bwork bytes, content undefined
    uint64_t          first, count;    // the call is for the elements first .. first + count - 1 of `total`;
                                       // 0 and total, unless the node takes blocks, or rows of a weight are
                                       // made or updated, see tl_kernel_fn
    uint64_t          total;           // elements of output 0: its bytes / those of an element of its format
                                       // (without formats: of the precision), rounded down
    int32_t           by_rows;         // 1 = first, count and total are rows of output 0, in a region of rows
    tl_run           *run;             // that makes the call
    int32_t           polled;          // how often this call was answered TL_NOT_READY before; 0 = it is new
#ifndef TL_ONLY_TABLES
    float             loss_scale;      // factor of all gradients of this training step: an update, and a node
                                       // that clips, divide by it; 1 without a loss scaler
#endif
} tl_kernel_call;

// Compute one call. Any result but TL_OK and TL_NOT_READY stops the pass with TL_ERROR_KERNEL. A gradient is
// the sum of its contributions in call order: a backward adds to input_grads, which start as zeroes, in the
// order of its inputs, and to the parameter gradients, which belong to the caller.
//
// A node that says takes_blocks is called for a range of elements at a time where one of its operands exceeds
// the backend's largest binding (tl_backend_limits.binding_bytes), from the first elements on. Operands that
// have `total` elements hold those of the call alone: the first byte at host, or of range, belongs to element
// `first`; bytes behind the last whole element lie in the ranges of the last call, and in no count. Operands
// with another number of elements, and scratch, are whole in every call. What depends on the number of an
// element (random numbers of a dropout) goes by first, so no result depends on the ranges. An op with rows is
// called for blocks of them then, as a region of its own (tl_run_desc.rows); a graph's node, where
// tl_cut_desc.binding_bytes asks for that.
//
// The members of a fused node (tl_run_desc.fusion) are called in the same way, for a block of elements at a
// time and in turns: in a forward each member in order; in a backward first the forwards that run again (as
// FORWARD, with recompute 1) and then the backwards, last member first. What lies between two members are
// blocks of scratch.
//
// The members of a region (tl_run_desc.rows) are called for the rows first .. first + count - 1 of the `total`
// of their output 0, with by_rows 1, or, where they take blocks, for elements as above. An operand may be a
// ring then, of which only the rows under those of the call hold what they should: tl_find_row says where each
// lies. All others are whole. What a window covers outside of the tensor is padding: nothing of it is there. In
// place, the output is the ring of that input, and its rows lie on the same rows, or on the first under the
// window. A stream in a region is loaded by the kernel of op "input". In regions of tl_cut_rows, which have
// backwards, too, what is cut holds the rows of the call and no more, from the first one on: a kernel that
// takes pointers and a number of rows works as it is.
//
// The backward of a node that reads states in pieces (TL_STATE_PIECES) is called first for all other gradients:
// those of these states have 0 bytes. Then for rows first .. first + count - 1 of `total` of each: that
// gradient alone has bytes, and begins with row `first`; of all else it finds what the first call found, but no
// weight in pieces, because rows before were updated. Between two such calls the state's backward updates the
// rows: its outputs, and the gradient of output 0, hold these rows alone.
//
// TL_NOT_READY: the call has begun and its work is not finished: it was given to a thread, or a part of it was
// done. The same call is made again, polled, until it answers otherwise: same node, kind, micro_batch, operands
// at the same addresses with the bytes as the kernel left them, scratch included; call->polled counts the
// answers before. Until then nobody else touches what it writes, and nobody overwrites what it reads. The
// tl_kernel_call itself lives for the length of one call only: a thread that goes on with the work needs a copy
// of it and of the operands it uses. If the pass is given up between two polls, the kernel is not called again:
// its caller has to end work of its own before tl_reset_run, tl_free_run, or an error of another kernel, take
// the operands away.
typedef tl_result (*tl_kernel_fn)(const tl_kernel_call *call, void *user);

// Find a row of an operand on the host, of a call by rows or a whole one.
//
//   row_bytes   of the tensor; not read where it is a ring
//
// Cost: O(1).
TLDEF void *tl_find_row(const tl_operand *operand, uint64_t row, uint64_t row_bytes);

typedef struct tl_kernel {
    const char  *op;        // nodes of this op
    tl_kernel_fn forward;
    tl_kernel_fn backward;  // 0 = the node is run forward only
    void        *user;
} tl_kernel;

// Moments of the random hook, for random state that is not a function of call->seed: before the first
// forward of a node (RECORD), before the node runs again in the same pass (REPLAY), and after that (RESUME).
#define TL_RANDOM_MOMENTS(X) \
    X(TL_RANDOM_RECORD, "record", "remember the state under this node")           \
    X(TL_RANDOM_REPLAY, "replay", "put the remembered state in place, keep the present one") \
    X(TL_RANDOM_RESUME, "resume", "put the present state back")

typedef enum tl_random_moment {
    TL_RANDOM_MOMENTS(TLI_ENUM) TL_RANDOM_MOMENT_COUNT
} tl_random_moment;

// One step as it was carried out; [13] TRACE draws these.
typedef struct tl_run_event {
    tl_step  step;
    int32_t  index;         // in the pass, from 0
    int32_t  micro_batch;   // that it acted on, as in tl_kernel_call
    uint64_t training_step; // of the pass
    int32_t  recompute;     // 1 = a forward that ran before in this pass
    uint64_t start_ns, end_ns;  // of the backend's clock; a WAIT starts where its copy was issued
    uint64_t device_bytes;  // highest live bytes of the backend during the step
    uint64_t host_bytes;    // after it
} tl_run_event;

// What a range of the caller's memory holds that kernels read or write beside their operands.
#define TL_VARIABLES(X) \
    X(TL_VARIABLE_PARAMETER,  "parameter",  "weights: read by kernels, changed between steps")        \
    X(TL_VARIABLE_GRADIENT,   "gradient",   "of weights: backwards add to it")                         \
    X(TL_VARIABLE_OPTIMIZER,  "optimizer",  "moments: neither read nor written in a pass")             \
    X(TL_VARIABLE_STATISTICS, "statistics", "running means: a forward changes them, once a pass")      \
    X(TL_VARIABLE_RANDOM,     "random",     "state of a generator: a forward changes it, once a pass")

typedef enum tl_variable_kind {
    TL_VARIABLES(TLI_ENUM) TL_VARIABLE_COUNT
} tl_variable_kind;

// A range of the caller's memory that outlives a step, as the variables of TensorFlow do. Two do not overlap,
// unless both have a shard and are of nodes that are not run as one: weights that several nodes share are
// given once.
typedef struct tl_variable {
    int32_t       node;   // whose kernels use it, of the desc's graph; -1 = of several, or of none
    tl_variable_kind kind;
    void         *host;   // of the caller; not NULL unless bytes is 0
    uint64_t      bytes;
    float        *shard;  // of a node's gradient: the range holds it during that node's backward alone, and
                          // sums over replicas are added to this ("sums over ranks"); 0 = not sharded
} tl_variable;

// The costs of a node. Planners compare nodes, so any unit does, if it is the same for all.
typedef struct tl_node_cost {
    uint64_t fwd_ns, bwd_ns;  // 0 = not known
} tl_node_cost;

// What a budget is to be compared with, as numbers. All of them include desc.base_bytes and what the backend
// takes beside an arena, so each of them is a budget.
typedef struct tl_run_figures {
    uint64_t keep_all_bytes;        // the least budget with which nothing is made again
    uint64_t least_bytes;           // the least budget found to work; UINT64_MAX = none of 64 bits
    uint64_t budget_bytes;          // that was asked for, in bytes or as a ratio of keep_all_bytes; 0 = none
    uint64_t keep_all_peak_bytes;   // live bytes of the plan that keeps everything, without the base
    uint64_t keep_all_arena_bytes;  // the high-water mark of its offsets
    uint64_t peak_bytes, arena_bytes;  // the same of the plan that the run has; 0 = the budget does not fit
    uint64_t table_bytes;           // of memory of the env that the run keeps as long as it lives, beside the
                                    // arena: graph, plan, kernels and lists; 0 = the budget does not fit
    uint64_t work;                  // elementary steps of planning, for the figures, too
} tl_run_figures;

// Messages between ranks, which may be threads, processes or machines. The functions are called by the thread
// of the run and do not block. Examples have one for threads and one for MPI.
typedef struct tl_transport {
    void   *self;                 // first argument of all
    int32_t rank, rank_count;     // 0 <= rank < rank_count
    // Begin to send, or to receive, so many bytes. The memory stays as it is until the request ends. A message
    // is received by the receive of that peer with its tag and as many bytes; messages of one peer and tag
    // arrive in their order. TL_OK: the message was taken, and *request is a number >= 0 for the calls below.
    // TL_NOT_READY: it was not taken, and the same message is offered again. Another result: it has failed.
    // With these two *request is not read.
    tl_result (*send)(void *self, int32_t peer, uint32_t tag, const void *data, uint64_t bytes,
                      int32_t *request);
    tl_result (*receive)(void *self, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int32_t *request);
    // TL_OK: the message has been sent or has arrived, and the number is free; TL_NOT_READY; another result: it
    // has failed, and the number is free. TL_ERROR_PEER_LOST: the peer has ended, or has not answered so many
    // polls.
    tl_result (*poll)(void *self, int32_t request);
    void      (*cancel)(void *self, int32_t request);  // give a message up; the number is free
    const tl_link *link;          // what messages take, the same figures on every rank: strategies that cut the
                                  // graph plan with it, and the costs of the graph are nanoseconds then. 0 =
                                  // no time
} tl_transport;

struct tl_remat_progress;   // of [6]
struct tl_remat_pool;

typedef struct tl_run_desc {
    const tl_graph    *graph;         // must outlive the run
    const tl_backend  *backend;       // must outlive the run. Where it has no accounts, others may not claim or
                                      // release during a pass
    const tl_kernel   *kernels;       // [kernel_count] copied; one for every op but "input"
    int32_t            kernel_count;
    uint32_t           kernel_precisions;  // bits 1 << tl_precision that they compute, full is none of them;
                                          // 0 = f32 only

    // What to run. Without a strategy the plan is replayed if there is one, else the run is online. A lazy
    // strategy makes the plan if none is given: gradient full keeps all, an interval keeps its
    // checkpoints; for gradient checkpointed with interval 0, and none under a budget, tl_plan_remat finds the
    // cheapest plan within budget_bytes. With memory minimal-peak tl_plan_order finds the order of the
    // forwards and their places, in the place of gradient full's plan and wherever that fits budget_bytes;
    // where it does not, tl_plan_remat follows for the same two gradients as above. A plan that is given, or
    // that comes of checkpoints or of an interval, keeps its order. Forwards in another order are as good as
    // those of the listing to kernels that draw no random numbers from one stream for all nodes. With memory
    // cached, see version below.
    const tl_strategy *strategy;      // 0 = from the fields below; read during the call
    const tl_plan     *plan;          // must outlive the run; 0 = made from the fields below, or online
    const tl_checkpoint_config *checkpoints;  // lazy: keep these; that of a fraction stays within the budgets,
                                      // too. Read during the call
    const tl_device   *device;        // for simulated times; 0 = copies take no time; read in the call
    int32_t            inference;     // 1 = forward only; ignored with a plan or a strategy
    int32_t            repeat_count;  // passes a training step, each a micro-batch, or as many as the plan has
                                      // slots; 0 = that of the plan, else 1

    // Budgets. That of the device binds base_bytes and what the run takes from the backend: one arena, taken by
    // tl_init_run in one block, or in those that the plan names; it is cut where the backend's largest block
    // asks for it; that of the host an arena for the host copies. A plan without offsets gets
    // them then, and so does one whose offsets are no multiples of the backend's alignment; decisions made
    // online are tried out and placed. With strategy.memory standard, or with an eviction function of the
    // caller, every buffer is a block of its own: base_bytes and the peak of the live bytes count, and a pass
    // can fail for memory.
    uint64_t budget_bytes;            // device; 0 = no limit of your own
    uint64_t host_budget_bytes;       // host; 0 = no host tier: never spill. Of a plan that is given with host
                                      // steps: 0 = as much as it needs
    uint64_t base_bytes;              // taken from the budget: weights, gradients, optimizer state

    // Online decisions.
    tl_policy   policy;               // as in tl_manager_desc; 0 = keep-all. none without budget_bytes: the
                                      // least bytes that work; a chain of n is n * n / 2 forwards then, a
                                      // budget makes it fewer
    tl_eviction eviction;             // 0 = cost
    tl_evict_fn evict;                // TL_EVICTION_CALLER only; tl_init_run calls it, too
    void       *evict_user;
    tl_codec    codec;                // compress evicted f32 tensors (lossy); 0 = never. A lazy strategy takes
                                      // it as tl_compile does

    // Hooks; 0 = none.
    tl_result (*load)(tl_run *run, int32_t micro_batch, void *user);  // write the inputs; what was
                                      // never written is undefined, and no error, but of inputs that die, which
                                      // each pass uses up. tl_run_plan calls it before each pass, a rehearsal
                                      // once; tl_start_pass does not
    void       *load_user;
    void      (*random)(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user);
    void       *random_user;
    void      (*observe)(const tl_run_event *event, void *user);  // needs profiling
    void       *observe_user;
    int32_t     profiling;            // 1 = time every step (or the strategy's flag)
    uint64_t    seed;                 // of call->seed
    uint64_t    first_step;           // number of the first training step; > 0 when a training is resumed
    uint32_t    loss_gradient_word;   // the gradient of a loss, that is of each output that no node reads, is
                                      // filled with it; 0 = the bits of 1.0f. With formats or
                                      // a loss_scaler: bits of an f32, converted to its format

    // Mixed precision. The graph's bytes are those of the formats. The run itself carries out nodes of op
    // "convert" that have no kernel: they have one input, one output of as many elements, and nothing else.
    // f16 and bf16 are converted by the backend's codecs; between these two the values pass through f32 in
    // the node's scratch (fwork, and bwork for a backward). A host-visible backend needs no such scratch.
    // Integers, and gradients to which other nodes add, are converted on host-visible backends only, in f32,
    // rounded once. TL_NO_PLANNERS and TL_NO_PRECISION leave mixed precision out.
    const uint8_t         *formats;   // [tensor_count] tl_format; must outlive the run; 0 = all f32. Needs
                                      // strategy.precision mixed, or no strategy; kernels must compute
                                      // mixed if one of them is not f32
    const tl_quantization *quantizations;  // [tensor_count] for the i8 and i16 tensors that conversions read
                                      // or write; must outlive the run; 0 = none
    tl_loss_scaler        *loss_scaler;  // its scale multiplies the gradient of an output that no node reads;
                                      // read, with defaults filled in, at the start of each training
                                      // step. Must outlive the run; 0 = a scale of 1. Where the graph has
                                      // trained states, the run looks at their gradients before the first
                                      // update: where one holds an infinity or NaN, no state is updated in
                                      // this training step; and it calls tl_next_loss_scale at the end of the
                                      // step. So no update may stand in front of a backward that adds to a
                                      // gradient of a state (TL_UPDATES_END). A backend whose memory the host
                                      // does not see is waited for there, and its gradients are copied

    // Results kept from pass to pass, with strategy.memory cached. version tells the version of all that the
    // forward of a node reads beside its inputs: of the contents of a graph input, of weights and of what else
    // its kernel depends on; 0 = it differs in every pass, as random numbers do. Versions are compared, never
    // ordered. tl_init_run asks for every node, micro-batch 0, but not for conversions that the run carries out
    // itself. A node is constant if its version and those of all that it is made from are not 0 and, in
    // training, none of these has a backward: a constant prefix, frozen layers; but not one that may run once
    // only, whose effect is wanted in every pass. What others read of constant
    // nodes, and results among them, is kept, as much of it as the budget holds: both the plan of a pass that
    // makes it and that of one that begins with it, the same arenas for both. A pass runs the shorter plan if
    // all that was asked for has the versions of the pass before, no input among it was written since
    // (tl_write_tensor: a write counts as a change, whatever the version says), and that pass did not fail.
    // Plans are made as for a lazy strategy, also in mode eager, so give no plan, policy, eviction, codec; and
    // such a run goes by passes and steps, not layer by layer. Where nothing can be kept, it is a pooled one.
    uint64_t (*version)(int32_t node, int32_t micro_batch, void *user);  // 0 = nothing is known to be
                                      // unchanged: nothing is kept. Called by tl_init_run and tl_start_pass
    void       *version_user;

    // Fusion. With it the run's graph is fusion->graph: plan, checkpoints, formats, steps and events are of
    // that. Kernels and tensors stay those of `graph`: a fused node calls the kernels of its members,
    // block by block, and what lies between two members is never whole in memory. Each must say takes_blocks.
    // strategy.enable_fusion without it fuses what says so, in blocks that suit the backend; a plan or formats
    // that are given are of a fused graph then and need its fusion. Where a node is fused there is no random
    // hook: members take turns.
    const struct tl_fusion_plan *fusion;  // of tl_plan_fusion; must outlive the run; 0 = none

    // Regions of rows: the run's graph is rows->graph, and a plan, checkpoints, steps are of that. Kernels and
    // tensors stay those of `graph`: see tl_kernel_fn. The kernel of op "input" loads rows of streams in
    // regions of an inference. f32 alone; without fusion, compiled plans, formats, random and version hooks,
    // transport and layers.
    const struct tl_rows_plan *rows;  // of tl_plan_rows, or of tl_cut_rows; must outlive the run; 0 = none

    // Compiled plans. A strategy that leaves more open than a plan, fusion, precision mixed, parts of a batch,
    // is compiled ([9]) within budget_bytes when the run is made; or give what tl_compile made of `graph`, with
    // the alignment of the backend, and no plan, checkpoints, formats or fusion. The run's graph is the
    // compiled one; kernels, and the tensors that are written and read, stay those of `graph`, scaled to a part
    // where the batch is split: load hooks write the samples of one micro-batch. Options that leave out [7] or
    // planners leave this out.
    const struct tl_compiled_plan  *compiled;   // must outlive the run; 0 = none
    const struct tl_precision_desc *precision;  // of precision mixed, as in tl_compile_desc; read during the
                                      // call; schemes for which the backend has no codec are left out. 0 = f32
                                      // and bf16
    const tl_transport *transport;    // of the plan of a rank (tl_compile_ranks), and of tl_reduce_run;
                                      // must outlive the run. Rank r of it has stage r % rank_count. For
                                      // backends whose memory the host sees. 0 = one rank
    int32_t     first_micro_batch;    // >= 0: number of the first one of a training step; replica g of those
                                      // that share a batch has g times as many as one takes (tl_reduce_run).
                                      // In a pipeline all ranks have the same, and one seed and repeat_count.
                                      // In automatic parallelism all ranks give the same, and the run counts
    int32_t     may_split;            // 1 = the batch of `graph` may be split, as in tl_compile_desc; for
                                      // pipelines as in tl_ranks_desc
    uint64_t    split_cost;           // as in tl_compile_desc

    // What belongs to a node rather than to its op. Kernels get users[origin] in the place of their own user,
    // where origin is that of the node in the graph from which all others were made (tl_node.origin): ids move
    // with fusion and conversion, origins do not. A node that comes from none gets its kernel's.
    void *const    *users;            // [user_count] must outlive the run; 0 = one user for every node of an op
    int32_t         user_count;
    const tl_variable *variables;     // [variable_count] what kernels read and write beside their operands;
                                      // must outlive the run
    int32_t         variable_count;

    // Several steps under way. k = in_flight: step j of a plan may be begun when step j - k is finished; one
    // that reads what another under way writes, or writes what it reads or writes, waits for that one, and so
    // does a call of the same node. So no result depends on k, or on the order in which steps end. What a
    // kernel changes beside its operands, such as parameter gradients, is safe where it belongs to one node;
    // where several nodes add to the same, in_flight must be 1. Memory steps count as steps, and take no time.
    // Peaks, places and the budget are those of k steps; a plan that was placed for fewer is placed again. For
    // runs of a plan, without random hook and dynamic nodes.
    int32_t     in_flight;            // most steps under way together; 0 and 1 = one after the other

    // Planning, where the run makes its plan. Less of it starts sooner, with a plan that may cost more or, near
    // the least budget, with none: a refusal names the fewest bytes that were found within it.
    uint64_t            work_limit;   // elementary steps of 2 to 8 ns of each plan that is made, as in
                                      // tl_remat_desc, tl_order_desc, tl_compile_desc and tl_ranks_desc;
                                      // 0 = as many as expected_steps is worth, of tl_plan_remat; the others:
                                      // their defaults

    // tl_init_op_run only.
    double              budget_ratio; // > 0: budget_bytes is that part of figures.keep_all_bytes, rounded down
    const tl_node_cost *costs;        // [op_count] of ops whose own are 0; read during the call; 0 = none
    tl_run_figures     *figures;      // written whether the budget fits or not, and zero where a rehearsal
                                      // refuses; 0 = not wanted
    struct tl_rehearsal *rehearsal;   // tl_rehearse_run first, whose errors refuse the run, and whose costs
                                      // count where there are no others. Inputs are what the load hook writes;
                                      // without one they are zeroes, of which less follows. Written whether
                                      // that works or not; release with tl_free_rehearsal. 0 = no rehearsal

    // More of planning. Without a work_limit tl_plan_remat searches in rounds, each of four times as much work
    // as the one before; the first has 20 000 steps a node, from a million to 30 million. A round is begun
    // while an eighth of what the gap between plan and bound costs over expected_steps is more time than the
    // round takes, so a start ends when the gap is closed. Times are the costs of the graph, where these are
    // nanoseconds: with desc.costs, a rehearsal that has a clock, a device, or a link of the transport. Else a
    // forward or backward counts as 10 us, and 0.1 ns for each byte of its outputs. Where no round finds a
    // plan, the least budget is searched with all of the planner's work, as by tl_plan_remat.
    uint64_t   expected_steps;        // passes for which the plan is to last; 0 = 1000
    int      (*progress)(const struct tl_remat_progress *progress, void *user);  // called about every million
                                      // steps of each plan that is made, also by tl_compile, and with costs of
                                      // 0 by tl_plan_order: 1 = stop with the best so far; if there is none,
                                      // the start is refused. Planners of ranks do not call it
    void      *progress_user;         // passed to progress
    struct tl_remat_pool *pool;       // of tl_init_remat_pool: starts of one graph, with the same costs and
                                      // alignment, share what they find; 0 = this one begins with nothing. It
                                      // gets the plans of tl_plan_remat, not those of tl_compile

    int32_t    counts_tables;         // 1 = the budget binds the tables of the run, too, beside arena and base
                                      // (tl_run_report.table_bytes). For runs of a plan; one that is given is
                                      // the caller's, and not counted. 0 = tables are not in it

    uint64_t   submit_ns;             // on a backend with limits.in_order: most work between submits, by the
                                      // costs of the graph where these are nanoseconds (see expected_steps). A
                                      // call or copy that takes longer is alone in its submit. Drivers stop
                                      // what runs for seconds. 0 = 2 ms; UINT64_MAX = a pass is one submit

    int32_t    may_train_in_pieces;   // tl_init_op_run only: 1 = states with rows are trained in pieces where a
                                      // plan within the budget costs less then, or there is none without
                                      // (tl_choose_pieces). None are with several passes a training step, a
                                      // loss_scaler, a transport or steps in flight
    int32_t    may_cut_rows;          // tl_init_op_run only: 1 = ops with rows go block by block where a plan
                                      // within the budget costs less then, or there is none without
                                      // (tl_choose_rows, tl_cut_rows). What `rows` does not go with is refused,
                                      // whatever the budget, as are plan, checkpoints and rows. Where something
                                      // is cut, nothing is trained in pieces; where a strategy says which plan
                                      // it is, regions are those with which that one fits
    uint64_t   piece_call_cost;       // of each further call of a kernel, for pieces or blocks of rows, in the
                                      // units of the costs of ops; 0 = none is counted, of blocks that of the
                                      // device. A rehearsal does not measure it
} tl_run_desc;

// What the last pass did. With TL_ONLY_TABLES what was carried out is counted, and nothing else.
typedef struct tl_run_report {
#ifndef TL_ONLY_TABLES
    uint64_t planned_peak_bytes, measured_peak_bytes;    // equal, or the pass failed
    uint64_t planned_arena_bytes, measured_arena_bytes;  // 0 without an arena; with blocks the highest of them
    uint64_t planned_taken_bytes; // arena, rounded up as the backend says, and overhead; 0 without an arena
    uint64_t taken_bytes;         // most bytes of the device that the backend took for the run, by its own
                                  // count: not above these, or the pass failed; 0 = it counts no accounts
    uint64_t planned_host_peak_bytes, measured_host_peak_bytes;  // as those of the device, for the host copies
    uint64_t planned_host_taken_bytes, host_taken_bytes;  // as those of the device, for the host copies
    uint64_t end_bytes;           // in use after the pass: inputs and results
    uint64_t planned_cost, base_cost;  // simulated, of one pass; the second where every forward and backward
                                  // runs once, as whole nodes
    uint64_t compute_ns;          // profiling: time inside kernels
#endif
    int32_t  forward_count;       // forwards carried out, each counted once
    int32_t  recompute_count;     // of these, those of a node that had run before in the pass
    int32_t  backward_count;      // backwards carried out
    int32_t  drop_count;          // drops carried out
    int32_t  step_count;          // steps carried out
    int32_t  kernel_count;        // calls of kernels: one a forward or backward, more where it takes ranges,
                                  // one a member and block of a fused node
#ifndef TL_ONLY_TABLES
    int32_t  spill_count, fetch_count, compress_count, expand_count;  // of tensors, carried out
    int32_t  update_count;        // of backward_count, updates of states whose kernels were called
    int32_t  eviction_count;      // online: tensors evicted to stay within the budget
    int32_t  limiting_node;       // TL_ERROR_OVER_BUDGET: the node that needs needed_bytes; else -1
    uint64_t needed_bytes;        // least budget with which that step fits
    int32_t  convert_count;       // forwards and backwards of nodes that the run converted itself
    int32_t  worker_count;        // ranks of the transport; 1 without one, whatever the strategy asks for
    uint64_t planned_bank_bytes[TL_MOST_BANKS];  // as planned_taken_bytes, in each bank of the device
    uint64_t taken_bank_bytes[TL_MOST_BANKS];    // by the count of the backend, as taken_bytes
    uint64_t cached_bytes;        // cached: of the results that are kept from pass to pass
    int32_t  cached_count;        // nodes not run in this pass, because results were kept from one before
    int32_t  fused_count;         // nodes of the run's graph that stand for several of the caller's
    int32_t  spared_count;        // hybrid: forwards that the plan by bounds runs again, and this pass did not
    uint64_t sent_bytes, received_bytes;  // in messages to and from other ranks, in this pass
    uint64_t spared_bytes;        // hybrid: sum over dynamic tensors of what their bounds have too much
    uint64_t longest_submit_ns;   // by the costs of the graph, as submit_ns; 0 = a pass is one submit
    uint64_t table_bytes;         // of memory of the env that the run keeps as long as it lives, beside the
                                  // arena; tl_next_step takes 32 bytes for each range of a pass beside them
#endif
} tl_run_report;

// Prepare a run.
//
//   desc   read during the call, except for pointers whose comment says "must outlive the run"
//   run    overwritten; release with tl_free_run
//
// With TL_ONLY_TABLES the plan is one with places, without copies and entry, of this graph, and both are
// taken as they are: a plan that the simulator would refuse may write anywhere. Kernels are not copied and
// must outlive the run. Of desc are read graph, backend, kernels, plan, repeat_count, budget_bytes,
// base_bytes, load, random, seed, first_step, loss_gradient_word and users; what asks for more is refused.
// The env gives one piece of memory. A run step has no accesses, and depends on the step before it.
//
// A run keeps its budget. For another one, free it and make a run whose first_step is the number of the next
// training step; what desc.variables point to is the caller's, and stays.
//
// Errors:  TL_ERROR_UNSUPPORTED: this version cannot carry out a value of the strategy, or kernels and
//          backend cannot do the conversions of the formats, or an option left out what is asked for, or an
//          operand exceeds the backend's largest binding and its node does not take blocks;
//          TL_ERROR_INFEASIBLE: the budget is below the plan's peak, or too small for the online
//          decisions; the text names a budget that works and the node that needs it: for a plan the least,
//          for decisions the bytes of those within the fewest live bytes, below which others may fit;
//          TL_ERROR_OVERFLOW: no budget of 64 bits would do, or TL_SMALL_SIZES and sizes of the graph or
//          places of the plan that 32 bits do not hold; TL_ERROR_INVALID_PLAN, TL_ERROR_INVALID_ARG, and
//          those of the backend; TL_ERROR_NO_MEMORY, also if a pass takes more bytes than the backend reports
//          as free at present. *run is NULL then.
// Cost:    online, the decisions of one pass are simulated, and placed; if their arena exceeds the budget,
//          up to 23 more with less live bytes; if none fits, those of about forty passes, to find the
//          least one. Lazy: that of the planner.
// Threads: one run per thread.
TLDEF tl_result tl_init_run(tl_env *env, const tl_run_desc *desc, tl_run **run);
TLDEF void      tl_free_run(tl_run *run);  // accepts NULL

// Write a graph input or a tensor of the plan's entry; read one of these or, after a pass, a result.
//
//   bytes   exactly those of the tensor
//
// The entry is written before the pass, as inputs are. What no step of the plan frees or overwrites keeps its
// bytes from pass to pass, as an input does; anything else of the entry is zeroes again before the next pass.
// To write to the entry, or to an input that dies, releases the results of the last pass, as the start of a
// pass does: read these before. An input that dies is there from its write to the pass.
//
// With a fusion the tensor is one of the desc's graph; those between the members of a fused node are not found.
//
// A pass ends without waiting for its work, so these wait for the work on the tensor.
// Returns TL_NOT_READY, and does nothing, if such work is under way and the backend cannot wait.
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NOT_FOUND: not resident; and those of the backend.
TLDEF tl_result tl_write_tensor(tl_run *run, tl_tensor tensor, const void *data, uint64_t bytes);
TLDEF tl_result tl_read_tensor(tl_run *run, tl_tensor tensor, void *data, uint64_t bytes);

// Find the bytes of a tensor of the desc's graph, in the slot of the caller: those that the two calls above
// take. Of a dynamic node they are what it reported in the pass under way or the last one, else its bound.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NOT_FOUND: inside of a fused node. *bytes is 0 then.
TLDEF tl_result tl_find_tensor_bytes(tl_run *run, tl_tensor tensor, uint64_t *bytes);

// Choose the micro-batch slot whose tensors these three take: slot 0 at first, and at the start of a load hook,
// for the length of the hook, that of its micro-batch.
//
// Errors:  TL_ERROR_INVALID_ARG: the plan has no such slot.
TLDEF tl_result tl_choose_slot(tl_run *run, int32_t slot);

// Run one training step: repeat_count passes over the plan (or online), each preceded by a call of load for
// every micro-batch of it, one a slot.
// On a backend with limits.in_order a pass waits for nothing, and is submitted at its end; before it wherever
// submit_ns is reached.
//
// Returns TL_NOT_READY, with nothing lost, where no step can go on: kernels of all steps under way are not
// ready, each asked once; or the pass has to wait and the backend cannot; or a load hook answered so. The next
// call goes on there, or after a load hook calls that of the pass again. Between the two the pass is under way;
// tl_reset_run gives it up, and no other call yields its steps.
// Errors:  TL_ERROR_KERNEL; TL_ERROR_OVER_BUDGET: online, if the decisions differ from those that
//          tl_init_run tried out; TL_ERROR_MISMATCH; and those of the backend. On error all ranges but the
//          inputs are released, and the next call runs the same training step again, from its first pass on.
//          What kernels changed beside their operands stays as it is, registered or not: gradients hold what
//          ran until the error, statistics and random state were changed, and recompute begins with 0 again. So
//          before the next call clear the gradients, and put back a copy of statistics and random state; of
//          statistics that are states with tl_write_tensor, or they count that pass twice. Where the kernel of
//          an update was called before the error, or failed, calls are TL_ERROR_INVALID_ARG until all weights
//          and moments were written (tl_write_tensor), or a save was loaded; gradients that states hold are
//          cleared, with all that was added to them in passes before. On a rank of a pipeline the step is not
//          run again, because its neighbours may have had messages of it: calls are TL_ERROR_INVALID_ARG, all
//          ranks make their runs anew and go on from what was saved (tl_load_variables). Tell the others by
//          leaving the transport, or they wait for its poll limit.
TLDEF tl_result tl_run_plan(tl_run *run);

// -- one step at a time: tl_run_plan is a loop over these --

#ifndef TL_ONLY_TABLES
// Switch the updates of states off in the passes to come (on = 1), or on again (0), between passes: so several
// calls of tl_run_plan add to the gradients that the states hold, and the first that updates uses the sums. A
// pass that is given up loses them. States must hold their gradients (tl_hold_gradients). Passes without
// updates count as training steps, so an update that needs the number of updates before it counts them itself.
//
// Errors:  TL_ERROR_INVALID_ARG: inside a pass; on is another number; a state does not hold its gradient.
TLDEF tl_result tl_skip_updates(tl_run *run, int32_t on);
#endif

// One step to carry out. Memory steps, and conversions without a kernel, are carried out (or enqueued)
// by tl_next_step itself. A compute step is carried out by tl_run_step_kernel; or call its kernel, or record
// it, yourself, and then tl_finish_step. A node that is called for ranges of elements is yielded once for each
// range (call.first, call.count), with the accesses of that range, and each is carried out like a step. A fused
// node is yielded once for each block and member (call.node); each of these calls waits for the one before it.
typedef struct tl_run_step {
    tl_step          step;
    int32_t          index;          // in the pass, from 0; the same for all calls of a step
    int32_t          is_compute;     // 1 = kernel and call are set
    int32_t          depends_on;     // latest earlier step whose ranges it must wait for; -1 = none;
                                     // index = the call before of this step, whose scratch it uses. With steps
                                     // in flight all of these are finished, or enqueued by the run itself, when
                                     // the step is yielded; with TL_NOT_READY it is the step that must be
                                     // finished
    const tl_kernel *kernel;
    tl_kernel_call   call;
    const tl_access *accesses;       // [access_count] ranges of the step
    int32_t          access_count;
    tl_ticket        ticket;         // copies: finished when the copy is; value 0 on a backend with
                                     // limits.in_order, where later work runs after the copy anyway
    int32_t          piece;          // number of the call, of a backward that trains states in pieces; else 0
} tl_run_step;

// Begin a pass: drop the results of the last one, reset the peaks. desc.load is not called: write the inputs of
// all slots before (tl_write_tensor); those that are not written are those of the last pass.
//
//   micro_batch   that of slot 0; the other slots have the next ones. With desc.first_micro_batch a new
//                 training step begins
TLDEF tl_result tl_start_pass(tl_run *run, int32_t micro_batch);

// Yield the next step. After the last one *done is 1 and *step is empty, and the pass has been checked and
// closed.
//
// One at a time, a compute step must be carried out before the next call. With tl_run_desc.in_flight = k
// several may be under way: yielded, and not finished. They may be finished in any order. What a step points to
// is valid until it is finished. Kernels of steps under way may run on threads, called by the caller; the
// functions of the run itself, tl_finish_step and tl_run_step_kernel too, are called by one thread at a time.
//
// The operands of a compute step are mapped (host is their address) on a host-visible backend whose
// work on them is finished or can be waited for. On others they are ranges for kernels of the device, until
// tl_map_step maps them. The mapping ends with tl_finish_step or tl_run_step_kernel.
//
// Where a step begins a call (tl_step.begins), tl_run_step_kernel calls the kernel once and returns TL_OK, also
// if it is not ready; its operands stay mapped. The WAIT of its node asks the kernel again, once for each call
// of tl_next_step, and closes the step when it is ready: its event is observed then. tl_finish_step says that
// the call is carried out already. tl_init_run refuses plans that begin what is not one call of one kernel
// (ranges of elements, conversions), and with a random hook or dynamic nodes all of these plans.
//
// Returns TL_NOT_READY, and yields nothing, at a WAIT whose copy is under way (never on a backend with
// limits.in_order) or whose call is not ready, or if the backend cannot submit at present: call again later.
// With steps in flight also where the next one, or the end of the pass, must wait for one of them:
// step->depends_on is that one's index then, and else -1.
// Errors:  TL_ERROR_INVALID_ARG: no pass is under way; or the compute step before, which the text names, was
//          not carried out: *step is left as it is, the pass goes on once it is. As tl_run_plan, and the pass
//          is given up then.
TLDEF tl_result tl_next_step(tl_run *run, tl_run_step *step, int32_t *done);

// Say that a compute step was carried out: its kernel was called, or recorded, by the caller. Ends the
// mapping of its operands. A step that is no compute step is passed over.
//
// Errors:  TL_ERROR_STALE: not a compute step under way (one at a time: not that yielded last), or carried out
//          already; TL_ERROR_INVALID_ARG: a report was refused, see tl_report_bytes; those of the backend, and
//          the pass is given up then.
TLDEF tl_result tl_finish_step(tl_run *run, const tl_run_step *step);

#ifndef TL_NO_ONLINE
// Report how many bytes the forward of a dynamic node makes of an output: by its kernel (call->run), or by
// the caller between tl_next_step and tl_finish_step. Whoever reads the output is given a range of so many
// bytes, its gradient has as many, and tl_find_tensor_bytes tells them. Not reported, they are the bound.
// Where the node runs again in a pass it is given as many bytes as it reported before, and may leave the
// report out.
//
// What is behind these bytes is free from the next step on in a run with strategy.mode hybrid whose plan has
// one arena, one slot and no entry, on a backend that can shorten a range. In all others the bound stays
// taken: in eager and lazy mode, without a strategy, with results kept from pass to pass, with an eviction
// function, with memory standard, and under TL_NO_PLANNERS.
//
//   output   which of the node's outputs, from 0
//   bytes    not above its bound; 0 = none, readers are given a range of 0 bytes then
//
// Errors:  TL_ERROR_INVALID_ARG: no forward of a dynamic node is being carried out, or there is no such output;
//          more bytes than the bound, or not those reported before in this pass: the step cannot end then
//          before a right report (tl_finish_step returns this error, and the step is as it was), and
//          tl_run_step_kernel gives up the pass with this error, whatever the kernel returns.
// Cost:    none; tl_next_step then looks at the rest of the plan: at most half a million simulated steps, and
//          layouts of what is to come. It takes memory from the env; without, the plan stays as it is.
TLDEF tl_result tl_report_bytes(tl_run *run, int32_t output, uint64_t bytes);
#endif

// Map the operands of a compute step for the host, on any backend, and write their addresses to step->call.
// Needed only where tl_next_step could not map them: the bytes are copied from the device and back.
//
// Returns TL_NOT_READY if the host would have to wait for an operand and the backend cannot: call again later.
// Errors:  TL_ERROR_STALE: not the compute step yielded last, or carried out already; those of the backend,
//          and the pass is given up then.
TLDEF tl_result tl_map_step(tl_run *run, tl_run_step *step);

// Map the operands of a compute step if the backend is host-visible, call its kernel, unmap.
//
// Returns TL_NOT_READY if the host would have to wait for an operand and the backend cannot: the kernel
// was not called; or if the kernel answered so. Call again later.
// Errors:  TL_ERROR_STALE: as tl_finish_step; as tl_run_plan, and the pass is given up then.
TLDEF tl_result tl_run_step_kernel(tl_run *run, const tl_run_step *step);

// Give up a pass: all ranges but the inputs are released. The next pass repeats its training step: before it
// clear gradients and put statistics and random state back, as after an error of tl_run_plan. On a rank of a
// pipeline no pass follows, as there.
TLDEF tl_result tl_reset_run(tl_run *run);

#ifndef TL_ONLY_TABLES
// Save what a run has to go on with, and load it into another run, of this or another process.
//
//   sink     gets the data, in parts; what it got before an error is worth nothing
//   data     [length] all of it; hostile data is refused
//
// Between passes that is the number of the next training step, the caller's variables (tl_run_desc.variables)
// and loss scaler, the graph's inputs but those that die, its states (weights, moments, sums of gradients that
// no update has used yet, and whether passes update them), and the plan's entry or the results that are kept
// from pass to pass. It goes into
// any run with the same of what changes bits, whatever its plan: graph, precision, seed, slots, variables,
// formats and quantizations, loss_gradient_word, limits of the scaler, micro-batches, rank, inference and,
// where its plan compresses, steps. Results that this one would not keep, or that are not there, are made
// again; a plan with an entry of its own needs that entry. Between two passes of a training step it is the
// number of that step and the scale of its loss as well: the next tl_start_pass goes on with it, and
// tl_run_plan runs the passes that are left of it, from the micro-batch on that follows as many as have ended.
// Graphs whose states are updated elsewhere (TL_UPDATES_FUSED, TL_UPDATES_END) are two graphs. In a pass it is
// all that is live as well, and goes into a run of the same plan alone, with the same places and in_flight: it
// goes on with the step that comes next. What follows is the same to the bit as without. Whatever else the
// caller has, such as weights that are neither states nor variables, and generators of random numbers, is the
// caller's to save.
//
// The form: numbers of 4 or 8 bytes, the lowest byte first; 8 bytes that say what it is, a version, the hashes
// of graph, settings and plan, variables, tensors as they lie in memory, and 8 bytes of checksum. Tensors are
// not converted: machines of the other byte order cannot exchange them.
//
// tl_load_run is called between passes. Until all of the data was checked nothing is changed, so a run that
// refuses data is as it was. In a pass, tl_save_run closes the step that was carried out last.
//
// Errors:  TL_ERROR_INVALID_ARG: a step, a copy or a sum over ranks is under way, also where tl_run_plan
//          answered TL_NOT_READY; save: a pass was given up in or behind an update; the data is of another
//          graph, plan, seed, byte order, of other variables or settings; load: in a pass.
//          TL_ERROR_UNSUPPORTED: in a pass, what is decided online, reported by dynamic nodes of a hybrid run,
//          kept from pass to pass, or without an arena; data of another version. TL_ERROR_PARSE: damaged data.
//          TL_ERROR_NO_MEMORY; what the sink returned; those of the backend: load has lost the inputs then,
//          and no pass is under way.
// Cost:    the bytes, and in a pass a replay of the plan.
TLDEF tl_result tl_save_run(tl_run *run, tl_sink sink);
TLDEF tl_result tl_load_run(tl_run *run, const void *data, size_t length);

// What tl_save_run wrote.
typedef struct tl_saved {
    const void *data;             // not changed
    size_t      length;           // bytes
} tl_saved;

// Go on from the variables of several saves, with other ranks than those that saved:
//
//     4 ranks     tl_save_run on each, after the same training step
//     3 ranks     tl_compile_ranks again, tl_init_run, tl_load_variables with all four saves, on each
//
//   saves   [save_count] of one training step, none within it; of runs of the same graph, precision, seed,
//           loss_gradient_word and limits of the scaler, and without stages of the same formats
//
// Each range that this run registers (tl_run_desc.variables) is looked for by its node, its kind and its number
// among those of both, and may be in any of the saves; what else they have is passed over. So register what
// belongs to a node under that node, on the rank whose stage has it. The number of the next training step and
// the loss scaler are taken over as well; inputs, entry and kept results are not, and slots do not matter.
// States are not either, so a run of a graph that has any but frozen ones is refused: use tl_load_run.
//
// A range that several saves have, those of replicas, is that of the first. Parameters, optimizers and ranges
// without a node must be the same to the bit in all of them; gradients, statistics and random state may differ.
// Of an optimizer's shards (ZeRO 1) that are registered whole, tl_gather_run brings the others before saving.
//
// What follows has the bits that it would have had, where only the stages are others; with another number of
// replicas sums over them are taken in another order (tl_reduce_run).
//
// Called between passes. A run that refuses saves is as it was.
//
// Errors:  TL_ERROR_INVALID_ARG: no save has a range of this run, or another number of bytes of it, or two
//          differ; saves of several training steps, in a pass or between micro-batches of a training step, of
//          another graph, precision, seed or other settings; a pass or a
//          sum is under way. TL_ERROR_PARSE: damaged data. TL_ERROR_UNSUPPORTED: data of another version;
//          the graph has states that are trained, or statistics. TL_ERROR_NO_MEMORY.
// Cost:    the bytes of all saves are read once; n log n for n ranges, and 24 bytes a range meanwhile.
TLDEF tl_result tl_load_variables(tl_run *run, const tl_saved *saves, int32_t save_count);
#endif  // TL_ONLY_TABLES

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// -- sums over ranks --
//
// Ranks of a transport that have the same stage are replicas: rank = replica x stages + stage, and without
// tl_compile_ranks each rank is one. They run the same plan on other micro-batches; after a training step
//
//     tl_run_plan                                   gradients of the micro-batches of this rank
//     tl_reduce_run(run, TL_VARIABLE_GRADIENT)      the sum over all replicas, on each
//     your optimizer, on all weights, with the sum divided by what the loss divides by
//
// or, so that each replica keeps the optimizer's state of a shard only (ZeRO 1):
//
//     tl_scatter_run(run, TL_VARIABLE_GRADIENT)     the sum, in the shard of this replica (tl_find_run_shard)
//     your optimizer, on that shard of the weights
//     tl_gather_run(run, TL_VARIABLE_PARAMETER)     the shards of the others
//
// or, so that it keeps that shard of the gradients only, too (ZeRO 2):
//
//     variables[i].host, the same buffer for all, and variables[i].shard, of bytes / p, rounded up to elements
//     clear the shards, then tl_run_plan       the run clears the range of a node before each of its backwards,
//                                              and after it sums it over the replicas and adds to the shard
//     your optimizer, on that shard of the weights, and tl_gather_run as above
//
// With shards the sums of each micro-batch are taken by themselves and added in the order of the micro-batches,
// and (p - 1) / p of the bytes travel for each of them; so tl_run_plan and tl_next_step answer TL_NOT_READY
// while others are not so far, and replicas have one repeat_count. shard[0] is the element at the offset of
// tl_find_run_shard; the optimizer's state of the shard can be registered with the bytes that it has. p is the
// number of replicas of the transport: without one it is 1, and the shard is all of the range. Shards are for
// backends whose memory the host sees, one step at a time (in_flight), and are not rehearsed: rehearse without
// them. tl_reduce_run, tl_scatter_run and tl_gather_run leave ranges with shards out.
//
// The ranges are those of desc.variables, of f32, the same on all replicas. Each is cut in as many shards as
// there are replicas, the first ones longer by an element where that leaves a rest; replica g has shard g +
// 1, the last one shard 0. An element of shard c is ((s[c] + s[c + 1]) + s[c + 2]) + .., from replica c on
// around the ring: the same bits on every replica, in every run, over every transport, but not those of one
// process, which adds micro-batch after micro-batch.
//
// Statistics of a batch are those of a micro-batch on its rank, whatever the ranks: no call crosses ranks in a
// forward. Running means of replicas differ until they are summed, as ranges of kind statistics, and divided.
//
// All of them answer TL_NOT_READY and are called again until they do not; between passes only. After an error
// the ranges hold sums of some of the replicas. An element's place in its range decides its shard: ranges of
// single nodes have the same sums whatever the stages, a range of a whole stage has not.

// Sum the ranges of a kind over replicas: on each, or each its shard; or give each the shards of the others.
//
// Errors:  TL_ERROR_INVALID_ARG: no transport, a pass or another sum is under way, ranges that are no f32;
//          TL_ERROR_MISMATCH, at the first sum: a replica has other variables (nodes, kinds or bytes, but for
//          those of optimizers, of which each may have a part) or plans, or is at another training step;
//          TL_ERROR_PEER_LOST and what else the transport answers; TL_ERROR_NO_MEMORY.
// Cost:    each replica sends (p - 1) / p of the bytes in tl_scatter_run and in tl_gather_run, twice that in
//          tl_reduce_run. 16 KiB of memory while it lasts.
// Source:  Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms, 2009; Rajbhandari et al., ZeRO, 2020,
//          arXiv:1910.02054, section 5.
TLDEF tl_result tl_reduce_run(tl_run *run, tl_variable_kind kind);
TLDEF tl_result tl_scatter_run(tl_run *run, tl_variable_kind kind);
TLDEF tl_result tl_gather_run(tl_run *run, tl_variable_kind kind);

// Find the shard of desc.variables[variable] that this replica has after tl_scatter_run; all of it with one
// replica. Both are 0 for a number that is not below variable_count.
TLDEF void tl_find_run_shard(const tl_run *run, int32_t variable, uint64_t *offset, uint64_t *bytes);
#endif

// Report the last pass; and the plan of a run: the one given or made, or the record of the last online pass
// (before the first, of the one that tl_init_run tried out), which is valid until the next pass. So is that
// of a hybrid run with dynamic nodes: the steps of the last pass, in a graph (tl_find_run_graph) whose
// tensors have the bytes that were reported in it. Where results are kept from pass to pass, it is the plan
// that the last pass ran, and before the first pass the one that runs everything. A plan that the run made is
// kept in narrow numbers; asked for, it takes 16 bytes a step and 8 an allocation more. Without memory for that
// it is narrow, and tl_find_step reads it.
TLDEF void tl_measure_run(const tl_run *run, tl_run_report *report);
TLDEF void tl_find_run_plan(const tl_run *run, tl_plan *plan);

#ifndef TL_ONLY_TABLES
// -- a list of operations, for those who have no graph --

#define TL_NO_INPUTS (-1)  // tl_op.input_count: the op reads nothing, not even the op before it

// One operation: a node of the graph with its kernels. Zero is the default everywhere.
typedef struct tl_op {
    const char      *name;            // 0 = "n<i>"; names are unique
    const char      *kind;            // "conv2d"; 0 = "op"; "input" = a graph input: bytes and nothing else
    tl_kernel_fn     forward;         // 0 of an input
    tl_kernel_fn     backward;        // 0 only of an input, in a run forward only, or with no_grad
    void            *user;            // of both
    const tl_tensor *inputs;          // [input_count] outputs of ops above; 0 = output 0 of the op before it
    int32_t          input_count;     // 0 = 1, where inputs is 0; TL_NO_INPUTS
    int32_t          output_count;    // 0 = one, of output_bytes
    uint64_t         output_bytes;
    const uint64_t  *outputs;         // [output_count] bytes of each, if there are several
    const char      *needs;           // what backward reads: "in", "out", "in0,out1", "none"; 0 = "in",
                                      // where tl_node_desc.needs is "none"
    uint64_t saved_bytes;             // made by FORWARD_SAVE, read by backward
    uint64_t fwork_bytes, swork_bytes, bwork_bytes;  // scratch of FORWARD, of FORWARD_SAVE (0 = as fwork,
                                      // TL_SCRATCH_NONE = none) and of BACKWARD
    uint64_t param_bytes;             // weights
    uint64_t fwd_cost, bwd_cost;      // 0 = those of desc.costs; where these are 0, too, 1
    int32_t  inplace;                 // input that output 0 may overwrite + 1; 0 = none
    int32_t  no_grad, once, keep, takes_blocks, dynamic, dies;  // as in tl_node_desc
    int32_t  layer;                   // layer number + 1; 0 = belongs to none
    tl_state   state;            // not 0 = a state: kind names its update, backward is that (0 where there is
                                      // none), output_bytes those of the weight; of the rest moments, initial,
                                      // weight_rows, piece_rows, bwork_bytes, bwd_cost
    const uint64_t *moments;          // [moment_count] bytes of each
    int32_t         moment_count;
    const void     *initial;          // [output_bytes] what the weight begins with; 0 = zeroes, as moments do
    int32_t         weight_rows, piece_rows;  // of a state: as in tl_state_desc
    uint64_t   rows;                  // as in tl_node_desc, 0 = it is called as a whole alone
    const tl_relation *relations;     // [input_count] as in tl_node_desc
    uint64_t   row_unit;              // as in tl_node_desc
    int32_t    row_axis;              // as in tl_node_desc
    int32_t    ordered, reduces, stream;  // as in tl_node_desc
} tl_op;

// Prepare a run over a list of operations: build graph and kernel table, plan within the budget, take the
// arena. op i is node i.
//
//     ops[0].kind = "input"; ops[0].output_bytes = sizeof x;
//     ops[1].forward = conv_forward; ops[1].backward = conv_backward; ops[1].user = &conv; ...
//     desc.backend = &cpu; desc.budget_ratio = 0.3; desc.figures = &figures;
//     if (tl_init_op_run(&env, &desc, ops, count, &run)) ...
//
//   desc   as in tl_init_run; its kernels must be 0. Where it says neither what to run nor how to decide, the
//          cheapest plan within the budget is made (a lazy strategy, checkpointed with interval 0). With a
//          graph, which the shape helpers made (tl_add_conv2d and its neighbours), ops[i] gives the kernels of
//          its node i, and their user; sizes and names are those of the graph, and the ops' own must be 0
//   ops    read during the call
//   run    overwritten; release with tl_free_run. It owns its graph (tl_find_run_graph)
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW: a rule of tl_add_node or tl_check_graph, which the text
//          names; TL_ERROR_INFEASIBLE: desc.figures has the least budget that works; TL_ERROR_MISMATCH: the
//          rehearsal found errors, the text has the first; and those of tl_init_run and tl_rehearse_run.
// Cost:    that of tl_init_run; with figures, also two searches with all of the work of the planner, for the
//          least budget and for the cheapest plan within it, which is what it takes: they mostly take
//          longer than the plan itself. With a rehearsal, that of tl_rehearse_run.
TLDEF tl_result tl_init_op_run(tl_env *env, const tl_run_desc *desc, const tl_op *ops, int32_t op_count,
                               tl_run **run);

// Name a kind of variable.
TLDEF const char *tl_name_variable(tl_variable_kind kind);  // "gradient"; "?" if it is out of range

// -- layer by layer: a list of operations that is a chain --

// One layer of a chain: it reads the result of the layer before it.
typedef struct tl_layer {
    const char  *name;            // 0 = "layer<i>"
    tl_kernel_fn forward;
    tl_kernel_fn backward;
    void        *user;
    uint64_t     output_bytes;    // of its result
    uint64_t     saved_bytes, fwork_bytes, bwork_bytes, param_bytes;  // as in tl_node_desc
    uint64_t     fwd_cost, bwd_cost;  // 0 = 1
    const char  *needs;           // what backward reads: "in", "out", "in,out", "none"; 0 = "in", as in tl_op
    int32_t      keep;            // 1 = its output is a result: tl_read_tensor after the pass
    int32_t      once;            // 1 = forward has an effect and never runs again in a pass
    uint64_t     swork_bytes;     // as in tl_node_desc
} tl_layer;

// Prepare a run over a chain of layers; desc's graph and kernels are ignored. The run makes and owns the
// graph: layer i is node i + 1, the input is node 0. The same as tl_init_op_run on such a chain, but without a
// strategy it is online, as tl_init_run says.
//
// Errors:  as tl_init_run.
TLDEF tl_result tl_init_layer_run(tl_env *env, const tl_run_desc *desc, const tl_layer *layers,
                                  int32_t layer_count, uint64_t input_bytes, tl_run **run);
#endif  // TL_ONLY_TABLES

#ifndef TL_NO_ONLINE
// Run one layer of an online pass: forward of layer 0, 1, ... to the last, then backward of the last down
// to 0. The first forward starts the pass, the last backward closes it.
//
// Returns TL_NOT_READY as tl_run_plan does: the same call goes on.
// Errors:  TL_ERROR_INVALID_ARG: it is another layer's turn; and as tl_run_plan.
TLDEF tl_result tl_run_forward(tl_run *run, int32_t layer);
TLDEF tl_result tl_run_backward(tl_run *run, int32_t layer);

// Switch checkpointing of an online run on, or off (then everything is kept), between passes. The decisions
// are tried out again, and the run takes the arena for them: the graph's inputs move there, over the host tier,
// and the results of the last pass are released.
//
// Errors:  TL_ERROR_INVALID_ARG inside a pass; as tl_init_run, and nothing changes; where the backend fails to
//          take or to copy, its error: the inputs are zeroes then, and no pass starts before a call succeeds.
TLDEF tl_result tl_enable_checkpoints(tl_run *run, int32_t on);
TLDEF int       tl_uses_checkpoints(const tl_run *run);
#endif

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// Find the compiled plan of a run: what was chosen, at what cost, and how far from the best. NULL: the strategy
// left nothing open beside the plan. Valid until the run is freed.
TLDEF const tl_compiled_plan *tl_find_compiled_plan(const tl_run *run);

// Find the ways to share the batch that automatic parallelism has compared, the best of which the ranks run:
// as many stages as its stage_count, in as many replicas. NULL: parallelism is not automatic, there is one
// rank, or the strategy asks for what ranks cannot run parts of (a mode that is not lazy, a memory that is not
// pooled, an interval, a batch that may be split), and every rank is a replica. Valid until the run is freed.
TLDEF const tl_parallel_plan *tl_find_parallel_plan(const tl_run *run);
#endif

// Find the graph of a run: that of the desc, the fused or compiled one, or the one that a layer run has made.
// Valid until the run is freed.
TLDEF const tl_graph *tl_find_run_graph(const tl_run *run);

#ifndef TL_NO_PLANNERS
// -- rehearsal --
//
// Wrong declarations leave the loss as it is and make gradients wrong under some plans only. A rehearsal calls
// the caller's kernels on copies of their operands, each call again and again with one change that must
// not matter (what is not declared, what is undefined, what lies behind an operand; where a node takes blocks,
// into which ranges its elements are cut), or that must (what needs names); then it runs a pass that drops
// every tensor as early as possible, saves as late as possible and works in place wherever that is allowed,
// and compares to the bit with one that drops nothing: gradients on the way, results, the registered variables,
// and every tensor that was made again.

// What an operand of a finding is.
#define TL_OPERANDS(X) \
    X(TL_OPERAND_NONE,            "",                 "the call as a whole")                    \
    X(TL_OPERAND_INPUT,           "input",            "with its number")                        \
    X(TL_OPERAND_OUTPUT,          "output",           "with its number")                        \
    X(TL_OPERAND_OUTPUT_GRADIENT, "output gradient",  "with the number of the output")          \
    X(TL_OPERAND_INPUT_GRADIENT,  "input gradient",   "with the number of the input")           \
    X(TL_OPERAND_SAVED,           "saved bytes",      "of the node")                            \
    X(TL_OPERAND_SCRATCH,         "scratch",          "of the call")                            \
    X(TL_OPERAND_VARIABLE,           "variable",         "with its number in desc.variables")    \
    X(TL_OPERAND_STATISTICS,      "statistics of node", "with the node that has them as its state")

typedef enum tl_operand_kind { TL_OPERANDS(TLI_ENUM) TL_OPERAND_COUNT } tl_operand_kind;

// id, what the call does (or load, or the backend), what to change. %o is the operand, %b a byte, %n its name
// in needs, %w the field that has its bytes, %z the value of that field for none, %l the list that it belongs
// to.
#define TL_FINDINGS(X) \
    X(TL_FINDING_NEEDS_MISSING, "reads %o, which needs does not name", "add %n to needs") \
    X(TL_FINDING_NEEDS_UNUSED, "does not read %o, which needs names", "take %n out of needs") \
    X(TL_FINDING_SCRATCH_READ, "reads its scratch before it writes there", \
      "clear what is read: the content of scratch is undefined") \
    X(TL_FINDING_SCRATCH_UNUSED, "does not touch its scratch", "set %w to %z") \
    X(TL_FINDING_OUTPUT_READ, "reads %o before it writes there", "write first: the content is undefined") \
    X(TL_FINDING_NOT_WRITTEN, "leaves %o unwritten from byte %b on", \
      "write all of it, or declare fewer bytes") \
    X(TL_FINDING_BEYOND_WRITTEN, "writes beside %o, behind byte %b", "declare more bytes (%w)") \
    X(TL_FINDING_BEYOND_READ, "reads beside %o, behind byte %b", "declare more bytes (%w)") \
    X(TL_FINDING_BEFORE_WRITTEN, "writes before %o, from byte -%b on", \
      "begin with its first byte: what lies before it belongs to others") \
    X(TL_FINDING_BEFORE_READ, "reads before %o", \
      "begin with its first byte: what lies before it belongs to others") \
    X(TL_FINDING_READ_ONLY_WRITTEN, "writes to %o, which it may only read, at byte %b", \
      "write to an output, a gradient or scratch; an input is overwritten by inplace alone") \
    X(TL_FINDING_INPLACE_WRONG, "makes other bytes where output 0 overwrites %o", "take inplace out") \
    X(TL_FINDING_SIDE_EFFECT, "changes %o when it runs again", \
      "look at call->recompute, or mark the op once") \
    X(TL_FINDING_NOT_REPEATABLE, "makes other bytes from the same operands", \
      "draw random numbers from call->seed, or register their state and give a random hook, or mark it once") \
    X(TL_FINDING_STATISTICS_READ, "makes other bytes when it runs again, from %o, which it has changed", \
      "compute from the batch alone, or mark the op once") \
    X(TL_FINDING_SAVED_CHANGES_OUTPUT, "makes another %o where nothing is saved", \
      "compute outputs without call->saved") \
    X(TL_FINDING_READY_IGNORED, "makes another %o where its outputs are there already", \
      "with call->outputs_ready read the outputs, and make the saved bytes alone") \
    X(TL_FINDING_GRADIENT_OVERWRITTEN, "overwrites %o", "add to it: a gradient is a sum") \
    X(TL_FINDING_GRADIENT_IGNORED, "does not read %o", \
      "multiply by it: a loss may be scaled, a result be read") \
    X(TL_FINDING_INPUT_UNUSED, "reads %o neither here nor in backward", "take the input out") \
    X(TL_FINDING_SAVED_UNUSED, "does not read its saved bytes", "set saved_bytes to 0") \
    X(TL_FINDING_PARAM_BYTES_DIFFER, "has %b bytes of registered parameters", "set param_bytes to that") \
    X(TL_FINDING_MADE_OTHERWISE, "makes another %o under a plan that drops what it can", \
      "look for what it reads or keeps beside its operands") \
    X(TL_FINDING_END_DIFFERS, "leaves another %o after a pass that drops what it can", \
      "look for what it reads or keeps beside its operands") \
    X(TL_FINDING_UNDECLARED, "uses %o, though none of its bytes is declared", "set %w") \
    X(TL_FINDING_OPERAND_MISSING, "uses %o, which the op does not have", "list it in %l, or leave it alone") \
    X(TL_FINDING_GRADIENT_UNKNOWN, "has weights, but no gradient of them stands in variables", \
      "register it, or clear it and what else is not registered after the rehearsal") \
    X(TL_FINDING_RANGE_IGNORED, "makes another %o when it is called for a range of elements", \
      "go by call->first and call->count, or take takes_blocks out") \
    X(TL_FINDING_ROWS_IGNORED, "makes another %o when it is called for some rows of a weight", \
      "go by call->first and call->count, read no weight there, or take weight_rows out") \
    X(TL_FINDING_BLOCK_DIFFERS, "makes another %o when it is called for blocks of its rows", \
      "go by call->first, count and total, read the rows that rin names, or take rows out") \
    X(TL_FINDING_NOT_ORDERED, "rounds %o otherwise when it is called for blocks of its rows", \
      "add row after row, read the rows that rin names, or take ordered out") \
    X(TL_FINDING_PART_SHARED, "adds to %o where another node adds, from byte %b on, and one reads a part", \
      "read another part, or let rin say that all of it is read") \
    X(TL_FINDING_LOAD_REFUSED, "writes %b bytes there, which is refused", \
      "write a graph input, all of its bytes and no more") \
    X(TL_FINDING_LOAD_MISSING, "does not write it, and nothing was written there before", \
      "write it in load, or once before the rehearsal") \
    X(TL_FINDING_LOAD_FORGETS, "does not write it, though it dies in every pass", "write it in load") \
    X(TL_FINDING_LOAD_OTHER_RUN, "writes to a run that is not its argument", \
      "write to the run that load is given") \
    X(TL_FINDING_LOAD_CHANGES, "changes %o", "leave to load the inputs and the place in the data alone") \
    X(TL_FINDING_NO_CLOCK, "has no clock, so every op counts as much as any other", \
      "give now_ns to the backend, or costs") \
    X(TL_FINDING_CLIP_READS_GRADIENT, "clips, and reads %o, which is of no loss", \
      "go by the gradients of the weights alone") \
    X(TL_FINDING_STATISTICS_LATER, "makes its outputs from %o, which a node below it changes", \
      "mark the op once: run again it would find what that has left")

typedef enum tl_finding_kind { TL_FINDINGS(TLI_ENUM) TL_FINDING_COUNT } tl_finding_kind;

// One finding: who does what to which operand.
typedef struct tl_finding {
    tl_finding_kind kind;
    int32_t         node;       // of the desc's graph; -1 = of none (a variable of no node, a backend)
    tl_step_kind    step;       // of the call; of load and of the backend it says nothing
    tl_operand_kind operand;
    int32_t         index;      // number of the operand, or of the range in variables; of statistics the node
    tl_variable_kind variable;  // of that range
    uint64_t        byte;       // the first that differs, or what the kind says
    int32_t         is_advice;  // 1 = no error: costs bytes or time, or keeps the rehearsal from looking
    char            name[48];   // of the node, its first 47 bytes; "" = of none
} tl_finding;

// With what the passes are compared.
#define TL_REHEARSALS(X) \
    X(TL_REHEARSAL_KEPT,  "kept",  "a pass in which nothing is dropped before its end") \
    X(TL_REHEARSAL_PLANS, "plans", "no memory for that: a pass that keeps what is read, or the run's own plan")

typedef enum tl_rehearsal_kind { TL_REHEARSALS(TLI_ENUM) TL_REHEARSAL_COUNT } tl_rehearsal_kind;

typedef struct tl_rehearsal_desc {
    int32_t pass_count;         // timed passes, and so many more under the run's own plan, if that makes
                                // something again; 0 = 5 where the backend has a clock, else none; -1 = none
} tl_rehearsal_desc;

// What a rehearsal found.
typedef struct tl_rehearsal {
    tl_finding   *findings;       // [finding_count] in the order in which they were found
    int32_t       finding_count;  // advice included
    int32_t       error_count;    // those that are no advice
    tl_node_cost *costs;          // [node_count] measured, at least 1, for tl_run_desc.costs: of the passes the
                                  // lower quartile, of two plans the mean; 0 = not measured
    int32_t       node_count;
    int32_t       call_count;     // calls of kernels
    tl_rehearsal_kind kind;
    int32_t       unprobed_count; // nodes whose calls were not varied: their bytes are known at run time only,
                                  // or the host cannot call their kernels (another backend than its own)
    int32_t       is_stressed;    // 1 = the pass that drops what it can was run: there was no error before it
    int32_t       lost_count;     // findings for which there was no memory
    int32_t       calling_node;   // of the call under way: where a kernel ends the program, a debugger reads
    tl_step_kind  calling_kind;   // here which one
} tl_rehearsal;

// Rehearse a run: find wrong declarations of its nodes, and time them.
//
// The passes are made by runs of its own, with the run's kernels, users, hooks and seed, from the inputs that
// the run has now, over which load writes: give data as in training, of zeroes not much can be learnt. load is
// called once, for the first micro-batch, with the run that it is to write to; all passes begin with what it
// wrote, and it may give other data at each call. That data is not trained with: a reader whose place in the
// data is registered (kind random, node -1) stands where it stood, when the call returns, and training begins
// with the same batch; any other has moved on by one. A hook that is not ready counts as one that failed.
// Kernels of the host work on copies in
// memory of the env; others on the run's backend, as far as it maps. With a fusion or a compiled plan it is the
// caller's graph that is rehearsed, of a split batch one part. No smaller batch is tried beside that: kernels
// keep shapes behind their user pointers, and only may_split says that they go by the bytes of a call.
// What is registered (variables) is as it was when the call returns, whatever
// the kernels did; what is not registered is changed by each call, and seen by none. In a rehearsal scratch and
// saved bytes of 0 bytes may have an address, and so may what needs does not name. needs that name too much are
// looked for where the gradients of the node's weights are registered, or the graph has states with updates.
// Running statistics that are states are changed by one forward of each reader in a pass, as in training; the
// kernels find them at an address that stays what it is, so whoever writes those of another node is named, and
// so is who makes outputs from them and may run again behind a node below that changes them.
//
//   desc        0 = all defaults
//   rehearsal   overwritten; release with tl_free_rehearsal. It is filled while kernels are called
//
// Errors:  TL_ERROR_INVALID_ARG: a pass is under way; TL_ERROR_UNSUPPORTED: passes are to be timed and the
//          backend has no clock, or the run is that of one rank of several: rehearse the whole graph in one
//          process; TL_ERROR_KERNEL: a kernel or load reported failure; TL_ERROR_NO_MEMORY, and
//          those of tl_init_run and of the backend. *rehearsal is all zero then, and the variables as they
//          were.
// Cost:    about twenty calls of every kernel; memory for three images of the operands of one call, all tensors
//          and gradients of a pass at once, the inputs once more, and the variables five times. Ranges that are
//          registered for no node are compared twice a call.
TLDEF tl_result tl_rehearse_run(tl_run *run, const tl_rehearsal_desc *desc, tl_rehearsal *rehearsal);
TLDEF void      tl_free_rehearsal(tl_env *env, tl_rehearsal *rehearsal);  // accepts zeroed ones

#ifndef TL_NO_TEXT
// Write a finding as one line: "conv2: backward reads input 0, which needs does not name: add in0 to needs".
//
//   graph   for names of more than 47 bytes: the desc's, or that of tl_find_run_graph where the run made it;
//           NULL = the finding's own, as where tl_init_op_run refused to make a run
TLDEF size_t tl_print_finding(const tl_graph *graph, const tl_finding *finding, char *buf, size_t size);
#endif
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

