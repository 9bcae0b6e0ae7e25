#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [6] REMAT -- recomputation under a byte budget, with a certified distance to the optimum
//
//     graph + budget --tl_plan_remat--> plan, cost, and a lower bound of the cost of any plan
//
//     cost
//      |  x          plan found:          x    a schedule, simulated
//      |  o x        lower bound:         o    no valid schedule costs less
//      |    o  x
//      |       o  *  *  *                 *    both: proven
//      +------------------- budget
//
// Some tensors are dropped and recomputed before a backward reads them, as often as necessary.
// The planner decides which tensors and when, so that the peak stays within the budget and the
// recomputed forwards cost least. With a host tier, tensors can also be spilled to the host and
// fetched again while the calls go on. These parts share the work:
//
//   exact    A* from the end of the schedule to its start, for small graphs. A state
//            is the set of tensors that the rest of the schedule needs
//   bound    a lower bound for any graph. A few backwards, or forwards that every schedule runs between
//            two of them, the instants, cut every schedule into spans. What is resident at an instant
//            fits the budget, and what is not resident must be made in the span after it. The
//            Lagrangian relaxation of this is one minimum cut for each span; branching narrows the
//            duality gap. For long graphs in few bytes a second one counts how often parts must run
//   policies the rules below, and the optimum over persistent schedules of a chain
//   search   a schedule is described by its sequence of calls alone. Greedy schedules, and the best
//            of the other parts, are improved by removing recomputations and adding others until
//            the budget is kept, in phases that cool down. Where the gap is open and a plan has at
//            most 1024 calls, every fourth is so hot that it forgets most of it, or all, and is
//            another beginning
//   beam     windows of a small graph's plan are planned again by the exact search, cut to a width
//   once     a search over sets of kept tensors, for executors that run a node again at most once
//   offload  the same search, in which a tensor may also be fetched from the host; the cost
//            is the time at which the last call ends, copies and waits included
//
// All plans go into one pool, and the answer is the best that fits. With the default work that is mostly as
// cheap as any policy: their candidates share an eighth of it or less. Where work_limit is small, or the graph
// has many thousand nodes, a policy by itself may take more work than that and be cheaper. If none fits, a
// search in bytes alone, with work of its own, leads to the least budget: every call names the same one,
// whatever nodes cost and links carry, gets a plan where it asks for it, and never one that takes less.
//
// Chains are treated apart: equal layers have a closed form, and for other chains the optimum
// over persistent schedules is computed stage by stage (tl_plan_chain). Where forwards may run in another
// order, and each once, tl_plan_order finds the order that takes the fewest bytes.
//
// All arithmetic is in integers, and limits are numbers of elementary steps, never times: the
// same desc gives the same plan on every machine.
//
// References: Griewank, Walther, Algorithm 799: Revolve, 2000. Jain et al., Checkmate, 2019,
// arXiv:1910.02653. Beaumont et al., Optimal checkpointing for heterogeneous chains, 2019,
// arXiv:1911.13214. Kirisame et al., Dynamic Tensor Rematerialization, 2020, arXiv:2006.09616.
// Beaumont et al., Efficient Combination of Rematerialization and Offloading, NeurIPS 2021.
// Ahn et al., Ordering Chaos, MLSys 2020, arXiv:2003.02369.
// ============================================================================

#ifndef TL_NO_PLANNERS
typedef struct tl_remat_progress {
    uint64_t work, work_limit;  // elementary steps so far; the number after which planning ends
    uint64_t cost, bound_cost;  // of the best plan so far; lower bound of any plan. 0 = none yet
} tl_remat_progress;

// Plans and bounds that were found for one graph; calls that share it find no worse plan than any of them did.
typedef struct tl_remat_pool tl_remat_pool;

// id, name, what a plan may do
#define TL_REMAT_FORMS(X) \
    X(TL_REMAT_FORM_ANY,  "any",  "run any node again, at any time and as often as it pays")           \
    X(TL_REMAT_FORM_ONCE, "once", "run each node again at most once, and only after the first pass")

typedef enum tl_remat_form { TL_REMAT_FORMS(TLI_ENUM) TL_REMAT_FORM_COUNT } tl_remat_form;

