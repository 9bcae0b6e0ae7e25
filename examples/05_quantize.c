// 05_quantize.c -- quantise two networks within loss budgets, and run them with integer kernels
//
// You learn: how ranges of tensors are observed, how the loss of each op in each scheme and its
// time are measured, how tl_plan_precision chooses from both, conversions included, and how the
// graph with the chosen schemes runs. It prints two tables for a transformer and two for a
// convolution net, with time and with bytes as what is minimised: everything in one scheme, then
// three tolerances, each met by a rule from the literature and by the exact choice. It leaves
// build/front_text.svg and build/front_image.svg: all the choices worth making. Read next:
// nn_int.h, the integer kernels; quantize.h, a network whose nodes run in any scheme.
//
// check: --quick --costs none --out build/check
//
//     mkdir -p build && cc -O3 -ffp-contract=off -o build/05_quantize examples/05_quantize.c -lm
//     build/05_quantize --quick --profiles build/mine.profiles --machine my-board   # a minute without --quick
//
// HOW IT WORKS   The loss of an op is what the network says differently because of it: the
// Kullback-Leibler divergence of its answers from those of f32, in nats a row. It is never negative
// and grows with the square of the noise, so that of several ops it adds up, as the planner
// supposes. Three sets of data, none of them trained on: ranges come from the first, losses that
// choices go by from the second, and the third tells what a choice loses on data that no one chose
// by. The divergence is also what the cross entropy increases by on average, where the network's
// beliefs are right; the increase is printed with the standard error that the rows leave it. Times
// are planned from a table by op and size (tl_measure_profiles); the ratio beside them is that of
// whole passes, conversions included, which take turns with f32.
//
// RULES          reverted   every op in its cheapest scheme, then the one that loses most back to
//                           f32, until the network keeps the tolerance (OpenVINO, accuracy-aware)
//                edge-blind the best sum over ops within a sum of losses, conversions left out, as
//                           the integer program of HAWQ-V3 (Yao et al., 2021, arXiv:2011.10680)
//                exact      tl_plan_precision, with the largest sum of losses at which the network
//                           keeps the tolerance
//
// CONTENTS       (search for "// -- ")
//                options    study    text    images    training    sensitivity    estimates    costs
//                choice
//                rules    times    table    picture    profiles    command line    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, isatty, mkdir

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TRAINING_PROGRAM "05_quantize"
#include "training.h"
#include "quantize.h"

// -- options --

typedef struct options {
    const char *text, *out, *net, *costs, *loss, *observer;  // NULL = not given
    const char *profiles, *machine;  // where the measured table goes, its name for this machine
    uint64_t    layers, width, context, batch, images, steps, image_steps, seed;
    int         is_measured;      // 1 = costs are times on this machine
    double      limit;            // of --loss, as a part of the loss in f32
    tl_observer_kind observer_kind;
} options;

// -- study: one network, and what is found out about it --

enum {
    BATCHES    = 8,               // of data in each of the three sets
    ROUNDS     = 15,              // of times that are compared
    TOLERANCES = 3,
    UNIFORMS   = 7,               // rows with everything in one scheme
    RULES      = 3,
    TRIES      = 5,               // of larger sums of losses
    ROWS       = 1 + UNIFORMS + TOLERANCES * RULES
};

// Tolerances of the divergence, as parts of the loss in f32.
static const double tolerances[TOLERANCES] = { 0.001, 0.003, 0.01 };

static const tl_scheme uniforms[UNIFORMS] = { TL_SCHEME_BF16, TL_SCHEME_F16, TL_SCHEME_I16,
    TL_SCHEME_W8A16, TL_SCHEME_DYNAMIC, TL_SCHEME_I8_CHANNEL, TL_SCHEME_I8 };

typedef enum rule { RULE_REVERTED, RULE_EDGE_BLIND, RULE_EXACT } rule;
static const char *const rule_names[RULES] = { "reverted", "edge-blind", "exact" };

static const uint64_t unseen = (uint64_t)1 << 40;  // numbers of samples not trained on begin here

// One row of the table.
typedef struct row {
    char     label[32];
    double   limit;               // nats; < 0 = none
    tl_precision_plan plan;
    tl_precision_graph applied;
    uint8_t *schemes;             // [node_count]
    quantize_loss loss, held_out; // on the data that choices go by, and on other data
    uint64_t weight_bytes, tensor_bytes;  // tensor_bytes: the most at once
    double   narrow_ratio;        // share of multiply-adds in 8 bits
    uint64_t ns[ROUNDS];
} row;

typedef struct study {
    const options *o;
    tl_env   env;
    quantize_net net;
    quantize_batch seen[BATCHES];   // to observe
    quantize_batch tuned[BATCHES];  // to measure losses by which is chosen
    quantize_batch fresh[BATCHES];  // to tell what a choice loses
    double   base_loss;           // cross entropy in f32, of fresh
    double  *losses;              // [node_count x TL_SCHEME_COUNT]
    uint64_t *costs;              // the same, in ns by the measured table; NULL = nothing was timed
    uint32_t *schemes;            // [node_count] bits of what a node can run in
    tl_measured_profiles measured;
    tl_precision_objective objective;  // of the rows
    row      rows[ROWS];
    int32_t  row_count;
    training_progress progress;
    uint64_t start_ns;            // of what is going on
    uint64_t sensitivity_ns;      // that measuring losses took
} study;

static int fail_result(const study *s, const char *what, tl_result result) {
    return training_fail_result(&s->env, what, result);
}

static int stop_if_interrupted(void) {
    return training_interrupted ? training_fail(TRAINING_INPUT, "interrupted") : TRAINING_OK;
}

static uint64_t now_ns(void) { return training_read_clock(CLOCK_PROCESS_CPUTIME_ID); }

// -- text: the network of 01, forward alone --

static void add_no_bytes(const training_model *m, const training_node *n, tl_node_desc *desc) {
    if (n->op == TRAINING_ATTENTION)
        desc->fwork_bytes = nn_attention_scratch_bytes((size_t)m->size.T);
}

// Sequences to train on are from the first nine tenths of the text, others from the last one.
static void load_text(const quantize_net *net, uint64_t first, void *input, int32_t *targets) {
    const training_text *t = (const training_text *)net->data;
    size_t split = t->length / 10 * 9, b, k;
    int32_t *tokens = (int32_t *)input;
    for (b = 0; b < net->B; b++) {
        uint64_t random = nn_hash(net->seed ^ 0x74657874u, first + b);
        size_t at = first < unseen ? random % (split - net->T)
                                   : split + random % (t->length - split - net->T);
        for (k = 0; k < net->T; k++) {
            tokens[b * net->T + k] = t->ids[at + k];
            targets[b * net->T + k] = t->ids[at + k + 1];
        }
    }
}

static quantize_op find_op(training_op op) {
    switch (op) {
    case TRAINING_EMBED:     return QUANTIZE_EMBED;
    case TRAINING_NORM:      return QUANTIZE_NORM;
    case TRAINING_LINEAR:    return QUANTIZE_LINEAR;
    case TRAINING_ATTENTION: return QUANTIZE_ATTENTION;
    case TRAINING_GELU:      return QUANTIZE_GELU;
    case TRAINING_ADD:       return QUANTIZE_ADD;
    case TRAINING_INPUT_OP:
    case TRAINING_DROPOUT:
    case TRAINING_LOSS:
    case TRAINING_OP_COUNT:  break;
    }
    return QUANTIZE_INPUT;
}

