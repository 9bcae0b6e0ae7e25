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
//      a slowly falling random threshold. Every change inserts or removes one call and can be
//      undone. It takes a step for each block of calls over which live bytes of an item change.
//
// This part holds the problem (p); the next ones the greedy planner (g), the sequence (s), and the search (r)
// that changes it.

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
    int32_t         any_settled;     // 1 = settled_by names an update
    int32_t         copies;          // 1 = tensors may come back from copies
    int64_t        *item_bytes;      // [item_count]
    int64_t        *packed_bytes;    // [tensors] of the compressed copy; 0 = has none
    uint64_t       *codec_ns;        // [tensors] time to compress it, and as much again to expand it
    const uint64_t *turns_ns;        // [tensors] of a copy and the one back where these take turns with calls;
                                     // NULL = they run beside them
    tli_search_touch   *touches;     // of F 0, B 0, F 1, B 1, ..., the end, then of fetches, expansions
    int32_t        *first_touch;     // [2 nodes + 2], with copies [2 nodes + 4 tensors + 3]
    int64_t        *call_bytes;      // [2 nodes + 1] outputs, fwork of F; gradients, bwork of B; then copies
    int64_t        *gradient_bytes;  // [nodes] bytes of gradients live after B v
    int32_t         most_calls;      // of a list that becomes a sequence: see tli_search_limit_calls
    uint8_t        *is_wanted;       // [nodes] its forward must run at least once
    uint8_t        *is_result;       // [tensors] resident at the end
    int32_t        *settled_by;      // [tensors] of a result: the update behind which it is not made again, and
                                     // so stays, as a call; -1 = none
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

// The cost of a call that is not a backward: for an expansion that of both conversions, for a fetch that takes
// its turn that of both copies.
static uint64_t tli_search_call_cost(const tli_search_problem *p, int32_t call) {
    int32_t tensor = tli_search_expanded(p, call), fetched = (call - tli_search_fetch_call(p, 0)) / 2;
    if (tensor >= 0) return 2 * p->codec_ns[tensor];
    if (call > tli_search_end_call(p)) return p->turns_ns ? p->turns_ns[fetched] : 0;
    return call % 2 || call == tli_search_end_call(p) ? 0 : p->graph->nodes[call / 2].fwd_cost;
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
    tli_release(p->env, p->settled_by);
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

// Find settled_by[]. A result that depends on a state is made before the update of that state, which is the
// last call that uses it: from then on its bytes count as those of a gradient. above: scratch [nodes], of the
// states and readers of states in pieces on which a node depends the lowest in the listing, whose update is the
// first.
static void tli_search_find_settled(tli_search_problem *p, int32_t *above) {
    const tl_graph *graph = p->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int updates = tli_has_update(node) || (node->has_grad && tli_reads_pieces(graph, node));
        above[id] = updates && !p->inference ? id : -1;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t maker = graph->outputs[graph->inputs[i].tensor].node;
            if (above[maker] > above[id]) above[id] = above[maker];
        }
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            p->settled_by[i] = p->is_result[i] && above[id] >= 0 ? 2 * above[id] + 1 : -1;
    }
    tli_zero(above, (size_t)graph->node_count * sizeof *above);
}

// Whether the backward of a node updates states.
static int tli_search_updates(const tli_search_problem *p, int32_t id) {
    const tl_node *node = &p->graph->nodes[id];
    return node->state || tli_reads_pieces(p->graph, node);
}

static void tli_search_touch_settled(tli_search_problem *p, int32_t id, int32_t *seen, int32_t *count) {
    int32_t i;
    if (!p->any_settled || !tli_search_updates(p, id)) return;
    for (i = p->graph->nodes[id].first_output; i < p->graph->tensor_count; i++)
        if (p->settled_by[i] == 2 * id + 1) tli_search_touch_item(p, count, seen, 2 * id + 1, i, 1);
}

// The bytes of the results that the backward of a node settles.
static int64_t tli_search_sum_settled(const tli_search_problem *p, int32_t id) {
    const tl_graph *graph = p->graph;
    int64_t bytes = 0;
    int32_t i;
    if (!p->any_settled || !tli_search_updates(p, id)) return 0;
    for (i = graph->nodes[id].first_output; i < graph->tensor_count; i++)
        if (p->settled_by[i] == 2 * id + 1) bytes += (int64_t)graph->outputs[i].bytes;
    return bytes;
}

static void tli_search_touch_node(tli_search_problem *p, int32_t id, int32_t *seen, int32_t *count) {
    const tl_graph *graph = p->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, in_end = node->first_input + node->input_count;
    int32_t out_end = node->first_output + node->output_count;
    int trains = !p->inference && node->has_grad;
    p->first_touch[2 * id] = *count;
    if (node->is_input) {
        p->first_touch[2 * id + 1] = *count;
        if (trains) tli_search_touch_settled(p, id, seen, count);
        return;
    }
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
    tli_search_touch_settled(p, id, seen, count);
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
        for (i = node->first_output; i < tli_gradient_end(node); i++)
            if (!seen[i]) { seen[i] = 1; live += (int64_t)graph->outputs[i].bytes; }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t t = graph->inputs[i].tensor;
            if (seen[t] || !tli_gets_gradient(graph, t)) continue;
            seen[t] = 1;
            live += (int64_t)graph->outputs[t].bytes;
        }
        p->call_bytes[2 * id + 1] = live + (int64_t)node->bwork_bytes;
        for (i = node->first_output; i < tli_gradient_end(node); i++)
            live -= (int64_t)graph->outputs[i].bytes;
        live += tli_search_sum_settled(p, id);
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
    tli_search_find_settled(p, seen);
    for (i = 0; i < graph->tensor_count; i++) p->any_settled |= p->settled_by[i] >= 0;
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
        if (p->is_result[i] && p->settled_by[i] < 0)
            tli_search_touch_item(p, &count, seen, tli_search_end_call(p), i, 1);
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

#define TLI_SEARCH_EVENT_BYTES 20           // about those of an event and of a place of a sequence
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
    p->settled_by = (int32_t *)tli_alloc_array(in->env, tensors, sizeof *p->settled_by);
    seen = (int32_t *)tli_alloc_array(in->env, (uint64_t)p->item_count, sizeof *seen);
    if (p->item_bytes && p->packed_bytes && p->codec_ns && p->touches && p->first_touch && p->call_bytes &&
        p->gradient_bytes && p->is_wanted && p->is_result && p->settled_by && seen) {
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
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

