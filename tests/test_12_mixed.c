// [12] RUN with formats: conversions that the run carries out, gradients through them, quantised ones, loss scaling.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/run_bed.h"
#include "support/record_support.h"
#include "nn.h"
#include "support/texts.h"

#define F32  TL_FORMAT_F32
#define F16  TL_FORMAT_F16
#define BF16 TL_FORMAT_BF16
#define I16  TL_FORMAT_I16
#define I8   TL_FORMAT_I8

// SAMPLE thins the walk in slow builds.

static tl_tensor tensor_of(int32_t node) {
    tl_tensor tensor;
    tensor.node = node;
    tensor.output = 0;
    return tensor;
}

// -- numbers of a format --

static uint64_t width_of(tl_format format) { return format == F32 ? 4 : format == I8 ? 1 : 2; }

static tl_codec codec_of(tl_format format) {
    return format == F16 ? TL_CODEC_F16 : format == BF16 ? TL_CODEC_BF16 : TL_CODEC_NONE;
}

static uint64_t count_of(const tl_operand *operand) { return operand->range.bytes / width_of(operand->format); }

static void load(const tl_operand *operand, float *values) {
    tl_expand_bytes(codec_of(operand->format), values, operand->host, 4 * count_of(operand));
}

static void store(const tl_operand *operand, const float *values) {
    tl_compress_bytes(codec_of(operand->format), operand->host, values, 4 * count_of(operand));
}

// What is left of a number in a format.
static float rounded(tl_format format, float value) {
    float packed[1];
    tl_compress_bytes(codec_of(format), packed, &value, 4);
    tl_expand_bytes(codec_of(format), &value, packed, 4);
    return value;
}

// -- kernels that compute with numbers, whatever the formats --

enum { ELEMENTS = 300 };

static void add_gradient(const tl_operand *operand, const float *values) {
    float sum[ELEMENTS];
    uint64_t i;
    if (!operand->range.bytes) return;
    load(operand, sum);
    for (i = 0; i < count_of(operand); i++) sum[i] += values[i];
    store(operand, sum);
}

// out = a b + a, elementwise over two inputs, or a^2 + a of one.
static tl_result mul_forward(const tl_kernel_call *call, void *user) {
    float a[ELEMENTS], b[ELEMENTS], out[ELEMENTS];
    uint64_t i;
    (void)user;
    load(&call->inputs[0], a);
    load(&call->inputs[call->graph->nodes[call->node].input_count - 1], b);
    for (i = 0; i < count_of(&call->outputs[0]); i++) out[i] = a[i] * b[i] + a[i];
    store(&call->outputs[0], out);
    return TL_OK;
}

static tl_result mul_backward(const tl_kernel_call *call, void *user) {
    float a[ELEMENTS], b[ELEMENTS], d[ELEMENTS], part[ELEMENTS] = { 0 };
    int32_t last = call->graph->nodes[call->node].input_count - 1;
    uint64_t i, count = count_of(&call->output_grads[0]);
    (void)user;
    load(&call->inputs[0], a);
    load(&call->inputs[last], b);
    load(&call->output_grads[0], d);
    for (i = 0; i < count; i++) part[i] = d[i] * ((last ? b[i] : 2 * a[i]) + 1.0f);
    add_gradient(&call->input_grads[0], part);
    for (i = 0; i < count; i++) part[i] = d[i] * a[i];
    if (last) add_gradient(&call->input_grads[1], part);
    return TL_OK;
}

// One number: the mean.
static tl_result mean_forward(const tl_kernel_call *call, void *user) {
    float a[ELEMENTS], sum = 0.0f;
    uint64_t i, count = count_of(&call->inputs[0]);
    (void)user;
    load(&call->inputs[0], a);
    for (i = 0; i < count; i++) sum += a[i];
    sum /= (float)count;
    store(&call->outputs[0], &sum);
    return TL_OK;
}

static tl_result mean_backward(const tl_kernel_call *call, void *user) {
    float part[ELEMENTS] = { 0 }, d;
    uint64_t i, count = count_of(&call->input_grads[0]);
    (void)user;
    load(&call->output_grads[0], &d);
    for (i = 0; i < count; i++) part[i] = d / (float)count;
    add_gradient(&call->input_grads[0], part);
    return TL_OK;
}

// Multiplies by 1.5, and gives its user (float [ELEMENTS]) the gradient of what it read, were it a parameter.
static tl_result weigh_forward(const tl_kernel_call *call, void *user) {
    float a[ELEMENTS];
    uint64_t i;
    (void)user;
    load(&call->inputs[0], a);
    for (i = 0; i < count_of(&call->outputs[0]); i++) a[i] *= 1.5f;
    store(&call->outputs[0], a);
    return TL_OK;
}

static tl_result weigh_backward(const tl_kernel_call *call, void *user) {
    load(&call->output_grads[0], (float *)user);
    return TL_OK;
}

