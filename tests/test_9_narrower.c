// [9] COMPILE: a call that leaves more open is never refused where a narrower one has a plan, and never dearer.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

enum { MOST_NODES = 64, WORK = 100000000 };

// A call that leaves all open.
typedef struct wide_case {
    tl_graph          graph;
    tl_strategy       strategy;
    tl_compile_desc   desc;
    tl_precision_desc precision;
    double            losses[MOST_NODES * TL_SCHEME_COUNT];
    uint64_t          costs[MOST_NODES * TL_SCHEME_COUNT];
} wide_case;

static uint64_t pick(tl_random *random, uint64_t count) { return tl_next_random(random) % count; }

// -- graphs --

static void add_node(tl_env *env, wide_case *c, const char *op, const char *needs, int32_t first, int32_t second,
                     uint64_t bytes, uint64_t fwd, uint64_t bwd, int takes_blocks) {
    tl_tensor inputs[2] = { { 0, 0 }, { 0, 0 } };
    tl_node_desc node;
    memset(&node, 0, sizeof node);
    inputs[0].node = first;
    inputs[1].node = second;
    node.op = op;
    node.needs = needs;
    node.inputs = inputs;
    node.input_count = first < 0 ? 0 : second < 0 || second == first ? 1 : 2;
    node.output_bytes = &bytes;
    node.output_count = 1;
    node.fwd_cost = fwd;
    node.bwd_cost = bwd;
    node.takes_blocks = takes_blocks;
    if (tl_add_node(env, &c->graph, &node, NULL)) fail_msg("%s", env->error.text);
}

// Wide nodes, chains of elementwise ones behind some, and skips.
static void make_layers(tl_env *env, tl_random *random, wide_case *c, int32_t nodes, uint64_t batch) {
    static const char *const needs[] = { "in", "out", "in,out", "none" };
    static const char *const chains[] = { "relu", "gelu", "scale" };
    uint64_t bytes = batch * 16 * (1 + pick(random, 8));
    add_node(env, c, "input", "none", -1, -1, bytes, 0, 0, 0);
    while (c->graph.node_count < nodes) {
        int32_t last = c->graph.node_count - 1;
        if (last && pick(random, 2)) {
            add_node(env, c, chains[pick(random, 3)], needs[pick(random, 4)], last, -1, bytes, 1 + pick(random, 90),
                     1 + pick(random, 90), 1);
        } else {
            int32_t skip = pick(random, 4) ? -1 : (int32_t)pick(random, (uint64_t)last + 1);
            bytes = batch * 16 * (1 + pick(random, 8));
            add_node(env, c, skip < 0 ? "linear" : "concat", skip < 0 ? "in" : "none", last, skip, bytes,
                     50 + pick(random, 800), 100 + pick(random, 1600), 0);
        }
    }
}

// An encoder whose tensors get smaller, and a decoder that reads them again.
static void make_unet(tl_env *env, tl_random *random, wide_case *c, int32_t depth, uint64_t batch) {
    uint64_t bytes = batch * 64 << depth;
    int32_t skips[8], d;
    add_node(env, c, "input", "none", -1, -1, bytes, 0, 0, 0);
    for (d = 0; d < depth; d++, bytes /= 2) {
        add_node(env, c, "conv2d", "in", c->graph.node_count - 1, -1, bytes * 4, 400 + pick(random, 900), 900 + pick(random, 900), 0);
        add_node(env, c, "relu", "out", c->graph.node_count - 1, -1, bytes * 4, 40, 60, 1);
        skips[d] = c->graph.node_count - 1;
        add_node(env, c, "maxpool", "in", c->graph.node_count - 1, -1, bytes, 60, 90, 0);
    }
    while (d-- > 0) {
        bytes *= 2;
        add_node(env, c, "convt2d", "in", c->graph.node_count - 1, -1, bytes * 4, 300 + pick(random, 500), 900, 0);
        add_node(env, c, "concat", "none", skips[d], c->graph.node_count - 1, bytes * 8, 200, 300, 0);
        add_node(env, c, "conv2d", "in", c->graph.node_count - 1, -1, bytes * 4, 500 + pick(random, 900), 1200, 0);
        add_node(env, c, "gelu", "in", c->graph.node_count - 1, -1, bytes * 4, 30, 50, 1);
    }
}

