// [7] PRECISION: profiles, the precision plan, sensitivity, text. Plans of small graphs are compared with all
// there are, as an evaluator of this file's own prices them: it reads the graph, not the planner's problem.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/texts.h"
#include "support/word_lengths.h"

#define BIT(scheme) (1u << (scheme))

static tl_precision_plan planned(const tl_precision_desc *desc) {
    tl_precision_plan plan;
    tl_env env;
    memset(&env, 0, sizeof env);
    if (tl_plan_precision(&env, desc, &plan)) fail_msg("%s", env.error.text);
    assert_int_equal(env.error.code, TL_OK);
    return plan;
}

static void check_refused(const tl_precision_desc *desc, tl_result code, const char *sentence) {
    tl_precision_plan plan;
    tl_env env;
    memset(&env, 0, sizeof env);
    memset(&plan, 0xA5, sizeof plan);
    assert_int_equal(tl_plan_precision(&env, desc, &plan), code);
    assert_true(is_zero(&plan, sizeof plan));
    assert_int_equal(env.error.code, code);
    assert_string_equal(env.error.text, sentence);
    tl_free_precision_plan(&env, &plan);
}

// -- profiles --

static void default_profiles_hold_their_own_rules(void **state) {
    int32_t count;
    const tl_precision_profile *rows = tl_find_default_profiles(&count);
    tl_env env;
    int i, k;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(tl_check_profiles(&env, rows, count), TL_OK);
    assert_string_equal(rows[count - 1].op, "*");
    for (i = 0; i < count; i++)
        for (k = 1; k < TL_SCHEME_COUNT; k++)
            if (rows[i].schemes >> k & 1) assert_true(rows[i].loss[k] > 0 && rows[i].speedup[k] > 0);
}

// More bits lose less, weights with a scale for each channel less than with one; fake gains nothing.
static void default_profiles_are_in_order(void **state) {
    int32_t count;
    const tl_precision_profile *rows = tl_find_default_profiles(&count);
    int i;
    (void)state;
    for (i = 0; i < count; i++) {
        const double *loss = rows[i].loss;
        uint32_t has = rows[i].schemes;
        if (has & BIT(TL_SCHEME_I8)) {
            assert_true(loss[TL_SCHEME_I16] < loss[TL_SCHEME_F16] && loss[TL_SCHEME_F16] < loss[TL_SCHEME_BF16]);
            assert_true(loss[TL_SCHEME_BF16] < loss[TL_SCHEME_I8]);
            assert_true(loss[TL_SCHEME_FAKE] == loss[TL_SCHEME_I8] && rows[i].speedup[TL_SCHEME_FAKE] <= 1);
        }
        if (has & BIT(TL_SCHEME_I8_CHANNEL)) {
            assert_true(loss[TL_SCHEME_I8_CHANNEL] < loss[TL_SCHEME_I8]);
            assert_true(loss[TL_SCHEME_W8A16] < loss[TL_SCHEME_I8_CHANNEL]);
            assert_true(has & BIT(TL_SCHEME_W4A8) && loss[TL_SCHEME_W4A8] > loss[TL_SCHEME_I8]);
        }
    }
}

// The constants, found again: floats by adding up rounding errors, integers at the clip with the least error.
static void losses_of_formats_follow_from_their_digits(void **state) {
    const tl_precision_profile *rows, *relu;
    double f16 = 0, bf16 = 0, laplace8 = 1, laplace16 = 1, clip;
    tl_graph graph = graph_of("tlg 1\nnode 0 r relu fwd=1 bwd=0 out=4 needs=none in=-\n");
    int32_t count, i;
    (void)state;
    rows = tl_find_default_profiles(&count);
    relu = tl_find_profile(rows, count, &graph, 0, NULL);
    for (i = 0; i < 200000; i++) {  // mantissas in equal ratios from 1 to 2
        double x = exp(log(2.0) * (i + 0.5) / 200000), error;
        error = floor(x * 1024 + 0.5) / 1024 - x;
        f16 += error * error / (x * x) / 200000;
        error = floor(x * 128 + 0.5) / 128 - x;
        bf16 += error * error / (x * x) / 200000;
    }
    for (clip = 5; clip < 30; clip += 0.01) {
        laplace8 = fmin(laplace8, clip * clip / (6 * 65536.0) + exp(-clip));
        laplace16 = fmin(laplace16, clip * clip / (6 * 4294967296.0) + exp(-clip));
    }
    assert_true(fabs(relu->loss[TL_SCHEME_F16] / (2 * f16) - 1) < 0.01);
    assert_true(fabs(relu->loss[TL_SCHEME_BF16] / (2 * bf16) - 1) < 0.01);
    assert_true(fabs(relu->loss[TL_SCHEME_I8] / (2 * laplace8) - 1) < 0.01);
    assert_true(fabs(relu->loss[TL_SCHEME_I16] / (2 * laplace16) - 1) < 0.01);
    tl_free_graph(NULL, &graph);
}

static const char *row_of(const char *op, uint64_t bytes, const tl_precision_profile *rows, int32_t count,
                          const tl_device *device) {
    char text[200];
    const tl_precision_profile *row;
    tl_graph graph;
    snprintf(text, sizeof text, "tlg 1\nnode 0 a %s fwd=0 bwd=0 out=%u needs=none in=-\n", op, (unsigned)bytes);
    graph = graph_of(text);
    row = tl_find_profile(rows, count, &graph, 0, device);
    tl_free_graph(NULL, &graph);
    return row ? row->op : "";
}

static void every_op_of_a_layer_has_a_row_of_its_own(void **state) {
    static const char *const ops[] = { "linear", "conv2d", "depthwise", "convt2d", "maxpool", "avgpool", "gavgpool",
        "upsample", "pad", "relu6", "hardswish", "requantize", "bn", "layernorm", "softmax", "embedding", "attention", "bmm", "rnn", "gru", "lstm", "concat", "split", "loss" };
    int32_t count, i;
    const tl_precision_profile *rows = tl_find_default_profiles(&count);
    (void)state;
    for (i = 0; i < (int32_t)(sizeof ops / sizeof ops[0]); i++)
        assert_string_equal(row_of(ops[i], 4, rows, count, NULL), ops[i]);
    for (i = 1; i < TL_ELEMENTWISE_COUNT; i++)
        assert_string_equal(row_of(tl_name_elementwise((tl_elementwise)i), 4, rows, count, NULL),
                            tl_name_elementwise((tl_elementwise)i));
    assert_string_equal(row_of("something", 4, rows, count, NULL), "*");
    assert_string_equal(row_of("input", 4, rows, count, NULL), "");
}

// A depthwise convolution as importers name it: the schemes and losses of a convolution, and a product for devices.
static void depthwise_is_a_convolution(void **state) {
    int32_t count;
    const tl_precision_profile *rows = tl_find_default_profiles(&count), *found[2];
    tl_device device;
    tl_precision_desc desc;
    tl_precision_plan plan;
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=400 needs=none in=-\n"
                              "node 1 a conv2d fwd=1000000 bwd=0 out=400 needs=none in=0\n"
                              "node 2 b depthwise fwd=1000000 bwd=0 out=400 needs=none in=1 keep\n");
    (void)state;
    found[0] = tl_find_profile(rows, count, &graph, 1, NULL);
    found[1] = tl_find_profile(rows, count, &graph, 2, NULL);
    assert_int_equal(found[0]->schemes, found[1]->schemes);
    assert_true(found[1]->schemes & BIT(TL_SCHEME_I8_CHANNEL));
    assert_memory_equal(found[0]->loss, found[1]->loss, sizeof found[0]->loss);
    memset(&device, 0, sizeof device);
    device.flops_per_second[TL_PRECISION_SINGLE] = 1e12;
    device.flops_per_second[TL_PRECISION_BF16] = 8e12;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.device = &device;
    desc.loss_limit = 1;
    plan = planned(&desc);
    assert_int_equal(plan.nodes[2].speed_source, TL_SPEED_FROM_DEVICE);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void names_match_without_case_and_in_parts(void **state) {
    int32_t count;
    const tl_precision_profile *rows = tl_find_default_profiles(&count);
    (void)state;
    assert_string_equal(row_of("Conv2D", 4, rows, count, NULL), "conv2d");
    assert_string_equal(row_of("CONV2D+ReLU", 4, rows, count, NULL), "conv2d");
    assert_string_equal(row_of("add+relu", 4, rows, count, NULL), "add");
    assert_string_equal(row_of("relu+softmax+add", 4, rows, count, NULL), "softmax");  // the sensitive one
    assert_string_equal(row_of("add+unknown", 4, rows, count, NULL), "*");
    assert_string_equal(row_of("add+", 4, rows, count, NULL), "*");
    assert_string_equal(row_of("add+*", 4, rows, count, NULL), "*");
    assert_string_equal(row_of("conv2", 4, rows, count, NULL), "*");
    assert_string_equal(row_of("conv2dd", 4, rows, count, NULL), "*");
    assert_string_equal(row_of("relu", 4, rows, count - 1, NULL), "relu");
    assert_string_equal(row_of("something", 4, rows, count - 1, NULL), "");  // no row for any op
    assert_string_equal(row_of("relu", 4, NULL, 0, NULL), "");
}

static tl_precision_profile profile_of(const char *op, uint32_t schemes, double loss, double speedup) {
    tl_precision_profile row;
    int k;
    memset(&row, 0, sizeof row);
    row.op = op;
    row.schemes = schemes;
    for (k = 1; k < TL_SCHEME_COUNT; k++) { row.loss[k] = loss; row.speedup[k] = speedup; }
    row.speedup[TL_SCHEME_F32] = 1;
    return row;
}

static void rows_are_keyed_by_shape_and_device(void **state) {
    tl_precision_profile rows[4];
    tl_device device;
    (void)state;
    memset(&device, 0, sizeof device);
    rows[0] = profile_of("Op", 0, 0, 1);  rows[0].device = "gpu";
    rows[1] = profile_of("oP", 0, 0, 1);  rows[1].most_elements = 10;
    rows[2] = profile_of("OP", 0, 0, 1);  rows[2].least_elements = 20;
    rows[3] = profile_of("*", 0, 0, 1);
    assert_int_equal(tl_check_profiles(NULL, rows, 4), TL_OK);
    assert_string_equal(row_of("op", 40, rows, 4, NULL), "oP");
    assert_string_equal(row_of("op", 37, rows, 4, NULL), "oP");  // 10 elements, the last one not whole
    assert_string_equal(row_of("op", 41, rows, 4, NULL), "*");
    assert_string_equal(row_of("op", 76, rows, 4, NULL), "*");
    assert_string_equal(row_of("op", 77, rows, 4, NULL), "OP");
    assert_string_equal(row_of("op", 40, rows, 4, &device), "oP");
    device.name = "gpu";
    assert_string_equal(row_of("op", 40, rows, 4, &device), "Op");
    device.name = "GPU";
    assert_string_equal(row_of("op", 40, rows, 4, &device), "oP");
}

static void check_profile_refused(const tl_precision_profile *row, const char *rule) {
    tl_precision_profile rows[2];
    char sentence[300];
    tl_env env;
    memset(&env, 0, sizeof env);
    rows[0] = profile_of("first", BIT(TL_SCHEME_I8), 0.5, 2);
    rows[1] = *row;
    assert_int_equal(tl_check_profiles(&env, rows, 2), TL_ERROR_INVALID_ARG);
    snprintf(sentence, sizeof sentence, row->op ? "tl_check_profiles: profiles: row 1 (%s): %s"
             : "tl_check_profiles: profiles: row 1%s: %s", row->op ? row->op : "", rule);
    assert_string_equal(env.error.text, sentence);
}