static tl_result do_nothing(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

// -- a run with kernels for numbers --

typedef struct net {
    tl_env      env, backend_env;
    spy         spy;
    tl_backend  backend;
    tl_kernel   kernels[4];
    float       gradient[ELEMENTS];
    tl_run_desc desc;
    tl_run     *run;
} net;

static void set_kernel(tl_kernel *kernel, const char *op, tl_kernel_fn forward, tl_kernel_fn backward, void *user) {
    kernel->op = op;
    kernel->forward = forward;
    kernel->backward = backward;
    kernel->user = user;
}

static void net_open(net *n, const tl_graph *graph, const uint8_t *formats, int kind) {
    memset(n, 0, sizeof *n);
    n->backend = spy_open(&n->backend_env, kind, 7, 1, &n->spy);
    set_kernel(&n->kernels[0], "mul", mul_forward, mul_backward, NULL);
    set_kernel(&n->kernels[1], "mean", mean_forward, mean_backward, NULL);
    set_kernel(&n->kernels[2], "weigh", weigh_forward, weigh_backward, n->gradient);
    n->desc.graph = graph;
    n->desc.backend = &n->backend;
    n->desc.kernels = n->kernels;
    n->desc.kernel_count = 3;
    n->desc.kernel_precisions = 1u << TL_PRECISION_MIXED;
    n->desc.formats = formats;
}

static void net_must(net *n, tl_result result) {
    if (result) fail_msg("%s", n->env.error.text);
}

static void net_close(net *n) {
    tl_free_run(n->run);
    spy_close(&n->backend_env, &n->spy);
}

static void fill_values(float *values, uint64_t count, uint64_t seed) {
    uint64_t i;
    for (i = 0; i < count; i++)
        values[i] = (float)((double)(tl_mix_u64(seed, i) >> 12) / 4503599627370496.0 * 4.0 - 2.0);
}

// -- conversions against tl_compress_bytes --

// x as it is in f16 and bf16, from each of them in the other one, and back in f32.
static const uint8_t ladder_formats[] = { F32, F16, F32, BF16, F32, BF16, F16, F16 };
enum { LADDER = 8 };

static tl_graph ladder_of(uint64_t bytes, uint64_t scratch) {
    static const int32_t from[] = { 0, 0, 1, 0, 3, 1, 3, 1 };
    tl_graph graph;
    tl_node_desc desc;
    int32_t id;
    tl_init_graph(&graph);
    for (id = 0; id < LADDER; id++) {
        uint64_t out = id ? tl_find_format_bytes((tl_format)ladder_formats[id], (bytes + 3) / 4 * 4) : bytes;
        tl_tensor input = tensor_of(from[id]);
        memset(&desc, 0, sizeof desc);
        desc.op = id ? "convert" : "input";
        desc.inputs = &input;
        desc.input_count = id > 0;
        desc.output_bytes = &out;
        desc.output_count = 1;
        desc.keep = id > 0;
        desc.no_grad = id > 0;
        if (id == 5 || id == 6) desc.fwork_bytes = scratch;
        if (tl_add_node(NULL, &graph, &desc, NULL)) fail_msg("%s", "ladder");
    }
    return graph;
}

static void expect_tensor(net *n, int32_t id, const void *expected) {
    unsigned char bytes[4 * ELEMENTS];
    uint64_t size = n->desc.graph->outputs[id].bytes;
    net_must(n, tl_read_tensor(n->run, tensor_of(id), bytes, size));
    if (memcmp(bytes, expected, (size_t)size)) fail_msg("tensor %d of %d bytes differs", (int)id, (int)size);
}

static void expect_ladder(net *n, const unsigned char *x, uint64_t bytes) {
    uint64_t wide = (bytes + 3) / 4 * 4;
    static unsigned char f16[2 * ELEMENTS], bf16[2 * ELEMENTS], back[4 * ELEMENTS], other[2 * ELEMENTS];
    tl_compress_bytes(TL_CODEC_F16, f16, x, bytes);
    tl_compress_bytes(TL_CODEC_BF16, bf16, x, bytes);
    expect_tensor(n, 1, f16);
    expect_tensor(n, 3, bf16);
    expect_tensor(n, 7, f16);
    tl_expand_bytes(TL_CODEC_F16, back, f16, wide);
    expect_tensor(n, 2, back);
    tl_compress_bytes(TL_CODEC_BF16, other, back, wide);
    expect_tensor(n, 5, other);
    tl_expand_bytes(TL_CODEC_BF16, back, bf16, wide);
    expect_tensor(n, 4, back);
    tl_compress_bytes(TL_CODEC_F16, other, back, wide);
    expect_tensor(n, 6, other);
}

// Any bits, so infinities, numbers that are none and the smallest ones, too; and lengths that are no whole elements.
static void conversions_hold_what_tl_compress_bytes_makes(void **state) {
    static net n;
    uint64_t bytes;
    int kind;
    (void)state;
    for (kind = 0; kind < BACKEND_KINDS; kind++)
        for (bytes = 0; bytes <= 4 * ELEMENTS; bytes += bytes < 20 ? 1 : 97) {
            unsigned char x[4 * ELEMENTS];
            tl_graph graph = ladder_of(bytes, kind % 2 ? (bytes + 11) / 4 * 4 : 0);  // with scratch and without
            tl_run_report report;
            uint64_t k;
            for (k = 0; k < bytes; k++) x[k] = (unsigned char)tl_mix_u64(bytes, k);
            net_open(&n, &graph, ladder_formats, kind);
            n.desc.inference = 1;
            net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
            net_must(&n, tl_write_tensor(n.run, tensor_of(0), x, bytes));
            net_must(&n, tl_run_plan(n.run));
            expect_ladder(&n, x, bytes);
            tl_measure_run(n.run, &report);
            assert_int_equal(report.convert_count, LADDER - 1);
            assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
            if (bytes && kind % 2) assert_int_equal(n.spy.calls[SPY_COMPRESS] + n.spy.calls[SPY_EXPAND], 8);
            net_close(&n);
            tl_free_graph(NULL, &graph);
        }
}

// A device that only records: nothing is mapped, and nothing waited for.
static void conversions_are_recorded_where_the_host_sees_nothing(void **state) {
    static net n;
    static recorder r;
    static const int32_t follows[LADDER] = { -1, -1, 0, -1, 2, 0, 2, 0 };
    tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_none()), TL_PRECISION_MIXED);
    tl_graph graph = ladder_of(4 * ELEMENTS, 4 * ELEMENTS);
    float x[ELEMENTS];
    tl_backend inner;
    tl_run_step step;
    int32_t done = 0, k = 0;
    (void)state;
    fill_values(x, ELEMENTS, 5);
    net_open(&n, &graph, ladder_formats, 0);
    inner = n.backend;
    n.backend = record_open(&r, &inner);
    n.desc.strategy = &strategy;    // no place is used twice, so a step waits for those alone whose bytes it reads
    net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
    record_finish(&r);
    net_must(&n, tl_write_tensor(n.run, tensor_of(0), x, sizeof x));
    record_start(&r);
    r.refuses_maps = 1;
    net_must(&n, tl_start_pass(n.run, 0));
    for (;; k++) {
        net_must(&n, tl_next_step(n.run, &step, &done));
        if (done) break;
        assert_int_equal(step.is_compute, 0);
        assert_null(step.kernel);
        assert_int_equal(step.access_count, 2 + (step.step.node == 5 || step.step.node == 6));
        assert_int_equal(step.depends_on, follows[step.step.node]);
        assert_int_equal(tl_run_step_kernel(n.run, &step), TL_ERROR_STALE);
    }
    assert_int_equal(k, LADDER - 1);
    r.refuses_maps = 0;
    record_finish(&r);
    expect_ladder(&n, (const unsigned char *)x, sizeof x);
    assert_int_equal(r.waits, 0);
    tl_free_run(n.run);
    n.run = NULL;
    record_close(&r);
    net_close(&n);
    tl_free_graph(NULL, &graph);
}

// -- gradients through conversions --

