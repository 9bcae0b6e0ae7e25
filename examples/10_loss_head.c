// 10_loss_head.c -- a loss head over a large vocabulary in blocks of rows, whose size follows the budget
//
// You learn: how the last linear layer and its cross entropy become one op that never has all logits, how the
// library says which block of rows a budget has room for, and which trap a mean loss is. It prints one table:
// for each budget the blocks, what was planned, measured and taken, the time, and whether loss, gradients and
// weights are those of the two ops, to the last bit. It leaves build/loss_head.svg. Read next: "A loss head in
// blocks" in GUIDE.md; 09, where the library itself cuts into rows.
//
// check: --quick --out build/check
//
//     mkdir -p build && cc -O3 -ffp-contract=off -o build/10_loss_head examples/10_loss_head.c -lm
//     build/10_loss_head --quick
//
// HOW IT WORKS   A network reads four words and says the next one (Bengio et al., A neural probabilistic
// language model, 2003). With R rows in a batch and V words in the vocabulary its logits and their gradient
// take 8 R V bytes, more than all else. The head as one op goes over blocks of rows instead, forward and back
// at once:
//
//     rows of x --linear--> logits of a block --cross entropy--> its part of the loss
//     their dx <--linear--  dlogits of a block <--------------+
//
// So its forward makes the loss, the gradients of its own weights and that of x. That one is its `saved`:
// backward multiplies it by the gradient of the loss. Such a forward must not run twice (`once`), and never
// sees what the loss is scaled by: here that is 1.
//
// Or declare the rows of the two ops, and let the library cut (tl_run_desc.may_cut_rows): it chooses which ops
// go block by block, in blocks of how many rows, together with what is kept and made again. Kernels are the
// same; they go by the rows of their call, and a mean by those of all.
//
// CONTENTS       (search for "// -- ")
//                words    kernels    network    blocks    training    table    picture    command line    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, isatty, mkdir

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TRAINING_PROGRAM "10_loss_head"
#include "training.h"
#include "nn.h"

enum { CONTEXT = 4, CHANNELS = 32, LEAST_ROWS = 4, MOST_ROWS = 8, MOST_STEPS = 64, PARTS = 6 };

typedef struct options {
    uint64_t rows, width, vocabulary, steps, seed;
    const char *budget, *text, *out;
} options;

// -- words: the text as numbers of words and signs --

typedef struct words {
    training_text text;   // its bytes
    int32_t *ids;         // [count] the text, word after word
    size_t   count;
    size_t  *begins;      // [count] where each begins among the bytes
    size_t  *lengths;     // [count]
    int32_t  different;
} words;

static int is_letter(uint8_t byte) {
    return byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte > 127;
}

// Find the words: letters side by side, or one sign.
static void split_words(words *w, const uint8_t *bytes, size_t length) {
    size_t at = 0, end;
    while (at < length) {
        for (end = at; end < length && is_letter(bytes[end]); end++) { }
        if (end == at) end++;
        if (bytes[at] > ' ') {
            w->begins[w->count] = at;
            w->lengths[w->count++] = end - at;
        }
        at = end;
    }
}

// Number the words in the order in which they come, by a table of hashes of twice as many places.
static int number_words(words *w, const uint8_t *bytes) {
    size_t places = 2 * w->count + 1, i, k;
    size_t *first = (size_t *)calloc(places, sizeof *first);  // a word of that hash + 1; 0 = free
    if (!first) return training_fail(TRAINING_INPUT, "text %s: no memory for its words", w->text.path);
    for (i = 0; i < w->count; i++) {
        const uint8_t *word = bytes + w->begins[i];
        k = (size_t)(nn_checksum(0, word, w->lengths[i]) % places);
        while (first[k] && (w->lengths[first[k] - 1] != w->lengths[i] ||
                            memcmp(bytes + w->begins[first[k] - 1], word, w->lengths[i]) != 0))
            k = (k + 1) % places;
        w->ids[i] = first[k] ? w->ids[first[k] - 1] : w->different++;
        if (!first[k]) first[k] = i + 1;
    }
    free(first);
    return TRAINING_OK;
}

