// 01_train_text.c -- train a character-level transformer within a fixed number of bytes
//
// You learn: how a network becomes a graph, a byte budget a plan, and a plan a training step that
// really drops activations and really makes them again. It prints one table: what was planned, what
// was measured, what it cost, and whether the gradients are equal to the last bit; then text that
// the network wrote. It leaves build/memory.svg (memory over one step) and build/trace.json (open
// it in ui.perfetto.dev). Read next: 10, the manager alone in your own loop; nn.h has the kernels.
//
// check: --quick --out build/check
//
//     cc -O3 -std=c99 -ffp-contract=off -o build/01_train_text examples/01_train_text.c -lm
//
// HOW IT WORKS   The same training runs four times from one seed: with everything kept, and within
// three shrinking budgets. The four take turns, a step each, so that a slow moment of the machine
// hits all of them alike; after every turn the parameter gradients and the loss of each are
// compared with those of the first, byte by byte. Before that a rehearsal, whose networks are
// thrown away, measures every node: these nanoseconds become the costs of the graph, by which plans
// are chosen and step times predicted. At last the smallest budget trains on alone, so that the
// sample can be read.
//
// CONTENTS       (search for "// -- ")
//                model    kernels    text    weights    plans    training    rehearsal    rounds
//                table    pictures    sample    options    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, isatty, fsync, mkdir

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "nn.h"

enum { CODE_OK = 0, CODE_INPUT = 1, CODE_INFEASIBLE = 2, CODE_MISMATCH = 3 };

// Print one sentence; returns the code, for `return fail(...)`.
static int fail(int code, const char *format, ...) {
    va_list list;
    fflush(stdout);
    fprintf(stderr, "01_train_text: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    return code;
}

static uint64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Two clocks: what the user waits for, and what steps cost. The second one counts the processor
// time of this program, so that others on the machine do not show in the table.
static uint64_t wall_ns(void) { return read_clock(CLOCK_MONOTONIC); }

static uint64_t now_ns(void *user) {
    (void)user;
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    interrupted = 1;
    signal(number, SIG_DFL);  // a second Ctrl-C ends the program at once
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The value above a share of the others; sorts them. 1/2 is the median.
static uint64_t find_quantile(uint64_t *values, size_t count, size_t part, size_t parts) {
    qsort(values, count, sizeof *values, compare_u64);
    return values[count * part / parts];
}

static double mib(uint64_t bytes) { return (double)bytes / 1048576.0; }

// -- model: the network as a table, then as a graph --
//
// B = sequences in a batch, T = tokens of context, C = channels, V = vocabulary, L = layers.

typedef enum op_kind {
    OP_INPUT, OP_EMBED, OP_NORM, OP_LINEAR, OP_ATTENTION, OP_GELU, OP_DROPOUT, OP_ADD, OP_LOSS,
    OP_COUNT
} op_kind;

static const char *const op_names[OP_COUNT] = { "input", "embed",   "norm", "linear", "attention",
                                                "gelu",  "dropout", "add",  "loss" };

// One node of a layer. What no backward needs is dropped by every plan right after its last use.
typedef struct layer_row {
    const char *name;
    const char *unit;             // checkpoint configs act on attention and ffn
    const char *needs;            // what its backward reads
    op_kind     op;
    int32_t     from, from2;      // rows it reads; BEFORE = the layer before, NOTHING = none
    int32_t     in_width, width;  // in C
    int32_t     is_choice;        // 1 = some backward needs the result or what was saved with it
} layer_row;

enum { BEFORE = -1, NOTHING = -2, ROW_COUNT = 12, CHOICE_COUNT = 9 };

static const layer_row layer_rows[ROW_COUNT] = {
    { "norm1",  "attention", "in",   OP_NORM,      BEFORE, NOTHING, 1, 1, 1 },  //  0
    { "qkv",    "attention", "in",   OP_LINEAR,    0,      NOTHING, 1, 3, 1 },  //  1
    { "attend", "attention", "in",   OP_ATTENTION, 1,      NOTHING, 3, 1, 1 },  //  2
    { "drop1",  "attention", "none", OP_DROPOUT,   2,      NOTHING, 1, 1, 1 },  //  3
    { "proj",   "attention", "in",   OP_LINEAR,    3,      NOTHING, 1, 1, 0 },  //  4
    { "add1",   "attention", "none", OP_ADD,       BEFORE, 4,       1, 1, 1 },  //  5
    { "norm2",  "ffn",       "in",   OP_NORM,      5,      NOTHING, 1, 1, 1 },  //  6
    { "fc1",    "ffn",       "in",   OP_LINEAR,    6,      NOTHING, 1, 4, 1 },  //  7
    { "gelu",   "ffn",       "in",   OP_GELU,      7,      NOTHING, 4, 4, 1 },  //  8
    { "fc2",    "ffn",       "in",   OP_LINEAR,    8,      NOTHING, 4, 1, 0 },  //  9
    { "drop2",  "ffn",       "none", OP_DROPOUT,   9,      NOTHING, 1, 1, 0 },  // 10
    { "add2",   "ffn",       "none", OP_ADD,       5,      10,      1, 1, 1 },  // 11
};

typedef struct dims {
    uint64_t L, C, T, B, V;
} dims;

enum { HEAD_SIZE = 16 };  // channels of an attention head

// What a kernel must know about its node. Widths are in floats per token.
typedef struct node_info {
    op_kind  op;
    uint64_t in_width, width;
    uint64_t weight, bias;        // where they begin in the parameters
} node_info;

typedef struct param_info {
    uint64_t first, count;
    float    mean, deviation;     // of what it starts with
    int      decays;              // 1 = with weight decay: matrices, but no biases and norms
} param_info;

typedef struct model {
    dims        size;
    int         trains;           // 0 = without loss and dropout: what samples are made with
    float       dropout;
    uint64_t   *node_ns;          // [node_count][2] measured forward, backward; 0 = FLOP, estimated
    tl_graph    graph;            // every node has one output: node id = tensor index
    node_info  *nodes;            // [node_count]
    param_info *params;           // [param_kinds]
    int32_t     param_kinds;
    uint64_t    param_count;      // floats, all together
    int32_t     tokens, targets, first_layer, logits, loss;  // node ids
} model;

static uint64_t add_param(model *m, uint64_t count, float mean, float deviation, int decays) {
    param_info *p = &m->params[m->param_kinds++];
    p->first = m->param_count;
    p->count = count;
    p->mean = mean;
    p->deviation = deviation;
    p->decays = decays;
    m->param_count += count;
    return p->first;
}

// FLOP of one forward, roughly: the cost until the nodes are measured.
static uint64_t estimate_flops(const model *m, const node_info *n) {
    uint64_t R = m->size.B * m->size.T;
    switch (n->op) {
    case OP_EMBED:
    case OP_ADD:       return R * n->width;
    case OP_NORM:      return R * n->width * 8;
    case OP_LINEAR:    return R * n->width * n->in_width * 2;
    case OP_ATTENTION: return R * n->width * m->size.T * 4;
    case OP_GELU:
    case OP_DROPOUT:   return R * n->width * 20;
    case OP_LOSS:      return R * n->in_width * 20;
    case OP_INPUT:
    case OP_COUNT:     break;
    }
    return 0;
}

// The parameters of a node, and the bytes that it needs besides its output.
static void size_node(model *m, node_info *n, tl_node_desc *desc) {
    const dims *s = &m->size;
    uint64_t before = m->param_count;
    float residual = 1.0f / sqrtf(2.0f * (float)s->L);  // 2 L branches add up to a variance of 1
    switch (n->op) {
    case OP_EMBED:
        n->weight = add_param(m, s->V * n->width, 0.0f, 0.3f, 0);
        n->bias = add_param(m, s->T * n->width, 0.0f, 0.1f, 0);
        break;
    case OP_NORM:
        n->weight = add_param(m, n->width, 1.0f, 0.0f, 0);
        n->bias = add_param(m, n->width, 0.0f, 0.0f, 0);
        desc->saved_bytes = nn_norm_saved_bytes((size_t)(s->B * s->T));
        break;
    case OP_LINEAR:
        n->weight = add_param(m, n->in_width * n->width, 0.0f,
                              (n->width == s->C ? residual : 1.0f) / sqrtf((float)n->in_width), 1);
        n->bias = add_param(m, n->width, 0.0f, 0.0f, 0);
        break;
    case OP_ATTENTION:
        desc->saved_bytes = nn_attention_saved_bytes((size_t)s->B, (size_t)(s->C / HEAD_SIZE),
                                                     (size_t)s->T);
        desc->fwork_bytes = desc->bwork_bytes = nn_attention_scratch_bytes((size_t)s->T);
        break;
    case OP_INPUT:
    case OP_GELU:
    case OP_DROPOUT:
    case OP_ADD:
    case OP_LOSS:
    case OP_COUNT: break;
    }
    desc->param_bytes = (m->param_count - before) * sizeof(float);
}

// Add a node of desc's name, unit, layer and needs that reads two nodes (below 0: none).
static tl_result add_op(tl_env *env, model *m, op_kind op, tl_node_desc desc, int32_t from,
                        int32_t from2, uint64_t in_width, uint64_t width) {
    uint64_t bytes = (op == OP_LOSS ? 1 : m->size.B * m->size.T * width) * sizeof(float);
    int32_t id = m->graph.node_count;
    node_info *n = &m->nodes[id];
    tl_tensor inputs[2];
    inputs[0].node = from;
    inputs[1].node = from2;
    inputs[0].output = inputs[1].output = 0;
    n->op = op;
    n->in_width = in_width;
    n->width = width;
    size_node(m, n, &desc);
    desc.op = op_names[op];
    desc.inputs = inputs;
    desc.input_count = (from >= 0) + (from2 >= 0);
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fwd_cost = m->node_ns ? m->node_ns[2 * id] : estimate_flops(m, n);
    desc.bwd_cost = m->node_ns ? m->node_ns[2 * id + 1] : 2 * desc.fwd_cost;
    desc.keep = id == (m->trains ? m->loss : m->logits);
    if (!m->trains && op != OP_INPUT) {  // forward only: nothing is there for backward
        desc.no_grad = 1;
        desc.needs = NULL;
        desc.bwd_cost = desc.saved_bytes = desc.bwork_bytes = 0;
    }
    return tl_add_node(env, &m->graph, &desc, NULL);
}

// Add the nodes of a layer; *last is the node it reads, then the node with its result.
static tl_result add_layer(tl_env *env, model *m, int32_t layer, int32_t *last) {
    int32_t ids[ROW_COUNT], i;
    tl_result result = TL_OK;
    memset(ids, 0, sizeof ids);
    for (i = 0; i < ROW_COUNT && !result; i++) {
        const layer_row *row = &layer_rows[i];
        int32_t from = row->from == BEFORE ? *last : ids[row->from];
        int32_t from2 = row->from2 == NOTHING ? NOTHING : ids[row->from2];
        tl_node_desc desc;
        char name[32];
        if (row->op == OP_DROPOUT && !m->trains) {
            ids[i] = from;
            continue;
        }
        ids[i] = m->graph.node_count;
        snprintf(name, sizeof name, "layer%d.%s", (int)layer, row->name);
        memset(&desc, 0, sizeof desc);
        desc.name = name;
        desc.unit = row->unit;
        desc.layer = layer + 1;
        desc.needs = row->needs;
        result = add_op(env, m, row->op, desc, from, from2, (uint64_t)row->in_width * m->size.C,
                        (uint64_t)row->width * m->size.C);
    }
    *last = ids[ROW_COUNT - 1];
    return result;
}

static void free_model(tl_env *env, model *m) {
    tl_free_graph(env, &m->graph);
    free(m->nodes);
    free(m->params);
    m->nodes = NULL;
    m->params = NULL;
}

static tl_node_desc describe(const char *name, const char *needs) {
    tl_node_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.needs = needs;
    return desc;
}

// Build the graph of size, trains, dropout and node_ns; release with free_model.
static tl_result build_model(tl_env *env, model *m) {
    const dims *s = &m->size;
    size_t node_max = (size_t)s->L * ROW_COUNT + 6;
    int32_t last, layer;
    tl_result result;
    m->nodes = (node_info *)calloc(node_max, sizeof *m->nodes);
    m->params = (param_info *)calloc(2 * node_max, sizeof *m->params);
    m->param_kinds = 0;
    m->param_count = 0;
    m->logits = m->loss = -1;
    tl_init_graph(&m->graph);
    if (!m->nodes || !m->params) return TL_ERROR_NO_MEMORY;
    m->graph.batch = s->B;
    m->tokens = 0;  // int32, as wide as a float
    result = add_op(env, m, OP_INPUT, describe("tokens", NULL), NOTHING, NOTHING, 0, 1);
    m->targets = m->graph.node_count;
    if (!result && m->trains)
        result = add_op(env, m, OP_INPUT, describe("targets", NULL), NOTHING, NOTHING, 0, 1);
    last = m->graph.node_count;
    if (!result) result = add_op(env, m, OP_EMBED, describe("embed", "in"), 0, NOTHING, 1, s->C);
    m->first_layer = m->graph.node_count;
    for (layer = 0; layer < (int32_t)s->L && !result; layer++)
        result = add_layer(env, m, layer, &last);
    if (!result)
        result = add_op(env, m, OP_NORM, describe("norm", "in"), last, NOTHING, s->C, s->C);
    last = m->graph.node_count - 1;
    m->logits = last + 1;
    if (!result)
        result = add_op(env, m, OP_LINEAR, describe("head", "in"), last, NOTHING, s->C, s->V);
    m->loss = m->graph.node_count;
    if (!result && m->trains)
        result = add_op(env, m, OP_LOSS, describe("loss", "in"), m->logits, m->targets, s->V, 1);
    return result ? result : tl_check_graph(env, &m->graph);
}

// -- kernels: thin wrappers around nn.h --
//
// An operand that is not there has a NULL pointer, which is what nn.h takes for "not wanted".

typedef struct net {
    const model *m;
    const float *params;          // [param_count]
    float       *grads;           // [param_count]; NULL: samples
} net;

static float *f32(tl_operand operand) { return (float *)operand.host; }
static const int32_t *i32(tl_operand operand) { return (const int32_t *)operand.host; }

// What every wrapper starts with.
typedef struct args {
    const model     *m;
    const node_info *n;
    const float     *weight, *bias;
    float           *dweight, *dbias;
    size_t           B, T, C, R, NH;  // R = rows = B T
} args;

static args args_of(const tl_kernel_call *call, void *user) {
    const net *network = (const net *)user;
    args a;
    a.m = network->m;
    a.n = &a.m->nodes[call->node];
    a.weight = network->params + a.n->weight;
    a.bias = network->params + a.n->bias;
    a.dweight = network->grads ? network->grads + a.n->weight : NULL;
    a.dbias = network->grads ? network->grads + a.n->bias : NULL;
    a.B = (size_t)a.m->size.B;
    a.T = (size_t)a.m->size.T;
    a.C = (size_t)a.m->size.C;
    a.R = a.B * a.T;
    a.NH = a.C / HEAD_SIZE;
    return a;
}

static tl_result embed_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_embed_forward(f32(call->outputs[0]), i32(call->inputs[0]), a.weight, a.bias, a.B, a.T, a.C);
    return TL_OK;
}

static tl_result embed_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_embed_backward(a.dweight, a.dbias, f32(call->output_grads[0]), i32(call->inputs[0]), a.B,
                      a.T, a.C);
    return TL_OK;
}