// w is read in f32 by b, in f16 by c and d (one conversion), and in bf16 by e; all of it ends in the mean.
//
//     0 x --> 1 w (f32) --+--> 2 w16 (f16) --+--> 5 c (f16) ----> 7 c32 (f32) --> 8 s --> 10 mean
//                         +--> 3 wb (bf16) -----> 6 e (bf16) ---> 9 eb (f16) --------------^
//                         +--> 4 b (f32) ---------------------------------------> 8 s
static const char diamond[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=1200 needs=none in=-\n"
    "node 1 w weigh fwd=1 bwd=1 out=1200 needs=none in=0\n"
    "node 2 w16 convert fwd=1 bwd=1 out=600 needs=none in=1\n"
    "node 3 wb convert fwd=1 bwd=1 out=600 needs=none in=1\n"
    "node 4 b mul fwd=1 bwd=1 out=1200 needs=in in=1\n"
    "node 5 c mul fwd=1 bwd=1 out=600 needs=in in=2,2\n"
    "node 6 e mul fwd=1 bwd=1 out=600 needs=in in=3\n"
    "node 7 c32 convert fwd=1 bwd=1 out=1200 needs=none in=5\n"
    "node 8 s mul fwd=1 bwd=1 out=1200 needs=in in=7,4\n"
    "node 9 eb convert fwd=1 bwd=1 fwork=1200 bwork=1200 out=600 needs=none in=6\n"
    "node 10 t mul fwd=1 bwd=1 out=1200 needs=in in=8,9\n"
    "node 11 m mean fwd=1 bwd=1 keep out=4 needs=none in=10\n";
static const uint8_t diamond_formats[] = { F32, F32, F16, BF16, F32, F16, BF16, F32, F32, F16, F32, F32 };

// One step: the mean, and the gradient of w in n->gradient.
static float diamond_step(net *n, const float *x) {
    float mean;
    net_must(n, tl_write_tensor(n->run, tensor_of(0), x, 4 * ELEMENTS));
    net_must(n, tl_run_plan(n->run));
    net_must(n, tl_read_tensor(n->run, tensor_of(11), &mean, sizeof mean));
    return mean;
}

// The function of the diamond, in doubles.
static double diamond_of(const float *x) {
    double sum = 0.0;
    int i;
    for (i = 0; i < ELEMENTS; i++) {
        double w = 1.5 * (double)x[i], q = w * w + w, s = q * q + q;
        sum += s * q + s;
    }
    return sum / ELEMENTS;
}

static void gradients_through_conversions_are_those_of_finite_differences(void **state) {
    static net n;
    float x[ELEMENTS];
    tl_graph graph = graph_of(diamond);
    int kind, i;
    (void)state;
    fill_values(x, ELEMENTS, 11);
    for (kind = 0; kind < BACKEND_KINDS; kind++) {
        double worst = 0.0, largest = 0.0;
        net_open(&n, &graph, diamond_formats, kind);
        net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
        assert_true(fabs((double)diamond_step(&n, x) / diamond_of(x) - 1.0) < 0.01);
        for (i = 0; i < ELEMENTS; i++) {
            float moved[ELEMENTS];
            double up, step = 1e-3, slope;
            memcpy(moved, x, sizeof x);
            moved[i] = (float)((double)x[i] + step);
            up = diamond_of(moved);
            moved[i] = (float)((double)x[i] - step);
            slope = (up - diamond_of(moved)) / (2 * step) / 1.5;  // of w
            if (fabs(slope) > largest) largest = fabs(slope);
            if (fabs((double)n.gradient[i] - slope) > worst) worst = fabs((double)n.gradient[i] - slope);
        }
        assert_true(worst < 0.01 * largest);  // 8 and 11 binary digits
        assert_true(worst > 1e-4 * largest);  // it is not all f32
        net_close(&n);
    }
    tl_free_graph(NULL, &graph);
}

// By hand: the sum of all contributions in call order, each rounded once, in the format of the tensor.
static void a_gradient_is_summed_in_f32_and_rounded_to_its_format(void **state) {
    static const char text[] =
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 w weigh fwd=1 bwd=1 out=2 needs=none in=0\n"     // f16
        "node 2 a convert fwd=1 bwd=1 out=4 needs=none in=1\n"   // f32
        "node 3 b convert fwd=1 bwd=1 out=2 needs=none in=1\n"   // bf16
        "node 4 p nothing fwd=1 bwd=1 out=4 needs=none in=2\n"
        "node 5 q nothing fwd=1 bwd=1 out=4 needs=none in=3\n";
    static const uint8_t formats[] = { F32, F16, F32, BF16, F32, F32 };
    static const float parts[][2] = { { 1.0f, 0.0f }, { 0.1f, 0.3f }, { 2048.0f, 1.0f }, { 65504.0f, 16.0f },
                                      { 1e-8f, 5.9604645e-8f }, { 1.00048828125f, 3.0f } };
    static net n;
    tl_graph graph = graph_of(text);
    size_t k;
    (void)state;
    for (k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        float b = rounded(F16, rounded(BF16, parts[k][1]));  // the first contribution: to zeroes
        tl_run_step step;
        int32_t done = 0;
        net_open(&n, &graph, formats, BACKEND_CHECKED);
        set_kernel(&n.kernels[3], "nothing", do_nothing, do_nothing, NULL);
        n.desc.kernel_count = 4;
        net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
        net_must(&n, tl_start_pass(n.run, 0));
        while (!done) {
            net_must(&n, tl_next_step(n.run, &step, &done));
            if (!step.is_compute) continue;
            if (step.step.kind == TL_STEP_BACKWARD && step.step.node >= 4) {  // what a kernel would write
                const tl_operand *operand = &step.call.input_grads[0];
                float value = parts[k][step.step.node - 4];
                assert_int_equal(operand->format, step.step.node == 4 ? F32 : BF16);
                tl_compress_bytes(codec_of(operand->format), operand->host, &value, 4);
            }
            net_must(&n, tl_run_step_kernel(n.run, &step));
        }
        assert_true(n.gradient[0] == rounded(F16, b + parts[k][0]));
        net_close(&n);
    }
    tl_free_graph(NULL, &graph);
}

// Where all formats are f32, a conversion is a copy: to the last bit what it is without formats.
static void formats_that_are_all_f32_change_no_bit(void **state) {
    static bed b;
    tl_random random = { 77 };
    long round, rounds = scaled(60);
    (void)state;
    for (round = 0; round < rounds; round++) {
        uint8_t formats[128];
        uint64_t expected, peak;
        tl_graph graph;
        if (random_graph(NULL, &random, 16, &graph)) fail_msg("%s", "no graph");
        assert_true(graph.tensor_count <= 128);
        memset(formats, F32, sizeof formats);
        expected = keep_all_outcome(&graph, 0, 1, &peak);
        bed_open(&b, &graph, (int)(round % BACKEND_KINDS), (uint64_t)round, 1);
        b.desc.formats = formats;
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        if (bed_step(&b, 0) != expected) fail_msg("round %ld", round);
        assert_int_equal(bed_report(&b).convert_count, 0);
        bed_close(&b);
        tl_free_graph(NULL, &graph);
    }
}

// -- random graphs with conversions: planned is measured, and no plan changes a gradient --

typedef struct mixed_graph {
    tl_graph graph;
    uint8_t  formats[64];
    int32_t  conversions;
} mixed_graph;

// A node of random formats; what it reads in another one is converted first, now and then for several readers.
static void add_mixed_node(tl_random *random, mixed_graph *m, uint64_t count, uint64_t cut) {
    static const char *const ops[] = { "conv", "linear", "relu" };
    tl_node_desc desc;
    tl_tensor inputs[3];
    char needs[64];
    tl_format format = (tl_format)tl_next_random_below(random, 3);
    uint64_t bytes = count * width_of(format) - (format == F32 ? cut : 0);
    int32_t k;
    memset(&desc, 0, sizeof desc);
    desc.op = ops[tl_next_random_below(random, 3)];
    desc.input_count = random_count(random, 1, 3);
    desc.inputs = inputs;
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    for (k = 0; k < desc.input_count; k++) {
        int32_t id = random_chance(random, 60) ? m->graph.node_count - 1 : random_count(random, 0, m->graph.node_count - 1);
        inputs[k] = tensor_of(id);
    }
    random_needs(random, desc.input_count, 1, needs);
    desc.needs = needs;
    desc.fwd_cost = 1 + tl_next_random_below(random, 30);
    desc.bwd_cost = 2 * desc.fwd_cost;
    if (random_chance(random, 30)) desc.saved_bytes = 1 + tl_next_random_below(random, 20);
    if (random_chance(random, 30)) desc.bwork_bytes = 1 + tl_next_random_below(random, 20);
    desc.keep = random_chance(random, 10);
    if (random_chance(random, 40)) {  // a conversion instead
        desc.op = "convert";
        desc.input_count = 1;
        desc.needs = NULL;
        desc.saved_bytes = desc.bwork_bytes = 0;
        desc.no_grad = random_chance(random, 10);
        if (desc.no_grad) desc.bwd_cost = 0;
        if (random_chance(random, 50)) desc.fwork_bytes = desc.bwork_bytes = desc.no_grad ? 0 : 4 * count;
        m->conversions++;
    }
    m->formats[m->graph.node_count] = (uint8_t)format;
    if (tl_add_node(NULL, &m->graph, &desc, NULL)) fail_msg("%s", "no node");
}

static void make_mixed(tl_random *random, mixed_graph *m) {
    uint64_t count = 1 + tl_next_random_below(random, 60);
    uint64_t cut = random_chance(random, 30) ? tl_next_random_below(random, 4) : 0, bytes = 4 * count - cut;
    int32_t nodes = random_count(random, 4, 16);
    tl_node_desc desc;
    memset(m, 0, sizeof *m);
    memset(&desc, 0, sizeof desc);
    tl_init_graph(&m->graph);
    desc.op = "input";
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    if (tl_add_node(NULL, &m->graph, &desc, NULL)) fail_msg("%s", "no input");
    while (m->graph.node_count < nodes) add_mixed_node(random, m, count, cut);
}

// The mixer's kernels for all but conversions.
static void mixed_open(bed *b, const mixed_graph *m, int kind, uint64_t seed) {
    int32_t i, count = 0;
    bed_open(b, &m->graph, kind, seed, 1);
    for (i = 0; i < b->desc.kernel_count; i++)
        if (strcmp(b->kernels[i].op, "convert") != 0) b->kernels[count++] = b->kernels[i];
    b->desc.kernel_count = count;
    b->desc.formats = m->formats;
    b->desc.kernel_precisions = 1u << TL_PRECISION_MIXED;
}

static uint64_t mixed_outcome(bed *b) {
    (void)bed_step(b, 0);
    return bed_step(b, 0);
}

static void mixed_graphs_run_as_planned_with_the_gradients_of_keep_all(void **state) {
    static bed b;
    tl_random random = { 612 };
    long round, rounds = scaled(400), conversions = 0, recomputes = 0, lower = 0, online = 0, evictions = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        mixed_graph m;
        tl_plan all, plan;
        tl_remat_desc desc;
        tl_remat_report found;
        tl_run_report report;
        uint64_t expected, budget;
        tl_result result;
        make_mixed(&random, &m);
        conversions += m.conversions;
        if (tl_plan_keep_all(NULL, &m.graph, 0, &all)) fail_msg("%s", "keep all");
        mixed_open(&b, &m, 0, 0);
        b.desc.plan = &all;
        bed_must_init(&b);
        expected = mixed_outcome(&b);
        assert_int_equal(bed_report(&b).measured_peak_bytes, all.peak_bytes);
        bed_close(&b);
        // A plan within less.
        memset(&desc, 0, sizeof desc);
        desc.graph = &m.graph;
        desc.budget_bytes = budget = 1 + all.peak_bytes - tl_next_random_below(&random, all.peak_bytes * 2 / 3 + 1);
        desc.work_limit = 5000 + tl_next_random_below(&random, 60000);
        result = tl_plan_remat(NULL, &desc, &plan, &found);
        if (result == TL_ERROR_INFEASIBLE) {
            desc.budget_bytes = budget = found.least_budget_bytes;
            result = tl_plan_remat(NULL, &desc, &plan, &found);
        }
        assert_int_equal(result, TL_OK);
        mixed_open(&b, &m, (int)(round % BACKEND_KINDS), tl_next_random(&random));
        b.desc.plan = &plan;
        b.desc.budget_bytes = budget;
        b.spy.limit = budget;
        bed_must_init(&b);
        if (mixed_outcome(&b) != expected) fail_msg("round %ld: other gradients under a plan", round);
        report = bed_report(&b);
        assert_int_equal(report.measured_peak_bytes, plan.peak_bytes);
        assert_false(b.spy.went_over);
        recomputes += report.recompute_count;
        lower += plan.peak_bytes < all.peak_bytes;
        bed_close(&b);
        // And online within the same budget, or within the least that works there.
        mixed_open(&b, &m, (int)(round / 4 % BACKEND_KINDS), tl_next_random(&random));
        b.desc.budget_bytes = budget;
        if (bed_init(&b)) {
            b.desc.budget_bytes = 4 * all.peak_bytes;
            bed_must_init(&b);
        } else online++;
        if (mixed_outcome(&b) != expected) fail_msg("round %ld: other gradients online", round);
        evictions += bed_report(&b).eviction_count;
        bed_close(&b);
        tl_free_plan(NULL, &all);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &m.graph);
    }
    printf("%ld graphs with %ld conversions: %ld forwards made again, %ld below the peak of keep all; online %ld within\n"
           "the budget, %ld evictions\n", rounds, conversions, recomputes, lower, online, evictions);
    assert_true(conversions > 2 * rounds && recomputes > rounds / 2 && lower > rounds / 2 && online > rounds / 4);
    assert_true(evictions > rounds / 2);
}

