// [2] STRATEGY and [12] RUN: every value of every field of a strategy changes what is carried out. For each field a graph
// is run with each of its values, all else the same; the table printed says which counter of the run, byte or call of a
// kernel became another. Values of an enum are walked by its COUNT, so a new one is a row, and fails where it does nothing.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/run_support.h"
#include "support/texts.h"

// Two branches whose order matters to the bytes, a chain that can be fused, layers that can be dropped, a node that makes
// half of its bound.
static const char network[] =
    "tlg 1\nbatch 6\n"
    "node 0 x input fwd=0 bwd=0 out=384 needs=none in=-\n"
    "node 1 a wide fwd=4 bwd=4 out=3072 needs=none in=0\n"
    "node 2 b wide fwd=4 bwd=4 out=3072 needs=none in=0\n"
    "node 3 c fold fwd=4 bwd=4 out=384 needs=none in=1\n"
    "node 4 d fold fwd=4 bwd=4 out=384 needs=none in=2\n"
    "node 5 e fold fwd=4 bwd=4 out=768 needs=none in=3,4\n"
    "node 6 f scale fwd=2 bwd=2 out=768 needs=none in=5 takes_blocks\n"
    "node 7 g relu fwd=2 bwd=2 out=768 needs=out in=6 takes_blocks\n"
    "node 8 h scale fwd=2 bwd=2 out=768 needs=none in=7 takes_blocks\n"
    "node 9 i relu fwd=2 bwd=2 out=768 needs=out in=8 takes_blocks\n"
    "node 10 j weigh fwd=8 bwd=8 out=768 needs=in in=9\n"
    "node 11 k weigh fwd=8 bwd=8 out=768 needs=in in=10\n"
    "node 12 l weigh fwd=8 bwd=8 out=768 needs=in in=11\n"
    "node 13 m weigh fwd=8 bwd=8 out=768 needs=in in=12\n"
    "node 14 n weigh fwd=8 bwd=8 out=768 needs=in in=13\n"
    "node 15 o weigh fwd=8 bwd=8 out=768 needs=in in=14%s\n"
    "node 16 p weigh fwd=8 bwd=8 out=768 needs=in in=15\n"
    "node 17 y fold fwd=4 bwd=4 out=384 needs=none in=16 keep\n";

enum { LAST_NODE = 17, CONSTANT_NODES = 5, OP_COUNT = 5 };

// -- what is seen of a run --

#define TRAITS(X) \
    X(RESULT, "result") X(PEAK, "peak") X(ARENA, "arena") X(BACKWARDS, "backwards") X(CALLS, "forward calls")          \
    X(AGAIN, "forwards again") X(FUSED, "fused nodes") X(CONVERTED, "conversions") X(KEPT, "nodes kept from a pass before") \
    X(SPARED, "spared bytes") X(EVICTED, "evictions") X(TIMED, "timed") X(GRADIENT, "first gradient") X(STEPS, "steps")
#define TRAIT_ID(id, name) TRAIT_##id,
#define TRAIT_NAME(id, name) name,
typedef enum trait { TRAITS(TRAIT_ID) TRAIT_COUNT } trait;
static const char *const trait_names[TRAIT_COUNT] = { TRAITS(TRAIT_NAME) };

typedef struct outcome {
    uint64_t traits[TRAIT_COUNT];
    int32_t  worker_count;        // that ran
    uint64_t asked_count;         // workers that the strategy asks for
    char     text[256];           // of a refusal
} outcome;

// -- kernels that count --

typedef struct bench {
    spy        spy;
    tl_env     env, backend_env;
    tl_backend backend;
    tl_kernel  kernels[OP_COUNT];
    tl_run_desc desc;
    long       calls;             // forwards
    uint16_t   gradient;          // the highest bits of the first one
} bench;

