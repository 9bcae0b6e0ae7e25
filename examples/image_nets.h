/* image_nets.h - MobileNetV2 and a U-Net as graphs with rows, and what 09_rows and 09_vulkan_rows share

   Include after tl_strategy.h, with IMAGE_PROGRAM defined as the name of the program.

   A network is a graph of the library and, for each node, a layer that tells its kernel what it works
   on. Tensors are images (height, width, channels) of f32, with rows along the height; the weights are
   random. A machine is a backend with kernels for these layers: image_run_all runs the network there
   with whole tensors and in regions of rows, prints a table, and compares the results bit by bit.

   CONTENTS    (search for "// -- ")
               network    nets    host kernels    plans    runs    command line
*/
#ifndef IMAGE_NETS_H
#define IMAGE_NETS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nn_image.h"

// -- network --

enum { IMAGE_NODES = 80, IMAGE_MOST_SIZE = 512, IMAGE_CLASSES = 10, IMAGE_TALLEST = 3 };

// What a kernel knows of its node.
typedef struct image_layer {
    int32_t  from, other;       // inputs; -1 = none
    int      kernel, stride;    // of a convolution, padded by kernel / 2
    int      bounded;           // 1 = relu6 of what it makes
    uint64_t height, width, channels;
    float   *weights;           // (kernel, kernel, channels in, out); depthwise (kernel, kernel, channels)
} image_layer;

typedef struct image_net {
    tl_env     *env;            // of the graph; errors go there
    tl_graph    graph;
    image_layer layers[IMAGE_NODES];
    int         keeps_means;    // 1 = the head has scratch for the mean of each channel
} image_net;

static inline void image_free_net(image_net *net) {
    int32_t id;
    for (id = 0; id < net->graph.node_count; id++) free(net->layers[id].weights);
    tl_free_graph(net->env, &net->graph);
}

static inline size_t image_result_bytes(const image_net *net) {
    return (size_t)net->graph.outputs[net->graph.tensor_count - 1].bytes;
}

// The rows above the image that the windows of row 0 begin with.
static inline int image_padding(const image_layer *l) { return l->kernel % 2 * (l->kernel / 2); }

// Add a node. relations: which rows of an input a row reads. taps: products of an element, and weights of a
// channel; 0 = none. Returns its id; -1: no memory, or too many.
static inline int32_t image_add_layer(image_net *net, const char *op, image_layer l,
                                      const tl_relation relations[2], uint64_t taps, int stream) {
    int is_head = strcmp(op, "head") == 0;
    tl_tensor inputs[2];
    uint64_t bytes = l.height * l.width * l.channels * sizeof(float), weights = taps * l.channels;
    tl_node_desc desc;
    int32_t id = net->graph.node_count;
    if (id >= IMAGE_NODES) return -1;
    memset(&desc, 0, sizeof desc);
    inputs[0].node = l.from;
    inputs[1].node = l.other;
    inputs[0].output = inputs[1].output = 0;
    desc.op = op;
    desc.inputs = inputs;
    desc.input_count = (l.from >= 0) + (l.other >= 0);
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fixed = 1;
    desc.no_grad = l.from >= 0;
    desc.fwd_cost = l.from >= 0 ? 2 * l.height * l.width * l.channels * (taps ? taps : 1) : 0;
    desc.dies = l.from < 0 && !stream;
    desc.keep = is_head || strcmp(op, "mask") == 0;
    desc.param_bytes = weights * sizeof(float);
    if (is_head && net->keeps_means) desc.fwork_bytes = taps * sizeof(float);
    if (!is_head) {
        desc.rows = l.height;
        desc.relations = relations;
        desc.stream = stream;
        desc.ordered = l.from >= 0;
    }
    if (strcmp(op, "add") == 0) desc.inplace = 2;   // over what the last convolution made
    if (weights) {
        l.weights = (float *)malloc((size_t)weights * sizeof *l.weights);
        if (!l.weights) return -1;
        nn_fill_normal(l.weights, (size_t)weights, sqrtf(2.0f / (float)taps), (uint64_t)id);
    }
    if (tl_add_node(net->env, &net->graph, &desc, NULL)) {
        free(l.weights);
        return -1;
    }
    net->layers[id] = l;
    return id;
}