// -- integers --

// x in i8, from there in f32, in i8 of another scale and in f16; in i16, and from bf16 in i8.
static const char quantised[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=1200 needs=none in=-\n"
    "node 1 a convert fwd=1 bwd=0 keep out=300 needs=none in=0\n"
    "node 2 b convert fwd=1 bwd=0 keep out=1200 needs=none in=1\n"
    "node 3 c convert fwd=1 bwd=0 keep out=300 needs=none in=1\n"
    "node 4 d convert fwd=1 bwd=0 keep out=600 needs=none in=1\n"
    "node 5 e convert fwd=1 bwd=0 keep out=600 needs=none in=0\n"
    "node 6 f convert fwd=1 bwd=0 keep out=600 needs=none in=0\n"
    "node 7 g convert fwd=1 bwd=0 keep out=300 needs=none in=6\n"
    "node 8 h convert fwd=1 bwd=0 keep out=600 needs=none in=1\n";
static const uint8_t quantised_formats[] = { F32, I8, F32, I8, F16, I16, BF16, I8, I16 };

static void set_quantizations(tl_quantization *q) {
    memset(q, 0, 9 * sizeof *q);
    q[1] = quantization_of(0.02f, 5, -128, 127);
    q[3] = quantization_of(0.05f, -3, -128, 127);
    q[5] = q[8] = quantization_of(1e-4f, 0, -32767, 32767);
    q[7] = quantization_of(0.01f, 100, 0, 255);
}

static void integers_are_those_of_tl_quantize(void **state) {
    static net n;
    tl_quantization q[9];
    tl_graph graph = graph_of(quantised);
    float x[ELEMENTS], back[ELEMENTS];
    int8_t a[ELEMENTS], other[ELEMENTS];
    int16_t wide[ELEMENTS];
    uint16_t half[ELEMENTS];
    int kind;
    (void)state;
    set_quantizations(q);
    fill_values(x, ELEMENTS, 3);
    x[0] = 0.0f;
    x[1] = 100.0f;
    x[2] = -INFINITY;
    x[3] = NAN;
    for (kind = 0; kind < BACKEND_KINDS; kind++) {
        net_open(&n, &graph, quantised_formats, kind);
        n.desc.inference = 1;
        n.desc.quantizations = q;
        net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
        net_must(&n, tl_write_tensor(n.run, tensor_of(0), x, sizeof x));
        net_must(&n, tl_run_plan(n.run));
        net_must(&n, tl_quantize(&n.env, &q[1], 1, 1, I8, x, a, ELEMENTS));
        assert_int_equal(a[0], 5);
        assert_int_equal(a[3], 5);
        expect_tensor(&n, 1, a);
        net_must(&n, tl_dequantize(&n.env, &q[1], 1, 1, I8, a, back, ELEMENTS));
        expect_tensor(&n, 2, back);
        tl_compress_bytes(TL_CODEC_F16, half, back, sizeof back);
        expect_tensor(&n, 4, half);
        net_must(&n, tl_quantize(&n.env, &q[3], 1, 1, I8, back, other, ELEMENTS));
        expect_tensor(&n, 3, other);
        net_must(&n, tl_quantize(&n.env, &q[8], 1, 1, I16, back, wide, ELEMENTS));
        expect_tensor(&n, 8, wide);
        net_must(&n, tl_quantize(&n.env, &q[5], 1, 1, I16, x, wide, ELEMENTS));
        expect_tensor(&n, 5, wide);
        tl_compress_bytes(TL_CODEC_BF16, half, x, sizeof x);
        tl_expand_bytes(TL_CODEC_BF16, back, half, sizeof back);
        net_must(&n, tl_quantize(&n.env, &q[7], 1, 1, I8, back, other, ELEMENTS));
        expect_tensor(&n, 7, other);
        net_close(&n);
    }
    tl_free_graph(NULL, &graph);
}

// Two bytes of a float are missing: it counts as if they were zeroes, and they are not written.
static void a_float_that_is_cut_short_is_padded_with_zeroes(void **state) {
    static const uint8_t formats[] = { F32, I8, F32 };
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=14 needs=none in=-\n"
                               "node 1 a convert fwd=1 bwd=0 keep out=4 needs=none in=0\n"
                               "node 2 b convert fwd=1 bwd=0 keep out=14 needs=none in=1\n";
    static net n;
    tl_quantization q[3];
    tl_graph graph = graph_of(text);
    float x[4] = { 1.0f, -1.0f, 0.25f, 0.78125f }, padded[4];
    int8_t a[4];
    (void)state;
    memset(q, 0, sizeof q);
    q[1] = quantization_of(0.01f, 0, -128, 127);
    memcpy(padded, x, sizeof x);
    memset((char *)padded + 14, 0, 2);
    net_open(&n, &graph, formats, BACKEND_CHECKED);
    n.desc.inference = 1;
    n.desc.quantizations = q;
    net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
    net_must(&n, tl_write_tensor(n.run, tensor_of(0), x, 14));
    net_must(&n, tl_run_plan(n.run));
    net_must(&n, tl_quantize(&n.env, &q[1], 1, 1, I8, padded, a, 4));
    expect_tensor(&n, 1, a);
    net_must(&n, tl_dequantize(&n.env, &q[1], 1, 1, I8, a, padded, 4));
    expect_tensor(&n, 2, padded);
    net_close(&n);
    tl_free_graph(NULL, &graph);
}

// -- what the fields of a desc change --

// The same diamond with all tensors in the format of a precision, at the f32 bytes that a strategy scales.
static tl_run_report precision_report(const tl_graph *graph, const uint8_t *formats, tl_precision precision) {
    static net n;
    tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_full()), precision);
    tl_run_report report;
    net_open(&n, graph, formats, 0);
    set_kernel(&n.kernels[0], "mul", do_nothing, do_nothing, NULL);
    set_kernel(&n.kernels[1], "mean", do_nothing, do_nothing, NULL);
    set_kernel(&n.kernels[2], "weigh", do_nothing, do_nothing, NULL);
    set_kernel(&n.kernels[3], "convert", do_nothing, do_nothing, NULL);
    n.desc.kernel_count = formats ? 3 : 4;
    n.desc.kernel_precisions = 1u << precision;
    n.desc.strategy = &strategy;
    net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
    net_must(&n, tl_run_plan(n.run));
    tl_measure_run(n.run, &report);
    net_close(&n);
    return report;
}

static void every_precision_of_a_strategy_changes_bytes_and_counters(void **state) {
    tl_graph graph = graph_of(diamond);
    tl_run_report mixed = precision_report(&graph, diamond_formats, TL_PRECISION_MIXED), reports[TL_PRECISION_COUNT];
    uint64_t inputs = input_bytes(&graph);
    int32_t i;
    int precision;
    (void)state;
    for (i = 0; i < graph.tensor_count; i++)  // what it is in f32: then a strategy scales it
        if (diamond_formats[i] != F32) OUTPUTS(&graph)[i].bytes *= 2;
    for (precision = 0; precision < TL_PRECISION_COUNT; precision++) {
        if (precision == TL_PRECISION_MIXED || precision == TL_PRECISION_FULL) continue;
        reports[precision] = precision_report(&graph, NULL, (tl_precision)precision);
        assert_int_equal(reports[precision].convert_count, 0);
    }
    assert_int_equal(mixed.convert_count, 8);  // forward and backward of four
    assert_int_equal(mixed.forward_count, 11);
    assert_int_equal(mixed.backward_count, 11);
    assert_true(mixed.measured_peak_bytes > reports[TL_PRECISION_HALF].measured_peak_bytes);
    assert_true(mixed.measured_peak_bytes < reports[TL_PRECISION_SINGLE].measured_peak_bytes);
    assert_int_equal(reports[TL_PRECISION_HALF].measured_peak_bytes, reports[TL_PRECISION_BF16].measured_peak_bytes);
    assert_int_equal(reports[TL_PRECISION_DOUBLE].measured_peak_bytes - inputs,
                     2 * (reports[TL_PRECISION_SINGLE].measured_peak_bytes - inputs));
    tl_free_graph(NULL, &graph);
}