static void profile_rules_are_named(void **state) {
    tl_precision_profile good = profile_of("op", BIT(TL_SCHEME_I8) | BIT(TL_SCHEME_F32), 0.5, 2), row;
    tl_env env;
    (void)state;
    assert_int_equal(tl_check_profiles(NULL, &good, 1), TL_OK);
    assert_int_equal(tl_check_profiles(NULL, NULL, 0), TL_OK);
    row = good; row.op = NULL; check_profile_refused(&row, "op: must not be empty");
    row = good; row.op = ""; check_profile_refused(&row, "op: must not be empty");
    row = good; row.least_elements = 3; row.most_elements = 2;
    check_profile_refused(&row, "most_elements: must be >= least_elements");
    row = good; row.schemes = BIT(TL_SCHEME_COUNT); check_profile_refused(&row, "schemes: unknown bit");
    row = good; row.loss[TL_SCHEME_I8] = (double)NAN; check_profile_refused(&row, "loss: must be finite and >= 0");
    row = good; row.loss[TL_SCHEME_I8] = (double)INFINITY; check_profile_refused(&row, "loss: must be finite and >= 0");
    row = good; row.loss[TL_SCHEME_I8] = -1; check_profile_refused(&row, "loss: must be finite and >= 0");
    row = good; row.loss[TL_SCHEME_I16] = (double)NAN; assert_int_equal(tl_check_profiles(NULL, &row, 1), TL_OK);
    row = good; row.speedup[TL_SCHEME_I8] = 0; check_profile_refused(&row, "speedup: must be finite and > 0");
    row = good; row.speedup[TL_SCHEME_I8] = -2; check_profile_refused(&row, "speedup: must be finite and > 0");
    row = good; row.speedup[TL_SCHEME_I8] = (double)NAN; check_profile_refused(&row, "speedup: must be finite and > 0");
    row = good; row.speedup[TL_SCHEME_I8] = (double)INFINITY;
    check_profile_refused(&row, "speedup: must be finite and > 0");
    row = good; row.loss[TL_SCHEME_F32] = 0.1; check_profile_refused(&row, "loss, speedup: must be 0 and 1 for f32");
    row = good; row.speedup[TL_SCHEME_F32] = 2; check_profile_refused(&row, "loss, speedup: must be 0 and 1 for f32");
    row = good; row.speedup[TL_SCHEME_F32] = 0.5; check_profile_refused(&row, "loss, speedup: must be 0 and 1 for f32");
    row = good; row.recommended = TL_SCHEME_I16; check_profile_refused(&row, "recommended: must be one of its schemes");
    row = good; row.recommended = TL_SCHEME_COUNT; check_profile_refused(&row, "recommended: must be one of its schemes");
    row = good; row.sensitive = 2; check_profile_refused(&row, "sensitive: must be 0 or 1");
    row = good; row.op = "FIRST"; check_profile_refused(&row, "never fits: a row above it always does");
    row.device = "gpu"; row.most_elements = 5; check_profile_refused(&row, "never fits: a row above it always does");
    memset(&env, 0, sizeof env);
    assert_int_equal(tl_check_profiles(&env, NULL, 1), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_check_profiles: profiles: must not be NULL where there are some");
    assert_int_equal(tl_check_profiles(&env, &good, -1), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_check_profiles: profile_count: must be >= 0");
}

// -- all choices of a small graph, priced from the graph --

#define MOST_NODES 5
#define MOST_CHOICES 200000
#define OPS 4

typedef struct small_case {
    tl_graph graph;
    tl_precision_desc desc;
    tl_precision_profile rows[OPS];
    uint32_t numerators[OPS][TL_SCHEME_COUNT], denominators[OPS][TL_SCHEME_COUNT];  // of the speed-ups
    int      ops[MOST_NODES];       // row of each node; -1 = graph input
    uint8_t  f16_nodes[MOST_NODES];
    uint32_t node_schemes[MOST_NODES];
    double   losses[MOST_NODES * TL_SCHEME_COUNT];
    uint64_t costs[MOST_NODES * TL_SCHEME_COUNT];
    tl_device device;
} small_case;

typedef struct price {
    uint64_t cost, conversion_cost, bytes;
    double   loss;  // exact: every loss is a multiple of 2^-30
    int      conversions;
} price;

static const int format_bytes_of[] = { 4, 2, 2, 2, 1 };

static int format_of(int scheme) {
    static const int formats[TL_SCHEME_COUNT] = { 0, 1, 2, 3, 4, 4, 3, 0, 0, 4 };
    return formats[scheme];
}

static uint64_t sized(uint64_t bytes, int each) { return each == 4 ? bytes : (bytes + 3) / 4 * (uint64_t)each; }

static uint64_t weights_in(uint64_t bytes, int scheme) {
    static const int each[TL_SCHEME_COUNT] = { 4, 2, 2, 2, 1, 1, 1, 1, 4, 0 };
    return each[scheme] ? sized(bytes, each[scheme]) : ((bytes + 3) / 4 + 1) / 2;
}

static uint64_t rounded_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

static uint64_t time_of(const small_case *c, int node, int scheme) {
    const tl_node *n = &c->graph.nodes[node];
    uint64_t time = n->fwd_cost + (c->desc.training ? n->bwd_cost : 0);
    if (c->desc.costs && c->costs[node * TL_SCHEME_COUNT + scheme] != TL_FORBIDDEN)
        return c->costs[node * TL_SCHEME_COUNT + scheme];
    if (c->ops[node] < 0 || !scheme) return time;
    return rounded_up(time * c->denominators[c->ops[node]][scheme], c->numerators[c->ops[node]][scheme]);
}

static double loss_of(const small_case *c, int node, int scheme) {
    double given = c->desc.losses ? c->losses[node * TL_SCHEME_COUNT + scheme] : (double)NAN;
    if (!scheme || c->ops[node] < 0) return 0;
    return given == given ? given : c->rows[c->ops[node]].loss[scheme];
}

static uint64_t conversion_of(const small_case *c, uint64_t bytes, int from, int to) {
    uint64_t elements = (bytes + 3) / 4, rate = c->desc.device ? c->device.bytes_per_second : 0;
    uint64_t moved = elements * (uint64_t)(format_bytes_of[from] + format_bytes_of[to]);
    if (c->desc.device && c->device.codec_bytes_per_second && (!from || !to) &&
        (from == 1 || from == 2 || to == 1 || to == 2)) {
        rate = c->device.codec_bytes_per_second;
        moved = 4 * elements;
    }
    return rate ? rounded_up(moved * 1000000000, rate) : elements;
}

static price price_of(const small_case *c, const int *schemes) {
    const tl_graph *g = &c->graph;
    price p;
    int i, k, t, f;
    memset(&p, 0, sizeof p);
    for (i = 0; i < g->node_count; i++) {
        p.loss += loss_of(c, i, schemes[i]);
        p.bytes += weights_in(g->nodes[i].param_bytes, schemes[i]);
        if (c->desc.objective == TL_OBJECTIVE_TIME) p.cost += time_of(c, i, schemes[i]);
    }
    for (t = 0; t < g->tensor_count; t++) {
        int producer = g->outputs[t].node, from = format_of(schemes[producer]), wanted[5] = { 0 }, back = 0;
        int is_read = 0;
        for (i = 0; i < g->node_count; i++)
            for (k = 0; k < g->nodes[i].input_count; k++)
                if (g->inputs[g->nodes[i].first_input + k].tensor == t) {
                    wanted[format_of(schemes[i])] = is_read = 1;
                    back |= c->desc.training && g->nodes[producer].has_grad && g->nodes[i].has_grad;
                }
        if (!is_read) back = c->desc.training && g->nodes[producer].has_grad;  // backward begins there
        if (g->nodes[producer].keep && !c->desc.any_result) wanted[0] = 1;
        p.bytes += sized(g->outputs[t].bytes, format_bytes_of[from]);
        for (f = 0; f < 5; f++) {
            if (!wanted[f] || f == from) continue;
            p.conversions++;
            p.bytes += sized(g->outputs[t].bytes, format_bytes_of[f]);
            p.conversion_cost += c->desc.objective == TL_OBJECTIVE_BYTES
                ? sized(g->outputs[t].bytes, format_bytes_of[f])
                : conversion_of(c, g->outputs[t].bytes, from, f) << back;
        }
    }
    p.cost = c->desc.objective == TL_OBJECTIVE_BYTES ? p.bytes : p.cost + p.conversion_cost;
    return p;
}

static int may_have(const small_case *c, int node, int scheme) {
    uint32_t offered = c->desc.schemes, possible;
    if (c->ops[node] < 0) return !scheme;
    if (!offered) offered = c->desc.training ? 7 : 0xff;
    if (c->desc.node_schemes && c->node_schemes[node]) offered &= c->node_schemes[node];
    possible = c->rows[c->ops[node]].schemes | 1;
    if (c->desc.training && !c->desc.allow_f16 && !(c->desc.f16_nodes && c->f16_nodes[node])) possible &= ~2u;
    if (c->rows[c->ops[node]].sensitive && !c->desc.allow_sensitive) possible &= 0xf;  // f32, f16, bf16, i16
    return (offered & possible) >> scheme & 1;
}

// Every choice, one after the other; 0 = that was the last one.
static int next_choice(const small_case *c, int *schemes) {
    int i;
    for (i = 0; i < c->graph.node_count; i++) {
        do schemes[i]++; while (schemes[i] < TL_SCHEME_COUNT && !may_have(c, i, schemes[i]));
        if (schemes[i] < TL_SCHEME_COUNT) return 1;
        for (schemes[i] = 0; !may_have(c, i, schemes[i]); schemes[i]++) {}
    }
    return 0;
}

static int first_choice(const small_case *c, int *schemes) {
    int i;
    for (i = 0; i < c->graph.node_count; i++) {
        for (schemes[i] = 0; schemes[i] < TL_SCHEME_COUNT && !may_have(c, i, schemes[i]); schemes[i]++) {}
        if (schemes[i] == TL_SCHEME_COUNT) return 0;
    }
    return 1;
}

static uint64_t below(tl_random *random, uint64_t limit) { return tl_next_random_below(random, limit); }

static void fill_rows(small_case *c, tl_random *random) {
    static const char *const names[OPS] = { "a", "b", "c", "d" };
    static const uint32_t speeds[][2] = { { 1, 1 }, { 2, 1 }, { 4, 1 }, { 3, 2 }, { 5, 4 }, { 1, 2 }, { 5, 2 } };
    int i, k;
    for (i = 0; i < OPS; i++) {
        c->rows[i] = profile_of(names[i], (uint32_t)below(random, BIT(TL_SCHEME_COUNT)), 0, 1);
        c->rows[i].sensitive = below(random, 4) == 0;
        for (k = 1; k < TL_SCHEME_COUNT; k++) {
            const uint32_t *speed = speeds[below(random, 7)];
            c->numerators[i][k] = speed[0];
            c->denominators[i][k] = speed[1];
            c->rows[i].speedup[k] = (double)speed[0] / speed[1];
            c->rows[i].loss[k] = ldexp((double)below(random, 1000), -30);
            if (c->rows[i].schemes >> k & 1 && below(random, 2)) c->rows[i].recommended = (tl_scheme)k;
        }
    }
}

static void add_node(small_case *c, tl_random *random, int id) {
    uint64_t bytes[3];
    tl_tensor inputs[4];
    tl_node_desc node;
    int i;
    memset(&node, 0, sizeof node);
    node.output_count = 1 + (int32_t)(below(random, 4) == 0);
    for (i = 0; i < node.output_count; i++) bytes[i] = below(random, 400);
    node.output_bytes = bytes;
    c->ops[id] = id && below(random, 8) ? (int)below(random, OPS) : -1;
    if (c->ops[id] < 0) {
        node.op = "input";
    } else {
        node.op = c->rows[c->ops[id]].op;
        node.input_count = (int32_t)below(random, 4);
        for (i = 0; i < node.input_count; i++) {
            inputs[i].node = (int32_t)below(random, (uint64_t)id);
            inputs[i].output = (int32_t)below(random, (uint64_t)c->graph.nodes[inputs[i].node].output_count);
        }
        node.inputs = inputs;
        node.fwd_cost = below(random, 1000);
        node.no_grad = below(random, 3) == 0;
        node.bwd_cost = node.no_grad ? 0 : below(random, 2000);
        node.param_bytes = below(random, 300);
        node.keep = below(random, 3) == 0;
    }
    if (tl_add_node(NULL, &c->graph, &node, NULL)) fail_msg("%s", "a node was refused");
}

static void fill_given(small_case *c, tl_random *random) {
    int i, k;
    for (i = 0; i < c->graph.node_count; i++)
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            int given = k && c->ops[i] >= 0 && (c->rows[c->ops[i]].schemes >> k & 1) && below(random, 2);
            c->losses[i * TL_SCHEME_COUNT + k] = given ? ldexp((double)below(random, 1000), -30) : (double)NAN;
            c->costs[i * TL_SCHEME_COUNT + k] = (given || !k) && c->ops[i] >= 0 && below(random, 2)
                ? below(random, 1000) : TL_FORBIDDEN;
        }
}

// A graph, and a desc that uses most of its fields.
static void fill_case(small_case *c, tl_random *random) {
    int nodes = 1 + (int)below(random, MOST_NODES), i;
    memset(c, 0, sizeof *c);
    fill_rows(c, random);
    for (i = 0; i < nodes; i++) add_node(c, random, i);
    fill_given(c, random);
    c->desc.graph = &c->graph;
    c->desc.profiles = c->rows;
    c->desc.profile_count = OPS;
    c->desc.objective = (tl_precision_objective)below(random, 2);
    c->desc.training = (int32_t)below(random, 3) == 0;
    c->desc.any_result = (int32_t)below(random, 2);
    c->desc.allow_sensitive = (int32_t)below(random, 2);
    c->desc.schemes = below(random, 3) ? 0 : 1 | (uint32_t)below(random, BIT(TL_SCHEME_COUNT));
    if (c->desc.training) c->desc.schemes &= 7;
    c->desc.allow_f16 = (int32_t)below(random, 2);
    for (i = 0; i < nodes; i++) c->f16_nodes[i] = (uint8_t)below(random, 2);
    if (below(random, 2)) c->desc.f16_nodes = c->f16_nodes;
    for (i = 0; i < nodes; i++) c->node_schemes[i] = below(random, 2) ? 0 : 1 | (uint32_t)below(random, BIT(TL_SCHEME_COUNT));
    if (below(random, 3) == 0) c->desc.node_schemes = c->node_schemes;
    if (below(random, 3) == 0) c->desc.losses = c->losses;
    if (below(random, 3) == 0) c->desc.costs = c->costs;
    if (below(random, 2)) {
        c->desc.device = &c->device;
        c->device.bytes_per_second = below(random, 3) ? 1 + below(random, UINT64_C(3000000000)) : 0;
        c->device.codec_bytes_per_second = below(random, 2) ? 1 + below(random, UINT64_C(3000000000)) : 0;
    }
    for (i = 0; i < TL_SCHEME_COUNT; i++) c->desc.priorities[i] = (double)below(random, 3) - 1;
}

static uint64_t base_of(const small_case *c) {
    int schemes[MOST_NODES] = { 0 }, i;
    uint64_t sum = 0;
    for (i = 0; i < c->graph.node_count; i++) sum += time_of(c, i, 0);
    return c->desc.objective == TL_OBJECTIVE_BYTES ? price_of(c, schemes).bytes : sum;
}

// Whether a plan is what it says: schemes that may be, and their price.
static price check_plan(const small_case *c, const tl_precision_plan *plan) {
    int schemes[MOST_NODES], i, counts[TL_SCHEME_COUNT] = { 0 };
    uint64_t conversion_cost = 0;
    int conversions = 0;
    price p;
    assert_int_equal(plan->node_count, c->graph.node_count);
    for (i = 0; i < plan->node_count; i++) {
        const tl_precision_node *node = &plan->nodes[i];
        schemes[i] = (int)node->scheme;
        assert_true(may_have(c, i, schemes[i]));
        assert_int_equal(node->format, format_of(schemes[i]));
        assert_true(node->loss == loss_of(c, i, schemes[i]));
        assert_true(node->confidence >= 0 && node->confidence <= 1);
        assert_true(node->runner_up != node->scheme);
        conversions += node->conversion_count;
        conversion_cost += node->conversion_cost;
        counts[schemes[i]] += c->ops[i] >= 0;
    }
    p = price_of(c, schemes);
    assert_int_equal(plan->cost, p.cost);
    assert_int_equal(plan->bytes, p.bytes);
    assert_true(plan->loss == p.loss);
    assert_int_equal(plan->conversion_cost, p.conversion_cost);
    assert_int_equal(conversion_cost, p.conversion_cost);
    assert_int_equal(plan->conversion_count, p.conversions);
    assert_int_equal(conversions, p.conversions);
    assert_int_equal(plan->base_cost, base_of(c));
    for (i = 0; i < TL_SCHEME_COUNT; i++) assert_int_equal(plan->scheme_counts[i], counts[i]);
    assert_true(plan->proven);
    assert_true(!(plan->gap_ratio > 0));
    assert_true(plan->measured_loss != plan->measured_loss);
    assert_int_equal(plan->criterion, c->desc.criterion);
    assert_int_equal(plan->objective, c->desc.objective);
    assert_int_equal(plan->round_count, 1);
    return p;
}

static int is_allowed(const small_case *c, const price *p, uint64_t base) {
    int timed = c->desc.criterion == TL_CRITERION_ACCURACY || c->desc.criterion == TL_CRITERION_CUSTOM;
    int lost = c->desc.criterion == TL_CRITERION_PERFORMANCE || c->desc.criterion == TL_CRITERION_CUSTOM;
    double speedup = c->desc.least_speedup > 0 ? c->desc.least_speedup : 1;
    double reached = p->cost == base ? 1 : (double)base / (double)(p->cost ? p->cost : 1);
    if (timed && !(p->cost ? reached >= speedup : 1)) return 0;
    return !lost || p->loss <= c->desc.loss_limit;
}

static int is_better(const small_case *c, const price *a, const price *b) {
    if (c->desc.criterion == TL_CRITERION_ACCURACY)
        return a->loss < b->loss || (a->loss == b->loss && a->cost < b->cost);
    return a->cost < b->cost;
}

// The best of all, with any scheme at `node` but `without`; 0 = there is none.
static int find_best(const small_case *c, int node, int without, price *best) {
    int schemes[MOST_NODES], found = 0;
    uint64_t base = base_of(c);
    if (!first_choice(c, schemes)) return 0;
    do {
        price p;
        if (node >= 0 && schemes[node] == without) continue;
        p = price_of(c, schemes);
        if (!is_allowed(c, &p, base) || (found && !is_better(c, &p, best))) continue;
        *best = p;
        found = 1;
    } while (next_choice(c, schemes));
    return found;
}

static void check_runners_up(const small_case *c, const tl_precision_plan *plan) {
    int i;
    for (i = 0; i < plan->node_count; i++) {
        const tl_precision_node *node = &plan->nodes[i];
        price best;
        int found = find_best(c, i, (int)node->scheme, &best);
        assert_true(node->runner_up_proven);
        assert_int_equal(found, node->runner_up != TL_SCHEME_COUNT);
        if (!found) continue;
        assert_true(may_have(c, i, (int)node->runner_up));
        if (c->desc.criterion == TL_CRITERION_ACCURACY) assert_true(node->runner_up_loss == best.loss);
        else assert_int_equal(node->runner_up_cost, best.cost);
    }
}

// No single node could change to what is to be preferred, at the same cost and within the limits.
static void check_ties(const small_case *c, const tl_precision_plan *plan) {
    int schemes[MOST_NODES] = { 0 }, i, k;
    price now;
    for (i = 0; i < plan->node_count; i++) schemes[i] = (int)plan->nodes[i].scheme;
    now = price_of(c, schemes);
    for (i = 0; i < plan->node_count; i++)
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            int kept = schemes[i];
            const tl_precision_profile *row = c->ops[i] >= 0 ? &c->rows[c->ops[i]] : NULL;
            price p;
            if (!row || !may_have(c, i, k) || kept == (int)row->recommended) continue;
            if (k != (int)row->recommended && !(c->desc.priorities[k] > c->desc.priorities[kept])) continue;
            schemes[i] = k;
            p = price_of(c, schemes);
            assert_false(p.cost <= now.cost && p.conversion_cost <= now.conversion_cost && p.conversions <= now.conversions && p.loss <= (c->desc.criterion == TL_CRITERION_PERFORMANCE
                             ? c->desc.loss_limit : now.loss));
            schemes[i] = kept;
        }
}