static tl_result norm_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_norm_forward(f32(call->outputs[0]), f32(call->saved), f32(call->inputs[0]), a.weight, a.bias,
                    a.R, a.C);
    return TL_OK;
}

static tl_result norm_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_norm_backward(f32(call->input_grads[0]), a.dweight, a.dbias, f32(call->output_grads[0]),
                     f32(call->saved), f32(call->inputs[0]), a.weight, a.R, a.C);
    return TL_OK;
}

static tl_result linear_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_linear_forward(f32(call->outputs[0]), f32(call->inputs[0]), a.weight, a.bias, a.R,
                      (size_t)a.n->in_width, (size_t)a.n->width);
    return TL_OK;
}

static tl_result linear_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_linear_backward(f32(call->input_grads[0]), a.dweight, a.dbias, f32(call->output_grads[0]),
                       f32(call->inputs[0]), a.weight, a.R, (size_t)a.n->in_width,
                       (size_t)a.n->width);
    return TL_OK;
}

static tl_result attention_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_attention_forward(f32(call->outputs[0]), f32(call->saved), f32(call->inputs[0]),
                         f32(call->scratch), a.B, a.T, a.C, a.NH);
    return TL_OK;
}

static tl_result attention_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_attention_backward(f32(call->input_grads[0]), f32(call->output_grads[0]), f32(call->saved),
                          f32(call->inputs[0]), f32(call->scratch), a.B, a.T, a.C, a.NH);
    return TL_OK;
}

static tl_result gelu_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_gelu_forward(f32(call->outputs[0]), f32(call->inputs[0]), a.R * (size_t)a.n->width);
    return TL_OK;
}

static tl_result gelu_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_gelu_backward(f32(call->input_grads[0]), f32(call->output_grads[0]), f32(call->inputs[0]),
                     a.R * (size_t)a.n->width);
    return TL_OK;
}

// The seed of a call is the same whenever this node runs in this pass: dropout repeats itself.
static tl_result dropout_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_dropout_forward(f32(call->outputs[0]), f32(call->inputs[0]), a.R * a.C, a.m->dropout,
                       call->seed, 0);
    return TL_OK;
}

static tl_result dropout_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_dropout_backward(f32(call->input_grads[0]), f32(call->output_grads[0]), a.R * a.C,
                        a.m->dropout, call->seed, 0);
    return TL_OK;
}

static tl_result add_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_add_forward(f32(call->outputs[0]), f32(call->inputs[0]), f32(call->inputs[1]), a.R * a.C);
    return TL_OK;
}

static tl_result add_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_add_backward(f32(call->input_grads[0]), f32(call->input_grads[1]),
                    f32(call->output_grads[0]), a.R * a.C);
    return TL_OK;
}

static tl_result loss_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_cross_entropy_forward(f32(call->outputs[0]), NULL, f32(call->inputs[0]),
                             i32(call->inputs[1]), a.R, (size_t)a.n->in_width);
    return TL_OK;
}

static tl_result loss_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    nn_cross_entropy_backward(f32(call->input_grads[0]), *f32(call->output_grads[0]),
                              f32(call->inputs[0]), i32(call->inputs[1]), a.R,
                              (size_t)a.n->in_width);
    return TL_OK;
}

enum { KERNEL_COUNT = OP_COUNT - 1 };

// All kernels, with this net behind them.
static void set_kernels(tl_kernel *kernels, net *user) {
    static const tl_kernel_fn forwards[OP_COUNT] = {
        NULL, embed_forward, norm_forward, linear_forward, attention_forward, gelu_forward,
        dropout_forward, add_forward, loss_forward
    };
    static const tl_kernel_fn backwards[OP_COUNT] = {
        NULL, embed_backward, norm_backward, linear_backward, attention_backward, gelu_backward,
        dropout_backward, add_backward, loss_backward
    };
    int i;
    for (i = 0; i < KERNEL_COUNT; i++) {
        kernels[i].op = op_names[i + 1];
        kernels[i].forward = forwards[i + 1];
        kernels[i].backward = user->grads ? backwards[i + 1] : NULL;
        kernels[i].user = user;
    }
}

