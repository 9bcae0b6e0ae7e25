#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- inputs that die --
//
// To the search the inputs that die are the outputs of one node, listed first, that runs once and for nothing:
// so they are freed, and copied, as any other tensor. In the plan they have no forward, for they are there from
// the start on:
//
//     searched    F x   F a   F b   D x   ..
//     planned     F a   F b   D x   ..           the same bytes at every later step
//
// So it has to run before all others: its last output, of no bytes, is read by every node that could run
// before. An update that waits for no backward could run before as well: such states are listed above the rest,
// so that they are updated last, when the fewest bytes are held.

typedef struct tli_dying {
    tl_graph graph;        // as the search takes it: its node 0 makes all inputs that leave
    int32_t *old_ids;      // [nodes of graph] in the caller's graph, from node 1 on
    int32_t *old_tensors;  // [outputs of node 0] in the caller's graph; -1 = the last
    uint8_t *leaves;       // [nodes of the caller's graph] 1 = an input that dies, where some node has to run
    uint8_t *idles;        // [nodes of the caller's graph] 1 = a state whose update waits for no backward
    uint8_t *lossless;     // [tensors of graph] tl_remat_desc.lossless; the inputs are, too
    uint64_t *places;      // [tensors of the caller's graph] scratch
    void    *memory;       // of all arrays
    int32_t  count;        // of those that leave
    int32_t  first;        // tensor of graph that all others wait for
} tli_dying;

// States that are updated, but for those whose weights a node with a backward reads.
static void tli_mark_idle_updates(const tl_graph *graph, int inference, uint8_t *idles) {
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++)
        idles[id] = (uint8_t)(!inference && tli_has_update(&graph->nodes[id]));
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count && node->has_grad; i++)
            idles[graph->outputs[graph->inputs[i].tensor].node] = 0;
    }
}

// Whether a node has to run. results: [tensors] scratch.
static int tli_has_work(const tl_graph *graph, int inference, uint8_t *results) {
    int32_t i;
    tli_mark_results(graph, inference, results);
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *node = &graph->nodes[graph->outputs[i].node];
        if (!node->is_input && (results[i] || (!inference && node->has_grad))) return 1;
    }
    return 0;
}

static int tli_has_dying(const tl_graph *graph) {
    int32_t id = 0;
    while (id < graph->node_count && !tli_dies(&graph->nodes[id])) id++;
    return id < graph->node_count;
}

// Add an output of the caller's graph to the searched one.
static void tli_add_searched_output(const tl_graph *from, int32_t tensor, int32_t node, tl_node_output *outputs,
                                    const uint8_t *lossless, tli_dying *d) {
    tl_node_output *output = &outputs[d->graph.tensor_count];
    *output = from->outputs[tensor];
    output->output = node ? output->output : d->graph.tensor_count;
    output->node = node;
    d->lossless[d->graph.tensor_count] = !node || (lossless && lossless[tensor]);
    if (!node) d->old_tensors[d->graph.tensor_count] = tensor;
    d->graph.tensor_count++;
}

// The node that makes all inputs that leave. new_tensors: [tensors of from] overwritten.
static void tli_add_arrival(const tl_graph *from, const uint8_t *lossless, tl_node *nodes,
                            tl_node_output *outputs, int32_t *new_tensors, tli_dying *d) {
    int32_t id, k;
    tli_zero(nodes, sizeof *nodes);
    nodes->inplace = nodes->layer = nodes->origin = -1;
    nodes->once = 1;
    for (id = 0; id < from->node_count; id++) {
        const tl_node *old = &from->nodes[id];
        if (!d->leaves[id]) continue;
        nodes->name = old->name;
        nodes->unit = old->unit;
        nodes->op = old->op + 1;     // "nput": a word that is not that of inputs
        for (k = old->first_output; k < old->first_output + old->output_count; k++) {
            new_tensors[k] = d->graph.tensor_count;
            tli_add_searched_output(from, k, 0, outputs, lossless, d);
        }
    }
    d->first = d->graph.tensor_count;
    outputs[d->first].node = 0;
    outputs[d->first].output = d->first;
    outputs[d->first].bytes = 0;
    outputs[d->first].needed = 0;
    d->old_tensors[d->first] = -1;
    d->lossless[d->first] = 1;
    nodes->output_count = ++d->graph.tensor_count;
}