typedef struct tl_remat_desc {
    const tl_graph *graph;      // not NULL
    uint64_t budget_bytes;      // of the arena and base_bytes together; 0 = no limit of your own
    uint64_t base_bytes;        // weights, gradients, optimizer: part of the budget
    int32_t  inference;         // 1 = forward only
    uint64_t work_limit;        // elementary steps of 2 to 3 ns, of all parts together; 0 = until plans within
                                // 0.1 % of the bound get no cheaper, with a last try to prove those of small
                                // graphs; at most 700 million for the first plan, about two seconds, and up to
                                // ten times as much with places (see Cost)
    int    (*progress)(const tl_remat_progress *progress, void *user);  // 1 = stop with the best so far
    void    *user;              // passed to progress
    const tl_device *device;    // link and capacities; 0 = copies take no time, no capacity is known
    uint64_t host_budget_bytes; // of host copies at a time; 0 = no host tier, UINT64_MAX = no limit of your own
    tl_remat_pool *pool;        // of tl_init_remat_pool; 0 = this call begins with nothing
    tl_remat_form form;         // 0 = any plan; once: for executors that can do less, without a host tier
    int32_t  live;              // 1 = the budget binds the sum of live bytes, as papers count it, and the
                                // plan has no places; 0 = it has, and the budget binds their arena
    uint64_t alignment_bytes;   // of the places, a power of two up to 2^30; 0 = that of the device, else 1
    uint64_t block_bytes;       // their arenas are cut as in tl_places_desc; 0 = not
    tl_codec codec;             // f32 tensors may be compressed by it; 0 = none
    const uint8_t *lossless;    // [tensors] 1 = is never compressed: not of f32, or not to lose precision;
                                // 0 = every tensor but inputs and results may be
    int32_t  in_flight;         // steps that may be under way together (tl_plan.in_flight): the budget binds
                                // the arena for so many; 0 = 1. With live it must be 0 or 1
    const tl_bank *banks;       // [bank_count] the places are in these, as in tl_places_desc; the budget binds
    int32_t  bank_count;        // what is taken of all of them, as does their capacity; 0 = one bank
    uint64_t seed;              // other random numbers for the searches: where the gap stays open, other plans,
                                // of which none is better for sure. Least budgets do not depend on it
} tl_remat_desc;

// What planning found besides the plan. Bytes include base_bytes, as the budget does.
typedef struct tl_remat_report {
    uint64_t cost, bound_cost;  // of the plan; lower bound of every plan of its class
    int32_t  proven;            // 1 = cost equals bound_cost, or with TL_ERROR_INFEASIBLE: no plan fits
    double   gap_ratio;         // (cost - bound_cost) / bound_cost; 0 = proven, 0.01 = at most 1 % above
    uint64_t least_budget_bytes;  // with TL_ERROR_INFEASIBLE: least budget for which a plan was found; it
                                // depends on bytes and on what a plan may do (form, copies, codec) alone, and
                                // no call of tl_plan_remat returns a plan of fewer; else 0. The places of a
                                // policy's plan (tl_plan_policy) may take a little less
    uint64_t bound_budget_bytes;  // with TL_ERROR_INFEASIBLE: below it no plan exists; else 0
    int32_t  limiting_node;     // with TL_ERROR_INFEASIBLE: node at which that plan peaks; -1 = none
    uint64_t work;              // elementary steps done
} tl_remat_report;

