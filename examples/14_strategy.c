// 14_strategy.c -- a strategy from words, and what each word means
//
// You learn: the seven fields of a strategy, the presets, and policy and eviction of the online manager;
// every value has a name that is printed and read back. It prints the strategy that the words make, as
// a summary and as JSON, what it asks for, and the first rule that it breaks. Read next: 11, where such
// texts are stored and read.
//
// check: memory-efficient mode=lazy parallelism=data:2 policy=every-n:3 eviction=largest
//
//     mkdir -p build && cc -o build/14_strategy examples/14_strategy.c
//     build/14_strategy training gradient=checkpointed:4
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

static tl_strategy strategy;
static tl_policy policy;
static tl_eviction eviction;

static const struct { const char *name; tl_strategy (*make)(void); } presets[] = {
    { "new", tl_strategy_new }, { "training", tl_strategy_training }, { "inference", tl_strategy_inference },
    { "memory-efficient", tl_strategy_memory_efficient }, { "high-throughput", tl_strategy_high_throughput },
    { "debug", tl_strategy_debug },
};

#define ROW(id, name, help)         printf("    %-14s %s\n", name, help);
#define ROW4(id, name, label, help) printf("    %-14s %s\n", name, help);

static int usage(void) {
    size_t i;
    printf("usage: 14_strategy [PRESET] [FIELD=VALUE ...] [--version]\n\npresets:");
    for (i = 0; i < sizeof presets / sizeof presets[0]; i++) printf(" %s", presets[i].name);
    printf("\n\nmode\n");
    TL_MODES(ROW4)
    printf("gradient\n    none, full, checkpointed[:NODES between two that are kept], accumulated:MICRO-BATCHES\nprecision\n");
    TL_PRECISIONS(ROW4)
    printf("memory\n");
    TL_MEMORIES(ROW4)
    printf("parallelism: data, model and pipeline with a count, as in data:4\n");
    TL_PARALLELISMS(ROW4)
    printf("fusion, profiling\n    on, off\npolicy of the online manager\n"
           "    keep-all, none, selective:COST of what stays, every-n:NODES between two that stay\n"
           "eviction of the online manager\n");
    TL_EVICTIONS(ROW)
    return 0;
}

// Split "name:12" into a name and a number; a number that is missing is 0. Returns 0 for anything else.
static int split(const char *text, char name[32], uint64_t *number) {
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    char *end = NULL;
    *number = 0;
    if (length > 31) return 0;
    memcpy(name, text, length);
    name[length] = 0;
    if (!colon) return 1;
    if (colon[1] < '0' || colon[1] > '9') return 0;
    *number = strtoul(colon + 1, &end, 10);
    return !*end;
}

static int set_gradient(const char *text) {
    char name[32];
    uint64_t number;
    if (!split(text, name, &number)) return 0;
    if (!strcmp(name, "none")) strategy = tl_with_gradient(strategy, tl_gradient_none());
    else if (!strcmp(name, "full")) strategy = tl_with_gradient(strategy, tl_gradient_full());
    else if (!strcmp(name, "checkpointed")) strategy = tl_with_gradient(strategy, tl_gradient_checkpointed(number));
    else if (!strcmp(name, "accumulated")) strategy = tl_with_gradient(strategy, tl_gradient_accumulated(number));
    else return 0;
    return 1;
}

static int set_parallelism(const char *text) {
    tl_parallelism parallelism = tl_parallelism_none();
    tl_parallelism_kind kind;
    char name[32];
    uint64_t number;
    if (!split(text, name, &number) || !tl_parse_parallelism(name, &kind)) return 0;
    switch (kind) {
    case TL_PARALLELISM_NONE: break;
    case TL_PARALLELISM_DATA: parallelism = tl_parallelism_data(number); break;
    case TL_PARALLELISM_MODEL: parallelism = tl_parallelism_model(number); break;
    case TL_PARALLELISM_PIPELINE: parallelism = tl_parallelism_pipeline(number); break;
    case TL_PARALLELISM_AUTOMATIC: parallelism = tl_parallelism_automatic(); break;
    case TL_PARALLELISM_COUNT: break;
    }
    strategy = tl_with_parallelism(strategy, parallelism);
    return 1;
}

