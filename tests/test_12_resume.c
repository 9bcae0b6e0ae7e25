// [12] RUN: a training that goes on from a save has the bits that it would have had: between two micro-batches of a training
// step, too; and a run that differs in anything that changes bits refuses the save, with a sentence that says in what.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include "support/run_support.h"
#include "support/run_bed.h"

typedef struct saved { unsigned char bytes[1 << 18]; size_t count; } saved;

static tl_result keep_bytes(void *user, const char *text, size_t length) {
    saved *s = (saved *)user;
    assert_true(s->count + length <= sizeof s->bytes);
    memcpy(s->bytes + s->count, text, length);
    s->count += length;
    return TL_OK;
}

static tl_result save(tl_run *run, saved *s) {
    tl_sink sink;
    s->count = 0;
    sink.write = keep_bytes;
    sink.user = s;
    return tl_save_run(run, sink);
}

// -- between two micro-batches --

enum { STEPS = 3 };

// A bed whose kernels note the training step of each call, and the gradient that the loss begins with.
typedef struct trainer {
    bed         b;
    tl_variable variables[3];
    tl_loss_scaler scaler;
    int32_t     first, batches;
} trainer;

static void open_trainer(trainer *t, const tl_graph *graph, const tl_plan *plan, int kind, int32_t first, int32_t batches, int scales) {
    int i;
    bed_open(&t->b, graph, kind, 6, 4);
    memset(t->variables, 0, sizeof t->variables);
    memset(&t->scaler, 0, sizeof t->scaler);
    for (i = 0; i < 3; i++) t->variables[i].node = -1;
    t->variables[0].kind = TL_VARIABLE_GRADIENT;
    t->variables[0].host = t->b.mixer.gradients;
    t->variables[0].bytes = (uint64_t)graph->node_count * sizeof *t->b.mixer.gradients;
    t->variables[1].kind = TL_VARIABLE_STATISTICS;
    t->variables[1].host = t->b.mixer.seeds;
    t->variables[1].bytes = (uint64_t)graph->node_count * sizeof *t->b.mixer.seeds;
    t->variables[2].kind = TL_VARIABLE_RANDOM;
    t->variables[2].host = t->b.mixer.ran;
    t->variables[2].bytes = (uint64_t)graph->node_count * sizeof *t->b.mixer.ran;
    t->first = first;
    t->batches = batches;
    t->b.desc.plan = plan;
    t->b.desc.variables = t->variables;
    t->b.desc.variable_count = 3;
    t->b.desc.repeat_count = batches;
    t->b.desc.first_micro_batch = first;
    t->b.desc.first_step = 1;       // a run that has run nothing is in no training step
    if (scales) t->b.desc.loss_scaler = &t->scaler;
    t->scaler.scale = 2048;
    bed_must_init(&t->b);
}

static void run_batch(trainer *t, int32_t batch) {
    int32_t done = 0;
    if (bed_load(t->b.run, t->first + batch, &t->b) || tl_start_pass(t->b.run, t->first + batch)) fail_msg("%s", t->b.env.error.text);
    while (!done) {
        tl_run_step step;
        tl_result result;
        do result = tl_next_step(t->b.run, &step, &done); while (result == TL_NOT_READY);
        if (result) fail_msg("%s", t->b.env.error.text);
        if (!done && step.is_compute && tl_run_step_kernel(t->b.run, &step)) fail_msg("%s", t->b.env.error.text);
    }
}

// What the caller does to its scaler at any time counts from the next training step on.
static void change_scale(trainer *t, int32_t at) { t->scaler.scale = (float)(1 << (4 + at % 9)); }

// Go on from a micro-batch of all steps to the end, by hand or by tl_run_plan.
static uint64_t train(trainer *t, int32_t from, int by_plan) {
    int32_t at = from;
    while (at < STEPS * t->batches) {
        if (by_plan) {
            if (tl_run_plan(t->b.run)) fail_msg("%s", t->b.env.error.text);
            at += t->batches - at % t->batches;
        } else {
            run_batch(t, at % t->batches);
            at++;
        }
        change_scale(t, (at - 1) / t->batches);
    }
    return bed_outcome(&t->b, 0);
}