static int read_words(const char *path, const char *program, words *w) {
    training_text *t = &w->text;
    int code;
    if (path) snprintf(t->path, sizeof t->path, "%s", path);
    else training_find_text(program, t->path, sizeof t->path);
    code = training_read_file(t->path, "text", &t->ids, &t->length);
    if (code) return code;
    w->ids = (int32_t *)calloc(t->length + 1, sizeof *w->ids);
    w->begins = (size_t *)calloc(t->length + 1, sizeof *w->begins);
    w->lengths = (size_t *)calloc(t->length + 1, sizeof *w->lengths);
    if (!w->ids || !w->begins || !w->lengths)
        return training_fail(TRAINING_INPUT, "text %s: no memory for its words", t->path);
    split_words(w, t->ids, t->length);
    if (w->count <= CONTEXT)
        return training_fail(TRAINING_INPUT, "text %s: %zu words, but one row takes %d", t->path, w->count,
                             CONTEXT + 1);
    return number_words(w, t->ids);
}

static void free_words(words *w) {
    free(w->text.ids);
    free(w->ids);
    free(w->begins);
    free(w->lengths);
}

// -- kernels --

// With one op HEAD is the last: it makes the loss.
enum { WORDS, TARGETS, EMBED, HIDDEN, GELU, HEAD, LOSS, NODES };

// Weights of a network: where each part begins in one array, and that of its gradients.
enum { OF_WORDS, OF_PLACES, OF_HIDDEN, OF_HIDDEN_BIAS, OF_HEAD, OF_HEAD_BIAS };

typedef struct training training;
struct training {
    const options *o;
    const words   *w;
    size_t   R, H, V;
    size_t   block;               // rows of a block of the head; 0 = two ops
    int      may_cut;             // 1 = two ops, cut by the library
    size_t   cut_rows;            // most rows of a call of the head that was one of several
    size_t   begins[PARTS + 1];   // floats
    float   *params, *grads, *m, *v;
    uint64_t budget, step;
    char     label[32];
    float    loss;
    int      equal;               // 1 = loss, gradients and weights were those of two ops after every step
    tl_variable    variables[4];  // what a rehearsal puts back
    tl_backend     cpu;
    tl_run        *run;
    tl_run_figures figures;
    tl_run_report  report;
    uint64_t      *passes_ns;     // [steps]
    uint64_t       live_bytes[MOST_STEPS];
    double         ends_ms[MOST_STEPS];
    uint64_t       start_ns;
    int32_t        live_count;
};

static float *f32(const tl_operand *operand) { return (float *)operand->host; }
static const int32_t *i32(const tl_operand *operand) { return (const int32_t *)operand->host; }
static float *weight(const training *t, int part) { return t->params + t->begins[part]; }
static float *gradient(const training *t, int part) { return t->grads + t->begins[part]; }

// The rows of a call: all, or a block that the library has cut.
static size_t rows_of(const tl_kernel_call *call, const training *t) {
    return call->by_rows ? (size_t)call->count : t->R;
}

static tl_result embed(const tl_kernel_call *call, void *user) {
    const training *t = (const training *)user;
    size_t R = rows_of(call, t);
    if (call->kind == TL_STEP_BACKWARD)
        nn_embed_backward(gradient(t, OF_WORDS), gradient(t, OF_PLACES), f32(&call->output_grads[0]),
                          i32(&call->inputs[0]), R, CONTEXT, CHANNELS);
    else
        nn_embed_forward(f32(&call->outputs[0]), i32(&call->inputs[0]), weight(t, OF_WORDS),
                         weight(t, OF_PLACES), R, CONTEXT, CHANNELS);
    return TL_OK;
}

static tl_result linear(const tl_kernel_call *call, void *user) {
    training *t = (training *)user;
    size_t R = rows_of(call, t);
    int part = call->node == HIDDEN ? OF_HIDDEN : OF_HEAD;
    size_t K = call->node == HIDDEN ? CONTEXT * CHANNELS : t->H, N = call->node == HIDDEN ? t->H : t->V;
    if (call->by_rows && call->node == HEAD && R > t->cut_rows) t->cut_rows = R;
    if (call->kind == TL_STEP_BACKWARD)
        nn_linear_backward(f32(&call->input_grads[0]), gradient(t, part), gradient(t, part + 1),
                           f32(&call->output_grads[0]), f32(&call->inputs[0]), weight(t, part), R, K, N);
    else
        nn_linear_forward(f32(&call->outputs[0]), f32(&call->inputs[0]), weight(t, part), weight(t, part + 1),
                          R, K, N);
    return TL_OK;
}

static tl_result gelu(const tl_kernel_call *call, void *user) {
    const training *t = (const training *)user;
    if (call->kind == TL_STEP_BACKWARD)
        nn_gelu_backward(f32(&call->input_grads[0]), f32(&call->output_grads[0]), f32(&call->inputs[0]),
                         rows_of(call, t) * t->H);
    else
        nn_gelu_forward(f32(&call->outputs[0]), f32(&call->inputs[0]), rows_of(call, t) * t->H);
    return TL_OK;
}

