#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- chain: updates merged into backwards --
//
// A state that is updated right behind the only backward that adds to its gradient is no part of a schedule:
// its bytes are always there, and its gradient lives for the length of that backward and its update.
//
//     state 1 w, node 2 y reads w     B 2  B 1     becomes     B 2 with the bytes of the gradient as scratch
//
// So graphs whose states are all of this kind, or never change, are planned by stages without them, and the
// updates are put back behind their backwards. The peaks are equal to the byte where the scratch of the update
// is no larger than what the backward has beside the gradient.

typedef struct tli_merged {
    tl_env   *env;
    tl_graph  graph;           // without states; its texts are those of the old one
    int32_t  *old_nodes;       // [graph.node_count] ids in the old graph
    int32_t  *new_tensors;     // [tensors of the old graph]
    int32_t  *homes;           // [nodes of the old graph] of a trained state: the node that it is merged into
    uint64_t  pinned_bytes;    // of all states
} tli_merged;

static int tli_has_states(const tl_graph *graph) {
    int32_t id = 0;
    while (id < graph->node_count && !graph->nodes[id].state) id++;
    return id < graph->node_count;
}

// Find the homes of all trained states in time linear in the graph: of a state that is updated right behind its
// reader, that is the first node below which is neither a state nor an input.
static int tli_find_homes(tli_merged *m, const tl_graph *graph) {
    int32_t id, next = -1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        m->homes[id] = -1;
        if (!node->is_input) next = id;
        if (!tli_has_update(node)) continue;
        if (next < 0 || !graph->nodes[next].has_grad) return 0;
        m->homes[id] = next;
    }
    return 1;
}

// Whether each trained state is read by its home, and by no other node with a backward.
static int tli_check_homes(const tli_merged *m, const tl_graph *graph) {
    int32_t id, i, *seen = m->new_tensors;
    for (i = 0; i < graph->tensor_count; i++) seen[i] = 0;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count && node->has_grad; i++) {
            int32_t maker = graph->outputs[graph->inputs[i].tensor].node;
            if (m->homes[maker] >= 0 && m->homes[maker] != id) return 0;
            seen[graph->inputs[i].tensor] = 1;
        }
    }
    for (id = 0; id < graph->node_count; id++)
        if (m->homes[id] >= 0 && !seen[graph->nodes[id].first_output]) return 0;
    return 1;
}

// Append a node without the states that it reads.
static void tli_merge_node(tli_merged *m, const tl_graph *old, int32_t id) {
    tl_graph *graph = &m->graph;
    tl_node *node = (tl_node *)graph->nodes + graph->node_count;
    int32_t i;
    *node = old->nodes[id];
    node->first_input = graph->input_count;
    node->input_count = 0;
    node->first_output = graph->tensor_count;
    for (i = old->nodes[id].first_input; i < old->nodes[id].first_input + old->nodes[id].input_count; i++) {
        int32_t tensor = old->inputs[i].tensor;
        if (old->nodes[old->outputs[tensor].node].state) {
            if (i - old->nodes[id].first_input < old->nodes[id].inplace) node->inplace--;
            continue;
        }
        ((tl_node_input *)graph->inputs)[graph->input_count] = old->inputs[i];
        ((tl_node_input *)graph->inputs)[graph->input_count++].tensor = m->new_tensors[tensor];
        node->input_count++;
    }
    for (i = old->nodes[id].first_output; i < old->nodes[id].first_output + node->output_count; i++) {
        m->new_tensors[i] = graph->tensor_count;
        ((tl_node_output *)graph->outputs)[graph->tensor_count] = old->outputs[i];
        ((tl_node_output *)graph->outputs)[graph->tensor_count++].node = graph->node_count;
    }
    m->old_nodes[graph->node_count++] = id;
}

// Add the gradient, unless the state holds it, and the update of a state to its home. 0 = the update has more
// scratch than there is beside the gradient in the backward.
static int tli_merge_state(tli_merged *m, const tl_graph *old, int32_t state, tl_node *home) {
    const tl_node *from = &old->nodes[state], *into = &old->nodes[m->homes[state]];
    uint64_t beside = into->bwork_bytes;
    int32_t i;
    for (i = into->first_output; i < into->first_output + into->output_count; i++)
        beside += old->outputs[i].bytes;    // these sums fit: tl_check_graph
    home->bwd_cost += from->bwd_cost;
    if (!tli_is_held(from)) home->bwork_bytes += old->outputs[from->first_output].bytes;
    return from->bwork_bytes <= beside;
}

