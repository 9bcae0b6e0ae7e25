#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- order: calls and items --
//
// Every call of the plan runs once: the forwards, and in training the backwards, which follow each other in
// one order. An item is what a call makes and later calls read: an output, saved bytes, a gradient. It is
// live from the call that makes it to the last one that reads it. So the live bytes after some calls depend
// on the set of these calls alone, whatever their order: live(S), for every set S that holds with a call all
// that it reads. While a call c runs after S, live(S), all that c makes and its scratch are live, but for
// what c overwrites.

typedef struct tli_order_item {
    uint64_t bytes;
    int32_t  maker;                     // call
    int32_t  first_reader, end_reader;  // in readers[]: the calls that read it, each once
    int32_t  tensor;                    // dropped by a step after the last reader; -1 = none: no step frees it
    int32_t  stays;                     // 1 = a result: live at the end
} tli_order_item;

typedef struct tli_order_call {
    int32_t  node, is_backward;
    int32_t  first_item, end_item;      // that it makes
    int32_t  first_read, end_read;      // in reads[]: the items that it reads, each once
    int32_t  over;                      // the item that it may overwrite; -1 = none
    // before: of a backward, the backward before it and its own forward. after: the next backward, and of a
    // forward its backward. -1 = none
    int32_t  before[2], after[2];
    uint64_t made_bytes, work_bytes;    // of its items; freed at its end
} tli_order_call;

typedef struct tli_order {
    tl_env         *env;
    const tl_order_desc *desc;
    const tl_graph *graph;
    uint64_t        alignment, pinned;  // pinned: graph inputs
    int32_t         late_count;         // nodes without a backward that an update waits for
    tli_order_call *calls;   int32_t call_count;
    tli_order_item *items;   int32_t item_count;
    int32_t        *reads,  read_count;
    int32_t        *readers;
    uint8_t        *wanted, *results;   // [tensors]
    int32_t        *item_of, *gradient_of;   // [tensors] -1 = none
    int32_t        *saved_of, *call_of; // [nodes] -1 = none
    int32_t        *order, *place;      // [calls] the order found so far; where a call is in it
    uint64_t       *during, *before;    // [calls] by place: highest live bytes during the call; before it
    int32_t        *left, *mark;        // [items] readers that have not run; scratch
    uint64_t        bound, peak;
    uint64_t        work, work_limit, next_ask;
    int             stopped, failed;    // by progress; no memory
} tli_order;

static uint64_t tli_order_bytes(const tli_order *o, uint64_t bytes) {
    return tli_round_bytes(bytes, o->alignment);
}

static int32_t tli_order_add_item(tli_order *o, int32_t call, uint64_t bytes, int32_t tensor, int stays) {
    tli_order_item *item = &o->items[o->item_count];
    item->bytes = tli_order_bytes(o, bytes);
    item->maker = call;
    item->tensor = tensor;
    item->stays = stays;
    o->calls[call].made_bytes += item->bytes;
    o->calls[call].end_item = o->item_count + 1;
    return o->item_count++;
}

// Note that a call reads an item, if there is one, and once only.
static void tli_order_add_read(tli_order *o, int32_t call, int32_t item) {
    if (item < 0 || o->mark[item] == call + 1) return;
    o->mark[item] = call + 1;
    o->reads[o->read_count++] = item;
    o->items[item].end_reader++;        // their count until tli_order_list_readers
}

static int32_t tli_order_add_call(tli_order *o, int32_t id, int is_backward, uint64_t work_bytes) {
    tli_order_call *call = &o->calls[o->call_count];
    call->node = id;
    call->is_backward = is_backward;
    call->first_item = call->end_item = o->item_count;
    call->first_read = o->read_count;
    call->over = call->before[0] = call->before[1] = call->after[0] = call->after[1] = -1;
    call->work_bytes = tli_order_bytes(o, work_bytes);
    return o->call_count++;
}