// Whether a node reads nothing that another one makes.
static int tli_is_source(const tl_graph *from, const tl_node *node, const tli_dying *d) {
    int32_t k, maker, is_source = !node->is_input;
    for (k = node->first_input; k < node->first_input + node->input_count && is_source; k++) {
        maker = from->outputs[from->inputs[k].tensor].node;
        is_source = from->nodes[maker].is_input && !d->leaves[maker];
    }
    return is_source;
}

// Copy a node to the searched graph.
static void tli_add_searched_node(const tl_graph *from, int32_t id, const uint8_t *lossless, tl_node *nodes,
                                  tl_node_input *inputs, tl_node_output *outputs, int32_t *new_tensors,
                                  tli_dying *d) {
    tl_graph *to = &d->graph;
    const tl_node *old = &from->nodes[id];
    tl_node *node = &nodes[to->node_count];
    int32_t k;
    *node = *old;
    node->first_input = to->input_count;
    node->first_output = to->tensor_count;
    for (k = old->first_input; k < old->first_input + old->input_count; k++) {
        inputs[to->input_count] = from->inputs[k];
        inputs[to->input_count++].tensor = new_tensors[from->inputs[k].tensor];
    }
    if (tli_is_source(from, old, d)) {
        inputs[to->input_count].needed = 0;
        inputs[to->input_count++].tensor = d->first;
        node->input_count++;
    }
    for (k = old->first_output; k < old->first_output + old->output_count; k++) {
        new_tensors[k] = to->tensor_count;
        tli_add_searched_output(from, k, to->node_count, outputs, lossless, d);
    }
    d->old_ids[to->node_count++] = id;
}

// Fill the arrays of the searched graph. new_tensors: [tensors of from] scratch.
static void tli_fill_searched(const tl_graph *from, const uint8_t *lossless, tl_node *nodes,
                              tl_node_input *inputs, tl_node_output *outputs, int32_t *new_tensors,
                              tli_dying *d) {
    int32_t id;
    d->graph.node_count = 1;
    d->graph.tensor_count = d->graph.input_count = 0;
    tli_add_arrival(from, lossless, nodes, outputs, new_tensors, d);
    for (id = 0; id < from->node_count; id++)
        if (d->idles[id]) tli_add_searched_node(from, id, lossless, nodes, inputs, outputs, new_tensors, d);
    for (id = 0; id < from->node_count; id++)
        if (!d->leaves[id] && !d->idles[id])
            tli_add_searched_node(from, id, lossless, nodes, inputs, outputs, new_tensors, d);
}

