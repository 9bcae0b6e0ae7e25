// 05_quantize.c -- quantise two networks within loss budgets, and run them with integer kernels
//
// You learn: how ranges of tensors are observed, how the loss of each op in each scheme and its
// time are measured, how tl_plan_precision chooses from both, conversions included, and how the
// graph with the chosen schemes runs. It prints a table for a transformer and for a convolution net:
// what was chosen under three budgets, bytes, times against f32, predicted and measured loss. It
// leaves build/front_text.svg and build/front_image.svg: all the choices worth making. Read next:
// nn_int.h, the integer kernels; quantize.h, a network whose nodes run in any scheme.
//
// check: --quick --costs table --out build/check
//
//     mkdir -p build && cc -O3 -ffp-contract=off -o build/05_quantize examples/05_quantize.c -lm
//     build/05_quantize --quick
//
// HOW IT WORKS   The loss of an op is what the network says differently because of it: the
// Kullback-Leibler divergence of its answers from those of f32, in nats a row. It is never negative
// and grows with the square of the noise, so that of several ops it adds up, as the planner
// supposes. A plan is held to it, measured with all of its ops together. It is also what the cross
// entropy increases by on average, where the network's beliefs are right; the increase on the data
// at hand is printed with the standard error that their number leaves it. The ratio of times is that
// of whole passes, conversions included, which take turns with f32.
//
// CONTENTS       (search for "// -- ")
//                options    study    text    images    training    sensitivity    costs    choice
//                times    table    picture    command line    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, isatty, mkdir

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TRAINING_PROGRAM "05_quantize"
#include "training.h"
#include "quantize.h"

// -- options --

typedef struct options {
    const char *text, *out, *net, *costs, *loss, *observer, *objective;  // NULL = not given
    uint64_t    layers, width, context, batch, images, steps, image_steps, seed;
    int         is_measured;      // 1 = costs are times on this machine
    double      limit;            // of --loss, as a part of the loss in f32
    tl_observer_kind observer_kind;
    tl_precision_objective objective_kind;
} options;

// -- study: one network, and what is found out about it --

enum {
    BATCHES = 8,                  // of data to observe, and as many others to measure losses on
    ROUNDS  = 15,                 // of times that are compared
    ROWS    = 4                   // of the table: f32 and three budgets
};

// Budgets at which the networks come out differently: little, some and most of the work in 8 bits.
static const double text_limits[] = { 2e-6, 1e-5, 1e-4 }, image_limits[] = { 5e-5, 2e-4, 1e-3 };

static const uint64_t unseen = (uint64_t)1 << 40;  // numbers of samples not trained on begin here

// One row of the table.
typedef struct row {
    char     label[16];
    double   limit;               // nats; < 0 = none: f32
    tl_precision_plan plan;
    tl_precision_graph applied;
    uint8_t *schemes;             // [node_count]
    quantize_loss loss;
    uint64_t weight_bytes, tensor_bytes;  // tensor_bytes: the most at once
    double   narrow_ratio;        // share of multiply-adds in 8 bits
    uint64_t ns[ROUNDS];
} row;

