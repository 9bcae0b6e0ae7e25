#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- search: whole graphs under a hard budget --
//
//     calls    F1 F2 F3 B3 F2 B2 B1        A plan is represented by its sequence of calls alone.
//     item 2      m--u--u                  What each call saves, which calls run in place and when
//                           m--u           each tensor is dropped follow from it. Tensor 2 is live
//                                          from each call that makes it (m) to the last use (u)
//                                          before the next one.
//
// The sequence is the whole decision, because dropping at the last use is never worse than dropping
// later, and making all outputs anew is never worse than holding one of them across the call.
//
//   1. greedy: forwards in listing order, backwards in reverse order; missing items are recomputed
//      on demand; over the budget, the item with the least (cost to make it again) / (bytes x
//      distance to its next use) is evicted;
//   2. improve: remove some recomputations, which may exceed the budget, then mend: add other
//      recomputations, chosen at the call with the most live bytes, until the budget is kept; then
//      remove every recomputation that is not needed. The result is accepted if its cost is below
//      a slowly falling random threshold. Every change inserts or removes one call, takes time
//      proportional to the items live across it, and can be undone.
//
// This part holds the problem (p), the greedy planner (g) and the sequence (s); the next part holds the
// search (r) that changes it.

typedef struct tli_search_calls { int32_t *calls; int32_t count, capacity; } tli_search_calls;

typedef struct tli_remat_input {
    tl_env         *env;
    const tl_graph *graph;        // passed tl_check_graph
    uint64_t        budget;       // of the peak of live bytes, graph inputs included
    int32_t         inference;
    uint64_t        work_limit;   // of the search in elementary steps (a few ns each); 0 = greedy alone
    uint64_t        bound;        // lower bound of the cost: the search ends when it is reached
    tli_remat_watch *watch;
    int32_t         fetches;      // 1 = tensors may be fetched from a host tier
    tl_codec        codec;        // by which tensors may be compressed; 0 = none
    const uint8_t  *lossless;     // [tensors] 1 = is not compressed; NULL = all may be
    uint64_t        codec_rate;   // bytes a second; 0 = conversions take no time
} tli_remat_input;

// -- search: numbers --

// 2^16 log2(value), to about 2^-7, in integers so that scores are the same on every machine.
static int64_t tli_search_log(uint64_t value) {
    int64_t whole = 0, part;
    uint64_t top = value ? value : 1;
    int shift;
    for (shift = 32; shift; shift >>= 1)
        if (top >> shift) { whole += shift; top >>= shift; }
    top = value ? value : 1;
    part = (int64_t)(whole > 16 ? top >> (whole - 16) : top << (16 - whole)) - 65536;
    return whole * 65536 + part + part * (65536 - part) / 65536 * 22500 / 65536;
}

// -- search: the problem: items, and which of them each call makes and uses --
//
// Items: tensors, then saved bytes of each node, then for each node "it ran" (no bytes; it makes B v come
// after some F v). Graph inputs are not items. A touch is one item made or used by a call.

#define TLI_SEARCH_MOST_COST (UINT64_C(1) << 62)   // of a sequence
#define TLI_SEARCH_MOST_BYTES ((int64_t)1 << 60)  // of everything together: sums of bytes are signed here

// Whether tensors may come back from copies at all: without, compilers leave out what only copies take.
#ifdef TL_NO_OFFLOAD
#define TLI_SEARCH_COPIES 0
#else
#define TLI_SEARCH_COPIES 1
#endif

typedef struct tli_search_touch { uint32_t item : 31, is_use : 1; } tli_search_touch;

typedef struct tli_search_problem {
    tl_env         *env;
    const tl_graph *graph;
    int64_t         budget;
    int32_t         inference, item_count, node_count;
    int32_t         copies;          // 1 = tensors may come back from copies
    int64_t        *item_bytes;      // [item_count]
    int64_t        *packed_bytes;    // [tensors] of the compressed copy; 0 = has none
    uint64_t       *codec_ns;        // [tensors] time of one conversion, packed or not
    tli_search_touch   *touches;     // of F 0, B 0, F 1, B 1, ..., the end, then of fetches, expansions
    int32_t        *first_touch;     // [2 nodes + 2], with copies [2 nodes + 4 tensors + 3]
    int64_t        *call_bytes;      // [2 nodes + 1] outputs, fwork of F; gradients, bwork of B; then copies
    int64_t        *gradient_bytes;  // [nodes] bytes of gradients live after B v
    int32_t         most_calls;      // of a list that becomes a sequence: see tli_search_limit_calls
    uint8_t        *is_wanted;       // [nodes] its forward must run at least once
    uint8_t        *is_result;       // [tensors] resident at the end
    int64_t         input_bytes;     // of graph inputs
} tli_search_problem;

// Calls are numbered: 2v = F v, 2v + 1 = B v, 2 nodes = the end, which uses the results, 2 nodes + 2 + 2t = the
// fetch of tensor t from the host, and 2 nodes + 2 + 2 (tensors + t) = its expansion from a compressed copy.
// The last two make t, use nothing and cost no forward.
static int32_t tli_search_end_call(const tli_search_problem *p) { return 2 * p->node_count; }

static int32_t tli_search_fetch_call(const tli_search_problem *p, int32_t tensor) {
    return 2 * p->node_count + 2 + 2 * tensor;
}

static int32_t tli_search_saved_item(const tli_search_problem *p, int32_t id) {
    return p->graph->tensor_count + id;
}

static int32_t tli_search_ran_item(const tli_search_problem *p, int32_t id) {
    return p->graph->tensor_count + p->node_count + id;
}

static int32_t tli_search_expand_call(const tli_search_problem *p, int32_t tensor) {
    return tli_search_fetch_call(p, p->graph->tensor_count + tensor);
}

// The tensor that a call expands; -1 = it is another call.
static int32_t tli_search_expanded(const tli_search_problem *p, int32_t call) {
    int32_t first = tli_search_expand_call(p, 0);
    return TLI_SEARCH_COPIES && call >= first ? (call - first) / 2 : -1;
}

// The cost of a call that is not a backward: for an expansion, that of both conversions.
static uint64_t tli_search_call_cost(const tli_search_problem *p, int32_t call) {
    int32_t tensor = tli_search_expanded(p, call);
    if (tensor >= 0) return 2 * p->codec_ns[tensor];
    return call % 2 || call >= tli_search_end_call(p) ? 0 : p->graph->nodes[call / 2].fwd_cost;
}

// The bytes of a forward that saves beyond those of one that does not: below 0 where swork is far below fwork.
static int64_t tli_search_save_bytes(const tli_search_problem *p, int32_t id) {
    const tl_node *node = &p->graph->nodes[id];
    return (int64_t)node->saved_bytes + (int64_t)node->swork_bytes - (int64_t)node->fwork_bytes;
}

// The node whose forward makes an item.
static int32_t tli_search_maker(const tli_search_problem *p, int32_t item) {
    if (item < p->graph->tensor_count) return p->graph->outputs[item].node;
    return (item - p->graph->tensor_count) % p->node_count;
}

// Whether an item is made once only in a sequence: its node may not run again.
static int tli_search_is_made_once(const tli_search_problem *p, int32_t item) {
    return p->graph->nodes[tli_search_maker(p, item)].once;
}

static void tli_search_free_problem(tli_search_problem *p) {
    tli_release(p->env, p->item_bytes);
    tli_release(p->env, p->packed_bytes);
    tli_release(p->env, p->codec_ns);
    tli_release(p->env, p->touches);
    tli_release(p->env, p->first_touch);
    tli_release(p->env, p->call_bytes);
    tli_release(p->env, p->gradient_bytes);
    tli_release(p->env, p->is_wanted);
    tli_release(p->env, p->is_result);
}

// Add an item to the touches of a call, once: seen[item] is call + 1 if the call has it already.
static void tli_search_touch_item(tli_search_problem *p, int32_t *count, int32_t *seen,
                                  int32_t call, int32_t item, int is_use) {
    if (item < p->graph->tensor_count && p->graph->nodes[p->graph->outputs[item].node].is_input) return;
    if (seen[item] == call + 1) return;
    seen[item] = call + 1;
    p->touches[*count].item = (uint32_t)item & 0x7fffffff;
    p->touches[*count].is_use = is_use != 0;
    ++*count;
}

static void tli_search_touch_node(tli_search_problem *p, int32_t id, int32_t *seen, int32_t *count) {
    const tl_graph *graph = p->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, in_end = node->first_input + node->input_count;
    int32_t out_end = node->first_output + node->output_count;
    int trains = !p->inference && node->has_grad;
    p->first_touch[2 * id] = *count;
    if (node->is_input) { p->first_touch[2 * id + 1] = *count; return; }
    for (i = node->first_input; i < in_end; i++)
        tli_search_touch_item(p, count, seen, 2 * id, graph->inputs[i].tensor, 1);
    for (i = node->first_output; i < out_end; i++) tli_search_touch_item(p, count, seen, 2 * id, i, 0);
    if (trains && node->saved_bytes)
        tli_search_touch_item(p, count, seen, 2 * id, tli_search_saved_item(p, id), 0);
    if (trains) tli_search_touch_item(p, count, seen, 2 * id, tli_search_ran_item(p, id), 0);
    p->first_touch[2 * id + 1] = *count;
    if (!trains) return;
    for (i = node->first_input; i < in_end; i++)
        if (graph->inputs[i].needed)
            tli_search_touch_item(p, count, seen, 2 * id + 1, graph->inputs[i].tensor, 1);
    for (i = node->first_output; i < out_end; i++)
        if (graph->outputs[i].needed) tli_search_touch_item(p, count, seen, 2 * id + 1, i, 1);
    if (node->saved_bytes) tli_search_touch_item(p, count, seen, 2 * id + 1, tli_search_saved_item(p, id), 1);
    tli_search_touch_item(p, count, seen, 2 * id + 1, tli_search_ran_item(p, id), 1);
}