static tl_result forward(const tl_kernel_call *call, void *user) {
    ((bench *)user)->calls++;
    if (!call->outputs_ready) memset(call->outputs[0].host, 0x3C, (size_t)call->outputs[0].range.bytes);
    if (!call->graph->nodes[call->node].dynamic || call->recompute) return TL_OK;
    return tl_report_bytes(call->run, 0, call->outputs[0].range.bytes / 2);
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    bench *e = (bench *)user;
    uint16_t highest = 1;
    int is_big = *(const uint8_t *)&highest == 0;
    size_t bytes = call->precision == TL_PRECISION_DOUBLE ? 8 : call->output_grads[0].format != TL_FORMAT_F32 ? 2
                 : call->precision == TL_PRECISION_HALF || call->precision == TL_PRECISION_BF16 ? 2 : 4;
    if (call->node == LAST_NODE)
        memcpy(&e->gradient, (const char *)call->output_grads[0].host + (is_big ? 0 : bytes - 2), 2);
    return TL_OK;
}

static uint64_t version_of(int32_t node, int32_t micro_batch, void *user) {
    (void)micro_batch;
    (void)user;
    return node < CONSTANT_NODES;     // what the others read beside their inputs is new in every pass
}

static void open_bench(bench *e) {
    static const char *const ops[OP_COUNT] = { "wide", "fold", "scale", "relu", "weigh" };
    int i;
    memset(e, 0, sizeof *e);
    e->backend = spy_open(&e->backend_env, 0, 0, 4, &e->spy);
    for (i = 0; i < OP_COUNT; i++) {
        e->kernels[i].op = ops[i];
        e->kernels[i].forward = forward;
        e->kernels[i].backward = backward;
        e->kernels[i].user = e;
    }
    e->desc.backend = &e->backend;
    e->desc.kernels = e->kernels;
    e->desc.kernel_count = OP_COUNT;
}

// -- fields: how a value is set, and a strategy whose other fields let it be seen --

typedef struct field {
    const char *name;
    int         count;                  // of values
    void      (*set)(tl_strategy *strategy, int value);
    void      (*name_value)(int value, char *text);
    tl_strategy strategy;               // the other fields
    uint64_t    budget_bytes;
    int         may_split, is_dynamic;
} field;

static const uint64_t intervals[] = { 0, 2, 4 }, steps[] = { 0, 1, 3 };

static void set_mode(tl_strategy *s, int value) { s->mode = (tl_mode)value; }
static void set_computes(tl_strategy *s, int value) { s->gradient.computes = value; }
static void set_checkpointed(tl_strategy *s, int value) { s->gradient.checkpointed = value; }
static void set_interval(tl_strategy *s, int value) { s->gradient.checkpoint_interval = intervals[value]; }
static void set_steps(tl_strategy *s, int value) { s->gradient.accumulation_steps = steps[value]; }
static void set_precision(tl_strategy *s, int value) { s->precision = (tl_precision)value; }
static void set_memory(tl_strategy *s, int value) { s->memory = (tl_memory)value; }
static void set_fusion(tl_strategy *s, int value) { s->enable_fusion = value; }
static void set_profiling(tl_strategy *s, int value) { s->enable_profiling = value; }

static void set_parallelism(tl_strategy *s, int value) {
    s->parallelism.kind = (tl_parallelism_kind)value;
    switch (s->parallelism.kind) {
    case TL_PARALLELISM_DATA: s->parallelism = tl_parallelism_data(4); break;
    case TL_PARALLELISM_MODEL: s->parallelism = tl_parallelism_model(2); break;
    case TL_PARALLELISM_PIPELINE: s->parallelism = tl_parallelism_pipeline(2); break;
    case TL_PARALLELISM_NONE: case TL_PARALLELISM_AUTOMATIC: case TL_PARALLELISM_COUNT: break;
    }
}

