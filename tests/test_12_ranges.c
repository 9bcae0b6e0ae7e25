// [12] RUN: nodes that take blocks, called for ranges of elements where a binding is smaller than a tensor.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "nn.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/texts.h"

// -- kernels: those of examples/nn.h, and what a call must look like --

enum { MOST_ELEMENTS = 512, MOST_NODES = 32, ROW = 5 };

typedef struct elements {
    spy        spy;
    tl_env     env, backend_env;
    tl_backend backend;
    tl_kernel  kernels[8];
    tl_run_desc desc;
    tl_run    *run;
    uint64_t   alignment, binding;
    // What the kernels saw.
    float      gradients[MOST_NODES][MOST_ELEMENTS];  // of each node's output
    uint64_t   next;                 // the element with which the next call has to begin; 0 = another step
    uint64_t   bases[2];             // offset of element 0 of output 0, and of its gradient
    long       calls, ranges;        // of kernels; of these, calls for a part of the elements
    long       fail_at;              // call that fails; -1 = none
    // Random numbers of a stream, under the hook.
    uint64_t   stream, present, recorded[MOST_NODES];
    long       moments[TL_RANDOM_MOMENT_COUNT];
    long       events;
} elements;

static uint64_t size_of(tl_format format) { return tl_find_format_bytes(format, 4); }

// A part of a tensor begins where an offset may begin, is no longer than a binding, and has the call's elements.
static void check_operand(const elements *e, const tl_kernel_call *call, const tl_operand *operand, uint64_t bytes) {
    uint64_t size = size_of(operand->format);
    if (!operand->range.bytes) return;
    assert_int_equal(operand->range.offset % e->alignment, 0);
    if (e->binding) assert_true(operand->range.bytes <= e->binding);
    assert_int_equal(operand->range.bytes, bytes / size == call->total ? call->count * size : bytes);
}

static void check_call(elements *e, const tl_kernel_call *call) {
    const tl_graph *graph = call->graph;
    const tl_node *node = &graph->nodes[call->node];
    int backward = call->kind == TL_STEP_BACKWARD;
    uint64_t size = size_of(call->outputs[0].format), bases[2];
    int32_t i;
    assert_int_equal(call->total, graph->outputs[node->first_output].bytes / size);
    assert_true(call->count > 0 && call->first + call->count <= call->total);
    assert_int_equal(call->first, e->next);
    e->next = call->first + call->count < call->total ? call->first + call->count : 0;
    if (!node->takes_blocks) assert_int_equal(call->count, call->total);
    for (i = 0; i < node->input_count; i++) {
        uint64_t bytes = graph->outputs[graph->inputs[node->first_input + i].tensor].bytes;
        check_operand(e, call, &call->inputs[i], bytes);
        check_operand(e, call, &call->input_grads[i], bytes);
    }
    check_operand(e, call, &call->outputs[0], graph->outputs[node->first_output].bytes);
    check_operand(e, call, &call->output_grads[0], graph->outputs[node->first_output].bytes);
    bases[0] = call->outputs[0].range.offset - call->first * size;
    bases[1] = call->output_grads[0].range.offset - call->first * size;
    if (call->first && call->outputs[0].range.bytes) assert_int_equal(bases[0], e->bases[0]);
    if (call->first && backward) assert_int_equal(bases[1], e->bases[1]);
    memcpy(e->bases, bases, sizeof bases);
    assert_int_equal(call->scratch.range.bytes, backward ? node->bwork_bytes : node->fwork_bytes);
    if (call->scratch.host) memset(call->scratch.host, 0x5A, (size_t)call->scratch.range.bytes);
    e->calls++;
    e->ranges += call->count < call->total;
}