// Count the bytes of live gradients during and after each B; they depend only on the order of backwards.
static void tli_search_count_gradients(tli_search_problem *p, int32_t *seen) {
    const tl_graph *graph = p->graph;
    int64_t live = 0;
    int32_t id, i;
    tli_zero(seen, (size_t)graph->tensor_count * sizeof *seen);
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (!node->has_grad || p->inference) continue;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (!seen[i]) { seen[i] = 1; live += (int64_t)graph->outputs[i].bytes; }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t t = graph->inputs[i].tensor;
            if (seen[t] || !graph->nodes[graph->outputs[t].node].has_grad) continue;
            seen[t] = 1;
            live += (int64_t)graph->outputs[t].bytes;
        }
        p->call_bytes[2 * id + 1] = live + (int64_t)node->bwork_bytes;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            live -= (int64_t)graph->outputs[i].bytes;
        p->gradient_bytes[id] = live;
    }
}

// Mark the nodes that must run: those with a backward, those that make a result, and those that a wanted
// node reads.
static void tli_search_mark_wanted(tli_search_problem *p) {
    const tl_graph *graph = p->graph;
    int32_t id, i;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (!p->inference && node->has_grad) p->is_wanted[id] = 1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (p->is_result[i]) p->is_wanted[id] = 1;
        if (node->is_input) p->is_wanted[id] = 0;
        for (i = node->first_input; i < node->first_input + node->input_count && p->is_wanted[id]; i++)
            p->is_wanted[graph->outputs[graph->inputs[i].tensor].node] = 1;
    }
}

static void tli_search_read_graph(tli_search_problem *p, int32_t *seen) {
    const tl_graph *graph = p->graph;
    int32_t id, i, count = 0;
    tli_mark_results(graph, p->inference, p->is_result);
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        tli_search_touch_node(p, id, seen, &count);
        p->item_bytes[tli_search_saved_item(p, id)] = (int64_t)node->saved_bytes;
        p->call_bytes[2 * id] = (int64_t)node->fwork_bytes;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            p->item_bytes[i] = (int64_t)graph->outputs[i].bytes;
            p->call_bytes[2 * id] += (int64_t)graph->outputs[i].bytes;
            if (node->is_input) p->input_bytes += (int64_t)graph->outputs[i].bytes;
        }
    }
    p->first_touch[tli_search_end_call(p)] = count;
    for (i = 0; i < graph->tensor_count; i++)
        if (p->is_result[i]) tli_search_touch_item(p, &count, seen, tli_search_end_call(p), i, 1);
    p->first_touch[tli_search_end_call(p) + 1] = count;
    for (i = 0; i < 2 * graph->tensor_count && p->copies; i++) {
        int32_t call = tli_search_fetch_call(p, i), tensor = i % graph->tensor_count;
        p->first_touch[call] = count;
        tli_search_touch_item(p, &count, seen, call, tensor, 0);
        p->first_touch[call + 1] = count;
        p->call_bytes[call] = p->item_bytes[tensor];
    }
    tli_search_mark_wanted(p);
    tli_search_count_gradients(p, seen);
}

// Bytes and times of the compressed copies. Inputs, results, tensors that are not of whole elements and those
// whose bytes are known only when they are made have none.
static void tli_search_read_codec(tli_search_problem *p, const tli_remat_input *in) {
    const tl_graph *graph = p->graph;
    int32_t i;
    for (i = 0; i < graph->tensor_count && in->codec; i++) {
        const tl_node *node = &graph->nodes[graph->outputs[i].node];
        uint64_t bytes = graph->outputs[i].bytes, packed = tl_find_codec_bytes(in->codec, bytes);
        if (node->is_input || node->dynamic || p->is_result[i] || bytes % 4 || packed >= bytes) continue;
        if (in->lossless && in->lossless[i]) continue;
        if (in->codec_rate && (!tli_find_time(bytes, in->codec_rate, &p->codec_ns[i]) ||
                               p->codec_ns[i] > TLI_SEARCH_MOST_COST >> 12)) continue;
        p->packed_bytes[i] = (int64_t)packed;
    }
}

#define TLI_SEARCH_EVENT_BYTES 20           // of an event and of a place of a sequence
#define TLI_SEARCH_PLACE_BYTES 48
#define TLI_SEARCH_BYTES (INT64_C(32) << 20)  // of a sequence, but for the changes of a search
#define TLI_SEARCH_NODE_BYTES 400           // of a sequence in a large graph, for each node

// Longer lists of calls are not made into sequences, so that they take little memory for each node of a large
// graph.
static void tli_search_limit_calls(tli_search_problem *p) {
    int64_t most = (int64_t)p->node_count * TLI_SEARCH_NODE_BYTES, call;
    if (most < TLI_SEARCH_BYTES) most = TLI_SEARCH_BYTES;
    call = (int64_t)p->first_touch[tli_search_end_call(p)] * TLI_SEARCH_EVENT_BYTES / (2 * p->node_count);
    most /= call + TLI_SEARCH_PLACE_BYTES;
    if (most < 3 * (int64_t)p->node_count) most = 3 * (int64_t)p->node_count;
    p->most_calls = most < INT32_MAX / 2 ? (int32_t)most : INT32_MAX / 2;
}

static int tli_search_is_short(const tli_search_problem *p, const tli_search_calls *calls) {
    return calls->count <= p->most_calls;
}

// Whether bytes and costs are small enough for signed sums. The sums here fit 64 bits: tl_check_graph.
static int tli_search_is_countable(const tl_graph *graph) {
    uint64_t sum = 0, cost = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) sum += 2 * graph->outputs[i].bytes;
    for (i = 0; i < graph->node_count; i++) {
        sum += graph->nodes[i].saved_bytes + graph->nodes[i].bwork_bytes;
        sum += tli_larger_u64(graph->nodes[i].fwork_bytes, graph->nodes[i].swork_bytes);
        cost += graph->nodes[i].fwd_cost;
    }
    return sum < (uint64_t)TLI_SEARCH_MOST_BYTES && cost < TLI_SEARCH_MOST_COST >> 6;
}

static tl_result tli_search_init_problem(const tli_remat_input *in, tli_search_problem *p) {
    const tl_graph *graph = in->graph;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    int32_t copies = in->fetches || in->codec;
    uint64_t calls = 2 * nodes + 2 + (copies ? 4 * tensors + 1 : 0);
    int32_t *seen;
    tli_zero(p, sizeof *p);
    p->env = in->env;
    p->copies = copies;
    p->graph = graph;
    p->budget = in->budget < (uint64_t)TLI_SEARCH_MOST_BYTES ? (int64_t)in->budget : TLI_SEARCH_MOST_BYTES;
    p->inference = in->inference != 0;
    p->node_count = graph->node_count;
    if (tensors + 2 * nodes > INT32_MAX / 8)
        return TL_ERROR_OVERFLOW;
    if (!tli_search_is_countable(graph))
        return TL_ERROR_OVERFLOW;
    p->item_count = graph->tensor_count + 2 * graph->node_count;
    p->item_bytes = (int64_t *)tli_alloc_array(in->env, (uint64_t)p->item_count, sizeof *p->item_bytes);
    p->packed_bytes = (int64_t *)tli_alloc_array(in->env, copies ? tensors : 1, sizeof *p->packed_bytes);
    p->codec_ns = (uint64_t *)tli_alloc_array(in->env, copies ? tensors : 1, sizeof *p->codec_ns);
    p->touches = (tli_search_touch *)tli_alloc_array(
        in->env, 2 * (uint64_t)graph->input_count + 5 * tensors + 4 * nodes, sizeof *p->touches);
    p->first_touch = (int32_t *)tli_alloc_array(in->env, calls, sizeof *p->first_touch);
    p->call_bytes = (int64_t *)tli_alloc_array(in->env, calls - 1, sizeof *p->call_bytes);
    p->gradient_bytes = (int64_t *)tli_alloc_array(in->env, nodes, sizeof *p->gradient_bytes);
    p->is_wanted = (uint8_t *)tli_alloc_array(in->env, nodes, 1);
    p->is_result = (uint8_t *)tli_alloc_array(in->env, tensors, 1);
    seen = (int32_t *)tli_alloc_array(in->env, (uint64_t)p->item_count, sizeof *seen);
    if (p->item_bytes && p->packed_bytes && p->codec_ns && p->touches && p->first_touch && p->call_bytes &&
        p->gradient_bytes && p->is_wanted && p->is_result && seen) {
        tli_search_read_graph(p, seen);
        tli_search_read_codec(p, in);
        tli_search_limit_calls(p);
        tli_release(in->env, seen);
        return TL_OK;
    }
    tli_release(in->env, seen);
    tli_search_free_problem(p);
    return TL_ERROR_NO_MEMORY;
}

// Append to a growing list of calls.
static int tli_search_add_call(tl_env *env, tli_search_calls *list, int32_t call) {
    void *array = list->calls;
    if (!tli_grow(env, &array, &list->capacity, list->count, (int64_t)list->count + 1, sizeof call)) return 0;
    list->calls = (int32_t *)array;
    list->calls[list->count++] = call;
    TLI_INVARIANT(list->count <= list->capacity);
    return 1;
}

// List the plan that keeps everything: each wanted call once. 0 = no memory.
static int tli_search_list_program(const tli_search_problem *p, tli_search_calls *list) {
    int32_t id, ok = 1;
    list->count = 0;
    for (id = 0; id < p->node_count && ok; id++)
        if (p->is_wanted[id]) ok = tli_search_add_call(p->env, list, 2 * id);
    for (id = p->node_count; id-- > 0 && !p->inference && ok;)
        if (p->graph->nodes[id].has_grad) ok = tli_search_add_call(p->env, list, 2 * id + 1);
    return ok && tli_search_add_call(p->env, list, tli_search_end_call(p));
}

