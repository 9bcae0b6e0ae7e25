// 02_vulkan_train.c -- the training of 01 on a Vulkan device, within a fixed number of bytes
//
// You learn: how the same graph, plans and executor run on a GPU. The kernels are compute shaders
// (vk_nn.h), activations live in ranges of the Vulkan backend, weights, gradients and the optimizer
// in blocks beside them. It prints what was planned, what the backend counted, what it cost, and
// whether the gradients are equal to the last bit; it leaves build/memory.svg (device memory over
// one step) and build/trace.json (every step, timed by the device: open it in ui.perfetto.dev).
//
// check: --quick --out build/check
//
//     cc -O3 -std=c99 -o build/02_vulkan_train examples/02_vulkan_train.c -lm -ldl
//
// HOW IT WORKS   The same training runs six times from one seed, a step each in turn: with all kept;
// within 60, 40 and 25 % of the peak of that, where dropped activations are computed again; within
// 40 %, where they are copied to the host and back instead; and within 60 %, where they are
// compressed to f16. After every turn the gradients of each, all of them, are compared with those of
// the first, byte by byte. Only f16 may differ, as it rounds: there the difference is printed.
//
// CONTENTS       (search for "// -- ")
//                model    text    plans    moves    training    trace    rounds    table
//                pictures    devices    options    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, isatty, mkdir

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
#define TL_VK_OPEN_LOADER
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#include "nn.h"
#include "vk_nn.h"

enum { CODE_OK = 0, CODE_INPUT = 1, CODE_INFEASIBLE = 2, CODE_MISMATCH = 3 };