// Sees what every operand holds.
static tl_result see_formats(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    const uint8_t *formats = (const uint8_t *)user;
    int32_t i;
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = call->graph->inputs[node->first_input + i].tensor;
        assert_int_equal(call->inputs[i].format, formats[tensor]);
        assert_int_equal(call->input_grads[i].format, formats[tensor]);
    }
    assert_int_equal(call->outputs[0].format, formats[node->first_output]);
    assert_int_equal(call->output_grads[0].format, formats[node->first_output]);
    assert_int_equal(call->saved.format, F32);
    assert_int_equal(call->scratch.format, F32);
    assert_int_equal(call->precision, TL_PRECISION_MIXED);
    return TL_OK;
}

static void kernels_know_what_their_operands_hold_and_may_convert_themselves(void **state) {
    static const char *const ops[] = { "mul", "mean", "weigh", "convert" };
    static net n;
    tl_graph graph = graph_of(diamond);
    tl_run_report report;
    int k;
    (void)state;
    net_open(&n, &graph, diamond_formats, BACKEND_CHECKED);
    for (k = 0; k < 4; k++) set_kernel(&n.kernels[k], ops[k], see_formats, see_formats, (void *)(uintptr_t)diamond_formats);
    n.desc.kernel_count = 4;
    net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
    net_must(&n, tl_run_plan(n.run));
    tl_measure_run(n.run, &report);
    assert_int_equal(report.convert_count, 0);
    assert_int_equal(n.spy.calls[SPY_COMPRESS] + n.spy.calls[SPY_EXPAND], 0);
    net_close(&n);
    tl_free_graph(NULL, &graph);
}

// A conversion ends when it is enqueued, however late the next step is asked for.
static void see_conversion_time(const tl_run_event *event, void *user) {
    long *seen = (long *)user;
    assert_true(event->end_ns >= event->start_ns);
    if (event->step.node != 2 && event->step.node != 3) return;
    assert_true(event->end_ns - event->start_ns < 1000);
    ++*seen;
}

static void conversions_are_observed(void **state) {
    static net n;
    tl_graph graph = graph_of(diamond);
    tl_run_step step;
    long seen = 0;
    int32_t done = 0;
    (void)state;
    net_open(&n, &graph, diamond_formats, 0);
    n.desc.profiling = 1;
    n.desc.observe = see_conversion_time;
    n.desc.observe_user = &seen;
    net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
    net_must(&n, tl_start_pass(n.run, 0));
    while (!done) {
        net_must(&n, tl_next_step(n.run, &step, &done));
        if (step.is_compute) net_must(&n, tl_run_step_kernel(n.run, &step));
        n.spy.clock_calls += 1000;
    }
    assert_int_equal(seen, 6);  // forward, drop and backward of two
    net_close(&n);
    tl_free_graph(NULL, &graph);
}

// -- the loss scaler --

typedef struct first_gradient {
    unsigned char bytes[16];
    uint64_t count;
    tl_loss_scaler *scaler;
    int      changes;             // 1 = the kernel changes the scale, as a caller between two passes might
} first_gradient;

static tl_result see_gradient(const tl_kernel_call *call, void *user) {
    first_gradient *first = (first_gradient *)user;
    if (call->kind != TL_STEP_BACKWARD || call->node != 2) return TL_OK;
    first->count = call->output_grads[0].range.bytes;
    memcpy(first->bytes, call->output_grads[0].host, (size_t)first->count);
    if (first->changes) first->scaler->scale = 3.0f;
    return TL_OK;
}

static const char pair[] = "tlg 1\n"
                           "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
                           "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0\n"
                           "node 2 b op fwd=1 bwd=1 out=8 needs=none in=1\n";

static void open_pair(net *n, const tl_graph *graph, const uint8_t *formats, first_gradient *first, tl_loss_scaler *scaler) {
    memset(first, 0, sizeof *first);
    first->scaler = scaler;
    net_open(n, graph, formats, BACKEND_CHECKED);
    set_kernel(&n->kernels[0], "op", see_gradient, see_gradient, first);
    n->desc.kernel_count = 1;
    n->desc.loss_scaler = scaler;
}

static void the_first_gradient_is_the_loss_scale_in_the_format_of_its_tensor(void **state) {
    static const tl_precision precisions[] = { TL_PRECISION_SINGLE, TL_PRECISION_DOUBLE, TL_PRECISION_HALF, TL_PRECISION_BF16 };
    static const float scales[] = { 1.0f, 65536.0f, 1536.0f, 1e-3f, 16777216.0f };
    static net n;
    tl_graph graph = graph_of(pair);
    first_gradient first;
    size_t k, word;
    int format;
    (void)state;
    for (k = 0; k < sizeof scales / sizeof scales[0]; k++)
        for (word = 0; word < 2; word++) {
            float value = scales[k] * (word ? 0.375f : 1.0f), least = 1e-6f;
            tl_loss_scaler scaler;
            for (format = F32; format <= BF16; format++) {
                uint8_t formats[3] = { F32, F32, (uint8_t)format };
                unsigned char expected[8];
                float two[2] = { value, value };
                memset(&scaler, 0, sizeof scaler);
                scaler.scale = scales[k];
                scaler.least = least;
                open_pair(&n, &graph, formats, &first, &scaler);
                n.desc.loss_gradient_word = word ? bits_of_float(0.375f) : 0;
                OUTPUTS(&graph)[2].bytes = format == F32 ? 8 : 4;
                net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
                net_must(&n, tl_run_plan(n.run));
                tl_compress_bytes(codec_of((tl_format)format), expected, two, sizeof two);
                assert_int_equal(first.count, format == F32 ? 8 : 4);
                assert_memory_equal(first.bytes, expected, (size_t)first.count);
                net_close(&n);
            }
            OUTPUTS(&graph)[2].bytes = 8;
            for (format = 0; format < 4; format++) {  // and in a run of one precision
                tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_full()), precisions[format]);
                double two[2] = { (double)value, (double)value };
                float floats[2] = { value, value };
                unsigned char expected[16];
                memset(&scaler, 0, sizeof scaler);
                scaler.scale = scales[k];
                scaler.least = least;
                open_pair(&n, &graph, NULL, &first, &scaler);
                n.desc.loss_gradient_word = word ? bits_of_float(0.375f) : 0;
                n.desc.strategy = &strategy;
                n.desc.kernel_precisions = 1u << precisions[format];
                net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
                net_must(&n, tl_run_plan(n.run));
                if (precisions[format] == TL_PRECISION_DOUBLE) memcpy(expected, two, sizeof two);
                else tl_compress_bytes(precisions[format] == TL_PRECISION_HALF ? TL_CODEC_F16 : precisions[format] == TL_PRECISION_BF16
                                       ? TL_CODEC_BF16 : TL_CODEC_NONE, expected, floats, sizeof floats);
                assert_memory_equal(first.bytes, expected, (size_t)first.count);
                net_close(&n);
            }
        }
    tl_free_graph(NULL, &graph);
}

static uint32_t first_word(const first_gradient *first) {
    uint32_t word;
    memcpy(&word, first->bytes, sizeof word);
    return word;
}

static void the_loss_scale_is_read_at_the_start_of_a_training_step(void **state) {
    static net n;
    uint8_t formats[3] = { F32, F32, F32 };
    tl_graph graph = graph_of(pair);
    first_gradient first;
    tl_loss_scaler scaler;
    (void)state;
    memset(&scaler, 0, sizeof scaler);
    open_pair(&n, &graph, formats, &first, &scaler);
    first.changes = 1;
    n.desc.repeat_count = 2;
    net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
    assert_true(scaler.scale == 0.0f);
    net_must(&n, tl_run_plan(n.run));
    assert_int_equal(scaler.growth_interval, 2000);  // the defaults are filled in
    assert_true(scaler.most == 16777216.0f && scaler.least == 1.0f);
    assert_int_equal(first_word(&first), bits_of_float(65536.0f));  // the second micro-batch, too
    net_must(&n, tl_run_plan(n.run));
    assert_int_equal(first_word(&first), bits_of_float(3.0f));
    // An overflow halves it for the next step.
    first.changes = 0;
    assert_int_equal(tl_next_loss_scale(&scaler, 1), 0);
    net_must(&n, tl_run_plan(n.run));
    assert_int_equal(first_word(&first), bits_of_float(1.5f));
    net_close(&n);
    tl_free_graph(NULL, &graph);
}

// -- tl_apply_precision --