// -- options, as the sections below see them --

typedef struct options {
    const char *text, *load, *save, *out, *budget;  // NULL = not given
    uint64_t    layers, width, context, batch, micro_batches, seed;
    uint64_t    steps, seconds, sample;
    int         given_size, given_seed, given_steps, given_seconds, checked;
} options;

// -- text --

typedef struct text {
    uint8_t *ids;                 // [length] the file, as token numbers
    size_t   length;
    int      V;
    uint8_t  is_used[256];        // 1 = this byte is a token
    uint8_t  id_of[256], byte_of[256];
    char     path[512];
} text;

static void number_tokens(text *t) {
    int byte;
    t->V = 0;
    for (byte = 0; byte < 256; byte++) {
        if (!t->is_used[byte]) continue;
        t->byte_of[t->V] = (uint8_t)byte;
        t->id_of[byte] = (uint8_t)t->V++;
    }
}

// Read a whole file; *data is for the caller to free.
static int read_file(const char *path, const char *what, uint8_t **data, size_t *length) {
    FILE *file = fopen(path, "rb");
    size_t capacity = (size_t)1 << 16, got = 1;
    int error;
    *length = 0;
    *data = NULL;
    if (!file) return fail(CODE_INPUT, "%s %s: %s", what, path, strerror(errno));
    while (got) {
        uint8_t *grown = (uint8_t *)realloc(*data, capacity);
        if (!grown) break;
        *data = grown;
        errno = 0;
        got = fread(*data + *length, 1, capacity - *length, file);
        *length += got;
        if (*length == capacity) capacity *= 2;
    }
    error = errno;
    if (got || ferror(file)) {
        fclose(file);
        free(*data);
        *data = NULL;
        return fail(CODE_INPUT, "%s %s: %s", what, path,
                    got ? "no memory for all of it" : strerror(error));
    }
    fclose(file);
    return CODE_OK;
}

// The text trained on by default is the library itself: here, or above the program's directory.
static void find_text(const char *program, char *path, size_t size) {
    const char *name = "tl_strategy.h", *slash = strrchr(program, '/');
    FILE *file;
    snprintf(path, size, "%s", name);
    file = fopen(path, "rb");
    if (!file && slash) snprintf(path, size, "%.*s/../%s", (int)(slash - program), program, name);
    if (file) fclose(file);
}

// Read the text. vocabulary: the tokens of loaded weights, 0 = whatever bytes the text has.
static int read_text(const options *o, const char *program, const uint8_t *vocabulary, text *t) {
    size_t i, window = (size_t)o->context + 1;
    int code;
    if (o->text) snprintf(t->path, sizeof t->path, "%s", o->text);
    else find_text(program, t->path, sizeof t->path);
    code = read_file(t->path, "text", &t->ids, &t->length);
    if (code) return code;
    if (!t->length) return fail(CODE_INPUT, "text %s: is empty", t->path);
    if (memchr(t->ids, 0, t->length))
        return fail(CODE_INPUT, "text %s: is binary, it has zero bytes", t->path);
    if (t->length < window)
        return fail(CODE_INPUT, "text %s: %zu bytes, but one window (--context + 1) takes %zu",
                    t->path, t->length, window);
    if (vocabulary) memcpy(t->is_used, vocabulary, sizeof t->is_used);
    for (i = 0; i < t->length && !vocabulary; i++) t->is_used[t->ids[i]] = 1;
    number_tokens(t);
    for (i = 0; i < t->length; i++) {
        if (!t->is_used[t->ids[i]])
            return fail(CODE_INPUT, "text %s: byte %d at %zu is unknown to the weights of --load",
                        t->path, t->ids[i], i);
        t->ids[i] = t->id_of[t->ids[i]];
    }
    return CODE_OK;
}

// -- weights: the file of --save and --load --
//
// "TLTEXT1\n", then little endian: u64 L, C, T, V, steps done, seed, parameters; the 256 flags of
// the vocabulary; f32 parameters, then both states of AdamW, so that a training goes on as if it
// had never ended; at last u64, the checksum of all before.

enum { FILE_WORDS = 7, FILE_HEAD = 8 + 8 * FILE_WORDS + 256 };
static const uint8_t file_magic[8] = { 'T', 'L', 'T', 'E', 'X', 'T', '1', '\n' };

typedef struct weights {
    uint8_t *bytes;               // the file; NULL = none was loaded
    dims     size;
    uint64_t steps, seed, count;
    const uint8_t *vocabulary;    // [256]
    const uint8_t *floats;        // [3][count], little endian
} weights;