// Print one sentence; returns the code, for `return fail(...)`.
static int fail(int code, const char *format, ...) {
    va_list list;
    fflush(stdout);
    fprintf(stderr, "02_vulkan_train: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    return code;
}

static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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

static double mib(uint64_t bytes) { return (double)bytes / 1048576.0; }

// -- model: the network as a table, then as a graph --
//
// B = sequences in a batch, T = tokens of context, C = channels, V = vocabulary, L = layers.

typedef struct layer_row {
    const char *name, *op;
    const char *unit;             // checkpoint configs act on attention and ffn
    const char *needs;            // what its backward reads
    int32_t     from, from2;      // rows it reads; BEFORE = the layer before, NOTHING = none
    uint32_t    in_width, width;  // in C
    int32_t     is_choice;        // 1 = some backward needs the result or what was saved with it
} layer_row;

enum { BEFORE = -1, NOTHING = -2, ROW_COUNT = 12, CHOICE_COUNT = 9 };

static const layer_row layer_rows[ROW_COUNT] = {
    { "norm1",  "norm",      "attention", "in",   BEFORE, NOTHING, 1, 1, 1 },  //  0
    { "qkv",    "linear",    "attention", "in",   0,      NOTHING, 1, 3, 1 },  //  1
    { "attend", "attention", "attention", "in",   1,      NOTHING, 3, 1, 1 },  //  2
    { "drop1",  "dropout",   "attention", "none", 2,      NOTHING, 1, 1, 1 },  //  3
    { "proj",   "linear",    "attention", "in",   3,      NOTHING, 1, 1, 0 },  //  4
    { "add1",   "add",       "attention", "none", BEFORE, 4,       1, 1, 1 },  //  5
    { "norm2",  "norm",      "ffn",       "in",   5,      NOTHING, 1, 1, 1 },  //  6
    { "fc1",    "linear",    "ffn",       "in",   6,      NOTHING, 1, 4, 1 },  //  7
    { "gelu",   "gelu",      "ffn",       "in",   7,      NOTHING, 4, 4, 1 },  //  8
    { "fc2",    "linear",    "ffn",       "in",   8,      NOTHING, 4, 1, 0 },  //  9
    { "drop2",  "dropout",   "ffn",       "none", 9,      NOTHING, 1, 1, 0 },  // 10
    { "add2",   "add",       "ffn",       "none", 5,      10,      1, 1, 1 },  // 11
};

enum { PARAM_ALIGN = 64 };  // floats: 256 bytes, the most that a device asks for in an offset

typedef struct param_info {
    uint64_t first, count;        // floats; first is a multiple of PARAM_ALIGN
    float    mean, deviation;     // of what it starts with
    int      decays;              // 1 = with weight decay: matrices, but no biases and norms
} param_info;

typedef struct node_info {
    uint32_t in_width, width;     // floats per token
    int32_t  weight, bias;        // index of a param; -1 = none
} node_info;

typedef struct model {
    uint32_t    L, C, T, B, V;
    tl_graph    graph;            // every node has one output: node id = tensor index
    node_info  *nodes;            // [node_count]
    param_info *params;           // [param_kinds]
    int32_t     param_kinds;
    uint64_t    param_count;      // floats, all together, with the gaps between them
    int32_t     tokens, targets, first_layer, loss;  // node ids
} model;

static int32_t add_param(model *m, uint64_t count, float mean, float deviation, int decays) {
    param_info *p = &m->params[m->param_kinds];
    p->first = m->param_count;
    p->count = count;
    p->mean = mean;
    p->deviation = deviation;
    p->decays = decays;
    m->param_count += (count + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
    return m->param_kinds++;
}

// The parameters of a node, its cost in FLOP, roughly, and the bytes it needs besides its output.
static void size_node(model *m, node_info *n, tl_node_desc *desc) {
    const char *op = desc->op;
    uint64_t before = m->param_count, R = (uint64_t)m->B * m->T, size = R * n->width;
    float residual = 1.0f / sqrtf(2.0f * (float)m->L);  // 2 L branches add up to a variance of 1
    if (strcmp(op, "embed") == 0) {
        n->weight = add_param(m, (uint64_t)m->V * n->width, 0.0f, 0.3f, 0);
        n->bias = add_param(m, (uint64_t)m->T * n->width, 0.0f, 0.1f, 0);
        desc->fwd_cost = size;
    } else if (strcmp(op, "norm") == 0) {
        n->weight = add_param(m, n->width, 1.0f, 0.0f, 0);
        n->bias = add_param(m, n->width, 0.0f, 0.0f, 0);
        desc->saved_bytes = vk_nn_norm_saved_bytes((size_t)R);
        desc->fwd_cost = size * 8;
    } else if (strcmp(op, "linear") == 0) {
        n->weight = add_param(m, (uint64_t)n->in_width * n->width, 0.0f,
                              (n->width == m->C ? residual : 1.0f) / sqrtf((float)n->in_width), 1);
        n->bias = add_param(m, n->width, 0.0f, 0.0f, 0);
        desc->fwd_cost = size * n->in_width * 2;
    } else if (strcmp(op, "attention") == 0) {
        desc->saved_bytes = vk_nn_attention_saved_bytes(m->B, m->C / VK_NN_HEAD, m->T);
        desc->bwork_bytes = vk_nn_attention_scratch_bytes(m->B, m->C / VK_NN_HEAD, m->T);
        desc->fwd_cost = size * m->T * 4;
    } else if (strcmp(op, "loss") == 0) {
        desc->fwork_bytes = vk_nn_cross_entropy_scratch_bytes((size_t)R);
        desc->fwd_cost = R * n->in_width * 20;
    } else if (strcmp(op, "input") != 0) {
        desc->fwd_cost = strcmp(op, "add") == 0 ? size : size * 20;
    }
    desc->bwd_cost = 2 * desc->fwd_cost;
    desc->param_bytes = (m->param_count - before) * sizeof(float);
}

static tl_node_desc describe(const char *name, const char *op, const char *needs) {
    tl_node_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.op = op;
    desc.needs = needs;
    return desc;
}

// Add a node that reads two others (below 0: none); *id is the new one.
static tl_result add_op(tl_env *env, model *m, tl_node_desc desc, int32_t from, int32_t from2,
                        uint32_t in_width, uint32_t width, int32_t *id) {
    int is_loss = strcmp(desc.op, "loss") == 0;
    uint64_t bytes = (is_loss ? 1 : (uint64_t)m->B * m->T * width) * sizeof(float);
    node_info *n = &m->nodes[m->graph.node_count];
    tl_tensor inputs[2];
    inputs[0].node = from;
    inputs[1].node = from2;
    inputs[0].output = inputs[1].output = 0;
    n->in_width = in_width;
    n->width = width;
    n->weight = n->bias = -1;
    size_node(m, n, &desc);
    desc.inputs = inputs;
    desc.input_count = (from >= 0) + (from2 >= 0);
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.keep = is_loss;
    return tl_add_node(env, &m->graph, &desc, id);
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
        char name[32];
        tl_node_desc desc = describe(name, row->op, row->needs);
        snprintf(name, sizeof name, "layer%d.%s", (int)layer, row->name);
        desc.unit = row->unit;
        desc.layer = layer + 1;
        result =
            add_op(env, m, desc, from, from2, row->in_width * m->C, row->width * m->C, &ids[i]);
    }
    *last = ids[ROW_COUNT - 1];
    return result;
}

static void free_model(tl_env *env, model *m) {
    tl_free_graph(env, &m->graph);
    free(m->nodes);
    free(m->params);
}

// Build the graph of L, C, T, B and V; release with free_model.
static tl_result build_model(tl_env *env, model *m) {
    size_t node_max = (size_t)m->L * ROW_COUNT + 6;
    int32_t last = 0, layer;
    tl_result result;
    m->nodes = (node_info *)calloc(node_max, sizeof *m->nodes);
    m->params = (param_info *)calloc(2 * node_max, sizeof *m->params);
    tl_init_graph(&m->graph);
    if (!m->nodes || !m->params) return TL_ERROR_NO_MEMORY;
    m->graph.batch = m->B;  // tokens and targets are int32, as wide as a float
    result = add_op(env, m, describe("tokens", "input", NULL), NOTHING, NOTHING, 0, 1, &m->tokens);
    if (!result)
        result = add_op(env, m, describe("targets", "input", NULL), NOTHING, NOTHING, 0, 1,
                        &m->targets);
    if (!result)
        result =
            add_op(env, m, describe("embed", "embed", "in"), m->tokens, NOTHING, 1, m->C, &last);
    m->first_layer = m->graph.node_count;
    for (layer = 0; layer < (int32_t)m->L && !result; layer++)
        result = add_layer(env, m, layer, &last);
    if (!result)
        result = add_op(env, m, describe("norm", "norm", "in"), last, NOTHING, m->C, m->C, &last);
    if (!result)
        result = add_op(env, m, describe("head", "linear", "in"), last, NOTHING, m->C, m->V, &last);
    if (!result)
        result =
            add_op(env, m, describe("loss", "loss", "in"), last, m->targets, m->V, 1, &m->loss);
    return result ? result : tl_check_graph(env, &m->graph);
}

static uint64_t base_bytes_of(const model *m) { return 4 * sizeof(float) * m->param_count; }

// -- text --

typedef struct options {
    const char *text, *out;
    uint64_t    device, layers, width, context, batch, steps, seed;
    int         lists, validates;
} options;

typedef struct text {
    uint8_t *ids;                 // [length] the file, as token numbers
    size_t   length;
    uint32_t V;                   // how many different bytes it has
    char     path[512];
} text;

// Read a whole file; *data is for the caller to free.
static int read_file(const char *path, uint8_t **data, size_t *length) {
    FILE *file = fopen(path, "rb");
    size_t capacity = (size_t)1 << 16, got = 1;
    int error;
    *length = 0;
    *data = NULL;
    if (!file) return fail(CODE_INPUT, "text %s: %s", path, strerror(errno));
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
        return fail(CODE_INPUT, "text %s: %s", path,
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

static int read_text(const options *o, const char *program, text *t) {
    size_t i, window = (size_t)o->context + 1;
    uint8_t id_of[256], is_used[256];
    int code, byte;
    if (o->text) snprintf(t->path, sizeof t->path, "%s", o->text);
    else find_text(program, t->path, sizeof t->path);
    code = read_file(t->path, &t->ids, &t->length);
    if (code) return code;
    if (t->length < window)
        return fail(CODE_INPUT, "text %s: %zu bytes, but one window (--context + 1) takes %zu",
                    t->path, t->length, window);
    memset(is_used, 0, sizeof is_used);
    memset(id_of, 0, sizeof id_of);
    for (i = 0; i < t->length; i++) is_used[t->ids[i]] = 1;
    if (is_used[0]) return fail(CODE_INPUT, "text %s: is binary, it has zero bytes", t->path);
    for (byte = 0; byte < 256; byte++)
        if (is_used[byte]) id_of[byte] = (uint8_t)t->V++;
    for (i = 0; i < t->length; i++) t->ids[i] = id_of[t->ids[i]];
    return CODE_OK;
}

// -- plans: the cheapest within a budget --
//
// Every candidate is simulated, and the cheapest that fits wins: uniform checkpoint configs, with
// the inner activations of attention and of ffn kept or dropped, and each choice of the 9 tensors
// of a layer that can be kept for backward, in the first layers or in all.

typedef struct search {
    uint64_t budget;              // for activations
    tl_plan  best, least;         // cheapest that fits; least peak of all. No steps = none
} search;

static void take_plan(tl_env *env, tl_plan *to, tl_plan *from) {
    tl_free_plan(env, to);
    *to = *from;
    memset(from, 0, sizeof *from);
}

// Look at a plan: it becomes the best, or the least, or is freed.
static void consider(tl_env *env, search *s, tl_plan *plan) {
    if (plan->peak_bytes <= s->budget && (!s->best.steps || plan->cost < s->best.cost))
        take_plan(env, &s->best, plan);
    else if (!s->least.steps || plan->peak_bytes < s->least.peak_bytes)
        take_plan(env, &s->least, plan);
    tl_free_plan(env, plan);
}

static tl_result consider_configs(tl_env *env, search *s, const model *m) {
    tl_result result = TL_OK;
    uint64_t interval;
    int flags;
    for (interval = 1; interval <= m->L; interval++) {
        for (flags = 0; flags < 4 && !result; flags++) {
            tl_checkpoint_config config = tl_checkpoint_uniform(interval);
            tl_plan plan;
            config = tl_with_checkpoint_attention(config, flags & 1);
            config = tl_with_checkpoint_ffn(config, flags >> 1);
            result = tl_plan_checkpoints(env, &m->graph, &config, &plan);
            if (!result) consider(env, s, &plan);
        }
    }
    return result;
}

// Drop in the first `layers` layers what the subset does not name.
static void set_kept(const model *m, uint32_t subset, uint64_t layers, uint8_t *keep) {
    uint64_t layer;
    int row, choice;
    memset(keep, 1, (size_t)m->graph.tensor_count);
    for (layer = 0; layer < layers; layer++) {
        uint8_t *at = keep + (uint64_t)m->first_layer + layer * ROW_COUNT;
        for (row = choice = 0; row < ROW_COUNT; row++)
            if (layer_rows[row].is_choice) at[row] = (uint8_t)(subset >> choice++ & 1);
    }
}

static tl_result consider_kept_sets(tl_env *env, search *s, const model *m) {
    uint64_t part, parts = m->L < 8 ? m->L : 8;
    uint32_t subset;
    tl_result result = TL_OK;
    uint8_t *keep = (uint8_t *)malloc((size_t)m->graph.tensor_count);
    if (!keep) return TL_ERROR_NO_MEMORY;
    for (subset = 0; subset < 1u << CHOICE_COUNT; subset++) {
        for (part = 1; part <= parts && !result; part++) {
            tl_plan plan;
            set_kept(m, subset, m->L * part / parts, keep);
            result = tl_plan_kept_set(env, &m->graph, keep, &plan);
            if (!result) consider(env, s, &plan);
        }
    }
    free(keep);
    return result;
}

// Find the cheapest plan within *budget; where none fits, the one with the least peak, and *budget
// becomes that.
static tl_result find_plan(tl_env *env, const model *m, uint64_t *budget, tl_plan *plan) {
    search s;
    tl_result result;
    memset(&s, 0, sizeof s);
    memset(plan, 0, sizeof *plan);
    s.budget = *budget;
    result = consider_configs(env, &s, m);
    if (!result) result = consider_kept_sets(env, &s, m);
    if (!result) take_plan(env, plan, s.best.steps ? &s.best : &s.least);
    if (!result && plan->peak_bytes > *budget) *budget = plan->peak_bytes;
    tl_free_plan(env, &s.best);
    tl_free_plan(env, &s.least);
    return result;
}

// -- moves: keep-all plans that spill or compress what lies idle --
//
// A tensor that backward needs is idle between its last use in forward and its first in backward.
// There it is copied to the host and back, each copy a few steps ahead of its WAIT so that kernels
// run meanwhile; or it is compressed and expanded. The first tensors are idle longest: they are
// moved, as few of them as the budget demands.
//
//     forward                          backward
//     F 4  F 5  O 4 ....  W 4     ...  L 4 ....  W 4  DH 4  B 5       spill
//     F 4  F 5  C 4               ...                 X 4   B 5       f16

enum { MOVE_AHEAD = 3 };          // steps between a copy and its WAIT

typedef struct idle_span {
    int32_t node;
    int32_t from, until;  // steps of the keep-all plan: its last use before, its first after
} idle_span;

static void note_use(idle_span *span, int32_t step, int is_backward) {
    if (!is_backward) span->from = step;
    else if (span->until < 0) span->until = step;
}

// The spans of all tensors, by node; until < 0 = not needed again, or too soon to be worth a move.
static void find_spans(const tl_graph *graph, const tl_plan *keep_all, idle_span *spans) {
    int32_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        spans[i].node = i;
        spans[i].from = spans[i].until = -1;
    }
    for (i = 0; i < keep_all->step_count; i++) {
        const tl_step *step = &keep_all->steps[i];
        const tl_node *node = &graph->nodes[step->node];
        int is_backward = step->kind == TL_STEP_BACKWARD;
        if (step->kind > TL_STEP_BACKWARD) continue;
        for (k = 0; k < node->input_count; k++) {
            const tl_node_input *input = &graph->inputs[node->first_input + k];
            if (!is_backward || input->needed) note_use(&spans[input->tensor], i, is_backward);
        }
        if (!is_backward || graph->outputs[node->first_output].needed)
            note_use(&spans[step->node], i, is_backward);
    }
    for (i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].is_input || spans[i].until - spans[i].from <= 2 * MOVE_AHEAD + 2)
            spans[i].until = -1;
}

static void put_step(tl_step *steps, int32_t *count, tl_step_kind kind, int32_t node) {
    tl_step *step = &steps[(*count)++];
    memset(step, 0, sizeof *step);
    step->kind = (uint8_t)kind;
    step->codec = kind == TL_STEP_COMPRESS ? TL_CODEC_F16 : TL_CODEC_NONE;
    step->node = node;
    step->output = TL_ALL_OUTPUTS;
}

// The steps that go before step i (before = 1) or after it, for one tensor.
static void put_moves(const idle_span *span, int32_t i, int before, int packs, tl_step *steps,
                      int32_t *count) {
    if (before && i == span->until - MOVE_AHEAD && !packs)
        put_step(steps, count, TL_STEP_FETCH, span->node);
    if (before && i == span->until) {
        put_step(steps, count, packs ? TL_STEP_EXPAND : TL_STEP_WAIT, span->node);
        if (!packs) put_step(steps, count, TL_STEP_DROP_HOST, span->node);
    }
    if (!before && i == span->from)
        put_step(steps, count, packs ? TL_STEP_COMPRESS : TL_STEP_SPILL, span->node);
    if (!before && i == span->from + MOVE_AHEAD && !packs)
        put_step(steps, count, TL_STEP_WAIT, span->node);
}

// The keep-all plan with the first `moved` idle tensors moved; it owns its steps.
static tl_result build_moves(tl_env *env, const tl_graph *graph, const tl_plan *keep_all,
                             const idle_span *spans, int32_t moved, int packs, tl_plan *plan) {
    size_t most = (size_t)keep_all->step_count + 5 * (size_t)moved;
    tl_step *steps = (tl_step *)malloc(most * sizeof *steps);  // as the env does, which frees it
    int32_t i, k, before;
    tl_result result;
    memset(plan, 0, sizeof *plan);
    if (!steps) return TL_ERROR_NO_MEMORY;
    for (i = 0; i < keep_all->step_count; i++) {
        for (before = 1; before >= 0; before--) {
            int32_t left = moved;
            for (k = 0; k < graph->node_count && left; k++) {
                if (spans[k].until < 0) continue;
                left--;
                put_moves(&spans[k], i, before, packs, steps, &plan->step_count);
            }
            if (before) steps[plan->step_count++] = keep_all->steps[i];
        }
    }
    plan->steps = steps;
    plan->memory = steps;
    result = tl_measure_plan(env, graph, NULL, plan);
    if (result) tl_free_plan(env, plan);
    return result;
}

// Move as few tensors as a budget demands; where all are too few, *budget becomes the peak.
static tl_result find_moves(tl_env *env, const model *m, int packs, uint64_t *budget,
                            tl_plan *plan) {
    int32_t moved, i, count = 0;
    idle_span *spans = (idle_span *)calloc((size_t)m->graph.node_count, sizeof *spans);
    tl_plan keep_all;
    tl_result result = tl_plan_keep_all(env, &m->graph, 0, &keep_all);
    memset(plan, 0, sizeof *plan);
    if (!spans) result = TL_ERROR_NO_MEMORY;
    if (!result) find_spans(&m->graph, &keep_all, spans);
    for (i = 0; i < m->graph.node_count && !result; i++) count += spans[i].until >= 0;
    for (moved = 0; moved <= count && !result; moved++) {
        tl_free_plan(env, plan);
        result = build_moves(env, &m->graph, &keep_all, spans, moved, packs, plan);
        if (!result && plan->peak_bytes <= *budget) break;
    }
    if (!result && plan->peak_bytes > *budget) *budget = plan->peak_bytes;
    tl_free_plan(env, &keep_all);
    free(spans);
    return result;
}

// -- training: one network, its memory on the device and its run --

typedef enum row_kind { ROW_KEEP_ALL, ROW_RECOMPUTE, ROW_SPILL, ROW_F16 } row_kind;

enum { PARAMS, MEANS, SQUARES, GRADS, ARRAY_COUNT };  // MEANS and SQUARES are those of AdamW

typedef struct training {
    const model *m;
    const text  *t;
    const options *o;
    row_kind kind;
    char     label[24];
    uint64_t budget;              // for activations; 0 = keep all
    tl_plan  plan;                // owned
    tl_backend backend;
    vk_nn    nn;
    vk_nn_net net;
    vk_nn_node *nodes;            // [node_count]
    tl_range arrays[ARRAY_COUNT]; // [param_count] floats each, in blocks of their own
    tl_run  *run;
    tl_run_report report;         // of the last step
    uint64_t step;                // training steps done
    int32_t *window;              // [2][B T] tokens and targets
    float    loss;                // of the last step

    // what the table says about it
    float   *losses;              // [steps]
    uint64_t *rounds_ns;          // [steps] a step from load to optimizer
    double   ratio;               // of these to those of keep all, median
    uint64_t submits, waits;      // of the last step
    uint64_t reserved_bytes;      // most in blocks of the device tier
    int      equal;               // 1 = so far all gradients and losses are those of keep all
    double   difference;          // of the gradients of the first step, relative

    // the last pass, step by step
    tl_run_event *events;         // [plan.step_count]
    int32_t  event_count;
    int      times;               // 1 = the device wrote its time after every step
    tl_run_event *fastest;        // [plan.step_count] those of the fastest pass: for the picture
    uint64_t fastest_ns;
} training;

// Write the windows of a batch: where they begin depends on seed and step alone.
static tl_result load_batch(tl_run *run, int32_t micro_batch, void *user) {
    training *t = (training *)user;
    uint32_t b, k, rows = t->m->B * t->m->T;
    uint64_t places = t->t->length - t->m->T;
    tl_tensor tokens = { 0, 0 }, targets = { 0, 0 };
    tl_result result;
    (void)micro_batch;
    tokens.node = t->m->tokens;
    targets.node = t->m->targets;
    for (b = 0; b < t->m->B; b++) {
        uint64_t number = t->step * t->m->B + b;
        const uint8_t *at = t->t->ids + nn_hash(t->o->seed ^ 0x74657874u, number) % places;
        for (k = 0; k < t->m->T; k++) {
            t->window[b * t->m->T + k] = at[k];
            t->window[rows + b * t->m->T + k] = at[k + 1];
        }
    }
    result = tl_write_tensor(run, tokens, t->window, rows * sizeof(int32_t));
    if (!result) result = tl_write_tensor(run, targets, t->window + rows, rows * sizeof(int32_t));
    t->event_count = 0;
    t->times = tl_vk_record_time(&t->backend, 0) == TL_OK;
    return result;
}

// After every step: keep its event, and have the device write down when it is done with it.
static void observe(const tl_run_event *event, void *user) {
    training *t = (training *)user;
    tl_backend_counters counters;
    t->backend.counters(t->backend.self, &counters);
    if (counters.reserved_bytes[TL_TIER_DEVICE] > t->reserved_bytes)
        t->reserved_bytes = counters.reserved_bytes[TL_TIER_DEVICE];
    if (t->event_count >= t->plan.step_count) return;
    t->events[t->event_count++] = *event;
    t->times = t->times && tl_vk_record_time(&t->backend, (uint32_t)t->event_count) == TL_OK;
}

static void free_training(tl_env *env, training *t) {
    int i;
    tl_free_run(t->run);
    for (i = 0; i < ARRAY_COUNT; i++) {
        if (!t->arrays[i].block) continue;
        (void)t->backend.release(t->backend.self, t->arrays[i]);
        (void)t->backend.free_block(t->backend.self, t->arrays[i].block);
    }
    vk_nn_free(&t->nn);
    if (t->backend.self) tl_vk_free_backend(env, &t->backend);
    tl_free_plan(env, &t->plan);
    free(t->nodes);
    free(t->window);
    free(t->losses);
    free(t->rounds_ns);
    free(t->events);
    free(t->fastest);
    memset(t, 0, sizeof *t);
}

static tl_range part_of(const training *t, int array, int32_t param) {
    tl_range range = t->arrays[array];
    if (param < 0) {
        memset(&range, 0, sizeof range);
    } else {
        range.offset = t->m->params[param].first * sizeof(float);
        range.bytes = t->m->params[param].count * sizeof(float);
    }
    return range;
}

// Blocks for parameters, optimizer and gradients, and where each node finds its own.
static tl_result init_arrays(training *t) {
    const tl_backend *b = &t->backend;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < ARRAY_COUNT && !result; i++) {
        tl_range *range = &t->arrays[i];
        uint64_t bytes = t->m->param_count * sizeof(float);
        result = b->add_block(b->self, TL_TIER_DEVICE, bytes, &range->block);
        range->bytes = bytes;
        if (!result) result = b->claim(b->self, *range);
        if (!result && i != PARAMS) result = b->fill(b->self, *range, 0);
    }
    for (i = 0; i < t->m->graph.node_count; i++) {
        const node_info *info = &t->m->nodes[i];
        vk_nn_node *node = &t->nodes[i];
        node->in_width = info->in_width;
        node->width = info->width;
        node->weight = part_of(t, PARAMS, info->weight);
        node->bias = part_of(t, PARAMS, info->bias);
        node->dweight = part_of(t, GRADS, info->weight);
        node->dbias = part_of(t, GRADS, info->bias);
    }
    return result;
}