static tl_result cross_entropy(const tl_kernel_call *call, void *user) {
    const training *t = (const training *)user;
    size_t first = call->by_rows ? (size_t)call->first : 0, R = rows_of(call, t);
    if (call->kind == TL_STEP_BACKWARD)
        nn_cross_entropy_backward_range(f32(&call->input_grads[0]), *f32(&call->output_grads[0]),
                                        f32(&call->inputs[0]), i32(&call->inputs[1]), R, t->R, t->V);
    else
        nn_cross_entropy_forward_range(f32(&call->outputs[0]), NULL, f32(&call->inputs[0]),
                                       i32(&call->inputs[1]), first, R, t->R, t->V);
    return TL_OK;
}

// The head as one op: two blocks of scratch, the logits and their gradient.
//
// THE TRAP OF THE MEAN   The loss is a mean over all R rows, so the gradient of a row is 1 / R of what it would
// be alone. A kernel that takes the mean over the rows that it is given divides by n, those of its block; times
// n / R that is 1 / R on paper. In floats (n / R) / n is another number for up to a third of all n, unless n or
// R is a power of two, and the gradients of a head in blocks have other bits than those of the whole one. So
// give the kernel R.
static tl_result head_forward(const tl_kernel_call *call, void *user) {
    const training *t = (const training *)user;
    const float *x = f32(&call->inputs[0]);
    const int32_t *targets = i32(&call->inputs[1]);
    float *logits = f32(&call->scratch), *dlogits = logits + t->block * t->V, *dx = f32(&call->saved);
    size_t first, n;
    if (dx) memset(dx, 0, t->R * t->H * sizeof *dx);
    for (first = 0; first < t->R; first += n) {
        n = nn_min(t->block, t->R - first);
        nn_linear_forward(logits, x + first * t->H, weight(t, OF_HEAD), weight(t, OF_HEAD_BIAS), n, t->H, t->V);
        nn_cross_entropy_forward_range(f32(&call->outputs[0]), NULL, logits, targets + first, first, n, t->R,
                                       t->V);
        if (!dx) continue;  // the loss alone is wanted
        memset(dlogits, 0, n * t->V * sizeof *dlogits);
        nn_cross_entropy_backward_range(dlogits, 1.0f, logits, targets + first, n, t->R, t->V);
        nn_linear_backward(dx + first * t->H, gradient(t, OF_HEAD), gradient(t, OF_HEAD_BIAS), dlogits,
                           x + first * t->H, weight(t, OF_HEAD), n, t->H, t->V);
    }
    return TL_OK;
}

static tl_result head_backward(const tl_kernel_call *call, void *user) {
    const training *t = (const training *)user;
    const float *dx = f32(&call->saved), dloss = *f32(&call->output_grads[0]);
    float *din = f32(&call->input_grads[0]);
    size_t i;
    for (i = 0; i < t->R * t->H; i++) din[i] += dloss * dx[i];
    return TL_OK;
}

// -- network: a list of ops; costs are FLOP --

static void describe_op(tl_op *op, const char *name, tl_kernel_fn kernel, const tl_tensor *inputs,
                        uint64_t floats, uint64_t flops) {
    op->name = name;
    op->forward = op->backward = kernel;
    op->inputs = inputs;
    op->input_count = 1;
    op->needs = "in";
    op->output_bytes = floats * sizeof(float);
    op->fwd_cost = flops;
    op->bwd_cost = 2 * flops;
}

// Declare that ops go by the rows of the batch. What kernels add to gradients they add row after row.
static void declare_rows(const training *t, tl_op *ops) {
    static const tl_relation row_by_row[2] = { { TL_RELATION_SAME, 0, 0, 0, 0 },
                                               { TL_RELATION_SAME, 0, 0, 0, 0 } };
    int i;
    for (i = EMBED; i < NODES; i++) {
        ops[i].rows = t->R;
        ops[i].relations = row_by_row;
        ops[i].ordered = 1;
    }
    ops[LOSS].reduces = 1;
}