static void put_bytes(uint8_t *to, uint64_t value, int count) {
    int i;
    for (i = 0; i < count; i++) to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_bytes(const uint8_t *from, int count) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < count; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static void get_floats(float *to, const uint8_t *from, uint64_t count) {
    uint64_t i;
    for (i = 0; i < count; i++) {
        uint32_t word = (uint32_t)get_bytes(from + 4 * i, 4);
        memcpy(&to[i], &word, sizeof word);
    }
}

// Read and check the file of --load; *w is zero without one.
static int load_weights(const options *o, weights *w) {
    uint64_t words[FILE_WORDS], most = UINT32_MAX / 16;
    size_t length;
    int i, code;
    memset(w, 0, sizeof *w);
    if (!o->load) return CODE_OK;
    code = read_file(o->load, "weights", &w->bytes, &length);
    if (code) return code;
    if (!w->bytes || length < FILE_HEAD + 8 || memcmp(w->bytes, file_magic, 8) != 0)
        return fail(CODE_INPUT, "weights %s: not a file that this program saved", o->load);
    if (nn_checksum(0, w->bytes, length - 8) != get_bytes(w->bytes + length - 8, 8))
        return fail(CODE_INPUT, "weights %s: damaged, the checksum is not that of the content",
                    o->load);
    for (i = 0; i < FILE_WORDS; i++) words[i] = get_bytes(w->bytes + 8 + 8 * i, 8);
    w->size.L = words[0];
    w->size.C = words[1];
    w->size.T = words[2];
    w->size.V = words[3];
    w->steps = words[4];
    w->seed = words[5];
    w->count = words[6];
    w->vocabulary = w->bytes + 8 + 8 * FILE_WORDS;
    w->floats = w->bytes + FILE_HEAD;
    if (w->count > most || length != FILE_HEAD + 12 * w->count + 8)
        return fail(CODE_INPUT, "weights %s: damaged, %zu bytes are not its length", o->load,
                    length);
    return CODE_OK;
}

static int write_weights(FILE *file, const model *m, const text *t, uint64_t steps, uint64_t seed,
                         const float *floats) {
    uint64_t words[FILE_WORDS], i, count = 3 * m->param_count, checksum;
    uint8_t head[FILE_HEAD], block[4096];
    words[0] = m->size.L;
    words[1] = m->size.C;
    words[2] = m->size.T;
    words[3] = m->size.V;
    words[4] = steps;
    words[5] = seed;
    words[6] = m->param_count;
    memcpy(head, file_magic, 8);
    for (i = 0; i < FILE_WORDS; i++) put_bytes(head + 8 + 8 * i, words[i], 8);
    memcpy(head + 8 + 8 * FILE_WORDS, t->is_used, 256);
    checksum = nn_checksum(0, head, sizeof head);
    if (fwrite(head, 1, sizeof head, file) != sizeof head) return 0;
    for (i = 0; i < count;) {
        size_t used = 0;
        for (; i < count && used < sizeof block; i++, used += 4) {
            uint32_t word;
            memcpy(&word, &floats[i], sizeof word);
            put_bytes(block + used, word, 4);
        }
        checksum = nn_checksum(checksum, block, used);
        if (fwrite(block, 1, used, file) != used) return 0;
    }
    put_bytes(block, checksum, 8);
    return fwrite(block, 1, 8, file) == 8 && fflush(file) == 0;
}

// Write beside the place and rename: whoever looks finds the old file or the new one, never half.
static int save_weights(const options *o, const model *m, const text *t, uint64_t steps,
                        uint64_t seed, const float *floats) {
    char part[1024];
    struct stat info;
    int written, in_place, error;
    FILE *file;
    if (!o->save) return CODE_OK;
    in_place = stat(o->save, &info) == 0 && !S_ISREG(info.st_mode);  // a pipe or a device
    if (snprintf(part, sizeof part, "%s%s", o->save, in_place ? "" : ".part") >= (int)sizeof part)
        return fail(CODE_INPUT, "weights %s: the name is too long", o->save);
    file = fopen(part, "wb");
    if (!file) return fail(CODE_INPUT, "weights %s: not saved: %s", o->save, strerror(errno));
    errno = 0;
    written = write_weights(file, m, t, steps, seed, floats);
    if (written && !in_place) written = fsync(fileno(file)) == 0;
    error = errno;
    if (fclose(file) != 0 && written) {
        written = 0;
        error = errno;
    }
    if (written && !in_place && rename(part, o->save) != 0) {
        written = 0;
        error = errno;
    }
    if (written) return CODE_OK;
    if (!in_place) remove(part);
    return fail(CODE_INPUT, "weights %s: not saved: %s", o->save, strerror(error));
}

// -- plans: the cheapest within a budget --
//
// Every candidate is simulated, and the cheapest that fits wins. The candidates are: keep all;
// checkpoint configs, that is uniform intervals 1 to L with the inner activations of attention and
// of ffn kept or dropped, and dynamic; kept sets: a layer has 9 tensors that can be kept for
// backward, so each of the 2^9 choices, in the first layers or in all; and from the best of these,
// single tensors kept again, the most expensive first, while that fits. It is the first layers that
// are thinned out because backward comes to them last, when the memory above is free again.

typedef struct search {
    const model *m;
    uint64_t budget;              // for activations
    tl_plan  best;                // steps 0 = none fits
    uint8_t *keep, *best_keep;    // [tensor_count] being tried; of the best kept set
    uint64_t best_keep_cost;      // of that; 0 = none fits
    uint64_t least_bytes;         // the least peak of all candidates
    int32_t  least_node;          // where it stands
} search;

// Look at a plan: it becomes the best, or is freed.
static tl_result consider(tl_env *env, search *s, tl_plan *plan) {
    if (!s->least_bytes || plan->peak_bytes < s->least_bytes) {
        tl_simulate_desc desc;
        tl_report report;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        desc.graph = &s->m->graph;
        desc.plan = plan;
        result = tl_simulate_plan(env, &desc, &report);
        if (result) return result;
        s->least_bytes = plan->peak_bytes;
        s->least_node = plan->steps[report.peak_step].node;
    }
    if (plan->peak_bytes <= s->budget && (!s->best.steps || plan->cost < s->best.cost)) {
        tl_plan worse = s->best;
        s->best = *plan;
        *plan = worse;
    }
    tl_free_plan(env, plan);
    return TL_OK;
}

static tl_result consider_config(tl_env *env, search *s, const tl_checkpoint_config *config) {
    tl_plan plan;
    tl_result result = tl_plan_checkpoints(env, &s->m->graph, config, &plan);
    if (result == TL_ERROR_INFEASIBLE) return TL_OK;
    return result ? result : consider(env, s, &plan);
}

static tl_result consider_kept_set(tl_env *env, search *s, int *fits) {
    tl_plan plan;
    tl_result result = tl_plan_kept_set(env, &s->m->graph, s->keep, &plan);
    if (result) return result;
    *fits = plan.peak_bytes <= s->budget;
    if (*fits && (!s->best_keep_cost || plan.cost < s->best_keep_cost)) {
        s->best_keep_cost = plan.cost;
        memcpy(s->best_keep, s->keep, (size_t)s->m->graph.tensor_count);
    }
    return consider(env, s, &plan);
}

static tl_result consider_configs(tl_env *env, search *s, uint64_t keep_all_bytes) {
    tl_checkpoint_config config;
    uint64_t interval;
    int flags;
    double fraction = (double)s->budget / (double)keep_all_bytes;
    tl_result result = TL_OK;
    for (interval = 1; interval <= s->m->size.L && !result; interval++) {
        for (flags = 0; flags < 4 && !result; flags++) {
            config = tl_checkpoint_uniform(interval);
            config = tl_with_checkpoint_attention(config, flags & 1);
            config = tl_with_checkpoint_ffn(config, flags >> 1);
            result = consider_config(env, s, &config);
        }
    }
    if (!result && fraction < 1.0) {
        result = tl_checkpoint_dynamic(env, s->m->size.L, fraction, &config);
        if (!result) result = consider_config(env, s, &config);
    }
    return result;
}

// Drop in the first `layers` layers what the subset does not name.
static void set_kept(search *s, uint32_t subset, uint64_t layers) {
    uint64_t layer;
    int row, choice;
    memset(s->keep, 1, (size_t)s->m->graph.tensor_count);
    for (layer = 0; layer < layers; layer++) {
        uint8_t *keep = s->keep + s->m->first_layer + layer * ROW_COUNT;
        for (row = choice = 0; row < ROW_COUNT; row++) {
            if (layer_rows[row].is_choice) keep[row] = (uint8_t)(subset >> choice++ & 1);
        }
    }
}

static tl_result consider_kept_sets(tl_env *env, search *s) {
    uint64_t part, L = s->m->size.L, parts = L < 8 ? L : 8;
    uint32_t subset;
    int fits = 0;
    tl_result result = TL_OK;
    for (subset = 0; subset + 1 < 1u << CHOICE_COUNT && !result; subset++) {
        for (part = 1; part <= parts && !result; part++) {
            set_kept(s, subset, L * part / parts);
            result = consider_kept_set(env, s, &fits);
        }
    }
    return result;
}

// From the best kept set on: keep single tensors again, the most expensive one that fits each time.
static tl_result refine_kept_set(tl_env *env, search *s) {
    const tl_graph *graph = &s->m->graph;
    tl_result result = TL_OK;
    uint64_t below = UINT64_MAX;
    if (!s->best_keep_cost) return TL_OK;
    memcpy(s->keep, s->best_keep, (size_t)graph->tensor_count);
    while (!result) {
        int32_t i, next = -1;
        int fits = 0;
        for (i = 0; i < graph->tensor_count; i++) {
            uint64_t cost = graph->nodes[i].fwd_cost;
            if (s->keep[i] || cost >= below) continue;
            if (next < 0 || cost > graph->nodes[next].fwd_cost) next = i;
        }
        if (next < 0) break;
        below = graph->nodes[next].fwd_cost;
        s->keep[next] = 1;
        result = consider_kept_set(env, s, &fits);
        if (!fits) s->keep[next] = 0;
    }
    return result;
}

static void free_search(tl_env *env, search *s) {
    tl_free_plan(env, &s->best);
    free(s->keep);
    free(s->best_keep);
    memset(s, 0, sizeof *s);
}

// Find the cheapest plan within a budget; s->best has no steps where none fits. On success the plan
// belongs to the caller, who takes it out of s->best.
static tl_result search_plan(tl_env *env, const model *m, const tl_plan *keep_all, uint64_t budget,
                             search *s) {
    size_t tensors = (size_t)m->graph.tensor_count;
    tl_plan plan;
    tl_result result;
    memset(s, 0, sizeof *s);
    s->m = m;
    s->budget = budget;
    s->keep = (uint8_t *)malloc(tensors);
    s->best_keep = (uint8_t *)malloc(tensors);
    if (!s->keep || !s->best_keep) return TL_ERROR_NO_MEMORY;
    result = tl_plan_keep_all(env, &m->graph, 0, &plan);
    if (!result) result = consider(env, s, &plan);
    if (!result) result = consider_configs(env, s, keep_all->peak_bytes);
    if (!result) result = consider_kept_sets(env, s);
    if (!result) result = refine_kept_set(env, s);
    return result;
}

// -- training: one network, its optimizer and its run --

typedef struct training {
    const model *m;
    const text  *t;
    const options *o;
    net      network;
    float   *floats;              // [4][param_count]: parameters, both states of AdamW, gradients
    float   *grads;               // [param_count]
    uint64_t seed, step;          // step = training steps done
    tl_plan  plan;                // owned
    tl_env   memory;              // of the backend: an arena, touched once, never given back
    void    *arena;               // its bytes
    tl_backend backend;
    tl_run  *run;
    tl_run_report report;         // of the last step
    float    loss;                // of the last step
    float    loss_sum;            // of the micro-batches so far
    int32_t *window;              // [2][B T] tokens and targets of a micro-batch
    uint64_t step_ns;             // of the last step: load, forward, backward, optimizer
    uint64_t compute_ns;          // of it, forward and backward steps
    uint64_t *node_ns;            // [node_count][2] of the last step; NULL = not wanted
    uint64_t *live;               // [step_count] device bytes of the last pass
    double   *ends;               // [step_count] its times in ms
    uint64_t start_ns;            // of the last pass
    tl_trace *trace;              // NULL = none

    // what the table says about it
    char     label[16];
    uint64_t budget;              // for activations; 0 = keep all
    double   predicted_ratio, measured_ratio;
    int      equal;               // 1 = so far all gradients and losses are those of keep all
    uint64_t fastest_ns;          // its memory is what the picture shows
    uint64_t *fastest_live;
    double   *fastest_ends;
    uint64_t *rounds_ns;          // [steps]
} training;

// Write the windows of a micro-batch: where they begin depends on seed and step alone.
static tl_result load_batch(tl_run *run, int32_t micro_batch, void *user) {
    training *t = (training *)user;
    const dims *s = &t->m->size;
    uint64_t b, k, rows = s->B * s->T, places = t->t->length - s->T;
    uint64_t first = (t->step * t->o->micro_batches + (uint64_t)micro_batch) * s->B;
    tl_tensor tokens = { 0, 0 }, targets = { 0, 0 }, loss = { 0, 0 };
    tl_result result = TL_OK;
    tokens.node = t->m->tokens;
    targets.node = t->m->targets;
    loss.node = t->m->loss;
    if (micro_batch > 0) {  // the results of the micro-batch before stand until the next one begins
        result = tl_read_tensor(run, loss, &t->loss, sizeof t->loss);
        t->loss_sum += t->loss;
    }
    for (b = 0; b < s->B; b++) {
        const uint8_t *at = t->t->ids + nn_hash(t->seed ^ 0x74657874u, first + b) % places;
        for (k = 0; k < s->T; k++) {
            t->window[b * s->T + k] = at[k];
            t->window[rows + b * s->T + k] = at[k + 1];
        }
    }
    if (!result) result = tl_write_tensor(run, tokens, t->window, rows * sizeof(int32_t));
    if (!result) result = tl_write_tensor(run, targets, t->window + rows, rows * sizeof(int32_t));
    return result;
}

static void observe(const tl_run_event *event, void *user) {
    training *t = (training *)user;
    int backward = event->step.kind == TL_STEP_BACKWARD;
    int forward = event->step.kind <= TL_STEP_FORWARD_SAVE;
    if (event->index == 0) t->start_ns = event->start_ns;
    if (event->index < t->plan.step_count) {
        t->live[event->index] = event->device_bytes;
        t->ends[event->index] = (double)(event->end_ns - t->start_ns) * 1e-6;
    }
    if (forward || backward) t->compute_ns += event->end_ns - event->start_ns;
    if (t->node_ns && (backward || (forward && !event->recompute)))
        t->node_ns[2 * event->step.node + backward] += event->end_ns - event->start_ns;
    if (t->trace) tl_record_event(event, t->trace);
}

static void free_training(tl_env *env, training *t) {
    tl_free_run(t->run);
    tl_free_cpu_backend(&t->memory, &t->backend);
    tl_free_plan(env, &t->plan);
    free(t->arena);
    free(t->floats);
    free(t->window);
    free(t->live);
    free(t->ends);
    free(t->fastest_live);
    free(t->fastest_ends);
    free(t->rounds_ns);
    memset(t, 0, sizeof *t);
}

static void init_floats(training *t, const weights *w) {
    const model *m = t->m;
    int32_t i;
    if (w->bytes) {
        get_floats(t->floats, w->floats, 3 * m->param_count);
        t->step = w->steps;
        return;
    }
    for (i = 0; i < m->param_kinds; i++) {
        const param_info *p = &m->params[i];
        float *at = t->floats + p->first;
        uint64_t k;
        nn_fill_normal(at, (size_t)p->count, p->deviation, tl_mix_u64(t->seed, (uint64_t)i));
        for (k = 0; k < p->count; k++) at[k] += p->mean;
    }
}

static tl_result init_arrays(training *t) {
    const model *m = t->m;
    size_t count = (size_t)m->param_count, steps = (size_t)t->plan.step_count;
    t->floats = (float *)calloc(4 * count, sizeof *t->floats);
    t->window = (int32_t *)calloc((size_t)(2 * m->size.B * m->size.T), sizeof *t->window);
    t->live = (uint64_t *)calloc(steps, sizeof *t->live);
    t->ends = (double *)calloc(steps, sizeof *t->ends);
    t->fastest_live = (uint64_t *)calloc(steps, sizeof *t->fastest_live);
    t->fastest_ends = (double *)calloc(steps, sizeof *t->fastest_ends);
    t->rounds_ns = (uint64_t *)calloc((size_t)t->o->steps, sizeof *t->rounds_ns);
    if (!t->floats || !t->window || !t->live || !t->ends || !t->fastest_live || !t->fastest_ends ||
        !t->rounds_ns)
        return TL_ERROR_NO_MEMORY;
    t->grads = t->floats + 3 * count;
    t->network.m = m;
    t->network.params = t->floats;
    t->network.grads = t->grads;
    return TL_OK;
}

// Buffers from malloc would be mapped and unmapped in every step, which costs more than some
// kernels: take them from an arena. Twice the peak leaves room for gaps; what is never touched
// takes no memory. The checked backend needs more than that, and gets malloc.
static tl_result init_memory(training *t) {
    size_t bytes = (size_t)(2 * t->plan.peak_bytes + ((uint64_t)1 << 20));
    if (t->o->checked) return TL_OK;
    t->arena = malloc(bytes);
    return t->arena ? tl_init_arena(&t->memory, t->arena, bytes) : TL_ERROR_NO_MEMORY;
}

static uint64_t base_bytes_of(const model *m) { return 4 * sizeof(float) * m->param_count; }

// Begin a training from the seed, or from weights, by a plan, which belongs to the training then.
// The backend has room for the budget and not one byte more. On error free_training is still due.
static tl_result init_training(tl_env *env, training *t, const model *m, const text *txt,
                               const options *o, const weights *w, tl_plan *plan, uint64_t budget) {
    tl_cpu_backend_desc cpu;
    tl_kernel kernels[KERNEL_COUNT];
    tl_run_desc desc;
    tl_result result;
    memset(t, 0, sizeof *t);
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    t->m = m;
    t->t = txt;
    t->o = o;
    t->seed = o->seed;
    t->plan = *plan;
    memset(plan, 0, sizeof *plan);
    t->budget = budget;
    t->equal = 1;
    result = init_arrays(t);
    if (result) return result;
    init_floats(t, w);
    result = init_memory(t);
    cpu.capacity_bytes[TL_TIER_DEVICE] = budget;  // 0 = no limit
    cpu.now_ns = now_ns;
    cpu.checked = o->checked;
    if (!result) result = tl_init_cpu_backend(&t->memory, &cpu, &t->backend);
    if (result) return result;
    set_kernels(kernels, &t->network);
    desc.graph = &m->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = KERNEL_COUNT;
    desc.plan = &t->plan;
    desc.repeat_count = (int32_t)o->micro_batches;
    desc.base_bytes = base_bytes_of(m);
    desc.budget_bytes = budget ? budget + desc.base_bytes : 0;
    desc.load = load_batch;
    desc.load_user = t;
    desc.observe = observe;
    desc.observe_user = t;
    desc.profiling = 1;
    desc.seed = t->seed;
    desc.first_step = t->step;
    desc.loss_gradient_word = bits_of(1.0f / (float)o->micro_batches);  // of their mean
    return tl_init_run(env, &desc, &t->run);
}

// Learning rate: up to its top within 50 steps, then down with the fourth root.
static float rate_at(uint64_t step) {
    float top = 8e-3f, warm = 50.0f, n = (float)(step + 1);
    return n < warm ? top * n / warm : top * sqrtf(sqrtf(warm / n));
}

static tl_result train_step(training *t) {
    const model *m = t->m;
    uint64_t start = now_ns(NULL);
    tl_tensor loss = { 0, 0 };
    nn_adamw adamw = { 0.0f, 0.9f, 0.98f, 1e-8f, 0.0f };
    int32_t i;
    tl_result result;
    memset(t->grads, 0, (size_t)m->param_count * sizeof *t->grads);
    t->loss_sum = 0.0f;
    t->compute_ns = 0;
    result = tl_run_plan(t->run);
    tl_measure_run(t->run, &t->report);
    loss.node = m->loss;
    if (!result) result = tl_read_tensor(t->run, loss, &t->loss, sizeof t->loss);
    if (result) return result;
    t->loss = (t->loss_sum + t->loss) / (float)t->o->micro_batches;
    adamw.rate = rate_at(t->step);
    t->step++;
    for (i = 0; i < m->param_kinds; i++) {
        const param_info *p = &m->params[i];
        float *param = t->floats + p->first;
        adamw.weight_decay = p->decays ? 0.05f : 0.0f;
        nn_adamw_update(param, param + m->param_count, param + 2 * m->param_count,
                        t->grads + p->first, (size_t)p->count, t->step, &adamw);
    }
    t->step_ns = now_ns(NULL) - start;
    return TL_OK;
}

// -- rehearsal: measure every node --

enum { REHEARSAL_MAX = 2, REHEARSAL_STEPS = 62, WARM_STEPS = 2 };

// Train a few steps by each plan, in turns, and throw the networks away. The plans are used up.
// times: [count][2 node_count + 1] overwritten with the ns of each node's forward and backward in
// a step, and at last of all that a step takes besides them. What disturbs a step can only add to
// it, and may last as long as the rehearsal: the lower quartile is steadier than the median.
static tl_result rehearse(tl_env *env, const model *m, const text *txt, const options *o,
                          const weights *w, tl_plan *plans, int count, uint64_t *times) {
    size_t slots = 2 * (size_t)m->graph.node_count + 1, i, steps = 0;
    uint64_t *samples = (uint64_t *)calloc(slots * REHEARSAL_STEPS * REHEARSAL_MAX, 8);
    uint64_t column[REHEARSAL_STEPS];
    training t[REHEARSAL_MAX];
    tl_result result = samples ? TL_OK : TL_ERROR_NO_MEMORY;
    int k;
    memset(t, 0, sizeof t);
    for (k = 0; k < count && !result; k++)
        result = init_training(env, &t[k], m, txt, o, w, &plans[k], 0);
    for (; steps < REHEARSAL_STEPS && !result && !interrupted; steps++) {
        for (k = 0; k < count && !result; k++) {
            uint64_t *row = samples + ((size_t)k * REHEARSAL_STEPS + steps) * slots;
            t[k].node_ns = row;
            result = train_step(&t[k]);
            row[slots - 1] = t[k].step_ns - t[k].compute_ns;
        }
    }
    for (k = 0; k < count && !result && !interrupted; k++) {
        for (i = 0; i < slots; i++) {
            for (steps = WARM_STEPS; steps < REHEARSAL_STEPS; steps++)
                column[steps] = samples[((size_t)k * REHEARSAL_STEPS + steps) * slots + i];
            times[(size_t)k * slots + i] =
                find_quantile(column + WARM_STEPS, REHEARSAL_STEPS - WARM_STEPS, 1, 4);
        }
    }
    for (k = 0; k < count; k++) free_training(env, &t[k]);
    free(samples);
    return result;
}

// -- rounds: all trainings, a step each --

enum { ROW_MAX = 4, LOSS_STEPS = 10 };

typedef struct program {
    tl_env   env;
    options  o;
    text     t;
    weights  w;
    model    m;
    tl_plan  keep_all;            // with measured costs: what ratios refer to
    uint64_t *node_ns;            // [node_count][2] measured: the costs of the graph
    uint64_t outside_ns;          // of a step, beside the nodes
    uint64_t keep_all_ns;         // of a step that keeps everything; 0 = not measured
    training rows[ROW_MAX];       // the first one keeps everything, but with --budget
    int32_t  row_count;
    uint64_t rounds;              // finished
    float   *losses;              // [steps] of the first row
    tl_trace *trace;              // of the last round
    uint64_t start_ns, shown_ns;  // of the program; of the last progress line
    int      terminal;            // 1 = stderr is one
} program;

static int fail_result(const program *p, const char *what, tl_result result) {
    return fail(result == TL_ERROR_MISMATCH ? CODE_MISMATCH : CODE_INPUT, "%s: %s", what,
                result == TL_ERROR_NO_MEMORY && p->env.error.code != result ? "no memory"
                                                                            : p->env.error.text);
}

static void show_progress(program *p, const char *what, uint64_t step, float loss, double left_s) {
    uint64_t now = wall_ns();
    if (now - p->shown_ns < (p->terminal ? 100000000u : 5000000000u)) return;
    p->shown_ns = now;
    fprintf(stderr, "%s%s: step %llu, loss %.3f, %.0f s left%s", p->terminal ? "\r" : "", what,
            (unsigned long long)step, (double)loss, left_s, p->terminal ? "   " : "\n");
    fflush(stderr);
}

static void clear_progress(const program *p) {
    if (p->terminal) fprintf(stderr, "\r%60s\r", "");
}

static void keep_fastest(training *t) {
    size_t count = (size_t)t->plan.step_count;
    if (t->fastest_ns && t->step_ns >= t->fastest_ns) return;
    t->fastest_ns = t->step_ns;
    memcpy(t->fastest_live, t->live, count * sizeof *t->live);
    memcpy(t->fastest_ends, t->ends, count * sizeof *t->ends);
}

// Take turns until the steps are done or Ctrl-C; ends with an unfinished round left out.
static int train_rounds(program *p) {
    uint64_t start = wall_ns();
    while (p->rounds < p->o.steps && !interrupted) {
        int32_t k;
        double done_s;
        tl_reset_trace(p->trace);
        for (k = 0; k < p->row_count; k++) {
            training *t = &p->rows[k], *first = &p->rows[0];
            tl_result result = train_step(t);
            if (result) {
                clear_progress(p);
                return fail_result(p, t->label, result);
            }
            keep_fastest(t);
            t->rounds_ns[p->rounds] = t->step_ns;
            if (memcmp(t->grads, first->grads, (size_t)p->m.param_count * sizeof(float)) != 0 ||
                bits_of(t->loss) != bits_of(first->loss))
                t->equal = 0;
        }
        p->losses[p->rounds++] = p->rows[0].loss;
        done_s = (double)(wall_ns() - start) * 1e-9;
        show_progress(p, "comparing", p->rounds, p->rows[0].loss,
                      done_s / (double)p->rounds * (double)(p->o.steps - p->rounds));
    }
    clear_progress(p);
    return CODE_OK;
}

// The median over the rounds of how much longer a row took than the first one.
static double find_ratio(const program *p, const training *t) {
    uint64_t *values = (uint64_t *)malloc((size_t)p->rounds * sizeof *values), i;
    double ratio;
    if (!values) return 0.0;
    for (i = 0; i < p->rounds; i++)
        values[i] = (uint64_t)(1e6 * (double)t->rounds_ns[i] / (double)p->rows[0].rounds_ns[i]);
    ratio = (double)find_quantile(values, (size_t)p->rounds, 1, 2) * 1e-6;
    free(values);
    return ratio;
}

// -- table --

static void print_header(const program *p) {
    const dims *s = &p->m.size;
    uint64_t base = base_bytes_of(&p->m);
    printf("text       %s: %zu bytes, %d different ones\n", p->t.path, p->t.length, p->t.V);
    printf("network    %d layers, %d channels, %d heads, context %d, batch %d x %d: %llu weights\n",
           (int)s->L, (int)s->C, (int)(s->C / HEAD_SIZE), (int)s->T, (int)p->o.micro_batches,
           (int)s->B, (unsigned long long)p->m.param_count);
    printf("base       %llu bytes (%.2f MiB) beside every row: weights 1/4, gradients 1/4,"
           " AdamW 1/2\n", (unsigned long long)base, mib(base));
    fflush(stdout);
}

static uint64_t count_losses(const program *p) {  // that the printed one is the mean of
    return p->rounds < LOSS_STEPS ? p->rounds : (uint64_t)LOSS_STEPS;
}

static float mean_loss(const program *p) {
    uint64_t i, count = count_losses(p);
    float sum = 0.0f;
    for (i = 0; i < count; i++) sum += p->losses[p->rounds - 1 - i];
    return sum / (float)count;
}

static void print_row(const program *p, const training *t, float loss) {
    char budget[24] = "-", recomputed[24];
    int is_reference = t == &p->rows[0];
    if (t->budget) snprintf(budget, sizeof budget, "%llu", (unsigned long long)t->budget);
    snprintf(recomputed, sizeof recomputed, "%d of %d", (int)t->report.recompute_count,
             (int)(t->report.forward_count - t->report.recompute_count));
    printf("%-9s %10s %13llu %14llu %11s", t->label, budget,
           (unsigned long long)t->report.planned_peak_bytes,
           (unsigned long long)t->report.measured_peak_bytes, recomputed);
    if (p->row_count == 1) printf("  %8s", "-");
    else printf("  %8.3f", t->measured_ratio);
    printf("  %9.3f  %.4f  %s\n", t->predicted_ratio, (double)loss,
           is_reference ? "-" : t->equal ? "yes" : "NO");
}

// Returns what the rows say: 0, or 3 where a gradient or a peak is not as it must be.
static int print_table(program *p) {
    int32_t k;
    int code = CODE_OK;
    if (!p->rounds) return CODE_OK;
    printf("\nactivations of one step, in bytes                    forwards   step time / keep all"
           "          gradients\n");
    printf("row           budget  planned peak  measured peak  made again  measured  predicted"
           "    loss  equal\n");
    for (k = 0; k < p->row_count; k++) {
        training *t = &p->rows[k];
        t->measured_ratio = find_ratio(p, t);
        print_row(p, t, mean_loss(p));
        if (!t->equal || t->report.planned_peak_bytes != t->report.measured_peak_bytes)
            code = CODE_MISMATCH;
    }
    printf("%llu steps each%s; times: processor time, medians; loss: mean of the last %d steps;\n"
           "equal: every parameter gradient and loss of every step, bit for bit\n",
           (unsigned long long)p->rounds, interrupted ? " (interrupted)" : "",
           (int)count_losses(p));
    fflush(stdout);
    return code;
}

// -- pictures --

static int join_path(char *path, size_t size, const char *directory, const char *name) {
    return snprintf(path, size, "%s/%s", directory, name) < (int)size;
}

// Write one file of --out through a sink; trace or picture, whichever is asked for.
static int write_picture(program *p, const char *name, int is_trace) {
    tl_memory_curve curves[ROW_MAX];
    char labels[ROW_MAX][48], path[460];
    tl_svg_style style;
    tl_file_sink file;
    tl_sink sink;
    tl_result result;
    int32_t k;
    if (!join_path(path, sizeof path, p->o.out, name))
        return fail(CODE_INPUT, "%s: the name is too long", name);
    memset(curves, 0, sizeof curves);
    memset(&style, 0, sizeof style);
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        snprintf(labels[k], sizeof labels[k], "%s, %.2f MiB", t->label,
                 mib(t->report.measured_peak_bytes));
        curves[k].label = labels[k];
        curves[k].live_bytes = t->fastest_live;
        curves[k].times = t->fastest_ends;
        curves[k].count = t->plan.step_count;
    }
    style.title = "Activations over one training step, measured";
    style.time_label = "ms";
    result = tl_init_file_sink(&p->env, path, &file, &sink);
    if (!result) {
        result = is_trace ? tl_write_trace_json(&p->env, p->trace, &p->m.graph, sink)
                          : tl_write_memory_svg(&p->env, curves, p->row_count, &style, sink);
        result = tl_finish_file_sink(&p->env, &file, result);
    }
    return result ? fail(CODE_INPUT, "%s: not written: %s", path, p->env.error.text) : CODE_OK;
}

