/* training.h - what the training programs of the examples share: 01 on the CPU, 02 on Vulkan

   The network as a graph, the text it learns, the plans of the table, and what every program needs
   around them: options, sentences about failures, progress, files. No kernels: nn.h and vk_nn.h
   have those. C99 that is also C++11; POSIX for clocks and directories.

       #define TRAINING_PROGRAM "01_train_text"   // begins every sentence about a failure
       #include "training.h"

   Three kinds of plans are made of one graph, from the same costs:

       layers   what can be said layer by layer: checkpoint configs, and which of the tensors of a
                layer are kept, in the first layers or in all. Every candidate is simulated
       graph    tl_plan_remat: each tensor for itself, as often as it takes
       rows     the same of a graph in which regions of nodes go over the batch in blocks of its rows
                (tl_choose_rows): what lies between two nodes of a region exists for one block

   LETTERS     B = sequences in a batch, T = tokens of context, C = channels, V = vocabulary,
               L = layers

   CONTENTS    (search for "// -- ")
               failures and clocks    model    regions of rows    text    layer-wise plans
               plans    costs    training    progress    options    files
*/
#ifndef TRAINING_H
#define TRAINING_H

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

#include "../tl_strategy.h"
#include "nn.h"

// -- failures and clocks --

// What a program ends with.
enum { TRAINING_OK = 0, TRAINING_INPUT = 1, TRAINING_INFEASIBLE = 2, TRAINING_MISMATCH = 3 };

// Print one sentence; returns the code, for `return training_fail(...)`.
static inline int training_fail(int code, const char *format, ...) {
    va_list list;
    fflush(stdout);
    fprintf(stderr, TRAINING_PROGRAM ": ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    return code;
}

// The same for a failed call of the library.
static inline int training_fail_result(const tl_env *env, const char *what, tl_result result) {
    int code = result == TL_ERROR_MISMATCH ? TRAINING_MISMATCH
             : result == TL_ERROR_INFEASIBLE ? TRAINING_INFEASIBLE : TRAINING_INPUT;
    return training_fail(code, "%s: %s", what,
                         env->error.code == result ? env->error.text : tl_explain_result(result));
}

static inline uint64_t training_read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t training_wall_ns(void) { return training_read_clock(CLOCK_MONOTONIC); }

static volatile sig_atomic_t training_interrupted;

static inline void training_on_interrupt(int number) {
    training_interrupted = 1;
    signal(number, SIG_DFL);  // a second Ctrl-C ends the program at once
}

// Ctrl-C ends the rounds, not the program; a file over the limit fails a write, not the program.
static inline void training_set_signals(void) {
    signal(SIGINT, training_on_interrupt);
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN);
#endif
}

static inline int training_compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// The value above a share of the others; sorts them. 1/2 is the median.
static inline uint64_t training_find_quantile(uint64_t *values, size_t count, size_t part,
                                              size_t parts) {
    qsort(values, count, sizeof *values, training_compare_u64);
    return values[count * part / parts];
}

static inline double training_mib(uint64_t bytes) { return (double)bytes / 1048576.0; }

// -- model: the network as a table, then as a graph --

typedef enum training_op {
    TRAINING_INPUT_OP, TRAINING_EMBED, TRAINING_NORM, TRAINING_LINEAR, TRAINING_ATTENTION,
    TRAINING_GELU, TRAINING_DROPOUT, TRAINING_ADD, TRAINING_LOSS, TRAINING_OP_COUNT
} training_op;

static const char *const training_op_names[TRAINING_OP_COUNT] = {
    "input", "embed", "norm", "linear", "attention", "gelu", "dropout", "add", "loss"
};

// One node of a layer. What no backward needs is dropped by every plan right after its last use.
typedef struct training_row {
    const char *name;
    const char *unit;             // checkpoint configs act on attention and ffn
    const char *needs;            // what its backward reads
    training_op op;
    int32_t     from, from2;      // rows it reads; BEFORE = the layer before, NOTHING = none
    int32_t     in_width, width;  // in C
    int32_t     is_choice;        // 1 = some backward needs the result or what was saved with it
} training_row;

enum {
    TRAINING_BEFORE = -1,
    TRAINING_NOTHING = -2,
    TRAINING_ROWS = 12,
    TRAINING_FFN = 6,             // the first row of that unit
    TRAINING_CHOICES = 9,
    TRAINING_HEAD = 16            // channels of an attention head
};

#define A "attention"
#define F "ffn"
static const training_row training_rows[TRAINING_ROWS] = {
    { "norm1",  A, "in",   TRAINING_NORM,      TRAINING_BEFORE, TRAINING_NOTHING, 1, 1, 1 },  //  0
    { "qkv",    A, "in",   TRAINING_LINEAR,    0,               TRAINING_NOTHING, 1, 3, 1 },  //  1
    { "attend", A, "in",   TRAINING_ATTENTION, 1,               TRAINING_NOTHING, 3, 1, 1 },  //  2
    { "drop1",  A, "none", TRAINING_DROPOUT,   2,               TRAINING_NOTHING, 1, 1, 1 },  //  3
    { "proj",   A, "in",   TRAINING_LINEAR,    3,               TRAINING_NOTHING, 1, 1, 0 },  //  4
    { "add1",   A, "none", TRAINING_ADD,       TRAINING_BEFORE, 4,                1, 1, 1 },  //  5
    { "norm2",  F, "in",   TRAINING_NORM,      5,               TRAINING_NOTHING, 1, 1, 1 },  //  6
    { "fc1",    F, "in",   TRAINING_LINEAR,    6,               TRAINING_NOTHING, 1, 4, 1 },  //  7
    { "gelu",   F, "in",   TRAINING_GELU,      7,               TRAINING_NOTHING, 4, 4, 1 },  //  8
    { "fc2",    F, "in",   TRAINING_LINEAR,    8,               TRAINING_NOTHING, 4, 1, 0 },  //  9
    { "drop2",  F, "none", TRAINING_DROPOUT,   9,               TRAINING_NOTHING, 1, 1, 0 },  // 10
    { "add2",   F, "none", TRAINING_ADD,       5,               10,               1, 1, 1 },  // 11
};
#undef A
#undef F

typedef struct training_dims {
    uint64_t L, C, T, B, V;
} training_dims;

// What a kernel must know about its node. Widths are in floats per token.
typedef struct training_node {
    training_op op;
    uint64_t    in_width, width;
    int32_t     weight, bias;     // index of a param; -1 = none
    tl_format   format;           // of its output
} training_node;

typedef struct training_param {
    uint64_t first, count;        // floats, among those of all params
    float    mean, deviation;     // of what it starts with
    int      decays;              // 1 = with weight decay: matrices, but no biases and norms
} training_param;

// Regions of rows of a graph, whose plans are of another one.
typedef struct training_regions {
    tl_rows_plan rows;            // with that graph; memory NULL = there are none
    int32_t     *nodes;           // [nodes of that graph] the last node of the model's graph in each
} training_regions;