// The item that a forward may overwrite, by the rules of step I ([5]).
static int32_t tli_order_find_over(const tli_order *o, const tl_node *node, int saves) {
    const tl_node_input *inputs = tli_inputs_of(o->graph, node);
    int32_t i, tensor, reads = 0;
    if (node->inplace < 0 || (saves && node->saved_bytes)) return -1;
    tensor = inputs[node->inplace].tensor;
    for (i = 0; i < node->input_count; i++) reads += inputs[i].tensor == tensor;
    return reads == 1 && o->graph->outputs[tensor].bytes && !o->results[tensor] ? o->item_of[tensor] : -1;
}

// Add the items of no bytes that a forward makes. Of a node without a backward that stands in the place of
// saved bytes, which it does not have; of statistics in that of the item that their next reader reads.
static void tli_order_add_waits(tli_order *o, int32_t call) {
    const tl_graph *graph = o->graph;
    int32_t id = o->calls[call].node, i;
    const tl_node *node = &graph->nodes[id];
    for (i = node->first_input; i < node->first_input + node->input_count && !o->desc->inference; i++) {
        int32_t tensor = graph->inputs[i].tensor, *last = &o->item_of[tensor];
        const tl_node *maker = &graph->nodes[graph->outputs[tensor].node];
        if (maker->state == TL_STATE_STATISTIC && (*last < 0 || o->items[*last].maker != call))
            *last = tli_order_add_item(o, call, 0, -1, 0);
        if (!tli_has_update(maker) || node->has_grad || o->saved_of[id] >= 0) continue;
        o->saved_of[id] = tli_order_add_item(o, call, 0, -1, 0);
        o->late_count++;
    }
}

// An update reads what those make that read its weight and have no backward.
static void tli_order_wait_for_readers(tli_order *o, int32_t call) {
    const tl_graph *graph = o->graph;
    int32_t state = o->calls[call].node, id, i;
    if (!o->late_count || !tli_has_update(&graph->nodes[state])) return;
    for (id = state + 1; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count && !node->has_grad; i++)
            if (graph->inputs[i].tensor == graph->nodes[state].first_output)
                tli_order_add_read(o, call, o->saved_of[id]);
    }
}

static void tli_order_add_forward(tli_order *o, int32_t id) {
    const tl_graph *graph = o->graph;
    const tl_node *node = &graph->nodes[id];
    int saves = node->saved_bytes && !o->desc->inference;
    int32_t call = tli_order_add_call(o, id, 0, saves ? node->swork_bytes : node->fwork_bytes), i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        o->item_of[i] = tli_order_add_item(o, call, graph->outputs[i].bytes, i, o->results[i]);
    if (saves)
        o->saved_of[id] = tli_order_add_item(o, call, node->saved_bytes, -1, 0);
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        tli_order_add_read(o, call, o->item_of[graph->inputs[i].tensor]);
    tli_order_add_waits(o, call);
    o->calls[call].end_read = o->read_count;
    o->calls[call].over = tli_order_find_over(o, node, !o->desc->inference);
    o->call_of[id] = call;
}

// A gradient is made by the first backward that adds to it, and read by the backward of the node that made
// its tensor; those between need no mention, because backwards keep their order. One that nobody adds to
// lives in that backward alone.
static void tli_order_add_backward(tli_order *o, int32_t id) {
    const tl_graph *graph = o->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t call = tli_order_add_call(o, id, 1, node->bwork_bytes), forward = o->call_of[id], i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed) tli_order_add_read(o, call, o->item_of[i]);
    for (i = node->first_output; i < tli_gradient_end(node); i++) {
        tli_order_add_read(o, call, o->gradient_of[i]);
        if (o->gradient_of[i] < 0) o->calls[call].work_bytes += tli_order_bytes(o, graph->outputs[i].bytes);
    }
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t tensor = graph->inputs[i].tensor;
        if (graph->inputs[i].needed) tli_order_add_read(o, call, o->item_of[tensor]);
        if (o->gradient_of[tensor] >= 0 || !tli_gets_gradient(graph, tensor)) continue;
        o->gradient_of[tensor] = tli_order_add_item(o, call, graph->outputs[tensor].bytes, -1, 0);
    }
    tli_order_add_read(o, call, o->saved_of[id]);
    tli_order_wait_for_readers(o, call);
    o->calls[call].end_read = o->read_count;
    o->calls[call].before[1] = forward;
    if (forward >= 0) o->calls[forward].after[1] = call;  // a state has none
    if (call && o->calls[call - 1].is_backward) {
        o->calls[call].before[0] = call - 1;
        o->calls[call - 1].after[0] = call;
    }
}

