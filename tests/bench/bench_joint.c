// What choosing formats and recomputation together is worth: tl_compile beside the orders in which the choice is made first,
// by time or by bytes, and beside the best of the mixes that seven prices of a byte give, each planned by itself.
//
//     bench_joint [MODEL.tlg ...]      without models: those of the reference data, $TL_SHARED/models or ../shared/models
//
// A cell is a network, what f16 does to the time of a node and how much of all loss is allowed, and a budget. Losses are random,
// lognormal, seed fixed. A conversion moves its bytes at a tenth of a byte a unit of cost. Each plan of the sequential orders gets
// as much work as each combination gets in tl_compile; figures are costs of a step beside the time of all calls in f32.
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "timing.h"

enum { PRICES = 7, BUDGETS = 3 };

static const struct { const char *name; double speedup, loss; } regimes[] = {
    { "2 x, loss 10 %", 2, 0.1 }, { "1 x, loss 10 %", 1, 0.1 }, { "1 x, loss 50 %", 1, 0.5 },
    { "0.8 x, free", 0.8, INFINITY }, { "2 x, free", 2, INFINITY },
};

static const double prices[PRICES] = { 0, 0.03, 0.1, 0.3, 1, 3, 30 };
static const double shares[BUDGETS] = { 0.5, 0.3, 0.2 };

typedef struct cell {
    tl_env    env;
    tl_graph  graph;
    tl_device device;
    double   *losses;
    uint64_t *costs;      // priced
    uint64_t  time, bytes;
    double    all_loss;
} cell;

static void must(const cell *c, tl_result result) {
    if (!result) return;
    fprintf(stderr, "bench_joint: %s\n", c->env.error.text);
    exit(1);
}

static uint64_t random_state = 88172645463325252u;

static double uniform(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }

static uint64_t time_of(const cell *c, int32_t id) { return c->graph.nodes[id].fwd_cost + c->graph.nodes[id].bwd_cost; }

static uint64_t bytes_of(const cell *c, int32_t id) {
    const tl_node *node = &c->graph.nodes[id];
    uint64_t sum = 0;
    int32_t k;
    for (k = node->first_output; k < node->first_output + node->output_count; k++) sum += c->graph.outputs[k].bytes;
    return sum;
}

static void open_cell(cell *c, const char *path) {
    size_t places;
    int32_t id, k;
    memset(c, 0, sizeof *c);
    must(c, tl_read_graph(&c->env, path, &c->graph));
    c->device.bytes_per_second = c->device.codec_bytes_per_second = 100000000;
    places = (size_t)c->graph.node_count * TL_SCHEME_COUNT;
    c->losses = (double *)malloc(places * sizeof *c->losses);
    c->costs = (uint64_t *)malloc(places * sizeof *c->costs);
    for (id = 0; id < c->graph.node_count; id++) {
        double loss = exp(2 * normal());
        for (k = 0; k < TL_SCHEME_COUNT; k++) c->losses[id * TL_SCHEME_COUNT + k] = NAN;
        c->losses[id * TL_SCHEME_COUNT] = 0;
        c->losses[id * TL_SCHEME_COUNT + TL_SCHEME_F16] = loss;
        if (!c->graph.nodes[id].is_input) c->all_loss += loss;
        c->time += time_of(c, id);
        c->bytes += bytes_of(c, id);
    }
}

static void close_cell(cell *c) {
    free(c->losses);
    free(c->costs);
    tl_free_graph(&c->env, &c->graph);
}

// The times of f32 and f16, and a price of each byte that a node makes.
static void price_cell(cell *c, double speedup, double price) {
    int32_t id, k;
    for (id = 0; id < c->graph.node_count; id++) {
        double unit = price * (double)c->time / (double)c->bytes, bytes = (double)bytes_of(c, id);
        for (k = 0; k < TL_SCHEME_COUNT; k++) c->costs[id * TL_SCHEME_COUNT + k] = TL_FORBIDDEN;
        c->costs[id * TL_SCHEME_COUNT] = (uint64_t)ceil((double)time_of(c, id) + unit * bytes);
        c->costs[id * TL_SCHEME_COUNT + TL_SCHEME_F16] = (uint64_t)ceil((double)time_of(c, id) / speedup + unit * bytes / 2);
    }
}