static inline int32_t image_add_convolution(image_net *net, const char *op, int32_t from, uint64_t channels,
                                            int kernel, int stride, int bounded) {
    const image_layer *in = &net->layers[from];
    tl_relation windows[2] = { { TL_RELATION_WINDOW, 0, 0, 0, 0 }, { TL_RELATION_WHOLE, 0, 0, 0, 0 } };
    uint64_t taps;
    image_layer l;
    if (from < 0) return -1;
    taps = (uint64_t)(kernel * kernel) * (strcmp(op, "depthwise") == 0 ? 1 : in->channels);
    memset(&l, 0, sizeof l);
    l.from = from;
    l.other = -1;
    l.kernel = kernel;
    l.stride = stride;
    l.bounded = bounded;
    l.height = (in->height - 1) / (uint64_t)stride + 1;
    l.width = (in->width - 1) / (uint64_t)stride + 1;
    l.channels = channels;
    windows[0].kernel = kernel;
    windows[0].stride = stride;
    windows[0].padding = image_padding(&l);
    return image_add_layer(net, op, l, windows, strcmp(op, "pool") == 0 ? 0 : taps, 0);
}

// Expand, look at each channel, project; and what came in on top, where it has the shape (Sandler et al.,
// MobileNetV2, 2018).
static inline int32_t image_add_block(image_net *net, int32_t from, uint64_t expansion, uint64_t channels,
                                      int stride) {
    static const tl_relation same[2] = { { TL_RELATION_SAME, 0, 0, 0, 0 }, { TL_RELATION_SAME, 0, 0, 0, 0 } };
    int32_t x = from;
    image_layer sum;
    if (from < 0) return -1;
    if (expansion > 1)
        x = image_add_convolution(net, "conv", x, net->layers[from].channels * expansion, 1, 1, 1);
    if (x >= 0) x = image_add_convolution(net, "depthwise", x, net->layers[x].channels, 3, stride, 1);
    x = image_add_convolution(net, "conv", x, channels, 1, 1, 0);
    if (x < 0 || stride > 1 || net->layers[from].channels != channels) return x;
    sum = net->layers[x];
    sum.weights = NULL;
    sum.from = from;
    sum.other = x;
    return image_add_layer(net, "add", sum, same, 0, 0);
}

static inline uint64_t image_scale(double width, uint64_t channels) {
    uint64_t scaled = (uint64_t)(width * (double)channels + 4.0) / 8 * 8;
    return scaled < 8 ? 8 : scaled;
}

static inline int32_t image_add_input(image_net *net, uint64_t size, int stream) {
    static const tl_relation none[2] = { { TL_RELATION_WHOLE, 0, 0, 0, 0 }, { TL_RELATION_WHOLE, 0, 0, 0, 0 } };
    image_layer image;
    memset(&image, 0, sizeof image);
    image.from = image.other = -1;
    image.height = image.width = size;
    image.channels = 3;
    return image_add_layer(net, "input", image, none, 0, stream);
}

// A row of the image, as a camera would deliver it.
static inline void image_take_row(float *out, const image_layer *l, uint64_t row) {
    uint64_t i;
    for (i = 0; i < l->width * l->channels; i++)
        out[i] = (float)((row * row + 3 * (i / l->channels) + 7 * (i % l->channels)) % 32) / 16.0f - 1.0f;
}

static inline void image_take(float *out, const image_layer *l) {
    uint64_t row;
    for (row = 0; row < l->height; row++) image_take_row(out + row * l->width * l->channels, l, row);
}

// -- nets: 1, or 0 without memory; what was built before must be freed --

