/* tl_strategy.h - v0.6.0 - train and run neural networks inside a fixed number of bytes
   Joined from the parts in src by `make header`: change those, this file is written over.
   No dependency but a C99 or C++11 compiler. MIT or public domain, your choice: see the end.

   Give it a number of bytes, and it returns a plan that fits: what to keep, what to drop and
   compute again, what to spill to the host or to compress, with a lower bound on the cost of any
   such plan. The measured peak of a run equals the planned one, and gradients are equal to the
   last bit to those of a run that keeps everything.

   SYNOPSIS
       #define TL_STRATEGY_IMPLEMENTATION   // in exactly one .c or .cpp file
       #include "tl_strategy.h"

       tl_env   env  = {0};                          // malloc, silent (C++: = {})
       tl_graph graph = {0};
       tl_plan  plan = {0};
       tl_chain_desc chain = {0};                    // zero = default, everywhere
       tl_remat_desc desc = {0};
       chain.layer_count = 16;                       // 16 equal layers of 1 byte each
       chain.input_bytes = 1;
       desc.graph = &graph;
       desc.budget_bytes = 9;                        // keeping everything takes 18
       if (tl_add_chain(&env, &graph, &chain) ||
           tl_plan_remat(&env, &desc, &plan, NULL)) puts(env.error.text);
       printf("peak %d bytes, cost %d\n", (int)plan.peak_bytes, (int)plan.cost);
       tl_free_plan(&env, &plan);
       tl_free_graph(&env, &graph);

   CONTENTS          (every name below is a banner: search for "[2]")
       [1] CORE          results, env, sinks, random numbers, version
       [2] STRATEGY      what the caller wants, in seven fields; which activations stay
       [3] GRAPH         nodes, tensors, sizes, costs; the device; .tlg text; layers, fusion
       [4] LAYOUT        put buffers with lifetimes at offsets
       [5] PLAN          steps, the simulator, checkpoint configs; plans as text and C tables
       [6] REMAT         recomputation under a byte budget, with a certified distance to the optimum
       [7] PRECISION     observers, quantisation parameters, an exact choice of schemes
       [8] PARALLEL      pipeline partition, schedules, data-parallel degree, placement on devices
       [9] COMPILE       one strategy, one graph, one number of bytes: one plan
       [10] BACKEND      blocks, ranges, tickets; the CPU backend; what a device can do
       [11] MANAGER      the store and the online checkpoint manager
       [12] RUN          the executor: plans, online runs, layer-by-layer backprop
       [13] TRACE        what a run did, as a picture and as a trace; a plan as a picture

   OPTIONS           (define before the include; none is needed)
       TL_STRATEGY_IMPLEMENTATION   in one .c or .cpp file: compile the second half
       TL_STRATEGY_STATIC           everything static inline: private to this file, and
                                    compilers skip what it does not call
       TLDEF                        your own linkage or export attribute
       TL_MALLOC(user,size)         default allocator, both or neither, else #error; aligned for any type
       TL_FREE(user,ptr)
       TL_ASSERT(x)                 default assert; only a NULL where none is allowed asserts
       TL_NO_STDIO                  drops functions that open files; nothing else uses stdio
       TL_NO_THREADS                no built-in lock; the caller may still give one
       TL_NO_CHECKS                 drops the checked and the deferred CPU backend, which are for tests, and
                                    all checks of tl_run_desc.variables
       TL_NO_CLOCK                  drops the system's clock: the CPU backend has that of its desc or none
       TL_NO_PLANNERS               drops what makes plans: checkpoint configs, kept sets, Revolve, banks,
                                    [6], [8], [9], [7] except quantisation and loss scales, and their
                                    inputs: layers, statistics, fusion, measured devices; plans made
                                    elsewhere and online runs remain
       TL_NO_PRECISION              drops [7] but tl_requantize, quantisation of one tensor too, and [9]; runs
                                    of one precision remain, formats and a loss scaler are refused
       TL_NO_ONLINE                 drops the manager of [11], and runs of [12] that decide by
                                    themselves; runs of a plan, given or made, remain, also over layers
       TL_NO_OFFLOAD                drops the planner of copies, on a host or compressed: both are refused
                                    there, plans made elsewhere and online runs may still copy
       TL_NO_CODECS                 drops compression: f16, bf16 and q8 are refused wherever something
                                    would convert to them, and so is a plan that compresses
       TL_NO_ACCOUNTS               drops accounts: runs and managers may share a backend only if one
                                    of them works at a time; the caller frees all of them before the backend
       TL_NO_TEXT                   drops printing, parsing, JSON and pictures; error text stays, names
                                    may hold any byte beyond ASCII
       TL_NO_TRACE                  drops [13]
       TL_NO_ERROR_TEXT             drops the sentences of errors: code, site and values of tl_error stay,
                                    its text is "", and log is not called
       TL_ONLY_TABLES               leaves runs of plans that are const tables (tl_write_plan_table), in memory
                                    of the host, one step at a time, without copies: nothing is checked,
                                    simulated, counted, placed or saved. For plans that a full build has
                                    checked. Sets TL_NO_PLANNERS, TL_NO_ONLINE,
                                    TL_NO_PRECISION, TL_NO_CODECS, TL_NO_ACCOUNTS, TL_NO_CHECKS, TL_NO_TEXT and
                                    TL_NO_TRACE; see [12]
       TL_SMALL_SIZES               TL_ONLY_TABLES with sizes and offsets of 32 bits; a run of what does not fit
                                    them is refused

   RULES
       Every fallible function returns a tl_result, TL_OK is 0, and env.error.text says which rule
       of which field was broken; env.error.site and .values say it in numbers. A call that succeeds
       leaves env.error as it was. On error every output is all zero and safe to free. Wrong data is
       an error and never aborts; the library never prints and keeps no state outside arguments.
       A budget is the least of what the caller, the device and the backend allow, less base_bytes;
       where the caller gives 0 he sets no limit on the device, and allows no copies on the host
       (but a plan that is given with copies may make them). Memory that other programs use at
       present never changes a plan: a run that does not fit beside it is refused at init.
       Zero is the default for every field of every desc. Pointers in a desc are read during the
       call only, unless it says that they must outlive something. One env per thread.

       Gradients are bit-identical between plans of one program because a forward that runs again
       gets the same inputs and takes its sums in the same order. That needs kernels that are
       deterministic for given bytes (whatever the number of threads), and one compiled version of
       them: -ffast-math and FMA contraction may differ between two functions, so compare programs
       of different compilers only with -ffp-contract=off.

   DOES NOT
       Compute: the kernels are yours (examples/nn.h has a set in plain C). Precisions are chosen,
       priced and applied to the graph; kernels that run in 8 or 16 bits are yours, too, and so is
       the data that they are calibrated on. Send messages: ranks go through a transport of yours
       (examples/ have threads and MPI). A strategy that asks for what this version cannot do gets
       TL_ERROR_UNSUPPORTED.
*/
#ifndef TL_STRATEGY_H

