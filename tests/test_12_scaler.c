// [12] RUN: a loss scaler where the graph owns its weights. The run finds an overflow before the first update, skips all of them
// and halves the scale: weights, moments and scales are those of the same training with its optimizer behind the pass.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/run_support.h"

enum { WIDTH = 4, ROWS = 3, FLOATS = WIDTH * ROWS, WEIGHTS = WIDTH * WIDTH, LAYERS = 4, STEPS = 24, MOST_PARTS = 4 };

// The order of the states, or no states: weights of the caller, who updates them behind the pass.
typedef enum place { AT_END, IN_FRONT_OF_READERS, OUTSIDE } place;

typedef struct masters { float w[LAYERS][WEIGHTS], m[LAYERS][WEIGHTS], g[LAYERS][WEIGHTS]; } masters;

typedef struct job {
    place       where;
    masters     of;               // of the caller; where the graph owns its weights they are read into it
    spy         spy;
    tl_env      env, backend_env;
    tl_backend  backend;
    tl_graph    graph;
    uint8_t     formats[3 * LAYERS + LAYERS + 4];
    int32_t     state_of[LAYERS], input;
    tl_kernel   kernels[4];
    tl_strategy strategy;
    tl_loss_scaler scaler;
    tl_run_desc desc;
    tl_run     *run;
    int         parts, step;      // micro-batches a step; steps ended
    int         updates;          // kernels of updates called
    int         precision_bits;   // 16: tensors between layers are f16; 32
    int         clips;            // a node below the states divides all gradients, in the place of the updates
    int         has_prefix;       // a node without a backward behind the input
    int         rehearses;        // calls are those of a rehearsal, too
    int         part;             // added to the numbers of micro-batches, where the caller counts them
    int         fails_at;         // step in whose first update a kernel fails, after it has changed nothing; -1 = none
    int         waits;            // calls of map that the backend cannot answer yet
} job;

// -- kernels: tensors between layers are f16, weights f32 --

static void take(float *to, tl_operand from) {
    uint64_t i;
    if (from.format == TL_FORMAT_F32) { memcpy(to, from.host, (size_t)from.range.bytes); return; }
    for (i = 0; i < from.range.bytes / 2; i++) tl_expand_bytes(TL_CODEC_F16, &to[i], (const char *)from.host + 2 * i, 4);
}

static void put(tl_operand to, const float *from) {
    if (to.format == TL_FORMAT_F32) memcpy(to.host, from, (size_t)to.range.bytes);
    else tl_compress_bytes(TL_CODEC_F16, to.host, from, to.range.bytes * 2);
}

// What goes wrong in a step, whatever the scale: an infinity or NaN in the last element of one layer's gradient.
static float poison_of(const job *j, int32_t layer, int32_t micro_batch) {
    int is_here = j->step % 5 == 3 && j->step / 5 % LAYERS == layer && micro_batch + j->part == j->step % j->parts;
    return !is_here ? 0.0f : j->step % 2 ? INFINITY : NAN;
}

static int32_t layer_of(const tl_kernel_call *call) { return tl_name_node(call->graph, call->node)[1] - '0'; }

static tl_result dense_forward(const tl_kernel_call *call, void *user) {
    job *j = (job *)user;
    const float *w = j->where == OUTSIDE ? j->of.w[layer_of(call)] : (const float *)call->inputs[1].host;
    float x[FLOATS], y[FLOATS];
    int r, i, o;
    take(x, call->inputs[0]);
    for (r = 0; r < ROWS; r++)
        for (o = 0; o < WIDTH; o++) {
            float sum = 0;
            for (i = 0; i < WIDTH; i++) sum += x[r * WIDTH + i] * w[i * WIDTH + o];
            y[r * WIDTH + o] = sum;
        }
    put(call->outputs[0], y);
    return TL_OK;
}

static tl_result dense_backward(const tl_kernel_call *call, void *user) {
    job *j = (job *)user;
    int32_t layer = layer_of(call);
    int is_outside = j->where == OUTSIDE, has_dx = call->input_grads[0].range.bytes > 0;
    const float *w = is_outside ? j->of.w[layer] : (const float *)call->inputs[1].host;
    float *dw = is_outside ? j->of.g[layer] : (float *)call->input_grads[1].host;
    float x[FLOATS], dy[FLOATS], dx[FLOATS];
    int r, i, o;
    assert_true(call->loss_scale == j->scaler.scale || (j->rehearses && call->loss_scale == 1.0f));
    take(x, call->inputs[0]);
    take(dy, call->output_grads[0]);
    if (has_dx) take(dx, call->input_grads[0]);
    for (r = 0; r < ROWS; r++)
        for (o = 0; o < WIDTH; o++)
            for (i = 0; i < WIDTH; i++) {
                if (has_dx) dx[r * WIDTH + i] += dy[r * WIDTH + o] * w[i * WIDTH + o];
                dw[i * WIDTH + o] += x[r * WIDTH + i] * dy[r * WIDTH + o];
            }
    dw[WEIGHTS - 1] += poison_of(j, layer, call->micro_batch);
    if (has_dx) put(call->input_grads[0], dx);
    return TL_OK;
}

static tl_result square_forward(const tl_kernel_call *call, void *user) {
    float x[FLOATS];
    int i;
    (void)user;
    take(x, call->inputs[0]);
    for (i = 0; i < FLOATS; i++) x[i] = 0.5f * x[i] * x[i];
    put(call->outputs[0], x);
    return TL_OK;
}

