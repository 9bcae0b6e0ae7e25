// Random choices of schemes, small and large, and the best of a small one by trying them all: no line is shared with the
// planner. Include after the implementation.
#ifndef TESTS_BRUTE_CHOICE_H
#define TESTS_BRUTE_CHOICE_H

#include <stdlib.h>
#include <string.h>

#define BC_NODES 8
#define BC_NETS 16
#define BC_READERS 6
#define BC_SCHEMES 16

// A desc and the arrays that it points at.
typedef struct choice_case {
    tli_choice_desc desc;
    uint64_t costs[BC_NODES * BC_SCHEMES], losses[BC_NODES * BC_SCHEMES];
    int32_t  formats[BC_SCHEMES], readers[BC_NETS * BC_READERS];
    uint64_t prices[BC_NETS * BC_SCHEMES * BC_SCHEMES];
    tli_choice_net nets[BC_NETS];
} choice_case;

static inline uint64_t bc_below(tl_random *r, uint64_t limit) { return tl_next_random_below(r, limit); }

// Up to `most_nodes` nodes and most_schemes schemes, nets that may join anything with anything.
static inline void bc_fill(choice_case *c, tl_random *r, int most_nodes, int most_schemes) {
    tli_choice_desc *d = &c->desc;
    static const uint64_t sizes[] = { 3, 30, 1000, 1000000, (uint64_t)1 << 50 };
    uint64_t cost = sizes[bc_below(r, 5)], loss = sizes[bc_below(r, 5)], price = sizes[bc_below(r, 3)], forbid = bc_below(r, 6);
    int i, k, n, f;
    memset(c, 0, sizeof *c);
    d->node_count = 1 + (int32_t)bc_below(r, (uint64_t)most_nodes);
    d->scheme_count = 1 + (int32_t)bc_below(r, (uint64_t)most_schemes);
    d->format_count = bc_below(r, 3) ? 1 + (int32_t)bc_below(r, d->scheme_count > 8 ? 8 : (uint64_t)d->scheme_count) : 0;
    for (k = 0; k < d->scheme_count && d->format_count; k++) c->formats[k] = (int32_t)bc_below(r, (uint64_t)d->format_count);
    if (d->format_count) d->formats = c->formats;
    f = d->format_count ? d->format_count : d->scheme_count;
    for (i = 0; i < d->node_count * d->scheme_count; i++) {
        c->costs[i] = forbid && !bc_below(r, 3 + 2 * forbid) ? TL_FORBIDDEN : bc_below(r, cost + 1);
        c->losses[i] = bc_below(r, loss + 1);
    }
    d->net_count = (int32_t)bc_below(r, BC_NETS);
    for (n = 0; n < d->net_count; n++) {
        c->nets[n].producer = (int32_t)bc_below(r, (uint64_t)d->node_count);
        c->nets[n].reader_count = (int32_t)bc_below(r, bc_below(r, 2) ? 3 : BC_READERS + 1);
        c->nets[n].readers = c->readers + n * BC_READERS;
        c->nets[n].costs = c->prices + n * BC_SCHEMES * BC_SCHEMES;
        for (i = 0; i < c->nets[n].reader_count; i++)
            c->readers[n * BC_READERS + i] = (int32_t)bc_below(r, (uint64_t)d->node_count);
        for (i = 0; i < f * f; i++)
            c->prices[n * BC_SCHEMES * BC_SCHEMES + i] = forbid > 1 && !bc_below(r, 12) ? TL_FORBIDDEN : bc_below(r, price + 1);
    }
    d->costs = c->costs;
    d->losses = c->losses;
    d->nets = c->nets;
}