static int describe_ops(training *t, tl_op *ops) {
    static const tl_tensor words_of_rows[1] = { { WORDS, 0 } }, of_loss[2] = { { HEAD, 0 }, { TARGETS, 0 } };
    static const tl_tensor of_embed[1] = { { EMBED, 0 } }, of_hidden[1] = { { HIDDEN, 0 } };
    static const tl_tensor of_head[2] = { { GELU, 0 }, { TARGETS, 0 } };
    uint64_t R = t->R, K = CONTEXT * CHANNELS, H = t->H, V = t->V;
    int i;
    ops[WORDS].name = "words";
    ops[TARGETS].name = "targets";
    ops[WORDS].kind = ops[TARGETS].kind = "input";
    ops[WORDS].output_bytes = R * CONTEXT * sizeof(int32_t);
    ops[TARGETS].output_bytes = R * sizeof(int32_t);
    describe_op(&ops[EMBED], "embed", embed, words_of_rows, R * K, R * K);
    describe_op(&ops[HIDDEN], "hidden", linear, of_embed, R * H, 2 * R * K * H);
    describe_op(&ops[GELU], "gelu", gelu, of_hidden, R * H, 20 * R * H);
    describe_op(&ops[HEAD], "head", linear, of_head, R * V, 2 * R * H * V);
    describe_op(&ops[LOSS], "loss", cross_entropy, of_loss, 1, 20 * R * V);
    ops[LOSS].input_count = 2;
    for (i = 0; i < NODES; i++) ops[i].user = t;
    ops[LOSS].keep = 1;
    if (t->may_cut) declare_rows(t, ops);
    if (!t->block) return NODES;
    ops[HEAD].forward = head_forward;
    ops[HEAD].backward = head_backward;
    ops[HEAD].input_count = 2;
    ops[HEAD].output_bytes = sizeof(float);
    ops[HEAD].keep = ops[HEAD].once = 1;          // it adds to gradients: never a second time
    ops[HEAD].needs = "none";                     // its backward reads saved alone
    ops[HEAD].saved_bytes = R * H * sizeof(float);
    ops[HEAD].fwork_bytes = ops[HEAD].swork_bytes = 2 * t->block * V * sizeof(float);
    ops[HEAD].fwd_cost = 6 * R * H * V + 40 * R * V;
    ops[HEAD].bwd_cost = 2 * R * H;
    return HEAD + 1;
}

// -- blocks: as few as the budget has room for --

// Write the words of a step: rows from anywhere in the text.
static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    const training *t = (const training *)user;
    const tl_tensor to_words = { WORDS, 0 }, to_targets = { TARGETS, 0 };
    int32_t *rows = (int32_t *)malloc(t->R * (CONTEXT + 1) * sizeof *rows), *targets;
    tl_result result;
    size_t r;
    (void)micro_batch;
    if (!rows) return TL_ERROR_NO_MEMORY;
    targets = rows + t->R * CONTEXT;
    for (r = 0; r < t->R; r++) {
        uint64_t at = nn_hash(t->o->seed ^ 0x74657874u, t->step * t->R + r) % (t->w->count - CONTEXT);
        memcpy(rows + r * CONTEXT, t->w->ids + at, CONTEXT * sizeof *rows);
        targets[r] = t->w->ids[at + CONTEXT];
    }
    result = tl_write_tensor(run, to_words, rows, t->R * CONTEXT * sizeof *rows);
    if (!result) result = tl_write_tensor(run, to_targets, targets, t->R * sizeof *rows);
    free(rows);
    return result;
}

// Of the last pass: the bytes after each step, for the picture.
static void observe(const tl_run_event *event, void *user) {
    training *t = (training *)user;
    if (event->index < 0 || event->index >= MOST_STEPS) return;
    if (!event->index) t->start_ns = event->start_ns;
    t->live_bytes[event->index] = event->device_bytes;
    t->ends_ms[event->index] = (double)(event->end_ns - t->start_ns) * 1e-6;
    t->live_count = event->index + 1;
}

// Make a run whose head has blocks of so many rows (0: two ops), within a budget (0: none).
static tl_result open_run(tl_env *env, training *t, size_t block, uint64_t budget) {
    tl_op *ops = (tl_op *)calloc(NODES, sizeof *ops);
    tl_run_desc desc;
    tl_result result;
    if (!ops) return TL_ERROR_NO_MEMORY;
    t->block = block;
    t->budget = budget;
    memset(&desc, 0, sizeof desc);
    desc.backend = &t->cpu;
    desc.budget_bytes = budget;
    desc.figures = &t->figures;
    desc.load = load;
    desc.load_user = t;
    desc.observe = observe;
    desc.observe_user = t;
    desc.profiling = 1;
    desc.variables = t->variables;
    desc.variable_count = 4;
    desc.may_cut_rows = t->may_cut;
    result = tl_init_op_run(env, &desc, ops, describe_ops(t, ops), &t->run);
    free(ops);
    return result;
}