static inline int image_build_mobilenet(image_net *net, uint64_t size, double width, int stream) {
    static const struct { uint64_t expansion, channels; int count, stride; } stages[] = {
        { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
        { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 }
    };
    static const tl_relation whole[2] = { { TL_RELATION_WHOLE, 0, 0, 0, 0 }, { TL_RELATION_WHOLE, 0, 0, 0, 0 } };
    image_layer head;
    size_t s;
    int32_t x = image_add_input(net, size, stream);
    int i;
    if (x >= 0) x = image_add_convolution(net, "conv", x, image_scale(width, 32), 3, 2, 1);
    for (s = 0; s < sizeof stages / sizeof *stages; s++)
        for (i = 0; i < stages[s].count; i++)
            x = image_add_block(net, x, stages[s].expansion, image_scale(width, stages[s].channels),
                                i ? 1 : stages[s].stride);
    if (x >= 0) x = image_add_convolution(net, "conv", x, 1280, 1, 1, 1);
    if (x < 0) return 0;
    memset(&head, 0, sizeof head);
    head.from = x;
    head.other = -1;
    head.height = head.width = 1;
    head.channels = IMAGE_CLASSES;
    return image_add_layer(net, "head", head, whole, net->layers[x].channels, 0) >= 0;
}

// What a level made, and behind it the one below, twice as large.
static inline int32_t image_add_join(image_net *net, int32_t from, int32_t below) {
    static const tl_relation relations[2] = { { TL_RELATION_SAME, 0, 0, 0, 0 }, { TL_RELATION_UP, 0, 2, 0, 0 } };
    image_layer l;
    if (from < 0 || below < 0) return -1;
    l = net->layers[from];
    l.weights = NULL;
    l.from = from;
    l.other = below;
    l.channels += net->layers[below].channels;
    return image_add_layer(net, "join", l, relations, 0, 0);
}

// Two convolutions with the channels of a level.
static inline int32_t image_add_two(image_net *net, int32_t x, double width, int level) {
    uint64_t channels = image_scale(width, UINT64_C(32) << level);
    if (x >= 0) x = image_add_convolution(net, "conv", x, channels, 3, 1, 1);
    return x >= 0 ? image_add_convolution(net, "conv", x, channels, 3, 1, 1) : -1;
}

// Down to smaller images and up again, with what each level made on the way down (Ronneberger et al., U-Net,
// 2015).
static inline int image_build_unet(image_net *net, uint64_t size, double width, int stream) {
    enum { LEVELS = 4 };
    int32_t left[LEVELS], x = image_add_input(net, size, stream);
    int level;
    for (level = 0; level < LEVELS && x >= 0; level++) {
        if (level) x = image_add_convolution(net, "pool", x, net->layers[x].channels, 2, 2, 0);
        left[level] = x = image_add_two(net, x, width, level);
    }
    for (level = LEVELS - 2; level >= 0 && x >= 0; level--) {
        x = image_add_two(net, image_add_join(net, left[level], x), width, level);
    }
    return x >= 0 && image_add_convolution(net, "mask", x, IMAGE_CLASSES, 1, 1, 0) >= 0;
}

// -- host kernels: the rows that a call is for, all of them where it is whole; user is the net --

static inline void image_find_rows(const tl_kernel_call *call, const image_net *net,
                                   uint64_t *first, uint64_t *end) {
    *first = call->by_rows ? call->first : 0;
    *end = call->by_rows ? call->first + call->count : net->layers[call->node].height;
}

static inline float *image_row_of(const tl_operand *operand, const image_layer *l, int64_t row) {
    if (row < 0 || row >= (int64_t)l->height) return NULL;     // padding
    return (float *)tl_find_row(operand, (uint64_t)row, l->width * l->channels * sizeof(float));
}

// The rows of an input under the window of a row: NULL is padding.
static inline void image_find_window(const tl_kernel_call *call, const image_net *net, uint64_t row,
                                     const float *rows[IMAGE_TALLEST]) {
    const image_layer *l = &net->layers[call->node], *in = &net->layers[l->from];
    int64_t first = (int64_t)row * l->stride - image_padding(l);
    int k = 0;
    do rows[k] = image_row_of(&call->inputs[0], in, first + k);
    while (++k < l->kernel);
}

static inline tl_result image_convolve(const tl_kernel_call *call, void *user) {
    const image_net *net = (const image_net *)user;
    const image_layer *l = &net->layers[call->node], *in = &net->layers[l->from];
    const float *rows[IMAGE_TALLEST];
    uint64_t row, end;
    for (image_find_rows(call, net, &row, &end); row < end; row++) {
        float *out = image_row_of(&call->outputs[0], l, (int64_t)row);
        image_find_window(call, net, row, rows);
        nn_conv2d_row(out, rows, l->weights, NULL, in->width, in->channels, l->channels,
                      (size_t)l->kernel, (size_t)l->stride);
        if (l->bounded) nn_relu6_forward(out, out, l->width * l->channels);
    }
    return TL_OK;
}

// Its row may stand where the first row under the window stands: nn_depthwise_row keeps of that what it needs.
static inline tl_result image_convolve_depthwise(const tl_kernel_call *call, void *user) {
    const image_net *net = (const image_net *)user;
    const image_layer *l = &net->layers[call->node], *in = &net->layers[l->from];
    const float *rows[IMAGE_TALLEST];
    float first[IMAGE_MOST_SIZE];
    uint64_t row, end;
    for (image_find_rows(call, net, &row, &end); row < end; row++) {
        float *out = image_row_of(&call->outputs[0], l, (int64_t)row);
        image_find_window(call, net, row, rows);
        nn_depthwise_row(out, rows, l->weights, NULL, first, in->width, l->channels,
                         (size_t)l->kernel, (size_t)l->stride);
        nn_relu6_forward(out, out, l->width * l->channels);
    }
    return TL_OK;
}

static inline tl_result image_pool(const tl_kernel_call *call, void *user) {
    const image_net *net = (const image_net *)user;
    const image_layer *l = &net->layers[call->node], *in = &net->layers[l->from];
    const float *rows[IMAGE_TALLEST];
    uint64_t row, end;
    for (image_find_rows(call, net, &row, &end); row < end; row++) {
        image_find_window(call, net, row, rows);
        nn_max_pool_row(image_row_of(&call->outputs[0], l, (int64_t)row), rows, in->width,
                        l->channels, (size_t)l->kernel);
    }
    return TL_OK;
}

// A row, and behind each of its pixels one of a smaller image.
static inline tl_result image_join(const tl_kernel_call *call, void *user) {
    const image_net *net = (const image_net *)user;
    const image_layer *l = &net->layers[call->node], *in = &net->layers[l->from],
                      *other = &net->layers[l->other];
    uint64_t row, end;
    for (image_find_rows(call, net, &row, &end); row < end; row++)
        nn_concat_upsampled_row(image_row_of(&call->outputs[0], l, (int64_t)row),
                                image_row_of(&call->inputs[0], in, (int64_t)row),
                                image_row_of(&call->inputs[1], other, (int64_t)row / 2), l->width, in->channels,
                                other->channels, 2);
    return TL_OK;
}

static inline tl_result image_add(const tl_kernel_call *call, void *user) {
    const image_net *net = (const image_net *)user;
    const image_layer *l = &net->layers[call->node];
    uint64_t row, end;
    for (image_find_rows(call, net, &row, &end); row < end; row++)
        nn_add_forward(image_row_of(&call->outputs[0], l, (int64_t)row),
                       image_row_of(&call->inputs[0], l, (int64_t)row),
                       image_row_of(&call->inputs[1], l, (int64_t)row), l->width * l->channels);
    return TL_OK;
}

// The mean of each channel, then a dense layer: it reads all rows.
static inline tl_result image_classify(const tl_kernel_call *call, void *user) {
    const image_net *net = (const image_net *)user;
    const image_layer *l = &net->layers[call->node], *in = &net->layers[l->from];
    const float *x = (const float *)call->inputs[0].host;
    float *out = (float *)call->outputs[0].host, share = 1.0f / (float)(in->height * in->width);
    uint64_t c, n, i, pixels = in->height * in->width;
    memset(out, 0, IMAGE_CLASSES * sizeof *out);
    for (c = 0; c < in->channels; c++) {
        float sum = 0.0f, mean;
        for (i = 0; i < pixels; i++) sum += x[i * in->channels + c];
        mean = sum * share;
        for (n = 0; n < IMAGE_CLASSES; n++) out[n] += mean * l->weights[c * IMAGE_CLASSES + n];
    }
    return TL_OK;
}

static inline tl_result image_load(const tl_kernel_call *call, void *user) {
    const image_net *net = (const image_net *)user;
    const image_layer *l = &net->layers[call->node];
    uint64_t row, end;
    for (image_find_rows(call, net, &row, &end); row < end; row++)
        image_take_row(image_row_of(&call->outputs[0], l, (int64_t)row), l, row);
    return TL_OK;
}

// The kernels of a machine, in this order.
#define IMAGE_OPS(X) \
    X(conv) X(depthwise) X(add) X(head) X(input) X(pool) X(join) X(mask)
enum { IMAGE_OP_COUNT = 8 };

static inline void image_set_kernels(tl_kernel kernels[IMAGE_OP_COUNT],
                                     const tl_kernel_fn forwards[IMAGE_OP_COUNT], void *user) {
#define IMAGE_NAME(name) #name,
    static const char *const names[IMAGE_OP_COUNT] = { IMAGE_OPS(IMAGE_NAME) };
#undef IMAGE_NAME
    int i;
    for (i = 0; i < IMAGE_OP_COUNT; i++) {
        kernels[i].op = names[i];
        kernels[i].forward = forwards[i];
        kernels[i].backward = NULL;
        kernels[i].user = user;
    }
}

// -- plans --

// Where networks run.
typedef struct image_machine {
    const tl_backend *backend;
    tl_kernel  kernels[IMAGE_OP_COUNT];
    image_net *net;
    double     call_us;             // of a call beside its work, as predicted
    clockid_t  clock;               // of times: CLOCK_MONOTONIC, or CLOCK_PROCESS_CPUTIME_ID, with elapsed times beside
    int      (*prepare)(void *user);   // for each network that was built, 0 = no memory; NULL = nothing to do
    void     (*forget)(void *user);    // before that is freed; NULL likewise
    void      *user;                // of both
} image_machine;

static inline uint64_t image_alignment(const image_machine *m) {
    tl_backend_limits limits;
    memset(&limits, 0, sizeof limits);
    m->backend->limits(m->backend->self, &limits);
    return limits.alignment_bytes;
}

// Plan forwards alone within a budget, or in the least bytes that are found.
static inline int image_plan_forwards(const image_machine *m, const tl_graph *graph,
                                      uint64_t budget, tl_plan *plan) {
    tl_remat_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.alignment_bytes = image_alignment(m);
    desc.inference = 1;
    desc.budget_bytes = budget ? budget : 1;
    result = tl_plan_remat(m->net->env, &desc, plan, NULL);
    if (result != TL_ERROR_INFEASIBLE) return !result;
    desc.budget_bytes = tl_find_least_budget(&m->net->env->error);
    return !tl_plan_remat(m->net->env, &desc, plan, NULL);
}

// What came of a run: the least time, the cost as planned, and the report of its last pass.
typedef struct image_result {
    double        ms, elapsed_ms;   // by the machine's clock, by that on the wall
    uint64_t      cost;
    tl_run_report report;
} image_result;

// Regions of rows in the fewest calls that fit into a budget, or in the least bytes.
static inline int image_plan_rows(const image_machine *m, uint64_t budget, const image_result *whole,
                                  tl_rows_plan *rows) {
    uint8_t in_slots[IMAGE_NODES];
    tl_rows_desc ask;
    int32_t id;
    memset(&ask, 0, sizeof ask);
    for (id = 0; id < m->net->graph.node_count; id++)
        in_slots[id] = strcmp(tl_name_op(&m->net->graph, id), "depthwise") == 0;
    ask.graph = &m->net->graph;
    ask.alignment_bytes = image_alignment(m);
    ask.in_slots = in_slots;
    ask.budget_bytes = budget;
    ask.call_cost = (uint64_t)(m->call_us * 1e-3 * (double)whole->cost / whole->ms);
    return !tl_plan_rows(m->net->env, &ask, rows);
}

// The cost of a graph, each node once.
static inline uint64_t image_cost(const tl_graph *graph) {
    uint64_t cost = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) cost += graph->nodes[id].fwd_cost;
    return cost;
}

