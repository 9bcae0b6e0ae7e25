// 08_compile.c -- which strategy for these bytes, and how far from the best it can be
//
// You learn: tl_recommend compiles the strategies that there are and says why the others lost; the compiled plan is
// explained (tl_explain_compiled), drawn as a curve of bytes against cost (tl_plan_compile_front), and run: kernels see
// their own nodes, whatever was fused or split. It prints all of that for a small network, trains a step by the plan and a
// step that keeps everything, and compares the gradients. Read next: 14_strategy.c, the words of a strategy.
//
// check: least-bytes 5
//
//     mkdir -p build && cc -O2 -o build/08_compile examples/08_compile.c -lm && build/08_compile least-time 50
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "nn.h"

enum { BLOCKS = 6, BATCH = 32, WIDTH = 96, SAMPLE = WIDTH * 4 };

static tl_env env;  // malloc, silent
static tl_graph net;
static float weights[BLOCKS][WIDTH * WIDTH], gradients[2][BLOCKS][WIDTH * WIDTH], inputs[BATCH * WIDTH];
static int which;   // gradients of which run
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) { (void)signal_number; interrupted = 1; }

static int fail(const char *doing) {
    fprintf(stderr, "08_compile: %s: %s\n", doing, env.error.text);
    return 1;
}

static int on_progress(const tl_compile_progress *now, void *user) {
    (void)user;
    if (now->tried_count % 8 == 0)
        fprintf(stderr, "\r%d combinations, cost %llu ", (int)now->tried_count, (unsigned long long)now->cost);
    return interrupted;
}

static tl_result to_stdout(void *user, const char *text, size_t length) {
    (void)user;
    return fwrite(text, 1, length, stdout) == length ? TL_OK : TL_ERROR_IO;
}

// -- the network: a product, gelu, scale and relu in each block --

static int add(const char *op, int32_t from, const char *needs, uint64_t cost, int takes_blocks, int keep) {
    uint64_t bytes = (uint64_t)BATCH * SAMPLE;
    tl_tensor input = { 0, 0 };
    tl_node_desc node = { 0 };
    input.node = from;
    node.op = op;
    node.inputs = &input;
    node.input_count = from < 0 ? 0 : 1;
    node.output_bytes = &bytes;
    node.output_count = 1;
    node.needs = needs;
    node.fwd_cost = cost;
    node.bwd_cost = 2 * cost;
    node.takes_blocks = takes_blocks;
    node.keep = keep;
    return tl_add_node(&env, &net, &node, NULL);
}

static int build(void) {
    static const struct { const char *op, *needs; uint64_t cost; } parts[] = {
        { "linear", "in", 40 }, { "gelu", "in", 6 }, { "scale", "none", 1 }, { "relu", "out", 1 },
    };
    int32_t b, k;
    net.batch = BATCH;
    if (add("input", -1, NULL, 0, 0, 0)) return 1;
    for (b = 0; b < BLOCKS; b++)
        for (k = 0; k < 4; k++)
            if (add(parts[k].op, net.node_count - 1, parts[k].needs, parts[k].cost, k > 0, b == BLOCKS - 1 && k == 3))
                return 1;
    return 0;
}

// -- its kernels --

static tl_result forward(const tl_kernel_call *call, void *user) {
    const float *in = (const float *)call->inputs[0].host;
    const char *op = tl_name_op(call->graph, call->node);
    float *out = (float *)call->outputs[0].host;
    size_t i, n = (size_t)call->count;
    (void)user;
    if (!strcmp(op, "linear")) nn_linear_forward(out, in, weights[call->node / 4], NULL, n / WIDTH, WIDTH, WIDTH);
    else if (!strcmp(op, "gelu")) nn_gelu_forward(out, in, n);
    else for (i = 0; i < n; i++) out[i] = !strcmp(op, "scale") ? 1.5f * in[i] : in[i] > 0 ? in[i] : 0;
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    const float *in = (const float *)call->inputs[0].host, *out = (const float *)call->outputs[0].host;
    const float *dout = (const float *)call->output_grads[0].host;
    const char *op = tl_name_op(call->graph, call->node);
    float *din = (float *)call->input_grads[0].host;
    size_t i, n = (size_t)call->count;
    (void)user;
    if (!strcmp(op, "linear"))
        nn_linear_backward(din, gradients[which][call->node / 4], NULL, dout, in, weights[call->node / 4], n / WIDTH, WIDTH,
                           WIDTH);
    else if (!strcmp(op, "gelu")) nn_gelu_backward(din, dout, in, n);
    else for (i = 0; i < n; i++) din[i] += !strcmp(op, "scale") ? 1.5f * dout[i] : out[i] > 0 ? dout[i] : 0;
    return TL_OK;
}

// Where the batch is split, each micro-batch is the next part of it.
static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    uint64_t bytes = tl_find_run_graph(run)->outputs[0].bytes;
    tl_tensor input = { 0, 0 };
    (void)user;
    return tl_write_tensor(run, input, (const char *)inputs + (uint64_t)micro_batch * bytes, bytes);
}

// -- one training step: by a compiled plan, or keeping everything --