static size_t rows_of_block(const training *t, size_t blocks) { return (t->R + blocks - 1) / blocks; }
static size_t most_blocks(const training *t) { return (t->R + LEAST_ROWS - 1) / LEAST_ROWS; }

// Make a run with the largest blocks for which the library finds a plan within the budget. More blocks never
// take more bytes, so the fewest are found by halving; a block of more rows than these need saves no call.
static tl_result fit_blocks(tl_env *env, training *t, uint64_t budget) {
    size_t fewest = 1, most = most_blocks(t);
    while (fewest < most) {
        size_t blocks = fewest + (most - fewest) / 2;
        tl_result result = open_run(env, t, rows_of_block(t, blocks), budget);
        if (result && result != TL_ERROR_INFEASIBLE) return result;
        if (result) {
            fewest = blocks + 1;
            continue;
        }
        tl_free_run(t->run);
        t->run = NULL;
        most = blocks;
    }
    return open_run(env, t, rows_of_block(t, fewest), budget);
}

// The least budget: that of the smallest blocks which are worth their calls. The refusal of a budget names it.
static tl_result find_least(tl_env *env, training *t, uint64_t *least) {
    tl_result result = open_run(env, t, rows_of_block(t, most_blocks(t)), 1);
    *least = t->figures.least_bytes;
    if (!result) tl_free_run(t->run);
    t->run = NULL;
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

// -- training --

typedef struct program {
    options  o;
    words    w;
    tl_env   env;
    training rows[MOST_ROWS];     // of the table; the first has two ops
    int      row_count;
    uint64_t keep_all_bytes, rounds;
    training_progress progress;
} program;

static uint64_t clock_ns(void *user) {
    (void)user;
    return training_wall_ns();
}

static void fill_params(training *t) {
    nn_fill_normal(weight(t, OF_WORDS), t->V * CHANNELS, 0.3f, t->o->seed);
    nn_fill_normal(weight(t, OF_PLACES), CONTEXT * CHANNELS, 0.1f, t->o->seed + 1);
    nn_fill_normal(weight(t, OF_HIDDEN), CONTEXT * CHANNELS * t->H, 1.0f / sqrtf(CONTEXT * CHANNELS),
                   t->o->seed + 2);
    nn_fill_normal(weight(t, OF_HEAD), t->H * t->V, 1.0f / sqrtf((float)t->H), t->o->seed + 3);
}

static void register_variable(training *t, int at, tl_variable_kind kind, float *floats) {
    t->variables[at].node = -1;   // of several
    t->variables[at].kind = kind;
    t->variables[at].host = floats;
    t->variables[at].bytes = t->begins[PARTS] * sizeof(float);
}

static tl_result init_training(program *p, training *t) {
    tl_cpu_backend_desc memory;
    size_t sizes[PARTS], floats;
    int i;
    t->o = &p->o;
    t->w = &p->w;
    t->R = (size_t)p->o.rows;
    t->H = (size_t)p->o.width;
    t->V = (size_t)p->w.different;
    if (p->o.vocabulary > t->V) t->V = (size_t)p->o.vocabulary;
    sizes[OF_WORDS] = t->V * CHANNELS;
    sizes[OF_PLACES] = CONTEXT * CHANNELS;
    sizes[OF_HIDDEN] = CONTEXT * CHANNELS * t->H;
    sizes[OF_HIDDEN_BIAS] = t->H;
    sizes[OF_HEAD] = t->H * t->V;
    sizes[OF_HEAD_BIAS] = t->V;
    for (i = 0; i < PARTS; i++) t->begins[i + 1] = t->begins[i] + sizes[i];
    floats = t->begins[PARTS];
    t->params = (float *)calloc(floats, sizeof(float));
    t->grads = (float *)calloc(floats, sizeof(float));
    t->m = (float *)calloc(floats, sizeof(float));
    t->v = (float *)calloc(floats, sizeof(float));
    t->passes_ns = (uint64_t *)calloc((size_t)p->o.steps, sizeof *t->passes_ns);
    if (!t->params || !t->grads || !t->m || !t->v || !t->passes_ns) return TL_ERROR_NO_MEMORY;
    fill_params(t);
    register_variable(t, 0, TL_VARIABLE_PARAMETER, t->params);
    register_variable(t, 1, TL_VARIABLE_GRADIENT, t->grads);
    register_variable(t, 2, TL_VARIABLE_OPTIMIZER, t->m);
    register_variable(t, 3, TL_VARIABLE_OPTIMIZER, t->v);
    t->equal = 1;
    memset(&memory, 0, sizeof memory);
    memory.now_ns = clock_ns;
    return tl_init_cpu_backend(&p->env, &memory, &t->cpu);
}

static void free_training(program *p, training *t) {
    if (t->run) tl_free_run(t->run);
    tl_free_cpu_backend(&p->env, &t->cpu);
    free(t->params);
    free(t->grads);
    free(t->m);
    free(t->v);
    free(t->passes_ns);
}

// One step: gradients by the run, weights by AdamW. Only the run is timed, by the processor's clock.
static tl_result train_step(training *t) {
    static const nn_adamw opt = { 3e-3f, 0.9f, 0.999f, 1e-8f, 0.0f };
    const tl_tensor loss = { t->block ? HEAD : LOSS, 0 };
    uint64_t start = training_read_clock(CLOCK_PROCESS_CPUTIME_ID);
    tl_result result;
    memset(t->grads, 0, t->begins[PARTS] * sizeof(float));
    result = tl_run_plan(t->run);
    t->passes_ns[t->step++] = training_read_clock(CLOCK_PROCESS_CPUTIME_ID) - start;
    if (!result) result = tl_read_tensor(t->run, loss, &t->loss, sizeof t->loss);
    if (result) return result;
    nn_adamw_update(t->params, t->m, t->v, t->grads, t->begins[PARTS], t->step, &opt);
    tl_measure_run(t->run, &t->report);
    return TL_OK;
}

// All rows take turns, a step each, so that a slow moment of the machine hits all of them alike.
static int train_rounds(program *p) {
    const training *two_ops = &p->rows[0];
    size_t bytes = two_ops->begins[PARTS] * sizeof(float);
    uint64_t begin = training_wall_ns();
    int k;
    for (; p->rounds < p->o.steps && !training_interrupted; p->rounds++) {
        double passed = (double)(training_wall_ns() - begin) * 1e-9;
        double left = p->rounds ? passed / (double)p->rounds * (double)(p->o.steps - p->rounds) : 0.0;
        for (k = 0; k < p->row_count; k++) {
            training *t = &p->rows[k];
            tl_result result = train_step(t);
            if (result) {
                training_clear_progress(&p->progress);
                return training_fail_result(&p->env, t->label, result);
            }
            if (memcmp(t->grads, two_ops->grads, bytes) != 0 ||
                memcmp(t->params, two_ops->params, bytes) != 0 ||
                memcmp(&t->loss, &two_ops->loss, sizeof t->loss) != 0)
                t->equal = 0;
        }
        training_show_progress(&p->progress, "training", p->rounds + 1, (double)two_ops->loss, left);
    }
    training_clear_progress(&p->progress);
    return TRAINING_OK;
}

// -- table --

// Wrong declarations leave the loss right and make gradients wrong: look for them before anything is trained.
static int rehearse(program *p, training *t) {
    tl_rehearsal_desc desc;
    tl_rehearsal found;
    char line[256];
    tl_result result;
    int code = TRAINING_OK;
    memset(&desc, 0, sizeof desc);
    desc.pass_count = -1;         // nothing is timed
    result = tl_rehearse_run(t->run, &desc, &found);
    if (result) return training_fail_result(&p->env, "rehearsal", result);
    if (found.error_count) {
        tl_print_finding(tl_find_run_graph(t->run), &found.findings[0], line, sizeof line);
        code = training_fail(TRAINING_MISMATCH, "rehearsal: %s", line);
    }
    tl_free_rehearsal(&p->env, &found);
    return code;
}

// Add the row of two ops, which keep everything.
static int add_two_ops(program *p) {
    training *t = &p->rows[p->row_count++];
    tl_result result = init_training(p, t);
    snprintf(t->label, sizeof t->label, "two ops");
    if (!result) result = open_run(&p->env, t, 0, 0);
    p->keep_all_bytes = t->figures.keep_all_bytes;
    return result ? training_fail_result(&p->env, t->label, result) : TRAINING_OK;
}

// Add a row of one op within a part of what two ops take, or within the least where that is more; *is_least is
// 1 then. Of a budget that is `given` the least is a refusal.
static int add_one_op(program *p, uint64_t budget, int given, int *is_least) {
    training *t = &p->rows[p->row_count++];
    uint64_t least = 0;
    tl_result result = init_training(p, t);
    snprintf(t->label, sizeof t->label, "one op, %.0f %%", 100.0 * (double)budget / (double)p->keep_all_bytes);
    if (!result) result = find_least(&p->env, t, &least);
    if (result) return training_fail_result(&p->env, t->label, result);
    *is_least = budget <= least;
    if (*is_least && given && budget < least)
        return training_fail(TRAINING_INFEASIBLE,
                             "--budget %s: the least that works, in blocks of %d rows, is %llu bytes",
                             p->o.budget, LEAST_ROWS, (unsigned long long)least);
    if (*is_least) snprintf(t->label, sizeof t->label, "one op, least");
    result = fit_blocks(&p->env, t, *is_least ? least : budget);
    return result ? training_fail_result(&p->env, t->label, result) : TRAINING_OK;
}

// Add a row of two ops that the library cuts, within so many bytes; 0 = the least.
static int add_cut_ops(program *p, uint64_t budget) {
    training *t = &p->rows[p->row_count++];
    tl_result result = init_training(p, t);
    t->may_cut = 1;
    snprintf(t->label, sizeof t->label, "cut, %.0f %%", 100.0 * (double)budget / (double)p->keep_all_bytes);
    if (!budget) snprintf(t->label, sizeof t->label, "cut, least");
    if (!result && !budget) {
        result = open_run(&p->env, t, 0, 1);
        budget = t->figures.least_bytes;
        if (!result) tl_free_run(t->run);
        t->run = NULL;
        if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    }
    if (!result) result = open_run(&p->env, t, 0, budget);
    return result ? training_fail_result(&p->env, t->label, result) : TRAINING_OK;
}

static int parse_budget(const char *text, uint64_t keep_all, uint64_t *bytes) {
    char *end;
    double number = strtod(text, &end);
    int is_part = end != text && strcmp(end, "%") == 0;
    if (is_part) number = number / 100.0 * (double)keep_all;
    if (end == text || (*end && !is_part) || !(number >= 1.0 && number < 1e15))
        return training_fail(TRAINING_INPUT, "--budget %s: must be bytes, like 1000000, or a part, like 25%%",
                             text);
    *bytes = (uint64_t)number;
    return TRAINING_OK;
}

static int add_rows(program *p) {
    static const unsigned percents[] = { 50, 25, 10, 0 };
    uint64_t budget = 0;
    int code = add_two_ops(p), is_least = 0;
    size_t k;
    if (code) return code;
    if (p->o.budget) {
        code = parse_budget(p->o.budget, p->keep_all_bytes, &budget);
        return code ? code : add_one_op(p, budget, 1, &is_least);
    }
    for (k = 0; k < sizeof percents / sizeof *percents && !code && !is_least; k++)
        code = add_one_op(p, p->keep_all_bytes / 100 * percents[k], 0, &is_least);
    if (!code) code = add_cut_ops(p, p->keep_all_bytes / 4);
    if (!code) code = add_cut_ops(p, 0);
    return code;
}

static void print_network(const program *p) {
    const training *t = &p->rows[0];
    printf("text       %s: %zu words, %d different ones\n", p->w.text.path, p->w.count, (int)p->w.different);
    printf("network    %d words of %d channels, %zu hidden, %zu words to choose from: %zu weights\n", CONTEXT,
           CHANNELS, t->H, t->V, t->begins[PARTS]);
    printf("batch      %zu rows: logits and their gradient are 2 x %zu bytes; keep all is %llu\n", t->R,
           t->R * t->V * sizeof(float), (unsigned long long)p->keep_all_bytes);
    fflush(stdout);
}

static int print_table(const program *p) {
    int k, code = TRAINING_OK;
    if (!p->rounds) return TRAINING_OK;
    printf("\nloss head          budget   blocks x rows  planned peak  measured peak     taken  pass / two ops"
           "    loss  same bits\n");
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        const tl_run_report *r = &t->report;
        double ratio = training_find_ratio(t->passes_ns, p->rows[0].passes_ns, (size_t)p->rounds);
        size_t block = t->may_cut && t->cut_rows ? t->cut_rows : t->block ? t->block : t->R;
        size_t blocks = (t->R + block - 1) / block;
        printf("%-14s %10llu  %6zu x %5zu %13llu  %13llu %9llu  %14.3f  %6.3f  %9s\n", t->label,
               (unsigned long long)t->budget, blocks, block,
               (unsigned long long)r->planned_peak_bytes, (unsigned long long)r->measured_peak_bytes,
               (unsigned long long)r->taken_bytes, ratio, (double)t->loss, t->equal ? "yes" : "NO");
        if (!t->equal || r->planned_peak_bytes != r->measured_peak_bytes ||
            (t->budget && r->taken_bytes > t->budget))
            code = TRAINING_MISMATCH;
    }
    printf("%llu steps each%s; budget: of activations, their gradients and scratch, 0 = none; taken: by the\n"
           "backend from the system; times: processor time of a pass, medians of ratios; same bits: loss, all\n"
           "gradients and weights are those of the two ops after every step\n",
           (unsigned long long)p->rounds, training_interrupted ? " (interrupted)" : "");
    return code;
}

