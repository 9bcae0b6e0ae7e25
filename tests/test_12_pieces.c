// [12] RUN of states that are trained in pieces: gradients by rows, each updated before the next is made. Weights are those of
// the same training by hand, and the run takes what was planned.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

enum { BATCH = 3, LAYERS = 3, STEPS = 12, MOST = 64 * 48, NODES = 2 * LAYERS + 2, LOSS = NODES - 1,
       ALIGNMENT = 64 };                    // of the backend

static const int widths[LAYERS + 1] = { 48, 64, 20, 7 };       // of the input, and of what each layer makes

// -- kernels: y = x W^T, with a row of W for each output; momentum; half of the square --

static int inputs_of(int layer) { return widths[layer]; }
static int rows_of(int layer) { return widths[layer + 1]; }
static int layer_of(int32_t node) { return (int)(node - 1) / 2; }
static int32_t state_of(int layer) { return 2 * layer + 1; }
static int32_t dense_of(int layer) { return 2 * layer + 2; }

static void dense(int layer, const float *x, const float *w, float *y) {
    int b, o, i, ins = inputs_of(layer), outs = rows_of(layer);
    for (b = 0; b < BATCH; b++)
        for (o = 0; o < outs; o++) {
            float sum = 0;
            for (i = 0; i < ins; i++) sum += x[b * ins + i] * w[o * ins + i];
            y[b * outs + o] = sum;
        }
}

static void dense_inputs(int layer, const float *w, const float *dy, float *dx) {
    int b, o, i, ins = inputs_of(layer), outs = rows_of(layer);
    for (b = 0; b < BATCH; b++)
        for (o = 0; o < outs; o++)
            for (i = 0; i < ins; i++) dx[b * ins + i] += dy[b * outs + o] * w[o * ins + i];
}

// The rows first .. first + count - 1 of the gradient of W, of which dw is the first.
static void dense_rows(int layer, const float *x, const float *dy, float *dw, int first, int count) {
    int b, o, i, ins = inputs_of(layer), outs = rows_of(layer);
    for (o = first; o < first + count; o++)
        for (b = 0; b < BATCH; b++)
            for (i = 0; i < ins; i++) dw[(o - first) * ins + i] += x[b * ins + i] * dy[b * outs + o];
}

static void momentum(float *w, float *m, const float *g, int count) {
    int i;
    for (i = 0; i < count; i++) {
        m[i] = 0.9f * m[i] + g[i];
        w[i] -= 0.002f * m[i];
    }
}

typedef enum fault { NO_FAULT, IGNORES_ROWS, UPDATE_FAILS, PIECE_FAILS, FORGETS_A_ROW, READS_WEIGHTS, UPDATES_FIRST_ROWS,
                     IGNORES_X } fault;

typedef struct net {
    fault   fault;
    int     fails_in, waits;         // the call of that kind that fails; 1 = no kernel is ready at once
    int     updates, pieces;         // calls for pieces
    int     widest;                  // most rows of a call for a piece
    int     is_rehearsed;            // 1 = kernels find junk and guards
    uint64_t work;                   // bytes of scratch that a call for a piece gets
    float   x[BATCH * 48];
    float   initial[LAYERS][MOST];
} net;

static float *f32(tl_operand operand) { return (float *)operand.host; }

static tl_result forward(const tl_kernel_call *call, void *user) {
    if (((net *)user)->waits && !call->polled) return TL_NOT_READY;
    dense(layer_of(call->node), f32(call->inputs[0]), f32(call->inputs[1]), f32(call->outputs[0]));
    return TL_OK;
}

// Kernels may write all of their scratch; a gradient that lay there would be lost.
static void use_scratch(const tl_kernel_call *call) {
    if (call->scratch.host) memset(call->scratch.host, 0xEE, (size_t)call->scratch.range.bytes);
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    net *n = (net *)user;
    int layer = layer_of(call->node), first = 0, count = rows_of(layer), whole;
    float *dx = f32(call->input_grads[0]), *dw = f32(call->input_grads[1]);
    if (n->waits && !call->polled) return TL_NOT_READY;
    use_scratch(call);
    whole = call->input_grads[1].range.bytes == (uint64_t)count * (uint64_t)inputs_of(layer) * 4;
    if (dx) dense_inputs(layer, f32(call->inputs[1]), f32(call->output_grads[0]), dx);
    if (!dw) return TL_OK;
    if (!whole) {
        assert_null(dx);
        assert_true(n->is_rehearsed || !call->inputs[1].host);      // some of its rows were updated
        assert_int_equal(call->inputs[1].range.bytes, 0);
        assert_int_equal(call->total, rows_of(layer));
        if (!n->is_rehearsed) assert_int_equal(call->scratch.range.bytes, n->work);
        if (!n->is_rehearsed) assert_int_equal((uintptr_t)dw % ALIGNMENT, 0);
        assert_int_equal(call->count * (uint64_t)inputs_of(layer) * 4, call->input_grads[1].range.bytes);
        first = (int)call->first;
        count = (int)call->count;
        if (count > n->widest) n->widest = count;
        if (n->fault == PIECE_FAILS && n->pieces == n->fails_in) return TL_ERROR_CORRUPT;
        n->pieces++;
        if (n->fault == IGNORES_ROWS) first = 0;
        if (n->fault == FORGETS_A_ROW) count--;
        if (n->fault == READS_WEIGHTS) dw[0] += f32(call->inputs[1]) ? 0 * f32(call->inputs[1])[0] : 1;     // also where it is worth 0
    }
    dense_rows(layer, n->fault == IGNORES_X ? n->initial[0] : f32(call->inputs[0]), f32(call->output_grads[0]), dw, first, count);
    return TL_OK;
}