static void name_mode(int value, char *text) { strcpy(text, tl_name_mode((tl_mode)value)); }
static void name_precision(int value, char *text) { strcpy(text, tl_name_precision((tl_precision)value)); }
static void name_memory(int value, char *text) { strcpy(text, tl_name_memory((tl_memory)value)); }
static void name_parallelism(int value, char *text) { strcpy(text, tl_name_parallelism((tl_parallelism_kind)value)); }
static void name_flag(int value, char *text) { strcpy(text, value ? "1" : "0"); }
static void name_interval(int value, char *text) { snprintf(text, 16, "%d", (int)intervals[value]); }
static void name_steps(int value, char *text) { snprintf(text, 16, "%d", (int)steps[value]); }

enum { BUDGET = 6400, FIELD_COUNT = 9 };

static tl_strategy lazy(tl_gradient gradient, tl_memory memory) {
    tl_strategy strategy = tl_with_gradient(tl_with_mode(tl_strategy_new(), TL_MODE_LAZY), gradient);
    return tl_with_memory(tl_with_precision(strategy, TL_PRECISION_SINGLE), memory);
}

static void list_fields(field fields[FIELD_COUNT]) {
    const tl_strategy open = lazy(tl_gradient_checkpointed(0), TL_MEMORY_POOLED), kept = lazy(tl_gradient_full(), TL_MEMORY_POOLED);
    const field all[FIELD_COUNT] = {
        { "mode", TL_MODE_COUNT, set_mode, name_mode, open, BUDGET, 0, 1 },
        { "gradient.computes", 2, set_computes, name_flag, lazy(tl_gradient_none(), TL_MEMORY_POOLED), 0, 0, 0 },
        { "gradient.checkpointed", 2, set_checkpointed, name_flag, kept, BUDGET, 0, 0 },
        { "gradient.checkpoint_interval", 3, set_interval, name_interval, open, BUDGET, 0, 0 },
        { "gradient.accumulation_steps", 3, set_steps, name_steps, kept, BUDGET, 1, 0 },
        { "precision", TL_PRECISION_COUNT, set_precision, name_precision, open, BUDGET, 0, 0 },
        { "memory", TL_MEMORY_COUNT, set_memory, name_memory, lazy(tl_gradient_none(), TL_MEMORY_STANDARD), 0, 0, 0 },
        { "enable_fusion", 2, set_fusion, name_flag, lazy(tl_gradient_none(), TL_MEMORY_POOLED), 0, 0, 0 },
        { "enable_profiling", 2, set_profiling, name_flag, kept, 0, 0, 0 },
    };
    memcpy(fields, all, sizeof all);
}

// -- runs --

// Two passes of a graph under a strategy; a budget that is refused is raised to the one that is named.
static outcome run_value(const field *f, const tl_graph *graph, int value, uint32_t kernel_precisions) {
    static bench e;
    outcome o;
    tl_device device;
    tl_strategy strategy = f->strategy;
    tl_run_report report;
    tl_run *run;
    tl_result result;
    memset(&o, 0, sizeof o);
    memset(&device, 0, sizeof device);
    device.worker_count = 2;
    f->set(&strategy, value);
    o.asked_count = tl_find_worker_count(&strategy, device.worker_count);
    open_bench(&e);
    e.desc.graph = graph;
    e.desc.strategy = &strategy;
    e.desc.device = &device;
    e.desc.kernel_precisions = kernel_precisions;
    e.desc.budget_bytes = f->budget_bytes;
    e.desc.may_split = f->may_split;
    if (strategy.memory == TL_MEMORY_CACHED) e.desc.version = version_of;
    result = tl_init_run(&e.env, &e.desc, &run);
    if (result == TL_ERROR_INFEASIBLE) {
        e.desc.budget_bytes = tl_find_least_budget(&e.env.error);
        result = tl_init_run(&e.env, &e.desc, &run);
    }
    o.traits[TRAIT_RESULT] = (uint64_t)result;
    if (result) {
        snprintf(o.text, sizeof o.text, "%s", e.env.error.text);
    } else {
        if (tl_run_plan(run)) fail_msg("%s", e.env.error.text);
        e.calls = 0;
        if (tl_run_plan(run)) fail_msg("%s", e.env.error.text);
        tl_measure_run(run, &report);
        assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
        assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
        o.traits[TRAIT_PEAK] = report.measured_peak_bytes;
        o.traits[TRAIT_ARENA] = report.measured_arena_bytes;
        o.traits[TRAIT_STEPS] = (uint64_t)report.step_count;
        o.traits[TRAIT_CALLS] = (uint64_t)e.calls;
        o.traits[TRAIT_BACKWARDS] = (uint64_t)report.backward_count;
        o.traits[TRAIT_AGAIN] = (uint64_t)report.recompute_count;
        o.traits[TRAIT_FUSED] = (uint64_t)report.fused_count;
        o.traits[TRAIT_CONVERTED] = (uint64_t)report.convert_count;
        o.traits[TRAIT_KEPT] = (uint64_t)report.cached_count;
        o.traits[TRAIT_SPARED] = report.spared_bytes;
        o.traits[TRAIT_EVICTED] = (uint64_t)report.eviction_count;
        o.traits[TRAIT_TIMED] = report.compute_ns > 0;
        o.traits[TRAIT_GRADIENT] = e.gradient;
        o.worker_count = report.worker_count;
        tl_free_run(run);
    }
    spy_close(&e.backend_env, &e.spy);
    return o;
}

