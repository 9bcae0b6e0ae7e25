// Graphs of a given shape and any number of nodes, up to the largest that the planner takes: what grows faster than the
// graph shows on one of them.
#ifndef TESTS_SHAPE_GRAPH_H
#define TESTS_SHAPE_GRAPH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "layered_graph.h"

// id, name, what it is
#define SHAPES(X)                                                                                    \
    X(SHAPE_EQUAL,    "equal",    "a chain of equal layers")                                         \
    X(SHAPE_CHAIN,    "chain",    "a chain of unequal layers")                                       \
    X(SHAPE_STAR,     "star",     "one node, many that read it, one that reads these")               \
    X(SHAPE_LAYERED,  "layered",  "layers of one to four nodes, as networks look")                   \
    X(SHAPE_WIDE,     "wide",     "layers of the square root of the nodes, each reads three below")  \
    X(SHAPE_RESIDUAL, "residual", "blocks of three nodes and a sum with the block's input")          \
    X(SHAPE_U,        "u",        "a chain in which the second half reads the first in reverse")     \
    X(SHAPE_RANDOM,   "random",   "each node reads up to three of all nodes before it")              \
    X(SHAPE_OUTPUTS,  "outputs",  "one node with as many outputs, and one that reads all of them")

#define SHAPE_ID(id, name, help) id,
typedef enum shape { SHAPES(SHAPE_ID) SHAPE_COUNT } shape;
#undef SHAPE_ID

static inline const char *name_shape(shape kind) {
#define SHAPE_NAME(id, name, help) name,
    static const char *const names[] = { SHAPES(SHAPE_NAME) };
#undef SHAPE_NAME
    return names[kind];
}

// Inputs of node `id` of `count` by ids, into inputs[]; returns how many. inputs has room for `count`.
static inline int32_t list_shape_inputs(tl_random *random, shape kind, int32_t id, int32_t count, int32_t *inputs) {
    int32_t width = 1, first, k, made = 0;
    switch (kind) {
    case SHAPE_STAR:
        if (id == count - 1) {
            for (k = 2; k < count - 1; k++) inputs[made++] = k;
            if (!made) inputs[made++] = id - 1;
            return made;
        }
        inputs[0] = id > 1 ? 1 : 0;
        return 1;
    case SHAPE_WIDE:
        while ((width + 1) * (width + 1) <= count) width++;
        first = (id - 1) / width * width + 1 - width;   // of the layer below; before it there is the input
        if (first < 1) { inputs[0] = 0; return 1; }
        inputs[made++] = first + (id - 1) % width;
        for (k = 0; k < 2; k++) inputs[made++] = first + layered_below(random, width);
        return made;
    case SHAPE_RESIDUAL:
        inputs[made++] = id - 1;
        if (id > 4 && id % 4 == 0) inputs[made++] = id - 4;
        return made;
    case SHAPE_U:
        inputs[made++] = id - 1;
        if (id > count / 2 + 1 && count - id > 0) inputs[made++] = count - id;
        return made;
    case SHAPE_RANDOM:
        inputs[made++] = id - 1;
        for (k = layered_below(random, 3); k > 0; k--) inputs[made++] = layered_below(random, id);
        return made;
    case SHAPE_EQUAL: case SHAPE_CHAIN: case SHAPE_LAYERED: case SHAPE_OUTPUTS: case SHAPE_COUNT: break;
    }
    inputs[0] = id - 1;
    return 1;
}

// One node with count outputs, and one that reads them all.
static inline tl_result outputs_graph(tl_env *env, int32_t count, tl_graph *graph) {
    uint64_t *bytes = (uint64_t *)malloc((size_t)count * sizeof *bytes);
    tl_tensor *tensors = (tl_tensor *)calloc((size_t)count, sizeof *tensors);
    tl_result result = bytes && tensors ? TL_OK : TL_ERROR_NO_MEMORY;
    tl_node_desc desc;
    int32_t k;
    for (k = 0; k < count && !result; k++) {
        bytes[k] = 64;
        tensors[k].node = 1;
        tensors[k].output = k;
    }
    tl_init_graph(graph);
    for (k = 0; k < 3 && !result; k++) {
        static const tl_tensor input = { 0, 0 };
        memset(&desc, 0, sizeof desc);
        desc.op = k ? "op" : "input";
        desc.inputs = k == 2 ? tensors : &input;
        desc.input_count = k == 2 ? count : k;
        desc.output_bytes = bytes;
        desc.output_count = k == 1 ? count : 1;
        desc.needs = k ? "in" : NULL;
        desc.fwd_cost = desc.bwd_cost = k ? 100 : 0;
        result = tl_add_node(env, graph, &desc, NULL);
    }
    free(bytes);
    free(tensors);
    if (result) tl_free_graph(env, graph);
    return result;
}

// Make a graph of node_count nodes (4 or more), the first of them an input; release it with tl_free_graph.
static inline tl_result shape_graph(tl_env *env, tl_random *random, shape kind, int32_t node_count, tl_graph *graph) {
    int32_t *inputs = (int32_t *)malloc((size_t)node_count * sizeof *inputs);
    tl_tensor *tensors = (tl_tensor *)calloc((size_t)node_count, sizeof *tensors);
    tl_result result = inputs && tensors ? TL_OK : TL_ERROR_NO_MEMORY;
    int32_t id, k;
    if (!result && kind == SHAPE_LAYERED) result = layered_graph(env, random, node_count, graph);
    else if (!result && kind == SHAPE_OUTPUTS) result = outputs_graph(env, node_count, graph);
    else tl_init_graph(graph);
    for (id = graph->node_count; id < node_count && !result && kind != SHAPE_OUTPUTS; id++) {
        uint64_t bytes = kind == SHAPE_EQUAL ? 4096 : (uint64_t)(1 + layered_below(random, 16)) * 4096;
        int is_dear = kind == SHAPE_EQUAL || layered_below(random, 2);
        tl_node_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.op = id ? "op" : "input";
        desc.input_count = id ? list_shape_inputs(random, kind, id, node_count, inputs) : 0;
        for (k = 0; k < desc.input_count; k++) tensors[k].node = inputs[k];
        desc.inputs = tensors;
        desc.output_bytes = &bytes;
        desc.output_count = 1;
        if (id) desc.needs = is_dear ? "in" : "out";
        if (id) desc.fwd_cost = kind == SHAPE_EQUAL ? 100 : bytes / 64 * (uint64_t)(is_dear ? 8 + layered_below(random, 120) : 1);
        desc.bwd_cost = 2 * desc.fwd_cost;
        result = tl_add_node(env, graph, &desc, NULL);
    }
    free(inputs);
    free(tensors);
    if (result) tl_free_graph(env, graph);
    return result;
}

#endif