// A model of ../shared, with a batch where it says none; 0 = it is not there, or has too many nodes.
static int read_model(tl_env *env, wide_case *c, uint64_t number) {
    static const char *const names[] = { "mlp8", "encoder2", "unit10", "unit20", "resnet18", "vgg16", "vgg16_rl" };
    char path[200];
    snprintf(path, sizeof path, "../shared/models/%s.tlg", names[number % 7]);
    if (tl_read_graph(env, path, &c->graph)) return 0;
    if (c->graph.node_count > MOST_NODES) { tl_free_graph(env, &c->graph); return 0; }
    return 1;
}

// Losses and times of f32, f16 and bf16: an op has a speed of its own, a node a loss.
static double fill_tables(tl_random *random, wide_case *c, int mode) {
    static const int speeds[] = { 100, 150, 200, 120, 90, 400 };
    double most = 0;
    int32_t id, k;
    for (id = 0; id < c->graph.node_count; id++) {
        const tl_node *node = &c->graph.nodes[id];
        uint64_t cost = node->fwd_cost + node->bwd_cost, speed = (uint64_t)speeds[pick(random, 6)];
        double loss = mode == 0 ? (double)(1 + pick(random, 16)) : mode == 1 ? ldexp(1, -(int)pick(random, 12)) * 0.7 : 0.001 * (double)pick(random, 999);
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            c->losses[id * TL_SCHEME_COUNT + k] = NAN;
            c->costs[id * TL_SCHEME_COUNT + k] = TL_FORBIDDEN;
        }
        c->losses[id * TL_SCHEME_COUNT] = 0;
        c->costs[id * TL_SCHEME_COUNT] = cost;
        if (node->is_input) continue;
        c->losses[id * TL_SCHEME_COUNT + TL_SCHEME_BF16] = loss;
        c->costs[id * TL_SCHEME_COUNT + TL_SCHEME_BF16] = (cost * 100 + speed - 1) / speed;
        c->losses[id * TL_SCHEME_COUNT + TL_SCHEME_F16] = loss / 4;
        c->costs[id * TL_SCHEME_COUNT + TL_SCHEME_F16] = (cost * 110 + speed - 1) / speed;
        most += loss;
    }
    return most;
}

// A call that leaves all open, for a budget of a third to all of what keeping all takes. 0 = none.
static int make_case(tl_env *env, tl_random *random, wide_case *c, uint64_t number) {
    static const uint64_t batches[] = { 1, 2, 4, 6, 8 };
    uint64_t batch = batches[pick(random, 5)], budget;
    tl_plan plan;
    double most;
    memset(c, 0, sizeof *c);
    tl_init_graph(&c->graph);
    c->graph.batch = batch;
    if (number % 8 == 7) {
        tl_free_graph(env, &c->graph);
        if (!read_model(env, c, number / 8)) return 0;
        if (c->graph.batch <= 1) c->graph.batch = batch;
    } else if (number % 4 == 1) {
        make_unet(env, random, c, 1 + (int32_t)pick(random, 4), batch);
    } else {
        make_layers(env, random, c, 6 + (int32_t)pick(random, number % 4 ? 24 : 6), batch);
    }
    most = fill_tables(random, c, (int)pick(random, 3));
    c->strategy.mode = TL_MODE_LAZY;
    c->strategy.memory = pick(random, 6) ? TL_MEMORY_POOLED : TL_MEMORY_STANDARD;
    c->strategy.gradient = tl_gradient_checkpointed(0);
    c->strategy.precision = TL_PRECISION_MIXED;
    c->strategy.enable_fusion = (int32_t)pick(random, 2);
    c->desc.graph = &c->graph;
    c->desc.strategy = &c->strategy;
    c->desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    c->desc.precision = &c->precision;
    c->desc.may_split = pick(random, 4) != 0;
    c->desc.codec = pick(random, 4) ? TL_CODEC_NONE : TL_CODEC_BF16;
    c->desc.split_cost = pick(random, 40);
    c->desc.alignment_bytes = pick(random, 2) ? 16 : 0;
    c->desc.work_limit = WORK;
    c->precision.losses = c->losses;
    c->precision.costs = c->costs;
    c->precision.schemes = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_BF16 | 1u << TL_SCHEME_F16;
    c->precision.allow_sensitive = c->precision.allow_unknown = c->precision.allow_f16 = 1;
    c->precision.loss_limit = pick(random, 2) ? (double)INFINITY : most * (double)(10 + pick(random, 80)) / 100;
    assert_int_equal(tl_plan_keep_all(env, &c->graph, 0, &plan), TL_OK);
    budget = plan.peak_bytes;
    tl_free_plan(env, &plan);
    c->desc.budget_bytes = budget / 100 * (pick(random, 2) ? 6 + pick(random, 25) : 20 + pick(random, 60)) + 1;
    return 1;
}