typedef struct training_model training_model;
struct training_model {
    // set before training_build_model
    training_dims size;
    int         trains;           // 0 = without loss and dropout: what samples are made with
    uint64_t    alignment_bytes;  // of the backend that plans are for
    float       dropout;
    tl_format   format;           // of the activations; inputs, logits and loss are f32
    uint64_t    param_align;      // floats: where params begin; 0 = 1
    void      (*add_bytes)(const training_model *m, const training_node *n, tl_node_desc *desc);
                                  // saved, fwork and bwork of the kernels of a node, and the rows they know
    const uint64_t *node_ns;      // [node_count][2] measured forward, backward; 0 = FLOP, estimated
    int         owns_weights;     // 1 = weights and both moments of AdamW are states of the graph, which it updates
    int         holds_gradients;  // then: 1 = several micro-batches add to their gradients
    int         clips;            // then: 1 = the node "clip" sees all gradients before the first update
    tl_updates  updates;          // then: TL_UPDATES_END where clips is 1
    uint64_t    update_rate;      // then: bytes a second that updates move, measured; 0 = a byte is a FLOP
    uint64_t    row_unit;         // kernels may be called for so many rows of the batch, or a multiple, and
                                  // attention and embed for whole sequences; 0 = for all rows alone
    uint64_t    call_cost;        // then: of each further call, in the unit of the other costs

    // made by it: first a plain graph of so many nodes, whose ids are those of nodes, tensors and node_ns
    tl_graph    graph;            // with states: nodes say by origin which plain node they are, or whose weights
    int32_t     node_count;
    training_node  *nodes;        // [node_count]
    int32_t        *tensors;      // [node_count] the tensor of the graph that each makes
    uint8_t        *formats;      // [tensors of the graph] tl_format
    training_param *params;       // [param_kinds]
    int32_t     param_kinds;
    uint64_t    param_count;      // floats, all together, with the gaps between them
    int32_t     tokens, targets, logits, loss;  // node ids of the graph
    int32_t     first_layer;      // plain node id

    training_regions regions;     // of a model that a plan cuts; else there are none
};

// What the kernel of a node of the graph must know.
static inline const training_node *training_node_of(const training_model *m, int32_t id) {
    return &m->nodes[m->graph.nodes[id].origin];
}

// Where the bias of a node begins among its weights.
static inline size_t training_find_bias(const training_model *m, const training_node *n) {
    return (size_t)(m->params[n->bias].first - m->params[n->weight].first);
}

// Where the costs of a step are: forward and backward of each plain node, then all updates, then the rest.
static inline size_t training_count_cost_slots(const training_model *m) { return 2 * (size_t)m->node_count + 2; }
static inline size_t training_update_slot(const training_model *m) { return 2 * (size_t)m->node_count; }

static inline size_t training_find_cost_slot(const training_model *m, int32_t id, int backward) {
    const tl_node *node = &m->graph.nodes[id];
    if (node->state || node->origin < 0) return training_update_slot(m);
    return 2 * (size_t)node->origin + (size_t)backward;
}

// Read weights and moments of all states, or write them: [3][param_count], weights, then both moments.
static inline tl_result training_move_states(const training_model *m, tl_run *run, float *floats, int writes) {
    tl_result result = TL_OK;
    int32_t id;
    for (id = 0; id < m->graph.node_count && !result; id++) {
        const tl_node *node = &m->graph.nodes[id];
        tl_tensor tensor = { 0, 0 };
        if (!node->state) continue;
        tensor.node = id;
        for (; tensor.output < node->output_count && tensor.output < 3 && !result; tensor.output++) {
            float *at = floats + (uint64_t)tensor.output * m->param_count +
                        m->params[training_node_of(m, id)->weight].first;
            uint64_t bytes = m->graph.outputs[node->first_output + tensor.output].bytes;
            result = writes ? tl_write_tensor(run, tensor, at, bytes) : tl_read_tensor(run, tensor, at, bytes);
        }
    }
    return result;
}

// Bytes a second that updates move: of a float the gradient, its weight and two moments are read, and all but the
// gradient written; the clip reads two floats more and writes one.
static inline uint64_t training_find_update_rate(const training_model *m, uint64_t ns) {
    double bytes = (m->clips ? 40.0 : 28.0) * (double)m->param_count;
    return ns ? (uint64_t)(bytes * 1e9 / (double)ns) : 0;
}

static inline int32_t training_add_param(training_model *m, uint64_t count, float mean,
                                         float deviation, int decays) {
    uint64_t align = m->param_align ? m->param_align : 1;
    training_param *p = &m->params[m->param_kinds];
    p->first = (m->param_count + align - 1) / align * align;
    p->count = count;
    p->mean = mean;
    p->deviation = deviation;
    p->decays = decays;
    m->param_count = p->first + count;
    return m->param_kinds++;
}

// FLOP of one forward, roughly: the cost until the nodes are measured.
static inline uint64_t training_estimate_flops(const training_model *m, const training_node *n) {
    uint64_t R = m->size.B * m->size.T;
    switch (n->op) {
    case TRAINING_EMBED:
    case TRAINING_ADD:       return R * n->width;
    case TRAINING_NORM:      return R * n->width * 8;
    case TRAINING_LINEAR:    return R * n->width * n->in_width * 2;
    case TRAINING_ATTENTION: return R * n->width * m->size.T * 4;
    case TRAINING_GELU:
    case TRAINING_DROPOUT:   return R * n->width * 20;
    case TRAINING_LOSS:      return R * n->in_width * 20;
    case TRAINING_INPUT_OP:
    case TRAINING_OP_COUNT:  break;
    }
    return 0;
}

static inline void training_add_params(training_model *m, training_node *n) {
    const training_dims *s = &m->size;
    float residual = 1.0f / sqrtf(2.0f * (float)s->L);  // 2 L branches add up to a variance of 1
    n->weight = n->bias = -1;
    switch (n->op) {
    case TRAINING_EMBED:
        n->weight = training_add_param(m, s->V * n->width, 0.0f, 0.3f, 0);
        n->bias = training_add_param(m, s->T * n->width, 0.0f, 0.1f, 0);
        break;
    case TRAINING_NORM:
        n->weight = training_add_param(m, n->width, 1.0f, 0.0f, 0);
        n->bias = training_add_param(m, n->width, 0.0f, 0.0f, 0);
        break;
    case TRAINING_LINEAR:
        n->weight = training_add_param(m, n->in_width * n->width, 0.0f,
                                       (n->width == s->C ? residual : 1.0f) /
                                           sqrtf((float)n->in_width), 1);
        n->bias = training_add_param(m, n->width, 0.0f, 0.0f, 0);
        break;
    case TRAINING_INPUT_OP:
    case TRAINING_ATTENTION:
    case TRAINING_GELU:
    case TRAINING_DROPOUT:
    case TRAINING_ADD:
    case TRAINING_LOSS:
    case TRAINING_OP_COUNT: break;
    }
}

// Say for which rows of the batch the kernels of a node may be called. Those that go element by element take
// blocks of any size. The loss is a mean: each call adds to it.
static inline void training_add_rows(const training_model *m, const training_node *n, tl_node_desc *desc) {
    static const tl_relation same[2] = { { TL_RELATION_SAME, 0, 0, 0, 0 }, { TL_RELATION_SAME, 0, 0, 0, 0 } };
    uint64_t rows = m->size.B * m->size.T, unit = m->row_unit;
    int by_sequence = n->op == TRAINING_ATTENTION || n->op == TRAINING_EMBED;
    if (!unit || desc->takes_blocks || n->op == TRAINING_INPUT_OP) return;
    while (by_sequence && unit % m->size.T) unit += m->row_unit;
    if (rows % unit) return;
    desc->rows = rows;
    desc->row_unit = unit;
    desc->relations = same;
    desc->ordered = 1;
    desc->reduces = n->op == TRAINING_LOSS;
    desc->fixed = 0;  // it scales with the nodes of its region; what reduces is one number all the same
}

