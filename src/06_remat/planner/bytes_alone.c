#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- bytes alone: a graph as the search for the least budget sees it --
//
//     given   F1: 7 ms   F2: 1 ms   link 12 GB/s        The least budget is a matter of bytes. So that it does
//                |          |           |               not move with what nodes cost or links carry, it is
//     alone   F1: 1      F2: 1      a mean tensor: 1    searched where every node costs the same, and a copy or
//                                                       conversion of a mean tensor as much as a node.
//
// Steps that are found there are steps of the given graph. How much is tried depends on the graph alone, too: a
// caller's limit and budget change nothing, so every call of a class names the same least budget.

#define TLI_ALONE_COST UINT64_C(1024)   // of each forward and backward
#define TLI_ALONE_WORK UINT64_C(3000000)        // steps of the search: so many,
#define TLI_ALONE_NODE_WORK UINT64_C(30000)     // and so many a node,
#define TLI_ALONE_MOST_WORK UINT64_C(60000000)  // at most this

typedef struct tli_bytes_alone {
    tl_env   *env;
    tl_graph  graph;            // the given one with costs that are all the same
    tl_node  *nodes;            // [node_count] of it
    tl_device device;
    uint64_t  work;             // of a search for the least budget
} tli_bytes_alone;

static void tli_close_alone(tli_bytes_alone *alone) { tli_release(alone->env, alone->nodes); }

// Bytes a second with which a mean tensor takes about as long as a forward, a tiny one less. At least 10^9.
static uint64_t tli_alone_rate(const tl_graph *graph) {
    uint64_t sum = 0, rate;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (!tli_add_u64(sum, graph->outputs[i].bytes, &sum)) return UINT64_MAX;
    sum = sum / (uint64_t)(graph->tensor_count ? graph->tensor_count : 1) / TLI_ALONE_COST + 1;
    return tli_mul_u64(sum, UINT64_C(1000000000), &rate) ? rate : UINT64_MAX;
}

// The work of a search for the least budget of a graph.
static uint64_t tli_alone_work(const tl_graph *graph) {
    uint64_t work = TLI_ALONE_WORK + TLI_ALONE_NODE_WORK * (uint64_t)graph->node_count;
    return work < TLI_ALONE_MOST_WORK ? work : TLI_ALONE_MOST_WORK;
}

// 0 = no memory.
static int tli_open_alone(tl_env *env, const tl_graph *graph, tli_bytes_alone *alone) {
    int32_t id;
    tli_zero(alone, sizeof *alone);
    alone->env = env;
    alone->nodes = (tl_node *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *alone->nodes);
    if (!alone->nodes) return 0;
    tli_copy(alone->nodes, graph->nodes, (size_t)graph->node_count * sizeof *alone->nodes);
    for (id = 0; id < graph->node_count; id++) {
        alone->nodes[id].fwd_cost = graph->nodes[id].is_input ? 0 : TLI_ALONE_COST;
        alone->nodes[id].bwd_cost = graph->nodes[id].has_grad ? TLI_ALONE_COST : 0;
    }
    alone->graph = *graph;
    alone->graph.nodes = alone->nodes;
    alone->device.link_bytes_per_second = alone->device.codec_bytes_per_second = tli_alone_rate(graph);
    alone->work = tli_alone_work(graph);
    return 1;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