static tl_result forward(const tl_kernel_call *call, void *user) {
    elements *e = (elements *)user;
    const char *op = tl_name_op(call->graph, call->node);
    float *out = (float *)call->outputs[0].host;
    const float *a = (const float *)call->inputs[0].host;
    const float *b = (const float *)(call->graph->nodes[call->node].input_count > 1 ? call->inputs[1].host : NULL);
    size_t n = (size_t)call->count, i;
    if (e->calls == e->fail_at) { e->calls++; return TL_ERROR_CORRUPT; }
    check_call(e, call);
    if (!strcmp(op, "gelu")) nn_gelu_forward(out, a, n);
    else if (!strcmp(op, "add")) nn_add_forward(out, a, b, n);
    else if (!strcmp(op, "drop")) nn_dropout_forward(out, a, n, 0.3f, call->seed, call->first);
    for (i = 0; i < n && !strcmp(op, "start"); i++) out[i] = 1.5f * a[i];
    for (i = 0; i < n && !strcmp(op, "row"); i++) out[i] = a[i] + b[(call->first + i) % ROW];
    for (i = 0; i < n && !strcmp(op, "mask"); i++) out[i] = ((const int8_t *)(const void *)b)[i] ? a[i] : 0.25f;
    for (i = 0; i < n && !strcmp(op, "noise"); i++) {
        e->stream = e->stream * UINT64_C(6364136223846793005) + 99;
        out[i] = a[i] + (float)(e->stream >> 60);
    }
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    elements *e = (elements *)user;
    const char *op = tl_name_op(call->graph, call->node);
    const float *dout = (const float *)call->output_grads[0].host;
    float *da = (float *)call->input_grads[0].host;
    size_t n = (size_t)call->count, i;
    if (e->calls == e->fail_at) { e->calls++; return TL_ERROR_CORRUPT; }
    check_call(e, call);
    memcpy(e->gradients[call->node] + call->first, dout, n * sizeof *dout);
    if (!strcmp(op, "gelu")) nn_gelu_backward(da, dout, (const float *)call->inputs[0].host, n);
    else if (!strcmp(op, "add")) nn_add_backward(da, (float *)call->input_grads[1].host, dout, n);
    else if (!strcmp(op, "drop")) nn_dropout_backward(da, dout, n, 0.3f, call->seed, call->first);
    else if (!strcmp(op, "mask")) {
        const int8_t *mask = (const int8_t *)call->inputs[1].host;
        for (i = 0; i < n; i++) da[i] += mask[i] ? dout[i] : 0.0f;
    } else if (strcmp(op, "start")) {  // row, noise
        for (i = 0; i < n; i++) da[i] += dout[i];
    }
    return TL_OK;
}

static void random_hook(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user) {
    elements *e = (elements *)user;
    (void)micro_batch;
    e->moments[moment]++;
    switch (moment) {
    case TL_RANDOM_RECORD: e->recorded[node] = e->stream; break;
    case TL_RANDOM_REPLAY: e->present = e->stream; e->stream = e->recorded[node]; break;
    case TL_RANDOM_RESUME: e->stream = e->present; break;
    case TL_RANDOM_MOMENT_COUNT: break;
    }
}

static void count_event(const tl_run_event *event, void *user) {
    assert_true(event->end_ns >= event->start_ns);
    ((elements *)user)->events++;
}

static void open_elements(elements *e, const tl_graph *graph, int kind, uint64_t alignment, uint64_t binding) {
    static const char *const ops[] = { "start", "gelu", "add", "drop", "row", "noise", "mask" };
    int i;
    memset(e, 0, sizeof *e);
    e->backend = spy_open(&e->backend_env, kind, 7, alignment, &e->spy);
    e->spy.binding = e->binding = binding;
    e->alignment = alignment;
    e->fail_at = -1;
    e->stream = 5;
    for (i = 0; i < 7; i++) {
        e->kernels[i].op = ops[i];
        e->kernels[i].forward = forward;
        e->kernels[i].backward = backward;
        e->kernels[i].user = e;
    }
    e->desc.graph = graph;
    e->desc.backend = &e->backend;
    e->desc.kernels = e->kernels;
    e->desc.kernel_count = 7;
    e->desc.seed = 42;
    e->desc.random = random_hook;
    e->desc.random_user = e;
    e->desc.profiling = 1;
    e->desc.observe = count_event;
    e->desc.observe_user = e;
}

static void init_elements(elements *e) {
    const tl_graph *graph = e->desc.graph;
    int32_t i, k;
    tl_result result = tl_init_run(&e->env, &e->desc, &e->run);
    if (result == TL_ERROR_INFEASIBLE && e->desc.budget_bytes) {
        e->desc.budget_bytes = tl_find_least_budget(&e->env.error);
        result = tl_init_run(&e->env, &e->desc, &e->run);
    }
    if (result) fail_msg("%s", e->env.error.text);
    for (i = 0; i < graph->node_count; i++) {
        tl_tensor tensor = { 0, 0 };
        union { float f[MOST_ELEMENTS]; int8_t b[4 * MOST_ELEMENTS]; } data;
        uint64_t bytes = graph->outputs[graph->nodes[i].first_output].bytes;
        if (!graph->nodes[i].is_input) continue;
        assert_true(bytes <= sizeof data);
        nn_fill_normal(data.f, MOST_ELEMENTS, 1.0f, (uint64_t)i);
        for (k = 0; e->desc.formats && e->desc.formats[i] == TL_FORMAT_I8 && k < MOST_ELEMENTS; k++)
            data.b[k] = (int8_t)(nn_hash(3, (uint64_t)k) % 3);
        tensor.node = i;
        if (tl_write_tensor(e->run, tensor, &data, bytes)) fail_msg("%s", e->env.error.text);
    }
}

static void close_elements(elements *e) {
    tl_free_run(e->run);
    e->run = NULL;
    spy_close(&e->backend_env, &e->spy);
}

// The result, and all gradients that were seen.
typedef struct outcome {
    float result[MOST_ELEMENTS], gradients[MOST_NODES][MOST_ELEMENTS];
} outcome;