static int write_pictures(program *p) {
    int svg, trace;
    if (!p->rounds) return CODE_OK;
    svg = write_picture(p, "memory.svg", 0);
    trace = write_picture(p, "trace.json", 1);
    if (!svg && !trace) printf("wrote %s/memory.svg and %s/trace.json\n", p->o.out, p->o.out);
    return svg ? svg : trace;
}

// -- sample: train on, and let the network write --

// The last row goes on alone until --seconds of the whole program are over.
static int train_on(program *p) {
    training *t = &p->rows[p->row_count - 1];
    uint64_t end = p->start_ns + p->o.seconds * 1000000000u, first = t->step, now;
    float mean = t->loss;
    t->trace = NULL;
    while ((now = wall_ns()) < end && !interrupted) {
        tl_result result = train_step(t);
        if (result) {
            clear_progress(p);
            return fail_result(p, t->label, result);
        }
        mean += 0.05f * (t->loss - mean);
        show_progress(p, "training on", t->step, mean, (double)(end - now) * 1e-9);
    }
    clear_progress(p);
    if (t->step > first)
        printf("trained on within %s to step %llu: loss %.3f\n", t->label,
               (unsigned long long)t->step, (double)mean);
    return CODE_OK;
}

// A run of the same network for one sequence, forward only.
typedef struct sampler {
    model      m;
    net        network;
    tl_plan    plan;
    tl_backend backend;
    tl_run    *run;
    int32_t   *window;            // [T]
    float     *logits;            // [T][V]
} sampler;