// Save after every micro-batch, load into a run of another plan, and go on there.
static void try_training(tl_random *random, const tl_graph *graph, const tl_plan *one, const tl_plan *other, int scales, long *counts) {
    static trainer t, u;
    static saved s, again;
    int32_t batches = random_count(random, 1, 4), first = random_chance(random, 50) ? 0 : random_count(random, 1, 5), at;
    uint64_t expected;
    open_trainer(&t, graph, one, 0, first, batches, scales);
    expected = train(&t, 0, 0);
    bed_close(&t.b);
    for (at = 0; at < STEPS * batches; at++) {
        int kind = (int)tl_next_random_below(random, BACKEND_KINDS), by_plan = (int)tl_next_random_below(random, 2);
        int32_t k;
        open_trainer(&t, graph, one, kind, first, batches, scales);
        for (k = 0; k < at; k++) {
            run_batch(&t, k % batches);
            change_scale(&t, k / batches);
        }
        if (save(t.b.run, &s)) fail_msg("%s", t.b.env.error.text);
        open_trainer(&u, graph, other, (kind + 1) % BACKEND_KINDS, first, batches, scales);
        if (random_chance(random, 30)) (void)train(&u, 0, 1);       // a run that has done something else before
        if (tl_load_run(u.b.run, s.bytes, s.count)) fail_msg("%s", u.b.env.error.text);
        if (save(u.b.run, &again)) fail_msg("%s", u.b.env.error.text);
        assert_int_equal(again.count, s.count);
        assert_memory_equal(again.bytes, s.bytes, s.count);
        if (train(&u, at, by_plan) != expected) fail_msg("another outcome after %d of %d micro-batches", (int)at, (int)batches);
        assert_int_equal(train(&t, at, 0), expected);               // saving has changed nothing
        counts[at % batches > 0]++;
        if (at % batches) {
            tl_saved part;
            part.data = s.bytes;
            part.length = s.count;
            assert_int_equal(tl_load_variables(u.b.run, &part, 1), TL_ERROR_INVALID_ARG);
            assert_string_equal(u.b.env.error.text, "tl_load_variables: data: saved between two micro-batches of a training step; "
                                                    "take saves from the ends of steps");
        }
        bed_close(&t.b);
        bed_close(&u.b);
    }
}

static void a_training_step_goes_on_between_its_micro_batches(void **state) {
    tl_random random = { 61 };
    long counts[2] = { 0, 0 }, runs;
    (void)state;
    for (runs = 0; runs < scaled(40); runs++) {
        tl_env env;
        tl_graph graph;
        tl_plan all, kept;
        uint8_t keep[256];
        int32_t i;
        int fits = 1;
        memset(&env, 0, sizeof env);
        if (random_graph(&env, &random, 12, &graph)) fail_msg("%s", env.error.text);
        for (i = 0; i < graph.tensor_count; i++) keep[i] = (uint8_t)random_chance(&random, 50);
        for (i = 0; i < graph.tensor_count; i++) fits &= graph.outputs[i].bytes % 4 == 0;
        if (tl_plan_keep_all(&env, &graph, 0, &all) || tl_plan_kept_set(&env, &graph, keep, &kept)) fail_msg("%s", env.error.text);
        try_training(&random, &graph, &all, &kept, fits, counts);
        tl_free_plan(&env, &all);
        tl_free_plan(&env, &kept);
        tl_free_graph(&env, &graph);
    }
    printf("%ld saves between training steps, %ld within\n", counts[0], counts[1]);
    assert_true(counts[0] > 0 && counts[1] > 0);
}

// The scale that a training step began with is that of its other micro-batches, whatever the scaler says by then.
static void a_loss_scale_lasts_for_a_training_step(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nnode 1 a conv fwd=3 bwd=5 out=8 needs=in in=0\n"
                               "node 2 b conv fwd=3 bwd=5 out=4 needs=in in=1 keep\n";
    tl_random random = { 62 };
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    long counts[2] = { 0, 0 }, runs;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, text, strlen(text), &graph) || tl_plan_keep_all(&env, &graph, 0, &plan)) fail_msg("%s", env.error.text);
    for (runs = 0; runs < 6; runs++) try_training(&random, &graph, &plan, &plan, 1, counts);
    assert_true(counts[1] > 3);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// A training step that was loaded and fails begins anew, with all of its micro-batches.
