// [12] RUN of graphs whose running statistics are states: a convolution network with batch norm is trained, and weights, moments
// and statistics are the same to the bit however it runs. A rehearsal finds kernels that do not keep to the rules of statistics.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

enum { BATCH = 2, CHANNELS = 3, SIDE = 8, CLASSES = 4, STEPS = 20, OPS = 48, STATES = 24 };
enum { IMAGE = BATCH * CHANNELS * SIDE * SIDE, FILTERS = CHANNELS * CHANNELS * 9, MOST = IMAGE };

typedef enum fault {
    NO_FAULT,
    COUNTS_AGAIN,           // changes the statistics also when it runs again
    COUNTS_ONLY_AGAIN,
    NORMS_BY_FOUND,         // takes the running mean that it finds, and changes it then: the next time it finds another
    NORMS_BY_CHANGED,       // takes the running mean that it has changed: so does a forward that runs again, and nothing is wrong
    DIFFERS_AGAIN,          // makes other bytes when it runs again, not because of statistics
    BACKWARD_COUNTS,
    BACKWARD_READS,         // backward reads the statistics, which needs does not name
    COUNTS_BEYOND,          // writes behind the last statistic
    COUNTS_NOTHING,
    COUNTS_FOR_OTHERS,      // writes the statistics of another node, which are no operand
    WRITES_WEIGHT,
    TRACKS_WHOLE            // takes blocks, and changes all of its statistics in each
} fault;

// -- kernels --

typedef struct layer {
    struct bed *b;
    fault fault;
    int   side, count;      // of the output; floats of it
} layer;

typedef struct bed {
    tl_env      env;
    tl_backend  cpu;
    tl_op       ops[OPS];
    tl_tensor   reads[OPS][4];
    layer       layers[OPS];
    uint64_t    moments[STATES];
    int32_t     states[STATES];      // nodes, in the order of the layers
    float       begin[STATES][FILTERS + CLASSES * MOST];
    int32_t     count, state_count, input, first_norm, second_norm;
    float      *others;              // where the first norm has found its statistics
    int         loads, norms_again, tracks_again, fused_calls, pieces;
    tl_run_desc desc;
    tl_run     *run;
} bed;

static float *f32(tl_operand operand) { return (float *)operand.host; }

static tl_result conv(const tl_kernel_call *call, void *user) {
    const layer *l = (const layer *)user;
    int backward = call->kind == TL_STEP_BACKWARD, S = l->side, n, o, c, k, y, x;
    const float *in = f32(call->inputs[0]), *w = f32(call->inputs[1]);
    float *out = f32(call->outputs[0]), *d = f32(call->output_grads[0]), *din = f32(call->input_grads[0]), *dw = f32(call->input_grads[1]);
    int is_piece = backward && dw && call->input_grads[1].range.bytes < 4 * FILTERS;      // of the filters of some outputs
    int first = is_piece ? (int)call->first : 0, end = is_piece ? first + (int)call->count : CHANNELS;
    l->b->pieces += is_piece;
    for (n = 0; n < BATCH; n++)
        for (o = first; o < end; o++)
            for (y = 0; y < S; y++)
                for (x = 0; x < S; x++) {
                    int to = ((n * CHANNELS + o) * S + y) * S + x;
                    float sum = 0;
                    for (c = 0; c < CHANNELS; c++)
                        for (k = 0; k < 9; k++) {
                            int v = y + k / 3 - 1, u = x + k % 3 - 1, at = (o * CHANNELS + c) * 9 + k, from = ((n * CHANNELS + c) * S + v) * S + u;
                            if (v < 0 || u < 0 || v >= S || u >= S) continue;
                            if (!backward) { sum += in[from] * w[at]; continue; }
                            if (dw) dw[at - first * CHANNELS * 9] += d[to] * in[from];
                            if (din) din[from] += d[to] * w[at];
                        }
                    if (!backward) out[to] = sum;
                }
    return TL_OK;
}

// Inputs: the batch, scale and shift, running mean and variance with a count of the passes behind them. Saved: mean and 1 / deviation.
static tl_result norm_forward(const tl_kernel_call *call, void *user) {
    const layer *l = (const layer *)user;
    const float *x = f32(call->inputs[0]), *w = f32(call->inputs[1]);
    float *y = f32(call->outputs[0]), *running = f32(call->inputs[2]), *saved = call->saved.range.bytes ? f32(call->saved) : NULL;
    int S = l->side * l->side, n, c, i, counts = !call->recompute;
    if (l->fault == COUNTS_AGAIN) counts = 1;
    if (l->fault == COUNTS_ONLY_AGAIN) counts = call->recompute;
    if (l->fault == COUNTS_NOTHING) counts = 0;
    if (l->fault == WRITES_WEIGHT) f32(call->inputs[1])[0] += 1;
    l->b->norms_again += call->recompute;
    for (c = 0; c < CHANNELS; c++) {
        float mean = 0, variance = 0, deviation, found;
        for (n = 0; n < BATCH; n++) for (i = 0; i < S; i++) mean += x[(n * CHANNELS + c) * S + i] / (float)(BATCH * S);
        for (n = 0; n < BATCH; n++)
            for (i = 0; i < S; i++) {
                float from = x[(n * CHANNELS + c) * S + i] - mean;
                variance += from * from / (float)(BATCH * S);
            }
        deviation = 1.0f / (variance + 0.5f);
        found = running[c];
        if (counts) running[c] += 0.1f * (mean - running[c]);
        if (counts) running[CHANNELS + c] += 0.1f * (variance - running[CHANNELS + c]);
        if (l->fault == NORMS_BY_FOUND) mean = found;
        if (l->fault == NORMS_BY_CHANGED) mean = running[c];
        for (n = 0; n < BATCH && !call->outputs_ready; n++)
            for (i = 0; i < S; i++) {
                int at = (n * CHANNELS + c) * S + i;
                y[at] = (x[at] - mean) * deviation * w[c] + w[CHANNELS + c];
            }
        if (saved) saved[c] = mean;
        if (saved) saved[CHANNELS + c] = deviation;
    }
    if (counts) running[2 * CHANNELS] += 1;
    if (l->fault == DIFFERS_AGAIN && call->recompute && !call->outputs_ready) y[0] += 1;
    if (l->fault == COUNTS_BEYOND) running[2 * CHANNELS + 1] = 1;
    if (l->fault == COUNTS_FOR_OTHERS && l->b->others) l->b->others[0] += 1;
    if (call->node == l->b->first_norm) l->b->others = running;
    return TL_OK;
}