// Find the nodes that run: those with a gradient, in training, and those whose outputs a call or a result
// needs.
static void tli_order_find_wanted(tli_order *o) {
    const tl_graph *graph = o->graph;
    int32_t id, i;
    tli_mark_results(graph, o->desc->inference, o->results);
    tli_copy(o->wanted, o->results, (size_t)graph->tensor_count);
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int runs = node->has_grad && !o->desc->inference;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            runs |= o->wanted[i];
            if (node->is_input) o->pinned += tli_order_bytes(o, graph->outputs[i].bytes);
        }
        if (node->is_input || !runs) continue;
        o->call_of[id] = 0;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            o->wanted[graph->inputs[i].tensor] = 1;
    }
}

static void tli_order_list_readers(tli_order *o) {
    int32_t i, k, sum = 0, count;
    for (i = 0; i < o->item_count; i++) {
        count = o->items[i].end_reader;
        o->items[i].first_reader = o->items[i].end_reader = sum;
        sum += count;
        o->mark[i] = 0;
    }
    for (i = 0; i < o->call_count; i++)
        for (k = o->calls[i].first_read; k < o->calls[i].end_read; k++)
            o->readers[o->items[o->reads[k]].end_reader++] = i;
}

// List the calls: the forwards in the order of the listing, then the backwards in reverse.
static void tli_order_list_calls(tli_order *o) {
    const tl_graph *graph = o->graph;
    int32_t id, i;
    for (i = 0; i < graph->tensor_count; i++) o->item_of[i] = o->gradient_of[i] = -1;
    for (id = 0; id < graph->node_count; id++) o->saved_of[id] = o->call_of[id] = -1;
    tli_order_find_wanted(o);
    for (id = 0; id < graph->node_count; id++)
        if (o->call_of[id] >= 0) tli_order_add_forward(o, id);
    for (id = graph->node_count; id-- > 0 && !o->desc->inference;)
        if (graph->nodes[id].has_grad) tli_order_add_backward(o, id);
    tli_order_list_readers(o);
    for (i = 0; i < o->call_count; i++) o->order[i] = o->place[i] = i;
}

#define TLI_ORDER_NEW(o, count, type) ((type *)tli_alloc_array((o)->env, (uint64_t)(count), sizeof(type)))

static int64_t tli_count_statistic_reads(const tl_graph *graph) {
    int64_t count = 0;
    int32_t i;
    for (i = 0; i < graph->input_count; i++)
        count += graph->nodes[graph->outputs[graph->inputs[i].tensor].node].state == TL_STATE_STATISTIC;
    return count;
}

// Get what calls and items need. 0 = no memory.
static int tli_order_alloc(tli_order *o) {
    int64_t nodes = o->graph->node_count, tensors = o->graph->tensor_count, inputs = o->graph->input_count;
    int64_t reads = 2 * inputs + 2 * tensors + nodes;
    int64_t items = 2 * tensors + nodes + tli_count_statistic_reads(o->graph);
    o->calls = TLI_ORDER_NEW(o, 2 * nodes, tli_order_call);
    o->items = TLI_ORDER_NEW(o, items, tli_order_item);
    o->reads = TLI_ORDER_NEW(o, reads, int32_t);
    o->readers = TLI_ORDER_NEW(o, reads, int32_t);
    o->wanted = TLI_ORDER_NEW(o, tensors, uint8_t);
    o->results = TLI_ORDER_NEW(o, tensors, uint8_t);
    o->item_of = TLI_ORDER_NEW(o, tensors, int32_t);
    o->gradient_of = TLI_ORDER_NEW(o, tensors, int32_t);
    o->saved_of = TLI_ORDER_NEW(o, nodes, int32_t);
    o->call_of = TLI_ORDER_NEW(o, nodes, int32_t);
    o->order = TLI_ORDER_NEW(o, 2 * nodes, int32_t);
    o->place = TLI_ORDER_NEW(o, 2 * nodes, int32_t);
    o->during = TLI_ORDER_NEW(o, 2 * nodes, uint64_t);
    o->before = TLI_ORDER_NEW(o, 2 * nodes, uint64_t);
    o->left = TLI_ORDER_NEW(o, items, int32_t);
    o->mark = TLI_ORDER_NEW(o, items, int32_t);
    return o->calls && o->items && o->reads && o->readers && o->wanted && o->results && o->item_of &&
           o->gradient_of && o->saved_of && o->call_of && o->order && o->place && o->during && o->before &&
           o->left && o->mark;
}