static void a_loaded_training_step_that_fails_begins_anew(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nnode 1 a conv fwd=3 bwd=5 out=8 needs=in in=0\n";
    static trainer t, u;
    static saved s;
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    uint64_t expected;
    int fails_in_load;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, text, strlen(text), &graph) || tl_plan_keep_all(&env, &graph, 0, &plan)) fail_msg("%s", env.error.text);
    open_trainer(&t, &graph, &plan, 0, 0, 3, 0);
    expected = train(&t, 0, 0);
    bed_close(&t.b);
    for (fails_in_load = 0; fails_in_load < 2; fails_in_load++) {
        mixer before;
        open_trainer(&t, &graph, &plan, 0, 0, 3, 0);
        run_batch(&t, 0);
        run_batch(&t, 1);
        run_batch(&t, 2);
        before = t.b.mixer;
        run_batch(&t, 0);
        if (save(t.b.run, &s)) fail_msg("%s", t.b.env.error.text);
        open_trainer(&u, &graph, &plan, 1, 0, 3, 0);
        if (tl_load_run(u.b.run, s.bytes, s.count)) fail_msg("%s", u.b.env.error.text);
        if (fails_in_load) u.b.load_fails_at = 2;
        else u.b.mixer.fail_at = u.b.mixer.calls + 3;
        assert_int_equal(tl_run_plan(u.b.run), TL_ERROR_KERNEL);
        u.b.load_fails_at = -1;
        memcpy(u.b.mixer.gradients, before.gradients, sizeof before.gradients);
        memcpy(u.b.mixer.seeds, before.seeds, sizeof before.seeds);
        u.b.mixer.fail_at = -1;
        assert_int_equal(train(&u, 3, 1), expected);
        bed_close(&u.b);
        bed_close(&t.b);
    }
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// -- every property that changes bits --

// What a run is made of; a variation changes one field of it.
typedef struct parts {
    const char *graph, *plan;    // plan: 0 = keep all
    uint8_t     formats[8];
    int         has_formats;
    tl_quantization quantizations[8];
    tl_loss_scaler scaler;
    tl_transport transport;
    tl_variable variables[2];
    char        memory[64];
    tl_strategy strategy;
    int         has_strategy;
    tl_run_desc desc;
} parts;

static tl_result no_kernel(const tl_kernel_call *call, void *user) {
    (void)call; (void)user;
    return TL_OK;
}

static tl_result no_send(void *self, int32_t peer, uint32_t tag, const void *data, uint64_t bytes, int32_t *request) {
    (void)self; (void)peer; (void)tag; (void)data; (void)bytes; (void)request;
    return TL_ERROR_IO;
}

static tl_result no_receive(void *self, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int32_t *request) {
    (void)self; (void)peer; (void)tag; (void)data; (void)bytes; (void)request;
    return TL_ERROR_IO;
}

static tl_result no_poll(void *self, int32_t request) { (void)self; (void)request; return TL_ERROR_IO; }
static void no_cancel(void *self, int32_t request) { (void)self; (void)request; }

static const char base_graph[] =
    "tlg 1\nnode 0 x input fwd=0 bwd=0 out=256 needs=none in=-\nnode 1 q convert fwd=1 bwd=0 out=64 needs=none in=0 grad=no\n"
    "node 2 a op fwd=1 bwd=1 out=64 needs=in in=1\nnode 3 b op fwd=1 bwd=1 out=256 needs=in in=2\n"
    "node 4 c op fwd=1 bwd=1 out=256 needs=in in=3 keep\n";
static const char base_plan[] = "F 1\nF 2\nF 3\nF 4\nB 4\nB 3\nB 2\n";
static const char packed_plan[] = "F 1\nF 2\nF 3\nC 3 f16\nX 3\nF 4\nB 4\nB 3\nB 2\n";
static const char brain_plan[] = "F 1\nF 2\nF 3\nC 3 bf16\nX 3\nF 4\nB 4\nB 3\nB 2\n";
static const char later_plan[] = "F 1\nF 2\nF 3\nF 4\nC 3 f16\nX 3\nB 4\nB 3\nB 2\n";
static const char again_plan[] = "F 1\nF 2\nF 3\nF 4\nD 2\nB 4\nF 2\nB 3\nB 2\n";