static tl_result norm_backward(const tl_kernel_call *call, void *user) {
    const layer *l = (const layer *)user;
    const float *x = f32(call->inputs[0]), *w = f32(call->inputs[1]), *d = f32(call->output_grads[0]), *saved = f32(call->saved);
    float *dx = f32(call->input_grads[0]), *dw = f32(call->input_grads[1]), more = l->fault == BACKWARD_READS ? f32(call->inputs[2])[0] : 0;
    int S = l->side * l->side, n, c, i;
    for (c = 0; c < CHANNELS; c++) {
        float mean = 0;
        for (n = 0; n < BATCH; n++) for (i = 0; i < S; i++) mean += d[(n * CHANNELS + c) * S + i] / (float)(BATCH * S);
        for (n = 0; n < BATCH; n++)
            for (i = 0; i < S; i++) {
                int at = (n * CHANNELS + c) * S + i;
                dw[c] += d[at] * (x[at] - saved[c]) * saved[CHANNELS + c];
                dw[CHANNELS + c] += d[at] + more;
                dx[at] += (d[at] - mean) * w[c] * saved[CHANNELS + c];
            }
    }
    if (l->fault == BACKWARD_COUNTS && f32(call->inputs[2])) f32(call->inputs[2])[0] += 1;
    return TL_OK;
}

static tl_result relu(const tl_kernel_call *call, void *user) {
    uint64_t i;
    (void)user;
    for (i = 0; i < call->count; i++) {
        if (call->kind != TL_STEP_BACKWARD) f32(call->outputs[0])[i] = f32(call->inputs[0])[i] > 0 ? f32(call->inputs[0])[i] : 0;
        else if (f32(call->outputs[0])[i] > 0) f32(call->input_grads[0])[i] += f32(call->output_grads[0])[i];
    }
    return TL_OK;
}

static tl_result add(const tl_kernel_call *call, void *user) {
    uint64_t i;
    (void)user;
    for (i = 0; i < call->count; i++) {
        if (call->kind != TL_STEP_BACKWARD) { f32(call->outputs[0])[i] = f32(call->inputs[0])[i] + f32(call->inputs[1])[i]; continue; }
        f32(call->input_grads[0])[i] += f32(call->output_grads[0])[i];
        f32(call->input_grads[1])[i] += f32(call->output_grads[0])[i];
    }
    return TL_OK;
}

// Elementwise, with a running mean of each element.
static tl_result track(const tl_kernel_call *call, void *user) {
    const layer *l = (const layer *)user;
    uint64_t i;
    if (call->kind != TL_STEP_BACKWARD) l->b->tracks_again += call->recompute;
    if (call->count < call->total) l->b->fused_calls++;
    for (i = 0; i < call->count; i++) {
        if (call->kind == TL_STEP_BACKWARD) { f32(call->input_grads[0])[i] += 0.5f * f32(call->output_grads[0])[i]; continue; }
        f32(call->outputs[0])[i] = 0.5f * f32(call->inputs[0])[i];
        if (!call->recompute) f32(call->inputs[1])[i] += 0.1f * (f32(call->inputs[0])[i] - f32(call->inputs[1])[i]);
    }
    if (l->fault == TRACKS_WHOLE && !call->recompute) f32(call->inputs[1])[0] += 1;
    return TL_OK;
}

static tl_result pool_forward(const tl_kernel_call *call, void *user) {
    const layer *l = (const layer *)user;
    const float *x = f32(call->inputs[0]);
    int i, k, S = l->side;
    for (i = 0; i < l->count; i++) {
        int first = i / (S * S) * 4 * S * S + i % (S * S) / S * 4 * S + 2 * (i % S), best = first;
        for (k = 1; k < 4; k++) if (x[first + k % 2 + k / 2 * 2 * S] > x[best]) best = first + k % 2 + k / 2 * 2 * S;
        if (!call->outputs_ready) f32(call->outputs[0])[i] = x[best];
        if (call->saved.range.bytes) ((int32_t *)call->saved.host)[i] = best;
    }
    return TL_OK;
}

static tl_result pool_backward(const tl_kernel_call *call, void *user) {
    const layer *l = (const layer *)user;
    int i;
    for (i = 0; i < l->count; i++) f32(call->input_grads[0])[((int32_t *)call->saved.host)[i]] += f32(call->output_grads[0])[i];
    return TL_OK;
}

static tl_result linear(const tl_kernel_call *call, void *user) {
    int each = (int)(call->graph->outputs[call->graph->inputs[call->graph->nodes[call->node].first_input].tensor].bytes / 4 / BATCH), n, o, i;
    const float *x = f32(call->inputs[0]), *w = f32(call->inputs[1]);
    (void)user;
    for (n = 0; n < BATCH; n++)
        for (o = 0; o < CLASSES; o++) {
            float sum = 0, d = call->kind == TL_STEP_BACKWARD ? f32(call->output_grads[0])[n * CLASSES + o] : 0;
            for (i = 0; i < each; i++) {
                if (call->kind != TL_STEP_BACKWARD) { sum += x[n * each + i] * w[o * each + i]; continue; }
                f32(call->input_grads[0])[n * each + i] += d * w[o * each + i];
                f32(call->input_grads[1])[o * each + i] += d * x[n * each + i];
            }
            if (call->kind != TL_STEP_BACKWARD) f32(call->outputs[0])[n * CLASSES + o] = sum;
        }
    return TL_OK;
}

static tl_result loss(const tl_kernel_call *call, void *user) {
    const float *x = f32(call->inputs[0]);
    int i;
    (void)user;
    if (call->kind != TL_STEP_BACKWARD) f32(call->outputs[0])[0] = 0;
    for (i = 0; i < BATCH * CLASSES; i++) {
        float from = x[i] - (float)(i % 3);
        if (call->kind != TL_STEP_BACKWARD) f32(call->outputs[0])[0] += 0.5f * from * from;
        else f32(call->input_grads[0])[i] += from * f32(call->output_grads[0])[0];
    }
    return TL_OK;
}

