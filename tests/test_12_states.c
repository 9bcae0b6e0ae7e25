// [12] RUN of graphs that own their weights: an optimizer in the plan, beside the same training by hand.
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

enum { WIDTH = 6, ROWS = 4, LAYERS = 5, FLOATS = ROWS * WIDTH, WEIGHTS = WIDTH * WIDTH, STEPS = 20 };

#define RATE 0.02f

// -- kernels --

static void multiply(const float *x, const float *w, float *y) {
    int r, i, o;
    for (r = 0; r < ROWS; r++)
        for (o = 0; o < WIDTH; o++) {
            float sum = 0;
            for (i = 0; i < WIDTH; i++) sum += x[r * WIDTH + i] * w[i * WIDTH + o];
            y[r * WIDTH + o] = sum;
        }
}

static void multiply_back(const float *x, const float *w, const float *dy, float *dx, float *dw) {
    int r, i, o;
    for (r = 0; r < ROWS; r++)
        for (o = 0; o < WIDTH; o++)
            for (i = 0; i < WIDTH; i++) {
                if (dx) dx[r * WIDTH + i] += dy[r * WIDTH + o] * w[i * WIDTH + o];
                dw[i * WIDTH + o] += x[r * WIDTH + i] * dy[r * WIDTH + o];
            }
}

// Momentum: what is kept of a weight is one number.
static void update(float *w, float *m, const float *g, uint64_t count) {
    uint64_t i;
    for (i = 0; i < count; i++) {
        m[i] = 0.9f * m[i] + g[i];
        w[i] -= RATE * m[i];
    }
}

typedef enum fault { NO_FAULT, UPDATE_IGNORES_GRADIENT, FORWARD_WRITES_WEIGHT, GRADIENT_IS_OVERWRITTEN, UPDATE_WRITES_GRADIENT,
                     UPDATE_READS_SCRATCH, UPDATE_FAILS, BACKWARD_FAILS, LOSS_FAILS } fault;

typedef struct net {
    fault  fault;
    int    updates, fail_at;
    float  inputs[16][FLOATS];   // by micro-batch of all steps
} net;

static float *f32(tl_operand operand) { return (float *)operand.host; }

static tl_result dense_forward(const tl_kernel_call *call, void *user) {
    const net *n = (const net *)user;
    multiply(f32(call->inputs[0]), f32(call->inputs[1]), f32(call->outputs[0]));
    if (n->fault == FORWARD_WRITES_WEIGHT) f32(call->inputs[1])[0] += 1;
    return TL_OK;
}

static tl_result dense_backward(const tl_kernel_call *call, void *user) {
    const net *n = (const net *)user;
    if (n->fault == BACKWARD_FAILS) return TL_ERROR_CORRUPT;
    if (n->fault == GRADIENT_IS_OVERWRITTEN) memset(f32(call->input_grads[1]), 0, (size_t)call->input_grads[1].range.bytes);
    multiply_back(f32(call->inputs[0]), f32(call->inputs[1]), f32(call->output_grads[0]), f32(call->input_grads[0]),
                  f32(call->input_grads[1]));
    return TL_OK;
}

static tl_result square_forward(const tl_kernel_call *call, void *user) {
    int i;
    (void)user;
    for (i = 0; i < FLOATS; i++) f32(call->outputs[0])[i] = 0.5f * f32(call->inputs[0])[i] * f32(call->inputs[0])[i];
    return TL_OK;
}

static tl_result square_backward(const tl_kernel_call *call, void *user) {
    int i;
    if (((const net *)user)->fault == LOSS_FAILS) return TL_ERROR_CORRUPT;
    for (i = 0; i < FLOATS; i++) f32(call->input_grads[0])[i] += f32(call->inputs[0])[i] * f32(call->output_grads[0])[i];
    return TL_OK;
}

static tl_result momentum(const tl_kernel_call *call, void *user) {
    net *n = (net *)user;
    const float *g = f32(call->output_grads[0]);
    float zero[WEIGHTS] = { 0 };
    if (n->fault == UPDATE_FAILS && n->updates == n->fail_at) return TL_ERROR_CORRUPT;
    n->updates++;
    if (n->fault == UPDATE_READS_SCRATCH) f32(call->outputs[1])[0] += f32(call->scratch)[0];
    if (n->fault == UPDATE_IGNORES_GRADIENT) f32(call->outputs[0])[0] *= 0.5f;
    update(f32(call->outputs[0]), f32(call->outputs[1]), n->fault == UPDATE_IGNORES_GRADIENT ? zero : g,
           call->outputs[0].range.bytes / 4);
    if (n->fault == UPDATE_WRITES_GRADIENT) f32(call->output_grads[0])[0] = 0;
    return TL_OK;
}

// -- the net as operations: input, then LAYERS times a state and a dense layer, then the loss --

typedef struct bed {
    net        n;
    tl_env     env;
    tl_backend cpu;
    tl_op      ops[2 * LAYERS + 3];     // with the node that clips
    tl_tensor  reads[2 * LAYERS + 3][2];
    uint64_t   moment;
    float      initial[LAYERS][WEIGHTS];
    int32_t    state_of[LAYERS];
    int        is_tied;         // the last two layers share a weight
    int32_t    count;
    tl_run_desc desc;
    tl_run    *run;
} bed;

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    bed *b = (bed *)user;
    static int32_t calls;
    tl_tensor x;
    calls++;
    x.node = b->state_of[0] == 0 ? b->count - LAYERS - 2 : 0;
    x.output = 0;
    while (b->ops[x.node].kind && strcmp(b->ops[x.node].kind, "input") != 0) x.node++;
    return tl_write_tensor(run, x, b->n.inputs[micro_batch % 16], sizeof b->n.inputs[0]);
}

static void add_state(bed *b, int layer) {
    tl_op *op = &b->ops[b->count];
    op->kind = "momentum";
    op->state = TL_STATE_TRAINED;
    op->output_bytes = WEIGHTS * 4;
    op->moments = &b->moment;
    op->moment_count = 1;
    op->initial = b->initial[layer];
    op->backward = momentum;
    op->user = &b->n;
    b->state_of[layer] = b->count++;
}