static tl_precision_desc ask(cell *c, double loss) {
    tl_precision_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = &c->graph;
    desc.device = &c->device;
    desc.training = 1;
    desc.loss_limit = loss * c->all_loss;
    desc.losses = c->losses;
    desc.costs = c->costs;
    desc.schemes = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_F16;
    desc.allow_sensitive = desc.allow_unknown = desc.allow_f16 = desc.any_result = 1;
    return desc;
}

// The cost of a mix, planned by itself; infinite = none fits.
static double plan_mix(cell *c, const tl_precision_plan *mix, double speedup, uint64_t budget) {
    tl_precision_node *nodes = (tl_precision_node *)malloc((size_t)mix->node_count * sizeof *nodes);
    tl_precision_plan unpriced = *mix;
    tl_precision_graph applied;
    tl_apply_desc apply;
    tl_remat_desc remat;
    tl_plan plan;
    double cost = INFINITY;
    int32_t i;
    memset(&apply, 0, sizeof apply);
    memset(&remat, 0, sizeof remat);
    memcpy(nodes, mix->nodes, (size_t)mix->node_count * sizeof *nodes);
    for (i = 0; i < mix->node_count; i++) nodes[i].speedup = nodes[i].scheme == TL_SCHEME_F16 ? speedup : 1;
    unpriced.nodes = nodes;
    apply.graph = &c->graph;
    apply.plan = &unpriced;
    apply.device = &c->device;
    apply.training = apply.any_result = 1;
    must(c, tl_apply_precision(&c->env, &apply, &applied));
    remat.graph = &applied.graph;
    remat.budget_bytes = budget;
    remat.work_limit = 15000000 + 4000 * (uint64_t)c->graph.node_count;
    if (!tl_plan_remat(&c->env, &remat, &plan, NULL)) {
        cost = (double)plan.cost;
        tl_free_plan(&c->env, &plan);
    }
    tl_free_precision_graph(&c->env, &applied);
    free(nodes);
    return cost;
}

typedef struct sums {
    int    cells, time_none, none, worse;       // time first finds no plan where there is one; nobody finds one; compile is worse
    double gain, most_gain, worst, time_gain, most_time_gain;
    int    time_cells;
} sums;

static void print_cost(double cost, uint64_t time) {
    if (cost < INFINITY) printf(" %10.4f", cost / (double)time);
    else printf(" %10s", "none");
}

static void measure(cell *c, const char *name, size_t regime, double share, uint64_t peak, const tl_precision_plan *mixes, sums *all) {
    tl_strategy strategy = tl_with_gradient(tl_with_memory(tl_with_mode(tl_strategy_new(), TL_MODE_LAZY), TL_MEMORY_POOLED),
                                            tl_gradient_checkpointed(0));
    uint64_t budget = (uint64_t)((double)peak * share);
    double first = INFINITY, bytes_first = INFINITY, best = INFINITY, sequential, ours = INFINITY, begin, bound = 0;
    tl_precision_desc precision;
    tl_compile_desc desc;
    tl_compiled_plan compiled;
    int k;
    for (k = 0; k < PRICES; k++) {
        double cost = plan_mix(c, &mixes[k], regimes[regime].speedup, budget);
        if (!k) first = cost;
        bytes_first = cost;
        if (cost < best) best = cost;
    }
    sequential = first < bytes_first ? first : bytes_first;
    price_cell(c, regimes[regime].speedup, 0);
    precision = ask(c, regimes[regime].loss);
    precision.graph = NULL;
    memset(&desc, 0, sizeof desc);
    strategy.precision = TL_PRECISION_MIXED;
    desc.graph = &c->graph;
    desc.strategy = &strategy;
    desc.device = &c->device;
    desc.budget_bytes = budget;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    desc.precision = &precision;
    begin = processor_ms();
    if (!tl_compile(&c->env, &desc, &compiled)) {
        ours = (double)compiled.choice.cost;
        bound = (double)compiled.bound_cost;
    }
    begin = processor_ms() - begin;
    tl_free_compiled_plan(&c->env, &compiled);
    printf("%-16s %-15s %3.0f %%", name, regimes[regime].name, 100 * share);
    print_cost(first, c->time);
    print_cost(bytes_first, c->time);
    print_cost(best, c->time);
    print_cost(ours, c->time);
    printf(" %8.2f %8.0f\n", bound > 0 ? 100 * (ours - bound) / bound : 0.0, begin);
    fflush(stdout);
    all->cells++;
    all->time_none += first == INFINITY && ours < INFINITY;
    if (ours == INFINITY && best == INFINITY) { all->none++; return; }
    all->worse += ours > sequential;
    if (sequential < INFINITY && ours / sequential > all->worst) all->worst = ours / sequential;
    if (sequential < INFINITY) {
        double gain = 1 - ours / sequential;
        all->gain += gain;
        if (gain > all->most_gain) all->most_gain = gain;
    }
    if (first < INFINITY) {
        double gain = 1 - ours / first;
        all->time_cells++;
        all->time_gain += gain;
        if (gain > all->most_time_gain) all->most_time_gain = gain;
    }
}