// Add a node of desc's name, unit, layer and needs that reads two nodes (below 0: none).
static inline tl_result training_add_op(tl_env *env, training_model *m, training_op op,
                                        tl_node_desc desc, int32_t from, int32_t from2,
                                        uint64_t in_width, uint64_t width) {
    uint64_t bytes = (op == TRAINING_LOSS ? 1 : m->size.B * m->size.T * width) * sizeof(float);
    int32_t id = m->graph.node_count;
    int is_f32 = op == TRAINING_INPUT_OP || op == TRAINING_LOSS || id == m->logits;
    training_node *n = &m->nodes[id];
    tl_tensor inputs[2];
    inputs[0].node = from;
    inputs[1].node = from2;
    inputs[0].output = inputs[1].output = 0;
    n->op = op;
    n->in_width = in_width;
    n->width = width;
    n->format = is_f32 ? TL_FORMAT_F32 : m->format;
    m->formats[id] = (uint8_t)n->format;
    bytes = tl_find_format_bytes(n->format, bytes);
    training_add_params(m, n);
    m->add_bytes(m, n, &desc);
    if (n->weight >= 0) desc.param_bytes = (m->param_count - m->params[n->weight].first) * sizeof(float);
    desc.op = training_op_names[op];
    desc.inputs = inputs;
    desc.input_count = (from >= 0) + (from2 >= 0);
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fwd_cost = m->node_ns ? m->node_ns[2 * id] : training_estimate_flops(m, n);
    desc.bwd_cost = m->node_ns ? m->node_ns[2 * id + 1] : 2 * desc.fwd_cost;
    desc.keep = id == (m->trains ? m->loss : m->logits);
    desc.fixed = op == TRAINING_LOSS;  // one number, however large the batch
    desc.takes_blocks = op == TRAINING_GELU || op == TRAINING_DROPOUT || op == TRAINING_ADD;
    training_add_rows(m, n, &desc);
    if (!m->trains && op != TRAINING_INPUT_OP) {  // forward only: nothing is there for backward
        desc.no_grad = 1;
        desc.needs = NULL;
        desc.bwd_cost = desc.saved_bytes = desc.bwork_bytes = 0;
    }
    return tl_add_node(env, &m->graph, &desc, NULL);
}

static inline tl_node_desc training_describe(const char *name, const char *needs) {
    tl_node_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.needs = needs;
    return desc;
}

// Add the nodes of a layer; *last is the node it reads, then the node with its result.
static inline tl_result training_add_layer(tl_env *env, training_model *m, int32_t layer,
                                           int32_t *last) {
    int32_t ids[TRAINING_ROWS], i;
    tl_result result = TL_OK;
    memset(ids, 0, sizeof ids);
    for (i = 0; i < TRAINING_ROWS && !result; i++) {
        const training_row *row = &training_rows[i];
        int32_t from = row->from == TRAINING_BEFORE ? *last : ids[row->from];
        int32_t from2 = row->from2 == TRAINING_NOTHING ? TRAINING_NOTHING : ids[row->from2];
        char name[32];
        tl_node_desc desc = training_describe(name, row->needs);
        if (row->op == TRAINING_DROPOUT && !m->trains) {
            ids[i] = from;
            continue;
        }
        ids[i] = m->graph.node_count;
        snprintf(name, sizeof name, "layer%d.%s", (int)layer, row->name);
        desc.unit = row->unit;
        desc.layer = layer + 1;
        result = training_add_op(env, m, row->op, desc, from, from2,
                                 (uint64_t)row->in_width * m->size.C,
                                 (uint64_t)row->width * m->size.C);
    }
    *last = ids[TRAINING_ROWS - 1];
    return result;
}

static inline void training_free_model(tl_env *env, training_model *m) {
    tl_free_graph(env, &m->graph);
    free(m->nodes);
    free(m->params);
    free(m->formats);
    free(m->tensors);
    m->nodes = NULL;
    m->params = NULL;
    m->formats = NULL;
    m->tensors = NULL;
}

static inline tl_result training_add_nodes(tl_env *env, training_model *m) {
    const training_dims *s = &m->size;
    const int32_t nothing = TRAINING_NOTHING;
    int32_t last, layer;
    tl_result result = training_add_op(env, m, TRAINING_INPUT_OP,  // int32, as wide as a float
                                       training_describe("tokens", NULL), nothing, nothing, 0, 1);
    m->tokens = 0;
    m->targets = m->graph.node_count;
    if (!result && m->trains)
        result = training_add_op(env, m, TRAINING_INPUT_OP, training_describe("targets", NULL),
                                 nothing, nothing, 0, 1);
    last = m->graph.node_count;
    if (!result)
        result = training_add_op(env, m, TRAINING_EMBED, training_describe("embed", "in"),
                                 m->tokens, nothing, 1, s->C);
    m->first_layer = m->graph.node_count;
    for (layer = 0; layer < (int32_t)s->L && !result; layer++)
        result = training_add_layer(env, m, layer, &last);
    if (!result)
        result = training_add_op(env, m, TRAINING_NORM, training_describe("norm", "in"), last,
                                 nothing, s->C, s->C);
    last = m->graph.node_count - 1;
    m->logits = last + 1;
    if (!result)
        result = training_add_op(env, m, TRAINING_LINEAR, training_describe("head", "in"), last,
                                 nothing, s->C, s->V);
    m->loss = m->graph.node_count;
    if (!result && m->trains)
        result = training_add_op(env, m, TRAINING_LOSS, training_describe("loss", "in"), m->logits,
                                 m->targets, s->V, 1);
    return result;
}

// Where the plain nodes are in a graph with states, and what formats its tensors have.
static inline tl_result training_renumber(training_model *m) {
    uint8_t *plain = m->formats;
    int32_t id, k, *ids[4], new_ids[4] = { 0, 0, 0, 0 };
    ids[0] = &m->tokens;
    ids[1] = &m->targets;
    ids[2] = &m->logits;
    ids[3] = &m->loss;
    m->formats = (uint8_t *)calloc((size_t)m->graph.tensor_count, 1);  // of states: f32
    if (!m->formats) {
        m->formats = plain;
        return TL_ERROR_NO_MEMORY;
    }
    for (id = 0; id < m->graph.node_count; id++) {
        const tl_node *node = &m->graph.nodes[id];
        if (node->state || node->origin < 0) continue;
        m->tensors[node->origin] = node->first_output;
        m->formats[node->first_output] = plain[node->origin];
        for (k = 0; k < 4; k++)
            if (node->origin == *ids[k]) new_ids[k] = id;
    }
    for (k = 0; k < 4; k++) *ids[k] = new_ids[k];
    free(plain);
    return TL_OK;
}

// Make the weights of every node a state, weight before bias, which the node reads as its last input.
static inline tl_result training_own_weights(tl_env *env, training_model *m) {
    tl_optimizer_desc desc;
    tl_graph owned;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = &m->graph;
    desc.op = "adamw";
    desc.moment_count = 2;
    desc.updates = m->updates;
    desc.clips = m->clips;
    desc.bytes_per_second = m->update_rate ? m->update_rate : 1000000000;
    result = tl_apply_optimizer(env, &desc, &owned);
    if (result) return result;
    tl_free_graph(env, &m->graph);
    m->graph = owned;
    result = m->holds_gradients ? tl_hold_gradients(env, &m->graph) : TL_OK;
    return result ? result : training_renumber(m);
}