static void open_bed(bed *b, tl_updates updates, int is_tied, int holds) {
    tl_random random = { 7 };
    int layer, i, last;
    tl_cpu_backend_desc cpu;
    memset(b, 0, sizeof *b);
    memset(&cpu, 0, sizeof cpu);
    b->moment = WEIGHTS * 4;
    b->is_tied = is_tied;
    for (layer = 0; layer < LAYERS; layer++)
        for (i = 0; i < WEIGHTS; i++) b->initial[layer][i] = (float)tl_next_random_below(&random, 1000) / 2000.0f - 0.2f;
    for (layer = 0; layer < 16; layer++)
        for (i = 0; i < FLOATS; i++) b->n.inputs[layer][i] = (float)tl_next_random_below(&random, 1000) / 1000.0f - 0.5f;
    for (layer = 0; layer < LAYERS && updates == TL_UPDATES_END; layer++)
        if (!is_tied || layer < LAYERS - 1) add_state(b, layer);
    b->ops[b->count].kind = "input";
    b->ops[b->count].output_bytes = FLOATS * 4;
    last = b->count++;
    for (layer = 0; layer < LAYERS; layer++) {
        tl_op *op;
        if (updates == TL_UPDATES_FUSED && (!is_tied || layer < LAYERS - 1)) add_state(b, layer);
        if (is_tied && layer == LAYERS - 1) b->state_of[layer] = b->state_of[layer - 1];
        op = &b->ops[b->count];
        op->kind = "dense";
        op->forward = dense_forward;
        op->backward = dense_backward;
        op->needs = layer ? "in" : "in0";   // nobody computes the gradient of the graph's input
        op->user = &b->n;
        op->output_bytes = FLOATS * 4;
        op->inputs = b->reads[b->count];
        op->input_count = 2;
        b->reads[b->count][0].node = last;
        b->reads[b->count][1].node = b->state_of[layer];
        last = b->count++;
    }
    b->ops[b->count].kind = "square";
    b->ops[b->count].forward = square_forward;
    b->ops[b->count].backward = square_backward;
    b->ops[b->count].user = &b->n;
    b->ops[b->count].output_bytes = FLOATS * 4;
    b->ops[b->count].inputs = b->reads[b->count];
    b->ops[b->count].input_count = 1;
    b->reads[b->count][0].node = last;
    b->count++;
    for (i = 0; i < b->count && holds; i++)
        if (b->ops[i].state) b->ops[i].state = TL_STATE_HELD;
    if (tl_init_cpu_backend(&b->env, &cpu, &b->cpu)) fail_msg("%s", b->env.error.text);
    b->desc.backend = &b->cpu;
    b->desc.load = load;
    b->desc.load_user = b;
    b->desc.work_limit = 2000000;
}

static void close_bed(bed *b) {
    tl_free_run(b->run);
    if (tl_free_cpu_backend(&b->env, &b->cpu)) fail_msg("%s", b->env.error.text);
}

static void start(bed *b) {
    if (tl_init_op_run(&b->env, &b->desc, b->ops, b->count, &b->run)) fail_msg("%s", b->env.error.text);
}

// -- by hand --

typedef struct by_hand { float w[LAYERS][WEIGHTS], m[LAYERS][WEIGHTS], g[LAYERS][WEIGHTS]; } by_hand;

static int weight_of(const bed *b, int layer) { return b->is_tied && layer == LAYERS - 1 ? LAYERS - 2 : layer; }

static void hand_batch(const bed *b, by_hand *h, const float *x) {
    static float y[LAYERS + 1][FLOATS], dy[LAYERS + 1][FLOATS];
    int layer, i;
    memcpy(y[0], x, sizeof y[0]);
    memset(dy, 0, sizeof dy);
    for (layer = 0; layer < LAYERS; layer++) multiply(y[layer], h->w[weight_of(b, layer)], y[layer + 1]);
    for (i = 0; i < FLOATS; i++) dy[LAYERS][i] += y[LAYERS][i] * 1.0f;
    for (layer = LAYERS; layer-- > 0;)
        multiply_back(y[layer], h->w[weight_of(b, layer)], dy[layer + 1], layer ? dy[layer] : NULL, h->g[weight_of(b, layer)]);
}

static void hand_train(const bed *b, by_hand *h, int micro_batches) {
    int step, part, layer;
    memset(h, 0, sizeof *h);
    memcpy(h->w, b->initial, sizeof h->w);
    for (step = 0; step < STEPS; step++) {
        memset(h->g, 0, sizeof h->g);
        for (part = 0; part < micro_batches; part++) hand_batch(b, h, b->n.inputs[part % 16]);
        for (layer = 0; layer < LAYERS; layer++)
            if (weight_of(b, layer) == layer) update(h->w[layer], h->m[layer], h->g[layer], WEIGHTS);
    }
}

static void check_weights(bed *b, const by_hand *h, const char *what) {
    int layer;
    float bytes[WEIGHTS];
    for (layer = 0; layer < LAYERS; layer++) {
        tl_tensor t;
        t.node = b->state_of[layer];
        for (t.output = 0; t.output < 2; t.output++) {
            if (tl_read_tensor(b->run, t, bytes, sizeof bytes)) fail_msg("%s", b->env.error.text);
            if (memcmp(bytes, t.output ? h->m[weight_of(b, layer)] : h->w[weight_of(b, layer)], sizeof bytes) != 0)
                fail_msg("%s: other %s in layer %d", what, t.output ? "moments" : "weights", layer);
        }
    }
}

static void check_report(const bed *b) {
    tl_run_report report;
    tl_measure_run(b->run, &report);
    assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
    assert_int_equal(report.planned_taken_bytes, report.taken_bytes);
    assert_true(!b->desc.budget_bytes || report.taken_bytes <= b->desc.budget_bytes);
}

// -- tests --

static void train(bed *b, int steps) {
    while (steps-- > 0)
        if (tl_run_plan(b->run)) fail_msg("%s", b->env.error.text);
}

// The norm of all gradients, and what brings it down to 1.
static float clip_factor(float *const *g, int count) {
    double sum = 0;
    int k, i;
    for (k = 0; k < count; k++)
        for (i = 0; i < WEIGHTS; i++) sum += (double)g[k][i] * (double)g[k][i];
    return sum > 1e-7 ? (float)(1e-7 / sum) : 1.0f;
}

static void scale(float *g, float factor) {
    int i;
    for (i = 0; i < WEIGHTS; i++) g[i] *= factor;
}

static tl_result clip_forward(const tl_kernel_call *call, void *user) {
    (void)user;
    f32(call->outputs[0])[0] = 0;
    return TL_OK;
}

static tl_result clip_backward(const tl_kernel_call *call, void *user) {
    float *g[LAYERS], factor;
    int k;
    (void)user;
    for (k = 0; k < LAYERS; k++) g[k] = f32(call->input_grads[k]);
    factor = clip_factor(g, LAYERS);
    for (k = 0; k < LAYERS; k++) scale(g[k], factor);
    return TL_OK;
}

typedef struct seeds { uint64_t of_node[2 * LAYERS + 3][TL_STEP_COUNT]; } seeds;

static tl_result note_seed(const tl_kernel_call *call, void *user) {
    ((seeds *)user)->of_node[call->node][call->kind] = call->seed;
    return TL_OK;
}

static int32_t find_node(const tl_graph *graph, const char *name, size_t length) {
    int32_t id = 0;
    while (strlen(tl_name_node(graph, id)) != length || strncmp(tl_name_node(graph, id), name, length) != 0) id++;
    return id;
}