static tl_result square_backward(const tl_kernel_call *call, void *user) {
    float x[FLOATS], dy[FLOATS], dx[FLOATS];
    int i;
    (void)user;
    take(x, call->inputs[0]);
    take(dy, call->output_grads[0]);
    take(dx, call->input_grads[0]);
    for (i = 0; i < FLOATS; i++) dx[i] += x[i] * dy[i];
    put(call->input_grads[0], dx);
    return TL_OK;
}

static void update(float *w, float *m, const float *g, float scale) {
    int i;
    for (i = 0; i < WEIGHTS; i++) {
        m[i] = 0.9f * m[i] + g[i] / scale;
        w[i] -= 0.02f * m[i];
    }
}

static tl_result momentum(const tl_kernel_call *call, void *user) {
    job *j = (job *)user;
    if (j->fails_at == j->step) { j->fails_at = -1; return TL_ERROR_IO; }
    j->updates++;
    update((float *)call->outputs[0].host, (float *)call->outputs[1].host, (const float *)call->output_grads[0].host,
           j->clips ? 1.0f : call->loss_scale);
    return TL_OK;
}

// Below the states: all gradients are complete.
static tl_result clip_forward(const tl_kernel_call *call, void *user) {
    (void)user;
    memset(call->outputs[0].host, 0, (size_t)call->outputs[0].range.bytes);
    return TL_OK;
}

static tl_result clip_backward(const tl_kernel_call *call, void *user) {
    const job *j = (const job *)user;
    int32_t layer;
    int i;
    for (layer = 0; layer < LAYERS && call->micro_batch == j->parts - 1; layer++)
        for (i = 0; i < WEIGHTS; i++) ((float *)call->input_grads[layer].host)[i] /= call->loss_scale;
    return TL_OK;
}

// -- the net: inputs, layers, a loss --

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    job *j = (job *)user;
    tl_random random = { 31 + (uint64_t)(j->step * MOST_PARTS + micro_batch + j->part) };
    float x[FLOATS];
    uint16_t half[FLOATS];
    tl_tensor input = { 0, 0 };
    int i;
    input.node = j->input;
    for (i = 0; i < FLOATS; i++) x[i] = (float)tl_next_random_below(&random, 1000) / 1000.0f - 0.5f;
    tl_compress_bytes(TL_CODEC_F16, half, x, sizeof x);
    return tl_write_tensor(run, input, j->precision_bits == 16 ? (const void *)half : x, j->precision_bits == 16 ? sizeof half : sizeof x);
}

static void add_state(job *j, int layer, int holds) {
    static const uint64_t moments[] = { WEIGHTS * 4 };
    char name[] = "w0";
    tl_state_desc state;
    tl_tensor weight;
    memset(&state, 0, sizeof state);
    name[1] = (char)('0' + layer);
    state.name = name;
    state.op = "momentum";
    state.bytes = WEIGHTS * 4;
    state.moment_bytes = moments;
    state.moment_count = 1;
    state.kind = holds ? TL_STATE_HELD : TL_STATE_TRAINED;
    if (tl_add_state(&j->env, &j->graph, &state, &weight)) fail_msg("%s", j->env.error.text);
    j->state_of[layer] = weight.node;
}

static tl_tensor add_node(job *j, const char *name, const char *op, const tl_tensor *inputs, int32_t input_count, const char *needs) {
    uint64_t bytes = FLOATS * (uint64_t)j->precision_bits / 8;
    tl_node_desc node;
    tl_tensor out = { 0, 0 };
    memset(&node, 0, sizeof node);
    node.name = name;
    node.op = op;
    node.inputs = inputs;
    node.input_count = input_count;
    node.output_bytes = &bytes;
    node.output_count = 1;
    node.needs = needs;
    node.fwd_cost = node.bwd_cost = inputs ? 10 : 0;
    if (tl_add_node(&j->env, &j->graph, &node, &out.node)) fail_msg("%s", j->env.error.text);
    return out;
}

static void build(job *j, int holds) {
    tl_tensor reads[2] = { { 0, 0 }, { 0, 0 } };
    int32_t layer, i;
    tl_init_graph(&j->graph);
    for (layer = 0; layer < LAYERS && j->where == AT_END; layer++) add_state(j, layer, holds);
    if (j->clips) {
        tl_tensor all[LAYERS];
        memset(all, 0, sizeof all);
        for (layer = 0; layer < LAYERS; layer++) all[layer].node = j->state_of[layer];
        (void)add_node(j, "clip", "clip", all, LAYERS, NULL);
    }
    reads[0] = add_node(j, "x", "input", NULL, 0, NULL);
    j->input = reads[0].node;
    if (j->has_prefix) {
        reads[0] = add_node(j, "prefix", "square", reads, 1, NULL);
        ((tl_node *)(uintptr_t)j->graph.nodes)[reads[0].node].has_grad = 0;
        ((tl_node *)(uintptr_t)j->graph.nodes)[reads[0].node].bwd_cost = 0;
    }
    for (layer = 0; layer < LAYERS; layer++) {
        char name[] = "d0";
        name[1] = (char)('0' + layer);
        if (j->where == IN_FRONT_OF_READERS) add_state(j, layer, holds);
        reads[1].node = j->where == OUTSIDE ? 0 : j->state_of[layer];
        reads[0] = add_node(j, name, "dense", reads, j->where == OUTSIDE ? 1 : 2, "in");
    }
    (void)add_node(j, "loss", "square", reads, 1, "in");
    for (i = 0; i < j->graph.tensor_count; i++)
        j->formats[i] = (uint8_t)(j->precision_bits == 32 || j->graph.nodes[j->graph.outputs[i].node].state ? TL_FORMAT_F32 : TL_FORMAT_F16);
}