static void take_outcome(elements *e, outcome *o) {
    const tl_graph *graph = e->desc.graph;
    tl_tensor last = { 0, 0 };
    memset(o, 0, sizeof *o);
    last.node = graph->node_count - 1;
    if (tl_read_tensor(e->run, last, o->result, graph->outputs[graph->tensor_count - 1].bytes))
        fail_msg("%s", e->env.error.text);
    memcpy(o->gradients, e->gradients, sizeof o->gradients);
}

// One pass, step by step, and by which way the kernels are called.
typedef enum way { WAY_RUN, WAY_STEPS, WAY_BY_HAND, WAY_COUNT } way;

static void pull_pass(elements *e, int by_hand) {
    tl_run_step step, first;
    int32_t done = 0;
    memset(&first, 0, sizeof first);
    if (tl_start_pass(e->run, 0)) fail_msg("%s", e->env.error.text);
    for (;;) {
        tl_result result = tl_next_step(e->run, &step, &done);
        if (result == TL_NOT_READY) continue;
        if (result) fail_msg("%s", e->env.error.text);
        if (done) return;
        if (!step.is_compute) continue;
        if (step.call.first == 0) first = step;
        assert_int_equal(step.index, first.index);
        assert_memory_equal(&step.step, &first.step, sizeof step.step);
        assert_int_equal(step.depends_on, step.call.first && step.call.scratch.range.bytes ? step.index : first.depends_on);
        if (!by_hand) {
            result = tl_run_step_kernel(e->run, &step);
        } else {
            result = tl_map_step(e->run, &step);
            if (!result) result = (step.call.kind == TL_STEP_BACKWARD ? backward : forward)(&step.call, e);
            if (!result) result = tl_finish_step(e->run, &step);
            assert_int_equal(tl_finish_step(e->run, &step), TL_ERROR_STALE);
        }
        if (result) fail_msg("%s", e->env.error.text);
    }
}

static void run_elements(elements *e, way by) {
    e->calls = e->ranges = e->events = 0;
    if (by != WAY_RUN) { pull_pass(e, by == WAY_BY_HAND); return; }
    if (tl_run_plan(e->run)) fail_msg("%s", e->env.error.text);
}

// -- the results --

// A graph of elementwise nodes over `count` floats: x, row, start, then nodes that read what is there.
static tl_graph random_elements(tl_random *random, uint64_t count, int has_noise) {
    static const char *const ops[] = { "gelu", "add", "drop", "row", "noise" };
    tl_graph graph;
    char text[4096];
    int nodes = random_count(random, 4, 12), i, length;
    length = snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\n"
                      "node 1 r input fwd=0 bwd=0 out=%d needs=none in=-\n"
                      "node 2 s start fwd=3 bwd=3 out=%d needs=none in=0 takes_blocks\n", (int)(4 * count), 4 * ROW, (int)(4 * count));
    for (i = 3; i < nodes + 3; i++) {
        const char *op = ops[tl_next_random_below(random, has_noise ? 5 : 4)];
        int from = random_chance(random, 60) ? i - 1 : random_count(random, 2, i - 1), other = random_count(random, 2, i - 1);
        int is_add = !strcmp(op, "add"), is_gelu = !strcmp(op, "gelu");
        length += snprintf(text + length, sizeof text - (size_t)length, "node %d n%d %s fwd=%d bwd=2 out=%d needs=%s in=%d",
                           i, i, op, random_count(random, 1, 9), (int)(4 * count), is_gelu ? "in" : "none", from);
        if (is_add) length += snprintf(text + length, sizeof text - (size_t)length, ",%d", other);
        if (!strcmp(op, "row")) length += snprintf(text + length, sizeof text - (size_t)length, ",1");
        if (random_chance(random, 30)) length += snprintf(text + length, sizeof text - (size_t)length, " fwork=40");
        if (random_chance(random, 30)) length += snprintf(text + length, sizeof text - (size_t)length, " bwork=33");
        if (random_chance(random, 40) && !is_gelu) length += snprintf(text + length, sizeof text - (size_t)length, " inplace=0");
        length += snprintf(text + length, sizeof text - (size_t)length, "%s takes_blocks\n", i == nodes + 2 ? " keep" : "");
    }
    graph = graph_of(text);
    return graph;
}

