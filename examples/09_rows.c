// 09_rows.c -- a MobileNetV2, or a U-Net, that looks at an image in line buffers
//
// You learn: how nodes say which rows they read, how a kernel is called for rows and asks where they lie, what an
// image that arrives row by row saves, and that the bits are those of whole tensors. The weights are random: what
// counts here are bytes and time. Read next: "Regions of rows" in GUIDE.md; 09_device is the same on a Cortex-M4.
//
// check: --size 64
//     mkdir -p build && cc -O2 -o build/09_rows examples/09_rows.c -lm && build/09_rows --size 32
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "nn_image.h"

enum { MOST_NODES = 80, MOST_SIZE = 512, CLASSES = 10, TALLEST = 3 };

#define CALL_US 0.1     // of a call beside its work, as predicted

// A node: tensors are (height, width, channels) of f32, rows along the height.
typedef struct layer {
    int32_t  from, other;       // inputs; -1 = none
    int      kernel, stride;    // of a convolution, padded by kernel / 2
    int      bounded;           // 1 = relu6 of what it makes
    uint64_t height, width, channels;
    float   *weights;           // (kernel, kernel, channels in, channels out), depthwise (kernel, kernel, channels)
} layer;

static tl_env env;      // malloc, silent
static tl_graph net;
static layer layers[MOST_NODES];
static float *results[3];

// -- kernels: the rows that a call is for, all of them where it is whole --

static void find_rows(const tl_kernel_call *call, uint64_t *first, uint64_t *end) {
    *first = call->by_rows ? call->first : 0;
    *end = call->by_rows ? call->first + call->count : layers[call->node].height;
}

static float *row_of(const tl_operand *operand, const layer *l, int64_t row) {
    if (row < 0 || row >= (int64_t)l->height) return NULL;     // padding
    return (float *)tl_find_row(operand, (uint64_t)row, l->width * l->channels * sizeof(float));
}

// The rows of an input under the window of a row: NULL is padding.
static void find_window(const tl_kernel_call *call, uint64_t row, const float *rows[TALLEST]) {
    const layer *l = &layers[call->node], *in = &layers[l->from];
    int64_t first = (int64_t)row * l->stride - l->kernel % 2 * (l->kernel / 2);
    int k = 0;
    do rows[k] = row_of(&call->inputs[0], in, first + k);
    while (++k < l->kernel);
}

static tl_result convolve(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node], *in = &layers[l->from];
    const float *rows[TALLEST];
    uint64_t row, end;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++) {
        float *out = row_of(&call->outputs[0], l, (int64_t)row);
        find_window(call, row, rows);
        nn_conv2d_row(out, rows, l->weights, NULL, in->width, in->channels, l->channels, (size_t)l->kernel, (size_t)l->stride);
        if (l->bounded) nn_relu6_forward(out, out, l->width * l->channels);
    }
    return TL_OK;
}

// Its row may stand where the first row under the window stands: nn_depthwise_row keeps of that what it needs.
static tl_result convolve_depthwise(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node], *in = &layers[l->from];
    const float *rows[TALLEST];
    float first[MOST_SIZE];
    uint64_t row, end;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++) {
        float *out = row_of(&call->outputs[0], l, (int64_t)row);
        find_window(call, row, rows);
        nn_depthwise_row(out, rows, l->weights, NULL, first, in->width, l->channels, (size_t)l->kernel, (size_t)l->stride);
        nn_relu6_forward(out, out, l->width * l->channels);
    }
    return TL_OK;
}

static tl_result pool(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node], *in = &layers[l->from];
    const float *rows[TALLEST];
    uint64_t row, end;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++) {
        find_window(call, row, rows);
        nn_max_pool_row(row_of(&call->outputs[0], l, (int64_t)row), rows, in->width, l->channels, (size_t)l->kernel);
    }
    return TL_OK;
}