// A backend that cannot wait: every second map is answered TL_NOT_READY.
static tl_result (*plain_map)(void *self, tl_range range, tl_map_mode mode, void **host);
static int shy_turn, is_shy;

static tl_result shy_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    if (is_shy && mode == TL_MAP_READ && shy_turn++ % 2 == 0) { *host = NULL; return TL_NOT_READY; }
    return plain_map(self, range, mode, host);
}

enum { CLIPS = 1, HAS_PREFIX = 2 };

static void open_net(job *j, place where, int parts, int precision_bits, int kind, int flags) {
    tl_random random = { 5 };
    int layer, i;
    memset(j, 0, sizeof *j);
    j->clips = flags & CLIPS;
    j->has_prefix = flags & HAS_PREFIX;
    j->where = where;
    j->parts = parts;
    j->precision_bits = precision_bits;
    j->fails_at = -1;
    for (layer = 0; layer < LAYERS; layer++)
        for (i = 0; i < WEIGHTS; i++) j->of.w[layer][i] = (float)tl_next_random_below(&random, 1000) / 900.0f - 0.4f;
    build(j, parts > 1);
    j->backend = spy_open(&j->backend_env, kind, 9, 4, &j->spy);
    plain_map = j->backend.map;
    j->backend.map = shy_map;
    j->kernels[0].op = "dense";     j->kernels[0].forward = dense_forward;  j->kernels[0].backward = dense_backward;
    j->kernels[1].op = "square";    j->kernels[1].forward = square_forward; j->kernels[1].backward = square_backward;
    j->kernels[2].op = "momentum";  j->kernels[2].backward = momentum;
    j->kernels[3].op = "clip";      j->kernels[3].forward = clip_forward;   j->kernels[3].backward = clip_backward;
    for (i = 0; i < 4; i++) j->kernels[i].user = j;
    j->strategy = tl_with_memory(tl_with_mode(tl_with_precision(tl_strategy_new(), precision_bits == 16 ? TL_PRECISION_MIXED : TL_PRECISION_SINGLE),
                                              TL_MODE_LAZY), TL_MEMORY_POOLED);
    j->strategy = tl_with_gradient(j->strategy, tl_gradient_full());
    j->scaler.growth_interval = 3;
    j->desc.graph = &j->graph;
    j->desc.backend = &j->backend;
    j->desc.kernels = j->kernels;
    j->desc.kernel_count = 4;
    j->desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    j->desc.strategy = &j->strategy;
    j->desc.load = load;
    j->desc.load_user = j;
    j->desc.repeat_count = parts;
    j->desc.loss_scaler = &j->scaler;
    j->desc.work_limit = 200000;
    if (precision_bits == 16) j->desc.formats = j->formats;
}

static void open_job(job *j, place where, int parts, int precision_bits, int kind) {
    open_net(j, where, parts, precision_bits, kind, 0);
}

static void move_states(job *j, int to_run) {
    int32_t layer;
    for (layer = 0; layer < LAYERS && j->where != OUTSIDE; layer++) {
        tl_tensor t = { 0, 0 };
        t.node = j->state_of[layer];
        for (t.output = 0; t.output < 2; t.output++) {
            float *of = t.output ? j->of.m[layer] : j->of.w[layer];
            tl_result result = to_run ? tl_write_tensor(j->run, t, of, WEIGHTS * 4) : tl_read_tensor(j->run, t, of, WEIGHTS * 4);
            if (result) fail_msg("%s", j->env.error.text);
        }
    }
}

static void start_job(job *j) {
    if (tl_init_run(&j->env, &j->desc, &j->run)) fail_msg("%s", j->env.error.text);
    move_states(j, 1);
}

static void close_job(job *j) {
    tl_free_run(j->run);
    j->run = NULL;
    spy_close(&j->backend_env, &j->spy);
    tl_free_graph(&j->env, &j->graph);
}

// -- the same training by the caller's hand --

// What a training leaves behind each step: the scaler, and all weights and moments.
typedef struct trail { tl_loss_scaler scaler[STEPS]; masters of[STEPS]; int skipped; } trail;

static void follow_hand(int parts, int precision_bits, trail *t) {
    static job j;
    int layer, applies;
    open_job(&j, OUTSIDE, parts, precision_bits, 0);
    start_job(&j);
    t->skipped = 0;
    for (; j.step < STEPS; j.step++) {
        float used;
        int overflows = 0;
        memset(j.of.g, 0, sizeof j.of.g);
        if (tl_run_plan(j.run)) fail_msg("%s", j.env.error.text);
        used = j.scaler.scale;
        for (layer = 0; layer < LAYERS; layer++) overflows |= tl_has_overflow(j.of.g[layer], WEIGHTS);
        applies = tl_next_loss_scale(&j.scaler, overflows);
        for (layer = 0; layer < LAYERS && applies; layer++) update(j.of.w[layer], j.of.m[layer], j.of.g[layer], used);
        t->skipped += !applies;
        t->scaler[j.step] = j.scaler;
        t->of[j.step] = j.of;
    }
    close_job(&j);
}