// -- search: greedy: recomputation on demand, with eviction --

typedef struct tli_search_rule {
    int8_t cost, bytes, distance;  // exponents of the score, in halves
    int8_t backwards;              // 1 = missing inputs are made in reverse order
    int8_t dead_first;             // 1 = evict first the items that no later call of the program uses
    int8_t in_order;               // 1 = all that is missing is made in listing order
} tli_search_rule;

typedef struct tli_search_frame { int32_t call, next; } tli_search_frame;

typedef struct tli_search_greedy {
    const tli_search_problem *p;
    tli_search_rule   rule;
    int64_t       budget, live, gradients;
    uint8_t      *here;          // [items] 1 = resident
    int32_t      *pins;          // [items] calls on the stack that use it: it cannot be evicted
    int32_t      *first_use;     // [items + 1] into uses
    int32_t      *uses;          // positions in the program at which an item is used, ascending
    int32_t      *next_use;      // [items] cursor into uses
    int32_t      *heap;          // [heap_count] items that may be evicted, the one of the least key first
    int32_t      *place;         // [items] index into heap; -1 = not there
    int64_t      *key;           // [items] the score when it was last computed; TLI_SEARCH_NO_SCORE = not yet
    int32_t       heap_count;
    tli_search_calls  program;   // of tli_search_list_program
    int32_t       now;           // the position in it
    tli_search_frame *stack;     // [nodes + 1] calls that wait for their inputs
    int32_t      *queue;         // [nodes] of tli_search_price and tli_search_list_missing
    int32_t      *order;         // [nodes] of tli_search_demand_in_order
    uint32_t     *stamp;         // [nodes] equals stamped where a node is in the queue
    uint32_t      stamped;
    int32_t      *until;         // [items] see below; NULL = all nodes may run again
    int32_t      *ends, *next_end;  // [program + 1] [items] lists of items by `until`; -1 = the end of a list
    tli_search_calls  calls;
    int64_t       most_calls;
    uint64_t      cost, work, most_work;
    tli_remat_watch *watch;      // NULL = none
    int           failed;        // 1 = no memory
} tli_search_greedy;

static void tli_search_free_greedy(tli_search_greedy *g) {
    tl_env *env = g->p->env;
    tli_release(env, g->here);
    tli_release(env, g->pins);
    tli_release(env, g->first_use);
    tli_release(env, g->uses);
    tli_release(env, g->next_use);
    tli_release(env, g->heap);
    tli_release(env, g->place);
    tli_release(env, g->key);
    tli_release(env, g->program.calls);
    tli_release(env, g->stack);
    tli_release(env, g->queue);
    tli_release(env, g->order);
    tli_release(env, g->stamp);
    tli_release(env, g->until);
    tli_release(env, g->ends);
    tli_release(env, g->next_end);
    tli_release(env, g->calls.calls);
}

// List at which positions of the program each item is used.
static void tli_search_list_uses(tli_search_greedy *g) {
    const tli_search_problem *p = g->p;
    const int32_t *calls = g->program.calls;
    int32_t i, k, total = 0;
    for (i = 0; i < g->program.count; i++)
        for (k = p->first_touch[calls[i]]; k < p->first_touch[calls[i] + 1]; k++)
            if (p->touches[k].is_use) g->first_use[p->touches[k].item + 1]++;
    for (i = 0; i < p->item_count; i++) {
        total += g->first_use[i + 1];
        g->first_use[i + 1] = total;
        g->next_use[i] = g->first_use[i];
    }
    for (i = 0; i < g->program.count; i++)
        for (k = p->first_touch[calls[i]]; k < p->first_touch[calls[i] + 1]; k++)
            if (p->touches[k].is_use) g->uses[g->next_use[p->touches[k].item]++] = i;
}

// -- search: greedy: what nodes make that may run once only --
//
// It cannot be made again, so it stays until nothing can need it: neither a call of the program nor a call that
// makes something again for one. `until` is the last such position of the program. After it the item is dead.

static int tli_search_runs_once(const tl_graph *graph) {
    int32_t id;
    for (id = 0; id < graph->node_count; id++) if (graph->nodes[id].once) return 1;
    return 0;
}

static void tli_search_find_ends(tli_search_greedy *g) {
    const tli_search_problem *p = g->p;
    const tl_graph *graph = p->graph;
    int32_t id, i;
    for (i = 0; i < p->item_count; i++)
        g->until[i] = g->first_use[i] < g->first_use[i + 1] ? g->uses[g->first_use[i + 1] - 1] : -1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int32_t last = g->until[tli_search_saved_item(p, id)];
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (g->until[i] > last) last = g->until[i];
        for (i = node->first_input; i < node->first_input + node->input_count && !node->once; i++)
            if (last > g->until[graph->inputs[i].tensor]) g->until[graph->inputs[i].tensor] = last;
    }
    for (i = 0; i <= g->program.count; i++) g->ends[i] = -1;
    for (i = 0; i < graph->tensor_count + p->node_count; i++) {
        if (g->until[i] < 0 || !tli_search_is_made_once(p, i)) continue;
        g->next_end[i] = g->ends[g->until[i]];
        g->ends[g->until[i]] = i;
    }
}

// 0 = no memory.
static int tli_search_init_ends(tli_search_greedy *g) {
    tl_env *env = g->p->env;
    uint64_t items = (uint64_t)g->p->item_count;
    if (!tli_search_runs_once(g->p->graph)) return 1;
    g->until = (int32_t *)tli_alloc_array(env, items, sizeof *g->until);
    g->next_end = (int32_t *)tli_alloc_array(env, items, sizeof *g->next_end);
    g->ends = (int32_t *)tli_alloc_array(env, (uint64_t)g->program.count + 1, sizeof *g->ends);
    if (!g->until || !g->next_end || !g->ends) return 0;
    tli_search_find_ends(g);
    return 1;
}

// Whether an item must stay at the present position of the program.
static int tli_search_stays(const tli_search_greedy *g, int32_t item) {
    return g->until && g->until[item] >= g->now && tli_search_is_made_once(g->p, item);
}

#ifdef TLI_INVARIANTS
// Live bytes are those of all resident items, and the heap has those that may be evicted, the least key first.
// Large graphs are looked at now and then.
static int tli_search_greedy_holds(const tli_search_greedy *g) {
    int64_t live = 0;
    int32_t i, at, count = 0;
    if (g->work % ((uint64_t)g->p->item_count / 16 + 1)) return 1;
    for (i = 0; i < g->p->item_count; i++) {
        at = g->place[i];
        if (g->here[i]) live += g->p->item_bytes[i];
        if (g->p->graph->nodes[tli_search_maker(g->p, i)].is_input) continue;
        if ((at >= 0) != (g->here[i] && !g->pins[i] && g->p->item_bytes[i])) return 0;
        if (at < 0) continue;
        count++;
        if (at >= g->heap_count || g->heap[at] != i) return 0;
        if (at && g->key[i] < g->key[g->heap[(at - 1) / 2]]) return 0;
    }
    return count == g->heap_count && live == g->live;
}
#endif

static tl_result tli_search_init_greedy(const tli_search_problem *p, tli_search_greedy *g) {
    tl_env *env = p->env;
    uint64_t items = (uint64_t)p->item_count, nodes = (uint64_t)p->node_count;
    tli_zero(g, sizeof *g);
    g->p = p;
    g->most_work = UINT64_MAX;
    g->here = (uint8_t *)tli_alloc_array(env, items, 1);
    g->pins = (int32_t *)tli_alloc_array(env, items, sizeof *g->pins);
    g->first_use = (int32_t *)tli_alloc_array(env, items + 1, sizeof *g->first_use);
    g->uses = (int32_t *)tli_alloc_array(env, (uint64_t)p->first_touch[tli_search_end_call(p) + 1],
                                         sizeof *g->uses);
    g->next_use = (int32_t *)tli_alloc_array(env, items, sizeof *g->next_use);
    g->heap = (int32_t *)tli_alloc_array(env, items, sizeof *g->heap);
    g->key = (int64_t *)tli_alloc_array(env, items, sizeof *g->key);
    g->place = (int32_t *)tli_alloc_array(env, items, sizeof *g->place);
    g->stack = (tli_search_frame *)tli_alloc_array(env, nodes + 1, sizeof *g->stack);
    g->queue = (int32_t *)tli_alloc_array(env, nodes, sizeof *g->queue);
    g->order = (int32_t *)tli_alloc_array(env, nodes, sizeof *g->order);
    g->stamp = (uint32_t *)tli_alloc_array(env, nodes, sizeof *g->stamp);
    if (g->here && g->pins && g->first_use && g->uses && g->next_use && g->heap && g->place && g->key &&
        g->stack && g->queue && g->order && g->stamp && tli_search_list_program(p, &g->program)) {
        tli_search_list_uses(g);
        if (tli_search_init_ends(g)) return TL_OK;
    }
    tli_search_free_greedy(g);
    return TL_ERROR_NO_MEMORY;
}

#define TLI_SEARCH_CLOSURE_LIMIT 200  // nodes visited to price an eviction
#define TLI_SEARCH_STAYS INT64_MAX    // score of what must not be evicted

