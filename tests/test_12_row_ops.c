// [12] RUN of operations with rows: a small net with a loss over many classes, within fewer bytes than its logits.
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

enum { ROWS = 96, WIDTH = 8, HIDDEN = 24, CLASSES = 160, STEPS = 20, BATCHES = 4 };

#define RATE 0.05f

typedef struct net {
    float    x[BATCHES][ROWS * WIDTH];
    uint32_t targets[BATCHES][ROWS];
    float    w1[WIDTH * HIDDEN], w2[HIDDEN * CLASSES];
    int32_t  batch;             // of the pass that runs
    long     row_calls;
    uint64_t binding;           // the largest range that a kernel can be given; 0 = any
} net;

static float *f32(tl_operand operand) { return (float *)operand.host; }

static uint64_t rows_of(const tl_kernel_call *call, net *n) {
    n->row_calls += call->by_rows;
    if (n->binding) assert_true(call->inputs[0].range.bytes <= n->binding && call->outputs[0].range.bytes <= n->binding);
    if (call->by_rows) assert_int_equal(call->total, ROWS);
    return call->by_rows ? call->count : ROWS;
}

// -- kernels: pointers and a number of rows --

typedef struct shape { uint64_t in, out; } shape;
static const shape first_shape = { WIDTH, HIDDEN }, second_shape = { HIDDEN, CLASSES };
typedef struct dense { net *n; const shape *s; } dense;

static tl_result dense_forward(const tl_kernel_call *call, void *user) {
    const dense *d = (const dense *)user;
    const float *x = f32(call->inputs[0]), *w = f32(call->inputs[1]);
    float *y = f32(call->outputs[0]);
    uint64_t rows = rows_of(call, d->n), r, i, o;
    for (r = 0; r < rows; r++)
        for (o = 0; o < d->s->out; o++) {
            float sum = 0;
            for (i = 0; i < d->s->in; i++) sum += x[r * d->s->in + i] * w[i * d->s->out + o];
            y[r * d->s->out + o] = sum;
        }
    return TL_OK;
}

static tl_result dense_backward(const tl_kernel_call *call, void *user) {
    const dense *d = (const dense *)user;
    const float *x = f32(call->inputs[0]), *w = f32(call->inputs[1]), *dy = f32(call->output_grads[0]);
    float *dx = f32(call->input_grads[0]), *dw = f32(call->input_grads[1]);
    uint64_t rows = rows_of(call, d->n), r, i, o;
    for (r = 0; r < rows; r++)
        for (i = 0; i < d->s->in; i++)
            for (o = 0; o < d->s->out; o++) {
                if (dx) dx[r * d->s->in + i] += dy[r * d->s->out + o] * w[i * d->s->out + o];
                dw[i * d->s->out + o] += x[r * d->s->in + i] * dy[r * d->s->out + o];
            }
    return TL_OK;
}

static tl_result bend_forward(const tl_kernel_call *call, void *user) {
    uint64_t i;
    (void)user;
    for (i = 0; i < call->count; i++) f32(call->outputs[0])[i] = f32(call->inputs[0])[i] / (1 + f32(call->inputs[0])[i] * f32(call->inputs[0])[i]);
    return TL_OK;
}

static tl_result bend_backward(const tl_kernel_call *call, void *user) {
    uint64_t i;
    (void)user;
    for (i = 0; i < call->count; i++) {
        float x = f32(call->inputs[0])[i], d = 1 + x * x;
        f32(call->input_grads[0])[i] += f32(call->output_grads[0])[i] * (1 - x * x) / (d * d);
    }
    return TL_OK;
}