// A state that weights became draws the numbers of the node that they are of; all others draw what they draw without it.
static void a_state_has_the_seed_of_its_node(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                               "node 1 a dense fwd=1 bwd=1 out=8 needs=in in=0 param=16\nnode 2 b dense fwd=1 bwd=1 out=8 needs=in in=1 param=8\n";
    static const tl_step_kind kinds[] = { TL_STEP_FORWARD, TL_STEP_BACKWARD };
    static seeds found[2];
    tl_env env;
    tl_backend cpu;
    tl_cpu_backend_desc cpu_desc;
    tl_kernel kernels[2];
    tl_graph graphs[2];
    tl_optimizer_desc asked;
    int with, layer, k;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&cpu_desc, 0, sizeof cpu_desc);
    memset(&asked, 0, sizeof asked);
    if (tl_init_cpu_backend(&env, &cpu_desc, &cpu)) fail_msg("%s", env.error.text);
    if (tl_parse_graph(&env, text, sizeof text - 1, &graphs[0])) fail_msg("%s", env.error.text);
    asked.graph = &graphs[0];
    asked.op = "sgd";
    if (tl_apply_optimizer(&env, &asked, &graphs[1])) fail_msg("%s", env.error.text);
    for (with = 0; with < 2; with++) {
        tl_run_desc desc;
        tl_run *run;
        memset(&desc, 0, sizeof desc);
        memset(kernels, 0, sizeof kernels);
        kernels[0].op = "dense";
        kernels[0].forward = kernels[0].backward = note_seed;
        kernels[1].op = "sgd";
        kernels[1].backward = note_seed;
        kernels[0].user = kernels[1].user = &found[with];
        desc.graph = &graphs[with];
        desc.backend = &cpu;
        desc.kernels = kernels;
        desc.kernel_count = 1 + with;
        desc.seed = 17;
        if (tl_init_run(&env, &desc, &run) || tl_run_plan(run)) fail_msg("%s", env.error.text);
        tl_free_run(run);
    }
    for (layer = 1; layer < 3; layer++) {
        char name[8] = { (char)('a' + layer - 1), '.', 'w' };
        int32_t node = find_node(&graphs[1], name, 1), weights = find_node(&graphs[1], name, 3);
        for (k = 0; k < 2; k++) {
            assert_true(found[0].of_node[layer][kinds[k]] != 0);
            assert_true(found[0].of_node[layer][kinds[k]] == found[1].of_node[node][kinds[k]]);
        }
        assert_true(found[1].of_node[weights][TL_STEP_BACKWARD] == found[0].of_node[layer][TL_STEP_BACKWARD]);
    }
    assert_true(found[0].of_node[1][TL_STEP_FORWARD] != found[0].of_node[2][TL_STEP_FORWARD]);
    tl_free_graph(&env, &graphs[0]);
    tl_free_graph(&env, &graphs[1]);
    if (tl_free_cpu_backend(&env, &cpu)) fail_msg("%s", env.error.text);
}

// The bed's graph with a node that clips below the states.
typedef struct clipped {
    tl_graph  graph;
    tl_kernel kernels[4];
} clipped;

static void start_clipped(bed *b, clipped *c, int repeats, int holds, tl_kernel_fn clip) {
    const tl_kernel kernels[4] = { { "clip", clip_forward, clip, &b->n }, { "dense", dense_forward, dense_backward, &b->n },
                                   { "square", square_forward, square_backward, &b->n }, { "momentum", NULL, momentum, &b->n } };
    tl_optimizer_desc asked;
    int layer;
    start(b);
    memset(&asked, 0, sizeof asked);
    asked.graph = tl_find_run_graph(b->run);
    asked.updates = TL_UPDATES_END;
    asked.clips = 1;
    if (tl_apply_optimizer(&b->env, &asked, &c->graph)) fail_msg("%s", b->env.error.text);
    if (holds && tl_hold_gradients(&b->env, &c->graph)) fail_msg("%s", b->env.error.text);
    tl_free_run(b->run);
    memcpy(c->kernels, kernels, sizeof kernels);
    b->desc.graph = &c->graph;
    b->desc.kernels = c->kernels;
    b->desc.kernel_count = 4;
    b->desc.repeat_count = repeats;
    if (tl_init_run(&b->env, &b->desc, &b->run)) fail_msg("%s", b->env.error.text);
    for (layer = 0; layer < LAYERS; layer++) {
        tl_tensor t = { 0, 0 };
        b->state_of[layer] = t.node = layer;
        assert_int_equal(tl_write_tensor(b->run, t, b->initial[layer], sizeof b->initial[layer]), TL_OK);
    }
    for (layer = 0; layer < b->count + 1; layer++) b->ops[layer].kind = tl_name_op(&c->graph, layer);    // where load finds the input
}

static void close_clipped(bed *b, clipped *c) {
    tl_free_run(b->run);
    b->run = NULL;
    tl_free_graph(&b->env, &c->graph);
    close_bed(b);
}

// Steps by hand, each of so many micro-batches. Returns in how many the norm was above the limit.
static int hand_clip(const bed *b, by_hand *h, int parts) {
    int step, layer, part, clips = 0;
    memset(h, 0, sizeof *h);
    memcpy(h->w, b->initial, sizeof h->w);
    for (step = 0; step < STEPS; step++) {
        float *g[LAYERS], factor;
        memset(h->g, 0, sizeof h->g);
        for (part = 0; part < parts; part++) hand_batch(b, h, b->n.inputs[part]);
        for (layer = 0; layer < LAYERS; layer++) g[layer] = h->g[layer];
        factor = clip_factor(g, LAYERS);
        clips += factor < 1;
        for (layer = 0; layer < LAYERS; layer++) {
            scale(h->g[layer], factor);
            update(h->w[layer], h->m[layer], h->g[layer], WEIGHTS);
        }
    }
    return clips;
}

// Gradients are clipped by the norm of all of them, between the last backward and the first update; where several passes add to
// them, in the last of these alone.
static void clipping_sees_every_gradient(void **state) {
    static bed b;
    static by_hand h;
    static clipped c;
    int parts, skips, step, part;
    (void)state;
    for (parts = 1; parts <= 3; parts++)
        for (skips = 0; skips < 2; skips++) {
            open_bed(&b, TL_UPDATES_FUSED, 0, 0);
            start_clipped(&b, &c, skips ? 1 : parts, parts > 1, clip_backward);
            for (part = 1; part < parts && skips; part++) memcpy(b.n.inputs[part], b.n.inputs[0], sizeof b.n.inputs[0]);
            for (step = 0; step < STEPS; step++)
                for (part = 0; part < (skips ? parts : 1); part++) {
                    if (parts > 1 && skips) assert_int_equal(tl_skip_updates(b.run, part < parts - 1), TL_OK);
                    train(&b, 1);
                    check_report(&b);
                }
            assert_true(hand_clip(&b, &h, parts) > STEPS / 2);
            check_weights(&b, &h, "clipped");
            close_clipped(&b, &c);
        }
}

// Twenty steps have the weights and moments of the loop by hand, to the bit: fused and at the end, tied weights, micro-batches,
// keep-all and the least budget.
static void weights_are_those_of_the_loop_by_hand(void **state) {
    static bed b;
    static by_hand h;
    int updates, is_tied, parts, tight, step;
    (void)state;
    for (updates = 0; updates < TL_UPDATES_COUNT; updates++)
        for (is_tied = 0; is_tied < 2; is_tied++)
            for (parts = 1; parts <= (is_slow() ? 2 : 4); parts *= 2)
                for (tight = parts == 1 && is_slow(); tight < 2; tight++) {
                    char what[80];
                    tl_run_figures figures;
                    tl_strategy strategy = tl_with_memory(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), TL_MODE_LAZY), TL_MEMORY_POOLED);
                    open_bed(&b, (tl_updates)updates, is_tied, parts > 1);
                    snprintf(what, sizeof what, "%s%s, %d parts%s", tl_name_updates((tl_updates)updates), is_tied ? ", tied" : "",
                             parts, tight ? ", tight" : "");
                    strategy = tl_with_gradient(strategy, tl_gradient_checkpointed(0));
                    b.desc.strategy = &strategy;
                    b.desc.repeat_count = parts;
                    if (tight) {
                        b.desc.figures = &figures;
                        b.desc.budget_bytes = 1;
                        assert_int_equal(tl_init_op_run(&b.env, &b.desc, b.ops, b.count, &b.run), TL_ERROR_INFEASIBLE);
                        b.desc.budget_bytes = figures.least_bytes;
                        assert_true(figures.least_bytes <= figures.keep_all_bytes);
                        assert_true(updates || parts > 1 || is_tied || figures.least_bytes < figures.keep_all_bytes);
                        b.desc.figures = NULL;
                    }
                    start(&b);
                    for (step = 0; step < STEPS; step++)
                        if (tl_run_plan(b.run)) fail_msg("%s: %s", what, b.env.error.text);
                    hand_train(&b, &h, parts);
                    check_weights(&b, &h, what);
                    check_report(&b);
                    assert_int_equal(b.n.updates, STEPS * (is_tied ? LAYERS - 1 : LAYERS));
                    close_bed(&b);
                }
}