static void check_step(job *j, const trail *t, const char *what) {
    const tl_loss_scaler *want = &t->scaler[j->step];
    const masters *of = &t->of[j->step];
    tl_run_report report;
    int skips = want->skipped_count > (j->step ? t->scaler[j->step - 1].skipped_count : 0);
    tl_measure_run(j->run, &report);
    if (j->scaler.scale != want->scale || j->scaler.clean_count != want->clean_count || j->scaler.skipped_count != want->skipped_count)
        fail_msg("%s: step %d: scale %g after %llu skipped, not %g after %llu", what, j->step, (double)j->scaler.scale,
                 (unsigned long long)j->scaler.skipped_count, (double)want->scale, (unsigned long long)want->skipped_count);
    assert_int_equal(report.update_count, skips ? 0 : LAYERS);
    assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
    assert_true(!j->desc.budget_bytes || report.taken_bytes <= j->desc.budget_bytes);
    move_states(j, 0);
    if (memcmp(j->of.w, of->w, sizeof of->w) != 0 || memcmp(j->of.m, of->m, sizeof of->m) != 0)
        fail_msg("%s: step %d: other weights or moments", what, j->step);
}

static void train_beside(job *j, const trail *t, const char *what) {
    for (; j->step < STEPS; j->step++) {
        if (tl_run_plan(j->run)) fail_msg("%s: %s", what, j->env.error.text);
        check_step(j, t, what);
    }
    assert_int_equal(j->updates, (STEPS - t->skipped) * LAYERS);
}

// -- tests --

// Micro-batches, all budgets from keep-all to the least, all backends, one and several steps under way.
static void an_overflow_skips_all_updates_as_by_hand(void **state) {
    static trail t;
    static job j;
    int parts, bits, tight, in_flight, kind;
    (void)state;
    for (bits = 16; bits <= 32; bits += 16)
        for (parts = 1; parts <= MOST_PARTS; parts *= 2) {
            follow_hand(parts, bits, &t);
            assert_true(t.skipped > 4 && t.skipped < STEPS - 4);
            for (tight = 0; tight < 2; tight++)
                for (in_flight = 1; in_flight <= 4; in_flight += 3)
                    for (kind = 0; kind < BACKEND_KINDS; kind++) {
                        char what[80];
                        snprintf(what, sizeof what, "%d bits, %d parts, tight %d, in_flight %d, backend %d", bits, parts, tight, in_flight, kind);
                        open_job(&j, AT_END, parts, bits, kind);
                        j.desc.in_flight = in_flight;
                        if (tight) {
                            j.strategy = tl_with_gradient(j.strategy, tl_gradient_checkpointed(0));
                            j.desc.budget_bytes = 1;
                            assert_int_equal(tl_init_run(&j.env, &j.desc, &j.run), TL_ERROR_INFEASIBLE);
                            j.desc.budget_bytes = j.env.error.values[1];
                        }
                        start_job(&j);
                        train_beside(&j, &t, what);
                        close_job(&j);
                    }
        }
}

static void decisions_made_online_and_other_memories_train_the_same(void **state) {
    static const tl_memory memories[] = { TL_MEMORY_STANDARD, TL_MEMORY_POOLED, TL_MEMORY_MINIMAL_PEAK };
    static trail t;
    static job j;
    int i, k, ran = 0;
    (void)state;
    follow_hand(2, 16, &t);
    for (i = 0; i < 3; i++)
        for (k = 0; k < 2; k++) {
            open_job(&j, AT_END, 2, 16, 0);
            j.strategy = tl_with_memory(tl_with_mode(j.strategy, k ? TL_MODE_LAZY : TL_MODE_EAGER), memories[i]);
            j.strategy = tl_with_gradient(j.strategy, k ? tl_gradient_full() : tl_gradient_checkpointed(0));
            if (tl_init_run(&j.env, &j.desc, &j.run)) {
                assert_int_equal(j.env.error.code, TL_ERROR_UNSUPPORTED);     // not every mode goes with every memory
            } else {
                move_states(&j, 1);
                train_beside(&j, &t, tl_name_memory(memories[i]));
                ran++;
            }
            close_job(&j);
        }
    assert_true(ran >= 4);
}

// The steps of a pass pulled one at a time, up to so many kernels; -1 = all.
static void pull(job *j, int kernels) {
    int32_t done = 0;
    while (!done && kernels) {
        tl_run_step step;
        tl_result result;
        is_shy = j->spy.is_remote;
        result = tl_next_step(j->run, &step, &done);
        is_shy = 0;
        if (result == TL_NOT_READY) { j->waits++; continue; }
        if (!result && !done && step.is_compute) {
            kernels--;
            result = tl_map_step(j->run, &step);
            if (!result) result = tl_run_step_kernel(j->run, &step);
        }
        if (result) fail_msg("%s", j->env.error.text);
    }
}

// Memory that the host does not see is mapped for the look alone, and a backend that cannot wait is asked again for the gradient
// at which it stood.
static void gradients_of_a_remote_backend_are_waited_for(void **state) {
    static trail t;
    static job j;
    (void)state;
    follow_hand(1, 16, &t);
    open_job(&j, AT_END, 1, 16, BACKEND_DEFERRED);
    j.spy.is_remote = 1;
    start_job(&j);
    for (; j.step < STEPS; j.step++) {
        long maps;
        if (load(j.run, 0, &j) || tl_start_pass(j.run, 0)) fail_msg("%s", j.env.error.text);
        j.waits = 0;
        shy_turn = 0;
        maps = j.spy.calls[SPY_MAP];
        pull(&j, -1);
        assert_true(j.waits >= 1 && j.waits <= LAYERS && j.spy.calls[SPY_MAP] > maps);
        check_step(&j, &t, "remote");
    }
    close_job(&j);
}