// 0 = the recommended scheme, else 1 + the number of schemes of a larger priority.
static int rank_of(const small_case *c, int node, int scheme) {
    int k, rank = 1;
    if (c->ops[node] >= 0 && scheme == (int)c->rows[c->ops[node]].recommended) return 0;
    for (k = 0; k < TL_SCHEME_COUNT; k++) rank += c->desc.priorities[k] > c->desc.priorities[scheme];
    return rank;
}

// Fewer conversions, more nodes of the first rank at which two choices differ, less loss: < 0 = the first is preferred.
static int compare_ties(const small_case *c, const int *a, const price *pa, const int *b, const price *pb) {
    int counts[TL_SCHEME_COUNT + 2] = { 0 }, i;
    if (pa->conversions != pb->conversions) return pa->conversions < pb->conversions ? -1 : 1;
    for (i = 0; i < c->graph.node_count; i++) { counts[rank_of(c, i, a[i])]++; counts[rank_of(c, i, b[i])]--; }
    for (i = 0; i < TL_SCHEME_COUNT + 2; i++)
        if (counts[i]) return counts[i] > 0 ? -1 : 1;
    return pa->loss < pb->loss ? -1 : pa->loss > pb->loss;
}

// No other choice of the same cost within the limits is to be preferred. Returns 1 where there are others.
static int check_ties_of_all(const small_case *c, const tl_precision_plan *plan) {
    int schemes[MOST_NODES] = { 0 }, now[MOST_NODES] = { 0 }, i, ties = 0;
    double limit = c->desc.criterion == TL_CRITERION_PERFORMANCE ? c->desc.loss_limit : plan->loss;
    price p, own;
    for (i = 0; i < plan->node_count; i++) now[i] = (int)plan->nodes[i].scheme;
    own = price_of(c, now);
    if (!first_choice(c, schemes)) return 0;
    do {
        p = price_of(c, schemes);
        if (p.cost != own.cost || p.loss > limit) continue;
        ties++;
        assert_true(compare_ties(c, schemes, &p, now, &own) >= 0);
    } while (next_choice(c, schemes));
    return ties > 1;
}

// Whether priorities tell schemes apart that nodes may choose from.
static int has_priorities(const small_case *c) {
    uint32_t all = 0;
    int i, k;
    for (i = 0; i < c->graph.node_count; i++) {
        uint32_t own = 0;
        for (k = 0; k < TL_SCHEME_COUNT; k++) own |= may_have(c, i, k) ? BIT(rank_of(c, i, k)) : 0;
        if (own & (own - 1)) all |= own & ~BIT(0);
    }
    return (all & (all - 1)) != 0;
}

static int ties_checked;    // cases in which several choices are equal

static void compare(small_case *c) {
    tl_precision_plan plan;
    tl_env env;
    price best, p;
    tl_result result;
    int found = find_best(c, -1, 0, &best);
    memset(&env, 0, sizeof env);
    result = tl_plan_precision(&env, &c->desc, &plan);
    if (!found) {
        assert_int_equal(result, TL_ERROR_INFEASIBLE);
        assert_true(is_zero(&plan, sizeof plan));
        return;
    }
    if (result) fail_msg("%s", env.error.text);
    p = check_plan(c, &plan);
    if (c->desc.criterion == TL_CRITERION_ACCURACY) {
        assert_true(p.loss == best.loss && plan.bound_loss == plan.loss);
        assert_true(plan.speedup >= (c->desc.least_speedup > 0 ? c->desc.least_speedup : 1));
    } else {
        assert_true(p.loss <= c->desc.loss_limit && plan.loss <= plan.loss_limit);
        assert_true(plan.bound_loss == 0);
    }
    assert_int_equal(p.cost, best.cost);
    assert_int_equal(plan.bound_cost, plan.cost);
    check_runners_up(c, &plan);
    if (c->desc.criterion != TL_CRITERION_CUSTOM) check_ties(c, &plan);
    if (c->desc.criterion != TL_CRITERION_CUSTOM && has_priorities(c)) ties_checked += check_ties_of_all(c, &plan);
    tl_free_precision_plan(&env, &plan);
}

static void small_graphs_cost_what_brute_force_says(void **state) {
    int times = scaled(400), i;
    tl_random random = { 71 };
    (void)state;
    for (i = 0; i < times; i++) {
        small_case *c = (small_case *)malloc(sizeof *c);
        fill_case(c, &random);
        c->desc.criterion = TL_CRITERION_PERFORMANCE;
        c->desc.loss_limit = below(&random, 6) == 0 ? 0 : ldexp(1, -(int)below(&random, 12) - 18);
        compare(c);
        c->desc.criterion = TL_CRITERION_CUSTOM;
        c->desc.least_speedup = ldexp((double)(1 + below(&random, 12)), -2);
        compare(c);
        c->desc.criterion = TL_CRITERION_ACCURACY;
        compare(c);
        c->desc.criterion = TL_CRITERION_PERFORMANCE;
        c->desc.loss_limit = (double)INFINITY;
        compare(c);
        tl_free_graph(NULL, &c->graph);
        free(c);
    }
}

// Few costs and losses, so that many choices are equal: the preferred one of all is taken.
static void among_equal_choices_of_small_graphs_the_preferred_one_is_taken(void **state) {
    int times = scaled(300), i, k;
    tl_random random = { 72 };
    (void)state;
    ties_checked = 0;
    for (i = 0; i < times; i++) {
        small_case *c = (small_case *)malloc(sizeof *c);
        fill_case(c, &random);
        for (k = 0; k < OPS; k++) c->rows[k].schemes |= (uint32_t)below(&random, BIT(TL_SCHEME_COUNT)) & 0xff;
        for (k = 0; k < c->graph.node_count * TL_SCHEME_COUNT; k++) {
            int op = c->ops[k / TL_SCHEME_COUNT], scheme = k % TL_SCHEME_COUNT;
            int given = op >= 0 && (!scheme || c->rows[op].schemes >> scheme & 1);
            c->costs[k] = given ? 100 * below(&random, 2) : TL_FORBIDDEN;
            c->losses[k] = given && scheme ? ldexp((double)below(&random, 2), -20) : (double)NAN;
        }
        for (k = 0; k < c->graph.tensor_count; k++)     // a conversion costs as much as a node, or nothing
            ((tl_node_output *)c->graph.outputs)[k].bytes = 400 * below(&random, 2);
        for (k = 0; k < TL_SCHEME_COUNT; k++) c->desc.priorities[k] = (double)below(&random, 5);
        c->desc.device = NULL;
        c->desc.costs = c->costs;
        c->desc.losses = c->losses;
        c->desc.node_schemes = NULL;
        c->desc.objective = TL_OBJECTIVE_TIME;
        c->desc.criterion = TL_CRITERION_PERFORMANCE;
        c->desc.loss_limit = ldexp((double)below(&random, 3), -20);   // of which each loss is a whole part
        compare(c);
        c->desc.criterion = TL_CRITERION_ACCURACY;
        c->desc.least_speedup = 0;
        compare(c);
        tl_free_graph(NULL, &c->graph);
        free(c);
    }
    assert_true(ties_checked > (is_thinned() ? 0 : times / 2));
    printf("%d of %d choices had equals\n", ties_checked, 2 * times);
}

// -- the front --

typedef struct front_of { double losses[MOST_CHOICES]; uint64_t costs[MOST_CHOICES]; int count; } front_of;

// Points that nothing undercuts, by rising loss.
static void find_front(const small_case *c, front_of *front) {
    int schemes[MOST_NODES], i, k;
    front->count = 0;
    if (!first_choice(c, schemes)) return;
    do {
        price p = price_of(c, schemes);
        int lower = 0;
        for (i = 0; i < front->count && !lower; i++) lower = front->losses[i] <= p.loss && front->costs[i] <= p.cost;
        if (lower) continue;
        for (i = k = 0; i < front->count; i++) {
            if (p.loss <= front->losses[i] && p.cost <= front->costs[i]) continue;
            front->losses[k] = front->losses[i];
            front->costs[k++] = front->costs[i];
        }
        for (i = k; i > 0 && front->losses[i - 1] > p.loss; i--) {
            front->losses[i] = front->losses[i - 1];
            front->costs[i] = front->costs[i - 1];
        }
        front->losses[i] = p.loss;
        front->costs[i] = p.cost;
        front->count = k + 1;
    } while (next_choice(c, schemes));
}

// As the criterion says it, in integers: losses are multiples of 2^-30, weights small.
static double score_of(const small_case *c, const front_of *front, double loss, uint64_t cost) {
    int last = front->count - 1;
    double wide = ldexp(front->losses[last] - front->losses[0], 30), tall = (double)(front->costs[0] - front->costs[last]);
    double accuracy = c->desc.accuracy_weight, performance = c->desc.performance_weight;
    if (!(accuracy > 0) && !(performance > 0)) accuracy = performance = 0.5;
    return accuracy * ldexp(loss - front->losses[0], 30) * tall +
           performance * (double)(cost - front->costs[last]) * wide;
}

static void check_front(const small_case *c, const tl_precision_front *front, const front_of *all) {
    int i, k;
    assert_int_equal(front->complete, 1);
    assert_int_equal(front->point_count, all->count);
    assert_int_equal(front->base_cost, base_of(c));
    for (i = 0; i < front->point_count; i++) {
        const tl_precision_point *point = &front->points[i];
        int schemes[MOST_NODES];
        price p;
        for (k = 0; k < c->graph.node_count; k++) {
            schemes[k] = point->schemes[k];
            assert_true(may_have(c, k, schemes[k]));
        }
        p = price_of(c, schemes);
        assert_true(point->loss == all->losses[i] && point->loss == p.loss);
        assert_int_equal(point->cost, all->costs[i]);
        assert_int_equal(point->cost, p.cost);
        assert_int_equal(point->bound_cost, point->cost);
        assert_int_equal(point->bytes, p.bytes);
        assert_true(score_of(c, all, front->points[front->knee].loss, front->points[front->knee].cost) <=
                    score_of(c, all, point->loss, point->cost));
    }
}

static void fronts_and_knees_are_those_of_brute_force(void **state) {
    int times = scaled(300), i;
    front_of *all = (front_of *)malloc(sizeof *all);
    tl_random random = { 72 };
    (void)state;
    for (i = 0; i < times; i++) {
        small_case *c = (small_case *)malloc(sizeof *c);
        tl_precision_front front;
        tl_precision_plan plan;
        tl_env env;
        memset(&env, 0, sizeof env);
        fill_case(c, &random);
        c->desc.performance_weight = (double)below(&random, 3) * 2;
        c->desc.accuracy_weight = (double)below(&random, 3);
        find_front(c, all);
        if (tl_plan_precision_front(&env, &c->desc, 100000, &front)) fail_msg("%s", env.error.text);
        check_front(c, &front, all);
        c->desc.criterion = TL_CRITERION_BALANCED;
        plan = planned(&c->desc);
        check_plan(c, &plan);
        if (all->count <= 256) {
            assert_true(plan.loss == front.points[front.knee].loss);
            assert_int_equal(plan.cost, front.points[front.knee].cost);
            check_ties(c, &plan);
        }
        tl_free_precision_plan(&env, &plan);
        tl_free_precision_front(&env, &front);
        assert_true(is_zero(&front, sizeof front));
        tl_free_graph(NULL, &c->graph);
        free(c);
    }
    free(all);
}

// -- limits --

// x -- conv -- softmax -- r, r is a result
#define THREE "tlg 1\n" \
    "node 0 x input fwd=0 bwd=0 out=400 needs=none in=-\n" \
    "node 1 c conv2d fwd=6000 bwd=12000 out=400 needs=in param=800 in=0\n" \
    "node 2 s softmax fwd=600 bwd=600 out=400 needs=out in=1\n" \
    "node 3 r relu fwd=300 bwd=300 out=400 needs=out in=2 keep\n"

static tl_precision_desc desc_of(const tl_graph *graph) {
    tl_precision_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.loss_limit = 0.01;
    desc.profiles = word_length_profiles(&desc.profile_count);
    desc.allow_f16 = 1;
    return desc;
}

static tl_result try_sentence(const tl_precision_desc *desc, char *sentence) {
    tl_precision_plan plan;
    tl_env env;
    tl_result result;
    memset(&env, 0, sizeof env);
    result = tl_plan_precision(&env, desc, &plan);
    strcpy(sentence, env.error.text);
    tl_free_precision_plan(&env, &plan);
    return result;
}