// A caller who skips updates adds up himself.
static void skipped_updates_add_up(void **state) {
    static bed b;
    static by_hand h;
    int step;
    (void)state;
    open_bed(&b, TL_UPDATES_FUSED, 0, 1);
    start(&b);
    for (step = 0; step < STEPS; step++) {
        tl_run_report report;
        assert_int_equal(tl_skip_updates(b.run, 1), TL_OK);
        assert_int_equal(tl_run_plan(b.run), TL_OK);
        tl_measure_run(b.run, &report);
        assert_int_equal(report.update_count, 0);
        assert_int_equal(tl_skip_updates(b.run, 0), TL_OK);
        assert_int_equal(tl_run_plan(b.run), TL_OK);
        tl_measure_run(b.run, &report);
        assert_int_equal(report.update_count, LAYERS);
        check_report(&b);
    }
    memcpy(b.n.inputs[1], b.n.inputs[0], sizeof b.n.inputs[0]);     // the hook is told micro-batch 0 each time
    hand_train(&b, &h, 2);
    check_weights(&b, &h, "skipped");
    close_bed(&b);
}

// Decisions made online, and every allocation for itself.
static void other_ways_to_run_train_the_same(void **state) {
    static const tl_memory memories[] = { TL_MEMORY_STANDARD, TL_MEMORY_POOLED, TL_MEMORY_MINIMAL_PEAK };
    static const tl_mode modes[] = { TL_MODE_EAGER, TL_MODE_LAZY };
    static bed b;
    static by_hand h;
    int i, k, step;
    (void)state;
    for (i = 0; i < 3; i++)
        for (k = 0; k < 2; k++) {
            tl_strategy strategy = tl_with_memory(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), modes[k]), memories[i]);
            strategy = tl_with_gradient(strategy, k ? tl_gradient_full() : tl_gradient_checkpointed(0));
            open_bed(&b, TL_UPDATES_FUSED, 1, 0);
            b.desc.strategy = &strategy;
            if (tl_init_op_run(&b.env, &b.desc, b.ops, b.count, &b.run)) {
                assert_int_equal(b.env.error.code, TL_ERROR_UNSUPPORTED);     // not every mode goes with every memory
                close_bed(&b);
                continue;
            }
            for (step = 0; step < STEPS; step++)
                if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
            hand_train(&b, &h, 1);
            check_weights(&b, &h, tl_name_memory(memories[i]));
            close_bed(&b);
        }
}

// -- a C program --

static const char program_kernels[] =
    "#include \"net.h\"\n#include <stdio.h>\n#include <string.h>\n"
    "enum { WIDTH = 6, ROWS = 4 };\n"
    "extern const float net_images[16][24];\n"
    "void net_load(int32_t part) { memcpy(NET_INPUT_X, net_images[part], sizeof net_images[0]); }\n"
    "void net_dense_forward(int32_t node, void *out, const void *in, const void *weight) {\n"
    "    const float *x = in, *w = weight; float *y = out; int r, i, o; (void)node;\n"
    "    for (r = 0; r < ROWS; r++) for (o = 0; o < WIDTH; o++) { float sum = 0;\n"
    "        for (i = 0; i < WIDTH; i++) sum += x[r * WIDTH + i] * w[i * WIDTH + o];\n"
    "        y[r * WIDTH + o] = sum; } }\n"
    "void net_dense_backward(int32_t node, const void *dout, void *din, void *dweight, const void *in, const void *weight) {\n"
    "    const float *x = in, *w = weight, *dy = dout; float *dx = din, *dw = dweight; int r, i, o; (void)node;\n"
    "    for (r = 0; r < ROWS; r++) for (o = 0; o < WIDTH; o++) for (i = 0; i < WIDTH; i++) {\n"
    "        if (dx) dx[r * WIDTH + i] += dy[r * WIDTH + o] * w[i * WIDTH + o];\n"
    "        dw[i * WIDTH + o] += x[r * WIDTH + i] * dy[r * WIDTH + o]; } }\n"
    "void net_square_forward(int32_t node, void *out, const void *in) {\n"
    "    const float *x = in; float *y = out; int i; (void)node; for (i = 0; i < 24; i++) y[i] = 0.5f * x[i] * x[i]; }\n"
    "void net_square_backward(int32_t node, const void *dout, void *din, const void *in) {\n"
    "    const float *x = in, *dy = dout; float *dx = din; int i; (void)node; for (i = 0; i < 24; i++) dx[i] += x[i] * dy[i]; }\n"
    "void net_momentum_update(int32_t node, const void *gradient, void *weight, void *moment) {\n"
    "    const float *g = gradient; float *w = weight, *m = moment; int i; (void)node;\n"
    "    for (i = 0; i < 36; i++) { m[i] = 0.9f * m[i] + g[i]; w[i] -= 0.02f * m[i]; } }\n";

static void put_floats(FILE *file, const float *x, int count) {
    int i;
    for (i = 0; i < count; i++) fprintf(file, "%a%s", (double)x[i], i < count - 1 ? "f, " : "f");
}

// What the program prints: the weights and moments after all steps, as words.
static void write_main(const bed *b, const char *path) {
    FILE *file = fopen(path, "w");
    int layer, k;
    assert_non_null(file);
    fputs(program_kernels, file);
    fprintf(file, "const float net_images[16][24] = {\n");
    for (k = 0; k < 16; k++) { fprintf(file, "{ "); put_floats(file, b->n.inputs[k], FLOATS); fprintf(file, " },\n"); }
    fprintf(file, "};\nstatic const float begin[%d][36] = {\n", LAYERS);
    for (layer = 0; layer < LAYERS; layer++) { fprintf(file, "{ "); put_floats(file, b->initial[layer], WEIGHTS); fprintf(file, " },\n"); }
    fprintf(file, "};\nstatic void print(const void *words) {\n    uint32_t word; int i;\n    for (i = 0; i < 36; i++) {"
            " memcpy(&word, (const char *)words + 4 * i, 4); printf(\"%%08x\\n\", (unsigned)word); }\n}\n"
            "int main(void) {\n    int step;\n");
    for (layer = 0; layer < LAYERS; layer++)
        fprintf(file, "    memcpy(NET_STATE_N%d_o0, begin[%d], sizeof begin[0]);\n", (int)b->state_of[layer], layer);
    fprintf(file, "    for (step = 0; step < %d; step++) net_run();\n", STEPS);
    for (layer = 0; layer < LAYERS; layer++)
        for (k = 0; k < 2; k++) fprintf(file, "    print(NET_STATE_N%d_o%d);\n", (int)b->state_of[layer], k);
    fprintf(file, "    return 0;\n}\n");
    fclose(file);
}