// The mean of squares of what is above the target's by less than 1: a hinge, row by row. A mean divides by total.
static tl_result loss_forward(const tl_kernel_call *call, void *user) {
    net *n = (net *)user;
    uint64_t rows = rows_of(call, n), r, o;
    float *loss = f32(call->outputs[0]);
    if (!call->by_rows || !call->first) *loss = 0;
    for (r = 0; r < rows; r++) {
        const float *y = f32(call->inputs[0]) + r * CLASSES;
        uint32_t target = n->targets[n->batch][(call->by_rows ? call->first : 0) + r];
        for (o = 0; o < CLASSES; o++) {
            float over = 1 + y[o] - y[target];
            if (o != target && over > 0) *loss += over * over / CLASSES;
        }
    }
    if (!call->by_rows || call->first + call->count == call->total) *loss /= ROWS;
    return TL_OK;
}

static tl_result loss_backward(const tl_kernel_call *call, void *user) {
    net *n = (net *)user;
    uint64_t rows = rows_of(call, n), r, o;
    float scale = 2 * f32(call->output_grads[0])[0] / (CLASSES * ROWS);
    for (r = 0; r < rows; r++) {
        const float *y = f32(call->inputs[0]) + r * CLASSES;
        float *dy = f32(call->input_grads[0]) + r * CLASSES;
        uint32_t target = n->targets[n->batch][(call->by_rows ? call->first : 0) + r];
        for (o = 0; o < CLASSES; o++) {
            float over = 1 + y[o] - y[target];
            if (o == target || over <= 0) continue;
            dy[o] += scale * over;
            dy[target] -= scale * over;
        }
    }
    return TL_OK;
}

static tl_result update(const tl_kernel_call *call, void *user) {
    uint64_t i;
    (void)user;
    for (i = 0; i < call->outputs[0].range.bytes / 4; i++) f32(call->outputs[0])[i] -= RATE * f32(call->output_grads[0])[i];
    return TL_OK;
}

// -- the net --

enum { X, W1, W2, HIDE, BEND, LOGITS, LOSS, OPS };

typedef struct bed {
    net       n;
    dense     layers[2];
    tl_tensor reads[2][2];
    tl_op     ops[OPS];
    tl_run_figures figures;
    tl_run_report  report;
    float     loss[STEPS], w1[WIDTH * HIDDEN], w2[HIDDEN * CLASSES];
    uint64_t  taken;
} bed;

static const tl_relation by_row_and_whole[2] = { { TL_RELATION_SAME, 0, 0, 0, 0 }, { TL_RELATION_WHOLE, 0, 0, 0, 0 } };

static void fill_net(net *n) {
    tl_random random = { 3 };
    uint64_t i, b;
    for (b = 0; b < BATCHES; b++)
        for (i = 0; i < ROWS * WIDTH; i++) n->x[b][i] = (float)tl_next_random_below(&random, 2001) / 1000.0f - 1;
    for (b = 0; b < BATCHES; b++)
        for (i = 0; i < ROWS; i++) n->targets[b][i] = (uint32_t)tl_next_random_below(&random, CLASSES);
    for (i = 0; i < WIDTH * HIDDEN; i++) n->w1[i] = (float)tl_next_random_below(&random, 2001) / 4000.0f - 0.25f;
    for (i = 0; i < HIDDEN * CLASSES; i++) n->w2[i] = (float)tl_next_random_below(&random, 2001) / 4000.0f - 0.25f;
}

static void by_rows(tl_op *op) {
    op->rows = ROWS;
    op->relations = by_row_and_whole;
    op->ordered = 1;
}

