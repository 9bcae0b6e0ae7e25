/* tl_strategy.h - v0.2.0 - train and run neural networks inside a fixed number of bytes
   No dependency but a C99 or C++11 compiler. MIT or public domain, your choice: see the end.

   One number in (bytes), a plan out, and the plan holds: what to keep, what to drop and make
   again, what to spill to the host or to compress. The run's measured peak equals the announced
   one, and gradients are equal to the last bit to those of a run that keeps everything.

   SYNOPSIS
       #define TL_STRATEGY_IMPLEMENTATION   // in exactly one .c or .cpp file
       #include "tl_strategy.h"

       tl_env   env  = {0};                          // malloc, silent (C++: = {})
       tl_graph graph = {0};
       tl_plan  plan = {0};
       tl_chain_desc chain = {0};                    // zero = default, everywhere
       tl_checkpoint_config config = tl_checkpoint_uniform(4);
       chain.layer_count = 16;                       // 16 equal layers of 1 byte each
       chain.input_bytes = 1;
       if (tl_add_chain(&env, &graph, &chain) ||
           tl_plan_checkpoints(&env, &graph, &config, &plan)) puts(env.error.text);
       printf("peak %d bytes, cost %d\n", (int)plan.peak_bytes, (int)plan.cost);
       tl_free_plan(&env, &plan);
       tl_free_graph(&env, &graph);

   CONTENTS          (every name below is a banner: search for "[2]")
       [1] CORE          results, env, sinks, random numbers, version
       [2] STRATEGY      what the caller wants, in seven fields
       [3] GRAPH         nodes, tensors, sizes, costs; the device; .tlg text
       [4] PLAN          steps, the simulator, checkpoint configs as plans
       [5] REMAT         recomputation under a byte budget, with a certified distance to the optimum
       [10] BACKEND      blocks, ranges, tickets; the CPU backend
       [11] MANAGER      the store and the online checkpoint manager
       [12] RUN          the executor: plans, online runs, layer-by-layer backprop
       [13] TRACE        what a run did, as a picture and as a trace

   OPTIONS           (define before the include; none is needed)
       TL_STRATEGY_IMPLEMENTATION   in one file: compile the second half
       TL_STRATEGY_STATIC           everything static inline: private to this file
       TLDEF                        your own linkage or export attribute
       TL_MALLOC(user,size)         default allocator, aligned for any type; both or neither
       TL_FREE(user,ptr)
       TL_ASSERT(x)                 default assert; only a NULL where none is allowed asserts
       TL_NO_STDIO                  drops functions that open files; nothing else uses stdio
       TL_NO_THREADS                no built-in lock; the caller may still give one
       TL_NO_CHECKS                 drops the checked and the deferred CPU backend, which are for tests
       TL_NO_PLANNERS               drops what makes plans: checkpoint configs, kept sets, Revolve,
                                    [5]; plans made elsewhere and online runs remain
       TL_NO_TEXT                   drops printing, parsing and JSON; error text stays
       TL_NO_TRACE                  drops [13]

   RULES
       Every fallible function returns a tl_result, TL_OK is 0, and env.error.text says which rule
       of which field was broken. On error every output is all zero and safe to free. Wrong data is
       an error and never aborts; the library never prints and keeps no state outside arguments.
       Zero is the default for every field of every desc. Pointers in a desc are read during the
       call only, unless it says that they must outlive something. One env per thread.

       Gradients are bit-identical between plans of one program because a forward that runs again
       gets the same inputs and takes its sums in the same order. That needs kernels that are
       deterministic for given bytes (whatever the number of threads), and one compiled version of
       them: -ffast-math and FMA contraction may differ between two functions, so compare programs
       of different compilers only with -ffp-contract=off.

   DOES NOT
       compute: kernels are yours (examples/nn.h has a set in plain C). Place offsets, choose
       precisions or split work over devices: later versions; what a strategy asks for and this
       version cannot do is TL_ERROR_UNSUPPORTED.
*/
#ifndef TL_STRATEGY_H
#define TL_STRATEGY_H

#include <stddef.h>
#include <stdint.h>

#define TL_VERSION_MAJOR 0  // breaking change
#define TL_VERSION_MINOR 2  // new feature, old code still compiles
#define TL_VERSION_PATCH 0  // fix
#define TL_VERSION (TL_VERSION_MAJOR * 10000 + TL_VERSION_MINOR * 100 + TL_VERSION_PATCH)

#ifndef TLDEF
#ifdef TL_STRATEGY_STATIC
#define TLDEF static inline
#else
#define TLDEF extern
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [1] CORE -- results, env, sinks, random numbers, version
//
// Every fallible call returns a tl_result and takes a tl_env first: where its
// memory comes from and where the sentence about a failure goes. All-zero is a
// valid env, NULL is allowed, and nothing else is shared between two calls.
//
//     tl_env env = {0};                                   // malloc, silent
//     if (tl_check_graph(&env, &graph)) puts(env.error.text);
// ============================================================================

#define TL_RESULTS(X) \
    X(TL_OK,                   "ok",             "success")                                        \
    X(TL_NOT_READY,            "not ready",      "work behind a ticket is still under way")        \
    X(TL_ERROR_INVALID_ARG,    "invalid argument", "a value breaks the rule named in the text")    \
    X(TL_ERROR_NO_MEMORY,      "no memory",      "the allocator or the backend has none left")     \
    X(TL_ERROR_OVERFLOW,       "overflow",       "a sum or product does not fit 64 bits")          \
    X(TL_ERROR_UNSUPPORTED,    "unsupported",    "valid, but this version cannot carry it out")    \
    X(TL_ERROR_PARSE,          "parse error",    "the text is not what the reader accepts")        \
    X(TL_ERROR_INVALID_PLAN,   "invalid plan",   "a step breaks a rule of the model")              \
    X(TL_ERROR_INFEASIBLE,     "infeasible",     "no plan fits; the text names the least budget")  \
    X(TL_ERROR_OVER_BUDGET,    "over budget",    "refused: it would exceed the byte budget")       \
    X(TL_ERROR_NOT_FOUND,      "not found",      "nothing is held under that key or name")         \
    X(TL_ERROR_STALE,          "stale",          "the key or handle belongs to an earlier step")   \
    X(TL_ERROR_KERNEL,         "kernel failed",  "a function of the caller reported a failure")    \
    X(TL_ERROR_BACKEND,        "backend failed", "a copy, a conversion or a mapping failed")       \
    X(TL_ERROR_DEVICE_LOST,    "device lost",    "sticky: every later call on the backend says so") \
    X(TL_ERROR_CORRUPT,        "corrupt",        "bytes changed that nobody may change")           \
    X(TL_ERROR_MISMATCH,       "mismatch",       "what was measured differs from what was planned") \
    X(TL_ERROR_IO,             "i/o error",      "a sink or a file did not take the bytes")

#define TLI_ENUM(id, name, help) id,  // undefined again at the end of this half
typedef enum tl_result { TL_RESULTS(TLI_ENUM) TL_RESULT_COUNT } tl_result;

typedef struct tl_error {
    tl_result code;
    char      text[248];  // "tl_check_graph: node 3 (conv1): inputs: id 7 is not above it"
} tl_error;

// Everything a call may touch besides its arguments. All-zero is valid.
typedef struct tl_env {
    void *(*alloc)(void *user, size_t bytes);     // 0 = TL_MALLOC; aligned for any type
    void  (*release)(void *user, void *ptr);      // 0 = TL_FREE; set both or neither
    void  (*log)(void *user, const char *text);   // 0 = silent; one sentence, no line end
    void   *user;                                 // given to the three above
    tl_error error;                               // why the last failing call failed
} tl_env;

// Where streamed output goes. A sink may be called many times with short texts.
typedef struct tl_sink {
    tl_result (*write)(void *user, const char *text, size_t length);  // TL_OK, or stop with an error
    void       *user;
} tl_sink;

// A deterministic sequence of random numbers: the same on every machine.
// Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014 (splitmix64).
typedef struct tl_random {
    uint64_t state;  // any value is a seed
} tl_random;

TLDEF int         tl_version(void);                 // TL_VERSION of the compiled half
TLDEF const char *tl_name_result(tl_result result);  // "no memory"; "?" out of range
TLDEF const char *tl_explain_result(tl_result result);  // "the allocator or the backend has none left"

// Make an env whose memory is one block of the caller: nothing calls malloc after this.
//
//   memory   must outlive the env; the bookkeeping lives inside it
//
// First fit over a list of free pieces that are joined again when they meet.
// Errors:  TL_ERROR_INVALID_ARG: memory too small for the bookkeeping (64 bytes).
// Cost:    O(free pieces) per allocation.
// Threads: one env per thread.
TLDEF tl_result tl_init_arena(tl_env *env, void *memory, size_t bytes);

// Report the bytes of an arena env in use now and at most so far (bookkeeping included).
TLDEF void tl_measure_arena(const tl_env *env, size_t *used_bytes, size_t *peak_bytes);

TLDEF uint64_t tl_next_random(tl_random *random);        // uniform in 0 .. 2^64-1
TLDEF double   tl_next_random_ratio(tl_random *random);  // uniform in [0, 1), 53 bits
TLDEF uint64_t tl_next_random_below(tl_random *random, uint64_t limit);  // uniform in 0 .. limit-1; 0 for 0

// Mix two numbers into one: the counter-based generator behind seeds that repeat.
TLDEF uint64_t tl_mix_u64(uint64_t a, uint64_t b);

// -- for those who write a backend --

// Take zeroed memory from an env, aligned for any type; NULL for 0 bytes and where there is none.
TLDEF void *tl_add_memory(tl_env *env, size_t bytes);
TLDEF void  tl_free_memory(tl_env *env, void *memory);  // accepts NULL

// Put "function: rule" into env->error.text and its code beside it, log it, and return the code.
TLDEF tl_result tl_record_error(tl_env *env, tl_result code, const char *function, const char *rule);

// ============================================================================
// [2] STRATEGY -- what the caller wants, in seven fields
//
//     tl_strategy --plan--> tl_plan --run--> your kernels on a tl_backend
//       (what)     + graph    (how)
//                  + device
//
// A strategy is a plain struct: all-zero is the default, presets are functions
// that return a filled one, and everything a preset does can be printed. Each
// value changes a step, a byte or a counter of the plan or of the run; a value
// that this version cannot carry out is accepted here, and running it answers
// TL_ERROR_UNSUPPORTED with a sentence that names it.
//
// The functions whose names end in _quick are rules of thumb that know no graph.
// ============================================================================

// id, name, name in the summary, meaning
#define TL_MODES(X) \
    X(TL_MODE_EAGER,  "eager",  "Eager",  "no plan: the manager decides online, under the budget") \
    X(TL_MODE_LAZY,   "lazy",   "Lazy",   "the whole step is planned, then replayed")              \
    X(TL_MODE_HYBRID, "hybrid", "Hybrid", "planned inside segments, online between them")

#define TL_PRECISIONS(X) \
    X(TL_PRECISION_FULL,   "f64",   "Full",   "8-byte elements")                                  \
    X(TL_PRECISION_SINGLE, "f32",   "Single", "4-byte elements")                                  \
    X(TL_PRECISION_MIXED,  "mixed", "Mixed",  "the precision planner picks per op")               \
    X(TL_PRECISION_HALF,   "f16",   "Half",   "2-byte elements, IEEE binary16")                   \
    X(TL_PRECISION_BF16,   "bf16",  "BFloat16", "2-byte elements, the upper half of an f32")

#define TL_MEMORIES(X) \
    X(TL_MEMORY_STANDARD,     "standard",     "Standard",    "one allocation per buffer")         \
    X(TL_MEMORY_POOLED,       "pooled",       "Pooled",      "one arena, planned offsets")        \
    X(TL_MEMORY_CACHED,       "cached",       "Cached",      "unchanged results are kept between runs") \
    X(TL_MEMORY_MINIMAL_PEAK, "minimal-peak", "MinimalPeak", "order and offsets for the least peak")

#define TL_PARALLELISMS(X) \
    X(TL_PARALLELISM_NONE,      "none",      "None",             "one worker")                    \
    X(TL_PARALLELISM_DATA,      "data",      "DataParallel",     "the batch is split over workers") \
    X(TL_PARALLELISM_MODEL,     "model",     "ModelParallel",    "the nodes are split over devices") \
    X(TL_PARALLELISM_PIPELINE,  "pipeline",  "PipelineParallel", "the nodes are split into stages") \
    X(TL_PARALLELISM_AUTOMATIC, "automatic", "Automatic",        "as many workers as the device has, at most 8")

#define TLI_ENUM4(id, name, label, help) id,  // undefined again at the end of this half
typedef enum tl_mode             { TL_MODES(TLI_ENUM4) TL_MODE_COUNT } tl_mode;
typedef enum tl_precision        { TL_PRECISIONS(TLI_ENUM4) TL_PRECISION_COUNT } tl_precision;
typedef enum tl_memory           { TL_MEMORIES(TLI_ENUM4) TL_MEMORY_COUNT } tl_memory;
typedef enum tl_parallelism_kind { TL_PARALLELISMS(TLI_ENUM4) TL_PARALLELISM_COUNT } tl_parallelism_kind;

// Four independent values: gradients or not, checkpointed or not, at which interval, in how
// many micro-batches. The constructors below make the four of the seed; any mix is allowed.
typedef struct tl_gradient {
    int32_t  computes;             // 0 = forward only, 1 = a backward pass too
    int32_t  checkpointed;         // 0 = keep all that backward reads, 1 = drop and recompute
    uint64_t checkpoint_interval;  // keep every n-th node; 0 = the planner's optimum
    uint64_t accumulation_steps;   // micro-batches per step; 0 = 1
} tl_gradient;

typedef struct tl_parallelism {
    tl_parallelism_kind kind;      // 0 = TL_PARALLELISM_NONE
    union {
        struct { uint64_t worker_count; } data;      // TL_PARALLELISM_DATA: > 0
        struct { uint64_t device_count; } model;     // TL_PARALLELISM_MODEL: > 0
        struct { uint64_t stage_count;  } pipeline;  // TL_PARALLELISM_PIPELINE: > 0
    } as;
} tl_parallelism;

typedef struct tl_strategy {
    tl_mode        mode;              // 0 = eager
    tl_gradient    gradient;          // 0 = none: forward only
    tl_precision   precision;         // 0 = f64
    tl_memory      memory;            // 0 = standard
    tl_parallelism parallelism;       // 0 = none
    int32_t        enable_fusion;     // 0 = off
    int32_t        enable_profiling;  // 0 = off
} tl_strategy;

TLDEF tl_gradient tl_gradient_none(void);
TLDEF tl_gradient tl_gradient_full(void);
TLDEF tl_gradient tl_gradient_checkpointed(uint64_t interval);  // 0 = the planner's optimum
TLDEF tl_gradient tl_gradient_accumulated(uint64_t steps);

TLDEF tl_parallelism tl_parallelism_none(void);
TLDEF tl_parallelism tl_parallelism_data(uint64_t worker_count);
TLDEF tl_parallelism tl_parallelism_model(uint64_t device_count);
TLDEF tl_parallelism tl_parallelism_pipeline(uint64_t stage_count);
TLDEF tl_parallelism tl_parallelism_automatic(void);

// Presets.
TLDEF tl_strategy tl_strategy_new(void);               // all zero
TLDEF tl_strategy tl_strategy_training(void);          // lazy, gradients, f32, pooled, automatic, fused, timed
TLDEF tl_strategy tl_strategy_inference(void);         // eager, forward only, f32, cached, automatic, fused
TLDEF tl_strategy tl_strategy_memory_efficient(void);  // hybrid, checkpointed 10, mixed, minimal peak
TLDEF tl_strategy tl_strategy_high_throughput(void);   // lazy, forward only, f32, pooled, data over 4, fused
TLDEF tl_strategy tl_strategy_debug(void);             // eager, full gradients, f64, standard, profiled

// Builders: return a copy of the strategy with one field changed.
TLDEF tl_strategy tl_with_mode(tl_strategy strategy, tl_mode mode);
TLDEF tl_strategy tl_with_gradient(tl_strategy strategy, tl_gradient gradient);
TLDEF tl_strategy tl_with_precision(tl_strategy strategy, tl_precision precision);
TLDEF tl_strategy tl_with_memory(tl_strategy strategy, tl_memory memory);
TLDEF tl_strategy tl_with_parallelism(tl_strategy strategy, tl_parallelism parallelism);
TLDEF tl_strategy tl_with_fusion(tl_strategy strategy, int32_t on);
TLDEF tl_strategy tl_with_profiling(tl_strategy strategy, int32_t on);

// Predicates: 1 or 0. The find functions return 0, and set the out value to 0, where the
// strategy has no such number.
TLDEF int tl_computes_gradients(const tl_strategy *strategy);
TLDEF int tl_uses_checkpointing(const tl_strategy *strategy);
TLDEF int tl_is_inference_mode(const tl_strategy *strategy);
TLDEF int tl_find_checkpoint_interval(const tl_strategy *strategy, uint64_t *interval);
TLDEF int tl_find_accumulation_steps(const tl_strategy *strategy, uint64_t *steps);  // 0 where none is set
TLDEF int tl_equals_strategy(const tl_strategy *a, const tl_strategy *b);

// Tell how many workers the strategy asks for: 1, its own count, or for automatic
// min(device_worker_count, 8). Never 0.
TLDEF uint64_t tl_find_worker_count(const tl_strategy *strategy, uint64_t device_worker_count);

// Hold every rule of a strategy: known kinds, worker, device and stage counts > 0, flags 0 or
// 1, checkpointing and accumulation only where gradients are computed, an interval only where
// checkpointed.
//
// Errors:  TL_ERROR_INVALID_ARG and the rule in env->error.text.
TLDEF tl_result tl_check_strategy(tl_env *env, const tl_strategy *strategy);

// Pick a strategy from four numbers, by the seed's rule of thumb.
//
//   batch_size, model_mib, available_mib   > 0; their product may not overflow
//
// pressure = model_mib x batch_size / available_mib. Training: above 0.8 checkpointed every 5,
// else batches of 64 and more accumulated over 4, else plain. Inference: batches of 32 and more
// get high throughput. Limits: weights do not grow with a batch, activations and optimizer
// state are not seen, and inference ignores memory; a planner that knows the graph is better.
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW; *strategy is all zero then.
TLDEF tl_result tl_recommend_quick(tl_env *env, uint64_t batch_size, uint64_t model_mib,
                                   uint64_t available_mib, int training, tl_strategy *strategy);

// Estimate memory relative to a plain eager forward pass, by the seed's factors: mode 1, 1.2,
// 1.1; gradient 1, 3, checkpointed 2, accumulated 3.5 (both: 2.5); memory 1, 1.1, 1.3, 0.8.
// Limits: blind to precision, interval, steps, workers and fusion; a plan knows its bytes.
TLDEF double tl_estimate_overhead_quick(const tl_strategy *strategy);

TLDEF const char *tl_name_mode(tl_mode mode);                       // "lazy"; "?" out of range
TLDEF const char *tl_name_precision(tl_precision precision);        // "f32"
TLDEF const char *tl_name_memory(tl_memory memory);                 // "minimal-peak"
TLDEF const char *tl_name_parallelism(tl_parallelism_kind kind);    // "pipeline"

#ifndef TL_NO_TEXT
// Each accepts exactly what its tl_name_ returns: 1 and the value, or 0.
TLDEF int tl_parse_mode(const char *text, tl_mode *mode);
TLDEF int tl_parse_precision(const char *text, tl_precision *precision);
TLDEF int tl_parse_memory(const char *text, tl_memory *memory);
TLDEF int tl_parse_parallelism(const char *text, tl_parallelism_kind *kind);

// Write the strategy as the seed's summary: eight lines, "Execution Strategy:\n- Mode: Lazy\n...".
// A mix that the seed cannot say prints as Checkpointed { checkpoint_interval: 5,
// accumulation_steps: 4 }. Returns the length needed without the final 0; never writes past size.
TLDEF size_t tl_print_strategy(const tl_strategy *strategy, char *buf, size_t size);

// Read a summary back. As in the seed, an interval, a step count or a worker count of 0 is an error.
//
// Errors:  TL_ERROR_PARSE with the line; *strategy is all zero then.
TLDEF tl_result tl_parse_strategy(tl_env *env, const char *text, size_t length, tl_strategy *strategy);

// The same as one line of JSON:
// {"mode":"lazy","gradient":{"computes":true,"checkpointed":true,"checkpoint_interval":5,
// "accumulation_steps":1},"precision":"f32","memory":"pooled","parallelism":{"kind":"data",
// "count":4},"fusion":true,"profiling":false}. The reader takes the keys in any order, ignores
// unknown ones and treats a missing one as its default; what it accepts passes tl_check_strategy.
//
// Errors:  TL_ERROR_PARSE with line and column, TL_ERROR_INVALID_ARG; *strategy is all zero then.
TLDEF size_t    tl_print_strategy_json(const tl_strategy *strategy, char *buf, size_t size);
TLDEF tl_result tl_parse_strategy_json(tl_env *env, const char *text, size_t length, tl_strategy *strategy);
#endif

// ============================================================================
// [3] GRAPH -- nodes, tensors, sizes, costs; the device; .tlg text
//
//     node 1 s split fwd=4 bwd=3 out=3,5,2 needs=none in=0
//
//          +-------+   1.0     A node reads tensors and makes one or more
//     0 -->| s     |-> 1.1     outputs: 1.0, 1.1, ... ("1" alone is 1.0 where
//          +-------+   1.2     a tensor is read, all outputs where a step acts).
//
// A graph is a list of nodes in topological order: a node reads only nodes above
// it. Sizes are bytes, costs are nanoseconds or FLOP (never mixed in one graph).
// What a backward pass reads is said by `needs`; extra state made for it alone
// (attention weights, masks, statistics) is `saved`; scratch that lives during
// one call is `fwork` and `bwork`. A layer chain is the graph whose node i reads
// node i-1.
// ============================================================================

typedef struct tl_tensor {
    int32_t node;    // id of the node that makes it
    int32_t output;  // which of its outputs, from 0
} tl_tensor;

// What a graph runs on. Every field is optional: 0 = not known.
typedef struct tl_device {
    const char *name;                          // borrowed
    double   flops_per_second[TL_PRECISION_COUNT];  // by tl_precision
    uint64_t bytes_per_second;                 // device memory, read + write
    uint64_t link_bytes_per_second;            // host link, one way; 0 = copies take no time
    uint64_t link_latency_ns;                  // per copy
    uint64_t codec_bytes_per_second;           // compress and expand, uncompressed side; 0 = no time
    uint64_t device_capacity_bytes;            // 0 = not limited
    uint64_t host_capacity_bytes;              // 0 = not limited
    uint64_t alignment_bytes;                  // of every buffer; 0 = 1; else a power of two
    uint64_t worker_count;                     // 0 = 1
    uint32_t supported;                        // bits 1 << tl_precision: supported and worth it
} tl_device;

// One node to add. Zero is the default everywhere; arrays are read during the call only.
typedef struct tl_node_desc {
    const char      *name;          // 0 = "n<id>"; no spaces; names are unique
    const char      *op;            // 0 = "op"; "input" = graph input: resident throughout, costs 0
    const tl_tensor *inputs;        // [input_count] each made by a node above
    int32_t          input_count;
    const uint64_t  *output_bytes;  // [output_count]
    int32_t          output_count;  // > 0
    const char      *needs;         // what backward reads, as in .tlg: "in", "out", "in0,out1"; 0 = "none"
    uint64_t fwd_cost, bwd_cost;    // of one call
    uint64_t saved_bytes;           // made by FORWARD_SAVE, read by backward only
    uint64_t fwork_bytes, bwork_bytes;  // scratch alive during the call
    uint64_t param_bytes;           // weights
    const char *unit;               // "attention", "ffn" or other; 0 = none: what checkpoint configs act on
    int32_t  layer;                 // layer number + 1; 0 = belongs to no layer
    int32_t  inplace;               // input that output 0 may overwrite + 1; 0 = none
    int32_t  no_grad;               // 1 = no backward, nobody computes a gradient for its outputs
    int32_t  keep;                  // 1 = its outputs are results: resident at the end
    int32_t  fixed;                 // 1 = bytes and costs do not scale with the batch
} tl_node_desc;

// A node of a graph, to be read; tl_add_node makes it.
typedef struct tl_node {
    uint32_t name, op, unit;        // offsets into tl_graph.text; tl_name_node() and friends
    int32_t  first_input, input_count;    // into tl_graph.inputs
    int32_t  first_output, output_count;  // into tl_graph.outputs
    int32_t  inplace;               // input index, -1 = none
    int32_t  layer;                 // layer number, -1 = none
    uint8_t  is_input, has_grad, keep, fixed;
    uint64_t fwd_cost, bwd_cost, saved_bytes, fwork_bytes, bwork_bytes, param_bytes;
} tl_node;

typedef struct tl_node_input {
    int32_t tensor;                 // index into tl_graph.outputs
    uint8_t needed;                 // 1 = the node's backward reads it
} tl_node_input;

typedef struct tl_node_output {
    int32_t  node;                  // the node that makes it
    int32_t  output;                // which of the node's outputs
    uint64_t bytes;
    uint8_t  needed;                // 1 = the node's own backward reads it
} tl_node_output;

typedef struct tl_view {
    uint32_t name;                  // offset into tl_graph.text
    int32_t  tensor;                // its storage: index into tl_graph.outputs, never a view
} tl_view;

// All arrays belong to the graph; read them freely, change them through the calls below.
typedef struct tl_graph {
    tl_node        *nodes;    int32_t node_count;     // [node_count] topological order
    tl_node_input  *inputs;   int32_t input_count;    // of all nodes, one after the other
    tl_node_output *outputs;  int32_t tensor_count;   // of all nodes, one after the other
    tl_view        *views;    int32_t view_count;
    char           *text;     uint32_t text_bytes;    // names, each ended by 0; the one at 0 is empty
    uint64_t        batch;                            // samples that bytes and costs stand for; 0 = unknown
    int32_t         node_capacity, input_capacity, tensor_capacity, view_capacity;
    uint32_t        text_capacity;
} tl_graph;

// Start an empty graph; release it with tl_free_graph. A zeroed tl_graph is empty too.
TLDEF void tl_init_graph(tl_graph *graph);
TLDEF void tl_free_graph(tl_env *env, tl_graph *graph);

// Add a node at the end. Every rule of tl_check_graph is held at once, but two that need the
// whole graph: unique names and sums.
//
//   desc   not changed; its arrays and texts are copied
//   id     may be NULL; the new node's id
//
// Names, ops and units are 1 to 255 printable ASCII characters other than space, # and =.
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW. On error the graph is as
//          it was, and *id is 0.
// Cost:    amortised O(inputs + outputs + length of the names).
// Threads: one graph per thread while it is built; a finished graph may be read by many.
TLDEF tl_result tl_add_node(tl_env *env, tl_graph *graph, const tl_node_desc *desc, int32_t *id);

// Add a name for a tensor that has one already (a reshape, a transpose): a view has no bytes
// and no node of its own, and *storage is the tensor it stands for. A view may be named by a
// view's name through tl_find_tensor; it always resolves to the storage at the bottom.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW; a name that is taken is
//          found by tl_check_graph.
TLDEF tl_result tl_add_view(tl_env *env, tl_graph *graph, const char *name, tl_tensor of, tl_tensor *storage);

// Find a tensor by the name of its node ("conv1", output 0), else by the name of a view, by node
// name and output ("split.2"), or by id ("3", "3.1").
//
// Errors:  TL_ERROR_NOT_FOUND.
// Cost:    O(nodes + views).
TLDEF tl_result tl_find_tensor(tl_env *env, const tl_graph *graph, const char *name, tl_tensor *tensor);

// A layer chain: node 0 is the input, node i reads node i-1.
typedef struct tl_chain_desc {
    int32_t         layer_count;       // > 0
    uint64_t        input_bytes;       // of the graph input
    const uint64_t *output_bytes;      // [layer_count]; 0 = 1 byte each: equal layers
    const uint64_t *saved_bytes;       // [layer_count]; 0 = none
    const uint64_t *fwork_bytes;       // [layer_count]; 0 = none
    const uint64_t *bwork_bytes;       // [layer_count]; 0 = none
    const uint64_t *param_bytes;       // [layer_count]; 0 = none
    const uint64_t *fwd_costs;         // [layer_count]; 0 = 1 each
    const uint64_t *bwd_costs;         // [layer_count]; 0 = 1 each
    const char     *needs;             // of every layer; 0 = "in"
} tl_chain_desc;

// Make a layer chain in one call. Layer i is node i+1 and carries layer number i.
//
//   graph   overwritten (not freed); release with tl_free_graph
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW; *graph is empty then.
TLDEF tl_result tl_add_chain(tl_env *env, tl_graph *graph, const tl_chain_desc *desc);

// Hold every rule of a graph, also one whose arrays were made by hand: at least one node, inputs
// above their node, at least one output each, indices and text offsets in range, unique names of
// nodes and views, graph inputs with nothing but bytes, in place only where the bytes are equal
// and the overwritten tensor is no graph input, bwd, bwork, saved and needs only where there is a
// gradient, and within 64 bits the sums of all bytes (each output twice: its gradient), of all
// costs and of all weights. A node without a gradient may read one that has it, and the other way
// round: gradients end there, none flows through.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW, TL_ERROR_NO_MEMORY.
// Cost:    O(nodes + inputs), and O(n log n) to compare the n names, whatever they are.
TLDEF tl_result tl_check_graph(tl_env *env, const tl_graph *graph);

// Hold every rule of a device: finite, not negative, alignment a power of two, known precisions.
//
// Errors:  TL_ERROR_INVALID_ARG.
TLDEF tl_result tl_check_device(tl_env *env, const tl_device *device);

TLDEF const char *tl_name_node(const tl_graph *graph, int32_t node);  // "conv1"; "?" out of range
TLDEF const char *tl_name_op(const tl_graph *graph, int32_t node);    // "conv2d"
TLDEF const char *tl_name_unit(const tl_graph *graph, int32_t node);  // "attention"; "" = none

// Sum param x (1 + gradient_ratio + optimizer_ratio): the part of the budget that no plan
// changes. AdamW in f32 keeps two numbers a weight: optimizer_ratio 2. Exact for ratios with up
// to 32 binary digits behind the point, else rounded up.
//
// Errors:  TL_ERROR_OVERFLOW, TL_ERROR_INVALID_ARG: a ratio is negative or not finite.
TLDEF tl_result tl_find_base_bytes(tl_env *env, const tl_graph *graph, double gradient_ratio,
                                   double optimizer_ratio, uint64_t *base_bytes);

#ifndef TL_NO_TEXT
// Write a graph as .tlg text; the reader gives the same graph back. Views are written as the
// tensors that they stand for.
TLDEF size_t tl_print_graph(const tl_graph *graph, char *buf, size_t size);

// Read .tlg text:
//
//     tlg 1
//     batch 32
//     node <id> <name> <op> fwd=<cost> bwd=<cost> out=<bytes[,bytes..]> needs=<..> in=<tensors or ->
//          [saved=] [fwork=] [bwork=] [param=] [inplace=<k>] [layer=<n>] [unit=<name>] [grad=no] [keep] [fixed]
//
// one node a line, ids 0, 1, 2, ..., attributes in any order, # comments; batch may be left out.
// No number is trusted before it was checked.
//
//   graph   overwritten (not freed); release with tl_free_graph
//
// Errors:  TL_ERROR_PARSE, and those of tl_check_graph, with the line; *graph is empty then.
// Cost:    O(length), and the comparison of names as in tl_check_graph.
TLDEF tl_result tl_parse_graph(tl_env *env, const char *text, size_t length, tl_graph *graph);

#ifndef TL_NO_STDIO
TLDEF tl_result tl_read_graph(tl_env *env, const char *path, tl_graph *graph);         // TL_ERROR_IO
TLDEF tl_result tl_write_graph(tl_env *env, const tl_graph *graph, const char *path);  // TL_ERROR_IO
#endif
#endif

#ifndef TL_NO_PLANNERS
// -- layers: nodes whose bytes and costs follow from shapes --
//
//     shape.batch = 8; shape.channels = 3; shape.height = shape.width = 256;
//     conv.channels = 64; conv.kernel = 3; norm.activation = TL_ELEMENTWISE_RELU;
//     if (tl_add_input(&env, &graph, "x", shape, TL_PRECISION_SINGLE, &x) ||
//         tl_add_conv2d(&env, &graph, &conv, x, &x) || tl_add_batch_norm(&env, &graph, &norm, x, &x)) ...
//
// Letters: B batch, C channels, H x W positions, of the input; E elements of the result; T tokens, that
// is positions. Costs are FLOP: 2 for a multiplication with its addition, also where a tap falls into
// the padding, and 1 for a bias; what only touches elements costs 1 for each. A backward costs twice the
// forward where there are weights or two matrices are multiplied, else the same. Bytes are elements x
// the size of the precision. Nothing is counted twice: caches, workspaces and statistics of a library
// that computes a layer stand in saved_bytes, fwork_bytes and bwork_bytes of the desc.

// id, name of the op, what backward reads
#define TL_ELEMENTWISES(X) \
    X(TL_ELEMENTWISE_NONE,    "none",    "none") \
    X(TL_ELEMENTWISE_RELU,    "relu",    "out")  \
    X(TL_ELEMENTWISE_SIGMOID, "sigmoid", "out")  \
    X(TL_ELEMENTWISE_TANH,    "tanh",    "out")  \
    X(TL_ELEMENTWISE_GELU,    "gelu",    "in")   \
    X(TL_ELEMENTWISE_SILU,    "silu",    "in")   \
    X(TL_ELEMENTWISE_SCALE,   "scale",   "none") \
    X(TL_ELEMENTWISE_DROPOUT, "dropout", "none") \
    X(TL_ELEMENTWISE_ADD,     "add",     "none") \
    X(TL_ELEMENTWISE_SUB,     "sub",     "none") \
    X(TL_ELEMENTWISE_MUL,     "mul",     "in")

// id, name of the op, positions of the result
#define TL_POOLS(X) \
    X(TL_POOL_MAX,     "maxpool",  "one per stride; backward finds the largest again") \
    X(TL_POOL_AVERAGE, "avgpool",  "one per stride")                                  \
    X(TL_POOL_GLOBAL,  "gavgpool", "those of the desc, each the mean of its share")

// id, name, what is kept of the weights softmax(Q K^T)
#define TL_ATTENTIONS(X) \
    X(TL_ATTENTION_STORED, "stored", "one node: the weights are saved bytes")                       \
    X(TL_ATTENTION_TILED,  "tiled",  "one node: made again tile by tile, two numbers a row are saved") \
    X(TL_ATTENTION_SPLIT,  "split",  "three nodes: the planner may drop scores and weights")

// id, name of the op, gates
#define TL_CELLS(X) \
    X(TL_CELL_RNN,  "rnn",  "1: h = tanh(W x + U h + b)") \
    X(TL_CELL_GRU,  "gru",  "3: reset, update, candidate") \
    X(TL_CELL_LSTM, "lstm", "4: input, forget, candidate, output")

typedef enum tl_elementwise { TL_ELEMENTWISES(TLI_ENUM) TL_ELEMENTWISE_COUNT } tl_elementwise;
typedef enum tl_pool        { TL_POOLS(TLI_ENUM) TL_POOL_COUNT } tl_pool;
typedef enum tl_attention   { TL_ATTENTIONS(TLI_ENUM) TL_ATTENTION_COUNT } tl_attention;
typedef enum tl_cell        { TL_CELLS(TLI_ENUM) TL_CELL_COUNT } tl_cell;

// 0 = 1. Rows are {B, C, 1, 1}, sequences {B, C, T, 1}, images {B, C, H, W}.
typedef struct tl_shape {
    uint64_t batch, channels, height, width;
} tl_shape;

// A tensor of a graph with its shape: what layers read and make.
typedef struct tl_value {
    tl_tensor    tensor;
    tl_precision precision;  // of its elements: f64 8 bytes, f32 and mixed 4, f16 and bf16 2
    tl_shape     shape;      // never 0 in a value that a layer made
} tl_value;

#define TL_NO_PADDING UINT64_MAX

// What a layer is, beside what it reads. Zero is the default; a layer refuses fields that it has no
// use for. Of two-dimensional fields, height comes first and width follows it where it is 0.
typedef struct tl_layer_desc {
    const char *name;           // 0 = "n<id>"
    const char *unit;           // as in tl_node_desc
    int32_t  layer;             // layer number + 1; 0 = belongs to no layer
    int32_t  no_grad, keep;     // as in tl_node_desc
    int32_t  precision;         // tl_precision of the result + 1; 0 = that of the first input
    tl_elementwise activation;  // done in place by the same node: relu, sigmoid or tanh; 0 = none
    int32_t  inplace;           // 1 = the result may overwrite the first input: same bytes, no graph input
    int32_t  no_bias;           // 1 = without bias
    int32_t  flatten;           // 1 = all positions of a sample are one row
    uint64_t channels;          // of the result; 0 = those of the input
    uint64_t kernel, kernel_width;    // 0 = 1
    uint64_t stride, stride_width;    // 0 = 1; of a pool: the kernel
    uint64_t padding, padding_width;  // 0 = (kernel - 1) / 2; TL_NO_PADDING
    uint64_t dilation;          // 0 = 1
    uint64_t groups;            // 0 = 1; divides both channels
    uint64_t height, width;     // positions of a global pool; 0 = 1
    uint64_t heads;             // of attention; 0 = 1; divides the channels
    uint64_t vocabulary;        // rows of an embedding's table; > 0 there
    uint64_t saved_bytes, fwork_bytes, bwork_bytes;  // of your kernels, beside what the layer has
} tl_layer_desc;

// Every call below adds a node, with op and needs as the comment says, and gives its result.
//
//   desc     0 = all defaults
//   output   overwritten; may be where the input was
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY; TL_ERROR_OVERFLOW: bytes or costs do not fit 64
//          bits. On error the graph is as it was, and *output is all zero.
// Threads: as tl_add_node.

// Add a graph input. The first one sets the batch of the graph, if it has none.
TLDEF tl_result tl_add_input(tl_env *env, tl_graph *graph, const char *name, tl_shape shape,
                             tl_precision precision, tl_value *output);

// linear: each position times a matrix. (2 C + 1) E forward, 1 less each without bias; needs in.
// Fields: channels, no_bias, flatten, activation.
TLDEF tl_result tl_add_dense(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                             tl_value *output);

// conv2d: (2 C kernel kernel_width / groups + 1) E forward; needs in.
// Fields: channels, kernel, stride, padding, dilation, groups, no_bias, activation.
TLDEF tl_result tl_add_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                              tl_value *output);

// The same with as many groups as there are channels: each is convolved alone.
TLDEF tl_result tl_add_depthwise_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                        tl_value input, tl_value *output);

// convt2d: transposed, grows (H - 1) stride + dilation (kernel - 1) + 1 - 2 padding. Every element of
// the input meets each tap: 2 B C H W channels kernel kernel_width / groups + E forward; needs in.
// Fields: as tl_add_conv2d.
TLDEF tl_result tl_add_transposed_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                         tl_value input, tl_value *output);

// Pools: E x the window forward and backward; needs in for maxpool, else none. Fields: kernel, stride,
// padding; of a global one height and width, its window being ceil(H / height) x ceil(W / width).
TLDEF tl_result tl_add_pool(tl_env *env, tl_graph *graph, tl_pool kind, const tl_layer_desc *desc,
                            tl_value input, tl_value *output);

// upsample: height x stride, width x stride. E x kernel x kernel_width taps forward and backward:
// kernel 0 = 1 is nearest, 2 bilinear; needs none. Fields: kernel, stride.
TLDEF tl_result tl_add_upsample(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                tl_value *output);

// bn, layernorm: E forward, 2 E backward; needs in; a scale and a bias per channel. Statistics are not
// counted: they are small, and made again in the backward. Fields: no_bias, activation, inplace.
TLDEF tl_result tl_add_batch_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                  tl_value *output);
TLDEF tl_result tl_add_layer_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                  tl_value *output);

// Elementwise: E forward and backward; add, sub and mul: E for each input but the first. Each extent
// of a further input is that of the first, or 1. Dropout finds its mask again from the random state.
//
//   input_count   add, mul: 2 or more; sub: 2; the others: 1
//
// Fields: activation, inplace.
TLDEF tl_result tl_add_elementwise(tl_env *env, tl_graph *graph, tl_elementwise kind,
                                   const tl_layer_desc *desc, const tl_value *inputs, int32_t input_count,
                                   tl_value *output);

// softmax over the channels: E forward and backward; needs out. Fields: inplace.
TLDEF tl_result tl_add_softmax(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                               tl_value *output);

// embedding: a row of a table for each id. E forward, 2 E backward; needs in; vocabulary x channels
// weights. Fields: vocabulary, channels (> 0).
//
//   input   ids, one a position: 1 channel, elements of any precision
TLDEF tl_result tl_add_embedding(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                 tl_value *output);

// Attention of T tokens on S: scores and weights have N = B heads T S elements. Q K^T and weights x V
// cost 2 B T S C each, softmax N.
//
//   stored   attention: the sum forward, backward the products twice and N; needs in; saves the weights
//            N; fwork N (the scores), bwork N (their gradients)
//   tiled    attention: the same forward; backward makes Q K^T and the weights again: 5/2 of the products
//            and 2 N; needs in,out; saves the logarithm of the sum of each of B heads T rows, and bwork is
//            a number a row, of 4 bytes or the element, if that is larger. Dao et al., FlashAttention,
//            2022, arXiv:2205.14135, section 3
//   split    bmm, softmax and bmm, called <name>_qk, _softmax and _av; the products need in, softmax out
//
//   inputs   1: queries, keys and values in one tensor of 3 C channels; or 3: of C channels, the
//            last two of S tokens
//
// Fields: heads, unless in three nodes saved_bytes, fwork_bytes, bwork_bytes.
TLDEF tl_result tl_add_attention(tl_env *env, tl_graph *graph, tl_attention kind, const tl_layer_desc *desc,
                                 const tl_value *inputs, int32_t input_count, tl_value *output);

// One step of a recurrent layer: with U channels and G gates, B G U (2 (C + U) + 1) for the products,
// twice that backward, and E for each gate and 0, 4 (gru) or 5 (lstm) for the new state, the same
// backward. rnn needs in,out; the others in, and save their gates; lstm also out1.
//
//   state       [1], of lstm [2]: hidden and cell; one position
//   new_state   [1] or [2] overwritten; may be where the state was
//
// Fields: no_bias; channels is that of the state.
TLDEF tl_result tl_add_recurrent(tl_env *env, tl_graph *graph, tl_cell kind, const tl_layer_desc *desc,
                                 tl_value input, const tl_value *state, tl_value *new_state);

// concat, split: along the channels; E (of split: of all parts) forward and backward; needs none.
//
//   channels   [output_count] of each part; 0 = equal parts
TLDEF tl_result tl_add_concat(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                              const tl_value *inputs, int32_t input_count, tl_value *output);
TLDEF tl_result tl_add_split(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                             const uint64_t *channels, int32_t output_count, tl_value *outputs);

// loss: softmax and cross entropy, or any other that goes over its input once: as many as the input
// has elements forward and backward; needs in. One element a sample comes out.
//
//   labels   0 = not part of the graph
TLDEF tl_result tl_add_loss(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                            const tl_value *labels, tl_value *output);

TLDEF const char *tl_name_elementwise(tl_elementwise kind);  // "relu"; "?" out of range
TLDEF const char *tl_name_pool(tl_pool kind);                // "maxpool"
TLDEF const char *tl_name_attention(tl_attention kind);      // "tiled"
TLDEF const char *tl_name_cell(tl_cell kind);                // "lstm"
#ifndef TL_NO_TEXT
// Each accepts exactly what its tl_name_ returns: 1 and the value, or 0.
TLDEF int tl_parse_elementwise(const char *text, tl_elementwise *kind);
TLDEF int tl_parse_pool(const char *text, tl_pool *kind);
TLDEF int tl_parse_attention(const char *text, tl_attention *kind);
TLDEF int tl_parse_cell(const char *text, tl_cell *kind);
#endif

// -- statistics --

// All nodes of one op.
typedef struct tl_op_statistics {
    const char *op;             // a text of the graph
    int32_t  node_count;
    uint64_t output_bytes, saved_bytes, param_bytes;
    uint64_t fwd_cost, bwd_cost;
} tl_op_statistics;

// What a graph is like. The floor is the largest working set of a call that every plan makes: graph inputs,
// what the call reads and makes, its gradients, saved bytes and scratch. No plan needs less.
typedef struct tl_graph_statistics {
    const tl_op_statistics *ops;  // [op_count] in order of first appearance
    const int32_t *cuts;        // [cut_count] nodes that nothing passes by: those below read none above
    int32_t  op_count, cut_count;
    int32_t  node_count, tensor_count;
    int32_t  input_node_count;  // graph inputs
    int32_t  grad_node_count;   // nodes with a backward
    int32_t  depth;             // nodes of the longest path
    int32_t  width;             // most tensors that cross a place between two nodes of the listing
    tl_tensor largest_tensor;
    uint64_t largest_bytes;     // of it
    uint64_t output_bytes, saved_bytes, param_bytes;  // sums
    uint64_t fwd_cost, bwd_cost;      // sums
    uint64_t floor_bytes;       // of the training, weights not counted
    int32_t  floor_node;        // the first whose call takes so many
    int32_t  floor_is_backward; // 1 = it is its backward
    uint64_t inference_floor_bytes;
    uint64_t keep_all_bytes;    // peak of the training that keeps what backward reads (tl_plan_keep_all)
    void    *memory;            // what tl_free_graph_statistics releases
} tl_graph_statistics;

// Measure a graph.
//
//   statistics   overwritten; release with tl_free_graph_statistics; its texts are those of the graph
//
// Errors:  those of tl_check_graph; *statistics is all zero then.
// Cost:    O(nodes + inputs), O(n log n) as tl_check_graph, and O(nodes x ops) at worst.
TLDEF tl_result tl_measure_graph(tl_env *env, const tl_graph *graph, tl_graph_statistics *statistics);
TLDEF void      tl_free_graph_statistics(tl_env *env, tl_graph_statistics *statistics);  // accepts zeroed ones

#ifndef TL_NO_TEXT
// Write statistics as a table, an op a line, for people to read.
TLDEF size_t tl_print_graph_statistics(const tl_graph *graph, const tl_graph_statistics *statistics,
                                       char *buf, size_t size);
#endif

// -- fusion: chains of elementwise nodes become one node, computed block by block --
//
//     a --> add --> gelu --> dropout --> y     three tensors, each written and read
//     b ----^
//     a, b --> [ fused: block 1, block 2, ... ] --> y     one tensor, and blocks of scratch

typedef struct tl_fusion_desc {
    const tl_graph    *graph;        // not NULL
    const char *const *ops;          // [op_count] that are elementwise; 0 = all of TL_ELEMENTWISES. Of
                                     // "add+relu" each part must be one
    int32_t            op_count;
    const char        *op;           // of fused nodes; 0 = "fused"
    uint64_t           block_bytes;  // a multiple of 64; 0 = 65536
    const tl_device   *device;       // costs are nanoseconds on it; 0 = costs are added up
    int32_t            inference;    // 1 = forward only: what backward reads does not matter
} tl_fusion_desc;

typedef struct tl_fusion_plan {
    tl_graph       graph;            // the fused graph
    const int32_t *nodes;            // [nodes of the old graph] the node that computes it now
    const int32_t *first_members;    // [graph.node_count + 1] into members
    const int32_t *members;          // [nodes of the old graph] old nodes, by new node, in their order
    const int32_t *remade_counts;    // [graph.node_count] first members whose forward backward runs again
    uint64_t       block_bytes;      // defaults filled in
    int32_t        fused_count;      // new nodes of two members and more
    uint64_t       inner_bytes;      // of the tensors that are gone
    void          *memory;           // what tl_free_fusion_plan releases, and the graph
} tl_fusion_plan;

// Fuse chains of elementwise nodes. In a chain every node has one output, is the only reader of the one
// before it, has no weights and no saved bytes, reads and makes tensors of equal bytes only, and shares
// layer, unit, and whether it has a gradient and scales with the batch; only the last may be a result.
// Chains are as long as they can be, at most 256 nodes, under three rules more: backward must not read
// more bytes than before, other nodes between two members must not have more bytes beside them, and
// gradients are added up in the old order. A graph with nothing to fuse is copied.
//
// A fused node has the name of its last member, and the members' outer inputs in their order. Its backward
// reads those its members read, its output if the last one does, and where a member reads an inner
// tensor, all that the members above it need to make that again. Scratch is in blocks of block_bytes, or
// the whole tensor if that is smaller: forward 1 (2 members) or 2 in turn; backward one for each member
// made again, then 1 or 2 of gradients; then the largest scratch of a member. Costs are added up,
// backward also the forwards made again. With a device, the time to write and to read inner tensors
// is taken off, but never below the largest member or the time of the outer bytes. In place, the
// output may overwrite what the first member might, unless the last one reads that, too. Views of
// inner tensors are gone. One call holds the gradients of all outer inputs at once: a node with many of them
// can have a larger working set than its members had one by one.
//
//   fusion   overwritten; release with tl_free_fusion_plan
//
// Errors:  those of tl_check_graph and tl_check_device; TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY,
//          TL_ERROR_OVERFLOW; *fusion is all zero then.
// Cost:    O(nodes + inputs) x at most 256 where chains part again and again.
TLDEF tl_result tl_plan_fusion(tl_env *env, const tl_fusion_desc *desc, tl_fusion_plan *fusion);
TLDEF void      tl_free_fusion_plan(tl_env *env, tl_fusion_plan *fusion);  // accepts zeroed ones
#endif

// ============================================================================
// [4] PLAN -- steps, the simulator, checkpoint configs as plans
//
//     F 1  F 2  F 3  D 2  B 3  F 2  B 2  B 1
//     ---------------------------------------    tensor 2 is dropped after its
//     1    ################################       last use in the forward pass
//     2         #######             #######       and made again for B 2:
//     3              ############                 less memory, one more forward
//
// A plan is a list of steps over the nodes and tensors of a graph. The simulator
// replays it and says whether it is valid, what it costs, and its two peaks: the
// largest sum of live bytes, and with offsets the high-water mark of the arena.
// Copies end at an explicit WAIT, so peaks depend on the order of steps alone,
// never on timing. Backwards run once each, in reverse listing order.
//
// References: Griewank, Walther, Algorithm 799: Revolve, 2000. Chen et al., Training Deep
// Nets with Sublinear Memory Cost, 2016, arXiv:1604.06174, section 3.
// ============================================================================

// id, letters in a schedule, needs -> effect
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

// Fixed widths, so that a plan can be a const table on any ABI.
typedef struct tl_step {
    uint8_t  kind;      // tl_step_kind
    uint8_t  codec;     // tl_codec, TL_STEP_COMPRESS only
    uint16_t reserved;  // 0
    int32_t  node;
    int32_t  output;    // of D, O, L, W, DH, C, X: -1 = every output it can act on; of the others always -1
} tl_step;

#define TL_ALL_OUTPUTS (-1)

typedef struct tl_plan {
    const tl_step  *steps;       // [step_count]
    int32_t         step_count;
    int32_t         repeat_count;   // micro-batches: the body runs that often; 0 = 1
    const uint64_t *offsets;     // [offset_count] of the allocations in order (tl_simulate_plan); 0 = none
    int32_t         offset_count;
    int32_t         inference;   // 1 = forward only: no B, ends with its results resident
    int32_t         any_order;   // 1 = backwards in any legal order, not in reverse listing order
    uint64_t        peak_bytes;      // largest sum of live bytes
    uint64_t        arena_bytes;     // aligned high-water mark; 0 without offsets
    uint64_t        host_peak_bytes; // largest sum of host copies
    uint64_t        base_bytes;      // weights, gradients, optimizer: beside the plan, in the budget
    uint64_t        cost;            // when the last compute step of one body ends
    uint64_t        base_cost;       // every forward and backward once
    uint64_t        bound_cost;      // no plan of its class costs less; 0 = not known
    void           *memory;          // what tl_free_plan releases; 0 = const table, nothing
} tl_plan;

// What one replay of a plan found out.
typedef struct tl_report {
    uint64_t peak_bytes, arena_bytes, host_peak_bytes;
    uint64_t end_bytes;         // device bytes still live after the last step, inputs included
    uint64_t end_host_bytes;
    uint64_t cost;              // when the last compute step or WAIT ends
    uint64_t compute_cost;      // sum of the forwards and backwards paid
    uint64_t base_cost;         // every forward and backward once
    int32_t  forward_count;     // F, I and S steps
    int32_t  recompute_count;   // of these, forwards of a node that had run before
    int32_t  backward_count;
    int32_t  copy_count;        // O and L, per tensor
    int32_t  codec_count;       // C and X, per tensor
    int32_t  allocation_count;  // device allocations made, scratch and gradients included
    int32_t  peak_step;         // the first step that reaches the peak; -1 = before the first
    int32_t  broken_step;       // TL_ERROR_INVALID_PLAN: the first broken step (step_count: the end); else -1
} tl_report;

typedef struct tl_simulate_desc {
    const tl_graph  *graph;       // not NULL
    const tl_plan   *plan;        // not NULL; only steps, offsets, flags are read
    const tl_device *device;      // 0 = copies and conversions take no time, alignment 1
    uint64_t        *live_bytes;  // [step_count] highest live bytes during each step; may be 0
    uint64_t        *host_bytes;  // [step_count] host bytes after each step; may be 0
} tl_simulate_desc;

// Replay a plan under the model and report. One body is replayed; repeats change nothing, they
// start and end in the same state.
//
// The allocations of a step are numbered in this order: F, I, S: each missing output; outputs
// made twice; saved; fwork. B: gradients of its outputs that nobody made before, gradients of
// its inputs on the first contribution, bwork. L: each tensor. C: each compressed copy. X: each
// tensor. Before the first step: every output of every graph input. plan->offsets[k] places
// allocation k; with offsets, no two live allocations may overlap. In place, output 0 takes over
// its input's allocation. What has 0 bytes is no allocation. Of several outputs, C and X convert
// one after the other: both copies of one tensor live until its own conversion ends.
//
// Errors:  TL_ERROR_INVALID_PLAN with the first broken rule (report->broken_step is set, the rest
//          of *report is zero), TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW, and those of tl_check_graph.
// Cost:    O(steps + tensors), with offsets O(steps x live allocations); memory O(tensors).
// Threads: safe with one env per thread.
TLDEF tl_result tl_simulate_plan(tl_env *env, const tl_simulate_desc *desc, tl_report *report);

// Replay the plan and fill in its peaks, cost and base cost.
TLDEF tl_result tl_measure_plan(tl_env *env, const tl_graph *graph, const tl_device *device, tl_plan *plan);

TLDEF void        tl_free_plan(tl_env *env, tl_plan *plan);  // accepts zeroed plans and const tables
TLDEF const char *tl_name_step(tl_step_kind kind);    // "F"; "?" out of range
TLDEF const char *tl_explain_step(tl_step_kind kind);  // "inputs resident, ... -> ..."
TLDEF const char *tl_name_codec(tl_codec codec);      // "bf16"

// Bytes of a tensor under a codec: f16, bf16 2 per element, q8 1 per element and 4 per block of
// 32; an element is 4 bytes, a tail counts as one.
TLDEF uint64_t tl_find_codec_bytes(tl_codec codec, uint64_t bytes);

// Revolve in closed form: the forwards without saving that reverse layer_count equal layers with
// slot_count checkpoints, r n - C(c+r, r-1), r the least with C(c+r, c) >= n.
//
// Errors:  TL_ERROR_INVALID_ARG: a count < 1; TL_ERROR_OVERFLOW.
TLDEF tl_result tl_find_revolve_advances(tl_env *env, uint64_t layer_count, uint64_t slot_count,
                                         uint64_t *advances);

#ifndef TL_NO_PLANNERS
// Keep everything that backward reads until it was read: the plan to compare with.
//
//   plan   overwritten; release with tl_free_plan; peaks and costs are filled in
//
// Errors:  those of tl_check_graph, TL_ERROR_NO_MEMORY; *plan is all zero then.
TLDEF tl_result tl_plan_keep_all(tl_env *env, const tl_graph *graph, int inference, tl_plan *plan);

// Keep the given tensors for backward, drop the others after their last use in the forward pass,
// and make them again, once, when backward first wants them.
//
//   keep   [tensor_count] 1 = kept; saved bytes of a node are kept where all its outputs are
//
// Errors:  as tl_plan_keep_all.
TLDEF tl_result tl_plan_kept_set(tl_env *env, const tl_graph *graph, const uint8_t *keep, tl_plan *plan);

// Reverse a chain of equal layers with slot_count checkpoints (the graph input is the first) in
// the least number of forwards: Revolve's binomial schedule.
//
//   graph   a chain, as tl_add_chain makes it; its needs may be "in", and saved bytes are allowed
//
// Errors:  TL_ERROR_INVALID_ARG: not a chain, slot_count < 1; TL_ERROR_NO_MEMORY.
// Cost:    O(forwards).
// Reference: Griewank, Walther, 2000, section 2.
TLDEF tl_result tl_plan_revolve(tl_env *env, const tl_graph *graph, int32_t slot_count, tl_plan *plan);
#endif

// -- checkpoint configs --

// id, name in JSON, meaning
#define TL_CHECKPOINTS(X) \
    X(TL_CHECKPOINT_NONE,      "None",      "keep every activation")                              \
    X(TL_CHECKPOINT_UNIFORM,   "Uniform",   "keep the layers whose number is divisible by the interval") \
    X(TL_CHECKPOINT_SELECTIVE, "Selective", "keep the layers of a list")                          \
    X(TL_CHECKPOINT_DYNAMIC,   "Dynamic",   "the cheapest kept set below a fraction of the keep-all peak")

typedef enum tl_checkpoint_kind { TL_CHECKPOINTS(TLI_ENUM) TL_CHECKPOINT_COUNT } tl_checkpoint_kind;

typedef struct tl_checkpoint {
    tl_checkpoint_kind kind;                 // 0 = TL_CHECKPOINT_NONE
    union {
        struct { uint64_t interval; } uniform;                           // > 0
        struct { const uint64_t *layers; uint64_t layer_count; } selective;  // no duplicates
        struct { uint64_t layer_count; double memory_fraction; } dynamic;    // > 0, 0..1
    } as;
} tl_checkpoint;

// Which layers keep their result, and whether the inner activations of attention and of ffn
// units (tl_node_desc.unit) are dropped and made again, in kept layers too. A tensor is inner where
// it is read, and by nodes of its own layer alone. Every other tensor of a layer, and inner ones of
// other units, are kept where their layer is; nodes without a layer are always kept. None keeps
// all, whatever the flags say.
typedef struct tl_checkpoint_config {
    tl_checkpoint strategy;
    int32_t  checkpoint_attention;     // 1 = drop inner activations of attention units, 0 = keep them
    int32_t  checkpoint_ffn;           // the same for ffn units
    uint64_t min_checkpoint_interval;  // kept layers are at least that far apart; 0 and 1 = no limit
    void    *memory;                   // what tl_free_checkpoint_config releases; 0 = nothing
} tl_checkpoint_config;

#ifndef TL_NO_PLANNERS
TLDEF tl_checkpoint_config tl_checkpoint_none(void);                      // the default: flags off
TLDEF tl_checkpoint_config tl_checkpoint_uniform(uint64_t interval);      // flags on
TLDEF tl_checkpoint_config tl_checkpoint_selective(const uint64_t *layers, uint64_t layer_count);  // borrowed

// Errors:  TL_ERROR_INVALID_ARG: layer_count 0, or memory_fraction not in [0, 1]; *config is none then.
TLDEF tl_result tl_checkpoint_dynamic(tl_env *env, uint64_t layer_count, double memory_fraction,
                                      tl_checkpoint_config *config);

TLDEF tl_checkpoint_config tl_with_checkpoint_attention(tl_checkpoint_config config, int32_t on);
TLDEF tl_checkpoint_config tl_with_checkpoint_ffn(tl_checkpoint_config config, int32_t on);
TLDEF tl_checkpoint_config tl_with_min_interval(tl_checkpoint_config config, uint64_t interval);

// Hold every rule of a config: interval > 0, no duplicate layers, layer_count > 0, fraction in
// [0, 1], flags 0 or 1; and with layer_count > 0 that listed layers are below it and that a
// dynamic config is for that many.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY.
TLDEF tl_result tl_check_checkpoint_config(tl_env *env, const tl_checkpoint_config *config,
                                           uint64_t layer_count);

// Tell whether a layer's result is kept: 1 or 0. Uniform and selective, minimal interval
// included: walking upwards, a layer closer than it to the last kept one is not kept. None keeps
// all (the seed says false there: it makes no checkpoint). For dynamic, ask tl_find_kept_layers.
//
// Cost:    O(1); selective O(listed layers), times the kept ones where the list does not ascend
//          and there is a minimal interval.
TLDEF int tl_keeps_layer(const tl_checkpoint_config *config, uint64_t layer);

// Find the kept layers of a graph.
//
//   kept   [layer_count] overwritten with 1 = kept, 0 = recomputed; layer_count is that of the
//          graph: its highest layer number + 1
//
// Dynamic: exhaustive up to 12 layers. Beyond, every segment of up to 90 layers between two kept
// ones is measured in evenly spaced kept sets, and labels (bytes held, cost) find the best mix of
// segments. Where layers read only the layer below, this has equalled brute force on every graph
// tried; elsewhere it is a heuristic. Every candidate is simulated, so what is returned holds.
//
// Errors:  those of tl_check_graph and tl_check_checkpoint_config; TL_ERROR_INFEASIBLE names the
//          least peak found and the node at which it stands.
// Cost:    dynamic: at most 4096 simulated plans, beyond 12 layers up to three times as many, and
//          5 KiB of memory per layer while it searches.
TLDEF tl_result tl_find_kept_layers(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                    uint8_t *kept, uint64_t layer_count);

// Make the plan that a config stands for, on a graph whose nodes carry layer and unit.
//
//   plan   overwritten; release with tl_free_plan; peaks and costs are filled in
//
// Errors:  as tl_find_kept_layers and tl_plan_kept_set; *plan is all zero then.
TLDEF tl_result tl_plan_checkpoints(tl_env *env, const tl_graph *graph,
                                    const tl_checkpoint_config *config, tl_plan *plan);

// What a config does to a graph, read off its simulated plan.
typedef struct tl_checkpoint_effect {
    uint64_t peak_bytes, keep_all_peak_bytes;
    double   memory_savings_ratio;     // 1 - peak / keep-all peak; below 0 where it needs more
    double   compute_overhead_ratio;   // cost / base cost; 1 = no recomputation
    uint64_t kept_count;               // layers kept
} tl_checkpoint_effect;

//   graph         0 = layer_count equal layers, whose backward costs twice the forward
//   layer_count   with a graph: 0, or that of the graph. No layers at all save nothing, at overhead 1
//
// Errors:  as tl_plan_checkpoints, TL_ERROR_OVERFLOW; *effect is all zero then.
TLDEF tl_result tl_measure_checkpoints(tl_env *env, const tl_graph *graph, uint64_t layer_count,
                                       const tl_checkpoint_config *config, tl_checkpoint_effect *effect);

TLDEF const char *tl_name_checkpoint(tl_checkpoint_kind kind);  // "Uniform"
TLDEF void        tl_free_checkpoint_config(tl_env *env, tl_checkpoint_config *config);
#endif

#ifndef TL_NO_TEXT
TLDEF int tl_parse_step(const char *text, tl_step_kind *kind);
TLDEF int tl_parse_codec(const char *text, tl_codec *codec);

// Write steps as a schedule, one a line: "F 1\nD 1.0\nC 3 q8\n".
TLDEF size_t tl_print_schedule(const tl_plan *plan, char *buf, size_t size);

// Read a schedule, # comments; kinds and forms are checked, the rules are the simulator's.
//
//   plan   overwritten; release with tl_free_plan; peaks and costs are 0
//
// Errors:  TL_ERROR_PARSE with the line, TL_ERROR_NO_MEMORY; *plan is all zero then.
TLDEF tl_result tl_parse_schedule(tl_env *env, const char *text, size_t length, tl_plan *plan);

#ifndef TL_NO_PLANNERS
TLDEF int tl_parse_checkpoint(const char *text, tl_checkpoint_kind *kind);

// Write the config as the seed's summary: "Uniform checkpointing every 2 layers".
TLDEF size_t tl_print_checkpoint_config(const tl_checkpoint_config *config, char *buf, size_t size);

// JSON as serde_json writes the seed's struct, so files of the crate load:
// {"strategy":{"Uniform":{"interval":2}},"checkpoint_attention":true,"checkpoint_ffn":true,
// "min_checkpoint_interval":1}. Reading: any key order, unknown fields ignored; one that is missing
// or comes twice is an error. As in the crate, the rules are left to tl_check_checkpoint_config.
// The config owns its layers: release it with tl_free_checkpoint_config.
//
// Errors:  TL_ERROR_PARSE with line and column, TL_ERROR_NO_MEMORY; *config is all zero then.
TLDEF size_t    tl_print_checkpoint_config_json(const tl_checkpoint_config *config, char *buf, size_t size);
TLDEF tl_result tl_parse_checkpoint_config_json(tl_env *env, const char *text, size_t length,
                                                tl_checkpoint_config *config);
#endif
#endif

// ============================================================================
// [5] REMAT -- recomputation under a byte budget, with a certified distance to the optimum
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
// forwards made again cost least. Three parts share the work:
//
//   exact    A* from the end of the schedule to its start, for small graphs. A state
//            is the set of tensors that the rest of the schedule cannot do without
//   bound    a few backwards are instants that cut every schedule into spans: what lives
//            across each of them fits the budget, what does not is made in the span. The
//            Lagrangian of that is one minimum cut a span; its gap is narrowed by branching
//   search   a schedule is its sequence of calls alone; greedy ones are improved by
//            taking recomputations out and mending the budget with others
//
// Everything is counted in integers and in steps of work, never in time: one desc is
// one plan on every machine.
//
// References: Griewank, Walther, Algorithm 799: Revolve, 2000. Jain et al., Checkmate, 2019,
// arXiv:1910.02653. Beaumont et al., Optimal checkpointing for heterogeneous chains, 2019,
// arXiv:1911.13214. Kirisame et al., Dynamic Tensor Rematerialization, 2020, arXiv:2006.09616.
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
// The class of plans that the bound speaks of: lossless, on one tier, backwards in reverse listing
// order. What nobody needs does not run, so cost may be below base_cost. The same desc gives the
// same plan everywhere, unless progress stops it.
//
// Errors:  those of tl_check_graph; TL_ERROR_INFEASIBLE names the least budget at which a plan was
//          found and the node that it peaks at, and fills in the report; TL_ERROR_INVALID_ARG,
//          TL_ERROR_NO_MEMORY; TL_ERROR_OVERFLOW where bytes do not fit 60 bits or costs of
//          forwards 56, and the graph is not small. *plan is all zero then.
// Cost:    work_limit, beyond it only what a first plan takes: O(calls made x what lives across one).
//          Memory: at most 200 MiB, most of it for graphs of up to 128 tensors.
// Threads: safe with one env per thread.
TLDEF tl_result tl_plan_remat(tl_env *env, const tl_remat_desc *desc, tl_plan *plan, tl_remat_report *report);
#endif

// ============================================================================
// [10] BACKEND -- blocks, ranges, tickets; the CPU backend
//
//     block 1  |####....########|..............|      a block is one allocation;
//               range: offset 8, bytes 8              a range is a part of it
//
//     copy, convert, fill --> submit --> ticket --> poll or wait
//
// A backend is a table of functions and a self pointer. Work on ranges is enqueued;
// work whose ranges overlap happens in the order it was enqueued, anything else in
// any order. A ticket stands for everything up to its submit: nothing is finished
// because a call returned, only because poll or wait on a ticket said so, or because
// `order` put it before what follows, or because `map` gave the host its bytes. The CPU
// finishes at once and a GPU does not; nothing above this section may rely on either.
//
// A backend may be unable to submit and wait, because it records into command buffers of the
// caller: poll, wait and map say TL_NOT_READY then, until the caller has told it more.
//
// The backend counts bytes and calls by itself and never sees a plan.
// ============================================================================

#define TL_TIERS(X) \
    X(TL_TIER_DEVICE, "device", "where kernels read and write")       \
    X(TL_TIER_HOST,   "host",   "where tensors are spilled to")

typedef enum tl_tier { TL_TIERS(TLI_ENUM) TL_TIER_COUNT } tl_tier;

// How the host is going to touch a mapped range.
#define TL_MAP_MODES(X) \
    X(TL_MAP_READ,   "read",   "nothing is written")                                        \
    X(TL_MAP_WRITE,  "write",  "every byte is written: what the host sees before is undefined") \
    X(TL_MAP_CHANGE, "change", "read and written")

typedef enum tl_map_mode { TL_MAP_MODES(TLI_ENUM) TL_MAP_MODE_COUNT } tl_map_mode;

#define TL_UNLIMITED UINT64_MAX  // a budget or a capacity without a limit

typedef struct tl_range {
    uint64_t block;   // handle from add_block; 0 = no memory, bytes is 0 too
    uint64_t offset;  // bytes from the start of the block
    uint64_t bytes;
} tl_range;

typedef struct tl_ticket {
    uint64_t value;   // grows with every submit; 0 = nothing to wait for
} tl_ticket;

// One range that a kernel touches.
typedef struct tl_access {
    tl_range range;
    int32_t  writes;  // 1 = read and written, 0 = read only
} tl_access;

typedef struct tl_backend_limits {
    uint64_t alignment_bytes;    // of every offset; a power of two
    uint64_t granularity_bytes;  // a block takes a multiple of it
    uint64_t range_bytes;        // largest range one call may name
    uint64_t capacity_bytes[TL_TIER_COUNT];  // TL_UNLIMITED = not known
    uint64_t budget_bytes[TL_TIER_COUNT];    // of the capacity, what is free to be used at present
    uint32_t codecs;             // bits 1 << tl_codec that convert can do
    int32_t  host_visible;       // 1 = map costs nothing: host kernels may run on device ranges
    int32_t  in_order;           // 1 = copies and kernels run in the order they were enqueued: what
                                 // comes after a copy needs no ticket of it
} tl_backend_limits;

typedef struct tl_backend_counters {
    uint64_t live_bytes[TL_TIER_COUNT];      // claimed ranges, byte-exact
    uint64_t peak_bytes[TL_TIER_COUNT];      // largest live_bytes since the last reset
    uint64_t reserved_bytes[TL_TIER_COUNT];  // blocks, granularity and guards included
    uint64_t arena_bytes;        // largest aligned end of a range claimed in a device block since then
    uint64_t block_count[TL_TIER_COUNT];     // blocks alive
    uint64_t claim_count[TL_TIER_COUNT];     // ranges claimed and not released
    uint64_t added_count, copy_count, convert_count, fill_count;  // calls since init
    uint64_t submit_count, poll_count, wait_count, map_count;
    uint64_t copied_bytes;       // by copy and convert, source side
} tl_backend_counters;

// Once the device is lost, these stay legal and work: release, free_block, unmap, limits, counters,
// reset_peaks, now_ns, and map for reading in the host tier where all work on the range had passed. All
// others return TL_ERROR_DEVICE_LOST for ever. All are called by one thread at a time.
//
// The bytes between the end of a range and the next multiple of the alignment belong to nobody: work
// on the range may overwrite them.
typedef struct tl_backend {
    void *self;

    // Make a block. TL_ERROR_NO_MEMORY where there is none, even once the work has passed that keeps
    // freed blocks, if the backend can wait for it; *block is 0 then.
    tl_result (*add_block)(void *self, tl_tier tier, uint64_t bytes, uint64_t *block);
    // Free a block; nothing in it may be claimed any more. Work on it may be under way, or not even
    // submitted: the backend keeps the bytes until it has passed. TL_ERROR_CORRUPT where its dead
    // bytes were written: it is freed all the same.
    tl_result (*free_block)(void *self, uint64_t block);

    // Begin and end the life of a range: claimed bytes are counted, their content is undefined. A range
    // may be released while work on it is under way. TL_ERROR_NO_MEMORY beyond the tier's capacity.
    tl_result (*claim)(void *self, tl_range range);
    tl_result (*release)(void *self, tl_range range);

    // Enqueue. Ranges lie in claimed ranges; source and target do not overlap.
    tl_result (*copy)(void *self, tl_range to, tl_range from);         // same bytes
    tl_result (*compress)(void *self, tl_codec codec, tl_range to, tl_range from);  // f32 -> codec
    tl_result (*expand)(void *self, tl_codec codec, tl_range to, tl_range from);    // codec -> f32
    tl_result (*fill)(void *self, tl_range to, uint32_t word);  // words as the host stores them, tail cut

    // Put all enqueued work on these ranges before what the caller does with them next: the CPU
    // finishes it, a GPU records one barrier. Called before every kernel.
    tl_result (*order)(void *self, const tl_access *accesses, int32_t access_count);

    tl_result (*submit)(void *self, tl_ticket *ticket);  // hand over what was enqueued, to be submitted
                                                         // by the caller where the backend cannot
    tl_result (*poll)(void *self, tl_ticket ticket);     // TL_OK or TL_NOT_READY; never blocks
    tl_result (*wait)(void *self, tl_ticket ticket);     // submits what the ticket needs, blocks

    // Give the host a pointer to a range whose work was ordered: waits until that is finished, or
    // returns TL_NOT_READY where the backend cannot wait. After unmap, with the same mode, the pointer
    // is dead and what was written is in the range. Ranges mapped together do not overlap, unless all
    // of them are only read.
    tl_result (*map)(void *self, tl_range range, tl_map_mode mode, void **host);
    tl_result (*unmap)(void *self, tl_range range, tl_map_mode mode, void *host);

    // Verify what can be verified (canaries, poison): TL_ERROR_CORRUPT where bytes changed.
    tl_result (*check)(void *self);

    uint64_t (*now_ns)(void *self);  // a clock that never goes back; 0 = the backend has none
    void     (*limits)(void *self, tl_backend_limits *limits);
    void     (*counters)(void *self, tl_backend_counters *counters);
    void     (*reset_peaks)(void *self);  // peak_bytes = live_bytes, arena_bytes = 0
} tl_backend;

typedef struct tl_cpu_backend_desc {
    void    *memory;              // device tier in one block of the caller; 0 = each block from the env
    uint64_t memory_bytes;        // of that block
    uint64_t capacity_bytes[TL_TIER_COUNT];  // 0 = TL_UNLIMITED; counted with live ranges
    uint64_t alignment_bytes;     // 0 = 64; a power of two
    uint64_t (*now_ns)(void *user);  // 0 = none, every time is 0
    void    *user;
    // For tests, not with TL_NO_CHECKS: checked = 1 poisons dead ranges, guards blocks and hands
    // kernels copies of their ranges, the host poison where it said that it writes every byte; with
    // deferred = 1, work finishes only when polled, waited for or ordered, or when a block does not fit,
    // in any legal order, which seed decides.
    int32_t  checked, deferred;
    uint64_t seed;
} tl_cpu_backend_desc;

// Make the CPU backend. It finishes work at once, unless it is deferred: that variant is for
// tests, a wait that is missing above it shows as wrong bytes. With checked, a kernel gets copies
// of its ranges, so that an address sanitizer sees every stray access; what it wrote to a range
// that it may only read, to a dead range or around a block is TL_ERROR_CORRUPT. TL_NO_CHECKS leaves
// both variants out: asking for one is TL_ERROR_UNSUPPORTED then.
//
//   env       must outlive it, and gets the sentence where one of its functions fails
//   backend   overwritten; release with tl_free_cpu_backend
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_UNSUPPORTED; *backend is all zero
//          then.
// Threads: one backend per thread, or behind the lock of a shared manager.
TLDEF tl_result tl_init_cpu_backend(tl_env *env, const tl_cpu_backend_desc *desc, tl_backend *backend);
TLDEF void      tl_free_cpu_backend(tl_env *env, tl_backend *backend);

TLDEF const char *tl_name_tier(tl_tier tier);          // "device"; "?" out of range
TLDEF const char *tl_name_map_mode(tl_map_mode mode);  // "write"

// Places pieces in memory that it never touches: of a device, of a file, of an arena. A piece has an
// offset and an id; neighbours are joined when they are free.
typedef struct tl_heap tl_heap;

// Make a heap over so many bytes, all free; the env must outlive it.
//
//   bytes       rounded down to the alignment
//   alignment   of every offset and every piece: a power of two; 0 = 1
//   heap        overwritten; release with tl_free_heap
//
// Errors:  TL_ERROR_INVALID_ARG: no byte, or an alignment that is no power of two; TL_ERROR_NO_MEMORY.
//          *heap is NULL then.
// Threads: one heap per thread.
TLDEF tl_result tl_init_heap(tl_env *env, size_t bytes, size_t alignment, tl_heap **heap);
TLDEF void      tl_free_heap(tl_heap *heap);  // accepts NULL

// Take a piece, and give one back. Among free places one of about the size is taken, not always the
// best. An id that stands for no piece is passed over; ids are used again.
//
//   bytes   rounded up to the alignment
//   piece   its id, > 0
//
// Errors:  TL_ERROR_INVALID_ARG: 0 bytes; TL_ERROR_NO_MEMORY: no place is large enough, or no memory for
//          the table of pieces. *offset and *piece are 0 then.
// Cost:    O(1); O(free places of about this size) where hardly any is large enough.
TLDEF tl_result tl_add_piece(tl_heap *heap, size_t bytes, size_t *offset, int32_t *piece);
TLDEF void      tl_free_piece(tl_heap *heap, int32_t piece);

// Report what is free, and the largest piece that can be taken. Either may be NULL.
TLDEF void tl_measure_heap(const tl_heap *heap, size_t *free_bytes, size_t *largest_bytes);

// Convert on the host, as every backend must, bit for bit. f16 and bf16: round to nearest even,
// infinities stay, a NaN stays a quiet NaN. q8: block by block of 32, scale = largest finite
// magnitude / 127 rounded to nearest even, each value the nearest of x 127 / largest (half to
// even); infinities become +-127, NaN is -128; read back, a value is its code x scale rounded to
// nearest even, at most the largest finite number. Pointers need no alignment.
//
//   bytes   of the f32 side; a tail of fewer than 4 bytes is taken as zero-padded
TLDEF void tl_compress_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes);
TLDEF void tl_expand_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes);

#ifndef TL_NO_PLANNERS
// -- what a device can do, measured --

typedef struct tl_measure_device_desc {
    const char *name;          // of the device; borrowed
    uint64_t    bytes;         // of the largest copy; 0 = 64 MiB; halved until the backend has room. Codecs
                               // are timed on a sixteenth
    int32_t     sample_count;  // of each time, whose median counts; 0 = 5; 1 .. 31
    // Run a kernel in this precision, wait until it has passed, and tell how many FLOP it had: as many
    // each time. TL_ERROR_UNSUPPORTED = not in this precision. 0 = where the backend is host-visible, a
    // loop of the library's on one thread, f32 and f64; elsewhere FLOP/s remain unknown.
    tl_result (*compute)(tl_precision precision, uint64_t *flops, void *user);
    void       *user;
} tl_measure_device_desc;

// Measure what [3] and the planners want to know of a device, with the backend's own copies, codecs and
// clock. Each is timed at two sizes, because a call takes latency + bytes / rate: memory counts what is
// read and what is written; of both directions of the link, and of the codecs, the slower one is told.
// Capacities and alignment are those of the limits. What cannot be measured, because there is no clock,
// no room, no host tier or no kernel, stays 0. A precision is supported where FLOP/s were measured, and
// those below f32 only where they are not slower than f32.
//
//   desc     0 = all defaults
//   device   overwritten
//
// Errors:  TL_ERROR_INVALID_ARG; TL_ERROR_UNSUPPORTED: the backend cannot wait; TL_ERROR_KERNEL: compute
//          failed; and those of the backend. *device is all zero then.
// Cost:    three times `bytes` of memory while it runs; the calls are the same each time. The counters
//          and peaks of the backend count them.
// Threads: as the backend.
TLDEF tl_result tl_measure_device(tl_env *env, const tl_backend *backend,
                                  const tl_measure_device_desc *desc, tl_device *device);
#endif

// ============================================================================
// [11] MANAGER -- the store and the online checkpoint manager
//
//     save 1, save 2, save 3 ...   budget full: evict one, by a policy
//
//     device |  2  |  3  |  5  |        evicted means recomputable, spilled to
//     host   |  1  |                    the host tier or compressed, never gone
//
// Two tiers, a budget each. save copies, take returns and removes, peek borrows; save
// evicts until the new checkpoint fits, or refuses. To evict is to compress where that is
// allowed and fits, else to spill where the host has room, else to drop. A refusal, a failed
// allocation, copy or conversion loses nothing that was held, beside what was evicted
// for the new one before it failed. Usage is exact at all times. Keys carry the training
// step: a checkpoint of an earlier step is never mistaken for one of this step, asking for
// it is TL_ERROR_STALE.
//
// Only bytes that go to or come from host memory are waited for; all else is enqueued. Where
// the backend cannot wait, a call that would have to is TL_NOT_READY: what was held is held, and
// is on its way; call again later.
//
// Victims are found in O(1): oldest and least-recent exactly; largest and cost take the
// best of the first of each class, classes being a quarter of a power of two wide in size,
// three quarters in cost per byte. So a victim has at least 4/5 of the most bytes, and at
// most twice the least score; among equal sizes, or equal costs per byte, it is exact.
//
// Reference for eviction by cost: Kirisame et al., Dynamic Tensor Rematerialization, 2021,
// arXiv:2006.09616, section 2.
// ============================================================================

#define TL_RECOMPUTE_POLICIES(X) \
    X(TL_RECOMPUTE_POLICY_ALL,       "all",       "checkpoint every activation")                  \
    X(TL_RECOMPUTE_POLICY_NONE,      "none",      "checkpoint none: recompute everything from the inputs") \
    X(TL_RECOMPUTE_POLICY_SELECTIVE, "selective", "checkpoint where recomputing costs at least a threshold") \
    X(TL_RECOMPUTE_POLICY_EVERY_N,   "every-n",   "checkpoint the nodes whose number is divisible by n")

#define TL_EVICTIONS(X) \
    X(TL_EVICTION_COST,    "cost",    "least cost per byte and staleness")    \
    X(TL_EVICTION_OLDEST,  "oldest",  "saved first")                          \
    X(TL_EVICTION_RECENT,  "least-recent", "used least recently")             \
    X(TL_EVICTION_LARGEST, "largest", "most bytes, of equals the oldest")     \
    X(TL_EVICTION_CALLER,  "caller",  "what the caller's function picks")

typedef enum tl_recompute_policy_kind {
    TL_RECOMPUTE_POLICIES(TLI_ENUM) TL_RECOMPUTE_POLICY_COUNT
} tl_recompute_policy_kind;
typedef enum tl_eviction { TL_EVICTIONS(TLI_ENUM) TL_EVICTION_COUNT } tl_eviction;

typedef struct tl_recompute_policy {
    tl_recompute_policy_kind kind;  // 0 = all
    union {
        struct { uint64_t cost_threshold; } selective;  // in the unit of the costs given; >= it is kept
        struct { uint64_t n; } every_n;                 // > 0
    } as;
} tl_recompute_policy;

TLDEF tl_recompute_policy tl_recompute_policy_all(void);
TLDEF tl_recompute_policy tl_recompute_policy_none(void);
TLDEF tl_recompute_policy tl_recompute_policy_selective(uint64_t cost_threshold);
TLDEF tl_recompute_policy tl_recompute_policy_every_n(uint64_t n);
TLDEF tl_recompute_policy tl_default_recompute_policy(void);  // the seed's: selective 100

// Errors:  TL_ERROR_INVALID_ARG: unknown kind, n = 0.
TLDEF tl_result tl_check_recompute_policy(tl_env *env, const tl_recompute_policy *policy);

// Under which a checkpoint is held.
typedef struct tl_checkpoint_key {
    uint64_t step;         // training step
    int32_t  micro_batch;
    int32_t  node;         // >= 0
    int32_t  output;       // of the node; TL_SAVED = its saved bytes
} tl_checkpoint_key;

#define TL_SAVED (-1)

// One checkpoint, as tl_find_checkpoint shows it and as the caller's eviction function sees it.
typedef struct tl_checkpoint_info {
    tl_checkpoint_key key;
    uint64_t timestamp;    // of the save: grows by one with every save
    uint64_t last_use;     // timestamp of the last save or peek
    uint64_t bytes;        // uncompressed
    uint64_t held_bytes;   // what it takes in its tier now
    uint64_t cost;         // of recomputing it, as given
    int32_t  in_memory;    // 1 = in the device tier
    tl_tier  tier;
    tl_codec codec;        // TL_CODEC_NONE = raw
} tl_checkpoint_info;

// Pick the checkpoint to evict: an index below count, or -1 to refuse. They come oldest first. Called
// under the lock: call nothing of the manager.
typedef int32_t (*tl_evict_fn)(const tl_checkpoint_info *candidates, int32_t count, void *user);

// A lock of the caller: both or neither.
typedef struct tl_lock {
    void (*lock)(void *user);
    void (*unlock)(void *user);
    void  *user;
} tl_lock;

typedef struct tl_manager_desc {
    uint64_t device_budget_bytes;  // 0 = TL_UNLIMITED
    uint64_t host_budget_bytes;    // 0 = no host tier; TL_UNLIMITED
    tl_recompute_policy policy;    // 0 = all
    tl_eviction eviction;          // 0 = cost
    tl_evict_fn evict;             // TL_EVICTION_CALLER only
    void       *user;
    tl_codec    codec;             // evicted checkpoints are compressed where the save allows it; 0 = never
    tl_lock     lock;              // 0 = the built-in spin lock (TL_NO_THREADS: none)
    int32_t     checkpoint_capacity;  // room made at init: no allocation by the manager below it; 0 = grows
} tl_manager_desc;

// Counted since init or the last reset; the bytes are those of now.
typedef struct tl_checkpoint_statistics {
    uint64_t total_checkpoints;        // held now, in any tier
    uint64_t in_memory_checkpoints;    // of these, in the device tier
    uint64_t total_memory_bytes;       // they take in the device tier
    uint64_t memory_budget_bytes;      // TL_UNLIMITED = none
    double   memory_utilization;       // 0..1; 0 without a budget
    uint64_t host_memory_bytes, host_budget_bytes;
    uint64_t peak_bytes;               // most the device tier held
    uint64_t saved, skipped, refused;  // saves that stored, that the policy passed over, that did not fit
    uint64_t hits, misses;             // takes and peeks that found their checkpoint, that did not
    uint64_t evictions;                // = dropped + spills + compressions
    uint64_t dropped, spills, compressions, fetches;
} tl_checkpoint_statistics;

typedef struct tl_manager tl_manager;

// Make a manager over a backend.
//
//   backend   must outlive it; used under the manager's lock only, share it with nobody else
//             while other threads use the manager
//   manager   overwritten; release with tl_free_manager
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY; TL_ERROR_UNSUPPORTED: the backend lacks the codec;
//          *manager is NULL then.
// Threads: the manager may be shared; every call takes the env of its own thread, which gets the
//          error text. The env given here is kept and serves the manager's own tables.
TLDEF tl_result tl_init_manager(tl_env *env, const tl_backend *backend,
                                const tl_manager_desc *desc, tl_manager **manager);
TLDEF void      tl_free_manager(tl_manager *manager);  // accepts NULL; frees what is still held

typedef struct tl_save_desc {
    tl_checkpoint_key key;
    const void *data;      // host bytes to copy, or 0 and ...
    tl_range    source;    // ... a range of the backend
    uint64_t    bytes;     // of data; source has its own
    uint64_t    cost;      // of recomputing it
    int32_t     keep;      // 1 = always saved whatever the policy, never dropped: graph inputs
    int32_t     lossless;  // 1 = never compressed
} tl_save_desc;

// Copy a checkpoint into the store, replacing one of the same key. The old one is held until the new
// one is whole, so both must fit; where they do not, one of the same size is overwritten in place if
// the host does the copy. What is kept is evicted only where dropping all else would not do.
//
// Returns TL_OK, also where the policy passes it over (tl_has_checkpoint tells): one of the same key
// is dropped then, lest it be taken for this one.
// Errors:  TL_ERROR_OVER_BUDGET: it cannot fit even after evicting all that may be evicted;
//          TL_ERROR_STALE: the key's step is below that of the checkpoint it would replace;
//          TL_ERROR_INVALID_ARG: also where the old one is borrowed; TL_ERROR_NO_MEMORY, and those of
//          the backend.
// Cost:    O(1) beside the copy, and the borrowed ones that an eviction steps over; with
//          TL_EVICTION_CALLER O(held) per eviction.
TLDEF tl_result tl_save_checkpoint(tl_env *env, tl_manager *manager, const tl_save_desc *desc);

// Copy a checkpoint out and remove it.
//
//   data, bytes   host memory and its size, exactly that of the checkpoint
//
// Errors:  TL_ERROR_NOT_FOUND: never saved, dropped by an eviction, taken already: recompute it;
//          TL_ERROR_STALE: held for another step; TL_ERROR_INVALID_ARG: wrong size, borrowed; and
//          those of the backend. It stays held then.
TLDEF tl_result tl_take_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                   void *data, uint64_t bytes);

// The same into a range of the backend: enqueued, finished when the ticket is.
//
//   ticket   0 = submit nothing: `order`, or tl_submit_checkpoints, comes later
TLDEF tl_result tl_take_checkpoint_range(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                         tl_range to, tl_ticket *ticket);

// Borrow a checkpoint: it comes back to the device tier if it was spilled or compressed, and is
// not evicted until tl_release_checkpoint. Borrowing nests. After the device was lost, what was spilled
// is read where it is, so that a training can be saved.
//
// Errors:  as tl_take_checkpoint, and TL_ERROR_OVER_BUDGET: no room to bring it back.
TLDEF tl_result tl_peek_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                   const void **data, uint64_t *bytes);
TLDEF tl_result tl_release_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key);

// Ask, drop, look at. Errors: TL_ERROR_NOT_FOUND, TL_ERROR_STALE; TL_ERROR_INVALID_ARG: borrowed.
TLDEF int       tl_has_checkpoint(tl_manager *manager, tl_checkpoint_key key);  // 1 = held, in any tier
TLDEF tl_result tl_drop_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key);
TLDEF tl_result tl_find_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                   tl_checkpoint_info *info);

// Evict until at least `bytes` of the device budget are free. TL_ERROR_OVER_BUDGET, before anything is
// dropped, where that cannot be.
TLDEF tl_result tl_evict_checkpoints(tl_env *env, tl_manager *manager, uint64_t bytes);

// Hand over to the backend what saves, evictions and takes have enqueued. They do not do that by
// themselves, because work on the same bytes is ordered in any case.
//
//   ticket   of all of it; 0 where nothing was ever enqueued
//
// Errors:  those of the backend.
TLDEF tl_result tl_submit_checkpoints(tl_env *env, tl_manager *manager, tl_ticket *ticket);

// Drop everything, borrowed or not, and set the counters to zero.
TLDEF tl_result tl_reset_manager(tl_env *env, tl_manager *manager);

TLDEF uint64_t tl_find_memory_usage(tl_manager *manager);      // bytes in the device tier
TLDEF uint64_t tl_find_checkpoint_count(tl_manager *manager);  // held, in any tier
TLDEF void     tl_measure_manager(tl_manager *manager, tl_checkpoint_statistics *statistics);

TLDEF const char *tl_name_recompute_policy(tl_recompute_policy_kind kind);  // "every-n"
TLDEF const char *tl_name_eviction(tl_eviction eviction);                   // "oldest"
#ifndef TL_NO_TEXT
TLDEF int tl_parse_recompute_policy(const char *text, tl_recompute_policy_kind *kind);
TLDEF int tl_parse_eviction(const char *text, tl_eviction *eviction);
#endif

// ============================================================================
// [12] RUN -- the executor: plans, online runs, layer-by-layer backprop
//
//     tl_plan  -----+
//                   +--> tl_next_step --> ranges claimed, copies enqueued -->
//     budget -------+                     your kernel --> the next step
//     (online)
//
// One executor, two sources of steps: a plan made before, or decisions made one step
// at a time under a byte budget. Activations are really dropped and really made again
// by the caller's forward; gradients are equal to the last bit, because sums are taken
// in the same order whatever was dropped. An online run is recorded as a plan. After
// every pass the run compares the peak counted by the backend, which has not seen the
// plan, with the simulated one, and the bytes in use with those of its inputs and
// results: TL_ERROR_MISMATCH where they differ.
//
// Online, the forward pass keeps what the policy wants and evicts when the budget is
// full; the backward pass recomputes from the nearest resident ancestors and saves
// again on the way at binomial distances (Revolve), so a chain of n costs O(n log n)
// forwards at O(log n) checkpoints, never O(n^2). The decisions follow the simulator alone, so
// tl_init_run tries them out: a budget that is too small is refused before anything runs.
// ============================================================================

typedef struct tl_run tl_run;

// One tensor as a kernel sees it.
typedef struct tl_operand {
    tl_range range;  // where it is; bytes 0 = not there (no gradient wanted, no saved bytes)
    void    *host;   // mapped address on a host-visible backend, else NULL; NULL for 0 bytes
} tl_operand;

// One call of a kernel. Counts are those of the node.
typedef struct tl_kernel_call {
    const tl_graph   *graph;
    int32_t           node;
    tl_step_kind      kind;            // FORWARD, FORWARD_INPLACE, FORWARD_SAVE, BACKWARD
    int32_t           recompute;       // 1 = this forward ran before in this pass
    int32_t           outputs_ready;   // FORWARD_SAVE: 1 = the outputs stand: make saved only
    int32_t           micro_batch;     // from 0
    uint64_t          step;            // training step
    uint64_t          seed;            // the same in all calls of this node in this pass
    tl_precision      precision;       // element size of the buffers
    const tl_operand *inputs;          // [input_count] read only; in place: one is outputs[0]
    const tl_operand *outputs;         // [output_count] written; backward: read only, if needed
    const tl_operand *output_grads;    // [output_count] backward: read only
    const tl_operand *input_grads;     // [input_count] backward: add (+=); bytes 0 = not wanted
    tl_operand        saved;           // FORWARD_SAVE: written; BACKWARD: read only
    tl_operand        scratch;         // fwork or bwork bytes, content undefined
} tl_kernel_call;

// Compute one call. Anything but TL_OK stops the pass with TL_ERROR_KERNEL. A gradient is the
// sum of its contributions in call order: a backward adds to input_grads, which start as zeroes,
// in the order of its inputs, and to the parameter gradients that it owns.
typedef tl_result (*tl_kernel_fn)(const tl_kernel_call *call, void *user);

typedef struct tl_kernel {
    const char  *op;        // nodes of this op
    tl_kernel_fn forward;
    tl_kernel_fn backward;  // 0 = forward only
    void        *user;
} tl_kernel;

// Random state that is not a function of call->seed: called before the first forward of a node
// (RECORD), before a forward of the same pass runs again (REPLAY) and after it (RESUME).
#define TL_RANDOM_MOMENTS(X) \
    X(TL_RANDOM_RECORD, "record", "remember the state under this node")           \
    X(TL_RANDOM_REPLAY, "replay", "put the remembered state in place, keep the present one") \
    X(TL_RANDOM_RESUME, "resume", "put the present state back")

typedef enum tl_random_moment {
    TL_RANDOM_MOMENTS(TLI_ENUM) TL_RANDOM_MOMENT_COUNT
} tl_random_moment;

// One step as it was carried out: what [13] TRACE draws.
typedef struct tl_run_event {
    tl_step  step;
    int32_t  index;         // in the pass, from 0
    int32_t  micro_batch;
    uint64_t training_step;
    int32_t  recompute;     // 1 = a forward that ran before in this pass
    uint64_t start_ns, end_ns;  // of the backend's clock; a WAIT starts where its copy was issued
    uint64_t device_bytes;  // highest live bytes of the backend during the step
    uint64_t host_bytes;    // after it
} tl_run_event;

typedef struct tl_run_desc {
    const tl_graph    *graph;         // must outlive the run
    const tl_backend  *backend;       // must outlive the run; during a pass nobody else claims
    const tl_kernel   *kernels;       // [kernel_count] copied; one for every op but "input"
    int32_t            kernel_count;
    uint32_t           kernel_precisions;  // bits 1 << tl_precision that they compute; 0 = f32 only

    // What to do. A strategy may be left out: then a plan is replayed, else the run is online.
    const tl_strategy *strategy;      // 0 = from the fields below; read during the call
    const tl_plan     *plan;          // must outlive the run; 0 = from what follows, or online
    const tl_checkpoint_config *checkpoints;  // lazy: which plan; read during the call
    const tl_device   *device;        // for simulated times; 0 = copies take none; read in the call
    int32_t            inference;     // 1 = forward only (without a plan or a strategy)
    int32_t            repeat_count;  // micro-batches a training step; 0 = that of the plan, else 1

    // Budgets: base + peak stay within, or the run refuses.
    uint64_t budget_bytes;            // device; 0 = TL_UNLIMITED
    uint64_t host_budget_bytes;       // online: spill evicted tensors there; 0 = do not
    uint64_t base_bytes;              // part of the budget: weights, gradients, optimizer state

    // Online decisions.
    tl_recompute_policy policy;       // 0 = all
    tl_eviction eviction;             // 0 = cost
    tl_evict_fn evict;                // TL_EVICTION_CALLER only; asked by tl_init_run too
    void       *evict_user;
    tl_codec    codec;                // compress evicted f32 tensors: lossy; 0 = never

    // Hooks; 0 = none.
    tl_result (*load)(tl_run *run, int32_t micro_batch, void *user);  // write the inputs
    void       *load_user;
    void      (*random)(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user);
    void       *random_user;
    void      (*observe)(const tl_run_event *event, void *user);  // needs profiling
    void       *observe_user;
    int32_t     profiling;            // 1 = time every step (or the strategy's flag)
    uint64_t    seed;                 // of call->seed
    uint64_t    first_step;           // number of the first training step: a training that goes on
    uint32_t    loss_gradient_word;   // fills the gradient of an output that nobody reads; 0 = 1.0f
} tl_run_desc;

// What the last pass did.
typedef struct tl_run_report {
    uint64_t planned_peak_bytes, measured_peak_bytes;    // equal, or the pass failed
    uint64_t planned_arena_bytes, measured_arena_bytes;  // 0 without offsets
    uint64_t planned_host_peak_bytes, measured_host_peak_bytes;
    uint64_t end_bytes;           // in use after the pass: inputs and results
    uint64_t planned_cost, base_cost;  // simulated, of one pass
    uint64_t compute_ns;          // profiling: time inside kernels
    int32_t  forward_count;       // calls of forward kernels
    int32_t  recompute_count;     // of these, again in the same pass
    int32_t  backward_count;
    int32_t  spill_count, fetch_count, compress_count, expand_count, drop_count;
    int32_t  eviction_count;      // online: tensors that had to go for the budget
    int32_t  step_count;          // steps carried out
    int32_t  limiting_node;       // TL_ERROR_OVER_BUDGET: the node that needs needed_bytes; else -1
    uint64_t needed_bytes;        // least budget under which that step could have gone on
} tl_run_report;

// Prepare a run.
//
//   desc   read during the call, except what it says must outlive the run
//   run    overwritten; release with tl_free_run
//
// Errors:  TL_ERROR_UNSUPPORTED: the strategy holds a value that this version cannot carry out;
//          TL_ERROR_INFEASIBLE: the budget is below the plan's peak, or below what the online
//          decisions can work with; the text names the least budget that works and the node that
//          sets it; TL_ERROR_INVALID_PLAN, TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, and those of
//          the backend. *run is NULL then.
// Cost:    online, the decisions of one pass are tried out; where they fail those of some forty.
// Threads: one run per thread.
TLDEF tl_result tl_init_run(tl_env *env, const tl_run_desc *desc, tl_run **run);
TLDEF void      tl_free_run(tl_run *run);  // accepts NULL

// Write a graph input; read a graph input or, after a pass, a result.
//
//   bytes   exactly those of the tensor
//
// Returns TL_NOT_READY, and does nothing, where work on the tensor is under way and the backend cannot
// wait for it. Any other waits: a pass ends without waiting for its work.
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NOT_FOUND: not resident; and those of the backend.
TLDEF tl_result tl_write_tensor(tl_run *run, tl_tensor tensor, const void *data, uint64_t bytes);
TLDEF tl_result tl_read_tensor(tl_run *run, tl_tensor tensor, void *data, uint64_t bytes);

// Run one training step: repeat_count passes over the plan (or online), each with its load. On a
// backend that is in order a pass is submitted once, at its end, and nothing is waited for.
//
// Errors:  TL_ERROR_KERNEL, TL_ERROR_OVER_BUDGET (online, where the decisions are not those that
//          tl_init_run tried out), TL_ERROR_MISMATCH, TL_NOT_READY: the backend cannot wait for what
//          must be waited for; and those of the backend. Everything but the inputs is released then,
//          and the next call runs the same training step again.
TLDEF tl_result tl_run_plan(tl_run *run);

// -- one step at a time: tl_run_plan is a loop over these --

// One step to carry out. Memory steps are carried out (or enqueued) by tl_next_step itself; for a
// compute step call the kernel, or record it, before the next tl_next_step.
typedef struct tl_run_step {
    tl_step          step;
    int32_t          index;          // in the pass, from 0
    int32_t          is_compute;     // 1 = kernel and call are set
    int32_t          depends_on;     // latest earlier step that it must follow, by range; -1 = none
    const tl_kernel *kernel;
    tl_kernel_call   call;
    const tl_access *accesses;       // [access_count] ranges of the step
    int32_t          access_count;
    tl_ticket        ticket;         // copies: passed when the copy is finished; value 0 = on a backend
                                     // that is in order: what follows comes after the copy
} tl_run_step;

// Begin a pass: drop the results of the last one, reset the peaks.
TLDEF tl_result tl_start_pass(tl_run *run, int32_t micro_batch);

// Yield the next step. done is 1, and step is empty, after the last one: the pass is then
// checked and closed.
//
// Returns TL_NOT_READY, and yields nothing, at a WAIT whose copy is under way (never on a backend that
// is in order), or where the backend can take no submit at present: call again later.
// Errors:  as tl_run_plan.
TLDEF tl_result tl_next_step(tl_run *run, tl_run_step *step, int32_t *done);

// Map the operands of a compute step where the backend is host-visible, call its kernel, unmap.
//
// Returns TL_NOT_READY where the host would have to wait for an operand and the backend cannot: the
// kernel was not called, call again later.
// Errors:  TL_ERROR_STALE: not the step yielded last, or called already; as tl_run_plan, and the
//          pass is given up then.
TLDEF tl_result tl_run_step_kernel(tl_run *run, const tl_run_step *step);

// Give up a pass: everything but the inputs is released. Its training step runs again.
TLDEF tl_result tl_reset_run(tl_run *run);

// Report the last pass; and the plan of a run: the one given or made, or the record of the last
// online pass (before the first: of the one tried out), which lives until the next pass.
TLDEF void tl_measure_run(const tl_run *run, tl_run_report *report);
TLDEF void tl_find_run_plan(const tl_run *run, tl_plan *plan);

// -- layer by layer, for those who have no graph --

// One layer of a chain: it reads the result of the layer before it.
typedef struct tl_layer {
    const char  *name;            // 0 = "layer<i>"
    tl_kernel_fn forward;
    tl_kernel_fn backward;
    void        *user;
    uint64_t     output_bytes;
    uint64_t     saved_bytes, fwork_bytes, bwork_bytes, param_bytes;
    uint64_t     fwd_cost, bwd_cost;  // 0 = 1
    const char  *needs;           // what backward reads: "in", "out", "in,out", "none"; 0 = "in"
    int32_t      keep;            // 1 = its output is a result: tl_read_tensor after the pass
} tl_layer;

// Prepare a run over a chain of layers; desc's graph and kernels are ignored. The graph belongs
// to the run: layer i is node i+1, the input is node 0.
//
// Errors:  as tl_init_run.
TLDEF tl_result tl_init_layer_run(tl_env *env, const tl_run_desc *desc, const tl_layer *layers,
                                  int32_t layer_count, uint64_t input_bytes, tl_run **run);

// The two calls of a pass made by hand, online: forward of layer 0, 1, ..., then backward of the
// last layer down to 0; the first forward starts the pass, the last backward closes it.
//
// Errors:  TL_ERROR_INVALID_ARG: not the layer whose turn it is; and as tl_run_plan.
TLDEF tl_result tl_run_forward(tl_run *run, int32_t layer);
TLDEF tl_result tl_run_backward(tl_run *run, int32_t layer);

// Switch checkpointing of an online run off (keep everything, in both directions) or on, between
// passes. TL_ERROR_INVALID_ARG inside one.
TLDEF tl_result tl_enable_checkpoints(tl_run *run, int32_t on);
TLDEF int       tl_uses_checkpoints(const tl_run *run);

TLDEF const tl_graph *tl_find_run_graph(const tl_run *run);

TLDEF const char *tl_name_random_moment(tl_random_moment moment);  // "replay"; "?" out of range

#ifndef TL_NO_TRACE
// ============================================================================
// [13] TRACE -- what a run did, as a picture and as a trace
//
//     desc.observe = tl_record_event; desc.observe_user = trace;    // [12] RUN
//     tl_write_trace_json(&env, trace, &graph, sink);  // chrome://tracing, ui.perfetto.dev
//     tl_write_memory_svg(&env, curves, count, &style, sink);
//
// A trace keeps the events of a run, up to a capacity, oldest first; both writers stream
// to a sink of the caller and need no memory that grows with the run. Where a sink stops with
// an error, that error is returned and nothing more is written.
// ============================================================================

typedef struct tl_trace tl_trace;

// Make room for the events of a run. The env must outlive the trace.
//
//   capacity   events kept; further ones are counted and dropped
//
// Errors:  TL_ERROR_INVALID_ARG: capacity < 1; TL_ERROR_NO_MEMORY. *trace is NULL then.
TLDEF tl_result tl_init_trace(tl_env *env, int32_t capacity, tl_trace **trace);
TLDEF void      tl_free_trace(tl_trace *trace);   // accepts NULL
TLDEF void      tl_reset_trace(tl_trace *trace);  // empty again

// Keep an event: goes into tl_run_desc.observe with the trace as user.
TLDEF void tl_record_event(const tl_run_event *event, void *trace);

// Tell how many events were kept and how many dropped (both may be NULL); show one of those kept.
TLDEF void                tl_measure_trace(const tl_trace *trace, int32_t *kept, int32_t *dropped);
TLDEF const tl_run_event *tl_find_event(const tl_trace *trace, int32_t index);  // NULL out of range

#ifndef TL_NO_TEXT
// Write the trace as Chrome trace-event JSON: compute and copies as complete events on two
// threads, memory of both tiers as counters; names of nodes from the graph. Times count from the
// earliest start; without a clock each step is drawn 1 us long. A copy is one event, drawn from where
// it was issued, or where the copy before it ended, to its WAIT.
//
// Errors:  what the sink returned; the text tells after how many bytes.
// Cost:    O(events), and for each WAIT the events back to where its copy was issued.
TLDEF tl_result tl_write_trace_json(tl_env *env, const tl_trace *trace, const tl_graph *graph, tl_sink sink);

// One curve of a memory picture: live bytes over the steps of one pass.
typedef struct tl_memory_curve {
    const char     *label;       // "keep all, 12.0 MiB"; 0 = "curve 1", "curve 2", ...
    const uint64_t *live_bytes;  // [count] highest bytes during each step
    const double   *times;       // [count] end of each step, from 0, never falling; 0 = one each
    int32_t         count;       // > 0
} tl_memory_curve;

typedef struct tl_svg_style {
    const char *title;           // 0 = none
    const char *time_label;      // 0 = "step"
    int32_t     width, height;   // 320..16384 x 240..16384 pixels; 0 = 960 x 480
} tl_svg_style;

// Draw memory over time, one step line a curve, with axes, grid, a legend and each curve's peak
// marked; light and dark surroundings are both served. Steps narrower than a pixel are drawn
// together, as high as the highest of them. The picture grows in height where the legend needs it.
//
//   style   may be NULL; texts are UTF-8
//
// Errors:  TL_ERROR_INVALID_ARG: no curve, an empty one, more than 8; times that fall, are not finite
//          or end outside 1e-12 .. 1e18; a size out of range; what the sink returned.
// Cost:    O(points) time, no allocation; 2 pieces of line a pixel at most.
TLDEF tl_result tl_write_memory_svg(tl_env *env, const tl_memory_curve *curves, int32_t curve_count,
                                    const tl_svg_style *style, tl_sink sink);

#ifndef TL_NO_STDIO
// A sink that writes a file beside its place and puts it there only when it is whole:
//
//     if (!tl_init_file_sink(&env, "memory.svg", &file, &sink))
//         result = tl_finish_file_sink(&env, &file, tl_write_memory_svg(&env, curves, 2, NULL, sink));
//
// The part is called PATH.tl_tmp. What lies under /dev/ is written in place: a device stays one.
typedef struct tl_file_sink {
    void *file;        // FILE *
    char  path[480];
} tl_file_sink;

// Open and close it. The file must stay where it is between the two.
//
//   written   what the writer returned: anything but TL_OK discards the part and is returned, unless
//             it was the file that failed
//
// Errors:  TL_ERROR_INVALID_ARG: a path that is empty or longer than 472 bytes, a file that is not
//          open; TL_ERROR_IO with the path and what failed; nothing is left behind then, and the
//          file that was there before is as it was.
TLDEF tl_result tl_init_file_sink(tl_env *env, const char *path, tl_file_sink *file, tl_sink *sink);
TLDEF tl_result tl_finish_file_sink(tl_env *env, tl_file_sink *file, tl_result written);
#endif
#endif
#endif  // TL_NO_TRACE

#undef TLI_ENUM
#undef TLI_ENUM4
#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

// ############################################################################
//                              IMPLEMENTATION
// ############################################################################

#ifdef TL_STRATEGY_IMPLEMENTATION
#ifndef TL_STRATEGY_IMPLEMENTATION_DONE
#define TL_STRATEGY_IMPLEMENTATION_DONE

#if defined(TL_MALLOC) != defined(TL_FREE)
#error "tl_strategy.h: define both TL_MALLOC(user,size) and TL_FREE(user,ptr), or neither"
#endif
#ifndef TL_MALLOC
#include <stdlib.h>
#define TL_MALLOC(user, size) ((void)(user), malloc(size))
#define TL_FREE(user, ptr)    ((void)(user), free(ptr))
#endif
#ifndef TL_ASSERT
#include <assert.h>
#define TL_ASSERT(x) assert(x)
#endif
#if !defined(TL_NO_STDIO) && !defined(TL_NO_TEXT)
#include <stdio.h>
#endif
#ifdef TL_STRATEGY_STATIC
#define TLI_IMPL static inline
#else
#define TLI_IMPL
#endif

// ============================================================================
// [1] CORE (implementation)
// ============================================================================

// -- bytes: the four functions that compilers emit by themselves --

#if defined(__GNUC__) || defined(__clang__)
#define TLI_MEMCPY(to, from, bytes) __builtin_memcpy(to, from, bytes)
#define TLI_MEMSET(to, value, bytes) __builtin_memset(to, value, bytes)
#define TLI_MEMCMP(a, b, bytes) __builtin_memcmp(a, b, bytes)
#else
#include <string.h>
#define TLI_MEMCPY(to, from, bytes) memcpy(to, from, bytes)
#define TLI_MEMSET(to, value, bytes) memset(to, value, bytes)
#define TLI_MEMCMP(a, b, bytes) memcmp(a, b, bytes)
#endif

static void tli_zero(void *to, size_t bytes) { if (bytes) TLI_MEMSET(to, 0, bytes); }

static void tli_copy(void *to, const void *from, size_t bytes) { if (bytes) TLI_MEMCPY(to, from, bytes); }

static size_t tli_text_length(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

static int tli_same_text(const char *a, const char *b) {
    while (*a && *a == *b) { a++; b++; }
    return *a == *b;
}

// -- checked arithmetic: each returns 1 and the value, or 0 where it does not fit --

static int tli_add_u64(uint64_t a, uint64_t b, uint64_t *sum) {
    *sum = a + b;
    return *sum >= a;
}

static int tli_mul_u64(uint64_t a, uint64_t b, uint64_t *product) {
    *product = a * b;
    return !a || *product / a == b;
}

// Whether an enum, a flag or an index is one of `count` values, whatever its width and sign.
static int tli_is_below(int64_t value, int64_t count) { return value >= 0 && value < count; }

// -- names --

#define TLI_NAME(id, name, help) name,        // undefined again at the end
#define TLI_HELP(id, name, help) help,
#define TLI_NAME4(id, name, label, help) name,
#define TLI_LABEL4(id, name, label, help) label,

static const char *const tli_result_names[] = { TL_RESULTS(TLI_NAME) };
static const char *const tli_result_helps[] = { TL_RESULTS(TLI_HELP) };

static const char *tli_name(const char *const *names, int32_t count, int64_t value) {
    return tli_is_below(value, count) ? names[value] : "?";
}

TLI_IMPL int tl_version(void) { return TL_VERSION; }

TLI_IMPL const char *tl_name_result(tl_result result) {
    return tli_name(tli_result_names, TL_RESULT_COUNT, (int64_t)result);
}

TLI_IMPL const char *tl_explain_result(tl_result result) {
    return tli_name(tli_result_helps, TL_RESULT_COUNT, (int64_t)result);
}

// -- writer: counts what it would have written, so printing and sizing are one code path --

typedef struct tli_writer { char *buf; size_t size, length; } tli_writer;

static tli_writer tli_writer_of(char *buf, size_t size) {
    tli_writer w;
    w.buf = buf; w.size = buf ? size : 0; w.length = 0;
    return w;
}

static void tli_put_bytes(tli_writer *w, const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length; i++, w->length++)
        if (w->length + 1 < w->size) w->buf[w->length] = text[i];
}

static void tli_put(tli_writer *w, const char *text) { tli_put_bytes(w, text, tli_text_length(text)); }

static void tli_put_u64(tli_writer *w, uint64_t value) {
    char digits[20];
    size_t at = sizeof digits;
    do { digits[--at] = (char)('0' + value % 10); value /= 10; } while (value);
    tli_put_bytes(w, digits + at, sizeof digits - at);
}

static void tli_put_i64(tli_writer *w, int64_t value) {
    if (value < 0) tli_put(w, "-");
    tli_put_u64(w, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
}

static size_t tli_finish(tli_writer *w) {
    if (w->size) w->buf[w->length < w->size ? w->length : w->size - 1] = 0;
    return w->length;
}

// -- errors: "function: field: rule" --

// Start a sentence that needs numbers: put the rest into w, then return tli_end_error.
static tli_writer tli_begin_error(tl_env *env, tl_result code, const char *function) {
    tli_writer w = tli_writer_of(env ? env->error.text : NULL, env ? sizeof env->error.text : 0);
    if (env) env->error.code = code;
    tli_put(&w, function);
    tli_put(&w, ": ");
    return w;
}

static tl_result tli_end_error(tl_env *env, tli_writer *w, tl_result code) {
    tli_finish(w);
    if (env && env->log) env->log(env->user, env->error.text);
    return code;
}

static tl_result tli_fail(tl_env *env, tl_result code, const char *function, const char *why) {
    tli_writer w = tli_begin_error(env, code, function);
    tli_put(&w, why);
    return tli_end_error(env, &w, code);
}

// -- memory --

static void *tli_alloc(tl_env *env, size_t bytes) {
    return env && env->alloc ? env->alloc(env->user, bytes) : TL_MALLOC(env ? env->user : NULL, bytes);
}

static void tli_release(tl_env *env, void *ptr) {
    if (!ptr) return;
    if (env && env->release) env->release(env->user, ptr);
    else TL_FREE(env ? env->user : NULL, ptr);
}

// An array of zeroes; NULL where there is no memory or the size does not fit. Never NULL for 0 items.
static void *tli_alloc_array(tl_env *env, uint64_t count, size_t item_bytes) {
    uint64_t bytes;
    void *array;
    if (!tli_mul_u64(count ? count : 1, item_bytes, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    array = tli_alloc(env, (size_t)bytes);
    if (array) tli_zero(array, (size_t)bytes);
    return array;
}

// Make room for `needed` items; the array moves, its first `used` items stay, the rest is zero.
static int tli_grow(tl_env *env, void **array, int32_t *capacity, int32_t used, int64_t needed,
                    size_t item_bytes) {
    int64_t wanted = *capacity ? *capacity : 8;
    void *bigger;
    if (needed <= *capacity) return 1;
    if (needed > INT32_MAX) return 0;
    while (wanted < needed) wanted *= 2;
    if (wanted > INT32_MAX) wanted = INT32_MAX;
    bigger = tli_alloc_array(env, (uint64_t)wanted, item_bytes);
    if (!bigger) return 0;
    tli_copy(bigger, *array, (size_t)used * item_bytes);
    tli_release(env, *array);
    *array = bigger;
    *capacity = (int32_t)wanted;
    return 1;
}

// -- for those who write a backend --

TLI_IMPL void *tl_add_memory(tl_env *env, size_t bytes) {
    return bytes ? tli_alloc_array(env, 1, bytes) : NULL;
}

TLI_IMPL void tl_free_memory(tl_env *env, void *memory) { tli_release(env, memory); }

TLI_IMPL tl_result tl_record_error(tl_env *env, tl_result code, const char *function, const char *rule) {
    TL_ASSERT(function && rule);
    return tli_fail(env, code, function, rule);
}

// -- arena: pieces in address order, first fit, neighbours joined when freed --

typedef struct tli_piece {
    size_t bytes;       // of the piece, this head included
    size_t free_bytes;  // 0 = in use
} tli_piece;

typedef struct tli_arena {
    size_t size, used, peak;  // bytes after this head; used and peak count heads of pieces too
    size_t reserved;          // keeps the head a multiple of 16 on 64-bit machines
} tli_arena;

#define TLI_ARENA_ALIGN ((size_t)16)

static size_t tli_round_up(size_t bytes, size_t align) { return (bytes + align - 1) / align * align; }

static size_t tli_piece_head(void) { return tli_round_up(sizeof(tli_piece), TLI_ARENA_ALIGN); }

static char *tli_arena_start(tli_arena *arena) {
    return (char *)arena + tli_round_up(sizeof *arena, TLI_ARENA_ALIGN);
}

static void *tli_arena_alloc(void *user, size_t bytes) {
    tli_arena *arena = (tli_arena *)user;
    size_t head = tli_piece_head(), at, need;
    if (bytes > arena->size) return NULL;
    need = tli_round_up(bytes ? bytes : 1, TLI_ARENA_ALIGN) + head;
    for (at = 0; at < arena->size; at += ((tli_piece *)(void *)(tli_arena_start(arena) + at))->bytes) {
        tli_piece *piece = (tli_piece *)(void *)(tli_arena_start(arena) + at);
        if (!piece->free_bytes || piece->bytes < need) continue;
        if (piece->bytes - need > head) {
            tli_piece *rest = (tli_piece *)(void *)((char *)piece + need);
            rest->bytes = rest->free_bytes = piece->bytes - need;
            piece->bytes = need;
        }
        piece->free_bytes = 0;
        arena->used += piece->bytes;
        if (arena->used > arena->peak) arena->peak = arena->used;
        return (char *)piece + head;
    }
    return NULL;
}

static void tli_arena_release(void *user, void *ptr) {
    tli_arena *arena = (tli_arena *)user;
    tli_piece *freed = (tli_piece *)(void *)((char *)ptr - tli_piece_head()), *last = NULL;
    size_t at = 0;
    arena->used -= freed->bytes;
    freed->free_bytes = freed->bytes;
    while (at < arena->size) {
        tli_piece *piece = (tli_piece *)(void *)(tli_arena_start(arena) + at);
        at += piece->bytes;
        if (last && last->free_bytes && piece->free_bytes) {
            last->bytes += piece->bytes;
            last->free_bytes = last->bytes;
        } else {
            last = piece;
        }
    }
}

TLI_IMPL tl_result tl_init_arena(tl_env *env, void *memory, size_t bytes) {
    size_t shift = (TLI_ARENA_ALIGN - (size_t)((uintptr_t)memory % TLI_ARENA_ALIGN)) % TLI_ARENA_ALIGN;
    size_t head = tli_round_up(sizeof(tli_arena), TLI_ARENA_ALIGN);
    tli_arena *arena;
    tli_piece *all;
    TL_ASSERT(env && memory);
    if (bytes < shift + head + 2 * tli_piece_head())
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_init_arena", "bytes: too few for the bookkeeping");
    arena = (tli_arena *)(void *)((char *)memory + shift);
    arena->size = (bytes - shift - head) / TLI_ARENA_ALIGN * TLI_ARENA_ALIGN;
    arena->used = arena->peak = arena->reserved = 0;
    all = (tli_piece *)(void *)tli_arena_start(arena);
    all->bytes = all->free_bytes = arena->size;
    tli_zero(env, sizeof *env);
    env->alloc = tli_arena_alloc;
    env->release = tli_arena_release;
    env->user = arena;
    return TL_OK;
}

TLI_IMPL void tl_measure_arena(const tl_env *env, size_t *used_bytes, size_t *peak_bytes) {
    const tli_arena *arena = (const tli_arena *)env->user;
    size_t head = tli_round_up(sizeof *arena, TLI_ARENA_ALIGN);
    TL_ASSERT(env->alloc == tli_arena_alloc);
    if (used_bytes) *used_bytes = head + arena->used;
    if (peak_bytes) *peak_bytes = head + arena->peak;
}

// -- random numbers --

TLI_IMPL uint64_t tl_mix_u64(uint64_t a, uint64_t b) {
    uint64_t z = a + (b + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

TLI_IMPL uint64_t tl_next_random(tl_random *random) {
    uint64_t value = tl_mix_u64(random->state, 0);
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    return value;
}

TLI_IMPL double tl_next_random_ratio(tl_random *random) {
    return (double)(tl_next_random(random) >> 11) * (1.0 / 9007199254740992.0);
}

TLI_IMPL uint64_t tl_next_random_below(tl_random *random, uint64_t limit) {
    uint64_t value, uneven;
    if (!limit) return 0;
    uneven = ((uint64_t)0 - limit) % limit;  // 2^64 mod limit: reject the values that would be drawn too often
    do value = tl_next_random(random); while (value < uneven);
    return value % limit;
}

#ifndef TL_NO_TEXT
// -- reader: lines of words, "#" starts a comment --

#define TLI_TEXT_LIMIT ((size_t)1 << 30)  // no text of ours is that long

typedef struct tli_reader {
    const char *at, *end;
    const char *line_end;  // of the current line, comment cut off
    int32_t     line;      // from 1
} tli_reader;

typedef struct tli_word { const char *text; size_t length; } tli_word;

static tli_reader tli_reader_of(const char *text, size_t length) {
    tli_reader r;
    r.at = text; r.end = text + length; r.line_end = text; r.line = 0;
    return r;
}

// Step to the next line, whatever is left of this one; 0 at the end of the text.
static int tli_next_line(tli_reader *r) {
    if (r->line) {
        while (r->at < r->end && *r->at != '\n') r->at++;
        if (r->at < r->end) r->at++;
    }
    if (r->at >= r->end) return 0;
    r->line++;
    r->line_end = r->at;
    while (r->line_end < r->end && *r->line_end != '\n' && *r->line_end != '#') r->line_end++;
    return 1;
}

// The next word of the line; 0 and an empty word where there is none.
static int tli_next_word(tli_reader *r, tli_word *word) {
    while (r->at < r->line_end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
    word->text = r->at;
    while (r->at < r->line_end && *r->at != ' ' && *r->at != '\t' && *r->at != '\r') r->at++;
    word->length = (size_t)(r->at - word->text);
    return word->length > 0;
}

static int tli_word_is(tli_word word, const char *text) {
    return word.length == tli_text_length(text) && TLI_MEMCMP(word.text, text, word.length) == 0;
}

// Cut "key=value" at the "="; 0 where there is none.
static int tli_cut_word(tli_word word, tli_word *key, tli_word *value) {
    size_t i = 0;
    while (i < word.length && word.text[i] != '=') i++;
    key->text = word.text; key->length = i;
    value->text = word.text + i + (i < word.length);
    value->length = word.length - i - (i < word.length);
    return i < word.length;
}

// Exactly digits, and below 2^64.
static int tli_read_u64(tli_word word, uint64_t *value) {
    size_t i;
    *value = 0;
    for (i = 0; i < word.length; i++) {
        uint64_t digit = (uint64_t)(unsigned char)word.text[i] - '0';
        if (digit > 9 || *value > (UINT64_MAX - digit) / 10) return 0;
        *value = *value * 10 + digit;
    }
    return word.length > 0;
}

static int tli_read_i32(tli_word word, int32_t *value) {
    uint64_t wide;
    int ok = tli_read_u64(word, &wide) && wide <= INT32_MAX;
    *value = ok ? (int32_t)wide : 0;
    return ok;
}

static tl_result tli_fail_line(tl_env *env, tl_result code, const char *function, int32_t line,
                               const char *why) {
    tli_writer w = tli_begin_error(env, code, function);
    tli_put(&w, "line "); tli_put_i64(&w, line); tli_put(&w, ": "); tli_put(&w, why);
    return tli_end_error(env, &w, code);
}

// The value with this name in a table; 0 where there is none.
static int tli_parse_name(const char *const *names, int32_t count, const char *text, size_t length,
                          int32_t *value) {
    tli_word word;
    int32_t i;
    word.text = text; word.length = length;
    *value = 0;
    for (i = 0; i < count; i++)
        if (tli_word_is(word, names[i])) { *value = i; return 1; }
    return 0;
}

// -- number text: the grammar of JSON --

static size_t tli_digits_length(const char *text, size_t length) {
    size_t count = 0;
    while (count < length && text[count] >= '0' && text[count] <= '9') count++;
    return count;
}

// How much of the text is a number of JSON; 0 where it does not begin with one.
static size_t tli_number_length(const char *text, size_t length) {
    size_t at = length && text[0] == '-', digits = tli_digits_length(text + at, length - at);
    if (!digits) return 0;
    at += text[at] == '0' ? 1 : digits;
    if (at < length && text[at] == '.') {
        digits = tli_digits_length(text + at + 1, length - at - 1);
        if (!digits) return 0;
        at += 1 + digits;
    }
    if (at < length && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < length && (text[at] == '+' || text[at] == '-');
        digits = tli_digits_length(text + at, length - at);
        if (!digits) return 0;
        at += digits;
    }
    return at;
}

#ifndef TL_NO_PLANNERS  // of all that is read and printed, only checkpoint configs hold fractions
// -- number text: exact integers of any length, so every platform prints and reads the same --

#define TLI_BIG_LIMBS 128  // 4096 bits: 10^1131, the largest power below, needs 3758

typedef struct tli_big {
    int32_t  count;  // limbs in use, lowest first; the last one is not 0
    uint32_t limb[TLI_BIG_LIMBS];
} tli_big;

static void tli_big_set(tli_big *a, uint64_t value) {
    a->limb[0] = (uint32_t)value;
    a->limb[1] = (uint32_t)(value >> 32);
    a->count = a->limb[1] ? 2 : a->limb[0] ? 1 : 0;
}

static void tli_big_scale(tli_big *a, uint32_t factor, uint32_t add) {
    uint64_t carry = add;
    int32_t i;
    for (i = 0; i < a->count; i++) {
        carry += (uint64_t)a->limb[i] * factor;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) a->limb[a->count++] = (uint32_t)carry;
}

static void tli_big_scale10(tli_big *a, int64_t power) {
    for (; power >= 9; power -= 9) tli_big_scale(a, 1000000000u, 0);
    for (; power > 0; power--) tli_big_scale(a, 10, 0);
}

static void tli_big_shift(tli_big *a, int32_t bits) {
    int32_t limbs = bits / 32, i;
    if (!a->count) return;
    if (limbs) {
        for (i = a->count - 1; i >= 0; i--) a->limb[i + limbs] = a->limb[i];
        for (i = 0; i < limbs; i++) a->limb[i] = 0;
        a->count += limbs;
    }
    tli_big_scale(a, (uint32_t)1 << bits % 32, 0);
}

static int32_t tli_big_bits(const tli_big *a) {
    int32_t bits = a->count * 32;
    uint32_t top = a->count ? a->limb[a->count - 1] : 0;
    for (; top && !(top >> 31); top <<= 1) bits--;
    return bits;
}

static int tli_big_compare(const tli_big *a, const tli_big *b) {  // < 0, 0 or > 0
    int32_t i = a->count;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    while (i > 0 && a->limb[i - 1] == b->limb[i - 1]) i--;
    return !i ? 0 : a->limb[i - 1] < b->limb[i - 1] ? -1 : 1;
}

static void tli_big_add(tli_big *a, const tli_big *b) {
    uint64_t carry = 0;
    int32_t i;
    for (i = 0; i < a->count || i < b->count; i++) {
        carry += (uint64_t)(i < a->count ? a->limb[i] : 0) + (i < b->count ? b->limb[i] : 0);
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    a->count = i;
    if (carry) a->limb[a->count++] = (uint32_t)carry;
}

static void tli_big_subtract(tli_big *a, const tli_big *b) {  // a >= b
    uint64_t borrow = 0;
    int32_t i;
    for (i = 0; i < a->count; i++) {
        uint64_t take = (i < b->count ? b->limb[i] : 0) + borrow;
        borrow = a->limb[i] < take;
        a->limb[i] = (uint32_t)(a->limb[i] - take);
    }
    while (a->count && !a->limb[a->count - 1]) a->count--;
}

// A positive double as 0.d1d2d3... x 10^point; the digits come one at a time.
// Steele, White, How to Print Floating-Point Numbers Accurately, PLDI 1990 (dragon4).
typedef struct tli_decimal {
    tli_big rest, unit;  // what is left is rest / unit, below 1
    tli_big low, high;   // how far down and up every number still reads back as this one
    int32_t point;
    int     even;        // 1 = the ends of that range read back as this one too
} tli_decimal;

static uint64_t tli_bits_of_f64(double value) {
    uint64_t bits;
    tli_copy(&bits, &value, sizeof bits);
    return bits;
}

// shortest: 0 = low and high are 0, for a fixed number of digits.
static void tli_open_decimal(tli_decimal *d, double value, int shortest) {
    uint64_t bits = tli_bits_of_f64(value), mantissa = bits & ((UINT64_C(1) << 52) - 1);
    int32_t biased = (int32_t)(bits >> 52 & 0x7ff), exponent = biased ? biased - 1075 : -1074;
    int wide = shortest && !mantissa && biased > 1;  // a power of two: half as far to the one below
    int32_t log2, up;
    int order;
    tli_big sum;
    if (biased) mantissa |= UINT64_C(1) << 52;
    d->even = !(mantissa & 1);
    tli_big_set(&d->rest, mantissa);
    tli_big_set(&d->unit, 1);
    tli_big_set(&d->low, (uint64_t)shortest);
    tli_big_set(&d->high, (uint64_t)shortest);
    log2 = exponent + tli_big_bits(&d->rest) - 1;
    up = exponent > 0 ? exponent : 0;
    tli_big_shift(&d->rest, up + 1 + wide);
    tli_big_shift(&d->unit, up - exponent + 1 + wide);
    tli_big_shift(&d->low, up);
    tli_big_shift(&d->high, up + wide);
    // floor(log2 x log10(2)) is exact over this range, and at most 1 below the true exponent
    d->point = (log2 * 30103 - (log2 < 0 ? 99999 : 0)) / 100000 + 1;
    tli_big_scale10(&d->unit, d->point);
    tli_big_scale10(&d->rest, -d->point);
    tli_big_scale10(&d->low, -d->point);
    tli_big_scale10(&d->high, -d->point);
    sum = d->rest;
    tli_big_add(&sum, &d->high);
    order = tli_big_compare(&sum, &d->unit);
    if (order > 0 || (!order && d->even)) {
        tli_big_scale(&d->unit, 10, 0);
        d->point++;
    }
}

static int tli_next_digit(tli_decimal *d) {
    int digit = 0;
    tli_big_scale(&d->rest, 10, 0);
    for (; tli_big_compare(&d->rest, &d->unit) >= 0; digit++) tli_big_subtract(&d->rest, &d->unit);
    return digit;
}

// Half to even: does what is left after this digit round it up?
static int tli_rounds_up(const tli_decimal *d, int digit) {
    tli_big twice = d->rest;
    int order;
    tli_big_shift(&twice, 1);
    order = tli_big_compare(&twice, &d->unit);
    return order > 0 || (!order && (digit & 1));
}

// The fewest digits that read back the same and, among these, the nearest; at most 17.
static int32_t tli_shortest_digits(double value, char *digits, int32_t *point) {
    tli_decimal d;
    tli_big sum;
    int32_t count = 0;
    int digit, order, down, up;
    tli_open_decimal(&d, value, 1);
    do {
        digit = tli_next_digit(&d);
        tli_big_scale(&d.low, 10, 0);
        tli_big_scale(&d.high, 10, 0);
        order = tli_big_compare(&d.rest, &d.low);
        down = order < 0 || (!order && d.even);
        sum = d.rest;
        tli_big_add(&sum, &d.high);
        order = tli_big_compare(&sum, &d.unit);
        up = order > 0 || (!order && d.even);
        if (up && (!down || tli_rounds_up(&d, digit))) digit++;
        digits[count++] = (char)('0' + digit);
    } while (!down && !up);
    *point = d.point;
    return count;
}

static void tli_put_zeros(tli_writer *w, int32_t count) {
    for (; count > 0; count--) tli_put(w, "0");
}

// The shortest text that reads back as the same double, in the forms of serde_json: 0.5, 1.0, 1e-7,
// 1.5e16. NaN and infinity are the caller's.
static void tli_put_f64(tli_writer *w, double value) {
    char digits[20];
    int32_t count, point, whole;
    if (tli_bits_of_f64(value) >> 63) { tli_put(w, "-"); value = -value; }
    if (!tli_bits_of_f64(value)) { tli_put(w, "0.0"); return; }
    count = tli_shortest_digits(value, digits, &point);
    if (point > 16 || point <= -5) {
        tli_put_bytes(w, digits, 1);
        if (count > 1) { tli_put(w, "."); tli_put_bytes(w, digits + 1, (size_t)(count - 1)); }
        tli_put(w, "e");
        tli_put_i64(w, point - 1);
        return;
    }
    whole = point < 0 ? 0 : point < count ? point : count;
    tli_put_bytes(w, digits, (size_t)whole);
    tli_put_zeros(w, point - count);
    tli_put(w, point <= 0 ? "0." : ".");
    tli_put_zeros(w, -point);
    tli_put_bytes(w, digits + whole, (size_t)(count - whole));
    if (whole == count) tli_put(w, "0");
}

// With 1..99 digits after the point: the exact value rounded half to even, as Rust's {:.1}.
static void tli_put_fixed(tli_writer *w, double value, int32_t decimals) {
    char digits[1 + 309 + 99];  // the first one takes the carry out of the others
    tli_decimal d;
    int32_t count = 0, i, skip;
    digits[count++] = '0';
    if (tli_bits_of_f64(value) >> 63) { tli_put(w, "-"); value = -value; }
    if (tli_bits_of_f64(value)) {
        tli_open_decimal(&d, value, 0);
        while (count <= d.point + decimals) digits[count++] = (char)('0' + tli_next_digit(&d));
        if (d.point + decimals >= 0 && tli_rounds_up(&d, digits[count - 1])) {
            for (i = count - 1; digits[i] == '9'; i--) digits[i] = '0';
            digits[i]++;
        }
    }
    skip = digits[0] == '0' && count > decimals + 1;
    tli_put_zeros(w, count <= decimals);
    if (count > decimals) tli_put_bytes(w, digits + skip, (size_t)(count - decimals - skip));
    tli_put(w, ".");
    tli_put_zeros(w, decimals - count);
    i = count > decimals ? count - decimals : 0;
    tli_put_bytes(w, digits + i, (size_t)(count - i));
}

// The double nearest to above / below, ties to even; infinity where it is too large. Changes both.
static double tli_divide_big(tli_big *above, tli_big *below) {
    int32_t log2 = tli_big_bits(above) - tli_big_bits(below), places;
    uint64_t bits = 0;
    double value;
    int order;
    tli_big_shift(log2 < 0 ? above : below, log2 < 0 ? -log2 : log2);
    if (tli_big_compare(above, below) < 0) { tli_big_shift(above, 1); log2--; }
    // above / below is in [1, 2) now, to be multiplied by 2^log2; a denormal has fewer places
    for (places = log2 < -1022 ? 1075 + log2 : 53; places > 0; places--) {
        bits *= 2;
        if (tli_big_compare(above, below) >= 0) { tli_big_subtract(above, below); bits++; }
        tli_big_shift(above, 1);
    }
    order = places < 0 ? -1 : tli_big_compare(above, below);
    bits += order > 0 || (!order && (bits & 1));
    // the hidden bit, and a carry into it, add 1 to the exponent
    if (log2 >= -1022) bits += (uint64_t)(log2 + 1022) << 52;
    if (bits > UINT64_C(0x7ff) << 52) bits = UINT64_C(0x7ff) << 52;
    tli_copy(&value, &bits, sizeof value);
    return value;
}

// The digits of a JSON number up to its exponent, leading zeros left out: *number x 10^*power.
// Beyond 800 digits only "more than 0" matters: no double and no middle between two has more.
static size_t tli_read_digits(const char *text, size_t length, tli_big *number, int64_t *power,
                              int64_t *count) {
    size_t i;
    int after_point = 0, more = 0;
    *power = *count = 0;
    tli_big_set(number, 0);
    for (i = 0; i < length && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '.') { after_point = 1; continue; }
        *power -= after_point;
        if (!*count && text[i] == '0') continue;
        if (*count < 800) {
            tli_big_scale(number, 10, (uint32_t)(text[i] - '0'));
            ++*count;
        } else {
            ++*power;
            more |= text[i] != '0';
        }
    }
    if (more) { tli_big_scale(number, 10, 1); ++*count; --*power; }
    return i;
}

// Exactly a number of JSON, rounded once; 0 for anything else and where no double is that large.
static int tli_read_f64(tli_word word, double *value) {
    size_t at = word.length && word.text[0] == '-';
    int64_t power, count, exponent = 0;
    int negative = (int)at, down;
    tli_big above, below;
    *value = 0;
    if (!word.length || tli_number_length(word.text, word.length) != word.length) return 0;
    at += tli_read_digits(word.text + at, word.length - at, &above, &power, &count);
    if (at < word.length) {
        down = word.text[++at] == '-';
        for (at += down || word.text[at] == '+'; at < word.length; at++)
            if (exponent < INT64_C(1000000000000)) exponent = exponent * 10 + (word.text[at] - '0');
        power += down ? -exponent : exponent;
    }
    if (count && power + count > 310) return 0;
    if (count && power + count > -330) {
        tli_big_set(&below, 1);
        tli_big_scale10(&above, power);
        tli_big_scale10(&below, -power);
        *value = tli_divide_big(&above, &below);
        if (tli_bits_of_f64(*value) == UINT64_C(0x7ff) << 52) { *value = 0; return 0; }
    }
    if (negative) *value = -*value;
    return 1;
}
#endif  // TL_NO_PLANNERS

// -- JSON: a reader that pulls, strict as RFC 8259; the first error sticks and ends every loop --
//
//     tli_json j = tli_json_open(env, "tl_parse_x", text, length);
//     if (tli_json_enter(&j, '{'))
//         while ((key = tli_json_next_key(&j, keys, 2, &seen)) >= 0)   // unknown keys are skipped
//             if (key == 0) x->count = tli_json_u64(&j);
//             else if (tli_json_enter(&j, '['))
//                 while (tli_json_next(&j, NULL)) sum += tli_json_f64(&j);
//     return tli_json_end(&j);
//
// Where the form depends on what comes, tli_json_peek tells: '{' '[' '"' or the first letter.

#define TLI_JSON_DEPTH 32

typedef struct tli_json {
    tl_env     *env;
    const char *function;
    const char *text, *at, *end;
    uint32_t    objects;  // bit d: the container at depth d is an object
    int32_t     depth;    // containers entered and not ended
    int         fresh;    // 1 = no item of this container was read yet
    tl_result   result;   // the first error
} tli_json;

static tl_result tli_json_fail(tli_json *j, const char *why) {
    uint64_t line = 1, column = 1;
    const char *p;
    tli_writer w;
    if (j->result) return j->result;
    for (p = j->text; p < j->at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    w = tli_begin_error(j->env, TL_ERROR_PARSE, j->function);
    tli_put(&w, "line "); tli_put_u64(&w, line);
    tli_put(&w, ", column "); tli_put_u64(&w, column);
    tli_put(&w, ": "); tli_put(&w, why);
    j->at = j->end;
    (void)tli_end_error(j->env, &w, TL_ERROR_PARSE);
    j->result = TL_ERROR_PARSE;
    return TL_ERROR_PARSE;
}

static tli_json tli_json_open(tl_env *env, const char *function, const char *text, size_t length) {
    tli_json j;
    tli_zero(&j, sizeof j);
    j.env = env;
    j.function = function;
    j.text = j.at = text;
    j.end = text + length;
    if (length > TLI_TEXT_LIMIT) tli_json_fail(&j, "the text is longer than 2^30 bytes");
    return j;
}

// The first character of what comes next; 0 at the end.
static char tli_json_peek(tli_json *j) {
    for (; j->at < j->end; j->at++)
        if (*j->at != ' ' && *j->at != '\t' && *j->at != '\n' && *j->at != '\r') break;
    return j->at < j->end ? *j->at : '\0';
}

// The bytes of the UTF-8 character at the start; 0 where there is none.
static size_t tli_utf8_length(const char *at, const char *end, uint32_t *code) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };  // by length: no longer than needed
    unsigned char first = (unsigned char)*at;
    size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4, i;
    if ((first >= 0x80 && first < 0xc0) || first >= 0xf8 || length > (size_t)(end - at)) return 0;
    *code = length == 1 ? first : first & (0x7fu >> length);
    for (i = 1; i < length; i++) {
        if (((unsigned char)at[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | ((unsigned char)at[i] & 0x3fu);
    }
    if (*code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff)) return 0;
    return length;
}

static size_t tli_json_hex(const char *at, const char *end, uint32_t *code) {
    size_t i;
    *code = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return 0;
    for (i = 2; i < 6; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return 0;
        *code = *code << 4 | (uint32_t)digit;
    }
    return 6;
}

// The bytes of the character of a string at the start, escaped or not; 0 where it is not one.
static size_t tli_json_character(const char *at, const char *end, uint32_t *code) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint32_t low;
    size_t i;
    if ((unsigned char)*at < 0x20) return 0;
    if (*at != '\\') return tli_utf8_length(at, end, code);
    for (i = 0; letters[i] && end - at > 1; i++)
        if (at[1] == letters[i]) { *code = (unsigned char)meant[i]; return 2; }
    if (!tli_json_hex(at, end, code)) return 0;
    if (*code < 0xd800 || *code > 0xdfff) return 6;
    if (*code > 0xdbff || !tli_json_hex(at + 6, end, &low)) return 0;
    if (low < 0xdc00 || low > 0xdfff) return 0;
    *code = 0x10000 + ((*code & 0x3ff) << 10 | (low & 0x3ff));
    return 12;
}

// What stands between the quotes, checked and not yet unescaped: compare it with tli_json_is.
static int tli_json_string(tli_json *j, tli_word *raw) {
    uint32_t code;
    size_t length = 1;
    raw->text = j->at;
    raw->length = 0;
    if (tli_json_peek(j) != '"') return !tli_json_fail(j, "expected a string");
    for (raw->text = ++j->at; j->at < j->end && *j->at != '"' && length; j->at += length)
        length = tli_json_character(j->at, j->end, &code);
    if (!length) return !tli_json_fail(j, "a string may not hold this");
    if (j->at == j->end) return !tli_json_fail(j, "the string does not end");
    raw->length = (size_t)(j->at++ - raw->text);
    return 1;
}

static int tli_json_is(tli_word raw, const char *name) {
    const char *at = raw.text, *end = raw.text + raw.length;
    uint32_t code = 0;
    for (; at < end && *name; name++) {
        at += tli_json_character(at, end, &code);
        if (code != (unsigned char)*name) return 0;
    }
    return at == end && !*name;
}

static int32_t tli_json_find(tli_word raw, const char *const *names, int32_t count) {
    int32_t i = 0;
    while (i < count && !tli_json_is(raw, names[i])) i++;
    return i < count ? i : -1;
}

// Go into the object or array that comes next; open is '{' or '['.
static int tli_json_enter(tli_json *j, char open) {
    uint32_t bit;
    if (tli_json_peek(j) != open)
        return !tli_json_fail(j, open == '{' ? "expected an object" : "expected an array");
    if (j->depth == TLI_JSON_DEPTH) return !tli_json_fail(j, "nested deeper than 32 levels");
    bit = (uint32_t)1 << j->depth++;
    j->objects = open == '{' ? j->objects | bit : j->objects & ~bit;
    j->fresh = 1;
    j->at++;
    return 1;
}

// Step to the next item of this container, whose value has to be read then. 0 after the last one:
// the container is left. In an object *raw is the key; in an array raw is not used.
static int tli_json_next(tli_json *j, tli_word *raw) {
    int object = j->depth && (j->objects >> (j->depth - 1) & 1), fresh = j->fresh;
    char c;
    if (j->result) return 0;
    c = tli_json_peek(j);
    j->fresh = 0;
    if (c == (object ? '}' : ']')) {
        j->at++;
        j->depth--;
        return 0;
    }
    if (!fresh) {
        if (c != ',') return !tli_json_fail(j, object ? "expected , or }" : "expected , or ]");
        j->at++;
    }
    if (!object) return 1;
    if (!tli_json_string(j, raw)) return 0;
    if (tli_json_peek(j) != ':') return !tli_json_fail(j, "expected :");
    j->at++;
    return 1;
}

static int tli_json_literal(tli_json *j, const char *text) {
    size_t length = tli_text_length(text);
    if ((size_t)(j->end - j->at) < length || TLI_MEMCMP(j->at, text, length) != 0) return 0;
    j->at += length;
    return 1;
}

static int tli_json_number(tli_json *j, tli_word *word) {
    tli_json_peek(j);
    word->text = j->at;
    word->length = tli_number_length(j->at, (size_t)(j->end - j->at));
    if (!word->length) return !tli_json_fail(j, "expected a number");
    j->at += word->length;
    return 1;
}

// Read a value of any kind and forget it. Not recursive: j counts the containers.
static void tli_json_skip(tli_json *j) {
    int32_t depth = j->depth;
    tli_word word;
    do {
        char c = tli_json_peek(j);
        if (c == '{' || c == '[') tli_json_enter(j, c);
        else if (c == '"') tli_json_string(j, &word);
        else if (c == '-' || (c >= '0' && c <= '9')) tli_json_number(j, &word);
        else if (!tli_json_literal(j, c == 't' ? "true" : c == 'f' ? "false" : "null"))
            tli_json_fail(j, "expected a value");
        while (j->depth > depth && !tli_json_next(j, &word))
            if (j->result) return;
    } while (j->depth > depth && !j->result);
}

// The index of the next key of this object among names, each at most once; keys of other names are
// skipped with their values. -1 at the end of the object. *seen: bit i = names[i] came; 0 to begin.
static int32_t tli_json_next_key(tli_json *j, const char *const *names, int32_t count,
                                 uint32_t *seen) {
    tli_word raw;
    tli_zero(&raw, sizeof raw);
    while (tli_json_next(j, &raw)) {
        int32_t key = tli_json_find(raw, names, count);
        if (key < 0) { tli_json_skip(j); continue; }
        if (*seen >> key & 1) {
            j->at = raw.text;
            tli_json_fail(j, "this key comes twice");
            return -1;
        }
        *seen |= (uint32_t)1 << key;
        return key;
    }
    return -1;
}

// Values: 0 on an error.
static int tli_json_bool(tli_json *j) {
    int on;
    tli_json_peek(j);
    on = tli_json_literal(j, "true");
    if (!on && !tli_json_literal(j, "false")) tli_json_fail(j, "expected true or false");
    return on;
}

static uint64_t tli_json_u64(tli_json *j) {
    tli_word word;
    uint64_t value;
    if (!tli_json_number(j, &word)) return 0;
    if (tli_read_u64(word, &value)) return value;
    j->at = word.text;
    tli_json_fail(j, "expected a whole number from 0 to 2^64 - 1");
    return 0;
}

#ifndef TL_NO_PLANNERS
static double tli_json_f64(tli_json *j) {
    tli_word word;
    double value;
    if (!tli_json_number(j, &word)) return 0;
    if (tli_read_f64(word, &value)) return value;
    j->at = word.text;
    tli_json_fail(j, "the number is too large");
    return 0;
}
#endif

static int32_t tli_json_name(tli_json *j, const char *const *names, int32_t count) {
    tli_word raw;
    int32_t value;
    if (!tli_json_string(j, &raw)) return 0;
    value = tli_json_find(raw, names, count);
    if (value >= 0) return value;
    j->at = raw.text;
    tli_json_fail(j, "unknown name");
    return 0;
}

// The result of the whole: nothing but white space may follow.
static tl_result tli_json_end(tli_json *j) {
    tli_json_peek(j);
    return j->at < j->end ? tli_json_fail(j, "text after the value") : j->result;
}

// Write a text in quotes. What is not UTF-8 becomes U+FFFD, so that the result is always JSON.
static void tli_put_json_text(tli_writer *w, const char *text) {
    static const char hex[] = "0123456789abcdef";
    const char *end = text + tli_text_length(text);
    uint32_t code = 0;
    tli_put(w, "\"");
    while (text < end) {
        size_t length = tli_utf8_length(text, end, &code);
        if (!length) {
            tli_put(w, "\\ufffd");
        } else if (code < 0x20) {
            tli_put(w, "\\u00");
            tli_put_bytes(w, hex + (code >> 4), 1);
            tli_put_bytes(w, hex + (code & 15), 1);
        } else {
            if (code == '"' || code == '\\') tli_put(w, "\\");
            tli_put_bytes(w, text, length);
        }
        text += length ? length : 1;
    }
    tli_put(w, "\"");
}
#endif  // TL_NO_TEXT

// ============================================================================
// [2] STRATEGY (implementation)
// ============================================================================

static const char *const tli_mode_names[] = { TL_MODES(TLI_NAME4) };
static const char *const tli_precision_names[] = { TL_PRECISIONS(TLI_NAME4) };
static const char *const tli_memory_names[] = { TL_MEMORIES(TLI_NAME4) };
static const char *const tli_parallelism_names[] = { TL_PARALLELISMS(TLI_NAME4) };

TLI_IMPL const char *tl_name_mode(tl_mode mode) {
    return tli_name(tli_mode_names, TL_MODE_COUNT, (int64_t)mode);
}

TLI_IMPL const char *tl_name_precision(tl_precision precision) {
    return tli_name(tli_precision_names, TL_PRECISION_COUNT, (int64_t)precision);
}

TLI_IMPL const char *tl_name_memory(tl_memory memory) {
    return tli_name(tli_memory_names, TL_MEMORY_COUNT, (int64_t)memory);
}

TLI_IMPL const char *tl_name_parallelism(tl_parallelism_kind kind) {
    return tli_name(tli_parallelism_names, TL_PARALLELISM_COUNT, (int64_t)kind);
}

// -- variants --

TLI_IMPL tl_gradient tl_gradient_none(void) {
    tl_gradient gradient;
    tli_zero(&gradient, sizeof gradient);
    return gradient;
}

TLI_IMPL tl_gradient tl_gradient_full(void) {
    tl_gradient gradient = tl_gradient_none();
    gradient.computes = 1;
    return gradient;
}

TLI_IMPL tl_gradient tl_gradient_checkpointed(uint64_t interval) {
    tl_gradient gradient = tl_gradient_full();
    gradient.checkpointed = 1;
    gradient.checkpoint_interval = interval;
    return gradient;
}

TLI_IMPL tl_gradient tl_gradient_accumulated(uint64_t steps) {
    tl_gradient gradient = tl_gradient_full();
    gradient.accumulation_steps = steps;
    return gradient;
}

// The number behind a kind; NULL where the kind has none.
static uint64_t *tli_parallelism_number(tl_parallelism *parallelism) {
    switch (parallelism->kind) {
        case TL_PARALLELISM_DATA:     return &parallelism->as.data.worker_count;
        case TL_PARALLELISM_MODEL:    return &parallelism->as.model.device_count;
        case TL_PARALLELISM_PIPELINE: return &parallelism->as.pipeline.stage_count;
        case TL_PARALLELISM_NONE: case TL_PARALLELISM_AUTOMATIC: case TL_PARALLELISM_COUNT: break;
    }
    return NULL;
}

static tl_parallelism tli_parallelism(tl_parallelism_kind kind, uint64_t number) {
    tl_parallelism parallelism;
    tli_zero(&parallelism, sizeof parallelism);
    parallelism.kind = kind;
    if (tli_parallelism_number(&parallelism)) *tli_parallelism_number(&parallelism) = number;
    return parallelism;
}

TLI_IMPL tl_parallelism tl_parallelism_none(void) {
    return tli_parallelism(TL_PARALLELISM_NONE, 0);
}

TLI_IMPL tl_parallelism tl_parallelism_data(uint64_t worker_count) {
    return tli_parallelism(TL_PARALLELISM_DATA, worker_count);
}

TLI_IMPL tl_parallelism tl_parallelism_model(uint64_t device_count) {
    return tli_parallelism(TL_PARALLELISM_MODEL, device_count);
}

TLI_IMPL tl_parallelism tl_parallelism_pipeline(uint64_t stage_count) {
    return tli_parallelism(TL_PARALLELISM_PIPELINE, stage_count);
}

TLI_IMPL tl_parallelism tl_parallelism_automatic(void) {
    return tli_parallelism(TL_PARALLELISM_AUTOMATIC, 0);
}

// -- presets --

TLI_IMPL tl_strategy tl_strategy_new(void) {
    tl_strategy strategy;
    tli_zero(&strategy, sizeof strategy);
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_training(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = TL_MODE_LAZY;
    strategy.gradient = tl_gradient_full();
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.memory = TL_MEMORY_POOLED;
    strategy.parallelism = tl_parallelism_automatic();
    strategy.enable_fusion = 1;
    strategy.enable_profiling = 1;
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_inference(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.memory = TL_MEMORY_CACHED;
    strategy.parallelism = tl_parallelism_automatic();
    strategy.enable_fusion = 1;
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_memory_efficient(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = TL_MODE_HYBRID;
    strategy.gradient = tl_gradient_checkpointed(10);
    strategy.precision = TL_PRECISION_MIXED;
    strategy.memory = TL_MEMORY_MINIMAL_PEAK;
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_high_throughput(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = TL_MODE_LAZY;
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.memory = TL_MEMORY_POOLED;
    strategy.parallelism = tl_parallelism_data(4);
    strategy.enable_fusion = 1;
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_debug(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.gradient = tl_gradient_full();
    strategy.enable_profiling = 1;
    return strategy;
}

// -- builders --

TLI_IMPL tl_strategy tl_with_mode(tl_strategy strategy, tl_mode mode) {
    strategy.mode = mode;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_gradient(tl_strategy strategy, tl_gradient gradient) {
    strategy.gradient = gradient;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_precision(tl_strategy strategy, tl_precision precision) {
    strategy.precision = precision;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_memory(tl_strategy strategy, tl_memory memory) {
    strategy.memory = memory;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_parallelism(tl_strategy strategy, tl_parallelism parallelism) {
    strategy.parallelism = parallelism;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_fusion(tl_strategy strategy, int32_t on) {
    strategy.enable_fusion = on != 0;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_profiling(tl_strategy strategy, int32_t on) {
    strategy.enable_profiling = on != 0;
    return strategy;
}

// -- predicates --

TLI_IMPL int tl_computes_gradients(const tl_strategy *strategy) {
    TL_ASSERT(strategy);
    return strategy->gradient.computes != 0;
}

TLI_IMPL int tl_uses_checkpointing(const tl_strategy *strategy) {
    TL_ASSERT(strategy);
    return strategy->gradient.checkpointed != 0;
}

TLI_IMPL int tl_is_inference_mode(const tl_strategy *strategy) {
    return !tl_computes_gradients(strategy);
}

TLI_IMPL int tl_find_checkpoint_interval(const tl_strategy *strategy, uint64_t *interval) {
    TL_ASSERT(strategy && interval);
    *interval = strategy->gradient.checkpointed ? strategy->gradient.checkpoint_interval : 0;
    return strategy->gradient.checkpointed != 0;
}

TLI_IMPL int tl_find_accumulation_steps(const tl_strategy *strategy, uint64_t *steps) {
    TL_ASSERT(strategy && steps);
    *steps = strategy->gradient.accumulation_steps;
    return *steps > 0;
}

// The number behind the kind of parallelism; 0 where it has none.
static uint64_t tli_parallelism_count(const tl_parallelism *parallelism) {
    tl_parallelism copy = *parallelism;
    const uint64_t *number = tli_parallelism_number(&copy);
    return number ? *number : 0;
}

TLI_IMPL int tl_equals_strategy(const tl_strategy *a, const tl_strategy *b) {
    TL_ASSERT(a && b);
    return a->mode == b->mode && a->precision == b->precision && a->memory == b->memory
        && a->gradient.computes == b->gradient.computes
        && a->gradient.checkpointed == b->gradient.checkpointed
        && a->gradient.checkpoint_interval == b->gradient.checkpoint_interval
        && a->gradient.accumulation_steps == b->gradient.accumulation_steps
        && a->parallelism.kind == b->parallelism.kind
        && tli_parallelism_count(&a->parallelism) == tli_parallelism_count(&b->parallelism)
        && a->enable_fusion == b->enable_fusion && a->enable_profiling == b->enable_profiling;
}

TLI_IMPL uint64_t tl_find_worker_count(const tl_strategy *strategy, uint64_t device_worker_count) {
    uint64_t count;
    TL_ASSERT(strategy);
    count = tli_parallelism_count(&strategy->parallelism);
    if (strategy->parallelism.kind == TL_PARALLELISM_AUTOMATIC)
        count = device_worker_count < 8 ? device_worker_count : 8;
    return count ? count : 1;
}

// -- rules --

// The first rule that is broken; NULL where all hold.
static const char *tli_strategy_rule(const tl_strategy *s) {
    const tl_gradient *g = &s->gradient;
    uint64_t count = tli_parallelism_count(&s->parallelism);
    if (!tli_is_below((int64_t)s->mode, TL_MODE_COUNT)) return "mode: unknown value";
    if (!tli_is_below(g->computes, 2)) return "gradient.computes: must be 0 or 1";
    if (!tli_is_below(g->checkpointed, 2)) return "gradient.checkpointed: must be 0 or 1";
    if (g->checkpointed && !g->computes)
        return "gradient.checkpointed: needs gradients to be computed";
    if (g->checkpoint_interval && !g->checkpointed)
        return "gradient.checkpoint_interval: needs checkpointed to be 1";
    if (g->accumulation_steps && !g->computes)
        return "gradient.accumulation_steps: needs gradients to be computed";
    if (!tli_is_below((int64_t)s->precision, TL_PRECISION_COUNT)) return "precision: unknown value";
    if (!tli_is_below((int64_t)s->memory, TL_MEMORY_COUNT)) return "memory: unknown value";
    switch (s->parallelism.kind) {
        case TL_PARALLELISM_DATA:
            if (!count) return "parallelism: worker_count must be > 0";
            break;
        case TL_PARALLELISM_MODEL:
            if (!count) return "parallelism: device_count must be > 0";
            break;
        case TL_PARALLELISM_PIPELINE:
            if (!count) return "parallelism: stage_count must be > 0";
            break;
        case TL_PARALLELISM_NONE: case TL_PARALLELISM_AUTOMATIC: case TL_PARALLELISM_COUNT: break;
    }
    if (!tli_is_below((int64_t)s->parallelism.kind, TL_PARALLELISM_COUNT))
        return "parallelism: unknown kind";
    if (!tli_is_below(s->enable_fusion, 2)) return "enable_fusion: must be 0 or 1";
    if (!tli_is_below(s->enable_profiling, 2)) return "enable_profiling: must be 0 or 1";
    return NULL;
}

TLI_IMPL tl_result tl_check_strategy(tl_env *env, const tl_strategy *strategy) {
    const char *rule;
    TL_ASSERT(strategy);
    rule = tli_strategy_rule(strategy);
    return rule ? tli_fail(env, TL_ERROR_INVALID_ARG, "tl_check_strategy", rule) : TL_OK;
}

// -- rules of thumb --

TLI_IMPL tl_result tl_recommend_quick(tl_env *env, uint64_t batch_size, uint64_t model_mib,
                                      uint64_t available_mib, int training, tl_strategy *strategy) {
    uint64_t product, limit;
    TL_ASSERT(strategy);
    *strategy = tl_strategy_new();
    if (!batch_size || !model_mib || !available_mib)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_recommend_quick",
                        !batch_size ? "batch_size: must be > 0"
                        : !model_mib ? "model_mib: must be > 0" : "available_mib: must be > 0");
    if (!tli_mul_u64(batch_size, model_mib, &product))
        return tli_fail(env, TL_ERROR_OVERFLOW, "tl_recommend_quick",
                        "model_mib: times batch_size exceeds 64 bits");
    if (!training) {
        *strategy = batch_size >= 32 ? tl_strategy_high_throughput() : tl_strategy_inference();
        return TL_OK;
    }
    *strategy = tl_strategy_training();
    limit = available_mib - available_mib / 5 - (available_mib % 5 > 0);  // 4/5 of it, rounded down
    if (product > limit) strategy->gradient = tl_gradient_checkpointed(5);
    else if (batch_size >= 64) strategy->gradient = tl_gradient_accumulated(4);
    return TL_OK;
}

static double tli_mode_factor(tl_mode mode) {
    switch (mode) {
        case TL_MODE_LAZY:   return 1.2;
        case TL_MODE_HYBRID: return 1.1;
        case TL_MODE_EAGER: case TL_MODE_COUNT: break;
    }
    return 1.0;
}

static double tli_memory_factor(tl_memory memory) {
    switch (memory) {
        case TL_MEMORY_POOLED:       return 1.1;
        case TL_MEMORY_CACHED:       return 1.3;
        case TL_MEMORY_MINIMAL_PEAK: return 0.8;
        case TL_MEMORY_STANDARD: case TL_MEMORY_COUNT: break;
    }
    return 1.0;
}

TLI_IMPL double tl_estimate_overhead_quick(const tl_strategy *strategy) {
    double gradient = 1.0;
    TL_ASSERT(strategy);
    if (strategy->gradient.computes) {
        gradient = strategy->gradient.checkpointed ? 2.0 : 3.0;
        if (strategy->gradient.accumulation_steps) gradient += 0.5;
    }
    return tli_mode_factor(strategy->mode) * gradient * tli_memory_factor(strategy->memory);
}

#ifndef TL_NO_TEXT
// -- names, read --

TLI_IMPL int tl_parse_mode(const char *text, tl_mode *mode) {
    int32_t value;
    int known;
    TL_ASSERT(text && mode);
    known = tli_parse_name(tli_mode_names, TL_MODE_COUNT, text,
                           tli_text_length(text), &value);
    *mode = (tl_mode)value;
    return known;
}

TLI_IMPL int tl_parse_precision(const char *text, tl_precision *precision) {
    int32_t value;
    int known;
    TL_ASSERT(text && precision);
    known = tli_parse_name(tli_precision_names, TL_PRECISION_COUNT, text,
                           tli_text_length(text), &value);
    *precision = (tl_precision)value;
    return known;
}

TLI_IMPL int tl_parse_memory(const char *text, tl_memory *memory) {
    int32_t value;
    int known;
    TL_ASSERT(text && memory);
    known = tli_parse_name(tli_memory_names, TL_MEMORY_COUNT, text,
                           tli_text_length(text), &value);
    *memory = (tl_memory)value;
    return known;
}

TLI_IMPL int tl_parse_parallelism(const char *text, tl_parallelism_kind *kind) {
    int32_t value;
    int known;
    TL_ASSERT(text && kind);
    known = tli_parse_name(tli_parallelism_names, TL_PARALLELISM_COUNT, text,
                           tli_text_length(text), &value);
    *kind = (tl_parallelism_kind)value;
    return known;
}

// -- the seed's summary --

static const char *const tli_mode_labels[] = { TL_MODES(TLI_LABEL4) };
static const char *const tli_precision_labels[] = { TL_PRECISIONS(TLI_LABEL4) };
static const char *const tli_memory_labels[] = { TL_MEMORIES(TLI_LABEL4) };
static const char *const tli_parallelism_labels[] = { TL_PARALLELISMS(TLI_LABEL4) };
static const char *const tli_number_labels[TL_PARALLELISM_COUNT] = {
    "", "num_workers:", "num_devices:", "num_stages:", ""
};
static const char *const tli_switch_labels[] = { "false", "true" };

static int tli_has_number(tl_parallelism_kind kind) {
    tl_parallelism parallelism = tli_parallelism(kind, 0);
    return tli_parallelism_number(&parallelism) != NULL;
}

static void tli_put_gradient(tli_writer *w, const tl_gradient *gradient) {
    int accumulates = gradient->accumulation_steps > 0;
    if (!gradient->computes) { tli_put(w, "None"); return; }
    if (!gradient->checkpointed && !accumulates) { tli_put(w, "Full"); return; }
    tli_put(w, gradient->checkpointed ? "Checkpointed { " : "Accumulated { ");
    if (gradient->checkpointed) {
        tli_put(w, "checkpoint_interval: ");
        tli_put_u64(w, gradient->checkpoint_interval);
        if (accumulates) tli_put(w, ", ");
    }
    if (accumulates) {
        tli_put(w, "accumulation_steps: ");
        tli_put_u64(w, gradient->accumulation_steps);
    }
    tli_put(w, " }");
}

TLI_IMPL size_t tl_print_strategy(const tl_strategy *strategy, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    tl_parallelism_kind kind;
    TL_ASSERT(strategy);
    kind = strategy->parallelism.kind;
    tli_put(&w, "Execution Strategy:\n- Mode: ");
    tli_put(&w, tli_name(tli_mode_labels, TL_MODE_COUNT, (int64_t)strategy->mode));
    tli_put(&w, "\n- Gradient: ");
    tli_put_gradient(&w, &strategy->gradient);
    tli_put(&w, "\n- Precision: ");
    tli_put(&w, tli_name(tli_precision_labels, TL_PRECISION_COUNT, (int64_t)strategy->precision));
    tli_put(&w, "\n- Memory: ");
    tli_put(&w, tli_name(tli_memory_labels, TL_MEMORY_COUNT, (int64_t)strategy->memory));
    tli_put(&w, "\n- Parallelism: ");
    tli_put(&w, tli_name(tli_parallelism_labels, TL_PARALLELISM_COUNT, (int64_t)kind));
    if (tli_has_number(kind)) {
        tli_put(&w, " { ");
        tli_put(&w, tli_number_labels[kind]);
        tli_put(&w, " ");
        tli_put_u64(&w, tli_parallelism_count(&strategy->parallelism));
        tli_put(&w, " }");
    }
    tli_put(&w, "\n- Fusion: ");
    tli_put(&w, tli_switch_labels[strategy->enable_fusion != 0]);
    tli_put(&w, "\n- Profiling: ");
    tli_put(&w, tli_switch_labels[strategy->enable_profiling != 0]);
    return tli_finish(&w);
}

// The next line has to begin with "- Mode:", say; the value is its next word.
static int tli_read_label(tli_reader *r, const char *label, tli_word *value) {
    tli_word dash, name;
    return tli_next_line(r) && tli_next_word(r, &dash) && tli_word_is(dash, "-")
        && tli_next_word(r, &name) && tli_word_is(name, label) && tli_next_word(r, value);
}

static int tli_ends_line(tli_reader *r) {
    tli_word word;
    return !tli_next_word(r, &word);
}

// "- Mode: Lazy", and nothing more.
static int tli_read_choice(tli_reader *r, const char *label, const char *const *names,
                           int32_t count, int32_t *value) {
    tli_word word;
    return tli_read_label(r, label, &word)
        && tli_parse_name(names, count, word.text, word.length, value) && tli_ends_line(r);
}

// "name: 10 }", or "name: 10," where one more follows. As in the seed's text, 0 is no number.
static int tli_read_number(tli_reader *r, const char *name, uint64_t *value, int *more) {
    tli_word word;
    if (!tli_next_word(r, &word) || !tli_word_is(word, name) || !tli_next_word(r, &word)) return 0;
    *more = word.text[word.length - 1] == ',';
    word.length -= (size_t)*more;
    if (!tli_read_u64(word, value) || !*value) return 0;
    return *more || (tli_next_word(r, &word) && tli_word_is(word, "}"));
}

static int tli_read_gradient(tli_reader *r, tl_gradient *gradient) {
    tli_word kind, brace;
    int more = 0;
    if (!tli_read_label(r, "Gradient:", &kind)) return 0;
    *gradient = tl_gradient_full();
    if (tli_word_is(kind, "None")) gradient->computes = 0;
    if (tli_word_is(kind, "None") || tli_word_is(kind, "Full")) return tli_ends_line(r);
    if (!tli_next_word(r, &brace) || !tli_word_is(brace, "{")) return 0;
    if (tli_word_is(kind, "Checkpointed")) {
        gradient->checkpointed = 1;
        if (!tli_read_number(r, "checkpoint_interval:", &gradient->checkpoint_interval, &more))
            return 0;
        if (!more) return tli_ends_line(r);
    } else if (!tli_word_is(kind, "Accumulated")) {
        return 0;
    }
    return tli_read_number(r, "accumulation_steps:", &gradient->accumulation_steps, &more) && !more
        && tli_ends_line(r);
}

static int tli_read_parallelism(tli_reader *r, tl_parallelism *parallelism) {
    tli_word word;
    int32_t kind;
    int more = 0;
    if (!tli_read_label(r, "Parallelism:", &word)
        || !tli_parse_name(tli_parallelism_labels, TL_PARALLELISM_COUNT, word.text, word.length,
                           &kind))
        return 0;
    *parallelism = tli_parallelism((tl_parallelism_kind)kind, 0);
    if (!tli_has_number(parallelism->kind)) return tli_ends_line(r);
    if (!tli_next_word(r, &word) || !tli_word_is(word, "{")) return 0;
    return tli_read_number(r, tli_number_labels[kind], tli_parallelism_number(parallelism), &more)
        && !more && tli_ends_line(r);
}

// What is wrong with the line that the reader stands on; NULL = the whole summary is read.
static const char *tli_read_strategy(tli_reader *r, tl_strategy *s) {
    tli_word word;
    int32_t value;
    if (!tli_next_line(r) || !tli_next_word(r, &word) || !tli_word_is(word, "Execution")
        || !tli_next_word(r, &word) || !tli_word_is(word, "Strategy:") || !tli_ends_line(r))
        return "expected \"Execution Strategy:\"";
    if (!tli_read_choice(r, "Mode:", tli_mode_labels, TL_MODE_COUNT, &value))
        return "expected \"- Mode:\" and one of Eager, Lazy, Hybrid";
    s->mode = (tl_mode)value;
    if (!tli_read_gradient(r, &s->gradient))
        return "expected \"- Gradient:\" and None, Full, or Checkpointed or Accumulated { .. > 0 }";
    if (!tli_read_choice(r, "Precision:", tli_precision_labels, TL_PRECISION_COUNT, &value))
        return "expected \"- Precision:\" and one of Full, Single, Mixed, Half, BFloat16";
    s->precision = (tl_precision)value;
    if (!tli_read_choice(r, "Memory:", tli_memory_labels, TL_MEMORY_COUNT, &value))
        return "expected \"- Memory:\" and one of Standard, Pooled, Cached, MinimalPeak";
    s->memory = (tl_memory)value;
    if (!tli_read_parallelism(r, &s->parallelism))
        return "expected \"- Parallelism:\" and its kind, some with { a number > 0 }";
    if (!tli_read_choice(r, "Fusion:", tli_switch_labels, 2, &s->enable_fusion))
        return "expected \"- Fusion:\" and true or false";
    if (!tli_read_choice(r, "Profiling:", tli_switch_labels, 2, &s->enable_profiling))
        return "expected \"- Profiling:\" and true or false";
    while (tli_next_line(r))
        if (!tli_ends_line(r)) return "text after the summary";
    return NULL;
}

TLI_IMPL tl_result tl_parse_strategy(tl_env *env, const char *text, size_t length,
                                     tl_strategy *strategy) {
    tli_reader r = tli_reader_of(text, length);
    const char *wrong;
    TL_ASSERT(text && strategy);
    *strategy = tl_strategy_new();
    wrong = tli_read_strategy(&r, strategy);
    if (!wrong) return TL_OK;
    *strategy = tl_strategy_new();
    return tli_fail_line(env, TL_ERROR_PARSE, "tl_parse_strategy", r.line, wrong);
}

// -- JSON --

static const char *const tli_strategy_keys[] = {
    "mode", "gradient", "precision", "memory", "parallelism", "fusion", "profiling"
};
static const char *const tli_gradient_keys[] = {
    "computes", "checkpointed", "checkpoint_interval", "accumulation_steps"
};
static const char *const tli_parallelism_keys[] = { "kind", "count" };

// {"key": or ,"key":
static void tli_put_key(tli_writer *w, const char *const *keys, int32_t key) {
    tli_put(w, key ? "," : "{");
    tli_put_json_text(w, keys[key]);
    tli_put(w, ":");
}

TLI_IMPL size_t tl_print_strategy_json(const tl_strategy *strategy, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_gradient *gradient;
    TL_ASSERT(strategy);
    gradient = &strategy->gradient;
    tli_put_key(&w, tli_strategy_keys, 0);
    tli_put_json_text(&w, tl_name_mode(strategy->mode));
    tli_put_key(&w, tli_strategy_keys, 1);
    tli_put_key(&w, tli_gradient_keys, 0);
    tli_put(&w, tli_switch_labels[gradient->computes != 0]);
    tli_put_key(&w, tli_gradient_keys, 1);
    tli_put(&w, tli_switch_labels[gradient->checkpointed != 0]);
    tli_put_key(&w, tli_gradient_keys, 2);
    tli_put_u64(&w, gradient->checkpoint_interval);
    tli_put_key(&w, tli_gradient_keys, 3);
    tli_put_u64(&w, gradient->accumulation_steps);
    tli_put(&w, "}");
    tli_put_key(&w, tli_strategy_keys, 2);
    tli_put_json_text(&w, tl_name_precision(strategy->precision));
    tli_put_key(&w, tli_strategy_keys, 3);
    tli_put_json_text(&w, tl_name_memory(strategy->memory));
    tli_put_key(&w, tli_strategy_keys, 4);
    tli_put_key(&w, tli_parallelism_keys, 0);
    tli_put_json_text(&w, tl_name_parallelism(strategy->parallelism.kind));
    if (tli_has_number(strategy->parallelism.kind)) {
        tli_put_key(&w, tli_parallelism_keys, 1);
        tli_put_u64(&w, tli_parallelism_count(&strategy->parallelism));
    }
    tli_put(&w, "}");
    tli_put_key(&w, tli_strategy_keys, 5);
    tli_put(&w, tli_switch_labels[strategy->enable_fusion != 0]);
    tli_put_key(&w, tli_strategy_keys, 6);
    tli_put(&w, tli_switch_labels[strategy->enable_profiling != 0]);
    tli_put(&w, "}");
    return tli_finish(&w);
}

static void tli_read_gradient_json(tli_json *j, tl_gradient *gradient) {
    uint32_t seen = 0;
    int32_t key;
    if (!tli_json_enter(j, '{')) return;
    while ((key = tli_json_next_key(j, tli_gradient_keys, 4, &seen)) >= 0) {
        if (key == 0) gradient->computes = tli_json_bool(j);
        else if (key == 1) gradient->checkpointed = tli_json_bool(j);
        else if (key == 2) gradient->checkpoint_interval = tli_json_u64(j);
        else gradient->accumulation_steps = tli_json_u64(j);
    }
}

static void tli_read_parallelism_json(tli_json *j, tl_parallelism *parallelism) {
    uint64_t count = 0;
    uint32_t seen = 0;
    int32_t key, kind = 0;
    if (!tli_json_enter(j, '{')) return;
    while ((key = tli_json_next_key(j, tli_parallelism_keys, 2, &seen)) >= 0) {
        if (key == 0) kind = tli_json_name(j, tli_parallelism_names, TL_PARALLELISM_COUNT);
        else count = tli_json_u64(j);
    }
    *parallelism = tli_parallelism((tl_parallelism_kind)kind, count);
    if (seen >> 1 && !tli_has_number(parallelism->kind)) tli_json_fail(j, "this kind has no count");
}

TLI_IMPL tl_result tl_parse_strategy_json(tl_env *env, const char *text, size_t length,
                                          tl_strategy *strategy) {
    static const char function[] = "tl_parse_strategy_json";
    tl_strategy s = tl_strategy_new();
    uint32_t seen = 0;
    int32_t key, mode = 0, precision = 0, memory = 0;
    tli_json j;
    const char *rule;
    TL_ASSERT(text && strategy);
    *strategy = s;
    j = tli_json_open(env, function, text, length);
    tli_json_enter(&j, '{');
    while ((key = tli_json_next_key(&j, tli_strategy_keys, 7, &seen)) >= 0)
        switch (key) {
            case 0: mode = tli_json_name(&j, tli_mode_names, TL_MODE_COUNT); break;
            case 1: tli_read_gradient_json(&j, &s.gradient); break;
            case 2: precision = tli_json_name(&j, tli_precision_names, TL_PRECISION_COUNT); break;
            case 3: memory = tli_json_name(&j, tli_memory_names, TL_MEMORY_COUNT); break;
            case 4: tli_read_parallelism_json(&j, &s.parallelism); break;
            case 5: s.enable_fusion = tli_json_bool(&j); break;
            case 6: s.enable_profiling = tli_json_bool(&j); break;
        }
    s.mode = (tl_mode)mode;
    s.precision = (tl_precision)precision;
    s.memory = (tl_memory)memory;
    if (tli_json_end(&j)) return TL_ERROR_PARSE;
    rule = tli_strategy_rule(&s);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    *strategy = s;
    return TL_OK;
}
#endif  // TL_NO_TEXT

// ============================================================================
// [3] GRAPH (implementation)
// ============================================================================

// -- texts: names in one block, the first of them empty --

#define TLI_NAME_LIMIT 255  // bytes of a name
#define TLI_NAME_RULE  "must be 1 to 255 printable ASCII characters other than space, # and ="

static int tli_is_name(const char *text) {
    size_t length = 0;
    for (; text[length]; length++)
        if (length == TLI_NAME_LIMIT || text[length] <= ' ' || text[length] > '~' || text[length] == '#' ||
            text[length] == '=') return 0;
    return length > 0;
}

// The text at an offset, or NULL: safe for any offset, also in a graph that nobody checked.
static const char *tli_text_at(const tl_graph *graph, uint32_t offset) {
    if (!graph->text || offset >= graph->text_bytes || graph->text[graph->text_bytes - 1]) return NULL;
    return graph->text + offset;
}

static uint32_t tli_append_text(tl_graph *graph, const char *text) {
    size_t bytes = tli_text_length(text) + 1;
    uint32_t at = graph->text_bytes;
    if (bytes == 1) return 0;
    tli_copy(graph->text + at, text, bytes);
    graph->text_bytes += (uint32_t)bytes;
    return at;
}

static int tli_has_node(const tl_graph *graph, int32_t node) {
    return graph->nodes && node >= 0 && node < graph->node_count;
}

TLI_IMPL const char *tl_name_node(const tl_graph *graph, int32_t node) {
    const char *text = tli_has_node(graph, node) ? tli_text_at(graph, graph->nodes[node].name) : NULL;
    return text ? text : "?";
}

TLI_IMPL const char *tl_name_op(const tl_graph *graph, int32_t node) {
    const char *text = tli_has_node(graph, node) ? tli_text_at(graph, graph->nodes[node].op) : NULL;
    return text ? text : "?";
}

TLI_IMPL const char *tl_name_unit(const tl_graph *graph, int32_t node) {
    const char *text = tli_has_node(graph, node) ? tli_text_at(graph, graph->nodes[node].unit) : NULL;
    return text ? text : "?";
}

// -- rules: what one node must be; each function returns the broken rule, or NULL --

typedef struct tli_graph_rules {
    tl_env     *env;
    const char *function;            // that an error names
    int32_t     line;                // of the text that is read; 0 = none
    uint64_t    bytes, cost, param;  // sums over the nodes seen so far
} tli_graph_rules;

static tli_graph_rules tli_rules_of(tl_env *env, const char *function) {
    tli_graph_rules rules;
    tli_zero(&rules, sizeof rules);
    rules.env = env;
    rules.function = function;
    return rules;
}

// A word that somebody else chose, cut to what a sentence can hold.
static void tli_put_clipped(tli_writer *w, const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length && i < 48; i++)
        tli_put_bytes(w, text[i] >= ' ' && text[i] <= '~' ? text + i : "?", 1);
    if (length > 48) tli_put(w, "...");
}

// "tl_add_node: node 3 (conv1): inputs: ..."
static tl_result tli_fail_item(const tli_graph_rules *rules, tl_result code, const char *kind, int64_t id,
                               const char *name, const char *rule) {
    tli_writer w = tli_begin_error(rules->env, code, rules->function);
    if (rules->line) { tli_put(&w, "line "); tli_put_i64(&w, rules->line); tli_put(&w, ": "); }
    tli_put(&w, kind); tli_put(&w, " "); tli_put_i64(&w, id); tli_put(&w, " (");
    tli_put_clipped(&w, name, tli_text_length(name));
    tli_put(&w, "): "); tli_put(&w, rule);
    return tli_end_error(rules->env, &w, code);
}

// First rules, so that all others may follow the indices: arrays one after the other.
static const char *tli_check_ranges(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id], *last = id ? node - 1 : NULL;
    int64_t input = last ? (int64_t)last->first_input + last->input_count : 0;
    int64_t output = last ? (int64_t)last->first_output + last->output_count : 0;
    const char *name = tli_text_at(graph, node->name), *op = tli_text_at(graph, node->op);
    const char *unit = tli_text_at(graph, node->unit);
    if (node->input_count < 0 || node->first_input != input || input + node->input_count > graph->input_count)
        return "inputs: must follow those of the node above, inside the array";
    if (node->output_count < 1) return "outputs: there must be at least one";
    if (node->first_output != output || output + node->output_count > graph->tensor_count)
        return "outputs: must follow those of the node above, inside the array";
    if (!name || !tli_is_name(name)) return "name: " TLI_NAME_RULE;
    if (!op || !tli_is_name(op)) return "op: " TLI_NAME_RULE;
    if (!unit || (*unit && !tli_is_name(unit))) return "unit: " TLI_NAME_RULE;
    return NULL;
}

static const char *tli_check_tensors(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_input *input = &graph->inputs[node->first_input + k];
        if (input->tensor < 0 || input->tensor >= node->first_output)
            return "inputs: each must be made by a node above it";
        if (input->needed > node->has_grad) return "needs: must be none where there is no gradient";
    }
    for (k = 0; k < node->output_count; k++) {
        const tl_node_output *output = &graph->outputs[node->first_output + k];
        if (output->node != id || output->output != k) return "outputs: each must know its node and number";
        if (output->needed > node->has_grad) return "needs: must be none where there is no gradient";
    }
    return NULL;
}

static const char *tli_check_inplace(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    const tl_node_output *from;
    if (node->inplace == -1) return NULL;
    if (node->inplace < 0 || node->inplace >= node->input_count) return "inplace: there is no such input";
    from = &graph->outputs[graph->inputs[node->first_input + node->inplace].tensor];
    if (graph->nodes[from->node].is_input) return "inplace: a graph input must not be overwritten";
    if (from->bytes != graph->outputs[node->first_output].bytes)
        return "inplace: the input must have the bytes of output 0";
    return NULL;
}

static const char *tli_check_attributes(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    if (node->is_input > 1 || node->has_grad > 1 || node->keep > 1 || node->fixed > 1)
        return "flags: must be 0 or 1";
    if (node->is_input != tli_same_text(tl_name_op(graph, id), "input"))
        return "op: must be input exactly for inputs";
    if (node->layer < -1 || node->layer == INT32_MAX) return "layer: must be a number below 2^31 - 1";
    if (node->is_input) {
        if (node->has_grad) return "grad: an input must have none";
        if (node->input_count) return "inputs: an input must have none of its own";
        if (node->fwd_cost) return "fwd: must be 0 for an input";
        if (node->fwork_bytes) return "fwork: must be 0 for an input";
        if (node->param_bytes) return "param: must be 0 for an input";
    }
    if (!node->has_grad) {
        if (node->bwd_cost) return "bwd: must be 0 where there is no gradient";
        if (node->saved_bytes) return "saved: must be 0 where there is no gradient";
        if (node->bwork_bytes) return "bwork: must be 0 where there is no gradient";
    }
    return NULL;
}

// Everything that may be live at once, each output with its gradient, all costs, all weights.
static const char *tli_add_sums(tli_graph_rules *rules, const tl_graph *graph, const tl_node *node) {
    int32_t k;
    for (k = 0; k < node->output_count; k++) {
        uint64_t bytes = graph->outputs[node->first_output + k].bytes;
        if (!tli_add_u64(bytes, bytes, &bytes) || !tli_add_u64(rules->bytes, bytes, &rules->bytes))
            return "out: the sum of all bytes, gradients included, must fit 64 bits";
    }
    if (!tli_add_u64(rules->bytes, node->saved_bytes, &rules->bytes) ||
        !tli_add_u64(rules->bytes, node->fwork_bytes, &rules->bytes) ||
        !tli_add_u64(rules->bytes, node->bwork_bytes, &rules->bytes))
        return "saved, fwork, bwork: the sum of all bytes, gradients included, must fit 64 bits";
    if (!tli_add_u64(rules->cost, node->fwd_cost, &rules->cost) ||
        !tli_add_u64(rules->cost, node->bwd_cost, &rules->cost))
        return "fwd, bwd: the sum of all costs must fit 64 bits";
    if (!tli_add_u64(rules->param, node->param_bytes, &rules->param))
        return "param: the sum of all weights must fit 64 bits";
    return NULL;
}

static tl_result tli_check_node(tli_graph_rules *rules, const tl_graph *graph, int32_t id) {
    const char *rule = tli_check_ranges(graph, id);
    if (!rule) rule = tli_check_attributes(graph, id);
    if (!rule) rule = tli_check_tensors(graph, id);
    if (!rule) rule = tli_check_inplace(graph, id);
    if (rule) return tli_fail_item(rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(graph, id), rule);
    rule = tli_add_sums(rules, graph, &graph->nodes[id]);
    if (rule) return tli_fail_item(rules, TL_ERROR_OVERFLOW, "node", id, tl_name_node(graph, id), rule);
    return TL_OK;
}

// -- unique names: sorted, because no choice of names makes a merge sort slow --

static const char *tli_name_of(const tl_graph *graph, uint32_t index) {  // nodes first, then views
    uint32_t count = (uint32_t)graph->node_count;
    return graph->text + (index < count ? graph->nodes[index].name : graph->views[index - count].name);
}

static int tli_is_name_above(const tl_graph *graph, uint32_t a, uint32_t b) {
    const char *x = tli_name_of(graph, a), *y = tli_name_of(graph, b);
    while (*x && *x == *y) { x++; y++; }
    return *x > *y;
}

static void tli_merge_names(const tl_graph *graph, const uint32_t *from, uint32_t *to, uint64_t count,
                            uint64_t width) {
    uint64_t start, at, left, right, middle, end;
    for (start = 0; start < count; start = end) {
        middle = start + width < count ? start + width : count;
        end = middle + width < count ? middle + width : count;
        left = start; right = middle;
        for (at = start; at < end; at++) {
            int takes_right = left == middle ||
                              (right < end && tli_is_name_above(graph, from[left], from[right]));
            to[at] = takes_right ? from[right++] : from[left++];
        }
    }
}

// Find the first name, in the order of nodes and views, that another one above it has too: -1 = none.
static tl_result tli_find_duplicate(const tli_graph_rules *rules, const tl_graph *graph, int64_t *found) {
    uint64_t count = (uint64_t)graph->node_count + (uint64_t)graph->view_count, width, i;
    uint32_t *order = (uint32_t *)tli_alloc_array(rules->env, 2 * count, sizeof *order);
    uint32_t *from = order, *to, *swap;
    *found = -1;
    if (!order) return tli_fail(rules->env, TL_ERROR_NO_MEMORY, rules->function, "no memory to compare names");
    to = order + count;
    for (i = 0; i < count; i++) from[i] = (uint32_t)i;
    for (width = 1; width < count; width *= 2) {
        tli_merge_names(graph, from, to, count, width);
        swap = from; from = to; to = swap;
    }
    for (i = 1; i < count; i++)  // the sort is stable: of two equal names the later item stands second
        if ((*found < 0 || from[i] < *found) &&
            tli_same_text(tli_name_of(graph, from[i - 1]), tli_name_of(graph, from[i]))) *found = from[i];
    tli_release(rules->env, order);
    return TL_OK;
}

// -- check --

static const char *tli_check_arrays(const tl_graph *graph) {
    if (graph->node_count < 1 || !graph->nodes) return "nodes: there must be at least one";
    if (graph->input_count < 0 || (graph->input_count && !graph->inputs))
        return "inputs: missing, or a negative count";
    if (graph->tensor_count < 0 || !graph->outputs) return "outputs: missing, or a negative count";
    if (graph->view_count < 0 || (graph->view_count && !graph->views))
        return "views: missing, or a negative count";
    if (!graph->text || !graph->text_bytes || graph->text[graph->text_bytes - 1])
        return "text: must end with 0";
    return NULL;
}

static tl_result tli_check_view(const tli_graph_rules *rules, const tl_graph *graph, int32_t view) {
    const tl_view *v = &graph->views[view];
    const char *name = tli_text_at(graph, v->name), *rule = NULL;
    if (!name || !tli_is_name(name)) rule = "name: " TLI_NAME_RULE;
    else if (v->tensor < 0 || v->tensor >= graph->tensor_count) rule = "tensor: there is no such output";
    return rule ? tli_fail_item(rules, TL_ERROR_INVALID_ARG, "view", view, name ? name : "?", rule) : TL_OK;
}

TLI_IMPL tl_result tl_check_graph(tl_env *env, const tl_graph *graph) {
    tli_graph_rules rules = tli_rules_of(env, "tl_check_graph");
    const char *rule;
    const tl_node *last;
    tl_result result = TL_OK;
    int64_t found = -1;
    int32_t i;
    TL_ASSERT(graph);
    rule = tli_check_arrays(graph);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, rules.function, rule);
    for (i = 0; i < graph->node_count && !result; i++) result = tli_check_node(&rules, graph, i);
    if (result) return result;
    last = &graph->nodes[graph->node_count - 1];
    if (last->first_input + last->input_count != graph->input_count ||
        last->first_output + last->output_count != graph->tensor_count)
        return tli_fail(env, TL_ERROR_INVALID_ARG, rules.function,
                        "inputs, outputs: each must belong to a node");
    for (i = 0; i < graph->view_count && !result; i++) result = tli_check_view(&rules, graph, i);
    if (!result) result = tli_find_duplicate(&rules, graph, &found);
    if (result || found < 0) return result;
    return tli_fail_item(&rules, TL_ERROR_INVALID_ARG, found < graph->node_count ? "node" : "view",
                         found < graph->node_count ? found : found - graph->node_count,
                         tli_name_of(graph, (uint32_t)found), "name: must be unique");
}

// Not negative, not NaN, finite.
static int tli_is_amount(double value) { return value >= 0 && value <= 1.7976931348623157e308; }

TLI_IMPL tl_result tl_check_device(tl_env *env, const tl_device *device) {
    uint64_t alignment;
    int32_t i;
    TL_ASSERT(device);
    alignment = device->alignment_bytes;
    for (i = 0; i < TL_PRECISION_COUNT; i++)
        if (!tli_is_amount(device->flops_per_second[i]))
            return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_check_device",
                            "flops_per_second: must be finite and not negative");
    if (alignment & (alignment - 1 + !alignment))
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_check_device",
                        "alignment_bytes: must be 0 or a power of two");
    if (device->supported >> TL_PRECISION_COUNT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_check_device",
                        "supported: must name known precisions only");
    return TL_OK;
}

// -- numbers inside words: "3", "3.1", "in0,out1" --

// Read digits up to anything else; 0 where there is none or the number does not fit.
static int tli_read_index(const char **at, const char *end, int32_t *value) {
    int64_t number = -1;
    while (*at < end && **at >= '0' && **at <= '9') {
        number = (number < 0 ? 0 : number) * 10 + (**at - '0');
        if (number > INT32_MAX) return 0;
        (*at)++;
    }
    *value = number < 0 ? 0 : (int32_t)number;
    return number >= 0;
}

static int tli_read_tensor(const char *text, size_t length, tl_tensor *tensor) {
    const char *end = text + length;
    tensor->output = 0;
    if (!tli_read_index(&text, end, &tensor->node)) return 0;
    if (text == end) return 1;
    return *text++ == '.' && tli_read_index(&text, end, &tensor->output) && text == end;
}

// The index of a tensor that one of the first node_count nodes makes; -1 = there is none.
static int32_t tli_index_tensor(const tl_graph *graph, int32_t node_count, tl_tensor tensor) {
    const tl_node *node;
    if (tensor.node < 0 || tensor.node >= node_count || tensor.output < 0) return -1;
    node = &graph->nodes[tensor.node];
    return tensor.output < node->output_count ? node->first_output + tensor.output : -1;
}

// Set the needed flags that a needs text names; 0 where it is none.
static int tli_read_needs(const char *at, tl_graph *graph, const tl_node *node) {
    const char *end = at + tli_text_length(at);
    int all_inputs = 0, all_outputs = 0;
    int32_t k;
    if (tli_same_text(at, "none")) return 1;
    do {
        int reads_output = *at == 'o';
        ptrdiff_t length = reads_output ? 3 : 2;
        if (end - at < length || TLI_MEMCMP(at, reads_output ? "out" : "in", (size_t)length) != 0) return 0;
        at += length;
        if (at == end || *at == ',') {
            if (reads_output) all_outputs = 1; else all_inputs = 1;
        } else {
            if (!tli_read_index(&at, end, &k)) return 0;
            if (k >= (reads_output ? node->output_count : node->input_count)) return 0;
            if (reads_output) graph->outputs[node->first_output + k].needed = 1;
            else graph->inputs[node->first_input + k].needed = 1;
        }
        if (at < end && *at != ',') return 0;
    } while (at++ < end);
    for (k = 0; k < node->input_count && all_inputs; k++) graph->inputs[node->first_input + k].needed = 1;
    for (k = 0; k < node->output_count && all_outputs; k++) graph->outputs[node->first_output + k].needed = 1;
    return 1;
}

// -- build --

TLI_IMPL void tl_init_graph(tl_graph *graph) {
    TL_ASSERT(graph);
    tli_zero(graph, sizeof *graph);
}

TLI_IMPL void tl_free_graph(tl_env *env, tl_graph *graph) {
    if (!graph) return;
    tli_release(env, graph->nodes);
    tli_release(env, graph->inputs);
    tli_release(env, graph->outputs);
    tli_release(env, graph->views);
    tli_release(env, graph->text);
    tli_zero(graph, sizeof *graph);
}

// Make room for one more node or view, so that nothing can fail halfway.
static tl_result tli_reserve_graph(const tli_graph_rules *rules, tl_graph *graph, int32_t input_count,
                                   int32_t output_count, size_t text_bytes) {
    tl_env *env = rules->env;
    void *nodes = graph->nodes, *inputs = graph->inputs, *outputs = graph->outputs, *views = graph->views;
    void *text = graph->text;
    int32_t text_capacity = (int32_t)graph->text_capacity;
    int64_t input_end = (int64_t)graph->input_count + input_count;
    int64_t tensor_end = (int64_t)graph->tensor_count + output_count;
    int64_t text_end = (int64_t)graph->text_bytes + 1 + (int64_t)text_bytes;
    int fits = graph->node_count < INT32_MAX && graph->view_count < INT32_MAX && input_end <= INT32_MAX &&
               tensor_end <= INT32_MAX && text_end <= INT32_MAX;
    int ok = fits &&
        tli_grow(env, &inputs, &graph->input_capacity, graph->input_count, input_end, sizeof(tl_node_input)) &&
        tli_grow(env, &outputs, &graph->tensor_capacity, graph->tensor_count, tensor_end,
                 sizeof(tl_node_output)) &&
        tli_grow(env, &text, &text_capacity, (int32_t)graph->text_bytes, text_end, 1) &&
        (output_count ? tli_grow(env, &nodes, &graph->node_capacity, graph->node_count,
                                 (int64_t)graph->node_count + 1, sizeof(tl_node))
                      : tli_grow(env, &views, &graph->view_capacity, graph->view_count,
                                 (int64_t)graph->view_count + 1, sizeof(tl_view)));
    graph->nodes = (tl_node *)nodes;
    graph->inputs = (tl_node_input *)inputs;
    graph->outputs = (tl_node_output *)outputs;
    graph->views = (tl_view *)views;
    graph->text = (char *)text;
    graph->text_capacity = (uint32_t)text_capacity;
    if (!fits) return tli_fail(env, TL_ERROR_OVERFLOW, rules->function, "graph: counts must stay below 2^31");
    if (!ok) return tli_fail(env, TL_ERROR_NO_MEMORY, rules->function, "no memory for a larger graph");
    if (!graph->text_bytes) graph->text[graph->text_bytes++] = 0;
    return TL_OK;
}

static const char *tli_check_desc(const tl_node_desc *desc, const char *name, const char *op,
                                  const char *unit) {
    if (!tli_is_name(name)) return "name: " TLI_NAME_RULE;
    if (!tli_is_name(op)) return "op: " TLI_NAME_RULE;
    if (*unit && !tli_is_name(unit)) return "unit: " TLI_NAME_RULE;
    if (desc->input_count < 0 || (desc->input_count && !desc->inputs))
        return "inputs: missing, or a negative count";
    if (desc->output_count < 1 || !desc->output_bytes) return "outputs: there must be at least one";
    if (desc->inplace < 0 || desc->inplace > desc->input_count) return "inplace: there is no such input";
    if (desc->layer < 0) return "layer: must not be negative";
    if ((desc->no_grad | desc->keep | desc->fixed) & ~1) return "no_grad, keep, fixed: must be 0 or 1";
    return NULL;
}

// Copy the plain fields of a desc into the node at the end of the arrays.
static void tli_append_node(tl_graph *graph, const tl_node_desc *desc, const char *name, const char *op) {
    int32_t id = graph->node_count++, k;
    tl_node *node = &graph->nodes[id];
    tli_zero(node, sizeof *node);
    node->name = tli_append_text(graph, name);
    node->op = tli_append_text(graph, op);
    node->unit = tli_append_text(graph, desc->unit ? desc->unit : "");
    node->first_input = graph->input_count;
    node->input_count = desc->input_count;
    node->first_output = graph->tensor_count;
    node->output_count = desc->output_count;
    node->inplace = desc->inplace - 1;
    node->layer = desc->layer - 1;
    node->is_input = (uint8_t)tli_same_text(op, "input");
    node->has_grad = (uint8_t)(!node->is_input && !desc->no_grad);
    node->keep = (uint8_t)desc->keep;
    node->fixed = (uint8_t)desc->fixed;
    node->fwd_cost = desc->fwd_cost;
    node->bwd_cost = desc->bwd_cost;
    node->saved_bytes = desc->saved_bytes;
    node->fwork_bytes = desc->fwork_bytes;
    node->bwork_bytes = desc->bwork_bytes;
    node->param_bytes = desc->param_bytes;
    for (k = 0; k < desc->output_count; k++) {
        tl_node_output *output = &graph->outputs[graph->tensor_count++];
        output->node = id;
        output->output = k;
        output->bytes = desc->output_bytes[k];
        output->needed = 0;
    }
}

static tl_result tli_add_inputs(const tli_graph_rules *rules, tl_graph *graph, const tl_node_desc *desc) {
    int32_t id = graph->node_count - 1, k;
    tl_node *node = &graph->nodes[id];
    for (k = 0; k < desc->input_count; k++) {
        tl_node_input *input = &graph->inputs[graph->input_count++];
        input->tensor = tli_index_tensor(graph, id, desc->inputs[k]);
        input->needed = 0;
        if (input->tensor < 0) {
            char rule[80];
            tli_writer w = tli_writer_of(rule, sizeof rule);
            tli_put(&w, "inputs: "); tli_put_i64(&w, desc->inputs[k].node);
            tli_put(&w, "."); tli_put_i64(&w, desc->inputs[k].output);
            tli_put(&w, " is not made by a node above it");
            tli_finish(&w);
            return tli_fail_item(rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(graph, id), rule);
        }
    }
    if (!tli_read_needs(desc->needs ? desc->needs : "none", graph, node))
        return tli_fail_item(rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(graph, id),
                             "needs: must be none, or a list of in, in<k>, out, out<k> that exist");
    return TL_OK;
}

// tl_add_node with sums that go on from node to node, and with the line of a text.
static tl_result tli_add_node(tli_graph_rules *rules, tl_graph *graph, const tl_node_desc *desc) {
    char number[16];
    tli_writer w = tli_writer_of(number, sizeof number);
    const char *name = desc->name ? desc->name : number, *op = desc->op ? desc->op : "op";
    const char *unit = desc->unit ? desc->unit : "", *rule;
    tl_graph before;
    tl_result result;
    tli_put(&w, "n"); tli_put_i64(&w, graph->node_count);
    tli_finish(&w);
    rule = tli_check_desc(desc, name, op, unit);
    if (rule) return tli_fail_item(rules, TL_ERROR_INVALID_ARG, "node", graph->node_count, name, rule);
    result = tli_reserve_graph(rules, graph, desc->input_count, desc->output_count,
                               tli_text_length(name) + tli_text_length(op) + tli_text_length(unit) + 3);
    if (result) return result;
    before = *graph;
    tli_append_node(graph, desc, name, op);
    result = tli_add_inputs(rules, graph, desc);
    if (!result) result = tli_check_node(rules, graph, before.node_count);
    if (result) *graph = before;
    return result;
}

TLI_IMPL tl_result tl_add_node(tl_env *env, tl_graph *graph, const tl_node_desc *desc, int32_t *id) {
    tli_graph_rules rules = tli_rules_of(env, "tl_add_node");
    tl_result result;
    TL_ASSERT(graph && desc);
    result = tli_add_node(&rules, graph, desc);
    if (id) *id = result ? 0 : graph->node_count - 1;
    return result;
}

TLI_IMPL tl_result tl_add_view(tl_env *env, tl_graph *graph, const char *name, tl_tensor of,
                               tl_tensor *storage) {
    tli_graph_rules rules = tli_rules_of(env, "tl_add_view");
    int32_t tensor;
    tl_result result;
    TL_ASSERT(graph && name);
    if (storage) tli_zero(storage, sizeof *storage);
    tensor = tli_index_tensor(graph, graph->node_count, of);
    if (!tli_is_name(name))
        return tli_fail_item(&rules, TL_ERROR_INVALID_ARG, "view", graph->view_count, name,
                             "name: " TLI_NAME_RULE);
    if (tensor < 0)
        return tli_fail_item(&rules, TL_ERROR_INVALID_ARG, "view", graph->view_count, name,
                             "of: there is no such tensor");
    result = tli_reserve_graph(&rules, graph, 0, 0, tli_text_length(name) + 1);
    if (result) return result;
    graph->views[graph->view_count].name = tli_append_text(graph, name);
    graph->views[graph->view_count++].tensor = tensor;
    if (storage) *storage = of;
    return TL_OK;
}

// One layer of a chain, or its input for layer -1.
static tl_result tli_add_layer(tli_graph_rules *rules, tl_graph *graph, const tl_chain_desc *desc, int32_t i) {
    tl_node_desc node;
    tl_tensor input;
    uint64_t bytes = 1;
    tli_zero(&node, sizeof node);
    node.output_bytes = &bytes;
    node.output_count = 1;
    if (i < 0) {
        node.name = "x"; node.op = "input";
        bytes = desc->input_bytes;
        return tli_add_node(rules, graph, &node);
    }
    input.node = i; input.output = 0;
    node.op = "layer";
    node.inputs = &input; node.input_count = 1;
    node.needs = desc->needs ? desc->needs : "in";
    node.layer = i + 1;
    if (desc->output_bytes) bytes = desc->output_bytes[i];
    node.fwd_cost = desc->fwd_costs ? desc->fwd_costs[i] : 1;
    node.bwd_cost = desc->bwd_costs ? desc->bwd_costs[i] : 1;
    node.saved_bytes = desc->saved_bytes ? desc->saved_bytes[i] : 0;
    node.fwork_bytes = desc->fwork_bytes ? desc->fwork_bytes[i] : 0;
    node.bwork_bytes = desc->bwork_bytes ? desc->bwork_bytes[i] : 0;
    node.param_bytes = desc->param_bytes ? desc->param_bytes[i] : 0;
    return tli_add_node(rules, graph, &node);
}

TLI_IMPL tl_result tl_add_chain(tl_env *env, tl_graph *graph, const tl_chain_desc *desc) {
    tli_graph_rules rules = tli_rules_of(env, "tl_add_chain");
    tl_result result = TL_OK;
    int32_t i;
    TL_ASSERT(graph && desc);
    tl_init_graph(graph);
    if (desc->layer_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, rules.function, "layer_count: must be > 0");
    for (i = -1; i < desc->layer_count && !result; i++) result = tli_add_layer(&rules, graph, desc, i);
    if (result) tl_free_graph(env, graph);
    return result;
}

// -- find --

// The node or view with this name: nodes first, then node_count + view; -1 = none.
static int64_t tli_find_name(const tl_graph *graph, const char *name, size_t length) {
    int64_t i, count = (int64_t)graph->node_count + graph->view_count;
    for (i = 0; i < count; i++) {
        const char *text = tli_name_of(graph, (uint32_t)i);
        size_t k = 0;
        while (k < length && text[k] == name[k]) k++;
        if (k == length && !text[k]) return i;
    }
    return -1;
}

TLI_IMPL tl_result tl_find_tensor(tl_env *env, const tl_graph *graph, const char *name, tl_tensor *tensor) {
    size_t length, dot;
    int64_t found;
    tli_writer w;
    TL_ASSERT(graph && name && tensor);
    length = dot = tli_text_length(name);
    tli_zero(tensor, sizeof *tensor);
    found = tli_find_name(graph, name, length);
    if (found >= graph->node_count) {
        const tl_node_output *output = &graph->outputs[graph->views[found - graph->node_count].tensor];
        tensor->node = output->node; tensor->output = output->output;
        return TL_OK;
    }
    if (found >= 0) { tensor->node = (int32_t)found; return TL_OK; }
    while (dot > 0 && name[dot - 1] != '.') dot--;
    if (dot > 1) {
        const char *digits = name + dot;
        found = tli_find_name(graph, name, dot - 1);
        if (found >= 0 && found < graph->node_count &&
            tli_read_index(&digits, name + length, &tensor->output) &&
            digits == name + length && tensor->output < graph->nodes[found].output_count) {
            tensor->node = (int32_t)found;
            return TL_OK;
        }
    }
    if (tli_read_tensor(name, length, tensor) && tli_index_tensor(graph, graph->node_count, *tensor) >= 0)
        return TL_OK;
    tli_zero(tensor, sizeof *tensor);
    w = tli_begin_error(env, TL_ERROR_NOT_FOUND, "tl_find_tensor");
    tli_put(&w, "name: no tensor is called ");
    tli_put_clipped(&w, name, length);
    return tli_end_error(env, &w, TL_ERROR_NOT_FOUND);
}

// -- base --

// sum x ratio, rounded up, the fraction of the ratio in steps of 2^-32; 0 where it does not fit.
static int tli_scale_up(uint64_t sum, double ratio, uint64_t *scaled) {
    uint64_t whole, step, high, low, part;
    double fraction;
    if (ratio >= 18446744073709551616.0) { *scaled = 0; return !sum; }
    whole = (uint64_t)ratio;
    fraction = (ratio - (double)whole) * 4294967296.0;
    step = (uint64_t)fraction;
    step += (double)step < fraction;
    high = (sum >> 32) * step;
    low = (sum & UINT32_MAX) * step;
    part = high + (low >> 32) + ((low & UINT32_MAX) > 0);
    return tli_mul_u64(sum, whole, scaled) && tli_add_u64(*scaled, part, scaled);
}

TLI_IMPL tl_result tl_find_base_bytes(tl_env *env, const tl_graph *graph, double gradient_ratio,
                                      double optimizer_ratio, uint64_t *base_bytes) {
    uint64_t sum = 0, state = 0;
    int32_t i;
    int fits = 1;
    TL_ASSERT(graph && base_bytes);
    *base_bytes = 0;
    if (!tli_is_amount(gradient_ratio) || !tli_is_amount(optimizer_ratio))
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_find_base_bytes",
                        "gradient_ratio, optimizer_ratio: must be finite and not negative");
    for (i = 0; i < graph->node_count && fits; i++) fits = tli_add_u64(sum, graph->nodes[i].param_bytes, &sum);
    fits = fits && tli_scale_up(sum, gradient_ratio, &state) && tli_add_u64(sum, state, base_bytes) &&
           tli_scale_up(sum, optimizer_ratio, &state) && tli_add_u64(*base_bytes, state, base_bytes);
    if (fits) return TL_OK;
    *base_bytes = 0;
    return tli_fail(env, TL_ERROR_OVERFLOW, "tl_find_base_bytes", "param: the sum must fit 64 bits");
}

#ifndef TL_NO_TEXT
// -- .tlg: print --

static int tli_is_needed(const tl_graph *graph, const tl_node *node, int of_outputs, int32_t k) {
    return of_outputs ? graph->outputs[node->first_output + k].needed
                      : graph->inputs[node->first_input + k].needed;
}

// "in" where all inputs are needed, else "in0,in2"; the same for outputs.
static void tli_put_needs(tli_writer *w, const tl_graph *graph, const tl_node *node) {
    const char *comma = "";
    int of_outputs;
    for (of_outputs = 0; of_outputs < 2; of_outputs++) {
        int32_t count = of_outputs ? node->output_count : node->input_count, needed = 0, k;
        for (k = 0; k < count; k++) needed += tli_is_needed(graph, node, of_outputs, k);
        for (k = 0; k < count && needed; k++) {
            if (!tli_is_needed(graph, node, of_outputs, k)) continue;
            tli_put(w, comma); tli_put(w, of_outputs ? "out" : "in");
            comma = ",";
            if (needed == count) break;
            tli_put_i64(w, k);
        }
    }
    if (!*comma) tli_put(w, "none");
}

static void tli_put_attribute(tli_writer *w, const char *key, uint64_t value) {
    if (!value) return;
    tli_put(w, key);
    tli_put_u64(w, value);
}

static void tli_put_tensors(tli_writer *w, const tl_graph *graph, const tl_node *node) {
    int32_t k;
    for (k = 0; k < node->output_count; k++) {
        tli_put(w, k ? "," : " out=");
        tli_put_u64(w, graph->outputs[node->first_output + k].bytes);
    }
    tli_put(w, " needs=");
    tli_put_needs(w, graph, node);
    tli_put(w, node->input_count ? " in=" : " in=-");
    for (k = 0; k < node->input_count; k++) {
        const tl_node_output *from = &graph->outputs[graph->inputs[node->first_input + k].tensor];
        tli_put(w, k ? "," : "");
        tli_put_i64(w, from->node);
        if (graph->nodes[from->node].output_count > 1) { tli_put(w, "."); tli_put_i64(w, from->output); }
    }
}

static void tli_put_node(tli_writer *w, const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    tli_put(w, "node "); tli_put_i64(w, id);
    tli_put(w, " "); tli_put(w, tl_name_node(graph, id));
    tli_put(w, " "); tli_put(w, tl_name_op(graph, id));
    tli_put(w, " fwd="); tli_put_u64(w, node->fwd_cost);
    tli_put(w, " bwd="); tli_put_u64(w, node->bwd_cost);
    tli_put_tensors(w, graph, node);
    tli_put_attribute(w, " saved=", node->saved_bytes);
    tli_put_attribute(w, " fwork=", node->fwork_bytes);
    tli_put_attribute(w, " bwork=", node->bwork_bytes);
    tli_put_attribute(w, " param=", node->param_bytes);
    if (node->inplace >= 0) { tli_put(w, " inplace="); tli_put_i64(w, node->inplace); }
    if (node->layer >= 0) { tli_put(w, " layer="); tli_put_i64(w, node->layer); }
    if (*tl_name_unit(graph, id)) { tli_put(w, " unit="); tli_put(w, tl_name_unit(graph, id)); }
    if (!node->has_grad && !node->is_input) tli_put(w, " grad=no");
    if (node->keep) tli_put(w, " keep");
    if (node->fixed) tli_put(w, " fixed");
    tli_put(w, "\n");
}

TLI_IMPL size_t tl_print_graph(const tl_graph *graph, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t i;
    TL_ASSERT(graph);
    tli_put(&w, "tlg 1\n");
    if (graph->batch) { tli_put(&w, "batch "); tli_put_u64(&w, graph->batch); tli_put(&w, "\n"); }
    for (i = 0; i < graph->node_count; i++) tli_put_node(&w, graph, i);
    return tli_finish(&w);
}

// -- .tlg: parse. Each line becomes a tl_node_desc, so a text can do no more than a caller --

enum {  // attributes, numbers first
    TLI_TLG_FWD, TLI_TLG_BWD, TLI_TLG_SAVED, TLI_TLG_FWORK, TLI_TLG_BWORK, TLI_TLG_PARAM, TLI_TLG_NUMBER_COUNT,
    TLI_TLG_OUT = TLI_TLG_NUMBER_COUNT, TLI_TLG_NEEDS, TLI_TLG_IN, TLI_TLG_INPLACE, TLI_TLG_LAYER, TLI_TLG_UNIT,
    TLI_TLG_GRAD, TLI_TLG_KEEP, TLI_TLG_FIXED, TLI_TLG_COUNT
};

static const char *const tli_tlg_keys[] = {
    "fwd", "bwd", "saved", "fwork", "bwork", "param", "out", "needs", "in", "inplace", "layer", "unit", "grad",
    "keep", "fixed"
};

typedef struct tli_tlg {
    tli_graph_rules rules;             // rules.line: the line being read
    tl_graph  *graph;
    int        has_header;
    tli_word   values[TLI_TLG_COUNT];  // of this line; text 0 = not given
    tl_tensor *inputs;                 // of this line
    uint64_t  *bytes;                  // of its outputs
    char      *text;                   // its name, op, unit and needs, each ended by 0
    int32_t    input_capacity, bytes_capacity, text_capacity;
} tli_tlg;

// "tl_parse_graph: line 3: fwd: ..."
static tl_result tli_fail_word(const tli_tlg *t, tli_word word, const char *rule) {
    tli_writer w = tli_begin_error(t->rules.env, TL_ERROR_PARSE, t->rules.function);
    tli_put(&w, "line "); tli_put_i64(&w, t->rules.line); tli_put(&w, ": ");
    tli_put_clipped(&w, word.text, word.length);
    tli_put(&w, ": "); tli_put(&w, rule);
    return tli_end_error(t->rules.env, &w, TL_ERROR_PARSE);
}

static tl_result tli_fail_key(const tli_tlg *t, int32_t key, const char *rule) {
    tli_word word;
    word.text = tli_tlg_keys[key]; word.length = tli_text_length(word.text);
    return tli_fail_word(t, word, rule);
}

static tl_result tli_fail_read(const tli_tlg *t, const char *why) {
    return tli_fail_line(t->rules.env, TL_ERROR_PARSE, t->rules.function, t->rules.line, why);
}

// The line of the first byte that is neither printable nor a space, tab or line end; 0 = none.
static int32_t tli_find_control(const char *text, size_t length) {
    int32_t line = 1;
    size_t i;
    for (i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\r' ? i + 1 < length && text[i + 1] != '\n' : (c < ' ' && c != '\t' && c != '\n') || c == 127)
            return line;
        line += c == '\n';
    }
    return 0;
}

static tl_result tli_read_attributes(tli_tlg *t, tli_reader *r) {
    tli_word word, key, value;
    int32_t k;
    tli_zero(t->values, sizeof t->values);
    while (tli_next_word(r, &word)) {
        int has_value = tli_cut_word(word, &key, &value);
        if (!tli_parse_name(tli_tlg_keys, TLI_TLG_COUNT, key.text, key.length, &k))
            return tli_fail_word(t, key, "there is no such attribute");
        if (t->values[k].text) return tli_fail_key(t, k, "is given twice");
        if (has_value != (k < TLI_TLG_KEEP))
            return tli_fail_key(t, k, has_value ? "takes no value" : "needs a value");
        t->values[k] = value;
    }
    for (k = 0; k < TLI_TLG_COUNT; k++)
        if (!t->values[k].text && (k <= TLI_TLG_BWD || (k >= TLI_TLG_OUT && k <= TLI_TLG_IN)))
            return tli_fail_key(t, k, "is missing");
    return TL_OK;
}

static tl_result tli_read_numbers(tli_tlg *t, tl_node_desc *desc) {
    uint64_t *numbers[TLI_TLG_NUMBER_COUNT];
    int32_t k;
    numbers[TLI_TLG_FWD] = &desc->fwd_cost;      numbers[TLI_TLG_BWD] = &desc->bwd_cost;
    numbers[TLI_TLG_SAVED] = &desc->saved_bytes; numbers[TLI_TLG_FWORK] = &desc->fwork_bytes;
    numbers[TLI_TLG_BWORK] = &desc->bwork_bytes; numbers[TLI_TLG_PARAM] = &desc->param_bytes;
    for (k = 0; k < TLI_TLG_NUMBER_COUNT; k++)
        if (t->values[k].text && !tli_read_u64(t->values[k], numbers[k]))
            return tli_fail_key(t, k, "must be a number below 2^64");
    for (k = TLI_TLG_INPLACE; k <= TLI_TLG_LAYER; k++) {  // 0 = none in a desc
        int32_t *number = k == TLI_TLG_LAYER ? &desc->layer : &desc->inplace;
        if (!t->values[k].text) continue;
        if (!tli_read_i32(t->values[k], number) || *number == INT32_MAX)
            return tli_fail_key(t, k, "must be a number below 2^31 - 1");
        ++*number;
    }
    if (t->values[TLI_TLG_GRAD].text && !tli_word_is(t->values[TLI_TLG_GRAD], "no"))
        return tli_fail_key(t, TLI_TLG_GRAD, "can only be no");
    desc->no_grad = t->values[TLI_TLG_GRAD].text != NULL;
    desc->keep = t->values[TLI_TLG_KEEP].text != NULL;
    desc->fixed = t->values[TLI_TLG_FIXED].text != NULL;
    return TL_OK;
}

// Cut the next item off a list "a,b,c"; its number of items is its commas + 1.
static tli_word tli_next_item(tli_word *list) {
    tli_word item = *list;
    item.length = 0;
    while (item.length < list->length && item.text[item.length] != ',') item.length++;
    list->text += item.length + (item.length < list->length);
    list->length -= item.length + (item.length < list->length);
    return item;
}

static int32_t tli_count_items(tli_word list) {
    int32_t count = 1;
    size_t i;
    for (i = 0; i < list.length; i++) count += list.text[i] == ',';
    return count;
}

static tl_result tli_read_lists(tli_tlg *t, tl_node_desc *desc) {
    tli_word out = t->values[TLI_TLG_OUT], in = t->values[TLI_TLG_IN];
    void *bytes = t->bytes, *inputs = t->inputs;
    int32_t k;
    int ok;
    desc->output_count = tli_count_items(out);
    desc->input_count = tli_word_is(in, "-") ? 0 : tli_count_items(in);
    ok = tli_grow(t->rules.env, &bytes, &t->bytes_capacity, 0, desc->output_count, sizeof *t->bytes) &&
         tli_grow(t->rules.env, &inputs, &t->input_capacity, 0, desc->input_count, sizeof *t->inputs);
    desc->output_bytes = t->bytes = (uint64_t *)bytes;
    desc->inputs = t->inputs = (tl_tensor *)inputs;
    if (!ok) return tli_fail(t->rules.env, TL_ERROR_NO_MEMORY, t->rules.function, "no memory for a line");
    for (k = 0; k < desc->output_count; k++)
        if (!tli_read_u64(tli_next_item(&out), &t->bytes[k]))
            return tli_fail_key(t, TLI_TLG_OUT, "must be numbers below 2^64, with commas between them");
    for (k = 0; k < desc->input_count; k++) {
        tli_word item = tli_next_item(&in);
        if (!tli_read_tensor(item.text, item.length, &t->inputs[k]))
            return tli_fail_key(t, TLI_TLG_IN, "must be - or tensors like 3 or 3.1, with commas between them");
    }
    return TL_OK;
}

// Append a word to the texts of the line, which have room for it.
static const char *tli_keep_word(char **at, tli_word word) {
    const char *text = *at;
    tli_copy(*at, word.text, word.length);
    (*at)[word.length] = 0;
    *at += word.length + 1;
    return text;
}

static tl_result tli_read_node(tli_tlg *t, tli_reader *r) {
    tl_node_desc desc;
    tli_word id, name, op, unit, needs;
    void *text = t->text;
    char *at;
    int32_t number;
    int ok;
    tl_result result;
    if (!tli_next_word(r, &id) || !tli_read_i32(id, &number) || number != t->graph->node_count)
        return tli_fail_word(t, id, "node ids must be 0, 1, 2, ... in this order");
    if (!tli_next_word(r, &name) || !tli_next_word(r, &op))
        return tli_fail_read(t, "node: a name and an op must follow the id");
    tli_zero(&desc, sizeof desc);
    result = tli_read_attributes(t, r);
    if (!result) result = tli_read_numbers(t, &desc);
    if (!result) result = tli_read_lists(t, &desc);
    if (result) return result;
    unit = t->values[TLI_TLG_UNIT];
    needs = t->values[TLI_TLG_NEEDS];
    if (unit.text && !unit.length) return tli_fail_key(t, TLI_TLG_UNIT, "needs a value");
    ok = tli_grow(t->rules.env, &text, &t->text_capacity, 0,
                  (int64_t)(name.length + op.length + unit.length + needs.length + 4), 1);
    at = t->text = (char *)text;
    if (!ok) return tli_fail(t->rules.env, TL_ERROR_NO_MEMORY, t->rules.function, "no memory for a line");
    desc.name = tli_keep_word(&at, name);
    desc.op = tli_keep_word(&at, op);
    desc.unit = tli_keep_word(&at, unit);
    desc.needs = tli_keep_word(&at, needs);
    return tli_add_node(&t->rules, t->graph, &desc);
}

static tl_result tli_read_line(tli_tlg *t, tli_reader *r, tli_word first) {
    tli_word word, more;
    if (!t->has_header) {
        if (!tli_word_is(first, "tlg")) return tli_fail_word(t, first, "a graph must start with tlg 1");
        if (!tli_next_word(r, &word) || !tli_word_is(word, "1") || tli_next_word(r, &more))
            return tli_fail_word(t, first, "the version must be 1");
        t->has_header = 1;
        return TL_OK;
    }
    if (tli_word_is(first, "node")) return tli_read_node(t, r);
    if (!tli_word_is(first, "batch")) return tli_fail_word(t, first, "a line must start with node or batch");
    if (t->graph->batch || t->graph->node_count)
        return tli_fail_word(t, first, "must stand once, and above the nodes");
    if (!tli_next_word(r, &word) || !tli_read_u64(word, &t->graph->batch) || !t->graph->batch ||
        tli_next_word(r, &more))
        return tli_fail_word(t, first, "must be one number from 1 to 2^64 - 1");
    return TL_OK;
}

// The line on which a node stands, in a text whose lines are right.
static int32_t tli_find_line(const char *text, size_t length, int64_t node) {
    tli_reader r = tli_reader_of(text, length);
    tli_word word;
    while (node >= 0 && tli_next_line(&r))
        if (tli_next_word(&r, &word) && tli_word_is(word, "node")) node--;
    return r.line;
}

static tl_result tli_read_tlg(tli_tlg *t, const char *text, size_t length) {
    tli_reader r;
    tli_word word;
    tl_result result;
    int64_t found;
    if (length > TLI_TEXT_LIMIT)
        return tli_fail(t->rules.env, TL_ERROR_PARSE, t->rules.function, "length: must not exceed 2^30 bytes");
    t->rules.line = tli_find_control(text, length);
    if (t->rules.line) return tli_fail_read(t, "text: holds a control character");
    r = tli_reader_of(text, length);
    while (tli_next_line(&r)) {
        t->rules.line = r.line;
        if (!tli_next_word(&r, &word)) continue;
        result = tli_read_line(t, &r, word);
        if (result) return result;
    }
    t->rules.line = r.line ? r.line : 1;
    if (!t->has_header) return tli_fail_read(t, "text: must start with tlg 1");
    if (!t->graph->node_count) return tli_fail_read(t, "text: ends before the first node");
    result = tli_find_duplicate(&t->rules, t->graph, &found);
    if (result || found < 0) return result;
    t->rules.line = tli_find_line(text, length, found);
    return tli_fail_item(&t->rules, TL_ERROR_INVALID_ARG, "node", found, tl_name_node(t->graph, (int32_t)found),
                         "name: must be unique");
}

static tl_result tli_parse_tlg(tl_env *env, const char *function, const char *text, size_t length,
                               tl_graph *graph) {
    tli_tlg t;
    tl_result result;
    tli_zero(&t, sizeof t);
    t.rules = tli_rules_of(env, function);
    t.graph = graph;
    tl_init_graph(graph);
    result = tli_read_tlg(&t, text, length);
    tli_release(env, t.inputs);
    tli_release(env, t.bytes);
    tli_release(env, t.text);
    if (result) tl_free_graph(env, graph);
    return result;
}

TLI_IMPL tl_result tl_parse_graph(tl_env *env, const char *text, size_t length, tl_graph *graph) {
    TL_ASSERT((text || !length) && graph);
    return tli_parse_tlg(env, "tl_parse_graph", text ? text : "", length, graph);
}

#ifndef TL_NO_STDIO
// -- files --

static tl_result tli_fail_path(tl_env *env, tl_result code, const char *function, const char *rule,
                               const char *path) {
    tli_writer w = tli_begin_error(env, code, function);
    tli_put(&w, "path: "); tli_put(&w, rule); tli_put(&w, " "); tli_put(&w, path);
    return tli_end_error(env, &w, code);
}

// A whole file; release the text with tli_release.
static tl_result tli_read_file(tl_env *env, const char *function, const char *path, char **text,
                               size_t *length) {
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    int32_t capacity = 0;
    size_t got = 1;
    tl_result result = TL_OK;
    *text = NULL;
    *length = 0;
    if (!file) return tli_fail_path(env, TL_ERROR_IO, function, "cannot open", path);
    while (!result && got) {
        if (*length > TLI_TEXT_LIMIT) {
            result = tli_fail_path(env, TL_ERROR_PARSE, function, "more than 2^30 bytes in", path);
        } else if (!tli_grow(env, &bytes, &capacity, (int32_t)*length, (int64_t)*length + 4096, 1)) {
            result = tli_fail_path(env, TL_ERROR_NO_MEMORY, function, "no memory to hold", path);
        } else {
            got = fread((char *)bytes + *length, 1, (size_t)capacity - *length, file);
            *length += got;
        }
    }
    if (!result && ferror(file)) result = tli_fail_path(env, TL_ERROR_IO, function, "cannot read", path);
    fclose(file);
    *text = (char *)bytes;
    if (!result) return TL_OK;
    tli_release(env, bytes);
    *text = NULL;
    *length = 0;
    return result;
}

TLI_IMPL tl_result tl_read_graph(tl_env *env, const char *path, tl_graph *graph) {
    char *text;
    size_t length;
    tl_result result;
    TL_ASSERT(path && graph);
    tl_init_graph(graph);
    result = tli_read_file(env, "tl_read_graph", path, &text, &length);
    if (result) return result;
    result = tli_parse_tlg(env, "tl_read_graph", text, length, graph);
    tli_release(env, text);
    return result;
}

TLI_IMPL tl_result tl_write_graph(tl_env *env, const tl_graph *graph, const char *path) {
    size_t length;
    char *text;
    FILE *file;
    int ok;
    TL_ASSERT(graph && path);
    length = tl_print_graph(graph, NULL, 0);
    text = (char *)tli_alloc_array(env, (uint64_t)length + 1, 1);
    if (!text)
        return tli_fail_path(env, TL_ERROR_NO_MEMORY, "tl_write_graph", "no memory to print for", path);
    tl_print_graph(graph, text, length + 1);
    file = fopen(path, "wb");
    ok = file && fwrite(text, 1, length, file) == length;
    if (file && fclose(file)) ok = 0;
    tli_release(env, text);
    if (ok) return TL_OK;
    return tli_fail_path(env, TL_ERROR_IO, "tl_write_graph", file ? "cannot write" : "cannot open", path);
}
#endif
#endif

#ifndef TL_NO_PLANNERS
// -- layers: what every one of them does --

#define TLI_NEEDS(id, name, needs) needs,
static const char *const tli_elementwise_names[] = { TL_ELEMENTWISES(TLI_NAME) };
static const char *const tli_elementwise_needs[] = { TL_ELEMENTWISES(TLI_NEEDS) };
static const char *const tli_pool_names[] = { TL_POOLS(TLI_NAME) };
static const char *const tli_attention_names[] = { TL_ATTENTIONS(TLI_NAME) };
static const char *const tli_cell_names[] = { TL_CELLS(TLI_NAME) };
#undef TLI_NEEDS

// Fields of a desc that only some layers read, as bits.
#define TLI_FIELD_ACTIVATION 1u
#define TLI_FIELD_INPLACE    2u
#define TLI_FIELD_BIAS       4u
#define TLI_FIELD_FLATTEN    8u
#define TLI_FIELD_CHANNELS   16u
#define TLI_FIELD_KERNEL     32u
#define TLI_FIELD_STRIDE     64u
#define TLI_FIELD_PADDING    128u
#define TLI_FIELD_DILATION   256u
#define TLI_FIELD_GROUPS     512u
#define TLI_FIELD_POSITIONS  1024u
#define TLI_FIELD_HEADS      2048u
#define TLI_FIELD_VOCABULARY 4096u
#define TLI_FIELD_EXTRA      8192u
#define TLI_CONVOLUTION (TLI_FIELD_ACTIVATION | TLI_FIELD_BIAS | TLI_FIELD_CHANNELS | TLI_FIELD_KERNEL | \
                         TLI_FIELD_STRIDE | TLI_FIELD_PADDING | TLI_FIELD_DILATION | TLI_FIELD_GROUPS)

// A layer that is being made. The first broken rule sticks, and so does the first overflow.
typedef struct tli_layer {
    tli_graph_rules rules;
    tl_graph     *graph;
    tl_layer_desc desc;           // zero where the caller gave none
    tl_node_desc  node;           // its costs, needs and bytes are filled in by the layer
    tl_value      out;            // precision and shape of the result
    const char   *rule;
    tl_result     code;
    int32_t       reads_in, reads_out;  // what backward reads
} tli_layer;

static void tli_break(tli_layer *layer, tl_result code, const char *rule) {
    if (layer->rule) return;
    layer->rule = rule;
    layer->code = code;
}

static void tli_break_rule(tli_layer *layer, const char *rule) { tli_break(layer, TL_ERROR_INVALID_ARG, rule); }

#define TLI_SHAPE_RULE "shape: bytes and costs must fit 64 bits"

static uint64_t tli_layer_mul(tli_layer *layer, uint64_t a, uint64_t b) {
    uint64_t product;
    if (tli_mul_u64(a, b, &product)) return product;
    tli_break(layer, TL_ERROR_OVERFLOW, TLI_SHAPE_RULE);
    return 0;
}

static uint64_t tli_layer_add(tli_layer *layer, uint64_t a, uint64_t b) {
    uint64_t sum;
    if (tli_add_u64(a, b, &sum)) return sum;
    tli_break(layer, TL_ERROR_OVERFLOW, TLI_SHAPE_RULE);
    return 0;
}

static uint64_t tli_or_default(uint64_t value, uint64_t fallback) { return value ? value : fallback; }

static uint64_t tli_element_size(tl_precision precision) {
    switch (precision) {
    case TL_PRECISION_FULL:   return 8;
    case TL_PRECISION_SINGLE: case TL_PRECISION_MIXED: return 4;
    case TL_PRECISION_HALF:   case TL_PRECISION_BF16:  return 2;
    case TL_PRECISION_COUNT:  break;
    }
    return 0;
}

static uint64_t tli_find_positions(tli_layer *layer, tl_shape shape) {
    return tli_layer_mul(layer, shape.batch, tli_layer_mul(layer, shape.height, shape.width));
}

static uint64_t tli_find_elements(tli_layer *layer, tl_shape shape) {
    return tli_layer_mul(layer, tli_find_positions(layer, shape), shape.channels);
}

// Fields that this layer has no use for must be zero.
static const char *tli_check_fields(const tl_layer_desc *desc, uint32_t known) {
    static const char *const rules[] = {
        "activation: must be none here", "inplace: must be 0 here", "no_bias: must be 0 here",
        "flatten: must be 0 here", "channels: must be 0 here", "kernel: must be 0 here",
        "stride: must be 0 here", "padding: must be 0 here", "dilation: must be 0 here",
        "groups: must be 0 here", "height, width: must be 0 here", "heads: must be 0 here",
        "vocabulary: must be 0 here", "saved_bytes, fwork_bytes, bwork_bytes: must be 0 here"
    };
    uint64_t values[14];
    int32_t i;
    values[0] = desc->activation != TL_ELEMENTWISE_NONE;
    values[1] = desc->inplace != 0;
    values[2] = desc->no_bias != 0;
    values[3] = desc->flatten != 0;
    values[4] = desc->channels;
    values[5] = desc->kernel | desc->kernel_width;
    values[6] = desc->stride | desc->stride_width;
    values[7] = desc->padding | desc->padding_width;
    values[8] = desc->dilation;
    values[9] = desc->groups;
    values[10] = desc->height | desc->width;
    values[11] = desc->heads;
    values[12] = desc->vocabulary;
    values[13] = desc->saved_bytes | desc->fwork_bytes | desc->bwork_bytes;
    for (i = 0; i < 14; i++)
        if (values[i] && !(known >> i & 1)) return rules[i];
    return NULL;
}

// A value that some call of this graph made, with the bytes that its shape says.
static void tli_check_value(tli_layer *layer, const tl_value *value) {
    int32_t tensor = tli_index_tensor(layer->graph, layer->graph->node_count, value->tensor);
    uint64_t bytes;
    if (!tli_is_below((int64_t)value->precision, TL_PRECISION_COUNT)) {
        tli_break_rule(layer, "input: unknown precision");
        return;
    }
    bytes = tli_layer_mul(layer, tli_find_elements(layer, value->shape), tli_element_size(value->precision));
    if (!value->shape.batch || !value->shape.channels || !value->shape.height || !value->shape.width)
        tli_break_rule(layer, "input: no call made this value");
    else if (tensor < 0) tli_break_rule(layer, "input: there is no such tensor");
    else if (layer->graph->outputs[tensor].bytes != bytes)
        tli_break_rule(layer, "input: its shape does not have the bytes of its tensor");
}

// Begin a layer: its result has precision and shape of the first input, until something else is said.
static tli_layer tli_start_layer(tl_env *env, const char *function, tl_graph *graph,
                                 const tl_layer_desc *desc, uint32_t known, const tl_value *inputs,
                                 int32_t input_count) {
    tli_layer layer;
    int32_t i;
    tli_zero(&layer, sizeof layer);
    layer.rules = tli_rules_of(env, function);
    layer.graph = graph;
    if (desc) layer.desc = *desc;
    layer.node.name = layer.desc.name;
    for (i = 0; i < input_count; i++) tli_check_value(&layer, &inputs[i]);
    if (input_count > 0) layer.out = inputs[0];
    layer.rule = layer.rule ? layer.rule : tli_check_fields(&layer.desc, known | TLI_FIELD_EXTRA);
    if (layer.rule && !layer.code) layer.code = TL_ERROR_INVALID_ARG;
    if (!tli_is_below(layer.desc.precision, TL_PRECISION_COUNT + 1))
        tli_break_rule(&layer, "precision: unknown");
    else if (layer.desc.precision) layer.out.precision = (tl_precision)(layer.desc.precision - 1);
    if ((layer.desc.inplace | layer.desc.no_bias | layer.desc.flatten) & ~1)
        tli_break_rule(&layer, "inplace, no_bias, flatten: must be 0 or 1");
    return layer;
}

// The activation runs in place on the result, so its backward may read nothing else.
static void tli_add_activation(tli_layer *layer, tl_node_desc *node, uint64_t elements, char *op, size_t size) {
    tl_elementwise activation = layer->desc.activation;
    tli_writer w = tli_writer_of(op, size);
    if (!tli_is_below((int64_t)activation, TL_ELEMENTWISE_COUNT) || activation == TL_ELEMENTWISE_NONE ||
        !tli_same_text(tli_elementwise_needs[activation], "out")) {
        tli_break_rule(layer, "activation: its backward must read its output alone: make it a node of its own");
        return;
    }
    tli_put(&w, node->op); tli_put(&w, "+"); tli_put(&w, tli_elementwise_names[activation]);
    tli_finish(&w);
    node->op = op;
    layer->reads_out = 1;
    node->fwd_cost = tli_layer_add(layer, node->fwd_cost, elements);
    node->bwd_cost = tli_layer_add(layer, node->bwd_cost, elements);
}

static tl_result tli_refuse_layer(const tli_layer *layer, const char *name) {
    return tli_fail_item(&layer->rules, layer->code, "node", layer->graph->node_count, name, layer->rule);
}

// Add the node. One output of the layer's shape, unless output_bytes and output_count are set.
static tl_result tli_finish_layer(tli_layer *layer, const tl_tensor *inputs, int32_t input_count,
                                  tl_value *output) {
    static const char *const needs[] = { "none", "in", "out", "in,out" };
    uint64_t elements = tli_find_elements(layer, layer->out.shape);
    uint64_t bytes = tli_layer_mul(layer, elements, tli_element_size(layer->out.precision));
    tl_node_desc node = layer->node;
    char op[48];
    tl_result result;
    tli_zero(output, sizeof *output);
    if (layer->desc.activation && !layer->rule) tli_add_activation(layer, &node, elements, op, sizeof op);
    node.saved_bytes = tli_layer_add(layer, node.saved_bytes, layer->desc.saved_bytes);
    node.fwork_bytes = tli_layer_add(layer, node.fwork_bytes, layer->desc.fwork_bytes);
    node.bwork_bytes = tli_layer_add(layer, node.bwork_bytes, layer->desc.bwork_bytes);
    node.unit = layer->desc.unit; node.layer = layer->desc.layer;
    node.no_grad = layer->desc.no_grad; node.keep = layer->desc.keep;
    node.inplace = layer->desc.inplace;
    node.inputs = inputs; node.input_count = input_count;
    if (!node.output_count) { node.output_bytes = &bytes; node.output_count = 1; }
    if (!node.needs) node.needs = needs[layer->reads_in + 2 * layer->reads_out];
    if (node.no_grad) {
        node.needs = "none";
        node.bwd_cost = node.saved_bytes = node.bwork_bytes = 0;
    }
    if (layer->rule) return tli_refuse_layer(layer, node.name ? node.name : node.op);
    result = tli_add_node(&layer->rules, layer->graph, &node);
    if (result) return result;
    *output = layer->out;
    output->tensor.node = layer->graph->node_count - 1;
    output->tensor.output = 0;
    return TL_OK;
}

// Costs of a layer with weights, and the weights.
static void tli_set_weights(tli_layer *layer, uint64_t fwd_cost, uint64_t weights) {
    layer->node.fwd_cost = fwd_cost;
    layer->node.bwd_cost = tli_layer_mul(layer, 2, fwd_cost);
    layer->node.param_bytes = tli_layer_mul(layer, weights, tli_element_size(layer->out.precision));
    layer->reads_in = 1;
}

static void tli_set_cost(tli_layer *layer, uint64_t cost) {
    layer->node.fwd_cost = layer->node.bwd_cost = cost;
}

TLI_IMPL tl_result tl_add_input(tl_env *env, tl_graph *graph, const char *name, tl_shape shape,
                                tl_precision precision, tl_value *output) {
    tli_layer layer;
    tl_result result;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_input", graph, NULL, 0, NULL, 0);
    layer.node.name = name;
    layer.node.op = "input";
    layer.out.precision = precision;
    layer.out.shape.batch = tli_or_default(shape.batch, 1);
    layer.out.shape.channels = tli_or_default(shape.channels, 1);
    layer.out.shape.height = tli_or_default(shape.height, 1);
    layer.out.shape.width = tli_or_default(shape.width, 1);
    if (!tli_is_below((int64_t)precision, TL_PRECISION_COUNT)) tli_break_rule(&layer, "precision: unknown");
    result = tli_finish_layer(&layer, NULL, 0, output);
    if (!result && !graph->batch) graph->batch = output->shape.batch;
    return result;
}

// -- layers: matrices and windows --

TLI_IMPL tl_result tl_add_dense(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                tl_value *output) {
    tli_layer layer;
    uint64_t inner, channels, bias;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_dense", graph, desc,
                            TLI_FIELD_CHANNELS | TLI_FIELD_BIAS | TLI_FIELD_FLATTEN | TLI_FIELD_ACTIVATION,
                            &input, 1);
    inner = input.shape.channels;
    if (layer.desc.flatten) {
        inner = tli_layer_mul(&layer, inner, tli_layer_mul(&layer, input.shape.height, input.shape.width));
        layer.out.shape.height = layer.out.shape.width = 1;
    }
    channels = layer.out.shape.channels = tli_or_default(layer.desc.channels, inner);
    bias = !layer.desc.no_bias;
    layer.node.op = "linear";
    tli_set_weights(&layer, tli_layer_mul(&layer, tli_find_elements(&layer, layer.out.shape),
                                          tli_layer_add(&layer, tli_layer_mul(&layer, 2, inner), bias)),
                    tli_layer_mul(&layer, channels, tli_layer_add(&layer, inner, bias)));
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

// One direction of a window, defaults filled in.
typedef struct tli_window { uint64_t kernel, stride, padding, span; } tli_window;

// What a window of a desc says: the width follows the height where it is 0.
static tli_window tli_find_window(tli_layer *layer, int is_width, int is_pool) {
    const tl_layer_desc *desc = &layer->desc;
    uint64_t kernel = is_width && desc->kernel_width ? desc->kernel_width : desc->kernel;
    uint64_t stride = is_width && desc->stride_width ? desc->stride_width : desc->stride;
    uint64_t padding = is_width && desc->padding_width ? desc->padding_width : desc->padding;
    tli_window window;
    window.kernel = tli_or_default(kernel, 1);
    window.stride = tli_or_default(stride, is_pool ? window.kernel : 1);
    window.padding = padding ? padding : (window.kernel - 1) / 2;
    if (padding == TL_NO_PADDING) window.padding = 0;
    window.span = tli_layer_mul(layer, window.kernel - 1, tli_or_default(desc->dilation, 1));
    window.span = tli_layer_add(layer, window.span, 1);
    return window;
}

// Positions after a window has gone over them.
static uint64_t tli_shrink(tli_layer *layer, uint64_t extent, const tli_window *window) {
    uint64_t padded = tli_layer_add(layer, extent, tli_layer_mul(layer, 2, window->padding));
    if (padded < window->span) {
        tli_break_rule(layer, "kernel: larger than the padded input");
        return 1;
    }
    return (padded - window->span) / window->stride + 1;
}

static uint64_t tli_enlarge(tli_layer *layer, uint64_t extent, const tli_window *window) {
    uint64_t cut = tli_layer_mul(layer, 2, window->padding);
    uint64_t grown = tli_layer_add(layer, tli_layer_mul(layer, extent - 1, window->stride), window->span);
    if (grown <= cut) {
        tli_break_rule(layer, "padding: nothing is left of the result");
        return 1;
    }
    return grown - cut;
}

// Convolutions of all kinds. Of a transposed one, the elements of the input meet the taps.
static tl_result tli_add_convolution(tli_layer *layer, const tl_value *input, int transposed,
                                     tl_value *output) {
    tli_window height = tli_find_window(layer, 0, 0), width = tli_find_window(layer, 1, 0);
    uint64_t groups = tli_or_default(layer->desc.groups, 1), inner = input->shape.channels;
    uint64_t channels = tli_or_default(layer->desc.channels, inner), bias = !layer->desc.no_bias;
    uint64_t taps = tli_layer_mul(layer, height.kernel, width.kernel), weights, cost;
    tl_shape *shape = &layer->out.shape;
    if (inner % groups || channels % groups)
        tli_break_rule(layer, "groups: must divide the channels of the input and of the result");
    shape->channels = channels;
    if (!layer->rule && transposed) {
        shape->height = tli_enlarge(layer, shape->height, &height);
        shape->width = tli_enlarge(layer, shape->width, &width);
    } else if (!layer->rule) {
        shape->height = tli_shrink(layer, shape->height, &height);
        shape->width = tli_shrink(layer, shape->width, &width);
    }
    weights = tli_layer_mul(layer, channels, tli_layer_mul(layer, inner / groups, taps));
    cost = tli_layer_mul(layer, tli_find_positions(layer, transposed ? input->shape : *shape),
                         tli_layer_mul(layer, 2, weights));
    if (bias) cost = tli_layer_add(layer, cost, tli_find_elements(layer, *shape));
    layer->node.op = transposed ? "convt2d" : "conv2d";
    tli_set_weights(layer, cost, tli_layer_add(layer, weights, bias ? channels : 0));
    return tli_finish_layer(layer, &input->tensor, 1, output);
}

TLI_IMPL tl_result tl_add_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                 tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_conv2d", graph, desc, TLI_CONVOLUTION, &input, 1);
    return tli_add_convolution(&layer, &input, 0, output);
}

TLI_IMPL tl_result tl_add_depthwise_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                           tl_value input, tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_depthwise_conv2d", graph, desc, TLI_CONVOLUTION & ~TLI_FIELD_GROUPS,
                            &input, 1);
    layer.desc.groups = input.shape.channels;
    return tli_add_convolution(&layer, &input, 0, output);
}

TLI_IMPL tl_result tl_add_transposed_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                            tl_value input, tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_transposed_conv2d", graph, desc, TLI_CONVOLUTION, &input, 1);
    return tli_add_convolution(&layer, &input, 1, output);
}

static uint64_t tli_divide_up(uint64_t a, uint64_t b) { return a / b + (a % b > 0); }

TLI_IMPL tl_result tl_add_pool(tl_env *env, tl_graph *graph, tl_pool kind, const tl_layer_desc *desc,
                               tl_value input, tl_value *output) {
    const uint32_t windows = TLI_FIELD_KERNEL | TLI_FIELD_STRIDE | TLI_FIELD_PADDING;
    tli_layer layer;
    uint64_t taps = 1;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_pool", graph, desc,
                            kind == TL_POOL_GLOBAL ? TLI_FIELD_POSITIONS : windows, &input, 1);
    layer.node.op = tl_name_pool(kind);
    if (!tli_is_below((int64_t)kind, TL_POOL_COUNT)) tli_break_rule(&layer, "kind: unknown");
    if (!layer.rule && kind == TL_POOL_GLOBAL) {
        layer.out.shape.height = tli_or_default(layer.desc.height, 1);
        layer.out.shape.width = tli_or_default(layer.desc.width, tli_or_default(layer.desc.height, 1));
        if (layer.out.shape.height > input.shape.height || layer.out.shape.width > input.shape.width)
            tli_break_rule(&layer, "height, width: more positions than the input has");
        taps = tli_layer_mul(&layer, tli_divide_up(input.shape.height, layer.out.shape.height),
                             tli_divide_up(input.shape.width, layer.out.shape.width));
    } else if (!layer.rule) {
        tli_window height = tli_find_window(&layer, 0, 1), width = tli_find_window(&layer, 1, 1);
        layer.out.shape.height = tli_shrink(&layer, input.shape.height, &height);
        layer.out.shape.width = tli_shrink(&layer, input.shape.width, &width);
        taps = tli_layer_mul(&layer, height.kernel, width.kernel);
    }
    tli_set_cost(&layer, tli_layer_mul(&layer, tli_find_elements(&layer, layer.out.shape), taps));
    layer.reads_in = kind == TL_POOL_MAX;
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

TLI_IMPL tl_result tl_add_upsample(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                   tl_value *output) {
    tli_layer layer;
    tli_window height, width;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_upsample", graph, desc, TLI_FIELD_KERNEL | TLI_FIELD_STRIDE,
                            &input, 1);
    height = tli_find_window(&layer, 0, 0);
    width = tli_find_window(&layer, 1, 0);
    layer.node.op = "upsample";
    layer.out.shape.height = tli_layer_mul(&layer, input.shape.height, height.stride);
    layer.out.shape.width = tli_layer_mul(&layer, input.shape.width, width.stride);
    tli_set_cost(&layer, tli_layer_mul(&layer, tli_find_elements(&layer, layer.out.shape),
                                       tli_layer_mul(&layer, height.kernel, width.kernel)));
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

// -- layers: what goes over its elements --

static tl_result tli_add_norm(tl_env *env, const char *function, tl_graph *graph, const char *op,
                              const tl_layer_desc *desc, const tl_value *input, tl_value *output) {
    tli_layer layer = tli_start_layer(env, function, graph, desc,
                                      TLI_FIELD_BIAS | TLI_FIELD_ACTIVATION | TLI_FIELD_INPLACE, input, 1);
    layer.node.op = op;
    tli_set_weights(&layer, tli_find_elements(&layer, layer.out.shape),
                    tli_layer_mul(&layer, input->shape.channels, layer.desc.no_bias ? 1 : 2));
    return tli_finish_layer(&layer, &input->tensor, 1, output);
}

TLI_IMPL tl_result tl_add_batch_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                     tl_value *output) {
    TL_ASSERT(graph && output);
    return tli_add_norm(env, "tl_add_batch_norm", graph, "bn", desc, &input, output);
}

TLI_IMPL tl_result tl_add_layer_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                     tl_value *output) {
    TL_ASSERT(graph && output);
    return tli_add_norm(env, "tl_add_layer_norm", graph, "layernorm", desc, &input, output);
}

TLI_IMPL tl_result tl_add_softmax(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                  tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_softmax", graph, desc, TLI_FIELD_INPLACE, &input, 1);
    layer.node.op = "softmax";
    layer.reads_out = 1;
    tli_set_cost(&layer, tli_find_elements(&layer, layer.out.shape));
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

// Inputs of an elementwise node: 1, 2, or -2 = 2 and more.
static int32_t tli_find_arity(tl_elementwise kind) {
    if (kind == TL_ELEMENTWISE_ADD || kind == TL_ELEMENTWISE_MUL) return -2;
    return kind == TL_ELEMENTWISE_SUB ? 2 : 1;
}

static int tli_fits_extent(uint64_t extent, uint64_t whole) { return extent == whole || extent == 1; }

// The tensors of values, to be released; NULL and a broken rule where there is no memory.
static tl_tensor *tli_take_tensors(tli_layer *layer, const tl_value *values, int32_t count) {
    tl_tensor *tensors = (tl_tensor *)tli_alloc_array(layer->rules.env, (uint64_t)count, sizeof *tensors);
    int32_t i;
    if (!tensors) tli_break(layer, TL_ERROR_NO_MEMORY, "no memory for its inputs");
    for (i = 0; i < count && tensors; i++) tensors[i] = values[i].tensor;
    return tensors;
}

static tl_result tli_finish_inputs(tli_layer *layer, const tl_value *inputs, int32_t count, tl_value *output) {
    tl_tensor *tensors = tli_take_tensors(layer, inputs, count);
    tl_result result = tli_finish_layer(layer, tensors, tensors ? count : 0, output);
    tli_release(layer->rules.env, tensors);
    return result;
}

TLI_IMPL tl_result tl_add_elementwise(tl_env *env, tl_graph *graph, tl_elementwise kind,
                                      const tl_layer_desc *desc, const tl_value *inputs, int32_t input_count,
                                      tl_value *output) {
    tli_layer layer;
    tl_shape whole;
    int32_t arity = tli_find_arity(kind), count = inputs && input_count > 0 ? input_count : 0, i;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_elementwise", graph, desc, TLI_FIELD_ACTIVATION | TLI_FIELD_INPLACE,
                            inputs, count);
    layer.node.op = tl_name_elementwise(kind);
    if (!tli_is_below((int64_t)kind, TL_ELEMENTWISE_COUNT) || kind == TL_ELEMENTWISE_NONE)
        tli_break_rule(&layer, "kind: unknown, or none");
    else if (arity < 0 ? count < 2 : count != arity)
        tli_break_rule(&layer, "inputs: add and mul take 2 or more, sub 2, the others 1");
    if (!layer.rule) {
        whole = layer.out.shape;
        layer.reads_in = tli_same_text(tli_elementwise_needs[kind], "in");
        layer.reads_out = tli_same_text(tli_elementwise_needs[kind], "out");
        for (i = 1; i < count; i++)
            if (!tli_fits_extent(inputs[i].shape.batch, whole.batch) ||
                !tli_fits_extent(inputs[i].shape.channels, whole.channels) ||
                !tli_fits_extent(inputs[i].shape.height, whole.height) ||
                !tli_fits_extent(inputs[i].shape.width, whole.width))
                tli_break_rule(&layer, "inputs: each extent must be that of the first input, or 1");
        tli_set_cost(&layer, tli_layer_mul(&layer, tli_find_elements(&layer, whole),
                                           count > 1 ? (uint64_t)count - 1 : 1));
    }
    return tli_finish_inputs(&layer, inputs, count, output);
}

TLI_IMPL tl_result tl_add_embedding(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                    tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_embedding", graph, desc, TLI_FIELD_CHANNELS | TLI_FIELD_VOCABULARY,
                            &input, 1);
    layer.node.op = "embedding";
    if (input.shape.channels != 1) tli_break_rule(&layer, "input: must have 1 channel, the id");
    if (!layer.desc.channels || !layer.desc.vocabulary)
        tli_break_rule(&layer, "channels, vocabulary: must be > 0");
    layer.out.shape.channels = layer.desc.channels;
    tli_set_weights(&layer, tli_find_elements(&layer, layer.out.shape),
                    tli_layer_mul(&layer, layer.desc.vocabulary, layer.desc.channels));
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

TLI_IMPL tl_result tl_add_loss(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                               const tl_value *labels, tl_value *output) {
    tli_layer layer;
    tl_value inputs[2];
    int32_t count = labels ? 2 : 1;
    tl_tensor tensors[2];
    TL_ASSERT(graph && output);
    inputs[0] = input;
    inputs[1] = labels ? *labels : input;
    tensors[0] = inputs[0].tensor;
    tensors[1] = inputs[1].tensor;
    layer = tli_start_layer(env, "tl_add_loss", graph, desc, 0, inputs, count);
    layer.node.op = "loss";
    layer.reads_in = 1;
    tli_set_cost(&layer, tli_find_elements(&layer, input.shape));
    layer.out.shape.channels = layer.out.shape.height = layer.out.shape.width = 1;
    return tli_finish_layer(&layer, tensors, count, output);
}

// -- layers: several inputs, several outputs --

TLI_IMPL tl_result tl_add_concat(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                 const tl_value *inputs, int32_t input_count, tl_value *output) {
    tli_layer layer;
    int32_t count = inputs && input_count > 0 ? input_count : 0, i;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_concat", graph, desc, 0, inputs, count);
    layer.node.op = "concat";
    if (!count) tli_break_rule(&layer, "inputs: there must be at least one");
    for (i = 1; i < count; i++) {
        const tl_shape *shape = &inputs[i].shape;
        if (shape->batch != inputs[0].shape.batch || shape->height != inputs[0].shape.height ||
            shape->width != inputs[0].shape.width || inputs[i].precision != inputs[0].precision)
            tli_break_rule(&layer, "inputs: all must have the same batch, height, width and precision");
        layer.out.shape.channels = tli_layer_add(&layer, layer.out.shape.channels, shape->channels);
    }
    tli_set_cost(&layer, tli_find_elements(&layer, layer.out.shape));
    return tli_finish_inputs(&layer, inputs, count, output);
}

// The parts of a split; 0 and a broken rule where they are not those of the input.
static void tli_find_parts(tli_layer *layer, const tl_value *input, const uint64_t *channels, int32_t count,
                           uint64_t *bytes, tl_value *outputs) {
    uint64_t sum = 0;
    int32_t k;
    if (!channels && input->shape.channels % (uint64_t)count)
        tli_break_rule(layer, "output_count: must divide the channels of the input");
    for (k = 0; k < count && !layer->rule; k++) {
        outputs[k] = layer->out;
        outputs[k].tensor.output = k;
        outputs[k].shape.channels = channels ? channels[k] : input->shape.channels / (uint64_t)count;
        if (!outputs[k].shape.channels) tli_break_rule(layer, "channels: each must be > 0");
        sum = tli_layer_add(layer, sum, outputs[k].shape.channels);
        bytes[k] = tli_layer_mul(layer, tli_find_elements(layer, outputs[k].shape),
                                 tli_element_size(outputs[k].precision));
    }
    if (!layer->rule && sum != input->shape.channels)
        tli_break_rule(layer, "channels: their sum must be that of the input");
}

TLI_IMPL tl_result tl_add_split(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                const uint64_t *channels, int32_t output_count, tl_value *outputs) {
    tli_layer layer;
    tl_value whole;
    uint64_t *bytes = NULL;
    int32_t count = output_count > 0 ? output_count : 0, k;
    tl_result result;
    TL_ASSERT(graph && (outputs || !count));
    layer = tli_start_layer(env, "tl_add_split", graph, desc, 0, &input, 1);
    layer.node.op = "split";
    if (count < 1) tli_break_rule(&layer, "output_count: must be > 0");
    else bytes = (uint64_t *)tli_alloc_array(env, (uint64_t)count, sizeof *bytes);
    if (count && !bytes) tli_break(&layer, TL_ERROR_NO_MEMORY, "no memory for its outputs");
    if (bytes) tli_find_parts(&layer, &input, channels, count, bytes, outputs);
    tli_set_cost(&layer, tli_find_elements(&layer, input.shape));
    layer.node.output_bytes = bytes;
    layer.node.output_count = count;
    result = tli_finish_layer(&layer, &input.tensor, 1, &whole);
    for (k = 0; k < count; k++) {
        if (result) tli_zero(&outputs[k], sizeof outputs[k]);
        else outputs[k].tensor.node = whole.tensor.node;
    }
    tli_release(env, bytes);
    return result;
}

// -- layers: attention --

// What the three kinds share: elements of one row of scores and costs, in FLOP.
typedef struct tli_scores {
    uint64_t rows;     // B heads T
    uint64_t weights;  // B heads T S
    uint64_t product;  // Q K^T, and the same again weights x V
    tl_shape value;    // of the result
} tli_scores;

static tli_scores tli_find_scores(tli_layer *layer, const tl_value *inputs, int32_t count) {
    uint64_t heads = tli_or_default(layer->desc.heads, 1), keys;
    const tl_value *last = &inputs[count - 1];
    tli_scores s;
    tli_zero(&s, sizeof s);
    s.value = inputs[0].shape;
    if (count == 1 && s.value.channels % 3)
        tli_break_rule(layer, "inputs: queries, keys and values in one tensor are 3 x the channels");
    if (count == 1) s.value.channels /= 3;
    if (s.value.channels % heads) tli_break_rule(layer, "heads: must divide the channels");
    if (count == 3 &&
        (inputs[1].shape.batch != s.value.batch || last->shape.batch != s.value.batch ||
         inputs[1].shape.channels != s.value.channels || last->shape.channels != s.value.channels ||
         inputs[1].shape.height != last->shape.height || inputs[1].shape.width != last->shape.width))
        tli_break_rule(layer, "inputs: batch and channels must be equal, and the tokens of the last two");
    keys = tli_layer_mul(layer, last->shape.height, last->shape.width);
    s.rows = tli_layer_mul(layer, tli_find_positions(layer, s.value), heads);
    s.weights = tli_layer_mul(layer, s.rows, keys);
    s.product = tli_layer_mul(layer, tli_layer_mul(layer, 2, tli_find_elements(layer, s.value)), keys);
    return s;
}

// One node: stored keeps the weights, tiled what it takes to make them again.
static tl_result tli_add_one_attention(tli_layer *layer, tl_attention kind, const tli_scores *s,
                                       const tl_tensor *inputs, int32_t count, tl_value *output) {
    uint64_t products = tli_layer_mul(layer, 2, s->product), size = tli_element_size(layer->out.precision);
    uint64_t number = size > 4 ? size : 4;
    tl_node_desc *node = &layer->node;
    layer->reads_in = 1;
    node->op = "attention";
    node->fwd_cost = tli_layer_add(layer, products, s->weights);
    node->bwd_cost = tli_layer_add(layer, tli_layer_mul(layer, 2, products), s->weights);
    if (kind == TL_ATTENTION_STORED) {
        node->saved_bytes = node->fwork_bytes = node->bwork_bytes = tli_layer_mul(layer, s->weights, size);
    } else {
        layer->reads_out = 1;
        node->bwd_cost = tli_layer_add(layer, node->bwd_cost, tli_layer_add(layer, s->product, s->weights));
        node->saved_bytes = node->bwork_bytes = tli_layer_mul(layer, s->rows, number);
    }
    layer->out.shape = s->value;
    return tli_finish_layer(layer, inputs, count, output);
}

// Start one of three nodes, called <name><ending>.
static tli_layer tli_start_part(const tli_layer *whole, const char *op, const char *ending, char *name,
                                size_t size) {
    tli_layer part = *whole;
    tli_writer w = tli_writer_of(name, size);
    part.node.op = op;
    if (!whole->desc.name) return part;
    tli_put(&w, whole->desc.name); tli_put(&w, ending);
    if (tli_finish(&w) >= size) tli_break_rule(&part, "name: " TLI_NAME_RULE);
    part.node.name = name;
    return part;
}

static tl_result tli_add_split_attention(const tli_layer *whole, const tli_scores *s, const tl_tensor *inputs,
                                         int32_t count, tl_value *output) {
    char name[TLI_NAME_LIMIT + 1];
    tli_layer part = tli_start_part(whole, "bmm", "_qk", name, sizeof name);
    tl_value scores, weights;
    tl_tensor last[2];
    tl_result result;
    // Rows of scores have a number for each key: their channels.
    part.out.shape.batch = s->rows; part.out.shape.height = part.out.shape.width = 1;
    part.out.shape.channels = s->rows ? s->weights / s->rows : 0;
    part.desc.keep = 0;
    part.reads_in = 1;
    part.node.fwd_cost = s->product;
    part.node.bwd_cost = tli_layer_mul(&part, 2, s->product);
    result = tli_finish_layer(&part, inputs, count == 3 ? 2 : 1, &scores);
    if (result) return result;
    part = tli_start_part(whole, "softmax", "_softmax", name, sizeof name);
    part.out = scores;
    part.desc.keep = 0;
    part.reads_out = 1;
    tli_set_cost(&part, s->weights);
    result = tli_finish_layer(&part, &scores.tensor, 1, &weights);
    if (result) return result;
    part = tli_start_part(whole, "bmm", "_av", name, sizeof name);
    part.reads_in = 1;
    part.node.fwd_cost = s->product;
    part.node.bwd_cost = tli_layer_mul(&part, 2, s->product);
    part.out.shape = s->value;
    last[0] = weights.tensor; last[1] = inputs[count - 1];
    return tli_finish_layer(&part, last, 2, output);
}

// Take back the nodes above a count, after a call that adds several has failed.
static void tli_cut_graph(tl_graph *graph, const tl_graph *before) {
    graph->node_count = before->node_count;
    graph->input_count = before->input_count;
    graph->tensor_count = before->tensor_count;
    graph->text_bytes = before->text_bytes;
}

TLI_IMPL tl_result tl_add_attention(tl_env *env, tl_graph *graph, tl_attention kind, const tl_layer_desc *desc,
                                    const tl_value *inputs, int32_t input_count, tl_value *output) {
    int32_t count = inputs && (input_count == 1 || input_count == 3) ? input_count : 0, i;
    tli_layer layer;
    tli_scores scores;
    tl_tensor tensors[3];
    tl_graph before;
    tl_result result;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, "tl_add_attention", graph, desc, TLI_FIELD_HEADS, inputs, count);
    if (!tli_is_below((int64_t)kind, TL_ATTENTION_COUNT)) tli_break_rule(&layer, "kind: unknown");
    if (!count) tli_break_rule(&layer, "inputs: there must be 1 or 3");
    if (kind == TL_ATTENTION_SPLIT &&
        (layer.desc.saved_bytes | layer.desc.fwork_bytes | layer.desc.bwork_bytes))
        tli_break_rule(&layer, "saved_bytes, fwork_bytes, bwork_bytes: must be 0 here");
    tli_zero(&scores, sizeof scores);
    if (!layer.rule) scores = tli_find_scores(&layer, inputs, count);
    for (i = 0; i < count; i++) tensors[i] = inputs[i].tensor;
    before = *graph;
    layer.node.op = "attention";
    if (layer.rule) result = tli_finish_layer(&layer, tensors, count, output);
    else if (kind == TL_ATTENTION_SPLIT)
        result = tli_add_split_attention(&layer, &scores, tensors, count, output);
    else result = tli_add_one_attention(&layer, kind, &scores, tensors, count, output);
    if (result) {
        tli_cut_graph(graph, &before);
        tli_zero(output, sizeof *output);
    }
    return result;
}

// -- layers: recurrent cells --

TLI_IMPL tl_result tl_add_recurrent(tl_env *env, tl_graph *graph, tl_cell kind, const tl_layer_desc *desc,
                                    tl_value input, const tl_value *state, tl_value *new_state) {
    static const char *const needs[] = { "in,out", "in", "in,out1" };
    static const uint64_t gate_counts[] = { 1, 3, 4 }, update_costs[] = { 0, 4, 5 };
    int known = tli_is_below((int64_t)kind, TL_CELL_COUNT);
    int32_t count = kind == TL_CELL_LSTM ? 2 : 1, i;
    uint64_t gates = known ? gate_counts[kind] : 1, units, inner, elements, product, bytes[2];
    tl_value values[3], whole;
    tl_tensor tensors[3];
    tli_layer layer;
    tl_result result;
    TL_ASSERT(graph && state && new_state);
    values[0] = input;
    for (i = 0; i < count; i++) values[i + 1] = state[i];
    for (i = 0; i <= count; i++) tensors[i] = values[i].tensor;
    layer = tli_start_layer(env, "tl_add_recurrent", graph, desc, TLI_FIELD_BIAS, values, count + 1);
    layer.node.op = tl_name_cell(kind);
    if (!known) tli_break_rule(&layer, "kind: unknown");
    for (i = 1; i <= count; i++)
        if (values[i].shape.batch != input.shape.batch || values[i].shape.channels != state[0].shape.channels ||
            values[i].shape.height != 1 || values[i].shape.width != 1)
            tli_break_rule(&layer, "state: must have the batch of the input, equal channels and one position");
    if (input.shape.height != 1 || input.shape.width != 1)
        tli_break_rule(&layer, "input: must have one position");
    units = layer.out.shape.channels = state[0].shape.channels;
    inner = tli_layer_add(&layer, tli_layer_mul(&layer, 2, tli_layer_add(&layer, input.shape.channels, units)),
                          !layer.desc.no_bias);
    elements = tli_find_elements(&layer, layer.out.shape);
    product = tli_layer_mul(&layer, tli_layer_mul(&layer, elements, gates), inner);
    tli_set_weights(&layer, product,
                    tli_layer_mul(&layer, tli_layer_mul(&layer, gates, units),
                                  tli_layer_add(&layer, tli_layer_add(&layer, input.shape.channels, units),
                                                !layer.desc.no_bias)));
    product = tli_layer_mul(&layer, elements, gates + (known ? update_costs[kind] : 0));
    layer.node.fwd_cost = tli_layer_add(&layer, layer.node.fwd_cost, product);
    layer.node.bwd_cost = tli_layer_add(&layer, layer.node.bwd_cost, product);
    bytes[0] = bytes[1] = tli_layer_mul(&layer, elements, tli_element_size(layer.out.precision));
    if (kind != TL_CELL_RNN) layer.node.saved_bytes = tli_layer_mul(&layer, gates, bytes[0]);
    layer.node.needs = known ? needs[kind] : NULL;
    layer.node.output_bytes = bytes;
    layer.node.output_count = count;
    result = tli_finish_layer(&layer, tensors, count + 1, &whole);
    for (i = 0; i < count; i++) {
        new_state[i] = whole;
        if (!result) new_state[i].tensor.output = i;
    }
    return result;
}

TLI_IMPL const char *tl_name_elementwise(tl_elementwise kind) {
    return tli_name(tli_elementwise_names, TL_ELEMENTWISE_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_pool(tl_pool kind) {
    return tli_name(tli_pool_names, TL_POOL_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_attention(tl_attention kind) {
    return tli_name(tli_attention_names, TL_ATTENTION_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_cell(tl_cell kind) {
    return tli_name(tli_cell_names, TL_CELL_COUNT, (int64_t)kind);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_elementwise(const char *text, tl_elementwise *kind) {
    int32_t value;
    int known;
    TL_ASSERT(text && kind);
    known = tli_parse_name(tli_elementwise_names, TL_ELEMENTWISE_COUNT, text, tli_text_length(text), &value);
    *kind = (tl_elementwise)value;
    return known;
}

TLI_IMPL int tl_parse_pool(const char *text, tl_pool *kind) {
    int32_t value;
    int known;
    TL_ASSERT(text && kind);
    known = tli_parse_name(tli_pool_names, TL_POOL_COUNT, text, tli_text_length(text), &value);
    *kind = (tl_pool)value;
    return known;
}

TLI_IMPL int tl_parse_attention(const char *text, tl_attention *kind) {
    int32_t value;
    int known;
    TL_ASSERT(text && kind);
    known = tli_parse_name(tli_attention_names, TL_ATTENTION_COUNT, text, tli_text_length(text), &value);
    *kind = (tl_attention)value;
    return known;
}

TLI_IMPL int tl_parse_cell(const char *text, tl_cell *kind) {
    int32_t value;
    int known;
    TL_ASSERT(text && kind);
    known = tli_parse_name(tli_cell_names, TL_CELL_COUNT, text, tli_text_length(text), &value);
    *kind = (tl_cell)value;
    return known;
}
#endif

// -- statistics --

typedef struct tli_census {
    const tl_graph *graph;
    int32_t  *ops;            // [nodes] index of its op
    int32_t  *firsts;         // [nodes] by op: the first node that has it
    int32_t  *last_readers;   // [tensors] node; the maker where nobody reads it
    int32_t  *last_uses;      // [tensors] call: F v is v, B v is 2 nodes - 1 - v
    int32_t  *first_grads;    // [tensors] call that makes its gradient
    int32_t  *marks;          // [tensors] last node that counted it
    int32_t  *levels;         // [nodes] longest path to it, then who is read here last, then who has to run
    uint64_t *grows, *shrinks;  // [2 nodes] bytes at the start and the end of a call
    uint64_t  input_bytes;    // of graph inputs: resident throughout
} tli_census;

static void tli_free_census(tl_env *env, tli_census *c) {
    tli_release(env, c->ops);
    tli_release(env, c->grows);
}

// Two blocks: numbers of 4 bytes and of 8.
static int tli_open_census(tl_env *env, const tl_graph *graph, tli_census *c) {
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    tli_zero(c, sizeof *c);
    c->graph = graph;
    c->ops = (int32_t *)tli_alloc_array(env, 3 * nodes + 4 * tensors, sizeof *c->ops);
    c->grows = (uint64_t *)tli_alloc_array(env, 4 * nodes, sizeof *c->grows);
    if (!c->ops || !c->grows || graph->node_count > INT32_MAX / 2) return 0;
    c->firsts = c->ops + nodes;
    c->levels = c->firsts + nodes;
    c->last_readers = c->levels + nodes;
    c->last_uses = c->last_readers + tensors;
    c->first_grads = c->last_uses + tensors;
    c->marks = c->first_grads + tensors;
    c->shrinks = c->grows + 2 * nodes;
    return 1;
}

static int32_t tli_backward_call(const tl_graph *graph, int32_t node) {
    return 2 * graph->node_count - 1 - node;
}

static int32_t tli_larger_i32(int32_t a, int32_t b) { return a > b ? a : b; }
static uint64_t tli_larger_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

static int tli_gets_gradient(const tl_graph *graph, int32_t tensor) {
    return graph->nodes[graph->outputs[tensor].node].has_grad;
}

static int32_t tli_count_ops(tli_census *c) {
    const tl_graph *graph = c->graph;
    int32_t count = 0, i, k;
    for (i = 0; i < graph->node_count; i++) {
        for (k = 0; k < count && !tli_same_text(tl_name_op(graph, c->firsts[k]), tl_name_op(graph, i)); k++) {}
        if (k == count) c->firsts[count++] = i;
        c->ops[i] = k;
    }
    return count;
}

// Who reads what last, and when: for the lives of tensors, the width and the cuts.
static void tli_find_lives(tli_census *c) {
    const tl_graph *graph = c->graph;
    int32_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        for (k = node->first_output; k < node->first_output + node->output_count; k++) {
            c->last_readers[k] = i;
            c->last_uses[k] = graph->outputs[k].needed ? tli_backward_call(graph, i) : i;
            c->first_grads[k] = tli_backward_call(graph, i);
        }
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t tensor = graph->inputs[k].tensor;
            c->last_readers[tensor] = i;
            c->last_uses[tensor] = tli_larger_i32(c->last_uses[tensor], i);
            if (graph->inputs[k].needed)
                c->last_uses[tensor] = tli_larger_i32(c->last_uses[tensor], tli_backward_call(graph, i));
            if (node->has_grad) c->first_grads[tensor] = tli_backward_call(graph, i);
        }
    }
}

// Peak of the training that keeps everything until its last use.
static uint64_t tli_find_keep_all_peak(tli_census *c) {
    const tl_graph *graph = c->graph;
    uint64_t live = c->input_bytes, peak = c->input_bytes;
    int32_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        int32_t back = tli_backward_call(graph, i);
        if (node->is_input) continue;
        for (k = node->first_output; k < node->first_output + node->output_count; k++) {
            c->grows[i] += graph->outputs[k].bytes;
            if (!node->keep) c->shrinks[c->last_uses[k]] += graph->outputs[k].bytes;
            if (!node->has_grad) continue;
            c->grows[c->first_grads[k]] += graph->outputs[k].bytes;
            c->shrinks[back] += graph->outputs[k].bytes;
        }
        c->grows[i] += node->saved_bytes + node->fwork_bytes;
        c->shrinks[i] += node->fwork_bytes;
        c->grows[back] += node->bwork_bytes;
        c->shrinks[back] += node->bwork_bytes + node->saved_bytes;
    }
    for (i = 0; i < 2 * graph->node_count; i++) {
        live += c->grows[i];
        peak = tli_larger_u64(peak, live);
        live -= c->shrinks[i];
    }
    return peak;
}

// What one call cannot do without, graph inputs apart. Forward in place, one copy of output 0 is enough.
static void tli_find_working_sets(tli_census *c, int32_t id, uint64_t *forward, uint64_t *save,
                                  uint64_t *backward) {
    const tl_graph *graph = c->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t inputs = 0, outputs = 0, kept = 0, gradients = 0;
    int32_t k;
    for (k = node->first_output; k < node->first_output + node->output_count; k++) {
        outputs += graph->outputs[k].bytes;
        if (graph->outputs[k].needed) kept += graph->outputs[k].bytes;
    }
    for (k = node->first_input; k < node->first_input + node->input_count; k++) {
        int32_t tensor = graph->inputs[k].tensor;
        uint64_t bytes = graph->outputs[tensor].bytes;
        if (graph->nodes[graph->outputs[tensor].node].is_input) continue;
        if (c->marks[tensor] < 2 * id + 2) {  // marked 2 id + 2: counted; 2 id + 3: counted as needed, too
            inputs += bytes;
            if (tli_gets_gradient(graph, tensor)) gradients += bytes;
            c->marks[tensor] = 2 * id + 2;
        }
        if (graph->inputs[k].needed && c->marks[tensor] == 2 * id + 2) {
            kept += bytes;
            c->marks[tensor]++;
        }
    }
    *forward = inputs + outputs + node->fwork_bytes;
    if (node->inplace >= 0) *forward -= graph->outputs[node->first_output].bytes;
    *save = node->saved_bytes ? inputs + outputs + node->fwork_bytes + node->saved_bytes : 0;
    *backward = node->has_grad ? kept + outputs + gradients + node->saved_bytes + node->bwork_bytes : 0;
}

// Which forwards every plan runs: those of nodes with a gradient (bit 0: training), of results, and of what
// these read. Forward only (bit 1) the results are what nobody reads, where no node is kept.
static void tli_find_runs(tli_census *c) {
    const tl_graph *graph = c->graph;
    int32_t *runs = c->levels, i, k, any_keep = 0;
    for (i = 0; i < graph->node_count; i++) any_keep |= graph->nodes[i].keep;
    for (i = 0; i < graph->node_count; i++)
        runs[i] = (graph->nodes[i].has_grad | graph->nodes[i].keep) + 2 * (graph->nodes[i].keep | !any_keep);
    for (i = graph->node_count; i-- > 0;)
        for (k = 0; k < graph->nodes[i].input_count; k++)
            runs[graph->outputs[graph->inputs[graph->nodes[i].first_input + k].tensor].node] |= runs[i];
}

static void tli_find_floor(tli_census *c, tl_graph_statistics *s) {
    const tl_graph *graph = c->graph;
    uint64_t forward, save, backward;
    int32_t i;
    tli_find_runs(c);
    s->floor_bytes = s->inference_floor_bytes = c->input_bytes;
    for (i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].is_input) continue;
        tli_find_working_sets(c, i, &forward, &save, &backward);
        if (c->levels[i] & 2)
            s->inference_floor_bytes = tli_larger_u64(s->inference_floor_bytes, c->input_bytes + forward);
        forward = c->levels[i] & 1 ? tli_larger_u64(forward, save) : 0;
        if (c->input_bytes + tli_larger_u64(forward, backward) <= s->floor_bytes) continue;
        s->floor_bytes = c->input_bytes + tli_larger_u64(forward, backward);
        s->floor_node = i;
        s->floor_is_backward = backward > forward;
    }
}

// Paths, crossings and cuts. `cuts` may be NULL: count them only.
static void tli_find_shape(tli_census *c, tl_graph_statistics *s, int32_t *cuts) {
    const tl_graph *graph = c->graph;
    int32_t i, k, reach = 0, crossing = 0;
    s->cut_count = 0;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        c->levels[i] = 1;
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t from = graph->outputs[graph->inputs[k].tensor].node;
            c->levels[i] = tli_larger_i32(c->levels[i], c->levels[from] + 1);
        }
        s->depth = tli_larger_i32(s->depth, c->levels[i]);
    }
    for (i = 0; i < graph->node_count; i++) c->levels[i] = 0;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        if (reach <= i) {
            if (cuts) cuts[s->cut_count] = i;
            s->cut_count++;
        }
        crossing -= c->levels[i];  // tensors whose last reader this is
        for (k = node->first_output; k < node->first_output + node->output_count; k++) {
            if (c->last_readers[k] == i) continue;
            reach = tli_larger_i32(reach, c->last_readers[k]);
            c->levels[c->last_readers[k]]++;
            crossing++;
        }
        s->width = tli_larger_i32(s->width, crossing);
    }
}

static void tli_add_to_op(const tl_graph *graph, int32_t id, tl_op_statistics *op) {
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    op->op = tl_name_op(graph, id);
    op->node_count++;
    for (k = 0; k < node->output_count; k++) op->output_bytes += graph->outputs[node->first_output + k].bytes;
    op->saved_bytes += node->saved_bytes;
    op->param_bytes += node->param_bytes;
    op->fwd_cost += node->fwd_cost;
    op->bwd_cost += node->bwd_cost;
}

static void tli_sum_nodes(tli_census *c, tl_graph_statistics *s, tl_op_statistics *ops) {
    const tl_graph *graph = c->graph;
    int32_t i;
    for (i = 0; i < graph->node_count; i++) {
        tli_add_to_op(graph, i, &ops[c->ops[i]]);
        s->input_node_count += graph->nodes[i].is_input;
        s->grad_node_count += graph->nodes[i].has_grad;
    }
    for (i = 0; i < s->op_count; i++) {
        s->output_bytes += ops[i].output_bytes;
        s->saved_bytes += ops[i].saved_bytes;
        s->param_bytes += ops[i].param_bytes;
        s->fwd_cost += ops[i].fwd_cost;
        s->bwd_cost += ops[i].bwd_cost;
    }
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        if (graph->nodes[output->node].is_input) c->input_bytes += output->bytes;
        if (i && output->bytes <= s->largest_bytes) continue;
        s->largest_bytes = output->bytes;
        s->largest_tensor.node = output->node;
        s->largest_tensor.output = output->output;
    }
}

TLI_IMPL tl_result tl_measure_graph(tl_env *env, const tl_graph *graph, tl_graph_statistics *statistics) {
    tl_graph_statistics s;
    tli_census c;
    tl_op_statistics *ops;
    tl_result result;
    int32_t *cuts;
    TL_ASSERT(graph && statistics);
    tli_zero(statistics, sizeof *statistics);
    result = tl_check_graph(env, graph);
    if (result) return result;
    tli_zero(&s, sizeof s);
    s.node_count = graph->node_count;
    s.tensor_count = graph->tensor_count;
    if (tli_open_census(env, graph, &c)) {
        s.op_count = tli_count_ops(&c);
        tli_find_lives(&c);
        tli_find_shape(&c, &s, NULL);
        s.memory = tli_alloc_array(env, 1, (size_t)s.op_count * sizeof *ops +
                                           (size_t)s.cut_count * sizeof *cuts);
    }
    if (!s.memory) {
        tli_free_census(env, &c);
        return tli_fail(env, TL_ERROR_NO_MEMORY, "tl_measure_graph", "no memory to count in");
    }
    ops = (tl_op_statistics *)s.memory;
    cuts = (int32_t *)(void *)(ops + s.op_count);
    tli_sum_nodes(&c, &s, ops);
    tli_find_shape(&c, &s, cuts);
    tli_find_floor(&c, &s);
    s.keep_all_bytes = tli_find_keep_all_peak(&c);
    s.ops = ops;
    s.cuts = cuts;
    tli_free_census(env, &c);
    *statistics = s;
    return TL_OK;
}

TLI_IMPL void tl_free_graph_statistics(tl_env *env, tl_graph_statistics *statistics) {
    if (!statistics) return;
    tli_release(env, statistics->memory);
    tli_zero(statistics, sizeof *statistics);
}

#ifndef TL_NO_TEXT
static void tli_put_column(tli_writer *w, uint64_t value, size_t width) {
    char digits[24];
    tli_writer number = tli_writer_of(digits, sizeof digits);
    size_t length;
    tli_put_u64(&number, value);
    for (length = tli_finish(&number); length < width; length++) tli_put(w, " ");
    tli_put(w, digits);
}

static void tli_put_op(tli_writer *w, const tl_op_statistics *op, const char *name) {
    size_t length = tli_text_length(name);
    tli_put_column(w, (uint64_t)op->node_count, 6);
    tli_put(w, "  "); tli_put(w, name);
    for (; length < 16; length++) tli_put(w, " ");
    tli_put_column(w, op->output_bytes, 16);
    tli_put_column(w, op->saved_bytes, 16);
    tli_put_column(w, op->param_bytes, 16);
    tli_put_column(w, op->fwd_cost, 20);
    tli_put_column(w, op->bwd_cost, 20);
    tli_put(w, "\n");
}

static void tli_put_fact(tli_writer *w, const char *before, uint64_t value, const char *after) {
    tli_put(w, before); tli_put_u64(w, value); tli_put(w, after);
}

TLI_IMPL size_t tl_print_graph_statistics(const tl_graph *graph, const tl_graph_statistics *statistics,
                                          char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_graph_statistics *s = statistics;
    tl_op_statistics sum;
    int32_t i;
    TL_ASSERT(graph && statistics);
    tli_put(&w, " nodes  op                    output bytes     saved bytes    weight bytes"
                "        forward cost       backward cost\n");
    for (i = 0; i < s->op_count; i++) tli_put_op(&w, &s->ops[i], s->ops[i].op);
    tli_zero(&sum, sizeof sum);
    sum.node_count = s->node_count;
    sum.output_bytes = s->output_bytes; sum.saved_bytes = s->saved_bytes; sum.param_bytes = s->param_bytes;
    sum.fwd_cost = s->fwd_cost; sum.bwd_cost = s->bwd_cost;
    tli_put_op(&w, &sum, "all");
    tli_put_fact(&w, "depth ", (uint64_t)s->depth, ", ");
    tli_put_fact(&w, "width ", (uint64_t)s->width, ", ");
    tli_put_fact(&w, "cuts ", (uint64_t)s->cut_count, "\n");
    tli_put_fact(&w, "largest tensor: ", s->largest_bytes, " bytes, of ");
    tli_put(&w, tl_name_node(graph, s->largest_tensor.node));
    tli_put_fact(&w, "\nfloor: ", s->floor_bytes, " bytes, ");
    tli_put(&w, s->floor_is_backward ? "backward of " : "forward of ");
    tli_put(&w, tl_name_node(graph, s->floor_node));
    tli_put_fact(&w, "; forward only ", s->inference_floor_bytes, " bytes\n");
    tli_put_fact(&w, "keep all: ", s->keep_all_bytes, " bytes\n");
    return tli_finish(&w);
}
#endif

// -- fusion: which nodes --

#define TLI_FUSION_LIMIT 256    // members of a fused node
#define TLI_FUSION_BLOCK 65536  // bytes

typedef struct tli_fusion {
    tl_env  *env;
    const tl_graph *graph;
    const tl_fusion_desc *desc;
    uint64_t block_bytes;
    int32_t *next, *previous;  // [nodes] in its chain; -1 = none
    int32_t *chains;           // [nodes] first node of its chain; -1 = not elementwise
    int32_t *heads;            // [nodes] first member of the fused node that ends here; -1 = inside one
    int32_t *counts;           // [nodes] members of it
    int32_t *remade;           // [nodes] of these, members that backward runs again
    int32_t *first_readers;    // [tensors + 1] into readers
    int32_t *readers;          // [inputs] nodes, ascending
    int32_t *marks;            // [tensors] the search that counted it last
    int32_t *tensors;          // [tensors] its index in the fused graph; -1 = gone
    uint8_t *needed;           // [tensors] 1 = some backward reads it
    tl_tensor *inputs;         // [inputs] of the node that is made
    uint64_t  *bytes;          // [tensors] of its outputs
    int32_t  searches;
} tli_fusion;

static int tli_is_elementwise_part(const tl_fusion_desc *desc, const char *text, size_t length) {
    int32_t count = desc->ops ? desc->op_count : TL_ELEMENTWISE_COUNT, i;
    for (i = desc->ops ? 0 : 1; i < count; i++) {
        const char *op = desc->ops ? desc->ops[i] : tli_elementwise_names[i];
        if (tli_text_length(op) == length && TLI_MEMCMP(op, text, length) == 0) return 1;
    }
    return 0;
}

// The whole op is in the list, or all of its parts are.
static int tli_is_elementwise_op(const tl_fusion_desc *desc, const char *op) {
    size_t length = tli_text_length(op), at = 0, end;
    if (tli_is_elementwise_part(desc, op, length)) return 1;
    while (at <= length) {
        for (end = at; end < length && op[end] != '+'; end++) {}
        if (!tli_is_elementwise_part(desc, op + at, end - at)) return 0;
        at = end + 1;
    }
    return 1;
}

static int tli_is_fusible(const tli_fusion *f, int32_t id) {
    const tl_graph *graph = f->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = graph->outputs[node->first_output].bytes;
    int32_t k;
    if (node->is_input || node->output_count != 1 || node->input_count < 1 || node->param_bytes ||
        node->saved_bytes || !bytes) return 0;
    for (k = node->first_input; k < node->first_input + node->input_count; k++)
        if (graph->outputs[graph->inputs[k].tensor].bytes != bytes) return 0;
    return tli_is_elementwise_op(f->desc, tl_name_op(graph, id));
}

// Whether a node may follow another one in a chain.
static int tli_is_linked(const tli_fusion *f, int32_t from, int32_t to) {
    const tl_graph *graph = f->graph;
    const tl_node *a = &graph->nodes[from], *b = &graph->nodes[to];
    int32_t tensor = a->first_output, i;
    if (f->chains[from] < 0 || a->keep || a->has_grad != b->has_grad || a->fixed != b->fixed ||
        a->layer != b->layer || !tli_same_text(tl_name_unit(graph, from), tl_name_unit(graph, to))) return 0;
    for (i = f->first_readers[tensor]; i < f->first_readers[tensor + 1]; i++)
        if (f->readers[i] != to) return 0;
    return 1;
}

static void tli_find_readers(tli_fusion *f) {
    const tl_graph *graph = f->graph;
    int32_t i, k;
    for (i = 0; i < graph->input_count; i++) f->first_readers[graph->inputs[i].tensor + 1]++;
    for (i = 0; i < graph->tensor_count; i++) f->first_readers[i + 1] += f->first_readers[i];
    for (i = 0; i < graph->node_count; i++)
        for (k = 0; k < graph->nodes[i].input_count; k++) {
            int32_t tensor = graph->inputs[graph->nodes[i].first_input + k].tensor;
            f->readers[f->first_readers[tensor] + f->marks[tensor]++] = i;
            if (graph->inputs[graph->nodes[i].first_input + k].needed) f->needed[tensor] = 1;
        }
    for (i = 0; i < graph->tensor_count; i++) {
        f->marks[i] = 0;
        if (graph->outputs[i].needed) f->needed[i] = 1;
    }
}

// A node that could follow several others follows the one listed last: nothing much stands between.
static void tli_find_chains(tli_fusion *f) {
    const tl_graph *graph = f->graph;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        f->next[id] = f->previous[id] = f->chains[id] = -1;
        f->heads[id] = id;
        f->counts[id] = 1;
        if (!tli_is_fusible(f, id)) continue;
        f->chains[id] = id;
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t from = graph->outputs[graph->inputs[k].tensor].node;
            if (from > f->previous[id] && tli_is_linked(f, from, id)) f->previous[id] = from;
        }
        if (f->previous[id] < 0) continue;
        f->next[f->previous[id]] = id;
        f->chains[id] = f->chains[f->previous[id]];
    }
}

// -- fusion: how far --

// The first reader below `id` whose gradient would no longer be added in the old order, were `id` to move
// below it; node_count where there is none.
static int32_t tli_find_obstacle(const tli_fusion *f, int32_t id, int32_t tensor) {
    const tl_graph *graph = f->graph;
    int32_t i;
    if (f->desc->inference || !graph->nodes[id].has_grad || !tli_gets_gradient(graph, tensor))
        return graph->node_count;
    for (i = f->first_readers[tensor]; i < f->first_readers[tensor + 1]; i++) {
        int32_t reader = f->readers[i];
        if (reader > id && graph->nodes[reader].has_grad && f->chains[reader] != f->chains[id]) return reader;
    }
    return graph->node_count;
}

// Whether an outer input of a member would be held from `id` to the next member, where it was not before:
// the tensor, if nobody reads it later or keeps it, or its gradient, if nobody below adds to it.
static void tli_count_held(const tli_fusion *f, int32_t id, int32_t tensor, int32_t *values,
                           int32_t *gradients) {
    const tl_graph *graph = f->graph;
    const tl_node *from = &graph->nodes[graph->outputs[tensor].node];
    int32_t i = f->first_readers[tensor + 1];
    if (from->is_input) return;
    if (!from->keep && f->readers[i - 1] <= id && (f->desc->inference || !f->needed[tensor])) (*values)++;
    if (f->desc->inference || !from->has_grad || !graph->nodes[id].has_grad) return;
    while (!graph->nodes[f->readers[i - 1]].has_grad) i--;  // ends: a member reads it
    if (f->readers[i - 1] <= id) (*gradients)++;
}

// Between `id` and the next member other calls stand, beside one inner tensor and later its gradient. Fused,
// the outer inputs of the members so far are held there instead: no more than that.
static int tli_holds_more(const tli_fusion *f, int32_t head, int32_t id) {
    const tl_graph *graph = f->graph;
    int32_t values = 0, gradients = 0, at = head, k;
    if (f->next[id] == id + 1) return 0;
    for (;; at = f->next[at]) {
        const tl_node *node = &graph->nodes[at];
        for (k = node->first_input; k < node->first_input + node->input_count; k++)
            if (at == head || graph->outputs[graph->inputs[k].tensor].node != f->previous[at])
                tli_count_held(f, id, graph->inputs[k].tensor, &values, &gradients);
        if (at == id || values > 1 || gradients > 1) return values > 1 || gradients > 1;
    }
}

// Bytes that backward has to find anew where this member is made again.
static uint64_t tli_count_new_needs(tli_fusion *f, int32_t id, int is_head) {
    const tl_graph *graph = f->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = 0;
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count; k++) {
        int32_t tensor = graph->inputs[k].tensor, from = graph->outputs[tensor].node;
        if ((!is_head && from == f->previous[id]) || graph->nodes[from].is_input) continue;
        if (f->needed[tensor] || f->marks[tensor] == f->searches) continue;
        f->marks[tensor] = f->searches;
        bytes += graph->outputs[tensor].bytes;
    }
    return bytes;
}

// The longest fused node that may begin at `head`: its members and those made again.
static int32_t tli_find_length(tli_fusion *f, int32_t head, int32_t *remade) {
    const tl_graph *graph = f->graph;
    uint64_t gained = 0, lost = 0;
    int32_t best = 1, length, id = head, pending = head, obstacle = graph->node_count, again = 0, k;
    f->searches++;
    *remade = 0;
    for (length = 2; length <= TLI_FUSION_LIMIT && f->next[id] >= 0; length++) {
        const tl_node *node = &graph->nodes[id];
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t tensor = graph->inputs[k].tensor, reader;
            if (id != head && graph->outputs[tensor].node == f->previous[id]) continue;
            reader = tli_find_obstacle(f, id, tensor);
            if (reader < obstacle) obstacle = reader;
        }
        if (f->needed[node->first_output]) {  // inner from here on: made again with all above it
            gained += graph->outputs[node->first_output].bytes;
            again = length - 1;
            for (; pending != f->next[id]; pending = f->next[pending])
                lost += tli_count_new_needs(f, pending, pending == head);
        }
        if (f->next[id] >= obstacle || tli_holds_more(f, head, id)) break;
        id = f->next[id];
        if (lost > gained && !f->desc->inference) continue;
        best = length;
        *remade = again;
    }
    return best;
}

static void tli_cut_chains(tli_fusion *f) {
    const tl_graph *graph = f->graph;
    int32_t id, at, last, i, length, remade;
    for (id = 0; id < graph->node_count; id++) {
        if (f->chains[id] != id) continue;
        for (at = id; at >= 0; at = f->next[last]) {
            length = tli_find_length(f, at, &remade);
            for (last = at, i = 1; i < length; i++) {
                f->heads[last] = -1;
                last = f->next[last];
            }
            f->heads[last] = at;
            f->counts[last] = length;
            f->remade[last] = remade;
        }
    }
}

// -- fusion: what a fused node takes --

// floor(bytes * 10^9 / rate), the remainder to some 30 binary digits; the largest number where it does not fit.
static uint64_t tli_find_traffic_ns(uint64_t bytes, uint64_t rate) {
    uint64_t whole = bytes / rate, rest = bytes % rate, ns;
    for (; rest > UINT64_MAX / UINT64_C(1000000000); rest >>= 1) rate >>= 1;
    if (!tli_mul_u64(whole, UINT64_C(1000000000), &ns)) return UINT64_MAX;
    return tli_add_u64(ns, rest * UINT64_C(1000000000) / rate, &ns) ? ns : UINT64_MAX;
}

static uint64_t tli_add_capped(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

// Sums over the members of a fused node.
typedef struct tli_fused {
    uint64_t fwd_cost, bwd_cost, largest_fwd_cost, largest_bwd_cost;
    uint64_t fwork_bytes, bwork_bytes;   // largest of a member
    uint64_t fwd_traffic, bwd_traffic;   // outer bytes that are read and written in any case
    uint64_t fwd_saved, bwd_saved;       // bytes of inner tensors that need not be written and read
} tli_fused;

// Bytes that member number `at` of `count` moves, in a fused node and beside it.
static void tli_add_member_traffic(const tli_fusion *f, int32_t id, int32_t at, int32_t count, int32_t remade,
                                   tli_fused *sum) {
    const tl_graph *graph = f->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = graph->outputs[node->first_output].bytes;
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count; k++) {
        int32_t tensor = graph->inputs[k].tensor;
        if (at > 0 && graph->outputs[tensor].node == f->previous[id]) continue;
        sum->fwd_traffic = tli_add_capped(sum->fwd_traffic, bytes);
        if (at < remade || graph->inputs[k].needed) sum->bwd_traffic = tli_add_capped(sum->bwd_traffic, bytes);
        if (tli_gets_gradient(graph, tensor)) sum->bwd_traffic = tli_add_capped(sum->bwd_traffic, bytes);
    }
    if (at + 1 == count) {
        sum->fwd_traffic = tli_add_capped(sum->fwd_traffic, bytes);
        sum->bwd_traffic = tli_add_capped(sum->bwd_traffic, bytes);  // its gradient
        if (graph->outputs[node->first_output].needed)
            sum->bwd_traffic = tli_add_capped(sum->bwd_traffic, bytes);
        return;
    }
    // Written once and read once: the tensor, its gradient, and the tensor that is made again.
    sum->fwd_saved = tli_add_capped(sum->fwd_saved, tli_add_capped(bytes, bytes));
    sum->bwd_saved = tli_add_capped(sum->bwd_saved, tli_add_capped(bytes, bytes));
    if (at < remade) sum->bwd_saved = tli_add_capped(sum->bwd_saved, tli_add_capped(bytes, bytes));
    if (f->needed[node->first_output]) sum->bwd_saved = tli_add_capped(sum->bwd_saved, bytes);
}

static uint64_t tli_fuse_cost(uint64_t sum, uint64_t largest, uint64_t traffic, uint64_t saved, uint64_t rate) {
    uint64_t least = tli_larger_u64(largest, tli_find_traffic_ns(traffic, rate));
    uint64_t off = tli_find_traffic_ns(saved, rate), cost = sum > off ? sum - off : 0;
    cost = tli_larger_u64(cost, least);
    return cost < sum ? cost : sum;
}

// Costs and scratch of the fused node that ends at `last`. Nothing here overflows: the graph was checked with
// every cost and each member's output twice, which is more than its blocks.
static tli_fused tli_sum_members(const tli_fusion *f, int32_t last) {
    const tl_graph *graph = f->graph;
    int32_t count = f->counts[last], remade = f->remade[last], id = f->heads[last], at;
    uint64_t bytes = graph->outputs[graph->nodes[last].first_output].bytes;
    uint64_t block = bytes < f->block_bytes ? bytes : f->block_bytes, turns = count > 2 ? 2 : 1;
    tli_fused sum;
    tli_zero(&sum, sizeof sum);
    for (at = 0; at < count; at++, id = f->next[id]) {
        const tl_node *node = &graph->nodes[id];
        sum.fwd_cost += node->fwd_cost;
        sum.bwd_cost += node->bwd_cost + (at < remade ? node->fwd_cost : 0);
        sum.largest_fwd_cost = tli_larger_u64(sum.largest_fwd_cost, node->fwd_cost);
        sum.largest_bwd_cost = tli_larger_u64(sum.largest_bwd_cost, node->bwd_cost);
        sum.fwork_bytes = tli_larger_u64(sum.fwork_bytes, node->fwork_bytes);
        sum.bwork_bytes = tli_larger_u64(sum.bwork_bytes, node->bwork_bytes);
        if (at < remade) sum.bwork_bytes = tli_larger_u64(sum.bwork_bytes, node->fwork_bytes);
        tli_add_member_traffic(f, id, at, count, remade, &sum);
    }
    sum.fwork_bytes += block * turns;
    sum.bwork_bytes += block * (turns + (uint64_t)remade);
    if (!graph->nodes[last].has_grad) sum.bwd_cost = sum.bwork_bytes = 0;
    if (f->desc->device && f->desc->device->bytes_per_second) {
        uint64_t rate = f->desc->device->bytes_per_second;
        sum.fwd_cost = tli_fuse_cost(sum.fwd_cost, sum.largest_fwd_cost, sum.fwd_traffic, sum.fwd_saved, rate);
        sum.bwd_cost = tli_fuse_cost(sum.bwd_cost, sum.largest_bwd_cost, sum.bwd_traffic, sum.bwd_saved, rate);
    }
    return sum;
}

// -- fusion: the new graph --

// In place as the first member, unless the last one reads that tensor, too: its result would overwrite it.
static int32_t tli_fuse_inplace(const tli_fusion *f, int32_t last) {
    const tl_graph *graph = f->graph;
    const tl_node *head = &graph->nodes[f->heads[last]], *end = &graph->nodes[last];
    int32_t tensor, k;
    if (head->inplace < 0) return -1;
    tensor = graph->inputs[head->first_input + head->inplace].tensor;
    for (k = end->first_input; k < end->first_input + end->input_count; k++)
        if (graph->inputs[k].tensor == tensor) return -1;
    return head->inplace;
}

// Collect the outer inputs of the members, and add the node. What backward reads is marked afterwards.
static tl_result tli_add_fused(tli_fusion *f, tli_graph_rules *rules, tl_graph *graph, int32_t last) {
    const tl_graph *old = f->graph;
    const tl_node *end = &old->nodes[last];
    int32_t id = f->heads[last], count = f->counts[last], input_count = 0, at, k;
    tli_fused sum;
    tl_node_desc desc;
    tl_node_input *inputs;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    for (at = 0; at < count; at++, id = f->next[id])
        for (k = old->nodes[id].first_input; k < old->nodes[id].first_input + old->nodes[id].input_count; k++) {
            const tl_node_output *from = &old->outputs[old->inputs[k].tensor];
            if (at > 0 && from->node == f->previous[id]) continue;
            f->inputs[input_count].node = graph->outputs[f->tensors[old->inputs[k].tensor]].node;
            f->inputs[input_count++].output = from->output;
        }
    for (k = 0; k < end->output_count; k++) f->bytes[k] = old->outputs[end->first_output + k].bytes;
    desc.name = tl_name_node(old, last);
    desc.op = count == 1 ? tl_name_op(old, last) : f->desc->op ? f->desc->op : "fused";
    desc.unit = old->nodes[last].unit ? tl_name_unit(old, last) : NULL;
    desc.inputs = f->inputs; desc.input_count = input_count;
    desc.output_bytes = f->bytes; desc.output_count = end->output_count;
    desc.fwd_cost = end->fwd_cost; desc.bwd_cost = end->bwd_cost;
    desc.fwork_bytes = end->fwork_bytes; desc.bwork_bytes = end->bwork_bytes;
    desc.saved_bytes = end->saved_bytes; desc.param_bytes = end->param_bytes;
    desc.layer = end->layer + 1;
    desc.inplace = (count == 1 ? end->inplace : tli_fuse_inplace(f, last)) + 1;
    desc.no_grad = !end->is_input && !end->has_grad;
    desc.keep = end->keep; desc.fixed = end->fixed;
    if (count > 1) {
        sum = tli_sum_members(f, last);
        desc.fwd_cost = sum.fwd_cost; desc.bwd_cost = sum.bwd_cost;
        desc.fwork_bytes = sum.fwork_bytes; desc.bwork_bytes = sum.bwork_bytes;
    }
    result = tli_add_node(rules, graph, &desc);
    if (result) return result;
    inputs = &graph->inputs[graph->nodes[graph->node_count - 1].first_input];
    for (at = 0, id = f->heads[last]; at < count; at++, id = f->next[id])
        for (k = old->nodes[id].first_input; k < old->nodes[id].first_input + old->nodes[id].input_count; k++) {
            if (at > 0 && old->outputs[old->inputs[k].tensor].node == f->previous[id]) continue;
            inputs->needed = (uint8_t)(old->inputs[k].needed || at < f->remade[last]);
            inputs++;
        }
    for (k = 0; k < end->output_count; k++) {
        int32_t tensor = graph->nodes[graph->node_count - 1].first_output + k;
        graph->outputs[tensor].needed = old->outputs[end->first_output + k].needed;
        f->tensors[end->first_output + k] = tensor;
    }
    return TL_OK;
}

static tl_result tli_build_fused(tli_fusion *f, tl_fusion_plan *plan, int32_t *nodes, int32_t *first_members,
                                 int32_t *members, int32_t *remade) {
    tli_graph_rules rules = tli_rules_of(f->env, "tl_plan_fusion");
    const tl_graph *old = f->graph;
    int32_t id, at, member, count = 0;
    tl_result result = TL_OK;
    plan->graph.batch = old->batch;
    for (id = 0; id < old->tensor_count; id++) f->tensors[id] = -1;
    for (id = 0; id < old->node_count && !result; id++) {
        if (f->heads[id] < 0) {
            plan->inner_bytes += old->outputs[old->nodes[id].first_output].bytes;
            continue;
        }
        first_members[plan->graph.node_count] = count;
        remade[plan->graph.node_count] = f->remade[id];
        plan->fused_count += f->counts[id] > 1;
        for (at = 0, member = f->heads[id]; at < f->counts[id]; at++, member = f->next[member]) {
            nodes[member] = plan->graph.node_count;
            members[count++] = member;
        }
        result = tli_add_fused(f, &rules, &plan->graph, id);
    }
    if (!result) first_members[plan->graph.node_count] = count;
    for (id = 0; id < old->view_count && !result; id++) {
        int32_t tensor = f->tensors[old->views[id].tensor];
        tl_tensor of;
        if (tensor < 0) continue;
        of.node = plan->graph.outputs[tensor].node;
        of.output = plan->graph.outputs[tensor].output;
        result = tl_add_view(f->env, &plan->graph, tli_text_at(old, old->views[id].name), of, NULL);
    }
    return result;
}

static const char *tli_check_fusion_desc(const tl_fusion_desc *desc) {
    int32_t i;
    if (desc->block_bytes % 64) return "block_bytes: must be a multiple of 64";
    if (desc->op && (!tli_is_name(desc->op) || tli_same_text(desc->op, "input")))
        return "op: must not be input, and " TLI_NAME_RULE;
    if (desc->op_count < 0 || (desc->op_count && !desc->ops)) return "ops: missing, or a negative count";
    if (desc->inference & ~1) return "inference: must be 0 or 1";
    for (i = 0; i < desc->op_count; i++)
        if (!desc->ops[i] || !tli_is_name(desc->ops[i])) return "ops: each " TLI_NAME_RULE;
    return NULL;
}

// One block each of numbers of 4 and of 8 bytes, and of flags.
static int tli_open_fusion(tl_env *env, const tl_fusion_desc *desc, tli_fusion *f) {
    const tl_graph *graph = desc->graph;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    uint64_t inputs = (uint64_t)graph->input_count;
    tli_zero(f, sizeof *f);
    f->env = env;
    f->graph = graph;
    f->desc = desc;
    f->block_bytes = tli_or_default(desc->block_bytes, TLI_FUSION_BLOCK);
    f->next = (int32_t *)tli_alloc_array(env, 6 * nodes + 3 * tensors + 1 + inputs, sizeof *f->next);
    f->bytes = (uint64_t *)tli_alloc_array(env, tensors, sizeof *f->bytes);
    f->inputs = (tl_tensor *)tli_alloc_array(env, inputs, sizeof *f->inputs);
    f->needed = (uint8_t *)tli_alloc_array(env, tensors, 1);
    if (!f->next || !f->bytes || !f->inputs || !f->needed) return 0;
    f->previous = f->next + nodes;
    f->chains = f->previous + nodes;
    f->heads = f->chains + nodes;
    f->counts = f->heads + nodes;
    f->remade = f->counts + nodes;
    f->first_readers = f->remade + nodes;
    f->marks = f->first_readers + tensors + 1;
    f->tensors = f->marks + tensors;
    f->readers = f->tensors + tensors;
    return 1;
}

TLI_IMPL tl_result tl_plan_fusion(tl_env *env, const tl_fusion_desc *desc, tl_fusion_plan *fusion) {
    const char *function = "tl_plan_fusion", *rule;
    tli_fusion f;
    tl_fusion_plan plan;
    uint64_t nodes;
    int32_t *numbers = NULL;
    tl_result result;
    TL_ASSERT(desc && desc->graph && fusion);
    tli_zero(fusion, sizeof *fusion);
    tli_zero(&plan, sizeof plan);
    rule = tli_check_fusion_desc(desc);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    result = tl_check_graph(env, desc->graph);
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (result) return result;
    nodes = (uint64_t)desc->graph->node_count;
    if (tli_open_fusion(env, desc, &f))
        numbers = (int32_t *)tli_alloc_array(env, 4 * nodes + 1, sizeof *numbers);
    if (numbers) {
        tli_find_readers(&f);
        tli_find_chains(&f);
        tli_cut_chains(&f);
        plan.block_bytes = f.block_bytes;
        plan.memory = numbers;
        plan.nodes = numbers;
        plan.members = numbers + nodes;
        plan.remade_counts = numbers + 2 * nodes;
        plan.first_members = numbers + 3 * nodes;
        result = tli_build_fused(&f, &plan, numbers, numbers + 3 * nodes, numbers + nodes, numbers + 2 * nodes);
    } else {
        result = tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory to find chains in");
    }
    tli_release(env, f.next);
    tli_release(env, f.bytes);
    tli_release(env, f.inputs);
    tli_release(env, f.needed);
    if (result) tl_free_fusion_plan(env, &plan);
    *fusion = plan;
    return result;
}

TLI_IMPL void tl_free_fusion_plan(tl_env *env, tl_fusion_plan *fusion) {
    if (!fusion) return;
    tl_free_graph(env, &fusion->graph);
    tli_release(env, fusion->memory);
    tli_zero(fusion, sizeof *fusion);
}
#endif

// ============================================================================
// [4] PLAN (implementation)
// ============================================================================

// -- names and codecs --

static const char *const tli_step_names[] = { TL_STEPS(TLI_NAME) };
static const char *const tli_step_helps[] = { TL_STEPS(TLI_HELP) };
static const char *const tli_codec_names[] = { TL_CODECS(TLI_NAME) };

TLI_IMPL const char *tl_name_step(tl_step_kind kind) {
    return tli_name(tli_step_names, TL_STEP_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_explain_step(tl_step_kind kind) {
    return tli_name(tli_step_helps, TL_STEP_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_codec(tl_codec codec) {
    return tli_name(tli_codec_names, TL_CODEC_COUNT, (int64_t)codec);
}

TLI_IMPL uint64_t tl_find_codec_bytes(tl_codec codec, uint64_t bytes) {
    uint64_t count = bytes / 4 + (bytes % 4 != 0);  // f32 elements
    switch (codec) {
    case TL_CODEC_NONE: return bytes;
    case TL_CODEC_F16:
    case TL_CODEC_BF16: return 2 * count;
    case TL_CODEC_Q8: return count + 4 * (count / 32 + (count % 32 != 0));
    case TL_CODEC_COUNT: break;
    }
    return bytes;
}

// -- steps --

static tl_step tli_step_of(tl_step_kind kind, int32_t node, int32_t output) {
    tl_step step;
    step.kind = (uint8_t)kind;
    step.codec = TL_CODEC_NONE;
    step.reserved = 0;
    step.node = node;
    step.output = output;
    return step;
}

// F, I, S, B and DS act on a node; their output is TL_ALL_OUTPUTS.
static int tli_acts_on_node(tl_step_kind kind) {
    return kind <= TL_STEP_BACKWARD || kind == TL_STEP_DROP_SAVED;
}

// A list of steps that grows; its array becomes the memory of a plan.
typedef struct tli_steps {
    tl_env  *env;
    tl_step *steps;
    int32_t  count, capacity;
    int      failed;  // 1 = out of memory; later steps are lost
} tli_steps;

static tli_steps tli_steps_of(tl_env *env) {
    tli_steps list;
    tli_zero(&list, sizeof list);
    list.env = env;
    return list;
}

static void tli_add_step(tli_steps *list, tl_step step) {
    void *array = list->steps;
    if (list->failed) return;
    if (!tli_grow(list->env, &array, &list->capacity, list->count, (int64_t)list->count + 1, sizeof step)) {
        list->failed = 1;
        return;
    }
    list->steps = (tl_step *)array;
    list->steps[list->count++] = step;
}

#if !defined(TL_NO_TEXT) || !defined(TL_NO_PLANNERS)
// The list becomes the plan's; where memory ran out, everything is released and *plan stays zero.
static tl_result tli_take_steps(tli_steps *list, const char *function, tl_plan *plan) {
    if (list->failed) {
        tli_release(list->env, list->steps);
        return tli_fail(list->env, TL_ERROR_NO_MEMORY, function, "no memory for the steps");
    }
    plan->steps = list->steps;
    plan->step_count = list->count;
    plan->memory = list->steps;
    return TL_OK;
}
#endif

TLI_IMPL void tl_free_plan(tl_env *env, tl_plan *plan) {
    TL_ASSERT(plan);
    tli_release(env, plan->memory);
    tli_zero(plan, sizeof *plan);
}

// -- the simulator: one step at a time, O(1) and the tensors of the node --
//
// The states of a tensor. A device copy is readable while RESIDENT or LEAVING; the host copy is a
// flag of its own, set when a spill starts and cleared by DROP_HOST alone.
typedef enum tli_state {
    TLI_ABSENT,    // no device bytes
    TLI_RESIDENT,
    TLI_LEAVING,   // being spilled: readable, its bytes stay until WAIT
    TLI_COMING,    // being fetched: has its bytes, not readable until WAIT
    TLI_PACKED     // compressed: not readable, has the compressed bytes
} tli_state;

// What an allocation is for. With offsets, the first four find their place again when they are freed.
typedef enum tli_use {
    TLI_USE_TENSOR,    // index: tensor
    TLI_USE_PACKED,    // index: tensor; its compressed copy
    TLI_USE_GRADIENT,  // index: tensor
    TLI_USE_SAVED,     // index: node
    TLI_USE_TWICE,     // index: tensor; an output that is resident already, for the call only
    TLI_USE_WORK       // index: node; fwork or bwork, for the call only
} tli_use;

typedef struct tli_made {
    tli_use  use;
    int32_t  index;   // tensor or node
    uint64_t bytes;   // > 0: what has no bytes is no allocation and has no number
    uint64_t offset;  // 0 without offsets
} tli_made;

typedef struct tli_live { uint64_t offset, end; int32_t owner; } tli_live;  // owner -1 = for the call only

typedef struct tli_sim_tensor {
    uint8_t  state;         // tli_state
    uint8_t  on_host, has_gradient;
    uint8_t  codec;         // while packed
    uint64_t packed_bytes;  // while packed
    uint64_t ready;         // when the copy under way ends
} tli_sim_tensor;

typedef struct tli_sim_node {
    uint8_t ran, done, has_saved;
    uint8_t is_read;   // some node reads one of its outputs
    int32_t waits_for; // reads by nodes with a gradient whose backward has not run
} tli_sim_node;

typedef struct tli_sim {
    tl_env         *env;
    const char     *function;     // for error sentences
    const tl_graph *graph;
    int             inference, any_order;
    uint64_t        link_rate, link_latency, codec_rate, alignment;
    tli_sim_tensor *tensors;      // [tensor_count]
    tli_sim_node   *nodes;        // [node_count]
    int32_t         next_backward;  // the node whose backward is next in reverse listing order; -1 = none

    uint64_t        live_bytes, host_bytes;
    uint64_t        step_bytes;   // highest live bytes during the last step, its start included
    uint64_t        call_bytes;   // of live_bytes, what lives during the call only
    uint64_t        now, link_free;
    const tl_step  *step;         // being simulated; NULL before the first and at the end
    int32_t         step_count;   // steps begun
    tl_report       report;       // so far

    tli_made       *made;         // [made_count] allocations of the last step, in order
    int32_t         made_count;

    const uint64_t *offsets;      // 0 = none; then the rest is not used
    int32_t         offset_count;
    tli_live       *live;         // [live_count] in no order
    int32_t        *places;       // [3 tensors + nodes] index into live, -1 = not live
    int32_t         live_count;
} tli_sim;

// ceil(bytes * 10^9 / rate) by doubling and adding, so that nothing is wider than 64 bits; 0 where
// it does not fit.
static int tli_find_time(uint64_t bytes, uint64_t rate, uint64_t *ns) {
    uint64_t whole = bytes / rate, rest = bytes % rate, left = 0, part = 0, bit;
    for (bit = UINT64_C(1) << 29; bit; bit >>= 1) {  // part + left / rate = rest * (bits so far) / rate
        part *= 2;
        if (left >= rate - left) { left -= rate - left; part++; } else left += left;
        if (!(UINT64_C(1000000000) & bit)) continue;
        if (left >= rate - rest) { left -= rate - rest; part++; } else left += rest;
    }
    return tli_mul_u64(whole, UINT64_C(1000000000), ns) && tli_add_u64(*ns, part + (left > 0), ns);
}

// -- the simulator: error sentences --

static tli_writer tli_sim_begin_error(tli_sim *sim, tl_result code) {
    tli_writer w = tli_begin_error(sim->env, code, sim->function);
    const tl_step *step = sim->step;
    if (code == TL_ERROR_INVALID_PLAN)
        sim->report.broken_step = step ? sim->step_count - 1 : sim->step_count;
    if (!step) {
        tli_put(&w, sim->step_count ? "after the last step: " : "before the first step: ");
        return w;
    }
    tli_put(&w, "step ");
    tli_put_i64(&w, sim->step_count - 1);
    tli_put(&w, " (");
    tli_put(&w, tli_name(tli_step_names, TL_STEP_COUNT, step->kind));
    tli_put(&w, " ");
    tli_put_i64(&w, step->node);
    if (step->output != TL_ALL_OUTPUTS) { tli_put(&w, "."); tli_put_i64(&w, step->output); }
    if (step->node >= 0 && step->node < sim->graph->node_count) {
        tli_put(&w, " ");
        tli_put(&w, tl_name_node(sim->graph, step->node));
    }
    tli_put(&w, "): ");
    return w;
}

static tl_result tli_sim_fail(tli_sim *sim, tl_result code, const char *why) {
    tli_writer w = tli_sim_begin_error(sim, code);
    tli_put(&w, why);
    return tli_end_error(sim->env, &w, code);
}

static tl_result tli_sim_broken(tli_sim *sim, const char *why) {
    return tli_sim_fail(sim, TL_ERROR_INVALID_PLAN, why);
}

// "input 2.0 is not resident"
static tl_result tli_sim_broken_tensor(tli_sim *sim, const char *before, int32_t tensor, const char *after) {
    tli_writer w = tli_sim_begin_error(sim, TL_ERROR_INVALID_PLAN);
    tli_put(&w, before);
    tli_put_i64(&w, sim->graph->outputs[tensor].node);
    tli_put(&w, ".");
    tli_put_i64(&w, sim->graph->outputs[tensor].output);
    tli_put(&w, after);
    return tli_end_error(sim->env, &w, TL_ERROR_INVALID_PLAN);
}

static tl_result tli_sim_broken_node(tli_sim *sim, const char *before, int32_t node, const char *after) {
    tli_writer w = tli_sim_begin_error(sim, TL_ERROR_INVALID_PLAN);
    tli_put(&w, before);
    tli_put_i64(&w, node);
    tli_put(&w, " (");
    tli_put(&w, tl_name_node(sim->graph, node));
    tli_put(&w, ")");
    tli_put(&w, after);
    return tli_end_error(sim->env, &w, TL_ERROR_INVALID_PLAN);
}

// -- the simulator: bytes --

static int32_t tli_sim_owner(const tli_sim *sim, tli_use use, int32_t index) {
    switch (use) {
    case TLI_USE_TENSOR: return index;
    case TLI_USE_PACKED: return sim->graph->tensor_count + index;
    case TLI_USE_GRADIENT: return 2 * sim->graph->tensor_count + index;
    case TLI_USE_SAVED: return 3 * sim->graph->tensor_count + index;
    case TLI_USE_TWICE:
    case TLI_USE_WORK: break;
    }
    return -1;
}

// Put the newest allocation at its offset: aligned, and apart from everything live.
static tl_result tli_sim_place(tli_sim *sim, tli_made *made) {
    int32_t number = sim->report.allocation_count - 1, owner = tli_sim_owner(sim, made->use, made->index), i;
    uint64_t end, padded;
    if (number >= sim->offset_count) return tli_sim_broken(sim, "offsets: fewer than allocations");
    made->offset = sim->offsets[number];
    if (made->offset & (sim->alignment - 1))  // a power of two: tl_check_device
        return tli_sim_broken(sim, "offsets: not a multiple of the alignment");
    if (!tli_add_u64(made->offset, made->bytes, &end) || !tli_add_u64(end, sim->alignment - 1, &padded))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "offsets: offset + bytes does not fit 64 bits");
    for (i = 0; i < sim->live_count; i++)
        if (made->offset < sim->live[i].end && sim->live[i].offset < end)
            return tli_sim_broken(sim, "offsets: two live allocations overlap");
    padded &= ~(sim->alignment - 1);
    if (padded > sim->report.arena_bytes) sim->report.arena_bytes = padded;
    sim->live[sim->live_count].offset = made->offset;
    sim->live[sim->live_count].end = end;
    sim->live[sim->live_count].owner = owner;
    if (owner >= 0) sim->places[owner] = sim->live_count;
    sim->live_count++;
    return TL_OK;
}

static tl_result tli_sim_alloc(tli_sim *sim, tli_use use, int32_t index, uint64_t bytes) {
    tli_made *made = &sim->made[sim->made_count];
    if (!bytes) return TL_OK;
    if (!tli_add_u64(sim->live_bytes, bytes, &sim->live_bytes))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "live bytes do not fit 64 bits");
    if (sim->report.allocation_count == INT32_MAX)
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "allocations do not fit 31 bits");
    if (use == TLI_USE_TWICE || use == TLI_USE_WORK) sim->call_bytes += bytes;
    if (sim->live_bytes > sim->step_bytes) sim->step_bytes = sim->live_bytes;
    if (sim->live_bytes > sim->report.peak_bytes) {
        sim->report.peak_bytes = sim->live_bytes;
        sim->report.peak_step = sim->step ? sim->step_count - 1 : -1;
    }
    made->use = use; made->index = index; made->bytes = bytes; made->offset = 0;
    sim->made_count++;
    sim->report.allocation_count++;
    return sim->offsets ? tli_sim_place(sim, made) : TL_OK;
}

static void tli_sim_unplace(tli_sim *sim, int32_t place) {
    tli_live *last = &sim->live[--sim->live_count];
    if (sim->live[place].owner >= 0) sim->places[sim->live[place].owner] = -1;
    if (place == sim->live_count) return;
    sim->live[place] = *last;
    if (last->owner >= 0) sim->places[last->owner] = place;
}

static void tli_sim_release(tli_sim *sim, tli_use use, int32_t index, uint64_t bytes) {
    if (!bytes) return;
    sim->live_bytes -= bytes;
    if (sim->offsets) tli_sim_unplace(sim, sim->places[tli_sim_owner(sim, use, index)]);
}

// The call is over: what was made twice and the scratch bytes go.
static void tli_sim_release_call(tli_sim *sim) {
    int32_t i;
    if (!sim->call_bytes) return;
    sim->live_bytes -= sim->call_bytes;
    sim->call_bytes = 0;
    if (!sim->offsets) return;
    for (i = sim->live_count; i-- > 0;)
        if (sim->live[i].owner < 0) tli_sim_unplace(sim, i);
}

// In place: output 0 takes over the allocation of the input, and its offset; no new one is made.
static void tli_sim_hand_over(tli_sim *sim, int32_t from, int32_t to) {
    sim->tensors[from].state = TLI_ABSENT;
    sim->tensors[to].state = TLI_RESIDENT;
    if (!sim->offsets || !sim->graph->outputs[from].bytes) return;
    sim->places[to] = sim->places[from];
    sim->places[from] = -1;
    sim->live[sim->places[to]].owner = to;
}

// -- the simulator: time --

static tl_result tli_sim_compute(tli_sim *sim, uint64_t cost) {
    uint64_t *sum = &sim->report.compute_cost;
    if (!tli_add_u64(sim->now, cost, &sim->now) || !tli_add_u64(*sum, cost, sum))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "cost does not fit 64 bits");
    return TL_OK;
}

// A conversion is a compute step.
static tl_result tli_sim_convert(tli_sim *sim, uint64_t bytes) {
    uint64_t ns = 0;
    sim->report.codec_count++;
    if (!sim->codec_rate) return TL_OK;
    if (!tli_find_time(bytes, sim->codec_rate, &ns) || !tli_add_u64(sim->now, ns, &sim->now))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "cost does not fit 64 bits");
    return TL_OK;
}

// A copy starts when it is issued and the link is free.
static tl_result tli_sim_copy(tli_sim *sim, int32_t tensor) {
    uint64_t ns = 0, start = sim->link_free > sim->now ? sim->link_free : sim->now;
    sim->report.copy_count++;
    if (sim->link_rate && (!tli_find_time(sim->graph->outputs[tensor].bytes, sim->link_rate, &ns) ||
                           !tli_add_u64(ns, sim->link_latency, &ns)))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "cost does not fit 64 bits");
    if (!tli_add_u64(start, ns, &sim->link_free))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "cost does not fit 64 bits");
    sim->tensors[tensor].ready = sim->link_free;
    return TL_OK;
}

// -- the simulator: F, I, S, B --

// NULL where the node has none: a graph without any has no array to point into.
static const tl_node_input *tli_inputs_of(const tl_graph *graph, const tl_node *node) {
    return node->input_count ? graph->inputs + node->first_input : NULL;
}

static int tli_sim_readable(const tli_sim *sim, int32_t tensor) {
    return sim->tensors[tensor].state == TLI_RESIDENT || sim->tensors[tensor].state == TLI_LEAVING;
}

static tl_result tli_sim_check_inplace(tli_sim *sim, const tl_node *node) {
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    int32_t from, i, reads = 0;
    if (node->inplace < 0) return tli_sim_broken(sim, "may not run in place");
    from = inputs[node->inplace].tensor;  // no graph input, and of the same bytes: tl_check_graph
    if (sim->tensors[from].state != TLI_RESIDENT)
        return tli_sim_broken_tensor(sim, "input ", from, " cannot be overwritten: it is being spilled");
    if (sim->tensors[node->first_output].state != TLI_ABSENT)
        return tli_sim_broken(sim, "output 0 is already resident");
    for (i = 0; i < node->input_count; i++) reads += inputs[i].tensor == from;
    return reads == 1 ? TL_OK : tli_sim_broken_tensor(sim, "reads the overwritten tensor ", from, " twice");
}

static tl_result tli_sim_check_forward(tli_sim *sim, const tl_node *node, tl_step_kind kind,
                                       int32_t *missing) {
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    int32_t i;
    *missing = 0;
    for (i = 0; i < node->input_count; i++)
        if (!tli_sim_readable(sim, inputs[i].tensor))
            return tli_sim_broken_tensor(sim, "input ", inputs[i].tensor, " is not resident");
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (sim->tensors[i].state == TLI_COMING)
            return tli_sim_broken_tensor(sim, "output ", i, " is being fetched");
        if (sim->tensors[i].state == TLI_PACKED)
            return tli_sim_broken_tensor(sim, "output ", i, " is compressed");
        *missing += sim->tensors[i].state == TLI_ABSENT;
    }
    if (kind == TL_STEP_FORWARD_SAVE) {
        if (!node->saved_bytes) return tli_sim_broken(sim, "has no saved bytes");
        if (!sim->nodes[sim->step->node].has_saved) return TL_OK;
        return tli_sim_broken(sim, "saved bytes are already resident");
    }
    if (!*missing) return tli_sim_broken(sim, "all outputs are already resident");
    return kind == TL_STEP_FORWARD_INPLACE ? tli_sim_check_inplace(sim, node) : TL_OK;
}

// Allocations in this order: missing outputs; outputs made twice; saved; fwork. In place, output 0
// takes the input's. A save where nothing is missing makes saved alone.
static tl_result tli_sim_forward(tli_sim *sim, int32_t id, tl_step_kind kind) {
    const tl_node *node = &sim->graph->nodes[id];
    int32_t i, end = node->first_output + node->output_count, missing;
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    tl_result result = tli_sim_check_forward(sim, node, kind, &missing);
    if (result) return result;
    if (kind == TL_STEP_FORWARD_INPLACE)
        tli_sim_hand_over(sim, inputs[node->inplace].tensor, node->first_output);
    for (i = node->first_output; i < end; i++) {
        if (sim->tensors[i].state != TLI_ABSENT) continue;
        result = tli_sim_alloc(sim, TLI_USE_TENSOR, i, sim->graph->outputs[i].bytes);
        if (result) return result;
        sim->tensors[i].state = TLI_COMING;  // for the length of this call: marks what is made once
    }
    for (i = node->first_output; i < end; i++) {
        int again = tli_sim_readable(sim, i) && missing;
        if (kind == TL_STEP_FORWARD_INPLACE && i == node->first_output) again = 0;
        if (sim->tensors[i].state == TLI_COMING) sim->tensors[i].state = TLI_RESIDENT;
        result = again ? tli_sim_alloc(sim, TLI_USE_TWICE, i, sim->graph->outputs[i].bytes) : TL_OK;
        if (result) return result;
    }
    if (kind == TL_STEP_FORWARD_SAVE) {
        result = tli_sim_alloc(sim, TLI_USE_SAVED, id, node->saved_bytes);
        if (result) return result;
        sim->nodes[id].has_saved = 1;
    }
    result = tli_sim_alloc(sim, TLI_USE_WORK, id, node->fwork_bytes);
    if (result) return result;
    tli_sim_release_call(sim);
    sim->report.forward_count++;
    sim->report.recompute_count += sim->nodes[id].ran;
    sim->nodes[id].ran = 1;
    return tli_sim_compute(sim, node->fwd_cost);
}

// Some node that reads an output of this one and whose backward has not run.
static int32_t tli_sim_find_waiting(const tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    int32_t reader, i;
    for (reader = id + 1; reader < graph->node_count; reader++) {
        const tl_node *node = &graph->nodes[reader];
        if (!node->has_grad || sim->nodes[reader].done) continue;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (graph->outputs[graph->inputs[i].tensor].node == id) return reader;
    }
    return id;
}

static tl_result tli_sim_check_backward(tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    if (sim->inference) return tli_sim_broken(sim, "no backward in inference");
    if (!node->has_grad) return tli_sim_broken(sim, "has no gradient");
    if (sim->nodes[id].done) return tli_sim_broken(sim, "backward already ran");
    if (!sim->nodes[id].ran) return tli_sim_broken(sim, "forward never ran");
    if (!sim->any_order && id != sim->next_backward)
        return tli_sim_broken_node(sim, "backward out of order: node ", sim->next_backward, " is next");
    if (sim->nodes[id].waits_for)
        return tli_sim_broken_node(sim, "consumer ", tli_sim_find_waiting(sim, id), " has not run backward");
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed && !tli_sim_readable(sim, graph->inputs[i].tensor))
            return tli_sim_broken_tensor(sim, "needs ", graph->inputs[i].tensor, ", which is not resident");
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed && !tli_sim_readable(sim, i))
            return tli_sim_broken_tensor(sim, "needs ", i, ", which is not resident");
    if (node->saved_bytes && !sim->nodes[id].has_saved) return tli_sim_broken(sim, "needs its saved bytes");
    return TL_OK;
}

static tl_result tli_sim_make_gradient(tli_sim *sim, int32_t tensor) {
    const tl_node_output *output = &sim->graph->outputs[tensor];
    if (sim->tensors[tensor].has_gradient || !sim->graph->nodes[output->node].has_grad) return TL_OK;
    sim->tensors[tensor].has_gradient = 1;
    return tli_sim_alloc(sim, TLI_USE_GRADIENT, tensor, output->bytes);
}

// Allocations in this order: gradients of outputs, gradients of inputs, bwork; each gradient on its
// first contribution only.
static tl_result tli_sim_backward(tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t out_end = node->first_output + node->output_count;
    int32_t in_end = node->first_input + node->input_count, i;
    tl_result result = tli_sim_check_backward(sim, id);
    for (i = node->first_output; i < out_end && !result; i++) result = tli_sim_make_gradient(sim, i);
    for (i = node->first_input; i < in_end && !result; i++)
        result = tli_sim_make_gradient(sim, graph->inputs[i].tensor);
    if (!result) result = tli_sim_alloc(sim, TLI_USE_WORK, id, node->bwork_bytes);
    if (!result) result = tli_sim_compute(sim, node->bwd_cost);
    if (result) return result;
    tli_sim_release_call(sim);
    for (i = node->first_output; i < out_end; i++) {
        tli_sim_release(sim, TLI_USE_GRADIENT, i, graph->outputs[i].bytes);
        sim->tensors[i].has_gradient = 0;
    }
    if (sim->nodes[id].has_saved) tli_sim_release(sim, TLI_USE_SAVED, id, node->saved_bytes);
    sim->nodes[id].has_saved = 0;
    sim->nodes[id].done = 1;
    for (i = node->first_input; i < in_end; i++)
        sim->nodes[graph->outputs[graph->inputs[i].tensor].node].waits_for--;
    while (sim->next_backward >= 0 &&
           (sim->nodes[sim->next_backward].done || !graph->nodes[sim->next_backward].has_grad))
        sim->next_backward--;
    sim->report.backward_count++;
    return TL_OK;
}

// -- the simulator: steps on tensors --

static void tli_sim_drop(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (t->state == TLI_PACKED) tli_sim_release(sim, TLI_USE_PACKED, tensor, t->packed_bytes);
    else tli_sim_release(sim, TLI_USE_TENSOR, tensor, sim->graph->outputs[tensor].bytes);
    t->state = TLI_ABSENT;
}

static tl_result tli_sim_spill(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (t->on_host) return tli_sim_broken_tensor(sim, "the host has ", tensor, " already");
    sim->host_bytes += sim->graph->outputs[tensor].bytes;  // fits: a tensor is there once
    if (sim->host_bytes > sim->report.host_peak_bytes) sim->report.host_peak_bytes = sim->host_bytes;
    t->on_host = 1;
    t->state = TLI_LEAVING;
    return tli_sim_copy(sim, tensor);
}

static tl_result tli_sim_fetch(tli_sim *sim, int32_t tensor) {
    tl_result result;
    if (!sim->tensors[tensor].on_host)
        return tli_sim_broken_tensor(sim, "the host has no copy of ", tensor, "");
    result = tli_sim_alloc(sim, TLI_USE_TENSOR, tensor, sim->graph->outputs[tensor].bytes);
    if (result) return result;
    sim->tensors[tensor].state = TLI_COMING;
    return tli_sim_copy(sim, tensor);
}

static void tli_sim_wait(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (t->ready > sim->now) sim->now = t->ready;
    if (t->state == TLI_LEAVING) tli_sim_drop(sim, tensor);
    else t->state = TLI_RESIDENT;
}

// Of several outputs, one is converted after the other: both copies of a tensor live until its own
// conversion ends, not until the step does.
static tl_result tli_sim_compress(tli_sim *sim, int32_t tensor, uint8_t codec) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    uint64_t bytes = sim->graph->outputs[tensor].bytes, packed = tl_find_codec_bytes((tl_codec)codec, bytes);
    tl_result result = tli_sim_alloc(sim, TLI_USE_PACKED, tensor, packed);
    if (result) return result;
    tli_sim_release(sim, TLI_USE_TENSOR, tensor, bytes);
    t->state = TLI_PACKED;
    t->packed_bytes = packed;
    t->codec = codec;
    return tli_sim_convert(sim, bytes);
}

static tl_result tli_sim_expand(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    uint64_t bytes = sim->graph->outputs[tensor].bytes;
    tl_result result = tli_sim_alloc(sim, TLI_USE_TENSOR, tensor, bytes);
    if (result) return result;
    tli_sim_release(sim, TLI_USE_PACKED, tensor, t->packed_bytes);
    t->state = TLI_RESIDENT;
    return tli_sim_convert(sim, bytes);
}

static tl_result tli_sim_drop_host(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (!t->on_host) return tli_sim_broken_tensor(sim, "the host has no copy of ", tensor, "");
    if (t->state == TLI_LEAVING || t->state == TLI_COMING)
        return tli_sim_broken_tensor(sim, "a copy of ", tensor, " is under way");
    t->on_host = 0;
    sim->host_bytes -= sim->graph->outputs[tensor].bytes;
    return TL_OK;
}

// The states in which a step can act on a tensor. DROP_HOST goes by the host copy instead.
static int tli_acts_in_state(tl_step_kind kind, tli_state state, int on_host) {
    switch (kind) {
    case TL_STEP_DROP: return state == TLI_RESIDENT || state == TLI_PACKED;
    case TL_STEP_SPILL:
    case TL_STEP_COMPRESS: return state == TLI_RESIDENT;
    case TL_STEP_FETCH: return state == TLI_ABSENT;
    case TL_STEP_WAIT: return state == TLI_LEAVING || state == TLI_COMING;
    case TL_STEP_EXPAND: return state == TLI_PACKED;
    case TL_STEP_DROP_HOST: return on_host;
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return 0;
}

static int tli_sim_acts_on(const tli_sim *sim, tl_step_kind kind, int32_t tensor) {
    const tli_sim_tensor *t = &sim->tensors[tensor];
    return tli_acts_in_state(kind, (tli_state)t->state, t->on_host);
}

static tl_result tli_sim_act(tli_sim *sim, tl_step_kind kind, int32_t tensor) {
    switch (kind) {
    case TL_STEP_DROP: tli_sim_drop(sim, tensor); break;
    case TL_STEP_SPILL: return tli_sim_spill(sim, tensor);
    case TL_STEP_FETCH: return tli_sim_fetch(sim, tensor);
    case TL_STEP_WAIT: tli_sim_wait(sim, tensor); break;
    case TL_STEP_DROP_HOST: return tli_sim_drop_host(sim, tensor);
    case TL_STEP_COMPRESS: return tli_sim_compress(sim, tensor, sim->step->codec);
    case TL_STEP_EXPAND: return tli_sim_expand(sim, tensor);
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// With TL_ALL_OUTPUTS the state alone chooses the tensors; a rule that one of them breaks breaks the
// step. Only DROP_HOST may find nothing to do.
static tl_result tli_sim_tensor_step(tli_sim *sim, const tl_step *step) {
    static const char *const sentences[] = { "the tensor is absent", "the tensor is resident",
        "the tensor is being spilled", "the tensor is being fetched", "the tensor is compressed" };
    const tl_node *node = &sim->graph->nodes[step->node];
    tl_step_kind kind = (tl_step_kind)step->kind;
    int32_t i, acted = 0;
    tl_result result;
    if (step->output != TL_ALL_OUTPUTS) {
        i = node->first_output + step->output;
        if (kind == TL_STEP_DROP_HOST || tli_sim_acts_on(sim, kind, i)) return tli_sim_act(sim, kind, i);
        return tli_sim_broken(sim, sentences[sim->tensors[i].state]);
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (!tli_sim_acts_on(sim, kind, i)) continue;
        acted++;
        result = tli_sim_act(sim, kind, i);
        if (result) return result;
    }
    if (acted || kind == TL_STEP_DROP_HOST) return TL_OK;
    return tli_sim_broken(sim, "no output is in a state to act on");
}

// -- the simulator: from the first step to the end --

static tl_result tli_sim_check_step(tli_sim *sim, const tl_step *step) {
    const tl_graph *graph = sim->graph;
    int packs = step->kind == TL_STEP_COMPRESS;
    if (step->kind >= TL_STEP_COUNT) return tli_sim_broken(sim, "no such kind of step");
    if (step->reserved) return tli_sim_broken(sim, "reserved must be 0");
    if (step->node < 0 || step->node >= graph->node_count) return tli_sim_broken(sim, "no such node");
    if (graph->nodes[step->node].is_input) return tli_sim_broken(sim, "input nodes take no steps");
    if (tli_acts_on_node((tl_step_kind)step->kind)) {
        if (step->output != TL_ALL_OUTPUTS)
            return tli_sim_broken(sim, "acts on a node: output must be TL_ALL_OUTPUTS");
    } else if (step->output < TL_ALL_OUTPUTS || step->output >= graph->nodes[step->node].output_count) {
        return tli_sim_broken(sim, "no such output");
    }
    if (packs && (step->codec == TL_CODEC_NONE || step->codec >= TL_CODEC_COUNT))
        return tli_sim_broken(sim, "codec must be f16, bf16 or q8");
    if (!packs && step->codec != TL_CODEC_NONE) return tli_sim_broken(sim, "codec is for COMPRESS only");
    return TL_OK;
}

static tl_result tli_sim_run_step(tli_sim *sim, const tl_step *step) {
    tli_sim_node *node;
    tl_result result = tli_sim_check_step(sim, step);
    if (result) return result;
    node = &sim->nodes[step->node];
    switch ((tl_step_kind)step->kind) {
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE: return tli_sim_forward(sim, step->node, (tl_step_kind)step->kind);
    case TL_STEP_BACKWARD: return tli_sim_backward(sim, step->node);
    case TL_STEP_DROP_SAVED:
        if (!node->has_saved) return tli_sim_broken(sim, "saved bytes are not resident");
        node->has_saved = 0;
        tli_sim_release(sim, TLI_USE_SAVED, step->node, sim->graph->nodes[step->node].saved_bytes);
        return TL_OK;
    case TL_STEP_DROP:
    case TL_STEP_SPILL:
    case TL_STEP_FETCH:
    case TL_STEP_WAIT:
    case TL_STEP_DROP_HOST:
    case TL_STEP_COMPRESS:
    case TL_STEP_EXPAND: return tli_sim_tensor_step(sim, step);
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// Simulate one step. After an error the simulation is over: release it.
static tl_result tli_sim_step(tli_sim *sim, const tl_step *step) {
    tl_result result;
    if (sim->step_count == INT32_MAX) return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "steps do not fit 31 bits");
    sim->step = step;
    sim->step_count++;
    sim->step_bytes = sim->live_bytes;
    sim->made_count = 0;
    result = tli_sim_run_step(sim, step);
    sim->step = NULL;
    return result;
}

static int tli_sim_is_result(const tli_sim *sim, int32_t id, int any_keep) {
    const tl_node *node = &sim->graph->nodes[id];
    if (node->keep) return 1;
    return sim->inference && !any_keep && !node->is_input && !sim->nodes[id].is_read;
}

// Hold the rules of the end and complete sim->report.
static tl_result tli_sim_end(tli_sim *sim) {
    const tl_graph *graph = sim->graph;
    int32_t id, i;
    int any_keep = 0;
    sim->made_count = 0;
    for (id = 0; id < graph->node_count; id++) any_keep |= graph->nodes[id].keep;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (!sim->inference && node->has_grad && !sim->nodes[id].done)
            return tli_sim_broken_node(sim, "node ", id, " never ran backward");
        if (!tli_sim_is_result(sim, id, any_keep)) continue;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (!tli_sim_readable(sim, i))
                return tli_sim_broken_tensor(sim, "result ", i, " is not resident");
    }
    if (sim->offsets && sim->report.allocation_count != sim->offset_count)
        return tli_sim_broken(sim, "offsets: more than allocations");
    sim->report.end_bytes = sim->live_bytes;
    sim->report.end_host_bytes = sim->host_bytes;
    sim->report.cost = sim->now;
    return TL_OK;
}

static void tli_free_sim(tli_sim *sim) {
    tli_release(sim->env, sim->tensors);
    tli_release(sim->env, sim->nodes);
    tli_release(sim->env, sim->made);
    tli_release(sim->env, sim->live);
    tli_release(sim->env, sim->places);
    sim->tensors = NULL; sim->nodes = NULL; sim->made = NULL; sim->live = NULL; sim->places = NULL;
}

// The largest number of allocations of one step, and of graph inputs.
static uint64_t tli_sim_most_made(const tl_graph *graph) {
    uint64_t most = 0, inputs = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        uint64_t made = (uint64_t)node->output_count + (uint64_t)node->input_count + 2;
        if (made > most) most = made;
        if (node->is_input) inputs += (uint64_t)node->output_count;
    }
    return most > inputs ? most : inputs;
}

static tl_result tli_sim_alloc_state(tli_sim *sim) {
    uint64_t tensors = (uint64_t)sim->graph->tensor_count, nodes = (uint64_t)sim->graph->node_count;
    uint64_t most = tli_sim_most_made(sim->graph), owners = 3 * tensors + nodes;
    if (owners > INT32_MAX) return tli_sim_fail(sim, TL_ERROR_OVERFLOW, "graph: too many tensors");
    sim->tensors = (tli_sim_tensor *)tli_alloc_array(sim->env, tensors, sizeof *sim->tensors);
    sim->nodes = (tli_sim_node *)tli_alloc_array(sim->env, nodes, sizeof *sim->nodes);
    sim->made = (tli_made *)tli_alloc_array(sim->env, most, sizeof *sim->made);
    if (sim->offsets) {
        sim->live = (tli_live *)tli_alloc_array(sim->env, owners + most, sizeof *sim->live);
        sim->places = (int32_t *)tli_alloc_array(sim->env, owners, sizeof *sim->places);
    }
    if (!sim->tensors || !sim->nodes || !sim->made || (sim->offsets && (!sim->live || !sim->places)))
        return tli_fail(sim->env, TL_ERROR_NO_MEMORY, sim->function, "no memory for the simulation");
    return TL_OK;
}

// What follows from the graph alone: who reads whom, the base cost, the first backward.
static void tli_sim_read_graph(tli_sim *sim) {
    const tl_graph *graph = sim->graph;
    int32_t id, i;
    sim->next_backward = -1;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        sim->report.base_cost += node->fwd_cost + (!sim->inference && node->has_grad ? node->bwd_cost : 0);
        if (node->has_grad) sim->next_backward = id;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            tli_sim_node *maker = &sim->nodes[graph->outputs[graph->inputs[i].tensor].node];
            maker->is_read = 1;
            maker->waits_for += node->has_grad;
        }
    }
}

// Go back to the state before the first step; no memory is asked for.
static tl_result tli_reset_sim(tli_sim *sim) {
    const tl_graph *graph = sim->graph;
    int32_t i, owners = 3 * graph->tensor_count + graph->node_count;
    tl_result result = TL_OK;
    tli_zero(sim->tensors, (size_t)graph->tensor_count * sizeof *sim->tensors);
    tli_zero(sim->nodes, (size_t)graph->node_count * sizeof *sim->nodes);
    tli_zero(&sim->report, sizeof sim->report);
    sim->report.broken_step = -1;
    sim->report.peak_step = -1;
    sim->live_bytes = sim->host_bytes = sim->step_bytes = sim->call_bytes = 0;
    sim->now = sim->link_free = 0;
    sim->step = NULL;
    sim->step_count = sim->made_count = sim->live_count = 0;
    for (i = 0; sim->offsets && i < owners; i++) sim->places[i] = -1;
    tli_sim_read_graph(sim);
    for (i = 0; i < graph->tensor_count && !result; i++) {
        if (!graph->nodes[graph->outputs[i].node].is_input) continue;
        sim->tensors[i].state = TLI_RESIDENT;
        result = tli_sim_alloc(sim, TLI_USE_TENSOR, i, graph->outputs[i].bytes);
    }
    return result;
}

// Start a simulation of a graph that passed tl_check_graph; of the plan, only the flags and offsets
// are read. Release it with tli_free_sim, also after an error.
static tl_result tli_init_sim(tl_env *env, tli_sim *sim, const char *function, const tl_graph *graph,
                              const tl_device *device, const tl_plan *plan) {
    tl_result result;
    tli_zero(sim, sizeof *sim);
    sim->env = env;
    sim->function = function;
    sim->graph = graph;
    sim->inference = plan->inference;
    sim->any_order = plan->any_order;
    sim->link_rate = device ? device->link_bytes_per_second : 0;
    sim->link_latency = device ? device->link_latency_ns : 0;
    sim->codec_rate = device ? device->codec_bytes_per_second : 0;
    sim->alignment = device && device->alignment_bytes ? device->alignment_bytes : 1;
    sim->offsets = plan->offset_count ? plan->offsets : NULL;
    sim->offset_count = plan->offset_count;
    sim->report.broken_step = -1;
    result = tli_sim_alloc_state(sim);
    return result ? result : tli_reset_sim(sim);
}

// The simulation behind tl_simulate_plan and the planners, for graphs and devices that were checked.
static tl_result tli_simulate(tl_env *env, const char *function, const tl_simulate_desc *desc,
                              tl_report *report) {
    const tl_plan *plan = desc->plan;
    tli_sim sim;
    int32_t i;
    tl_result result = tli_init_sim(env, &sim, function, desc->graph, desc->device, plan);
    for (i = 0; i < plan->step_count && !result; i++) {
        result = tli_sim_step(&sim, &plan->steps[i]);
        if (desc->live_bytes) desc->live_bytes[i] = sim.step_bytes;
        if (desc->host_bytes) desc->host_bytes[i] = sim.host_bytes;
    }
    if (!result) result = tli_sim_end(&sim);
    if (result) {
        i = sim.report.broken_step;
        tli_zero(&sim.report, sizeof sim.report);
        sim.report.broken_step = i;
    }
    *report = sim.report;
    tli_free_sim(&sim);
    return result;
}

static tl_result tli_check_plan(tl_env *env, const char *function, const tl_plan *plan) {
    if (plan->step_count < 0 || (plan->step_count && !plan->steps))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "step_count: must be the number of steps");
    if (plan->offset_count < 0 || (plan->offset_count && !plan->offsets))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "offset_count: must be the number of offsets");
    if (plan->repeat_count < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "repeat_count: must be >= 0");
    if ((plan->inference != 0 && plan->inference != 1) || (plan->any_order != 0 && plan->any_order != 1))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "inference, any_order: must be 0 or 1");
    return TL_OK;
}

static tl_result tli_simulate_checked(tl_env *env, const char *function, const tl_simulate_desc *desc,
                                      tl_report *report) {
    tl_result result = tl_check_graph(env, desc->graph);
    tli_zero(report, sizeof *report);
    report->broken_step = -1;
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (!result) result = tli_check_plan(env, function, desc->plan);
    return result ? result : tli_simulate(env, function, desc, report);
}

TLI_IMPL tl_result tl_simulate_plan(tl_env *env, const tl_simulate_desc *desc, tl_report *report) {
    TL_ASSERT(desc && desc->graph && desc->plan && report);
    return tli_simulate_checked(env, "tl_simulate_plan", desc, report);
}

static tl_result tli_measure(tl_env *env, const char *function, const tl_graph *graph, const tl_device *device,
                             int is_checked, tl_plan *plan) {
    tl_simulate_desc desc;
    tl_report report;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.device = device;
    desc.plan = plan;
    result = is_checked ? tli_simulate(env, function, &desc, &report)
                        : tli_simulate_checked(env, function, &desc, &report);
    plan->peak_bytes = report.peak_bytes;
    plan->arena_bytes = report.arena_bytes;
    plan->host_peak_bytes = report.host_peak_bytes;
    plan->cost = report.cost;
    plan->base_cost = report.base_cost;
    return result;
}

TLI_IMPL tl_result tl_measure_plan(tl_env *env, const tl_graph *graph, const tl_device *device,
                                   tl_plan *plan) {
    TL_ASSERT(graph && plan);
    return tli_measure(env, "tl_measure_plan", graph, device, 0, plan);
}

// -- revolve: the binomial numbers --
//
// b(c, r) = C(c+r, c): the longest chain that c slots reverse with at most r forwards of any layer.

// b(c, r) from b(c, r-1); the largest number where it does not fit.
static uint64_t tli_next_binomial(uint64_t last, uint64_t c, uint64_t r) {
    uint64_t whole, part, next;
    if (!tli_mul_u64(last / r, c + r, &whole) || !tli_mul_u64(last % r, c + r, &part)) return UINT64_MAX;
    return tli_add_u64(whole, part / r, &next) ? next : UINT64_MAX;
}

// r n - C(c+r, r-1), as a sum of what is positive: r (n - b) + c b (r-1) / (c+1), b = b(c, r-1) < n.
TLI_IMPL tl_result tl_find_revolve_advances(tl_env *env, uint64_t layer_count, uint64_t slot_count,
                                            uint64_t *advances) {
    const char *function = "tl_find_revolve_advances";
    uint64_t n = layer_count, c = slot_count, r = 1, b = 1, next, more;
    int fits = 1;
    TL_ASSERT(advances);
    *advances = 0;
    if (!layer_count) return tli_fail(env, TL_ERROR_INVALID_ARG, function, "layer_count: must be > 0");
    if (!slot_count) return tli_fail(env, TL_ERROR_INVALID_ARG, function, "slot_count: must be > 0");
    if (c >= n - 1) {  // every tensor has a slot
        *advances = n - 1;
        return TL_OK;
    }
    if (c == 1) {  // r = n - 1: too far to count
        fits = tli_mul_u64(n % 2 ? n : n / 2, n % 2 ? (n - 1) / 2 : n - 1, advances);
    } else {
        for (; fits; r++, b = next) {
            fits = tli_mul_u64(r, n - b, advances);  // the answer is no less: where it does not fit, stop
            next = tli_next_binomial(b, c, r);
            if (next >= n) break;
        }
        fits = fits && tli_mul_u64(b / (c + 1), r - 1, &next) && tli_mul_u64(b % (c + 1), r - 1, &more) &&
               tli_add_u64(next, more / (c + 1), &next) && tli_mul_u64(next, c, &next) &&
               tli_add_u64(*advances, next, advances);
    }
    if (fits) return TL_OK;
    *advances = 0;
    return tli_fail(env, TL_ERROR_OVERFLOW, function, "the number of forwards does not fit 64 bits");
}

// How far to advance before the next checkpoint: n > 1 layers, c > 1 slots. Optimal where
// b(c, r-2) <= m <= b(c, r-1) and b(c-1, r-1) <= n-m <= b(c-1, r); the largest such m.
static int32_t tli_split_chain(int32_t layer_count, int32_t slot_count) {
    uint64_t n = (uint64_t)layer_count, c = (uint64_t)(slot_count < layer_count ? slot_count : layer_count);
    uint64_t r = 1, b = 1, next, rest;
    for (; (next = tli_next_binomial(b, c, r)) < n; r++) b = next;
    rest = b * c / (c + r - 1);  // b(c-1, r-1)
    return (int32_t)(b < n - rest ? b : n - rest);
}

// The results of a graph, which stay to the end: nodes marked keep; in inference, where there are
// none, nodes that nobody reads.
static void tli_mark_results(const tl_graph *graph, int inference, uint8_t *wanted) {
    int32_t id, i;
    int any_keep = 0;
    for (id = 0; id < graph->node_count; id++) any_keep |= graph->nodes[id].keep;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int is_result = node->keep || (inference && !any_keep && !node->is_input);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            wanted[i] = (uint8_t)is_result;
    }
    if (!inference || any_keep) return;
    for (i = 0; i < graph->input_count; i++) {
        const tl_node *maker = &graph->nodes[graph->outputs[graph->inputs[i].tensor].node];
        tli_zero(wanted + maker->first_output, (size_t)maker->output_count);
    }
}

#ifndef TL_NO_PLANNERS
static void tli_add_tensor_step(tli_steps *list, const tl_graph *graph, tl_step_kind kind, int32_t tensor) {
    const tl_node_output *output = &graph->outputs[tensor];
    tli_add_step(list, tli_step_of(kind, output->node, output->output));
}

// -- plans: calls first, drops afterwards --

// A plan of the collected steps, measured; on error everything is released and *plan is zero.
static tl_result tli_finish_plan(tli_steps *list, const char *function, const tl_graph *graph, int inference,
                                 tl_plan *plan) {
    tl_result result = tli_take_steps(list, function, plan);
    if (result) return result;
    plan->repeat_count = 1;
    plan->inference = inference;
    result = tli_measure(list->env, function, graph, NULL, 1, plan);
    if (result) tl_free_plan(list->env, plan);
    return result;
}

// In time order: the last reader of a tensor is where its drop stands.
static void tli_want(tli_steps *list, const tl_graph *graph, int32_t tensor, uint8_t *wanted) {
    if (wanted[tensor] || graph->nodes[graph->outputs[tensor].node].is_input) return;
    wanted[tensor] = 1;
    tli_add_tensor_step(list, graph, TL_STEP_DROP, tensor);
}

// Walk the calls backwards and put each drop right after the last use of its tensor; `list` comes out
// in reverse. The first first_count calls make all outputs of their nodes; later forwards make those
// that do not stay[] (0 = there are no later ones).
static void tli_place_drops(const tl_graph *graph, const tli_steps *calls, int32_t first_count,
                            const uint8_t *stays,
                            uint8_t *wanted, tli_steps *list) {
    int32_t at, i;
    for (at = calls->count; at-- > 0; tli_add_step(list, calls->steps[at])) {
        const tl_node *node = &graph->nodes[calls->steps[at].node];
        int is_backward = calls->steps[at].kind == TL_STEP_BACKWARD;
        for (i = node->first_output + node->output_count; i-- > node->first_output;) {
            int made = !is_backward && (at < first_count || !stays[i]), was = wanted[i];
            if (!is_backward || graph->outputs[i].needed) tli_want(list, graph, i, wanted);
            // Made here: not wanted before. Made again beside a copy that nobody reads later: the
            // copy goes after its own last use, so it is not wanted before either.
            if (!is_backward) wanted[i] = (uint8_t)(made ? 0 : was);
        }
        for (i = node->first_input + node->input_count; i-- > node->first_input;)
            if (!is_backward || graph->inputs[i].needed)
                tli_want(list, graph, graph->inputs[i].tensor, wanted);
    }
}

static void tli_reverse_steps(tli_steps *list) {
    int32_t i;
    for (i = 0; i < list->count / 2; i++) {
        tl_step step = list->steps[i];
        list->steps[i] = list->steps[list->count - 1 - i];
        list->steps[list->count - 1 - i] = step;
    }
}

// The plan of these calls; they are released.
static tl_result tli_plan_calls(tli_steps *calls, int32_t first_count, const uint8_t *stays,
                                const char *function,
                                const tl_graph *graph, int inference, tl_plan *plan) {
    tl_env *env = calls->env;
    tli_steps list = tli_steps_of(env);
    uint8_t *wanted = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    list.failed = calls->failed || !wanted;
    if (!list.failed) {
        tli_mark_results(graph, inference, wanted);
        tli_place_drops(graph, calls, first_count, stays, wanted, &list);
        tli_reverse_steps(&list);
    }
    tli_release(env, calls->steps);
    tli_release(env, wanted);
    return tli_finish_plan(&list, function, graph, inference, plan);
}

static tl_step_kind tli_forward_kind(const tl_node *node, int saves) {
    return saves && node->saved_bytes ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD;
}

TLI_IMPL tl_result tl_plan_keep_all(tl_env *env, const tl_graph *graph, int inference, tl_plan *plan) {
    tli_steps calls = tli_steps_of(env);
    int32_t id;
    tl_result result;
    TL_ASSERT(graph && plan);
    tli_zero(plan, sizeof *plan);
    result = tl_check_graph(env, graph);
    if (result) return result;
    for (id = 0; id < graph->node_count; id++) {
        tl_step_kind kind = tli_forward_kind(&graph->nodes[id], !inference);
        if (!graph->nodes[id].is_input) tli_add_step(&calls, tli_step_of(kind, id, TL_ALL_OUTPUTS));
    }
    for (id = graph->node_count; id-- > 0 && !inference;)
        if (graph->nodes[id].has_grad)
            tli_add_step(&calls, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
    return tli_plan_calls(&calls, calls.count, NULL, "tl_plan_keep_all", graph, inference != 0, plan);
}

// -- kept set: what is not kept is made again when backward first wants it, and stays until its last
// reader; so every node is called forward at most twice --

typedef struct tli_remake {
    const tl_graph *graph;
    tli_steps       calls;
    uint8_t *stays, *here;     // [tensor_count]
    uint8_t *has_saved;        // [node_count]
    int32_t *stack, *cursors;  // [node_count] nodes being made again, and the next input of each to look at
} tli_remake;

static void tli_call_forward(tli_remake *r, int32_t id, int saves) {
    const tl_node *node = &r->graph->nodes[id];
    saves = saves && node->saved_bytes && !r->has_saved[id];
    if (saves) r->has_saved[id] = 1;
    tli_add_step(&r->calls, tli_step_of(tli_forward_kind(node, saves), id, TL_ALL_OUTPUTS));
}

// Call a node forward, and before it whatever makes its inputs, from the nearest resident ancestors.
static void tli_make_again(tli_remake *r, int32_t root) {
    const tl_graph *graph = r->graph;
    int32_t depth = 1, i;
    r->stack[0] = root;
    r->cursors[0] = 0;
    while (depth > 0) {
        int32_t id = r->stack[depth - 1], *cursor = &r->cursors[depth - 1];
        const tl_node *node = &graph->nodes[id];
        const tl_node_input *inputs = tli_inputs_of(graph, node);
        while (*cursor < node->input_count && r->here[inputs[*cursor].tensor]) ++*cursor;
        if (*cursor < node->input_count) {
            r->stack[depth] = graph->outputs[inputs[*cursor].tensor].node;
            r->cursors[depth++] = 0;
            continue;
        }
        tli_call_forward(r, id, 1);
        for (i = node->first_output; i < node->first_output + node->output_count; i++) r->here[i] = 1;
        depth--;
    }
}

static void tli_call_backward(tli_remake *r, int32_t id) {
    const tl_graph *graph = r->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    int missing = node->saved_bytes && !r->has_saved[id];
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        missing |= graph->outputs[i].needed && !r->here[i];
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed && !r->here[graph->inputs[i].tensor])
            tli_make_again(r, graph->outputs[graph->inputs[i].tensor].node);
    if (missing) tli_make_again(r, id);
    tli_add_step(&r->calls, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
}

// First pass, all forwards; then each backward, preceded by what it wants. Returns the number of
// calls of the first pass.
static int32_t tli_call_all(tli_remake *r, const uint8_t *keep) {
    const tl_graph *graph = r->graph;
    int32_t id, i, first_count;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int all = 1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            r->stays[i] = r->here[i] = keep[i] || node->keep || node->is_input;
            all &= r->stays[i];
        }
        if (!node->is_input) tli_call_forward(r, id, all);
    }
    first_count = r->calls.count;
    for (id = graph->node_count; id-- > 0;)
        if (graph->nodes[id].has_grad) tli_call_backward(r, id);
    return first_count;
}

TLI_IMPL tl_result tl_plan_kept_set(tl_env *env, const tl_graph *graph, const uint8_t *keep, tl_plan *plan) {
    tli_remake r;
    int32_t first_count = 0;
    tl_result result;
    TL_ASSERT(graph && plan && (keep || !graph->tensor_count));
    tli_zero(plan, sizeof *plan);
    result = tl_check_graph(env, graph);
    if (result) return result;
    r.graph = graph;
    r.calls = tli_steps_of(env);
    r.stays = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    r.here = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    r.has_saved = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->node_count, 1);
    r.stack = (int32_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *r.stack);
    r.cursors = (int32_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *r.cursors);
    r.calls.failed = !r.stays || !r.here || !r.has_saved || !r.stack || !r.cursors;
    if (!r.calls.failed) first_count = tli_call_all(&r, keep);
    result = tli_plan_calls(&r.calls, first_count, r.stays, "tl_plan_kept_set", graph, 0, plan);
    tli_release(env, r.stays);
    tli_release(env, r.here);
    tli_release(env, r.has_saved);
    tli_release(env, r.stack);
    tli_release(env, r.cursors);
    return result;
}

// -- revolve: the schedule --

typedef struct tli_chain {
    const tl_graph *graph;
    tli_steps       list;
    int32_t         reached;  // the last node that ran
} tli_chain;

static void tli_chain_drop(tli_chain *chain, int32_t id) {
    if (id && !chain->graph->nodes[id].keep)
        tli_add_tensor_step(&chain->list, chain->graph, TL_STEP_DROP, chain->graph->nodes[id].first_output);
}

static void tli_chain_forward(tli_chain *chain, int32_t id) {
    if (chain->graph->nodes[id].keep && id <= chain->reached) return;  // resident since it first ran
    if (id > chain->reached) chain->reached = id;
    tli_add_step(&chain->list, tli_step_of(TL_STEP_FORWARD, id, TL_ALL_OUTPUTS));
}

static void tli_chain_advance(tli_chain *chain, int32_t from, int32_t to) {
    int32_t id;
    for (id = from + 1; id <= to; id++) {
        tli_chain_forward(chain, id);
        if (id - 1 > from) tli_chain_drop(chain, id - 1);
    }
}

// Backward of a node whose input is resident, after one more forward where backward reads what that
// leaves, or where the node never ran.
static void tli_chain_backward(tli_chain *chain, int32_t id) {
    const tl_node *node = &chain->graph->nodes[id];
    int reads_output = chain->graph->outputs[node->first_output].needed;
    int forward = node->saved_bytes || reads_output || id > chain->reached;
    if (node->saved_bytes) tli_add_step(&chain->list, tli_step_of(TL_STEP_FORWARD_SAVE, id, TL_ALL_OUTPUTS));
    else if (forward) tli_chain_forward(chain, id);
    if (forward && !reads_output) tli_chain_drop(chain, id);
    tli_add_step(&chain->list, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
    if (reads_output) tli_chain_drop(chain, id);
}

// The binomial schedule with an explicit stack of the tensors that hold a slot.
static void tli_reverse_chain(tli_chain *chain, int32_t slot_count, int32_t *slots) {
    int32_t right = chain->graph->node_count - 1, depth = 1;
    slots[0] = 0;
    while (right > 0) {
        int32_t left = slots[depth - 1], count = right - left;
        if (count == 1) {
            tli_chain_backward(chain, right--);
            if (depth > 1) { tli_chain_drop(chain, left); depth--; }
        } else if (depth == slot_count) {
            tli_chain_advance(chain, left, right - 1);
            tli_chain_backward(chain, right);
            tli_chain_drop(chain, --right);
        } else {
            slots[depth] = left + tli_split_chain(count, slot_count - depth + 1);
            tli_chain_advance(chain, left, slots[depth]);
            depth++;
        }
    }
}

static tl_result tli_check_chain(tl_env *env, const char *function, const tl_graph *graph) {
    int32_t id;
    int is_chain = graph->node_count > 1 && graph->nodes[0].is_input && graph->nodes[0].output_count == 1;
    for (id = 1; id < graph->node_count && is_chain; id++) {
        const tl_node *node = &graph->nodes[id];
        is_chain = node->has_grad && node->output_count == 1 && node->input_count == 1 &&
                   graph->inputs[node->first_input].tensor == graph->nodes[id - 1].first_output;
    }
    return is_chain ? TL_OK : tli_fail(env, TL_ERROR_INVALID_ARG, function,
        "graph: must be a chain: an input, then nodes with one output and a gradient, each reading the last");
}

TLI_IMPL tl_result tl_plan_revolve(tl_env *env, const tl_graph *graph, int32_t slot_count, tl_plan *plan) {
    tli_chain chain;
    int32_t *slots, most;
    tl_result result;
    TL_ASSERT(graph && plan);
    tli_zero(plan, sizeof *plan);
    result = tl_check_graph(env, graph);
    if (!result) result = tli_check_chain(env, "tl_plan_revolve", graph);
    if (result) return result;
    if (slot_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_plan_revolve", "slot_count: must be > 0");
    chain.graph = graph;
    chain.list = tli_steps_of(env);
    chain.reached = 0;
    most = slot_count < graph->node_count ? slot_count : graph->node_count;
    slots = (int32_t *)tli_alloc_array(env, (uint64_t)most, sizeof *slots);
    chain.list.failed = !slots;
    if (slots) tli_reverse_chain(&chain, slot_count, slots);
    tli_release(env, slots);
    return tli_finish_plan(&chain.list, "tl_plan_revolve", graph, 0, plan);
}
#endif  // TL_NO_PLANNERS

#ifndef TL_NO_TEXT
// -- schedule text --

TLI_IMPL int tl_parse_step(const char *text, tl_step_kind *kind) {
    int32_t value;
    int ok = tli_parse_name(tli_step_names, TL_STEP_COUNT, text, tli_text_length(text), &value);
    *kind = (tl_step_kind)value;
    return ok;
}

TLI_IMPL int tl_parse_codec(const char *text, tl_codec *codec) {
    int32_t value;
    int ok = tli_parse_name(tli_codec_names, TL_CODEC_COUNT, text, tli_text_length(text), &value);
    *codec = (tl_codec)value;
    return ok;
}

TLI_IMPL size_t tl_print_schedule(const tl_plan *plan, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t i;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        tli_put(&w, tli_name(tli_step_names, TL_STEP_COUNT, step->kind));
        tli_put(&w, " ");
        tli_put_i64(&w, step->node);
        if (step->output != TL_ALL_OUTPUTS) { tli_put(&w, "."); tli_put_i64(&w, step->output); }
        if (step->kind == TL_STEP_COMPRESS) {
            tli_put(&w, " ");
            tli_put(&w, tli_name(tli_codec_names, TL_CODEC_COUNT, step->codec));
        }
        tli_put(&w, "\n");
    }
    return tli_finish(&w);
}

// "3" or "3.1"
static int tli_read_target(tli_word word, tl_step *step) {
    tli_word node = word, output = word;
    size_t dot = 0;
    while (dot < word.length && word.text[dot] != '.') dot++;
    node.length = dot;
    step->output = TL_ALL_OUTPUTS;
    if (!tli_read_i32(node, &step->node)) return 0;
    if (dot == word.length) return 1;
    output.text += dot + 1;
    output.length -= dot + 1;
    return !tli_acts_on_node((tl_step_kind)step->kind) && tli_read_i32(output, &step->output);
}

// Returns NULL, or the rule that the line breaks.
static const char *tli_read_step(tli_reader *reader, tli_word word, tl_step *step) {
    int32_t value;
    if (!tli_parse_name(tli_step_names, TL_STEP_COUNT, word.text, word.length, &value))
        return "step: must be F, I, S, B, D, DS, O, L, W, DH, C or X";
    *step = tli_step_of((tl_step_kind)value, 0, TL_ALL_OUTPUTS);
    if (!tli_next_word(reader, &word) || !tli_read_target(word, step))
        return tli_acts_on_node((tl_step_kind)step->kind)
                   ? "target: must be a node number, as in F 3"
                   : "target: must be a node number or an output, as in D 3.1";
    if (step->kind == TL_STEP_COMPRESS) {
        if (!tli_next_word(reader, &word) || tli_word_is(word, tl_name_codec(TL_CODEC_NONE)) ||
            !tli_parse_name(tli_codec_names, TL_CODEC_COUNT, word.text, word.length, &value))
            return "codec: must be f16, bf16 or q8";
        step->codec = (uint8_t)value;
    }
    return tli_next_word(reader, &word) ? "more words than the step takes" : NULL;
}

TLI_IMPL tl_result tl_parse_schedule(tl_env *env, const char *text, size_t length, tl_plan *plan) {
    tli_reader reader = tli_reader_of(text ? text : "", length);
    tli_steps list = tli_steps_of(env);
    TL_ASSERT(plan && (text || !length));
    tli_zero(plan, sizeof *plan);
    if (length > TLI_TEXT_LIMIT)
        return tli_fail(env, TL_ERROR_PARSE, "tl_parse_schedule", "text: longer than 1 GiB");
    while (tli_next_line(&reader)) {
        tl_step step;
        tli_word word;
        const char *why;
        if (!tli_next_word(&reader, &word)) continue;
        why = tli_read_step(&reader, word, &step);
        if (why) {
            tli_release(env, list.steps);
            return tli_fail_line(env, TL_ERROR_PARSE, "tl_parse_schedule", reader.line, why);
        }
        tli_add_step(&list, step);
    }
    return tli_take_steps(&list, "tl_parse_schedule", plan);
}
#endif

#ifndef TL_NO_PLANNERS
// -- checkpoint configs: names and constructors --

static const char *const tli_checkpoint_names[] = { TL_CHECKPOINTS(TLI_NAME) };

TLI_IMPL const char *tl_name_checkpoint(tl_checkpoint_kind kind) {
    return tli_name(tli_checkpoint_names, TL_CHECKPOINT_COUNT, (int64_t)kind);
}

TLI_IMPL tl_checkpoint_config tl_checkpoint_none(void) {
    tl_checkpoint_config config;
    tli_zero(&config, sizeof config);
    config.min_checkpoint_interval = 1;
    return config;
}

// What the three kinds that make checkpoints start from: flags on.
static tl_checkpoint_config tli_checkpoint_of(tl_checkpoint_kind kind) {
    tl_checkpoint_config config = tl_checkpoint_none();
    config.strategy.kind = kind;
    config.checkpoint_attention = config.checkpoint_ffn = 1;
    return config;
}

TLI_IMPL tl_checkpoint_config tl_checkpoint_uniform(uint64_t interval) {
    tl_checkpoint_config config = tli_checkpoint_of(TL_CHECKPOINT_UNIFORM);
    config.strategy.as.uniform.interval = interval;
    return config;
}

TLI_IMPL tl_checkpoint_config tl_checkpoint_selective(const uint64_t *layers, uint64_t layer_count) {
    tl_checkpoint_config config = tli_checkpoint_of(TL_CHECKPOINT_SELECTIVE);
    config.strategy.as.selective.layers = layers;
    config.strategy.as.selective.layer_count = layer_count;
    return config;
}

static tl_result tli_check_dynamic(tl_env *env, const char *function, uint64_t layer_count, double fraction) {
    if (!layer_count)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "dynamic layer_count: must be > 0");
    if (!(fraction >= 0.0 && fraction <= 1.0))  // NaN fails both
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "memory_fraction: must be in [0, 1]");
    return TL_OK;
}

TLI_IMPL tl_result tl_checkpoint_dynamic(tl_env *env, uint64_t layer_count, double memory_fraction,
                                         tl_checkpoint_config *config) {
    tl_result result;
    TL_ASSERT(config);
    *config = tl_checkpoint_none();
    result = tli_check_dynamic(env, "tl_checkpoint_dynamic", layer_count, memory_fraction);
    if (result) return result;
    *config = tli_checkpoint_of(TL_CHECKPOINT_DYNAMIC);
    config->strategy.as.dynamic.layer_count = layer_count;
    config->strategy.as.dynamic.memory_fraction = memory_fraction;
    return TL_OK;
}

TLI_IMPL tl_checkpoint_config tl_with_checkpoint_attention(tl_checkpoint_config config, int32_t on) {
    config.checkpoint_attention = on != 0;
    return config;
}

TLI_IMPL tl_checkpoint_config tl_with_checkpoint_ffn(tl_checkpoint_config config, int32_t on) {
    config.checkpoint_ffn = on != 0;
    return config;
}

TLI_IMPL tl_checkpoint_config tl_with_min_interval(tl_checkpoint_config config, uint64_t interval) {
    config.min_checkpoint_interval = interval;
    return config;
}

TLI_IMPL void tl_free_checkpoint_config(tl_env *env, tl_checkpoint_config *config) {
    TL_ASSERT(config);
    tli_release(env, config->memory);
    tli_zero(config, sizeof *config);
}

// -- checkpoint configs: check --

// Let the item at root sink until no child is above it; half of a heap sort.
static void tli_sink_u64(uint64_t *items, size_t root, size_t count) {
    uint64_t item = items[root];
    size_t child;
    for (; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && items[child + 1] > items[child]) child++;
        if (items[child] <= item) break;
        items[root] = items[child];
    }
    items[root] = item;
}

static void tli_sort_u64(uint64_t *items, size_t count) {
    size_t i;
    for (i = count / 2; i-- > 0;) tli_sink_u64(items, i, count);
    for (i = count; i-- > 1;) {
        uint64_t largest = items[0];
        items[0] = items[i];
        items[i] = largest;
        tli_sink_u64(items, 0, i);
    }
}

static tl_result tli_fail_layer(tl_env *env, const char *function, const char *before, uint64_t layer,
                                const char *after) {
    tli_writer w = tli_begin_error(env, TL_ERROR_INVALID_ARG, function);
    tli_put(&w, before);
    tli_put_u64(&w, layer);
    tli_put(&w, after);
    return tli_end_error(env, &w, TL_ERROR_INVALID_ARG);
}

static tl_result tli_check_selective(tl_env *env, const char *function, const tl_checkpoint *c,
                                     uint64_t layer_count) {
    const uint64_t *layers = c->as.selective.layers;
    uint64_t count = c->as.selective.layer_count, *sorted, i;
    tl_result result = TL_OK;
    if (count && !layers) return tli_fail(env, TL_ERROR_INVALID_ARG, function, "layers: missing");
    for (i = 0; i < count && layer_count; i++)
        if (layers[i] >= layer_count)
            return tli_fail_layer(env, function, "layers: ", layers[i], " is not below the number of layers");
    sorted = (uint64_t *)tli_alloc_array(env, count, sizeof *sorted);
    if (!sorted) return tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory to sort the layers");
    tli_copy(sorted, layers, (size_t)count * sizeof *sorted);
    tli_sort_u64(sorted, (size_t)count);
    for (i = 1; i < count && !result; i++)
        if (sorted[i] == sorted[i - 1])
            result = tli_fail_layer(env, function, "layers: ", sorted[i], " is listed twice");
    tli_release(env, sorted);
    return result;
}

TLI_IMPL tl_result tl_check_checkpoint_config(tl_env *env, const tl_checkpoint_config *config,
                                              uint64_t layer_count) {
    const char *function = "tl_check_checkpoint_config";
    const tl_checkpoint *c;
    tl_result result;
    TL_ASSERT(config);
    c = &config->strategy;
    if ((config->checkpoint_attention | config->checkpoint_ffn) & ~1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function,
                        "checkpoint_attention, checkpoint_ffn: must be 0 or 1");
    switch (c->kind) {
    case TL_CHECKPOINT_NONE: return TL_OK;
    case TL_CHECKPOINT_UNIFORM:
        if (c->as.uniform.interval) return TL_OK;
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "interval: must be > 0");
    case TL_CHECKPOINT_SELECTIVE: return tli_check_selective(env, function, c, layer_count);
    case TL_CHECKPOINT_DYNAMIC:
        result = tli_check_dynamic(env, function, c->as.dynamic.layer_count, c->as.dynamic.memory_fraction);
        if (result || !layer_count || c->as.dynamic.layer_count == layer_count) return result;
        return tli_fail_layer(env, function, "dynamic layer_count: must be the number of layers, ",
                              layer_count, "");
    case TL_CHECKPOINT_COUNT: break;
    }
    return tli_fail(env, TL_ERROR_INVALID_ARG, function, "strategy: there is no such kind");
}

// -- checkpoint configs: kept layers of uniform and selective --

// Whether the walk upwards over the listed layers, in steps of at least `interval`, lands on `layer`.
// A list in ascending order is walked once; of any other, the next layer is looked for in all of it.
static int tli_selects(const uint64_t *layers, uint64_t count, uint64_t interval, uint64_t layer) {
    uint64_t least = 0, from = 0, next, i;
    int listed = 0, ascends = 1;
    for (i = 0; i < count; i++) {
        listed |= layers[i] == layer;
        if (i) ascends &= layers[i - 1] < layers[i];
    }
    if (!listed || interval <= 1) return listed;
    for (;;) {
        next = layer;
        for (i = from; i < count; i++) {
            if (layers[i] < least || layers[i] >= next) continue;
            next = layers[i];
            if (ascends) { from = i + 1; break; }
        }
        if (next == layer) return 1;
        if (layer - next < interval) return 0;
        least = next + interval;
    }
}

TLI_IMPL int tl_keeps_layer(const tl_checkpoint_config *config, uint64_t layer) {
    const tl_checkpoint *c;
    uint64_t interval, times;
    TL_ASSERT(config);
    c = &config->strategy;
    interval = config->min_checkpoint_interval;
    switch (c->kind) {
    case TL_CHECKPOINT_NONE: return 1;
    case TL_CHECKPOINT_UNIFORM:  // the walk goes by the first multiple that is far enough
        if (!c->as.uniform.interval) return 0;
        times = interval / c->as.uniform.interval + (interval % c->as.uniform.interval != 0);
        if (!tli_mul_u64(c->as.uniform.interval, times ? times : 1, &interval)) return !layer;
        return layer % interval == 0;
    case TL_CHECKPOINT_SELECTIVE:
        if (!c->as.selective.layers) return 0;
        return tli_selects(c->as.selective.layers, c->as.selective.layer_count, interval, layer);
    case TL_CHECKPOINT_DYNAMIC:
    case TL_CHECKPOINT_COUNT: break;
    }
    return 0;
}

// tl_keeps_layer for all layers at once, in O(layers + listed layers).
static void tli_keep_layers(const tl_checkpoint_config *config, uint8_t *kept, uint64_t layer_count) {
    const tl_checkpoint *c = &config->strategy;
    uint64_t interval = config->min_checkpoint_interval, next = 0, i;
    int all = c->kind == TL_CHECKPOINT_NONE;
    for (i = 0; i < layer_count; i++)
        kept[i] = (uint8_t)(all || (c->kind == TL_CHECKPOINT_UNIFORM && i % c->as.uniform.interval == 0));
    if (c->kind == TL_CHECKPOINT_SELECTIVE)
        for (i = 0; i < c->as.selective.layer_count; i++) kept[c->as.selective.layers[i]] = 1;
    for (i = 0; i < layer_count && !all; i++) {
        if (!kept[i]) continue;
        kept[i] = i >= next;
        if (kept[i] && !tli_add_u64(i, interval, &next)) next = UINT64_MAX;
    }
}

// -- checkpoint configs: from kept layers to a plan --

static uint64_t tli_count_layers(const tl_graph *graph) {
    int32_t id, last = -1;
    for (id = 0; id < graph->node_count; id++)
        if (graph->nodes[id].layer > last) last = graph->nodes[id].layer;
    return (uint64_t)((int64_t)last + 1);
}

#define TLI_ALWAYS_KEPT (-1)
#define TLI_NEVER_KEPT  (-2)

// A graph seen as layers: what each tensor does when its layer is kept or not.
typedef struct tli_layers {
    tl_env         *env;
    const char     *function;        // for error sentences
    const tl_graph *graph;
    uint64_t        count;           // of layers
    uint64_t        min_interval;
    int32_t        *follows;         // [tensor_count] the layer that decides, or one of the above
    uint8_t        *keep;            // [tensor_count] for tl_plan_kept_set
} tli_layers;

// The flags decide about inner tensors of attention and ffn units; any other tensor follows its layer.
static int32_t tli_find_decider(const tl_graph *graph, const tl_checkpoint_config *config, int32_t tensor,
                                int is_inner) {
    int32_t node = graph->outputs[tensor].node, layer = graph->nodes[node].layer;
    const char *unit = tl_name_unit(graph, node);
    if (layer < 0) return TLI_ALWAYS_KEPT;
    if (is_inner && tli_same_text(unit, "attention"))
        return config->checkpoint_attention ? TLI_NEVER_KEPT : TLI_ALWAYS_KEPT;
    if (is_inner && tli_same_text(unit, "ffn"))
        return config->checkpoint_ffn ? TLI_NEVER_KEPT : TLI_ALWAYS_KEPT;
    return layer;
}

static void tli_free_layers(tli_layers *layers) {
    tli_release(layers->env, layers->follows);
    tli_release(layers->env, layers->keep);
    layers->follows = NULL; layers->keep = NULL;
}

// Of a graph that was checked; release with tli_free_layers, also after an error.
static tl_result tli_init_layers(tl_env *env, tli_layers *layers, const char *function, const tl_graph *graph,
                                 const tl_checkpoint_config *config) {
    enum { READ_INSIDE = 1, READ_OUTSIDE = 2 };
    int32_t id, i;
    tli_zero(layers, sizeof *layers);
    layers->env = env;
    layers->function = function;
    layers->graph = graph;
    layers->count = tli_count_layers(graph);
    layers->min_interval = config->min_checkpoint_interval;
    layers->follows = (int32_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, sizeof *layers->follows);
    layers->keep = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    if (!layers->follows || !layers->keep)
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory for the layers");
    for (id = 0; id < graph->node_count; id++) {  // until the loop below, keep[] tells who reads the tensor
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            int same = graph->nodes[graph->outputs[tensor].node].layer == node->layer;
            layers->keep[tensor] |= (uint8_t)(same ? READ_INSIDE : READ_OUTSIDE);
        }
    }
    for (i = 0; i < graph->tensor_count; i++)
        layers->follows[i] = tli_find_decider(graph, config, i, layers->keep[i] == READ_INSIDE);
    return TL_OK;
}

static tl_result tli_plan_layers(tli_layers *layers, const uint8_t *kept, tl_plan *plan) {
    int32_t i;
    for (i = 0; i < layers->graph->tensor_count; i++) {
        int32_t layer = layers->follows[i];
        layers->keep[i] = layer >= 0 ? kept[layer] : layer == TLI_ALWAYS_KEPT;
    }
    return tl_plan_kept_set(layers->env, layers->graph, layers->keep, plan);
}

// -- dynamic: the cheapest kept set below a peak --

#define TLI_EXHAUSTIVE_LAYERS 12
#define TLI_SPACED_PLANS 4096    // that measure segments: of up to 90 layers without a minimal interval
#define TLI_SEGMENT_LAYERS 256   // where the minimal interval asks for longer ones, no segment is measured
#define TLI_SEGMENT_LABELS 128

// The layers above one kept layer up to the next, relative to the live bytes at its start.
typedef struct tli_segment {
    uint64_t peak;   // highest live bytes in its forwards and backwards; UINT64_MAX = not measured
    uint64_t grown;  // live bytes at its end, modulo 2^64
    uint64_t cost;   // of the forwards made again
} tli_segment;

// A way to reach a kept layer.
typedef struct tli_label {
    uint64_t bytes, cost;    // live there, paid before it
    uint32_t place, number;  // the label it came from
} tli_label;

typedef struct tli_search {
    tli_layers  *layers;
    uint64_t     limit;       // of the peak
    uint64_t     base_cost;   // no plan costs less
    uint64_t     peak, cost;  // of the last plan
    uint64_t     best_cost;   // of the plans within the limit; found = there is one
    uint64_t     least_peak;  // of all plans
    int          found;
    uint8_t     *kept, *best, *least;  // [count] being tried; cheapest within the limit; of least peak

    // Beyond TLI_EXHAUSTIVE_LAYERS. Places are the layers, one before them and one behind: a segment
    // goes from place p to place p + length, and layer l is place l + 1.
    uint64_t     width;       // longest segment measured
    int          useful;      // 1 = a segment of the length being measured may be part of the answer
    uint64_t     start_bytes;   // live at the first place
    tli_segment *segments;    // [count + 1][width] by first place and length - 1
    tli_segment *now;         // [count + 1] of the plan being measured
    uint64_t    *starts;      // [count + 1] live bytes at their starts
    uint64_t    *segment_of;  // [count] by layer
    tli_label   *labels;      // [count + 2][TLI_SEGMENT_LABELS] by place, bytes rising, cost falling
    uint64_t    *label_counts;  // [count + 2]
} tli_search;

static int tli_is_spaced(const uint8_t *kept, uint64_t count, uint64_t min_interval) {
    uint64_t next = 0, i;
    for (i = 0; i < count; i++) {
        if (!kept[i]) continue;
        if (i < next) return 0;
        if (!tli_add_u64(i, min_interval, &next)) next = UINT64_MAX;
    }
    return 1;
}

static tl_result tli_fail_search(tli_search *search) {
    const tli_layers *layers = search->layers;
    return tli_fail(layers->env, TL_ERROR_NO_MEMORY, layers->function, "no memory for the search");
}

// Plan search->kept, remember it where it is the best so far; the caller releases the plan.
static tl_result tli_try_plan(tli_search *search, tl_plan *plan) {
    size_t count = (size_t)search->layers->count;
    tl_result result = tli_plan_layers(search->layers, search->kept, plan);
    if (result) return result;
    search->peak = plan->peak_bytes;
    search->cost = plan->cost;
    if (search->peak < search->least_peak) {
        search->least_peak = search->peak;
        tli_copy(search->least, search->kept, count);
    }
    if (search->peak <= search->limit && (!search->found || search->cost < search->best_cost)) {
        search->found = 1;
        search->best_cost = search->cost;
        tli_copy(search->best, search->kept, count);
    }
    return TL_OK;
}

static tl_result tli_try_kept(tli_search *search) {
    tl_plan plan;
    tl_result result = tli_try_plan(search, &plan);
    tl_free_plan(search->layers->env, &plan);
    return result;
}

// All kept sets, except those that must cost as much as the best: what a kept set makes again, every
// smaller one makes again too, so no cost is below that of a set with one more layer.
static tl_result tli_search_all(tli_search *search) {
    uint32_t count = (uint32_t)search->layers->count, sets = (uint32_t)1 << count, dropped, i;
    uint64_t *costs = (uint64_t *)tli_alloc_array(search->layers->env, sets, sizeof *costs);
    tl_result result = TL_OK;
    if (!costs) return tli_fail_search(search);
    for (dropped = 0; dropped < sets && !result; dropped++) {
        for (i = 0; i < count; i++) {
            uint32_t one_more = dropped & ~((uint32_t)1 << i);  // layer i kept, too
            search->kept[i] = one_more == dropped;
            if (costs[one_more] > costs[dropped]) costs[dropped] = costs[one_more];
        }
        if (search->found && costs[dropped] >= search->best_cost) continue;
        if (!tli_is_spaced(search->kept, count, search->layers->min_interval)) continue;
        result = tli_try_kept(search);
        costs[dropped] = search->cost;
    }
    tli_release(search->layers->env, costs);
    return result;
}

// -- dynamic: more layers. Evenly spaced kept sets are planned, each segment is measured in one of
// them, and labels over the segments find the best mix: on a chain, what a segment holds, peaks at
// and costs depends on its two ends alone. --

// Replay the plan of search->kept segment by segment. Nodes without a layer count to the last one.
static tl_result tli_replay_segments(tli_search *search, const tl_plan *plan, uint64_t segment_count) {
    const tl_graph *graph = search->layers->graph;
    uint64_t current = 0, reached = 0;
    int32_t i;
    tli_sim sim;
    tl_result result = tli_init_sim(search->layers->env, &sim, search->layers->function, graph, NULL, plan);
    search->starts[0] = search->start_bytes = sim.live_bytes;
    for (i = 0; i < plan->step_count && !result; i++) {
        const tl_step *step = &plan->steps[i];
        const tl_node *node = &graph->nodes[step->node];
        int again = step->kind <= TL_STEP_BACKWARD && sim.nodes[step->node].ran;
        if (step->kind <= TL_STEP_BACKWARD && node->layer >= 0) current = search->segment_of[node->layer];
        while (reached < current) search->starts[++reached] = sim.live_bytes;
        result = tli_sim_step(&sim, step);
        if (sim.step_bytes > search->starts[current]) {
            uint64_t peak = sim.step_bytes - search->starts[current];
            if (peak > search->now[current].peak) search->now[current].peak = peak;
        }
        if (again && step->kind < TL_STEP_BACKWARD) search->now[current].cost += node->fwd_cost;
    }
    for (; reached + 1 < segment_count; reached++) search->starts[reached + 1] = search->starts[reached];
    tli_free_sim(&sim);
    return result;
}

// Plan and replay search->kept, and enter its segments into the table.
static tl_result tli_measure_segments(tli_search *search, uint64_t spacing) {
    uint64_t count = search->layers->count, segment_count = 1, first = 0, k, l;
    tl_plan plan;
    tl_result result = tli_try_plan(search, &plan);
    tli_zero(search->now, (size_t)(count + 1) * sizeof *search->now);
    for (l = 0; l < count; l++) {
        search->segment_of[l] = segment_count - 1;
        segment_count += search->kept[l];
    }
    if (!result) result = tli_replay_segments(search, &plan, segment_count);
    tl_free_plan(search->layers->env, &plan);
    for (k = 0; k < segment_count && !result; k++) {
        uint64_t last = first + 1, bound = search->found ? search->limit : search->least_peak;
        tli_segment *segment = &search->now[k];
        while (last <= count && !search->kept[last - 1]) last++;
        if (k + 1 < segment_count) segment->grown = search->starts[k + 1] - search->starts[k];
        if (last - first == spacing)
            search->useful |= segment->peak <= bound && search->start_bytes <= bound - segment->peak &&
                              (!search->found || segment->cost < search->best_cost - search->base_cost);
        if (last - first <= search->width) {
            tli_segment *entry = &search->segments[first * search->width + (last - first - 1)];
            if (entry->peak == UINT64_MAX) *entry = *segment;
        }
        first = last;
    }
    return result;
}

static tl_result tli_measure_spaced(tli_search *search, uint64_t spacing, uint64_t offset) {
    uint64_t l;
    for (l = 0; l < search->layers->count; l++) search->kept[l] = l >= offset && (l - offset) % spacing == 0;
    return tli_measure_segments(search, spacing);
}

// Keep a label unless another has no more bytes and costs no more; those it beats in both go. Of a
// full list, every other one goes, never the first or the last.
static void tli_add_label(tli_label *labels, uint64_t *count, tli_label label) {
    uint64_t i, j;
    if (*count == TLI_SEGMENT_LABELS) {
        for (i = j = 1; i < *count; i += 2) labels[j++] = labels[i];
        *count = j;
    }
    for (i = *count; i > 0 && labels[i - 1].bytes > label.bytes;) i--;
    if (i > 0 && labels[i - 1].cost <= label.cost) return;
    if (i > 0 && labels[i - 1].bytes == label.bytes) i--;
    for (j = i; j < *count && labels[j].cost >= label.cost;) j++;
    if (j == i) {
        for (j = (*count)++; j > i; j--) labels[j] = labels[j - 1];
        labels[i] = label;
        return;
    }
    labels[i] = label;
    for (i++; j < *count;) labels[i++] = labels[j++];
    *count = i;
}

static void tli_label_place(tli_search *search, uint64_t limit, int by_cost, uint64_t place) {
    uint64_t length, number, *count = &search->label_counts[place];
    tli_label *labels = search->labels + place * TLI_SEGMENT_LABELS;
    *count = 0;
    for (length = 1; length <= search->width && length <= place; length++) {
        uint64_t from = place - length;
        const tli_segment *segment = &search->segments[from * search->width + (length - 1)];
        if (segment->peak == UINT64_MAX) continue;
        for (number = 0; number < search->label_counts[from]; number++) {
            const tli_label *before = &search->labels[from * TLI_SEGMENT_LABELS + number];
            tli_label label;
            if (before->bytes > limit || segment->peak > limit - before->bytes) break;  // as all behind it
            label.bytes = before->bytes + segment->grown;
            label.cost = before->cost + (by_cost ? segment->cost : 0);
            label.place = (uint32_t)from;
            label.number = (uint32_t)number;
            if (by_cost && search->found && label.cost >= search->best_cost - search->base_cost) continue;
            tli_add_label(labels, count, label);
        }
    }
}

// Write the kept set of the cheapest way through the segments that stays within the limit to
// search->kept; 0 where there is none that costs less than the best found (by_cost 0: none at all).
static int tli_label_segments(tli_search *search, uint64_t limit, int by_cost) {
    uint64_t behind = search->layers->count + 1, place, number;
    tli_zero(search->labels, sizeof *search->labels);
    search->labels[0].bytes = search->start_bytes;
    search->label_counts[0] = 1;
    for (place = 1; place <= behind; place++) tli_label_place(search, limit, by_cost, place);
    if (!search->label_counts[behind]) return 0;
    tli_zero(search->kept, (size_t)search->layers->count);
    for (place = behind, number = search->label_counts[behind] - 1; place > 0;) {
        const tli_label *label = &search->labels[place * TLI_SEGMENT_LABELS + number];
        if (place < behind) search->kept[place - 1] = 1;
        place = label->place;
        number = label->number;
    }
    return 1;
}

// Every offset of every spacing, while segments of that length are of use and the plans last; the best
// mix so far tells what is of use. Then spacings further and further apart.
static tl_result tli_measure_all(tli_search *search, uint64_t least_spacing) {
    uint64_t count = search->layers->count, spacing = least_spacing, offset;
    tl_result result = TL_OK;
    for (search->useful = 1; spacing <= search->width && search->useful && !result; spacing++) {
        search->useful = 0;
        for (offset = 0; offset < spacing && !result; offset++)
            result = tli_measure_spaced(search, spacing, offset);
        if (!result && !(spacing & (spacing - 1)) && tli_label_segments(search, search->limit, 1))
            result = tli_try_kept(search);
    }
    if (!search->useful) return result;
    for (; spacing <= count + 1 && !result; spacing += spacing / 8 + 1)
        result = tli_measure_spaced(search, spacing, 0);
    return result;
}

// The least limit within which the segments have a way, by bisection; its plan may be the best found.
static tl_result tli_search_least(tli_search *search) {
    uint64_t below = 0, within = search->least_peak;
    if (!tli_label_segments(search, within, 0)) return TL_OK;
    while (below < within) {
        uint64_t middle = below + (within - below) / 2;
        if (tli_label_segments(search, middle, 0)) within = middle; else below = middle + 1;
    }
    tli_label_segments(search, within, 0);
    return tli_try_kept(search);
}

// Layers that can be kept in addition, one after the other.
static tl_result tli_add_layers(tli_search *search) {
    uint64_t count = search->layers->count, l;
    tl_result result = TL_OK;
    for (l = 0; l < count && l < TLI_SPACED_PLANS && search->best_cost > search->base_cost && !result; l++) {
        if (search->best[l]) continue;
        tli_copy(search->kept, search->best, (size_t)count);
        search->kept[l] = 1;
        if (tli_is_spaced(search->kept, count, search->layers->min_interval)) result = tli_try_kept(search);
    }
    return result;
}

static tl_result tli_run_segments(tli_search *search, uint64_t least_spacing) {
    uint64_t limit = search->limit;
    int round;
    tl_result result = tli_measure_all(search, least_spacing);
    for (round = 0; round < 8 && !result && tli_label_segments(search, limit, 1); round++) {
        result = tli_try_kept(search);
        if (search->peak <= search->limit || search->peak - search->limit > limit) break;
        limit -= search->peak - search->limit;  // not a chain: what is held or peaks depends on more
    }
    if (!result && !search->found) result = tli_search_least(search);
    if (!result && search->found) result = tli_add_layers(search);
    return result;
}

static tl_result tli_search_segments(tli_search *search) {
    tl_env *env = search->layers->env;
    uint64_t count = search->layers->count, spacing = search->layers->min_interval, plans = 0, entries, i;
    tl_result result = TL_OK;
    if (spacing < 1) spacing = 1;
    if (spacing > count + 1) spacing = count + 1;
    for (search->width = spacing - 1; search->width <= count && plans + search->width < TLI_SPACED_PLANS;)
        plans += ++search->width;
    if (search->width > TLI_SEGMENT_LAYERS) search->width = 0;
    if (!tli_mul_u64(count + 1, search->width, &entries)) entries = UINT64_MAX;
    search->segments = (tli_segment *)tli_alloc_array(env, entries, sizeof(tli_segment));
    search->now = (tli_segment *)tli_alloc_array(env, count + 1, sizeof(tli_segment));
    search->starts = (uint64_t *)tli_alloc_array(env, count + 1, sizeof(uint64_t));
    search->segment_of = (uint64_t *)tli_alloc_array(env, count, sizeof(uint64_t));
    search->labels = (tli_label *)tli_alloc_array(env, (count + 2) * TLI_SEGMENT_LABELS, sizeof(tli_label));
    search->label_counts = (uint64_t *)tli_alloc_array(env, count + 2, sizeof(uint64_t));
    if (!search->segments || !search->now || !search->starts || !search->segment_of || !search->labels ||
        !search->label_counts) result = tli_fail_search(search);
    for (i = 0; i < entries && !result; i++) search->segments[i].peak = UINT64_MAX;
    if (!result) result = tli_run_segments(search, spacing);
    tli_release(env, search->segments);
    tli_release(env, search->now);
    tli_release(env, search->starts);
    tli_release(env, search->segment_of);
    tli_release(env, search->labels);
    tli_release(env, search->label_counts);
    return result;
}

// "no kept set has a peak of at most 12 bytes, the least found is 34, at node 3 (conv1)"
static tl_result tli_fail_fraction(tli_search *search) {
    tl_env *env = search->layers->env;
    tl_simulate_desc desc;
    tl_plan plan;
    tl_report report;
    tli_writer w;
    int32_t node = -1;
    tl_result result = tli_plan_layers(search->layers, search->least, &plan);
    if (result) return result;
    tli_zero(&desc, sizeof desc);
    desc.graph = search->layers->graph;
    desc.plan = &plan;
    result = tl_simulate_plan(env, &desc, &report);
    if (!result && report.peak_step >= 0) node = plan.steps[report.peak_step].node;
    tl_free_plan(env, &plan);
    if (result) return result;
    w = tli_begin_error(env, TL_ERROR_INFEASIBLE, search->layers->function);
    tli_put(&w, "memory_fraction: no kept set has a peak of at most ");
    tli_put_u64(&w, search->limit);
    tli_put(&w, " bytes, the least found is ");
    tli_put_u64(&w, search->least_peak);
    if (node >= 0) {
        tli_put(&w, ", at node ");
        tli_put_i64(&w, node);
        tli_put(&w, " (");
        tli_put(&w, tl_name_node(search->layers->graph, node));
        tli_put(&w, ")");
    }
    return tli_end_error(env, &w, TL_ERROR_INFEASIBLE);
}

static uint64_t tli_take_fraction(uint64_t bytes, double fraction) {
    volatile double product = (double)bytes * fraction;  // rounded to a double on every machine
    return product >= (double)bytes ? bytes : (uint64_t)product;
}

static tl_result tli_find_dynamic(tli_layers *layers, double fraction, uint8_t *kept) {
    tl_env *env = layers->env;
    size_t count = (size_t)layers->count;
    tli_search search;
    tl_plan all;
    tl_result result = tl_plan_keep_all(env, layers->graph, 0, &all);
    if (result) return result;
    tli_zero(&search, sizeof search);
    search.layers = layers;
    search.limit = tli_take_fraction(all.peak_bytes, fraction);
    search.base_cost = all.cost;
    search.least_peak = UINT64_MAX;
    tl_free_plan(env, &all);
    search.kept = (uint8_t *)tli_alloc_array(env, 3 * layers->count, 1);
    if (!search.kept) return tli_fail(env, TL_ERROR_NO_MEMORY, layers->function, "no memory for the search");
    search.best = search.kept + count;
    search.least = search.best + count;
    result = count <= TLI_EXHAUSTIVE_LAYERS ? tli_search_all(&search) : tli_search_segments(&search);
    if (!result && search.found) tli_copy(kept, search.best, count);
    else if (!result) result = tli_fail_fraction(&search);
    tli_release(env, search.kept);
    return result;
}

// -- checkpoint configs: plans and their effect --

// Check both and look at the graph as layers; release with tli_free_layers, also after an error.
static tl_result tli_open_config(tl_env *env, tli_layers *layers, const char *function, const tl_graph *graph,
                                 const tl_checkpoint_config *config) {
    tl_result result = tl_check_graph(env, graph);
    tli_zero(layers, sizeof *layers);
    layers->env = env;
    if (!result) result = tl_check_checkpoint_config(env, config, tli_count_layers(graph));
    if (!result && config->strategy.kind != TL_CHECKPOINT_NONE && !tli_count_layers(graph))
        result = tli_fail(env, TL_ERROR_INVALID_ARG, function, "graph: no node carries a layer number");
    return result ? result : tli_init_layers(env, layers, function, graph, config);
}

static tl_result tli_find_kept(tli_layers *layers, const tl_checkpoint_config *config, uint8_t *kept) {
    if (config->strategy.kind == TL_CHECKPOINT_DYNAMIC)
        return tli_find_dynamic(layers, config->strategy.as.dynamic.memory_fraction, kept);
    tli_keep_layers(config, kept, layers->count);
    return TL_OK;
}

static tl_result tli_check_layer_count(tl_env *env, const char *function, const tl_graph *graph,
                                       uint64_t layer_count) {
    uint64_t count = tli_count_layers(graph);
    return layer_count == count ? TL_OK
         : tli_fail_layer(env, function, "layer_count: must be that of the graph, ", count, "");
}

TLI_IMPL tl_result tl_find_kept_layers(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                       uint8_t *kept, uint64_t layer_count) {
    tli_layers layers;
    tl_result result;
    TL_ASSERT(graph && config && (kept || !layer_count));
    tli_zero(kept, (size_t)layer_count);
    result = tli_open_config(env, &layers, "tl_find_kept_layers", graph, config);
    if (!result) result = tli_check_layer_count(env, "tl_find_kept_layers", graph, layer_count);
    if (!result) result = tli_find_kept(&layers, config, kept);
    tli_free_layers(&layers);
    return result;
}

static tl_result tli_plan_config(tl_env *env, const char *function, const tl_graph *graph,
                                 const tl_checkpoint_config *config, tl_plan *plan, uint64_t *kept_count) {
    tli_layers layers;
    uint8_t *kept = NULL;
    uint64_t i;
    tl_result result = tli_open_config(env, &layers, function, graph, config);
    *kept_count = 0;
    if (!result) {
        kept = (uint8_t *)tli_alloc_array(env, layers.count, 1);
        result = kept ? tli_find_kept(&layers, config, kept)
                      : tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory for the kept layers");
    }
    for (i = 0; i < layers.count && kept && !result; i++) *kept_count += kept[i];
    if (!result)
        result = config->strategy.kind == TL_CHECKPOINT_NONE ? tl_plan_keep_all(env, graph, 0, plan)
                                                             : tli_plan_layers(&layers, kept, plan);
    tli_release(env, kept);
    tli_free_layers(&layers);
    return result;
}

TLI_IMPL tl_result tl_plan_checkpoints(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                       tl_plan *plan) {
    uint64_t kept_count;
    TL_ASSERT(graph && config && plan);
    tli_zero(plan, sizeof *plan);
    return tli_plan_config(env, "tl_plan_checkpoints", graph, config, plan, &kept_count);
}

static tl_result tli_measure_config(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                    tl_checkpoint_effect *effect) {
    tl_plan plan, all;
    uint64_t kept_count;
    tl_result result;
    tli_zero(&plan, sizeof plan);
    tli_zero(&all, sizeof all);
    result = tli_plan_config(env, "tl_measure_checkpoints", graph, config, &plan, &kept_count);
    if (!result) result = tl_plan_keep_all(env, graph, 0, &all);
    if (!result) {
        double peak = (double)plan.peak_bytes, all_peak = (double)all.peak_bytes;
        effect->peak_bytes = plan.peak_bytes;
        effect->keep_all_peak_bytes = all.peak_bytes;
        effect->memory_savings_ratio = all.peak_bytes ? 1.0 - peak / all_peak : 0.0;
        effect->compute_overhead_ratio = plan.base_cost ? (double)plan.cost / (double)plan.base_cost : 1.0;
        effect->kept_count = kept_count;
    }
    tl_free_plan(env, &plan);
    tl_free_plan(env, &all);
    return result;
}

// Layers of one byte, whose backward costs twice the forward.
static tl_result tli_add_equal_layers(tl_env *env, tl_graph *graph, uint64_t layer_count) {
    const char *function = "tl_measure_checkpoints";
    tl_chain_desc desc;
    uint64_t *costs, i;
    tl_result result;
    if (layer_count >= INT32_MAX)
        return tli_fail(env, TL_ERROR_OVERFLOW, function, "layer_count: must be below 2^31 - 1");
    costs = (uint64_t *)tli_alloc_array(env, layer_count, sizeof *costs);
    if (!costs) return tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory for the layers");
    for (i = 0; i < layer_count; i++) costs[i] = 2;
    tli_zero(&desc, sizeof desc);
    desc.layer_count = (int32_t)layer_count;
    desc.input_bytes = 1;
    desc.bwd_costs = costs;
    result = tl_add_chain(env, graph, &desc);
    tli_release(env, costs);
    return result;
}

TLI_IMPL tl_result tl_measure_checkpoints(tl_env *env, const tl_graph *graph, uint64_t layer_count,
                                          const tl_checkpoint_config *config, tl_checkpoint_effect *effect) {
    tl_graph equal;
    tl_result result;
    TL_ASSERT(config && effect);
    tli_zero(effect, sizeof *effect);
    result = tl_check_checkpoint_config(env, config, layer_count);
    if (result) return result;
    tl_init_graph(&equal);
    if (!graph && layer_count) result = tli_add_equal_layers(env, &equal, layer_count);
    if (graph && layer_count) {
        result = tl_check_graph(env, graph);
        if (!result) result = tli_check_layer_count(env, "tl_measure_checkpoints", graph, layer_count);
    }
    if (!result && !graph && !layer_count) effect->compute_overhead_ratio = 1.0;  // nothing to make again
    else if (!result) result = tli_measure_config(env, graph ? graph : &equal, config, effect);
    tl_free_graph(env, &equal);
    return result;
}

#ifndef TL_NO_TEXT
// -- checkpoint configs as text --

TLI_IMPL int tl_parse_checkpoint(const char *text, tl_checkpoint_kind *kind) {
    int32_t value;
    int ok = tli_parse_name(tli_checkpoint_names, TL_CHECKPOINT_COUNT, text, tli_text_length(text), &value);
    *kind = (tl_checkpoint_kind)value;
    return ok;
}

// With one digit after the point; also what Rust calls NaN, inf and -inf.
static void tli_put_percent(tli_writer *w, double ratio) {
    volatile double percent = ratio * 100.0;  // rounded to a double on every machine
    double value = percent;
    if (value != value) tli_put(w, "NaN");
    else if (value - value != 0.0) tli_put(w, value > 0.0 ? "inf" : "-inf");
    else tli_put_fixed(w, value, 1);
}

TLI_IMPL size_t tl_print_checkpoint_config(const tl_checkpoint_config *config, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_checkpoint *c;
    TL_ASSERT(config);
    c = &config->strategy;
    switch (c->kind) {
    case TL_CHECKPOINT_NONE: tli_put(&w, "No checkpointing"); break;
    case TL_CHECKPOINT_UNIFORM:
        tli_put(&w, "Uniform checkpointing every ");
        tli_put_u64(&w, c->as.uniform.interval);
        tli_put(&w, " layers");
        break;
    case TL_CHECKPOINT_SELECTIVE:
        tli_put(&w, "Selective checkpointing at ");
        tli_put_u64(&w, c->as.selective.layer_count);
        tli_put(&w, " layers");
        break;
    case TL_CHECKPOINT_DYNAMIC:
        tli_put(&w, "Dynamic checkpointing (");
        tli_put_u64(&w, c->as.dynamic.layer_count);
        tli_put(&w, " layers, ");
        tli_put_percent(&w, c->as.dynamic.memory_fraction);
        tli_put(&w, "% memory target)");
        break;
    case TL_CHECKPOINT_COUNT: break;
    }
    return tli_finish(&w);
}

// -- checkpoint configs as JSON: an enum with fields is an object of one key, one without is a text --

static const char *const tli_config_keys[] = {
    "strategy", "checkpoint_attention", "checkpoint_ffn", "min_checkpoint_interval"
};
static const char *const tli_uniform_keys[] = { "interval" };
static const char *const tli_selective_keys[] = { "layers" };
static const char *const tli_dynamic_keys[] = { "num_layers", "memory_fraction" };

static void tli_put_strategy_fields(tli_writer *w, const tl_checkpoint *c) {
    uint64_t i;
    if (c->kind == TL_CHECKPOINT_UNIFORM) {
        tli_put(w, "\"interval\":");
        tli_put_u64(w, c->as.uniform.interval);
    } else if (c->kind == TL_CHECKPOINT_SELECTIVE) {
        tli_put(w, "\"layers\":[");
        for (i = 0; c->as.selective.layers && i < c->as.selective.layer_count; i++) {
            if (i) tli_put(w, ",");
            tli_put_u64(w, c->as.selective.layers[i]);
        }
        tli_put(w, "]");
    } else {
        double fraction = c->as.dynamic.memory_fraction;
        tli_put(w, "\"num_layers\":");
        tli_put_u64(w, c->as.dynamic.layer_count);
        tli_put(w, ",\"memory_fraction\":");
        if (fraction - fraction != 0.0) tli_put(w, "null");  // NaN and infinities, as serde_json has it
        else tli_put_f64(w, fraction);
    }
}

TLI_IMPL size_t tl_print_checkpoint_config_json(const tl_checkpoint_config *config, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_checkpoint *c;
    int has_fields;
    TL_ASSERT(config);
    c = &config->strategy;
    has_fields = c->kind > TL_CHECKPOINT_NONE && c->kind < TL_CHECKPOINT_COUNT;
    tli_put(&w, has_fields ? "{\"strategy\":{\"" : "{\"strategy\":\"");
    tli_put(&w, tl_name_checkpoint(c->kind));
    tli_put(&w, has_fields ? "\":{" : "\"");
    if (has_fields) { tli_put_strategy_fields(&w, c); tli_put(&w, "}}"); }
    tli_put(&w, ",\"checkpoint_attention\":");
    tli_put(&w, config->checkpoint_attention ? "true" : "false");
    tli_put(&w, ",\"checkpoint_ffn\":");
    tli_put(&w, config->checkpoint_ffn ? "true" : "false");
    tli_put(&w, ",\"min_checkpoint_interval\":");
    tli_put_u64(&w, config->min_checkpoint_interval);
    tli_put(&w, "}");
    return tli_finish(&w);
}

// At the end of an object: all of its fields must have come.
static void tli_require_keys(tli_json *j, const char *const *keys, int32_t count, uint32_t seen) {
    char why[64];
    tli_writer w = tli_writer_of(why, sizeof why);
    int32_t i = 0;
    while (i < count && (seen >> i & 1)) i++;
    if (i == count) return;
    tli_put(&w, "there must be ");
    tli_put(&w, keys[i]);
    tli_finish(&w);
    tli_json_fail(j, why);
}

// An array of numbers, released by whoever releases the config, also after an error.
static void tli_read_layers_json(tli_json *j, tl_checkpoint_config *config) {
    tl_checkpoint *c = &config->strategy;
    uint64_t *layers;
    int32_t count = 0, capacity = 0;
    tli_word unused;
    if (!tli_json_enter(j, '[')) return;
    while (tli_json_next(j, &unused)) {
        uint64_t layer = tli_json_u64(j);
        if (j->result) return;
        if (!tli_grow(j->env, &config->memory, &capacity, count, (int64_t)count + 1, sizeof layer)) {
            j->at = j->end;
            j->result = tli_fail(j->env, TL_ERROR_NO_MEMORY, j->function, "no memory for the layers");
            return;
        }
        layers = (uint64_t *)config->memory;
        layers[count++] = layer;
        c->as.selective.layers = layers;
        c->as.selective.layer_count = (uint64_t)count;
    }
}

static void tli_read_fields_json(tli_json *j, tl_checkpoint_config *config) {
    tl_checkpoint *c = &config->strategy;
    int is_uniform = c->kind == TL_CHECKPOINT_UNIFORM, is_selective = c->kind == TL_CHECKPOINT_SELECTIVE;
    const char *const *keys = is_uniform ? tli_uniform_keys
                            : is_selective ? tli_selective_keys : tli_dynamic_keys;
    int32_t count = is_uniform || is_selective ? 1 : 2, key;
    uint32_t seen = 0;
    if (!tli_json_enter(j, '{')) return;
    while ((key = tli_json_next_key(j, keys, count, &seen)) >= 0)
        if (is_uniform) c->as.uniform.interval = tli_json_u64(j);
        else if (is_selective) tli_read_layers_json(j, config);
        else if (key == 0) c->as.dynamic.layer_count = tli_json_u64(j);
        else c->as.dynamic.memory_fraction = tli_json_f64(j);
    tli_require_keys(j, keys, count, seen);
}

// "None", {"None":null} or {"Uniform":{"interval":2}}
static void tli_read_strategy_json(tli_json *j, tl_checkpoint_config *config) {
    tl_checkpoint *c = &config->strategy;
    tli_word raw;
    int32_t kind;
    if (tli_json_peek(j) == '"') {
        if (tli_json_name(j, tli_checkpoint_names, TL_CHECKPOINT_COUNT) != TL_CHECKPOINT_NONE)
            tli_json_fail(j, "this strategy must have its fields");
        return;
    }
    tli_zero(&raw, sizeof raw);
    if (!tli_json_enter(j, '{')) return;
    if (!tli_json_next(j, &raw)) { tli_json_fail(j, "there must be a strategy"); return; }
    kind = tli_json_find(raw, tli_checkpoint_names, TL_CHECKPOINT_COUNT);
    if (kind < 0) {
        j->at = raw.text;
        tli_json_fail(j, "unknown name");
        return;
    }
    c->kind = (tl_checkpoint_kind)kind;
    if (c->kind != TL_CHECKPOINT_NONE) tli_read_fields_json(j, config);
    else if (tli_json_peek(j) != 'n' || !tli_json_literal(j, "null")) tli_json_fail(j, "expected null");
    if (tli_json_next(j, &raw)) tli_json_fail(j, "there must be one strategy only");
}

TLI_IMPL tl_result tl_parse_checkpoint_config_json(tl_env *env, const char *text, size_t length,
                                                   tl_checkpoint_config *config) {
    uint32_t seen = 0;
    int32_t key;
    tli_json j;
    TL_ASSERT(config && (text || !length));
    tli_zero(config, sizeof *config);
    j = tli_json_open(env, "tl_parse_checkpoint_config_json", text ? text : "", length);
    if (tli_json_enter(&j, '{')) {
        while ((key = tli_json_next_key(&j, tli_config_keys, 4, &seen)) >= 0)
            if (key == 0) tli_read_strategy_json(&j, config);
            else if (key == 1) config->checkpoint_attention = tli_json_bool(&j);
            else if (key == 2) config->checkpoint_ffn = tli_json_bool(&j);
            else config->min_checkpoint_interval = tli_json_u64(&j);
        tli_require_keys(&j, tli_config_keys, 4, seen);
    }
    if (tli_json_end(&j)) tl_free_checkpoint_config(env, config);
    return j.result;
}
#endif
#endif  // TL_NO_PLANNERS

// ============================================================================
// [5] REMAT (implementation)
// ============================================================================

#ifndef TL_NO_PLANNERS
// -- progress --

#define TLI_REMAT_ASK 1000000  // steps of work from one question to the next

typedef struct tli_remat_watch {
    const tl_remat_desc *desc;
    tl_remat_progress    now;
    uint64_t             before, next;  // work of the parts that are done; of all, at which to ask
    int32_t              stopped;
} tli_remat_watch;

// Whether the caller wants no more; `work` is that of the part under way.
static int tli_remat_stops(tli_remat_watch *watch, uint64_t work) {
    watch->now.work = watch->before + work;
    if (watch->stopped || !watch->desc->progress || watch->now.work < watch->next) return watch->stopped;
    watch->next = watch->now.work + TLI_REMAT_ASK;
    watch->stopped = watch->desc->progress(&watch->now, watch->desc->user) != 0;
    return watch->stopped;
}


// -- exact: the optimum of small graphs --
//
// A* from the end of the plan to its start, over what must be there.
//
// A state is a position (how many backwards are done) and the set of items without which the rest of
// the plan cannot be carried out; its cost is that of the rest. Items are the tensors that anybody may
// want, saved bytes, and for the few nodes where nothing else shows it the fact that forward ran.
// Gradients follow from the position. The search starts with the results after the last backward and
// ends with nothing before the first call:
//   - before a backward, what it reads must be there as well;
//   - before a forward, what it makes need not be there, but its inputs must. Only calls that make
//     something wanted are tried, so no plan makes anything in vain or keeps it too long, and the bytes
//     of a call follow from the state: nothing is chosen for dropping;
//   - v runs again while an output is resident only if that output is dropped before: the call makes
//     it anyway. A save beside all outputs has the peak of dropping them and running with save;
//   - in place wherever the rest does not want the input: the same state for fewer bytes.
// A state that wants no more than another at the same position and costs no more makes it needless.
// The estimate of what the start of the plan costs: every forward without which a backward before, or
// something wanted now, cannot be; and for one of those backwards, what has run by then, is wanted
// after it and does not fit beside it: a fractional knapsack; the largest over these backwards counts.
// The least budget is the same search with the largest peak of the rest in place of its cost.

#define TLI_EXACT_WORDS 2
#define TLI_EXACT_ITEMS (64 * TLI_EXACT_WORDS)
#define TLI_EXACT_STATES (1 << 19)  // at most: memory

typedef struct tli_set { uint64_t word[TLI_EXACT_WORDS]; } tli_set;  // of items

// A node that may run.
typedef struct tli_exact_call {
    int32_t  node, turn;                // turn: position of its backward, -1 = none
    tli_set  inputs, made, saved;       // items: read by forward; made by any forward; made by S alone
    tli_set  source;                    // the input that v.0 may overwrite; empty = none
    uint64_t fwd_cost, out_bytes, fwork_bytes, saved_bytes, source_bytes;
} tli_exact_call;

// What a call made may be kept beside a backward, or made again after it.
typedef struct tli_exact_load {
    tli_set  items;                     // without those that the backward reads
    uint64_t bytes, cost;               // of the items; of the call
} tli_exact_load;

typedef struct tli_exact_settled { tli_set wanted; uint64_t cost; } tli_exact_settled;

// What holds before backward number `position`; the last position is the end.
typedef struct tli_exact_position {
    int32_t  call;
    tli_set  reads;                     // by this backward
    tli_set  before;                    // must have been there for the backwards before this one
    uint64_t between_bytes, during_bytes;  // graph inputs and gradients before it; and bwork, during it
    uint64_t bwd_cost, before_cost;     // of this backward; of all before it and the forwards that these need
    uint64_t spare_bytes;               // what the budget leaves beside this backward and what it reads
    int32_t  first_load, end_load;      // in order of cost per byte, the cheapest first
    tli_set  load_items;                // of all its loads
    tli_exact_settled *settled;         // states from which edges were tried
    int32_t  settled_count, settled_capacity;
} tli_exact_position;

typedef struct tli_exact_state {
    tli_set  wanted;
    uint64_t cost, total;               // of the rest of the plan; and the estimate of its start
    int32_t  position;
    int32_t  after, call;               // the next state in the plan, and the step that leads there
    int32_t  kind;                      // of that step: tl_step_kind
    int32_t  next;                      // in the same bucket
} tli_exact_state;

typedef struct tli_exact_entry { uint64_t total; int32_t state; } tli_exact_entry;

typedef struct tli_exact {
    tl_env             *env;
    const tl_graph     *graph;
    uint64_t            budget, pinned_bytes;
    int32_t             inference, peaks, found;  // peaks: the largest peak counts, not the cost
    int32_t             item_count, call_count, position_count, load_count;
    int32_t            *item_of;            // [tensor_count] -1 = none
    int32_t            *call_of;            // [node_count] -1 = none
    int32_t            *saved_of;           // [node_count] -1 = none
    uint8_t            *wanted;             // [tensor_count]
    tli_exact_call     *calls;              // [call_count] in listing order
    tli_exact_position *positions;          // [position_count]: one per backward and the end
    tli_exact_load     *loads;
    uint64_t           *weights;            // [8 * TLI_EXACT_WORDS][256] bytes of each byte of a set
    uint64_t            item_bytes[TLI_EXACT_ITEMS];
    int32_t             last;               // position: the end
    tli_set             target;             // wanted there
    tli_remat_watch    *watch;
    tli_exact_state    *states;  int32_t state_count, state_capacity;
    tli_exact_entry    *heap;    int32_t heap_count, heap_capacity;
    int32_t            *buckets, bucket_count;      // a power of two
    int32_t             full;               // 1 = no memory for one more state, or a cost beyond 64 bits
    int32_t             after, position, call;      // what the next states lead to, by which call
    tli_set             wanted_after;
    uint64_t            paid, work, work_limit;
} tli_exact;

// -- exact: sets --

static tli_set tli_no_items(void) {
    tli_set set;
    tli_zero(&set, sizeof set);
    return set;
}

static tli_set tli_set_of(int32_t item) {
    tli_set set = tli_no_items();
    set.word[item / 64] = (uint64_t)1 << item % 64;
    return set;
}

static tli_set tli_set_join(tli_set a, tli_set b) {
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) a.word[k] |= b.word[k];
    return a;
}

static tli_set tli_set_meet(tli_set a, tli_set b) {
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) a.word[k] &= b.word[k];
    return a;
}

static tli_set tli_set_less(tli_set a, tli_set b) {
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) a.word[k] &= ~b.word[k];
    return a;
}

static int tli_set_is_within(tli_set a, tli_set b) {
    uint64_t rest = 0;
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) rest |= a.word[k] & ~b.word[k];
    return !rest;
}

static int tli_set_is_empty(tli_set a) {
    uint64_t all = 0;
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) all |= a.word[k];
    return !all;
}

static int tli_set_equals(tli_set a, tli_set b) {
    return tli_set_is_within(a, b) && tli_set_is_within(b, a);
}

static int tli_set_has(tli_set a, int32_t item) {
    return (int)(a.word[item / 64] >> item % 64 & 1);
}

static uint64_t tli_exact_weigh(const tli_exact *x, tli_set set) {
    const uint64_t *row;
    uint64_t sum = 0, word;
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) {
        row = x->weights + k * 2048;
        for (word = set.word[k]; word; word >>= 8, row += 256) sum += row[word & 255];
    }
    return sum;
}

// -- exact: what the graph says, as items --

static int tli_exact_runs_unseen(const tl_graph *graph, const uint8_t *read_by_grad,
                                 const tl_node *node) {
    int32_t i;
    if (node->saved_bytes) return 0;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed || read_by_grad[i]) return 0;
    return 1;
}

// Which tensors and nodes anything may ever want: x->wanted, and x->call_of >= 0.
static void tli_exact_find_wanted(tli_exact *x) {
    const tl_graph *graph = x->graph;
    int32_t id, i;
    tli_mark_results(graph, x->inference, x->wanted);
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int grad = node->has_grad && !x->inference, runs = grad;
        x->call_of[id] = -1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            if (grad && graph->outputs[i].needed) x->wanted[i] = 1;
            runs |= x->wanted[i];
        }
        if (node->is_input || !runs) continue;
        x->call_of[id] = 0;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            x->wanted[graph->inputs[i].tensor] = 1;
    }
}

static int tli_exact_add_item(tli_exact *x, uint64_t bytes) {
    if (x->item_count < TLI_EXACT_ITEMS) x->item_bytes[x->item_count] = bytes;
    return x->item_count++;
}

// Number the items, node by node. read_by_grad[] says which tensors nodes with a gradient read: what
// such a node has read was made, so their maker ran.
static void tli_exact_number(tli_exact *x, uint8_t *read_by_grad) {
    const tl_graph *graph = x->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (node->has_grad) read_by_grad[graph->inputs[i].tensor] = 1;
    }
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        x->saved_of[id] = -1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            x->item_of[i] = -1;
            if (node->is_input) x->pinned_bytes += graph->outputs[i].bytes;
            else if (x->wanted[i]) x->item_of[i] = tli_exact_add_item(x, graph->outputs[i].bytes);
        }
        if (x->call_of[id] < 0) continue;
        x->call_of[id] = x->call_count++;
        if (!node->has_grad || x->inference) continue;
        if (node->saved_bytes) x->saved_of[id] = tli_exact_add_item(x, node->saved_bytes);
        else if (tli_exact_runs_unseen(graph, read_by_grad, node))
            x->saved_of[id] = tli_exact_add_item(x, 0);
        x->position_count++;
    }
    x->position_count++;
}

static tl_result tli_exact_alloc(tli_exact *x) {
    uint64_t calls = (uint64_t)x->call_count, positions = (uint64_t)x->position_count;
    x->calls = (tli_exact_call *)tli_alloc_array(x->env, calls, sizeof *x->calls);
    x->positions = (tli_exact_position *)tli_alloc_array(x->env, positions, sizeof *x->positions);
    x->loads = (tli_exact_load *)tli_alloc_array(x->env, calls * positions, sizeof *x->loads);
    x->weights = (uint64_t *)tli_alloc_array(x->env, TLI_EXACT_WORDS * 2048, sizeof *x->weights);
    x->bucket_count = 1024;
    x->buckets = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->bucket_count, sizeof *x->buckets);
    return x->calls && x->positions && x->loads && x->weights && x->buckets ? TL_OK : TL_ERROR_NO_MEMORY;
}

static tli_set tli_exact_items_read(const tli_exact *x, const tl_node *node, int by_backward) {
    const tl_graph *graph = x->graph;
    tli_set set = tli_no_items();
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t item = x->item_of[graph->inputs[i].tensor];
        if (item >= 0 && (!by_backward || graph->inputs[i].needed))
            set = tli_set_join(set, tli_set_of(item));
    }
    return set;
}

// The input that may be overwritten: an item, read once.
static void tli_exact_find_source(const tli_exact *x, const tl_node *node, tli_exact_call *call) {
    const tl_graph *graph = x->graph;
    int32_t i, from, reads = 0;
    if (node->inplace < 0) return;
    from = graph->inputs[node->first_input + node->inplace].tensor;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        reads += graph->inputs[i].tensor == from;
    if (reads != 1 || x->item_of[from] < 0 || !graph->outputs[from].bytes) return;
    call->source = tli_set_of(x->item_of[from]);
    call->source_bytes = graph->outputs[from].bytes;
}

static void tli_exact_read_call(tli_exact *x, int32_t id, int32_t *position) {
    const tl_graph *graph = x->graph;
    const tl_node *node = &graph->nodes[id];
    tli_exact_call *call = &x->calls[x->call_of[id]];
    int32_t i, item = x->saved_of[id];
    call->node = id;
    call->turn = -1;
    call->fwd_cost = node->fwd_cost;
    call->fwork_bytes = node->fwork_bytes;
    call->inputs = tli_exact_items_read(x, node, 0);
    tli_exact_find_source(x, node, call);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        call->out_bytes += graph->outputs[i].bytes;
        if (x->item_of[i] >= 0) call->made = tli_set_join(call->made, tli_set_of(x->item_of[i]));
    }
    if (item >= 0 && node->saved_bytes) call->saved = tli_set_of(item);
    if (item >= 0 && !node->saved_bytes) call->made = tli_set_join(call->made, tli_set_of(item));
    call->saved_bytes = node->saved_bytes;
    if (node->has_grad && !x->inference) call->turn = --*position;
}

static void tli_exact_read_calls(tli_exact *x) {
    int32_t id, position = x->position_count - 1, k, i;
    for (id = 0; id < x->graph->node_count; id++)
        if (x->call_of[id] >= 0) tli_exact_read_call(x, id, &position);
    for (k = 0; k < 8 * TLI_EXACT_WORDS; k++)
        for (i = 1; i < 256; i++) {
            int32_t bit = 0;
            while (!(i >> bit & 1)) bit++;
            x->weights[k * 256 + i] = x->weights[k * 256 + (i & (i - 1))] +
                                      (8 * k + bit < x->item_count ? x->item_bytes[8 * k + bit] : 0);
        }
    tli_mark_results(x->graph, x->inference, x->wanted);
    for (i = 0; i < x->graph->tensor_count; i++)
        if (x->item_of[i] >= 0 && x->wanted[i])
            x->target = tli_set_join(x->target, tli_set_of(x->item_of[i]));
}

// -- exact: positions --

// Gradient bytes from the first backward on; x->wanted marks the gradients alive.
static void tli_exact_add_gradients(tli_exact *x) {
    const tl_graph *graph = x->graph;
    uint64_t alive = x->pinned_bytes;
    int32_t k, i;
    tli_zero(x->wanted, (size_t)graph->tensor_count);
    for (k = 0; k < x->position_count; k++) {
        tli_exact_position *p = &x->positions[k];
        const tl_node *node = &graph->nodes[x->calls[p->call].node];
        p->between_bytes = alive;
        if (k == x->position_count - 1) break;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            if (!x->wanted[i]) alive += graph->outputs[i].bytes;
            x->wanted[i] = 1;
        }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (x->wanted[tensor] || !graph->nodes[graph->outputs[tensor].node].has_grad) continue;
            x->wanted[tensor] = 1;
            alive += graph->outputs[tensor].bytes;
        }
        p->during_bytes = alive + node->bwork_bytes;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            alive -= graph->outputs[i].bytes;
    }
}

// Add to what is wanted all that it is made from; returns the cost of making it, each call once.
static uint64_t tli_exact_close(const tli_exact *x, tli_set *wanted) {
    uint64_t cost = 0;
    int32_t k;
    for (k = x->call_count; k-- > 0;) {
        const tli_exact_call *call = &x->calls[k];
        tli_set items = tli_set_join(call->made, call->saved);
        if (tli_set_is_empty(tli_set_meet(items, *wanted))) continue;
        *wanted = tli_set_join(*wanted, call->inputs);
        cost += call->fwd_cost;
    }
    return cost;
}

static void tli_exact_read_positions(tli_exact *x) {
    const tl_graph *graph = x->graph;
    int32_t k, i;
    x->last = x->position_count - 1;
    for (k = 0; k < x->call_count; k++)
        if (x->calls[k].turn >= 0) x->positions[x->calls[k].turn].call = k;
    tli_exact_add_gradients(x);
    for (k = 0; k < x->last; k++) {
        tli_exact_position *p = &x->positions[k];
        const tl_node *node = &graph->nodes[x->calls[p->call].node];
        int32_t saved = x->saved_of[x->calls[p->call].node];
        p->reads = tli_exact_items_read(x, node, 1);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (graph->outputs[i].needed)
                p->reads = tli_set_join(p->reads, tli_set_of(x->item_of[i]));
        if (saved >= 0) p->reads = tli_set_join(p->reads, tli_set_of(saved));
        p->bwd_cost = node->bwd_cost;
    }
}

// What must have been there before each position, and what that costs.
static void tli_exact_read_before(tli_exact *x) {
    uint64_t bwd_cost = 0;
    int32_t k;
    for (k = 0; k < x->last; k++) {
        tli_exact_position *p = &x->positions[k];
        bwd_cost += p->bwd_cost;
        p[1].before = tli_set_join(p->before, p->reads);
        p[1].before_cost = bwd_cost + tli_exact_close(x, &p[1].before);
    }
}

// -- exact: loads: what does not fit beside a backward --

// Whether a * b < c * d, in 128 bits.
static int tli_exact_is_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    uint64_t p[2], q[2], *to[2], from[2][2];
    int32_t k;
    from[0][0] = a; from[0][1] = b; from[1][0] = c; from[1][1] = d;
    to[0] = p; to[1] = q;
    for (k = 0; k < 2; k++) {
        uint64_t ah = from[k][0] >> 32, al = from[k][0] & 0xFFFFFFFFu;
        uint64_t bh = from[k][1] >> 32, bl = from[k][1] & 0xFFFFFFFFu;
        uint64_t middle = (al * bl >> 32) + (ah * bl & 0xFFFFFFFFu) + (al * bh & 0xFFFFFFFFu);
        to[k][0] = ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (middle >> 32);
        to[k][1] = from[k][0] * from[k][1];
    }
    return p[0] != q[0] ? p[0] < q[0] : p[1] < q[1];
}

static void tli_exact_add_load(tli_exact *x, tli_exact_position *p,
                               const tli_exact_call *call) {
    tli_set items = tli_set_join(call->made, call->saved);
    tli_exact_load load;
    int32_t at;
    // Of use where the estimate counts the call before this backward.
    if (tli_set_is_empty(tli_set_meet(items, p[1].before))) return;
    load.items = tli_set_less(items, p->reads);
    load.bytes = tli_exact_weigh(x, load.items);
    load.cost = call->fwd_cost;
    if (!load.bytes || !load.cost) return;
    for (at = x->load_count++; at > p->first_load; at--) {
        const tli_exact_load *before = &x->loads[at - 1];
        if (!tli_exact_is_less(load.cost, before->bytes, before->cost, load.bytes)) break;
        x->loads[at] = *before;
    }
    x->loads[at] = load;
    p->load_items = tli_set_join(p->load_items, load.items);
}

// Returns 0 where some backward does not fit whatever else is dropped.
static int tli_exact_read_budget(tli_exact *x) {
    int32_t k, i;
    if (x->pinned_bytes > x->budget) return 0;
    for (k = 0; k < x->last; k++) {
        tli_exact_position *p = &x->positions[k];
        uint64_t bytes = p->during_bytes + tli_exact_weigh(x, p->reads);
        if (bytes > x->budget) return 0;
        p->spare_bytes = x->budget - bytes;
        p->first_load = x->load_count;
        p->load_items = tli_no_items();
        for (i = 0; i < x->call_count; i++) tli_exact_add_load(x, p, &x->calls[i]);
        p->end_load = x->load_count;
    }
    return 1;
}

// -- exact: the estimate --

// A lower bound of cost * part / whole, part < whole.
static uint64_t tli_exact_share(uint64_t cost, uint64_t part, uint64_t whole) {
    uint64_t product;
    if (tli_mul_u64(cost, part, &product)) return product / whole;
    return part ? cost / (whole / part + 1) : 0;
}

// What must be made again after a backward because it does not fit beside it. A call of which only a
// part is wanted counts with that part of its cost, so that the order of the loads holds for it.
static uint64_t tli_exact_overflow(tli_exact *x, const tli_exact_position *p, tli_set wanted) {
    const tli_exact_load *load = x->loads + p->first_load;
    uint64_t bytes = tli_exact_weigh(x, tli_set_meet(wanted, p->load_items)), cost = 0, part;
    x->work += 4;
    for (; bytes > p->spare_bytes; load++) {
        tli_set items = tli_set_meet(load->items, wanted);
        x->work++;
        if (tli_set_is_empty(items)) continue;
        part = tli_set_equals(items, load->items) ? load->bytes : tli_exact_weigh(x, items);
        if (bytes - p->spare_bytes < part) part = bytes - p->spare_bytes;
        cost += part == load->bytes ? load->cost : tli_exact_share(load->cost, part, load->bytes);
        bytes -= part;
    }
    return cost;
}

// At least what the plan costs up to this position with all that is wanted there.
static uint64_t tli_exact_estimate(tli_exact *x, int32_t position, tli_set wanted) {
    uint64_t cost = x->positions[position].before_cost, most = 0, again;
    tli_set all = tli_set_join(x->positions[position].before, wanted);
    int32_t k;
    if (x->peaks) return 0;
    if (!tli_set_is_within(wanted, x->positions[position].before)) {
        cost = tli_exact_close(x, &all);
        for (k = 0; k < position; k++) cost += x->positions[k].bwd_cost;
        x->work += (uint64_t)(x->call_count + position);
    }
    for (k = position; k-- > 0;) {
        again = tli_exact_overflow(x, &x->positions[k], wanted);
        if (again > most) most = again;
        wanted = tli_set_join(wanted, x->positions[k].reads);
    }
    return cost + most;
}

// -- exact: states --

static uint32_t tli_exact_hash(tli_set wanted, int32_t position) {
    uint64_t h = (uint64_t)position;
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) h = (h ^ (h >> 32) ^ wanted.word[k]) * 0xD6E8FEB86659FD93u;
    h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32);
}

// Among equals the one nearer to the start first: it is then reached without settling all of them.
static int tli_exact_comes_first(const tli_exact *x, tli_exact_entry a, tli_exact_entry b) {
    const tli_exact_state *s = &x->states[a.state], *t = &x->states[b.state];
    if (a.total != b.total) return a.total < b.total;
    if (s->position != t->position) return s->position < t->position;
    if (s->cost != t->cost) return s->cost > t->cost;
    return a.state > b.state;
}

static void tli_exact_push(tli_exact *x, int32_t state) {
    void *heap = x->heap;
    tli_exact_entry entry;
    int32_t at = x->heap_count;
    if (!tli_grow(x->env, &heap, &x->heap_capacity, at, (int64_t)at + 1, sizeof *x->heap)) {
        x->full = 1;
        return;
    }
    x->heap = (tli_exact_entry *)heap;
    x->heap_count++;
    entry.total = x->states[state].total;
    entry.state = state;
    for (; at && tli_exact_comes_first(x, entry, x->heap[(at - 1) / 2]); at = (at - 1) / 2)
        x->heap[at] = x->heap[(at - 1) / 2];
    x->heap[at] = entry;
}

static tli_exact_entry tli_exact_pop(tli_exact *x) {
    tli_exact_entry top = x->heap[0], entry = x->heap[--x->heap_count];
    int32_t at = 0, child;
    while ((child = 2 * at + 1) < x->heap_count) {
        if (child + 1 < x->heap_count &&
            tli_exact_comes_first(x, x->heap[child + 1], x->heap[child])) child++;
        if (!tli_exact_comes_first(x, x->heap[child], entry)) break;
        x->heap[at] = x->heap[child];
        at = child;
    }
    x->heap[at] = entry;
    return top;
}

// More buckets where states are as many as buckets; without memory for them the lists get longer.
static void tli_exact_rehash(tli_exact *x) {
    int32_t *buckets, i;
    if (x->state_count < x->bucket_count || x->bucket_count > INT32_MAX / 4) return;
    buckets = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->bucket_count * 4, sizeof *buckets);
    if (!buckets) return;
    tli_release(x->env, x->buckets);
    x->buckets = buckets;
    x->bucket_count *= 4;
    for (i = 0; i < x->state_count; i++) {
        tli_exact_state *s = &x->states[i];
        uint32_t hash = tli_exact_hash(s->wanted, s->position) & (uint32_t)(x->bucket_count - 1);
        s->next = buckets[hash];
        buckets[hash] = i + 1;
    }
}

static int32_t tli_exact_find(const tli_exact *x, tli_set wanted, int32_t position) {
    uint32_t hash = tli_exact_hash(wanted, position) & (uint32_t)(x->bucket_count - 1);
    int32_t at = x->buckets[hash];
    while (at) {
        const tli_exact_state *s = &x->states[at - 1];
        if (s->position == position && tli_set_equals(s->wanted, wanted)) break;
        at = s->next;
    }
    return at - 1;
}

// A new state; -1 = no memory, or a cost beyond 64 bits.
static int32_t tli_exact_add_state(tli_exact *x, tli_set wanted, int32_t position, uint64_t cost) {
    void *states = x->states;
    tli_exact_state *s;
    uint32_t hash;
    int32_t at = x->state_count;
    if (!tli_grow(x->env, &states, &x->state_capacity, at, (int64_t)at + 1, sizeof *s)) return -1;
    x->states = (tli_exact_state *)states;
    s = &x->states[at];
    s->wanted = wanted;
    s->position = position;
    if (!tli_add_u64(tli_exact_estimate(x, position, wanted), cost, &s->total)) return -1;
    hash = tli_exact_hash(wanted, position) & (uint32_t)(x->bucket_count - 1);
    s->next = x->buckets[hash];
    x->buckets[hash] = at + 1;
    x->state_count++;
    tli_exact_rehash(x);
    return at;
}

// The step `kind` of x->call leads from this state to x->after; it costs so much and has this peak.
static void tli_exact_reach(tli_exact *x, tli_set wanted, int32_t position, tl_step_kind kind,
                            uint64_t cost, uint64_t peak) {
    tli_exact_state *s;
    int32_t at;
    if (x->peaks) cost = peak > x->paid ? peak : x->paid;
    else if (peak > x->budget) return;
    else if (!tli_add_u64(cost, x->paid, &cost)) x->full = 1;
    at = tli_exact_find(x, wanted, position);
    x->work += 32;
    if (at >= 0 && x->states[at].cost <= cost) return;
    if (at >= 0) x->states[at].total -= x->states[at].cost - cost;
    else if (!x->full) at = tli_exact_add_state(x, wanted, position, cost);
    if (at < 0) { x->full = 1; return; }
    s = &x->states[at];
    s->cost = cost;
    s->after = x->after;
    s->call = x->call;
    s->kind = (int32_t)kind;
    tli_exact_push(x, at);
}

// -- exact: edges, backwards in time --

static void tli_exact_undo_forward(tli_exact *x, const tli_exact_call *call) {
    tli_set before = tli_set_join(tli_set_less(x->wanted_after, call->made), call->inputs);
    uint64_t bytes = x->positions[x->position].between_bytes + call->out_bytes + call->fwork_bytes;
    int makes = !tli_set_is_empty(tli_set_meet(x->wanted_after, call->made));
    int saves = !tli_set_is_empty(tli_set_meet(x->wanted_after, call->saved));
    int inplace = !tli_set_is_empty(tli_set_less(call->source, x->wanted_after));
    if (saves)  // the saved bytes count during the call: they stay in the sum
        tli_exact_reach(x, tli_set_less(before, call->saved), x->position, TL_STEP_FORWARD_SAVE,
                        call->fwd_cost, bytes + tli_exact_weigh(x, before));
    if (!makes) return;
    bytes += tli_exact_weigh(x, before) - (inplace ? call->source_bytes : 0);
    tli_exact_reach(x, before, x->position, inplace ? TL_STEP_FORWARD_INPLACE : TL_STEP_FORWARD,
                    call->fwd_cost, bytes);
}

static void tli_exact_undo_backward(tli_exact *x) {
    const tli_exact_position *p = &x->positions[x->position - 1];
    tli_set before = tli_set_join(x->wanted_after, p->reads);
    x->call = p->call;
    tli_exact_reach(x, before, x->position - 1, TL_STEP_BACKWARD, p->bwd_cost,
                    p->during_bytes + tli_exact_weigh(x, before));
}

// -- exact: the search --

// Whether a state settled before wants and costs no more; if not, this one counts from now on.
static int tli_exact_is_needless(tli_exact *x, const tli_exact_state *s) {
    tli_exact_position *p = &x->positions[s->position];
    void *settled = p->settled;
    int32_t i;
    for (i = 0; i < p->settled_count; i++) {
        tli_exact_settled found = p->settled[i];
        if (found.cost > s->cost || !tli_set_is_within(found.wanted, s->wanted)) continue;
        p->settled[i] = p->settled[i / 2];  // what helped once is asked earlier the next time
        p->settled[i / 2] = found;
        x->work += (uint64_t)i;
        return 1;
    }
    x->work += (uint64_t)i;
    if (!tli_grow(x->env, &settled, &p->settled_capacity, i, (int64_t)i + 1, sizeof *p->settled))
        return 0;
    p->settled = (tli_exact_settled *)settled;
    p->settled[i].wanted = s->wanted;
    p->settled[i].cost = s->cost;
    p->settled_count++;
    return 0;
}

// Returns the state at the start, or -1: *bound is then what every plan costs at least, UINT64_MAX =
// none fits.
static int32_t tli_exact_search(tli_exact *x, uint64_t *bound) {
    int32_t k;
    *bound = 0;
    x->after = x->call = -1;
    tli_exact_reach(x, x->target, x->last, TL_STEP_COUNT, 0, 0);
    while (x->heap_count && !x->full) {
        tli_exact_entry top = x->heap[0];
        const tli_exact_state *s = &x->states[top.state];
        if (s->total > *bound && top.total == s->total) *bound = s->total;
        if (x->work > x->work_limit || x->state_count > TLI_EXACT_STATES ||
            tli_remat_stops(x->watch, x->work)) return -1;
        tli_exact_pop(x);
        if (top.total != s->total) continue;  // reached for less since
        if (!s->position && tli_set_is_empty(s->wanted)) return top.state;
        if (tli_exact_is_needless(x, s)) continue;
        x->after = top.state;
        x->wanted_after = s->wanted;
        x->position = s->position;
        x->paid = s->cost;
        if (x->position > 0) tli_exact_undo_backward(x);
        for (k = 0; k < x->call_count && !x->full; k++) {
            x->call = k;
            tli_exact_undo_forward(x, &x->calls[k]);
        }
    }
    if (!x->full) *bound = UINT64_MAX;
    return -1;
}

// -- exact: steps --

static void tli_exact_add_drops(const tli_exact *x, tli_set items, tli_steps *steps) {
    int32_t i;
    for (i = 0; i < x->graph->tensor_count; i++)
        if (x->item_of[i] >= 0 && tli_set_has(items, x->item_of[i]))
            tli_add_tensor_step(steps, x->graph, TL_STEP_DROP, i);
    for (i = 0; i < x->graph->node_count; i++)
        if (x->saved_of[i] >= 0 && x->graph->nodes[i].saved_bytes && tli_set_has(items, x->saved_of[i]))
            tli_add_step(steps, tli_step_of(TL_STEP_DROP_SAVED, i, TL_ALL_OUTPUTS));
}

// From the start on; what a step leaves that the next state does not want is dropped after it.
static void tli_exact_add_steps(const tli_exact *x, int32_t state, tli_steps *steps) {
    for (; x->states[state].after >= 0; state = x->states[state].after) {
        const tli_exact_state *s = &x->states[state], *t = &x->states[s->after];
        const tli_exact_call *call = &x->calls[s->call];
        const tl_node *node = &x->graph->nodes[call->node];
        tli_set gone = tli_set_less(s->wanted, t->wanted);
        int32_t i, end = s->kind == TL_STEP_BACKWARD ? 0 : node->first_output + node->output_count;
        tli_add_step(steps, tli_step_of((tl_step_kind)s->kind, call->node, TL_ALL_OUTPUTS));
        if (s->kind == TL_STEP_FORWARD_INPLACE) gone = tli_set_less(gone, call->source);
        if (s->kind == TL_STEP_BACKWARD) gone = tli_set_less(gone, call->saved);
        tli_exact_add_drops(x, gone, steps);
        for (i = node->first_output; i < end; i++)
            if (x->item_of[i] < 0 || !tli_set_has(t->wanted, x->item_of[i]))
                tli_add_tensor_step(steps, x->graph, TL_STEP_DROP, i);
    }
}

// -- exact: from graph to plan --

static void tli_exact_free(tli_exact *x) {
    int32_t k;
    for (k = 0; x->positions && k < x->position_count; k++)
        tli_release(x->env, x->positions[k].settled);
    tli_release(x->env, x->item_of);
    tli_release(x->env, x->call_of);
    tli_release(x->env, x->saved_of);
    tli_release(x->env, x->wanted);
    tli_release(x->env, x->calls);
    tli_release(x->env, x->positions);
    tli_release(x->env, x->loads);
    tli_release(x->env, x->weights);
    tli_release(x->env, x->states);
    tli_release(x->env, x->heap);
    tli_release(x->env, x->buckets);
    tli_zero(x, sizeof *x);
}

// Read a graph that passed tl_check_graph. x->item_count > TLI_EXACT_ITEMS afterwards: too large,
// nothing more was read. Release with tli_exact_free, also after an error.
static tl_result tli_exact_init(tl_env *env, tli_exact *x, const tl_graph *graph,
                                int32_t inference) {
    uint64_t tensors = (uint64_t)graph->tensor_count, nodes = (uint64_t)graph->node_count;
    uint8_t *read_by_grad = (uint8_t *)tli_alloc_array(env, tensors, 1);
    tl_result result;
    tli_zero(x, sizeof *x);
    x->env = env;
    x->graph = graph;
    x->inference = inference;
    x->item_of = (int32_t *)tli_alloc_array(env, tensors, sizeof *x->item_of);
    x->call_of = (int32_t *)tli_alloc_array(env, nodes, sizeof *x->call_of);
    x->saved_of = (int32_t *)tli_alloc_array(env, nodes, sizeof *x->saved_of);
    x->wanted = (uint8_t *)tli_alloc_array(env, tensors, 1);
    if (read_by_grad && x->item_of && x->call_of && x->saved_of && x->wanted) {
        tli_exact_find_wanted(x);
        tli_exact_number(x, read_by_grad);
        result = x->item_count > TLI_EXACT_ITEMS ? TL_OK : tli_exact_alloc(x);
        if (!result && x->item_count <= TLI_EXACT_ITEMS) {
            tli_exact_read_calls(x);
            tli_exact_read_positions(x);
        }
    } else {
        result = TL_ERROR_NO_MEMORY;
    }
    tli_release(env, read_by_grad);
    return result;
}

static tl_result tli_exact_plan(tli_exact *x, uint64_t budget, tli_steps *best, uint64_t *cost,
                                uint64_t *bound) {
    int32_t start = -1;
    x->budget = budget;
    tli_exact_read_before(x);
    *bound = UINT64_MAX;
    if (tli_exact_read_budget(x)) start = tli_exact_search(x, bound);
    x->found = start >= 0;
    if (start >= 0) {
        *cost = *bound = x->states[start].cost;
        tli_exact_add_steps(x, start, best);
        return best->failed ? TL_ERROR_NO_MEMORY : TL_OK;
    }
    if (*bound != UINT64_MAX) return TL_OK;
    *bound = 0;
    return TL_ERROR_INFEASIBLE;
}

// Find a plan of least cost within the budget; graph inputs count, weights do not.
//
//   best   an empty list, gets the steps; nothing where no plan was found
//   cost   of the plan, 0 = none was found
//   bound  no plan costs less: the cost itself where it is proven
//   proven 1 = the plan is optimal, or with TL_ERROR_INFEASIBLE that none fits; 0 = *work reached
//          work_limit, memory was short, or the graph has more than TLI_EXACT_ITEMS items
//   work   elementary steps, added to what stands there
//
// Errors: TL_ERROR_INFEASIBLE, TL_ERROR_NO_MEMORY where there is none to begin with or for the steps.
static tl_result tli_remat_exact(tl_env *env, const tl_graph *graph, uint64_t budget, int32_t inference,
                                 tli_remat_watch *watch, uint64_t work_limit, tli_steps *best,
                                 uint64_t *cost, uint64_t *bound, int32_t *proven, uint64_t *work) {
    tli_exact x;
    tl_result result = tli_exact_init(env, &x, graph, inference);
    *cost = *bound = 0;
    *proven = 0;
    x.watch = watch;
    x.work = *work;
    x.work_limit = work_limit;
    if (!result && x.item_count <= TLI_EXACT_ITEMS) {
        result = tli_exact_plan(&x, budget, best, cost, bound);
        *proven = result == TL_ERROR_INFEASIBLE || (!result && x.found);
    }
    *work = x.work;
    tli_exact_free(&x);
    return result;
}

// What single calls need at least: every call that must run, alone.
static uint64_t tli_exact_least(const tli_exact *x) {
    uint64_t least = x->pinned_bytes, bytes;
    tli_set wanted = tli_set_join(x->positions[x->last].before, x->target);
    int32_t k;
    tli_exact_close(x, &wanted);
    for (k = 0; k < x->call_count; k++) {
        const tli_exact_call *call = &x->calls[k];
        if (tli_set_is_empty(tli_set_meet(wanted, tli_set_join(call->made, call->saved)))) continue;
        bytes = x->pinned_bytes + tli_exact_weigh(x, call->inputs) + call->out_bytes + call->fwork_bytes;
        bytes -= call->source_bytes;
        if (bytes > least) least = bytes;
    }
    for (k = 0; k < x->position_count - 1; k++) {
        bytes = x->positions[k].during_bytes + tli_exact_weigh(x, x->positions[k].reads);
        if (bytes > least) least = bytes;
    }
    return least;
}

// Find the least budget that some plan fits. *proven = 0 (as above): none below *floor fits.
static tl_result tli_remat_exact_floor(tl_env *env, const tl_graph *graph, int32_t inference,
                                       tli_remat_watch *watch,
                                       uint64_t work_limit, uint64_t *floor, int32_t *proven,
                                       uint64_t *work) {
    tli_exact x;
    tl_result result = tli_exact_init(env, &x, graph, inference);
    *floor = 0;
    *proven = 0;
    x.peaks = 1;
    x.watch = watch;
    x.work = *work;
    x.work_limit = work_limit;
    if (!result && x.item_count <= TLI_EXACT_ITEMS) {
        tli_exact_read_before(&x);
        x.paid = tli_exact_least(&x);
        *proven = tli_exact_search(&x, floor) >= 0;
    }
    *work = x.work;
    tli_exact_free(&x);
    return result;
}

// -- bound: what any valid schedule costs under a budget, and the least budget --
//
// The relaxation. A training schedule runs its backwards in reverse listing order, so what must have been
// read before and after a backward is known whatever the schedule does. Choose k backwards v_1 > .. > v_k,
// the instants; they cut every schedule into spans: span 0 before B v_1, span a from B v_a to B v_(a+1),
// span k to the end. A thing is a tensor, or saved(v); making either takes one forward of its node. Of a
// schedule that fits the budget, let
//     x[a][t] = 1   thing t is resident while B v_a runs
//     d[a][n] = 1   a forward of n runs in span a                    (F, I or S: each costs fwd)
//     w[a][t] = 1   thing t is resident at some moment of span a
// Then, for every a >= 1:
//     (1) w[a][t] = 1 where a backward of span a, or B v_(a+1), reads t; at the end where t is kept
//     (2) w[a][t] <= x[a][t] + d[a][maker of t]         what is there was there, or was made
//     (3) d[a][n] <= w[a][s] for each input s of n       a forward reads its inputs
//     (4) x[a+1][t] <= w[a][t]
//     (5) sum of bytes(t) x[a][t] <= budget - graph inputs - gradients alive during B v_a - bwork
//     (6) x[a][t] = 1 where B v_a reads t
// Every node on which a backward depends that comes no later than B v_a ran in some span below a. So the
// schedule pays its base cost (each backward, and each forward that must run, once) plus at least
//     sum over a >= 1 and such nodes n of fwd(n) d[a][n],
// and the least of that over all 0/1 values of x, d, w that keep (1) .. (6) is a lower bound. Nodes that
// nobody wants are not in the base cost, and their forwards are free in (2): the bound only gets lower.
//
// The bound. (4) goes into the objective with multipliers mu[a][t] >= 0, (5) with lambda[a] >= 0, which
// leaves one problem per span: a minimum cut (source side = 1; x[a][t] is "w[a][t] and not d[a][maker]",
// the arc from t to its maker), exact in integers. Whatever the multipliers, the sum is a lower bound
// (weak duality), so how they are found is of no matter to its truth: by intersecting lines where there
// is one instant, else by subgradient steps. What the duality gap leaves is narrowed by branching on
// x[a][t]: the bound is the least over the open branches, and anytime. Bytes are divided by a unit and
// rounded down on both sides of (5); costs are scaled by a power of two, rounded down where they shrink;
// the result is rounded up to a multiple of what all forwards are multiples of.

#define TLI_RB_INSTANTS 10                      // at most, of one relaxation
#define TLI_RB_INFINITE (INT64_C(1) << 62)      // a capacity no flow reaches
#define TLI_RB_COSTS (INT64_C(1) << 50)         // all scaled costs together, and the largest mu
#define TLI_RB_UNITS 26                         // bits of all bytes together, in units
#define TLI_RB_LAMBDA (INT64_C(1) << 32)        // the largest lambda: times all units still below 2^59

enum { TLI_RB_FREE, TLI_RB_KEPT, TLI_RB_ABSENT };  // what is known of x[a][t]

// The network, one for all spans: source -> thing -> maker -> its inputs; node -> sink. Arc e ^ 1 is arc
// e the other way. Thing t enters by arc 2t and goes to its maker by arc 2 (things + t).
typedef struct tli_rb_net {
    int32_t  vertex_count, arc_count;
    int32_t *to;                 // [arc_count]
    int64_t *left;               // [arc_count] residual capacities
    int32_t *first, *arcs;       // arcs of vertex v: arcs[first[v]] .. arcs[first[v + 1] - 1]
    int32_t *level, *cursor, *queue, *path;  // [vertex_count]
} tli_rb_net;

struct tli_rb_label;

typedef struct tli_rb {
    tl_env         *env;
    const tl_graph *graph;
    tli_remat_watch *watch;
    uint64_t       *work, work_limit, table_limit;  // of one table; 0 = none
    int32_t   thing_count, order_count;
    int32_t  *thing_of;          // [tensor_count + node_count] thing of a tensor, of saved(v); -1 = none
    int32_t  *maker;             // [thing_count] node
    uint64_t *exact;             // [thing_count] bytes
    int64_t  *bytes;             // [thing_count] in units, rounded down
    uint8_t  *at_end;            // [thing_count] 1 = resident at the end
    int32_t  *order;             // [order_count] nodes in the order of their backwards
    int32_t  *runs_by;           // [node_count] position of the first backward that needs it; INT32_MAX
    int64_t  *cost;              // [node_count] scaled fwd
    uint64_t *sets, *between;    // [order_count] tli_rb_find_sets
    uint64_t *room;              // [order_count] bytes left at that backward beside its working set
    uint8_t  *reads_mark;        // [thing_count] scratch
    int64_t  *enter;             // [thing_count] scratch: tli_rb_find_enters
    int32_t  *last_use;          // [thing_count] scratch: tli_rb_find_uses
    struct tli_rb_label *labels, *made;  // [2 TLI_RB_LABELS], [TLI_RB_LABELS]
    uint64_t  unit, base_cost, cost_step;
    int32_t   cost_up, cost_down;  // scaled = cost << up >> down
    int64_t   typical;           // bytes of a thing, for the length of steps
    tli_rb_net net;
    void     *memory[24];         // what tli_rb_take gave
    int32_t   memory_count, failed;
} tli_rb;

// One relaxation: instants, multipliers, what is fixed. Arrays are [count][thing_count].
typedef struct tli_rb_state {
    int32_t  count;
    int32_t  at[TLI_RB_INSTANTS];       // positions in order
    int64_t  lambda[TLI_RB_INSTANTS];   // scaled cost per unit
    int64_t  room[TLI_RB_INSTANTS];     // units
    int64_t  value;                     // scaled bound at these multipliers
    int32_t  is_exact;                  // 1 = no schedule of the relaxation is above it: branching is no use
    int64_t *mu;
    uint8_t *fixed;
    uint8_t *share;                     // how often x was 1 lately, of 255
} tli_rb_state;

static void *tli_rb_take(tli_rb *rb, int64_t count, size_t item_bytes) {
    void *memory = tli_alloc_array(rb->env, (uint64_t)count, item_bytes);
    if (memory) rb->memory[rb->memory_count++] = memory;
    else rb->failed = 1;
    return memory;
}

static void tli_rb_free(tli_rb *rb) {
    while (rb->memory_count > 0) tli_release(rb->env, rb->memory[--rb->memory_count]);
}

// -- bound: set up: what runs when, what is resident, what room is left --

// The position of the first backward that each node must have run before; of results beyond these,
// which must run some time, node_count. wanted: scratch [tensor_count].
static void tli_rb_find_runs(tli_rb *rb, int32_t inference, uint8_t *wanted) {
    const tl_graph *graph = rb->graph;
    int32_t id, i;
    tli_mark_results(graph, inference, wanted);
    rb->order_count = 0;
    for (id = graph->node_count; id-- > 0;) {
        rb->runs_by[id] = wanted[graph->nodes[id].first_output] ? graph->node_count : INT32_MAX;
        if (!graph->nodes[id].has_grad || inference) continue;
        rb->runs_by[id] = rb->order_count;
        rb->order[rb->order_count++] = id;
    }
    for (i = 0; i < graph->tensor_count; i++)
        if (wanted[i] && rb->thing_of[i] >= 0) rb->at_end[rb->thing_of[i]] = 1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t *by = &rb->runs_by[graph->outputs[graph->inputs[i].tensor].node];
            if (rb->runs_by[id] < *by) *by = rb->runs_by[id];
        }
    }
}

static uint64_t tli_rb_gcd(uint64_t a, uint64_t b) {
    while (b) { uint64_t rest = a % b; a = b; b = rest; }
    return a;
}

// Base cost, and costs scaled so that all together are below TLI_RB_COSTS.
static void tli_rb_scale_costs(tli_rb *rb) {
    const tl_graph *graph = rb->graph;
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {  // fits 64 bits: tl_check_graph
        const tl_node *node = &graph->nodes[id];
        if (node->is_input || rb->runs_by[id] == INT32_MAX) continue;
        rb->base_cost += node->fwd_cost;
        if (rb->runs_by[id] < rb->order_count && node->has_grad) rb->base_cost += node->bwd_cost;
        sum += node->fwd_cost;
        rb->cost_step = tli_rb_gcd(rb->cost_step, node->fwd_cost);
    }
    if (!sum) sum = 1;
    while (sum >> rb->cost_down > (uint64_t)TLI_RB_COSTS) rb->cost_down++;
    while (!rb->cost_down && sum << (rb->cost_up + 1) <= (uint64_t)TLI_RB_COSTS) rb->cost_up++;
    for (id = 0; id < graph->node_count; id++)
        if (rb->runs_by[id] != INT32_MAX && !graph->nodes[id].is_input)
            rb->cost[id] = (int64_t)(graph->nodes[id].fwd_cost >> rb->cost_down << rb->cost_up);
}

// Set mark[] of what the backward of a node reads to `value`.
static void tli_rb_mark_reads(const tli_rb *rb, int32_t id, uint8_t *mark, uint8_t value) {
    const tl_graph *graph = rb->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, thing;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        thing = graph->inputs[i].needed ? rb->thing_of[graph->inputs[i].tensor] : -1;
        if (thing >= 0) mark[thing] = value;
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        thing = graph->outputs[i].needed ? rb->thing_of[i] : -1;
        if (thing >= 0) mark[thing] = value;
    }
    thing = rb->thing_of[graph->tensor_count + id];
    if (thing >= 0) mark[thing] = value;
}

static uint64_t tli_rb_input_bytes(const tl_graph *graph) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->nodes[graph->outputs[i].node].is_input) sum += graph->outputs[i].bytes;
    return sum;
}

// sets[]: the bytes of every backward's working set: graph inputs, gradients alive, scratch, what it reads.
// between[]: graph inputs and the gradients alive after it.
// has_gradient: scratch [tensor_count], zeroed. Sums fit: tl_check_graph counts each of them.
static void tli_rb_find_sets(tli_rb *rb, uint8_t *has_gradient) {
    const tl_graph *graph = rb->graph;
    uint64_t live = tli_rb_input_bytes(graph);
    int32_t p, i;
    for (p = 0; p < rb->order_count; p++) {
        const tl_node *node = &graph->nodes[rb->order[p]];
        int32_t end = node->first_output + node->output_count;
        for (i = node->first_output; i < end; i++)
            if (!has_gradient[i]) { has_gradient[i] = 1; live += graph->outputs[i].bytes; }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (has_gradient[tensor] || !graph->nodes[graph->outputs[tensor].node].has_grad) continue;
            has_gradient[tensor] = 1;
            live += graph->outputs[tensor].bytes;
        }
        rb->sets[p] = live + node->bwork_bytes;
        tli_rb_mark_reads(rb, rb->order[p], rb->reads_mark, 1);
        for (i = 0; i < rb->thing_count; i++) if (rb->reads_mark[i]) rb->sets[p] += rb->exact[i];
        tli_rb_mark_reads(rb, rb->order[p], rb->reads_mark, 0);
        for (i = node->first_output; i < end; i++) live -= graph->outputs[i].bytes;
        rb->between[p] = live;
    }
}

// The things: tensors that are no graph inputs, and saved bytes that some backward reads.
static void tli_rb_find_things(tli_rb *rb, int32_t inference) {
    const tl_graph *graph = rb->graph;
    int32_t i, id;
    for (i = 0; i < graph->tensor_count; i++) {
        int is_input = graph->nodes[graph->outputs[i].node].is_input;
        rb->thing_of[i] = is_input ? -1 : rb->thing_count;
        if (is_input) continue;
        rb->exact[rb->thing_count] = graph->outputs[i].bytes;
        rb->maker[rb->thing_count++] = graph->outputs[i].node;
    }
    for (id = 0; id < graph->node_count; id++) {
        int is_read = !inference && graph->nodes[id].has_grad && graph->nodes[id].saved_bytes;
        rb->thing_of[graph->tensor_count + id] = is_read ? rb->thing_count : -1;
        if (!is_read) continue;
        rb->exact[rb->thing_count] = graph->nodes[id].saved_bytes;
        rb->maker[rb->thing_count++] = id;
    }
}

// Bytes in units, so that all of them together are below 2^26: first by what all are multiples of.
static void tli_rb_scale_bytes(tli_rb *rb) {
    uint64_t sum = 0, divisor = 0;
    int32_t t, count = 0;
    for (t = 0; t < rb->thing_count; t++) {
        sum += rb->exact[t];
        divisor = tli_rb_gcd(divisor, rb->exact[t]);
        count += rb->exact[t] > 0;
    }
    rb->unit = divisor ? divisor : 1;
    if (sum / rb->unit >> TLI_RB_UNITS) rb->unit *= (sum / rb->unit >> TLI_RB_UNITS) + 1;
    for (t = 0; t < rb->thing_count; t++) rb->bytes[t] = (int64_t)(rb->exact[t] / rb->unit);
    rb->typical = count ? (int64_t)(sum / rb->unit / (uint64_t)count) : 1;
    if (!rb->typical) rb->typical = 1;
}

// -- bound: the network --

static void tli_rb_add_arc(tli_rb_net *net, int32_t from, int32_t to) {
    net->to[net->arc_count++] = to;
    net->to[net->arc_count++] = from;
}

// Arcs in the order of tli_rb_net, then node -> sink at 2 (2 things + node), then the inputs.
static void tli_rb_make_net(tli_rb *rb) {
    const tl_graph *graph = rb->graph;
    tli_rb_net *net = &rb->net;
    int32_t things = rb->thing_count, nodes = graph->node_count, source = things + nodes, i, v;
    net->vertex_count = source + 2;
    for (i = 0; i < things; i++) tli_rb_add_arc(net, source, i);
    for (i = 0; i < things; i++) tli_rb_add_arc(net, i, things + rb->maker[i]);
    for (i = 0; i < nodes; i++) tli_rb_add_arc(net, things + i, source + 1);
    for (i = 0; i < nodes; i++) {
        const tl_node *node = &graph->nodes[i];
        for (v = node->first_input; v < node->first_input + node->input_count; v++) {
            int32_t thing = rb->thing_of[graph->inputs[v].tensor];
            if (thing >= 0) tli_rb_add_arc(net, things + i, thing);
        }
    }
    for (i = 0; i < net->arc_count; i++) net->first[net->to[i ^ 1] + 1]++;
    for (v = 0; v < net->vertex_count; v++) net->first[v + 1] += net->first[v];
    for (v = 0; v < net->vertex_count; v++) net->cursor[v] = net->first[v];
    for (i = 0; i < net->arc_count; i++) net->arcs[net->cursor[net->to[i ^ 1]]++] = i;
}

// Distances to the sink along arcs that have capacity left; 0 = none. 1 where the source has one.
static int tli_rb_find_levels(tli_rb_net *net, uint64_t *work) {
    int32_t source = net->vertex_count - 2, sink = source + 1, head = 0, tail = 0, k;
    tli_zero(net->level, (size_t)net->vertex_count * sizeof *net->level);
    net->level[sink] = 1;
    net->queue[tail++] = sink;
    while (head < tail) {
        int32_t v = net->queue[head++];
        *work += (uint64_t)(net->first[v + 1] - net->first[v]);
        for (k = net->first[v]; k < net->first[v + 1]; k++) {
            int32_t arc = net->arcs[k], from = net->to[arc];
            if (net->level[from] || !net->left[arc ^ 1]) continue;
            net->level[from] = net->level[v] + 1;
            net->queue[tail++] = from;
        }
    }
    return net->level[source] > 0;
}

// Send flow along path[0 .. length - 1]; returns the first place of an arc that is full now.
static int32_t tli_rb_send(tli_rb_net *net, int32_t length, int64_t *flow) {
    int64_t most = TLI_RB_INFINITE;
    int32_t i, full = 0;
    for (i = 0; i < length; i++) if (net->left[net->path[i]] < most) most = net->left[net->path[i]];
    for (i = length; i-- > 0;) {
        net->left[net->path[i]] -= most;
        net->left[net->path[i] ^ 1] += most;
        if (!net->left[net->path[i]]) full = i;
    }
    *flow += most;
    return full;
}

// Dinic, 1970: the largest flow; left[] holds the residual capacities. Every path ends in an arc to the
// sink whose capacity is a cost, so all of it is at most 2^50 and infinite arcs stay above that.
static int64_t tli_rb_flow(tli_rb_net *net, uint64_t *work) {
    int32_t source = net->vertex_count - 2, sink = source + 1, v;
    int64_t flow = 0;
    while (tli_rb_find_levels(net, work)) {
        int32_t at = source, length = 0;
        for (v = 0; v < net->vertex_count; v++) net->cursor[v] = net->first[v];
        for (;;) {
            int32_t arc = -1;
            if (at == sink) {
                length = tli_rb_send(net, length, &flow);
                *work += (uint64_t)length;
                at = net->to[net->path[length] ^ 1];
            }
            for (; net->cursor[at] < net->first[at + 1]; net->cursor[at]++) {
                arc = net->arcs[net->cursor[at]];
                if (net->left[arc] && net->level[net->to[arc]] == net->level[at] - 1 &&
                    net->level[net->to[arc]]) break;
            }
            *work += 1;
            if (net->cursor[at] < net->first[at + 1]) {
                net->path[length++] = arc;
                at = net->to[arc];
            } else {
                if (!length) break;
                at = net->to[net->path[--length] ^ 1];
                net->cursor[at]++;
            }
        }
    }
    return flow;
}

// The source's side of the cut that a largest flow leaves: level[v] = 1.
static void tli_rb_find_side(tli_rb_net *net, uint64_t *work) {
    int32_t source = net->vertex_count - 2, head = 0, tail = 0, k;
    tli_zero(net->level, (size_t)net->vertex_count * sizeof *net->level);
    net->level[source] = 1;
    net->queue[tail++] = source;
    while (head < tail) {
        int32_t v = net->queue[head++];
        *work += (uint64_t)(net->first[v + 1] - net->first[v]);
        for (k = net->first[v]; k < net->first[v + 1]; k++) {
            int32_t arc = net->arcs[k], to = net->to[arc];
            if (net->level[to] || !net->left[arc]) continue;
            net->level[to] = 1;
            net->queue[tail++] = to;
        }
    }
}

// -- bound: one span --

// What the span from instant a on has to have: mark[] = 1.
static void tli_rb_mark_span(const tli_rb *rb, const tli_rb_state *s, int32_t a, uint8_t *mark) {
    int32_t end = a + 1 < s->count ? s->at[a + 1] : rb->order_count - 1, p;
    if (a + 1 < s->count) tli_zero(mark, (size_t)rb->thing_count);
    else tli_copy(mark, rb->at_end, (size_t)rb->thing_count);
    for (p = s->at[a] + 1; p <= end; p++) tli_rb_mark_reads(rb, rb->order[p], mark, 1);
}

static void tli_rb_set(tli_rb_net *net, int32_t arc, int64_t capacity) {
    net->left[arc] = capacity;
    net->left[arc ^ 1] = 0;
}

// What thing t costs to hold at instant a.
static int64_t tli_rb_price(const tli_rb *rb, const tli_rb_state *s, int32_t a, int32_t t) {
    int32_t at = a * rb->thing_count + t;
    if (s->fixed[at] == TLI_RB_KEPT) return 0;
    if (s->fixed[at] == TLI_RB_ABSENT) return TLI_RB_INFINITE;
    return s->lambda[a] * rb->bytes[t] + s->mu[at];
}

// enter[]: what it costs that thing t is not there in span a (infinite: it must be), less `offers`, a
// constant: what instant a + 1 pays for all that is there. 0 = that constant is too large to be of use.
static int tli_rb_find_enters(tli_rb *rb, const tli_rb_state *s, int32_t a, int64_t *offers) {
    int32_t things = rb->thing_count, t;
    tli_rb_mark_span(rb, s, a, rb->reads_mark);
    *offers = 0;
    for (t = 0; t < things; t++) {
        int32_t next = (a + 1) * things + t;
        rb->enter[t] = rb->reads_mark[t] ? TLI_RB_INFINITE : 0;
        if (a + 1 == s->count) continue;
        if (s->fixed[next] == TLI_RB_KEPT) rb->enter[t] = TLI_RB_INFINITE;
        if (s->fixed[next] != TLI_RB_FREE) continue;
        if (*offers <= INT64_C(1) << 58) *offers += s->mu[next];  // for being there, whatever the reason
        if (!rb->enter[t]) rb->enter[t] = s->mu[next];
    }
    tli_zero(rb->reads_mark, (size_t)things);
    return *offers <= INT64_C(1) << 58;
}

// The least cost of span a under the multipliers, less its constant part; -2^59 where that is too large
// to be of use. Afterwards level[] of the net is the source's side.
static int64_t tli_rb_solve_span(tli_rb *rb, const tli_rb_state *s, int32_t a) {
    tli_rb_net *net = &rb->net;
    int32_t things = rb->thing_count, t, i;
    int64_t offers, flow;
    int is_useful = tli_rb_find_enters(rb, s, a, &offers);
    for (t = 0; t < things; t++) {
        tli_rb_set(net, 2 * t, rb->enter[t]);
        tli_rb_set(net, 2 * (things + t), tli_rb_price(rb, s, a, t));
    }
    for (i = 0; i < rb->graph->node_count; i++)
        tli_rb_set(net, 2 * (2 * things + i), rb->runs_by[i] <= s->at[a] ? rb->cost[i] : 0);
    for (i = 2 * (2 * things + rb->graph->node_count); i < net->arc_count; i += 2)
        tli_rb_set(net, i, TLI_RB_INFINITE);
    flow = tli_rb_flow(net, rb->work);
    tli_rb_find_side(net, rb->work);
    return is_useful ? flow - offers - s->lambda[a] * s->room[a] : -(INT64_C(1) << 59);
}

// Bytes that the solution at hand holds at instant a, less the room: the slope along lambda[a].
static int64_t tli_rb_slope(const tli_rb *rb, const tli_rb_state *s, int32_t a) {
    const int32_t *level = rb->net.level;
    int64_t held = 0;
    int32_t t;
    for (t = 0; t < rb->thing_count; t++)
        if (s->fixed[a * rb->thing_count + t] == TLI_RB_FREE && level[t] &&
            !level[rb->thing_count + rb->maker[t]]) held += rb->bytes[t];
    return held - s->room[a];
}

// x of the solution at hand: add `weight` to share[] where thing t is held at instant a.
static void tli_rb_add_share(const tli_rb *rb, tli_rb_state *s, int32_t a, uint8_t weight) {
    const int32_t *level = rb->net.level;
    int32_t t, things = rb->thing_count;
    for (t = 0; t < things; t++)
        if (level[t] && !level[things + rb->maker[t]])
            s->share[a * things + t] = (uint8_t)(s->share[a * things + t] + weight);
}

// A point of the concave function value(lambda[a]): the line that touches it there.
typedef struct tli_rb_line { int64_t lambda, value, slope; } tli_rb_line;

static tli_rb_line tli_rb_touch(tli_rb *rb, tli_rb_state *s, int32_t a, int64_t lambda) {
    tli_rb_line line;
    s->lambda[a] = line.lambda = lambda;
    line.value = tli_rb_solve_span(rb, s, a);
    line.slope = tli_rb_slope(rb, s, a);
    return line;
}

// The lambda[a] that is best for span a, the other multipliers as they are, by intersecting the lines on
// both sides; returns the span's value there. ends[]: the lambdas of the two lines.
static int64_t tli_rb_search_line(tli_rb *rb, tli_rb_state *s, int32_t a, int64_t ends[2]) {
    tli_rb_line low, high, at = tli_rb_touch(rb, s, a, s->lambda[a]);
    int64_t start = at.lambda > 0 ? at.lambda : 1;
    int32_t tries;
    low = high = at;
    if (at.slope > 0) {
        while (high.slope > 0 && high.lambda < TLI_RB_LAMBDA) {
            low = high;
            start = start > TLI_RB_LAMBDA / 16 ? TLI_RB_LAMBDA : start * 16;
            high = tli_rb_touch(rb, s, a, start);
        }
    } else if (at.slope < 0 && at.lambda > 0) {
        low = tli_rb_touch(rb, s, a, 0);
    }
    for (tries = 0; tries < 24 && low.slope > 0 && high.slope < 0; tries++) {
        int64_t crossing = (high.value - high.slope * high.lambda) - (low.value - low.slope * low.lambda);
        int64_t lambda = crossing / (low.slope - high.slope);
        if (lambda <= low.lambda || lambda >= high.lambda) break;
        at = tli_rb_touch(rb, s, a, lambda);
        if (!at.slope) { low = high = at; break; }
        if (at.slope > 0) low = at; else high = at;
    }
    at = low.value > high.value ? low : high;
    s->lambda[a] = at.lambda;
    ends[0] = low.lambda;
    ends[1] = high.lambda;
    return at.value;
}

// -- bound: one span with the room as it is, not its price: a table --
//
// Nodes in listing order; a label is what is there of the things that later nodes still take (mask), the
// bytes held and the cost so far. A node is made (its inputs must be there; all its things are) or not
// (each of its things is held or is not there). Of labels with one mask, those that are worse in both are
// dropped. Where there are too many, bytes are rounded down more coarsely: the least cost only gets lower.

#define TLI_RB_LABELS 16384
#define TLI_RB_SLOTS 24

typedef struct tli_rb_label { uint64_t mask; int64_t bytes, cost; } tli_rb_label;

static int tli_rb_is_before(const tli_rb_label *a, const tli_rb_label *b) {
    if (a->mask != b->mask) return a->mask < b->mask;
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->cost < b->cost;
}

static void tli_rb_sift(tli_rb_label *labels, int32_t at, int32_t count) {
    tli_rb_label moved = labels[at];
    int32_t child;
    for (; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && tli_rb_is_before(&labels[child], &labels[child + 1])) child++;
        if (!tli_rb_is_before(&moved, &labels[child])) break;
        labels[at] = labels[child];
    }
    labels[at] = moved;
}

// Sort, and drop what is worse than another of the same mask in both; returns how many are left.
static int32_t tli_rb_prune(tli_rb_label *labels, int32_t count) {
    int32_t i, kept = 0;
    for (i = count / 2; i-- > 0;) tli_rb_sift(labels, i, count);
    for (i = count; i-- > 1;) {
        tli_rb_label last = labels[i];
        labels[i] = labels[0];
        labels[0] = last;
        tli_rb_sift(labels, 0, i);
    }
    for (i = 0; i < count; i++)
        if (!kept || labels[kept - 1].mask != labels[i].mask || labels[i].cost < labels[kept - 1].cost)
            labels[kept++] = labels[i];
    return kept;
}

static int32_t tli_rb_thin(tli_rb_label *labels, int32_t count, int32_t most, int64_t *grid) {
    int32_t i;
    count = tli_rb_prune(labels, count);
    while (count > most && *grid < INT64_C(1) << TLI_RB_UNITS) {
        *grid *= 2;
        for (i = 0; i < count; i++) labels[i].bytes = labels[i].bytes / *grid * *grid;
        count = tli_rb_prune(labels, count);
    }
    return count;
}

typedef struct tli_rb_table {
    tli_rb             *rb;
    const tli_rb_state *state;
    int32_t  a;          // the span
    int32_t  count;      // labels
    int64_t  grid;       // bytes are rounded down to multiples
    uint64_t start;      // work done before
    uint64_t used;       // slots in use
    int32_t  slot_things[TLI_RB_SLOTS];
} tli_rb_table;

// The slot of a thing; -1 = none, as no later node takes it.
static int32_t tli_rb_find_slot(const tli_rb_table *table, int32_t thing) {
    int32_t slot;
    for (slot = 0; slot < TLI_RB_SLOTS; slot++)
        if (table->used >> slot & 1 && table->slot_things[slot] == thing) return slot;
    return -1;
}

// The other half of the list takes thing t of a node that is not made: held, or not there. 0 = full.
static int tli_rb_spread(tli_rb_table *table, int32_t t, uint64_t bit) {
    tli_rb *rb = table->rb;
    const tli_rb_state *s = table->state;
    int32_t cell = table->a * rb->thing_count + t, i, count = table->count;
    int is_kept = s->fixed[cell] == TLI_RB_KEPT;
    for (i = 0; i < count; i++) {
        tli_rb_label held = rb->labels[i], *gone = &rb->labels[i];
        held.mask |= bit;
        held.bytes += is_kept ? 0 : rb->bytes[t];
        held.cost += is_kept ? 0 : s->mu[cell];
        gone->cost = rb->enter[t] >= TLI_RB_INFINITE || is_kept ? TLI_RB_INFINITE : gone->cost + rb->enter[t];
        if (s->fixed[cell] == TLI_RB_ABSENT || held.bytes > s->room[table->a]) continue;
        if (gone->cost >= TLI_RB_INFINITE) *gone = held;
        else rb->labels[table->count++] = held;
    }
    for (i = count = 0; i < table->count; i++)
        if (rb->labels[i].cost < TLI_RB_INFINITE) rb->labels[count++] = rb->labels[i];
    table->count = count > TLI_RB_LABELS ? tli_rb_thin(rb->labels, count, TLI_RB_LABELS, &table->grid) : count;
    return table->count <= TLI_RB_LABELS;
}
// last_use[]: of things that may be wanted, the last node that may take them (their maker: none does);
// -1 = nothing in this span wants them.
static void tli_rb_find_uses(tli_rb *rb) {
    const tl_graph *graph = rb->graph;
    int32_t t, id, i;
    for (t = 0; t < rb->thing_count; t++) rb->last_use[t] = rb->enter[t] > 0 ? rb->maker[t] : -1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int32_t saved = rb->thing_of[graph->tensor_count + id];
        int is_wanted = saved >= 0 && rb->last_use[saved] >= 0;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            is_wanted |= rb->thing_of[i] >= 0 && rb->last_use[rb->thing_of[i]] >= 0;
        for (i = node->first_input; i < node->first_input + node->input_count && is_wanted; i++) {
            int32_t thing = rb->thing_of[graph->inputs[i].tensor];
            if (thing >= 0 && rb->last_use[thing] < id) rb->last_use[thing] = id;
        }
    }
}

// Give thing t its slot, where a later node takes it; 0 = there is none left.
static int tli_rb_add_slot(tli_rb_table *table, int32_t t, uint64_t *bit) {
    int32_t slot = 0;
    *bit = 0;
    if (t < 0 || table->rb->last_use[t] <= table->rb->maker[t]) return 1;
    while (slot < TLI_RB_SLOTS && table->used >> slot & 1) slot++;
    if (slot == TLI_RB_SLOTS) return 0;
    table->used |= *bit = UINT64_C(1) << slot;
    table->slot_things[slot] = t;
    return 1;
}

// One node: labels in which it is made, then those in which it is not. 0 = too many slots or labels.
static int tli_rb_add_node(tli_rb_table *table, int32_t id) {
    tli_rb *rb = table->rb;
    const tl_node *node = &rb->graph->nodes[id];
    uint64_t takes = 0, makes = 0, ends = 0, bit;
    int64_t cost = rb->runs_by[id] <= table->state->at[table->a] ? rb->cost[id] : 0;
    int32_t i, k, made = 0, wanted = 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t thing = rb->thing_of[rb->graph->inputs[i].tensor];
        int32_t slot = thing >= 0 ? tli_rb_find_slot(table, thing) : -1;
        if (slot < 0) continue;
        takes |= UINT64_C(1) << slot;
        if (rb->last_use[thing] == id) ends |= UINT64_C(1) << slot;
    }
    for (k = 0; k <= node->output_count; k++) {
        int32_t t = k < node->output_count ? node->first_output + k : rb->graph->tensor_count + id;
        t = rb->thing_of[t];
        if (t < 0 || rb->last_use[t] < 0) continue;
        if (!tli_rb_add_slot(table, t, &bit)) return 0;
        makes |= bit;
        for (i = 0; !wanted && i < table->count; i++) {
            if (takes & ~rb->labels[i].mask) continue;
            rb->made[made] = rb->labels[i];
            rb->made[made++].cost += cost;
        }
        wanted = 1;
        if (!tli_rb_spread(table, t, bit)) return 0;
    }
    for (i = 0; i < made; i++) {
        rb->made[i].mask |= makes;
        rb->labels[table->count++] = rb->made[i];
    }
    for (i = 0; i < table->count; i++) rb->labels[i].mask &= ~ends;
    table->used &= ~ends;
    *rb->work += 40 * (uint64_t)table->count + 1;
    if (wanted || ends) table->count = tli_rb_thin(rb->labels, table->count, TLI_RB_LABELS, &table->grid);
    if (*rb->work - table->start > rb->table_limit) return 0;
    return table->count > 0 && table->count <= TLI_RB_LABELS;
}

// As tli_rb_solve_span, with the room in full; -2^59 where the table grows too wide. *is_exact becomes 0
// where this is not the least cost of the span itself.
static int64_t tli_rb_tabulate_span(tli_rb *rb, const tli_rb_state *s, int32_t a, int32_t *is_exact) {
    tli_rb_table table;
    int64_t offers, best = TLI_RB_INFINITE;
    int32_t id, i, is_useful = tli_rb_find_enters(rb, s, a, &offers);
    tli_zero(&table, sizeof table);
    table.rb = rb; table.state = s; table.a = a;
    table.grid = 1;
    table.count = 1;
    table.start = *rb->work;
    tli_zero(rb->labels, sizeof *rb->labels);
    tli_rb_find_uses(rb);
    for (id = 0; id < rb->graph->node_count && is_useful; id++) is_useful = tli_rb_add_node(&table, id);
    if (!is_useful || table.grid > 1) *is_exact = 0;
    if (!is_useful) return -(INT64_C(1) << 59);
    for (i = 0; i < table.count; i++) if (rb->labels[i].cost < best) best = rb->labels[i].cost;
    return best - offers;
}

// Raise the value of a state to what its spans come to, each by the better of its two bounds.
static void tli_rb_tabulate(tli_rb *rb, tli_rb_state *s) {
    int64_t value = 0;
    int32_t a, is_exact = s->count == 1;
    for (a = 0; a < s->count; a++) {
        int64_t cut = tli_rb_solve_span(rb, s, a);
        int64_t full = rb->table_limit ? tli_rb_tabulate_span(rb, s, a, &is_exact) : cut;
        value += cut > full ? cut : full;
    }
    if (value > s->value) s->value = value;
    if (rb->table_limit) s->is_exact |= is_exact;
}

// -- bound: states --

static void tli_rb_free_state(tli_rb *rb, tli_rb_state *s) {
    if (s) { tli_release(rb->env, s->mu); tli_release(rb->env, s->fixed); tli_release(rb->env, s); }
}

// An empty state with room for so many instants; NULL: no memory (rb->failed).
static tli_rb_state *tli_rb_add_state(tli_rb *rb, int32_t instants) {
    tli_rb_state *s = (tli_rb_state *)tli_alloc_array(rb->env, 1, sizeof *s);
    uint64_t cells = (uint64_t)instants * (uint64_t)rb->thing_count;
    if (s) {
        tli_zero(s, sizeof *s);
        s->mu = (int64_t *)tli_alloc_array(rb->env, cells, sizeof *s->mu);
        s->fixed = (uint8_t *)tli_alloc_array(rb->env, 2 * cells, 1);
        s->share = s->fixed ? s->fixed + cells : NULL;
    }
    if (s && s->mu && s->fixed) return s;
    tli_rb_free_state(rb, s);
    rb->failed = 1;
    return NULL;
}

static void tli_rb_copy_state(const tli_rb *rb, tli_rb_state *to, const tli_rb_state *from) {
    size_t cells = (size_t)from->count * (size_t)rb->thing_count;
    int64_t *mu = to->mu;
    uint8_t *fixed = to->fixed, *share = to->share;
    *to = *from;
    to->mu = mu; to->fixed = fixed; to->share = share;
    tli_copy(mu, from->mu, cells * sizeof *mu);
    tli_copy(fixed, from->fixed, cells);
    tli_copy(share, from->share, cells);
}

// What is larger than the room alone cannot be held; 0 where what is held already is too much.
static int tli_rb_fix_large(const tli_rb *rb, tli_rb_state *s, int32_t a) {
    uint8_t *fixed = s->fixed + (size_t)a * (size_t)rb->thing_count;
    int32_t t;
    if (s->room[a] < 0) return 0;
    for (t = 0; t < rb->thing_count; t++)
        if (fixed[t] == TLI_RB_FREE && rb->bytes[t] > s->room[a]) fixed[t] = TLI_RB_ABSENT;
    return 1;
}

// Put an instant among those of a state, at the value the state has or nearly that: a thing is
// worth here a part of what it is worth at the instant before, or of its forward.
static void tli_rb_add_instant(tli_rb *rb, tli_rb_state *s, int32_t position) {
    int32_t a = s->count++, things = rb->thing_count, t;
    uint64_t room = rb->room[position] / rb->unit;
    int64_t most = INT64_C(1) << TLI_RB_UNITS;
    for (; a > 0 && s->at[a - 1] > position; a--) {
        size_t to = (size_t)a * (size_t)things, from = to - (size_t)things, count = (size_t)things;
        s->at[a] = s->at[a - 1]; s->lambda[a] = s->lambda[a - 1]; s->room[a] = s->room[a - 1];
        tli_copy(s->mu + to, s->mu + from, count * sizeof *s->mu);
        tli_copy(s->fixed + to, s->fixed + from, count);
    }
    s->at[a] = position;
    s->lambda[a] = 0;
    s->room[a] = room < (uint64_t)most ? (int64_t)room : most;
    tli_zero(s->fixed + (size_t)a * (size_t)things, (size_t)things);
    tli_rb_mark_reads(rb, rb->order[position], s->fixed + (size_t)a * (size_t)things, TLI_RB_KEPT);
    for (t = 0; t < things; t++) {
        int64_t price = a ? tli_rb_price(rb, s, a - 1, t) : 0, forward = rb->cost[rb->maker[t]];
        s->mu[a * things + t] = (price < forward ? price : forward) / 4;
    }
    (void)tli_rb_fix_large(rb, s, a);
}

// -- bound: several instants: subgradient steps --

typedef struct tli_rb_climb {
    tli_rb_state *now, *best;
    int32_t *slope;    // [instants][things] direction along mu, 1024 = 1
    int8_t  *held;     // [instants][things] x, and w of the span before
    int64_t  along[TLI_RB_INSTANTS];    // slope along lambda, bytes less room
    int64_t  turn[TLI_RB_INSTANTS];     // direction along lambda x typical
} tli_rb_climb;

// The value of a state, all spans; the slopes along its multipliers go to climb.
static int64_t tli_rb_measure(tli_rb *rb, tli_rb_state *s, tli_rb_climb *climb) {
    int32_t a, t, things = rb->thing_count;
    const int32_t *level = rb->net.level;
    int64_t value = 0;
    tli_zero(climb->held, (size_t)s->count * (size_t)things);
    for (a = 0; a < s->count; a++) {
        value += tli_rb_solve_span(rb, s, a);
        climb->along[a] = tli_rb_slope(rb, s, a);
        for (t = 0; t < things; t++) {
            uint8_t *share = &s->share[a * things + t];
            int is_held = level[t] && !level[things + rb->maker[t]];
            *share = (uint8_t)((*share * 7 + (is_held ? 255 : 0)) / 8);  // a running mean
            if (!level[t]) continue;
            if (is_held) climb->held[a * things + t]++;
            if (a + 1 < s->count) climb->held[(a + 1) * things + t]--;
        }
    }
    return value;
}

// Turn the direction of the climb towards the slopes: three quarters of the old one and the new one.
static void tli_rb_turn(tli_rb *rb, tli_rb_state *s, tli_rb_climb *climb, uint64_t *norm) {
    int32_t a, t, things = rb->thing_count;
    *norm = 1;
    for (a = 0; a < s->count; a++) {
        int64_t along = climb->along[a] * 256 / rb->typical;
        if (along > 1 << 15) along = 1 << 15;
        if (along < -(1 << 15)) along = -(1 << 15);
        climb->turn[a] = climb->turn[a] * 3 / 4 + along;
        if (s->lambda[a] > 0 || climb->turn[a] > 0) *norm += (uint64_t)(climb->turn[a] * climb->turn[a]);
        for (t = 0; a && t < things; t++) {
            int32_t at = a * things + t;
            if (s->fixed[at] != TLI_RB_FREE) continue;
            climb->slope[at] = climb->slope[at] * 3 / 4 + climb->held[at] * 256;
            if (s->mu[at] > 0 || climb->slope[at] > 0)
                *norm += (uint64_t)((int64_t)climb->slope[at] * climb->slope[at]);
        }
    }
}

static void tli_rb_step(tli_rb *rb, tli_rb_state *s, const tli_rb_climb *climb, int64_t gain, uint64_t norm) {
    int32_t a, t, things = rb->thing_count;
    int64_t length = (int64_t)(((uint64_t)gain << 8) / (norm >> 10 ? norm >> 10 : 1)), most = INT64_C(1) << 44;
    if (length > most) length = most;
    for (a = 0; a < s->count; a++) {
        int64_t lambda = s->lambda[a] + length * climb->turn[a] / 1024 / rb->typical;
        s->lambda[a] = lambda < 0 ? 0 : lambda > TLI_RB_LAMBDA ? TLI_RB_LAMBDA : lambda;
        for (t = 0; a && t < things; t++) {
            int32_t at = a * things + t;
            int64_t mu = s->mu[at];
            if (s->fixed[at] != TLI_RB_FREE || (!mu && climb->slope[at] <= 0)) continue;
            mu += length * climb->slope[at] / 1024;
            s->mu[at] = mu < 0 ? 0 : mu > TLI_RB_COSTS ? TLI_RB_COSTS : mu;
        }
    }
}

static int tli_rb_is_over(const tli_rb *rb) {
    return *rb->work >= rb->work_limit || tli_remat_stops(rb->watch, *rb->work);
}

// Raise the value of climb->best by at most `rounds` steps towards a target that comes nearer where it
// is not reached. best->value is what it reaches.
static void tli_rb_climb_up(tli_rb *rb, tli_rb_climb *climb, int32_t rounds) {
    tli_rb_state *best = climb->best, *now = climb->now;
    size_t cells = (size_t)best->count * (size_t)rb->thing_count;
    int64_t ahead, gap, ends[2];
    int32_t round, failures = 0, a;
    best->value = 0;
    for (a = 0; a < best->count; a++) best->value += tli_rb_search_line(rb, best, a, ends);
    tli_rb_copy_state(rb, now, best);
    tli_zero(climb->slope, cells * sizeof *climb->slope);
    tli_zero(climb->turn, sizeof climb->turn);
    ahead = (best->value > 0 ? best->value : TLI_RB_COSTS / 64) / 16 + 1;
    for (round = 0; round < rounds && !tli_rb_is_over(rb); round++) {
        uint64_t norm;
        now->value = tli_rb_measure(rb, now, climb);
        if (now->value > best->value) {
            if (now->value - best->value > ahead / 8) { failures = 0; ahead += ahead / 2; }
            tli_rb_copy_state(rb, best, now);
        } else if (++failures >= 5) {
            ahead = ahead / 2 + 1;
            failures = 0;
            tli_rb_copy_state(rb, now, best);
            tli_zero(climb->slope, cells * sizeof *climb->slope);
            tli_zero(climb->turn, sizeof climb->turn);
            continue;
        }
        tli_rb_turn(rb, now, climb, &norm);
        gap = best->value - now->value + ahead;
        tli_rb_step(rb, now, climb, gap < TLI_RB_COSTS ? gap : TLI_RB_COSTS, norm);
    }
}

// -- bound: which instants --

typedef struct tli_rb_search {
    tli_rb       *rb;
    tli_rb_climb  climb;
    tli_rb_state *best, *trial;
    int64_t      *single;    // [order_count] value of each instant alone; -1 = not known
    int32_t      *listed;    // [order_count] positions to try
    int32_t       listed_count;
} tli_rb_search;

// Whether all that is read after B at this position fits beside what it reads itself: no constraint then.
static int tli_rb_is_slack(tli_rb *rb, int32_t position) {
    uint64_t need = 0;
    int32_t t, p;
    tli_copy(rb->reads_mark, rb->at_end, (size_t)rb->thing_count);
    for (p = position + 1; p < rb->order_count; p++) tli_rb_mark_reads(rb, rb->order[p], rb->reads_mark, 1);
    tli_rb_mark_reads(rb, rb->order[position], rb->reads_mark, 0);
    for (t = 0; t < rb->thing_count; t++) if (rb->reads_mark[t]) need += rb->exact[t];
    tli_zero(rb->reads_mark, (size_t)rb->thing_count);
    *rb->work += (uint64_t)rb->thing_count;
    return need <= rb->room[position];
}

static void tli_rb_try_single(tli_rb_search *search, int32_t position) {
    tli_rb *rb = search->rb;
    tli_rb_state *s = search->trial;
    int64_t ends[2];
    if (search->single[position] >= 0 || tli_rb_is_over(rb)) return;
    search->single[position] = 0;
    if (tli_rb_is_slack(rb, position)) return;
    s->count = 0;
    tli_rb_add_instant(rb, s, position);
    s->value = tli_rb_search_line(rb, s, 0, ends);
    search->single[position] = s->value > 1 ? s->value : 1;  // not slack: of use beside others
    if (!search->best->count || s->value > search->best->value) tli_rb_copy_state(rb, search->best, s);
}

// Every instant alone where there are few of them; else every so many, and all near the best.
static void tli_rb_try_singles(tli_rb_search *search) {
    tli_rb *rb = search->rb;
    int32_t step = rb->order_count / 256 + 1, p, k;
    for (p = 0; p < rb->order_count; p++) search->single[p] = -1;
    tli_rb_try_single(search, rb->order_count - 1);
    for (p = step / 2; p < rb->order_count; p += step) tli_rb_try_single(search, p);
    for (k = step / 2; step > 1 && k > 0; k--) {
        int32_t at = search->best->count ? search->best->at[0] : 0;
        if (at - k >= 0) tli_rb_try_single(search, at - k);
        if (at + k < rb->order_count) tli_rb_try_single(search, at + k);
    }
}

// Whether no neighbour that is known has a higher value.
static int tli_rb_is_top(const tli_rb_search *search, int32_t position) {
    int64_t value = search->single[position];
    int32_t p;
    for (p = position - 1; p >= 0 && search->single[p] < 0; p--) { }
    if (p >= 0 && search->single[p] >= value) return 0;
    for (p = position + 1; p < search->rb->order_count && search->single[p] < 0; p++) { }
    return p == search->rb->order_count || search->single[p] <= value;
}

// List the instants that are worth a try beside others: all where there are few, else the tops and
// then some that stand evenly.
static void tli_rb_list_instants(tli_rb_search *search) {
    enum { LISTED = 64 };
    int32_t p, count = 0, tops = 0, seen = 0, step;
    for (p = 0; p < search->rb->order_count; p++) {
        count += search->single[p] > 0;
        tops += search->single[p] > 0 && tli_rb_is_top(search, p);
    }
    if (tops > LISTED / 2) tops = LISTED / 2;
    step = count <= LISTED ? 1 : (count - 1) / (LISTED - tops) + 1;
    for (p = 0; p < search->rb->order_count; p++) {
        int is_top;
        if (search->single[p] <= 0) continue;
        is_top = tli_rb_is_top(search, p) ||
                 (p >= search->best->at[0] - 3 && p <= search->best->at[0] + 3);
        if (is_top || seen % step == step / 2) search->listed[search->listed_count++] = p;
        seen += !is_top;
    }
}

static int tli_rb_has_instant(const tli_rb_state *s, int32_t position) {
    int32_t a;
    for (a = 0; a < s->count; a++) if (s->at[a] == position) return 1;
    return 0;
}

// The best state with one instant more, climbed a little; into climb.best.
static int64_t tli_rb_try_more(tli_rb_search *search, int32_t position, int32_t rounds) {
    tli_rb_copy_state(search->rb, search->climb.best, search->best);
    tli_rb_add_instant(search->rb, search->climb.best, position);
    tli_rb_climb_up(search->rb, &search->climb, rounds);
    return search->climb.best->value;
}

// Add the instant that raises the value most, if one does: all listed ones are tried in a few steps, the
// most hopeful of them in more. 0 = none.
static int tli_rb_add_best(tli_rb_search *search) {
    enum { HOPEFUL = 5 };
    tli_rb *rb = search->rb;
    int64_t values[HOPEFUL], before = search->best->value;
    int32_t chosen[HOPEFUL], count = 0, nearby = -1, i, k;
    for (i = 0; i < search->listed_count && !tli_rb_is_over(rb); i++) {
        int64_t value;
        if (tli_rb_has_instant(search->best, search->listed[i])) continue;
        value = tli_rb_try_more(search, search->listed[i], 10);
        if (count == HOPEFUL && value <= values[count - 1]) continue;
        k = count < HOPEFUL ? count++ : count - 1;
        for (; k > 0 && values[k - 1] < value; k--) { values[k] = values[k - 1]; chosen[k] = chosen[k - 1]; }
        values[k] = value;
        chosen[k] = search->listed[i];
    }
    tli_rb_copy_state(rb, search->trial, search->best);
    for (i = 0; i < count && !tli_rb_is_over(rb); i++)
        if (tli_rb_try_more(search, chosen[i], 60) > search->trial->value) {
            tli_rb_copy_state(rb, search->trial, search->climb.best);
            nearby = chosen[i];
        }
    for (i = -3; i <= 3 && nearby >= 0 && !tli_rb_is_over(rb); i++) {
        if (nearby + i < 0 || nearby + i >= rb->order_count) continue;
        if (tli_rb_has_instant(search->best, nearby + i)) continue;
        if (tli_rb_try_more(search, nearby + i, 60) > search->trial->value)
            tli_rb_copy_state(rb, search->trial, search->climb.best);
    }
    if (search->trial->value <= before) return 0;
    tli_rb_copy_state(rb, search->best, search->trial);
    return 1;
}

// -- bound: branching --

#define TLI_RB_OPEN 2048                  // branches open at a time, at most,
#define TLI_RB_OPEN_BYTES (48u << 20)     // and about their bytes

typedef struct tli_rb_tree {
    tli_rb_state *open[TLI_RB_OPEN];  // by falling value: the last is the next
    int32_t       count, most;
    int64_t       bound;              // no branch is below it
} tli_rb_tree;

// Bound a branch anew: its value only rises. 0 = nothing fits it.
static int tli_rb_bound_branch(tli_rb_search *search, tli_rb_state *s, int32_t rounds) {
    tli_rb *rb = search->rb;
    int64_t before = s->value, ends[2];
    int32_t a;
    for (a = 0; a < s->count; a++) if (!tli_rb_fix_large(rb, s, a)) return 0;
    if (s->count > 1) {
        tli_rb_copy_state(rb, search->climb.best, s);
        tli_rb_climb_up(rb, &search->climb, rounds);
        search->climb.now->value = search->climb.best->value;
        tli_rb_copy_state(rb, s, search->climb.best);
        tli_copy(s->share, search->climb.now->share, (size_t)s->count * (size_t)rb->thing_count);
        if (rb->table_limit) tli_rb_tabulate(rb, s);
    } else {
        s->value = tli_rb_search_line(rb, s, 0, ends);
        s->is_exact = ends[0] == ends[1];
        tli_zero(s->share, (size_t)rb->thing_count);
        for (a = 0; a < 2 && ends[0] != ends[1]; a++) {
            int64_t lambda = s->lambda[0];
            (void)tli_rb_touch(rb, s, 0, ends[a]);
            tli_rb_add_share(rb, s, 0, 127);
            s->lambda[0] = lambda;
        }
    }
    if (s->value < before) s->value = before;
    return 1;
}

// The cell whose x is least decided, weighed by what it costs to hold; -1 = none.
static int32_t tli_rb_choose_cell(const tli_rb *rb, const tli_rb_state *s) {
    int32_t best = -1, a, t;
    int64_t most = 0;
    if (s->is_exact) return -1;
    for (a = 0; a < s->count; a++)
        for (t = 0; t < rb->thing_count; t++) {
            int32_t at = a * rb->thing_count + t;
            int64_t doubt = s->share[at] < 128 ? s->share[at] : 255 - s->share[at];
            if (s->fixed[at] != TLI_RB_FREE || !rb->bytes[t]) continue;
            doubt = (1 + 32 * doubt) * (1 + tli_rb_price(rb, s, a, t) / 4096);
            if (doubt > most) { most = doubt; best = at; }
        }
    return best;
}

static void tli_rb_push(tli_rb_tree *tree, tli_rb_state *s) {
    int32_t at = tree->count++;
    for (; at > 0 && tree->open[at - 1]->value < s->value; at--) tree->open[at] = tree->open[at - 1];
    tree->open[at] = s;
}

// Where all of a branch is decided, more is known only at another instant: add the one of the highest
// value. 0 = there is none, or no memory for it.
static int tli_rb_extend(tli_rb_search *search, tli_rb_tree *tree) {
    tli_rb *rb = search->rb;
    tli_rb_state *low = tree->open[tree->count - 1], *more;
    int64_t most = 0;
    int32_t i, found = -1;
    if (low->count == TLI_RB_INSTANTS) return 0;
    for (i = 0; i < search->listed_count && !tli_rb_is_over(rb); i++) {
        if (tli_rb_has_instant(low, search->listed[i])) continue;
        tli_rb_copy_state(rb, search->climb.best, low);
        tli_rb_add_instant(rb, search->climb.best, search->listed[i]);
        tli_rb_climb_up(rb, &search->climb, 12);
        if (found >= 0 && (search->climb.best->value < most || (search->climb.best->value == most &&
            search->single[search->listed[i]] <= search->single[found]))) continue;
        most = search->climb.best->value;
        found = search->listed[i];
        tli_rb_copy_state(rb, search->trial, search->climb.best);
    }
    if (found < 0) return 0;
    more = tli_rb_add_state(rb, low->count + 1);
    if (!more) return 0;
    tli_rb_copy_state(rb, more, search->trial);
    more->is_exact = 0;
    if (more->value < low->value) more->value = low->value;
    tli_rb_free_state(rb, low);
    tree->count--;
    if (tli_rb_bound_branch(search, more, 30)) tli_rb_push(tree, more); else tli_rb_free_state(rb, more);
    tree->bound = tree->count ? tree->open[tree->count - 1]->value : TLI_RB_INFINITE;
    return tree->count > 0;
}

// Replace the lowest branch by its two halves: thing held, thing not held. 0 = that is no longer of use.
static int tli_rb_split(tli_rb_search *search, tli_rb_tree *tree) {
    tli_rb *rb = search->rb;
    tli_rb_state *low = tree->open[tree->count - 1], *half;
    int32_t cell = tli_rb_choose_cell(rb, low), rounds = low->count > 1 ? 24 : 0;
    tree->bound = low->value;
    if (tli_rb_is_over(rb)) return 0;
    if (cell < 0) return tli_rb_extend(search, tree);
    if (tree->count == tree->most) return 0;
    half = tli_rb_add_state(rb, low->count);
    if (!half) return 0;
    tli_rb_copy_state(rb, half, low);
    tree->count--;
    low->fixed[cell] = TLI_RB_ABSENT;
    low->mu[cell] = 0;
    half->fixed[cell] = TLI_RB_KEPT;
    half->mu[cell] = 0;
    half->room[cell / rb->thing_count] -= rb->bytes[cell % rb->thing_count];
    if (tli_rb_bound_branch(search, low, rounds)) tli_rb_push(tree, low); else tli_rb_free_state(rb, low);
    if (tli_rb_bound_branch(search, half, rounds)) tli_rb_push(tree, half); else tli_rb_free_state(rb, half);
    tree->bound = tree->count ? tree->open[tree->count - 1]->value : TLI_RB_INFINITE;
    return tree->count > 0;
}

// Raise the value of the best state by branching; TLI_RB_INFINITE: no schedule fits.
static int64_t tli_rb_branch(tli_rb_search *search) {
    tli_rb *rb = search->rb;
    tli_rb_tree *tree = (tli_rb_tree *)tli_rb_take(rb, 1, sizeof *tree);
    tli_rb_state *root = tree ? tli_rb_add_state(rb, search->best->count) : NULL;
    int64_t bound = search->best->value;
    uint64_t most, start;
    if (!root) return bound;
    tli_rb_copy_state(rb, root, search->best);
    most = TLI_RB_OPEN_BYTES / (sizeof *root + 10 * (uint64_t)root->count * (uint64_t)rb->thing_count);
    tree->most = most < TLI_RB_OPEN ? (int32_t)most : TLI_RB_OPEN;
    if (tli_rb_bound_branch(search, root, 40)) {
        start = *rb->work;
        tli_rb_tabulate(rb, root);
        if (*rb->work - start > rb->table_limit / 16) rb->table_limit = 0;  // too dear for every branch
        tli_rb_push(tree, root);
    } else {
        tli_rb_free_state(rb, root);
    }
    tree->bound = tree->count ? root->value : TLI_RB_INFINITE;
    while (tree->count && tli_rb_split(search, tree)) { }
    bound = tree->bound > bound ? tree->bound : bound;
    while (tree->count > 0) tli_rb_free_state(rb, tree->open[--tree->count]);
    return bound;
}

// -- bound: the two calls --

// Everything that does not depend on the budget.
static tl_result tli_rb_open(tli_rb *rb, int32_t inference) {
    const tl_graph *graph = rb->graph;
    int64_t tensors = graph->tensor_count, nodes = graph->node_count, things = tensors + nodes;
    uint8_t *scratch = (uint8_t *)tli_rb_take(rb, tensors, 1);
    rb->thing_of = (int32_t *)tli_rb_take(rb, things, sizeof(int32_t));
    rb->maker = (int32_t *)tli_rb_take(rb, things, sizeof(int32_t));
    rb->exact = (uint64_t *)tli_rb_take(rb, things, sizeof(uint64_t));
    rb->bytes = (int64_t *)tli_rb_take(rb, things, sizeof(int64_t));
    rb->at_end = (uint8_t *)tli_rb_take(rb, 2 * things, 1);
    rb->enter = (int64_t *)tli_rb_take(rb, things, sizeof(int64_t));
    rb->last_use = (int32_t *)tli_rb_take(rb, things, sizeof(int32_t));
    rb->order = (int32_t *)tli_rb_take(rb, 2 * nodes, sizeof(int32_t));
    rb->cost = (int64_t *)tli_rb_take(rb, nodes, sizeof(int64_t));
    rb->room = (uint64_t *)tli_rb_take(rb, 3 * nodes, sizeof(uint64_t));
    if (rb->failed) return TL_ERROR_NO_MEMORY;
    rb->reads_mark = rb->at_end + things;
    rb->runs_by = rb->order + nodes;
    rb->sets = rb->room + nodes;
    rb->between = rb->sets + nodes;
    tli_rb_find_things(rb, inference);
    tli_rb_find_runs(rb, inference, scratch);
    tli_zero(scratch, (size_t)tensors);
    tli_rb_find_sets(rb, scratch);
    tli_rb_scale_bytes(rb);
    tli_rb_scale_costs(rb);
    return TL_OK;
}

static tl_result tli_rb_open_net(tli_rb *rb) {
    int64_t vertices = (int64_t)rb->thing_count + rb->graph->node_count + 2;
    int64_t arcs = 2 * (2 * (int64_t)rb->thing_count + rb->graph->node_count + rb->graph->input_count);
    tli_rb_net *net = &rb->net;
    net->to = (int32_t *)tli_rb_take(rb, arcs, sizeof(int32_t));
    net->left = (int64_t *)tli_rb_take(rb, arcs, sizeof(int64_t));
    net->arcs = (int32_t *)tli_rb_take(rb, arcs, sizeof(int32_t));
    net->first = (int32_t *)tli_rb_take(rb, 5 * (vertices + 1), sizeof(int32_t));
    rb->labels = (tli_rb_label *)tli_rb_take(rb, 2 * TLI_RB_LABELS, sizeof(tli_rb_label));
    rb->made = (tli_rb_label *)tli_rb_take(rb, TLI_RB_LABELS, sizeof(tli_rb_label));
    if (rb->failed) return TL_ERROR_NO_MEMORY;
    net->level = net->first + vertices + 1;
    net->cursor = net->level + vertices + 1;
    net->queue = net->cursor + vertices + 1;
    net->path = net->queue + vertices + 1;
    tli_rb_make_net(rb);
    return TL_OK;
}

static void tli_rb_search_all(tli_rb_search *search, int64_t *value) {
    tli_rb *rb = search->rb;
    uint64_t limit = rb->work_limit, start = *rb->work, share = limit > start ? (limit - start) / 8 : 0;
    rb->work_limit = start + 3 * share;
    tli_rb_try_singles(search);
    *value = 0;
    rb->table_limit = 2 * share;
    if (search->best->count > 0) {
        tli_rb_list_instants(search);
        rb->work_limit = start + 6 * share;
        while (search->best->count < TLI_RB_INSTANTS && tli_rb_add_best(search)) { }
        rb->work_limit = limit;
        *value = tli_rb_branch(search);
    }
    rb->work_limit = limit;
}

// The scaled bound on what is paid again; TLI_RB_INFINITE: no schedule fits.
static tl_result tli_rb_search_bound(tli_rb *rb, int64_t *value) {
    tli_rb_search search;
    int64_t cells = (int64_t)TLI_RB_INSTANTS * rb->thing_count;
    tl_result result = tli_rb_open_net(rb);
    if (result) return result;
    tli_zero(&search, sizeof search);
    search.rb = rb;
    search.single = (int64_t *)tli_rb_take(rb, rb->order_count, sizeof(int64_t));
    search.listed = (int32_t *)tli_rb_take(rb, rb->order_count, sizeof(int32_t));
    search.climb.slope = (int32_t *)tli_rb_take(rb, cells, sizeof(int32_t));
    search.climb.held = (int8_t *)tli_rb_take(rb, cells, 1);
    search.climb.now = tli_rb_add_state(rb, TLI_RB_INSTANTS);
    search.climb.best = tli_rb_add_state(rb, TLI_RB_INSTANTS);
    search.best = tli_rb_add_state(rb, TLI_RB_INSTANTS);
    search.trial = tli_rb_add_state(rb, TLI_RB_INSTANTS);
    if (!rb->failed) tli_rb_search_all(&search, value);
    tli_rb_free_state(rb, search.climb.now);
    tli_rb_free_state(rb, search.climb.best);
    tli_rb_free_state(rb, search.best);
    tli_rb_free_state(rb, search.trial);
    return rb->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// base + ceil(value / scale), rounded up to a multiple of what every forward is a multiple of.
static uint64_t tli_rb_round_up(const tli_rb *rb, int64_t value) {
    uint64_t again, rest;
    if (value <= 0) return rb->base_cost;
    again = (uint64_t)value >> rb->cost_up;
    if (again << rb->cost_up != (uint64_t)value) again++;
    again <<= rb->cost_down;
    rest = rb->cost_step ? again % rb->cost_step : 0;
    if (rest) again += rb->cost_step - rest;
    return rb->base_cost + again < again ? UINT64_MAX : rb->base_cost + again;
}

// -- bound: the least budget --

// The working set of a node's cheapest call: its inputs once each, outputs, scratch; in place where that
// may be. One that makes saved bytes has them beside all outputs. Graph inputs are not in it.
static uint64_t tli_rb_call_bytes(const tl_graph *graph, int32_t id, int saves) {
    const tl_node *node = &graph->nodes[id];
    uint64_t sum = node->fwork_bytes + (saves ? node->saved_bytes : 0);
    int32_t i, k, reads = 0, end = node->first_input + node->input_count;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        sum += graph->outputs[i].bytes;
    for (i = node->first_input; i < end; i++) {
        int32_t tensor = graph->inputs[i].tensor;
        for (k = node->first_input; k < i && graph->inputs[k].tensor != tensor; k++) { }
        if (k == i && !graph->nodes[graph->outputs[tensor].node].is_input) sum += graph->outputs[tensor].bytes;
    }
    if (node->inplace < 0 || saves) return sum;
    k = graph->inputs[node->first_input + node->inplace].tensor;
    for (i = node->first_input; i < end; i++) reads += graph->inputs[i].tensor == k;
    return reads == 1 ? sum - graph->outputs[k].bytes : sum;
}

// The bytes of the largest call that every schedule within the budget makes between the backwards at
// positions p - 1 and p, and its node: what backward p reads is made there if there was no room for it
// beside the working set of the one before, and what that takes likewise.
static uint64_t tli_rb_find_gap(tli_rb *rb, uint64_t budget, int32_t p, int32_t *node) {
    const tl_graph *graph = rb->graph;
    uint64_t most = 0, room = budget - rb->sets[p - 1];
    uint8_t *must = rb->reads_mark;
    int32_t id, i, t;
    tli_rb_mark_reads(rb, rb->order[p], must, 1);
    tli_rb_mark_reads(rb, rb->order[p - 1], must, 0);
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *maker = &graph->nodes[id];
        int is_made = 0, saves;
        uint64_t call;
        t = rb->thing_of[graph->tensor_count + id];
        saves = is_made = t >= 0 && must[t] && rb->exact[t] > room;
        for (i = maker->first_output; i < maker->first_output + maker->output_count; i++) {
            t = rb->thing_of[i];
            is_made |= t >= 0 && must[t] && rb->exact[t] > room;
        }
        if (!is_made) continue;
        call = rb->between[p - 1] + tli_rb_call_bytes(graph, id, saves);
        if (call > most) { most = call; *node = id; }
        for (i = maker->first_input; i < maker->first_input + maker->input_count; i++)
            if (rb->thing_of[graph->inputs[i].tensor] >= 0) must[rb->thing_of[graph->inputs[i].tensor]] = 1;
        tli_rb_mark_reads(rb, rb->order[p - 1], must, 0);
    }
    tli_zero(must, (size_t)rb->thing_count);
    return most;
}

// Whether no call between two backwards is known to exceed the budget, which is at least every working
// set; *node: the one that does.
static int tli_rb_fits_gaps(tli_rb *rb, uint64_t budget, int32_t *node) {
    int32_t p;
    for (p = 1; p < rb->order_count; p++) {
        int32_t largest = -1;
        if (tli_rb_find_gap(rb, budget, p, &largest) <= budget) continue;
        *node = largest;
        return 0;
    }
    return 1;
}

// The largest working set of a call that every schedule makes, and its node; -1 = the graph inputs and
// the results, whatever the calls.
static uint64_t tli_rb_find_floor(tli_rb *rb, int32_t inference, int32_t *node) {
    const tl_graph *graph = rb->graph;
    uint64_t inputs = tli_rb_input_bytes(graph), most = inputs;
    int32_t i;
    *node = -1;
    for (i = 0; i < rb->thing_count; i++) if (rb->at_end[i]) most += rb->exact[i];
    for (i = 0; i < graph->node_count; i++) {
        int saves = graph->nodes[i].has_grad && !inference && graph->nodes[i].saved_bytes;
        uint64_t call;
        if (graph->nodes[i].is_input || rb->runs_by[i] == INT32_MAX) continue;
        call = inputs + tli_rb_call_bytes(graph, i, saves);
        if (call > most) { most = call; *node = i; }
    }
    for (i = 0; i < rb->order_count; i++)
        if (rb->sets[i] > most) { most = rb->sets[i]; *node = rb->order[i]; }
    return most;
}

// A number of bytes below which no schedule fits, and the node that sets it: the largest working set of
// a call that every schedule makes, or that every schedule makes that has so few bytes.
static tl_result tli_remat_floor(tl_env *env, const tl_graph *graph, int32_t inference, uint64_t *bound_budget,
                                 int32_t *node) {
    tli_rb rb;
    uint64_t low, high;
    tl_result result;
    tli_zero(&rb, sizeof rb);
    rb.env = env; rb.graph = graph;
    *bound_budget = 0;
    *node = -1;
    result = tli_rb_open(&rb, inference);
    if (!result) {
        low = high = tli_rb_find_floor(&rb, inference, node);
        while (!tli_rb_fits_gaps(&rb, high, node)) {  // from here on, high - low bisects to the least that does
            low = high + 1;
            high = high > UINT64_MAX / 2 ? UINT64_MAX : 2 * high + 1;
        }
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (tli_rb_fits_gaps(&rb, middle, node)) high = middle; else low = middle + 1;
        }
        *bound_budget = high;
    }
    tli_rb_free(&rb);
    return result;
}

// A cost that no valid schedule within the budget undercuts; backwards in reverse listing order, no host
// copies, no compression. Anytime: work_limit (arcs looked at, about 3 ns each) only makes it higher.
// TL_ERROR_INFEASIBLE, without a sentence: no schedule fits; *bound_cost is UINT64_MAX.
static tl_result tli_remat_bound(tl_env *env, const tl_graph *graph, uint64_t budget, int32_t inference,
                                 tli_remat_watch *watch, uint64_t work_limit,
                                 uint64_t *bound_cost, uint64_t *work) {
    tli_rb rb;
    int64_t value = 0;
    int32_t p, node;
    tl_result result;
    tli_zero(&rb, sizeof rb);
    rb.env = env; rb.graph = graph; rb.watch = watch; rb.work = work; rb.work_limit = work_limit;
    *bound_cost = 0;
    result = tli_rb_open(&rb, inference);
    if (!result && (budget < tli_rb_find_floor(&rb, inference, &node) || !tli_rb_fits_gaps(&rb, budget, &node)))
        value = TLI_RB_INFINITE;
    for (p = 0; p < rb.order_count && !result && !value; p++) rb.room[p] = budget - rb.sets[p];
    if (!result && !value && rb.order_count) result = tli_rb_search_bound(&rb, &value);
    if (!result && value >= TLI_RB_INFINITE) { result = TL_ERROR_INFEASIBLE; *bound_cost = UINT64_MAX; }
    else if (!result) *bound_cost = tli_rb_round_up(&rb, value);
    tli_rb_free(&rb);
    return result;
}

// -- search: whole graphs under a hard budget --
//
//     calls    F1 F2 F3 B3 F2 B2 B1        A plan is a sequence of calls, nothing else: from it
//     item 2      m--u--u                  follow what each call saves, what is overwritten in
//                           m--u           place and when each tensor is dropped. Tensor 2 lives
//                                          from its making to the last use before the next one.
//
// Dropping at the last use is never worse than later, and making all outputs anew is never worse
// than holding one of them across the call, so the sequence of calls is the whole decision.
//
//   1. greedy: forwards in listing order, backwards in reverse; what is missing is made on demand;
//      over the budget, the item with the least (cost to have it again) / (bytes x distance) goes;
//   2. improve: take some recomputations out, which breaks the budget, and mend it with other
//      ones, chosen at the fullest call; then take out whatever fits. Kept where it is no worse
//      than a slowly falling threshold. Every change is a call put in or taken out, in time
//      proportional to what lives across it, and can be undone.

typedef struct tli_remat_input {
    tl_env         *env;
    const tl_graph *graph;        // passed tl_check_graph
    uint64_t        budget;       // of the peak of live bytes, graph inputs included
    int32_t         inference;
    uint64_t        work_limit;   // of the search in elementary steps (a few ns each); 0 = greedy alone
    uint64_t        bound;        // no plan costs less: it ends there
    tli_remat_watch *watch;
} tli_remat_input;

// -- search: numbers --

// 2^16 log2(value), to about 2^-7: what scores are added up from, the same on every machine.
static int64_t tli_rs_log(uint64_t value) {
    int64_t whole = 0, part;
    uint64_t top = value ? value : 1;
    int shift;
    for (shift = 32; shift; shift >>= 1)
        if (top >> shift) { whole += shift; top >>= shift; }
    top = value ? value : 1;
    part = (int64_t)(whole > 16 ? top >> (whole - 16) : top << (16 - whole)) - 65536;
    return whole * 65536 + part + part * (65536 - part) / 65536 * 22500 / 65536;
}

// -- search: the problem: items, and what each call makes and uses --
//
// Items: tensors, then saved bytes of each node, then for each node "it ran" (no bytes: what makes
// B v come after some F v). Graph inputs are no items.

#define TLI_RS_MOST_COST (UINT64_C(1) << 62)   // of a sequence
#define TLI_RS_MOST_BYTES ((int64_t)1 << 60)  // of all together: what is counted here has a sign

typedef struct tli_rs_touch { int32_t item; uint8_t is_use; } tli_rs_touch;

typedef struct tli_rs_problem {
    tl_env         *env;
    const tl_graph *graph;
    int64_t         budget;
    int32_t         inference, item_count, node_count;
    int64_t        *item_bytes;      // [item_count]
    tli_rs_touch   *touches;         // of F 0, B 0, F 1, B 1, ..., then of the end
    int32_t        *first_touch;     // [2 nodes + 2]
    int64_t        *call_bytes;      // [2 nodes + 1] outputs, fwork of F; gradients, bwork of B
    int64_t        *gradient_bytes;  // [nodes] gradients live after B v
    uint8_t        *is_wanted;       // [nodes] its forward must run at least once
    uint8_t        *is_result;       // [tensors]
    int64_t         input_bytes;     // of graph inputs
} tli_rs_problem;

// Calls are numbered: 2v = F v, 2v + 1 = B v, 2 nodes = the end, which uses the results.
static int32_t tli_rs_end_call(const tli_rs_problem *p) { return 2 * p->node_count; }

static int32_t tli_rs_saved_item(const tli_rs_problem *p, int32_t id) { return p->graph->tensor_count + id; }

static int32_t tli_rs_ran_item(const tli_rs_problem *p, int32_t id) {
    return p->graph->tensor_count + p->node_count + id;
}

// The node whose forward makes an item.
static int32_t tli_rs_maker(const tli_rs_problem *p, int32_t item) {
    if (item < p->graph->tensor_count) return p->graph->outputs[item].node;
    return (item - p->graph->tensor_count) % p->node_count;
}

static void tli_rs_free_problem(tli_rs_problem *p) {
    tli_release(p->env, p->item_bytes);
    tli_release(p->env, p->touches);
    tli_release(p->env, p->first_touch);
    tli_release(p->env, p->call_bytes);
    tli_release(p->env, p->gradient_bytes);
    tli_release(p->env, p->is_wanted);
    tli_release(p->env, p->is_result);
}

// seen[item] = call + 1 where this call touched it already: each item once a call.
static void tli_rs_touch_item(tli_rs_problem *p, int32_t *count, int32_t *seen, int32_t call, int32_t item,
                              int is_use) {
    if (item < p->graph->tensor_count && p->graph->nodes[p->graph->outputs[item].node].is_input) return;
    if (seen[item] == call + 1) return;
    seen[item] = call + 1;
    p->touches[*count].item = item;
    p->touches[*count].is_use = (uint8_t)is_use;
    ++*count;
}

static void tli_rs_touch_node(tli_rs_problem *p, int32_t id, int32_t *seen, int32_t *count) {
    const tl_graph *graph = p->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, in_end = node->first_input + node->input_count;
    int32_t out_end = node->first_output + node->output_count;
    int trains = !p->inference && node->has_grad;
    p->first_touch[2 * id] = *count;
    if (node->is_input) { p->first_touch[2 * id + 1] = *count; return; }
    for (i = node->first_input; i < in_end; i++)
        tli_rs_touch_item(p, count, seen, 2 * id, graph->inputs[i].tensor, 1);
    for (i = node->first_output; i < out_end; i++) tli_rs_touch_item(p, count, seen, 2 * id, i, 0);
    if (trains && node->saved_bytes) tli_rs_touch_item(p, count, seen, 2 * id, tli_rs_saved_item(p, id), 0);
    if (trains) tli_rs_touch_item(p, count, seen, 2 * id, tli_rs_ran_item(p, id), 0);
    p->first_touch[2 * id + 1] = *count;
    if (!trains) return;
    for (i = node->first_input; i < in_end; i++)
        if (graph->inputs[i].needed) tli_rs_touch_item(p, count, seen, 2 * id + 1, graph->inputs[i].tensor, 1);
    for (i = node->first_output; i < out_end; i++)
        if (graph->outputs[i].needed) tli_rs_touch_item(p, count, seen, 2 * id + 1, i, 1);
    if (node->saved_bytes) tli_rs_touch_item(p, count, seen, 2 * id + 1, tli_rs_saved_item(p, id), 1);
    tli_rs_touch_item(p, count, seen, 2 * id + 1, tli_rs_ran_item(p, id), 1);
}

// Gradients live by the order of backwards alone: their bytes during and after each B.
static void tli_rs_count_gradients(tli_rs_problem *p, int32_t *seen) {
    const tl_graph *graph = p->graph;
    int64_t live = 0;
    int32_t id, i;
    tli_zero(seen, (size_t)graph->tensor_count * sizeof *seen);
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (!node->has_grad || p->inference) continue;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (!seen[i]) { seen[i] = 1; live += (int64_t)graph->outputs[i].bytes; }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t t = graph->inputs[i].tensor;
            if (seen[t] || !graph->nodes[graph->outputs[t].node].has_grad) continue;
            seen[t] = 1;
            live += (int64_t)graph->outputs[t].bytes;
        }
        p->call_bytes[2 * id + 1] = live + (int64_t)node->bwork_bytes;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            live -= (int64_t)graph->outputs[i].bytes;
        p->gradient_bytes[id] = live;
    }
}

// A node is wanted where its backward runs, where a result comes from it, or where one that is
// wanted reads it.
static void tli_rs_mark_wanted(tli_rs_problem *p) {
    const tl_graph *graph = p->graph;
    int32_t id, i;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (!p->inference && node->has_grad) p->is_wanted[id] = 1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (p->is_result[i]) p->is_wanted[id] = 1;
        if (node->is_input) p->is_wanted[id] = 0;
        for (i = node->first_input; i < node->first_input + node->input_count && p->is_wanted[id]; i++)
            p->is_wanted[graph->outputs[graph->inputs[i].tensor].node] = 1;
    }
}

static void tli_rs_read_graph(tli_rs_problem *p, int32_t *seen) {
    const tl_graph *graph = p->graph;
    int32_t id, i, count = 0;
    tli_mark_results(graph, p->inference, p->is_result);
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        tli_rs_touch_node(p, id, seen, &count);
        p->item_bytes[tli_rs_saved_item(p, id)] = (int64_t)node->saved_bytes;
        p->call_bytes[2 * id] = (int64_t)node->fwork_bytes;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            p->item_bytes[i] = (int64_t)graph->outputs[i].bytes;
            p->call_bytes[2 * id] += (int64_t)graph->outputs[i].bytes;
            if (node->is_input) p->input_bytes += (int64_t)graph->outputs[i].bytes;
        }
    }
    p->first_touch[tli_rs_end_call(p)] = count;
    for (i = 0; i < graph->tensor_count; i++)
        if (p->is_result[i]) tli_rs_touch_item(p, &count, seen, tli_rs_end_call(p), i, 1);
    p->first_touch[tli_rs_end_call(p) + 1] = count;
    tli_rs_mark_wanted(p);
    tli_rs_count_gradients(p, seen);
}

// tl_check_graph holds that the sums fit 64 bits.
static int tli_rs_is_countable(const tl_graph *graph) {
    uint64_t sum = 0, cost = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) sum += 2 * graph->outputs[i].bytes;
    for (i = 0; i < graph->node_count; i++) {
        sum += graph->nodes[i].saved_bytes + graph->nodes[i].fwork_bytes + graph->nodes[i].bwork_bytes;
        cost += graph->nodes[i].fwd_cost;
    }
    return sum < (uint64_t)TLI_RS_MOST_BYTES && cost < TLI_RS_MOST_COST >> 6;
}

static tl_result tli_rs_init_problem(const tli_remat_input *in, tli_rs_problem *p) {
    const tl_graph *graph = in->graph;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    int32_t *seen;
    tli_zero(p, sizeof *p);
    p->env = in->env;
    p->graph = graph;
    p->budget = in->budget < (uint64_t)TLI_RS_MOST_BYTES ? (int64_t)in->budget : TLI_RS_MOST_BYTES;
    p->inference = in->inference != 0;
    p->node_count = graph->node_count;
    if (tensors + 2 * nodes > INT32_MAX / 4)
        return TL_ERROR_OVERFLOW;
    if (!tli_rs_is_countable(graph))
        return TL_ERROR_OVERFLOW;
    p->item_count = graph->tensor_count + 2 * graph->node_count;
    p->item_bytes = (int64_t *)tli_alloc_array(in->env, (uint64_t)p->item_count, sizeof *p->item_bytes);
    p->touches = (tli_rs_touch *)tli_alloc_array(
        in->env, 2 * (uint64_t)graph->input_count + 3 * tensors + 4 * nodes, sizeof *p->touches);
    p->first_touch = (int32_t *)tli_alloc_array(in->env, 2 * nodes + 2, sizeof *p->first_touch);
    p->call_bytes = (int64_t *)tli_alloc_array(in->env, 2 * nodes + 1, sizeof *p->call_bytes);
    p->gradient_bytes = (int64_t *)tli_alloc_array(in->env, nodes, sizeof *p->gradient_bytes);
    p->is_wanted = (uint8_t *)tli_alloc_array(in->env, nodes, 1);
    p->is_result = (uint8_t *)tli_alloc_array(in->env, tensors, 1);
    seen = (int32_t *)tli_alloc_array(in->env, (uint64_t)p->item_count, sizeof *seen);
    if (p->item_bytes && p->touches && p->first_touch && p->call_bytes && p->gradient_bytes && p->is_wanted &&
        p->is_result && seen) {
        tli_rs_read_graph(p, seen);
        tli_release(in->env, seen);
        return TL_OK;
    }
    tli_release(in->env, seen);
    tli_rs_free_problem(p);
    return TL_ERROR_NO_MEMORY;
}

// A list of calls that grows.
typedef struct tli_rs_calls { int32_t *calls; int32_t count, capacity; } tli_rs_calls;

static int tli_rs_add_call(tl_env *env, tli_rs_calls *list, int32_t call) {
    void *array = list->calls;
    if (!tli_grow(env, &array, &list->capacity, list->count, (int64_t)list->count + 1, sizeof call)) return 0;
    list->calls = (int32_t *)array;
    list->calls[list->count++] = call;
    return 1;
}

// -- search: greedy: on demand, with eviction --

typedef struct tli_rs_rule {
    int8_t cost, bytes, distance;  // exponents of the score, in halves
    int8_t backwards;              // inputs are made last first
    int8_t dead_first;             // what no call of the bare program uses goes before all else
} tli_rs_rule;

typedef struct tli_rs_frame { int32_t call, next; } tli_rs_frame;

typedef struct tli_rs_greedy {
    const tli_rs_problem *p;
    tli_rs_rule   rule;
    int64_t       budget, live, gradients;
    uint8_t      *here;          // [items]
    int32_t      *pins;          // [items]
    int32_t      *first_use;     // [items + 1] into uses
    int32_t      *uses;          // positions in the bare program at which an item is used, ascending
    int32_t      *next_use;      // [items] cursor
    int32_t      *resident;      // [resident_count] items that are here and have bytes
    int32_t      *place;         // [items] index into resident
    int32_t       resident_count;
    int32_t      *program;       // [program_count] the bare program: each wanted call once
    int32_t       program_count, now;
    tli_rs_frame *stack;         // [nodes + 1]
    int32_t      *queue;         // [nodes] closures
    uint32_t     *stamp;         // [nodes]
    uint32_t      stamped;
    tli_rs_calls  calls;
    int64_t       most_calls;
    uint64_t      cost, work;
    int           failed;        // 1 = no memory
} tli_rs_greedy;

static void tli_rs_free_greedy(tli_rs_greedy *g) {
    tl_env *env = g->p->env;
    tli_release(env, g->here);
    tli_release(env, g->pins);
    tli_release(env, g->first_use);
    tli_release(env, g->uses);
    tli_release(env, g->next_use);
    tli_release(env, g->resident);
    tli_release(env, g->place);
    tli_release(env, g->program);
    tli_release(env, g->stack);
    tli_release(env, g->queue);
    tli_release(env, g->stamp);
    tli_release(env, g->calls.calls);
}

static void tli_rs_list_program(tli_rs_greedy *g) {
    const tli_rs_problem *p = g->p;
    int32_t id, i, k, total = 0;
    for (id = 0; id < p->node_count; id++)
        if (p->is_wanted[id]) g->program[g->program_count++] = 2 * id;
    for (id = p->node_count; id-- > 0 && !p->inference;)
        if (p->graph->nodes[id].has_grad) g->program[g->program_count++] = 2 * id + 1;
    g->program[g->program_count++] = tli_rs_end_call(p);
    for (i = 0; i < g->program_count; i++)
        for (k = p->first_touch[g->program[i]]; k < p->first_touch[g->program[i] + 1]; k++)
            if (p->touches[k].is_use) g->first_use[p->touches[k].item + 1]++;
    for (i = 0; i < p->item_count; i++) {
        total += g->first_use[i + 1];
        g->first_use[i + 1] = total;
        g->next_use[i] = g->first_use[i];
    }
    for (i = 0; i < g->program_count; i++)
        for (k = p->first_touch[g->program[i]]; k < p->first_touch[g->program[i] + 1]; k++)
            if (p->touches[k].is_use) g->uses[g->next_use[p->touches[k].item]++] = i;
}

static tl_result tli_rs_init_greedy(const tli_rs_problem *p, tli_rs_greedy *g) {
    tl_env *env = p->env;
    uint64_t items = (uint64_t)p->item_count, nodes = (uint64_t)p->node_count;
    tli_zero(g, sizeof *g);
    g->p = p;
    g->here = (uint8_t *)tli_alloc_array(env, items, 1);
    g->pins = (int32_t *)tli_alloc_array(env, items, sizeof *g->pins);
    g->first_use = (int32_t *)tli_alloc_array(env, items + 1, sizeof *g->first_use);
    g->uses = (int32_t *)tli_alloc_array(env, (uint64_t)p->first_touch[tli_rs_end_call(p) + 1],
                                         sizeof *g->uses);
    g->next_use = (int32_t *)tli_alloc_array(env, items, sizeof *g->next_use);
    g->resident = (int32_t *)tli_alloc_array(env, items, sizeof *g->resident);
    g->place = (int32_t *)tli_alloc_array(env, items, sizeof *g->place);
    g->program = (int32_t *)tli_alloc_array(env, 2 * nodes + 1, sizeof *g->program);
    g->stack = (tli_rs_frame *)tli_alloc_array(env, nodes + 1, sizeof *g->stack);
    g->queue = (int32_t *)tli_alloc_array(env, nodes, sizeof *g->queue);
    g->stamp = (uint32_t *)tli_alloc_array(env, nodes, sizeof *g->stamp);
    if (g->here && g->pins && g->first_use && g->uses && g->next_use && g->resident && g->place && g->program &&
        g->stack && g->queue && g->stamp) {
        tli_rs_list_program(g);
        return TL_OK;
    }
    tli_rs_free_greedy(g);
    return TL_ERROR_NO_MEMORY;
}

#define TLI_RS_CLOSURE_LIMIT 200  // nodes looked at to price an eviction

// What it costs to make an item again from what is here.
static uint64_t tli_rs_price(tli_rs_greedy *g, int32_t item) {
    const tl_graph *graph = g->p->graph;
    uint64_t cost = 0;
    int32_t at, i, count = 1;
    g->queue[0] = tli_rs_maker(g->p, item);
    g->stamp[g->queue[0]] = ++g->stamped;
    for (at = 0; at < count; at++) {
        const tl_node *node = &graph->nodes[g->queue[at]];
        cost += node->fwd_cost;
        if (count > TLI_RS_CLOSURE_LIMIT) break;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, id = graph->outputs[tensor].node;
            if (graph->nodes[id].is_input || g->here[tensor] || g->stamp[id] == g->stamped) continue;
            g->stamp[id] = g->stamped;
            g->queue[count++] = id;
        }
    }
    g->work += (uint64_t)count + 4;
    return cost;
}

static int64_t tli_rs_score(tli_rs_greedy *g, int32_t item) {
    int32_t next = g->next_use[item] < g->first_use[item + 1] ? g->uses[g->next_use[item]] : -1;
    int64_t distance = next < 0 ? 2 * (int64_t)g->program_count : (int64_t)next - g->now + 1, score;
    score = g->rule.cost * tli_rs_log(tli_rs_price(g, item)) -
            g->rule.bytes * tli_rs_log((uint64_t)g->p->item_bytes[item]) -
            g->rule.distance * tli_rs_log((uint64_t)distance);
    if (next < 0 && g->rule.dead_first) score -= (int64_t)1 << 40;
    return score;
}

static void tli_rs_come(tli_rs_greedy *g, int32_t item) {
    if (g->here[item]) return;
    g->here[item] = 1;
    g->live += g->p->item_bytes[item];
    if (!g->p->item_bytes[item]) return;
    g->place[item] = g->resident_count;
    g->resident[g->resident_count++] = item;
}

static void tli_rs_go(tli_rs_greedy *g, int32_t item) {
    int32_t last;
    g->here[item] = 0;
    g->live -= g->p->item_bytes[item];
    last = g->resident[--g->resident_count];
    g->resident[g->place[item]] = last;
    g->place[last] = g->place[item];
}

// Make room for so many more bytes; 0 where everything left is pinned.
static int tli_rs_make_room(tli_rs_greedy *g, int64_t bytes) {
    while (g->live + g->gradients + bytes > g->budget) {
        int64_t least = 0;
        int32_t i, worst = -1;
        for (i = 0; i < g->resident_count; i++) {
            int32_t item = g->resident[i];
            int64_t score;
            if (g->pins[item]) continue;
            score = tli_rs_score(g, item);
            if (worst >= 0 && (score > least || (score == least && item > worst))) continue;
            worst = item;
            least = score;
        }
        if (worst < 0) return 0;
        tli_rs_go(g, worst);
    }
    return 1;
}

static void tli_rs_pin(tli_rs_greedy *g, int32_t call, int32_t by) {
    const tli_rs_problem *p = g->p;
    int32_t k;
    for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++)
        if (p->touches[k].is_use) g->pins[p->touches[k].item] += by;
}

// In place: the input goes where nobody else holds it and no later call of the program uses it.
static int64_t tli_rs_overwrite(tli_rs_greedy *g, int32_t id) {
    const tl_node *node = &g->p->graph->nodes[id];
    int32_t input;
    if (node->inplace < 0 || g->here[node->first_output]) return 0;
    input = g->p->graph->inputs[node->first_input + node->inplace].tensor;
    if (g->pins[input] > 1 || g->next_use[input] < g->first_use[input + 1]) return 0;
    return g->p->item_bytes[input];
}

// Run a call whose uses are here and pinned.
static int tli_rs_run_call(tli_rs_greedy *g, int32_t call) {
    const tli_rs_problem *p = g->p;
    int32_t k, id = call / 2, saved = -1;
    int is_forward = call < tli_rs_end_call(p) && call % 2 == 0;
    int64_t bytes = is_forward ? p->call_bytes[call] : 0, over = 0;
    g->work += 16;
    if (call == tli_rs_end_call(p)) {
        g->failed = !tli_rs_add_call(p->env, &g->calls, call);
        return !g->failed;
    }
    if (call % 2) {
        g->gradients = p->call_bytes[call];
        if (!tli_rs_make_room(g, 0)) return 0;
        g->gradients = p->gradient_bytes[id];
    } else {
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++) {
            int32_t item = p->touches[k].item;
            if (p->touches[k].is_use) continue;
            if (item < p->graph->tensor_count) { if (g->here[item]) bytes -= p->item_bytes[item]; }
            else if (item < p->graph->tensor_count + p->node_count && !g->here[item]) saved = item;
        }
        if (saved >= 0 && tli_rs_make_room(g, bytes + p->item_bytes[saved])) {
            tli_rs_come(g, saved);
        } else {
            if (saved >= 0 && g->pins[saved]) return 0;
            over = tli_rs_overwrite(g, id);
            if (over && g->live + g->gradients + bytes > g->budget)
                tli_rs_go(g, p->graph->inputs[p->graph->nodes[id].first_input +
                                              p->graph->nodes[id].inplace].tensor);
            if (!tli_rs_make_room(g, bytes)) return 0;
        }
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++)
            if (!p->touches[k].is_use && p->touches[k].item < p->graph->tensor_count)
                tli_rs_come(g, p->touches[k].item);
    }
    if (is_forward) g->cost += p->graph->nodes[id].fwd_cost;
    if (g->calls.count >= g->most_calls || g->cost > TLI_RS_MOST_COST) return 0;
    if (!tli_rs_add_call(p->env, &g->calls, call)) { g->failed = 1; return 0; }
    return 1;
}

// The next item that the call of this frame uses and that is not here; -1 = none.
static int32_t tli_rs_find_missing(const tli_rs_greedy *g, const tli_rs_frame *frame) {
    const tli_rs_problem *p = g->p;
    int32_t from = p->first_touch[frame->call], to = p->first_touch[frame->call + 1], k;
    for (k = from; k < to; k++) {
        const tli_rs_touch *touch = &p->touches[g->rule.backwards ? from + to - 1 - k : k];
        if (touch->is_use && !g->here[touch->item] && touch->item < p->graph->tensor_count + p->node_count)
            return touch->item;
    }
    return -1;
}

// Run a call, before it whatever it lacks, before that whatever that lacks.
static int tli_rs_demand(tli_rs_greedy *g, int32_t call) {
    int32_t depth = 1;
    g->stack[0].call = call;
    tli_rs_pin(g, call, 1);
    while (depth > 0) {
        int32_t item = tli_rs_find_missing(g, &g->stack[depth - 1]);
        if (item >= 0) {
            g->stack[depth].call = 2 * tli_rs_maker(g->p, item);
            tli_rs_pin(g, g->stack[depth].call, 1);
            depth++;
            continue;
        }
        depth--;
        if (!tli_rs_run_call(g, g->stack[depth].call)) return 0;
        tli_rs_pin(g, g->stack[depth].call, -1);
    }
    return 1;
}

// One run under a rule; 1 = g->calls is a sequence that keeps the budget.
static int tli_rs_run_greedy(tli_rs_greedy *g, const tli_rs_rule *rule, int64_t budget) {
    const tli_rs_problem *p = g->p;
    int64_t nodes = p->node_count;
    int32_t k;
    g->rule = *rule;
    g->budget = budget;
    g->live = p->input_bytes;
    g->gradients = 0;
    g->cost = 0;
    g->resident_count = g->calls.count = 0;
    g->most_calls = nodes * (nodes < 128 ? nodes : 128) + 1024;
    tli_zero(g->here, (size_t)p->item_count);
    tli_zero(g->pins, (size_t)p->item_count * sizeof *g->pins);
    for (k = 0; k < p->graph->tensor_count; k++)
        if (p->graph->nodes[p->graph->outputs[k].node].is_input) g->here[k] = 1;
    for (k = 0; k < p->item_count; k++) g->next_use[k] = g->first_use[k];
    for (g->now = 0; g->now < g->program_count; g->now++) {
        int32_t call = g->program[g->now];
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++)
            if (p->touches[k].is_use) g->next_use[p->touches[k].item]++;
        if (!tli_rs_demand(g, call)) return 0;
    }
    return 1;
}

// -- search: the sequence: calls in a list, of each item a list of events, the bytes that each call holds --
//
// An item lives from event x to the next event y where y is a use: then the calls behind x up to y
// hold its bytes. Calls stand in blocks of a few, so that adding to many of them takes few steps.

typedef struct tli_rs_event {
    int32_t item, call;      // place in tli_rs_seq.places
    int32_t before, behind;  // of the same item, in time; -1 = none
    int32_t sibling;         // of the same call
    uint8_t is_use;
} tli_rs_event;

typedef struct tli_rs_place {
    int32_t  before, behind;  // in time
    int32_t  call;            // 2v, 2v + 1, the end; -1 = place 0, before everything
    int32_t  first_event;
    int32_t  block;
    int64_t  order;           // ascending in time
    int64_t  held;            // live bytes during the call, less the block's
    int64_t  own;             // of these, what lives neither before nor, as such, because of gradients
    int64_t  gradients;       // live after the last B
    uint8_t  saves, overwrites;
} tli_rs_place;

#define TLI_RS_BLOCK 24  // places of a block at most

typedef struct tli_rs_block {
    int32_t before, behind;  // in time
    int32_t first, count;    // places
    int64_t add;             // to what each of its places holds
    int64_t top;             // the most that one of them holds, less add
    int     is_over;
} tli_rs_block;

// place: put in behind; -1 - place: taken out.
typedef struct tli_rs_change { int32_t call, place; } tli_rs_change;

typedef struct tli_rs_seq {
    const tli_rs_problem *p;
    tli_rs_place  *places;   // place 0 stands before everything and is never taken out
    int32_t        place_count, place_capacity, free_place, used;
    tli_rs_event  *events;
    int32_t        event_count, event_capacity, free_event;
    tli_rs_block  *blocks;        // block 0 has place 0
    int32_t        block_count, block_capacity, free_block;
    int32_t       *first, *last;  // [items] events
    int32_t        last_place;
    int32_t        over_count;    // blocks with a call over the budget
    uint64_t       cost;          // of forwards
    int64_t        budget;
    uint64_t       work;
    tli_rs_change *changes;  // [change_count] to be undone, where logs is set
    int32_t        change_count, change_capacity;
    int            logs, failed;
} tli_rs_seq;

static void tli_rs_free_seq(tli_rs_seq *s) {
    tli_release(s->p->env, s->places);
    tli_release(s->p->env, s->events);
    tli_release(s->p->env, s->blocks);
    tli_release(s->p->env, s->first);
    tli_release(s->p->env, s->last);
    tli_release(s->p->env, s->changes);
}

static int32_t tli_rs_new_place(tli_rs_seq *s) {
    int32_t at = s->free_place;
    void *array = s->places;
    if (at >= 0) { s->free_place = s->places[at].behind; return at; }
    if (!tli_grow(s->p->env, &array, &s->place_capacity, s->place_count, (int64_t)s->place_count + 1,
                  sizeof *s->places)) { s->failed = 1; return -1; }
    s->places = (tli_rs_place *)array;
    return s->place_count++;
}

// Room for the events of a call, so that putting it in cannot fail half way.
static int tli_rs_reserve_events(tli_rs_seq *s, int32_t count) {
    void *array = s->events;
    if (!tli_grow(s->p->env, &array, &s->event_capacity, s->event_count, (int64_t)s->event_count + count,
                  sizeof *s->events)) { s->failed = 1; return 0; }
    s->events = (tli_rs_event *)array;
    return 1;
}

// Room for one more block, so that a split cannot fail.
static int tli_rs_reserve_block(tli_rs_seq *s) {
    void *array = s->blocks;
    if (s->free_block >= 0) return 1;
    if (!tli_grow(s->p->env, &array, &s->block_capacity, s->block_count, (int64_t)s->block_count + 1,
                  sizeof *s->blocks)) { s->failed = 1; return 0; }
    s->blocks = (tli_rs_block *)array;
    return 1;
}

static void tli_rs_empty_seq(tli_rs_seq *s) {
    tli_rs_place *start = &s->places[0];
    tli_rs_block *block = &s->blocks[0];
    int32_t i;
    for (i = 0; i < s->p->item_count; i++) s->first[i] = s->last[i] = -1;
    s->place_count = s->block_count = 1;
    s->event_count = 0;
    s->free_place = s->free_event = s->free_block = -1;
    s->last_place = s->over_count = s->change_count = s->used = 0;
    s->cost = 0;
    tli_zero(start, sizeof *start);
    start->before = start->behind = start->call = start->first_event = -1;
    start->held = -TLI_RS_MOST_BYTES;  // never the fullest
    tli_zero(block, sizeof *block);
    block->before = block->behind = -1;
    block->count = 1;
    block->top = start->held;
}

static tl_result tli_rs_init_seq(const tli_rs_problem *p, tli_rs_seq *s) {
    void *array = NULL;
    tli_zero(s, sizeof *s);
    s->p = p;
    s->budget = p->budget;
    s->free_block = -1;
    s->first = (int32_t *)tli_alloc_array(p->env, (uint64_t)p->item_count, sizeof *s->first);
    s->last = (int32_t *)tli_alloc_array(p->env, (uint64_t)p->item_count, sizeof *s->last);
    if (s->first && s->last && tli_rs_reserve_block(s) &&
        tli_grow(p->env, &array, &s->place_capacity, 0, 64, sizeof *s->places)) {
        s->places = (tli_rs_place *)array;
        tli_rs_empty_seq(s);
        return TL_OK;
    }
    tli_rs_free_seq(s);
    return TL_ERROR_NO_MEMORY;
}

// -- search: the sequence: bytes --

static int64_t tli_rs_held(const tli_rs_seq *s, int32_t at) {
    return s->places[at].held + s->blocks[s->places[at].block].add;
}

static void tli_rs_judge(tli_rs_seq *s, tli_rs_block *block) {
    int is_over = block->top + block->add > s->budget;
    s->over_count += is_over - block->is_over;
    block->is_over = is_over;
}

static void tli_rs_rescan(tli_rs_seq *s, int32_t at) {
    tli_rs_block *block = &s->blocks[at];
    int32_t place = block->first, count = block->count;
    int64_t top = -TLI_RS_MOST_BYTES - TLI_RS_MOST_BYTES;
    s->work += (uint64_t)count;
    for (; count-- > 0; place = s->places[place].behind)
        if (s->places[place].held > top) top = s->places[place].held;
    block->top = top;
    tli_rs_judge(s, block);
}

// Add to what the places behind `from` up to `to` hold.
static void tli_rs_shift(tli_rs_seq *s, int32_t from, int32_t to, int64_t bytes) {
    tli_rs_place *places = s->places;
    int32_t a = places[from].block, b = places[to].block, at = places[from].behind, block;
    if (!bytes) return;
    s->work += TLI_RS_BLOCK / 2;
    if (a == b) {
        for (; at != to; at = places[at].behind) places[at].held += bytes;
        places[to].held += bytes;
        tli_rs_rescan(s, a);
        return;
    }
    if (places[at].block == a) {
        for (; places[at].block == a; at = places[at].behind) places[at].held += bytes;
        tli_rs_rescan(s, a);
    }
    for (block = s->blocks[a].behind; block != b; block = s->blocks[block].behind) {
        s->blocks[block].add += bytes;
        tli_rs_judge(s, &s->blocks[block]);
        s->work++;
    }
    for (at = s->blocks[b].first; at != to; at = places[at].behind) places[at].held += bytes;
    places[to].held += bytes;
    tli_rs_rescan(s, b);
}

// A place that was linked behind another joins its block, which splits where it grows too long.
static void tli_rs_join(tli_rs_seq *s, int32_t at, int64_t held) {
    int32_t old = s->places[s->places[at].before].block, new_block, i, first;
    tli_rs_block *block = &s->blocks[old], *half;
    s->places[at].block = old;
    s->places[at].held = held - block->add;
    block->count++;
    if (block->count > TLI_RS_BLOCK) {
        new_block = s->free_block;
        if (new_block >= 0) s->free_block = s->blocks[new_block].behind;
        else new_block = s->block_count++;
        half = &s->blocks[new_block];
        for (first = block->first, i = 0; i < TLI_RS_BLOCK / 2; i++) first = s->places[first].behind;
        half->first = first;
        half->count = block->count - TLI_RS_BLOCK / 2;
        half->add = block->add;
        half->is_over = 0;
        half->before = old;
        half->behind = block->behind;
        if (block->behind >= 0) s->blocks[block->behind].before = new_block;
        block->behind = new_block;
        block->count = TLI_RS_BLOCK / 2;
        for (i = 0; i < half->count; i++, first = s->places[first].behind) s->places[first].block = new_block;
        tli_rs_rescan(s, new_block);
    }
    tli_rs_rescan(s, old);
}

// Before a place is unlinked.
static void tli_rs_leave(tli_rs_seq *s, int32_t at) {
    int32_t number = s->places[at].block;
    tli_rs_block *block = &s->blocks[number];
    if (block->first == at) block->first = s->places[at].behind;
    if (--block->count) return;
    s->over_count -= block->is_over;
    s->blocks[block->before].behind = block->behind;  // block 0 is never empty
    if (block->behind >= 0) s->blocks[block->behind].before = block->before;
    block->behind = s->free_block;
    s->free_block = number;
}

static int tli_rs_is_use(const tli_rs_seq *s, int32_t event) { return event >= 0 && s->events[event].is_use; }

// What a forward saves and overwrites follows from the next events of its items.
static void tli_rs_refresh(tli_rs_seq *s, int32_t at) {
    const tl_graph *graph = s->p->graph;
    tli_rs_place *place = &s->places[at];
    const tl_node *node;
    int32_t e, input = -1, i, reads = 0;
    int saves = 0, overwrites = 0;
    int64_t own;
    if (place->call < 0 || place->call % 2 || place->call == tli_rs_end_call(s->p)) return;
    node = &graph->nodes[place->call / 2];
    if (!node->saved_bytes && node->inplace < 0) return;
    if (node->inplace >= 0) input = graph->inputs[node->first_input + node->inplace].tensor;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        reads += graph->inputs[i].tensor == input;
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        if (s->events[e].item == s->p->graph->tensor_count + place->call / 2 &&
            tli_rs_is_use(s, s->events[e].behind))
            saves = 1;
        if (s->events[e].item == input && reads == 1 && !tli_rs_is_use(s, s->events[e].behind)) overwrites = 1;
    }
    if (saves) overwrites = 0;
    if (saves == place->saves && overwrites == place->overwrites) return;
    own = s->p->call_bytes[place->call];
    if (saves) own += (int64_t)node->saved_bytes;
    if (overwrites) own -= (int64_t)graph->outputs[node->first_output].bytes;
    place->held += own - place->own;
    place->own = own;
    place->saves = (uint8_t)saves;
    place->overwrites = (uint8_t)overwrites;
    tli_rs_rescan(s, place->block);
}

static void tli_rs_refresh_event(tli_rs_seq *s, int32_t event) {
    if (event >= 0) tli_rs_refresh(s, s->events[event].call);
}

static void tli_rs_link_event(tli_rs_seq *s, int32_t at, const tli_rs_touch *touch) {
    int32_t e = s->free_event, x = s->last[touch->item], y = -1, c;
    int64_t bytes = s->p->item_bytes[touch->item];
    tli_rs_event *event;
    int was, is_left, is_right;
    if (e >= 0) s->free_event = s->events[e].sibling;
    else e = s->event_count++;
    while (x >= 0 && s->places[s->events[x].call].order > s->places[at].order) {
        y = x;
        x = s->events[x].before;
        s->work++;
    }
    event = &s->events[e];
    event->item = touch->item;
    event->is_use = touch->is_use;
    event->call = at;
    event->sibling = s->places[at].first_event;
    s->places[at].first_event = e;
    event->before = x;
    event->behind = y;
    if (x >= 0) s->events[x].behind = e; else s->first[touch->item] = e;
    if (y >= 0) s->events[y].before = e; else s->last[touch->item] = e;
    was = x >= 0 && tli_rs_is_use(s, y);
    is_left = x >= 0 && touch->is_use;
    is_right = tli_rs_is_use(s, y);
    c = x >= 0 ? s->events[x].call : 0;
    if (was != is_left) tli_rs_shift(s, c, at, is_left ? bytes : -bytes);
    if (was != is_right) tli_rs_shift(s, at, s->events[y].call, is_right ? bytes : -bytes);
    tli_rs_refresh_event(s, x);
}

static void tli_rs_unlink_event(tli_rs_seq *s, int32_t e) {
    tli_rs_event *event = &s->events[e];
    int32_t x = event->before, y = event->behind, at = event->call;
    int64_t bytes = s->p->item_bytes[event->item];
    int will = x >= 0 && tli_rs_is_use(s, y), was_left = x >= 0 && event->is_use;
    int was_right = tli_rs_is_use(s, y);
    if (x >= 0) s->events[x].behind = y; else s->first[event->item] = y;
    if (y >= 0) s->events[y].before = x; else s->last[event->item] = x;
    if (will != was_left) tli_rs_shift(s, s->events[x].call, at, will ? bytes : -bytes);
    if (will != was_right) tli_rs_shift(s, at, s->events[y].call, will ? bytes : -bytes);
    event->sibling = s->free_event;
    s->free_event = e;
    tli_rs_refresh_event(s, x);
}

// Numbers in time order with room between them.
static void tli_rs_number(tli_rs_seq *s) {
    int64_t order = 0;
    int32_t at;
    for (at = 0; at >= 0; at = s->places[at].behind) {
        s->places[at].order = order;
        order += (int64_t)1 << 24;
        s->work++;
    }
}

static void tli_rs_log_change(tli_rs_seq *s, int32_t call, int32_t place) {
    void *array = s->changes;
    if (!s->logs) return;
    if (!tli_grow(s->p->env, &array, &s->change_capacity, s->change_count, (int64_t)s->change_count + 1,
                  sizeof *s->changes)) { s->failed = 1; return; }
    s->changes = (tli_rs_change *)array;
    s->changes[s->change_count].call = call;
    s->changes[s->change_count++].place = place;
}

// Put a call in behind a place; -1 = no memory, nothing changed.
static int32_t tli_rs_put(tli_rs_seq *s, int32_t call, int32_t behind) {
    const tli_rs_problem *p = s->p;
    int32_t k, at, next, from = p->first_touch[call], to = p->first_touch[call + 1];
    int64_t live = p->input_bytes;  // between the call and the next
    tli_rs_place *place;
    if (!tli_rs_reserve_events(s, to - from) || !tli_rs_reserve_block(s)) return -1;
    at = tli_rs_new_place(s);
    if (at < 0) return -1;
    place = &s->places[at];
    next = s->places[behind].behind;
    place->call = call;
    place->first_event = -1;
    place->before = behind;
    place->behind = next;
    s->places[behind].behind = at;
    if (next >= 0) s->places[next].before = at; else s->last_place = at;
    place->order = next >= 0 ? (s->places[behind].order + s->places[next].order) / 2
                             : s->places[behind].order + ((int64_t)1 << 24);
    if (place->order == s->places[behind].order) tli_rs_number(s);
    if (next >= 0) live = tli_rs_held(s, next) - s->places[next].own - s->places[next].gradients;
    place->own = p->call_bytes[call];
    place->saves = place->overwrites = 0;
    place->gradients = s->places[behind].gradients;
    if (call % 2) place->gradients = p->gradient_bytes[call / 2];
    if (call % 2) place->own -= place->gradients;
    tli_rs_join(s, at, live + place->own + place->gradients);
    if (call % 2 == 0 && call < tli_rs_end_call(p)) s->cost += p->graph->nodes[call / 2].fwd_cost;
    for (k = from; k < to; k++) tli_rs_link_event(s, at, &p->touches[k]);
    tli_rs_refresh(s, at);
    s->used++;
    s->work += 8 + 6 * (uint64_t)(to - from);
    return at;
}

static void tli_rs_take(tli_rs_seq *s, int32_t at) {
    tli_rs_place *place = &s->places[at];
    int32_t call = place->call;
    while (place->first_event >= 0) {
        int32_t e = place->first_event;
        place->first_event = s->events[e].sibling;
        tli_rs_unlink_event(s, e);
        s->work += 6;
    }
    tli_rs_leave(s, at);
    if (call % 2 == 0 && call < tli_rs_end_call(s->p)) s->cost -= s->p->graph->nodes[call / 2].fwd_cost;
    s->places[place->before].behind = place->behind;
    if (place->behind >= 0) s->places[place->behind].before = place->before; else s->last_place = place->before;
    if (s->blocks[place->block].count) tli_rs_rescan(s, place->block);
    place->behind = s->free_place;
    place->call = -1;
    s->free_place = at;
    s->used--;
    s->work += 8;
}

// -- search: changes that can be undone --

static int32_t tli_rs_insert(tli_rs_seq *s, int32_t call, int32_t behind) {
    int32_t at = tli_rs_put(s, call, behind);
    if (at >= 0) tli_rs_log_change(s, -1, at);
    return at;
}

static void tli_rs_remove(tli_rs_seq *s, int32_t at) {
    int32_t call = s->places[at].call, before = s->places[at].before;
    tli_rs_take(s, at);
    tli_rs_log_change(s, call, before);
}

static void tli_rs_undo(tli_rs_seq *s, int32_t count) {
    while (s->change_count > count) {
        tli_rs_change *change = &s->changes[--s->change_count];
        if (change->call < 0) tli_rs_take(s, change->place);
        else tli_rs_put(s, change->call, change->place);
    }
}

static int tli_rs_is_forward(const tli_rs_seq *s, int32_t at) {
    int32_t call = s->places[at].call;
    return call >= 0 && call % 2 == 0 && call < tli_rs_end_call(s->p);
}

// Whether all that is used later was also made earlier.
static int tli_rs_can_remove(const tli_rs_seq *s, int32_t at) {
    int32_t e;
    if (!tli_rs_is_forward(s, at)) return 0;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling)
        if (!s->events[e].is_use && s->events[e].before < 0 && tli_rs_is_use(s, s->events[e].behind)) return 0;
    return 1;
}

static int tli_rs_is_useless(const tli_rs_seq *s, int32_t at) {
    int32_t e, ran;
    if (!tli_rs_is_forward(s, at)) return 0;
    ran = tli_rs_ran_item(s->p, s->places[at].call / 2);
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling)
        if (!s->events[e].is_use && tli_rs_is_use(s, s->events[e].behind) &&
            (s->events[e].item != ran || s->events[e].before < 0)) return 0;
    return 1;
}

// -- search: the search --

typedef struct tli_rs_search {
    const tli_rs_problem *p;
    tli_rs_seq    seq;
    tli_rs_calls  best;
    uint64_t      best_cost;     // of forwards
    tl_random     random;
    uint64_t      limit;         // of work in seq.work
    uint64_t goal, bwd_cost;  // no forwards cost less together; of all backwards
    tli_remat_watch *watch;
    int32_t      *stack;         // [items + 1]
    int32_t      *closure;       // [nodes] being weighed
    int32_t      *chosen;        // [nodes] the best so far
    uint32_t     *stamp;         // [nodes]
    uint32_t      stamped;
    int32_t       chosen_count, chosen_place;
    int64_t      *ratio;         // [items] 2 log (cost of its forward / bytes)
    int64_t       excess;        // bytes of the fullest call over the budget
    int64_t       noise;         // width of the random part of scores
    int32_t       distance;      // exponent of the distance, in halves
    int           is_exact;      // bytes beyond what is too much do not count
    uint64_t      tries;
} tli_rs_search;

static int32_t tli_rs_below(tli_rs_search *r, int32_t limit) {
    return (int32_t)((tl_next_random(&r->random) >> 33) * (uint64_t)limit >> 31);
}

// The event of an item at or before a moment; -1 = none.
static int32_t tli_rs_event_before(tli_rs_seq *s, int32_t item, int64_t order) {
    int32_t e = s->last[item];
    while (e >= 0 && s->places[s->events[e].call].order > order) { e = s->events[e].before; s->work++; }
    return e;
}

// Price making an item again just before its next use: nodes to run, in r->closure. What they read
// and is not there by then is either made again too or held over the full call, whichever costs
// less for a byte. Returns the score, less is better; *count 0 = it frees nothing.
static int64_t tli_rs_weigh(tli_rs_search *r, int32_t item, int32_t x, int32_t y, int64_t full,
                            int32_t *count) {
    tli_rs_seq *s = &r->seq;
    const tl_graph *graph = r->p->graph;
    int64_t when = s->places[s->events[y].call].order - 1, score;
    int64_t freed = r->p->item_bytes[item];
    uint64_t cost;
    int32_t at, i;
    r->closure[0] = tli_rs_maker(r->p, item);
    r->stamp[r->closure[0]] = ++r->stamped;
    cost = graph->nodes[r->closure[0]].fwd_cost;
    *count = 1;
    for (at = 0; at < *count; at++) {
        const tl_node *node = &graph->nodes[r->closure[at]];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, id = graph->outputs[tensor].node, e;
            int64_t bytes = (int64_t)graph->outputs[tensor].bytes;
            if (graph->nodes[id].is_input || r->stamp[id] == r->stamped) continue;
            e = tli_rs_event_before(s, tensor, when);
            s->work += 4;
            if (e < 0) { *count = 0; return 0; }
            if (tli_rs_is_use(s, s->events[e].behind)) continue;
            if (s->places[s->events[e].call].order >= full) continue;
            if (bytes < freed && tli_rs_log(graph->nodes[id].fwd_cost) - tli_rs_log((uint64_t)bytes) >
                                     tli_rs_log(cost) - tli_rs_log((uint64_t)freed) + 16384) {
                freed -= bytes;
                continue;
            }
            r->stamp[id] = r->stamped;
            r->closure[(*count)++] = id;
            cost += graph->nodes[id].fwd_cost;
        }
    }
    if (!freed) { *count = 0; return 0; }
    if (r->is_exact && freed > r->excess) freed = r->excess;
    score = 2 * tli_rs_log(cost) - 2 * tli_rs_log((uint64_t)freed);
    score -= r->distance * tli_rs_log((uint64_t)(when + 1 - s->places[s->events[x].call].order) >> 12);
    if (r->noise) score += (int64_t)(tl_next_random(&r->random) >> 40) * r->noise >> 24;
    return score;
}

// Find what to make again later instead of holding it across a call that is over the budget.
static int tli_rs_choose(tli_rs_search *r, int32_t full) {
    tli_rs_seq *s = &r->seq;
    int64_t order = s->places[full].order, least = 0;
    int32_t item, items = r->p->item_count - r->p->node_count;
    r->chosen_count = 0;
    r->excess = tli_rs_held(s, full) - s->budget;
    for (item = 0; item < items; item++) {
        int32_t x, y, count;
        int64_t score;
        if (!r->p->item_bytes[item] || s->last[item] < 0) continue;
        x = tli_rs_event_before(s, item, order);
        s->work++;
        if (x < 0 || s->events[x].call == full) continue;
        y = s->events[x].behind;
        if (!tli_rs_is_use(s, y)) continue;
        if (r->chosen_count) {  // its own forward is the least that it can cost
            score = s->places[s->events[y].call].order - s->places[s->events[x].call].order;
            score = r->ratio[item] - r->distance * tli_rs_log((uint64_t)score >> 12);
            if (r->is_exact && r->p->item_bytes[item] > r->excess)
                score += 2 * tli_rs_log((uint64_t)r->p->item_bytes[item]) - 2 * tli_rs_log((uint64_t)r->excess);
            if (score >= least) continue;
        }
        score = tli_rs_weigh(r, item, x, y, order, &count);
        if (!count || (r->chosen_count && score >= least)) continue;
        least = score;
        r->chosen_count = count;
        r->chosen_place = s->events[y].call;
        tli_copy(r->chosen, r->closure, (size_t)count * sizeof *r->closure);
    }
    return r->chosen_count > 0;
}

// Put the chosen nodes in before their place, in listing order.
static int tli_rs_apply(tli_rs_search *r) {
    int32_t i, k, behind = r->seq.places[r->chosen_place].before;
    for (i = 1; i < r->chosen_count; i++) {
        int32_t id = r->chosen[i];
        for (k = i; k > 0 && r->chosen[k - 1] > id; k--) r->chosen[k] = r->chosen[k - 1];
        r->chosen[k] = id;
    }
    for (i = 0; i < r->chosen_count; i++) {
        behind = tli_rs_insert(&r->seq, 2 * r->chosen[i], behind);
        if (behind < 0) return 0;
    }
    return 1;
}

// The call with the most bytes.
static int32_t tli_rs_find_full(tli_rs_seq *s) {
    int32_t b, at, full = 0;
    for (b = 0; b >= 0; b = s->blocks[b].behind) {
        s->work++;
        if (s->blocks[b].top + s->blocks[b].add > s->blocks[full].top + s->blocks[full].add) full = b;
    }
    for (at = s->blocks[full].first; s->places[at].held != s->blocks[full].top;) at = s->places[at].behind;
    return at;
}

// Put recomputations in until the budget is kept; 0 where that costs too much, or fails.
static int tli_rs_mend(tli_rs_search *r, uint64_t most_cost, int32_t steps) {
    tli_rs_seq *s = &r->seq;
    while (s->over_count > 0) {
        if (s->cost > most_cost || steps-- <= 0 || s->failed) return 0;
        if (!tli_rs_choose(r, tli_rs_find_full(s)) || !tli_rs_apply(r)) return 0;
    }
    return s->cost <= most_cost;
}

#define TLI_RS_SPANS 12

typedef struct tli_rs_spans {
    int64_t orders[TLI_RS_SPANS], bytes[TLI_RS_SPANS];
    int32_t count;
} tli_rs_spans;

// From when on which bytes would be more or less, up to a call, were it taken out. 0 = too many.
static int tli_rs_list_spans(const tli_rs_seq *s, int32_t at, tli_rs_spans *spans) {
    int32_t e;
    spans->count = 0;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling) {
        const tli_rs_event *event = &s->events[e];
        int is_wanted = tli_rs_is_use(s, event->behind);
        if (event->before < 0 || event->is_use == is_wanted || !s->p->item_bytes[event->item]) continue;
        if (spans->count == TLI_RS_SPANS) return 0;
        spans->orders[spans->count] = s->places[s->events[event->before].call].order;
        spans->bytes[spans->count++] = event->is_use ? -s->p->item_bytes[event->item]
                                                     : s->p->item_bytes[event->item];
    }
    return 1;
}

// What is more at a moment, and since when it is that much; 0 = nothing is more from there back.
static int tli_rs_sum_spans(const tli_rs_spans *spans, int64_t order, int64_t *more, int64_t *since) {
    int32_t i;
    int any = 0;
    *more = 0;
    *since = -1;
    for (i = 0; i < spans->count; i++) {
        if (spans->orders[i] >= order) continue;
        any |= spans->bytes[i] > 0;
        *more += spans->bytes[i];
        if (spans->orders[i] > *since) *since = spans->orders[i];
    }
    return any;
}

// Whether the budget is kept without a recomputation: asked often, answered before any work is done.
static int tli_rs_may_fit(tli_rs_seq *s, int32_t at) {
    tli_rs_spans spans;
    int64_t more = 0, since = INT64_MAX;
    int32_t q = s->places[at].before;
    if (!tli_rs_list_spans(s, at, &spans)) return 1;
    while (q > 0) {
        const tli_rs_place *place = &s->places[q];
        const tli_rs_block *block = &s->blocks[place->block];
        s->work++;
        if (place->order <= since && !tli_rs_sum_spans(&spans, place->order, &more, &since)) return 1;
        if (block->top + block->add + more <= s->budget && s->places[block->first].order > since) {
            q = s->places[block->first].before;
            continue;
        }
        if (place->held + block->add + more > s->budget) return 0;
        q = place->before;
    }
    return 1;
}

// Take out every recomputation that the budget does not need, from a place on, all around.
static void tli_rs_tidy(tli_rs_search *r, int32_t from) {
    tli_rs_seq *s = &r->seq;
    int32_t at = s->places[from].call < 0 ? 0 : from, count = s->used;
    while (count-- > 0 && !s->failed) {
        int32_t next = s->places[at].behind, mark = s->change_count;
        s->work += 2;
        if (at && tli_rs_can_remove(s, at)) {
            s->work += 8;
            if (tli_rs_is_useless(s, at) || tli_rs_may_fit(s, at)) {
                tli_rs_remove(s, at);
                if (s->over_count) tli_rs_undo(s, mark);
            }
        }
        at = next < 0 ? 0 : next;
    }
}

// -- search: one try: take out, mend, tidy, keep or undo --

static int32_t tli_rs_pick_forward(tli_rs_search *r) {
    tli_rs_seq *s = &r->seq;
    int32_t tries;
    for (tries = 0; tries < 64; tries++) {
        int32_t at = 1 + tli_rs_below(r, s->place_count - 1);
        s->work += 4;
        if (tli_rs_can_remove(s, at)) return at;
    }
    return -1;
}

// Take some recomputations out: some in a row near one that was drawn.
static int32_t tli_rs_ruin(tli_rs_search *r) {
    tli_rs_seq *s = &r->seq;
    int32_t at = tli_rs_pick_forward(r), wanted = 1 + tli_rs_below(r, 6), span = 4 * wanted + 4, mark = 0;
    int forwards = tli_rs_below(r, 2);
    if (at < 0) return -1;
    while (at > 0 && wanted > 0 && span-- > 0) {
        int32_t next = forwards ? s->places[at].behind : s->places[at].before;
        if (tli_rs_can_remove(s, at) && (!s->change_count || tli_rs_below(r, 3))) {
            mark = s->places[at].before;
            tli_rs_remove(s, at);
            wanted--;
        }
        at = next;
    }
    return mark;
}

// Move a forward to another time at which its inputs were made and before its first use.
static int32_t tli_rs_move(tli_rs_search *r) {
    tli_rs_seq *s = &r->seq;
    int32_t tries, at = -1, e, lo = 0, hi = -1, call, steps;
    for (tries = 0; tries < 64 && at < 0; tries++) {
        s->work += 4;
        at = 1 + tli_rs_below(r, s->place_count - 1);
        if (!tli_rs_is_forward(s, at)) at = -1;
    }
    if (at < 0) return -1;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling) {
        int32_t x = s->events[e].before;
        if (s->events[e].is_use) while (x >= 0 && s->events[x].is_use) x = s->events[x].before;
        if (x >= 0 && s->places[s->events[x].call].order > s->places[lo].order) lo = s->events[x].call;
        x = s->events[e].behind;
        if (s->events[e].is_use || !tli_rs_is_use(s, x)) continue;
        if (hi < 0 || s->places[s->events[x].call].order < s->places[hi].order) hi = s->events[x].call;
    }
    call = s->places[at].call;
    steps = 1 + tli_rs_below(r, 8);
    e = s->places[at].before;
    if (hi < 0) return -1;
    if (tli_rs_below(r, 2)) {
        while (steps-- > 0 && e != lo) e = s->places[e].before;
        if (e == s->places[at].before) return -1;
    } else {
        e = at;
        while (steps-- > 0 && s->places[e].behind != hi) e = s->places[e].behind;
        if (e == at) return -1;
    }
    tli_rs_remove(s, at);
    tli_rs_insert(s, call, e);
    return e;
}

static int tli_rs_list_calls(tli_rs_seq *s, tli_rs_calls *list) {
    int32_t at;
    list->count = 0;
    for (at = s->places[0].behind; at >= 0 && !s->failed; at = s->places[at].behind)
        if (!tli_rs_add_call(s->p->env, list, s->places[at].call)) s->failed = 1;
    return !s->failed;
}

static int tli_rs_save_best(tli_rs_search *r) {
    if (!tli_rs_list_calls(&r->seq, &r->best)) return 0;
    r->best_cost = r->seq.cost;
    return 1;
}

static void tli_rs_try(tli_rs_search *r, uint64_t heat) {
    tli_rs_seq *s = &r->seq;
    uint64_t was = s->cost, most;
    int64_t u = 32 * 65536 - tli_rs_log((tl_next_random(&r->random) >> 32) + 1);  // -log2 of a ratio
    int32_t mark;
    s->change_count = 0;
    s->logs = 1;
    r->tries++;
    most = was + (heat >> 16) * (uint64_t)u + ((heat & 65535) * (uint64_t)u >> 16);
    r->noise = (int64_t)65536 * (1 + tli_rs_below(r, 4));
    if (!tli_rs_below(r, 8)) r->noise *= 8;
    r->distance = tli_rs_below(r, 4);
    r->is_exact = !tli_rs_below(r, 8);
    mark = tli_rs_below(r, 4) ? tli_rs_ruin(r) : tli_rs_move(r);
    if (mark >= 0 && tli_rs_mend(r, most, 40)) {
        tli_rs_tidy(r, mark);
        if (!s->failed && s->cost < r->best_cost) tli_rs_save_best(r);
        return;
    }
    tli_rs_undo(s, 0);
}

static int tli_rs_load(tli_rs_seq *s, const tli_rs_calls *calls) {
    int32_t i;
    tli_rs_empty_seq(s);
    s->logs = 0;
    for (i = 0; i < calls->count; i++)
        if (tli_rs_put(s, calls->calls[i], s->last_place) < 0) return 0;
    return 1;
}

// -- search: from a sequence to steps --

static void tli_rs_emit_drops(tli_rs_seq *s, int32_t at, tli_steps *list) {
    const tl_graph *graph = s->p->graph;
    const tli_rs_place *place = &s->places[at];
    int32_t e, over = -1;
    if (place->overwrites) {
        const tl_node *node = &graph->nodes[place->call / 2];
        over = graph->inputs[node->first_input + node->inplace].tensor;
    }
    for (e = place->first_event; e >= 0; e = s->events[e].sibling)
        if (s->events[e].item < graph->tensor_count && s->events[e].item != over &&
            !tli_rs_is_use(s, s->events[e].behind))
            tli_add_tensor_step(list, graph, TL_STEP_DROP, s->events[e].item);
}

static void tli_rs_emit(tli_rs_seq *s, tli_steps *list) {
    int32_t at;
    for (at = s->places[0].behind; at >= 0; at = s->places[at].behind) {
        const tli_rs_place *place = &s->places[at];
        tl_step_kind kind = place->saves ? TL_STEP_FORWARD_SAVE
                            : place->overwrites ? TL_STEP_FORWARD_INPLACE : TL_STEP_FORWARD;
        if (place->call == tli_rs_end_call(s->p)) continue;
        if (place->call % 2) kind = TL_STEP_BACKWARD;
        tli_add_step(list, tli_step_of(kind, place->call / 2, TL_ALL_OUTPUTS));
        tli_rs_emit_drops(s, at, list);
    }
}

// -- search: the whole --

static const tli_rs_rule tli_rs_rules[] = {
    { 2, 2, 2, 0, 0 }, { 2, 2, 2, 0, 1 }, { 2, 2, 1, 0, 0 }, { 2, 2, 4, 0, 0 }, { 2, 2, 0, 0, 0 },
    { 2, 1, 2, 0, 0 }, { 2, 4, 2, 0, 0 }, { 1, 2, 2, 0, 1 }, { 0, 0, 2, 0, 1 }, { 2, 2, 2, 1, 0 },
    { 2, 2, 2, 1, 1 }, { 2, 2, 0, 1, 1 }
};

#define TLI_RS_RULES ((int32_t)(sizeof tli_rs_rules / sizeof tli_rs_rules[0]))
#define TLI_RS_STARTS 4
#define TLI_RS_GREEDY_LIMIT 10000000  // work after which no further rule is tried

typedef struct tli_rs_start { tli_rs_calls calls; uint64_t cost; } tli_rs_start;

static void tli_rs_free_search(tli_rs_search *r, tli_rs_start *starts) {
    tl_env *env = r->p->env;
    int32_t i;
    tli_rs_free_seq(&r->seq);
    tli_release(env, r->best.calls);
    tli_release(env, r->closure);
    tli_release(env, r->chosen);
    tli_release(env, r->stamp);
    tli_release(env, r->ratio);
    for (i = 0; i < TLI_RS_STARTS; i++) tli_release(env, starts[i].calls.calls);
}

static tl_result tli_rs_init_search(const tli_rs_problem *p, tli_rs_search *r) {
    tl_result result;
    uint64_t nodes = (uint64_t)p->node_count;
    int32_t i;
    tli_zero(r, sizeof *r);
    r->p = p;
    r->best_cost = UINT64_MAX;
    r->random.state = 1;
    for (i = 0; i < p->node_count; i++)
        if (!p->inference && p->graph->nodes[i].has_grad) r->bwd_cost += p->graph->nodes[i].bwd_cost;
    r->closure = (int32_t *)tli_alloc_array(p->env, nodes, sizeof *r->closure);
    r->chosen = (int32_t *)tli_alloc_array(p->env, nodes, sizeof *r->chosen);
    r->stamp = (uint32_t *)tli_alloc_array(p->env, nodes, sizeof *r->stamp);
    r->ratio = (int64_t *)tli_alloc_array(p->env, (uint64_t)p->item_count, sizeof *r->ratio);
    result = tli_rs_init_seq(p, &r->seq);
    if (!result && (!r->closure || !r->chosen || !r->stamp || !r->ratio)) {
        tli_rs_free_seq(&r->seq);
        result = TL_ERROR_NO_MEMORY;
    }
    if (result) {
        tli_release(p->env, r->closure);
        tli_release(p->env, r->chosen);
        tli_release(p->env, r->stamp);
        tli_release(p->env, r->ratio);
        return result;
    }
    for (i = 0; i < p->item_count; i++)
        r->ratio[i] = 2 * tli_rs_log(p->graph->nodes[tli_rs_maker(p, i)].fwd_cost) -
                      2 * tli_rs_log((uint64_t)p->item_bytes[i]);
    return TL_OK;
}

// Remember the sequence among the best few.
static int tli_rs_keep_start(tli_rs_search *r, tli_rs_start *starts) {
    tli_rs_seq *s = &r->seq;
    int32_t i, worst = 0;
    for (i = 0; i < TLI_RS_STARTS; i++) {
        if (starts[i].calls.count && starts[i].cost == s->cost) return 1;
        if (!starts[worst].calls.count) continue;
        if (!starts[i].calls.count || starts[i].cost > starts[worst].cost) worst = i;
    }
    if (starts[worst].calls.count && starts[worst].cost <= s->cost) return 1;
    starts[worst].cost = s->cost;
    return tli_rs_list_calls(s, &starts[worst].calls);
}

// Tidy the loaded sequence where it keeps the budget, and begin with it too. 0 = no memory.
static int tli_rs_add_start(tli_rs_search *r, tli_rs_start *starts) {
    tli_rs_seq *s = &r->seq;
    if (s->failed) return 0;
    if (s->over_count) return 1;
    s->change_count = 0;
    s->logs = 1;
    tli_rs_tidy(r, 0);
    if (s->failed || (s->cost < r->best_cost && !tli_rs_save_best(r))) return 0;
    return tli_rs_keep_start(r, starts);
}

// Whether there is work left to do, and anything left to gain.
static int tli_rs_goes_on(tli_rs_search *r) {
    uint64_t *known = &r->watch->now.cost, cost = r->best_cost + r->bwd_cost;
    if (r->seq.failed || r->seq.work >= r->limit || r->best_cost <= r->goal) return 0;
    if (!*known || cost < *known) *known = cost;
    return !tli_remat_stops(r->watch, r->seq.work);
}

// Phases of doubling length, each cooling down from a little above nothing; the first ones begin with
// the starts, the later ones with the best. Nothing depends on the limit but when it ends.
static void tli_rs_improve(tli_rs_search *r, tli_rs_start *starts) {
    tli_rs_seq *s = &r->seq;
    static const uint8_t heats[] = { 16, 2, 255, 1 };  // of the mean cost of a call, in 16ths
    int32_t phase, turn;
    for (phase = 0; tli_rs_goes_on(r); phase++) {
        const tli_rs_calls *from = &r->best;
        int32_t length = 400 << (phase < 24 ? phase / 2 : 12);
        uint64_t heat;
        if (phase < TLI_RS_STARTS) from = &starts[phase].calls;
        if (!from->count) continue;
        if (!tli_rs_load(s, from) || s->over_count) return;
        heat = r->best_cost / (uint64_t)s->used / 16;
        heat = (heat < TLI_RS_MOST_COST >> 12 ? heat : TLI_RS_MOST_COST >> 12) * heats[phase % 4];
        for (turn = 0; turn < length && tli_rs_goes_on(r); turn++) {
            tli_rs_try(r, heat);
            if (turn % (length / 20 + 1) == length / 20) heat -= heat / 3;
        }
    }
}

static int tli_rs_load_program(tli_rs_seq *s, const tli_rs_greedy *g) {
    tli_rs_calls bare;
    tli_zero(&bare, sizeof bare);
    bare.calls = g->program;
    bare.count = g->program_count;
    return tli_rs_load(s, &bare);
}

// Equal layers: the most slots whose binomial schedule keeps the budget.
static int tli_rs_begin_chain(tli_rs_search *r, tli_rs_start *starts) {
    const tli_rs_problem *p = r->p;
    tli_rs_calls calls;
    int32_t low = 0, high = p->node_count, *slots, i;
    int ok;
    slots = (int32_t *)tli_alloc_array(p->env, (uint64_t)p->node_count, sizeof *slots);
    tli_zero(&calls, sizeof calls);
    for (ok = slots != NULL; ok && high - low > 1;) {
        int32_t middle = low + (high - low) / 2;
        tli_chain chain;
        chain.graph = p->graph;
        chain.list = tli_steps_of(p->env);
        chain.reached = 0;
        if (middle > 1 || p->node_count < 200) tli_reverse_chain(&chain, middle, slots);
        ok = !chain.list.failed;
        for (calls.count = i = 0; i < chain.list.count && ok; i++) {
            const tl_step *step = &chain.list.steps[i];
            if (step->kind > TL_STEP_BACKWARD) continue;
            ok = tli_rs_add_call(p->env, &calls, 2 * step->node + (step->kind == TL_STEP_BACKWARD));
        }
        ok = ok && tli_rs_add_call(p->env, &calls, tli_rs_end_call(p)) && tli_rs_load(&r->seq, &calls);
        if (ok && chain.list.count && !r->seq.over_count) {
            low = middle;
            ok = tli_rs_add_start(r, starts);
        } else {
            high = middle;
        }
        tli_release(p->env, chain.list.steps);
    }
    tli_release(p->env, calls.calls);
    tli_release(p->env, slots);
    return ok;
}

static int tli_rs_is_equal_chain(const tl_graph *graph) {
    const tl_node *first = &graph->nodes[graph->node_count > 1];
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (node->is_input != (id == 0) || node->output_count != 1 || node->input_count != (id > 0) ||
            node->has_grad != (id > 0) || node->keep) return 0;
        if (graph->outputs[node->first_output].bytes != graph->outputs[first->first_output].bytes) return 0;
        if (!id) continue;
        if (graph->inputs[node->first_input].tensor != graph->nodes[id - 1].first_output) return 0;
        if (node->fwd_cost != first->fwd_cost || node->saved_bytes != first->saved_bytes) return 0;
    }
    return graph->node_count > 2;
}

// All that there is to begin with. 0 = no memory.
static int tli_rs_begin(tli_rs_search *r, tli_rs_greedy *g, tli_rs_start *starts) {
    const tli_rs_problem *p = r->p;
    int32_t i;
    r->distance = 2;
    if (!tli_rs_load_program(&r->seq, g)) return 0;
    if (!r->seq.over_count || tli_rs_mend(r, TLI_RS_MOST_COST, 4 * p->node_count + 64))
        if (!tli_rs_add_start(r, starts)) return 0;
    if (r->seq.failed) return 0;
    if (!p->inference && tli_rs_is_equal_chain(p->graph) && !tli_rs_begin_chain(r, starts)) return 0;
    for (i = 0; i < TLI_RS_RULES && (!r->best.count || g->work < TLI_RS_GREEDY_LIMIT); i++) {
        if (tli_rs_run_greedy(g, &tli_rs_rules[i], p->budget)) {
            if (!tli_rs_load(&r->seq, &g->calls) || !tli_rs_add_start(r, starts)) return 0;
        } else if (g->failed) {
            return 0;
        }
    }
    return 1;
}

static tl_result tli_rs_finish(tli_rs_search *r, tli_steps *best, uint64_t *cost) {
    if (!tli_rs_load(&r->seq, &r->best))
        return TL_ERROR_NO_MEMORY;
    *best = tli_steps_of(r->p->env);
    tli_rs_emit(&r->seq, best);
    if (best->failed) {
        tli_release(r->p->env, best->steps);
        tli_zero(best, sizeof *best);
        return TL_ERROR_NO_MEMORY;
    }
    *cost = r->seq.cost + r->bwd_cost;
    return TL_OK;
}

// -- search: what is the least budget --

// The largest working set of one call: no plan keeps less.
static int64_t tli_rs_find_floor(const tli_rs_problem *p, int32_t *node) {
    int64_t most = p->input_bytes;
    int32_t call, k;
    *node = -1;
    for (call = 0; call < tli_rs_end_call(p); call++) {
        int64_t bytes = p->call_bytes[call];
        int is_inplace = call % 2 == 0 && p->graph->nodes[call / 2].inplace >= 0;
        if (call % 2 ? p->inference || !p->graph->nodes[call / 2].has_grad : !p->is_wanted[call / 2]) continue;
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++)
            if (p->touches[k].is_use) bytes += p->item_bytes[p->touches[k].item];
        if (is_inplace) bytes -= p->item_bytes[p->graph->nodes[call / 2].first_output];
        if (p->input_bytes + bytes <= most) continue;
        most = p->input_bytes + bytes;
        *node = call / 2;
    }
    return most;
}

// Load a sequence that keeps a budget; -1 = no memory, 0 = none found.
static int tli_rs_find_any(tli_rs_search *r, tli_rs_greedy *g, int64_t budget) {
    int32_t i;
    r->seq.budget = budget;
    r->distance = 2;
    r->noise = 0;
    if (!tli_rs_load_program(&r->seq, g)) return -1;
    if (!r->seq.over_count || tli_rs_mend(r, TLI_RS_MOST_COST, 4 * r->p->node_count + 64)) return 1;
    for (i = 0; i < TLI_RS_RULES; i++) {
        if (tli_rs_run_greedy(g, &tli_rs_rules[i], budget)) {
            if (!tli_rs_load(&r->seq, &g->calls)) return -1;
            if (!r->seq.over_count) return 1;
        }
        if (g->failed) return -1;
    }
    return r->seq.failed ? -1 : 0;
}

// Bisect between the floor and the peak of the bare program, both tried. Returns 0 where memory ran
// out; the sequence of the least budget is in r->best.
static int tli_rs_find_least(tli_rs_search *r, tli_rs_greedy *g, int64_t *least, int32_t *node) {
    tli_rs_seq *s = &r->seq;
    int64_t low = tli_rs_find_floor(r->p, node), high;
    int32_t full;
    int found = tli_rs_find_any(r, g, low);
    *least = low;
    if (found < 0) return 0;
    if (found) return tli_rs_save_best(r);
    if (!tli_rs_load_program(s, g)) return 0;
    high = tli_rs_held(s, tli_rs_find_full(s));
    if (!tli_rs_save_best(r)) return 0;
    while (high - low > 1 + high / 4096) {
        found = tli_rs_find_any(r, g, low + (high - low) / 2);
        if (found < 0) return 0;
        if (!found) { low += (high - low) / 2; continue; }
        high = tli_rs_held(s, tli_rs_find_full(s));
        if (!tli_rs_save_best(r)) return 0;
    }
    if (!tli_rs_load(s, &r->best)) return 0;
    full = tli_rs_find_full(s);
    *least = tli_rs_held(s, full);
    *node = s->places[full].call / 2;
    return 1;
}

// Lower the peak of the best sequence to the budget by mending it again and again; 1 = done.
static int tli_rs_squeeze(tli_rs_search *r, tli_rs_greedy *g, tli_rs_start *starts, int64_t *least,
                          int32_t *node) {
    tli_rs_seq *s = &r->seq;
    int32_t tries, floor_node;
    int64_t floor = tli_rs_find_floor(r->p, &floor_node);
    if (!tli_rs_find_least(r, g, least, node)) return 0;
    for (tries = 0; tries < 200 && *least > r->p->budget && r->p->budget >= floor; tries++) {
        int32_t full;
        int64_t peak;
        s->budget = r->p->budget;
        if (!tli_rs_load(s, &r->best)) return 0;
        r->noise = (int64_t)65536 * tries / 50;
        r->distance = tries % 4;
        tli_rs_mend(r, TLI_RS_MOST_COST, 2 * r->p->node_count + 64);
        if (s->failed) return 0;
        full = tli_rs_find_full(s);
        peak = tli_rs_held(s, full);
        if (peak < *least) {
            *least = peak;
            *node = s->places[full].call / 2;
            if (!tli_rs_save_best(r)) return 0;
        }
    }
    s->budget = r->p->budget;
    if (*least > r->p->budget) { r->best.count = 0; return 1; }
    r->best_cost = UINT64_MAX;
    return tli_rs_load(s, &r->best) && tli_rs_add_start(r, starts);
}

static tl_result tli_rs_run(const tli_remat_input *in, tli_rs_search *r, tli_rs_greedy *g, tli_rs_start *starts,
                            uint64_t *work, uint64_t *least_budget, int32_t *limiting_node) {
    uint64_t spent;
    int64_t least = 0;
    if (!tli_rs_begin(r, g, starts)) return TL_ERROR_NO_MEMORY;
    if (!r->best.count && !tli_rs_squeeze(r, g, starts, &least, limiting_node))
        return TL_ERROR_NO_MEMORY;
    *least_budget = (uint64_t)least;
    *work = r->seq.work + g->work;
    if (!r->best.count)
        return TL_ERROR_INFEASIBLE;
    spent = g->work;
    r->goal = in->bound > r->bwd_cost ? in->bound - r->bwd_cost : 0;
    r->watch = in->watch;
    r->limit = in->work_limit > spent ? in->work_limit - spent : 0;
    tli_rs_improve(r, starts);
    *work = r->seq.work + spent;
    return r->seq.failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

static tl_result tli_remat_search(const tli_remat_input *in, tli_steps *best, uint64_t *cost, uint64_t *work,
                                  uint64_t *least_budget, int32_t *limiting_node) {
    tli_rs_problem p;
    tli_rs_search r;
    tli_rs_greedy g;
    tli_rs_start starts[TLI_RS_STARTS];
    tl_result result;
    tli_zero(best, sizeof *best);
    tli_zero(starts, sizeof starts);
    *cost = *work = *least_budget = 0;
    *limiting_node = -1;
    result = tli_rs_init_problem(in, &p);
    if (result) return result;
    result = tli_rs_init_search(&p, &r);
    if (result) { tli_rs_free_problem(&p); return result; }
    result = tli_rs_init_greedy(&p, &g);
    if (!result) {
        result = tli_rs_run(in, &r, &g, starts, work, least_budget, limiting_node);
        tli_rs_free_greedy(&g);
    }
    if (!result) result = tli_rs_finish(&r, best, cost);
    tli_rs_free_search(&r, starts);
    tli_rs_free_problem(&p);
    return result;
}

// -- remat: the parts joined --

// Without a limit of the caller's: steps per node and node, within bounds. A step is 2 to 3 ns: a tenth of a
// second at 100 nodes, from 250 nodes on two thirds of one.
#define TLI_REMAT_WORK UINT64_C(4000)
#define TLI_REMAT_LEAST_WORK UINT64_C(30000000)
#define TLI_REMAT_MOST_WORK UINT64_C(250000000)

typedef struct tli_remat {
    tl_env          quiet;        // memory of the caller's env; what fails on the way is no error of the call
    const tl_graph *graph;
    uint64_t        budget;       // of the plan alone
    uint64_t        work, work_limit, bound, least, floor;
    int32_t         inference, node, floor_node;
    int32_t         is_over;      // 1 = what stands beside the plan is more than the budget
    int32_t         none;         // 1 = certainly no plan fits
    int32_t         uncountable;  // 1 = numbers too large for the search
    tli_remat_watch watch;
    tl_plan         plan;         // the best so far; no steps = none
    int32_t         found;
} tli_remat;

// A part has done some work.
static void tli_remat_add_work(tli_remat *r, uint64_t work) {
    r->work += work;
    r->watch.before = r->watch.now.work = r->work;
    r->watch.now.bound_cost = r->bound;
}

static uint64_t tli_remat_share(const tli_remat *r, uint64_t part, uint64_t of) {
    uint64_t left = r->work < r->work_limit ? r->work_limit - r->work : 0;
    return r->watch.stopped ? 0 : left / of * part;
}

// Keep a measured plan where it fits and none found before is as cheap; otherwise it is released.
static void tli_remat_offer(tli_remat *r, tl_plan *plan) {
    if (!r->is_over && plan->peak_bytes <= r->budget && (!r->found || plan->cost < r->plan.cost)) {
        tl_plan last = r->plan;
        r->plan = *plan;
        *plan = last;
        r->found = 1;
        r->watch.now.cost = r->plan.cost;
    }
    tl_free_plan(&r->quiet, plan);
}

// Whatever made the steps, the simulator has the last word: what it refuses is not offered.
static tl_result tli_remat_offer_steps(tli_remat *r, tli_steps *steps) {
    tl_plan plan;
    tl_result result;
    tli_zero(&plan, sizeof plan);
    result = tli_finish_plan(steps, "tl_plan_remat", r->graph, r->inference, &plan);
    if (!result) tli_remat_offer(r, &plan);
    return result == TL_ERROR_NO_MEMORY ? result : TL_OK;
}

static int tli_remat_is_done(const tli_remat *r) { return r->found && r->plan.cost <= r->bound; }

// No plan fits: what is known of the least budget.
static tl_result tli_remat_rule_out(tli_remat *r) {
    r->none = 1;
    if (r->floor <= r->budget && !r->is_over) { r->floor = r->budget + 1; r->floor_node = -1; }
    return TL_OK;
}

// Everything kept, and what no plan can do without: the bound without any search.
static tl_result tli_remat_begin(tli_remat *r) {
    uint64_t work = 0;
    tl_plan plan;
    tl_result result = tl_plan_keep_all(&r->quiet, r->graph, r->inference, &plan);
    r->node = r->floor_node = -1;
    if (result) return result;
    r->least = plan.peak_bytes;
    tli_remat_offer(r, &plan);
    result = tli_remat_floor(&r->quiet, r->graph, r->inference, &r->floor, &r->floor_node);
    if (result) return result;
    if (r->floor > r->budget || r->is_over) return tli_remat_rule_out(r);
    result = tli_remat_bound(&r->quiet, r->graph, UINT64_MAX, r->inference, &r->watch, 0, &r->bound, &work);
    tli_remat_add_work(r, (uint64_t)r->graph->node_count);
    return result;
}

static tl_result tli_remat_try_exact(tli_remat *r) {
    tli_steps steps = tli_steps_of(&r->quiet);
    uint64_t cost, bound, work = 0, limit = tli_remat_share(r, 1, r->graph->node_count > 64 ? 8 : 2);
    int32_t proven;
    tl_result result = tli_remat_exact(&r->quiet, r->graph, r->budget, r->inference, &r->watch, limit,
                                       &steps, &cost, &bound, &proven, &work);
    tli_remat_add_work(r, work);
    if (!result && bound > r->bound) r->watch.now.bound_cost = r->bound = bound;
    if (!result && proven) return tli_remat_offer_steps(r, &steps);
    tli_release(&r->quiet, steps.steps);
    return result == TL_ERROR_INFEASIBLE ? tli_remat_rule_out(r) : result;
}

static tl_result tli_remat_try_bound(tli_remat *r) {
    uint64_t bound, work = 0;
    tl_result result = tli_remat_bound(&r->quiet, r->graph, r->budget, r->inference, &r->watch,
                                       tli_remat_share(r, 1, 2), &bound, &work);
    tli_remat_add_work(r, work);
    if (!result && bound > r->bound) r->watch.now.bound_cost = r->bound = bound;
    return result == TL_ERROR_INFEASIBLE ? tli_remat_rule_out(r) : result;
}

// Without the work to improve it where that is of no use: then only a plan is wanted, or the least budget.
static tl_result tli_remat_try_search(tli_remat *r) {
    tli_remat_input in;
    tli_steps steps;
    uint64_t cost, work, least;
    int32_t node;
    tl_result result;
    tli_zero(&in, sizeof in);
    in.env = &r->quiet;
    in.graph = r->graph;
    in.budget = r->budget;
    in.inference = r->inference;
    in.work_limit = r->none ? 0 : tli_remat_share(r, 1, 1);
    in.bound = r->bound;
    in.watch = &r->watch;
    result = tli_remat_search(&in, &steps, &cost, &work, &least, &node);
    tli_remat_add_work(r, work);
    r->uncountable = result == TL_ERROR_OVERFLOW;
    if (result == TL_ERROR_INFEASIBLE && least < r->least) { r->least = least; r->node = node; }
    if (!result) return tli_remat_offer_steps(r, &steps);
    return result == TL_ERROR_INFEASIBLE || r->uncountable ? TL_OK : result;
}

// The least budget of a small graph, where nothing fits.
static tl_result tli_remat_find_least(tli_remat *r) {
    uint64_t floor, work = 0, limit = tli_remat_share(r, 1, 4);
    int32_t proven;
    tl_result result = tli_remat_exact_floor(&r->quiet, r->graph, r->inference, &r->watch, limit, &floor,
                                             &proven, &work);
    tli_remat_add_work(r, work);
    if (!result && floor > r->floor) { r->floor = floor; r->floor_node = -1; }
    if (!result && proven && r->floor < r->least) { r->least = r->floor; r->node = r->floor_node; }
    return result;
}

// The parts in turn, until one of them has the last word.
static tl_result tli_remat_run(tli_remat *r) {
    tl_result result = tli_remat_begin(r);
    if (!result && !r->none && !tli_remat_is_done(r)) result = tli_remat_try_exact(r);
    if (!result && !r->none && !tli_remat_is_done(r)) result = tli_remat_try_bound(r);
    if (!result && !tli_remat_is_done(r) && !(r->found && r->watch.stopped)) result = tli_remat_try_search(r);
    if (!result && !r->found) result = tli_remat_find_least(r);
    if (result) return result;
    if (r->found) return TL_OK;
    return r->uncountable && !r->none ? TL_ERROR_OVERFLOW : TL_ERROR_INFEASIBLE;
}

static tl_result tli_remat_refuse(tl_env *env, const tli_remat *r, const tl_remat_report *report) {
    tli_writer w = tli_begin_error(env, TL_ERROR_INFEASIBLE, "tl_plan_remat");
    tli_put(&w, "budget_bytes: no plan found below ");
    tli_put_u64(&w, report->least_budget_bytes);
    tli_put(&w, " bytes");
    if (report->limiting_node >= 0) {
        tli_put(&w, ", which node ");
        tli_put_i64(&w, report->limiting_node);
        tli_put(&w, " (");
        tli_put(&w, tl_name_node(r->graph, report->limiting_node));
        tli_put(&w, ") takes");
    }
    tli_put(&w, report->proven ? "; none fits" : "; whether one exists is not known");
    return tli_end_error(env, &w, TL_ERROR_INFEASIBLE);
}

static uint64_t tli_remat_with_base(uint64_t bytes, uint64_t base) {
    uint64_t sum;
    return tli_add_u64(bytes, base, &sum) ? sum : UINT64_MAX;
}

static void tli_remat_report(const tli_remat *r, tl_result result, tl_remat_report *report) {
    uint64_t base = r->watch.desc->base_bytes;
    report->limiting_node = -1;
    report->work = r->work;
    if (!result) {
        report->cost = r->plan.cost;
        report->bound_cost = r->plan.bound_cost;
        report->proven = report->cost == report->bound_cost;
        if (!report->proven && report->bound_cost)
            report->gap_ratio = (double)(report->cost - report->bound_cost) / (double)report->bound_cost;
    } else if (result == TL_ERROR_INFEASIBLE) {
        report->least_budget_bytes = tli_remat_with_base(r->least, base);
        report->bound_budget_bytes = tli_remat_with_base(r->floor, base);
        report->limiting_node = r->node;
        report->proven = r->none;
    }
}

static uint64_t tli_remat_default_work(const tl_graph *graph) {
    uint64_t nodes = (uint64_t)graph->node_count, work = TLI_REMAT_WORK * nodes * nodes;
    if (work < TLI_REMAT_LEAST_WORK) return TLI_REMAT_LEAST_WORK;
    return work < TLI_REMAT_MOST_WORK ? work : TLI_REMAT_MOST_WORK;
}

static tl_result tli_check_remat(tl_env *env, const tl_remat_desc *desc) {
    if (desc->inference == 0 || desc->inference == 1) return tl_check_graph(env, desc->graph);
    return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_plan_remat", "inference: must be 0 or 1");
}

TLI_IMPL tl_result tl_plan_remat(tl_env *env, const tl_remat_desc *desc, tl_plan *plan,
                                 tl_remat_report *report) {
    uint64_t budget;
    tli_remat r;
    tl_remat_report local;
    tl_result result;
    TL_ASSERT(desc && desc->graph && plan);
    if (!report) report = &local;
    tli_zero(plan, sizeof *plan);
    tli_zero(report, sizeof *report);
    tli_zero(&r, sizeof r);
    result = tli_check_remat(env, desc);
    if (result) return result;
    if (env) r.quiet = *env;
    r.quiet.log = NULL;
    budget = desc->budget_bytes ? desc->budget_bytes : UINT64_MAX;
    r.graph = desc->graph;
    r.inference = desc->inference;
    r.is_over = budget < desc->base_bytes;
    r.budget = budget > desc->base_bytes ? budget - desc->base_bytes : 0;
    r.work_limit = r.watch.now.work_limit = desc->work_limit ? desc->work_limit : tli_remat_default_work(r.graph);
    r.watch.desc = desc;
    result = tli_remat_run(&r);
    if (!result) {
        r.plan.base_bytes = desc->base_bytes;
        r.plan.bound_cost = r.bound < r.plan.cost ? r.bound : r.plan.cost;
        *plan = r.plan;
    } else {
        tl_free_plan(&r.quiet, &r.plan);
    }
    tli_remat_report(&r, result, report);
    if (result == TL_ERROR_INFEASIBLE) return tli_remat_refuse(env, &r, report);
    if (result == TL_ERROR_OVERFLOW)
        return tli_fail(env, result, "tl_plan_remat", "graph: bytes must fit 60 bits, costs of forwards 56");
    if (result) return tli_fail(env, result, "tl_plan_remat", "no memory to plan");
    return TL_OK;
}
#endif  // TL_NO_PLANNERS

// ============================================================================
// [10] BACKEND (implementation)
// ============================================================================

static const char *const tli_tier_names[] = { TL_TIERS(TLI_NAME) };

TLI_IMPL const char *tl_name_tier(tl_tier tier) {
    return tli_name(tli_tier_names, TL_TIER_COUNT, (int64_t)tier);
}

static const char *const tli_map_mode_names[] = { TL_MAP_MODES(TLI_NAME) };

TLI_IMPL const char *tl_name_map_mode(tl_map_mode mode) {
    return tli_name(tli_map_mode_names, TL_MAP_MODE_COUNT, (int64_t)mode);
}

// -- codecs: integers on the bits only, so that every backend and every compiler agrees --

static uint32_t tli_load_u32(const void *from) { uint32_t word; TLI_MEMCPY(&word, from, 4); return word; }

static uint16_t tli_load_u16(const void *from) { uint16_t half; TLI_MEMCPY(&half, from, 2); return half; }

// value / 2^shift, rounded to nearest, ties to even; sticky = there were more bits below. 1 <= shift.
static uint32_t tli_round_shift(uint32_t value, int32_t shift, int sticky) {
    uint32_t kept, rest, half;
    if (shift > 31) return 0;
    kept = value >> shift;
    rest = value & (((uint32_t)1 << shift) - 1);
    half = (uint32_t)1 << (shift - 1);
    return kept + (rest > half || (rest == half && (sticky || (kept & 1))));
}

static uint16_t tli_f16_of(uint32_t bits) {
    uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7FFFFFFFu, half;
    if (size > 0x7F800000u) half = 0x7E00u | (size >> 13 & 0x3FFu);
    else if (size >= 0x477FF000u) half = 0x7C00u;  // 65520 is half way to 2^16
    else if (size >= 0x38800000u) half = tli_round_shift(size - 0x38000000u, 13, 0);
    else half = tli_round_shift((size & 0x7FFFFFu) | 0x800000u, 126 - (int32_t)(size >> 23), 0);
    return (uint16_t)(sign | half);
}

static uint32_t tli_f32_of_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31u, mantissa = half & 0x3FFu;
    if (exponent == 31) return sign | 0x7F800000u | (mantissa ? 0x400000u | mantissa << 13 : 0);
    if (exponent) return sign | (exponent + 112) << 23 | mantissa << 13;
    if (!mantissa) return sign;
    for (exponent = 113; !(mantissa & 0x400u); exponent--) mantissa <<= 1;
    return sign | exponent << 23 | (mantissa & 0x3FFu) << 13;
}

static uint16_t tli_bf16_of(uint32_t bits) {
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static uint32_t tli_f32_of_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x400000u : bits;
}

// |x| = mantissa 2^exponent with exactly 24 bits in the mantissa; x finite and not 0.
static int32_t tli_split_f32(uint32_t bits, uint32_t *mantissa) {
    int32_t exponent = (int32_t)(bits >> 23 & 255u) - 150;
    *mantissa = bits & 0x7FFFFFu;
    if (exponent > -150) { *mantissa |= 0x800000u; return exponent; }
    for (exponent = -149; !(*mantissa & 0x800000u); exponent--) *mantissa <<= 1;
    return exponent;
}

// value 2^exponent (and a little more if sticky) as f32 bits, to nearest even. value in 2^24 .. 2^32-1.
static uint32_t tli_join_f32(uint32_t value, int32_t exponent, int sticky) {
    int32_t shift = 1, field;
    uint32_t bits;
    while (value >> shift >= 0x1000000u) shift++;
    field = exponent + shift + 150;
    if (field < 1) { shift += 1 - field; field = 1; }
    if (field > 254) return 0x7F7FFFFFu;
    bits = ((uint32_t)(field - 1) << 23) + tli_round_shift(value, shift, sticky);
    return bits < 0x7F800000u ? bits : 0x7F7FFFFFu;  // what was finite stays finite
}

// largest / 127. Of 512 m / 127 the floor has at least 26 bits, of which 24 stay.
static uint32_t tli_q8_scale(uint32_t largest) {
    uint32_t m, whole, rest;
    int32_t exponent;
    if (!largest) return 0;
    exponent = tli_split_f32(largest, &m);
    whole = (m << 7) / 127;
    rest = (m << 7) % 127 * 4;
    return tli_join_f32(whole * 4 + rest / 127, exponent - 9, rest % 127 != 0);
}

// x 127 / largest, to nearest even. The product has 31 bits, so 32-bit integers are enough.
static int8_t tli_q8_of(uint32_t bits, uint32_t largest) {
    uint32_t size = bits & 0x7FFFFFFFu, mx, ml, whole, rest, value;
    int32_t shift;
    if (size > 0x7F800000u) return -128;
    if (size == 0x7F800000u) {
        value = 127;
    } else if (!size || !largest) {
        return 0;
    } else {
        shift = tli_split_f32(largest, &ml) - tli_split_f32(size, &mx);
        whole = mx * 127 / ml;
        rest = mx * 127 % ml * 2;
        value = tli_round_shift(whole * 2 + (rest >= ml), shift + 1, rest != ml && rest != 0);
    }
    return (int8_t)(bits >> 31 ? -(int32_t)value : (int32_t)value);
}

static uint32_t tli_f32_of_q8(int8_t value, uint32_t scale) {
    uint32_t size = (uint32_t)(value < 0 ? -(int32_t)value : (int32_t)value), m;
    uint32_t sign = value < 0 ? 0x80000000u : 0;
    int32_t exponent;
    if (value == -128) return 0x7FC00000u;
    if (!size || !(scale & 0x7FFFFFFFu)) return sign;
    exponent = tli_split_f32(scale & 0x7FFFFFFFu, &m);
    return sign | tli_join_f32(m * 2 * size, exponent - 1, 0);
}

// The i-th f32 of a side of `bytes` bytes; a tail is taken as zero-padded.
static uint32_t tli_load_f32(const unsigned char *from, size_t bytes, size_t i) {
    uint32_t word = 0;
    if (bytes - 4 * i >= 4) return tli_load_u32(from + 4 * i);
    TLI_MEMCPY(&word, from + 4 * i, bytes - 4 * i);
    return word;
}

static void tli_compress_q8(unsigned char *to, const unsigned char *from, size_t bytes) {
    size_t count = bytes / 4 + (bytes % 4 != 0), first, i;
    for (first = 0; first < count; first += 32) {
        size_t end = count - first < 32 ? count : first + 32;
        uint32_t largest = 0, scale;
        for (i = first; i < end; i++) {
            uint32_t size = tli_load_f32(from, bytes, i) & 0x7FFFFFFFu;
            if (size < 0x7F800000u && size > largest) largest = size;
        }
        scale = tli_q8_scale(largest);
        TLI_MEMCPY(to, &scale, 4);
        to += 4;
        for (i = first; i < end; i++) *to++ = (unsigned char)tli_q8_of(tli_load_f32(from, bytes, i), largest);
    }
}

TLI_IMPL void tl_compress_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes) {
    const unsigned char *source = (const unsigned char *)from;
    unsigned char *target = (unsigned char *)to;
    size_t size = (size_t)bytes, count = size / 4 + (size % 4 != 0), i;
    if (codec <= TL_CODEC_NONE || codec >= TL_CODEC_COUNT) { tli_copy(to, from, size); return; }
    if (codec == TL_CODEC_Q8) { tli_compress_q8(target, source, size); return; }
    for (i = 0; i < count; i++) {
        uint32_t bits = tli_load_f32(source, size, i);
        uint16_t half = codec == TL_CODEC_F16 ? tli_f16_of(bits) : tli_bf16_of(bits);
        TLI_MEMCPY(target + 2 * i, &half, 2);
    }
}

TLI_IMPL void tl_expand_bytes(tl_codec codec, void *to, const void *from, uint64_t bytes) {
    const unsigned char *source = (const unsigned char *)from;
    unsigned char *target = (unsigned char *)to;
    size_t size = (size_t)bytes, count = size / 4 + (size % 4 != 0), i;
    uint32_t word = 0;
    if (codec <= TL_CODEC_NONE || codec >= TL_CODEC_COUNT) { tli_copy(to, from, size); return; }
    for (i = 0; i < count; i++) {
        const unsigned char *block = source + i / 32 * 36;
        if (codec == TL_CODEC_F16) word = tli_f32_of_f16(tli_load_u16(source + 2 * i));
        else if (codec == TL_CODEC_BF16) word = tli_f32_of_bf16(tli_load_u16(source + 2 * i));
        else word = tli_f32_of_q8((int8_t)block[4 + i % 32], tli_load_u32(block));
        TLI_MEMCPY(target + 4 * i, &word, size - 4 * i < 4 ? size - 4 * i : 4);
    }
}

// -- the heap: a good fit among size classes, neighbours joined when freed --

typedef enum tli_extent_state { TLI_EXTENT_UNUSED, TLI_EXTENT_FREE, TLI_EXTENT_TAKEN } tli_extent_state;

// A part of the heap, taken or free; all of these are linked in address order. Or an unused record.
typedef struct tli_extent {
    size_t   offset, bytes;
    int32_t  before, after;            // neighbours; -1 = none
    int32_t  free_before, free_after;  // in the list of its size class; free_after also links unused records
    int32_t  state;                    // tli_extent_state
} tli_extent;

#define TLI_CLASS_COUNT 256  // four classes for every power of two

struct tl_heap {
    tl_env *env;
    size_t bytes, alignment, free_bytes;
    tli_extent *extents;
    int32_t extent_count, extent_capacity, free_extent;  // record + 1
    int32_t class_heads[TLI_CLASS_COUNT];  // extent + 1
    uint32_t class_bits[TLI_CLASS_COUNT / 32];
};

// floor(log2(value)), 0 for 0. With the instruction a heap is almost twice as fast.
static int32_t tli_log2_u64(uint64_t value) {
#if defined(__GNUC__) || defined(__clang__)
    return value ? 63 - __builtin_clzll(value) : 0;
#else
    uint32_t high = (uint32_t)(value >> 32), half = high ? high : (uint32_t)value;
    int32_t bit = high ? 32 : 0, step;
    for (step = 16; step; step /= 2)
        if (half >> step) { half >>= step; bit += step; }
    return bit;
#endif
}

static int32_t tli_class_of(uint64_t bytes) {
    int32_t high = tli_log2_u64(bytes);
    uint64_t quarter = high > 1 ? bytes >> (high - 2) & 3 : 0;
    return high * 4 + (int32_t)quarter;
}

static void tli_unlink_extent(tl_heap *heap, int32_t index) {
    tli_extent *extent = &heap->extents[index];
    int32_t class_index = tli_class_of(extent->bytes);
    if (extent->free_after >= 0) heap->extents[extent->free_after].free_before = extent->free_before;
    if (extent->free_before >= 0) heap->extents[extent->free_before].free_after = extent->free_after;
    else heap->class_heads[class_index] = extent->free_after + 1;
    if (!heap->class_heads[class_index])
        heap->class_bits[class_index >> 5] &= ~((uint32_t)1 << (class_index & 31));
    extent->state = TLI_EXTENT_TAKEN;
    heap->free_bytes -= extent->bytes;
}

static void tli_link_extent(tl_heap *heap, int32_t index) {
    tli_extent *extent = &heap->extents[index];
    int32_t class_index = tli_class_of(extent->bytes);
    extent->free_before = -1;
    extent->free_after = heap->class_heads[class_index] - 1;
    if (extent->free_after >= 0) heap->extents[extent->free_after].free_before = index;
    heap->class_heads[class_index] = index + 1;
    heap->class_bits[class_index >> 5] |= (uint32_t)1 << (class_index & 31);
    extent->state = TLI_EXTENT_FREE;
    heap->free_bytes += extent->bytes;
}

// Find a free extent of at least so many bytes; -1 where there is none. Same sizes come and go,
// so the list of the size's own class is tried first, its rest only when all else failed.
static int32_t tli_find_extent(const tl_heap *heap, size_t bytes) {
    int32_t own = tli_class_of(bytes), at = heap->class_heads[own] - 1, tries, word;
    for (tries = 0; at >= 0 && tries < 4; tries++, at = heap->extents[at].free_after)
        if (heap->extents[at].bytes >= bytes) return at;
    for (word = (own + 1) >> 5; word < TLI_CLASS_COUNT / 32; word++) {
        uint32_t bits = heap->class_bits[word];
        if (word == (own + 1) >> 5) bits &= ~(uint32_t)0 << ((own + 1) & 31);
        if (bits) return heap->class_heads[word * 32 + tli_log2_u64(bits & (0 - bits))] - 1;
    }
    for (; at >= 0; at = heap->extents[at].free_after)
        if (heap->extents[at].bytes >= bytes) return at;
    return -1;
}

static int32_t tli_add_extent(tl_heap *heap) {
    int32_t index = heap->free_extent - 1;
    if (index >= 0) {
        heap->free_extent = heap->extents[index].free_after + 1;
        return index;
    }
    if (!tli_grow(heap->env, (void **)&heap->extents, &heap->extent_capacity, heap->extent_count,
                  (int64_t)heap->extent_count + 1, sizeof *heap->extents)) return -1;
    return heap->extent_count++;
}

// Take bytes and return the id of the piece; 0 where there is no room.
static int32_t tli_take_piece(tl_heap *heap, size_t bytes) {
    int32_t index, rest;
    tli_extent *extent, *left;
    if (bytes > heap->bytes) return 0;
    bytes = (bytes + heap->alignment - 1) & ~(heap->alignment - 1);
    index = tli_find_extent(heap, bytes);
    if (index < 0) return 0;
    if (heap->extents[index].bytes == bytes) {
        tli_unlink_extent(heap, index);
        return index + 1;
    }
    rest = tli_add_extent(heap);
    if (rest < 0) return 0;
    tli_unlink_extent(heap, index);
    extent = &heap->extents[index];
    left = &heap->extents[rest];
    left->offset = extent->offset + bytes;
    left->bytes = extent->bytes - bytes;
    left->before = index;
    left->after = extent->after;
    if (left->after >= 0) heap->extents[left->after].before = rest;
    extent->after = rest;
    extent->bytes = bytes;
    tli_link_extent(heap, rest);
    return index + 1;
}

// Join an extent with the one after it, whose record is unused then.
static void tli_join_extent(tl_heap *heap, int32_t index) {
    tli_extent *extent = &heap->extents[index], *after = &heap->extents[extent->after];
    int32_t unused = extent->after;
    extent->bytes += after->bytes;
    extent->after = after->after;
    if (extent->after >= 0) heap->extents[extent->after].before = index;
    after->state = TLI_EXTENT_UNUSED;
    after->free_after = heap->free_extent - 1;
    heap->free_extent = unused + 1;
}

static void tli_give_piece(tl_heap *heap, int32_t piece) {
    int32_t index = piece - 1;
    int32_t before = heap->extents[index].before, after = heap->extents[index].after;
    if (after >= 0 && heap->extents[after].state == TLI_EXTENT_FREE) {
        tli_unlink_extent(heap, after);
        tli_join_extent(heap, index);
    }
    if (before >= 0 && heap->extents[before].state == TLI_EXTENT_FREE) {
        tli_unlink_extent(heap, before);
        tli_join_extent(heap, before);
        index = before;
    }
    tli_link_extent(heap, index);
}

// One free extent over all bytes, a multiple of the alignment; 0 where there is no memory for it.
static int tli_open_heap(tl_env *env, size_t bytes, size_t alignment, tl_heap *heap) {
    int32_t first;
    heap->env = env;
    heap->bytes = bytes;
    heap->alignment = alignment;
    first = tli_add_extent(heap);
    if (first < 0) return 0;
    heap->extents[first].offset = 0;
    heap->extents[first].bytes = bytes;
    heap->extents[first].before = heap->extents[first].after = -1;
    tli_link_extent(heap, first);
    return 1;
}

TLI_IMPL tl_result tl_init_heap(tl_env *env, size_t bytes, size_t alignment, tl_heap **heap) {
    const char *function = "tl_init_heap";
    tl_heap *h;
    TL_ASSERT(heap);
    *heap = NULL;
    if (alignment & (alignment - 1))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "alignment: not a power of two");
    if (!alignment) alignment = 1;
    bytes &= ~(alignment - 1);
    if (!bytes) return tli_fail(env, TL_ERROR_INVALID_ARG, function, "bytes: fewer than one aligned piece");
    h = (tl_heap *)tli_alloc_array(env, 1, sizeof *h);
    if (!h || !tli_open_heap(env, bytes, alignment, h)) {
        tli_release(env, h);
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory for the table of pieces");
    }
    *heap = h;
    return TL_OK;
}

TLI_IMPL void tl_free_heap(tl_heap *heap) {
    tl_env *env;
    if (!heap) return;
    env = heap->env;
    tli_release(env, heap->extents);
    tli_release(env, heap);
}

TLI_IMPL tl_result tl_add_piece(tl_heap *heap, size_t bytes, size_t *offset, int32_t *piece) {
    TL_ASSERT(heap && offset && piece);
    *offset = 0;
    *piece = 0;
    if (!bytes) return tli_fail(heap->env, TL_ERROR_INVALID_ARG, "tl_add_piece", "bytes: must be > 0");
    *piece = tli_take_piece(heap, bytes);
    if (!*piece) return tli_fail(heap->env, TL_ERROR_NO_MEMORY, "tl_add_piece", "bytes: no place for so many");
    *offset = heap->extents[*piece - 1].offset;
    return TL_OK;
}

TLI_IMPL void tl_free_piece(tl_heap *heap, int32_t piece) {
    TL_ASSERT(heap);
    if (piece > 0 && piece <= heap->extent_count && heap->extents[piece - 1].state == TLI_EXTENT_TAKEN)
        tli_give_piece(heap, piece);
}

TLI_IMPL void tl_measure_heap(const tl_heap *heap, size_t *free_bytes, size_t *largest_bytes) {
    int32_t at = TLI_CLASS_COUNT - 1;
    size_t largest = 0;
    TL_ASSERT(heap);
    while (at > 0 && !heap->class_heads[at]) at--;
    for (at = heap->class_heads[at] - 1; at >= 0; at = heap->extents[at].free_after)
        if (heap->extents[at].bytes > largest) largest = heap->extents[at].bytes;
    if (free_bytes) *free_bytes = heap->free_bytes;
    if (largest_bytes) *largest_bytes = largest;
}

// -- the CPU backend: its parts --

#define TLI_POISON 0xFFFEAD5Au  // dead bytes: NaN as f32 and as f64
#define TLI_GUARD_BYTES 64      // before and after a checked block, at least
#define TLI_QUEUE_CAPACITY 256  // deferred work; beyond it the oldest is done

typedef struct tli_span { uint64_t start, end; } tli_span;

typedef struct tli_cpu_block {
    char    *memory;          // first byte that a range can name
    void    *allocation;      // to release, or NULL: a piece of the caller's memory
    tli_span *spans;          // checked: claimed ranges, ascending
    uint64_t bytes, reserved_bytes;
    uint64_t claimed_bytes, claim_count;
    uint32_t generation;      // upper half of its handle
    int32_t  span_count, span_capacity;
    int32_t  piece;
    int32_t  next_free;       // slot + 1
    int32_t  pending;         // deferred: copies, conversions and fills that touch it
    uint8_t  tier, alive, dying;  // dying: freed, but pending work still needs the bytes
} tli_cpu_block;

typedef enum tli_work_kind {
    TLI_WORK_COPY, TLI_WORK_COMPRESS, TLI_WORK_EXPAND, TLI_WORK_FILL,
    TLI_WORK_CLAIM,   // checked: verify that the bytes were left alone, then fill with 0xFF
    TLI_WORK_RELEASE  // checked: poison
} tli_work_kind;

typedef struct tli_work {
    tli_work_kind kind;
    tl_codec codec;
    uint32_t word;
    int32_t  marked;    // to be run by order
    tl_range to, from;
    uint64_t ticket;    // of its submit; 0 = not submitted
} tli_work;

typedef struct tli_mapping { tl_range range; void *host; tl_map_mode mode; } tli_mapping;

typedef struct tli_cpu {
    tl_env *env;
    tl_cpu_backend_desc desc;        // defaults filled in
    tl_backend_counters counters;
    tli_cpu_block *blocks;
    int32_t block_count, block_capacity, free_block;  // slot + 1
    uint64_t submitted;
    char *memory;                    // the caller's, aligned
    tl_heap heap;                    // places blocks in it
    tli_mapping *mappings;           // checked
    int32_t mapping_count, mapping_capacity;
    tli_work *queue;                 // deferred
    int32_t queue_count, dying_count;
    tl_random random;
    tl_result late;                  // what work that ran later found out; told by the next call that can
} tli_cpu;

static tl_result tli_cpu_fail(tli_cpu *cpu, tl_result code, const char *function, const char *why) {
    return tli_fail(cpu->env, code, function, why);
}

// The variants for tests. TL_NO_CHECKS makes both answers 0, so that the compiler drops whatever
// stands behind them; init refuses to make such a backend then.
#ifndef TL_NO_CHECKS
static int tli_is_checked(const tli_cpu *cpu) { return cpu->desc.checked != 0; }
static int tli_is_deferred(const tli_cpu *cpu) { return cpu->desc.deferred != 0; }
#else
static int tli_is_checked(const tli_cpu *cpu) { (void)cpu; return 0; }
static int tli_is_deferred(const tli_cpu *cpu) { (void)cpu; return 0; }
#endif

static int32_t tli_queued(const tli_cpu *cpu) {
    return tli_is_deferred(cpu) ? cpu->queue_count : 0;
}

static uint64_t tli_align_u64(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) & ~(alignment - 1);
}

static int tli_is_same_range(const tl_range *a, const tl_range *b) {
    return a->block == b->block && a->offset == b->offset && a->bytes == b->bytes;
}

static int tli_overlaps(tl_range a, tl_range b) {
    return a.bytes && b.bytes && a.block == b.block && a.offset < b.offset + b.bytes &&
           b.offset < a.offset + a.bytes;
}

// -- poison --

static void tli_poison(char *at, uint64_t bytes) {
    const uint32_t word = TLI_POISON;
    char *end = at + bytes;
    for (; at < end && ((uintptr_t)at & 3 || end - at < 4); at++)
        *at = ((const char *)&word)[(uintptr_t)at & 3];
    for (; end - at >= 4; at += 4) TLI_MEMCPY(at, &word, 4);
    for (; at < end; at++) *at = ((const char *)&word)[(uintptr_t)at & 3];
}

static int tli_is_poisoned(const char *at, uint64_t bytes) {
    const uint32_t word = TLI_POISON;
    const char *end = at + bytes;
    uint32_t wrong = 0;
    for (; at < end && ((uintptr_t)at & 3 || end - at < 4); at++)
        wrong |= *at != ((const char *)&word)[(uintptr_t)at & 3];
    for (; end - at >= 4; at += 4) wrong |= tli_load_u32(at) ^ word;
    for (; at < end; at++) wrong |= *at != ((const char *)&word)[(uintptr_t)at & 3];
    return !wrong;
}

// -- blocks --

static uint64_t tli_guard_bytes(const tli_cpu *cpu) {
    return tli_is_checked(cpu) ? tli_align_u64(TLI_GUARD_BYTES, cpu->desc.alignment_bytes) : 0;
}

static tli_cpu_block *tli_find_block(tli_cpu *cpu, uint64_t handle, const char *function, tl_result *result) {
    uint64_t slot = (handle & 0xFFFFFFFFu) - 1;
    tli_cpu_block *block;
    if (!(handle & 0xFFFFFFFFu) || slot >= (uint64_t)cpu->block_count) {
        *result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, "block: not a handle of this backend");
        return NULL;
    }
    block = &cpu->blocks[slot];
    if (!block->alive || block->generation != handle >> 32) {
        *result = tli_cpu_fail(cpu, TL_ERROR_STALE, function,
                               "block: the handle is of a freed block or of another backend");
        return NULL;
    }
    return block;
}

// The block of a range that is not empty, once the range was found to lie in it.
static tli_cpu_block *tli_find_range(tli_cpu *cpu, const tl_range *range, const char *function,
                                     tl_result *result) {
    tli_cpu_block *block = tli_find_block(cpu, range->block, function, result);
    if (!block) return NULL;
    if (range->bytes > block->bytes || range->offset > block->bytes - range->bytes) {
        *result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, "range: reaches beyond its block");
        return NULL;
    }
    if (range->offset & (cpu->desc.alignment_bytes - 1)) {
        *result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function,
                               "range: offset: not a multiple of the alignment");
        return NULL;
    }
    return block;
}

// Index of the first claimed range that ends after an offset.
static int32_t tli_find_span(const tli_cpu_block *block, uint64_t offset) {
    int32_t low = 0, high = block->span_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (block->spans[middle].end <= offset) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Hold the rules of a range that is about to be used: in a live block, checked: inside one claimed range.
static tl_result tli_check_range(tli_cpu *cpu, const tl_range *range, const char *function) {
    tl_result result = TL_OK;
    tli_cpu_block *block;
    int32_t at;
    if (!range->bytes) return TL_OK;
    block = tli_find_range(cpu, range, function, &result);
    if (!block) return result;
    if (!tli_is_checked(cpu)) return TL_OK;
    at = tli_find_span(block, range->offset);
    if (at < block->span_count && block->spans[at].start <= range->offset &&
        range->offset + range->bytes <= block->spans[at].end) return TL_OK;
    return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, "range: not inside a claimed range");
}

static char *tli_address(const tli_cpu *cpu, tl_range range) {
    return cpu->blocks[(range.block & 0xFFFFFFFFu) - 1].memory + range.offset;
}

// Verify the guards of a block and every byte of it that is not claimed.
static int tli_is_intact(const tli_cpu *cpu, const tli_cpu_block *block) {
    uint64_t guard = tli_guard_bytes(cpu), at = 0;
    int32_t i;
    if (!tli_is_poisoned(block->memory - guard, guard)) return 0;
    for (i = 0; i < block->span_count; i++) {
        if (!tli_is_poisoned(block->memory + at, block->spans[i].start - at)) return 0;
        at = block->spans[i].end;
    }
    return tli_is_poisoned(block->memory + at, block->reserved_bytes - guard - at);
}

// Find room for a block; TL_OK sets memory, and allocation or piece.
static tl_result tli_place_block(tli_cpu *cpu, tli_cpu_block *block) {
    size_t guard = (size_t)tli_guard_bytes(cpu), whole;
    size_t alignment = (size_t)cpu->desc.alignment_bytes;
    char *base;
    block->allocation = NULL;
    block->piece = 0;
    if (block->bytes > SIZE_MAX / 4 - 2 * guard - 2 * alignment) return TL_ERROR_NO_MEMORY;
    whole = (size_t)tli_align_u64(block->bytes ? block->bytes : 1, alignment) + 2 * guard;
    if (block->tier == TL_TIER_DEVICE && cpu->memory) {
        block->piece = tli_take_piece(&cpu->heap, whole);
        if (!block->piece) return TL_ERROR_NO_MEMORY;
        base = cpu->memory + cpu->heap.extents[block->piece - 1].offset;
    } else {
        block->allocation = tli_alloc(cpu->env, whole + alignment - 1);
        if (!block->allocation) return TL_ERROR_NO_MEMORY;
        base = (char *)block->allocation;
        base += (0 - (size_t)(uintptr_t)base) & (alignment - 1);
    }
    block->memory = base + guard;
    block->reserved_bytes = whole;
    if (tli_is_checked(cpu)) tli_poison(base, whole);
    return TL_OK;
}

// Give the bytes of a freed block back; TL_ERROR_CORRUPT where somebody wrote to dead ones.
static tl_result tli_finish_block(tli_cpu *cpu, int32_t slot) {
    tli_cpu_block *block = &cpu->blocks[slot];
    tl_result result = TL_OK;
    if (tli_is_checked(cpu) && !tli_is_intact(cpu, block))
        result = tli_cpu_fail(cpu, TL_ERROR_CORRUPT, "free_block", "bytes that nobody claimed were written");
    if (block->allocation) tli_release(cpu->env, block->allocation);
    else tli_give_piece(&cpu->heap, block->piece);
    tli_release(cpu->env, block->spans);
    cpu->counters.reserved_bytes[block->tier] -= block->reserved_bytes;
    block->spans = NULL;
    block->span_count = block->span_capacity = 0;
    cpu->dying_count -= block->dying;
    block->alive = block->dying = 0;
    block->generation++;
    block->next_free = cpu->free_block;
    cpu->free_block = slot + 1;
    return result;
}

// -- work --

static tl_result tli_do_upkeep(tli_cpu *cpu, const tli_work *work, char *to) {
    int intact = 1;
    if (work->kind == TLI_WORK_RELEASE) {
        tli_poison(to, work->to.bytes);
    } else {
        intact = tli_is_poisoned(to, work->to.bytes);
        TLI_MEMSET(to, 255, (size_t)work->to.bytes);
    }
    return intact ? TL_OK : tli_cpu_fail(cpu, TL_ERROR_CORRUPT, "claim",
                                         "the bytes were written while nobody held them");
}

static tl_result tli_do_work(tli_cpu *cpu, const tli_work *work) {
    char *to = tli_address(cpu, work->to);
    uint64_t i;
    switch (work->kind) {
    case TLI_WORK_COPY: tli_copy(to, tli_address(cpu, work->from), (size_t)work->to.bytes); break;
    case TLI_WORK_COMPRESS:
        tl_compress_bytes(work->codec, to, tli_address(cpu, work->from), work->from.bytes);
        break;
    case TLI_WORK_EXPAND:
        tl_expand_bytes(work->codec, to, tli_address(cpu, work->from), work->to.bytes);
        break;
    case TLI_WORK_FILL:
        for (i = 0; i + 4 <= work->to.bytes; i += 4) TLI_MEMCPY(to + i, &work->word, 4);
        TLI_MEMCPY(to + i, &work->word, (size_t)(work->to.bytes - i));
        break;
    case TLI_WORK_CLAIM:
    case TLI_WORK_RELEASE: return tli_is_checked(cpu) ? tli_do_upkeep(cpu, work, to) : TL_OK;
    }
    return TL_OK;
}

static int tli_conflicts(const tli_work *a, const tli_work *b) {
    return tli_overlaps(a->to, b->to) || tli_overlaps(a->to, b->from) || tli_overlaps(a->from, b->to);
}

static int tli_is_upkeep(const tli_work *work) {
    return work->kind == TLI_WORK_CLAIM || work->kind == TLI_WORK_RELEASE;
}

static tli_cpu_block *tli_block_of_work(tli_cpu *cpu, tl_range range) {
    return range.bytes ? &cpu->blocks[(range.block & 0xFFFFFFFFu) - 1] : NULL;
}

// Count a queued piece of work at its blocks, +1 or -1. Upkeep does not keep a block alive.
static void tli_count_work(tli_cpu *cpu, const tli_work *work, int32_t by) {
    tli_cpu_block *to = tli_block_of_work(cpu, work->to), *from = tli_block_of_work(cpu, work->from);
    if (tli_is_upkeep(work)) return;
    if (to) to->pending += by;
    if (from) from->pending += by;
}

// Carry out one queued piece of work and take it off the queue. What it finds out is told later.
static void tli_run_queued(tli_cpu *cpu, int32_t index) {
    tli_work work = cpu->queue[index];
    tl_result result = tli_do_work(cpu, &work);
    int32_t i;
    if (result) cpu->late = result;
    for (i = index + 1; i < cpu->queue_count; i++) cpu->queue[i - 1] = cpu->queue[i];
    cpu->queue_count--;
    tli_count_work(cpu, &work, -1);
}

// Run the queued upkeep of a block that no other work needs any more, then give it back.
static tl_result tli_drain_block(tli_cpu *cpu, int32_t slot) {
    int32_t i = 0;
    while (i < tli_queued(cpu))
        if (tli_block_of_work(cpu, cpu->queue[i].to) == &cpu->blocks[slot]) tli_run_queued(cpu, i);
        else i++;
    return tli_finish_block(cpu, slot);
}

static void tli_finish_dying(tli_cpu *cpu, tl_range range) {
    tli_cpu_block *block = tli_block_of_work(cpu, range);
    tl_result result;
    if (!block || !block->dying || block->pending) return;
    result = tli_drain_block(cpu, (int32_t)(range.block & 0xFFFFFFFFu) - 1);
    if (result) cpu->late = result;
}

static void tli_run_work(tli_cpu *cpu, int32_t index) {
    tl_range to = cpu->queue[index].to, from = cpu->queue[index].from;
    tli_run_queued(cpu, index);
    tli_finish_dying(cpu, to);
    tli_finish_dying(cpu, from);
}

// Do work now, or queue it. Its ranges were checked; from is NULL where nothing is read.
static tl_result tli_enqueue(tli_cpu *cpu, tli_work_kind kind, tl_codec codec, const tl_range *to,
                             const tl_range *from, uint32_t word) {
    tli_work work;
    if (!to->bytes) return TL_OK;
    tli_zero(&work, sizeof work);
    work.kind = kind; work.codec = codec; work.word = word;
    work.to = *to;
    if (from) work.from = *from;
    if (!tli_is_deferred(cpu)) return tli_do_work(cpu, &work);
    if (cpu->queue_count == TLI_QUEUE_CAPACITY) tli_run_work(cpu, 0);
    cpu->queue[cpu->queue_count++] = work;
    tli_count_work(cpu, &work, 1);
    return TL_OK;
}

// Mark what must be done before an access, and what that needs itself. Tells whether anything
// but upkeep was marked.
static int tli_mark_work(tli_cpu *cpu, const tl_access *accesses, int32_t count) {
    int32_t i, j;
    int real = 0;
    for (i = cpu->queue_count - 1; i >= 0; i--) {
        tli_work *work = &cpu->queue[i];
        work->marked = 0;
        for (j = 0; j < count && !work->marked; j++)
            work->marked = tli_overlaps(work->to, accesses[j].range) ||
                        (accesses[j].writes && tli_overlaps(work->from, accesses[j].range));
        for (j = i + 1; j < cpu->queue_count && !work->marked; j++)
            work->marked = cpu->queue[j].marked && tli_conflicts(work, &cpu->queue[j]);
        if (work->marked && !tli_is_upkeep(work)) real = 1;
    }
    return real;
}

static void tli_run_marked(tli_cpu *cpu) {
    int32_t i = 0;
    while (i < cpu->queue_count)
        if (cpu->queue[i].marked) { tli_run_work(cpu, i); i = 0; }
        else i++;
}

// Run one submitted piece of work at random among those that nothing earlier stands in the way of.
static void tli_run_random(tli_cpu *cpu) {
    int32_t count = 0, start, i, j;
    while (count < cpu->queue_count && cpu->queue[count].ticket) count++;
    if (!count) return;
    start = (int32_t)tl_next_random_below(&cpu->random, (uint64_t)count);
    for (i = start; ; i = (i + 1) % count) {
        for (j = 0; j < i && !tli_conflicts(&cpu->queue[j], &cpu->queue[i]); j++) {}
        if (j == i) { tli_run_work(cpu, i); return; }
    }
}

static tl_result tli_tell_late(tli_cpu *cpu) {
    tl_result result = cpu->late;  // work done at once told it itself
    if (!tli_is_deferred(cpu)) return TL_OK;
    cpu->late = TL_OK;
    return result;
}

// -- the functions of the table --

static tl_result tli_cpu_add_block(void *self, tl_tier tier, uint64_t bytes, uint64_t *handle) {
    tli_cpu *cpu = (tli_cpu *)self;
    int32_t slot = cpu->free_block - 1;
    tli_cpu_block *block;
    tl_result result;
    *handle = 0;
    if (!tli_is_below((int64_t)tier, TL_TIER_COUNT))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "add_block", "tier: unknown");
    if (slot < 0) {
        if (!tli_grow(cpu->env, (void **)&cpu->blocks, &cpu->block_capacity, cpu->block_count,
                      (int64_t)cpu->block_count + 1, sizeof *cpu->blocks))
            return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, "add_block", "no memory for the table of blocks");
        slot = cpu->block_count++;
        // Another backend's handles do not fit.
        cpu->blocks[slot].generation = (uint32_t)tl_mix_u64((uint64_t)(uintptr_t)cpu, (uint64_t)slot);
        cpu->blocks[slot].next_free = 0;
    }
    block = &cpu->blocks[slot];
    cpu->free_block = block->next_free;
    block->tier = (uint8_t)tier;
    block->bytes = bytes;
    result = tli_place_block(cpu, block);
    while (result && tli_queued(cpu) && cpu->dying_count) {  // what freed blocks wait for
        tli_run_work(cpu, 0);
        result = tli_place_block(cpu, block);
    }
    if (result) {
        block->next_free = cpu->free_block;
        cpu->free_block = slot + 1;
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, "add_block", "no room for the block");
    }
    block->alive = 1;
    block->claimed_bytes = block->claim_count = 0;
    cpu->counters.added_count++;
    cpu->counters.block_count[tier]++;
    cpu->counters.reserved_bytes[tier] += block->reserved_bytes;
    *handle = (uint64_t)block->generation << 32 | (uint64_t)(slot + 1);
    return TL_OK;
}

static tl_result tli_cpu_free_block(void *self, uint64_t handle) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_cpu_block *block = tli_find_block(cpu, handle, "free_block", &result);
    if (!block) return result;
    if (block->claim_count)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "free_block", "block: a range in it is still claimed");
    cpu->counters.block_count[block->tier]--;
    if (!block->pending) return tli_drain_block(cpu, (int32_t)(block - cpu->blocks));
    block->alive = 0;
    block->dying = 1;
    cpu->dying_count++;
    return TL_OK;
}

// Note a claimed range of a checked block; no two may overlap.
static tl_result tli_add_span(tli_cpu *cpu, tli_cpu_block *block, tl_range range) {
    int32_t at = tli_find_span(block, range.offset), i;
    if (at < block->span_count && block->spans[at].start < range.offset + range.bytes)
        return tli_cpu_fail(cpu, TL_ERROR_CORRUPT, "claim", "range: overlaps one that is claimed");
    if (!tli_grow(cpu->env, (void **)&block->spans, &block->span_capacity, block->span_count,
                  (int64_t)block->span_count + 1, sizeof *block->spans))
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, "claim", "no memory for the table of ranges");
    for (i = block->span_count++; i > at; i--) block->spans[i] = block->spans[i - 1];
    block->spans[at].start = range.offset;
    block->spans[at].end = range.offset + range.bytes;
    return TL_OK;
}

static void tli_remove_span(tli_cpu_block *block, int32_t at) {
    int32_t i;
    for (i = at + 1; i < block->span_count; i++) block->spans[i - 1] = block->spans[i];
    block->span_count--;
}

static tl_result tli_cpu_claim(void *self, tl_range range) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_backend_counters *counters = &cpu->counters;
    tl_result result = TL_OK;
    tli_cpu_block *block;
    uint64_t end;
    if (!range.bytes) return TL_OK;
    block = tli_find_range(cpu, &range, "claim", &result);
    if (!block) return result;
    if (range.bytes > cpu->desc.capacity_bytes[block->tier] - counters->live_bytes[block->tier])
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, "claim", "range: bytes: the tier's capacity is used up");
    if (tli_is_checked(cpu)) {
        if ((result = tli_add_span(cpu, block, range)) != TL_OK) return result;
        result = tli_enqueue(cpu, TLI_WORK_CLAIM, TL_CODEC_NONE, &range, NULL, 0);
        if (result) {
            tli_remove_span(block, tli_find_span(block, range.offset));
            tli_poison(block->memory + range.offset, range.bytes);
            return result;
        }
    }
    block->claim_count++;
    block->claimed_bytes += range.bytes;
    counters->claim_count[block->tier]++;
    counters->live_bytes[block->tier] += range.bytes;
    if (counters->live_bytes[block->tier] > counters->peak_bytes[block->tier])
        counters->peak_bytes[block->tier] = counters->live_bytes[block->tier];
    end = tli_align_u64(range.offset + range.bytes, cpu->desc.alignment_bytes);
    if (block->tier == TL_TIER_DEVICE && end > counters->arena_bytes) counters->arena_bytes = end;
    return TL_OK;
}

static int tli_is_mapped(const tli_cpu *cpu, tl_range range, int writes) {
    int32_t i;
    for (i = 0; i < cpu->mapping_count; i++) {
        const tli_mapping *mapping = &cpu->mappings[i];
        if ((writes || mapping->mode != TL_MAP_READ) && tli_overlaps(mapping->range, range)) return 1;
    }
    return 0;
}

static tl_result tli_cpu_release(void *self, tl_range range) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    tli_cpu_block *block;
    if (!range.bytes) return TL_OK;
    block = tli_find_range(cpu, &range, "release", &result);
    if (!block) return result;
    if (!block->claim_count || block->claimed_bytes < range.bytes)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "release", "range: was not claimed");
    if (tli_is_checked(cpu)) {
        int32_t at = tli_find_span(block, range.offset);
        if (at == block->span_count || block->spans[at].start != range.offset ||
            block->spans[at].end != range.offset + range.bytes)
            return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "release", "range: was not claimed as it is");
        if (tli_is_mapped(cpu, range, 1))
            return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "release", "range: is mapped");
        tli_remove_span(block, at);
        result = tli_enqueue(cpu, TLI_WORK_RELEASE, TL_CODEC_NONE, &range, NULL, 0);
    }
    block->claim_count--;
    block->claimed_bytes -= range.bytes;
    cpu->counters.claim_count[block->tier]--;
    cpu->counters.live_bytes[block->tier] -= range.bytes;
    return result;
}

// Copy or convert: the rules they share. f32 is the side whose bytes `other` must follow from.
static tl_result tli_move(tli_cpu *cpu, tli_work_kind kind, tl_codec codec, const tl_range *to,
                          const tl_range *from, const char *function) {
    uint64_t plain = kind == TLI_WORK_EXPAND ? to->bytes : from->bytes;
    uint64_t other = kind == TLI_WORK_EXPAND ? from->bytes : to->bytes;
    tl_result result = tli_check_range(cpu, to, function);
    if (result || (result = tli_check_range(cpu, from, function)) != TL_OK) return result;
    if (kind != TLI_WORK_COPY && ((int)codec <= TL_CODEC_NONE || (int)codec >= TL_CODEC_COUNT))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, "codec: none or unknown");
    if (tl_find_codec_bytes(codec, plain) != other)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, "to: bytes: do not fit those of from");
    if (tli_overlaps(*to, *from))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, "to: overlaps from");
    if (tli_is_checked(cpu) && (tli_is_mapped(cpu, *to, 1) || tli_is_mapped(cpu, *from, 0)))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, function, "range: is mapped");
    if (kind == TLI_WORK_COPY) cpu->counters.copy_count++;
    else cpu->counters.convert_count++;
    cpu->counters.copied_bytes += from->bytes;
    return tli_enqueue(cpu, kind, codec, to, from, 0);
}

static tl_result tli_cpu_copy(void *self, tl_range to, tl_range from) {
    return tli_move((tli_cpu *)self, TLI_WORK_COPY, TL_CODEC_NONE, &to, &from, "copy");
}

static tl_result tli_cpu_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    return tli_move((tli_cpu *)self, TLI_WORK_COMPRESS, codec, &to, &from, "compress");
}

static tl_result tli_cpu_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    return tli_move((tli_cpu *)self, TLI_WORK_EXPAND, codec, &to, &from, "expand");
}

static tl_result tli_cpu_fill(void *self, tl_range to, uint32_t word) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = tli_check_range(cpu, &to, "fill");
    if (result) return result;
    if (tli_is_checked(cpu) && tli_is_mapped(cpu, to, 1))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "fill", "range: is mapped");
    cpu->counters.fill_count++;
    return tli_enqueue(cpu, TLI_WORK_FILL, TL_CODEC_NONE, &to, NULL, word);
}

static tl_result tli_cpu_order(void *self, const tl_access *accesses, int32_t access_count) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < access_count && !result; i++)
        result = tli_check_range(cpu, &accesses[i].range, "order");
    if (result || !tli_queued(cpu)) return result ? result : tli_tell_late(cpu);
    (void)tli_mark_work(cpu, accesses, access_count);
    tli_run_marked(cpu);
    return tli_tell_late(cpu);
}

static tl_result tli_cpu_submit(void *self, tl_ticket *ticket) {
    tli_cpu *cpu = (tli_cpu *)self;
    int32_t i;
    cpu->counters.submit_count++;
    ticket->value = ++cpu->submitted;
    for (i = tli_queued(cpu) - 1; i >= 0 && !cpu->queue[i].ticket; i--)
        cpu->queue[i].ticket = cpu->submitted;
    return TL_OK;
}

// All submitted work stands in front of the queue, in order of its tickets.
static int tli_has_passed(const tli_cpu *cpu, tl_ticket ticket) {
    return !tli_queued(cpu) || !cpu->queue[0].ticket || cpu->queue[0].ticket > ticket.value;
}

static tl_result tli_cpu_poll(void *self, tl_ticket ticket) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result;
    uint64_t runs;
    cpu->counters.poll_count++;
    if (ticket.value > cpu->submitted)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "poll", "ticket: was never submitted");
    if (tli_queued(cpu))
        for (runs = tl_next_random_below(&cpu->random, 4); runs; runs--) tli_run_random(cpu);
    result = tli_tell_late(cpu);
    return result ? result : tli_has_passed(cpu, ticket) ? TL_OK : TL_NOT_READY;
}

static tl_result tli_cpu_wait(void *self, tl_ticket ticket) {
    tli_cpu *cpu = (tli_cpu *)self;
    cpu->counters.wait_count++;
    if (ticket.value > cpu->submitted)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "wait", "ticket: was never submitted");
    while (!tli_has_passed(cpu, ticket)) tli_run_random(cpu);
    return tli_tell_late(cpu);
}

// Deferred: a range may be mapped only when no work on it is left. Upkeep is nobody's to wait for.
static tl_result tli_settle(tli_cpu *cpu, tl_range range, int writes, const char *function) {
    tl_access access;
    access.range = range;
    access.writes = writes;
    if (!tli_queued(cpu)) return TL_OK;
    if (tli_mark_work(cpu, &access, 1))
        return tli_cpu_fail(cpu, TL_ERROR_BACKEND, function,
                            "range: work on it was neither ordered nor waited for");
    tli_run_marked(cpu);
    return tli_tell_late(cpu);
}

static tl_result tli_cpu_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = tli_check_range(cpu, &range, "map");
    int writes = mode != TL_MAP_READ;
    tli_mapping *mapping;
    *host = NULL;
    if (!result && !tli_is_below((int64_t)mode, TL_MAP_MODE_COUNT))
        result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "map", "mode: unknown");
    if (result) return result;
    cpu->counters.map_count++;
    if (!range.bytes) return TL_OK;
    if ((result = tli_settle(cpu, range, writes, "map")) != TL_OK) return result;
    if (!tli_is_checked(cpu)) { *host = tli_address(cpu, range); return TL_OK; }
    if (tli_is_mapped(cpu, range, writes))
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "map", "range: overlaps one that is mapped");
    if (!tli_grow(cpu->env, (void **)&cpu->mappings, &cpu->mapping_capacity, cpu->mapping_count,
                  (int64_t)cpu->mapping_count + 1, sizeof *cpu->mappings))
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, "map", "no memory for the table of mappings");
    *host = tli_alloc(cpu->env, (size_t)range.bytes);
    if (!*host) return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, "map", "no memory for the copy of the range");
    if (mode == TL_MAP_WRITE) tli_poison((char *)*host, range.bytes);
    else tli_copy(*host, tli_address(cpu, range), (size_t)range.bytes);
    mapping = &cpu->mappings[cpu->mapping_count++];
    mapping->range = range;
    mapping->host = *host;
    mapping->mode = mode;
    return TL_OK;
}

static tl_result tli_cpu_unmap(void *self, tl_range range, tl_map_mode mode, void *host) {
    tli_cpu *cpu = (tli_cpu *)self;
    tl_result result = tli_check_range(cpu, &range, "unmap");
    int32_t i;
    if (result || !range.bytes) return result;
    result = tli_settle(cpu, range, mode != TL_MAP_READ, "unmap");
    if (!tli_is_checked(cpu)) return result;
    for (i = 0; i < cpu->mapping_count; i++)
        if (cpu->mappings[i].host == host && tli_is_same_range(&cpu->mappings[i].range, &range)) break;
    if (i == cpu->mapping_count)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "unmap", "host: is not what map gave for this range");
    if (mode != cpu->mappings[i].mode)
        result = tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "unmap", "mode: is not that of the mapping");
    else if (mode != TL_MAP_READ)
        tli_copy(tli_address(cpu, range), host, (size_t)range.bytes);
    else if (TLI_MEMCMP(tli_address(cpu, range), host, (size_t)range.bytes) != 0)
        result = tli_cpu_fail(cpu, TL_ERROR_CORRUPT, "unmap", "bytes of a read-only range were written");
    tli_release(cpu->env, host);
    cpu->mappings[i] = cpu->mappings[--cpu->mapping_count];
    return result;
}

static tl_result tli_cpu_check(void *self) {
    tli_cpu *cpu = (tli_cpu *)self;
    int32_t i = 0, j;
    while (i < tli_queued(cpu)) {  // upkeep that nothing earlier stands in the way of
        for (j = 0; j < i && !tli_conflicts(&cpu->queue[j], &cpu->queue[i]); j++) {}
        if (j == i && tli_is_upkeep(&cpu->queue[i])) tli_run_work(cpu, i);
        else i++;
    }
    for (i = 0; tli_is_checked(cpu) && i < cpu->block_count; i++)
        if (cpu->blocks[i].alive && !cpu->blocks[i].pending && !tli_is_intact(cpu, &cpu->blocks[i]))
            return tli_cpu_fail(cpu, TL_ERROR_CORRUPT, "check", "bytes that nobody claimed were written");
    return tli_tell_late(cpu);
}

static uint64_t tli_cpu_now_ns(void *self) {
    const tli_cpu *cpu = (const tli_cpu *)self;
    return cpu->desc.now_ns ? cpu->desc.now_ns(cpu->desc.user) : 0;
}

static void tli_cpu_limits(void *self, tl_backend_limits *limits) {
    const tli_cpu *cpu = (const tli_cpu *)self;
    int tier;
    tli_zero(limits, sizeof *limits);
    limits->alignment_bytes = limits->granularity_bytes = cpu->desc.alignment_bytes;
    limits->range_bytes = SIZE_MAX / 4;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        uint64_t capacity = cpu->desc.capacity_bytes[tier];
        limits->capacity_bytes[tier] = capacity;
        limits->budget_bytes[tier] =
            capacity == TL_UNLIMITED ? capacity : capacity - cpu->counters.live_bytes[tier];
    }
    if (cpu->memory && limits->capacity_bytes[TL_TIER_DEVICE] > cpu->heap.bytes)
        limits->capacity_bytes[TL_TIER_DEVICE] = cpu->heap.bytes;
    if (cpu->memory && limits->budget_bytes[TL_TIER_DEVICE] > cpu->heap.free_bytes)
        limits->budget_bytes[TL_TIER_DEVICE] = cpu->heap.free_bytes;
    limits->codecs = 1u << TL_CODEC_F16 | 1u << TL_CODEC_BF16 | 1u << TL_CODEC_Q8;
    limits->host_visible = 1;
    limits->in_order = !tli_is_deferred(cpu);
}

static void tli_cpu_counters(void *self, tl_backend_counters *counters) {
    *counters = ((const tli_cpu *)self)->counters;
}

static void tli_cpu_reset_peaks(void *self) {
    tl_backend_counters *counters = &((tli_cpu *)self)->counters;
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) counters->peak_bytes[tier] = counters->live_bytes[tier];
    counters->arena_bytes = 0;
}

// -- making and freeing it --

static void tli_fill_backend(tl_backend *backend, tli_cpu *cpu) {
    backend->self = cpu;
    backend->add_block = tli_cpu_add_block;
    backend->free_block = tli_cpu_free_block;
    backend->claim = tli_cpu_claim;
    backend->release = tli_cpu_release;
    backend->copy = tli_cpu_copy;
    backend->compress = tli_cpu_compress;
    backend->expand = tli_cpu_expand;
    backend->fill = tli_cpu_fill;
    backend->order = tli_cpu_order;
    backend->submit = tli_cpu_submit;
    backend->poll = tli_cpu_poll;
    backend->wait = tli_cpu_wait;
    backend->map = tli_cpu_map;
    backend->unmap = tli_cpu_unmap;
    backend->check = tli_cpu_check;
    backend->now_ns = tli_cpu_now_ns;
    backend->limits = tli_cpu_limits;
    backend->counters = tli_cpu_counters;
    backend->reset_peaks = tli_cpu_reset_peaks;
}

// Make a heap of the caller's memory, less what its alignment takes.
static tl_result tli_open_memory(tli_cpu *cpu) {
    size_t alignment = (size_t)cpu->desc.alignment_bytes;
    size_t shift = (0 - (size_t)(uintptr_t)cpu->desc.memory) & (alignment - 1), bytes;
    if (cpu->desc.memory_bytes > SIZE_MAX / 4 || cpu->desc.memory_bytes < shift + alignment)
        return tli_cpu_fail(cpu, TL_ERROR_INVALID_ARG, "tl_init_cpu_backend",
                            "memory_bytes: too few for one aligned block, or too many");
    cpu->memory = (char *)cpu->desc.memory + shift;
    bytes = ((size_t)cpu->desc.memory_bytes - shift) & ~(alignment - 1);
    if (!tli_open_heap(cpu->env, bytes, alignment, &cpu->heap))
        return tli_cpu_fail(cpu, TL_ERROR_NO_MEMORY, "tl_init_cpu_backend",
                            "no memory for the table of pieces");
    return TL_OK;
}

TLI_IMPL tl_result tl_init_cpu_backend(tl_env *env, const tl_cpu_backend_desc *desc, tl_backend *backend) {
    const char *function = "tl_init_cpu_backend";
    tl_result result = TL_OK;
    tli_cpu *cpu;
    int tier;
    TL_ASSERT(desc && backend);
    tli_zero(backend, sizeof *backend);
    if (desc->alignment_bytes & (desc->alignment_bytes - 1) || desc->alignment_bytes > SIZE_MAX / 16)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "alignment_bytes: not a power of two");
    if (!desc->memory && desc->memory_bytes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "memory_bytes: without memory");
#ifdef TL_NO_CHECKS
    if (desc->checked || desc->deferred)
        return tli_fail(env, TL_ERROR_UNSUPPORTED, function,
                        "checked, deferred: left out by TL_NO_CHECKS");
#endif
    cpu = (tli_cpu *)tli_alloc_array(env, 1, sizeof *cpu);
    if (!cpu) return tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory");
    cpu->env = env;
    cpu->desc = *desc;
    if (!cpu->desc.alignment_bytes) cpu->desc.alignment_bytes = 64;
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        if (!cpu->desc.capacity_bytes[tier]) cpu->desc.capacity_bytes[tier] = TL_UNLIMITED;
    cpu->random.state = desc->seed;
    tli_fill_backend(backend, cpu);
    if (desc->memory) result = tli_open_memory(cpu);
    if (!result && tli_is_deferred(cpu)) {
        cpu->queue = (tli_work *)tli_alloc_array(env, TLI_QUEUE_CAPACITY, sizeof *cpu->queue);
        if (!cpu->queue) result = tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory for the queue");
    }
    if (result) tl_free_cpu_backend(env, backend);
    return result;
}

TLI_IMPL void tl_free_cpu_backend(tl_env *env, tl_backend *backend) {
    tli_cpu *cpu;
    int32_t i;
    if (!backend || !backend->self) return;
    cpu = (tli_cpu *)backend->self;
    for (i = 0; tli_is_checked(cpu) && i < cpu->mapping_count; i++)
        tli_release(env, cpu->mappings[i].host);
    for (i = 0; i < cpu->block_count; i++) {
        tli_cpu_block *block = &cpu->blocks[i];
        if (block->alive || block->dying) {
            tli_release(env, block->allocation);
            tli_release(env, block->spans);
        }
    }
    tli_release(env, cpu->mappings);
    tli_release(env, cpu->queue);
    tli_release(env, cpu->heap.extents);
    tli_release(env, cpu->blocks);
    tli_release(env, cpu);
    tli_zero(backend, sizeof *backend);
}

#ifndef TL_NO_PLANNERS
// -- what a device can do, measured --

#define TLI_GAUGE_SAMPLES 31
#define TLI_GAUGE_SMALL   4096       // bytes of the smaller copy: little more than its latency
#define TLI_GAUGE_LARGE   67108864   // bytes of the larger one

typedef struct tli_gauge {
    tl_env *env;
    const tl_backend *backend;
    tl_measure_device_desc desc;  // defaults filled in
    tl_backend_limits limits;
    uint64_t blocks[TL_TIER_COUNT];
    tl_range ranges[3];           // two on the device, one on the host; bytes 0 = there is none
    uint64_t small, large;        // bytes of the two sizes; large 0 = no room
} tli_gauge;

typedef enum tli_gauge_work { TLI_GAUGE_COPY, TLI_GAUGE_COMPRESS, TLI_GAUGE_EXPAND } tli_gauge_work;

// One kind of work between two ranges.
typedef struct tli_gauge_job {
    tli_gauge_work work;
    tl_codec codec;
    tl_range to, from;
} tli_gauge_job;

static tl_result tli_gauge_fail(const tli_gauge *g, const char *call, tl_result code) {
    tli_writer w = tli_begin_error(g->env, code, "tl_measure_device");
    tli_put(&w, "backend: "); tli_put(&w, call); tli_put(&w, ": ");
    tli_put(&w, tl_explain_result(code));
    return tli_end_error(g->env, &w, code);
}

// Hand over and wait: only then has a time passed.
static tl_result tli_gauge_wait(const tli_gauge *g) {
    const tl_backend *b = g->backend;
    tl_ticket ticket;
    tl_result result = b->submit(b->self, &ticket);
    if (result && result != TL_NOT_READY) return tli_gauge_fail(g, "submit", result);
    if (!result) result = b->wait(b->self, ticket);
    if (result == TL_NOT_READY)
        return tli_fail(g->env, TL_ERROR_UNSUPPORTED, "tl_measure_device",
                        "backend: cannot wait, so that nothing can be timed");
    return result ? tli_gauge_fail(g, "wait", result) : TL_OK;
}

// Enqueue a job on the first so many bytes (uncompressed) of its ranges.
static tl_result tli_gauge_enqueue(const tli_gauge *g, const tli_gauge_job *job, uint64_t bytes) {
    const tl_backend *b = g->backend;
    tl_range to = job->to, from = job->from;
    tl_result result = TL_OK;
    to.bytes = from.bytes = bytes;
    switch (job->work) {
    case TLI_GAUGE_COPY:
        result = b->copy(b->self, to, from);
        return result ? tli_gauge_fail(g, "copy", result) : TL_OK;
    case TLI_GAUGE_COMPRESS:
        to.bytes = tl_find_codec_bytes(job->codec, bytes);
        result = b->compress(b->self, job->codec, to, from);
        return result ? tli_gauge_fail(g, "compress", result) : TL_OK;
    case TLI_GAUGE_EXPAND:
        from.bytes = tl_find_codec_bytes(job->codec, bytes);
        result = b->expand(b->self, job->codec, to, from);
        return result ? tli_gauge_fail(g, "expand", result) : TL_OK;
    }
    return result;
}

static double tli_find_median(double *samples, int32_t count) {
    int32_t i, k;
    for (i = 1; i < count; i++) {
        double sample = samples[i];
        for (k = i; k > 0 && samples[k - 1] > sample; k--) samples[k] = samples[k - 1];
        samples[k] = sample;
    }
    return count % 2 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
}

// Median time of a job; the first run is not counted: it touches the bytes for the first time.
static tl_result tli_time_job(const tli_gauge *g, const tli_gauge_job *job, uint64_t bytes, double *ns) {
    const tl_backend *b = g->backend;
    double samples[TLI_GAUGE_SAMPLES];
    int32_t i;
    for (i = -1; i < g->desc.sample_count; i++) {
        uint64_t start = b->now_ns(b->self), end;
        tl_result result = tli_gauge_enqueue(g, job, bytes);
        if (!result) result = tli_gauge_wait(g);
        if (result) return result;
        end = b->now_ns(b->self);
        if (i >= 0) samples[i] = end > start ? (double)(end - start) : 0;
    }
    *ns = tli_find_median(samples, g->desc.sample_count);
    return TL_OK;
}

// Bytes a second of a job, from the difference of two sizes, and what is left of the smaller one; 0 where
// the clock does not tell.
static tl_result tli_fit_job(const tli_gauge *g, const tli_gauge_job *job, double *rate, double *latency_ns) {
    // Codecs compute, so they need fewer bytes to be seen beside a latency.
    uint64_t most = job->work == TLI_GAUGE_COPY ? g->large : tli_larger_u64(g->large / 16, 2 * g->small);
    double small = 0, large = 0;
    tl_result result = tli_time_job(g, job, g->small, &small);
    if (!result) result = tli_time_job(g, job, most, &large);
    *rate = *latency_ns = 0;
    if (result || !(large > small)) return result;
    *rate = (double)(most - g->small) * 1e9 / (large - small);
    *latency_ns = small - (double)g->small * 1e9 / *rate;
    if (*latency_ns < 0) *latency_ns = 0;
    return TL_OK;
}

static tli_gauge_job tli_gauge_job_of(tli_gauge_work work, tl_codec codec, tl_range to, tl_range from) {
    tli_gauge_job job;
    job.work = work; job.codec = codec;
    job.to = to; job.from = from;
    return job;
}

static uint64_t tli_round_u64(double value) {
    return value < 18446744073709549568.0 ? (uint64_t)(value + 0.5) : UINT64_MAX;
}

static tl_result tli_measure_copies(const tli_gauge *g, tl_device *device) {
    const tl_range *r = g->ranges;
    tli_gauge_job job = tli_gauge_job_of(TLI_GAUGE_COPY, TL_CODEC_NONE, r[1], r[0]);
    double rate = 0, latency = 0, back = 0, back_latency = 0;
    tl_result result = tli_fit_job(g, &job, &rate, &latency);
    if (result) return result;
    device->bytes_per_second = tli_round_u64(2 * rate);  // read and written
    if (!r[2].bytes) return TL_OK;
    job = tli_gauge_job_of(TLI_GAUGE_COPY, TL_CODEC_NONE, r[2], r[0]);
    result = tli_fit_job(g, &job, &rate, &latency);
    job = tli_gauge_job_of(TLI_GAUGE_COPY, TL_CODEC_NONE, r[1], r[2]);
    if (!result) result = tli_fit_job(g, &job, &back, &back_latency);
    if (result || rate <= 0 || back <= 0) return result;
    device->link_bytes_per_second = tli_round_u64(rate < back ? rate : back);
    device->link_latency_ns = tli_round_u64(latency > back_latency ? latency : back_latency);
    return TL_OK;
}

static tl_result tli_measure_codecs(const tli_gauge *g, tl_device *device) {
    const tl_range *r = g->ranges;
    double slowest = 0, rate = 0, latency = 0;
    int codec, expands;
    for (codec = TL_CODEC_NONE + 1; codec < TL_CODEC_COUNT; codec++) {
        if (!(g->limits.codecs >> codec & 1)) continue;
        for (expands = 0; expands < 2; expands++) {
            tli_gauge_work work = expands ? TLI_GAUGE_EXPAND : TLI_GAUGE_COMPRESS;
            tli_gauge_job job = tli_gauge_job_of(work, (tl_codec)codec, r[!expands], r[expands]);
            tl_result result = tli_fit_job(g, &job, &rate, &latency);
            if (result) return result;
            if (rate > 0 && (slowest <= 0 || rate < slowest)) slowest = rate;
        }
    }
    device->codec_bytes_per_second = tli_round_u64(slowest);
    return TL_OK;
}

// A loop of multiplications and additions that no compiler can foresee: 2^20 FLOP.
static tl_result tli_run_flops(tl_precision precision, uint64_t *flops, void *user) {
    volatile float unknown_factor = 0.75f, unknown_term = 0.5f;
    volatile double sink;
    float factor = unknown_factor, term = unknown_term, a[16];
    double factor_wide = (double)factor, term_wide = (double)term, b[16];
    int32_t i, k;
    (void)user;
    *flops = UINT64_C(1) << 20;
    if (precision != TL_PRECISION_SINGLE && precision != TL_PRECISION_FULL) return TL_ERROR_UNSUPPORTED;
    for (k = 0; k < 16; k++) { a[k] = (float)k; b[k] = k; }
    if (precision == TL_PRECISION_SINGLE) {
        for (i = 0; i < 32768; i++)
            for (k = 0; k < 16; k++) a[k] = a[k] * factor + term;
        for (k = 0; k < 16; k++) sink = (double)a[k];
    } else {
        for (i = 0; i < 32768; i++)
            for (k = 0; k < 16; k++) b[k] = b[k] * factor_wide + term_wide;
        for (k = 0; k < 16; k++) sink = b[k];
    }
    (void)sink;
    return TL_OK;
}

static tl_result tli_measure_flops(const tli_gauge *g, tl_device *device) {
    const tl_backend *b = g->backend;
    tl_result (*compute)(tl_precision, uint64_t *, void *) = g->desc.compute;
    double samples[TLI_GAUGE_SAMPLES], single;
    int32_t p, i;
    if (!compute && g->limits.host_visible) compute = tli_run_flops;
    for (p = 0; p < TL_PRECISION_COUNT && compute; p++) {
        tl_result result = TL_OK;
        for (i = -1; i < g->desc.sample_count && !result; i++) {
            uint64_t flops = 0, start = b->now_ns(b->self), end;
            result = compute((tl_precision)p, &flops, g->desc.user);
            end = b->now_ns(b->self);
            if (i >= 0) samples[i] = end > start ? (double)flops * 1e9 / (double)(end - start) : 0;
        }
        if (result && result != TL_ERROR_UNSUPPORTED)
            return tli_fail(g->env, TL_ERROR_KERNEL, "tl_measure_device", "compute: reported a failure");
        if (!result) device->flops_per_second[p] = tli_find_median(samples, g->desc.sample_count);
    }
    single = device->flops_per_second[TL_PRECISION_SINGLE];
    for (p = 0; p < TL_PRECISION_COUNT; p++) {
        double rate = device->flops_per_second[p];
        if (rate > 0 && (p == TL_PRECISION_FULL || rate >= single)) device->supported |= 1u << p;
    }
    return TL_OK;
}

static void tli_close_gauge(tli_gauge *g) {
    const tl_backend *b = g->backend;
    int32_t i;
    for (i = 0; i < 3; i++) {
        if (g->ranges[i].bytes) (void)b->release(b->self, g->ranges[i]);
        tli_zero(&g->ranges[i], sizeof g->ranges[i]);
    }
    for (i = 0; i < TL_TIER_COUNT; i++) {
        if (g->blocks[i]) (void)b->free_block(b->self, g->blocks[i]);
        g->blocks[i] = 0;
    }
}

static tl_result tli_claim_gauge(tli_gauge *g, int32_t index, tl_tier tier, uint64_t offset) {
    tl_range range;
    tl_result result;
    range.block = g->blocks[tier]; range.offset = offset; range.bytes = g->large;
    result = g->backend->claim(g->backend->self, range);
    if (!result) g->ranges[index] = range;
    return result;
}

// Blocks for copies of g->large bytes; TL_ERROR_NO_MEMORY where there is no room for so many.
static tl_result tli_open_gauge(tli_gauge *g, int uses_host) {
    const tl_backend *b = g->backend;
    tl_result result = b->add_block(b->self, TL_TIER_DEVICE, 2 * g->large, &g->blocks[TL_TIER_DEVICE]);
    if (!result && uses_host) result = b->add_block(b->self, TL_TIER_HOST, g->large, &g->blocks[TL_TIER_HOST]);
    if (!result) result = tli_claim_gauge(g, 0, TL_TIER_DEVICE, 0);
    if (!result) result = tli_claim_gauge(g, 1, TL_TIER_DEVICE, g->large);
    if (!result && uses_host) result = tli_claim_gauge(g, 2, TL_TIER_HOST, 0);
    if (result) tli_close_gauge(g);
    return result;
}

// The largest size that there is room for: two ranges of it on the device, one on the host.
static tl_result tli_size_gauge(tli_gauge *g) {
    const tl_backend_limits *limits = &g->limits;
    uint64_t step = tli_larger_u64(limits->alignment_bytes, 64);
    uint64_t room = limits->budget_bytes[TL_TIER_DEVICE] / 2, host_room = limits->budget_bytes[TL_TIER_HOST];
    int uses_host = host_room >= 2 * tli_align_u64(TLI_GAUGE_SMALL, step);
    tl_result result = TL_ERROR_NO_MEMORY;
    g->small = tli_align_u64(TLI_GAUGE_SMALL, step);
    g->large = g->desc.bytes;
    if (g->large > room) g->large = room;
    if (uses_host && g->large > host_room) g->large = host_room;
    if (g->large > limits->range_bytes) g->large = limits->range_bytes;
    if (g->large > UINT64_MAX / 4) g->large = UINT64_MAX / 4;
    for (g->large -= g->large % step; g->large >= 2 * g->small; g->large = g->large / 2 - g->large / 2 % step) {
        result = tli_open_gauge(g, uses_host);
        if (result != TL_ERROR_NO_MEMORY) break;
    }
    if (!result) return TL_OK;
    g->large = 0;
    return result == TL_ERROR_NO_MEMORY ? TL_OK : tli_gauge_fail(g, "add_block, claim", result);
}

static tl_result tli_measure_blocks(tli_gauge *g, tl_device *device) {
    const tl_backend *b = g->backend;
    tl_result result = tli_size_gauge(g);
    if (result || !g->large) return result;
    result = b->fill(b->self, g->ranges[0], 0x3F800000u);
    if (result) result = tli_gauge_fail(g, "fill", result);
    if (!result) result = tli_measure_copies(g, device);
    if (!result) result = tli_measure_codecs(g, device);
    tli_close_gauge(g);
    return result;
}

TLI_IMPL tl_result tl_measure_device(tl_env *env, const tl_backend *backend,
                                     const tl_measure_device_desc *desc, tl_device *device) {
    tli_gauge g;
    tl_device measured;
    tl_result result;
    TL_ASSERT(backend && backend->self && device);
    tli_zero(device, sizeof *device);
    tli_zero(&measured, sizeof measured);
    tli_zero(&g, sizeof g);
    if (desc) g.desc = *desc;
    if (g.desc.sample_count < 0 || g.desc.sample_count > TLI_GAUGE_SAMPLES)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_measure_device", "sample_count: must be 0 .. 31");
    if (!g.desc.sample_count) g.desc.sample_count = 5;
    if (!g.desc.bytes) g.desc.bytes = TLI_GAUGE_LARGE;
    g.env = env;
    g.backend = backend;
    backend->limits(backend->self, &g.limits);
    measured.name = g.desc.name;
    measured.alignment_bytes = g.limits.alignment_bytes;
    if (g.limits.capacity_bytes[TL_TIER_DEVICE] != TL_UNLIMITED)
        measured.device_capacity_bytes = g.limits.capacity_bytes[TL_TIER_DEVICE];
    if (g.limits.capacity_bytes[TL_TIER_HOST] != TL_UNLIMITED)
        measured.host_capacity_bytes = g.limits.capacity_bytes[TL_TIER_HOST];
    result = tli_measure_blocks(&g, &measured);
    if (!result) result = tli_measure_flops(&g, &measured);
    if (!result) *device = measured;
    return result;
}
#endif

// ============================================================================
// [11] MANAGER (implementation)
// ============================================================================

// -- names, policies --

static const char *const tli_recompute_policy_names[] = { TL_RECOMPUTE_POLICIES(TLI_NAME) };
static const char *const tli_eviction_names[] = { TL_EVICTIONS(TLI_NAME) };

TLI_IMPL const char *tl_name_recompute_policy(tl_recompute_policy_kind kind) {
    return tli_name(tli_recompute_policy_names, TL_RECOMPUTE_POLICY_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_eviction(tl_eviction eviction) {
    return tli_name(tli_eviction_names, TL_EVICTION_COUNT, (int64_t)eviction);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_recompute_policy(const char *text, tl_recompute_policy_kind *kind) {
    int32_t value;
    int ok = tli_parse_name(tli_recompute_policy_names, TL_RECOMPUTE_POLICY_COUNT, text,
                            tli_text_length(text), &value);
    *kind = (tl_recompute_policy_kind)value;
    return ok;
}

TLI_IMPL int tl_parse_eviction(const char *text, tl_eviction *eviction) {
    int32_t value;
    int ok = tli_parse_name(tli_eviction_names, TL_EVICTION_COUNT, text, tli_text_length(text), &value);
    *eviction = (tl_eviction)value;
    return ok;
}
#endif

static tl_recompute_policy tli_recompute_policy_of(tl_recompute_policy_kind kind) {
    tl_recompute_policy policy;
    tli_zero(&policy, sizeof policy);
    policy.kind = kind;
    return policy;
}

TLI_IMPL tl_recompute_policy tl_recompute_policy_all(void) {
    return tli_recompute_policy_of(TL_RECOMPUTE_POLICY_ALL);
}
TLI_IMPL tl_recompute_policy tl_recompute_policy_none(void) {
    return tli_recompute_policy_of(TL_RECOMPUTE_POLICY_NONE);
}

TLI_IMPL tl_recompute_policy tl_recompute_policy_selective(uint64_t cost_threshold) {
    tl_recompute_policy policy = tli_recompute_policy_of(TL_RECOMPUTE_POLICY_SELECTIVE);
    policy.as.selective.cost_threshold = cost_threshold;
    return policy;
}

TLI_IMPL tl_recompute_policy tl_recompute_policy_every_n(uint64_t n) {
    tl_recompute_policy policy = tli_recompute_policy_of(TL_RECOMPUTE_POLICY_EVERY_N);
    policy.as.every_n.n = n;
    return policy;
}

TLI_IMPL tl_recompute_policy tl_default_recompute_policy(void) { return tl_recompute_policy_selective(100); }

TLI_IMPL tl_result tl_check_recompute_policy(tl_env *env, const tl_recompute_policy *policy) {
    const char *function = "tl_check_recompute_policy";
    TL_ASSERT(policy);
    if (!tli_is_below((int64_t)policy->kind, TL_RECOMPUTE_POLICY_COUNT))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "kind: unknown");
    if (policy->kind == TL_RECOMPUTE_POLICY_EVERY_N && !policy->as.every_n.n)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "n: must be > 0");
    return TL_OK;
}

// Whether the policy wants a checkpoint of this node and cost; the policy was checked.
static int tli_wants_checkpoint(const tl_recompute_policy *policy, int32_t node, uint64_t cost) {
    switch (policy->kind) {
    case TL_RECOMPUTE_POLICY_ALL:       return 1;
    case TL_RECOMPUTE_POLICY_NONE:      return 0;
    case TL_RECOMPUTE_POLICY_SELECTIVE: return cost >= policy->as.selective.cost_threshold;
    case TL_RECOMPUTE_POLICY_EVERY_N:   return (uint64_t)node % policy->as.every_n.n == 0;
    case TL_RECOMPUTE_POLICY_COUNT:     break;
    }
    return 0;
}

// -- which of two goes first --

// What an eviction looks at.
typedef struct tli_victim {
    uint64_t timestamp, last_use;
    uint64_t bytes;  // that it takes now
    uint64_t cost;   // of having it again
} tli_victim;

// limbs = a b c: 192 bits, least significant first.
static void tli_mul_wide(uint64_t a, uint64_t b, uint64_t c, uint64_t limbs[3]) {
    uint32_t factors[4], words[6];
    uint64_t carry;
    int i, j;
    factors[0] = (uint32_t)b; factors[1] = (uint32_t)(b >> 32);
    factors[2] = (uint32_t)c; factors[3] = (uint32_t)(c >> 32);
    words[0] = (uint32_t)a; words[1] = (uint32_t)(a >> 32);
    words[2] = words[3] = words[4] = words[5] = 0;
    for (i = 0; i < 4; i += 2) {
        uint64_t low = 0, high = 0, sum;
        uint32_t before = 0;
        carry = 0;
        for (j = 0; j < 6; j++) {  // words x (factors[i] + 2^32 factors[i + 1]), one word at a time
            low = (uint64_t)words[j] * factors[i] + (carry & 0xFFFFFFFFu);
            high = (uint64_t)before * factors[i + 1] + (carry >> 32);
            before = words[j];
            sum = (low & 0xFFFFFFFFu) + (high & 0xFFFFFFFFu);
            words[j] = (uint32_t)sum;
            carry = (low >> 32) + (sum >> 32);
            carry = (carry & 0xFFFFFFFFu) | (high >> 32) << 32;
        }
    }
    for (i = 0; i < 3; i++) limbs[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

// Whether a goes before b. By cost: the least cost / (bytes x staleness), staleness counted in saves
// and from 1, compared exactly; equal ones by age. The caller's own order falls back to age.
static int tli_evict_before(tl_eviction eviction, const tli_victim *a, const tli_victim *b, uint64_t now) {
    uint64_t left[3], right[3];
    int i;
    switch (eviction) {
    case TL_EVICTION_COST:
        tli_mul_wide(a->cost, b->bytes, now - b->last_use + 1, left);
        tli_mul_wide(b->cost, a->bytes, now - a->last_use + 1, right);
        for (i = 2; i >= 0; i--)
            if (left[i] != right[i]) return left[i] < right[i];
        break;
    case TL_EVICTION_RECENT:
        if (a->last_use != b->last_use) return a->last_use < b->last_use;
        break;
    case TL_EVICTION_LARGEST:
        if (a->bytes != b->bytes) return a->bytes > b->bytes;
        break;
    case TL_EVICTION_OLDEST:
    case TL_EVICTION_CALLER:
    case TL_EVICTION_COUNT: break;
    }
    return a->timestamp < b->timestamp;
}

// -- the store --

typedef struct tli_entry {
    tl_checkpoint_key key;
    tli_victim victim;     // bytes: those it takes in its tier
    uint64_t bytes;        // uncompressed
    uint64_t block;        // 0 where bytes are 0
    const void *mapped;    // while borrowed
    int32_t  borrows;
    int32_t  list;         // that it stands in; -1 = none
    int32_t  before, after;  // there; after also links unused entries
    uint32_t hash;
    uint8_t  tier, codec, keep, lossless;
    uint8_t  owns_mapped;  // 1 = mapped is memory of the env, not of the backend
} tli_entry;

typedef struct tli_cell { uint32_t hash; int32_t entry; } tli_cell;  // entry + 1; 0 = empty

typedef struct tli_list { int32_t head, tail; } tli_list;  // entry + 1

#define TLI_LIST_COUNT 256  // of a bank: one list, or one for each class of size or of cost per byte
#define TLI_DROPPABLE  0    // bank of what may be dropped
#define TLI_KEPT       1    // bank of what may be moved only

// What could not be given back when it should have been, and is tried again later: a mapping where
// there is a host address, else a block, of which bytes are still claimed.
typedef struct tli_lost { uint64_t block, bytes; void *host; tl_tier tier; tl_map_mode mode; } tli_lost;

struct tl_manager {
    tl_env *env;
    tl_backend backend;
    tl_manager_desc desc;
    uint64_t budget[TL_TIER_COUNT];  // what binds: the desc's, and no more than the backend has
    int32_t  device_is_finite;       // the backend knows its capacity: no memory there means full
    int32_t  host_visible;
    tli_entry *entries;
    int32_t  entry_capacity, entry_count, free_entry;  // entry_count: ever used; free_entry: + 1
    tli_cell *cells;
    uint32_t cell_count;             // a power of two
    int32_t  held, spilled;          // entries; of these, in the host tier
    tli_list lists[2 * TLI_LIST_COUNT];
    uint32_t list_bits[2 * TLI_LIST_COUNT / 32];
    uint64_t clock;                  // timestamp of the last save
    uint64_t bytes[TL_TIER_COUNT];   // claimed
    uint64_t droppable_bytes;        // in the device tier, neither kept nor borrowed
    int32_t  enqueued;               // 1 = work was enqueued since the last submit
    tl_ticket last_ticket;
    tli_lost *lost;
    int32_t  lost_count, lost_capacity;
    tl_checkpoint_info *candidates;  // TL_EVICTION_CALLER
    int32_t *candidate_entries;
    int32_t  candidate_capacity;
    tl_checkpoint_statistics statistics;
    char     lock;
};

// -- lock: the caller's or a spin lock; never taken twice by one call --

#ifndef TL_NO_THREADS
#if defined(__GNUC__) || defined(__clang__)
static void tli_spin_lock(char *lock) {
    while (__atomic_test_and_set(lock, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(lock, __ATOMIC_RELAXED)) {}
}
static void tli_spin_unlock(char *lock) { __atomic_clear(lock, __ATOMIC_RELEASE); }
#elif defined(_MSC_VER)
#include <intrin.h>
static void tli_spin_lock(char *lock) { while (_InterlockedExchange8(lock, 1)) {} }
static void tli_spin_unlock(char *lock) { _InterlockedExchange8(lock, 0); }
#else
#error "tl_strategy.h: no spin lock for this compiler: define TL_NO_THREADS, give a manager your own lock"
#endif
#endif

static void tli_lock_manager(tl_manager *m) {
    if (m->desc.lock.lock) { m->desc.lock.lock(m->desc.lock.user); return; }
#ifndef TL_NO_THREADS
    tli_spin_lock(&m->lock);
#endif
}

static void tli_unlock_manager(tl_manager *m) {
    if (m->desc.lock.unlock) { m->desc.lock.unlock(m->desc.lock.user); return; }
#ifndef TL_NO_THREADS
    tli_spin_unlock(&m->lock);
#endif
}

// -- table: open addressing on micro-batch, node, output; the step is not part of the place --

// Eight neighbouring nodes share a cache line of cells: passes go through the nodes in order.
static uint32_t tli_hash_key(const tl_checkpoint_key *key) {
    uint64_t place = (uint64_t)((uint32_t)key->node >> 3) << 32 | (uint32_t)key->output;
    uint32_t hash = (uint32_t)(tl_mix_u64(place, (uint64_t)(uint32_t)key->micro_batch) >> 32);
    return (hash & ~7u) | ((uint32_t)key->node & 7u);
}

static int tli_same_place(const tl_checkpoint_key *a, const tl_checkpoint_key *b) {
    return a->node == b->node && a->output == b->output && a->micro_batch == b->micro_batch;
}

// The entry at the key's place, whatever its step; -1 where there is none.
static int32_t tli_find_entry(const tl_manager *m, const tl_checkpoint_key *key) {
    uint32_t hash = tli_hash_key(key), mask = m->cell_count - 1, at;
    if (!m->cell_count) return -1;
    for (at = hash & mask; m->cells[at].entry; at = (at + 1) & mask)
        if (m->cells[at].hash == hash && tli_same_place(&m->entries[m->cells[at].entry - 1].key, key))
            return m->cells[at].entry - 1;
    return -1;
}

static void tli_put_cell(tli_cell *cells, uint32_t cell_count, uint32_t hash, int32_t entry) {
    uint32_t at = hash & (cell_count - 1);
    while (cells[at].entry) at = (at + 1) & (cell_count - 1);
    cells[at].hash = hash;
    cells[at].entry = entry + 1;
}

// Empty a cell and close the gap, so that no probe ever ends too early and nothing piles up.
static void tli_clear_cell(tl_manager *m, int32_t entry) {
    uint32_t mask = m->cell_count - 1, gap = m->entries[entry].hash & mask, at;
    while (m->cells[gap].entry != entry + 1) gap = (gap + 1) & mask;
    for (at = (gap + 1) & mask; m->cells[at].entry; at = (at + 1) & mask) {
        if (((at - m->cells[at].hash) & mask) < ((at - gap) & mask)) continue;  // would move before its home
        m->cells[gap] = m->cells[at];
        gap = at;
    }
    m->cells[gap].entry = 0;
}

// Make room for one more entry, in every table.
static int tli_reserve_entries(tl_manager *m, int64_t count) {
    uint32_t cells = m->cell_count ? m->cell_count : 16, i;
    tli_cell *table;
    if (count > (int64_t)1 << 29) return 0;
    if (!tli_grow(m->env, (void **)&m->entries, &m->entry_capacity, m->entry_count, count,
                  sizeof *m->entries))
        return 0;
    if (m->desc.eviction == TL_EVICTION_CALLER && m->candidate_capacity < m->entry_capacity) {
        int32_t entries = m->candidate_capacity, infos = m->candidate_capacity;
        if (!tli_grow(m->env, (void **)&m->candidate_entries, &entries, 0, m->entry_capacity,
                      sizeof *m->candidate_entries) ||
            !tli_grow(m->env, (void **)&m->candidates, &infos, 0, m->entry_capacity, sizeof *m->candidates))
            return 0;
        m->candidate_capacity = entries;
    }
    while (cells < 2 * (uint64_t)count) cells *= 2;
    if (cells == m->cell_count) return 1;
    table = (tli_cell *)tli_alloc_array(m->env, cells, sizeof *table);
    if (!table) return 0;
    for (i = 0; i < m->cell_count; i++)
        if (m->cells[i].entry) tli_put_cell(table, cells, m->cells[i].hash, m->cells[i].entry - 1);
    tli_release(m->env, m->cells);
    m->cells = table;
    m->cell_count = cells;
    return 1;
}

// Take an unused entry for a key; there is room.
static int32_t tli_add_entry(tl_manager *m, const tl_checkpoint_key *key) {
    int32_t i = m->free_entry ? m->free_entry - 1 : m->entry_count++;
    tli_entry *e = &m->entries[i];
    if (m->free_entry) m->free_entry = e->after;
    tli_zero(e, sizeof *e);
    e->key = *key;
    e->list = -1;
    e->hash = tli_hash_key(key);
    tli_put_cell(m->cells, m->cell_count, e->hash, i);
    m->held++;
    return i;
}

static void tli_remove_entry(tl_manager *m, int32_t i) {
    tli_clear_cell(m, i);
    m->spilled -= m->entries[i].tier == TL_TIER_HOST;
    m->entries[i].after = m->free_entry;
    m->free_entry = i + 1;
    m->held--;
}

// -- lists of what may be evicted, each in order of age or of use --

// Classes only save time: by size, or by cost per byte, in steps of a fraction of a power of two.
static int32_t tli_list_of(const tl_manager *m, const tli_entry *e) {
    int32_t bank = e->keep ? TLI_LIST_COUNT * TLI_KEPT : TLI_LIST_COUNT * TLI_DROPPABLE;
    if (m->desc.eviction == TL_EVICTION_LARGEST) return bank + tli_class_of(e->victim.bytes);
    if (m->desc.eviction != TL_EVICTION_COST || !e->victim.cost) return bank;
    return bank + (tli_class_of(e->victim.cost) - tli_class_of(e->victim.bytes) + 258) / 2;
}

static uint64_t tli_list_key(const tl_manager *m, const tli_entry *e) {
    int by_use = m->desc.eviction == TL_EVICTION_COST || m->desc.eviction == TL_EVICTION_RECENT;
    return by_use ? e->victim.last_use : e->victim.timestamp;
}

static int tli_is_droppable(const tli_entry *e) {
    return e->tier == TL_TIER_DEVICE && !e->keep && !e->borrows;
}

// Put an entry that takes device bytes into its list. New ones go to the end, those that were at
// the front a moment ago to the front; in between the nearer end is walked from.
static void tli_enlist(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    uint64_t key = tli_list_key(m, e);
    int32_t front, back;
    tli_list *list;
    if (!e->victim.bytes) return;
    e->list = tli_list_of(m, e);
    list = &m->lists[e->list];
    m->list_bits[e->list >> 5] |= (uint32_t)1 << (e->list & 31);
    front = list->head;
    back = list->tail;
    while (back && tli_list_key(m, &m->entries[back - 1]) > key) {
        if (tli_list_key(m, &m->entries[front - 1]) > key) { back = m->entries[front - 1].before; break; }
        front = m->entries[front - 1].after;
        back = m->entries[back - 1].before;
    }
    e->before = back;
    e->after = back ? m->entries[back - 1].after : list->head;
    if (e->before) m->entries[e->before - 1].after = i + 1; else list->head = i + 1;
    if (e->after) m->entries[e->after - 1].before = i + 1; else list->tail = i + 1;
    if (tli_is_droppable(e)) m->droppable_bytes += e->victim.bytes;
}

static void tli_delist(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    tli_list *list;
    if (e->list < 0) return;
    list = &m->lists[e->list];
    if (e->before) m->entries[e->before - 1].after = e->after; else list->head = e->after;
    if (e->after) m->entries[e->after - 1].before = e->before; else list->tail = e->before;
    if (!list->head) m->list_bits[e->list >> 5] &= ~((uint32_t)1 << (e->list & 31));
    if (tli_is_droppable(e)) m->droppable_bytes -= e->victim.bytes;
    e->list = -1;
}

// While borrowed an entry stays in its list and is stepped over.
static void tli_borrow(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    if (e->list >= 0 && tli_is_droppable(e)) m->droppable_bytes -= e->victim.bytes;
    e->borrows++;
}

static void tli_unborrow(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    e->borrows--;
    if (e->list >= 0 && tli_is_droppable(e)) m->droppable_bytes += e->victim.bytes;
}

// -- memory and work of the backend --

static tl_result tli_fail_backend(tl_env *env, const char *function, const char *what, tl_result result) {
    tli_writer w = tli_begin_error(env, result, function);
    tli_put(&w, "backend: ");
    tli_put(&w, what);
    tli_put(&w, ": ");
    tli_put(&w, tl_explain_result(result));
    return tli_end_error(env, &w, result);
}

static tl_range tli_range_of(uint64_t block, uint64_t bytes) {
    tl_range range;
    range.block = block;
    range.offset = 0;
    range.bytes = bytes;
    return range;
}

static tl_range tli_entry_range(const tli_entry *e) { return tli_range_of(e->block, e->victim.bytes); }

static tl_result tli_submit_work(tl_manager *m) {
    tl_ticket ticket;
    tl_result result;
    if (!m->enqueued) return TL_OK;
    result = m->backend.submit(m->backend.self, &ticket);
    if (result) return result;
    m->last_ticket = ticket;
    m->enqueued = 0;
    return TL_OK;
}

static tl_result tli_order_range(tl_manager *m, tl_range range, int writes) {
    tl_access access;
    access.range = range;
    access.writes = writes;
    return m->backend.order(m->backend.self, &access, 1);
}

// Map a range once the work on it is finished. After the device was lost, the host tier is still there.
static tl_result tli_map(tl_manager *m, tl_tier tier, tl_range range, tl_map_mode mode, void **host) {
    tl_result result = tli_order_range(m, range, mode != TL_MAP_READ);
    *host = NULL;
    if (result == TL_ERROR_DEVICE_LOST && tier == TL_TIER_HOST && mode == TL_MAP_READ) result = TL_OK;
    return result ? result : m->backend.map(m->backend.self, range, mode, host);
}

static void tli_lose(tl_manager *m, tl_tier tier, uint64_t block, uint64_t bytes, void *host,
                     tl_map_mode mode) {
    tli_lost *lost;
    if (!tli_grow(m->env, (void **)&m->lost, &m->lost_capacity, m->lost_count, (int64_t)m->lost_count + 1,
                  sizeof *m->lost))
        return;
    lost = &m->lost[m->lost_count++];
    lost->block = block;
    lost->bytes = bytes;
    lost->host = host;
    lost->tier = tier;
    lost->mode = mode;
}

// TL_OK once nothing is left to do about it.
static tl_result tli_retry_one(tl_manager *m, tli_lost *lost) {
    tl_range range = tli_range_of(lost->block, lost->bytes);
    tl_result result = TL_OK;
    if (lost->host) {
        result = m->backend.unmap(m->backend.self, range, lost->mode, lost->host);
        return result == TL_ERROR_CORRUPT ? TL_OK : result;
    }
    if (lost->bytes) result = m->backend.release(m->backend.self, range);
    if (result) return result;
    m->bytes[lost->tier] -= lost->bytes;
    lost->bytes = 0;
    result = m->backend.free_block(m->backend.self, lost->block);
    return result == TL_ERROR_CORRUPT ? TL_OK : result;
}

// Try again to give back what could not be, mappings first. What fails for good goes with the backend.
static void tli_retry_lost(tl_manager *m) {
    int32_t i, kept = 0;
    for (i = 0; i < m->lost_count; i++)
        if (tli_retry_one(m, &m->lost[i])) m->lost[kept++] = m->lost[i];
    m->lost_count = kept;
}

// Unmap; where it fails the mapping is remembered, so that it does not outlive its range.
static tl_result tli_unmap(tl_manager *m, tl_range range, tl_map_mode mode, void *host) {
    tl_result result = m->backend.unmap(m->backend.self, range, mode, host);
    if (result && result != TL_ERROR_CORRUPT)
        tli_lose(m, TL_TIER_DEVICE, range.block, range.bytes, host, mode);
    return result;
}

// Give a range and its block back. *gone tells whether the bytes are: an error without it changes nothing.
static tl_result tli_give_back(tl_manager *m, tl_tier tier, uint64_t block, uint64_t bytes, int *gone) {
    tl_result result;
    *gone = 1;
    if (!bytes) return TL_OK;
    *gone = 0;
    if (m->lost_count) tli_retry_lost(m);
    result = m->backend.release(m->backend.self, tli_range_of(block, bytes));
    if (result) return result;
    *gone = 1;
    m->bytes[tier] -= bytes;
    result = m->backend.free_block(m->backend.self, block);
    if (!result || result == TL_ERROR_CORRUPT) return result;
    tli_lose(m, tier, block, 0, NULL, TL_MAP_READ);
    return TL_OK;
}

// Give back what nobody came to hold; it cannot fail for the caller.
static void tli_abandon(tl_manager *m, tl_tier tier, uint64_t block, uint64_t bytes) {
    int gone;
    (void)tli_give_back(m, tier, block, bytes, &gone);
    if (!gone) tli_lose(m, tier, block, bytes, NULL, TL_MAP_READ);
}

// Claim the whole of a new block; the block is given back where that fails.
static tl_result tli_claim_block(tl_manager *m, tl_tier tier, uint64_t block, uint64_t bytes) {
    tl_result result = m->backend.claim(m->backend.self, tli_range_of(block, bytes));
    if (result) {
        if (m->backend.free_block(m->backend.self, block))
            tli_lose(m, tier, block, 0, NULL, TL_MAP_READ);
        return result;
    }
    m->bytes[tier] += bytes;
    if (tier == TL_TIER_DEVICE && m->bytes[tier] > m->statistics.peak_bytes)
        m->statistics.peak_bytes = m->bytes[tier];
    return TL_OK;
}

static int tli_has_room(const tl_manager *m, tl_tier tier, uint64_t bytes) {
    return m->bytes[tier] <= m->budget[tier] && bytes <= m->budget[tier] - m->bytes[tier];
}

// -- eviction --

static int tli_may_compress(const tl_manager *m, const tli_entry *e) {
    uint64_t packed = tl_find_codec_bytes(m->desc.codec, e->bytes);
    return m->desc.codec != TL_CODEC_NONE && e->codec == TL_CODEC_NONE && !e->lossless && packed < e->bytes &&
        tli_has_room(m, TL_TIER_DEVICE, packed);
}

static int tli_may_evict(const tl_manager *m, const tli_entry *e) {
    return !e->borrows &&
           (!e->keep || tli_may_compress(m, e) || tli_has_room(m, TL_TIER_HOST, e->victim.bytes));
}

static void tli_fill_info(const tli_entry *e, tl_checkpoint_info *info) {
    info->key = e->key;
    info->timestamp = e->victim.timestamp;
    info->last_use = e->victim.last_use;
    info->bytes = e->bytes;
    info->held_bytes = e->victim.bytes;
    info->cost = e->victim.cost;
    info->in_memory = e->tier == TL_TIER_DEVICE;
    info->tier = (tl_tier)e->tier;
    info->codec = (tl_codec)e->codec;
}

static int32_t tli_ask_caller(tl_manager *m, int32_t bank) {
    int32_t at, count = 0, picked;
    for (at = m->lists[bank * TLI_LIST_COUNT].head; at; at = m->entries[at - 1].after) {
        if (!tli_may_evict(m, &m->entries[at - 1])) continue;
        tli_fill_info(&m->entries[at - 1], &m->candidates[count]);
        m->candidate_entries[count++] = at - 1;
    }
    picked = count ? m->desc.evict(m->candidates, count, m->desc.user) : -1;
    return picked >= 0 && picked < count ? m->candidate_entries[picked] : -1;
}

// Pick from a bank: the best of the first of each list; -1 where there is none.
static int32_t tli_pick_victim(tl_manager *m, int32_t bank) {
    int32_t best = -1, word, at;
    if (m->desc.eviction == TL_EVICTION_CALLER) return tli_ask_caller(m, bank);
    for (word = TLI_LIST_COUNT / 32 - 1; word >= 0; word--) {
        uint32_t bits = m->list_bits[bank * TLI_LIST_COUNT / 32 + word];
        while (bits) {
            int32_t bit = tli_log2_u64(bits);
            bits &= ~((uint32_t)1 << bit);
            at = m->lists[bank * TLI_LIST_COUNT + word * 32 + bit].head;
            while (at && !tli_may_evict(m, &m->entries[at - 1])) at = m->entries[at - 1].after;
            if (!at) continue;
            if (best < 0 || tli_evict_before(m->desc.eviction, &m->entries[at - 1].victim,
                                             &m->entries[best].victim, m->clock))
                best = at - 1;
            if (m->desc.eviction == TL_EVICTION_LARGEST) return best;
        }
    }
    return best;
}

// The bytes of an entry now stand in another block: free those it had. Where that fails nothing changed.
static tl_result tli_change_place(tl_manager *m, int32_t i, tl_tier tier, uint64_t block, uint64_t bytes,
                                  tl_codec codec) {
    tli_entry *e = &m->entries[i];
    int gone;
    tl_result result = tli_give_back(m, (tl_tier)e->tier, e->block, e->victim.bytes, &gone);
    if (!gone) {
        tli_abandon(m, tier, block, bytes);
        return result;
    }
    tli_delist(m, i);
    m->spilled += (tier == TL_TIER_HOST) - (e->tier == TL_TIER_HOST);
    e->tier = (uint8_t)tier;
    e->block = block;
    e->victim.bytes = bytes;
    e->codec = (uint8_t)codec;
    if (tier == TL_TIER_DEVICE) tli_enlist(m, i);
    return result;
}

// Copy, or convert, an entry into a claimed block and let it live there.
static tl_result tli_move_entry(tl_manager *m, int32_t i, tl_tier tier, uint64_t block, uint64_t bytes,
                                tl_codec codec) {
    tl_codec from = (tl_codec)m->entries[i].codec;
    tl_range target = tli_range_of(block, bytes), source = tli_entry_range(&m->entries[i]);
    tl_result result;
    if (codec == from) result = m->backend.copy(m->backend.self, target, source);
    else if (codec == TL_CODEC_NONE) result = m->backend.expand(m->backend.self, from, target, source);
    else result = m->backend.compress(m->backend.self, codec, target, source);
    if (result) {
        tli_abandon(m, tier, block, bytes);
        return result;
    }
    m->enqueued = 1;
    return tli_change_place(m, i, tier, block, bytes, codec);
}

// Compress or spill one entry. *moved is 0, with TL_OK, where neither is possible.
static tl_result tli_relocate(tl_env *env, tl_manager *m, const char *function, int32_t i, int *moved) {
    tli_entry *e = &m->entries[i];
    int packs = tli_may_compress(m, e);
    tl_result result;
    uint64_t block;
    *moved = 1;
    if (packs) {
        uint64_t bytes = tl_find_codec_bytes(m->desc.codec, e->bytes);
        result = m->backend.add_block(m->backend.self, TL_TIER_DEVICE, bytes, &block);
        if (!result) {
            result = tli_claim_block(m, TL_TIER_DEVICE, block, bytes);
            if (!result) result = tli_move_entry(m, i, TL_TIER_DEVICE, block, bytes, m->desc.codec);
            if (!result) m->statistics.compressions++;
            return result ? tli_fail_backend(env, function, "compress", result) : TL_OK;
        }
        if (result != TL_ERROR_NO_MEMORY || !m->device_is_finite)
            return tli_fail_backend(env, function, "add_block", result);
    }
    *moved = tli_has_room(m, TL_TIER_HOST, e->victim.bytes);
    if (!*moved) return TL_OK;
    result = m->backend.add_block(m->backend.self, TL_TIER_HOST, e->victim.bytes, &block);
    if (result) return tli_fail_backend(env, function, "add_block", result);
    result = tli_claim_block(m, TL_TIER_HOST, block, e->victim.bytes);
    if (!result) result = tli_move_entry(m, i, TL_TIER_HOST, block, e->victim.bytes, (tl_codec)e->codec);
    if (!result) m->statistics.spills++;
    return result ? tli_fail_backend(env, function, "spill", result) : TL_OK;
}

// Free the bytes of an entry and forget it.
static tl_result tli_discard(tl_env *env, tl_manager *m, const char *function, int32_t i) {
    tli_entry *e = &m->entries[i];
    int gone;
    tl_result result = tli_give_back(m, (tl_tier)e->tier, e->block, e->victim.bytes, &gone);
    if (gone) {
        tli_delist(m, i);
        tli_remove_entry(m, i);
    }
    return result ? tli_fail_backend(env, function, "release", result) : TL_OK;
}

// Evict one of a bank. TL_ERROR_OVER_BUDGET without a word where there is nothing to evict.
static tl_result tli_evict_one(tl_env *env, tl_manager *m, const char *function, int32_t bank) {
    int32_t i = tli_pick_victim(m, bank);
    tl_result result;
    int moved;
    if (i < 0) return TL_ERROR_OVER_BUDGET;
    result = tli_relocate(env, m, function, i, &moved);
    if (!moved && bank == TLI_KEPT) return TL_ERROR_OVER_BUDGET;
    if (!moved) {
        result = tli_discard(env, m, function, i);
        if (!result) m->statistics.dropped++;
    }
    if (!result) m->statistics.evictions++;
    return result;
}

static tl_result tli_refuse(tl_env *env, tl_manager *m, const char *function, uint64_t bytes) {
    tli_writer w = tli_begin_error(env, TL_ERROR_OVER_BUDGET, function);
    tli_put(&w, "budget: ");
    tli_put_u64(&w, bytes);
    tli_put(&w, " bytes do not fit, ");
    tli_put_u64(&w, m->bytes[TL_TIER_DEVICE]);
    tli_put(&w, " of ");
    tli_put_u64(&w, m->budget[TL_TIER_DEVICE]);
    tli_put(&w, " are in use and ");
    tli_put_u64(&w, m->droppable_bytes);
    tli_put(&w, " of these may be evicted");
    return tli_end_error(env, &w, TL_ERROR_OVER_BUDGET);
}

// See to it that dropping all that may be dropped would make room: else move what must be kept.
// So a refusal comes before anything was dropped.
static tl_result tli_clear_way(tl_env *env, tl_manager *m, const char *function, uint64_t bytes) {
    uint64_t budget = m->budget[TL_TIER_DEVICE];
    tl_result result = bytes > budget ? TL_ERROR_OVER_BUDGET : TL_OK;
    while (!result && m->bytes[TL_TIER_DEVICE] - m->droppable_bytes > budget - bytes)
        result = tli_evict_one(env, m, function, TLI_KEPT);
    return result == TL_ERROR_OVER_BUDGET ? tli_refuse(env, m, function, bytes) : result;
}

static tl_result tli_evict_until(tl_env *env, tl_manager *m, const char *function, uint64_t bytes) {
    tl_result result = TL_OK;
    while (!result && !tli_has_room(m, TL_TIER_DEVICE, bytes))
        result = tli_evict_one(env, m, function, TLI_DROPPABLE);
    return result == TL_ERROR_OVER_BUDGET ? tli_refuse(env, m, function, bytes) : result;
}

// Get a claimed block in the device tier, evicting for it. The block is made first: where there is
// no memory for it nothing is evicted, unless that memory is finite and what it holds is ours.
static tl_result tli_acquire(tl_env *env, tl_manager *m, const char *function, uint64_t bytes,
                             uint64_t *block) {
    tl_result result, evicted = TL_OK;
    *block = 0;
    if (!bytes) return TL_OK;
    result = tli_clear_way(env, m, function, bytes);
    if (result) return result;
    result = m->backend.add_block(m->backend.self, TL_TIER_DEVICE, bytes, block);
    while (result == TL_ERROR_NO_MEMORY && m->device_is_finite && !evicted) {
        evicted = tli_evict_one(env, m, function, TLI_DROPPABLE);
        if (!evicted) result = m->backend.add_block(m->backend.self, TL_TIER_DEVICE, bytes, block);
    }
    if (evicted && evicted != TL_ERROR_OVER_BUDGET) return evicted;
    if (result) return tli_fail_backend(env, function, "add_block", result);
    result = tli_evict_until(env, m, function, bytes);
    if (result) {
        if (m->backend.free_block(m->backend.self, *block))
            tli_lose(m, TL_TIER_DEVICE, *block, 0, NULL, TL_MAP_READ);
        return result;
    }
    result = tli_claim_block(m, TL_TIER_DEVICE, *block, bytes);
    return result ? tli_fail_backend(env, function, "claim", result) : TL_OK;
}

// -- save --

static tl_result tli_check_save(tl_env *env, const tl_save_desc *desc) {
    const char *why = NULL;
    if (desc->key.node < 0) why = "key: node: must be >= 0";
    else if (desc->key.output < TL_SAVED) why = "key: output: must be >= 0 or TL_SAVED";
    else if (desc->key.micro_batch < 0) why = "key: micro_batch: must be >= 0";
    else if (desc->data && desc->source.bytes) why = "source: only where data is 0";
    else if (!desc->data && desc->bytes && desc->bytes != desc->source.bytes) why = "data: missing";
    return why ? tli_fail(env, TL_ERROR_INVALID_ARG, "tl_save_checkpoint", why) : TL_OK;
}

static tl_result tli_fail_step(tl_env *env, const char *function, uint64_t held, uint64_t asked) {
    tli_writer w = tli_begin_error(env, TL_ERROR_STALE, function);
    tli_put(&w, "key: step: is ");
    tli_put_u64(&w, asked);
    tli_put(&w, ", held is that of step ");
    tli_put_u64(&w, held);
    return tli_end_error(env, &w, TL_ERROR_STALE);
}

// Write the bytes of a save into a claimed range.
static tl_result tli_write_save(tl_manager *m, const tl_save_desc *desc, tl_range to) {
    tl_result result;
    void *host;
    if (!to.bytes) return TL_OK;
    if (!desc->data) {
        result = m->backend.copy(m->backend.self, to, desc->source);
        if (!result) m->enqueued = 1;
        return result;
    }
    result = tli_map(m, TL_TIER_DEVICE, to, TL_MAP_WRITE, &host);
    if (result) return result;
    tli_copy(host, desc->data, (size_t)to.bytes);
    return tli_unmap(m, to, TL_MAP_WRITE, host);
}

static void tli_fill_entry(tl_manager *m, int32_t i, const tl_save_desc *desc, uint64_t bytes) {
    tli_entry *e = &m->entries[i];
    e->key.step = desc->key.step;
    e->victim.timestamp = e->victim.last_use = ++m->clock;
    e->victim.bytes = e->bytes = bytes;
    e->victim.cost = desc->cost;
    m->spilled -= e->tier == TL_TIER_HOST;
    e->tier = TL_TIER_DEVICE;
    e->codec = TL_CODEC_NONE;
    e->keep = desc->keep != 0;
    e->lossless = desc->lossless != 0;
    tli_enlist(m, i);
    m->statistics.saved++;
}

// Replace the bytes of an entry where they are. Only where no copy can fail half way: the host
// writes them, and the old bytes stay untouched until the mapping stands. A backend that cannot
// even unmap then leaves an unknown mix of both: that entry is dropped.
static tl_result tli_rewrite(tl_env *env, tl_manager *m, const tl_save_desc *desc, int32_t i) {
    const char *function = "tl_save_checkpoint";
    tl_range range = tli_entry_range(&m->entries[i]);
    void *host;
    tl_result result = tli_map(m, TL_TIER_DEVICE, range, TL_MAP_WRITE, &host);
    if (result) return tli_fail_backend(env, function, "map", result);
    tli_copy(host, desc->data, (size_t)range.bytes);
    result = tli_unmap(m, range, TL_MAP_WRITE, host);
    if (result) {
        (void)tli_discard(NULL, m, function, i);
        return tli_fail_backend(env, function, "unmap", result);
    }
    tli_delist(m, i);
    tli_fill_entry(m, i, desc, desc->bytes);
    return TL_OK;
}

static int tli_may_rewrite(const tl_manager *m, const tl_save_desc *desc, int32_t i) {
    const tli_entry *e = i >= 0 ? &m->entries[i] : NULL;
    return e && desc->data && m->host_visible && e->tier == TL_TIER_DEVICE && e->codec == TL_CODEC_NONE &&
        e->bytes == desc->bytes && e->bytes;
}

// Write the bytes of a save into a new block; the one it replaces goes when the new one is whole.
static tl_result tli_store(tl_env *env, tl_manager *m, const tl_save_desc *desc, int32_t old,
                           uint64_t block, uint64_t bytes) {
    const char *function = "tl_save_checkpoint";
    tl_result result = tli_write_save(m, desc, tli_range_of(block, bytes));
    int gone = 1;
    if (result) {
        tli_abandon(m, TL_TIER_DEVICE, block, bytes);
        return tli_fail_backend(env, function, "copy", result);
    }
    if (old >= 0) {
        tli_entry *e = &m->entries[old];
        result = tli_give_back(m, (tl_tier)e->tier, e->block, e->victim.bytes, &gone);
        if (!gone) {
            tli_abandon(m, TL_TIER_DEVICE, block, bytes);
            return tli_fail_backend(env, function, "release", result);
        }
        tli_delist(m, old);
    } else {
        old = tli_add_entry(m, &desc->key);
    }
    m->entries[old].block = block;
    tli_fill_entry(m, old, desc, bytes);
    return result ? tli_fail_backend(env, function, "release", result) : TL_OK;
}

static tl_result tli_save_unlocked(tl_env *env, tl_manager *m, const tl_save_desc *desc) {
    const char *function = "tl_save_checkpoint";
    uint64_t bytes = desc->data ? desc->bytes : desc->source.bytes, block;
    int32_t old = tli_find_entry(m, &desc->key);
    tl_result result;
    if (old >= 0 && m->entries[old].key.step > desc->key.step)
        return tli_fail_step(env, function, m->entries[old].key.step, desc->key.step);
    if (old >= 0 && m->entries[old].borrows)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "key: is borrowed");
    if (!desc->keep && !tli_wants_checkpoint(&m->desc.policy, desc->key.node, desc->cost)) {
        result = old >= 0 ? tli_discard(env, m, function, old) : TL_OK;  // it would be taken for this one
        if (!result) m->statistics.skipped++;
        return result;
    }
    if (old < 0 && !tli_reserve_entries(m, (int64_t)m->held + 1))
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, "no memory for the table of checkpoints");
    if (old >= 0) tli_borrow(m, old);
    result = tli_acquire(env, m, function, bytes, &block);
    if (old >= 0) tli_unborrow(m, old);
    if (result == TL_ERROR_OVER_BUDGET && tli_may_rewrite(m, desc, old))
        return tli_rewrite(env, m, desc, old);
    if (result == TL_ERROR_OVER_BUDGET) m->statistics.refused++;
    return result ? result : tli_store(env, m, desc, old, block, bytes);
}

TLI_IMPL tl_result tl_save_checkpoint(tl_env *env, tl_manager *manager, const tl_save_desc *desc) {
    tl_result result;
    TL_ASSERT(manager && desc);
    result = tli_check_save(env, desc);
    if (result) return result;
    tli_lock_manager(manager);
    result = tli_save_unlocked(env, manager, desc);
    tli_unlock_manager(manager);
    return result;
}

// -- take, peek, release --

// The entry of a key and of its step. counts = a take or a peek.
static tl_result tli_look_up(tl_env *env, tl_manager *m, const char *function, const tl_checkpoint_key *key,
                             int counts, int32_t *entry) {
    *entry = tli_find_entry(m, key);
    if (*entry >= 0 && m->entries[*entry].key.step == key->step) {
        m->statistics.hits += counts != 0;
        return TL_OK;
    }
    m->statistics.misses += counts != 0;
    if (*entry >= 0) return tli_fail_step(env, function, m->entries[*entry].key.step, key->step);
    return tli_fail(env, TL_ERROR_NOT_FOUND, function, "key: nothing is held under it");
}

static tl_result tli_check_take(tl_env *env, tl_manager *m, const char *function,
                                const tl_checkpoint_key *key, uint64_t bytes, int32_t *entry) {
    tl_result result = tli_look_up(env, m, function, key, 1, entry);
    if (result) return result;
    if (m->entries[*entry].borrows) return tli_fail(env, TL_ERROR_INVALID_ARG, function, "key: is borrowed");
    if (m->entries[*entry].bytes != bytes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "bytes: are not those of the checkpoint");
    return TL_OK;
}

static tl_result tli_take_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key, void *data,
                                   uint64_t bytes) {
    const char *function = "tl_take_checkpoint";
    int32_t i;
    tl_range range;
    void *host;
    tl_result result = tli_check_take(env, m, function, key, bytes, &i);
    if (result) return result;
    range = tli_entry_range(&m->entries[i]);
    if (range.bytes) {
        result = tli_map(m, (tl_tier)m->entries[i].tier, range, TL_MAP_READ, &host);
        if (result) return tli_fail_backend(env, function, "map", result);
        tl_expand_bytes((tl_codec)m->entries[i].codec, data, host, bytes);
        result = tli_unmap(m, range, TL_MAP_READ, host);
        if (result) return tli_fail_backend(env, function, "unmap", result);
    }
    return tli_discard(env, m, function, i);
}

TLI_IMPL tl_result tl_take_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key, void *data,
                                      uint64_t bytes) {
    tl_result result;
    TL_ASSERT(manager && (data || !bytes));
    tli_lock_manager(manager);
    result = tli_take_unlocked(env, manager, &key, data, bytes);
    tli_unlock_manager(manager);
    return result;
}

static tl_result tli_take_range_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key,
                                         tl_range to, tl_ticket *ticket) {
    const char *function = "tl_take_checkpoint_range";
    int32_t i;
    tl_codec codec;
    tl_range from;
    tl_result result = tli_check_take(env, m, function, key, to.bytes, &i);
    if (result) return result;
    codec = (tl_codec)m->entries[i].codec;
    from = tli_entry_range(&m->entries[i]);
    if (to.bytes) {
        result = codec == TL_CODEC_NONE ? m->backend.copy(m->backend.self, to, from)
                                        : m->backend.expand(m->backend.self, codec, to, from);
        if (result) return tli_fail_backend(env, function, "copy", result);
        m->enqueued = 1;
        result = ticket ? tli_submit_work(m) : TL_OK;
        if (result) return tli_fail_backend(env, function, "submit", result);
    }
    result = tli_discard(env, m, function, i);
    if (!result && ticket) *ticket = m->last_ticket;
    return result;
}

TLI_IMPL tl_result tl_take_checkpoint_range(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                            tl_range to, tl_ticket *ticket) {
    tl_result result;
    TL_ASSERT(manager);
    if (ticket) ticket->value = 0;
    tli_lock_manager(manager);
    result = tli_take_range_unlocked(env, manager, &key, to, ticket);
    tli_unlock_manager(manager);
    return result;
}

TLI_IMPL tl_result tl_submit_checkpoints(tl_env *env, tl_manager *manager, tl_ticket *ticket) {
    tl_result result;
    TL_ASSERT(manager && ticket);
    tli_lock_manager(manager);
    result = tli_submit_work(manager);
    *ticket = manager->last_ticket;
    tli_unlock_manager(manager);
    if (!result) return TL_OK;
    ticket->value = 0;
    return tli_fail_backend(env, "tl_submit_checkpoints", "submit", result);
}

// Put a raw copy of an entry into the device tier, if it is not there.
static tl_result tli_bring_back(tl_env *env, tl_manager *m, const char *function, int32_t i) {
    const tli_entry *e = &m->entries[i];
    int fetches = e->tier == TL_TIER_HOST;
    uint64_t block;
    tl_result result;
    if (!e->bytes || (!fetches && e->codec == TL_CODEC_NONE)) return TL_OK;
    result = tli_acquire(env, m, function, e->bytes, &block);
    if (result) return result;
    result = tli_move_entry(m, i, TL_TIER_DEVICE, block, m->entries[i].bytes, TL_CODEC_NONE);
    if (result) return tli_fail_backend(env, function, "fetch", result);
    m->statistics.fetches += fetches != 0;
    return TL_OK;
}

// Unpack a compressed entry of the host tier into memory of the env.
static tl_result tli_unpack(tl_manager *m, const tli_entry *e, void **data) {
    tl_range range = tli_entry_range(e);
    void *host;
    tl_result result = tli_map(m, TL_TIER_HOST, range, TL_MAP_READ, &host);
    if (result) return result;
    *data = tli_alloc(m->env, (size_t)e->bytes);
    if (*data) tl_expand_bytes((tl_codec)e->codec, *data, host, e->bytes);
    result = tli_unmap(m, range, TL_MAP_READ, host);
    if (!result && *data) return TL_OK;
    tli_release(m->env, *data);
    *data = NULL;
    return result ? result : TL_ERROR_NO_MEMORY;
}

// Give the host the bytes of an entry: brought back into the device tier; after the device was lost,
// those of the host tier where they are.
static tl_result tli_map_entry(tl_env *env, tl_manager *m, const char *function, int32_t i) {
    tli_entry *e = &m->entries[i];
    void *host = NULL;
    tl_result result = tli_bring_back(env, m, function, i);
    int is_lost = result && e->tier == TL_TIER_HOST &&
                  tli_order_range(m, tli_entry_range(e), 0) == TL_ERROR_DEVICE_LOST;
    if (result && !is_lost) return result;
    e->owns_mapped = is_lost && e->codec != TL_CODEC_NONE;
    result = TL_OK;
    if (e->owns_mapped) result = tli_unpack(m, e, &host);
    else if (e->bytes) result = tli_map(m, (tl_tier)e->tier, tli_entry_range(e), TL_MAP_READ, &host);
    if (result) return tli_fail_backend(env, function, "map", result);
    e->mapped = host;
    return TL_OK;
}

static tl_result tli_peek_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key,
                                   const void **data, uint64_t *bytes) {
    const char *function = "tl_peek_checkpoint";
    tl_result result;
    tli_entry *e;
    int32_t i;
    result = tli_look_up(env, m, function, key, 1, &i);
    if (result) return result;
    if (!m->entries[i].borrows) {
        tli_borrow(m, i);
        result = tli_map_entry(env, m, function, i);
        tli_unborrow(m, i);
        if (result) return result;
    }
    tli_borrow(m, i);
    e = &m->entries[i];
    e->victim.last_use = m->clock;
    if (e->list >= 0 && (m->desc.eviction == TL_EVICTION_COST || m->desc.eviction == TL_EVICTION_RECENT)) {
        tli_delist(m, i);
        tli_enlist(m, i);
    }
    *data = e->mapped;
    *bytes = e->bytes;
    return TL_OK;
}

TLI_IMPL tl_result tl_peek_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                      const void **data, uint64_t *bytes) {
    tl_result result;
    TL_ASSERT(manager && data && bytes);
    *data = NULL;
    *bytes = 0;
    tli_lock_manager(manager);
    result = tli_peek_unlocked(env, manager, &key, data, bytes);
    tli_unlock_manager(manager);
    return result;
}

// End the mapping of an entry. TL_ERROR_CORRUPT ends it too.
static tl_result tli_unmap_entry(tl_manager *m, int32_t i) {
    tli_entry *e = &m->entries[i];
    tl_result result = TL_OK;
    union { const void *in; void *out; } host;
    host.in = e->mapped;
    if (host.in && e->owns_mapped) tli_release(m->env, host.out);
    else if (host.in) result = m->backend.unmap(m->backend.self, tli_entry_range(e), TL_MAP_READ, host.out);
    if (!result || result == TL_ERROR_CORRUPT) e->mapped = NULL;
    return result;
}

static tl_result tli_release_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key) {
    const char *function = "tl_release_checkpoint";
    int32_t i;
    tl_result result = tli_look_up(env, m, function, key, 0, &i);
    if (result) return result;
    if (!m->entries[i].borrows) return tli_fail(env, TL_ERROR_INVALID_ARG, function, "key: is not borrowed");
    if (m->entries[i].borrows == 1) result = tli_unmap_entry(m, i);
    if (!result || result == TL_ERROR_CORRUPT) tli_unborrow(m, i);
    return result ? tli_fail_backend(env, function, "unmap", result) : TL_OK;
}

TLI_IMPL tl_result tl_release_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key) {
    tl_result result;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    result = tli_release_unlocked(env, manager, &key);
    tli_unlock_manager(manager);
    return result;
}

// -- has, drop, find, evict, reset, measure --

TLI_IMPL int tl_has_checkpoint(tl_manager *manager, tl_checkpoint_key key) {
    int32_t i;
    int has;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    i = tli_find_entry(manager, &key);
    has = i >= 0 && manager->entries[i].key.step == key.step;
    tli_unlock_manager(manager);
    return has;
}

static tl_result tli_drop_unlocked(tl_env *env, tl_manager *m, const tl_checkpoint_key *key) {
    const char *function = "tl_drop_checkpoint";
    int32_t i;
    tl_result result = tli_look_up(env, m, function, key, 0, &i);
    if (result) return result;
    if (m->entries[i].borrows) return tli_fail(env, TL_ERROR_INVALID_ARG, function, "key: is borrowed");
    return tli_discard(env, m, function, i);
}

TLI_IMPL tl_result tl_drop_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key) {
    tl_result result;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    result = tli_drop_unlocked(env, manager, &key);
    tli_unlock_manager(manager);
    return result;
}

TLI_IMPL tl_result tl_find_checkpoint(tl_env *env, tl_manager *manager, tl_checkpoint_key key,
                                      tl_checkpoint_info *info) {
    tl_result result;
    int32_t i;
    TL_ASSERT(manager && info);
    tli_zero(info, sizeof *info);
    tli_lock_manager(manager);
    result = tli_look_up(env, manager, "tl_find_checkpoint", &key, 0, &i);
    if (!result) tli_fill_info(&manager->entries[i], info);
    tli_unlock_manager(manager);
    return result;
}

TLI_IMPL tl_result tl_evict_checkpoints(tl_env *env, tl_manager *manager, uint64_t bytes) {
    const char *function = "tl_evict_checkpoints";
    tl_result result;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    result = tli_clear_way(env, manager, function, bytes);
    if (!result) result = tli_evict_until(env, manager, function, bytes);
    tli_unlock_manager(manager);
    return result;
}

static tl_result tli_reset_unlocked(tl_env *env, tl_manager *m, const char *function) {
    tl_result first = TL_OK;
    uint32_t at = 0;
    int32_t i;
    while (at < m->cell_count) {
        tl_result result;
        if (!m->cells[at].entry) { at++; continue; }
        i = m->cells[at].entry - 1;
        result = tli_unmap_entry(m, i);
        if (result && !first) first = tli_fail_backend(env, function, "unmap", result);
        if (!m->entries[i].mapped) {
            while (m->entries[i].borrows) tli_unborrow(m, i);
            result = tli_discard(env, m, function, i);
            if (result && !first) first = result;
        }
        if (m->cells[at].entry == i + 1) at++;  // it could not be dropped: step over it
    }
    return first;
}

TLI_IMPL tl_result tl_reset_manager(tl_env *env, tl_manager *manager) {
    tl_result result;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    result = tli_reset_unlocked(env, manager, "tl_reset_manager");
    if (manager->lost_count) tli_retry_lost(manager);
    tli_zero(&manager->statistics, sizeof manager->statistics);
    manager->statistics.peak_bytes = manager->bytes[TL_TIER_DEVICE];
    tli_unlock_manager(manager);
    return result;
}

TLI_IMPL uint64_t tl_find_memory_usage(tl_manager *manager) {
    uint64_t bytes;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    bytes = manager->bytes[TL_TIER_DEVICE];
    tli_unlock_manager(manager);
    return bytes;
}

TLI_IMPL uint64_t tl_find_checkpoint_count(tl_manager *manager) {
    uint64_t count;
    TL_ASSERT(manager);
    tli_lock_manager(manager);
    count = (uint64_t)manager->held;
    tli_unlock_manager(manager);
    return count;
}

TLI_IMPL void tl_measure_manager(tl_manager *manager, tl_checkpoint_statistics *statistics) {
    uint64_t budget;
    TL_ASSERT(manager && statistics);
    tli_lock_manager(manager);
    *statistics = manager->statistics;
    budget = manager->desc.device_budget_bytes;
    statistics->total_checkpoints = (uint64_t)manager->held;
    statistics->in_memory_checkpoints = (uint64_t)(manager->held - manager->spilled);
    statistics->total_memory_bytes = manager->bytes[TL_TIER_DEVICE];
    statistics->memory_budget_bytes = budget;
    statistics->memory_utilization = budget == TL_UNLIMITED || !budget ? 0.0
                                   : (double)manager->bytes[TL_TIER_DEVICE] / (double)budget;
    statistics->host_memory_bytes = manager->bytes[TL_TIER_HOST];
    statistics->host_budget_bytes = manager->desc.host_budget_bytes;
    tli_unlock_manager(manager);
}

// -- making and freeing it --

static tl_result tli_check_manager(tl_env *env, const tl_backend *backend, const tl_manager_desc *desc,
                                   const tl_backend_limits *limits) {
    const char *function = "tl_init_manager", *why = NULL;
    if (!backend->self && !backend->add_block) why = "backend: is not initialised";
    else if (tl_check_recompute_policy(env, &desc->policy)) return TL_ERROR_INVALID_ARG;
    else if (!tli_is_below((int64_t)desc->eviction, TL_EVICTION_COUNT)) why = "eviction: unknown";
    else if ((desc->eviction == TL_EVICTION_CALLER) != (desc->evict != NULL))
        why = "evict: must be given with TL_EVICTION_CALLER, and only then";
    else if (!tli_is_below((int64_t)desc->codec, TL_CODEC_COUNT)) why = "codec: unknown";
    else if (!desc->lock.lock != !desc->lock.unlock) why = "lock: both functions or neither";
    else if (desc->checkpoint_capacity < 0) why = "checkpoint_capacity: must be >= 0";
    if (why) return tli_fail(env, TL_ERROR_INVALID_ARG, function, why);
    if (desc->codec != TL_CODEC_NONE && !(limits->codecs >> desc->codec & 1u))
        return tli_fail(env, TL_ERROR_UNSUPPORTED, function, "codec: the backend cannot convert to it");
    return TL_OK;
}

TLI_IMPL tl_result tl_init_manager(tl_env *env, const tl_backend *backend, const tl_manager_desc *desc,
                                   tl_manager **manager) {
    tl_backend_limits limits;
    tl_result result;
    tl_manager *m;
    int tier;
    TL_ASSERT(backend && desc && manager);
    *manager = NULL;
    tli_zero(&limits, sizeof limits);
    if (backend->limits) backend->limits(backend->self, &limits);
    result = tli_check_manager(env, backend, desc, &limits);
    if (result) return result;
    m = (tl_manager *)tli_alloc_array(env, 1, sizeof *m);
    if (!m) return tli_fail(env, TL_ERROR_NO_MEMORY, "tl_init_manager", "no memory");
    m->env = env;
    m->backend = *backend;
    m->desc = *desc;
    if (!desc->device_budget_bytes) m->desc.device_budget_bytes = TL_UNLIMITED;
    m->budget[TL_TIER_DEVICE] = m->desc.device_budget_bytes;
    m->budget[TL_TIER_HOST] = desc->host_budget_bytes;
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        if (m->budget[tier] > limits.capacity_bytes[tier]) m->budget[tier] = limits.capacity_bytes[tier];
    m->device_is_finite = limits.capacity_bytes[TL_TIER_DEVICE] != TL_UNLIMITED;
    m->host_visible = limits.host_visible;
    if (desc->checkpoint_capacity && !tli_reserve_entries(m, desc->checkpoint_capacity)) {
        tl_free_manager(m);
        return tli_fail(env, TL_ERROR_NO_MEMORY, "tl_init_manager", "no memory for the table of checkpoints");
    }
    *manager = m;
    return TL_OK;
}

TLI_IMPL void tl_free_manager(tl_manager *manager) {
    tl_env *env;
    if (!manager) return;
    env = manager->env;
    (void)tli_reset_unlocked(NULL, manager, "tl_free_manager");
    if (manager->lost_count) tli_retry_lost(manager);
    tli_release(env, manager->lost);
    tli_release(env, manager->candidates);
    tli_release(env, manager->candidate_entries);
    tli_release(env, manager->cells);
    tli_release(env, manager->entries);
    tli_release(env, manager);
}

// ============================================================================
// [12] RUN (implementation)
// ============================================================================

static const char *const tli_random_moment_names[] = { TL_RANDOM_MOMENTS(TLI_NAME) };

TLI_IMPL const char *tl_name_random_moment(tl_random_moment moment) {
    return tli_name(tli_random_moment_names, TL_RANDOM_MOMENT_COUNT, (int64_t)moment);
}

// -- buffers: what really stands in the backend, claimed and released step by step --

typedef struct tli_buffer {
    tl_range  device;      // raw or compressed bytes; bytes 0 = none
    tl_range  host;        // bytes 0 = none
    tl_ticket copied;      // of the copy under way
    uint64_t  copy_ns;     // when it was issued
    uint8_t   state;       // tli_state
    uint8_t   on_host;
    uint8_t   codec;       // while compressed
} tli_buffer;

// Where buffers come from: one block each, or planned offsets in one block.
typedef struct tli_pool {
    const tl_backend *backend;
    uint64_t          arena;         // block of all device ranges; 0 = a block each
    const uint64_t   *offsets;       // [offset_count] by number of the allocation
    int32_t           offset_count, next_offset;
    int32_t           unsubmitted;   // 1 = work was enqueued since the last submit
    int32_t           in_order;      // 1 = the backend's: a copy has no ticket of its own
    int32_t           watches;       // 1 = note high_bytes
    uint64_t          high_bytes;    // device: most live bytes after a claim
    tl_range          spare;         // the other copy of a tensor while it is converted
    tl_ticket         last;          // of the last submit
} tli_pool;

static uint64_t tli_pool_live_bytes(const tli_pool *pool, tl_tier tier) {
    tl_backend_counters counters;
    pool->backend->counters(pool->backend->self, &counters);
    return counters.live_bytes[tier];
}

static const char tli_cannot_wait[] = "backend: work is under way that it cannot wait for";

static tl_result tli_pool_submit(tli_pool *pool) {
    tl_result result;
    if (!pool->unsubmitted) return TL_OK;
    result = pool->backend->submit(pool->backend->self, &pool->last);
    if (!result) pool->unsubmitted = 0;
    return result;
}

// Give a range back, and its block unless it is the arena. What could not be given back stays
// described by *range (no bytes: a block without a claim), so that the next try goes on from there.
static tl_result tli_pool_release(tli_pool *pool, tl_range *range) {
    const tl_backend *backend = pool->backend;
    tl_result result = range->bytes ? backend->release(backend->self, *range) : TL_OK;
    if (result) return result;
    range->bytes = 0;
    if (range->block && range->block != pool->arena) {
        result = backend->free_block(backend->self, range->block);
        if (result) return result;
    }
    tli_zero(range, sizeof *range);
    return result;
}

static tl_result tli_pool_claim(tli_pool *pool, tl_tier tier, uint64_t bytes, tl_range *range) {
    const tl_backend *backend = pool->backend;
    tl_result result = tli_pool_release(pool, range);  // of an earlier pass that failed
    if (result || !bytes) return result;
    if (tier == TL_TIER_DEVICE && pool->arena) {
        if (pool->next_offset >= pool->offset_count) return TL_ERROR_INVALID_PLAN;
        range->block = pool->arena;
        range->offset = pool->offsets[pool->next_offset++];
    } else {
        result = backend->add_block(backend->self, tier, bytes, &range->block);
        if (result) return result;
    }
    range->bytes = bytes;
    result = backend->claim(backend->self, *range);
    if (result) {
        range->bytes = 0;
        (void)tli_pool_release(pool, range);
    } else if (pool->watches && tier == TL_TIER_DEVICE) {
        uint64_t live = tli_pool_live_bytes(pool, TL_TIER_DEVICE);
        if (live > pool->high_bytes) pool->high_bytes = live;
    }
    return result;
}

static tl_result tli_pool_copy(tli_pool *pool, tl_range to, tl_range from) {
    if (!from.bytes) return TL_OK;
    pool->unsubmitted = 1;
    return pool->backend->copy(pool->backend->self, to, from);
}

static tl_result tli_pool_fill(tli_pool *pool, tl_range to, uint32_t word) {
    if (!to.bytes) return TL_OK;
    pool->unsubmitted = 1;
    return pool->backend->fill(pool->backend->self, to, word);
}

// -- buffers: the steps on one tensor --

static tl_result tli_buffer_drop(tli_pool *pool, tli_buffer *buffer) {
    buffer->state = TLI_ABSENT;
    return tli_pool_release(pool, &buffer->device);
}

// Enqueue a copy that a WAIT ends. In order, what comes after it needs no ticket.
static tl_result tli_buffer_copy(tli_pool *pool, tli_buffer *buffer, tl_range to, tl_range from) {
    tl_result result = tli_pool_copy(pool, to, from);
    if (!result && !pool->in_order) result = tli_pool_submit(pool);
    buffer->copied = pool->last;
    return result;
}

static tl_result tli_buffer_spill(tli_pool *pool, tli_buffer *buffer) {
    tl_result result = tli_pool_claim(pool, TL_TIER_HOST, buffer->device.bytes, &buffer->host);
    if (result) return result;
    buffer->on_host = 1;
    buffer->state = TLI_LEAVING;
    return tli_buffer_copy(pool, buffer, buffer->host, buffer->device);
}

static tl_result tli_buffer_fetch(tli_pool *pool, tli_buffer *buffer) {
    tl_result result = tli_pool_claim(pool, TL_TIER_DEVICE, buffer->host.bytes, &buffer->device);
    if (result) return result;
    buffer->state = TLI_COMING;
    return tli_buffer_copy(pool, buffer, buffer->device, buffer->host);
}

// The copy has passed, or what follows is ordered after it.
static tl_result tli_buffer_wait(tli_pool *pool, tli_buffer *buffer) {
    if (buffer->state == TLI_LEAVING) return tli_buffer_drop(pool, buffer);
    buffer->state = TLI_RESIDENT;
    return TL_OK;
}

static tl_result tli_buffer_drop_host(tli_pool *pool, tli_buffer *buffer) {
    buffer->on_host = 0;
    return tli_pool_release(pool, &buffer->host);
}

// Both copies stand until the conversion is enqueued; then the new one takes the buffer's place.
static tl_result tli_buffer_swap(tli_pool *pool, tli_buffer *buffer, tli_state state) {
    tl_range old = buffer->device;
    buffer->device = pool->spare;
    buffer->state = (uint8_t)state;
    pool->spare = old;
    return tli_pool_release(pool, &pool->spare);
}

static tl_result tli_buffer_compress(tli_pool *pool, tli_buffer *buffer, tl_codec codec) {
    const tl_backend *backend = pool->backend;
    uint64_t packed = tl_find_codec_bytes(codec, buffer->device.bytes);
    tl_result result = tli_pool_claim(pool, TL_TIER_DEVICE, packed, &pool->spare);
    pool->unsubmitted = 1;
    if (!result && packed)
        result = backend->compress(backend->self, codec, pool->spare, buffer->device);
    buffer->codec = (uint8_t)codec;
    return result ? result : tli_buffer_swap(pool, buffer, TLI_PACKED);
}

// bytes are those of the tensor.
static tl_result tli_buffer_expand(tli_pool *pool, tli_buffer *buffer, uint64_t bytes) {
    const tl_backend *backend = pool->backend;
    tl_codec codec = (tl_codec)buffer->codec;
    tl_result result = tli_pool_claim(pool, TL_TIER_DEVICE, bytes, &pool->spare);
    pool->unsubmitted = 1;
    if (!result && bytes)
        result = backend->expand(backend->self, codec, pool->spare, buffer->device);
    return result ? result : tli_buffer_swap(pool, buffer, TLI_RESIDENT);
}

// -- the run --

// What a compute step hands to its kernel; the arrays are made once, for the widest node.
typedef struct tli_call {
    tl_operand *operands;    // inputs, outputs, output_grads, input_grads, saved, scratch
    int32_t    *access_of;   // [operand_count] index into accesses, -1 = none
    int32_t     operand_count;
    tl_access  *accesses;    // [access_count] each range once; written by the step or by its kernel
    uint8_t    *writable;    // [access_count] 1 = its kernel may write it
    void      **hosts;       // [access_count] while mapped
    int32_t     access_count;
    tl_range   *twice;       // [output_count] outputs made again beside the resident ones
    uint8_t    *made;        // [output_count] 1 = made by this call
    int32_t     twice_count; // outputs of the widest node
    tl_range    scratch;
} tli_call;

// The last accesses of a range, for tl_run_step.depends_on.
typedef struct tli_touched {
    tl_range range;
    int32_t  written, read;  // step index, -1 = never
} tli_touched;

// How online decisions see the pass: the simulator's state, and what the tensors are still for.
// Arrays over "items" hold the tensors first and then the saved bytes of each node.
typedef struct tli_online {
    tli_sim   sim;
    tli_steps record;          // every step decided so far
    int32_t   next_forward;    // node whose forward comes next; node_count = all done
    int32_t   next_backward;   // node whose backward comes next; -1 = all done
    int32_t   closed;          // 1 = leftovers were dropped
    uint64_t  budget;          // of live bytes, base left out
    uint64_t  clock;           // grows with every step
    int32_t   eviction_count;
    int32_t   is_bare;         // 1 = the goal has been begun again with nothing held
    int32_t   searches;        // 1 = the budget grows to what a bare goal needs
    int32_t  *forward_uses;    // [tensor_count] forwards to come that read it
    int32_t  *backward_uses;   // [tensor_count] backwards to come that read it
    int32_t  *pins;            // [item_count] > 0 = may not be evicted
    uint64_t *made_at;         // [item_count] clock
    uint64_t *used_at;         // [item_count] clock
    // The nodes to run again for one goal.
    int32_t  *closure;         // [closure_count] ascending
    int32_t   closure_count;
    int32_t   open_count;      // tensors wanted that are not there and whose node was not met yet
    int32_t   save_all;        // 1 = there is room to keep all that the closure makes
    uint8_t  *wanted;          // [tensor_count] tli_want_kind
    int32_t  *wanted_uses;     // [tensor_count] reads left in the closure and by the goal
    int32_t  *left;            // [tensor_count] the same, counted down ahead of time
    uint64_t *cuts;            // [node_count] bytes that cross from closure[k] to closure[k + 1]
    tl_checkpoint_info *candidates;  // [item_count] for the caller's eviction function; else NULL
    int32_t  *candidate_items;       // [item_count]
} tli_online;

typedef enum tli_want_kind {
    TLI_WANT_NOT,
    TLI_WANT_HELD,   // was held when the closure was collected
    TLI_WANT_MADE,   // the closure makes it, and drops it after its last read there
    TLI_WANT_SAVED   // the closure makes it and keeps it on the way
} tli_want_kind;

typedef enum tli_computing {
    TLI_COMPUTING_NOT,      // nothing lives for the length of a call
    TLI_COMPUTING_YIELDED,  // a compute step was yielded
    TLI_COMPUTING_CALLED    // its kernel was called
} tli_computing;

struct tl_run {
    tl_env         *env;
    tl_backend      backend;
    tl_backend_limits limits;
    tl_run_desc     desc;            // pointers that need not outlive the call are NULL
    const tl_graph *graph;
    tl_graph        layer_graph;     // made of layers
    tl_graph        own_graph;       // scaled to a precision: nodes and outputs of its own
    tl_kernel      *kernels;
    int32_t        *kernel_of;       // [node_count] index into kernels, -1 = input
    tl_precision    precision;
    tl_plan         plan;
    tl_report       planned;         // of the plan
    int32_t owns_layers, owns_nodes;  // 1 = layer_graph, own_graph's arrays belong to the run
    int32_t         owns_plan, is_online, inference, repeat_count, profiling, checkpoints_on;

    tli_pool        pool;
    tli_buffer     *tensors;         // [tensor_count]
    tli_buffer     *gradients;       // [tensor_count]
    tli_buffer     *saved;           // [node_count]
    uint8_t        *ran;             // [node_count] in this pass
    uint8_t        *is_read;         // [tensor_count] some node reads it
    uint8_t        *is_result;       // [tensor_count] it stays to the end
    tli_call        call;
    tli_touched    *touched;
    int32_t         touched_count, touched_capacity;

    int32_t         active;          // 1 = inside a pass
    int32_t         position;        // index of the next step
    int32_t         by_itself;       // 1 = inside tl_run_plan: nobody asks for depends_on
    int32_t         by_hand;         // 1 = tl_run_forward and tl_run_backward choose the goals
    tli_computing   computing;       // the last step
    tl_step         last;
    tl_run_event    event;           // of the last step
    int32_t         micro_batch;
    uint64_t        training_step, next_step;
    uint64_t        input_bytes;     // claimed between passes
    int32_t         input_count;     // of them in the arena
    uint64_t        input_arena_bytes;  // where the last of them ends in the arena
    uint64_t        foreign_bytes, foreign_host_bytes;  // claimed by others
    tl_run_report   report;
    tli_online      online;
};

static const char *const tli_run_function = "tl_run_plan";


// -- online decisions: the same steps as in a plan, decided one goal at a time --
//
// A goal is the forward or the backward of one node. Its steps are decided on the simulator's
// state, which so runs ahead of the executor by one goal, and are appended to the record; the
// executor pulls them from there.

static int32_t tli_item_of_saved(const tl_run *run, int32_t node) {
    return run->graph->tensor_count + node;
}

// Results stay, and so do the graph's inputs.
static int tli_online_stays(const tl_run *run, int32_t tensor) {
    return run->is_result[tensor] || run->graph->nodes[run->graph->outputs[tensor].node].is_input;
}

static int tli_online_has_uses(const tl_run *run, int32_t tensor) {
    const tli_online *o = &run->online;
    return o->forward_uses[tensor] > 0 || o->backward_uses[tensor] > 0;
}

static int tli_online_is_held(const tl_run *run, int32_t tensor) {
    const tli_sim_tensor *t = &run->online.sim.tensors[tensor];
    return t->state != TLI_ABSENT || t->on_host;
}

static int tli_policy_keeps(const tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    if (!run->checkpoints_on) return 1;
    return tli_wants_checkpoint(&run->desc.policy, node->layer >= 0 ? node->layer : id,
                                node->fwd_cost);
}

static tl_result tli_online_emit(tl_run *run, tl_step_kind kind, int32_t node, int32_t output,
                                 tl_codec codec) {
    tli_online *o = &run->online;
    tl_step step = tli_step_of(kind, node, output);
    tl_result result;
    step.codec = (uint8_t)codec;
    result = tli_sim_step(&o->sim, &step);
    if (result) return result;
    o->clock++;
    tli_add_step(&o->record, step);
    return o->record.failed
               ? tli_fail(run->env, TL_ERROR_NO_MEMORY, tli_run_function, "record of the steps")
               : TL_OK;
}

static tl_result tli_online_emit_tensor(tl_run *run, tl_step_kind kind, int32_t tensor,
                                        tl_codec codec) {
    const tl_node_output *output = &run->graph->outputs[tensor];
    return tli_online_emit(run, kind, output->node, output->output, codec);
}

// Let go of a tensor in both tiers.
static tl_result tli_online_drop(tl_run *run, int32_t tensor) {
    const tli_sim_tensor *t = &run->online.sim.tensors[tensor];
    tl_result result = TL_OK;
    if (t->state == TLI_RESIDENT || t->state == TLI_PACKED)
        result = tli_online_emit_tensor(run, TL_STEP_DROP, tensor, TL_CODEC_NONE);
    if (!result && t->on_host)
        result = tli_online_emit_tensor(run, TL_STEP_DROP_HOST, tensor, TL_CODEC_NONE);
    return result;
}

static tl_result tli_online_let_go(tl_run *run, int32_t tensor) {
    return tli_online_stays(run, tensor) ? TL_OK : tli_online_drop(run, tensor);
}

// -- online decisions: eviction --

static int tli_online_may_evict(const tl_run *run, int32_t item) {
    const tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t node = item - graph->tensor_count;
    if (o->pins[item] || !run->checkpoints_on) return 0;
    if (node >= 0) return o->sim.nodes[node].has_saved;
    if (!graph->outputs[item].bytes || tli_online_stays(run, item)) return 0;
    return o->sim.tensors[item].state == TLI_RESIDENT || o->sim.tensors[item].state == TLI_PACKED;
}

// What it would cost to have it again: its node, and the nodes above it that are gone too, along
// the first input that is gone (the evicted neighbourhood of DTR, section 2, on its main line).
static uint64_t tli_online_cost(const tl_run *run, int32_t node) {
    const tl_graph *graph = run->graph;
    uint64_t cost = 0;
    int32_t next = node, hops;
    for (hops = 0; next >= 0 && hops < 64; hops++) {
        const tl_node *at = &graph->nodes[next];
        int32_t i;
        if (!tli_add_u64(cost, at->fwd_cost, &cost)) return UINT64_MAX;
        next = -1;
        for (i = at->first_input; i < at->first_input + at->input_count && next < 0; i++)
            if (!tli_online_is_held(run, graph->inputs[i].tensor))
                next = graph->outputs[graph->inputs[i].tensor].node;
    }
    return cost;
}

static tli_victim tli_online_victim(const tl_run *run, int32_t item) {
    const tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t node = item - graph->tensor_count;
    tli_victim victim;
    victim.timestamp = o->made_at[item];
    victim.last_use = o->used_at[item];
    victim.bytes = node >= 0 ? graph->nodes[node].saved_bytes
                 : o->sim.tensors[item].state == TLI_PACKED ? o->sim.tensors[item].packed_bytes
                 : graph->outputs[item].bytes;
    victim.cost = tli_online_cost(run, node >= 0 ? node : graph->outputs[item].node);
    return victim;
}

static void tli_online_describe(const tl_run *run, int32_t item, tl_checkpoint_info *info) {
    const tl_graph *graph = run->graph;
    tli_victim victim = tli_online_victim(run, item);
    int32_t node = item - graph->tensor_count;
    tli_zero(info, sizeof *info);
    info->key.step = run->training_step;
    info->key.micro_batch = run->micro_batch;
    info->key.node = node >= 0 ? node : graph->outputs[item].node;
    info->key.output = node >= 0 ? TL_SAVED : graph->outputs[item].output;
    info->timestamp = victim.timestamp;
    info->last_use = victim.last_use;
    info->bytes = node >= 0 ? victim.bytes : graph->outputs[item].bytes;
    info->held_bytes = victim.bytes;
    info->cost = victim.cost;
    info->in_memory = 1;
    info->tier = TL_TIER_DEVICE;
    info->codec = node < 0 ? (tl_codec)run->online.sim.tensors[item].codec : TL_CODEC_NONE;
    if (node < 0 && run->online.sim.tensors[item].state != TLI_PACKED) info->codec = TL_CODEC_NONE;
}

static int32_t tli_online_ask_caller(tl_run *run) {
    tli_online *o = &run->online;
    int32_t item, count = 0, picked, items = run->graph->tensor_count + run->graph->node_count;
    for (item = 0; item < items; item++) {
        if (!tli_online_may_evict(run, item)) continue;
        tli_online_describe(run, item, &o->candidates[count]);
        o->candidate_items[count++] = item;
    }
    picked = count ? run->desc.evict(o->candidates, count, run->desc.evict_user) : -1;
    return picked >= 0 && picked < count ? o->candidate_items[picked] : -1;
}

static int32_t tli_online_pick(tl_run *run) {
    int32_t item, best = -1, items = run->graph->tensor_count + run->graph->node_count;
    tli_victim best_victim, victim;
    if (run->desc.eviction == TL_EVICTION_CALLER) return tli_online_ask_caller(run);
    tli_zero(&best_victim, sizeof best_victim);
    for (item = 0; item < items; item++) {
        if (!tli_online_may_evict(run, item)) continue;
        victim = tli_online_victim(run, item);
        if (best >= 0 &&
            !tli_evict_before(run->desc.eviction, &victim, &best_victim, run->online.clock))
            continue;
        best = item;
        best_victim = victim;
    }
    return best;
}

// Compressed where that is allowed and both copies fit, else spilled where the host has room, else
// dropped.
static tl_result tli_online_evict(tl_run *run, int32_t item) {
    tli_online *o = &run->online;
    const tli_sim_tensor *t = &o->sim.tensors[item];
    tl_codec codec = run->desc.codec;
    uint64_t bytes, packed;
    tl_result result;
    o->eviction_count++;
    if (item >= run->graph->tensor_count)
        return tli_online_emit(run, TL_STEP_DROP_SAVED, item - run->graph->tensor_count,
                               TL_ALL_OUTPUTS, TL_CODEC_NONE);
    bytes = run->graph->outputs[item].bytes;
    packed = tl_find_codec_bytes(codec, bytes);
    if (codec != TL_CODEC_NONE && t->state == TLI_RESIDENT && packed < bytes &&
        packed <= o->budget - o->sim.live_bytes)
        return tli_online_emit_tensor(run, TL_STEP_COMPRESS, item, codec);
    if (t->state == TLI_RESIDENT && !t->on_host && run->desc.host_budget_bytes &&
        o->sim.host_bytes <= run->desc.host_budget_bytes &&
        bytes <= run->desc.host_budget_bytes - o->sim.host_bytes) {
        result = tli_online_emit_tensor(run, TL_STEP_SPILL, item, TL_CODEC_NONE);
        return result ? result : tli_online_emit_tensor(run, TL_STEP_WAIT, item, TL_CODEC_NONE);
    }
    return tli_online_emit_tensor(run, TL_STEP_DROP, item, TL_CODEC_NONE);
}

// Nothing is left to evict. That is final for a bare goal only: any other is begun again as one.
static tl_result tli_online_refuse(tl_run *run, uint64_t bytes, int32_t node) {
    tli_online *o = &run->online;
    tli_writer w;
    if (!o->is_bare) return TL_ERROR_OVER_BUDGET;
    if (o->searches) { o->budget = o->sim.live_bytes + bytes; return TL_OK; }
    run->report.limiting_node = node;
    if (!tli_add_u64(run->desc.base_bytes, o->sim.live_bytes + bytes, &run->report.needed_bytes))
        run->report.needed_bytes = UINT64_MAX;
    w = tli_begin_error(run->env, TL_ERROR_OVER_BUDGET, tli_run_function);
    tli_put(&w, "budget_bytes: node ");
    tli_put_i64(&w, node);
    tli_put(&w, " (");
    tli_put(&w, tl_name_node(run->graph, node));
    tli_put(&w, ") needs ");
    tli_put_u64(&w, run->report.needed_bytes);
    tli_put(&w, " bytes with all else evicted");
    return tli_end_error(run->env, &w, TL_ERROR_OVER_BUDGET);
}

// Evict until `bytes` more fit, for the step that node is about to take.
static tl_result tli_online_make_room(tl_run *run, uint64_t bytes, int32_t node) {
    tli_online *o = &run->online;
    tl_result result = TL_OK;
    while (!result && (bytes > o->budget || o->sim.live_bytes > o->budget - bytes)) {
        int32_t item = tli_online_pick(run);
        result = item < 0 ? tli_online_refuse(run, bytes, node) : tli_online_evict(run, item);
    }
    return result;
}

// Make a held tensor readable again.
static tl_result tli_online_bring(tl_run *run, int32_t tensor, int32_t node) {
    const tli_sim_tensor *t = &run->online.sim.tensors[tensor];
    tl_result result = TL_OK;
    run->online.used_at[tensor] = run->online.clock;
    if (t->state == TLI_RESIDENT) return TL_OK;
    result = tli_online_make_room(run, run->graph->outputs[tensor].bytes, node);
    if (result) return result;
    if (t->state == TLI_PACKED)
        return tli_online_emit_tensor(run, TL_STEP_EXPAND, tensor, TL_CODEC_NONE);
    result = tli_online_emit_tensor(run, TL_STEP_FETCH, tensor, TL_CODEC_NONE);
    return result ? result : tli_online_emit_tensor(run, TL_STEP_WAIT, tensor, TL_CODEC_NONE);
}

// -- online decisions: what has to run again for a goal --

// One more reader of a tensor; what is wanted stays pinned until its last read.
static void tli_online_want(tl_run *run, int32_t tensor) {
    tli_online *o = &run->online;
    o->wanted_uses[tensor]++;
    if (o->wanted[tensor] != TLI_WANT_NOT) return;
    o->wanted[tensor] = tli_online_is_held(run, tensor) ? TLI_WANT_HELD : TLI_WANT_MADE;
    o->open_count += o->wanted[tensor] == TLI_WANT_MADE;
    o->pins[tensor]++;
}

static void tli_online_want_inputs(tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        tli_online_want(run, run->graph->inputs[i].tensor);
}

// Walk up from the goal until everything wanted is held or made on the way.
static void tli_online_collect(tl_run *run, int32_t from) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t id, i;
    o->closure_count = 0;
    for (id = from; id >= 0 && o->open_count > 0; id--) {
        const tl_node *node = &graph->nodes[id];
        int32_t made = 0;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            made += o->wanted[i] == TLI_WANT_MADE;
        if (!made) continue;
        o->open_count -= made;
        o->closure[o->closure_count++] = id;
        tli_online_want_inputs(run, id);
    }
    for (i = 0; i < o->closure_count / 2; i++) {
        int32_t other = o->closure_count - 1 - i, swapped = o->closure[i];
        o->closure[i] = o->closure[other];
        o->closure[other] = swapped;
    }
}

static uint64_t tli_online_forward_bytes(const tl_run *run, int32_t id, int with_saved) {
    const tl_node *node = &run->graph->nodes[id];
    uint64_t bytes = node->fwork_bytes + (with_saved ? node->saved_bytes : 0);
    int32_t i, missing = 0;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        missing += run->online.sim.tensors[i].state == TLI_ABSENT;
    for (i = node->first_output; i < node->first_output + node->output_count && missing; i++)
        bytes += run->graph->outputs[i].bytes;  // those that stand already are made twice
    return bytes;
}

static uint64_t tli_online_backward_bytes(const tl_run *run, int32_t id) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    const tli_sim_tensor *tensors = run->online.sim.tensors;
    uint64_t bytes = node->bwork_bytes;
    int32_t i, k;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (!tensors[i].has_gradient) bytes += graph->outputs[i].bytes;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t tensor = graph->inputs[i].tensor;
        for (k = node->first_input; k < i && graph->inputs[k].tensor != tensor;) k++;
        if (k == i && !tensors[tensor].has_gradient &&
            graph->nodes[graph->outputs[tensor].node].has_grad)
            bytes += graph->outputs[tensor].bytes;
    }
    return bytes;
}

// What the closure takes: bytes made in all, and at most beside what is held, when each tensor goes
// after its last read; cuts[k] is what stays of it between closure[k] and closure[k + 1].
typedef struct tli_closure_bytes { uint64_t all, saved, most, least_cut, work; } tli_closure_bytes;

static tli_closure_bytes tli_online_measure_closure(tl_run *run) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    tli_closure_bytes sum;
    uint64_t cut = 0;
    int32_t k, i;
    tli_zero(&sum, sizeof sum);
    sum.least_cut = UINT64_MAX;
    for (k = 0; k < o->closure_count; k++) {
        const tl_node *node = &graph->nodes[o->closure[k]];
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            o->left[i] = o->wanted_uses[i];
            if (o->sim.tensors[i].state == TLI_ABSENT) sum.all += graph->outputs[i].bytes;
            if (o->wanted[i] == TLI_WANT_MADE) cut += graph->outputs[i].bytes;
        }
        if (cut + node->fwork_bytes > sum.most) sum.most = cut + node->fwork_bytes;
        if (node->fwork_bytes > sum.work) sum.work = node->fwork_bytes;
        if (node->has_grad && !o->sim.nodes[o->closure[k]].has_saved)
            sum.saved += node->saved_bytes;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (o->wanted[tensor] == TLI_WANT_MADE && --o->left[tensor] == 0)
                cut -= graph->outputs[tensor].bytes;
        }
        o->cuts[k] = cut;
        if (k + 1 < o->closure_count && cut && cut < sum.least_cut) sum.least_cut = cut;
    }
    return sum;
}

// The tensors that cross after closure[k] are kept on the way.
static void tli_online_save_cut(tl_run *run, int32_t cut_after) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t k, i;
    for (k = 0; k <= cut_after; k++) {
        const tl_node *node = &graph->nodes[o->closure[k]];
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            o->left[i] = o->wanted_uses[i];
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (o->wanted[graph->inputs[i].tensor] >= TLI_WANT_MADE)
                o->left[graph->inputs[i].tensor]--;
    }
    for (k = 0; k <= cut_after; k++) {
        const tl_node *node = &graph->nodes[o->closure[k]];
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (o->wanted[i] == TLI_WANT_MADE && o->left[i] > 0) o->wanted[i] = TLI_WANT_SAVED;
    }
}

// Choose what to save again on the way: everything where it fits, else Revolve's distances, counted
// in narrow cuts of the closure (at most a quarter wider than the narrowest).
static void tli_online_choose_saves(tl_run *run, uint64_t goal_bytes) {
    tli_online *o = &run->online;
    tli_closure_bytes sum = tli_online_measure_closure(run);
    uint64_t free_bytes = o->budget - o->sim.live_bytes, reserve = sum.most, narrow, length = 1,
             slots;
    int32_t k, next;
    o->save_all = sum.all + sum.saved <= free_bytes &&
                  sum.work <= free_bytes - sum.all - sum.saved &&
                  goal_bytes <= free_bytes - sum.all - sum.saved;
    if (o->save_all) {
        for (k = 0; k < run->graph->tensor_count; k++)
            if (o->wanted[k] == TLI_WANT_MADE) o->wanted[k] = TLI_WANT_SAVED;
        return;
    }
    if (o->closure_count < 2 || sum.least_cut == UINT64_MAX) return;
    if (o->cuts[o->closure_count - 1] + goal_bytes > reserve)
        reserve = o->cuts[o->closure_count - 1] + goal_bytes;
    if (reserve >= free_bytes) return;
    narrow = sum.least_cut + sum.least_cut / 4;
    slots = 1 + (free_bytes - reserve) / narrow;
    for (k = 0; k + 1 < o->closure_count; k++) length += o->cuts[k] && o->cuts[k] <= narrow;
    length++;  // the goal is the last step of the segment
    for (k = -1; slots > 1 && length > 1; slots--) {
        uint64_t skip = (uint64_t)tli_split_chain(
            (int32_t)length, slots < length ? (int32_t)slots : (int32_t)length);
        if (!skip || skip >= length) break;
        length -= skip;
        for (next = k + 1; next + 1 < o->closure_count; next++)
            if (o->cuts[next] && o->cuts[next] <= narrow && --skip == 0) break;
        if (next + 1 >= o->closure_count) break;
        tli_online_save_cut(run, next);
        k = next;
    }
}

// -- online decisions: carrying a closure out --

// One read of a tensor is over.
static tl_result tli_online_unwant(tl_run *run, int32_t tensor) {
    tli_online *o = &run->online;
    uint8_t want = o->wanted[tensor];
    if (--o->wanted_uses[tensor]) return TL_OK;
    o->wanted[tensor] = TLI_WANT_NOT;
    o->pins[tensor]--;
    if (want == TLI_WANT_MADE && o->forward_uses[tensor] > 0) return TL_OK;
    if (want == TLI_WANT_MADE || !tli_online_has_uses(run, tensor))
        return tli_online_let_go(run, tensor);
    return TL_OK;
}

static tl_result tli_online_unwant_inputs(tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    tl_result result = TL_OK;
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++)
        result = tli_online_unwant(run, run->graph->inputs[i].tensor);
    return result;
}

// Bring the inputs, make room, run. What nobody wants of its outputs goes at once.
static tl_result tli_online_run_node(tl_run *run, int32_t id, int with_saved) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, saved = tli_item_of_saved(run, id);
    tl_result result = TL_OK;
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++)
        result = tli_online_bring(run, graph->inputs[i].tensor, id);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) o->pins[i]++;
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++)
        if (o->sim.tensors[i].state == TLI_PACKED) result = tli_online_bring(run, i, id);
    if (!result)
        result = tli_online_make_room(run, tli_online_forward_bytes(run, id, with_saved), id);
    if (!result)
        result = tli_online_emit(run, with_saved ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD, id,
                                 TL_ALL_OUTPUTS, TL_CODEC_NONE);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        o->pins[i]--;
        o->made_at[i] = o->used_at[i] = o->clock;
    }
    if (with_saved) o->made_at[saved] = o->used_at[saved] = o->clock;
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++)
        if (o->wanted[i] == TLI_WANT_NOT && !tli_online_has_uses(run, i))
            result = tli_online_let_go(run, i);
    return result;
}

// Make everything that the goal wants readable, whatever has to run again for it.
static tl_result tli_online_reach(tl_run *run, int32_t goal, uint64_t goal_bytes) {
    tli_online *o = &run->online;
    int in_backward = o->next_forward == run->graph->node_count;
    tl_result result = TL_OK;
    int32_t k;
    o->save_all = 0;
    tli_online_collect(run, goal);
    if (o->closure_count && in_backward && !o->is_bare) tli_online_choose_saves(run, goal_bytes);
    for (k = 0; k < o->closure_count && !result; k++) {
        int32_t id = o->closure[k];
        const tl_node *node = &run->graph->nodes[id];
        int with_saved =
            o->save_all && node->saved_bytes && node->has_grad && !o->sim.nodes[id].has_saved;
        result = tli_online_run_node(run, id, with_saved);
        if (!result) result = tli_online_unwant_inputs(run, id);
    }
    return result;
}

// -- online decisions: the two kinds of goal --

static tl_result tli_online_forward(tl_run *run, int32_t id) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int keeps = tli_policy_keeps(run, id);
    int with_saved = !run->inference && node->has_grad && node->saved_bytes && keeps;
    tl_result result;
    int32_t i;
    tli_online_want_inputs(run, id);
    result = tli_online_reach(run, id, 0);
    if (!result) result = tli_online_run_node(run, id, with_saved);
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++) {
        int32_t tensor = graph->inputs[i].tensor;
        o->forward_uses[tensor]--;
        if (!o->forward_uses[tensor] && !tli_policy_keeps(run, graph->outputs[tensor].node) &&
            o->wanted_uses[tensor] == 1)
            result = tli_online_let_go(run, tensor);
        if (!result) result = tli_online_unwant(run, tensor);
    }
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++)
        if (!o->forward_uses[i] && !keeps) result = tli_online_let_go(run, i);
    return result;
}

// Want what a backward reads; where its saved bytes are gone, what its forward reads as well.
static void tli_online_want_reads(tl_run *run, int32_t id, int remake) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed) tli_online_want(run, graph->inputs[i].tensor);
    if (remake) tli_online_want_inputs(run, id);
    for (i = node->first_output; i < node->first_output + node->output_count && !remake; i++)
        if (graph->outputs[i].needed) tli_online_want(run, i);
}

// The forward that makes the saved bytes again also makes the outputs that backward reads.
static tl_result tli_online_remake_saved(tl_run *run, int32_t id) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    tl_result result;
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed) tli_online_want(run, i);
    run->online.open_count = 0;
    result = tli_online_run_node(run, id, 1);
    return result ? result : tli_online_unwant_inputs(run, id);
}

static tl_result tli_online_backward(tl_run *run, int32_t id) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int remake = node->saved_bytes && !o->sim.nodes[id].has_saved;
    int32_t i, saved = tli_item_of_saved(run, id);
    tl_result result;
    o->pins[saved]++;
    tli_online_want_reads(run, id, remake);
    result = tli_online_reach(
        run, id, tli_online_backward_bytes(run, id) + (remake ? node->saved_bytes : 0));
    if (!result && remake) result = tli_online_remake_saved(run, id);
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++)
        if (graph->inputs[i].needed) result = tli_online_bring(run, graph->inputs[i].tensor, id);
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++)
        if (graph->outputs[i].needed) result = tli_online_bring(run, i, id);
    if (!result) result = tli_online_make_room(run, tli_online_backward_bytes(run, id), id);
    if (!result) result = tli_online_emit(run, TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS, TL_CODEC_NONE);
    o->pins[saved]--;
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++) {
        if (!graph->inputs[i].needed) continue;
        o->backward_uses[graph->inputs[i].tensor]--;
        result = tli_online_unwant(run, graph->inputs[i].tensor);
    }
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++) {
        if (!graph->outputs[i].needed) continue;
        o->backward_uses[i]--;
        result = tli_online_unwant(run, i);
    }
    return result;
}

// Forget what a goal wanted, and let everything go that may go.
static tl_result tli_online_clear(tl_run *run) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) {
        o->wanted[i] = TLI_WANT_NOT;
        o->wanted_uses[i] = 0;
        o->pins[i] = 0;
    }
    o->open_count = 0;
    for (i = 0; i < graph->tensor_count && !result && run->checkpoints_on; i++)
        result = tli_online_let_go(run, i);
    for (i = 0; i < graph->node_count && !result; i++) {
        o->pins[tli_item_of_saved(run, i)] = 0;
        if (o->sim.nodes[i].has_saved && run->checkpoints_on)
            result = tli_online_emit(run, TL_STEP_DROP_SAVED, i, TL_ALL_OUTPUTS, TL_CODEC_NONE);
    }
    return result;
}

// Decide the steps of one goal. What it finds held and wants later takes room until then; where
// that is too much, the goal is begun again with nothing held. What such a bare goal needs does not
// depend on the budget, so a budget above one that works with bare goals alone works as well.
static tl_result tli_online_reach_goal(tl_run *run, int32_t id, int backward) {
    tl_result result = backward ? tli_online_backward(run, id) : tli_online_forward(run, id);
    if (result != TL_ERROR_OVER_BUDGET) return result;
    result = tli_online_clear(run);
    run->online.is_bare = 1;
    if (!result) result = backward ? tli_online_backward(run, id) : tli_online_forward(run, id);
    run->online.is_bare = 0;
    return result;
}

// What is left at the end: tensors that no backward reads, host copies, saved bytes.
static tl_result tli_online_close(tl_run *run) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < graph->tensor_count && !result; i++) result = tli_online_let_go(run, i);
    for (i = 0; i < graph->node_count && !result; i++)
        if (o->sim.nodes[i].has_saved)
            result = tli_online_emit(run, TL_STEP_DROP_SAVED, i, TL_ALL_OUTPUTS, TL_CODEC_NONE);
    o->closed = 1;
    return result;
}

// Decide the steps of the next goal; 0 steps and *done where there is none.
static tl_result tli_online_next_goal(tl_run *run, int32_t *done) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    *done = 0;
    while (o->next_forward < graph->node_count) {
        int32_t id = o->next_forward++;
        if (!graph->nodes[id].is_input) return tli_online_reach_goal(run, id, 0);
    }
    while (!run->inference && o->next_backward >= 0) {
        int32_t id = o->next_backward--;
        if (graph->nodes[id].has_grad) return tli_online_reach_goal(run, id, 1);
    }
    if (!o->closed) return tli_online_close(run);
    *done = 1;
    return TL_OK;
}

// -- online decisions: the state of a pass --

static void tli_free_online(tl_run *run) {
    tli_online *o = &run->online;
    tl_env *env = run->env;
    tli_free_sim(&o->sim);
    tli_release(env, o->record.steps);
    tli_release(env, o->forward_uses);
    tli_release(env, o->backward_uses);
    tli_release(env, o->pins);
    tli_release(env, o->made_at);
    tli_release(env, o->used_at);
    tli_release(env, o->closure);
    tli_release(env, o->wanted);
    tli_release(env, o->wanted_uses);
    tli_release(env, o->left);
    tli_release(env, o->cuts);
    tli_release(env, o->candidates);
    tli_release(env, o->candidate_items);
    tli_zero(o, sizeof *o);
}

static tl_result tli_init_online(tl_run *run) {
    tli_online *o = &run->online;
    tl_env *env = run->env;
    uint64_t tensors = (uint64_t)run->graph->tensor_count, nodes = (uint64_t)run->graph->node_count;
    uint64_t items = tensors + nodes;
    int asks = run->desc.eviction == TL_EVICTION_CALLER;
    tl_plan flags;
    o->record = tli_steps_of(env);
    o->forward_uses = (int32_t *)tli_alloc_array(env, tensors, sizeof *o->forward_uses);
    o->backward_uses = (int32_t *)tli_alloc_array(env, tensors, sizeof *o->backward_uses);
    o->pins = (int32_t *)tli_alloc_array(env, items, sizeof *o->pins);
    o->made_at = (uint64_t *)tli_alloc_array(env, items, sizeof *o->made_at);
    o->used_at = (uint64_t *)tli_alloc_array(env, items, sizeof *o->used_at);
    o->closure = (int32_t *)tli_alloc_array(env, nodes, sizeof *o->closure);
    o->wanted = (uint8_t *)tli_alloc_array(env, tensors, sizeof *o->wanted);
    o->wanted_uses = (int32_t *)tli_alloc_array(env, tensors, sizeof *o->wanted_uses);
    o->left = (int32_t *)tli_alloc_array(env, tensors, sizeof *o->left);
    o->cuts = (uint64_t *)tli_alloc_array(env, nodes, sizeof *o->cuts);
    o->candidates =
        asks ? (tl_checkpoint_info *)tli_alloc_array(env, items, sizeof *o->candidates) : NULL;
    o->candidate_items =
        asks ? (int32_t *)tli_alloc_array(env, items, sizeof *o->candidate_items) : NULL;
    if (!o->forward_uses || !o->backward_uses || !o->pins || !o->made_at || !o->used_at ||
        !o->closure || !o->wanted || !o->wanted_uses || !o->left || !o->cuts ||
        (asks && (!o->candidates || !o->candidate_items)))
        return tli_fail(env, TL_ERROR_NO_MEMORY, "tl_init_run", "state of the online decisions");
    tli_zero(&flags, sizeof flags);
    flags.inference = run->inference;
    return tli_init_sim(env, &o->sim, tli_run_function, run->graph, run->desc.device, &flags);
}

static void tli_online_count_uses(tl_run *run) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int reads = !run->inference && node->has_grad;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            o->forward_uses[graph->inputs[i].tensor]++;
            o->backward_uses[graph->inputs[i].tensor] += reads && graph->inputs[i].needed;
        }
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            o->backward_uses[i] += reads && graph->outputs[i].needed;
    }
}

// Live bytes that the budget leaves beside the base.
static uint64_t tli_online_budget(const tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    if (desc->budget_bytes == TL_UNLIMITED) return UINT64_MAX;
    return desc->budget_bytes > desc->base_bytes ? desc->budget_bytes - desc->base_bytes : 0;
}

// Start afresh: nothing but the graph's inputs is held.
static tl_result tli_start_online(tl_run *run, uint64_t budget) {
    tli_online *o = &run->online;
    size_t tensors = (size_t)run->graph->tensor_count,
           items = tensors + (size_t)run->graph->node_count;
    tli_zero(o->forward_uses, tensors * sizeof *o->forward_uses);
    tli_zero(o->backward_uses, tensors * sizeof *o->backward_uses);
    tli_zero(o->wanted, tensors * sizeof *o->wanted);
    tli_zero(o->wanted_uses, tensors * sizeof *o->wanted_uses);
    tli_zero(o->pins, items * sizeof *o->pins);
    tli_zero(o->made_at, items * sizeof *o->made_at);
    tli_zero(o->used_at, items * sizeof *o->used_at);
    o->record.count = 0;
    o->record.failed = 0;
    o->next_forward = 0;
    o->next_backward = run->graph->node_count - 1;
    o->closed = 0;
    o->clock = 0;
    o->eviction_count = 0;
    o->open_count = 0;
    o->is_bare = 0;
    o->budget = budget;
    tli_online_count_uses(run);
    return tli_reset_sim(&o->sim);
}

// Try the decisions of a whole pass out: nothing runs. The record stays until the first pass.
static tl_result tli_rehearse(tl_run *run, uint64_t budget) {
    int32_t done = 0;
    tl_result result = tli_start_online(run, budget);
    while (!result && !done) result = tli_online_next_goal(run, &done);
    return result ? result : tli_sim_end(&run->online.sim);
}

// -- the executor: one step --

// A step that was begun cannot be yielded again: TL_NOT_READY is a failure then.
static tl_result tli_run_fail_backend(tl_run *run, tl_result why, const char *what) {
    tl_result code = why == TL_NOT_READY ? TL_ERROR_BACKEND : why;
    tli_writer w = tli_begin_error(run->env, code, tli_run_function);
    tli_put(&w, "step ");
    tli_put_i64(&w, run->event.index);
    tli_put(&w, " (");
    tli_put(&w, tl_name_step((tl_step_kind)run->last.kind));
    tli_put(&w, " ");
    tli_put(&w, tl_name_node(run->graph, run->last.node));
    tli_put(&w, "): ");
    tli_put(&w, what);
    tli_put(&w, ": ");
    tli_put(&w, tl_explain_result(why));
    return tli_end_error(run->env, &w, code);
}

static uint64_t tli_run_now(const tl_run *run) {
    return run->profiling ? run->backend.now_ns(run->backend.self) : 0;
}

// A range of the step; the same range twice is one access.
static int32_t tli_call_access(tli_call *call, tl_range range, int writes) {
    int32_t i;
    if (!range.bytes) return -1;
    for (i = 0; i < call->access_count; i++) {
        if (!tli_is_same_range(&call->accesses[i].range, &range)) continue;
        call->accesses[i].writes |= writes;
        return i;
    }
    call->accesses[i].range = range;
    call->accesses[i].writes = writes;
    call->writable[i] = 0;
    call->access_count++;
    return i;
}

static void tli_call_operand(tli_call *call, tl_range range, int writes) {
    tl_operand *operand = &call->operands[call->operand_count];
    int32_t access = tli_call_access(call, range, writes);
    operand->range = range;
    operand->host = NULL;
    call->access_of[call->operand_count++] = access;
    if (access >= 0 && writes) call->writable[access] = 1;
}

// The operands in the order of tl_kernel_call: inputs, outputs, gradients of both, saved, scratch.
static void tli_describe_call(tl_run *run, tl_kernel_call *out) {
    tli_call *call = &run->call;
    const tl_node *node = &run->graph->nodes[run->last.node];
    const tl_operand *at = call->operands;
    tli_zero(out, sizeof *out);
    out->graph = run->graph;
    out->node = run->last.node;
    out->kind = (tl_step_kind)run->last.kind;
    out->recompute = run->event.recompute;
    out->micro_batch = run->micro_batch;
    out->step = run->training_step;
    out->seed = tl_mix_u64(tl_mix_u64(run->desc.seed, run->training_step),
                           (uint64_t)run->micro_batch * (uint64_t)run->graph->node_count +
                               (uint64_t)run->last.node);
    out->precision = run->precision;
    out->inputs = at;                         at += node->input_count;
    out->outputs = at;                        at += node->output_count;
    out->output_grads = at;                   at += node->output_count;
    out->input_grads = at;                    at += node->input_count;
    out->saved = at[0];
    out->scratch = at[1];
}

// In place, output 0 takes over the input's bytes.
static void tli_hand_over(tl_run *run, const tl_node *node) {
    tli_buffer *from = &run->tensors[run->graph->inputs[node->first_input + node->inplace].tensor];
    tli_buffer *to = &run->tensors[node->first_output];
    to->device = from->device;
    to->state = TLI_RESIDENT;
    tli_zero(&from->device, sizeof from->device);
    from->state = TLI_ABSENT;
}

static tl_result tli_claim_device(tl_run *run, uint64_t bytes, tl_range *range) {
    return tli_pool_claim(&run->pool, TL_TIER_DEVICE, bytes, range);
}

// Claim what a forward makes, in the simulator's order; outputs that stand already are made again
// beside themselves, and a save where nothing is missing makes saved alone.
static tl_result tli_begin_forward(tl_run *run, int32_t *outputs_ready) {
    const tl_node *node = &run->graph->nodes[run->last.node];
    const tl_node_output *outputs = &run->graph->outputs[node->first_output];
    tli_buffer *buffers = &run->tensors[node->first_output], *saved = &run->saved[run->last.node];
    int32_t i, missing = 0, inplace = run->last.kind == TL_STEP_FORWARD_INPLACE;
    tl_result result = TL_OK;
    if (inplace) tli_hand_over(run, node);
    for (i = 0; i < node->output_count && !result; i++) {
        run->call.made[i] = inplace && i == 0;
        if (buffers[i].state != TLI_ABSENT) continue;
        result = tli_claim_device(run, outputs[i].bytes, &buffers[i].device);
        buffers[i].state = TLI_RESIDENT;
        run->call.made[i] = 1;
        missing++;
    }
    *outputs_ready = !missing && !inplace;
    for (i = 0; i < node->output_count && !result && !*outputs_ready; i++)
        if (!run->call.made[i])
            result = tli_claim_device(run, outputs[i].bytes, &run->call.twice[i]);
    if (!result && run->last.kind == TL_STEP_FORWARD_SAVE) {
        result = tli_claim_device(run, node->saved_bytes, &saved->device);
        saved->state = TLI_RESIDENT;
    }
    return result ? result : tli_claim_device(run, node->fwork_bytes, &run->call.scratch);
}

static void tli_describe_forward(tl_run *run, int32_t outputs_ready) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->last.node];
    int inplace = run->last.kind == TL_STEP_FORWARD_INPLACE;
    tli_call *call = &run->call;
    tl_range none;
    int32_t i;
    tli_zero(&none, sizeof none);
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = graph->inputs[node->first_input + i].tensor;
        if (inplace && i == node->inplace) tensor = node->first_output;
        tli_call_operand(call, run->tensors[tensor].device, 0);
    }
    for (i = 0; i < node->output_count; i++) {
        tl_range twice = call->twice[i], own = run->tensors[node->first_output + i].device;
        tli_call_operand(call, twice.bytes ? twice : own, !outputs_ready);
    }
    for (i = 0; i < node->output_count + node->input_count; i++) tli_call_operand(call, none, 0);
    tli_call_operand(
        call, run->last.kind == TL_STEP_FORWARD_SAVE ? run->saved[run->last.node].device : none, 1);
    tli_call_operand(call, call->scratch, 1);
}

// The bit pattern of 1 in the elements of the run, as a word that fills a range.
static uint32_t tli_one_word(const tl_run *run) {
    if (run->desc.loss_gradient_word) return run->desc.loss_gradient_word;
    switch (run->precision) {
    case TL_PRECISION_HALF: return UINT32_C(0x3c003c00);
    case TL_PRECISION_BF16: return UINT32_C(0x3f803f80);
    case TL_PRECISION_FULL:
    case TL_PRECISION_SINGLE:
    case TL_PRECISION_MIXED:
    case TL_PRECISION_COUNT: break;
    }
    return UINT32_C(0x3f800000);
}

// A word cannot say 1.0 in 8 bytes.
static tl_result tli_fill_doubles(tl_run *run, tl_range range) {
    const double one = 1.0;
    void *host = NULL;
    uint64_t at;
    tl_access access;
    tl_result result;
    if (!range.bytes) return TL_OK;
    access.range = range;
    access.writes = 1;
    result = run->backend.order(run->backend.self, &access, 1);
    if (!result) result = run->backend.map(run->backend.self, range, TL_MAP_WRITE, &host);
    if (result) return result;
    for (at = 0; range.bytes - at >= sizeof one; at += sizeof one)
        tli_copy((char *)host + at, &one, sizeof one);
    tli_zero((char *)host + at, (size_t)(range.bytes - at));
    return run->backend.unmap(run->backend.self, range, TL_MAP_WRITE, host);
}

// The gradient of an output that nobody reads is 1, every other starts at 0.
static tl_result tli_make_gradient(tl_run *run, int32_t tensor) {
    const tl_node_output *output = &run->graph->outputs[tensor];
    tli_buffer *gradient = &run->gradients[tensor];
    int doubles = run->precision == TL_PRECISION_FULL && !run->desc.loss_gradient_word;
    tl_result result;
    if (gradient->state != TLI_ABSENT || !run->graph->nodes[output->node].has_grad) return TL_OK;
    result = tli_claim_device(run, output->bytes, &gradient->device);
    if (result) return result;
    gradient->state = TLI_RESIDENT;
    (void)tli_call_access(&run->call, gradient->device, 1);
    if (run->is_read[tensor]) return tli_pool_fill(&run->pool, gradient->device, 0);
    if (doubles) return tli_fill_doubles(run, gradient->device);
    return tli_pool_fill(&run->pool, gradient->device, tli_one_word(run));
}

static tl_result tli_begin_backward(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->last.node];
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < node->output_count && !result; i++)
        result = tli_make_gradient(run, node->first_output + i);
    for (i = 0; i < node->input_count && !result; i++)
        result = tli_make_gradient(run, graph->inputs[node->first_input + i].tensor);
    return result ? result : tli_claim_device(run, node->bwork_bytes, &run->call.scratch);
}

// A backward sees what its `needs` name, and nothing else.
static void tli_describe_backward(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->last.node];
    tli_call *call = &run->call;
    tl_range none;
    int32_t i;
    tli_zero(&none, sizeof none);
    for (i = 0; i < node->input_count; i++) {
        const tl_node_input *input = &graph->inputs[node->first_input + i];
        tli_call_operand(call, input->needed ? run->tensors[input->tensor].device : none, 0);
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_call_operand(call, graph->outputs[i].needed ? run->tensors[i].device : none, 0);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_call_operand(call, run->gradients[i].device, 0);
    for (i = 0; i < node->input_count; i++)
        tli_call_operand(call, run->gradients[graph->inputs[node->first_input + i].tensor].device,
                         1);
    tli_call_operand(call, run->saved[run->last.node].device, 0);
    tli_call_operand(call, call->scratch, 1);
}

static tl_result tli_begin_compute(tl_run *run, tl_run_step *out) {
    int backward = run->last.kind == TL_STEP_BACKWARD;
    int32_t outputs_ready = 0;
    tl_result result = backward ? tli_begin_backward(run) : tli_begin_forward(run, &outputs_ready);
    run->computing = TLI_COMPUTING_YIELDED;  // from here on there may be something to release
    if (result) return tli_run_fail_backend(run, result, "claim");
    if (backward) tli_describe_backward(run); else tli_describe_forward(run, outputs_ready);
    tli_describe_call(run, &out->call);
    out->call.outputs_ready = outputs_ready;
    out->is_compute = 1;
    out->kernel = &run->kernels[run->kernel_of[run->last.node]];
    result = run->backend.order(run->backend.self, run->call.accesses, run->call.access_count);
    return result ? tli_run_fail_backend(run, result, "order") : TL_OK;
}

static void tli_keep_first(tl_result *first, tl_result result) { if (!*first) *first = result; }

// The kernel ran or was recorded: release what lives during the call only.
static tl_result tli_finish_compute(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->last.node];
    tl_result first;
    int32_t i;
    run->computing = TLI_COMPUTING_NOT;
    run->pool.unsubmitted = 1;
    first = tli_pool_release(&run->pool, &run->call.scratch);
    for (i = 0; i < node->output_count; i++)
        tli_keep_first(&first, tli_pool_release(&run->pool, &run->call.twice[i]));
    if (run->last.kind != TL_STEP_BACKWARD) return first;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_keep_first(&first, tli_buffer_drop(&run->pool, &run->gradients[i]));
    tli_keep_first(&first, tli_buffer_drop(&run->pool, &run->saved[run->last.node]));
    return first;
}

static int tli_acts_on_buffer(const tli_buffer *buffer, tl_step_kind kind) {
    return tli_acts_in_state(kind, (tli_state)buffer->state, buffer->on_host);
}

static tl_result tli_memory_act(tl_run *run, int32_t tensor) {
    tli_buffer *buffer = &run->tensors[tensor];
    tli_pool *pool = &run->pool;
    tl_run_report *report = &run->report;
    switch ((tl_step_kind)run->last.kind) {
    case TL_STEP_DROP:
        report->drop_count++;
        return tli_buffer_drop(pool, buffer);
    case TL_STEP_SPILL:
        report->spill_count++;
        buffer->copy_ns = run->event.start_ns;
        return tli_buffer_spill(pool, buffer);
    case TL_STEP_FETCH:
        report->fetch_count++;
        buffer->copy_ns = run->event.start_ns;
        return tli_buffer_fetch(pool, buffer);
    case TL_STEP_WAIT:
        run->event.start_ns = buffer->copy_ns;
        return tli_buffer_wait(pool, buffer);
    case TL_STEP_DROP_HOST:
        return tli_buffer_drop_host(pool, buffer);
    case TL_STEP_COMPRESS:
        report->compress_count++;
        return tli_buffer_compress(pool, buffer, (tl_codec)run->last.codec);
    case TL_STEP_EXPAND:
        report->expand_count++;
        return tli_buffer_expand(pool, buffer, run->graph->outputs[tensor].bytes);
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// The ranges of a memory step are those that its tensor has before it and those it has after it. A
// SPILL only reads the device, a FETCH only reads the host; what is freed counts as written, so
// that it follows all that used it.
static void tli_note_buffer(tl_run *run, int32_t tensor) {
    const tli_buffer *buffer = &run->tensors[tensor];
    int spill = run->last.kind == TL_STEP_SPILL, fetch = run->last.kind == TL_STEP_FETCH;
    int frees_host = run->last.kind == TL_STEP_DROP_HOST;
    if (!frees_host) (void)tli_call_access(&run->call, buffer->device, !spill);
    if (spill || fetch || frees_host || run->last.kind == TL_STEP_WAIT)
        (void)tli_call_access(&run->call, buffer->host, !fetch);
}

// The outputs that a step names: from .. end of the graph's tensors.
static void tli_step_outputs(const tl_run *run, const tl_step *step, int32_t *from, int32_t *end) {
    const tl_node *node = &run->graph->nodes[step->node];
    *from = node->first_output + (step->output == TL_ALL_OUTPUTS ? 0 : step->output);
    *end = step->output == TL_ALL_OUTPUTS ? node->first_output + node->output_count : *from + 1;
}

static tl_result tli_memory_step(tl_run *run) {
    tli_buffer *saved = &run->saved[run->last.node];
    tl_result result = TL_OK;
    int32_t i, end;
    if (run->last.kind == TL_STEP_DROP_SAVED) {
        run->report.drop_count++;
        (void)tli_call_access(&run->call, saved->device, 1);
        result = tli_buffer_drop(&run->pool, saved);
        return result ? tli_run_fail_backend(run, result, "release") : TL_OK;
    }
    tli_step_outputs(run, &run->last, &i, &end);
    for (; i < end && !result; i++) {
        if (!tli_acts_on_buffer(&run->tensors[i], (tl_step_kind)run->last.kind)) continue;
        tli_note_buffer(run, i);
        result = tli_memory_act(run, i);
        tli_note_buffer(run, i);
    }
    return result ? tli_run_fail_backend(run, result, "memory") : TL_OK;
}

// -- the executor: what a step must follow --

// Latest earlier step that wrote what an access touches, or touched what it writes. What a write
// covers whole is forgotten: who touches it later touches the write.
static void tli_follow(tl_run *run, const tl_access *access, int32_t *depends_on) {
    uint64_t from = access->range.offset, end = from + access->range.bytes;
    int32_t k;
    for (k = 0; k < run->touched_count; k++) {
        const tli_touched *t = &run->touched[k];
        if (!tli_overlaps(t->range, access->range)) continue;
        if (t->written > *depends_on) *depends_on = t->written;
        if (!access->writes) continue;
        if (t->read > *depends_on) *depends_on = t->read;
        if (t->range.offset >= from && t->range.offset + t->range.bytes <= end)
            run->touched[k--] = run->touched[--run->touched_count];
    }
}

static int tli_note_access(tl_run *run, const tl_access *access) {
    void *array = run->touched;
    tli_touched *t;
    int32_t k;
    for (k = 0; k < run->touched_count; k++) {
        t = &run->touched[k];
        if (!tli_is_same_range(&t->range, &access->range)) continue;
        t->read = run->event.index;  // a write would have removed it
        return 1;
    }
    if (!tli_grow(run->env, &array, &run->touched_capacity, run->touched_count,
                  (int64_t)run->touched_count + 1, sizeof *run->touched)) return 0;
    run->touched = (tli_touched *)array;
    t = &run->touched[run->touched_count++];
    t->range = access->range;
    t->written = access->writes ? run->event.index : -1;
    t->read = access->writes ? -1 : run->event.index;
    return 1;
}

static tl_result tli_find_dependency(tl_run *run, int32_t *depends_on) {
    int32_t i;
    *depends_on = -1;
    for (i = 0; i < run->call.access_count; i++) {
        tli_follow(run, &run->call.accesses[i], depends_on);
        if (!tli_note_access(run, &run->call.accesses[i]))
            return tli_fail(run->env, TL_ERROR_NO_MEMORY, "tl_next_step", "record of the ranges");
    }
    return TL_OK;
}

// -- the executor: a pass --

// What cannot be given back now is tried again by the next pass.
static void tli_release_buffers(tl_run *run, int with_inputs) {
    const tl_graph *graph = run->graph;
    tli_pool *pool = &run->pool;
    int32_t i;
    (void)tli_pool_release(pool, &pool->spare);
    (void)tli_pool_release(pool, &run->call.scratch);
    for (i = 0; i < run->call.twice_count; i++) (void)tli_pool_release(pool, &run->call.twice[i]);
    for (i = 0; i < graph->tensor_count; i++) {
        (void)tli_buffer_drop(pool, &run->gradients[i]);
        if (graph->nodes[graph->outputs[i].node].is_input && !with_inputs) continue;
        (void)tli_buffer_drop(pool, &run->tensors[i]);
        (void)tli_buffer_drop_host(pool, &run->tensors[i]);
    }
    for (i = 0; i < graph->node_count; i++) (void)tli_buffer_drop(pool, &run->saved[i]);
}

// Wherever the pass stands: hand over what was enqueued and release everything, finished or not.
static void tli_clear_run(tl_run *run, int with_inputs) {
    tli_pool *pool = &run->pool;
    if (run->computing) pool->unsubmitted = 1;  // the kernel may have been recorded
    run->computing = TLI_COMPUTING_NOT;
    (void)tli_pool_submit(pool);
    tli_release_buffers(run, with_inputs);
}

static tl_result tli_abort_pass(tl_run *run, tl_result why) {
    tl_error error;  // the reason stands, whatever the clean-up meets
    tli_zero(&error, sizeof error);
    if (run->env) error = run->env->error;
    tli_clear_run(run, 0);
    if (run->active) run->next_step = run->training_step;  // it did not happen: the same again
    run->active = 0;
    if (run->env) run->env->error = error;
    return why;
}

static tl_result tli_run_mismatch(tl_run *run, const char *what, uint64_t measured,
                                  uint64_t planned) {
    tli_writer w = tli_begin_error(run->env, TL_ERROR_MISMATCH, tli_run_function);
    tli_put(&w, what);
    tli_put(&w, ": measured ");
    tli_put_u64(&w, measured);
    tli_put(&w, " bytes, planned ");
    tli_put_u64(&w, planned);
    return tli_end_error(run->env, &w, TL_ERROR_MISMATCH);
}

// Compare what the backend counted with what was planned; the two have not met before.
static tl_result tli_check_pass(tl_run *run) {
    tl_run_report *report = &run->report;
    const tl_report *planned = run->is_online ? &run->online.sim.report : &run->planned;
    tl_backend_counters counters;
    tl_result result = run->backend.check(run->backend.self);
    if (result) return tli_run_fail_backend(run, result, "check");
    run->backend.counters(run->backend.self, &counters);
    report->planned_peak_bytes = planned->peak_bytes;
    report->planned_arena_bytes = planned->arena_bytes;
    report->planned_host_peak_bytes = planned->host_peak_bytes;
    report->planned_cost = planned->cost;
    report->base_cost = planned->base_cost;
    report->measured_peak_bytes = counters.peak_bytes[TL_TIER_DEVICE] - run->foreign_bytes;
    report->measured_host_peak_bytes = counters.peak_bytes[TL_TIER_HOST] - run->foreign_host_bytes;
    report->measured_arena_bytes = 0;
    if (run->pool.arena)
        report->measured_arena_bytes = counters.arena_bytes > run->input_arena_bytes
                                     ? counters.arena_bytes : run->input_arena_bytes;
    report->end_bytes = counters.live_bytes[TL_TIER_DEVICE] - run->foreign_bytes;
    if (run->is_online) report->eviction_count = run->online.eviction_count;
    if (report->measured_peak_bytes != report->planned_peak_bytes)
        return tli_run_mismatch(run, "peak", report->measured_peak_bytes,
                                report->planned_peak_bytes);
    if (report->measured_host_peak_bytes != report->planned_host_peak_bytes)
        return tli_run_mismatch(run, "host peak", report->measured_host_peak_bytes,
                                report->planned_host_peak_bytes);
    if (report->measured_arena_bytes != report->planned_arena_bytes)
        return tli_run_mismatch(run, "arena", report->measured_arena_bytes,
                                report->planned_arena_bytes);
    if (report->end_bytes != planned->end_bytes)
        return tli_run_mismatch(run, "in use after the pass", report->end_bytes,
                                planned->end_bytes);
    if (counters.live_bytes[TL_TIER_HOST] - run->foreign_host_bytes != planned->end_host_bytes)
        return tli_run_mismatch(run, "in use on the host after the pass",
                                counters.live_bytes[TL_TIER_HOST] - run->foreign_host_bytes,
                                planned->end_host_bytes);
    return TL_OK;
}

static tl_result tli_end_pass(tl_run *run) {
    tl_result result = tli_pool_submit(&run->pool);
    if (result == TL_NOT_READY) return result;  // the next call tries again
    if (result) return tli_run_fail_backend(run, result, "submit");
    if (run->is_online) result = tli_sim_end(&run->online.sim);
    return result ? result : tli_check_pass(run);
}

TLI_IMPL tl_result tl_start_pass(tl_run *run, int32_t micro_batch) {
    tl_backend_counters counters;
    TL_ASSERT(run);
    if (run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_start_pass",
                        "run: a pass is under way");
    if (micro_batch < 0)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_start_pass",
                        "micro_batch: must be >= 0");
    tli_release_buffers(run, 0);
    if (micro_batch == 0) run->training_step = run->next_step++;
    run->micro_batch = micro_batch;
    run->position = 0;
    run->computing = TLI_COMPUTING_NOT;
    run->touched_count = 0;
    run->pool.next_offset = run->input_count;  // the inputs have their places
    run->pool.watches = run->profiling;
    tli_zero(run->ran, (size_t)run->graph->node_count);
    tli_zero(&run->report, sizeof run->report);
    run->report.limiting_node = -1;
    run->backend.counters(run->backend.self, &counters);
    run->foreign_bytes = counters.live_bytes[TL_TIER_DEVICE] - run->input_bytes;
    run->foreign_host_bytes = counters.live_bytes[TL_TIER_HOST];
    run->backend.reset_peaks(run->backend.self);
    if (run->is_online) {
        tl_result result = tli_start_online(run, tli_online_budget(run));
        if (result) return result;
    }
    run->active = 1;
    return TL_OK;
}

// The next step of the source; *done where there is none.
static tl_result tli_pull_step(tl_run *run, tl_step *step, int32_t *done) {
    const tl_step *steps = run->plan.steps;
    int32_t count = run->plan.step_count;
    tl_result result = TL_OK;
    *done = 0;
    while (run->is_online && !run->by_hand && !result && !*done &&
           run->position >= run->online.record.count)
        result = tli_online_next_goal(run, done);
    if (result) return result;
    if (run->is_online) { steps = run->online.record.steps; count = run->online.record.count; }
    if (run->position >= count) { *done = 1; return TL_OK; }
    *step = steps[run->position];
    return TL_OK;
}

// Wait for the copies that a WAIT ends; TL_NOT_READY where it would block and the caller pulls
// steps himself.
static tl_result tli_poll_step(tl_run *run, const tl_step *step) {
    const tl_backend *backend = &run->backend;
    tl_result result = TL_OK;
    int32_t i, end;
    if (step->kind != TL_STEP_WAIT || run->pool.in_order) return TL_OK;
    tli_step_outputs(run, step, &i, &end);
    for (; i < end && !result; i++)
        if (tli_acts_on_buffer(&run->tensors[i], TL_STEP_WAIT))
            result = (run->by_itself ? backend->wait : backend->poll)(backend->self, run->tensors[i].copied);
    return result;
}

static void tli_observe_step(tl_run *run) {
    if (!run->profiling) return;
    run->event.device_bytes = run->pool.high_bytes - run->foreign_bytes;
    run->event.host_bytes = tli_pool_live_bytes(&run->pool, TL_TIER_HOST) - run->foreign_host_bytes;
    if (run->desc.observe) run->desc.observe(&run->event, run->desc.observe_user);
}

static void tli_count_compute(tl_run *run) {
    int32_t id = run->last.node;
    if (run->last.kind == TL_STEP_BACKWARD) { run->report.backward_count++; return; }
    run->event.recompute = run->ran[id];
    run->report.forward_count++;
    run->report.recompute_count += run->ran[id];
    run->ran[id] = 1;
}

static tl_result tli_close_compute(tl_run *run) {
    tl_result result = tli_finish_compute(run);
    if (result) return tli_run_fail_backend(run, result, "release");
    if (!run->event.end_ns) run->event.end_ns = tli_run_now(run);
    tli_observe_step(run);
    return TL_OK;
}

static void tli_open_step(tl_run *run, tl_step step, tl_run_step *out) {
    run->last = step;
    tli_zero(&run->event, sizeof run->event);
    run->event.step = step;
    run->event.index = run->position;
    run->event.micro_batch = run->micro_batch;
    run->event.training_step = run->training_step;
    run->event.start_ns = tli_run_now(run);
    if (run->profiling) run->pool.high_bytes = tli_pool_live_bytes(&run->pool, TL_TIER_DEVICE);
    run->call.operand_count = 0;
    run->call.access_count = 0;
    out->step = step;
    out->index = run->event.index;
    out->depends_on = -1;
}

// Close the step before, pull one, carry it out or prepare it.
static tl_result tli_take_step(tl_run *run, tl_run_step *out, int32_t *done) {
    tl_step step;
    tl_result result = run->computing ? tli_close_compute(run) : TL_OK;
    if (!result) result = tli_pull_step(run, &step, done);
    if (result || *done) return result;
    tli_open_step(run, step, out);
    result = tli_poll_step(run, &step);
    if (result == TL_NOT_READY) return result;
    if (result) return tli_run_fail_backend(run, result, "poll");
    run->position++;
    run->report.step_count++;
    if (step.kind <= TL_STEP_BACKWARD) {
        tli_count_compute(run);
        result = tli_begin_compute(run, out);
    } else {
        result = tli_memory_step(run);
        run->event.end_ns = tli_run_now(run);
        if (!result) tli_observe_step(run);
    }
    out->accesses = run->call.accesses;
    out->access_count = run->call.access_count;
    if (!run->pool.in_order) out->ticket = run->pool.last;
    if (!result && !run->by_itself) result = tli_find_dependency(run, &out->depends_on);
    return result;
}

TLI_IMPL tl_result tl_next_step(tl_run *run, tl_run_step *step, int32_t *done) {
    tl_result result;
    TL_ASSERT(run && step && done);
    tli_zero(step, sizeof *step);
    *done = 0;
    if (!run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_next_step",
                        "run: no pass is under way");
    result = tli_take_step(run, step, done);
    if (!result && *done && !run->by_hand) {
        result = tli_end_pass(run);
        if (!result) run->active = 0;
    }
    if (!result) return TL_OK;
    tli_zero(step, sizeof *step);
    *done = 0;
    return result == TL_NOT_READY ? result : tli_abort_pass(run, result);
}

// -- the executor: kernels --

// What a kernel writes it may leave in part as it was.
static tl_map_mode tli_mode_of(const tli_call *call, int32_t i) {
    return call->writable[i] ? TL_MAP_CHANGE : TL_MAP_READ;
}

static tl_result tli_unmap_accesses(tl_run *run, int32_t count) {
    tl_result first = TL_OK;
    int32_t i;
    for (i = 0; i < count; i++) {
        const tl_access *access = &run->call.accesses[i];
        tl_result result = run->backend.unmap(run->backend.self, access->range,
                                              tli_mode_of(&run->call, i), run->call.hosts[i]);
        if (!first) first = result;
    }
    return first;
}

static tl_result tli_map_accesses(tl_run *run) {
    tli_call *call = &run->call;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < call->access_count && !result; i++) {
        const tl_access *access = &call->accesses[i];
        result = run->backend.map(run->backend.self, access->range, tli_mode_of(call, i),
                                  &call->hosts[i]);
        if (result) (void)tli_unmap_accesses(run, i);
    }
    for (i = 0; i < call->operand_count && !result; i++)
        call->operands[i].host = call->access_of[i] >= 0 ? call->hosts[call->access_of[i]] : NULL;
    return result;
}

static tl_result tli_fail_kernel(tl_run *run, tl_result code) {
    tli_writer w = tli_begin_error(run->env, TL_ERROR_KERNEL, tli_run_function);
    tli_put(&w, run->last.kind == TL_STEP_BACKWARD ? "backward of node " : "forward of node ");
    tli_put_i64(&w, run->last.node);
    tli_put(&w, " (");
    tli_put(&w, tl_name_node(run->graph, run->last.node));
    tli_put(&w, "): the kernel returned ");
    tli_put(&w, tl_name_result(code));
    return tli_end_error(run->env, &w, TL_ERROR_KERNEL);
}

// Random state that the caller keeps: as it was when the node first ran.
static void tli_call_random(tl_run *run, tl_random_moment moment) {
    if (run->desc.random)
        run->desc.random(moment, run->last.node, run->micro_batch, run->desc.random_user);
}

static tl_result tli_call_kernel(tl_run *run, const tl_run_step *step) {
    int backward = run->last.kind == TL_STEP_BACKWARD;
    tl_kernel_fn function = backward ? step->kernel->backward : step->kernel->forward;
    tl_kernel_call call = step->call;
    uint64_t start, end;
    tl_result result;
    const tl_operand *at = run->call.operands + run->call.operand_count;
    call.saved = at[-2];
    call.scratch = at[-1];
    if (!backward) tli_call_random(run, run->event.recompute ? TL_RANDOM_REPLAY : TL_RANDOM_RECORD);
    start = tli_run_now(run);
    result = function(&call, step->kernel->user);
    end = tli_run_now(run);
    run->event.end_ns = end;
    run->report.compute_ns += end - start;
    if (!backward && run->event.recompute) tli_call_random(run, TL_RANDOM_RESUME);
    return result ? tli_fail_kernel(run, result) : TL_OK;
}

// Whether it is the compute step that was yielded last, and its kernel was not called yet.
static int tli_is_current(const tl_run *run, const tl_run_step *step) {
    return run->active && run->computing == TLI_COMPUTING_YIELDED && step->is_compute &&
           step->index == run->event.index && step->call.step == run->training_step &&
           step->call.micro_batch == run->micro_batch;
}

TLI_IMPL tl_result tl_run_step_kernel(tl_run *run, const tl_run_step *step) {
    tl_result result, unmapped;
    TL_ASSERT(run && step);
    if (!tli_is_current(run, step))
        return tli_fail(run->env, TL_ERROR_STALE, "tl_run_step_kernel",
                        "step: not the compute step that was yielded last, or called already");
    result = run->limits.host_visible ? tli_map_accesses(run) : TL_OK;
    if (result == TL_NOT_READY) return tli_fail(run->env, result, "tl_run_step_kernel", tli_cannot_wait);
    if (result) return tli_abort_pass(run, tli_run_fail_backend(run, result, "map"));
    run->computing = TLI_COMPUTING_CALLED;
    result = tli_call_kernel(run, step);
    unmapped = run->limits.host_visible ? tli_unmap_accesses(run, run->call.access_count) : TL_OK;
    if (!result && unmapped) result = tli_run_fail_backend(run, unmapped, "unmap");
    return result ? tli_abort_pass(run, result) : TL_OK;
}

// Carry out what is left of the pass (by hand: of the goals decided so far).
static tl_result tli_run_steps(tl_run *run) {
    tl_run_step step;
    int32_t done = 0;
    tl_result result = TL_OK;
    run->by_itself = 1;
    while (!result && !done) {
        result = tl_next_step(run, &step, &done);
        if (!result && !done && step.is_compute) result = tl_run_step_kernel(run, &step);
    }
    run->by_itself = 0;
    if (result != TL_NOT_READY) return result;
    return tli_abort_pass(run, tli_fail(run->env, result, tli_run_function, tli_cannot_wait));
}

TLI_IMPL tl_result tl_run_plan(tl_run *run) {
    uint64_t step;
    tl_result result = TL_OK;
    int32_t k;
    TL_ASSERT(run);
    if (run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_run_plan", "run: a pass is under way");
    step = run->next_step;
    for (k = 0; k < run->repeat_count && !result; k++) {
        if (run->desc.load && run->desc.load(run, k, run->desc.load_user)) {
            result = tli_fail(run->env, TL_ERROR_KERNEL, "tl_run_plan",
                              "load: the hook reported a failure");
            (void)tli_abort_pass(run, result);
        }
        if (!result) result = tl_start_pass(run, k);
        if (!result) result = tli_run_steps(run);
    }
    if (result) run->next_step = step;
    return result;
}

TLI_IMPL tl_result tl_reset_run(tl_run *run) {
    TL_ASSERT(run);
    return tli_abort_pass(run, TL_OK);
}

TLI_IMPL void tl_measure_run(const tl_run *run, tl_run_report *report) {
    TL_ASSERT(run && report);
    *report = run->report;
}

TLI_IMPL void tl_find_run_plan(const tl_run *run, tl_plan *plan) {
    const tl_report *report = run->is_online ? &run->online.sim.report : &run->planned;
    TL_ASSERT(run && plan);
    *plan = run->plan;
    plan->memory = NULL;
    plan->base_bytes = run->desc.base_bytes;
    if (!run->is_online) return;
    plan->steps = run->online.record.steps;
    plan->step_count = run->online.record.count;
    plan->inference = run->inference;
    plan->repeat_count = run->repeat_count;
    plan->peak_bytes = report->peak_bytes;
    plan->host_peak_bytes = report->host_peak_bytes;
    plan->cost = report->cost;
    plan->base_cost = report->base_cost;
}

TLI_IMPL const tl_graph *tl_find_run_graph(const tl_run *run) {
    TL_ASSERT(run);
    return run->graph;
}

// -- tensors of the caller --

static tl_result tli_access_tensor(tl_run *run, const char *function, tl_tensor tensor,
                                   uint64_t bytes, tli_buffer **buffer) {
    const tl_graph *graph = run->graph;
    int32_t index;
    *buffer = NULL;
    if (tensor.node < 0 || tensor.node >= graph->node_count || tensor.output < 0 ||
        tensor.output >= graph->nodes[tensor.node].output_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, "tensor: not of this graph");
    index = graph->nodes[tensor.node].first_output + tensor.output;
    if (bytes != graph->outputs[index].bytes)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, "bytes: not those of the tensor");
    if (run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, "run: a pass is under way");
    if (run->tensors[index].state != TLI_RESIDENT && run->tensors[index].state != TLI_LEAVING)
        return tli_fail(run->env, TL_ERROR_NOT_FOUND, function,
                        "tensor: neither an input nor a result of the last pass");
    *buffer = &run->tensors[index];
    return TL_OK;
}

static tl_result tli_move_tensor(tl_run *run, const char *function, tl_range range, tl_map_mode mode,
                                 void *to, const void *from) {
    tl_access access;
    void *host = NULL;
    tl_result result;
    if (!range.bytes) return TL_OK;
    access.range = range;
    access.writes = mode == TL_MAP_WRITE;
    // Where work runs in order, map knows by itself what it has to wait for.
    result = run->limits.in_order ? TL_OK : run->backend.order(run->backend.self, &access, 1);
    if (!result) result = run->backend.map(run->backend.self, range, mode, &host);
    if (!result) {
        if (mode == TL_MAP_WRITE) tli_copy(host, from, (size_t)range.bytes);
        else tli_copy(to, host, (size_t)range.bytes);
        result = run->backend.unmap(run->backend.self, range, mode, host);
    }
    if (result == TL_NOT_READY) return tli_fail(run->env, result, function, tli_cannot_wait);
    return result ? tli_fail(run->env, result, function, "tensor: the backend could not map it")
                  : TL_OK;
}

TLI_IMPL tl_result tl_write_tensor(tl_run *run, tl_tensor tensor, const void *data,
                                   uint64_t bytes) {
    tli_buffer *buffer;
    tl_result result;
    TL_ASSERT(run && (data || !bytes));
    result = tli_access_tensor(run, "tl_write_tensor", tensor, bytes, &buffer);
    if (!result && !run->graph->nodes[tensor.node].is_input)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_write_tensor",
                        "tensor: not a graph input");
    return result ? result : tli_move_tensor(run, "tl_write_tensor", buffer->device, TL_MAP_WRITE, NULL, data);
}

TLI_IMPL tl_result tl_read_tensor(tl_run *run, tl_tensor tensor, void *data, uint64_t bytes) {
    tli_buffer *buffer;
    tl_result result;
    TL_ASSERT(run && (data || !bytes));
    result = tli_access_tensor(run, "tl_read_tensor", tensor, bytes, &buffer);
    return result ? result : tli_move_tensor(run, "tl_read_tensor", buffer->device, TL_MAP_READ, data, NULL);
}

// -- preparing a run: what the strategy asks for --

static tl_result tli_unsupported(tl_run *run, const char *what) {
    return tli_fail(run->env, TL_ERROR_UNSUPPORTED, "tl_init_run", what);
}

static tl_result tli_support_strategy(tl_run *run, const tl_strategy *strategy) {
    const tl_run_desc *desc = &run->desc;
    uint64_t workers =
        tl_find_worker_count(strategy, desc->device ? desc->device->worker_count : 1);
    int placed = desc->plan && desc->plan->offset_count > 0;
    if (strategy->mode == TL_MODE_HYBRID)
        return tli_unsupported(
            run, "strategy.mode: hybrid cannot be run by this version; use eager or lazy");
    if (strategy->precision == TL_PRECISION_MIXED)
        return tli_unsupported(
            run, "strategy.precision: mixed cannot be run by this version; name one precision");
    if (strategy->memory == TL_MEMORY_POOLED && !placed)
        return tli_unsupported(
            run,
            "strategy.memory: pooled needs a plan with offsets; this version makes none by itself");
    if (strategy->memory == TL_MEMORY_CACHED || strategy->memory == TL_MEMORY_MINIMAL_PEAK)
        return tli_unsupported(
            run, "strategy.memory: this version runs standard, or pooled with planned offsets");
    if (strategy->memory == TL_MEMORY_STANDARD && placed)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_init_run",
                        "strategy.memory: standard, but the plan has offsets");
    if (workers > 1 || strategy->parallelism.kind == TL_PARALLELISM_MODEL ||
        strategy->parallelism.kind == TL_PARALLELISM_PIPELINE)
        return tli_unsupported(run, "strategy.parallelism: this version runs one worker");
    if (strategy->enable_fusion)
        return tli_unsupported(run, "strategy.enable_fusion: this version fuses nothing");
    if (strategy->mode == TL_MODE_LAZY && strategy->gradient.checkpointed &&
        !strategy->gradient.checkpoint_interval && !desc->plan && !desc->checkpoints)
        return tli_unsupported(run, "strategy.gradient: this version has no planner for interval "
                                    "0; name an interval or a plan");
    return TL_OK;
}

// The strategy and the rest of the desc may not say different things.
static tl_result tli_match_strategy(tl_run *run, const tl_strategy *strategy) {
    const tl_run_desc *desc = &run->desc;
    const tl_gradient *gradient = &strategy->gradient;
    const char *why = NULL;
    if (strategy->mode == TL_MODE_EAGER && !run->is_online)
        why = "strategy.mode: eager decides online, leave plan and checkpoints out";
    if (desc->plan && desc->plan->inference == gradient->computes)
        why = "strategy.gradient: the plan is of the other kind";
    if ((desc->plan || desc->checkpoints) && gradient->checkpoint_interval)
        why = "strategy.gradient: an interval, and a plan or checkpoints: give one of them";
    if (desc->checkpoints && !gradient->checkpointed)
        why = "strategy.gradient: not checkpointed, but checkpoints are given";
    if (desc->policy.kind != TL_RECOMPUTE_POLICY_ALL && gradient->computes &&
        (!gradient->checkpointed || gradient->checkpoint_interval))
        why = "strategy.gradient: says what is kept, leave policy out";
    if (gradient->accumulation_steps > INT32_MAX)
        why = "strategy.gradient: accumulation_steps must be below 2^31";
    return why ? tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_init_run", why) : TL_OK;
}

// A strategy becomes the flags of the run.
static tl_result tli_apply_strategy(tl_run *run) {
    tl_run_desc *desc = &run->desc;
    const tl_strategy *strategy = desc->strategy;
    tl_result result;
    run->precision = TL_PRECISION_SINGLE;
    run->profiling = desc->profiling;
    run->checkpoints_on = 1;
    run->inference = desc->plan ? desc->plan->inference : desc->inference;
    run->is_online = !desc->plan && !desc->checkpoints;
    if (!strategy) return TL_OK;
    result = tl_check_strategy(run->env, strategy);
    if (!result) result = tli_support_strategy(run, strategy);
    if (result) return result;
    result = tli_match_strategy(run, strategy);
    if (result) return result;
    run->is_online = strategy->mode == TL_MODE_EAGER;
    run->inference = !strategy->gradient.computes;
    run->precision = strategy->precision;
    run->profiling = desc->profiling || strategy->enable_profiling;
    if (!desc->repeat_count) desc->repeat_count = (int32_t)strategy->gradient.accumulation_steps;
    if (run->is_online) {
        run->checkpoints_on = run->inference || strategy->gradient.checkpointed;
        if (strategy->gradient.checkpoint_interval)
            desc->policy = tl_recompute_policy_every_n(strategy->gradient.checkpoint_interval);
    }
    return TL_OK;
}

static tl_result tli_check_run_desc(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    const char *why = NULL;
    tl_result result = tl_check_recompute_policy(run->env, &desc->policy);
    if (!result && desc->device) result = tl_check_device(run->env, desc->device);
    if (result) return result;
    if (desc->plan && desc->checkpoints) why = "plan, checkpoints: give one of them";
    if ((uint32_t)desc->eviction >= TL_EVICTION_COUNT || (uint32_t)desc->codec >= TL_CODEC_COUNT)
        why = "eviction, codec: unknown kind";
    if ((desc->eviction == TL_EVICTION_CALLER) != (desc->evict != NULL))
        why = "evict: goes with TL_EVICTION_CALLER";
    if (desc->kernel_count < 0 || (desc->kernel_count && !desc->kernels) || desc->repeat_count < 0)
        why = "kernel_count, repeat_count: must be >= 0, with kernels";
    if (desc->inference != 0 && desc->inference != 1) why = "inference: must be 0 or 1";
    if (desc->checkpoints && desc->inference) why = "checkpoints: a forward-only run has none";
    if ((desc->plan || desc->checkpoints) &&
        (desc->policy.kind != TL_RECOMPUTE_POLICY_ALL || desc->eviction || desc->codec))
        why = "policy, eviction, codec: are for online runs, not for plans";
    if (why) return tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_init_run", why);
    if (desc->codec != TL_CODEC_NONE && !(run->limits.codecs & (1u << desc->codec)))
        return tli_unsupported(run, "codec: the backend cannot convert it");
    return TL_OK;
}

// -- preparing a run: graph, kernels, plan --

static uint64_t tli_scale_bytes(uint64_t bytes, tl_precision precision) {
    switch (precision) {
    case TL_PRECISION_FULL: return bytes <= UINT64_MAX / 2 ? 2 * bytes : UINT64_MAX;
    case TL_PRECISION_HALF:
    case TL_PRECISION_BF16: return bytes / 2 + bytes % 2;
    case TL_PRECISION_SINGLE:
    case TL_PRECISION_MIXED:
    case TL_PRECISION_COUNT: break;
    }
    return bytes;
}

// The bytes of a graph are those of f32 elements: another precision makes them larger or smaller.
// Graph inputs keep theirs.
static tl_result tli_scale_graph(tl_run *run) {
    const tl_graph *graph = run->graph;
    uint32_t can =
        run->desc.kernel_precisions ? run->desc.kernel_precisions : 1u << TL_PRECISION_SINGLE;
    int32_t i;
    if (!(can & (1u << run->precision)))
        return tli_unsupported(run, "strategy.precision: not among kernel_precisions");
    if (run->precision == TL_PRECISION_SINGLE) return TL_OK;
    run->own_graph = *graph;
    run->own_graph.nodes =
        (tl_node *)tli_alloc_array(run->env, (uint64_t)graph->node_count, sizeof *graph->nodes);
    run->own_graph.outputs = (tl_node_output *)tli_alloc_array(
        run->env, (uint64_t)graph->tensor_count, sizeof *graph->outputs);
    run->owns_nodes = 1;
    if (!run->own_graph.nodes || !run->own_graph.outputs)
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, "tl_init_run", "graph of another precision");
    tli_copy(run->own_graph.nodes, graph->nodes, (size_t)graph->node_count * sizeof *graph->nodes);
    tli_copy(run->own_graph.outputs, graph->outputs,
             (size_t)graph->tensor_count * sizeof *graph->outputs);
    for (i = 0; i < graph->node_count; i++) {
        tl_node *node = &run->own_graph.nodes[i];
        node->saved_bytes = tli_scale_bytes(node->saved_bytes, run->precision);
        node->fwork_bytes = tli_scale_bytes(node->fwork_bytes, run->precision);
        node->bwork_bytes = tli_scale_bytes(node->bwork_bytes, run->precision);
    }
    for (i = 0; i < graph->tensor_count; i++) {
        tl_node_output *output = &run->own_graph.outputs[i];
        if (!graph->nodes[output->node].is_input)
            output->bytes = tli_scale_bytes(output->bytes, run->precision);
    }
    run->graph = &run->own_graph;
    return tl_check_graph(run->env, run->graph);
}

static tl_result tli_fail_kernels(tl_run *run, int32_t id) {
    tli_writer w = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, "tl_init_run");
    tli_put(&w, run->kernel_of[id] < 0 ? "kernels: none for op "
                                       : "kernels: forward or backward missing for op ");
    tli_put(&w, tl_name_op(run->graph, id));
    tli_put(&w, " of node ");
    tli_put_i64(&w, id);
    return tli_end_error(run->env, &w, TL_ERROR_INVALID_ARG);
}

static tl_result tli_find_kernels(tl_run *run) {
    const tl_graph *graph = run->graph;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        run->kernel_of[id] = -1;
        if (node->is_input) continue;
        if (run->owns_layers) run->kernel_of[id] = id - 1;  // as tl_init_layer_run made them
        for (k = 0; k < run->desc.kernel_count && run->kernel_of[id] < 0; k++)
            if (tli_same_text(run->kernels[k].op, tl_name_op(graph, id))) run->kernel_of[id] = k;
        if (run->kernel_of[id] >= 0 && run->kernels[run->kernel_of[id]].forward &&
            (run->inference || !node->has_grad || run->kernels[run->kernel_of[id]].backward))
            continue;
        return tli_fail_kernels(run, id);
    }
    for (k = 0; k < run->desc.kernel_count; k++)
        run->kernels[k].op = "";  // the caller's text may go
    for (id = 0; id < graph->node_count; id++)
        if (run->kernel_of[id] >= 0) run->kernels[run->kernel_of[id]].op = tl_name_op(graph, id);
    return TL_OK;
}

#ifndef TL_NO_PLANNERS
static tl_result tli_plan_interval(tl_run *run, uint64_t interval) {
    uint8_t *keep = (uint8_t *)tli_alloc_array(run->env, (uint64_t)run->graph->tensor_count, 1);
    uint64_t number = 0;
    int32_t id, i;
    tl_result result;
    if (!keep) return tli_fail(run->env, TL_ERROR_NO_MEMORY, "tl_init_run", "kept set");
    for (id = 0; id < run->graph->node_count; id++) {
        const tl_node *node = &run->graph->nodes[id];
        int kept = node->is_input || number % interval == 0;
        number += !node->is_input;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            keep[i] = (uint8_t)kept;
    }
    result = tl_plan_kept_set(run->env, run->graph, keep, &run->plan);
    tli_release(run->env, keep);
    return result;
}

// The plan that checkpoints or strategy ask for.
static tl_result tli_plan_desc(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    const tl_strategy *strategy = desc->strategy;
    if (desc->checkpoints && !run->inference)
        return tl_plan_checkpoints(run->env, run->graph, desc->checkpoints, &run->plan);
    if (strategy && strategy->gradient.checkpointed && !run->inference)
        return tli_plan_interval(run, strategy->gradient.checkpoint_interval);
    return tl_plan_keep_all(run->env, run->graph, run->inference, &run->plan);
}
#else
static tl_result tli_plan_desc(tl_run *run) {
    return tli_unsupported(run, "plan: give one; TL_NO_PLANNERS left the planners out");
}
#endif

// The plan given or made, and its simulation.
static tl_result tli_make_run_plan(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    tl_simulate_desc simulate;
    tl_device device;
    tl_result result = TL_OK;
    run->owns_plan = !desc->plan;
    if (desc->plan) run->plan = *desc->plan;
    else result = tli_plan_desc(run);
    if (result) return result;
    tli_zero(&device, sizeof device);
    if (desc->device) device = *desc->device;
    if (run->plan.offset_count) device.alignment_bytes = run->limits.alignment_bytes;
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = run->graph;
    simulate.plan = &run->plan;
    simulate.device = &device;
    return tl_simulate_plan(run->env, &simulate, &run->planned);
}

// -- preparing a run: budgets --

static tl_result tli_infeasible(tl_run *run, const char *what, uint64_t bytes, int32_t node) {
    tli_writer w = tli_begin_error(run->env, TL_ERROR_INFEASIBLE, "tl_init_run");
    tli_put(&w, what);
    tli_put_u64(&w, bytes);
    tli_put(&w, " bytes");
    if (node >= 0) {
        tli_put(&w, ", because of node ");
        tli_put_i64(&w, node);
        tli_put(&w, " (");
        tli_put(&w, tl_name_node(run->graph, node));
        tli_put(&w, ")");
    }
    return tli_end_error(run->env, &w, TL_ERROR_INFEASIBLE);
}

// A budget at which the decisions work: it grows, goal by goal, to what the goal needs, until a
// whole pass works without growing.
static tl_result tli_grow_budget(tl_run *run, uint64_t *works) {
    tli_online *o = &run->online;
    tl_result result = TL_OK;
    o->searches = 1;
    while (!result) {
        result = tli_rehearse(run, *works);
        if (o->budget == *works) break;
        *works = o->budget;
    }
    o->searches = 0;
    return result;
}

// The decisions are tried out at the budget. Where they fail, the least one is searched: it works,
// and one byte less does not.
static tl_result tli_check_online_budget(tl_run *run) {
    uint64_t fails = tli_online_budget(run), works = fails, need;
    tl_result result = tli_rehearse(run, fails);
    int32_t node = run->report.limiting_node;
    if (result != TL_ERROR_OVER_BUDGET) return result;
    result = tli_grow_budget(run, &works);
    while (!result && works - fails > 1) {
        uint64_t middle = fails + (works - fails) / 2;
        result = tli_rehearse(run, middle);
        if (!result) { works = middle; continue; }
        if (result != TL_ERROR_OVER_BUDGET) return result;
        fails = middle;
        node = run->report.limiting_node;
        result = TL_OK;
    }
    if (result) return result;
    if (!tli_add_u64(run->desc.base_bytes, works, &need)) need = UINT64_MAX;
    return tli_infeasible(run, "budget_bytes: the least that works is ", need, node);
}

static tl_result tli_check_budget(tl_run *run) {
    const tl_report *planned = &run->planned;
    uint64_t need;
    if (!run->desc.budget_bytes) run->desc.budget_bytes = TL_UNLIMITED;
    if (run->is_online) return tli_check_online_budget(run);
    if (!tli_add_u64(run->desc.base_bytes,
                     run->plan.offset_count ? planned->arena_bytes : planned->peak_bytes, &need))
        need = UINT64_MAX;
    if (need > run->desc.budget_bytes)
        return tli_infeasible(run, "budget_bytes: the plan takes ", need,
                              planned->peak_step >= 0 ? run->plan.steps[planned->peak_step].node
                                                      : -1);
    if (run->desc.host_budget_bytes && planned->host_peak_bytes > run->desc.host_budget_bytes)
        return tli_infeasible(run, "host_budget_bytes: the plan takes ", planned->host_peak_bytes,
                              -1);
    return TL_OK;
}

// -- preparing a run: memory --

static tl_result tli_alloc_run(tl_run *run) {
    const tl_graph *graph = run->graph;
    tl_env *env = run->env;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count,
             inputs = 0, outputs = 0;
    uint64_t widest;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        if ((uint64_t)graph->nodes[id].input_count > inputs)
            inputs = (uint64_t)graph->nodes[id].input_count;
        if ((uint64_t)graph->nodes[id].output_count > outputs)
            outputs = (uint64_t)graph->nodes[id].output_count;
    }
    widest = 2 * inputs + 2 * outputs + 2;
    run->tensors = (tli_buffer *)tli_alloc_array(env, tensors, sizeof *run->tensors);
    run->gradients = (tli_buffer *)tli_alloc_array(env, tensors, sizeof *run->gradients);
    run->saved = (tli_buffer *)tli_alloc_array(env, nodes, sizeof *run->saved);
    run->ran = (uint8_t *)tli_alloc_array(env, nodes, 1);
    run->is_read = (uint8_t *)tli_alloc_array(env, tensors, 1);
    run->is_result = (uint8_t *)tli_alloc_array(env, tensors, 1);
    run->kernel_of = (int32_t *)tli_alloc_array(env, nodes, sizeof *run->kernel_of);
    run->kernels =
        (tl_kernel *)tli_alloc_array(env, (uint64_t)run->desc.kernel_count, sizeof *run->kernels);
    run->call.operands = (tl_operand *)tli_alloc_array(env, widest, sizeof *run->call.operands);
    run->call.access_of = (int32_t *)tli_alloc_array(env, widest, sizeof *run->call.access_of);
    run->call.accesses = (tl_access *)tli_alloc_array(env, widest, sizeof *run->call.accesses);
    run->call.writable = (uint8_t *)tli_alloc_array(env, widest, 1);
    run->call.hosts = (void **)tli_alloc_array(env, widest, sizeof *run->call.hosts);
    run->call.twice = (tl_range *)tli_alloc_array(env, outputs, sizeof *run->call.twice);
    run->call.made = (uint8_t *)tli_alloc_array(env, outputs, 1);
    run->call.twice_count = (int32_t)outputs;
    if (!run->tensors || !run->gradients || !run->saved || !run->ran || !run->is_read ||
        !run->is_result || !run->kernel_of || !run->kernels || !run->call.operands ||
        !run->call.access_of || !run->call.accesses || !run->call.writable || !run->call.hosts ||
        !run->call.twice || !run->call.made)
        return tli_fail(env, TL_ERROR_NO_MEMORY, "tl_init_run", "state of the run");
    tli_copy(run->kernels, run->desc.kernels,
             (size_t)run->desc.kernel_count * sizeof *run->kernels);
    for (id = 0; id < graph->input_count; id++) run->is_read[graph->inputs[id].tensor] = 1;
    tli_mark_results(graph, run->inference, run->is_result);
    return TL_OK;
}

// The arena where offsets are planned.
static tl_result tli_add_arena(tl_run *run) {
    tli_pool *pool = &run->pool;
    pool->offsets = run->plan.offsets;
    pool->offset_count = run->plan.offset_count;
    if (!run->planned.arena_bytes) return TL_OK;
    return pool->backend->add_block(pool->backend->self, TL_TIER_DEVICE, run->planned.arena_bytes,
                                    &pool->arena);
}

// The graph's inputs stay between passes; they start as zeroes.
static tl_result tli_claim_inputs(tl_run *run) {
    const tl_graph *graph = run->graph;
    tli_pool *pool = &run->pool;
    tl_backend_counters counters;
    tl_result result;
    int32_t i;
    pool->backend = &run->backend;
    pool->in_order = run->limits.in_order;
    result = run->plan.offset_count ? tli_add_arena(run) : TL_OK;
    run->backend.reset_peaks(run->backend.self);
    for (i = 0; i < graph->tensor_count && !result; i++) {
        tli_buffer *input = &run->tensors[i];
        if (!graph->nodes[graph->outputs[i].node].is_input) continue;
        input->state = TLI_RESIDENT;
        result = tli_pool_claim(pool, TL_TIER_DEVICE, graph->outputs[i].bytes, &input->device);
        if (!result) result = tli_pool_fill(pool, input->device, 0);
        run->input_bytes += input->device.bytes;
    }
    if (result)
        return tli_fail(run->env, result, "tl_init_run",
                        "backend: could not take the graph's inputs");
    run->backend.counters(run->backend.self, &counters);
    run->input_arena_bytes = counters.arena_bytes;
    run->input_count = pool->next_offset;
    return TL_OK;
}

static tl_result tli_prepare_run(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    tl_result result = tl_check_graph(run->env, run->graph);
    if (!result) result = tli_check_run_desc(run);
    if (!result) result = tli_apply_strategy(run);
    if (!result) result = tli_scale_graph(run);
    if (!result) result = tli_alloc_run(run);
    if (!result) result = tli_find_kernels(run);
    if (!result && !run->is_online) result = tli_make_run_plan(run);
    if (!result && run->is_online) result = tli_init_online(run);
    if (!result) result = tli_check_budget(run);
    if (result) return result;
    run->repeat_count = desc->repeat_count ? desc->repeat_count : run->plan.repeat_count;
    if (!run->repeat_count) run->repeat_count = 1;
    run->next_step = desc->first_step;
    tli_zero(&run->report, sizeof run->report);  // it was used to try decisions out
    run->report.limiting_node = -1;
    return tli_claim_inputs(run);
}

// What was read during the call only is not kept.
static void tli_forget_desc(tl_run *run) {
    run->desc.strategy = NULL;
    run->desc.checkpoints = NULL;
    run->desc.device = NULL;
    run->desc.kernels = NULL;
    run->desc.graph = NULL;
    run->desc.backend = NULL;
}

// graph: 0 = desc's, else made for the run, which takes it over.
static tl_result tli_init_run(tl_env *env, const tl_run_desc *desc, tl_graph *graph, tl_run **out) {
    tl_run *run = (tl_run *)tli_alloc_array(env, 1, sizeof *run);
    tl_result result;
    if (!run) {
        if (graph) tl_free_graph(env, graph);
        return tli_fail(env, TL_ERROR_NO_MEMORY, "tl_init_run", "run");
    }
    run->env = env;
    run->backend = *desc->backend;
    run->desc = *desc;
    run->graph = desc->graph;
    if (graph) {
        run->layer_graph = *graph;
        run->owns_layers = 1;
        run->graph = &run->layer_graph;
    }
    run->backend.limits(run->backend.self, &run->limits);
    result = tli_prepare_run(run);
    if (result) {
        tl_error error;
        tli_zero(&error, sizeof error);
        if (env) error = env->error;
        tl_free_run(run);
        if (env) env->error = error;
        return result;
    }
    tli_forget_desc(run);
    *out = run;
    return TL_OK;
}

TLI_IMPL tl_result tl_init_run(tl_env *env, const tl_run_desc *desc, tl_run **run) {
    TL_ASSERT(desc && desc->graph && desc->backend && run);
    *run = NULL;
    return tli_init_run(env, desc, NULL, run);
}

TLI_IMPL void tl_free_run(tl_run *run) {
    tl_env *env;
    if (!run) return;
    env = run->env;
    if (run->pool.backend) {
        tli_clear_run(run, 1);
        if (run->pool.arena) (void)run->backend.free_block(run->backend.self, run->pool.arena);
    }
    tli_free_online(run);
    if (run->owns_plan) tl_free_plan(env, &run->plan);
    tli_release(env, run->tensors);
    tli_release(env, run->gradients);
    tli_release(env, run->saved);
    tli_release(env, run->ran);
    tli_release(env, run->is_read);
    tli_release(env, run->is_result);
    tli_release(env, run->kernel_of);
    tli_release(env, run->kernels);
    tli_release(env, run->call.operands);
    tli_release(env, run->call.access_of);
    tli_release(env, run->call.accesses);
    tli_release(env, run->call.writable);
    tli_release(env, run->call.hosts);
    tli_release(env, run->call.twice);
    tli_release(env, run->call.made);
    tli_release(env, run->touched);
    if (run->owns_nodes) {
        tli_release(env, run->own_graph.nodes);
        tli_release(env, run->own_graph.outputs);
    }
    if (run->owns_layers) tl_free_graph(env, &run->layer_graph);
    tli_release(env, run);
}

// -- layer by layer --

static tl_result tli_add_layer_node(tl_env *env, tl_graph *graph, const tl_layer *layer,
                                    int32_t index, char *op) {
    tli_writer w = tli_writer_of(op, 24);
    tl_node_desc node;
    tl_tensor input;
    if (!layer->forward)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_init_layer_run",
                        "layers: forward is missing");
    tli_put(&w, "layer");
    tli_put_i64(&w, index);
    tli_finish(&w);
    input.node = index;
    input.output = 0;
    tli_zero(&node, sizeof node);
    node.name = layer->name ? layer->name : op;
    node.op = op;
    node.inputs = &input;
    node.input_count = 1;
    node.output_bytes = &layer->output_bytes;
    node.output_count = 1;
    node.needs = layer->needs ? layer->needs : "in";
    node.fwd_cost = layer->fwd_cost ? layer->fwd_cost : 1;
    node.bwd_cost = layer->bwd_cost ? layer->bwd_cost : 1;
    node.saved_bytes = layer->saved_bytes;
    node.fwork_bytes = layer->fwork_bytes;
    node.bwork_bytes = layer->bwork_bytes;
    node.param_bytes = layer->param_bytes;
    node.layer = index + 1;
    node.keep = layer->keep;
    return tl_add_node(env, graph, &node, NULL);
}

// The chain as a graph, and one kernel an op named after its layer.
static tl_result tli_add_layer_nodes(tl_env *env, const tl_layer *layers, int32_t layer_count,
                                     uint64_t input_bytes, tl_graph *graph, tl_kernel *kernels,
                                     char *ops) {
    tl_node_desc input;
    tl_result result;
    int32_t i;
    tli_zero(&input, sizeof input);
    input.name = "input";
    input.op = "input";
    input.output_bytes = &input_bytes;
    input.output_count = 1;
    result = tl_add_node(env, graph, &input, NULL);
    for (i = 0; i < layer_count && !result; i++) {
        result = tli_add_layer_node(env, graph, &layers[i], i, ops + (size_t)i * 24);
        kernels[i].op = ops + (size_t)i * 24;
        kernels[i].forward = layers[i].forward;
        kernels[i].backward = layers[i].backward;
        kernels[i].user = layers[i].user;
    }
    return result;
}

TLI_IMPL tl_result tl_init_layer_run(tl_env *env, const tl_run_desc *desc, const tl_layer *layers,
                                     int32_t layer_count, uint64_t input_bytes, tl_run **run) {
    tl_run_desc layered;
    tl_graph graph;
    tl_kernel *kernels;
    char *ops;
    tl_result result;
    TL_ASSERT(desc && desc->backend && layers && run);
    *run = NULL;
    if (layer_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_init_layer_run", "layer_count: must be > 0");
    tl_init_graph(&graph);
    kernels = (tl_kernel *)tli_alloc_array(env, (uint64_t)layer_count, sizeof *kernels);
    ops = (char *)tli_alloc_array(env, (uint64_t)layer_count, 24);
    result = kernels && ops
                 ? tli_add_layer_nodes(env, layers, layer_count, input_bytes, &graph, kernels, ops)
                 : tli_fail(env, TL_ERROR_NO_MEMORY, "tl_init_layer_run", "layers");
    layered = *desc;
    layered.graph = NULL;
    layered.kernels = kernels;
    layered.kernel_count = layer_count;
    if (result) tl_free_graph(env, &graph);
    else result = tli_init_run(env, &layered, &graph, run);
    tli_release(env, kernels);
    tli_release(env, ops);
    return result;
}

// The goals of a pass by hand; the last one closes it.
static tl_result tli_run_goal(tl_run *run, int32_t id, int backward, int is_last) {
    tl_result result;
    run->by_hand = 1;
    result = tli_online_reach_goal(run, id, backward);
    if (result) (void)tli_abort_pass(run, result);
    else result = tli_run_steps(run);
    run->by_hand = 0;
    return result || !is_last ? result : tli_run_steps(run);
}

static tl_result tli_fail_layer_turn(tl_run *run, const char *function) {
    return tli_fail(run->env, TL_ERROR_INVALID_ARG, function,
                    "layer: forward goes 0, 1, ... to the last, then backward down to 0, on an "
                    "online run over layers");
}

TLI_IMPL tl_result tl_run_forward(tl_run *run, int32_t layer) {
    tl_result result = TL_OK;
    int32_t id, last;
    TL_ASSERT(run);
    last = run->graph->node_count - 1;
    if (!run->is_online || !run->owns_layers || layer < 0 || layer >= last)
        return tli_fail_layer_turn(run, "tl_run_forward");
    id = layer + 1;
    if (!run->active && layer == 0) result = tl_start_pass(run, 0);
    if (result) return result;
    if (run->active && run->online.next_forward == 0) run->online.next_forward = 1;  // the input
    if (!run->active || id != run->online.next_forward)
        return tli_fail_layer_turn(run, "tl_run_forward");
    run->online.next_forward = id + 1;
    return tli_run_goal(run, id, 0, run->inference && id == last);
}

TLI_IMPL tl_result tl_run_backward(tl_run *run, int32_t layer) {
    TL_ASSERT(run);
    if (!run->is_online || !run->owns_layers || !run->active || run->inference || layer < 0 ||
        run->online.next_forward != run->graph->node_count ||
        layer != run->online.next_backward - 1)
        return tli_fail_layer_turn(run, "tl_run_backward");
    run->online.next_backward = layer;
    return tli_run_goal(run, layer + 1, 1, layer == 0);
}

TLI_IMPL tl_result tl_enable_checkpoints(tl_run *run, int32_t on) {
    TL_ASSERT(run);
    if (run->active || !run->is_online)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, "tl_enable_checkpoints",
                        "run: not online, or a pass is under way");
    run->checkpoints_on = on != 0;
    return TL_OK;
}

TLI_IMPL int tl_uses_checkpoints(const tl_run *run) { return run->checkpoints_on; }

#ifndef TL_NO_TRACE
// ============================================================================
// [13] TRACE (implementation)
// ============================================================================

struct tl_trace {
    tl_env       *env;
    tl_run_event *events;    // [capacity] the first `kept` are set
    int32_t       capacity, kept, dropped;
};

TLI_IMPL tl_result tl_init_trace(tl_env *env, int32_t capacity, tl_trace **trace) {
    tl_trace *made;
    TL_ASSERT(trace);
    *trace = NULL;
    if (capacity < 1) return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_init_trace", "capacity: must be > 0");
    made = (tl_trace *)tli_alloc_array(env, 1, sizeof *made);
    if (made) made->events = (tl_run_event *)tli_alloc_array(env, (uint64_t)capacity, sizeof *made->events);
    if (!made || !made->events) {
        tli_release(env, made);
        return tli_fail(env, TL_ERROR_NO_MEMORY, "tl_init_trace", "capacity: no memory for the events");
    }
    made->env = env;
    made->capacity = capacity;
    *trace = made;
    return TL_OK;
}

TLI_IMPL void tl_free_trace(tl_trace *trace) {
    tl_env *env = trace ? trace->env : NULL;
    if (!trace) return;
    tli_release(env, trace->events);
    tli_release(env, trace);
}

TLI_IMPL void tl_reset_trace(tl_trace *trace) {
    TL_ASSERT(trace);
    trace->kept = 0;
    trace->dropped = 0;
}

TLI_IMPL void tl_record_event(const tl_run_event *event, void *trace) {
    tl_trace *into = (tl_trace *)trace;
    TL_ASSERT(event && trace);
    if (into->kept < into->capacity) into->events[into->kept++] = *event;
    else if (into->dropped < INT32_MAX) into->dropped++;
}

TLI_IMPL void tl_measure_trace(const tl_trace *trace, int32_t *kept, int32_t *dropped) {
    TL_ASSERT(trace);
    if (kept) *kept = trace->kept;
    if (dropped) *dropped = trace->dropped;
}

TLI_IMPL const tl_run_event *tl_find_event(const tl_trace *trace, int32_t index) {
    TL_ASSERT(trace);
    return index >= 0 && index < trace->kept ? &trace->events[index] : NULL;
}

#ifndef TL_NO_TEXT
// -- stream: a small buffer in front of a sink; the first error stops it --

typedef struct tli_stream {
    tl_sink   sink;
    tl_result result;   // of the sink
    uint64_t  sent;     // bytes that the sink took
    size_t    used;     // of buf
    char      buf[512];
} tli_stream;

static void tli_open_stream(tli_stream *s, tl_sink sink) {
    s->sink = sink;
    s->result = TL_OK;
    s->sent = 0;
    s->used = 0;
}

static void tli_flush(tli_stream *s) {
    if (!s->result && s->used) {
        s->result = s->sink.write(s->sink.user, s->buf, s->used);
        if (!s->result) s->sent += s->used;
    }
    s->used = 0;
}

static void tli_send_bytes(tli_stream *s, const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length; i++) {
        if (s->used == sizeof s->buf) tli_flush(s);
        s->buf[s->used++] = text[i];
    }
}

static void tli_send(tli_stream *s, const char *text) { tli_send_bytes(s, text, tli_text_length(text)); }

static void tli_send_u64(tli_stream *s, uint64_t value) {
    char digits[24];
    tli_writer w = tli_writer_of(digits, sizeof digits);
    tli_put_u64(&w, value);
    tli_send_bytes(s, digits, w.length);
}

static void tli_send_i32(tli_stream *s, int32_t value) {
    if (value < 0) tli_send(s, "-");
    tli_send_u64(s, value < 0 ? (uint64_t)0 - (uint64_t)(int64_t)value : (uint64_t)value);
}

// value / 10^places, all places written.
static void tli_send_decimal(tli_stream *s, uint64_t value, int places) {
    uint64_t scale = 1;
    int i;
    for (i = 0; i < places; i++) scale *= 10;
    tli_send_u64(s, value / scale);
    if (places) tli_send(s, ".");
    for (value %= scale; scale > 1; value %= scale) {
        scale /= 10;
        tli_send_u64(s, value / scale);
    }
}

// At most `limit` characters of a text as XML, whatever it holds; what XML forbids becomes U+FFFD.
static void tli_send_text(tli_stream *s, const char *text, int32_t limit) {
    const char *end = text + tli_text_length(text);
    for (; text < end && limit > 0; limit--) {
        uint32_t code = 0;
        size_t length = tli_utf8_length(text, end, &code);
        if (!length || code == 0xFFFE || code == 0xFFFF) tli_send(s, "\xEF\xBF\xBD");
        else if (code < 0x20) tli_send(s, " ");
        else if (code == '&') tli_send(s, "&amp;");
        else if (code == '<') tli_send(s, "&lt;");
        else if (code == '>') tli_send(s, "&gt;");
        else tli_send_bytes(s, text, length);
        text += length ? length : 1;
    }
    if (text < end) tli_send(s, "\xE2\x80\xA6");  // an ellipsis
}

static tl_result tli_close_stream(tli_stream *s, tl_env *env, const char *function) {
    tli_writer w;
    tli_flush(s);
    if (!s->result) return TL_OK;
    w = tli_begin_error(env, s->result, function);
    tli_put(&w, "sink: stopped with ");
    tli_put(&w, tl_name_result(s->result));
    tli_put(&w, " after ");
    tli_put_u64(&w, s->sent);
    tli_put(&w, " bytes");
    return tli_end_error(env, &w, s->result);
}

// -- the trace as JSON --

typedef struct tli_trace_writer {
    tli_stream      out;
    const tl_trace *trace;
    const tl_graph *graph;
    uint64_t        origin_ns;      // the earliest start
    int             has_clock;      // 0 = every time is 0: each step is drawn 1 us long
    uint64_t        lane_end_ns[2];  // of compute, of copies
    uint64_t        bytes[2];       // last written of device, of host
} tli_trace_writer;

// The event that issued the copy which this WAIT ends; -1 = not in the trace.
static int32_t tli_find_issue(const tl_trace *trace, int32_t wait) {
    const tl_run_event *end = &trace->events[wait];
    int32_t i;
    for (i = wait - 1; i >= 0; i--) {
        const tl_run_event *event = &trace->events[i];
        const tl_step *step = &event->step;
        if (event->training_step != end->training_step || event->micro_batch != end->micro_batch) return -1;
        if (step->kind != TL_STEP_SPILL && step->kind != TL_STEP_FETCH) continue;
        if (step->node != end->step.node) continue;
        if (step->output == end->step.output) return i;
        if (step->output == TL_ALL_OUTPUTS || end->step.output == TL_ALL_OUTPUTS) return i;
    }
    return -1;
}

// What a step does, in words; a WAIT ends the copy that its issue began.
static const char *tli_explain_event(const tl_run_event *event, const tl_run_event *issue) {
    switch ((tl_step_kind)event->step.kind) {
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE: return event->recompute ? "recompute " : "forward ";
    case TL_STEP_BACKWARD: return "backward ";
    case TL_STEP_DROP: return "drop ";
    case TL_STEP_DROP_SAVED: return "drop saved ";
    case TL_STEP_SPILL: return "start spill ";
    case TL_STEP_FETCH: return "start fetch ";
    case TL_STEP_WAIT: return !issue ? "copy " : issue->step.kind == TL_STEP_SPILL ? "spill " : "fetch ";
    case TL_STEP_DROP_HOST: return "drop host copy ";
    case TL_STEP_COMPRESS: return "compress ";
    case TL_STEP_EXPAND: return "expand ";
    case TL_STEP_COUNT: break;
    }
    return "unknown step ";
}

// "recompute conv1", "spill conv1.0"; names of checked graphs are never cut
static void tli_send_event_name(tli_trace_writer *t, const tl_run_event *event, const tl_run_event *issue) {
    char name[320], quoted[6 * sizeof name + 2];
    const tl_step *step = &event->step;
    tli_writer w = tli_writer_of(name, sizeof name);
    tli_put(&w, tli_explain_event(event, issue));
    tli_put(&w, tl_name_node(t->graph, step->node));
    if (!tli_acts_on_node((tl_step_kind)step->kind) && step->output != TL_ALL_OUTPUTS) {
        tli_put(&w, ".");
        tli_put_i64(&w, step->output);
    }
    tli_finish(&w);
    w = tli_writer_of(quoted, sizeof quoted);
    tli_put_json_text(&w, name);
    tli_send_bytes(&t->out, quoted, w.length);
}

static void tli_send_counter(tli_trace_writer *t, const char *name, tl_tier tier, uint64_t bytes,
                             uint64_t ns) {
    if (t->bytes[tier] == bytes) return;
    t->bytes[tier] = bytes;
    tli_send(&t->out, ",\n{\"name\":\"");
    tli_send(&t->out, name);
    tli_send(&t->out, "\",\"ph\":\"C\",\"pid\":1,\"ts\":");
    tli_send_decimal(&t->out, ns, 3);
    tli_send(&t->out, ",\"args\":{\"bytes\":");
    tli_send_u64(&t->out, bytes);
    tli_send(&t->out, "}}");
}

// One complete event. Those of a thread must not overlap: a copy begins when it was issued and the
// one before it has ended.
static void tli_send_event(tli_trace_writer *t, int32_t index) {
    const tl_run_event *event = &t->trace->events[index];
    int copies = event->step.kind == TL_STEP_WAIT;
    int32_t issued = copies ? tli_find_issue(t->trace, index) : -1;
    uint64_t start = event->start_ns - t->origin_ns, end = event->end_ns - t->origin_ns;
    tli_stream *out = &t->out;
    if (!t->has_clock) {
        start = (uint64_t)(issued < 0 ? index : issued) * 1000;
        end = (uint64_t)index * 1000 + 1000;
    }
    if (start < t->lane_end_ns[copies]) start = t->lane_end_ns[copies];
    if (event->end_ns < event->start_ns || end < start) end = start;
    t->lane_end_ns[copies] = end;
    tli_send(out, ",\n{\"name\":");
    tli_send_event_name(t, event, issued < 0 ? NULL : &t->trace->events[issued]);
    tli_send(out, copies ? ",\"cat\":\"copy\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":"
                         : ",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":");
    tli_send_decimal(out, start, 3);
    tli_send(out, ",\"dur\":");
    tli_send_decimal(out, end - start, 3);
    tli_send(out, ",\"args\":{\"step\":");
    tli_send_i32(out, event->index);
    tli_send(out, ",\"micro_batch\":");
    tli_send_i32(out, event->micro_batch);
    tli_send(out, ",\"training_step\":");
    tli_send_u64(out, event->training_step);
    tli_send(out, ",\"device_bytes\":");
    tli_send_u64(out, event->device_bytes);
    tli_send(out, "}}");
    tli_send_counter(t, "device memory", TL_TIER_DEVICE, event->device_bytes, copies ? end : start);
    tli_send_counter(t, "host memory", TL_TIER_HOST, event->host_bytes, end);
}

static void tli_find_clock(tli_trace_writer *t) {
    int32_t i;
    t->origin_ns = t->trace->kept ? t->trace->events[0].start_ns : 0;
    for (i = 0; i < t->trace->kept; i++) {
        const tl_run_event *event = &t->trace->events[i];
        if (event->start_ns < t->origin_ns) t->origin_ns = event->start_ns;
        if (event->end_ns) t->has_clock = 1;
    }
}

static const char tli_trace_head[] =
    "{\"traceEvents\":[\n"
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"tl_strategy\"}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"compute\"}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"copies\"}}";

TLI_IMPL tl_result tl_write_trace_json(tl_env *env, const tl_trace *trace, const tl_graph *graph,
                                       tl_sink sink) {
    tli_trace_writer t;
    int32_t i;
    TL_ASSERT(trace && graph && sink.write);
    tli_zero(&t, sizeof t);
    tli_open_stream(&t.out, sink);
    t.trace = trace;
    t.graph = graph;
    t.bytes[TL_TIER_DEVICE] = UINT64_MAX;  // the first event writes its count; the host's starts at 0
    tli_find_clock(&t);
    tli_send(&t.out, tli_trace_head);
    for (i = 0; i < trace->kept && !t.out.result; i++) tli_send_event(&t, i);
    tli_send(&t.out, "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{\"kept\":");
    tli_send_i32(&t.out, trace->kept);
    tli_send(&t.out, ",\"dropped\":");
    tli_send_i32(&t.out, trace->dropped);
    tli_send(&t.out, "}}\n");
    return tli_close_stream(&t.out, env, "tl_write_trace_json");
}

// -- the picture: bytes as text --

static const char *const tli_byte_units[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" };

// The largest unit, as a power of 1024, of which bytes hold at least one.
static int tli_find_byte_unit(uint64_t bytes) {
    int unit = 0;
    while (unit < 6 && bytes >> (10 * unit + 10)) unit++;
    return unit;
}

// bytes * factor / unit, to nearest.
static uint64_t tli_scale_bytes_to(uint64_t bytes, int unit, uint64_t factor) {
    int bits = 10 * unit;
    uint64_t whole = bytes >> bits, rest = bytes & ((UINT64_C(1) << bits) - 1);
    if (bits > 40) { rest >>= bits - 40; bits = 40; }  // so that rest * factor fits
    return whole * factor + (bits ? (rest * factor + (UINT64_C(1) << (bits - 1))) >> bits : 0);
}

// Three digits that tell: 1.25 MiB, 12.0 MiB, 823 KiB.
static void tli_send_size(tli_stream *s, uint64_t bytes) {
    int unit = tli_find_byte_unit(bytes), places = 2;
    uint64_t value = tli_scale_bytes_to(bytes, unit, 100);
    if (value >= 1000) { value = tli_scale_bytes_to(bytes, unit, 10); places = 1; }
    if (!unit || value >= 1000) { value = tli_scale_bytes_to(bytes, unit, 1); places = 0; }
    if (value == 1024 && places == 0 && unit < 6) { unit++; value = 100; places = 2; }
    tli_send_decimal(s, value, places);
    tli_send(s, tli_byte_units[unit]);
}

// -- the picture: places, in hundredths of a pixel --

#define TLI_CURVE_LIMIT 8
#define TLI_LETTER      720  // width of a letter of the body text, a generous guess

typedef struct tli_place { int32_t x, y; } tli_place;

typedef struct tli_box { int32_t left, top, right, bottom; } tli_box;

typedef struct tli_picture {
    tli_stream             out;
    const tl_memory_curve *curves;     // [curve_count]
    int32_t                curve_count;
    int32_t                width, height;
    const char            *title, *time_label;
    int                    whole_steps;  // 1 = no curve has times: ticks at whole numbers
    int32_t                legend_columns, legend_width;  // width of one
    tli_box                plot;

    double                 last_time;    // right end of the time axis
    int32_t                peak_steps[TLI_CURVE_LIMIT];
    uint64_t               peak_bytes;   // of all curves
    int                    unit;         // of the byte axis
    uint64_t               tick_hundredths;  // of the unit, between two ticks
    int32_t                tick_count;   // ticks above 0; the last one is the top of the plot
    int                    shift;        // bytes are shifted right before they are scaled
    uint64_t               top_bytes;    // at the top of the plot, shifted
    tli_box                taken[2 * TLI_CURVE_LIMIT];  // [taken_count] marks and their labels
    int32_t                taken_count;
} tli_picture;

static int32_t tli_time_place(const tli_picture *p, double time) {
    return p->plot.left + (int32_t)(time / p->last_time * (double)(p->plot.right - p->plot.left));
}

static double tli_step_end(const tl_memory_curve *curve, int32_t step) {
    if (step < 0) return 0;
    return curve->times ? curve->times[step] : (double)step + 1;
}

static int32_t tli_bytes_place(const tli_picture *p, uint64_t bytes) {
    uint64_t high = (uint64_t)(p->plot.bottom - p->plot.top);
    return p->plot.bottom - (int32_t)((bytes >> p->shift) * high / p->top_bytes);
}

static int tli_find_places(uint64_t hundredths) {
    return hundredths % 100 == 0 ? 0 : hundredths % 10 == 0 ? 1 : 2;
}

static void tli_send_hundredths(tli_stream *s, uint64_t hundredths, int places) {
    tli_send_decimal(s, places == 2 ? hundredths : places == 1 ? hundredths / 10 : hundredths / 100, places);
}

static void tli_send_place(tli_stream *s, int32_t hundredths) {
    tli_send_hundredths(s, (uint64_t)hundredths, tli_find_places((uint64_t)hundredths));
}

// command x y: one piece of a path
static void tli_send_move(tli_stream *s, const char *command, int32_t x, const char *between, int32_t y) {
    tli_send(s, command);
    tli_send_place(s, x);
    tli_send(s, between);
    tli_send_place(s, y);
}

// <text x="" y="" ...attributes>, still to be filled and closed
static void tli_send_text_start(tli_stream *s, int32_t x, int32_t y, const char *attributes) {
    tli_send_move(s, "<text x=\"", x, "\" y=\"", y);
    tli_send(s, "\"");
    tli_send(s, attributes);
    tli_send(s, ">");
}

// -- the picture: what is to be drawn --

static tl_result tli_fail_curve(tl_env *env, int32_t curve, const char *rule) {
    tli_writer w = tli_begin_error(env, TL_ERROR_INVALID_ARG, "tl_write_memory_svg");
    tli_put(&w, "curve ");
    tli_put_i64(&w, curve);
    tli_put(&w, ": ");
    tli_put(&w, rule);
    return tli_end_error(env, &w, TL_ERROR_INVALID_ARG);
}

// Hold the rules of one curve, find its peak and the ends of both axes.
static tl_result tli_measure_curve(tl_env *env, tli_picture *p, int32_t index) {
    const tl_memory_curve *curve = &p->curves[index];
    uint64_t peak = 0;
    double last = 0;
    int32_t i;
    if (curve->count < 1) return tli_fail_curve(env, index, "count: must be > 0");
    TL_ASSERT(curve->live_bytes);
    for (i = 0; i < curve->count; i++) {
        double time = tli_step_end(curve, i);
        if (!(time >= last)) return tli_fail_curve(env, index, "times: must be >= 0 and never fall");
        last = time;
        if (curve->live_bytes[i] > peak) { peak = curve->live_bytes[i]; p->peak_steps[index] = i; }
    }
    if (!(last >= 1e-12 && last <= 1e18))
        return tli_fail_curve(env, index, "times: must end between 1e-12 and 1e18");
    if (last > p->last_time) p->last_time = last;
    if (peak > p->peak_bytes) p->peak_bytes = peak;
    if (curve->times) p->whole_steps = 0;
    return TL_OK;
}

static tl_result tli_open_picture(tl_env *env, tli_picture *p, const tl_svg_style *style) {
    int32_t i;
    p->width = style && style->width ? style->width : 960;
    p->height = style && style->height ? style->height : 480;
    p->title = style && style->title ? style->title : "";
    p->time_label = style && style->time_label ? style->time_label : "step";
    p->whole_steps = 1;
    if (p->curve_count < 1 || p->curve_count > TLI_CURVE_LIMIT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_write_memory_svg", "curve_count: must be 1 to 8");
    if (p->width < 320 || p->width > 16384 || p->height < 240 || p->height > 16384)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_write_memory_svg",
                        "style: must be 320 to 16384 pixels wide and 240 to 16384 high, or 0");
    for (i = 0; i < p->curve_count; i++) {
        tl_result result = tli_measure_curve(env, p, i);
        if (result) return result;
    }
    return TL_OK;
}

static int32_t tli_count_characters(const char *text, int32_t limit) {
    int32_t count = 0;
    for (; *text && count < limit; text++) count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

// From top to bottom: title, legend, name of the byte axis, plot, ticks, name of the time axis.
static void tli_lay_out(tli_picture *p) {
    int32_t row = (p->width - 48) * 100, letters = 8, rows, i;
    for (i = 0; i < p->curve_count; i++) {
        int32_t count = tli_count_characters(p->curves[i].label ? p->curves[i].label : "", row / TLI_LETTER);
        if (count > letters) letters = count;
    }
    p->legend_width = letters * TLI_LETTER + 5200;
    p->legend_columns = row / p->legend_width ? row / p->legend_width : 1;
    if (p->legend_columns > p->curve_count) p->legend_columns = p->curve_count;
    rows = (p->curve_count + p->legend_columns - 1) / p->legend_columns;
    p->plot.left = 8400;
    p->plot.right = (p->width - 30) * 100;
    p->plot.top = (*p->title ? 8600 : 4800) + rows * 2200;
    p->plot.bottom = (p->height - 58) * 100;
    if (p->plot.bottom < p->plot.top + 4000) p->plot.bottom = p->plot.top + 4000;
}

// Ticks at multiples of 1, 2 or 5 times a power of ten, about one in 55 pixels, and some air above the peak.
static void tli_scale_byte_axis(tli_picture *p) {
    uint64_t wanted, most = (uint64_t)(p->plot.bottom - p->plot.top) / 5500 + 1, factor = 1, power;
    p->unit = tli_find_byte_unit(p->peak_bytes);
    wanted = tli_scale_bytes_to(p->peak_bytes, p->unit, 100) * 107 / 100;
    power = p->unit ? 1 : 100;  // there is no half byte
    if (most < 2) most = 2;
    while (wanted / (factor * power) + 1 > most) {
        factor = factor == 1 ? 2 : factor == 2 ? 5 : 10;
        if (factor == 10) { factor = 1; power *= 10; }
    }
    p->tick_hundredths = factor * power;
    p->tick_count = (int32_t)(wanted / p->tick_hundredths) + 1;
    p->shift = 0;
    while (p->peak_bytes >> p->shift >> 40) p->shift++;
    p->top_bytes = ((uint64_t)p->tick_count * p->tick_hundredths << (10 * p->unit - p->shift)) / 100;
}

// -- the picture: its parts --

// Colours: Okabe, Ito, Color Universal Design, 2008; here its yellow is darker on white, its blue
// lighter on black.
static const char tli_svg_style_text[] =
    "<style>\n"
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;"
    "font-size:13px;fill:#59636e}\n"
    ".title{font-size:18px;font-weight:600;fill:#1f2328}\n"
    ".label{fill:#1f2328}\n"
    ".value{font-size:12px;font-weight:600;fill:#1f2328;"
    "stroke:#fff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}\n"
    ".page{fill:#fff;stroke:#d1d9e0}\n"
    ".grid{fill:none;stroke:#e4e8ec}\n"
    ".axis{fill:none;stroke:#818b98}\n"
    ".curve{fill-opacity:.08;stroke-width:2;stroke-linejoin:round}\n"
    ".mark{fill:#fff;stroke-width:2}\n"
    ".k0{stroke:#0072b2}.k1{stroke:#d55e00}.k2{stroke:#009e73}.k3{stroke:#cc79a7}"
    ".k4{stroke:#e69f00}.k5{stroke:#56b4e9}.k6{stroke:#000}.k7{stroke:#b0a000}\n"
    ".f0{fill:#0072b2}.f1{fill:#d55e00}.f2{fill:#009e73}.f3{fill:#cc79a7}"
    ".f4{fill:#e69f00}.f5{fill:#56b4e9}.f6{fill:#000}.f7{fill:#b0a000}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#9198a1}.title,.label,.value{fill:#f0f6fc}.value{stroke:#0d1117}\n"
    ".page{fill:#0d1117;stroke:#3d444d}.grid{stroke:#21262d}.axis{stroke:#656c76}\n"
    ".mark{fill:#0d1117}.curve{fill-opacity:.12}\n"
    ".k0{stroke:#3d9be0}.k1{stroke:#f0803c}.k2{stroke:#17b890}"
    ".k5{stroke:#8fd0f5}.k6{stroke:#d0d7de}.k7{stroke:#f0e442}\n"
    ".f0{fill:#3d9be0}.f1{fill:#f0803c}.f2{fill:#17b890}"
    ".f5{fill:#8fd0f5}.f6{fill:#d0d7de}.f7{fill:#f0e442}\n"
    "}\n"
    "</style>\n";

static void tli_draw_head(tli_picture *p) {
    tli_stream *s = &p->out;
    int32_t height = p->plot.bottom / 100 + 58;
    tli_send(s, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"");
    tli_send_i32(s, p->width);
    tli_send(s, "\" height=\"");
    tli_send_i32(s, height);
    tli_send(s, "\" viewBox=\"0 0 ");
    tli_send_i32(s, p->width);
    tli_send(s, " ");
    tli_send_i32(s, height);
    tli_send(s, "\">\n<title>");
    tli_send_text(s, *p->title ? p->title : "live bytes", 255);
    tli_send(s, "</title>\n");
    tli_send(s, tli_svg_style_text);
    tli_send(s, "<rect class=\"page\" x=\"0.5\" y=\"0.5\" rx=\"6\" width=\"");
    tli_send_i32(s, p->width - 1);
    tli_send(s, "\" height=\"");
    tli_send_i32(s, height - 1);
    tli_send(s, "\"/>\n");
    if (!*p->title) return;
    tli_send_text_start(s, 2400, 3800, " class=\"title\"");
    tli_send_text(s, p->title, (p->width - 48) / 10);
    tli_send(s, "</text>\n");
}

// "keep all, 12.0 MiB"
static void tli_send_label(tli_picture *p, int32_t curve, int32_t limit) {
    if (p->curves[curve].label) { tli_send_text(&p->out, p->curves[curve].label, limit); return; }
    tli_send(&p->out, "curve ");
    tli_send_i32(&p->out, curve + 1);
}

static void tli_send_number(tli_stream *s, const char *before, int32_t number) {
    tli_send(s, before);
    tli_send_i32(s, number);
}

static void tli_draw_legend(tli_picture *p) {
    tli_stream *s = &p->out;
    int32_t i, limit = ((p->width - 48) * 100 - 2800) / TLI_LETTER;
    for (i = 0; i < p->curve_count; i++) {
        int32_t x = 2400 + i % p->legend_columns * p->legend_width;
        int32_t y = (*p->title ? 5600 : 1800) + i / p->legend_columns * 2200;
        tli_send_number(s, "<rect class=\"f", i);
        tli_send_move(s, "\" x=\"", x, "\" y=\"", y);
        tli_send(s, "\" rx=\"2\" width=\"18\" height=\"10\"/>\n");
        tli_send_text_start(s, x + 2600, y + 1000, " class=\"label\"");
        tli_send_label(p, i, limit);
        tli_send(s, "</text>\n");
    }
}

static void tli_draw_byte_axis(tli_picture *p) {
    tli_stream *s = &p->out;
    int places = tli_find_places(p->tick_hundredths);
    int32_t i;
    for (i = 0; i <= p->tick_count; i++) {
        int32_t high = (int32_t)((int64_t)(p->plot.bottom - p->plot.top) * i / p->tick_count);
        tli_send_move(s, "<path class=\"grid\" d=\"M", p->plot.left, " ", p->plot.bottom - high);
        tli_send(s, "H");
        tli_send_place(s, p->plot.right);
        tli_send(s, "\"/>\n");
        tli_send_text_start(s, p->plot.left - 1000, p->plot.bottom - high + 450, " text-anchor=\"end\"");
        tli_send_hundredths(s, (uint64_t)i * p->tick_hundredths, i ? places : 0);
        if (i) tli_send(s, tli_byte_units[p->unit]);
        tli_send(s, "</text>\n");
    }
    tli_send_text_start(s, 2400, p->plot.top - 1500, "");
    tli_send(s, "live bytes</text>\n");
}

// value * 10^power
static void tli_send_tick(tli_stream *s, uint64_t value, int power) {
    if (!value || power < 0) { tli_send_decimal(s, value, value ? -power : 0); return; }
    tli_send_u64(s, value);
    if (power > 5) tli_send_number(s, "e", power);
    else for (; power; power--) tli_send(s, "0");
}

// Ticks at multiples of 1, 2 or 5 times a power of ten, about one in 70 pixels.
static void tli_draw_time_axis(tli_picture *p) {
    tli_stream *s = &p->out;
    double least = p->last_time * 7000 / (double)(p->plot.right - p->plot.left), ten = 1;
    int factor = 1, power = 0;
    uint64_t i;
    while (ten > least && (power > 0 || !p->whole_steps)) { ten /= 10; power--; }
    while (ten * factor < least) {
        factor = factor == 1 ? 2 : factor == 2 ? 5 : 10;
        if (factor == 10) { factor = 1; ten *= 10; power++; }
    }
    for (i = 0; (double)i * (ten * factor) <= p->last_time * (1 + 1e-9); i++) {
        int32_t x = tli_time_place(p, (double)i * (ten * factor));
        if (x > p->plot.right) x = p->plot.right;
        tli_send_move(s, "<path class=\"axis\" d=\"M", x, " ", p->plot.bottom);
        tli_send(s, "v5\"/>\n");
        tli_send_text_start(s, x, p->plot.bottom + 2000, " text-anchor=\"middle\"");
        tli_send_tick(s, i * (uint64_t)factor, power);
        tli_send(s, "</text>\n");
    }
    tli_send_move(s, "<path class=\"axis\" d=\"M", p->plot.left, " ", p->plot.bottom);
    tli_send(s, "H");
    tli_send_place(s, p->plot.right);
    tli_send(s, "\"/>\n");
    tli_send_text_start(s, (p->plot.left + p->plot.right) / 2, p->plot.bottom + 4200,
                        " text-anchor=\"middle\"");
    tli_send_text(s, p->time_label, p->width / 10);
    tli_send(s, "</text>\n");
}

// Steps narrower than a pixel are drawn together, as high as the highest: a peak is never lost. What
// is narrower even so is drawn where it stands out above both sides.
typedef struct tli_pen {
    int32_t  from, x;   // what is not yet drawn
    int32_t  pending;   // steps in it
    uint64_t highest;   // of these
    int32_t  y;         // of what was drawn last
} tli_pen;

static void tli_draw_piece(tli_picture *p, tli_pen *pen, uint64_t next_bytes) {
    int32_t y = tli_bytes_place(p, pen->highest);
    int stands_out = y < pen->y && pen->highest > next_bytes;
    if (pen->pending && y != pen->y && (pen->x - pen->from >= 100 || stands_out)) {
        tli_send_move(&p->out, "H", pen->from, "V", y);
        pen->y = y;
    }
    pen->from = pen->x;
    pen->pending = 0;
    pen->highest = 0;
}

static void tli_draw_curve(tli_picture *p, int32_t index) {
    const tl_memory_curve *curve = &p->curves[index];
    tli_stream *s = &p->out;
    tli_pen pen;
    int32_t i;
    pen.from = pen.x = p->plot.left;
    pen.pending = 0;
    pen.highest = 0;
    pen.y = p->plot.bottom;
    tli_send_number(s, "<path class=\"curve k", index);
    tli_send_number(s, " f", index);
    tli_send_move(s, "\" d=\"M", p->plot.left - 1000, " ", p->plot.bottom);  // beyond the clip: no edge at 0
    if (curve->live_bytes[0]) {
        pen.y = tli_bytes_place(p, curve->live_bytes[0]);
        tli_send(s, "V");
        tli_send_place(s, pen.y);
    }
    for (i = 0; i < curve->count && !s->result; i++) {
        int32_t x = tli_time_place(p, tli_step_end(curve, i));
        if (x - pen.x >= 100) tli_draw_piece(p, &pen, curve->live_bytes[i]);
        if (curve->live_bytes[i] > pen.highest) pen.highest = curve->live_bytes[i];
        pen.x = x;
        pen.pending++;
        if (pen.x - pen.from >= 100 || i == curve->count - 1) tli_draw_piece(p, &pen, 0);
    }
    tli_send_move(s, "H", pen.x, "V", p->plot.bottom);
    tli_send(s, "\"><title>");
    tli_send_label(p, index, 255);
    tli_send(s, "</title></path>\n");
}

static void tli_draw_curves(tli_picture *p) {
    tli_stream *s = &p->out;
    int32_t i;
    tli_send_move(s, "<clipPath id=\"plot\"><path d=\"M", p->plot.left, " ", p->plot.top);
    tli_send_move(s, "H", p->plot.right + 200, "V", p->plot.bottom);
    tli_send(s, "H");
    tli_send_place(s, p->plot.left);
    tli_send(s, "Z\"/></clipPath>\n<g clip-path=\"url(#plot)\">\n");
    for (i = 0; i < p->curve_count; i++) tli_draw_curve(p, i);
    tli_send(s, "</g>\n");
}

// -- the picture: peaks --

static tli_box tli_box_of(int32_t left, int32_t top, int32_t right, int32_t bottom) {
    tli_box box;
    box.left = left; box.top = top; box.right = right; box.bottom = bottom;
    return box;
}

static int tli_is_free(const tli_picture *p, tli_box box) {
    int32_t i;
    if (box.left < p->plot.left || box.right > p->plot.right) return 0;
    if (box.top < p->plot.top - 1200 || box.bottom > p->plot.bottom) return 0;
    for (i = 0; i < p->taken_count; i++) {
        const tli_box *taken = &p->taken[i];
        int beside = box.left >= taken->right || taken->left >= box.right;
        if (!beside && box.top < taken->bottom && taken->top < box.bottom) return 0;
    }
    return 1;
}

static tli_place tli_find_peak_place(const tli_picture *p, int32_t curve) {
    const tl_memory_curve *c = &p->curves[curve];
    int32_t step = p->peak_steps[curve];
    tli_place place;
    place.x = (tli_time_place(p, tli_step_end(c, step - 1)) + tli_time_place(p, tli_step_end(c, step))) / 2;
    place.y = tli_bytes_place(p, c->live_bytes[step]);
    return place;
}

// Where the value of a peak is written, from its mark: the first of these places that is free.
static const struct { int32_t x, y, anchor; } tli_label_places[] = {  // anchor: -1 start, 0 middle, 1 end
    { 0, -1000, 0 },   { 900, -600, -1 },  { -900, -600, 1 },   { 1000, 400, -1 },   { -1000, 400, 1 },
    { 0, 1900, 0 },    { 900, 1600, -1 },  { -900, 1600, 1 },   { 0, -2500, 0 },     { 0, 3400, 0 },
    { 4500, -1000, -1 }, { -4500, -1000, 1 }, { 4500, 1800, -1 }, { -4500, 1800, 1 } };

#define TLI_LABEL_PLACES ((int32_t)(sizeof tli_label_places / sizeof tli_label_places[0]))

static void tli_draw_peak(tli_picture *p, int32_t curve) {
    static const char *const anchors[] = { " class=\"value\"", " class=\"value\" text-anchor=\"middle\"",
                                           " class=\"value\" text-anchor=\"end\"" };
    tli_stream *s = &p->out;
    tli_place at = tli_find_peak_place(p, curve);
    int32_t i, best = 0, wide = 8 * TLI_LETTER;
    for (i = 0; i <= TLI_LABEL_PLACES; i++) {
        int32_t place = i < TLI_LABEL_PLACES ? i : 0;  // none is free: the first
        int32_t x = at.x + tli_label_places[place].x - wide * (tli_label_places[place].anchor + 1) / 2;
        int32_t y = at.y + tli_label_places[place].y;
        tli_box box = tli_box_of(x, y - 1050, x + wide, y + 300);
        best = place;
        if (i < TLI_LABEL_PLACES && !tli_is_free(p, box)) continue;
        p->taken[p->taken_count++] = box;
        break;
    }
    tli_send_number(s, "<circle class=\"mark k", curve);
    tli_send_move(s, "\" cx=\"", at.x, "\" cy=\"", at.y);
    tli_send(s, "\" r=\"4\"/>\n");
    tli_send_text_start(s, at.x + tli_label_places[best].x, at.y + tli_label_places[best].y,
                        anchors[tli_label_places[best].anchor + 1]);
    tli_send_size(s, p->curves[curve].live_bytes[p->peak_steps[curve]]);
    tli_send(s, "</text>\n");
}

static void tli_draw_peaks(tli_picture *p) {
    int32_t i;
    for (i = 0; i < p->curve_count; i++) {
        tli_place at = tli_find_peak_place(p, i);
        p->taken[p->taken_count++] = tli_box_of(at.x - 500, at.y - 500, at.x + 500, at.y + 500);
    }
    for (i = 0; i < p->curve_count; i++) tli_draw_peak(p, i);
}

TLI_IMPL tl_result tl_write_memory_svg(tl_env *env, const tl_memory_curve *curves, int32_t curve_count,
                                       const tl_svg_style *style, tl_sink sink) {
    tli_picture p;
    tl_result result;
    TL_ASSERT((curves || curve_count < 1) && sink.write);
    tli_zero(&p, sizeof p);
    tli_open_stream(&p.out, sink);
    p.curves = curves;
    p.curve_count = curve_count;
    result = tli_open_picture(env, &p, style);
    if (result) return result;
    tli_lay_out(&p);
    tli_scale_byte_axis(&p);
    tli_draw_head(&p);
    tli_draw_legend(&p);
    tli_draw_byte_axis(&p);
    tli_draw_curves(&p);
    tli_draw_time_axis(&p);
    tli_draw_peaks(&p);
    tli_send(&p.out, "</svg>\n");
    return tli_close_stream(&p.out, env, "tl_write_memory_svg");
}

#ifndef TL_NO_STDIO
// -- files --

#define TLI_FILE_SUFFIX ".tl_tmp"

// A device is written in place: a file must not take its name.
static int tli_is_device(const char *path) {
    const char *prefix = "/dev/";
    while (*prefix && *path == *prefix) { path++; prefix++; }
    return !*prefix;
}

// The path that is written until the file is whole; size is that of tl_file_sink.path.
static void tli_find_part_path(const char *path, char *part, size_t size) {
    tli_writer w = tli_writer_of(part, size);
    tli_put(&w, path);
    if (!tli_is_device(path)) tli_put(&w, TLI_FILE_SUFFIX);
    tli_finish(&w);
}

static tl_result tli_write_file_sink(void *user, const char *text, size_t length) {
    FILE *file = (FILE *)((tl_file_sink *)user)->file;
    return fwrite(text, 1, length, file) == length ? TL_OK : TL_ERROR_IO;
}

TLI_IMPL tl_result tl_init_file_sink(tl_env *env, const char *path, tl_file_sink *file, tl_sink *sink) {
    char part[sizeof file->path];
    size_t length;
    TL_ASSERT(path && file && sink);
    tli_zero(file, sizeof *file);
    tli_zero(sink, sizeof *sink);
    length = tli_text_length(path);
    if (!length || length + sizeof TLI_FILE_SUFFIX > sizeof part)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_init_file_sink", "path: must be 1 to 472 bytes");
    tli_find_part_path(path, part, sizeof part);
    file->file = fopen(part, "wb");
    if (!file->file) return tli_fail_path(env, TL_ERROR_IO, "tl_init_file_sink", "cannot open", part);
    tli_copy(file->path, path, length + 1);
    sink->write = tli_write_file_sink;
    sink->user = file;
    return TL_OK;
}

static int tli_move_file(const char *from, const char *to) {
#ifdef _WIN32
    remove(to);  // rename does not replace a file there
#endif
    return rename(from, to) == 0;
}

TLI_IMPL tl_result tl_finish_file_sink(tl_env *env, tl_file_sink *file, tl_result written) {
    static const char function[] = "tl_finish_file_sink";
    char part[sizeof file->path], path[sizeof file->path];
    FILE *stream;
    int failed;
    TL_ASSERT(file);
    stream = (FILE *)file->file;
    if (!stream && written) return written;
    if (!stream) return tli_fail(env, TL_ERROR_INVALID_ARG, function, "file: is not open");
    tli_copy(path, file->path, sizeof path);
    tli_find_part_path(path, part, sizeof part);
    tli_zero(file, sizeof *file);
    failed = ferror(stream);
    if (fclose(stream)) failed = 1;  // what was still in the buffer: a full disk often shows here only
    if (!failed && !written && (tli_is_device(path) || tli_move_file(part, path))) return TL_OK;
    if (!tli_is_device(path)) remove(part);
    if (failed) return tli_fail_path(env, TL_ERROR_IO, function, "cannot write", path);
    return written ? written : tli_fail_path(env, TL_ERROR_IO, function, "cannot replace", path);
}
#endif
#endif
#endif  // TL_NO_TRACE

#undef TLI_NAME
#undef TLI_HELP
#undef TLI_NAME4
#undef TLI_LABEL4
#undef TLI_IMPL
#endif  // TL_STRATEGY_IMPLEMENTATION_DONE
#endif  // TL_STRATEGY_IMPLEMENTATION

/*
   This software is available under two licenses; choose whichever you prefer.

   ALTERNATIVE A - MIT License
   Copyright (c) 2026 The tl_strategy.h authors
   Permission is hereby granted, free of charge, to any person obtaining a copy of this software
   and associated documentation files (the "Software"), to deal in the Software without
   restriction, including without limitation the rights to use, copy, modify, merge, publish,
   distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
   Software is furnished to do so, subject to the following conditions: The above copyright notice
   and this permission notice shall be included in all copies or substantial portions of the
   Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,
   INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR
   PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
   ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
   ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
   SOFTWARE.

   ALTERNATIVE B - Public Domain (www.unlicense.org)
   This is free and unencumbered software released into the public domain. Anyone is free to copy,
   modify, publish, use, compile, sell, or distribute this software, either in source code form or
   as a compiled binary, for any purpose, commercial or non-commercial, and by any means. In
   jurisdictions that recognize copyright laws, the author or authors of this software dedicate
   any and all copyright interest in the software to the public domain. We make this dedication
   for the benefit of the public at large and to the detriment of our heirs and successors. We
   intend this dedication to be an overt act of relinquishment in perpetuity of all present and
   future rights to this software under copyright law. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT
   WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
   MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
   AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
   TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
   DEALINGS IN THE SOFTWARE.
*/