static tl_result momentum(const tl_kernel_call *call, void *user) {
    float *w = f32(call->outputs[0]), *m = f32(call->outputs[1]);
    const float *g = f32(call->output_grads[0]);
    uint64_t i;
    (void)user;
    for (i = 0; i < call->outputs[0].range.bytes / 4; i++) {
        m[i] = 0.9f * m[i] + g[i];
        w[i] -= 0.004f * m[i];
    }
    return TL_OK;
}

// -- the net: blocks of convolution, norm, relu and, from the second on, a sum and a running mean; a pool behind the first --

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    bed *b = (bed *)user;
    static float image[IMAGE];
    tl_random random = { 11 };
    tl_tensor x;
    int i;
    (void)micro_batch;
    random.state += (uint64_t)b->loads++ * 977;
    for (i = 0; i < IMAGE; i++) image[i] = (float)tl_next_random_below(&random, 1000) / 500.0f - 0.7f;
    x.node = b->input;
    x.output = 0;
    return tl_write_tensor(run, x, image, sizeof image);
}

// What the layers are, one after the other. A letter of small case is a state: w, p trained, s, e statistics.
static const char net[] = "w c p s n r w c p s n r w c p s n r a e t m w c p s n r a e t w l x";

static uint64_t state_floats(char letter, char reader, int side) {
    if (letter == 's') return 2 * CHANNELS + 1;
    if (letter == 'p') return 2 * CHANNELS;
    if (letter == 'e') return (uint64_t)(BATCH * CHANNELS * side * side);
    return reader == 'c' ? FILTERS : (uint64_t)(CLASSES * CHANNELS * side * side);
}

static int is_state(char letter) { return strchr("wpse", letter) != NULL; }

static void add_state(bed *b, char letter, uint64_t floats, int holds) {
    tl_op *op = &b->ops[b->count];
    tl_random random = { 5 + (uint64_t)b->state_count };
    float *begin = b->begin[b->state_count];
    uint64_t i;
    int trains = letter == 'w' || letter == 'p';
    for (i = 0; i < floats; i++) begin[i] = letter == 's' || letter == 'e' ? 0.25f : (float)tl_next_random_below(&random, 1000) / 1500.0f - 0.3f;
    op->state = !trains ? TL_STATE_STATISTIC : holds ? TL_STATE_HELD : TL_STATE_TRAINED;
    op->output_bytes = b->moments[b->state_count] = 4 * floats;
    op->initial = begin;
    if (trains) {
        op->kind = "momentum";
        op->backward = momentum;
        op->moments = &b->moments[b->state_count];
        op->moment_count = 1;
        if (letter == 'w' && floats == FILTERS) op->weight_rows = CHANNELS;
    }
    b->states[b->state_count++] = b->count++;
}

static void add_op(bed *b, const char *kind, tl_kernel_fn forward, tl_kernel_fn backward, const char *needs, int floats, int side) {
    tl_op *op = &b->ops[b->count];
    op->kind = kind;
    op->forward = forward;
    op->backward = backward;
    op->needs = needs;
    op->output_bytes = 4 * (uint64_t)floats;
    op->inputs = b->reads[b->count];
    op->input_count = 1;
    op->user = &b->layers[b->count];
    b->layers[b->count].b = b;
    b->layers[b->count].side = side;
    b->layers[b->count].count = floats;
}

// Add the op of a letter. states: those that it reads, behind the tensor of `last`; block: what the block began with.
static void add_layer(bed *b, char letter, int32_t last, int32_t block, const int32_t *states, int side) {
    int floats = BATCH * CHANNELS * side * side, k;
    tl_op *op = &b->ops[b->count];
    if (letter == 'c') add_op(b, "conv", conv, conv, last == b->input ? "in0" : "in", floats, side);
    if (letter == 'n') add_op(b, "norm", norm_forward, norm_backward, "in0,in1", floats, side);
    if (letter == 'r') add_op(b, "relu", relu, relu, "out", floats, side);
    if (letter == 'm') add_op(b, "pool", pool_forward, pool_backward, "none", floats, side);
    if (letter == 'a') add_op(b, "add", add, add, "none", floats, side);
    if (letter == 't') add_op(b, "scale", track, track, "none", floats, side);
    if (letter == 'l') add_op(b, "linear", linear, linear, "in", BATCH * CLASSES, side);
    if (letter == 'x') add_op(b, "loss", loss, loss, "in", 1, side);
    op->saved_bytes = letter == 'n' ? 8 * CHANNELS : letter == 'm' ? op->output_bytes : 0;
    op->takes_blocks = strchr("rat", letter) != NULL;
    op->inplace = letter == 'a';
    b->reads[b->count][0].node = last;
    if (letter == 'a') b->reads[b->count][op->input_count++].node = block;
    for (k = 0; states[k] >= 0; k++) b->reads[b->count][op->input_count++].node = states[k];
    if (letter == 'n' && !b->first_norm) b->first_norm = b->count;
    else if (letter == 'n' && !b->second_norm) b->second_norm = b->count;
    b->count++;
}

static void open_bed_on(bed *b, tl_updates updates, int holds, int is_checked) {
    tl_cpu_backend_desc cpu;
    int32_t own[4], last = -1, block = -1;
    int turn, side, at, count;
    memset(b, 0, sizeof *b);
    memset(&cpu, 0, sizeof cpu);
    cpu.checked = is_checked;
    for (turn = updates == TL_UPDATES_FUSED; turn < 2; turn++) {    // at the end: first all states, then the rest
        int32_t state = 0;
        side = SIDE;
        count = 0;
        if (turn) {
            b->ops[b->count].kind = "input";
            b->ops[b->count].output_bytes = 4 * IMAGE;
            last = block = b->input = b->count++;
        }
        for (at = 0; at < (int)sizeof net; at += 2) {
            char letter = net[at], reader = net[at + 2 * !!net[at + 1]];
            if (is_state(letter)) {
                if (!turn || updates == TL_UPDATES_FUSED) add_state(b, letter, state_floats(letter, reader, side), holds);
                own[count++] = b->states[state++];
                continue;
            }
            own[count] = -1;
            count = 0;
            if (letter == 'm') side /= 2;
            if (!turn) continue;
            if (letter == 'c') block = last;
            add_layer(b, letter, last, block, own, side);
            last = b->count - 1;
        }
    }
    if (tl_init_cpu_backend(&b->env, &cpu, &b->cpu)) fail_msg("%s", b->env.error.text);
    b->desc.backend = &b->cpu;
    b->desc.load = load;
    b->desc.load_user = b;
    b->desc.work_limit = 100000;
}

