// What a rehearsal's costs are worth: on the network of examples/01_train_text.c, the time that plans by these costs
// promise for a training step against the time that it takes, at six budgets. Times are processor time. The plans are made
// once. Costs are those of a rehearsal of the run in the middle, which makes half of its forwards again. A machine that other work shares is now faster and now slower, so each of several blocks rehearses anew, adds up what
// its costs promise for the same plans, and then times steps of each plan, one after the other as training does them, behind
// two that warm its memory up; in a block the lower quartile counts, as in the rehearsal, and of the blocks' ratios the median.
#define main train_main
#include "../../examples/01_train_text.c"
#undef main

enum { BLOCKS = 11, WARM = 2, ROUNDS = 8, ROWS = 6, MIDDLE = 3, PASSES = 9 };

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_rehearse: %s\n", env->error.text); exit(1); }
}

typedef struct cost_row {
    training   t;            // for its data and weights; the run is the row's own
    tl_backend backend;
    tl_run    *run;
    uint64_t   ns[ROUNDS];                                   // of the block at hand
    double     promised[BLOCKS], measured[BLOCKS], ratios[BLOCKS];
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
    row->ns[round] = now_ns(NULL) - start;
    row->t.step++;
}

// What costs promise for a step of a row's plan.
static double sum_costs(const cost_row *row, const tl_node_cost *costs) {
    double sum = 0;
    tl_plan plan;
    int32_t k;
    tl_find_run_plan(row->run, &plan);
    for (k = 0; k < plan.step_count; k++) {
        const tl_node_cost *cost = &costs[plan.steps[k].node];
        if (plan.steps[k].kind <= TL_STEP_BACKWARD)
            sum += (double)(plan.steps[k].kind == TL_STEP_BACKWARD ? cost->bwd_ns : cost->fwd_ns);
    }
    return sum;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void time_block(program *p, tl_run *rehearsed, cost_row *rows, int block) {
    tl_rehearsal_desc desc = { PASSES };
    tl_rehearsal found;
    int round, k;
    must(&p->env, tl_rehearse_run(rehearsed, &desc, &found));
    for (k = 0; k < ROWS; k++) rows[k].promised[block] = sum_costs(&rows[k], found.costs);
    for (k = 0; k < ROWS; k++)
        for (round = -WARM; round < ROUNDS; round++) time_step(p, &rows[(block + k) % ROWS], round < 0 ? 0 : round);
    for (k = 0; k < ROWS; k++) {
        rows[k].measured[block] = (double)training_find_quantile(rows[k].ns, ROUNDS, 1, 4);
        rows[k].ratios[block] = rows[k].promised[block] / rows[k].measured[block];
    }
    tl_free_rehearsal(&p->env, &found);
}

int main(int argc, char **argv) {
    static const double ratios[ROWS] = { 1.0, 0.75, 0.5, 0.3, 0.2, 0.15 };
    static program p;
    static cost_row rows[ROWS], first;
    tl_rehearsal_desc desc = { PASSES };
    tl_rehearsal found;
    int block, k, code;
    (void)argc;
    set_defaults(&p.o, 0);
    p.o.outside = 1;     // plans of activations
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
    for (block = 0; block < BLOCKS; block++) time_block(&p, rows[MIDDLE].run, rows, block);
    printf("%8s %12s %11s %11s %11s %15s %9s %11s\n", "budget", "peak bytes", "promised ms", "measured ms", "promised /",
           "least .. most", "to all", "made again");
    for (k = 0; k < ROWS; k++) {
        tl_run_report report;
        double all[BLOCKS];
        for (block = 0; block < BLOCKS; block++) all[block] = rows[k].measured[block] / rows[0].measured[block];
        qsort(all, BLOCKS, sizeof *all, compare_doubles);
        qsort(rows[k].promised, BLOCKS, sizeof *all, compare_doubles);
        if (k) qsort(rows[k].measured, BLOCKS, sizeof *all, compare_doubles);
        qsort(rows[k].ratios, BLOCKS, sizeof *all, compare_doubles);
        tl_measure_run(rows[k].run, &report);
        printf("%7.0f%% %12llu %11.3f %11.3f %11.3f %6.3f .. %5.3f %9.3f %11d\n", 100 * ratios[k],
               (unsigned long long)report.measured_peak_bytes, rows[k].promised[BLOCKS / 2] * 1e-6, rows[k].measured[BLOCKS / 2] * 1e-6,
               rows[k].ratios[BLOCKS / 2], rows[k].ratios[0], rows[k].ratios[BLOCKS - 1], all[BLOCKS / 2], (int)report.recompute_count);
    }
    return 0;
}