static tl_result update(const tl_kernel_call *call, void *user) {
    net *n = (net *)user;
    if (n->waits && !call->polled) return TL_NOT_READY;
    if (n->fault == UPDATE_FAILS && n->updates == n->fails_in) return TL_ERROR_CORRUPT;
    n->updates++;
    if (n->fault == UPDATES_FIRST_ROWS && call->first) return TL_OK;
    use_scratch(call);
    assert_int_equal(call->outputs[0].range.bytes, call->output_grads[0].range.bytes);
    assert_int_equal(call->outputs[1].range.bytes, call->output_grads[0].range.bytes);
    momentum(f32(call->outputs[0]), f32(call->outputs[1]), f32(call->output_grads[0]), (int)(call->outputs[0].range.bytes / 4));
    return TL_OK;
}

static tl_result loss_forward(const tl_kernel_call *call, void *user) {
    int i;
    (void)user;
    f32(call->outputs[0])[0] = 0;
    for (i = 0; i < BATCH * widths[LAYERS]; i++) f32(call->outputs[0])[0] += 0.5f * f32(call->inputs[0])[i] * f32(call->inputs[0])[i];
    return TL_OK;
}

static tl_result loss_backward(const tl_kernel_call *call, void *user) {
    int i;
    (void)user;
    for (i = 0; i < BATCH * widths[LAYERS]; i++) f32(call->input_grads[0])[i] += f32(call->inputs[0])[i] * f32(call->output_grads[0])[0];
    return TL_OK;
}

// -- the net as operations --

typedef struct bed {
    net       n;
    tl_env    env;
    tl_backend cpu;
    tl_op     ops[NODES];
    tl_tensor reads[NODES][2];
    uint64_t  moments[LAYERS];
    tl_run_desc desc;
    tl_run_figures figures;
    tl_run   *run;
} bed;

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    const tl_tensor x = { 0, 0 };
    (void)micro_batch;
    return tl_write_tensor(run, x, ((bed *)user)->n.x, sizeof ((bed *)user)->n.x);
}

static void open_bed(bed *b) {
    tl_random random = { 11 };
    tl_cpu_backend_desc cpu;
    int layer, i;
    memset(b, 0, sizeof *b);
    memset(&cpu, 0, sizeof cpu);
    cpu.alignment_bytes = ALIGNMENT;
    for (i = 0; i < BATCH * widths[0]; i++) b->n.x[i] = (float)tl_next_random_below(&random, 1000) / 1000.0f - 0.5f;
    b->ops[0].kind = "input";
    b->ops[0].output_bytes = sizeof b->n.x;
    for (layer = 0; layer < LAYERS; layer++) {
        tl_op *state = &b->ops[state_of(layer)], *op = &b->ops[dense_of(layer)];
        for (i = 0; i < rows_of(layer) * inputs_of(layer); i++)
            b->n.initial[layer][i] = (float)tl_next_random_below(&random, 1000) / 2000.0f - 0.25f;
        b->moments[layer] = (uint64_t)(rows_of(layer) * inputs_of(layer)) * 4;
        state->kind = "momentum";
        state->state = TL_STATE_TRAINED;
        state->output_bytes = b->moments[layer];
        state->moments = &b->moments[layer];
        state->moment_count = 1;
        state->weight_rows = rows_of(layer);
        state->initial = b->n.initial[layer];
        state->backward = update;
        state->bwd_cost = 10;
        state->user = &b->n;
        op->kind = "dense";
        op->forward = forward;
        op->backward = backward;
        op->user = &b->n;
        op->output_bytes = (uint64_t)(BATCH * rows_of(layer)) * 4;
        op->fwd_cost = 1000;
        op->bwd_cost = 2000;
        op->inputs = b->reads[dense_of(layer)];
        op->input_count = 2;
        b->reads[dense_of(layer)][0].node = layer ? dense_of(layer - 1) : 0;
        b->reads[dense_of(layer)][1].node = state_of(layer);
    }
    b->ops[LOSS].kind = "loss";
    b->ops[LOSS].forward = loss_forward;
    b->ops[LOSS].backward = loss_backward;
    b->ops[LOSS].output_bytes = 4;
    b->ops[LOSS].keep = 1;
    if (tl_init_cpu_backend(&b->env, &cpu, &b->cpu)) fail_msg("%s", b->env.error.text);
    b->desc.backend = &b->cpu;
    b->desc.load = load;
    b->desc.load_user = b;
    b->desc.work_limit = 2000000;
    b->desc.figures = &b->figures;
    b->desc.may_train_in_pieces = 1;
    b->desc.piece_call_cost = 1;
}

static void close_bed(bed *b) {
    tl_free_run(b->run);
    if (tl_free_cpu_backend(&b->env, &b->cpu)) fail_msg("%s", b->env.error.text);
}

static void start(bed *b) {
    if (tl_init_op_run(&b->env, &b->desc, b->ops, NODES, &b->run)) fail_msg("%s", b->env.error.text);
}

// The states that the run trains in pieces, and in how many.
static int count_pieces(const bed *b, int *states) {
    const tl_graph *graph = tl_find_run_graph(b->run);
    int layer, pieces = 0;
    *states = 0;
    for (layer = 0; layer < LAYERS; layer++) {
        const tl_node *node = &graph->nodes[state_of(layer)];
        if (node->state != TL_STATE_PIECES) continue;
        ++*states;
        pieces += (node->weight_rows + node->piece_rows - 1) / node->piece_rows;
    }
    return pieces;
}

// -- by hand --

typedef struct by_hand { float w[LAYERS][MOST], m[LAYERS][MOST]; } by_hand;

