// [12] RUN: plans, online runs, layers; what they compute, what they take, and how they fail.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include "support/run_support.h"
#include "support/run_bed.h"
#include "support/record_support.h"
#include "support/texts.h"


static tl_result simulate(const tl_graph *graph, const tl_plan *plan, uint64_t alignment, tl_report *report) {
    tl_env env;
    tl_simulate_desc desc;
    tl_device device;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    device.alignment_bytes = alignment;
    desc.graph = graph;
    desc.plan = plan;
    desc.device = &device;
    return tl_simulate_plan(&env, &desc, report);
}

// The number in front of " bytes" in an error text.
static uint64_t named_bytes(const char *text) {
    const char *at = strstr(text, " bytes");
    assert_non_null(at);
    while (at > text && at[-1] >= '0' && at[-1] <= '9') at--;
    return (uint64_t)strtoull(at, NULL, 10);
}

// Two steps under a plan, held against its simulation and, if wanted, against another outcome.
static uint64_t run_plan_twice(const tl_graph *graph, const tl_plan *plan, int kind, uint64_t seed, int32_t repeat,
                               const uint64_t *expected) {
    static bed b;
    tl_report simulated;
    tl_run_report report;
    tl_backend_counters counters;
    uint64_t sum;
    uint64_t alignment = plan->offset_count ? 4 : 1;
    if (simulate(graph, plan, alignment, &simulated)) fail_msg("%s", "the plan is not valid");
    bed_open(&b, graph, kind, seed, alignment);
    b.desc.plan = plan;
    b.desc.repeat_count = repeat;
    bed_must_init(&b);
    (void)bed_step(&b, plan->inference);
    sum = bed_step(&b, plan->inference);
    report = bed_report(&b);
    assert_int_equal(report.planned_peak_bytes, simulated.peak_bytes);
    assert_int_equal(report.measured_peak_bytes, simulated.peak_bytes);
    assert_int_equal(report.measured_host_peak_bytes, simulated.host_peak_bytes);
    if (plan->offset_count) assert_int_equal(report.measured_arena_bytes, simulated.arena_bytes);
    assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
    bed_check_taken(&report);
    assert_true(report.planned_taken_bytes >= report.measured_peak_bytes);
    assert_int_equal(report.forward_count, simulated.forward_count);
    assert_int_equal(report.recompute_count, simulated.recompute_count);
    assert_int_equal(report.backward_count, simulated.backward_count);
    assert_int_equal(report.spill_count + report.fetch_count, simulated.copy_count);
    assert_int_equal(report.compress_count + report.expand_count, simulated.codec_count);
    assert_int_equal(report.step_count, plan->step_count);
    assert_int_equal(b.mixer.forwards, 2 * repeat * simulated.forward_count);
    assert_int_equal(b.mixer.recomputes, 2 * repeat * simulated.recompute_count);
    assert_int_equal(b.mixer.backwards, 2 * repeat * simulated.backward_count);
    counters = spy_count(&b.spy);
    assert_int_equal(counters.live_bytes[TL_TIER_DEVICE], simulated.end_bytes);
    assert_int_equal(counters.live_bytes[TL_TIER_HOST], simulated.end_host_bytes);
    if (expected && sum != *expected) fail_msg("the outcome differs on a backend of kind %d", kind);
    bed_close(&b);
    return sum;
}

static int is_lossy(const tl_plan *plan) {
    int32_t i;
    for (i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == TL_STEP_COMPRESS) return 1;
    return 0;
}

// -- random graphs --

// The same evicted every time: rehearsed and run.
static int32_t evict_somehow(const tl_checkpoint_info *candidates, int32_t count, void *user) {
    long *asked = (long *)user;
    int32_t i;
    ++*asked;
    for (i = 0; i < count; i++) {
        assert_true(candidates[i].key.node >= 0);
        assert_true(candidates[i].held_bytes > 0);
        assert_true(candidates[i].in_memory && candidates[i].tier == TL_TIER_DEVICE);
        assert_true(candidates[i].last_use >= candidates[i].timestamp || !candidates[i].last_use);
    }
    return (int32_t)(tl_mix_u64((uint64_t)count, candidates[0].timestamp) % (uint64_t)count);
}

static void random_online_desc(tl_random *random, bed *b, uint64_t peak, long *asked) {
    tl_run_desc *desc = &b->desc;
    desc->eviction = (tl_eviction)tl_next_random_below(random, TL_EVICTION_COUNT);
    if (desc->eviction == TL_EVICTION_CALLER) { desc->evict = evict_somehow; desc->evict_user = asked; }
    switch (tl_next_random_below(random, 5)) {
    case 0: desc->policy = tl_policy_none(); break;
    case 1: desc->policy = tl_policy_every_n(1 + tl_next_random_below(random, 4)); break;
    case 2: desc->policy = tl_policy_selective(tl_next_random_below(random, 25)); break;
    default: break;
    }
    if (random_chance(random, 40)) desc->host_budget_bytes = 1 + tl_next_random_below(random, random_chance(random, 50) ? 60 : 4 * peak);
    if (random_chance(random, 20)) desc->base_bytes = 1 + tl_next_random_below(random, 1000);
    if (random_chance(random, 90)) desc->budget_bytes = desc->base_bytes + 1 + tl_next_random_below(random, peak);
}

// Init under any budget. One that is too small names one that works, whatever it was; without an arena one byte less
// does not.
static void init_online(bed *b, tl_random *random) {
    uint64_t named;
    tl_result result = bed_init(b);
    if (!result) return;
    if (result != TL_ERROR_INFEASIBLE) fail_msg("%s", b->env.error.text);
    named = named_bytes(b->env.error.text);
    assert_true(named > b->desc.budget_bytes);
    if (random_chance(random, 30) && named > 1) {
        b->desc.budget_bytes = named - 1;
        result = bed_init(b);
        if (result || b->desc.evict) {
            assert_int_equal(result, TL_ERROR_INFEASIBLE);
            assert_null(b->run);
            assert_int_equal(named_bytes(b->env.error.text), named);
        }
        tl_free_run(b->run);
    }
    b->desc.budget_bytes = named;
    bed_must_init(b);
}

// A random online run: the outcome of keeping all, within the budget, and recorded as a plan that
// the simulator accepts and the executor replays.
static void run_online(const tl_graph *graph, tl_random *random, int inference, int32_t repeat, uint64_t peak,
                       uint64_t expected, long *recomputes) {
    static bed b;
    static tl_step steps[20000];
    tl_plan plan, rehearsed;
    tl_report simulated;
    tl_run_report report;
    uint64_t first_budget;
    long asked = 0;
    int kind = (int)tl_next_random_below(random, BACKEND_KINDS);
    bed_open(&b, graph, kind, tl_next_random(random), 1);
    b.desc.inference = inference;
    b.desc.repeat_count = repeat;
    random_online_desc(random, &b, peak, &asked);
    first_budget = b.desc.budget_bytes;
    init_online(&b, random);
    b.spy.limit = b.desc.budget_bytes ? b.desc.budget_bytes - b.desc.base_bytes : 0;
    tl_find_run_plan(b.run, &rehearsed);
    assert_true((size_t)rehearsed.step_count <= sizeof steps / sizeof *steps);
    memcpy(steps, rehearsed.steps, (size_t)rehearsed.step_count * sizeof *steps);
    (void)bed_step(&b, inference);
    if (b.desc.budget_bytes == first_budget) assert_int_equal(b.logged, 0);  // what works is silent
    if (bed_step(&b, inference) != expected) fail_msg("online, the outcome differs on a backend of kind %d", kind);
    assert_false(b.spy.went_over);
    report = bed_report(&b);
    *recomputes += report.recompute_count;
    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    if (b.desc.budget_bytes) assert_true(b.desc.base_bytes + report.measured_peak_bytes <= b.desc.budget_bytes);
    if (b.desc.eviction != TL_EVICTION_CALLER) {    // one arena, and the budget binds it
        bed_check_taken(&report);
        assert_int_equal(rehearsed.arena_bytes, report.measured_arena_bytes);
        if (b.desc.budget_bytes) assert_true(b.desc.base_bytes + report.planned_taken_bytes <= b.desc.budget_bytes);
        assert_true(spy_count(&b.spy).block_count[TL_TIER_DEVICE] <= 1);
    }
    assert_true(report.measured_host_peak_bytes <= b.desc.host_budget_bytes);
    tl_find_run_plan(b.run, &plan);
    assert_int_equal(plan.step_count, rehearsed.step_count);  // what was tried out is what ran
    assert_memory_equal(plan.steps, steps, (size_t)plan.step_count * sizeof *steps);
    if (simulate(graph, &plan, 1, &simulated)) fail_msg("%s", "the record is not a valid plan");
    assert_int_equal(simulated.peak_bytes, report.measured_peak_bytes);
    assert_int_equal(plan.peak_bytes, simulated.peak_bytes);
    assert_int_equal(plan.cost, simulated.cost);
    assert_int_equal(spy_count(&b.spy).live_bytes[TL_TIER_DEVICE], simulated.end_bytes);
    assert_int_equal(spy_count(&b.spy).live_bytes[TL_TIER_HOST], 0);
    bed_close(&b);
    plan.steps = steps;
    plan.repeat_count = 0;
    plan.offsets = plan.host_offsets = NULL;    // they went with the run
    plan.offset_count = plan.host_offset_count = 0;
    if (random_chance(random, 20)) (void)run_plan_twice(graph, &plan, kind ^ 3, 7, repeat, &expected);
}

// -- nodes that run once only --

#define EFFECT_TEXT(attributes)                                                         \
    "tlg 1\n"                                                                           \
    "node 0 x input fwd=0 bwd=0 out=32 needs=none in=-\n"                               \
    "node 1 a op fwd=1 bwd=1 out=32 needs=in in=0" attributes "\n"                      \
    "node 2 b op fwd=9 bwd=1 out=32 needs=in in=1\n"                                    \
    "node 3 c op fwd=9 bwd=1 out=32 needs=in in=2\n"                                    \
    "node 4 d op fwd=9 bwd=1 out=32 needs=in in=3\n"                                    \
    "node 5 e op fwd=9 bwd=1 out=32 needs=in in=4\n"

// Steps of a kind on a node in an online pass; the outcome is that of keeping all.
static int32_t count_online(const char *text, uint64_t budget, uint64_t host, tl_step_kind kind, int32_t node) {
    static bed b;
    tl_graph graph = graph_of(text);
    uint64_t peak, expected = keep_all_outcome(&graph, 0, 1, &peak);
    tl_plan plan;
    int32_t i, count = 0;
    bed_open(&b, &graph, 0, 5, 1);
    b.desc.budget_bytes = budget;
    b.desc.host_budget_bytes = host;
    bed_must_init(&b);
    (void)bed_step(&b, 0);
    assert_int_equal(bed_step(&b, 0), expected);
    tl_find_run_plan(b.run, &plan);
    for (i = 0; i < plan.step_count; i++) count += plan.steps[i].kind == kind && plan.steps[i].node == node;
    bed_close(&b);
    tl_free_graph(NULL, &graph);
    return count;
}

// The cheapest to make again is a. Where it may not be, it stays; with room on the host it goes there.
static void an_online_run_makes_once_what_may_run_once_only(void **state) {
    (void)state;
    assert_true(count_online(EFFECT_TEXT(""), 192, 0, TL_STEP_FORWARD, 1) > 1);
    assert_int_equal(count_online(EFFECT_TEXT(" once"), 192, 0, TL_STEP_FORWARD, 1), 1);
    assert_int_equal(count_online(EFFECT_TEXT(" once"), 192, 0, TL_STEP_SPILL, 1), 0);
    assert_int_equal(count_online(EFFECT_TEXT(" once"), 192, 320, TL_STEP_FORWARD, 1), 1);
    assert_int_equal(count_online(EFFECT_TEXT(" once"), 192, 320, TL_STEP_SPILL, 1), 1);
    // policy none keeps nothing, so it would save late: its only run is the one that saves
    assert_int_equal(count_online(EFFECT_TEXT(" saved=8 fwork=64 swork=16 once"), 192, 0, TL_STEP_FORWARD_SAVE, 1), 1);
}

// An input that dies is freed when nothing can be made again from it, and never compressed.
static void an_online_run_frees_inputs_that_die(void **state) {
    static bed b;
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-%s\n"
                               "node 1 a op fwd=1 bwd=1 out=32 needs=none in=0\nnode 2 b op fwd=1 bwd=1 out=32 needs=in in=1\n"
                               "node 3 c op fwd=1 bwd=1 out=32 needs=in in=2\nnode 4 d op fwd=1 bwd=1 out=96 needs=in in=3\nend 5\n";
    uint64_t named[2][2];
    int dies, inference, i;
    (void)state;
    for (i = 0; i < 4; i++) {
        char whole[1000];
        tl_graph graph;
        tl_plan plan;
        int drops = 0, k;
        dies = i % 2;
        inference = i / 2;
        (void)snprintf(whole, sizeof whole, text, dies ? " dies" : "");
        graph = graph_of(whole);
        bed_open(&b, &graph, 0, 5, 1);
        b.desc.codec = inference ? TL_CODEC_NONE : TL_CODEC_Q8;
        b.desc.inference = inference;
        b.desc.budget_bytes = 1;
        assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
        b.desc.budget_bytes = named[inference][dies] = named_bytes(b.env.error.text);
        bed_must_init(&b);
        (void)bed_step(&b, inference);
        tl_find_run_plan(b.run, &plan);
        for (k = 0; k < plan.step_count; k++) {
            drops += plan.steps[k].kind == TL_STEP_DROP && plan.steps[k].node == 0;
            assert_false(plan.steps[k].kind == TL_STEP_COMPRESS && plan.steps[k].node == 0);
        }
        assert_int_equal(drops, dies);
        bed_close(&b);
        tl_free_graph(NULL, &graph);
    }
    for (i = 0; i < 2; i++) assert_int_equal(named[i][1], named[i][0]);
}

// What an online run needs at least with everything else evicted is named; scratch of a save counts as swork.
static void swork_is_what_an_online_run_needs(void **state) {
    static const char *const texts[] = { EFFECT_TEXT(" saved=8 fwork=2000 swork=16 once"), EFFECT_TEXT(" saved=8 fwork=16 swork=2000 once") };
    uint64_t named[2];
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        static bed b;
        tl_graph graph = graph_of(texts[i]);
        bed_open(&b, &graph, 0, 5, 1);
        b.desc.budget_bytes = 1;
        assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
        named[i] = named_bytes(b.env.error.text);
        b.desc.budget_bytes = named[i];
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        bed_close(&b);
        tl_free_graph(NULL, &graph);
    }
    assert_true(named[0] < 500 && named[1] == 32 + 32 + 8 + 2000);
}