// The plan or the online budget of a run, the same for a graph and a seed.
static void choose_decisions(elements *e, tl_random *random, tl_plan *plan) {
    tl_remat_desc remat;
    tl_remat_report report;
    tl_plan keep_all;
    memset(plan, 0, sizeof *plan);
    memset(&remat, 0, sizeof remat);
    if (tl_plan_keep_all(&e->env, e->desc.graph, 0, &keep_all)) fail_msg("%s", e->env.error.text);
    remat.graph = e->desc.graph;
    remat.budget_bytes = keep_all.peak_bytes - tl_next_random_below(random, keep_all.peak_bytes / 2);
    remat.host_budget_bytes = random_chance(random, 20) ? keep_all.peak_bytes : 0;
    remat.work_limit = 20000;
    tl_free_plan(&e->env, &keep_all);
    if (tl_plan_remat(&e->env, &remat, plan, &report)) {
        remat.budget_bytes = report.least_budget_bytes;
        if (tl_plan_remat(&e->env, &remat, plan, &report)) fail_msg("%s", e->env.error.text);
    }
    if (random_chance(random, 60)) { e->desc.plan = plan; return; }
    e->desc.budget_bytes = 8 * plan->peak_bytes / 7 + 1000;
}

// In ranges of any length, on every kind of backend, under plans and online, by every way of calling: to the bit what
// whole calls compute.
static void ranges_compute_what_whole_calls_do(void **state) {
    static elements whole, cut;
    static outcome expected, got;
    long ranges = 0, recomputes = 0, uncut = 0;
    int round;
    (void)state;
    for (round = 0; round < scaled(400); round++) {
        tl_random random = { (uint64_t)round + 1 }, decisions;
        uint64_t count = 1 + tl_next_random_below(&random, MOST_ELEMENTS), alignment = UINT64_C(4) << random_count(&random, 0, 4);
        uint64_t binding = alignment > 40 ? alignment : 40;  // scratch is given whole
        int kind = round % BACKEND_KINDS, pass;
        way by = (way)(round / BACKEND_KINDS % WAY_COUNT);
        tl_graph graph = random_elements(&random, count, by != WAY_BY_HAND);
        tl_run_report report;
        tl_plan plan, same;
        binding += tl_next_random_below(&random, 2 * count);
        decisions = random;
        open_elements(&whole, &graph, 0, alignment, 0);
        choose_decisions(&whole, &random, &plan);
        open_elements(&cut, &graph, kind, alignment, binding);
        choose_decisions(&cut, &decisions, &same);
        cut.spy.is_remote = random_chance(&random, 30) && by == WAY_BY_HAND;
        init_elements(&whole);
        init_elements(&cut);
        for (pass = 0; pass < 2; pass++) {
            run_elements(&whole, WAY_RUN);
            take_outcome(&whole, &expected);
            run_elements(&cut, by);
            take_outcome(&cut, &got);
            assert_int_equal(cut.next, 0);
            assert_memory_equal(&expected, &got, sizeof got);
            assert_int_equal(whole.ranges, 0);
            tl_measure_run(cut.run, &report);
            assert_int_equal(report.kernel_count, cut.calls);
            assert_int_equal(report.forward_count + report.backward_count, whole.calls);
            assert_int_equal(report.step_count, cut.events);
            assert_int_equal(whole.events, cut.events);
            assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
            if (by != WAY_BY_HAND) assert_memory_equal(whole.moments, cut.moments, sizeof cut.moments);
            if (cut.ranges == 0) assert_int_equal(cut.calls, whole.calls);
            if (cut.ranges == 0) assert_true(4 * count <= binding);
            ranges += cut.ranges;
            recomputes += report.recompute_count;
        }
        uncut += cut.ranges == 0;
        close_elements(&whole);
        close_elements(&cut);
        tl_free_plan(NULL, &plan);
        tl_free_plan(NULL, &same);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld calls for ranges, %ld forwards again, %ld runs of whole calls alone\n", ranges, recomputes, uncut);
    assert_true(is_thinned() || (ranges > 100 && recomputes > 10));
}

#define CHAIN(count) \
    "tlg 1\nnode 0 x input fwd=0 bwd=0 out=" #count " needs=none in=-\n" \
    "node 1 s start fwd=3 bwd=3 out=" #count " needs=none in=0 takes_blocks\n" \
    "node 2 g gelu fwd=3 bwd=3 out=" #count " needs=in in=1 takes_blocks\n" \
    "node 3 n noise fwd=3 bwd=3 out=" #count " needs=none in=2 takes_blocks\n" \
    "node 4 h gelu fwd=3 bwd=3 out=" #count " needs=in in=3 keep takes_blocks\n"

// The schedule that runs `noise` twice: its output is dropped and made again.
static tl_plan twice_plan(void) {
    static const char text[] = "F 1\nF 2\nF 3\nF 4\nD 3\nF 3\nD 2\nB 4\nD 3\nB 3\nB 2\nD 1\nB 1\n";
    tl_plan plan;
    tl_env env = silent_env();
    if (tl_parse_schedule(&env, text, sizeof text - 1, &plan)) fail_msg("%s", env.error.text);
    return plan;
}

// -- what a range is --

// Sizes by hand: 100 floats of 16 to a binding of 70 bytes, whose offsets are multiples of 32.
static void lengths_are_what_fits_and_is_aligned(void **state) {
    static elements e;
    tl_graph graph = graph_of(CHAIN(400));
    tl_run_step step;
    int32_t done = 0, k;
    (void)state;
    open_elements(&e, &graph, BACKEND_CHECKED, 32, 70);
    init_elements(&e);
    if (tl_start_pass(e.run, 0)) fail_msg("%s", e.env.error.text);
    for (k = 0; k < 7; k++) {
        assert_int_equal(tl_next_step(e.run, &step, &done), TL_OK);
        assert_true(step.index == 0 && step.is_compute && step.call.total == 100);
        assert_int_equal(step.call.first, 16 * k);
        assert_int_equal(step.call.count, k < 6 ? 16 : 4);
        assert_int_equal(step.access_count, 2);
        assert_int_equal(step.accesses[0].range.bytes, 4 * step.call.count);
        assert_true(step.accesses[0].range.offset % 32 == 0 && !step.accesses[0].writes && step.accesses[1].writes);
        assert_int_equal(tl_next_step(e.run, &step, &done), TL_ERROR_INVALID_ARG);  // not carried out yet
        if (!strstr(e.env.error.text, "step 0 (F s): ")) fail_msg("%s", e.env.error.text);
        assert_int_equal(tl_run_step_kernel(e.run, &step), TL_OK);
        assert_int_equal(tl_run_step_kernel(e.run, &step), TL_ERROR_STALE);
    }
    assert_int_equal(tl_next_step(e.run, &step, &done), TL_OK);
    assert_true(step.index == 1 && step.call.first == 0);
    close_elements(&e);
    tl_free_graph(NULL, &graph);
}

// Of 3 ns, a call for one of seven parts takes one: two of the 56 calls of a pass are a submit of 2 ns.
static void a_call_for_some_elements_takes_their_part_of_a_submit(void **state) {
    static elements e;
    tl_graph graph = graph_of(CHAIN(400));
    tl_device device;
    tl_run_report report;
    (void)state;
    memset(&device, 0, sizeof device);
    open_elements(&e, &graph, 0, 32, 70);
    e.desc.device = &device;
    e.desc.submit_ns = 2;
    init_elements(&e);
    run_elements(&e, WAY_RUN);
    tl_measure_run(e.run, &report);
    assert_int_equal(report.kernel_count, 56);
    assert_int_equal(report.longest_submit_ns, 2);
    assert_int_equal(e.spy.calls[SPY_SUBMIT], 28);
    close_elements(&e);
    tl_free_graph(NULL, &graph);
}

// A step of an earlier range is stale, though its index is the same.
static void an_earlier_range_is_stale(void **state) {
    static elements e;
    tl_graph graph = graph_of(CHAIN(400));
    tl_run_step first, step;
    int32_t done = 0;
    (void)state;
    open_elements(&e, &graph, 0, 32, 70);
    init_elements(&e);
    if (tl_start_pass(e.run, 0) || tl_next_step(e.run, &first, &done) || tl_run_step_kernel(e.run, &first) ||
        tl_next_step(e.run, &step, &done)) fail_msg("%s", e.env.error.text);
    assert_int_equal(step.index, first.index);
    assert_int_equal(tl_run_step_kernel(e.run, &first), TL_ERROR_STALE);
    assert_int_equal(tl_map_step(e.run, &first), TL_ERROR_STALE);
    assert_int_equal(tl_finish_step(e.run, &first), TL_ERROR_STALE);
    assert_int_equal(tl_run_step_kernel(e.run, &step), TL_OK);
    assert_int_equal(tl_reset_run(e.run), TL_OK);  // in the middle of a step
    e.next = 0;
    run_elements(&e, WAY_RUN);
    close_elements(&e);
    tl_free_graph(NULL, &graph);
}

#ifndef TL_NO_PRECISION
// Elements of 1 and of 4 bytes: both parts begin at multiples of the alignment.
static void elements_of_other_sizes_are_cut_with_the_output(void **state) {
    static elements e;
    static outcome expected, got;
    static const uint8_t formats[] = { TL_FORMAT_F32, TL_FORMAT_I8, TL_FORMAT_F32, TL_FORMAT_F32 };
    tl_graph graph = graph_of(
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1200 needs=none in=-\n"
        "node 1 m input fwd=0 bwd=0 out=300 needs=none in=-\n"
        "node 2 s start fwd=3 bwd=3 out=1200 needs=none in=0 takes_blocks\n"
        "node 3 y mask fwd=3 bwd=3 out=1200 needs=in1 in=2,1 keep takes_blocks\n");
    int pass;
    (void)state;
    for (pass = 0; pass < 2; pass++) {
        open_elements(&e, &graph, BACKEND_CHECKED, 16, pass ? 220 : 0);
        e.desc.formats = formats;
        e.desc.kernel_precisions = 1u << TL_PRECISION_MIXED;
        init_elements(&e);
        run_elements(&e, WAY_RUN);
        take_outcome(&e, pass ? &got : &expected);
        assert_int_equal(e.calls, pass ? 26 : 4);  // 55 fit: 52 are aligned in f32, 48 in i8, too
        close_elements(&e);
    }
    assert_memory_equal(&expected, &got, sizeof got);
    tl_free_graph(NULL, &graph);
}
#endif

// The kernels of half precision read f32 graph inputs: as many elements, twice the bytes.
static tl_result halve(const tl_kernel_call *call, void *user) {
    long *calls = (long *)user;
    assert_true(call->count <= (call->node == 1 ? 32 : 64) && call->total == 100);
    assert_int_equal(call->inputs[0].range.bytes, (call->node == 1 ? 4 : 2) * call->count);
    assert_int_equal(call->outputs[0].range.bytes, 2 * call->count);
    ++*calls;
    return TL_OK;
}

static void graph_inputs_are_f32_in_every_precision(void **state) {
    static elements e;
    tl_graph graph = graph_of(CHAIN(400));
    tl_strategy strategy = tl_strategy_inference();
    tl_kernel kernels[3];
    long calls = 0;
    int i;
    (void)state;
    open_elements(&e, &graph, 0, 64, 128);
    for (i = 0; i < 3; i++) {
        kernels[i].op = i == 0 ? "start" : i == 1 ? "gelu" : "noise";
        kernels[i].forward = kernels[i].backward = halve;
        kernels[i].user = &calls;
    }
    strategy.precision = TL_PRECISION_HALF;
    strategy.mode = TL_MODE_EAGER;
    strategy.memory = TL_MEMORY_STANDARD;
    strategy.enable_fusion = 0;
    strategy.parallelism = tl_parallelism_none();
    e.desc.strategy = &strategy;
    e.desc.kernels = kernels;
    e.desc.kernel_count = 3;
    e.desc.kernel_precisions = 1u << TL_PRECISION_HALF;
    if (tl_init_run(&e.env, &e.desc, &e.run) || tl_run_plan(e.run)) fail_msg("%s", e.env.error.text);
    assert_int_equal(calls, 4 + 3 * 2);  // 32 elements of 4 bytes at a time, 64 of 2
    close_elements(&e);
    tl_free_graph(NULL, &graph);
}

// -- random state, once a step --

static void random_state_is_kept_once_a_step(void **state) {
    static elements e;
    static outcome expected, got;
    tl_graph graph = graph_of(CHAIN(400));
    tl_plan plan = twice_plan();
    int pass;
    (void)state;
    for (pass = 0; pass < 2; pass++) {
        open_elements(&e, &graph, 0, 16, pass ? 64 : 0);
        e.desc.plan = &plan;
        init_elements(&e);
        run_elements(&e, WAY_RUN);
        take_outcome(&e, pass ? &got : &expected);
        assert_int_equal(e.moments[TL_RANDOM_RECORD], 4);
        assert_int_equal(e.moments[TL_RANDOM_REPLAY], 1);
        assert_int_equal(e.moments[TL_RANDOM_RESUME], 1);
        assert_int_equal(e.events, plan.step_count);
        close_elements(&e);
    }
    assert_memory_equal(&expected, &got, sizeof got);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// However a step ends in the middle, its present random state is put back, and the pass can be run again.
static void a_step_given_up_resumes_the_random_state(void **state) {
    static elements e;
    static outcome expected, got;
    tl_graph graph = graph_of(CHAIN(400));
    tl_plan plan = twice_plan();
    tl_run_step step;
    int32_t done = 0;
    uint64_t before;
    int way_out, calls;
    (void)state;
    open_elements(&e, &graph, 0, 16, 64);
    e.desc.plan = &plan;
    init_elements(&e);
    run_elements(&e, WAY_RUN);
    take_outcome(&e, &expected);
    for (way_out = 0; way_out < 2; way_out++) {
        e.next = 0;
        e.stream = 5;
        if (tl_start_pass(e.run, 0)) fail_msg("%s", e.env.error.text);
        for (calls = 0; calls < 4 * 7 + 3; calls++) {  // up to the third range of the second forward of node 3
            do {
                if (tl_next_step(e.run, &step, &done)) fail_msg("%s", e.env.error.text);
            } while (!step.is_compute);
            if (tl_run_step_kernel(e.run, &step)) fail_msg("%s", e.env.error.text);
        }
        assert_true(step.call.node == 3 && step.call.recompute && step.call.first > 0);
        before = e.present;
        if (way_out) assert_int_equal(tl_reset_run(e.run), TL_OK);
        e.fail_at = e.calls;
        if (!way_out) assert_int_equal(tl_next_step(e.run, &step, &done), TL_OK);
        if (!way_out) assert_int_equal(tl_run_step_kernel(e.run, &step), TL_ERROR_KERNEL);
        assert_int_equal(e.stream, before);
        assert_int_equal(e.moments[TL_RANDOM_REPLAY], e.moments[TL_RANDOM_RESUME]);
        e.fail_at = -1;
        e.next = 0;
        e.stream = 5;
        run_elements(&e, WAY_RUN);
        take_outcome(&e, &got);
        assert_memory_equal(&expected, &got, sizeof got);
    }
    close_elements(&e);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- refusals --

static void what_no_range_helps_is_refused_at_init(void **state) {
    static const struct { const char *node; uint64_t alignment, binding; const char *text; } cases[] = {
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 takes_blocks", 16, 64, NULL },
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 takes_blocks", 64, 64, NULL },
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 fwork=64 bwork=63 takes_blocks", 16, 64, NULL },
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 keep", 16, 64,
          "backend: its kernels can be given at most 64 bytes at a time, and node 2 (y) has 400 and is not cut: say takes_blocks, or rows" },
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 fwork=401 takes_blocks", 16, 64,
          "backend: its kernels can be given at most 64 bytes at a time, and node 2 (y) has 401 that cannot be cut" },
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 bwork=401 takes_blocks", 16, 64, "node 2 (y) has 401" },
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 saved=68", 16, 64, "node 2 (y) has 400" },
        { "node 2 y row fwd=1 bwd=1 out=64 needs=none in=1 saved=64 swork=401", 16, 64, "node 2 (y) has 401" },
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 saved=64 swork=64", 16, 64, "node 2 (y) has 400" },
        { "node 2 y gelu fwd=1 bwd=1 out=400 needs=in in=1 takes_blocks", 128, 127, "node 1 (s) has 400" },
        { "node 2 y row fwd=1 bwd=1 out=20 needs=none in=1", 16, 64,  // what it reads, not what it makes
          "node 2 (y) has 400" }
    };
    int i;
    (void)state;
    for (i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        static elements e;
        char text[512];
        tl_graph graph;
        tl_result result;
        snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=400 needs=none in=-\n"
                 "node 1 s start fwd=3 bwd=3 out=400 needs=none in=0 takes_blocks\n%s\n", cases[i].node);
        graph = graph_of(text);
        open_elements(&e, &graph, 0, cases[i].alignment, cases[i].binding);
        result = tl_init_run(&e.env, &e.desc, &e.run);
        if (cases[i].text) {
            assert_int_equal(result, TL_ERROR_UNSUPPORTED);
            assert_null(e.run);
            if (!strstr(e.env.error.text, cases[i].text)) fail_msg("%s", e.env.error.text);
            assert_int_equal(e.env.error.values[0], cases[i].binding);
        } else if (result) {
            fail_msg("%s", e.env.error.text);
        }
        close_elements(&e);
        tl_free_graph(NULL, &graph);
    }
}