// The cost of making an item again from the resident items.
static uint64_t tli_search_price(tli_search_greedy *g, int32_t item) {
    const tl_graph *graph = g->p->graph;
    uint64_t cost = 0;
    int32_t at, i, count = 1;
    g->queue[0] = tli_search_maker(g->p, item);
    g->stamp[g->queue[0]] = ++g->stamped;
    for (at = 0; at < count; at++) {
        const tl_node *node = &graph->nodes[g->queue[at]];
        cost += node->fwd_cost;
        if (count > TLI_SEARCH_CLOSURE_LIMIT) break;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, id = graph->outputs[tensor].node;
            if (graph->nodes[id].is_input || g->here[tensor] || g->stamp[id] == g->stamped) continue;
            g->stamp[id] = g->stamped;
            g->queue[count++] = id;
        }
    }
    g->work += 3 * (uint64_t)count + 20;
    return cost;
}

static int64_t tli_search_score(tli_search_greedy *g, int32_t item) {
    int32_t next = g->next_use[item] < g->first_use[item + 1] ? g->uses[g->next_use[item]] : -1;
    int64_t distance = next < 0 ? 2 * (int64_t)g->program.count : (int64_t)next - g->now + 1, score;
    if (tli_search_stays(g, item)) return TLI_SEARCH_STAYS;
    score = g->rule.cost * tli_search_log(tli_search_price(g, item)) -
            g->rule.bytes * tli_search_log((uint64_t)g->p->item_bytes[item]) -
            g->rule.distance * tli_search_log((uint64_t)distance);
    if (next < 0 && g->rule.dead_first) score -= (int64_t)1 << 40;
    return score;
}

// -- search: greedy: the items that may be evicted, in a heap --
//
// An item is in the heap while it is resident, has bytes, and no call on the stack uses it. Its key is the
// score that it had when it was last looked at. As its next use comes nearer and what it is made of is
// evicted, its score rises, so keys are lower bounds but for the price of items whose inputs have been made
// again. The item on top is scored anew until it stays there: few items are scored for each that is evicted.

#define TLI_SEARCH_NO_SCORE INT64_MIN

static int tli_search_goes_first(const tli_search_greedy *g, int32_t a, int32_t b) {
    return g->key[a] != g->key[b] ? g->key[a] < g->key[b] : a < b;
}

static void tli_search_set_heap(tli_search_greedy *g, int32_t at, int32_t item) {
    g->heap[at] = item;
    g->place[item] = at;
}

// Move the item at a place of the heap up or down to where its key belongs.
static void tli_search_sift(tli_search_greedy *g, int32_t at) {
    int32_t item = g->heap[at], child;
    for (; at && tli_search_goes_first(g, item, g->heap[(at - 1) / 2]); at = (at - 1) / 2)
        tli_search_set_heap(g, at, g->heap[(at - 1) / 2]);
    for (; (child = 2 * at + 1) < g->heap_count; at = child) {
        if (child + 1 < g->heap_count && tli_search_goes_first(g, g->heap[child + 1], g->heap[child])) child++;
        if (!tli_search_goes_first(g, g->heap[child], item)) break;
        tli_search_set_heap(g, at, g->heap[child]);
    }
    tli_search_set_heap(g, at, item);
    g->work += 8;
    TLI_INVARIANT(g->heap[at] == item && g->place[item] == at);
}

// Put an item into the heap or take it out, as its state asks.
static void tli_search_update_heap(tli_search_greedy *g, int32_t item) {
    int32_t at = g->place[item], belongs = g->here[item] && !g->pins[item] && g->p->item_bytes[item];
    if (belongs && at < 0) {
        g->key[item] = TLI_SEARCH_NO_SCORE;
        g->heap[g->heap_count] = item;
        tli_search_sift(g, g->heap_count++);
    } else if (!belongs && at >= 0) {
        int32_t last = g->heap[--g->heap_count];
        g->place[item] = -1;
        if (last == item) return;
        g->heap[at] = last;
        tli_search_sift(g, at);
    }
    TLI_INVARIANT(g->heap_count >= 0 && g->heap_count <= g->p->item_count);
}

static void tli_search_make_resident(tli_search_greedy *g, int32_t item) {
    if (g->here[item]) return;
    g->here[item] = 1;
    g->live += g->p->item_bytes[item];
    tli_search_update_heap(g, item);
    TLI_INVARIANT(g->live >= g->p->item_bytes[item]);
}

static void tli_search_evict(tli_search_greedy *g, int32_t item) {
    g->here[item] = 0;
    g->live -= g->p->item_bytes[item];
    tli_search_update_heap(g, item);
    TLI_INVARIANT(g->live >= 0);
}

// Evict until so many more bytes fit; 0 if everything that is left is pinned.
static int tli_search_make_room(tli_search_greedy *g, int64_t bytes) {
    while (g->live + g->gradients + bytes > g->budget) {
        int32_t item = g->heap[0];
        int64_t score;
        if (!g->heap_count) return 0;
        score = tli_search_score(g, item);
        if (score > g->key[item]) {
            g->key[item] = score;
            tli_search_sift(g, 0);
            if (g->heap[0] != item) continue;
        }
        if (score == TLI_SEARCH_STAYS) return 0;
        tli_search_evict(g, item);
    }
    TLI_INVARIANT(g->live + g->gradients + bytes <= g->budget);
    return 1;
}

static void tli_search_pin(tli_search_greedy *g, int32_t call, int32_t by) {
    const tli_search_problem *p = g->p;
    int32_t k;
    for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++) {
        if (!p->touches[k].is_use) continue;
        g->pins[p->touches[k].item] += by;
        TLI_INVARIANT(g->pins[p->touches[k].item] >= 0);
        tli_search_update_heap(g, p->touches[k].item);
    }
    g->work += 2 * (uint64_t)(p->first_touch[call + 1] - p->first_touch[call]);
}

// The bytes of the input that F of this node may overwrite: one that no other call on the stack and no later
// call of the program uses; else 0.
static int64_t tli_search_overwrite(tli_search_greedy *g, int32_t id) {
    const tl_node *node = &g->p->graph->nodes[id];
    int32_t input;
    if (node->inplace < 0 || g->here[node->first_output]) return 0;
    input = g->p->graph->inputs[node->first_input + node->inplace].tensor;
    if (g->pins[input] > 1 || g->next_use[input] < g->first_use[input + 1]) return 0;
    if (tli_search_stays(g, input) && g->until[input] > g->now) return 0;
    return g->p->item_bytes[input];
}

// Run a call whose inputs are resident and pinned. Returns 0 if it does not fit, a limit is reached, or there
// is no memory (g->failed).
static int tli_search_run_call(tli_search_greedy *g, int32_t call) {
    const tli_search_problem *p = g->p;
    int32_t k, id = call / 2, saved = -1;
    int is_forward = call < tli_search_end_call(p) && call % 2 == 0;
    int64_t bytes = is_forward ? p->call_bytes[call] : 0, over = 0;
    g->work += 16;
    if (call == tli_search_end_call(p)) {
        g->failed = !tli_search_add_call(p->env, &g->calls, call);
        return !g->failed;
    }
    if (call % 2) {
        g->gradients = p->call_bytes[call];
        if (!tli_search_make_room(g, 0)) return 0;
        g->gradients = p->gradient_bytes[id];
    } else {
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++) {
            int32_t item = p->touches[k].item;
            if (p->touches[k].is_use) continue;
            if (item < p->graph->tensor_count) { if (g->here[item]) bytes -= p->item_bytes[item]; }
            else if (item < p->graph->tensor_count + p->node_count && !g->here[item]) saved = item;
        }
        if (saved >= 0 && tli_search_make_room(g, bytes + tli_search_save_bytes(p, id))) {
            tli_search_make_resident(g, saved);
        } else {
            if (saved >= 0 && (g->pins[saved] || tli_search_is_made_once(p, saved))) return 0;
            over = tli_search_overwrite(g, id);
            if (over && g->live + g->gradients + bytes > g->budget)
                tli_search_evict(g, p->graph->inputs[p->graph->nodes[id].first_input +
                                              p->graph->nodes[id].inplace].tensor);
            if (!tli_search_make_room(g, bytes)) return 0;
        }
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++)
            if (!p->touches[k].is_use && p->touches[k].item < p->graph->tensor_count)
                tli_search_make_resident(g, p->touches[k].item);
    }
    if (is_forward) g->cost += p->graph->nodes[id].fwd_cost;
    if (g->calls.count >= g->most_calls || g->cost > TLI_SEARCH_MOST_COST || g->work > g->most_work) return 0;
    if (g->watch && tli_remat_stops(g->watch, g->work)) return 0;
    if (!tli_search_add_call(p->env, &g->calls, call)) { g->failed = 1; return 0; }
    TLI_INVARIANT(tli_search_greedy_holds(g));
    return 1;
}

// The first item that the call of this frame uses and that is not resident; -1 = none.
static int32_t tli_search_find_missing(const tli_search_greedy *g, const tli_search_frame *frame) {
    const tli_search_problem *p = g->p;
    int32_t from = p->first_touch[frame->call], to = p->first_touch[frame->call + 1], k;
    for (k = from; k < to; k++) {
        const tli_search_touch *touch = &p->touches[g->rule.backwards ? from + to - 1 - k : k];
        if (touch->is_use && !g->here[touch->item] && touch->item < p->graph->tensor_count + p->node_count)
            return touch->item;
    }
    return -1;
}

// Run a call after the calls that make its missing inputs, recursively, with an explicit stack.
static int tli_search_demand(tli_search_greedy *g, int32_t call) {
    int32_t depth = 1;
    g->stack[0].call = call;
    tli_search_pin(g, call, 1);
    while (depth > 0) {
        int32_t item = tli_search_find_missing(g, &g->stack[depth - 1]);
        if (item >= 0) {
            g->stack[depth].call = 2 * tli_search_maker(g->p, item);
            tli_search_pin(g, g->stack[depth].call, 1);
            depth++;
            continue;
        }
        depth--;
        if (!tli_search_run_call(g, g->stack[depth].call)) return 0;
        tli_search_pin(g, g->stack[depth].call, -1);
    }
    return 1;
}