static void train_by_hand(const bed *b, by_hand *h, int steps) {
    static float y[LAYERS + 1][BATCH * 64], dy[LAYERS + 1][BATCH * 64], g[MOST];
    int step, layer, i;
    memset(h, 0, sizeof *h);
    memcpy(h->w, b->n.initial, sizeof h->w);
    for (step = 0; step < steps; step++) {
        memcpy(y[0], b->n.x, sizeof b->n.x);
        memset(dy, 0, sizeof dy);
        for (layer = 0; layer < LAYERS; layer++) dense(layer, y[layer], h->w[layer], y[layer + 1]);
        for (i = 0; i < BATCH * widths[LAYERS]; i++) dy[LAYERS][i] = y[LAYERS][i];
        for (layer = LAYERS; layer-- > 0;) {
            memset(g, 0, sizeof g);
            dense_inputs(layer, h->w[layer], dy[layer + 1], dy[layer]);
            dense_rows(layer, y[layer], dy[layer + 1], g, 0, rows_of(layer));
            momentum(h->w[layer], h->m[layer], g, rows_of(layer) * inputs_of(layer));
        }
    }
}

static int same_weights(bed *b, const by_hand *h) {
    static float values[MOST];
    int layer;
    for (layer = 0; layer < LAYERS; layer++) {
        size_t bytes = (size_t)(rows_of(layer) * inputs_of(layer)) * 4;
        tl_tensor t;
        t.node = state_of(layer);
        for (t.output = 0; t.output < 2; t.output++) {
            if (tl_read_tensor(b->run, t, values, bytes)) fail_msg("%s", b->env.error.text);
            if (memcmp(values, t.output ? h->m[layer] : h->w[layer], bytes) != 0) return 0;
        }
    }
    return 1;
}

static void train(bed *b, int steps) {
    tl_run_report report;
    int step;
    for (step = 0; step < steps; step++) {
        if (tl_run_plan(b->run)) fail_msg("%s", b->env.error.text);
        tl_measure_run(b->run, &report);
        assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
        assert_int_equal(report.planned_taken_bytes, report.taken_bytes);
        assert_int_equal(report.update_count, LAYERS);
        assert_true(!b->figures.budget_bytes || report.taken_bytes <= b->figures.budget_bytes);
    }
}

// -- tests --

// From whole gradients to rows one by one, the weights are those of the loop by hand, in fewer and fewer bytes.
static void weights_are_those_of_the_loop_by_hand(void **state) {
    static bed b;
    static by_hand h;
    uint64_t whole_least, least;
    int k, states, before = 0, most = 0;
    (void)state;
    open_bed(&b);
    b.desc.may_train_in_pieces = 0;
    start(&b);
    whole_least = b.figures.least_bytes;
    assert_int_equal(count_pieces(&b, &states), 0);
    close_bed(&b);
    open_bed(&b);
    start(&b);
    least = b.figures.least_bytes;
    assert_true(least < whole_least);
    assert_int_equal(count_pieces(&b, &states), 0);      // without a budget nothing is cut
    close_bed(&b);
    for (k = 0; k <= 6; k++) {
        tl_run_report report;
        int pieces;
        open_bed(&b);
        b.desc.budget_bytes = least + (b.figures.keep_all_bytes + whole_least - least) * (uint64_t)(6 - k) / 6;
        b.n.waits = k == 3;
        start(&b);
        pieces = count_pieces(&b, &states);
        assert_true(pieces >= before);
        before = pieces;
        if (pieces > most) most = pieces;
        if (b.n.waits) {
            int step;
            tl_result result = TL_NOT_READY;
            for (step = 0; step < STEPS; step++)
                do result = tl_run_plan(b.run); while (result == TL_NOT_READY);
            if (result) fail_msg("%s", b.env.error.text);
        } else {
            train(&b, STEPS);
        }
        train_by_hand(&b, &h, STEPS);
        if (!same_weights(&b, &h)) fail_msg("budget %lu: other weights", (unsigned long)b.desc.budget_bytes);
        assert_int_equal(b.n.updates, STEPS * (pieces + LAYERS - states));
        assert_int_equal(b.n.pieces, STEPS * pieces);
        tl_measure_run(b.run, &report);
        assert_int_equal(report.kernel_count, report.forward_count + report.backward_count + 2 * pieces);
        close_bed(&b);
    }
    print_message("%d pieces at most\n", most);
    assert_true(most >= 20);
}

// The least budget that a refusal names is one that works, and is what the figures say.
static void a_refusal_names_the_least_budget_of_pieces(void **state) {
    static bed b;
    uint64_t least;
    (void)state;
    open_bed(&b);
    b.desc.budget_bytes = 1000;
    assert_int_equal(tl_init_op_run(&b.env, &b.desc, b.ops, NODES, &b.run), TL_ERROR_INFEASIBLE);
    least = b.figures.least_bytes;
    close_bed(&b);
    open_bed(&b);
    b.desc.budget_bytes = least;
    start(&b);
    train(&b, 1);
    close_bed(&b);
    open_bed(&b);
    b.desc.budget_bytes = least - 1;
    assert_int_equal(tl_init_op_run(&b.env, &b.desc, b.ops, NODES, &b.run), TL_ERROR_INFEASIBLE);
    close_bed(&b);
}

// -- pieces by hand --

// The run of a graph that has pieces of so many rows in a layer.
static void cut(bed *b, int layer, int32_t rows) {
    tl_op *state = &b->ops[state_of(layer)];
    b->desc.may_train_in_pieces = 0;
    state->state = TL_STATE_PIECES;
    state->piece_rows = rows;
    state->bwd_cost = 0;
    b->ops[dense_of(layer)].bwork_bytes = (uint64_t)(rows * inputs_of(layer)) * 4;
}

