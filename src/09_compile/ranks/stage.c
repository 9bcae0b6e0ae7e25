#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: the graphs of stages --
//
//     caller's graph    x  a  b | c  d          a is read by b and d: it is received, and read by d
//     stage 1           receive a, receive b, c, d
//
// Inputs that a stage reads come first, then what it receives, its nodes, and what it sends. Sends come last,
// so that their backwards come first: the gradient that a later stage has summed up is there before the nodes
// of this stage add to it, in the order of one process.
//
// A rank of several chunks has a graph of all of them, one after the other, and they share nothing but inputs:
// a tensor that is read two chunks on goes round the ranks as it goes through the stages between.

static tl_result tli_fail_ranks(tl_env *env) {
    return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(COMPILE_RANKS), TLI_RULE(NO_MEMORY_FOR_RANKS));
}

static const tl_rank *tli_rank_of(const tl_ranks_desc *desc, int32_t rank) {
    return desc->ranks ? &desc->ranks[rank] : NULL;
}

// A cost on a rank, rounded up; UINT64_MAX where that does not fit.
static uint64_t tli_cost_on_rank(const tl_rank *rank, uint64_t cost) {
    uint64_t product;
    if (!rank || tli_rank_numerator(rank) == tli_rank_denominator(rank)) return cost;
    if (!tli_mul_u64(cost, tli_rank_numerator(rank), &product)) return UINT64_MAX;
    return tli_divide_up(product, tli_rank_denominator(rank));
}

typedef struct tli_stage_cut {
    tl_env         *env;
    const tl_graph *old;
    const tl_rank  *device;          // that has the stage; NULL = all are equal
    const int32_t  *bounds;          // [2 x chunk_count] as in tli_cut_stage
    int32_t         chunk_count;
    int32_t         chunk, first, end;  // the chunk being made, its nodes
    int32_t         inference, has_results;  // has_results: some node of the whole graph says keep
    int32_t        *last_readers;    // [old tensors] the last node that reads it; -1 = none
    int32_t        *tensors;         // [old tensors] of the new graph, for the chunk; -1 = is not there
    int32_t        *all_tensors;     // [old tensors] for all chunks: the first of them that has it
    int32_t        *nodes;           // [old nodes]
    int32_t        *members;         // [new nodes] of the old graph; -1 = a message
    int32_t        *starts;          // [chunk_count + 1] new nodes
    tl_tensor      *inputs;          // [old inputs] of the node being made
    uint64_t       *bytes;           // [old tensors] of its outputs
    const uint8_t  *old_formats;     // [old tensors] tl_format; NULL = all are of one precision
    uint8_t        *formats;         // [new tensors] the same; NULL as well
    tl_graph        graph;
} tli_stage_cut;

// Find the last reader of each tensor.
static void tli_find_last_readers(const tl_graph *graph, int32_t *last_readers) {
    int32_t id, k;
    for (k = 0; k < graph->tensor_count; k++) last_readers[k] = -1;
    for (id = 0; id < graph->node_count; id++)
        for (k = 0; k < graph->nodes[id].input_count; k++)
            last_readers[graph->inputs[graph->nodes[id].first_input + k].tensor] = id;
}

// Whether a tensor is made before a node of the listing, and read from there on. Inputs are where they are
// read.
static int tli_crosses(const tl_graph *graph, const int32_t *last_readers, int32_t tensor, int32_t node) {
    int32_t maker = graph->outputs[tensor].node;
    return !graph->nodes[maker].is_input && maker < node && last_readers[tensor] >= node;
}

static void tli_map_stage_tensor(tli_stage_cut *c, int32_t old_tensor, int32_t tensor) {
    c->tensors[old_tensor] = tensor;
    if (c->formats) c->formats[tensor] = c->old_formats[old_tensor];
    if (c->all_tensors[old_tensor] < 0) c->all_tensors[old_tensor] = tensor;
}

static void tli_map_stage_node(tli_stage_cut *c, int32_t old_node) {
    int32_t id = c->graph.node_count - 1, k;
    c->members[id] = old_node;
    c->nodes[old_node] = id;
    for (k = 0; k < c->old->nodes[old_node].output_count; k++)
        tli_map_stage_tensor(c, c->old->nodes[old_node].first_output + k, c->graph.nodes[id].first_output + k);
}

static tl_tensor tli_stage_tensor(const tli_stage_cut *c, int32_t old_tensor) {
    const tl_node_output *output = &c->graph.outputs[c->tensors[old_tensor]];
    tl_tensor tensor;
    tensor.node = output->node;
    tensor.output = output->output;
    return tensor;
}