// Sums of several passes that the caller skips: the one that updates looks at them, and each begins with cleared sums.
static void passes_without_updates_do_not_change_the_scale(void **state) {
    static trail t;
    static job j;
    (void)state;
    follow_hand(2, 16, &t);
    open_job(&j, AT_END, 2, 16, 0);
    j.desc.repeat_count = 1;
    start_job(&j);
    for (; j.step < STEPS; j.step++) {
        for (j.part = 0; j.part < 2; j.part++) {
            tl_loss_scaler before = j.scaler;
            assert_int_equal(tl_skip_updates(j.run, !j.part), TL_OK);
            if (tl_run_plan(j.run)) fail_msg("%s", j.env.error.text);
            if (!j.part && j.step) assert_memory_equal(&before, &j.scaler, sizeof before);
        }
        check_step(&j, &t, "skipped");
    }
    close_job(&j);
}

// A node that clips runs before the look: it may divide the gradients.
static void a_node_that_clips_divides_by_the_scale(void **state) {
    static trail t;
    static job j;
    int parts;
    (void)state;
    for (parts = 1; parts <= 2; parts++) {
        follow_hand(parts, 16, &t);
        open_net(&j, AT_END, parts, 16, 1, CLIPS);
        start_job(&j);
        train_beside(&j, &t, "clips");
        close_job(&j);
    }
}

// With several steps under way the first update waits for the last backward, whose gradient it does not read.
static void the_look_waits_for_steps_under_way(void **state) {
    static trail t;
    static job j;
    tl_run_step step, late;
    tl_result result;
    int32_t done = 0, waited = 0;
    (void)state;
    follow_hand(1, 32, &t);
    open_job(&j, AT_END, 1, 32, 0);
    j.desc.in_flight = 3;
    start_job(&j);
    for (; j.step < 3; j.step++) if (tl_run_plan(j.run)) fail_msg("%s", j.env.error.text);
    assert_true(t.scaler[3].skipped_count == t.scaler[2].skipped_count + 1);    // of the layer whose backward is the last
    if (load(j.run, 0, &j) || tl_start_pass(j.run, 0)) fail_msg("%s", j.env.error.text);
    memset(&late, 0, sizeof late);
    while (!done) {
        result = tl_next_step(j.run, &step, &done);
        if (result == TL_NOT_READY) {
            assert_true(late.is_compute && step.depends_on == late.index);
            assert_int_equal(tl_run_step_kernel(j.run, &late), TL_OK);
            late.is_compute = 0;
            waited++;
            continue;
        }
        if (result) fail_msg("%s", j.env.error.text);
        if (done || !step.is_compute) continue;
        if (step.step.kind == TL_STEP_BACKWARD && step.step.node == j.input + 1) { late = step; continue; }
        if (tl_run_step_kernel(j.run, &step)) fail_msg("%s", j.env.error.text);
    }
    assert_int_equal(waited, 1);
    check_step(&j, &t, "under way");
    close_job(&j);
}

// Passes of a rehearsal are no training steps: their scale is 1, and the scaler stays.
static void rehearsals_do_not_change_the_scale(void **state) {
    static job j;
    tl_rehearsal found;
    tl_rehearsal_desc desc;
    tl_loss_scaler before;
    (void)state;
    open_job(&j, AT_END, 1, 16, 0);
    j.scaler.scale = 8.0f;
    j.rehearses = 1;
    j.fails_at = -1;
    start_job(&j);
    before = j.scaler;
    memset(&desc, 0, sizeof desc);
    if (tl_rehearse_run(j.run, &desc, &found)) fail_msg("%s", j.env.error.text);
    assert_true(j.updates > 0);
    assert_memory_equal(&before, &j.scaler, sizeof before);
    tl_free_rehearsal(&j.env, &found);
    close_job(&j);
}

// -- formats of gradients --

typedef struct bits { unsigned char bytes[8]; int updates; } bits;

static tl_result write_bits(const tl_kernel_call *call, void *user) {
    if (call->kind == TL_STEP_BACKWARD) memcpy(call->input_grads[1].host, ((const bits *)user)->bytes, (size_t)call->input_grads[1].range.bytes);
    return TL_OK;
}

static tl_result count_update(const tl_kernel_call *call, void *user) { (void)call; ((bits *)user)->updates++; return TL_OK; }