static void graphs_of_tl_apply_precision_run(void **state) {
    static const char text[] =
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=1200 needs=none in=-\n"
        "node 1 w weigh fwd=10 bwd=20 out=1200 needs=none in=0\n"
        "node 2 a mul fwd=10 bwd=20 out=1200 needs=in in=1\n"
        "node 3 b mul fwd=10 bwd=20 out=1200 needs=in in=2,1\n"
        "node 4 m mean fwd=10 bwd=20 keep out=4 needs=none in=3\n";
    static const tl_scheme choices[][5] = {
        { TL_SCHEME_F32, TL_SCHEME_F32, TL_SCHEME_F32, TL_SCHEME_F32, TL_SCHEME_F32 },
        { TL_SCHEME_F32, TL_SCHEME_F32, TL_SCHEME_BF16, TL_SCHEME_BF16, TL_SCHEME_F32 },
        { TL_SCHEME_F32, TL_SCHEME_BF16, TL_SCHEME_F16, TL_SCHEME_BF16, TL_SCHEME_F32 },
        { TL_SCHEME_F32, TL_SCHEME_F16, TL_SCHEME_F16, TL_SCHEME_F32, TL_SCHEME_F32 },
        { TL_SCHEME_F32, TL_SCHEME_F16, TL_SCHEME_F16, TL_SCHEME_F16, TL_SCHEME_F16 },
    };
    static net n;
    static const int32_t conversions[] = { 0, 2, 4, 3, 2 };
    tl_graph graph = graph_of(text);
    float x[ELEMENTS], reference[ELEMENTS];
    uint64_t peaks[5];
    size_t k;
    (void)state;
    memset(reference, 0, sizeof reference);
    fill_values(x, ELEMENTS, 17);
    for (k = 0; k < 5; k++) {
        tl_precision_node nodes[5];
        tl_precision_plan plan;
        tl_precision_graph applied;
        tl_apply_desc apply;
        tl_run_report report;
        float mean;
        int i;
        memset(nodes, 0, sizeof nodes);
        memset(&plan, 0, sizeof plan);
        memset(&apply, 0, sizeof apply);
        for (i = 0; i < 5; i++) { nodes[i].scheme = choices[k][i]; nodes[i].speedup = 1.0; }
        plan.nodes = nodes;
        plan.node_count = 5;
        apply.graph = &graph;
        apply.plan = &plan;
        apply.training = 1;
        if (tl_apply_precision(&n.env, &apply, &applied)) fail_msg("%s", n.env.error.text);
        net_open(&n, &applied.graph, applied.formats, BACKEND_CHECKED);
        n.desc.quantizations = applied.quantizations;
        net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
        net_must(&n, tl_write_tensor(n.run, tensor_of(0), x, sizeof x));
        net_must(&n, tl_run_plan(n.run));
        net_must(&n, tl_read_tensor(n.run, tensor_of(applied.graph.node_count - 1), &mean, 4));
        tl_measure_run(n.run, &report);
        peaks[k] = report.measured_peak_bytes;
        assert_int_equal(applied.conversion_count, conversions[k]);
        assert_true(report.convert_count >= conversions[k] && report.convert_count <= 2 * conversions[k]);
        assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
        assert_true(isfinite(mean));
        for (i = 0; i < ELEMENTS; i++) {
            if (k == 0) reference[i] = n.gradient[i];
            else assert_true(fabsf(n.gradient[i] - reference[i]) < 0.05f * (fabsf(reference[i]) + 0.01f));
        }
        net_close(&n);
        tl_free_precision_graph(&n.env, &applied);
    }
    assert_true(peaks[4] < peaks[0]);
    tl_free_graph(NULL, &graph);
}

// -- the 16 bits of examples/nn.h --

static void nn_rounds_and_expands_as_tl_compress_bytes_does(void **state) {
    static float in[1 << 16], back[1 << 16], expected_back[1 << 16];
    static uint16_t out[1 << 16], expected[1 << 16];
    uint64_t word = 0, stride = is_soaked() ? 1 : 1031;  // all bits of the upper half are tried, and many of the lower
    uint32_t i, n = 1 << 16;
    (void)state;
    while (word <= UINT32_MAX) {
        for (i = 0; i < n; i++, word += stride) {
            uint32_t bits = (uint32_t)word;
            memcpy(&in[i], &bits, sizeof bits);
        }
        nn_round_f16(out, in, n);
        tl_compress_bytes(TL_CODEC_F16, expected, in, sizeof in);
        assert_memory_equal(out, expected, sizeof out);
        nn_round_bf16(out, in, n);
        tl_compress_bytes(TL_CODEC_BF16, expected, in, sizeof in);
        assert_memory_equal(out, expected, sizeof out);
    }
    for (i = 0; i < n; i++) out[i] = (uint16_t)i;
    nn_expand_f16(back, out, n);
    tl_expand_bytes(TL_CODEC_F16, expected_back, out, sizeof back);
    assert_memory_equal(back, expected_back, sizeof back);
    nn_expand_bf16(back, out, n);
    tl_expand_bytes(TL_CODEC_BF16, expected_back, out, sizeof back);
    assert_memory_equal(back, expected_back, sizeof back);
}

// -- what is refused --

static void expect_refused(net *n, tl_result code, const char *text) {
    assert_int_equal(tl_init_run(&n->env, &n->desc, &n->run), code);
    assert_null(n->run);
    assert_string_equal(n->env.error.text, text);
    assert_int_equal(n->env.error.code, code);
}

// A conversion between an input and a reader, as a text that can be spoilt.
static void expect_conversion_refused(const char *text, uint8_t from, uint8_t to, int inference, tl_result code,
                                      const char *sentence) {
    static net n;
    uint8_t formats[8] = { F32, F32, F32, F32, F32, F32, F32, F32 };
    tl_graph graph = graph_of(text);
    formats[1] = from;
    formats[2] = to;
    net_open(&n, &graph, formats, 0);
    set_kernel(&n.kernels[3], "nothing", do_nothing, do_nothing, NULL);
    n.desc.kernel_count = 4;
    n.desc.inference = inference;
    expect_refused(&n, code, sentence);
    net_close(&n);
    tl_free_graph(NULL, &graph);
}

#define HEAD "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nnode 1 a weigh fwd=1 bwd=1 out="

static void conversions_that_are_none_are_refused(void **state) {
    const char *shape = "tl_init_run: formats: a conversion has one input, one output, and nothing else: node 2 (c)";
    (void)state;
    expect_conversion_refused(HEAD "8 needs=none in=0\nnode 2 c convert fwd=1 bwd=1 out=8 needs=none in=0,1\n", F32, F32, 0,
                              TL_ERROR_INVALID_ARG, shape);
    expect_conversion_refused(HEAD "8 needs=none in=0\nnode 2 c convert fwd=1 bwd=1 out=8,8 needs=none in=1\n", F32, F32, 0,
                              TL_ERROR_INVALID_ARG, shape);
    expect_conversion_refused(HEAD "8 needs=none in=0\nnode 2 c convert fwd=1 bwd=1 inplace=0 out=8 needs=none in=1\n", F32, F32, 0,
                              TL_ERROR_INVALID_ARG, shape);
    expect_conversion_refused(HEAD "8 needs=none in=0\nnode 2 c convert fwd=1 bwd=1 saved=8 out=8 needs=none in=1\n", F32, F32, 0,
                              TL_ERROR_INVALID_ARG, shape);
    expect_conversion_refused(HEAD "8 needs=none in=0\nnode 2 c convert fwd=1 bwd=1 out=8 needs=none in=-\n", F32, F32, 0,
                              TL_ERROR_INVALID_ARG, shape);
    expect_conversion_refused(HEAD "8 needs=none in=0\nnode 2 c convert fwd=1 bwd=1 out=8 needs=none in=1\n", F32, F16, 0,
                              TL_ERROR_INVALID_ARG,
                              "tl_init_run: formats: a conversion has as many elements before as after: node 2 (c)");
    expect_conversion_refused(HEAD "8 needs=none in=0\nnode 2 c convert fwd=1 bwd=1 out=2 needs=none in=1\n", F32, I8, 1,
                              TL_ERROR_INVALID_ARG,
                              "tl_init_run: quantizations: a conversion needs one that its format holds: node 2 (c)");
    expect_conversion_refused(HEAD "8 needs=none in=0\nnode 2 c convert fwd=1 bwd=1 out=2 needs=none in=1\n", F32, I8, 0,
                              TL_ERROR_INVALID_ARG, "tl_init_run: formats: integers have no gradient, run the graph forward only");
    expect_conversion_refused(HEAD "3 needs=none in=0\n", F16, F32, 0, TL_ERROR_INVALID_ARG,
                              "tl_init_run: formats: 16-bit elements, but an odd number of bytes");
    expect_conversion_refused(HEAD "3 needs=none in=0\n", I16, F32, 1, TL_ERROR_INVALID_ARG,
                              "tl_init_run: formats: 16-bit elements, but an odd number of bytes");
    expect_conversion_refused(HEAD "8 needs=none in=0\n", TL_FORMAT_COUNT, F32, 0, TL_ERROR_INVALID_ARG,
                              "tl_init_run: formats: unknown format");
}