// A row, and behind each of its pixels one of a smaller image.
static tl_result join(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node], *in = &layers[l->from], *other = &layers[l->other];
    uint64_t row, end;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++)
        nn_concat_upsampled_row(row_of(&call->outputs[0], l, (int64_t)row), row_of(&call->inputs[0], in, (int64_t)row),
                                row_of(&call->inputs[1], other, (int64_t)row / 2), l->width, in->channels, other->channels, 2);
    return TL_OK;
}

static tl_result add(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node];
    uint64_t row, end;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++)
        nn_add_forward(row_of(&call->outputs[0], l, (int64_t)row), row_of(&call->inputs[0], l, (int64_t)row),
                       row_of(&call->inputs[1], l, (int64_t)row), l->width * l->channels);
    return TL_OK;
}

// The mean of each channel, then a dense layer: it reads all rows.
static tl_result classify(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node], *in = &layers[l->from];
    const float *x = (const float *)call->inputs[0].host;
    float *out = (float *)call->outputs[0].host;
    uint64_t c, n, i, pixels = in->height * in->width;
    (void)user;
    memset(out, 0, CLASSES * sizeof *out);
    for (c = 0; c < in->channels; c++) {
        float sum = 0.0f;
        for (i = 0; i < pixels; i++) sum += x[i * in->channels + c];
        for (n = 0; n < CLASSES; n++) out[n] += sum / (float)pixels * l->weights[c * CLASSES + n];
    }
    return TL_OK;
}

// A row of the image, as a camera would deliver it.
static void take_row(float *out, const layer *l, uint64_t row) {
    uint64_t i;
    for (i = 0; i < l->width * l->channels; i++)
        out[i] = (float)((row * row + 3 * (i / l->channels) + 7 * (i % l->channels)) % 32) / 16.0f - 1.0f;
}

static tl_result load(const tl_kernel_call *call, void *user) {
    uint64_t row, end;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++)
        take_row(row_of(&call->outputs[0], &layers[call->node], (int64_t)row), &layers[call->node], row);
    return TL_OK;
}

// -- the network --

// An input of a row: which rows of it, and the layer. taps: products of an element, and weights of a channel; 0 = none.
static int32_t add_layer(const char *op, layer l, const tl_relation relations[2], uint64_t taps, int stream) {
    int is_head = strcmp(op, "head") == 0;
    tl_tensor inputs[2];
    uint64_t bytes = l.height * l.width * l.channels * sizeof(float), weights = taps * l.channels;
    tl_node_desc desc;
    int32_t id = net.node_count;
    if (id >= MOST_NODES) return -1;
    memset(&desc, 0, sizeof desc);
    inputs[0].node = l.from; inputs[1].node = l.other;
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
    if (!is_head) {
        desc.rows = l.height;
        desc.relations = relations;
        desc.stream = stream;
    }
    if (strcmp(op, "add") == 0) desc.inplace = 2;   // over what the last convolution made
    if (weights) {
        l.weights = (float *)malloc((size_t)weights * sizeof *l.weights);
        if (!l.weights) return -1;
        nn_fill_normal(l.weights, (size_t)weights, sqrtf(2.0f / (float)taps), (uint64_t)id);
    }
    if (tl_add_node(&env, &net, &desc, NULL)) return -1;
    layers[id] = l;
    return id;
}

static int32_t add_convolution(const char *op, int32_t from, uint64_t channels, int kernel, int stride, int bounded) {
    const layer *in = &layers[from];
    int depthwise = strcmp(op, "depthwise") == 0;
    uint64_t taps = (uint64_t)(kernel * kernel) * (depthwise ? 1 : in->channels);
    tl_relation windows[2] = { { TL_RELATION_WINDOW, 0, 0, 0, 0 }, { TL_RELATION_WHOLE, 0, 0, 0, 0 } };
    layer l;
    if (from < 0) return -1;
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
    windows[0].padding = kernel % 2 * (kernel / 2);
    return add_layer(op, l, windows, strcmp(op, "pool") == 0 ? 0 : taps, 0);
}

