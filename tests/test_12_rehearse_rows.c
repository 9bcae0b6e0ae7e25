// [12] RUN: the rehearsal calls nodes for blocks of their rows, and names those that do not bear it.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

enum { ROWS = 17, WIDTH = 6 };     // the last block begins between two multiples of its rows

// What is wrong with the declaration, or with the kernel.
typedef enum fault {
    NO_FAULT, HALO_OF_ONE_ROW, HALO_OF_TWO_ROWS, STRIDE, DILATION, PADDING_AT_EVERY_BLOCK, WHOLE_AS_ROWS, SUMS_BY_BLOCK,
    MEAN_BY_COUNT, REDUCES_EACH_BLOCK, IGNORES_FIRST, FOURS, IGNORES_COUNT, OVER_ROWS, SAVED_BY_ROW, LAST_BLOCK_IS_FULL,
    GRADIENT_IS_SET, SCRATCH_IS_WHOLE, KEYS_BY_BLOCK, PAIRS, SECOND_AHEAD, OUTPUT_AHEAD, GRADIENT_AHEAD, HALO_BEFORE,
    AXIS_AS_FIRST, FAULTS
} fault;

static const char *const fault_names[FAULTS] = {
    "none", "a halo of one row", "a halo of two rows", "another stride", "another dilation", "padding at each block's border",
    "what is read whole taken as 1:1", "sums by block", "a mean by count", "a sum of the last block alone", "numbers that ignore first",
    "rows in fours", "count is ignored", "normalised over the rows", "saved bytes by row of the whole", "as many rows in the last block",
    "a gradient that is set", "scratch of all rows", "keys of the block alone",
    "rows in pairs, and one at the end alone", "the next row of a second input", "the next row of an output", "the next row of a gradient",
    "a halo before the rows", "rows of another axis taken as first"
};

typedef struct bed {
    fault    what;
    tl_relation relations[2];
    tl_op    ops[4];
    tl_tensor reads[2];
} bed;

static float *row_of(tl_operand operand, int64_t row) { return (float *)tl_find_row(&operand, (uint64_t)row, WIDTH * 4); }
static int64_t first_of(const tl_kernel_call *call) { return call->by_rows ? (int64_t)call->first : 0; }
static int64_t end_of(const tl_kernel_call *call, int64_t rows) { return call->by_rows ? (int64_t)(call->first + call->count) : rows; }

// -- a window over rows: y[r] is the sum of 3 rows, or of 5 --

static int64_t rows_of_window(fault f) { return f == STRIDE ? ROWS / 2 : ROWS; }

static tl_result window_forward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, rows_of_window(b->what)), r, j, i, reach = b->what == HALO_OF_TWO_ROWS ? 2 : 1;
    int64_t before = b->what == HALO_BEFORE ? 2 : reach;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++) {
            float sum = 0;
            for (j = -before; j <= reach; j++) {
                int64_t at = (b->what == STRIDE ? 2 * r : r) + (b->what == DILATION ? 2 * j : j);
                if (at < 0 || at >= ROWS || (b->what == PADDING_AT_EVERY_BLOCK && call->by_rows && (at < first || at >= end))) continue;
                sum += row_of(call->inputs[0], at)[i] * (float)(j + 3);
            }
            row_of(call->outputs[0], r)[i] = sum;
        }
    return TL_OK;
}

// -- a dense layer with one weight: pointers and a number of rows --

static float *part_of(tl_operand operand, int64_t row) { return (float *)operand.host + row * WIDTH; }