static void copy_text_node(const training_model *m, int32_t id, quantize_node *n) {
    const training_node *from = &m->nodes[id];
    const tl_node *node = &m->graph.nodes[id];
    int32_t i;
    n->op = find_op(from->op);
    n->from_count = node->input_count;
    for (i = 0; i < node->input_count; i++)
        n->from[i] = m->graph.inputs[node->first_input + i].tensor;
    n->R = (size_t)(m->size.B * m->size.T);
    n->K = (size_t)from->in_width;
    n->N = (size_t)from->width;
    n->elements = n->R * n->N;
    if (from->weight >= 0) {
        n->weight = (size_t)m->params[from->weight].first;
        n->weight_count = (size_t)m->params[from->weight].count;
        n->bias = (size_t)m->params[from->bias].first;
        n->bias_count = (size_t)m->params[from->bias].count;
    }
}

static int build_text(study *s, const training_text *t) {
    const options *o = s->o;
    quantize_net *net = &s->net;
    training_model m;
    tl_result result;
    int32_t id;
    memset(&m, 0, sizeof m);
    m.size.L = o->layers;
    m.size.C = o->width;
    m.size.T = o->context;
    m.size.B = o->batch;
    m.size.V = (uint64_t)t->V;
    m.add_bytes = add_no_bytes;
    result = training_build_model(&s->env, &m);
    if (!result) {
        training_print_text(t);
        net->name = "text";
        net->graph = m.graph;
        net->nodes = (quantize_node *)quantize_take(net, (size_t)m.graph.node_count,
                                                    sizeof *net->nodes);
        for (id = 0; id < m.graph.node_count; id++) copy_text_node(&m, id, &net->nodes[id]);
        net->B = (size_t)o->batch;
        net->T = (size_t)o->context;
        net->heads = (size_t)o->width / TRAINING_HEAD;
        net->rows = net->B * net->T;
        net->classes = (size_t)t->V;
        net->logits = m.logits;
        net->param_count = (size_t)m.param_count;
        net->load = load_text;
        net->data = t;
        net->has_tokens = 1;
        quantize_finish_net(net);
        training_fill_params(&m, o->seed, net->params);
        tl_init_graph(&m.graph);  // it is the net's now
    }
    training_free_model(&s->env, &m);
    return result ? fail_result(s, "graph", result) : TRAINING_OK;
}

// -- images: eight kinds of stripes and shapes in noise, and a net that tells them apart --
//
//     16 x 16 --conv 16--relu--pool--conv 32--relu--pool-+-conv 32--relu--conv 32--[add]--mean--8
//                                                        |                           |
//                                                        +---------------------------+

enum { SIDE = 16, KINDS = 8 };

// How bright a pixel is, 0 or 1; x, y from the middle of the shape.
static float draw_pixel(int kind, float x, float y, float size, float phase) {
    float ax = fabsf(x), ay = fabsf(y), far = ax > ay ? ax : ay, near = ax > ay ? ay : ax;
    float square = x * x + y * y, along = 0.0f;
    switch (kind) {
    case 0: along = y; break;
    case 1: along = x; break;
    case 2: along = 0.7f * (x + y); break;
    case 3: along = 0.7f * (x - y); break;
    case 4: return square < size * size ? 1.0f : 0.0f;
    case 5: return square < size * size && square > 0.3f * size * size ? 1.0f : 0.0f;
    case 6: return far < 0.9f * size ? 1.0f : 0.0f;
    default: return near < 0.3f * size && far < size ? 1.0f : 0.0f;
    }
    along = along / size + phase;
    return along - floorf(along) < 0.5f ? 1.0f : 0.0f;
}

// Image number i: kind, place, size, contrast and noise all follow from the seed and its number.
static int32_t draw_image(uint64_t seed, uint64_t i, float *pixels) {
    uint64_t own = nn_hash(seed ^ 0x696D616765u, i);
    int32_t kind = (int32_t)(own % KINDS);
    float size = 3.0f + 2.5f * nn_uniform(own, 0), contrast = 0.6f + 0.6f * nn_uniform(own, 1);
    float x0 = 5.5f + 4.0f * nn_uniform(own, 2), y0 = 5.5f + 4.0f * nn_uniform(own, 3);
    float phase = nn_uniform(own, 4);
    int k;
    for (k = 0; k < SIDE * SIDE; k++) {
        int column = k % SIDE, line = k / SIDE;
        float x = (float)column - x0, y = (float)line - y0;
        pixels[k] = contrast * draw_pixel(kind, x, y, size, phase) +
                    0.4f * nn_normal(own, 8 + (uint64_t)k);
    }
    return kind;
}

static void load_images(const quantize_net *net, uint64_t first, void *input, int32_t *targets) {
    size_t b;
    for (b = 0; b < net->B; b++)
        targets[b] = draw_image(net->seed, first + b, (float *)input + b * SIDE * SIDE);
}

// A row of the network: what it reads, and what comes out of it.
typedef struct layer {
    const char *name, *op;
    quantize_op kind;
    int32_t from, from2;          // rows; from2 below 0 = none
    size_t  side, channels;       // of the image that is read
    size_t  size, out_side, out_channels;
} layer;

static const layer layers[] = {
    { "pixels",  "input",   QUANTIZE_INPUT,     -1, -1, SIDE, 1,  1, SIDE, 1 },      //  0
    { "conv1",   "conv2d",  QUANTIZE_CONV2D,     0, -1, SIDE, 1,  3, SIDE, 16 },     //  1
    { "relu1",   "relu",    QUANTIZE_RELU,       1, -1, SIDE, 16, 1, SIDE, 16 },     //  2
    { "pool1",   "maxpool", QUANTIZE_MAX_POOL,   2, -1, SIDE, 16, 2, SIDE / 2, 16 }, //  3
    { "conv2",   "conv2d",  QUANTIZE_CONV2D,     3, -1, 8,    16, 3, 8,    32 },     //  4
    { "relu2",   "relu",    QUANTIZE_RELU,       4, -1, 8,    32, 1, 8,    32 },     //  5
    { "pool2",   "maxpool", QUANTIZE_MAX_POOL,   5, -1, 8,    32, 2, 4,    32 },     //  6
    { "conv3",   "conv2d",  QUANTIZE_CONV2D,     6, -1, 4,    32, 3, 4,    32 },     //  7
    { "relu3",   "relu",    QUANTIZE_RELU,       7, -1, 4,    32, 1, 4,    32 },     //  8
    { "conv4",   "conv2d",  QUANTIZE_CONV2D,     8, -1, 4,    32, 3, 4,    32 },     //  9
    { "add",     "add",     QUANTIZE_ADD,        6,  9, 4,    32, 1, 4,    32 },     // 10
    { "mean",    "avgpool", QUANTIZE_MEAN_POOL, 10, -1, 4,    32, 4, 1,    32 },     // 11
    { "classes", "linear",  QUANTIZE_LINEAR,    11, -1, 1,    32, 1, 1,    KINDS },  // 12
};
enum { LAYERS = sizeof layers / sizeof layers[0] };

static void fill_image_node(quantize_net *net, const layer *l, quantize_node *n) {
    int is_product = l->kind == QUANTIZE_CONV2D || l->kind == QUANTIZE_LINEAR;
    n->op = l->kind;
    n->from_count = (l->from >= 0) + (l->from2 >= 0);
    n->from[0] = l->from < 0 ? 0 : l->from;
    n->from[1] = l->from2 < 0 ? 0 : l->from2;
    n->R = net->B * l->out_side * l->out_side;
    n->K = l->size * l->size * l->channels;
    n->N = l->out_channels;
    n->H = n->W = l->side;
    n->C = l->channels;
    n->size = l->size;
    n->elements = n->R * n->N;
    if (!is_product) return;
    n->weight = net->param_count;
    n->weight_count = n->K * n->N;
    n->bias = n->weight + n->weight_count;
    n->bias_count = n->N;
    net->param_count += n->weight_count + n->bias_count;
}