// The numbers that every training starts with, from the seed.
static tl_result write_params(training *t) {
    const tl_backend *b = &t->backend;
    void *mapped;
    int32_t i;
    tl_result result = b->map(b->self, t->arrays[PARAMS], TL_MAP_WRITE, &mapped);
    if (result) return result;
    memset(mapped, 0, (size_t)t->arrays[PARAMS].bytes);
    for (i = 0; i < t->m->param_kinds; i++) {
        const param_info *p = &t->m->params[i];
        float *at = (float *)mapped + p->first;
        uint64_t k;
        nn_fill_normal(at, (size_t)p->count, p->deviation, tl_mix_u64(t->o->seed, (uint64_t)i));
        for (k = 0; k < p->count; k++) at[k] += p->mean;
    }
    return b->unmap(b->self, t->arrays[PARAMS], TL_MAP_WRITE, mapped);
}

// The backend has room for base and budget, and not one byte more.
static tl_result init_memory(tl_env *env, training *t, const tl_vk_device *device) {
    size_t nodes = (size_t)t->m->graph.node_count;
    tl_vk_backend_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.device = *device;
    desc.capacity_bytes[TL_TIER_DEVICE] = t->budget ? base_bytes_of(t->m) + t->budget : 0;
    desc.chunk_bytes = (uint64_t)4 << 20;
    desc.time_count = (uint32_t)t->plan.step_count + 1;
    t->nodes = (vk_nn_node *)calloc(nodes, sizeof *t->nodes);
    t->window = (int32_t *)calloc((size_t)2 * t->m->B * t->m->T, sizeof *t->window);
    t->losses = (float *)calloc((size_t)t->o->steps, sizeof *t->losses);
    t->rounds_ns = (uint64_t *)calloc((size_t)t->o->steps, sizeof *t->rounds_ns);
    t->events = (tl_run_event *)calloc((size_t)t->plan.step_count, sizeof *t->events);
    t->fastest = (tl_run_event *)calloc((size_t)t->plan.step_count, sizeof *t->fastest);
    if (!t->fastest) return TL_ERROR_NO_MEMORY;
    if (!t->nodes || !t->window || !t->losses || !t->rounds_ns || !t->events)
        return TL_ERROR_NO_MEMORY;
    result = tl_vk_init_backend(env, &desc, &t->backend);
    if (!result) result = vk_nn_init(&t->backend, &t->nn);
    if (!result) result = init_arrays(t);
    return result ? result : write_params(t);
}