// Expand, look at each channel, project; and what came in on top, where it has the shape (Sandler et al., MobileNetV2, 2018).
static int32_t add_block(int32_t from, uint64_t expansion, uint64_t channels, int stride) {
    static const tl_relation same[2] = { { TL_RELATION_SAME, 0, 0, 0, 0 }, { TL_RELATION_SAME, 0, 0, 0, 0 } };
    int32_t x = from;
    layer sum;
    if (from < 0) return -1;
    if (expansion > 1) x = add_convolution("conv", x, layers[from].channels * expansion, 1, 1, 1);
    if (x >= 0) x = add_convolution("depthwise", x, layers[x].channels, 3, stride, 1);
    x = add_convolution("conv", x, channels, 1, 1, 0);
    if (x < 0 || stride > 1 || layers[from].channels != channels) return x;
    sum = layers[x];
    sum.weights = NULL;
    sum.from = from;
    sum.other = x;
    return add_layer("add", sum, same, 0, 0);
}

static uint64_t scale(double width, uint64_t channels) {
    uint64_t scaled = (uint64_t)(width * (double)channels + 4.0) / 8 * 8;
    return scaled < 8 ? 8 : scaled;
}

static int32_t add_image(uint64_t size, int stream) {
    static const tl_relation none[2] = { { TL_RELATION_WHOLE, 0, 0, 0, 0 }, { TL_RELATION_WHOLE, 0, 0, 0, 0 } };
    layer image;
    memset(&image, 0, sizeof image);
    image.from = image.other = -1;
    image.height = image.width = size;
    image.channels = 3;
    return add_layer("input", image, none, 0, stream);
}

static int build_mobilenet(uint64_t size, double width, int stream) {
    static const struct { uint64_t expansion, channels; int count, stride; } stages[] = {
        { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 }
    };
    static const tl_relation whole[2] = { { TL_RELATION_WHOLE, 0, 0, 0, 0 }, { TL_RELATION_WHOLE, 0, 0, 0, 0 } };
    layer head;
    size_t s;
    int32_t x = add_image(size, stream);
    int i;
    x = add_convolution("conv", x, scale(width, 32), 3, 2, 1);
    for (s = 0; s < sizeof stages / sizeof *stages; s++)
        for (i = 0; i < stages[s].count; i++)
            x = add_block(x, stages[s].expansion, scale(width, stages[s].channels), i ? 1 : stages[s].stride);
    x = add_convolution("conv", x, 1280, 1, 1, 1);
    if (x < 0) return 0;
    memset(&head, 0, sizeof head);
    head.from = x;
    head.other = -1;
    head.height = head.width = 1;
    head.channels = CLASSES;
    return add_layer("head", head, whole, layers[x].channels, 0) >= 0;
}

// What a level made, and behind it the one below, twice as large.
static int32_t add_join(int32_t from, int32_t below) {
    static const tl_relation relations[2] = { { TL_RELATION_SAME, 0, 0, 0, 0 }, { TL_RELATION_UP, 0, 2, 0, 0 } };
    layer l;
    if (from < 0 || below < 0) return -1;
    l = layers[from];
    l.weights = NULL;
    l.from = from;
    l.other = below;
    l.channels += layers[below].channels;
    return add_layer("join", l, relations, 0, 0);
}