static tl_result add_image_node(study *s, int32_t id) {
    const quantize_node *n = &s->net.nodes[id];
    uint64_t products = quantize_count_products(n), bytes = n->elements * sizeof(float);
    tl_tensor inputs[2] = { { 0, 0 }, { 0, 0 } };
    tl_node_desc desc;
    memset(&desc, 0, sizeof desc);
    inputs[0].node = n->from[0];
    inputs[1].node = n->from[1];
    desc.name = layers[id].name;
    desc.op = layers[id].op;
    desc.inputs = inputs;
    desc.input_count = n->from_count;
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fwd_cost = n->op == QUANTIZE_INPUT ? 0 : products ? 2 * products : n->elements;
    desc.fwork_bytes = n->op == QUANTIZE_CONV2D
                           ? nn_conv2d_scratch_bytes(n->H, n->W, n->C, n->size) : 0;
    desc.param_bytes = (n->weight_count + n->bias_count) * sizeof(float);
    desc.no_grad = 1;
    desc.keep = id == LAYERS - 1;
    return tl_add_node(&s->env, &s->net.graph, &desc, NULL);
}

static int build_images(study *s) {
    quantize_net *net = &s->net;
    tl_result result = TL_OK;
    int32_t id;
    net->name = "image";
    net->B = net->rows = (size_t)s->o->images;
    net->classes = KINDS;
    net->logits = LAYERS - 1;
    net->load = load_images;
    net->nodes = (quantize_node *)quantize_take(net, LAYERS, sizeof *net->nodes);
    tl_init_graph(&net->graph);
    net->graph.batch = net->B;
    for (id = 0; id < LAYERS && !result; id++) {
        fill_image_node(net, &layers[id], &net->nodes[id]);
        result = add_image_node(s, id);
    }
    if (result) return fail_result(s, "graph", result);
    quantize_finish_net(net);
    for (id = 0; id < LAYERS; id++) {
        const quantize_node *n = &net->nodes[id];
        float power = n->op == QUANTIZE_LINEAR ? 0.2f : 2.0f;  // it begins unsure of all classes
        if (n->weight_count)
            nn_fill_normal(net->params + n->weight, n->weight_count, sqrtf(power / (float)n->K),
                           tl_mix_u64(s->o->seed, (uint64_t)id));
    }
    return TRAINING_OK;
}

// -- training: a moment, then data to observe and data to measure on --

static int train(study *s, uint64_t steps, float rate) {
    quantize_net *net = &s->net;
    int32_t *targets = (int32_t *)quantize_take(net, net->rows, sizeof *targets);
    uint64_t step, start = training_wall_ns();
    quantize_start_training(net);
    for (step = 1; step <= steps && !training_interrupted; step++) {
        float loss = quantize_train_step(net, step, rate * training_rate(step), targets);
        double left = (double)(training_wall_ns() - start) * 1e-9 / (double)step *
                      (double)(steps - step);
        if (!(loss < 1e30f))
            return training_fail(TRAINING_INPUT, "%s: the loss is no number at step %llu",
                                 net->name, (unsigned long long)step);
        training_show_progress(&s->progress, net->name, step, (double)loss, left);
    }
    training_clear_progress(&s->progress);
    return stop_if_interrupted();
}

static int load_batches(study *s) {
    quantize_net *net = &s->net;
    quantize_loss base;
    uint64_t products = 0;
    tl_result result = TL_OK;
    int32_t i;
    memset(&base, 0, sizeof base);
    for (i = 0; i < BATCHES && !result; i++) {
        const float *logits;
        float loss = 0.0f;
        result = quantize_init_batch(net, unseen / 2 + (uint64_t)i * net->B, &s->seen[i]);
        if (!result)
            result = quantize_init_batch(net, unseen + (uint64_t)i * net->B, &s->fresh[i]);
        if (!result)
            result = quantize_init_batch(net, unseen + unseen / 2 + (uint64_t)i * net->B,
                                         &s->tuned[i]);
        if (result) break;
        logits = s->fresh[i].tensors[net->logits];
        nn_cross_entropy_forward(&loss, NULL, logits, s->fresh[i].targets, net->rows, net->classes);
        s->base_loss += (double)loss / BATCHES;
        quantize_add_loss(net, &s->fresh[i], logits, 1.0 / BATCHES, &base);
    }
    if (result) return fail_result(s, "batches", result);
    for (i = 0; i < net->graph.node_count; i++) products += quantize_count_products(&net->nodes[i]);
    printf("%-10s %d nodes, %zu weights, %.1f million multiply-adds a pass; loss in f32 %.4f nats,"
           " %.1f %% right, on %zu rows not trained on\n", net->name, (int)net->graph.node_count,
           net->param_count, (double)products * 1e-6, s->base_loss, 100.0 * base.correct,
           BATCHES * net->rows);
    fflush(stdout);
    result = quantize_observe(net, s->o->observer_kind, s->seen, BATCHES);
    return result ? fail_result(s, "observers", result) : TRAINING_OK;
}

// -- sensitivity: what each op loses in each scheme --

// The losses of a choice on a set of data; nodes before start are f32.
static tl_result measure_loss(study *s, const quantize_batch *set, const uint8_t *schemes,
                              int32_t start, const tl_precision_graph *applied,
                              quantize_loss *loss) {
    tl_result result = TL_OK;
    int32_t i;
    memset(loss, 0, sizeof *loss);
    for (i = 0; i < BATCHES && !result; i++) {
        const float *logits = NULL;
        result = applied ? quantize_run_applied(&s->net, &set[i], applied, &logits)
                         : quantize_run_from(&s->net, &set[i], schemes, start, &logits);
        if (!result) quantize_add_loss(&s->net, &set[i], logits, 1.0 / BATCHES, loss);
    }
    return result;
}

static tl_result evaluate_op(int32_t node, tl_scheme scheme, double *loss, void *user) {
    study *s = (study *)user;
    uint8_t *schemes = (uint8_t *)calloc((size_t)s->net.graph.node_count, 1);
    quantize_loss measured;
    tl_result result;
    if (!schemes) return TL_ERROR_NO_MEMORY;
    schemes[node] = (uint8_t)scheme;
    result = measure_loss(s, s->tuned, schemes, node, NULL, &measured);
    *loss = measured.divergence;
    free(schemes);
    return result;
}

static int show_evaluations(int32_t done, int32_t all, double loss, void *user) {
    study *s = (study *)user;
    double left = (double)(training_wall_ns() - s->start_ns) * 1e-9 / done * (all - done);
    training_show_progress(&s->progress, "sensitivity", (uint64_t)done, loss, left);
    return training_interrupted;
}

static int measure_sensitivity(study *s) {
    size_t count = (size_t)s->net.graph.node_count, i;
    tl_sensitivity_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    s->losses = (double *)quantize_take(&s->net, count * TL_SCHEME_COUNT, sizeof *s->losses);
    s->schemes = (uint32_t *)quantize_take(&s->net, count, sizeof *s->schemes);
    for (i = 0; i < count; i++) s->schemes[i] = quantize_list_schemes(&s->net.nodes[i]);
    desc.graph = &s->net.graph;
    desc.node_schemes = s->schemes;
    desc.evaluate = evaluate_op;
    desc.user = s;
    desc.progress = show_evaluations;
    s->start_ns = training_wall_ns();
    s->sensitivity_ns = now_ns();
    result = tl_measure_sensitivity(&s->env, &desc, s->losses);
    s->sensitivity_ns = now_ns() - s->sensitivity_ns;
    training_clear_progress(&s->progress);
    if (training_interrupted) return stop_if_interrupted();
    return result ? fail_result(s, "sensitivity", result) : TRAINING_OK;
}