// -- picture --

static int write_picture(program *p) {
    tl_memory_curve curves[MOST_ROWS];
    char labels[MOST_ROWS][64];
    training_pictures pictures;
    int k, code;
    if (!p->rounds) return TRAINING_OK;
    memset(&pictures, 0, sizeof pictures);
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        snprintf(labels[k], sizeof labels[k], "%s, %.2f MiB", t->label,
                 training_mib(t->report.measured_peak_bytes));
        curves[k].label = labels[k];
        curves[k].live_bytes = t->live_bytes;
        curves[k].times = t->ends_ms;
        curves[k].count = t->live_count;
    }
    pictures.curves = curves;
    pictures.count = p->row_count;
    pictures.style.title = "Memory over one training step, measured: the loss head in blocks";
    pictures.style.time_label = "ms";
    training_make_directory(p->o.out);
    code = training_write_picture(&p->env, &pictures, p->o.out, "loss_head.svg", 0);
    if (!code) printf("wrote %s/loss_head.svg\n", p->o.out);
    return code;
}

// -- command line --

static const char usage[] =
    "10_loss_head [options]\n\n"
    "Trains a network that says the next word, with its loss head as two ops, as one op in blocks of rows, and\n"
    "as two ops that the library cuts into blocks.\n"
    "  --budget N         bytes of activations, or a part of what two ops take, like 25%; else a table of "
    "parts\n"
    "  --rows N           rows of a batch, 8 to 65536 (512)\n"
    "  --width N          hidden channels, 8 to 4096 (64)\n"
    "  --vocabulary N     words to choose from, where the text has fewer, at most 1000000\n"
    "  --steps N          training steps of each row of the table (20)\n"
    "  --seed N           of weights and batches (1)\n"
    "  --text FILE        to learn from (examples/training_text.txt)\n"
    "  --out DIR          where loss_head.svg goes (build)\n"
    "  --quick            few rows and steps\n"
    "  --help             this list\n"
    "\n"
    "exit code: 0 ok, 1 bad input or a file that could not be written, 2 the budget is below the least "
    "possible,\n"
    "3 measured differs from planned, or bits from those of two ops\n";

