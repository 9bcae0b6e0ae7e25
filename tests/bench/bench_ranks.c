// Pipelines: how well the simulated time of a training step is met. Stages whose kernels wait a known time, in threads,
// over a link with a rate and a latency; 1f1b and gpipe, everything kept and within less, and links on which messages
// take nothing, a part of a call, and more than a call. Then, on paper alone: 8 to 1024 ranks of a long chain, what
// planning takes, the bubble, the bytes of a rank.
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, nanosleep
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../../examples/transport_threads.h"

enum { NODES = 16, BATCHES = 8, STEPS = 5, MOST_RANKS = 4, BYTES = 200000 };

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_ranks: %s\n", env->error.text); exit(1); }
}

static void wait_until(uint64_t ns) {
    while (threads_now_ns() < ns) {
        struct timespec pause = { 0, 20000 };
        if (threads_now_ns() + 200000 < ns) nanosleep(&pause, NULL);
    }
}

static tl_result wait_call(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    (void)user;
    wait_until(threads_now_ns() + (call->kind == TL_STEP_BACKWARD ? node->bwd_cost : node->fwd_cost));
    return TL_OK;
}

// A chain of equal nodes; the costs are times.
static void make_chain(tl_env *env, int32_t count, uint64_t fwd_ns, uint64_t bytes, tl_graph *graph) {
    tl_chain_desc desc;
    uint64_t *costs = (uint64_t *)malloc(3 * (size_t)count * sizeof *costs);
    int32_t i;
    if (!costs) exit(1);
    for (i = 0; i < count; i++) {
        costs[i] = fwd_ns;
        costs[count + i] = 2 * fwd_ns;
        costs[2 * count + i] = bytes;
    }
    memset(&desc, 0, sizeof desc);
    desc.layer_count = count;
    desc.input_bytes = bytes;
    desc.output_bytes = costs + 2 * count;
    desc.fwd_costs = costs;
    desc.bwd_costs = costs + count;
    must(env, tl_add_chain(env, graph, &desc));
    free(costs);
}

// -- threads --

typedef struct worker {
    tl_env        env;
    tl_run       *run;
    pthread_t     thread;
    pthread_barrier_t *start;
    uint64_t      best_ns;      // of a training step, of the rank
} worker;

static void *work(void *user) {
    worker *w = (worker *)user;
    int i;
    for (i = 0; i < STEPS; i++) {
        uint64_t begin;
        tl_result result;
        pthread_barrier_wait(w->start);
        begin = threads_now_ns();
        while ((result = tl_run_plan(w->run)) == TL_NOT_READY) {
            struct timespec pause = { 0, 20000 };
            nanosleep(&pause, NULL);
        }
        must(&w->env, result);
        begin = threads_now_ns() - begin;
        pthread_barrier_wait(w->start);
        if (begin < w->best_ns) w->best_ns = begin;
    }
    return NULL;
}

// The fastest step of the slowest rank, in ns.
static uint64_t run_ranks(const tl_graph *graph, const tl_compiled_ranks *ranks, const tl_link *link) {
    static worker workers[MOST_RANKS];
    static tl_backend backends[MOST_RANKS];
    static tl_transport transports[MOST_RANKS];
    tl_kernel kernel = { "layer", wait_call, wait_call, NULL };
    pthread_barrier_t start;
    threads_hub_desc hub_desc;
    threads_hub hub;
    uint64_t slowest = 0;
    int32_t r;
    memset(&hub_desc, 0, sizeof hub_desc);
    hub_desc.rank_count = ranks->rank_count;
    hub_desc.bytes_per_second = link ? link->bytes_per_second : 0;
    hub_desc.latency_ns = link ? link->latency_ns : 0;
    if (!threads_hub_open(&hub, &hub_desc) || pthread_barrier_init(&start, NULL, (unsigned)ranks->rank_count)) exit(1);
    for (r = 0; r < ranks->rank_count; r++) {
        tl_cpu_backend_desc cpu;
        tl_run_desc desc;
        memset(&cpu, 0, sizeof cpu);
        memset(&desc, 0, sizeof desc);
        memset(&workers[r], 0, sizeof workers[r]);
        must(&workers[r].env, tl_init_cpu_backend(&workers[r].env, &cpu, &backends[r]));
        transports[r] = threads_hub_join(&hub, r);
        desc.graph = graph;
        desc.backend = &backends[r];
        desc.kernels = &kernel;
        desc.kernel_count = 1;
        desc.compiled = &ranks->ranks[r].compiled;
        desc.transport = &transports[r];
        must(&workers[r].env, tl_init_run(&workers[r].env, &desc, &workers[r].run));
        workers[r].start = &start;
        workers[r].best_ns = UINT64_MAX;
    }
    for (r = 0; r < ranks->rank_count; r++)
        if (pthread_create(&workers[r].thread, NULL, work, &workers[r])) exit(1);
    for (r = 0; r < ranks->rank_count; r++) {
        pthread_join(workers[r].thread, NULL);
        if (workers[r].best_ns > slowest) slowest = workers[r].best_ns;
        tl_free_run(workers[r].run);
        must(&workers[r].env, tl_free_cpu_backend(&workers[r].env, &backends[r]));
    }
    pthread_barrier_destroy(&start);
    threads_hub_close(&hub);
    return slowest;
}