// Add a node of the caller's graph.
static tl_result tli_add_stage_node(tli_stage_cut *c, tli_graph_rules *rules, int32_t id) {
    const tl_graph *old = c->old;
    const tl_node *node = &old->nodes[id];
    tl_node_desc desc;
    tl_result result;
    int32_t k;
    tli_describe_node(old, id, &desc);
    for (k = 0; k < node->input_count; k++)
        c->inputs[k] = tli_stage_tensor(c, old->inputs[node->first_input + k].tensor);
    for (k = 0; k < node->output_count; k++) c->bytes[k] = old->outputs[node->first_output + k].bytes;
    desc.inputs = c->inputs;
    desc.output_bytes = c->bytes;
    desc.fwd_cost = tli_cost_on_rank(c->device, desc.fwd_cost);
    desc.bwd_cost = tli_cost_on_rank(c->device, desc.bwd_cost);
    result = tli_add_node(rules, &c->graph, &desc);
    if (result) return result;
    tli_copy_needs(old, id, &c->graph);
    tli_map_stage_node(c, id);
    return TL_OK;
}

// Add the receive, or the send, of a tensor.
static tl_result tli_add_message(tli_stage_cut *c, tli_graph_rules *rules, int32_t tensor, int is_receive) {
    const tl_node_output *output = &c->old->outputs[tensor];
    const tl_node *maker = &c->old->nodes[output->node];
    tl_tensor input = { 0, 0 };
    uint64_t bytes = is_receive ? output->bytes : 0;
    char name[64];
    tli_writer w = tli_writer_of(name, sizeof name);
    tl_node_desc desc;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    tli_put(&w, is_receive ? "receive:" : "send:");
    tli_put_i64(&w, output->node);
    tli_put(&w, ".");
    tli_put_i64(&w, output->output);
    if (c->chunk) {
        tli_put(&w, ":");
        tli_put_i64(&w, c->chunk);
    }
    tli_finish(&w);
    desc.name = name;
    desc.op = is_receive ? "receive" : "send";
    if (!is_receive) {
        input = tli_stage_tensor(c, tensor);
        desc.inputs = &input;
        desc.input_count = 1;
        desc.keep = !c->inference || c->has_results;
    }
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.no_grad = !maker->has_grad;
    desc.fixed = maker->fixed;
    desc.layer = maker->layer + 1;
    desc.once = 1;
    desc.origin = -1;
    result = tli_add_node(rules, &c->graph, &desc);
    if (result) return result;
    c->members[c->graph.node_count - 1] = -1;
    if (is_receive) tli_map_stage_tensor(c, tensor, c->graph.nodes[c->graph.node_count - 1].first_output);
    return TL_OK;
}

// Whether a node of the chunk reads an input.
static int tli_reads_input(const tli_stage_cut *c, int32_t input) {
    const tl_graph *old = c->old;
    int32_t id, k;
    for (id = c->first; id < c->end; id++)
        for (k = 0; k < old->nodes[id].input_count; k++)
            if (old->outputs[old->inputs[old->nodes[id].first_input + k].tensor].node == input) return 1;
    return 0;
}

// Add the nodes of a chunk. Of the others it has the inputs alone.
static tl_result tli_build_chunk(tli_stage_cut *c, tli_graph_rules *rules, int32_t chunk) {
    const tl_graph *old = c->old;
    int32_t i;
    tl_result result = TL_OK;
    c->chunk = chunk;
    c->first = c->bounds[2 * chunk];
    c->end = c->bounds[2 * chunk + 1];
    for (i = 0; i < old->tensor_count; i++)
        c->tensors[i] = old->nodes[old->outputs[i].node].is_input ? c->all_tensors[i] : -1;
    for (i = 0; i < old->node_count && !result; i++)
        if (old->nodes[i].is_input && c->nodes[i] < 0 && tli_reads_input(c, i))
            result = tli_add_stage_node(c, rules, i);
    for (i = 0; i < old->tensor_count && !result; i++)
        if (tli_crosses(old, c->last_readers, i, c->first)) result = tli_add_message(c, rules, i, 1);
    for (i = c->first; i < c->end && !result; i++)
        if (!old->nodes[i].is_input) result = tli_add_stage_node(c, rules, i);
    for (i = 0; i < old->tensor_count && !result; i++)
        if (tli_crosses(old, c->last_readers, i, c->end)) result = tli_add_message(c, rules, i, 0);
    c->starts[chunk + 1] = c->graph.node_count;
    return result;
}

static tl_result tli_build_stage(tli_stage_cut *c) {
    tli_graph_rules rules = tli_rules_of(c->env, TLI_IN(COMPILE_RANKS));
    tl_result result = TL_OK;
    int32_t i;
    c->graph.batch = c->old->batch;
    c->starts[0] = 0;
    for (i = 0; i < c->old->tensor_count; i++) c->all_tensors[i] = -1;
    for (i = 0; i < c->old->node_count; i++) c->nodes[i] = -1;
    for (i = 0; i < c->chunk_count && !result; i++) result = tli_build_chunk(c, &rules, i);
    return result ? result : tl_check_graph(c->env, &c->graph);
}