static int set_policy(const char *text) {
    tl_policy_kind kind;
    char name[32];
    uint64_t number;
    if (!split(text, name, &number) || !tl_parse_policy(name, &kind)) return 0;
    policy = tl_policy_keep_all();
    if (kind == TL_POLICY_NONE) policy = tl_policy_none();
    else if (kind == TL_POLICY_SELECTIVE) policy = tl_policy_selective(number);
    else if (kind == TL_POLICY_EVERY_N && number) policy = tl_policy_every_n(number);
    else return kind == TL_POLICY_KEEP_ALL;     // the others are of plans and configs
    return 1;
}

// Read one FIELD=VALUE; 0 where it is not understood.
static int set(const char *word) {
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : 0;
    tl_mode mode;
    tl_precision precision;
    tl_memory memory;
    int on;
    if (!value++) return 0;
    on = !strcmp(value, "on");
    if (length == 8 && !strncmp(word, "gradient", 8)) return set_gradient(value);
    if (length == 11 && !strncmp(word, "parallelism", 11)) return set_parallelism(value);
    if (length == 6 && !strncmp(word, "policy", 6)) return set_policy(value);
    if (length == 8 && !strncmp(word, "eviction", 8)) return tl_parse_eviction(value, &eviction);
    if (length == 4 && !strncmp(word, "mode", 4) && tl_parse_mode(value, &mode))
        return strategy = tl_with_mode(strategy, mode), 1;
    if (length == 9 && !strncmp(word, "precision", 9) && tl_parse_precision(value, &precision))
        return strategy = tl_with_precision(strategy, precision), 1;
    if (length == 6 && !strncmp(word, "memory", 6) && tl_parse_memory(value, &memory))
        return strategy = tl_with_memory(strategy, memory), 1;
    if (!on && strcmp(value, "off") != 0) return 0;
    if (length == 6 && !strncmp(word, "fusion", 6)) return strategy = tl_with_fusion(strategy, on), 1;
    if (length == 9 && !strncmp(word, "profiling", 9)) return strategy = tl_with_profiling(strategy, on), 1;
    return 0;
}

static void report(void) {
    char text[1024];
    uint64_t number;
    tl_print_strategy(&strategy, text, sizeof text);
    printf("%s\n\n", text);
    tl_print_strategy_json(&strategy, text, sizeof text);
    printf("%s\n\n", text);
    printf("in words: %s, %s, %s, %s\n", tl_name_mode(strategy.mode), tl_name_precision(strategy.precision),
           tl_name_memory(strategy.memory), tl_name_parallelism(strategy.parallelism.kind));
    printf("gradients: %s", tl_computes_gradients(&strategy) ? "yes" : "no");
    if (tl_find_checkpoint_interval(&strategy, &number)) printf(", checkpointed every %d", (int)number);
    if (tl_find_accumulation_steps(&strategy, &number)) printf(", in %d micro-batches", (int)number);
    printf("\nworkers on a device with 8: %d\n", (int)tl_find_worker_count(&strategy, 8));
    printf("memory, by the rule of thumb: %.2f of a forward pass\n", tl_estimate_overhead_quick(&strategy));
    printf("online: keeps %s, evicts %s first\n", tl_name_policy(policy.kind), tl_name_eviction(eviction));
}

int main(int argc, char **argv) {
    static tl_env env;
    int i;
    size_t p;
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) return usage();
        if (!strcmp(argv[i], "--version")) return printf("tl_strategy.h %d\n", tl_version()), 0;
        for (p = 0; p < sizeof presets / sizeof presets[0]; p++)
            if (!strcmp(argv[i], presets[p].name)) break;
        if (p < sizeof presets / sizeof presets[0]) strategy = presets[p].make();
        else if (!set(argv[i])) return fprintf(stderr, "%s: not understood; --help lists the words\n", argv[i]), 2;
    }
    report();
    if (!tl_check_strategy(&env, &strategy) && !tl_check_policy(&env, &policy)) return 0;
    fprintf(stderr, "refused, %s: %s\n", tl_name_result(env.error.code), env.error.text);
    return 1;
}