static void fill_parts(parts *p) {
    static tl_kernel kernel;
    memset(p, 0, sizeof *p);
    kernel.op = "op";
    kernel.forward = kernel.backward = no_kernel;
    p->graph = base_graph;
    p->plan = base_plan;
    p->has_formats = 1;
    p->formats[1] = TL_FORMAT_I8;
    p->formats[2] = TL_FORMAT_F16;
    p->quantizations[1].scale = 0.5f;
    p->quantizations[1].low = -128;
    p->quantizations[1].high = 127;
    p->scaler.scale = 64;
    p->variables[0].node = 3;
    p->variables[0].host = p->memory;
    p->variables[0].bytes = 16;
    p->variables[1].node = -1;
    p->variables[1].kind = TL_VARIABLE_STATISTICS;
    p->variables[1].host = p->memory + 32;
    p->variables[1].bytes = 4;
    p->transport.send = no_send;
    p->transport.receive = no_receive;
    p->transport.poll = no_poll;
    p->transport.cancel = no_cancel;
    p->transport.rank_count = 1;
    p->desc.kernels = &kernel;
    p->desc.kernel_count = 1;
    p->desc.kernel_precisions = 1u << TL_PRECISION_MIXED | 1u << TL_PRECISION_SINGLE;
    p->desc.repeat_count = 2;
    p->desc.seed = 5;
    p->desc.variable_count = 2;
    p->desc.loss_gradient_word = 0x40000000;
}

#define WITH(name, change) static void name(parts *p) { change; }
WITH(nothing, (void)p)
WITH(other_format, p->formats[2] = TL_FORMAT_BF16)
WITH(other_last_format, p->formats[4] = TL_FORMAT_BF16)
WITH(other_scale, p->quantizations[1].scale = 0.25f)
WITH(other_zero, p->quantizations[1].zero_point = 3)
WITH(other_low, p->quantizations[1].low = -127)
WITH(other_high, p->quantizations[1].high = 126)
WITH(other_rounding, p->quantizations[1].rounding = (tl_rounding)1)
WITH(other_loss, p->desc.loss_gradient_word = 0x3F800000)
WITH(other_seed, p->desc.seed = 6)
WITH(other_repeat, p->desc.repeat_count = 3)
WITH(other_first, p->desc.first_micro_batch = 2)
WITH(with_scaler, p->desc.loss_scaler = &p->scaler)
WITH(with_least, p->desc.loss_scaler = &p->scaler; p->scaler.least = 2)
WITH(with_most, p->desc.loss_scaler = &p->scaler; p->scaler.most = 4096)
WITH(with_growth, p->desc.loss_scaler = &p->scaler; p->scaler.growth_interval = 7)
WITH(with_others, p->desc.transport = &p->transport; p->transport.rank_count = 2)
WITH(as_other, p->desc.transport = &p->transport; p->transport.rank_count = 2; p->transport.rank = 1)
WITH(with_packed, p->plan = packed_plan)
WITH(with_brain, p->plan = brain_plan)
WITH(with_later, p->plan = later_plan)
WITH(other_node, p->variables[0].node = 2)
WITH(other_kind, p->variables[0].kind = TL_VARIABLE_OPTIMIZER)
WITH(other_bytes, p->variables[0].bytes = 20)
WITH(fewer, p->desc.variable_count = 1)
WITH(other_op, p->graph = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=256 needs=none in=-\nnode 1 q convert fwd=1 bwd=0 out=64 needs=none in=0 grad=no\n"
    "node 2 a op fwd=1 bwd=1 out=64 needs=in in=1\nnode 3 b op fwd=1 bwd=1 out=256 needs=in in=2\n"
    "node 4 c pop fwd=1 bwd=1 out=256 needs=in in=3 keep\n")
WITH(other_needs, p->graph = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=256 needs=none in=-\nnode 1 q convert fwd=1 bwd=0 out=64 needs=none in=0 grad=no\n"
    "node 2 a op fwd=1 bwd=1 out=64 needs=in in=1\nnode 3 b op fwd=1 bwd=1 out=256 needs=in in=2\n"
    "node 4 c op fwd=1 bwd=1 out=256 needs=none in=3 keep\n")
WITH(dynamic, p->graph = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=256 needs=none in=-\nnode 1 q convert fwd=1 bwd=0 out=64 needs=none in=0 grad=no\n"
    "node 2 a op fwd=1 bwd=1 out=64 needs=in in=1\nnode 3 b op fwd=1 bwd=1 out=256 needs=in in=2 dynamic\n"
    "node 4 c op fwd=1 bwd=1 out=256 needs=in in=3 keep\n")
