// [12] RUN: memory cached. What versions say is unchanged runs once; whatever changes, fails or is given up, every pass
// has the bytes of a run that keeps nothing; both plans are within the budget, and what they plan is measured.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/texts.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/run_bed.h"

// -- a run beside one that keeps nothing --

// What kernels read beside their inputs, and the versions of it.
typedef struct world {
    uint64_t weights[MIXER_NODES], contents[MIXER_NODES], versions[MIXER_NODES];
    uint8_t  is_random[MIXER_NODES];   // its forward depends on the step and the micro-batch: version 0
    long     asked;
    int32_t  last_asked;
    uint64_t next_version;
} world;

typedef struct side {
    bed     b;
    world  *w;
    int     forwards[MIXER_NODES];     // calls in this pass
} side;

static tl_result side_forward(const tl_kernel_call *call, void *user) {
    side *s = (side *)user;
    mixer *m = &s->b.mixer;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64(s->w->weights[call->node], (uint64_t)call->node);
    int32_t i;
    if (m->calls++ == m->fail_at) return TL_ERROR_CORRUPT;
    mixer_check(m, call);
    m->forwards++;
    s->forwards[call->node]++;
    if (!m->ran[call->node]++) m->seeds[call->node] = call->seed;
    if (s->w->is_random[call->node]) sum = tl_mix_u64(sum, call->seed);
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    mix_into(sum + 1000, &call->scratch, 1);
    for (i = 0; i < node->output_count && !call->outputs_ready; i++) mix_into(sum + (uint64_t)i, &call->outputs[i], 0);
    mix_into(sum + 77, &call->saved, 0);
    return TL_OK;
}

static tl_result side_backward(const tl_kernel_call *call, void *user) {
    return mixer_backward(call, &((side *)user)->b.mixer);
}

static uint64_t side_version(int32_t node, int32_t micro_batch, void *user) {
    world *w = (world *)user;
    (void)micro_batch;
    w->asked++;
    w->last_asked = node;
    return w->is_random[node] ? 0 : w->versions[node];
}

static void side_open(side *s, world *w, const tl_graph *graph, const tl_strategy *strategy, int kind, int is_cached) {
    int32_t i;
    memset(s, 0, sizeof *s);
    s->w = w;
    bed_open(&s->b, graph, kind, 7, 4);
    s->b.desc.load = NULL;
    s->b.desc.strategy = strategy;
    for (i = 0; i < s->b.desc.kernel_count; i++) {
        s->b.kernels[i].forward = side_forward;
        s->b.kernels[i].backward = side_backward;
        s->b.kernels[i].user = s;
    }
    if (!is_cached) return;
    s->b.desc.version = side_version;
    s->b.desc.version_user = w;
}

static void side_write(side *s, int32_t id) {
    const tl_graph *graph = s->b.graph;
    const tl_node *node = &graph->nodes[id];
    unsigned char bytes[256];
    int32_t i;
    for (i = 0; i < node->output_count; i++) {
        uint64_t count = graph->outputs[node->first_output + i].bytes, k;
        tl_tensor tensor;
        for (k = 0; k < count; k++) bytes[k] = (unsigned char)(tl_mix_u64(s->w->contents[id] + (uint64_t)i, k) >> 8);
        tensor.node = id;
        tensor.output = i;
        if (tl_write_tensor(s->b.run, tensor, bytes, count)) fail_msg("%s", s->b.env.error.text);
    }
}

static void side_write_all(side *s) {
    int32_t id;
    for (id = 0; id < s->b.graph->node_count; id++) if (s->b.graph->nodes[id].is_input) side_write(s, id);
}

static tl_result side_try(side *s, int32_t micro_batch) {
    tl_run_step step;
    int32_t done = 0;
    tl_result result;
    mixer_start_pass(&s->b.mixer);
    memset(s->b.mixer.gradients, 0, sizeof s->b.mixer.gradients);
    memset(s->forwards, 0, sizeof s->forwards);
    result = tl_start_pass(s->b.run, micro_batch);
    while (!result && !done) {
        do result = tl_next_step(s->b.run, &step, &done); while (result == TL_NOT_READY);   // a copy is under way
        if (!result && !done && step.is_compute) result = tl_run_step_kernel(s->b.run, &step);
    }
    return result;
}

static tl_run_report side_pass(side *s, int32_t micro_batch) {
    tl_run_report report;
    tl_plan plan;
    if (side_try(s, micro_batch)) fail_msg("%s", s->b.env.error.text);
    report = bed_report(&s->b);
    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
    assert_int_equal(report.measured_host_peak_bytes, report.planned_host_peak_bytes);
    assert_true(report.taken_bytes <= report.planned_taken_bytes);
    if (s->b.desc.budget_bytes) assert_true(report.planned_taken_bytes <= s->b.desc.budget_bytes);
    if (!report.cached_bytes) return report;
    tl_find_run_plan(s->b.run, &plan);      // it stands for itself
    assert_int_equal(plan.entry_count > 0, report.cached_count > 0);
    if (tl_measure_plan(&s->b.env, tl_find_run_graph(s->b.run), NULL, &plan)) fail_msg("%s", s->b.env.error.text);
    assert_int_equal(plan.peak_bytes, report.planned_peak_bytes);
    return report;
}

