// What fusion saves, and what it costs: a chain of 20 elementwise nodes of 1 Mi floats, and the network of
// examples/01_train_text.c, one by one and fused, with blocks of several sizes. Times are processor time, medians;
// results are the same to the bit, or the program fails.
#define main train_main
#include "../../examples/01_train_text.c"
#undef main
#include "text_run.h"

enum { TURNS = 5, LENGTH = 20, COUNT = 1 << 20, STEPS = 9 };

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_fusion: %s\n", env->error.text); exit(1); }
}

static double find_median(const double *values, int count) {
    static uint64_t sorted[64];
    int i;
    for (i = 0; i < count; i++) sorted[i] = (uint64_t)values[i];
    return (double)training_find_quantile(sorted, (size_t)count, 1, 2) * 1e-6;
}

// -- a chain --

static double weight_gradient;

static tl_result chain_forward(const tl_kernel_call *call, void *user) {
    const float *in = (const float *)call->inputs[0].host;
    float *out = (float *)call->outputs[0].host;
    size_t n = (size_t)call->count, i;
    switch (*(const char *)user) {
    case 'g': nn_gelu_forward(out, in, n); break;
    case 'd': nn_dropout_forward(out, in, n, 0.1f, call->seed, call->first); break;
    case 'r': for (i = 0; i < n; i++) out[i] = in[i] > 0 ? in[i] : 0.25f * in[i]; break;
    default:  for (i = 0; i < n; i++) out[i] = 1.25f * in[i]; break;
    }
    return TL_OK;
}

static tl_result chain_backward(const tl_kernel_call *call, void *user) {
    const float *in = (const float *)call->inputs[0].host, *dout = (const float *)call->output_grads[0].host;
    float *din = (float *)call->input_grads[0].host;
    size_t n = (size_t)call->count, i;
    switch (*(const char *)user) {
    case 'g': nn_gelu_backward(din, dout, in, n); break;
    case 'd': nn_dropout_backward(din, dout, n, 0.1f, call->seed, call->first); break;
    case 'r': for (i = 0; i < n; i++) din[i] += in[i] > 0 ? dout[i] : 0.25f * dout[i]; break;
    case 'w': for (i = 0; i < n; i++) weight_gradient += in[i] * dout[i]; break;
    default:  for (i = 0; i < n; i++) din[i] += 1.25f * dout[i]; break;
    }
    return TL_OK;
}

// kinds: the ops of the chain, taken in turn.
static tl_graph chain_graph(const char *kinds) {
    static const struct { char kind; const char *op, *needs; } ops[] = {
        { 'g', "gelu", "in" }, { 'd', "dropout", "none" }, { 'r', "relu", "in" }, { 's', "scale", "none" }
    };
    tl_env env = { 0 };
    tl_graph graph;
    char text[4096];
    int i, k, length = snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\n"
                                "node 1 w weigh fwd=1 bwd=1 out=%d needs=in in=0\n", 4 * COUNT, 4 * COUNT);
    for (i = 0; i < LENGTH; i++) {
        for (k = 0; ops[k].kind != kinds[(size_t)i % strlen(kinds)]; k++) {}
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "node %d n%d %s fwd=1 bwd=1 out=%d needs=%s in=%d takes_blocks%s\n", i + 2, i + 2, ops[k].op,
                           4 * COUNT, ops[k].needs, i + 1, i + 1 == LENGTH ? " keep" : "");
    }
    must(&env, tl_parse_graph(&env, text, (size_t)length, &graph));
    return graph;
}

typedef struct outcome {
    tl_run_report report;
    double   ms;
    uint64_t sum;                // of the bits of the result and of the weight's gradient
} outcome;

// block_bytes: 0 = the nodes one by one, UINT64_MAX = what the strategy chooses.
static outcome run_chain(const tl_graph *graph, int inference, uint64_t block_bytes) {
    tl_kernel kernels[5];
    tl_cpu_backend_desc cpu = { 0 };
    tl_strategy strategy = tl_with_profiling(tl_with_parallelism(tl_strategy_training(), tl_parallelism_none()), 0);
    tl_fusion_desc fuse = { 0 };
    tl_fusion_plan fusion = { 0 };
    tl_run_desc desc = { 0 };
    tl_backend backend;
    tl_env env = { 0 };
    tl_run *run;
    tl_tensor tensor = { 0, 0 };
    double ns[TURNS];
    float *data = (float *)malloc(4 * (size_t)COUNT);
    outcome o;
    static const char *const names[5] = { "weigh", "gelu", "dropout", "relu", "scale" };
    int i;
    if (!data) exit(1);
    if (inference) strategy.gradient = tl_gradient_none();
    strategy.enable_fusion = block_bytes != 0;
    for (i = 0; i < 5; i++) {
        kernels[i].op = names[i];
        kernels[i].forward = chain_forward;
        kernels[i].backward = chain_backward;
        kernels[i].user = (void *)(uintptr_t)names[i];
    }
    must(&env, tl_init_cpu_backend(&env, &cpu, &backend));
    desc.graph = graph;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 5;
    desc.strategy = &strategy;
    if (block_bytes && block_bytes != UINT64_MAX) {
        fuse.graph = graph;
        fuse.block_bytes = block_bytes;
        fuse.inference = inference;
        must(&env, tl_plan_fusion(&env, &fuse, &fusion));
        desc.fusion = &fusion;
    }
    must(&env, tl_init_run(&env, &desc, &run));
    nn_fill_normal(data, COUNT, 1.0f, 1);
    must(&env, tl_write_tensor(run, tensor, data, 4 * (uint64_t)COUNT));
    for (i = -1; i < TURNS; i++) {
        uint64_t start = now_ns(NULL);
        weight_gradient = 0;
        must(&env, tl_run_plan(run));
        ns[i < 0 ? 0 : i] = (double)(now_ns(NULL) - start);
    }
    tensor.node = graph->node_count - 1;
    must(&env, tl_read_tensor(run, tensor, data, 4 * (uint64_t)COUNT));
    memcpy(&o.sum, &weight_gradient, sizeof o.sum);
    for (i = 0; i < COUNT; i++) o.sum = tl_mix_u64(o.sum, bits_of(data[i]));
    o.ms = find_median(ns, TURNS);
    tl_measure_run(run, &o.report);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
    tl_free_fusion_plan(&env, &fusion);
    free(data);
    return o;
}

