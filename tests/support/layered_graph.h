// Random layered graphs, as networks look: layers of one to four nodes, each reading the last layer or, now and then, one
// further up; dear nodes whose backward reads their inputs, cheap ones whose backward reads their output; one sink.
#ifndef TESTS_LAYERED_GRAPH_H
#define TESTS_LAYERED_GRAPH_H

#include <stdint.h>
#include <string.h>

enum { LAYERED_WIDTH = 4, LAYERED_BACK = 24 };

static inline int32_t layered_below(tl_random *random, int32_t limit) {
    return (int32_t)tl_next_random_below(random, (uint64_t)limit);
}

static inline tl_result layered_node(tl_env *env, tl_random *random, const int32_t *inputs, int32_t input_count, tl_graph *graph) {
    int is_dear = layered_below(random, 2), k;
    uint64_t bytes = (uint64_t)(1 + layered_below(random, 16)) * 4096;
    tl_tensor tensors[LAYERED_WIDTH + 1];
    tl_node_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(tensors, 0, sizeof tensors);
    for (k = 0; k < input_count; k++) tensors[k].node = inputs[k];
    desc.op = is_dear ? "conv" : "relu";
    desc.needs = is_dear ? "in" : "out";
    desc.inputs = tensors;
    desc.input_count = input_count;
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.fwd_cost = bytes / 64 * (uint64_t)(is_dear ? 8 + layered_below(random, 120) : 1);
    desc.bwd_cost = 2 * desc.fwd_cost;
    desc.saved_bytes = layered_below(random, 12) ? 0 : bytes / 4;
    desc.fwork_bytes = is_dear && !layered_below(random, 4) ? bytes / 2 : 0;
    return tl_add_node(env, graph, &desc, NULL);
}

// Make a graph of node_count nodes (2 or more), the first of them an input; release it with tl_free_graph.
static inline tl_result layered_graph(tl_env *env, tl_random *random, int32_t node_count, tl_graph *graph) {
    static const uint64_t input_bytes = 16384;
    int32_t first = 0, count = 1, k;    // the last layer
    tl_result result;
    tl_node_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.op = "input";
    desc.output_bytes = &input_bytes;
    desc.output_count = 1;
    tl_init_graph(graph);
    result = tl_add_node(env, graph, &desc, NULL);
    while (!result && graph->node_count < node_count) {
        int32_t begin = graph->node_count, left = node_count - begin, width = 1 + layered_below(random, LAYERED_WIDTH), unread;
        if (width > left - 1) width = left > 1 ? left - 1 : 1;      // the sink is a layer of its own
        unread = count;
        for (k = 0; k < width && !result; k++) {
            int32_t inputs[LAYERED_WIDTH + 1], input_count = 0, share = (unread + width - k - 1) / (width - k);
            while (share-- > 0) inputs[input_count++] = first + --unread;
            if (!input_count) inputs[input_count++] = first + layered_below(random, count);
            if (!layered_below(random, 8)) {
                int32_t back = first - 1 - layered_below(random, LAYERED_BACK);
                if (back > 0) inputs[input_count++] = back;
            }
            result = layered_node(env, random, inputs, input_count, graph);
        }
        first = begin;
        count = width;
    }
    if (result) tl_free_graph(env, graph);
    return result;
}

#endif
