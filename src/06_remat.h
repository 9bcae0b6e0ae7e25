#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [6] REMAT -- recomputation under a byte budget, with a certified distance to the optimum
//
//     graph + budget --tl_plan_remat--> plan, cost, and a bound that no plan undercuts
//
//     cost
//      |  x          what is found:       x    a schedule, simulated
//      |  o x        what is certain:     o    no valid schedule costs less
//      |    o  x
//      |       o  *  *  *                 *    both: proven
//      +------------------- budget
//
// Some tensors are dropped and made again before a backward wants them, as often as
// it takes: which ones, and when, so that the peak stays within the budget and the
// forwards made again cost least. Others are spilled to the host and fetched again, where
// there is one, while the calls go on. These parts share the work:
//
//   exact    A* from the end of the schedule to its start, for small graphs. A state
//            is the set of tensors that the rest of the schedule cannot do without
//   bound    a few backwards are instants that cut every schedule into spans: what lives
//            across each of them fits the budget, what does not is made in the span. The
//            Lagrangian of that is one minimum cut a span; its gap is narrowed by branching
//   search   a schedule is its sequence of calls alone; greedy ones are improved by
//            taking recomputations out and mending the budget with others
//   offload  the same search, in which a fetch is one more way to have a tensor again;
//            what counts is when the last call ends, copies and waits included
//
// Chains are a case of their own: equal layers have a closed form, and stage by stage the
// optimum over persistent schedules is found directly (tl_plan_chain); the search begins there too.
//
// Everything is counted in integers and in steps of work, never in time: one desc is
// one plan on every machine.
//
// References: Griewank, Walther, Algorithm 799: Revolve, 2000. Jain et al., Checkmate, 2019,
// arXiv:1910.02653. Beaumont et al., Optimal checkpointing for heterogeneous chains, 2019,
// arXiv:1911.13214. Kirisame et al., Dynamic Tensor Rematerialization, 2020, arXiv:2006.09616.
// Beaumont et al., Efficient Combination of Rematerialization and Offloading, NeurIPS 2021.
// ============================================================================

#ifndef TL_NO_PLANNERS
typedef struct tl_remat_progress {
    uint64_t work, work_limit;  // elementary steps so far; those after which it ends
    uint64_t cost, bound_cost;  // of the best plan so far; no plan costs less. 0 = none yet
} tl_remat_progress;

typedef struct tl_remat_desc {
    const tl_graph *graph;      // not NULL
    uint64_t budget_bytes;      // of the peak of live bytes and base_bytes together; 0 = no limit
    uint64_t base_bytes;        // weights, gradients, optimizer: part of the budget
    int32_t  inference;         // 1 = forward only
    uint64_t work_limit;        // elementary steps of 2 to 3 ns; 0 = 4000 a squared node, 30 to 250 million:
                                // a tenth of a second at 100 nodes, two thirds of one from 250 nodes on
    int    (*progress)(const tl_remat_progress *progress, void *user);  // 1 = stop with the best so far
    void    *user;              // given to progress
    const tl_device *device;    // link and capacities; 0 = copies take no time, no capacity is known
    uint64_t host_budget_bytes; // of host copies at a time; 0 = no host tier, UINT64_MAX = no limit
} tl_remat_desc;

// What was found out besides the plan. Bytes are with base_bytes, as the budget is.
typedef struct tl_remat_report {
    uint64_t cost, bound_cost;  // of the plan; no plan of its class costs less
    int32_t  proven;            // 1 = they are equal, or with TL_ERROR_INFEASIBLE: certainly no plan fits
    double   gap_ratio;         // (cost - bound_cost) / bound_cost; 0 = proven, 0.01 = at most 1 % above
    uint64_t least_budget_bytes;  // of TL_ERROR_INFEASIBLE: with so many a plan was found; else 0
    uint64_t bound_budget_bytes;  // of TL_ERROR_INFEASIBLE: with fewer there is none; else 0
    int32_t  limiting_node;     // of TL_ERROR_INFEASIBLE: at which the least plan peaks; -1 = none
    uint64_t work;              // elementary steps done
} tl_remat_report;