// -- estimates: the same from a few runs in f32, forward and backward --

static tl_result run_in_f32(int32_t batch, void *user) {
    study *s = (study *)user;
    quantize_net *net = &s->net;
    memcpy(quantize_get_tensor(net, 0), s->tuned[batch].input, net->nodes[0].elements * 4);
#ifndef __clang_analyzer__  // which takes gradients that the graph wants for absent
    (void)quantize_run_backward(net, s->tuned[batch].targets);
#endif
    return TL_OK;
}

static tl_result find_tensor(int32_t id, tl_sample *sample, void *user) {
    study *s = (study *)user;
    if (!id && s->net.has_tokens) return TL_OK;
    sample->values = quantize_get_tensor(&s->net, id);
    sample->gradients = s->net.dtensors[id];
    sample->count = s->net.nodes[id].elements;
    return TL_OK;
}

static tl_result find_weights(int32_t id, tl_sample *sample, void *user) {
    study *s = (study *)user;
    const quantize_node *n = &s->net.nodes[id];
    if (!quantize_count_products(n)) return TL_OK;
    sample->values = s->net.params + n->weight;
    sample->gradients = s->net.grads + n->weight;
    sample->count = n->weight_count;
    sample->channel_count = (int32_t)n->N;
    return TL_OK;
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// How far estimates are from what was measured, node by node and scheme by scheme.
static int compare_estimates(study *s) {
    size_t places = (size_t)s->net.graph.node_count * TL_SCHEME_COUNT, count = 0, i;
    double *losses = (double *)quantize_take(&s->net, places, sizeof *losses);
    double *ratios = (double *)quantize_take(&s->net, places, sizeof *ratios);
    uint64_t start = now_ns();
    tl_estimate_sensitivity_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = &s->net.graph;
    desc.node_schemes = s->schemes;
    desc.batch_count = BATCHES;
    desc.row_count = s->net.rows;
    desc.run = run_in_f32;
    desc.find_tensor = find_tensor;
    desc.find_weights = find_weights;
    desc.user = s;
    result = tl_estimate_sensitivity(&s->env, &desc, losses, NULL, NULL);
    if (result) return fail_result(s, "estimates", result);
    start = now_ns() - start;
    for (i = 0; i < places; i++)
        if (i % TL_SCHEME_COUNT && losses[i] > 0.0 && s->losses[i] > 0.0)
            ratios[count++] = losses[i] / s->losses[i];
    qsort(ratios, count, sizeof *ratios, compare_numbers);
    printf("%-10s %zu losses measured in %.1f s; estimated in %.1f s, %d runs: %.2f times as much in the"
           " median,\n%-10s %.2f to %.2f times for nine tenths of them\n", "", count,
           (double)s->sensitivity_ns * 1e-9, (double)start * 1e-9, 2 * BATCHES, ratios[count / 2],
           "", ratios[count / 20], ratios[count - 1 - count / 20]);
    fflush(stdout);
    return TRAINING_OK;
}

// -- costs: what each op takes in each scheme, and what a conversion takes --

static uint64_t read_clock(void *clock) {
    (void)clock;
    return now_ns();
}

// The inputs of a node, those of f32, in the format of a scheme.
static tl_result prepare_node(int32_t id, tl_scheme scheme, void *user) {
    study *s = (study *)user;
    const quantize_node *n = &s->net.nodes[id];
    int32_t i;
    quantize_begin_pass(&s->net, &s->fresh[0], id);
    for (i = 0; i < n->from_count; i++)
        (void)quantize_convert(&s->net, n->from[i], tl_find_scheme_format(scheme));
    return TL_OK;
}

static tl_result run_node(int32_t id, tl_scheme scheme, int32_t count, void *user) {
    study *s = (study *)user;
    tl_result result = TL_OK;
    for (; count > 0 && !result; count--) result = quantize_run_node(&s->net, id, scheme);
    return result;
}

// A node has one tensor, of its number.
static tl_result convert_tensor(int32_t id, tl_format format, int32_t count, void *user) {
    study *s = (study *)user;
    void *to = quantize_get_buffer(&s->net, id, format);
    for (; count > 0; count--) {
        quantize_from_floats(&s->net, id, format, s->fresh[0].tensors[id], to);
        quantize_to_floats(&s->net, id, format, to, s->net.scratch[0]);
    }
    return TL_OK;
}

static int show_timings(int32_t done, int32_t all, void *user) {
    study *s = (study *)user;
    double left = (double)(training_wall_ns() - s->start_ns) * 1e-9 / done * (all - done);
    training_show_progress(&s->progress, "times", (uint64_t)done, 0.0, left);
    return training_interrupted;
}

// What the table says of each node: its time in f32 / the speed-up of its op and size.
static int fill_costs(study *s) {
    const tl_measured_profiles *m = &s->measured;
    int32_t id, k;
    for (id = 0; id < s->net.graph.node_count; id++) {
        size_t first = (size_t)id * TL_SCHEME_COUNT;
        const tl_precision_profile *row =
            tl_find_profile(m->profiles, m->profile_count, &s->net.graph, id, &m->device);
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            s->costs[first + k] = m->costs[first + k];
            if (k && m->costs[first + k] != TL_FORBIDDEN && row)
                s->costs[first + k] =
                    (uint64_t)((double)m->costs[first] / row->speedup[k] + 1.0);
        }
    }
    return TRAINING_OK;
}

static int measure_costs(study *s) {
    tl_measure_profiles_desc desc;
    tl_result result;
    if (!s->o->is_measured) return TRAINING_OK;
    memset(&desc, 0, sizeof desc);
    desc.graph = &s->net.graph;
    desc.name = s->o->machine;
    desc.node_schemes = s->schemes;
    desc.prepare = prepare_node;
    desc.run = run_node;
    desc.convert = convert_tensor;
    desc.progress = show_timings;
    desc.now_ns = read_clock;
    desc.user = s;
    s->start_ns = training_wall_ns();
    result = tl_measure_profiles(&s->env, &desc, &s->measured);
    training_clear_progress(&s->progress);
    if (result) return fail_result(s, "costs", result);
    s->costs = (uint64_t *)quantize_take(
        &s->net, (size_t)s->net.graph.node_count * TL_SCHEME_COUNT, sizeof *s->costs);
    return training_interrupted ? stop_if_interrupted() : fill_costs(s);
}

static int32_t find_largest_product(const study *s) {
    const quantize_node *nodes = s->net.nodes;
    int32_t id, best = 0;
    for (id = 1; id < s->net.graph.node_count; id++)
        if (quantize_count_products(&nodes[id]) > quantize_count_products(&nodes[best])) best = id;
    return best;
}

// How many times as fast as in f32 a node runs in a scheme.
static double find_speedup(const study *s, int32_t id, tl_scheme scheme) {
    const uint64_t *costs = s->costs + (size_t)id * TL_SCHEME_COUNT;
    return (double)costs[TL_SCHEME_F32] / (double)costs[scheme];
}

static void print_costs(const study *s) {
    static const tl_scheme shown[] = { TL_SCHEME_I8, TL_SCHEME_I8_CHANNEL, TL_SCHEME_DYNAMIC,
                                       TL_SCHEME_W8A16, TL_SCHEME_I16, TL_SCHEME_BF16 };
    int32_t id = find_largest_product(s);
    const quantize_node *n = &s->net.nodes[id];
    size_t i;
    if (!s->costs) return;
    printf("%-10s %s, %zu x %zu x %zu, takes %.0f us in f32; times as fast:", "",
           tl_name_node(&s->net.graph, id), n->R, n->K, n->N,
           (double)s->costs[(size_t)id * TL_SCHEME_COUNT] * 1e-3);
    for (i = 0; i < sizeof shown / sizeof shown[0]; i++)
        printf("%s %s %.2f", i ? "," : "", tl_name_scheme(shown[i]), find_speedup(s, id, shown[i]));
    printf("\n%-10s conversions: %.1f GB/s to integers and back, %.1f to 16-bit floats\n", "",
           (double)s->measured.device.bytes_per_second * 1e-9,
           (double)s->measured.device.codec_bytes_per_second * 1e-9);
    fflush(stdout);
}