// Make the run of the plan.
static tl_result init_run(tl_env *env, training *t) {
    tl_kernel kernels[VK_NN_OP_COUNT];
    tl_run_desc desc;
    memset(&desc, 0, sizeof desc);
    t->net.nn = &t->nn;
    t->net.nodes = t->nodes;
    t->net.B = t->m->B;
    t->net.T = t->m->T;
    t->net.C = t->m->C;
    t->net.V = t->m->V;
    t->net.dropout = 0.05f;
    vk_nn_set_kernels(kernels, &t->net);
    desc.graph = &t->m->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = VK_NN_OP_COUNT;
    desc.plan = &t->plan;
    desc.base_bytes = base_bytes_of(t->m);
    desc.budget_bytes = t->budget ? t->budget + desc.base_bytes : 0;
    desc.load = load_batch;
    desc.load_user = t;
    desc.observe = observe;
    desc.observe_user = t;
    desc.profiling = 1;
    desc.seed = t->o->seed;
    return tl_init_run(env, &desc, &t->run);
}

// Learning rate: up to its top within 50 steps, then down with the fourth root.
static float rate_at(uint64_t step) {
    float top = 8e-3f, warm = 50.0f, n = (float)(step + 1);
    return n < warm ? top * n / warm : top * sqrtf(sqrtf(warm / n));
}