// Add to the queue the nodes that make what a call uses and that is missing, each once.
static void tli_search_queue_missing(tli_search_greedy *g, int32_t call, int32_t *count) {
    const tli_search_problem *p = g->p;
    int32_t k;
    for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++) {
        int32_t item = p->touches[k].item, id;
        if (!p->touches[k].is_use || g->here[item] || item >= p->graph->tensor_count + p->node_count) continue;
        id = tli_search_maker(p, item);
        if (g->stamp[id] == g->stamped) continue;
        g->stamp[id] = g->stamped;
        g->queue[(*count)++] = id;
    }
    g->work += 4 * (uint64_t)(p->first_touch[call + 1] - p->first_touch[call]);
}

// List the nodes to run before a call, in listing order; returns how many. (Sorted by halving gaps, Shell,
// 1959.)
static int32_t tli_search_list_missing(tli_search_greedy *g, int32_t call) {
    int32_t count = 0, at, gap, i, k;
    g->stamped++;
    tli_search_queue_missing(g, call, &count);
    for (at = 0; at < count; at++) tli_search_queue_missing(g, 2 * g->queue[at], &count);
    for (gap = count / 2; gap > 0; gap /= 2)
        for (i = gap; i < count; i++) {
            int32_t id = g->queue[i];
            for (k = i; k >= gap && g->queue[k - gap] > id; k -= gap) g->queue[k] = g->queue[k - gap];
            g->queue[k] = id;
            g->work += 4;
        }
    return count;
}

// Run a call after all that is missing, in listing order. What these calls use stays until they have used it.
static int tli_search_demand_in_order(tli_search_greedy *g, int32_t call) {
    int32_t count = tli_search_list_missing(g, call), i;
    tli_search_pin(g, call, 1);
    for (i = 0; i < count; i++) {
        g->order[i] = g->queue[i];
        tli_search_pin(g, 2 * g->queue[i], 1);
    }
    for (i = 0; i < count; i++) {
        if (!tli_search_run_call(g, 2 * g->order[i])) return 0;
        tli_search_pin(g, 2 * g->order[i], -1);
    }
    if (!tli_search_run_call(g, call)) return 0;
    tli_search_pin(g, call, -1);
    return 1;
}

// Run the greedy planner under a rule; 1 = g->calls is a sequence that keeps the budget.
static int tli_search_run_greedy(tli_search_greedy *g, const tli_search_rule *rule, int64_t budget) {
    const tli_search_problem *p = g->p;
    int64_t nodes = p->node_count;
    int32_t k;
    g->rule = *rule;
    g->budget = budget;
    g->live = p->input_bytes;
    g->gradients = 0;
    g->cost = 0;
    g->heap_count = g->calls.count = 0;
    g->most_calls = nodes * (nodes < 128 ? nodes : 128) + 1024;
    tli_zero(g->here, (size_t)p->item_count);
    tli_zero(g->pins, (size_t)p->item_count * sizeof *g->pins);
    for (k = 0; k < p->item_count; k++) g->place[k] = -1;
    for (k = 0; k < p->graph->tensor_count; k++)
        if (p->graph->nodes[p->graph->outputs[k].node].is_input) g->here[k] = 1;
    for (k = 0; k < p->item_count; k++) g->next_use[k] = g->first_use[k];
    for (g->now = 0; g->now < g->program.count; g->now++) {
        int32_t call = g->program.calls[g->now];
        for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++)
            if (p->touches[k].is_use) g->next_use[p->touches[k].item]++;
        if (!(rule->in_order ? tli_search_demand_in_order(g, call) : tli_search_demand(g, call))) return 0;
        for (k = g->until ? g->ends[g->now] : -1; k >= 0; k = g->next_end[k])
            if (g->here[k]) tli_search_evict(g, k);
    }
    TLI_INVARIANT(tli_search_greedy_holds(g));
    return 1;
}

// -- search: the sequence: a list of calls, a list of events of each item, live bytes of each call --
//
// An event is one touch of an item by a call of the sequence. An item is live from an event x to its next
// event y if y is a use: then the calls after x up to y hold its bytes. If y is an expansion, they hold the
// bytes of its compressed copy, which is made at the end of the call of x. Calls are grouped in blocks, so that
// adding bytes to a long run of calls takes few steps. A place is a call of the sequence.

typedef struct tli_search_event {
    uint32_t item : 31, is_use : 1;
    int32_t call;            // index into tli_search_seq.places
    int32_t before, behind;  // neighbours in time of the same item; -1 = none
    int32_t sibling;         // next event of the same call
} tli_search_event;

typedef struct tli_search_place {
    int32_t  before, behind;  // neighbours in time
    int32_t  call;            // number of the call; -1 = place 0, before everything, or a free place
    int32_t  first_event;
    int32_t  block;
    uint8_t  saves, overwrites;
    int64_t  packs;           // bytes that the compressed copies made at its end take beyond what it frees
    int64_t  order;           // ascending in time
    int64_t  held;            // live bytes during the call, less `add` of its block
    int64_t  gradients;       // of these, gradients live after the last B
} tli_search_place;

#define TLI_SEARCH_BLOCK 24  // most places of a block of a short sequence

typedef struct tli_search_block {
    int32_t before, behind;  // neighbours in time
    int32_t first, count;    // places
    int64_t add;             // to be added to `held` of each of its places
    int64_t top;             // largest `held` of its places
    int     is_over;         // 1 = top + add exceeds the budget
} tli_search_block;

// How to undo a change. call -1: remove `place`; else insert `call` after `place`.
typedef struct tli_search_change { int32_t call, place; } tli_search_change;

typedef struct tli_search_seq {
    const tli_search_problem *p;
    tli_search_place  *places;   // place 0 is before everything and is never removed
    int32_t        place_count, place_capacity, free_place, used;
    tli_search_event  *events;
    int32_t        event_count, event_capacity, free_event;
    tli_search_block  *blocks;    // block 0 has place 0, so it is never empty
    int32_t        block_count, block_capacity, free_block;
    int32_t        block_size;    // most places of a block: about the square root of their number
    int32_t       *first, *last;  // [items] first and last event; -1 = none
    int32_t       *recent;        // [items] the event found last by tli_search_event_before; -1 = none yet
    int32_t        last_place;
    int32_t        over_count;    // blocks with a call over the budget
    uint64_t       cost;          // of forwards and conversions
    int64_t        budget;
    uint64_t       work;
    tli_search_change *changes;   // [change_count] how to undo them, recorded while logs is set
    int32_t        change_count, change_capacity;
    int            logs, failed;
} tli_search_seq;

static void tli_search_free_seq(tli_search_seq *s) {
    tli_release(s->p->env, s->places);
    tli_release(s->p->env, s->events);
    tli_release(s->p->env, s->blocks);
    tli_release(s->p->env, s->first);
    tli_release(s->p->env, s->last);
    tli_release(s->p->env, s->recent);
    tli_release(s->p->env, s->changes);
}

static int32_t tli_search_new_place(tli_search_seq *s) {
    int32_t at = s->free_place;
    void *array = s->places;
    if (at >= 0) { s->free_place = s->places[at].behind; return at; }
    if (!tli_grow(s->p->env, &array, &s->place_capacity, s->place_count, (int64_t)s->place_count + 1,
                  sizeof *s->places)) { s->failed = 1; return -1; }
    s->places = (tli_search_place *)array;
    TLI_INVARIANT(s->place_count < s->place_capacity);
    return s->place_count++;
}

// Reserve memory for the events of a call, so that inserting it cannot fail half way.
static int tli_search_reserve_events(tli_search_seq *s, int32_t count) {
    void *array = s->events;
    if (!tli_grow(s->p->env, &array, &s->event_capacity, s->event_count, (int64_t)s->event_count + count,
                  sizeof *s->events)) { s->failed = 1; return 0; }
    s->events = (tli_search_event *)array;
    TLI_INVARIANT(s->event_count + count <= s->event_capacity);
    return 1;
}

// Reserve memory for one more block, so that a split cannot fail.
static int tli_search_reserve_block(tli_search_seq *s) {
    void *array = s->blocks;
    if (s->free_block >= 0) return 1;
    if (!tli_grow(s->p->env, &array, &s->block_capacity, s->block_count, (int64_t)s->block_count + 1,
                  sizeof *s->blocks)) { s->failed = 1; return 0; }
    s->blocks = (tli_search_block *)array;
    TLI_INVARIANT(s->block_count < s->block_capacity);
    return 1;
}

static void tli_search_release_ends(tli_search_seq *s) {
    tli_release(s->p->env, s->first);
    tli_release(s->p->env, s->last);
    tli_release(s->p->env, s->recent);
    s->first = s->last = s->recent = NULL;
}

// Get the arrays of items, where they are not there.
static int tli_search_reserve_ends(tli_search_seq *s) {
    tl_env *env = s->p->env;
    uint64_t items = (uint64_t)s->p->item_count;
    if (!s->first) s->first = (int32_t *)tli_alloc_array(env, items, sizeof *s->first);
    if (!s->last) s->last = (int32_t *)tli_alloc_array(env, items, sizeof *s->last);
    if (!s->recent) s->recent = (int32_t *)tli_alloc_array(env, items, sizeof *s->recent);
    s->failed |= !s->first || !s->last || !s->recent;
    return !s->failed;
}

// Release the arrays of a large sequence: it must be loaded again. Returns whether it was large.
static int tli_search_rest(tli_search_seq *s) {
    if ((size_t)s->place_capacity * sizeof *s->places < TLI_SEARCH_BYTES / 4) return 0;
    tli_release(s->p->env, s->places);
    tli_release(s->p->env, s->events);
    tli_search_release_ends(s);
    s->places = NULL;
    s->events = NULL;
    s->place_capacity = s->event_capacity = 0;
    return 1;
}

