#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// Statistics of a graph: sums by op, path lengths and cuts, the floor, and the peak of keeping
// everything. Times are numbers of calls in the plan that keeps everything: the forward of node v
// is call v, its backward is call 2 nodes - 1 - v.

// -- statistics --

typedef struct tli_census {
    const tl_graph *graph;
    int32_t  *ops;            // [nodes] index of the op of the node
    int32_t  *firsts;         // [ops] the first node of this op
    int32_t  *last_readers;   // [tensors] the last node that reads it; its maker if none does
    int32_t  *last_uses;      // [tensors] the last call that reads it
    int32_t  *first_grads;    // [tensors] the call that makes its gradient
    int32_t  *marks;          // [tensors] tells whether the current node has counted it already
    int32_t  *levels;         // [nodes] of tli_find_shape: length of the longest path to the node, then the
                              // number of tensors last read by it; of tli_find_runs: whether it has
                              // to run
    uint64_t *grows, *shrinks;  // [2 nodes] bytes allocated at the start and freed at the end of a call
    uint64_t  input_bytes;    // of graph inputs, which are resident throughout
} tli_census;

static void tli_free_census(tl_env *env, tli_census *c) {
    tli_release(env, c->ops);
    tli_release(env, c->grows);
}

// Allocate the arrays in two blocks, one for 4-byte and one for 8-byte numbers. 0 if there is no
// memory, or if the graph has more than INT32_MAX / 2 nodes, whose calls 31 bits do not number.
static int tli_open_census(tl_env *env, const tl_graph *graph, tli_census *c) {
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    tli_zero(c, sizeof *c);
    c->graph = graph;
    c->ops = (int32_t *)tli_alloc_array(env, 3 * nodes + 4 * tensors, sizeof *c->ops);
    c->grows = (uint64_t *)tli_alloc_array(env, 4 * nodes, sizeof *c->grows);
    if (!c->ops || !c->grows || graph->node_count > INT32_MAX / 2) return 0;
    c->firsts = c->ops + nodes;
    c->levels = c->firsts + nodes;
    c->last_readers = c->levels + nodes;
    c->last_uses = c->last_readers + tensors;
    c->first_grads = c->last_uses + tensors;
    c->marks = c->first_grads + tensors;
    c->shrinks = c->grows + 2 * nodes;
    return 1;
}

static int32_t tli_backward_call(const tl_graph *graph, int32_t node) {
    return 2 * graph->node_count - 1 - node;
}

static int32_t tli_larger_i32(int32_t a, int32_t b) { return a > b ? a : b; }

// Number the ops in order of first appearance; returns how many there are.
static int32_t tli_count_ops(tli_census *c) {
    const tl_graph *graph = c->graph;
    int32_t count = 0, i, k;
    for (i = 0; i < graph->node_count; i++) {
        for (k = 0; k < count && !tli_same_text(tl_name_op(graph, c->firsts[k]), tl_name_op(graph, i)); k++) {}
        if (k == count) c->firsts[count++] = i;
        c->ops[i] = k;
    }
    return count;
}

// Find the last reader and the last use of each tensor, and the call that makes its gradient.
static void tli_find_lives(tli_census *c) {
    const tl_graph *graph = c->graph;
    int32_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        for (k = node->first_output; k < node->first_output + node->output_count; k++) {
            c->last_readers[k] = i;
            c->last_uses[k] = graph->outputs[k].needed ? tli_backward_call(graph, i) : i;
            c->first_grads[k] = tli_backward_call(graph, i);
        }
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t tensor = graph->inputs[k].tensor;
            c->last_readers[tensor] = i;
            c->last_uses[tensor] = tli_larger_i32(c->last_uses[tensor], i);
            if (graph->inputs[k].needed)
                c->last_uses[tensor] = tli_larger_i32(c->last_uses[tensor], tli_backward_call(graph, i));
            if (node->has_grad) c->first_grads[tensor] = tli_backward_call(graph, i);
        }
    }
}