// Build the graph of what was set; release with training_free_model.
static inline tl_result training_build_model(tl_env *env, training_model *m) {
    size_t node_max = (size_t)m->size.L * TRAINING_ROWS + 6;
    int32_t id;
    tl_result result;
    m->nodes = (training_node *)calloc(node_max, sizeof *m->nodes);
    m->params = (training_param *)calloc(2 * node_max, sizeof *m->params);
    m->formats = (uint8_t *)calloc(node_max, 1);
    m->tensors = (int32_t *)calloc(node_max, sizeof *m->tensors);
    m->param_kinds = 0;
    m->param_count = 0;
    m->logits = m->loss = -1;
    tl_init_graph(&m->graph);
    if (!m->nodes || !m->params || !m->formats || !m->tensors) return TL_ERROR_NO_MEMORY;
    m->graph.batch = m->size.B;
    result = training_add_nodes(env, m);
    m->node_count = m->graph.node_count;
    for (id = 0; id < m->node_count; id++) m->tensors[id] = id;  // every plain node has one output
    if (!result && m->owns_weights) result = training_own_weights(env, m);
    return result ? result : tl_check_graph(env, &m->graph);
}

// Weights, gradients and both moments of AdamW: what stands beside every plan, unless the graph owns them.
static inline uint64_t training_base_bytes(const training_model *m) {
    return m->owns_weights ? 0 : 4 * sizeof(float) * m->param_count;
}

static inline void training_print_network(const training_model *m, uint64_t micro_batches) {
    const training_dims *s = &m->size;
    uint64_t base = training_base_bytes(m), weights = 0;
    char batch[32] = "";
    int32_t i;
    for (i = 0; i < m->param_kinds; i++) weights += m->params[i].count;
    if (micro_batches) snprintf(batch, sizeof batch, "%d x ", (int)micro_batches);
    printf("network    %d layers, %d channels, %d heads, context %d, batch %s%d: %llu weights\n",
           (int)s->L, (int)s->C, (int)(s->C / TRAINING_HEAD), (int)s->T, batch, (int)s->B,
           (unsigned long long)weights);
    if (m->owns_weights) {
        uint64_t states = 3 * sizeof(float) * m->param_count;
        printf("states     %llu bytes (%.2f MiB) within every row: weights 1/3, AdamW 2/3; gradients live until"
               " the update\n", (unsigned long long)states, training_mib(states));
    } else {
        printf("base       %llu bytes (%.2f MiB) beside every row: weights 1/4, gradients 1/4,"
               " AdamW 1/2\n", (unsigned long long)base, training_mib(base));
    }
    fflush(stdout);
}

// The numbers that every training starts with, from the seed: [param_count].
static inline void training_fill_params(const training_model *m, uint64_t seed, float *floats) {
    int32_t i;
    for (i = 0; i < m->param_kinds; i++) {
        const training_param *p = &m->params[i];
        float *at = floats + p->first;
        uint64_t k;
        nn_fill_normal(at, (size_t)p->count, p->deviation, tl_mix_u64(seed, (uint64_t)i));
        for (k = 0; k < p->count; k++) at[k] += p->mean;
    }
}

// -- regions of rows: a model whose nodes go over the batch block by block --

static inline void training_free_regions(tl_env *env, training_regions *regions) {
    tl_free_rows_plan(env, &regions->rows);
    free(regions->nodes);
    regions->nodes = NULL;
}

// The graph that plans of a model are of.
static inline const tl_graph *training_planned_graph(const training_model *m) {
    return m->regions.rows.memory ? &m->regions.rows.graph : &m->graph;
}

// The node of the model's graph that a node of the planned one is; of a region the last, whose name it has.
static inline int32_t training_find_last(const training_model *m, int32_t id) {
    return m->regions.rows.memory && id >= 0 ? m->regions.nodes[id] : id;
}

static inline int32_t training_count_members(const training_model *m, int32_t id) {
    const tl_rows_plan *rows = &m->regions.rows;
    return rows->memory ? rows->first_members[id + 1] - rows->first_members[id] : 0;
}

// All blocks of all regions.
static inline uint64_t training_count_blocks(const training_model *m) {
    uint64_t count = 0;
    int32_t id;
    for (id = 0; id < training_planned_graph(m)->node_count; id++) {
        const tl_row_member *member = m->regions.rows.members;
        if (!training_count_members(m, id)) continue;
        member += m->regions.rows.first_members[id];
        count += (member->rows - 1) / member->block_rows + 1;
    }
    return count;
}

// Cut a model into the regions of a choice.
static inline tl_result training_cut_rows(tl_env *env, const training_model *m, const tl_rows_choice *choice,
                                          training_regions *regions) {
    tl_cut_desc desc;
    tl_result result;
    int32_t id;
    memset(&desc, 0, sizeof desc);
    desc.graph = &m->graph;
    desc.cuts = choice->cuts;
    desc.cut_count = choice->cut_count;
    desc.alignment_bytes = m->alignment_bytes;
    desc.call_cost = m->call_cost;
    result = tl_cut_rows(env, &desc, &regions->rows);
    if (result) return result;
    regions->nodes = (int32_t *)calloc((size_t)m->graph.node_count, sizeof *regions->nodes);
    for (id = 0; regions->nodes && id < m->graph.node_count; id++) regions->nodes[regions->rows.nodes[id]] = id;
    return regions->nodes ? TL_OK : TL_ERROR_NO_MEMORY;
}

// The member of the model's graph that a turn of a region calls.
static inline int32_t training_find_turn(const training_model *m, int32_t region, int32_t turn) {
    const tl_rows_plan *rows = &m->regions.rows;
    return rows->members[rows->first_members[region] + rows->turns[turn].member].node;
}

enum { TRAINING_BLOCKS = 8 };     // of a region in which calls are measured

// A model with the graph of another one, in which the feed-forward parts of all layers, which are alike, are
// cut into a few blocks: what a further call costs is measured there. The regions alone belong to it.
static inline tl_result training_cut_feed_forward(tl_env *env, const training_model *m, training_model *cut) {
    int32_t k, count = (int32_t)m->size.L;
    tl_row_cut *cuts = (tl_row_cut *)calloc((size_t)count, sizeof *cuts);
    tl_rows_choice choice;
    tl_result result = cuts ? TL_OK : TL_ERROR_NO_MEMORY;
    memset(&choice, 0, sizeof choice);
    *cut = *m;
    for (k = 0; k < count && !result; k++) {
        const int32_t *tensors = m->tensors + m->first_layer + k * TRAINING_ROWS;
        cuts[k].first = m->graph.outputs[tensors[TRAINING_FFN]].node;
        cuts[k].last = m->graph.outputs[tensors[TRAINING_ROWS - 1]].node;
        cuts[k].block_count = TRAINING_BLOCKS;
    }
    choice.cuts = cuts;
    choice.cut_count = count;
    if (!result) result = training_cut_rows(env, m, &choice, &cut->regions);
    free(cuts);
    return result;
}

// The cost of a further call, from the times of the nodes of a step without regions, and what a step without
// and with them takes as a whole. The second makes some forwards again, once. 0 = none shows.
static inline uint64_t training_measure_rows(const training_model *cut, const uint64_t *times, uint64_t whole,
                                             uint64_t in_rows) {
    const tl_rows_plan *rows = &cut->regions.rows;
    uint64_t calls = 0;
    int32_t id, k;
    for (id = 0; id < rows->graph.node_count; id++) {
        const tl_row_member *member = rows->members + rows->first_members[id];
        int32_t first = rows->first_turns[id];
        if (!training_count_members(cut, id)) continue;
        for (k = first; k < rows->first_turns[id + 1]; k++) {
            int is_again = k >= first + rows->forward_turns[id] && rows->turns[k].kind != TL_STEP_BACKWARD;
            if (is_again) whole += times[training_find_cost_slot(cut, training_find_turn(cut, id, k), 0)];
            calls += (member->rows - 1) / member->block_rows;
        }
    }
    return calls > 0 && in_rows > whole ? (in_rows - whole) / calls : 0;
}

