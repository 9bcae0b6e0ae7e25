// Graphs of layers whose nodes read up to three of the layer before, any of them: allocations of any size end in any order.
#ifndef TESTS_WOVEN_GRAPH_H
#define TESTS_WOVEN_GRAPH_H

enum { WOVEN_WIDTH = 32 };  // nodes of a layer, at most

static void woven_graph(uint64_t seed, int32_t layers, int32_t width, tl_graph *graph) {
    tl_random random = { seed };
    int32_t i, k;
    tl_init_graph(graph);
    for (i = 0; i <= layers * width + 1; i++) {
        int32_t first = i <= width ? 0 : (i - 1) / width * width - width + 1, is_last = i > layers * width;
        tl_tensor reads[WOVEN_WIDTH];
        uint64_t bytes = i ? 1 + tl_next_random_below(&random, 1000) : 1000;
        tl_node_desc node;
        memset(&node, 0, sizeof node);
        memset(reads, 0, sizeof reads);
        for (k = 0; first && k < width; k++) {  // the layer before, shuffled
            int32_t other = (int32_t)tl_next_random_below(&random, (uint64_t)k + 1);
            reads[k] = reads[other];
            reads[other].node = first + k;
        }
        node.op = i ? "op" : "input";
        node.inputs = reads;
        node.input_count = !i ? 0 : !first ? 1 : is_last ? width : 1 + (int32_t)tl_next_random_below(&random, 3);
        node.output_bytes = &bytes;
        node.output_count = 1;
        node.needs = i ? "in" : NULL;
        node.fwd_cost = i ? 1 + tl_next_random_below(&random, 20) : 0;
        node.bwd_cost = node.fwd_cost;
        if (tl_add_node(NULL, graph, &node, NULL)) fail_msg("%s", "no graph");
    }
}
#endif  // TESTS_WOVEN_GRAPH_H