// As image_plan_rows, in as few bytes as are predicted to take at most `most` times as long as whole tensors, to a
// hundredth of what these take: more bytes are fewer calls, of more rows each.
static inline int image_plan_rows_within(const image_machine *m, double most, const image_result *whole,
                                         tl_rows_plan *rows) {
    tl_rows_plan least;
    uint64_t low, high, step;
    if (!image_plan_rows(m, 0, whole, rows)) return 0;
    low = rows->peak_bytes;
    high = rows->whole_bytes;
    step = high / 100 + 1;
    if ((double)image_cost(&rows->graph) <= most * (double)whole->cost) return 1;
    tl_free_rows_plan(m->net->env, rows);
    while (high - low > step) {
        uint64_t middle = low + (high - low) / 2;
        if (!image_plan_rows(m, middle, whole, &least)) return 0;
        if ((double)image_cost(&least.graph) <= most * (double)whole->cost) high = middle;
        else low = middle;
        tl_free_rows_plan(m->net->env, &least);
    }
    return image_plan_rows(m, high, whole, rows);
}

// -- runs --

static inline double image_now_ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static inline int image_write(const image_net *net, tl_run *run) {
    const image_layer *l = &net->layers[0];
    size_t bytes = (size_t)(l->height * l->width * l->channels) * sizeof(float);
    float *pixels = (float *)malloc(bytes);
    const tl_tensor image = { 0, 0 };
    int ok = pixels != NULL;
    if (ok) image_take(pixels, l);
    ok = ok && !tl_write_tensor(run, image, pixels, bytes);
    free(pixels);
    return ok;
}