// Down to smaller images and up again, with what each level made on the way down (Ronneberger et al., U-Net, 2015).
static int build_unet(uint64_t size, double width, int stream) {
    enum { LEVELS = 4 };
    int32_t left[LEVELS], x = add_image(size, stream);
    int level;
    for (level = 0; level < LEVELS; level++) {
        if (level) x = add_convolution("pool", x, layers[x].channels, 2, 2, 0);
        x = add_convolution("conv", x, scale(width, UINT64_C(32) << level), 3, 1, 1);
        left[level] = x = add_convolution("conv", x, scale(width, UINT64_C(32) << level), 3, 1, 1);
        if (x < 0) return 0;
    }
    for (level = LEVELS - 2; level >= 0; level--) {
        x = add_join(left[level], x);
        x = add_convolution("conv", x, scale(width, UINT64_C(32) << level), 3, 1, 1);
        x = add_convolution("conv", x, scale(width, UINT64_C(32) << level), 3, 1, 1);
        if (x < 0) return 0;
    }
    return add_convolution("mask", x, CLASSES, 1, 1, 0) >= 0;
}

static void forget_net(void) {
    int32_t id;
    for (id = 0; id < net.node_count; id++) free(layers[id].weights);
    tl_free_graph(&env, &net);
}

// -- runs --

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static size_t result_bytes(void) { return (size_t)net.outputs[net.tensor_count - 1].bytes; }

static int write_image(tl_run *run) {
    const layer *l = &layers[0];
    size_t bytes = (size_t)(l->height * l->width * l->channels) * sizeof(float);
    float *pixels = (float *)malloc(bytes);
    const tl_tensor image = { 0, 0 };
    uint64_t row;
    int ok = pixels != NULL;
    for (row = 0; ok && row < l->height; row++) take_row(pixels + row * l->width * l->channels, l, row);
    ok = ok && !tl_write_tensor(run, image, pixels, bytes);
    free(pixels);
    return ok;
}

// Plan forwards alone within a budget, or in the least bytes that are found.
static int plan_forwards(const tl_graph *graph, uint64_t budget, tl_plan *plan) {
    tl_remat_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.alignment_bytes = 64;
    desc.inference = 1;
    desc.budget_bytes = budget ? budget : 1;
    result = tl_plan_remat(&env, &desc, plan, NULL);
    if (result != TL_ERROR_INFEASIBLE) return !result;
    desc.budget_bytes = tl_find_least_budget(&env.error);
    return !tl_plan_remat(&env, &desc, plan, NULL);
}

// What came of whole tensors: time, and cost as planned.
typedef struct baseline { double ms; uint64_t cost; } baseline;

static void print_run(const char *name, const tl_run_report *report, const tl_plan *plan, double ms, const baseline *whole) {
    printf("%-28s %12llu %12llu %12llu %8d %9.1f %9.3f %9.3f\n", name, (unsigned long long)report->planned_peak_bytes,
           (unsigned long long)report->measured_peak_bytes, (unsigned long long)report->taken_bytes, (int)report->kernel_count,
           ms, ms / whole->ms, (double)plan->cost / (double)whole->cost);
}

// Run the network once, and four times more for the least time; one row of the table.
static int run_net(const char *name, const tl_rows_plan *rows, int stream, float *out, baseline *whole) {
    tl_kernel kernels[8] = { { "conv", convolve, NULL, NULL }, { "depthwise", convolve_depthwise, NULL, NULL },
                             { "add", add, NULL, NULL }, { "head", classify, NULL, NULL }, { "input", load, NULL, NULL },
                             { "pool", pool, NULL, NULL }, { "join", join, NULL, NULL }, { "mask", convolve, NULL, NULL } };
    const tl_tensor result = { net.node_count - 1, 0 };
    static tl_cpu_backend_desc cpu;
    tl_run_report report;
    tl_backend backend;
    tl_run_desc desc;
    tl_plan plan;
    tl_run *run = NULL;
    double ms = 0.0;
    int ok, pass;
    memset(&desc, 0, sizeof desc);
    memset(&plan, 0, sizeof plan);
    ok = !tl_init_cpu_backend(&env, &cpu, &backend);
    desc.graph = &net;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 8;
    desc.inference = 1;
    desc.rows = rows;
    desc.plan = &plan;
    ok = ok && plan_forwards(rows ? &rows->graph : &net, rows ? rows->peak_bytes : 0, &plan);
    ok = ok && !tl_init_run(&env, &desc, &run);
    for (pass = 0; ok && pass < 5; pass++) {
        double start = now_ms();
        ok = (stream || write_image(run)) && !tl_run_plan(run) && !tl_read_tensor(run, result, out, result_bytes());
        start = now_ms() - start;
        if (pass == 1 || start < ms) ms = start;
    }
    if (ok) {
        tl_measure_run(run, &report);
        if (!rows) { whole->ms = ms; whole->cost = plan.cost; }
        print_run(name, &report, &plan, ms, whole);
        ok = report.planned_peak_bytes == report.measured_peak_bytes;
    }
    if (run) tl_free_run(run);
    tl_free_plan(&env, &plan);
    tl_free_cpu_backend(&env, &backend);
    return ok;
}