// The peak of training that keeps every tensor until its last use.
static uint64_t tli_find_keep_all_peak(tli_census *c) {
    const tl_graph *graph = c->graph;
    uint64_t live = c->input_bytes, peak = c->input_bytes;
    int32_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        int32_t back = tli_backward_call(graph, i);
        for (k = node->first_output; k < node->first_output + node->output_count; k++) {
            if (!node->is_input) c->grows[i] += graph->outputs[k].bytes;
            if (!node->is_input && !node->keep) c->shrinks[c->last_uses[k]] += graph->outputs[k].bytes;
            if (!tli_gets_gradient(graph, k)) continue;
            c->grows[c->first_grads[k]] += graph->outputs[k].bytes;
            c->shrinks[back] += graph->outputs[k].bytes;
        }
        c->grows[i] += node->saved_bytes + (node->saved_bytes ? node->swork_bytes : node->fwork_bytes);
        c->shrinks[i] += node->saved_bytes ? node->swork_bytes : node->fwork_bytes;
        c->grows[back] += node->bwork_bytes;
        c->shrinks[back] += node->bwork_bytes + node->saved_bytes;
    }
    for (i = 0; i < 2 * graph->node_count; i++) {
        live += c->grows[i];
        peak = tli_larger_u64(peak, live);
        live -= c->shrinks[i];
    }
    return peak;
}

// The bytes that must be live during each call of a node, without graph inputs. A forward that may
// run in place needs the bytes of that input and of output 0 only once.
static void tli_find_working_sets(tli_census *c, int32_t id, uint64_t *forward, uint64_t *save,
                                  uint64_t *backward) {
    const tl_graph *graph = c->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t inputs = 0, outputs = 0, kept = 0, gradients = 0;
    int32_t k;
    for (k = node->first_output; k < node->first_output + node->output_count; k++) {
        if (node->state && !tli_gets_gradient(graph, k)) continue;
        outputs += graph->outputs[k].bytes;
        if (!node->state && graph->outputs[k].needed) kept += graph->outputs[k].bytes;
    }
    for (k = node->first_input; k < node->first_input + node->input_count; k++) {
        int32_t tensor = graph->inputs[k].tensor;
        uint64_t bytes = graph->outputs[tensor].bytes;
        int is_input = graph->nodes[graph->outputs[tensor].node].is_input;
        if (c->marks[tensor] < 2 * id + 2) {  // 2 id + 2 = counted once, 2 id + 3 = also counted as needed
            if (!is_input) inputs += bytes;
            if (tli_gets_gradient(graph, tensor)) gradients += bytes;
            c->marks[tensor] = 2 * id + 2;
        }
        if (!is_input && graph->inputs[k].needed && c->marks[tensor] == 2 * id + 2) {
            kept += bytes;
            c->marks[tensor]++;
        }
    }
    *forward = inputs + outputs + node->fwork_bytes;
    if (node->inplace >= 0) *forward -= graph->outputs[node->first_output].bytes;
    *save = node->saved_bytes ? inputs + outputs + node->swork_bytes + node->saved_bytes : 0;
    *backward = node->has_grad ? kept + outputs + gradients + node->saved_bytes + node->bwork_bytes : 0;
}

// Find the nodes whose forward every plan runs. Bit 0, training: nodes with a gradient, results,
// and their ancestors. Bit 1, forward only: results and their ancestors, where without any `keep`
// every node counts.
static void tli_find_runs(tli_census *c) {
    const tl_graph *graph = c->graph;
    int32_t *runs = c->levels, i, k, any_keep = 0;
    for (i = 0; i < graph->node_count; i++) any_keep |= graph->nodes[i].keep;
    for (i = 0; i < graph->node_count; i++)
        runs[i] = (graph->nodes[i].has_grad | graph->nodes[i].keep) + 2 * (graph->nodes[i].keep | !any_keep);
    for (i = graph->node_count; i-- > 0;)
        for (k = 0; k < graph->nodes[i].input_count; k++)
            runs[graph->outputs[graph->inputs[graph->nodes[i].first_input + k].tensor].node] |= runs[i];
}