static void tli_order_free(tli_order *o) {
    void *arrays[16];
    int i;
    arrays[0] = o->calls; arrays[1] = o->items; arrays[2] = o->reads; arrays[3] = o->readers;
    arrays[4] = o->wanted; arrays[5] = o->results; arrays[6] = o->item_of; arrays[7] = o->gradient_of;
    arrays[8] = o->saved_of; arrays[9] = o->call_of; arrays[10] = o->order; arrays[11] = o->place;
    arrays[12] = o->during; arrays[13] = o->before; arrays[14] = o->left; arrays[15] = o->mark;
    for (i = 0; i < 16; i++) tli_release(o->env, arrays[i]);
}

// Whether the work is spent, or progress says stop.
static int tli_order_stops(tli_order *o) {
    tl_order_progress now;
    if (o->stopped || o->work >= o->work_limit) return 1;
    if (!o->desc->progress || o->work < o->next_ask) return 0;
    o->next_ask = o->work + TLI_REMAT_ASK;
    now.work = o->work;
    now.work_limit = o->work_limit;
    now.peak_bytes = o->peak;
    now.bound_bytes = o->bound;
    o->stopped = (o->desc->progress)(&now, o->desc->user) != 0;
    return o->stopped;
}

// Replay the order: during[], before[] and the peak.
static void tli_order_replay(tli_order *o) {
    uint64_t live = o->pinned;
    int32_t at, k;
    for (k = 0; k < o->item_count; k++) o->left[k] = o->items[k].end_reader - o->items[k].first_reader;
    o->peak = live;
    for (at = 0; at < o->call_count; at++) {
        const tli_order_call *call = &o->calls[o->order[at]];
        o->before[at] = live;
        live += call->made_bytes;
        o->during[at] = live + call->work_bytes;
        if (call->over >= 0 && o->left[call->over] == 1) o->during[at] -= o->items[call->over].bytes;
        if (o->during[at] > o->peak) o->peak = o->during[at];
        for (k = call->first_item; k < call->end_item; k++)
            if (!o->left[k] && !o->items[k].stays) live -= o->items[k].bytes;
        for (k = call->first_read; k < call->end_read; k++)
            if (!--o->left[o->reads[k]] && !o->items[o->reads[k]].stays) live -= o->items[o->reads[k]].bytes;
    }
    o->work += 8 * (uint64_t)o->call_count + 2 * (uint64_t)o->read_count;
}

// -- order: a window of calls --
//
// What a search looks at: the calls at some consecutive places of the order, with all before them done. They
// get numbers of their own, in the order that they have now; so a call reads only what calls of lower numbers
// make.

typedef struct tli_order_window {
    tli_order *o;
    int32_t    first, count, words;     // words: of a set of its calls
    uint64_t   live;                    // before the first call
    int32_t   *reads, *first_read;      // [count + 1] items that can die here, by call
    int32_t   *readers, *first_reader;  // [items + 1] calls here, by item
    int32_t   *makers;                  // [items] -1 = before the window
    uint64_t  *bytes;                   // [items]
    int32_t   *before, *first_before;   // [count + 1] calls here that run before it, by call
    int32_t   *after, *first_after;     // [count + 1]
    int32_t   *over;                    // [count] item here that it may overwrite; -1 = none
    uint64_t  *takes, *keeps, *stays;   // [count] bytes that it adds: while it runs, after it, after the window
    int32_t   *best;                    // [count] the order found
    uint64_t   best_peak, bound;
    int32_t    item_count;
} tli_order_window;