static void open_bed(bed *b, tl_updates updates, int holds) { open_bed_on(b, updates, holds, 1); }

static void close_bed(bed *b) {
    tl_free_run(b->run);
    b->run = NULL;
    if (tl_free_cpu_backend(&b->env, &b->cpu)) fail_msg("%s", b->env.error.text);
}

static void start(bed *b) {
    if (tl_init_op_run(&b->env, &b->desc, b->ops, b->count, &b->run)) fail_msg("%s", b->env.error.text);
}

static void train(bed *b, int steps) {
    while (steps-- > 0)
        if (tl_run_plan(b->run)) fail_msg("%s", b->env.error.text);
}

// -- what training leaves --

typedef struct image { float bytes[STATES][2][FILTERS + CLASSES * MOST]; } image;

static void take(bed *b, image *to) {
    int k;
    memset(to, 0, sizeof *to);
    for (k = 0; k < b->state_count; k++) {
        tl_tensor t;
        t.node = b->states[k];
        for (t.output = 0; t.output < 1 + b->ops[t.node].moment_count; t.output++)
            if (tl_read_tensor(b->run, t, to->bytes[k][t.output], b->ops[t.node].output_bytes)) fail_msg("%s", b->env.error.text);
    }
}

// How many states differ: of the statistics, or of all others.
static int count_others(const bed *b, const image *x, const image *y, int statistics) {
    int k, count = 0;
    for (k = 0; k < b->state_count; k++)
        if ((b->ops[b->states[k]].state == TL_STATE_STATISTIC) == statistics) count += memcmp(x->bytes[k], y->bytes[k], sizeof x->bytes[k]) != 0;
    return count;
}

static void check_same(bed *b, const image *want, const char *what) {
    static image found;
    take(b, &found);
    if (count_others(b, &found, want, 0)) fail_msg("%s: other weights or moments", what);
    if (count_others(b, &found, want, 1)) fail_msg("%s: other statistics", what);
}

static tl_run_report check_report(const bed *b) {
    tl_run_report report;
    tl_measure_run(b->run, &report);
    assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
    assert_int_equal(report.planned_taken_bytes, report.taken_bytes);
    assert_true(!b->desc.budget_bytes || report.taken_bytes <= b->desc.budget_bytes);
    return report;
}

// Keep-all, all states updated at the end. Each pass counted once in each norm.
static void train_reference(int steps, int parts, image *to) {
    static bed b;
    tl_strategy keeps = tl_with_memory(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), TL_MODE_LAZY), TL_MEMORY_POOLED);
    int k, moved = 0;
    keeps = tl_with_gradient(keeps, tl_gradient_full());
    open_bed(&b, TL_UPDATES_END, parts > 1);
    b.desc.strategy = &keeps;
    b.desc.repeat_count = parts;
    start(&b);
    train(&b, steps);
    assert_int_equal(check_report(&b).recompute_count, 0);
    assert_int_equal(b.norms_again, 0);
    take(&b, to);
    for (k = 0; k < b.state_count; k++) {
        uint64_t bytes = b.ops[b.states[k]].output_bytes;
        moved += memcmp(to->bytes[k][0], b.begin[k], (size_t)bytes) != 0;
        if (bytes == 4 * (2 * CHANNELS + 1)) assert_true(to->bytes[k][0][2 * CHANNELS] == 0.25f + (float)(steps * parts));
    }
    assert_int_equal(moved, b.state_count);
    close_bed(&b);
}

static tl_strategy tight_strategy(void) {
    tl_strategy strategy = tl_with_memory(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), TL_MODE_LAZY), TL_MEMORY_POOLED);
    return tl_with_gradient(strategy, tl_gradient_checkpointed(0));
}

// Ask for the least budget.
static tl_run_figures find_figures(bed *b) {
    tl_run_figures figures;
    b->desc.figures = &figures;
    b->desc.budget_bytes = 1;
    assert_int_equal(tl_init_op_run(&b->env, &b->desc, b->ops, b->count, &b->run), TL_ERROR_INFEASIBLE);
    b->desc.figures = NULL;
    assert_true(figures.least_bytes < figures.keep_all_bytes);
    return figures;
}

// -- tests --

// However it runs: updates fused or at the end, within budgets down to the least, in one or several micro-batches.
static void statistics_are_those_of_a_run_that_keeps_all(void **state) {
    static bed b;
    static image want;
    tl_strategy strategy = tight_strategy();
    int updates, parts, budget, again = 0;
    (void)state;
    for (parts = 1; parts <= (is_slow() ? 1 : 4); parts *= 2) {
        train_reference(STEPS, parts, &want);
        for (updates = 0; updates < TL_UPDATES_COUNT; updates++)
            for (budget = 0; budget < 4; budget++) {
                static tl_run_figures figures;
                tl_run_report report;
                char what[80];
                snprintf(what, sizeof what, "%s, %d parts, budget %d", tl_name_updates((tl_updates)updates), parts, budget);
                open_bed(&b, (tl_updates)updates, parts > 1);
                b.desc.strategy = &strategy;
                b.desc.repeat_count = parts;
                if (!budget) figures = find_figures(&b);
                b.desc.budget_bytes = figures.keep_all_bytes - (figures.keep_all_bytes - figures.least_bytes) / 3 * (uint64_t)budget;
                if (budget == 3) b.desc.budget_bytes = figures.least_bytes;
                start(&b);
                train(&b, STEPS);
                check_same(&b, &want, what);
                report = check_report(&b);
                if (budget == 3) assert_true(report.recompute_count > 0 && b.norms_again > 0);
                if (budget == 0) assert_int_equal(b.norms_again, 0);
                again += b.norms_again > 0 && budget < 3;
                close_bed(&b);
            }
    }
    assert_true(again > 0);     // not the least budget alone
}