static inline void image_print_run(const image_machine *m, const char *name, const image_result *it,
                                   const image_result *whole) {
    const tl_run_report *report = &it->report;
    printf("%-28s %12llu %12llu %12llu %8d %9.1f %9.3f %9.3f", name,
           (unsigned long long)report->planned_peak_bytes,
           (unsigned long long)report->measured_peak_bytes, (unsigned long long)report->taken_bytes,
           (int)report->kernel_count, it->ms, it->ms / whole->ms,
           (double)it->cost / (double)whole->cost);
    if (m->clock != CLOCK_MONOTONIC) printf(" %9.3f", it->elapsed_ms / whole->elapsed_ms);
    putchar('\n');
}

// Run the network once, and `passes` times more for the least time; what it made goes to `out`. 0 = that failed, or
// it took other bytes than planned.
static inline int image_run(const image_machine *m, const tl_rows_plan *rows, int stream,
                            int passes, float *out, image_result *it) {
    image_net *net = m->net;
    const tl_tensor result = { net->graph.node_count - 1, 0 };
    tl_run_desc desc;
    tl_plan plan;
    tl_run *run = NULL;
    int ok, pass;
    memset(&desc, 0, sizeof desc);
    memset(&plan, 0, sizeof plan);
    memset(it, 0, sizeof *it);
    desc.graph = &net->graph;
    desc.backend = m->backend;
    desc.kernels = m->kernels;
    desc.kernel_count = IMAGE_OP_COUNT;
    desc.inference = 1;
    desc.rows = rows;
    desc.plan = &plan;
    ok = image_plan_forwards(m, rows ? &rows->graph : &net->graph, rows ? rows->peak_bytes : 0, &plan);
    ok = ok && !tl_init_run(net->env, &desc, &run);
    for (pass = 0; ok && pass <= passes; pass++) {
        double start = image_now_ms(m->clock), begun = image_now_ms(CLOCK_MONOTONIC);
        ok = (stream || image_write(net, run)) && !tl_run_plan(run) &&
             !tl_read_tensor(run, result, out, image_result_bytes(net));
        start = image_now_ms(m->clock) - start;
        begun = image_now_ms(CLOCK_MONOTONIC) - begun;
        if (pass < 2 || start < it->ms) it->ms = start;
        if (pass < 2 || begun < it->elapsed_ms) it->elapsed_ms = begun;
    }
    if (ok) tl_measure_run(run, &it->report);
    it->cost = plan.cost;
    if (run) tl_free_run(run);
    tl_free_plan(net->env, &plan);
    return ok && it->report.planned_peak_bytes == it->report.measured_peak_bytes &&
           it->report.planned_taken_bytes == it->report.taken_bytes;
}

