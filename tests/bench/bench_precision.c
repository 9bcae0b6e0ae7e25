// What choosing precisions costs, and how far from the optimum the choice can be: public networks with the default
// profiles, random series-parallel graphs of 200 nodes, chains of 1000.
//
// The networks are read from $TL_SHARED/models, else ../shared/models. Limits are parts of the loss that the fastest
// choice of all has. Times are processor time of one call.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/support.h"
#include "timing.h"
#include "../support/word_lengths.h"

// -- measuring --

enum { MOST_ROWS = 512 };
static const double shares[] = { 0.01, 0.1, 0.3, 0.6, 0.9 };
enum { SHARES = sizeof shares / sizeof shares[0] };

static void must(tl_result result, const tl_env *env, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_precision: %s: %s\n", what, env->error.text[0] ? env->error.text : tl_name_result(result));
    exit(1);
}

// Milliseconds and gaps of the rows of one table.
typedef struct rows {
    double ms[MOST_ROWS], gaps[MOST_ROWS];
    int    count, proven;
} rows;

static void add_row(rows *r, double ms, double gap, int proven) {
    if (r->count == MOST_ROWS) return;
    r->ms[r->count] = ms;
    r->gaps[r->count++] = gap;
    r->proven += proven;
}

static void print_rows(rows *r, const char *what) {
    if (!r->count) return;
    qsort(r->ms, (size_t)r->count, sizeof *r->ms, by_value);
    qsort(r->gaps, (size_t)r->count, sizeof *r->gaps, by_value);
    printf("%s: %d rows, %d proven optimal; gap %.4f %% median, %.4f %% worst; %.2f ms median, %.2f ms worst\n\n", what,
           r->count, r->proven, 100 * r->gaps[r->count / 2], 100 * r->gaps[r->count - 1], r->ms[r->count / 2],
           r->ms[r->count - 1]);
}

// -- public networks --

static double plan_once(const char *name, const tl_precision_desc *desc, tl_precision_plan *plan) {
    tl_env env;
    double start = processor_ms();
    memset(&env, 0, sizeof env);
    must(tl_plan_precision(&env, desc, plan), &env, name);
    return processor_ms() - start;
}

// The choice alone, as tl_plan_precision sets it up: without the runner-up of each node.
static double choose_alone(const char *name, const tl_precision_desc *desc) {
    tl_env env;
    tli_precision p;
    tli_choice_plan plan;
    double start;
    memset(&env, 0, sizeof env);
    must(tli_open_precision(&env, TLI_IN(PLAN_PRECISION), desc, 1, &p), &env, name);
    p.choice.loss_limit = (uint64_t)1 << 40;
    start = processor_ms();
    must(tli_plan_choice(&env, &p.choice, &plan), &env, name);
    start = processor_ms() - start;
    tli_free_choice_plan(&env, &plan);
    tli_close_precision(&p);
    return start;
}

static void one_network(const char *name, const tl_graph *graph, rows *all, rows *alone) {
    tl_precision_desc desc;
    tl_precision_plan fastest, plan;
    int k;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.allow_unknown = 1;
    desc.profiles = word_length_profiles(&desc.profile_count);
    desc.loss_limit = 1e6;  // above every sum of losses
    (void)plan_once(name, &desc, &fastest);
    for (k = 0; k < SHARES; k++) {
        double choice_ms, ms;
        desc.loss_limit = fastest.loss * shares[k];
        choice_ms = choose_alone(name, &desc);
        ms = plan_once(name, &desc, &plan);
        printf("%-16s %5d %9.3g %9.3g %9.3f %9.3f %11d %9.4f %% %-6s %9.2f %9.2f\n", name, (int)graph->node_count,
               desc.loss_limit, plan.loss, plan.speedup, fastest.speedup, (int)plan.conversion_count,
               100 * plan.gap_ratio, plan.proven ? "proven" : "", choice_ms, ms);
        fflush(stdout);
        add_row(alone, choice_ms, plan.gap_ratio, plan.proven);
        add_row(all, ms, plan.gap_ratio, plan.proven);
        tl_free_precision_plan(NULL, &plan);
    }
    tl_free_precision_plan(NULL, &fastest);
}