static tl_result update_params(training *t) {
    vk_nn_adamw adamw = { 0.0f, 0.9f, 0.98f, 1e-8f, 0.0f };
    tl_result result = TL_OK;
    int32_t i;
    adamw.rate = rate_at(t->step);
    for (i = 0; i < t->m->param_kinds && !result; i++) {
        adamw.weight_decay = t->m->params[i].decays ? 0.05f : 0.0f;
        result = vk_nn_adamw_update(&t->nn, part_of(t, PARAMS, i), part_of(t, MEANS, i),
                                    part_of(t, SQUARES, i), part_of(t, GRADS, i),
                                    (uint32_t)t->m->params[i].count, t->step + 1, &adamw);
    }
    return result;
}

// One training step; back when the device has finished it.
static tl_result train_step(training *t) {
    const tl_backend *b = &t->backend;
    tl_vk_counters before, after;
    uint64_t start = wall_ns();
    tl_tensor loss = { 0, 0 };
    tl_ticket ticket;
    tl_result result;
    loss.node = t->m->loss;
    tl_vk_measure(b, &before);
    result = b->fill(b->self, t->arrays[GRADS], 0);
    if (!result) result = tl_run_plan(t->run);
    tl_measure_run(t->run, &t->report);
    if (!result) result = tl_read_tensor(t->run, loss, &t->loss, sizeof t->loss);
    if (!result) result = update_params(t);
    if (!result) result = b->submit(b->self, &ticket);
    if (!result) result = b->wait(b->self, ticket);
    if (result) return result;
    tl_vk_measure(b, &after);
    t->submits = after.submit_count - before.submit_count;
    t->waits = after.host_wait_count - before.host_wait_count;
    t->rounds_ns[t->step] = wall_ns() - start;
    t->losses[t->step++] = t->loss;
    return TL_OK;
}

// -- trace: the device's times of every step --

// Where a copy was issued that a WAIT waited for.
static int32_t find_issue(const training *t, int32_t wait) {
    int32_t i = wait;
    while (i > 0) {
        const tl_step *step = &t->events[--i].step;
        int is_copy = step->kind == TL_STEP_SPILL || step->kind == TL_STEP_FETCH;
        if (is_copy && step->node == t->events[wait].step.node) return i;
    }
    return wait;
}

// Put the device's times into the events of the last pass: step i took from time i to time i + 1.
static tl_result patch_times(training *t) {
    size_t count = (size_t)t->event_count + 1;
    uint64_t *ns;
    int32_t i;
    tl_result result;
    if (!t->times) return TL_OK;  // the clock of the host has to do
    ns = (uint64_t *)calloc(count, sizeof *ns);
    if (!ns) return TL_ERROR_NO_MEMORY;
    result = tl_vk_read_times(&t->backend, 0, (uint32_t)count, ns);
    for (i = 0; i < t->event_count && !result; i++) {
        int is_wait = t->events[i].step.kind == TL_STEP_WAIT;
        t->events[i].start_ns = ns[is_wait ? find_issue(t, i) : i];
        t->events[i].end_ns = ns[i + 1];
    }
    free(ns);
    return result;
}

static void keep_fastest(training *t) {
    uint64_t ns = t->rounds_ns[t->step - 1];
    if (t->fastest_ns && ns >= t->fastest_ns) return;
    t->fastest_ns = ns;
    memcpy(t->fastest, t->events, (size_t)t->event_count * sizeof *t->events);
}

// -- rounds: all trainings, a step each --

enum { ROW_MAX = 6, LOSS_STEPS = 10 };

static const double f16_limit = 0.05;  // relative difference of gradients: rounding stays far below

typedef struct program {
    tl_env   env;
    options  o;
    text     t;
    model    m;
    tl_vk_device device;
    tl_vk_device_info info;
    int      complaints;          // of the validation layer
    uint64_t keep_all_bytes;      // peak of keep all: what budgets are percents of
    training rows[ROW_MAX];       // the first one keeps everything
    int32_t  row_count;
    float   *grads;               // [param_count] of the first row, this round
    uint64_t rounds;              // finished
    tl_trace *trace;              // of the last round
    uint64_t shown_ns;            // of the last progress line
    int      terminal;            // 1 = stderr is one
} program;