// The same of the first layer.
static void start_in_pieces(bed *b, int32_t rows) { cut(b, 0, rows); }

static void sizes_of_pieces_change_no_bit(void **state) {
    static bed b;
    static by_hand h;
    int32_t rows;
    (void)state;
    for (rows = 1; rows <= rows_of(0); rows += rows < 5 ? 1 : 13) {
        open_bed(&b);
        start_in_pieces(&b, rows);
        start(&b);
        train(&b, STEPS);
        train_by_hand(&b, &h, STEPS);
        assert_true(same_weights(&b, &h));
        assert_int_equal(b.n.widest, rows == rows_of(0) ? 0 : rows);
        assert_int_equal(b.n.pieces, rows == rows_of(0) ? 0 : STEPS * ((rows_of(0) + rows - 1) / rows));
        close_bed(&b);
    }
}

// What the scratch has beside a piece is the kernels', down to a multiple of the alignment; all layers may have pieces.
static void pieces_lie_behind_the_scratch_of_kernels(void **state) {
    static bed b;
    static by_hand h;
    int layer, work;
    (void)state;
    for (work = 0; work <= 200; work += 40) {
        open_bed(&b);
        for (layer = 0; layer < LAYERS; layer++) {
            cut(&b, layer, 4);
            b.ops[dense_of(layer)].bwork_bytes += (uint64_t)work;
        }
        b.n.work = (uint64_t)(work / ALIGNMENT * ALIGNMENT);
        start(&b);
        train(&b, STEPS);
        train_by_hand(&b, &h, STEPS);
        assert_true(same_weights(&b, &h));
        close_bed(&b);
    }
}

// A backward writes the weight: it waits for a forward above it that reads it, whatever else it needs.
static void a_piece_waits_for_those_who_read_the_weight(void **state) {
    static const char steps[] = "F 2\nF 4\nF 6\nF 7\nB 7\nD 6\nF 6\nB 6\nB 4\nB 3\nB 2\nB 1\nD 2\nD 4\nD 6\n";
    static bed b;
    tl_plan plan;
    tl_run_step now;
    int32_t done = 0, seen = 0;
    int layer;
    (void)state;
    open_bed(&b);
    for (layer = 0; layer < LAYERS; layer++) b.ops[dense_of(layer)].needs = "in";
    cut(&b, 2, 4);
    if (tl_parse_schedule(&b.env, steps, sizeof steps - 1, &plan)) fail_msg("%s", b.env.error.text);
    b.desc.plan = &plan;
    start(&b);
    assert_int_equal(load(b.run, 0, &b), TL_OK);
    assert_int_equal(tl_start_pass(b.run, 0), TL_OK);
    while (!seen) {
        if (tl_next_step(b.run, &now, &done)) fail_msg("%s", b.env.error.text);
        seen = now.is_compute && now.index == 7;
        if (seen) assert_int_equal(now.depends_on, 6);
        if (now.is_compute) assert_int_equal(tl_run_step_kernel(b.run, &now), TL_OK);
    }
    close_bed(&b);
    tl_free_plan(NULL, &plan);
}

// Pulled step by step, each piece is a call of its own step; none is called twice, and no step is opened between them.
static void steps_are_pulled_piece_by_piece(void **state) {
    static bed b;
    static by_hand h;
    int step;
    (void)state;
    open_bed(&b);
    start_in_pieces(&b, 10);
    start(&b);
    for (step = 0; step < 3; step++) {
        tl_run_step now, other, last;
        int32_t done = 0, index = -1, of_index = 0;
        memset(&last, 0, sizeof last);
        assert_int_equal(load(b.run, 0, &b), TL_OK);
        assert_int_equal(tl_start_pass(b.run, 0), TL_OK);
        for (;;) {
            if (tl_next_step(b.run, &now, &done)) fail_msg("%s", b.env.error.text);
            if (done) break;
            if (!now.is_compute) continue;
            of_index = now.index == index ? of_index + 1 : 0;
            index = now.index;
            if (of_index) assert_int_equal(now.depends_on, index);
            if (of_index && of_index % 2 == 0) assert_int_equal(now.call.node, state_of(0));
            assert_int_equal(tl_next_step(b.run, &other, &done), TL_ERROR_INVALID_ARG);   // not carried out yet
            if (of_index) assert_int_equal(tl_run_step_kernel(b.run, &last), TL_ERROR_STALE);   // the call before
            assert_int_equal(tl_run_step_kernel(b.run, &now), TL_OK);
            assert_int_equal(tl_run_step_kernel(b.run, &now), TL_ERROR_STALE);
            last = now;
        }
        assert_int_equal(of_index, 2 * 7);       // the last step: 64 rows in pieces of 10
    }
    train_by_hand(&b, &h, 3);
    assert_true(same_weights(&b, &h));
    close_bed(&b);
}

// Two states of as many rows at one node: the call for one is not that for the other.
static tl_result take_rows(const tl_kernel_call *call, void *user) {
    (void)user;
    if (call->kind != TL_STEP_BACKWARD) memset(call->outputs[0].host, 0, (size_t)call->outputs[0].range.bytes);
    return TL_OK;
}

