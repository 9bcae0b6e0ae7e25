// Random graphs of the sizes and shapes that users plan, from 40 to 5000 nodes: what the properties of planners and the
// benches run on. A shape gives the structure; the extras (several outputs, saved tensors, in place, frozen parts) are drawn
// for each graph. Include after the implementation.
#ifndef TESTS_PLANNER_GRAPHS_H
#define TESTS_PLANNER_GRAPHS_H

#include "random_graph.h"
#include <stdint.h>
#include <string.h>

#define PLANNER_SHAPES(X) X(LAYERED, "layered") X(RESIDUAL, "residual") X(ENCODER, "encoder") \
    X(EQUAL_CHAIN, "equal chain") X(CHAIN, "unequal chain") X(WILD, "wild")

#define PLANNER_ENUM(id, name) PLANNER_##id,
#define PLANNER_NAME(id, name) name,
typedef enum planner_shape { PLANNER_SHAPES(PLANNER_ENUM) PLANNER_SHAPE_COUNT } planner_shape;
static const char *const planner_shape_names[] = { PLANNER_SHAPES(PLANNER_NAME) };

enum { PLANNER_LEAST = 40, PLANNER_MOST = 5000, PLANNER_WIDTH = 6 };

// A graph under construction. Percentages of the nodes that can have it.
typedef struct planner_build {
    tl_env    *env;
    tl_random *random;
    tl_graph  *graph;
    tl_result  result;          // of the first node that failed; later ones are not added
    int32_t    node_count;      // to be reached
    int        several, saved, in_place, scratch, results, odd;     // odd: bytes that are no multiple of 64
    int32_t    frozen_until;    // nodes below have no backward
} planner_build;

static inline int planner_more(const planner_build *b) { return !b->result && b->graph->node_count < b->node_count; }

// Whether the node may write its first output over an input: as many bytes, and not those of a graph input.
static inline int planner_fits_in_place(const tl_graph *graph, tl_tensor from, uint64_t bytes) {
    const tl_node *source = &graph->nodes[from.node];
    return !source->is_input && graph->outputs[source->first_output + from.output].bytes == bytes;
}

// Add a node with the extras of this graph; returns its first output.
static inline tl_tensor planner_node(planner_build *b, const char *op, const char *needs, const tl_tensor *inputs,
                                     int32_t input_count, uint64_t bytes, uint64_t cost) {
    int parametric = !strcmp(needs, "in");
    uint64_t outputs[3];
    tl_tensor made;
    tl_node_desc desc;
    memset(&made, 0, sizeof made);
    memset(&desc, 0, sizeof desc);
    if (b->result) return made;
    if (b->odd) bytes += tl_next_random_below(b->random, 64);
    outputs[0] = bytes ? bytes : 1;
    outputs[1] = outputs[2] = outputs[0] / 8;
    desc.op = op;
    desc.needs = needs;
    desc.inputs = inputs;
    desc.input_count = input_count;
    desc.output_bytes = outputs;
    desc.output_count = random_chance(b->random, b->several) ? random_count(b->random, 2, 3) : 1;
    desc.fwd_cost = cost;
    desc.bwd_cost = parametric ? 2 * cost : cost;
    if (random_chance(b->random, b->saved)) desc.saved_bytes = outputs[0] / (uint64_t)random_count(b->random, 1, 8);
    if (parametric && random_chance(b->random, b->scratch)) desc.fwork_bytes = outputs[0] / 2;
    if (parametric && random_chance(b->random, b->scratch)) desc.bwork_bytes = outputs[0];
    if (random_chance(b->random, b->results)) desc.keep = 1;
    if (input_count && random_chance(b->random, b->in_place) && planner_fits_in_place(b->graph, inputs[0], outputs[0]))
        desc.inplace = 1;
    if (b->graph->node_count < b->frozen_until) {
        desc.no_grad = 1;
        desc.needs = NULL;
        desc.bwd_cost = desc.saved_bytes = desc.bwork_bytes = 0;
    }
    b->result = tl_add_node(b->env, b->graph, &desc, &made.node);
    return made;
}