// The nodes of a unit chain cost 1, which no scheme makes less: a thousand times as much instead.
static void scale_units(const char *name, tl_graph *graph) {
    tl_node *nodes = (tl_node *)graph->nodes;
    int32_t i;
    for (i = 0; i < graph->node_count && !strncmp(name, "unit", 4); i++) {
        nodes[i].fwd_cost *= 1000;
        nodes[i].bwd_cost *= 1000;
    }
}

static void public_networks(void) {
    static const char *const names[] = { "mlp8", "vgg16", "vgg16_rl", "encoder2", "resnet18", "unet", "mobilenet_v2",
                                         "mobilenet_v2_rl", "gpt2_small", "gpt2_small_rl", "unit10", "unit20", "unit50",
                                         "unit100", "unit1000" };
    rows all, alone;
    size_t k;
    memset(&all, 0, sizeof all);
    memset(&alone, 0, sizeof alone);
    printf("public networks, default profiles, ops without one by its last row, costs of unit chains x 1000. limit, loss: sums\n"
           "of the profiles'; f32 /: time of f32 against the choice's, and the fastest's; ms: the choice alone, and with the\n"
           "runner-up of each node\n\n");
    printf("%-16s %5s %9s %9s %9s %9s %11s %11s %-6s %9s %9s\n", "network", "nodes", "limit", "loss", "f32 /", "fastest",
           "conversions", "gap", "", "ms", "with all");
    for (k = 0; k < sizeof names / sizeof names[0]; k++) {
        char path[256], *text;
        size_t length = 0;
        tl_graph graph;
        tl_env env;
        memset(&env, 0, sizeof env);
        snprintf(path, sizeof path, "models/%s.tlg", names[k]);
        text = read_reference("public networks", path, &length);
        if (!text) return;
        must(tl_parse_graph(&env, text, length, &graph), &env, path);
        free(text);
        scale_units(names[k], &graph);
        one_network(names[k], &graph, &all, &alone);
        tl_free_graph(NULL, &graph);
    }
    printf("\n");
    print_rows(&alone, "public networks, the choice alone");
    print_rows(&all, "with runners-up");
}

// -- random graphs: bare choices --

enum { NODES = 1000, SCHEMES = 4, EDGES = 2 * NODES };

// Schemes as f32, f16, i16 and i8 are: faster and lossier, each its own format.
typedef struct random_choice {
    tli_choice_desc desc;
    uint64_t costs[NODES * SCHEMES], losses[NODES * SCHEMES], prices[NODES][SCHEMES * SCHEMES];
    tli_choice_net nets[NODES];
    int32_t readers[EDGES], from[EDGES], to[EDGES], edge_count, node_count;
} random_choice;

static void add_edge(random_choice *c, int32_t from, int32_t to) {
    c->from[c->edge_count] = from;
    c->to[c->edge_count++] = to;
}

static void make_chain(random_choice *c, int32_t node_count) {
    int32_t i;
    c->node_count = node_count;
    for (i = 1; i < node_count; i++) add_edge(c, i - 1, i);
}

// Two nodes and an edge, then again and again an edge at random: a node into it, or one beside it.
static void make_series_parallel(random_choice *c, tl_random *random, int32_t node_count) {
    c->node_count = 2;
    add_edge(c, 0, 1);
    while (c->node_count < node_count) {
        int32_t at = (int32_t)tl_next_random_below(random, (uint64_t)c->edge_count), id = c->node_count++;
        int32_t from = c->from[at], to = c->to[at];
        if (tl_next_random_below(random, 3)) {
            c->to[at] = id;
            add_edge(c, id, to);
        } else {
            add_edge(c, from, id);
            add_edge(c, id, to);
        }
    }
}