// Let the filters of all convolutions be trained in pieces, of one output or of two.
static void cut_filters(bed *b) {
    int32_t id, reader;
    tl_cpu_backend_desc cpu;
    memset(&cpu, 0, sizeof cpu);
    cpu.checked = 1;
    cpu.alignment_bytes = 4;        // at which filters begin
    assert_int_equal(tl_free_cpu_backend(&b->env, &b->cpu), TL_OK);
    assert_int_equal(tl_init_cpu_backend(&b->env, &cpu, &b->cpu), TL_OK);
    for (id = 0; id < b->count; id++) {
        tl_op *op = &b->ops[id];
        if (!op->weight_rows) continue;
        op->state = TL_STATE_PIECES;
        op->piece_rows = 1 + id % 2;
        op->bwd_cost = 0;
        for (reader = 0; b->reads[reader][1].node != id || !b->ops[reader].forward; reader++) {}
        b->ops[reader].bwork_bytes = 4 * (uint64_t)(FILTERS / CHANNELS * op->piece_rows);
    }
}

// Gradients of filters in pieces, beside norms that run again.
static void filters_are_trained_in_pieces(void **state) {
    static bed b;
    static image want;
    tl_strategy strategy = tight_strategy();
    tl_run_figures figures;
    int budget;
    (void)state;
    train_reference(STEPS, 1, &want);
    for (budget = 0; budget < 3; budget++) {
        open_bed(&b, TL_UPDATES_FUSED, 0);
        cut_filters(&b);
        b.desc.strategy = &strategy;
        figures = find_figures(&b);
        b.desc.budget_bytes = figures.least_bytes + (figures.keep_all_bytes - figures.least_bytes) / 2 * (uint64_t)budget;
        start(&b);
        train(&b, STEPS);
        check_same(&b, &want, "pieces");
        if (!budget) assert_true(check_report(&b).recompute_count > 0 && b.norms_again > 0);
        assert_true(b.pieces >= STEPS * CHANNELS / 2);
        close_bed(&b);
    }
}

// The caller adds up two passes himself.
static void skipped_updates_count_passes(void **state) {
    static bed b;
    static image want;
    tl_strategy strategy = tight_strategy();
    int step;
    (void)state;
    train_reference(STEPS, 2, &want);
    open_bed(&b, TL_UPDATES_FUSED, 1);
    b.desc.strategy = &strategy;
    b.desc.budget_bytes = find_figures(&b).least_bytes;
    start(&b);
    for (step = 0; step < STEPS; step++) {
        assert_int_equal(tl_skip_updates(b.run, 1), TL_OK);
        train(&b, 1);
        assert_int_equal(check_report(&b).update_count, 0);
        assert_int_equal(tl_skip_updates(b.run, 0), TL_OK);
        train(&b, 1);
        assert_true(check_report(&b).update_count > 0);
    }
    assert_true(b.norms_again > 0);
    check_same(&b, &want, "skipped");
    close_bed(&b);
}

// Decisions made online, without a budget and within a tight one.
static void online_runs_train_the_same(void **state) {
    static const tl_memory memories[] = { TL_MEMORY_STANDARD, TL_MEMORY_POOLED };
    static bed b;
    static image want;
    int i, parts, again = 0;
    (void)state;
    for (parts = 1; parts <= 2; parts++) {
        train_reference(STEPS, parts, &want);
        for (i = 0; i < 2; i++) {
            tl_strategy strategy = tl_with_memory(tl_with_mode(tight_strategy(), TL_MODE_EAGER), memories[i]);
            uint64_t budget = 0;
            for (;;) {      // down to what it cannot do
                tl_run_report report;
                tl_result result;
                open_bed(&b, TL_UPDATES_FUSED, parts > 1);
                b.desc.strategy = &strategy;
                b.desc.repeat_count = parts;
                b.desc.budget_bytes = budget;
                result = tl_init_op_run(&b.env, &b.desc, b.ops, b.count, &b.run);
                if (!result) train(&b, STEPS);
                if (!result) check_same(&b, &want, tl_name_memory(memories[i]));
                if (!result) tl_measure_run(b.run, &report);
                close_bed(&b);
                if (result == TL_ERROR_INFEASIBLE) break;
                assert_int_equal(result, TL_OK);
                assert_true(!budget || report.measured_peak_bytes <= budget);
                again += b.norms_again > 0 && report.eviction_count > 0;
                budget = (budget ? budget : report.measured_peak_bytes) - 1500;
            }
        }
    }
    assert_true(again > 0);
}

// -- saves --

typedef struct saved { char bytes[65536]; size_t count; } saved;

static tl_result keep(void *user, const char *data, size_t length) {
    saved *s = (saved *)user;
    assert_true(s->count + length <= sizeof s->bytes);
    memcpy(s->bytes + s->count, data, length);
    s->count += length;
    return TL_OK;
}

static tl_result drop(void *user, const char *data, size_t length) {
    (void)user; (void)data; (void)length;
    return TL_OK;
}

static void save(tl_run *run, saved *s) {
    tl_sink sink;
    memset(&sink, 0, sizeof sink);
    s->count = 0;
    sink.write = keep;
    sink.user = s;
    assert_int_equal(tl_save_run(run, sink), TL_OK);
}

// Calls of the pass under way, at most so many; how many it were.
static int step_on(bed *b, int most) {
    int32_t done = 0;
    int count = 0;
    while (count < most) {
        tl_run_step step;
        if (tl_next_step(b->run, &step, &done)) fail_msg("%s", b->env.error.text);
        if (done) return count;
        if (!step.is_compute) continue;
        if (tl_run_step_kernel(b->run, &step)) fail_msg("%s", b->env.error.text);
        count++;
    }
    return count;
}