typedef struct image_options {
    uint64_t size, budget, device;
    double width, within;
    int unet, validates;
    const char *folder;
} image_options;

// Build the network and what the machine needs for it. 0 = no memory; then, too, it must be freed.
static inline int image_build(image_machine *m, const image_options *o, int stream) {
    int ok = o->unet ? image_build_unet(m->net, o->size, o->width, stream)
                     : image_build_mobilenet(m->net, o->size, o->width, stream);
    return ok && (!m->prepare || m->prepare(m->user));
}

static inline void image_forget(image_machine *m) {
    if (m->forget) m->forget(m->user);
    image_free_net(m->net);
}

// Run it in regions of rows, a row of the table: with within > 0 as image_plan_rows_within.
static inline int image_run_rows(const image_machine *m, const char *name, int stream,
                                 uint64_t budget, double within, float *out,
                                 const image_result *whole) {
    image_result it;
    tl_rows_plan rows;
    int ok = within > 0.0 ? image_plan_rows_within(m, within, whole, &rows)
                          : image_plan_rows(m, budget, whole, &rows);
    if (!ok) return 0;
    ok = image_run(m, &rows, stream, 4, out, &it);
    if (ok) image_print_run(m, name, &it, whole);
    tl_free_rows_plan(m->net->env, &rows);
    return ok;
}