static int train(const tl_compiled_plan *compiled, const tl_strategy *strategy, tl_run_report *report) {
    static const tl_kernel kernels[] = { { "linear", forward, backward, NULL }, { "gelu", forward, backward, NULL },
                                         { "scale", forward, backward, NULL }, { "relu", forward, backward, NULL } };
    tl_cpu_backend_desc cpu = { 0 };
    tl_run_desc desc = { 0 };
    tl_backend backend;
    tl_run *run = NULL;
    int failed;
    cpu.alignment_bytes = 64;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return fail("memory");
    desc.graph = &net;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 4;
    desc.compiled = compiled;
    desc.strategy = strategy;
    desc.load = load;
    failed = tl_init_run(&env, &desc, &run) || tl_run_plan(run);
    if (failed) (void)fail("a training step");
    else {
        tl_measure_run(run, report);
        if (compiled && tl_find_compiled_plan(run) != compiled) failed = 1;
    }
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
    return failed;
}

// -- what is printed --

static int draw_curve(const tl_compile_desc *desc) {
    tl_compile_front front;
    int32_t k;
    if (tl_plan_compile_front(&env, desc, 12, &front)) return fail("the curve");
    printf("\nbytes against cost, * the knee\n");
    for (k = 0; k < front.point_count; k++) {
        const tl_compile_point *at = &front.points[k];
        uint64_t most = front.points[0].choice.cost;
        int i, bar = (int)(at->choice.cost * 50 / (most ? most : 1));
        printf("%8llu %6llu %c ", (unsigned long long)at->choice.arena_bytes, (unsigned long long)at->choice.cost,
               k == front.knee ? '*' : ' ');
        for (i = 0; i < bar; i++) putchar('#');
        printf("\n");
    }
    tl_free_compile_front(&env, &front);
    return 0;
}

static int run_recommended(tl_recommend_desc *desc, tl_recommendation *found) {
    tl_strategy keep_all = tl_with_gradient(tl_with_memory(tl_with_mode(tl_strategy_new(), TL_MODE_LAZY), TL_MEMORY_POOLED),
                                            tl_gradient_full());
    tl_sink sink = { to_stdout, NULL };
    tl_run_report planned, whole;
    char text[6000];
    int32_t k, others = 0;
    if (tl_recommend(&env, desc, found)) return fail("tl_recommend");
    fprintf(stderr, "\r%40s\r", "");
    for (k = 0; k < found->row_count; k++) others += found->rows[k].outcome == TL_OUTCOME_OVER;
    tl_print_recommendation(found, text, sizeof text);
    printf("%s%d %s\n\n", text, (int)others, tl_name_outcome(TL_OUTCOME_OVER));
    desc->compile.strategy = &found->strategy;
    if (tl_explain_compiled(&env, &desc->compile, &found->compiled, sink)) return fail("tl_explain_compiled");
    if (draw_curve(&desc->compile) || train(&found->compiled, NULL, &planned)) return 1;
    which = 1;
    if (train(NULL, &keep_all, &whole)) return 1;
    printf("\na step takes %llu bytes and %d forwards, keeping everything %llu and %d; gradients %s\n",
           (unsigned long long)planned.taken_bytes, (int)planned.forward_count, (unsigned long long)whole.taken_bytes,
           (int)whole.forward_count,
           memcmp(gradients[0], gradients[1], sizeof gradients[0]) ? "differ in the order of their sums: the batch is split"
                                                                   : "are the same to the bit");
    return planned.taken_bytes > whole.taken_bytes;
}

int main(int count, char **arguments) {
    tl_recommend_desc desc = { 0 };
    tl_recommendation found;
    tl_plan plan;
    tl_wish wish = TL_WISH_LEAST_TIME;
    long percent = 60;
    int code, b;
    if (count > 1 && (!strcmp(arguments[1], "--help") || !tl_parse_wish(arguments[1], &wish))) {
        printf("usage: 08_compile [WISH [PERCENT]]\n\n"
               "    least-time P    the least time within P %% of the bytes of keeping everything (60)\n"
               "    least-bytes P   the fewest bytes for at most P %% more time\n"
               "    knee            where fewer bytes begin to cost much\n");
        return !!strcmp(arguments[1], "--help");
    }
    if (count > 2) percent = strtol(arguments[2], NULL, 10);
    if (percent < 1 || percent > 1000) {
        fprintf(stderr, "08_compile: %s: must be a number of percent from 1 to 1000\n", arguments[2]);
        return 1;
    }
    signal(SIGINT, on_interrupt);
    for (b = 0; b < BLOCKS; b++) nn_fill_normal(weights[b], WIDTH * WIDTH, 0.1f, (uint64_t)b);
    nn_fill_normal(inputs, BATCH * WIDTH, 1.0f, 99);
    if (build() || tl_plan_keep_all(&env, &net, 0, &plan)) return fail("the network");
    desc.compile.graph = &net;
    desc.compile.alignment_bytes = 64;
    desc.compile.fusion_block_bytes = 4096;
    desc.compile.may_split = wish == TL_WISH_LEAST_BYTES;   // where the sums of gradients may take another order
    desc.compile.split_cost = 20;
    desc.compile.progress = on_progress;
    desc.wish = wish;
    if (wish == TL_WISH_LEAST_TIME) desc.compile.budget_bytes = plan.peak_bytes * (uint64_t)percent / 100;
    desc.cost_limit = plan.cost + plan.cost * (uint64_t)percent / 100;
    printf("wish: %s\n", tl_name_wish(wish));
    code = run_recommended(&desc, &found);
    tl_free_recommendation(&env, &found);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &net);
    return code;
}