// Plan which tensors to drop and recompute, so that training (or inference) fits a byte budget.
//
//   desc     its progress function is called about every million steps
//   plan     overwritten; release with tl_free_plan; peaks, costs and bound_cost are filled in
//   report   overwritten; may be NULL
//
// The bound holds for this class of plans: backwards in reverse listing order, copies to a host only with a
// host budget, compressed copies only with a codec. Nodes whose outputs nothing needs do not run, so cost may
// be below base_cost. The same desc gives the same plan everywhere, unless progress stops planning.
//
// With a host budget the plan may contain O, L, W and DH steps, and its cost is the time at which it
// ends on the device (tl_simulate_plan). Costs of the graph are nanoseconds then. If they have another
// unit, the link must be given in that unit: link_bytes_per_second is the bytes that the link carries
// in 10^9 units of cost, and link_latency_ns is in units. If the unit is 0.1 ps, for instance, 12 GB/s
// is 1 200 000. Known capacities of the device limit both budgets. The plan without copies is made
// first; then the same amount of work goes into a plan with copies, which never costs more. Where the arena of
// that one was too large at first, the plan without copies is made with places as well, by the work of a call
// without a host.
//
// With a codec the plan may contain C and X steps: a tensor waits compressed for a backward, or for a forward
// that runs again. A first run never reads what was compressed, nor does a result depend on it: results are
// exact, gradients are as exact as the codec (q8 rounds small outputs to 0: a backward that asks whether one is
// positive, as that of relu, then passes nothing). Conversions take codec_bytes_per_second of the device. The
// plan without copies is made first here, too. The bound is that of a graph in which what may be compressed
// always takes the bytes of its copy.
//
// The plan comes with places (tl_plan_places), unless desc->live says otherwise, and the budget binds their
// arena: the bytes that a run takes. The sizes of allocations are rounded up to the alignment. Where a work
// limit was too low for places of the first plan that fit, they are made again with up to 16 times of it. Where
// its arena still exceeds the budget, up to five more plans are made within less, each with a quarter of the
// work limit; then that of the least budget. Host copies have an arena of their own, which the host budget
// binds. The bound is that of the live bytes, rounded up, so it holds for every arena. The error names the
// lowest arena of up to eight plans between the least live bytes and their arena, which depend on no budget,
// cost or work limit: with so many bytes there is a plan, and no call returns one with fewer. With banks, what
// is taken of all of them counts as the arena; a plan that they do not hold is made again within an eighth
// less, and what the error says of the last one is that of tl_plan_places.
//
// With the form once, a set of kept tensors determines the plan: what is not kept is dropped after its
// last use in the first pass, made again when a backward first needs it, and stays until its last reader.
// PyTorch's partitioner and other executors that hand a set of tensors from forward to backward can
// carry out these plans and no others. Costs and least budgets are those of this form. The bound is that
// of any plan, but a plan of a small graph is compared with all others of the form and then proven.
//
// Errors:  those of tl_check_graph; TL_ERROR_INFEASIBLE names the least budget at which a plan was
//          found and the node at which it peaks, and fills in the report; TL_ERROR_INVALID_ARG,
//          TL_ERROR_NO_MEMORY whenever an allocation fails: it never changes the plan or the bound;
//          TL_ERROR_OVERFLOW where bytes do not fit 60 bits or costs of forwards 56, and the graph is
//          not small, or where base_bytes and what a plan takes, or the cost of the plan of the least
//          budget, do not fit 64; TL_ERROR_UNSUPPORTED: a host budget or a codec, which TL_NO_OFFLOAD
//          left out. *plan is all zero then.
// Cost:    work_limit (twice with a host budget), for all plans, their places and bounds together, and
//          O(nodes + inputs). Of limits below 100 million steps, plans that follow the first one and places
//          may take as much again and more. A plan and its places get five eighths and a half of what is left
//          of it. The search for the least budget has work of its own, where the budget is near that: 3 million
//          steps and 30 000 a node, at most 60 million; in an arena so much for each of up to eight plans and
//          for its places. Of a smaller limit it may take more than is left. With little work no plan may be
//          found where one exists; the error says that this is not known. Without a limit at most 700 million
//          steps for the first plan, and as much again for its places; where its arena exceeds the budget
//          mostly two or three times as much, at most about ten times.
//          Memory: at most 200 MiB, most of it for graphs of up to 128 tensors or 1024 stages; in graphs of
//          more than 100 000 nodes about 1 KiB for each node. A host budget takes more in large graphs.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_remat(tl_env *env, const tl_remat_desc *desc, tl_plan *plan, tl_remat_report *report);

// Choose how large the pieces are in which states with rows are trained (tl_apply_pieces): whole gradients,
// then pieces of half the largest gradient, of a quarter, .. are planned by tl_plan_remat, until the calls
// alone cost what the best plan does, or no piece is smaller; then sizes between the best and its double, if
// calls cost something. The cheapest plan is the choice, of equal ones that of larger pieces. The graph that
// tl_apply_pieces makes with the same alignment and call_cost has that plan.
//
//   desc         that of tl_plan_remat; the pool is used for whole gradients alone
//   call_cost    of each further call of a kernel, as in tl_pieces_desc
//   piece_bytes  overwritten; UINT64_MAX = all gradients stay whole
//   report       of the best plan, with the work of all; may be NULL
//
// Errors:  those of tl_plan_remat and tl_apply_pieces; TL_ERROR_INFEASIBLE: *piece_bytes and the report are
//          those of the least budget that was found.
// Cost:    that of tl_plan_remat for each size that is tried: log2 of the largest gradient / its row, and four
//          between two of these, at most.
TLDEF tl_result tl_choose_pieces(tl_env *env, const tl_remat_desc *desc, uint64_t call_cost,
                                 uint64_t *piece_bytes, tl_remat_report *report);