// Learn what a call costs beside its work: how much longer the network takes with a small image in regions of
// rows, by the calls that these are more; the least times of several turns.
static inline int image_measure_calls(image_machine *m, const image_options *o) {
    enum { TURNS = 6 };
    image_options smallest = *o;
    image_result whole, cut;
    tl_rows_plan rows;
    double whole_ms = 0.0, cut_ms = 0.0;
    float *out = NULL;
    int ok, turn, calls;
    memset(&whole, 0, sizeof whole);
    memset(&cut, 0, sizeof cut);
    smallest.size = 32;
    ok = image_build(m, &smallest, 0) && (out = (float *)malloc(image_result_bytes(m->net))) != NULL;
    ok = ok && image_run(m, NULL, 0, 0, out, &whole) && image_plan_rows(m, 0, &whole, &rows);
    for (turn = 0; ok && turn < TURNS; turn++) {
        ok = image_run(m, NULL, 0, 4, out, &whole) && image_run(m, &rows, 0, 4, out, &cut);
        if (!turn || whole.ms < whole_ms) whole_ms = whole.ms;
        if (!turn || cut.ms < cut_ms) cut_ms = cut.ms;
    }
    calls = ok ? (int)(cut.report.kernel_count - whole.report.kernel_count) : 0;
    if (calls > 0 && cut_ms > whole_ms) m->call_us = 1e3 * (cut_ms - whole_ms) / calls;
    if (turn) tl_free_rows_plan(m->net->env, &rows);
    free(out);
    image_forget(m);
    return ok;
}

static inline void image_print_head(const image_machine *m, const image_options *o) {
    printf("%s, width %g, %llu x %llu pixels, f32: %d nodes\n\n", o->unet ? "U-Net" : "MobileNetV2", o->width,
           (unsigned long long)o->size, (unsigned long long)o->size, (int)m->net->graph.node_count);
    printf("%-28s %12s %12s %12s %8s %9s %9s %9s%s\n", "", "planned", "measured", "taken", "calls",
           "ms", "of whole", "predicted", m->clock == CLOCK_MONOTONIC ? "" : "   elapsed");
}

enum { IMAGE_FORMS = 5 };   // whole; rows; with a limit of time; the same two with the image by rows