// -- choice: a plan for each budget, and its graph --

static tl_result evaluate_plan(const tl_precision_plan *plan, double *loss, void *user) {
    study *s = (study *)user;
    uint8_t *schemes = (uint8_t *)calloc((size_t)plan->node_count, 1);
    quantize_loss measured;
    tl_result result;
    int32_t id;
    if (!schemes) return TL_ERROR_NO_MEMORY;
    for (id = 0; id < plan->node_count; id++) schemes[id] = (uint8_t)plan->nodes[id].scheme;
    result = measure_loss(s, s->tuned, schemes, 0, NULL, &measured);
    *loss = measured.divergence;
    free(schemes);
    return result;
}

static tl_precision_desc describe_choice(study *s) {
    tl_precision_desc desc = tl_default_precision(NULL);
    desc.graph = &s->net.graph;
    desc.device = s->costs ? &s->measured.device : NULL;
    desc.objective = s->objective;
    desc.node_schemes = s->schemes;
    desc.allow_sensitive = desc.allow_unknown = 1;  // what they lose was measured
    desc.losses = s->losses;
    desc.costs = s->costs;
    desc.measured_on = s->o->machine;
    return desc;
}

// Bytes of the weights in their schemes, and of the tensors that are there at once.
static tl_result count_bytes(study *s, row *r) {
    tl_plan plan;
    int32_t i;
    tl_result result = tl_plan_keep_all(&s->env, &r->applied.graph, 1, &plan);
    if (result) return result;
    r->tensor_bytes = plan.peak_bytes;
    tl_free_plan(&s->env, &plan);
    for (i = 0; i < r->applied.graph.node_count; i++)
        r->weight_bytes += r->applied.graph.nodes[i].param_bytes;
    return TL_OK;
}

static void count_products(study *s, row *r) {
    uint64_t all = 0, narrow = 0;
    int32_t id;
    for (id = 0; id < s->net.graph.node_count; id++) {
        uint64_t products = quantize_count_products(&s->net.nodes[id]);
        all += products;
        if (quantize_is_narrow((tl_scheme)r->schemes[id])) narrow += products;
    }
    r->narrow_ratio = (double)narrow / (double)all;
}

// Make the graph of a row's plan, run it, and hold it to what the plan was promised.
static int apply_row(study *s, row *r) {
    tl_apply_desc desc;
    quantize_loss loss;
    tl_result result;
    int32_t id;
    memset(&desc, 0, sizeof desc);
    desc.graph = &s->net.graph;
    desc.plan = &r->plan;
    desc.device = s->costs ? &s->measured.device : NULL;
    desc.quantizations = s->net.narrow;
    desc.wide_quantizations = s->net.wide;
    result = tl_apply_precision(&s->env, &desc, &r->applied);
    if (result) return fail_result(s, "apply", result);
    r->schemes = (uint8_t *)quantize_take(&s->net, (size_t)r->plan.node_count, 1);
    for (id = 0; id < r->plan.node_count; id++) r->schemes[id] = (uint8_t)r->plan.nodes[id].scheme;
    s->net.conversions = 0;
    result = measure_loss(s, s->tuned, NULL, 0, &r->applied, &r->loss);
    if (!result && s->net.conversions != (int64_t)BATCHES * r->plan.conversion_count)
        return training_fail(TRAINING_MISMATCH, "%s %s: %lld conversions ran, %d were planned",
                             s->net.name, r->label, (long long)(s->net.conversions / BATCHES),
                             (int)r->plan.conversion_count);
    if (!result) result = measure_loss(s, s->tuned, r->schemes, 0, NULL, &loss);
    if (!result && memcmp(&loss, &r->loss, sizeof loss) != 0)
        return training_fail(TRAINING_MISMATCH, "%s %s: the applied graph says something else",
                             s->net.name, r->label);
    if (!result) result = measure_loss(s, s->fresh, NULL, 0, &r->applied, &r->held_out);
    if (!result) result = count_bytes(s, r);
    if (result) return fail_result(s, "apply", result);
    count_products(s, r);
    if (r->limit >= 0.0 && r->loss.divergence > r->limit)
        return training_fail(TRAINING_MISMATCH, "%s %s: the loss is %.3g nats, above %.3g",
                             s->net.name, r->label, r->loss.divergence, r->limit);
    return TRAINING_OK;
}

// A row with these schemes.
static int add_row(study *s, const char *label, double limit, const uint8_t *schemes) {
    row *r = &s->rows[s->row_count++];
    tl_precision_desc desc = describe_choice(s);
    uint32_t *only = (uint32_t *)quantize_take(&s->net, (size_t)s->net.graph.node_count,
                                               sizeof *only);
    tl_result result;
    int32_t id;
    memset(r, 0, sizeof *r);
    r->limit = limit;
    snprintf(r->label, sizeof r->label, "%s", label);
    for (id = 0; id < s->net.graph.node_count; id++) only[id] = 1u << schemes[id];
    desc.node_schemes = only;
    desc.loss_limit = (double)INFINITY;
    result = tl_plan_precision(&s->env, &desc, &r->plan);
    if (result) return fail_result(s, r->label, result);
    return apply_row(s, r);
}

// The best choice within a sum of losses; it is planned again with less until it is within `most`
// as measured, if that is not infinite. *measured is of the last one.
static tl_result choose_within(study *s, double sum, double most, uint8_t *schemes,
                               double *measured) {
    tl_precision_desc desc = describe_choice(s);
    tl_precision_plan plan;
    tl_result result;
    int32_t id;
    desc.loss_limit = sum;
    desc.evaluate = sum <= most ? evaluate_plan : NULL;
    desc.user = s;
    result = tl_plan_precision(&s->env, &desc, &plan);
    if (result) return result;
    *measured = plan.measured_loss;
    if (!desc.evaluate) result = evaluate_plan(&plan, measured, s);
    for (id = 0; id < plan.node_count; id++) schemes[id] = (uint8_t)plan.nodes[id].scheme;
    tl_free_precision_plan(&s->env, &plan);
    return result;
}

// The exact choice within a measured loss: sums are upper estimates where errors cancel, so the sum
// may be larger as long as what is measured is not.
static tl_result choose_exact(study *s, double limit, uint8_t *schemes) {
    uint8_t *tried = (uint8_t *)quantize_take(&s->net, (size_t)s->net.graph.node_count, 1);
    double least = limit, most = (double)INFINITY, sum = limit, measured;
    tl_result result = choose_within(s, limit, limit, schemes, &measured);
    int i;
    for (i = 0; i < TRIES && !result; i++) {
        sum = most < (double)INFINITY ? 0.5 * (least + most)
              : measured > 0.5 * limit ? sum * limit / measured : 2.0 * sum;
        result = choose_within(s, sum, limit, tried, &measured);
        if (measured > limit) {
            most = sum;
        } else {
            least = sum;
            memcpy(schemes, tried, (size_t)s->net.graph.node_count);
        }
    }
    return result;
}

// -- rules: everything in one scheme, and two rules from the literature --

static int has_scheme(const study *s, int32_t id, tl_scheme scheme) {
    return (int)(s->schemes[id] >> scheme & 1);
}