static tl_result init_sampler(program *p, sampler *s, const float *params) {
    tl_kernel kernels[KERNEL_COUNT];
    tl_cpu_backend_desc cpu;
    tl_run_desc desc;
    tl_result result;
    memset(s, 0, sizeof *s);
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    s->m.size = p->m.size;
    s->m.size.B = 1;
    result = build_model(&p->env, &s->m);
    s->network.m = &s->m;
    s->network.params = params;
    s->window = (int32_t *)calloc((size_t)s->m.size.T, sizeof *s->window);
    s->logits = (float *)calloc((size_t)(s->m.size.T * s->m.size.V), sizeof *s->logits);
    if (!result && (!s->window || !s->logits)) result = TL_ERROR_NO_MEMORY;
    if (!result) result = tl_plan_keep_all(&p->env, &s->m.graph, 1, &s->plan);
    if (!result) result = tl_init_cpu_backend(&p->env, &cpu, &s->backend);
    set_kernels(kernels, &s->network);
    desc.graph = &s->m.graph;
    desc.backend = &s->backend;
    desc.kernels = kernels;
    desc.kernel_count = KERNEL_COUNT;
    desc.plan = &s->plan;
    return result ? result : tl_init_run(&p->env, &desc, &s->run);
}

static void free_sampler(program *p, sampler *s) {
    tl_free_run(s->run);
    tl_free_cpu_backend(&p->env, &s->backend);
    tl_free_plan(&p->env, &s->plan);
    free_model(&p->env, &s->m);
    free(s->window);
    free(s->logits);
}

