// Steps under way together: what they take and what they buy. First kernels that wait a known time on eight threads, in
// a graph of branches, with everything kept and within half of its bytes (the fastest of five passes: others on the
// machine can only add); then the transformer of
// examples/01_train_text.c on the job system of examples/16_jobs.c, whose kernels compute.
#define main jobs_main
#include "../../examples/16_jobs.c"
#undef main

enum { BENCH_PASSES = 5, BENCH_THREADS = 8, BENCH_WAIT_US = 5000 };

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_jobs: %s\n", env->error.text); exit(1); }
}

static tl_result wait_forward(const tl_kernel_call *call, void *user) {
    (void)call;
    wait_ns(*(const uint64_t *)user);
    return TL_OK;
}

// -- kernels that wait --

// x --> branches of so many nodes each --> their sum, and a loss of it.
static void make_branches(tl_env *env, int branches, int length, tl_graph *graph) {
    const uint64_t bytes = 65536;
    tl_tensor ends[16], input = { 0, 0 };
    tl_node_desc desc;
    int b, k;
    tl_init_graph(graph);
    memset(&desc, 0, sizeof desc);
    desc.name = "x"; desc.op = "input"; desc.output_bytes = &bytes; desc.output_count = 1;
    must(env, tl_add_node(env, graph, &desc, NULL));
    desc.op = "wait"; desc.needs = "in"; desc.fwd_cost = desc.bwd_cost = 1;
    for (k = 0; k < length; k++)
        for (b = 0; b < branches; b++) {
            char name[32];
            snprintf(name, sizeof name, "b%d_%d", b, k);
            desc.name = name;
            if (k) input.node = ends[b].node;
            else input.node = 0;
            desc.inputs = &input;
            desc.input_count = 1;
            must(env, tl_add_node(env, graph, &desc, &ends[b].node));
            ends[b].output = 0;
        }
    desc.name = "sum"; desc.needs = "none"; desc.inputs = ends; desc.input_count = branches; desc.keep = 1;
    must(env, tl_add_node(env, graph, &desc, NULL));
}

static double run_waiting(tl_env *env, const tl_graph *graph, const tl_plan *plan, int32_t k, job_system *jobs,
                          tl_run_report *report) {
    uint64_t fastest = UINT64_MAX;
    uint64_t wait = BENCH_WAIT_US * 1000;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc;
    tl_kernel kernel;
    tl_run *run;
    int i;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    must(env, tl_init_cpu_backend(env, &cpu, &backend));
    kernel.op = "wait";
    kernel.forward = kernel.backward = wait_forward;
    kernel.user = &wait;
    desc.graph = graph;
    desc.backend = &backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.plan = plan;
    desc.in_flight = k;
    must(env, tl_init_run(env, &desc, &run));
    for (i = 0; i < BENCH_PASSES; i++) {
        uint64_t start = training_wall_ns();
        int32_t done = 0;
        must(env, tl_start_pass(run, 0));
        while (!done) {
            tl_run_step step;
            tl_result result = jobs->under_way < k ? tl_next_step(run, &step, &done) : TL_NOT_READY;
            if (result == TL_NOT_READY) {
                job ended = take_job(jobs);
                result = tl_finish_step(run, &ended.step);
            } else if (!result && step.is_compute) add_job(jobs, &step);
            must(env, result);
        }
        start = training_wall_ns() - start;
        if (start < fastest) fastest = start;
    }
    tl_measure_run(run, report);
    tl_free_run(run);
    must(env, tl_free_cpu_backend(env, &backend));
    return (double)fastest * 1e-6;
}

static void print_waiting(tl_env *env, const char *what, const tl_graph *graph, const tl_plan *plan, job_system *jobs) {
    int32_t k, calls = 0, i;
    double first_ms = 0, first_arena = 0;
    for (i = 0; i < plan->step_count; i++) calls += tl_find_step(plan, i).kind <= TL_STEP_BACKWARD;
    printf("%s: %d steps, %d of them calls of %d us\n", what, (int)plan->step_count, (int)calls, BENCH_WAIT_US);
    printf("  under way       arena   x arena      ms   x time   calls at a time\n");
    for (k = 1; k <= 8; k *= 2) {
        tl_run_report report;
        double ms = run_waiting(env, graph, plan, k, jobs, &report), arena = (double)report.measured_arena_bytes;
        if (k == 1) { first_ms = ms; first_arena = arena; }
        printf("  %9d  %10.0f  %8.3f  %6.1f  %7.3f  %16.2f\n", (int)k, arena, arena / first_arena, ms, ms / first_ms,
               (double)calls * BENCH_WAIT_US * 1e-3 / ms);
    }
    printf("\n");
}

static void bench_waiting(tl_env *env, job_system *jobs) {
    tl_graph graph;
    tl_plan plan, interleaved;
    tl_remat_desc desc;
    tl_remat_report report;
    make_branches(env, 4, 8, &graph);
    must(env, tl_plan_keep_all(env, &graph, 0, &plan));
    print_waiting(env, "4 branches of 8 nodes, everything kept", &graph, &plan, jobs);
    must(env, interleave_plan(&plan, 2, &interleaved));
    print_waiting(env, "the same, 2 micro-batches together", &graph, &interleaved, jobs);
    free((tl_step *)interleaved.steps);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.live = 1;
    desc.budget_bytes = plan.peak_bytes / 2;
    tl_free_plan(env, &plan);
    must(env, tl_plan_remat(env, &desc, &plan, &report));
    print_waiting(env, "the same graph within half of its bytes", &graph, &plan, jobs);
    tl_free_plan(env, &plan);
    tl_free_graph(env, &graph);
}

int main(void) {
    static job_system jobs;
    static char program[] = "bench_jobs", steps[] = "--steps", count[] = "30", out[] = "--out", where[] = "build/jobs";
    static char batches[] = "--micro-batches", one[] = "1", two[] = "2", budget[] = "--budget", half[] = "50";
    char *alone[] = { program, steps, count, out, where, batches, one }, *pair[] = { program, steps, count, out, where, batches, two };
    char *tight[] = { program, steps, count, out, where, batches, two, budget, half };
    tl_env env;
    int code;
    memset(&env, 0, sizeof env);
    if (start_jobs(&jobs, BENCH_THREADS)) return 1;
    bench_waiting(&env, &jobs);
    end_jobs(&jobs);
    code = jobs_main(7, alone);
    if (!code) code = jobs_main(7, pair);
    return code ? code : jobs_main(9, tight);
}
