#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [2] STRATEGY -- what the caller wants, in seven fields
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
#define TLI_ENUM5(id, name, label, bytes, help) id,  // likewise
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
    int32_t        enable_profiling;  // 0 = off
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
TLDEF tl_strategy tl_strategy_debug(void);             // eager, full gradients, full, standard, profiled

// Return a copy of the strategy with one field changed.
TLDEF tl_strategy tl_with_mode(tl_strategy strategy, tl_mode mode);
TLDEF tl_strategy tl_with_gradient(tl_strategy strategy, tl_gradient gradient);
TLDEF tl_strategy tl_with_precision(tl_strategy strategy, tl_precision precision);
TLDEF tl_strategy tl_with_memory(tl_strategy strategy, tl_memory memory);
TLDEF tl_strategy tl_with_parallelism(tl_strategy strategy, tl_parallelism parallelism);
TLDEF tl_strategy tl_with_fusion(tl_strategy strategy, int32_t on);
TLDEF tl_strategy tl_with_profiling(tl_strategy strategy, int32_t on);

// Tell a property of a strategy: 1 or 0. The find functions return 0, and set the out value to 0,
// if the strategy has no such number.
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
//   batch_size, model_mib, available_mib   > 0; their product may not overflow
//
// pressure = model_mib x batch_size / available_mib. Training: above 0.8 checkpointed every 5, else
// batches of 64 and more accumulated over 4, else plain. Inference: batches of 32 and more get high
// throughput. Limits: the rule scales the weights with the batch, which they do not do; it ignores
// activations and optimizer state, and for inference memory altogether. A planner that knows the
// graph is better.
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

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