// Write `count` characters, each drawn from what the network says after those before it.
static tl_result sample_text(program *p, sampler *s, uint64_t count) {
    const dims *d = &s->m.size;
    tl_tensor tokens = { 0, 0 }, logits = { 0, 0 };
    const int newline = '\n';
    uint64_t i, known = 1;  // tokens in the window; later ones do not matter: attention is causal
    tl_result result = TL_OK;
    tokens.node = s->m.tokens;
    logits.node = s->m.logits;
    s->window[0] = p->t.is_used[newline] ? p->t.id_of[newline] : p->t.ids[0];
    printf("    | ");
    for (i = 0; i < count && !result; i++) {
        int32_t token;
        int byte;
        result = tl_write_tensor(s->run, tokens, s->window, d->T * sizeof *s->window);
        if (!result) result = tl_run_plan(s->run);
        if (!result)
            result = tl_read_tensor(s->run, logits, s->logits, d->T * d->V * sizeof *s->logits);
        if (result) break;
        token = nn_sample(s->logits + (known - 1) * d->V, (size_t)d->V, 0.6f,
                          nn_uniform(p->o.seed ^ 0x73616D70u, i));
        if (known < d->T) known++;
        else memmove(s->window, s->window + 1, (size_t)(d->T - 1) * sizeof *s->window);
        s->window[known - 1] = token;
        byte = p->t.byte_of[token];
        if (byte == newline) printf("\n    | ");
        else putchar(byte < 32 || byte == 127 ? ' ' : byte);
    }
    printf("\n");
    return result;
}

static int print_sample(program *p) {
    sampler s;
    tl_result result;
    if (!p->o.sample) return CODE_OK;
    printf("\nwhat the network writes now:\n\n");
    result = init_sampler(p, &s, p->rows[p->row_count - 1].floats);
    if (!result) result = sample_text(p, &s, p->o.sample);
    free_sampler(p, &s);
    return result ? fail_result(p, "sample", result) : CODE_OK;
}

// -- options --

static const char *const usage =
    "01_train_text: train a character-level transformer within a fixed number of bytes\n"
    "\n"
    "  --text FILE        train on this text (the library's own header)\n"
    "  --budget BYTES     one run within so many bytes, weights and optimizer included: 12MiB,\n"
    "                     640KiB, 1000000; or 40%: the base and 40 % of what keep all adds to it\n"
    "  --steps N          steps of every row of the table (100), and nothing after it\n"
    "  --seconds N        then the last row trains on until the program has run so long (30)\n"
    "  --layers N --width N --context N --batch N    size of the network (6 48 32 4)\n"
    "  --micro-batches N  batches whose gradients are summed up in a step (1)\n"
    "  --seed N           of weights, batches and dropout (1)\n"
    "  --save FILE        write the weights and the optimizer's state at the end\n"
    "  --load FILE        go on with them; sizes and seed are the file's\n"
    "  --sample N         characters to write at the end (600)\n"
    "  --out DIR          where memory.svg and trace.json go (build)\n"
    "  --checked          poison dead bytes, guard blocks, give kernels only what is theirs\n"
    "  --quick            a tiny network for a few steps\n"
    "  --help             this list\n"
    "\n"
    "exit code: 0 ok, 1 bad input or a file that could not be written, 2 the budget is below the\n"
    "least possible, 3 measured differs from planned or gradients are not equal\n";

// Read a whole number of an option between two bounds.
static int parse_number(const char *name, const char *value, uint64_t least, uint64_t most,
                        uint64_t *number) {
    const char *at = value;
    *number = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*number > (UINT64_MAX - digit) / 10) break;
        *number = *number * 10 + digit;
    }
    if (at != value && !*at && *number >= least && *number <= most) return CODE_OK;
    return fail(CODE_INPUT, "%s %s: must be a whole number from %llu to %llu", name, value,
                (unsigned long long)least, (unsigned long long)most);
}

typedef struct number_option {
    const char *name;
    uint64_t    least, most;
    uint64_t   *value;
    int        *given;
} number_option;

// 1 = it was an option with a number; *code says whether the number was right.
static int parse_number_option(options *o, const char *name, const char *value, int *code) {
    const number_option table[] = {
        { "--steps", 1, 1000000, &o->steps, &o->given_steps },
        { "--seconds", 0, 1000000, &o->seconds, &o->given_seconds },
        { "--layers", 1, 64, &o->layers, &o->given_size },
        { "--width", HEAD_SIZE, 1024, &o->width, &o->given_size },
        { "--context", 2, 1024, &o->context, &o->given_size },
        { "--batch", 1, 1024, &o->batch, NULL },
        { "--micro-batches", 1, 1024, &o->micro_batches, NULL },
        { "--seed", 0, UINT64_MAX, &o->seed, &o->given_seed },
        { "--sample", 0, 1000000, &o->sample, NULL },
    };
    size_t i;
    for (i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name) != 0) continue;
        if (table[i].given) *table[i].given = 1;
        *code = value ? parse_number(name, value, table[i].least, table[i].most, table[i].value)
                      : fail(CODE_INPUT, "%s: a number must follow", name);
        return 1;
    }
    return 0;
}

static int parse_text_option(options *o, const char *name, const char *value, int *code) {
    static const char *const names[] = { "--text", "--load", "--save", "--out", "--budget" };
    const char **values[5];
    size_t i;
    values[0] = &o->text;
    values[1] = &o->load;
    values[2] = &o->save;
    values[3] = &o->out;
    values[4] = &o->budget;
    for (i = 0; i < 5; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *values[i] = value;
        *code = value && *value ? CODE_OK : fail(CODE_INPUT, "%s: a value must follow", name);
        return 1;
    }
    return 0;
}

static void set_defaults(options *o, int quick) {
    memset(o, 0, sizeof *o);
    o->out = "build";
    o->layers = 6;
    o->width = quick ? 16 : 48;
    o->context = quick ? 16 : 32;
    o->batch = quick ? 2 : 4;
    o->micro_batches = 1;
    o->seed = 1;
    o->steps = quick ? 5 : 100;
    o->seconds = quick ? 0 : 30;
    o->sample = quick ? 60 : 600;
}

// *done is 1 after --help.
static int parse_options(options *o, int count, char **argv, int *done) {
    int i, quick = 0, code = CODE_OK;
    *done = 0;
    for (i = 1; i < count; i++) quick |= strcmp(argv[i], "--quick") == 0;
    set_defaults(o, quick);
    for (i = 1; i < count && !code; i++) {
        const char *name = argv[i], *value = i + 1 < count ? argv[i + 1] : NULL;
        if (strcmp(name, "--quick") == 0) continue;
        if (strcmp(name, "--checked") == 0) {
            o->checked = 1;
        } else if (strcmp(name, "--help") == 0) {
            *done = 1;
            fputs(usage, stdout);
            return CODE_OK;
        } else if (parse_number_option(o, name, value, &code) ||
                   parse_text_option(o, name, value, &code)) {
            i++;
        } else {
            return fail(CODE_INPUT, "%s: unknown option; --help lists them", name);
        }
    }
    if (code) return code;
    if (o->width % HEAD_SIZE)
        return fail(CODE_INPUT, "--width %d: must be a multiple of %d", (int)o->width, HEAD_SIZE);
    if (o->given_steps && !o->given_seconds) o->seconds = 0;
    return CODE_OK;
}

// Bytes for activations of --budget: what is left of it beside the base; 0 with code 0 cannot be.
static int parse_budget(const char *value, uint64_t base, uint64_t keep_all, uint64_t *bytes) {
    static const char *const units[] = { "", "B", "KiB", "MiB", "GiB", "%" };
    static const double factors[] = { 1.0, 1.0, 1024.0, 1048576.0, 1073741824.0, 0.0 };
    char *end;
    double number = strtod(value, &end);
    int i;
    *bytes = 0;
    for (i = 0; i < 6; i++) {
        double total;
        if (end == value || strcmp(end, units[i]) != 0) continue;
        total = i == 5 ? (double)base + number / 100.0 * (double)keep_all : number * factors[i];
        if (!(total > 0.0 && total < 1e15)) break;
        *bytes = (uint64_t)total > base ? (uint64_t)total - base : 0;
        return CODE_OK;
    }
    return fail(CODE_INPUT, "--budget %s: must be bytes like 12MiB, 640KiB or 1000000, or 40%%",
                value);
}

// -- main --