// The scheme where a node has it, else its like for tensors, else f32.
static tl_scheme find_like(const study *s, int32_t id, tl_scheme scheme) {
    tl_scheme like = scheme == TL_SCHEME_I8_CHANNEL ? TL_SCHEME_I8
                     : scheme == TL_SCHEME_W8A16    ? TL_SCHEME_I16 : TL_SCHEME_F32;
    return has_scheme(s, id, scheme) ? scheme : has_scheme(s, id, like) ? like : TL_SCHEME_F32;
}

// What a node costs in a scheme by itself: ns, or bytes of its weights and its tensor.
static uint64_t find_cost(const study *s, int32_t id, int32_t scheme) {
    static const uint64_t weight_bits[TL_SCHEME_COUNT] = { 32, 16, 16, 16, 8, 8, 8, 8, 32, 4 };
    const quantize_node *n = &s->net.nodes[id];
    tl_format format = tl_find_scheme_format((tl_scheme)scheme);
    if (s->objective == TL_OBJECTIVE_TIME) return s->costs[(size_t)id * TL_SCHEME_COUNT +
                                                           (size_t)scheme];
    return tl_find_format_bytes(format, 4 * n->elements) +
           (n->weight_count + n->bias_count) * weight_bits[scheme] / 8;
}

static double find_loss(const study *s, int32_t id, int32_t scheme) {
    return s->losses[(size_t)id * TL_SCHEME_COUNT + (size_t)scheme];
}

static void fill_cheapest(const study *s, uint8_t *schemes) {
    int32_t id, k;
    for (id = 1; id < s->net.graph.node_count; id++)
        for (schemes[id] = 0, k = 1; k < TL_SCHEME_COUNT; k++)
            if (has_scheme(s, id, (tl_scheme)k) &&
                find_cost(s, id, k) < find_cost(s, id, schemes[id]))
                schemes[id] = (uint8_t)k;
}

static tl_result choose_reverted(study *s, double limit, uint8_t *schemes) {
    quantize_loss loss;
    tl_result result;
    fill_cheapest(s, schemes);
    while (!(result = measure_loss(s, s->tuned, schemes, 0, NULL, &loss)) &&
           loss.divergence > limit) {
        int32_t id, worst = -1;
        for (id = 1; id < s->net.graph.node_count; id++)
            if (schemes[id] &&
                (worst < 0 || find_loss(s, id, schemes[id]) > find_loss(s, worst, schemes[worst])))
                worst = id;
        if (worst < 0) break;
        schemes[worst] = TL_SCHEME_F32;
    }
    return result;
}

// Least sum of costs of nodes 0 .. id with losses of at most u units; rounded up, so that the limit
// is kept.
enum { UNITS = 2000 };

static void choose_edge_blind(const study *s, double limit, uint8_t *schemes) {
    int32_t count = s->net.graph.node_count, id, k;
    uint64_t *best = (uint64_t *)calloc((size_t)(count + 1) * (UNITS + 1), sizeof *best);
    uint8_t *taken = (uint8_t *)calloc((size_t)count * (UNITS + 1), 1);
    int u;
    if (!best || !taken) exit(training_fail(TRAINING_INPUT, "no memory"));
    for (id = 1; id < count; id++)
        for (u = 0; u <= UNITS; u++) {
            size_t at = (size_t)id * (UNITS + 1) + (size_t)u;
            best[at + UNITS + 1] = UINT64_MAX;
            for (k = 0; k < TL_SCHEME_COUNT; k++) {
                double units = ceil(k ? find_loss(s, id, k) / limit * UNITS : 0.0);
                uint64_t cost;
                if (!has_scheme(s, id, (tl_scheme)k) || !(units <= (double)u)) continue;
                cost = best[at - (size_t)units] + find_cost(s, id, k);
                if (cost >= best[at + UNITS + 1]) continue;
                best[at + UNITS + 1] = cost;
                taken[at] = (uint8_t)k;
            }
        }
    for (u = UNITS, id = count - 1; id > 0; id--) {
        schemes[id] = taken[(size_t)id * (UNITS + 1) + (size_t)u];
        if (schemes[id]) u -= (int)ceil(find_loss(s, id, schemes[id]) / limit * UNITS);
    }
    free(best);
    free(taken);
}

static int add_ruled_row(study *s, double part, rule by) {
    uint8_t *schemes = (uint8_t *)quantize_take(&s->net, (size_t)s->net.graph.node_count, 1);
    double limit = part * s->base_loss;
    tl_result result = TL_OK;
    char label[32];
    snprintf(label, sizeof label, "%g %% %s", 100.0 * part, rule_names[by]);
    if (by == RULE_REVERTED) result = choose_reverted(s, limit, schemes);
    if (by == RULE_EDGE_BLIND) choose_edge_blind(s, limit, schemes);
    if (by == RULE_EXACT) result = choose_exact(s, limit, schemes);
    if (result) return fail_result(s, label, result);
    return add_row(s, label, by == RULE_EDGE_BLIND ? -1.0 : limit, schemes);  // it measures nothing
}

static int add_uniform_row(study *s, tl_scheme scheme) {
    uint8_t *schemes = (uint8_t *)quantize_take(&s->net, (size_t)s->net.graph.node_count, 1);
    char label[32];
    int32_t id;
    for (id = 0; id < s->net.graph.node_count; id++)
        schemes[id] = (uint8_t)find_like(s, id, scheme);
    snprintf(label, sizeof label, scheme ? "all %s" : "%s", tl_name_scheme(scheme));
    return add_row(s, label, -1.0, schemes);
}

static void free_rows(study *s) {
    int32_t i;
    for (i = 0; i < s->row_count; i++) {
        tl_free_precision_plan(&s->env, &s->rows[i].plan);
        tl_free_precision_graph(&s->env, &s->rows[i].applied);
    }
    s->row_count = 0;
}

static int add_rows(study *s, tl_precision_objective objective) {
    int i, k, code;
    free_rows(s);
    s->objective = objective;
    code = add_uniform_row(s, TL_SCHEME_F32);
    for (i = 0; i < UNIFORMS && !code; i++) code = add_uniform_row(s, uniforms[i]);
    for (i = 0; i < (s->o->loss ? 1 : TOLERANCES) && !code; i++)
        for (k = 0; k < RULES && !code; k++)
            code = add_ruled_row(s, s->o->loss ? s->o->limit : tolerances[i], (rule)k);
    return code;
}

// -- times: whole passes, by turns --

static int time_rows(study *s) {
    int32_t i;
    int round;
    for (round = -1; round < ROUNDS && !training_interrupted; round++) {
        for (i = 0; i < s->row_count; i++) {
            uint64_t start = now_ns();
            const float *logits;
            tl_result result = quantize_run_applied(&s->net, &s->fresh[0], &s->rows[i].applied,
                                                    &logits);
            if (result) return fail_result(s, s->rows[i].label, result);
            if (round >= 0) s->rows[i].ns[round] = now_ns() - start + 1;
        }
    }
    return stop_if_interrupted();
}

// -- table --

static void print_schemes(const row *r) {
    char line[96] = "";
    size_t length = 0;
    int scheme;
    for (scheme = 0; scheme < TL_SCHEME_COUNT; scheme++) {
        if (!r->plan.scheme_counts[scheme] || length > sizeof line - 24) continue;
        length += (size_t)snprintf(line + length, sizeof line - length, "%s%d %s",
                                   length ? ", " : "", (int)r->plan.scheme_counts[scheme],
                                   tl_name_scheme((tl_scheme)scheme));
    }
    printf("  %s\n", line);
}

// The increase of the entropy is a mean over rows: how far chance may have moved it.
static double find_standard_error(const study *s, const quantize_loss *loss) {
    double variance = loss->increase_square - loss->increase * loss->increase;
    return variance > 0.0 ? sqrt(variance / (double)(BATCHES * s->net.rows)) : 0.0;
}

