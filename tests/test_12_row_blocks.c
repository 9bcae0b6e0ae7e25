// [12] RUN: regions that are trained block by block of rows, against the same training with all tensors whole.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_steps.h"

enum { MOST_NODES = 40, MOST_ROWS = 24, MOST_WIDTH = 8, STEPS = 2 };

// What a node computes: of rows of x that it reads 1:1, and of what it reads whole.
typedef enum cell_kind { CELL_INPUT, CELL_STATE, CELL_LINEAR, CELL_ACT, CELL_ADD, CELL_NORM, CELL_MIX, CELL_SCORE, CELL_SOFT,
                         CELL_VALUE, CELL_LOSS } cell_kind;

typedef struct cell {
    cell_kind kind;
    uint64_t  width;        // floats in a row of the output
    int32_t   inputs[2];
} cell;

typedef struct block_net {
    tl_graph graph;
    uint64_t rows;
    int32_t  count, loss;
    int32_t  latest;        // the last node whose output is rows x width
    int32_t  last_pair;     // the one before it
    cell     cells[MOST_NODES];
    int32_t  holds;         // states hold their gradients, for two passes a step
    uint64_t made[MOST_NODES];      // rows, or elements, of each node that forwards made for the first time
    long     row_calls, part_calls, late_losses, checked;
} block_net;

// -- kernels --

static float *row_of(tl_operand operand, uint64_t row, uint64_t width) { return (float *)tl_find_row(&operand, row, width * 4); }

// The rows of a call, and those of the whole.
static void rows_of_call(const tl_kernel_call *call, const block_net *n, uint64_t *first, uint64_t *end) {
    const cell *c = &n->cells[call->node];
    uint64_t each = call->by_rows || c->kind == CELL_LOSS ? 1 : c->width;
    *first = call->by_rows ? call->first : call->first / each;
    *end = *first + (call->by_rows ? call->count : c->kind == CELL_LOSS ? n->rows : call->count / each);
    if (call->by_rows) assert_int_equal(call->total, n->rows);
}

static int is_along_queries(cell_kind kind) { return kind == CELL_SCORE || kind == CELL_SOFT || kind == CELL_VALUE; }

// What is cut has the rows of the call and no more; scratch and saved bytes have their share.
static void check_operands(block_net *n, const tl_kernel_call *call) {
    const tl_node *node = &call->graph->nodes[call->node];
    const cell *c = &n->cells[call->node];
    uint64_t work = call->kind == TL_STEP_BACKWARD ? node->bwork_bytes : call->kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes;
    uint64_t first, end;
    rows_of_call(call, n, &first, &end);
    if (call->by_rows) {
        n->row_calls++;
        n->part_calls += end - first < n->rows;
        assert_int_equal(call->scratch.range.bytes, (work * (end - first) + n->rows - 1) / n->rows);
        assert_int_equal(call->saved.range.bytes, call->kind == TL_STEP_FORWARD ? 0 : node->saved_bytes / n->rows * (end - first));
        if (c->kind != CELL_LOSS && !is_along_queries(c->kind) && call->outputs[0].range.bytes)
            assert_int_equal(call->outputs[0].range.bytes, c->width * 4 * (end - first));
    }
    if (call->scratch.range.bytes) memset(call->scratch.host, 0x5A, (size_t)call->scratch.range.bytes);
}