static void tli_search_empty_seq(tli_search_seq *s) {
    tli_search_place *start = &s->places[0];
    tli_search_block *block = &s->blocks[0];
    int32_t i;
    for (i = 0; i < s->p->item_count; i++) s->first[i] = s->last[i] = s->recent[i] = -1;
    s->place_count = s->block_count = 1;
    s->event_count = 0;
    s->free_place = s->free_event = s->free_block = -1;
    s->last_place = s->over_count = s->change_count = s->used = 0;
    s->cost = 0;
    tli_zero(start, sizeof *start);
    start->before = start->behind = start->call = start->first_event = -1;
    start->held = -TLI_SEARCH_MOST_BYTES;  // never the largest
    tli_zero(block, sizeof *block);
    block->before = block->behind = -1;
    block->count = 1;
    block->top = start->held;
    TLI_INVARIANT(s->used == 0 && s->over_count == 0);
}

static tl_result tli_search_init_seq(const tli_search_problem *p, tli_search_seq *s) {
    void *array = NULL;
    tli_zero(s, sizeof *s);
    s->p = p;
    s->budget = p->budget;
    s->free_block = -1;
    s->block_size = TLI_SEARCH_BLOCK;
    if (tli_search_reserve_ends(s) && tli_search_reserve_block(s) &&
        tli_grow(p->env, &array, &s->place_capacity, 0, 64, sizeof *s->places)) {
        s->places = (tli_search_place *)array;
        tli_search_empty_seq(s);
        return TL_OK;
    }
    tli_search_free_seq(s);
    return TL_ERROR_NO_MEMORY;
}

// -- search: the sequence: bytes --

static int64_t tli_search_held(const tli_search_seq *s, int32_t at) {
    return s->places[at].held + s->blocks[s->places[at].block].add;
}

// Of the bytes held during a call, those that are not live before it: outputs, scratch, saved bytes, all
// gradients, and what compressed copies take at its end. Of several copies the largest counts: what was
// compressed before is gone.
static int64_t tli_search_own(const tli_search_seq *s, const tli_search_place *place) {
    const tl_graph *graph = s->p->graph;
    int64_t bytes = s->p->call_bytes[place->call] + place->packs;
    if (place->call % 2) return bytes;  // a backward: gradients are among them
    if (place->saves) bytes += tli_search_save_bytes(s->p, place->call / 2);
    if (place->overwrites) bytes -= (int64_t)graph->outputs[graph->nodes[place->call / 2].first_output].bytes;
    return bytes + place->gradients;
}

static void tli_search_judge(tli_search_seq *s, tli_search_block *block) {
    int is_over = block->top + block->add > s->budget;
    s->over_count += is_over - block->is_over;
    block->is_over = is_over;
    TLI_INVARIANT(s->over_count >= 0 && s->over_count <= s->block_count);
}

static void tli_search_rescan(tli_search_seq *s, int32_t at) {
    tli_search_block *block = &s->blocks[at];
    int32_t place = block->first, count = block->count;
    int64_t top = -TLI_SEARCH_MOST_BYTES - TLI_SEARCH_MOST_BYTES;
    s->work += (uint64_t)count;
    for (; count-- > 0; place = s->places[place].behind)
        if (s->places[place].held > top) top = s->places[place].held;
    block->top = top;
    tli_search_judge(s, block);
    TLI_INVARIANT(top > INT64_MIN / 2);
}

// Add what is to be added. Where places are shifted together and back one by one, it would grow without end.
static void tli_search_settle(tli_search_seq *s, tli_search_block *block) {
    int32_t place = block->first, count = block->count;
    s->work += (uint64_t)count;
    for (; count-- > 0; place = s->places[place].behind) s->places[place].held += block->add;
    block->top += block->add;
    block->add = 0;
    TLI_INVARIANT(!block->add);
}

// Add bytes to the places after `from` up to `to`.
static void tli_search_shift(tli_search_seq *s, int32_t from, int32_t to, int64_t bytes) {
    tli_search_place *places = s->places;
    int32_t a = places[from].block, b = places[to].block, at = places[from].behind, block;
    if (!bytes) return;
    s->work += (uint64_t)s->block_size / 2;
    if (a == b) {
        for (; at != to; at = places[at].behind) places[at].held += bytes;
        places[to].held += bytes;
        tli_search_rescan(s, a);
        return;
    }
    if (places[at].block == a) {
        for (; places[at].block == a; at = places[at].behind) places[at].held += bytes;
        tli_search_rescan(s, a);
    }
    for (block = s->blocks[a].behind; block != b; block = s->blocks[block].behind) {
        tli_search_block *whole = &s->blocks[block];
        whole->add += bytes;
        if (whole->add > TLI_SEARCH_MOST_BYTES || whole->add < -TLI_SEARCH_MOST_BYTES)
            tli_search_settle(s, whole);
        tli_search_judge(s, whole);
        s->work++;
    }
    TLI_INVARIANT(s->blocks[b].first >= 0);
    for (at = s->blocks[b].first; at != to; at = places[at].behind) places[at].held += bytes;
    places[to].held += bytes;
    tli_search_rescan(s, b);
}

// Add a place to the block of the place before it, and split the block if it grows too long.
static void tli_search_join(tli_search_seq *s, int32_t at, int64_t held) {
    int32_t old = s->places[s->places[at].before].block, new_block, i, first;
    tli_search_block *block = &s->blocks[old], *half;
    s->places[at].block = old;
    s->places[at].held = held - block->add;
    block->count++;
    if (block->count > s->block_size) {
        new_block = s->free_block;
        if (new_block >= 0) s->free_block = s->blocks[new_block].behind;
        else new_block = s->block_count++;
        half = &s->blocks[new_block];
        for (first = block->first, i = 0; i < s->block_size / 2; i++) first = s->places[first].behind;
        half->first = first;
        half->count = block->count - s->block_size / 2;
        half->add = block->add;
        half->is_over = 0;
        half->before = old;
        half->behind = block->behind;
        if (block->behind >= 0) s->blocks[block->behind].before = new_block;
        block->behind = new_block;
        block->count = s->block_size / 2;
        for (i = 0; i < half->count; i++, first = s->places[first].behind) s->places[first].block = new_block;
        tli_search_rescan(s, new_block);
    }
    tli_search_rescan(s, old);
    TLI_INVARIANT(s->places[at].block >= 0 && s->block_count <= s->block_capacity);
}

// Remove a place from its block, before it is unlinked.
static void tli_search_leave(tli_search_seq *s, int32_t at) {
    int32_t number = s->places[at].block;
    tli_search_block *block = &s->blocks[number];
    if (block->first == at) block->first = s->places[at].behind;
    if (--block->count) return;
    s->over_count -= block->is_over;
    s->blocks[block->before].behind = block->behind;  // block 0 is never empty
    if (block->behind >= 0) s->blocks[block->behind].before = block->before;
    block->behind = s->free_block;
    s->free_block = number;
    TLI_INVARIANT(number && s->over_count >= 0);
}

#ifdef TLI_INVARIANTS
// A place and its neighbours know each other, orders ascend, and it is in a block that knows that.
static int tli_search_place_holds(const tli_search_seq *s, int32_t at) {
    const tli_search_place *place = &s->places[at];
    const tli_search_block *block = &s->blocks[place->block];
    if (place->behind < 0 ? s->last_place != at : s->places[place->behind].before != at) return 0;
    if (!at) return place->before < 0 && place->call < 0 && block->first == 0;
    if (s->places[place->before].behind != at || s->places[place->before].order >= place->order) return 0;
    if (place->call < 0 || place->held > block->top || block->count < 1) return 0;
    return s->places[place->before].block == place->block || block->first == at;
}
#endif

// The moment of an event in time order: that of its call.
static int64_t tli_search_when(const tli_search_seq *s, int32_t event) {
    return s->places[s->events[event].call].order;
}

static int tli_search_is_use(const tli_search_seq *s, int32_t event) {
    return event >= 0 && s->events[event].is_use;
}

// Whether a call brings a tensor back from a copy: a fetch or an expansion.
static int tli_search_is_return(const tli_search_seq *s, int32_t at) {
    return TLI_SEARCH_COPIES && s->places[at].call > tli_search_end_call(s->p);
}

// Whether an event needs the item as the event before left it: a use does, and what brings a copy of it back.
static int tli_search_is_kept(const tli_search_seq *s, int32_t event) {
    return event >= 0 && (s->events[event].is_use || tli_search_is_return(s, s->events[event].call));
}

// The bytes of an item that calls hold between the event before this one and it.
static int64_t tli_search_gap_bytes(const tli_search_seq *s, int32_t event) {
    if (event < 0) return 0;
    if (s->events[event].is_use) return s->p->item_bytes[s->events[event].item];
    return tli_search_expanded(s->p, s->places[s->events[event].call].call) < 0
               ? 0 : s->p->packed_bytes[s->events[event].item];
}

#ifdef TLI_INVARIANTS
// By how many bytes more items are live behind a call than before it.
static int64_t tli_search_change_at(const tli_search_seq *s, int32_t at) {
    int64_t bytes = 0;
    int32_t e;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling) {
        bytes += tli_search_gap_bytes(s, s->events[e].behind);
        if (s->events[e].before >= 0) bytes -= tli_search_gap_bytes(s, e);
    }
    return bytes;
}

// What a call holds is its own bytes beside those of items that its neighbour before it leaves live.
static int tli_search_bytes_hold(const tli_search_seq *s, int32_t at) {
    const tli_search_place *place = &s->places[at], *before;
    int64_t live, gradients;
    if (at <= 0 || place->before < 0) return 1;
    before = &s->places[place->before];
    live = tli_search_held(s, at) - tli_search_own(s, place);
    gradients = place->call % 2 ? s->p->gradient_bytes[place->call / 2] : before->gradients;
    if (place->gradients != gradients) return 0;
    if (!place->before) return live == s->p->input_bytes;
    return live == tli_search_held(s, place->before) - tli_search_own(s, before) +
                       tli_search_change_at(s, place->before);
}