static void world_init(world *w, const tl_graph *graph) {
    int32_t id;
    memset(w, 0, sizeof *w);
    for (id = 0; id < graph->node_count; id++) {
        w->weights[id] = (uint64_t)id * 31 + 5;
        w->contents[id] = (uint64_t)id * 17 + 3;
        w->versions[id] = ++w->next_version;
    }
}

static void world_bump(world *w, int32_t id) {
    w->weights[id]++;
    w->contents[id]++;
    w->versions[id] = ++w->next_version;
}

static tl_strategy strategy_of(tl_mode mode, tl_gradient gradient, tl_memory memory) {
    return tl_with_memory(tl_with_gradient(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), mode),
                                           gradient), memory);
}

// -- what runs --

// x -> a -> b -> c -> d, where c reads y, too: a and b are a constant prefix where y is not constant.
static const char prefix[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=40 needs=none in=-\n"
    "node 1 y input fwd=0 bwd=0 out=24 needs=none in=-\n"
    "node 2 a conv fwd=5 bwd=0 out=64 needs=none in=0 fwork=16 grad=no\n"
    "node 3 b relu fwd=3 bwd=0 out=32 needs=none in=2 grad=no\n"
    "node 4 c add fwd=2 bwd=2 out=48 needs=in in=3,1\n"
    "node 5 d ce fwd=1 bwd=1 out=8 needs=in,out in=4 keep\n";

enum { X = 0, Y = 1, A = 2, B = 3, C = 4, D = 5 };

typedef struct pair {
    side cached, plain;
    world w;
    tl_graph graph;
    tl_strategy strategies[2];
} pair;

static void pair_open(pair *p, const char *text, tl_mode mode, tl_gradient gradient, int kind, uint64_t budget) {
    p->graph = graph_of(text);
    p->strategies[0] = strategy_of(mode, gradient, TL_MEMORY_CACHED);
    p->strategies[1] = strategy_of(mode, gradient, TL_MEMORY_POOLED);
    world_init(&p->w, &p->graph);
    side_open(&p->cached, &p->w, &p->graph, &p->strategies[0], kind, 1);
    side_open(&p->plain, &p->w, &p->graph, &p->strategies[1], 0, 0);
    p->cached.b.desc.budget_bytes = p->plain.b.desc.budget_bytes = budget;
}

static void pair_start(pair *p) {
    p->w.is_random[Y] = 1;
    bed_must_init(&p->cached.b);
    bed_must_init(&p->plain.b);
    side_write_all(&p->cached);
    side_write_all(&p->plain);
}

// One pass of both: the same bytes. Returns how many forwards the cached one ran.
static long pair_pass(pair *p, int32_t micro_batch) {
    int inference = !p->strategies[0].gradient.computes;
    long before = p->cached.b.mixer.forwards;
    (void)side_pass(&p->cached, micro_batch);
    (void)side_pass(&p->plain, micro_batch);
    assert_int_equal(bed_outcome(&p->cached.b, inference), bed_outcome(&p->plain.b, inference));
    return p->cached.b.mixer.forwards - before;
}

static void pair_change(pair *p, int32_t id, int bumps) {
    p->w.contents[id] += 100;
    p->w.weights[id] += 100;
    if (bumps) p->w.versions[id] = ++p->w.next_version;
    if (!p->graph.nodes[id].is_input) return;
    side_write(&p->cached, id);
    side_write(&p->plain, id);
}

static void pair_close(pair *p) {
    bed_close(&p->cached.b);
    bed_close(&p->plain.b);
    tl_free_graph(NULL, &p->graph);
}

static void constant_prefix_of_inference_runs_once(void **state) {
    static const tl_mode modes[] = { TL_MODE_LAZY, TL_MODE_EAGER };
    static pair p;
    tl_run_report report;
    int mode, kind, k;
    (void)state;
    for (mode = 0; mode < 2; mode++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            pair_open(&p, prefix, modes[mode], tl_gradient_none(), kind, 0);
            pair_start(&p);
            assert_int_equal(pair_pass(&p, 0), 4);
            report = bed_report(&p.cached.b);
            assert_int_equal(report.cached_count, 0);
            assert_int_equal(report.cached_bytes, 32);
            for (k = 1; k < 4; k++) {
                pair_change(&p, Y, 0);      // its version is 0 all the time
                assert_int_equal(pair_pass(&p, k), 2);
                assert_int_equal(p.cached.forwards[A] + p.cached.forwards[B], 0);
                report = bed_report(&p.cached.b);
                assert_int_equal(report.cached_count, 2);
                assert_true(report.planned_cost == 3 && report.base_cost == 11);
            }
            pair_close(&p);
        }
}

// A forward with an effect is run in every pass, and what it makes is not constant.
static void what_may_run_once_only_runs_in_every_pass(void **state) {
    static pair p;
    int k;
    (void)state;
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_none(), 0, 0);
    ((tl_node *)p.graph.nodes)[A].once = 1;
    pair_start(&p);
    for (k = 0; k < 3; k++) assert_int_equal(pair_pass(&p, 0), 4);
    pair_close(&p);
}