WITH(without_keep, p->graph = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=256 needs=none in=-\nnode 1 q convert fwd=1 bwd=0 out=64 needs=none in=0 grad=no\n"
    "node 2 a op fwd=1 bwd=1 out=64 needs=in in=1\nnode 3 b op fwd=1 bwd=1 out=256 needs=in in=2\n"
    "node 4 c op fwd=1 bwd=1 out=256 needs=in in=3\n")
WITH(forward_only, p->plan = NULL; p->desc.inference = 1)
WITH(in_f32, p->has_formats = 0; p->graph = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=256 needs=none in=-\nnode 1 q op fwd=1 bwd=0 out=64 needs=none in=0 grad=no\n"
    "node 2 a op fwd=1 bwd=1 out=64 needs=in in=1\nnode 3 b op fwd=1 bwd=1 out=256 needs=in in=2\n"
    "node 4 c op fwd=1 bwd=1 out=256 needs=in in=3 keep\n")
// These change no bits.
WITH(other_plan, p->plan = again_plan)
WITH(by_itself, p->plan = NULL)
WITH(with_budget, p->desc.budget_bytes = 1 << 20)
WITH(two_in_flight, p->desc.in_flight = 2)
WITH(profiled, p->desc.profiling = 1)
WITH(later, p->desc.first_step = 9)
WITH(alone, p->desc.transport = &p->transport)
WITH(scaled_otherwise, p->desc.loss_scaler = &p->scaler; p->scaler.scale = 8)
WITH(default_growth, p->desc.loss_scaler = &p->scaler; p->scaler.growth_interval = 2000; p->scaler.least = 1)

typedef struct variation { const char *name; void (*one)(parts *p), (*other)(parts *p); const char *text; } variation;

static const char formats_differ[] = "data: of a run whose kernels see tensors in other formats";
static const char limits_differ[] = "data: of a loss scaler with another least, most or growth_interval";
static const char batches_differ[] = "data: of a run with another repeat_count or first_micro_batch, or of another rank";
static const char copies_differ[] = "data: of a plan that compresses other copies than this one";
static const char graphs_differ[] = "data: of another graph, precision or number of slots";
static const char variables_differ[] = "data: other variables than this run has";

static const variation variations[] = {
    { "formats", nothing, other_format, formats_differ }, { "last format", nothing, other_last_format, formats_differ },
    { "scale", nothing, other_scale, formats_differ }, { "zero point", nothing, other_zero, formats_differ },
    { "low", nothing, other_low, formats_differ }, { "high", nothing, other_high, formats_differ },
    { "rounding", nothing, other_rounding, formats_differ },
    { "loss", nothing, other_loss, "data: of a run with another loss_gradient_word" },
    { "seed", nothing, other_seed, "data: of another seed" },
    { "repeat_count", nothing, other_repeat, batches_differ }, { "first_micro_batch", nothing, other_first, batches_differ },
    { "scaler", nothing, with_scaler, variables_differ }, { "least", with_scaler, with_least, limits_differ },
    { "most", with_scaler, with_most, limits_differ }, { "growth", with_scaler, with_growth, limits_differ },
    { "replicas", nothing, with_others, batches_differ }, { "rank", with_others, as_other, batches_differ },
    { "compressed", nothing, with_packed, copies_differ }, { "codec", with_packed, with_brain, copies_differ },
    { "when compressed", with_packed, with_later, copies_differ },
    { "node of a variable", nothing, other_node, variables_differ }, { "kind of a variable", nothing, other_kind, variables_differ },
    { "bytes of a variable", nothing, other_bytes, variables_differ }, { "variables", nothing, fewer, variables_differ },
    { "op", nothing, other_op, graphs_differ }, { "needs", nothing, other_needs, graphs_differ },
    { "dynamic", nothing, dynamic, graphs_differ }, { "keep", nothing, without_keep, graphs_differ },
    { "direction", by_itself, forward_only, "data: of a run forward only, and this one is not, or the other way" },
    { "precision", nothing, in_f32, graphs_differ },
    { "same", nothing, nothing, NULL }, { "plan", nothing, other_plan, NULL }, { "made plan", nothing, by_itself, NULL },
    { "budget", by_itself, with_budget, NULL }, { "in flight", nothing, two_in_flight, NULL }, { "profiling", nothing, profiled, NULL },
    { "first step", nothing, later, NULL }, { "transport of one", nothing, alone, NULL },
    { "scale of the loss", with_scaler, scaled_otherwise, NULL }, { "defaults of the scaler", with_scaler, default_growth, NULL },
    { "same compressed", with_packed, with_packed, NULL },
};