static void open_bed(bed *b, tl_state kind) {
    static const uint64_t bytes[OPS] = { ROWS * WIDTH * 4, WIDTH * HIDDEN * 4, HIDDEN * CLASSES * 4, ROWS * HIDDEN * 4, ROWS * HIDDEN * 4, ROWS * CLASSES * 4, 4 };
    int i;
    memset(b, 0, sizeof *b);
    fill_net(&b->n);
    b->layers[0].n = b->layers[1].n = &b->n;
    b->layers[0].s = &first_shape;
    b->layers[1].s = &second_shape;
    for (i = 0; i < OPS; i++) b->ops[i].output_bytes = bytes[i];
    b->ops[X].kind = "input";
    for (i = W1; i <= W2; i++) {
        b->ops[i].kind = "sgd";
        b->ops[i].state = kind;
        b->ops[i].backward = update;
        b->ops[i].initial = i == W1 ? b->n.w1 : b->n.w2;
    }
    b->reads[0][0].node = X;    b->reads[0][1].node = W1;
    b->reads[1][0].node = BEND; b->reads[1][1].node = W2;
    for (i = 0; i < 2; i++) {
        tl_op *op = &b->ops[i ? LOGITS : HIDE];
        op->forward = dense_forward;
        op->backward = dense_backward;
        op->user = &b->layers[i];
        op->inputs = b->reads[i];
        op->input_count = 2;
        by_rows(op);
    }
    b->ops[BEND].forward = bend_forward;
    b->ops[BEND].backward = bend_backward;
    b->ops[BEND].takes_blocks = 1;
    b->ops[LOSS].forward = loss_forward;
    b->ops[LOSS].backward = loss_backward;
    b->ops[LOSS].user = &b->n;
    b->ops[LOSS].keep = b->ops[LOSS].reduces = 1;
    by_rows(&b->ops[LOSS]);
}

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    net *n = (net *)user;
    tl_tensor x = { X, 0 };
    n->batch = micro_batch % BATCHES;
    return tl_write_tensor(run, x, n->x[n->batch], sizeof n->x[0]);
}

// A backend of the CPU whose kernels can be given less.
static tl_backend roomy;
static uint64_t small_binding;

static void small_limits(void *self, tl_backend_limits *limits) {
    roomy.limits(self, limits);
    limits->binding_bytes = small_binding;
}

// Train with what is asked for; without a budget within as much as it takes.
static tl_result train_asked(bed *b, tl_env *env, const tl_run_desc *asked) {
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc = *asked;
    tl_run *run;
    tl_tensor loss = { LOSS, 0 }, w1 = { W1, 0 }, w2 = { W2, 0 };
    tl_result result;
    int32_t step;
    memset(&cpu, 0, sizeof cpu);
    result = tl_init_cpu_backend(env, &cpu, &backend);
    if (result) return result;
    roomy = backend;
    small_binding = b->n.binding;
    if (small_binding) backend.limits = small_limits;
    desc.backend = &backend;
    desc.figures = &b->figures;
    desc.load = load;
    desc.load_user = &b->n;
    result = tl_init_op_run(env, &desc, b->ops, OPS, &run);
    for (step = 0; step < STEPS && !result; step++) {
        if (tl_run_plan(run) || tl_read_tensor(run, loss, &b->loss[step], 4)) fail_msg("%s", env->error.text);
    }
    if (!result) {
        if (tl_read_tensor(run, w1, b->w1, sizeof b->w1) || tl_read_tensor(run, w2, b->w2, sizeof b->w2)) fail_msg("%s", env->error.text);
        tl_measure_run(run, &b->report);
        assert_int_equal(b->report.measured_peak_bytes, b->report.planned_peak_bytes);
        tl_free_run(run);
    }
    tl_free_cpu_backend(env, &roomy);
    return result;
}

static tl_result train(bed *b, tl_env *env, uint64_t budget, int32_t passes, int may_cut) {
    tl_run_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.budget_bytes = budget;
    desc.repeat_count = passes;
    desc.may_cut_rows = may_cut;
    return train_asked(b, env, &desc);
}

static void assert_same_training(const bed *a, const bed *b) {
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->w1, b->w1, sizeof a->w1);
    assert_memory_equal(a->w2, b->w2, sizeof a->w2);
}