// Which regions are cut, and into how many blocks.
typedef struct tl_rows_choice {
    const tl_row_cut *cuts;     // [cut_count] for tl_cut_desc; none where whole nodes are as good
    const int32_t    *classes;  // [cut_count] regions of one class are alike, as those of equal layers
    int32_t  cut_count, class_count;  // classes that could be cut, chosen or not
    int32_t  tried_count;       // graphs that were planned
    uint64_t whole_cost;        // of a step in which nothing is cut or made again
    tl_remat_report report;     // of the plan, with all work; the bound is that of all choices of classes
    void    *memory;            // released by tl_free_rows_choice
} tl_rows_choice;

// Choose which regions of rows are cut, into how many blocks (tl_cut_rows), together with what runs again:
// nodes whose calls take the most bytes are put into the region around them that lowers these bytes most, with
// those that are alike in other layers, until one cannot be lowered. All regions of such a class are cut, or
// none; into the fewest blocks that do not set the peak, or so few that the budget still holds them; and the
// best of these into twice as many, or where calls cost something half as many, while that helps. Choices are
// planned by tl_plan_remat, and the cheapest plan is the answer, of equal ones that with fewer blocks. The
// graph that tl_cut_rows makes with these cuts and `cut` has that plan.
//
// The bound is the least of those of all choices of classes, in as many blocks as there are rows, where calls
// and moving weights again cost nothing; so it holds for every number of blocks. It is one for these classes:
// nothing is said of other regions, or of cutting only some of a class.
//
//   desc     that of tl_plan_remat; the pool is not read, nor does lossless go with it
//   cut      alignment, costs of calls, device and may_round; graph, cuts and inference are not read
//   choice   overwritten; release with tl_free_rows_choice
//
// Errors:  those of tl_plan_remat and tl_cut_rows; TL_ERROR_INFEASIBLE: *choice has the cuts and the report of
//          the least budget that was found. After all other errors *choice is zero.
// Cost:    with a work limit about 4 times that; else up to 40 plans of 40 million steps and the last one.
TLDEF tl_result tl_choose_rows(tl_env *env, const tl_remat_desc *desc, const tl_cut_desc *cut,
                               tl_rows_choice *choice);
TLDEF void      tl_free_rows_choice(tl_env *env, tl_rows_choice *choice);  // accepts zeroed ones

// Make an empty pool of plans, to be shared by calls of tl_plan_remat for one graph.
//
//   env    copied; it allocates what the pool keeps
//   pool   overwritten; release with tl_free_remat_pool
//
// The first call that gets the pool says for what it is: graph, inference, form, host budget and link, codec,
// its rate, and lossless. Calls with another are refused. With a pool, a call answers with the best plan that
// any call has found, knows the bounds that they proved, and searches on from there; the least budget is
// searched once. So if all budgets are asked a second time, in whatever order, the answer to a larger one of
// those never costs more.
//
// Errors:  TL_ERROR_NO_MEMORY. *pool is NULL then.
// Cost:    one allocation. The pool keeps at most 32 MiB of steps beside the answers that it gave.
// Threads: a pool is used by one thread at a time.
TLDEF tl_result tl_init_remat_pool(tl_env *env, tl_remat_pool **pool);
TLDEF void      tl_free_remat_pool(tl_remat_pool *pool);  // accepts NULL

// Name a form.
TLDEF const char *tl_name_remat_form(tl_remat_form form);  // "once"; "?" out of range
#ifndef TL_NO_TEXT
// Parse exactly what the tl_name_ function returns: 1 and the value, or 0.
TLDEF int tl_parse_remat_form(const char *text, tl_remat_form *form);
#endif

// -- order --

typedef struct tl_order_progress {
    uint64_t work, work_limit;          // elementary steps so far; the number after which planning ends
    uint64_t peak_bytes, bound_bytes;   // of the best order so far; no order takes less
} tl_order_progress;

typedef struct tl_order_desc {
    const tl_graph *graph;      // not NULL
    int32_t  inference;         // 1 = forward only
    int32_t  live;              // 1 = the plan comes without places
    uint64_t alignment_bytes;   // of places; sizes are rounded up to it; a power of two up to 2^30; 0 = 1
    uint64_t work_limit;        // elementary steps of 5 to 10 ns; 0 = 200 million: two seconds
    int    (*progress)(const tl_order_progress *progress, void *user);  // 1 = stop with the best so far
    void    *user;              // passed to progress
    uint64_t block_bytes;       // the arena is cut as in tl_places_desc; 0 = not
} tl_order_desc;