static int fail_result(const program *p, const char *what, tl_result result) {
    int code = result == TL_ERROR_MISMATCH ? CODE_MISMATCH
             : result == TL_ERROR_INFEASIBLE ? CODE_INFEASIBLE : CODE_INPUT;
    return fail(code, "%s: %s", what,
                p->env.error.code == result ? p->env.error.text : tl_explain_result(result));
}

static void show_progress(program *p, const char *what, double left_s) {
    uint64_t now = wall_ns();
    if (now - p->shown_ns < (p->terminal ? 100000000u : 5000000000u)) return;
    p->shown_ns = now;
    fprintf(stderr, "%s%s: step %llu, loss %.3f, %.0f s left%s", p->terminal ? "\r" : "", what,
            (unsigned long long)p->rounds, (double)p->rows[0].loss, left_s,
            p->terminal ? "   " : "\n");
    fflush(stderr);
}

static void clear_progress(const program *p) {
    if (p->terminal) fprintf(stderr, "\r%60s\r", "");
}

// |a - b| / |b|
static double find_difference(const float *a, const float *b, uint64_t count) {
    double apart = 0.0, size = 0.0;
    uint64_t i;
    for (i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        apart += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return size > 0.0 ? sqrt(apart / size) : apart;
}

// Compare gradients and loss with those of keep all, which come first in a round.
static tl_result compare_gradients(program *p, training *t) {
    const tl_backend *b = &t->backend;
    training *first = &p->rows[0];
    size_t bytes = (size_t)t->arrays[GRADS].bytes;
    void *mapped;
    tl_result result = b->map(b->self, t->arrays[GRADS], TL_MAP_READ, &mapped);
    if (result) return result;
    if (t == first) memcpy(p->grads, mapped, bytes);
    if (memcmp(p->grads, mapped, bytes) != 0 || memcmp(&t->loss, &first->loss, sizeof t->loss) != 0)
        t->equal = 0;
    if (p->rounds == 0)
        t->difference = find_difference((const float *)mapped, p->grads, p->m.param_count);
    return b->unmap(b->self, t->arrays[GRADS], TL_MAP_READ, mapped);
}

// Take turns until the steps are done or Ctrl-C; a round that was begun is finished.
static int train_rounds(program *p) {
    uint64_t start = wall_ns();
    while (p->rounds < p->o.steps && !interrupted) {
        int32_t k, i;
        double done_s;
        tl_reset_trace(p->trace);
        for (k = 0; k < p->row_count; k++) {
            training *t = &p->rows[k];
            tl_result result = train_step(t);
            if (!result) result = compare_gradients(p, t);
            if (!result) result = patch_times(t);
            if (result) {
                clear_progress(p);
                return fail_result(p, t->label, result);
            }
            keep_fastest(t);
            for (i = 0; i < t->event_count; i++) tl_record_event(&t->events[i], p->trace);
        }
        p->rounds++;
        done_s = (double)(wall_ns() - start) * 1e-9;
        show_progress(p, "comparing",
                      done_s / (double)p->rounds * (double)(p->o.steps - p->rounds));
    }
    clear_progress(p);
    return CODE_OK;
}

// -- table --

static const char *name_type(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:   return "GPU";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return "integrated GPU";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:    return "virtual GPU";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:            return "no GPU: computes on the host";
    case VK_PHYSICAL_DEVICE_TYPE_OTHER:
    case VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM:       break;
    }
    return "other";
}

static void print_device(const char *label, const tl_vk_device_info *info) {
    printf("%s %s, Vulkan %u.%u, %s, %.1f GiB%s\n", label, info->name,
           VK_API_VERSION_MAJOR(info->api_version), VK_API_VERSION_MINOR(info->api_version),
           name_type(info->type), mib(info->device_bytes) / 1024.0,
           info->has_compute ? "" : ", cannot compute");
}

static void print_header(const program *p) {
    const model *m = &p->m;
    uint64_t base = base_bytes_of(m), weights = 0;
    int32_t i;
    for (i = 0; i < m->param_kinds; i++) weights += m->params[i].count;
    print_device("device    ", &p->info);
    printf("text       %s: %zu bytes, %u different ones\n", p->t.path, p->t.length, p->t.V);
    printf("network    %u layers, %u channels, %u heads, context %u, batch %u: %llu weights\n",
           m->L, m->C, m->C / VK_NN_HEAD, m->T, m->B, (unsigned long long)weights);
    printf("base       %llu bytes (%.2f MiB) beside every row: weights 1/4, gradients 1/4,"
           " AdamW 1/2\n", (unsigned long long)base, mib(base));
    fflush(stdout);
}

// The median over the rounds of what a row took; by: as a ratio to that of another row, times 10^6.
static uint64_t find_median(const program *p, const training *t, const training *by) {
    uint64_t *values = (uint64_t *)malloc((size_t)p->rounds * sizeof *values), i, median;
    if (!values) return 0;
    for (i = 0; i < p->rounds; i++) {
        values[i] = t->rounds_ns[i];
        if (by) values[i] = (uint64_t)(1e6 * (double)values[i] / (double)by->rounds_ns[i]);
    }
    qsort(values, (size_t)p->rounds, sizeof *values, compare_u64);
    median = values[p->rounds / 2];
    free(values);
    return median;
}

static double mean_loss(const program *p, const training *t) {
    uint64_t i, count = p->rounds < LOSS_STEPS ? p->rounds : (uint64_t)LOSS_STEPS;
    double sum = 0.0;
    for (i = 0; i < count; i++) sum += (double)t->losses[p->rounds - 1 - i];
    return sum / (double)count;
}

static void print_bytes(const program *p) {
    int32_t k;
    printf("\nbytes of one step     budget  planned peak  measured peak  on the host |"
           "   reserved  chunks of Vulkan\n");
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        tl_vk_counters c;
        char budget[24] = "-";
        tl_vk_measure(&t->backend, &c);
        if (t->budget) snprintf(budget, sizeof budget, "%llu", (unsigned long long)t->budget);
        printf("%-16s %11s %13llu %14llu %12llu | %10llu %3llu: %llu\n", t->label, budget,
               (unsigned long long)t->report.planned_peak_bytes,
               (unsigned long long)t->report.measured_peak_bytes,
               (unsigned long long)t->report.measured_host_peak_bytes,
               (unsigned long long)t->reserved_bytes, (unsigned long long)c.chunk_count,
               (unsigned long long)c.memory_bytes);
    }
    printf("peaks: live ranges, without the base; reserved: blocks of the device tier, with it;\n"
           "chunks: what Vulkan gave, the host tier and staging included\n");
}