static tl_graph make_graph(int is_dynamic) {
    tl_env env = silent_env();
    char text[sizeof network + 16];
    tl_graph graph;
    snprintf(text, sizeof text, network, is_dynamic ? " dynamic" : "");
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

// -- the table --

// Kernels that compute every precision; and f32 and mixed alone, where full is f32 and f64 is refused.
static const uint32_t every_precision = (1u << TL_PRECISION_COUNT) - 1 - (1u << TL_PRECISION_FULL);
static const uint32_t few_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;

enum { MOST_VALUES = 8 };

static void print_trait(trait at, uint64_t from, uint64_t to) {
    if (at == TRAIT_RESULT) printf("  %s: %s, not %s", trait_names[at], tl_name_result((tl_result)to), tl_name_result((tl_result)from));
    else if (at == TRAIT_GRADIENT) printf("  %s: %04x, not %04x", trait_names[at], (unsigned)to, (unsigned)from);
    else printf("  %s: %llu, not %llu", trait_names[at], (unsigned long long)to, (unsigned long long)from);
}

// What is another: the first three of such traits.
static void print_difference(const outcome *from, const outcome *to) {
    int at, count = 0;
    for (at = 0; at < TRAIT_COUNT && count < 3; at++) {
        if (from->traits[at] == to->traits[at]) continue;
        print_trait((trait)at, from->traits[at], to->traits[at]);
        count++;
    }
}

static int count_differences(const outcome *a, const outcome *b) {
    int at, count = 0;
    for (at = 0; at < TRAIT_COUNT; at++) count += a->traits[at] != b->traits[at];
    return count;
}

// The value from which the least differs.
static int find_nearest(const field *f, int value, const outcome *of) {
    int other, nearest = !value;
    for (other = 0; other < f->count; other++)
        if (other != value && count_differences(&of[value], &of[other]) < count_differences(&of[value], &of[nearest])) nearest = other;
    return nearest;
}

static void print_row(const field *f, int value, const outcome *of, const outcome *of_few) {
    int other = find_nearest(f, value, of);
    char name[32], against[32];
    f->name_value(value, name);
    f->name_value(other, against);
    printf("%-29s %-13s %-13s", f->name, name, against);
    if (count_differences(&of[other], &of[value])) {
        print_difference(&of[other], &of[value]);
    } else {
        printf("  with kernels of f32 alone");
        print_difference(&of_few[other], &of_few[value]);
    }
    printf("\n");
}

// The values of a field, each against the one that is most like it.
static void check_field(const field *f) {
    outcome every[MOST_VALUES], few[MOST_VALUES];
    tl_graph graph = make_graph(f->is_dynamic);
    char name[32], other_name[32];
    int value, other;
    assert_true(f->count <= MOST_VALUES);
    for (value = 0; value < f->count; value++) {
        every[value] = run_value(f, &graph, value, every_precision);
        few[value] = run_value(f, &graph, value, few_precisions);
        if (every[value].traits[TRAIT_RESULT]) fail_msg("%s: %s", f->name, every[value].text);  // unsupported is for workers alone
        if (few[value].traits[TRAIT_RESULT])
            assert_non_null(strstr(few[value].text, "strategy.precision: not among kernel_precisions"));
    }
    for (value = 0; value < f->count; value++) print_row(f, value, every, few);
    for (value = 0; value < f->count; value++)
        for (other = 0; other < value; other++) {
            if (count_differences(&every[value], &every[other]) || count_differences(&few[value], &few[other])) continue;
            f->name_value(value, name);
            f->name_value(other, other_name);
            fail_msg("%s: %s does what %s does", f->name, name, other_name);
        }
    tl_free_graph(NULL, &graph);
}

static void print_head(void) {
    printf("%-29s %-13s %-13s  %s\n", "field", "value", "against", "what it changed");
}

static void every_value_changes_what_is_carried_out(void **state) {
    field fields[FIELD_COUNT];
    int i;
    (void)state;
    list_fields(fields);
    print_head();
    for (i = 0; i < FIELD_COUNT; i++) check_field(&fields[i]);
}

// Kinds of parallelism on one worker: those that split the batch run as none does, and say so; the others are refused.
static void kinds_of_parallelism_ask_for_workers_and_one_runs(void **state) {
    const field f = { "parallelism.kind", TL_PARALLELISM_COUNT, set_parallelism, name_parallelism,
                      lazy(tl_gradient_full(), TL_MEMORY_POOLED), 0, 0, 0 };
    static const uint64_t asked[TL_PARALLELISM_COUNT] = { 1, 4, 2, 2, 2 };   // automatic: those of the device
    tl_graph graph = make_graph(0);
    outcome none = run_value(&f, &graph, TL_PARALLELISM_NONE, 0);
    int kind;
    (void)state;
    print_head();
    for (kind = 0; kind < TL_PARALLELISM_COUNT; kind++) {
        outcome o = run_value(&f, &graph, kind, 0);
        int is_refused = kind == TL_PARALLELISM_MODEL || kind == TL_PARALLELISM_PIPELINE;
        printf("%-29s %-13s %-13s  workers asked for: %d; ", f.name, tl_name_parallelism((tl_parallelism_kind)kind), "none", (int)o.asked_count);
        if (o.text[0]) printf("%s: %s\n", tl_name_result((tl_result)o.traits[TRAIT_RESULT]), o.text);
        else printf("that ran: %d\n", (int)o.worker_count);
        assert_int_equal(o.asked_count, asked[kind]);
        assert_int_equal(o.traits[TRAIT_RESULT], is_refused ? TL_ERROR_UNSUPPORTED : TL_OK);
        if (is_refused) {
            assert_non_null(strstr(o.text, "strategy.parallelism: "));
            assert_non_null(strstr(o.text, tl_name_parallelism((tl_parallelism_kind)kind)));
        } else {
            assert_int_equal(o.worker_count, 1);
            assert_int_equal(count_differences(&o, &none), 0);
        }
    }
    tl_free_graph(NULL, &graph);
}

// The fields are those that a strategy is stored with: each leaf of its JSON but kind and count of the parallelism.
static void every_field_has_its_rows(void **state) {
    tl_strategy strategy = tl_with_parallelism(tl_strategy_new(), tl_parallelism_data(2));
    char text[512];
    const char *at;
    int leaves = 0;
    (void)state;
    assert_true(tl_print_strategy_json(&strategy, text, sizeof text) < sizeof text);
    for (at = strchr(text, ':'); at; at = strchr(at + 1, ':')) leaves += at[1] != '{';
    assert_int_equal(leaves, FIELD_COUNT + 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_changes_what_is_carried_out),
        cmocka_unit_test(kinds_of_parallelism_ask_for_workers_and_one_runs),
        cmocka_unit_test(every_field_has_its_rows),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