static tl_result dense_forward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i, k;
    const float *w = (const float *)call->inputs[1].host;
    float mean = 0;
    if (b->what == IGNORES_COUNT && call->by_rows) end = first + (first ? 2 * (int64_t)call->count : (int64_t)call->count);
    if (b->what == FOURS && call->by_rows) end += (first - end) & 3;
    if (b->what == PAIRS && call->by_rows && end != ROWS) end -= (end - first) & 1;
    if (b->what == LAST_BLOCK_IS_FULL && call->by_rows && end == ROWS) end = first + 4;
    if (call->scratch.host) memset(call->scratch.host, 1, b->what == SCRATCH_IS_WHOLE ? ROWS * WIDTH * 4 : (size_t)call->scratch.range.bytes);
    if (b->what == OVER_ROWS)
        for (r = first; r < end; r++) mean += part_of(call->inputs[0], r - first)[0] / (float)(end - first);
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++) {
            float sum = -mean;
            for (k = 0; k < WIDTH; k++) sum += part_of(call->inputs[0], r - first)[k] * w[k * WIDTH + i];
            if (b->what == IGNORES_FIRST) sum *= 1 + (float)((r - first) % 7);   // a mask, by the number of the row in the call
            part_of(call->outputs[0], r - first)[i] = sum;
        }
    return TL_OK;
}

static tl_result dense_backward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i, k;
    float sums[WIDTH * WIDTH] = { 0 }, *dw = (float *)call->input_grads[1].host;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++)
            for (k = 0; k < WIDTH; k++) {
                float g = part_of(call->output_grads[0], r - first)[i] * part_of(call->inputs[0], r - first)[k];
                if (b->what == IGNORES_FIRST) g *= 1 + (float)((r - first) % 7);
                if (b->what == SUMS_BY_BLOCK) sums[k * WIDTH + i] += g;
                else if (b->what == GRADIENT_IS_SET && r == first && call->by_rows) dw[k * WIDTH + i] = g;
                else dw[k * WIDTH + i] += g;
            }
    for (i = 0; i < WIDTH * WIDTH && b->what == SUMS_BY_BLOCK; i++) dw[i] += sums[i];
    return TL_OK;
}

// -- a norm with saved bytes --

static tl_result norm_forward(const tl_kernel_call *call, void *user) {
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i;
    (void)user;
    for (r = first; r < end; r++) {
        float sum = 1;
        for (i = 0; i < WIDTH; i++) sum += row_of(call->inputs[0], r)[i] * row_of(call->inputs[0], r)[i];
        if (call->kind == TL_STEP_FORWARD_SAVE) ((float *)call->saved.host)[end - 1 - r] = 1 / sum;     // as this call likes it
        for (i = 0; i < WIDTH; i++) row_of(call->outputs[0], r)[i] = row_of(call->inputs[0], r)[i] / sum;
    }
    return TL_OK;
}

static tl_result norm_backward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i;
    assert_int_equal(call->saved.rows, 0);      // the kernel's own bytes are no ring
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++)     // wrong: the number of the whole's row, within the block's saved bytes
            row_of(call->input_grads[0], r)[i] += row_of(call->output_grads[0], r)[i] *
                ((const float *)call->saved.host)[b->what == SAVED_BY_ROW ? (r + 1) % (end - first) : end - 1 - r];
    return TL_OK;
}

// -- row by row: a sum of two inputs, a bend whose backward reads what it made --

static int64_t ahead(const bed *b, fault f, int64_t row) { return row + (b->what == f && row + 1 < ROWS); }

static tl_result sum_forward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++)
            part_of(call->outputs[0], r - first)[i] = part_of(call->inputs[0], r - first)[i] + part_of(call->inputs[1], ahead(b, SECOND_AHEAD, r) - first)[i];
    return TL_OK;
}

static tl_result bend_forward(const tl_kernel_call *call, void *user) {
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i;
    (void)user;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++) {
            float x = part_of(call->inputs[0], r - first)[i];
            part_of(call->outputs[0], r - first)[i] = x / (1 + (x < 0 ? -x : x));
        }
    return TL_OK;
}