// What is no number is told by the format of the weight.
static void overflows_are_known_in_every_format(void **state) {
    static const char text[] = "tlg 2\nstate 0 w count w=8\nnode 1 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                               "node 2 a bits fwd=1 bwd=1 out=8 needs=none in=1,0\nend 3\n";
    typedef struct row { tl_precision precision; tl_format format; int width; uint64_t most, infinity; } row;
    static const row rows[] = {
        { TL_PRECISION_SINGLE, TL_FORMAT_F32, 4, 0x7F7FFFFF, 0x7F800000 }, { TL_PRECISION_HALF, TL_FORMAT_F32, 2, 0x7BFF, 0x7C00 },
        { TL_PRECISION_BF16, TL_FORMAT_F32, 2, 0x7F7F, 0x7F80 },
        { TL_PRECISION_DOUBLE, TL_FORMAT_F32, 8, (uint64_t)0x7FEFFFFF << 32 | 0xFFFFFFFF, (uint64_t)0x7FF00000 << 32 },
        { TL_PRECISION_MIXED, TL_FORMAT_F32, 4, 0xFF7FFFFF, 0xFF800000 }, { TL_PRECISION_MIXED, TL_FORMAT_F16, 2, 0xFBFF, 0xFC00 },
        { TL_PRECISION_MIXED, TL_FORMAT_BF16, 2, 0xFF7F, 0xFF80 },
    };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const row *f = &rows[k];
        uint8_t formats[3] = { (uint8_t)f->format, TL_FORMAT_F32, TL_FORMAT_F32 };
        const uint64_t values[] = { f->most, f->infinity, f->infinity | 1, 0 };
        int at, v;
        for (v = 0; v < 4; v++)
            for (at = 0; at < 8 / f->width; at++) {
                tl_env env;
                tl_cpu_backend_desc cpu_desc;
                tl_backend cpu;
                tl_graph graph;
                tl_kernel kernels[2];
                tl_loss_scaler scaler;
                tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_with_memory(tl_with_mode(tl_strategy_new(), TL_MODE_LAZY), TL_MEMORY_POOLED),
                                                                          tl_gradient_full()), f->precision);
                tl_run_desc desc;
                tl_run *run;
                bits b;
                uint64_t value = values[v];
                int i, overflows = v == 1 || v == 2;
                memset(&env, 0, sizeof env);
                memset(&cpu_desc, 0, sizeof cpu_desc);
                memset(&desc, 0, sizeof desc);
                memset(&scaler, 0, sizeof scaler);
                memset(&b, 0, sizeof b);
                memset(kernels, 0, sizeof kernels);
                for (i = 0; i < f->width; i++) {        // the host's byte order
                    uint16_t one = 1;
                    int is_little = *(unsigned char *)&one;
                    b.bytes[at * f->width + (is_little ? i : f->width - 1 - i)] = (unsigned char)(value >> (8 * i));
                }
                if (tl_init_cpu_backend(&env, &cpu_desc, &cpu) || tl_parse_graph(&env, text, sizeof text - 1, &graph)) fail_msg("%s", env.error.text);
                kernels[0].op = "bits";
                kernels[0].forward = kernels[0].backward = write_bits;
                kernels[1].op = "count";
                kernels[1].backward = count_update;
                kernels[0].user = kernels[1].user = &b;
                desc.graph = &graph;
                desc.backend = &cpu;
                desc.kernels = kernels;
                desc.kernel_count = 2;
                desc.kernel_precisions = 1u << f->precision;
                desc.strategy = &strategy;
                desc.loss_scaler = &scaler;
                if (f->precision == TL_PRECISION_MIXED) desc.formats = formats;
                if (tl_init_run(&env, &desc, &run) || tl_run_plan(run)) fail_msg("row %d: %s", (int)k, env.error.text);
                if (b.updates != !overflows || scaler.skipped_count != (uint64_t)overflows)
                    fail_msg("row %d, value %d at %d: %d updates", (int)k, v, at, b.updates);
                tl_free_run(run);
                tl_free_graph(&env, &graph);
                if (tl_free_cpu_backend(&env, &cpu)) fail_msg("%s", env.error.text);
            }
    }
}

// -- saves --

typedef struct saved { char bytes[16384]; size_t count; } saved;

static tl_result keep(void *user, const char *data, size_t length) {
    saved *s = (saved *)user;
    assert_true(s->count + length <= sizeof s->bytes);
    memcpy(s->bytes + s->count, data, length);
    s->count += length;
    return TL_OK;
}

// A save in mid-pass, in front of the first update or behind it, holds what is known of an overflow.
static void a_save_in_a_pass_knows_of_an_overflow(void **state) {
    static trail t;
    static job j, other;
    static saved s;
    int kernels, at, skipped = 0;
    (void)state;
    follow_hand(1, 16, &t);
    for (at = 0; at < 8; at++)
        for (kernels = 1; kernels <= 3 * LAYERS + 2; kernels++) {
            tl_sink sink;
            int skips = t.scaler[at].skipped_count > (at ? t.scaler[at - 1].skipped_count : 0);
            memset(&sink, 0, sizeof sink);
            s.count = 0;
            sink.write = keep;
            sink.user = &s;
            open_job(&j, AT_END, 1, 16, 0);
            start_job(&j);
            for (; j.step < at; j.step++) if (tl_run_plan(j.run)) fail_msg("%s", j.env.error.text);
            if (load(j.run, 0, &j) || tl_start_pass(j.run, 0)) fail_msg("%s", j.env.error.text);
            if (skips && kernels > 2 * LAYERS + 2) {        // no kernel is called behind these: steps
                tl_run_step step;
                int32_t done = 0, i;
                pull(&j, 2 * LAYERS + 2);
                for (i = 2 * LAYERS + 2; i < kernels; i++) assert_int_equal(tl_next_step(j.run, &step, &done), TL_OK);
                assert_true(!done);
                skipped++;
            } else pull(&j, kernels);
            assert_int_equal(tl_save_run(j.run, sink), TL_OK);
            open_job(&other, AT_END, 1, 16, 1);
            other.step = at;
            start_job(&other);
            if (tl_load_run(other.run, s.bytes, s.count)) fail_msg("%s", other.env.error.text);
            pull(&other, -1);
            check_step(&other, &t, "saved");
            other.updates = 0;
            for (other.step++; other.step < at + 6; other.step++) {
                if (tl_run_plan(other.run)) fail_msg("%s", other.env.error.text);
                check_step(&other, &t, "behind a save");
            }
            close_job(&other);
            close_job(&j);
        }
    assert_true(skipped > 0);
}

