#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [2] STRATEGY -- what the caller wants, in seven fields; which activations stay
//
//     tl_strategy --plan--> tl_plan --run--> your kernels on a tl_backend
//       (what)     + graph    (how)
//                  + device
//
// A strategy is a plain struct: all-zero is the default, presets are functions
// that return a filled one, and everything a preset does can be printed. Each
// value changes a step, a byte or a counter of the plan or of the run. Several workers need a
// transport (tl_run_desc.transport): without one data and automatic run on one worker, model and
// pipeline answer TL_ERROR_UNSUPPORTED with a sentence that names them.
//
// Which activations stay is said by a policy, here and in all sections below: tl_policy.
//
// The functions whose names end in _quick are rules of thumb that know no graph. The seed is the
// Rust crate that this library began as; its strategies, texts and rules of thumb are kept.
// ============================================================================

// id, name, name in the summary, meaning
#define TL_MODES(X) \
    X(TL_MODE_EAGER,  "eager",  "Eager",  "no plan: the manager decides online, under the budget") \
    X(TL_MODE_LAZY,   "lazy",   "Lazy",   "the whole step is planned, then replayed")              \
    X(TL_MODE_HYBRID, "hybrid", "Hybrid", "planned, but for what evictions or dynamic nodes decide")

#define TL_PRECISIONS(X) \
    X(TL_PRECISION_FULL,   "full",  "Full",   "the widest that the kernels compute, mostly f32")    \
    X(TL_PRECISION_SINGLE, "f32",   "Single", "4-byte elements")                                  \
    X(TL_PRECISION_MIXED,  "mixed", "Mixed",  "the precision planner picks per op")               \
    X(TL_PRECISION_HALF,   "f16",   "Half",   "2-byte elements, IEEE binary16")                   \
    X(TL_PRECISION_BF16,   "bf16",  "BFloat16", "2-byte elements, the upper half of an f32")      \
    X(TL_PRECISION_DOUBLE, "f64",   "Double", "8-byte elements")

#define TL_MEMORIES(X) \
    X(TL_MEMORY_STANDARD,     "standard",     "Standard",    "one allocation per buffer")         \
    X(TL_MEMORY_POOLED,       "pooled",       "Pooled",      "one arena, planned offsets")        \
    X(TL_MEMORY_CACHED,       "cached",       "Cached",      "one arena, unchanged results stay between runs") \
    X(TL_MEMORY_MINIMAL_PEAK, "minimal-peak", "MinimalPeak", "order and offsets for the least peak")

#define TL_PARALLELISMS(X) \
    X(TL_PARALLELISM_NONE,      "none",      "None",             "one worker")                    \
    X(TL_PARALLELISM_DATA,      "data",      "DataParallel",     "the batch is split over workers") \
    X(TL_PARALLELISM_MODEL,     "model",     "ModelParallel",    "the nodes are split over devices") \
    X(TL_PARALLELISM_PIPELINE,  "pipeline",  "PipelineParallel", "the nodes are split into stages") \
    X(TL_PARALLELISM_AUTOMATIC, "automatic", "Automatic",        "what is fastest on the ranks of a transport")

#define TLI_ENUM4(id, name, label, help) id,  // undefined again at the end of this half
#define TLI_ENUM5(id, name, label, bits, help) id,  // likewise
typedef enum tl_mode             { TL_MODES(TLI_ENUM4) TL_MODE_COUNT } tl_mode;
typedef enum tl_precision        { TL_PRECISIONS(TLI_ENUM4) TL_PRECISION_COUNT } tl_precision;
typedef enum tl_memory           { TL_MEMORIES(TLI_ENUM4) TL_MEMORY_COUNT } tl_memory;
typedef enum tl_parallelism_kind { TL_PARALLELISMS(TLI_ENUM4) TL_PARALLELISM_COUNT } tl_parallelism_kind;