static int run_rows(const char *name, int stream, uint64_t budget, float *out, baseline *whole) {
    uint8_t in_slots[MOST_NODES];
    tl_rows_desc ask;
    tl_rows_plan rows;
    int32_t id;
    int ok;
    memset(&ask, 0, sizeof ask);
    for (id = 0; id < net.node_count; id++) in_slots[id] = strcmp(tl_name_op(&net, id), "depthwise") == 0;
    ask.graph = &net;
    ask.alignment_bytes = 64;       // that of the backend
    ask.in_slots = in_slots;
    ask.budget_bytes = budget;
    ask.call_cost = (uint64_t)(CALL_US * 1e-3 * (double)whole->cost / whole->ms);
    if (tl_plan_rows(&env, &ask, &rows)) return 0;
    ok = run_net(name, &rows, stream, out, whole);
    tl_free_rows_plan(&env, &rows);
    return ok;
}

typedef struct options { uint64_t size, budget; double width; int unet; const char *folder; } options;

static int build(const options *o, int stream) {
    return o->unet ? build_unet(o->size, o->width, stream) : build_mobilenet(o->size, o->width, stream);
}

static int run_all(const options *o) {
    baseline whole = { 0.0, 0 };
    int ok = build(o, 0), k;
    size_t bytes = ok ? result_bytes() : 0;
    for (k = 0; ok && k < 3; k++) ok = (results[k] = (float *)malloc(bytes)) != NULL;
    if (ok) {
        printf("%s, width %g, %llu x %llu pixels, f32: %d nodes\n\n", o->unet ? "U-Net" : "MobileNetV2", o->width,
               (unsigned long long)o->size, (unsigned long long)o->size, (int)net.node_count);
        printf("%-28s %12s %12s %12s %8s %9s %9s %9s\n", "", "planned", "measured", "taken", "calls", "ms", "of whole", "predicted");
    }
    ok = ok && run_net("whole tensors", NULL, 0, results[0], &whole);
    ok = ok && run_rows(o->budget ? "rows within the budget" : "rows", 0, o->budget, results[1], &whole);
    forget_net();
    ok = ok && build(o, 1) && run_rows("rows, and the image by rows", 1, o->budget, results[2], &whole);
    forget_net();
    if (ok) {
        ok = !memcmp(results[0], results[1], bytes) && !memcmp(results[0], results[2], bytes);
        printf("\nthe results have %s\n", ok ? "the same bits" : "OTHER BITS");
    } else {
        fprintf(stderr, "09_rows: %s\n", env.error.text[0] ? env.error.text : "no memory");
    }
    for (k = 0; k < 3; k++) free(results[k]);
    return !ok;
}

// -- files for generated C --

static FILE *open_file(const char *folder, const char *name) {
    char path[1024];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return NULL;
    return fopen(path, "wb");
}

// What kernels of generated C know of each node.
static int write_layers(FILE *file) {
    int32_t id;
    for (id = 0; id < net.node_count; id++) {
        const layer *l = &layers[id];
        fprintf(file, "{ %d, %d, %d, %d, %d, %d, %d },\n", (int)l->from, l->kernel, l->stride, l->bounded, (int)l->height,
                (int)l->width, (int)l->channels);
    }
    return !ferror(file);
}

