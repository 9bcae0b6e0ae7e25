#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- search: dividing: a first sequence of few bytes, for graphs of any width --
//
//     a         mid           b      To reverse the nodes a..b, with all resident that they read of earlier
//     |----------|------------|      nodes: run a..mid and keep what mid..b reads of it, the frontier of mid;
//      advance    reverse first      reverse mid..b; then reverse a..mid. Nodes whose tensors all fit are run
//     |..........|                   and reversed at once.
//      reverse then
//
// This is Revolve (Griewank, Walther, 2000) over the nodes in listing order, with a set of tensors in the
// place of a layer's output; with halves it takes O(nodes log nodes) calls and the largest frontier O(log
// nodes) times. How many more frontiers fit says where to divide: with c of them and r repetitions at most,
// at r / (c + r). Near that place the smallest frontier is taken. Whether the sequence keeps the budget is
// seen when it is loaded.

#define TLI_DIVIDE_SLOTS 15

typedef struct tli_divide_segment { int32_t first, end; int64_t held; } tli_divide_segment;

typedef struct tli_divide {
    const tli_search_problem *p;
    tli_search_calls *calls;
    int64_t  budget;
    int32_t *last_read;           // [tensors] the last wanted node that reads it; -1 = none, or a graph input
    int64_t *kept_bytes;          // [nodes] of what it makes and others or its backward read
    uint8_t *has_run;             // [nodes] 1 = its forward is listed: never again if it may run once only
    tli_divide_segment *stack;    // [nodes + 1]
    int64_t *frontier;            // [nodes] scratch: bytes made before it in the segment and read from it on
    int32_t  count;               // of the stack
    uint64_t work;
} tli_divide;

// The most calls of a sequence: so many for each node, but in large graphs fewer, as they take memory.
static int64_t tli_divide_most_calls(const tl_graph *graph) {
    int64_t nodes = graph->node_count, most = 128 * nodes + 1024, large = 4 * nodes + (1 << 19);
    return most < large ? most : large;
}

static void tli_divide_read_graph(tli_divide *d) {
    const tli_search_problem *p = d->p;
    const tl_graph *graph = p->graph;
    int32_t id, i, k;
    for (i = 0; i < graph->tensor_count; i++) d->last_read[i] = -1;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count && p->is_wanted[id]; i++)
            if (!graph->nodes[graph->outputs[graph->inputs[i].tensor].node].is_input)
                d->last_read[graph->inputs[i].tensor] = id;
    }
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (graph->outputs[i].needed || d->last_read[i] >= 0) d->kept_bytes[id] += p->item_bytes[i];
        for (k = p->first_touch[2 * id]; k < p->first_touch[2 * id + 1]; k++)
            if (p->touches[k].item == tli_search_saved_item(p, id))
                d->kept_bytes[id] += (int64_t)node->saved_bytes;
    }
    d->work += 8 * (uint64_t)(graph->node_count + graph->input_count + graph->tensor_count);
}

static int tli_divide_add_call(tli_divide *d, int32_t call) {
    d->work += 4;
    return tli_search_add_call(d->p->env, d->calls, call);
}

static int tli_divide_add_forwards(tli_divide *d, int32_t first, int32_t end) {
    int32_t id, ok = 1;
    for (id = first; id < end && ok; id++) {
        if (!d->p->is_wanted[id] || (d->has_run[id] && d->p->graph->nodes[id].once)) continue;
        d->has_run[id] = 1;
        ok = tli_divide_add_call(d, 2 * id);
    }
    return ok;
}

static int tli_divide_add_backwards(tli_divide *d, int32_t first, int32_t end) {
    int32_t id, ok = 1;
    for (id = end; id-- > first && ok;)
        if (d->p->graph->nodes[id].has_grad) ok = tli_divide_add_call(d, 2 * id + 1);
    return ok;
}

// Find frontier[] of the nodes of a segment, and the bytes that running and reversing it at once takes.
static int64_t tli_divide_scan(tli_divide *d, const tli_divide_segment *s) {
    const tl_graph *graph = d->p->graph;
    int64_t live = 0, kept = 0, most = 0, during;
    int32_t id, i;
    for (id = s->first; id < s->end; id++) {
        const tl_node *node = &graph->nodes[id];
        d->frontier[id] = live;
        if (!d->p->is_wanted[id]) continue;
        d->work += 8 + 2 * (uint64_t)node->input_count;
        kept += d->kept_bytes[id];
        during = node->has_grad ? d->p->call_bytes[2 * id + 1] : 0;
        if (d->p->call_bytes[2 * id] > during) during = d->p->call_bytes[2 * id];
        if (during > most) most = during;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (d->last_read[tensor] != id || graph->outputs[tensor].node < s->first) continue;
            live -= d->p->item_bytes[tensor];
            d->last_read[tensor] = -2 - id;  // a node may read it twice
        }
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (d->last_read[graph->inputs[i].tensor] == -2 - id) d->last_read[graph->inputs[i].tensor] = id;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (d->last_read[i] > id) live += d->p->item_bytes[i];
    }
    return kept + most;
}