// peak_bytes and bound_bytes are of sizes rounded up to the alignment.
typedef struct tl_order_report {
    uint64_t peak_bytes, bound_bytes;   // of the order found; no order of the forwards takes less
    int32_t  proven;                    // 1 = the two are equal
    int32_t  segment_count;             // parts that are ordered one by one: each ends with a call that comes
                                        // before or after every other one in any order, or with the last call
    uint64_t listing_peak_bytes;        // of the same calls in the order of the listing
    uint64_t arena_bytes, listing_arena_bytes;  // of the plan; of tl_plan_keep_all; 0 without places
    uint64_t work;                      // elementary steps done
} tl_order_report;

// Plan the order of the forwards in which the peak is least.
//
//     a1 b1 a2 b2 c       the large a1 and b1 are live together
//     a1 a2 b1 b2 c       a1 ends in the small a2 before b1 is made
//
// Every forward runs once, every tensor is dropped right after its last use, and what can run in place does
// where nothing reads the input later. In training, all that backward reads is kept, and backwards run in
// reverse listing order, as in any plan, so sums of gradients do not change; a forward may run as late as
// between them. What that buys in training is little, mostly: where all forwards come before the first
// backward, as in a graph with one loss, the peak is often in the backwards, which no order of forwards
// lowers. It buys more where losses are independent: one is reversed before the forwards of the next begin.
// Nodes that no result and no backward needs do not run.
//
//   plan     overwritten; release with tl_free_plan; peaks and costs are filled in
//   report   overwritten; may be NULL
//
// The graph is divided where one call comes before or after every other in any order. Each part is searched
// over the sets of calls that have run, with a cap on the peak that rises from a lower bound; moves that are
// safe are taken alone. A part of up to 1024 calls whose search ends is proven. The others are searched with
// beams, and windows of up to 1024 calls around their peaks are ordered again; parts of more calls have
// windows alone. All that is repeated with more work each time; a smaller work_limit only ends it sooner, so
// with a larger one no peak is higher and no bound lower. The bound of what is not proven is the cap that was
// reached, in parts of more calls the largest of what single calls need in any order. With places, the plan is
// that of the listing where its arena is smaller.
//
// Errors:  those of tl_check_graph; TL_ERROR_INVALID_ARG; TL_ERROR_NO_MEMORY; TL_ERROR_OVERFLOW where bytes,
//          rounded up, do not fit 62 bits; TL_ERROR_INFEASIBLE: with places, the largest allocation that the
//          graph may make, where it is larger than a block. *plan is all zero then.
// Cost:    work_limit, with places that of tl_plan_places twice more, and O(nodes + inputs), times 512 in wide
//          graphs. Memory: 400 bytes a node or input, and at most 200 MiB in a search.
// Threads: safe with one env per thread.
// Source:  Ahn et al., Ordering Chaos, MLSys 2020, arXiv:2003.02369, section 3.
TLDEF tl_result tl_plan_order(tl_env *env, const tl_order_desc *desc, tl_plan *plan, tl_order_report *report);

// -- chains --

typedef struct tl_chain_plan_desc {
    const tl_graph *graph;      // not NULL
    uint64_t budget_bytes;      // of the arena and base_bytes together; 0 = no limit of your own
    uint64_t base_bytes;        // weights, gradients, optimizer: part of the budget
    uint64_t work_limit;        // elementary steps of a few ns; 0 = 400 million, about a second
    const tl_device *device;    // its capacity; 0 = none is known
    int32_t  live;              // as in tl_remat_desc: 1 = the budget binds live bytes, no places
    uint64_t alignment_bytes;   // of the places, a power of two up to 2^30; 0 = that of the device, else 1
} tl_chain_plan_desc;