static tl_result bend_backward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++) {
            float y = part_of(call->outputs[0], ahead(b, OUTPUT_AHEAD, r) - first)[i], left = 1 - (y < 0 ? -y : y);
            part_of(call->input_grads[0], r - first)[i] += part_of(call->output_grads[0], ahead(b, GRADIENT_AHEAD, r) - first)[i] * left * left;
        }
    return TL_OK;
}

// Rows along another axis: operands are whole.
static tl_result across_forward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i, base = b->what == AXIS_AS_FIRST ? first : 0;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++) part_of(call->outputs[0], r - base)[i] = 2 * part_of(call->inputs[0], r - base)[i];
    return TL_OK;
}

// -- attention to all rows --

static tl_result mix_forward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, k, i;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++) {
            float sum = 0;
            for (k = b->what == KEYS_BY_BLOCK ? first : 0; k < (b->what == KEYS_BY_BLOCK ? end : ROWS); k++) sum += row_of(call->inputs[1], k)[i];
            row_of(call->outputs[0], r)[i] = row_of(call->inputs[0], r)[i] * sum;
        }
    return TL_OK;
}

// -- a loss --

static tl_result loss_forward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i;
    float *loss = (float *)call->outputs[0].host;
    if (!first || b->what == REDUCES_EACH_BLOCK) *loss = 0;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++) *loss += row_of(call->inputs[0], r)[i] * row_of(call->inputs[0], r)[i];
    if (!call->by_rows || call->first + call->count == call->total) *loss /= ROWS;
    return TL_OK;
}

