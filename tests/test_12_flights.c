// [12] RUN: kernels that are not ready, and several steps of a plan under way: lifetimes, peaks and places by the rule,
// and the same gradients whatever ends first, on the checked and the deferred backend and on threads.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/texts.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include "support/run_support.h"
#include "support/run_bed.h"


// -- lifetimes by the rule, without the library --
//
// What step i frees is free from step i + k on. The table of [5] says what each step allocates and frees; nothing here
// asks the simulator.

enum { MOST_LIVES = 20000 };

typedef struct life { uint64_t bytes; int32_t first, end, is_host; } life;

typedef struct replay {
    const tl_graph *graph;
    int32_t k, step, count, number, slots;
    life    lives[MOST_LIVES];      // of the device in the order of their numbers, mixed with those of the host
    int32_t device[1000], gradient[1000], packed[1000], host[1000], saved[1000];   // open ones; -1 = none
    int     leaving[1000], coming[1000];
} replay;

static int32_t born(replay *r, uint64_t bytes, int is_host) {
    life *l = &r->lives[r->count];
    if (!bytes) return -2;          // there, without bytes
    assert_true(r->count < MOST_LIVES);
    l->bytes = bytes;
    l->first = r->step < 0 ? 0 : r->step;
    l->end = INT32_MAX;
    l->is_host = is_host;
    return r->count++;
}

static void freed(replay *r, int32_t *open) {
    if (*open >= 0) r->lives[*open].end = r->step + r->k;
    *open = -1;
}

static void replay_forward(replay *r, const tl_step *step, int32_t tensors, int32_t nodes) {
    const tl_graph *graph = r->graph;
    const tl_node *node = &graph->nodes[step->node];
    int32_t i, missing = 0, was[64], twice[64], scratch;
    int inplace = step->kind == TL_STEP_FORWARD_INPLACE;
    assert_true(node->output_count <= 64);
    if (inplace) {
        int32_t from = tensors + graph->inputs[node->first_input + node->inplace].tensor;
        r->device[tensors + node->first_output] = r->device[from];
        r->device[from] = -1;
    }
    for (i = 0; i < node->output_count; i++) was[i] = r->device[tensors + node->first_output + i] != -1;
    for (i = 0; i < node->output_count; i++) missing += !was[i];
    for (i = 0; i < node->output_count; i++)
        if (!was[i]) r->device[tensors + node->first_output + i] = born(r, graph->outputs[node->first_output + i].bytes, 0);
    for (i = 0; i < node->output_count; i++) {
        int again = was[i] && (missing || inplace) && !(inplace && i == 0);
        twice[i] = again ? born(r, graph->outputs[node->first_output + i].bytes, 0) : -1;
    }
    if (step->kind == TL_STEP_FORWARD_SAVE) r->saved[nodes + step->node] = born(r, node->saved_bytes, 0);
    scratch = born(r, step->kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes, 0);
    freed(r, &scratch);
    for (i = 0; i < node->output_count; i++) freed(r, &twice[i]);
}

static void replay_gradient(replay *r, int32_t tensor, int32_t tensors) {
    const tl_node_output *output = &r->graph->outputs[tensor];
    if (!r->graph->nodes[output->node].has_grad || r->gradient[tensors + tensor] != -1) return;
    r->gradient[tensors + tensor] = born(r, output->bytes, 0);
}

static void replay_backward(replay *r, const tl_step *step, int32_t tensors, int32_t nodes) {
    const tl_node *node = &r->graph->nodes[step->node];
    int32_t i, scratch;
    for (i = 0; i < node->output_count; i++) replay_gradient(r, node->first_output + i, tensors);
    for (i = 0; i < node->input_count; i++) replay_gradient(r, r->graph->inputs[node->first_input + i].tensor, tensors);
    scratch = born(r, node->bwork_bytes, 0);
    freed(r, &scratch);
    for (i = 0; i < node->output_count; i++) freed(r, &r->gradient[tensors + node->first_output + i]);
    freed(r, &r->saved[nodes + step->node]);
}

static void replay_tensor(replay *r, const tl_step *step, int32_t tensor, int32_t at) {
    uint64_t bytes = r->graph->outputs[tensor].bytes;
    int resident = r->device[at] != -1 && !r->leaving[at] && !r->coming[at], packed = r->packed[at] != -1;
    switch (step->kind) {
    case TL_STEP_DROP: if (packed) freed(r, &r->packed[at]); else if (resident) freed(r, &r->device[at]); break;
    case TL_STEP_SPILL: if (resident) { r->host[at] = born(r, bytes, 1); r->leaving[at] = 1; } break;
    case TL_STEP_FETCH:
        if (r->device[at] == -1 && !packed) { r->device[at] = born(r, bytes, 0); r->coming[at] = 1; }
        break;
    case TL_STEP_WAIT:
        if (r->leaving[at]) freed(r, &r->device[at]);
        r->leaving[at] = r->coming[at] = 0;
        break;
    case TL_STEP_DROP_HOST: if (r->host[at] != -1) freed(r, &r->host[at]); break;
    case TL_STEP_COMPRESS:
        if (!resident) break;
        r->packed[at] = born(r, tl_find_codec_bytes((tl_codec)step->codec, bytes), 0);
        freed(r, &r->device[at]);
        break;
    case TL_STEP_EXPAND: if (packed) { r->device[at] = born(r, bytes, 0); freed(r, &r->packed[at]); } break;
    default: fail_msg("%s", "no step on a tensor");
    }
}