// Plan recomputation stage by stage: the optimum over persistent schedules, in exact bytes.
//
//     stages     1   2   3   4   5        a stage ends where later nodes read nothing but the
//     keep       x       x                outputs of one node. A checkpoint is such an output,
//     again          2       4            kept until all later stages have been reversed
//
//   plan     overwritten; release with tl_free_plan; peaks, costs and bound_cost are filled in
//   report   overwritten; may be NULL. Costs, bound and least budget are those of persistent schedules
//
// A layer chain has one node in each stage. A graph without such places is a single stage, which keeps
// everything that its backwards read. All results of a graph are in the last stage. A schedule is
// persistent if every checkpoint, once made, stays until the stages after it have been reversed. The
// backwards of a stage read the output of the stage before, and either tensors that forward kept or
// tensors recomputed just before; where bytes are few, tensors of a stage of up to 32 nodes are dropped for
// the time of a peak and made once more after it. The best ways to do that are found by a greedy search, so
// the optimum is that over the ways it found. Chains of equal layers have a closed form. If the exact curves
// of another chain take more than work_limit, it is planned with fewer segments and fewer steps of the
// curves; bound_cost is then the bound of tl_plan_remat, which holds for any schedule. Places and budget are
// as in tl_plan_remat; the bound is that of the live bytes.
//
// Errors:  those of tl_check_graph; TL_ERROR_INFEASIBLE names the least budget and the node that peaks
//          there; TL_ERROR_NO_MEMORY; TL_ERROR_OVERFLOW where costs times stages, or base_bytes
//          and what a plan takes, do not fit 64 bits. *plan is all zero then.
// Cost:    O(stages^3 x steps of a curve), at most twice work_limit, and tl_plan_places; where an arena exceeds
//          the budget, up to seven times. Memory: 200 MiB at most.
// Threads: safe with one env per thread.
// Source:  Beaumont et al., Optimal checkpointing for heterogeneous chains, 2019, arXiv:1911.13214,
//          section 4, with curves in place of memory slots.
TLDEF tl_result tl_plan_chain(tl_env *env, const tl_chain_plan_desc *desc, tl_plan *plan,
                              tl_remat_report *report);

// -- policies --
//
// Schedules made by a simple rule, for comparison and for users who know the rule. Tensors that the
// rule does not keep are recomputed as in tl_plan_kept_set. A cut node is a node such that nothing
// made before it is read after it: later nodes read only its outputs and graph inputs, which are
// always resident.
//
//     0 --> 1 --> 2 --> 4 --> 5      1, 4 and 5 are cut nodes. 2 is not, because 3 reads 1; 3 is
//            \--> 3 --/              not, because 4 reads 2
//
// References: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, arXiv:1604.06174,
// section 3 and Algorithm 3. Korthikanti et al., Reducing Activation Recomputation in Large
// Transformer Models, 2022, arXiv:2205.05198, section 5. Griewank, Walther, 2000.

typedef struct tl_policy_desc {
    const tl_graph *graph;      // not NULL
    tl_policy policy;           // of the kinds up to chain; 0 = keep-all. every-n 0 without a budget = the
                                // square root, rounded up, of how many numbers nodes have (layers, or places
                                // in the listing); chen-sqrt 0 = with any budget the square root of the count
                                // of cut nodes, rounded
    uint64_t budget_bytes;      // of the arena and base_bytes together; 0 = no limit of your own
    uint64_t base_bytes;        // weights, gradients, optimizer: part of the budget
    int32_t  inference;         // 1 = forward only: keep-all alone can do that
    const tl_device *device;    // its capacity; 0 = none is known
    int32_t  live;              // as in tl_remat_desc: 1 = the budget binds live bytes, no places
    uint64_t alignment_bytes;   // of the places, a power of two up to 2^30; 0 = that of the device, else 1
} tl_policy_desc;

// Make the plan of a policy.
//
//   plan   overwritten; release with tl_free_plan; peaks and costs are filled in
//
// Under a budget, every-n tries intervals, chen-greedy numbers of bytes (without a budget it takes the
// number with the least peak), selective thresholds of the cost and of the cost per byte, and revolve
// slot counts from the largest down. In graphs of up to 1000 nodes every interval, threshold and slot
// count is tried, and bytes in steps of less than a thousandth; in larger graphs the steps are longer.
// Places and budget are as in tl_plan_remat.
//
// Errors:  those of tl_check_graph; TL_ERROR_INFEASIBLE names the least budget of the plans tried
//          and the node at which that plan peaks; TL_ERROR_INVALID_ARG: no such kind, one that no
//          plan is made of, inference with another than keep-all; TL_ERROR_OVERFLOW: a cost, or base_bytes and
//          what a plan takes; TL_ERROR_NO_MEMORY. *plan is all zero then.
// Cost:    every-n, chen-greedy, selective: at most some thousand plans of O(nodes + inputs) each;
//          revolve: O(forwards) for each slot count; the memory of the plan, 12 bytes a step and with places
//          20 bytes and more for each allocation, is what bounds it: slot_count 1 makes a plan of n^2 steps
//          for n layers. Without a slot count, schedules of equal layers of more than 2^22 steps are not
//          made: their budgets are refused. chain: as tl_plan_chain. Places: as tl_plan_places, up to seven
//          times.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_policy(tl_env *env, const tl_policy_desc *desc, tl_plan *plan);
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