// Plan what to drop and to make again, so that training (or inference) fits a byte budget.
//
//   desc     its progress is asked every million steps or so
//   plan     overwritten; release with tl_free_plan; peaks, costs and bound_cost are filled in
//   report   overwritten; may be NULL
//
// The class of plans that the bound speaks of: lossless, backwards in reverse listing order, copies to
// a host only with a host budget. What nobody needs does not run, so cost may be below base_cost. The
// same desc gives the same plan everywhere, unless progress stops it.
//
// With a host budget the plan may hold O, L, W and DH steps, and its cost is when it ends on the
// device (tl_simulate_plan). Costs of the graph are nanoseconds then; where they are of another unit,
// the link has to speak of that: link_bytes_per_second is what it carries in 10^9 units of cost, and
// link_latency_ns is in units. In a graph whose unit is 0.1 ps, for instance, 12 GB/s is 1 200 000.
// Capacities of the device that are known limit both budgets. The plan without copies is made first,
// as it would be alone, then as much work again goes into one with them: it never costs more.
//
// Errors:  those of tl_check_graph; TL_ERROR_INFEASIBLE names the least budget at which a plan was
//          found and the node that it peaks at, and fills in the report; TL_ERROR_INVALID_ARG,
//          TL_ERROR_NO_MEMORY; TL_ERROR_OVERFLOW where bytes do not fit 60 bits or costs of
//          forwards 56, and the graph is not small; TL_ERROR_UNSUPPORTED: a host budget, which
//          TL_NO_OFFLOAD left out. *plan is all zero then.
// Cost:    work_limit (with a host budget twice), beyond it only what a first plan takes: O(calls made x
//          what lives across one).
//          Memory: at most 200 MiB, most of it for graphs of up to 128 tensors.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_remat(tl_env *env, const tl_remat_desc *desc, tl_plan *plan, tl_remat_report *report);

// -- chains --

typedef struct tl_chain_plan_desc {
    const tl_graph *graph;      // not NULL
    uint64_t budget_bytes;      // of the peak of live bytes and base_bytes together; 0 = no limit
    uint64_t base_bytes;        // weights, gradients, optimizer: part of the budget
    uint64_t work_limit;        // elementary steps of a few ns; 0 = 400 million, about a second
} tl_chain_plan_desc;

// Plan recomputation stage by stage: the optimum over persistent schedules, in exact bytes.
//
//     stages     1   2   3   4   5        a stage ends where later nodes read nothing but the
//     keep       x       x                outputs of one node. A checkpoint is such an output,
//     again          2       4            kept until all behind it has been reversed
//
//   plan     overwritten; release with tl_free_plan; peaks, costs and bound_cost are filled in
//   report   overwritten; may be NULL. Costs, bound and least budget are those of persistent schedules
//
// A layer chain has one node a stage; a graph without such places is a single stage, and keeps all that
// its backwards read. All results of a graph are in the last stage. A schedule is persistent where a
// checkpoint, once made, stays until the stages behind it have been reversed; backward of a stage reads
// the output before it and either what forward kept or what is made again just before. Chains of equal
// layers are planned in closed form. Other chains whose exact curves take more than the work are planned
// with fewer segments and steps; bound_cost is then that of tl_plan_remat's bound, and holds for any schedule.
//
// Errors:  those of tl_check_graph; TL_ERROR_INFEASIBLE names the least budget and the node that peaks
//          there; TL_ERROR_NO_MEMORY; TL_ERROR_OVERFLOW where costs times stages do not fit 64 bits.
//          *plan is all zero then.
// Cost:    O(stages^3 x steps of a curve), work_limit and as much again at the most. Memory: 200 MiB at most.
// Threads: safe with one env per thread.
// Source:  Beaumont et al., Optimal checkpointing for heterogeneous chains, 2019, arXiv:1911.13214,
//          section 4, with curves in place of memory slots.
TLDEF tl_result tl_plan_chain(tl_env *env, const tl_chain_plan_desc *desc, tl_plan *plan,
                              tl_remat_report *report);