static void print_work(const program *p) {
    int32_t k;
    printf("\nwork of one step  made again  spilled  compressed  submits  waits   step ms  / keep all"
           "    loss  gradients\n");
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        char again[24], equal[48];
        snprintf(again, sizeof again, "%d of %d", (int)t->report.recompute_count,
                 (int)(t->report.forward_count - t->report.recompute_count));
        if (k == 0) snprintf(equal, sizeof equal, "-");
        else if (t->kind == ROW_F16)
            snprintf(equal, sizeof equal, "%.1e off, loss %+.1e", t->difference,
                     mean_loss(p, t) - mean_loss(p, &p->rows[0]));
        else snprintf(equal, sizeof equal, "%s", t->equal ? "equal" : "DIFFERENT");
        printf("%-16s %11s %8d %11d %8llu %6llu %9.2f %11.3f  %.4f  %s\n", t->label, again,
               (int)t->report.spill_count, (int)t->report.compress_count,
               (unsigned long long)t->submits, (unsigned long long)t->waits,
               (double)find_median(p, t, NULL) * 1e-6,
               (double)find_median(p, t, &p->rows[0]) * 1e-6, mean_loss(p, t), equal);
    }
    printf("%llu steps each%s; times: medians; loss: mean of the last %d steps; equal: every\n"
           "parameter gradient and loss of every step, bit for bit; off: in the first step, relative\n",
           (unsigned long long)p->rounds, interrupted ? " (interrupted)" : "",
           p->rounds < LOSS_STEPS ? (int)p->rounds : LOSS_STEPS);
}

// Returns what the rows say: 0, or 3 where a gradient or a peak is not as it must be.
static int print_table(const program *p) {
    int32_t k;
    if (!p->rounds) return CODE_OK;
    print_bytes(p);
    print_work(p);
    fflush(stdout);
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        const tl_run_report *r = &t->report;
        if (r->planned_peak_bytes != r->measured_peak_bytes)
            return fail(CODE_MISMATCH, "%s: measured peak is not the planned one", t->label);
        if (!t->equal && t->kind != ROW_F16)
            return fail(CODE_MISMATCH, "%s: gradients or losses are not those of keep all",
                        t->label);
        if (!(t->difference <= f16_limit))
            return fail(CODE_MISMATCH, "%s: gradients are %.2g off, which no rounding explains",
                        t->label, t->difference);
    }
    return CODE_OK;
}

// -- pictures --

// The curve of a row's fastest pass; live and times have room for its events.
static void draw_curve(const training *t, uint64_t *live, double *times, tl_memory_curve *curve) {
    double latest = 0.0;
    int32_t i;
    for (i = 0; i < t->event_count; i++) {
        double ms = (double)(t->fastest[i].end_ns - t->fastest[0].start_ns) * 1e-6;
        live[i] = t->fastest[i].device_bytes;
        times[i] = latest = ms > latest ? ms : latest;
    }
    curve->live_bytes = live;
    curve->times = latest > 0.0 ? times : NULL;  // without any clock: by steps
    curve->count = t->event_count;
}

// Write one file of --out through a sink; trace or picture, whichever is asked for.
static int write_picture(program *p, const char *name, int is_trace) {
    tl_memory_curve curves[ROW_MAX];
    char labels[ROW_MAX][64], path[460];
    uint64_t *live[ROW_MAX] = { NULL };
    double *times[ROW_MAX] = { NULL };
    tl_svg_style style;
    tl_file_sink file;
    tl_sink sink;
    tl_result result = TL_OK;
    int32_t k;
    if (snprintf(path, sizeof path, "%s/%s", p->o.out, name) >= (int)sizeof path)
        return fail(CODE_INPUT, "%s: the name is too long", name);
    memset(curves, 0, sizeof curves);
    memset(&style, 0, sizeof style);
    for (k = 0; k < p->row_count && !result; k++) {
        const training *t = &p->rows[k];
        live[k] = (uint64_t *)calloc((size_t)t->event_count + 1, sizeof **live);
        times[k] = (double *)calloc((size_t)t->event_count + 1, sizeof **times);
        if (!live[k] || !times[k]) result = TL_ERROR_NO_MEMORY;
        else draw_curve(t, live[k], times[k], &curves[k]);
        snprintf(labels[k], sizeof labels[k], "%s, %.2f MiB", t->label,
                 mib(t->report.measured_peak_bytes));
        curves[k].label = labels[k];
    }
    style.title = "Activations on the device over one training step, measured";
    if (curves[0].times) style.time_label = p->rows[0].times ? "ms, by the device" : "ms";
    if (!result) result = tl_init_file_sink(&p->env, path, &file, &sink);
    if (!result) {
        result = is_trace ? tl_write_trace_json(&p->env, p->trace, &p->m.graph, sink)
                          : tl_write_memory_svg(&p->env, curves, p->row_count, &style, sink);
        result = tl_finish_file_sink(&p->env, &file, result);
    }
    for (k = 0; k < p->row_count; k++) {
        free(live[k]);
        free(times[k]);
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

// -- devices --

enum { DEVICE_MAX = 16 };

static VKAPI_ATTR VkBool32 VKAPI_CALL
on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
           const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    program *p = (program *)user;
    (void)types;
    if (!(severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT)) return VK_FALSE;
    p->complaints++;
    fprintf(stderr, "validation: %s\n", data->pMessage ? data->pMessage : "");
    return VK_FALSE;
}

static int is_gpu(const tl_vk_device_info *info) {
    return info->type != VK_PHYSICAL_DEVICE_TYPE_CPU && info->type != VK_PHYSICAL_DEVICE_TYPE_OTHER;
}

// List the devices, or open the one asked for: by default the first GPU, else any that computes.
static int open_device(program *p) {
    tl_vk_device_desc desc;
    tl_vk_device_info infos[DEVICE_MAX];
    int32_t count = 0, i, best = -1;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.validates = p->o.validates;
    desc.message = p->o.validates ? on_message : NULL;
    desc.message_user = p;
    result = tl_vk_read_devices(&p->env, &desc, infos, DEVICE_MAX, &count);
    if (result) return fail_result(p, "devices", result);
    if (count > DEVICE_MAX) count = DEVICE_MAX;
    for (i = 0; i < count; i++) {
        char label[16];
        snprintf(label, sizeof label, "%3d ", (int)i + 1);
        if (p->o.lists) print_device(label, &infos[i]);
        if (infos[i].has_compute && (best < 0 || (!is_gpu(&infos[best]) && is_gpu(&infos[i]))))
            best = i;
    }
    if (p->o.lists) return CODE_OK;
    if (p->o.device > (uint64_t)count)
        return fail(CODE_INPUT, "--device %d: there are %d; --list shows them", (int)p->o.device,
                    (int)count);
    if (p->o.device) best = (int32_t)p->o.device - 1;
    if (best < 0) return fail(CODE_INPUT, "devices: none of %d can compute", (int)count);
    p->info = infos[best];
    desc.number = best + 1;
    result = tl_vk_init_device(&p->env, &desc, &p->device);
    return result ? fail_result(p, p->info.name, result) : CODE_OK;
}

// -- options --

static const char *const usage =
    "02_vulkan_train: train a character-level transformer on a Vulkan device, within a fixed\n"
    "number of bytes\n"
    "\n"
    "  --device N         number in the list (the first GPU, else the first device)\n"
    "  --list             the devices of this machine\n"
    "  --text FILE        train on this text (the library's own header)\n"
    "  --steps N          steps of every row of the table (40)\n"
    "  --layers N --width N --context N --batch N    size of the network (8 48 32 4)\n"
    "  --seed N           of weights, batches and dropout (1)\n"
    "  --out DIR          where memory.svg and trace.json go (build)\n"
    "  --validate         with the Khronos validation layer: its errors are shown, and counted\n"
    "  --quick            a small network for a few steps\n"
    "  --help             this list\n"
    "\n"
    "exit code: 0 ok, 1 bad input, no device, or a file that could not be written, 2 a budget is\n"
    "below the least possible, 3 measured differs from planned, gradients are not equal, or the\n"
    "validation layer found errors\n";

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
} number_option;

