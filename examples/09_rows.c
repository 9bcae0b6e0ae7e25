// 09_rows.c -- a MobileNetV2 that looks at an image in line buffers
//
// You learn: how nodes say which rows they read, how a kernel is called for rows and asks where they lie, what an
// image that arrives row by row saves, and that the bits are those of whole tensors. The weights are random: what
// counts here are bytes and time. Read next: "Regions of rows" in GUIDE.md.
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
#include "nn.h"

enum { MOST_NODES = 80, MOST_SIZE = 512, CLASSES = 10 };

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
static float logits[3][CLASSES];

static float bound(const layer *l, float value) {
    return !l->bounded ? value : value < 0.0f ? 0.0f : value > 6.0f ? 6.0f : value;
}

// -- kernels: the rows that a call is for, all of them where it is whole --

static void find_rows(const tl_kernel_call *call, uint64_t *first, uint64_t *end) {
    *first = call->by_rows ? call->first : 0;
    *end = call->by_rows ? call->first + call->count : layers[call->node].height;
}

static float *row_of(const tl_operand *operand, const layer *l, int64_t row) {
    if (row < 0 || row >= (int64_t)l->height) return NULL;     // padding
    return (float *)tl_find_row(operand, (uint64_t)row, l->width * l->channels * sizeof(float));
}

static tl_result convolve(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node], *in = &layers[l->from];
    uint64_t row, end, x, c, n;
    int ky, kx;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++) {
        float *out = row_of(&call->outputs[0], l, (int64_t)row);
        memset(out, 0, (size_t)(l->width * l->channels) * sizeof *out);
        for (ky = 0; ky < l->kernel; ky++) {
            const float *from = row_of(&call->inputs[0], in, (int64_t)row * l->stride + ky - l->kernel / 2);
            for (x = 0; from && x < l->width; x++)
                for (kx = 0; kx < l->kernel; kx++) {
                    int64_t at = (int64_t)x * l->stride + kx - l->kernel / 2;
                    const float *w = l->weights + (uint64_t)(ky * l->kernel + kx) * in->channels * l->channels;
                    if (at < 0 || at >= (int64_t)in->width) continue;
                    for (c = 0; c < in->channels; c++, w += l->channels) {
                        float value = from[(uint64_t)at * in->channels + c];
                        for (n = 0; n < l->channels; n++) out[x * l->channels + n] += value * w[n];
                    }
                }
        }
        for (n = 0; n < l->width * l->channels; n++) out[n] = bound(l, out[n]);
    }
    return TL_OK;
}

// Channel by channel: its row may stand where the first row under the window stands, of which it keeps the channel.
static void convolve_depthwise_row(const layer *l, const layer *in, const float *const rows[3], float *out) {
    float first[MOST_SIZE];
    uint64_t c, x;
    int ky, kx;
    for (c = 0; c < l->channels; c++) {
        for (x = 0; x < in->width; x++) first[x] = !rows[0] ? 0.0f : rows[0][x * in->channels + c];
        for (x = 0; x < l->width; x++) {
            float sum = 0.0f;
            for (ky = 0; ky < 3; ky++)
                for (kx = 0; rows[ky] && kx < 3; kx++) {
                    int64_t at = (int64_t)x * l->stride + kx - 1;
                    if (at < 0 || at >= (int64_t)in->width) continue;
                    sum += l->weights[(uint64_t)(3 * ky + kx) * l->channels + c] *
                           (ky ? rows[ky][(uint64_t)at * in->channels + c] : first[at]);
                }
            out[x * l->channels + c] = bound(l, sum);
        }
    }
}

static tl_result convolve_depthwise(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node], *in = &layers[l->from];
    const float *rows[3];   // its kernel has three
    uint64_t row, end;
    int ky;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++) {
        for (ky = 0; ky < 3; ky++)
            rows[ky] = row_of(&call->inputs[0], in, (int64_t)row * l->stride + ky - 1);
        convolve_depthwise_row(l, in, rows, row_of(&call->outputs[0], l, (int64_t)row));
    }
    return TL_OK;
}