static void forward_row(const block_net *n, const tl_kernel_call *call, uint64_t row, uint64_t first) {
    const cell *c = &n->cells[call->node], *from = &n->cells[c->inputs[0]];
    uint64_t width = c->width, i, k;
    float *y = c->kind == CELL_LOSS ? (float *)call->outputs[0].host : row_of(call->outputs[0], row, width);
    const float *x = c->kind == CELL_SCORE ? row_of(call->inputs[0], row, from->width) : row_of(call->inputs[0], row, from->width);
    float sum = 0;
    switch (c->kind) {
    case CELL_LINEAR:
        for (i = 0; i < width; i++)
            for (k = 0, y[i] = 0; k < from->width; k++) y[i] += x[k] * ((const float *)call->inputs[1].host)[k * width + i];
        break;
    case CELL_ADD:
        for (i = 0; i < width; i++) y[i] = x[i] + row_of(call->inputs[1], row, width)[i];
        break;
    case CELL_NORM:
        for (i = 0; i < width; i++) sum += x[i] * x[i];
        for (i = 0; i < width; i++) y[i] = x[i] / (1 + sum);
        if (call->kind == TL_STEP_FORWARD_SAVE) ((float *)call->saved.host)[row - first] = 1 / (1 + sum);
        break;
    case CELL_MIX:
        for (k = 0; k < n->rows; k++) sum += row_of(call->inputs[1], k, n->cells[c->inputs[1]].width)[0] * x[0];
        for (i = 0; i < width; i++) y[i] = x[i] + 0.05f * sum;
        break;
    case CELL_SCORE:
        for (k = 0; k < n->rows; k++) y[k] = 0.1f * x[0] * row_of(call->inputs[0], k, from->width)[1];
        break;
    case CELL_SOFT:
        for (k = 0; k < width; k++) y[k] = x[k] / (1 + x[k] * x[k]);
        break;
    case CELL_VALUE:
        for (i = 0; i < width; i++)
            for (k = 0, y[i] = 0; k < n->rows; k++) y[i] += x[k] * row_of(call->inputs[1], k, n->cells[c->inputs[1]].width)[2];
        break;
    case CELL_LOSS:
        for (i = 0; i < from->width; i++) *y += 0.5f * x[i] * x[i] / (float)n->rows;
        break;
    case CELL_INPUT:
    case CELL_STATE:
    case CELL_ACT: break;
    }
}

static void backward_row(const block_net *n, const tl_kernel_call *call, uint64_t row, uint64_t first) {
    const cell *c = &n->cells[call->node], *from = &n->cells[c->inputs[0]];
    uint64_t width = c->width, i, k;
    const float *dy = c->kind == CELL_LOSS ? (const float *)call->output_grads[0].host : row_of(call->output_grads[0], row, width), *x = NULL, *y;
    float *dx = call->input_grads[0].range.bytes ? row_of(call->input_grads[0], row, from->width) : NULL, sum = 0, *dw;
    int wants = dx != NULL;
    float none[MOST_ROWS + MOST_WIDTH] = { 0 };
    if (!wants) dx = none;
    if (call->inputs[0].range.bytes) x = row_of(call->inputs[0], row, from->width);
    switch (c->kind) {
    case CELL_LINEAR:
        for (k = 0; k < from->width; k++)
            for (i = 0; i < width; i++) {
                dx[k] += dy[i] * ((const float *)call->inputs[1].host)[k * width + i];
                ((float *)call->input_grads[1].host)[k * width + i] += x[k] * dy[i];
            }
        break;
    case CELL_ADD:
        for (i = 0; i < width; i++) dx[i] += dy[i];
        if (call->input_grads[1].range.bytes)
            for (i = 0, dw = row_of(call->input_grads[1], row, width); i < width; i++) dw[i] += dy[i];
        break;
    case CELL_NORM:
        y = row_of(call->outputs[0], row, width);
        for (i = 0; i < width; i++) dx[i] += dy[i] * ((const float *)call->saved.host)[row - first] + 0.01f * y[i];
        break;
    case CELL_MIX:
        for (i = 0; i < width; i++) {
            dx[i] += dy[i];
            sum += dy[i];
        }
        for (k = 0; k < n->rows; k++) {
            dx[0] += 0.05f * sum * row_of(call->inputs[1], k, n->cells[c->inputs[1]].width)[0];
            if (call->input_grads[1].range.bytes) row_of(call->input_grads[1], k, n->cells[c->inputs[1]].width)[0] += 0.05f * sum * x[0];
        }
        break;
    case CELL_SCORE:
        for (k = 0; k < n->rows && wants; k++) {
            dx[0] += 0.1f * dy[k] * row_of(call->inputs[0], k, from->width)[1];
            row_of(call->input_grads[0], k, from->width)[1] += 0.1f * dy[k] * x[0];
        }
        break;
    case CELL_SOFT:
        y = row_of(call->outputs[0], row, width);
        for (k = 0; k < width; k++) dx[k] += dy[k] * (1 - y[k] * y[k]);
        break;
    case CELL_VALUE:
        for (i = 0; i < width; i++)
            for (k = 0; k < n->rows; k++) {
                dx[k] += dy[i] * row_of(call->inputs[1], k, n->cells[c->inputs[1]].width)[2];
                if (call->input_grads[1].range.bytes) row_of(call->input_grads[1], k, n->cells[c->inputs[1]].width)[2] += dy[i] * x[k];
            }
        break;
    case CELL_LOSS:
        for (i = 0; i < from->width; i++) dx[i] += *dy * x[i] / (float)n->rows;
        break;
    case CELL_INPUT:
    case CELL_STATE:
    case CELL_ACT: break;
    }
}