static void tli_free_merged(tli_merged *m) {
    tli_release(m->env, (void *)(uintptr_t)m->graph.nodes);
    tli_release(m->env, (void *)(uintptr_t)m->graph.inputs);
    tli_release(m->env, (void *)(uintptr_t)m->graph.outputs);
    tli_release(m->env, m->old_nodes);
    tli_release(m->env, m->new_tensors);
    tli_release(m->env, m->homes);
    tli_zero(m, sizeof *m);
}

static int tli_alloc_merged(tli_merged *m, const tl_graph *old) {
    uint64_t nodes = (uint64_t)old->node_count, inputs = (uint64_t)old->input_count;
    uint64_t tensors = (uint64_t)old->tensor_count;
    m->graph = *old;
    m->graph.node_count = m->graph.input_count = m->graph.tensor_count = m->graph.view_count = 0;
    m->graph.attributes = NULL;     // nodes have other numbers
    m->graph.nodes = (tl_node *)tli_alloc_array(m->env, nodes, sizeof(tl_node));
    m->graph.inputs = (tl_node_input *)tli_alloc_array(m->env, inputs + 1, sizeof(tl_node_input));
    m->graph.outputs = (tl_node_output *)tli_alloc_array(m->env, tensors, sizeof(tl_node_output));
    m->old_nodes = (int32_t *)tli_alloc_array(m->env, nodes, sizeof *m->old_nodes);
    m->new_tensors = (int32_t *)tli_alloc_array(m->env, tensors, sizeof *m->new_tensors);
    m->homes = (int32_t *)tli_alloc_array(m->env, nodes, sizeof *m->homes);
    return m->graph.nodes && m->graph.inputs && m->graph.outputs && m->old_nodes && m->new_tensors && m->homes;
}

// Merge the states of a graph into the nodes that read them. TL_ERROR_UNSUPPORTED, without a sentence: some
// state is not of the kind that can be merged. Release with tli_free_merged in any case.
static tl_result tli_merge_states(tl_env *env, const tl_graph *old, tli_merged *m) {
    tl_node *nodes;
    int32_t id, i, *new_ids;
    int fits = 1;
    tli_zero(m, sizeof *m);
    m->env = env;
    if (!tli_alloc_merged(m, old)) return TL_ERROR_NO_MEMORY;
    if (!tli_find_homes(m, old) || !tli_check_homes(m, old)) return TL_ERROR_UNSUPPORTED;
    for (id = 0; id < old->node_count; id++) {
        const tl_node *node = &old->nodes[id];
        if (!node->state) { tli_merge_node(m, old, id); continue; }
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            m->pinned_bytes += old->outputs[i].bytes;
    }
    nodes = (tl_node *)m->graph.nodes;
    new_ids = m->new_tensors;               // from here on: where a home is in the new graph
    for (i = 0; i < m->graph.node_count; i++) new_ids[m->old_nodes[i]] = i;
    for (id = 0; id < old->node_count; id++)
        if (m->homes[id] >= 0) fits &= tli_merge_state(m, old, id, &nodes[new_ids[m->homes[id]]]);
    return fits && m->graph.node_count ? TL_OK : TL_ERROR_UNSUPPORTED;
}

// Turn steps on the merged graph into those on the old one: ids, and updates behind their backwards, the last
// state first, as reverse listing order has them.
static void tli_split_states(const tli_merged *m, const tl_graph *old, const tli_steps *merged,
                             tli_steps *steps) {
    int32_t k, id;
    for (k = 0; k < merged->count; k++) {
        tl_step step = merged->steps[k];
        step.node = m->old_nodes[step.node];
        tli_add_step(steps, step);
        if (step.kind != TL_STEP_BACKWARD) continue;
        for (id = step.node - 1; id >= 0 && old->nodes[id].is_input; id--)
            if (m->homes[id] == step.node)
                tli_add_step(steps, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
    }
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