// Options that other options set. Every file that includes this header must define the same options, because
// types depend on them.
#if defined(TL_SMALL_SIZES) && !defined(TL_ONLY_TABLES)
#define TL_ONLY_TABLES
#endif
#ifdef TL_ONLY_TABLES
#ifndef TL_NO_PLANNERS
#define TL_NO_PLANNERS
#endif
#ifndef TL_NO_ONLINE
#define TL_NO_ONLINE
#endif
#ifndef TL_NO_PRECISION
#define TL_NO_PRECISION
#endif
#ifndef TL_NO_CODECS
#define TL_NO_CODECS
#endif
#ifndef TL_NO_ACCOUNTS
#define TL_NO_ACCOUNTS
#endif
#ifndef TL_NO_CHECKS
#define TL_NO_CHECKS
#endif
#ifndef TL_NO_TEXT
#define TL_NO_TEXT
#endif
#ifndef TL_NO_TRACE
#define TL_NO_TRACE
#endif
#endif

#include <stddef.h>
#include <stdint.h>

#define TL_VERSION_MAJOR 0  // breaking change
#define TL_VERSION_MINOR 6  // new feature; from MAJOR 1 on old code still compiles
#define TL_VERSION_PATCH 0  // fix
#define TL_VERSION (TL_VERSION_MAJOR * 10000 + TL_VERSION_MINOR * 100 + TL_VERSION_PATCH)

#ifndef TLDEF
#ifdef TL_STRATEGY_STATIC
#define TLDEF static inline
#else
#define TLDEF extern
#endif
#endif

// Marks a function that may still change in any version; its linkage is that of TLDEF.
#define TL_EXPERIMENTAL TLDEF
#endif  // TL_STRATEGY_H