// 1, and what a choice costs and loses; 0 = it is forbidden.
static inline int bc_price(const tli_choice_desc *d, const uint8_t *schemes, uint64_t *cost, uint64_t *loss) {
    int f = d->formats ? d->format_count : d->scheme_count, i, n, to;
    *cost = *loss = 0;
    for (i = 0; i < d->node_count; i++) {
        if (d->costs[i * d->scheme_count + schemes[i]] == TL_FORBIDDEN) return 0;
        *cost += d->costs[i * d->scheme_count + schemes[i]];
        *loss += d->losses[i * d->scheme_count + schemes[i]];
    }
    for (n = 0; n < d->net_count; n++) {
        int from = d->formats ? d->formats[schemes[d->nets[n].producer]] : schemes[d->nets[n].producer];
        for (to = 0; to < f; to++) {
            int wanted = 0;
            for (i = 0; i < d->nets[n].reader_count; i++) {
                int s = schemes[d->nets[n].readers[i]];
                wanted |= (d->formats ? d->formats[s] : s) == to;
            }
            if (!wanted || to == from) continue;
            if (d->nets[n].costs[from * f + to] == TL_FORBIDDEN) return 0;
            *cost += d->nets[n].costs[from * f + to];
        }
    }
    return 1;
}

typedef struct bc_point { uint64_t loss, cost; } bc_point;

typedef struct bc_front { bc_point *points; int count; } bc_front;   // loss rises, cost falls

static inline int bc_by_loss(const void *a, const void *b) {
    const bc_point *x = (const bc_point *)a, *y = (const bc_point *)b;
    if (x->loss != y->loss) return x->loss < y->loss ? -1 : 1;
    return x->cost < y->cost ? -1 : x->cost > y->cost;
}

// Every choice there is: the points between which there is a choice. free() the points.
static inline bc_front bc_solve(const tli_choice_desc *d) {
    uint8_t schemes[BC_NODES] = { 0 };
    bc_front front = { NULL, 0 };
    size_t all = 1, count = 0, i;
    int at;
    for (at = 0; at < d->node_count; at++) all *= (size_t)d->scheme_count;
    front.points = (bc_point *)malloc(all * sizeof *front.points);
    for (i = 0; i < all; i++) {
        if (bc_price(d, schemes, &front.points[count].cost, &front.points[count].loss)) count++;
        for (at = 0; at < d->node_count && ++schemes[at] == d->scheme_count; at++) schemes[at] = 0;
    }
    qsort(front.points, count, sizeof *front.points, bc_by_loss);
    for (i = 0; i < count; i++)
        if (!front.count || front.points[i].cost < front.points[front.count - 1].cost)
            front.points[front.count++] = front.points[i];
    return front;
}

// -- large ones: networks in the schemes that there are --

typedef enum choice_shape { CHOICE_CHAIN, CHOICE_SERIES_PARALLEL, CHOICE_RANDOM, CHOICE_SHAPE_COUNT } choice_shape;

enum { LARGE_SCHEMES = TL_SCHEME_FAKE + 1 };   // with more of them these would be other choices

typedef struct large_choice {
    tli_choice_desc desc;
    uint64_t *costs, *losses, *prices;
    tli_choice_net *nets;
    int32_t *sources, *targets, *readers; int edge_count;
    int32_t formats[LARGE_SCHEMES];
} large_choice;

#define LARGE_LIMIT ((uint64_t)1 << 40)   // a loss limit in units of the losses

static inline void lc_add_edge(large_choice *c, int source, int target) {
    c->sources[c->edge_count] = source;
    c->targets[c->edge_count++] = target;
}

// Series-parallel: an edge becomes two in series with a node between them, or gets a node beside it. Random: one to three
// inputs from anywhere before, which is as wide as graphs get.
static inline void lc_connect(large_choice *c, choice_shape shape, int nodes, tl_random *r) {
    int i, k, at = 2;
    c->sources = (int32_t *)calloc((size_t)nodes * 3 + 3, sizeof *c->sources);
    c->targets = (int32_t *)calloc((size_t)nodes * 3 + 3, sizeof *c->targets);
    if (shape == CHOICE_CHAIN) for (i = 1; i < nodes; i++) lc_add_edge(c, i - 1, i);
    if (shape == CHOICE_RANDOM)
        for (i = 1; i < nodes; i++)
            for (k = 1 + (int)tl_next_random_below(r, 3); k > 0; k--)
                lc_add_edge(c, (int)tl_next_random_below(r, (uint64_t)i), i);
    if (shape != CHOICE_SERIES_PARALLEL) return;
    lc_add_edge(c, 0, 1);
    for (; at < nodes; at++) {
        int edge = (int)tl_next_random_below(r, (uint64_t)c->edge_count), source = c->sources[edge], target = c->targets[edge];
        if (tl_next_random_below(r, 3)) c->targets[edge] = at;
        else lc_add_edge(c, source, at);
        lc_add_edge(c, at, target);
    }
}