// -- text --

typedef struct training_text {
    uint8_t *ids;                 // [length] the file, as token numbers
    size_t   length;
    int      V;                   // how many different tokens there are
    uint8_t  is_used[256];        // 1 = this byte is a token
    uint8_t  id_of[256], byte_of[256];
    char     path[512];
} training_text;

// Read a whole file; *data is for the caller to free.
static inline int training_read_file(const char *path, const char *what, uint8_t **data,
                                     size_t *length) {
    FILE *file = fopen(path, "rb");
    size_t capacity = (size_t)1 << 16, got = 1;
    int error;
    *length = 0;
    *data = NULL;
    if (!file) return training_fail(TRAINING_INPUT, "%s %s: %s", what, path, strerror(errno));
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
        return training_fail(TRAINING_INPUT, "%s %s: %s", what, path,
                             got ? "no memory for all of it" : strerror(error));
    }
    fclose(file);
    return TRAINING_OK;
}

// The text trained on by default: below this directory, or beside that of the program.
static inline void training_find_text(const char *program, char *path, size_t size) {
    const char *name = "examples/training_text.txt", *slash = strrchr(program, '/');
    FILE *file;
    snprintf(path, size, "%s", name);
    file = fopen(path, "rb");
    if (!file && slash) snprintf(path, size, "%.*s/../%s", (int)(slash - program), program, name);
    if (file) fclose(file);
}

static inline void training_number_tokens(training_text *t) {
    int byte;
    t->V = 0;
    for (byte = 0; byte < 256; byte++) {
        if (!t->is_used[byte]) continue;
        t->byte_of[t->V] = (uint8_t)byte;
        t->id_of[byte] = (uint8_t)t->V++;
    }
}

// Read the text at path, or the one of the examples. vocabulary: the [256] tokens of loaded
// weights, NULL = whatever bytes the text has.
static inline int training_read_text(const char *path, const char *program, uint64_t context,
                                     const uint8_t *vocabulary, training_text *t) {
    size_t i, window = (size_t)context + 1;
    int code;
    if (path) snprintf(t->path, sizeof t->path, "%s", path);
    else training_find_text(program, t->path, sizeof t->path);
    code = training_read_file(t->path, "text", &t->ids, &t->length);
    if (code) return code;
    if (!t->length) return training_fail(TRAINING_INPUT, "text %s: is empty", t->path);
    if (memchr(t->ids, 0, t->length))
        return training_fail(TRAINING_INPUT, "text %s: is binary, it has zero bytes", t->path);
    if (t->length < window)
        return training_fail(TRAINING_INPUT,
                             "text %s: %zu bytes, but one window (--context + 1) takes %zu",
                             t->path, t->length, window);
    if (vocabulary) memcpy(t->is_used, vocabulary, sizeof t->is_used);
    for (i = 0; i < t->length && !vocabulary; i++) t->is_used[t->ids[i]] = 1;
    training_number_tokens(t);
    for (i = 0; i < t->length; i++) {
        if (!t->is_used[t->ids[i]])
            return training_fail(TRAINING_INPUT,
                                 "text %s: byte %d at %zu is unknown to the weights of --load",
                                 t->path, t->ids[i], i);
        t->ids[i] = t->id_of[t->ids[i]];
    }
    return TRAINING_OK;
}

static inline void training_print_text(const training_text *t) {
    printf("text       %s: %zu bytes, %d different ones\n", t->path, t->length, t->V);
}

// Fill the window of a micro-batch: [2][B T] tokens and targets. Where the sequences begin depends on
// the seed and on their numbers, from first on, alone.
static inline void training_draw_window(const training_model *m, const training_text *t,
                                        uint64_t seed, uint64_t first, int32_t *window) {
    const training_dims *s = &m->size;
    uint64_t b, k, rows = s->B * s->T, places = t->length - s->T;
    for (b = 0; b < s->B; b++) {
        const uint8_t *at = t->ids + nn_hash(seed ^ 0x74657874u, first + b) % places;
        for (k = 0; k < s->T; k++) {
            window[b * s->T + k] = at[k];
            window[rows + b * s->T + k] = at[k + 1];
        }
    }
}

// The same, and write both into the run.
static inline tl_result training_load_window(const training_model *m, const training_text *t,
                                             tl_run *run, uint64_t seed, uint64_t first,
                                             int32_t *window) {
    uint64_t rows = m->size.B * m->size.T;
    tl_tensor tokens = { 0, 0 }, targets = { 0, 0 };
    tl_result result;
    tokens.node = m->tokens;
    targets.node = m->targets;
    training_draw_window(m, t, seed, first, window);
    result = tl_write_tensor(run, tokens, window, rows * sizeof(int32_t));
    return result ? result : tl_write_tensor(run, targets, window + rows, rows * sizeof(int32_t));
}

// -- layer-wise plans: the cheapest within a budget --
//
// Every candidate is simulated, and the cheapest that fits wins. The candidates are: keep all;
// checkpoint configs, that is uniform intervals 1 to L with the inner activations of attention and
// of ffn kept or dropped, and dynamic; kept sets: a layer has 9 tensors that can be kept for
// backward, so each of the 2^9 choices, in the first layers or in all; and from the best of these,
// single tensors kept again, the most expensive first, while that fits. It is the first layers that
// are thinned out because backward comes to them last, when the memory above is free again.

typedef struct training_search {
    const training_model *m;
    uint64_t budget;              // for what the plan holds
    uint64_t keep_all_bytes;      // peak of keep all
    tl_plan  best;                // steps 0 = none fits
    tl_plan  least;               // least peak of all but the best
    uint8_t *keep, *best_keep;    // [tensor_count] being tried; of the best kept set
    uint64_t best_keep_cost;      // of that; 0 = none fits
} training_search;

static inline void training_swap_plans(tl_plan *a, tl_plan *b) {
    tl_plan plan = *a;
    *a = *b;
    *b = plan;
}

enum { TRAINING_PLACE_WORK = 1000000 };  // steps of a layout: milliseconds

// Give a plan its places in an arena, which is what a run takes.
static inline tl_result training_place(tl_env *env, const training_model *m, tl_plan *plan) {
    tl_places_desc desc;
    tl_device device;
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    device.alignment_bytes = m->alignment_bytes;
    desc.graph = &m->graph;
    desc.device = &device;
    desc.work_limit = TRAINING_PLACE_WORK;
    return tl_plan_places(env, &desc, plan, NULL);
}

// Look at a plan: where its arena fits it becomes the best, or it becomes the least, or is freed.
static inline tl_result training_consider(tl_env *env, training_search *s, tl_plan *plan) {
    int may_be_best = plan->peak_bytes <= s->budget && (!s->best.steps || plan->cost < s->best.cost);
    int may_be_least = plan->steps && (!s->least.steps || plan->peak_bytes < s->least.arena_bytes);
    tl_result result = may_be_best || may_be_least ? training_place(env, s->m, plan) : TL_OK;
    if (!result && may_be_best && plan->arena_bytes <= s->budget) training_swap_plans(&s->best, plan);
    if (!result && plan->arena_bytes && (!s->least.steps || plan->arena_bytes < s->least.arena_bytes))
        training_swap_plans(&s->least, plan);
    tl_free_plan(env, plan);
    return result;
}