static int parse_options(options *o, int count, char **arguments, int *done) {
    const training_option table[] = {
        { "--rows", 8, 65536, &o->rows, NULL, NULL },
        { "--width", 8, 4096, &o->width, NULL, NULL },
        { "--vocabulary", 1, 1000000, &o->vocabulary, NULL, NULL },
        { "--steps", 1, 1000000, &o->steps, NULL, NULL },
        { "--seed", 0, UINT64_MAX, &o->seed, NULL, NULL },
        { "--budget", 0, 0, NULL, &o->budget, NULL },
        { "--text", 0, 0, NULL, &o->text, NULL },
        { "--out", 0, 0, NULL, &o->out, NULL },
        { "--quick", 0, 0, NULL, NULL, NULL },
    };
    int quick = training_is_quick(count, arguments);
    memset(o, 0, sizeof *o);
    o->rows = quick ? 100 : 512;
    o->width = quick ? 16 : 64;
    o->steps = quick ? 3 : 20;
    o->seed = 1;
    o->out = "build";
    return training_parse_options(table, sizeof table / sizeof *table, usage, count, arguments, done);
}

// -- main --

static int run(program *p, const char *program_path) {
    int code = read_words(p->o.text, program_path, &p->w), table, picture;
    if (!code) code = add_rows(p);
    if (code) return code;
    print_network(p);
    code = rehearse(p, &p->rows[p->row_count - 1]);
    if (!code) code = train_rounds(p);
    table = print_table(p);
    picture = write_picture(p);
    return code ? code : table ? table : picture;
}

int main(int count, char **arguments) {
    static program p;  // zero
    int done, k, code;
    p.progress.shown_ns = training_wall_ns();
    p.progress.terminal = isatty(STDERR_FILENO);
    code = parse_options(&p.o, count, arguments, &done);
    if (code || done) return code;
    training_set_signals();
    code = run(&p, arguments[0]);
    for (k = 0; k < p.row_count; k++) free_training(&p, &p.rows[k]);
    free_words(&p.w);
    return training_finish(code);
}