static tl_result by_rows(const tl_kernel_call *call, void *user) {
    block_net *n = (block_net *)user;
    uint64_t first, end, row;
    check_operands(n, call);
    rows_of_call(call, n, &first, &end);
    if (call->kind != TL_STEP_BACKWARD && !call->recompute) n->made[call->node] += (end - first) * n->cells[call->node].width;
    if (n->cells[call->node].kind == CELL_LOSS && call->kind != TL_STEP_BACKWARD) {
        if (!call->first) *(float *)call->outputs[0].host = 0;
        n->late_losses += call->by_rows;
    }
    for (row = first; row < end; row++)
        if (call->kind == TL_STEP_BACKWARD) backward_row(n, call, row, first);
        else forward_row(n, call, row, first);
    return TL_OK;
}

// Element by element: operands hold those of the call alone.
static tl_result by_elements(const tl_kernel_call *call, void *user) {
    block_net *n = (block_net *)user;
    uint64_t at;
    if (call->kind != TL_STEP_BACKWARD && !call->recompute) n->made[call->node] += call->count;
    assert_int_equal(call->by_rows, 0);
    assert_int_equal(call->total, n->rows * n->cells[call->node].width);
    for (at = 0; at < call->count; at++) {
        const float *x = (const float *)call->inputs[0].host;
        if (call->kind == TL_STEP_BACKWARD) {
            if (call->input_grads[0].range.bytes) ((float *)call->input_grads[0].host)[at] += ((const float *)call->output_grads[0].host)[at] * (1 - 0.2f * x[at]);
        } else {
            assert_int_equal(call->outputs[0].range.bytes, call->count * 4);
            ((float *)call->outputs[0].host)[at] = x[at] - 0.1f * x[at] * x[at];
        }
    }
    return TL_OK;
}

static tl_result update(const tl_kernel_call *call, void *user) {
    float *w = (float *)call->outputs[0].host;
    const float *g = (const float *)call->output_grads[0].host;
    uint64_t i;
    (void)user;
    for (i = 0; i < call->outputs[0].range.bytes / 4; i++) w[i] -= 0.01f * g[i];
    return TL_OK;
}

// -- random nets --