static inline tl_result training_consider_config(tl_env *env, training_search *s,
                                                 const tl_checkpoint_config *config) {
    tl_plan plan;
    tl_result result = tl_plan_checkpoints(env, &s->m->graph, config, &plan);
    if (result == TL_ERROR_INFEASIBLE) return TL_OK;
    return result ? result : training_consider(env, s, &plan);
}

static inline tl_result training_consider_kept_set(tl_env *env, training_search *s, int *fits) {
    tl_plan plan;
    tl_result result = tl_plan_kept_set(env, &s->m->graph, s->keep, &plan);
    if (result) return result;
    *fits = plan.peak_bytes <= s->budget;
    if (*fits && (!s->best_keep_cost || plan.cost < s->best_keep_cost)) {
        s->best_keep_cost = plan.cost;
        memcpy(s->best_keep, s->keep, (size_t)s->m->graph.tensor_count);
    }
    return training_consider(env, s, &plan);
}

static inline tl_result training_consider_configs(tl_env *env, training_search *s) {
    tl_checkpoint_config config;
    uint64_t interval;
    int flags;
    double fraction = (double)s->budget / (double)s->keep_all_bytes;
    tl_result result = TL_OK;
    for (interval = 1; interval <= s->m->size.L && !result; interval++) {
        for (flags = 0; flags < 4 && !result; flags++) {
            config = tl_checkpoint_uniform(interval);
            config = tl_with_checkpoint_attention(config, flags & 1);
            config = tl_with_checkpoint_ffn(config, flags >> 1);
            result = training_consider_config(env, s, &config);
        }
    }
    if (!result && fraction < 1.0) {
        result = tl_checkpoint_dynamic(env, s->m->size.L, fraction, &config);
        if (!result) result = training_consider_config(env, s, &config);
    }
    return result;
}

// Drop in the first `layers` layers what the subset does not name.
static inline void training_set_kept(training_search *s, uint32_t subset, uint64_t layers) {
    uint64_t layer;
    int row, choice;
    memset(s->keep, 1, (size_t)s->m->graph.tensor_count);
    for (layer = 0; layer < layers; layer++) {
        const int32_t *tensors = s->m->tensors + (uint64_t)s->m->first_layer + layer * TRAINING_ROWS;
        for (row = choice = 0; row < TRAINING_ROWS; row++)
            if (training_rows[row].is_choice) s->keep[tensors[row]] = (uint8_t)(subset >> choice++ & 1);
    }
}

static inline tl_result training_consider_kept_sets(tl_env *env, training_search *s) {
    uint64_t part, L = s->m->size.L, parts = L < 8 ? L : 8;
    uint32_t subset;
    int fits = 0;
    tl_result result = TL_OK;
    for (subset = 0; subset + 1 < 1u << TRAINING_CHOICES && !result; subset++) {
        for (part = 1; part <= parts && !result; part++) {
            training_set_kept(s, subset, L * part / parts);
            result = training_consider_kept_set(env, s, &fits);
        }
    }
    return result;
}

// From the best kept set on: keep single tensors again, the most expensive one that fits each time.
static inline tl_result training_refine_kept_set(tl_env *env, training_search *s) {
    const tl_graph *graph = &s->m->graph;
    tl_result result = TL_OK;
    uint64_t below = UINT64_MAX;
    if (!s->best_keep_cost) return TL_OK;
    memcpy(s->keep, s->best_keep, (size_t)graph->tensor_count);
    while (!result) {
        int32_t i, next = -1;
        int fits = 0;
        for (i = 0; i < graph->tensor_count; i++) {
            uint64_t cost = graph->nodes[graph->outputs[i].node].fwd_cost;
            if (s->keep[i] || cost >= below) continue;
            if (next < 0 || cost > graph->nodes[graph->outputs[next].node].fwd_cost) next = i;
        }
        if (next < 0) break;
        below = graph->nodes[graph->outputs[next].node].fwd_cost;
        s->keep[next] = 1;
        result = training_consider_kept_set(env, s, &fits);
        if (!fits) s->keep[next] = 0;
    }
    return result;
}

static inline void training_free_search(tl_env *env, training_search *s) {
    tl_free_plan(env, &s->best);
    tl_free_plan(env, &s->least);
    free(s->keep);
    free(s->best_keep);
    memset(s, 0, sizeof *s);
}

// Find the cheapest plan within a budget; s->best has no steps where none fits. What the caller
// does not take out of it goes with training_free_search, which is due in any case.
static inline tl_result training_search_layers(tl_env *env, const training_model *m,
                                               uint64_t budget, training_search *s) {
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
    if (result) return result;
    s->keep_all_bytes = plan.peak_bytes;
    result = training_consider(env, s, &plan);
    if (!result) result = training_consider_configs(env, s);
    if (!result) result = training_consider_kept_sets(env, s);
    if (!result) result = training_refine_kept_set(env, s);
    return result;
}

// -- plans: of each kind, within a budget or within the least --

typedef enum training_kind {
    TRAINING_LAYERS, TRAINING_GRAPH, TRAINING_REGIONS, TRAINING_KIND_COUNT
} training_kind;

enum {
    TRAINING_WORK = 200000000,    // steps of the graph's planner: half a second
    TRAINING_ROWS_WORK = TRAINING_WORK / 4  // of each graph with regions
};

static const char *const training_kind_names[TRAINING_KIND_COUNT] = { "layers", "graph", "rows" };

typedef struct training_found {
    tl_plan  plan;                // belongs to the caller; steps 0 = none fits the budget
    training_regions regions;     // of TRAINING_REGIONS: belongs to the caller; what the plan is of
    uint64_t least_bytes;         // then: a plan takes at least so many, as far as is known
    int32_t  least_node;          // and peaks at this node
    double   gap_ratio;           // graph: no plan costs less than cost / (1 + this)
} training_found;

static inline int32_t training_find_peak_node(tl_env *env, const training_model *m,
                                              const tl_plan *plan) {
    tl_simulate_desc desc;
    tl_report report;
    memset(&desc, 0, sizeof desc);
    desc.graph = &m->graph;
    desc.plan = plan;
    if (tl_simulate_plan(env, &desc, &report) || report.peak_step < 0) return -1;
    return plan->steps[report.peak_step].node;
}

static inline tl_result training_find_layers(tl_env *env, const training_model *m, uint64_t budget,
                                             training_found *found) {
    training_search s;
    tl_result result = training_search_layers(env, m, budget, &s);
    if (!result) {
        training_swap_plans(&found->plan, &s.best);
        found->least_bytes = s.least.arena_bytes;
        if (s.least.steps) found->least_node = training_find_peak_node(env, m, &s.least);
    }
    training_free_search(env, &s);
    return result;
}

static inline tl_remat_desc training_ask(const training_model *m, const tl_graph *graph, uint64_t budget,
                                         uint64_t work) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = budget;
    desc.work_limit = work;
    desc.alignment_bytes = m->alignment_bytes;
    return desc;
}