static void weights_are_those_of_the_whole_training(void **state) {
    static const int32_t passes[] = { 1, 2, 4 };
    static bed whole, cut;
    size_t k;
    uint64_t least, without;
    (void)state;
    for (k = 0; k < 3; k++) {
        tl_state kind = k ? TL_STATE_HELD : TL_STATE_TRAINED;
        tl_env env = silent_env();
        uint64_t budget;
        open_bed(&whole, kind);
        assert_int_equal(train(&whole, &env, 0, passes[k], 0), TL_OK);
        without = whole.figures.least_bytes;
        assert_int_equal(whole.n.row_calls, 0);
        open_bed(&cut, kind);
        assert_int_equal(train(&cut, &env, 0, passes[k], 1), TL_OK);    // nothing is cut without a budget
        assert_int_equal(cut.n.row_calls, 0);
        assert_same_training(&whole, &cut);
        least = cut.figures.least_bytes;
        assert_true(least < without && without < cut.figures.keep_all_bytes);
        for (budget = least; budget < cut.figures.keep_all_bytes; budget += (cut.figures.keep_all_bytes - least) / 5) {
            open_bed(&cut, kind);
            if (train(&cut, &env, budget, passes[k], 1)) fail_msg("%s", env.error.text);
            assert_true(cut.report.taken_bytes <= budget + 63);
            assert_true(cut.n.row_calls > 0 || budget >= without);
            assert_int_equal(cut.report.base_cost, whole.report.base_cost);     // not that of regions, which make more again
            assert_true(cut.report.planned_cost >= cut.report.base_cost);
            assert_same_training(&whole, &cut);
        }
        print_message("%d passes: keep all %lu, least %lu, with rows %lu\n", (int)passes[k], (unsigned long)cut.figures.keep_all_bytes,
                      (unsigned long)without, (unsigned long)least);
    }
    assert_true(whole.loss[STEPS - 1] < whole.loss[0]);
}

static void less_than_the_least_is_refused_with_it(void **state) {
    static bed b;
    tl_env env = silent_env();
    uint64_t least;
    (void)state;
    open_bed(&b, TL_STATE_TRAINED);
    assert_int_equal(train(&b, &env, 0, 1, 1), TL_OK);
    least = b.figures.least_bytes;
    open_bed(&b, TL_STATE_TRAINED);
    assert_int_equal(train(&b, &env, least - 64, 1, 1), TL_ERROR_INFEASIBLE);
    assert_int_equal(tl_find_least_budget(&env.error), least);
}

// -- saves --

typedef struct saved { char data[1 << 16]; size_t length; } saved;

static tl_result add_saved(void *user, const char *bytes, size_t length) {
    saved *s = (saved *)user;
    assert_true(length <= sizeof s->data - s->length);
    memcpy(s->data + s->length, bytes, length);
    s->length += length;
    return TL_OK;
}

// Train half of the steps within one budget and the others within another, from a save.
static void train_in_halves(bed *b, tl_env *env, const uint64_t *budgets) {
    static saved s;
    int half;
    s.length = 0;
    for (half = 0; half < 2; half++) {
        tl_cpu_backend_desc cpu;
        tl_backend backend;
        tl_run_desc desc;
        tl_run *run;
        tl_tensor loss = { LOSS, 0 }, w1 = { W1, 0 }, w2 = { W2, 0 };
        tl_sink sink = { add_saved, &s };
        int step;
        memset(&cpu, 0, sizeof cpu);
        memset(&desc, 0, sizeof desc);
        assert_int_equal(tl_init_cpu_backend(env, &cpu, &backend), TL_OK);
        desc.backend = &backend;
        desc.budget_bytes = budgets[half];
        desc.load = load;
        desc.load_user = &b->n;
        desc.may_cut_rows = 1;
        assert_int_equal(tl_init_op_run(env, &desc, b->ops, OPS, &run), TL_OK);
        if (half && tl_load_run(run, s.data, s.length)) fail_msg("%s", env->error.text);
        for (step = half * STEPS / 2; step < (half + 1) * STEPS / 2; step++)
            if (tl_run_plan(run) || tl_read_tensor(run, loss, &b->loss[step], 4)) fail_msg("%s", env->error.text);
        if (!half) assert_int_equal(tl_save_run(run, sink), TL_OK);
        assert_int_equal(tl_read_tensor(run, w1, b->w1, sizeof b->w1) | tl_read_tensor(run, w2, b->w2, sizeof b->w2), TL_OK);
        tl_free_run(run);
        tl_free_cpu_backend(env, &backend);
    }
}