static int32_t add_cell(block_net *n, tl_env *env, cell_kind kind, uint64_t width, int32_t a, int32_t b, tl_random *random) {
    static const char *const ops[] = { "input", "state", "rows", "elements", "rows", "rows", "rows", "rows", "rows", "rows", "rows" };
    static const char *const needs[] = { "none", "none", "in", "in", "none", "out", "in", "in", "out", "in", "in" };
    cell *c = &n->cells[n->count];
    tl_node_desc desc;
    tl_tensor inputs[2];
    tl_relation relations[2];
    uint64_t bytes = (kind == CELL_LOSS ? 1 : n->rows * width) * 4;
    memset(&desc, 0, sizeof desc);
    memset(relations, 0, sizeof relations);
    memset(inputs, 0, sizeof inputs);
    c->kind = kind;
    c->width = width;
    c->inputs[0] = inputs[0].node = a;
    c->inputs[1] = inputs[1].node = b;
    desc.op = ops[kind];
    desc.needs = needs[kind];
    desc.inputs = inputs;
    desc.input_count = kind == CELL_INPUT ? 0 : b < 0 ? 1 : 2;
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fwd_cost = desc.bwd_cost = (uint64_t)random_count(random, 1, 9);
    if (kind == CELL_INPUT) {
        desc.fwd_cost = desc.bwd_cost = 0;
        if (tl_add_node(env, &n->graph, &desc, NULL)) fail_msg("%s", env->error.text);
        return n->count++;
    }
    if (kind == CELL_ACT) desc.takes_blocks = 1;
    if (kind != CELL_ACT || random_chance(random, 50)) {
        desc.rows = n->rows;
        desc.row_axis = is_along_queries(kind);
        desc.relations = relations;
        desc.ordered = 1;
        desc.reduces = kind == CELL_LOSS;
        if (kind != CELL_ACT && n->rows % 2 == 0 && random_chance(random, 20)) desc.row_unit = 2;
    }
    relations[0].kind = kind == CELL_SCORE ? TL_RELATION_PART : TL_RELATION_SAME;
    relations[1].kind = kind == CELL_ADD ? TL_RELATION_SAME : kind == CELL_LINEAR || kind == CELL_MIX ? TL_RELATION_WHOLE : TL_RELATION_PART;
    if (kind == CELL_NORM) desc.saved_bytes = n->rows * 4;
    if (kind == CELL_LOSS) desc.keep = 1;
    if (kind != CELL_ACT && random_chance(random, 40)) {
        desc.fwork_bytes = (uint64_t)random_count(random, 1, 200);
        desc.bwork_bytes = (uint64_t)random_count(random, 0, 200);
        desc.swork_bytes = (uint64_t)random_count(random, 0, 200);
    }
    if (tl_add_node(env, &n->graph, &desc, NULL)) fail_msg("%s", env->error.text);
    if (kind != CELL_SCORE && kind != CELL_SOFT && kind != CELL_LOSS) {
        n->last_pair = n->latest;
        n->latest = n->count;
    }
    return n->count++;
}

static int32_t add_weight(block_net *n, tl_env *env, uint64_t from, uint64_t to) {
    tl_state_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.op = "update";
    desc.bytes = from * to * 4;
    desc.kind = n->holds ? TL_STATE_HELD : TL_STATE_TRAINED;
    if (tl_add_state(env, &n->graph, &desc, NULL)) fail_msg("%s", env->error.text);
    n->cells[n->count].kind = CELL_STATE;
    n->cells[n->count].width = to;
    return n->count++;
}

static void add_attention(block_net *n, tl_env *env, tl_random *random) {
    int32_t x = n->latest, at;
    if (n->cells[x].width < 3 || n->count > MOST_NODES - 8) return;
    at = add_cell(n, env, CELL_SCORE, n->rows, x, -1, random);
    at = add_cell(n, env, CELL_SOFT, n->rows, at, -1, random);
    add_cell(n, env, CELL_VALUE, (uint64_t)random_count(random, 3, MOST_WIDTH), at, x, random);
}

static void random_block_net(block_net *n, tl_env *env, uint64_t seed) {
    tl_random random = { seed };
    int32_t wanted = random_count(&random, 3, MOST_NODES - 8), w, other;
    memset(n, 0, sizeof *n);
    n->rows = (uint64_t)random_count(&random, 1, MOST_ROWS);
    n->holds = random_chance(&random, 30);
    n->latest = n->last_pair = add_cell(n, env, CELL_INPUT, (uint64_t)random_count(&random, 3, MOST_WIDTH), -1, -1, &random);
    while (n->count < wanted) {
        uint64_t width = n->cells[n->latest].width, to = (uint64_t)random_count(&random, 1, MOST_WIDTH);
        switch (random_count(&random, 0, 6)) {
        case 0:
        case 1:
            w = add_weight(n, env, width, to);
            add_cell(n, env, CELL_LINEAR, to, n->latest, w, &random);
            break;
        case 2: add_cell(n, env, CELL_ACT, width, n->latest, -1, &random); break;
        case 3: add_cell(n, env, CELL_NORM, width, n->latest, -1, &random); break;
        case 4:
            other = random_chance(&random, 60) ? n->last_pair : random_count(&random, 0, n->count - 1);
            if (n->cells[other].kind == CELL_STATE || n->cells[other].width != width || is_along_queries(n->cells[other].kind)) break;
            add_cell(n, env, CELL_ADD, width, n->latest, other, &random);
            break;
        case 5: add_cell(n, env, CELL_MIX, width, n->latest, random_chance(&random, 50) ? 0 : n->last_pair, &random); break;
        default: add_attention(n, env, &random); break;
        }
    }
    n->loss = add_cell(n, env, CELL_LOSS, 1, n->latest, -1, &random);
}