typedef struct study {
    const options *o;
    tl_env   env;
    quantize_net net;
    quantize_batch seen[BATCHES], fresh[BATCHES];
    double   base_loss;           // cross entropy in f32
    const double *limits;         // [3] budgets, as parts of it
    double  *losses;              // [node_count x TL_SCHEME_COUNT]
    uint64_t *costs;              // the same, in ns; NULL = those of the library's table
    uint32_t *schemes;            // [node_count] bits of what a node can run in
    tl_device device;             // how fast conversions are
    row      rows[ROWS];
    int32_t  row_count;
    training_progress progress;
    uint64_t start_ns;            // of what is going on
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
                    0.6f * nn_normal(own, 8 + (uint64_t)k);
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

// The losses of a choice on fresh data; nodes before start are f32.
static tl_result measure_loss(study *s, const uint8_t *schemes, int32_t start,
                              const tl_precision_graph *applied, quantize_loss *loss) {
    tl_result result = TL_OK;
    int32_t i;
    memset(loss, 0, sizeof *loss);
    for (i = 0; i < BATCHES && !result; i++) {
        const float *logits = NULL;
        result = applied ? quantize_run_applied(&s->net, &s->fresh[i], applied, &logits)
                         : quantize_run_from(&s->net, &s->fresh[i], schemes, start, &logits);
        if (!result) quantize_add_loss(&s->net, &s->fresh[i], logits, 1.0 / BATCHES, loss);
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
    result = measure_loss(s, schemes, node, NULL, &measured);
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
    result = tl_measure_sensitivity(&s->env, &desc, s->losses);
    training_clear_progress(&s->progress);
    if (training_interrupted) return stop_if_interrupted();
    return result ? fail_result(s, "sensitivity", result) : TRAINING_OK;
}

// -- costs: what each op takes in each scheme, and what a conversion takes --

// Run a node on its inputs of f32, converted before the clock starts; ns of one run.
static tl_result time_node(study *s, int32_t id, tl_scheme scheme, int repeat, uint64_t *ns) {
    const quantize_node *n = &s->net.nodes[id];
    tl_format format = tl_find_scheme_format(scheme);
    tl_result result = TL_OK;
    uint64_t start;
    int32_t i;
    quantize_begin_pass(&s->net, &s->fresh[0], id);
    for (i = 0; i < n->from_count; i++) (void)quantize_convert(&s->net, n->from[i], format);
    start = now_ns();
    for (i = 0; i < repeat && !result; i++) result = quantize_run_node(&s->net, id, scheme);
    *ns = (now_ns() - start) / (uint64_t)repeat + 1;
    return result;
}

// The medians of rounds in which the schemes of a node take turns.
static tl_result time_schemes(study *s, int32_t id, uint64_t *costs) {
    static uint64_t rounds[TL_SCHEME_COUNT][ROUNDS];
    int round, scheme, repeat = 1;
    tl_result result = TL_OK;
    for (round = -1; round < ROUNDS && !result; round++) {  // the first makes weights and warms up
        for (scheme = 0; scheme < TL_SCHEME_COUNT && !result; scheme++) {
            uint64_t ns;
            if (!(s->schemes[id] >> scheme & 1)) continue;
            result = time_node(s, id, (tl_scheme)scheme, repeat, &ns);
            if (round >= 0) rounds[scheme][round] = ns;
            else if (!scheme) repeat = (int)(30000 / ns) + 1;
        }
    }
    for (scheme = 0; scheme < TL_SCHEME_COUNT; scheme++)
        costs[scheme] = s->schemes[id] >> scheme & 1
                            ? training_find_quantile(rounds[scheme], ROUNDS, 1, 2) : TL_FORBIDDEN;
    return result;
}

// Bytes per second of conversions between f32 and a format, over all tensors there and back.
static uint64_t measure_conversions(study *s, tl_format format) {
    uint64_t rounds[ROUNDS], start, bytes = 0;
    int round;
    int32_t id;
    for (round = 0; round < ROUNDS; round++) {
        bytes = 0;
        start = now_ns();
        for (id = 1; id <= s->net.logits; id++) {
            void *to = quantize_get_buffer(&s->net, id, format);
            quantize_from_floats(&s->net, id, format, s->fresh[0].tensors[id], to);
            quantize_to_floats(&s->net, id, format, to, s->net.scratch[0]);
            bytes += 2 * s->net.nodes[id].elements *
                     (quantize_is_half(format) ? 4u : format == TL_FORMAT_I8 ? 5u : 6u);
        }
        rounds[round] = now_ns() - start + 1;
    }
    return (uint64_t)((double)bytes * 1e9 /
                      (double)training_find_quantile(rounds, ROUNDS, 1, 2)) + 1;
}

static int measure_costs(study *s) {
    size_t count = (size_t)s->net.graph.node_count;
    tl_result result = TL_OK;
    int32_t id;
    if (!s->o->is_measured) return TRAINING_OK;
    s->costs = (uint64_t *)quantize_take(&s->net, count * TL_SCHEME_COUNT, sizeof *s->costs);
    for (id = 0; id < (int32_t)count && !result; id++) {
        uint64_t *costs = s->costs + (size_t)id * TL_SCHEME_COUNT;
        if (s->net.nodes[id].op != QUANTIZE_INPUT) result = time_schemes(s, id, costs);
        if (training_interrupted) break;
    }
    if (result) return fail_result(s, "costs", result);
    s->device.name = "this machine";
    s->device.bytes_per_second = measure_conversions(s, TL_FORMAT_I8);
    s->device.codec_bytes_per_second = measure_conversions(s, TL_FORMAT_F16);
    return stop_if_interrupted();
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
           (double)s->device.bytes_per_second * 1e-9,
           (double)s->device.codec_bytes_per_second * 1e-9);
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
    result = measure_loss(s, schemes, 0, NULL, &measured);
    *loss = measured.divergence;
    free(schemes);
    return result;
}

static tl_precision_desc describe_choice(study *s) {
    tl_precision_desc desc = tl_default_precision(NULL);
    desc.graph = &s->net.graph;
    desc.device = s->costs ? &s->device : NULL;
    desc.objective = s->o->objective_kind;
    desc.node_schemes = s->schemes;
    desc.allow_sensitive = desc.allow_unknown = 1;  // what they lose was measured
    desc.losses = s->losses;
    desc.costs = s->costs;
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
    desc.device = s->costs ? &s->device : NULL;
    desc.quantizations = s->net.narrow;
    desc.wide_quantizations = s->net.wide;
    result = tl_apply_precision(&s->env, &desc, &r->applied);
    if (result) return fail_result(s, "apply", result);
    r->schemes = (uint8_t *)quantize_take(&s->net, (size_t)r->plan.node_count, 1);
    for (id = 0; id < r->plan.node_count; id++) r->schemes[id] = (uint8_t)r->plan.nodes[id].scheme;
    s->net.conversions = 0;
    result = measure_loss(s, NULL, 0, &r->applied, &r->loss);
    if (!result && s->net.conversions != (int64_t)BATCHES * r->plan.conversion_count)
        return training_fail(TRAINING_MISMATCH, "%s %s: %lld conversions ran, %d were planned",
                             s->net.name, r->label, (long long)(s->net.conversions / BATCHES),
                             (int)r->plan.conversion_count);
    if (!result) result = measure_loss(s, r->schemes, 0, NULL, &loss);
    if (!result && memcmp(&loss, &r->loss, sizeof loss) != 0)
        return training_fail(TRAINING_MISMATCH, "%s %s: the applied graph says something else",
                             s->net.name, r->label);
    if (!result) result = count_bytes(s, r);
    if (result) return fail_result(s, "apply", result);
    count_products(s, r);
    if (r->limit >= 0.0 && r->loss.divergence > r->limit)
        return training_fail(TRAINING_MISMATCH, "%s %s: the loss is %.3g nats, above %.3g",
                             s->net.name, r->label, r->loss.divergence, r->limit);
    return TRAINING_OK;
}

// A row for f32 (part < 0), or for a budget: part of the loss in f32.
static int add_row(study *s, double part) {
    row *r = &s->rows[s->row_count++];
    tl_precision_desc desc = describe_choice(s);
    tl_result result;
    r->limit = part < 0.0 ? -1.0 : part * s->base_loss;
    snprintf(r->label, sizeof r->label, part < 0.0 ? "f32" : "%g %%", 100.0 * part);
    desc.loss_limit = part < 0.0 ? 0.0 : r->limit;
    desc.evaluate = evaluate_plan;
    desc.user = s;
    if (part < 0.0) desc.schemes = 1u << TL_SCHEME_F32;
    result = tl_plan_precision(&s->env, &desc, &r->plan);
    if (result) return fail_result(s, r->label, result);
    return apply_row(s, r);
}

// -- times: whole passes, by turns --

static int time_rows(study *s) {
    int32_t i;
    int round, repeat = 1;
    for (round = -1; round < ROUNDS && !training_interrupted; round++) {
        for (i = 0; i < s->row_count; i++) {
            uint64_t start = now_ns(), ns;
            int k;
            for (k = 0; k < repeat; k++) {
                const float *logits;
                tl_result result = quantize_run_applied(&s->net, &s->fresh[0], &s->rows[i].applied,
                                                        &logits);
                if (result) return fail_result(s, s->rows[i].label, result);
            }
            ns = (now_ns() - start) / (uint64_t)repeat + 1;
            if (round >= 0) s->rows[i].ns[round] = ns;
        }
        if (round < 0) repeat = (int)(4000000 / (s->rows[0].ns[0] + 4000000)) + 1;
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

static void print_row(const study *s, const row *r) {
    double percent = 100.0 / s->base_loss;
    printf("%-8s %5.1f %% %5d %8.1f %8.1f", r->label, 100.0 * r->narrow_ratio,
           (int)r->plan.conversion_count, (double)r->weight_bytes / 1024.0,
           (double)r->tensor_bytes / 1024.0);
    printf("  %7.2f", 1.0 / r->plan.speedup);
    if (s->costs) printf(" %7.2f", training_find_ratio(r->ns, s->rows[0].ns, ROUNDS));
    printf("  %8.4f %8.4f %8.4f +- %.4f", percent * r->plan.loss, percent * r->loss.divergence,
           percent * r->loss.increase, percent * find_standard_error(s, &r->loss));
    print_schemes(r);
}

static void print_table(const study *s) {
    int32_t i;
    printf("\n         products   con-  weights  tensors     %s%s  loss, in %% of that in f32\n",
           s->o->objective_kind == TL_OBJECTIVE_BYTES ? "bytes" : " time",
           s->costs ? "    time" : "");
    printf("budget    in i8   versions    KiB      KiB  planned%s   planned measured   entropy"
           "            schemes\n", s->costs ? "  / f32" : "");
    for (i = 0; i < s->row_count; i++) print_row(s, &s->rows[i]);
    printf("\n");
    fflush(stdout);
}

// The loosest budget must make most of the work 8 bits wide, and these must be worth it.
static int check_table(const study *s) {
    const row *last = &s->rows[s->row_count - 1];
    int32_t largest = find_largest_product(s);
    if (!s->o->loss && last->narrow_ratio < 0.5)
        return training_fail(TRAINING_MISMATCH, "%s %s: only %.1f %% of the multiply-adds are in 8"
                             " bits", s->net.name, last->label, 100.0 * last->narrow_ratio);
    if (s->costs && find_speedup(s, largest, TL_SCHEME_I8_CHANNEL) <= 1.0 &&
        find_speedup(s, largest, TL_SCHEME_DYNAMIC) <= 1.0)
        return training_fail(TRAINING_MISMATCH, "%s %s: integers are slower than floats",
                             s->net.name, tl_name_node(&s->net.graph, largest));
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
    snprintf(path, sizeof path, "%.400s/front_%s.svg", s->o->out, s->net.name);
    result = tl_init_file_sink(&s->env, path, &file, &sink);
    if (!result) result = tl_finish_file_sink(&s->env, &file, tl_write_front_svg(&s->env, &front, sink));
    if (!result)
        printf("wrote %s: %d points%s\n\n", path, (int)front.point_count,
               front.complete ? ", all there are" : "");
    tl_free_precision_front(&s->env, &front);
    return result ? training_fail(TRAINING_INPUT, "%s: not written: %s", path, s->env.error.text)
                  : TRAINING_OK;
}

// -- command line --

static const char usage[] =
    "05_quantize: choose a scheme for each op of two networks, within loss budgets, and run them\n"
    "\n"
    "  --net NAME         text, image or both (both)\n"
    "  --loss PERCENT     one budget, part of the loss in f32, instead of three (text: 0.0002,\n"
    "                     0.001, 0.01; image: 0.005, 0.02, 0.1)\n"
    "  --observer KIND    min-max, moving-average, percentile, mse, entropy (mse)\n"
    "  --costs KIND       measured: times on this machine; table: the library's speed-ups, the\n"
    "                     same everywhere, and nothing is timed (measured)\n"
    "  --objective NAME   time or bytes (time)\n"
    "  --steps N          training steps of the text network (300)\n"
    "  --image-steps N    of the image network (250)\n"
    "  --layers N --width N --context N --batch N\n"
    "                     of the text network (2, 128, 32, 8); width is a multiple of 16\n"
    "  --images N         images in a batch (64)\n"
    "  --text FILE        what the text network learns (examples/training_text.txt)\n"
    "  --seed N           of weights, data and images (1)\n"
    "  --out DIR          where the pictures go (build)\n"
    "  --quick            tiny networks, a few steps\n"
    "  --help             this list\n"
    "\n"
    "exit code: 0 ok, 1 bad input or a file that could not be written, 3 a budget was not held,\n"
    "less than half of the work is in 8 bits at the last one, or integers are slower than floats\n";

static void set_defaults(options *o, int quick) {
    memset(o, 0, sizeof *o);
    o->out = "build";
    o->layers = 2;
    o->width = quick ? 32 : 128;
    o->context = quick ? 16 : 32;
    o->batch = 8;
    o->images = quick ? 16 : 64;
    o->steps = quick ? 60 : 300;
    o->image_steps = quick ? 60 : 250;
    o->seed = 1;
    o->is_measured = 1;
    o->observer_kind = TL_OBSERVER_MSE;
}

// 1 = it was an option with a value; *code says whether the value was right.
static int parse_value_option(options *o, const char *name, const char *value, int *code) {
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
        { "--objective", 0, 0, NULL, &o->objective, NULL },
        { "--text", 0, 0, NULL, &o->text, NULL },
        { "--out", 0, 0, NULL, &o->out, NULL },
    };
    return training_parse_option(table, sizeof table / sizeof *table, name, value, code);
}

static int is_one_of(const char *value, const char *a, const char *b, const char *c) {
    return !value || strcmp(value, a) == 0 || strcmp(value, b) == 0 || strcmp(value, c) == 0;
}

// The options whose values are words.
static int read_words(options *o) {
    char *end;
    if (!is_one_of(o->net, "text", "image", "both"))
        return training_fail(TRAINING_INPUT, "--net %s: must be text, image or both", o->net);
    if (!is_one_of(o->costs, "measured", "table", "table"))
        return training_fail(TRAINING_INPUT, "--costs %s: must be measured or table", o->costs);
    o->is_measured = !o->costs || strcmp(o->costs, "measured") == 0;
    if (o->observer && !tl_parse_observer(o->observer, &o->observer_kind))
        return training_fail(TRAINING_INPUT, "--observer %s: --help lists the kinds", o->observer);
    if (o->objective && !tl_parse_objective(o->objective, &o->objective_kind))
        return training_fail(TRAINING_INPUT, "--objective %s: must be time or bytes", o->objective);
    if (o->width % TRAINING_HEAD)
        return training_fail(TRAINING_INPUT, "--width %d: must be a multiple of %d", (int)o->width,
                             TRAINING_HEAD);
    if (!o->loss) return TRAINING_OK;
    o->limit = strtod(o->loss, &end) / 100.0;
    if (end != o->loss && !*end && o->limit >= 0.0 && o->limit <= 10.0) return TRAINING_OK;
    return training_fail(TRAINING_INPUT, "--loss %s: must be a number from 0 to 1000", o->loss);
}

// *done is 1 after --help.
static int parse_options(options *o, int count, char **argv, int *done) {
    int i, quick = 0, code = TRAINING_OK;
    *done = 0;
    for (i = 1; i < count; i++) quick |= strcmp(argv[i], "--quick") == 0;
    set_defaults(o, quick);
    for (i = 1; i < count && !code; i++) {
        const char *value = i + 1 < count ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0) continue;
        if (strcmp(argv[i], "--help") == 0) {
            *done = 1;
            fputs(usage, stdout);
            return TRAINING_OK;
        }
        if (!parse_value_option(o, argv[i], value, &code))
            return training_fail(TRAINING_INPUT, "%s: unknown option; --help lists them", argv[i]);
        i++;
    }
    return code ? code : read_words(o);
}

// -- main --

// Everything that is done with a network, once it is built.
static int run_study(study *s, uint64_t steps, float rate) {
    int32_t i, count = s->o->loss ? 1 : 3;
    const double *limits = s->o->loss ? &s->o->limit : s->limits;
    int code = train(s, steps, rate);
    if (!code) code = load_batches(s);
    if (!code) code = measure_sensitivity(s);
    if (!code) code = measure_costs(s);
    if (code) return code;
    print_costs(s);
    code = add_row(s, -1.0);
    for (i = 0; i < count && !code; i++) code = add_row(s, limits[i]);
    if (!code && s->costs) code = time_rows(s);
    if (code) return code;
    print_table(s);
    code = write_front(s);
    return code ? code : check_table(s);
}

static int run_network(const options *o, int is_text, const training_text *t) {
    study *s = (study *)calloc(1, sizeof *s);
    int32_t i;
    int code;
    if (!s) return training_fail(TRAINING_INPUT, "no memory");
    s->o = o;
    s->net.env = &s->env;
    s->net.seed = o->seed;
    s->progress.shown_ns = training_wall_ns();
    s->progress.terminal = isatty(STDERR_FILENO);
    s->limits = is_text ? text_limits : image_limits;
    code = is_text ? build_text(s, t) : build_images(s);
    if (!code) code = run_study(s, is_text ? o->steps : o->image_steps, is_text ? 0.5f : 0.4f);
    for (i = 0; i < s->row_count; i++) {
        tl_free_precision_plan(&s->env, &s->rows[i].plan);
        tl_free_precision_graph(&s->env, &s->rows[i].applied);
    }
    quantize_free_net(&s->net);
    free(s);
    return code;
}

int main(int count, char **argv) {
    static training_text text;  // zero
    options o;
    int done, code = parse_options(&o, count, argv, &done);
    if (code || done) return code;
    training_set_signals();
    if (!o.net || strcmp(o.net, "image") != 0) {
        code = training_read_text(o.text, argv[0], o.context, NULL, &text);
        if (!code && text.length / 10 <= o.context + 1)
            code = training_fail(TRAINING_INPUT, "text %s: is too short for --context %d",
                                 text.path, (int)o.context);
        if (!code) code = run_network(&o, 1, &text);
    }
    if (!code && (!o.net || strcmp(o.net, "text") != 0)) code = run_network(&o, 0, NULL);
    free(text.ids);
    return training_finish(code);
}
