#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS)

// -- parts of a batch --
//
// The graph of one of several equal parts of a batch, which run one after the other:
//
//     x 800 -> y 8000 -> loss 4 (reduces)    4 parts:  x 200 -> y 2000 -> loss 4

// Whether the bytes of a node's outputs are those of the whole batch in each part: what is fixed, and a sum
// over the rows of the batch (tl_node_desc.reduces).
static int tli_is_whole_in_parts(const tl_graph *graph, int32_t id) {
    const tl_node_rows *r = tli_find_rows(graph, id);
    return graph->nodes[id].fixed || (r && r->reduces);
}

// A part of so many bytes. 0 = it is not whole, or not of whole elements.
static int tli_part_bytes(uint64_t bytes, uint64_t parts, uint64_t *part) {
    *part = bytes / parts;
    return bytes % parts == 0 && (bytes % 4 || *part % 4 == 0);
}

// Scratch and saved bytes are rounded up to whole elements.
static void tli_divide_node(tl_node *node, uint64_t parts) {
    uint64_t *work[4];
    int k;
    work[0] = &node->saved_bytes;
    work[1] = &node->fwork_bytes;
    work[2] = &node->bwork_bytes;
    work[3] = &node->swork_bytes;
    if (node->fixed || parts == 1) return;
    node->fwd_cost = tli_divide_up(node->fwd_cost, parts);
    node->bwd_cost = tli_divide_up(node->bwd_cost, parts);
    for (k = 0; k < 4; k++) *work[k] = tli_divide_up(tli_divide_up(*work[k], parts), 4) * 4;
}

#ifndef TL_NO_PRECISION
// A copy of a graph with nodes, outputs and attributes of its own; all else is that graph's. 0 = no memory, and
// *to is empty.
static int tli_share_graph(tl_env *env, const tl_graph *from, tl_graph *to) {
    *to = *from;
    to->nodes = (const tl_node *)tli_copy_array(env, from->nodes, from->node_count, sizeof *from->nodes);
    to->outputs = (const tl_node_output *)tli_copy_array(env, from->outputs, from->tensor_count,
                                                         sizeof *from->outputs);
    to->attributes = from->attributes ? tli_copy_attributes(env, from->attributes) : NULL;
    to->node_capacity = from->node_count + 1;
    to->tensor_capacity = from->tensor_count + 1;
    to->input_capacity = to->view_capacity = 0;
    to->text_capacity = 0;
    if (to->nodes && to->outputs && !to->attributes == !from->attributes) return 1;
    tl_free_graph(env, to);
    return 0;
}
#endif

// Give a copy of a graph the bytes and costs of a part, but the rows of the whole. TL_NOT_READY: the bytes of
// node *whole do not divide.
static tl_result tli_divide_graph(const tl_graph *graph, uint64_t parts, tl_graph *part, int32_t *whole) {
    tl_node *nodes = (tl_node *)part->nodes;
    tl_node_output *outputs = (tl_node_output *)part->outputs;
    int32_t i;
    part->batch /= parts;
    for (i = 0; i < part->node_count; i++) tli_divide_node(&nodes[i], parts);
    for (i = 0; i < part->tensor_count; i++) {
        *whole = outputs[i].node;
        if (!tli_is_whole_in_parts(graph, *whole) &&
            !tli_part_bytes(outputs[i].bytes, parts, &outputs[i].bytes))
            return TL_NOT_READY;
    }
    return TL_OK;
}

// Divide the rows of a part, whose bytes are as they shall be. 0 = no memory.
static int tli_divide_rows(tl_env *env, const tl_graph *graph, uint64_t parts, tl_graph *part) {
    tl_attributes *attributes;
    if (!tli_divide_attributes(env, graph->attributes, part, parts, &attributes)) return 0;
    tli_release_attributes(env, (tl_attributes *)(uintptr_t)part->attributes);
    part->attributes = attributes;
    return 1;
}

// Whether every trained state holds its gradient, so that several parts can add to it.
static int tli_holds_gradients(const tl_graph *graph) {
    int32_t id = 0;
    while (id < graph->node_count && (!tli_learns(&graph->nodes[id]) || tli_is_held(&graph->nodes[id]))) id++;
    return id == graph->node_count;
}

TLI_IMPL tl_result tl_split_graph(tl_env *env, const tl_graph *graph, int32_t parts, tl_graph *part) {
    const tli_function function = TLI_IN(SPLIT_GRAPH);
    tli_graph_rules rules = tli_rules_of(env, function);
    int32_t whole = 0;
    tl_result result;
    TL_ASSERT(graph && part);
    tl_init_graph(part);
    result = tl_check_graph(env, graph);
    if (result) return result;
    if (parts < 1 || (parts > 1 && (!graph->batch || graph->batch % (uint64_t)parts)))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(PARTS_MUST_DIVIDE_THE_BATCH));
    if (parts > 1 && !tli_holds_gradients(graph))
        return tli_fail(env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(PARTS_ADD_TO_GRADIENTS_THAT_ARE_HELD));
    if (!tli_copy_graph(env, graph, part))
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
    if (tli_divide_graph(graph, (uint64_t)parts, part, &whole))
        result = tli_fail_item(&rules, TL_ERROR_INVALID_ARG, "node", whole, tl_name_node(graph, whole),
                               TLI_RULE(PART_IS_NOT_OF_WHOLE_ELEMENTS));
    else if (!tli_divide_rows(env, graph, (uint64_t)parts, part))
        result = tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_LARGER_GRAPH));
    if (!result) result = tl_check_graph(env, part);
    if (result) tl_free_graph(env, part);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