// All of it: places in time order, live bytes, blocks and the largest of each, counts and the cost.
static int tli_search_seq_holds(const tli_search_seq *s) {
    uint64_t cost = 0;
    int64_t top = INT64_MIN;
    int32_t at, count = 0, over = 0, used = 0;
    for (at = 0; at >= 0; at = s->places[at].behind) {
        const tli_search_place *place = &s->places[at];
        const tli_search_block *block = &s->blocks[place->block];
        if (!tli_search_place_holds(s, at) || !tli_search_bytes_hold(s, at)) return 0;
        if (block->first == at) { count = 0; top = INT64_MIN; }
        if (place->held > top) top = place->held;
        if (++count == block->count) {
            if (top != block->top || block->is_over != (top + block->add > s->budget)) return 0;
            over += block->is_over;
        }
        used += at > 0;
        if (at) cost += tli_search_call_cost(s->p, place->call);
    }
    return used == s->used && cost == s->cost && over == s->over_count;
}

// The same after a change: of long sequences so seldom that it costs no more than the changes.
static int tli_search_seq_holds_often(const tli_search_seq *s) {
    return s->work % ((uint64_t)s->used / 4 + 16) != 0 || tli_search_seq_holds(s);
}
#endif

// The bytes that a call holds and that are gone behind it: scratch, gradients, and items that nothing needs.
static int64_t tli_search_freed(const tli_search_seq *s, const tli_search_place *place) {
    const tl_graph *graph = s->p->graph;
    int32_t id = place->call / 2, e;
    int64_t freed = 0;
    if (place->call < tli_search_end_call(s->p))
        freed = place->call % 2 ? s->p->call_bytes[place->call] - s->p->gradient_bytes[id]
                : (int64_t)(place->saves ? graph->nodes[id].swork_bytes : graph->nodes[id].fwork_bytes);
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        int32_t item = s->events[e].item;
        if (tli_search_is_kept(s, s->events[e].behind)) continue;
        if (s->events[e].is_use || item < graph->tensor_count) freed += s->p->item_bytes[item];
    }
    if (place->overwrites) freed -= (int64_t)graph->outputs[graph->nodes[id].first_output].bytes;
    return freed;
}

// Find again what the copies take that the call compresses at its end, after what it frees.
static void tli_search_refresh_packs(tli_search_seq *s, tli_search_place *place) {
    int64_t packs = 0;
    int32_t e;
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        int32_t behind = s->events[e].behind;
        int64_t bytes = behind < 0 || s->events[behind].is_use ? 0 : tli_search_gap_bytes(s, behind);
        if (bytes > packs) packs = bytes;
    }
    if (packs) packs -= tli_search_freed(s, place);
    if (packs < 0) packs = 0;
    if (packs == place->packs) return;
    place->held += packs - place->packs;
    place->packs = packs;
    tli_search_rescan(s, place->block);
    TLI_INVARIANT(packs >= 0);
}

// Find again whether a forward saves and whether it runs in place; both follow from the next events of its
// items.
static void tli_search_refresh_form(tli_search_seq *s, int32_t at) {
    const tl_graph *graph = s->p->graph;
    tli_search_place *place = &s->places[at];
    const tl_node *node;
    int32_t e, input = -1, i, reads = 0;
    int saves = 0, overwrites = 0;
    int64_t own;
    if (place->call < 0 || place->call % 2 || place->call >= tli_search_end_call(s->p)) return;
    node = &graph->nodes[place->call / 2];
    if (!node->saved_bytes && node->inplace < 0) return;
    if (node->inplace >= 0) input = graph->inputs[node->first_input + node->inplace].tensor;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        reads += graph->inputs[i].tensor == input;
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        if (s->events[e].item == s->p->graph->tensor_count + place->call / 2 &&
            tli_search_is_use(s, s->events[e].behind))
            saves = 1;
        if (s->events[e].item == input && reads == 1 && !tli_search_is_kept(s, s->events[e].behind))
            overwrites = 1;
    }
    if (saves) overwrites = 0;
    if (saves == place->saves && overwrites == place->overwrites) return;
    own = tli_search_own(s, place);
    place->saves = (uint8_t)saves;
    place->overwrites = (uint8_t)overwrites;
    place->held += tli_search_own(s, place) - own;
    tli_search_rescan(s, place->block);
    TLI_INVARIANT(!saves || !overwrites);
}

static void tli_search_refresh(tli_search_seq *s, int32_t at) {
    tli_search_refresh_form(s, at);
    if (s->p->copies && s->places[at].call >= 0) tli_search_refresh_packs(s, &s->places[at]);
}

static void tli_search_refresh_event(tli_search_seq *s, int32_t event) {
    if (event >= 0) tli_search_refresh(s, s->events[event].call);
}

// The last event of an item at or before a moment in time order; -1 = none. As a rule it is near the one found
// last.
static int32_t tli_search_event_before(tli_search_seq *s, int32_t item, int64_t order) {
    int32_t e = s->recent[item], next;
    if (e < 0) e = s->last[item];
    while (e >= 0 && tli_search_when(s, e) > order) { e = s->events[e].before; s->work += 3; }
    if (e < 0) return -1;
    for (next = s->events[e].behind; next >= 0 && tli_search_when(s, next) <= order; s->work += 3) {
        e = next;
        next = s->events[e].behind;
    }
    s->recent[item] = e;
    return e;
}

static void tli_search_link_event(tli_search_seq *s, int32_t at, const tli_search_touch *touch) {
    int32_t e = s->free_event, x, y, c;
    int64_t was, left, right;
    tli_search_event *event;
    if (e >= 0) s->free_event = s->events[e].sibling;
    else e = s->event_count++;
    x = tli_search_event_before(s, touch->item, s->places[at].order);
    y = x >= 0 ? s->events[x].behind : s->first[touch->item];
    event = &s->events[e];
    event->item = touch->item;
    event->is_use = touch->is_use;
    event->call = at;
    event->sibling = s->places[at].first_event;
    s->places[at].first_event = e;
    event->before = x;
    event->behind = y;
    if (x >= 0) s->events[x].behind = e; else s->first[touch->item] = e;
    if (y >= 0) s->events[y].before = e; else s->last[touch->item] = e;
    right = tli_search_gap_bytes(s, y);
    was = x >= 0 ? right : 0;
    left = x >= 0 ? tli_search_gap_bytes(s, e) : 0;
    c = x >= 0 ? s->events[x].call : 0;
    if (was != left) tli_search_shift(s, c, at, left - was);
    if (was != right) tli_search_shift(s, at, s->events[y].call, right - was);
    TLI_INVARIANT(event->before == x && event->behind == y && s->event_count <= s->event_capacity);
    tli_search_refresh_event(s, x);
}

static void tli_search_unlink_event(tli_search_seq *s, int32_t e) {
    tli_search_event *event = &s->events[e];
    int32_t x = event->before, y = event->behind, at = event->call;
    int64_t was_right = tli_search_gap_bytes(s, y), will = x >= 0 ? was_right : 0;
    int64_t was_left = x >= 0 ? tli_search_gap_bytes(s, e) : 0;
    if (x >= 0) s->events[x].behind = y; else s->first[event->item] = y;
    if (y >= 0) s->events[y].before = x; else s->last[event->item] = x;
    if (s->recent[event->item] == e) s->recent[event->item] = x >= 0 ? x : y;
    if (will != was_left) tli_search_shift(s, s->events[x].call, at, will - was_left);
    if (will != was_right) tli_search_shift(s, at, s->events[y].call, will - was_right);
    TLI_INVARIANT(s->recent[event->item] != e);
    event->sibling = s->free_event;
    s->free_event = e;
    tli_search_refresh_event(s, x);
}

// Number the places in time order, with room between the numbers for places inserted later.
static void tli_search_number(tli_search_seq *s) {
    int64_t order = 0;
    int32_t at;
    for (at = 0; at >= 0; at = s->places[at].behind) {
        s->places[at].order = order;
        order += (int64_t)1 << 24;
    }
    s->work += 8 * (uint64_t)s->used;
    TLI_INVARIANT(s->places[s->last_place].behind < 0);
}

static void tli_search_log_change(tli_search_seq *s, int32_t call, int32_t place) {
    void *array = s->changes;
    if (!s->logs) return;
    if (!tli_grow(s->p->env, &array, &s->change_capacity, s->change_count, (int64_t)s->change_count + 1,
                  sizeof *s->changes)) { s->failed = 1; return; }
    s->changes = (tli_search_change *)array;
    s->changes[s->change_count].call = call;
    s->changes[s->change_count++].place = place;
    TLI_INVARIANT(s->change_count <= s->change_capacity);
}