static void bench_times(void) {
    static const tl_link links[] = { { 0, 0 }, { 200000000, 100000 }, { 50000000, 500000 }, { 15000000, 1000000 } };
    tl_env env;
    tl_graph graph;
    int32_t ranks, l, kind, tight;
    memset(&env, 0, sizeof env);
    make_chain(&env, NODES, 1000000, BYTES, &graph);
    printf("%d nodes of 1 + 2 ms and %d bytes, %d micro-batches; times in ms, of the fastest of %d steps\n\n", NODES, BYTES, BATCHES, STEPS);
    printf("ranks  order  kept  message  simulated  measured   ratio  bubble    arena of rank 0\n");
    for (ranks = 2; ranks <= MOST_RANKS; ranks++)
        for (kind = 0; kind < 2; kind++)
            for (tight = 0; tight < 2; tight++)
                for (l = 0; l < 4; l++) {
                    tl_ranks_desc desc;
                    tl_compiled_ranks compiled;
                    double measured;
                    memset(&desc, 0, sizeof desc);
                    desc.graph = &graph;
                    desc.rank_count = ranks;
                    desc.micro_batch_count = BATCHES;
                    desc.pipeline = kind ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
                    desc.alignment_bytes = 64;
                    desc.link = l ? &links[l] : NULL;
                    desc.budget_bytes = tight ? (uint64_t)BYTES * (uint64_t)(kind ? 28 : 20) : 0;
                    must(&env, tl_compile_ranks(&env, &desc, &compiled));
                    measured = (double)run_ranks(&graph, &compiled, l ? &links[l] : NULL);
                    printf("%5d  %5s  %4s  %7.2f  %9.2f  %8.2f  %6.3f  %6.3f  %12llu\n", (int)ranks, tl_name_pipeline(desc.pipeline),
                           tight ? "less" : "all", l ? (double)BYTES * 1e3 / (double)links[l].bytes_per_second + (double)links[l].latency_ns * 1e-6 : 0.0,
                           (double)compiled.cost * 1e-6, measured * 1e-6, measured / (double)compiled.cost, compiled.bubble_ratio,
                           (unsigned long long)compiled.ranks[0].compiled.plan.arena_bytes);
                    tl_free_compiled_ranks(&env, &compiled);
                }
    tl_free_graph(&env, &graph);
}

// -- on paper --

static void bench_scale(void) {
    const tl_link link = { UINT64_C(25000000000), 5000 };
    tl_env env;
    int32_t ranks;
    memset(&env, 0, sizeof env);
    printf("\nA chain of 4 nodes a rank, each 1 + 2 ms and 25 MB, over 25 GB/s and 5 us; 4 micro-batches a rank, at most 1024\n\n");
    printf("ranks  nodes  micro-batches   planned in s   bubble  (S-1)/(m+S-1)   MB of rank 0  of the last  step in ms    bound\n");
    for (ranks = 8; ranks <= 1024; ranks *= 2) {
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks compiled;
        int32_t m = 4 * ranks < 1024 ? 4 * ranks : 1024;
        uint64_t begin = threads_now_ns();
        memset(&desc, 0, sizeof desc);
        make_chain(&env, 4 * ranks, 1000000, 25000000, &graph);
        desc.graph = &graph;
        desc.rank_count = ranks;
        desc.micro_batch_count = m;
        desc.link = &link;
        must(&env, tl_compile_ranks(&env, &desc, &compiled));
        begin = threads_now_ns() - begin;
        printf("%5d  %5d  %13d   %12.2f   %6.3f  %13.3f   %12.1f  %11.1f  %10.1f  %7.1f\n", (int)ranks, (int)(4 * ranks), (int)m,
               (double)begin * 1e-9, compiled.bubble_ratio, (double)(ranks - 1) / (double)(m + ranks - 1),
               (double)compiled.ranks[0].compiled.plan.arena_bytes * 1e-6,
               (double)compiled.ranks[ranks - 1].compiled.plan.arena_bytes * 1e-6, (double)compiled.cost * 1e-6,
               (double)compiled.bound_cost * 1e-6);
        fflush(stdout);
        tl_free_compiled_ranks(&env, &compiled);
        tl_free_graph(&env, &graph);
        if (begin > UINT64_C(120000000000)) break;
    }
}

int main(int argc, char **argv) {
    if (argc < 2 || !strcmp(argv[1], "--times")) bench_times();
    if (argc < 2 || !strcmp(argv[1], "--scale")) bench_scale();
    return 0;
}