// A plan as a C program updates the states in its loop, in the last micro-batch, with the bits of the loop by hand.
static void a_c_program_trains_as_by_hand(void **state) {
    static bed b;
    static by_hand h;
    char dir[] = "/tmp/tl_states_XXXXXX", paths[2][64], clean[64];
    int parts, is_table;
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (parts = 1; parts <= 2; parts++)
        for (is_table = 0; is_table < 2; is_table++) {
            char command[600], path[200];
            tl_graph graph;
            tl_plan plan;
            tl_places_desc places;
            tl_code_desc code;
            tl_file_sink header, source;
            tl_sink to_header, to_source;
            tl_result result;
            FILE *printed;
            int layer, k, i;
            unsigned word;
            open_bed(&b, TL_UPDATES_FUSED, 0, parts > 1);
            b.ops[0].name = "x";
            start(&b);
            graph = *tl_find_run_graph(b.run);
            if (tl_plan_keep_all(&b.env, &graph, 0, &plan)) fail_msg("%s", b.env.error.text);
            plan.repeat_count = parts;
            memset(&places, 0, sizeof places);
            places.graph = &graph;
            if (tl_plan_places(&b.env, &places, &plan, NULL)) fail_msg("%s", b.env.error.text);
            memset(&code, 0, sizeof code);
            code.name = "net";
            code.form = is_table ? TL_CODE_TABLE : TL_CODE_CALLS;
            snprintf(paths[0], sizeof paths[0], "%s/net.h", dir);
            snprintf(paths[1], sizeof paths[1], "%s/net.c", dir);
            if (tl_init_file_sink(&b.env, paths[0], &header, &to_header)) fail_msg("%s", b.env.error.text);
            if (tl_init_file_sink(&b.env, paths[1], &source, &to_source)) fail_msg("%s", b.env.error.text);
            result = tl_write_plan_code(&b.env, &graph, &plan, &code, to_header, to_source);
            assert_int_equal(result, parts > 1 && is_table ? TL_ERROR_UNSUPPORTED : TL_OK);
            if (tl_finish_file_sink(&b.env, &header, result) != result || tl_finish_file_sink(&b.env, &source, result) != result)
                fail_msg("%s", b.env.error.text);
            if (!result) {
                snprintf(path, sizeof path, "%s/main.c", dir);
                write_main(&b, path);
                snprintf(command, sizeof command, "gcc -std=c99 -O1 -ffp-contract=off -Wall -Wextra -Werror -o %s/net %s/main.c %s/net.c",
                         dir, dir, dir);
                assert_int_equal(system(command), 0);
                snprintf(command, sizeof command, "%s/net", dir);
                printed = popen(command, "r");
                assert_non_null(printed);
                hand_train(&b, &h, parts);
                for (layer = 0; layer < LAYERS; layer++)
                    for (k = 0; k < 2; k++)
                        for (i = 0; i < WEIGHTS; i++) {
                            uint32_t want;
                            memcpy(&want, k ? &h.m[layer][i] : &h.w[layer][i], 4);
                            assert_int_equal(fscanf(printed, "%x", &word), 1);
                            assert_int_equal(word, want);
                        }
                assert_int_equal(pclose(printed), 0);
            }
            tl_free_plan(&b.env, &plan);
            close_bed(&b);
        }
    snprintf(clean, sizeof clean, "rm -r %s", dir);
    assert_int_equal(system(clean), 0);
}

// -- rehearsal --

static void rehearse(fault f, tl_updates updates, int holds, const char *says) {
    static bed b;
    tl_rehearsal found;
    tl_result result;
    char text[200];
    open_bed(&b, updates, 0, holds);
    b.n.fault = f;
    if (f == UPDATE_READS_SCRATCH) b.ops[b.state_of[1]].bwork_bytes = 64;
    start(&b);
    {
        tl_rehearsal_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.pass_count = -1;
        result = tl_rehearse_run(b.run, &desc, &found);
    }
    if (result) fail_msg("%s", b.env.error.text);
    text[0] = 0;
    if (found.finding_count) tl_print_finding(tl_find_run_graph(b.run), &found.findings[0], text, sizeof text);
    if (!says && found.finding_count) fail_msg("found: %s", text);
    if (says && !strstr(text, says)) fail_msg("found \"%s\", not \"%s\"", text, says);
    if (!f) {       // the states are as they were
        static by_hand h;
        memset(&h, 0, sizeof h);
        memcpy(h.w, b.initial, sizeof h.w);
        check_weights(&b, &h, "rehearsal");
    }
    tl_free_rehearsal(&b.env, &found);
    close_bed(&b);
}

static void rehearsal_knows_updates(void **state) {
    (void)state;
    rehearse(NO_FAULT, TL_UPDATES_FUSED, 0, NULL);
    rehearse(NO_FAULT, TL_UPDATES_END, 0, NULL);
    rehearse(NO_FAULT, TL_UPDATES_FUSED, 1, NULL);
    rehearse(UPDATE_IGNORES_GRADIENT, TL_UPDATES_FUSED, 0, "does not read output gradient 0");
    rehearse(FORWARD_WRITES_WEIGHT, TL_UPDATES_FUSED, 0, "writes to input 1");
    rehearse(GRADIENT_IS_OVERWRITTEN, TL_UPDATES_FUSED, 1, "overwrites input gradient 1");
    rehearse(UPDATE_WRITES_GRADIENT, TL_UPDATES_FUSED, 0, "writes to output gradient 0");
}

static tl_result clip_by_its_output(const tl_kernel_call *call, void *user) {
    float part = f32(call->output_grads[0])[0] - 1;
    int k, i;
    for (k = 0; k < LAYERS; k++)
        for (i = 0; i < WEIGHTS; i++) f32(call->input_grads[k])[i] += part * f32(call->input_grads[k])[i];
    return clip_backward(call, user);
}

static tl_result clip_that_forgets(const tl_kernel_call *call, void *user) {
    memset(f32(call->input_grads[1]), 0, (size_t)call->input_grads[1].range.bytes);
    return clip_backward(call, user);
}

static tl_result clip_by_weights(const tl_kernel_call *call, void *user) {
    f32(call->input_grads[0])[0] += f32(call->inputs[2])[0];
    return clip_backward(call, user);
}

static tl_result clip_that_updates(const tl_kernel_call *call, void *user) {
    f32(call->inputs[2])[0] += 1;
    return clip_backward(call, user);
}