// A pass that is saved behind any of its calls goes on in another run: a norm that has run in it does not count again.
static void a_pass_goes_on_with_its_statistics(void **state) {
    static bed b;
    static image want;
    static saved s;
    tl_strategy strategy = tight_strategy();
    tl_plan found, plan;
    int at, done = 0, split = 0;
    (void)state;
    train_reference(5, 1, &want);
    open_bed(&b, TL_UPDATES_FUSED, 0);
    b.desc.strategy = &strategy;
    b.desc.budget_bytes = find_figures(&b).least_bytes;
    start(&b);
    tl_find_run_plan(b.run, &found);
    if (tl_copy_plan(&b.env, &found, &plan)) fail_msg("%s", b.env.error.text);
    close_bed(&b);
    for (at = 1; !done; at++) {
        int before;
        open_bed(&b, TL_UPDATES_FUSED, 0);
        b.desc.plan = &plan;
        start(&b);
        train(&b, 2);
        before = b.norms_again;
        if (load(b.run, 0, &b) || tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
        done = step_on(&b, at) < at;
        if (done) { close_bed(&b); break; }
        before = b.norms_again - before;
        save(b.run, &s);
        close_bed(&b);
        open_bed(&b, TL_UPDATES_FUSED, 0);
        b.desc.plan = &plan;
        start(&b);
        if (tl_load_run(b.run, s.bytes, s.count)) fail_msg("%s", b.env.error.text);
        b.loads = 3;
        step_on(&b, 1000);
        split += !before && b.norms_again > 0;
        train(&b, 2);
        check_same(&b, &want, "saved in a pass");
        close_bed(&b);
    }
    tl_free_plan(NULL, &plan);
    assert_true(split > 0);     // saved between the first forward of a norm and the one that runs again
}

// -- fusion --

// Elementwise nodes in one, called block by block: one of them has statistics, and runs again with the others.
static void fused_kernels_have_their_statistics(void **state) {
    static const uint8_t nothing[OPS * 2];
    static bed b;
    static image want;
    int part, again = 0;
    (void)state;
    train_reference(STEPS, 1, &want);
    for (part = 0; part < 4; part++) {
        tl_fusion_desc asked;
        tl_fusion_plan fusion;
        tl_remat_desc remat;
        tl_remat_report least;
        tl_plan plan;
        tl_kernel kernels[OPS];
        tl_run_desc desc;
        tl_run *whole;
        void *users[OPS];
        int k;
        open_bed(&b, TL_UPDATES_END, 0);
        start(&b);
        whole = b.run;
        memset(&asked, 0, sizeof asked);
        memset(&remat, 0, sizeof remat);
        memset(kernels, 0, sizeof kernels);
        asked.graph = tl_find_run_graph(whole);
        asked.block_bytes = 128;
        asked.blocks_only = 1;
        asked.alignment_bytes = 64;
        if (tl_plan_fusion(&b.env, &asked, &fusion)) fail_msg("%s", b.env.error.text);
        assert_true(fusion.fused_count > 0);
        remat.graph = &fusion.graph;
        remat.alignment_bytes = 64;
        remat.budget_bytes = 1;
        assert_int_equal(tl_plan_remat(&b.env, &remat, &plan, &least), TL_ERROR_INFEASIBLE);
        remat.budget_bytes = least.least_budget_bytes + 1500 * (uint64_t)part;
        if (part == 3 ? tl_plan_kept_set(&b.env, &fusion.graph, nothing, &plan) : tl_plan_remat(&b.env, &remat, &plan, NULL))
            fail_msg("%s", b.env.error.text);
        desc = b.desc;
        desc.graph = asked.graph;
        desc.fusion = &fusion;
        desc.plan = &plan;
        for (k = 0; k < b.count; k++) {
            kernels[k].op = b.ops[k].kind;
            kernels[k].forward = b.ops[k].forward;
            kernels[k].backward = b.ops[k].backward;
            users[k] = b.ops[k].user;
            if (b.ops[k].kind && strcmp(b.ops[k].kind, "input") != 0) kernels[desc.kernel_count++] = kernels[k];
        }
        desc.kernels = kernels;
        desc.users = users;
        desc.user_count = b.count;
        if (tl_init_run(&b.env, &desc, &b.run)) fail_msg("%s", b.env.error.text);
        for (k = 0; k < b.state_count; k++) {
            tl_tensor t;
            t.node = b.states[k];
            t.output = 0;
            if (tl_write_tensor(b.run, t, b.begin[k], b.ops[t.node].output_bytes)) fail_msg("%s", b.env.error.text);
        }
        train(&b, STEPS);
        check_same(&b, &want, "fused");
        assert_true(check_report(&b).fused_count > 0 && check_report(&b).recompute_count > 0);
        assert_true(b.fused_calls > 0);
        again += b.tracks_again;
        tl_free_run(whole);
        close_bed(&b);
        tl_free_plan(NULL, &plan);
        tl_free_fusion_plan(NULL, &fusion);
    }
    assert_true(again > 0);
}

// A kernel that changes statistics when it runs again, or makes its outputs of them, does not train the same: so these tests see it.
static void wrong_kernels_train_something_else(void **state) {
    static const fault faults[] = { COUNTS_AGAIN, NORMS_BY_FOUND };
    static bed b;
    static image want, found;
    tl_strategy strategy = tight_strategy();
    int k, norms;
    (void)state;
    train_reference(STEPS, 1, &want);
    for (k = 0; k < 2; k++) {
        static image kept;
        int tight;
        for (tight = 0; tight < 2; tight++) {
            open_bed_on(&b, TL_UPDATES_FUSED, 0, 0);
            for (norms = 0; norms < b.count; norms++) b.layers[norms].fault = faults[k];
            b.desc.strategy = &strategy;
            if (tight) b.desc.budget_bytes = find_figures(&b).least_bytes;
            start(&b);
            train(&b, STEPS);
            take(&b, tight ? &found : &kept);
            close_bed(&b);
        }
        assert_true(count_others(&b, &found, &kept, 1) > 0);
        assert_int_equal(count_others(&b, &kept, &want, 0) > 0, faults[k] == NORMS_BY_FOUND);
        if (faults[k] == COUNTS_AGAIN) assert_int_equal(count_others(&b, &found, &kept, 0), 0);   // weights do not show it
    }
    open_bed(&b, TL_UPDATES_FUSED, 0);      // a checked backend gives them to the first forward alone
    for (norms = 0; norms < b.count; norms++) b.layers[norms].fault = COUNTS_AGAIN;
    b.desc.strategy = &strategy;
    b.desc.budget_bytes = find_figures(&b).least_bytes;
    start(&b);
    assert_int_equal(tl_run_plan(b.run), TL_ERROR_CORRUPT);
    assert_non_null(strstr(b.env.error.text, "the kernel wrote to input 2, but may only read that"));
    close_bed(&b);
}

// -- what statistics ask of the rest --

// Whoever reads them finds them as they are: in other formats, as a C program; and slots that each had their own are refused.
static void statistics_are_one_and_stay_what_they_are(void **state) {
    static bed b;
    static char text[1 << 16];
    uint32_t schemes[OPS];
    tl_precision_desc asked;
    tl_precision_plan chosen;
    tl_apply_desc apply;
    tl_precision_graph applied;
    tl_graph graph;
    tl_plan plan, slots;
    tl_step steps[8 * OPS];
    tl_run *run;
    tl_code_desc code;
    tl_places_desc places;
    tl_sink header, source;
    static saved program;
    int32_t id, k, changed = 0;
    (void)state;
    open_bed(&b, TL_UPDATES_END, 0);
    start(&b);
    graph = *tl_find_run_graph(b.run);
    // Their readers in bf16: the conversions that are priced are those that are made, none of them of statistics.
    memset(&asked, 0, sizeof asked);
    asked.graph = &graph;
    asked.training = 1;
    asked.allow_unknown = 1;
    asked.loss_limit = (double)INFINITY;
    asked.node_schemes = schemes;
    for (id = 0; id < graph.node_count; id++) schemes[id] = b.ops[id].forward == norm_forward || b.ops[id].forward == track ? 1u << TL_SCHEME_BF16 : 0;
    if (tl_plan_precision(&b.env, &asked, &chosen)) fail_msg("%s", b.env.error.text);
    memset(&apply, 0, sizeof apply);
    apply.graph = &graph;
    apply.plan = &chosen;
    apply.training = 1;
    if (tl_apply_precision(&b.env, &apply, &applied)) fail_msg("%s", b.env.error.text);
    assert_int_equal(applied.conversion_count, chosen.conversion_count);
    for (id = 0; id < applied.graph.node_count; id++) {
        const tl_node *node = &applied.graph.nodes[id];
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            const tl_node *from = &applied.graph.nodes[applied.graph.outputs[applied.graph.inputs[k].tensor].node];
            if (from->state == TL_STATE_STATISTIC) assert_string_equal(tl_name_op(&applied.graph, id), node->saved_bytes ? "norm" : "scale");
            changed += from->state == TL_STATE_STATISTIC;
        }
    }
    assert_int_equal(changed, 6);       // four norms, two that track
    tl_free_precision_graph(&b.env, &applied);
    tl_free_precision_plan(&b.env, &chosen);
    close_bed(&b);
    // Two passes, each in a slot of its own. Weights that nobody updates: statistics alone are left.
    open_bed(&b, TL_UPDATES_END, 0);
    for (id = 0; id < b.count; id++) {
        if (b.ops[id].state != TL_STATE_TRAINED) continue;
        b.ops[id].state = TL_STATE_FROZEN;
        b.ops[id].kind = NULL;
        b.ops[id].backward = NULL;
        b.ops[id].moment_count = 0;
    }
    start(&b);
    if (tl_plan_keep_all(&b.env, tl_find_run_graph(b.run), 0, &plan)) fail_msg("%s", b.env.error.text);
    memset(&slots, 0, sizeof slots);
    slots.steps = steps;
    slots.step_count = 2 * plan.step_count;
    slots.slot_count = 2;
    assert_true(slots.step_count <= 8 * OPS);
    for (k = 0; k < slots.step_count; k++) {
        steps[k] = tl_find_step(&plan, k % plan.step_count);
        steps[k].slot = k >= plan.step_count;
    }
    b.desc.plan = &slots;
    assert_int_equal(tl_init_op_run(&b.env, &b.desc, b.ops, b.count, &run), TL_ERROR_INVALID_PLAN);
    assert_non_null(strstr(b.env.error.text, "is the same"));
    tl_free_plan(&b.env, &plan);
    close_bed(&b);
    // The forward of a norm may write its third input.
    open_bed(&b, TL_UPDATES_FUSED, 0);
    b.ops[b.input].name = "x";
    start(&b);
    graph = *tl_find_run_graph(b.run);
    if (tl_plan_keep_all(&b.env, &graph, 0, &plan)) fail_msg("%s", b.env.error.text);
    memset(&places, 0, sizeof places);
    places.graph = &graph;
    if (tl_plan_places(&b.env, &places, &plan, NULL)) fail_msg("%s", b.env.error.text);
    memset(&code, 0, sizeof code);
    memset(&header, 0, sizeof header);
    code.name = "net";
    program.count = 0;
    header.write = keep;
    header.user = &program;
    source = header;
    source.write = drop;
    if (tl_write_plan_code(&b.env, &graph, &plan, &code, header, source)) fail_msg("%s", b.env.error.text);
    memcpy(text, program.bytes, program.count);
    text[program.count] = 0;
    assert_non_null(strstr(text, "void net_norm_forward(int32_t node, void *out0, const void *in0, const void *in1, void *in2, void *saved);"));
    tl_free_plan(&b.env, &plan);
    close_bed(&b);
}