// A pass that is given up changes no scale; one given up in front of its first update is run again, behind an overflow, too.
static void a_pass_that_is_given_up_changes_no_scale(void **state) {
    static trail t;
    static job j;
    int kernels;
    (void)state;
    follow_hand(1, 16, &t);
    open_job(&j, AT_END, 1, 16, 0);
    start_job(&j);
    for (; j.step < STEPS; j.step++) {
        int skips = t.scaler[j.step].skipped_count > (j.step ? t.scaler[j.step - 1].skipped_count : 0);
        for (kernels = 1; kernels <= 2 * LAYERS + 2 + skips; kernels++) {
            tl_loss_scaler before;
            if (load(j.run, 0, &j) || tl_start_pass(j.run, 0)) fail_msg("%s", j.env.error.text);
            before = j.scaler;
            pull(&j, kernels > 2 * LAYERS + 2 ? 2 * LAYERS + 2 : kernels);
            if (kernels > 2 * LAYERS + 2) {     // the overflow is known, and no update has run
                tl_run_step step;
                int32_t done;
                assert_int_equal(tl_next_step(j.run, &step, &done), TL_OK);
                assert_int_equal(step.is_compute, 0);
            }
            assert_int_equal(tl_reset_run(j.run), TL_OK);
            assert_memory_equal(&before, &j.scaler, sizeof before);
        }
        if (tl_run_plan(j.run)) fail_msg("%s", j.env.error.text);
        check_step(&j, &t, "given up");
    }
    close_job(&j);
}

// -- refusals --

// What the input and the node behind it read is the same in all passes.
static uint64_t version(int32_t node, int32_t micro_batch, void *user) { (void)node; (void)micro_batch; (void)user; return 1; }

static void refused(job *j, const char *says) {
    assert_int_equal(tl_init_run(&j->env, &j->desc, &j->run), TL_ERROR_UNSUPPORTED);
    if (!strstr(j->env.error.text, says)) fail_msg("%s\nand not: %s", j->env.error.text, says);
    close_job(j);
}

// The first step of a kind in a plan, from one on.
static int32_t find_step(const tl_plan *plan, tl_step_kind kind, int32_t node, int32_t at) {
    while (plan->steps[at].kind != kind || plan->steps[at].node != node) at++;
    return at;
}

static void move_step(tl_step *steps, int32_t from, int32_t to) {
    tl_step step = steps[from];
    for (; from > to; from--) steps[from] = steps[from - 1];
    for (; from < to; from++) steps[from] = steps[from + 1];
    steps[to] = step;
}

// What updates a state before all gradients are complete is refused, with the state: by its place in the listing, online too, or
// by a plan; a plan that updates all of them at its end goes, wherever they stand.
static void an_update_before_an_overflow_is_known_is_refused(void **state) {
    static const char *const says = "tl_init_run: loss_scaler: the update of w3 runs before an overflow is known: states stand above all "
                                    "other nodes (TL_UPDATES_END)";
    static job j;
    static trail t;
    tl_plan plan;
    tl_step *steps;
    tl_run_report report;
    int parts, layer, begins;
    (void)state;
    for (parts = 1; parts <= 2; parts++) {
        open_job(&j, IN_FRONT_OF_READERS, parts, 16, 0);
        refused(&j, says);
        open_job(&j, IN_FRONT_OF_READERS, parts, 16, 0);
        j.strategy = tl_with_gradient(tl_with_mode(j.strategy, TL_MODE_EAGER), tl_gradient_checkpointed(0));
        refused(&j, says);
    }
    open_job(&j, IN_FRONT_OF_READERS, 1, 16, 0);    // without training there is no update
    j.desc.strategy = NULL;
    j.desc.inference = 1;
    j.desc.repeat_count = 0;
    start_job(&j);
    close_job(&j);
    open_net(&j, IN_FRONT_OF_READERS, 1, 16, 0, HAS_PREFIX);       // of two plans, that keep the prefix from pass to pass
    j.strategy = tl_with_memory(j.strategy, TL_MEMORY_CACHED);
    j.desc.version = version;
    refused(&j, says);
    open_net(&j, AT_END, 1, 16, 0, HAS_PREFIX);
    j.strategy = tl_with_memory(j.strategy, TL_MEMORY_CACHED);
    j.desc.version = version;
    start_job(&j);
    for (; j.step < 2; j.step++) if (tl_run_plan(j.run)) fail_msg("%s", j.env.error.text);
    tl_measure_run(j.run, &report);
    assert_true(report.cached_bytes > 0);
    assert_int_equal(j.updates, LAYERS);     // 65536 is too much for f16
    assert_int_equal(j.scaler.skipped_count, 1);
    close_job(&j);
    for (begins = 0; begins < 2; begins++) {        // the last update in front of the last backward, or of its end
        open_job(&j, AT_END, 1, 16, 0);
        if (tl_plan_keep_all(&j.env, &j.graph, 0, &plan)) fail_msg("%s", j.env.error.text);
        plan.offset_count = 0;
        steps = (tl_step *)malloc(((size_t)plan.step_count + 1) * sizeof *steps);
        memcpy(steps, plan.steps, (size_t)plan.step_count * sizeof *steps);
        plan.steps = steps;
        j.desc.strategy = NULL;
        j.desc.plan = &plan;
        if (begins) {
            int32_t last = find_step(&plan, TL_STEP_BACKWARD, j.input + 1, 0);
            steps[plan.step_count] = steps[last];
            steps[plan.step_count].kind = TL_STEP_WAIT;
            steps[last].begins = 1;
            move_step(steps, plan.step_count++, last + 1);
            start_job(&j);      // it ends in front of the first update
            tl_free_run(j.run);
            move_step(steps, find_step(&plan, TL_STEP_BACKWARD, j.state_of[3], 0), last + 1);
        } else {
            move_step(steps, find_step(&plan, TL_STEP_BACKWARD, j.state_of[3], 0), find_step(&plan, TL_STEP_BACKWARD, j.input + 1, 0));
        }
        refused(&j, says);
        plan.steps = NULL;
        tl_free_plan(&j.env, &plan);
        free(steps);
    }
    follow_hand(1, 16, &t);                          // fused by the listing, at the end by the plan
    open_job(&j, IN_FRONT_OF_READERS, 1, 16, 0);
    if (tl_plan_keep_all(&j.env, &j.graph, 0, &plan)) fail_msg("%s", j.env.error.text);
    plan.offset_count = 0;
    steps = (tl_step *)malloc((size_t)plan.step_count * sizeof *steps);
    memcpy(steps, plan.steps, (size_t)plan.step_count * sizeof *steps);
    plan.steps = steps;
    for (layer = LAYERS; layer-- > 0;)
        move_step(steps, find_step(&plan, TL_STEP_BACKWARD, j.state_of[layer], 0), plan.step_count - 1);
    j.desc.strategy = NULL;
    j.desc.plan = &plan;
    start_job(&j);
    train_beside(&j, &t, "at the end by the plan");
    close_job(&j);
    plan.steps = NULL;
    tl_free_plan(&j.env, &plan);
    free(steps);
}