static tl_result loss_backward(const tl_kernel_call *call, void *user) {
    const bed *b = (const bed *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, i;
    float by = b->what == MEAN_BY_COUNT ? (float)(end - first) : (float)ROWS;
    for (r = first; r < end; r++)
        for (i = 0; i < WIDTH; i++)
            row_of(call->input_grads[0], r)[i] += 2 * ((const float *)call->output_grads[0].host)[0] * row_of(call->inputs[0], r)[i] / by;
    return TL_OK;
}

static tl_result update(const tl_kernel_call *call, void *user) {
    int i;
    (void)user;
    for (i = 0; i < WIDTH * WIDTH; i++) ((float *)call->outputs[0].host)[i] -= 0.1f * ((const float *)call->output_grads[0].host)[i];
    return TL_OK;
}

// -- nets: what is tried is op 2, or op 3, which is a loss --

static void by_rows(bed *b, tl_op *op, uint64_t rows, int a, int c) {
    b->relations[0].kind = a;
    b->relations[1].kind = c;
    op->rows = rows;
    op->relations = b->relations;
    op->ordered = 1;
    op->user = b;
}

static void open_window(bed *b) {
    tl_op *op = &b->ops[2];
    int64_t rows = rows_of_window(b->what);
    op->forward = window_forward;
    op->no_grad = 1;
    op->output_bytes = (uint64_t)rows * WIDTH * 4;
    by_rows(b, op, (uint64_t)rows, b->what == HALO_OF_ONE_ROW ? TL_RELATION_SAME : TL_RELATION_WINDOW, 0);
    op->input_count = 1;
    if (b->what == HALO_OF_ONE_ROW) return;
    b->relations[0].kernel = 3;
    b->relations[0].stride = 1;     // of STRIDE it is 2
    b->relations[0].padding = 1;
}

static int tries_last(fault what) {
    return what == MEAN_BY_COUNT || what == REDUCES_EACH_BLOCK || what == SAVED_BY_ROW || what == OUTPUT_AHEAD || what == GRADIENT_AHEAD;
}

static void open_bed(bed *b, fault what) {
    static float initial[WIDTH * WIDTH];
    tl_op *op = &b->ops[2], *loss = &b->ops[3];
    int i;
    memset(b, 0, sizeof *b);
    for (i = 0; i < WIDTH * WIDTH; i++) initial[i] = (float)(i % 7) * 0.37f - 1;
    b->what = what;
    b->ops[0].kind = "input"; b->ops[0].output_bytes = ROWS * WIDTH * 4;
    b->ops[0].rows = ROWS;
    b->ops[1].kind = "sgd"; b->ops[1].state = TL_STATE_TRAINED; b->ops[1].output_bytes = WIDTH * WIDTH * 4;
    b->ops[1].backward = update; b->ops[1].initial = initial;
    b->reads[0].node = 0;
    b->reads[1].node = 1;
    op->name = "tried";
    op->inputs = b->reads;
    op->input_count = 2;
    op->output_bytes = ROWS * WIDTH * 4;
    op->forward = dense_forward; op->backward = dense_backward;
    op->needs = "in0";
    if (what == SCRATCH_IS_WHOLE) op->fwork_bytes = ROWS * WIDTH * 4;
    by_rows(b, op, ROWS, TL_RELATION_SAME, what == WHOLE_AS_ROWS ? TL_RELATION_SAME : TL_RELATION_WHOLE);
    loss->name = "loss"; loss->forward = loss_forward; loss->backward = loss_backward; loss->user = b;
    loss->output_bytes = 4;
    loss->keep = 1;
    if ((what >= HALO_OF_ONE_ROW && what <= PADDING_AT_EVERY_BLOCK) || what == HALO_BEFORE) open_window(b);
    if (tries_last(what)) {
        b->ops[3].name = "tried";
        op->name = "dense";
        op->rows = 0; op->relations = NULL; op->ordered = 0;
        by_rows(b, loss, ROWS, TL_RELATION_SAME, 0);
        loss->reduces = what == MEAN_BY_COUNT || what == REDUCES_EACH_BLOCK;
        if (!loss->reduces) loss->output_bytes = ROWS * WIDTH * 4;
    }
    if (what == SAVED_BY_ROW) {
        loss->forward = norm_forward; loss->backward = norm_backward;
        loss->saved_bytes = ROWS * 4;
        loss->needs = "none";
    }
    if (what == OUTPUT_AHEAD || what == GRADIENT_AHEAD) {
        loss->forward = bend_forward; loss->backward = bend_backward;
        loss->needs = "out";
    }
    if (what == AXIS_AS_FIRST) {
        op->forward = across_forward;
        op->no_grad = 1;
        op->needs = NULL;
        op->row_axis = 1;
        op->input_count = 1;
    }
    if (what == SECOND_AHEAD) {
        b->ops[1].kind = "input"; b->ops[1].state = TL_STATE_NONE; b->ops[1].output_bytes = ROWS * WIDTH * 4;
        b->ops[1].backward = NULL; b->ops[1].initial = NULL;
        b->ops[1].rows = ROWS;
        op->forward = sum_forward;
        op->no_grad = 1;
        op->needs = NULL;
        by_rows(b, op, ROWS, TL_RELATION_SAME, TL_RELATION_SAME);
    }
    if (what == KEYS_BY_BLOCK || what == WHOLE_AS_ROWS) {
        b->reads[1].node = 0;
        op->forward = mix_forward;
        op->no_grad = 1;
        op->needs = NULL;
    }
}

// Rehearse the net. Returns whether the op that is tried is named for its blocks, 2 = for its sums; *others: findings
// beside it.
static int rehearse(bed *b, tl_env *env, int *others) {
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc;
    tl_rehearsal found;
    tl_run *run = NULL;
    tl_plan plan;
    float x[ROWS * WIDTH];
    tl_tensor tensor = { 0, 0 }, second = { 1, 0 };
    int32_t i, named = 0;
    int two_inputs = b->ops[1].state == TL_STATE_NONE;
    int count = b->ops[2].no_grad ? 3 : 4;      // a net without a backward ends with what is tried
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    memset(&plan, 0, sizeof plan);
    if (tl_init_cpu_backend(env, &cpu, &backend)) fail_msg("%s", env->error.text);
    for (i = 0; i < ROWS * WIDTH; i++) x[i] = (float)((i * 31) % 17) / 9.0f - 0.8f;
    b->ops[2].keep = count == 3;
    desc.backend = &backend;
    desc.inference = count == 3;
    if (count == 3) b->ops[1].backward = NULL;
    if (count == 3 && !two_inputs) b->ops[1].state = TL_STATE_FROZEN;
    if (tl_init_op_run(env, &desc, b->ops, count, &run)) fail_msg("%s: %s", fault_names[b->what], env->error.text);
    if (tl_write_tensor(run, tensor, x, sizeof x)) fail_msg("%s", env->error.text);
    if (two_inputs && tl_write_tensor(run, second, x, sizeof x)) fail_msg("%s", env->error.text);
    if (tl_rehearse_run(run, NULL, &found)) fail_msg("%s: %s", fault_names[b->what], env->error.text);
    *others = 0;
    for (i = 0; i < found.finding_count; i++) {
        const tl_finding *f = &found.findings[i];
        int is_blocks = f->kind == TL_FINDING_BLOCK_DIFFERS || f->kind == TL_FINDING_NOT_ORDERED ||
                        (b->what == SCRATCH_IS_WHOLE && f->kind == TL_FINDING_BEYOND_WRITTEN);
        char text[300];
        if (f->is_advice) continue;
        tl_print_finding(tl_find_run_graph(run), f, text, sizeof text);
        print_message("%-34s %s\n", fault_names[b->what], text);
        if (is_blocks && f->node == (tries_last(b->what) ? 3 : 2)) named = 1 + (f->kind == TL_FINDING_NOT_ORDERED);
        else ++*others;
    }
    tl_free_rehearsal(env, &found);
    tl_free_run(run);
    tl_free_cpu_backend(env, &backend);
    return named;
}

static void every_wrong_declaration_is_named(void **state) {
    static bed b;
    fault f;
    (void)state;
    for (f = (fault)(NO_FAULT + 1); f < FAULTS; f = (fault)(f + 1)) {
        tl_env env = silent_env();
        int others, named;
        open_bed(&b, f);
        named = rehearse(&b, &env, &others);
        if (!named) fail_msg("%s was not found", fault_names[f]);
        assert_int_equal(named == 2, f == SUMS_BY_BLOCK);
    }
}

static void right_declarations_are_left_alone(void **state) {
    static bed b;
    fault f;
    (void)state;
    for (f = NO_FAULT; f < FAULTS; f = (fault)(f + 1)) {
        tl_env env = silent_env();
        int others = 0;
        open_bed(&b, f);
        b.what = NO_FAULT;          // the same net with the right kernel
        if (f == HALO_OF_ONE_ROW || f == WHOLE_AS_ROWS || f == STRIDE) continue;   // whose declaration is wrong
        assert_int_equal(rehearse(&b, &env, &others), 0);
        assert_int_equal(others, 0);
    }
    {   // a sum that is not ordered may round
        tl_env env = silent_env();
        int others = 0;
        open_bed(&b, SUMS_BY_BLOCK);
        b.ops[2].ordered = 0;
        assert_int_equal(rehearse(&b, &env, &others), 0);
        assert_int_equal(others, 0);
    }
}

// -- queries, keys and values in one tensor of two columns each --

enum { H = 2, SCORES, MIXED, ENDS, PART_OPS };

typedef struct parts {
    bed       b;                // its ops 0 to 2: the tensor is made by a dense layer
    tl_op     ops[PART_OPS];
    tl_tensor reads[2][2];
    tl_relation relations[2][2];
    int       keys, values;     // the columns that these begin at
    int       query;            // the input that queries are read from, by rows; the other one has the keys
} parts;

static tl_result scores_forward(const tl_kernel_call *call, void *user) {
    const parts *p = (const parts *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, k;
    for (r = first; r < end; r++)
        for (k = 0; k < ROWS; k++) {
            const float *q = row_of(call->inputs[p->query], r), *key = part_of(call->inputs[1 - p->query], k) + p->keys;
            ((float *)call->outputs[0].host)[(r - first) * ROWS + k] = q[0] * key[0] + q[1] * key[1];
        }
    return TL_OK;
}

// First those of all queries, then those of the keys.
static tl_result scores_backward(const tl_kernel_call *call, void *user) {
    const parts *p = (const parts *)user;
    const tl_operand *q = &call->inputs[p->query], *dq = &call->input_grads[p->query];
    const tl_operand *key = &call->inputs[1 - p->query], *dkey = &call->input_grads[1 - p->query];
    const float *dy = (const float *)call->output_grads[0].host;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, k, i;
    for (r = first; r < end; r++)
        for (k = 0; k < ROWS; k++)
            for (i = 0; i < 2; i++) part_of(*dq, r - first)[i] += dy[(r - first) * ROWS + k] * part_of(*key, k)[p->keys + i];
    for (r = first; r < end; r++)
        for (k = 0; k < ROWS; k++)
            for (i = 0; i < 2; i++) part_of(*dkey, k)[p->keys + i] += dy[(r - first) * ROWS + k] * row_of(*q, r)[i];
    return TL_OK;
}

static tl_result values_forward(const tl_kernel_call *call, void *user) {
    const parts *p = (const parts *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, k, i;
    for (r = first; r < end; r++)
        for (i = 0; i < 2; i++) {
            float sum = 0;
            for (k = 0; k < ROWS; k++)
                sum += ((const float *)call->inputs[0].host)[(r - first) * ROWS + k] * part_of(call->inputs[1], k)[p->values + i];
            ((float *)call->outputs[0].host)[(r - first) * 2 + i] = sum;
        }
    return TL_OK;
}

static tl_result values_backward(const tl_kernel_call *call, void *user) {
    const parts *p = (const parts *)user;
    int64_t first = first_of(call), end = end_of(call, ROWS), r, k, i;
    for (r = first; r < end; r++)
        for (k = 0; k < ROWS; k++)
            for (i = 0; i < 2; i++) {
                float dy = ((const float *)call->output_grads[0].host)[(r - first) * 2 + i];
                ((float *)call->input_grads[0].host)[(r - first) * ROWS + k] += dy * part_of(call->inputs[1], k)[p->values + i];
                part_of(call->input_grads[1], k)[p->values + i] += dy * ((const float *)call->inputs[0].host)[(r - first) * ROWS + k];
            }
    return TL_OK;
}

static tl_result ends_forward(const tl_kernel_call *call, void *user) {
    int i;
    (void)user;
    ((float *)call->outputs[0].host)[0] = 0;
    for (i = 0; i < ROWS * 2; i++) ((float *)call->outputs[0].host)[0] += ((const float *)call->inputs[0].host)[i] * ((const float *)call->inputs[0].host)[i];
    return TL_OK;
}

static tl_result ends_backward(const tl_kernel_call *call, void *user) {
    int i;
    (void)user;
    for (i = 0; i < ROWS * 2; i++)
        ((float *)call->input_grads[0].host)[i] += 2 * ((const float *)call->output_grads[0].host)[0] * ((const float *)call->inputs[0].host)[i];
    return TL_OK;
}

static void open_parts(parts *p, int keys, int values, int keys_relation, int values_relation) {
    int k;
    memset(p, 0, sizeof *p);
    open_bed(&p->b, NO_FAULT);
    memcpy(p->ops, p->b.ops, 3 * sizeof p->ops[0]);
    p->ops[H].relations = p->b.relations;
    p->ops[H].inputs = p->b.reads;
    p->keys = keys;
    p->values = values;
    p->reads[0][0].node = p->reads[0][1].node = p->reads[1][1].node = H;
    p->reads[1][0].node = SCORES;
    p->relations[0][0].kind = p->relations[1][0].kind = TL_RELATION_SAME;
    p->relations[0][1].kind = keys_relation;
    p->relations[1][1].kind = values_relation;
    for (k = 0; k < 2; k++) {
        tl_op *op = &p->ops[SCORES + k];
        op->name = k ? "values" : "scores";
        op->forward = k ? values_forward : scores_forward;
        op->backward = k ? values_backward : scores_backward;
        op->user = p;
        op->inputs = p->reads[k];
        op->input_count = 2;
        op->output_bytes = ROWS * (k ? 2 : ROWS) * 4;
        op->needs = "in0,in1";
        op->rows = ROWS;
        op->relations = p->relations[k];
        op->ordered = 1;
    }
    p->ops[ENDS].name = "ends";
    p->ops[ENDS].forward = ends_forward;
    p->ops[ENDS].backward = ends_backward;
    p->ops[ENDS].output_bytes = 4;
    p->ops[ENDS].keep = 1;
}

// Rehearse. Returns how many errors there are, and notes the last.
static int rehearse_parts(parts *p, tl_finding *last) {
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc;
    tl_rehearsal found;
    tl_run *run = NULL;
    float x[ROWS * WIDTH];
    tl_tensor tensor = { 0, 0 };
    int32_t i, errors;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < ROWS * WIDTH; i++) x[i] = (float)((i * 31) % 17) / 9.0f - 0.8f;
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    desc.backend = &backend;
    if (tl_init_op_run(&env, &desc, p->ops, PART_OPS, &run)) fail_msg("%s", env.error.text);
    assert_int_equal(tl_write_tensor(run, tensor, x, sizeof x), TL_OK);
    if (tl_rehearse_run(run, NULL, &found)) fail_msg("%s", env.error.text);
    for (i = 0; i < found.finding_count; i++) if (!found.findings[i].is_advice) *last = found.findings[i];
    errors = found.error_count;
    tl_free_rehearsal(&env, &found);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
    return (int)errors;
}

// A node whose gradients of one tensor are of its own rows and of all may be called in blocks; what it adds to as a
// part, no other node may.
static void parts_are_of_one_node_alone(void **state) {
    static parts p;
    tl_finding last;
    (void)state;
    open_parts(&p, 2, 4, TL_RELATION_PART, TL_RELATION_PART);
    assert_int_equal(rehearse_parts(&p, &last), 0);
    p.query = 1;                                                    // keys are the first input
    p.relations[0][0].kind = TL_RELATION_PART;
    p.relations[0][1].kind = TL_RELATION_SAME;
    assert_int_equal(rehearse_parts(&p, &last), 0);
    open_parts(&p, 2, 4, TL_RELATION_WHOLE, TL_RELATION_WHOLE);
    assert_int_equal(rehearse_parts(&p, &last), 0);
    open_parts(&p, 0, 4, TL_RELATION_WHOLE, TL_RELATION_WHOLE);     // queries are the keys
    assert_int_equal(rehearse_parts(&p, &last), 0);
    open_parts(&p, 2, 2, TL_RELATION_WHOLE, TL_RELATION_WHOLE);     // values are
    assert_int_equal(rehearse_parts(&p, &last), 0);
    open_parts(&p, 2, 2, TL_RELATION_WHOLE, TL_RELATION_PART);
    assert_int_equal(rehearse_parts(&p, &last), 1);
    assert_int_equal(last.kind, TL_FINDING_PART_SHARED);
    assert_int_equal(last.node, SCORES);        // backwards come last node first
    assert_int_equal(last.byte, 2 * 4);
    open_parts(&p, 2, 3, TL_RELATION_PART, TL_RELATION_PART);       // one column is in both
    assert_int_equal(rehearse_parts(&p, &last), 1);
    assert_int_equal(last.kind, TL_FINDING_PART_SHARED);
    assert_int_equal(last.byte, 3 * 4);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wrong_declaration_is_named),
        cmocka_unit_test(right_declarations_are_left_alone),
        cmocka_unit_test(parts_are_of_one_node_alone),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