static inline tl_tensor planner_one(planner_build *b, const char *op, const char *needs, tl_tensor from, uint64_t bytes,
                                    uint64_t cost) {
    return planner_node(b, op, needs, &from, 1, bytes, cost);
}

static inline tl_tensor planner_two(planner_build *b, const char *op, const char *needs, tl_tensor from, tl_tensor other,
                                    uint64_t bytes, uint64_t cost) {
    tl_tensor inputs[2];
    inputs[0] = from;
    inputs[1] = other;
    return planner_node(b, op, needs, inputs, 2, bytes, cost);
}

// Layers of a few nodes, each of which reads some of the last layer and now and then one much further up.
static inline void planner_layered(planner_build *b, tl_tensor at) {
    tl_tensor last[PLANNER_WIDTH], next[PLANNER_WIDTH], inputs[PLANNER_WIDTH + 1];
    int32_t count = 1, width, k, n, most = random_count(b->random, 2, PLANNER_WIDTH), back = random_count(b->random, 0, 15);
    last[0] = at;
    while (planner_more(b)) {
        width = b->graph->node_count + most >= b->node_count ? 1 : random_count(b->random, 1, most);
        for (k = 0; k < width && !b->result; k++) {
            uint64_t bytes = (uint64_t)random_count(b->random, 1, 16) * 4096;
            int dear = random_chance(b->random, 50);
            n = 0;
            while (n < count && (!n || width == 1 || random_chance(b->random, 40))) { inputs[n] = last[(k + n) % count]; n++; }
            if (random_chance(b->random, back)) {
                inputs[n].node = random_count(b->random, 0, b->graph->node_count - 1);
                inputs[n++].output = 0;
            }
            next[k] = planner_node(b, dear ? "conv" : "relu", dear ? "in" : "out", inputs, n, bytes,
                                   bytes / 64 * (uint64_t)(dear ? random_count(b->random, 8, 128) : 1));
        }
        memcpy(last, next, sizeof last);
        count = width;
    }
}

// Blocks of two convolutions around a skip; every few blocks the bytes halve and the skip gets a convolution of its own.
static inline void planner_residual(planner_build *b, tl_tensor at) {
    int32_t period = random_count(b->random, 2, 12), block;
    uint64_t bytes = 1 << 18, work = (uint64_t)random_count(b->random, 20, 400);
    for (block = 1; planner_more(b); block++) {
        int halves = block % period == 0 && bytes > 4096;
        tl_tensor x, skip = at;
        if (halves) bytes /= 2;
        x = planner_one(b, "conv", "in", at, bytes, bytes / 64 * work);
        x = planner_one(b, "bn", "in", x, bytes, bytes / 64);
        x = planner_one(b, "relu", "out", x, bytes, bytes / 64);
        x = planner_one(b, "conv", "in", x, bytes, bytes / 64 * work);
        x = planner_one(b, "bn", "in", x, bytes, bytes / 64);
        if (halves || block == 1) skip = planner_one(b, "conv", "in", at, bytes, bytes / 64 * (1 + work / 9));
        x = planner_two(b, "add", "none", x, skip, bytes, bytes / 64);
        at = planner_one(b, "relu", "out", x, bytes, bytes / 64);
    }
}