// One net a producer, with all that read from it; a conversion costs up to a tenth of what a node does.
static void make_nets(random_choice *c, tl_random *random) {
    int32_t i, k, count = 0;
    for (i = 0; i < c->node_count; i++) {
        tli_choice_net *net = &c->nets[c->desc.net_count];
        uint64_t elements = 10 + tl_next_random_below(random, 500);
        net->producer = i;
        net->readers = c->readers + count;
        for (k = 0; k < c->edge_count; k++)
            if (c->from[k] == i) c->readers[count++] = c->to[k];
        net->reader_count = (int32_t)(c->readers + count - net->readers);
        if (!net->reader_count) continue;
        net->costs = c->prices[c->desc.net_count++];
        for (k = 0; k < SCHEMES * SCHEMES; k++)
            c->prices[net - c->nets][k] = k / SCHEMES == k % SCHEMES ? 0 : elements + tl_next_random_below(random, 50);
    }
}

static random_choice *make_choice(int series_parallel, int32_t node_count, uint64_t seed) {
    static const uint64_t speeds[SCHEMES] = { 100, 180, 210, 330 };
    random_choice *c = (random_choice *)calloc(1, sizeof *c);
    tl_random random;
    int32_t i;
    int k;
    if (!c) exit(1);
    random.state = seed;
    if (series_parallel) make_series_parallel(c, &random, node_count);
    else make_chain(c, node_count);
    for (i = 0; i < node_count; i++) {
        uint64_t cost = 500 + tl_next_random_below(&random, 10000), loss = 1 + tl_next_random_below(&random, 1000);
        for (k = 0; k < SCHEMES; k++) {
            c->costs[i * SCHEMES + k] = cost * 100 / (speeds[k] - 20 + tl_next_random_below(&random, 41));
            c->losses[i * SCHEMES + k] = k == 0 ? 0 : k == 1 ? loss : k == 2 ? 4 * loss : 60 * loss + tl_next_random_below(&random, 500);
        }
    }
    c->desc.node_count = node_count;
    c->desc.scheme_count = SCHEMES;
    c->desc.costs = c->costs;
    c->desc.losses = c->losses;
    c->desc.nets = c->nets;
    make_nets(c, &random);
    return c;
}

static double choose_once(const tli_choice_desc *desc, tli_choice_plan *plan) {
    tl_env env;
    double start = processor_ms();
    memset(&env, 0, sizeof env);
    must(tli_plan_choice(&env, desc, plan), &env, "choice");
    return processor_ms() - start;
}

static void random_graphs(const char *what, int series_parallel, int32_t node_count, int seeds) {
    rows all;
    int seed, k;
    memset(&all, 0, sizeof all);
    printf("%s of %d nodes, 4 schemes: the choice alone\n\n%5s %6s %12s %12s %11s %-12s %10s %10s\n", what, (int)node_count,
           "seed", "limit", "cost", "conversions", "gap", "", "work / 1e6", "ms");
    for (seed = 1; seed <= seeds; seed++) {
        random_choice *c = make_choice(series_parallel, node_count, (uint64_t)seed);
        tli_choice_plan fastest, plan;
        c->desc.loss_limit = TL_UNLIMITED;
        (void)choose_once(&c->desc, &fastest);
        for (k = 0; k < SHARES; k++) {
            double ms;
            c->desc.loss_limit = (uint64_t)((double)fastest.loss * shares[k]);
            ms = choose_once(&c->desc, &plan);
            printf("%5d %5.0f%% %12llu %12d %9.4f %% %-12s %10.1f %10.2f%s\n", seed, 100 * shares[k],
                   (unsigned long long)plan.cost, (int)plan.conversion_count, 100 * plan.gap_ratio,
                   plan.method == TLI_CHOICE_SEARCH ? "search" : "lists", (double)plan.work * 1e-6, ms, plan.proven ? "" : "  not proven");
            fflush(stdout);
            add_row(&all, ms, plan.gap_ratio, plan.proven);
            tli_free_choice_plan(NULL, &plan);
        }
        tli_free_choice_plan(NULL, &fastest);
        free(c);
    }
    printf("\n");
    print_rows(&all, what);
}

int main(void) {
    public_networks();
    random_graphs("random series-parallel graphs", 1, 200, 10);
    random_graphs("random chains", 0, 1000, 4);
    return 0;
}
