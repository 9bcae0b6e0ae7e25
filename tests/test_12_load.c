// [12] RUN: load hooks give the next batch, as those of training loops do. A rehearsal calls the hook once and keeps what it
// wrote, so a right program is never refused; and what a hook does wrong is named as the hook's.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

// -- three loops around one network --
//
//     x [ROWS][WIDTH] --> dense --> dense (in place) --> .. --> loss <-- y [ROWS]
//                                                                    <-- valid: rows of this batch

enum { ROWS = 6, WIDTH = 5, LAYERS = 6, SAMPLES = 40, OPS = LAYERS + 4 };
enum { X, Y, VALID, FIRST, LOSS = FIRST + LAYERS };

typedef enum reader_kind { SHUFFLED, GENERATOR, EPOCHS, READERS } reader_kind;

// The place in the data.
typedef struct reader {
    uint64_t random, at, epoch;
    int32_t  order[SAMPLES];
} reader;

typedef struct loop {
    reader_kind kind;
    reader  place;
    long    loads, loads_of_rehearsal;
    float   w[LAYERS][WIDTH * WIDTH], dw[LAYERS][WIDTH * WIDTH], mean[LAYERS][WIDTH];
    tl_op   ops[OPS];
    int32_t layers[OPS];
    tl_tensor reads[OPS][3];
    tl_variable variables[3 * LAYERS + 1];
    int32_t variable_count;
    tl_run *other;          // wrong hooks write there
    int32_t most_rows;      // that a call of the loss saw
    int     bug;
    int     tells;          // how wrong hooks end
} loop;

static int32_t layer_of(const tl_kernel_call *call) { return call->node - FIRST; }

static float small(uint64_t a, uint64_t b) { return (float)(tl_mix_u64(a, b) >> 40) * (1.0f / 16777216.0f) - 0.5f; }

static tl_result dense_forward(const tl_kernel_call *call, void *user) {
    loop *l = (loop *)user;
    const float *x = (const float *)call->inputs[0].host, *w = l->w[layer_of(call)];
    float *y = (float *)call->outputs[0].host;
    int i, j, k;
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < WIDTH; j++) {
            float sum = 0;
            for (k = 0; k < WIDTH; k++) sum += x[i * WIDTH + k] * w[k * WIDTH + j];
            y[i * WIDTH + j] = sum + 0.25f * sum * sum;
        }
    for (j = 0; j < WIDTH && !call->recompute; j++) l->mean[layer_of(call)][j] += 0.1f * (y[j] - l->mean[layer_of(call)][j]);
    return TL_OK;
}

static tl_result dense_backward(const tl_kernel_call *call, void *user) {
    loop *l = (loop *)user;
    const float *x = (const float *)call->inputs[0].host, *w = l->w[layer_of(call)], *dy = (const float *)call->output_grads[0].host;
    float *dx = (float *)call->input_grads[0].host, *dw = l->dw[layer_of(call)];
    int i, j, k;
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < WIDTH; j++) {
            float sum = 0, d;
            for (k = 0; k < WIDTH; k++) sum += x[i * WIDTH + k] * w[k * WIDTH + j];
            d = dy[i * WIDTH + j] * (1 + 0.5f * sum);
            for (k = 0; k < WIDTH; k++) {
                dw[k * WIDTH + j] += x[i * WIDTH + k] * d;
                if (dx) dx[i * WIDTH + k] += w[k * WIDTH + j] * d;
            }
        }
    return TL_OK;
}

// Rows behind the batch are padding and count for nothing.
static tl_result loss_forward(const tl_kernel_call *call, void *user) {
    const float *x = (const float *)call->inputs[0].host, *y = (const float *)call->inputs[1].host;
    int32_t rows = *(const int32_t *)call->inputs[2].host, i;
    float sum = 0;
    if (rows > ((loop *)user)->most_rows) ((loop *)user)->most_rows = rows;
    for (i = 0; i < rows; i++) sum += (x[i * WIDTH] - y[i]) * (x[i * WIDTH] - y[i]);
    *(float *)call->outputs[0].host = rows ? sum / (float)rows : 0;
    return TL_OK;
}