// -- rehearsal --

typedef struct wrong {
    fault       fault;
    char        letter;     // of the layer that is wrong: the second norm, or the first that tracks
    const char *needs;
    const char *sentence;   // behind the name of the node; NULL = nothing is found
} wrong;

static const wrong wrongs[] = {
    { NO_FAULT, 'n', NULL, NULL },
    { NORMS_BY_CHANGED, 'n', NULL, NULL },
    { COUNTS_AGAIN, 'n', NULL, ": forward changes input 2 when it runs again: look at call->recompute, or mark the op once" },
    { COUNTS_ONLY_AGAIN, 'n', NULL, ": forward changes input 2 when it runs again: look at call->recompute, or mark the op once" },
    { NORMS_BY_FOUND, 'n', NULL, ": forward makes other bytes when it runs again, from input 2, which it has changed: compute from the batch alone, or mark the op once" },
    { DIFFERS_AGAIN, 'n', NULL, ": forward makes other bytes from the same operands: draw random numbers from call->seed, or register their state and give a random hook, or mark it once" },
    { BACKWARD_COUNTS, 'n', NULL, ": backward writes to input 2, which it may only read, at byte 0: write to an output, a gradient or scratch; an input is overwritten by inplace alone" },
    { BACKWARD_COUNTS, 'n', "in", ": backward writes to input 2, which it may only read, at byte 0: write to an output, a gradient or scratch; an input is overwritten by inplace alone" },
    { BACKWARD_READS, 'n', NULL, ": backward reads input 2, which needs does not name: add in2 to needs" },
    { BACKWARD_READS, 'n', "in", NULL },
    { NO_FAULT, 'n', "in", ": backward does not read input 2, which needs names: take in2 out of needs" },
    { COUNTS_BEYOND, 'n', NULL, ": forward writes beside input 2, behind byte 28: declare more bytes (of the op that makes it)" },
    { COUNTS_NOTHING, 'n', NULL, ": forward reads input 2 neither here nor in backward: take the input out" },
    { COUNTS_FOR_OTHERS, 'n', NULL, ": forward uses statistics of node 4, which the op does not have: list it in inputs, or leave it alone" },
    { WRITES_WEIGHT, 'n', NULL, ": forward writes to input 1, which it may only read, at byte 0: write to an output, a gradient or scratch; an input is overwritten by inplace alone" },
    { TRACKS_WHOLE, 't', NULL, ": forward makes another input 1 when it is called for a range of elements: go by call->first and call->count, or take takes_blocks out" },
};