static void bench_chain(const char *what, const char *kinds, int inference) {
    static const uint64_t blocks[] = { 0, UINT64_MAX, 1024, 4096, 8192, 16384, 32768, 65536, 262144, 1048576 };
    tl_graph graph = chain_graph(kinds);
    outcome first;
    int i;
    memset(&first, 0, sizeof first);
    printf("%-32s %10s %9s %8s %12s %8s\n", what, "block", "ms", "to alone", "taken", "calls");
    for (i = 0; i < (int)(sizeof blocks / sizeof *blocks); i++) {
        outcome o = run_chain(&graph, inference, blocks[i]);
        char name[24];
        if (!i) first = o;
        snprintf(name, sizeof name, blocks[i] == UINT64_MAX ? "strategy" : blocks[i] ? "%llu" : "alone", (unsigned long long)blocks[i]);
        printf("%-32s %10s %9.2f %8.3f %12llu %8d\n", inference ? "inference" : "training", name, o.ms, o.ms / first.ms,
               (unsigned long long)o.report.taken_bytes, (int)o.report.kernel_count);
        if (o.sum != first.sum) { fprintf(stderr, "bench_fusion: not the same bits\n"); exit(1); }
    }
    printf("\n");
    tl_free_graph(NULL, &graph);
}

// -- the network of 01 --

// budget: 0 = everything kept, else in that many bytes.
static void open_net(program *p, training *t, int fuses, uint64_t budget) {
    tl_strategy strategy = tl_with_profiling(tl_with_parallelism(tl_strategy_training(), tl_parallelism_none()), 0);
    tl_kernel kernels[KERNEL_COUNT];
    tl_run_desc desc;
    must(&p->env, begin_text_run(p, t, &p->m, &p->o, 0, kernels, &desc));
    strategy.enable_fusion = fuses;
    if (budget) strategy.gradient = tl_gradient_checkpointed(0);
    desc.strategy = &strategy;
    desc.budget_bytes = budget;
    if (tl_init_run(&p->env, &desc, &t->run) == TL_ERROR_INFEASIBLE && budget) {
        desc.budget_bytes = tl_find_least_budget(&p->env.error);
        must(&p->env, tl_init_run(&p->env, &desc, &t->run));
    } else if (!t->run) {
        must(&p->env, TL_ERROR_BACKEND);
    }
}

static int bench_net(char *program_path) {
    static program p;  // zero
    static training rows[4];
    double ns[4][STEPS];
    int code, k, turn;
    p.start_ns = p.progress.shown_ns = training_wall_ns();
    set_defaults(&p.o, 0);
    p.o.outside = 1;     // plans of activations
    p.o.kinds[TRAINING_GRAPH] = 0;
    code = prepare(&p, program_path);
    if (code) return code;
    for (k = 0; k < 4; k++) open_net(&p, &rows[k], k & 1, k & 2);
    for (turn = -1; turn < STEPS; turn++)
        for (k = 0; k < 4; k++) {
            must(&p.env, train_step(&rows[k]));
            ns[k][turn < 0 ? 0 : turn] = (double)rows[k].step_ns;
            if (memcmp(rows[k].grads, rows[0].grads, (size_t)p.m.param_count * sizeof(float)) == 0) continue;
            fprintf(stderr, "bench_fusion: not the same gradients\n");
            return 1;
        }
    printf("\n%-32s %10s %9s %8s %12s %8s %8s\n", "the network of 01", "", "ms", "to alone", "taken", "calls", "again");
    for (k = 0; k < 4; k++) {
        tl_run_report report;
        tl_measure_run(rows[k].run, &report);
        printf("%-32s %10s %9.2f %8.3f %12llu %8d %8d\n", k & 2 ? "the least budget" : "keep all", k & 1 ? "fused" : "alone",
               find_median(ns[k], STEPS), find_median(ns[k], STEPS) / find_median(ns[k & 2], STEPS),
               (unsigned long long)report.taken_bytes, (int)report.kernel_count, (int)report.recompute_count);
    }
    close_text(&p, rows, 4);
    return 0;
}

int main(int count, char **argv) {
    (void)count;
    bench_chain("20 of gelu and dropout, 1 Mi", "gd", 0);
    bench_chain("20 of gelu and dropout, 1 Mi", "gd", 1);
    bench_chain("20 of relu and scale, 1 Mi", "rs", 0);
    bench_chain("20 of relu and scale, 1 Mi", "rs", 1);
    return bench_net(argv[0]);
}