static tl_result loss_backward(const tl_kernel_call *call, void *user) {
    const float *x = (const float *)call->inputs[0].host, *y = (const float *)call->inputs[1].host;
    const float d = *(const float *)call->output_grads[0].host;
    float *dx = (float *)call->input_grads[0].host;
    int32_t rows = *(const int32_t *)call->inputs[2].host, i;
    (void)user;
    for (i = 0; i < rows; i++) dx[i * WIDTH] += d * 2 * (x[i * WIDTH] - y[i]) / (float)rows;
    return TL_OK;
}

static void loop_open(loop *l, reader_kind kind, int registers) {
    int32_t i;
    memset(l, 0, sizeof *l);
    l->kind = kind;
    l->place.random = 77 + (uint64_t)kind;
    for (i = 0; i < SAMPLES; i++) l->place.order[i] = i;
    for (i = X; i <= VALID; i++) l->ops[i].kind = "input";
    l->ops[X].name = "x";
    l->ops[Y].name = "y";
    l->ops[VALID].name = "valid";
    l->ops[X].output_bytes = ROWS * WIDTH * sizeof(float);
    l->ops[Y].output_bytes = ROWS * sizeof(float);
    l->ops[VALID].output_bytes = sizeof(int32_t);
    for (i = 0; i < LAYERS; i++) {
        tl_op *op = &l->ops[FIRST + i];
        int32_t k;
        for (k = 0; k < WIDTH * WIDTH; k++) l->w[i][k] = small((uint64_t)i, (uint64_t)k);
        l->reads[FIRST + i][0].node = i ? FIRST + i - 1 : X;
        op->inputs = l->reads[FIRST + i];
        op->input_count = 1;
        op->output_bytes = ROWS * WIDTH * sizeof(float);
        op->param_bytes = sizeof l->w[i];
        op->forward = dense_forward;
        op->backward = dense_backward;
        op->user = l;
        for (k = 0; k < 3; k++) {
            tl_variable *variable = &l->variables[l->variable_count++];
            variable->node = FIRST + i;
            variable->kind = k == 0 ? TL_VARIABLE_PARAMETER : k == 1 ? TL_VARIABLE_GRADIENT : TL_VARIABLE_STATISTICS;
            variable->host = k == 0 ? (void *)l->w[i] : k == 1 ? (void *)l->dw[i] : (void *)l->mean[i];
            variable->bytes = k == 2 ? sizeof l->mean[i] : sizeof l->w[i];
        }
    }
    l->reads[LOSS][0].node = LOSS - 1;
    l->reads[LOSS][1].node = Y;
    l->reads[LOSS][2].node = VALID;
    l->ops[LOSS].name = "loss";
    l->ops[LOSS].inputs = l->reads[LOSS];
    l->ops[LOSS].input_count = 3;
    l->ops[LOSS].needs = "in0,in1,in2";
    l->ops[LOSS].output_bytes = sizeof(float);
    l->ops[LOSS].forward = loss_forward;
    l->ops[LOSS].backward = loss_backward;
    l->ops[LOSS].user = l;
    l->ops[LOSS].keep = 1;
    if (!registers) return;
    l->variables[l->variable_count].node = -1;
    l->variables[l->variable_count].kind = TL_VARIABLE_RANDOM;
    l->variables[l->variable_count].host = &l->place;
    l->variables[l->variable_count++].bytes = sizeof l->place;
}

// The next batch. Of epochs the last batch is smaller: SAMPLES is no multiple of ROWS.
static int32_t next_rows(loop *l, float *x, float *y) {
    reader *r = &l->place;
    tl_random random = {r->random};
    int32_t rows = 0, i, k;
    memset(x, 0, ROWS * WIDTH * sizeof *x);
    memset(y, 0, ROWS * sizeof *y);
    if (r->at >= SAMPLES && l->kind != GENERATOR) { r->at = 0; r->epoch++; }
    for (k = 0; k < SAMPLES && l->kind == SHUFFLED && !r->at; k++) {
        int32_t other = (int32_t)tl_next_random_below(&random, SAMPLES), keep = r->order[k];
        r->order[k] = r->order[other];
        r->order[other] = keep;
    }
    while (rows < ROWS && (l->kind != EPOCHS || r->at < SAMPLES)) {
        uint64_t sample;
        if (l->kind == SHUFFLED && r->at >= SAMPLES) r->at = 0;
        sample = l->kind == GENERATOR ? tl_next_random(&random) : (uint64_t)r->order[r->at];
        for (i = 0; i < WIDTH; i++) x[rows * WIDTH + i] = small(sample, (uint64_t)i);
        y[rows++] = small(sample, 99);
        r->at++;
    }
    r->random = random.state;
    return rows;
}