// Four independent values: gradients or not, checkpointed or not, at which interval, in how many
// micro-batches. The constructors below make the four kinds of the seed; other combinations may be
// set field by field.
typedef struct tl_gradient {
    int32_t  computes;             // 0 = forward only, 1 = a backward pass too
    int32_t  checkpointed;         // 0 = keep all that backward reads, 1 = drop and recompute
    uint64_t checkpoint_interval;  // keep the nodes whose layer, or place in the listing where they have none,
                                   // is divisible by n; 0 = the planner's optimum
    uint64_t accumulation_steps;   // micro-batches per step; 0 = 1. On ranks those of each replica; where
                                   // parallelism is automatic those of each rank
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
    tl_precision   precision;         // 0 = full
    tl_memory      memory;            // 0 = standard
    tl_parallelism parallelism;       // 0 = none
    int32_t        enable_fusion;     // 0 = off; 1 = chains of elementwise nodes that take blocks run as one
    int32_t        enable_profiling;  // 0 = off; 1 = a run times every step, as with tl_run_desc.profiling
} tl_strategy;

// Make a gradient value: none, all that backward reads kept, checkpointed, or in micro-batches.
TLDEF tl_gradient tl_gradient_none(void);
TLDEF tl_gradient tl_gradient_full(void);
TLDEF tl_gradient tl_gradient_checkpointed(uint64_t interval);  // 0 = the planner's optimum
TLDEF tl_gradient tl_gradient_accumulated(uint64_t steps);

// Make a kind of parallelism with its count.
TLDEF tl_parallelism tl_parallelism_none(void);
TLDEF tl_parallelism tl_parallelism_data(uint64_t worker_count);
TLDEF tl_parallelism tl_parallelism_model(uint64_t device_count);
TLDEF tl_parallelism tl_parallelism_pipeline(uint64_t stage_count);
TLDEF tl_parallelism tl_parallelism_automatic(void);

// Return a preset: a filled strategy. All of them run, with kernels of any precision; where they ask for more
// workers than one, one runs unless there is a transport (tl_run_report.worker_count).
TLDEF tl_strategy tl_strategy_new(void);               // all zero
TLDEF tl_strategy tl_strategy_training(void);          // lazy, gradients, f32, pooled, automatic, fused, timed
TLDEF tl_strategy tl_strategy_inference(void);         // eager, forward only, f32, cached, automatic, fused
TLDEF tl_strategy tl_strategy_memory_efficient(void);  // hybrid, checkpointed 10, mixed, minimal peak
TLDEF tl_strategy tl_strategy_high_throughput(void);   // lazy, forward only, f32, pooled, data over 4, fused
TLDEF tl_strategy tl_strategy_debug(void);             // eager, gradients, full precision, standard, timed

// Return a copy of the strategy with one field changed.
TLDEF tl_strategy tl_with_mode(tl_strategy strategy, tl_mode mode);
TLDEF tl_strategy tl_with_gradient(tl_strategy strategy, tl_gradient gradient);
TLDEF tl_strategy tl_with_precision(tl_strategy strategy, tl_precision precision);
TLDEF tl_strategy tl_with_memory(tl_strategy strategy, tl_memory memory);
TLDEF tl_strategy tl_with_parallelism(tl_strategy strategy, tl_parallelism parallelism);
TLDEF tl_strategy tl_with_fusion(tl_strategy strategy, int32_t on);
TLDEF tl_strategy tl_with_profiling(tl_strategy strategy, int32_t on);

// Tell a property of a strategy: 1 or 0. The find functions return 0, and set the out value to 0,
// if the strategy has no such number; where it is checkpointed, tl_find_checkpoint_interval returns 1, also
// with an interval of 0 (the planner's optimum).
TLDEF int tl_computes_gradients(const tl_strategy *strategy);
TLDEF int tl_uses_checkpointing(const tl_strategy *strategy);
TLDEF int tl_is_inference_mode(const tl_strategy *strategy);
TLDEF int tl_find_checkpoint_interval(const tl_strategy *strategy, uint64_t *interval);
TLDEF int tl_find_accumulation_steps(const tl_strategy *strategy, uint64_t *steps);  // 0 where none is set
TLDEF int tl_equals_strategy(const tl_strategy *a, const tl_strategy *b);

// Tell how many workers the strategy asks for: 1, its own count, or for automatic
// min(device_worker_count, 8). Never 0.
TLDEF uint64_t tl_find_worker_count(const tl_strategy *strategy, uint64_t device_worker_count);

// Check every rule of a strategy: known kinds, worker, device and stage counts > 0, flags 0 or 1,
// checkpointing and accumulation only where gradients are computed, an interval only where
// checkpointed.
//
// Errors:  TL_ERROR_INVALID_ARG and the rule in env->error.text.
TLDEF tl_result tl_check_strategy(tl_env *env, const tl_strategy *strategy);