// A save knows nothing of regions: a run with others, or none, goes on from it.
static void saves_go_on_with_other_regions(void **state) {
    static bed whole, cut;
    static const uint64_t budgets[][2] = { { 38464, 0 }, { 0, 38464 }, { 38464, 60000 }, { 60000, 38464 } };
    tl_env env = silent_env();
    size_t k;
    (void)state;
    open_bed(&whole, TL_STATE_TRAINED);
    assert_int_equal(train(&whole, &env, 0, 1, 0), TL_OK);
    for (k = 0; k < 4; k++) {
        open_bed(&cut, TL_STATE_TRAINED);
        train_in_halves(&cut, &env, budgets[k]);
        assert_true(cut.n.row_calls > 0);
        assert_same_training(&whole, &cut);
    }
}

// -- options beside may_cut_rows --

typedef enum option {
    COUNTS_TABLES, IN_FLIGHT, HOST_BYTES, BASE_BYTES, FULL_GRADIENT, EACH_SECOND, TWO_PASSES, MINIMAL_PEAK, CACHED, EAGER, MIXED_OF_F32,
    MEMORY_EFFICIENT, IN_PIECES, LITTLE_WORK, OPTIONS
} option;

static void ask_for_option(option which, tl_strategy *strategy, tl_run_desc *desc) {
    memset(desc, 0, sizeof *desc);
    *strategy = tl_strategy_new();
    strategy->mode = TL_MODE_LAZY;
    strategy->memory = TL_MEMORY_POOLED;
    strategy->precision = TL_PRECISION_SINGLE;
    strategy->gradient = tl_gradient_checkpointed(0);
    desc->strategy = strategy;
    switch (which) {
    case COUNTS_TABLES:    desc->counts_tables = 1; break;
    case IN_FLIGHT:        desc->in_flight = 2; break;
    case HOST_BYTES:       desc->host_budget_bytes = 20000; break;
    case BASE_BYTES:       desc->base_bytes = 5000; break;
    case FULL_GRADIENT:    strategy->gradient = tl_gradient_full(); break;
    case EACH_SECOND:      strategy->gradient = tl_gradient_checkpointed(2); break;
    case TWO_PASSES:       strategy->gradient = tl_gradient_accumulated(2); break;
    case MINIMAL_PEAK:     strategy->memory = TL_MEMORY_MINIMAL_PEAK; break;
    case CACHED:           strategy->memory = TL_MEMORY_CACHED; break;
    case EAGER:            strategy->mode = TL_MODE_EAGER; strategy->gradient = tl_gradient_full(); break;
    case MIXED_OF_F32:     strategy->precision = TL_PRECISION_MIXED; break;
    case MEMORY_EFFICIENT: *strategy = tl_strategy_memory_efficient(); break;
    case IN_PIECES:        desc->may_train_in_pieces = 1; break;
    case LITTLE_WORK:      desc->work_limit = 1000; break;
    case OPTIONS:          break;
    }
}