typedef struct made { parts p; tl_env env; tl_graph graph; tl_plan plan; tl_backend backend; tl_run *run; } made;

static void make(made *m, void (*change)(parts *p), const char *name) {
    tl_cpu_backend_desc desc;
    memset(m, 0, sizeof *m);
    memset(&desc, 0, sizeof desc);
    fill_parts(&m->p);
    change(&m->p);
    if (tl_init_cpu_backend(&m->env, &desc, &m->backend)) fail_msg("%s", m->env.error.text);
    if (tl_parse_graph(&m->env, m->p.graph, strlen(m->p.graph), &m->graph)) fail_msg("%s: %s", name, m->env.error.text);
    if (m->p.plan && tl_parse_schedule(&m->env, m->p.plan, strlen(m->p.plan), &m->plan)) fail_msg("%s: %s", name, m->env.error.text);
    if (m->p.plan) m->p.desc.plan = &m->plan;
    else if (tl_plan_keep_all(&m->env, &m->graph, m->p.desc.inference, &m->plan)) fail_msg("%s: %s", name, m->env.error.text);
    else m->p.desc.plan = &m->plan;
    m->p.desc.graph = &m->graph;
    m->p.desc.backend = &m->backend;
    m->p.desc.variables = m->p.variables;
    if (m->p.has_formats) {
        m->p.desc.formats = m->p.formats;
        m->p.desc.quantizations = m->p.quantizations;
    }
    if (m->p.graph != base_graph && strstr(m->p.graph, " pop ")) {
        static tl_kernel both[2];
        both[0] = m->p.desc.kernels[0];
        both[1] = both[0];
        both[1].op = "pop";
        m->p.desc.kernels = both;
        m->p.desc.kernel_count = 2;
    }
    if (tl_init_run(&m->env, &m->p.desc, &m->run)) fail_msg("%s: %s", name, m->env.error.text);
}

static void unmake(made *m) {
    tl_free_run(m->run);
    tl_free_plan(&m->env, &m->plan);
    tl_free_graph(&m->env, &m->graph);
    assert_int_equal(tl_free_cpu_backend(&m->env, &m->backend), TL_OK);
}

static void carry_out(tl_run *run, int32_t steps) {
    int32_t done = 0;
    while (!done && steps-- > 0) {
        tl_run_step step;
        assert_int_equal(tl_next_step(run, &step, &done), TL_OK);
        if (!done && step.is_compute) assert_int_equal(tl_run_step_kernel(run, &step), TL_OK);
    }
}

// Each way: what the one has saved goes into the other, or is refused with the sentence. In a pass a refusal may name the plan.
static void check_variation(const variation *v, int backwards, int in_pass) {
    static made one, other;
    static saved s;
    char text[256];
    tl_result result;
    make(&one, backwards ? v->other : v->one, v->name);
    make(&other, backwards ? v->one : v->other, v->name);
    if (in_pass) {
        assert_int_equal(tl_start_pass(one.run, one.p.desc.first_micro_batch), TL_OK);
        carry_out(one.run, 2);
    }
    if (save(one.run, &s)) fail_msg("%s: %s", v->name, one.env.error.text);
    result = tl_load_run(other.run, s.bytes, s.count);
    snprintf(text, sizeof text, "tl_load_run: %s", v->text ? v->text : "");
    if (v->text && result != TL_ERROR_INVALID_ARG) fail_msg("%s: loaded with result %d", v->name, (int)result);
    if (v->text && strcmp(other.env.error.text, text) != 0) fail_msg("%s: %s", v->name, other.env.error.text);
    if (!v->text && result) fail_msg("%s: %s", v->name, other.env.error.text);
    unmake(&one);
    unmake(&other);
}

static void each_property_that_changes_bits_is_in_a_save(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < sizeof variations / sizeof *variations; i++) {
        const variation *v = &variations[i];
        check_variation(v, 0, 0);
        check_variation(v, 1, 0);
        if (v->text && v->one != with_others && v->other != with_others) {
            check_variation(v, 0, 1);
            check_variation(v, 1, v->other != as_other);
        }
    }
}