// Pick a strategy from four numbers, by the seed's rule of thumb.
//
//   batch_size, model_mib, available_mib   > 0; batch_size x model_mib must fit 64 bits
//   training                               1 = gradients are computed, 0 = inference
//
// pressure = model_mib x batch_size / available_mib. Training: above 0.8 checkpointed every 5, else
// batches of 64 and more accumulated over 4, else plain. Inference: batches of 32 and more get high
// throughput, smaller ones the preset inference. Limits: the rule scales the weights with the batch, which they
// do not do; it ignores activations and optimizer state, and for inference memory altogether. A planner that
// knows the graph is better.
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW; *strategy is all zero then.
TLDEF tl_result tl_recommend_quick(tl_env *env, uint64_t batch_size, uint64_t model_mib,
                                   uint64_t available_mib, int training, tl_strategy *strategy);

// Estimate memory relative to a plain eager forward pass, by the seed's factors: mode 1, 1.2,
// 1.1; gradient 1, 3, checkpointed 2, accumulated 3.5 (both: 2.5); memory 1, 1.1, 1.3, 0.8.
// Limits: precision, interval, steps, workers and fusion change nothing; a plan knows its bytes.
TLDEF double tl_estimate_overhead_quick(const tl_strategy *strategy);

// Name a value; "?" if it is out of range.
TLDEF const char *tl_name_mode(tl_mode mode);                       // "lazy"
TLDEF const char *tl_name_precision(tl_precision precision);        // "f32"
TLDEF const char *tl_name_memory(tl_memory memory);                 // "minimal-peak"
TLDEF const char *tl_name_parallelism(tl_parallelism_kind kind);    // "pipeline"

#ifndef TL_NO_TEXT
// Parse exactly what the tl_name_ function returns: 1 and the value, or 0.
TLDEF int tl_parse_mode(const char *text, tl_mode *mode);
TLDEF int tl_parse_precision(const char *text, tl_precision *precision);
TLDEF int tl_parse_memory(const char *text, tl_memory *memory);
TLDEF int tl_parse_parallelism(const char *text, tl_parallelism_kind *kind);

// Write the strategy as the seed's summary: eight lines, "Execution Strategy:\n- Mode: Lazy\n...".
// Checkpointing together with accumulation, which the seed does not have, is written as
// Checkpointed { checkpoint_interval: 5, accumulation_steps: 4 }. Returns the length needed without
// the final 0; never writes past size.
TLDEF size_t tl_print_strategy(const tl_strategy *strategy, char *buf, size_t size);

// Read a summary back. As in the seed, an interval, a step count or a worker count of 0 is an error.
//
// Errors:  TL_ERROR_PARSE with the line; *strategy is all zero then.
TLDEF tl_result tl_parse_strategy(tl_env *env, const char *text, size_t length, tl_strategy *strategy);

// Write or read the strategy as one line of JSON:
// {"mode":"lazy","gradient":{"computes":true,"checkpointed":true,"checkpoint_interval":5,
// "accumulation_steps":1},"precision":"f32","memory":"pooled","parallelism":{"kind":"data",
// "count":4},"fusion":true,"profiling":false}. The reader takes the keys in any order, ignores
// unknown ones and treats a missing one as its default; what it accepts passes tl_check_strategy.
//
// Errors:  TL_ERROR_PARSE with line and column, TL_ERROR_INVALID_ARG; *strategy is all zero then.
TLDEF size_t    tl_print_strategy_json(const tl_strategy *strategy, char *buf, size_t size);
TLDEF tl_result tl_parse_strategy_json(tl_env *env, const char *text, size_t length, tl_strategy *strategy);
#endif

// -- policies: which activations stay --
//
// A policy is a named rule with its parameters. What does not stay is dropped and made again. Nodes and layers
// have numbers: that of a node is its layer or, where it has none, its place in the listing; in a manager it is
// the node of the key.
//
//     number       0   1   2   3   4   5   6   7
//     keep-all     x   x   x   x   x   x   x   x
//     every-n, 3   x           x           x
//     layers           x           x   x              a list: 1, 4, 5
//     none
//
// Who carries policies out takes some kinds, and refuses the others with a sentence that lists these:
//
//                              keep-all  every-n  chen-sqrt  selective  none  layers  fraction
//                                                 chen-greedy
//                                                 revolve
//                                                 chain
//     tl_plan_policy              x         x         x          x
//     tl_checkpoint_config        x         x                                   x        x
//     manager, run without plan   x         x                    x        x
//
// A strategy has gradient.checkpointed and checkpoint_interval instead, of which tl_find_policy makes the
// policy: keep-all, every-n, or none, where it asks for what no policy names, the cheapest plan within the
// budget.