static inline void lc_free(large_choice *c) {
    free(c->costs); free(c->losses); free(c->prices); free(c->nets);
    free(c->sources); free(c->targets); free(c->readers);
}

// The schemes of TL_SCHEMES as far as fake: losses like noise powers, over six decades, of nodes that count differently; times like those
// of kernels from bound by memory to bound by arithmetic; conversions move the tensor. limit_ratio: of what everything in
// i8 loses, squared, so that the limits spread.
static inline void lc_init(large_choice *c, choice_shape shape, int nodes, uint64_t seed, double limit_ratio) {
    static const int32_t formats[LARGE_SCHEMES] = { 0, 1, 2, 3, 4, 4, 3, 0, 0 }, bytes[TL_FORMAT_COUNT] = { 4, 2, 2, 2, 1 };
    static const double losses[LARGE_SCHEMES] = { 0, 1e-7, 1e-5, 1e-9, 1e-4, 5e-5, 2e-5, 1.5e-4, 1e-4 };
    static const double speedups[LARGE_SCHEMES] = { 1, 1.8, 1.8, 1.9, 3.5, 3.3, 2.2, 1.6, 0.9 };
    tl_random r;
    double *weights = (double *)malloc((size_t)nodes * sizeof *weights), limit = 0;
    size_t n = (size_t)nodes, s = LARGE_SCHEMES, i, k;
    int at, reader = 0, edge;
    memset(c, 0, sizeof *c);
    r.state = seed;
    lc_connect(c, shape, nodes, &r);
    c->costs = (uint64_t *)malloc(n * s * sizeof *c->costs);
    c->losses = (uint64_t *)malloc(n * s * sizeof *c->losses);
    c->prices = (uint64_t *)malloc(n * 25 * sizeof *c->prices);
    c->nets = (tli_choice_net *)calloc(n, sizeof *c->nets);
    c->readers = (int32_t *)malloc(((size_t)c->edge_count + 1) * sizeof *c->readers);
    for (i = 0; i < n; i++) {
        uint64_t elements = 1000 + tl_next_random_below(&r, 1000000);
        double time = (double)elements * (1 + 20 * tl_next_random_ratio(&r));
        weights[i] = 2 * tl_next_random_ratio(&r);
        limit += weights[i] * 1e-4;
        for (k = 0; k < s; k++)
            c->costs[i * s + k] = (uint64_t)(time / speedups[k] * (0.8 + 0.4 * tl_next_random_ratio(&r)));
        for (k = 0; k < 25; k++) c->prices[i * 25 + k] = elements * (uint64_t)(bytes[k / 5] + bytes[k % 5]) / 8;
    }
    limit *= limit_ratio * limit_ratio;
    for (i = 0; i < n * s; i++)
        c->losses[i] = i % s ? (uint64_t)(weights[i / s] * losses[i % s] / limit * (double)LARGE_LIMIT) + 1 : 0;
    for (at = 0; at < nodes; at++) {
        tli_choice_net *net = &c->nets[c->desc.net_count];
        net->producer = at;
        net->readers = c->readers + reader;
        net->costs = c->prices + at * 25;
        for (edge = 0; edge < c->edge_count; edge++)
            if (c->sources[edge] == at) { c->readers[reader++] = c->targets[edge]; net->reader_count++; }
        if (net->reader_count) c->desc.net_count++;
        else memset(net, 0, sizeof *net);
    }
    memcpy(c->formats, formats, sizeof formats);
    c->desc.node_count = nodes;
    c->desc.scheme_count = LARGE_SCHEMES;
    c->desc.format_count = TL_FORMAT_COUNT;
    c->desc.formats = c->formats;
    c->desc.costs = c->costs;
    c->desc.losses = c->losses;
    c->desc.nets = c->nets;
    c->desc.loss_limit = LARGE_LIMIT;
    free(weights);
}

#endif