static void what_changes_runs_again(void **state) {
    static pair p;
    int32_t id;
    (void)state;
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_none(), 0, 0);
    pair_start(&p);
    assert_int_equal(pair_pass(&p, 0), 4);
    for (id = X; id <= D; id++) {
        int in_prefix = id == X || id == A || id == B;
        pair_change(&p, id, 1);
        assert_int_equal(pair_pass(&p, 0), in_prefix ? 4 : 2);
        assert_int_equal(pair_pass(&p, 0), 2);
        p.w.versions[id]--;         // the number does not matter, only that it is another one
        assert_int_equal(pair_pass(&p, 0), in_prefix ? 4 : 2);
    }
    pair_close(&p);
}

static void write_without_new_version_counts_as_change(void **state) {
    static pair p;
    (void)state;
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_none(), 0, 0);
    pair_start(&p);
    assert_int_equal(pair_pass(&p, 0), 4);
    assert_int_equal(pair_pass(&p, 0), 2);
    pair_change(&p, X, 0);
    assert_int_equal(pair_pass(&p, 0), 4);
    assert_int_equal(pair_pass(&p, 0), 2);
    pair_close(&p);
}

static void version_that_becomes_unknown_runs_in_every_pass(void **state) {
    static pair p;
    (void)state;
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_none(), 0, 0);
    pair_start(&p);
    assert_int_equal(pair_pass(&p, 0), 4);
    p.w.is_random[A] = 1;
    assert_int_equal(pair_pass(&p, 0), 4);
    assert_int_equal(pair_pass(&p, 1), 4);
    p.w.is_random[A] = 0;
    assert_int_equal(pair_pass(&p, 0), 4);      // the random one made what was kept
    assert_int_equal(pair_pass(&p, 0), 2);
    pair_close(&p);
}

static void frozen_layers_run_once_in_training(void **state) {
    static const tl_mode modes[] = { TL_MODE_LAZY, TL_MODE_EAGER };
    static pair p;
    int mode, kind, k;
    (void)state;
    for (mode = 0; mode < 2; mode++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            pair_open(&p, prefix, modes[mode], mode ? tl_gradient_full() : tl_gradient_checkpointed(0), kind, 0);
            pair_start(&p);
            assert_int_equal(pair_pass(&p, 0), 4);
            for (k = 1; k < 4; k++) {
                pair_change(&p, C, 1);      // a trained weight
                pair_change(&p, Y, 1);
                assert_int_equal(pair_pass(&p, 0), 2);
                assert_int_equal(bed_report(&p.cached.b).backward_count, 2);
            }
            pair_change(&p, A, 1);
            assert_int_equal(pair_pass(&p, 0), 4);
            pair_close(&p);
        }
}

static tl_result load_three(tl_run *run, int32_t micro_batch, void *user) {
    pair *p = (pair *)user;
    (void)run;
    mixer_start_pass(&p->cached.b.mixer);
    if (micro_batch != 1) return TL_OK;
    world_bump(&p->w, X);
    side_write(&p->cached, X);
    return TL_OK;
}

static void run_plan_takes_the_versions_after_the_load_hook(void **state) {
    static pair p;
    (void)state;
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_accumulated(3), 0, 0);
    p.cached.b.desc.load = load_three;
    p.cached.b.desc.load_user = &p;
    pair_start(&p);
    if (tl_run_plan(p.cached.b.run)) fail_msg("%s", p.cached.b.env.error.text);
    assert_int_equal(p.cached.forwards[A], 2);      // micro-batches 0 and 1
    assert_int_equal(p.cached.forwards[C], 3);
    if (tl_run_plan(p.cached.b.run)) fail_msg("%s", p.cached.b.env.error.text);
    assert_int_equal(p.cached.forwards[A], 3);
    pair_close(&p);
}

// -- what fails --

static void pass_after_a_failed_one_is_full(void **state) {
    static pair p;
    long at;
    (void)state;
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_full(), 0, 0);
    pair_start(&p);
    assert_int_equal(pair_pass(&p, 0), 4);
    for (at = 0; at < 4; at++) {        // two forwards and two backwards of a warm pass
        assert_int_equal(pair_pass(&p, 0), 2);
        p.cached.b.mixer.fail_at = p.cached.b.mixer.calls + at;
        assert_int_equal(side_try(&p.cached, 0), TL_ERROR_KERNEL);
        p.cached.b.mixer.fail_at = -1;
        assert_int_equal(pair_pass(&p, 0), 4);
    }
    for (at = 0; at < 6; at++) {        // a full one
        pair_change(&p, A, 1);
        p.cached.b.mixer.fail_at = p.cached.b.mixer.calls + at;
        assert_int_equal(side_try(&p.cached, 0), TL_ERROR_KERNEL);
        p.cached.b.mixer.fail_at = -1;
        assert_int_equal(pair_pass(&p, 0), 4);
    }
    assert_int_equal(tl_reset_run(p.cached.b.run), TL_OK);
    assert_int_equal(pair_pass(&p, 0), 4);
    pair_close(&p);
}