// What a rank owns: a stage's graph, and the map from it to the caller's.
typedef struct tli_rank_stage {
    tl_graph graph;
    int32_t *map;
    uint8_t *formats;                // [tensors]; NULL = all are of one precision
    int32_t *chunk_starts;           // [chunk_count + 1] nodes of chunk c are starts[c] .. starts[c + 1] - 1
} tli_rank_stage;

// Make the map of a run from what building the stage has noted.
static tl_result tli_map_stage(const tli_stage_cut *c, tli_rank_stage *stage, tl_compiled_plan *compiled) {
    uint64_t old_nodes = (uint64_t)c->old->node_count, nodes = (uint64_t)c->graph.node_count;
    uint64_t tensors = (uint64_t)c->old->tensor_count, starts = (uint64_t)c->chunk_count + 1;
    uint64_t count = 2 * old_nodes + 2 * nodes + 1 + tensors + starts;
    int32_t *map = (int32_t *)tli_alloc_array(c->env, count, sizeof *map), *at = map, id, found = 0;
    stage->map = map;
    if (!map) return tli_fail_ranks(c->env);
    compiled->nodes = at;          tli_copy(at, c->nodes, (size_t)old_nodes * sizeof *at);      at += old_nodes;
    compiled->tensors = at;        tli_copy(at, c->all_tensors, (size_t)tensors * sizeof *at);  at += tensors;
    stage->chunk_starts = at;      tli_copy(at, c->starts, (size_t)starts * sizeof *at);        at += starts;
    compiled->members = at;
    for (id = 0; id < c->graph.node_count; id++) {
        at[old_nodes + (uint64_t)id] = found;
        if (c->members[id] >= 0) at[found++] = c->members[id];
    }
    at[old_nodes + nodes] = found;
    compiled->first_members = at + old_nodes;
    compiled->recompute_counts = at + old_nodes + nodes + 1;    // no node is fused: all 0
    return TL_OK;
}

static int32_t tli_count_chunks(const tl_ranks_desc *desc) {
    return desc->chunk_count ? desc->chunk_count : 1;
}

static int32_t tli_count_all_stages(const tl_ranks_desc *desc) {
    return desc->rank_count * tli_count_chunks(desc);
}

// Make the graph of a rank's chunks, and its map. bounds: [2 x chunks] the first node of each, and the one
// after its last.
static tl_result tli_cut_stage(tl_env *env, const tl_ranks_desc *desc, int32_t rank, const int32_t *bounds,
                               tli_rank_stage *stage, tl_compiled_plan *compiled) {
    const tl_graph *old = desc->graph;
    uint64_t tensors = (uint64_t)old->tensor_count, nodes = (uint64_t)old->node_count;
    uint64_t chunks = (uint64_t)tli_count_chunks(desc), messages = 2 * chunks * tensors;
    tli_stage_cut c;
    int32_t *numbers, id;
    tl_result result;
    tli_zero(&c, sizeof c);
    stage->formats = NULL;
    c.env = env;
    c.old = old;
    if (desc->compiled) c.old_formats = desc->compiled->formats;
    c.device = tli_rank_of(desc, rank);
    c.bounds = bounds;
    c.chunk_count = (int32_t)chunks;
    c.inference = desc->inference;
    for (id = 0; id < old->node_count; id++) c.has_results |= old->nodes[id].keep;
    numbers = (int32_t *)tli_alloc_array(env, 3 * tensors + 2 * nodes + messages + chunks + 1, sizeof *numbers);
    c.inputs = (tl_tensor *)tli_alloc_array(env, (uint64_t)old->input_count + 1, sizeof *c.inputs);
    c.bytes = (uint64_t *)tli_alloc_array(env, tensors, sizeof *c.bytes);
    if (c.old_formats) c.formats = (uint8_t *)tli_alloc_array(env, tensors + messages, sizeof *c.formats);
    result = numbers && c.inputs && c.bytes && (c.formats || !c.old_formats) ? TL_OK : tli_fail_ranks(env);
    if (!result) {
        c.last_readers = numbers;
        c.tensors = numbers + tensors;
        c.all_tensors = c.tensors + tensors;
        c.nodes = c.all_tensors + tensors;
        c.starts = c.nodes + nodes;
        c.members = c.starts + chunks + 1;  // a node; a receive and a send of each tensor in each chunk at most
        tli_find_last_readers(old, c.last_readers);
        result = tli_build_stage(&c);
    }
    if (!result) result = tli_map_stage(&c, stage, compiled);
    if (result) tl_free_graph(env, &c.graph);
    stage->graph = c.graph;
    stage->formats = c.formats;
    compiled->formats = c.formats;
    tli_release(env, numbers);
    tli_release(env, c.inputs);
    tli_release(env, c.bytes);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