// A node that clips goes by the gradients of the weights, and by nothing else.
static void rehearsal_knows_what_clips(void **state) {
    static const struct { tl_kernel_fn clip; const char *says; } rows[] = {
        { clip_backward, NULL }, { clip_by_its_output, "clip: backward clips, and reads output gradient 0, which is of no loss" },
        { clip_that_forgets, "clip: backward overwrites input gradient 1" }, { clip_by_weights, "clip: backward reads input 2, which needs" },
        { clip_that_updates, "clip: backward writes to input 2, which it may only read" } };
    static bed b;
    static clipped c;
    size_t k;
    (void)state;
    for (k = 0; k < sizeof rows / sizeof *rows; k++) {
        tl_rehearsal_desc desc;
        tl_rehearsal found;
        char text[200] = "";
        open_bed(&b, TL_UPDATES_FUSED, 0, 0);
        start_clipped(&b, &c, 2, 1, rows[k].clip);
        memset(&desc, 0, sizeof desc);
        desc.pass_count = -1;
        if (tl_rehearse_run(b.run, &desc, &found)) fail_msg("%s", b.env.error.text);
        if (found.finding_count) tl_print_finding(&c.graph, &found.findings[found.finding_count - 1], text, sizeof text);
        if (rows[k].says ? strncmp(text, rows[k].says, strlen(rows[k].says)) || found.error_count != 1 : found.error_count)
            fail_msg("row %d: %d errors: %s", (int)k, (int)found.error_count, text);
        tl_free_rehearsal(&b.env, &found);
        close_clipped(&b, &c);
    }
}

// -- refusals --

static void refused(bed *b, tl_result code, const char *says) {
    assert_int_equal(tl_init_op_run(&b->env, &b->desc, b->ops, b->count, &b->run), code);
    if (!strstr(b->env.error.text, says)) fail_msg("%s\nand not: %s", b->env.error.text, says);
    close_bed(b);
}

// A plan of two micro-batches under way together, otherwise as that of one: each would have weights of its own.
static void refuse_slots(bed *b) {
    tl_graph graph;
    tl_plan plan, two;
    tl_step *steps;
    int32_t i;
    open_bed(b, TL_UPDATES_END, 0, 1);
    start(b);
    graph = *tl_find_run_graph(b->run);
    if (tl_plan_keep_all(&b->env, &graph, 0, &plan)) fail_msg("%s", b->env.error.text);
    tl_free_run(b->run);
    b->run = NULL;
    two = plan;
    two.offset_count = 0;
    two.slot_count = 2;
    two.step_count = 2 * plan.step_count;
    two.steps = steps = (tl_step *)malloc((size_t)two.step_count * sizeof *steps);
    for (i = 0; i < two.step_count; i++) {
        steps[i] = plan.steps[i % plan.step_count];
        steps[i].slot = (uint16_t)(i / plan.step_count);
    }
    b->desc.plan = &two;
    assert_int_equal(tl_init_op_run(&b->env, &b->desc, b->ops, b->count, &b->run), TL_ERROR_INVALID_PLAN);
    assert_non_null(strstr(b->env.error.text, "slot_count: above 1, and state n0 is the same for all micro-batches, which needs one slot"));
    two.slot_count = 1;
    two.step_count = plan.step_count;
    start(b);       // the first half of it is a plan
    close_bed(b);
    tl_free_plan(&b->env, &plan);
    free(steps);
}

// A node that clips behind all others is called first, before anything was added.
static void add_late_clip(bed *b, tl_tensor *weights) {
    tl_op *op = &b->ops[b->count++];
    int layer;
    for (layer = 0; layer < LAYERS; layer++) weights[layer].node = b->state_of[layer];
    op->name = op->kind = "clip";
    op->forward = clip_forward;
    op->backward = clip_backward;
    op->needs = "none";
    op->output_bytes = 4;
    op->inputs = weights;
    op->input_count = LAYERS;
}

