// lang: c
// NULL where none is allowed asserts: in every function that parses a word, for the word and for the value.
#include <setjmp.h>
#include <stdio.h>

static jmp_buf null_found;
#define TL_ASSERT(x) ((x) ? (void)0 : longjmp(null_found, 1))
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

#define PARSERS(X)                                                                                                     \
    X(tl_parse_attention, tl_attention) X(tl_parse_cell, tl_cell) X(tl_parse_code_form, tl_code_form)                  \
    X(tl_parse_codec, tl_codec) X(tl_parse_elementwise, tl_elementwise) X(tl_parse_eviction, tl_eviction)              \
    X(tl_parse_format, tl_format) X(tl_parse_memory, tl_memory) X(tl_parse_mode, tl_mode)                              \
    X(tl_parse_objective, tl_precision_objective) X(tl_parse_observer, tl_observer_kind)                               \
    X(tl_parse_parallelism, tl_parallelism_kind) X(tl_parse_partition_objective, tl_partition_objective)               \
    X(tl_parse_pipeline, tl_pipeline) X(tl_parse_policy, tl_policy_kind) X(tl_parse_pool, tl_pool)                     \
    X(tl_parse_precision, tl_precision) X(tl_parse_remat_form, tl_remat_form) X(tl_parse_replication, tl_replication)  \
    X(tl_parse_scheme, tl_scheme) X(tl_parse_step, tl_step_kind) X(tl_parse_wish, tl_wish)

#define CALLS(function, type)                                                                          \
    static void function##_without_value(void) { (void)function("?", NULL); }                          \
    static void function##_without_word(void) { type value; (void)function(NULL, &value); }
PARSERS(CALLS)

typedef struct call { const char *name; void (*run)(void); } call;
#define ROWS(function, type) { #function ": value", function##_without_value }, { #function ": word", function##_without_word },
static const call calls[] = { PARSERS(ROWS) };

int main(void) {
    volatile size_t i, missing = 0;
    for (i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (setjmp(null_found)) continue;
        calls[i].run();
        fprintf(stderr, "%s: no assertion\n", calls[i].name);
        missing++;
    }
    return missing != 0;
}