static void wrong_descs_with_formats_are_refused(void **state) {
    static net n;
    tl_graph graph = graph_of(diamond), integers = graph_of(quantised);
    tl_quantization q[9];
    int precision;
    (void)state;
    for (precision = 0; precision < TL_PRECISION_COUNT; precision++) {
        tl_strategy strategy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_full()), (tl_precision)precision);
        if (precision == TL_PRECISION_MIXED) continue;
        net_open(&n, &graph, diamond_formats, 0);
        n.desc.strategy = &strategy;
        n.desc.kernel_precisions = UINT32_MAX;
        expect_refused(&n, TL_ERROR_INVALID_ARG, "tl_init_run: strategy.precision: with formats it must be mixed");
        net_close(&n);
    }
    net_open(&n, &graph, diamond_formats, 0);
    n.desc.kernel_precisions = 0;
    expect_refused(&n, TL_ERROR_UNSUPPORTED, "tl_init_run: formats: mixed is not among kernel_precisions");
    n.desc.formats = NULL;
    expect_refused(&n, TL_ERROR_INVALID_ARG, "tl_init_run: kernels: none for op convert of node 2");
    net_close(&n);
    net_open(&n, &graph, diamond_formats, 0);
    n.spy.no_codecs = 1u << TL_CODEC_BF16;
    expect_refused(&n, TL_ERROR_UNSUPPORTED, "tl_init_run: formats: the backend has no such codec, give a kernel: node 3 (wb)");
    net_close(&n);
    // Quantisations: one is missing, or does not fit.
    set_quantizations(q);
    net_open(&n, &integers, quantised_formats, 0);
    n.desc.inference = 1;
    n.desc.quantizations = q;
    q[3].scale = 0.0f;
    expect_refused(&n, TL_ERROR_INVALID_ARG, "tl_init_run: quantizations: a conversion needs one that its format holds: node 3 (c)");
    q[3] = q[8];
    expect_refused(&n, TL_ERROR_INVALID_ARG, "tl_init_run: quantizations: a conversion needs one that its format holds: node 3 (c)");
    n.desc.quantizations = NULL;
    expect_refused(&n, TL_ERROR_INVALID_ARG, "tl_init_run: quantizations: a conversion needs one that its format holds: node 1 (a)");
    net_close(&n);
    tl_free_graph(NULL, &graph);
    tl_free_graph(NULL, &integers);
}

// The backend of a device, with kernels that are never called.
static void expect_device_refuses(const tl_graph *graph, const uint8_t *formats, const tl_quantization *q, int inference,
                                  const char *text) {
    static net n;
    static recorder r;
    tl_backend inner;
    net_open(&n, graph, formats, 0);
    inner = n.backend;
    n.backend = record_open(&r, &inner);
    n.desc.inference = inference;
    n.desc.quantizations = q;
    expect_refused(&n, TL_ERROR_UNSUPPORTED, text);
    record_close(&r);
    net_close(&n);
}