static void replay_step(replay *r, const tl_step *step) {
    const tl_node *node = &r->graph->nodes[step->node];
    int32_t tensors = step->slot * r->graph->tensor_count, nodes = step->slot * r->graph->node_count, i;
    switch (step->kind) {
    case TL_STEP_FORWARD: case TL_STEP_FORWARD_INPLACE: case TL_STEP_FORWARD_SAVE: replay_forward(r, step, tensors, nodes); return;
    case TL_STEP_BACKWARD: replay_backward(r, step, tensors, nodes); return;
    case TL_STEP_DROP_SAVED: freed(r, &r->saved[nodes + step->node]); return;
    default: break;
    }
    for (i = 0; i < node->output_count; i++)
        if (step->output == TL_ALL_OUTPUTS || step->output == i)
            replay_tensor(r, step, node->first_output + i, tensors + node->first_output + i);
}

// Replay a valid plan: its lives with k steps under way.
static void replay_plan(replay *r, const tl_graph *graph, const tl_plan *plan, int32_t k) {
    int32_t slot, i;
    r->graph = graph;
    r->k = k;
    r->count = 0;
    r->slots = plan->slot_count ? plan->slot_count : 1;
    assert_true(r->slots * graph->tensor_count <= 1000 && r->slots * graph->node_count <= 1000);
    for (i = 0; i < 1000; i++) {
        r->device[i] = r->gradient[i] = r->packed[i] = r->host[i] = r->saved[i] = -1;
        r->leaving[i] = r->coming[i] = 0;
    }
    r->step = -1;
    for (slot = 0; slot < r->slots; slot++)
        for (i = 0; i < graph->tensor_count; i++)
            if (graph->nodes[graph->outputs[i].node].is_input)
                r->device[slot * graph->tensor_count + i] = born(r, graph->outputs[i].bytes, 0);
    for (i = 0; i < plan->entry_count; i++) {
        int32_t tensor = graph->nodes[plan->entry[i].node].first_output + plan->entry[i].output;
        r->device[plan->entry[i].slot * graph->tensor_count + tensor] = born(r, graph->outputs[tensor].bytes, 0);
    }
    for (r->step = 0; r->step < plan->step_count; r->step++) replay_step(r, &plan->steps[r->step]);
}

static uint64_t replayed_peak(const replay *r, int32_t step_count, int is_host) {
    uint64_t peak = 0;
    int32_t step, i;
    for (step = 0; step < step_count || !step; step++) {
        uint64_t live = 0;
        for (i = 0; i < r->count; i++)
            if (r->lives[i].is_host == is_host && r->lives[i].first <= step && step < r->lives[i].end) live += r->lives[i].bytes;
        if (live > peak) peak = live;
    }
    return peak;
}

// No two allocations that live together overlap.
static void check_offsets(const replay *r, const tl_plan *plan, int is_host) {
    const life *lives[MOST_LIVES];
    int32_t count = 0, i, m;
    for (i = 0; i < r->count; i++) if (r->lives[i].is_host == is_host) lives[count++] = &r->lives[i];
    assert_int_equal(count, is_host ? plan->host_offset_count : plan->offset_count);
    for (i = 0; i < count; i++)
        for (m = 0; m < i; m++) {
            uint64_t a = tl_find_offset(plan, i, is_host), b = tl_find_offset(plan, m, is_host);
            if (lives[m]->end <= lives[i]->first || lives[i]->end <= lives[m]->first) continue;
            if (a < b + lives[m]->bytes && b < a + lives[i]->bytes) fail_msg("allocations %d and %d overlap", (int)m, (int)i);
        }
}

static tl_result simulate(const tl_graph *graph, const tl_plan *plan, tl_report *report) {
    tl_env env;
    tl_simulate_desc desc;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    return tl_simulate_plan(&env, &desc, report);
}

// The number of slots of the next plan.
static int32_t some_slots(tl_random *random) { return random_chance(random, 30) ? random_count(random, 2, 3) : 0; }

static tl_graph some_graph(tl_random *random, int32_t most_nodes) {
    tl_graph graph;
    if (random_graph(NULL, random, most_nodes, &graph)) fail_msg("%s", "no graph");
    return graph;
}