static tl_result write_input(tl_run *run, int32_t node, const void *data, size_t bytes) {
    tl_tensor tensor = {0, 0};
    tensor.node = node;
    return tl_write_tensor(run, tensor, data, bytes);
}

static tl_result loop_load(tl_run *run, int32_t micro_batch, void *user) {
    loop *l = (loop *)user;
    float x[ROWS * WIDTH], y[ROWS];
    int32_t rows = next_rows(l, x, y);
    (void)micro_batch;
    l->loads++;
    if (write_input(run, X, x, sizeof x) || write_input(run, Y, y, sizeof y)) return TL_ERROR_IO;
    return write_input(run, VALID, &rows, sizeof rows);
}

typedef struct way {
    double ratio;           // of keep-all; 0 = no budget
    int    rehearses;       // 1 = in tl_init_op_run; 2 = between two steps
    int    checked, deferred, repeat_count;
    uint64_t alignment;
} way;

// Train so many steps; everything that training leaves stands in the loop. skips: batches that are passed over first.
static void loop_train(loop *l, const way *w, int32_t steps, int32_t skips) {
    tl_cpu_backend_desc cpu;
    tl_env env;
    tl_run_desc desc;
    tl_rehearsal found;
    tl_backend backend;
    tl_run *run;
    int32_t step, i, k;
    memset(&cpu, 0, sizeof cpu);
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    cpu.checked = w->checked;
    cpu.deferred = w->deferred;
    cpu.alignment_bytes = w->alignment;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail_msg("%s", env.error.text);
    desc.backend = &backend;
    desc.load = loop_load;
    desc.load_user = l;
    desc.variables = l->variables;
    desc.variable_count = l->variable_count;
    desc.budget_ratio = w->ratio;
    desc.repeat_count = w->repeat_count;
    desc.work_limit = 200000;
    if (w->rehearses == 1) desc.rehearsal = &found;
    for (i = 0; i < skips; i++) {
        float x[ROWS * WIDTH], y[ROWS];
        (void)next_rows(l, x, y);
    }
    if (tl_init_op_run(&env, &desc, l->ops, LOSS + 1, &run)) fail_msg("kind %d: %s", (int)l->kind, env.error.text);
    l->loads_of_rehearsal = l->loads;
    for (step = 0; step < steps; step++) {
        if (w->rehearses == 2 && step == steps / 2) {
            long before = l->loads;
            tl_rehearsal_desc untimed = {-1};
            if (tl_rehearse_run(run, &untimed, &found)) fail_msg("kind %d: %s", (int)l->kind, env.error.text);
            l->loads_of_rehearsal = l->loads - before;
        }
        if (tl_run_plan(run)) fail_msg("kind %d, step %d: %s", (int)l->kind, (int)step, env.error.text);
        for (i = 0; i < LAYERS; i++)
            for (k = 0; k < WIDTH * WIDTH; k++) { l->w[i][k] -= 0.05f * l->dw[i][k]; l->dw[i][k] = 0; }
    }
    if (w->rehearses) assert_int_equal(found.error_count, 0);
    if (w->rehearses) tl_free_rehearsal(&env, &found);
    tl_free_run(run);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// Rehearsed and trained inside a budget: the bits of a run that knows neither. A place in the data that is registered is put
// back; any other has moved on by one batch when training begins.
static void loops_that_load_the_next_batch_are_rehearsed(void **state) {
    static const way ways[] = {
        {0.55, 1, 0, 0, 1, 0}, {0.6, 1, 1, 0, 1, 0}, {0, 1, 0, 1, 1, 0}, {0.7, 1, 0, 0, 3, 16}, {0.8, 2, 0, 0, 1, 0},
        {0.6, 2, 1, 1, 2, 128},
    };
    static loop plain, planned;
    int32_t kind, i, registers, steps = 17;
    (void)state;
    for (kind = 0; kind < READERS; kind++)
        for (registers = 0; registers < 2; registers++)
            for (i = 0; i < (int32_t)(sizeof ways / sizeof *ways); i++) {
                way unplanned = {0, 0, 0, 0, 1, 0};
                unplanned.repeat_count = ways[i].repeat_count;
                if (ways[i].rehearses == 2 && !registers) continue;   // a batch in the middle is passed over
                loop_open(&plain, (reader_kind)kind, registers);
                loop_open(&planned, (reader_kind)kind, registers);
                loop_train(&plain, &unplanned, steps, !registers);
                loop_train(&planned, &ways[i], steps, 0);
                assert_int_equal(planned.loads_of_rehearsal, 1);
                assert_int_equal(planned.loads, 1 + steps * unplanned.repeat_count);
                assert_memory_equal(plain.w, planned.w, sizeof plain.w);
                assert_memory_equal(plain.mean, planned.mean, sizeof plain.mean);
                assert_memory_equal(&plain.place, &planned.place, sizeof plain.place);
                assert_true(kind != EPOCHS || plain.place.epoch > 1);
            }
}

// -- hooks that are wrong --

typedef enum load_bug {
    WRITES_MORE, WRITES_LESS, WRITES_NO_INPUT, WRITES_NOTHING_KNOWN, WRITES_NOTHING, FORGETS_Y, MAKES_GOOD, WRITES_ELSEWHERE,
    TRAINS, COUNTS, LEAVES_GRADIENTS, CLEARS_GRADIENTS, MOVES_ON, FAILS
} load_bug;

static tl_result wrong_load(tl_run *run, int32_t micro_batch, void *user) {
    loop *l = (loop *)user;
    float x[ROWS * WIDTH + 1] = {0}, y[ROWS];
    int32_t rows = next_rows(l, x, y), refused = 0;
    tl_run *to = l->bug == WRITES_ELSEWHERE ? l->other : run;
    (void)micro_batch;
    l->loads++;
    if (l->bug == WRITES_MORE || l->bug == MAKES_GOOD) refused |= write_input(run, X, x, sizeof x) != TL_OK;
    if (l->bug == WRITES_LESS) refused |= write_input(run, Y, y, sizeof y - 1) != TL_OK;
    if (l->bug == WRITES_NO_INPUT) refused |= write_input(run, FIRST, x, ROWS * WIDTH * sizeof *x) != TL_OK;
    if (l->bug == WRITES_NOTHING_KNOWN) refused |= write_input(run, 1000, x, 4) != TL_OK;
    if (l->bug == TRAINS) l->w[0][3] += 0.5f;
    if (l->bug == COUNTS) l->mean[1][0] += 0.5f;
    if (l->bug == LEAVES_GRADIENTS) l->dw[2][1] = 0.5f;
    if (l->bug == CLEARS_GRADIENTS) memset(l->dw, 0, sizeof l->dw);
    if (l->bug == FAILS) return TL_ERROR_IO;
    if (l->bug == WRITES_NOTHING) return TL_OK;
    if (l->bug != WRITES_MORE && write_input(to, X, x, ROWS * WIDTH * sizeof *x)) return TL_ERROR_IO;
    if (l->bug != WRITES_LESS && l->bug != FORGETS_Y && write_input(to, Y, y, sizeof y)) return TL_ERROR_IO;
    if (write_input(to, VALID, &rows, sizeof rows)) return TL_ERROR_IO;
    return l->tells && refused && l->bug != MAKES_GOOD ? TL_ERROR_IO : TL_OK;
}

typedef struct load_case {
    load_bug    bug;
    int         errors, findings;   // of tl_rehearse_run
    const char *sentence;           // of the first finding, or of the call
} load_case;

static const load_case load_cases[] = {
    {WRITES_MORE, 1, 1, "x: load writes 124 bytes there, which is refused: write a graph input, all of its bytes and no more"},
    {WRITES_LESS, 1, 1, "y: load writes 23 bytes there, which is refused: write a graph input, all of its bytes and no more"},
    {WRITES_NO_INPUT, 1, 1, "n3: load writes 120 bytes there, which is refused: write a graph input, all of its bytes and no more"},
    {WRITES_NOTHING_KNOWN, 1, 1,
     "no tensor of the graph: load writes 4 bytes there, which is refused: write a graph input, all of its bytes and no more"},
    {WRITES_NOTHING, 0, 3,
     "x: load does not write it, and nothing was written there before: write it in load, or once before the rehearsal"},
    {FORGETS_Y, 0, 1,
     "y: load does not write it, and nothing was written there before: write it in load, or once before the rehearsal"},
    {MAKES_GOOD, 0, 0, ""},
    {WRITES_ELSEWHERE, 0, 3, "x: load writes to a run that is not its argument: write to the run that load is given"},
    {TRAINS, 0, 1,
     "n3: load changes parameter variable 0: leave to load the inputs and the place in the data alone"},
    {COUNTS, 0, 1,
     "n4: load changes statistics variable 5: leave to load the inputs and the place in the data alone"},
    {LEAVES_GRADIENTS, 0, 1,
     "n5: load changes gradient variable 7: leave to load the inputs and the place in the data alone"},
    {CLEARS_GRADIENTS, 0, 0, ""},
    {MOVES_ON, 0, 0, ""},
    {FAILS, -1, 0, "tl_rehearse_run: load: the hook reported a failure"},
};

// before: 1 = the inputs were written before, so what load leaves out is there.
static void try_wrong_load(const load_case *c, int tells, int before, int in_init) {
    static loop l;
    tl_cpu_backend_desc cpu = {0};
    tl_env env = silent_env();
    tl_run_desc desc = {0};
    tl_rehearsal_desc untimed = {-1};
    tl_rehearsal found;
    tl_backend backend;
    tl_run *run = NULL;
    tl_result result;
    char line[400];
    loop_open(&l, GENERATOR, 1);
    l.bug = (int)c->bug;
    l.tells = tells;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    desc.backend = &backend;
    desc.load = wrong_load;
    desc.load_user = &l;
    desc.variables = l.variables;
    desc.variable_count = l.variable_count;
    desc.work_limit = 200000;
    if (in_init) {
        desc.rehearsal = &found;
        desc.inference = 0;
        result = tl_init_op_run(&env, &desc, l.ops, LOSS + 1, &run);
        if (c->errors > 0) {
            assert_int_equal(result, TL_ERROR_MISMATCH);
            assert_non_null(strstr(env.error.text, c->sentence));
        }
        if (!c->errors) assert_int_equal(result, TL_OK);
    } else {
        int32_t rows = 0;
        float x[ROWS * WIDTH] = {0}, y[ROWS] = {0};
        if (tl_init_op_run(&env, &desc, l.ops, LOSS + 1, &run)) fail_msg("%s", env.error.text);
        if (before && (write_input(run, X, x, sizeof x) || write_input(run, Y, y, sizeof y) || write_input(run, VALID, &rows, 4)))
            fail();
        l.other = run;
        result = tl_rehearse_run(run, &untimed, &found);
        assert_int_equal(result, c->errors < 0 ? TL_ERROR_KERNEL : TL_OK);
        if (c->errors < 0) assert_string_equal(env.error.text, c->sentence);
    }
    assert_int_equal(l.loads, 1);
    if (c->bug == WRITES_ELSEWHERE) assert_int_equal(l.most_rows, ROWS);   // all the same it is what passes begin with
    if (c->errors >= 0) {
        int misses = c->bug == WRITES_NOTHING || c->bug == FORGETS_Y;
        assert_int_equal(found.error_count, c->errors);
        if (!in_init) assert_int_equal(found.finding_count, misses && before ? 0 : c->findings);
        if (found.finding_count && c->findings) {
            assert_true(found.findings[0].is_advice == !c->errors);
            tl_print_finding(NULL, &found.findings[0], line, sizeof line);
            assert_string_equal(line, c->sentence);
        }
    }
    tl_free_rehearsal(&env, &found);
    tl_free_run(run);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

static void what_a_load_hook_does_wrong_is_named_as_load(void **state) {
    size_t i;
    int turn;
    (void)state;
    for (i = 0; i < sizeof load_cases / sizeof *load_cases; i++)
        for (turn = 0; turn < 6; turn++) {
            if (turn >= 4 && load_cases[i].bug == WRITES_ELSEWHERE) continue;   // there is no run yet
            try_wrong_load(&load_cases[i], turn & 1, turn >> 1 == 1, turn >> 1 == 2);
        }
}

// An input that dies has to be written by the hook, which is called before each pass: what was written once is gone.
static void a_load_hook_writes_inputs_that_die(void **state) {
    int forgets, in_init;
    (void)state;
    for (forgets = 0; forgets < 2; forgets++)
        for (in_init = 0; in_init < 2; in_init++) {
            static loop l;
            tl_cpu_backend_desc cpu = {0};
            tl_env env = silent_env();
            tl_run_desc desc = {0};
            tl_rehearsal_desc untimed = {-1};
            tl_rehearsal found;
            tl_backend backend;
            tl_run *run = NULL;
            char line[400];
            float y[ROWS] = {0};
            tl_result result;
            loop_open(&l, GENERATOR, 1);
            l.bug = forgets ? FORGETS_Y : MAKES_GOOD;
            l.ops[X].dies = l.ops[Y].dies = 1;
            if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
            desc.backend = &backend;
            desc.load = wrong_load;
            desc.load_user = &l;
            desc.variables = l.variables;
            desc.variable_count = l.variable_count;
            desc.work_limit = 200000;
            if (in_init) desc.rehearsal = &found;
            result = tl_init_op_run(&env, &desc, l.ops, LOSS + 1, &run);
            assert_int_equal(result, in_init && forgets ? TL_ERROR_MISMATCH : TL_OK);
            if (!in_init) {
                if (write_input(run, Y, y, sizeof y)) fail_msg("%s", env.error.text);   // once is not enough
                assert_int_equal(tl_rehearse_run(run, &untimed, &found), TL_OK);
            }
            assert_int_equal(found.error_count, forgets);
            if (forgets) {
                tl_print_finding(NULL, &found.findings[0], line, sizeof line);
                assert_string_equal(line, "y: load does not write it, though it dies in every pass: write it in load");
                assert_int_equal(found.findings[0].kind, TL_FINDING_LOAD_FORGETS);
            }
            tl_free_rehearsal(&env, &found);
            tl_free_run(run);
            assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
        }
}

// No allocation that fails loses anything, and none calls the hook twice.
static void a_failing_allocator_calls_load_once(void **state) {
    long at;
    (void)state;
    for (at = 0;; at++) {
        static loop l;
        failing_alloc f = {0};
        tl_env env = {0}, failing;
        tl_cpu_backend_desc cpu = {0};
        tl_run_desc desc = {0};
        tl_rehearsal_desc untimed = {-1};
        tl_rehearsal found;
        tl_backend backend;
        tl_run *run;
        tl_result result;
        long before;
        loop_open(&l, EPOCHS, 1);
        failing = failing_env(&f, -1);
        if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
        desc.backend = &backend;
        desc.load = loop_load;
        desc.load_user = &l;
        desc.variables = l.variables;
        desc.variable_count = l.variable_count;
        desc.work_limit = 200000;
        if (tl_init_op_run(&failing, &desc, l.ops, LOSS + 1, &run)) fail_msg("%s", failing.error.text);
        before = f.live;
        f.fail_at = f.count + at;
        f.fails_once = at & 1;
        result = tl_rehearse_run(run, &untimed, &found);
        assert_true(l.loads <= 1);
        assert_true(l.place.at == 0 && l.place.random == 77 + EPOCHS);
        if (!result) assert_int_equal(found.error_count, 0);
        if (!result) assert_int_equal(l.loads, 1);
        tl_free_rehearsal(&failing, &found);
        assert_int_equal(f.live, before);
        before = f.count - f.fail_at;
        f.fail_at = -1;
        if (tl_run_plan(run)) fail_msg("%s", failing.error.text);
        tl_free_run(run);
        assert_int_equal(f.live, 0);
        assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
        if (before <= 0) break;
    }
    assert_true(at > 20);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_that_load_the_next_batch_are_rehearsed),
        cmocka_unit_test(what_a_load_hook_does_wrong_is_named_as_load),
        cmocka_unit_test(a_load_hook_writes_inputs_that_die),
        cmocka_unit_test(a_failing_allocator_calls_load_once),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