// -- regions: as many as are accepted --

static int32_t random_cuts(const block_net *n, tl_random *random, tl_row_cut *cuts, tl_cut_desc *desc) {
    int32_t id = 0, count = 0;
    desc->cuts = cuts;
    while (id < n->count) {
        tl_row_cut *cut = &cuts[count];
        int32_t longest = random_count(random, 1, 8), last;
        cut->first = id++;
        if (n->graph.nodes[cut->first].is_input || random_chance(random, 30)) continue;
        cut->block_count = random_count(random, 1, (int32_t)n->rows + 1);
        for (last = cut->first + longest - 1; last >= cut->first; last--) {
            tl_env env = silent_env();
            tl_rows_plan rows;
            tl_result result;
            cut->last = last;
            desc->cut_count = count + 1;
            if (last >= n->count) continue;
            result = tl_cut_rows(&env, desc, &rows);
            if (result && result != TL_ERROR_INVALID_ARG) fail_msg("%s", env.error.text);
            if (result) continue;
            tl_free_rows_plan(&env, &rows);
            id = last + 1;
            count++;
            break;
        }
    }
    desc->cut_count = count;
    return count;
}

// -- training --

typedef struct outcome {
    float loss[STEPS];
    float weights[MOST_NODES][MOST_WIDTH * MOST_WIDTH];
} outcome;

static float random_float(tl_random *random) { return (float)tl_next_random_below(random, 2001) / 1000.0f - 1; }

static void write_all(block_net *n, tl_env *env, tl_run *run, cell_kind kind, int32_t pass) {
    tl_random random = { (uint64_t)pass + 77 };
    float values[MOST_ROWS * MOST_WIDTH];
    int32_t id;
    uint64_t i;
    for (id = 0; id < n->count; id++) {
        tl_tensor tensor = { id, 0 };
        uint64_t bytes = n->graph.outputs[n->graph.nodes[id].first_output].bytes;
        if (n->cells[id].kind != kind) continue;
        for (i = 0; i < bytes / 4; i++) values[i] = 0.5f * random_float(&random);
        if (tl_write_tensor(run, tensor, values, (size_t)bytes)) fail_msg("%s", env->error.text);
    }
}

typedef struct loader { block_net *net; tl_env *env; int32_t loads; } loader;

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    loader *l = (loader *)user;
    (void)micro_batch;
    write_all(l->net, l->env, run, CELL_INPUT, l->loads++);
    return TL_OK;
}

// Each row is made for the first time once in a pass, whoever else makes it again.
static void check_first_times(block_net *n) {
    uint64_t passes = STEPS * (n->holds ? 2 : 1);
    int32_t id;
    for (id = 0; id < n->count; id++) {
        if (n->graph.nodes[id].is_input) continue;
        if (n->made[id] != passes * n->rows * n->cells[id].width)
            fail_msg("node %d: %lu for the first time, of %lu", (int)id, (unsigned long)n->made[id], (unsigned long)(passes * n->rows * n->cells[id].width));
    }
}