static void what_states_cannot_do_is_refused(void **state) {
    static bed b;
    static tl_tensor weights[LAYERS];
    int at_end, kind;
    (void)state;
    for (at_end = 0; at_end < 2; at_end++) {
        open_bed(&b, at_end ? TL_UPDATES_END : TL_UPDATES_FUSED, 0, 0);
        add_late_clip(&b, weights);
        refused(&b, TL_ERROR_UNSUPPORTED, at_end ? "clip clips gradients before n6 adds to them" : "clip clips gradients before n2 adds to them");
    }
    open_bed(&b, TL_UPDATES_FUSED, 0, 0);
    b.desc.repeat_count = 2;
    refused(&b, TL_ERROR_UNSUPPORTED, "(TL_STATE_HELD, tl_hold_gradients): n1 does not");
    refuse_slots(&b);
    open_bed(&b, TL_UPDATES_FUSED, 0, 0);
    b.ops[b.state_of[0]].forward = dense_forward;
    refused(&b, TL_ERROR_INVALID_ARG, "ops: op 1: forward is not of a state");
    open_bed(&b, TL_UPDATES_FUSED, 0, 0);
    b.ops[b.state_of[1]].name = "w1";
    b.ops[b.state_of[1]].swork_bytes = 8;
    refused(&b, TL_ERROR_INVALID_ARG, "ops: op w1: swork_bytes is not of a state");
    open_bed(&b, TL_UPDATES_FUSED, 0, 0);
    b.ops[b.state_of[0]].backward = NULL;
    refused(&b, TL_ERROR_INVALID_ARG, "update");
    open_bed(&b, TL_UPDATES_FUSED, 0, 0);
    start(&b);
    assert_int_equal(tl_skip_updates(b.run, 1), TL_ERROR_INVALID_ARG);
    close_bed(&b);
    open_bed(&b, TL_UPDATES_FUSED, 0, 1);
    start(&b);
    for (kind = -1; kind < 3; kind++) assert_int_equal(tl_skip_updates(b.run, kind), kind == 0 || kind == 1 ? TL_OK : TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_skip_updates: on: must be 0 or 1");
    close_bed(&b);
    open_bed(&b, TL_UPDATES_FUSED, 0, 0);
    b.ops[b.count - 2].inplace = 2;
    b.ops[b.count - 2].output_bytes = WEIGHTS * 4;
    refused(&b, TL_ERROR_INVALID_ARG, "inplace: the weight of a state must not be overwritten");
    for (kind = 0; kind < 2; kind++) {
        open_bed(&b, TL_UPDATES_FUSED, 0, 0);
        b.ops[b.state_of[1]].state = kind ? TL_STATE_FROZEN : TL_STATE_STATISTIC;
        b.ops[b.state_of[1]].moment_count = 0;
        refused(&b, TL_ERROR_INVALID_ARG, "ops: op 3: backward: a frozen state and statistics have no update");
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

static tl_result save(tl_run *run, saved *s) {
    tl_sink sink;
    memset(&sink, 0, sizeof sink);
    s->count = 0;
    sink.write = keep;
    sink.user = s;
    return tl_save_run(run, sink);
}

// So does a C program of a plan: what clips is called in the last micro-batch alone.
static void a_c_program_clips_in_the_last_micro_batch(void **state) {
    static bed b;
    static clipped c;
    static saved text[2];
    tl_code_desc code;
    tl_places_desc places;
    tl_plan plan;
    tl_sink sinks[2];
    int i;
    (void)state;
    open_bed(&b, TL_UPDATES_FUSED, 0, 0);
    start_clipped(&b, &c, 2, 1, clip_backward);
    memset(&code, 0, sizeof code);
    memset(&places, 0, sizeof places);
    places.graph = &c.graph;
    if (tl_plan_keep_all(&b.env, &c.graph, 0, &plan)) fail_msg("%s", b.env.error.text);
    plan.repeat_count = 2;
    if (tl_plan_places(&b.env, &places, &plan, NULL)) fail_msg("%s", b.env.error.text);
    for (i = 0; i < 2; i++) {
        text[i].count = 0;
        sinks[i].write = keep;
        sinks[i].user = &text[i];
    }
    code.name = "net";
    if (tl_write_plan_code(&b.env, &c.graph, &plan, &code, sinks[0], sinks[1])) fail_msg("%s", b.env.error.text);
    text[1].bytes[text[1].count] = 0;
    assert_non_null(strstr(text[1].bytes, "if (micro_batch + 1 == NET_MICRO_BATCHES)\n            net_clip_backward("));
    tl_free_plan(&b.env, &plan);
    close_clipped(&b, &c);
}

// Another run of the same net goes on with the save.
static void go_on(bed *b, const saved *s, tl_updates updates, int holds) {
    close_bed(b);
    open_bed(b, updates, 0, holds);
    start(b);
    if (tl_load_run(b->run, s->bytes, s->count)) fail_msg("%s", b->env.error.text);
}

// Weights and moments are in a save, and sums that no update has used yet.
static void a_save_has_weights_moments_and_sums(void **state) {
    static bed b;
    static by_hand h;
    static saved s;
    int mode, step;
    (void)state;
    for (mode = 0; mode < 2; mode++) {
        open_bed(&b, mode ? TL_UPDATES_END : TL_UPDATES_FUSED, 0, 0);
        start(&b);
        train(&b, STEPS / 2);
        assert_int_equal(save(b.run, &s), TL_OK);
        go_on(&b, &s, mode ? TL_UPDATES_END : TL_UPDATES_FUSED, 0);
        train(&b, STEPS - STEPS / 2);
        hand_train(&b, &h, 1);
        check_weights(&b, &h, "saved");
        close_bed(&b);
    }
    open_bed(&b, TL_UPDATES_FUSED, 0, 1);
    start(&b);
    for (step = 0; step < STEPS; step++) {
        assert_int_equal(tl_skip_updates(b.run, 1), TL_OK);
        train(&b, 1);
        assert_int_equal(save(b.run, &s), TL_OK);
        go_on(&b, &s, TL_UPDATES_FUSED, 1);
        assert_int_equal(tl_skip_updates(b.run, 0), TL_OK);
        train(&b, 1);
    }
    memcpy(b.n.inputs[1], b.n.inputs[0], sizeof b.n.inputs[0]);
    hand_train(&b, &h, 2);
    check_weights(&b, &h, "saved between two passes");
    close_bed(&b);
}

// Variables go on from a later step than weights that stay as they are: refused, but where all states are frozen.
static void variables_alone_are_no_save_of_states(void **state) {
    static const tl_state changing[] = { TL_STATE_TRAINED, TL_STATE_HELD, TL_STATE_STATISTIC };
    static bed b;
    static saved s;
    tl_saved data;
    size_t k;
    (void)state;
    for (k = 0; k <= sizeof changing / sizeof changing[0]; k++) {
        tl_result want = k < sizeof changing / sizeof changing[0] ? TL_ERROR_UNSUPPORTED : TL_OK;
        int layer;
        open_bed(&b, TL_UPDATES_FUSED, 0, 0);
        for (layer = 0; layer < LAYERS; layer++) {
            tl_op *op = &b.ops[b.state_of[layer]];
            op->state = want ? changing[k] : TL_STATE_FROZEN;
            if (op->state == TL_STATE_TRAINED || op->state == TL_STATE_HELD) continue;
            op->backward = NULL;
            op->moment_count = 0;
        }
        start(&b);
        assert_int_equal(save(b.run, &s), TL_OK);
        data.data = s.bytes;
        data.length = s.count;
        assert_int_equal(tl_load_variables(b.run, &data, 1), want);
        if (want && !strstr(b.env.error.text, "n1 is a state, which is no variable")) fail_msg("%s", b.env.error.text);
        close_bed(&b);
    }
}

// An inference holds what its states have: of weights that are frozen there the training has moments, and this has none.
static void weights_go_to_an_inference_without_moments(void **state) {
    static bed trained, b;
    static float out[2][FLOATS];
    tl_run_figures figures[2];
    tl_tensor loss = { 0, 0 }, weight = { 0, 0 };
    int frozen, layer;
    (void)state;
    open_bed(&trained, TL_UPDATES_FUSED, 0, 0);
    start(&trained);
    train(&trained, 3);
    for (frozen = 0; frozen < 2; frozen++) {
        open_bed(&b, TL_UPDATES_FUSED, 0, 0);
        for (layer = 0; layer < LAYERS && frozen; layer++) {
            tl_op *op = &b.ops[b.state_of[layer]];
            op->state = TL_STATE_FROZEN;
            op->backward = NULL;
            op->moment_count = 0;
        }
        b.desc.inference = 1;
        b.desc.figures = &figures[frozen];
        start(&b);
        for (layer = 0; layer < LAYERS; layer++) {
            float w[WEIGHTS];
            weight.node = b.state_of[layer];
            if (tl_read_tensor(trained.run, weight, w, sizeof w)) fail_msg("%s", trained.env.error.text);
            if (tl_write_tensor(b.run, weight, w, sizeof w)) fail_msg("%s", b.env.error.text);
        }
        loss.node = b.count - 1;
        train(&b, 1);
        if (tl_read_tensor(b.run, loss, out[frozen], sizeof out[0])) fail_msg("%s", b.env.error.text);
        close_bed(&b);
    }
    close_bed(&trained);
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    assert_true(figures[0].keep_all_bytes >= figures[1].keep_all_bytes + LAYERS * WEIGHTS * 4);
}

// A pass that ends in an update or behind one leaves weights of two steps: none starts before all are written again, or loaded.
static void tear(bed *b, int updates_before) {
    b->n.fault = UPDATE_FAILS;
    b->n.fail_at = b->n.updates + updates_before;
    assert_int_equal(tl_run_plan(b->run), TL_ERROR_KERNEL);
    b->n.fault = NO_FAULT;
}

static void check_torn(bed *b) {
    static saved s;
    assert_int_equal(tl_run_plan(b->run), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(b->env.error.text, "in or behind an update"));
    assert_int_equal(save(b->run, &s), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(b->env.error.text, "in or behind an update"));
    assert_int_equal(s.count, 0);
}

// Steps of the pass under way, until so many states were updated, or to its end.
static tl_result step_on(bed *b, int updates) {
    tl_result result = TL_OK;
    int32_t done = 0;
    while (!result && !done && b->n.updates != updates) {
        tl_run_step step;
        result = tl_next_step(b->run, &step, &done);
        if (!result && !done && step.is_compute) result = tl_run_step_kernel(b->run, &step);
    }
    return result;
}

// A save in a pass knows what was updated in it: the pass goes on as it would have, and cannot be given up any more.
static void a_save_in_a_pass_knows_what_was_updated(void **state) {
    static bed b;
    static by_hand h;
    static saved s;
    tl_run_report report;
    int holds, fails;
    (void)state;
    for (holds = 0; holds < 2; holds++)
        for (fails = 0; fails < 2; fails++) {
            open_bed(&b, TL_UPDATES_FUSED, 0, holds);
            start(&b);
            assert_int_equal(load(b.run, 0, &b), TL_OK);     // tl_run_plan alone asks the hook
            assert_int_equal(tl_start_pass(b.run, 0), TL_OK);
            assert_int_equal(step_on(&b, fails ? 2 : LAYERS), TL_OK);
            assert_int_equal(save(b.run, &s), TL_OK);
            go_on(&b, &s, TL_UPDATES_FUSED, holds);
            if (fails) b.n.fault = BACKWARD_FAILS;
            assert_int_equal(step_on(&b, -1), fails ? TL_ERROR_KERNEL : TL_OK);
            if (fails) {
                check_torn(&b);
            } else {
                tl_measure_run(b.run, &report);
                assert_int_equal(report.update_count, LAYERS);
                train(&b, STEPS - 1);
                hand_train(&b, &h, 1);
                check_weights(&b, &h, "saved in a pass");
            }
            close_bed(&b);
        }
}

// The number behind weights and moments in a save between passes (updates, then sums and whether passes update) becomes that of
// a build that did not say whether: the checksum, too.
static void forget_skipping(saved *s, size_t behind) {
    uint64_t sum = 0;
    size_t i, at = s->count - 8 - behind;
    assert_int_equal(s->bytes[at], 5);
    s->bytes[at] = 1;
    for (i = 0; i < s->count - 8; i++) sum = (sum ^ (uint8_t)s->bytes[i]) * 0x100000001b3u;
    for (i = 0; i < 8; i++) s->bytes[s->count - 8 + i] = (char)(uint8_t)(sum >> (8 * i));
}

static void check_updates(bed *b, int want, const char *what) {
    tl_run_report report;
    tl_measure_run(b->run, &report);
    if (report.update_count != want) fail_msg("%s: %d updates, not %d", what, (int)report.update_count, want);
}

// A pass with or without updates, until so many steps of it are done, and saved there; -1 = none has begun. Returns whether it
// has ended.
static int save_at(bed *b, int steps, int skips, saved *s) {
    tl_run_step at;
    int32_t done = 0;
    int step;
    assert_int_equal(load(b->run, 0, b), TL_OK);
    assert_int_equal(tl_skip_updates(b->run, skips), TL_OK);
    if (steps >= 0) assert_int_equal(tl_start_pass(b->run, 0), TL_OK);
    for (step = 0; step < steps && !done; step++) {
        assert_int_equal(tl_next_step(b->run, &at, &done), TL_OK);
        if (!done && at.is_compute) assert_int_equal(tl_run_step_kernel(b->run, &at), TL_OK);
    }
    assert_int_equal(save(b->run, s), TL_OK);
    return done;
}

static void start_soon(bed *b) {
    tl_strategy keeps_all = tl_with_gradient(tl_with_mode(tl_strategy_training(), TL_MODE_LAZY), tl_gradient_full());
    open_bed(b, TL_UPDATES_FUSED, 0, 1);
    b->desc.strategy = &keeps_all;
    start(b);
    b->desc.strategy = NULL;
}

// A pass that skips its updates, saved at each of its steps and between passes, skips them where it is loaded; and one that
// does not updates, whatever that run was told before.
static void a_save_knows_whether_updates_are_skipped(void **state) {
    static bed b;
    static saved s;
    int done = 0, steps, skips;
    (void)state;
    for (steps = -1; !done; steps++)
        for (skips = 0; skips < 2; skips++) {
            start_soon(&b);
            done = save_at(&b, steps, skips, &s);
            close_bed(&b);
            start_soon(&b);
            assert_int_equal(tl_skip_updates(b.run, !skips), TL_OK);
            assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_OK);
            if (steps < 0 || done) train(&b, 1);
            else assert_int_equal(step_on(&b, -1), TL_OK);
            check_updates(&b, skips ? 0 : LAYERS, "loaded");
            check_report(&b);
            close_bed(&b);
        }
}

// Saves of builds that did not save it leave what the run that loads was told.
static void an_older_save_leaves_whether_updates_are_skipped(void **state) {
    static bed b;
    static saved s;
    int skips;
    (void)state;
    for (skips = 0; skips < 2; skips++) {
        open_bed(&b, TL_UPDATES_FUSED, 0, 1);
        start(&b);
        assert_int_equal(tl_skip_updates(b.run, 1), TL_OK);
        train(&b, 1);
        assert_int_equal(save(b.run, &s), TL_OK);
        assert_int_equal(tl_skip_updates(b.run, skips), TL_OK);
        forget_skipping(&s, 4 + 8 + 4 + 4);
        assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_OK);
        train(&b, 1);
        check_updates(&b, skips ? 0 : LAYERS, "older save");
        close_bed(&b);
    }
}

static void a_torn_pass_is_not_gone_on_with(void **state) {
    static const float zero[WEIGHTS] = { 0 };
    static bed b;
    static by_hand h;
    static saved s;
    int layer, holds;
    (void)state;
    for (holds = 0; holds < 2; holds++) {
        open_bed(&b, TL_UPDATES_FUSED, 0, holds);
        start(&b);
        tear(&b, 2);
        check_torn(&b);
        for (layer = 0; layer < LAYERS; layer++) {
            tl_tensor t;
            t.node = b.state_of[layer];
            for (t.output = 0; t.output < 2; t.output++) {
                check_torn(&b);     // those that are written are not yet all
                assert_int_equal(tl_write_tensor(b.run, t, t.output ? zero : b.initial[layer], sizeof zero), TL_OK);
            }
        }
        train(&b, STEPS / 2);
        assert_int_equal(save(b.run, &s), TL_OK);
        tear(&b, LAYERS - 1);
        check_torn(&b);
        assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_OK);
        train(&b, STEPS - STEPS / 2);
        hand_train(&b, &h, 1);
        check_weights(&b, &h, "torn");
        // A pass that ends before its first update is run again as it was; one that ends in it is not.
        b.n.fault = LOSS_FAILS;
        assert_int_equal(tl_run_plan(b.run), TL_ERROR_KERNEL);
        b.n.fault = NO_FAULT;
        check_weights(&b, &h, "before");
        train(&b, 1);
        tear(&b, 0);
        check_torn(&b);
        close_bed(&b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_the_loop_by_hand),
        cmocka_unit_test(a_state_has_the_seed_of_its_node),
        cmocka_unit_test(clipping_sees_every_gradient),
        cmocka_unit_test(skipped_updates_add_up),
        cmocka_unit_test(other_ways_to_run_train_the_same),
        cmocka_unit_test(a_c_program_trains_as_by_hand),
        cmocka_unit_test(rehearsal_knows_updates),
        cmocka_unit_test(rehearsal_knows_what_clips),
        cmocka_unit_test(what_states_cannot_do_is_refused),
        cmocka_unit_test(a_save_has_weights_moments_and_sums),
        cmocka_unit_test(a_save_in_a_pass_knows_what_was_updated),
        cmocka_unit_test(a_save_knows_whether_updates_are_skipped),
        cmocka_unit_test(an_older_save_leaves_whether_updates_are_skipped),
        cmocka_unit_test(variables_alone_are_no_save_of_states),
        cmocka_unit_test(a_c_program_clips_in_the_last_micro_batch),
        cmocka_unit_test(weights_go_to_an_inference_without_moments),
        cmocka_unit_test(a_torn_pass_is_not_gone_on_with),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