static void nearest_limits_that_are_named_can_be_held(void **state) {
    int times = scaled(300), i, losses = 0, speeds = 0;
    tl_random random = { 73 };
    (void)state;
    for (i = 0; i < times; i++) {
        small_case *c = (small_case *)malloc(sizeof *c);
        char sentence[256];
        const char *number;
        int k, n;
        fill_case(c, &random);
        for (n = 0; n < OPS; n++) {  // whatever digits
            c->rows[n].schemes |= BIT(TL_SCHEME_I8);
            c->rows[n].sensitive = 0;
            for (k = 1; k < TL_SCHEME_COUNT; k++) c->rows[n].loss[k] = 1e-5 + tl_next_random_ratio(&random);
        }
        c->desc.losses = NULL;
        c->desc.training = 0;
        c->desc.node_schemes = NULL;
        c->desc.schemes = 0x1fe;  // no f32
        c->desc.loss_limit = 1e-6;
        if (try_sentence(&c->desc, sentence) == TL_ERROR_INFEASIBLE) {
            number = strstr(sentence, "cannot be held: the least loss is ");
            assert_non_null(number);
            c->desc.loss_limit = strtod(number + 34, NULL);
            assert_int_equal(try_sentence(&c->desc, sentence), TL_OK);
            c->desc.loss_limit *= 0.999;
            assert_int_equal(try_sentence(&c->desc, sentence), TL_ERROR_INFEASIBLE);
            losses++;
        }
        c->desc.criterion = below(&random, 2) ? TL_CRITERION_CUSTOM : TL_CRITERION_ACCURACY;
        c->desc.loss_limit = 1000;
        c->desc.least_speedup = 50;
        if (try_sentence(&c->desc, sentence) == TL_ERROR_INFEASIBLE) {
            number = strstr(sentence, "least_speedup: 50.0 cannot be held: at most ");
            assert_non_null(number);
            c->desc.least_speedup = strtod(number + 44, NULL);
            if (c->desc.least_speedup > 0) assert_int_equal(try_sentence(&c->desc, sentence), TL_OK);
            c->desc.least_speedup = c->desc.least_speedup * 1.001 + 0.0002;
            assert_int_equal(try_sentence(&c->desc, sentence), TL_ERROR_INFEASIBLE);
            speeds++;
        }
        tl_free_graph(NULL, &c->graph);
        free(c);
    }
    assert_true(losses > times / 4 && speeds > times / 4);
}

static void sentences_name_the_limit_and_the_nearest_one(void **state) {
    tl_precision_profile rows[2];
    tl_graph graph = graph_of("tlg 1\nnode 0 a one fwd=1000 bwd=0 out=4 needs=none in=-\n"
                              "node 1 b two fwd=1000 bwd=0 out=4 needs=none in=-\n");
    tl_precision_desc desc = desc_of(&graph);
    (void)state;
    rows[0] = profile_of("one", BIT(TL_SCHEME_I8), 0.001, 4);
    rows[1] = profile_of("two", BIT(TL_SCHEME_I8), 0.001, 2);
    desc.profiles = rows;
    desc.profile_count = 2;
    desc.any_result = 1;
    desc.schemes = BIT(TL_SCHEME_I8);
    desc.loss_limit = 0.001;
    check_refused(&desc, TL_ERROR_INFEASIBLE,
                  "tl_plan_precision: loss_limit: 0.001 cannot be held: the least loss is 0.002");
    desc.loss_limit = 0;
    check_refused(&desc, TL_ERROR_INFEASIBLE,
                  "tl_plan_precision: loss_limit: 0.0 cannot be held: the least loss is 0.002");
    desc.loss_limit = 1;
    desc.criterion = TL_CRITERION_CUSTOM;
    desc.least_speedup = 4;
    check_refused(&desc, TL_ERROR_INFEASIBLE, "tl_plan_precision: least_speedup: 4.0 cannot be held: at most 2.6666 "
                                              "can be reached within loss_limit");
    desc.criterion = TL_CRITERION_ACCURACY;
    check_refused(&desc, TL_ERROR_INFEASIBLE,
                  "tl_plan_precision: least_speedup: 4.0 cannot be held: at most 2.6666 can be reached");
    desc.schemes = BIT(TL_SCHEME_I16);
    check_refused(&desc, TL_ERROR_INFEASIBLE,
                  "tl_plan_precision: node 0 (a): schemes: none is left of those that its op can have");
    tl_free_graph(NULL, &graph);
}

// What a plan reached can be asked for, to the last digit, and nothing above it.
static void a_speedup_that_was_reached_is_a_limit_that_holds(void **state) {
    tl_random random = { 74 };
    int i;
    (void)state;
    for (i = 0; i < 300; i++) {
        tl_precision_profile row = profile_of("op", BIT(TL_SCHEME_I8), 0.001, 1 + 9 * tl_next_random_ratio(&random));
        tl_precision_desc desc;
        tl_precision_plan plan;
        tl_graph graph;
        char text[100];
        double reached;
        snprintf(text, sizeof text, "tlg 1\nnode 0 a op fwd=%u bwd=0 out=4 needs=none in=-\n",
                 1 + (unsigned)below(&random, 1000000000) / (i % 2 ? 1 : 1000000));
        graph = graph_of(text);
        desc = desc_of(&graph);
        desc.profiles = &row;
        desc.profile_count = 1;
        desc.schemes = BIT(TL_SCHEME_I8);
        desc.criterion = i % 3 ? TL_CRITERION_CUSTOM : TL_CRITERION_ACCURACY;
        plan = planned(&desc);
        reached = desc.least_speedup = plan.speedup;
        tl_free_precision_plan(NULL, &plan);
        plan = planned(&desc);
        assert_true(plan.speedup == reached);
        tl_free_precision_plan(NULL, &plan);
        desc.least_speedup = nextafter(reached, 100);
        assert_int_equal(tl_plan_precision(NULL, &desc, &plan), TL_ERROR_INFEASIBLE);
        tl_free_graph(NULL, &graph);
    }
}

// -- rules --

static void every_rule_of_a_desc_is_named(void **state) {
    static const uint32_t bad_schemes[] = { 0, BIT(TL_SCHEME_COUNT), 0, 0 };
    double losses[4 * TL_SCHEME_COUNT];
    tl_precision_profile row = profile_of("a", 1 << 20, 0, 1);
    tl_device device;
    tl_graph graph = graph_of(THREE), empty;
    tl_precision_desc desc, good = desc_of(&graph);
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&device, 0, sizeof device);
    memset(&empty, 0, sizeof empty);
    assert_int_equal(tli_check_precision_of(&env, TLI_IN(PLAN_PRECISION_FRONT), &good), TL_OK);
#define REFUSED(change, rule) \
    desc = good; change; check_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_precision: " rule); \
    assert_int_equal(tli_check_precision_of(&env, TLI_IN(PLAN_PRECISION_FRONT), &desc), TL_ERROR_INVALID_ARG); \
    assert_string_equal(env.error.text, "tl_plan_precision_front: " rule)
    REFUSED(desc.criterion = TL_CRITERION_COUNT, "criterion: unknown");
    REFUSED(desc.objective = TL_OBJECTIVE_COUNT, "objective: unknown");
    REFUSED(desc.loss_source = TL_LOSS_SOURCE_COUNT, "loss_source: unknown");
    REFUSED(desc.loss_limit = (double)NAN, "loss_limit: must be >= 0 and a number");
    REFUSED(desc.loss_limit = -1e-300, "loss_limit: must be >= 0 and a number");
    REFUSED(desc.loss_limit = -(double)INFINITY, "loss_limit: must be >= 0 and a number");
    REFUSED(desc.least_speedup = (double)NAN, "least_speedup: must be finite and >= 0");
    REFUSED(desc.least_speedup = -1, "least_speedup: must be finite and >= 0");
    REFUSED(desc.least_speedup = (double)INFINITY, "least_speedup: must be finite and >= 0");
    REFUSED(desc.training = 2, "training, allow_sensitive, allow_unknown, any_result: must be 0 or 1");
    REFUSED(desc.allow_sensitive = -1, "training, allow_sensitive, allow_unknown, any_result: must be 0 or 1");
    REFUSED(desc.allow_unknown = 4, "training, allow_sensitive, allow_unknown, any_result: must be 0 or 1");
    REFUSED(desc.any_result = 2, "training, allow_sensitive, allow_unknown, any_result: must be 0 or 1");
    REFUSED(desc.allow_f16 = 2, "allow_f16: must be 0 or 1");
    REFUSED(desc.schemes = BIT(TL_SCHEME_COUNT), "schemes: unknown bit");
    REFUSED((desc.training = 1, desc.schemes = BIT(TL_SCHEME_I8)), "schemes: training takes f32, f16 and bf16 alone");
    REFUSED(desc.performance_weight = (double)NAN, "performance_weight, accuracy_weight: must be finite and >= 0");
    REFUSED(desc.accuracy_weight = -1, "performance_weight, accuracy_weight: must be finite and >= 0");
    REFUSED(desc.accuracy_weight = (double)INFINITY, "performance_weight, accuracy_weight: must be finite and >= 0");
    REFUSED((desc.accuracy_weight = 1, desc.performance_weight = -1),
            "performance_weight, accuracy_weight: must be finite and >= 0");  // their sum is 0
    REFUSED(desc.priorities[TL_SCHEME_I8] = (double)NAN, "priorities: must be finite");
    REFUSED(desc.priorities[TL_SCHEME_F32] = -(double)INFINITY, "priorities: must be finite");
    REFUSED(desc.round_limit = -1, "round_limit: must be >= 0");
    REFUSED(desc.node_schemes = bad_schemes, "node 1 (c): node_schemes: unknown bit");
    REFUSED((desc.profiles = NULL, desc.profile_count = 1), "profiles: must not be NULL where there are some");
    REFUSED(desc.profile_count = -1, "profile_count: must be >= 0");
    REFUSED((desc.profiles = &row, desc.profile_count = 1), "profiles: row 0 (a): schemes: unknown bit");
    for (i = 0; i < 4 * TL_SCHEME_COUNT; i++) losses[i] = (double)NAN;
    good.losses = losses;
    assert_int_equal(tli_check_precision_of(&env, TLI_IN(PLAN_PRECISION_FRONT), &good), TL_OK);
    losses[TL_SCHEME_COUNT * 2 + 3] = -1;
    REFUSED((void)0, "node 2 (s): losses: must be finite and >= 0, or NaN");
    losses[TL_SCHEME_COUNT * 2 + 3] = (double)INFINITY;
    REFUSED((void)0, "node 2 (s): losses: must be finite and >= 0, or NaN");
    losses[TL_SCHEME_COUNT * 2 + 3] = 1;
    losses[TL_SCHEME_COUNT] = 1;
    REFUSED((void)0, "node 1 (c): losses: must be 0 for f32: others are compared with it");
#undef REFUSED
    good.losses = NULL;
    desc = good;
    desc.graph = &empty;
    assert_int_equal(tli_check_precision_of(&env, TLI_IN(PLAN_PRECISION_FRONT), &desc), TL_ERROR_INVALID_ARG);
    desc = good;
    desc.device = &device;
    device.alignment_bytes = 3;
    assert_int_equal(tli_check_precision_of(&env, TLI_IN(PLAN_PRECISION_FRONT), &desc), TL_ERROR_INVALID_ARG);
    tl_free_graph(NULL, &graph);
}

static void sums_that_do_not_fit_are_refused(void **state) {
    double losses[TL_SCHEME_COUNT * 2];
    uint64_t costs[TL_SCHEME_COUNT * 2];
    tl_precision_profile row = profile_of("op", BIT(TL_SCHEME_I8), 1, 0.25);
    tl_device device;
    tl_graph graph = graph_of("tlg 1\nnode 0 a op fwd=1152921504606846975 bwd=0 out=4 needs=none in=-\n"), two;
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    int i;
    (void)state;
    memset(&device, 0, sizeof device);
    plan = planned(&desc);
    assert_int_equal(plan.cost, UINT64_C(1152921504606846975));  // 2^60 - 1
    tl_free_precision_plan(NULL, &plan);
    desc.profiles = &row;
    desc.profile_count = 1;
    check_refused(&desc, TL_ERROR_OVERFLOW,
                  "tl_plan_precision: graph: the sum of costs and conversions must fit 60 bits");
    tl_free_graph(NULL, &graph);
    two = graph_of("tlg 1\nnode 0 a op fwd=1 bwd=0 out=4000000 needs=none in=-\n"
                   "node 1 b op fwd=1 bwd=0 out=4000000 needs=none in=0\n");
    desc.graph = &two;
    device.bytes_per_second = 1;
    desc.device = &device;
    plan = planned(&desc);
    tl_free_precision_plan(NULL, &plan);
    for (i = 0; i < 2 * TL_SCHEME_COUNT; i++) { losses[i] = 0; costs[i] = UINT64_MAX - 1; }
    desc.costs = costs;
    check_refused(&desc, TL_ERROR_OVERFLOW,
                  "tl_plan_precision: graph: the sum of costs and conversions must fit 60 bits");
    desc.costs = NULL;
    losses[TL_SCHEME_I8] = losses[TL_SCHEME_COUNT + TL_SCHEME_I8] = 1.7e308;
    desc.losses = losses;
    desc.loss_limit = (double)INFINITY;
    check_refused(&desc, TL_ERROR_OVERFLOW, "tl_plan_precision: losses: the sum of the largest must be finite");
    tl_free_graph(NULL, &two);
}

// -- each field does something --

static tl_scheme scheme_of(const tl_precision_desc *desc, int node) {
    tl_precision_plan plan = planned(desc);
    tl_scheme scheme = plan.nodes[node].scheme;
    tl_free_precision_plan(NULL, &plan);
    return scheme;
}

// Printed, at every size that a buffer can have.
typedef size_t (*print)(const tl_graph *graph, const tl_precision_plan *plan, char *buf, size_t size);

static char *printed(print function, const tl_graph *graph, const tl_precision_plan *plan) {
    size_t length = function(graph, plan, NULL, 0), size;
    char *text = (char *)malloc(length + 2), *part = (char *)malloc(length + 2);
    assert_int_equal(function(graph, plan, text, length + 1), length);
    assert_int_equal(strlen(text), length);
    for (size = 1; size <= length; size += 1 + size / 9) {
        memset(part, '#', length + 2);
        assert_int_equal(function(graph, plan, part, size), length);
        assert_int_equal(strlen(part), size - 1);
        assert_memory_equal(part, text, size - 1);
        assert_int_equal(part[size], '#');
    }
    free(part);
    return text;
}

static uint64_t cost_of(const tl_precision_desc *desc) {
    tl_precision_plan plan = planned(desc);
    uint64_t cost = plan.cost;
    tl_free_precision_plan(NULL, &plan);
    return cost;
}

static void defaults_are_filled_in(void **state) {
    int32_t count;
    tl_precision_desc desc = tl_default_precision(NULL), training;
    (void)state;
    assert_true(desc.profiles == tl_find_default_profiles(&count));
    assert_int_equal(desc.profile_count, count);
    assert_true(desc.least_speedup == 1 && desc.performance_weight == 0.5 && desc.accuracy_weight == 0.5);
    assert_int_equal(desc.round_limit, 8);
    assert_int_equal(desc.loss_source, TL_LOSS_FROM_MEASURED);
    assert_int_equal(desc.schemes, 0xff);
    memset(&training, 0, sizeof training);
    training.training = 1;
    training.accuracy_weight = 3;
    training.loss_source = TL_LOSS_FROM_DATA;
    training = tl_default_precision(&training);
    assert_int_equal(training.schemes, BIT(TL_SCHEME_F32) | BIT(TL_SCHEME_F16) | BIT(TL_SCHEME_BF16));
    assert_true(training.accuracy_weight == 3 && training.performance_weight == 0);
    assert_int_equal(training.loss_source, TL_LOSS_FROM_DATA);
}

static void schemes_of_all_and_of_a_node_are_limits(void **state) {
    uint32_t node_schemes[4] = { 0, 0, 0, 0 };
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    (void)state;
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_I8_CHANNEL);
    desc.schemes = BIT(TL_SCHEME_F32) | BIT(TL_SCHEME_I16);
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_I16);
    desc.node_schemes = node_schemes;
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_I16);
    node_schemes[1] = BIT(TL_SCHEME_F32) | BIT(TL_SCHEME_F16);
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_F32);
    node_schemes[0] = BIT(TL_SCHEME_I8);  // a graph input is f32, whatever is asked for
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_F32);
    tl_free_graph(NULL, &graph);
}