// Where results are kept from pass to pass, states are updated where they stand, too: a gradient at a time, or all of them.
static void plans_that_keep_results_update_by_the_listing(void **state) {
    static job j;
    uint64_t peaks[2];
    int fused;
    (void)state;
    for (fused = 0; fused < 2; fused++) {
        tl_run_report report;
        open_net(&j, fused ? IN_FRONT_OF_READERS : AT_END, 1, 32, 0, HAS_PREFIX);
        j.strategy = tl_with_memory(j.strategy, TL_MEMORY_CACHED);
        j.desc.version = version;
        j.desc.loss_scaler = NULL;
        j.scaler.scale = 1.0f;
        start_job(&j);
        for (; j.step < 3; j.step++) {
            if (tl_run_plan(j.run)) fail_msg("%s", j.env.error.text);
            tl_measure_run(j.run, &report);
            assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
            assert_int_equal(report.update_count, LAYERS);
        }
        peaks[fused] = report.measured_peak_bytes;
        close_job(&j);
    }
    assert_true(peaks[1] < peaks[0]);
}

// A backend that fails at the look fails the pass, and the states are those of before.
static void a_look_that_fails_fails_the_pass(void **state) {
    static trail t;
    static job j;
    int function;
    (void)state;
    follow_hand(1, 16, &t);
    for (function = 0; function < 3; function++) {
        static const spy_function functions[] = { SPY_ORDER, SPY_MAP, SPY_UNMAP };
        tl_run_step step;
        tl_result result;
        int32_t done;
        open_job(&j, AT_END, 1, 16, BACKEND_DEFERRED);
        start_job(&j);
        if (load(j.run, 0, &j) || tl_start_pass(j.run, 0)) fail_msg("%s", j.env.error.text);
        pull(&j, 2 * LAYERS + 2);
        j.spy.fail_function = (int)functions[function];
        j.spy.fail_at = j.spy.calls[functions[function]];
        do result = tl_next_step(j.run, &step, &done); while (!result && !step.is_compute && !done);
        assert_int_equal(result, TL_ERROR_BACKEND);
        j.spy.fail_function = -1;
        train_beside(&j, &t, "behind a failure");
        close_job(&j);
    }
}

// A pass of a micro-batch that begins no training step has the scale of the scaler, too.
static void the_scale_is_there_before_the_first_training_step(void **state) {
    static job j;
    (void)state;
    open_job(&j, OUTSIDE, 1, 32, 0);
    j.scaler.scale = 64.0f;
    start_job(&j);
    if (load(j.run, 3, &j) || tl_start_pass(j.run, 3)) fail_msg("%s", j.env.error.text);
    pull(&j, -1);       // dense_backward compares
    assert_true(j.of.g[LAYERS - 1][0] != 0.0f);
    close_job(&j);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overflow_skips_all_updates_as_by_hand),
        cmocka_unit_test(decisions_made_online_and_other_memories_train_the_same),
        cmocka_unit_test(gradients_of_a_remote_backend_are_waited_for),
        cmocka_unit_test(passes_without_updates_do_not_change_the_scale),
        cmocka_unit_test(a_node_that_clips_divides_by_the_scale),
        cmocka_unit_test(the_look_waits_for_steps_under_way),
        cmocka_unit_test(rehearsals_do_not_change_the_scale),
        cmocka_unit_test(overflows_are_known_in_every_format),
        cmocka_unit_test(a_save_in_a_pass_knows_of_an_overflow),
        cmocka_unit_test(a_pass_that_is_given_up_changes_no_scale),
        cmocka_unit_test(an_update_before_an_overflow_is_known_is_refused),
        cmocka_unit_test(plans_that_keep_results_update_by_the_listing),
        cmocka_unit_test(a_look_that_fails_fails_the_pass),
        cmocka_unit_test(the_scale_is_there_before_the_first_training_step),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