// -- narrower calls --

#define INFEASIBLE UINT64_MAX

static uint64_t compile(tl_env *env, const tl_compile_desc *desc, double *loss) {
    tl_compiled_plan compiled;
    tl_result result = tl_compile(env, desc, &compiled);
    uint64_t cost = result ? INFEASIBLE : compiled.choice.cost;
    if (result && result != TL_ERROR_INFEASIBLE && !strstr(env->error.text, "cannot be split")) fail_msg("%s", env->error.text);
    if (loss) *loss = compiled.choice.loss;
    tl_free_compiled_plan(env, &compiled);
    return cost;
}

// One choice after the other: formats by an objective, then what runs again; with all of the work for both.
static uint64_t choose_in_turn(tl_env *env, wide_case *c, const uint64_t *costs, tl_precision_objective objective,
                               const tl_plan *after, tl_plan *f32) {
    tl_precision_desc ask = c->precision;
    tl_precision_plan formats;
    tl_precision_graph applied;
    tl_apply_desc apply;
    tl_remat_desc remat;
    tl_plan plan;
    tl_result result;
    static uint64_t again[MOST_NODES * TL_SCHEME_COUNT];
    uint64_t cost = INFEASIBLE;
    int32_t id, k;
    ask.graph = &c->graph;
    ask.training = 1;
    ask.objective = objective;
    ask.work_limit = WORK;
    if (!costs) ask.schemes = 1u << TL_SCHEME_F32;
    memcpy(again, c->costs, sizeof again);
    for (k = 0; after && k < after->step_count; k++) {
        tl_step step = tl_find_step(after, k);
        const tl_node *node = &c->graph.nodes[step.node];
        uint64_t once = node->fwd_cost + node->bwd_cost;
        if (step.kind != TL_STEP_FORWARD && step.kind != TL_STEP_FORWARD_INPLACE) continue;
        for (id = 0; id < TL_SCHEME_COUNT && once; id++) {
            size_t at = (size_t)step.node * TL_SCHEME_COUNT + (size_t)id;
            if (c->costs[at] != TL_FORBIDDEN) again[at] += c->costs[at] * node->fwd_cost / once;
        }
    }
    ask.costs = again;
    if (objective == TL_OBJECTIVE_BYTES) ask.costs = NULL;
    result = tl_plan_precision(env, &ask, &formats);
    if (result) fail_msg("%s", env->error.text);
    for (id = 0; id < c->graph.node_count; id++) {
        uint64_t once = c->graph.nodes[id].fwd_cost + c->graph.nodes[id].bwd_cost;
        uint64_t time = c->costs[id * TL_SCHEME_COUNT + (int)formats.nodes[id].scheme];
        ((tl_precision_node *)formats.nodes)[id].speedup = once && time ? (double)once / (double)time : 1;
    }
    memset(&apply, 0, sizeof apply);
    apply.graph = &c->graph;
    apply.plan = &formats;
    apply.training = 1;
    assert_int_equal(tl_apply_precision(env, &apply, &applied), TL_OK);
    memset(&remat, 0, sizeof remat);
    remat.graph = &applied.graph;
    remat.budget_bytes = c->desc.budget_bytes;
    remat.alignment_bytes = c->desc.alignment_bytes;
    remat.work_limit = WORK / 8;
    remat.live = c->strategy.memory == TL_MEMORY_STANDARD;
    if (!tl_plan_remat(env, &remat, &plan, NULL)) {
        cost = plan.cost;
        if (f32) *f32 = plan; else tl_free_plan(env, &plan);
    }
    tl_free_precision_graph(env, &applied);
    tl_free_precision_plan(env, &formats);
    return cost;
}

typedef struct tally { long calls, refused, dearer; double worst; } tally;