static void random_graphs_give_the_gradients_of_keep_all(void **state) {
    tl_random random;
    long round, rounds = scaled(1000), recomputes = 0, lossless = 0, lossy = 0;
    (void)state;
    random.state = 12;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        tl_report report;
        uint8_t keep[256];
        uint64_t expected, peak;
        int32_t i, repeat = random_count(&random, 1, random_chance(&random, 30) ? 3 : 1);
        int inference = random_chance(&random, 25);
        memset(&env, 0, sizeof env);
        if (random_effect_graph(&env, &random, 24, round % 3 * 15, &graph)) fail_msg("%s", env.error.text);
        if (round % 4 == 3) (void)random_let_inputs_die(&random, &graph);
        expected = keep_all_outcome(&graph, inference, repeat, &peak);
        for (i = 0; i < graph.tensor_count; i++) keep[i] = (uint8_t)random_chance(&random, 50);
        if (!inference) {
            if (tl_plan_kept_set(&env, &graph, keep, &plan)) fail_msg("%s", env.error.text);
            (void)run_plan_twice(&graph, &plan, (int)(round % BACKEND_KINDS), 3, repeat, &expected);
            tl_free_plan(&env, &plan);
        }
        for (i = 0; i < 2; i++) run_online(&graph, &random, inference, repeat, peak ? peak : 1, expected, &recomputes);
        // A random walk: spills, fetches, in place, saves again; lossy ones agree among the backends.
        if (random_plan(&env, &random, &graph, &plan)) fail_msg("%s", "out of memory");
        if (!simulate(&graph, &plan, 1, &report)) {
            uint64_t own = keep_all_outcome(&graph, plan.inference, repeat, NULL);
            int exact = !is_lossy(&plan) && !plan.any_order;
            uint64_t first = run_plan_twice(&graph, &plan, 0, 0, repeat, exact ? &own : NULL);
            (void)run_plan_twice(&graph, &plan, 1 + (int)(round % 3), tl_next_random(&random), repeat, &first);
            if (exact) lossless++; else lossy++;
        } else {
            static bed b;
            bed_open(&b, &graph, 0, 0, 1);
            b.desc.plan = &plan;
            assert_int_equal(bed_init(&b), TL_ERROR_INVALID_PLAN);
            assert_null(b.run);
            bed_close(&b);
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    printf("%ld graphs, %ld forwards run again online, %ld lossless walks, %ld others\n", rounds, recomputes, lossless, lossy);
    assert_true(recomputes > rounds && lossless > rounds / 10 && lossy > rounds / 20);
}

// Offsets of the library in the place of random ones, where the plan is valid: no more than those take.
static void place_well(tl_env *env, tl_random *random, const tl_graph *graph, const tl_device *device, tl_plan *plan) {
    tl_places_desc desc;
    tl_places_report report;
    tl_report before;
    tl_plan placed = *plan;
    uint64_t *offsets;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.device = device;
    desc.work_limit = random_chance(random, 50) ? 1 : 1000000;
    placed.memory = NULL;       // both arrays stay the caller's
    if (tl_plan_places(env, &desc, &placed, &report)) return;
    if (desc.work_limit > 1 && !simulate(graph, plan, (int32_t)device->alignment_bytes, &before))
        assert_true(report.arena_bytes <= before.arena_bytes);
    offsets = (uint64_t *)calloc((size_t)placed.offset_count + 1, sizeof *offsets);
    assert_non_null(offsets);
    memcpy(offsets, placed.offsets, (size_t)placed.offset_count * sizeof *offsets);
    free((void *)(uintptr_t)plan->offsets);
    plan->offsets = offsets;
    plan->offset_count = placed.offset_count;
    tl_free_plan(env, &placed);
}

// Offsets by first fit, some of them broken, or of the library: measured arena = simulated, or the plan is refused.
static void plans_with_offsets_measure_the_arena_that_was_planned(void **state) {
    tl_random random;
    long round, placed = 0, refused = 0;
    (void)state;
    random.state = 6;
    for (round = 0; round < scaled(300); round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan, apart;
        tl_device device;
        tl_report report;
        memset(&env, 0, sizeof env);
        memset(&device, 0, sizeof device);
        device.alignment_bytes = 4;
        if (random_graph(&env, &random, 16, &graph)) fail_msg("%s", env.error.text);
        if (random_plan(&env, &random, &graph, &plan)) fail_msg("%s", "out of memory");
        if (random_offsets(&env, &random, &graph, &device, &plan)) fail_msg("%s", "out of memory");
        if (round % 3 == 0) place_well(&env, &random, &graph, &device, &plan);
        plan.alignment_bytes = 4;
        if (!simulate(&graph, &plan, 4, &report)) {
            uint64_t expected;
            apart = plan;
            apart.offsets = NULL;
            apart.offset_count = 0;
            expected = run_plan_twice(&graph, &apart, 0, 0, 1, NULL);
            (void)run_plan_twice(&graph, &plan, (int)(round % BACKEND_KINDS), tl_next_random(&random), 2, NULL);
            (void)run_plan_twice(&graph, &plan, (int)(round / 4 % BACKEND_KINDS), tl_next_random(&random), 1, &expected);
            placed++;
        } else {
            static bed b;
            bed_open(&b, &graph, 0, 0, 4);
            b.desc.plan = &plan;
            assert_int_equal(bed_init(&b), TL_ERROR_INVALID_PLAN);
            bed_close(&b);
            refused++;
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    printf("%ld plans placed, %ld refused\n", placed, refused);
    assert_true(is_thinned() || (placed > 80 && refused > 30));
}

// -- one graph with everything --

static const char *const everything =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8,4 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=32 needs=in in=0 saved=4 fwork=2 bwork=6 layer=0\n"
    "node 2 b relu fwd=1 bwd=2 out=32 needs=out in=1 inplace=0 layer=1\n"
    "node 3 s split fwd=4 bwd=3 out=12,20 needs=out1 in=2,0.1 layer=2\n"
    "node 4 c add fwd=2 bwd=2 out=16 needs=in0 in=3.0,3.1,1 keep layer=3\n"
    "node 5 f mask fwd=7 bwd=0 out=2 needs=none in=1 grad=no\n"
    "node 6 l ce fwd=1 bwd=1 out=4 needs=in,out in=4,2 saved=8 layer=4\n";

// Every kind of step but the lossy ones, and one with those.
static const char *const lossless_steps =
    "S 1\nF 2\nO 1\nF 3\nW 1\nL 1\nW 1\nF 4\nF 5\nD 5\nS 6\nDS 6\nD 6\nS 6\nB 6\nD 6\nB 4\nD 3.0\nB 3\nD 3.1\nD 2\n"
    "I 2\nB 2\nD 2\nDH 1\nB 1\n";
static const char *const lossy_steps =
    "S 1\nF 2\nO 1\nF 3\nW 1\nC 3 bf16\nX 3\nL 1\nW 1\nF 4\nF 5\nD 5\nC 2 q8\nX 2\nS 6\nB 6\nD 6\nB 4\nD 3.0\nB 3\nD 3.1\n"
    "B 2\nD 2\nDH 1\nB 1\nD 1\n";

static tl_tensor tensor_of(int32_t node, int32_t output) {
    tl_tensor tensor;
    tensor.node = node;
    tensor.output = output;
    return tensor;
}

// -- chains --

// Equal layers of one byte, saved_bytes for each of them, on a backend; the run is made by chain_init.
static void chain_open(bed *b, int32_t layer_count, uint64_t saved_bytes, tl_layer *layers, int kind) {
    static tl_graph none;
    int32_t i;
    bed_open(b, &none, kind, 5, 1);
    b->desc.load = NULL;
    memset(layers, 0, (size_t)layer_count * sizeof *layers);
    for (i = 0; i < layer_count; i++) {
        layers[i].forward = mixer_forward;
        layers[i].backward = mixer_backward;
        layers[i].user = &b->mixer;
        layers[i].output_bytes = 1;
        layers[i].saved_bytes = saved_bytes;
    }
}

static void chain_init(bed *b, int32_t layer_count, const tl_layer *layers) {
    if (tl_init_layer_run(&b->env, &b->desc, layers, layer_count, 1, &b->run)) fail_msg("%s", b->env.error.text);
    b->graph = tl_find_run_graph(b->run);
    mixer_start_pass(&b->mixer);
}

static uint64_t chain_keep_all(int32_t layer_count, uint64_t saved_bytes, tl_layer *layers) {
    static bed b;
    uint64_t sum;
    chain_open(&b, layer_count, saved_bytes, layers, 0);
    chain_init(&b, layer_count, layers);
    sum = bed_step(&b, 0);
    assert_int_equal(b.mixer.forwards, layer_count);
    bed_close(&b);
    return sum;
}

// Forwards counted by the kernels under revolve's plan.
static long chain_revolve(int32_t layer_count, int32_t slots, uint64_t saved_bytes, uint64_t expected) {
    static bed b;
    static uint64_t saved[1000];
    tl_graph graph;
    tl_plan plan;
    tl_chain_desc chain;
    long forwards;
    int32_t i;
    tl_env env;
    memset(&env, 0, sizeof env);
    memset(&chain, 0, sizeof chain);
    for (i = 0; i < layer_count; i++) saved[i] = saved_bytes;
    chain.layer_count = layer_count;
    chain.input_bytes = 1;
    chain.saved_bytes = saved;
    if (tl_add_chain(&env, &graph, &chain) || tl_plan_revolve(&env, &graph, slots, &plan)) fail_msg("%s", env.error.text);
    bed_open(&b, &graph, BACKEND_CHECKED, 1, 1);
    b.desc.plan = &plan;
    b.desc.load = NULL;
    bed_must_init(&b);
    assert_int_equal(bed_step(&b, 0), expected);
    assert_int_equal(bed_report(&b).forward_count, b.mixer.forwards);
    forwards = b.mixer.forwards;
    bed_close(&b);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
    return forwards;
}

// Griewank and Walther's numbers: forwards without saving.
static const struct { int32_t layers, slots; long advances; } revolve_rows[] = {
    { 10, 2, 20 }, { 10, 3, 15 }, { 10, 5, 13 }, { 10, 10, 9 },
    { 100, 2, 845 }, { 100, 3, 490 }, { 100, 5, 316 }, { 100, 10, 222 },
    { 1000, 2, 28820 }, { 1000, 3, 12155 }, { 1000, 5, 6284 }, { 1000, 10, 3636 },
};

static void chains_run_as_many_forwards_as_revolve_says(void **state) {
    static tl_layer layers[1000];
    size_t k;
    (void)state;
    printf("layers slots   revolve  counted   with saved  online: worst of the evictions\n");
    for (k = 0; k < sizeof revolve_rows / sizeof *revolve_rows; k++) {
        int32_t n = revolve_rows[k].layers, slots = revolve_rows[k].slots;
        uint64_t expected = chain_keep_all(n, 0, layers), saving = chain_keep_all(n, 1, layers);
        long planned = chain_revolve(n, slots, 0, expected), saved = chain_revolve(n, slots, 1, saving), worst = 0;
        int eviction;
        if (is_slow() && n > 100) continue;
        assert_int_equal(planned, revolve_rows[k].advances + 1);  // the last layer's own
        assert_int_equal(saved, revolve_rows[k].advances + n);
        for (eviction = 0; eviction < TL_EVICTION_CALLER; eviction++) {
            static bed b;
            chain_open(&b, n, 0, layers, BACKEND_CHECKED);
            b.desc.budget_bytes = b.spy.limit = (uint64_t)slots + 3;
            b.desc.eviction = (tl_eviction)eviction;
            chain_init(&b, n, layers);
            assert_int_equal(bed_step(&b, 0), expected);
            assert_false(b.spy.went_over);
            if (b.mixer.forwards > worst) worst = b.mixer.forwards;
            bed_close(&b);
        }
        printf("%6d %5d %9ld %8ld %12ld %8ld = x %.3f\n", n, slots, revolve_rows[k].advances, planned, saved, worst,
               (double)worst / (double)planned);
        assert_true(worst <= 2 * planned);
    }
}

static void chains_agree_with_the_reference_table(void **state) {
    static tl_layer layers[1000];
    char *text = read_reference("chains_agree_with_the_reference_table", "unit_revolve.csv", NULL), *line;
    long rows = 0;
    (void)state;
    if (!text) skip();
    for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        long n, slots, repetitions, advances, total;
        if (sscanf(line, " %ld,%ld,%ld,%ld,%ld", &n, &slots, &repetitions, &advances, &total) != 5 || n > (is_slow() ? 100 : 1000)) continue;
        assert_int_equal(chain_revolve((int32_t)n, (int32_t)slots, 0, chain_keep_all((int32_t)n, 0, layers)), advances + 1);
        assert_int_equal(total, advances + n);
        rows++;
    }
    free(text);
    assert_true(rows >= (is_slow() ? 10 : 40));
}

// -- planted faults: each must be seen --

// A chain reversed with few slots, so that every fault in a recomputation reaches gradients.
static void fault_open(bed *b, tl_graph *graph, tl_plan *plan, int kind) {
    tl_chain_desc chain;
    memset(&chain, 0, sizeof chain);
    memset(&b->env, 0, sizeof b->env);
    chain.layer_count = 12;
    chain.input_bytes = 1;
    if (tl_add_chain(&b->env, graph, &chain) || tl_plan_revolve(&b->env, graph, 3, plan)) fail_msg("%s", b->env.error.text);
    bed_open(b, graph, kind, 3, 1);
    b->desc.plan = plan;
}

static void fault_close(bed *b, tl_graph *graph, tl_plan *plan) {
    bed_close(b);
    tl_free_plan(NULL, plan);
    tl_free_graph(NULL, graph);
}

static void a_recomputation_that_does_nothing_changes_gradients(void **state) {
    static bed b;
    tl_graph graph;
    tl_plan plan;
    int fault;
    (void)state;
    for (fault = 0; fault < 3; fault++) {
        uint64_t expected;
        fault_open(&b, &graph, &plan, BACKEND_CHECKED);
        expected = keep_all_outcome(&graph, 0, 1, NULL);
        b.mixer.skips_recompute = fault == 1;
        b.mixer.reseeds_recompute = fault == 2;  // another dropout mask
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        if (fault) assert_int_not_equal(bed_step(&b, 0), expected);
        else assert_int_equal(bed_step(&b, 0), expected);
        fault_close(&b, &graph, &plan);
    }
}

static void a_plan_without_one_of_its_recomputations_is_refused(void **state) {
    static bed b;
    tl_graph graph;
    tl_plan plan, less;
    int32_t at, removed = 0;
    tl_step steps[512];
    (void)state;
    fault_open(&b, &graph, &plan, 0);
    for (at = 0; at < plan.step_count; at++) {
        if (plan.steps[at].kind != TL_STEP_FORWARD) continue;
        assert_true(plan.step_count <= 512);
        memcpy(steps, plan.steps, (size_t)plan.step_count * sizeof *steps);
        memmove(steps + at, steps + at + 1, (size_t)(plan.step_count - at - 1) * sizeof *steps);
        less = plan;
        less.steps = steps;
        less.step_count--;
        b.desc.plan = &less;
        assert_int_equal(bed_init(&b), TL_ERROR_INVALID_PLAN);
        assert_null(b.run);
        removed++;
    }
    assert_true(removed > 20);
    fault_close(&b, &graph, &plan);
}

// Random state that lives outside the seed: right with the hook, wrong without.
static void random_state_needs_the_hook_and_repeats_with_it(void **state) {
    static bed b;
    tl_graph graph;
    tl_plan plan, keep_all;
    uint64_t expected = 0;
    int hooked;
    (void)state;
    for (hooked = -1; hooked < 2; hooked++) {  // -1: keep all, nothing repeats
        uint64_t sum;
        fault_open(&b, &graph, &plan, BACKEND_CHECKED);
        b.mixer.uses_stream = 1;
        b.mixer.stream = 77;
        if (hooked < 0) {
            if (tl_plan_keep_all(&b.env, &graph, 0, &keep_all)) fail_msg("%s", b.env.error.text);
            b.desc.plan = &keep_all;
        }
        if (hooked > 0) { b.desc.random = mixer_random_hook; b.desc.random_user = &b.mixer; }
        bed_must_init(&b);
        sum = bed_step(&b, 0);
        sum = tl_mix_u64(sum, bed_step(&b, 0));
        if (hooked < 0) { expected = sum; tl_free_plan(NULL, &keep_all); }
        if (hooked == 0) assert_int_not_equal(sum, expected);
        if (hooked > 0) {
            assert_int_equal(sum, expected);
            assert_int_equal(b.mixer.moments[TL_RANDOM_RECORD], 2 * 12);
            assert_int_equal(b.mixer.moments[TL_RANDOM_REPLAY], b.mixer.recomputes);
            assert_int_equal(b.mixer.moments[TL_RANDOM_RESUME], b.mixer.recomputes);
        }
        fault_close(&b, &graph, &plan);
    }
}

static void a_kernel_that_writes_what_it_may_only_read_is_caught(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    int stray, kind;
    (void)state;
    for (kind = BACKEND_CHECKED; kind < BACKEND_KINDS; kind += BACKEND_DEFERRED)
        for (stray = STRAY_INPUT; stray <= STRAY_SAVED; stray++) {
            long call, caught = 0;
            uint64_t expected = keep_all_outcome(&graph, 0, 1, NULL);
            for (call = 0; call < 14; call++) {
                tl_result result;
                bed_open(&b, &graph, kind, 1, 4);
                b.desc.plan = &plan;
                bed_must_init(&b);
                b.mixer.stray = (mixer_stray)stray;
                b.mixer.stray_at = call;
                result = tl_run_plan(b.run);
                if (result) {
                    assert_int_equal(result, TL_ERROR_CORRUPT);
                    assert_non_null(strstr(b.env.error.text, "tl_run_plan: step "));
                    caught++;
                }
                b.mixer.stray = STRAY_NOT;
                if (result) memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
                if (result) (void)bed_step(&b, 0);
                if (result) assert_int_equal(bed_step(&b, 0), expected);
                bed_close(&b);
            }
            assert_int_equal(caught, stray == STRAY_INPUT ? 10 : stray == STRAY_GRADIENT ? 5 : 2);
        }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// A write that no mapping can see: around a block, or to a dead range of an arena.
static void a_kernel_that_writes_outside_its_ranges_is_caught(void **state) {
    static uint64_t words[1 << 13];
    static const uint64_t offsets[] = { 0, 64, 128, 192, 64 };
    static const tl_step steps[] = {
        { TL_STEP_FORWARD, 0, 0, 1, -1, 0 }, { TL_STEP_FORWARD, 0, 0, 2, -1, 0 }, { TL_STEP_DROP, 0, 0, 1, -1, 0 }, { TL_STEP_FORWARD, 0, 0, 3, -1, 0 },
        { TL_STEP_DROP, 0, 0, 2, -1, 0 }, { TL_STEP_FORWARD, 0, 0, 4, -1, 0 }, { TL_STEP_DROP, 0, 0, 3, -1, 0 },
    };
    // From the start of the arena. 1: before it; 2: behind it; 3, 4: tensor 1 after its DROP; 5: between two ranges.
    static const int bytes[] = { 0, -1, 256, 64, 64 + 9, 40 };
    char *arena = (char *)words + (64 - ((uintptr_t)words & 63)) % 64 + 64;  // the first block, behind its guard
    tl_graph graph;
    tl_chain_desc chain;
    tl_env env;
    int at;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&chain, 0, sizeof chain);
    {
        static const uint64_t sizes[] = { 10, 10, 10, 10 };
        chain.layer_count = 4;
        chain.input_bytes = 10;
        chain.output_bytes = sizes;
        if (tl_add_chain(&env, &graph, &chain)) fail_msg("%s", env.error.text);
    }
    for (at = 0; at < 6; at++) {
        static mixer m;
        static tl_kernel kernels[8];
        tl_cpu_backend_desc desc;
        tl_backend backend;
        tl_run_desc run_desc;
        tl_plan plan;
        tl_run *run;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        memset(&run_desc, 0, sizeof run_desc);
        memset(&plan, 0, sizeof plan);
        desc.memory = words;
        desc.memory_bytes = sizeof words;
        desc.checked = 1;
        if (tl_init_cpu_backend(&env, &desc, &backend)) fail_msg("%s", env.error.text);
        mixer_init(&m);
        plan.steps = steps;
        plan.step_count = 7;
        plan.inference = 1;
        plan.offsets = offsets;
        plan.offset_count = 5;
        run_desc.graph = &graph;
        run_desc.backend = &backend;
        run_desc.kernels = kernels;
        run_desc.kernel_count = mixer_kernels(&graph, &m, kernels);
        run_desc.plan = &plan;
        if (tl_init_run(&env, &run_desc, &run)) fail_msg("%s", env.error.text);
        m.stray = at ? STRAY_BYTE : STRAY_NOT;
        m.stray_at = 2;  // tensor 1 is dead, tensors 2 and 3 live
        m.stray_byte = arena + bytes[at];
        result = tl_run_plan(run);
        assert_int_equal(result, at ? TL_ERROR_CORRUPT : TL_OK);
        tl_free_run(run);
        tl_free_cpu_backend(&env, &backend);
    }
    tl_free_graph(&env, &graph);
}

// Kernels that run before the work on their ranges was ordered read what is not there yet.
static void a_missing_order_is_an_error_on_a_deferred_backend(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    int kind;
    (void)state;
    for (kind = BACKEND_DEFERRED; kind < BACKEND_KINDS; kind++) {
        bed_open(&b, &graph, kind, 1, 4);
        b.desc.plan = &plan;
        b.desc.load = NULL;
        bed_must_init(&b);
        b.spy.skips[SPY_ORDER] = 1;
        assert_int_equal(tl_run_plan(b.run), TL_ERROR_BACKEND);
        assert_non_null(strstr(b.env.error.text, "map"));
        b.spy.skips[SPY_ORDER] = 0;
        (void)bed_step(&b, 0);
        bed_close(&b);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// After a WAIT, by whoever pulls the steps, the ticket of the copy has passed.
static void a_wait_step_waits_for_its_copy(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    int skips;
    (void)state;
    for (skips = 0; skips < 2; skips++) {
        tl_ticket copy;
        long late = 0;
        uint64_t seed;
        copy.value = 0;
        for (seed = 0; seed < 20; seed++) {
            tl_run_step step;
            int32_t done = 0;
            bed_open(&b, &graph, BACKEND_DEFERRED, seed, 4);
            b.desc.plan = &plan;
            bed_must_init(&b);
            b.spy.skips[SPY_WAIT] = skips;
            if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
            b.run->by_itself = 1;
            while (!done) {
                if (tl_next_step(b.run, &step, &done)) fail_msg("%s", b.env.error.text);
                if (step.step.kind == TL_STEP_SPILL || step.step.kind == TL_STEP_FETCH) copy = step.ticket;
                if (!done && step.step.kind == TL_STEP_WAIT) late += !tli_has_passed((tli_cpu *)b.spy.inner.self, copy);
                if (step.is_compute && tl_run_step_kernel(b.run, &step)) fail_msg("%s", b.env.error.text);
            }
            b.run->by_itself = 0;
            bed_close(&b);
        }
        if (skips) assert_true(late > 0);
        else assert_int_equal(late, 0);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- failures: everything but the inputs is released, the next step is as if nothing had been --

// What is made of a run for the tests of failures: 0 a lossless plan, 1 a lossy one, 2 online with a host tier,
// 3 online and lossy.
static void failing_desc(bed *b, int which, const tl_plan *lossless, const tl_plan *lossy) {
    if (which == 0) b->desc.plan = lossless;
    if (which == 1) b->desc.plan = lossy;
    if (which >= 2) {
        b->desc.budget_bytes = 188;  // the least is below
        b->desc.host_budget_bytes = which == 2 ? 100 : 0;
        b->desc.codec = which == 3 ? TL_CODEC_Q8 : TL_CODEC_NONE;
    }
}

// Outcomes of the first two steps.
static void undisturbed(const tl_graph *graph, int kind, int which, const tl_plan *lossless, const tl_plan *lossy,
                        uint64_t sums[2], long calls[SPY_COUNT]) {
    static bed b;
    tl_run_report report;
    int i;
    bed_open(&b, graph, kind, 0, 4);
    failing_desc(&b, which, lossless, lossy);
    bed_must_init(&b);
    sums[0] = bed_step(&b, 0);
    report = bed_report(&b);
    for (i = 0; calls && i < SPY_COUNT; i++) calls[i] = b.spy.calls[i];
    memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
    sums[1] = bed_step(&b, 0);
    if (which == 2) assert_true(report.spill_count > 0 && report.fetch_count > 0);
    if (which == 3) assert_true(report.compress_count > 0 && report.expand_count > 0);
    bed_close(&b);
}

static void assert_only_inputs_are_held(const bed *b) {
    tl_backend_counters counters = spy_count(&b->spy);
    assert_int_equal(counters.live_bytes[TL_TIER_DEVICE], input_bytes(b->graph));
    assert_int_equal(counters.live_bytes[TL_TIER_HOST], 0);
    assert_int_equal(counters.claim_count[TL_TIER_DEVICE], 2);
    assert_int_equal(counters.claim_count[TL_TIER_HOST], 0);
}

static void a_kernel_may_fail_at_every_call(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, kind;
    (void)state;
    for (which = 0; which < 4; which++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            uint64_t sums[2];
            long call, failed = 0;
            undisturbed(&graph, 0, which, &lossless, &lossy, sums, NULL);
            for (call = 0; ; call++) {
                tl_result result;
                bed_open(&b, &graph, kind, (uint64_t)call, 4);
                failing_desc(&b, which, &lossless, &lossy);
                bed_must_init(&b);
                b.mixer.fail_at = call;
                result = tl_run_plan(b.run);
                b.mixer.fail_at = -1;
                if (!result) break;
                assert_int_equal(result, TL_ERROR_KERNEL);
                assert_int_equal(b.env.error.code, TL_ERROR_KERNEL);
                assert_non_null(strstr(b.env.error.text, "): the kernel returned: corrupt"));
                assert_only_inputs_are_held(&b);
                memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
                assert_int_equal(bed_step(&b, 0), sums[0]);
                memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
                assert_int_equal(bed_step(&b, 0), sums[1]);
                bed_close(&b);
                failed++;
            }
            bed_close(&b);
            assert_true(failed >= 11);
        }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

static void the_kernel_that_failed_is_named(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    (void)state;
    bed_open(&b, &graph, 0, 0, 4);
    bed_must_init(&b);
    b.mixer.fail_at = 1;
    assert_int_equal(tl_run_plan(b.run), TL_ERROR_KERNEL);
    assert_string_equal(b.env.error.text, "tl_run_plan: forward of node 2 (b): the kernel returned: corrupt");
    b.mixer.fail_at = 2 + 6;
    assert_int_equal(tl_run_plan(b.run), TL_ERROR_KERNEL);
    assert_string_equal(b.env.error.text, "tl_run_plan: backward of node 6 (l): the kernel returned: corrupt");
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// One failing call of each function of the backend, whichever it is.
static void the_backend_may_fail_at_every_call(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, kind, function;
    long failed[SPY_COUNT];
    (void)state;
    memset(failed, 0, sizeof failed);
    for (which = 0; which < 4; which++)
        for (kind = 0; kind < BACKEND_KINDS; kind++)
            for (function = 0; function < SPY_COUNT; function++) {
                uint64_t sums[2];
                long calls[SPY_COUNT], call;
                undisturbed(&graph, kind, which, &lossless, &lossy, sums, calls);
                for (call = 0; call < calls[function]; call++) {
                    tl_result result;
                    bed_open(&b, &graph, kind, (uint64_t)call, 4);
                    failing_desc(&b, which, &lossless, &lossy);
                    b.spy.fail_function = function;
                    b.spy.fail_at = call;
                    result = bed_init(&b);
                    if (result) {
                        assert_null(b.run);
                        assert_int_equal(result, function == SPY_ADD_BLOCK ? TL_ERROR_NO_MEMORY : TL_ERROR_BACKEND);
                        bed_close(&b);
                        continue;
                    }
                    result = tl_run_plan(b.run);
                    b.spy.fail_function = -1;
                    if (result) {
                        failed[function]++;
                        assert_int_equal(b.env.error.code, result);
                        assert_true(strlen(b.env.error.text) > 20);
                        assert_only_inputs_are_held(&b);
                        memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
                        assert_int_equal(bed_step(&b, 0), sums[0]);
                    } else {
                        assert_int_equal(bed_outcome(&b, 0), sums[0]);
                    }
                    memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
                    assert_int_equal(bed_step(&b, 0), sums[1]);
                    bed_close(&b);
                }
            }
    for (function = 0; function < SPY_COUNT; function++)
        if (function != SPY_POLL && function != SPY_SHORTEN) assert_true((failed[function] > 0) == (function > SPY_FREE_BLOCK));  // a pass makes no block
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// Whatever refuses to be given back for a while is given back later. Every buffer is a block of its own here.
static void what_cannot_be_freed_at_once_is_freed_later(void **state) {
    static bed b;
    tl_strategy standard = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(0)),
                                             TL_PRECISION_SINGLE);
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, function;
    (void)state;
    for (which = 0; which < 4; which++)
        for (function = SPY_FREE_BLOCK; function <= SPY_RELEASE; function += SPY_RELEASE - SPY_FREE_BLOCK) {
            uint64_t sums[2];
            long at, total = 0;
            undisturbed(&graph, 0, which, &lossless, &lossy, sums, NULL);
            for (at = 0; at < 30; at++) {
                int failed = 0;
                bed_open(&b, &graph, (int)at % BACKEND_KINDS, 0, 4);
                failing_desc(&b, which, &lossless, &lossy);
                standard.mode = which < 2 ? TL_MODE_LAZY : TL_MODE_EAGER;
                b.desc.strategy = &standard;
                bed_must_init(&b);
                b.spy.fail_function = function;
                b.spy.fail_at = at;
                b.spy.fail_count = 60;
                while (tl_run_plan(b.run)) {
                    assert_true(++failed < 60);
                    memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
                }
                assert_int_equal(bed_outcome(&b, 0), sums[0]);
                total += failed;
                b.spy.fail_function = -1;
                bed_close(&b);
            }
            assert_true(total > 15);
        }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// A block that is not taken back is an error of the pass, even if that happens once and what remains is given back later.
static void each_block_that_is_not_taken_back_is_told(void **state) {
    static bed b;
    tl_strategy standard = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(0)),
                                             TL_PRECISION_SINGLE);
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps);
    long at, told = 0;
    int called = 1;
    (void)state;
    for (at = 0; called; at++) {
        bed_open(&b, &graph, 0, 0, 4);
        failing_desc(&b, 0, &lossless, &lossless);
        standard.mode = TL_MODE_LAZY;
        b.desc.strategy = &standard;
        bed_must_init(&b);
        b.spy.fail_function = SPY_FREE_BLOCK;
        b.spy.fail_at = b.spy.calls[SPY_FREE_BLOCK] + at;
        if (tl_run_plan(b.run)) told++;
        else assert_true(b.spy.calls[SPY_FREE_BLOCK] <= b.spy.fail_at);
        called = b.spy.calls[SPY_FREE_BLOCK] > b.spy.fail_at;
        b.spy.fail_function = -1;
        bed_close(&b);
    }
    assert_true(told > 3);
    tl_free_plan(NULL, &lossless);
    tl_free_graph(NULL, &graph);
}

// Each try has less live bytes than the one before, by what exceeded, and none less than 0.
static void each_try_of_decisions_has_less_live_bytes(void **state) {
    (void)state;
    assert_int_equal(tli_lower_live(1000, 0, 9), 1000);
    assert_int_equal(tli_lower_live(1000, 30, 4), 970);
    assert_int_equal(tli_lower_live(1000, 30, 5), 908);     // and a sixteenth
    assert_int_equal(tli_lower_live(1000, 999, 1), 1);
    assert_int_equal(tli_lower_live(1000, 1000, 1), 0);
    assert_int_equal(tli_lower_live(1000, 2000, 1), 0);
    assert_true(tli_lower_live(UINT64_MAX, 5, 9) == UINT64_MAX - 5);
}

static void a_lost_device_stays_lost_and_everything_can_be_freed(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, kind;
    (void)state;
    for (which = 0; which < 4; which++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            long call, lost = 0;
            for (call = 0; ; call++) {
                unsigned char bytes[8];
                tl_result result;
                bed_open(&b, &graph, kind, (uint64_t)call, 4);
                failing_desc(&b, which, &lossless, &lossy);
                b.spy.lost_at = call;
                result = bed_init(&b);
                if (result) {
                    assert_int_equal(result, TL_ERROR_DEVICE_LOST);
                    assert_null(b.run);
                    bed_close(&b);
                    continue;
                }
                b.desc.load = NULL;
                result = tl_run_plan(b.run);
                if (!result && b.spy.all_calls <= call) break;
                if (result == TL_ERROR_KERNEL) {  // the load hook met it
                    assert_non_null(strstr(b.env.error.text, "load"));
                } else if (result) {
                    assert_int_equal(result, TL_ERROR_DEVICE_LOST);
                    assert_int_equal(tl_run_plan(b.run), TL_ERROR_KERNEL);  // load, again
                }
                assert_int_equal(tl_write_tensor(b.run, tensor_of(0, 0), bytes, 8), TL_ERROR_DEVICE_LOST);
                assert_int_equal(tl_read_tensor(b.run, tensor_of(0, 0), bytes, 8), TL_ERROR_DEVICE_LOST);
                if (!tl_start_pass(b.run, 0)) {
                    tl_run_step step;
                    int32_t done;
                    assert_int_equal(tl_next_step(b.run, &step, &done), TL_ERROR_DEVICE_LOST);
                }
                assert_int_equal(tl_reset_run(b.run), TL_OK);
                bed_close(&b);
                lost++;
            }
            bed_close(&b);
            assert_true(lost > 100);
        }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// Allocations of the run's own env; those of the backend are its own tests' business.
static void every_allocation_of_a_run_may_fail(void **state) {
    static bed b;
    static tl_layer layers[5];
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    tl_strategy half = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(2)), TL_PRECISION_HALF);
    int which;
    (void)state;
    for (which = 0; which < 8; which++) {
        long at, failures = 0;
        for (at = 0; ; at++) {
            failing_alloc f;
            tl_result result;
            memset(&f, 0, sizeof f);
            bed_open(&b, &graph, 0, 0, 4);
            if (which < 4) failing_desc(&b, which, &lossless, &lossy);
            if (which == 4 || which == 5) {
                b.desc.strategy = &half;
                half.mode = which == 4 ? TL_MODE_EAGER : TL_MODE_LAZY;
                b.desc.kernel_precisions = 1u << TL_PRECISION_HALF;
            }
            if (which == 6) b.desc.budget_bytes = 1;  // where the least is searched
            b.env = failing_env(&f, at);
            if (which == 7) {
                bed_close(&b);
                chain_open(&b, 3, 0, layers, 0);
                b.env = failing_env(&f, at);
                result = tl_init_layer_run(&b.env, &b.desc, layers, 3, 4, &b.run);
            } else {
                result = bed_init(&b);
            }
            if (result == TL_ERROR_NO_MEMORY) {
                failures++;
                assert_null(b.run);
                assert_int_equal(f.live, 0);
            } else {
                assert_int_equal(result, which == 6 ? TL_ERROR_INFEASIBLE : TL_OK);
            }
            bed_close(&b);
            assert_int_equal(f.live, 0);
            if (result != TL_ERROR_NO_MEMORY) break;
        }
        assert_true(failures > 10);
    }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// After tl_init_run only steps that are pulled by hand ask for memory, to know what they depend on.
static void a_pass_needs_no_memory_but_to_tell_dependencies(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which;
    (void)state;
    for (which = 0; which < 4; which++) {
        failing_alloc f;
        uint64_t sums[2];
        tl_run_step step;
        int32_t done = 0;
        tl_result result;
        memset(&f, 0, sizeof f);
        undisturbed(&graph, 0, which, &lossless, &lossy, sums, NULL);
        bed_open(&b, &graph, 0, 0, 4);
        failing_desc(&b, which, &lossless, &lossy);
        b.env = failing_env(&f, -1);
        bed_must_init(&b);
        f.fail_at = f.count;
        assert_int_equal(bed_step(&b, 0), sums[0]);
        assert_int_equal(f.count, f.fail_at);
        if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
        for (result = TL_OK; !result && !done;) {
            result = tl_next_step(b.run, &step, &done);
            if (!result && step.is_compute) result = tl_run_step_kernel(b.run, &step);
        }
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
        assert_only_inputs_are_held(&b);
        memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
        assert_int_equal(bed_step(&b, 0), sums[1]);
        bed_close(&b);
        assert_int_equal(f.live, 0);
    }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

static void a_load_that_fails_ends_the_step(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    uint64_t expected = keep_all_outcome(&graph, 0, 2, NULL);
    (void)state;
    bed_open(&b, &graph, 0, 0, 4);
    b.desc.repeat_count = 2;
    bed_must_init(&b);
    for (b.load_fails_at = 0; b.load_fails_at < 2; b.load_fails_at++) {
        assert_int_equal(tl_run_plan(b.run), TL_ERROR_KERNEL);
        assert_string_equal(b.env.error.text, "tl_run_plan: load: the hook reported a failure");
        assert_only_inputs_are_held(&b);
    }
    memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
    (void)bed_step(&b, 0);
    assert_int_equal(bed_step(&b, 0), expected);  // the failed steps did not count
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- budgets --

static void a_plan_fits_its_budget_exactly_or_is_refused_by_one_byte(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    tl_report report;
    uint64_t base;
    (void)state;
    if (simulate(&graph, &plan, 1, &report)) fail_msg("%s", "invalid");
    for (base = 0; base <= 1000; base += 500) {
        bed_open(&b, &graph, 0, 0, 1);
        b.desc.plan = &plan;
        b.desc.base_bytes = base;
        b.desc.budget_bytes = base + report.peak_bytes - 1;
        assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
        assert_null(b.run);
        assert_int_equal(named_bytes(b.env.error.text), base + report.peak_bytes);
        assert_non_null(strstr(b.env.error.text, ", because of node "));
        b.desc.budget_bytes = named_bytes(b.env.error.text);
        bed_must_init(&b);
        b.spy.limit = report.peak_bytes;
        (void)bed_step(&b, 0);
        assert_int_equal(bed_report(&b).measured_peak_bytes + base, b.desc.budget_bytes);
        assert_false(b.spy.went_over);
        bed_close(&b);
    }
    // The host tier.
    bed_open(&b, &graph, 0, 0, 1);
    b.desc.plan = &plan;
    b.desc.host_budget_bytes = report.host_peak_bytes - 1;
    assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
    assert_int_equal(named_bytes(b.env.error.text), report.host_peak_bytes);
    assert_non_null(strstr(b.env.error.text, "host_budget_bytes"));
    b.desc.host_budget_bytes = report.host_peak_bytes;
    bed_must_init(&b);
    bed_close(&b);
    // A base with which no budget of 64 bits would do.
    bed_open(&b, &graph, 0, 0, 1);
    b.desc.plan = &plan;
    b.desc.base_bytes = UINT64_MAX - 10;
    b.desc.budget_bytes = UINT64_MAX - 1;
    assert_int_equal(bed_init(&b), TL_ERROR_OVERFLOW);
    assert_non_null(strstr(b.env.error.text, "do not fit 64 bits"));
    b.desc.plan = NULL;
    assert_int_equal(bed_init(&b), TL_ERROR_OVERFLOW);
    assert_null(b.run);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void a_placed_plan_is_held_to_its_arena(void **state) {
    static const uint64_t offsets[] = { 0, 64, 128, 192, 256 };
    static bed b;
    tl_graph graph;
    tl_plan plan;
    tl_chain_desc chain;
    tl_backend_limits limits;
    tl_env env;
    uint64_t needed;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 4;
    chain.input_bytes = 1;
    if (tl_add_chain(&env, &graph, &chain) || tl_plan_keep_all(&env, &graph, 1, &plan)) fail_msg("%s", env.error.text);
    plan.offsets = offsets;
    plan.offset_count = 5;
    bed_open(&b, &graph, 0, 0, 64);
    b.desc.plan = &plan;
    b.desc.load = NULL;
    // 320 at an address that is a multiple of 64, from an allocator that aligns to less.
    b.backend.limits(b.backend.self, &limits);
    needed = 320 + limits.block_overhead_bytes[TL_TIER_DEVICE];
    assert_true(needed > 320);
    b.desc.budget_bytes = needed - 1;
    assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
    assert_int_equal(named_bytes(b.env.error.text), needed);
    b.desc.budget_bytes = needed;
    bed_must_init(&b);
    (void)bed_step(&b, 1);
    assert_int_equal(bed_report(&b).measured_arena_bytes, 320);
    assert_int_equal(spy_count(&b.spy).block_count[TL_TIER_DEVICE], 1);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// The inputs may lie at the end of the arena: what a pass measures starts with them.
static void inputs_at_the_end_of_an_arena_are_measured(void **state) {
    static const uint64_t offsets[] = { 640, 64, 128, 192, 256 };
    static bed b;
    tl_graph graph;
    tl_plan plan;
    tl_chain_desc chain;
    tl_env env;
    tl_device device;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&chain, 0, sizeof chain);
    memset(&device, 0, sizeof device);
    chain.layer_count = 4;
    chain.input_bytes = 1;
    device.alignment_bytes = 128;  // of the planner: the run counts in what its backend aligns to
    if (tl_add_chain(&env, &graph, &chain) || tl_plan_keep_all(&env, &graph, 1, &plan)) fail_msg("%s", env.error.text);
    plan.offsets = offsets;
    plan.offset_count = 5;
    bed_open(&b, &graph, 0, 0, 64);
    b.desc.plan = &plan;
    b.desc.device = &device;
    bed_must_init(&b);
    (void)bed_step(&b, 1);
    (void)bed_step(&b, 1);
    assert_int_equal(bed_report(&b).measured_arena_bytes, 704);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static uint64_t least_power_of_two_in(const tl_plan *plan) {
    uint64_t all = 0;
    int32_t i;
    for (i = 0; i < plan->offset_count; i++) all |= plan->offsets[i];
    return all & (~all + 1);
}

// Plans placed for 1 run at every alignment with the same numbers, in the bytes that they then report; where the
// budget is that of the places as they were, the refusal names the bytes that do.
static void plan_placed_for_less_is_placed_again(void **state) {
    static const uint64_t alignments[] = { 1, 8, 64, 256 };
    static bed b;
    tl_random random = { 91 };
    long round, again = 0, refused = 0;
    (void)state;
    for (round = 0; round < scaled(60); round++) {
        uint64_t alignment = alignments[round % 4], expected = 0, sum, needed;
        tl_places_desc places = { 0 };
        tl_device device = { 0 };
        tl_graph graph;
        tl_plan plan;
        tl_plan found;
        tl_env env;
        int turn;
        memset(&env, 0, sizeof env);
        if (random_graph(&env, &random, 16, &graph) || tl_plan_keep_all(&env, &graph, 0, &plan)) fail_msg("%s", env.error.text);
        places.graph = &graph;
        places.device = &device;
        assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
        assert_int_equal(plan.alignment_bytes, 1);
        for (turn = 0; turn < 2; turn++) {
            bed_open(&b, &graph, 0, 0, turn ? alignment : 1);
            b.desc.plan = &plan;
            b.desc.load = NULL;
            bed_must_init(&b);
            sum = bed_step(&b, 0);
            if (turn) assert_int_equal(sum, expected);
            expected = sum;
            tl_find_run_plan(b.run, &found);
            assert_int_equal(found.alignment_bytes, turn ? alignment : 1);
            assert_true(!found.offset_count || !least_power_of_two_in(&found) || least_power_of_two_in(&found) >= found.alignment_bytes);
            assert_int_equal(bed_report(&b).measured_arena_bytes, found.arena_bytes);
            again += found.offsets != plan.offsets;
            needed = bed_report(&b).planned_taken_bytes;
            bed_close(&b);
        }
        bed_open(&b, &graph, 0, 0, alignment);
        b.desc.plan = &plan;
        b.desc.budget_bytes = plan.arena_bytes;
        if (needed > plan.arena_bytes) {
            assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
            assert_int_equal(named_bytes(b.env.error.text), needed);
            refused++;
        } else {
            bed_must_init(&b);
        }
        bed_close(&b);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(is_thinned() || (again > 30 && refused > 30));
}

// Hand-made offsets that suit the backend stay as they are, whatever alignment the plan names; what breaks the
// word of the plan is refused.
static void places_that_suit_the_backend_are_kept(void **state) {
    static const uint64_t offsets[] = { 0, 64, 128, 192, 256 };
    static const struct { uint64_t plan, backend; tl_result result; int kept; } cases[] = {
        { 0, 64, TL_OK, 1 },   { 1, 64, TL_OK, 1 },  { 64, 64, TL_OK, 1 }, { 128, 64, TL_OK, 1 }, { 0, 128, TL_OK, 0 },
        { 64, 128, TL_OK, 0 }, { 3, 64, TL_ERROR_INVALID_ARG, 0 }, { 128, 128, TL_ERROR_INVALID_PLAN, 0 } };
    static bed b;
    tl_chain_desc chain = { 0 };
    tl_graph graph;
    tl_plan plan, found;
    size_t i;
    (void)state;
    chain.layer_count = 4;
    chain.input_bytes = 1;
    if (tl_add_chain(NULL, &graph, &chain) || tl_plan_keep_all(NULL, &graph, 1, &plan)) fail_msg("%s", "no plan");
    plan.offsets = offsets;
    plan.offset_count = 5;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan.alignment_bytes = cases[i].plan;
        bed_open(&b, &graph, 0, 0, cases[i].backend);
        b.desc.plan = &plan;
        b.desc.load = NULL;
        assert_int_equal(bed_init(&b), cases[i].result);
        if (!cases[i].result) {
            (void)bed_step(&b, 1);
            tl_find_run_plan(b.run, &found);
            assert_int_equal(found.offsets == offsets, cases[i].kept);
            assert_int_equal(found.alignment_bytes, cases[i].backend);
        }
        bed_close(&b);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void online_budgets_are_exact_and_include_the_base(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    uint64_t least, peak, base;
    uint64_t expected = keep_all_outcome(&graph, 0, 1, &peak);
    (void)state;
    for (base = 0; base <= 1000; base += 1000) {
        bed_open(&b, &graph, 0, 0, 1);
        b.desc.base_bytes = base;
        b.desc.budget_bytes = base ? base - 1 : 1;  // a base over the budget
        assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
        assert_non_null(strstr(b.env.error.text, "budget_bytes: the least found to work is "));
        // Backward of node 3 wants 3.1 again: inputs 12, result 16, gradients of 1, 2, 3 96, and 1 and 2 while 2 is made.
        assert_non_null(strstr(b.env.error.text, ", because of node 2 (b)"));
        least = named_bytes(b.env.error.text);
        assert_int_equal(least, base + 12 + 16 + 96 + 64);
        b.desc.budget_bytes = least - 1;
        assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
        assert_int_equal(named_bytes(b.env.error.text), least);
        b.desc.budget_bytes = least;
        bed_must_init(&b);
        b.spy.limit = least - base;
        (void)bed_step(&b, 0);
        assert_int_equal(bed_step(&b, 0), expected);
        assert_false(b.spy.went_over);
        assert_true(bed_report(&b).measured_peak_bytes + base <= least);
        bed_close(&b);
    }
    bed_open(&b, &graph, 0, 0, 1);  // 0: no budget
    bed_must_init(&b);
    (void)bed_step(&b, 0);
    assert_int_equal(bed_report(&b).recompute_count, 0);
    assert_int_equal(bed_report(&b).eviction_count, 0);
    assert_int_equal(bed_report(&b).limiting_node, -1);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- one step at a time --

typedef struct pulled { tl_access accesses[24]; int32_t access_count; tl_step step; } pulled;

static int ranges_meet(const tl_range *a, const tl_range *b) {
    return a->block == b->block && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

// The latest earlier step with a range in common that one of the two writes, by comparing all.
static int32_t brute_dependency(const pulled *all, int32_t index) {
    int32_t before, i, k;
    for (before = index - 1; before >= 0; before--)
        for (i = 0; i < all[index].access_count; i++)
            for (k = 0; k < all[before].access_count; k++) {
                const tl_access *a = &all[index].accesses[i], *b = &all[before].accesses[k];
                if ((a->writes || b->writes) && ranges_meet(&a->range, &b->range)) return before;
            }
    return -1;
}

static const tl_access *told_access(const tl_access *accesses, int32_t count, const tl_range *range) {
    int32_t k;
    for (k = 0; k < count; k++)
        if (accesses[k].range.block == range->block && accesses[k].range.offset <= range->offset &&
            range->offset + range->bytes <= accesses[k].range.offset + accesses[k].range.bytes) return &accesses[k];
    return NULL;
}

// What the backend was asked to touch for a step lies in the ranges that the step told, and what was
// written or freed was told as written. The step before may have freed what lived for its call only.
static void assert_step_tells_its_ranges(bed *b, const tl_run_step *step, const pulled *before) {
    int32_t i, k;
    for (i = 0; i < b->spy.touched_count; i++) {
        const tl_access *touched = &b->spy.touched[i], *told = told_access(step->accesses, step->access_count, &touched->range);
        if (!touched->range.bytes) continue;
        if (!told || told->writes < touched->writes)
            fail_msg("step %d (%s %d) hides a range", (int)step->index, tl_name_step((tl_step_kind)step->step.kind), (int)step->step.node);
    }
    for (i = 0; i < b->spy.released_count; i++) {
        const tl_range *range = &b->spy.released[i];
        const tl_access *told = told_access(step->accesses, step->access_count, range);
        if (told && told->writes) continue;
        if (!before || before->step.kind > TL_STEP_BACKWARD || !told_access(before->accesses, before->access_count, range))
            fail_msg("step %d (%s %d) hides a release", (int)step->index, tl_name_step((tl_step_kind)step->step.kind), (int)step->step.node);
    }
    for (i = 0; i < step->access_count; i++)
        for (k = 0; k < i; k++) assert_false(ranges_meet(&step->accesses[i].range, &step->accesses[k].range));
}

static void dependencies_are_those_of_the_ranges(void **state) {
    tl_random random;
    long round, placed = 0, found = 0;
    static pulled all[4096];
    static bed b;
    (void)state;
    random.state = 70;
    for (round = 0; round < scaled(150); round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        tl_device device;
        tl_report report;
        tl_run_step step;
        uint64_t expected;
        int32_t done = 0, count = 0, micro;
        memset(&env, 0, sizeof env);
        memset(&device, 0, sizeof device);
        device.alignment_bytes = 4;
        if (random_effect_graph(&env, &random, 14, round % 3 * 20, &graph)) fail_msg("%s", env.error.text);
        if (random_plan(&env, &random, &graph, &plan)) fail_msg("%s", "out of memory");
        if (random_offsets(&env, &random, &graph, &device, &plan)) fail_msg("%s", "out of memory");
        if (simulate(&graph, &plan, 4, &report)) plan.offset_count = 0;
        if (!simulate(&graph, &plan, 4, &report) && plan.step_count < 4096) {
            expected = run_plan_twice(&graph, &plan, 0, 0, 2, NULL);
            bed_open(&b, &graph, (int)(round % BACKEND_KINDS), 1, 4);
            b.desc.plan = &plan;
            bed_must_init(&b);
            placed += plan.offset_count > 0;
            for (micro = 0; micro < 4; micro++) {
                if (bed_load(b.run, micro % 2, &b)) fail_msg("%s", "load");
                if (tl_start_pass(b.run, micro % 2)) fail_msg("%s", b.env.error.text);
                b.spy.touched_count = b.spy.released_count = 0;
                for (count = 0, done = 0; !done; count++) {
                    tl_result result = tl_next_step(b.run, &step, &done);
                    if (result == TL_NOT_READY) { count--; continue; }
                    if (result) fail_msg("%s", b.env.error.text);
                    if (done) break;
                    assert_int_equal(step.index, count);
                    assert_memory_equal(&step.step, &plan.steps[count], sizeof step.step);
                    assert_true(step.access_count <= 24);
                    assert_step_tells_its_ranges(&b, &step, count ? &all[count - 1] : NULL);
                    all[count].step = step.step;
                    memcpy(all[count].accesses, step.accesses, (size_t)step.access_count * sizeof *step.accesses);
                    all[count].access_count = step.access_count;
                    assert_int_equal(step.depends_on, brute_dependency(all, count));
                    found += step.depends_on >= 0;
                    if (step.is_compute && tl_run_step_kernel(b.run, &step)) fail_msg("%s", b.env.error.text);
                    b.spy.touched_count = b.spy.released_count = 0;
                }
                assert_int_equal(count, plan.step_count);
                assert_int_equal(tl_next_step(b.run, &step, &done), TL_ERROR_INVALID_ARG);  // the pass is over
            }
            assert_int_equal(bed_outcome(&b, plan.inference), expected);
            bed_close(&b);
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(is_thinned() || (placed > 20 && found > 500));
}

// The outcome of the first training step, which keeps everything.
static uint64_t run_online_once(const tl_graph *graph) {
    static bed b;
    uint64_t sum;
    bed_open(&b, graph, 0, 0, 1);
    bed_must_init(&b);
    sum = bed_step(&b, 0);
    bed_close(&b);
    return sum;
}

// The same steps by hand as by tl_run_plan, online.
static void an_online_run_may_be_pulled(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    uint64_t expected = keep_all_outcome(&graph, 0, 1, NULL);
    int pass;
    (void)state;
    bed_open(&b, &graph, BACKEND_DEFERRED, 4, 4);
    b.desc.budget_bytes = 200;
    b.desc.host_budget_bytes = 100;
    bed_must_init(&b);
    for (pass = 0; pass < 2; pass++) {
        tl_run_step step;
        int32_t done = 0;
        if (bed_load(b.run, 0, &b) || tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
        while (!done) {
            tl_result result = tl_next_step(b.run, &step, &done);
            if (result == TL_NOT_READY) continue;
            if (result) fail_msg("%s", b.env.error.text);
            if (step.is_compute && tl_run_step_kernel(b.run, &step)) fail_msg("%s", b.env.error.text);
        }
    }
    assert_true(bed_report(&b).recompute_count + bed_report(&b).spill_count > 0);
    assert_int_equal(bed_outcome(&b, 0), expected);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static void a_wait_is_not_ready_until_its_copy_is_finished(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    uint64_t seed;
    long not_ready = 0;
    (void)state;
    for (seed = 0; seed < 20; seed++) {
        tl_run_step step, empty;
        int32_t done = 0, index = -1;
        memset(&empty, 0, sizeof empty);
        bed_open(&b, &graph, BACKEND_DEFERRED, seed, 4);
        b.desc.plan = &plan;
        bed_must_init(&b);
        if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
        while (!done) {
            tl_result result = tl_next_step(b.run, &step, &done);
            if (result == TL_NOT_READY) {
                not_ready++;
                assert_int_equal(plan.steps[index + 1].kind, TL_STEP_WAIT);
                assert_int_equal(done, 0);
                assert_memory_equal(&step, &empty, sizeof step);
                continue;
            }
            if (result) fail_msg("%s", b.env.error.text);
            if (done) break;
            assert_int_equal(step.index, ++index);
            if (step.is_compute && tl_run_step_kernel(b.run, &step)) fail_msg("%s", b.env.error.text);
        }
        assert_int_equal(index, plan.step_count - 1);
        assert_int_equal(bed_report(&b).step_count, plan.step_count);
        bed_close(&b);
    }
    assert_true(not_ready > 5);
    // A poll that fails ends the pass.
    bed_open(&b, &graph, BACKEND_DEFERRED, 0, 4);
    b.desc.plan = &plan;
    bed_must_init(&b);
    b.spy.fail_function = SPY_POLL;
    if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
    for (;;) {
        tl_run_step step;
        int32_t done;
        tl_result result = tl_next_step(b.run, &step, &done);
        if (result) { assert_int_equal(result, TL_ERROR_BACKEND); break; }
        if (step.is_compute && tl_run_step_kernel(b.run, &step)) fail_msg("%s", b.env.error.text);
    }
    assert_string_equal(b.env.error.text, "tl_run_plan: step 4 (W a): poll: a copy, a conversion or a mapping failed");
    assert_only_inputs_are_held(&b);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Given up after any number of steps, with or without the kernel of the last.
static void an_abandoned_pass_leaves_nothing_and_does_not_count(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, kind;
    (void)state;
    for (which = 0; which < 4; which++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            uint64_t sums[2];
            int32_t stop, done = 0;
            undisturbed(&graph, 0, which, &lossless, &lossy, sums, NULL);
            for (stop = 1; !done; stop++) {
                tl_run_step step;
                int32_t at;
                bed_open(&b, &graph, kind, (uint64_t)stop, 4);
                failing_desc(&b, which, &lossless, &lossy);
                bed_must_init(&b);
                if (bed_load(b.run, 0, &b) || tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
                assert_int_equal(tl_start_pass(b.run, 0), TL_ERROR_INVALID_ARG);
                assert_int_equal(tl_run_plan(b.run), TL_ERROR_INVALID_ARG);
                for (at = 0; at < stop && !done; at++) {
                    tl_result result;
                    do result = tl_next_step(b.run, &step, &done); while (result == TL_NOT_READY);
                    if (result) fail_msg("%s", b.env.error.text);
                    if (step.is_compute && (at + 1 < stop || stop % 2) && tl_run_step_kernel(b.run, &step)) fail_msg("%s", b.env.error.text);
                }
                if (stop % 3) {
                    assert_int_equal(tl_reset_run(b.run), TL_OK);
                    assert_only_inputs_are_held(&b);
                    memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
                    if (!done) assert_int_equal(bed_step(&b, 0), sums[0]);
                    else assert_int_equal(bed_step(&b, 0), sums[1]);
                }
                bed_close(&b);  // from inside the pass, too
            }
            assert_true(stop > 14);
        }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

static void a_kernel_runs_once_a_step_and_for_the_last_step_only(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_run_step first, second, copy;
    int32_t done;
    (void)state;
    bed_open(&b, &graph, 0, 0, 4);
    bed_must_init(&b);
    memset(&first, 0, sizeof first);
    assert_int_equal(tl_run_step_kernel(b.run, &first), TL_ERROR_STALE);  // no pass
    if (tl_start_pass(b.run, 0) || tl_next_step(b.run, &first, &done)) fail_msg("%s", b.env.error.text);
    assert_int_equal(first.is_compute, 1);
    assert_int_equal(tl_run_step_kernel(b.run, &first), TL_OK);
    assert_int_equal(tl_run_step_kernel(b.run, &first), TL_ERROR_STALE);  // a second time
    if (tl_next_step(b.run, &second, &done)) fail_msg("%s", b.env.error.text);
    assert_int_equal(tl_run_step_kernel(b.run, &first), TL_ERROR_STALE);  // the step before
    copy = second;
    copy.is_compute = 0;
    assert_int_equal(tl_run_step_kernel(b.run, &copy), TL_ERROR_STALE);
    assert_int_equal(tl_run_step_kernel(b.run, &second), TL_OK);
    if (tl_reset_run(b.run)) fail_msg("%s", b.env.error.text);
    assert_int_equal(tl_run_step_kernel(b.run, &second), TL_ERROR_STALE);  // given up
    (void)bed_step(&b, 0);
    mixer_start_pass(&b.mixer);
    if (tl_start_pass(b.run, 0) || tl_next_step(b.run, &copy, &done)) fail_msg("%s", b.env.error.text);
    assert_int_equal(copy.index, first.index);
    assert_int_equal(tl_run_step_kernel(b.run, &first), TL_ERROR_STALE);  // of an earlier training step
    assert_int_equal(tl_run_step_kernel(b.run, &copy), TL_OK);
    mixer_start_pass(&b.mixer);
    if (tl_reset_run(b.run) || tl_start_pass(b.run, 0) || tl_next_step(b.run, &copy, &done)) fail_msg("%s", b.env.error.text);
    b.mixer.fail_at = b.mixer.calls;  // a failing kernel gives the pass up
    assert_int_equal(tl_run_step_kernel(b.run, &copy), TL_ERROR_KERNEL);
    assert_only_inputs_are_held(&b);
    assert_int_equal(tl_next_step(b.run, &second, &done), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_start_pass(b.run, -1), TL_ERROR_INVALID_ARG);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// What a kernel was recorded into is handed over, wherever a pass is given up; ranges go without that.
static void a_pass_given_up_hands_over_what_was_recorded(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_run_step step;
    int32_t done;
    long submits;
    (void)state;
    bed_open(&b, &graph, 0, 0, 4);
    bed_must_init(&b);
    if (tl_start_pass(b.run, 0) || tl_next_step(b.run, &step, &done)) fail_msg("%s", b.env.error.text);
    b.run->store.enqueued = 0;
    submits = b.spy.calls[SPY_SUBMIT];
    if (tl_reset_run(b.run)) fail_msg("%s", b.env.error.text);
    assert_int_equal(b.spy.calls[SPY_SUBMIT], submits + 1);
    if (tl_start_pass(b.run, 0) || tl_next_step(b.run, &step, &done)) fail_msg("%s", b.env.error.text);
    b.run->store.enqueued = 0;
    submits = b.spy.calls[SPY_SUBMIT];
    if (tl_finish_step(b.run, &step) || tl_next_step(b.run, &step, &done)) fail_msg("%s", b.env.error.text);
    assert_int_equal(b.spy.calls[SPY_SUBMIT], submits);  // scratch of the first step is gone all the same
    assert_int_equal(b.run->store.enqueued, 1);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- compute steps that the caller carries out --

static tl_result call_kernel(const tl_run_step *step) {
    int backward = step->step.kind == TL_STEP_BACKWARD;
    return (backward ? step->kernel->backward : step->kernel->forward)(&step->call, step->kernel->user);
}

static void bed_next(bed *b, tl_run_step *step, int32_t *done) {
    tl_result result;
    do result = tl_next_step(b->run, step, done); while (result == TL_NOT_READY);
    if (result) fail_msg("%s", b->env.error.text);
}

static void open_pass(bed *b, const tl_graph *graph, int kind, int is_remote) {
    bed_open(b, graph, kind, 4, 4);
    b->spy.is_remote = is_remote;
    b->desc.budget_bytes = 200;
    b->desc.host_budget_bytes = 100;
    bed_must_init(b);
    if (bed_load(b->run, 0, b) || tl_start_pass(b->run, 0)) fail_msg("%s", b->env.error.text);
}

// The kernels check that every operand with bytes has an address.
static void operands_of_a_yielded_step_are_mapped_or_a_call_maps_them(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    uint64_t expected = run_online_once(&graph);
    int kind, is_remote;
    (void)state;
    for (is_remote = 0; is_remote < 2; is_remote++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            tl_run_step step;
            int32_t done = 0;
            open_pass(&b, &graph, kind, is_remote);
            for (bed_next(&b, &step, &done); !done; bed_next(&b, &step, &done)) {
                if (!step.is_compute) continue;
                assert_int_equal(!step.call.outputs[0].host, is_remote || !step.call.outputs[0].range.bytes);
                if (is_remote) assert_int_equal(tl_map_step(b.run, &step), TL_OK);
                assert_int_equal(tl_map_step(b.run, &step), TL_OK);  // mapped is mapped
                assert_int_equal(call_kernel(&step), TL_OK);
                assert_int_equal(tl_finish_step(b.run, &step), TL_OK);
                assert_null(step.call.outputs[0].host);  // the mapping has ended
            }
            assert_int_equal(bed_outcome(&b, 0), expected);
            bed_close(&b);
        }
    tl_free_graph(NULL, &graph);
}

static void a_step_that_was_not_carried_out_is_named_and_nothing_is_lost(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    uint64_t expected = run_online_once(&graph);
    tl_run_step step, same;
    int32_t done = 0;
    long refused = 0;
    char name[64];
    (void)state;
    open_pass(&b, &graph, BACKEND_CHECKED, 0);
    for (bed_next(&b, &step, &done); !done; bed_next(&b, &step, &done)) {
        tl_backend_counters before = spy_count(&b.spy), after;
        if (!step.is_compute) continue;
        same = step;
        assert_int_equal(tl_next_step(b.run, &step, &done), TL_ERROR_INVALID_ARG);  // also after the last one
        snprintf(name, sizeof name, "tl_next_step: step %d (", (int)step.index);
        assert_memory_equal(b.env.error.text, name, strlen(name));
        assert_non_null(strstr(b.env.error.text, tl_name_node(&graph, step.step.node)));
        after = spy_count(&b.spy);
        assert_memory_equal(&before, &after, sizeof after);
        assert_memory_equal(&step, &same, sizeof same);
        assert_int_equal(done, 0);
        assert_int_equal(call_kernel(&step), TL_OK);
        assert_int_equal(tl_finish_step(b.run, &step), TL_OK);
        refused++;
    }
    assert_int_equal(refused, b.mixer.calls);
    assert_int_equal(bed_outcome(&b, 0), expected);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static void a_step_is_finished_once_and_the_last_one_only(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_run_step first, second, none;
    int32_t done = 0;
    (void)state;
    memset(&none, 0, sizeof none);
    open_pass(&b, &graph, BACKEND_CHECKED, 0);
    assert_int_equal(tl_finish_step(b.run, &none), TL_OK);  // no compute step: nothing to do
    bed_next(&b, &first, &done);
    assert_int_equal(tl_finish_step(b.run, &first), TL_OK);
    assert_int_equal(tl_finish_step(b.run, &first), TL_ERROR_STALE);
    assert_int_equal(tl_run_step_kernel(b.run, &first), TL_ERROR_STALE);
    assert_int_equal(tl_map_step(b.run, &first), TL_ERROR_STALE);
    bed_next(&b, &second, &done);
    assert_int_equal(tl_finish_step(b.run, &first), TL_ERROR_STALE);
    b.spy.fail_function = SPY_UNMAP;  // a mapping that cannot be ended gives the pass up
    b.spy.fail_at = b.spy.calls[SPY_UNMAP];
    assert_int_equal(tl_finish_step(b.run, &second), TL_ERROR_BACKEND);
    assert_non_null(strstr(b.env.error.text, "unmap"));
    assert_only_inputs_are_held(&b);
    b.spy.is_remote = 1;
    tl_free_run(b.run);
    bed_must_init(&b);
    if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
    bed_next(&b, &first, &done);
    b.spy.fail_function = SPY_MAP;
    b.spy.fail_at = b.spy.calls[SPY_MAP];
    assert_int_equal(tl_map_step(b.run, &first), TL_ERROR_BACKEND);
    assert_only_inputs_are_held(&b);
    if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
    bed_next(&b, &first, &done);
    assert_int_equal(tl_map_step(b.run, &first), TL_OK);
    if (tl_reset_run(b.run)) fail_msg("%s", b.env.error.text);  // what is mapped is unmapped
    assert_only_inputs_are_held(&b);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- accounts --

#ifndef TL_NO_ACCOUNTS
static void a_backend_under_a_run_is_not_freed(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    uint64_t expected = run_online_once(&graph);
    (void)state;
    open_pass(&b, &graph, BACKEND_CHECKED, 0);
    assert_int_equal(tl_free_cpu_backend(&b.env, &b.spy.inner), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text,
                        "tl_free_cpu_backend: backend: still in use (runs and managers: 1): free those first");
    if (tl_reset_run(b.run)) fail_msg("%s", b.env.error.text);
    assert_int_equal(bed_step(&b, 0), expected);  // nothing was freed
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static void the_account_of_a_run_is_limited_to_its_budgets(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    int limited;
    (void)state;
    for (limited = 0; limited < 2; limited++) {
        bed_open(&b, &graph, 0, 4, 4);
        if (limited) { b.desc.budget_bytes = 300; b.desc.base_bytes = 50; b.desc.host_budget_bytes = 100; }
        bed_must_init(&b);
        assert_true(b.spy.limits[TL_TIER_DEVICE] == (limited ? 250 : TL_UNLIMITED));
        assert_int_equal(b.spy.limits[TL_TIER_HOST], limited ? 100 : 0);
        bed_close(&b);
    }
    tl_free_graph(NULL, &graph);
}

// Claims of others, also during a pass, are not this run's; a backend without accounts cannot tell.
static void a_run_measures_its_own_account(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    int accounts;
    (void)state;
    for (accounts = 0; accounts < 2; accounts++) {
        tl_run_step step;
        tl_range range;
        int32_t done = 0;
        tl_result result = TL_OK;
        memset(&range, 0, sizeof range);
        bed_open(&b, &graph, 0, 4, 4);
        if (!accounts) b.backend.open_account = NULL;
        bed_must_init(&b);
        assert_int_equal(b.spy.inner.add_block(b.spy.inner.self, TL_TIER_DEVICE, 4096, &range.block), TL_OK);
        range.bytes = 4096;
        assert_int_equal(b.spy.inner.claim(b.spy.inner.self, range), TL_OK);
        assert_int_equal(b.spy.inner.release(b.spy.inner.self, range), TL_OK);
        (void)bed_step(&b, 0);  // what was claimed before the pass is no peak of it
        assert_int_equal(spy_count(&b.spy).peak_bytes[TL_TIER_DEVICE], bed_report(&b).measured_peak_bytes);
        assert_int_equal(b.spy.inner.claim(b.spy.inner.self, range), TL_OK);
        (void)bed_step(&b, 0);  // nor is what others hold all the time
        assert_int_equal(b.spy.inner.release(b.spy.inner.self, range), TL_OK);
        if (bed_load(b.run, 0, &b) || tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
        assert_int_equal(b.spy.inner.claim(b.spy.inner.self, range), TL_OK);
        while (!done && !result) {
            result = tl_next_step(b.run, &step, &done);
            if (!result && step.is_compute) result = tl_run_step_kernel(b.run, &step);
        }
        assert_int_equal(result, accounts ? TL_OK : TL_ERROR_MISMATCH);
        assert_int_equal(b.spy.inner.release(b.spy.inner.self, range), TL_OK);
        assert_int_equal(b.spy.inner.free_block(b.spy.inner.self, range.block), TL_OK);
        bed_close(&b);
    }
    tl_free_graph(NULL, &graph);
}
#endif

static long packed_candidates;

// A plan has no room for bytes that should be gone: nothing is claimed while some are.
static void nothing_is_claimed_before_what_was_refused_is_taken_back(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    uint64_t expected = run_online_once(&graph);
    (void)state;
    bed_open(&b, &graph, 0, 4, 4);
    bed_must_init(&b);
    b.spy.fail_function = SPY_RELEASE;
    b.spy.fail_at = b.spy.calls[SPY_RELEASE];
    b.spy.fail_count = 1000000;
    assert_int_equal(tl_run_plan(b.run), TL_ERROR_BACKEND);
    assert_non_null(strstr(b.env.error.text, ": release: "));
    assert_int_equal(tl_run_plan(b.run), TL_ERROR_BACKEND);
    assert_non_null(strstr(b.env.error.text, ": claim: "));
    b.spy.fail_function = -1;
    assert_int_equal(bed_step(&b, 0), expected);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static int32_t pick_at_random(const tl_checkpoint_info *candidates, int32_t count, void *user) {
    int32_t i;
    for (i = 0; i < count; i++) packed_candidates += candidates[i].codec == TL_CODEC_F16;
    return (int32_t)tl_next_random_below((tl_random *)user, (uint64_t)count);
}

static void the_peak_of_a_pass_is_not_that_of_the_pass_before(void **state) {
    static bed b;
    tl_graph graphs[2];
    tl_chain_desc chain;
    uint64_t bytes[12];
    tl_random random;
    uint64_t before = 0;
    int pass, packs, smaller = 0;
    (void)state;
    random.state = 3;
    packed_candidates = 0;
    memset(&chain, 0, sizeof chain);
    for (pass = 0; pass < 12; pass++) bytes[pass] = 32;
    chain.layer_count = 12;
    chain.input_bytes = 32;
    chain.output_bytes = bytes;
    graphs[0] = graph_of(everything);
    tl_init_graph(&graphs[1]);
    assert_int_equal(tl_add_chain(NULL, &graphs[1], &chain), TL_OK);
    for (packs = 0; packs < 2; packs++) {
        bed_open(&b, &graphs[packs], 0, 4, 4);
        b.desc.budget_bytes = packs ? 8 * 32 + 16 : 200;
        b.desc.eviction = TL_EVICTION_CALLER;
        b.desc.evict = pick_at_random;
        b.desc.evict_user = &random;
        b.desc.codec = packs ? TL_CODEC_F16 : TL_CODEC_NONE;
        bed_must_init(&b);
        for (pass = 0; pass < 40; pass++) {
            uint64_t peak;
            (void)bed_step(&b, 0);
            peak = bed_report(&b).measured_peak_bytes;
            smaller += peak < before;
            before = peak;
        }
        bed_close(&b);
        tl_free_graph(NULL, &graphs[packs]);
    }
    assert_true(smaller > 2 && packed_candidates > 0);  // the caller sees what is compressed
}

// -- in order: nothing is waited for --

// One pass by hand or by itself; a WAIT only ends the copy then.
static void a_pass_in_order_submits_once_and_neither_polls_nor_waits(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, kind, by_hand, pass;
    (void)state;
    for (which = 0; which < 4; which++)
        for (kind = 0; kind <= BACKEND_CHECKED; kind++)
            for (by_hand = 0; by_hand < 2; by_hand++) {
                uint64_t sums[2];
                undisturbed(&graph, 0, which, &lossless, &lossy, sums, NULL);
                bed_open(&b, &graph, kind, 0, 4);
                failing_desc(&b, which, &lossless, &lossy);
                bed_must_init(&b);
                for (pass = 0; pass < 2; pass++) {
                    tl_run_report report;
                    tl_run_step step;
                    int32_t done = 0;
                    memset(b.spy.calls, 0, sizeof b.spy.calls);
                    memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
                    if (!by_hand && tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
                    if (by_hand && (bed_load(b.run, 0, &b) || tl_start_pass(b.run, 0))) fail_msg("%s", b.env.error.text);
                    while (by_hand && !done) {
                        if (tl_next_step(b.run, &step, &done)) fail_msg("%s", b.env.error.text);
                        assert_int_equal(step.ticket.value, 0);
                        if (step.is_compute && tl_run_step_kernel(b.run, &step)) fail_msg("%s", b.env.error.text);
                        assert_int_equal(b.spy.calls[SPY_SUBMIT], done);
                    }
                    report = bed_report(&b);
                    assert_true(which == 3 || report.spill_count > 0);
                    assert_true(which == 3 || report.fetch_count > 0);
                    assert_int_equal(b.spy.calls[SPY_SUBMIT], 1);
                    assert_int_equal(b.spy.calls[SPY_POLL], 0);
                    assert_int_equal(bed_outcome(&b, 0), sums[pass]);
                    assert_int_equal(b.spy.calls[SPY_WAIT], 0);
                    assert_int_equal(b.spy.calls[SPY_SUBMIT], 1);
                }
                bed_close(&b);
                assert_int_equal(b.spy.calls[SPY_WAIT], 0);
            }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// -- submits that are bounded in time --

// What lies between two submits, by the costs of the kernels and the bytes that conversions and copies move: 1 ns each, 2 ns to
// the device.
typedef struct submit_counter {
    tl_backend inner;
    uint64_t   limit, sum, before, longest;
    int        fetches;     // 1 = the step at hand is one
    long       items, submits, cuts;
} submit_counter;
static submit_counter counted;

static void count_item(uint64_t ns) {
    if (!counted.items && counted.submits) assert_true(counted.before + ns > counted.limit);    // not cut too early
    counted.items += ns > 0;
    counted.sum += ns;
    assert_true(counted.items <= 1 || counted.sum <= counted.limit);
    if (counted.sum > counted.longest) counted.longest = counted.sum;
}
static tl_result count_copy(void *self, tl_range to, tl_range from) {
    count_item(counted.fetches ? 2 * from.bytes : from.bytes);
    return counted.inner.copy(self, to, from);
}
static tl_result count_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    count_item(from.bytes);
    return counted.inner.compress(self, codec, to, from);
}
static tl_result count_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    count_item(to.bytes);
    return counted.inner.expand(self, codec, to, from);
}
static tl_result count_submit(void *self, tl_ticket *ticket) {
    counted.before = counted.sum;
    counted.sum = 0;
    counted.items = 0;
    counted.submits++;
    return counted.inner.submit(self, ticket);
}

// One pass by hand. Returns what it computed.
static uint64_t count_submits_of_a_pass(bed *b, const tl_plan *plan) {
    const tl_graph *graph = tl_find_run_graph(b->run);
    int32_t done = 0, next = 0;
    counted.sum = counted.before = counted.longest = 0;
    counted.items = counted.submits = 0;
    if (bed_load(b->run, 0, b) || tl_start_pass(b->run, 0)) fail_msg("%s", b->env.error.text);
    while (!done) {
        tl_run_step step;
        counted.fetches = next < plan->step_count && plan->steps[next].kind == TL_STEP_FETCH;
        if (tl_next_step(b->run, &step, &done)) fail_msg("%s", b->env.error.text);
        next = step.index + 1;
        if (!step.is_compute) continue;
        if (!done) {
            const tl_node *node = &graph->nodes[step.call.node];
            count_item(step.call.kind == TL_STEP_BACKWARD ? node->bwd_cost : node->fwd_cost);
        }
        if (tl_run_step_kernel(b->run, &step)) fail_msg("%s", b->env.error.text);
    }
    counted.cuts += counted.submits - 1;
    return bed_outcome(b, plan->inference);
}

static uint64_t submits_under(const tl_graph *graph, const tl_plan *plan, const tl_device *device, uint64_t limit, long *submits) {
    static bed b;
    tl_run_report report;
    uint64_t sum;
    bed_open(&b, graph, 0, 0, 4);
    b.desc.plan = plan;
    b.desc.device = device;
    b.desc.submit_ns = limit;
    counted.limit = device ? limit : UINT64_MAX;
    counted.inner = b.backend;
    b.backend.copy = count_copy;
    b.backend.compress = count_compress;
    b.backend.expand = count_expand;
    b.backend.submit = count_submit;
    bed_must_init(&b);
    sum = count_submits_of_a_pass(&b, plan);
    report = bed_report(&b);
    assert_int_equal(report.longest_submit_ns, counted.limit == UINT64_MAX ? 0 : counted.longest);
    *submits = counted.submits;
    bed_close(&b);
    return sum;
}

// Submits are cut by the costs of the graph, as late as the limit allows, and change no result.
static void a_submit_takes_no_longer_than_it_may(void **state) {
    tl_random random;
    long round, passes = 0, submits;
    (void)state;
    random.state = 44;
    memset(&counted, 0, sizeof counted);
    for (round = 0; round < scaled(200); round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        tl_device device;
        tl_report report;
        uint64_t whole;
        memset(&env, 0, sizeof env);
        memset(&device, 0, sizeof device);
        device.link_bytes_per_second = device.codec_bytes_per_second = 1000000000;
        device.upload_bytes_per_second = 500000000;
        if (random_graph(&env, &random, 16, &graph)) fail_msg("%s", env.error.text);
        if (random_plan(&env, &random, &graph, &plan)) fail_msg("%s", "out of memory");
        if (simulate(&graph, &plan, 4, &report)) {
            random_free_plan(&env, &plan);
            tl_free_graph(&env, &graph);
            continue;
        }
        passes++;
        whole = submits_under(&graph, &plan, &device, UINT64_MAX, &submits);
        assert_int_equal(submits, 1);
        assert_int_equal(submits_under(&graph, &plan, NULL, 1, &submits), whole);   // costs without a unit
        assert_int_equal(submits, 1);
        assert_int_equal(submits_under(&graph, &plan, &device, 1 + tl_next_random(&random) % 400, &submits), whole);
        assert_int_equal(submits_under(&graph, &plan, &device, 1, &submits), whole);
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    printf("%ld plans cut %ld times\n", passes, counted.cuts);
    assert_true(passes > 0 && counted.cuts > 5 * passes);
}

// Without a wish it is 2 ms. A submit that fails ends the pass, and the next one does the step again.
static void a_submit_is_two_milliseconds_and_may_fail(void **state) {
    static bed b;
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
                              "node 1 a op fwd=1200000 bwd=700000 out=8 needs=none in=0\n"
                              "node 2 b op fwd=900000 bwd=300000 out=8 needs=none in=1\n");
    tl_device device;
    uint64_t sum;
    (void)state;
    memset(&device, 0, sizeof device);
    bed_open(&b, &graph, 0, 0, 4);
    b.desc.device = &device;
    bed_must_init(&b);
    sum = bed_step(&b, 0);
    assert_int_equal(b.spy.calls[SPY_SUBMIT], 2);       // a; b and both backwards
    assert_int_equal(bed_report(&b).longest_submit_ns, 1900000);
    tl_free_run(b.run);
    bed_must_init(&b);
    b.spy.fail_function = SPY_SUBMIT;
    b.spy.fail_at = b.spy.calls[SPY_SUBMIT];
    assert_int_equal(tl_run_plan(b.run), TL_ERROR_BACKEND);
    assert_non_null(strstr(b.env.error.text, "submit: "));
    memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
    assert_int_equal(bed_step(&b, 0), sum);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- a backend that only records --

// A kernel as a command: its operands are found again when its frame is retired.
typedef struct recorded_kernel {
    tl_backend    *inner;
    mixer         *mixer;
    tl_kernel_call call;
    tl_operand     operands[40];
    int32_t        count;
} recorded_kernel;

static void call_recorded(void *data) {
    recorded_kernel *k = (recorded_kernel *)data;
    tl_kernel_call *call = &k->call;
    const tl_node *node = &call->graph->nodes[call->node];
    tl_operand *at = k->operands;
    int32_t i;
    for (i = 0; i < k->count; i++) {
        assert_null(at[i].host);
        if (k->inner->map(k->inner->self, at[i].range, TL_MAP_CHANGE, &at[i].host)) fail_msg("%s", "map");
    }
    call->inputs = at; at += node->input_count;
    call->outputs = at; at += node->output_count;
    call->output_grads = at; at += node->output_count;
    call->input_grads = at; at += node->input_count;
    call->saved = at[0];
    call->scratch = at[1];
    if (call->kind == TL_STEP_BACKWARD) assert_int_equal(mixer_backward(call, k->mixer), TL_OK);
    else assert_int_equal(mixer_forward(call, k->mixer), TL_OK);
    for (i = 0; i < k->count; i++)
        if (k->inner->unmap(k->inner->self, k->operands[i].range, TL_MAP_CHANGE, k->operands[i].host)) fail_msg("%s", "unmap");
    free(k);
}

typedef struct record_bed { bed b; recorder recorder; } record_bed;

static void copy_operands(recorded_kernel *k, const tl_operand *from, int32_t count) {
    memcpy(k->operands + k->count, from, (size_t)count * sizeof *from);
    k->count += count;
    assert_true(k->count <= 38);
}

static tl_result record_kernel(const tl_kernel_call *call, void *user) {
    record_bed *r = (record_bed *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    recorded_kernel *k = (recorded_kernel *)calloc(1, sizeof *k);
    record_op *op = record_add(&r->recorder, RECORD_CALL);
    assert_non_null(k);
    assert_true(r->recorder.is_open);
    k->inner = &r->recorder.inner;
    k->mixer = &r->b.mixer;
    k->call = *call;
    copy_operands(k, call->inputs, node->input_count);
    copy_operands(k, call->outputs, node->output_count);
    copy_operands(k, call->output_grads, node->output_count);
    copy_operands(k, call->input_grads, node->input_count);
    copy_operands(k, &call->saved, 1);
    copy_operands(k, &call->scratch, 1);
    for (op->access_count = 0; op->access_count < k->count; op->access_count++) {
        op->accesses[op->access_count].range = k->operands[op->access_count].range;
        op->accesses[op->access_count].writes = 1;
    }
    op->call = call_recorded;
    op->data = k;
    return TL_OK;
}

static void record_bed_open(record_bed *r, const tl_graph *graph, uint64_t seed) {
    int32_t i;
    bed_open(&r->b, graph, 0, seed, 4);
    r->b.backend = record_open(&r->recorder, &r->b.backend);
    for (i = 0; i < r->b.desc.kernel_count; i++) {
        r->b.kernels[i].forward = r->b.kernels[i].backward = record_kernel;
        r->b.kernels[i].user = r;
    }
}

static void record_bed_close(record_bed *r) {
    tl_free_run(r->b.run);  // frames that still have to be done keep the bytes that they need
    r->b.run = NULL;
    record_close(&r->recorder);
    spy_close(&r->b.backend_env, &r->b.spy);
}

// A pass, a few steps a frame, as many frames under way as are allowed.
static void record_pass(record_bed *r, tl_random *random, uint64_t frames) {
    tl_run_step step;
    int32_t done = 0;
    if (bed_load(r->b.run, 0, &r->b) || tl_start_pass(r->b.run, 0)) fail_msg("%s", r->b.env.error.text);
    while (!done) {
        uint64_t left = tl_next_random_below(random, 5);
        record_start(&r->recorder);
        for (; !done && left; left--) {
            tl_result result = tl_next_step(r->b.run, &step, &done);
            if (result == TL_NOT_READY) {
                assert_int_equal(r->recorder.out_of_order, 1);
                break;
            }
            if (result) fail_msg("%s", r->b.env.error.text);
            if (step.is_compute && tl_run_step_kernel(r->b.run, &step)) fail_msg("%s", r->b.env.error.text);
        }
        record_end(&r->recorder);
        if (r->recorder.frame - 1 > frames) record_retire(&r->recorder, r->recorder.frame - 1 - frames);
    }
}

static void recorded_passes_compute_what_others_do(void **state) {
    static record_bed r;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, out_of_order;
    uint64_t seed, expected = keep_all_outcome(&graph, 0, 1, NULL);
    (void)state;
    for (which = 0; which < 4; which++)
        for (out_of_order = 0; out_of_order < 2; out_of_order++)
            for (seed = 0; seed < 20; seed++) {
                tl_random random = {seed};
                uint64_t sums[2];
                int pass;
                undisturbed(&graph, 0, which, &lossless, &lossy, sums, NULL);
                record_bed_open(&r, &graph, seed);
                r.recorder.out_of_order = out_of_order;
                failing_desc(&r.b, which, &lossless, &lossy);
                bed_must_init(&r.b);
                record_finish(&r.recorder);
                for (pass = 0; pass < 2; pass++) {
                    tl_run_report report;
                    if (pass && which == 1) memset(r.b.mixer.gradients, 0, sizeof r.b.mixer.gradients);
                    record_pass(&r, &random, out_of_order ? seed % 2 : seed % 4);
                    report = bed_report(&r.b);
                    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
                    assert_int_equal(report.measured_host_peak_bytes, report.planned_host_peak_bytes);
                    record_finish(&r.recorder);
                    if (!pass) assert_int_equal(bed_outcome(&r.b, 0), sums[0]);
                }
                if (which == 0 || which == 2) assert_int_equal(bed_outcome(&r.b, 0), expected);
                if (which == 1) assert_int_equal(bed_outcome(&r.b, 0), sums[1]);
                assert_int_equal(r.recorder.waits, 0);
                if (!out_of_order) assert_int_equal(r.recorder.polls + (r.recorder.submits != 2), 0);
                record_bed_close(&r);
            }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// Nothing but WAIT and the host needs waiting; a backend that cannot is told apart from one that failed.
static void a_whole_step_is_recorded_where_nothing_needs_waiting(void **state) {
    static record_bed r;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    uint64_t sums[2];
    unsigned char bytes[8];
    tl_run_step step;
    tl_result result;
    int32_t done;
    int out_of_order;
    (void)state;
    undisturbed(&graph, 0, 0, &plan, NULL, sums, NULL);
    for (out_of_order = 0; out_of_order < 2; out_of_order++) {
        record_bed_open(&r, &graph, 0);
        r.recorder.out_of_order = out_of_order;
        r.b.desc.plan = &plan;
        bed_must_init(&r.b);
        record_finish(&r.recorder);  // the inputs are zeroed in a frame, too
        record_start(&r.recorder);
        if (out_of_order) {
            assert_int_equal(tl_run_plan(r.b.run), TL_NOT_READY);
            assert_string_equal(r.b.env.error.text, "tl_run_plan: backend: work is under way that it cannot wait for");
            assert_int_equal(tl_run_plan(r.b.run), TL_NOT_READY);
            assert_int_equal(tl_next_step(r.b.run, &step, &done), TL_ERROR_INVALID_ARG);
            assert_string_equal(r.b.env.error.text, "tl_next_step: run: tl_run_plan is under way");
            assert_int_equal(tl_start_pass(r.b.run, 0), TL_ERROR_INVALID_ARG);
            do {
                record_finish(&r.recorder);
                record_start(&r.recorder);
            } while ((result = tl_run_plan(r.b.run)) == TL_NOT_READY);
            if (result) fail_msg("%s", r.b.env.error.text);
            record_finish(&r.recorder);
            assert_int_equal(bed_outcome(&r.b, 0), sums[0]);
            record_start(&r.recorder);
            assert_int_equal(tl_run_plan(r.b.run), TL_NOT_READY);
            record_finish(&r.recorder);
            if (tl_reset_run(r.b.run)) fail_msg("%s", r.b.env.error.text);
            assert_only_inputs_are_held(&r.b);
            record_bed_close(&r);
            continue;
        }
        if (tl_run_plan(r.b.run)) fail_msg("%s", r.b.env.error.text);
        assert_int_equal(tl_write_tensor(r.b.run, tensor_of(0, 0), bytes, 8), TL_NOT_READY);
        assert_string_equal(r.b.env.error.text, "tl_write_tensor: backend: work is under way that it cannot wait for");
        record_end(&r.recorder);
        assert_int_equal(tl_read_tensor(r.b.run, tensor_of(4, 0), bytes, 16), TL_NOT_READY);
        assert_string_equal(r.b.env.error.text, "tl_read_tensor: backend: work is under way that it cannot wait for");
        record_retire(&r.recorder, r.recorder.frame - 1);
        assert_int_equal(bed_outcome(&r.b, 0), sums[0]);
        assert_int_equal(r.recorder.waits + r.recorder.polls, 0);
        assert_int_equal(r.recorder.submits, 1);
        record_bed_close(&r);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Kernels of the host on a backend that cannot wait: the step stays until its operands can be had.
static void a_kernel_of_the_host_is_not_called_before_its_operands_are_ready(void **state) {
    static record_bed r;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    tl_run_step step;
    uint64_t sums[2];
    int32_t done = 0;
    long not_ready = 0, submits_refused = 0;
    (void)state;
    undisturbed(&graph, 0, 0, &plan, NULL, sums, NULL);
    record_bed_open(&r, &graph, 0);
    r.recorder.is_visible = 1;
    r.b.desc.kernel_count = mixer_kernels(&graph, &r.b.mixer, r.b.kernels);
    r.b.desc.plan = &plan;
    bed_must_init(&r.b);
    record_finish(&r.recorder);
    if (bed_load(r.b.run, 0, &r.b) || tl_start_pass(r.b.run, 0)) fail_msg("%s", r.b.env.error.text);
    r.recorder.refuses_submits = 3;
    while (!done) {
        tl_result result = tl_next_step(r.b.run, &step, &done);
        if (result == TL_NOT_READY) {  // the last submit
            assert_int_equal(done, 0);
            submits_refused++;
            continue;
        }
        if (result) fail_msg("%s", r.b.env.error.text);
        while (step.is_compute && (result = tl_run_step_kernel(r.b.run, &step)) == TL_NOT_READY) {
            assert_string_equal(r.b.env.error.text, "tl_run_step_kernel: backend: work is under way that it cannot wait for");
            not_ready++;
            record_finish(&r.recorder);
        }
        if (result) fail_msg("%s", r.b.env.error.text);
    }
    assert_int_equal(submits_refused, 3);
    assert_true(not_ready > 1);
    record_finish(&r.recorder);
    assert_int_equal(bed_outcome(&r.b, 0), sums[0]);
    assert_int_equal(tl_run_plan(r.b.run), TL_NOT_READY);  // by itself it cannot go on
    if (tl_reset_run(r.b.run)) fail_msg("%s", r.b.env.error.text);
    assert_only_inputs_are_held(&r.b);
    record_bed_close(&r);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// A loss gradient in f64 is written by the host in the middle of a step, which cannot be begun twice.
static void a_step_that_was_begun_and_cannot_wait_fails(void **state) {
    static record_bed r;
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 l ce fwd=1 bwd=1 out=8 needs=in in=0\n");
    tl_strategy strategy = tl_with_gradient(tl_strategy_new(), tl_gradient_full());
    tl_run_step step;
    int32_t done = 0;
    tl_result result = TL_OK;
    (void)state;
    record_bed_open(&r, &graph, 0);
    r.b.desc.strategy = &strategy;
    r.b.desc.kernel_precisions = 1u << TL_PRECISION_DOUBLE;
    bed_must_init(&r.b);
    record_start(&r.recorder);
    if (tl_start_pass(r.b.run, 0)) fail_msg("%s", r.b.env.error.text);
    r.recorder.refuses_maps = 1;
    while (!result && !done) {
        result = tl_next_step(r.b.run, &step, &done);
        if (!result && step.is_compute && tl_run_step_kernel(r.b.run, &step)) fail_msg("%s", r.b.env.error.text);
    }
    assert_int_equal(result, TL_ERROR_BACKEND);
    assert_non_null(strstr(r.b.env.error.text, "(B l): claim: work behind a ticket is still under way"));
    assert_int_equal(tl_next_step(r.b.run, &step, &done), TL_ERROR_INVALID_ARG);  // given up
    record_finish(&r.recorder);  // the graph of the kernels is the run's
    record_bed_close(&r);
    tl_free_graph(NULL, &graph);
}

// Given up, or freed, after any number of steps, while all of its frames are under way.
static void a_recorded_pass_is_given_up_without_waiting(void **state) {
    static record_bed r;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, frees;
    (void)state;
    for (which = 0; which < 4; which++)
        for (frees = 0; frees < 2; frees++) {
            uint64_t sums[2];
            int32_t stop, done = 0;
            undisturbed(&graph, 0, which, &lossless, &lossy, sums, NULL);
            for (stop = 1; !done; stop++) {
                tl_run_step step;
                tl_random random = {(uint64_t)stop};
                int32_t at;
                record_bed_open(&r, &graph, 0);
                failing_desc(&r.b, which, &lossless, &lossy);
                bed_must_init(&r.b);
                record_finish(&r.recorder);
                record_start(&r.recorder);
                if (bed_load(r.b.run, 0, &r.b) || tl_start_pass(r.b.run, 0)) fail_msg("%s", r.b.env.error.text);
                for (at = 0; at < stop && !done; at++) {
                    if (tl_next_step(r.b.run, &step, &done)) fail_msg("%s", r.b.env.error.text);
                    if (step.is_compute && tl_run_step_kernel(r.b.run, &step)) fail_msg("%s", r.b.env.error.text);
                }
                if (!frees) {
                    if (tl_reset_run(r.b.run)) fail_msg("%s", r.b.env.error.text);
                    assert_only_inputs_are_held(&r.b);
                    record_finish(&r.recorder);  // what was recorded still finds its bytes
                    memset(r.b.mixer.gradients, 0, sizeof r.b.mixer.gradients);
                    record_pass(&r, &random, 2);
                    record_finish(&r.recorder);
                    if (done) assert_true(bed_outcome(&r.b, 0) == sums[0] || bed_outcome(&r.b, 0) == sums[1]);
                    else assert_int_equal(bed_outcome(&r.b, 0), sums[0]);
                }
                assert_int_equal(r.recorder.waits + r.recorder.polls, 0);
                record_bed_close(&r);
            }
            assert_true(stop > 15);
        }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// -- layers --

// A policy that keeps nothing costs one more forward pass where there is room for it, not n of them.
static void with_room_for_everything_nothing_runs_more_than_twice(void **state) {
    static bed b;
    static tl_layer layers[30];
    uint64_t saved;
    (void)state;
    for (saved = 0; saved < 2; saved++) {
        uint64_t expected = chain_keep_all(30, saved, layers);
        chain_open(&b, 30, saved, layers, 0);
        b.desc.policy = tl_policy_none();
        b.desc.budget_bytes = 1000;
        chain_init(&b, 30, layers);
        assert_int_equal(bed_step(&b, 0), expected);
        assert_true(b.mixer.forwards > 30 && b.mixer.forwards <= 60);
        bed_close(&b);
    }
}

static void layers_by_hand_compute_what_a_pass_computes(void **state) {
    static bed b;
    static tl_layer layers[40];
    uint64_t budget;
    (void)state;
    for (budget = 0; budget <= 8; budget += 4) {
        uint64_t saved;
        for (saved = 0; saved < 2; saved++) {
            uint64_t expected;
            int32_t i;
            int pass;
            chain_open(&b, 40, saved, layers, BACKEND_CHECKED);
            b.desc.budget_bytes = budget ? budget + 2 * saved : 0;
            chain_init(&b, 40, layers);
            expected = bed_step(&b, 0);
            bed_close(&b);
            chain_open(&b, 40, saved, layers, BACKEND_CHECKED | BACKEND_DEFERRED);
            b.desc.budget_bytes = b.spy.limit = budget ? budget + 2 * saved : 0;
            chain_init(&b, 40, layers);
            assert_int_equal(tl_run_forward(b.run, 1), TL_ERROR_INVALID_ARG);
            assert_int_equal(tl_run_backward(b.run, 39), TL_ERROR_INVALID_ARG);
            for (pass = 0; pass < 2; pass++) {
                mixer_start_pass(&b.mixer);
                for (i = 0; i < 40; i++) {
                    assert_int_equal(tl_run_forward(b.run, i), TL_OK);
                    if (i == 20) {  // out of turn: nothing changes
                        assert_int_equal(tl_run_forward(b.run, i), TL_ERROR_INVALID_ARG);
                        assert_int_equal(tl_run_forward(b.run, i + 2), TL_ERROR_INVALID_ARG);
                        assert_int_equal(tl_run_forward(b.run, 0), TL_ERROR_INVALID_ARG);
                        assert_int_equal(tl_run_backward(b.run, i), TL_ERROR_INVALID_ARG);
                        assert_int_equal(tl_run_plan(b.run), TL_ERROR_INVALID_ARG);
                    }
                }
                assert_int_equal(tl_run_forward(b.run, 40), TL_ERROR_INVALID_ARG);
                assert_int_equal(tl_run_forward(b.run, -1), TL_ERROR_INVALID_ARG);
                assert_int_equal(tl_run_forward(b.run, INT32_MAX), TL_ERROR_INVALID_ARG);
                for (i = 39; i >= 0; i--) {
                    if (i == 20) {
                        assert_int_equal(tl_run_backward(b.run, i - 1), TL_ERROR_INVALID_ARG);
                        assert_int_equal(tl_run_backward(b.run, -1), TL_ERROR_INVALID_ARG);
                        assert_int_equal(tl_run_backward(b.run, INT32_MAX), TL_ERROR_INVALID_ARG);
                    }
                    assert_int_equal(tl_run_backward(b.run, i), TL_OK);
                }
                assert_int_equal(tl_run_backward(b.run, 0), TL_ERROR_INVALID_ARG);  // the pass is closed
                assert_int_equal(bed_report(&b).measured_peak_bytes, bed_report(&b).planned_peak_bytes);
                assert_int_equal(bed_report(&b).backward_count, 40);
                if (!pass) assert_int_equal(bed_outcome(&b, 0), expected);
                assert_int_equal(spy_count(&b.spy).live_bytes[TL_TIER_DEVICE], 1);
            }
            assert_false(b.spy.went_over);
            bed_close(&b);
        }
    }
}

static void layers_by_hand_in_inference_end_with_the_last_forward(void **state) {
    static bed b;
    static tl_layer layers[4];
    unsigned char by_hand[1], by_run[1];
    int32_t i;
    (void)state;
    chain_open(&b, 4, 0, layers, 0);
    for (i = 0; i < 4; i++) layers[i].backward = NULL;
    b.desc.inference = 1;
    chain_init(&b, 4, layers);
    assert_int_equal(b.graph->node_count, 5);
    if (tl_run_plan(b.run) || tl_read_tensor(b.run, tensor_of(4, 0), by_run, 1)) fail_msg("%s", b.env.error.text);
    tl_free_run(b.run);
    chain_init(&b, 4, layers);
    for (i = 0; i < 4; i++) assert_int_equal(tl_run_forward(b.run, i), TL_OK);
    assert_int_equal(tl_run_backward(b.run, 3), TL_ERROR_INVALID_ARG);
    if (tl_read_tensor(b.run, tensor_of(4, 0), by_hand, 1)) fail_msg("%s", b.env.error.text);
    assert_int_equal(by_hand[0], by_run[0]);
    assert_int_equal(tl_read_tensor(b.run, tensor_of(3, 0), by_hand, 1), TL_ERROR_NOT_FOUND);
    bed_close(&b);
}

// What kernels of layers see.
typedef struct layer_calls { int32_t micro_batch, count; uint64_t training_step; float gradient; } layer_calls;

static tl_result note_forward(const tl_kernel_call *call, void *user) {
    layer_calls *seen = (layer_calls *)user;
    seen->micro_batch = call->micro_batch;
    seen->training_step = call->step;
    seen->count++;
    memset(call->outputs[0].host, 0, sizeof(float));
    return TL_OK;
}

static tl_result note_backward(const tl_kernel_call *call, void *user) {
    layer_calls *seen = (layer_calls *)user;
    seen->micro_batch = call->micro_batch;
    seen->count++;
    if (call->node == 3) seen->gradient = *(const float *)call->output_grads[0].host;
    return TL_OK;
}

// A training step begins with its first micro-batch, whatever that one's number: its loss is scaled, and steps are counted.
static void layers_by_hand_begin_with_the_first_micro_batch(void **state) {
    int32_t first, pass, i;
    (void)state;
    for (first = 0; first < 3; first++) {
        static bed b;
        static tl_layer layers[3];
        layer_calls seen = { -1, 0, 99, 0 };
        chain_open(&b, 3, 0, layers, 0);
        for (i = 0; i < 3; i++) {
            layers[i].forward = note_forward;
            layers[i].backward = note_backward;
            layers[i].user = &seen;
            layers[i].output_bytes = sizeof(float);
        }
        b.desc.first_micro_batch = first;
        if (tl_init_layer_run(&b.env, &b.desc, layers, 3, sizeof(float), &b.run)) fail_msg("%s", b.env.error.text);
        for (pass = 0; pass < 2; pass++) {
            seen.gradient = 0;
            for (i = 0; i < 3; i++) assert_int_equal(tl_run_forward(b.run, i), TL_OK);
            for (i = 2; i >= 0; i--) assert_int_equal(tl_run_backward(b.run, i), TL_OK);
            assert_int_equal(seen.micro_batch, first);
            assert_int_equal(seen.training_step, pass);
            assert_true(seen.gradient > 0.5f && seen.gradient < 1.5f);
        }
        assert_int_equal(seen.count, 12);
        bed_close(&b);
    }
}

static void layers_that_break_a_rule_are_refused(void **state) {
    static bed b;
    static tl_layer layers[4];
    (void)state;
    chain_open(&b, 4, 0, layers, 0);
    assert_int_equal(tl_init_layer_run(&b.env, &b.desc, layers, 0, 1, &b.run), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_init_layer_run: layer_count: must be > 0");
    layers[2].forward = NULL;
    assert_int_equal(tl_init_layer_run(&b.env, &b.desc, layers, 4, 1, &b.run), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_init_layer_run: ops: op layer2: forward is missing");
    layers[2].forward = mixer_forward;
    layers[2].backward = NULL;
    assert_int_equal(tl_init_layer_run(&b.env, &b.desc, layers, 4, 1, &b.run), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_init_run: kernels: forward or backward missing for op layer2 of node 3 (layer2); "
                                          "that of a state is its update; inference, no_grad: no backward");
    layers[2].backward = mixer_backward;
    layers[1].name = layers[3].name = "twin";
    assert_int_equal(tl_init_layer_run(&b.env, &b.desc, layers, 4, 1, &b.run), TL_ERROR_INVALID_ARG);
    layers[3].name = "other";
    layers[3].keep = 1;
    layers[3].needs = "in,out";
    chain_init(&b, 4, layers);
    assert_string_equal(tl_name_node(b.graph, 2), "twin");
    assert_string_equal(tl_name_node(b.graph, 3), "layer2");
    (void)bed_step(&b, 0);  // reads the result
    assert_int_equal(spy_count(&b.spy).live_bytes[TL_TIER_DEVICE], 2);
    bed_close(&b);
}

static void checkpoints_can_be_switched_off_in_both_directions(void **state) {
    static bed b;
    static tl_layer layers[20];
    int32_t i;
    (void)state;
    chain_open(&b, 20, 0, layers, 0);
    b.desc.budget_bytes = 30;
    b.desc.policy = tl_policy_none();
    chain_init(&b, 20, layers);
    assert_int_equal(tl_uses_checkpoints(b.run), 1);
    (void)bed_step(&b, 0);
    assert_true(bed_report(&b).recompute_count > 0);
    assert_int_equal(tl_enable_checkpoints(b.run, 0), TL_OK);
    assert_int_equal(tl_uses_checkpoints(b.run), 0);
    mixer_start_pass(&b.mixer);
    (void)bed_step(&b, 0);
    assert_int_equal(bed_report(&b).recompute_count, 0);
    assert_int_equal(bed_report(&b).forward_count, 20);
    mixer_start_pass(&b.mixer);
    for (i = 0; i < 20; i++) assert_int_equal(tl_run_forward(b.run, i), TL_OK);
    assert_int_equal(tl_enable_checkpoints(b.run, 1), TL_ERROR_INVALID_ARG);  // inside a pass
    assert_int_equal(tl_uses_checkpoints(b.run), 0);
    assert_int_equal(tl_reset_run(b.run), TL_OK);
    assert_int_equal(tl_enable_checkpoints(b.run, 1), TL_OK);
    mixer_start_pass(&b.mixer);
    (void)bed_step(&b, 0);
    assert_true(bed_report(&b).recompute_count > 0);
    bed_close(&b);
    // Keeping everything does not fit here: said so, and nothing is lost.
    chain_open(&b, 20, 0, layers, 0);
    b.desc.budget_bytes = 8;
    chain_init(&b, 20, layers);
    assert_int_equal(tl_enable_checkpoints(b.run, 0), TL_ERROR_INFEASIBLE);
    assert_non_null(strstr(b.env.error.text, "budget_bytes: the least found to work is "));
    assert_int_equal(tl_uses_checkpoints(b.run), 1);
    assert_int_equal(tl_enable_checkpoints(b.run, 1), TL_OK);
    mixer_start_pass(&b.mixer);
    (void)bed_step(&b, 0);
    bed_close(&b);
}

// SEED_DEFECTS B17: what an earlier step left is never taken for this step's. Every tensor of a step
// is made in that step: with other inputs and another seed, a fresh run computes the same.
static void nothing_of_an_earlier_step_is_used(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which;
    (void)state;
    for (which = 0; which < 4; which++) {
        uint64_t sums[2], third;
        undisturbed(&graph, 0, which, &lossless, &lossy, sums, NULL);
        assert_int_not_equal(sums[0], sums[1]);  // the seed is the step's
        bed_open(&b, &graph, BACKEND_CHECKED, 0, 4);
        failing_desc(&b, which, &lossless, &lossy);
        b.desc.first_step = 1;
        bed_must_init(&b);
        assert_int_equal(bed_step(&b, 0), sums[1]);
        memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
        third = bed_step(&b, 0);
        bed_close(&b);
        bed_open(&b, &graph, BACKEND_CHECKED, 0, 4);
        failing_desc(&b, which, &lossless, &lossy);
        b.desc.first_step = 2;
        bed_must_init(&b);
        assert_int_equal(bed_step(&b, 0), third);
        bed_close(&b);
    }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// -- what was measured is held against what was planned --

static void a_difference_between_measured_and_planned_is_an_error(void **state) {
    static const char *const sentences[] = { "", "tl_run_plan: peak: measured 241 bytes, planned 240", "tl_run_plan: host peak: measured 33 bytes, planned 32",
        "tl_run_plan: arena: measured ", "tl_run_plan: in use after the pass: measured 29 bytes, planned 28",
        "tl_run_plan: in use on the host after the pass: measured 1 bytes, planned 0" };
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    tl_random random;
    tl_device device;
    tl_report report;
    uint64_t plain[2];
    int lie;
    (void)state;
    memset(&device, 0, sizeof device);
    device.alignment_bytes = 4;
    random.state = 1;
    undisturbed(&graph, 0, 0, &plan, NULL, plain, NULL);
    for (lie = LIE_NOT; lie < LIE_COUNT; lie++) {
        tl_plan placed = plan;
        bed_open(&b, &graph, 0, 0, 4);
        while (lie == LIE_ARENA && (!placed.offset_count || simulate(&graph, &placed, 4, &report))) {
            free((void *)(uintptr_t)placed.offsets);
            placed.offsets = NULL;
            if (random_offsets(&b.env, &random, &graph, &device, &placed)) fail_msg("%s", "out of memory");
        }
        b.desc.plan = &placed;
        bed_must_init(&b);
        b.spy.lie = lie;
        assert_int_equal(tl_run_plan(b.run), lie ? TL_ERROR_MISMATCH : TL_OK);
        if (lie && strncmp(b.env.error.text, sentences[lie], strlen(sentences[lie]))) fail_msg("%s", b.env.error.text);
        if (lie) assert_only_inputs_are_held(&b);
        b.spy.lie = b.spy.lies = LIE_NOT;
        memset(b.mixer.gradients, 0, sizeof b.mixer.gradients);
        assert_int_equal(bed_step(&b, 0), plain[lie ? 0 : 1]);
        bed_close(&b);
        if (lie == LIE_ARENA) free((void *)(uintptr_t)placed.offsets);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// A second run, and somebody else, on the same backend: their bytes are not this run's.
static void bytes_of_others_are_not_measured(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_run *other;
    tl_range range;
    uint64_t expected = keep_all_outcome(&graph, 0, 1, NULL);
    (void)state;
    bed_open(&b, &graph, 0, 0, 4);
    range.offset = 0;
    range.bytes = 1000;
    if (b.backend.add_block(b.backend.self, TL_TIER_DEVICE, 1000, &range.block) || b.backend.claim(b.backend.self, range)) fail_msg("%s", "claim");
    bed_must_init(&b);
    other = b.run;
    bed_must_init(&b);
    (void)bed_step(&b, 0);
    assert_int_equal(bed_step(&b, 0), expected);
    mixer_start_pass(&b.mixer);
    assert_int_equal(tl_run_plan(other), TL_OK);
    tl_free_run(other);
    if (b.backend.release(b.backend.self, range) || b.backend.free_block(b.backend.self, range.block)) fail_msg("%s", "release");
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- the strategy: every value changes something, or is refused by name --

static tl_strategy single(tl_mode mode, tl_gradient gradient) {
    return tl_with_gradient(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), mode), gradient);
}

static void strategy_open(bed *b, const tl_graph *graph, const tl_strategy *strategy) {
    bed_open(b, graph, 0, 0, 4);
    b->desc.strategy = strategy;
}

static tl_run_report strategy_report(const tl_graph *graph, tl_strategy strategy, uint64_t budget, long *forwards) {
    static bed b;
    tl_run_report report;
    strategy_open(&b, graph, &strategy);
    b.desc.budget_bytes = budget;
    b.desc.kernel_precisions = (1u << TL_PRECISION_COUNT) - 1;
    bed_must_init(&b);
    (void)bed_step(&b, !strategy.gradient.computes);
    report = bed_report(&b);
    if (forwards) *forwards = b.mixer.forwards;
    bed_close(&b);
    return report;
}

static void assert_refused(const tl_graph *graph, tl_strategy strategy, tl_result code, const char *sentence) {
    static bed b;
    strategy_open(&b, graph, &strategy);
    assert_int_equal(bed_init(&b), code);
    assert_null(b.run);
    if (!strstr(b.env.error.text, sentence)) fail_msg("%s", b.env.error.text);
    bed_close(&b);
}

static void every_mode_and_gradient_changes_the_steps(void **state) {
    tl_graph graph = graph_of(everything);
    uint64_t peak;
    long forwards;
    tl_run_report report, other;
    (void)state;
    (void)keep_all_outcome(&graph, 0, 1, &peak);
    // Mode.
    report = strategy_report(&graph, single(TL_MODE_EAGER, tl_gradient_checkpointed(0)), 188, NULL);
    assert_true(report.recompute_count > 0 && report.eviction_count > 0 && report.measured_peak_bytes <= 188);
    report = strategy_report(&graph, single(TL_MODE_LAZY, tl_gradient_full()), 0, NULL);
    assert_int_equal(report.measured_peak_bytes, peak);
    assert_int_equal(report.eviction_count, 0);
    report = strategy_report(&graph, single(TL_MODE_HYBRID, tl_gradient_checkpointed(0)), 240, NULL);   // planned, the caller decides nothing
    assert_int_equal(report.eviction_count, 0);
    assert_true(report.planned_cost == strategy_report(&graph, single(TL_MODE_LAZY, tl_gradient_checkpointed(0)), 240, NULL).planned_cost);
    {
        static bed b;
        long asked = 0;
        tl_strategy strategy = single(TL_MODE_HYBRID, tl_gradient_checkpointed(0));
        strategy_open(&b, &graph, &strategy);
        b.desc.budget_bytes = 188;
        b.desc.eviction = TL_EVICTION_CALLER;
        b.desc.evict = evict_somehow;
        b.desc.evict_user = &asked;
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        assert_true(bed_report(&b).eviction_count > 0 && asked > 0);     // it decides
        bed_close(&b);
    }
    // Gradient.
    report = strategy_report(&graph, single(TL_MODE_EAGER, tl_gradient_none()), 0, NULL);
    assert_int_equal(report.backward_count, 0);
    report = strategy_report(&graph, single(TL_MODE_LAZY, tl_gradient_none()), 0, NULL);
    assert_int_equal(report.backward_count, 0);
    report = strategy_report(&graph, single(TL_MODE_EAGER, tl_gradient_full()), 0, NULL);
    assert_int_equal(report.backward_count, 5);
    assert_int_equal(report.recompute_count, 0);
    report = strategy_report(&graph, single(TL_MODE_LAZY, tl_gradient_checkpointed(2)), 0, NULL);
    other = strategy_report(&graph, single(TL_MODE_LAZY, tl_gradient_checkpointed(4)), 0, NULL);
    assert_true(report.recompute_count > 0 && other.recompute_count > report.recompute_count);
    report = strategy_report(&graph, single(TL_MODE_EAGER, tl_gradient_checkpointed(2)), 0, NULL);
    other = strategy_report(&graph, single(TL_MODE_EAGER, tl_gradient_checkpointed(7)), 0, NULL);
    assert_true(report.recompute_count > 0 && other.recompute_count > report.recompute_count);
    report = strategy_report(&graph, single(TL_MODE_LAZY, tl_gradient_checkpointed(0)), 188, NULL);
    assert_true(report.recompute_count > 0 && report.eviction_count == 0 && report.measured_peak_bytes <= 188);
    report = strategy_report(&graph, single(TL_MODE_LAZY, tl_gradient_accumulated(3)), 0, &forwards);
    assert_int_equal(forwards, 3 * report.forward_count);
    {
        tl_gradient wide = tl_gradient_accumulated((uint64_t)INT32_MAX + 1);
        assert_refused(&graph, single(TL_MODE_LAZY, wide), TL_ERROR_INVALID_ARG, "strategy.gradient: accumulation_steps");
    }
    {
        // Eager and full keeps everything: a budget below that is infeasible, and names it.
        static bed b;
        tl_strategy full = single(TL_MODE_EAGER, tl_gradient_full());
        strategy_open(&b, &graph, &full);
        b.desc.budget_bytes = 200;
        assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
        b.desc.budget_bytes = named_bytes(b.env.error.text);
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_report(&b).measured_peak_bytes, b.desc.budget_bytes);
        bed_close(&b);
    }
    tl_free_graph(NULL, &graph);
}

static void every_precision_changes_the_bytes(void **state) {
    static const struct { tl_precision precision; uint64_t peak; } rows[] = {
        { TL_PRECISION_SINGLE, 0 }, { TL_PRECISION_DOUBLE, 0 }, { TL_PRECISION_HALF, 0 }, { TL_PRECISION_BF16, 0 },
    };
    tl_graph graph = graph_of(everything);
    uint64_t single_peak = 0;
    size_t k;
    (void)state;
    for (k = 0; k < 4; k++) {
        tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_full()), rows[k].precision);
        tl_run_report report = strategy_report(&graph, strategy, 0, NULL);
        uint64_t beside = report.measured_peak_bytes - input_bytes(&graph);  // inputs keep their bytes
        if (!k) single_peak = beside;
        assert_int_equal(beside, k == 0 ? single_peak : k == 1 ? 2 * single_peak : single_peak / 2);
        {   // not among kernel_precisions: f32 alone by default
            static bed b;
            strategy_open(&b, &graph, &strategy);
            assert_int_equal(bed_init(&b), k ? TL_ERROR_UNSUPPORTED : TL_OK);
            if (k) assert_non_null(strstr(b.env.error.text, "strategy.precision: not among kernel_precisions"));
            bed_close(&b);
        }
    }
    for (k = 0; k < 5; k++) {   // full is the widest that the kernels compute, f32 if they say nothing
        static const uint32_t kernels[] = { 0, 1u << TL_PRECISION_DOUBLE | 1u << TL_PRECISION_SINGLE, 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_BF16,
                                            1u << TL_PRECISION_HALF, 1u << TL_PRECISION_FULL };
        static const uint64_t halves[] = { 2, 4, 2, 1, 0 };
        static bed b;
        tl_strategy strategy = tl_with_gradient(tl_strategy_new(), tl_gradient_full());
        strategy_open(&b, &graph, &strategy);
        b.desc.kernel_precisions = kernels[k];
        if (k == 4) {
            assert_int_equal(bed_init(&b), TL_ERROR_UNSUPPORTED);
        } else {
            bed_must_init(&b);
            (void)bed_step(&b, 0);
            assert_int_equal(2 * (bed_report(&b).measured_peak_bytes - input_bytes(&graph)), halves[k] * single_peak);
        }
        bed_close(&b);
    }
    {   // kernels that compute f32 alone leave nothing to choose
        static bed b;
        tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_full()), TL_PRECISION_MIXED);
        strategy_open(&b, &graph, &strategy);
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_report(&b).measured_peak_bytes - input_bytes(&graph), single_peak);
        bed_close(&b);
#ifndef TL_NO_PRECISION
        strategy_open(&b, &graph, &strategy);
        b.desc.kernel_precisions = 1u << TL_PRECISION_MIXED | 1u << TL_PRECISION_SINGLE;
        bed_must_init(&b);      // without a budget time decides, and nothing is known to be faster
        assert_int_equal(tl_find_compiled_plan(b.run)->choice.format_counts[TL_FORMAT_BF16], 0);
        bed_close(&b);
        strategy_open(&b, &graph, &strategy);
        b.desc.kernel_precisions = 1u << TL_PRECISION_MIXED | 1u << TL_PRECISION_SINGLE;
        b.desc.budget_bytes = input_bytes(&graph) + single_peak * 3 / 4;
        b.desc.work_limit = 0;     // near the least that works
        bed_must_init(&b);
        assert_true(tl_find_compiled_plan(b.run)->choice.format_counts[TL_FORMAT_BF16] > 0);
        bed_close(&b);
#endif
    }
    tl_free_graph(NULL, &graph);
}

// The first gradient is 1 in the elements of the run, or the caller's word.
static tl_result keep_gradient(const tl_kernel_call *call, void *user) {
    if (call->kind == TL_STEP_BACKWARD && call->node == 2) {
        assert_int_equal(call->output_grads[0].range.bytes, call->precision == TL_PRECISION_DOUBLE ? 16 : call->precision == TL_PRECISION_SINGLE ? 8 : 4);
        memcpy(user, call->output_grads[0].host, (size_t)call->output_grads[0].range.bytes);
    }
    return TL_OK;
}

static void the_first_gradient_is_one(void **state) {
    static const char *const text = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=8 needs=none in=0\n"
                                    "node 2 b op fwd=1 bwd=1 out=8 needs=none in=1\n";
    tl_graph graph = graph_of(text);
    int precision, word;
    (void)state;
    for (precision = 0; precision < TL_PRECISION_COUNT; precision++)
        for (word = 0; word < 2; word++) {
            static bed b;
            double doubles[2] = { 0, 0 };
            tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_full()), (tl_precision)precision);
            if (precision == TL_PRECISION_MIXED || precision == TL_PRECISION_FULL) continue;
            strategy_open(&b, &graph, &strategy);
            b.kernels[0].forward = b.kernels[0].backward = keep_gradient;
            b.kernels[0].user = doubles;
            b.desc.kernel_precisions = 1u << precision;
            b.desc.loss_gradient_word = word ? 0x40004000u : 0;
            bed_must_init(&b);
            if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
            if (word) {
                uint32_t words[4];
                memcpy(words, doubles, sizeof words);
                assert_int_equal(words[0], 0x40004000u);
                if (precision == TL_PRECISION_DOUBLE) assert_int_equal(words[3], 0x40004000u);
            } else if (precision == TL_PRECISION_DOUBLE) {
                assert_true(doubles[0] == 1.0 && doubles[1] == 1.0);
            } else if (precision == TL_PRECISION_SINGLE) {
                float floats[2];
                memcpy(floats, doubles, sizeof floats);
                assert_true(floats[0] == 1.0f && floats[1] == 1.0f);
            } else {
                uint16_t halves[2];
                memcpy(halves, doubles, sizeof halves);
                assert_int_equal(halves[0], precision == TL_PRECISION_HALF ? 0x3c00 : 0x3f80);
                assert_int_equal(halves[1], halves[0]);
            }
            bed_close(&b);
        }
    tl_free_graph(NULL, &graph);
}

static void memory_parallelism_fusion_and_profiling_are_done_or_refused(void **state) {
    static const uint64_t offsets[] = { 0, 64, 128, 192, 256 };
    static bed b;
    tl_graph graph = graph_of(everything), chain_graph;
    tl_strategy plain = single(TL_MODE_LAZY, tl_gradient_full()), pooled;
    tl_run_report report;
    tl_chain_desc chain;
    tl_device device;
    tl_plan plan;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&chain, 0, sizeof chain);
    memset(&device, 0, sizeof device);
    // Memory.
    report = strategy_report(&graph, tl_with_memory(single(TL_MODE_EAGER, tl_gradient_full()), TL_MEMORY_POOLED), 0, NULL);
    assert_true(report.measured_arena_bytes >= report.measured_peak_bytes);     // memory standard has none
    report = strategy_report(&graph, single(TL_MODE_EAGER, tl_gradient_full()), 0, NULL);
    assert_int_equal(report.measured_arena_bytes, 0);
    report = strategy_report(&graph, tl_with_memory(plain, TL_MEMORY_CACHED), 0, NULL);
    assert_true(report.measured_arena_bytes >= report.measured_peak_bytes && !report.cached_bytes);     // no versions
    assert_refused(&graph, tl_with_memory(single(TL_MODE_EAGER, tl_gradient_full()), TL_MEMORY_MINIMAL_PEAK), TL_ERROR_UNSUPPORTED,
                   "strategy.memory: ");
    pooled = tl_with_memory(single(TL_MODE_HYBRID, tl_gradient_full()), TL_MEMORY_MINIMAL_PEAK);
    strategy_open(&b, &graph, &pooled);
    b.desc.eviction = TL_EVICTION_CALLER;
    b.desc.evict = evict_somehow;
    assert_int_equal(bed_init(&b), TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(b.env.error.text, "strategy.memory: not standard, but what evict decides"));
    bed_close(&b);
    chain.layer_count = 4;
    chain.input_bytes = 1;
    if (tl_add_chain(&env, &chain_graph, &chain) || tl_plan_keep_all(&env, &chain_graph, 1, &plan)) fail_msg("%s", env.error.text);
    plan.offsets = offsets;
    plan.offset_count = 5;
    pooled = tl_with_memory(single(TL_MODE_LAZY, tl_gradient_none()), TL_MEMORY_POOLED);
    strategy_open(&b, &chain_graph, &pooled);
    b.desc.plan = &plan;
    bed_must_init(&b);
    (void)bed_step(&b, 1);
    assert_int_equal(spy_count(&b.spy).block_count[TL_TIER_DEVICE], 1);  // one arena
    tl_free_run(b.run);
    pooled.memory = TL_MEMORY_STANDARD;
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(b.env.error.text, "strategy.memory: standard, but the plan has offsets"));
    plan.offset_count = 0;
    bed_must_init(&b);
    (void)bed_step(&b, 1);
    assert_int_equal(spy_count(&b.spy).block_count[TL_TIER_DEVICE], 2);  // the input and the result
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &chain_graph);
    // Parallelism.
    assert_int_equal(strategy_report(&graph, tl_with_parallelism(plain, tl_parallelism_data(2)), 0, NULL).worker_count, 1);
    assert_refused(&graph, tl_with_parallelism(plain, tl_parallelism_model(1)), TL_ERROR_UNSUPPORTED, "strategy.parallelism: ");
    assert_refused(&graph, tl_with_parallelism(plain, tl_parallelism_pipeline(1)), TL_ERROR_UNSUPPORTED, "strategy.parallelism: ");
    assert_int_equal(strategy_report(&graph, tl_with_parallelism(plain, tl_parallelism_data(1)), 0, NULL).backward_count, 5);
    assert_int_equal(strategy_report(&graph, tl_with_parallelism(plain, tl_parallelism_automatic()), 0, NULL).backward_count, 5);
    plain.parallelism = tl_parallelism_automatic();
    strategy_open(&b, &graph, &plain);
    b.desc.device = &device;
    device.worker_count = 2;
    bed_must_init(&b);
    bed_close(&b);
    plain.parallelism = tl_parallelism_none();
    // Fusion and profiling.
    assert_int_equal(strategy_report(&graph, tl_with_fusion(plain, 1), 0, NULL).fused_count, 0);  // test_12_fusion.c
    assert_int_equal(strategy_report(&graph, plain, 0, NULL).compute_ns, 0);
    assert_true(strategy_report(&graph, tl_with_profiling(plain, 1), 0, NULL).compute_ns > 0);
    tl_free_graph(NULL, &graph);
}

// A pooled run takes one block, as large as its arena and no larger than the budget, or is refused with the bytes that do.
static void a_pooled_run_takes_one_block_within_its_budget(void **state) {
    tl_random random = { 17 };
    long round, runs = 0, refused = 0, wider = 0;
    (void)state;
    for (round = 0; round < scaled(200); round++) {   // the planner takes most of the time
        static bed b;
        tl_env env;
        tl_graph graph;
        tl_strategy pooled = tl_with_memory(single(TL_MODE_LAZY, tl_gradient_checkpointed(0)), TL_MEMORY_POOLED);
        uint64_t peak, expected;
        memset(&env, 0, sizeof env);
        if (random_graph(&env, &random, 24, &graph)) fail_msg("%s", env.error.text);
        expected = keep_all_outcome(&graph, 0, 1, &peak);
        strategy_open(&b, &graph, &pooled);
        b.desc.budget_bytes = peak - peak * tl_next_random_below(&random, 60) / 100 + 8;
        if (bed_init(&b)) {
            assert_int_equal(b.env.error.code, TL_ERROR_INFEASIBLE);
            assert_true(b.env.error.values[1] > b.desc.budget_bytes);
            b.desc.budget_bytes = b.env.error.values[1];
            refused++;
            if (bed_init(&b)) { bed_close(&b); tl_free_graph(&env, &graph); continue; }
        }
        assert_true(spy_count(&b.spy).block_count[TL_TIER_DEVICE] <= 1);
        (void)bed_step(&b, 0);
        assert_int_equal(bed_step(&b, 0), expected);
        assert_int_equal(spy_count(&b.spy).block_count[TL_TIER_DEVICE], bed_report(&b).planned_arena_bytes > 0);
        assert_true(spy_count(&b.spy).reserved_bytes[TL_TIER_DEVICE] <= b.desc.budget_bytes);
        assert_int_equal(spy_count(&b.spy).reserved_bytes[TL_TIER_DEVICE], bed_report(&b).planned_arena_bytes);
        wider += bed_report(&b).planned_arena_bytes > bed_report(&b).planned_peak_bytes;
        runs++;
        bed_close(&b);
        tl_free_graph(&env, &graph);
    }
    printf("%ld runs, %ld refused at first; the arena of %ld is larger than the live peak\n", runs, refused, wider);
    assert_true(runs > round / 2);
}

// One step of a strategy with kernels that say nothing of their precision: they compute f32.
static tl_run_report f32_report(const tl_graph *graph, tl_strategy strategy) {
    static bed b;
    tl_run_report report;
    strategy_open(&b, graph, &strategy);
    bed_must_init(&b);
    (void)bed_step(&b, !strategy.gradient.computes);
    report = bed_report(&b);
    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
    bed_close(&b);
    return report;
}

// backwards, arena or none, times or none, micro-batches: what a preset did.
static void presets_run_with_f32_kernels(void **state) {
    static const struct { tl_strategy (*make)(void); int32_t backwards, has_arena, is_timed; } presets[] = {
        { tl_strategy_new, 0, 0, 0 }, { tl_strategy_training, 5, 1, 1 }, { tl_strategy_inference, 0, 1, 0 },
        { tl_strategy_memory_efficient, 5, 1, 0 }, { tl_strategy_high_throughput, 0, 1, 0 }, { tl_strategy_debug, 5, 0, 1 },
    };
    tl_graph graph = graph_of(everything);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        tl_run_report report = f32_report(&graph, presets[i].make());
        assert_int_equal(report.backward_count, presets[i].backwards);
        assert_int_equal(report.measured_arena_bytes > 0, presets[i].has_arena);
        assert_int_equal(report.compute_ns > 0, presets[i].is_timed);
        assert_int_equal(report.worker_count, 1);
    }
    assert_true(f32_report(&graph, tl_strategy_memory_efficient()).recompute_count > 0);
    assert_int_equal(f32_report(&graph, tl_strategy_training()).recompute_count, 0);
    {
        tl_strategy broken = tl_strategy_new();
        broken.memory = TL_MEMORY_COUNT;
        assert_refused(&graph, broken, TL_ERROR_INVALID_ARG, "tl_check_strategy: ");
    }
    tl_free_graph(NULL, &graph);
}

// Over a grid of batches, models and memories, training and inference.
static void every_quick_recommendation_runs(void **state) {
    tl_graph graph = graph_of(everything);
    uint64_t batch, model, available;
    int training, count = 0;
    (void)state;
    for (batch = 1; batch <= 512; batch *= 2)
        for (model = 1; model <= 65536; model *= 4)
            for (available = 64; available <= 65536; available *= 4)
                for (training = 0; training < 2; training++, count++) {
                    tl_strategy strategy;
                    assert_int_equal(tl_recommend_quick(NULL, batch, model, available, training, &strategy), TL_OK);
                    if (count % thinned() == 0)
                        assert_int_equal(f32_report(&graph, strategy).backward_count > 0, training);
                }
    assert_int_equal(count, 1080);
    tl_free_graph(NULL, &graph);
}

static void a_strategy_and_a_desc_that_disagree_are_refused(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps);
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    tl_strategy strategy = single(TL_MODE_EAGER, tl_gradient_full());
    (void)state;
    strategy_open(&b, &graph, &strategy);
    b.desc.plan = &plan;
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(b.env.error.text, "strategy.mode: eager"));
    strategy = single(TL_MODE_LAZY, tl_gradient_none());
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(b.env.error.text, "strategy.gradient: the plan is of the other kind"));
    strategy = single(TL_MODE_LAZY, tl_gradient_checkpointed(3));
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(b.env.error.text, "strategy.gradient: an interval, and a plan"));
    strategy = single(TL_MODE_LAZY, tl_gradient_checkpointed(0));
    bed_must_init(&b);
    tl_free_run(b.run);
    b.desc.plan = NULL;
    b.desc.checkpoints = &config;
    bed_must_init(&b);
    tl_free_run(b.run);
    strategy = single(TL_MODE_LAZY, tl_gradient_full());
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(b.env.error.text, "strategy.gradient: not checkpointed"));
    b.desc.checkpoints = NULL;
    strategy = single(TL_MODE_EAGER, tl_gradient_full());
    b.desc.policy = tl_policy_none();
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(b.env.error.text, "leave policy out"));
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void a_desc_that_breaks_a_rule_is_refused(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything), empty;
    tl_plan plan = schedule_of(lossless_steps);
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    tl_device device;
    long asked = 0;
    int rule;
    (void)state;
    tl_init_graph(&empty);
    for (rule = 0; rule < 20; rule++) {
        static const char *const sentences[] = {
            "plan, checkpoints: give one of them", "eviction, codec: unknown kind", "eviction, codec: unknown kind", "evict: goes with TL_EVICTION_CALLER",
            "evict: goes with TL_EVICTION_CALLER", "kernel_count: must be >= 0, with kernels", "kernel_count: must be >= 0, with kernels", "repeat_count: must be >= 0",
            "inference: must be 0 or 1", "checkpoints: a forward-only run has none", "policy, eviction, codec: are for online runs",
            "policy, eviction, codec: are for online runs", "policy, eviction, codec: are for online runs", "codec: the backend cannot convert it",
            "tl_init_run: every-n: interval: must be > 0", "tl_check_device: ", "kernels: none for op mask of node 5", "kernels: forward or backward missing for op relu of node 2",
            "kernels: forward or backward missing for op mask of node 5", "tl_check_graph: ",
        };
        tl_run_desc *desc = &b.desc;
        memset(&device, 0, sizeof device);
        bed_open(&b, &graph, 0, 0, 4);
        switch (rule) {
        case 0: desc->plan = &plan; desc->checkpoints = &config; break;
        case 1: desc->eviction = TL_EVICTION_COUNT; break;
        case 2: desc->codec = TL_CODEC_COUNT; break;
        case 3: desc->eviction = TL_EVICTION_CALLER; break;
        case 4: desc->evict = evict_somehow; desc->evict_user = &asked; break;
        case 5: desc->kernel_count = -1; break;
        case 6: desc->kernels = NULL; break;
        case 7: desc->repeat_count = -1; break;
        case 8: desc->inference = 2; break;
        case 9: desc->inference = 1; desc->checkpoints = &config; break;
        case 10: desc->plan = &plan; desc->policy = tl_policy_none(); break;
        case 11: desc->plan = &plan; desc->eviction = TL_EVICTION_OLDEST; break;
        case 12: desc->checkpoints = &config; desc->codec = TL_CODEC_F16; break;
        case 13: desc->codec = TL_CODEC_F16; b.spy.no_codecs = 1u << TL_CODEC_F16; break;
        case 14: desc->policy.kind = TL_POLICY_EVERY_N; break;
        case 15: desc->device = &device; device.alignment_bytes = 3; break;
        case 16: desc->kernel_count = 4; b.kernels[4] = b.kernels[5]; desc->kernel_count = 5; break;
        case 17: b.kernels[1].backward = NULL; break;
        case 18: b.kernels[4].forward = NULL; break;
        default: desc->graph = &empty; break;
        }
        assert_int_equal(bed_init(&b), rule == 13 ? TL_ERROR_UNSUPPORTED : TL_ERROR_INVALID_ARG);
        assert_null(b.run);
        if (!strstr(b.env.error.text, sentences[rule])) fail_msg("%d: %s", rule, b.env.error.text);
        b.graph = &graph;
        bed_close(&b);
    }
    // A node without a gradient needs no backward, and inference needs none at all.
    bed_open(&b, &graph, 0, 0, 4);
    b.kernels[4].backward = NULL;
    bed_must_init(&b);
    tl_free_run(b.run);
    b.desc.inference = 1;
    for (rule = 0; rule < 6; rule++) b.kernels[rule].backward = NULL;
    bed_must_init(&b);
    (void)bed_step(&b, 1);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static tl_result write_too_little(tl_run *run, int32_t micro_batch, void *user) {
    (void)micro_batch;
    return *(int *)user ? tl_write_tensor(run, tensor_of(0, 0), user, 1) : TL_ERROR_IO;
}

// What a call in a load hook said is kept in the sentence about the hook; what was said before it is not.
static void a_load_hook_keeps_what_it_was_told(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    int writes;
    (void)state;
    bed_open(&b, &graph, BACKEND_CHECKED, 0, 4);
    b.desc.load = write_too_little;
    b.desc.load_user = &writes;
    bed_must_init(&b);
    assert_int_equal(tl_write_tensor(b.run, tensor_of(0, 0), &b, 3), TL_ERROR_INVALID_ARG);
    for (writes = 0; writes < 2; writes++) {
        assert_int_equal(tl_run_plan(b.run), TL_ERROR_KERNEL);
        assert_string_equal(b.env.error.text, writes
            ? "tl_run_plan: load: the hook reported a failure: tl_write_tensor: bytes: 1, where the tensor has 8"
            : "tl_run_plan: load: the hook reported a failure");
    }
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static void tensors_are_read_and_written_within_the_rules(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    unsigned char bytes[64], back[64];
    tl_run_step step;
    int32_t done, i;
    (void)state;
    for (i = 0; i < 64; i++) bytes[i] = (unsigned char)(i * 7);
    bed_open(&b, &graph, BACKEND_CHECKED | BACKEND_DEFERRED, 0, 4);
    b.desc.load = NULL;
    bed_must_init(&b);
    assert_int_equal(tl_read_tensor(b.run, tensor_of(0, 0), back, 8), TL_OK);
    for (i = 0; i < 8; i++) assert_int_equal(back[i], 0);  // inputs start as zeroes
    assert_int_equal(tl_write_tensor(b.run, tensor_of(0, 0), bytes, 8), TL_OK);
    assert_int_equal(tl_read_tensor(b.run, tensor_of(0, 0), back, 8), TL_OK);
    assert_memory_equal(back, bytes, 8);
    assert_int_equal(tl_write_tensor(b.run, tensor_of(0, 0), bytes, 7), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_write_tensor: bytes: 7, where the tensor has 8");
    assert_int_equal(tl_write_tensor(b.run, tensor_of(0, 2), bytes, 8), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_write_tensor(b.run, tensor_of(-1, 0), bytes, 8), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_write_tensor(b.run, tensor_of(7, 0), bytes, 8), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_write_tensor(b.run, tensor_of(0, -1), bytes, 8), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_read_tensor(b.run, tensor_of(4, 0), back, 16), TL_ERROR_NOT_FOUND);  // before any pass
    (void)bed_step(&b, 0);
    assert_int_equal(tl_read_tensor(b.run, tensor_of(4, 0), back, 16), TL_OK);
    assert_int_equal(tl_write_tensor(b.run, tensor_of(4, 0), bytes, 16), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_read_tensor(b.run, tensor_of(1, 0), back, 32), TL_ERROR_NOT_FOUND);
    assert_int_equal(tl_read_tensor(b.run, tensor_of(0, 0), back, 8), TL_OK);
    assert_memory_equal(back, bytes, 8);  // inputs stay
    if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
    assert_int_equal(tl_write_tensor(b.run, tensor_of(0, 0), bytes, 8), TL_ERROR_INVALID_ARG);
    if (tl_next_step(b.run, &step, &done)) fail_msg("%s", b.env.error.text);
    assert_int_equal(tl_read_tensor(b.run, tensor_of(0, 0), back, 8), TL_ERROR_INVALID_ARG);
    tl_free_run(NULL);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static void a_result_that_is_being_spilled_can_be_read(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of("F 1\nF 2\nF 3\nF 4\nF 5\nS 6\nO 4\n");
    unsigned char spilled[16], kept[16];
    int spills;
    (void)state;
    plan.inference = 1;
    for (spills = 1; spills >= 0; spills--) {
        bed_open(&b, &graph, BACKEND_DEFERRED, 0, 4);
        b.desc.plan = &plan;
        if (!spills) plan.step_count--;
        bed_must_init(&b);
        (void)bed_step(&b, 1);
        assert_int_equal(tl_read_tensor(b.run, tensor_of(4, 0), spills ? spilled : kept, 16), TL_OK);
        assert_int_equal(spy_count(&b.spy).live_bytes[TL_TIER_HOST], spills ? 16 : 0);
        (void)bed_step(&b, 1);
        bed_close(&b);
    }
    assert_memory_equal(spilled, kept, 16);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

#ifndef TL_NO_PLANNERS
static int same_steps(const tl_plan *a, const tl_plan *b) {
    return a->step_count == b->step_count && !memcmp(a->steps, b->steps, (size_t)a->step_count * sizeof *a->steps);
}

// A run that makes its plan makes that of tl_plan_remat with the same work_limit; with 0 that of the default.
static void a_run_plans_within_its_work_limit(void **state) {
    static const uint64_t works[] = { 0, 1, 2000, 1000000 };
    tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(0)), TL_PRECISION_SINGLE);
    tl_random random = { 77 };
    long round, made = 0, differ = 0, refused = 0;
    (void)state;
    strategy = tl_with_memory(tl_with_mode(strategy, TL_MODE_LAZY), TL_MEMORY_STANDARD);
    for (round = 0; round < scaled(12); round++) {
        tl_graph graph;
        tl_env env = silent_env();
        tl_plan planned[4];
        tl_result result;
        uint64_t peak;
        size_t k;
        if (random_graph(NULL, &random, 14, &graph)) fail_msg("%s", "no graph");
        (void)keep_all_outcome(&graph, 0, 1, &peak);
        for (k = 0; k < 4; k++) {
            static bed b;
            tl_remat_desc remat;
            tl_plan found;
            memset(&remat, 0, sizeof remat);
            remat.graph = &graph;
            remat.live = 1;     // memory standard has no arena
            remat.budget_bytes = peak - peak / (round % 2 ? 12 : 4);
            remat.work_limit = works[k];
            result = tl_plan_remat(&env, &remat, &planned[k], NULL);
            strategy_open(&b, &graph, &strategy);
            b.desc.budget_bytes = remat.budget_bytes;
            b.desc.work_limit = works[k];
            assert_int_equal(bed_init(&b), result);
            if (result) {
                assert_true(tl_find_least_budget(&b.env.error) == tl_find_least_budget(&env.error));
                refused++;
            } else {
                tl_find_run_plan(b.run, &found);
                assert_true(found.cost == planned[k].cost && same_steps(&found, &planned[k]));
                differ += planned[0].step_count && !same_steps(&found, &planned[0]);
                made++;
            }
            bed_close(&b);
        }
        for (k = 0; k < 4; k++) tl_free_plan(&env, &planned[k]);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld plans made, %ld of them not that of default work, %ld budgets refused\n", made, differ, refused);
    assert_true(is_thinned() || (made > 12 && differ > 0));
}
#endif

static void plans_are_found_as_they_were_given_or_made(void **state) {
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_plan plan = schedule_of(lossless_steps), found;
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    tl_device device;
    (void)state;
    bed_open(&b, &graph, 0, 0, 4);
    plan.repeat_count = 3;
    b.desc.plan = &plan;
    b.desc.base_bytes = 5;
    bed_must_init(&b);
    tl_find_run_plan(b.run, &found);
    assert_int_equal(found.step_count, plan.step_count);
    assert_memory_equal(found.steps, plan.steps, (size_t)plan.step_count * sizeof *plan.steps);
    assert_true(found.offset_count > 0 && found.arena_bytes >= found.peak_bytes);
    assert_int_equal(found.base_bytes, 5);
    assert_null(found.memory);
    assert_ptr_equal(tl_find_run_graph(b.run), &graph);
    assert_int_equal(tl_enable_checkpoints(b.run, 0), TL_ERROR_INVALID_ARG);  // not online
    assert_int_equal(tl_run_forward(b.run, 0), TL_ERROR_INVALID_ARG);
    (void)bed_step(&b, 0);
    assert_int_equal(b.loads, 3);  // the plan's own micro-batches
    bed_close(&b);
    bed_open(&b, &graph, 0, 0, 4);
    b.desc.checkpoints = &config;
    bed_must_init(&b);
    tl_find_run_plan(b.run, &found);
    assert_true(found.step_count > 0 && found.peak_bytes > 0);
    (void)bed_step(&b, 0);
    assert_int_equal(bed_report(&b).measured_peak_bytes, found.peak_bytes);
    bed_close(&b);
    // Online, copies take their time in the simulated cost.
    memset(&device, 0, sizeof device);
    device.link_bytes_per_second = 1000;
    bed_open(&b, &graph, 0, 0, 4);
    b.desc.budget_bytes = 188;
    b.desc.host_budget_bytes = 1000;
    bed_must_init(&b);
    (void)bed_step(&b, 0);
    assert_true(bed_report(&b).spill_count > 0);
    assert_true(bed_report(&b).planned_cost < 1000);
    tl_free_run(b.run);
    b.desc.device = &device;
    bed_must_init(&b);
    (void)bed_step(&b, 0);
    assert_true(bed_report(&b).planned_cost > 1000000);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// The offsets of a plan that was changed behind the run's back run out: said so, not read beyond.
static void a_plan_changed_after_init_is_refused(void **state) {
    static const uint64_t offsets[] = { 0, 64, 128 };
    static bed b;
    tl_graph graph = graph_of(everything);
    tl_step steps[] = { { TL_STEP_FORWARD, 0, 0, 1, -1, 0 }, { TL_STEP_DROP, 0, 0, 1, -1, 0 }, { TL_STEP_FORWARD, 0, 0, 1, -1, 0 } };
    static const char *const text = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=8 needs=none in=0\n";
    tl_plan plan;
    (void)state;
    tl_free_graph(NULL, &graph);
    graph = graph_of(text);
    memset(&plan, 0, sizeof plan);
    plan.steps = steps;
    plan.step_count = 3;
    plan.inference = 1;
    plan.offsets = offsets;
    plan.offset_count = 3;
    bed_open(&b, &graph, 0, 0, 64);
    b.desc.plan = &plan;
    bed_must_init(&b);
    (void)bed_step(&b, 1);
    b.run->arenas[TL_TIER_DEVICE].offset_count = 2;
    assert_int_equal(tl_run_plan(b.run), TL_ERROR_INVALID_PLAN);
    assert_non_null(strstr(b.env.error.text, "tl_run_plan: step 2 (F a): claim: "));
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- real kernels in floating point --

#define FT 6  // positions
#define FC 4  // channels

typedef struct floats {
    double convolution[3 * FC * FC], query[FC * FC];  // parameters
    double d_convolution[3 * FC * FC], d_query[FC * FC];
    long   calls;
} floats;

static double *at_doubles(const tl_operand *operand) { return (double *)operand->host; }

static tl_result convolution(const tl_kernel_call *call, void *user) {
    floats *f = (floats *)user;
    const double *x = at_doubles(&call->inputs[0]);
    double *y = at_doubles(&call->outputs[0]);
    const double *dy = at_doubles(&call->output_grads[0]);
    int t, k, c, d;
    f->calls++;
    if (call->kind != TL_STEP_BACKWARD) memset(y, 0, FT * FC * sizeof *y);
    for (t = 0; t < FT; t++)
        for (k = 0; k < 3; k++)
            for (c = 0; c < FC && t + k >= 1 && t + k <= FT; c++)
                for (d = 0; d < FC; d++) {
                    if (call->kind == TL_STEP_BACKWARD) f->d_convolution[(k * FC + c) * FC + d] += dy[t * FC + c] * x[(t + k - 1) * FC + d];
                    else y[t * FC + c] += f->convolution[(k * FC + c) * FC + d] * x[(t + k - 1) * FC + d];
                }
    return TL_OK;
}

// Batch norm: mean and 1 / deviation of each channel are its saved bytes.
static tl_result normalize(const tl_kernel_call *call, void *user) {
    const double *x = at_doubles(&call->inputs[0]), *dy = at_doubles(&call->output_grads[0]);
    double *y = at_doubles(&call->outputs[0]), *dx = at_doubles(&call->input_grads[0]), *saved = at_doubles(&call->saved);
    int t, c;
    ((floats *)user)->calls++;
    for (c = 0; c < FC; c++) {
        double mean = 0, square = 0, scale, sum = 0, product = 0;
        if (call->kind == TL_STEP_BACKWARD) {
            mean = saved[2 * c];
            scale = saved[2 * c + 1];
            for (t = 0; t < FT; t++) {
                sum += dy[t * FC + c];
                product += dy[t * FC + c] * (x[t * FC + c] - mean) * scale;
            }
            for (t = 0; t < FT; t++)
                dx[t * FC + c] += scale * (dy[t * FC + c] - sum / FT - (x[t * FC + c] - mean) * scale * product / FT);
            continue;
        }
        for (t = 0; t < FT; t++) mean += x[t * FC + c] / FT;
        for (t = 0; t < FT; t++) square += (x[t * FC + c] - mean) * (x[t * FC + c] - mean) / FT;
        scale = 1 / sqrt(square + 1e-3);
        if (saved) { saved[2 * c] = mean; saved[2 * c + 1] = scale; }
        for (t = 0; t < FT && !call->outputs_ready; t++) y[t * FC + c] = (x[t * FC + c] - mean) * scale;
    }
    return TL_OK;
}

// Self-attention with one matrix: P = softmax(x W x' / 2), y = P x; P is its saved bytes.
static tl_result attention(const tl_kernel_call *call, void *user) {
    floats *f = (floats *)user;
    const double *x = at_doubles(&call->inputs[0]), *dy = at_doubles(&call->output_grads[0]);
    double *y = at_doubles(&call->outputs[0]), *dx = at_doubles(&call->input_grads[0]), *p = at_doubles(&call->saved);
    double *q = at_doubles(&call->scratch), *row = q + FC;
    int i, j, c, d;
    f->calls++;
    for (i = 0; i < FT; i++) {
        double most = -1e300, sum = 0, inner = 0, dq[FC];
        for (c = 0; c < FC; c++) {
            q[c] = dq[c] = 0;
            for (d = 0; d < FC; d++) q[c] += x[i * FC + d] * f->query[d * FC + c];
        }
        if (call->kind == TL_STEP_BACKWARD) {
            for (j = 0; j < FT; j++) {
                row[j] = 0;
                for (c = 0; c < FC; c++) row[j] += dy[i * FC + c] * x[j * FC + c];
                inner += row[j] * p[i * FT + j];
            }
            for (j = 0; j < FT; j++) {
                double ds = p[i * FT + j] * (row[j] - inner) / 2;
                for (c = 0; c < FC; c++) {
                    dx[j * FC + c] += p[i * FT + j] * dy[i * FC + c] + ds * q[c];
                    dq[c] += ds * x[j * FC + c];
                }
            }
            for (d = 0; d < FC; d++)
                for (c = 0; c < FC; c++) {
                    dx[i * FC + d] += dq[c] * f->query[d * FC + c];
                    f->d_query[d * FC + c] += dq[c] * x[i * FC + d];
                }
            continue;
        }
        for (j = 0; j < FT; j++) {
            row[j] = 0;
            for (c = 0; c < FC; c++) row[j] += q[c] * x[j * FC + c] / 2;
            if (row[j] > most) most = row[j];
        }
        for (j = 0; j < FT; j++) sum += row[j] = exp(row[j] - most);
        for (j = 0; j < FT; j++) row[j] /= sum;
        if (p) memcpy(p + i * FT, row, FT * sizeof *row);
        for (c = 0; c < FC && !call->outputs_ready; c++) {
            y[i * FC + c] = 0;
            for (j = 0; j < FT; j++) y[i * FC + c] += row[j] * x[j * FC + c];
        }
    }
    return TL_OK;
}

// Half of the values, chosen by the seed, twice as large; backward chooses the same half.
static tl_result dropout(const tl_kernel_call *call, void *user) {
    int i;
    ((floats *)user)->calls++;
    for (i = 0; i < FT * FC; i++) {
        double kept = 2 * (double)(tl_mix_u64(call->seed, (uint64_t)i) & 1);
        if (call->kind == TL_STEP_BACKWARD) at_doubles(&call->input_grads[0])[i] += kept * at_doubles(&call->output_grads[0])[i];
        else at_doubles(&call->outputs[0])[i] = kept * at_doubles(&call->inputs[0])[i];
    }
    return TL_OK;
}

// a b + c
static tl_result blend(const tl_kernel_call *call, void *user) {
    const double *a = at_doubles(&call->inputs[0]), *b = at_doubles(&call->inputs[1]), *dy = at_doubles(&call->output_grads[0]);
    int i;
    ((floats *)user)->calls++;
    for (i = 0; i < FT * FC; i++) {
        if (call->kind != TL_STEP_BACKWARD) {
            at_doubles(&call->outputs[0])[i] = a[i] * b[i] + at_doubles(&call->inputs[2])[i];
            continue;
        }
        at_doubles(&call->input_grads[0])[i] += dy[i] * b[i];
        at_doubles(&call->input_grads[1])[i] += dy[i] * a[i];
        at_doubles(&call->input_grads[2])[i] += dy[i];
    }
    return TL_OK;
}

static tl_result half_square(const tl_kernel_call *call, void *user) {
    const double *x = at_doubles(&call->inputs[0]);
    int i;
    ((floats *)user)->calls++;
    if (call->kind != TL_STEP_BACKWARD) at_doubles(&call->outputs[0])[0] = 0;
    for (i = 0; i < FT * FC; i++) {
        if (call->kind == TL_STEP_BACKWARD) at_doubles(&call->input_grads[0])[i] += at_doubles(&call->output_grads[0])[0] * x[i];
        else at_doubles(&call->outputs[0])[0] += x[i] * x[i] / 2;
    }
    return TL_OK;
}

// In bytes of f32; the run takes f64, and its input is f64 as it stands. norm is read three times.
static const char *const float_graph =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=192 needs=none in=-\n"
    "node 1 conv convolution fwd=9 bwd=18 out=96 needs=in in=0\n"
    "node 2 norm normalize fwd=3 bwd=5 out=96 needs=in in=1 saved=32\n"
    "node 3 attend attention fwd=12 bwd=30 out=96 needs=in in=2 saved=144 fwork=40 bwork=40\n"
    "node 4 drop dropout fwd=1 bwd=1 out=96 needs=none in=2\n"
    "node 5 blend blend fwd=1 bwd=2 out=96 needs=in0,in1 in=2,3,4 inplace=2\n"
    "node 6 loss half_square fwd=1 bwd=1 out=4 needs=in in=5 keep\n";

static void float_open(bed *b, floats *f, const tl_graph *graph, tl_strategy *strategy, int kind) {
    static const struct { const char *op; tl_kernel_fn function; } kernels[] = {
        { "convolution", convolution }, { "normalize", normalize }, { "attention", attention },
        { "dropout", dropout }, { "blend", blend }, { "half_square", half_square },
    };
    int i;
    tl_random random;
    random.state = 5;
    for (i = 0; i < 3 * FC * FC; i++) f->convolution[i] = tl_next_random_ratio(&random) - 0.5;
    for (i = 0; i < FC * FC; i++) f->query[i] = tl_next_random_ratio(&random) - 0.5;
    memset(f->d_convolution, 0, sizeof f->d_convolution);
    memset(f->d_query, 0, sizeof f->d_query);
    *strategy = single(TL_MODE_EAGER, tl_gradient_checkpointed(0));
    strategy->precision = TL_PRECISION_DOUBLE;
    bed_open(b, graph, kind, 9, 8);
    for (i = 0; i < 6; i++) {
        b->kernels[i].op = kernels[i].op;
        b->kernels[i].forward = b->kernels[i].backward = kernels[i].function;
        b->kernels[i].user = f;
    }
    b->desc.kernel_count = 6;
    b->desc.kernel_precisions = 1u << TL_PRECISION_DOUBLE;
    b->desc.strategy = strategy;
    b->desc.load = NULL;
}

// Gradients and loss of one step; the run is made and freed.
static double float_step(bed *b, floats *f) {
    double x[FT * FC], loss = 0;
    int i;
    (void)f;
    for (i = 0; i < FT * FC; i++) x[i] = (double)(int)(tl_mix_u64(8, (uint64_t)i) % 200) / 100.0 - 1;
    bed_must_init(b);
    if (tl_write_tensor(b->run, tensor_of(0, 0), x, sizeof x) || tl_run_plan(b->run) ||
        tl_read_tensor(b->run, tensor_of(6, 0), &loss, sizeof loss)) fail_msg("%s", b->env.error.text);
    bed_close(b);
    return loss;
}

static double float_loss(const tl_graph *graph, int32_t parameter, double by) {
    static bed b;
    static floats f;
    tl_strategy strategy;
    float_open(&b, &f, graph, &strategy, 0);
    strategy.gradient = tl_gradient_none();
    if (parameter < 3 * FC * FC) f.convolution[parameter] += by;
    else f.query[parameter - 3 * FC * FC] += by;
    return float_step(&b, &f);
}

static void real_gradients_are_those_of_finite_differences_under_every_plan(void **state) {
    static bed b;
    static floats f, all;
    tl_graph graph = graph_of(float_graph);
    tl_strategy strategy;
    tl_random random;
    double loss;
    int32_t i;
    long recomputes = 0;
    uint64_t peak, least;
    int round;
    (void)state;
    float_open(&b, &all, &graph, &strategy, 0);
    strategy.gradient = tl_gradient_full();
    loss = float_step(&b, &all);
    assert_true(loss > 0.1 && loss < 1000);
    for (i = 0; i < 4 * FC * FC; i++) {
        double gradient = i < 3 * FC * FC ? all.d_convolution[i] : all.d_query[i - 3 * FC * FC];
        double difference = (float_loss(&graph, i, 1e-5) - float_loss(&graph, i, -1e-5)) / 2e-5;
        if (fabs(difference - gradient) > 1e-6 * (1 + fabs(gradient))) fail_msg("parameter %d: %.12g, by differences %.12g", (int)i, gradient, difference);
    }
    // Planned: every interval. Then online, from the least budget to the peak, with and without a host tier.
    float_open(&b, &f, &graph, &strategy, 0);
    b.desc.budget_bytes = 1;
    assert_int_equal(bed_init(&b), TL_ERROR_INFEASIBLE);
    least = named_bytes(b.env.error.text);
    b.desc.budget_bytes = 0;
    bed_must_init(&b);
    if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    peak = bed_report(&b).measured_peak_bytes;
    bed_close(&b);
    assert_true(least < peak);
    random.state = 4;
    for (round = 0; round < 60; round++) {
        float_open(&b, &f, &graph, &strategy, round % BACKEND_KINDS);
        if (round < 8) {
            strategy.mode = TL_MODE_LAZY;
            strategy.gradient = tl_gradient_checkpointed(1 + (uint64_t)round);
        } else {
            b.desc.budget_bytes = round < 12 ? least : least + tl_next_random_below(&random, peak - least);
            b.desc.eviction = (tl_eviction)(round % TL_EVICTION_CALLER);
            if (round % 3 == 0) b.desc.host_budget_bytes = 300;
        }
        assert_true(float_step(&b, &f) == loss);
        assert_memory_equal(f.d_convolution, all.d_convolution, sizeof f.d_convolution);
        assert_memory_equal(f.d_query, all.d_query, sizeof f.d_query);
        recomputes += f.calls > 12;
        f.calls = 0;
    }
    assert_true(recomputes > 30);
    tl_free_graph(NULL, &graph);
}

// -- profiling --

typedef struct seen { tl_run_event events[256]; int count; } seen;

static void see_event(const tl_run_event *event, void *user) {
    seen *s = (seen *)user;
    assert_true(s->count < 256);
    s->events[s->count++] = *event;
}

static void events_tell_every_step_and_the_peak(void **state) {
    static bed b;
    static seen s;
    tl_graph graph = graph_of(everything);
    tl_plan lossless = schedule_of(lossless_steps), lossy = schedule_of(lossy_steps);
    int which, kind;
    (void)state;
    for (which = 0; which < 4; which++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            uint64_t most = 0, most_host = 0, inside = 0, before = 0, issued[16];
            tl_plan plan;
            int i, recomputes = 0;
            memset(&s, 0, sizeof s);
            memset(issued, 0, sizeof issued);
            bed_open(&b, &graph, kind, 1, 4);
            failing_desc(&b, which, &lossless, &lossy);
            b.desc.profiling = 1;
            b.desc.observe = see_event;
            b.desc.observe_user = &s;
            b.desc.repeat_count = 2;
            b.desc.first_step = 40;
            bed_must_init(&b);
            (void)bed_step(&b, 0);
            tl_find_run_plan(b.run, &plan);
            assert_int_equal(s.count, 2 * plan.step_count);
            for (i = 0; i < s.count; i++) {
                const tl_run_event *e = &s.events[i];
                const tl_step *step = &plan.steps[i % plan.step_count];
                assert_int_equal(e->index, i % plan.step_count);
                assert_int_equal(e->micro_batch, i / plan.step_count);
                assert_int_equal(e->training_step, 40);
                assert_memory_equal(&e->step, step, sizeof *step);
                assert_true(e->start_ns < e->end_ns);
                if (step->kind == TL_STEP_WAIT) assert_int_equal(e->start_ns, issued[step->node]);
                else assert_true(e->start_ns > before);
                if (step->kind == TL_STEP_SPILL || step->kind == TL_STEP_FETCH) issued[step->node] = e->start_ns;
                before = e->end_ns;
                recomputes += e->recompute;
                if (i / plan.step_count == 0) continue;
                if (e->device_bytes > most) most = e->device_bytes;
                if (e->host_bytes > most_host) most_host = e->host_bytes;
                if (step->kind <= TL_STEP_BACKWARD) inside += 10;  // the clock of the spy ticks once a call
            }
            assert_int_equal(most, bed_report(&b).measured_peak_bytes);
            assert_int_equal(most_host, bed_report(&b).measured_host_peak_bytes);
            assert_int_equal(bed_report(&b).compute_ns, inside);
            assert_int_equal(recomputes, 2 * bed_report(&b).recompute_count);
            bed_close(&b);
            // Without it the clock is never asked, and nobody observes.
            memset(&s, 0, sizeof s);
            bed_open(&b, &graph, kind, 1, 4);
            failing_desc(&b, which, &lossless, &lossy);
            b.desc.observe = see_event;
            b.desc.observe_user = &s;
            bed_must_init(&b);
            (void)bed_step(&b, 0);
            assert_int_equal(b.spy.clock_calls, 0);
            assert_int_equal(s.count, 0);
            assert_int_equal(bed_report(&b).compute_ns, 0);
            bed_close(&b);
        }
    tl_free_plan(NULL, &lossless);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// -- steady state --

// On a block of the caller, nothing is allocated after the first step, planned or online.
static void later_steps_allocate_nothing(void **state) {
    static uint64_t memory[1 << 13];
    static mixer m;
    static tl_kernel kernels[8];
    static bed helper;
    tl_graph graph = graph_of(everything);
    tl_plan keep_all, lossy = schedule_of("S 1\nF 2\nF 3\nC 3 bf16\nX 3\nF 4\nF 5\nD 5\nS 6\nB 6\nD 6\nB 4\nD 3.0\nB 3\nD 3.1\nD 2\nI 2\nB 2\nD 2\nB 1\n");
    int which;
    (void)state;
    memset(&helper.env, 0, sizeof helper.env);
    if (tl_plan_keep_all(&helper.env, &graph, 0, &keep_all)) fail_msg("%s", helper.env.error.text);
    for (which = 0; which < 4; which++) {
        failing_alloc f;
        tl_env env;
        tl_cpu_backend_desc desc;
        tl_run_desc run_desc;
        tl_backend backend;
        tl_run *run;
        long count;
        int step;
        memset(&f, 0, sizeof f);
        memset(&desc, 0, sizeof desc);
        memset(&run_desc, 0, sizeof run_desc);
        env = failing_env(&f, -1);
        desc.memory = memory;
        desc.memory_bytes = sizeof memory;
        desc.alignment_bytes = 4;
        if (tl_init_cpu_backend(&env, &desc, &backend)) fail_msg("%s", env.error.text);
        mixer_init(&m);
        run_desc.graph = &graph;
        run_desc.backend = &backend;
        run_desc.kernels = kernels;
        run_desc.kernel_count = mixer_kernels(&graph, &m, kernels);
        if (which == 0) run_desc.plan = &keep_all;
        if (which == 1) run_desc.plan = &lossy;
        if (which >= 2) run_desc.budget_bytes = 188;
        if (which == 3) run_desc.codec = TL_CODEC_Q8;
        if (tl_init_run(&env, &run_desc, &run)) fail_msg("%s", env.error.text);
        if (tl_run_plan(run)) fail_msg("%s", env.error.text);
        count = f.count;
        for (step = 0; step < 20; step++) {
            mixer_start_pass(&m);
            if (tl_run_plan(run)) fail_msg("%s", env.error.text);
        }
        assert_int_equal(f.count, count);
        tl_free_run(run);
        tl_free_cpu_backend(&env, &backend);
        assert_int_equal(f.live, 0);
    }
    tl_free_plan(NULL, &keep_all);
    tl_free_plan(NULL, &lossy);
    tl_free_graph(NULL, &graph);
}

// -- main --

static tl_result copy_kernel(const tl_kernel_call *call, void *user) {
    (void)user;
    if (call->kind == TL_STEP_BACKWARD) return TL_OK;
    memset(call->outputs[0].host, 1, (size_t)call->outputs[0].range.bytes);
    return TL_OK;
}

static uint64_t ticks(void *user) {
    static uint64_t now;
    (void)user;
    return now += 1000;
}

// A run over eight layers of 4 KiB, `steps` training steps.
static void run_layers(tl_env *env, const tl_backend *backend, tl_run_desc *desc, int steps) {
    tl_layer layers[8];
    tl_run *run;
    int i;
    memset(layers, 0, sizeof layers);
    for (i = 0; i < 8; i++) {
        layers[i].forward = layers[i].backward = copy_kernel;
        layers[i].output_bytes = 4096;
    }
    desc->backend = backend;
    if (tl_init_layer_run(env, desc, layers, 8, 64, &run)) fail_msg("%s", env->error.text);
    for (i = 0; i < steps; i++)
        if (tl_run_plan(run)) fail_msg("%s", env->error.text);
    tl_free_run(run);
}

// Measured, planned, under a budget, online: nothing that works is logged or leaves an error.
static void what_succeeds_is_silent(void **state) {
    static char memory[256 << 10];
    static const uint64_t budgets[] = { 0, 36 << 10, 24 << 10, 18 << 10 };
    long lines;
    tl_env env = logging_env(&lines);
    tl_cpu_backend_desc cpu;
    tl_measure_device_desc measure;
    tl_device device;
    tl_backend backend;
    tl_strategy strategy;
    uint64_t blocks[2];
    int i;
    (void)state;
    memset(&strategy, 0, sizeof strategy);
    memset(&cpu, 0, sizeof cpu);
    memset(&measure, 0, sizeof measure);
    cpu.memory = memory;
    cpu.memory_bytes = sizeof memory;
    cpu.now_ns = ticks;
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    measure.sample_count = 1;
    assert_int_equal(backend.add_block(backend.self, TL_TIER_DEVICE, 64 << 10, &blocks[0]), TL_OK);
    assert_int_equal(backend.add_block(backend.self, TL_TIER_DEVICE, 4096, &blocks[1]), TL_OK);
    assert_int_equal(backend.free_block(backend.self, blocks[0]), TL_OK);  // a hole: smaller blocks are tried
    if (tl_measure_device(&env, &backend, &measure, &device)) fail_msg("%s", env.error.text);
    assert_int_equal(backend.free_block(backend.self, blocks[1]), TL_OK);
    strategy.mode = TL_MODE_LAZY;
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.gradient = tl_gradient_checkpointed(0);
    for (i = 0; i < 4; i++) {
        tl_run_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.budget_bytes = budgets[i];
        run_layers(&env, &backend, &desc, 2);
        desc.codec = TL_CODEC_F16;
        desc.host_budget_bytes = 64 << 10;
        run_layers(&env, &backend, &desc, 2);
        memset(&desc, 0, sizeof desc);
        desc.budget_bytes = budgets[i];
        desc.strategy = &strategy;
        run_layers(&env, &backend, &desc, 2);
#ifndef TL_NO_OFFLOAD
        desc.host_budget_bytes = 64 << 10;
        run_layers(&env, &backend, &desc, 2);
#endif
    }
    tl_free_cpu_backend(&env, &backend);
    if (!is_silent(&env, lines)) fail_msg("%ld lines, last: %s", lines, env.error.text);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_succeeds_is_silent),
        cmocka_unit_test(an_online_run_makes_once_what_may_run_once_only),
        cmocka_unit_test(an_online_run_frees_inputs_that_die),
        cmocka_unit_test(swork_is_what_an_online_run_needs),
        cmocka_unit_test(random_graphs_give_the_gradients_of_keep_all),
        cmocka_unit_test(plans_with_offsets_measure_the_arena_that_was_planned),
        cmocka_unit_test(chains_run_as_many_forwards_as_revolve_says),
        cmocka_unit_test(chains_agree_with_the_reference_table),
        cmocka_unit_test(a_recomputation_that_does_nothing_changes_gradients),
        cmocka_unit_test(a_plan_without_one_of_its_recomputations_is_refused),
        cmocka_unit_test(random_state_needs_the_hook_and_repeats_with_it),
        cmocka_unit_test(a_kernel_that_writes_what_it_may_only_read_is_caught),
        cmocka_unit_test(a_kernel_that_writes_outside_its_ranges_is_caught),
        cmocka_unit_test(a_missing_order_is_an_error_on_a_deferred_backend),
        cmocka_unit_test(a_wait_step_waits_for_its_copy),
        cmocka_unit_test(a_kernel_may_fail_at_every_call),
        cmocka_unit_test(the_kernel_that_failed_is_named),
        cmocka_unit_test(the_backend_may_fail_at_every_call),
        cmocka_unit_test(what_cannot_be_freed_at_once_is_freed_later),
        cmocka_unit_test(each_block_that_is_not_taken_back_is_told),
        cmocka_unit_test(each_try_of_decisions_has_less_live_bytes),
        cmocka_unit_test(a_lost_device_stays_lost_and_everything_can_be_freed),
        cmocka_unit_test(every_allocation_of_a_run_may_fail),
        cmocka_unit_test(a_pass_needs_no_memory_but_to_tell_dependencies),
        cmocka_unit_test(a_load_that_fails_ends_the_step),
        cmocka_unit_test(a_plan_fits_its_budget_exactly_or_is_refused_by_one_byte),
        cmocka_unit_test(a_placed_plan_is_held_to_its_arena),
        cmocka_unit_test(inputs_at_the_end_of_an_arena_are_measured),
        cmocka_unit_test(plan_placed_for_less_is_placed_again),
        cmocka_unit_test(places_that_suit_the_backend_are_kept),
        cmocka_unit_test(online_budgets_are_exact_and_include_the_base),
        cmocka_unit_test(dependencies_are_those_of_the_ranges),
        cmocka_unit_test(an_online_run_may_be_pulled),
        cmocka_unit_test(a_wait_is_not_ready_until_its_copy_is_finished),
        cmocka_unit_test(an_abandoned_pass_leaves_nothing_and_does_not_count),
        cmocka_unit_test(a_kernel_runs_once_a_step_and_for_the_last_step_only),
        cmocka_unit_test(a_pass_given_up_hands_over_what_was_recorded),
        cmocka_unit_test(operands_of_a_yielded_step_are_mapped_or_a_call_maps_them),
        cmocka_unit_test(a_step_that_was_not_carried_out_is_named_and_nothing_is_lost),
        cmocka_unit_test(a_step_is_finished_once_and_the_last_one_only),
#ifndef TL_NO_ACCOUNTS
        cmocka_unit_test(a_backend_under_a_run_is_not_freed),
        cmocka_unit_test(the_account_of_a_run_is_limited_to_its_budgets),
        cmocka_unit_test(a_run_measures_its_own_account),
#endif
        cmocka_unit_test(nothing_is_claimed_before_what_was_refused_is_taken_back),
        cmocka_unit_test(the_peak_of_a_pass_is_not_that_of_the_pass_before),
        cmocka_unit_test(a_pass_in_order_submits_once_and_neither_polls_nor_waits),
        cmocka_unit_test(a_submit_takes_no_longer_than_it_may),
        cmocka_unit_test(a_submit_is_two_milliseconds_and_may_fail),
        cmocka_unit_test(recorded_passes_compute_what_others_do),
        cmocka_unit_test(a_whole_step_is_recorded_where_nothing_needs_waiting),
        cmocka_unit_test(a_kernel_of_the_host_is_not_called_before_its_operands_are_ready),
        cmocka_unit_test(a_step_that_was_begun_and_cannot_wait_fails),
        cmocka_unit_test(a_recorded_pass_is_given_up_without_waiting),
        cmocka_unit_test(with_room_for_everything_nothing_runs_more_than_twice),
        cmocka_unit_test(layers_by_hand_compute_what_a_pass_computes),
        cmocka_unit_test(layers_by_hand_in_inference_end_with_the_last_forward),
        cmocka_unit_test(layers_by_hand_begin_with_the_first_micro_batch),
        cmocka_unit_test(layers_that_break_a_rule_are_refused),
        cmocka_unit_test(checkpoints_can_be_switched_off_in_both_directions),
        cmocka_unit_test(nothing_of_an_earlier_step_is_used),
        cmocka_unit_test(a_difference_between_measured_and_planned_is_an_error),
        cmocka_unit_test(bytes_of_others_are_not_measured),
        cmocka_unit_test(every_mode_and_gradient_changes_the_steps),
        cmocka_unit_test(every_precision_changes_the_bytes),
        cmocka_unit_test(the_first_gradient_is_one),
        cmocka_unit_test(memory_parallelism_fusion_and_profiling_are_done_or_refused),
        cmocka_unit_test(a_pooled_run_takes_one_block_within_its_budget),
        cmocka_unit_test(presets_run_with_f32_kernels),
        cmocka_unit_test(every_quick_recommendation_runs),
        cmocka_unit_test(a_strategy_and_a_desc_that_disagree_are_refused),
        cmocka_unit_test(a_desc_that_breaks_a_rule_is_refused),
        cmocka_unit_test(a_load_hook_keeps_what_it_was_told),
        cmocka_unit_test(tensors_are_read_and_written_within_the_rules),
        cmocka_unit_test(a_result_that_is_being_spilled_can_be_read),
        cmocka_unit_test(plans_are_found_as_they_were_given_or_made),
#ifndef TL_NO_PLANNERS
        cmocka_unit_test(a_run_plans_within_its_work_limit),
#endif
        cmocka_unit_test(a_plan_changed_after_init_is_refused),
        cmocka_unit_test(real_gradients_are_those_of_finite_differences_under_every_plan),
        cmocka_unit_test(events_tell_every_step_and_the_peak),
        cmocka_unit_test(later_steps_allocate_nothing),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