static void pass_after_a_reset_one_is_full(void **state) {
    static pair p;
    tl_run_step step;
    int32_t done, k, stop;
    (void)state;
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_full(), 0, 0);
    pair_start(&p);
    for (stop = 0; stop < 5; stop++) {
        assert_int_equal(pair_pass(&p, 0), 4);
        assert_int_equal(pair_pass(&p, 0), 2);
        mixer_start_pass(&p.cached.b.mixer);
        assert_int_equal(tl_start_pass(p.cached.b.run, 0), TL_OK);
        for (k = 0; k < stop; k++) {
            assert_int_equal(tl_next_step(p.cached.b.run, &step, &done), TL_OK);
            if (step.is_compute) assert_int_equal(tl_run_step_kernel(p.cached.b.run, &step), TL_OK);
        }
        assert_int_equal(tl_reset_run(p.cached.b.run), TL_OK);
    }
    pair_close(&p);
}

static void backend_that_fails_leaves_no_stale_results(void **state) {
    static pair p;
    int function, at;
    (void)state;
    for (function = SPY_CLAIM; function < SPY_CHECK; function++)
        for (at = 0; at < 12; at++) {
            tl_result result;
            pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_full(), 0, 0);
            pair_start(&p);
            assert_int_equal(pair_pass(&p, 0), 4);
            if (at >= 6) assert_int_equal(pair_pass(&p, 0), 2);
            pair_change(&p, B, 1);
            p.cached.b.spy.fail_function = function;
            p.cached.b.spy.fail_at = p.cached.b.spy.calls[function] + at % 6;
            result = side_try(&p.cached, 0);
            p.cached.b.spy.fail_function = -1;
            if (!result) (void)side_pass(&p.plain, 0);
            assert_int_equal(pair_pass(&p, 0), result ? 4 : 2);
            pair_close(&p);
        }
}

static void caller_cannot_write_what_is_kept(void **state) {
    static pair p;
    unsigned char bytes[64];
    tl_tensor tensor = { B, 0 };
    (void)state;
    memset(bytes, 7, sizeof bytes);
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_none(), 0, 0);
    pair_start(&p);
    assert_int_equal(tl_write_tensor(p.cached.b.run, tensor, bytes, 32), TL_ERROR_NOT_FOUND);
    assert_int_equal(pair_pass(&p, 0), 4);
    assert_int_equal(tl_write_tensor(p.cached.b.run, tensor, bytes, 32), TL_ERROR_INVALID_ARG);
    assert_int_equal(pair_pass(&p, 0), 2);
    assert_int_equal(tl_write_tensor(p.cached.b.run, tensor, bytes, 32), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_read_tensor(p.cached.b.run, tensor, bytes, 32), TL_OK);
    assert_int_equal(pair_pass(&p, 0), 2);
    pair_close(&p);
}

// -- what cannot be, or is not, kept --

static void without_versions_cached_is_pooled(void **state) {
    static pair p;
    tl_run_report report;
    int hook, mode;
    (void)state;
    for (hook = 0; hook < 2; hook++)
        for (mode = 0; mode < 2; mode++) {
            int32_t id;
            pair_open(&p, prefix, mode ? TL_MODE_EAGER : TL_MODE_LAZY, tl_gradient_full(), 0, 0);
            if (!hook) p.cached.b.desc.version = NULL;
            for (id = 0; id < p.graph.node_count; id++) p.w.is_random[id] = 1;
            pair_start(&p);
            assert_int_equal(p.w.asked, hook ? p.graph.node_count : 0);
            assert_int_equal(pair_pass(&p, 0), 4);
            assert_int_equal(pair_pass(&p, 0), 4);
            report = bed_report(&p.cached.b);
            assert_true(!report.cached_count && !report.cached_bytes);
            assert_int_equal(report.planned_taken_bytes, bed_report(&p.plain.b).planned_taken_bytes);
            assert_int_equal(p.w.asked, hook ? p.graph.node_count : 0);     // nothing is watched
            pair_close(&p);
        }
}

static void cached_refuses_what_makes_other_plans(void **state) {
    static pair p;
    tl_plan plan;
    int k;
    (void)state;
    for (k = 0; k < 4; k++) {
        tl_run_desc *desc;
        pair_open(&p, prefix, k ? TL_MODE_EAGER : TL_MODE_LAZY, tl_gradient_checkpointed(0), 0, 0);
        desc = &p.cached.b.desc;
        if (tl_plan_keep_all(NULL, &p.graph, 0, &plan)) fail();
        if (!k) desc->plan = &plan;
        if (k == 1) desc->policy = tl_policy_every_n(2);
        if (k == 2) desc->eviction = TL_EVICTION_OLDEST;
        if (k == 3) desc->codec = TL_CODEC_F16;
        assert_int_equal(bed_init(&p.cached.b), TL_ERROR_UNSUPPORTED);
        assert_non_null(strstr(p.cached.b.env.error.text, "strategy.memory: cached"));
        if (!k) {       // a plan that is given runs where nothing is known
            desc->version = NULL;
            bed_must_init(&p.cached.b);
            assert_int_equal(side_pass(&p.cached, 0).cached_bytes, 0);
        }
        tl_free_plan(NULL, &plan);
        pair_close(&p);
    }
}