// Any call of the backend may fail in any range: the pass ends with an error, and the next one is right.
static void failing_backends_are_survived_in_every_range(void **state) {
    static const spy_function functions[] = { SPY_ORDER, SPY_MAP, SPY_UNMAP, SPY_FILL, SPY_CLAIM, SPY_RELEASE };
    static elements e;
    static outcome expected, got;
    tl_graph graph = graph_of(CHAIN(400));
    long failed = 0, at;
    int f;
    (void)state;
    open_elements(&e, &graph, 0, 16, 100);
    init_elements(&e);
    run_elements(&e, WAY_RUN);
    take_outcome(&e, &expected);
    for (f = 0; f < 6; f++) {
        for (at = 0;; at += 1 + at / 20) {
            tl_result result;
            e.spy.fail_function = (int)functions[f];
            e.spy.fail_at = e.spy.calls[functions[f]] + at;
            e.stream = 5;
            e.next = 0;
            result = tl_run_plan(e.run);
            e.spy.fail_function = -1;
            if (!result) break;
            failed++;
            assert_true(e.env.error.text[0]);
            e.stream = 5;
            e.next = 0;
            run_elements(&e, WAY_RUN);
            take_outcome(&e, &got);
            assert_memory_equal(&expected.gradients, &got.gradients, sizeof got.gradients);
        }
    }
    assert_true(failed > 30);
    close_elements(&e);
    tl_free_graph(NULL, &graph);
}