// The place at which to divide a segment that was scanned and that takes `bytes` at once.
static int32_t tli_divide_choose(tli_divide *d, const tli_divide_segment *s, int64_t bytes) {
    int64_t room = d->budget - d->p->input_bytes - s->held, mean = 0, slot_total, parts, repeats = 1, reach;
    int32_t count = s->end - s->first, id, best, from, to;
    for (id = s->first + 1; id < s->end; id++) mean += d->frontier[id];
    mean = mean / count + 1;
    slot_total = room > 0 ? room / mean / 2 : 0;  // half for frontiers, half for what is run at once
    if (slot_total > TLI_DIVIDE_SLOTS) slot_total = TLI_DIVIDE_SLOTS;
    parts = room > 1 ? 1 + bytes / (room / 2) : count;
    if (parts > count) parts = count;
    for (reach = slot_total + 1; reach < parts && slot_total; repeats++)  // C(slots + repeats, slots) parts
        reach = reach < INT64_C(1) << 30 ? reach * (slot_total + repeats + 1) / (repeats + 1) : parts;
    if (!slot_total || repeats > 3 * slot_total) { slot_total = 1; repeats = 3; }
    best = s->first + 1 + (int32_t)((count - 2) * repeats / (slot_total + repeats));
    from = best - (best - s->first - 1) / 4;
    to = best + (s->end - best - 1) / 4;
    for (id = from; id <= to; id++) if (d->frontier[id] < d->frontier[best]) best = id;
    return best;
}

static int tli_divide_run(tli_divide *d) {
    int64_t most = tli_divide_most_calls(d->p->graph);
    int32_t i;
    d->stack[0].end = d->p->node_count;
    for (i = 0; i < d->p->graph->tensor_count; i++)
        if (d->p->is_result[i]) d->stack[0].held += d->p->item_bytes[i];
    for (d->count = 1; d->count > 0;) {
        tli_divide_segment s = d->stack[--d->count];
        int64_t bytes = tli_divide_scan(d, &s);
        int at_once = s.held + bytes + d->p->input_bytes <= d->budget || s.end - s.first < 2;
        int32_t middle = at_once ? s.end : tli_divide_choose(d, &s, bytes);
        if (d->calls->count > most) at_once = 1;
        if (!tli_divide_add_forwards(d, s.first, at_once ? s.end : middle)) return 0;
        if (at_once) {
            if (!tli_divide_add_backwards(d, s.first, s.end)) return 0;
            continue;
        }
        d->stack[d->count] = s;
        d->stack[d->count++].end = middle;
        d->stack[d->count].first = middle;
        d->stack[d->count].end = s.end;
        d->stack[d->count++].held = s.held + d->frontier[middle];
    }
    return tli_divide_add_call(d, tli_search_end_call(d->p));
}

// List a training sequence in `calls` that divides the graph so that the budget is kept, if it can. The work
// is added to *work. 0 = no memory.
static int tli_search_divide(const tli_search_problem *p, int64_t budget, tli_search_calls *calls,
                             uint64_t *work) {
    tli_divide d;
    uint64_t nodes = (uint64_t)p->node_count;
    int ok;
    tli_zero(&d, sizeof d);
    d.p = p;
    d.calls = calls;
    d.budget = budget;
    calls->count = 0;
    d.last_read = (int32_t *)tli_alloc_array(p->env, (uint64_t)p->graph->tensor_count, sizeof *d.last_read);
    d.kept_bytes = (int64_t *)tli_alloc_array(p->env, nodes, sizeof *d.kept_bytes);
    d.frontier = (int64_t *)tli_alloc_array(p->env, nodes, sizeof *d.frontier);
    d.has_run = (uint8_t *)tli_alloc_array(p->env, nodes, 1);
    d.stack = (tli_divide_segment *)tli_alloc_array(p->env, nodes + 1, sizeof *d.stack);
    ok = d.last_read && d.kept_bytes && d.has_run && d.frontier && d.stack;
    if (ok) tli_divide_read_graph(&d);
    ok = ok && tli_divide_run(&d);
    tli_release(p->env, d.last_read);
    tli_release(p->env, d.kept_bytes);
    tli_release(p->env, d.has_run);
    tli_release(p->env, d.frontier);
    tli_release(p->env, d.stack);
    *work += d.work;
    return ok;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