static void everything_constant_runs_nothing(void **state) {
    static pair p;
    (void)state;
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_none(), 0, 0);
    pair_start(&p);
    pair_close(&p);
    pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_none(), 0, 0);
    bed_must_init(&p.cached.b);
    bed_must_init(&p.plain.b);
    side_write_all(&p.cached);
    side_write_all(&p.plain);
    assert_int_equal(pair_pass(&p, 0), 4);
    assert_int_equal(bed_report(&p.cached.b).cached_bytes, 8);
    assert_int_equal(pair_pass(&p, 0), 0);
    assert_int_equal(bed_report(&p.cached.b).cached_count, 4);
    pair_change(&p, D, 1);
    assert_int_equal(pair_pass(&p, 0), 4);
    pair_close(&p);
}

// -- how much is kept --

// Two constant branches of the same bytes, of which a costs five times what b does; the large l is in no pass with both.
static const char branches[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 y input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 2 a conv fwd=10 bwd=0 out=100 needs=none in=0 grad=no\n"
    "node 3 b relu fwd=2 bwd=0 out=100 needs=none in=0 grad=no\n"
    "node 4 l add fwd=1 bwd=1 out=300 needs=none in=1\n"
    "node 5 m add fwd=1 bwd=1 out=40 needs=in in=4\n"
    "node 6 d ce fwd=1 bwd=1 out=8 needs=none in=5,2,3 keep\n";

static void budget_decides_how_much_is_kept(void **state) {
    static pair p;
    uint64_t budget, most = 0, last = 200;
    int seen[3] = { 0, 0, 0 };
    (void)state;
    for (budget = 1000; budget >= 300; budget -= 4) {
        uint64_t kept;
        pair_open(&p, branches, TL_MODE_LAZY, tl_gradient_checkpointed(0), 0, budget);
        p.w.is_random[Y] = 1;
        if (bed_init(&p.plain.b)) {     // below what a run takes that keeps nothing
            tl_error error = p.plain.b.env.error;
            assert_int_equal(error.code, TL_ERROR_INFEASIBLE);
            assert_int_equal(bed_init(&p.cached.b), TL_ERROR_INFEASIBLE);
            assert_int_equal(tl_find_least_budget(&p.cached.b.env.error), tl_find_least_budget(&error));
            pair_close(&p);
            break;
        }
        bed_must_init(&p.cached.b);
        side_write_all(&p.cached);
        side_write_all(&p.plain);
        (void)pair_pass(&p, 0);
        (void)pair_pass(&p, 0);
        kept = bed_report(&p.cached.b).cached_bytes;
        assert_true(kept <= last);
        assert_int_equal(bed_report(&p.cached.b).cached_count, kept / 100);
        if (kept == 100) assert_true(!p.cached.forwards[2] && p.cached.forwards[3]);    // a, which saves more
        if (kept == 200 && !most) most = bed_report(&p.cached.b).planned_taken_bytes;
        seen[kept / 100] = 1;
        last = kept;
        pair_close(&p);
    }
    assert_true(budget >= 300 && seen[0] && seen[1] && seen[2]);
    pair_open(&p, branches, TL_MODE_LAZY, tl_gradient_checkpointed(0), 0, most);    // exactly that
    pair_start(&p);
    assert_true(pair_pass(&p, 0) == 5 && pair_pass(&p, 0) == 3);
    assert_int_equal(bed_report(&p.cached.b).taken_bytes, most);
    pair_close(&p);
}

static void every_allocation_of_init_fails_in_turn(void **state) {
    static pair p;
    long at;
    (void)state;
    for (at = 0; ; at++) {
        failing_alloc f = { 0 };
        tl_result result;
        pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_full(), 0, 0);
        p.w.is_random[Y] = 1;
        p.cached.b.env = failing_env(&f, at);
        result = bed_init(&p.cached.b);
        if (!result) {
            f.fail_at = -1;
            bed_must_init(&p.plain.b);
            side_write_all(&p.cached);
            side_write_all(&p.plain);
            assert_true(pair_pass(&p, 0) == 4 && pair_pass(&p, 0) == 2);
        } else {
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_null(p.cached.b.run);
        }
        pair_close(&p);
        assert_int_equal(f.live, 0);
        if (!result) break;
    }
    assert_true(at > 60);
}

// -- blocks, formats, checkpoints --

static uint64_t largest_block;      // of the backends below; 0 = any

static void limit_blocks(void *self, tl_backend_limits *limits) {
    spy_limits(self, limits);
    if (largest_block) limits->block_bytes = largest_block;
}

static void arenas_in_blocks_keep_results(void **state) {
    static pair p;
    (void)state;
    for (largest_block = 304; largest_block < 700; largest_block += 52) {
        pair_open(&p, branches, TL_MODE_LAZY, tl_gradient_full(), 0, 0);
        p.cached.b.backend.limits = limit_blocks;
        pair_start(&p);
        assert_true(pair_pass(&p, 0) == 5 && pair_pass(&p, 0) == 3);
        pair_change(&p, 0, 1);
        assert_true(pair_pass(&p, 0) == 5 && pair_pass(&p, 0) == 3);
        if (largest_block == 304) assert_true(spy_count(&p.cached.b.spy).block_count[TL_TIER_DEVICE] > 1);
        pair_close(&p);
    }
    largest_block = 0;
}