static void compare(tally *t, uint64_t number, const char *what, uint64_t wide, uint64_t narrow) {
    t->calls++;
    if (narrow == INFEASIBLE || wide <= narrow) return;
    if (wide == INFEASIBLE) {
        t->refused++;
        print_message("case %llu: refused, but %s has a plan of cost %llu\n", (unsigned long long)number, what, (unsigned long long)narrow);
    } else {
        double more = (double)(wide - narrow) / (double)narrow;
        t->dearer++;
        if (more > t->worst) t->worst = more;
        print_message("case %llu: %llu, with %s %llu: %.4f %% dearer\n", (unsigned long long)number, (unsigned long long)wide, what, (unsigned long long)narrow, 100 * more);
    }
}

static void compare_narrower(tl_env *env, tl_random *random, wide_case *c, uint64_t number, tally *t) {
    double limit = c->precision.loss_limit, loss;
    uint64_t wide = compile(env, &c->desc, &loss), parts;
    uint32_t schemes = c->precision.schemes;
    int32_t fusion = c->strategy.enable_fusion, may_split = c->desc.may_split;
    tl_codec codec = c->desc.codec;
    tl_plan f32;
    if (wide != INFEASIBLE) {
        c->precision.loss_limit = loss;
        compare(t, number, "its own loss given back as the limit", wide, compile(env, &c->desc, NULL));
        if (compile(env, &c->desc, NULL) > wide) { t->refused++; print_message("case %llu: its own loss is refused, or dearer\n", (unsigned long long)number); }
        c->precision.loss_limit = loss * (double)pick(random, 100) / 100;
        compare(t, number, "a smaller loss limit", wide, compile(env, &c->desc, NULL));
    }
    c->precision.loss_limit = 0.00001;
    compare(t, number, "almost no loss", wide, compile(env, &c->desc, NULL));
    c->precision.loss_limit = limit;
    c->precision.schemes = 1u << TL_SCHEME_F32;
    compare(t, number, "f32 alone", wide, compile(env, &c->desc, NULL));
    c->precision.schemes = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_BF16;
    compare(t, number, "f32 and bf16", wide, compile(env, &c->desc, NULL));
    c->precision.schemes = schemes;
    c->strategy.enable_fusion = 0;
    if (fusion) compare(t, number, "nothing fused", wide, compile(env, &c->desc, NULL));
    c->strategy.enable_fusion = fusion;
    c->desc.codec = TL_CODEC_NONE;
    if (codec) compare(t, number, "no codec", wide, compile(env, &c->desc, NULL));
    c->desc.codec = codec;
    for (parts = 1; may_split && parts <= c->graph.batch; parts++) {
        char what[40];
        if (c->graph.batch % parts) continue;
        c->strategy.gradient.accumulation_steps = parts;
        snprintf(what, sizeof what, "%d parts", (int)parts);
        compare(t, number, what, wide, compile(env, &c->desc, NULL));
        c->strategy.gradient.accumulation_steps = 0;
    }
    memset(&f32, 0, sizeof f32);
    compare(t, number, "f32, then the plan", wide, choose_in_turn(env, c, NULL, TL_OBJECTIVE_TIME, NULL, &f32));
    compare(t, number, "formats by time, then the plan", wide, choose_in_turn(env, c, c->costs, TL_OBJECTIVE_TIME, NULL, NULL));
    compare(t, number, "formats by bytes, then the plan", wide, choose_in_turn(env, c, c->costs, TL_OBJECTIVE_BYTES, NULL, NULL));
    if (f32.step_count) compare(t, number, "the plan, then formats", wide, choose_in_turn(env, c, c->costs, TL_OBJECTIVE_TIME, &f32, NULL));
    tl_free_plan(env, &f32);
}

static void no_wider_call_is_refused_or_dearer(void **state) {
    static wide_case c;
    tl_env env = silent_env();
    uint64_t count = (uint64_t)(getenv("COUNT") ? atoi(getenv("COUNT")) : scaled(24)), number = getenv("FROM") ? (uint64_t)atoi(getenv("FROM")) : 0;
    count += number;
    tally t = { 0, 0, 0, 0 };
    (void)state;
    for (; number < count; number++) {
        tl_random random = { 77 + 1000 * number };
        if (!make_case(&env, &random, &c, number)) continue;
        compare_narrower(&env, &random, &c, number, &t);
        tl_free_graph(&env, &c.graph);
    }
    print_message("%ld calls: %ld refused, %ld dearer, by %.4f %% at most\n", t.calls, t.refused, t.dearer, 100 * t.worst);
    assert_true(t.refused == 0 && t.dearer == 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_wider_call_is_refused_or_dearer),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
