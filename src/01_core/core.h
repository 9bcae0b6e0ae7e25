#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [1] CORE -- results, env, sinks, random numbers, version
//
// Every fallible call returns a tl_result and takes a tl_env first. The env gives
// memory and receives the sentence about a failure. All-zero is a valid env, NULL
// is allowed, and calls share no state except through their arguments.
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
    X(TL_ERROR_DEVICE_LOST,    "device lost",    "the device was lost: every later call says so")   \
    X(TL_ERROR_CORRUPT,        "corrupt",        "bytes changed that nobody may change")           \
    X(TL_ERROR_MISMATCH,       "mismatch",       "what was measured differs from what was planned") \
    X(TL_ERROR_IO,             "i/o error",      "a sink or a file did not take the bytes")        \
    X(TL_ERROR_PEER_LOST,      "peer lost",      "another rank has ended, or does not answer")

#define TLI_ENUM(id, name, help) id,  // undefined again at the end of this half
typedef enum tl_result { TL_RESULTS(TLI_ENUM) TL_RESULT_COUNT } tl_result;

// Which limit of bytes a refused plan, run or checkpoint exceeds: id, field, whose it is
#define TL_LIMITS(X) \
    X(TL_LIMIT_BUDGET,       "budget_bytes",                 "the caller's")                                \
    X(TL_LIMIT_DEVICE,       "device_capacity_bytes",        "of the tl_device")                            \
    X(TL_LIMIT_BACKEND,      "backend: capacity_bytes",      "of the backend's device tier")                \
    X(TL_LIMIT_HOST_BUDGET,  "host_budget_bytes",            "the caller's, for copies on the host")        \
    X(TL_LIMIT_HOST_DEVICE,  "host_capacity_bytes",          "of the tl_device, for copies on the host")    \
    X(TL_LIMIT_HOST_BACKEND, "backend: host capacity_bytes", "of the backend's host tier")                  \
    X(TL_LIMIT_FRACTION,     "memory_fraction",              "of a checkpoint config, as bytes")

typedef enum tl_limit { TL_LIMITS(TLI_ENUM) TL_LIMIT_COUNT } tl_limit;

// Bytes and offsets inside of a run, and the ranges that its kernels see.
#ifdef TL_SMALL_SIZES
typedef uint32_t tl_size;
#else
typedef uint64_t tl_size;
#endif

// Why a call failed. Code, site and values are the same with and without text, and so is the layout, but where
// TL_SMALL_SIZES leaves out the room for a text that is not there.
typedef struct tl_error {
    tl_result code;
    uint32_t  site;       // a number for where it failed and why: limit << 24 | function << 16 | rule, which
                          // tl_explain_error turns into words; it never changes its meaning
    uint64_t  values[2];  // numbers of that rule, 0 where it has none; tl_explain_error names them. Of a
                          // budget that was refused: the budget, and the least that would do
#if defined(TL_SMALL_SIZES) && defined(TL_NO_ERROR_TEXT)
    char      text[8];    // ""
#else
    char      text[248];  // "tl_check_graph: node 3 (conv1): inputs: ..."; "" with TL_NO_ERROR_TEXT
#endif
} tl_error;

// What a call may use besides its arguments. All-zero is valid.
typedef struct tl_env {
    void *(*alloc)(void *user, size_t bytes);     // 0 = TL_MALLOC; result aligned for any type
    void  (*release)(void *user, void *ptr);      // 0 = TL_FREE; set both or neither: with
                                                  // one alone whatever allocates is refused (NO_MEMORY)
    void  (*log)(void *user, const char *text);   // 0 = silent; one sentence, no line end; not called
                                                  // with TL_NO_ERROR_TEXT
    void   *user;                                 // first argument of the three functions above
    tl_error error;                               // why the last failing call failed; a call that
                                                  // succeeds does not change it
} tl_env;

// The receiver of streamed output. It may be called many times with short texts.
typedef struct tl_sink {
    tl_result (*write)(void *user, const char *text, size_t length);  // an error stops the output
    void       *user;
} tl_sink;

// A deterministic sequence of random numbers: the same on every machine.
// Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014 (splitmix64).
typedef struct tl_random {
    uint64_t state;  // any value is a seed
} tl_random;

// Return TL_VERSION, or words for a result.
TLDEF int         tl_version(void);                 // TL_VERSION of the compiled half
TLDEF const char *tl_name_result(tl_result result);  // "no memory"; "?" out of range
TLDEF const char *tl_explain_result(tl_result result);  // "the allocator or the backend has none left"

// Find the least budget in bytes that a TL_ERROR_INFEASIBLE or TL_ERROR_OVER_BUDGET names. It includes
// base_bytes unless tl_find_limit says a limit of the host or memory_fraction. UINT64_MAX where it is not known
// or does not fit 64 bits, and for every other error.
TLDEF uint64_t tl_find_least_budget(const tl_error *error);