// Valid or not; release it with random_free_plan.
static tl_plan some_plan(tl_random *random, const tl_graph *graph, int32_t slots) {
    tl_plan plan;
    if (random_slot_plan(NULL, random, graph, slots, &plan)) fail_msg("%s", "out of memory");
    return plan;
}

static tl_plan kept_plan(const tl_graph *graph) {
    tl_plan plan;
    if (tl_plan_keep_all(NULL, graph, 0, &plan)) fail_msg("%s", "no plan");
    return plan;
}

static void peaks_and_lifetimes_are_those_of_the_rule(void **state) {
    static replay r;
    tl_random random;
    long round, rounds = scaled(3000), valid = 0, higher = 0;
    (void)state;
    random.state = 5;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        tl_report report, one;
        int32_t k, i;
        graph = some_graph(&random, 20);
        plan = some_plan(&random, &graph, some_slots(&random));
        if (simulate(&graph, &plan, &one)) { random_free_plan(NULL, &plan); tl_free_graph(NULL, &graph); continue; }
        valid++;
        for (k = 2; k <= 5; k++) {
            tl_lifetimes lifetimes;
            plan.in_flight = k < 5 ? k : INT32_MAX;
            if (simulate(&graph, &plan, &report)) fail_msg("%s", "a valid plan is none with several steps under way");
            replay_plan(&r, &graph, &plan, k < 5 ? k : 1000000);
            assert_int_equal(report.peak_bytes, replayed_peak(&r, plan.step_count, 0));
            assert_int_equal(report.host_peak_bytes, replayed_peak(&r, plan.step_count, 1));
            assert_true(report.peak_bytes >= one.peak_bytes);
            assert_int_equal(report.cost, one.cost);
            assert_int_equal(report.end_bytes, one.end_bytes);
            assert_int_equal(report.end_host_bytes, one.end_host_bytes);
            assert_int_equal(report.allocation_count, one.allocation_count);
            higher += report.peak_bytes > one.peak_bytes;
            if (tl_find_lifetimes(&env, &graph, &plan, &lifetimes)) fail_msg("%s", env.error.text);
            for (i = 0; i < lifetimes.count; i++) {     // what is written in place ends where its output begins
                const tl_lifetime *l = &lifetimes.items[i];
                assert_true(l->first_step <= l->end_step && l->end_step <= plan.step_count);
            }
            tl_free_lifetimes(&env, &lifetimes);
        }
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld graphs, %ld valid plans, %ld of %ld peaks rise\n", rounds, valid, higher, 4 * valid);
    assert_true(valid > rounds / 4 && higher > valid);
}

static void places_for_k_steps_hold_for_fewer(void **state) {
    static replay r;
    tl_random random;
    long round, rounds = scaled(600), placed = 0, tight = 0;
    (void)state;
    random.state = 6;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        tl_report report;
        tl_places_desc desc;
        int32_t k = random_count(&random, 2, 4), fewer;
        void *steps;
        memset(&desc, 0, sizeof desc);
        graph = some_graph(&random, 16);
        plan = some_plan(&random, &graph, some_slots(&random));
        steps = plan.memory;
        if (!simulate(&graph, &plan, &report)) {
            tl_plan made = plan;
            made.memory = NULL;
            made.in_flight = k;
            desc.graph = &graph;
            desc.work_limit = random_chance(&random, 50) ? 1 : 100000;
            if (tl_plan_places(&env, &desc, &made, NULL)) fail_msg("%s", env.error.text);
            assert_int_equal(made.in_flight, k);
            replay_plan(&r, &graph, &made, k);
            check_offsets(&r, &made, 0);
            check_offsets(&r, &made, 1);
            for (fewer = k; fewer >= 0; fewer--) {
                made.in_flight = fewer;
                if (simulate(&graph, &made, &report)) fail_msg("places for %d steps do not hold for %d", (int)k, (int)fewer);
                assert_int_equal(report.arena_bytes, made.arena_bytes);
            }
            made.in_flight = k + 2;
            tight += simulate(&graph, &made, &report) == TL_ERROR_INVALID_PLAN;
            placed++;
            tl_free_plan(NULL, &made);
        }
        plan.memory = steps;
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld plans placed, %ld of them for no more steps\n", placed, tight);
    assert_true(placed > rounds / 4 && tight > placed / 10);
}

// -- runs: any step under way is finished next --

typedef struct airport {
    tl_run_step steps[64];
    int         called[64];     // 1 = its kernel was called
    int32_t     count, most;
    long        waited;
} airport;

static tl_result call_kernel(const tl_run_step *step) {
    tl_kernel_fn function = step->call.kind == TL_STEP_BACKWARD ? step->kernel->backward : step->kernel->forward;
    return function(&step->call, step->kernel->user);
}

static void land(tl_run *run, airport *a, int32_t at) {
    a->steps[at] = a->steps[--a->count];
    a->called[at] = a->called[a->count];
    (void)run;
}