// All weights in the order of nodes, each at a multiple of 8 bytes, as generated C has them for an alignment of 8.
static int write_weights(FILE *file) {
    static const unsigned char gap[8];
    int32_t id;
    for (id = 0; id < net.node_count; id++) {
        size_t bytes = (size_t)net.nodes[id].param_bytes;
        if (bytes && fwrite(layers[id].weights, 1, bytes, file) != bytes) return 0;
        if (fwrite(gap, 1, (8 - bytes % 8) % 8, file) != (8 - bytes % 8) % 8) return 0;
    }
    return 1;
}

static int write_files(const options *o) {
    char path[1024];
    FILE *rows = open_file(o->folder, "layers.inc"), *weights = open_file(o->folder, "weights.bin");
    int ok = rows && weights && build(o, 1) && write_layers(rows) && write_weights(weights);
    if (rows) ok = !fclose(rows) && ok;
    if (weights) ok = !fclose(weights) && ok;
    ok = ok && snprintf(path, sizeof path, "%s/net.tlg", o->folder) < (int)sizeof path && !tl_write_graph(&env, &net, path);
    forget_net();
    if (!ok) fprintf(stderr, "09_rows: %s: %s\n", o->folder, env.error.text[0] ? env.error.text : "cannot be written");
    return !ok;
}

static const char help[] =
    "09_rows [--unet] [--size PIXELS] [--width FACTOR] [--budget BYTES] [--write FOLDER]\n\n"
    "A forward of MobileNetV2 with whole tensors, and in regions of rows: bytes, calls and time.\n"
    "  --unet           of a U-Net with four levels\n"
    "  --size PIXELS    of the image, 32 to 512 (96); a U-Net halves it three times\n"
    "  --width FACTOR   of all channels, 0.1 to 2 (0.35)\n"
    "  --budget BYTES   rows in as few calls as fit into so many bytes; else in as few bytes\n"
    "  --write FOLDER   nothing is run: writes net.tlg, with the image as a stream, layers.inc and weights.bin, of which\n"
    "                   generated C is made (examples/09_device)\n";

static int parse(int count, char **arguments, options *o) {
    int i;
    for (i = 1; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;
        char *end = NULL;
        if (strcmp(arguments[i], "--unet") == 0) { o->unet = 1; continue; }
        if (!value) { fprintf(stderr, "09_rows: %s: is not known, or has no value; see --help\n", arguments[i]); return 0; }
        if (strcmp(arguments[i], "--write") == 0) { o->folder = value; i++; continue; }
        if (strcmp(arguments[i], "--size") == 0) o->size = strtoull(value, &end, 10);
        else if (strcmp(arguments[i], "--budget") == 0) o->budget = strtoull(value, &end, 10);
        else if (strcmp(arguments[i], "--width") == 0) o->width = strtod(value, &end);
        if (!end || end == value || *end || o->size < 32 || o->size > MOST_SIZE || !(o->width >= 0.1 && o->width <= 2.0)) {
            fprintf(stderr, "09_rows: %s %s: is not known, or out of range; see --help\n", arguments[i], value);
            return 0;
        }
        i++;
    }
    if (!o->unet || o->size % 8 == 0) return 1;
    fprintf(stderr, "09_rows: --size: a U-Net needs a multiple of 8\n");
    return 0;
}

int main(int count, char **arguments) {
    options o = { 96, 0, 0.35, 0, NULL };
    int i;
    for (i = 1; i < count; i++)
        if (strcmp(arguments[i], "--help") == 0) { fputs(help, stdout); return 0; }
    if (!parse(count, arguments, &o)) return 1;
    return o.folder ? write_files(&o) : run_all(&o);
}