// -- policies --
//
// Schedules made by a rule, for comparison and for old habits: what the rule does not keep is made
// again as in tl_plan_kept_set. Nothing that was made above a cut node is read below it: all that
// goes on goes through its outputs (graph inputs, which are always there, aside).
//
//     0 --> 1 --> 2 --> 4 --> 5      1, 4 and 5 are cut nodes: 1 is read past 2 and past 3,
//            \--> 3 --/              so these two are none
//
// References: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, arXiv:1604.06174,
// section 3 and Algorithm 3. Korthikanti et al., Reducing Activation Recomputation in Large
// Transformer Models, 2022, arXiv:2205.05198, section 5. Griewank, Walther, 2000.

// id, name, what is kept
#define TL_POLICIES(X) \
    X(TL_POLICY_KEEP_ALL,    "keep-all",    "everything until backward has read it")                     \
    X(TL_POLICY_EVERY_N,     "every-n",     "the first node of the listing and every n-th after it")     \
    X(TL_POLICY_CHEN_SQRT,   "chen-sqrt",   "about sqrt(n) of the n cut nodes, evenly spaced")           \
    X(TL_POLICY_CHEN_GREEDY, "chen-greedy", "a cut node whenever so many bytes were made since the last") \
    X(TL_POLICY_SELECTIVE,   "selective",   "the nodes whose forward costs much, or much per byte")      \
    X(TL_POLICY_REVOLVE,     "revolve",     "binomial checkpoints over the stages between cut nodes")    \
    X(TL_POLICY_CHAIN,       "chain",       "what tl_plan_chain finds best, stage by stage")

typedef enum tl_policy { TL_POLICIES(TLI_ENUM) TL_POLICY_COUNT } tl_policy;

// Of the three numbers a policy reads its own alone. 0 = its own choice under the budget: the
// cheapest that fits of what it tries.
typedef struct tl_policy_desc {
    const tl_graph *graph;      // not NULL
    tl_policy policy;           // 0 = keep-all
    uint64_t interval;          // every-n: nodes; 0 without a budget = ceil(sqrt(nodes)). chen-sqrt: cut
                                // nodes; 0 = the square root of their number, rounded, whatever the budget
    uint64_t slot_count;        // revolve: checkpoints, the graph inputs are the first; 0 = the most that fit
    uint64_t cost_threshold;    // selective: forwards below it are made again; 0 = see tl_plan_policy
    uint64_t budget_bytes;      // of the peak of live bytes and base_bytes together; 0 = no limit
    uint64_t base_bytes;        // weights, gradients, optimizer: part of the budget
    int32_t  inference;         // 1 = forward only: keep-all alone can do that
} tl_policy_desc;

// Make the plan of a policy.
//
//   plan   overwritten; release with tl_free_plan; peaks and costs are filled in
//
// Under a budget, every-n tries intervals, chen-greedy its bytes (without a budget: those of the
// least peak), selective thresholds of the cost and of the cost per byte, revolve slots from the most
// down. In graphs of up to 1000 nodes that is every interval, threshold and slot count, and bytes in
// steps of less than a thousandth; in larger ones the steps are longer.
//
// Errors:  those of tl_check_graph; TL_ERROR_INFEASIBLE names the least budget of what was tried
//          and the node that it peaks at; TL_ERROR_INVALID_ARG: no such policy, inference with
//          another than keep-all; TL_ERROR_OVERFLOW: a cost; TL_ERROR_NO_MEMORY. *plan is all zero then.
// Cost:    every-n, chen-greedy, selective: at most some thousand plans of O(nodes + inputs) each;
//          revolve: O(forwards) for each slot count, and where slot_count is 0 none of more than a
//          million forwards of stages; chain: as tl_plan_chain.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_policy(tl_env *env, const tl_policy_desc *desc, tl_plan *plan);

TLDEF const char *tl_name_policy(tl_policy policy);     // "chen-sqrt"; "?" out of range
TLDEF const char *tl_explain_policy(tl_policy policy);  // "about sqrt(n) of the n cut nodes, evenly spaced"
#ifndef TL_NO_TEXT
TLDEF int tl_parse_policy(const char *text, tl_policy *policy);
#endif
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