static double find_time_ratio(const study *s, const row *r) {
    return training_find_ratio(r->ns, s->rows[0].ns, ROUNDS);
}

static void print_row(study *s, const row *r) {
    double percent = 100.0 / s->base_loss;
    int has_time = s->objective == TL_OBJECTIVE_TIME;
    printf("%-17s %5.1f %% %4d %8.1f %8.1f  %7.3f", r->label, 100.0 * r->narrow_ratio,
           (int)r->plan.conversion_count, (double)r->weight_bytes / 1024.0,
           (double)r->tensor_bytes / 1024.0, 1.0 / r->plan.speedup);
    if (has_time) printf(" %7.3f", find_time_ratio(s, r));
    printf("  %8.4f %8.4f %8.4f  %8.4f +- %.4f", percent * r->plan.loss,
           percent * r->loss.divergence, percent * r->held_out.divergence,
           percent * r->held_out.increase, percent * find_standard_error(s, &r->held_out));
    print_schemes(r);
}

// How much more the rules cost than the exact choice, at the same tolerance.
static void print_gains(const study *s) {
    int by;
    int32_t first, i;
    for (first = s->row_count; first > 1 + UNIFORMS;) first -= RULES;
    for (by = 0; by < RULE_EXACT; by++) {
        printf("%s %s costs", by ? "," : "more than exact:", rule_names[by]);
        for (i = first; i < s->row_count; i += RULES)
            printf(" %+.1f %%", 100.0 * ((double)s->rows[i + by].plan.cost /
                                         (double)s->rows[i + RULE_EXACT].plan.cost - 1.0));
    }
    printf("\n");
}

static void print_table(study *s) {
    int has_time = s->objective == TL_OBJECTIVE_TIME;
    int32_t i;
    printf("\n%-10s least %-5s  products con-  weights  tensors    %s%s  loss, in %% of that in"
           " f32        entropy\n", s->net.name, tl_name_objective(s->objective),
           has_time ? " time" : "bytes", has_time ? "    time" : "");
    printf("                    in 8  versions   KiB      KiB  planned%s   planned measured"
           " held out       held out           schemes\n", has_time ? "  / f32" : "");
    for (i = 0; i < s->row_count; i++) print_row(s, &s->rows[i]);
    print_gains(s);
    fflush(stdout);
}

enum { USUAL_DEVIATION = 30 };    // percent, at most, of full-size networks on an idle machine

// Planned times against measured ones, over all rows. What else the machine did meanwhile is in
// them, so that nothing fails by them.
static void compare_times(const study *s) {
    double most = 0.0;
    int32_t i;
    for (i = 1; i < s->row_count; i++)
        most = fmax(most, fabs(s->rows[i].plan.speedup * find_time_ratio(s, &s->rows[i]) - 1.0));
    printf("times measured / planned by the table: within %.1f %% of 1 in %d rows%s\n", 100.0 * most,
           (int)s->row_count - 1, most > USUAL_DEVIATION / 100.0
               ? " (above 30 %: tiny networks, or other programs beside this one)" : "");
}

// No choice that keeps the tolerance by the sum of losses costs less than the exact one.
static int check_table(const study *s) {
    int32_t i, k;
    for (i = 1 + UNIFORMS + RULE_EXACT; i < s->row_count; i += RULES)
        for (k = 0; k < s->row_count; k++)
            if (s->rows[k].plan.loss <= s->rows[i].plan.loss &&
                s->rows[k].plan.cost < s->rows[i].plan.bound_cost)
                return training_fail(TRAINING_MISMATCH, "%s: %s costs less than %s", s->net.name,
                                     s->rows[k].label, s->rows[i].label);
    return TRAINING_OK;
}

// -- picture: the front --

static int write_front(study *s) {
    tl_precision_desc desc = describe_choice(s);
    tl_precision_front front;
    tl_file_sink file;
    tl_sink sink;
    char path[480];
    tl_result result = tl_plan_precision_front(&s->env, &desc, 0, &front);
    if (result) return fail_result(s, "front", result);
    training_make_directory(s->o->out);
    snprintf(path, sizeof path, "%.400s/front_%s%s.svg", s->o->out, s->net.name,
             s->objective == TL_OBJECTIVE_TIME ? "" : "_bytes");
    result = tl_init_file_sink(&s->env, path, &file, &sink);
    if (!result) result = tl_finish_file_sink(&s->env, &file, tl_write_front_svg(&s->env, &front, sink));
    if (!result)
        printf("wrote %s: %d points%s\n\n", path, (int)front.point_count,
               front.complete ? ", all there are" : "");
    tl_free_precision_front(&s->env, &front);
    return result ? training_fail(TRAINING_INPUT, "%s: not written: %s", path, s->env.error.text)
                  : TRAINING_OK;
}

// -- profiles: one table of what both networks measured, for tl_plan --profiles --

enum { MOST_ROWS = 128 };

typedef struct table {
    tl_precision_profile rows[MOST_ROWS];
    int32_t  count;
    tl_measured_profiles nets[2];  // the rows' texts are theirs
} table;

static int has_op(const table *t, int32_t count, const char *op) {
    int32_t i;
    for (i = 0; i < count; i++)
        if (strcmp(t->rows[i].op, op) == 0) return 1;
    return 0;
}

// Elsewhere in the library norm is called layernorm: its losses are known by that name.
static void rename_norm(tl_precision_profile *row) {
    int32_t count, i, k;
    const tl_precision_profile *known = tl_find_default_profiles(&count);
    if (strcmp(row->op, "norm") != 0) return;
    for (i = 0; i < count && strcmp(known[i].op, "layernorm") != 0; i++) {}
    if (i == count) return;
    row->op = known[i].op;
    for (k = 1; k < TL_SCHEME_COUNT; k++)
        if (row->schemes >> k & 1) row->loss[k] = known[i].loss[k];
}

// The rows of an op are those of the first network that has it; measured ones come first.
static void join_rows(table *t) {
    int32_t i, net, is_assumed, before;
    for (is_assumed = 0; is_assumed < 2; is_assumed++)
        for (net = 0; net < 2; net++) {
            const tl_measured_profiles *m = &t->nets[net];
            for (before = t->count, i = 0; i < m->profile_count && t->count < MOST_ROWS; i++) {
                tl_precision_profile row = m->profiles[i];
                if ((row.measured_on == NULL) != is_assumed) continue;
                rename_norm(&row);
                if (!has_op(t, before, row.op)) t->rows[t->count++] = row;
            }
        }
}

static int write_profiles(const options *o, table *t) {
    const tl_device *device = t->nets[0].device.name ? &t->nets[0].device : &t->nets[1].device;
    char *text, path[480];
    tl_env env;
    tl_file_sink file;
    tl_sink sink;
    tl_result result;
    size_t length;
    memset(&env, 0, sizeof env);
    join_rows(t);
    result = tl_check_profiles(&env, t->rows, t->count);
    length = tl_print_profiles(t->rows, t->count, device, NULL, 0);
    text = (char *)malloc(length + 1);
    if (result || !text) {
        free(text);
        return training_fail_result(&env, "profiles", result);
    }
    tl_print_profiles(t->rows, t->count, device, text, length + 1);
    snprintf(path, sizeof path, "%.400s", o->profiles);
    result = tl_init_file_sink(&env, path, &file, &sink);
    if (!result) result = tl_finish_file_sink(&env, &file, sink.write(sink.user, text, length));
    free(text);
    if (result) return training_fail(TRAINING_INPUT, "%s: not written: %s", path, env.error.text);
    printf("wrote %s: %d rows\n", path, (int)t->count);
    return TRAINING_OK;
}

// -- command line --