// Run the network in all forms; one row of the table each. The result goes to `result`, which the caller frees,
// NULL without memory. 0 = a run failed, or the bits of results differ.
static inline int image_run_all(image_machine *m, const image_options *o, float **result) {
    float *results[IMAGE_FORMS] = { NULL, NULL, NULL, NULL, NULL };
    image_result whole;
    const char *within = o->within > 0.0 ? "  within the time" : NULL, *name;
    int ok = image_build(m, o, 0), k, stream, equal = 1;
    size_t bytes = ok ? image_result_bytes(m->net) : 0;
    for (k = 0; ok && k < IMAGE_FORMS; k++) ok = (results[k] = (float *)calloc(bytes, 1)) != NULL;
    if (ok) image_print_head(m, o);
    ok = ok && image_run(m, NULL, 0, 4, results[0], &whole);
    if (ok) image_print_run(m, "whole tensors", &whole, &whole);
    for (k = 1, stream = 0; ok && stream < 2; stream++) {
        if (stream) {
            image_forget(m);
            ok = image_build(m, o, 1);
        }
        name = stream ? "rows, and the image by rows" : o->budget ? "rows within the budget" : "rows";
        ok = ok && image_run_rows(m, name, stream, o->budget, 0.0, results[k++], &whole);
        if (within) ok = ok && image_run_rows(m, within, stream, 0, o->within, results[k++], &whole);
    }
    image_forget(m);
    for (; ok && k > 0; k--) equal = equal && !memcmp(results[0], results[k - 1], bytes);
    if (ok) printf("\nthe results have %s\n", equal ? "the same bits" : "OTHER BITS");
    *result = results[0];
    for (k = 1; k < IMAGE_FORMS; k++) free(results[k]);
    return ok && equal;
}

// -- command line --

// Whether the help of the program names an option.
static inline int image_knows(const char *help, const char *option) {
    const char *found = help;
    size_t length = strlen(option);
    while ((found = strstr(found, option)) != NULL) {
        if (found - help >= 3 && memcmp(found - 3, "\n  ", 3) == 0 && found[length] == ' ') return 1;
        found += length;
    }
    return 0;
}

static inline int image_refuse(const char *option, const char *value) {
    fprintf(stderr, IMAGE_PROGRAM ": %s %s: is not known, or out of range; see --help\n", option, value);
    return 0;
}

// The number or the text of an option.
static inline int image_parse_value(image_options *o, const char *option, const char *value) {
    char *end = NULL;
    double number = strtod(value, &end);
    int is_number = end != value && !*end;
    int is_whole = is_number && number >= 0.0 && number <= 1e15 && floor(number) == number;
    if (strcmp(option, "--write") == 0) o->folder = value;
    else if (strcmp(option, "--size") == 0 && is_whole && number >= 32 && number <= (double)IMAGE_MOST_SIZE)
        o->size = (uint64_t)number;
    else if (strcmp(option, "--budget") == 0 && is_whole) o->budget = (uint64_t)number;
    else if (strcmp(option, "--device") == 0 && is_whole) o->device = (uint64_t)number;
    else if (strcmp(option, "--width") == 0 && is_number && number >= 0.1 && number <= 2.0) o->width = number;
    else if (strcmp(option, "--within") == 0 && is_number && number >= 1.0 && number <= 100.0)
        o->within = number;
    else return image_refuse(option, value);
    return 1;
}

// Read the options that `help` lists, one a line behind two spaces. 0 = bad input; *done = 1 after --help.
static inline int image_parse(int count, char **arguments, const char *help, image_options *o, int *done) {
    int i;
    *done = 0;
    for (i = 1; i < count; i++) {
        const char *option = arguments[i], *value = i + 1 < count ? arguments[i + 1] : "";
        if (strcmp(option, "--help") == 0) {
            fputs(help, stdout);
            *done = 1;
            return 1;
        }
        if (!image_knows(help, option)) return image_refuse(option, "");
        if (strcmp(option, "--unet") == 0) o->unet = 1;
        else if (strcmp(option, "--validate") == 0) o->validates = 1;
        else if (!image_parse_value(o, option, value)) return 0;
        else i++;
    }
    if (!o->unet || o->size % 8 == 0) return 1;
    fprintf(stderr, IMAGE_PROGRAM ": --size: a U-Net needs a multiple of 8\n");
    return 0;
}

#endif