// The least budget is one, as is each above it, and what is trained is the same.
static void each_option_has_a_least_budget_that_is_one(void **state) {
    static bed whole, cut;
    int which;
    (void)state;
    for (which = 0; which < OPTIONS; which++) {
        tl_state kind = which == TWO_PASSES ? TL_STATE_HELD : TL_STATE_TRAINED;
        tl_env env = silent_env();
        tl_strategy strategy;
        tl_run_desc desc;
        uint64_t least, all, fixed;
        int k;
        ask_for_option((option)which, &strategy, &desc);
        open_bed(&whole, kind);
        if (train_asked(&whole, &env, &desc)) fail_msg("option %d: %s", which, env.error.text);
        desc.may_cut_rows = 1;
        desc.budget_bytes = 1;
        open_bed(&cut, kind);
        assert_int_equal(train_asked(&cut, &env, &desc), TL_ERROR_INFEASIBLE);
        least = cut.figures.least_bytes;
        all = cut.figures.keep_all_bytes;
        if (least >= whole.figures.least_bytes || least != tl_find_least_budget(&env.error))
            fail_msg("option %d: least %lu, whole %lu, %s", which, (unsigned long)least, (unsigned long)whole.figures.least_bytes, env.error.text);
        for (k = 0; k <= 8; k += is_slow() ? 4 : 1) {
            desc.budget_bytes = least + (all - least) / 8 * (uint64_t)k;
            open_bed(&cut, kind);
            if (train_asked(&cut, &env, &desc)) fail_msg("option %d at %lu of %lu: %s", which, (unsigned long)desc.budget_bytes, (unsigned long)least, env.error.text);
            fixed = desc.base_bytes + (which == COUNTS_TABLES ? cut.report.table_bytes : 0);
            assert_true(cut.report.taken_bytes + fixed <= desc.budget_bytes);
            assert_int_equal(cut.figures.least_bytes, least);
            assert_true(k || cut.n.row_calls > 0);
            assert_same_training(&whole, &cut);
        }
        for (k = 1; k <= 4; k++) {      // nothing less works
            desc.budget_bytes = least - least / 40 * (uint64_t)k;
            open_bed(&cut, kind);
            assert_int_equal(train_asked(&cut, &env, &desc), TL_ERROR_INFEASIBLE);
            assert_int_equal(tl_find_least_budget(&env.error), least);
        }
    }
}

// An op whose operands are larger than a binding is called for blocks of its rows, whether regions may be cut or not.
static void what_no_binding_holds_is_cut_alone(void **state) {
    static const uint64_t bindings[] = { 16384, 20000, 40000, 61440 };
    static bed whole, cut;
    tl_env env = silent_env();
    size_t k;
    int may_cut;
    (void)state;
    open_bed(&whole, TL_STATE_TRAINED);
    assert_int_equal(train(&whole, &env, 0, 1, 0), TL_OK);
    for (k = 0; k < 4; k++)
        for (may_cut = 0; may_cut < 2; may_cut++) {
            uint64_t least, calls = 61440 % (bindings[k] / 640 * 640) ? 61440 / (bindings[k] / 640 * 640) + 1 : 1, at;
            open_bed(&cut, TL_STATE_TRAINED);
            cut.n.binding = bindings[k];
            if (train(&cut, &env, 0, 1, may_cut)) fail_msg("%s", env.error.text);
            least = cut.figures.least_bytes;
            assert_same_training(&whole, &cut);
            assert_true(least < cut.figures.keep_all_bytes);
            // the linear layer and the loss, forward and backward, of which the loss goes forward once more
            if (calls > 1) assert_true(cut.n.row_calls >= (long)(4 * calls) * STEPS && cut.n.row_calls <= (long)(5 * calls) * STEPS);
            else assert_int_equal(cut.n.row_calls, 0);
            for (at = 0; at < 3; at++) {
                uint64_t budget = least + (cut.figures.keep_all_bytes - least) / 3 * at;
                open_bed(&cut, TL_STATE_TRAINED);
                cut.n.binding = bindings[k];
                if (train(&cut, &env, budget, 1, may_cut)) fail_msg("%s", env.error.text);
                assert_true(cut.report.taken_bytes <= budget);
                assert_same_training(&whole, &cut);
            }
        }
    open_bed(&cut, TL_STATE_TRAINED);
    cut.n.binding = 15000;      // less than a weight, which is whole in each call
    assert_int_equal(train(&cut, &env, 0, 1, 1), TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(env.error.text, "15360 that cannot be cut"));
    assert_true(!cut.figures.keep_all_bytes && !cut.figures.least_bytes);
    open_bed(&cut, TL_STATE_TRAINED);
    cut.n.binding = 16384;
    cut.ops[LOGITS].ordered = 0;
    assert_int_equal(train(&cut, &env, 0, 1, 1), TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(env.error.text, "is not cut: its rows are not ordered"));
}