// The graph's nodes are fine enough to choose from: every tensor is one.
static inline tl_result training_find_graph(tl_env *env, const training_model *m, uint64_t budget,
                                            training_found *found) {
    tl_remat_desc desc = training_ask(m, &m->graph, budget, TRAINING_WORK);
    tl_remat_report report;
    tl_result result = tl_plan_remat(env, &desc, &found->plan, &report);
    found->least_bytes = report.least_budget_bytes;
    found->least_node = report.limiting_node;
    found->gap_ratio = report.gap_ratio;
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

// Choose which regions of a model are cut for a budget; where none fits, those of the least.
static inline tl_result training_choose_rows(tl_env *env, const training_model *m, uint64_t budget,
                                             tl_rows_choice *choice) {
    tl_remat_desc desc = training_ask(m, &m->graph, budget, TRAINING_ROWS_WORK);
    tl_cut_desc cut;
    tl_result result;
    memset(&cut, 0, sizeof cut);
    cut.alignment_bytes = m->alignment_bytes;
    cut.call_cost = m->call_cost;
    result = tl_choose_rows(env, &desc, &cut, choice);
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

// Plan a model in which the regions of a choice are cut.
static inline tl_result training_plan_rows(tl_env *env, const training_model *m, uint64_t budget,
                                           const tl_rows_choice *choice, training_found *found) {
    training_model cut = *m;
    tl_remat_desc desc;
    tl_remat_report report;
    tl_result result = training_cut_rows(env, m, choice, &found->regions);
    if (result) return result;
    cut.regions = found->regions;
    desc = training_ask(m, &found->regions.rows.graph, budget, TRAINING_ROWS_WORK);
    result = tl_plan_remat(env, &desc, &found->plan, &report);
    found->least_bytes = report.least_budget_bytes;
    found->least_node = training_find_last(&cut, report.limiting_node);
    found->gap_ratio = -1.0;
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

static inline tl_result training_find_rows(tl_env *env, const training_model *m, uint64_t budget,
                                           training_found *found) {
    tl_rows_choice choice;
    tl_result result = training_choose_rows(env, m, budget, &choice);
    if (!result) result = training_plan_rows(env, m, budget, &choice, found);
    tl_free_rows_choice(env, &choice);
    if (result || !found->plan.steps) training_free_regions(env, &found->regions);
    return result;
}

// Find the cheapest plan of a kind within so many bytes (> 0) of activations.
static inline tl_result training_find_plan(tl_env *env, const training_model *m, training_kind kind,
                                           uint64_t budget, training_found *found) {
    memset(found, 0, sizeof *found);
    return kind == TRAINING_GRAPH ? training_find_graph(env, m, budget, found)
         : kind == TRAINING_REGIONS ? training_find_rows(env, m, budget, found)
                                    : training_find_layers(env, m, budget, found);
}

// What the layers can do shows only by trying: what a search at one budget comes by may have a
// lower peak than anything that another one sees.
static inline tl_result training_find_least_layers(tl_env *env, const training_model *m,
                                                   uint64_t keep_all_bytes, tl_plan *plan) {
    uint64_t percent;
    tl_result result = TL_OK;
    for (percent = 5; percent <= 100 && !result; percent += 5) {
        training_search s;
        result = training_search_layers(env, m, keep_all_bytes / 100 * percent, &s);
        if (s.best.steps && (!plan->steps || s.best.arena_bytes < plan->arena_bytes))
            training_swap_plans(plan, &s.best);
        if (s.least.steps && (!plan->steps || s.least.arena_bytes < plan->arena_bytes))
            training_swap_plans(plan, &s.least);
        training_free_search(env, &s);
    }
    return result;
}

// What does not fit names a budget that does.
static inline tl_result training_find_least_rows(tl_env *env, const training_model *m, training_found *found) {
    tl_rows_choice choice;
    tl_result result = training_choose_rows(env, m, 1, &choice);
    found->least_bytes = choice.report.least_budget_bytes;
    while (!result && !found->plan.steps) {
        training_free_regions(env, &found->regions);
        result = training_plan_rows(env, m, found->least_bytes, &choice, found);
    }
    tl_free_rows_choice(env, &choice);
    return result;
}

// Find a plan of a kind within the fewest bytes that it is known to work with.
static inline tl_result training_find_least(tl_env *env, const training_model *m,
                                            training_kind kind, uint64_t keep_all_bytes,
                                            training_found *found) {
    uint64_t budget = 1;
    tl_result result = TL_OK;
    memset(found, 0, sizeof *found);
    if (kind == TRAINING_LAYERS)
        return training_find_least_layers(env, m, keep_all_bytes, &found->plan);
    if (kind == TRAINING_REGIONS) return training_find_least_rows(env, m, found);
    while (!result && !found->plan.steps) {  // what does not fit names a budget that does
        result = training_find_graph(env, m, budget, found);
        budget = found->least_bytes;
    }
    return result;
}

// What a row of the table is to be.
typedef struct training_goal {
    training_kind kind;
    unsigned      percent;        // of the keep-all peak; 0 = the least
    uint64_t      keep_all_bytes;
} training_goal;

// Find the plan of a row: within its share of the keep-all peak, or within the least where that is
// more. label: 16 characters and more. *is_least is 1 then.
static inline tl_result training_find_row(tl_env *env, const training_model *m,
                                          const training_goal *goal, training_found *found,
                                          uint64_t *budget, char *label, int *is_least) {
    tl_result result = TL_OK;
    memset(found, 0, sizeof *found);
    *budget = goal->keep_all_bytes / 100 * goal->percent;
    if (*budget) result = training_find_plan(env, m, goal->kind, *budget, found);
    *is_least = !found->plan.steps;
    snprintf(label, 16, "%u %% %s", goal->percent % 1000, training_kind_names[goal->kind]);
    if (result || !*is_least) return result;
    snprintf(label, 16, "least %s", training_kind_names[goal->kind]);
    result = training_find_least(env, m, goal->kind, goal->keep_all_bytes, found);
    *budget = found->plan.arena_bytes;
    return result;
}

// -- costs: what was measured, node by node --

// The cost of all updates of a step, with the node that clips.
static inline uint64_t training_update_cost(const training_model *m) {
    uint64_t cost = 0;
    int32_t id;
    for (id = 0; id < m->graph.node_count; id++)
        if (m->graph.nodes[id].state || m->graph.nodes[id].origin < 0) cost += m->graph.nodes[id].bwd_cost;
    return cost;
}

// Print the costs that plans are made from: what the nodes of each op take in one micro-batch.
static inline void training_print_costs(const training_model *m) {
    double forward[TRAINING_OP_COUNT] = { 0.0 }, backward[TRAINING_OP_COUNT] = { 0.0 };
    int32_t id;
    int op;
    for (id = 0; id < m->graph.node_count; id++) {
        const tl_node *node = &m->graph.nodes[id];
        if (node->state || node->origin < 0) continue;
        forward[training_node_of(m, id)->op] += (double)node->fwd_cost * 1e-3;
        backward[training_node_of(m, id)->op] += (double)node->bwd_cost * 1e-3;
    }
    printf("costs      forward + backward of all nodes of an op, %s:",
           m->node_ns ? "measured, in us" : "estimated, in kFLOP");
    for (op = 1; op < TRAINING_OP_COUNT; op++)
        printf("%s %s %.0f + %.0f", op == 1 ? "\n          " : op == 5 ? ",\n          " : ",",
               training_op_names[op], forward[op], backward[op]);
    if (m->owns_weights) printf(", updates %.0f", (double)training_update_cost(m) * 1e-3);
    printf("\n");
    fflush(stdout);
}

// Print how far a plan of the graph can be from the best there is; *count = those printed.
// gap_ratio < 0 = not known. training_end_gaps ends the sentence.
static inline void training_print_gap(double gap_ratio, int32_t *count) {
    if (gap_ratio < 0.0) return;
    printf("%s %.2f %%", (*count)++ ? "," : "graph: costs at most", 100.0 * gap_ratio);
}

static inline void training_end_gaps(int32_t count) {
    if (count) printf(" more than any plan within these bytes must\n");
}

// -- training --

// Learning rate: up to its top within 50 steps, then down with the fourth root.
static inline float training_rate(uint64_t step) {
    float top = 8e-3f, warm = 50.0f, n = (float)(step + 1);
    return n < warm ? top * n / warm : top * sqrtf(sqrtf(warm / n));
}

// The median over the rounds; 0 where there is no memory for it.
static inline double training_find_median(const uint64_t *values, size_t count) {
    uint64_t *sorted = (uint64_t *)malloc(count * sizeof *sorted), median;
    if (!sorted || !count) {
        free(sorted);
        return 0.0;
    }
    memcpy(sorted, values, count * sizeof *sorted);
    median = training_find_quantile(sorted, count, 1, 2);
    free(sorted);
    return (double)median;
}

// The median over the rounds of the ratios to others.
static inline double training_find_ratio(const uint64_t *values, const uint64_t *others,
                                         size_t count) {
    uint64_t *ratios = (uint64_t *)malloc(count * sizeof *ratios);
    double ratio;
    size_t i;
    if (!ratios) return 0.0;
    for (i = 0; i < count; i++) ratios[i] = (uint64_t)(1e6 * (double)values[i] / (double)others[i]);
    ratio = training_find_median(ratios, count) * 1e-6;
    free(ratios);
    return ratio;
}

// -- progress --

typedef struct training_progress {
    uint64_t shown_ns;            // of the last line
    int      terminal;            // 1 = stderr is one
} training_progress;

static inline void training_show_progress(training_progress *p, const char *what, uint64_t step,
                                          double loss, double left_s) {
    uint64_t now = training_wall_ns();
    if (now - p->shown_ns < (p->terminal ? 100000000u : 5000000000u)) return;
    p->shown_ns = now;
    fprintf(stderr, "%s%s: step %llu, loss %.4g, %.0f s left%s", p->terminal ? "\r" : "", what,
            (unsigned long long)step, loss, left_s, p->terminal ? "   " : "\n");
    fflush(stderr);
}

static inline void training_clear_progress(const training_progress *p) {
    if (p->terminal) fprintf(stderr, "\r%60s\r", "");
}

// -- options --

// An option: with a number between two bounds, with a text, or with no value.
typedef struct training_option {
    const char  *name;
    uint64_t     least, most;
    uint64_t    *number;          // NULL = a text
    const char **text;            // NULL, too = no value
    int         *given;           // set to 1; may be NULL
} training_option;

// Read a whole number of an option between two bounds.
static inline int training_parse_number(const training_option *option, const char *value) {
    const char *at = value;
    uint64_t number = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (number > (UINT64_MAX - digit) / 10) break;
        number = number * 10 + digit;
    }
    *option->number = number;
    if (at != value && !*at && number >= option->least && number <= option->most)
        return TRAINING_OK;
    return training_fail(TRAINING_INPUT, "%s %s: must be a whole number from %llu to %llu",
                         option->name, value, (unsigned long long)option->least,
                         (unsigned long long)option->most);
}

// How many arguments an option takes, itself included; 0 = there is no such option. *code says whether its value
// was right.
static inline int training_parse_option(const training_option *options, size_t count,
                                        const char *name, const char *value, int *code) {
    size_t i;
    for (i = 0; i < count && strcmp(name, options[i].name) != 0; i++) { }
    if (i == count) return 0;
    if (options[i].given) *options[i].given = 1;
    if (options[i].number && !value) {
        *code = training_fail(TRAINING_INPUT, "%s: a number must follow", name);
    } else if (options[i].number) {
        *code = training_parse_number(&options[i], value);
    } else if (options[i].text) {
        *options[i].text = value;
        *code = value && *value ? TRAINING_OK
                                : training_fail(TRAINING_INPUT, "%s: a value must follow", name);
    } else {
        return 1;
    }
    return 2;
}

// Read a command line. *done is 1 after --help, which prints the usage.
static inline int training_parse_options(const training_option *options, size_t count, const char *usage,
                                         int argument_count, char **arguments, int *done) {
    int i, taken, code = TRAINING_OK;
    *done = 0;
    for (i = 1; i < argument_count && !code; i += taken) {
        const char *value = i + 1 < argument_count ? arguments[i + 1] : NULL;
        if (strcmp(arguments[i], "--help") == 0) {
            *done = 1;
            fputs(usage, stdout);
            return TRAINING_OK;
        }
        taken = training_parse_option(options, count, arguments[i], value, &code);
        if (!taken) return training_fail(TRAINING_INPUT, "%s: unknown option; --help lists them", arguments[i]);
    }
    return code;
}

// Whether --quick is among the arguments: other defaults hold then.
static inline int training_is_quick(int argument_count, char **arguments) {
    int i;
    for (i = 1; i < argument_count && strcmp(arguments[i], "--quick") != 0; i++) { }
    return i < argument_count;
}

static inline int training_check_multiple(const char *name, uint64_t value, int of) {
    if (value % (uint64_t)of == 0) return TRAINING_OK;
    return training_fail(TRAINING_INPUT, "%s %d: must be a multiple of %d", name, (int)value, of);
}

// Read --plan: which kinds the table has; NULL = all. kinds: [TRAINING_KIND_COUNT] 1 = wanted.
static inline int training_parse_plan(const char *value, int *kinds) {
    int kind, found = value && strcmp(value, "none") == 0;
    for (kind = 0; kind < TRAINING_KIND_COUNT; kind++) {
        kinds[kind] = !value || strcmp(value, "all") == 0 ||
                      strcmp(value, training_kind_names[kind]) == 0;
        found |= kinds[kind];
    }
    if (found) return TRAINING_OK;
    return training_fail(TRAINING_INPUT, "--plan %s: must be layers, graph, rows, all or none", value);
}

// -- files --

// Make a directory and those above it; what cannot be made shows when a file is written.
static inline void training_make_directory(const char *path) {
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

// What a program draws at its end.
typedef struct training_pictures {
    const tl_memory_curve *curves;  // [count]
    int32_t                count;
    tl_svg_style           style;
    const tl_trace        *trace;
    const tl_graph        *graph;
} training_pictures;

// Write one file of a directory through a sink: the memory, or the trace.
static inline int training_write_picture(tl_env *env, const training_pictures *pictures,
                                         const char *directory, const char *name, int is_trace) {
    char path[460];
    tl_file_sink file;
    tl_sink sink;
    tl_result result;
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return training_fail(TRAINING_INPUT, "%s: the name is too long", name);
    result = tl_init_file_sink(env, path, &file, &sink);
    if (!result) {
        result = is_trace ? tl_write_trace_json(env, pictures->trace, pictures->graph, sink)
                          : tl_write_memory_svg(env, pictures->curves, pictures->count,
                                                &pictures->style, sink);
        result = tl_finish_file_sink(env, &file, result);
    }
    return result ? training_fail(TRAINING_INPUT, "%s: not written: %s", path, env->error.text)
                  : TRAINING_OK;
}

// Write memory.svg and trace.json.
static inline int training_write_pictures(tl_env *env, const training_pictures *pictures,
                                          const char *directory) {
    int32_t dropped = 0;
    int svg, trace;
    training_make_directory(directory);
    svg = training_write_picture(env, pictures, directory, "memory.svg", 0);
    trace = training_write_picture(env, pictures, directory, "trace.json", 1);
    if (!svg && !trace)
        printf("wrote %s/memory.svg and %s/trace.json\n", directory, directory);
    tl_measure_trace(pictures->trace, NULL, &dropped);
    if (dropped) printf("the trace had no room for %d more steps\n", (int)dropped);
    return svg ? svg : trace;
}

// What standard output could not take is a failure, too.
static inline int training_finish(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    return code ? code
                : training_fail(TRAINING_INPUT, "standard output: not all could be written");
}

#endif
