// A graph as a list of operations, with the kernels of run_support.h. Include after it.
#ifndef TESTS_OPS_OF_GRAPH_H
#define TESTS_OPS_OF_GRAPH_H

typedef struct op_list {
    int32_t   count;
    tl_op    *ops;
    tl_tensor *inputs;   // of all ops, one after the other
    uint64_t  *outputs;  // likewise
    char      *needs;    // 64 bytes each
} op_list;

static inline void op_list_free(op_list *list) {
    free(list->ops);
    free(list->inputs);
    free(list->outputs);
    free(list->needs);
    memset(list, 0, sizeof *list);
}

// "in0,out1" of a node; "none".
static inline void needs_of_node(const tl_graph *graph, int32_t id, char *text, size_t size) {
    const tl_node *node = &graph->nodes[id];
    size_t length = 0;
    int32_t k;
    for (k = 0; k < node->input_count; k++)
        if (graph->inputs[node->first_input + k].needed)
            length += (size_t)snprintf(text + length, size - length, "%sin%d", length ? "," : "", (int)k);
    for (k = 0; k < node->output_count; k++)
        if (graph->outputs[node->first_output + k].needed)
            length += (size_t)snprintf(text + length, size - length, "%sout%d", length ? "," : "", (int)k);
    if (!length) snprintf(text, size, "none");
}

static inline op_list ops_of_graph(const tl_graph *graph, mixer *m) {
    op_list list;
    int32_t i, k;
    list.count = graph->node_count;
    list.ops = (tl_op *)calloc((size_t)graph->node_count, sizeof *list.ops);
    list.inputs = (tl_tensor *)calloc((size_t)graph->input_count + 1, sizeof *list.inputs);
    list.outputs = (uint64_t *)calloc((size_t)graph->tensor_count + 1, sizeof *list.outputs);
    list.needs = (char *)calloc((size_t)graph->node_count, 64);
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        tl_op *op = &list.ops[i];
        op->name = tl_name_node(graph, i);
        op->kind = tl_name_op(graph, i);
        op->outputs = list.outputs + node->first_output;
        op->output_count = node->output_count;
        op->keep = node->keep;
        op->layer = node->layer + 1;
        for (k = 0; k < node->output_count; k++)
            list.outputs[node->first_output + k] = graph->outputs[node->first_output + k].bytes;
        if (node->is_input) continue;
        for (k = 0; k < node->input_count; k++) {
            const tl_node_output *from = &graph->outputs[graph->inputs[node->first_input + k].tensor];
            list.inputs[node->first_input + k].node = from->node;
            list.inputs[node->first_input + k].output = from->output;
        }
        op->inputs = list.inputs + node->first_input;
        op->input_count = node->input_count ? node->input_count : TL_NO_INPUTS;
        needs_of_node(graph, i, list.needs + 64 * i, 64);
        op->needs = list.needs + 64 * i;
        op->forward = mixer_forward;
        op->backward = mixer_backward;
        op->user = m;
        op->saved_bytes = node->saved_bytes;
        op->fwork_bytes = node->fwork_bytes;
        op->swork_bytes = node->swork_bytes ? node->swork_bytes : TL_SCRATCH_NONE;
        op->bwork_bytes = node->bwork_bytes;
        op->param_bytes = node->param_bytes;
        op->fwd_cost = node->fwd_cost ? node->fwd_cost : 1;
        op->bwd_cost = node->has_grad && !node->bwd_cost ? 1 : node->bwd_cost;
        op->inplace = node->inplace + 1;
        op->no_grad = !node->has_grad;
        op->once = node->once;
        op->takes_blocks = node->takes_blocks;
        op->dynamic = node->dynamic;
    }
    return list;
}

#endif
