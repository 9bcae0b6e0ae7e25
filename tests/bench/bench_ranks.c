// Pipelines: how well the simulated time of a training step is met. Stages whose kernels wait a known time, in threads,
// over a link with a rate and a latency; 1f1b and gpipe, everything kept and within less, and links on which messages
// take nothing, a part of a call, and more than a call. Then, on paper alone: 8 to 1024 ranks of a long chain, what
// planning takes, the bubble, the bytes of a rank.
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, nanosleep
#include <math.h>
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

typedef struct paper_row {
    double   nodes, seconds;
    uint64_t bytes;           // of the arena of rank 0
} paper_row;

// Plan a pipeline over so many ranks, each within `budget` bytes (0 = any), and print what comes of it.
static paper_row plan_on_paper(tl_env *env, const tl_graph *graph, int32_t ranks, uint64_t budget) {
    static const tl_link link = { UINT64_C(25000000000), 5000 };
    int32_t m = 4 * ranks < 1024 ? 4 * ranks : 1024;
    uint64_t begin = threads_now_ns();
    tl_ranks_desc desc;
    tl_compiled_ranks compiled;
    paper_row row;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.rank_count = ranks;
    desc.micro_batch_count = m;
    desc.link = &link;
    desc.budget_bytes = budget;
    result = tl_compile_ranks(env, &desc, &compiled);
    row.nodes = graph->node_count;
    row.seconds = (double)(threads_now_ns() - begin) * 1e-9;
    row.bytes = 0;
    if (result) {
        printf("%5d  %5d  %13d   %12.2f   %s\n", (int)ranks, (int)graph->node_count, (int)m, row.seconds, env->error.text);
        return row;
    }
    printf("%5d  %5d  %13d   %12.2f   %6.3f  %13.3f   %12.1f  %11.1f  %10.1f  %7.1f\n", (int)ranks, (int)graph->node_count, (int)m,
           row.seconds, compiled.bubble_ratio, (double)(ranks - 1) / (double)(m + ranks - 1),
           (double)compiled.ranks[0].compiled.plan.arena_bytes * 1e-6,
           (double)compiled.ranks[ranks - 1].compiled.plan.arena_bytes * 1e-6, (double)compiled.cost * 1e-6,
           (double)compiled.bound_cost * 1e-6);
    fflush(stdout);
    row.bytes = compiled.ranks[0].compiled.plan.arena_bytes;
    tl_free_compiled_ranks(env, &compiled);
    return row;
}

static void print_paper_head(void) {
    printf("ranks  nodes  micro-batches   planned in s   bubble  (S-1)/(m+S-1)   MB of rank 0  of the last  step in ms    bound\n");
}

// The exponent of the time over the nodes: the slope of a line through the logarithms.
static void print_growth(const paper_row *rows, int count) {
    double x = 0, y = 0, xx = 0, xy = 0;
    int i;
    for (i = 0; i < count; i++) {
        double a = log(rows[i].nodes), b = log(rows[i].seconds);
        x += a; y += b; xx += a * a; xy += a * b;
    }
    printf("time to plan grows with nodes to the power of %.2f\n", (count * xy - x * y) / (count * xx - x * x));
}

static void bench_scale(void) {
    paper_row rows[8];
    tl_env env;
    int32_t ranks;
    int count = 0;
    memset(&env, 0, sizeof env);
    printf("\nA chain of 4 nodes a rank, each 1 + 2 ms and 25 MB, over 25 GB/s and 5 us; 4 micro-batches a rank, at most 1024\n\n");
    print_paper_head();
    for (ranks = 8; ranks <= 1024; ranks *= 2) {
        tl_graph graph;
        make_chain(&env, 4 * ranks, 1000000, 25000000, &graph);
        rows[count++] = plan_on_paper(&env, &graph, ranks, 0);
        tl_free_graph(&env, &graph);
    }
    print_growth(rows, count);
}

// -- a model of the reference data, with more blocks --

enum { FIRST = 2, BLOCK = 12, BLOCKS = 12 };   // GPT-2: two nodes before 12 blocks of 12 nodes
enum { FLOPS = 100000 };                        // of a rank in a nanosecond

static char *read_model(const char *name) {
    const char *root = getenv("TL_SHARED") ? getenv("TL_SHARED") : "../shared";
    char path[4096], *text;
    FILE *file;
    size_t length;
    snprintf(path, sizeof path, "%s/models/%s", root, name);
    file = fopen(path, "rb");
    text = (char *)calloc(1, 1 << 20);
    if (!file || !text) { free(text); if (file) fclose(file); printf("\nSKIPPED: no %s\n", path); return NULL; }
    length = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    text[length] = 0;
    return text;
}