static void what_a_device_cannot_convert_is_refused(void **state) {
    static const uint8_t formats[] = { F32, F16, BF16, F32 };
    static const char chain[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                                "node 1 a weigh fwd=1 bwd=1 out=4 needs=none in=0\n"
                                "node 2 c convert fwd=1 bwd=1%s out=4 needs=none in=1\n"
                                "node 3 m mean fwd=1 bwd=1 out=4 needs=none in=2\n";
    static const char *const scratch[] = { "", " fwork=8", " bwork=8" };
    tl_graph graph = graph_of(diamond), integers = graph_of(quantised);
    tl_quantization q[9];
    size_t k;
    (void)state;
    set_quantizations(q);
    for (k = 0; k < 3; k++) {
        char text[512];
        tl_graph narrow;
        (void)snprintf(text, sizeof text, chain, scratch[k]);
        narrow = graph_of(text);
        expect_device_refuses(&narrow, formats, NULL, 0,
                              "tl_init_run: formats: between f16 and bf16 this backend needs 4 bytes an element of fwork "
                              "and bwork: node 2 (c)");
        tl_free_graph(NULL, &narrow);
    }
    expect_device_refuses(&graph, diamond_formats, NULL, 0,
                          "tl_init_run: formats: adding to a gradient needs a host-visible backend, or a kernel of the caller: "
                          "node 2 (w16)");
    expect_device_refuses(&integers, quantised_formats, q, 1,
                          "tl_init_run: formats: integers need a host-visible backend, or a kernel of the caller: node 1 (a)");
    tl_free_graph(NULL, &graph);
    tl_free_graph(NULL, &integers);
}

// What has no gradient, or adds none, is no second contribution.
static void a_device_converts_what_has_one_gradient(void **state) {
    static const uint8_t formats[] = { F32, F16, F32, F16, F32 };
    static const char *const texts[] = {
        // a graph input has no gradient, however many read it
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nnode 1 c convert fwd=1 bwd=1 out=4 needs=none in=0\n"
        "node 2 a mul fwd=1 bwd=1 out=8 needs=none in=0,1\n",
        // node 3 reads node 1, too, but hands no gradient back; node 2 is the only one
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nnode 1 w weigh fwd=1 bwd=1 out=4 needs=none in=0\n"
        "node 2 c convert fwd=1 bwd=1 out=8 needs=none in=1\nnode 3 b mul fwd=1 bwd=0 grad=no out=4 needs=none in=1\n"
        "node 4 m mean fwd=1 bwd=1 out=4 needs=none in=2\n",
    };
    size_t k;
    (void)state;
    for (k = 0; k < 2; k++) {
        static net n;
        static recorder r;
        tl_graph graph = graph_of(texts[k]);
        tl_backend inner;
        net_open(&n, &graph, formats, 0);
        inner = n.backend;
        n.backend = record_open(&r, &inner);
        net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
        record_finish(&r);
        tl_free_run(n.run);
        n.run = NULL;
        record_close(&r);
        net_close(&n);
        tl_free_graph(NULL, &graph);
    }
}

// A chain has no gradient that two add to: it trains where the host sees nothing, in the bits of the CPU.
static void a_chain_trains_on_a_device_with_the_gradients_of_the_host(void **state) {
    static const uint8_t formats[] = { F32, F16, F32, BF16, F32 };
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1200 needs=none in=-\n"
                               "node 1 w weigh fwd=1 bwd=1 out=600 needs=none in=0\n"
                               "node 2 c convert fwd=1 bwd=1 out=1200 needs=none in=1\n"
                               "node 3 d convert fwd=1 bwd=1 out=600 needs=none in=2\n"
                               "node 4 m mean fwd=1 bwd=1 keep out=4 needs=none in=3\n";
    tl_graph graph = graph_of(text);
    float x[ELEMENTS], gradients[2][ELEMENTS], means[2];
    int device;
    (void)state;
    fill_values(x, ELEMENTS, 23);
    for (device = 0; device < 2; device++) {
        static net n;
        static recorder r;
        tl_backend inner;
        tl_run_step step;
        int32_t done = 0;
        net_open(&n, &graph, formats, 0);
        inner = n.backend;
        n.backend = record_open(&r, &inner);
        r.is_visible = !device;
        net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
        record_finish(&r);
        net_must(&n, tl_write_tensor(n.run, tensor_of(0), x, sizeof x));
        net_must(&n, tl_start_pass(n.run, 0));
        while (!done) {
            net_must(&n, tl_next_step(n.run, &step, &done));
            if (!step.is_compute) continue;
            record_finish(&r);  // what a device would compute, its host does: between two frames
            if (device) {
                tl_run *run = n.run;
                run->limits.host_visible = 1;
                net_must(&n, tl_run_step_kernel(run, &step));
                run->limits.host_visible = 0;
            } else net_must(&n, tl_run_step_kernel(n.run, &step));
        }
        record_finish(&r);
        net_must(&n, tl_read_tensor(n.run, tensor_of(4), &means[device], 4));
        memcpy(gradients[device], n.gradient, sizeof n.gradient);
        tl_free_run(n.run);
        n.run = NULL;
        record_close(&r);
        net_close(&n);
    }
    assert_memory_equal(gradients[0], gradients[1], sizeof gradients[0]);
    assert_int_equal(bits_of_float(means[0]), bits_of_float(means[1]));
    assert_true(gradients[0][0] != 0.0f);
    tl_free_graph(NULL, &graph);
}

// -- codecs that keep activations in fewer bits, beside formats --

static const char long_chain[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
                                 "node 1 a op fwd=9 bwd=1 out=64 needs=in in=0\n"
                                 "node 2 b op fwd=9 bwd=1 out=64 needs=in in=1\n"
                                 "node 3 c op fwd=9 bwd=1 out=64 needs=in in=2\n"
                                 "node 4 d op fwd=9 bwd=1 out=64 needs=in in=3\n"
                                 "node 5 e op fwd=9 bwd=1 out=64 needs=in in=4\n"
                                 "node 6 f op fwd=9 bwd=1 out=64 needs=in in=5\n";

static void codecs_leave_16_bit_tensors_alone(void **state) {
    static const char steps[] = "F 1\nF 2\nF 3\nC 2 f16\nD 1\nX 2\nB 3\nF 1\nB 2\nB 1\n";
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1200 needs=none in=-\n"
                               "node 1 w weigh fwd=1 bwd=1 out=1200 needs=none in=0\n"
                               "node 2 c convert fwd=1 bwd=1 out=600 needs=none in=1\n"
                               "node 3 s mul fwd=1 bwd=1 out=600 needs=in in=2\n";
    static const uint8_t formats[] = { F32, F32, F16, F16 };
    static net n;
    tl_graph graph = graph_of(text);
    tl_plan plan;
    (void)state;
    net_open(&n, &graph, formats, 0);
    net_must(&n, tl_parse_schedule(&n.env, steps, strlen(steps), &plan));
    n.desc.plan = &plan;
    expect_refused(&n, TL_ERROR_INVALID_PLAN, "tl_init_run: plan: compresses a tensor whose format is not f32");
    net_close(&n);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Where all tensors are of another precision than f32, none is compressed: given plans that would are refused, and online
// runs keep, spill or drop them.
static void codecs_leave_other_precisions_alone(void **state) {
    static const char steps[] = "F 1\nF 2\nC 1 f16\nX 1\nB 2\nB 1\n";
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1200 needs=none in=-\n"
                               "node 1 w weigh fwd=1 bwd=1 out=1200 needs=none in=0\n"
                               "node 2 s mul fwd=1 bwd=1 out=1200 needs=in in=1\n";
    static net n;
    static bed b;
    tl_graph graph = graph_of(text), chain = graph_of(long_chain);
    tl_strategy half = tl_with_gradient(tl_with_precision(tl_strategy_new(), TL_PRECISION_HALF), tl_gradient_checkpointed(0));
    tl_run_report report;
    tl_plan plan, all;
    int packs;
    (void)state;
    net_open(&n, &graph, NULL, 0);
    net_must(&n, tl_parse_schedule(&n.env, steps, strlen(steps), &plan));
    n.desc.plan = &plan;
    n.desc.strategy = &half;
    half.mode = TL_MODE_LAZY;
    n.desc.kernel_precisions = 1u << TL_PRECISION_HALF;
    expect_refused(&n, TL_ERROR_INVALID_PLAN, "tl_init_run: plan: compresses a tensor whose format is not f32");
    net_close(&n);
    half.mode = TL_MODE_EAGER;
    if (tl_plan_keep_all(NULL, &chain, 0, &all)) fail_msg("%s", "keep all");
    for (packs = 0; packs < 2; packs++) {
        bed_open(&b, &chain, BACKEND_CHECKED, 5, 1);
        b.desc.strategy = &half;
        b.desc.kernel_precisions = 1u << TL_PRECISION_HALF | 1u << TL_PRECISION_SINGLE;
        b.desc.codec = TL_CODEC_F16;
        half.precision = packs ? TL_PRECISION_SINGLE : TL_PRECISION_HALF;
        b.desc.budget_bytes = packs ? all.peak_bytes * 3 / 4 : all.peak_bytes * 3 / 8;
        if (bed_init(&b) || tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
        tl_measure_run(b.run, &report);
        assert_int_equal(report.compress_count > 0, packs);
        bed_close(&b);
    }
    tl_free_plan(NULL, &all);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &chain);
    tl_free_graph(NULL, &graph);
}

// Online, the tensors of a chain of conversions: what is compressed is f32.
static void online_runs_compress_f32_alone(void **state) {
    static bed b;
    tl_random random = { 99 };
    long round, rounds = scaled(200), compressed = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        mixed_graph m;
        tl_plan all, record;
        int32_t k;
        make_mixed(&random, &m);
        if (tl_plan_keep_all(NULL, &m.graph, 0, &all)) fail_msg("%s", "keep all");
        mixed_open(&b, &m, 0, 0);
        b.desc.codec = TL_CODEC_BF16;
        b.desc.budget_bytes = all.peak_bytes * 3 / 4;
        if (bed_init(&b) == TL_OK) {
            (void)mixed_outcome(&b);
            tl_find_run_plan(b.run, &record);
            for (k = 0; k < record.step_count; k++) {
                if (record.steps[k].kind != TL_STEP_COMPRESS) continue;
                compressed++;
                assert_int_equal(m.formats[record.steps[k].node], F32);
            }
        }
        bed_close(&b);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &m.graph);
    }
    printf("%ld tensors compressed\n", compressed);
    assert_true(is_thinned() || compressed > rounds / 20);
}

// -- faults --

static void every_failing_call_of_the_backend_is_told_and_nothing_is_lost(void **state) {
    static net n;
    tl_graph graph = graph_of(diamond);
    float x[ELEMENTS];
    int function;
    long at, failures = 0;
    (void)state;
    fill_values(x, ELEMENTS, 1);
    for (function = 0; function < SPY_COUNT; function++)
        for (at = 0; at < 200; at++) {
            float undisturbed[ELEMENTS];
            tl_result result;
            long calls;
            net_open(&n, &graph, diamond_formats, BACKEND_CHECKED);
            net_must(&n, tl_init_run(&n.env, &n.desc, &n.run));
            (void)diamond_step(&n, x);
            memcpy(undisturbed, n.gradient, sizeof undisturbed);
            calls = n.spy.calls[function];
            n.spy.fail_function = function;
            n.spy.fail_at = calls + at;
            result = tl_run_plan(n.run);
            if (result) {
                failures++;
                assert_true(strlen(n.env.error.text) > 20);
            }
            calls = n.spy.calls[function] - calls;
            n.spy.fail_function = -1;
            (void)diamond_step(&n, x);
            assert_memory_equal(n.gradient, undisturbed, sizeof undisturbed);
            net_close(&n);
            if (calls <= at) break;
        }
    assert_true(failures > 100);
    tl_free_graph(NULL, &graph);
}

static void every_allocation_of_a_mixed_run_may_fail(void **state) {
    static net n;
    tl_graph graph = graph_of(diamond);
    long at, failures = 0;
    int inference;
    (void)state;
    for (inference = 0; inference < 2; inference++)
        for (at = 0; ; at++) {
            failing_alloc f;
            tl_result result;
            memset(&f, 0, sizeof f);
            net_open(&n, &graph, diamond_formats, 0);
            n.env = failing_env(&f, at);
            n.desc.inference = inference;
            n.desc.plan = NULL;
            result = tl_init_run(&n.env, &n.desc, &n.run);
            if (!result) result = tl_run_plan(n.run);
            if (result) { failures++; assert_int_equal(result, TL_ERROR_NO_MEMORY); }
            net_close(&n);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
    assert_true(failures > 20);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions_hold_what_tl_compress_bytes_makes),
        cmocka_unit_test(conversions_are_recorded_where_the_host_sees_nothing),
        cmocka_unit_test(gradients_through_conversions_are_those_of_finite_differences),
        cmocka_unit_test(a_gradient_is_summed_in_f32_and_rounded_to_its_format),
        cmocka_unit_test(formats_that_are_all_f32_change_no_bit),
        cmocka_unit_test(mixed_graphs_run_as_planned_with_the_gradients_of_keep_all),
        cmocka_unit_test(integers_are_those_of_tl_quantize),
        cmocka_unit_test(a_float_that_is_cut_short_is_padded_with_zeroes),
        cmocka_unit_test(every_precision_of_a_strategy_changes_bytes_and_counters),
        cmocka_unit_test(kernels_know_what_their_operands_hold_and_may_convert_themselves),
        cmocka_unit_test(conversions_are_observed),
        cmocka_unit_test(the_first_gradient_is_the_loss_scale_in_the_format_of_its_tensor),
        cmocka_unit_test(the_loss_scale_is_read_at_the_start_of_a_training_step),
        cmocka_unit_test(graphs_of_tl_apply_precision_run),
        cmocka_unit_test(nn_rounds_and_expands_as_tl_compress_bytes_does),
        cmocka_unit_test(conversions_that_are_none_are_refused),
        cmocka_unit_test(wrong_descs_with_formats_are_refused),
        cmocka_unit_test(what_a_device_cannot_convert_is_refused),
        cmocka_unit_test(a_device_converts_what_has_one_gradient),
        cmocka_unit_test(a_chain_trains_on_a_device_with_the_gradients_of_the_host),
        cmocka_unit_test(codecs_leave_16_bit_tensors_alone),
        cmocka_unit_test(codecs_leave_other_precisions_alone),
        cmocka_unit_test(online_runs_compress_f32_alone),
        cmocka_unit_test(every_failing_call_of_the_backend_is_told_and_nothing_is_lost),
        cmocka_unit_test(every_allocation_of_a_mixed_run_may_fail),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