// The graph as the search takes it, for a desc that has one; d->count is 0 where no input leaves. On error
// there is nothing to free.
static tl_result tli_begin_dying(tl_env *env, tl_remat_desc *desc, tli_dying *d) {
    const tl_graph *from = desc->graph;
    size_t nodes = (size_t)from->node_count, tensors = (size_t)from->tensor_count + 1;
    size_t edges = (size_t)from->input_count + nodes;
    uint64_t bytes = ((uint64_t)nodes + 1) * sizeof(tl_node) + (uint64_t)nodes * (sizeof(int32_t) + 2) +
                     (uint64_t)edges * sizeof(tl_node_input) +
                     (uint64_t)tensors * (sizeof(tl_node_output) + sizeof(uint64_t) + 2 * sizeof(int32_t) + 1);
    char *at = (char *)tli_alloc_array(env, bytes, 1);
    tl_node_input *inputs;
    tl_node_output *outputs;
    int32_t *new_tensors, id;
    int has_work;
    tli_zero(d, sizeof *d);
    if (!at) return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_REMAT), TLI_RULE(NO_MEMORY_TO_PLAN));
    d->memory = at;                               at += (nodes + 1) * sizeof(tl_node);
    outputs = (tl_node_output *)(void *)at;       at += tensors * sizeof *outputs;
    d->places = (uint64_t *)(void *)at;           at += tensors * sizeof *d->places;
    inputs = (tl_node_input *)(void *)at;         at += edges * sizeof *inputs;
    d->old_ids = (int32_t *)(void *)at;           at += nodes * sizeof *d->old_ids;
    d->old_tensors = (int32_t *)(void *)at;       at += tensors * sizeof *d->old_tensors;
    new_tensors = (int32_t *)(void *)at;          at += tensors * sizeof *new_tensors;
    d->leaves = (uint8_t *)at;
    d->idles = d->leaves + nodes;
    d->lossless = d->idles + nodes;
    has_work = tli_has_work(from, desc->inference, d->lossless);
    for (id = 0; id < from->node_count; id++) {
        d->leaves[id] = (uint8_t)(has_work && tli_dies(&from->nodes[id]));
        d->count += d->leaves[id];
    }
    if (!d->count) return TL_OK;
    tli_mark_idle_updates(from, desc->inference, d->idles);
    d->graph = *from;
    d->graph.nodes = (tl_node *)d->memory;
    d->graph.outputs = outputs;
    d->graph.inputs = inputs;
    d->graph.views = NULL;
    d->graph.attributes = NULL;     // nodes have other numbers
    d->graph.view_count = 0;
    tli_fill_searched(from, desc->lossless, (tl_node *)d->memory, inputs, outputs, new_tensors, d);
    desc->graph = &d->graph;
    if (desc->codec) desc->lossless = d->lossless;
    return TL_OK;
}

// Offsets are those of inputs, then those of steps. In the searched graph those of idle states come first, then
// those of inputs that stay, and those of inputs that leave are the first of steps: bring all into the caller's
// order.
static void tli_move_offsets(const tl_graph *graph, const tli_dying *d, uint64_t *offsets) {
    int32_t idle = 0, stays = 0, leaves = 0, number = 0, i;
    for (i = 0; i < graph->tensor_count; i++) {
        int32_t id = graph->outputs[i].node;
        if (!graph->nodes[id].is_input || !graph->outputs[i].bytes) continue;
        stays += d->idles[id];
        leaves += !d->leaves[id];
        d->places[number] = offsets[number];
        number++;
    }
    number = 0;
    for (i = 0; i < graph->tensor_count; i++) {
        int32_t id = graph->outputs[i].node, *next = d->leaves[id] ? &leaves : d->idles[id] ? &idle : &stays;
        if (graph->nodes[id].is_input && graph->outputs[i].bytes) offsets[number++] = d->places[(*next)++];
    }
}

// The plan and the report of the searched graph become those of the caller's, and the copy is freed.
static void tli_end_dying(tl_env *env, const tl_graph *graph, tli_dying *d, tl_plan *plan,
                          tl_remat_report *report) {
    tl_step *steps = (tl_step *)(uintptr_t)plan->steps;      // of the plan's own memory
    int32_t i, count = 1, least = report ? report->limiting_node : -1;
    if (steps && d->count) {
        TLI_INVARIANT(!steps[0].node && steps[0].kind == TL_STEP_FORWARD);
        if (plan->offset_count) tli_move_offsets(graph, d, (uint64_t *)(uintptr_t)plan->offsets);
        for (i = 1; i < plan->step_count; i++) {
            tl_step *step = &steps[count];
            *step = steps[i];
            count += step->node || step->output != d->first;    // the steps of the last output are none
            if (step->node) {
                step->node = d->old_ids[step->node];
            } else if (step->output != d->first) {
                const tl_node_output *output = &graph->outputs[d->old_tensors[step->output]];
                step->node = output->node;
                step->output = output->output;
            }
        }
        plan->steps++;
        plan->step_count = count - 1;
    }
    if (least >= 0 && d->count) report->limiting_node = least ? d->old_ids[least]
                                                              : graph->outputs[d->old_tensors[0]].node;
    tli_release(env, d->memory);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