static void calls_for_two_states_are_told_apart(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nstate 1 v sgd w=64 wrows=4 piece=2\n"
        "state 2 w sgd w=64 wrows=4 piece=2\nnode 3 y dense fwd=1 bwd=1 out=8 needs=none in=0,1,2 bwork=32\nend 4\n";
    static bed b;
    tl_kernel kernels[2];
    tl_run_step calls[16];
    tl_cpu_backend_desc cpu;
    tl_graph graph;
    tl_plan plan;
    int32_t done = 0, count = 0, i;
    (void)state;
    memset(&b, 0, sizeof b);
    memset(kernels, 0, sizeof kernels);
    memset(&cpu, 0, sizeof cpu);
    cpu.alignment_bytes = 4;
    kernels[0].op = "dense";
    kernels[0].forward = kernels[0].backward = kernels[1].backward = take_rows;
    kernels[1].op = "sgd";
    assert_int_equal(tl_init_cpu_backend(&b.env, &cpu, &b.cpu), TL_OK);
    assert_int_equal(tl_parse_graph(&b.env, text, sizeof text - 1, &graph), TL_OK);
    assert_int_equal(tl_plan_keep_all(&b.env, &graph, 0, &plan), TL_OK);
    b.desc.graph = &graph;
    b.desc.plan = &plan;
    b.desc.backend = &b.cpu;
    b.desc.kernels = kernels;
    b.desc.kernel_count = 2;
    if (tl_init_run(&b.env, &b.desc, &b.run) || tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
    while (!done) {
        tl_run_step now;
        assert_int_equal(tl_next_step(b.run, &now, &done), TL_OK);
        if (done || !now.is_compute) continue;
        for (i = 0; i < count; i++) assert_int_equal(tl_run_step_kernel(b.run, &calls[i]), TL_ERROR_STALE);
        calls[count++] = now;
        assert_int_equal(tl_run_step_kernel(b.run, &now), TL_OK);
    }
    assert_int_equal(count, 1 + 1 + 2 * 4);
    tl_free_plan(&b.env, &plan);
    tl_free_run(b.run);
    tl_free_graph(&b.env, &graph);
    assert_int_equal(tl_free_cpu_backend(&b.env, &b.cpu), TL_OK);
}

// -- saves, and passes that are given up --

typedef struct saved { char bytes[1 << 17]; size_t count; } saved;

static tl_result to_memory(void *user, const char *bytes, size_t length) {
    saved *s = (saved *)user;
    assert_true(s->count + length <= sizeof s->bytes);
    memcpy(s->bytes + s->count, bytes, length);
    s->count += length;
    return TL_OK;
}

// Saved behind any step of a pass, another run goes on to the same weights.
static void a_save_in_a_pass_knows_what_was_updated(void **state) {
    static bed b, other;
    static by_hand h;
    static saved s;
    int32_t at, saves = 0, is_over = 0;
    (void)state;
    for (at = 1; !is_over; at++) {
        tl_run_step now;
        int32_t done = 0, k;
        tl_sink sink;
        sink.write = to_memory;
        sink.user = &s;
        open_bed(&b);
        start_in_pieces(&b, 24);
        start(&b);
        train(&b, 2);
        assert_int_equal(load(b.run, 0, &b), TL_OK);
        assert_int_equal(tl_start_pass(b.run, 0), TL_OK);
        for (k = 0; k < at && !done; k++) {      // calls and memory steps
            if (tl_next_step(b.run, &now, &done)) fail_msg("%s", b.env.error.text);
            if (!done && now.is_compute && tl_run_step_kernel(b.run, &now)) fail_msg("%s", b.env.error.text);
        }
        is_over = done;
        s.count = 0;
        if (!done && tl_save_run(b.run, sink) == TL_OK) {     // which is refused between two pieces
            saves++;
            open_bed(&other);
            start_in_pieces(&other, 24);
            start(&other);
            if (tl_load_run(other.run, s.bytes, s.count)) fail_msg("%s", other.env.error.text);
            while (!done) {
                if (tl_next_step(other.run, &now, &done)) fail_msg("%s", other.env.error.text);
                if (!done && now.is_compute && tl_run_step_kernel(other.run, &now)) fail_msg("%s", other.env.error.text);
            }
            train(&other, 2);
            train_by_hand(&other, &h, 5);
            assert_true(same_weights(&other, &h));
            close_bed(&other);
        }
        close_bed(&b);
    }
    assert_true(saves >= 7 && saves < at - 4);     // 3 forwards, 4 backwards and the updates that are steps; 6 calls for pieces
}

// Write the weight and the moment of a layer as they were at first.
static void write_state(bed *b, int layer) {
    static const float zero[MOST];
    size_t bytes = (size_t)(rows_of(layer) * inputs_of(layer)) * 4;
    tl_tensor t;
    t.node = state_of(layer);
    t.output = 0;
    assert_int_equal(tl_write_tensor(b->run, t, b->n.initial[layer], bytes), TL_OK);
    t.output = 1;
    assert_int_equal(tl_write_tensor(b->run, t, zero, bytes), TL_OK);
}

// Between training steps a save loads into a run with other pieces, or none; and back.
static void a_save_goes_on_within_another_budget(void **state) {
    static bed b;
    static by_hand h;
    static saved s;
    uint64_t budgets[4], least;
    tl_sink sink;
    int k, states;
    (void)state;
    sink.write = to_memory;
    sink.user = &s;
    open_bed(&b);
    start(&b);
    least = b.figures.least_bytes;
    budgets[0] = budgets[3] = b.figures.keep_all_bytes;
    budgets[1] = least;
    budgets[2] = (least + b.figures.keep_all_bytes) / 2;
    close_bed(&b);
    for (k = 0; k < 4; k++) {
        open_bed(&b);
        b.desc.budget_bytes = budgets[k];
        start(&b);
        assert_int_equal(count_pieces(&b, &states) > 0, k == 1 || k == 2);
        if (k && tl_load_run(b.run, s.bytes, s.count)) fail_msg("%s", b.env.error.text);
        train(&b, 2);
        s.count = 0;
        assert_int_equal(tl_save_run(b.run, sink), TL_OK);
        train_by_hand(&b, &h, 2 * (k + 1));
        assert_true(same_weights(&b, &h));
        close_bed(&b);
    }
}

// Where nothing may be cut, no figure says that it would be.
static void figures_are_of_what_may_be_cut(void **state) {
    static bed b;
    tl_loss_scaler scaler;
    uint64_t whole, cut_least;
    int k;
    (void)state;
    open_bed(&b);
    start(&b);
    cut_least = b.figures.least_bytes;
    close_bed(&b);
    open_bed(&b);
    b.desc.may_train_in_pieces = 0;
    start(&b);
    whole = b.figures.least_bytes;
    close_bed(&b);
    assert_true(cut_least < whole);
    for (k = 0; k < 2; k++) {
        open_bed(&b);
        memset(&scaler, 0, sizeof scaler);
        scaler.scale = 8;
        if (k) b.desc.loss_scaler = &scaler;
        else b.desc.in_flight = 2;
        b.desc.budget_bytes = 1;
        assert_true(tl_init_op_run(&b.env, &b.desc, b.ops, NODES, &b.run) != TL_OK);
        assert_true(b.figures.least_bytes == 0 || b.figures.least_bytes >= whole);
        close_bed(&b);
    }
}

// After an error in a piece some rows are of one training step and some of the next: no pass begins before all are written.
static void a_pass_that_fails_in_a_piece_is_torn(void **state) {
    static bed b;
    static by_hand h;
    int fails_in, is_update, layer;
    (void)state;
    for (is_update = 0; is_update < 2; is_update++)
        for (fails_in = 0; fails_in < 3; fails_in++) {
            open_bed(&b);
            start_in_pieces(&b, 30);
            start(&b);
            b.n.fault = is_update ? UPDATE_FAILS : PIECE_FAILS;
            b.n.fails_in = is_update ? LAYERS - 1 + fails_in : fails_in;
            assert_int_equal(tl_run_plan(b.run), TL_ERROR_KERNEL);
            b.n.fault = NO_FAULT;
            for (layer = LAYERS; layer-- > 0;) {
                assert_int_equal(tl_run_plan(b.run), TL_ERROR_INVALID_ARG);
                assert_non_null(strstr(b.env.error.text, "a pass was given up in or behind an update"));
                write_state(&b, layer);
            }
            train(&b, 2);
            train_by_hand(&b, &h, 2);
            assert_true(same_weights(&b, &h));
            close_bed(&b);
        }
}

// Where nothing was updated before, it is the first piece used that tears.
static void the_first_update_of_a_piece_tears(void **state) {
    static bed b;
    int is_update;
    (void)state;
    for (is_update = 0; is_update < 2; is_update++) {
        open_bed(&b);
        cut(&b, LAYERS - 1, 4);
        start(&b);
        b.n.fault = is_update ? UPDATE_FAILS : PIECE_FAILS;
        assert_int_equal(tl_run_plan(b.run), TL_ERROR_KERNEL);
        b.n.fault = NO_FAULT;
        if (is_update) assert_int_equal(tl_run_plan(b.run), TL_ERROR_INVALID_ARG);
        else train(&b, 1);
        close_bed(&b);
    }
}

// -- room --

// An env whose allocations end with bytes that nobody may write.
enum { FENCE = 512 };

static void *fenced_alloc(void *user, size_t bytes) {
    char *at = (char *)malloc(16 + bytes + FENCE);
    (void)user;
    if (!at) return NULL;
    memcpy(at, &bytes, sizeof bytes);
    memset(at + 16 + bytes, 0x5A, FENCE);
    return at + 16;
}

static void fenced_release(void *user, void *ptr) {
    char *at = (char *)ptr;
    size_t bytes, i;
    (void)user;
    if (!ptr) return;
    memcpy(&bytes, at - 16, sizeof bytes);
    for (i = 0; i < FENCE; i++) assert_int_equal(at[bytes + i], 0x5A);
    free(at - 16);
}

static tl_result count_call(const tl_kernel_call *call, void *user) {
    (void)call;
    ++*(int *)user;
    return TL_OK;
}

// A backward that updates many states with many moments writes more tensors than it has operands.
static void a_call_has_room_for_what_it_updates(void **state) {
    enum { STATES = 5, MOMENTS = 6, COUNT = STATES + 2 };
    tl_op ops[COUNT];
    tl_tensor reads[STATES + 1];
    uint64_t moments[MOMENTS];
    tl_run_desc desc;
    tl_cpu_backend_desc asked;
    tl_backend cpu;
    tl_env env;
    tl_run *run;
    int i, calls = 0;
    (void)state;
    memset(ops, 0, sizeof ops);
    memset(reads, 0, sizeof reads);
    memset(&desc, 0, sizeof desc);
    memset(&env, 0, sizeof env);
    env.alloc = fenced_alloc;
    env.release = fenced_release;
    memset(&asked, 0, sizeof asked);
    assert_int_equal(tl_init_cpu_backend(&env, &asked, &cpu), TL_OK);
    for (i = 0; i < MOMENTS; i++) moments[i] = 128;
    for (i = 0; i < COUNT; i++) {
        ops[i].kind = !i ? "input" : i < COUNT - 1 ? "sgd" : "sum";
        ops[i].output_bytes = 128;
        ops[i].user = &calls;
        if (i) ops[i].backward = count_call;
        if (i && i < COUNT - 1) {
            ops[i].state = TL_STATE_PIECES;
            ops[i].moments = moments;
            ops[i].moment_count = MOMENTS;
            ops[i].weight_rows = 2;
            ops[i].piece_rows = 1;
        }
        if (i < COUNT - 1) reads[i].node = i;
    }
    ops[COUNT - 1].forward = count_call;
    ops[COUNT - 1].inputs = reads;
    ops[COUNT - 1].input_count = STATES + 1;
    ops[COUNT - 1].bwork_bytes = 64;
    desc.backend = &cpu;
    if (tl_init_op_run(&env, &desc, ops, COUNT, &run)) fail_msg("%s", env.error.text);
    for (i = 0; i < COUNT - 1; i++) {
        tl_tensor t;
        char bytes[128] = { 0 };
        t.node = i;
        for (t.output = 0; t.output <= (i ? MOMENTS : 0); t.output++)
            assert_int_equal(tl_write_tensor(run, t, bytes, sizeof bytes), TL_OK);
    }
    if (tl_run_plan(run)) fail_msg("%s", env.error.text);
    assert_int_equal(calls, 2 + STATES * 2 * 2);
    tl_free_run(run);
    assert_int_equal(tl_free_cpu_backend(&env, &cpu), TL_OK);
}

// -- what is refused --

static void refused(bed *b, tl_result code, const char *words) {
    assert_int_equal(tl_init_op_run(&b->env, &b->desc, b->ops, NODES, &b->run), code);
    if (!strstr(b->env.error.text, words)) fail_msg("%s\nnot: %s", b->env.error.text, words);
    close_bed(b);
}

static void what_pieces_cannot_do_is_refused(void **state) {
    static const char begins[] = "F 2\nF 4\nF 6\nF 7\nB 7\nB 6\nB 5\nB 4\nB 3\nB 2 begin\nW 2\nD 2\nD 4\nD 6\n";
    static bed b;
    tl_cpu_backend_desc cpu;
    tl_loss_scaler scaler;
    tl_plan plan;
    int layer;
    (void)state;
    open_bed(&b);
    start_in_pieces(&b, 8);
    b.desc.repeat_count = 2;
    refused(&b, TL_ERROR_UNSUPPORTED, "graph: micro-batches need gradients that states hold (TL_STATE_HELD, tl_hold_gradients): n1 does not");
    open_bed(&b);
    start_in_pieces(&b, 8);
    b.desc.in_flight = 2;
    refused(&b, TL_ERROR_UNSUPPORTED, "in_flight: above 1, with state n1 in pieces");
    open_bed(&b);
    start_in_pieces(&b, 65);
    refused(&b, TL_ERROR_INVALID_ARG, "piece: must be 1 to wrows, of a state in pieces alone");
    open_bed(&b);
    start_in_pieces(&b, 8);
    b.ops[dense_of(0)].bwork_bytes--;
    refused(&b, TL_ERROR_INVALID_ARG, "bwork: must hold a piece of a gradient");
    open_bed(&b);
    start_in_pieces(&b, 8);
    b.ops[state_of(0)].bwd_cost = 10;
    refused(&b, TL_ERROR_INVALID_ARG, "bwd: must be 0");
    open_bed(&b);
    b.ops[state_of(1)].weight_rows = 63;
    refused(&b, TL_ERROR_INVALID_ARG, "wrows (weight_rows): must divide weight and moments");
    open_bed(&b);
    b.ops[dense_of(0)].weight_rows = 4;
    refused(&b, TL_ERROR_INVALID_ARG, "moments and initial are of states");
    open_bed(&b);
    start_in_pieces(&b, 8);
    start(&b);
    assert_int_equal(tl_skip_updates(b.run, 1), TL_ERROR_INVALID_ARG);
    close_bed(&b);
    open_bed(&b);
    for (layer = 0; layer < LAYERS; layer++) cut(&b, layer, 4);
    start(&b);
    assert_int_equal(tl_skip_updates(b.run, 1), TL_ERROR_INVALID_ARG);
    close_bed(&b);
    open_bed(&b);
    for (layer = 0; layer < LAYERS; layer++) cut(&b, layer, 4);
    scaler = tl_default_loss_scaler(NULL);
    b.desc.loss_scaler = &scaler;
    refused(&b, TL_ERROR_UNSUPPORTED, "loss_scaler");
    open_bed(&b);
    start_in_pieces(&b, 0);         // how many rows it has is unknown
    b.ops[state_of(0)].weight_rows = 0;
    refused(&b, TL_ERROR_UNSUPPORTED, "n1: its pieces are unknown, or not aligned");
    open_bed(&b);
    start_in_pieces(&b, 1);         // of no bytes, so that its reader has no scratch and may be begun
    b.ops[state_of(0)].output_bytes = b.moments[0] = 0;
    b.ops[state_of(0)].initial = NULL;
    b.ops[dense_of(0)].bwork_bytes = 0;
    if (tl_parse_schedule(&b.env, begins, sizeof begins - 1, &plan)) fail_msg("%s", b.env.error.text);
    b.desc.plan = &plan;
    b.desc.figures = NULL;
    refused(&b, TL_ERROR_UNSUPPORTED, "plan: step 9 begins what is not one call of one kernel");
    tl_free_plan(NULL, &plan);
    open_bed(&b);
    start_in_pieces(&b, 1);         // rows of 192 bytes
    assert_int_equal(tl_free_cpu_backend(&b.env, &b.cpu), TL_OK);
    memset(&cpu, 0, sizeof cpu);
    cpu.alignment_bytes = 128;
    assert_int_equal(tl_init_cpu_backend(&b.env, &cpu, &b.cpu), TL_OK);
    refused(&b, TL_ERROR_UNSUPPORTED, "n1: its pieces are unknown, or not aligned");
}

// In another precision the bytes of states stay, and so does the room for a piece of a gradient.
static void other_precisions_leave_pieces_as_they_are(void **state) {
    tl_strategy strategy = tl_with_memory(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_HALF), TL_MODE_LAZY), TL_MEMORY_POOLED);
    static bed b;
    (void)state;
    open_bed(&b);
    start_in_pieces(&b, 8);
    strategy = tl_with_gradient(strategy, tl_gradient_checkpointed(0));
    b.desc.strategy = &strategy;
    b.desc.kernel_precisions = 1u << TL_PRECISION_HALF;
    b.desc.figures = NULL;          // which are of single precision
    start(&b);
    assert_int_equal(tl_find_run_graph(b.run)->nodes[dense_of(0)].bwork_bytes, 8 * inputs_of(0) * 4);
    close_bed(&b);
}