// Insert a call after a place; -1 = no memory, nothing changed.
static int32_t tli_search_put(tli_search_seq *s, int32_t call, int32_t behind) {
    const tli_search_problem *p = s->p;
    int32_t k, at, next, from = p->first_touch[call], to = p->first_touch[call + 1];
    int64_t live = p->input_bytes;  // bytes of items live between the call and the next one
    tli_search_place *place;
    if (!tli_search_reserve_events(s, to - from) || !tli_search_reserve_block(s)) return -1;
    at = tli_search_new_place(s);
    if (at < 0) return -1;
    place = &s->places[at];
    next = s->places[behind].behind;
    place->call = call;
    place->first_event = -1;
    place->before = behind;
    place->behind = next;
    s->places[behind].behind = at;
    if (next >= 0) s->places[next].before = at; else s->last_place = at;
    place->order = next >= 0 ? (s->places[behind].order + s->places[next].order) / 2
                             : s->places[behind].order + ((int64_t)1 << 24);
    if (place->order == s->places[behind].order) tli_search_number(s);
    if (next >= 0) live = tli_search_held(s, next) - tli_search_own(s, &s->places[next]);
    place->saves = place->overwrites = 0;
    place->packs = 0;
    place->gradients = s->places[behind].gradients;
    if (call % 2) place->gradients = p->gradient_bytes[call / 2];
    tli_search_join(s, at, live + tli_search_own(s, place));
    s->cost += tli_search_call_cost(p, call);
    for (k = from; k < to; k++) tli_search_link_event(s, at, &p->touches[k]);
    tli_search_refresh(s, at);
    s->used++;
    s->work += 8 + 6 * (uint64_t)(to - from);
    TLI_INVARIANT(tli_search_place_holds(s, at) && tli_search_bytes_hold(s, at));
    TLI_INVARIANT(tli_search_bytes_hold(s, next));
    TLI_INVARIANT(tli_search_seq_holds_often(s));
    return at;
}

static void tli_search_take(tli_search_seq *s, int32_t at) {
    tli_search_place *place = &s->places[at];
    int32_t call = place->call;
    while (place->first_event >= 0) {
        int32_t e = place->first_event;
        place->first_event = s->events[e].sibling;
        tli_search_unlink_event(s, e);
        s->work += 6;
    }
    tli_search_leave(s, at);
    s->cost -= tli_search_call_cost(s->p, call);
    s->places[place->before].behind = place->behind;
    if (place->behind >= 0) s->places[place->behind].before = place->before; else s->last_place = place->before;
    if (s->blocks[place->block].count) tli_search_rescan(s, place->block);
    place->behind = s->free_place;
    place->call = -1;
    s->free_place = at;
    s->used--;
    s->work += 8;
    TLI_INVARIANT(s->used >= 0 && tli_search_seq_holds_often(s));
}

// -- search: the sequence: all of it from a list of calls --
//
// In time linear in the touches of the calls, where putting one call after the other would take time for every
// block between the uses of an item.

// Add a call at the end, with its events. The bytes of items are left as changes: of the place itself (in
// `held`) against the place before it, and of the place after it (in `order`).
static int tli_search_append(tli_search_seq *s, int32_t call) {
    const tli_search_problem *p = s->p;
    int32_t k, from = p->first_touch[call], to = p->first_touch[call + 1], at;
    int64_t bytes;
    tli_search_place *place;
    if (!tli_search_reserve_events(s, to - from)) return 0;
    at = tli_search_new_place(s);
    if (at < 0) return 0;
    place = &s->places[at];
    tli_zero(place, sizeof *place);
    place->call = call;
    place->first_event = -1;
    place->before = s->last_place;
    place->behind = -1;
    s->places[s->last_place].behind = at;
    for (k = from; k < to; k++) {
        int32_t item = p->touches[k].item, e = s->event_count++, x = s->last[item];
        tli_search_event *event = &s->events[e];
        event->item = p->touches[k].item;
        event->is_use = p->touches[k].is_use;
        event->call = at;
        event->sibling = place->first_event;
        place->first_event = e;
        event->before = x;
        event->behind = -1;
        s->last[item] = e;
        if (x < 0) { s->first[item] = e; continue; }
        s->events[x].behind = e;
        bytes = tli_search_gap_bytes(s, e);
        s->places[s->events[x].call].order += bytes;
        place->order -= bytes;
    }
    s->last_place = at;
    s->used++;
    s->work += 4 + 4 * (uint64_t)(to - from);
    TLI_INVARIANT(s->last_place == at && s->event_count <= s->event_capacity);
    return 1;
}

// Find the bytes and the order of all places from what tli_search_append left, and make the blocks.
static int tli_search_make_blocks(tli_search_seq *s) {
    const tli_search_problem *p = s->p;
    int64_t live = p->input_bytes, gradients = 0, order = 0, change = s->places[0].order;
    int32_t at, number = 0;
    s->places[0].order = 0;
    for (at = s->places[0].behind; at >= 0; at = s->places[at].behind) {
        tli_search_place *place = &s->places[at];
        live += change;
        change = place->order;
        place->order = order += (int64_t)1 << 24;
        if (place->call % 2) gradients = p->gradient_bytes[place->call / 2];
        place->gradients = gradients;
        place->held = live + tli_search_own(s, place);
        if (s->blocks[number].count == s->block_size / 2) {
            tli_search_block *block;
            if (!tli_search_reserve_block(s)) return 0;
            block = &s->blocks[s->block_count];
            tli_zero(block, sizeof *block);
            block->before = number;
            block->behind = -1;
            block->first = at;
            s->blocks[number].behind = s->block_count;
            number = s->block_count++;
        }
        place->block = number;
        s->blocks[number].count++;
        s->cost += tli_search_call_cost(p, place->call);
    }
    for (number = 0; number >= 0; number = s->blocks[number].behind) tli_search_rescan(s, number);
    s->work += 4 * (uint64_t)s->used;
    return 1;
}

// Replace an array whose items are no longer needed by a larger one, with an eighth to spare; 0 = no memory.
static int tli_search_replace(tl_env *env, void **array, int32_t *capacity, int64_t needed, size_t item_bytes) {
    int64_t count = needed + needed / 8 + 64;
    if (needed < *capacity) return 1;
    if (count > INT32_MAX) return 0;
    tli_release(env, *array);
    *capacity = 0;
    *array = tli_alloc_array(env, (uint64_t)count, item_bytes);
    if (*array) *capacity = (int32_t)count;
    return *array != NULL;
}

// Make room for a list of calls in an empty sequence: doubling the arrays as they grow would take three times
// that.
static int tli_search_reserve_calls(tli_search_seq *s, const tli_search_calls *calls) {
    const int32_t *first = s->p->first_touch;
    void *places = s->places, *events = s->events;
    int64_t touches = 0;
    int32_t i;
    for (i = 0; i < calls->count; i++) touches += first[calls->calls[i] + 1] - first[calls->calls[i]];
    s->failed |= !tli_search_replace(s->p->env, &places, &s->place_capacity, (int64_t)calls->count + 1,
                                     sizeof *s->places);
    s->failed |= !tli_search_replace(s->p->env, &events, &s->event_capacity, touches, sizeof *s->events);
    s->places = (tli_search_place *)places;
    s->events = (tli_search_event *)events;
    return tli_search_reserve_ends(s);
}

// Make the sequence anew from a list of calls; 0 = no memory.
static int tli_search_load(tli_search_seq *s, const tli_search_calls *calls) {
    int32_t i, at;
    if (!tli_search_reserve_calls(s, calls)) return 0;
    tli_search_empty_seq(s);
    s->logs = 0;
    s->block_size = TLI_SEARCH_BLOCK;
    while (s->block_size < calls->count / s->block_size) s->block_size += s->block_size / 4;
    for (i = 0; i < calls->count; i++) if (!tli_search_append(s, calls->calls[i])) return 0;
    if (!tli_search_make_blocks(s)) return 0;
    for (at = s->places[0].behind; at >= 0; at = s->places[at].behind) tli_search_refresh(s, at);
    s->work += (uint64_t)s->p->item_count + 2 * (uint64_t)s->used;
    TLI_INVARIANT(tli_search_seq_holds(s));
    return 1;
}

// -- search: changes that can be undone --

static int32_t tli_search_insert(tli_search_seq *s, int32_t call, int32_t behind) {
    int32_t at = tli_search_put(s, call, behind);
    if (at >= 0) tli_search_log_change(s, -1, at);
    return at;
}

static void tli_search_remove(tli_search_seq *s, int32_t at) {
    int32_t call = s->places[at].call, before = s->places[at].before;
    tli_search_take(s, at);
    tli_search_log_change(s, call, before);
}

// Take changes back, to the first `count`. Without memory (s->failed) some are not in the log: the sequence is
// lost, and must only be freed.
static void tli_search_undo(tli_search_seq *s, int32_t count) {
    if (s->failed) return;
    while (s->change_count > count) {
        tli_search_change *change = &s->changes[--s->change_count];
        if (change->call < 0) tli_search_take(s, change->place);
        else tli_search_put(s, change->call, change->place);
    }
    TLI_INVARIANT(s->change_count <= count || s->failed);
}

static int tli_search_is_forward(const tli_search_seq *s, int32_t at) {
    int32_t call = s->places[at].call;
    return call >= 0 && call % 2 == 0 && call < tli_search_end_call(s->p);
}

// Whether the sequence stays valid without this call: each item that it makes and that is used later was also
// made earlier.
static int tli_search_can_remove(const tli_search_seq *s, int32_t at) {
    int32_t e;
    if (tli_search_is_return(s, at)) return 1;
    if (!tli_search_is_forward(s, at)) return 0;
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling)
        if (!s->events[e].is_use && s->events[e].before < 0 &&
            tli_search_is_kept(s, s->events[e].behind))
            return 0;
    return 1;
}

// Whether nothing that this call makes is used before it is made again, so that it may be removed.
static int tli_search_is_useless(const tli_search_seq *s, int32_t at) {
    int32_t e, ran;
    if (tli_search_is_return(s, at)) return !tli_search_is_use(s, s->events[s->places[at].first_event].behind);
    if (!tli_search_is_forward(s, at)) return 0;
    ran = tli_search_ran_item(s->p, s->places[at].call / 2);
    for (e = s->places[at].first_event; e >= 0; e = s->events[e].sibling)
        if (!s->events[e].is_use && tli_search_is_kept(s, s->events[e].behind) &&
            ((s->events[e].item != ran && tli_search_is_use(s, s->events[e].behind)) ||
             s->events[e].before < 0))
            return 0;
    return 1;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