// 0.1 + 0.2 is more than 0.3: not in doubles that are added up in units rounded down.
static void no_rounding_of_losses_exceeds_a_limit(void **state) {
    static const double limits[] = { 0.3, 0.7, 1.1, 3e-9 }, parts[][2] = {
        { 0.1, 0.2 }, { 0.1, 0.6 }, { 0.1, 1.0 }, { 1e-9, 2.0000000000000005e-9 } };
    const uint32_t floats = BIT(TL_SCHEME_F32) | BIT(TL_SCHEME_F16), schemes[4] = { 0, floats, floats, BIT(TL_SCHEME_F32) };
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    double losses[4 * TL_SCHEME_COUNT];
    int i, k;
    (void)state;
    desc.node_schemes = schemes;
    desc.losses = losses;
    desc.objective = TL_OBJECTIVE_BYTES;
    desc.any_result = 1;
    for (i = 0; i < 4; i++) {
        tl_precision_plan plan;
        double sum;
        for (k = 0; k < 4 * TL_SCHEME_COUNT; k++) losses[k] = (double)NAN;
        for (k = 0; k < 2; k++) losses[(k + 1) * TL_SCHEME_COUNT + TL_SCHEME_F16] = parts[i][k];
        desc.loss_limit = limits[i];
        plan = planned(&desc);
        sum = plan.nodes[1].scheme == TL_SCHEME_F16 ? parts[i][0] : 0;
        sum += plan.nodes[2].scheme == TL_SCHEME_F16 ? parts[i][1] : 0;
        assert_true(sum <= limits[i] && plan.loss <= limits[i]);
        tl_free_precision_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void sensitive_ops_keep_sixteen_bits_unless_allowed(void **state) {
    uint32_t node_schemes[4] = { 0, 0, BIT(TL_SCHEME_I8) | BIT(TL_SCHEME_FAKE), 0 };
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    (void)state;
    desc.loss_limit = 1;
    assert_int_equal(scheme_of(&desc, 2), TL_SCHEME_I16);
    desc.allow_sensitive = 1;
    assert_int_equal(scheme_of(&desc, 2), TL_SCHEME_I8);
    desc.allow_sensitive = 0;
    desc.node_schemes = node_schemes;
    check_refused(&desc, TL_ERROR_INFEASIBLE,
                  "tl_plan_precision: node 2 (s): schemes: none is left of those that its op can have");
    tl_free_graph(NULL, &graph);
}

static void unknown_ops_stay_in_f32_unless_allowed(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 a odd fwd=90000 bwd=0 out=4 needs=none in=-\n");
    tl_precision_desc desc = desc_of(&graph);
    double losses[TL_SCHEME_COUNT];
    uint64_t costs[TL_SCHEME_COUNT];
    tl_precision_plan plan;
    int k;
    (void)state;
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_F32);
    desc.allow_unknown = 1;
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_I16);
    desc.allow_unknown = 0;
    for (k = 0; k < TL_SCHEME_COUNT; k++) { losses[k] = (double)NAN; costs[k] = TL_FORBIDDEN; }
    losses[TL_SCHEME_I8] = 0.001;
    desc.losses = losses;
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_F32);  // what it costs is not known
    desc.costs = costs;
    costs[TL_SCHEME_I8] = 80000;
    plan = planned(&desc);
    assert_int_equal(plan.nodes[0].scheme, TL_SCHEME_I8);
    assert_int_equal(plan.nodes[0].source, TL_LOSS_FROM_MEASURED);
    assert_true(plan.loss == 0.001 && plan.speedup == 1.125 && plan.nodes[0].speedup == 1.125);
    tl_free_precision_plan(NULL, &plan);
    desc.loss_source = TL_LOSS_FROM_DATA;
    plan = planned(&desc);
    assert_int_equal(plan.nodes[0].source, TL_LOSS_FROM_DATA);
    tl_free_precision_plan(NULL, &plan);
    costs[TL_SCHEME_I8] = TL_FORBIDDEN;
    desc.objective = TL_OBJECTIVE_BYTES;
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_I8);
    tl_free_graph(NULL, &graph);
}

static void results_are_converted_back_unless_any_will_do(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan = planned(&desc);
    (void)state;
    assert_int_equal(plan.nodes[3].conversion_count, 1);
    assert_int_equal(plan.nodes[3].conversion_cost, 100);
    tl_free_precision_plan(NULL, &plan);
    desc.any_result = 1;
    plan = planned(&desc);
    assert_int_equal(plan.nodes[3].conversion_count, 0);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void training_counts_backward_and_offers_floats(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    (void)state;
    plan = planned(&desc);
    assert_int_equal(plan.base_cost, 6900);
    tl_free_precision_plan(NULL, &plan);
    desc.training = 1;
    plan = planned(&desc);
    assert_int_equal(plan.base_cost, 19800);
    assert_int_equal(plan.nodes[1].scheme, TL_SCHEME_F16);
    assert_int_equal(plan.nodes[0].conversion_cost, 100);  // no gradient goes back to an input
    assert_int_equal(plan.nodes[3].conversion_cost, 200);  // backward begins at a result that nobody reads
    assert_int_equal(plan.cost, 9900 + 300);
    tl_free_precision_plan(NULL, &plan);
    desc.schemes = BIT(TL_SCHEME_F32) | BIT(TL_SCHEME_BF16);
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_BF16);
    tl_free_graph(NULL, &graph);
}

// The table knows noise: by it f16 loses less than bf16 and is as fast. What it does not know is range.
static void f16_needs_evidence_of_range_in_training(void **state) {
    static const float within[] = { 1, -3, 0.001f, 40 }, beyond[] = { 1, -3, 70000, 40 };
    const float *const data[] = { within, beyond };
    uint8_t safe[4] = { 0 };
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    int i;
    (void)state;
    desc.training = 1;
    desc.allow_f16 = 0;
    plan = planned(&desc);
    assert_int_equal(plan.scheme_counts[TL_SCHEME_F16], 0);
    assert_int_equal(plan.scheme_counts[TL_SCHEME_BF16], 3);
    tl_free_precision_plan(NULL, &plan);
    for (i = 0; i < 2; i++) {  // of tensor and gradient; here of the same numbers
        tl_observer_desc kind;
        tl_observer *observer;
        memset(&kind, 0, sizeof kind);
        assert_int_equal(tl_init_observer(NULL, &kind, &observer), TL_OK);
        assert_int_equal(tl_observe_data(observer, data[i], 4), TL_OK);
        safe[i + 1] = (uint8_t)tl_is_f16_safe(observer, 1, 0);
        tl_free_observer(observer);
    }
    desc.f16_nodes = safe;
    desc.schemes = BIT(TL_SCHEME_F32) | BIT(TL_SCHEME_F16);
    plan = planned(&desc);
    assert_int_equal(plan.nodes[1].scheme, TL_SCHEME_F16);
    assert_int_equal(plan.nodes[2].scheme, TL_SCHEME_F32);
    tl_free_precision_plan(NULL, &plan);
    desc.f16_nodes = NULL;
    desc.allow_f16 = 1;
    plan = planned(&desc);
    assert_int_equal(plan.scheme_counts[TL_SCHEME_F16], 3);
    tl_free_precision_plan(NULL, &plan);
    desc.training = desc.allow_f16 = 0;  // inference has no gradients: losses decide
    plan = planned(&desc);
    assert_int_equal(plan.scheme_counts[TL_SCHEME_F16], 3);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Nothing is faster than f32 because of a figure that is built in.
static void speeds_are_those_of_f32_until_someone_says_otherwise(void **state) {
    uint64_t costs[4 * TL_SCHEME_COUNT];
    tl_precision_profile rows[3];
    tl_device device;
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    char *text;
    int i;
    (void)state;
    memset(&device, 0, sizeof device);
    desc.profiles = NULL;
    desc.profile_count = 0;
    desc.loss_limit = 1;
    plan = planned(&desc);
    assert_int_equal(plan.cost, plan.base_cost);
    assert_int_equal(plan.scheme_counts[TL_SCHEME_F32], 3);
    assert_int_equal(plan.speeds.counts[TL_SPEED_ASSUMED], 3);
    assert_int_equal(plan.speeds.conversions, TL_SPEED_ASSUMED);
    assert_string_equal(plan.speeds.measured_on, "");
    text = printed(tl_print_precision_plan, &graph, &plan);
    assert_null(strstr(text, "; proven: "));  // no proof stands beside a speed that no one measured
    free(text);
    tl_free_precision_plan(NULL, &plan);
    desc.device = &device;                    // its arithmetic is of use to products alone
    device.bytes_per_second = UINT64_C(1000000000000);
    device.flops_per_second[TL_PRECISION_FULL] = 1e12;
    device.flops_per_second[TL_PRECISION_BF16] = 8e12;
    plan = planned(&desc);
    assert_int_equal(plan.nodes[1].scheme, TL_SCHEME_BF16);
    assert_int_equal(plan.nodes[1].speed_source, TL_SPEED_FROM_DEVICE);
    assert_true(plan.nodes[1].speedup > 7.9 && plan.nodes[1].speedup < 8.1);
    assert_true(plan.nodes[3].speedup == 1);
    assert_int_equal(plan.speeds.conversions, TL_SPEED_FROM_DEVICE);
    tl_free_precision_plan(NULL, &plan);
    device.flops_per_second[TL_PRECISION_SINGLE] = 4e12;  // f32 by name counts before the widest
    plan = planned(&desc);
    assert_true(plan.nodes[1].speedup > 1.9 && plan.nodes[1].speedup < 2.1);
    tl_free_precision_plan(NULL, &plan);
    rows[0] = profile_of("conv2d", BIT(TL_SCHEME_I8), 0, 1.25);
    rows[1] = profile_of("softmax", 0, 0, 1);
    rows[2] = profile_of("relu", BIT(TL_SCHEME_BF16), 0, 1.5);
    rows[0].measured_on = "a board";
    desc.profiles = rows;
    desc.profile_count = 3;
    plan = planned(&desc);
    assert_int_equal(plan.nodes[1].speed_source, TL_SPEED_MEASURED);
    assert_int_equal(plan.nodes[2].speed_source, TL_SPEED_EXACT);
    assert_int_equal(plan.speeds.counts[TL_SPEED_MEASURED], 1);
    assert_int_equal(plan.speeds.counts[TL_SPEED_EXACT], 1);
    assert_int_equal(plan.speeds.counts[TL_SPEED_ASSUMED], 1);
    assert_string_equal(plan.speeds.measured_on, "a board");
    tl_free_precision_plan(NULL, &plan);
    for (i = 0; i < 4 * TL_SCHEME_COUNT; i++) costs[i] = TL_FORBIDDEN;
    costs[3 * TL_SCHEME_COUNT + TL_SCHEME_BF16] = 7;
    desc.costs = costs;
    plan = planned(&desc);
    assert_int_equal(plan.speeds.counts[TL_SPEED_GIVEN], 1);
    assert_int_equal(plan.speeds.counts[TL_SPEED_ASSUMED], 0);
    tl_free_precision_plan(NULL, &plan);
    desc.measured_on = "a machine whose name is so long that it must be cut somewhere, at the end";
    plan = planned(&desc);
    assert_int_equal(plan.speeds.counts[TL_SPEED_MEASURED], 2);
    assert_string_equal(plan.speeds.measured_on, "a board and others");
    text = printed(tl_print_precision_plan, &graph, &plan);
    assert_non_null(strstr(text, "1.25 measured"));
    assert_non_null(strstr(text, "speeds: measured on a board and others of 2, in f32 alone of 1; conversions: the device's "));
    assert_non_null(strstr(text, "; proven: "));
    free(text);
    tl_free_precision_plan(NULL, &plan);
    rows[0].measured_on = desc.measured_on;
    plan = planned(&desc);
    assert_memory_equal(plan.speeds.measured_on, desc.measured_on, 63);
    assert_int_equal(strlen(plan.speeds.measured_on), 63);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void conversions_cost_what_the_device_says(void **state) {
    tl_device device;
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    (void)state;
    memset(&device, 0, sizeof device);
    desc.schemes = BIT(TL_SCHEME_I16) | BIT(TL_SCHEME_F16) | BIT(TL_SCHEME_F32);
    desc.device = &device;
    assert_int_equal(cost_of(&desc), 3450 + 200);  // nothing is known of it: elements
    device.bytes_per_second = UINT64_C(70000000000);
    assert_int_equal(cost_of(&desc), 3450 + 18);   // 600 bytes each way, 8.6 ns
    device.codec_bytes_per_second = UINT64_C(100000000000);
    assert_int_equal(cost_of(&desc), 3450 + 8);    // f16: 400 bytes
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_F16);
    device.bytes_per_second = 1000;                // half a second: nothing is worth that, but for f16
    assert_int_equal(cost_of(&desc), 3450 + 8);
    device.codec_bytes_per_second = 0;
    assert_int_equal(cost_of(&desc), 6900);
    tl_free_graph(NULL, &graph);
}

static void rows_of_a_device_count_on_it_alone(void **state) {
    tl_precision_profile rows[2];
    tl_device device;
    tl_graph graph = graph_of("tlg 1\nnode 0 a op fwd=1000 bwd=0 out=4 needs=none in=-\n");
    tl_precision_desc desc = desc_of(&graph);
    (void)state;
    memset(&device, 0, sizeof device);
    rows[0] = profile_of("op", BIT(TL_SCHEME_I8), 0, 8);
    rows[0].device = "npu";
    rows[1] = profile_of("op", BIT(TL_SCHEME_I8), 0, 2);
    desc.profiles = rows;
    desc.profile_count = 2;
    assert_int_equal(cost_of(&desc), 500);
    device.name = "npu";
    desc.device = &device;
    assert_int_equal(cost_of(&desc), 125);
    tl_free_graph(NULL, &graph);
}

static void objective_bytes_counts_weights_tensors_and_copies(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    (void)state;
    desc.objective = TL_OBJECTIVE_BYTES;
    plan = planned(&desc);
    assert_int_equal(plan.base_cost, 2400);
    // as much as f32 with weights of 8 bits, which loses more
    assert_int_equal(plan.nodes[1].scheme, TL_SCHEME_W8A16);
    assert_int_equal(plan.cost, 400 + 200 + 200 + 3 * 200 + 400);  // x and its copy, weights, three tensors, the result
    assert_int_equal(plan.conversion_count, 2);
    assert_int_equal(plan.bytes, plan.cost);
    tl_free_precision_plan(NULL, &plan);
    desc.any_result = 1;
    plan = planned(&desc);
    assert_int_equal(plan.nodes[3].scheme, TL_SCHEME_I16);
    assert_int_equal(plan.cost, 400 + 200 + 200 + 3 * 200);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void weights_move_the_knee_between_the_ends(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_front front;
    tl_precision_plan plan;
    (void)state;
    assert_int_equal(tl_plan_precision_front(NULL, &desc, 0, &front), TL_OK);
    assert_true(front.point_count > 2);
    desc.criterion = TL_CRITERION_BALANCED;
    desc.performance_weight = 1;
    plan = planned(&desc);
    assert_int_equal(plan.cost, front.points[front.point_count - 1].cost);
    tl_free_precision_plan(NULL, &plan);
    desc.performance_weight = 0;
    desc.accuracy_weight = 1e-300;
    plan = planned(&desc);
    assert_true(plan.loss == 0);
    assert_int_equal(plan.cost, front.points[0].cost);
    tl_free_precision_plan(NULL, &plan);
    desc.accuracy_weight = 0;  // both 0: half each
    plan = planned(&desc);
    assert_true(plan.loss > 0 && plan.cost < 6900 && plan.cost == front.points[front.knee].cost);
    tl_free_precision_plan(NULL, &plan);
    tl_free_precision_front(NULL, &front);
    tl_free_graph(NULL, &graph);
}

// Two schemes of equal loss and speed in a chain: the one of the larger priority in all nodes, not only in single ones.
static void priorities_count_over_the_whole_graph(void **state) {
    static const char *const chains[] = {
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4096 needs=none in=-\nnode 1 a op fwd=100000 bwd=0 out=4096 needs=none in=0\n",
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4096 needs=none in=-\nnode 1 a op fwd=100000 bwd=0 out=4096 needs=none in=0\n"
        "node 2 b op fwd=100000 bwd=0 out=4096 needs=none in=1\nnode 3 c op fwd=100000 bwd=0 out=4096 needs=none in=2\n"
    };
    static const tl_scheme schemes[] = { TL_SCHEME_I8, TL_SCHEME_I16 };
    tl_precision_profile row = profile_of("op", BIT(TL_SCHEME_I8) | BIT(TL_SCHEME_I16), 0.001, 2);
    int c, k, i;
    (void)state;
    for (c = 0; c < 2; c++)
        for (k = 0; k < 2; k++) {
            tl_graph graph = graph_of(chains[c]);
            tl_precision_desc desc = desc_of(&graph);
            tl_precision_plan plan;
            desc.profiles = &row;
            desc.profile_count = 1;
            desc.priorities[schemes[k]] = 0.8;
            desc.priorities[schemes[!k]] = 0.1;
            plan = planned(&desc);
            for (i = 1; i < graph.node_count; i++) assert_int_equal(plan.nodes[i].scheme, schemes[k]);
            assert_true(plan.proven);
            tl_free_precision_plan(NULL, &plan);
            tl_free_graph(NULL, &graph);
        }
}

// One node in the scheme of the largest priority outweighs any number in the next: i8 with i8-channel, or i16 with w8a16.
static void a_larger_priority_outweighs_many_smaller_ones(void **state) {
    tl_precision_profile rows[2];
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=4096 needs=none in=-\n"
                              "node 1 a a fwd=100000 bwd=0 out=4096 needs=none in=0\n"
                              "node 2 b b fwd=100000 bwd=0 out=4096 needs=none in=1\n"
                              "node 3 c b fwd=100000 bwd=0 out=4096 needs=none in=2\n");
    tl_precision_desc desc = desc_of(&graph);
    (void)state;
    rows[0] = profile_of("a", BIT(TL_SCHEME_I8) | BIT(TL_SCHEME_I16), 0.001, 2);
    rows[1] = profile_of("b", BIT(TL_SCHEME_I8_CHANNEL) | BIT(TL_SCHEME_W8A16), 0.001, 2);
    desc.profiles = rows;
    desc.profile_count = 2;
    desc.priorities[TL_SCHEME_I16] = desc.priorities[TL_SCHEME_W8A16] = 2;
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_I16);
    desc.priorities[TL_SCHEME_I8] = 3;
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_I8);
    assert_int_equal(scheme_of(&desc, 3), TL_SCHEME_I8_CHANNEL);
    tl_free_graph(NULL, &graph);
}

