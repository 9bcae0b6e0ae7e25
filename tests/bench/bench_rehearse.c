// What a rehearsal's costs are worth: on the network of examples/01_train_text.c, the time that plans by these costs
// promise for a training step against the time that it takes, at five budgets. Times are processor time; the rows take
// turns, a step each; of the measured times the lower quartile counts, as in the rehearsal.
#define main train_main
#include "../../examples/01_train_text.c"
#undef main

enum { ROUNDS = 24, WARM_ROUNDS = 2, ROWS = 6, PASSES = 17 };

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_rehearse: %s\n", env->error.text); exit(1); }
}

typedef struct cost_row {
    training   t;            // for its data and weights; the run is the row's own
    tl_backend backend;
    tl_run    *run;
    uint64_t   ns[ROUNDS];
} cost_row;

// A run of the list of kernels over the example's graph.
static void open_row(program *p, cost_row *row, double ratio, const tl_node_cost *costs) {
    const tl_graph *graph = &p->m.graph;
    tl_op *ops = (tl_op *)calloc((size_t)graph->node_count, sizeof *ops);
    tl_cpu_backend_desc cpu;
    tl_kernel kernels[KERNEL_COUNT];
    tl_run_desc desc;
    tl_plan plan;
    int32_t id, k;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    must(&p->env, tl_plan_keep_all(&p->env, graph, 0, &plan));
    must(&p->env, init_training(&p->env, &row->t, &p->m, &p->t, &p->o, &p->w, &plan, 0));
    set_kernels(kernels, &row->t.network);
    for (id = 0; id < graph->node_count && ops; id++)
        for (k = 0; k < KERNEL_COUNT; k++)
            if (!strcmp(kernels[k].op, tl_name_op(graph, id))) {
                ops[id].forward = kernels[k].forward;
                ops[id].backward = kernels[k].backward;
                ops[id].user = kernels[k].user;
            }
    cpu.now_ns = now_ns;
    must(&p->env, tl_init_cpu_backend(&p->env, &cpu, &row->backend));
    desc.graph = graph;
    desc.backend = &row->backend;
    desc.load = load_batch;
    desc.load_user = &row->t;
    desc.seed = row->t.seed;
    desc.loss_gradient_word = bits_of(1.0f);
    desc.budget_ratio = ratio;
    desc.costs = costs;
    must(&p->env, tl_init_op_run(&p->env, &desc, ops, graph->node_count, &row->run));
    free(ops);
}

static void time_step(program *p, cost_row *row, int round) {
    uint64_t start;
    memset(row->t.grads, 0, (size_t)p->m.param_count * sizeof *row->t.grads);
    start = now_ns(NULL);
    must(&p->env, tl_run_plan(row->run));
    if (round >= WARM_ROUNDS) row->ns[round - WARM_ROUNDS] = now_ns(NULL) - start;
    row->t.step++;
}

int main(int argc, char **argv) {
    static const double ratios[ROWS] = { 1.0, 0.75, 0.5, 0.3, 0.2, 0.15 };
    static program p;
    static cost_row rows[ROWS], first;
    tl_rehearsal_desc desc = { PASSES };
    tl_rehearsal found;
    int round, k, code;
    (void)argc;
    set_defaults(&p.o, 0);
    code = training_read_text(p.o.text, argv[0], p.o.context, NULL, &p.t);
    if (code) return code;
    p.m.size.L = p.o.layers;
    p.m.size.C = p.o.width;
    p.m.size.T = p.o.context;
    p.m.size.B = p.o.batch;
    p.m.size.V = (uint64_t)p.t.V;
    p.m.trains = 1;
    p.m.alignment_bytes = ALIGNMENT;
    p.m.dropout = 0.05f;
    p.m.add_bytes = add_bytes;
    must(&p.env, training_build_model(&p.env, &p.m));
    open_row(&p, &first, 1.0, NULL);
    must(&p.env, tl_rehearse_run(first.run, &desc, &found));
    printf("%d nodes, %d calls of kernels in the rehearsal, %d findings\n", (int)found.node_count, (int)found.call_count,
           (int)found.finding_count);
    for (k = 0; k < found.finding_count; k++) {
        char line[300];
        tl_print_finding(&p.m.graph, &found.findings[k], line, sizeof line);
        printf("    %s\n", line);
    }
    for (k = 0; k < ROWS; k++) open_row(&p, &rows[k], ratios[k], found.costs);
    for (round = 0; round < WARM_ROUNDS + ROUNDS; round++)
        for (k = 0; k < ROWS; k++) time_step(&p, &rows[(round + k) % ROWS], round);
    printf("%8s %12s %11s %11s %11s %9s %11s\n", "budget", "peak bytes", "promised ms", "measured ms", "promised /", "to all", "made again");
    for (k = 0; k < ROWS; k++) {
        tl_run_report report;
        double measured = (double)training_find_quantile(rows[k].ns, ROUNDS, 1, 4);
        double all = (double)training_find_quantile(rows[0].ns, ROUNDS, 1, 4);
        tl_measure_run(rows[k].run, &report);
        printf("%7.0f%% %12llu %11.3f %11.3f %11.3f %9.3f %11d\n", 100 * ratios[k],
               (unsigned long long)report.measured_peak_bytes, (double)report.planned_cost * 1e-6, measured * 1e-6,
               (double)report.planned_cost / measured, measured / all, (int)report.recompute_count);
    }
    return 0;
}