static void every_allocation_may_fail(void **state) {
    tl_graph graph = graph_of(CHAIN(400));
    long at, refused = 0;
    (void)state;
    for (at = 0;; at++) {
        static elements e;
        failing_alloc f = { 0 };
        tl_result result;
        open_elements(&e, &graph, 0, 16, 100);
        e.env = failing_env(&f, at);
        result = tl_init_run(&e.env, &e.desc, &e.run);
        if (!result && tl_start_pass(e.run, 0) == TL_OK) {
            tl_run_step step;
            int32_t done = 0;
            while (!result && !done) {
                result = tl_next_step(e.run, &step, &done);
                if (!result && !done && step.is_compute) result = tl_run_step_kernel(e.run, &step);
            }
        }
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        refused += result != TL_OK;
        close_elements(&e);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(refused > 10);
    tl_free_graph(NULL, &graph);
}

// -- bytes that make no whole element --

// What the calls of a node have covered.
typedef struct counted {
    uint64_t bytes, size;               // of each output; of an element
    uint64_t covered[2], elements[2];   // forward, backward: bytes of ranges, elements of counts
    long     cut;
} counted;

static tl_result count_call(const tl_kernel_call *call, void *user) {
    counted *c = (counted *)user;
    int back = call->kind == TL_STEP_BACKWARD;
    const tl_operand *made = back ? &call->input_grads[0] : &call->outputs[0];
    uint64_t i;
    assert_true(call->total == c->bytes / c->size);
    assert_true(call->first <= call->total && call->count <= call->total - call->first);
    assert_true(call->first * c->size == c->covered[back]);
    assert_true(call->count * c->size <= call->inputs[0].range.bytes || back);
    if (made->range.bytes) assert_true(call->count * c->size <= made->range.bytes);
    for (i = 0; made->host && i < call->count * c->size; i++) ((unsigned char *)made->host)[i] += 1;    // no byte too far
    c->covered[back] += back ? call->output_grads[0].range.bytes : made->range.bytes;
    c->elements[back] += call->count;
    c->cut += call->count < call->total;
    return TL_OK;
}

// Kernels that go by count write no byte behind an operand, those that go by ranges are given every byte once.
static void incomplete_elements_are_in_no_count(void **state) {
    tl_random random = {8};
    int turn;
    long cut = 0, incomplete = 0;
    (void)state;
    for (turn = 0; turn < 400; turn++) {
        static spy spied;
        tl_env env = silent_env(), backend_env = silent_env();
        counted c = {0};
        tl_run_desc desc = {0};
        tl_backend backend = spy_open(&backend_env, BACKEND_CHECKED, 3, UINT64_C(1) << tl_next_random_below(&random, 6), &spied);
        tl_op ops[4];
        tl_run *run;
        int i, blocks = turn % 3 > 0;
        c.bytes = turn < 140 ? (uint64_t)(turn / 2 + 1) : 1 + tl_next_random_below(&random, 700);
        c.size = 4;
        memset(ops, 0, sizeof ops);
        for (i = 0; i < 4; i++) {
            ops[i].output_bytes = c.bytes;
            if (!i) { ops[i].kind = "input"; continue; }
            ops[i].forward = ops[i].backward = count_call;
            ops[i].user = &c;
            ops[i].needs = "none";
            ops[i].takes_blocks = blocks;
        }
        if (blocks) spied.binding = 64 + tl_next_random_below(&random, 100);
        desc.backend = &backend;
        if (tl_init_op_run(&env, &desc, ops, 4, &run)) fail_msg("%s", env.error.text);
        if (tl_start_pass(run, 0)) fail_msg("%s", env.error.text);
        for (;;) {
            tl_run_step step;
            int32_t done;
            if (tl_next_step(run, &step, &done)) fail_msg("turn %d, %d bytes: %s", turn, (int)c.bytes, env.error.text);
            if (done) break;
            if (!step.is_compute) continue;
            i = step.call.kind == TL_STEP_BACKWARD;
            if (c.covered[i] == c.bytes) c.covered[i] = c.elements[i] = 0;    // of the node before
            if (tl_run_step_kernel(run, &step)) fail_msg("turn %d, %d bytes: %s", turn, (int)c.bytes, env.error.text);
            if (c.covered[i] == c.bytes) assert_int_equal(c.elements[i], c.bytes / c.size);
            assert_true(c.covered[i] <= c.bytes);
        }
        assert_true(c.covered[0] == c.bytes && c.covered[1] == c.bytes);
        cut += c.cut > 0;
        incomplete += c.bytes % c.size != 0;
        tl_free_run(run);
        spy_close(&backend_env, &spied);
    }
    assert_true(cut > 50 && incomplete > 200);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_compute_what_whole_calls_do),
        cmocka_unit_test(lengths_are_what_fits_and_is_aligned),
        cmocka_unit_test(a_call_for_some_elements_takes_their_part_of_a_submit),
        cmocka_unit_test(an_earlier_range_is_stale),
#ifndef TL_NO_PRECISION
        cmocka_unit_test(elements_of_other_sizes_are_cut_with_the_output),
#endif
        cmocka_unit_test(graph_inputs_are_f32_in_every_precision),
        cmocka_unit_test(random_state_is_kept_once_a_step),
        cmocka_unit_test(a_step_given_up_resumes_the_random_state),
        cmocka_unit_test(what_no_range_helps_is_refused_at_init),
        cmocka_unit_test(failing_backends_are_survived_in_every_range),
        cmocka_unit_test(incomplete_elements_are_in_no_count),
        cmocka_unit_test(every_allocation_may_fail),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