// -- runs of compiled plans --

// Formats are those that kernels see: which chains are fused, and what a budget allows beside that, does not matter.
static tl_run *compile_run(tl_env *env, const tl_graph *graph, const tl_backend *backend, int fuses, uint64_t budget, uint32_t schemes) {
    static const char *const ops[] = { "matmul", "gelu", "relu", "add", "mul" };
    static tl_kernel kernels[5];
    tl_strategy strategy = tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(0));
    tl_precision_desc precision;
    tl_run_desc desc;
    tl_run *run;
    int i;
    memset(&desc, 0, sizeof desc);
    memset(&precision, 0, sizeof precision);
    for (i = 0; i < 5; i++) {
        kernels[i].op = ops[i];
        kernels[i].forward = kernels[i].backward = no_kernel;
    }
    strategy.mode = TL_MODE_LAZY;
    strategy.memory = TL_MEMORY_POOLED;
    strategy.precision = TL_PRECISION_MIXED;
    strategy.enable_fusion = fuses;
    precision.schemes = schemes;
    precision.loss_limit = 1e300;
    precision.allow_sensitive = precision.allow_unknown = 1;
    desc.graph = graph;
    desc.backend = backend;
    desc.kernels = kernels;
    desc.kernel_count = 5;
    desc.kernel_precisions = 1u << TL_PRECISION_MIXED | 1u << TL_PRECISION_SINGLE;
    desc.strategy = &strategy;
    desc.precision = &precision;
    desc.budget_bytes = budget;
    if (tl_init_run(env, &desc, &run)) fail_msg("%s", env->error.text);
    return run;
}

static void formats_of_compiled_plans_are_compared_by_node(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4096 needs=none in=-\nnode 1 a matmul fwd=900 bwd=900 out=4096 needs=in in=0\n"
        "node 2 b gelu fwd=900 bwd=900 out=4096 needs=out in=1 takes_blocks\nnode 3 c relu fwd=900 bwd=900 out=4096 needs=out in=2 takes_blocks\n"
        "node 4 d add fwd=900 bwd=900 out=4096 needs=in in=3,1 takes_blocks\nnode 5 e matmul fwd=900 bwd=900 out=4096 needs=in in=4\n"
        "node 6 f mul fwd=900 bwd=900 out=4096 needs=out in=5,2 takes_blocks\nnode 7 g matmul fwd=900 bwd=900 out=4 needs=in in=6 keep\n";
    static saved s;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_env env;
    tl_graph graph;
    tl_run *runs[3];
    tl_run_report report;
    int i, k, fused = 0;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&cpu, 0, sizeof cpu);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail_msg("%s", env.error.text);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    runs[0] = compile_run(&env, &graph, &backend, 0, 32440, 1u << TL_SCHEME_BF16);
    runs[1] = compile_run(&env, &graph, &backend, 1, 18440, 1u << TL_SCHEME_BF16);
    runs[2] = compile_run(&env, &graph, &backend, 1, 24440, 1u << TL_SCHEME_BF16);
    for (i = 0; i < 3; i++) {
        assert_int_equal(tl_start_pass(runs[i], 0), TL_OK);
        tl_measure_run(runs[i], &report);
        fused += report.fused_count;
        assert_int_equal(tl_reset_run(runs[i]), TL_OK);
        if (!tl_find_compiled_plan(runs[i])->formats) fail_msg("run %d has no formats", i);
    }
    assert_true(fused > 0);
    for (i = 0; i < 3; i++) {
        if (save(runs[i], &s)) fail_msg("%s", env.error.text);
        for (k = 0; k < 3; k++)
            if (tl_load_run(runs[k], s.bytes, s.count)) fail_msg("%d into %d: %s", i, k, env.error.text);
    }
    for (i = 0; i < 3; i++) tl_free_run(runs[i]);
    tl_free_graph(&env, &graph);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_step_goes_on_between_its_micro_batches),
        cmocka_unit_test(a_loss_scale_lasts_for_a_training_step),
        cmocka_unit_test(a_loaded_training_step_that_fails_begins_anew),
        cmocka_unit_test(each_property_that_changes_bits_is_in_a_save),
        cmocka_unit_test(formats_of_compiled_plans_are_compared_by_node),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