// Take the sizes of loaded weights; refuse others.
static int adopt_weights(program *p) {
    const weights *w = &p->w;
    options *o = &p->o;
    if (!w->bytes) return CODE_OK;
    if (o->given_size &&
        (o->layers != w->size.L || o->width != w->size.C || o->context != w->size.T))
        return fail(CODE_INPUT, "weights %s: are for --layers %llu --width %llu --context %llu",
                    o->load, (unsigned long long)w->size.L, (unsigned long long)w->size.C,
                    (unsigned long long)w->size.T);
    if (w->size.L < 1 || w->size.L > 64 || w->size.C < HEAD_SIZE || w->size.C > 1024 ||
        w->size.C % HEAD_SIZE || w->size.T < 2 || w->size.T > 1024 || w->steps > UINT32_MAX)
        return fail(CODE_INPUT, "weights %s: sizes out of range", o->load);
    o->layers = w->size.L;
    o->width = w->size.C;
    o->context = w->size.T;
    if (!o->given_seed) o->seed = w->seed;
    return CODE_OK;
}

// Measure the nodes and build the graph again with what they take.
//
// Two networks rehearse: the first keeps everything, the last one little. The same kernel is
// quicker in the second, whose smaller memory stays in the cache (by 5 % here and there), so
// its nanoseconds are the costs by which plans are made, while those of the first make up the step
// that all ratios refer to. Under --budget there is only the second.
static int prepare_costs(program *p, tl_plan *plans, int count) {
    size_t slots = 2 * (size_t)p->m.graph.node_count + 1, i;
    uint64_t *times = (uint64_t *)calloc(REHEARSAL_MAX * slots, sizeof *times), *last;
    tl_result result = times ? TL_OK : TL_ERROR_NO_MEMORY;
    p->node_ns = (uint64_t *)calloc(slots, sizeof *p->node_ns);
    if (!p->node_ns) result = TL_ERROR_NO_MEMORY;
    if (!result) result = rehearse(&p->env, &p->m, &p->t, &p->o, &p->w, plans, count, times);
    if (!result) {
        last = times + (size_t)(count - 1) * slots;
        for (i = 0; i < slots; i++) p->node_ns[i] = last[i] / p->o.micro_batches;
        p->outside_ns = last[slots - 1];
        for (i = 0; i < slots && count > 1; i++) p->keep_all_ns += times[i];
    }
    free(times);
    if (result) return fail_result(p, "rehearsal", result);
    if (interrupted) return fail(CODE_INPUT, "interrupted before the first step");
    free_model(&p->env, &p->m);
    tl_free_plan(&p->env, &p->keep_all);
    p->m.node_ns = p->node_ns;
    result = build_model(&p->env, &p->m);
    if (!result) result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &p->keep_all);
    return result ? fail_result(p, "graph", result) : CODE_OK;
}

static int fail_infeasible(const program *p, const search *s) {
    const tl_node *node = &p->m.graph.nodes[s->least_node];
    uint64_t base = base_bytes_of(&p->m), least = base + s->least_bytes;
    char layer[32] = "";
    if (node->layer >= 0) snprintf(layer, sizeof layer, " of layer %d", (int)node->layer);
    return fail(CODE_INFEASIBLE,
                "--budget %s: the least that works is %llu bytes (%.2f MiB), set by node %d (%s)%s:"
                " base %llu and activations %llu",
                p->o.budget, (unsigned long long)least, ceil(mib(least) * 100.0) / 100.0,
                (int)s->least_node, tl_name_node(&p->m.graph, s->least_node), layer,
                (unsigned long long)base, (unsigned long long)s->least_bytes);
}

// Add a row; budget 0 = keep all.
static int add_row(program *p, const char *label, tl_plan *plan, uint64_t budget) {
    training *t = &p->rows[p->row_count++];
    uint64_t repeat = p->o.micro_batches, keep_all_ns = p->keep_all_ns;
    double predicted = (double)(repeat * plan->cost + p->outside_ns);
    tl_result result = init_training(&p->env, t, &p->m, &p->t, &p->o, &p->w, plan, budget);
    snprintf(t->label, sizeof t->label, "%s", label);
    if (!keep_all_ns) keep_all_ns = repeat * p->keep_all.cost + p->outside_ns;
    t->predicted_ratio = budget ? predicted / (double)keep_all_ns : 1.0;
    return result ? fail_result(p, label, result) : CODE_OK;
}

// The rows of the table: keep all, 60 %, 40 % and 25 % of its activations; or the least possible,
// where that is more.
static int add_rows(program *p) {
    static const unsigned percents[] = { 60, 40, 25 };
    tl_plan plan;
    tl_result result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &plan);
    int code = result ? fail_result(p, "keep all", result) : add_row(p, "keep all", &plan, 0);
    int k;
    for (k = 0; k < 3 && !code; k++) {
        uint64_t budget = p->keep_all.peak_bytes / 100 * percents[k];
        char label[16];
        search s;
        result = search_plan(&p->env, &p->m, &p->keep_all, budget, &s);
        snprintf(label, sizeof label, "%u %%", percents[k]);
        if (!result && !s.best.steps) {
            budget = s.least_bytes;
            free_search(&p->env, &s);
            result = search_plan(&p->env, &p->m, &p->keep_all, budget, &s);
            snprintf(label, sizeof label, "least %u%%",
                     (unsigned)(budget * 100 / p->keep_all.peak_bytes));
        }
        code = result ? fail_result(p, label, result) : add_row(p, label, &s.best, budget);
        free_search(&p->env, &s);
    }
    return code;
}

// One run within --budget, and never a byte more: not in the rehearsal either.
static int add_budget_row(program *p) {
    uint64_t bytes = 0;
    search s;
    tl_result result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &p->keep_all);
    int pass, code = CODE_OK;
    if (result) return fail_result(p, "keep all", result);
    code = parse_budget(p->o.budget, base_bytes_of(&p->m), p->keep_all.peak_bytes, &bytes);
    for (pass = 0; pass < 2 && !code; pass++) {  // first by estimated costs, then by measured ones
        result = search_plan(&p->env, &p->m, &p->keep_all, bytes, &s);
        if (result) code = fail_result(p, "budget", result);
        else if (!s.best.steps) code = fail_infeasible(p, &s);
        else if (pass == 1) code = add_row(p, "budget", &s.best, bytes);
        else code = prepare_costs(p, &s.best, 1);
        free_search(&p->env, &s);
    }
    return code;
}

static int prepare(program *p, const char *program_path) {
    options *o = &p->o;
    int32_t k, events = 0;
    tl_plan plans[2];
    tl_result result;
    int code = load_weights(o, &p->w);
    if (!code) code = adopt_weights(p);
    if (!code) code = read_text(o, program_path, p->w.bytes ? p->w.vocabulary : NULL, &p->t);
    if (code) return code;
    p->m.size.L = o->layers;
    p->m.size.C = o->width;
    p->m.size.T = o->context;
    p->m.size.B = o->batch;
    p->m.size.V = (uint64_t)p->t.V;
    p->m.trains = 1;
    p->m.dropout = 0.05f;
    result = build_model(&p->env, &p->m);
    if (result) return fail_result(p, "graph", result);
    if (p->w.bytes && (p->w.size.V != p->m.size.V || p->w.count != p->m.param_count))
        return fail(CODE_INPUT, "weights %s: damaged, they do not fit their own sizes", o->load);
    print_header(p);
    if (o->budget) {
        code = add_budget_row(p);
    } else {
        tl_checkpoint_config config = tl_checkpoint_uniform(1);
        result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &plans[0]);
        if (!result) result = tl_plan_checkpoints(&p->env, &p->m.graph, &config, &plans[1]);
        code = result ? fail_result(p, "plan", result) : prepare_costs(p, plans, 2);
        if (!code) code = add_rows(p);
    }
    if (code) return code;
    for (k = 0; k < p->row_count; k++)
        events += p->rows[k].plan.step_count * (int32_t)o->micro_batches;
    p->losses = (float *)calloc((size_t)o->steps, sizeof *p->losses);
    result = p->losses ? tl_init_trace(&p->env, events, &p->trace) : TL_ERROR_NO_MEMORY;
    for (k = 0; k < p->row_count; k++) p->rows[k].trace = p->trace;
    return result ? fail_result(p, "trace", result) : CODE_OK;
}

// Make a directory and those above it; what cannot be made shows when a file is written.
static void make_directory(const char *path) {
    char part[480];
    size_t i, length = strlen(path);
    if (length >= sizeof part) return;
    for (i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i]) continue;
        memcpy(part, path, i);
        part[i] = 0;
        (void)mkdir(part, 0777);
    }
}

static int run(program *p, const char *program_path) {
    int code = prepare(p, program_path), table, pictures, saved;
    const training *last = &p->rows[p->row_count ? p->row_count - 1 : 0];
    if (code) return code;
    code = train_rounds(p);
    table = print_table(p);
    make_directory(p->o.out);
    pictures = write_pictures(p);
    if (!code) code = table;
    if (!code) code = train_on(p);
    saved = save_weights(&p->o, &p->m, &p->t, last->step, p->o.seed, last->floats);
    if (!code && !interrupted) code = print_sample(p);
    if (!code) code = pictures ? pictures : saved;
    return code;
}

int main(int count, char **argv) {
    static program p;  // zero
    int done, k, code;
    p.start_ns = p.shown_ns = wall_ns();
    p.terminal = isatty(STDERR_FILENO);
    code = parse_options(&p.o, count, argv, &done);
    if (code || done) return code;
    signal(SIGINT, on_interrupt);
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN);  // a file over the limit is an error of a write, not the end
#endif
    code = run(&p, argv[0]);
    for (k = 0; k < p.row_count; k++) free_training(&p.env, &p.rows[k]);
    tl_free_trace(p.trace);
    tl_free_plan(&p.env, &p.keep_all);
    free_model(&p.env, &p.m);
    free(p.losses);
    free(p.node_ns);
    free(p.t.ids);
    free(p.w.bytes);
    if (fflush(stdout) != 0 || ferror(stdout))
        code = code ? code : fail(CODE_INPUT, "standard output: not all could be written");
    return code;
}