static int32_t tli_order_number(const tli_order_window *w, int32_t call) {
    int32_t at = call < 0 ? -1 : w->o->place[call] - w->first;
    return at < w->count ? at : -1;
}

// Whether an item dies in the window, if it is live there.
static int tli_order_dies(const tli_order_window *w, const tli_order_item *item) {
    int32_t k;
    if (item->stays) return 0;
    for (k = item->first_reader; k < item->end_reader; k++)
        if (w->o->place[w->o->readers[k]] >= w->first + w->count) return 0;
    return 1;
}

// Number the items that die in the window and list who reads them. The numbers stand in mark[], plus 1.
static void tli_order_list_items(tli_order_window *w) {
    tli_order *o = w->o;
    int32_t i, k, m, reads = 0, readers = 0;
    for (i = 0; i < w->count; i++) {
        const tli_order_call *call = &o->calls[o->order[w->first + i]];
        w->first_read[i] = reads;
        for (k = call->first_read; k < call->end_read; k++) {
            const tli_order_item *item = &o->items[o->reads[k]];
            int32_t *number = &o->mark[o->reads[k]];
            if (!*number && !tli_order_dies(w, item)) continue;
            if (!*number) {
                int32_t maker = o->place[item->maker] - w->first;
                *number = ++w->item_count;
                w->bytes[*number - 1] = item->bytes;
                w->makers[*number - 1] = maker < 0 ? -1 : maker;
                w->first_reader[*number - 1] = readers;
                for (m = item->first_reader; m < item->end_reader; m++)
                    if (o->place[o->readers[m]] >= w->first)
                        w->readers[readers++] = o->place[o->readers[m]] - w->first;
            }
            w->reads[reads++] = *number - 1;
        }
        w->over[i] = call->over >= 0 ? o->mark[call->over] - 1 : -1;
    }
    w->first_read[w->count] = reads;
    w->first_reader[w->item_count] = readers;
    o->work += 4 * (uint64_t)(reads + readers + w->count);
}

static void tli_order_list_calls_before(tli_order_window *w) {
    const tli_order *o = w->o;
    int32_t i, k, edges = 0;
    for (i = 0; i < w->count; i++) {
        const tli_order_call *call = &o->calls[o->order[w->first + i]];
        w->first_before[i] = edges;
        for (k = call->first_read - 2; k < call->end_read; k++) {
            int32_t from = k < call->first_read ? call->before[k - call->first_read + 2]
                                                : o->items[o->reads[k]].maker;
            int32_t at = tli_order_number(w, from);
            if (at < 0) continue;
            w->before[edges++] = at;
            w->first_after[at + 1]++;
        }
    }
    w->first_before[w->count] = edges;
    for (i = 0; i < w->count; i++) w->first_after[i + 1] += w->first_after[i];
    for (i = w->count; i-- > 0;)
        for (k = w->first_before[i]; k < w->first_before[i + 1]; k++)
            w->after[--w->first_after[w->before[k] + 1]] = i;
    for (i = 0; i < w->count; i++) w->first_after[i] = w->first_after[i + 1];
    w->first_after[w->count] = edges;
}

static void tli_order_weigh_calls(tli_order_window *w) {
    const tli_order *o = w->o;
    int32_t i, k;
    for (i = 0; i < w->count; i++) {
        const tli_order_call *call = &o->calls[o->order[w->first + i]];
        w->takes[i] = call->made_bytes + call->work_bytes;
        for (k = call->first_item; k < call->end_item; k++) {
            const tli_order_item *item = &o->items[k];
            if (!item->stays && item->first_reader == item->end_reader) continue;
            w->keeps[i] += item->bytes;
            if (!tli_order_dies(w, item)) w->stays[i] += item->bytes;
        }
        w->best[i] = i;
        if (o->during[w->first + i] > w->best_peak) w->best_peak = o->during[w->first + i];
    }
}