// Print one node of the model as node `id`, of block `block`, its inputs moved by `shift` nodes but for that before the
// first block, which is node `before` now.
static size_t put_node(char *text, size_t size, const char *line, int id, int block, int shift, int before) {
    const char *name = strchr(line + 5, ' ') + 1, *fwd = strstr(line, " fwd="), *bwd = strstr(line, " bwd=");
    const char *out = strstr(line, " out="), *in = strstr(line, " in="), *end = strchr(in, '\n'), *at;
    size_t length = (size_t)snprintf(text, size, "node %d r%d_%.*s fwd=%llu bwd=%llu%.*s in=", id, block, (int)(fwd - name), name,
                                     strtoull(fwd + 5, NULL, 10) / FLOPS, strtoull(bwd + 5, NULL, 10) / FLOPS, (int)(in - out), out);
    for (at = in + 4; at < end; at = strpbrk(at, ",\n") + 1) {
        int input = atoi(at);
        if (*at == '-') length += (size_t)snprintf(text + length, size - length, "-");
        else length += (size_t)snprintf(text + length, size - length, "%s%d", at > in + 4 ? "," : "",
                                        input < FIRST ? before : input + shift);
    }
    return length + (size_t)snprintf(text + length, size - length, "\n");
}

// The model with so many blocks, each that of its first one, and its last norm. The head and the loss of a network of this
// width take as long as four blocks, those of GPT-3 a third of one: they are left out.
static void repeat_blocks(tl_env *env, const char *model, int blocks, tl_graph *graph) {
    size_t size = (size_t)(blocks + 4) * BLOCK * 200, length = 6;
    char *text = (char *)malloc(size);
    const char *lines[FIRST + BLOCK * BLOCKS + 8], *at = model;
    int count = 0, k, id = 0;
    for (at = strstr(model, "\nnode "); at && count < (int)(sizeof lines / sizeof *lines); at = strstr(at + 1, "\nnode "))
        lines[count++] = at + 1;
    if (!text || count < FIRST + BLOCK * BLOCKS) exit(1);
    memcpy(text, "tlg 1\n", 6);
    for (; id < FIRST; id++) length += put_node(text + length, size - length, lines[id], id, 0, 0, id - 1);
    for (; id < FIRST + BLOCK * blocks; id++) {
        int block = (id - FIRST) / BLOCK, shift = BLOCK * block;
        length += put_node(text + length, size - length, lines[id - shift], id, block, shift, FIRST - 1 + shift);
    }
    k = FIRST + BLOCK * BLOCKS;
    length += put_node(text + length, size - length, lines[k], id, blocks, id - k, 0);
    must(env, tl_parse_graph(env, text, length, graph));
    free(text);
}

// The blocks of GPT-2 small, 96 as in GPT-3, or one a rank. First without a budget, then within half of what the first rank
// takes so.
static void bench_model(void) {
    char *model = read_model("gpt2_small_rl.tlg");
    paper_row rows[8];
    tl_env env;
    int32_t ranks;
    uint64_t bytes[8];
    int half, count;
    memset(&env, 0, sizeof env);
    for (half = 0; half < 2 && model; half++) {
        printf("\nThe blocks of GPT-2 small, 96 or one a rank, ranks of 100 TFLOP/s over 25 GB/s and 5 us%s; 4 micro-batches a rank, at most 1024\n\n",
               half ? "; half of the bytes that rank 0 takes above" : "");
        print_paper_head();
        for (ranks = 8, count = 0; ranks <= (half ? 256 : 1024); ranks *= 2) {
            tl_graph graph;
            repeat_blocks(&env, model, ranks < 96 ? 96 : ranks, &graph);
            rows[count] = plan_on_paper(&env, &graph, ranks, half ? bytes[count] / 2 : 0);
            bytes[count] = rows[count].bytes;
            count++;
            tl_free_graph(&env, &graph);
        }
        print_growth(rows, count);
    }
    free(model);
}

int main(int argc, char **argv) {
    if (argc < 2 || !strcmp(argv[1], "--times")) bench_times();
    if (argc < 2 || !strcmp(argv[1], "--scale")) bench_scale();
    if (argc < 2 || !strcmp(argv[1], "--model")) bench_model();
    return 0;
}