static void ties_go_to_the_recommended_then_by_priority_then_to_less_loss(void **state) {
    tl_precision_profile row = profile_of("op", BIT(TL_SCHEME_F16) | BIT(TL_SCHEME_BF16) | BIT(TL_SCHEME_I16), 0, 2);
    tl_graph graph = graph_of("tlg 1\nnode 0 a op fwd=1000 bwd=0 out=4 needs=none in=-\n");
    tl_precision_desc desc = desc_of(&graph);
    (void)state;
    row.loss[TL_SCHEME_F16] = 0.004;
    row.loss[TL_SCHEME_BF16] = 0.006;
    row.loss[TL_SCHEME_I16] = 0.002;
    desc.profiles = &row;
    desc.profile_count = 1;
    desc.loss_limit = 1;
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_I16);
    desc.priorities[TL_SCHEME_F16] = 1;
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_F16);
    desc.priorities[TL_SCHEME_BF16] = 1;                   // as much: the one that loses less
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_F16);
    desc.priorities[TL_SCHEME_BF16] = 2;
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_BF16);
    row.recommended = TL_SCHEME_I16;
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_I16);
    row.recommended = TL_SCHEME_BF16;
    desc.loss_limit = 0.005;                               // no preference breaks a limit
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_F16);
    row.speedup[TL_SCHEME_I16] = 2.5;                      // nor a criterion
    assert_int_equal(scheme_of(&desc, 0), TL_SCHEME_I16);
    tl_free_graph(NULL, &graph);
}

static void costs_and_losses_given_replace_those_of_the_table(void **state) {
    uint64_t costs[4 * TL_SCHEME_COUNT];
    double losses[4 * TL_SCHEME_COUNT];
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    int i;
    (void)state;
    for (i = 0; i < 4 * TL_SCHEME_COUNT; i++) { costs[i] = TL_FORBIDDEN; losses[i] = (double)NAN; }
    desc.costs = costs;
    desc.losses = losses;
    costs[TL_SCHEME_COUNT + TL_SCHEME_W8A16] = 7;
    losses[TL_SCHEME_COUNT + TL_SCHEME_W8A16] = 0.0078125;
    plan = planned(&desc);
    assert_int_equal(plan.nodes[1].scheme, TL_SCHEME_W8A16);
    assert_int_equal(plan.nodes[1].source, TL_LOSS_FROM_MEASURED);
    assert_int_equal(plan.nodes[2].source, TL_LOSS_FROM_PROFILE);
    assert_true(plan.nodes[1].loss == 0.0078125);
    assert_int_equal(plan.cost, 7 + 450 + 200);
    tl_free_precision_plan(NULL, &plan);
    losses[TL_SCHEME_COUNT + TL_SCHEME_W8A16] = 0.011;
    assert_int_equal(scheme_of(&desc, 1), TL_SCHEME_I8_CHANNEL);
    tl_free_graph(NULL, &graph);
}

// A choice that stops at once is still one within the limits, and its bound is none that is wrong.
static void with_little_work_plans_are_still_within_the_limits(void **state) {
    char text[8000];
    size_t at = (size_t)snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=400 needs=none in=-\n");
    tl_graph graph;
    tl_precision_desc desc;
    tl_precision_plan all, little;
    int i;
    (void)state;
    for (i = 1; i < 60; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "node %d n%d %s fwd=%d bwd=0 out=%d needs=none in=%d,%d param=%d\n", i, i,
                               i % 3 ? "conv2d" : "add", 500 + i * 37 % 411, 400 + i * 4, i - 1, i * 5 / 7, i);
    graph = graph_of(text);
    desc = desc_of(&graph);
    all = planned(&desc);
    desc.work_limit = 1;
    little = planned(&desc);
    assert_true(little.loss <= 0.01 && all.loss <= 0.01);
    assert_true(little.bound_cost <= all.cost && all.cost <= little.cost);
    assert_true(little.proven == (little.bound_cost == little.cost));
    assert_true(little.proven || little.gap_ratio > 0);
    tl_free_precision_plan(NULL, &all);
    tl_free_precision_plan(NULL, &little);
    tl_free_graph(NULL, &graph);
}

// -- evaluate --

typedef struct judge {
    double factor, offset;    // measured = factor x predicted + offset
    int    calls, fails_at;   // 0 = never
    double limits[40];        // of each call
    double given;             // NaN: the rule above
} judge;

static tl_result judge_plan(const tl_precision_plan *plan, double *loss, void *user) {
    judge *j = (judge *)user;
    assert_true(plan->nodes && plan->node_count > 0 && plan->cost > 0);
    assert_int_equal(plan->nodes[0].runner_up, TL_SCHEME_COUNT);
    j->limits[j->calls % 40] = plan->loss_limit;
    if (++j->calls == j->fails_at) return TL_ERROR_DEVICE_LOST;
    *loss = j->given == j->given ? j->given : j->factor * plan->loss + j->offset;
    return TL_OK;
}

static judge judge_of(double factor, double offset) {
    judge j;
    memset(&j, 0, sizeof j);
    j.factor = factor;
    j.offset = offset;
    j.given = (double)NAN;
    return j;
}

// A chain of convolutions, so that there are many losses to choose from.
static tl_graph chain_of(int count) {
    char text[8000];
    size_t at = (size_t)snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n");
    int i;
    for (i = 1; i <= count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "node %d n%d conv2d fwd=%d bwd=0 out=4 needs=none in=%d\n", i, i, 5000 + i * 911 % 3000, i - 1);
    return graph_of(text);
}