// -- rehearsals --

// What a kernel makes of ranges of rows is looked at before anything is cut, and where states are in pieces.
static void a_rehearsal_knows_pieces(void **state) {
    static const struct { fault fault; const char *node; int in_pieces; } rows[] = {
        { NO_FAULT, NULL, 0 }, { NO_FAULT, NULL, 1 }, { IGNORES_ROWS, "n2", 0 }, { IGNORES_ROWS, "n2", 1 }, { FORGETS_A_ROW, "n2", 0 },
        { FORGETS_A_ROW, "n2", 1 }, { READS_WEIGHTS, "n2", 0 }, { READS_WEIGHTS, "n2", 1 }, { UPDATES_FIRST_ROWS, "n1", 0 } };
    static bed b;
    size_t k;
    (void)state;
    for (k = 0; k < sizeof rows / sizeof *rows; k++) {
        tl_rehearsal found;
        tl_result result;
        int32_t i;
        open_bed(&b);
        if (rows[k].in_pieces) start_in_pieces(&b, 8);
        b.n.fault = rows[k].fault;
        b.n.is_rehearsed = 1;
        b.desc.rehearsal = &found;
        result = tl_init_op_run(&b.env, &b.desc, b.ops, NODES, &b.run);
        if (!rows[k].node && result) fail_msg("%s", b.env.error.text);
        for (i = 0; i < found.finding_count; i++) {
            if (found.findings[i].kind != TL_FINDING_ROWS_IGNORED) continue;
            assert_non_null(rows[k].node);
            if (found.findings[i].node == atoi(rows[k].node + 1)) break;
        }
        if (rows[k].node && (result != TL_ERROR_MISMATCH || i == found.finding_count))
            fail_msg("fault %d, in pieces %d: %s", (int)rows[k].fault, rows[k].in_pieces, b.env.error.text);
        tl_free_rehearsal(&b.env, &found);
        close_bed(&b);
    }
}