static void tli_find_floor(tli_census *c, tl_graph_statistics *s) {
    const tl_graph *graph = c->graph;
    uint64_t forward, save, backward;
    int32_t i;
    tli_find_runs(c);
    s->floor_bytes = s->inference_floor_bytes = c->input_bytes;
    for (i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].is_input && !graph->nodes[i].has_grad) continue;
        tli_find_working_sets(c, i, &forward, &save, &backward);
        if (graph->nodes[i].is_input) forward = 0;  // a state: its update alone
        if (c->levels[i] & 2 && c->input_bytes + forward > s->inference_floor_bytes) {
            s->inference_floor_bytes = c->input_bytes + forward;
            s->inference_floor_node = i;
        }
        if (save) forward = save;  // FORWARD_SAVE makes the outputs, too: a plan needs no plain forward
        if (!(c->levels[i] & 1)) forward = 0;
        if (c->input_bytes + tli_larger_u64(forward, backward) <= s->floor_bytes) continue;
        s->floor_bytes = c->input_bytes + tli_larger_u64(forward, backward);
        s->floor_node = i;
        s->floor_is_backward = backward > forward;
    }
}

// Find the longest path, the width and the cuts. With cuts = NULL the cuts are only counted.
static void tli_find_shape(tli_census *c, tl_graph_statistics *s, int32_t *cuts) {
    const tl_graph *graph = c->graph;
    int32_t i, k, reach = 0, crossing = 0;
    s->cut_count = 0;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        c->levels[i] = 1;
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t from = graph->outputs[graph->inputs[k].tensor].node;
            c->levels[i] = tli_larger_i32(c->levels[i], c->levels[from] + 1);
        }
        s->depth = tli_larger_i32(s->depth, c->levels[i]);
    }
    for (i = 0; i < graph->node_count; i++) c->levels[i] = 0;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        if (reach <= i) {
            if (cuts) cuts[s->cut_count] = i;
            s->cut_count++;
        }
        crossing -= c->levels[i];  // tensors that are read here for the last time
        for (k = node->first_output; k < node->first_output + node->output_count; k++) {
            if (c->last_readers[k] == i) continue;
            reach = tli_larger_i32(reach, c->last_readers[k]);
            c->levels[c->last_readers[k]]++;
            crossing++;
        }
        s->width = tli_larger_i32(s->width, crossing);
    }
}

static void tli_add_to_op(const tl_graph *graph, int32_t id, tl_op_statistics *op) {
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    op->op = tl_name_op(graph, id);
    op->node_count++;
    for (k = 0; k < node->output_count; k++) op->output_bytes += graph->outputs[node->first_output + k].bytes;
    op->saved_bytes += node->saved_bytes;
    op->param_bytes += node->param_bytes;
    op->fwd_cost += node->fwd_cost;
    op->bwd_cost += node->bwd_cost;
}

static void tli_sum_nodes(tli_census *c, tl_graph_statistics *s, tl_op_statistics *ops) {
    const tl_graph *graph = c->graph;
    int32_t i;
    for (i = 0; i < graph->node_count; i++) {
        tli_add_to_op(graph, i, &ops[c->ops[i]]);
        s->input_node_count += graph->nodes[i].is_input > 0;
        s->grad_node_count += graph->nodes[i].has_grad;
    }
    for (i = 0; i < s->op_count; i++) {
        s->output_bytes += ops[i].output_bytes;
        s->saved_bytes += ops[i].saved_bytes;
        s->param_bytes += ops[i].param_bytes;
        s->fwd_cost += ops[i].fwd_cost;
        s->bwd_cost += ops[i].bwd_cost;
    }
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        if (graph->nodes[output->node].is_input) c->input_bytes += output->bytes;
        if (i && output->bytes <= s->largest_bytes) continue;
        s->largest_bytes = output->bytes;
        s->largest_tensor.node = output->node;
        s->largest_tensor.output = output->output;
    }
}