static void one_network(const char *path, const char *name, sums *all) {
    cell c;
    tl_plan keep_all;
    size_t regime;
    int k, b;
    open_cell(&c, path);
    must(&c, tl_plan_keep_all(&c.env, &c.graph, 0, &keep_all));
    for (regime = 0; regime < sizeof regimes / sizeof regimes[0]; regime++) {
        tl_precision_plan mixes[PRICES];
        for (k = 0; k < PRICES; k++) {
            tl_precision_desc desc;
            price_cell(&c, regimes[regime].speedup, prices[k]);
            desc = ask(&c, regimes[regime].loss);
            desc.work_limit = 50000000;
            must(&c, tl_plan_precision(&c.env, &desc, &mixes[k]));
        }
        for (b = 0; b < BUDGETS; b++) measure(&c, name, regime, shares[b], keep_all.peak_bytes, mixes, all);
        for (k = 0; k < PRICES; k++) tl_free_precision_plan(&c.env, &mixes[k]);
    }
    tl_free_plan(&c.env, &keep_all);
    close_cell(&c);
}

int main(int argc, char **argv) {
    static const char *const names[] = { "encoder2", "gpt2_small", "mobilenet_v2", "resnet18", "unet", "vgg16" };
    const char *root = getenv("TL_SHARED") ? getenv("TL_SHARED") : "../shared";
    sums all;
    size_t i;
    memset(&all, 0, sizeof all);
    printf("%-16s %-15s %5s %10s %10s %10s %10s %8s %8s\n", "network", "f16", "bytes", "time first", "bytes 1st", "best mix",
           "compiled", "gap %", "ms");
    for (i = 1; i < (size_t)argc; i++) {
        const char *slash = strrchr(argv[i], '/');
        one_network(argv[i], slash ? slash + 1 : argv[i], &all);
    }
    for (i = 0; argc < 2 && i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        FILE *file;
        snprintf(path, sizeof path, "%s/models/%s.tlg", root, names[i]);
        file = fopen(path, "rb");
        if (!file) { printf("%-16s no reference data\n", names[i]); continue; }
        fclose(file);
        one_network(path, names[i], &all);
    }
    if (!all.cells) return 0;
    printf("%d cells; no plan by anybody in %d; time first finds none where compile does in %d\n", all.cells, all.none, all.time_none);
    printf("compile dearer than the better of the two orders in %d (at worst %.4f times); cheaper by %.2f %% on average, %.2f %% at most\n",
           all.worse, all.worst, 100 * all.gain / (all.cells - all.none ? all.cells - all.none : 1), 100 * all.most_gain);
    printf("beside time first, where that finds a plan: %.2f %% on average, %.2f %% at most\n",
           100 * all.time_gain / (all.time_cells ? all.time_cells : 1), 100 * all.most_time_gain);
    return 0;
}