static void what_is_measured_over_the_limit_is_chosen_again(void **state) {
    tl_graph graph = chain_of(20);
    tl_precision_desc desc = desc_of(&graph);
    judge j = judge_of(1, 0);
    tl_precision_plan plan;
    int i;
    (void)state;
    desc.evaluate = judge_plan;
    desc.user = &j;
    plan = planned(&desc);  // as predicted: one round
    assert_int_equal(j.calls, 1);
    assert_int_equal(plan.round_count, 1);
    assert_true(plan.measured_loss == plan.loss && plan.loss_limit == 0.01);
    assert_true(plan.nodes[1].runner_up != TL_SCHEME_COUNT);
    tl_free_precision_plan(NULL, &plan);
    j = judge_of(2.5, 0);
    plan = planned(&desc);
    assert_true(j.calls > 1 && plan.round_count == j.calls);
    assert_true(plan.measured_loss <= 0.01 && plan.loss > 0 && plan.loss <= plan.loss_limit && plan.loss_limit < 0.01);
    for (i = 1; i < j.calls; i++) assert_true(j.limits[i] <= j.limits[i - 1] * 15 / 16);
    tl_free_precision_plan(NULL, &plan);
    j = judge_of(1, 1e-5);  // a little over: by a sixteenth at least
    desc.loss_limit = 20 * 0.0006851;
    plan = planned(&desc);
    assert_true(plan.measured_loss <= desc.loss_limit);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void rounds_are_bounded_and_end_with_the_least_loss(void **state) {
    tl_graph graph = chain_of(20);
    tl_precision_desc desc = desc_of(&graph);
    judge j = judge_of(1e6, 0);  // only what loses nothing is good enough
    tl_precision_plan plan;
    (void)state;
    desc.evaluate = judge_plan;
    desc.user = &j;
    desc.round_limit = 3;
    plan = planned(&desc);
    assert_int_equal(j.calls, plan.round_count);
    assert_true(j.calls <= 4 && plan.loss == 0 && plan.measured_loss == 0);
    assert_int_equal(plan.scheme_counts[TL_SCHEME_F32], 20);
    tl_free_precision_plan(NULL, &plan);
    j = judge_of(1, 0.5);        // nothing is
    check_refused(&desc, TL_ERROR_INFEASIBLE, "tl_plan_precision: loss_limit: 0.01 cannot be held: evaluate "
                                              "measured 0.5 for the choice of the least loss");
    assert_true(j.calls <= 4);
    desc.loss_limit = 0;
    j = judge_of(1, 0.5);
    check_refused(&desc, TL_ERROR_INFEASIBLE, "tl_plan_precision: loss_limit: 0.0 cannot be held: evaluate "
                                              "measured 0.5 for the choice of the least loss");
    j = judge_of(1, (double)INFINITY);
    desc.loss_limit = 0.01;
    check_refused(&desc, TL_ERROR_INFEASIBLE, "tl_plan_precision: loss_limit: 0.01 cannot be held: evaluate "
                                              "measured infinite for the choice of the least loss");
    desc.criterion = TL_CRITERION_CUSTOM;  // both limits are hard in every round
    desc.least_speedup = 1.5;
    j = judge_of(3000, 0);
    plan = planned(&desc);
    assert_true(plan.speedup >= 1.5 && plan.measured_loss <= 0.01);
    tl_free_precision_plan(NULL, &plan);
    j = judge_of(1e5, 0);
    assert_int_equal(tl_plan_precision(NULL, &desc, &plan), TL_ERROR_INFEASIBLE);
    tl_free_graph(NULL, &graph);
}

static void without_a_limit_evaluate_runs_once(void **state) {
    tl_graph graph = chain_of(5);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    judge j = judge_of(1, 100);
    int i;
    (void)state;
    desc.evaluate = judge_plan;
    desc.user = &j;
    for (i = 0; i < 3; i++) {
        j = judge_of(1, 100);
        desc.criterion = i == 0 ? TL_CRITERION_BALANCED : i == 1 ? TL_CRITERION_ACCURACY : TL_CRITERION_PERFORMANCE;
        desc.loss_limit = i == 2 ? (double)INFINITY : 0;
        plan = planned(&desc);
        assert_int_equal(j.calls, 1);
        assert_true(plan.measured_loss > 99 && !(plan.loss_limit <= 1e300));
        tl_free_precision_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void errors_of_evaluate_pass_through(void **state) {
    tl_graph graph = chain_of(5);
    tl_precision_desc desc = desc_of(&graph);
    judge j = judge_of(2, 0.001);
    (void)state;
    desc.evaluate = judge_plan;
    desc.user = &j;
    desc.loss_limit = 0.0035;
    j.fails_at = 1;
    check_refused(&desc, TL_ERROR_KERNEL, "tl_plan_precision: evaluate: failed: device lost");
    j = judge_of(2, 0.001);
    j.fails_at = 2;
    check_refused(&desc, TL_ERROR_KERNEL, "tl_plan_precision: evaluate: failed: device lost");
    j = judge_of((double)NAN, 0);
    check_refused(&desc, TL_ERROR_KERNEL, "tl_plan_precision: evaluate: the loss is not a number");
    tl_free_graph(NULL, &graph);
}

// -- sensitivity --

typedef struct bench_of {
    int    calls, fails_at, stops_at, progress_calls;
    double factor, last;
} bench_of;

static tl_result evaluate_op(int32_t node, tl_scheme scheme, double *loss, void *user) {
    bench_of *b = (bench_of *)user;
    assert_true(node > 0 && scheme != TL_SCHEME_F32);
    if (++b->calls == b->fails_at) return TL_ERROR_KERNEL;
    *loss = b->last = b->factor * (node * 100 + (int)scheme);
    return TL_OK;
}

static int watch(int32_t done, int32_t all, double loss, void *user) {
    bench_of *b = (bench_of *)user;
    assert_true(loss == b->last && loss > 0);  // of what was just measured
    assert_int_equal(all, 21);
    assert_int_equal(done, ++b->progress_calls);
    return done == b->stops_at;
}

static void sensitivity_is_measured_op_by_op(void **state) {
    static const uint32_t some[] = { 0, 0, BIT(TL_SCHEME_F16), 0 };
    tl_graph graph = graph_of(THREE);
    tl_sensitivity_desc desc;
    double losses[4 * TL_SCHEME_COUNT];
    bench_of b = { 0, 0, 0, 0, 1, 0 };
    int i, k;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.evaluate = evaluate_op;
    desc.user = &b;
    desc.progress = watch;
    assert_int_equal(tl_measure_sensitivity(NULL, &desc, losses), TL_OK);
    assert_int_equal(b.calls, 21);
    assert_int_equal(b.progress_calls, 21);
    for (i = 0; i < 4; i++)
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            double loss = losses[i * TL_SCHEME_COUNT + k];
            if (!k) assert_true(loss == 0);
            else if (!i || k >= TL_SCHEME_FAKE) assert_true(loss != loss);
            else assert_true(loss == i * 100 + k);
        }
    desc.progress = NULL;
    desc.schemes = BIT(TL_SCHEME_F32) | BIT(TL_SCHEME_F16) | BIT(TL_SCHEME_FAKE);
    desc.node_schemes = some;
    b.calls = 0;
    b.factor = -1;  // better by chance
    assert_int_equal(tl_measure_sensitivity(NULL, &desc, losses), TL_OK);
    assert_int_equal(b.calls, 5);
    assert_true(losses[2 * TL_SCHEME_COUNT + TL_SCHEME_F16] == 0);
    assert_true(losses[3 * TL_SCHEME_COUNT + TL_SCHEME_FAKE] == 0);
    assert_true(losses[2 * TL_SCHEME_COUNT + TL_SCHEME_FAKE] != losses[2 * TL_SCHEME_COUNT + TL_SCHEME_FAKE]);
    tl_free_graph(NULL, &graph);
}

static void sensitivity_stops_fails_and_feeds_a_plan(void **state) {
    static const uint32_t bad[] = { 0, BIT(TL_SCHEME_COUNT), 0, 0 };
    tl_graph graph = graph_of(THREE);
    tl_precision_desc plan_desc = desc_of(&graph);
    tl_sensitivity_desc desc;
    double losses[4 * TL_SCHEME_COUNT];
    bench_of b = { 0, 0, 4, 0, 1e-6, 0 };
    tl_precision_plan plan;
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.evaluate = evaluate_op;
    desc.user = &b;
    desc.progress = watch;
    assert_int_equal(tl_measure_sensitivity(&env, &desc, losses), TL_OK);  // what was measured stays
    assert_int_equal(b.calls, 4);
    assert_true(losses[TL_SCHEME_COUNT + 4] == 1e-6 * 104 && losses[TL_SCHEME_COUNT + 5] != losses[TL_SCHEME_COUNT + 5]);
    plan_desc.losses = losses;
    plan = planned(&plan_desc);
    assert_int_equal(plan.nodes[1].scheme, TL_SCHEME_I8_CHANNEL);
    assert_int_equal(plan.nodes[1].source, TL_LOSS_FROM_PROFILE);
    tl_free_precision_plan(NULL, &plan);
    desc.progress = NULL;
    b.calls = 0;
    b.fails_at = 9;
    assert_int_equal(tl_measure_sensitivity(&env, &desc, losses), TL_ERROR_KERNEL);
    assert_string_equal(env.error.text, "tl_measure_sensitivity: evaluate: node 2 (s) in bf16: kernel failed");
    for (i = 0; i < 4 * TL_SCHEME_COUNT; i++) assert_true(losses[i] != losses[i]);
    b.fails_at = 0;
    b.factor = (double)NAN;
    assert_int_equal(tl_measure_sensitivity(&env, &desc, losses), TL_ERROR_KERNEL);
    assert_string_equal(env.error.text, "tl_measure_sensitivity: evaluate: node 1 (c) in f16: the loss is not finite");
    b.factor = (double)INFINITY;
    assert_int_equal(tl_measure_sensitivity(&env, &desc, losses), TL_ERROR_KERNEL);
    desc.node_schemes = bad;
    assert_int_equal(tl_measure_sensitivity(&env, &desc, losses), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_measure_sensitivity: node_schemes: unknown bit");
    desc.schemes = BIT(TL_SCHEME_COUNT);
    assert_int_equal(tl_measure_sensitivity(&env, &desc, losses), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_measure_sensitivity: schemes: unknown bit");
    desc.schemes = 0;
    desc.evaluate = NULL;
    assert_int_equal(tl_measure_sensitivity(&env, &desc, losses), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_measure_sensitivity: evaluate: must not be NULL");
    tl_free_graph(NULL, &graph);
}

// -- runners-up and confidence --

static void confidence_follows_source_and_margin(void **state) {
    tl_precision_profile row = profile_of("op", BIT(TL_SCHEME_I8), 0.001, 4);
    double losses[TL_SCHEME_COUNT];
    tl_graph graph = graph_of("tlg 1\nnode 0 a op fwd=1000 bwd=0 out=4 needs=none in=-\n");
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    int k;
    (void)state;
    desc.profiles = &row;
    desc.profile_count = 1;
    plan = planned(&desc);  // f32 costs 750 more, of 1000
    assert_int_equal(plan.nodes[0].runner_up, TL_SCHEME_F32);
    assert_int_equal(plan.nodes[0].runner_up_cost, 1000);
    assert_true(plan.nodes[0].runner_up_loss == 0 && plan.nodes[0].runner_up_proven);
    assert_true(plan.nodes[0].confidence == 0.5 * 1.75 / 2);
    tl_free_precision_plan(NULL, &plan);
    for (k = 0; k < TL_SCHEME_COUNT; k++) losses[k] = k == TL_SCHEME_I8 ? 0.001 : (double)NAN;
    desc.losses = losses;
    plan = planned(&desc);
    assert_true(plan.nodes[0].confidence == 1.75 / 2);
    tl_free_precision_plan(NULL, &plan);
    desc.loss_source = TL_LOSS_FROM_DATA;
    plan = planned(&desc);
    assert_true(plan.nodes[0].confidence == 0.75 * 1.75 / 2);
    tl_free_precision_plan(NULL, &plan);
    desc.criterion = TL_CRITERION_ACCURACY;  // i8 would lose all that it loses more than f32 does
    plan = planned(&desc);
    assert_int_equal(plan.nodes[0].scheme, TL_SCHEME_F32);
    assert_int_equal(plan.nodes[0].runner_up, TL_SCHEME_I8);
    assert_true(plan.nodes[0].runner_up_loss == 0.001 && plan.nodes[0].confidence == 0.5);
    tl_free_precision_plan(NULL, &plan);
    desc.criterion = TL_CRITERION_PERFORMANCE;
    desc.schemes = BIT(TL_SCHEME_I8);
    plan = planned(&desc);
    assert_int_equal(plan.nodes[0].runner_up, TL_SCHEME_COUNT);
    assert_true(plan.nodes[0].runner_up_proven && plan.nodes[0].confidence == 0.75);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Beyond 256 nodes all others stay as they are: a choice that there is, and not proven.
static void runners_up_of_large_graphs_are_local(void **state) {
    char *text = (char *)malloc(400 * 80);
    size_t at = (size_t)sprintf(text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=400 needs=none in=-\n");
    tl_graph graph;
    tl_precision_desc desc;
    tl_precision_plan plan;
    int i, other = 0;
    (void)state;
    for (i = 1; i < 300; i++)
        at += (size_t)sprintf(text + at, "node %d n%d %s fwd=%d bwd=0 out=%d needs=none in=%d\n", i, i,
                              i % 4 ? "conv2d" : "softmax", 900 + i * 37 % 411, 400 + i * 4, i - 1);
    graph = graph_of(text);
    free(text);
    desc = desc_of(&graph);
    plan = planned(&desc);
    for (i = 1; i < 300; i++) {
        assert_int_equal(plan.nodes[i].runner_up_proven, 0);
        if (plan.nodes[i].runner_up == TL_SCHEME_COUNT) continue;
        assert_true(plan.nodes[i].runner_up_loss <= desc.loss_limit);
        assert_true(plan.nodes[i].runner_up_cost >= plan.bound_cost);
        other++;
    }
    assert_true(other > 200);
    assert_true(plan.loss <= 0.01 && plan.cost < plan.base_cost);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- errors --

static void every_allocation_fails_in_turn(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    int criterion;
    long at;
    (void)state;
    for (criterion = 0; criterion <= TL_CRITERION_COUNT; criterion++)
        for (at = 0; ; at++) {
            failing_alloc f = { 0 };
            tl_env env = failing_env(&f, at);
            tl_precision_plan plan;
            tl_precision_front front;
            tl_result result;
            memset(&plan, 0, sizeof plan);
            memset(&front, 0, sizeof front);
            desc.criterion = (tl_criterion)(criterion % TL_CRITERION_COUNT);
            desc.least_speedup = 1.5;
            result = criterion == TL_CRITERION_COUNT ? tl_plan_precision_front(&env, &desc, 0, &front)
                                                     : tl_plan_precision(&env, &desc, &plan);
            assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
            if (result) assert_true(is_zero(&plan, sizeof plan) && is_zero(&front, sizeof front));
            if (result) assert_int_equal(env.error.code, TL_ERROR_NO_MEMORY);
            tl_free_precision_plan(&env, &plan);
            tl_free_precision_front(&env, &front);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
    tl_free_graph(NULL, &graph);
}

static void a_front_needs_two_points(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_front front;
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = -1; i < 2; i += 2) {
        assert_int_equal(tl_plan_precision_front(&env, &desc, i, &front), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_plan_precision_front: point_limit: must be 0, or 2 and more");
        assert_true(is_zero(&front, sizeof front));
    }
    desc.criterion = TL_CRITERION_COUNT;
    assert_int_equal(tl_plan_precision_front(&env, &desc, 0, &front), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_precision_front: criterion: unknown");
    desc.criterion = TL_CRITERION_PERFORMANCE;
    assert_int_equal(tl_plan_precision_front(&env, &desc, 2, &front), TL_OK);
    assert_int_equal(front.point_count, 2);
    assert_int_equal(front.complete, 0);
    assert_true(front.points[0].loss == 0 && front.points[1].loss > 0 && front.points[1].cost < front.points[0].cost);
    tl_free_precision_front(NULL, &front);
    tl_free_precision_plan(NULL, NULL);
    tl_free_precision_front(NULL, NULL);
    tl_free_graph(NULL, &graph);
}

// -- names and text --

static void names_parse_back(void **state) {
    tl_precision_objective objective;
    int i;
    (void)state;
    for (i = 0; i < TL_CRITERION_COUNT; i++) assert_string_not_equal(tl_name_criterion((tl_criterion)i), "?");
    for (i = 0; i < TL_OBJECTIVE_COUNT; i++) {
        assert_int_equal(tl_parse_objective(tl_name_objective((tl_precision_objective)i), &objective), 1);
        assert_int_equal(objective, i);
    }
    assert_int_equal(tl_parse_objective("byte", &objective), 0);
    assert_string_equal(tl_name_criterion(TL_CRITERION_COUNT), "?");
    assert_string_equal(tl_name_objective(TL_OBJECTIVE_COUNT), "?");
}


static size_t explain_conv(const tl_graph *graph, const tl_precision_plan *plan, char *buf, size_t size) {
    return tl_explain_precision_node(graph, plan, 1, buf, size);
}

#define HEAD "node                 op             scheme     loss       speed-up        runner-up  price            conversions\n"

static void a_plan_is_a_table(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan = planned(&desc);
    char *text = printed(tl_print_precision_plan, &graph, &plan);
    (void)state;
    assert_string_equal(text, HEAD
        "x                    input          f32        0          1               -          -                1 for 100\n"
        "c                    conv2d         i8-channel 0.0006851  4 assumed       i8         +0               1 for 100\n"
        "s                    softmax        i16        5.6e-7     2 assumed       f16        +0               -\n"
        "r                    relu           i16        3.5e-8     2 assumed       f16        +0               1 for 100\n"
        "criterion: performance\n"
        "loss: 0.0006857, limit 0.01\n"
        "time: 2250, in f32 6900: 3.067 times as good; proven for assumed speeds: no choice within the loss costs less\n"
        "conversions: 3, of that 300\n"
        "speeds: assumed of 3; conversions: assumed, 1 an element\n"
        "bytes of weights and tensors: 1800, in f32 2400\n"
        "nodes: 2 in i16, 1 in i8-channel\n");
    free(text);
    text = printed(explain_conv, &graph, &plan);
    assert_string_equal(text, "c (conv2d): i8-channel, loss 0.0006851 by the table, 4 times as fast as in f32, assumed; the best "
                              "choice with another scheme here has i8: cost +0, loss +0.0002622 for the whole graph; what it hands on is "
                              "converted 1 time, for 100.");
    free(text);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void sentences_tell_nodes_apart(void **state) {
    double losses[4 * TL_SCHEME_COUNT];
    char text[600];
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan;
    int i;
    (void)state;
    for (i = 0; i < 4 * TL_SCHEME_COUNT; i++) losses[i] = (double)NAN;
    losses[3 * TL_SCHEME_COUNT + TL_SCHEME_I8] = losses[3 * TL_SCHEME_COUNT + TL_SCHEME_I16] = 0.001;
    losses[3 * TL_SCHEME_COUNT + TL_SCHEME_F16] = losses[3 * TL_SCHEME_COUNT + TL_SCHEME_BF16] = 0.001;
    desc.losses = losses;
    desc.criterion = TL_CRITERION_ACCURACY;
    desc.least_speedup = 2.5;
    plan = planned(&desc);
    tl_explain_precision_node(&graph, &plan, 0, text, sizeof text);
    assert_string_equal(text, "x is a graph input: f32; what it hands on is converted 1 time, for 100.");
    tl_explain_precision_node(&graph, &plan, 3, text, sizeof text);
    assert_non_null(strstr(text, "r (relu): f32, no loss; the best choice with another scheme here has "));
    assert_non_null(strstr(text, ": loss +"));
    assert_non_null(strstr(text, ", cost "));
    assert_non_null(strstr(text, " for the whole graph."));
    tl_explain_precision_node(&graph, &plan, 4, text, sizeof text);
    assert_string_equal(text, "?");
    tl_explain_precision_node(&graph, &plan, -1, text, sizeof text);
    assert_string_equal(text, "?");
    tl_free_precision_plan(NULL, &plan);
    desc.criterion = TL_CRITERION_PERFORMANCE;
    desc.schemes = BIT(TL_SCHEME_I8);
    check_refused(&desc, TL_ERROR_INFEASIBLE,
                  "tl_plan_precision: node 2 (s): schemes: none is left of those that its op can have");
    desc.allow_sensitive = 1;
    desc.loss_limit = 1;
    desc.loss_source = TL_LOSS_FROM_DATA;
    plan = planned(&desc);
    tl_explain_precision_node(&graph, &plan, 3, text, sizeof text);
    assert_string_equal(text, "r (relu): i8, loss 0.001 from data, 4 times as fast as in f32, assumed; no other scheme is possible "
                              "within the limits; what it hands on is converted 1 time, for 100.");
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void tables_say_what_is_not_proven_or_was_measured(void **state) {
    tl_precision_node node;
    tl_precision_plan plan;
    char *text;
    tl_graph graph = graph_of("tlg 1\nnode 0 a op fwd=1 bwd=0 out=4 needs=none in=-\n");
    (void)state;
    memset(&node, 0, sizeof node);
    memset(&plan, 0, sizeof plan);
    plan.nodes = &node;
    plan.node_count = 1;
    node.loss = 0.123456;
    node.speedup = 1234567;
    node.runner_up = TL_SCHEME_I16;
    node.runner_up_cost = 90;
    plan.loss = 9.99996;
    plan.loss_limit = (double)INFINITY;
    plan.measured_loss = 12345.678;
    plan.round_count = 3;
    plan.cost = 100;
    plan.base_cost = 300;
    plan.bound_cost = 98;
    plan.gap_ratio = 2 / 98.0;
    plan.speedup = 3;
    text = printed(tl_print_precision_plan, &graph, &plan);
    assert_string_equal(text, HEAD
        "a                    op             f32        0.1235     1.235e6         i16        -10?             -\n"
        "criterion: performance\n"
        "loss: 10, measured 12350 in round 3\n"
        "time: 100, in f32 300: 3 times as good; no choice within the loss costs less than 98: at most 2.041 % above\n"
        "conversions: 0, of that 0\n"
        "speeds: of no node\n"
        "bytes of weights and tensors: 0, in f32 0\n"
        "nodes:\n");
    free(text);
    plan.criterion = TL_CRITERION_ACCURACY;
    plan.bound_loss = 9.8;
    plan.measured_loss = (double)NAN;
    node.runner_up_loss = 9;
    text = printed(tl_print_precision_plan, &graph, &plan);
    assert_non_null(strstr(text, " -1?  "));
    assert_non_null(strstr(text, "loss: 10; no choice as good loses less than 9.8: at most 2.041 % above\n"));
    free(text);
    text = printed(tl_print_precision_json, &graph, &plan);
    assert_non_null(strstr(text, "\"loss_limit\":null,\"measured_loss\":null,"));
    assert_non_null(strstr(text, "\"runner_up\":{\"scheme\":\"i16\",\"proven\":false,\"cost\":90,\"loss\":9.0}"));
    free(text);
    tl_free_graph(NULL, &graph);
}

// Numbers of JSON read back as the very same; it is one value, and nothing follows.
static void json_is_valid_and_exact(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan = planned(&desc);
    char *text = printed(tl_print_precision_json, &graph, &plan), *at;
    tl_env env;
    tli_json j;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    j = tli_json_open(&env, TLI_IN(PARSE_STRATEGY_JSON), text, strlen(text));
    tli_json_skip(&j);
    assert_int_equal(tli_json_end(&j), TL_OK);
    assert_int_equal(strncmp(text, "{\"criterion\":\"performance\",\"objective\":\"time\",\"loss\":", 53), 0);
    assert_true(strtod(strstr(text, "\"loss\":") + 7, NULL) == plan.loss);
    assert_true(strtod(strstr(text, "\"speedup\":") + 10, NULL) == plan.speedup);
    assert_true(strtod(strstr(text, "\"gap_ratio\":") + 12, NULL) == 0);
    assert_int_equal(strtoul(strstr(text, "\"cost\":") + 7, NULL, 10), plan.cost);
    assert_int_equal(strtoul(strstr(text, "\"bytes\":") + 8, NULL, 10), plan.bytes);
    assert_non_null(strstr(text, "\"proven\":true"));
    assert_non_null(strstr(text, "\"scheme_counts\":{\"f32\":0,\"f16\":0,\"bf16\":0,\"i16\":2,\"i8\":0,\"i8-channel\":1,"
                                 "\"w8a16\":0,\"dynamic\":0,\"fake\":0,\"w4a8\":0}"));
    for (i = 0, at = text; i < 4; i++, at++) {
        char begin[80];
        snprintf(begin, sizeof begin, "{\"id\":%d,\"name\":\"%s\",\"op\":\"%s\",\"scheme\":\"%s\"", i, tl_name_node(&graph, i),
                 tl_name_op(&graph, i), tl_name_scheme(plan.nodes[i].scheme));
        at = strstr(at, begin);
        assert_non_null(at);
        assert_true(strtod(strstr(at, "\"confidence\":") + 13, NULL) == plan.nodes[i].confidence);
    }
    free(text);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// The name of the next key, and behind it; NULL = there is none. No text in the JSON holds quotes or colons.
static const char *next_key(const char **at, char *name) {
    const char *end;
    for (; (*at = strchr(*at, '"')) != NULL; *at = end + 1) {
        end = strchr(*at + 1, '"');
        if (end[1] != ':') continue;
        snprintf(name, 32, "%.*s", (int)(end - *at - 1), *at + 1);
        *at = end + 2;
        return name;
    }
    return NULL;
}

static void expect_keys(const char **at, const char *names) {
    char text[1024], key[32], *name;
    snprintf(text, sizeof text, "%s", names);
    for (name = strtok(text, " "); name; name = strtok(NULL, " ")) {
        const char *found = next_key(at, key);
        assert_non_null(found);
        assert_string_equal(found, name);
    }
}

static void json_has_every_field_once_and_in_order(void **state) {
    tl_graph graph = graph_of(THREE);
    tl_precision_desc desc = desc_of(&graph);
    tl_precision_plan plan = planned(&desc);
    char *text = printed(tl_print_precision_json, &graph, &plan), key[32];
    const char *at = text;
    int i;
    (void)state;
    expect_keys(&at, "criterion objective loss loss_limit measured_loss round_count cost base_cost conversion_cost "
                     "conversion_count bound_cost bound_loss proven gap_ratio speedup bytes base_bytes scheme_counts "
                     "f32 f16 bf16 i16 i8 i8-channel w8a16 dynamic fake w4a8 "
                     "speeds conversions measured_on exact assumed device given measured nodes");
    for (i = 0; i < plan.node_count; i++) {
        expect_keys(&at, "id name op scheme format source loss speedup speed_source confidence runner_up");
        if (plan.nodes[i].runner_up != TL_SCHEME_COUNT) expect_keys(&at, "scheme proven cost loss");
        expect_keys(&at, "conversion_count conversion_cost");
    }
    assert_null(next_key(&at, key));
    assert_int_equal(strtoul(strstr(text, "\"base_cost\":") + 12, NULL, 10), plan.base_cost);
    assert_int_equal(strtoul(strstr(text, "\"conversion_cost\":") + 18, NULL, 10), plan.conversion_cost);
    assert_int_equal(strtoul(strstr(text, "\"bound_cost\":") + 13, NULL, 10), plan.bound_cost);
    assert_int_equal(strtoul(strstr(text, "\"base_bytes\":") + 13, NULL, 10), plan.base_bytes);
    free(text);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- big products --

// a b, by columns of 16 bits.
static void multiply_by_columns(const uint16_t a[16], const uint16_t b[4], uint16_t product[20]) {
    uint64_t column = 0;
    int i, k;
    for (i = 0; i < 20; i++) {
        for (k = 0; k < 4; k++) if (i >= k && i - k < 16) column += (uint32_t)a[i - k] * b[k];
        product[i] = (uint16_t)column;
        column >>= 16;
    }
    assert_true(column == 0);
}

static void products_beyond_32_bits_are_exact(void **state) {
    static const uint64_t corners[] = { 0, 1, 0xFFFFFFFFu, (uint64_t)1 << 32, ((uint64_t)1 << 32) + 1, (uint64_t)1 << 63, UINT64_MAX };
    tl_random random = { 11 };
    int at, i, k;
    (void)state;
    for (at = 0; at < 5000; at++) {
        uint16_t expected[16] = { 0 };
        tli_big value;
        tli_big_set(&value, 1);
        expected[0] = 1;
        for (k = 0; k < 3; k++) {  // a weight, a distance, an axis
            uint64_t factor = tl_next_random_below(&random, 2) ? corners[tl_next_random_below(&random, 7)]
                                                               : tl_next_random(&random) >> tl_next_random_below(&random, 64);
            uint16_t parts[4], product[20];
            for (i = 0; i < 4; i++) parts[i] = (uint16_t)(factor >> 16 * i);
            multiply_by_columns(expected, parts, product);
            memcpy(expected, product, sizeof expected);
            tli_big_multiply(&value, factor);
        }
        assert_in_range(value.count, 0, 6);
        assert_true(!value.count || value.limb[value.count - 1]);
        for (i = 0; i < 8; i++) {
            uint32_t limb = (uint32_t)expected[2 * i + 1] << 16 | expected[2 * i];
            assert_int_equal(i < value.count ? value.limb[i] : 0, limb);
        }
    }
}

// -- densely connected networks --

// Each layer reads all before it, as in DenseNet: too wide for lists. Without branch and bound nothing would be proven.
static void densely_connected_layers_are_proven(void **state) {
    enum { LAYERS = 20 };
    static const double shares[] = { 0.01, 0.1, 0.6 };
    char text[16384];
    tl_graph graph;
    tl_precision_desc desc;
    tl_precision_plan plan;
    double all;
    size_t at;
    int i, k, proven = 0;
    (void)state;
    at = (size_t)snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=200704 needs=none in=-\n");
    for (i = 0; i < LAYERS; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "node %d cat%d concat fwd=%d bwd=0 out=%d needs=none in=0",
                               2 * i + 1, i, 50176 * (i + 1), 200704 * (i + 1));
        for (k = 1; k <= i; k++) at += (size_t)snprintf(text + at, sizeof text - at, ",%d", 2 * k);
        at += (size_t)snprintf(text + at, sizeof text - at, "\nnode %d conv%d conv2d fwd=%d bwd=0 out=200704 needs=in in=%d\n",
                               2 * i + 2, i, 57802752 * (i + 1), 2 * i + 1);
    }
    graph = graph_of(text);
    desc = desc_of(&graph);
    desc.training = 1;
    desc.loss_limit = 1e6;
    plan = planned(&desc);
    all = plan.loss;
    tl_free_precision_plan(NULL, &plan);
    for (i = 0; i < 3; i++) {
        desc.loss_limit = all * shares[i];
        plan = planned(&desc);
        assert_true(plan.loss <= desc.loss_limit && plan.gap_ratio < 0.001);
        proven += plan.proven;
        tl_free_precision_plan(NULL, &plan);
    }
    assert_in_range(proven, 2, 3);
    tl_free_graph(NULL, &graph);
}

// -- public networks --

static void public_networks_are_planned_within_their_limits(void **state) {
    static const char *const names[] = { "encoder2", "mlp8", "vgg16" };
    static const double limits[] = { 0, 1e-4, 0.01, 1 };
    int i, k;
    (void)state;
    for (i = 0; i < 3; i++) {
        char path[64], *text;
        size_t length = 0;
        uint64_t before = UINT64_MAX;
        tl_graph graph;
        snprintf(path, sizeof path, "models/%s.tlg", names[i]);
        text = read_reference("public_networks_are_planned_within_their_limits", path, &length);
        if (!text) skip();
        assert_int_equal(tl_parse_graph(NULL, text, length, &graph), TL_OK);
        free(text);
        for (k = 0; k < 4; k++) {
            tl_precision_desc desc = desc_of(&graph);
            tl_precision_plan plan;
            desc.loss_limit = limits[k];
            plan = planned(&desc);
            assert_true(plan.loss <= limits[k] && plan.bound_cost <= plan.cost && plan.cost <= before);
            assert_true(k || plan.cost == plan.base_cost);
            assert_true(k < 3 || plan.speedup > 3.5);
            before = plan.cost;
            tl_free_precision_plan(NULL, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_profiles_hold_their_own_rules),
        cmocka_unit_test(default_profiles_are_in_order),
        cmocka_unit_test(losses_of_formats_follow_from_their_digits),
        cmocka_unit_test(every_op_of_a_layer_has_a_row_of_its_own),
        cmocka_unit_test(depthwise_is_a_convolution),
        cmocka_unit_test(names_match_without_case_and_in_parts),
        cmocka_unit_test(rows_are_keyed_by_shape_and_device),
        cmocka_unit_test(profile_rules_are_named),
        cmocka_unit_test(small_graphs_cost_what_brute_force_says),
        cmocka_unit_test(among_equal_choices_of_small_graphs_the_preferred_one_is_taken),
        cmocka_unit_test(fronts_and_knees_are_those_of_brute_force),
        cmocka_unit_test(nearest_limits_that_are_named_can_be_held),
        cmocka_unit_test(sentences_name_the_limit_and_the_nearest_one),
        cmocka_unit_test(a_speedup_that_was_reached_is_a_limit_that_holds),
        cmocka_unit_test(every_rule_of_a_desc_is_named),
        cmocka_unit_test(sums_that_do_not_fit_are_refused),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(schemes_of_all_and_of_a_node_are_limits),
        cmocka_unit_test(no_rounding_of_losses_exceeds_a_limit),
        cmocka_unit_test(sensitive_ops_keep_sixteen_bits_unless_allowed),
        cmocka_unit_test(unknown_ops_stay_in_f32_unless_allowed),
        cmocka_unit_test(results_are_converted_back_unless_any_will_do),
        cmocka_unit_test(training_counts_backward_and_offers_floats),
        cmocka_unit_test(f16_needs_evidence_of_range_in_training),
        cmocka_unit_test(speeds_are_those_of_f32_until_someone_says_otherwise),
        cmocka_unit_test(conversions_cost_what_the_device_says),
        cmocka_unit_test(rows_of_a_device_count_on_it_alone),
        cmocka_unit_test(objective_bytes_counts_weights_tensors_and_copies),
        cmocka_unit_test(weights_move_the_knee_between_the_ends),
        cmocka_unit_test(priorities_count_over_the_whole_graph),
        cmocka_unit_test(a_larger_priority_outweighs_many_smaller_ones),
        cmocka_unit_test(ties_go_to_the_recommended_then_by_priority_then_to_less_loss),
        cmocka_unit_test(costs_and_losses_given_replace_those_of_the_table),
        cmocka_unit_test(with_little_work_plans_are_still_within_the_limits),
        cmocka_unit_test(what_is_measured_over_the_limit_is_chosen_again),
        cmocka_unit_test(rounds_are_bounded_and_end_with_the_least_loss),
        cmocka_unit_test(without_a_limit_evaluate_runs_once),
        cmocka_unit_test(errors_of_evaluate_pass_through),
        cmocka_unit_test(sensitivity_is_measured_op_by_op),
        cmocka_unit_test(sensitivity_stops_fails_and_feeds_a_plan),
        cmocka_unit_test(confidence_follows_source_and_margin),
        cmocka_unit_test(runners_up_of_large_graphs_are_local),
        cmocka_unit_test(every_allocation_fails_in_turn),
        cmocka_unit_test(a_front_needs_two_points),
        cmocka_unit_test(names_parse_back),
        cmocka_unit_test(a_plan_is_a_table),
        cmocka_unit_test(sentences_tell_nodes_apart),
        cmocka_unit_test(tables_say_what_is_not_proven_or_was_measured),
        cmocka_unit_test(json_is_valid_and_exact),
        cmocka_unit_test(json_has_every_field_once_and_in_order),
        cmocka_unit_test(products_beyond_32_bits_are_exact),
        cmocka_unit_test(densely_connected_layers_are_proven),
        cmocka_unit_test(public_networks_are_planned_within_their_limits),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