static void tli_order_close_window(tli_order_window *w) {
    void *arrays[14];
    int i;
    arrays[0] = w->reads; arrays[1] = w->first_read; arrays[2] = w->readers; arrays[3] = w->first_reader;
    arrays[4] = w->makers; arrays[5] = w->bytes; arrays[6] = w->before; arrays[7] = w->first_before;
    arrays[8] = w->after; arrays[9] = w->first_after; arrays[10] = w->over; arrays[11] = w->takes;
    arrays[12] = w->keeps; arrays[13] = w->stays;
    for (i = 0; i < 14; i++) tli_release(w->o->env, arrays[i]);
    tli_release(w->o->env, w->best);
}

// Open the window of the calls at the places first .. first + count - 1. 0 = no memory.
static int tli_order_open_window(tli_order *o, int32_t first, int32_t count, tli_order_window *w) {
    int64_t reads = 0, readers = 0;
    int32_t i, k;
    tli_zero(w, sizeof *w);
    w->o = o;
    w->first = first;
    w->count = count;
    w->words = (count + 63) / 64;
    w->live = o->before[first];
    for (i = first; i < first + count; i++) {
        const tli_order_call *call = &o->calls[o->order[i]];
        reads += call->end_read - call->first_read;
    }
    readers = reads;    // each reader of an item here is a read here
    w->reads = TLI_ORDER_NEW(o, reads + 1, int32_t);
    w->first_read = TLI_ORDER_NEW(o, count + 1, int32_t);
    w->readers = TLI_ORDER_NEW(o, readers + 1, int32_t);
    w->first_reader = TLI_ORDER_NEW(o, reads + 1, int32_t);
    w->makers = TLI_ORDER_NEW(o, reads + 1, int32_t);
    w->bytes = TLI_ORDER_NEW(o, reads + 1, uint64_t);
    w->before = TLI_ORDER_NEW(o, reads + 2 * (int64_t)count + 1, int32_t);
    w->first_before = TLI_ORDER_NEW(o, count + 1, int32_t);
    w->after = TLI_ORDER_NEW(o, reads + 2 * (int64_t)count + 1, int32_t);
    w->first_after = TLI_ORDER_NEW(o, count + 1, int32_t);
    w->over = TLI_ORDER_NEW(o, count, int32_t);
    w->takes = TLI_ORDER_NEW(o, count, uint64_t);
    w->keeps = TLI_ORDER_NEW(o, count, uint64_t);
    w->stays = TLI_ORDER_NEW(o, count, uint64_t);
    w->best = TLI_ORDER_NEW(o, count, int32_t);
    if (!w->reads || !w->first_read || !w->readers || !w->first_reader || !w->makers || !w->bytes ||
        !w->before || !w->first_before || !w->after || !w->first_after || !w->over || !w->takes || !w->keeps ||
        !w->stays || !w->best) {
        tli_order_close_window(w);
        o->failed = 1;
        return 0;
    }
    tli_order_list_items(w);
    tli_order_list_calls_before(w);
    tli_order_weigh_calls(w);
    for (i = first; i < first + count; i++)
        for (k = o->calls[o->order[i]].first_read; k < o->calls[o->order[i]].end_read; k++)
            o->mark[o->reads[k]] = 0;
    return 1;
}

// Put the order found in the place of the one there was.
static void tli_order_take_window(tli_order_window *w) {
    tli_order *o = w->o;
    int32_t i;
    for (i = 0; i < w->count; i++) w->over[i] = o->order[w->first + w->best[i]];
    for (i = 0; i < w->count; i++) {
        o->order[w->first + i] = w->over[i];
        o->place[w->over[i]] = w->first + i;
        w->best[i] = i;
    }
    tli_order_replay(o);
}

#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