static const char usage[] =
    "05_quantize: choose a scheme for each op of two networks, within loss budgets, and run them\n"
    "\n"
    "  --net NAME         text, image or both (both)\n"
    "  --loss PERCENT     one tolerance, part of the loss in f32, instead of 0.1, 0.3 and 1\n"
    "  --observer KIND    min-max, moving-average, percentile, mse, entropy (mse)\n"
    "  --costs KIND       measured: times on this machine; none: nothing is timed, and bytes alone\n"
    "                     are minimised (measured)\n"
    "  --profiles FILE    write what each scheme gains here, for tl_plan --profiles\n"
    "  --machine NAME     what this machine is called there (this-machine)\n"
    "  --steps N          training steps of the text network (300)\n"
    "  --image-steps N    of the image network (800)\n"
    "  --layers N --width N --context N --batch N\n"
    "                     of the text network (2, 128, 32, 8); width is a multiple of 16\n"
    "  --images N         images in a batch (64)\n"
    "  --text FILE        what the text network learns (examples/training_text.txt)\n"
    "  --seed N           of weights, data and images (1)\n"
    "  --out DIR          where the pictures go (build)\n"
    "  --quick            tiny networks, a few steps\n"
    "  --help             this list\n"
    "\n"
    "exit code: 0 ok, 1 bad input or a file that could not be written, 3 a tolerance was not held\n"
    "on the data that it was chosen by, or a choice within it costs less than the exact one's bound\n";

static void set_defaults(options *o, int quick) {
    memset(o, 0, sizeof *o);
    o->out = "build";
    o->layers = 2;
    o->width = quick ? 32 : 128;
    o->context = quick ? 16 : 32;
    o->batch = 8;
    o->images = quick ? 16 : 64;
    o->steps = quick ? 60 : 300;
    o->image_steps = quick ? 60 : 800;
    o->seed = 1;
    o->is_measured = 1;
    o->observer_kind = TL_OBSERVER_MSE;
    o->machine = "this-machine";
}

static int read_options(options *o, int count, char **argv, int *done) {
    const training_option table[] = {
        { "--steps", 1, 1000000, &o->steps, NULL, NULL },
        { "--image-steps", 1, 1000000, &o->image_steps, NULL, NULL },
        { "--layers", 1, 64, &o->layers, NULL, NULL },
        { "--width", TRAINING_HEAD, 1024, &o->width, NULL, NULL },
        { "--context", 2, 1024, &o->context, NULL, NULL },
        { "--batch", 1, 1024, &o->batch, NULL, NULL },
        { "--images", 1, 1024, &o->images, NULL, NULL },
        { "--seed", 0, UINT64_MAX, &o->seed, NULL, NULL },
        { "--net", 0, 0, NULL, &o->net, NULL },
        { "--costs", 0, 0, NULL, &o->costs, NULL },
        { "--loss", 0, 0, NULL, &o->loss, NULL },
        { "--observer", 0, 0, NULL, &o->observer, NULL },
        { "--profiles", 0, 0, NULL, &o->profiles, NULL },
        { "--machine", 0, 0, NULL, &o->machine, NULL },
        { "--text", 0, 0, NULL, &o->text, NULL },
        { "--out", 0, 0, NULL, &o->out, NULL },
        { "--quick", 0, 0, NULL, NULL, NULL },
    };
    return training_parse_options(table, sizeof table / sizeof *table, usage, count, argv, done);
}

static int is_one_of(const char *value, const char *a, const char *b, const char *c) {
    return !value || strcmp(value, a) == 0 || strcmp(value, b) == 0 || strcmp(value, c) == 0;
}

// The options whose values are words.
static int read_words(options *o) {
    char *end;
    if (!is_one_of(o->net, "text", "image", "both"))
        return training_fail(TRAINING_INPUT, "--net %s: must be text, image or both", o->net);
    if (!is_one_of(o->costs, "measured", "none", "none"))
        return training_fail(TRAINING_INPUT, "--costs %s: must be measured or none", o->costs);
    o->is_measured = !o->costs || strcmp(o->costs, "measured") == 0;
    if (o->observer && !tl_parse_observer(o->observer, &o->observer_kind))
        return training_fail(TRAINING_INPUT, "--observer %s: --help lists the kinds", o->observer);
    if (o->profiles && !o->is_measured)
        return training_fail(TRAINING_INPUT, "--profiles: needs --costs measured");
    if (training_check_multiple("--width", o->width, TRAINING_HEAD)) return TRAINING_INPUT;
    if (!o->loss) return TRAINING_OK;
    o->limit = strtod(o->loss, &end) / 100.0;
    if (end != o->loss && !*end && o->limit >= 0.0 && o->limit <= 10.0) return TRAINING_OK;
    return training_fail(TRAINING_INPUT, "--loss %s: must be a number from 0 to 1000", o->loss);
}

// *done is 1 after --help.
static int parse_options(options *o, int count, char **argv, int *done) {
    int code;
    set_defaults(o, training_is_quick(count, argv));
    code = read_options(o, count, argv, done);
    return code || *done ? code : read_words(o);
}

// -- main --

static int show_table(study *s, tl_precision_objective objective) {
    int code = add_rows(s, objective);
    if (!code && objective == TL_OBJECTIVE_TIME) code = time_rows(s);
    if (code) return code;
    print_table(s);
    if (objective == TL_OBJECTIVE_TIME) compare_times(s);
    code = write_front(s);
    return code ? code : check_table(s);
}

// Everything that is done with a network, once it is built.
static int run_study(study *s, uint64_t steps, float rate) {
    int code = train(s, steps, rate);
    if (!code) code = load_batches(s);
    if (!code) code = measure_sensitivity(s);
    if (!code) code = compare_estimates(s);
    if (!code) code = measure_costs(s);
    if (code) return code;
    print_costs(s);
    if (s->costs) code = show_table(s, TL_OBJECTIVE_TIME);
    return code ? code : show_table(s, TL_OBJECTIVE_BYTES);
}

static int run_network(const options *o, int is_text, const training_text *t,
                       tl_measured_profiles *measured) {
    study *s = (study *)calloc(1, sizeof *s);
    int code;
    if (!s) return training_fail(TRAINING_INPUT, "no memory");
    s->o = o;
    s->net.env = &s->env;
    s->net.seed = o->seed;
    s->progress.shown_ns = training_wall_ns();
    s->progress.terminal = isatty(STDERR_FILENO);
    code = is_text ? build_text(s, t) : build_images(s);
    if (!code) code = run_study(s, is_text ? o->steps : o->image_steps, is_text ? 0.5f : 0.4f);
    free_rows(s);
    *measured = s->measured;  // it is the caller's now
    quantize_free_net(&s->net);
    free(s);
    return code;
}

int main(int count, char **argv) {
    static training_text text;  // zero
    static table profiles;      // zero
    options o;
    int done, code = parse_options(&o, count, argv, &done);
    if (code || done) return code;
    training_set_signals();
    if (!o.net || strcmp(o.net, "image") != 0) {
        code = training_read_text(o.text, argv[0], o.context, NULL, &text);
        if (!code && text.length / 10 <= o.context + 1)
            code = training_fail(TRAINING_INPUT, "text %s: is too short for --context %d",
                                 text.path, (int)o.context);
        if (!code) code = run_network(&o, 1, &text, &profiles.nets[0]);
    }
    if (!code && (!o.net || strcmp(o.net, "text") != 0)) code = run_network(&o, 0, NULL, &profiles.nets[1]);
    if (!code && o.profiles) code = write_profiles(&o, &profiles);
    tl_free_measured_profiles(NULL, &profiles.nets[0]);
    tl_free_measured_profiles(NULL, &profiles.nets[1]);
    free(text.ids);
    return training_finish(code);
}