static void conversions_of_a_constant_prefix_run_once(void **state) {
    static const char text[] =
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=40 needs=none in=-\n"
        "node 1 y input fwd=0 bwd=0 out=24 needs=none in=-\n"
        "node 2 x16 convert fwd=1 bwd=0 out=20 needs=none in=0 grad=no\n"
        "node 3 a conv fwd=5 bwd=0 out=32 needs=none in=2 grad=no\n"
        "node 4 a16 convert fwd=1 bwd=0 out=16 needs=none in=3 grad=no\n"
        "node 5 c add fwd=2 bwd=2 out=48 needs=in in=4,1\n"
        "node 6 d ce fwd=1 bwd=1 out=8 needs=in,out in=5 keep\n";
    static const uint8_t formats[7] = { TL_FORMAT_F32, TL_FORMAT_F32, TL_FORMAT_BF16, TL_FORMAT_F32, TL_FORMAT_F16, TL_FORMAT_F32,
                                        TL_FORMAT_F32 };
    static pair p;
    int side_number, k;
    (void)state;
    pair_open(&p, text, TL_MODE_LAZY, tl_gradient_full(), 0, 0);
    for (side_number = 0; side_number < 2; side_number++) {
        side *s = side_number ? &p.plain : &p.cached;
        p.strategies[side_number].precision = TL_PRECISION_MIXED;
        s->b.desc.formats = formats;
        s->b.desc.kernel_precisions = 1u << TL_PRECISION_MIXED;
        for (k = 0; k < s->b.desc.kernel_count; k++)
            if (!strcmp(s->b.kernels[k].op, "convert")) s->b.kernels[k--] = s->b.kernels[--s->b.desc.kernel_count];
    }
    p.w.is_random[2] = p.w.is_random[4] = 1;    // not asked for
    pair_start(&p);
    assert_int_equal(p.w.asked, 5);
    assert_int_equal(pair_pass(&p, 0), 3);
    assert_int_equal(bed_report(&p.cached.b).cached_bytes, 16);
    assert_int_equal(pair_pass(&p, 0), 2);
    assert_int_equal(bed_report(&p.cached.b).cached_count, 3);
    assert_int_equal(bed_report(&p.cached.b).convert_count, 0);
    pair_change(&p, X, 0);
    assert_int_equal(pair_pass(&p, 0), 3);
    pair_close(&p);
}

// -- random graphs, constants, budgets and changes --

static tl_gradient random_gradient(tl_random *random) {
    switch (random_count(random, 0, 3)) {
    case 0: return tl_gradient_full();
    case 1: return tl_gradient_checkpointed(0);
    case 2: return tl_gradient_checkpointed((uint64_t)random_count(random, 2, 3));
    default: return tl_gradient_none();
    }
}

// What a run of the plain side takes at least, and what the cached one takes if it may.
static void find_bytes(pair *p, uint64_t *least, uint64_t *most) {
    bed *b = &p->plain.b;
    *least = 0;
    bed_must_init(&p->cached.b);
    *most = side_pass(&p->cached, 0).planned_taken_bytes;
    tl_free_run(p->cached.b.run);
    b->desc.budget_bytes = 1;
    if (bed_init(b) == TL_ERROR_INFEASIBLE) *least = tl_find_least_budget(&b->env.error);
    tl_free_run(b->run);
    b->run = NULL;
    memset(&p->cached.forwards, 0, sizeof p->cached.forwards);
}

static void random_change(pair *p, tl_random *random, int *fails) {
    int32_t id = random_count(random, 0, p->graph.node_count - 1);
    *fails = 0;
    switch (random_count(random, 0, 6)) {
    case 0: pair_change(p, id, 1); break;
    case 1: if (p->graph.nodes[id].is_input) pair_change(p, id, 0); break;
    case 2: *fails = 1; break;
    case 3: if (random_chance(random, 30)) { p->w.is_random[id] ^= 1; world_bump(&p->w, id); } break;
    default: break;
    }
    for (id = 0; id < p->graph.node_count; id++)
        if (p->w.is_random[id]) pair_change(p, id, 0);
}

// Returns how many passes ran a part of the graph only.
static long random_run(tl_random *random, pair *p, uint64_t seed, long *limited) {
    uint64_t least, most, budget = 0;
    long warm = 0;
    int k, fails = 0, inference = !p->strategies[0].gradient.computes;
    int32_t id;
    find_bytes(p, &least, &most);
    if (random_chance(random, 60)) budget = least < most ? least + tl_next_random_below(random, most - least + 1) : most;
    if (random_chance(random, 20)) budget = most;       // an arena of exactly that
    if (budget < least) budget = least;
    p->cached.b.desc.budget_bytes = p->plain.b.desc.budget_bytes = budget;
    bed_must_init(&p->cached.b);
    p->plain.b.desc.budget_bytes = 0;
    bed_must_init(&p->plain.b);
    for (id = 0; id < p->graph.node_count; id++)
        if (p->graph.nodes[id].is_input) { side_write(&p->cached, id); side_write(&p->plain, id); }
    for (k = 0; k < 8; k++) {
        tl_run_report report;
        if (k) random_change(p, random, &fails);
        if (fails) {
            p->cached.b.mixer.fail_at = p->cached.b.mixer.calls + random_count(random, 0, 3);
            (void)side_try(&p->cached, 0) ;
            if (p->cached.b.mixer.calls <= p->cached.b.mixer.fail_at) (void)side_pass(&p->plain, 0);
            p->cached.b.mixer.fail_at = -1;
        }
        report = side_pass(&p->cached, 0);
        (void)side_pass(&p->plain, 0);
        if (bed_outcome(&p->cached.b, inference) != bed_outcome(&p->plain.b, inference))
            fail_msg("graph %llu, pass %d: other bytes", (unsigned long long)seed, k);
        warm += report.cached_count > 0;
        *limited += budget && budget < most && report.cached_count > 0;
    }
    return warm;
}