// Several passes a step, and weights that keep no gradient between them: no budget is the least then.
static void passes_need_gradients_that_states_hold(void **state) {
    static bed b;
    tl_env env = silent_env();
    tl_run_desc desc;
    int cuts;
    (void)state;
    for (cuts = 0; cuts < 2; cuts++) {
        memset(&desc, 0, sizeof desc);
        desc.may_cut_rows = cuts;
        desc.repeat_count = 2;
        desc.budget_bytes = 1;
        open_bed(&b, TL_STATE_TRAINED);
        assert_int_equal(train_asked(&b, &env, &desc), TL_ERROR_UNSUPPORTED);
        assert_non_null(strstr(env.error.text, "micro-batches need gradients that states hold"));
        assert_int_equal(tl_find_least_budget(&env.error), UINT64_MAX);
    }
}

// Calls that cost something are fewer where the budget allows it; a plan of its own finds its least with regions of its own.
static void calls_cost_what_is_said(void **state) {
    static bed cheap, dear;
    tl_env env = silent_env();
    tl_run_desc desc;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.may_cut_rows = 1;
    desc.budget_bytes = 100000;
    open_bed(&cheap, TL_STATE_TRAINED);
    assert_int_equal(train_asked(&cheap, &env, &desc), TL_OK);
    desc.piece_call_cost = 100;
    open_bed(&dear, TL_STATE_TRAINED);
    assert_int_equal(train_asked(&dear, &env, &desc), TL_OK);
    assert_true(dear.n.row_calls < cheap.n.row_calls && dear.n.row_calls > 0);
    assert_true(dear.report.planned_cost >= dear.report.base_cost + 100 && cheap.report.planned_cost < cheap.report.base_cost + 100);
    assert_same_training(&cheap, &dear);
}

// A region of more members holds nothing for a plan that keeps all: the least with every second checkpoint is that of
// other regions than those of the least plan.
static void plans_of_their_own_have_regions_of_their_own(void **state) {
    static bed b;
    tl_env env = silent_env();
    tl_strategy strategy;
    tl_run_desc desc;
    uint64_t least;
    int k, loose;
    (void)state;
    for (loose = 0; loose < 4; loose++) {
        ask_for_option(EACH_SECOND, &strategy, &desc);
        desc.may_cut_rows = 1;
        desc.in_flight = loose & 1 ? 2 : 0;
        desc.budget_bytes = 1;
        open_bed(&b, TL_STATE_TRAINED);
        if (loose & 2) b.ops[HIDE].rows = 0;
        if (loose & 2) b.ops[HIDE].relations = NULL;
        if (loose & 2) b.ops[HIDE].ordered = 0;
        assert_int_equal(train_asked(&b, &env, &desc), TL_ERROR_INFEASIBLE);
        least = b.figures.least_bytes;
        for (k = 0; k < 12; k++) {
            desc.budget_bytes = least - least / 60 * (uint64_t)k;
            assert_int_equal(train_asked(&b, &env, &desc), k ? TL_ERROR_INFEASIBLE : TL_OK);
        }
    }
}

// What regions do not go with is refused whatever the budget is.
static void other_options_are_refused_at_every_budget(void **state) {
    static bed b;
    static const uint64_t budgets[] = { 0, 1, 50000, 1000000 };
    tl_env env = silent_env();
    size_t k;
    int which;
    (void)state;
    for (which = 0; which < 4; which++)
        for (k = 0; k < 4; k++) {
            tl_strategy strategy;
            tl_run_desc desc;
            ask_for_option(OPTIONS, &strategy, &desc);
            desc.may_cut_rows = 1;
            desc.budget_bytes = budgets[k];
            if (which == 0) strategy.enable_fusion = 1;
            if (which == 1) desc.may_split = 1;
            if (which >= 2) desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_HALF | 1u << TL_PRECISION_MIXED;
            if (which >= 2) strategy.precision = which == 2 ? TL_PRECISION_HALF : TL_PRECISION_MIXED;
            open_bed(&b, TL_STATE_TRAINED);
            assert_int_equal(train_asked(&b, &env, &desc), TL_ERROR_INVALID_ARG);
            assert_non_null(strstr(env.error.text, which < 2 ? "tl_init_op_run: rows: go without fusion, compiled plans, split batches"
                                                             : "tl_init_op_run: rows: go with f32 alone"));
        }
}