static void train(block_net *n, const tl_cut_desc *cuts, tl_random *random, tl_cpu_backend_desc *cpu, outcome *out) {
    tl_env env = silent_env();
    tl_backend backend;
    tl_run_desc desc;
    tl_run_report report;
    tl_rows_plan rows;
    tl_plan plan;
    tl_kernel kernels[3];
    loader l;
    tl_run *run;
    const tl_graph *graph = &n->graph;
    int32_t step, id;
    uint64_t once = 0;
    memset(&desc, 0, sizeof desc);
    memset(&plan, 0, sizeof plan);
    memset(kernels, 0, sizeof kernels);
    memset(out, 0, sizeof *out);
    if (tl_init_cpu_backend(&env, cpu, &backend)) fail_msg("%s", env.error.text);
    if (cuts) {
        if (tl_cut_rows(&env, cuts, &rows)) fail_msg("%s", env.error.text);
        desc.rows = &rows;
        graph = &rows.graph;
    }
    kernels[0].op = "rows"; kernels[0].forward = by_rows; kernels[0].backward = by_rows; kernels[0].user = n;
    kernels[1].op = "elements"; kernels[1].forward = by_elements; kernels[1].backward = by_elements; kernels[1].user = n;
    kernels[2].op = "update"; kernels[2].backward = update; kernels[2].user = n;
    desc.graph = &n->graph;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 3;
    if (tl_plan_keep_all(&env, graph, 0, &plan)) fail_msg("%s", env.error.text);
    if (cuts) random_plan_within(&env, random, graph, NULL, &plan);
    plan.repeat_count = n->holds ? 2 : 0;
    l.net = n;
    l.env = &env;
    l.loads = 0;
    desc.load = load;
    desc.load_user = &l;
    desc.plan = &plan;
    if (tl_init_run(&env, &desc, &run)) fail_msg("%s", env.error.text);
    write_all(n, &env, run, CELL_STATE, 100);
    memset(n->made, 0, sizeof n->made);
    for (step = 0; step < STEPS; step++) {
        tl_tensor loss = { n->loss, 0 };
        if (tl_run_plan(run)) fail_msg("%s", env.error.text);
        if (tl_read_tensor(run, loss, &out->loss[step], 4)) fail_msg("%s", env.error.text);
    }
    for (id = 0; id < n->count; id++) {
        tl_tensor tensor = { id, 0 };
        if (n->cells[id].kind == CELL_STATE && tl_read_tensor(run, tensor, out->weights[id], (size_t)n->graph.outputs[n->graph.nodes[id].first_output].bytes))
            fail_msg("%s", env.error.text);
    }
    check_first_times(n);
    tl_measure_run(run, &report);
    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    for (id = 0; id < n->graph.node_count; id++)
        once += n->graph.nodes[id].fwd_cost + (n->graph.nodes[id].has_grad ? n->graph.nodes[id].bwd_cost : 0);
    assert_int_equal(report.base_cost, once);
    tl_free_run(run);
    random_free_plan(&env, &plan);
    if (cuts) tl_free_rows_plan(&env, &rows);
    tl_free_cpu_backend(&env, &backend);
}

static void blocks_of_rows_have_the_bits_of_whole_tensors(void **state) {
    int32_t count = scaled(1500), i, regions = 0;
    long part_calls = 0, late = 0;
    static block_net n;
    static outcome whole, cut;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        tl_random random = { (uint64_t)i + 1000 };
        tl_row_cut cuts[MOST_NODES];
        tl_cut_desc desc;
        tl_cpu_backend_desc cpu;
        memset(&desc, 0, sizeof desc);
        memset(&cpu, 0, sizeof cpu);
        random_block_net(&n, &env, (uint64_t)i + 1);
        cpu.checked = random_chance(&random, 50);
        cpu.deferred = random_chance(&random, 50);
        cpu.alignment_bytes = UINT64_C(4) << random_count(&random, 0, 4);
        desc.graph = &n.graph;
        desc.alignment_bytes = cpu.alignment_bytes;
        regions += random_cuts(&n, &random, cuts, &desc);
        train(&n, NULL, &random, &cpu, &whole);
        n.part_calls = n.late_losses = 0;
        train(&n, &desc, &random, &cpu, &cut);
        part_calls += n.part_calls;
        late += n.late_losses > 0;
        if (memcmp(&whole, &cut, sizeof whole)) fail_msg("net %d: bits differ", (int)i);
        tl_free_graph(&env, &n.graph);
    }
    print_message("%d nets, %d regions, %ld calls for some of the rows, %ld losses by rows\n", (int)count, (int)regions, part_calls, late);
    assert_true(regions > count && part_calls > 20 * count && late > count / 10);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_rows_have_the_bits_of_whole_tensors),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