// Do something with one of the steps under way: call its kernel, or finish it.
static void move_one(bed *b, tl_random *random, airport *a) {
    int32_t at = random_count(random, 0, a->count - 1);
    if (!a->called[at] && random_chance(random, 30)) {      // all in one
        if (tl_run_step_kernel(b->run, &a->steps[at])) fail_msg("%s", b->env.error.text);
        land(b->run, a, at);
        return;
    }
    if (!a->called[at]++) {
        if (call_kernel(&a->steps[at])) fail_msg("%s", "a kernel failed");
        return;
    }
    if (tl_finish_step(b->run, &a->steps[at])) fail_msg("%s", b->env.error.text);
    assert_int_equal(tl_finish_step(b->run, &a->steps[at]), TL_ERROR_STALE);
    land(b->run, a, at);
}

static void fly_pass(bed *b, tl_random *random, int32_t k, int32_t micro_batch, airport *a) {
    int32_t done = 0, last = -1;
    a->count = 0;
    if (tl_start_pass(b->run, micro_batch)) fail_msg("%s", b->env.error.text);
    while (!done) {
        tl_run_step step;
        tl_result result;
        if (a->count && (k == 1 || random_chance(random, 40))) { move_one(b, random, a); continue; }
        result = tl_next_step(b->run, &step, &done);
        if (result == TL_NOT_READY) {
            int32_t i, is_there = 0;
            for (i = 0; i < a->count; i++) is_there |= a->steps[i].index == step.depends_on;
            if (k > 1 && step.depends_on >= 0) assert_true(is_there);
            a->waited += k > 1 && step.depends_on >= 0;
            if (a->count) move_one(b, random, a);
            continue;
        }
        if (result) fail_msg("%s", b->env.error.text);
        if (done) break;
        assert_true(step.index >= last && step.depends_on <= step.index);
        last = step.index;
        if (!step.is_compute) continue;
        assert_true(a->count < k && a->count < 64);
        a->called[a->count] = 0;
        a->steps[a->count++] = step;
        if (a->count > a->most) a->most = a->count;
    }
    assert_int_equal(a->count, 0);
}

// Two training steps; the outcome of the second.
static uint64_t fly(const tl_graph *graph, const tl_plan *plan, int kind, int32_t k, tl_random *random, airport *a) {
    static bed b;
    tl_run_report report;
    tl_plan same = *plan;
    tl_report simulated;
    uint64_t sum = 0;
    int32_t step, slots = plan->slot_count ? plan->slot_count : 1, slot;
    bed_open(&b, graph, kind, tl_next_random(random), 4);
    b.desc.plan = plan;
    b.desc.in_flight = k;
    bed_must_init(&b);
    for (step = 0; step < 2; step++) {
        for (slot = 0; slot < slots; slot++) {
            if (tl_choose_slot(b.run, slot) || bed_load(b.run, slot, &b)) fail_msg("%s", b.env.error.text);
        }
        (void)tl_choose_slot(b.run, 0);
        fly_pass(&b, random, k > 1 ? k : 1, 0, a);
        sum = bed_outcome(&b, plan->inference);
    }
    report = bed_report(&b);
    same.in_flight = k;
    same.offsets = same.host_offsets = NULL;
    same.offset_count = same.host_offset_count = 0;
    if (simulate(graph, &same, &simulated)) fail_msg("%s", "the plan is not valid");
    assert_int_equal(report.planned_peak_bytes, simulated.peak_bytes);
    assert_int_equal(report.measured_peak_bytes, simulated.peak_bytes);
    assert_int_equal(report.measured_host_peak_bytes, simulated.host_peak_bytes);
    assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
    assert_int_equal(report.forward_count, simulated.forward_count);
    assert_int_equal(report.backward_count, simulated.backward_count);
    assert_int_equal(spy_count(&b.spy).live_bytes[TL_TIER_DEVICE], simulated.end_bytes);
    bed_close(&b);
    return sum;
}

static void gradients_do_not_depend_on_what_ends_first(void **state) {
    static airport a;
    tl_random random;
    long round, rounds = scaled(600), flown = 0, together = 0;
    (void)state;
    random.state = 7;
    a.waited = 0;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_plan plan;
        tl_report report;
        graph = some_graph(&random, 24);
        plan = some_plan(&random, &graph, 0);
        if (!simulate(&graph, &plan, &report)) {
            uint64_t alone = fly(&graph, &plan, 0, 1, &random, &a);
            int32_t k;
            for (k = 1; k <= 4; k++) {
                a.most = 0;
                if (fly(&graph, &plan, (int)(round + k) % BACKEND_KINDS, k, &random, &a) != alone)
                    fail_msg("round %ld: another outcome with %d steps under way", round, (int)k);
                together += a.most > 1;
            }
            flown++;
        }
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld plans, %ld runs with several steps under way, %ld waits for one of them\n", flown, together, a.waited);
    assert_true(flown > rounds / 4 && together > flown && a.waited > flown);
}