// Calls for rows read what the call before them does not, which makes all other gradients: needs must name that, and nothing else.
static void a_rehearsal_knows_what_calls_for_rows_read(void **state) {
    static const struct { fault fault; const char *needs; tl_finding_kind kind; } rows[] = {
        { NO_FAULT, "in", TL_FINDING_COUNT }, { NO_FAULT, "in1", TL_FINDING_NEEDS_MISSING }, { IGNORES_X, "in", TL_FINDING_NEEDS_UNUSED },
        { IGNORES_X, "in1", TL_FINDING_COUNT } };
    static bed b;
    size_t k;
    (void)state;
    for (k = 0; k < sizeof rows / sizeof *rows; k++) {
        tl_rehearsal found;
        int32_t i, count = 0;
        open_bed(&b);
        cut(&b, 1, 8);
        b.ops[dense_of(1)].needs = rows[k].needs;
        b.n.fault = rows[k].fault;
        b.n.is_rehearsed = 1;
        b.desc.rehearsal = &found;
        if (tl_init_op_run(&b.env, &b.desc, b.ops, NODES, &b.run) && rows[k].kind != TL_FINDING_NEEDS_MISSING) fail_msg("%s", b.env.error.text);
        for (i = 0; i < found.finding_count; i++) {
            if (found.findings[i].node != dense_of(1)) continue;
            assert_int_equal(found.findings[i].kind, rows[k].kind);
            assert_int_equal(found.findings[i].index, 0);
            count++;
        }
        if (count != (rows[k].kind != TL_FINDING_COUNT)) fail_msg("row %d: %d findings", (int)k, (int)count);
        tl_free_rehearsal(&b.env, &found);
        close_bed(&b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_the_loop_by_hand),
        cmocka_unit_test(a_refusal_names_the_least_budget_of_pieces),
        cmocka_unit_test(sizes_of_pieces_change_no_bit),
        cmocka_unit_test(pieces_lie_behind_the_scratch_of_kernels),
        cmocka_unit_test(a_piece_waits_for_those_who_read_the_weight),
        cmocka_unit_test(steps_are_pulled_piece_by_piece),
        cmocka_unit_test(calls_for_two_states_are_told_apart),
        cmocka_unit_test(a_save_in_a_pass_knows_what_was_updated),
        cmocka_unit_test(a_save_goes_on_within_another_budget),
        cmocka_unit_test(figures_are_of_what_may_be_cut),
        cmocka_unit_test(a_pass_that_fails_in_a_piece_is_torn),
        cmocka_unit_test(the_first_update_of_a_piece_tears),
        cmocka_unit_test(a_call_has_room_for_what_it_updates),
        cmocka_unit_test(what_pieces_cannot_do_is_refused),
        cmocka_unit_test(other_precisions_leave_pieces_as_they_are),
        cmocka_unit_test(a_rehearsal_knows_pieces),
        cmocka_unit_test(a_rehearsal_knows_what_calls_for_rows_read),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