TLI_IMPL tl_result tl_measure_graph(tl_env *env, const tl_graph *graph, tl_graph_statistics *statistics) {
    tl_graph_statistics s;
    tli_census c;
    tl_op_statistics *ops;
    tl_result result;
    int32_t *cuts;
    TL_ASSERT(graph && statistics);
    tli_zero(statistics, sizeof *statistics);
    result = tl_check_graph(env, graph);
    if (result) return result;
    tli_zero(&s, sizeof s);
    s.node_count = graph->node_count;
    s.tensor_count = graph->tensor_count;
    if (tli_open_census(env, graph, &c)) {
        s.op_count = tli_count_ops(&c);
        tli_find_lives(&c);
        tli_find_shape(&c, &s, NULL);
        s.memory = tli_alloc_array(env, 1, (size_t)s.op_count * sizeof *ops +
                                           (size_t)s.cut_count * sizeof *cuts);
    }
    if (!s.memory) {
        tli_free_census(env, &c);
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(MEASURE_GRAPH), TLI_RULE(NO_MEMORY_TO_COUNT_IN));
    }
    ops = (tl_op_statistics *)s.memory;
    cuts = (int32_t *)(void *)(ops + s.op_count);
    tli_sum_nodes(&c, &s, ops);
    tli_find_shape(&c, &s, cuts);
    tli_find_floor(&c, &s);
    s.keep_all_bytes = tli_find_keep_all_peak(&c);
    s.ops = ops;
    s.cuts = cuts;
    tli_free_census(env, &c);
    *statistics = s;
    return TL_OK;
}

TLI_IMPL void tl_free_graph_statistics(tl_env *env, tl_graph_statistics *statistics) {
    if (!statistics) return;
    tli_release(env, statistics->memory);
    tli_zero(statistics, sizeof *statistics);
}

#ifndef TL_NO_TEXT
static void tli_put_column(tli_writer *w, uint64_t value, size_t width) {
    char digits[24];
    tli_writer number = tli_writer_of(digits, sizeof digits);
    size_t length;
    tli_put_u64(&number, value);
    for (length = tli_finish(&number); length < width; length++) tli_put(w, " ");
    tli_put(w, digits);
}

static void tli_put_op(tli_writer *w, const tl_op_statistics *op, const char *name) {
    int32_t length = tli_count_characters(name, 16);
    tli_put_column(w, (uint64_t)op->node_count, 6);
    tli_put(w, "  "); tli_put(w, name);
    for (; length < 16; length++) tli_put(w, " ");
    tli_put_column(w, op->output_bytes, 16);
    tli_put_column(w, op->saved_bytes, 16);
    tli_put_column(w, op->param_bytes, 16);
    tli_put_column(w, op->fwd_cost, 20);
    tli_put_column(w, op->bwd_cost, 20);
    tli_put(w, "\n");
}

static void tli_put_fact(tli_writer *w, const char *before, uint64_t value, const char *after) {
    tli_put(w, before); tli_put_u64(w, value); tli_put(w, after);
}

TLI_IMPL size_t tl_print_graph_statistics(const tl_graph *graph, const tl_graph_statistics *statistics,
                                          char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_graph_statistics *s = statistics;
    tl_op_statistics sum;
    int32_t i;
    TL_ASSERT(graph && statistics);
    tli_put(&w, " nodes  op                    output bytes     saved bytes    weight bytes"
                "        forward cost       backward cost\n");
    for (i = 0; i < s->op_count; i++) tli_put_op(&w, &s->ops[i], s->ops[i].op);
    tli_zero(&sum, sizeof sum);
    sum.node_count = s->node_count;
    sum.output_bytes = s->output_bytes; sum.saved_bytes = s->saved_bytes; sum.param_bytes = s->param_bytes;
    sum.fwd_cost = s->fwd_cost; sum.bwd_cost = s->bwd_cost;
    tli_put_op(&w, &sum, "all");
    tli_put_fact(&w, "depth ", (uint64_t)s->depth, ", ");
    tli_put_fact(&w, "width ", (uint64_t)s->width, ", ");
    tli_put_fact(&w, "cuts ", (uint64_t)s->cut_count, "\n");
    tli_put_fact(&w, "largest tensor: ", s->largest_bytes, " bytes, of ");
    tli_put(&w, tl_name_node(graph, s->largest_tensor.node));
    tli_put_fact(&w, "\nfloor: ", s->floor_bytes, " bytes, ");
    tli_put(&w, s->floor_is_backward ? "backward of " : "forward of ");
    tli_put(&w, tl_name_node(graph, s->floor_node));
    tli_put_fact(&w, "; forward only ", s->inference_floor_bytes, " bytes\n");
    tli_put_fact(&w, "keep all: ", s->keep_all_bytes, " bytes\n");
    return tli_finish(&w);
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