// -- kernels that are not ready --

typedef struct lazy {
    mixer    *mixer;
    tl_random random;
    int       percent;      // of the calls that are answered TL_NOT_READY
    long      polled;
} lazy;

static tl_result lazy_call(const tl_kernel_call *call, void *user, int backward) {
    lazy *l = (lazy *)user;
    if (random_chance(&l->random, l->percent)) { l->polled++; return TL_NOT_READY; }
    return backward ? mixer_backward(call, l->mixer) : mixer_forward(call, l->mixer);
}

static tl_result lazy_forward(const tl_kernel_call *call, void *user) { return lazy_call(call, user, 0); }
static tl_result lazy_backward(const tl_kernel_call *call, void *user) { return lazy_call(call, user, 1); }

static void make_lazy(bed *b, lazy *l, uint64_t seed, int percent) {
    int32_t k;
    l->mixer = &b->mixer;
    l->random.state = seed;
    l->percent = percent;
    l->polled = 0;
    for (k = 0; k < b->desc.kernel_count; k++) {
        b->kernels[k].forward = lazy_forward;
        b->kernels[k].backward = lazy_backward;
        b->kernels[k].user = l;
    }
}

static void a_run_goes_on_where_a_kernel_was_not_ready(void **state) {
    static bed b;
    tl_random random;
    lazy l;
    long round, polled = 0, answers = 0;
    (void)state;
    random.state = 8;
    for (round = 0; round < scaled(300); round++) {
        tl_graph graph;
        uint64_t expected;
        int32_t repeat = random_count(&random, 1, 2), k = random_count(&random, 0, 4), step;
        int online = random_chance(&random, 30);
        tl_plan plan;
        graph = some_graph(&random, 20);
        expected = keep_all_outcome(&graph, 0, repeat, NULL);
        plan = kept_plan(&graph);
        bed_open(&b, &graph, (int)(round % BACKEND_KINDS), 9, 4);
        make_lazy(&b, &l, tl_next_random(&random), random_count(&random, 10, 80));
        b.desc.repeat_count = repeat;
        if (!online) { b.desc.plan = &plan; b.desc.in_flight = k; }
        bed_must_init(&b);
        for (step = 0; step < 2; step++) {
            tl_result result;
            while ((result = tl_run_plan(b.run)) == TL_NOT_READY) {
                tl_run_step other;
                int32_t done;
                answers++;
                assert_int_equal(tl_next_step(b.run, &other, &done), TL_ERROR_INVALID_ARG);
            }
            if (result) fail_msg("%s, online %d, k %d, kind %d", b.env.error.text, online, (int)k, (int)(round % 4));
        }
        if (bed_outcome(&b, 0) != expected) fail_msg("round %ld: another outcome", round);
        assert_int_equal(b.loads, 2 * repeat);
        polled += l.polled;
        bed_close(&b);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld answers of kernels that they are not ready, %ld of runs\n", polled, answers);
    assert_true(is_thinned() || (polled > answers && answers > 1000));
}

// A product of matrices in slices: a few elements in each call, counted by call->polled.
static tl_result slice_forward(const tl_kernel_call *call, void *user) {
    float *y = (float *)call->outputs[0].host;
    const float *x = (const float *)call->inputs[0].host;
    uint64_t count = call->outputs[0].range.bytes / 4, at = (uint64_t)call->polled;
    int32_t *frames = (int32_t *)user;
    ++*frames;
    y[at] = 2 * x[at];
    return at + 1 < count ? TL_NOT_READY : TL_OK;
}

static tl_result load_four(tl_run *run, int32_t micro_batch, void *user) {
    static const float x[4] = { 1, 2, 3, 4 };
    tl_tensor tensor = { 0, 0 };
    (void)micro_batch;
    (void)user;
    return tl_write_tensor(run, tensor, x, sizeof x);
}

static void a_kernel_works_in_slices(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
                               "node 1 y twice fwd=1 bwd=1 out=16 needs=none in=0 keep\n";
    tl_env env = silent_env();
    tl_graph graph;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc;
    tl_kernel kernel;
    tl_run *run;
    tl_tensor y = { 1, 0 };
    float values[4];
    int32_t frames = 0, calls = 0, i;
    (void)state;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    memset(&kernel, 0, sizeof kernel);
    graph = graph_of(text);
    cpu.checked = 1;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail_msg("%s", env.error.text);
    kernel.op = "twice";
    kernel.forward = slice_forward;
    kernel.user = &frames;
    desc.graph = &graph;
    desc.backend = &backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.inference = 1;
    desc.load = load_four;
    if (tl_init_run(&env, &desc, &run)) fail_msg("%s", env.error.text);
    do calls++; while (tl_run_plan(run) == TL_NOT_READY);
    assert_int_equal(frames, 4);
    assert_int_equal(calls, 4);
    if (tl_read_tensor(run, y, values, sizeof values)) fail_msg("%s", env.error.text);
    for (i = 0; i < 4; i++) assert_true(values[i] == 2 * (float)(i + 1));
    tl_free_run(run);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    tl_free_graph(NULL, &graph);
}

// Layer by layer: the same call goes on.
static void a_layer_goes_on_where_its_kernel_was_not_ready(void **state) {
    static bed b;
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
                               "node 1 a a fwd=1 bwd=1 out=16 needs=in in=0\nnode 2 b b fwd=1 bwd=1 out=16 needs=in in=1\n";
    tl_graph graph;
    tl_layer layers[2];
    lazy l;
    int32_t i;
    tl_result result = TL_OK;
    long answers = 0;
    (void)state;
    memset(layers, 0, sizeof layers);
    graph = graph_of(text);
    bed_open(&b, &graph, 1, 9, 4);
    make_lazy(&b, &l, 3, 60);
    for (i = 0; i < 2; i++) {
        layers[i].forward = lazy_forward;
        layers[i].backward = lazy_backward;
        layers[i].user = &l;
        layers[i].output_bytes = 16;
    }
    if (tl_init_layer_run(&b.env, &b.desc, layers, 2, 16, &b.run)) fail_msg("%s", b.env.error.text);
    for (i = 0; i < 4 && !result; i++) {
        do {
            result = i < 2 ? tl_run_forward(b.run, i) : tl_run_backward(b.run, 3 - i);
            if (result != TL_NOT_READY) continue;
            answers++;
            assert_int_equal(i < 2 ? tl_run_forward(b.run, i + 1) : tl_run_backward(b.run, 2 - i), TL_ERROR_INVALID_ARG);
        } while (result == TL_NOT_READY);
    }
    if (result) fail_msg("%s", b.env.error.text);
    assert_true(answers > 0 && l.polled >= answers);
    assert_int_equal(b.mixer.forwards, 2);
    assert_int_equal(b.mixer.backwards, 2);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

// -- what goes wrong --

static void what_is_for_one_step_at_a_time_is_refused(void **state) {
    static bed b;
    tl_graph graph;
    tl_plan plan;
    tl_random random;
    (void)state;
    random.state = 3;
    graph = some_graph(&random, 12);
    plan = kept_plan(&graph);
    bed_open(&b, &graph, 0, 0, 4);
    b.desc.in_flight = -1;
    b.desc.plan = &plan;
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_init_run: in_flight: must be >= 0");
    b.desc.in_flight = 2;
    b.desc.random = mixer_random_hook;
    b.desc.random_user = &b.mixer;
    assert_int_equal(bed_init(&b), TL_ERROR_UNSUPPORTED);
    assert_string_equal(b.env.error.text, "tl_init_run: in_flight: the random hook is for one step at a time");
    b.desc.random = NULL;
    b.desc.plan = NULL;
    assert_int_equal(bed_init(&b), TL_ERROR_UNSUPPORTED);
    assert_string_equal(b.env.error.text, "tl_init_run: in_flight: an online run decides one step at a time: give a plan");
    plan.in_flight = -1;
    b.desc.plan = &plan;
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// A pass is given up with steps under way, at any point and in any way; the next one is as if nothing had been.
static void a_pass_can_be_given_up_with_steps_under_way(void **state) {
    static bed b;
    static airport a;
    tl_random random;
    long round, rounds = scaled(300), failed = 0;
    (void)state;
    random.state = 9;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_plan plan;
        uint64_t expected;
        int32_t done = 0, stop = random_count(&random, 0, 30);
        graph = some_graph(&random, 16);
        plan = kept_plan(&graph);
        expected = fly(&graph, &plan, 0, 1, &random, &a);
        bed_open(&b, &graph, (int)(round % BACKEND_KINDS), 5, 4);
        b.desc.plan = &plan;
        b.desc.in_flight = random_count(&random, 2, 5);
        bed_must_init(&b);
        if (bed_load(b.run, 0, &b) || tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
        a.count = 0;
        while (!done && stop-- > 0) {
            tl_run_step step;
            tl_result result = tl_next_step(b.run, &step, &done);
            if (result == TL_NOT_READY) {
                if (a.count) { if (tl_finish_step(b.run, &a.steps[--a.count])) fail_msg("%s", b.env.error.text); }
                continue;
            }
            if (result) fail_msg("%s", b.env.error.text);
            if (step.is_compute) a.steps[a.count++] = step;
        }
        if (a.count && random_chance(&random, 50)) {        // by a kernel that fails
            b.mixer.fail_at = 0;
            assert_int_equal(tl_run_step_kernel(b.run, &a.steps[0]), TL_ERROR_KERNEL);
            b.mixer.fail_at = -1;
            failed++;
        } else if (tl_reset_run(b.run)) fail_msg("%s", b.env.error.text);
        while (a.count) assert_int_equal(tl_finish_step(b.run, &a.steps[--a.count]), TL_ERROR_STALE);
        assert_int_equal(spy_count(&b.spy).live_bytes[TL_TIER_DEVICE], input_bytes(&graph));
        memset(&b.mixer, 0, sizeof b.mixer);
        b.mixer.fail_at = -1;
        if (bed_load(b.run, 0, &b)) fail_msg("%s", b.env.error.text);
        fly_pass(&b, &random, b.desc.in_flight, 0, &a);
        if (bed_load(b.run, 0, &b)) fail_msg("%s", b.env.error.text);
        fly_pass(&b, &random, b.desc.in_flight, 0, &a);
        if (!done) assert_int_equal(bed_outcome(&b, 0), expected);
        bed_close(&b);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(failed > rounds / 10);
}

// -- the budget --

static void the_budget_binds_the_arena_of_all_steps_under_way(void **state) {
    tl_random random;
    long round, rounds = scaled(60), fitted = 0, refused = 0;
    (void)state;
    random.state = 10;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan all, plan;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_report simulated;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        graph = some_graph(&random, 14);
        all = kept_plan(&graph);
        desc.graph = &graph;
        desc.in_flight = random_count(&random, 2, 4);
        desc.alignment_bytes = 4;
        desc.work_limit = 200000;
        desc.budget_bytes = 1 + all.peak_bytes * (uint64_t)random_count(&random, 50, 150) / 100;
        result = tl_plan_remat(&env, &desc, &plan, &report);
        if (result == TL_ERROR_INFEASIBLE) {        // what it names is enough
            refused++;
            assert_true(report.least_budget_bytes > desc.budget_bytes);
            desc.budget_bytes = report.least_budget_bytes;
            result = tl_plan_remat(&env, &desc, &plan, &report);
        }
        if (result) fail_msg("%s", env.error.text);
        fitted++;
        assert_int_equal(plan.in_flight, desc.in_flight);
        assert_true(plan.arena_bytes <= desc.budget_bytes);
        if (simulate(&graph, &plan, &simulated)) fail_msg("%s", "the plan is not valid");
        assert_int_equal(simulated.peak_bytes, plan.peak_bytes);
        tl_free_plan(NULL, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld plans within a budget, %ld refused at first\n", fitted, refused);
    assert_true(is_thinned() || refused > 3);
}

// A schedule and a table say for how many steps they are.
static void a_schedule_says_how_many_steps_may_be_under_way(void **state) {
    static const char *const bad[] = { "K\n", "K 0\n", "K x\n", "K 2 3\n", "K 2\nK 2\n", "F 1\nK 2\n", "E 1.0\nK 2\n" };
    tl_env env = silent_env();
    tl_plan plan;
    char text[64];
    size_t i;
    (void)state;
    if (tl_parse_schedule(&env, "K 3\nE 1.0\nF 2\n", 14, &plan)) fail_msg("%s", env.error.text);
    assert_int_equal(plan.in_flight, 3);
    (void)tl_print_schedule(&plan, text, sizeof text);
    assert_string_equal(text, "K 3\nE 1.0\nF 2\n");
    tl_free_plan(NULL, &plan);
    for (i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tl_parse_schedule(&env, bad[i], strlen(bad[i]), &plan), TL_ERROR_PARSE);
}

// -- threads --

enum { JOB_THREADS = 4 };

// Nothing that two calls of different nodes share is written: a race in here is one of the run.
typedef struct job_state { uint64_t gradients[64], ran[64]; } job_state;

static void job_wait(const tl_kernel_call *call) {
    volatile uint64_t spin = tl_mix_u64((uint64_t)call->node, call->step) % 20000;
    while (spin) spin--;
}

static tl_result job_forward(const tl_kernel_call *call, void *user) {
    job_state *s = (job_state *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64(call->seed, (uint64_t)call->node);
    int32_t i;
    s->ran[call->node]++;
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    job_wait(call);
    if (call->scratch.range.bytes) memset(call->scratch.host, (int)sum, (size_t)call->scratch.range.bytes);
    if (!call->outputs_ready) for (i = 0; i < node->output_count; i++) mix_into(sum + (uint64_t)i, &call->outputs[i], 0);
    mix_into(sum + 77, &call->saved, 0);
    return TL_OK;
}

static tl_result job_backward(const tl_kernel_call *call, void *user) {
    job_state *s = (job_state *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64((uint64_t)call->node, call->seed);
    int32_t i;
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    for (i = 0; i < node->output_count; i++) {
        sum = mix_bytes(sum, &call->outputs[i]);
        sum = mix_bytes(sum, &call->output_grads[i]);
    }
    sum = mix_bytes(sum, &call->saved);
    job_wait(call);
    if (call->scratch.range.bytes) memset(call->scratch.host, (int)sum, (size_t)call->scratch.range.bytes);
    s->gradients[call->node] = tl_mix_u64(s->gradients[call->node], sum);
    for (i = 0; i < node->input_count; i++) mix_into(sum + (uint64_t)i, &call->input_grads[i], 1);
    return TL_OK;
}

typedef struct jobs {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    tl_run_step     queue[64], ready[64];
    int32_t         queued, finished, under_way, ends;
} jobs;

static void *job_thread(void *user) {
    jobs *j = (jobs *)user;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        tl_run_step step;
        while (!j->queued && !j->ends) pthread_cond_wait(&j->changed, &j->lock);
        if (!j->queued) break;
        step = j->queue[--j->queued];
        pthread_mutex_unlock(&j->lock);
        (void)call_kernel(&step);
        pthread_mutex_lock(&j->lock);
        j->ready[j->finished++] = step;
        pthread_cond_broadcast(&j->changed);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

// Finish what threads have done; blocks: wait for at least one.
static void collect_jobs(tl_run *run, jobs *j, int blocks) {
    tl_run_step done[64];
    int32_t count, i;
    pthread_mutex_lock(&j->lock);
    while (blocks && !j->finished) pthread_cond_wait(&j->changed, &j->lock);
    count = j->finished;
    memcpy(done, j->ready, (size_t)count * sizeof *done);
    j->finished = 0;
    pthread_mutex_unlock(&j->lock);
    for (i = 0; i < count; i++) assert_int_equal(tl_finish_step(run, &done[i]), TL_OK);
    j->under_way -= count;
}

static void run_on_threads(tl_run *run, jobs *j) {
    int32_t done = 0;
    assert_int_equal(tl_start_pass(run, 0), TL_OK);
    while (!done) {
        tl_run_step step;
        tl_result result = tl_next_step(run, &step, &done);
        if (result == TL_NOT_READY) { collect_jobs(run, j, j->under_way > 0); continue; }
        if (result) fail_msg("%s", tl_name_result(result));
        if (done || !step.is_compute) continue;
        pthread_mutex_lock(&j->lock);
        j->queue[j->queued++] = step;
        j->under_way++;
        pthread_cond_broadcast(&j->changed);
        pthread_mutex_unlock(&j->lock);
    }
    assert_int_equal(j->under_way, 0);
}

static void gradients_on_threads_are_those_of_one(void **state) {
    static bed b;
    static jobs j;
    static job_state s;
    pthread_t threads[JOB_THREADS];
    tl_random random;
    long round, rounds = scaled(60);
    int32_t i;
    (void)state;
    memset(&j, 0, sizeof j);
    pthread_mutex_init(&j.lock, NULL);
    pthread_cond_init(&j.changed, NULL);
    for (i = 0; i < JOB_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, job_thread, &j), 0);
    random.state = 11;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_plan plan;
        tl_report report;
        uint64_t sums[6];
        int32_t k;
        graph = some_graph(&random, 30);
        plan = some_plan(&random, &graph, 0);
        for (k = 1; k <= 5 && !simulate(&graph, &plan, &report); k++) {
            memset(&s, 0, sizeof s);
            bed_open(&b, &graph, k % 2 ? 0 : BACKEND_CHECKED, 4, 4);
            for (i = 0; i < b.desc.kernel_count; i++) {
                b.kernels[i].forward = job_forward;
                b.kernels[i].backward = job_backward;
                b.kernels[i].user = &s;
            }
            b.desc.plan = &plan;
            b.desc.in_flight = k == 5 ? 16 : k;
            bed_must_init(&b);
            for (i = 0; i < 2; i++) {
                if (bed_load(b.run, 0, &b)) fail_msg("%s", b.env.error.text);
                if (k == 1 && tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
                if (k > 1) run_on_threads(b.run, &j);
            }
            memcpy(b.mixer.gradients, s.gradients, sizeof s.gradients);
            sums[k] = bed_outcome(&b, plan.inference);
            assert_int_equal(sums[k], sums[1]);
            bed_close(&b);
        }
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    pthread_mutex_lock(&j.lock);
    j.ends = 1;
    pthread_cond_broadcast(&j.changed);
    pthread_mutex_unlock(&j.lock);
    for (i = 0; i < JOB_THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_and_lifetimes_are_those_of_the_rule),
        cmocka_unit_test(places_for_k_steps_hold_for_fewer),
        cmocka_unit_test(gradients_do_not_depend_on_what_ends_first),
        cmocka_unit_test(a_run_goes_on_where_a_kernel_was_not_ready),
        cmocka_unit_test(a_kernel_works_in_slices),
        cmocka_unit_test(a_layer_goes_on_where_its_kernel_was_not_ready),
        cmocka_unit_test(what_is_for_one_step_at_a_time_is_refused),
        cmocka_unit_test(a_pass_can_be_given_up_with_steps_under_way),
        cmocka_unit_test(the_budget_binds_the_arena_of_all_steps_under_way),
        cmocka_unit_test(a_schedule_says_how_many_steps_may_be_under_way),
        cmocka_unit_test(gradients_on_threads_are_those_of_one),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