static tl_result add(const tl_kernel_call *call, void *user) {
    const layer *l = &layers[call->node];
    uint64_t row, end, i;
    (void)user;
    for (find_rows(call, &row, &end); row < end; row++) {
        const float *a = row_of(&call->inputs[0], l, (int64_t)row), *b = row_of(&call->inputs[1], l, (int64_t)row);
        float *out = row_of(&call->outputs[0], l, (int64_t)row);
        for (i = 0; i < l->width * l->channels; i++) out[i] = a[i] + b[i];
    }
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

static int32_t add_layer(const char *op, layer l, tl_relation relation, uint64_t taps, int stream) {
    tl_relation relations[2];
    tl_tensor inputs[2];
    uint64_t bytes = l.height * l.width * l.channels * sizeof(float);
    tl_node_desc desc;
    int32_t id = net.node_count;
    if (id >= MOST_NODES) return -1;
    memset(&desc, 0, sizeof desc);
    relations[0] = relations[1] = relation;
    inputs[0].node = l.from; inputs[1].node = l.other;
    inputs[0].output = inputs[1].output = 0;
    desc.op = op;
    desc.inputs = inputs;
    desc.input_count = (l.from >= 0) + (l.other >= 0);
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fixed = 1;
    desc.no_grad = l.from >= 0;
    desc.fwd_cost = l.from >= 0 ? 2 * l.height * l.width * l.channels * taps : 0;
    desc.dies = l.from < 0 && !stream;
    desc.keep = taps && strcmp(op, "head") == 0;
    if (strcmp(op, "head") != 0) {
        desc.rows = l.height;
        desc.relations = relations;
        desc.stream = stream;
    }
    if (l.other >= 0) desc.inplace = 2;     // over what the last convolution made
    if (taps) {
        uint64_t count = taps * l.channels;
        l.weights = (float *)malloc((size_t)count * sizeof *l.weights);
        if (!l.weights) return -1;
        nn_fill_normal(l.weights, (size_t)count, sqrtf(2.0f / (float)taps), (uint64_t)id);
    }
    if (tl_add_node(&env, &net, &desc, NULL)) return -1;
    layers[id] = l;
    return id;
}

static int32_t add_convolution(const char *op, int32_t from, uint64_t channels, int kernel, int stride, int bounded) {
    const layer *in = &layers[from];
    int depthwise = strcmp(op, "depthwise") == 0;
    uint64_t taps = (uint64_t)(kernel * kernel) * (depthwise ? 1 : in->channels);
    tl_relation windows = { TL_RELATION_WINDOW, 0, 0, 0, 0 };
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
    windows.kernel = kernel;
    windows.stride = stride;
    windows.padding = kernel / 2;
    return add_layer(op, l, windows, taps, 0);
}

// Expand, look at each channel, project; and what came in on top, where it has the shape (Sandler et al., MobileNetV2, 2018).
static int32_t add_block(int32_t from, uint64_t expansion, uint64_t channels, int stride) {
    static const tl_relation same = { TL_RELATION_SAME, 0, 0, 0, 0 };
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

static int build(uint64_t size, double width, int stream) {
    static const struct { uint64_t expansion, channels; int count, stride; } stages[] = {
        { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 }
    };
    static const tl_relation whole = { TL_RELATION_WHOLE, 0, 0, 0, 0 };
    layer image, head;
    size_t s;
    int32_t x;
    int i;
    memset(&image, 0, sizeof image);
    memset(&head, 0, sizeof head);
    image.from = image.other = -1;
    image.height = image.width = size;
    image.channels = 3;
    x = add_layer("input", image, whole, 0, stream);
    x = add_convolution("conv", x, scale(width, 32), 3, 2, 1);
    for (s = 0; s < sizeof stages / sizeof *stages; s++)
        for (i = 0; i < stages[s].count; i++)
            x = add_block(x, stages[s].expansion, scale(width, stages[s].channels), i ? 1 : stages[s].stride);
    x = add_convolution("conv", x, 1280, 1, 1, 1);
    if (x < 0) return 0;
    head.from = x;
    head.other = -1;
    head.height = head.width = 1;
    head.channels = CLASSES;
    return add_layer("head", head, whole, layers[x].channels, 0) >= 0;
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
    if (result != TL_ERROR_INFEASIBLE || budget) return !result;
    desc.budget_bytes = tl_find_least_budget(&env.error);
    return !tl_plan_remat(&env, &desc, plan, NULL);
}

// Run the network once, and once more for the time; one row of the table.
static int run_net(const char *name, const tl_rows_plan *rows, int stream, float *out, double *first_ms) {
    tl_kernel kernels[5] = { { "conv", convolve, NULL, NULL }, { "depthwise", convolve_depthwise, NULL, NULL },
                             { "add", add, NULL, NULL }, { "head", classify, NULL, NULL }, { "input", load, NULL, NULL } };
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
    desc.kernel_count = 5;
    desc.inference = 1;
    desc.rows = rows;
    desc.plan = &plan;
    ok = ok && plan_forwards(rows ? &rows->graph : &net, rows ? rows->peak_bytes : 0, &plan);
    ok = ok && !tl_init_run(&env, &desc, &run);
    for (pass = 0; ok && pass < 2; pass++) {
        double start = now_ms();
        ok = (stream || write_image(run)) && !tl_run_plan(run) && !tl_read_tensor(run, result, out, CLASSES * sizeof *out);
        ms = now_ms() - start;
    }
    if (ok) {
        tl_measure_run(run, &report);
        if (!*first_ms) *first_ms = ms;
        printf("%-28s %12llu %12llu %12llu %8d %9.1f %9.3f\n", name, (unsigned long long)report.planned_peak_bytes,
               (unsigned long long)report.measured_peak_bytes, (unsigned long long)report.taken_bytes,
               (int)report.kernel_count, ms, ms / *first_ms);
        ok = report.planned_peak_bytes == report.measured_peak_bytes;
    }
    if (run) tl_free_run(run);
    tl_free_plan(&env, &plan);
    tl_free_cpu_backend(&env, &backend);
    return ok;
}

static int run_rows(const char *name, int stream, uint64_t budget, float *out, double *first_ms) {
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
    if (tl_plan_rows(&env, &ask, &rows)) return 0;
    ok = run_net(name, &rows, stream, out, first_ms);
    tl_free_rows_plan(&env, &rows);
    return ok;
}

static int run_all(uint64_t size, double width, uint64_t budget) {
    double first_ms = 0.0;
    int ok = build(size, width, 0);
    if (ok) {
        printf("MobileNetV2, width %g, %llu x %llu pixels, f32: %d nodes\n\n", width, (unsigned long long)size,
               (unsigned long long)size, (int)net.node_count);
        printf("%-28s %12s %12s %12s %8s %9s %9s\n", "", "planned", "measured", "taken", "calls", "ms", "of whole");
    }
    ok = ok && run_net("whole tensors", NULL, 0, logits[0], &first_ms);
    ok = ok && run_rows(budget ? "rows within the budget" : "rows", 0, budget, logits[1], &first_ms);
    forget_net();
    ok = ok && build(size, width, 1) && run_rows("rows, and the image by rows", 1, budget, logits[2], &first_ms);
    forget_net();
    if (!ok) { fprintf(stderr, "09_rows: %s\n", env.error.text[0] ? env.error.text : "no memory"); return 1; }
    ok = !memcmp(logits[0], logits[1], sizeof logits[0]) && !memcmp(logits[0], logits[2], sizeof logits[0]);
    printf("\nthe results have %s\n", ok ? "the same bits" : "OTHER BITS");
    return !ok;
}

int main(int count, char **arguments) {
    uint64_t size = 96, budget = 0;
    double width = 0.35;
    int i;
    for (i = 1; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;
        char *end = NULL;
        if (strcmp(arguments[i], "--help") == 0) {
            printf("09_rows [--size PIXELS] [--width FACTOR] [--budget BYTES]\n\n"
                   "A forward of MobileNetV2 with whole tensors, and in regions of rows: bytes, calls and time.\n"
                   "  --size PIXELS    of the image, 32 to %d (96)\n"
                   "  --width FACTOR   of all channels, 0.1 to 2 (0.35)\n"
                   "  --budget BYTES   rows in as few calls as fit into so many bytes; else in as few bytes\n", MOST_SIZE);
            return 0;
        }
        if (!value) { fprintf(stderr, "09_rows: %s: is not known, or has no value; see --help\n", arguments[i]); return 1; }
        if (strcmp(arguments[i], "--size") == 0) size = strtoull(value, &end, 10);
        else if (strcmp(arguments[i], "--budget") == 0) budget = strtoull(value, &end, 10);
        else if (strcmp(arguments[i], "--width") == 0) width = strtod(value, &end);
        if (!end || end == value || *end || size < 32 || size > MOST_SIZE || !(width >= 0.1 && width <= 2.0)) {
            fprintf(stderr, "09_rows: %s %s: is not known, or out of range; see --help\n", arguments[i], value);
            return 1;
        }
        i++;
    }
    return run_all(size, width, budget);
}