// id, name, what stays. Those that tl_plan_policy carries out end with chain.
#define TL_POLICIES(X) \
    X(TL_POLICY_KEEP_ALL,    "keep-all",    "everything until backward has read it")                     \
    X(TL_POLICY_EVERY_N,     "every-n",     "the nodes whose number is divisible by n")                  \
    X(TL_POLICY_CHEN_SQRT,   "chen-sqrt",   "about sqrt(n) of the n cut nodes, evenly spaced")           \
    X(TL_POLICY_CHEN_GREEDY, "chen-greedy", "a cut node whenever so many bytes were made since the last") \
    X(TL_POLICY_SELECTIVE,   "selective",   "the nodes whose forward costs much, or much per byte")      \
    X(TL_POLICY_REVOLVE,     "revolve",     "binomial checkpoints over the stages between cut nodes")    \
    X(TL_POLICY_CHAIN,       "chain",       "what tl_plan_chain finds best, stage by stage")             \
    X(TL_POLICY_NONE,        "none",        "nothing: all is made again from the inputs")                \
    X(TL_POLICY_LAYERS,      "layers",      "the layers of a list")                                      \
    X(TL_POLICY_FRACTION,    "fraction",    "the cheapest kept set below a fraction of the keep-all peak")

typedef enum tl_policy_kind { TL_POLICIES(TLI_ENUM) TL_POLICY_COUNT } tl_policy_kind;

// A kind with its parameters. Where a 0 lets tl_plan_policy choose, it tries several values and takes the
// cheapest plan within the budget.
typedef struct tl_policy {
    tl_policy_kind kind;                                // 0 = keep-all
    union {
        struct { uint64_t interval; } every_n;          // n, > 0; tl_plan_policy: 0 = it chooses
        struct { uint64_t interval; } chen_sqrt;        // of cut nodes; 0 = the square root of their number
        struct { uint64_t cost_threshold; } selective;  // in the unit of the costs: what costs at least that
                                                        // stays; tl_plan_policy: 0 = it chooses
        struct { uint64_t slot_count; } revolve;        // checkpoints, of which the graph inputs are the
                                                        // first; 0 = the most that fit
        struct { const uint64_t *list; uint64_t count; } layers;            // [count], borrowed, no duplicates
        struct { uint64_t layer_count; double memory_fraction; } fraction;  // > 0; 0..1
    } as;
} tl_policy;

#ifndef TL_ONLY_TABLES
// Make a policy of the seed's manager. Those of the seed's configs are made by tl_checkpoint_uniform and its
// like; all others are a kind and its field, in a struct that is zero else.
TLDEF tl_policy tl_policy_keep_all(void);
TLDEF tl_policy tl_policy_none(void);
TLDEF tl_policy tl_policy_selective(uint64_t cost_threshold);  // the seed's default is 100
TLDEF tl_policy tl_policy_every_n(uint64_t interval);

// Check what holds for a policy wherever it is used: a known kind, a list of layers that is there and without
// duplicates, layer_count > 0 and memory_fraction in [0, 1].
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY.
// Cost:    O(1); layers O(n log n) and one allocation.
TLDEF tl_result tl_check_policy(tl_env *env, const tl_policy *policy);

// Find the policy that the gradient of a strategy asks for: keep-all, or every-n with its interval. Returns 0,
// and sets *policy to keep-all, where it asks for none: forward only, or checkpointed without an interval.
TLDEF int tl_find_policy(const tl_strategy *strategy, tl_policy *policy);

// Name a kind; "?" if it is out of range.
TLDEF const char *tl_name_policy(tl_policy_kind kind);  // "chen-sqrt"
#ifndef TL_NO_TEXT
// Parse exactly what tl_name_policy returns: 1 and the kind, or 0.
TLDEF int tl_parse_policy(const char *text, tl_policy_kind *kind);
#endif
#endif  // TL_ONLY_TABLES

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