// What is wrong with statistics is found at the first run, nothing is found in another node, and the states are as they were.
static void a_rehearsal_knows_statistics(void **state) {
    static bed b;
    static image before, after;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const wrong *w = &wrongs[i];
        tl_rehearsal_desc desc;
        tl_rehearsal found;
        int32_t node, k;
        char line[400], want[400];
        open_bed_on(&b, TL_UPDATES_FUSED, 0, 0);
        node = b.second_norm;
        while (w->letter == 't' && b.ops[node].forward != track) node++;
        b.layers[node].fault = w->fault;
        if (w->needs) b.ops[node].needs = w->needs;
        start(&b);
        take(&b, &before);
        memset(&desc, 0, sizeof desc);
        desc.pass_count = w->fault ? -1 : 2;
        if (tl_rehearse_run(b.run, &desc, &found)) fail_msg("%d: %s", (int)i, b.env.error.text);
        line[0] = want[0] = 0;
        if (found.finding_count) tl_print_finding(tl_find_run_graph(b.run), &found.findings[0], line, sizeof line);
        if (w->sentence) snprintf(want, sizeof want, "%s%s", tl_name_node(tl_find_run_graph(b.run), node), w->sentence);
        if (strcmp(line, want) != 0) fail_msg("%d: found \"%s\", not \"%s\"", (int)i, line, want);
        assert_int_equal(found.finding_count > 0, w->sentence != NULL);
        for (k = 0; k < found.finding_count; k++) assert_int_equal(found.findings[k].node, node);
        assert_int_equal(found.unprobed_count, 0);
        take(&b, &after);
        assert_memory_equal(&before, &after, sizeof before);
        tl_free_rehearsal(&b.env, &found);
        close_bed(&b);
    }
}

// -- statistics that a node reads and one below it changes --

static tl_result relu_by_mean(const tl_kernel_call *call, void *user) {
    tl_result result = relu(call, user);
    uint64_t i;
    for (i = 0; i < call->count && call->kind != TL_STEP_BACKWARD; i++) f32(call->outputs[0])[i] *= 1.5f + f32(call->inputs[1])[0];
    return result;
}

// The relu above the second norm reads what that changes. Returns its node.
static int32_t open_early_reader(bed *b, int once) {
    int32_t node;
    open_bed_on(b, TL_UPDATES_END, 0, 0);
    for (node = b->second_norm; b->ops[node].forward != relu;) node--;
    b->ops[node].forward = b->ops[node].backward = relu_by_mean;
    b->ops[node].takes_blocks = 0;
    b->ops[node].once = once;
    b->ops[node].input_count = 2;
    b->reads[node][1] = b->reads[b->second_norm][2];
    return node;
}

// It finds other statistics when it runs again, unless it is marked once: then it trains as a run that keeps all.
static void a_reader_above_a_writer_runs_once(void **state) {
    static bed b;
    static image trained[2];
    tl_strategy strategy = tight_strategy();
    int once, tight;
    (void)state;
    for (once = 0; once < 2; once++) {
        tl_rehearsal_desc desc;
        tl_rehearsal found;
        int32_t node = 0;
        for (tight = 0; tight < 2; tight++) {
            (void)open_early_reader(&b, once);
            b.desc.strategy = &strategy;
            if (tight) b.desc.budget_bytes = find_figures(&b).least_bytes;
            start(&b);
            train(&b, STEPS);
            take(&b, &trained[tight]);
            close_bed(&b);
        }
        assert_int_equal(count_others(&b, &trained[0], &trained[1], 0) > 0, !once);
        node = open_early_reader(&b, once);
        start(&b);
        memset(&desc, 0, sizeof desc);
        desc.pass_count = -1;
        if (tl_rehearse_run(b.run, &desc, &found)) fail_msg("%s", b.env.error.text);
        assert_int_equal(found.error_count, !once);
        if (!once) assert_int_equal(found.findings[0].kind, TL_FINDING_STATISTICS_LATER);
        if (!once) assert_true(found.findings[0].node == node && found.findings[0].index == 1);
        tl_free_rehearsal(&b.env, &found);
        close_bed(&b);
    }
}

// Where nobody changes them there is nothing to find.
static void statistics_that_stay_are_read_by_all(void **state) {
    static bed b;
    tl_rehearsal_desc desc;
    tl_rehearsal found;
    int32_t i;
    (void)state;
    (void)open_early_reader(&b, 0);
    b.layers[b.second_norm].fault = COUNTS_NOTHING;
    start(&b);
    memset(&desc, 0, sizeof desc);
    desc.pass_count = -1;
    if (tl_rehearse_run(b.run, &desc, &found)) fail_msg("%s", b.env.error.text);
    assert_int_equal(found.error_count, 0);
    for (i = 0; i < found.finding_count; i++) assert_int_equal(found.findings[i].node, b.second_norm);
    tl_free_rehearsal(&b.env, &found);
    close_bed(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_are_those_of_a_run_that_keeps_all),
        cmocka_unit_test(filters_are_trained_in_pieces),
        cmocka_unit_test(skipped_updates_count_passes),
        cmocka_unit_test(online_runs_train_the_same),
        cmocka_unit_test(a_pass_goes_on_with_its_statistics),
        cmocka_unit_test(fused_kernels_have_their_statistics),
        cmocka_unit_test(statistics_are_one_and_stay_what_they_are),
        cmocka_unit_test(a_rehearsal_knows_statistics),
        cmocka_unit_test(wrong_kernels_train_something_else),
        cmocka_unit_test(a_reader_above_a_writer_runs_once),
        cmocka_unit_test(statistics_that_stay_are_read_by_all),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