// Transformer layers. heads: bytes of attention weights, more or fewer than those of a row of activations.
static inline void planner_encoder(planner_build *b, tl_tensor at) {
    uint64_t row = (uint64_t)random_count(b->random, 1, 16) * 8192;
    uint64_t heads = row * (uint64_t)random_count(b->random, 1, 6) / 2;
    uint64_t work = (uint64_t)random_count(b->random, 20, 300);
    while (planner_more(b)) {
        tl_tensor n, q, k, v, x;
        n = planner_one(b, "layernorm", "in", at, row, row / 32);
        q = planner_one(b, "linear", "in", n, row, row / 64 * work);
        k = planner_one(b, "linear", "in", n, row, row / 64 * work);
        v = planner_one(b, "linear", "in", n, row, row / 64 * work);
        x = planner_two(b, "bmm", "in", q, k, heads, heads / 64 * work);
        x = planner_one(b, "softmax", "out", x, heads, heads / 16);
        x = planner_two(b, "bmm", "in", x, v, row, heads / 64 * work);
        x = planner_one(b, "linear", "in", x, row, row / 64 * work);
        at = planner_two(b, "add", "none", at, x, row, row / 64);
        n = planner_one(b, "layernorm", "in", at, row, row / 32);
        x = planner_one(b, "linear", "in", n, 4 * row, row / 16 * work);
        x = planner_one(b, "gelu", "in", x, 4 * row, row / 4);
        x = planner_one(b, "linear", "in", x, row, row / 16 * work);
        at = planner_two(b, "add", "none", at, x, row, row / 64);
    }
}

static inline void planner_chain(planner_build *b, tl_tensor at, int equal) {
    const char *needs = random_chance(b->random, 60) ? "in" : "out";
    uint64_t bytes = 4096, cost = 1000;
    while (planner_more(b)) {
        if (!equal) {
            bytes = (uint64_t)random_count(b->random, 1, 64) * 1024;
            cost = (uint64_t)random_count(b->random, 10, 4000);
            needs = random_chance(b->random, 50) ? "in" : "out";
        }
        at = planner_one(b, "layer", needs, at, bytes, cost);
    }
}

static inline void planner_draw_extras(planner_build *b, planner_shape shape) {
    tl_random *random = b->random;
    if (shape == PLANNER_EQUAL_CHAIN || random_chance(random, 30)) return;
    b->odd = random_chance(random, 50);
    if (random_chance(random, 40)) b->several = random_count(random, 2, 20);
    if (random_chance(random, 40)) b->saved = random_count(random, 2, 30);
    if (random_chance(random, 40)) b->in_place = random_count(random, 20, 90);
    if (random_chance(random, 40)) b->scratch = random_count(random, 5, 40);
    if (random_chance(random, 15)) b->results = 1;
    if (random_chance(random, 20)) b->frozen_until = random_count(random, 1, b->node_count / 2);
}

// Make a graph of about node_count nodes; release it with tl_free_graph.
static inline tl_result planner_graph(tl_env *env, tl_random *random, planner_shape shape, int32_t node_count, tl_graph *graph) {
    planner_build b;
    uint64_t bytes = (uint64_t)random_count(random, 1, 8) * 4096;
    tl_tensor input;
    tl_node_desc desc;
    memset(&b, 0, sizeof b);
    memset(&desc, 0, sizeof desc);
    memset(&input, 0, sizeof input);
    b.env = env;
    b.random = random;
    b.graph = graph;
    b.node_count = node_count;
    planner_draw_extras(&b, shape);
    desc.op = "input";
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    tl_init_graph(graph);
    b.result = tl_add_node(env, graph, &desc, NULL);
    switch (shape) {
    case PLANNER_LAYERED: planner_layered(&b, input); break;
    case PLANNER_RESIDUAL: planner_residual(&b, input); break;
    case PLANNER_ENCODER: planner_encoder(&b, input); break;
    case PLANNER_EQUAL_CHAIN: planner_chain(&b, input, 1); break;
    case PLANNER_CHAIN: planner_chain(&b, input, 0); break;
    case PLANNER_WILD:
        while (planner_more(&b)) b.result = random_node(env, random, 0, graph);
        break;
    case PLANNER_SHAPE_COUNT: break;
    }
    if (b.result) tl_free_graph(env, graph);
    return b.result;
}

// A number of nodes between the ends above, few of them large: half below 130, one in seventeen above 2500.
static inline int32_t planner_size(tl_random *random) {
    int32_t a = random_count(random, 0, 6), b = random_count(random, 0, 6), least = PLANNER_LEAST << (a < b ? a : b);
    int32_t size = random_count(random, least, 2 * least - 1);
    return size > PLANNER_MOST ? PLANNER_MOST : size;
}

#endif