static int has_layers(const tl_graph *graph) {
    int32_t id = 0;
    while (id < graph->node_count && graph->nodes[id].layer < 0) id++;
    return id < graph->node_count;
}

static void random_changes_never_leave_stale_results(void **state) {
    static pair p;
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    uint64_t seed, count = (uint64_t)scaled(250);
    long warm = 0, limited = 0;
    (void)state;
    for (seed = 1; seed <= count; seed++) {
        tl_random random = { seed };
        tl_env env;
        int32_t id;
        tl_gradient gradient;
        int mode = random_chance(&random, 30) ? TL_MODE_EAGER : TL_MODE_LAZY;
        memset(&env, 0, sizeof env);
        memset(&p, 0, sizeof p);
        gradient = random_gradient(&random);
        if (random_graph(&env, &random, 12, &p.graph)) fail_msg("%s", env.error.text);
        p.strategies[0] = strategy_of((tl_mode)mode, gradient, TL_MEMORY_CACHED);
        p.strategies[1] = strategy_of((tl_mode)mode, gradient, TL_MEMORY_POOLED);
        world_init(&p.w, &p.graph);
        for (id = 0; id < p.graph.node_count; id++) p.w.is_random[id] = (uint8_t)random_chance(&random, 15);
        side_open(&p.cached, &p.w, &p.graph, &p.strategies[0], random_count(&random, 0, BACKEND_KINDS - 1), 1);
        side_open(&p.plain, &p.w, &p.graph, &p.strategies[1], 0, 0);
        if (random_chance(&random, 20)) {
            for (id = 0; id < p.graph.node_count; id++)
                largest_block = tli_larger_u64(largest_block, tli_largest_allocation(&p.graph, id, !gradient.computes));
            largest_block = (largest_block + 3) / 4 * 4 + 4 * tl_next_random_below(&random, 20);
            p.cached.b.backend.limits = p.plain.b.backend.limits = limit_blocks;
        }
        if (gradient.checkpointed && !gradient.checkpoint_interval && mode == TL_MODE_LAZY) {
            if (random_chance(&random, 8)) p.cached.b.desc.host_budget_bytes = p.plain.b.desc.host_budget_bytes = 400;
            else if (random_chance(&random, 30) && gradient.computes && has_layers(&p.graph))
                p.cached.b.desc.checkpoints = p.plain.b.desc.checkpoints = &config;
        }
        warm += random_run(&random, &p, seed, &limited);
        largest_block = 0;
        pair_close(&p);
    }
    print_message("%ld of %llu passes were warm, %ld of them below what all takes\n", warm, (unsigned long long)count * 8, limited);
    assert_true(warm > (long)count / 4);
    assert_true(is_thinned() || limited > 0);
}

// -- saving --

typedef struct kept_bytes { unsigned char bytes[8000]; size_t count; } kept_bytes;

static tl_result keep_bytes(void *user, const char *text, size_t length) {
    kept_bytes *k = (kept_bytes *)user;
    if (length > sizeof k->bytes - k->count) return TL_ERROR_IO;
    memcpy(k->bytes + k->count, text, length);
    k->count += length;
    return TL_OK;
}

static tl_result save_side(side *s, kept_bytes *k) {
    tl_sink sink;
    k->count = 0;
    sink.write = keep_bytes;
    sink.user = k;
    return tl_save_run(s->b.run, sink);
}