static void wrong_fields_are_refused(void **state) {
    static bed b;
    tl_env env = silent_env();
    (void)state;
    open_bed(&b, TL_STATE_TRAINED);
    assert_int_equal(train(&b, &env, 0, 1, 2), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_init_op_run: may_cut_rows: must be 0 or 1");
    {
        static tl_rows_plan rows;       // looked at by nobody
        tl_run_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.may_cut_rows = 1;
        desc.rows = &rows;
        assert_int_equal(train_asked(&b, &env, &desc), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_init_op_run: may_cut_rows: a plan, checkpoints or rows that are given say what is cut already");
    }
    b.ops[W1].rows = 8;
    assert_int_equal(train(&b, &env, 0, 1, 1), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "rows"));
    open_bed(&b, TL_STATE_TRAINED);
    b.ops[LOGITS].rows = 7;
    assert_int_equal(train(&b, &env, 0, 1, 1), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "rows: the bytes of output 0 must divide by them"));
}

// A kernel that changes the last float of the rows that it reads.
static tl_result dense_that_writes(const tl_kernel_call *call, void *user) {
    tl_result result = dense_forward(call, user);
    if (call->by_rows) f32(call->inputs[0])[call->count * ((const dense *)user)->s->in - 1] += 1;
    return result;
}

// A checked backend names the member of a region whose kernel it is, not the region.
static void a_kernel_that_writes_what_it_reads_is_named(void **state) {
    static bed b;
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc;
    tl_run *run;
    (void)state;
    open_bed(&b, TL_STATE_TRAINED);
    b.ops[LOGITS].name = "logits";
    b.ops[LOGITS].forward = dense_that_writes;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    cpu.checked = 1;
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    desc.backend = &backend;
    desc.budget_bytes = 60000;
    desc.load = load;
    desc.load_user = &b.n;
    desc.may_cut_rows = 1;
    assert_int_equal(tl_init_op_run(&env, &desc, b.ops, OPS, &run), TL_OK);
    assert_int_equal(tl_run_plan(run), TL_ERROR_CORRUPT);
    assert_non_null(strstr(env.error.text, "): logits: the kernel wrote to input 0, but may only read that"));
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
}

static void each_allocation_that_fails_is_reported(void **state) {
    static bed b;
    uint64_t budget;
    int at, failed = 0;
    tl_result result = TL_ERROR_NO_MEMORY;
    (void)state;
    {
        tl_env env = silent_env();
        open_bed(&b, TL_STATE_TRAINED);
        assert_int_equal(train(&b, &env, 0, 1, 1), TL_OK);
        budget = b.figures.least_bytes;
    }
    for (at = 0; result; at += 1 + at / 24) {
        failing_alloc memory = { 0 };
        tl_env env = failing_env(&memory, at);
        open_bed(&b, TL_STATE_TRAINED);
        result = train(&b, &env, budget, 1, 1);
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        assert_int_equal(memory.live, 0);
        failed += result != TL_OK;
    }
    print_message("%d allocations failed\n", failed);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_the_whole_training),
        cmocka_unit_test(less_than_the_least_is_refused_with_it),
        cmocka_unit_test(saves_go_on_with_other_regions),
        cmocka_unit_test(each_option_has_a_least_budget_that_is_one),
        cmocka_unit_test(calls_cost_what_is_said),
        cmocka_unit_test(plans_of_their_own_have_regions_of_their_own),
        cmocka_unit_test(what_no_binding_holds_is_cut_alone),
        cmocka_unit_test(passes_need_gradients_that_states_hold),
        cmocka_unit_test(other_options_are_refused_at_every_budget),
        cmocka_unit_test(wrong_fields_are_refused),
        cmocka_unit_test(a_kernel_that_writes_what_it_reads_is_named),
        cmocka_unit_test(each_allocation_that_fails_is_reported),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