// Find which limit that least budget is for: raise this one and try again. TL_LIMIT_BUDGET for every other
// error.
TLDEF tl_limit tl_find_limit(const tl_error *error);

#if !defined(TL_NO_TEXT) && !defined(TL_NO_ERROR_TEXT)
// Explain site and values of an error, also of one that a build without text reported:
// "tl_add_chain: layer_count: must be > 0", "... is not resident (step 1, tensor 2)".
//
//   error   only its site and its values are read; "..." stands for names that are in its text alone
//
// Returns the length of the whole text without the 0 at its end; at most size - 1 bytes of it are written.
// 0 for a site that does not exist.
TLDEF size_t tl_explain_error(const tl_error *error, char *buf, size_t size);
#endif

// Make an env whose memory is one block of the caller: nothing calls malloc after this.
//
//   env      must be valid before the call (all-zero is), because it receives the error; overwritten on success
//   memory   must outlive the env; the bookkeeping lives inside it
//   bytes    of memory
//
// Allocation takes the first free piece that is large enough; adjacent free pieces are joined.
// Errors:  TL_ERROR_INVALID_ARG: memory too small for the bookkeeping (64 bytes where it is aligned to 16).
// Cost:    O(pieces), free and in use, per allocation and per release.
// Threads: one env per thread.
TLDEF tl_result tl_init_arena(tl_env *env, void *memory, size_t bytes);

// Measure an arena env: the bytes in use now, and the most in use so far, bookkeeping included, so never 0.
//
//   env                      made by tl_init_arena; of any other both are 0
//   used_bytes, peak_bytes   may be NULL
TLDEF void tl_measure_arena(const tl_env *env, size_t *used_bytes, size_t *peak_bytes);

#if !defined(TL_NO_STDIO) && !defined(TL_NO_TEXT)
// A sink that replaces a file when what is new is whole. Until then, and after any failure, the old one stays:
//
//     if (!tl_init_file_sink(&env, "memory.svg", &file, &sink))
//         result = tl_finish_file_sink(&env, &file, tl_write_memory_svg(&env, curves, 2, NULL, sink));
//
// What is new is written to PATH.tl_tmp, or PATH.tl_tmp1 and so on where there is one. On POSIX it is made
// anew, so it is no link that somebody else has put there; it gets the mode of the old file and, where that is
// allowed, its owner; a link is followed, and stays; what is no file is written as it is: pipes, devices,
// /dev/stdout.
typedef struct tl_file_sink {
    void   *file;      // FILE *; NULL = not open
    char    path[480]; // of what is replaced, links followed
    int32_t durable;   // 1, set between the two calls: the end waits until all is on the disk (fsync). 0 = not
    int32_t part;      // which temporary file; -1 = none, written as it is
} tl_file_sink;

// Open and close it. The tl_file_sink must not be moved between the two.
//
//   written   what the writer returned. If it is not TL_OK, the temporary file is removed and it is
//             returned again; TL_ERROR_IO instead where it was the file that failed
//
// Errors:  TL_ERROR_INVALID_ARG: a path that is empty or, links followed, longer than 472 bytes, a file that is
//          not open; TL_ERROR_IO with the path and what failed, and errno says why; no temporary file is left
//          then, and an older file at the path is unchanged.
TLDEF tl_result tl_init_file_sink(tl_env *env, const char *path, tl_file_sink *file, tl_sink *sink);
TLDEF tl_result tl_finish_file_sink(tl_env *env, tl_file_sink *file, tl_result written);
#endif

// Draw a random number.
TLDEF uint64_t tl_next_random(tl_random *random);        // uniform in 0 .. 2^64-1
TLDEF double   tl_next_random_ratio(tl_random *random);  // uniform in [0, 1), 53 bits
TLDEF uint64_t tl_next_random_below(tl_random *random, uint64_t limit);  // uniform in 0 .. limit-1; 0 for 0

// Mix two numbers into one whose bits look random: the same two give the same one on every machine. With a seed
// and a counter it is a generator without state.
TLDEF uint64_t tl_mix_u64(uint64_t a, uint64_t b);

// -- services for backends --

// Allocate zeroed memory from an env, aligned for any type. NULL for 0 bytes or if there is none.
TLDEF void *tl_add_memory(tl_env *env, size_t bytes);
TLDEF void  tl_free_memory(tl_env *env, void *memory);  // accepts NULL

// Write "function: rule" to env->error.text and the code to env->error.code, log the text, and
// return the code.
//
// The site is the same for every call, 0x101, with no function of this library in it; the values are 0.
TLDEF tl_result tl_record_error(tl_env *env, tl_result code, const char *function, const char *rule);

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