// Results that are kept are saved with their versions, so the run that goes on does not make them again; a run that keeps
// nothing passes them over, and one that finds none makes its own. In a pass it is not saved.
static void kept_results_are_saved_and_taken_over(void **state) {
    static pair p, other;
    static kept_bytes kept, plain, fresh;
    tl_run_step step;
    tl_random random = { 41 };
    int32_t done, i;
    int kind;
    (void)state;
    for (kind = 0; kind < BACKEND_KINDS; kind++) {
        pair_open(&p, prefix, TL_MODE_LAZY, tl_gradient_none(), kind, 0);
        pair_start(&p);
        if (save_side(&p.cached, &fresh)) fail_msg("%s", p.cached.b.env.error.text);
        assert_int_equal(pair_pass(&p, 0), 4);
        assert_int_equal(pair_pass(&p, 1), 2);
        if (save_side(&p.cached, &kept)) fail_msg("%s", p.cached.b.env.error.text);
        if (save_side(&p.plain, &plain)) fail_msg("%s", p.plain.b.env.error.text);
        pair_open(&other, prefix, TL_MODE_LAZY, tl_gradient_none(), (kind + 1) % BACKEND_KINDS, 0);
        other.w = p.w;
        pair_start(&other);
        assert_int_equal(pair_pass(&other, 0), 4);
        if (tl_load_run(other.cached.b.run, kept.bytes, kept.count)) fail_msg("%s", other.cached.b.env.error.text);
        if (tl_load_run(other.plain.b.run, kept.bytes, kept.count)) fail_msg("%s", other.plain.b.env.error.text);
        assert_int_equal(pair_pass(&p, 2), 2);
        assert_int_equal(pair_pass(&other, 2), 2);
        assert_int_equal(bed_outcome(&other.cached.b, 1), bed_outcome(&p.cached.b, 1));
        if (tl_load_run(other.cached.b.run, plain.bytes, plain.count)) fail_msg("%s", other.cached.b.env.error.text);
        if (tl_load_run(other.plain.b.run, plain.bytes, plain.count)) fail_msg("%s", other.plain.b.env.error.text);
        assert_int_equal(pair_pass(&other, 2), 4);
        assert_int_equal(bed_outcome(&other.cached.b, 1), bed_outcome(&p.cached.b, 1));
        if (tl_load_run(other.cached.b.run, fresh.bytes, fresh.count)) fail_msg("%s", other.cached.b.env.error.text);
        if (tl_load_run(other.plain.b.run, fresh.bytes, fresh.count)) fail_msg("%s", other.plain.b.env.error.text);
        assert_int_equal(pair_pass(&other, 0), 4);
        for (i = 0; i < scaled(700); i++) {     // altered data is refused, or it is other numbers; what runs next is whole
            size_t at = (size_t)tl_next_random_below(&random, i % 2 ? 320 : kept.count - 8), k;
            unsigned char was;
            uint64_t sum;
            if (i % 2) at = kept.count - 8 - at % (kept.count - 8) - 1;
            was = kept.bytes[at];
            kept.bytes[at] ^= (unsigned char)(1 + tl_next_random_below(&random, 255));
            sum = tli_checksum_bytes(0, kept.bytes, kept.count - 8);
            for (k = 0; k < 8; k++) kept.bytes[kept.count - 8 + k] = (unsigned char)(sum >> (8 * k));
            (void)tl_load_run(other.cached.b.run, kept.bytes, kept.count);
            kept.bytes[at] = was;
        }
        if (tl_load_run(other.cached.b.run, fresh.bytes, fresh.count)) fail_msg("%s", other.cached.b.env.error.text);
        side_write_all(&other.cached);
        assert_int_equal(pair_pass(&other, 0), 4);
        mixer_start_pass(&p.cached.b.mixer);
        if (tl_start_pass(p.cached.b.run, 3)) fail_msg("%s", p.cached.b.env.error.text);
        if (tl_next_step(p.cached.b.run, &step, &done)) fail_msg("%s", p.cached.b.env.error.text);
        assert_int_equal(save_side(&p.cached, &kept), TL_ERROR_INVALID_ARG);   // a step is under way
        if (tl_run_step_kernel(p.cached.b.run, &step)) fail_msg("%s", p.cached.b.env.error.text);
        assert_int_equal(save_side(&p.cached, &kept), TL_ERROR_UNSUPPORTED);
        assert_string_equal(p.cached.b.env.error.text, "tl_save_run: run: in a pass, only a plan with places that is run as it is can be saved");
        if (tl_reset_run(p.cached.b.run)) fail_msg("%s", p.cached.b.env.error.text);
        pair_close(&other);
        pair_close(&p);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_prefix_of_inference_runs_once),
        cmocka_unit_test(what_may_run_once_only_runs_in_every_pass),
        cmocka_unit_test(what_changes_runs_again),
        cmocka_unit_test(write_without_new_version_counts_as_change),
        cmocka_unit_test(version_that_becomes_unknown_runs_in_every_pass),
        cmocka_unit_test(frozen_layers_run_once_in_training),
        cmocka_unit_test(run_plan_takes_the_versions_after_the_load_hook),
        cmocka_unit_test(pass_after_a_failed_one_is_full),
        cmocka_unit_test(pass_after_a_reset_one_is_full),
        cmocka_unit_test(backend_that_fails_leaves_no_stale_results),
        cmocka_unit_test(caller_cannot_write_what_is_kept),
        cmocka_unit_test(without_versions_cached_is_pooled),
        cmocka_unit_test(cached_refuses_what_makes_other_plans),
        cmocka_unit_test(everything_constant_runs_nothing),
        cmocka_unit_test(budget_decides_how_much_is_kept),
        cmocka_unit_test(every_allocation_of_init_fails_in_turn),
        cmocka_unit_test(arenas_in_blocks_keep_results),
        cmocka_unit_test(conversions_of_a_constant_prefix_run_once),
        cmocka_unit_test(random_changes_never_leave_stale_results),
        cmocka_unit_test(kept_results_are_saved_and_taken_over),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