// 1 = it was an option with a value; *code says whether the value was right.
static int parse_value_option(options *o, const char *name, const char *value, int *code) {
    const number_option table[] = {
        { "--device", 1, 1000, &o->device },   { "--steps", 1, 1000000, &o->steps },
        { "--layers", 1, 64, &o->layers },     { "--width", VK_NN_HEAD, 1024, &o->width },
        { "--context", 2, 1024, &o->context }, { "--batch", 1, 1024, &o->batch },
        { "--seed", 0, UINT64_MAX, &o->seed },
    };
    size_t i;
    const char **string = strcmp(name, "--text") == 0 ? &o->text
                        : strcmp(name, "--out") == 0 ? &o->out : NULL;
    if (string) {
        *string = value;
        *code = value && *value ? CODE_OK : fail(CODE_INPUT, "%s: a value must follow", name);
        return 1;
    }
    for (i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name) != 0) continue;
        *code = value ? parse_number(name, value, table[i].least, table[i].most, table[i].value)
                      : fail(CODE_INPUT, "%s: a number must follow", name);
        return 1;
    }
    return 0;
}

static void set_defaults(options *o, int quick) {
    memset(o, 0, sizeof *o);
    o->out = "build";
    o->layers = quick ? 6 : 8;
    o->width = quick ? 16 : 48;
    o->context = quick ? 16 : 32;
    o->batch = quick ? 2 : 4;
    o->steps = quick ? 5 : 40;
    o->seed = 1;
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
        if (strcmp(name, "--list") == 0) {
            o->lists = 1;
        } else if (strcmp(name, "--validate") == 0) {
            o->validates = 1;
        } else if (strcmp(name, "--help") == 0) {
            *done = 1;
            fputs(usage, stdout);
            return CODE_OK;
        } else if (parse_value_option(o, name, value, &code)) {
            i++;
        } else {
            return fail(CODE_INPUT, "%s: unknown option; --help lists them", name);
        }
    }
    if (!code && o->width % VK_NN_HEAD)
        return fail(CODE_INPUT, "--width %d: must be a multiple of %d", (int)o->width, VK_NN_HEAD);
    return code;
}

// -- main --

// Add a row; the plan belongs to it then. Budget 0 = keep all.
static int add_row(program *p, row_kind kind, const char *label, tl_plan *plan, uint64_t budget) {
    training *t = &p->rows[p->row_count++];
    tl_result result;
    t->m = &p->m;
    t->t = &p->t;
    t->o = &p->o;
    t->kind = kind;
    t->budget = budget;
    t->equal = 1;
    t->plan = *plan;
    memset(plan, 0, sizeof *plan);
    snprintf(t->label, sizeof t->label, "%s", label);
    result = init_memory(&p->env, t, &p->device);
    if (!result) result = init_run(&p->env, t);
    return result ? fail_result(p, label, result) : CODE_OK;
}

// Add a row that holds a percentage of the keep-all peak, or the least it can.
static int add_budget_row(program *p, row_kind kind, unsigned percent, const char *how) {
    uint64_t asked = p->keep_all_bytes / 100 * percent, budget = asked;
    char label[24];
    tl_plan plan;
    tl_result result = kind == ROW_RECOMPUTE
                           ? find_plan(&p->env, &p->m, &budget, &plan)
                           : find_moves(&p->env, &p->m, kind == ROW_F16, &budget, &plan);
    if (result) return fail_result(p, "plan", result);
    if (budget != asked)
        percent = (unsigned)((budget * 100 + p->keep_all_bytes - 1) / p->keep_all_bytes);
    snprintf(label, sizeof label, "%u %%%s%s", percent, budget != asked ? " least" : "", how);
    return add_row(p, kind, label, &plan, budget);
}

// The rows of the table.
static int add_rows(program *p) {
    tl_plan plan;
    tl_result result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &plan);
    int code;
    p->keep_all_bytes = plan.peak_bytes;
    if (result) return fail_result(p, "keep all", result);
    code = add_row(p, ROW_KEEP_ALL, "keep all", &plan, 0);
    if (!code) code = add_budget_row(p, ROW_RECOMPUTE, 60, "");
    if (!code) code = add_budget_row(p, ROW_RECOMPUTE, 40, "");
    if (!code) code = add_budget_row(p, ROW_RECOMPUTE, 25, "");
    if (!code) code = add_budget_row(p, ROW_SPILL, 40, " spill");
    if (!code) code = add_budget_row(p, ROW_F16, 60, " f16");
    return code;
}

static int prepare(program *p, const char *program_path) {
    const options *o = &p->o;
    int32_t k, events = 0;
    tl_result result;
    int code = open_device(p);
    if (!code) code = read_text(o, program_path, &p->t);
    if (code) return code;
    p->m.L = (uint32_t)o->layers;
    p->m.C = (uint32_t)o->width;
    p->m.T = (uint32_t)o->context;
    p->m.B = (uint32_t)o->batch;
    p->m.V = p->t.V;
    if (o->batch * o->context * (4 * o->width > p->m.V ? 4 * o->width : p->m.V) >= (uint64_t)1 << 30)
        return fail(CODE_INPUT, "--batch --context --width: an activation must have less than 2^30 floats");
    result = build_model(&p->env, &p->m);
    if (result) return fail_result(p, "graph", result);
    print_header(p);
    code = add_rows(p);
    if (code) return code;
    for (k = 0; k < p->row_count; k++) events += p->rows[k].plan.step_count;
    p->grads = (float *)calloc((size_t)p->m.param_count, sizeof *p->grads);
    result = p->grads ? tl_init_trace(&p->env, events, &p->trace) : TL_ERROR_NO_MEMORY;
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
    int code = p->o.lists ? open_device(p) : prepare(p, program_path), table, pictures;
    if (code || p->o.lists) return code;
    code = train_rounds(p);
    table = print_table(p);
    make_directory(p->o.out);
    pictures = write_pictures(p);
    if (!code) code = table;
    return code ? code : pictures;
}

int main(int count, char **argv) {
    static program p;  // zero
    int done, k, code;
    p.terminal = isatty(STDERR_FILENO);
    code = parse_options(&p.o, count, argv, &done);
    if (code || done) return code;
    signal(SIGINT, on_interrupt);
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN);  // a file over the limit is an error of a write, not the end
#endif
    code = run(&p, argv[0]);
    for (k = 0; k < p.row_count; k++) free_training(&p.env, &p.rows[k]);
    tl_vk_free_device(&p.env, &p.device);
    tl_free_trace(p.trace);
    free_model(&p.env, &p.m);
    free(p.grads);
    free(p.t.ids);
    if (!code && p.complaints)
        code = fail(CODE_MISMATCH, "validation: %d errors", p.complaints);
    if (fflush(stdout) != 0 || ferror(stdout))
        code = code ? code : fail(CODE_INPUT, "standard output: not all could be written");
    return code;
}
